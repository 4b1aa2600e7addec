/* >>load and >>share at their edges: backends and readers that say half of what they should,
 * weights whose source has no folder, profiles, sessions without models and groups without a
 * binary, paths that are too long. */
#define _XOPEN_SOURCE 700
#include "examples/epctx/ops/cache.h"
#include "fake.h"
#include "files.h"
#include "flaky.h"
#include "sessions.h"
#include "take.h"
#include "test.h"

static const float numbers[2] = {1, 2};
static const char part_binary[] = "FAKE\001\n1\npart\n0\n1\nx\n1\ny\n";
static const char other_binary[] = "FAKE\001\n1\nother\n0\n1\nx\n1\ny\n";

/* A model around one EPContext node; `cache` as in add_epnode. */
static bytes one_node(int64_t main_context, int64_t embed_mode, const char *cache) {
    bytes graph = {0}, model;
    add_epnode(&graph, "node", "x", "y", main_context, embed_mode, "FakeEP", "part", cache,
               strlen(cache));
    add_x_and_y(&graph);
    model = new_model(&graph);
    add_opset(&model, "com.microsoft", 1);
    return model;
}

/* -- what a backend and a reader say -- */

static epctx_status check_argument(void *self, const epctx_epnode *node, epctx_error *error) {
    (void)self;
    return epctx_fail(error, EPCTX_ERR_ARG, "no such device for '%S'", &node->name);
}

static epctx_status load_silently(void *self, const epctx_load_in *in, void **context,
                                  epctx_error *error) {
    (void)self, (void)in, (void)context, (void)error;
    return EPCTX_ERR_BACKEND;
}

/* The caller's mistake stays one; a failure without a word becomes one with a message. */
TEST(failures_of_a_backend) {
    fake f = {0};
    epctx_backend backend = fake_backend(&f);
    epctx_error error;
    bytes b = one_node(1, 1, part_binary);
    backend.check_fn = check_argument;
    CHECK_INT(load_one(&b, NULL, &backend, NULL, NULL, NULL, &error), EPCTX_ERR_ARG);
    CHECK_INT(error.status, EPCTX_ERR_ARG);
    CHECK_HAS(error.message, "no such device for 'node'");
    backend.check_fn = NULL;
    backend.load_fn = load_silently;
    CHECK_INT(load_one(&b, NULL, &backend, NULL, NULL, NULL, &error), EPCTX_ERR_CONTEXT);
    CHECK_INT(error.status, EPCTX_ERR_CONTEXT);
    CHECK_HAS(error.message, "the context cannot be loaded");
    CHECK_HAS(error.message, "node");
    CHECK_INT(f.alive, 0);
    bytes_free(&b);
}

static epctx_status check_missing(void *self, const epctx_epnode *node, epctx_error *error) {
    (void)self;
    return epctx_fail(error, EPCTX_ERR_NOT_FOUND, "no firmware for '%S'", &node->name);
}

/* What a backend does not find is not the binary that a group still has to write. */
TEST(missing_for_a_backend) {
    fake f = {0};
    epctx_backend backend = fake_backend(&f);
    epctx_load_opts opts = {0};
    epctx_error error;
    bytes b = one_node(1, 1, part_binary);
    backend.check_fn = check_missing;
    CHECK_INT(epctx_workspace_open(&opts.workspace, NULL, &error), EPCTX_OK);
    CHECK_INT(load_one(&b, NULL, &backend, NULL, &opts, NULL, &error), EPCTX_ERR_CONTEXT);
    CHECK_HAS(error.message, "no firmware for 'node'");
    CHECK_TRUE(strstr(error.message, "stop_share_ep_contexts") == NULL);
    epctx_workspace_close(opts.workspace);
    CHECK_INT(f.alive, 0);
    bytes_free(&b);
}

static int released;

static epctx_status size_only(void *user, const char *name, void **data, size_t *size,
                              epctx_error *error) {
    (void)user, (void)name, (void)error;
    *data = user;
    *size = user != NULL ? 0 : 8;
    return EPCTX_OK;
}

static epctx_status map_nothing(void *user, const char *folder, const char *name, bool copy,
                                epctx_mapping *out, epctx_error *error) {
    (void)user, (void)folder, (void)name, (void)copy, (void)error;
    memset(out, 0, sizeof *out);
    out->size = 8;
    return EPCTX_OK;
}

static void unmap_nothing(void *user, epctx_mapping *mapping) {
    (void)user, (void)mapping;
    released++;
}

static void count_release(void *user, void *data, size_t size) {
    (void)user, (void)data, (void)size;
    released++;
}

TEST(buffers_without_data) {
    fake f = {0};
    epctx_backend backend = fake_backend(&f);
    epctx_buffer_io buffers = {0};
    epctx_io io = epctx_io_buffers(&buffers);
    epctx_load_opts opts = {0};
    epctx_error error;
    bytes b = one_node(1, 0, "p.bin");
    buffers.read_fn = size_only;
    buffers.free_fn = count_release;
    opts.io = &io;
    released = 0;
    CHECK_INT(load_one(&b, NULL, &backend, NULL, &opts, NULL, &error), EPCTX_ERR_CONTEXT);
    CHECK_HAS(error.message, "a size but no data");
    CHECK_INT(released, 0);
    buffers.user = &f;
    CHECK_INT(load_one(&b, NULL, &backend, NULL, &opts, NULL, &error), EPCTX_ERR_CONTEXT);
    CHECK_HAS(error.message, "'p.bin' is empty");
    CHECK_INT(f.loads, 0);
    CHECK_INT(released, 1);
    io.map_fn = map_nothing;
    io.unmap_fn = unmap_nothing;
    CHECK_INT(load_one(&b, NULL, &backend, NULL, &opts, NULL, &error), EPCTX_ERR_CONTEXT);
    CHECK_HAS(error.message, "'p.bin' is empty");
    CHECK_INT(released, 2);
    bytes_free(&b);
}

/* Which nodes bring a context of their own is the profile's rule. */
TEST(secondary_contexts) {
    fake f = {0};
    epctx_backend backend = fake_backend(&f);
    epctx_profile profile = *epctx_profile_find(epctx_str_of("npu"));
    epctx_load_opts opts = {0};
    epctx_error error;
    size_t bound;
    char model[400];
    bytes graph = {0};
    clear_root();
    snprintf(model, sizeof model, "%s", at("m_ctx.onnx"));
    make_file(at("p.bin"), part_binary, strlen(part_binary));
    make_file(at("o.bin"), other_binary, strlen(other_binary));
    profile.sources[0] = "FakeEP";
    opts.profile = &profile;
    add_epnode(&graph, "one", "x", "y", 1, 0, "FakeEP", "part", "p.bin", 5);
    add_epnode(&graph, "two", "y", "z", 0, 0, "FakeEP", "part", "o.bin", 5);
    add_epnode(&graph, "three", "z", "u", 0, 0, "FakeEP", "part", NULL, 0);
    save_model("m_ctx.onnx", &graph);
    /* Without the trait o.bin is nobody's: all graphs are in the first node's. */
    CHECK_OK(load_one(NULL, model, &backend, NULL, &opts, &bound, &error), error);
    CHECK_UINT(bound, 3);
    CHECK_INT(f.loads, 1);
    /* With it node two looks into o.bin, which has no graph of that name. */
    profile.traits |= EPCTX_TRAIT_SECONDARY_CONTEXT;
    CHECK_INT(load_one(NULL, model, &backend, NULL, &opts, &bound, &error), EPCTX_ERR_CONTEXT);
    CHECK_HAS(error.message, "expected graph 'part', found '");
    CHECK_HAS(error.message, "two");
    make_file(at("o.bin"), part_binary, strlen(part_binary));
    f.loads = 0;
    CHECK_OK(load_one(NULL, model, &backend, NULL, &opts, &bound, &error), error);
    CHECK_UINT(bound, 3);
    CHECK_INT(f.loads, 2);
    CHECK_INT(f.alive, 0);
}

/* Looking for the graphs of many nodes in many contexts ends some time: nodes times contexts is
 * more than any model has. */
