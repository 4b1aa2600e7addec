/* Merge and chain: names, connections, and what stands once in the result. A refusal leaves the
 * models as they were. Files are in test_merge_files.c; what the results mean is judged in
 * test_combine.sh. */
#define _XOPEN_SOURCE 700
#include "binaries.h"
#include "combine.h"

#include "examples/epctx/binary/binary.h"

#include <time.h>

static const int64_t other[] = {5, -1};

/* A node with a graph inside that makes `inner` from `captured`. */
static void add_body(bytes *graph, const char *name, const char *x, const char *y,
                     const char *captured, const char *inner) {
    bytes body = {0}, attr = {0}, node = new_node("If", "", name, x, y);
    put_str(&body, 2, "body");
    add_node(&body, "Relu", "", captured, inner);
    add_value(&body, GRAPH_OUTPUT, inner, EPCTX_ONNX_FLOAT, vector);
    put_child(&attr, 6, &body);
    end_attr(&node, "then_branch", EPCTX_ATTR_GRAPH, &attr);
    put_child(graph, 1, &node);
}

static bytes body_model(const char *x, const char *y, const char *inner) {
    bytes graph = {0};
    add_body(&graph, "", x, y, x, inner);
    add_ends(&graph, x, y);
    return new_model(&graph);
}

static bytes compiled(const char *node, const char *x, const char *y, const char *source,
                      const char *partition) {
    bytes graph = {0}, model;
    add_epnode(&graph, node, x, y, 1, 1, source, partition, "payload", 7);
    add_ends(&graph, x, y);
    model = new_model(&graph);
    add_opset(&model, "com.microsoft", 1);
    return model;
}

/* The same for OpenVINO, with another payload. */
static bytes embedded(const char *node, const char *x, const char *y, const char *payload) {
    bytes graph = {0}, model;
    add_epnode(&graph, node, x, y, 1, 1, ov, node, payload, strlen(payload));
    add_ends(&graph, x, y);
    model = new_model(&graph);
    add_opset(&model, "com.microsoft", 1);
    return model;
}

/* NULL when the merge is refused with `status` and `text` and changes nothing. */
static const char *merge_refused(bytes a, bytes b, const char *prefix, const epctx_merge_opts *opts,
                                 epctx_status status, const char *text) {
    static char problem[900];
    epctx_status found;
    pair p;
    if (!pair_open(&p, a, b)) return "a model cannot be opened";
    p.parts[1].prefix = prefix;
    found = epctx_merge(p.parts, 2, opts, NULL, &p.error);
    snprintf(problem, sizeof problem, "%s: %s", epctx_status_name(found), p.error.message);
    if (found == status && strstr(problem, text) != NULL) problem[0] = '\0';
    if (!pair_untouched(&p)) snprintf(problem, sizeof problem, "a refusal changes something");
    pair_close(&p);
    return problem[0] != '\0' ? problem : NULL;
}

#define MERGE_REFUSED(a, b, prefix, opts, status, text) \
    do { \
        const char *why_ = merge_refused(a, b, prefix, opts, status, text); \
        CHECK(why_ == NULL, "expected %s, found %s", text, why_); \
    } while (0)

/* -- side by side and in a row -- */

TEST(merge_side_by_side) {
    pair p;
    epctx_graph_view graph;
    CHECK(pair_open(&p, chain_model("x", "y", 17), chain_model("x", "y", 17)), "%s",
          p.error.message);
    CHECK_OK(epctx_merge(p.parts, 2, NULL, &p.out, &p.error), p.error);
    graph = epctx_model_graph(&p.models[0]);
    CHECK_INT(count_of(epctx_view_graph_nodes(graph)), 4);
    CHECK_INT(count_of(epctx_view_graph_initializers(graph)), 2);
    CHECK_TRUE(has_input(&p.models[0], "x") && has_input(&p.models[0], "m2_x"));
    CHECK_INT(p.out.file_count, 0);
    epctx_edit_undo(&p.models[0], 0);
    CHECK(pair_untouched(&p), "undo does not restore the bytes, or the second model changed");
    pair_close(&p);
}

TEST(merge_prefixes) {
    pair p;
    CHECK_TRUE(pair_open(&p, chain_model("x", "y", 17), chain_model("x", "y", 17)));
    p.parts[1].prefix = "";
    CHECK_INT(epctx_merge(p.parts, 2, NULL, &p.out, &p.error), EPCTX_ERR_EXISTS);
    CHECK_HAS(p.error.message, "value 'x'");
    CHECK(pair_untouched(&p), "a refusal changes something");
    p.parts[0].prefix = "left_";
    p.parts[1].prefix = "right_";
    CHECK_OK(epctx_merge(p.parts, 2, NULL, &p.out, &p.error), p.error);
    CHECK_TRUE(has_input(&p.models[0], "left_x") && has_input(&p.models[0], "right_x"));
    pair_close(&p);
}

TEST(merge_share_inputs) {
    epctx_merge_opts opts = {0};
    pair p;
    opts.share_inputs = true;
    CHECK_TRUE(pair_open(&p, chain_model("x", "y", 17), chain_model("x", "z", 17)));
    CHECK_OK(epctx_merge(p.parts, 2, &opts, &p.out, &p.error), p.error);
    CHECK_INT(count_of(epctx_view_graph_inputs(epctx_model_graph(&p.models[0]))), 1);
    CHECK_INT(count_of(epctx_view_graph_outputs(epctx_model_graph(&p.models[0]))), 2);
    pair_close(&p);
}

TEST(chain) {
    epctx_merge_opts opts = {0};
    pair p;
    opts.chain = true;
    CHECK_TRUE(pair_open(&p, chain_model("x", "y", 17), chain_model("y", "z", 17)));
    CHECK_OK(epctx_merge(p.parts, 2, &opts, &p.out, &p.error), p.error);
    CHECK_INT(count_of(epctx_view_graph_inputs(epctx_model_graph(&p.models[0]))), 1);
    CHECK_INT(count_of(epctx_view_graph_outputs(epctx_model_graph(&p.models[0]))), 1);
    /* t, its namesake, and y, which is no output any more */
    CHECK_INT(count_of(epctx_view_graph_values(epctx_model_graph(&p.models[0]))), 3);
    epctx_edit_undo(&p.models[0], 0);
    opts.keep_outputs = true;
    CHECK_OK(epctx_merge(p.parts, 2, &opts, &p.out, &p.error), p.error);
    CHECK_INT(count_of(epctx_view_graph_outputs(epctx_model_graph(&p.models[0]))), 2);
    pair_close(&p);
}

TEST(chain_refusals) {
    epctx_merge_opts opts = {0};
    epctx_connection link;
    pair p;
    opts.chain = true;
    CHECK_TRUE(pair_open(&p, chain_model("x", "y", 17), chain_model("a", "b", 17)));
    CHECK_INT(epctx_merge(p.parts, 2, &opts, NULL, &p.error), EPCTX_ERR_NOT_FOUND);
    CHECK_HAS(p.error.message, "specify the connections");
    opts.chain = false;
    opts.connections = &link;
    opts.connection_count = 1;
    link.from = link.to = EPCTX_ANY_PART;
    link.output = epctx_str_of("nothing");
    link.input = epctx_str_of("a");
    CHECK_INT(epctx_merge(p.parts, 2, &opts, NULL, &p.error), EPCTX_ERR_NOT_FOUND);
    link.output = epctx_str_of("y");
    link.input = epctx_str_of("nothing");
    CHECK_INT(epctx_merge(p.parts, 2, &opts, NULL, &p.error), EPCTX_ERR_NOT_FOUND);
    CHECK(pair_untouched(&p), "a refusal changes something");
    link.input = epctx_str_of("a");
    CHECK_OK(epctx_merge(p.parts, 2, &opts, NULL, &p.error), p.error);
    pair_close(&p);
}

