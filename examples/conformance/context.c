/* context.c - context models: generated both ways, read, loaded from files and from memory. */
#define _GNU_SOURCE
#include "conformance.h"

#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* -------------------------------------------------------------------- nodes */

static bool has_folder(epctx_str text) {
    size_t i;
    for (i = 0; i < text.size; i++)
        if (text.data[i] == '/' || text.data[i] == '\\') return true;
    return false;
}

/* ORT writes the schema's defaults, so an attribute may be there though the EP did not set it. */
static void check_node(trial *t, const epctx_epnode *node, const char *folder) {
    const epctx_str texts[] = {node->ep_sdk_version,
                               node->onnx_model_filename,
                               node->hardware_architecture,
                               node->partition_name,
                               node->source,
                               node->notes};
    static const char *const ids[] = {"EPC-021", "EPC-022", "EPC-023",
                                      "EPC-024", "EPC-025", "EPC-029"};
    size_t i;
    for (i = 0; i < 6; i++) {
        judge(t, ids[i],
              texts[i].size == 0 || !memmem(texts[i].data, texts[i].size, folder, strlen(folder)),
              "'%.*s' names a folder of the machine that generated it", STR(texts[i]));
    }
    judge(t, "EPC-022", !has_folder(node->onnx_model_filename),
          "onnx_model_filename is '%.*s', expected a name without a folder",
          STR(node->onnx_model_filename));
    judge(t, "EPC-030", node->max_size >= 0, "max_size is negative");
    judge(t, "EPC-025 EPC-026", node->source.size > 0,
          "source is absent or empty: other EPs cannot tell whose node it is");
    if (node->source.size && !epctx_str_is(node->source, t->board->ep.name)) {
        remark(t, "EPC-026", "source is '%.*s', the EP is called '%s'", STR(node->source),
               t->board->ep.name);
    }
}

static void check_path(trial *t, epctx_str path) {
    judge(t, "EPC-032 EPC-009", path.size > 0,
          "a node with main_context 1 without ep_cache_context");
    judge(t, "EPC-078 EPC-017 EPC-019",
          path.size > 0 && path.data[0] != '/' && path.data[0] != '\\' &&
              !memmem(path.data, path.size, ":", 1),
          "ep_cache_context is '%.*s', expected a relative path", STR(path));
    judge(t, "EPC-019 EPC-078", !memmem(path.data, path.size, "..", 2),
          "ep_cache_context is '%.*s': it leaves the folder", STR(path));
}

/* [model]_[ep].bin: [ep] is the EP's choice. */
static void check_binary_name(trial *t, epctx_str path, const char *stem, const char *ids) {
    const char *slash = (const char *)memrchr(path.data, '/', path.size);
    const char *name = slash ? slash + 1 : path.data;
    const size_t length = path.size - (size_t)(name - path.data), stem_length = strlen(stem);
    if (length > stem_length + 5 && memcmp(name, stem, stem_length) == 0 &&
        name[stem_length] == '_' && memcmp(name + length - 4, ".bin", 4) == 0)
        holds(t, ids);
    else
        remark(t, ids, "the binary is called '%.*s', the document says %s_[ep].bin", STR(path),
               stem);
}

static void check_files(trial *t, const ort_contexts *c) {
    char names[64][256];
    const size_t count = list_files("out", names, 64);
    size_t i, k;
    for (i = 0; i < count; i++) {
        bool named = strcmp(names[i], "m_ctx.onnx") == 0;
        for (k = 0; k < c->count && !named; k++)
            named = epctx_str_is(c->list[k].ep_cache_context, names[i]);
        if (named) continue;
        remark(t, "EPC-086", "out/%.150s is named by no node: who copies the model must know of it",
               names[i]);
    }
    for (k = 0; k < c->count; k++) {
        char path[PATH_MAX];
        if (c->list[k].main_context != 1) continue;
        snprintf(path, sizeof path, "out/%.*s", STR(c->list[k].ep_cache_context));
        judge(t, "EPC-076 EPC-077 EPC-068 EPC-087", file_exists(path),
              "the node names '%.*s', which is not in the folder of the context model",
              STR(c->list[k].ep_cache_context));
    }
}

static bool only_source_left(void) {
    char names[16][256];
    return list_files("src", names, 16) == 1;
}

/* Wherever the context is. */
static void generated_nodes(trial *t) {
    ort_contexts c;
    size_t i;
    if (!prepare_context(t, MODEL_CHAIN, !t->board->ep.files)) return;
    if (!judge(t, "EPC-005 EPC-013 EPC-033 EPC-034", ort_read_contexts("out/m_ctx.onnx", &c), "%s",
               ort_text)) {
        epctx_model_close(&c.model);
        return;
    }
    judge(t, "EPC-058 EPC-059 PLG-010", c.count > 0 && (c.others == 0 || !t->board->ep.whole),
          "a model that the EP takes%s became %zu EPContext nodes and %zu others",
          t->board->ep.whole ? " whole" : "", c.count, c.others);
    if (c.count > 1) remark(t, "EPC-059", "a chain of nodes became %zu EPContext nodes", c.count);
    for (i = 0; i < c.count; i++) {
        check_node(t, &c.list[i], in_folder(t, "src"));
        check_node(t, &c.list[i], in_folder(t, "out"));
        holds(t, "EPC-057");
    }
    judge(t, "EPC-009", c.primaries > 0, "no node has main_context 1");
    epctx_model_close(&c.model);
}

static void generated_files(trial *t) {
    ort_contexts c;
    size_t i;
    if (!prepare_context(t, MODEL_CHAIN, false)) return;
    if (!ort_read_contexts("out/m_ctx.onnx", &c)) {
        give_up(t, "%s", ort_text);
        epctx_model_close(&c.model);
        return;
    }
    for (i = 0; i < c.count; i++) {
        const epctx_epnode *node = &c.list[i];
        if (node->embed_mode != 0) {
            judge(t, "EPC-071 EPC-042 EPC-016", false,
                  "embed mode 0 was asked for, and the node has embed_mode %d",
                  (int)node->embed_mode);
            continue;
        }
        holds(t, "EPC-071 EPC-042 EPC-016");
        if (node->main_context == 1) {
            check_path(t, node->ep_cache_context);
            check_binary_name(t, node->ep_cache_context, "m", "EPC-075");
        }
    }
    check_files(t, &c);
    judge(t, "EPC-086 EPC-087", only_source_left(), "files were written beside the source model");
    epctx_model_close(&c.model);
}

/* ------------------------------------------------------------------ loading */

static bool compiles(trial *t, const char *model) {
    const ort_spec spec = spec_of(t, model);
    OrtSession *session = NULL;
    if (!ort_session(&spec, &session)) return false;
    ort->ReleaseSession(session);
    return true;
}

/* Generates from a model of this kind, deletes the source, and loads. */
static void load_kind(trial *t, model_kind kind) {
    char what[120];
    ort_spec spec;
    ort_contexts c;
    bool ok;
    remove_tree("src");
    remove_tree("out");
    make_folder("src");
    make_folder("out");
    if (!make_model(t, kind, in_folder(t, "src/m.onnx"))) return;
    judging(t, "PLG-010", "CompileModel of '%s'", model_names[kind]);
    ok = generate(t, in_folder(t, "src/m.onnx"), in_folder(t, "out/m_ctx.onnx"),
                  !t->board->ep.files);
    /* ORT before 1.27 knows no EPContext node without inputs. */
    if (!ok && strstr(ort_text, "has input size 0")) return;
    if (!ok && !compiles(t, in_folder(t, "src/m.onnx"))) return; /* PLG-008 tells it */
    if (!judge(t, "PLG-010", ok, "CompileModel of the model '%s': %s", model_names[kind],
               t->answer))
        return;
    keep_reference(t);
    remove_tree("src");
    if (ort_read_contexts("out/m_ctx.onnx", &c) && c.count > 0) {
        snprintf(what, sizeof what, "a session from the context model of '%s', its source gone",
                 model_names[kind]);
        spec = strict_spec(t, in_folder(t, "out/m_ctx.onnx"));
        judge_load(t, "EPC-003 EPC-119 EPC-085", &spec, what);
        holds(t, "EPC-006");
        if (kind == MODEL_SUB || kind == MODEL_FAN) holds(t, "EPC-007");
    }
    epctx_model_close(&c.model);
}

/* What most other experiments rely on: the context model and its binary as they were written. Who
 * says the same without the binary looks for it elsewhere. */
