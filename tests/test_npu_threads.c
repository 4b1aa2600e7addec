/* >>exec of the reference NPU: runs on threads of the caller, timed and cancelled. */
/* runs: once */
#define _POSIX_C_SOURCE 200809L
#include "test.h"

#include "npu_graph.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

/* -- a graph with every kind of command that threads share -- */

enum { SIDE = 32 }; /* large enough for commands to be shared */
static const int64_t image[4] = {1, 32, SIDE, SIDE}, kernel[4] = {32, 32, 3, 3},
                     deep[4] = {32, 1, 3, 3};

static void add_weights(graph_builder *b, const char *name, int rank, const int64_t *dims) {
    size_t count = 1;
    float *data;
    int i;
    for (i = 0; i < rank; i++) count *= (size_t)dims[i];
    data = (float *)gb_alloc(b, count * sizeof *data);
    gb_randomize(data, count, (uint32_t)count);
    gb_floats(b, name, rank, dims, data);
}

static void add_graph(graph_builder *b) {
    const int64_t ones[4] = {1, 1, 1, 1}, pads[4] = {1, 1, 1, 1}, two[2] = {2, 2};
    const int64_t perm[4] = {0, 2, 3, 1}, weights[2] = {32, 96};
    gb_init(b);
    gb_input(b, "x", 1, 4, image);
    add_weights(b, "k", 4, kernel);
    add_weights(b, "d", 4, deep);
    add_weights(b, "w", 2, weights);
    gb_node(b, "Conv", 11, "x,k", "a");
    gb_attr_ints(b, "pads", 4, pads);
    gb_attr_ints(b, "strides", 2, ones);
    gb_node(b, "Conv", 11, "a,d", "b");
    gb_attr_ints(b, "pads", 4, pads);
    gb_attr_int(b, "group", 32);
    gb_node(b, "Add", 14, "a,b", "c");
    gb_node(b, "Sigmoid", 13, "c", "e");
    gb_node(b, "MaxPool", 12, "e", "f");
    gb_attr_ints(b, "kernel_shape", 2, two);
    gb_attr_ints(b, "strides", 2, two);
    gb_node(b, "Transpose", 13, "e", "g");
    gb_attr_ints(b, "perm", 4, perm);
    gb_node(b, "MatMul", 13, "g,w", "h");
    gb_node(b, "Softmax", 13, "h", "y");
    gb_output(b, "f");
    gb_output(b, "y");
}

typedef struct loaded {
    epctx_buffer blob;
    void *memory, *scratch;
    epctx_npu_context context;
    const epctx_npu_graph *graph;
    size_t scratch_size;
    epctx_span in[1];
    epctx_memory out[2];
} loaded;

static void load(loaded *l, uint32_t threads) {
    const size_t sizes[2] = {32 * SIDE / 2 * SIDE / 2 * 4, SIDE * SIDE * 96 * 4};
    graph_builder b;
    epctx_error error;
    epctx_span span;
    float *x = (float *)gb_aligned(32 * SIDE * SIDE * 4);
    size_t need = 0, i;
    memset(l, 0, sizeof *l);
    add_graph(&b);
    CHECK_OK(gb_compile(&b, NULL, &l->blob, &error), error);
    gb_free(&b);
    span.data = l->blob.data;
    span.size = l->blob.size;
    CHECK_OK(epctx_npu_load_size(span, &need, &error), error);
    l->memory = gb_aligned(need);
    CHECK_OK(epctx_npu_load(&l->context, span, l->memory, need, &error), error);
    l->graph = &l->context.graphs[0];
    l->scratch_size = epctx_npu_scratch_size(l->graph, threads);
    l->scratch = gb_aligned(l->scratch_size);
    gb_randomize(x, 32 * SIDE * SIDE, 5);
    l->in[0].data = (const uint8_t *)x;
    l->in[0].size = 32 * SIDE * SIDE * 4;
    for (i = 0; i < 2; i++) {
        l->out[i].size = sizes[i];
        l->out[i].data = gb_aligned(sizes[i]);
    }
}