TEST(chain_type_differs) {
    epctx_merge_opts opts = {0};
    bytes graph = {0};
    pair p;
    add_node(&graph, "Relu", "r", "y", "z");
    add_value(&graph, GRAPH_INPUT, "y", EPCTX_ONNX_FLOAT, other);
    add_value(&graph, GRAPH_OUTPUT, "z", EPCTX_ONNX_FLOAT, other);
    opts.chain = true;
    CHECK_TRUE(pair_open(&p, chain_model("x", "y", 17), new_model(&graph)));
    CHECK_INT(epctx_merge(p.parts, 2, &opts, NULL, &p.error), EPCTX_ERR_GRAPH);
    CHECK_HAS(p.error.message, "another type or shape");
    CHECK(pair_untouched(&p), "a refusal changes something");
    pair_close(&p);
}

/* What an EP cannot load is refused: TensorRT wants one node. */
TEST(merge_breaks_a_rule) {
    bytes a = {0}, b = {0};
    pair p;
    add_epnode(&a, "a", "x", "y", 1, 1, "TensorrtExecutionProvider", NULL, "e", 1);
    add_value(&a, GRAPH_INPUT, "x", EPCTX_ONNX_FLOAT, vector);
    add_value(&a, GRAPH_OUTPUT, "y", EPCTX_ONNX_FLOAT, vector);
    add_epnode(&b, "b", "p", "q", 1, 1, "TensorrtExecutionProvider", NULL, "e", 1);
    add_value(&b, GRAPH_INPUT, "p", EPCTX_ONNX_FLOAT, vector);
    add_value(&b, GRAPH_OUTPUT, "q", EPCTX_ONNX_FLOAT, vector);
    CHECK_TRUE(pair_open(&p, new_model(&a), new_model(&b)));
    CHECK_INT(epctx_merge(p.parts, 2, NULL, NULL, &p.error), EPCTX_ERR_GRAPH);
    CHECK_HAS(p.error.message, "E031");
    CHECK(pair_untouched(&p), "a refusal changes something");
    pair_close(&p);
}

TEST(merge_the_same_model) {
    pair p;
    CHECK_TRUE(pair_open(&p, chain_model("x", "y", 17), chain_model("x", "y", 17)));
    p.parts[1].model = &p.models[0];
    CHECK_INT(epctx_merge(p.parts, 2, NULL, NULL, &p.error), EPCTX_ERR_ARG);
    CHECK_INT(epctx_merge(p.parts, 0, NULL, NULL, &p.error), EPCTX_ERR_ARG);
    CHECK(pair_untouched(&p), "a refusal changes something");
    pair_close(&p);
}

TEST(merge_refusals) {
    bytes model = small_model("n", "p", "q"), extra = {0}, function = {0};
    epctx_merge_opts opts = {0};
    epctx_connection links[2] = {0};
    MERGE_REFUSED(small_model("n", "b_x", "y"), small_model("m", "x", "z"), "b_", NULL,
                  EPCTX_ERR_EXISTS,
                  "value 'b_x' also exists in an earlier model; choose another prefix");
    MERGE_REFUSED(small_model("b_m", "x", "y"), small_model("m", "x", "z"), "b_", NULL,
                  EPCTX_ERR_EXISTS,
                  "node 'b_m' also exists in an earlier model; choose another prefix");
    MERGE_REFUSED(small_model("n", "x", "y"), small_model("n", "p", "q"), "", NULL,
                  EPCTX_ERR_EXISTS,
                  "node 'n' also exists in an earlier model; use a prefix for the model");
    add_node(&extra, "Step", "step", "p", "q");
    put_child(&function, 2, &extra);
    put_child(&model, 20, &function);
    MERGE_REFUSED(small_model("n", "x", "y"), model, NULL, NULL, EPCTX_ERR_UNSUPPORTED,
                  "training info");
    model = small_model("n", "p", "q");
    put_str(&function, 1, "f");
    put_child(&model, 25, &function);
    extra = small_model("n", "x", "y");
    put_str(&function, 1, "f");
    put_str(&function, 4, "in");
    put_child(&extra, 25, &function);
    MERGE_REFUSED(model, extra, NULL, NULL, EPCTX_ERR_GRAPH, "function 'f'");
    extra = small_model("n", "x", "y");
    put_child(&extra, 7, &function); /* a second graph: it can only be read */
    MERGE_REFUSED(extra, small_model("n", "p", "q"), NULL, NULL, EPCTX_ERR_GRAPH, "twice");
    links[0].output = epctx_str_of("y");
    links[0].input = epctx_str_of("gone");
    links[0].from = links[0].to = EPCTX_ANY_PART;
    opts.connections = links;
    opts.connection_count = 1;
    MERGE_REFUSED(small_model("n", "x", "y"), small_model("m", "p", "q"), NULL, &opts,
                  EPCTX_ERR_NOT_FOUND, "no later model has the input");
    links[0].output = epctx_str_of("gone");
    links[0].input = epctx_str_of("p");
    MERGE_REFUSED(compiled_model("QNN"), compiled_model("QNN"), NULL, &opts, EPCTX_ERR_NOT_FOUND,
                  "no such output; outputs include 'y'");
    links[0].output = epctx_str_of("q");
    links[0].from = 1;
    links[0].to = 0;
    links[0].input = epctx_str_of("x");
    MERGE_REFUSED(small_model("n", "x", "y"), small_model("m", "p", "q"), NULL, &opts,
                  EPCTX_ERR_NOT_FOUND, "no later model has the input");
    links[0].from = 7;
    MERGE_REFUSED(small_model("n", "x", "y"), small_model("m", "p", "q"), NULL, &opts,
                  EPCTX_ERR_NOT_FOUND, "outputs include 'y'");
    CHECK_INT(epctx_merge(NULL, 1, NULL, NULL, NULL), EPCTX_ERR_ARG);
}

/* IR version 3 lists weights as inputs; in version 8 that would make them replaceable. */
TEST(merge_of_an_old_model) {
    bytes graph = {0}, model = {0};
    pair p;
    add_node(&graph, "Add", "n", "p,v", "q");
    add_floats(&graph, "v", weights, 4);
    add_value(&graph, GRAPH_INPUT, "p", EPCTX_ONNX_FLOAT, vector);
    add_value(&graph, GRAPH_INPUT, "v", EPCTX_ONNX_FLOAT, vector);
    add_value(&graph, GRAPH_OUTPUT, "q", EPCTX_ONNX_FLOAT, vector);
    put_int(&model, 1, 3);
    add_opset(&model, "", 17);
    put_child(&model, 7, &graph);
    CHECK_TRUE(pair_open(&p, model, chain_model("x", "y", 17)));
    CHECK_OK(epctx_merge(p.parts, 2, NULL, NULL, &p.error), p.error);
    CHECK_TRUE(has_input(&p.models[0], "p") && has_input(&p.models[0], "x"));
    CHECK(!has_input(&p.models[0], "v"), "the weight is an input of the result");
    CHECK_INT(epctx_model_read(&p.models[0]).ir_version, 8);
    epctx_edit_undo(&p.models[0], 0);
    p.parts[0].model = &p.models[1]; /* the other way round, with names that change */
    p.parts[1].model = &p.models[0];
    p.parts[1].prefix = "old_";
    CHECK_OK(epctx_merge(p.parts, 2, NULL, NULL, &p.error), p.error);
    CHECK_TRUE(has_input(&p.models[1], "old_p"));
    CHECK(!has_input(&p.models[1], "old_v"), "the weight is an input of the result");
    pair_close(&p);
}