static void first_load(trial *t) {
    char found[sizeof t->answer], binary[PATH_MAX];
    bool is_same = false;
    ort_spec spec;
    if (!prepare_context(t, MODEL_CHAIN, !t->board->ep.files)) return;
    keep_reference(t);
    spec = strict_spec(t, in_folder(t, "out/m_ctx.onnx"));
    judging(t, "EPC-003", "the first session from a context model");
    if (runs_as(&spec, in_folder(t, "ref/m.onnx"))) {
        holds(t, t->board->ep.files ? "EPC-003 EPC-102 EPC-104 EPC-119" : "EPC-003 EPC-119");
        return;
    }
    snprintf(found, sizeof found, "%s", ort_text);
    if (binary_of(spec.path, "out", binary, sizeof binary) && rename(binary, "away") == 0) {
        is_same = !session_opens(&spec) && strcmp(found, ort_text) == 0;
        rename("away", binary);
        runs_as(&spec, in_folder(t, "ref/m.onnx")); /* what is kept ends with it */
    }
    judge(t, is_same ? "EPC-104 EPC-102 EPC-003 EPC-119" : "EPC-003 EPC-119", false,
          "a context model, with its binary beside it: expected the outputs of the source model, "
          "found %.400s%s",
          found, is_same ? "; it says the same without the binary: it looks for it elsewhere" : "");
}

static void loading(trial *t) {
    static const model_kind kinds[] = {MODEL_CHAIN,  MODEL_SUB,   MODEL_WEIGHTS, MODEL_CONST,
                                       MODEL_SCALAR, MODEL_NAMES, MODEL_FAN,     MODEL_CONSTS};
    size_t i;
    if (!open_ep(t)) {
        give_up(t, "%s", ort_text);
        return;
    }
    for (i = 0; i < sizeof kinds / sizeof kinds[0]; i++) load_kind(t, kinds[i]);
}

static void load_again(trial *t) {
    static const char *const of_generation[][3] = {{"ep.context_enable", "0", NULL},
                                                   {"ep.context_embed_mode", "1", NULL},
                                                   {"ep.context_node_name_prefix", "p_", NULL}};
    static const char *const ids[] = {"EPC-038", "EPC-043", "EPC-044"};
    size_t i;
    OrtSession *session = NULL;
    const char *model;
    ort_spec spec;
    if (!prepare_context(t, MODEL_CHAIN, !t->board->ep.files)) return;
    keep_reference(t);
    remove_tree("src");
    model = in_folder(t, "out/m_ctx.onnx");
    spec = strict_spec(t, model);
    judging(t, "EPC-001", "a session from the context model with session.disable_model_compile=1");
    if (judge(t,
              t->board->ep.files
                  ? "EPC-001 EPC-016 EPC-097 EPC-101 EPC-102 EPC-103 EPC-104 EPC-113 "
                    "EPC-116 EPC-161"
                  : "EPC-001 EPC-097 EPC-101 EPC-113 EPC-116 EPC-161",
              ort_session(&spec, &session),
              "a session from the context model with session.disable_model_compile=1: expected "
              "success, found %s",
              t->answer)) {
        judge(t, "EPC-099 EPC-100", ort_assigned(session, t->board->ep.name) >= 1,
              "none of the context model's nodes is claimed");
        ort->ReleaseSession(session);
    }
    for (i = 0; i < 3; i++) {
        char what[100];
        spec = spec_of(t, model);
        spec.config = of_generation[i];
        snprintf(what, sizeof what, "%s=%s while loading", spec.config[0], spec.config[1]);
        judge_load(t, ids[i], &spec, what);
    }
    if (!t->board->ep.files) {
        give_up(t, "the EP writes no context binaries in files");
    } else if (chdir("out") == 0) {
        judging(t, "EPC-117", "a path without a folder");
        spec = spec_of(t, "m_ctx.onnx");
        judge(t, "EPC-117", runs_as(&spec, "../ref/m.onnx"),
              "a path without a folder: expected the outputs of the source model, found %s",
              t->answer);
    }
}

/* Copies the files that primary nodes name. */
static void copy_binaries(const char *model, const char *from, const char *to) {
    ort_contexts c;
    size_t i;
    if (ort_read_contexts(model, &c)) {
        for (i = 0; i < c.count; i++) {
            const epctx_str name = c.list[i].ep_cache_context;
            char here[PATH_MAX], there[PATH_MAX];
            if (c.list[i].main_context != 1 || c.list[i].embed_mode != 0) continue;
            snprintf(here, sizeof here, "%s/%.*s", from, STR(name));
            snprintf(there, sizeof there, "%s/%.*s", to, STR(name));
            copy_file(here, there);
        }
    }
    epctx_model_close(&c.model);
}

/* What somebody who only reads a file leaves as it is. */
static bool is_untouched(const char *path, const struct stat *was) {
    struct stat is;
    return stat(path, &is) == 0 && is.st_ino == was->st_ino && is.st_size == was->st_size &&
           is.st_mtim.tv_sec == was->st_mtim.tv_sec && is.st_mtim.tv_nsec == was->st_mtim.tv_nsec;
}

/* It may be write-protected, and loaded by others at the same time. */
static void judge_untouched(trial *t, const ort_spec *spec, const char *folder) {
    char binary[PATH_MAX];
    struct stat was;
    if (!binary_of(spec->path, folder, binary, sizeof binary) || stat(binary, &was) != 0) return;
    usleep(20000); /* clocks of file systems are coarse */
    judging(t, "EPC-063", "loading a context model");
    if (session_opens(spec))
        judge(t, "EPC-063", is_untouched(binary, &was),
              "loading the context model wrote its binary, expected it to be read only");
}

static void delivered(trial *t) {
    static const char *const folders[] = {"moved", "moved and \xc3\xa9\xe4\xb8\xad"};
    static const char *const ids[] = {"EPC-074 EPC-017", "EPC-104 EPC-017"};
    char path[PATH_MAX], what[120];
    ort_spec spec;
    size_t i;
    if (!prepare_context(t, MODEL_CHAIN, false)) return;
    keep_reference(t);
    for (i = 0; i < 2; i++) {
        make_folder(folders[i]);
        snprintf(path, sizeof path, "%s/m_ctx.onnx", folders[i]);
        copy_file("out/m_ctx.onnx", path);
        copy_binaries("out/m_ctx.onnx", "out", folders[i]);
    }
    remove_tree("out");
    remove_tree("src");
    for (i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/m_ctx.onnx", folders[i]);
        snprintf(what, sizeof what,
                 "the model and the files that its primary nodes name, in the folder '%s'",
                 folders[i]);
        spec = strict_spec(t, in_folder(t, path));
        judge_load(t, ids[i], &spec, what);
    }
    judge_untouched(t, &spec, folders[1]);
}

/* Applications load and release models for days. */
static void many_loads(trial *t) {
    const size_t count = affordable(t->board->ep.session, 12, 60);
    char binary[PATH_MAX];
    ort_spec spec, cpu;
    size_t size = 0;
    uint8_t *data;
    if (!prepare_context(t, MODEL_CHAIN, !t->board->ep.files)) return;
    cpu = spec_of(t, in_folder(t, "src/m.onnx"));
    cpu.ep = NULL;
    spec = strict_spec(t, in_folder(t, "out/m_ctx.onnx"));
    judge_left(t, "sessions from a context model", &spec, true, &cpu, count);
    if (!binary_of(spec.path, "out", binary, sizeof binary)) return;
    data = read_file(binary, &size);
    write_file(binary, data, size / 2);
    free(data);
    if (fate_of(&spec, cpu.path) == FATE_INVALID_GRAPH) /* else "damaged binaries" tells it */
        judge_left(t, "refusals of a damaged binary", &spec, false, &cpu, count);
}

/* Before each session: ORT writes over no model. */
static void remove_model(OrtSessionOptions *options, void *user) {
    (void)options;
    remove((const char *)user);
}

/* Services compile models for days, too. */
static void many_generations(trial *t) {
    char out[PATH_MAX];
    const char *const config[] = {"ep.context_enable",
                                  "1",
                                  "ep.context_embed_mode",
                                  t->board->ep.files ? "0" : "1",
                                  "ep.context_file_path",
                                  out,
                                  NULL};
    ort_spec spec, cpu;
    if (!prepare_context(t, MODEL_CHAIN, !t->board->ep.files)) return;
    snprintf(out, sizeof out, "%s", in_folder(t, "out/m_ctx.onnx"));
    cpu = spec_of(t, in_folder(t, "src/m.onnx"));
    spec = cpu;
    cpu.ep = NULL;
    spec.config = config;
    spec.more = remove_model;
    spec.user = out;
    judge_left(t, "generations of a context model", &spec, true, &cpu,
               affordable(t->board->ep.session, 12, 60));
}