static void unload(loaded *l) {
    free(l->memory);
    free(l->scratch);
    free(l->out[0].data);
    free(l->out[1].data);
    memcpy(&l->memory, &l->in[0].data, sizeof l->memory);
    free(l->memory);
    epctx_buffer_free(&l->blob);
}

static epctx_status run_on(loaded *l, const epctx_npu_run_opts *opts, epctx_error *error) {
    return epctx_npu_run_with(l->graph, l->in, l->out, l->scratch, l->scratch_size, opts, error);
}

/* -- threads -- */

enum { THREADS = 4 };

typedef struct job {
    void (*work_fn)(void *work, uint32_t i);
    void *work;
    uint32_t i;
} job;

static void *work(void *user) {
    const job *j = (const job *)user;
    j->work_fn(j->work, j->i);
    return NULL;
}

/* A thread for each part but the first; *user counts the commands that were shared. */
static void spread(void *user, uint32_t count, void (*work_fn)(void *work, uint32_t i),
                   void *what) {
    pthread_t threads[THREADS];
    job jobs[THREADS];
    bool begun[THREADS] = {false};
    uint32_t i;
    if (user != NULL) ++*(int *)user;
    for (i = 1; i < count && i < THREADS; i++) {
        const job j = {work_fn, what, i};
        jobs[i] = j;
        begun[i] = pthread_create(&threads[i], NULL, work, &jobs[i]) == 0;
    }
    work_fn(what, 0);
    for (i = 1; i < count && i < THREADS; i++)
        if (begun[i])
            pthread_join(threads[i], NULL);
        else
            work_fn(what, i);
}

static uint64_t sums_of(const loaded *l) {
    return epctx_hash(l->out[0].data, l->out[0].size, 0) ^
           epctx_hash(l->out[1].data, l->out[1].size, 1);
}

/* Any number of threads computes the same bytes, and shares most commands. */
TEST(same_bytes) {
    loaded l;
    epctx_error error;
    uint64_t want;
    uint32_t threads;
    load(&l, THREADS);
    CHECK_OK(epctx_npu_run(l.graph, l.in, l.out, l.scratch, l.scratch_size, &error), error);
    want = sums_of(&l);
    for (threads = 1; threads <= THREADS; threads++) {
        epctx_npu_run_opts opts;
        int shared = 0;
        memset(&opts, 0, sizeof opts);
        opts.parallel_fn = spread;
        opts.user = &shared;
        opts.threads = threads;
        memset(l.out[0].data, 0, l.out[0].size);
        memset(l.out[1].data, 0, l.out[1].size);
        CHECK_OK(run_on(&l, &opts, &error), error);
        CHECK(sums_of(&l) == want, "%u threads: other bytes", (unsigned)threads);
        CHECK(threads == 1 ? shared == 0 : shared >= 4, "%u threads shared %d commands",
              (unsigned)threads, shared);
    }
    unload(&l);
}

/* Without more scratch than the plan's, commands with a workspace stay on one thread; the bytes are
 * the same. */
TEST(little_scratch) {
    loaded l;
    epctx_error error;
    epctx_npu_run_opts opts;
    uint64_t want;
    load(&l, 1);
    CHECK_INT(l.scratch_size, l.graph->info.scratch_size);
    CHECK_OK(epctx_npu_run(l.graph, l.in, l.out, l.scratch, l.scratch_size, &error), error);
    want = sums_of(&l);
    memset(&opts, 0, sizeof opts);
    opts.parallel_fn = spread;
    opts.threads = THREADS;
    CHECK_OK(run_on(&l, &opts, &error), error);
    CHECK(sums_of(&l) == want, "other bytes");
    CHECK_TRUE(epctx_npu_scratch_size(l.graph, 2) >= l.scratch_size);
    CHECK_INT(run_on(&l, NULL, &error), EPCTX_OK);
    l.scratch_size -= 64;
    CHECK_INT(run_on(&l, &opts, &error), EPCTX_ERR_ARG);
    unload(&l);
}

/* -- profile -- */