TEST(too_many_places_to_look) {
    enum { COUNT = 400 }; /* 400 * 399 is over the limit, 300 * 299 is not */
    for (int count = 300; count <= COUNT; count += 100) {
        fake f = {0};
        epctx_backend backend = fake_backend(&f);
        epctx_error error;
        bytes graph = {0}, b;
        for (int i = 0; i < count; i++) {
            const char *binary = i + 1 < count ? other_binary : part_binary;
            add_epnode(&graph, "n", "x", "y", 1, 1, "FakeEP", i + 1 < count ? "other" : "part",
                       binary, strlen(binary));
        }
        for (int i = 0; i < count; i++)
            add_epnode(&graph, "seeks", "x", "y", 0, 0, "FakeEP", "part", NULL, 0);
        b = new_model(&graph);
        if (count < COUNT) {
            CHECK_OK(load_one(&b, NULL, &backend, NULL, NULL, NULL, &error), error);
        } else {
            CHECK_INT(epctx_status_to_ort(load_one(&b, NULL, &backend, NULL, NULL, NULL, &error)),
                      10);
            CHECK_HAS(error.message, "too many secondary nodes and contexts to search");
            CHECK_HAS(error.message, "seeks");
        }
        CHECK_INT(f.alive, 0);
        bytes_free(&b);
    }
}

static const uint8_t *loaded_from;

static epctx_status note_place(void *self, const epctx_load_in *in, void **context,
                               epctx_error *error) {
    loaded_from = in->binary.data;
    return fake_load(self, in, context, error);
}

/* An embedded payload is copied out of a mapped file, unless the caller says it does not change or
 * nobody else can write it. */
TEST(in_place) {
    static const struct {
        uint32_t flags;
        unsigned mode;
        int in_place;
    } rows[] = {{0, 0600, 0},
                {EPCTX_PATH_IN_PLACE, 0666, 1},
                {EPCTX_PATH_GUARDED, 0644, 1},
                {EPCTX_PATH_GUARDED, 0664, 0},
                {EPCTX_PATH_GUARDED, 0646, 0}};
    fake f = {0};
    epctx_backend backend = fake_backend(&f);
    epctx_open_opts open = {0};
    epctx_model model;
    epctx_loaded loaded;
    epctx_error error;
    bytes b = one_node(1, 1, part_binary);
    clear_root();
    save_bytes("m_ctx.onnx", &b);
    backend.load_fn = note_place;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uintptr_t start, place;
        open.path_flags = rows[i].flags;
        CHECK_INT(chmod(at("m_ctx.onnx"), rows[i].mode), 0);
        CHECK_INT(epctx_model_open_file(&model, at("m_ctx.onnx"), &open, &error), EPCTX_OK);
        CHECK_INT(epctx_load(&loaded, &model, &backend, NULL, &error), EPCTX_OK);
        start = (uintptr_t)model.bytes.data;
        place = (uintptr_t)loaded_from;
        CHECK(rows[i].in_place == (place >= start && place < start + model.bytes.size), "row %zu",
              i);
        epctx_unload(&loaded);
        epctx_model_close(&model);
    }
}

/* -- weights -- */

/* -- nodes without a model -- */

/* Loads the nodes of `b`; `*bound` and `*others` count those loaded, and those that are no one's or
 * another EP's. */
static epctx_status load_nodes_of(const bytes *b, const epctx_backend *backend, size_t *bound,
                                  size_t *others, epctx_error *error) {
    epctx_model model;
    epctx_graph graph;
    epctx_loaded loaded;
    epctx_status status = epctx_model_open_memory(&model, b->data, b->size, NULL, error);
    if (status != EPCTX_OK) return status;
    status = epctx_model_load_graph(&model, &graph, error);
    if (status == EPCTX_OK) {
        status = epctx_load_nodes(&loaded, graph.nodes, graph.node_count, backend, NULL, error);
        *bound = status == EPCTX_OK ? loaded.bound_count : 0;
        *others = status == EPCTX_OK ? loaded.other_nodes : 0;
        epctx_unload(&loaded);
    }
    epctx_model_close(&model);
    return status;
}

TEST(nodes_of_others) {
    fake f = {0};
    epctx_backend backend = fake_backend(&f);
    epctx_error error;
    bytes graph = {0}, node = new_node("EPContext", "com.microsoft", "nobody's", "x", "n"), b;
    size_t bound = 0, others = 0;
    add_attr_int(&node, "embed_mode", 7);
    put_child(&graph, 1, &node);
    add_node(&graph, "Relu", "relu", "x", "r");
    node = new_node("EPContext", "org.example", "domain", "x", "d");
    add_attr_str(&node, "source", "FakeEP", 6);
    put_child(&graph, 1, &node);
    add_epnode(&graph, "other", "x", "o", 1, 7, "OtherEP", "part", NULL, 0);
    add_epnode(&graph, "ours", "x", "y", 1, 1, "FakeEP", "part", part_binary, strlen(part_binary));
    add_x_and_y(&graph);
    b = new_model(&graph);
    CHECK_OK(load_nodes_of(&b, &backend, &bound, &others, &error), error);
    CHECK_UINT(bound, 1);
    CHECK_UINT(others, 4);
    bytes_free(&b);
    b = one_node(1, 7, part_binary);
    CHECK_INT(epctx_status_to_ort(load_nodes_of(&b, &backend, &bound, &others, &error)), 10);
    CHECK_HAS(error.message, "must be 0 or 1");
    CHECK_INT(f.alive, 0);
    bytes_free(&b);
}

/* A payload where a path is expected. */
TEST(paths_that_are_none) {
    static char long_path[EPCTX_PATH_MAX + 1];
    const char *const paths[] = {long_path, "a\nb", "a\x7f", "\xff.bin"};
    memset(long_path, 'p', EPCTX_PATH_MAX);
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        fake f = {0};
        epctx_backend backend = fake_backend(&f);
        epctx_error error;
        bytes b = one_node(1, 0, paths[i]);
        CHECK_INT(epctx_status_to_ort(load_one(&b, NULL, &backend, NULL, NULL, NULL, &error)), 10);
        CHECK_HAS(error.message, "embed_mode must be 1");
        CHECK_INT(f.loads, 0);
        bytes_free(&b);
    }
}

static const float *given_weights; /* what the backend got last */
static size_t given_count;

static epctx_status note_weights(void *self, void *graph, const epctx_tensor *weights, size_t count,
                                 epctx_error *error) {
    (void)self, (void)graph, (void)error;
    if (weights == NULL) return EPCTX_OK;
    given_count = count;
    given_weights = (const float *)(const void *)weights[0].data;
    return EPCTX_OK;
}

/* One line of EPCTX_WEIGHTS_ATTR. */
static const char *weight_line(const char *name, const void *data, size_t size) {
    static char text[4][200];
    static int turn;
    char *out = text[turn = (turn + 1) % 4];
    snprintf(out, sizeof text[0], "%zu %016" PRIx64 " 0 %zu %s 0 \n", size,
             epctx_hash(data, size, 0), strlen(name), name);
    return out;
}

static void add_weightless(bytes *graph, const char *name, const char *in, const char *out,
                           const char *file, const char *weights) {
    bytes node = new_node("EPContext", "com.microsoft", name, in, out);
    add_attr_int(&node, "main_context", 1);
    add_attr_int(&node, "embed_mode", 1);
    add_attr_str(&node, "ep_cache_context", part_binary, strlen(part_binary));
    add_attr_str(&node, "source", "FakeEP", 6);
    add_attr_str(&node, "partition_name", "part", 4);
    if (file != NULL) add_attr_str(&node, "onnx_model_filename", file, strlen(file));
    add_attr_str(&node, EPCTX_WEIGHTS_ATTR, weights, strlen(weights));
    put_child(graph, 1, &node);
}

/* A source model whose weight "w" is in it, or in `file`. */
static bytes weight_model(const float *data, const char *file) {
    bytes graph = {0};
    add_node(&graph, "Take", "n", "x,w", "y");
    if (file != NULL)
        add_external(&graph, "w", 2, file, "0", "8");
    else
        add_floats(&graph, "w", data, 2);
    return new_model(&graph);
}

/* Sources from memory: their external data is where the model says, else in its folder, which a
 * relative path may leave empty. */
static epctx_status give_numbers(void *user, const epctx_bound *bound,
                                 const epctx_outside_weight *ref, epctx_tensor *out,
                                 epctx_error *error) {
    (void)user, (void)bound, (void)ref, (void)error;
    memset(out, 0, sizeof *out);
    out->data = (const uint8_t *)numbers;
    out->size = sizeof numbers;
    return EPCTX_OK;
}

static epctx_status has_none(void *user, const epctx_bound *bound, const epctx_outside_weight *ref,
                             epctx_tensor *out, epctx_error *error) {
    (void)user, (void)bound, (void)out;
    return epctx_fail(error, EPCTX_ERR_NOT_FOUND, "not '%S'", &ref->name);
}