/* The nth node of the model that names a file, and all others that name the same. */
static size_t first_with(const ort_contexts *c, size_t n) {
    size_t i = 0;
    while (!epctx_str_eq(c->list[i].ep_cache_context, c->list[n].ep_cache_context)) i++;
    return i;
}

/* Binaries go to out/deeper/moved<n>.bin, and the nodes name them there. */
static bool move_deeper(const char *to) {
    char names[16][40]; /* borrowed until the model is written */
    ort_contexts c;
    epctx_error error;
    epctx_status status = EPCTX_OK;
    size_t i;
    const bool ok = ort_read_contexts("out/m_ctx.onnx", &c);
    epctx_error_clear(&error);
    for (i = 0; ok && i < c.count && status == EPCTX_OK; i++) {
        const epctx_str was = c.list[i].ep_cache_context;
        char *name = names[i], here[PATH_MAX], there[80];
        if (c.list[i].embed_mode != 0 || was.size == 0) continue;
        snprintf(name, sizeof names[0], "deeper/moved%zu.bin", first_with(&c, i));
        snprintf(here, sizeof here, "out/%.*s", STR(was));
        snprintf(there, sizeof there, "out/%s", name);
        rename(here, there); /* the first node that names it did so */
        status = epctx_edit_set_attr_str(&c.model, c.views[i].view, "ep_cache_context",
                                         epctx_str_of(name), &error);
    }
    if (ok && status == EPCTX_OK) status = epctx_model_write_file(&c.model, to, NULL, &error);
    if (ok && status != EPCTX_OK) snprintf(ort_text, sizeof ort_text, "%s", error.message);
    epctx_model_close(&c.model);
    return ok && status == EPCTX_OK;
}

static void subfolder(trial *t) {
    ort_spec spec;
    if (!prepare_context(t, MODEL_CHAIN, false)) return;
    keep_reference(t);
    make_folder("out/deeper");
    if (!move_deeper("out/sub_ctx.onnx")) {
        give_up(t, "%s", ort_text);
        return;
    }
    spec = strict_spec(t, in_folder(t, "out/sub_ctx.onnx"));
    judge_load(t, "EPC-018 EPC-079 EPC-103", &spec, "a binary in a subfolder, under another name");
}

/* ----------------------------------------------------------------- embedded */

static void embedded(trial *t) {
    char names[16][256];
    uint8_t *data;
    size_t size, count;
    ort_contexts c;
    ort_spec spec;
    if (!prepare_context(t, MODEL_CHAIN, true)) return;
    keep_reference(t);
    judge(t, "EPC-070", list_files("out", names, 16) == 1,
          "embed mode 1 wrote other files beside the model: %.100s", names[1]);
    judge(t, "EPC-070", only_source_left(), "embed mode 1 wrote files beside the source model");
    if (judge(t, "EPC-014", ort_read_contexts("out/m_ctx.onnx", &c), "%s", ort_text) &&
        c.count > 0) {
        judge(t, "EPC-014 EPC-009 EPC-032",
              c.list[0].embed_mode == 1 && c.list[0].ep_cache_context.size > 0,
              "embed mode 1 was asked for: embed_mode is %d, ep_cache_context has %zu bytes",
              (int)c.list[0].embed_mode, c.list[0].ep_cache_context.size);
    }
    epctx_model_close(&c.model);
    remove_tree("src");
    data = read_file("out/m_ctx.onnx", &size);
    spec = strict_spec(t, in_folder(t, "out/m_ctx.onnx"));
    judge_load(t, "EPC-014 EPC-015 EPC-041", &spec, "an embedded context, from a file");
    remove_tree("out");
    spec.path = NULL;
    spec.data = data;
    spec.size = size;
    judge_load(t, "EPC-014 EPC-015 EPC-041", &spec, "an embedded context, from memory");
    count = list_files(".", names, 16);
    judge(t, "EPC-014", count == 1, "loading an embedded context wrote %.100s",
          names[strcmp(names[0], "ref") == 0]);
    free(data);
}

/* ------------------------------------------------------------------- memory */

static void from_memory(trial *t) {
    const char *with_path[] = {"ep.context_file_path", NULL, NULL};
    uint8_t *data;
    size_t size = 0;
    ort_spec spec;
    if (!prepare_context(t, MODEL_CHAIN, false)) return;
    keep_reference(t);
    remove_tree("src");
    data = read_file("out/m_ctx.onnx", &size);
    remove("out/m_ctx.onnx");
    spec = spec_of(t, NULL);
    spec.data = data;
    spec.size = size;
    judging(t, "EPC-040", "a model from memory without ep.context_file_path");
    judge(t, "EPC-040", !session_opens(&spec),
          "a model from memory, its binary in a file, without ep.context_file_path: expected an "
          "error, found a session");
    judge(t, "EPC-040 EPC-110", ort_code == ORT_INVALID_GRAPH || ort_code == ORT_INVALID_ARGUMENT,
          "without ep.context_file_path: expected INVALID_GRAPH (10), found %s", t->answer);
    if (!strstr(ort_text, "context_file_path"))
        remark(t, "EPC-040", "the error does not name ep.context_file_path: %.300s", ort_text);
    with_path[1] = in_folder(t, "out/not_there_ctx.onnx");
    spec.config = with_path;
    judge_load(t, "EPC-105 EPC-118 EPC-040", &spec,
               "a model from memory, ep.context_file_path in the binary's folder");
    free(data);
}

/* --------------------------------------------------------------- partitions */

static size_t count_binaries(const ort_contexts *c) {
    size_t i, k, count = 0;
    for (i = 0; i < c->count; i++) {
        bool seen = c->list[i].main_context != 1;
        /* Equal payloads are contexts of their own. */
        if (c->list[i].embed_mode == 1) {
            count += !seen;
            continue;
        }
        for (k = 0; k < i && !seen; k++)
            seen = c->list[k].main_context == 1 &&
                   epctx_str_eq(c->list[i].ep_cache_context, c->list[k].ep_cache_context);
        count += !seen;
    }
    return count;
}

static void check_partitions(trial *t, const ort_contexts *c, bool embed) {
    const size_t binaries = count_binaries(c);
    size_t i;
    if (c->count == 0) {
        does_not_apply(t, "EPC-082 EPC-011 EPC-012 EPC-072",
                       "the EP takes no group of these nodes");
        return;
    }
    holds(t, "EPC-082");
    if (c->count != 3 && t->board->ep.form != FORM_GIVEN)
        remark(t, "EPC-082", "three groups of nodes became %zu EPContext nodes", c->count);
    for (i = 0; i < c->count; i++) {
        judge(t, "EPC-009 EPC-107",
              c->list[i].main_context == 0 || c->list[i].ep_cache_context.size,
              "node %zu of %zu has main_context 1 and no context", i, c->count);
    }
    if (binaries == 1)
        holds(t, "EPC-011");
    else
        does_not_apply(t, "EPC-011", "%zu partitions have %zu contexts", c->count, binaries);
    if (embed)
        does_not_apply(t, "EPC-072", "the contexts are in the model");
    else if (binaries == 1)
        holds(t, "EPC-072");
    else
        remark(t, "EPC-072", "%zu partitions have %zu binaries", c->count, binaries);
    if (c->primaries == c->count)
        holds(t, "EPC-012 EPC-106");
    else
        does_not_apply(t, "EPC-012", "the partitions of a model share one context");
}

static void partitions_as(trial *t, bool embed) {
    ort_contexts c;
    ort_spec spec;
    judging(t, "PLG-010", "CompileModel of several partitions, embed mode %d", embed);
    if (!judge(t, "PLG-010 EPC-082",
               generate(t, in_folder(t, "src/m.onnx"), in_folder(t, "out/m_ctx.onnx"), embed),
               "CompileModel of several partitions, embed mode %d: %s", embed, t->answer))
        return;
    if (judge(t, "EPC-082", ort_read_contexts("out/m_ctx.onnx", &c), "%s", ort_text))
        check_partitions(t, &c, embed);
    epctx_model_close(&c.model);
    spec = strict_spec(t, in_folder(t, "out/m_ctx.onnx"));
    judging(t, "EPC-107", "a context model with several EPContext nodes, embed mode %d", embed);
    judge(
        t, "EPC-107 EPC-108 EPC-010 EPC-101", runs_as(&spec, in_folder(t, "ref/m.onnx")),
        "a context model with several EPContext nodes, embed mode %d: expected the outputs of the "
        "source model, found %s",
        embed, t->answer);
}

