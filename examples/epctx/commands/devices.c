/* epctx devices: what ONNX Runtime lists, and compatibility strings. */
#define _GNU_SOURCE
#include "ort/anyep.h"

#include <inttypes.h>
#include <string.h>

enum { LIMIT = 60, MOST_FILES = sizeof((anyep_board *)NULL)->verdicts / sizeof(anyep_verdict) };

/* x + x, then Relu, of float32[1,4]: nearly every EP takes it. */
static const unsigned char tiny_model[] = {
    0x08, 0x08, 0x3a, 0x51, 0x0a, 0x11, 0x0a, 0x01, 0x78, 0x0a, 0x01, 0x78, 0x12, 0x01, 0x74,
    0x1a, 0x01, 0x61, 0x22, 0x03, 0x41, 0x64, 0x64, 0x0a, 0x0f, 0x0a, 0x01, 0x74, 0x12, 0x01,
    0x79, 0x1a, 0x01, 0x72, 0x22, 0x04, 0x52, 0x65, 0x6c, 0x75, 0x12, 0x01, 0x67, 0x5a, 0x13,
    0x0a, 0x01, 0x78, 0x12, 0x0e, 0x0a, 0x0c, 0x08, 0x01, 0x12, 0x08, 0x0a, 0x02, 0x08, 0x01,
    0x0a, 0x02, 0x08, 0x04, 0x62, 0x13, 0x0a, 0x01, 0x79, 0x12, 0x0e, 0x0a, 0x0c, 0x08, 0x01,
    0x12, 0x08, 0x0a, 0x02, 0x08, 0x01, 0x0a, 0x02, 0x08, 0x04, 0x42, 0x02, 0x10, 0x0d,
};

typedef struct work {
    anyep_settings any;
    const char *const *files;
    size_t file_count;
    bool json, only_string;
    char folder[EPCTX_PATH_MAX];
    epctx_arena arena;
    const char *own;    /* the EP's own string, or NULL */
    char problem[5200]; /* why there is none */
    bool broken;        /* the EP ended the process that asked, or hung in it */
} work;

/* ---------------------------------------------------------------- the EP's own string */

/* It stands in what the EP compiles. */
static void find_own(work *w) {
    char source[EPCTX_PATH_MAX + 16], context[EPCTX_PATH_MAX], key[160];
    anyep_model model;
    anyep_result result;
    anyep_job job;
    epctx_model open;
    epctx_error error;
    epctx_str text;
    const cli_file file = {"tiny.onnx", tiny_model, sizeof tiny_model};
    if (cli_write_files(w->folder, &file, 1, &error) != EPCTX_OK) {
        snprintf(w->problem, sizeof w->problem, "%s", error.message);
        return;
    }
    snprintf(source, sizeof source, "%s/tiny.onnx", w->folder);
    if (!anyep_context_path(w->folder, "own", source, context, sizeof context)) return;
    memset(&job, 0, sizeof job);
    job.set = &w->any;
    job.work = ANYEP_COMPILE;
    job.folder = w->folder;
    job.optimization = job.threads = -1;
    model.source = source;
    model.output = context;
    job.models = &model;
    job.count = 1;
    anyep_do(&job, &result);
    if (result.end != ANYEP_OK) {
        snprintf(w->problem, sizeof w->problem, "%s", result.words);
        w->broken = result.end != ANYEP_REFUSED;
        if (w->broken) anyep_tell(&job, &result, w->any.eps[0].given);
    } else if (cli_open(&open, context, &error) != EPCTX_OK) {
        snprintf(w->problem, sizeof w->problem, "%s", error.message);
    } else {
        snprintf(key, sizeof key, "ep_compatibility_info.%s", result.board->eps[0].ep);
        if (epctx_model_metadata(&open, epctx_str_of(key), &text))
            w->own = epctx_arena_copy(&w->arena, text);
        else
            snprintf(w->problem, sizeof w->problem, "the EP writes no compatibility string");
        epctx_model_close(&open);
    }
    anyep_free(&result);
}

/* ---------------------------------------------------------------- report */

static void put_line(const char *word, const char *text) {
    printf("%-14s ", word);
    cli_put(stdout, epctx_str_of(text));
    putchar('\n');
}

/* "key=value\n..." a line each. */
static void put_lines(const char *word, const char *text) {
    while (*text != '\0') {
        const size_t size = strcspn(text, "\n");
        const epctx_str line = {text, size};
        printf("  %-12s ", word);
        cli_put(stdout, line);
        putchar('\n');
        text += size + (text[size] != '\0');
    }
}

