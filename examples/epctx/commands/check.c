/* epctx check: does a compiled model fit a machine? The answer is the exit code. */
#include "core/chip.h"
#include "core/json.h"
#include "core/options.h"
#include "facts/facts.h"
#include "ops/state.h"

#include <inttypes.h>
#include <string.h>

/* Scripts rely on them; 2 is a wrong command line. */
enum { CHECK_FITS = 0, CHECK_RECOMPILE = 1, CHECK_UNSUPPORTED = 3, CHECK_UNKNOWN = 4 };

enum { STAMPS_MOST = 100 }; /* each is compared by a walk through the model */

typedef struct check_work {
    const char *file;
    const char *ep;      /* only this EP's entry; NULL: the only one there is */
    const char *against; /* the machine's string; NULL: that of our own EP, if it is its entry */
    const epctx_profile *profile;
    const char *source;  /* the source model; NULL: where the build stamp says */
    const char *options; /* what the compiler would be asked for now, for the stamp's hash */
    const char *chip;    /* compare with this chip instead */
    bool fresh;
    bool ort_code; /* ONNX Runtime's number is the exit code */
    bool json;
    json_writer *out; /* with --json */
} check_work;

/* The layout of the EP's strings, or NULL: pairs. */
static const fact *layout_of(const epctx_profile *profile, epctx_str text) {
    size_t at = 0;
    const fact *f;
    while ((f = facts_next("compat", &at)) != NULL) {
        const char *starts = fact_get(f, "starts");
        if (fact_has(f, "profiles", epctx_str_of(profile->name)) &&
            (starts == NULL || epctx_str_starts(text, starts)))
            return f;
    }
    return NULL;
}

static void put_pair(epctx_str key, epctx_str value) {
    fputs("    ", stdout);
    cli_put(stdout, key);
    fputs(value.data != NULL ? " = " : "", stdout);
    cli_put(stdout, value);
    putchar('\n');
}

/* False: it is no object of JSON. */
static bool put_members(epctx_str text) {
    epctx_arena arena;
    const json *object, *member;
    size_t at;
    bool is_object;
    epctx_arena_init(&arena, NULL);
    object = json_read(text, &arena, &at);
    is_object = object != NULL && object->kind == JSON_OBJECT;
    for (member = is_object ? object->first : NULL; member != NULL; member = member->next)
        put_pair(member->key, member->text);
    epctx_arena_free(&arena);
    return is_object;
}

static void put_parts(const epctx_profile *profile, epctx_str text) {
    const fact *layout = layout_of(profile, text);
    if (layout != NULL &&
        epctx_compat_compare(profile, text, text, NULL) != EPCTX_COMPAT_NOT_APPLICABLE) {
        epctx_str names = epctx_str_of(fact_get(layout, "fields")), name;
        while (fact_next_word(&names, &name)) {
            const epctx_str field = epctx_str_cut(&text, *fact_get(layout, "between"));
            printf("    %-14.*s %.*s\n", (int)name.size, name.data, (int)field.size, field.data);
        }
        return;
    }
    if (put_members(text)) return;
    while (text.size > 0) {
        epctx_str value = epctx_str_cut(&text, ';');
        const epctx_str key = epctx_str_cut(&value, '=');
        put_pair(key, value);
    }
}

static void put_entry(const check_work *work, const epctx_compat_entry *entry) {
    if (work->json) {
        json_object(work->out, NULL, JSON_INLINE);
        json_str(work->out, "ep", entry->ep);
        json_str(work->out, "value", entry->value);
        json_end(work->out);
        return;
    }
    cli_put(stdout, entry->ep);
    fputs(": ", stdout);
    cli_put(stdout, entry->value);
    putchar('\n');
    put_parts(epctx_profile_of(entry->ep), entry->value);
}

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

/* As in onnxruntime_c_api.h. */
static const char *compat_name(epctx_compat compat) {
    static const char *const names[] = {"EP_NOT_APPLICABLE", "EP_SUPPORTED_OPTIMAL",
                                        "EP_SUPPORTED_PREFER_RECOMPILATION", "EP_UNSUPPORTED"};
    return names[compat];
}

static int code_of(const check_work *work, epctx_compat compat) {
    static const int codes[] = {CHECK_UNKNOWN, CHECK_FITS, CHECK_RECOMPILE, CHECK_UNSUPPORTED};
    return work->ort_code ? (int)compat : codes[compat];
}

