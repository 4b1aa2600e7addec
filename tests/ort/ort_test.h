/*
 * The harness of the test programs for the plugin EP: the unmodified ONNX Runtime, driven through
 * its public C API alone (examples/epctx/ort/driver.h). Every case runs with the toy device
 * (device_toy.c) and with the reference NPU: the same scaffolding on two backends. Here are a
 * folder for the files of a case, small models, the comparison with ORT's CPU EP while ours is
 * absent, and the program:
 *
 *     static const ort_case cases[] = {ORT_CASE(jit), ORT_CASE_OF("toy", run_fails)};
 *
 *     int main(int argc, char **argv)
 *     {
 *         if (!ort_test_begin(argv[0])) return ort_test_end();
 *         ort_test_cases(argc, argv, cases, sizeof cases / sizeof cases[0]);
 *         return ort_test_end();
 *     }
 *
 * The CPU fallback is disabled unless a case allows it.
 *
 * For your EP: EPCTX_TEST_EP="LABEL LIBRARY EP_NAME SHORT_NAME" runs the cases with it instead. It
 * must take Add, Sub, Mul and Relu of float. Cases about one of the other devices are skipped.
 */
#ifndef ORT_TEST_H
#define ORT_TEST_H

#ifndef _GNU_SOURCE
#error "define _GNU_SOURCE before the first include"
#endif
#include <pthread.h>
#if !defined(_WIN32) /* tests/windows.h is in front of us */
#include <dlfcn.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#endif

#include "../test.h"
#include "epctx.h"
#include "onnx_bytes.h"
#include <onnxruntime_c_api.h>

#include "examples/epctx/ort/driver.h"
#include "examples/plugin_ep/ort131.h"

/* How the makefile calls a plugin, and what the system calls the folder for passing files. */
#if defined(_WIN32)
#define PLUGIN(name) name ".dll"
#define TEMPORARY    "TEMP"
#else
#define PLUGIN(name) "lib" name ".so"
#define TEMPORARY    "TMPDIR"
#endif

typedef struct subject {
    const char *label;      /* of the cases */
    const char *library;    /* beside the test program's folder, or a path with a slash */
    const char *ep;         /* also the `source` of its nodes */
    const char *short_name; /* [ep] in [model]_[ep].bin */
    /* NULL and 0: not known, not checked. */
    const char *vendor, *version;
    uint32_t vendor_id;
    const char *architecture, *sdk, *old_sdk; /* old: better compile again */
    const char *option[3];                    /* an EP option and a value, for a session apart */
} subject;

static const subject subjects[] = {
    {"toy",
     PLUGIN("toy_ep"),
     "ToyExecutionProvider",
     "toy",
     "epctx tests",
     "1.2.0",
     0x7079,
     "abacus",
     "1.2.0",
     "1.99.0",
     {"architecture", "slide-rule", NULL}},
    {"npu",
     PLUGIN("epctx_ep"),
     "EpctxNpuExecutionProvider",
     "npu",
     "epctx",
     EPCTX_VERSION_STRING,
     0xe9c7,
     "generic",
     "0.1.0",
     "0.99.0",
     {"hardware_architecture", "generic", NULL}},
};
enum { SUBJECT_COUNT = sizeof subjects / sizeof subjects[0] };
static subject other_ep;       /* of EPCTX_TEST_EP, instead of all these */
static const subject *ep;      /* the one under test */
static char program[PATH_MAX]; /* this one, absolute */
static char plugins[PATH_MAX]; /* folder of the plugins, absolute */
static char folder[256];       /* for the files of the running case; empty at its start */
static size_t folder_files;

#if defined(__GNUC__)
#define ORT_UNUSED __attribute__((unused))
#else
#define ORT_UNUSED
#endif

/* The reference NPU, which the scripts work with. */
ORT_UNUSED static const subject *npu_subject(void) {
    size_t i;
    for (i = 0; i + 1 < SUBJECT_COUNT && strcmp(subjects[i].label, "npu") != 0; i++) {
    }
    return &subjects[i];
}

/* The subject that is not under test; NULL when there is none or it is not built. */
ORT_UNUSED static const subject *second_subject(void) {
    char file[PATH_MAX + 64];
    size_t i;
    for (i = 0; i < SUBJECT_COUNT && ep != &other_ep; i++) {
        if (&subjects[i] == ep) continue;
        snprintf(file, sizeof file, "%s/%s", plugins, subjects[i].library);
        if (access(file, R_OK) == 0) return &subjects[i];
    }
    return NULL;
}