/* Who has the weights gives them; what he has not is in the source. */
TEST(weights_from_the_application) {
    fake f = {0};
    epctx_backend backend = fake_backend(&f);
    epctx_load_opts opts = {0};
    epctx_error error;
    bytes graph = {0}, b, source = weight_model(numbers, NULL);
    size_t bound, others;
    add_weightless(&graph, "node", "x", "y", "gone.onnx",
                   weight_line("w", numbers, sizeof numbers));
    b = new_model(&graph);
    opts.weight_fn = give_numbers;
    CHECK_INT(epctx_status_to_ort(load_one(&b, NULL, &backend, NULL, &opts, NULL, &error)), 10);
    CHECK_HAS(error.message, "which this FakeEP cannot load");
    backend.weights_fn = note_weights;
    given_weights = NULL;
    CHECK_OK(load_one(&b, NULL, &backend, NULL, &opts, NULL, &error), error);
    CHECK_TRUE(given_weights == numbers);
    CHECK_INT(epctx_status_to_ort(load_nodes_of(&b, &backend, &bound, &others, &error)), 10);
    CHECK_HAS(error.message, "set ep.context_source_model_path");
    opts.weight_fn = has_none;
    CHECK_INT(epctx_status_to_ort(load_one(&b, NULL, &backend, NULL, &opts, NULL, &error)), 10);
    CHECK_HAS(error.message, "the weights are in the source model 'gone.onnx'");
    given_weights = NULL;
    opts.source_model.data = source.data;
    opts.source_model.size = source.size;
    CHECK_OK(load_one(&b, NULL, &backend, NULL, &opts, NULL, &error), error);
    CHECK_TRUE(given_weights != NULL);
    CHECK_INT(f.alive, 0);
    bytes_free(&b);
    bytes_free(&source);
}

/* ONNX Runtime leaves the weights in the model, as inputs of the node: they come before a source,
 * and each is the one that was compiled. */
TEST(weights_that_are_inputs) {
    static const float others[2] = {7, 8};
    fake f = {0};
    epctx_backend backend = fake_backend(&f);
    epctx_load_opts opts = {0};
    epctx_error error;
    bytes source = weight_model(others, NULL);
    int changed;
    backend.weights_fn = note_weights;
    opts.source_model.data = source.data;
    opts.source_model.size = source.size;
    for (changed = 0; changed < 2; changed++) {
        bytes graph = {0}, b;
        add_weightless(&graph, "node", "x,w", "y", "gone.onnx",
                       weight_line("w", numbers, sizeof numbers));
        add_floats(&graph, "w", changed ? others : numbers, 2);
        b = new_model(&graph);
        given_weights = NULL;
        if (changed) {
            CHECK_INT(epctx_status_to_ort(load_one(&b, NULL, &backend, NULL, &opts, NULL, &error)),
                      10);
            CHECK_HAS(error.message, "it has changed, compile again");
        } else {
            CHECK_OK(load_one(&b, NULL, &backend, NULL, &opts, NULL, &error), error);
            CHECK_UINT(given_count, 1);
        }
        bytes_free(&b);
    }
    CHECK_INT(f.alive, 0);
    bytes_free(&source);
}

TEST(source_in_memory) {
    fake f = {0};
    epctx_backend backend = fake_backend(&f);
    epctx_open_opts open = {0};
    epctx_load_opts opts = {0};
    epctx_error error;
    bytes graph = {0}, b;
    bytes outside = weight_model(NULL, "w.bin"), inside = weight_model(numbers, NULL);
    char here[400];
    backend.weights_fn = note_weights;
    clear_root();
    CHECK_TRUE(getcwd(here, sizeof here) != NULL);
    make_file(at("w.bin"), numbers, sizeof numbers);
    add_weightless(&graph, "node", "x", "y", "gone.onnx",
                   weight_line("w", numbers, sizeof numbers));
    b = new_model(&graph);
    make_file(at("m_ctx.onnx"), b.data, b.size);
    opts.source_model.data = outside.data;
    opts.source_model.size = outside.size;
    /* beside the model, by a relative path */
    CHECK_INT(chdir(root), 0);
    given_count = 0;
    CHECK_OK(load_one(NULL, "m_ctx.onnx", &backend, NULL, &opts, NULL, &error), error);
    CHECK_UINT(given_count, 1);
    CHECK_INT(chdir(here), 0);
    /* where the opener said, for a model without a folder */
    open.external_folder = root;
    given_count = 0;
    CHECK_OK(load_one(&b, NULL, &backend, &open, &opts, NULL, &error), error);
    CHECK_UINT(given_count, 1);
    /* nowhere: only a source that needs no file will do */
    CHECK_INT(epctx_status_to_ort(load_one(&b, NULL, &backend, NULL, &opts, NULL, &error)), 10);
    CHECK_HAS(error.message, "w.bin");
    opts.source_model.data = inside.data;
    opts.source_model.size = inside.size;
    given_count = 0;
    CHECK_OK(load_one(&b, NULL, &backend, NULL, &opts, NULL, &error), error);
    CHECK_UINT(given_count, 1);
    /* A name is no help without a folder; an empty path is no path. */
    memset(&opts, 0, sizeof opts);
    opts.source_model_path = "";
    CHECK_INT(epctx_status_to_ort(load_one(&b, NULL, &backend, NULL, &opts, NULL, &error)), 10);
    CHECK_HAS(error.message, "the weights are in the source model 'gone.onnx'");
    CHECK_HAS(error.message, "which is not beside");
    CHECK_HAS(error.message, "ep.context_source_model_path");
    bytes_free(&b);
    bytes_free(&outside);
    bytes_free(&inside);
}

/* Nodes of several sources: each gets the weights of its own. */
TEST(two_sources) {
    static const float others[2] = {3, 4};
    fake f = {0};
    epctx_backend backend = fake_backend(&f);
    epctx_model model;
    epctx_loaded loaded;
    epctx_error error;
    bytes graph = {0}, one = weight_model(numbers, NULL), two_model = weight_model(others, NULL);
    backend.weights_fn = note_weights;
    clear_root();
    save_bytes("one.onnx", &one);
    save_bytes("two.onnx", &two_model);
    add_weightless(&graph, "n1", "x", "a", "one.onnx", weight_line("w", numbers, 8));
    add_weightless(&graph, "n2", "a", "b", "two.onnx", weight_line("w", others, 8));
    save_model("m_ctx.onnx", &graph);
    CHECK_INT(epctx_model_open_file(&model, at("m_ctx.onnx"), NULL, &error), EPCTX_OK);
    CHECK_OK(epctx_load(&loaded, &model, &backend, NULL, &error), error);
    CHECK_MEM(given_weights, 8, others, 8); /* n2's, while the source is open */
    epctx_unload(&loaded);
    epctx_model_close(&model);
    /* With n2 first the other one is the last. */
    add_weightless(&graph, "n2", "x", "a", "two.onnx", weight_line("w", others, 8));
    add_weightless(&graph, "n1", "a", "b", "one.onnx", weight_line("w", numbers, 8));
    add_weightless(&graph, "n3", "b", "c", "two.onnx", weight_line("w", numbers, 8));
    save_model("m_ctx.onnx", &graph);
    CHECK_INT(epctx_model_open_file(&model, at("m_ctx.onnx"), NULL, &error), EPCTX_OK);
    CHECK_INT(epctx_load(&loaded, &model, &backend, NULL, &error), EPCTX_ERR_CONTEXT);
    CHECK_HAS(error.message, "n3"); /* its source has another w */
    epctx_model_close(&model);
    CHECK_INT(f.alive, 0);
}

/* One source under many names is opened once. */
TEST(one_source_spelled_differently) {
    static const char *const names[] = {"s.onnx", "./s.onnx", ".//./s.onnx", "s.onnx"};
    fake f = {0};
    epctx_backend backend = fake_backend(&f);
    epctx_load_opts opts = {0};
    epctx_open_opts open = {0};
    flaky count = {0};
    epctx_io io = flaky_io(&count);
    epctx_error error;
    bytes graph = {0}, source = weight_model(numbers, NULL);
    backend.weights_fn = note_weights;
    open.io = &io;
    clear_root();
    save_bytes("s.onnx", &source);
    for (size_t i = 0; i < 4; i++)
        add_weightless(&graph, "n", "x", "y", names[i], weight_line("w", numbers, 8));
    save_model("m_ctx.onnx", &graph);
    CHECK_OK(load_one(NULL, at("m_ctx.onnx"), &backend, &open, NULL, NULL, &error), error);
    CHECK_INT(count.mapped, 2); /* the EPContext model and its source */
    opts.source_model_path = at("s.onnx");
    CHECK_OK(load_one(NULL, at("m_ctx.onnx"), &backend, &open, &opts, NULL, &error), error);
    CHECK_INT(count.mapped, 4);
    CHECK_INT(count.maps, 0);
}