typedef struct profile {
    uint64_t clock;
    uint32_t position; /* of epctx_npu_next_command */
    const epctx_npu_graph *graph;
    int commands, different, threads;
} profile;

static uint64_t tick(void *user) {
    return ((profile *)user)->clock += 7;
}

static void note(void *user, const epctx_npu_command *found, uint64_t time) {
    profile *p = (profile *)user;
    epctx_npu_command want;
    p->commands++;
    if (!epctx_npu_next_command(p->graph, &p->position, &want) || time != 7 ||
        want.op != found->op || !epctx_str_eq(want.name, found->name) ||
        want.products != found->products || want.bytes != found->bytes ||
        want.temporary != found->temporary || want.elements != found->elements)
        p->different++;
}

/* Every command once, in order, with the time that passed by the caller's clock. */
TEST(profile_of_commands) {
    loaded l;
    epctx_error error;
    epctx_npu_run_opts opts;
    epctx_npu_command first;
    profile p;
    uint32_t position = 0;
    load(&l, 1);
    memset(&opts, 0, sizeof opts);
    memset(&p, 0, sizeof p);
    p.graph = l.graph;
    opts.user = &p;
    opts.clock_fn = tick;
    opts.profile_fn = note;
    CHECK_OK(run_on(&l, &opts, &error), error);
    CHECK_INT(p.commands, (int)l.graph->command_count);
    CHECK_INT(p.different, 0);
    while (epctx_npu_next_command(l.graph, &position, &first) && strcmp(first.op, "Winograd") != 0)
        ;
    CHECK_STR(first.op, "Winograd");
    CHECK(epctx_str_is(first.name, "Conv_00"), "the node is '%.*s'", (int)first.name.size,
          first.name.data);
    CHECK_INT(first.elements, 32 * SIDE * SIDE);
    /* 8 x 8 tiles; turning costs as much as 12 more for each 64 tiles, and the rest. */
    CHECK_INT(first.products, 36 * ((64 + 12) * 32 * 32 + 8 * 64 * (32 + 32)));
    CHECK_TRUE(first.bytes >= (2 * 32 * SIDE * SIDE + 32 * 32 * 9) * 4);
    unload(&l);
}

/* -- cancelled -- */

static bool count_down(void *user) {
    int *left = (int *)user;
    return (*left)-- == 0;
}

/* Long commands ask again and again; with parts of any size the run can end at every question. */
TEST(cancelled_within_commands) {
    loaded l;
    epctx_error error;
    epctx_npu_run_opts opts;
    epctx_hooks hooks;
    uint64_t want;
    int left, asked, i;
    load(&l, 2);
    CHECK_OK(epctx_npu_run(l.graph, l.in, l.out, l.scratch, l.scratch_size, &error), error);
    want = sums_of(&l);
    memset(&opts, 0, sizeof opts);
    memset(&hooks, 0, sizeof hooks);
    hooks.user = &left;
    hooks.cancel_fn = count_down;
    opts.hooks = &hooks;
    for (opts.threads = 1; opts.threads <= 2; opts.threads++) {
        opts.parallel_fn = opts.threads > 1 ? spread : NULL;
        opts.part_work = 0;
        left = INT32_MAX;
        CHECK_OK(run_on(&l, &opts, &error), error);
        CHECK_INT(INT32_MAX - left, (int)l.graph->command_count); /* none of them is long */
        opts.part_work = 200;
        left = INT32_MAX;
        CHECK_OK(run_on(&l, &opts, &error), error);
        CHECK(sums_of(&l) == want, "other bytes");
        asked = INT32_MAX - left;
        CHECK(asked > 3 * (int)l.graph->command_count, "asked %d times in %u commands", asked,
              (unsigned)l.graph->command_count);
        for (i = 0; i < asked; i += 1 + asked / 10) {
            left = i;
            CHECK_INT(run_on(&l, &opts, &error), EPCTX_ERR_CANCELLED);
            CHECK_INT(left, -1);
        }
        left = asked;
        CHECK_OK(run_on(&l, &opts, &error), error);
    }
    unload(&l);
}