/* More than protobuf readers take. The bytes are never touched, so they need not exist. */
TEST(merge_of_too_much) {
    epctx_view payload = {NULL, NULL, 0};
    pair p;
    CHECK_TRUE(pair_open(&p, small_model("n", "x", "y"), small_model("m", "u", "v")));
    payload.data = p.data[0].data;
    payload.size = (size_t)EPCTX_MODEL_MAX;
    CHECK_INT(epctx_edit_put_copy(&p.models[0], epctx_model_read(&p.models[0]).view, 6, payload,
                                  epctx_view_none(), NULL, NULL),
              EPCTX_OK);
    CHECK_INT(pair_merge(&p), EPCTX_ERR_LIMIT);
    CHECK_HAS(p.error.message, "first move contexts and initializers into files");
    CHECK_UINT(epctx_edit_mark(&p.models[0]), 1);
    epctx_edit_undo(&p.models[0], 0);
    CHECK(pair_untouched(&p), "a refusal changes something");
    pair_close(&p);
}

/* -- connections -- */

/* An input that two outputs want, and connections by number. */
TEST(connections) {
    epctx_merge_opts opts = {0};
    epctx_connection links[2] = {0};
    epctx_model models[3];
    epctx_part parts[3] = {{NULL, NULL}, {NULL, NULL}, {NULL, NULL}};
    bytes data[3] = {small_model("a", "x", "y"), small_model("b", "p", "y"),
                     small_model("c", "in", "out")};
    epctx_error error;
    size_t i;
    for (i = 0; i < 3; i++) {
        parts[i].model = &models[i];
        CHECK_INT(epctx_model_open_memory(&models[i], data[i].data, data[i].size, NULL, &error),
                  EPCTX_OK);
    }
    for (i = 0; i < 2; i++) {
        links[i].from = i;
        links[i].output = epctx_str_of("y");
        links[i].to = 2;
        links[i].input = epctx_str_of("in");
    }
    opts.connections = links;
    opts.connection_count = 2;
    CHECK_INT(epctx_merge(parts, 3, &opts, NULL, &error), EPCTX_ERR_ARG);
    CHECK_HAS(error.message, "model 3: the input 'in' is connected twice");
    links[1] = links[0]; /* the same wish twice is one */
    CHECK_OK(epctx_merge(parts, 3, &opts, NULL, &error), error);
    CHECK_TRUE(has_input(&models[0], "x") && has_input(&models[0], "p"));
    CHECK(!has_input(&models[0], "in"), "the connected input is one of the result");
    for (i = 0; i < 3; i++) {
        epctx_model_close(&models[i]);
        bytes_free(&data[i]);
    }
}

/* An output that is an input of its own model, and that input is shared: nobody has it. */
TEST(connection_of_a_passed_input) {
    bytes graph = {0}, data[3] = {small_model("a", "x", "y"), {0}, small_model("c", "in", "out")};
    epctx_merge_opts opts = {0};
    epctx_connection link = {0};
    epctx_model models[3];
    epctx_part parts[3] = {{NULL, NULL}, {NULL, NULL}, {NULL, NULL}};
    epctx_error error;
    size_t i;
    add_node(&graph, "Relu", "b", "x", "z");
    add_value(&graph, GRAPH_INPUT, "x", EPCTX_ONNX_FLOAT, vector);
    add_value(&graph, GRAPH_OUTPUT, "x", EPCTX_ONNX_FLOAT, vector);
    add_value(&graph, GRAPH_OUTPUT, "z", EPCTX_ONNX_FLOAT, vector);
    data[1] = new_model(&graph);
    for (i = 0; i < 3; i++) {
        parts[i].model = &models[i];
        CHECK_INT(epctx_model_open_memory(&models[i], data[i].data, data[i].size, NULL, &error),
                  EPCTX_OK);
    }
    link.from = 1;
    link.output = epctx_str_of("x");
    link.to = 2;
    link.input = epctx_str_of("in");
    opts.share_inputs = true;
    opts.connections = &link;
    opts.connection_count = 1;
    CHECK_INT(epctx_merge(parts, 3, &opts, NULL, &error), EPCTX_ERR_NOT_FOUND);
    CHECK_HAS(error.message, "no model after the one with output 'x' has an input 'in'");
    CHECK_INT(epctx_merge(parts, SIZE_MAX, &opts, NULL, &error), EPCTX_ERR_ARG);
    for (i = 0; i < 3; i++) {
        epctx_model_close(&models[i]);
        bytes_free(&data[i]);
    }
}

/* Which types go together; 0: none given, -1 behind the type: no shape. */
TEST(types_of_connections) {
    static const int64_t one[] = {4, 4, -1};
    static const struct {
        int32_t a, b;
        const int64_t *x, *y;
        bool fits;
    } cases[] = {
        {EPCTX_ONNX_FLOAT, EPCTX_ONNX_FLOAT, vector, vector, true},
        {EPCTX_ONNX_FLOAT, EPCTX_ONNX_FLOAT, vector, one, false},
        {EPCTX_ONNX_FLOAT, EPCTX_ONNX_FLOAT, one, vector, false},
        {EPCTX_ONNX_FLOAT, EPCTX_ONNX_FLOAT, vector, other, false},
        {EPCTX_ONNX_FLOAT, EPCTX_ONNX_FLOAT, vector, NULL, true},
        {EPCTX_ONNX_FLOAT, EPCTX_ONNX_FLOAT, NULL, vector, true},
        {EPCTX_ONNX_FLOAT, EPCTX_ONNX_INT8, NULL, NULL, false},
        {EPCTX_ONNX_FLOAT, 0, NULL, NULL, true},
        {0, EPCTX_ONNX_INT8, NULL, NULL, true},
        {-1, EPCTX_ONNX_INT8, NULL, NULL, true},
        {EPCTX_ONNX_INT8, -1, NULL, NULL, true},
        {-2, EPCTX_ONNX_INT8, NULL, NULL, false},
        {EPCTX_ONNX_INT8, -2, NULL, NULL, false},
        {-2, -2, NULL, NULL, true},
        {-3, EPCTX_ONNX_FLOAT, NULL, vector, true},
        {EPCTX_ONNX_FLOAT, -3, vector, NULL, true},
    };
    epctx_merge_opts opts = {0};
    size_t i;
    opts.chain = true;
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bytes graphs[2] = {{0}, {0}};
        pair p;
        int k;
        for (k = 0; k < 2; k++) {
            int32_t elem = k == 0 ? cases[i].a : cases[i].b;
            uint32_t field = k == 0 ? GRAPH_OUTPUT : GRAPH_INPUT;
            add_node(&graphs[k], "Relu", k == 0 ? "n" : "m", k == 0 ? "x" : "y",
                     k == 0 ? "y" : "z");
            add_value(&graphs[k], k == 0 ? GRAPH_INPUT : GRAPH_OUTPUT, k == 0 ? "x" : "z",
                      EPCTX_ONNX_FLOAT, vector);
            if (elem >= 0) {
                add_value(&graphs[k], field, "y", elem, k == 0 ? cases[i].x : cases[i].y);
            } else { /* no type, a sequence of tensors, one dimension with a name */
                bytes value = {0}, type = {0}, inner = {0}, shape = {0}, dim = {0};
                put_str(&value, 1, "y");
                if (elem == -2) put_child(&type, 4, &inner);
                if (elem == -3) {
                    put_str(&dim, 2, "n");
                    put_child(&shape, 1, &dim);
                    put_int(&inner, 1, EPCTX_ONNX_FLOAT);
                    put_child(&inner, 2, &shape);
                    put_child(&type, 1, &inner);
                }
                if (elem != -1) put_child(&value, 2, &type);
                put_child(&graphs[k], field, &value);
            }
        }
        CHECK_TRUE(pair_open(&p, new_model(&graphs[0]), new_model(&graphs[1])));
        CHECK((epctx_merge(p.parts, 2, &opts, NULL, &p.error) == EPCTX_OK) == cases[i].fits,
              "case %zu: expected %s, found %s", i, cases[i].fits ? "a connection" : "a refusal",
              p.error.message);
        pair_close(&p);
    }
}