/* The source model is beside the model as the options name it, or where they say; a node that names
 * none, and options that name none, are told apart from a file that is missing. */
TEST(place_of_the_source) {
    fake f = {0};
    epctx_backend backend = fake_backend(&f);
    epctx_load_opts opts = {0};
    epctx_error error;
    bytes graph = {0}, unnamed = {0}, b, source = weight_model(numbers, NULL);
    backend.weights_fn = note_weights;
    clear_root();
    save_bytes("s.onnx", &source);
    add_weightless(&graph, "n", "x", "y", "s.onnx", weight_line("w", numbers, 8));
    b = new_model(&graph);
    opts.context_file_path = at("m_ctx.onnx");
    given_weights = NULL;
    CHECK_OK(load_one(&b, NULL, &backend, NULL, &opts, NULL, &error), error);
    CHECK_TRUE(given_weights != NULL);
    opts.context_file_path = at("gone/m_ctx.onnx");
    CHECK_INT(epctx_status_to_ort(load_one(&b, NULL, &backend, NULL, &opts, NULL, &error)), 10);
    CHECK_HAS(error.message, "the weights are in the source model 's.onnx', which is not beside");
    opts.source_model_path = at("s.onnx");
    CHECK_OK(load_one(&b, NULL, &backend, NULL, &opts, NULL, &error), error);
    bytes_free(&b);
    add_weightless(&unnamed, "n", "x", "y", NULL, weight_line("w", numbers, 8));
    b = new_model(&unnamed);
    CHECK_OK(load_one(&b, NULL, &backend, NULL, &opts, NULL, &error), error);
    opts.source_model_path = NULL;
    CHECK_INT(epctx_status_to_ort(load_one(&b, NULL, &backend, NULL, &opts, NULL, &error)), 10);
    CHECK_HAS(error.message, "which the node does not name: set ep.context_source_model_path");
    bytes_free(&b);
}

/* A weight that was found right once is not taken for one of another size or hash. */
TEST(one_weight_named_differently) {
    static const float others[2] = {1, 3};
    const char *const second[] = {weight_line("w", numbers, 4), weight_line("w", others, 8),
                                  weight_line("w", numbers, 8)};
    for (size_t i = 0; i < 3; i++) {
        fake f = {0};
        epctx_backend backend = fake_backend(&f);
        epctx_load_opts opts = {0};
        epctx_error error;
        bytes graph = {0}, b, source = weight_model(numbers, NULL);
        char text[400];
        backend.weights_fn = note_weights;
        snprintf(text, sizeof text, "%s%s", weight_line("w", numbers, 8), second[i]);
        add_weightless(&graph, "node", "x", "y", NULL, text);
        b = new_model(&graph);
        opts.source_model.data = source.data;
        opts.source_model.size = source.size;
        CHECK_INT(load_one(&b, NULL, &backend, NULL, &opts, NULL, &error),
                  i == 2 ? EPCTX_OK : EPCTX_ERR_CONTEXT);
        if (i < 2) CHECK_HAS(error.message, "compile again");
        bytes_free(&b);
        bytes_free(&source);
    }
}

/* -- the cache -- */

static int stat_fails_from, stats; /* stat of the source */

static epctx_status lost_stat(void *user, const char *path, epctx_file_info *info,
                              epctx_error *error) {
    const epctx_io *files = epctx_io_files();
    size_t length = strlen(path);
    (void)user;
    if (length > 7 && strcmp(path + length - 7, "/m.onnx") == 0 && ++stats >= stat_fails_from)
        return epctx_fail(error, EPCTX_ERR_IO, "cannot look");
    return files->stat_fn(files->user, path, info, error);
}

/* A source that cannot be looked at is not one that is gone: the EPContext model is not trusted. */
TEST(cache_and_a_source_out_of_sight) {
    fake f = {0};
    epctx_backend backend = fake_backend(&f);
    epctx_io io = *epctx_io_files();
    epctx_open_opts open = {0};
    epctx_cache_opts opts = {0};
    epctx_opened opened;
    epctx_error error;
    bytes before, after;
    clear_root();
    make_source(1);
    CHECK_INT(epctx_open_or_compile(&opened, at("m.onnx"), &backend, NULL, &error), EPCTX_OK);
    epctx_opened_close(&opened);
    before = read_file(at("m_ctx.onnx"));
    io.stat_fn = lost_stat;
    open.io = &io;
    opts.open = &open;
    opts.no_compile = true;
    stats = 0;
    stat_fails_from = 1;
    CHECK_INT(epctx_open_or_compile(&opened, at("m.onnx"), &backend, &opts, &error),
              EPCTX_ERR_NOT_COMPILED);
    CHECK_HAS(opened.reason.message, "cannot look");
    epctx_opened_close(&opened);
    after = read_file(at("m_ctx.onnx"));
    CHECK_MEM(after.data, after.size, before.data, before.size);
    CHECK_INT(f.alive, 0);
    bytes_free(&before);
    bytes_free(&after);
}

/* Weights that the caller gives count, also for a cache. */
TEST(cache_with_weights) {
    fake f = {0};
    epctx_backend backend = fake_backend(&f);
    epctx_load_opts load = {0};
    epctx_cache_opts opts = {0};
    epctx_opened opened;
    epctx_error error;
    bytes graph = {0}, source = weight_model(numbers, NULL);
    static const float others[2] = {5, 6};
    bytes wrong = weight_model(others, NULL);
    backend.weights_fn = note_weights;
    clear_root();
    add_weightless(&graph, "node", "x", "y", NULL, weight_line("w", numbers, 8));
    save_model("m_ctx.onnx", &graph); /* without a stamp, and without a source beside it */
    opts.load = &load;
    opts.no_compile = true;
    load.source_model.data = source.data;
    load.source_model.size = source.size;
    given_count = 0;
    CHECK_OK(epctx_open_or_compile(&opened, at("m.onnx"), &backend, &opts, &error), error);
    CHECK_UINT(given_count, 1);
    epctx_opened_close(&opened);
    memset(&load, 0, sizeof load);
    make_file(at("w.onnx"), source.data, source.size);
    load.source_model_path = at("w.onnx");
    given_count = 0;
    CHECK_OK(epctx_open_or_compile(&opened, at("m.onnx"), &backend, &opts, &error), error);
    CHECK_UINT(given_count, 1);
    epctx_opened_close(&opened);
    make_file(at("w.onnx"), wrong.data, wrong.size);
    CHECK_INT(epctx_open_or_compile(&opened, at("m.onnx"), &backend, &opts, &error),
              EPCTX_ERR_NOT_COMPILED);
    CHECK_HAS(opened.reason.message, "compile again");
    epctx_opened_close(&opened);
    bytes_free(&source);
    bytes_free(&wrong);
}

/* -- sharing -- */

static epctx_status share_one(epctx_workspace *w, const bytes *b, const char *path,
                              const epctx_backend *backend, size_t *bound, epctx_error *error) {
    epctx_load_opts opts = {0};
    opts.workspace = w;
    return load_one(b, path, backend, NULL, &opts, bound, error);
}

/* A name that leaves the folder is refused before any file; without files only embedded contexts
 * load. */
TEST(share_load_refused) {
    fake f = {0};
    epctx_backend backend = fake_backend(&f);
    epctx_workspace *w;
    epctx_error error;
    size_t bound;
    bytes b = one_node(1, 0, "../p.bin");
    clear_root();
    CHECK_INT(epctx_workspace_open(&w, NULL, &error), EPCTX_OK);
    save_bytes("m_ctx.onnx", &b);
    CHECK_INT(epctx_status_to_ort(share_one(w, NULL, at("m_ctx.onnx"), &backend, &bound, &error)),
              10);
    CHECK_HAS(error.message, "'../p.bin'");
    CHECK_HAS(error.message, "node");
    CHECK_INT(f.loads, 0);
    bytes_free(&b);
    epctx_workspace_close(w);
}

static epctx_status map_silently(void *user, const char *folder, const char *name, bool copy,
                                 epctx_mapping *out, epctx_error *e) {
    if (strcmp(name, "p.bin") == 0) {
        memset(out, 0, sizeof *out);
        return EPCTX_ERR_NOT_FOUND;
    }
    return epctx_io_files()->map_fn(user, folder, name, copy, out, e);
}

