/* epctx compile: ordinary models become EPContext models of the reference NPU; several of them
 * share one binary, as with ORT's ep_weight_sharing_ctx_gen. */
#define _POSIX_C_SOURCE 200809L
#include "compile/compile.h"
#include "core/asker.h"
#include "core/output.h"
#include "epctx_npu.h"
#include "facts/facts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_MODELS = 1000 };

static const char *const phase_names[] = {"-", "generate", "load", "both"}; /* EPCTX_PHASE_... */

/* The session options of ORT, as this command knows them. */
static void list_options(void) {
    size_t at = 0;
    const fact *f;
    while ((f = facts_next("option", &at)) != NULL) {
        const char *constant = fact_get(f, "constant"), *value = fact_get(f, "default");
        const char *phase = fact_get(f, "phase");
        if (phase == NULL) continue; /* has nothing to do with compiling */
        printf("%s\t%s\t\"%s\"\t%s\t%s%s\t%s\n", f->name, fact_get(f, "type"),
               value != NULL ? value : "", strcmp(phase, "none") == 0 ? "-" : phase,
               constant != NULL ? "kOrtSessionOption" : "-", constant != NULL ? constant : "",
               fact_get(f, "text"));
    }
}

static void print_report(const epctx_gen_report *report, const epctx_backend *backend,
                         double milliseconds) {
    printf("partitions     %zu\n", report->partition_count);
    printf("nodes          %zu compiled for %s (%s), %zu left to the CPU\n", report->compiled_nodes,
           backend->source, backend->hardware_architecture, report->cpu_nodes);
    if (report->other_nodes > 0)
        printf("others         %zu EPContext nodes of other EPs, unchanged\n", report->other_nodes);
    if (report->binary_path[0] != '\0')
        compile_print_file(stdout, "binary", report->binary_path, &report->binary_size);
    else if (report->partition_count > 0)
        printf("binary         embedded, %" PRIu64 " bytes\n", report->binary_size);
    if (report->outside_count > 0)
        printf("weights        %zu stay in the source model, %" PRIu64 " bytes\n",
               report->outside_count, report->outside_size);
    if (report->initializers_path[0] != '\0')
        compile_print_file(stdout, "initializers", report->initializers_path,
                           &report->initializers_size);
    compile_print_file(stdout, "model", report->context_path, NULL);
    printf("time           %.1f ms\n", milliseconds);
}

/* -v: a line for each step. */
static void print_step(void *user, const char *work, uint64_t done, uint64_t total) {
    (void)user;
    fprintf(stderr, "%s %" PRIu64 " of %" PRIu64 "\n", work, done, total);
}

/* One model, with all that is to be said of it. */
typedef struct alone {
    const char *file;
    const compile_settings *set;
    epctx_gen_report report; /* two paths: too big for a small stack */
    epctx_backend backend;
    epctx_io_file lock;
    bool locked;
    compile_needed *needed; /* NULL: without --if-needed */
    left_nodes left;
    compile_notes notes;
    char *open_inputs;  /* NULL or "": every input has a fixed shape */
    bool lacks_shape;   /* of a node that was refused */
    bool lacks_a_value; /* other reasons, of which constants may be one */
    size_t optional;
} alone;

/* Only what nodes were refused for is worth an advice. */
static void note_refused(void *user, const epctx_node *node, const epctx_error *why) {
    alone *a = (alone *)user;
    if (strstr(why->message, "fixed shape") != NULL)
        a->lacks_shape = true;
    else
        a->lacks_a_value = true;
    if (a->set->verbose || a->set->json) left_note(&a->left, node, why);
}

static void print_json(alone *a, double milliseconds) {
    const epctx_gen_report *report = &a->report;
    json_writer *w = cli_json_begin(stdout);
    needed_json(w, a->needed);
    json_text(w, "source_model", a->file);
    json_text(w, "model", report->context_path);
    json_text(w, "binary", report->binary_path[0] != '\0' ? report->binary_path : NULL);
    json_uint(w, "binary_size", report->binary_size);
    json_uint(w, "partitions", report->partition_count);
    json_uint(w, "compiled_nodes", report->compiled_nodes);
    json_uint(w, "cpu_nodes", report->cpu_nodes);
    json_uint(w, "overridable_inputs", a->optional);
    json_uint(w, "outside_weights", report->outside_count);
    json_uint(w, "outside_bytes", report->outside_size);
    left_json(w, &a->left);
    compile_json_notes(w, "notes", &a->notes);
    json_text(w, "source", a->backend.source);
    json_text(w, "hardware_architecture", a->backend.hardware_architecture);
    json_fixed(w, "milliseconds", milliseconds, 3);
    cli_json_end();
}

