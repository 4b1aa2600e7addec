/* One model read by several threads, and one context run by several: also under ThreadSanitizer. */
#include "npu_graph.h"

#include "build.h"
#include "examples/epctx/ops/lint.h"
#include "examples/epctx/ops/state.h"
#include "fake.h"
#include "test.h"

#include <pthread.h>

#define THREADS 4
#define ROUNDS  50

/* -- views -- */

static uint64_t sum_of(epctx_str s) {
    return epctx_hash(s.data, s.size, 0);
}

static void count_finding(void *user, const epctx_finding *finding) {
    *(uint64_t *)user += sum_of(epctx_str_of(finding->message));
}

/* What reads the files, the stamp and the contexts of a model that others read, too. */
static uint64_t read_files(const epctx_model *model) {
    fake f = {0};
    epctx_backend backend = fake_backend(&f);
    epctx_check_opts opts = {0};
    epctx_loaded loaded;
    epctx_arena arena;
    epctx_dependency *files;
    epctx_epnode ep = epctx_epnode_default();
    size_t count = 0;
    uint64_t sum = 0;
    epctx_arena_init(&arena, NULL);
    opts.no_files = true;
    if (epctx_model_files(model, &opts, &arena, &files, &count, NULL) == EPCTX_OK) sum += count;
    epctx_arena_free(&arena);
    sum += (uint64_t)epctx_model_check_binary(model, "m.onnx", NULL);
    sum += epctx_model_holds_one_graph(model, &ep);
    sum += (uint64_t)epctx_model_check_fresh(model, "QNN", &backend, NULL, NULL);
    if (epctx_load(&loaded, model, &backend, NULL, NULL) == EPCTX_OK) sum += loaded.other_nodes;
    epctx_unload(&loaded);
    return sum;
}

/* Everything that reads a model, boiled down to a number. */
static uint64_t read_all(const epctx_model *model) {
    epctx_check_opts opts = {0};
    epctx_walk walk;
    epctx_node_view node;
    epctx_attr_view attr;
    epctx_tensor_view tensor;
    epctx_value_view value;
    epctx_epnode ep;
    epctx_error error;
    epctx_arena arena;
    epctx_state state;
    epctx_cursor it;
    epctx_str text;
    const epctx_str *names;
    size_t count;
    uint64_t counts[EPCTX_SEVERITY_COUNT], sum = 0;
    opts.no_files = true;
    epctx_walk_begin(&walk, model);
    while (epctx_walk_next(&walk, &node)) {
        sum += sum_of(node.name) + sum_of(node.op_type);
        it = epctx_view_node_attrs(&node);
        while (epctx_next_attr(&it, &attr)) sum += sum_of(attr.name);
        if (epctx_view_read_epnode(&node, &ep, &error) == EPCTX_OK) sum += sum_of(ep.source);
        sum += (uint64_t)epctx_view_kind(node.view) + epctx_view_equal(node.view, node.view);
        epctx_arena_init(&arena, NULL);
        if (epctx_view_node_captures(node.view, &arena, &names, &count, NULL) == EPCTX_OK)
            sum += count;
        epctx_arena_free(&arena);
    }
    sum += (uint64_t)epctx_model_opset(model, epctx_str_of("com.microsoft"));
    sum += epctx_model_metadata(model, epctx_str_of("author"), &text) + read_files(model);
    it = epctx_view_graph_initializers(epctx_model_graph(model));
    while (epctx_next_tensor(&it, &tensor)) sum += sum_of(tensor.name) + tensor.rank;
    it = epctx_view_graph_inputs(epctx_model_graph(model));
    while (epctx_next_value(&it, &value)) sum += sum_of(value.name);
    epctx_arena_init(&arena, NULL);
    if (epctx_model_state(model, &arena, &state, NULL) == EPCTX_OK) sum += state.ep_nodes;
    epctx_arena_free(&arena);
    if (epctx_lint(model, &opts, count_finding, &sum, counts, NULL) == EPCTX_OK) sum += counts[0];
    return sum;
}