TEST(merge_outputs_that_feed) {
    bytes a = {0}, b = {0}, value = {0};
    pair p;
    add_node(&a, "Relu", "n", "x", "y");
    put_str(&a, 2, "g");
    add_value(&a, GRAPH_INPUT, "x", EPCTX_ONNX_FLOAT, vector);
    put_str(&value, 1, "y"); /* no type */
    put_child(&a, GRAPH_OUTPUT, &value);
    add_node(&b, "Relu", "m", "y", "z");
    put_str(&b, 2, "g");
    add_value(&b, GRAPH_INPUT, "y", EPCTX_ONNX_FLOAT, vector);
    CHECK_TRUE(pair_open(&p, new_model(&a), new_model(&b)));
    p.opts.chain = true;
    REFUSED(&p, EPCTX_ERR_GRAPH, "every output feeds an input: keep the outputs, or connect less");
    p.opts.keep_outputs = true;
    MERGES(&p);
    CHECK_UINT(count_of(epctx_view_graph_outputs(epctx_model_graph(&p.models[0]))), 1);
    pair_close(&p);
    /* An output whose type stands among the values already, and one that has none. */
    add_node(&a, "Split", "n", "x", "y,s,t");
    put_str(&a, 2, "g");
    add_value(&a, GRAPH_INPUT, "x", EPCTX_ONNX_FLOAT, vector);
    put_str(&value, 1, "y");
    put_child(&a, GRAPH_OUTPUT, &value);
    add_value(&a, GRAPH_OUTPUT, "s", EPCTX_ONNX_FLOAT, vector);
    add_value(&a, GRAPH_OUTPUT, "t", EPCTX_ONNX_FLOAT, vector);
    add_value(&a, GRAPH_VALUE, "s", EPCTX_ONNX_FLOAT, vector);
    add_node(&b, "Add", "m", "y,s,t", "z");
    add_ends(&b, "y", "z");
    add_value(&b, GRAPH_INPUT, "s", EPCTX_ONNX_FLOAT, vector);
    add_value(&b, GRAPH_INPUT, "t", EPCTX_ONNX_FLOAT, vector);
    CHECK_TRUE(pair_open(&p, new_model(&a), new_model(&b)));
    p.opts.chain = true;
    MERGES(&p);
    CHECK_UINT(count_of(epctx_view_graph_outputs(epctx_model_graph(&p.models[0]))), 1);
    CHECK_UINT(count_of(epctx_view_graph_values(epctx_model_graph(&p.models[0]))), 2); /* s, t */
    pair_close(&p);
}

/* -- names -- */

/* QNN finds the graph by the node's name and values by theirs: neither may change. */
TEST(merge_keys) {
    pair p;
    bytes graph = {0};
    CHECK_TRUE(pair_open(&p, compiled_model("QNN"), compiled_model("QNN")));
    CHECK_INT(epctx_merge(p.parts, 2, NULL, NULL, &p.error), EPCTX_ERR_EXISTS);
    CHECK_HAS(p.error.message, "by name");
    CHECK(pair_untouched(&p), "a refusal changes something");
    pair_close(&p);
    add_epnode(&graph, "n0", "a", "b", 1, 1, "QNN", "p", "payload", 7);
    add_value(&graph, GRAPH_INPUT, "a", EPCTX_ONNX_FLOAT, vector);
    add_value(&graph, GRAPH_OUTPUT, "b", EPCTX_ONNX_FLOAT, vector);
    CHECK_TRUE(pair_open(&p, compiled_model("QNN"), new_model(&graph)));
    CHECK_INT(epctx_merge(p.parts, 2, NULL, NULL, &p.error), EPCTX_ERR_EXISTS);
    CHECK_HAS(p.error.message, "EPContext node 'n0'");
    CHECK_HAS(p.error.message, "ep.context_node_name_prefix");
    CHECK(pair_untouched(&p), "a refusal changes something");
    pair_close(&p);
}

/* A stamp may tell that each binary has one graph: then the node's name is free. */
TEST(merge_one_graph) {
    for (uint64_t graphs = 1; graphs <= 2; graphs++) {
        pair p;
        bytes graph = {0};
        epctx_stamp_opts opts = {0};
        add_epnode(&graph, "n0", "a", "b", 1, 1, "QNN", "p", "payload", 7);
        add_value(&graph, GRAPH_INPUT, "a", EPCTX_ONNX_FLOAT, vector);
        add_value(&graph, GRAPH_OUTPUT, "b", EPCTX_ONNX_FLOAT, vector);
        CHECK_TRUE(pair_open(&p, compiled_model("QNN"), new_model(&graph)));
        opts.graphs = graphs;
        CHECK_OK(epctx_edit_stamp(p.parts[1].model, "QNN", &opts, &p.error), p.error);
        CHECK_INT(epctx_merge(p.parts, 2, NULL, NULL, &p.error),
                  graphs == 1 ? EPCTX_OK : EPCTX_ERR_EXISTS);
        pair_close(&p);
    }
}

/* The second node wants its input under the name that the binary has. */
TEST(chain_keeps_names_of_binaries) {
    epctx_merge_opts opts = {0};
    epctx_connection link;
    bytes graph = {0};
    epctx_cursor it;
    epctx_node_view node;
    bool bridge = false, wanted = false;
    pair p;
    add_epnode(&graph, "k", "a", "b", 1, 1, "QNN", "p", "payload", 7);
    add_value(&graph, GRAPH_INPUT, "a", EPCTX_ONNX_FLOAT, vector);
    add_value(&graph, GRAPH_OUTPUT, "b", EPCTX_ONNX_FLOAT, vector);
    CHECK_TRUE(pair_open(&p, chain_model("x", "y", 17), new_model(&graph)));
    link.from = link.to = EPCTX_ANY_PART;
    link.output = epctx_str_of("y");
    link.input = epctx_str_of("a");
    opts.connections = &link;
    opts.connection_count = 1;
    CHECK_OK(epctx_merge(p.parts, 2, &opts, &p.out, &p.error), p.error);
    it = epctx_view_graph_nodes(epctx_model_graph(&p.models[0]));
    while (epctx_next_node(&it, &node)) {
        epctx_cursor inputs = epctx_view_node_inputs(&node);
        epctx_str name = {NULL, 0};
        epctx_next_str(&inputs, &name);
        bridge = bridge || (epctx_str_is(node.op_type, "Identity") && epctx_str_is(name, "y"));
        wanted = wanted || (epctx_view_is_epnode(&node) && epctx_str_is(name, "a"));
    }
    CHECK(bridge && wanted, "the EPContext node has not its input 'a' from an Identity of 'y'");
    pair_close(&p);
}

/* Values of bodies get other names where they would hide one of the other model, and names that
 * are made do not meet those that are there. */