static epctx_status generate(alone *a, epctx_model *model, epctx_error *error) {
    epctx_gen_opts gen = a->set->gen;
    epctx_hooks hooks;
    epctx_status status = compile_fix_dims(model, a->set, true, error);
    if (status == EPCTX_OK) status = cli_optional_inputs(model, false, &a->optional, error);
    /* From IR version 4 on such an initializer is only a default; before, it is the constant. */
    if (epctx_model_read(model).ir_version < 4) a->optional = 0;
    if (status == EPCTX_OK) status = compile_open_inputs(model, &a->open_inputs, error);
    memset(&hooks, 0, sizeof hooks);
    hooks.user = a;
    hooks.spent_fn = cli_spent;
    if (a->set->verbose) hooks.progress_fn = print_step;
    if (a->set->verbose || a->set->json || a->optional > 0 || a->open_inputs != NULL)
        hooks.refused_fn = note_refused;
    gen.hooks = &hooks;
    if (status == EPCTX_OK) status = epctx_generate(model, &a->backend, &gen, &a->report, error);
    if (status == EPCTX_ERR_NO_NODES) compile_tell_compiled(model, a->file);
    return status;
}

static epctx_status compile_one(alone *a, epctx_error *error) {
    epctx_model model;
    epctx_open_opts opts = a->set->open;
    epctx_status status = EPCTX_OK;
    /* A generation's binary has a new name: nothing is in its way. */
    if (a->needed == NULL) {
        a->locked = compile_lock(a->file, a->set, &a->backend, &a->lock);
        status = compile_check_binary(&a->file, 1, a->set, &a->backend, &a->notes, error);
    }
    if (status != EPCTX_OK) return status;
    opts.io = cli_io();
    cli_progress_begin("compile", 0);
    status = epctx_model_open_file(&model, a->file, &opts, error);
    if (status == EPCTX_OK && a->needed != NULL)
        status = epctx_generation_note(&a->needed->next, &model, error);
    if (status == EPCTX_OK) status = generate(a, &model, error);
    epctx_model_close(&model);
    cli_progress_end();
    if (status == EPCTX_OK && a->report.context_path[0] != '\0')
        status = compile_judge(&a->file, 1, a->set, &a->notes, error);
    if (status == EPCTX_OK && a->report.outside_count > 0)
        status = compile_note_sources(&a->file, 1, a->set, &a->notes, error);
    return status;
}

/* What went wrong, and what would help. */
static int fail_alone(alone *a, const epctx_error *error) {
    bool nodes = error->status == EPCTX_ERR_NO_NODES ||
                 (error->status == EPCTX_ERR_UNSUPPORTED && a->set->gen.require_all);
    if (error->status == EPCTX_ERR_EXISTS && !a->set->gen.overwrite)
        return cli_fail_cure(error, "-f replaces it");
    cli_fail(error);
    if (nodes && a->lacks_shape && a->open_inputs != NULL && a->open_inputs[0] != '\0')
        cli_fail_with_cure(a->open_inputs);
    if (nodes && a->lacks_a_value && a->optional > 0) {
        char text[160];
        snprintf(text, sizeof text,
                 "%zu input%s with an initializer that callers may override, no constant%s: epctx "
                 "init --no-inputs makes constants of them",
                 a->optional, cli_plural(a->optional), cli_plural(a->optional));
        cli_fail_with_cure(text);
    }
    if (nodes && a->set->verbose) left_print(stderr, &a->left);
    return CLI_FAILED;
}

