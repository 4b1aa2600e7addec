/*
 * Speed of the reference NPU beside ONNX Runtime's CPU provider:
 *
 *     bench_models MODEL.onnx...        (tests/bench_models.sh builds and runs it)
 *
 * Both run in this process on the same inputs, turn about, each on one thread (for ORT:
 * intra_op_num_threads 1, all its optimizations), and are measured in processor time of this
 * thread, so that other programs disturb little; the best run counts. "speed" is ORT's time divided
 * by ours: 1.00 is as fast, 0.50 takes twice as long. "off" is the largest difference between the
 * outputs in units of the largest number of the output.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "examples/conformance/ort_driver.h"
#include "examples/epctx/cli.h"
#include "examples/epctx/session.h"
#include "examples/epctx/tensors.h"

#define MOST    8
#define ROUNDS  6
#define SECONDS 0.1 /* for one side of a round */

typedef struct ort_side {
    OrtSession *session;
    OrtValue *in[MOST], *out[MOST];
    const char *in_names[MOST], *out_names[MOST];
    size_t in_count, out_count;
} ort_side;

static double cpu_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static char *name_of(const session_value *v) {
    char *s = (char *)calloc(v->type.name.size + 1, 1);
    if (s != NULL) memcpy(s, v->type.name.data, v->type.name.size);
    return s;
}

static bool ort_prepare(ort_side *o, const session *s, const char *file) {
    OrtSessionOptions *options = NULL;
    OrtMemoryInfo *memory = NULL;
    size_t i;
    bool ok = s->input_count <= MOST && s->output_count <= MOST &&
              ort_ok(ort->CreateSessionOptions(&options)) &&
              ort_ok(ort->SetIntraOpNumThreads(options, 1)) &&
              ort_ok(ort->SetInterOpNumThreads(options, 1)) &&
              ort_ok(ort->SetSessionGraphOptimizationLevel(options, ORT_ENABLE_ALL)) &&
              ort_ok(ort->CreateSession(ort_env, file, options, &o->session)) &&
              ort_ok(ort->CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &memory));
    for (i = 0; ok && i < s->input_count; i++) {
        const session_value *v = s->inputs[i];
        o->in_names[i] = name_of(v);
        ok = ort_ok(ort->CreateTensorWithDataAsOrtValue(
            memory, v->data, v->size, v->type.dims, v->type.rank,
            (ONNXTensorElementDataType)v->type.elem_type, &o->in[i]));
    }
    for (i = 0; ok && i < s->output_count; i++) o->out_names[i] = name_of(s->outputs[i]);
    o->in_count = s->input_count;
    o->out_count = s->output_count;
    return ok;
}

static bool ort_step(ort_side *o) {
    size_t i;
    for (i = 0; i < o->out_count; i++) {
        if (o->out[i]) ort->ReleaseValue(o->out[i]);
        o->out[i] = NULL;
    }
    return ort_ok(ort->Run(o->session, NULL, o->in_names, (const OrtValue *const *)o->in,
                           o->in_count, o->out_names, o->out_count, o->out));
}

static bool step(session *s, ort_side *o, double *best) {
    epctx_error error;
    const double start = cpu_now();
    double took;
    bool ok = o ? ort_step(o) : session_run(s, &error) == EPCTX_OK;
    took = cpu_now() - start;
    if (took < *best) *best = took;
    return ok;
}

/* Runs one side for a while. */
static bool side(session *s, ort_side *o, double *best) {
    const double start = cpu_now();
    bool ok = true;
    do {
        ok = step(s, o, best);
    } while (ok && cpu_now() - start < SECONDS);
    return ok;
}

static double element(const void *data, int32_t type, size_t i) {
    switch (type) {
    case EPCTX_ONNX_FLOAT: return (double)((const float *)data)[i];
    case EPCTX_ONNX_INT8: return ((const int8_t *)data)[i];
    case EPCTX_ONNX_INT32: return ((const int32_t *)data)[i];
    case EPCTX_ONNX_INT64: return (double)((const int64_t *)data)[i];
    default: return ((const uint8_t *)data)[i];
    }
}

static double difference(const session *s, const ort_side *o) {
    double worst = 0;
    size_t i, k;
    for (i = 0; i < o->out_count; i++) {
        const session_value *v = s->outputs[i];
        const int32_t type = (int32_t)v->type.elem_type;
        double off = 0, largest = 1e-30;
        const void *want = NULL;
        size_t bytes = 0, size = ort_elem_size((ONNXTensorElementDataType)type);
        if (!ort_ok(ort->GetTensorSizeInBytes(o->out[i], &bytes)) || bytes != v->size ||
            !ort_ok(ort->GetTensorData(o->out[i], &want)))
            return INFINITY;
        for (k = 0; k < v->size / size; k++) {
            const double a = element(want, type, k), b = element(v->data, type, k);
            if (fabs(a) > largest) largest = fabs(a);
            if (!(fabs(a - b) <= off)) off = fabs(a - b);
        }
        if (off / largest > worst) worst = off / largest;
    }
    return worst;
}

static bool bench(const char *file) {
    const char *slash = strrchr(file, '/');
    double ours = 1e30, theirs = 1e30;
    epctx_error error;
    session s;
    ort_side o = {0};
    size_t i;
    bool ok;
    if (session_open(&s, file, NULL, &error) != EPCTX_OK) {
        printf("%s: %s\n", file, error.message);
        session_close(&s);
        return false;
    }
    for (i = 0; i < s.input_count; i++) tensors_fill(s.inputs[i], 1, i);
    ok = ort_prepare(&o, &s, file);
    if (!ok) printf("%s: %s\n", file, ort_text);
    for (i = 0; ok && i < ROUNDS; i++) ok = side(&s, NULL, &ours) && side(&s, &o, &theirs);
    if (ok)
        printf("%-28s %10.1f us %10.1f us   speed %5.2f   scratch %9zu   off %.1e\n",
               slash ? slash + 1 : file, ours * 1e6, theirs * 1e6, theirs / ours, s.scratch_size,
               difference(&s, &o));
    fflush(stdout);
    session_close(&s);
    return ok;
}

int main(int argc, char **argv) {
    bool ok = true;
    int i;
    if (!ort_open(false)) {
        fprintf(stderr, "%s\n", ort_text);
        return 1;
    }
    printf("%-28s %13s %13s\n", "model", "ours", "ORT");
    for (i = 1; i < argc; i++) ok = bench(argv[i]) && ok;
    return ok ? 0 : 1;
}
