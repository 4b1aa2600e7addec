/* epctx check: does a compiled model fit a machine? The answer is the exit code. */
#include "check.h"
#include "core/asker.h"
#include "core/options.h"
#include "core/vendors.h"
#include "delivery/each.h"
#include "ops/cache.h"

#include <inttypes.h>
#include <string.h>

enum { STAMPS_MOST = 100 }; /* each is compared by a walk through the model */

static bool is_compiled(const epctx_model *model) {
    epctx_walk walk;
    epctx_node_view node;
    epctx_walk_begin(&walk, model);
    return epctx_walk_epnode(&walk, &node);
}

/* The model has no entry for this EP: a typing error, or a model for another EP. */
static void explain_ep(const char *ep, const char *what) {
    size_t count, i;
    const epctx_profile *all = epctx_profiles(&count);
    printf("no %s for '", what);
    cli_put(stdout, epctx_str_of(ep));
    fputs("'\n", stdout);
    if (cli_profile_of(ep) != NULL) return;
    fputs("    epctx does not know this EP; it knows:", stdout);
    for (i = 0; i + 1 < count; i++)
        if (i == 0 || strcmp(all[i].sources[0], all[i - 1].sources[0]) != 0)
            printf("%s\n        %s", i > 0 ? "," : "", all[i].sources[0]);
    putchar('\n');
}

/* Whether a context of this EP is surely none; only then `error` changes, and names its node. */
static bool is_foreign(const check_work *work, const char *ep, epctx_error *error) {
    size_t i;
    for (i = 0; i < work->contexts.count; i++) {
        const binary_context *context = &work->contexts.items[i];
        epctx_error why;
        epctx_error_clear(&why);
        if (!cli_is_ep(context->source, ep) ||
            epctx_profile_check_binary(context->profile, &context->facts.id, &why) == EPCTX_OK)
            continue;
        epctx_blame(&why, work->file, &context->node, context->place.attribute);
        *error = why;
        return true;
    }
    return false;
}

/* `chosen` NULL: there is no entry, or it is not clear which. */
static epctx_compat verdict(const check_work *work, const epctx_compat_entry *chosen) {
    char own[256];
    const char *against = work->against;
    epctx_backend backend;
    epctx_error why;
    epctx_compat compat = EPCTX_COMPAT_NOT_APPLICABLE;
    bool foreign;
    epctx_error_clear(&why);
    foreign = is_foreign(work, work->ep, &why);
    if (chosen == NULL && !foreign) return compat;
    if (foreign)
        compat = EPCTX_COMPAT_UNSUPPORTED;
    else if (against == NULL && cli_own_backend(chosen->ep, &backend) &&
             epctx_backend_compatibility(&backend, own, sizeof own, &why) == EPCTX_OK)
        against = own;
    if (!foreign && against != NULL)
        compat = epctx_compat_compare(work->profile != NULL ? work->profile
                                                            : epctx_profile_of(chosen->ep),
                                      chosen->value, epctx_str_of(against), &why);
    else if (!foreign)
        epctx_fail(&why, EPCTX_ERR_ARG,
                   "not compared: give the string of this machine's EP with --against, or its chip "
                   "with --chip");
    if (!work->json) printf("%s: ", check_compat_name(compat));
    if (!work->json) cli_put(stdout, epctx_str_of(why.message));
    if (!work->json) putchar('\n');
    return compat;
}

