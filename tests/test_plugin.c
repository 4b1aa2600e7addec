/*
 * The plugin EP inside the unmodified ONNX Runtime, driven through ORT's public C API alone. Every
 * case runs with the toy device (tests/ort/device_toy.c) and with the reference NPU: the same
 * scaffolding on two backends. Outputs are compared with ORT's CPU EP while ours is absent, and the
 * CPU fallback is disabled unless a case needs it.
 */
#define _GNU_SOURCE 1
#include <ftw.h>
#include <limits.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "epctx.h"
#include "ort/onnx_bytes.h"
#include "ort/ort_driver.h"
#include "test.h"

typedef struct subject {
    const char *label;      /* of the cases */
    const char *library;
    const char *ep;         /* also the `source` of its nodes */
    const char *short_name; /* [ep] in [model]_[ep].bin */
} subject;

static const subject subjects[] = {
    {"toy", "libtoy_ep.so", "ToyExecutionProvider", "toy"},
    {"npu", "libepctx_ep.so", "EpctxNpuExecutionProvider", "npu"},
};
static const subject *ep; /* the one under test */
static char plugins[PATH_MAX]; /* folder of the plugins, absolute */
static char folder[256];  /* for the files of the running case; empty at its start */

/* ------------------------------------------------------------------- files */

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st, (void)kind, (void)ftw;
    return remove(path);
}