/* A shared binary that is not there, or that is refused without a word. Nobody need ask why. */
TEST(share_load_without_reason) {
    fake f = {0};
    epctx_backend backend = fake_backend(&f);
    epctx_io io = *epctx_io_files();
    epctx_open_opts open = {0};
    epctx_load_opts opts = {0};
    epctx_error error;
    epctx_error *const errors[] = {&error, NULL};
    bytes b = one_node(1, 0, "p.bin");
    clear_root();
    save_bytes("m_ctx.onnx", &b);
    CHECK_INT(epctx_workspace_open(&opts.workspace, NULL, &error), EPCTX_OK);
    for (size_t i = 0; i < 2; i++) {
        remove(at("p.bin"));
        CHECK_INT(load_one(NULL, at("m_ctx.onnx"), &backend, NULL, &opts, NULL, errors[i]),
                  EPCTX_ERR_CONTEXT);
        if (i == 0) CHECK_HAS(error.message, "does not exist");
        if (i == 0) CHECK_HAS(error.message, "ep.stop_share_ep_contexts=1");
        make_file(at("p.bin"), part_binary, strlen(part_binary));
        backend.load_fn = load_silently;
        CHECK_INT(load_one(NULL, at("m_ctx.onnx"), &backend, NULL, &opts, NULL, errors[i]),
                  EPCTX_ERR_CONTEXT);
        if (i == 0) CHECK_HAS(error.message, "the context cannot be loaded");
        backend.load_fn = fake_backend(&f).load_fn;
    }
    io.map_fn = map_silently;
    open.io = &io;
    CHECK_INT(load_one(NULL, at("m_ctx.onnx"), &backend, &open, &opts, NULL, &error),
              EPCTX_ERR_CONTEXT);
    CHECK_HAS(error.message, "node 'node': attribute 'ep_cache_context': the context cannot be");
    CHECK_INT(f.loads, 0);
    epctx_workspace_close(opts.workspace);
}

/* A secondary node whose graph is in an embedded context, beside a shared binary without it. */
TEST(share_and_embed) {
    fake f = {0};
    epctx_backend backend = fake_backend(&f);
    epctx_workspace *w;
    epctx_error error;
    size_t bound;
    bytes graph = {0};
    clear_root();
    make_file(at("o.bin"), other_binary, strlen(other_binary));
    add_epnode(&graph, "file", "x", "a", 1, 0, "FakeEP", "other", "o.bin", 5);
    add_epnode(&graph, "inside", "a", "b", 1, 1, "FakeEP", "part", part_binary,
               strlen(part_binary));
    add_epnode(&graph, "second", "b", "y", 0, 0, "FakeEP", "part", NULL, 0);
    save_model("m_ctx.onnx", &graph);
    CHECK_INT(epctx_workspace_open(&w, NULL, &error), EPCTX_OK);
    CHECK_OK(share_one(w, NULL, at("m_ctx.onnx"), &backend, &bound, &error), error);
    CHECK_UINT(bound, 3);
    CHECK_INT(f.alive, 0);
    epctx_workspace_close(w);
}

static int taken_off; /* weights, from graphs that were there */

static epctx_status count_off(void *self, void *graph, const epctx_tensor *weights, size_t count,
                              epctx_error *error) {
    (void)graph, (void)count, (void)error;
    taken_off += weights == NULL && ((const fake *)self)->alive == 1;
    return EPCTX_OK;
}

/* Two weightless nodes of one graph: their weights go before the graph does. */
TEST(share_weightless_twice) {
    fake f = {0};
    epctx_backend backend = fake_backend(&f);
    epctx_workspace *w;
    epctx_error error;
    size_t bound;
    bytes graph = {0}, source = weight_model(numbers, NULL);
    backend.weights_fn = count_off;
    clear_root();
    save_bytes("s.onnx", &source);
    make_file(at("p.bin"), part_binary, strlen(part_binary));
    for (int i = 0; i < 2; i++) {
        bytes node = new_node("EPContext", "com.microsoft", "n", "x", "y");
        const char *line = weight_line("w", numbers, 8);
        add_attr_int(&node, "embed_mode", 0);
        add_attr_str(&node, "ep_cache_context", "p.bin", 5);
        add_attr_str(&node, "source", "FakeEP", 6);
        add_attr_str(&node, "partition_name", "part", 4);
        add_attr_str(&node, "onnx_model_filename", "s.onnx", 6);
        add_attr_str(&node, EPCTX_WEIGHTS_ATTR, line, strlen(line));
        put_child(&graph, 1, &node);
    }
    save_model("m_ctx.onnx", &graph);
    taken_off = 0;
    CHECK_INT(epctx_workspace_open(&w, NULL, &error), EPCTX_OK);
    CHECK_OK(share_one(w, NULL, at("m_ctx.onnx"), &backend, &bound, &error), error);
    CHECK_UINT(bound, 2);
    CHECK_INT(taken_off, 2);
    CHECK_INT(f.alive, 0);
    epctx_workspace_close(w);
}

/* Folders and names that are too long for any path. */
TEST(share_long_paths) {
    static char folder[EPCTX_PATH_MAX + 8], name[EPCTX_PATH_MAX];
    fake f = {0};
    epctx_backend backend = fake_backend(&f);
    epctx_workspace *w;
    epctx_loaded loaded;
    epctx_error error;
    epctx_str part = epctx_str_of("part");
    clear_root();
    memset(folder, 'f', sizeof folder - 1);
    folder[sizeof folder - 2] = '/';
    memset(name, 'n', sizeof name - 1);
    for (size_t i = 200; i < sizeof name - 1; i += 200) name[i] = '/';
    CHECK_INT(epctx_workspace_open(&w, NULL, &error), EPCTX_OK);
    CHECK_INT(take_graph(w, &backend, folder, "p.bin", part, 0, &loaded, &error),
              EPCTX_ERR_CONTEXT);
    CHECK_HAS(error.message, "4095");
    CHECK_INT(take_graph(w, &backend, at("m.onnx"), name, part, 0, &loaded, &error),
              EPCTX_ERR_CONTEXT);
    CHECK_HAS(error.message, "4095");
    CHECK_INT(f.loads, 0);
    epctx_workspace_close(w);
}

/* -- groups -- */

static epctx_status host(epctx_workspace *w, const epctx_backend *backend,
                         const epctx_share_opts *opts, const char *out, epctx_arena *arena,
                         epctx_error *error) {
    fake_piece p;
    const epctx_graph *piece = fake_make_piece(&p, "x", out);
    const epctx_node *nodes;
    epctx_share_opts mine = {0};
    if (opts != NULL) mine = *opts;
    mine.pieces = &piece;
    mine.piece_count = 1;
    return epctx_share_compile(w, backend, opts != NULL ? &mine : NULL, arena, &nodes, error);
}

/* What cannot become a group, before anything is compiled. */
TEST(hosted_refused) {
    static char longest[2 * EPCTX_PATH_MAX];
    static const char *const no_path[] = {NULL, ""};
    fake f = {0};
    epctx_backend backend = fake_backend(&f);
    epctx_workspace *w;
    epctx_share_opts opts = {0};
    epctx_arena arena;
    epctx_error error;
    char long_folder[EPCTX_PATH_MAX];
    clear_root();
    epctx_arena_init(&arena, NULL);
    CHECK_INT(epctx_workspace_open(&w, NULL, &error), EPCTX_OK);
    for (size_t i = 0; i < 2; i++) {
        opts.context_path = no_path[i];
        CHECK_INT(host(w, &backend, &opts, "y", &arena, &error), EPCTX_ERR_ARG);
        CHECK_HAS(error.message, "a context_path");
    }
    CHECK_INT(host(w, &backend, NULL, "y", &arena, &error), EPCTX_ERR_ARG);
    /* Its folder has no room in a path, its name none, or the binary's name none behind it. */
    memset(longest, 'd', sizeof longest - 8);
    memcpy(longest + sizeof longest - 8, "/m.onnx", 8);
    opts.context_path = longest;
    CHECK_INT(host(w, &backend, &opts, "y", &arena, &error), EPCTX_ERR_LIMIT);
    memset(longest, 'm', EPCTX_PATH_MAX + 2);
    memcpy(longest + EPCTX_PATH_MAX + 2, ".onnx", 6);
    CHECK_INT(host(w, &backend, &opts, "y", &arena, &error), EPCTX_ERR_LIMIT);
    CHECK_HAS(error.message, "mmm"); /* the file that would be written */
    {
        size_t size = strlen(root), most = sizeof long_folder - 1 - strlen("/m.onnx");
        memcpy(long_folder, root, size);
        while (size + 2 <= most) {
            memcpy(long_folder + size, "/.", 2);
            size += 2;
        }
        memcpy(long_folder + size, "/m.onnx", 8);
    }
    opts.context_path = long_folder;
    CHECK_INT(host(w, &backend, &opts, "y", &arena, &error), EPCTX_ERR_LIMIT);
    CHECK_INT(f.compiled, 0);
    CHECK_INT(f.alive, 0);
    CHECK_STR(listing(), "");
    epctx_arena_free(&arena);
    epctx_workspace_close(w);
}