static void partitions(trial *t) {
    if (!open_ep(t) || !make_model(t, MODEL_ISLAND, in_folder(t, "src/m.onnx"))) {
        give_up(t, "%s", ort_text);
        return;
    }
    keep_reference(t);
    if (t->board->ep.files) partitions_as(t, false);
    if (t->board->ep.embeds) partitions_as(t, true);
}

/* The context of node `i` in a file: its own, or the one that it shares. NULL: there is none. */
static uint8_t *context_of(const ort_contexts *c, size_t i, size_t *size) {
    char path[PATH_MAX];
    if (c->list[i].main_context != 1 || c->list[i].embed_mode != 0) {
        if (!binary_of("out/m_ctx.onnx", "out", path, sizeof path)) return NULL;
    } else {
        snprintf(path, sizeof path, "out/%.*s", STR(c->list[i].ep_cache_context));
    }
    return read_file(path, size);
}

static epctx_status embed_context(ort_contexts *c, size_t i, const uint8_t *data, size_t size,
                                  epctx_error *error) {
    const epctx_view node = c->views[i].view;
    epctx_str payload;
    epctx_status status = epctx_edit_set_attr_int(&c->model, node, "main_context", 1, error);
    payload.data = (const char *)data;
    payload.size = size;
    if (status == EPCTX_OK)
        status = epctx_edit_set_attr_int(&c->model, node, "embed_mode", 1, error);
    if (status != EPCTX_OK) return status;
    return epctx_edit_set_attr_str(&c->model, node, "ep_cache_context", payload, error);
}

/* Every node from `first` on with its context in the node. */
static bool copy_contexts(const char *to, size_t first) {
    ort_contexts c;
    epctx_error error;
    epctx_status status = EPCTX_OK;
    uint8_t *data[16] = {NULL};
    size_t i;
    bool ok = ort_read_contexts("out/m_ctx.onnx", &c);
    epctx_error_clear(&error);
    for (i = first; ok && i < c.count && status == EPCTX_OK; i++) {
        size_t size = 0;
        data[i] = context_of(&c, i, &size);
        ok = data[i] != NULL;
        if (ok) status = embed_context(&c, i, data[i], size, &error);
    }
    if (ok && status == EPCTX_OK) status = epctx_model_write_file(&c.model, to, NULL, &error);
    epctx_model_close(&c.model);
    for (i = 0; i < 16; i++) free(data[i]);
    return ok && status == EPCTX_OK;
}

/* Several nodes with main_context 1: all embedded, or the first in its file. */
static void several_contexts(trial *t) {
    size_t first;
    if (!prepare_context(t, MODEL_ISLAND, false)) return;
    keep_reference(t);
    for (first = 0; first < 2; first++) {
        const char *what = first == 0 ? "several nodes with main_context 1, all embedded"
                                      : "several nodes with main_context 1, in files and embedded";
        ort_spec spec = spec_of(t, in_folder(t, "out/each_ctx.onnx"));
        fate f;
        if (!copy_contexts("out/each_ctx.onnx", first)) return;
        judging(t, "EPC-106", "%s", what);
        f = fate_of(&spec, in_folder(t, "ref/m.onnx"));
        if (f == FATE_INVALID_GRAPH) {
            remark(t, "EPC-106 EPC-107", "%s: refused: %s", what, t->answer);
        } else {
            judge(t, "EPC-106 EPC-107", f == FATE_RIGHT,
                  "%s: expected the outputs of the source model, found %s", what, t->answer);
        }
    }
}

/* The file's order of nodes, from the last to the first. */
static bool reverse_nodes(const char *from, const char *to) {
    ort_contexts c;
    epctx_error error;
    epctx_status status = EPCTX_OK;
    epctx_view graph;
    size_t i;
    const bool ok = ort_read_contexts(from, &c);
    epctx_error_clear(&error);
    graph = epctx_model_graph(&c.model).view;
    for (i = 0; ok && i < c.count && status == EPCTX_OK; i++) /* each to the front */
        status = epctx_edit_move(&c.model, c.views[i].view, graph, NULL, &error);
    if (ok && status == EPCTX_OK) status = epctx_model_write_file(&c.model, to, NULL, &error);
    if (status != EPCTX_OK) snprintf(ort_text, sizeof ort_text, "%s", error.message);
    epctx_model_close(&c.model);
    return ok && status == EPCTX_OK;
}

/* The order of nodes in the file means nothing; names of nodes are ORT's. */
static void reordered(trial *t) {
    char names[16][40]; /* borrowed until the model is written */
    ort_spec spec;
    ort_contexts c;
    epctx_error error;
    fate f;
    size_t i;
    if (!prepare_context(t, MODEL_ISLAND, !t->board->ep.files)) return;
    keep_reference(t);
    if (!reverse_nodes("out/m_ctx.onnx", "out/back_ctx.onnx")) {
        give_up(t, "%s", ort_text);
        return;
    }
    spec = spec_of(t, in_folder(t, "out/back_ctx.onnx"));
    judging(t, "EPC-010", "a context model whose nodes are in another order");
    f = fate_of(&spec, in_folder(t, "ref/m.onnx"));
    judge(t, "EPC-010 EPC-108", f == FATE_RIGHT || f == FATE_INVALID_GRAPH,
          "a context model whose nodes are in another order: expected the same outputs, found %s",
          t->answer);
    epctx_error_clear(&error);
    if (ort_read_contexts("out/m_ctx.onnx", &c)) {
        for (i = 0; i < c.count; i++) {
            snprintf(names[i], sizeof names[i], "renamed %zu", i);
            epctx_edit_set_field_str(&c.model, c.views[i].view, EPCTX_FIELD_NODE_NAME,
                                     epctx_str_of(names[i]), &error);
        }
        epctx_model_write_file(&c.model, "out/names_ctx.onnx", NULL, &error);
    }
    epctx_model_close(&c.model);
    spec.path = in_folder(t, "out/names_ctx.onnx");
    judging(t, "EPC-161", "a context model whose nodes have other names");
    f = fate_of(&spec, in_folder(t, "ref/m.onnx"));
    judge(t, "EPC-161", f == FATE_RIGHT || f == FATE_INVALID_GRAPH,
          "a context model whose nodes have other names: expected the same outputs or "
          "INVALID_GRAPH, found %s",
          t->answer);
}

/* -------------------------------------------------------- by session options */

static void by_options(trial *t) {
    const char *more[] = {"ep.context_file_path", NULL, NULL, NULL, NULL};
    char binary[PATH_MAX];
    ort_contexts c;
    ort_spec spec;
    if (!open_ep(t) || !make_model(t, MODEL_CHAIN, in_folder(t, "src/m.onnx"))) {
        give_up(t, "%s", ort_text);
        return;
    }
    keep_reference(t);
    if (!t->board->ep.files) { /* the default may be refused */
        more[2] = "ep.context_embed_mode";
        more[3] = "1";
    }
    judging(t, "EPC-062", "a session with ep.context_enable=1");
    if (!judge(t, "EPC-062 EPC-093", generate_by_options(t, in_folder(t, "src/m.onnx"), more + 2),
               "a session with ep.context_enable=1: expected success, found %s", t->answer))
        return;
    judge(t, "EPC-062 EPC-064 EPC-065 EPC-066 EPC-093", file_exists("src/m_ctx.onnx"),
          "ep.context_enable=1 did not write m_ctx.onnx beside m.onnx");
    if (t->board->ep.files && ort_read_contexts("src/m_ctx.onnx", &c)) {
        judge(t, "EPC-042 EPC-071", c.count > 0 && c.list[0].embed_mode == 0,
              "without ep.context_embed_mode: expected embed_mode 0");
        judge(t, "EPC-093 EPC-077 EPC-058",
              binary_of("src/m_ctx.onnx", "src", binary, sizeof binary) && file_exists(binary),
              "the context model in the source's folder: no binary beside it");
        epctx_model_close(&c.model);
    }
    spec = strict_spec(t, in_folder(t, "src/m_ctx.onnx"));
    judge_load(t, "EPC-061 EPC-003", &spec, "the model that ep.context_enable=1 wrote");
    more[1] = in_folder(t, "out/own.name_ctx.onnx");
    judging(t, "EPC-067", "ep.context_file_path");
    if (!judge(t, "EPC-067 EPC-039", generate_by_options(t, in_folder(t, "src/m.onnx"), more),
               "ep.context_file_path: expected success, found %s", t->answer))
        return;
    judge(t, "EPC-067 EPC-039", file_exists(more[1]), "ep.context_file_path names no file");
    if (t->board->ep.files) {
        judge(t, "EPC-068 EPC-077",
              binary_of(more[1], "out", binary, sizeof binary) && file_exists(binary),
              "with ep.context_file_path the binary is not in the folder of the context model");
    }
    spec = strict_spec(t, more[1]);
    judge_load(t, "EPC-067 EPC-061", &spec, "the model that ep.context_file_path names");
}