static int report(check_work *work, const epctx_state *state) {
    const epctx_compat_entry *chosen = NULL;
    epctx_compat compat;
    size_t i, count = 0;
    for (i = 0; i < state->compat_count; i++) count += cli_is_ep(state->compat[i].ep, work->ep);
    if (count > 1 && work->against != NULL) {
        cli_fail_text(work->ep == NULL ? "%s: there are several entries, select one with --ep"
                                       : "%s: this EP has two entries",
                      work->file);
        return CHECK_UNKNOWN;
    }
    if (work->json) {
        check_begin_json(work);
        json_array(work->out, "entries", JSON_HANGING);
    }
    for (i = 0; i < state->compat_count; i++) {
        const epctx_compat_entry *entry = &state->compat[i];
        if (!cli_is_ep(entry->ep, work->ep)) continue;
        check_put_entry(work, entry);
        chosen = entry;
    }
    if (chosen == NULL && !work->json && work->ep != NULL)
        explain_ep(work->ep, "compatibility info");
    else if (chosen == NULL && !work->json)
        puts(state->ep_nodes + state->broken_nodes > 0
                 ? "no compatibility info (--chip CHIP compares what the nodes tell)"
                 : "not compiled: there is no EPContext node");
    compat = verdict(work, count == 1 ? chosen : NULL);
    if (work->json) {
        json_end(work->out);
        check_json_compat(work->out, compat);
        info_end(&work->where);
    } else if (work->against != NULL && chosen == NULL)
        puts(check_compat_name(compat));
    else if (count > 1)
        printf("%s: not compared: there are several entries, select one with --ep\n",
               check_compat_name(compat));
    return check_code_of(work, compat);
}

/* -- --fresh: is it still what its source would give? -- */

/* The line "options HASH" of the stamp: is it that of the options that were given? */
static epctx_freshness compare_options(const check_work *work, epctx_str stamp, epctx_error *why) {
    const uint64_t given = epctx_hash(work->options, strlen(work->options), 0);
    epctx_stamp_line line;
    while (epctx_stamp_next_line(&stamp, &line)) {
        if (!epctx_str_is(line.word, "options")) continue;
        if (line.hash == given) return EPCTX_FRESH;
        epctx_fail(why, EPCTX_ERR_VERSION, "compiled with other options");
        return EPCTX_STALE;
    }
    epctx_fail(why, EPCTX_ERR_NOT_FOUND, "the build stamp has no options");
    return EPCTX_FRESH_UNKNOWN;
}

enum { DIFFERENCES_MOST = 256 }; /* are told; a hostile stamp may have millions */

/* What differs, in the order of the stamp. */
typedef struct differences {
    const char *texts[DIFFERENCES_MOST];
    size_t count; /* of all */
    epctx_arena arena;
} differences;

static void add_difference(void *user, const epctx_error *why) {
    differences *all = (differences *)user;
    const char *copy = all->count < DIFFERENCES_MOST
                           ? epctx_arena_copy(&all->arena, epctx_str_of(why->message))
                           : NULL;
    if (all->count < DIFFERENCES_MOST) all->texts[all->count] = copy != NULL ? copy : "?";
    all->count++;
}

static void put_differences(const check_work *work, const differences *all, const char *first) {
    size_t i;
    if (work->json) json_array(work->out, "differences", JSON_INLINE);
    for (i = 0; all != NULL && i < all->count && i < DIFFERENCES_MOST; i++) {
        if (work->json) {
            json_text(work->out, NULL, all->texts[i]);
        } else if (strcmp(all->texts[i], first) != 0) {
            fputs("  also: ", stdout);
            cli_put(stdout, epctx_str_of(all->texts[i]));
            putchar('\n');
        }
    }
    if (work->json) json_end(work->out);
}

/* One EP's verdict. */
static void put_fresh(const check_work *work, epctx_str ep, epctx_freshness verdict,
                      const char *why, const differences *all) {
    static const char *const words[] = {"fresh", "stale", "unknown"};
    if (work->json) {
        json_object(work->out, NULL, JSON_INLINE);
        json_str(work->out, "ep", ep);
        json_text(work->out, "fresh", words[verdict]);
        json_text(work->out, "why", why);
        put_differences(work, all, why);
        json_end(work->out);
        return;
    }
    cli_put(stdout, ep);
    printf(": %s", words[verdict]);
    if (verdict != EPCTX_FRESH) {
        fputs(": ", stdout);
        cli_put(stdout, epctx_str_of(why));
    }
    putchar('\n');
    put_differences(work, all, why);
}