static void tell_alone(alone *a, double milliseconds) {
    const epctx_gen_report *report = &a->report;
    if (a->set->json) {
        print_json(a, milliseconds);
        return;
    }
    if (a->needed != NULL) needed_print(a->needed);
    if (report->context_path[0] == '\0')
        puts("nothing        no node was compiled, nothing was written");
    else
        print_report(report, &a->backend, milliseconds);
    left_print(stdout, &a->left);
    if (report->cpu_nodes > 0 && a->lacks_shape && a->open_inputs[0] != '\0')
        printf("note           %s\n", a->open_inputs);
    compile_print_notes(stdout, &a->notes);
    if (report->context_path[0] != '\0' && a->optional > 0)
        printf("note           %zu input%s with an initializer that callers may override: no\n"
               "               constant%s, outside of the binary; epctx init --no-inputs makes\n"
               "               constants of them\n",
               a->optional, cli_plural(a->optional), cli_plural(a->optional));
}

/* What the build stamp has of the options: of the reference NPU's only those of the library. */
static char *stamped_options(const compile_settings *set) {
    char *text = NULL;
    size_t size = 0, i;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL) return NULL;
    fprintf(out, "embed=%d", (int)set->gen.embed);
    for (i = 0; i < set->dim_count; i++)
        fprintf(out, "\n%.*s=%" PRId64, (int)set->dims[i].name.size, set->dims[i].name.data,
                set->dims[i].value);
    if (fclose(out) == 0) return text;
    free(text);
    return NULL;
}

/* --if-needed: decides, and names what is to be made. */
static epctx_status begin_needed(alone *a, compile_needed *n, compile_settings *set,
                                 epctx_error *error) {
    static char path[EPCTX_PATH_MAX], binary[EPCTX_NAME_MAX + 8];
    epctx_status status = compile_output_path(a->file, set, path, error);
    memset(n, 0, sizeof *n);
    n->source = a->file;
    n->path = path;
    n->backend = &a->backend;
    n->gen = &set->gen;
    n->wait = set->wait;
    n->replaces = set->gen.overwrite;
    set->gen.overwrite = true; /* needed_allow has asked */
    a->needed = n;
    if (status == EPCTX_OK) status = needed_begin(n, false, error);
    if (status != EPCTX_OK || n->current) return status;
    snprintf(binary, sizeof binary, "%s.bin", n->next.stem);
    set->gen.binary = binary;
    set->gen.lock = &n->lock;
    return EPCTX_OK;
}

static epctx_status compile_if_needed(alone *a, epctx_error *error) {
    static compile_needed needed;
    compile_settings set = *a->set;
    char *options = stamped_options(&set);
    epctx_status status =
        options != NULL ? EPCTX_OK : epctx_fail(error, EPCTX_ERR_NOMEM, "out of memory");
    set.gen.build_options = options;
    a->set = &set;
    if (status == EPCTX_OK) status = begin_needed(a, &needed, &set, error);
    if (status == EPCTX_OK && !needed.current) status = compile_one(a, error);
    needed_end(&needed);
    free(options);
    return status;
}

static int compile(const char *file, const compile_settings *set) {
    static alone a;
    double start = cli_now();
    epctx_error error;
    epctx_status status;
    int code = CLI_OK;
    epctx_error_clear(&error);
    memset(&a, 0, sizeof a);
    a.file = file;
    a.set = set;
    left_begin(&a.left);
    epctx_arena_init(&a.notes.arena, NULL);
    status = cli_backend(set->arch, &a.backend, &error);
    if (status == EPCTX_OK)
        status = set->if_needed ? compile_if_needed(&a, &error) : compile_one(&a, &error);
    a.set = set;
    if (status != EPCTX_OK)
        code = fail_alone(&a, &error);
    else if (a.needed != NULL && a.needed->current)
        needed_report(a.needed, set->json);
    else
        tell_alone(&a, cli_now() - start);
    if (a.locked) compile_unlock(&a.lock);
    free(a.open_inputs);
    epctx_arena_free(&a.notes.arena);
    left_end(&a.left);
    return code;
}

/* -- the command line -- */

static bool usage(const char *text, const char *what) {
    cli_misuse("%s%s", text, what);
    cli_put_usage(stderr, &cli_compile);
    return false;
}

/* -e: only the reference NPU can be asked for, under any of its names. */
static bool read_target(const char *name) {
    const epctx_profile *npu = epctx_profile_find(epctx_str_of("npu"));
    return name == NULL || cli_profile_of(name) == npu ||
           usage("-e: this tool compiles for npu only, not for ", name);
}

