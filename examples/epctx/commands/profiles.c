/* epctx profiles: what epctx knows about EPs, QNN's error numbers and Qualcomm's chips. */
#include "core/options.h"
#include "core/vendors.h"

#include <string.h>

/* The object's list `name`, or NULL without --json. */
static json_writer *begin_list(const char *name, bool json) {
    json_writer *w = json ? cli_json_begin(stdout) : NULL;
    if (json) json_array(w, name, JSON_LINES);
    return w;
}

static void end_list(json_writer *w) {
    if (w == NULL) return;
    json_end(w);
    cli_json_end();
}

/* The members of an EP, in JSON one below the other. */
static void begin_ep(json_writer *w, const char *name, bool first) {
    if (w == NULL) {
        printf("%s%s\n", first ? "" : "\n", name);
        return;
    }
    json_object(w, NULL, JSON_COLUMN);
    json_text(w, "name", name);
}

static void end_ep(json_writer *w) {
    if (w != NULL) json_end(w);
}

/* A line of the description of an EP, or a member of its object. */
static void put_line(json_writer *w, const char *name, const char *text) {
    if (text == NULL) return;
    if (w != NULL) {
        json_text(w, name, text);
        return;
    }
    printf("  %-12s ", name);
    cli_put_wrapped(stdout, text, 15);
}

static void put_profile(json_writer *w, const epctx_profile *profile, bool first) {
    const vendor_ep ep = vendor_ep_of(profile->name);
    const char *source = profile->sources[0];
    begin_ep(w, profile->name, first);
    put_line(w, "source", source != NULL ? source : "any");
    put_line(w, "registered", ep.registers);
    put_line(w, "library", ep.library);
    put_line(w, "dll", ep.dll);
    put_line(w, "binary", profile->binary[0] != '\0' ? profile->binary : "embedded");
    put_line(w, "packages", ep.packages);
    put_line(w, "needs", ep.needs);
    put_line(w, "offline", ep.offline);
    put_line(w, "mind", ep.mind);
    put_line(w, "load", ep.load);
    end_ep(w);
}

static void put_plain(json_writer *w, const fact *ep, bool first) {
    begin_ep(w, ep->name, first);
    put_line(w, "context", "none: it writes no context model, and loads none");
    put_line(w, "instead", fact_get(ep, "instead"));
    end_ep(w);
}

static int list_profiles(const char *name, bool json) {
    size_t count, i, at = 0;
    const epctx_profile *all = epctx_profiles(&count);
    const epctx_profile *wanted = NULL;
    const fact *f, *plain = name != NULL ? vendor_plain_of(name) : NULL;
    bool first = true;
    json_writer *w;
    if (name != NULL && plain == NULL && !cli_profile_for("profiles", name, &wanted))
        return CLI_USAGE;
    w = begin_list("profiles", json);
    for (i = 0; i < count && plain == NULL; i++) {
        if (wanted != NULL && wanted != &all[i]) continue;
        put_profile(w, &all[i], first);
        first = false;
    }
    while ((f = facts_next("plain", &at)) != NULL) {
        if (name != NULL && plain != f) continue;
        put_plain(w, f, first);
        first = false;
    }
    end_list(w);
    return CLI_OK;
}

static void json_code(json_writer *w, const fact *code) {
    json_object(w, NULL, JSON_INLINE);
    json_uint(w, "number", vendor_code_number(code));
    json_text(w, "meaning", fact_get(code, "meaning"));
    if (fact_get(code, "cure") != NULL) json_text(w, "cure", fact_get(code, "cure"));
    json_end(w);
}

static void put_code(const fact *code) {
    const char *cure = fact_get(code, "cure");
    printf("%5u  %s\n", (unsigned)vendor_code_number(code), fact_get(code, "meaning"));
    if (cure == NULL) return;
    fputs("       ", stdout);
    cli_put_wrapped(stdout, cure, 7);
}