static void options_from_memory(trial *t) {
    const char *config[] = {"ep.context_enable",
                            "1",
                            "ep.context_embed_mode",
                            t->board->ep.files ? "0" : "1",
                            NULL,
                            NULL,
                            NULL};
    size_t size = 0;
    uint8_t *data;
    ort_spec spec;
    if (!open_ep(t) || !make_model(t, MODEL_CHAIN, in_folder(t, "src/m.onnx"))) {
        give_up(t, "%s", ort_text);
        return;
    }
    keep_reference(t);
    data = read_file("src/m.onnx", &size);
    spec = spec_of(t, NULL);
    spec.data = data;
    spec.size = size;
    spec.config = config;
    judging(t, "EPC-069", "generating from memory without ep.context_file_path");
    judge(t, "EPC-069", !session_opens(&spec),
          "generating from memory without ep.context_file_path: expected an error, found success");
    config[4] = "ep.context_file_path";
    config[5] = in_folder(t, "out/m_ctx.onnx");
    judging(t, "EPC-094", "generating from memory with ep.context_file_path");
    judge(t, "EPC-094", session_opens(&spec) && file_exists("out/m_ctx.onnx"),
          "generating from memory with ep.context_file_path: expected success, found %s",
          t->answer);
    free(data);
    remove_tree("src");
    spec = strict_spec(t, in_folder(t, "out/m_ctx.onnx"));
    judge_load(t, "EPC-094 EPC-061", &spec, "what was generated from memory");
}

/* No document asks for an error; what is written must not look like a context model and be none. */
static void compiled_already(trial *t) {
    const char *twice = in_folder(t, "out/twice_ctx.onnx");
    ort_spec spec;
    if (!prepare_context(t, MODEL_CHAIN, !t->board->ep.files)) return;
    keep_reference(t);
    judging(t, "EPC-097", "CompileModel of a context model");
    if (generate(t, in_folder(t, "out/m_ctx.onnx"), twice, !t->board->ep.files)) {
        spec = spec_of(t, twice);
        judging(t, "EPC-097", "what CompileModel made of a context model");
        judge(t, "EPC-097", runs_as(&spec, in_folder(t, "ref/m.onnx")),
              "CompileModel of a context model: expected an error, or a model that runs like its "
              "source; found success, and then %s",
              t->answer);
    } else {
        judge(t, "EPC-097", !file_exists("out/twice_ctx.onnx"),
              "CompileModel of a context model failed and left a file");
    }
}

/* Of the first EPContext node. */
typedef struct node_names {
    char node[300], partition[300];
} node_names;

static void read_names(const char *model, node_names *out) {
    ort_contexts c;
    memset(out, 0, sizeof *out);
    if (ort_read_contexts(model, &c) && c.count > 0) {
        snprintf(out->node, sizeof out->node, "%.*s", STR(c.views[0].name));
        snprintf(out->partition, sizeof out->partition, "%.*s", STR(c.list[0].partition_name));
    }
    epctx_model_close(&c.model);
}

/* It is seen in either name, or nowhere. */
static void judge_prefix(trial *t, const node_names *names, const char *before) {
    if (!*names->partition)
        does_not_apply(t, "EPC-045", "the EP writes no partition_name");
    else if (strncmp(names->partition, before, strlen(before)) == 0)
        holds(t, "EPC-045");
    else
        remark(t, "EPC-045", "partition_name is '%.100s', it does not begin with the prefix",
               names->partition);
    if (strstr(names->partition, before) || strstr(names->node, before))
        holds(t, "EPC-080");
    else /* "should" */
        remark(t, "EPC-080",
               "ep.context_node_name_prefix=%s is ignored: the node is called '%.100s', its "
               "partition_name is '%.100s'",
               before, names->node, names->partition);
}

/* The names in the model that is generated with the prefix, loaded, too. */
static bool with_prefix(trial *t, const char *out, const char *before, node_names *names) {
    const char *more[] = {"ep.context_file_path",
                          out,
                          "ep.context_node_name_prefix",
                          before,
                          "ep.context_embed_mode",
                          t->board->ep.files ? "0" : "1",
                          NULL};
    ort_spec spec;
    judging(t, "EPC-080", "generating with a prefix");
    if (!judge(t, "EPC-080 EPC-045", generate_by_options(t, in_folder(t, "src/m.onnx"), more),
               "generating with ep.context_node_name_prefix: expected success, found %s",
               t->answer))
        return false;
    read_names(out, names);
    judge_prefix(t, names, before);
    spec = strict_spec(t, out);
    judge_load(t, "EPC-047", &spec, "a context model generated with a prefix");
    return true;
}

static void prefix(trial *t) {
    node_names names[2];
    ort_contexts c;
    if (!open_ep(t) || !make_model(t, MODEL_CHAIN, in_folder(t, "src/m.onnx"))) {
        give_up(t, "%s", ort_text);
        return;
    }
    keep_reference(t);
    if (!with_prefix(t, in_folder(t, "out/a_ctx.onnx"), "p1_", &names[0]) ||
        !with_prefix(t, in_folder(t, "out/b_ctx.onnx"), "p2_", &names[1]))
        return;
    if (strcmp(names[0].partition, names[1].partition) != 0 ||
        strcmp(names[0].node, names[1].node) != 0)
        holds(t, "EPC-046");
    else
        does_not_apply(t, "EPC-046", "the prefix is ignored, see EPC-080");
    if (!generate(t, in_folder(t, "src/m.onnx"), in_folder(t, "out/m_ctx.onnx"),
                  !t->board->ep.files))
        return;
    if (ort_read_contexts("out/m_ctx.onnx", &c)) {
        judge(t, "EPC-044",
              c.count > 0 &&
                  !memmem(c.list[0].partition_name.data, c.list[0].partition_name.size, "p2_", 3),
              "without the option there is a prefix, of an earlier session");
    }
    epctx_model_close(&c.model);
}

static void odd_names(trial *t) {
    char long_name[230];
    const char *const tried[] = {"out/two.dots.in_ctx.onnx", "out/with blanks_ctx.onnx",
                                 "out/\xc3\xa9\xe4\xb8\xad_ctx.onnx", "a.folder/m_ctx.onnx",
                                 long_name};
    static const char *const stems[] = {"two.dots.in", "with blanks", "\xc3\xa9\xe4\xb8\xad", "m",
                                        NULL};
    size_t i;
    if (!open_ep(t) || !make_model(t, MODEL_CHAIN, in_folder(t, "src/m.onnx"))) {
        give_up(t, "%s", ort_text);
        return;
    }
    keep_reference(t);
    make_folder("a.folder");
    memset(long_name, 'l', sizeof long_name);
    memcpy(long_name, "out/", 4);
    snprintf(long_name + 204, sizeof long_name - 204, "_ctx.onnx");
    for (i = 0; i < 5; i++) {
        const char *out = in_folder(t, tried[i]);
        char folder[20], binary[PATH_MAX];
        ort_contexts c;
        ort_spec spec;
        snprintf(folder, sizeof folder, i == 3 ? "a.folder" : "out");
        judging(t, "EPC-067", "the output name %.60s", tried[i]);
        if (!judge(t, "EPC-067 EPC-068", generate(t, in_folder(t, "src/m.onnx"), out, false),
                   "the output name %.60s: expected success, found %s", tried[i], t->answer))
            continue;
        judge(t, "EPC-068 EPC-077",
              binary_of(out, folder, binary, sizeof binary) && file_exists(binary),
              "the output name %.60s: no binary in its folder", tried[i]);
        if (stems[i] && ort_read_contexts(out, &c)) {
            if (c.count) check_binary_name(t, c.list[0].ep_cache_context, stems[i], "EPC-075");
            epctx_model_close(&c.model);
        }
        spec = strict_spec(t, out);
        judge_load(t, "EPC-067 EPC-104", &spec, "a context model with an odd name");
    }
    /* One model must not lose its binary to another one in the same folder. */
    if (make_model(t, MODEL_OTHER, in_folder(t, "src/other.onnx"))) {
        judging(t, "EPC-075", "another model in the same folder");
        generate(t, in_folder(t, "src/other.onnx"), in_folder(t, "out/two.others_ctx.onnx"), false);
    }
    for (i = 0; i < 4; i++) {
        ort_spec spec = strict_spec(t, in_folder(t, tried[i]));
        judge_load(t, "EPC-075 EPC-058", &spec,
                   "the first of several context models in one folder");
    }
}