/* -i: "key|value key|value" for the EP; this one knows `arch` and `direct`. */
static bool read_ep_options(compile_settings *set, epctx_arena *arena) {
    char *text = epctx_arena_copy(arena, epctx_str_of(set->args->ep_options));
    epctx_npu_opts npu;
    memset(&npu, 0, sizeof npu);
    if (text == NULL) return usage("out of memory", "");
    while (*text != '\0') {
        size_t size = strcspn(text, " ");
        char *next = text + size + (text[size] != '\0');
        text[size] = '\0';
        if (strncmp(text, "arch|", 5) == 0)
            set->arch = text + 5;
        else if (strcmp(text, "direct|0") == 0 || strcmp(text, "direct|1") == 0)
            npu.direct = text[7] == '1';
        else if (size > 0)
            return usage("-i: the NPU supports only arch|NAME and direct|0 or 1, not ", text);
        text = next;
    }
    if (npu.direct && set->if_needed)
        return usage("-i direct|1 is in no build stamp: omit --if-needed", "");
    cli_npu_opts(&npu);
    return true;
}

static bool twice(epctx_option option) {
    size_t count;
    return usage("a command-line option contradicts -C ", epctx_option_list(&count)[option].key);
}

/* A text of the command line and the same option in -C: one of them. */
static bool put_text(compile_settings *set, epctx_option option, const char *text) {
    if (text == NULL) return true;
    if (epctx_option_given(&set->options, option)) return twice(option);
    set->options.values[option] = text;
    return true;
}

/* A switch of the command line, which -C may not take back. */
static bool put_switch(compile_settings *set, epctx_option option, bool on) {
    if (!on) return true;
    if (epctx_option_given(&set->options, option) && !epctx_option_on(&set->options, option))
        return twice(option);
    set->options.values[option] = "1";
    return true;
}

/* --overwrite and -f; compile keeps no old files. */
static bool read_overwrite(compile_settings *set) {
    epctx_overwrite policy = EPCTX_OVERWRITE_FAIL;
    if (!output_policy(set->args, &policy)) return false;
    set->gen.overwrite = policy == EPCTX_OVERWRITE_REPLACE;
    return set->args->overwrite == 0 || set->gen.overwrite ||
           !epctx_option_given(&set->options, EPCTX_OPTION_OVERWRITE) ||
           !epctx_option_on(&set->options, EPCTX_OPTION_OVERWRITE) || twice(EPCTX_OPTION_OVERWRITE);
}

/* What the command line and -C ask for together. */
static bool read_gen_options(compile_settings *set, int count) {
    const epctx_gen_opts *line = &set->gen;
    bool verify = line->verify;
    if (!read_overwrite(set) ||
        !put_text(set, EPCTX_OPTION_CONTEXT_FILE_PATH, line->context_file_path) ||
        !put_text(set, EPCTX_OPTION_CONTEXT_NODE_NAME_PREFIX, line->name_prefix) ||
        !put_text(set, EPCTX_OPTION_EXTERNAL_INITIALIZERS_FILE, line->initializers_file_name) ||
        !put_switch(set, EPCTX_OPTION_CONTEXT_EMBED_MODE, line->embed) ||
        !put_switch(set, EPCTX_OPTION_OVERWRITE, line->overwrite) ||
        !put_switch(set, EPCTX_OPTION_DISABLE_CPU_FALLBACK, line->require_all) ||
        !put_switch(set, EPCTX_OPTION_WEIGHTLESS, set->weightless) ||
        !put_switch(set, EPCTX_OPTION_SHARE_EP_CONTEXTS, count > 1))
        return false;
    set->gen = epctx_options_to_gen(&set->options);
    set->gen.verify = verify;
    set->share = epctx_option_on(&set->options, EPCTX_OPTION_SHARE_EP_CONTEXTS);
    if (epctx_option_given(&set->options, EPCTX_OPTION_EXTERNAL_INITIALIZERS_FOLDER))
        set->open.external_folder =
            epctx_option_text(&set->options, EPCTX_OPTION_EXTERNAL_INITIALIZERS_FOLDER);
    set->open.path_flags = cli_path_flags();
    return true;
}