static int list_errors(bool json) {
    json_writer *w = begin_list("qnn_errors", json);
    size_t at = 0;
    const fact *code;
    while ((code = facts_next("code", &at)) != NULL)
        if (json)
            json_code(w, code);
        else
            put_code(code);
    end_list(w);
    return CLI_OK;
}

static void json_chip(json_writer *w, const vendor_chip *chip) {
    json_object(w, NULL, JSON_INLINE);
    json_uint(w, "soc_model", chip->soc_model);
    json_uint(w, "htp_arch", chip->arch);
    if (chip->vtcm > 0)
        json_uint(w, "vtcm_mb", chip->vtcm);
    else
        json_null(w, "vtcm_mb");
    json_text(w, "chip", chip->name);
    json_end(w);
}

static int list_chips(bool json) {
    json_writer *w = begin_list("chips", json);
    vendor_chip one, *chip = &one;
    size_t at = 0;
    if (!json) puts("soc_model  HTP  VTCM    chip");
    while (vendor_next_chip(&at, chip))
        if (json)
            json_chip(w, chip);
        else if (chip->vtcm > 0)
            printf("%9u  v%u  %2u MiB  %s\n", chip->soc_model, chip->arch, chip->vtcm, chip->name);
        else
            printf("%9u  v%u  ?       %s\n", chip->soc_model, chip->arch, chip->name);
    end_list(w);
    return CLI_OK;
}

/* -- a file of facts -- */

enum { MOST_PROBLEMS = 100 };

typedef struct problems {
    size_t told;
    json_writer *out; /* with --json */
} problems;

static void put_problem(void *user, const char *file, uint32_t line, const char *text) {
    problems *p = (problems *)user;
    if (++p->told > MOST_PROBLEMS) return;
    if (p->out != NULL) {
        json_object(p->out, NULL, JSON_INLINE);
        json_text(p->out, "file", file);
        json_uint(p->out, "line", line);
        json_text(p->out, "problem", text);
        json_end(p->out);
        return;
    }
    cli_put(stdout, epctx_str_of(file));
    if (line > 0) printf(":%u", (unsigned)line);
    fputs(": ", stdout);
    cli_put(stdout, epctx_str_of(text));
    putchar('\n');
}

static int check_facts(const char *path, bool json) {
    problems p = {0, begin_list("problems", json)};
    size_t count;
    const size_t found = facts_judge(path, put_problem, &p, &count);
    if (json) {
        json_end(p.out);
        json_uint(p.out, "facts", count);
        json_uint(p.out, "found", found);
        cli_json_end();
    } else if (found > MOST_PROBLEMS) {
        printf("%zu more problems\n", found - MOST_PROBLEMS);
    } else if (found == 0) {
        cli_put(stdout, epctx_str_of(path));
        printf(": %zu fact%s, nothing wrong\n", count, cli_plural(count));
    }
    return found == 0 ? CLI_OK : CLI_FAILED;
}

static int run(const cli_args *args) {
    const char *name = args->operands[0];
    if (args->errors + args->chips + (args->check != NULL) + (args->count > 0) > 1) {
        cli_misuse("--errors, --chips, --check and NAME exclude each other");
        return CLI_USAGE;
    }
    if (args->check != NULL) return check_facts(args->check, args->json);
    return args->errors  ? list_errors(args->json)
           : args->chips ? list_chips(args->json)
                         : list_profiles(args->count > 0 ? name : NULL, args->json);
}

const cli_command cli_profiles = {
    .name = "profiles",
    .group = CLI_LOOK,
    .operands = "[NAME]",
    .most = 1,
    .summary = "list what is known about EPs, their errors and chips",
    .about = "Prints for each EP, or the one of profile NAME, how nodes name it, how its\n"
             "library is called and registered, where it is to be had, what it needs, and\n"
             "whether it compiles without the device; also EPs of ONNX Runtime that have no\n"
             "EPContext, such as DML, and what helps there.\n",
    .more = "Example: epctx profiles openvino\n",
    .run = run,
};