/* ------------------------------------------------------------ external data */

/* src/m.onnx with its data becomes out/m_ctx.onnx; then both are gone, the data is in keep/. */
static bool external_from_path(trial *t) {
    char names[16][256];
    size_t i, count;
    ort_spec spec;
    judging(t, "EPC-084", "generating from a source with external data");
    if (!judge(t, "EPC-084",
               generate(t, in_folder(t, "src/m.onnx"), in_folder(t, "out/m_ctx.onnx"),
                        !t->board->ep.files),
               "generating from a source with external data: expected success, found %s",
               t->answer))
        return false;
    make_folder("ref");
    make_model(t, MODEL_WEIGHTS, in_folder(t, "ref/m.onnx"));
    make_folder("keep");
    make_folder("keep/data");
    copy_file("src/data/weights.bin", "keep/data/weights.bin");
    remove_tree("src");
    spec = strict_spec(t, in_folder(t, "out/m_ctx.onnx"));
    judge_load(t, "EPC-085 EPC-091", &spec,
               "a context model whose source and external data are gone");
    count = list_files("out", names, 16);
    for (i = 0; i < count; i++)
        judge(t, "EPC-091 EPC-052", !strstr(names[i], ".data") && strcmp(names[i], "data") != 0,
              "an initializers file was written: %.100s", names[i]);
    return true;
}

static void external_from_memory(trial *t, const uint8_t *model, size_t size) {
    const char *config[] = {"session.model_external_initializers_file_folder_path",
                            in_folder(t, "keep"),
                            "ep.context_enable",
                            "1",
                            "ep.context_file_path",
                            in_folder(t, "three/m_ctx.onnx"),
                            "ep.context_embed_mode",
                            t->board->ep.files ? "0" : "1",
                            NULL};
    ort_spec spec = spec_of(t, NULL);
    spec.data = model;
    spec.size = size;
    judging(t, "EPC-050", "a model with external data from memory");
    judge(t, "EPC-050", !session_opens(&spec),
          "a model with external data from memory, without its folder: expected an error");
    make_folder("three");
    spec.config = config;
    judging(t, "EPC-095", "generating from memory with external data in another folder");
    if (!judge(t, "EPC-095 EPC-048 EPC-049", session_opens(&spec),
               "generating from memory with external data in another folder: expected success, "
               "found %s",
               t->answer))
        return;
    remove_tree("keep");
    spec = strict_spec(t, in_folder(t, "three/m_ctx.onnx"));
    judge_load(t, "EPC-095 EPC-096 EPC-085", &spec,
               "what was generated from memory, source and data gone");
}

static void external_data(trial *t) {
    uint8_t *model;
    size_t size = 0;
    if (!open_ep(t) || !make_model(t, MODEL_WEXT, in_folder(t, "src/m.onnx"))) {
        give_up(t, "%s", ort_text);
        return;
    }
    model = read_file("src/m.onnx", &size);
    if (external_from_path(t)) external_from_memory(t, model, size);
    free(model);
}

/* The folder of external data has a binary of the right name, the model's folder has none. */
static void not_in_data_folder(trial *t) {
    const char *config[] = {"session.model_external_initializers_file_folder_path", NULL, NULL,
                            NULL, NULL};
    char binary[PATH_MAX], other[PATH_MAX];
    size_t size = 0;
    uint8_t *data;
    ort_spec spec;
    fate f;
    if (!prepare_context(t, MODEL_CHAIN, false)) return;
    keep_reference(t);
    make_folder("data");
    if (!binary_of("out/m_ctx.onnx", "out", binary, sizeof binary) ||
        !binary_of("out/m_ctx.onnx", "data", other, sizeof other)) {
        give_up(t, "no node names a file");
        return;
    }
    rename(binary, other);
    data = read_file("out/m_ctx.onnx", &size);
    config[1] = in_folder(t, "data");
    config[2] = "ep.context_file_path";
    config[3] = in_folder(t, "out/m_ctx.onnx");
    spec = spec_of(t, NULL);
    spec.data = data;
    spec.size = size;
    spec.config = config;
    judging(t, "EPC-051", "a binary that is only in the folder of external data");
    f = fate_of(&spec, in_folder(t, "ref/m.onnx"));
    judge(t, "EPC-051", f == FATE_INVALID_GRAPH || f == FATE_OTHER_CODE,
          "a binary that is only in the folder of external data: expected an error, found a "
          "session");
    free(data);
}

static void initializers(trial *t) {
    ort_spec spec, load;
    ort_output to;
    ort_contexts c;
    size_t inside = 0;
    if (!open_ep(t) || !make_model(t, MODEL_ISLAND, in_folder(t, "src/m.onnx"))) {
        give_up(t, "%s", ort_text);
        return;
    }
    keep_reference(t);
    spec = spec_of(t, in_folder(t, "src/m.onnx"));
    memset(&to, 0, sizeof to);
    to.path = in_folder(t, "out/m_ctx.onnx");
    to.embed = !t->board->ep.files;
    to.initializers = "m_init.data";
    judging(t, "EPC-092", "CompileModel with an initializers file");
    if (!judge(t, "EPC-092", ort_compile_model(&spec, &to), "with an initializers file: %s",
               t->answer))
        return;
    if (ort_read_contexts(to.path, &c)) {
        epctx_cursor it = epctx_view_graph_initializers(epctx_model_graph(&c.model));
        epctx_tensor_view tensor;
        while (epctx_next_tensor(&it, &tensor)) inside += !tensor.external;
        judge(t, "EPC-092 EPC-089", inside == 0, "%zu initializers are in the context model",
              inside);
        epctx_model_close(&c.model);
    }
    remove_tree("src");
    load = strict_spec(t, to.path);
    judge_load(t, "EPC-092 EPC-085", &load, "a context model with an initializers file");
}

static bool is_read(const ort_contexts *c, epctx_str value) {
    epctx_cursor it = epctx_view_graph_nodes(epctx_model_graph(&c->model));
    epctx_node_view node;
    while (epctx_next_node(&it, &node)) {
        epctx_cursor inputs = epctx_view_node_inputs(&node);
        epctx_str name;
        while (epctx_next_str(&inputs, &name))
            if (epctx_str_eq(name, value)) return true;
    }
    return false;
}

/* What the EP compiled is not in the model, too; unless the EPContext node reads it from there. */
static void weights_once(trial *t) {
    ort_contexts c;
    size_t bytes = 0;
    if (!prepare_context(t, MODEL_WEIGHTS, !t->board->ep.files)) return;
    if (ort_read_contexts("out/m_ctx.onnx", &c)) {
        epctx_cursor it = epctx_view_graph_initializers(epctx_model_graph(&c.model));
        epctx_tensor_view tensor;
        while (epctx_next_tensor(&it, &tensor))
            if (!is_read(&c, tensor.name)) bytes += tensor.raw.size;
        judge(t, "EPC-089", bytes == 0,
              "%zu bytes of weights that no node of the context model reads are in it", bytes);
    }
    epctx_model_close(&c.model);
}

/* ------------------------------------------------------------ compatibility */

static bool own_string(trial *t, const char *model, char *out, size_t size) {
    OrtAllocator *allocator = NULL;
    char *text = NULL;
    if (!ort_ok(ort->GetAllocatorWithDefaultOptions(&allocator)) ||
        !ort_ok(ort->GetCompatibilityInfoFromModel(model, t->board->ep.name, allocator, &text)))
        return false;
    snprintf(out, size, "%s", text ? text : "");
    if (text) allocator->Free(allocator, text);
    return true;
}