/* A library passes on options of others; here they would have no effect. */
static bool known_options(const char *list) {
    size_t count, i, size;
    const epctx_option_info *all = epctx_option_list(&count);
    for (; *list != '\0'; list += size) {
        size_t key = strcspn(list, "| \t\r\n");
        size = list[key] == '|' ? strcspn(list, " \t\r\n") : key + (list[key] != '\0');
        for (i = 0; i < count; i++)
            if (strlen(all[i].key) == key && memcmp(all[i].key, list, key) == 0) break;
        if (i < count || list[key] != '|') continue;
        cli_misuse("-C: '%.*s' is not an option of this command; the options are", (int)key, list);
        for (i = 0; i < count; i++) fprintf(stderr, "  %s\n", all[i].key);
        return false;
    }
    return true;
}

/* An option of another phase would have no effect. */
static bool for_generation(size_t option) {
    size_t count;
    const epctx_option_info *info = &epctx_option_list(&count)[option];
    if ((info->phases & EPCTX_PHASE_GENERATE) != 0) return true;
    cli_misuse("-C: %s has no effect: this command only generates, and the option "
               "applies to the phase %s",
               info->key, phase_names[info->phases]);
    return false;
}

/* -C: session options of ORT. */
static bool read_session_options(compile_settings *set, int count) {
    const epctx_options *o = &set->options;
    epctx_error error;
    size_t option;
    const char *given = set->args->session_options;
    if (given != NULL && epctx_options_set_list(&set->options, given, &error) != EPCTX_OK)
        return usage("-C: ", error.message);
    if (given != NULL && !known_options(given)) return false;
    for (option = 0; option < EPCTX_OPTION_COUNT; option++)
        if (epctx_option_given(o, (epctx_option)option) && !for_generation(option)) return false;
    if (epctx_option_given(o, EPCTX_OPTION_CONTEXT_ENABLE) &&
        !epctx_option_on(o, EPCTX_OPTION_CONTEXT_ENABLE))
        return usage("-C: this command always generates: omit ep.context_enable", "");
    if (!read_gen_options(set, count)) return false;
    if (set->share && set->gen.embed)
        return usage("models that share a binary cannot embed it: omit --embed", "");
    if (count > 1 && set->gen.context_file_path != NULL)
        return usage("several models are always named MODEL_ctx.onnx: omit -o", "");
    return true;
}

static bool exists(const char *path) {
    FILE *file = fopen(path, "rb");
    if (file != NULL) fclose(file);
    return file != NULL;
}

/* Operands are models, or as in ORT's tool lists of models with commas between. */
static bool read_models(const char *const *operands, int count, epctx_arena *arena,
                        const char **files, int *found) {
    int i;
    *found = 0;
    for (i = 0; i < count; i++) {
        char *text = epctx_arena_copy(arena, epctx_str_of(operands[i]));
        bool list = text != NULL && strchr(text, ',') != NULL && !exists(text);
        while (text != NULL) {
            char *comma = list ? strchr(text, ',') : NULL;
            if (comma != NULL) *comma = '\0';
            if (*found == MOST_MODELS) return usage("too many models: ", text);
            if (text[0] == '\0') return usage("empty name in the list of models: ", operands[i]);
            files[(*found)++] = text;
            text = comma != NULL ? comma + 1 : NULL;
        }
    }
    return true;
}

/* -- any EP, by ONNX Runtime -- */

/* "K|V K|V" of ORT's tool, for -i and -C. */
static bool read_bars(const char *option, const char *list, anyep_settings *any, const char ***to,
                      epctx_arena *arena) {
    char *text = list != NULL ? epctx_arena_copy(arena, epctx_str_of(list)) : NULL;
    char *rest = NULL;
    for (text = text != NULL ? strtok_r(text, " ", &rest) : NULL; text != NULL;
         text = strtok_r(NULL, " ", &rest)) {
        char *bar = strchr(text, '|');
        if (bar == NULL || bar == text) {
            cli_misuse("%s: '%s' is not KEY|VALUE", option, text);
            return false;
        }
        *bar = '\0';
        if (to == &any->session && !anyep_is_option(option, text)) return false;
        if (to != &any->session) anyep_judge_ep_option(any, &any->eps[0], option, text);
        if (!anyep_add(any, to, text, bar + 1)) return false;
    }
    return true;
}