/* ------------------------------------------------------------------- files */

ORT_UNUSED static int remove_entry(const char *path, const struct stat *st, int kind,
                                   struct FTW *ftw) {
    (void)st, (void)kind, (void)ftw;
    return remove(path);
}

ORT_UNUSED static void clear_folder(void) {
    if (*folder) nftw(folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    mkdir(folder, 0777);
}

/* "folder/name", valid until 64 further calls. */
ORT_UNUSED static const char *in_folder(const char *name) {
    static char paths[64][1024];
    static unsigned next;
    char *path = paths[next++ % 64];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

ORT_UNUSED static bool exists(const char *name) {
    struct stat st;
    return stat(in_folder(name), &st) == 0;
}

ORT_UNUSED static bool save(const char *name, const void *data, size_t size) {
    FILE *file = fopen(in_folder(name), "wb");
    const bool ok = file && fwrite(data, 1, size, file) == size;
    return file && fclose(file) == 0 && ok;
}

/* Ends the model, writes it and frees it. */
ORT_UNUSED static bool save_model(const char *name, onnx_model *m) {
    bool ok;
    onnx_finish(m);
    ok = save(name, m->bytes.data, m->bytes.size);
    onnx_free(m);
    return ok;
}

ORT_UNUSED static void *slurp(const char *name, size_t *size) {
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

ORT_UNUSED static int count_entry(const char *path, const struct stat *st, int kind,
                                  struct FTW *ftw) {
    (void)path, (void)st, (void)kind;
    folder_files += ftw->level == 1;
    return 0;
}

ORT_UNUSED static size_t count_files(void) {
    folder_files = 0;
    return nftw(folder, count_entry, 8, FTW_PHYS) == 0 ? folder_files : SIZE_MAX;
}

/* "[stem]_[ep].bin" */
ORT_UNUSED static const char *binary_name(const char *stem) {
    static char name[128];
    snprintf(name, sizeof name, "%s_%s.bin", stem, ep->short_name);
    return name;
}

/* --------------------------------------------- functions with an experimental past */

/* The experimental function of that name, which ORT 1.28 to 1.30 have. A name that is missing is an
 * error: who goes on without it works with plain files unawares. */
ORT_UNUSED static bool ort_experimental(const char *name, void *function, size_t size) {
    OrtExperimentalFnPtr found = ort_version < 28 ? NULL : ort->GetExperimentalFunction(name);
    if (!found || sizeof found != size) {
        snprintf(ort_text, sizeof ort_text, "ONNX Runtime %s has no %s",
                 ort_base->GetVersionString(), name);
        return false;
    }
    memcpy(function, &found, size);
    return true;
}

/* The application's callbacks for data of EPContext nodes; NULL takes them away. */
ORT_UNUSED static bool ort_set_reader(OrtSessionOptions *options, ort131_read_fn callback,
                                      void *state) {
    const ort131_api *stable = ort131_api_of(ort, ort_version);
    OrtStatus *(ORT_API_CALL * set)(OrtSessionOptions *, ort131_read_fn, void *) = NULL;
    if (stable) set = stable->SessionOptionsSetEpContextDataReadFunc;
    if (!set && !ort_experimental("OrtApi_SessionOptions_SetEpContextDataReadFunc_SinceV28", &set,
                                  sizeof set))
        return false;
    return ort_ok(set(options, callback, state));
}

ORT_UNUSED static bool ort_set_writer(OrtModelCompilationOptions *options, ort131_write_fn callback,
                                      void *state) {
    const ort131_compile_api *stable = ort131_compile_of(ort_compile, ort_version);
    OrtStatus *(ORT_API_CALL * set)(OrtModelCompilationOptions *, ort131_write_fn, void *) = NULL;
    if (stable) set = stable->ModelCompilationOptions_SetEpContextDataWriteFunc;
    if (!set && !ort_experimental(
                    "OrtCompileApi_ModelCompilationOptions_SetEpContextDataWriteFunc_SinceV28",
                    &set, sizeof set))
        return false;
    return ort_ok(set(options, callback, state));
}

/* ------------------------------------------------------------------ models */

static const int64_t dims23[2] = {2, 3};

ORT_UNUSED static void weights(float *out, float start) {
    int i;
    for (i = 0; i < 6; i++) out[i] = start + 0.25f * (float)i;
}

/* y = relu((x + w1) * w2) - x: one partition of four nodes. */
ORT_UNUSED static bool make_one(const char *name) {
    onnx_model m;
    float w[6];
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
    return save_model(name, &m);
}

/* Three partitions with an operator of com.microsoft between them, which no backend here knows. Two
 * inputs, two outputs. */
ORT_UNUSED static void three_graph(onnx_model *m, bool external) {
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
    weights(w, 0);
    onnx_node(&m->graph, "Add", "", "p1", "x,w1", "a", NULL);
    onnx_node(&m->graph, "BiasGelu", "com.microsoft", "cpu1", "a,bias", "b", NULL);
    onnx_node(&m->graph, "Mul", "", "p2", "b,w2", "c", NULL);
    onnx_node(&m->graph, "BiasGelu", "com.microsoft", "cpu2", "c,bias", "d", NULL);
    onnx_node(&m->graph, "Sub", "", "p3", "d,z", "y", NULL);
    onnx_node(&m->graph, "Relu", "", "p3b", "d", "y2", NULL);
    onnx_floats(&m->graph, "bias", 1, dims23 + 1, w);
    /* ORT infers the types in between, epctx.h believes the model. */
    onnx_value(&m->graph, ONNX_VALUE, "a", ONNX_FLOAT, 2, dims23);
    onnx_value(&m->graph, ONNX_VALUE, "b", ONNX_FLOAT, 2, dims23);
    onnx_value(&m->graph, ONNX_VALUE, "c", ONNX_FLOAT, 2, dims23);
    onnx_value(&m->graph, ONNX_VALUE, "d", ONNX_FLOAT, 2, dims23);
    onnx_output(&m->graph, "y", 2, dims23);
    onnx_output(&m->graph, "y2", 2, dims23);
}

ORT_UNUSED static bool make_three(const char *name) {
    onnx_model m;
    onnx_begin(&m);
    three_graph(&m, false);
    return save_model(name, &m);
}

/* ------------------------------------------------------------------ judging */

/* Outputs of the model on the CPU EP. `plain`: as the model says, where an optimized quantized
 * model computes in integers. */
ORT_UNUSED static bool cpu_outputs_of(const char *path, bool plain, ort_values *out) {
    ort_spec spec;
    OrtSession *session = NULL;
    bool ok;
    memset(&spec, 0, sizeof spec);
    spec.path = path;
    spec.plain = plain;
    ok = ort_session(&spec, &session) && ort_run(session, 7, out);
    if (session) ort->ReleaseSession(session);
    return ok;
}

ORT_UNUSED static bool cpu_outputs(const char *path, ort_values *out) {
    return cpu_outputs_of(path, false, out);
}

/* `got` are the outputs of `model` on the CPU; of a deep model in one of two ways. */
ORT_UNUSED static bool as_on_cpu(const char *model, const ort_values *got) {
    int plain;
    bool same = false;
    for (plain = 0; plain <= (ort_relative > 0) && !same; plain++) {
        ort_values want;
        memset(&want, 0, sizeof want);
        same = cpu_outputs_of(model, plain, &want) && ort_same(got, &want);
        ort_values_free(&want);
    }
    return same;
}

static size_t nodes_left; /* to other EPs, in the session of the last check_run */

/* Makes a session of `spec`, runs it, compares with the CPU's outputs of `model`, and answers
 * how many nodes of ours ran (0: something failed, see ort_text). */
ORT_UNUSED static size_t check_run(const ort_spec *spec, const char *model) {
    OrtSession *session = NULL;
    ort_values got;
    size_t nodes = 0;
    memset(&got, 0, sizeof got);
    if (ort_session(spec, &session) && ort_run(session, 7, &got) && as_on_cpu(model, &got)) {
        nodes = ort_assigned(session, ep->ep);
        nodes_left = ort_assigned(session, NULL) - nodes;
        if (nodes == 0) snprintf(ort_text, sizeof ort_text, "no node ran on %s", ep->ep);
    }
    ort_values_free(&got);
    if (session) ort->ReleaseSession(session);
    if (nodes != SIZE_MAX && nodes) snprintf(ort_text, sizeof ort_text, "%zu nodes ran", nodes);
    return nodes == SIZE_MAX ? 0 : nodes;
}

ORT_UNUSED static ort_spec spec_of(const char *path) {
    ort_spec spec;
    memset(&spec, 0, sizeof spec);
    spec.ep = ep->ep;
    spec.path = path;
    return spec;
}

/* Creates a session for its side effect. */
ORT_UNUSED static bool make_session(const ort_spec *spec) {
    OrtSession *session = NULL;
    const bool ok = ort_session(spec, &session);
    if (session) ort->ReleaseSession(session);
    return ok;
}

#define CHECK_ORT(call) CHECK(call, "%s: expected success, found %d: %s", #call, ort_code, ort_text)
/* `call` fails with ORT's code `code` and a message that holds `text`. */
#define CHECK_ORT_FAILS(call, code, text) \
    do { \
        CHECK(!(call), "%s: expected failure %d, found success", #call, (int)(code)); \
        CHECK(ort_code == (int)(code) && strstr(ort_text, text), \
              "%s: expected %d with \"%s\", found %d: %s", #call, (int)(code), text, ort_code, \
              ort_text); \
    } while (0)

/* -------------------------------------------------------- generated models */

ORT_UNUSED static const char *const generate[] = {"ep.context_enable", "1", NULL};
ORT_UNUSED static const char *const generate_embed[] = {"ep.context_enable", "1",
                                                        "ep.context_embed_mode", "1", NULL};

/* The folder's m.onnx becomes m_ctx.onnx and a binary. */
ORT_UNUSED static bool generate_one(const char *const *config) {
    ort_spec spec = spec_of(in_folder("m.onnx"));
    spec.config = config;
    spec.allow_cpu = true;
    return make_session(&spec);
}

/* One EPContext node x -> y; NULL strings and negative numbers are left out. */
typedef struct context_spec {
    const char *source, *partition, *notes, *path, *architecture, *sdk, *remark;
    const void *payload;
    size_t payload_size;
    int64_t main_context, embed_mode;
    int64_t remark_number; /* instead of the text; 0: none */
} context_spec;

ORT_UNUSED static void add_context(onnx_model *m, const context_spec *c, const char *name,
                                   const char *in, const char *out) {
    onnx_bytes attrs = {0};
    if (c->main_context >= 0) onnx_attr_int(&attrs, "main_context", c->main_context);
    if (c->embed_mode >= 0) onnx_attr_int(&attrs, "embed_mode", c->embed_mode);
    if (c->path) onnx_attr_text(&attrs, "ep_cache_context", c->path);
    if (c->payload) onnx_attr_data(&attrs, "ep_cache_context", c->payload, c->payload_size);
    if (c->source) onnx_attr_text(&attrs, "source", c->source);
    if (c->partition) onnx_attr_text(&attrs, "partition_name", c->partition);
    if (c->notes) onnx_attr_text(&attrs, "notes", c->notes);
    if (c->architecture) onnx_attr_text(&attrs, "hardware_architecture", c->architecture);
    if (c->sdk) onnx_attr_text(&attrs, "ep_sdk_version", c->sdk);
    if (c->remark) onnx_attr_text(&attrs, "remark", c->remark); /* the EP's own */
    if (c->remark_number) onnx_attr_int(&attrs, "remark", c->remark_number);
    onnx_node(&m->graph, "EPContext", "com.microsoft", name, in, out, &attrs);
}

ORT_UNUSED static bool make_context(const char *name, const context_spec *c) {
    onnx_model m;
    onnx_begin(&m);
    onnx_input(&m.graph, "x", 2, dims23);
    onnx_output(&m.graph, "y", 2, dims23);
    add_context(&m, c, "ctx", "x", "y");
    return save_model(name, &m);
}

ORT_UNUSED static context_spec context_of(const char *path, const char *partition) {
    context_spec c;
    memset(&c, 0, sizeof c);
    c.source = ep->ep;
    c.main_context = 1;
    c.path = path;
    c.partition = partition;
    return c;
}

ORT_UNUSED static context_spec embedded_of(const void *payload, size_t size,
                                           const char *partition) {
    context_spec c = context_of(NULL, partition);
    c.embed_mode = 1;
    c.payload = payload;
    c.payload_size = size;
    return c;
}

/* Text of a model that is about to be closed. */
ORT_UNUSED static void keep(char *out, size_t room, epctx_str text) {
    snprintf(out, room, "%.*s", (int)text.size, text.data);
}

/* ------------------------------------------------------------------ program */

#if defined(__SANITIZE_THREAD__)
/* ORT was not built for ThreadSanitizer, which sees its locks but not its atomics: what ORT does
 * with memory (through libc) does not count, what its threads do in the plugin does. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void) {
    return "ignore_noninstrumented_modules=1";
}
#endif

/* The program is build/tests/test_X, or build/asan/..., build/tsan/...; the plugins made by the
 * same compiler flags are two steps up. */
ORT_UNUSED static bool find_plugins(const char *name) {
    int i;
    if (!realpath(name, program)) return false;
    memcpy(plugins, program, sizeof plugins);
    for (i = 0; i < 2; i++) {
        char *slash = strrchr(plugins, '/');
        if (!slash) return false;
        *slash = '\0';
    }
    return true;
}

/* ORT looks for a relative path beside libonnxruntime. */
ORT_UNUSED static const char *library_path(const char *file) {
    static char path[PATH_MAX + 64];
    if (!strchr(file, '/') || !realpath(file, path))
        snprintf(path, sizeof path, "%s/%s", plugins, file);
    return path;
}

ORT_UNUSED static bool register_library(const char *name, const char *file) {
    const char *path = library_path(file);
    return ort_ok(ort->RegisterExecutionProviderLibrary(ort_env, name, ort_path(path)));
}

/* The toy whose Nth allocation fails, in the place of the plugin under test. */
typedef struct oom_library {
    void *library; /* stays loaded when ORT closes it */
    void (*arm)(long n);
    bool (*fired)(void);
    long (*alive)(void);
} oom_library;

ORT_UNUSED static bool oom_open(oom_library *oom) {
    memset(oom, 0, sizeof *oom);
    oom->library = dlopen(library_path(PLUGIN("toy_oom_ep")), RTLD_NOW | RTLD_LOCAL);
    if (!oom->library || !ort_symbol(oom->library, "oom_arm", &oom->arm, sizeof oom->arm) ||
        !ort_symbol(oom->library, "oom_fired", &oom->fired, sizeof oom->fired) ||
        !ort_symbol(oom->library, "oom_alive", &oom->alive, sizeof oom->alive)) {
        snprintf(ort_text, sizeof ort_text, PLUGIN("toy_oom_ep") ": %s", dlerror());
        return false;
    }
    return ort_ok(ort->UnregisterExecutionProviderLibrary(ort_env, ep->label));
}

ORT_UNUSED static bool oom_close(oom_library *oom) {
    oom->arm(0);
    dlclose(oom->library);
    return register_library(ep->label, ep->library);
}

/* Runs this program again, with two words behind its name and the defect `what` for bad_ep.c: its
 * exit code, or -1 when it did not get that far. */
ORT_UNUSED static int run_self(char *const *words, const char *what) {
#if !defined(_WIN32)
    int state = 0;
    pid_t child;
#endif
    char path[PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/" PLUGIN("toy_ep"), plugins);
    setenv("EPCTX_TOY_EP", path, 1);
    setenv("EPCTX_BAD_EP", what, 1);
    fflush(NULL);
#if defined(_WIN32)
    return windows_run(words);
#else
    child = fork();
    if (child == 0) {
        /* Another processor's programs need something that runs them. */
        const char *runner = getenv("EPCTX_TEST_RUNNER");
        if (runner) execl(runner, runner, words[0], words[1], words[2], (char *)NULL);
        execv(words[0], words);
        _exit(127);
    }
    if (child < 0 || waitpid(child, &state, 0) != child) return 127;
    return WIFEXITED(state) ? WEXITSTATUS(state) : -1;
#endif
}

/* The beginning of that process, without a folder: what ends it does not clear away. The broken EP
 * is the toy. An exception ends it, whoever else would like to see it. */
ORT_UNUSED static bool run_self_begin(const char *name) {
#if defined(_WIN32)
    SetErrorMode(SEM_FAILCRITICALERRORS | SEM_NOGPFAULTERRORBOX);
#else
    FILE *quiet = freopen("/dev/null", "w", stderr);
    (void)quiet;
    signal(SIGSEGV, SIG_DFL); /* a sanitizer would catch it */
#endif
    ep = &subjects[0];
    return find_plugins(name) && ort_open(false);
}

ORT_UNUSED static void run_case(const char *name, void (*body)(void)) {
    char full[128];
    clear_folder();
    snprintf(full, sizeof full, "%s %s", ep->label, name);
    test_run(full, body);
}

/* A case of a test program; `only`: the label of the one subject that it is about, or NULL. */
typedef struct ort_case {
    const char *name;
    void (*body)(void);
    const char *only;
} ort_case;

#define ORT_CASE(name) \
    { #name, test_case_##name, NULL }
#define ORT_CASE_OF(label, name) \
    { #name, test_case_##name, label }

/* Finds the plugins, makes the folder and opens ORT. False: nothing can be tested, which is
 * told. */
ORT_UNUSED static bool ort_test_begin(const char *name) {
    const char *tmp = getenv(TEMPORARY);
    char real[PATH_MAX];
    if (!tmp || !*tmp || !realpath(tmp, real)) snprintf(real, sizeof real, "/tmp");
    snprintf(folder, sizeof folder, "%.200s/epctx_\xc3\xa9_XXXXXX", real);
    if (!find_plugins(name) || !mkdtemp(folder)) {
        printf("FAIL plugin: no folder for the files, or none of this program\n");
        folder[0] = '\0';
        test_failures++;
        return false;
    }
    if (ort_open(false)) return true;
    printf("skip plugin: %s\n", ort_text);
    return false;
}

/* A text of this process, "LABEL LIBRARY EP_NAME SHORT_NAME", as a subject. */
ORT_UNUSED static bool read_subject(char *text) {
    const char *words[4] = {NULL};
    size_t count = 0;
    for (text = strtok(text, " "); text; text = strtok(NULL, " ")) {
        if (count < 4) words[count] = text;
        count++;
    }
    other_ep.label = words[0];
    other_ep.library = words[1];
    other_ep.ep = words[2];
    other_ep.short_name = words[3];
    return count == 4;
}

/* Runs the wanted cases with one plugin. */
ORT_UNUSED static void ort_test_subject(int argc, char **argv, const ort_case *cases,
                                        size_t count) {
    size_t i;
    if (!register_library(ep->label, ep->library)) {
        printf("FAIL %s register: %s\n", ep->label, ort_text);
        test_failures++;
        return;
    }
    for (i = 0; i < count; i++) {
        if (!test_wanted(argc, argv, cases[i].name)) continue;
        if (!cases[i].only || strcmp(cases[i].only, ep->label) == 0)
            run_case(cases[i].name, cases[i].body);
        else if (ep == &other_ep)
            printf("skip %s %s: about the device '%s'\n", ep->label, cases[i].name, cases[i].only);
    }
    ort_ok(ort->UnregisterExecutionProviderLibrary(ort_env, ep->label));
}

/* Runs the wanted cases with each plugin that is built. */
ORT_UNUSED static void ort_test_cases(int argc, char **argv, const ort_case *cases, size_t count) {
    char *other = getenv("EPCTX_TEST_EP");
    size_t i;
    if (ort_version < 24) {
        printf("skip plugin: it needs ONNX Runtime 1.24, this is %s\n",
               ort_base->GetVersionString());
        return;
    }
    if (other && *other) {
        char words[4 * PATH_MAX];
        snprintf(words, sizeof words, "%s", other);
        ep = &other_ep;
        if (read_subject(words)) {
            ort_test_subject(argc, argv, cases, count);
        } else {
            printf("FAIL plugin: EPCTX_TEST_EP is not LABEL LIBRARY EP_NAME SHORT_NAME\n");
            test_failures++;
        }
        return;
    }
    for (i = 0; i < SUBJECT_COUNT; i++) {
        char file[PATH_MAX + 64];
        ep = &subjects[i];
        snprintf(file, sizeof file, "%s/%s", plugins, ep->library);
        if (access(file, R_OK) == 0)
            ort_test_subject(argc, argv, cases, count);
        else
            printf("skip %s: %s is not built\n", ep->label, ep->library);
    }
}

/* Releases everything; the exit code. */
ORT_UNUSED static int ort_test_end(void) {
    if (ort_env) ort->ReleaseEnv(ort_env);
    if (*folder) nftw(folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    return test_end();
}

#endif
