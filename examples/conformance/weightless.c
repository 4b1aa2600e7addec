/* weightless.c - ep.enable_weightless: the context has no weights. They are inputs of the
 * EPContext node, or stay in the source model, which the application may have moved. */
#define _GNU_SOURCE
#include "conformance.h"

enum { SINCE = 29, WEIGHT = 256 }; /* bytes: smaller ones may be in the context */

static const char *const mode[] = {"ep.enable_weightless", "1", NULL};

/* src/m.onnx, and ref/ with the same. */
static bool prepare(trial *t, model_kind kind) {
    if (ort_version < SINCE)
        return give_up(t, "weightless mode came with ONNX Runtime 1.%d", SINCE);
    remove_tree("src");
    remove_tree("ref");
    remove_tree("out");
    make_folder("src");
    make_folder("ref");
    make_folder("out");
    return (make_model(t, kind, in_folder(t, "src/m.onnx")) &&
            make_model(t, kind, in_folder(t, "ref/m.onnx"))) ||
           give_up(t, "%s", ort_text);
}

/* ONNX Runtime refuses it for EPs that say so, and leaves a note of those that cannot say it. */
static bool is_supported(trial *t) {
    static const char older[] = "predates GetWeightlessSupport";
    ort_spec spec = spec_of(t, in_folder(t, "src/m.onnx"));
    bool ok;
    spec.config = mode;
    spec.tell = true;
    ort_log_clear();
    ort_log_also = older;
    ok = session_opens(&spec);
    ort_log_also = NULL;
    if (strstr(ort_log, older) || strstr(ort_text, older) ||
        (!ok &&
         (ort_code == ORT_NOT_IMPLEMENTED || strstr(ort_text, "does not support weightless mode"))))
        return give_up(t, "the EP does not support weightless mode");
    return true;
}

/* ----------------------------------------------------------- the EP compiles */

static void compiled_now(trial *t) {
    static const model_kind kinds[] = {MODEL_WEIGHTS, MODEL_WEXT};
    ort_spec spec;
    size_t i;
    if (!open_ep(t)) {
        give_up(t, "%s", ort_text);
        return;
    }
    for (i = 0; i < 2; i++) {
        judging(t, "API-013", "a session with ep.enable_weightless=1");
        if (!prepare(t, kinds[i]) || !is_supported(t)) return;
        spec = spec_of(t, in_folder(t, "src/m.onnx"));
        spec.config = mode;
        judge_load(t, "API-013", &spec, "a session with ep.enable_weightless=1");
    }
}

/* -------------------------------------------------------------- generating */

static void set_mode(OrtModelCompilationOptions *options, void *user) {
    (void)user;
    ort_ok(ort_compile->ModelCompilationOptions_SetWeightlessEnabled(options, true));
}

/* out/m_ctx.onnx, by session options or by the compile API. */
static bool generate_weightless(trial *t, bool by_options) {
    const bool embed = !t->board->ep.files;
    const char *const more[] = {"ep.enable_weightless",
                                "1",
                                "ep.context_file_path",
                                in_folder(t, "out/m_ctx.onnx"),
                                "ep.context_embed_mode",
                                embed ? "1" : "0",
                                NULL};
    ort_spec spec = spec_of(t, in_folder(t, "src/m.onnx"));
    ort_output to;
    if (by_options) return generate_by_options(t, spec.path, more);
    memset(&to, 0, sizeof to);
    to.path = in_folder(t, "out/m_ctx.onnx");
    to.embed = embed;
    to.more = set_mode;
    return ort_compile_model(&spec, &to);
}

static bool has_bytes(epctx_str whole, const epctx_tensor *part) {
    return part->size >= WEIGHT && memmem(whole.data, whole.size, part->data, WEIGHT) != NULL;
}

/* Whether a context has the first bytes of one of the source's weights. */
static bool has_weights(trial *t, epctx_str context) {
    epctx_model model;
    epctx_error error;
    epctx_tensor_view view;
    epctx_tensor tensor;
    epctx_cursor it;
    bool found = false;
    epctx_error_clear(&error);
    if (epctx_model_open_file(&model, in_folder(t, "src/m.onnx"), NULL, &error) != EPCTX_OK)
        return false;
    it = epctx_view_graph_initializers(epctx_model_graph(&model));
    while (!found && epctx_next_tensor(&it, &view))
        found = epctx_model_load_tensor(&model, view.view, NULL, &tensor, &error) == EPCTX_OK &&
                has_bytes(context, &tensor);
    epctx_model_close(&model);
    return found;
}