/* A binary of before is replaced when that is allowed; two graphs of one name are one too many. */
TEST(hosted_over_another) {
    fake f = {0};
    epctx_backend backend = fake_backend(&f);
    epctx_workspace *w;
    epctx_share_opts opts = {0};
    epctx_arena arena;
    epctx_error error;
    char model[400], second[400];
    bytes b;
    clear_root();
    snprintf(model, sizeof model, "%s", at("a_ctx.onnx"));
    snprintf(second, sizeof second, "%s", at("b_ctx.onnx"));
    opts.context_path = model;
    opts.model_hash = 7; /* of both: their names meet */
    make_file(at("a_fake.bin"), "of before", 9);
    epctx_arena_init(&arena, NULL);
    CHECK_INT(epctx_workspace_open(&w, NULL, &error), EPCTX_OK);
    CHECK_INT(host(w, &backend, &opts, "y", &arena, &error), EPCTX_ERR_EXISTS);
    CHECK_HAS(error.message, "a_fake.bin: exists already");
    opts.overwrite = true;
    CHECK_OK(host(w, &backend, &opts, "y", &arena, &error), error);
    opts.context_path = second;
    CHECK_INT(host(w, &backend, &opts, "z", &arena, &error), EPCTX_ERR_ARG);
    CHECK_HAS(error.message, "the shared context has another graph");
    CHECK_HAS(error.message, "ep.context_node_name_prefix");
    opts.name_prefix = "b_";
    CHECK_OK(host(w, &backend, &opts, "z", &arena, &error), error);
    CHECK_INT(epctx_share_finish(w, NULL, "FakeEP", NULL, NULL, &error), EPCTX_OK);
    b = read_file(at("a_fake.bin"));
    CHECK_TRUE(bytes_contain(&b, "FAKE\001\n2\n", 8));
    bytes_free(&b);
    CHECK_STR(listing(), "a_fake.bin ");
    epctx_arena_free(&arena);
    epctx_workspace_close(w);
}

/* The finished binary is looked at before it is written: that it loads, and has every graph. */
TEST(group_verified) {
    static const fake_step steps[] = {FAKE_LOAD, FAKE_FIND, FAKE_FIND};
    for (int i = 0; i < 3; i++) {
        fake f = {0};
        epctx_backend backend = fake_backend(&f);
        epctx_workspace *w;
        epctx_share_opts opts = {0};
        epctx_arena arena;
        epctx_error error;
        char model[400], second[400];
        clear_root();
        snprintf(model, sizeof model, "%s", at("a_ctx.onnx"));
        snprintf(second, sizeof second, "%s", at("b_ctx.onnx"));
        opts.context_path = model;
        opts.verify = true;
        epctx_arena_init(&arena, NULL);
        CHECK_INT(epctx_workspace_open(&w, NULL, &error), EPCTX_OK);
        CHECK_INT(host(w, &backend, &opts, "y", &arena, &error), EPCTX_OK);
        opts.context_path = second;
        opts.verify = false; /* one session that wants it is enough */
        CHECK_INT(host(w, &backend, &opts, "z", &arena, &error), EPCTX_OK);
        f.fail = steps[i];
        f.fail_after = i == 2;
        CHECK_INT(epctx_share_finish(w, NULL, "FakeEP", NULL, NULL, &error), EPCTX_ERR_BACKEND);
        CHECK_HAS(error.message, "the fake fails as told");
        CHECK_STR(listing(), "");
        CHECK_INT(f.alive, 0);
        CHECK_INT(f.finds, i);
        epctx_arena_free(&arena);
        epctx_workspace_close(w);
    }
}

/* max_size of all reaches the models that are here, in nodes of this EP only; a host's are its
 * own. */
TEST(sizes_of_a_mixed_group) {
    fake f = {0};
    epctx_backend backend = fake_backend(&f);
    epctx_workspace *w;
    epctx_share_opts opts = {0};
    epctx_gen_opts gen = {0};
    epctx_arena arena;
    epctx_model model;
    epctx_error error;
    epctx_cursor it;
    epctx_node_view node;
    epctx_epnode ep;
    bytes graph = {0}, b;
    char second[400];
    int ours = 0, others = 0;
    clear_root();
    backend.max_size_fn = fake_max_size;
    add_node(&graph, "Take", "n0", "x,w", "a");
    add_epnode(&graph, "other", "a", "y", 1, 1, "QNN", "p", "payload", 7);
    put_str(&graph, 2, "g");
    add_floats(&graph, "w", numbers, 2);
    add_x_and_y(&graph);
    b = new_model(&graph);
    add_opset(&b, "com.microsoft", 1);
    save_bytes("a.onnx", &b);
    epctx_arena_init(&arena, NULL);
    CHECK_INT(epctx_workspace_open(&w, NULL, &error), EPCTX_OK);
    CHECK_INT(epctx_model_open_file(&model, at("a.onnx"), NULL, &error), EPCTX_OK);
    f.max_size = 100;
    gen.verify = true; /* with the group's binary */
    gen.workspace = w;
    CHECK_OK(epctx_generate(&model, &backend, &gen, NULL, &error), error);
    epctx_model_close(&model);
    snprintf(second, sizeof second, "%s", at("b_ctx.onnx"));
    opts.context_path = second;
    opts.io = epctx_io_files();
    f.max_size = 700;
    CHECK_OK(host(w, &backend, &opts, "z", &arena, &error), error);
    CHECK_INT(epctx_share_finish(w, NULL, "FakeEP", NULL, NULL, &error), EPCTX_OK);
    CHECK_INT(f.loads, 1); /* verified */
    CHECK_STR(listing(), "a.onnx a_ctx.onnx a_fake.bin ");
    CHECK_INT(epctx_model_open_file(&model, at("a_ctx.onnx"), NULL, &error), EPCTX_OK);
    it = epctx_view_graph_nodes(epctx_model_graph(&model));
    while (epctx_next_node(&it, &node)) {
        CHECK_INT(epctx_view_read_epnode(&node, &ep, &error), EPCTX_OK);
        if (epctx_str_is(ep.source, "FakeEP")) {
            CHECK_INT(ep.max_size, 700);
            ours++;
        } else {
            CHECK_TRUE((ep.present & 1u << EPCTX_EPNODE_MAX_SIZE) == 0);
            others++;
        }
    }
    CHECK_TRUE(ours == 1 && others == 1);
    epctx_model_close(&model);
    epctx_arena_free(&arena);
    epctx_workspace_close(w);
}

/* Sessions of which nothing is taken are copied: a group without a graph has no binary. */
TEST(group_of_copies) {
    fake f = {0};
    epctx_backend backend = fake_backend(&f);
    epctx_workspace *w;
    epctx_gen_opts gen = {0};
    epctx_gen_report report;
    epctx_model model;
    epctx_error error;
    bytes source, copy;
    f.takes = "Nothing";
    clear_root();
    make_named("a.onnx", 1);
    gen.no_nodes = EPCTX_NO_NODES_COPY;
    gen.verify = true; /* of nothing */
    CHECK_INT(epctx_workspace_open(&w, NULL, &error), EPCTX_OK);
    CHECK_INT(epctx_model_open_file(&model, at("a.onnx"), NULL, &error), EPCTX_OK);
    gen.workspace = w;
    gen.stop = true;
    CHECK_OK(epctx_generate(&model, &backend, &gen, &report, &error), error);
    CHECK_STR(report.context_path, at("a_ctx.onnx"));
    CHECK_STR(report.binary_path, "");
    epctx_model_close(&model);
    CHECK_STR(listing(), "a.onnx a_ctx.onnx ");
    source = read_file(at("a.onnx"));
    copy = read_file(at("a_ctx.onnx"));
    CHECK_MEM(copy.data, copy.size, source.data, source.size);
    CHECK_INT(f.loads, 0);
    CHECK_INT(f.alive, 0);
    bytes_free(&source);
    bytes_free(&copy);
    epctx_workspace_close(w);
}