static int fresh_of(const check_work *work, const epctx_model *model, epctx_str ep,
                    epctx_str stamp) {
    char source[256];
    epctx_backend backend;
    epctx_fresh_opts opts;
    epctx_error why;
    epctx_freshness verdict;
    differences all;
    memset(&all, 0, sizeof all);
    epctx_arena_init(&all.arena, NULL);
    snprintf(source, sizeof source, "%.*s", (int)ep.size, ep.data);
    memset(&opts, 0, sizeof opts);
    opts.source_path = work->source;
    opts.differs_fn = add_difference;
    opts.user = &all;
    /* What the machine's own compiler would write can be compared for the reference NPU only. */
    verdict = epctx_cache_judge(model, source, cli_own_backend(ep, &backend) ? &backend : NULL,
                                &opts, &why);
    if (verdict == EPCTX_STALE) (void)is_foreign(work, source, &why);
    if (verdict != EPCTX_STALE && work->options != NULL) {
        epctx_error other;
        epctx_freshness options;
        epctx_error_clear(&other);
        options = compare_options(work, stamp, &other);
        if (options == EPCTX_STALE || verdict == EPCTX_FRESH) {
            verdict = options;
            why = other;
        }
    }
    put_fresh(work, ep, verdict, why.message, &all);
    epctx_arena_free(&all.arena);
    return verdict == EPCTX_FRESH   ? CHECK_FITS
           : verdict == EPCTX_STALE ? CHECK_RECOMPILE
                                    : CHECK_UNKNOWN;
}

/* Nodes whose EP has no stamp: the first one stands for all. */
static bool is_unstamped(const check_work *work, const epctx_model *model) {
    epctx_walk walk;
    epctx_node_view view;
    epctx_walk_begin(&walk, model);
    while (epctx_walk_epnode(&walk, &view)) {
        const epctx_str source = epctx_view_node_attr_str(&view, "source");
        epctx_str stamp;
        if (!epctx_view_is_epnode(&view) || !cli_is_ep(source, work->ep) ||
            (source.size > 0 && epctx_model_get_stamp(model, source, &stamp)))
            continue;
        put_fresh(work, source.size > 0 ? source : epctx_str_of("(no source)"), EPCTX_FRESH_UNKNOWN,
                  "there is no build stamp of this EP", NULL);
        return true;
    }
    return false;
}

/* The stamps of all EPs: one that is stale decides, then one that cannot be judged. */
static int check_fresh(check_work *work, const epctx_model *model) {
    const size_t prefix = sizeof EPCTX_BUILD_PREFIX - 1;
    epctx_cursor it =
        epctx_view_fields(epctx_model_read(model).view, EPCTX_FIELD_MODEL_METADATA_PROPS);
    epctx_pair pair;
    size_t count = 0;
    int code = CHECK_FITS;
    if (work->json) {
        check_begin_json(work);
        json_array(work->out, "stamps", JSON_HANGING);
    }
    while (epctx_next_pair(&it, &pair)) {
        static const char many[] = "the model has more build stamps, which were not compared";
        epctx_str ep = pair.key;
        int one;
        if (ep.size < prefix || memcmp(ep.data, EPCTX_BUILD_PREFIX, prefix) != 0) continue;
        ep.data += prefix;
        ep.size -= prefix;
        if (!cli_is_ep(ep, work->ep)) continue;
        if (count++ == STAMPS_MOST) {
            put_fresh(work, ep, EPCTX_FRESH_UNKNOWN, many, NULL);
            code = code == CHECK_FITS ? CHECK_UNKNOWN : code;
            break;
        }
        one = fresh_of(work, model, ep, pair.value);
        if (one == CHECK_RECOMPILE || (one == CHECK_UNKNOWN && code == CHECK_FITS)) code = one;
    }
    if (count == 0 || (is_unstamped(work, model) && code == CHECK_FITS)) code = CHECK_UNKNOWN;
    if (work->json) {
        json_end(work->out);
        json_bool(work->out, "fresh", code == CHECK_FITS);
        info_end(&work->where);
    } else if (count == 0 && work->ep != NULL)
        explain_ep(work->ep, "build stamp");
    else if (count == 0)
        puts(is_compiled(model) ? "no build stamp" : "not compiled: there is no EPContext node");
    return code;
}