static void judge_contexts(trial *t, const char *how) {
    ort_contexts c;
    size_t i;
    if (ort_read_contexts("out/m_ctx.onnx", &c)) {
        for (i = 0; i < c.count; i++) {
            epctx_str context = c.list[i].ep_cache_context;
            uint8_t *file = NULL;
            char path[PATH_MAX];
            if (c.list[i].main_context != 1) continue;
            if (c.list[i].embed_mode == 0) {
                snprintf(path, sizeof path, "out/%.*s", STR(context));
                context.data = (const char *)(file = read_file(path, &context.size));
            }
            judge(t, "API-011", context.data && !has_weights(t, context),
                  "%s: the context of %zu bytes has the bytes of a weight", how, context.size);
            free(file);
        }
    }
    epctx_model_close(&c.model);
}

/* ------------------------------------------------------------------ loading */

/* src/ with all that is in it. */
static void put_source(const char *folder) {
    char path[PATH_MAX];
    make_folder(folder);
    snprintf(path, sizeof path, "%s/m.onnx", folder);
    copy_file("src/m.onnx", path);
    if (!file_exists("src/data/weights.bin")) return;
    snprintf(path, sizeof path, "%s/data", folder);
    make_folder(path);
    snprintf(path, sizeof path, "%s/data/weights.bin", folder);
    copy_file("src/data/weights.bin", path);
}

typedef struct bytes {
    uint8_t *data;
    size_t size;
} bytes;

static void give_source(OrtSessionOptions *options, void *user) {
    const bytes *source = (const bytes *)user;
    ort_ok(ort->SessionOptionsSetWeightlessSourceModelBuffer(options, source->data, source->size));
}

static void judge_buffer(trial *t, const char *config[]) {
    ort_spec spec = spec_of(t, in_folder(t, "out/m_ctx.onnx"));
    bytes source;
    source.data = read_file("away/m.onnx", &source.size);
    spec.more = give_source;
    spec.user = &source;
    judge_load(t, "API-015", &spec,
               "a weightless context model, its source in the application's buffer");
    spec.config = config;
    config[1] = "/nowhere/m.onnx";
    if (!runs_as(&spec, in_folder(t, "ref/m.onnx")))
        remark(t, "API-015",
               "with ep.context_source_model_path=/nowhere/m.onnx as well, which the buffer should "
               "go before: %s",
               t->answer);
    free(source.data);
}

/* What needs no source is not asked for one. */
static void judge_moved(trial *t, bool external) {
    const char *config[] = {"ep.context_source_model_path", in_folder(t, "away/m.onnx"), NULL};
    ort_spec spec = spec_of(t, in_folder(t, "out/m_ctx.onnx"));
    fate f;
    put_source("away");
    remove_tree("src");
    remove("out/m.onnx");
    remove_tree("out/data");
    judging(t, "API-014", "a weightless context model without its source");
    f = fate_of(&spec, in_folder(t, "ref/m.onnx"));
    if (!judge(t, "API-014", f != FATE_WRONG,
               "a weightless context model without its source: expected the right outputs or an "
               "error, found %s",
               t->answer))
        return;
    spec.config = config;
    judge_load(t, "API-014", &spec,
               "a weightless context model, its source named by ep.context_source_model_path");
    if (f == FATE_RIGHT)
        does_not_apply(t, "API-015", "the context model has the weights itself");
    else if (!external)
        judge_buffer(t, config);
}

static void judge_generated(trial *t, model_kind kind, bool by_options) {
    char how[80];
    ort_spec spec;
    if (!prepare(t, kind)) return;
    snprintf(how, sizeof how, "'%s', generated %s", model_names[kind],
             by_options ? "by ep.enable_weightless=1" : "by SetWeightlessEnabled");
    judging(t, "API-011", "%s", how);
    if (!judge(t, "API-011 API-012 API-014 API-015", generate_weightless(t, by_options),
               "%s: expected success, found %s", how, t->answer))
        return;
    judge_contexts(t, how);
    put_source("out"); /* the node's onnx_model_filename has no folder */
    spec = strict_spec(t, in_folder(t, "out/m_ctx.onnx"));
    judge_load(t, "API-012", &spec, how);
    judge_moved(t, kind == MODEL_WEXT);
}

static void generated(trial *t) {
    int i;
    if (!open_ep(t)) {
        give_up(t, "%s", ort_text);
        return;
    }
    judging(t, "API-011", "a session with ep.enable_weightless=1");
    if (!prepare(t, MODEL_WEIGHTS) || !is_supported(t)) return;
    for (i = 0; i < 4; i++) judge_generated(t, i < 2 ? MODEL_WEIGHTS : MODEL_WEXT, i % 2 == 0);
}

enum { NEEDS = NEEDS_DEVICE | NEEDS_RUNS | NEEDS_CLAIM };

const experiment weightless_experiments[] = {
    {"weightless, compiled", compiled_now, NEEDS, "API-013"},
    {"weightless, generated", generated, NEEDS | NEEDS_CONTEXTS, "API-011 API-012 API-014 API-015"},
    {NULL, NULL, 0, NULL},
};
