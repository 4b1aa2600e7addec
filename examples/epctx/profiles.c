/* epctx profiles: what epctx knows about EPs, QNN's error numbers and Qualcomm's chips. */
#include "cli.h"
#include "vendors.h"

#include <string.h>

static void begin_json(const char *list) {
    cli_json_begin(stdout);
    printf("\"%s\": [", list);
}

static void end_json(void) {
    fputs("\n]", stdout);
    cli_json_end(stdout);
}

/* A line of the description of an EP, or a member of its object. */
static void put_line(const char *name, const char *text, bool json) {
    if (text == NULL) return;
    if (!json) {
        printf("  %-12s ", name);
        cli_put_wrapped(stdout, text, 15);
        return;
    }
    printf(",\n   \"%s\": ", name);
    cli_put_json(stdout, epctx_str_of(text));
}

static void put_profile(const epctx_profile *profile, bool json, bool first) {
    const vendor_ep ep = vendor_ep_of(profile->name);
    const char *source = profile->sources[0];
    if (json) {
        printf("%s\n  {", first ? "" : ",");
        cli_json_str("name", epctx_str_of(profile->name), "");
    } else {
        printf("%s%s\n", first ? "" : "\n", profile->name);
    }
    put_line("source", source != NULL ? source : "any", json);
    put_line("registered", ep.registers, json);
    put_line("library", ep.library, json);
    put_line("dll", ep.dll, json);
    put_line("binary", profile->binary[0] != '\0' ? profile->binary : "embedded", json);
    put_line("packages", ep.packages, json);
    put_line("needs", ep.needs, json);
    put_line("offline", ep.offline, json);
    put_line("mind", ep.mind, json);
    if (json) putchar('}');
}

static void put_plain(const fact *ep, bool json, bool first) {
    if (json) {
        printf("%s\n  {", first ? "" : ",");
        cli_json_str("name", epctx_str_of(ep->name), "");
    } else {
        printf("%s%s\n", first ? "" : "\n", ep->name);
    }
    put_line("context", "none: it writes no context model, and loads none", json);
    put_line("instead", fact_get(ep, "instead"), json);
    if (json) putchar('}');
}

static int list_profiles(const char *name, bool json) {
    size_t count, i, at = 0;
    const epctx_profile *all = epctx_profiles(&count);
    const epctx_profile *wanted = NULL;
    const fact *f, *plain = name != NULL ? vendor_plain_of(name) : NULL;
    bool first = true;
    if (name != NULL && plain == NULL && !cli_profile_for("profiles", name, &wanted))
        return CLI_USAGE;
    if (json) begin_json("profiles");
    for (i = 0; i < count && plain == NULL; i++) {
        if (wanted != NULL && wanted != &all[i]) continue;
        put_profile(&all[i], json, first);
        first = false;
    }
    while ((f = facts_next("plain", &at)) != NULL) {
        if (name != NULL && plain != f) continue;
        put_plain(f, json, first);
        first = false;
    }
    if (json) end_json();
    return CLI_OK;
}

static int list_errors(bool json) {
    size_t at = 0;
    const fact *code;
    if (json) begin_json("qnn_errors");
    while ((code = facts_next("code", &at)) != NULL) {
        const char *meaning = fact_get(code, "meaning"), *cure = fact_get(code, "cure");
        const unsigned number = vendor_code_number(code);
        if (json) {
            printf("%s\n  {\"number\": %u, \"meaning\": ", at > 1 ? "," : "", number);
            cli_put_json(stdout, epctx_str_of(meaning));
            if (cure != NULL) fputs(", \"cure\": ", stdout);
            if (cure != NULL) cli_put_json(stdout, epctx_str_of(cure));
            putchar('}');
        } else {
            printf("%5u  %s\n", number, meaning);
            if (cure != NULL) fputs("       ", stdout);
            if (cure != NULL) cli_put_wrapped(stdout, cure, 7);
        }
    }
    if (json) end_json();
    return CLI_OK;
}