static void begin_json(check_work *work) {
    work->out = cli_json_begin(stdout);
    json_text(work->out, "file", work->file);
}

static void json_compat(json_writer *w, epctx_compat compat) {
    json_int(w, "compatibility", (int)compat);
    json_text(w, "meaning", compat_name(compat));
}

/* `chosen` NULL: there is no entry, or it is not clear which. */
static epctx_compat verdict(const check_work *work, const epctx_compat_entry *chosen) {
    char own[256];
    const char *against = work->against;
    epctx_backend backend;
    epctx_error why;
    epctx_compat compat = EPCTX_COMPAT_NOT_APPLICABLE;
    if (chosen == NULL) return compat;
    epctx_error_clear(&why);
    if (against == NULL && cli_own_backend(chosen->ep, &backend) &&
        epctx_backend_compatibility(&backend, own, sizeof own, &why) == EPCTX_OK)
        against = own;
    if (against != NULL)
        compat = epctx_compat_compare(work->profile != NULL ? work->profile
                                                            : epctx_profile_of(chosen->ep),
                                      chosen->value, epctx_str_of(against), &why);
    else
        epctx_fail(&why, EPCTX_ERR_ARG,
                   "not compared: give the string of this machine's EP with --against, or its chip "
                   "with --chip");
    if (!work->json) printf("%s: ", compat_name(compat));
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
        begin_json(work);
        json_array(work->out, "entries", JSON_HANGING);
    }
    for (i = 0; i < state->compat_count; i++) {
        const epctx_compat_entry *entry = &state->compat[i];
        if (!cli_is_ep(entry->ep, work->ep)) continue;
        put_entry(work, entry);
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
        json_compat(work->out, compat);
        cli_json_end();
    } else if (work->against != NULL && chosen == NULL)
        puts(compat_name(compat));
    else if (count > 1)
        printf("%s: not compared: there are several entries, select one with --ep\n",
               compat_name(compat));
    return code_of(work, compat);
}

/* -- --chip: was it made for this one? -- */

enum { CHIP_SEEN = 16 };

typedef struct chip_work {
    check_work *check;
    const epctx_state *state;
    chip here;
    bool is_known;      /* nodes of an EP with chips of this kind: others do not count */
    epctx_compat worst; /* of those that could be judged */
    size_t judged, untold;
    epctx_error why; /* of the worst one, or of the first that could not be told */
    struct {
        epctx_str source, architecture;
    } seen[CHIP_SEEN]; /* the last nodes: of equal ones the first is told */
    size_t seen_count;
} chip_work;

static void take_verdict(chip_work *work, epctx_compat compat, const epctx_error *why) {
    const bool told = compat != EPCTX_COMPAT_NOT_APPLICABLE;
    if (told ? compat > work->worst : work->worst == 0 && work->untold == 0) work->why = *why;
    if (told && compat > work->worst) work->worst = compat;
    work->judged += told;
    work->untold += !told;
}

static void put_verdict(const chip_work *work, epctx_str ep, epctx_compat compat, const char *why) {
    json_writer *w = work->check->out;
    if (work->check->json) {
        json_object(w, NULL, JSON_INLINE);
        json_str(w, "ep", ep);
        json_compat(w, compat);
        json_text(w, "why", why);
        json_end(w);
        return;
    }
    cli_put(stdout, ep);
    printf(": %s: ", compat_name(compat));
    cli_put(stdout, epctx_str_of(why));
    putchar('\n');
}

/* The string of a node's EP, or NULL. */
static const epctx_compat_entry *entry_of(const epctx_state *state, epctx_str source) {
    const epctx_profile *profile = epctx_profile_of(source);
    const epctx_compat_entry *found = NULL;
    size_t i;
    for (i = 0; i < state->compat_count; i++) {
        const epctx_compat_entry *entry = &state->compat[i];
        if (epctx_str_eq(entry->ep, source)) return entry;
        if ((profile->traits & EPCTX_ANY_EP) == 0 && epctx_profile_of(entry->ep) == profile)
            found = entry;
    }
    return found;
}