TEST(merge_names_are_new) {
    bytes a = {0}, b = {0};
    epctx_merge_opts opts = {0};
    pair p;
    add_node(&a, "Relu", "n", "x", "own");
    add_node(&a, "Relu", "m2_n", "own", "inside");
    add_value(&a, GRAPH_INPUT, "x", EPCTX_ONNX_FLOAT, vector);
    add_value(&a, GRAPH_OUTPUT, "inside", EPCTX_ONNX_FLOAT, vector);
    add_value(&a, GRAPH_OUTPUT, "m2_x_2", EPCTX_ONNX_FLOAT, vector);
    add_node(&a, "Relu", "", "x", "m2_x_2");
    add_own_body(&b, "n", "x", "m2_x", "w");
    add_own_body(&b, "m2_n_2", "m2_x", "z", "w");
    add_floats(&b, "w", weights, 4);
    add_value(&b, GRAPH_INPUT, "x", EPCTX_ONNX_FLOAT, vector);
    add_value(&b, GRAPH_OUTPUT, "z", EPCTX_ONNX_FLOAT, vector);
    CHECK_TRUE(pair_open(&p, new_model(&a), new_model(&b)));
    CHECK_OK(epctx_merge(p.parts, 2, &opts, &p.out, &p.error), p.error);
    CHECK_TRUE(has_input(&p.models[0], "x") && has_input(&p.models[0], "m2_x_3"));
    epctx_edit_undo(&p.models[0], 0);
    p.parts[1].prefix = "";
    CHECK_INT(epctx_merge(p.parts, 2, &opts, NULL, &p.error), EPCTX_ERR_EXISTS);
    CHECK(pair_untouched(&p), "a refusal changes something");
    pair_close(&p);
}

/* A value of the second model has the name of one in a body of the first, where it would be
 * hidden; or the other way round. */
TEST(merge_values_of_bodies) {
    pair p;
    bytes text;
    CHECK_TRUE(pair_open(&p, body_model("x", "y", "inner"), small_model("n", "inner", "z")));
    MERGES(&p);
    CHECK_STR(nodes_of(&p.models[0]), "If::x>y Relu:n:m2_inner>z ");
    pair_close(&p);
    CHECK_TRUE(pair_open(&p, small_model("n", "inner", "z"), body_model("x", "y", "inner")));
    p.parts[1].prefix = "";
    REFUSED(&p, EPCTX_ERR_EXISTS,
            "value 'inner' also exists in an earlier model; use a prefix for the model");
    p.parts[1].prefix = NULL;
    MERGES(&p);
    text = written(&p.models[0]);
    CHECK(bytes_contain(&text, "m2_inner", 8), "the value of the body has its name still");
    bytes_free(&text);
    pair_close(&p);
    /* The new name of a value of the graph is that of a value of its body; and there, of one that
     * hides another. */
    CHECK_TRUE(pair_open(&p, small_model("n", "q", "z"), body_model("x", "y", "b_x")));
    p.parts[1].prefix = "b_";
    MERGES(&p);
    text = written(&p.models[0]);
    CHECK(bytes_contain(&text, "b_b_x", 5), "the body hides the value that it reads");
    CHECK_STR(nodes_of(&p.models[0]), "Relu:n:q>z If::b_x>b_y ");
    bytes_free(&text);
    pair_close(&p);
    CHECK_TRUE(pair_open(&p, small_model("n", "q", "z"), body_model("x", "b_x", "b_x")));
    p.parts[1].prefix = "b_";
    REFUSED(&p, EPCTX_ERR_EXISTS, "value 'x' cannot be renamed to 'b_x'");
    pair_close(&p);
}

/* A body lists its initializer as an input, too: one name, once. */
TEST(merge_a_name_twice_in_a_body) {
    bytes graph = {0}, body = {0}, attr = {0}, node = new_node("If", "", "if", "x", "y");
    pair p;
    size_t i, renamed = 0;
    put_str(&body, 2, "body");
    add_node(&body, "Relu", "", "own", "out");
    add_value(&body, GRAPH_INPUT, "own", EPCTX_ONNX_FLOAT, vector);
    add_floats(&body, "own", weights, 4);
    add_value(&body, GRAPH_OUTPUT, "out", EPCTX_ONNX_FLOAT, vector);
    put_child(&attr, 6, &body);
    end_attr(&node, "then_branch", EPCTX_ATTR_GRAPH, &attr);
    put_child(&graph, 1, &node);
    add_ends(&graph, "x", "y");
    CHECK_TRUE(pair_open(&p, small_model("n", "own", "z"), new_model(&graph)));
    MERGES(&p);
    for (i = 0; i < p.out.step_count; i++)
        renamed += strstr(p.out.steps[i].text, "'own' of a body is now 'm2_own'") != NULL;
    CHECK_UINT(renamed, 1);
    pair_close(&p);
}

TEST(merge_nodes_of_one_name) {
    bytes graph = {0};
    pair p;
    add_node(&graph, "Relu", "n", "p", "q");
    add_node(&graph, "Relu", "m2_n", "q", "r");
    add_ends(&graph, "p", "r");
    CHECK_TRUE(pair_open(&p, small_model("n", "x", "y"), new_model(&graph)));
    MERGES(&p);
    CHECK_STR(nodes_of(&p.models[0]), "Relu:n:x>y Relu:m2_n_2:p>q Relu:m2_n:q>r ");
    pair_close(&p);
    /* The name that is free in the second model is taken in the first. */
    add_node(&graph, "Relu", "n", "x", "t");
    add_node(&graph, "Relu", "m2_n_2", "t", "y");
    add_ends(&graph, "x", "y");
    {
        bytes first = new_model(&graph);
        add_node(&graph, "Relu", "n", "p", "q");
        add_node(&graph, "Relu", "m2_n", "q", "r");
        add_ends(&graph, "p", "r");
        CHECK_TRUE(pair_open(&p, first, new_model(&graph)));
    }
    MERGES(&p);
    CHECK_STR(nodes_of(&p.models[0]), "Relu:n:x>t Relu:m2_n_2:t>y Relu:m2_n_3:p>q Relu:m2_n:q>r ");
    pair_close(&p);
}

/* Thousands of one name take a step each. */
TEST(merge_many_of_one_name) {
    enum { COUNT = 4000 };
    double best[2] = {1e9, 1e9};
    for (int round = 0; round < 3; round++) {
        for (int k = 0; k < 2; k++) {
            bytes graph = {0};
            clock_t start;
            pair p;
            for (int i = 0; i < (k + 1) * (k + 1) * COUNT / 4; i++) {
                char from[16], to[16];
                snprintf(from, sizeof from, "v%d", i);
                snprintf(to, sizeof to, "v%d", i + 1);
                add_node(&graph, "Relu", "n", from, to);
            }
            add_ends(&graph, "v0", "v1");
            CHECK_TRUE(pair_open(&p, small_model("n", "x", "y"), new_model(&graph)));
            start = clock();
            MERGES(&p);
            if ((double)(clock() - start) / CLOCKS_PER_SEC < best[k])
                best[k] = (double)(clock() - start) / CLOCKS_PER_SEC;
            pair_close(&p);
        }
    }
    CHECK(best[1] < 10 * best[0] + 0.01, "4 times the nodes take %.1f ms, once %.1f ms",
          best[1] * 1e3, best[0] * 1e3);
}

/* OpenVINO finds values by name, so a node must give the value that name: not when it is taken. */
TEST(merge_feeds_a_name_that_must_stay) {
    bytes graph = {0};
    pair p;
    CHECK_TRUE(pair_open(&p, small_model("n", "x", "y"), compiled("k", "x", "z", ov, "p")));
    pair_link(&p, "y", "x");
    REFUSED(&p, EPCTX_ERR_EXISTS,
            "value 'x' also exists in an earlier model: its EP finds the inputs");
    pair_close(&p);
    /* The same name is no matter; nor is the name of the node in between. */
    CHECK_TRUE(pair_open(&p, small_model("n", "x", "y"), compiled("k", "y", "z", ov, "p")));
    pair_link(&p, "y", "y");
    MERGES(&p);
    CHECK_STR(nodes_of(&p.models[0]), "Relu:n:x>y EPContext:k:y>z ");
    pair_close(&p);
    add_node(&graph, "Relu", "connect_a", "x", "t");
    add_node(&graph, "Relu", "connect_a_", "t", "y");
    add_ends(&graph, "x", "y");
    CHECK_TRUE(pair_open(&p, new_model(&graph), compiled("k", "a", "z", ov, "p")));
    pair_link(&p, "y", "a");
    MERGES(&p);
    CHECK_STR(nodes_of(&p.models[0]), "Relu:connect_a:x>t Relu:connect_a_:t>y "
                                      "Identity:connect_a__:y>a EPContext:k:a>z ");
    pair_close(&p);
}