static int list_chips(bool json) {
    size_t at = 0;
    vendor_chip one, *chip = &one;
    if (json)
        begin_json("chips");
    else
        puts("soc_model  HTP  VTCM    chip");
    while (vendor_next_chip(&at, chip)) {
        if (json) {
            printf("%s\n  {\"soc_model\": %u, \"htp_arch\": %u, \"vtcm_mb\": ", at > 1 ? "," : "",
                   chip->soc_model, chip->arch);
            if (chip->vtcm > 0)
                printf("%u, ", chip->vtcm);
            else
                fputs("null, ", stdout);
            cli_json_str("chip", epctx_str_of(chip->name), "}");
        } else if (chip->vtcm > 0) {
            printf("%9u  v%u  %2u MiB  %s\n", chip->soc_model, chip->arch, chip->vtcm, chip->name);
        } else {
            printf("%9u  v%u  ?       %s\n", chip->soc_model, chip->arch, chip->name);
        }
    }
    if (json) end_json();
    return CLI_OK;
}

/* -- a file of facts -- */

enum { MOST_PROBLEMS = 100 };

typedef struct problems {
    size_t told;
    bool json;
} problems;

static void put_problem(void *user, const char *file, uint32_t line, const char *text) {
    problems *p = (problems *)user;
    if (++p->told > MOST_PROBLEMS) return;
    if (p->json) {
        printf("%s\n  {", p->told > 1 ? "," : "");
        cli_json_str("file", epctx_str_of(file), ", ");
        printf("\"line\": %u, ", (unsigned)line);
        cli_json_str("problem", epctx_str_of(text), "}");
        return;
    }
    cli_put(stdout, epctx_str_of(file));
    if (line > 0) printf(":%u", (unsigned)line);
    fputs(": ", stdout);
    cli_put(stdout, epctx_str_of(text));
    putchar('\n');
}

static int check_facts(const char *path, bool json) {
    problems p = {0, json};
    size_t count, found;
    if (json) begin_json("problems");
    found = facts_judge(path, put_problem, &p, &count);
    if (json) {
        printf("\n],\n\"facts\": %zu, \"found\": %zu", count, found);
        cli_json_end(stdout);
    } else if (found > MOST_PROBLEMS) {
        printf("%zu more problems\n", found - MOST_PROBLEMS);
    } else if (found == 0) {
        cli_put(stdout, epctx_str_of(path));
        printf(": %zu fact%s, nothing wrong\n", count, cli_plural(count));
    }
    return found == 0 ? CLI_OK : CLI_FAILED;
}

static int run(int argc, char **argv) {
    const char *name = NULL, *check = NULL;
    bool json = false, errors = false, chips = false;
    const cli_option options[] = {{"--json", NULL, &json},
                                  {"--errors", NULL, &errors},
                                  {"--chips", NULL, &chips},
                                  {"--check", &check, NULL},
                                  {NULL, NULL, NULL}};
    if (cli_parse_some(&cli_profiles, argc, argv, options, &name, 0, 1) < 0) return CLI_USAGE;
    if (errors + chips + (check != NULL) + (name != NULL) > 1) {
        cli_fail_text("--errors, --chips, --check and NAME exclude each other");
        return CLI_USAGE;
    }
    if (check != NULL) return check_facts(check, json);
    return errors ? list_errors(json) : chips ? list_chips(json) : list_profiles(name, json);
}

const cli_command cli_profiles = {
    "profiles",
    "[--errors | --chips | --check FILE | NAME] [--json]",
    "list what is known about EPs, their errors and chips",
    "Prints for each EP, or the one of profile NAME, how nodes name it, how its\n"
    "library is called and registered, where it is to be had, what it needs, and\n"
    "whether it compiles without the device; also EPs of ONNX Runtime that have no\n"
    "EPContext, such as DML, and what helps there.\n\n"
    "  --errors   QNN's error numbers, what they mean and what helps; 'epctx explain'\n"
    "             takes one of them, too\n"
    "  --chips    Qualcomm's chips: soc_model, architecture of the HTP, VTCM\n"
    "  --check FILE\n"
    "             judge facts of your own, a file or a folder of files *.facts: with\n"
    "             'epctx COMMAND --facts FILE' they replace and extend the built-in\n"
    "             ones (examples/epctx/facts/README.md)\n"
    "  --json     print one JSON object\n\n"
    "Example: epctx profiles openvino\n",
    run,
};