static OrtCompiledModelCompatibility judgement(trial *t, const char *text) {
    OrtCompiledModelCompatibility out = OrtCompiledModelCompatibility_EP_NOT_APPLICABLE;
    const OrtEpDevice *device = find_device(t);
    judge(t, "PLG-034", ort_ok(ort->GetModelCompatibilityForEpDevices(&device, 1, text, &out)),
          "the compatibility of '%.40s': expected a value, found %s", text, t->answer);
    return out;
}

/* With EP options a string may be that of the device which they name: who judges it is not told
 * them. */
static void judge_own(trial *t, const char *own, OrtCompiledModelCompatibility found) {
    if (found != OrtCompiledModelCompatibility_EP_SUPPORTED_OPTIMAL && t->wanted.options.count > 0)
        cannot_judge(t, "PLG-025",
                     "the EP's own string '%.100s' is judged %d; it was written with EP options, "
                     "which name the device, and which the judgement is not given",
                     own, (int)found);
    else
        judge(t, "PLG-025", found == OrtCompiledModelCompatibility_EP_SUPPORTED_OPTIMAL,
              "the EP's own fresh string '%.100s' is judged %d, expected optimal (1)", own,
              (int)found);
}

/* `own` with a sign changed: how often it is optimal all the same, and of how many. */
static size_t altered_optimal(trial *t, const char *own, size_t *count) {
    const size_t length = strlen(own), step = length / 64 + 1;
    char text[4096];
    size_t i, optimal = 0;
    *count = 0;
    for (i = 0; i < length; i += step) {
        snprintf(text, sizeof text, "%s", own);
        text[i] = text[i] == '7' ? '8' : '7';
        optimal += judgement(t, text) == OrtCompiledModelCompatibility_EP_SUPPORTED_OPTIMAL;
        ++*count;
    }
    return optimal;
}

/* What says less or something else than the EP's own string is not that of this EP and device. */
static void judge_altered(trial *t, const char *own) {
    char half[4096];
    size_t optimal, count;
    judging(t, "PLG-034", "the compatibility of half the EP's own string");
    snprintf(half, sizeof half, "%.*s", (int)(strlen(own) / 2), own);
    judge(t, "PLG-034", judgement(t, half) != OrtCompiledModelCompatibility_EP_SUPPORTED_OPTIMAL,
          "the first half of the EP's own string, '%.100s', is judged optimal, expected anything "
          "else",
          half);
    judging(t, "PLG-034", "the compatibility of the EP's own string, altered");
    optimal = altered_optimal(t, own, &count);
    if (judge(t, "PLG-034", 2 * optimal <= count,
              "the EP's own string '%.100s' with one sign changed is judged optimal at %zu of %zu "
              "places",
              own, optimal, count) &&
        optimal > 0)
        remark(t, "PLG-034", "'%.100s' with one sign changed is optimal at %zu of %zu places", own,
               optimal, count);
}

static void compatibility(trial *t) {
    char own[4096] = "", again[4096] = "";
    static const char *const foreign[] = {"", "no such text", "OtherExecutionProvider;version=1",
                                          "{\"a\": 1}"};
    char *odd;
    size_t i;
    if (!prepare_context(t, MODEL_CHAIN, !t->board->ep.files)) return;
    judging(t, "PLG-024", "GetCompatibilityInfoFromModel");
    if (!judge(t, "PLG-024", own_string(t, in_folder(t, "out/m_ctx.onnx"), own, sizeof own), "%s",
               ort_text))
        return;
    if (!*own) {
        does_not_apply(t, "PLG-024 PLG-025 PLG-034", "the EP writes no compatibility string");
        return;
    }
    judging(t, "PLG-025", "the compatibility of the EP's own string");
    judge_own(t, own, judgement(t, own));
    generate(t, in_folder(t, "src/m.onnx"), in_folder(t, "out/again_ctx.onnx"),
             !t->board->ep.files);
    own_string(t, in_folder(t, "out/again_ctx.onnx"), again, sizeof again);
    judge(t, "PLG-024", strcmp(own, again) == 0,
          "the same model has another string when it is compiled again: '%.100s' and '%.100s'", own,
          again);
    for (i = 0; i < sizeof foreign / sizeof foreign[0]; i++) {
        judging(t, "PLG-034", "the compatibility of '%s'", foreign[i]);
        judge(t, "PLG-034",
              judgement(t, foreign[i]) != OrtCompiledModelCompatibility_EP_SUPPORTED_OPTIMAL,
              "'%s' is judged optimal, expected anything else", foreign[i]);
    }
    judge_altered(t, own);
    odd = (char *)calloc(1, 1 << 20);
    if (!odd) return;
    memset(odd, 'x', (1 << 20) - 1);
    judging(t, "PLG-034", "the compatibility of a text of 1 MiB");
    judge(t, "PLG-034", judgement(t, odd) != OrtCompiledModelCompatibility_EP_SUPPORTED_OPTIMAL,
          "a text of 1 MiB is judged optimal");
    free(odd);
}

/* -------------------------------------------------------------- interrupted */

/* Whatever is in the folder: a context model that is there has its binary, and loads. */
static void judge_folder(trial *t, const char *what) {
    char binary[PATH_MAX];
    ort_spec spec;
    fate f;
    if (!file_exists("out/m_ctx.onnx")) {
        holds(t, "EPC-058");
        return;
    }
    judge(t, "EPC-058",
          !t->board->ep.files ||
              (binary_of("out/m_ctx.onnx", "out", binary, sizeof binary) && file_exists(binary)),
          "%s: the context model names a binary that is not there", what);
    spec = spec_of(t, in_folder(t, "out/m_ctx.onnx"));
    f = fate_of(&spec, in_folder(t, "ref/m.onnx"));
    judge(t, "EPC-058", f == FATE_RIGHT || f == FATE_INVALID_GRAPH, "%s: %s", what, t->answer);
}

static void *generate_one(void *user) {
    trial *t = (trial *)user;
    generate(t, in_folder(t, "src/m.onnx"), in_folder(t, "out/m_ctx.onnx"), false);
    return NULL;
}

static void interrupted(trial *t) {
    trial both[2]; /* a thread each */
    pthread_t threads[2];
    bool ok;
    if (!open_ep(t) || !make_model(t, MODEL_CHAIN, in_folder(t, "src/m.onnx"))) {
        give_up(t, "%s", ort_text);
        return;
    }
    keep_reference(t);
    if (geteuid() != 0) { /* root may write everywhere */
        chmod("out", 0555);
        judging(t, "EPC-058", "generating into a folder that cannot be written to");
        ok = generate(t, in_folder(t, "src/m.onnx"), in_folder(t, "out/m_ctx.onnx"), false);
        judge(t, "EPC-058", !ok,
              "generating into a folder that cannot be written to: expected a "
              "status, found success");
        chmod("out", 0777);
        judge_folder(t, "a folder that cannot be written to");
    }
    judging(t, "EPC-058", "generating into a folder that does not exist");
    judge(t, "EPC-058",
          !generate(t, in_folder(t, "src/m.onnx"), in_folder(t, "nowhere/m_ctx.onnx"), false),
          "generating into a folder that does not exist: expected a status, found success");
    judge(t, "EPC-058", !file_exists("nowhere"), "a folder that did not exist was made");
    judging(t, "EPC-058", "two threads that generate the same files");
    t->board->beside = "threads";
    both[0] = both[1] = *t;
    pthread_create(&threads[0], NULL, generate_one, &both[0]);
    pthread_create(&threads[1], NULL, generate_one, &both[1]);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    judge_folder(t, "two threads that generated the same files");
    t->board->beside = NULL;
}

/* Generates two models in turn under one name until it is killed. */
static void generate_forever(trial *t) {
    static const char *const sources[] = {"ref/m.onnx", "ref/other.onnx"};
    unsigned i;
    if (!open_ep(t)) _exit(0);
    for (i = 0;; i++)
        generate(t, in_folder(t, sources[i % 2]), in_folder(t, "out/m_ctx.onnx"),
                 !t->board->ep.files);
}