/* The second session's file of initializers: a name that leaves the folder, and one too long for
 * the folder that it would be in. */
TEST(group_initializers_refused) {
    static char longest[EPCTX_PATH_MAX];
    fake f = {0};
    epctx_backend backend = fake_backend(&f);
    epctx_workspace *w;
    epctx_gen_opts gen = {0};
    epctx_model model;
    epctx_error error;
    const char *const names[] = {"../i.data",
                                 "a_name_that_is_longer_than_the_name_of_the_model_it_belongs_to"};
    size_t size = strlen(root);
    clear_root();
    memcpy(longest, root, size); /* root/././.../b_ctx.onnx */
    for (; size + 2 <= sizeof longest - 40; size += 2) memcpy(longest + size, "/.", 2);
    memcpy(longest + size, "/b_ctx.onnx", 12);
    make_named("a.onnx", 1);
    make_named("b.onnx", 2);
    CHECK_INT(epctx_workspace_open(&w, NULL, &error), EPCTX_OK);
    CHECK_INT(epctx_model_open_file(&model, at("a.onnx"), NULL, &error), EPCTX_OK);
    gen.workspace = w;
    CHECK_INT(epctx_generate(&model, &backend, &gen, NULL, &error), EPCTX_OK);
    epctx_model_close(&model);
    CHECK_INT(epctx_model_open_file(&model, at("b.onnx"), NULL, &error), EPCTX_OK);
    for (size_t i = 0; i < 2; i++) {
        epctx_status status;
        int compiled = f.compiled;
        gen.initializers_file_name = names[i];
        gen.context_file_path = i == 0 ? NULL : longest;
        status = epctx_generate(&model, &backend, &gen, NULL, &error);
        CHECK(status == (i == 0 ? EPCTX_ERR_ARG : EPCTX_ERR_LIMIT), "%s: %s",
              epctx_status_name(status), error.message);
        CHECK_HAS(error.message, i == 0 ? "../i.data" : "longer than");
        CHECK_INT(f.compiled, compiled);
        CHECK_INT(f.alive, 1);
    }
    epctx_model_close(&model);
    CHECK_STR(listing(), "a.onnx b.onnx ");
    epctx_workspace_close(w);
    CHECK_INT(f.alive, 0);
}

/* -- binaries that the build stamp knows -- */

/* A model of EPContext nodes with a stamp that says of its binary what `line` says. */
static bytes stamped_model(const char *first, const char *second, const char *line) {
    bytes graph = {0}, model;
    add_epnode(&graph, "one", "x", "y", 1, 0, "FakeEP", "part", first, strlen(first));
    if (second != NULL)
        add_epnode(&graph, "two", "x", "z", 1, 0, "FakeEP", "part", second, strlen(second));
    model = new_model(&graph);
    add_metadata(&model, "epctx.build.FakeEP", line);
    return model;
}

/* The stamp is of one spelling of the source; the first binary is of another one. */
TEST(stamp_of_another_binary) {
    fake f = {0};
    epctx_backend backend = fake_backend(&f);
    epctx_profile profile = *epctx_profile_find(epctx_str_of("generic"));
    epctx_load_opts opts = {0};
    epctx_error error;
    char line[80];
    bytes graph = {0}, b;
    profile.sources[0] = "FakeEP";
    profile.sources[1] = NULL;
    profile.traits = EPCTX_TRAIT_ANY_CASE;
    opts.profile = &profile;
    clear_root();
    make_file(at("p.bin"), other_binary, strlen(other_binary));
    make_file(at("q.bin"), other_binary, strlen(other_binary));
    snprintf(line, sizeof line, "binary %zu 0123456789abcdef", strlen(other_binary));
    add_epnode(&graph, "one", "x", "y", 1, 0, "fakeep", "part", "q.bin", 5);
    add_epnode(&graph, "two", "x", "z", 1, 0, "FakeEP", "part", "p.bin", 5);
    b = new_model(&graph);
    add_metadata(&b, "epctx.build.FakeEP", line);
    save_bytes("m_ctx.onnx", &b);
    CHECK_INT(
        epctx_status_to_ort(load_one(NULL, at("m_ctx.onnx"), &backend, NULL, &opts, NULL, &error)),
        10);
    CHECK_HAS(error.message, "one");
    CHECK_TRUE(strstr(error.message, "the model was compiled with") == NULL);
    CHECK_INT(f.alive, 0);
}

/* Of several binaries nobody knows which one the stamp means: none is judged. */
TEST(stamp_and_two_binaries) {
    fake f = {0};
    epctx_backend backend = fake_backend(&f);
    epctx_error error;
    size_t bound;
    char model[400];
    bytes b;
    clear_root();
    snprintf(model, sizeof model, "%s", at("m_ctx.onnx"));
    make_file(at("p.bin"), part_binary, strlen(part_binary));
    make_file(at("q.bin"), part_binary, strlen(part_binary));
    b = stamped_model("p.bin", "q.bin", "binary 999 0");
    save_bytes("m_ctx.onnx", &b);
    CHECK_OK(load_one(NULL, model, &backend, NULL, NULL, &bound, &error), error);
    CHECK_UINT(bound, 2);
    b = stamped_model("p.bin", "p.bin", "binary 999 0");
    save_bytes("m_ctx.onnx", &b);
    CHECK_INT(epctx_status_to_ort(load_one(NULL, model, &backend, NULL, NULL, &bound, &error)), 10);
    CHECK_HAS(error.message, "the model was compiled with one of 999");
    CHECK_INT(load_one(NULL, model, &backend, NULL, NULL, &bound, NULL), EPCTX_ERR_VERSION);
    CHECK_INT(f.alive, 0);
}

/* With a line for each, a binary that took the place of another one is noticed by its size, and one
 * that was refused by its hash. */
TEST(stamp_of_two_binaries) {
    static const char *const names[] = {"p.bin", "q.bin"};
    fake f = {0};
    epctx_backend backend = fake_backend(&f);
    epctx_error error;
    size_t bound;
    char model[400], stamp[200];
    bytes b;
    for (size_t i = 0; i < 2; i++) {
        clear_root();
        snprintf(model, sizeof model, "%s", at("m_ctx.onnx"));
        make_file(at("p.bin"), part_binary, strlen(part_binary));
        make_file(at("q.bin"), part_binary, strlen(part_binary));
        snprintf(stamp, sizeof stamp, "epctx 2\nbinary %zu %016" PRIx64 "\nbinary %zu %016" PRIx64,
                 strlen(part_binary) + (i == 0), epctx_hash(part_binary, strlen(part_binary), 0),
                 strlen(part_binary) + (i == 1), epctx_hash(part_binary, strlen(part_binary), 0));
        b = stamped_model("p.bin", "q.bin", stamp);
        save_bytes("m_ctx.onnx", &b);
        CHECK_INT(load_one(NULL, model, &backend, NULL, NULL, &bound, &error), EPCTX_ERR_VERSION);
        CHECK_HAS(error.message, names[i]);
        CHECK_HAS(error.message, "the model was compiled with one of");
        make_file(at(names[i]), other_binary, strlen(other_binary));
        snprintf(stamp, sizeof stamp, "epctx 2\nbinary %zu %016" PRIx64 "\nbinary %zu %016" PRIx64,
                 strlen(i == 0 ? other_binary : part_binary), UINT64_C(1),
                 strlen(i == 1 ? other_binary : part_binary), UINT64_C(2));
        b = stamped_model("p.bin", "q.bin", stamp);
        save_bytes("m_ctx.onnx", &b);
        CHECK_TRUE(load_one(NULL, model, &backend, NULL, NULL, &bound, &error) != EPCTX_OK);
        CHECK_HAS(error.message, names[i]);
        CHECK_HAS(error.message,
                  i == 0 ? "one of hash 0000000000000001:" : "one of hash 0000000000000002:");
    }
    CHECK_INT(f.alive, 0);
}