/* By the EP's string, and where that tells nothing by the node's own word. */
static epctx_compat judge_node(const chip_work *work, const epctx_epnode *ep, epctx_error *why) {
    const epctx_profile *profile = epctx_profile_of(ep->source);
    const epctx_compat_entry *entry = entry_of(work->state, ep->source);
    epctx_compat compat = EPCTX_COMPAT_NOT_APPLICABLE;
    if (entry != NULL) compat = chip_fits_string(&work->here, profile, entry->value, why);
    if (compat != EPCTX_COMPAT_NOT_APPLICABLE ||
        (entry != NULL && ep->hardware_architecture.size == 0))
        return compat;
    return chip_fits_node(&work->here, profile, ep->hardware_architecture, why);
}

/* A secondary node has the binary of its EP's primary one. */
static bool is_seen(chip_work *work, const epctx_epnode *ep) {
    const size_t last = work->seen_count < CHIP_SEEN ? work->seen_count : CHIP_SEEN;
    size_t i;
    for (i = 0; i < last; i++)
        if (epctx_str_eq(work->seen[i].source, ep->source) &&
            (epctx_str_eq(work->seen[i].architecture, ep->hardware_architecture) ||
             ep->main_context != 1))
            return true;
    work->seen[work->seen_count % CHIP_SEEN].source = ep->source;
    work->seen[work->seen_count++ % CHIP_SEEN].architecture = ep->hardware_architecture;
    return false;
}

/* The next EPContext node of the chosen EP that can be read. */
static bool next_node(const chip_work *work, epctx_walk *walk, epctx_epnode *ep) {
    epctx_node_view node;
    epctx_error ignored;
    while (epctx_walk_epnode(walk, &node))
        if (epctx_node_is_epnode(&node) && epctx_epnode_read(&node, ep, &ignored) == EPCTX_OK &&
            cli_is_ep(ep->source, work->check->ep))
            return true;
    return false;
}

static bool is_of_kind(const chip_work *work, const epctx_epnode *ep) {
    return chip_is_of(&work->here, epctx_profile_of(ep->source), ep->hardware_architecture);
}

/* Each node by its EP. */
static void judge_nodes(chip_work *work, const epctx_model *model) {
    epctx_epnode ep;
    epctx_walk walk;
    epctx_walk_begin(&walk, model);
    while (!work->is_known && next_node(work, &walk, &ep)) work->is_known = is_of_kind(work, &ep);
    epctx_walk_begin(&walk, model);
    while (next_node(work, &walk, &ep)) {
        epctx_compat compat;
        epctx_error why;
        if (is_seen(work, &ep)) continue;
        if (work->is_known && !is_of_kind(work, &ep)) {
            put_verdict(work, ep.source, EPCTX_COMPAT_NOT_APPLICABLE,
                        "not judged: runs on another kind of chip (--against compares its string)");
            continue;
        }
        epctx_error_clear(&why);
        compat = judge_node(work, &ep, &why);
        take_verdict(work, compat, &why);
        put_verdict(work, ep.source, compat, why.message);
    }
}

static int judge(chip_work *work, const epctx_model *model) {
    epctx_compat compat;
    char text[160];
    size_t i;
    chip_describe(&work->here, text, sizeof text);
    if (work->check->json) {
        begin_json(work->check);
        json_text(work->check->out, "chip", text);
        json_array(work->check->out, "entries", JSON_HANGING);
    } else {
        fputs("chip ", stdout);
        cli_put(stdout, epctx_str_of(text));
        putchar('\n');
    }
    for (i = 0; i < work->state->compat_count; i++)
        if (cli_is_ep(work->state->compat[i].ep, work->check->ep))
            put_entry(work->check, &work->state->compat[i]);
    if (work->check->json) {
        json_end(work->check->out);
        json_array(work->check->out, "verdicts", JSON_HANGING);
    }
    judge_nodes(work, model);
    if (work->judged + work->untold == 0)
        epctx_fail(&work->why, EPCTX_ERR_NOT_FOUND, "no EPContext node%s",
                   work->check->ep != NULL ? " of this EP" : "");
    /* One that does not fit decides; else all must be told. */
    compat = work->worst == EPCTX_COMPAT_UNSUPPORTED || work->untold == 0
                 ? work->worst
                 : EPCTX_COMPAT_NOT_APPLICABLE;
    if (work->check->json) {
        json_end(work->check->out);
        json_compat(work->check->out, compat);
        json_text(work->check->out, "why", work->why.message);
        cli_json_end();
        return code_of(work->check, compat);
    }
    puts(compat == EPCTX_COMPAT_OPTIMAL       ? "fits"
         : compat == EPCTX_COMPAT_UNSUPPORTED ? "does not fit: compile for this chip"
         : compat == EPCTX_COMPAT_PREFER_RECOMPILATION
             ? "runs, but was not made for this chip: compile again for speed"
             : "cannot be told");
    if (work->judged + work->untold == 0) puts(work->why.message);
    if (compat != EPCTX_COMPAT_UNSUPPORTED && work->judged > 0 && work->here.is_qualcomm)
        puts("note: versions of SDK and driver were not compared (--against does), and VTCM only "
             "where\n      the model tells it");
    return code_of(work->check, compat);
}

