/*
 * How much memory and time the plugin EP needs inside ONNX Runtime for a model with many weights:
 * to compile it and to load it again, beside ORT's own CPU EP with the same model. Each case prints
 * what it measured and fails when a copy of the weights is held that is not needed. The limits
 * include ONNX Runtime 1.30's own copies: one while it compiles, two or three more of an embedded
 * binary.
 * EPCTX_TEST_LARGE_MIB: another size of the weights.
 */
#define _GNU_SOURCE 1
#include <math.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif
#if !defined(_WIN32)
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#endif

#include "ort/ort_test.h"

enum { WEIGHTS = 4 };

static double mib; /* of all weights */

/* ------------------------------------------------------------- measurement */

typedef struct cost {
    double peak; /* MiB, most during the work, above what was there before */
    double left; /* MiB, after it */
    double user, wall;
    double faulted; /* MiB of pages that came to this process, which takes most of the time */
} cost;

static double faulted; /* in the work measured last */

/* A line of /proc/self/status, in MiB. */
static double status_mib(const char *key) {
    char line[256];
    double kib = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, key, strlen(key)) == 0) kib = atof(line + strlen(key));
    if (file) fclose(file);
    return kib / 1024;
}

/* The peak starts again. False: this kernel does not let it. */
static bool reset_peak(void) {
    FILE *file = fopen("/proc/self/clear_refs", "w");
    const bool ok = file && fputs("5", file) >= 0;
#if defined(__GLIBC__)
    malloc_trim(0);
#endif
    return file && fclose(file) == 0 && ok;
}

/* Why nothing can be measured here, or NULL. */
static const char *unmeasured(void) {
#if defined(_WIN32)
    return "/proc tells what a process needs, and is not on Windows";
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return "a sanitizer keeps memory that was freed";
#else
    return reset_peak() ? NULL : "/proc/self/clear_refs cannot be written";
#endif
}