/* OpenVINO reads one context for a model: what is none of its containers cannot be joined. */
TEST(merge_of_two_contexts) {
    pair p;
    CHECK_TRUE(pair_open(&p, compiled("k", "x", "y", ov, "p"), embedded("l", "v", "z", "other")));
    REFUSED(&p, EPCTX_ERR_UNSUPPORTED,
            "EP 'openvino' reads one context for a model, these have 2: k: is a file of no known "
            "kind: of the binaries that hold several graphs only OpenVINO's containers can be");
    pair_close(&p);
    /* The same one is one. */
    CHECK_TRUE(pair_open(&p, compiled("k", "x", "y", ov, "p"), compiled("l", "v", "z", ov, "q")));
    MERGES(&p);
    CHECK_STR(sharing_of(&p.models[0]), "k:p:0:1: l:q:1:1:7 ");
    pair_close(&p);
    CHECK_TRUE(pair_open(&p, compiled("k", "x", "y", npu, "p"), compiled("l", "v", "z", ov, "q")));
    MERGES(&p);
    pair_close(&p);
}

static bytes container_of(const char *first, const char *second, bool changed) {
    container c = {4096, "1.1.0", {NULL, NULL}, NULL, NULL, false};
    c.names[0] = first;
    c.names[1] = second;
    c.other = changed;
    return openvino_container_of(&c);
}

/* Two nodes, the second one secondary, without an attribute or with an empty one. */
static bytes two_of(const char *a, const char *b, const char *x, bool changed, bool empty) {
    bytes graph = {0}, file = container_of(a, b, changed), model;
    char t[32], y[32];
    snprintf(t, sizeof t, "%s_t", x);
    snprintf(y, sizeof y, "%s_y", x);
    add_epnode(&graph, a, x, t, 1, 1, ov, a, file.data, file.size);
    add_epnode(&graph, b, t, y, 0, 1, ov, b, empty ? "" : NULL, 0);
    add_ends(&graph, x, y);
    bytes_free(&file);
    model = new_model(&graph);
    add_opset(&model, "com.microsoft", 1);
    return model;
}

/* Two containers become one in the node that ONNX Runtime gives the EP first; a name that both have
 * changes in the directory and in the node. */
TEST(merge_of_two_containers) {
    binary_facts facts;
    epctx_epnode ep;
    epctx_node_view node;
    epctx_span span;
    pair p;
    CHECK_TRUE(
        pair_open(&p, two_of("p", "q", "x", false, true), two_of("p", "r", "u", true, true)));
    MERGES(&p);
    CHECK_STR(sharing_of(&p.models[0]), "p:p:0:1: q:q:0:1: m2_p:m2_p:1:1:327680 r:r:0:1: ");
    node = node_at(&p.models[0], 2);
    CHECK_OK(epctx_view_read_epnode(&node, &ep, &p.error), p.error);
    span.data = (const uint8_t *)ep.ep_cache_context.data;
    span.size = ep.ep_cache_context.size;
    CHECK_OK(binary_read(span, NULL, &p.models[0].arena, &facts, &p.error), p.error);
    CHECK(facts.damage == NULL && facts.graph_count == 4, "%s", facts.damage);
    epctx_edit_undo(&p.models[0], 0);
    CHECK(pair_untouched(&p), "undo does not restore the bytes, or the second model changed");
    pair_close(&p);
    /* Nodes that had no attribute get none, but in exchange for the context. */
    CHECK_TRUE(
        pair_open(&p, two_of("p", "q", "x", false, false), two_of("r", "s", "u", true, false)));
    MERGES(&p);
    CHECK_STR(sharing_of(&p.models[0]), "p:p:0:1: q:q:0:1:- r:r:1:1:327680 s:s:0:1:- ");
    pair_close(&p);
    /* One after the other the first is the first. */
    CHECK_TRUE(
        pair_open(&p, two_of("p", "q", "x", false, true), two_of("r", "s", "x_y", true, true)));
    p.opts.chain = true;
    MERGES(&p);
    CHECK_STR(sharing_of(&p.models[0]), "p:p:1:1:327680 q:q:0:1: r:r:0:1: s:s:0:1: ");
    pair_close(&p);
    /* What both have with the same bytes stands once: then two nodes would get it. */
    CHECK_TRUE(
        pair_open(&p, two_of("p", "q", "x", false, true), two_of("q", "s", "u", false, true)));
    REFUSED(&p, EPCTX_ERR_GRAPH, "E040");
    pair_close(&p);
}

/* Two nodes of one model that ask for the same partition are its own affair; a node whose
 * attributes cannot be read has none. */
TEST(merge_partitions) {
    bytes graph = {0}, node, attr = {0}, a;
    pair p;
    add_epnode(&graph, "n0", "x", "y", 1, 1, npu, "p", "payload", 7);
    add_epnode(&graph, "n1", "x", "y1", 0, 1, npu, "p", NULL, 0);
    node = new_node("EPContext", "com.microsoft", "odd", "x", "y2");
    add_attr_str(&node, "source", npu, strlen(npu));
    add_attr_str(&node, "partition_name", "q", 1);
    put_str(&attr, 4, "yes");
    end_attr(&node, "main_context", EPCTX_ATTR_STRING, &attr);
    put_child(&graph, 1, &node);
    add_ends(&graph, "x", "y");
    a = new_model(&graph);
    add_opset(&a, "com.microsoft", 1);
    CHECK_TRUE(pair_open(&p, a, compiled("m", "u", "v", npu, "q")));
    MERGES(&p);
    for (size_t i = 0; i < p.out.step_count; i++)
        CHECK(strstr(p.out.steps[i].text, "names the binary itself") == NULL, "%s",
              p.out.steps[i].text);
    pair_close(&p);
}

/* -- what stands once -- */

TEST(merge_opsets) {
    epctx_merge_opts opts = {0};
    pair p;
    CHECK_TRUE(pair_open(&p, chain_model("x", "y", 17), chain_model("x", "y", 13)));
    CHECK_INT(epctx_merge(p.parts, 2, NULL, NULL, &p.error), EPCTX_ERR_GRAPH);
    CHECK_HAS(p.error.message, "version 13");
    CHECK(pair_untouched(&p), "a refusal changes something");
    opts.force_opset = true;
    CHECK_OK(epctx_merge(p.parts, 2, &opts, NULL, &p.error), p.error);
    CHECK_INT(epctx_model_opset(&p.models[0], epctx_str_of("")), 17);
    pair_close(&p);
    /* A compiled model does not use ai.onnx, so its version says nothing. */
    {
        bytes compiled = compiled_model("EpctxNpuExecutionProvider");
        add_opset(&compiled, "", 21);
        CHECK_TRUE(pair_open(&p, compiled, chain_model("x", "y", 13)));
    }
    CHECK_OK(epctx_merge(p.parts, 2, NULL, NULL, &p.error), p.error);
    CHECK_INT(epctx_model_opset(&p.models[0], epctx_str_of("")), 13);
    pair_close(&p);
    {
        bytes compiled = compiled_model("EpctxNpuExecutionProvider");
        add_opset(&compiled, "", 21);
        CHECK_TRUE(pair_open(&p, chain_model("x", "y", 13), compiled));
    }
    CHECK_OK(epctx_merge(p.parts, 2, NULL, NULL, &p.error), p.error);
    CHECK_INT(epctx_model_opset(&p.models[0], epctx_str_of("")), 13);
    pair_close(&p);
    /* An import that does not say its version contradicts none. */
    CHECK_TRUE(pair_open(&p, chain_model("x", "y", 0), chain_model("x", "y", 13)));
    CHECK_OK(epctx_merge(p.parts, 2, NULL, NULL, &p.error), p.error);
    CHECK_INT(epctx_model_opset(&p.models[0], epctx_str_of("")), 13);
    pair_close(&p);
}