/* -- --fresh: is it still what its source would give? -- */

/* The first context binary that the model needs and that is not there. */
static bool lacks_binary(const check_work *work, const epctx_model *model, epctx_error *why) {
    epctx_dependency *files;
    epctx_arena arena;
    epctx_error ignored;
    size_t count = 0, i;
    bool found = false;
    epctx_arena_init(&arena, NULL);
    if (epctx_model_files(model, NULL, &arena, &files, &count, &ignored) != EPCTX_OK) count = 0;
    for (i = 0; i < count && !found; i++) {
        found = files[i].use == EPCTX_USE_CONTEXT && files[i].required &&
                files[i].status == EPCTX_ERR_NOT_FOUND;
        if (!found) continue;
        epctx_error_clear(why);
        epctx_fail(why, EPCTX_ERR_NOT_FOUND, "%s: context binary: %s", work->file,
                   files[i].problem);
    }
    epctx_arena_free(&arena);
    return found;
}

/* The line "options HASH" of the stamp: is it that of the options that were given? */
static epctx_freshness compare_options(const check_work *work, epctx_str stamp, epctx_error *why) {
    const uint64_t given = epctx_hash(work->options, strlen(work->options), 0);
    epctx_stamp_line line;
    while (epctx_next_stamp_line(&stamp, &line)) {
        if (!epctx_str_is(line.word, "options")) continue;
        if (line.hash == given) return EPCTX_FRESH;
        epctx_fail(why, EPCTX_ERR_VERSION, "compiled with other options");
        return EPCTX_STALE;
    }
    epctx_fail(why, EPCTX_ERR_NOT_FOUND, "the build stamp has no options");
    return EPCTX_FRESH_UNKNOWN;
}

/* One EP's verdict. */
static void put_fresh(const check_work *work, epctx_str ep, epctx_freshness verdict,
                      const char *why) {
    static const char *const words[] = {"fresh", "stale", "unknown"};
    if (work->json) {
        json_object(work->out, NULL, JSON_INLINE);
        json_str(work->out, "ep", ep);
        json_text(work->out, "fresh", words[verdict]);
        json_text(work->out, "why", why);
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
}

static int fresh_of(const check_work *work, const epctx_model *model, epctx_str ep,
                    epctx_str stamp) {
    char source[256];
    epctx_backend backend;
    epctx_fresh_opts opts;
    epctx_error why;
    epctx_freshness verdict;
    snprintf(source, sizeof source, "%.*s", (int)ep.size, ep.data);
    memset(&opts, 0, sizeof opts);
    opts.source_path = work->source;
    /* What the machine's own compiler would write can be compared for the reference NPU only. */
    verdict = epctx_check_fresh(model, source, cli_own_backend(ep, &backend) ? &backend : NULL,
                                &opts, &why);
    if (verdict != EPCTX_STALE && lacks_binary(work, model, &why)) verdict = EPCTX_STALE;
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
    put_fresh(work, ep, verdict, why.message);
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
        const epctx_str source = epctx_node_attr_str(&view, "source");
        epctx_str stamp;
        if (!epctx_node_is_epnode(&view) || !cli_is_ep(source, work->ep) ||
            (source.size > 0 && epctx_model_get_stamp(model, source, &stamp)))
            continue;
        put_fresh(work, source.size > 0 ? source : epctx_str_of("(no source)"), EPCTX_FRESH_UNKNOWN,
                  "there is no build stamp of this EP");
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
        begin_json(work);
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
            put_fresh(work, ep, EPCTX_FRESH_UNKNOWN, many);
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
        cli_json_end();
    } else if (count == 0 && work->ep != NULL)
        explain_ep(work->ep, "build stamp");
    else if (count == 0)
        puts(is_compiled(model) ? "no build stamp" : "not compiled: there is no EPContext node");
    return code;
}