/* One model, all of whose files are generations. */
static bool fits_needed(compile_settings *set, int count) {
    if (!set->if_needed)
        return set->wait < 0 || usage("--wait has no effect without --if-needed", "");
    /* One that is current could not stay: all that share a binary are replaced with it. */
    if (count > 1 && !set->alone)
        return usage(
            "--if-needed is for one model, or several with --no-share: models that share a "
            "binary are replaced together, so none of them could stay as it is",
            "");
    if (set->gen.initializers_file_name != NULL)
        return usage("--if-needed keeps initializers inside: omit --initializers", "");
    return true;
}

/* What the reference NPU has and ORT's way has not, or the other way round. */
static bool fits_ort(const compile_settings *set, int count) {
    if (set->args->target != NULL)
        return usage("-e is for the reference NPU: omit it beside --ep", "");
    if (set->arch != NULL) return usage("--arch is for the reference NPU: use --ep-opt", "");
    if (count > 1 && set->gen.context_file_path != NULL)
        return usage("several models are always named MODEL_ctx.onnx: omit -o", "");
    if (count > 1 && !set->alone && set->gen.embed)
        return usage("models that share a binary cannot embed it: omit --embed, or use --no-share",
                     "");
    if (count > 1 && set->alone && (set->json || set->gen.initializers_file_name != NULL))
        return usage("--no-share with --json or --initializers needs exactly one model", "");
    if (set->no_load && set->gen.verify) return usage("--verify loads: omit it or --no-load", "");
    return !set->json || !set->dry_run || usage("--json has no effect with --dry-run", "");
}

/* The value that the user gave an option of the EP, or NULL. */
static const char *given_value(const anyep_ep *ep, epctx_str key) {
    size_t i;
    for (i = 0; ep->options != NULL && ep->options[i] != NULL; i += 2)
        if (epctx_str_is(key, ep->options[i])) return ep->options[i + 1];
    return NULL;
}

/* --chip by the EP's own options. One that the user gave as well must say the same: which of the
 * two he means is his to decide. */
static bool add_chip_options(anyep_settings *any, const chip *here, epctx_arena *arena) {
    anyep_ep *ep = &any->eps[0];
    const char *name = ep->registration != NULL ? ep->registration : ep->name;
    chip_option options[4];
    size_t count, i;
    if (name == NULL) name = ep->given;
    count = chip_options_of(here, epctx_profile_of(epctx_str_of(name))->name, options,
                            sizeof options / sizeof options[0]);
    if (count == 0)
        return usage("--chip: which options choose a chip is not known of this EP, give them with "
                     "--ep-opt: ",
                     name);
    for (i = 0; i < count; i++) {
        const char *given = given_value(ep, options[i].key);
        const char *key = epctx_arena_copy(arena, options[i].key);
        const char *value = epctx_arena_copy(arena, epctx_str_of(options[i].value));
        if (key == NULL || value == NULL) return usage("out of memory", "");
        if (given != NULL && strcmp(given, value) != 0) {
            cli_misuse("--chip %s needs the EP option %s=%s, but %s=%s was given: omit one of them",
                       here->text, key, value, key, given);
            return false;
        }
        if (!anyep_add(any, &ep->options, key, value)) return false;
    }
    return true;
}

/* --chip: one of Qualcomm's that is known. */
static bool read_chip(compile_settings *set, anyep_settings *any, chip *here, epctx_arena *arena) {
    char nearest[96];
    if (set->args->chip == NULL) return true;
    chip_read(set->args->chip, here);
    if (!here->is_qualcomm) {
        chip_nearest(here->text, nearest, sizeof nearest);
        cli_misuse(
            "--chip: '%.60s' is no chip that is known%s%s; 'epctx profiles --chips' lists them",
            here->text, nearest[0] != '\0' ? "; near are " : "", nearest);
        return false;
    }
    if (here->qualcomm.soc_model == 0)
        return usage("--chip: an architecture is not enough to compile for, give a chip of "
                     "'epctx profiles --chips': not ",
                     here->text);
    set->chip = here;
    return add_chip_options(any, here, arena);
}

/* A library as the user named it, if that is a path. */
static const char *library_of(const char *text, bool named, epctx_arena *arena) {
    epctx_file_info info;
    epctx_str path = epctx_str_of(text);
    const epctx_io *io = epctx_io_files();
    const char *colon = named && text != NULL ? strrchr(text, ':') : NULL;
    if (text == NULL || io->stat_fn(io->user, text, &info, NULL) == EPCTX_OK) return text;
    if (colon != NULL) path.size = (size_t)(colon - text);
    text = epctx_arena_copy(arena, path);
    return text != NULL && io->stat_fn(io->user, text, &info, NULL) == EPCTX_OK ? text : NULL;
}