TEST(merge_metadata) {
    epctx_merge_opts opts = {0};
    bytes a = chain_model("x", "y", 17), b = chain_model("x", "y", 17);
    epctx_str value = {NULL, 0};
    pair p;
    add_metadata(&a, "same", "1");
    add_metadata(&a, "same", "1");
    add_metadata(&a, "key", "1");
    add_metadata(&b, "same", "1");
    add_metadata(&b, "key", "2");
    add_metadata(&b, "new", "3");
    CHECK_TRUE(pair_open(&p, a, b));
    CHECK_INT(epctx_merge(p.parts, 2, NULL, NULL, &p.error), EPCTX_ERR_GRAPH);
    CHECK_HAS(p.error.message, "metadata 'key'");
    opts.metadata = EPCTX_METADATA_FIRST;
    CHECK_OK(epctx_merge(p.parts, 2, &opts, NULL, &p.error), p.error);
    CHECK_TRUE(epctx_model_metadata(&p.models[0], epctx_str_of("key"), &value));
    CHECK_TRUE(epctx_str_is(value, "1"));
    CHECK_TRUE(epctx_model_metadata(&p.models[0], epctx_str_of("new"), &value));
    epctx_edit_undo(&p.models[0], 0);
    opts.metadata = EPCTX_METADATA_PREFIX;
    CHECK_OK(epctx_merge(p.parts, 2, &opts, NULL, &p.error), p.error);
    CHECK_TRUE(epctx_model_metadata(&p.models[0], epctx_str_of("m2_key"), &value));
    CHECK_TRUE(epctx_str_is(value, "2"));
    pair_close(&p);
}