/* --profile selects its EP's entries, unless the model has none: then it only has the rules. */
static void select_ep(check_work *work, const epctx_state *state) {
    size_t i;
    if (work->ep != NULL || work->profile == NULL ||
        (work->profile->traits & EPCTX_TRAIT_ANY_EP) != 0)
        return;
    for (i = 0; i < state->compat_count; i++)
        if (cli_is_ep(state->compat[i].ep, work->profile->name)) work->ep = work->profile->name;
}

/* Only a chip is worth asking a vendor's library. */
static epctx_status read_contexts(check_work *work, const epctx_model *model, epctx_arena *arena,
                                  epctx_error *error) {
    epctx_dependency *files = NULL;
    size_t count = 0;
    OPS_TRY(epctx_model_files(model, NULL, arena, &files, &count, error));
    return binary_contexts_read(model, files, count, work->chip != NULL ? &work->asker : NULL,
                                arena, &work->contexts, error);
}

/* By the strings of EPs, or by a chip. */
static int judge(check_work *work, const epctx_model *model, epctx_arena *arena) {
    epctx_state state;
    epctx_error error;
    if (epctx_model_state(model, arena, &state, &error) != EPCTX_OK) {
        cli_fail(&error);
        return CHECK_UNKNOWN;
    }
    select_ep(work, &state);
    return work->chip != NULL ? check_chip(work, model, &state) : report(work, &state);
}

static int check_file(check_work *work) {
    epctx_arena arena;
    epctx_model model;
    epctx_error error;
    int code = CHECK_UNKNOWN;
    if (cli_open(&model, work->file, &error) != EPCTX_OK) {
        cli_fail(&error);
        return CHECK_UNKNOWN;
    }
    if ((work->fresh || work->chip != NULL) && work->ep == NULL && work->profile != NULL)
        work->ep = work->profile->name;
    epctx_arena_init(&arena, NULL);
    if (read_contexts(work, &model, &arena, &error) != EPCTX_OK)
        cli_fail(&error);
    else if (work->fresh)
        code = check_fresh(work, &model);
    else
        code = judge(work, &model, &arena);
    binary_contexts_close(&work->contexts);
    epctx_arena_free(&arena);
    epctx_model_close(&model);
    return code;
}

static int check(void *user, const char *file, bool in_folder) {
    check_work *work = (check_work *)user;
    const char *ep = work->ep;
    int code;
    (void)in_folder;
    work->file = file;
    if (work->where.several && !work->json) {
        fputs(work->told > 0 ? "\n" : "", stdout);
        cli_put(stdout, epctx_str_of(file));
        puts(":");
    }
    work->told++;
    code = check_file(work);
    work->ep = ep; /* what --profile selects depends on the model */
    return code;
}

/* The library of an EP stands for its EP. */
static void take_library(check_work *work) {
    const char *name = work->ep != NULL && strchr(work->ep, '/') != NULL
                           ? vendor_registration(epctx_str_of(work->ep))
                           : NULL;
    if (name != NULL) work->ep = name;
}