/* -- a command that fails in one of its parts -- */

enum { DIVIDED = 1 << 14 };

typedef struct division {
    epctx_buffer blob;
    void *memory, *scratch;
    epctx_npu_context context;
    int64_t *divisors, *quotients;
    epctx_span in[2];
    epctx_memory out[1];
} division;

static void load_division(division *d, const char *op_type) {
    static const int64_t dims[1] = {DIVIDED};
    graph_builder b;
    epctx_error error;
    epctx_span span;
    size_t need = 0, i;
    memset(d, 0, sizeof *d);
    gb_init(&b);
    gb_input(&b, "x", EPCTX_ONNX_INT64, 1, dims);
    gb_input(&b, "z", EPCTX_ONNX_INT64, 1, dims);
    gb_node(&b, op_type, 14, "x,z", "y");
    gb_output(&b, "y");
    CHECK_OK(gb_compile(&b, NULL, &d->blob, &error), error);
    gb_free(&b);
    span.data = d->blob.data;
    span.size = d->blob.size;
    CHECK_OK(epctx_npu_load_size(span, &need, &error), error);
    d->memory = gb_aligned(need);
    CHECK_OK(epctx_npu_load(&d->context, span, d->memory, need, &error), error);
    d->scratch = gb_aligned(d->context.graphs[0].info.scratch_size + 1);
    d->divisors = (int64_t *)gb_aligned(DIVIDED * 8);
    d->quotients = (int64_t *)gb_aligned(DIVIDED * 8);
    for (i = 0; i < DIVIDED; i++) d->divisors[i] = (int64_t)i + 1;
    for (i = 0; i < 2; i++) {
        d->in[i].data = (const uint8_t *)d->divisors;
        d->in[i].size = DIVIDED * 8;
    }
    d->out[0].data = d->quotients;
    d->out[0].size = DIVIDED * 8;
}

static epctx_status divide(const division *d, const epctx_npu_run_opts *opts, epctx_error *error) {
    return epctx_npu_run_with(&d->context.graphs[0], d->in, d->out, d->scratch,
                              d->context.graphs[0].info.scratch_size, opts, error);
}

static void try_division(const char *op_type) {
    static const size_t places[] = {0, DIVIDED / 2 - 1, DIVIDED / 2, DIVIDED - 1};
    division d;
    epctx_error error, alone;
    epctx_npu_run_opts opts;
    size_t i;
    load_division(&d, op_type);
    memset(&opts, 0, sizeof opts);
    opts.parallel_fn = spread;
    opts.part_work = 200;
    for (i = 0; i < sizeof places / sizeof places[0]; i++) {
        d.divisors[places[i]] = 0;
        CHECK_INT(divide(&d, NULL, &alone), EPCTX_ERR_ARG);
        for (opts.threads = 1; opts.threads <= THREADS; opts.threads++) {
            epctx_error_clear(&error);
            CHECK(divide(&d, &opts, &error) == EPCTX_ERR_ARG, "%s by 0 at %u on %u threads: %s",
                  op_type, (unsigned)places[i], (unsigned)opts.threads, error.message);
            CHECK_STR(error.message, alone.message);
        }
        d.divisors[places[i]] = (int64_t)places[i] + 1;
    }
    opts.threads = THREADS;
    CHECK_OK(divide(&d, &opts, &error), error);
    CHECK_INT(d.quotients[DIVIDED - 1], strcmp(op_type, "Div") == 0);
    free(d.memory);
    free(d.scratch);
    free(d.divisors);
    free(d.quotients);
    epctx_buffer_free(&d.blob);
}

/* A divisor of 0 in any part of a command fails the run, with the words of one thread. */
TEST(failing_parts) {
    try_division("Div");
    try_division("Mod");
}

int main(int argc, char **argv) {
    RUN(failing_parts);
    RUN(same_bytes);
    RUN(little_scratch);
    RUN(profile_of_commands);
    RUN(cancelled_within_commands);
    return test_end();
}