static void print_device(const anyep_device *d) {
    printf("%-14s ", d->of_ep ? "device of --ep" : "device");
    cli_put(stdout, epctx_str_of(d->ep));
    fputs(d->version[0] != '\0' ? " " : "", stdout);
    cli_put(stdout, epctx_str_of(d->version));
    fputs(" (", stdout);
    cli_put(stdout, epctx_str_of(d->vendor));
    printf("), %s 0x%04" PRIx32 ":0x%04" PRIx32 " ", d->type, d->vendor_id, d->device_id);
    cli_put(stdout, epctx_str_of(d->hardware_vendor));
    putchar('\n');
    put_lines("hardware", d->hardware);
    put_lines("metadata", d->metadata);
    put_lines("option", d->options);
    if (d->problem[0] != '\0') put_lines("PROBLEM", d->problem);
}

/* OrtCompiledModelCompatibility, from -1 on */
static const char *const verdicts[] = {"no compatibility string of this EP", "not applicable",
                                       "optimal", "recompilation preferred", "unsupported"};

static const char *verdict_of(const anyep_verdict *v) {
    return v->verdict >= -1 && v->verdict <= 3 ? verdicts[v->verdict + 1] : "unknown";
}

/* Which ONNX Runtime was taken, and why. */
static void print_ort(const work *w, const anyep_board *board) {
    char reason[EPCTX_PATH_MAX + 64];
    size_t i;
    anyep_ort_reason(&w->any, reason, sizeof reason);
    put_line("ONNX Runtime", board->ort_version);
    put_lines("library", board->ort_path);
    put_lines("found by", reason);
    for (i = 0; i < w->any.passed_count; i++) put_lines("not taken", w->any.passed[i]);
}

static void print_text(const work *w, const anyep_board *board) {
    size_t i;
    print_ort(w, board);
    for (i = 0; i < board->device_count; i++) print_device(&board->devices[i]);
    if (board->more_devices > 0) printf("%-14s %zu more\n", "device", board->more_devices);
    for (i = 0; i < board->inside_count; i++) put_line("no device of", board->inside[i]);
    if (w->any.ep_count > 0) put_line("compatibility", w->own != NULL ? w->own : "not known");
    if (w->problem[0] != '\0') put_lines("PROBLEM", w->problem);
    for (i = 0; i < w->file_count; i++) {
        const anyep_verdict *v = &board->verdicts[i];
        printf("%-14s ", "model");
        cli_put(stdout, epctx_str_of(w->files[i]));
        printf(": %s", verdict_of(v));
        if (v->verdict >= 0) fputs(", ", stdout);
        cli_put(stdout, epctx_str_of(v->text));
        putchar('\n');
    }
}

/* "a=b\n..." as an object. */
static void json_pairs(json_writer *w, const char *key, const char *text) {
    json_object(w, key, JSON_INLINE);
    while (*text != '\0') {
        const size_t size = strcspn(text, "\n"), name = strcspn(text, "=");
        const epctx_str left = {text, name < size ? name : size};
        const epctx_str right = {text + (name < size ? name + 1 : size),
                                 name < size ? size - name - 1 : 0};
        json_key(w, left);
        json_str(w, NULL, right);
        text += size + (text[size] != '\0');
    }
    json_end(w);
}

static void json_device(json_writer *w, const anyep_device *d) {
    json_object(w, NULL, JSON_INLINE);
    json_text(w, "ep", d->ep);
    json_text(w, "vendor", d->vendor);
    json_text(w, "version", d->version);
    json_text(w, "type", d->type);
    json_text(w, "hardware_vendor", d->hardware_vendor);
    json_uint(w, "vendor_id", d->vendor_id);
    json_uint(w, "device_id", d->device_id);
    json_bool(w, "of_ep", d->of_ep);
    json_pairs(w, "hardware", d->hardware);
    json_pairs(w, "metadata", d->metadata);
    json_pairs(w, "options", d->options);
    json_text(w, "problem", d->problem);
    json_end(w);
}