/* `any` NULL: the reference NPU. A name that --depfile cannot have is told before the work. */
static int compile_all(const char *const *files, int count, const compile_settings *set,
                       const anyep_settings *any, const char *const *libraries) {
    char *rules = NULL;
    int code;
    if (set->depfile != NULL && !depfile_make(files, count, set, libraries, &rules))
        return CLI_FAILED;
    code = any != NULL    ? compile_ort(files, count, set, any)
           : set->dry_run ? compile_plan(files, count, set)
           : set->share   ? compile_group(files, count, set)
                          : compile(files[0], set);
    if (code == CLI_OK && rules != NULL && !set->dry_run) code = depfile_write(set->depfile, rules);
    free(rules);
    return code;
}

static int run_ort(compile_settings *set, anyep_settings *any, const char *const *files, int count,
                   epctx_arena *arena) {
    enum { LIMIT = 3600 };
    const cli_args *args = set->args;
    const char *libraries[3] = {NULL, NULL, NULL};
    const char *named = any->ort != NULL ? any->ort : getenv("EPCTX_ORT_LIBRARY");
    epctx_overwrite policy = EPCTX_OVERWRITE_FAIL;
    static binary_asker asker;
    static chip here;
    size_t number = 0;
    if (!anyep_read(any, arena, true, LIMIT) || !fits_ort(set, count) ||
        !read_bars("-i", args->ep_options, any, &any->eps[0].options, arena) ||
        !read_bars("-C", args->session_options, any, &any->session, arena) ||
        !read_chip(set, any, &here, arena) || !cli_binary_asker(args, &asker) ||
        !output_policy(args, &policy) ||
        (set->gen.name_prefix != NULL &&
         !anyep_add(any, &any->session, "ep.context_node_name_prefix", set->gen.name_prefix)))
        return CLI_USAGE;
    set->gen.overwrite = policy == EPCTX_OVERWRITE_REPLACE;
    set->asker = &asker;
    if (!fits_needed(set, count)) return CLI_USAGE;
    if (!anyep_check_dims(any, files, (size_t)count) || !anyep_find_ort(any)) return CLI_FAILED;
    libraries[number] = library_of(any->eps[0].given, true, arena);
    if (libraries[number] != NULL) number++;
    /* As the user wrote it, or as it was found. */
    if (named == NULL || named[0] == '\0') named = any->ort;
    libraries[number] = library_of(named, false, arena);
    return compile_all(files, count, set, any, libraries);
}

static int run_npu(compile_settings *set, const char *const *files, int count, epctx_arena *arena) {
    const cli_args *args = set->args;
    const char *no_library = NULL;
    if (args->optimization != 0 || args->no_share || args->no_load || args->by_session) {
        usage("--optimization, --no-share, --no-load and --by-session need --ort and --ep", "");
        return CLI_USAGE;
    }
    if (args->chip != NULL || args->qnn_system != NULL) {
        usage("--chip and --qnn-system need --ep: the reference NPU has --arch", "");
        return CLI_USAGE;
    }
    if (!read_target(args->target) || !compile_read_dims(set, arena) ||
        !read_ep_options(set, arena) || !read_session_options(set, count) ||
        !fits_needed(set, count))
        return CLI_USAGE;
    if (set->if_needed && (set->share || set->dry_run)) {
        usage("--if-needed needs exactly one model, without --dry-run", "");
        return CLI_USAGE;
    }
    if (set->json && (set->share || set->dry_run)) {
        usage("--json needs exactly one model, without --dry-run", "");
        return CLI_USAGE;
    }
    return compile_all(files, count, set, NULL, &no_library);
}