static void stamp(cost *c) {
#if !defined(_WIN32)
    struct rusage used;
    struct timespec now;
    getrusage(RUSAGE_SELF, &used);
    clock_gettime(CLOCK_MONOTONIC, &now);
    c->user = (double)used.ru_utime.tv_sec + (double)used.ru_utime.tv_usec * 1e-6;
    c->faulted = (double)used.ru_minflt * (double)sysconf(_SC_PAGESIZE) / (1 << 20);
    c->wall = (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
#endif
    c->left = status_mib("VmRSS:");
}

static void work_begin(cost *c) {
    reset_peak();
    stamp(c);
}

/* Prints what was used since `from` of work_begin; `most`: limit of the peak, in sizes of the
 * weights; 0: it is ONNX Runtime's alone. */
static void work_end(const char *what, const cost *from, double most) {
    cost used, *c = &used;
    stamp(c);
    c->peak = status_mib("VmHWM:") - from->left;
    c->left -= from->left;
    c->user -= from->user;
    c->wall -= from->wall;
    faulted = c->faulted - from->faulted;
    printf(
        "note %s: %-44s peak %7.1f MiB (%4.2f of the weights), left %7.1f, %5.2f s, user %5.2f\n",
        ep->label, what, c->peak, c->peak / mib, c->left, c->wall, c->user);
    if (most > 0 && strncmp(ort_base->GetVersionString(), "1.30.", 5) == 0) {
        CHECK(c->peak < most * mib, "%s: expected a peak below %.2f of the weights, found %.2f",
              what, most, c->peak / mib);
    }
}

/* ------------------------------------------------------------------ models */

/* Four MatMul, one after the other, with different weights: in a file, or in the model. */
static bool make_weighty(const char *name, bool external) {
    const char *asked = getenv("EPCTX_TEST_LARGE_MIB");
    const double usual = getenv("EPCTX_TEST_QUICK") ? 32 : 64;
    const double wanted = asked && atof(asked) > 0 ? atof(asked) : usual;
    const int64_t side = (int64_t)sqrt(wanted * (1 << 20) / 4 / WEIGHTS);
    const int64_t dims[2] = {side, side}, line[2] = {1, side};
    const size_t size = (size_t)(side * side) * 4;
    float *zeros = external ? NULL : (float *)calloc(1, size);
    onnx_model m;
    bool ok = external || zeros;
    int i;
    mib = (double)size * WEIGHTS / (1 << 20);
    onnx_begin(&m);
    onnx_input(&m.graph, "x", 2, line);
    ok = ok && (!external || save("weights.bin", "", 1));
    for (i = 0; i < WEIGHTS && ok; i++) {
        char in[8] = "x,w0", out[4] = "v0", w[4] = "w0";
        const float first = (float)(i + 1);
        in[3] = w[1] = out[1] = (char)('0' + i);
        if (i) memcpy(in, (const char[]){'v', (char)('0' + i - 1), ',', 'w', out[1], 0}, 6);
        if (i + 1 == WEIGHTS) memcpy(out, "y", 2);
        if (external) {
            FILE *file = fopen(in_folder("weights.bin"), "r+b");
            ok = file && fseek(file, (long)size * i, SEEK_SET) == 0 &&
                 fwrite(&first, sizeof first, 1, file) == 1;
            ok = file && fclose(file) == 0 && ok &&
                 truncate(in_folder("weights.bin"), (off_t)size * (i + 1)) == 0;
            onnx_external(&m.graph, w, 2, dims, "weights.bin", size * (size_t)i);
        } else {
            zeros[0] = first;
            onnx_floats(&m.graph, w, 2, dims, zeros);
        }
        onnx_node(&m.graph, "MatMul", "", w, in, out, NULL);
    }
    onnx_output(&m.graph, "y", 2, line);
    free(zeros);
    return save_model(name, &m) && ok;
}

static void optimized_too(OrtSessionOptions *options, void *user) {
    (void)user;
    ort_ok(ort->SetOptimizedModelFilePath(options, ort_path(in_folder("optimized.onnx"))));
}

static void measure_session(const char *what, const ort_spec *spec, double most) {
    OrtSession *session = NULL;
    cost from;
    bool ok;
    work_begin(&from);
    ok = ort_session(spec, &session);
    work_end(what, &from, most);
    if (session) ort->ReleaseSession(session);
    CHECK(ok, "%s: %s", what, ort_text);
}

/* ------------------------------------------------------------------- cases */

static void compile_by_options(bool external) {
    const char *const where = external ? "external weights" : "inline weights";
    ort_spec cpu = {0}, spec = spec_of(in_folder("m.onnx"));
    char what[128];
    int embed;
    CHECK_TRUE(make_weighty("m.onnx", external));
    cpu.path = spec.path;
    snprintf(what, sizeof what, "%s, CPU EP", where);
    measure_session(what, &cpu, 0);
    cpu.more = optimized_too;
    snprintf(what, sizeof what, "%s, CPU EP, optimized model", where);
    measure_session(what, &cpu, 0);
    remove(in_folder("optimized.onnx"));
    snprintf(what, sizeof what, "%s, compiled now", where);
    measure_session(what, &spec, 2.5);
    for (embed = 0; embed < 2; embed++) {
        spec.config = embed ? generate_embed : generate;
        snprintf(what, sizeof what, "%s, by options, embed %d", where, embed);
        measure_session(what, &spec, embed ? 5.3 : 2.5); /* the session runs: it keeps the binary */
        remove(in_folder("m_ctx.onnx"));
    }
}

TEST(compile_external) {
    const char *why = unmeasured();
    if (why) SKIP("%s", why);
    compile_by_options(true);
}

TEST(compile_inline) {
    const char *why = unmeasured();
    if (why) SKIP("%s", why);
    compile_by_options(false);
}

TEST(compile_api) {
    ort_spec spec = spec_of(in_folder("m.onnx"));
    const char *why = unmeasured();
    int external, to, embed;
    if (why) SKIP("%s", why);
    for (external = 1; external >= 0; external--) {
        clear_folder();
        CHECK_TRUE(make_weighty("m.onnx", external));
        for (to = 0; to < 2; to++) {
            for (embed = 0; embed < 2; embed++) {
                ort_output out = {0};
                char slash[300], what[128];
                cost from;
                bool ok;
                snprintf(slash, sizeof slash, "%s/", folder);
                out.embed = embed;
                if (to == 0) out.path = in_folder("m_ctx.onnx");
                if (to != 0) out.folder = slash, out.name = "m";
                snprintf(what, sizeof what, "%s weights, compile API to %s, embed %d",
                         external ? "external" : "inline", to == 0 ? "file" : "buffer", embed);
                work_begin(&from);
                ok = ort_compile_model(&spec, &out);
                work_end(what, &from, embed ? 4.3 : 2.5);
                free(out.data);
                CHECK_ORT(ok);
                remove(in_folder("m_ctx.onnx"));
            }
        }
    }
}

TEST(load) {
    ort_spec spec = spec_of(in_folder("m_ctx.onnx"));
    const char *why = unmeasured();
    int embed;
    if (why) SKIP("%s", why);
    CHECK_TRUE(make_weighty("m.onnx", true));
    for (embed = 0; embed < 2; embed++) {
        CHECK_ORT(generate_one(embed ? generate_embed : generate));
        measure_session(embed ? "load, embed 1" : "load, embed 0", &spec, embed ? 4.3 : 0.25);
        /* ONNX Runtime reads the model into a growing string and copies the node's attribute three
         * times, all of it memory that is new to the process; the EP copies it once. */
        printf("note %s: pages of %.2f times the weights\n", ep->label, faulted / mib);
        CHECK(faulted < (embed ? 7.6 : 0.5) * mib,
              "expected new pages of %s the weights, found %.2f",
              embed ? "less than 7.6 times" : "less than half of", faulted / mib);
        remove(in_folder("m_ctx.onnx"));
    }
}

static const ort_case cases[] = {
    ORT_CASE_OF("npu", compile_external),
    ORT_CASE_OF("npu", compile_inline),
    ORT_CASE_OF("npu", compile_api),
    ORT_CASE_OF("npu", load),
};

int main(int argc, char **argv) {
#if defined(__GLIBC__)
    mallopt(M_MMAP_THRESHOLD, 1 << 20); /* what is freed goes back to the system */
#endif
    if (!ort_test_begin(argv[0])) return ort_test_end();
    ort_test_cases(argc, argv, cases, sizeof cases / sizeof cases[0]);
    return ort_test_end();
}