static void clear_folder(void)
{
    if (*folder) nftw(folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    mkdir(folder, 0777);
}

/* "folder/name", valid until eight further calls. */
static const char *in_folder(const char *name)
{
    static char paths[8][512];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static bool exists(const char *name)
{
    struct stat st;
    return stat(in_folder(name), &st) == 0;
}

static bool save(const char *name, const void *data, size_t size)
{
    FILE *file = fopen(in_folder(name), "wb");
    const bool ok = file && fwrite(data, 1, size, file) == size;
    return file && fclose(file) == 0 && ok;
}

static void *slurp(const char *name, size_t *size)
{
    FILE *file = fopen(in_folder(name), "rb");
    uint8_t *data = (uint8_t *)malloc(1 << 24);
    *size = 0;
    if (!file || !data) {
        if (file) fclose(file);
        free(data);
        return NULL;
    }
    *size = fread(data, 1, 1 << 24, file);
    fclose(file);
    return data;
}

static size_t count_files(void)
{
    char command[400], line[32] = "0";
    FILE *pipe;
    snprintf(command, sizeof command, "ls -A '%s' | wc -l", folder);
    pipe = popen(command, "r");
    if (!pipe) return SIZE_MAX;
    if (!fgets(line, sizeof line, pipe)) line[0] = '\0';
    pclose(pipe);
    return (size_t)strtoul(line, NULL, 10);
}

/* "[stem]_[ep].bin" */
static const char *binary_name(const char *stem)
{
    static char name[128];
    snprintf(name, sizeof name, "%s_%s.bin", stem, ep->short_name);
    return name;
}

/* ------------------------------------------------------------------ models */

static const int64_t dims23[2] = {2, 3};

static void weights(float *out, float start)
{
    int i;
    for (i = 0; i < 6; i++) out[i] = start + 0.25f * (float)i;
}

/* y = relu((x + w1) * w2) - x: one partition of four nodes. */
static bool make_one(const char *name)
{
    onnx_model m;
    float w[6];
    bool ok;
    onnx_begin(&m);
    onnx_input(&m.graph, "x", 2, dims23);
    weights(w, -1);
    onnx_floats(&m.graph, "w1", 2, dims23, w);
    weights(w, 2);
    onnx_floats(&m.graph, "w2", 2, dims23, w);
    onnx_node(&m.graph, "Add", "", "add", "x,w1", "a", NULL);
    onnx_node(&m.graph, "Mul", "", "mul", "a,w2", "b", NULL);
    onnx_node(&m.graph, "Relu", "", "relu", "b", "c", NULL);
    onnx_node(&m.graph, "Sub", "", "sub", "c,x", "y", NULL);
    onnx_output(&m.graph, "y", 2, dims23);
    onnx_finish(&m);
    ok = save(name, m.bytes.data, m.bytes.size);
    onnx_free(&m);
    return ok;
}

/* Three partitions with an operator between them that neither backend knows (NegativeLogDet-like
 * exotics are not needed: Gelu of com.microsoft is outside both). Two inputs, two outputs. */
static void three_graph(onnx_model *m, bool external)
{
    float w[6];
    onnx_input(&m->graph, "x", 2, dims23);
    onnx_input(&m->graph, "z", 2, dims23);
    weights(w, 1);
    if (external) {
        onnx_external(&m->graph, "w1", 2, dims23, "weights.bin", 0);
        onnx_external(&m->graph, "w2", 2, dims23, "weights.bin", 24);
    } else {
        onnx_floats(&m->graph, "w1", 2, dims23, w);
        weights(w, -2);
        onnx_floats(&m->graph, "w2", 2, dims23, w);
    }
    onnx_node(&m->graph, "Add", "", "p1", "x,w1", "a", NULL);
    onnx_node(&m->graph, "BiasGelu", "com.microsoft", "cpu1", "a,bias", "b", NULL);
    onnx_node(&m->graph, "Mul", "", "p2", "b,w2", "c", NULL);
    onnx_node(&m->graph, "BiasGelu", "com.microsoft", "cpu2", "c,bias", "d", NULL);
    onnx_node(&m->graph, "Sub", "", "p3", "d,z", "y", NULL);
    onnx_node(&m->graph, "Relu", "", "p3b", "d", "y2", NULL);
    onnx_floats(&m->graph, "bias", 1, dims23 + 1, w);
    onnx_output(&m->graph, "y", 2, dims23);
    onnx_output(&m->graph, "y2", 2, dims23);
    onnx_finish(m);
}

static bool make_three(const char *name)
{
    onnx_model m;
    bool ok;
    onnx_begin(&m);
    three_graph(&m, false);
    ok = save(name, m.bytes.data, m.bytes.size);
    onnx_free(&m);
    return ok;
}

/* ------------------------------------------------------------------ judging */

/* Outputs of the model on the CPU EP. */
static bool cpu_outputs(const char *path, ort_values *out)
{
    ort_spec spec;
    OrtSession *session = NULL;
    bool ok;
    memset(&spec, 0, sizeof spec);
    spec.path = path;
    ok = ort_session(&spec, &session) && ort_run(session, 7, out);
    if (session) ort->ReleaseSession(session);
    return ok;
}

/* Makes a session of `spec`, runs it, compares with the CPU's outputs of `model`, and answers
 * how many nodes of ours ran (0: something failed, see ort_text). */
static size_t check_run(const ort_spec *spec, const char *model)
{
    OrtSession *session = NULL;
    ort_values want, got;
    size_t nodes = 0;
    char text[sizeof ort_text];
    memset(&want, 0, sizeof want);
    memset(&got, 0, sizeof got);
    if (ort_session(spec, &session) && cpu_outputs(model, &want) && ort_run(session, 7, &got) &&
        ort_same(&got, &want)) {
        nodes = ort_assigned(session, ep->ep);
        if (nodes == 0) snprintf(ort_text, sizeof ort_text, "no node ran on %s", ep->ep);
    }
    memcpy(text, ort_text, sizeof text);
    ort_values_free(&want);
    ort_values_free(&got);
    if (session) ort->ReleaseSession(session);
    memcpy(ort_text, text, sizeof text);
    return nodes == SIZE_MAX ? 0 : nodes;
}

static ort_spec spec_of(const char *path)
{
    ort_spec spec;
    memset(&spec, 0, sizeof spec);
    spec.ep = ep->ep;
    spec.path = path;
    return spec;
}

/* Creates a session for its side effect. */
static bool make_session(const ort_spec *spec)
{
    OrtSession *session = NULL;
    const bool ok = ort_session(spec, &session);
    if (session) ort->ReleaseSession(session);
    return ok;
}

#define CHECK_ORT(call) CHECK(call, "%s: expected success, found %d: %s", #call, ort_code, ort_text)
/* `call` fails with ORT's code `code` and a message that holds `text`. */
#define CHECK_ORT_FAILS(call, code, text)                                                          \
    do {                                                                                           \
        CHECK(!(call), "%s: expected failure %d, found success", #call, (int)(code));              \
        CHECK(ort_code == (int)(code) && strstr(ort_text, text),                                   \
              "%s: expected %d with \"%s\", found %d: %s", #call, (int)(code), text, ort_code,     \
              ort_text);                                                                           \
    } while (0)

/* The EPContext nodes of a model in the folder. */
typedef struct nodes {
    epctx_model model;
    epctx_epnode list[8];
    epctx_node_view views[8];
    size_t count, others;
} nodes;

static bool read_nodes(const char *name, nodes *out)
{
    epctx_error error;
    epctx_cursor it;
    epctx_node_view view;
    memset(out, 0, sizeof *out);
    epctx_error_clear(&error);
    if (epctx_model_open_file(&out->model, in_folder(name), NULL, &error) != EPCTX_OK) {
        snprintf(ort_text, sizeof ort_text, "%s", error.message);
        return false;
    }
    it = epctx_graph_nodes(epctx_model_graph(&out->model));
    while (epctx_next_node(&it, &view)) {
        if (!epctx_is_epnode(&view)) {
            out->others++;
        } else if (out->count < 8) {
            out->views[out->count] = view;
            if (epctx_epnode_read(&view, &out->list[out->count++], &error) != EPCTX_OK) {
                snprintf(ort_text, sizeof ort_text, "%s", error.message);
                return false;
            }
        }
    }
    return true;
}

/* ------------------------------------------------------------------- cases */

TEST(jit)
{
    ort_spec spec = spec_of(in_folder("m.onnx"));
    CHECK_TRUE(make_one("m.onnx"));
    CHECK(check_run(&spec, spec.path) == 4, "%s", ort_text);
    CHECK_INT(count_files(), 1);
}

TEST(generate_by_options)
{
    static const char *const config[] = {"ep.context_enable", "1", NULL};
    ort_spec spec = spec_of(in_folder("m.onnx"));
    nodes n;
    CHECK_TRUE(make_one("m.onnx"));
    spec.config = config;
    /* The session that generates is also good for running. */
    CHECK(check_run(&spec, spec.path) == 4, "%s", ort_text);
    CHECK_INT(count_files(), 3);
    CHECK(exists("m_ctx.onnx") && exists(binary_name("m")), "expected m_ctx.onnx and %s",
          binary_name("m"));
    CHECK(read_nodes("m_ctx.onnx", &n), "%s", ort_text);
    CHECK_INT(n.count, 1);
    CHECK_INT(n.others, 0);
    CHECK_INT(n.list[0].main_context, 1);
    CHECK_INT(n.list[0].embed_mode, 0);
    CHECK_TRUE(epctx_str_is(n.list[0].ep_cache_context, binary_name("m")));
    CHECK_TRUE(epctx_str_is(n.list[0].source, ep->ep));
    CHECK_TRUE(epctx_str_is(n.list[0].onnx_model_filename, "m.onnx"));
    CHECK_TRUE(n.list[0].partition_name.size > 0);
    CHECK_TRUE(n.list[0].ep_sdk_version.size > 0);
    CHECK_TRUE(n.list[0].hardware_architecture.size > 0);
    CHECK_TRUE(epctx_notes_hash(n.list[0].notes) != 0);
    epctx_model_close(&n.model);
    /* Reload, where the original is gone. */
    spec.path = in_folder("m_ctx.onnx");
    spec.config = NULL;
    CHECK(check_run(&spec, in_folder("m.onnx")) == 1, "%s", ort_text);
}

TEST(generate_embedded)
{
    static const char *const config[] = {"ep.context_enable", "1", "ep.context_embed_mode", "1",
                                         NULL};
    ort_spec spec = spec_of(in_folder("m.onnx"));
    nodes n;
    CHECK_TRUE(make_one("m.onnx"));
    spec.config = config;
    CHECK(check_run(&spec, spec.path) == 4, "%s", ort_text);
    CHECK_INT(count_files(), 2);
    CHECK(read_nodes("m_ctx.onnx", &n), "%s", ort_text);
    CHECK_INT(n.count, 1);
    CHECK_INT(n.list[0].embed_mode, 1);
    CHECK_TRUE(n.list[0].ep_cache_context.size > 60);
    epctx_model_close(&n.model);
    spec.path = in_folder("m_ctx.onnx");
    spec.config = NULL;
    CHECK(check_run(&spec, in_folder("m.onnx")) == 1, "%s", ort_text);
}

TEST(partitions_in_one_binary)
{
    static const char *const config[] = {"ep.context_enable", "1", NULL};
    ort_spec spec = spec_of(in_folder("m.onnx"));
    nodes n;
    size_t i, primaries = 0;
    CHECK_TRUE(make_three("m.onnx"));
    spec.config = config;
    spec.allow_cpu = true;
    CHECK(check_run(&spec, spec.path) == 4, "%s", ort_text);
    CHECK_INT(count_files(), 3);
    CHECK(read_nodes("m_ctx.onnx", &n), "%s", ort_text);
    CHECK_INT(n.count, 3);
    CHECK_INT(n.others, 2);
    for (i = 0; i < 3; i++) {
        primaries += n.list[i].main_context == 1;
        CHECK_INT(n.list[i].embed_mode, 0);
        CHECK_INT(n.list[i].ep_cache_context.size > 0, n.list[i].main_context);
    }
    CHECK_INT(primaries, 1);
    epctx_model_close(&n.model);
    spec.path = in_folder("m_ctx.onnx");
    spec.config = NULL;
    CHECK(check_run(&spec, in_folder("m.onnx")) == 3, "%s", ort_text);
}

/* -------------------------------------------------------------------- main */

/* This program is build/tests/test_plugin or build/asan/tests/test_plugin; the plugins made by the
 * same compiler flags are two steps up. */
static bool find_plugins(const char *program)
{
    int i;
    if (!realpath(program, plugins)) return false;
    for (i = 0; i < 2; i++) {
        char *slash = strrchr(plugins, '/');
        if (!slash) return false;
        *slash = '\0';
    }
    return true;
}

static bool register_library(const char *name, const char *file)
{
    char path[PATH_MAX + 64];
    /* ORT looks for a relative path beside libonnxruntime. */
    snprintf(path, sizeof path, "%s/%s", plugins, file);
    return ort_ok(ort->RegisterExecutionProviderLibrary(ort_env, name, path));
}

static void run_case(const char *name, void (*body)(void))
{
    char full[128];
    clear_folder();
    snprintf(full, sizeof full, "%s %s", ep->label, name);
    test_run(full, body);
}

#define EACH(name)                                                                                 \
    do {                                                                                           \
        if (test_wanted(argc, argv, #name)) run_case(#name, test_case_##name);                     \
    } while (0)

int main(int argc, char **argv)
{
    const char *tmp = getenv("TMPDIR");
    size_t i;
    snprintf(folder, sizeof folder, "%s/epctx_plugin_XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!find_plugins(argv[0]) || !mkdtemp(folder)) return 1;
    test_name = "open";
    if (!ort_open(false)) {
        printf("skip plugin: %s\n", ort_text);
        return 0;
    }
    for (i = 0; i < sizeof subjects / sizeof subjects[0]; i++) {
        char file[PATH_MAX + 64];
        ep = &subjects[i];
        snprintf(file, sizeof file, "%s/%s", plugins, ep->library);
        if (access(file, R_OK) != 0) {
            printf("skip %s: %s is not built\n", ep->label, ep->library);
            continue;
        }
        if (!register_library(ep->label, ep->library)) {
            printf("FAIL %s register: %s\n", ep->label, ort_text);
            test_failures++;
            continue;
        }
        EACH(jit);
        EACH(generate_by_options);
        EACH(generate_embedded);
        EACH(partitions_in_one_binary);
        ort_ok(ort->UnregisterExecutionProviderLibrary(ort_env, ep->label));
    }
    ort->ReleaseEnv(ort_env);
    nftw(folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    return test_end();
}