static bytes sample(void) {
    static const float weights[] = {1, 2, 3};
    static const int64_t dims[] = {1, 3, -1};
    bytes graph = {0}, node;
    node = new_node("EPContext", "com.microsoft", "part", "x,w", "y");
    add_attr_int(&node, "embed_mode", 1);
    add_attr_str(&node, "source", "QNN", 3);
    put_child(&graph, 1, &node);
    add_node(&graph, "Relu", "relu", "y", "z");
    put_str(&graph, 2, "main");
    add_value(&graph, GRAPH_INPUT, "x", EPCTX_ONNX_FLOAT, dims);
    add_value(&graph, GRAPH_OUTPUT, "z", EPCTX_ONNX_FLOAT, NULL);
    add_floats(&graph, "w", weights, 3);
    put_str(&graph, 2, "twice"); /* the last one counts */
    return new_model(&graph);
}

typedef struct reader {
    pthread_t thread;
    const epctx_model *model;
    uint64_t want;
    int wrong;
} reader;

static void *read_in_thread(void *user) {
    reader *r = (reader *)user;
    for (int i = 0; i < ROUNDS; i++) r->wrong += read_all(r->model) != r->want;
    return NULL;
}

/* Also with a graph that occurs twice, for which opening builds a second tree. */
TEST(readers) {
    for (int doubled = 0; doubled < 2; doubled++) {
        bytes model = sample(), empty = {0};
        reader readers[THREADS];
        epctx_model m;
        epctx_error error;
        uint64_t want;
        put_int(&empty, 2, 0);
        if (doubled) put_child(&model, 7, &empty);
        bytes_free(&empty);
        CHECK_OK(epctx_model_open_memory(&m, model.data, model.size, NULL, &error), error);
        want = read_all(&m);
        for (int i = 0; i < THREADS; i++) {
            readers[i].model = &m;
            readers[i].want = want;
            readers[i].wrong = 0;
            CHECK_INT(pthread_create(&readers[i].thread, NULL, read_in_thread, &readers[i]), 0);
        }
        for (int i = 0; i < THREADS; i++) pthread_join(readers[i].thread, NULL);
        for (int i = 0; i < THREADS; i++)
            CHECK(readers[i].wrong == 0, "thread %d of %d read something else %d times of %d", i,
                  THREADS, readers[i].wrong, ROUNDS);
        epctx_model_close(&m);
        bytes_free(&model);
    }
}

/* -- the executor -- */

typedef struct runner {
    pthread_t thread;
    const epctx_npu_graph *graph;
    int wrong;
} runner;

static void *run_in_thread(void *user) {
    runner *r = (runner *)user;
    const size_t size = r->graph->info.scratch_size;
    void *scratch = gb_aligned(size);
    float x[8], y[8];
    for (int i = 0; i < ROUNDS; i++) {
        epctx_span in = {(const uint8_t *)x, sizeof x};
        epctx_memory out = {y, sizeof y};
        for (int j = 0; j < 8; j++) x[j] = (float)(i + j);
        if (epctx_npu_run(r->graph, &in, &out, scratch, size, NULL) != EPCTX_OK) r->wrong++;
        for (int j = 0; j < 8; j++) r->wrong += y[j] != -2 * x[j];
    }
    free(scratch);
    return NULL;
}

TEST(runners) {
    static const int64_t dims[1] = {8};
    graph_builder b;
    epctx_buffer blob;
    epctx_span span;
    epctx_npu_context context;
    epctx_error error;
    runner runners[THREADS];
    size_t need;
    void *memory;
    gb_init(&b);
    gb_input(&b, "x", EPCTX_ONNX_FLOAT, 1, dims);
    gb_node(&b, "Neg", 13, "x", "n");
    gb_node(&b, "Add", 14, "n,n", "y");
    gb_output(&b, "y");
    epctx_error_clear(&error);
    CHECK_OK(gb_compile(&b, NULL, &blob, &error), error);
    span.data = blob.data;
    span.size = blob.size;
    CHECK_INT(epctx_npu_load_size(span, &need, NULL), EPCTX_OK);
    memory = gb_aligned(need);
    CHECK_INT(epctx_npu_load(&context, span, memory, need, NULL), EPCTX_OK);
    for (int i = 0; i < THREADS; i++) {
        runners[i].graph = &context.graphs[0];
        runners[i].wrong = 0;
        CHECK_INT(pthread_create(&runners[i].thread, NULL, run_in_thread, &runners[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(runners[i].thread, NULL);
    for (int i = 0; i < THREADS; i++)
        CHECK(runners[i].wrong == 0, "thread %d computed %d wrong numbers", i, runners[i].wrong);
    free(memory);
    epctx_buffer_free(&blob);
    gb_free(&b);
}

int main(int argc, char **argv) {
    RUN(readers);
    RUN(runners);
    return test_end();
}