/* In a process of its own: ORT does not survive a fork. */
static void judge_remains(trial *t) {
    ort_spec spec;
    fate first, second;
    if (!open_ep(t)) _exit(0);
    judging(t, "EPC-058", "what a killed process left");
    spec = spec_of(t, in_folder(t, "out/m_ctx.onnx"));
    if (file_exists("out/m_ctx.onnx")) {
        first = fate_of(&spec, in_folder(t, "ref/m.onnx"));
        second = fate_of(&spec, in_folder(t, "ref/other.onnx"));
        judge(
            t, "EPC-058", first != FATE_WRONG || second != FATE_WRONG,
            "a process was killed while it generated: what it left loads and gives wrong outputs: "
            "%s",
            ort_text);
    }
    judge(t, "EPC-058",
          generate(t, in_folder(t, "ref/m.onnx"), in_folder(t, "out/m_ctx.onnx"),
                   !t->board->ep.files) &&
              runs_as(&spec, in_folder(t, "ref/m.onnx")),
          "generating again after a process was killed: expected success, found %s", t->answer);
}

static void in_process(trial *t, void (*run)(trial *t), unsigned kill_after) {
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        run(t);
        fflush(NULL);
        _exit(0);
    }
    if (kill_after) {
        usleep(kill_after);
        kill(child, SIGKILL);
    }
    waitpid(child, &status, 0);
    if (kill_after == 0) {
        judge(t, "EPC-058", WIFEXITED(status),
              "what a killed process left ends the process that "
              "loads it, by signal %d",
              WTERMSIG(status));
    }
}

static void killed(trial *t) {
    int i;
    make_folder("ref");
    if (!make_model(t, MODEL_CHAIN, in_folder(t, "ref/m.onnx")) ||
        !make_model(t, MODEL_OTHER, in_folder(t, "ref/other.onnx"))) {
        give_up(t, "%s", ort_text);
        return;
    }
    for (i = 0; i < 6; i++) {
        /* Loading ORT takes some of the time. */
        in_process(t, generate_forever, 150000u + 37700u * (unsigned)i);
        in_process(t, judge_remains, 0);
    }
}

const experiment context_experiments[] = {
    {"the first load", first_load, NEEDS_DEVICE | NEEDS_RUNS | NEEDS_CLAIM | NEEDS_CONTEXTS,
     "EPC-003 EPC-102 EPC-104 EPC-119"},
    {"generated nodes", generated_nodes, NEEDS_DEVICE | NEEDS_CLAIM | NEEDS_CONTEXTS,
     "EPC-005 EPC-009 EPC-013 EPC-021 EPC-022 EPC-023 EPC-024 EPC-025 EPC-026 EPC-029 EPC-030 "
     "EPC-033 EPC-034 EPC-057 EPC-058 EPC-059 PLG-010"},
    {"generated files", generated_files, NEEDS_DEVICE | NEEDS_CLAIM | NEEDS_CONTEXTS | NEEDS_FILES,
     "EPC-009 EPC-016 EPC-017 EPC-019 EPC-032 EPC-042 EPC-068 EPC-071 EPC-075 EPC-076 EPC-077 "
     "EPC-078 EPC-086 EPC-087"},
    {"loading", loading, NEEDS_DEVICE | NEEDS_RUNS | NEEDS_CLAIM | NEEDS_CONTEXTS,
     "EPC-003 EPC-006 EPC-007 EPC-085 EPC-119 PLG-010"},
    {"loading again", load_again, NEEDS_DEVICE | NEEDS_RUNS | NEEDS_CLAIM | NEEDS_CONTEXTS,
     "EPC-001 EPC-016 EPC-038 EPC-043 EPC-044 EPC-097 EPC-099 EPC-100 EPC-101 EPC-102 EPC-103 "
     "EPC-104 EPC-113 EPC-116 EPC-117 EPC-161"},
    {"delivered files", delivered,
     NEEDS_DEVICE | NEEDS_RUNS | NEEDS_CLAIM | NEEDS_CONTEXTS | NEEDS_FILES,
     "EPC-017 EPC-063 EPC-074 EPC-104"},
    {"many loads", many_loads, NEEDS_DEVICE | NEEDS_RUNS | NEEDS_CLAIM | NEEDS_CONTEXTS,
     "PLG-011 PLG-032 PLG-033"},
    {"many generations", many_generations, NEEDS_DEVICE | NEEDS_CLAIM | NEEDS_CONTEXTS,
     "PLG-011 PLG-032 PLG-033"},
    {"a subfolder", subfolder,
     NEEDS_DEVICE | NEEDS_RUNS | NEEDS_CLAIM | NEEDS_CONTEXTS | NEEDS_FILES,
     "EPC-018 EPC-079 EPC-103"},
    {"embedded", embedded,
     NEEDS_DEVICE | NEEDS_RUNS | NEEDS_CLAIM | NEEDS_CONTEXTS | NEEDS_EMBEDDING,
     "EPC-009 EPC-014 EPC-015 EPC-032 EPC-041 EPC-070"},
    {"from memory", from_memory,
     NEEDS_DEVICE | NEEDS_RUNS | NEEDS_CLAIM | NEEDS_CONTEXTS | NEEDS_FILES,
     "EPC-040 EPC-105 EPC-110 EPC-118"},
    {"several partitions", partitions,
     NEEDS_DEVICE | NEEDS_RUNS | NEEDS_CLAIM | NEEDS_CONTEXTS | NEEDS_PARTS,
     "EPC-009 EPC-010 EPC-011 EPC-012 EPC-072 EPC-082 EPC-101 EPC-106 EPC-107 EPC-108 PLG-010"},
    {"several contexts", several_contexts,
     NEEDS_DEVICE | NEEDS_RUNS | NEEDS_CLAIM | NEEDS_CONTEXTS | NEEDS_FILES | NEEDS_PARTS,
     "EPC-106 EPC-107"},
    {"another order", reordered,
     NEEDS_DEVICE | NEEDS_RUNS | NEEDS_CLAIM | NEEDS_CONTEXTS | NEEDS_PARTS,
     "EPC-010 EPC-108 EPC-161"},
    {"session options", by_options, NEEDS_DEVICE | NEEDS_RUNS | NEEDS_CLAIM | NEEDS_CONTEXTS,
     "EPC-003 EPC-039 EPC-042 EPC-058 EPC-061 EPC-062 EPC-064 EPC-065 EPC-066 EPC-067 EPC-068 "
     "EPC-071 EPC-077 EPC-093"},
    {"session options, from memory", options_from_memory,
     NEEDS_DEVICE | NEEDS_RUNS | NEEDS_CLAIM | NEEDS_CONTEXTS, "EPC-061 EPC-069 EPC-094"},
    {"compiled already", compiled_already, NEEDS_DEVICE | NEEDS_RUNS | NEEDS_CLAIM | NEEDS_CONTEXTS,
     "EPC-097"},
    {"prefix", prefix, NEEDS_DEVICE | NEEDS_RUNS | NEEDS_CLAIM | NEEDS_CONTEXTS,
     "EPC-044 EPC-045 EPC-046 EPC-047 EPC-080"},
    {"odd names", odd_names, NEEDS_DEVICE | NEEDS_RUNS | NEEDS_CLAIM | NEEDS_CONTEXTS | NEEDS_FILES,
     "EPC-058 EPC-067 EPC-068 EPC-075 EPC-077 EPC-104"},
    {"external data", external_data, NEEDS_DEVICE | NEEDS_RUNS | NEEDS_CLAIM | NEEDS_CONTEXTS,
     "EPC-048 EPC-049 EPC-050 EPC-052 EPC-084 EPC-085 EPC-091 EPC-095 EPC-096"},
    {"the folder of external data", not_in_data_folder,
     NEEDS_DEVICE | NEEDS_RUNS | NEEDS_CLAIM | NEEDS_CONTEXTS | NEEDS_FILES, "EPC-051"},
    {"an initializers file", initializers,
     NEEDS_DEVICE | NEEDS_RUNS | NEEDS_CLAIM | NEEDS_CONTEXTS | NEEDS_FOREIGN,
     "EPC-085 EPC-089 EPC-092"},
    {"weights", weights_once, NEEDS_DEVICE | NEEDS_CLAIM | NEEDS_CONTEXTS, "EPC-089"},
    {"compatibility", compatibility, NEEDS_DEVICE | NEEDS_CLAIM | NEEDS_CONTEXTS,
     "PLG-024 PLG-025 PLG-034"},
    {"killed", killed, NEEDS_DEVICE | NEEDS_RUNS | NEEDS_CLAIM | NEEDS_CONTEXTS, "EPC-058"},
    {"interrupted", interrupted,
     NEEDS_DEVICE | NEEDS_RUNS | NEEDS_CLAIM | NEEDS_CONTEXTS | NEEDS_FILES, "EPC-058"},
    {NULL, NULL, 0, NULL},
};