/* Whoever has the key with the prefix already keeps its value, whichever model it is from. */
TEST(merge_metadata_prefix_taken) {
    static const struct {
        const char *first, *second; /* value of m2_key in the models, NULL: absent */
        bool behind;                /* in the second model it comes after "key" */
        const char *m2, *third;     /* in the result, NULL: absent */
        const char *third_key;
    } cases[] = {
        {"0", NULL, false, "0", "2", "m2_key_2"}, {"2", NULL, false, "2", NULL, "m2_key_2"},
        {NULL, "0", false, "0", "2", "m2_key_2"}, {NULL, "2", false, "2", NULL, "m2_key_2"},
        {NULL, "0", true, "2", "0", "m2_m2_key"}, {NULL, "2", true, "2", NULL, "m2_m2_key"},
        {"0", "2", false, "0", "2", "m2_key_2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *const keys[] = {"key", "m2_key", cases[i].third_key};
        const char *wants[3];
        epctx_merge_opts opts = {0};
        bytes a = chain_model("x", "y", 17), b = chain_model("x", "y", 17);
        pair p;
        opts.metadata = EPCTX_METADATA_PREFIX;
        add_metadata(&a, "key", "1");
        if (cases[i].first != NULL) add_metadata(&a, "m2_key", cases[i].first);
        if (cases[i].second != NULL && !cases[i].behind)
            add_metadata(&b, "m2_key", cases[i].second);
        add_metadata(&b, "key", "2");
        if (cases[i].second != NULL && cases[i].behind) add_metadata(&b, "m2_key", cases[i].second);
        CHECK_TRUE(pair_open(&p, a, b));
        CHECK_OK(epctx_merge(p.parts, 2, &opts, NULL, &p.error), p.error);
        wants[0] = "1";
        wants[1] = cases[i].m2;
        wants[2] = cases[i].third;
        for (int k = 0; k < 3; k++) {
            epctx_str value = {NULL, 0};
            bool there = epctx_model_metadata(&p.models[0], epctx_str_of(keys[k]), &value);
            CHECK(wants[k] == NULL ? !there : there && epctx_str_is(value, wants[k]),
                  "case %zu: '%s' is '%.*s', expected %s", i, keys[k], (int)value.size, value.data,
                  wants[k] == NULL ? "nothing" : wants[k]);
        }
        epctx_edit_undo(&p.models[0], 0);
        p.parts[1].prefix = "";
        opts.share_inputs = true;
        CHECK_TRUE(epctx_merge(p.parts, 2, &opts, NULL, &p.error) == EPCTX_ERR_EXISTS);
        CHECK(pair_untouched(&p), "case %zu: a refusal changes something", i);
        pair_close(&p);
    }
}

TEST(merge_newer_operator_sets) {
    bytes b = small_model("m", "p", "q");
    pair p;
    add_opset(&b, "idle", 2); /* nothing of it is used: its version is nobody's business */
    CHECK_TRUE(pair_open(&p, small_model("n", "x", "y"), b));
    CHECK_INT(epctx_edit_set_opset(&p.models[0], epctx_str_of(""), 13, NULL), EPCTX_OK);
    CHECK_INT(epctx_edit_put_opset(&p.models[0], epctx_str_of("idle"), 1, NULL), EPCTX_OK);
    CHECK_INT(pair_merge(&p), EPCTX_ERR_GRAPH);
    CHECK_HAS(p.error.message, "operator set ai.onnx version 17, those of earlier models of "
                               "version 13");
    p.opts.force_opset = true;
    MERGES(&p);
    CHECK_INT(epctx_model_opset(&p.models[0], epctx_str_of("")), 17);
    CHECK_INT(epctx_model_opset(&p.models[0], epctx_str_of("idle")), 1);
    CHECK_HAS(p.out.steps[0].text, "operator set ai.onnx: version 17 here, 13 before; the result "
                                   "has 17");
    CHECK_HAS(p.out.steps[1].text, "operator set idle: version 2 here, 1 before; the result has 1");
    pair_close(&p);
}

/* A prefix would make another key of compatibility information. */
TEST(merge_compatibility) {
    bytes a = compiled("n", "x", "y", npu, "p"), b = compiled("m", "u", "v", npu, "q");
    epctx_str value;
    pair p;
    put_pair(&a, 14, "ep_compatibility_info.EpctxNpuExecutionProvider", "1");
    put_pair(&b, 14, "ep_compatibility_info.EpctxNpuExecutionProvider", "2");
    CHECK_TRUE(pair_open(&p, a, b));
    p.opts.metadata = EPCTX_METADATA_PREFIX;
    REFUSED(&p, EPCTX_ERR_GRAPH, "is '2', but '1' in an earlier model: keep the first, or change");
    p.opts.metadata = EPCTX_METADATA_FIRST;
    MERGES(&p);
    pair_close(&p);
    a = compiled("n", "x", "y", npu, "p");
    b = compiled("m", "u", "v", npu, "q");
    put_pair(&a, 14, "ep_compatibility_of_something", "1");
    put_pair(&b, 14, "ep_compatibility_of_something", "2");
    CHECK_TRUE(pair_open(&p, a, b));
    p.opts.metadata = EPCTX_METADATA_PREFIX;
    MERGES(&p);
    CHECK_TRUE(epctx_model_metadata(&p.models[0], epctx_str_of("m2_ep_compatibility_of_something"),
                                    &value));
    CHECK_TRUE(epctx_str_is(value, "2"));
    pair_close(&p);
}

/* Metadata of the graph may have the key of compatibility information, and be anything. */
TEST(merge_metadata_of_graphs) {
    bytes graphs[2] = {{0}, {0}};
    epctx_cursor it;
    epctx_pair pairs[3];
    pair p;
    for (int i = 0; i < 2; i++) {
        add_node(&graphs[i], "Relu", "", i == 0 ? "x" : "u", i == 0 ? "y" : "v");
        add_ends(&graphs[i], i == 0 ? "x" : "u", i == 0 ? "y" : "v");
        put_pair(&graphs[i], 16, "ep_compatibility_info.X", i == 0 ? "1" : "2");
        put_pair(&graphs[i], 16, EPCTX_BUILD_PREFIX "x", "same");
    }
    CHECK_TRUE(pair_open(&p, new_model(&graphs[0]), new_model(&graphs[1])));
    REFUSED(&p, EPCTX_ERR_GRAPH, "use a prefix, or change one of them");
    p.opts.metadata = EPCTX_METADATA_PREFIX;
    MERGES(&p);
    it = epctx_view_fields(epctx_model_graph(&p.models[0]).view, EPCTX_FIELD_GRAPH_METADATA_PROPS);
    for (int i = 0; i < 3; i++) CHECK(epctx_next_pair(&it, &pairs[i]), "%d entries, expected 3", i);
    CHECK_TRUE(epctx_str_is(pairs[1].key, EPCTX_BUILD_PREFIX "x"));
    CHECK_TRUE(epctx_str_is(pairs[2].key, "m2_ep_compatibility_info.X"));
    CHECK_TRUE(epctx_str_is(pairs[2].value, "2") && !epctx_next_pair(&it, &pairs[0]));
    pair_close(&p);
}

/* "ai.onnx" and "" are one domain. */
TEST(merge_functions_of_onnx) {
    bytes models[2];
    pair p;
    for (int i = 0; i < 2; i++) {
        bytes function = {0};
        models[i] = small_model(i == 0 ? "n" : "m", i == 0 ? "x" : "u", i == 0 ? "y" : "v");
        put_str(&function, 1, "F");
        put_str(&function, 4, "in");
        if (i == 0) put_str(&function, 10, "ai.onnx");
        put_child(&models[i], 25, &function);
    }
    CHECK_TRUE(pair_open(&p, models[0], models[1]));
    REFUSED(&p, EPCTX_ERR_GRAPH, "function 'F' of domain '' is different in an earlier model");
    pair_close(&p);
}

/* Functions are compared to the last byte, however long they are. */
TEST(merge_equal_functions_of_any_size) {
    enum { size = 70000 };
    char *text = (char *)calloc(1, size);
    CHECK_TRUE(text != NULL);
    memset(text, 'd', size);
    for (int differ = 0; differ < 2; differ++) {
        bytes models[2];
        pair p;
        for (int i = 0; i < 2; i++) {
            bytes function = {0}, node = new_node("Relu", "", "call", "fx", "fy");
            models[i] = chain_model("x", "y", 17);
            put_str(&function, 1, "Long");
            put_str(&function, 4, "fx");
            put_str(&function, 5, "fy");
            put_child(&function, 7, &node);
            text[size - 1] = (char)('a' + i * differ);
            put_data(&function, 8, text, size); /* doc_string */
            put_str(&function, 10, "mine");
            put_child(&models[i], 25, &function);
        }
        CHECK_TRUE(pair_open(&p, models[0], models[1]));
        CHECK(epctx_merge(p.parts, 2, NULL, NULL, &p.error) ==
                  (differ ? EPCTX_ERR_GRAPH : EPCTX_OK),
              "%s", p.error.message);
        CHECK_UINT(count_of(epctx_model_functions(&p.models[0])), 1);
        pair_close(&p);
    }
    free(text);
}

/* -- time -- */

static const char *numbered(const char *name, size_t number) {
    static char text[2][40];
    static int turn;
    turn = !turn;
    snprintf(text[turn], sizeof text[turn], "%s%zu", name, number);
    return text[turn];
}

/* x -> y, with `count` of one thing. */
static bytes long_model(int what, size_t count) {
    bytes graph = {0}, node, model, pairs = {0};
    if (what == 0) {
        for (size_t i = 0; i < count; i++) add_metadata(&pairs, numbered("key", i), "value");
    } else if (what == 1) {
        for (size_t i = 0; i < count; i++) {
            const char *domain = numbered("domain", i);
            node = new_node("Op", domain, "", "x", numbered("v", i));
            put_child(&graph, 1, &node);
            add_opset(&pairs, domain, 1);
        }
    } else {
        node = new_node("Op", "", "n", "x", "y");
        for (size_t i = 0; i < count; i++) {
            put_str(&node, what == 2 ? 1 : 2, numbered("v", i));
            if (what == 2) add_value(&graph, GRAPH_INPUT, numbered("v", i), 1, vector);
        }
        put_child(&graph, 1, &node);
    }
    add_node(&graph, "Relu", "", "x", "y");
    add_ends(&graph, "x", "y");
    model = new_model(&graph);
    bytes_add(&model, pairs.data, pairs.size);
    bytes_free(&pairs);
    return model;
}

/* Four times as much takes about four times as long, not sixteen times; the best of three counts,
 * and what a clock cannot tell apart is allowed. */
TEST(merge_is_linear) {
    static const char *const names[] = {"keys", "operator sets", "inputs", "outputs of a node"};
    enum { COUNT = 2000 };
    for (int what = 0; what < 4; what++) {
        double best[2] = {1e9, 1e9};
        for (int round = 0; round < 6; round++) {
            size_t count = round % 2 == 0 ? COUNT : 4 * COUNT;
            clock_t start;
            double seconds;
            pair p;
            CHECK_TRUE(pair_open(&p, long_model(what, count), long_model(what, count)));
            start = clock();
            CHECK_OK(pair_merge(&p), p.error);
            seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
            if (seconds < best[round % 2]) best[round % 2] = seconds;
            pair_close(&p);
        }
        CHECK(best[1] < 8 * best[0] + 0.05, "%d %s %.3f s, %d %.3f s", COUNT, names[what], best[0],
              4 * COUNT, best[1]);
    }
}

int main(int argc, char **argv) {
    RUN(merge_is_linear);
    RUN(merge_side_by_side);
    RUN(merge_prefixes);
    RUN(merge_share_inputs);
    RUN(chain);
    RUN(chain_refusals);
    RUN(chain_type_differs);
    RUN(merge_breaks_a_rule);
    RUN(merge_the_same_model);
    RUN(merge_refusals);
    RUN(merge_of_an_old_model);
    RUN(merge_of_too_much);
    RUN(connections);
    RUN(connection_of_a_passed_input);
    RUN(types_of_connections);
    RUN(merge_outputs_that_feed);
    RUN(merge_keys);
    RUN(merge_one_graph);
    RUN(chain_keeps_names_of_binaries);
    RUN(merge_names_are_new);
    RUN(merge_values_of_bodies);
    RUN(merge_a_name_twice_in_a_body);
    RUN(merge_nodes_of_one_name);
    RUN(merge_many_of_one_name);
    RUN(merge_feeds_a_name_that_must_stay);
    RUN(merge_of_two_containers);
    RUN(merge_of_two_contexts);
    RUN(merge_partitions);
    RUN(merge_opsets);
    RUN(merge_metadata);
    RUN(merge_metadata_prefix_taken);
    RUN(merge_newer_operator_sets);
    RUN(merge_compatibility);
    RUN(merge_metadata_of_graphs);
    RUN(merge_functions_of_onnx);
    RUN(merge_equal_functions_of_any_size);
    return test_end();
}