static void take(compile_settings *set, const cli_args *args, epctx_arena *arena) {
    static const int levels[] = {-1, 0, 1, 2, 3, 99}; /* of the table's words; -1: not given */
    memset(set, 0, sizeof *set);
    epctx_options_init(&set->options, arena);
    set->args = args;
    set->gen.context_file_path = args->output;
    set->gen.embed = args->embed;
    set->gen.name_prefix = args->prefix;
    set->gen.require_all = args->require_all;
    set->gen.verify = args->verify;
    set->gen.initializers_file_name = args->initializers;
    set->weightless = args->weightless;
    set->arch = args->arch;
    set->verbose = args->verbose;
    set->depfile = args->depfile;
    set->dry_run = args->dry_run;
    set->json = args->json;
    set->optimization = levels[args->optimization];
    set->alone = args->no_share;
    set->if_needed = args->if_needed;
    set->wait = args->wait.given ? (double)args->wait.value : -1;
    set->no_load = args->no_load;
    set->by_session = args->by_session;
}

static int run(const cli_args *args) {
    static const char *files[MOST_MODELS];
    compile_settings set;
    anyep_settings any;
    epctx_arena arena;
    int count, code = CLI_USAGE;
    if (args->alone && (args->count > 0 || args->json)) {
        cli_misuse("--options takes no models, and prints no JSON");
        return CLI_USAGE;
    }
    if (args->alone) {
        list_options();
        return CLI_OK;
    }
    epctx_arena_init(&arena, NULL);
    take(&set, args, &arena);
    anyep_take(&any, args);
    if (read_models(args->operands, args->count, &arena, files, &count))
        code = anyep_asked(&any) ? run_ort(&set, &any, files, count, &arena)
                                 : run_npu(&set, files, count, &arena);
    epctx_arena_free(&arena);
    return code;
}

const cli_command cli_compile = {
    .name = "compile",
    .group = CLI_MAKE,
    .operands = "MODEL...",
    .least = 1,
    .most = MOST_MODELS,
    .summary = "compile models to EPContext models for the reference NPU, or any EP",
    .about = "Replaces the nodes that the reference NPU supports with EPContext nodes.\n"
             "MODEL.onnx becomes MODEL_ctx.onnx, with the compiled code in MODEL_npu.bin\n"
             "beside it. All other nodes stay ordinary ONNX nodes; the rest of the model does\n"
             "not change.\n"
             "Several models (also as a list a.onnx,b.onnx) share one binary, named after the\n"
             "first: N models give N + 1 files, all or none. This corresponds to ORT's\n"
             "ep_weight_sharing_ctx_gen and accepts its options -e, -i, -C and -v. What\n"
             "another model needs, in the folder or in the two above, is never replaced:\n"
             "always compile all models that share a binary together.\n"
             "\n"
             "With --ep, the EP in LIBRARY compiles instead, through ONNX Runtime's compile\n"
             "API. Several models share a binary if the EP can (ep.share_ep_contexts). The\n"
             "work is done in a process of its own and in a temporary folder beside the\n"
             "results: an EP that fails, crashes or hangs leaves nothing behind. The options,\n"
             "without folders and secrets, and the versions of ONNX Runtime, EP and driver are\n"
             "in the build stamp, epctx.build.EP: epctx info shows what loading needs of them.\n"
             "With --chip, the EP compiles for that chip of Qualcomm: epctx sets its options\n"
             "(soc_model, htp_arch), and refuses a result whose binary is for another one. An\n"
             "option of --ep-opt that contradicts is refused, too.\n"
             "Warnings of the EP follow the report. All options but --arch and -e apply; -i\n"
             "and -C are lists for the EP and the session.\n"
             "\n"
             "With --if-needed the EPContext model that is there stays if compiling would give\n"
             "the same: source, data files, options and, with --ep, libraries, ONNX Runtime\n"
             "and machine are those of its build stamp, and no file is damaged. Else it is\n"
             "replaced, and the reason told; what is no model that this EP made from this\n"
             "source is replaced only with -f. Its files are named MODEL_ctx_genN and never\n"
             "change; those of the last three results stay. While another process compiles the\n"
             "same model, this one waits for its result; --wait ends that, and uses the older\n"
             "result if there is one whose files are whole.\n",
    .more = "Example: epctx compile --dim batch=1 -v model.onnx\n"
            "Example: epctx compile --ep libacme_ep.so model.onnx\n"
            "Example: epctx compile --ep libacme_ep.so --chip 69 model.onnx\n"
            "Example: epctx compile --if-needed --ep libacme_ep.so model.onnx\n",
    .run = run,
};