static int check_chip(check_work *work, const epctx_model *model, const epctx_state *state) {
    chip_work judged;
    memset(&judged, 0, sizeof judged);
    judged.check = work;
    judged.state = state;
    chip_read(work->chip, &judged.here);
    return judge(&judged, model);
}

/* --profile selects its EP's entries, unless the model has none: then it only has the rules. */
static void select_ep(check_work *work, const epctx_state *state) {
    size_t i;
    if (work->ep != NULL || work->profile == NULL || (work->profile->traits & EPCTX_ANY_EP) != 0)
        return;
    for (i = 0; i < state->compat_count; i++)
        if (cli_is_ep(state->compat[i].ep, work->profile->name)) work->ep = work->profile->name;
}

static int check(check_work *work) {
    epctx_state state;
    epctx_arena arena;
    epctx_model model;
    epctx_error error;
    int code;
    if (cli_open(&model, work->file, &error) != EPCTX_OK) {
        cli_fail(&error);
        return CHECK_UNKNOWN;
    }
    if ((work->fresh || work->chip != NULL) && work->ep == NULL && work->profile != NULL)
        work->ep = work->profile->name;
    if (work->fresh) {
        code = check_fresh(work, &model);
        epctx_model_close(&model);
        return code;
    }
    epctx_arena_init(&arena, NULL);
    if (epctx_model_state(&model, &arena, &state, &error) == EPCTX_OK) {
        select_ep(work, &state);
        code = work->chip != NULL ? check_chip(work, &model, &state) : report(work, &state);
    } else {
        cli_fail(&error);
        code = CHECK_UNKNOWN;
    }
    epctx_arena_free(&arena);
    epctx_model_close(&model);
    return code;
}

static int run(const cli_args *args) {
    check_work work;
    memset(&work, 0, sizeof work);
    work.file = args->operands[0];
    work.ep = args->ep;
    work.against = args->against;
    work.chip = args->chip;
    work.fresh = args->fresh;
    work.source = args->source;
    work.options = args->options;
    work.json = args->json;
    work.ort_code = args->ort_code;
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
    return cli_profile(args->profile, &work.profile) ? check(&work) : CLI_USAGE;
}

const cli_command cli_check = {
    .name = "check",
    .group = CLI_JUDGE,
    .operands = "FILE",
    .least = 1,
    .most = 1,
    .failed = CHECK_UNKNOWN,
    .summary = "report whether a compiled model fits a machine",
    .about = "Shows the compatibility strings that EPs stored in the model, and compares one\n"
             "with the string that the EP of this machine would write: --against. Without\n"
             "--against, compares only models of the reference NPU, with the NPU in this tool.\n"
             "Strings of QNN and OpenVINO are compared as those EPs do, others by values.\n"
             "With --chip, compares with the chip that you have: what each node was compiled\n"
             "for comes from its hardware_architecture and from QNN's compatibility string.\n"
             "That string holds the options as given, not the binary: what the EP would\n"
             "refuse by it does not fit, but that a model fits cannot be told by it alone.\n"
             "Nodes of EPs for other kinds of chips are listed and do not count.\n"
             "With --fresh, uses the build stamp that epctx stored in the model to check\n"
             "whether compiling the source again would give the same model. Also compares\n"
             "the binary, embedded or beside FILE: a model without its binary is stale, and\n"
             "so are all others of a group that shared a binary after one of them was\n"
             "compiled alone. What the stamp does not have, as one written by epctx 0.2 for\n"
             "several binaries, is never called fresh.\n",
    .more = "Exit codes:\n"
            "   0  fits (ORT's EP_SUPPORTED_OPTIMAL), or fresh\n"
            "   1  must be compiled again (EP_SUPPORTED_PREFER_RECOMPILATION), or stale\n"
            "   2  wrong usage\n"
            "   3  cannot be used (EP_UNSUPPORTED)\n"
            "   4  nothing can be said (EP_NOT_APPLICABLE): nothing was compared, or the file\n"
            "      is unreadable\n"
            "With --ort-code the exit code is ORT's number: 0 EP_NOT_APPLICABLE, 1 optimal,\n"
            "2 recompilation preferred (and wrong usage), 3 unsupported, 4 an unreadable\n"
            "file; --json has it as \"compatibility\".\n\n"
            "Example: epctx check --fresh model_ctx.onnx\n"
            "Example: epctx check --chip SM8550 model_ctx.onnx\n",
    .run = run,
};