static int run(const cli_args *args) {
    check_work work;
    int code;
    memset(&work, 0, sizeof work);
    work.where.json = args->json;
    work.where.several = each_is_several(args);
    work.ep = args->ep;
    work.against = args->against;
    work.chip = args->chip;
    work.fresh = args->fresh;
    work.source = args->source;
    work.options = args->options;
    work.json = args->json;
    work.ort_code = args->ort_code;
    if (!cli_binary_asker(args, &work.asker)) return CLI_USAGE;
    take_library(&work);
    if (work.fresh ? work.against != NULL || work.ort_code
                   : work.source != NULL || work.options != NULL) {
        cli_misuse("--fresh cannot be combined with --against and --ort-code; --source and "
                   "--options require --fresh");
        return CLI_USAGE;
    }
    if (work.chip != NULL && (work.fresh || work.against != NULL)) {
        cli_misuse("--chip cannot be combined with --fresh and --against");
        return CLI_USAGE;
    }
    if (work.chip != NULL && work.chip[0] == '\0') {
        cli_misuse("--chip: the name is empty");
        return CLI_USAGE;
    }
    if (work.ort_code && work.where.several) {
        cli_misuse("--ort-code is the code of one file");
        return CLI_USAGE;
    }
    if (!cli_profile(args->profile, &work.profile)) return CLI_USAGE;
    code = each_file(args, EACH_COMPILED, CHECK_UNKNOWN, check, &work);
    info_close(&work.where, code == CHECK_FITS);
    return code;
}

const cli_command cli_check = {
    .name = "check",
    .group = CLI_JUDGE,
    .operands = "FILE...",
    .least = 1,
    .failed = CHECK_UNKNOWN,
    .summary = "report whether a compiled model fits a machine",
    .about = "Shows the compatibility strings that EPs stored in the model, and compares one\n"
             "with the string that the EP of this machine would write: --against. Without\n"
             "--against, compares only models of the reference NPU, with the NPU in this tool.\n"
             "Strings of QNN and OpenVINO are compared as those EPs do, others by values.\n"
             "With --chip, compares with the chip that you have. What each node was compiled\n"
             "for is told by its binary: Qualcomm's by the text in it and by its vendor's\n"
             "library (--qnn-system), a DLC by its directory, OpenVINO's for a CPU and the\n"
             "reference NPU's by themselves. Where the model says otherwise, the binary\n"
             "decides, and the contradiction is told. Where no binary tells,\n"
             "hardware_architecture and QNN's compatibility string do. That string holds the\n"
             "options as given, not the binary: what the EP would refuse by it does not fit,\n"
             "but that a model fits cannot be told by it alone.\n"
             "Nodes of EPs for other kinds of chips are listed and do not count.\n"
             "With --fresh, uses the build stamp that epctx stored in the model to check\n"
             "whether compiling the source again would give the same model. Also compares\n"
             "the binary, embedded or beside FILE: a model without its binary is stale, and\n"
             "so are all others of a group that shared a binary after one of them was\n"
             "compiled alone. Names each file that changed, is missing or is cut. What the\n"
             "stamp does not have, as one written by epctx 0.2 for several binaries, is never\n"
             "called fresh.\n"
             "Of a folder, checks the EPContext models in it and in folders below. Of several\n"
             "files the highest exit code is that of the command.\n",
    .more = "Exit codes:\n"
            "   0  fits (ORT's EP_SUPPORTED_OPTIMAL), or fresh\n"
            "   1  must be compiled again (EP_SUPPORTED_PREFER_RECOMPILATION), or stale\n"
            "   2  wrong usage\n"
            "   3  cannot be used (EP_UNSUPPORTED), also when a binary is surely none\n"
            "   4  nothing can be said (EP_NOT_APPLICABLE): nothing was compared, or the file\n"
            "      is unreadable\n"
            "With --ort-code the exit code is ORT's number: 0 EP_NOT_APPLICABLE, 1 optimal,\n"
            "2 recompilation preferred (and wrong usage), 3 unsupported, 4 an unreadable\n"
            "file; --json has it as \"compatibility\".\n\n"
            "Example: epctx check --fresh model_ctx.onnx\n"
            "Example: epctx check --chip SM8550 model_ctx.onnx\n",
    .run = run,
};