static void print_json(const work *all, const anyep_board *board) {
    json_writer *w = cli_json_begin(stdout);
    size_t i;
    json_text(w, "onnxruntime", board->ort_version);
    json_text(w, "library", board->ort_path);
    json_text(w, "found_by", all->any.ort_from);
    json_array(w, "not_taken", JSON_INLINE);
    for (i = 0; i < all->any.passed_count; i++) json_text(w, NULL, all->any.passed[i]);
    json_end(w);
    json_array(w, "devices", JSON_HANGING);
    for (i = 0; i < board->device_count; i++) json_device(w, &board->devices[i]);
    json_end(w);
    json_array(w, "without_devices", JSON_INLINE);
    for (i = 0; i < board->inside_count; i++) json_text(w, NULL, board->inside[i]);
    json_end(w);
    json_text(w, "compatibility", all->own);
    json_text(w, "problem", all->problem[0] != '\0' ? all->problem : NULL);
    json_array(w, "models", JSON_HANGING);
    for (i = 0; i < all->file_count; i++) {
        const anyep_verdict *v = &board->verdicts[i];
        json_object(w, NULL, JSON_INLINE);
        json_text(w, "model", all->files[i]);
        json_text(w, "string", v->text);
        json_int(w, "compatibility", v->verdict);
        json_text(w, "meaning", verdict_of(v));
        json_end(w);
    }
    json_end(w);
    cli_json_end();
}

/* --compatibility: for a script. */
static int print_own(const work *w) {
    if (w->own == NULL) return cli_fail_text("%s", w->problem);
    cli_put(stdout, epctx_str_of(w->own));
    putchar('\n');
    return CLI_OK;
}

/* ---------------------------------------------------------------- the command */

static int list(work *w) {
    anyep_result result;
    anyep_job job;
    int code = CLI_OK;
    if (!anyep_find_ort(&w->any) || !anyep_folder(NULL, w->folder, sizeof w->folder))
        return CLI_FAILED;
    memset(&job, 0, sizeof job);
    job.set = &w->any;
    job.work = ANYEP_LIST;
    job.folder = w->folder;
    job.files = w->files;
    job.file_count = w->file_count;
    cli_progress_begin("devices", 0);
    anyep_do(&job, &result);
    if (result.end == ANYEP_OK && w->any.ep_count > 0) find_own(w);
    cli_progress_end();
    if (result.end != ANYEP_OK) {
        anyep_tell(&job, &result, w->any.ep_count > 0 ? w->any.eps[0].given : "devices");
        code = CLI_FAILED;
    } else if (!cli_signals_waiting()) {
        if (w->any.verbose) anyep_print_log(&job);
        if (w->only_string)
            code = print_own(w);
        else
            w->json ? print_json(w, result.board) : print_text(w, result.board);
        if (w->broken) code = CLI_FAILED;
    }
    anyep_free(&result);
    anyep_remove(w->folder);
    return code;
}

static int run(const cli_args *args) {
    static work w;
    int code = CLI_USAGE;
    memset(&w, 0, sizeof w);
    anyep_take(&w.any, args);
    w.files = args->operands;
    w.file_count = (size_t)args->count;
    w.json = args->json;
    w.only_string = args->compatibility;
    if ((w.file_count > 0 || w.only_string) && w.any.ep_count == 0) {
        cli_misuse("compatibility is a question to an EP: give it with --ep");
        return CLI_USAGE;
    }
    if (w.only_string && w.json) {
        cli_misuse("--compatibility and --json cannot be combined");
        return CLI_USAGE;
    }
    epctx_arena_init(&w.arena, NULL);
    if (anyep_read(&w.any, &w.arena, false, LIMIT)) code = list(&w);
    epctx_arena_free(&w.arena);
    return code;
}

const cli_command cli_devices = {
    .name = "devices",
    .group = CLI_LOOK,
    .operands = "[MODEL_ctx.onnx]...",
    .most = MOST_FILES,
    .summary = "list the devices that ONNX Runtime sees, with compatibility",
    .about = "Lists devices and EPs as ONNX Runtime does: with the EP's library (--ep) also\n"
             "its devices, their metadata and default options, what the EP says against the\n"
             "hardware, and the compatibility string that it writes into what it compiles. For\n"
             "EPContext models prints the EP's judgement of their strings, for one device: of\n"
             "several choose each in turn with --device.\n"
             "\n"
             "The first lines say which ONNX Runtime was taken, and why not another: that of\n"
             "--ort, of $EPCTX_ORT_LIBRARY, of the package onnxruntime of python3, of the\n"
             "loader's folders, of $EPCTX_CACHE or of the build folder in which the tool is.\n"
             "Nothing of the current folder is run. One that was named is taken or refused;\n"
             "others that are too old are passed over with a note.\n",
    .more = "Example: epctx check --against \"$(epctx devices --ep libacme_ep.so\n"
            "             --compatibility)\" a_ctx.onnx\n",
    .run = run,
};
