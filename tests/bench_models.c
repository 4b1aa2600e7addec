/*
 * Speed of the reference NPU beside ONNX Runtime's CPU provider:
 *
 *     bench_models MODEL.onnx... [--kernels MODEL.onnx...]
 *
 * (tests/bench_models.sh builds and runs it.)
 *
 * Both run in this process on the same inputs, turn about, each on one thread (for ORT:
 * intra_op_num_threads 1, all its optimizations), and are measured in processor time of this
 * thread, so that other programs disturb little; the median counts. "speed" is ORT's time divided
 * by ours: 1.00 is as fast, 0.50 takes twice as long. "off" is the largest difference between the
 * outputs in units of the largest number of the output. Then it sums up: geometric means and the
 * lowest speeds of networks in float, of networks in integers, and of the kernels, models of one
 * operator.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <onnxruntime_c_api.h>

#include "epctx_npu.h"
#include "examples/epctx/core/cli.h"
#include "examples/epctx/core/session.h"
#include "examples/epctx/core/tensors.h"
#include "examples/epctx/ort/driver.h"

#define MOST    8
#define ROUNDS  6
#define SECONDS 0.1  /* for one side of a round */
#define RUNS    2000 /* at most in a round */
#define LONG    1e-4 /* seconds of ORT: networks from here on have a mean of their own, too */

typedef struct side_times {
    double seconds[ROUNDS * RUNS];
    size_t count;
} side_times;

typedef enum group { GROUP_FLOAT, GROUP_INTEGER, GROUP_KERNEL, GROUP_COUNT } group;

/* Speeds of a group so far; `low`: the models below its goal for one model. */
typedef struct summary {
    const char *what;
    double goal, sum, long_sum, lowest;
    size_t count, long_count;
    char low[1000];
} summary;

static summary groups[GROUP_COUNT] = {{"float networks", 0.85, 0, 0, 1e30, 0, 0, ""},
                                      {"integer networks", 1.2, 0, 0, 1e30, 0, 0, ""},
                                      {"kernels", 0.7, 0, 0, 1e30, 0, 0, ""}};

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

/* Runs one side for a while. */
static bool side(session *s, ort_side *o, side_times *times) {
    const double start = cpu_now();
    size_t runs = 0;
    bool ok = true;
    do {
        epctx_error error;
        const double before = cpu_now();
        ok = o ? ort_step(o) : session_run(s, &error) == EPCTX_OK;
        times->seconds[times->count++] = cpu_now() - before;
    } while (ok && ++runs < RUNS && cpu_now() - start < SECONDS);
    return ok;
}

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(side_times *times) {
    qsort(times->seconds, times->count, sizeof times->seconds[0], by_size);
    return times->count > 0 ? times->seconds[times->count / 2] : 0;
}

/* Does the reference NPU compute products of integers? */
static bool has_integers(const session *s) {
    epctx_npu_command command;
    size_t i;
    for (i = 0; i < s->loaded.bound_count; i++) {
        uint32_t at = 0;
        while (epctx_npu_next_command((const epctx_npu_graph *)s->loaded.bound[i].graph, &at,
                                      &command))
            if (strncmp(command.op, "Integer", 7) == 0) return true;
    }
    return false;
}

static void count(group g, const char *name, double speed, double seconds) {
    summary *sum = &groups[g];
    const size_t used = strlen(sum->low);
    sum->sum += log(speed);
    sum->count++;
    if (seconds >= LONG) {
        sum->long_sum += log(speed);
        sum->long_count++;
    }
    if (speed < sum->lowest) sum->lowest = speed;
    if (speed < sum->goal)
        snprintf(sum->low + used, sizeof sum->low - used, " %s %.2f", name, speed);
}

static void print_summary(void) {
    size_t i;
    for (i = 0; i < GROUP_COUNT; i++) {
        const summary *g = &groups[i];
        if (g->count == 0) continue;
        printf("%zu %s: geometric mean %.2f", g->count, g->what, exp(g->sum / (double)g->count));
        if (i == GROUP_FLOAT && g->long_count > 0)
            printf(", of the %zu of 0.1 ms and more %.2f", g->long_count,
                   exp(g->long_sum / (double)g->long_count));
        printf(", lowest %.2f, below %.2f:%s\n", g->lowest, g->goal,
               g->low[0] != 0 ? g->low : " none");
    }
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

static bool bench(const char *file, bool kernel) {
    static side_times ours, theirs;
    const char *slash = strrchr(file, '/');
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
    ours.count = theirs.count = 0;
    for (i = 0; ok && i < ROUNDS; i++) ok = side(&s, NULL, &ours) && side(&s, &o, &theirs);
    if (ok) {
        const double we = median(&ours), they = median(&theirs);
        const char *name = slash ? slash + 1 : file;
        printf("%-28s %10.1f us %10.1f us   speed %5.2f   scratch %9zu   off %.1e\n", name,
               we * 1e6, they * 1e6, they / we, s.scratch_size, difference(&s, &o));
        count(kernel ? GROUP_KERNEL : (has_integers(&s) ? GROUP_INTEGER : GROUP_FLOAT), name,
              they / we, they);
    }
    fflush(stdout);
    session_close(&s);
    return ok;
}

int main(int argc, char **argv) {
    bool ok = true, kernels = false;
    int i;
    if (!ort_open(false)) {
        fprintf(stderr, "%s\n", ort_text);
        return 1;
    }
    printf("%-28s %13s %13s\n", "model", "ours", "ORT");
    for (i = 1; i < argc; i++)
        if (strcmp(argv[i], "--kernels") == 0)
            kernels = true;
        else
            ok = bench(argv[i], kernels) && ok;
    print_summary();
    return ok ? 0 : 1;
}