/* Why a binary was refused is told by its hash where it can be read, else by who refused it. */
TEST(stamp_of_a_refused_binary) {
    fake f = {0};
    epctx_backend backend = fake_backend(&f);
    epctx_load_opts load = {0};
    epctx_workspace_opts opts = {0};
    epctx_workspace *w;
    epctx_model model;
    epctx_loaded loaded;
    epctx_error error;
    size_t bound;
    char path[400], line[80];
    bytes b;
    clear_root();
    snprintf(path, sizeof path, "%s", at("m_ctx.onnx"));
    snprintf(line, sizeof line, "binary %zu 0123456789abcdef", strlen(other_binary));
    make_file(at("p.bin"), other_binary, strlen(other_binary));
    b = stamped_model("p.bin", NULL, line);
    save_bytes("m_ctx.onnx", &b);
    CHECK_INT(epctx_status_to_ort(load_one(NULL, path, &backend, NULL, NULL, &bound, &error)), 10);
    CHECK_HAS(error.message, "the model was compiled with one of hash 0123456789abcdef");
    CHECK_INT(epctx_status_to_ort(load_one(NULL, path, &backend, NULL, NULL, &bound, NULL)), 10);
    /* Of another size nothing is hashed. */
    snprintf(line, sizeof line, "binary %zu 0123456789abcdef", strlen(other_binary) + 1);
    b = stamped_model("p.bin", NULL, line);
    save_bytes("m_ctx.onnx", &b);
    CHECK_INT(epctx_status_to_ort(load_one(NULL, path, &backend, NULL, NULL, &bound, &error)), 10);
    CHECK(strstr(error.message, "compiled with one of hash") == NULL, "%s", error.message);
    snprintf(line, sizeof line, "binary %zu 0123456789abcdef", strlen(other_binary));
    /* A name that leaves the folder is not opened to find out. */
    opts.taken = EPCTX_TAKEN_ERROR;
    CHECK_INT(epctx_workspace_open(&w, &opts, &error), EPCTX_OK);
    b = stamped_model("../p.bin", NULL, line);
    save_bytes("m_ctx.onnx", &b);
    CHECK_INT(epctx_status_to_ort(share_one(w, NULL, path, &backend, &bound, &error)), 10);
    CHECK_HAS(error.message, "'../p.bin'");
    /* A binary that is in use, and whose file is gone. */
    make_file(at("p.bin"), part_binary, strlen(part_binary));
    snprintf(line, sizeof line, "binary %zu 0123456789abcdef", strlen(part_binary));
    b = stamped_model("p.bin", NULL, line);
    save_bytes("m_ctx.onnx", &b);
    CHECK_INT(epctx_model_open_file(&model, path, NULL, &error), EPCTX_OK);
    load.workspace = w;
    CHECK_OK(epctx_load(&loaded, &model, &backend, &load, &error), error);
    remove(at("p.bin"));
    CHECK_INT(epctx_status_to_ort(share_one(w, NULL, path, &backend, &bound, &error)), 10);
    CHECK_HAS(error.message, "is in use by another session");
    epctx_unload(&loaded);
    epctx_model_close(&model);
    epctx_workspace_close(w);
    CHECK_INT(f.alive, 0);
}

/* A graph that failed to compile is forgotten, whatever took its place since. */
TEST(group_forgets_failures) {
    fake f = {0};
    epctx_backend backend = fake_backend(&f);
    epctx_workspace *w;
    epctx_share_opts opts;
    epctx_arena arena;
    epctx_error error;
    char paths[3][400];
    bytes b;
    clear_root();
    for (int i = 0; i < 3; i++) {
        char name[16];
        snprintf(name, sizeof name, "%c_ctx.onnx", 'a' + i);
        snprintf(paths[i], sizeof paths[i], "%s", at(name));
    }
    memset(&opts, 0, sizeof opts);
    epctx_arena_init(&arena, NULL);
    CHECK_INT(epctx_workspace_open(&w, NULL, &error), EPCTX_OK);
    opts.context_path = paths[0];
    opts.name_prefix = "a_";
    CHECK_INT(host(w, &backend, &opts, "y", &arena, &error), EPCTX_OK);
    opts.context_path = paths[1];
    opts.name_prefix = "b_";
    f.fail = FAKE_COMPILE;
    CHECK_INT(host(w, &backend, &opts, "y", &arena, &error), EPCTX_ERR_BACKEND);
    f.fail = FAKE_NONE;
    opts.context_path = paths[2];
    opts.name_prefix = "c_";
    CHECK_INT(host(w, &backend, &opts, "y", &arena, &error), EPCTX_OK);
    opts.context_path = paths[1];
    opts.name_prefix = "b_";
    CHECK_OK(host(w, &backend, &opts, "y", &arena, &error), error);
    CHECK_INT(f.compiled, 3);
    CHECK_INT(epctx_share_finish(w, NULL, "FakeEP", NULL, NULL, &error), EPCTX_OK);
    b = read_file(at("a_fake.bin"));
    CHECK_TRUE(bytes_contain(&b, "FAKE\001\n3\n", 8));
    CHECK_TRUE(bytes_contain(&b, "\na_", 3) && bytes_contain(&b, "\nb_", 3) &&
               bytes_contain(&b, "\nc_", 3));
    bytes_free(&b);
    epctx_arena_free(&arena);
    epctx_workspace_close(w);
}

/* The stamp of a session's model gets its last line when the group ends: wherever the text grows,
 * the memory for it is missing once, and nothing is written. */
TEST(group_stamp_without_memory) {
    epctx_io io = quick_io();
    epctx_open_opts open = {0};
    size_t refused = 0;
    clear_root();
    open.io = &io;
    for (int length = 140; length < 184; length++) {
        char name[300], path[400];
        size_t total = 0;
        memset(name, 'n', (size_t)length);
        snprintf(name + length, sizeof name - (size_t)length, ".onnx");
        make_named(name, 1);
        snprintf(path, sizeof path, "%s", at(name));
        for (size_t back = 0; back == 0 || back <= total; back++) {
            fake f = {0};
            epctx_backend backend = fake_backend(&f);
            counting c = {0};
            epctx_allocator allocator = counting_allocator(&c);
            epctx_workspace_opts opts = {0};
            epctx_gen_opts gen = {0};
            epctx_workspace *w;
            epctx_model model;
            epctx_error error;
            epctx_status status;
            size_t first;
            opts.allocator = &allocator;
            CHECK_INT(epctx_workspace_open(&w, &opts, &error), EPCTX_OK);
            CHECK_INT(epctx_model_open_file(&model, path, &open, &error), EPCTX_OK);
            gen.workspace = w;
            CHECK_OK(epctx_generate(&model, &backend, &gen, NULL, &error), error);
            epctx_model_close(&model);
            first = c.calls;
            if (back > 0) c.fail_at = first + back;
            status = epctx_share_finish(w, NULL, "FakeEP", NULL, NULL, &error);
            if (back == 0) total = c.calls - first;
            epctx_workspace_close(w);
            CHECK_UINT(c.alive, 0);
            CHECK_INT(f.alive, 0);
            if (back == 0) {
                CHECK_OK(status, error);
            } else {
                char context[400];
                snprintf(context, sizeof context, "%.*s_ctx.onnx", (int)(strlen(path) - 5), path);
                CHECK_INT(status, EPCTX_ERR_NOMEM);
                CHECK_TRUE(error.status == status && error.message[0] != '\0');
                CHECK_INT(access(context, F_OK), -1);
                refused++;
            }
            clear_root();
            make_named(name, 1);
        }
        clear_root();
    }
    CHECK_TRUE(refused >= 44);
}

int main(int argc, char **argv) {
    if (!make_root()) {
        printf("FAIL test_load_share: no folder to work in\n");
        return 1;
    }
    RUN(failures_of_a_backend);
    RUN(missing_for_a_backend);
    RUN(buffers_without_data);
    RUN(secondary_contexts);
    RUN(too_many_places_to_look);
    RUN(in_place);
    RUN(nodes_of_others);
    RUN(paths_that_are_none);
    RUN(weights_from_the_application);
    RUN(weights_that_are_inputs);
    RUN(source_in_memory);
    RUN(two_sources);
    RUN(one_source_spelled_differently);
    RUN(place_of_the_source);
    RUN(one_weight_named_differently);
    RUN(cache_and_a_source_out_of_sight);
    RUN(cache_with_weights);
    RUN(share_load_refused);
    RUN(share_load_without_reason);
    RUN(share_and_embed);
    RUN(share_weightless_twice);
    RUN(share_long_paths);
    RUN(hosted_refused);
    RUN(hosted_over_another);
    RUN(group_verified);
    RUN(sizes_of_a_mixed_group);
    RUN(group_of_copies);
    RUN(group_initializers_refused);
    RUN(stamp_and_two_binaries);
    RUN(stamp_of_two_binaries);
    RUN(stamp_of_another_binary);
    RUN(stamp_of_a_refused_binary);
    RUN(group_forgets_failures);
    RUN(group_stamp_without_memory);
    remove_root();
    return test_end();
}
