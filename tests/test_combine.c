/* Merge, chain, split, wrap and repair on small models: refusals, undo, lack of memory, damaged
 * input. What the results mean is judged in test_combine.sh. */
#define _XOPEN_SOURCE 700
#include "files.h"

static const int64_t vector[] = {4, -1};
static const int64_t other[] = {5, -1};
static const float weights[] = {1, 2, 3, 4};

/* x -> Add w -> t -> Relu -> y, with value_info for t. */
static bytes chain_model(const char *x, const char *y, int64_t opset)
{
    bytes graph = {0}, model = {0};
    char names[64];
    put_str(&graph, 2, "g");
    snprintf(names, sizeof names, "%s,w", x);
    add_node(&graph, "Add", "first", names, "t");
    add_node(&graph, "Relu", "second", "t", y);
    add_floats(&graph, "w", weights, 4);
    add_value(&graph, GRAPH_INPUT, x, EPCTX_ONNX_FLOAT, vector);
    add_value(&graph, GRAPH_OUTPUT, y, EPCTX_ONNX_FLOAT, vector);
    add_value(&graph, GRAPH_VALUE, "t", EPCTX_ONNX_FLOAT, vector);
    put_int(&model, 1, 8);
    add_opset(&model, "", opset);
    put_child(&model, 7, &graph);
    return model;
}

/* Two EPContext nodes of a source, the second one secondary: x -> t -> y. */
static bytes compiled_model(const char *source)
{
    bytes graph = {0}, model = {0};
    add_epnode(&graph, "n0", "x", "t", 1, 1, source, "p0", "payload", 7);
    add_epnode(&graph, "n1", "t", "y", 0, 1, source, "p1", NULL, 0);
    add_value(&graph, GRAPH_INPUT, "x", EPCTX_ONNX_FLOAT, vector);
    add_value(&graph, GRAPH_OUTPUT, "y", EPCTX_ONNX_FLOAT, vector);
    add_value(&graph, GRAPH_VALUE, "t", EPCTX_ONNX_FLOAT, vector);
    put_int(&model, 1, 8);
    add_opset(&model, "com.microsoft", 1);
    put_child(&model, 7, &graph);
    return model;
}

static void add_metadata(bytes *model, const char *key, const char *value)
{
    bytes entry = {0};
    put_str(&entry, 1, key);
    put_str(&entry, 2, value);
    put_child(model, 14, &entry);
}

/* Two open models and what becomes of them. */
typedef struct pair {
    bytes a, b;
    epctx_model first, second;
    epctx_part parts[2];
    epctx_combined out;
    epctx_error error;
} pair;

static bool pair_open(pair *p, bytes a, bytes b)
{
    memset(p, 0, sizeof *p);
    p->a = a;
    p->b = b;
    p->parts[0].model = &p->first;
    p->parts[1].model = &p->second;
    return epctx_model_open_memory(&p->first, a.data, a.size, NULL, &p->error) == EPCTX_OK &&
           epctx_model_open_memory(&p->second, b.data, b.size, NULL, &p->error) == EPCTX_OK;
}

/* Whether both models are as they were opened. */
static bool pair_untouched(pair *p)
{
    bytes a = written(&p->first), b = written(&p->second);
    bool same = bytes_equal(&a, p->a.data, p->a.size) && bytes_equal(&b, p->b.data, p->b.size);
    bytes_free(&a);
    bytes_free(&b);
    return same;
}

static void pair_close(pair *p)
{
    epctx_model_close(&p->first);
    epctx_model_close(&p->second);
    bytes_free(&p->a);
    bytes_free(&p->b);
}

static size_t count_of(epctx_cursor it)
{
    epctx_field field;
    size_t count = 0;
    while (epctx_next_field(&it, &field))
        count++;
    return count;
}

static bool has_input(const epctx_model *model, const char *name)
{
    epctx_cursor it = epctx_graph_inputs(epctx_model_graph(model));
    epctx_value_view value;
    while (epctx_next_value(&it, &value))
        if (epctx_str_is(value.name, name)) return true;
    return false;
}

TEST(merge_side_by_side)
{
    pair p;
    epctx_graph_view graph;
    CHECK(pair_open(&p, chain_model("x", "y", 17), chain_model("x", "y", 17)), "%s",
          p.error.message);
    CHECK(epctx_merge(p.parts, 2, NULL, &p.out, &p.error) == EPCTX_OK, "%s", p.error.message);
    graph = epctx_model_graph(&p.first);
    CHECK_INT(count_of(epctx_graph_nodes(graph)), 4);
    CHECK_INT(count_of(epctx_graph_initializers(graph)), 2);
    CHECK_TRUE(has_input(&p.first, "x") && has_input(&p.first, "m2_x"));
    CHECK_INT(p.out.file_count, 0);
    epctx_undo(&p.first, 0);
    CHECK(pair_untouched(&p), "undo does not restore the bytes, or the second model changed");
    pair_close(&p);
}

TEST(merge_prefixes)
{
    pair p;
    CHECK_TRUE(pair_open(&p, chain_model("x", "y", 17), chain_model("x", "y", 17)));
    p.parts[1].prefix = "";
    CHECK_INT(epctx_merge(p.parts, 2, NULL, &p.out, &p.error), EPCTX_ERR_EXISTS);
    CHECK_HAS(p.error.message, "value 'x'");
    CHECK(pair_untouched(&p), "a refusal changes something");
    p.parts[0].prefix = "left_";
    p.parts[1].prefix = "right_";
    CHECK(epctx_merge(p.parts, 2, NULL, &p.out, &p.error) == EPCTX_OK, "%s", p.error.message);
    CHECK_TRUE(has_input(&p.first, "left_x") && has_input(&p.first, "right_x"));
    pair_close(&p);
}

TEST(merge_share_inputs)
{
    epctx_merge_opts opts = {0};
    pair p;
    opts.share_inputs = true;
    CHECK_TRUE(pair_open(&p, chain_model("x", "y", 17), chain_model("x", "z", 17)));
    CHECK(epctx_merge(p.parts, 2, &opts, &p.out, &p.error) == EPCTX_OK, "%s", p.error.message);
    CHECK_INT(count_of(epctx_graph_inputs(epctx_model_graph(&p.first))), 1);
    CHECK_INT(count_of(epctx_graph_outputs(epctx_model_graph(&p.first))), 2);
    pair_close(&p);
}

TEST(chain)
{
    epctx_merge_opts opts = {0};
    pair p;
    opts.chain = true;
    CHECK_TRUE(pair_open(&p, chain_model("x", "y", 17), chain_model("y", "z", 17)));
    CHECK(epctx_merge(p.parts, 2, &opts, &p.out, &p.error) == EPCTX_OK, "%s", p.error.message);
    CHECK_INT(count_of(epctx_graph_inputs(epctx_model_graph(&p.first))), 1);
    CHECK_INT(count_of(epctx_graph_outputs(epctx_model_graph(&p.first))), 1);
    /* t, its namesake, and y, which is no output any more */
    CHECK_INT(count_of(epctx_graph_values(epctx_model_graph(&p.first))), 3);
    epctx_undo(&p.first, 0);
    opts.keep_outputs = true;
    CHECK(epctx_merge(p.parts, 2, &opts, &p.out, &p.error) == EPCTX_OK, "%s", p.error.message);
    CHECK_INT(count_of(epctx_graph_outputs(epctx_model_graph(&p.first))), 2);
    pair_close(&p);
}

TEST(chain_refusals)
{
    epctx_merge_opts opts = {0};
    epctx_connection link;
    pair p;
    opts.chain = true;
    CHECK_TRUE(pair_open(&p, chain_model("x", "y", 17), chain_model("a", "b", 17)));
    CHECK_INT(epctx_merge(p.parts, 2, &opts, NULL, &p.error), EPCTX_ERR_NOT_FOUND);
    CHECK_HAS(p.error.message, "name the connections");
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
    CHECK(epctx_merge(p.parts, 2, &opts, NULL, &p.error) == EPCTX_OK, "%s", p.error.message);
    pair_close(&p);
}

TEST(chain_type_differs)
{
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

TEST(merge_opsets)
{
    epctx_merge_opts opts = {0};
    pair p;
    CHECK_TRUE(pair_open(&p, chain_model("x", "y", 17), chain_model("x", "y", 13)));
    CHECK_INT(epctx_merge(p.parts, 2, NULL, NULL, &p.error), EPCTX_ERR_GRAPH);
    CHECK_HAS(p.error.message, "version 13");
    CHECK(pair_untouched(&p), "a refusal changes something");
    opts.force_opset = true;
    CHECK(epctx_merge(p.parts, 2, &opts, NULL, &p.error) == EPCTX_OK, "%s", p.error.message);
    CHECK_INT(epctx_model_opset(&p.first, epctx_str_of("")), 17);
    pair_close(&p);
    /* A compiled model does not use ai.onnx, so its version says nothing. */
    {
        bytes compiled = compiled_model("EpctxNpuExecutionProvider");
        add_opset(&compiled, "", 21);
        CHECK_TRUE(pair_open(&p, compiled, chain_model("x", "y", 13)));
    }
    CHECK(epctx_merge(p.parts, 2, NULL, NULL, &p.error) == EPCTX_OK, "%s", p.error.message);
    CHECK_INT(epctx_model_opset(&p.first, epctx_str_of("")), 13);
    pair_close(&p);
}

TEST(merge_metadata)
{
    epctx_merge_opts opts = {0};
    bytes a = chain_model("x", "y", 17), b = chain_model("x", "y", 17);
    epctx_str value = {NULL, 0};
    pair p;
    add_metadata(&a, "same", "1");
    add_metadata(&a, "key", "1");
    add_metadata(&b, "same", "1");
    add_metadata(&b, "key", "2");
    add_metadata(&b, "new", "3");
    CHECK_TRUE(pair_open(&p, a, b));
    CHECK_INT(epctx_merge(p.parts, 2, NULL, NULL, &p.error), EPCTX_ERR_GRAPH);
    CHECK_HAS(p.error.message, "metadata 'key'");
    opts.metadata = EPCTX_METADATA_FIRST;
    CHECK(epctx_merge(p.parts, 2, &opts, NULL, &p.error) == EPCTX_OK, "%s", p.error.message);
    CHECK_TRUE(epctx_model_metadata(&p.first, epctx_str_of("key"), &value));
    CHECK_TRUE(epctx_str_is(value, "1"));
    CHECK_TRUE(epctx_model_metadata(&p.first, epctx_str_of("new"), &value));
    epctx_undo(&p.first, 0);
    opts.metadata = EPCTX_METADATA_PREFIX;
    CHECK(epctx_merge(p.parts, 2, &opts, NULL, &p.error) == EPCTX_OK, "%s", p.error.message);
    CHECK_TRUE(epctx_model_metadata(&p.first, epctx_str_of("m2_key"), &value));
    CHECK_TRUE(epctx_str_is(value, "2"));
    pair_close(&p);
}

/* QNN finds the graph by the node's name and values by theirs: neither may change. */
TEST(merge_keys)
{
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

/* The second node wants its input under the name that the binary has. */
TEST(chain_keeps_names_of_binaries)
{
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
    CHECK(epctx_merge(p.parts, 2, &opts, &p.out, &p.error) == EPCTX_OK, "%s", p.error.message);
    it = epctx_graph_nodes(epctx_model_graph(&p.first));
    while (epctx_next_node(&it, &node)) {
        epctx_cursor inputs = epctx_node_inputs(&node);
        epctx_str name = {NULL, 0};
        epctx_next_str(&inputs, &name);
        bridge = bridge || (epctx_str_is(node.op_type, "Identity") && epctx_str_is(name, "y"));
        wanted = wanted || (epctx_is_epnode(&node) && epctx_str_is(name, "a"));
    }
    CHECK(bridge && wanted, "the EPContext node has not its input 'a' from an Identity of 'y'");
    pair_close(&p);
}

/* What an EP cannot load is refused: TensorRT wants one node. */
TEST(merge_breaks_a_rule)
{
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

TEST(merge_the_same_model)
{
    pair p;
    CHECK_TRUE(pair_open(&p, chain_model("x", "y", 17), chain_model("x", "y", 17)));
    p.parts[1].model = &p.first;
    CHECK_INT(epctx_merge(p.parts, 2, NULL, NULL, &p.error), EPCTX_ERR_ARG);
    CHECK_INT(epctx_merge(p.parts, 0, NULL, NULL, &p.error), EPCTX_ERR_ARG);
    CHECK(pair_untouched(&p), "a refusal changes something");
    pair_close(&p);
}

/* A graph body that reads `captured`. */
static void add_body(bytes *graph, const char *node_name, const char *input, const char *output,
                     const char *captured)
{
    bytes body = {0}, attr = {0}, node;
    char names[64];
    snprintf(names, sizeof names, "%s,own", captured);
    add_node(&body, "Add", "inner", names, "inside");
    add_node(&body, "Relu", "inner2", "inside", "body_out");
    add_floats(&body, "own", weights, 4);
    add_value(&body, GRAPH_OUTPUT, "body_out", EPCTX_ONNX_FLOAT, vector);
    node = new_node("If", "", node_name, input, output);
    put_str(&attr, 1, "then_branch");
    put_child(&attr, 6, &body);
    put_int(&attr, 20, EPCTX_ATTR_GRAPH);
    put_child(&node, 5, &attr);
    put_child(graph, 1, &node);
}

/* NULL when the merge is refused with `status` and `text` and changes nothing. */
static const char *merge_refused(bytes a, bytes b, const char *prefix, const epctx_merge_opts *opts,
                                 epctx_status status, const char *text)
{
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

#define MERGE_REFUSED(a, b, prefix, opts, status, text)                                            \
    do {                                                                                           \
        const char *why_ = merge_refused(a, b, prefix, opts, status, text);                        \
        CHECK(why_ == NULL, "expected %s, found %s", text, why_);                                  \
    } while (0)

/* One node of a name with one input and one output. */
static bytes small_model(const char *node, const char *x, const char *y)
{
    bytes graph = {0};
    add_node(&graph, "Relu", node, x, y);
    add_value(&graph, GRAPH_INPUT, x, EPCTX_ONNX_FLOAT, vector);
    add_value(&graph, GRAPH_OUTPUT, y, EPCTX_ONNX_FLOAT, vector);
    return new_model(&graph);
}

TEST(merge_refusals)
{
    bytes model = small_model("n", "p", "q"), extra = {0}, function = {0};
    epctx_merge_opts opts = {0};
    epctx_connection links[2] = {0};
    MERGE_REFUSED(small_model("n", "b_x", "y"), small_model("m", "x", "z"), "b_", NULL,
                  EPCTX_ERR_EXISTS, "value 'b_x' is in an earlier model, too: choose another prefix");
    MERGE_REFUSED(small_model("b_m", "x", "y"), small_model("m", "x", "z"), "b_", NULL,
                  EPCTX_ERR_EXISTS, "node 'b_m' is in an earlier model, too: choose another prefix");
    MERGE_REFUSED(small_model("n", "x", "y"), small_model("n", "p", "q"), "", NULL,
                  EPCTX_ERR_EXISTS, "node 'n' is in an earlier model, too: give the model a prefix");
    add_node(&extra, "Step", "step", "p", "q");
    put_child(&function, 2, &extra);
    put_child(&model, 20, &function);
    MERGE_REFUSED(small_model("n", "x", "y"), model, NULL, NULL, EPCTX_ERR_UNSUPPORTED,
                  "training information");
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
                  EPCTX_ERR_NOT_FOUND, "no model behind that with the output has the input");
    links[0].output = epctx_str_of("gone");
    links[0].input = epctx_str_of("p");
    MERGE_REFUSED(compiled_model("QNN"), compiled_model("QNN"), NULL, &opts, EPCTX_ERR_NOT_FOUND,
                  "no such output, but for example 'y'");
    links[0].output = epctx_str_of("q");
    links[0].from = 1;
    links[0].to = 0;
    links[0].input = epctx_str_of("x");
    MERGE_REFUSED(small_model("n", "x", "y"), small_model("m", "p", "q"), NULL, &opts,
                  EPCTX_ERR_NOT_FOUND, "no model behind that");
    links[0].from = 7;
    MERGE_REFUSED(small_model("n", "x", "y"), small_model("m", "p", "q"), NULL, &opts,
                  EPCTX_ERR_NOT_FOUND, "for example 'y'");
    CHECK_INT(epctx_merge(NULL, 1, NULL, NULL, NULL), EPCTX_ERR_ARG);
}

/* An input that two outputs want, and connections by number. */
TEST(connections)
{
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
    CHECK(epctx_merge(parts, 3, &opts, NULL, &error) == EPCTX_OK, "%s", error.message);
    CHECK_TRUE(has_input(&models[0], "x") && has_input(&models[0], "p"));
    CHECK(!has_input(&models[0], "in"), "the connected input is one of the result");
    for (i = 0; i < 3; i++) {
        epctx_model_close(&models[i]);
        bytes_free(&data[i]);
    }
}

/* Which types go together; 0: none given, -1 behind the type: no shape. */
TEST(types_of_connections)
{
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
            add_node(&graphs[k], "Relu", k == 0 ? "n" : "m", k == 0 ? "x" : "y", k == 0 ? "y" : "z");
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

/* Values of bodies get other names where they would hide one of the other model, and names that
 * are made do not meet those that are there. */
TEST(merge_names_are_new)
{
    bytes a = {0}, b = {0};
    epctx_merge_opts opts = {0};
    pair p;
    add_node(&a, "Relu", "n", "x", "own");
    add_node(&a, "Relu", "m2_n", "own", "inside");
    add_value(&a, GRAPH_INPUT, "x", EPCTX_ONNX_FLOAT, vector);
    add_value(&a, GRAPH_OUTPUT, "inside", EPCTX_ONNX_FLOAT, vector);
    add_value(&a, GRAPH_OUTPUT, "m2_m2_x", EPCTX_ONNX_FLOAT, vector);
    add_node(&a, "Relu", "", "x", "m2_m2_x");
    add_body(&b, "n", "x", "m2_x", "w");
    add_body(&b, "m2_m2_n", "m2_x", "z", "w");
    add_floats(&b, "w", weights, 4);
    add_value(&b, GRAPH_INPUT, "x", EPCTX_ONNX_FLOAT, vector);
    add_value(&b, GRAPH_OUTPUT, "z", EPCTX_ONNX_FLOAT, vector);
    CHECK_TRUE(pair_open(&p, new_model(&a), new_model(&b)));
    CHECK(epctx_merge(p.parts, 2, &opts, &p.out, &p.error) == EPCTX_OK, "%s", p.error.message);
    CHECK_TRUE(has_input(&p.first, "x") && has_input(&p.first, "m2_m2_m2_x"));
    epctx_undo(&p.first, 0);
    p.parts[1].prefix = "";
    CHECK_INT(epctx_merge(p.parts, 2, &opts, NULL, &p.error), EPCTX_ERR_EXISTS);
    CHECK(pair_untouched(&p), "a refusal changes something");
    pair_close(&p);
}

/* IR version 3 lists weights as inputs; in version 8 that would make them replaceable. */
TEST(merge_of_an_old_model)
{
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
    CHECK(epctx_merge(p.parts, 2, NULL, NULL, &p.error) == EPCTX_OK, "%s", p.error.message);
    CHECK_TRUE(has_input(&p.first, "p") && has_input(&p.first, "x"));
    CHECK(!has_input(&p.first, "v"), "the weight is an input of the result");
    CHECK_INT(epctx_model_read(&p.first).ir_version, 8);
    epctx_undo(&p.first, 0);
    p.parts[0].model = &p.second; /* the other way round, with names that change */
    p.parts[1].model = &p.first;
    p.parts[1].prefix = "old_";
    CHECK(epctx_merge(p.parts, 2, NULL, NULL, &p.error) == EPCTX_OK, "%s", p.error.message);
    CHECK_TRUE(has_input(&p.second, "old_p"));
    CHECK(!has_input(&p.second, "old_v"), "the weight is an input of the result");
    pair_close(&p);
}

/* -- split -- */

static epctx_value value_named(const char *name)
{
    epctx_value value;
    memset(&value, 0, sizeof value);
    value.name = epctx_str_of(name);
    value.rank = -1;
    return value;
}

static epctx_status split_at(epctx_model *model, const char *input, const char *output,
                             epctx_error *error)
{
    epctx_value in = value_named(input), out = value_named(output);
    epctx_split_opts opts;
    memset(&opts, 0, sizeof opts);
    opts.inputs = &in;
    opts.input_count = input[0] != '\0';
    opts.outputs = &out;
    opts.output_count = output[0] != '\0';
    return epctx_split(model, &opts, NULL, error);
}

TEST(split)
{
    bytes data = chain_model("x", "y", 17), now;
    epctx_model model;
    epctx_error error;
    CHECK_INT(epctx_model_open_memory(&model, data.data, data.size, NULL, &error), EPCTX_OK);
    CHECK(split_at(&model, "", "t", &error) == EPCTX_OK, "%s", error.message);
    CHECK_INT(count_of(epctx_graph_nodes(epctx_model_graph(&model))), 1);
    CHECK_INT(count_of(epctx_graph_initializers(epctx_model_graph(&model))), 1);
    epctx_undo(&model, 0);
    CHECK(split_at(&model, "t", "", &error) == EPCTX_OK, "%s", error.message);
    CHECK_TRUE(has_input(&model, "t"));
    CHECK_INT(count_of(epctx_graph_initializers(epctx_model_graph(&model))), 0);
    epctx_undo(&model, 0);
    now = written(&model);
    CHECK_MEM(now.data, now.size, data.data, data.size);
    bytes_free(&now);
    epctx_model_close(&model);
    bytes_free(&data);
}

TEST(split_refusals)
{
    static const struct {
        const char *input, *output;
        epctx_status status;
        const char *text;
    } cases[] = {
        {"nowhere", "", EPCTX_ERR_NOT_FOUND, "'nowhere'"},
        {"", "nowhere", EPCTX_ERR_NOT_FOUND, "'nowhere'"},
        {"t", "t", EPCTX_ERR_ARG, "'t'"},
        {"y", "t", EPCTX_ERR_GRAPH, "'x'"},
        {"w", "", EPCTX_ERR_GRAPH, "'x'"},
    };
    bytes data = chain_model("x", "y", 17), now;
    epctx_model model;
    epctx_error error;
    size_t i;
    CHECK_INT(epctx_model_open_memory(&model, data.data, data.size, NULL, &error), EPCTX_OK);
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        epctx_status status = split_at(&model, cases[i].input, cases[i].output, &error);
        CHECK(status == cases[i].status, "'%s' to '%s': %s: %s", cases[i].input, cases[i].output,
              epctx_status_name(status), error.message);
        CHECK_HAS(error.message, cases[i].text);
    }
    now = written(&model);
    CHECK_MEM(now.data, now.size, data.data, data.size);
    bytes_free(&now);
    epctx_model_close(&model);
    bytes_free(&data);
}

/* The secondary node stays alone and takes the context over. */
TEST(split_hands_the_context_over)
{
    bytes data = compiled_model("EpctxNpuExecutionProvider");
    epctx_model model;
    epctx_error error;
    epctx_cursor it;
    epctx_node_view node;
    epctx_epnode ep;
    CHECK_INT(epctx_model_open_memory(&model, data.data, data.size, NULL, &error), EPCTX_OK);
    CHECK(split_at(&model, "t", "", &error) == EPCTX_OK, "%s", error.message);
    it = epctx_graph_nodes(epctx_model_graph(&model));
    CHECK_TRUE(epctx_next_node(&it, &node));
    CHECK_INT(epctx_epnode_read(&node, &ep, &error), EPCTX_OK);
    CHECK_INT(ep.main_context, 1);
    CHECK_TRUE(epctx_str_is(ep.ep_cache_context, "payload"));
    CHECK_TRUE(epctx_str_is(ep.partition_name, "p1"));
    epctx_model_close(&model);
    bytes_free(&data);
}

/* -- wrap -- */

TEST(wrap_refusals)
{
    static const struct {
        int32_t type;
        bool quantized;
        float scale;
        int64_t zero;
        const char *text;
    } cases[] = {
        {EPCTX_ONNX_STRING, false, 0, 0, "EPContext takes"},
        {EPCTX_ONNX_FLOAT, true, 1, 0, "8 or 16 bits"},
        {EPCTX_ONNX_UINT8, true, 0, 0, "scale"},
        {EPCTX_ONNX_UINT8, true, 1, 256, "zero point"},
        {EPCTX_ONNX_INT8, true, 1, -129, "zero point"},
    };
    epctx_wrap_value out;
    epctx_wrap_opts opts;
    epctx_model model;
    epctx_error error;
    epctx_span binary;
    size_t i;
    memset(&opts, 0, sizeof opts);
    memset(&out, 0, sizeof out);
    binary.data = (const uint8_t *)"binary";
    binary.size = 6;
    opts.profile = epctx_profile_find(epctx_str_of("qnn"));
    opts.name = "g";
    opts.embed = true;
    opts.outputs = &out;
    opts.output_count = 1;
    out.value.name = epctx_str_of("y");
    out.value.rank = 1;
    out.value.dims = vector;
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        out.value.elem_type = cases[i].type;
        out.quantized = cases[i].quantized;
        out.scale = cases[i].scale;
        out.zero_point = cases[i].zero;
        CHECK_INT(epctx_wrap(&model, binary, &opts, NULL, NULL, &error), EPCTX_ERR_ARG);
        CHECK_HAS(error.message, cases[i].text);
    }
    out.value.elem_type = EPCTX_ONNX_FLOAT;
    out.quantized = false;
    out.value.dims = (const int64_t[]){-1};
    CHECK_INT(epctx_wrap(&model, binary, &opts, NULL, NULL, &error), EPCTX_ERR_ARG);
    CHECK_HAS(error.message, "static shapes");
    out.value.dims = vector;
    opts.inputs = &out; /* input and output of one name */
    opts.input_count = 1;
    CHECK_INT(epctx_wrap(&model, binary, &opts, NULL, NULL, &error), EPCTX_ERR_ARG);
    CHECK_HAS(error.message, "'y'");
    opts.input_count = 0;
    opts.embed = false;
    CHECK_INT(epctx_wrap(&model, binary, &opts, NULL, NULL, &error), EPCTX_ERR_ARG);
    opts.binary_name = "../b.bin";
    CHECK_INT(epctx_wrap(&model, binary, &opts, NULL, NULL, &error), EPCTX_ERR_PATH);
    opts.binary_name = "b.bin";
    binary.size = 0;
    CHECK_INT(epctx_wrap(&model, binary, &opts, NULL, NULL, &error), EPCTX_ERR_ARG);
    binary.size = 6;
    CHECK(epctx_wrap(&model, binary, &opts, NULL, NULL, &error) == EPCTX_OK, "%s", error.message);
    epctx_model_close(&model);
}

/* -- repair -- */

typedef struct notes {
    size_t done, left;
    epctx_rule last;
} notes;

static void note(void *user, const epctx_repair_note *n)
{
    notes *all = (notes *)user;
    all->done += n->done;
    all->left += !n->done;
    all->last = n->rule;
}

/* The graph stands twice: what can only be read becomes what can be edited, and back. */
TEST(repair_and_undo)
{
    bytes data = compiled_model("EpctxNpuExecutionProvider"), graph = {0}, now;
    epctx_repair_opts opts;
    epctx_model model;
    epctx_error error;
    notes all = {0, 0, EPCTX_RULE_COUNT};
    size_t done, left;
    memset(&opts, 0, sizeof opts);
    opts.check.no_files = true;
    add_node(&graph, "Relu", "extra", "y", "z");
    put_child(&data, 7, &graph);
    CHECK_INT(epctx_model_open_memory(&model, data.data, data.size, NULL, &error), EPCTX_OK);
    CHECK_INT(epctx_put_metadata(&model, epctx_str_of("a"), epctx_str_of("b"), &error),
              EPCTX_ERR_GRAPH);
    CHECK(epctx_repair(&model, &opts, note, &all, &done, &left, &error) == EPCTX_OK, "%s",
          error.message);
    CHECK_TRUE(done > 0 && done == all.done && left == all.left);
    CHECK_INT(count_of(epctx_graph_nodes(epctx_model_graph(&model))), 3);
    CHECK_INT(epctx_put_metadata(&model, epctx_str_of("a"), epctx_str_of("b"), &error), EPCTX_OK);
    epctx_undo(&model, 0);
    now = written(&model);
    CHECK_MEM(now.data, now.size, data.data, data.size);
    CHECK_INT(count_of(epctx_graph_nodes(epctx_model_graph(&model))), 3);
    CHECK_INT(epctx_put_metadata(&model, epctx_str_of("a"), epctx_str_of("b"), &error),
              EPCTX_ERR_GRAPH);
    bytes_free(&now);
    epctx_model_close(&model);
    bytes_free(&data);
}

/* A rule that was not asked for is left alone; a hint is repaired when it is named. */
TEST(repair_by_rule)
{
    bytes graph = {0}, data;
    epctx_rule rule = EPCTX_RULE_DEFAULTS;
    epctx_repair_opts opts;
    epctx_model model;
    epctx_error error;
    notes all = {0, 0, EPCTX_RULE_COUNT};
    memset(&opts, 0, sizeof opts);
    add_epnode(&graph, "n", "x", "y", -1, -1, "QNN", "n", "payload", 7);
    add_value(&graph, GRAPH_INPUT, "x", EPCTX_ONNX_FLOAT, vector);
    add_value(&graph, GRAPH_OUTPUT, "y", EPCTX_ONNX_FLOAT, vector);
    data = new_model(&graph); /* com.microsoft is not imported */
    opts.check.no_files = true;
    opts.rules = &rule;
    opts.rule_count = 1;
    CHECK_INT(epctx_model_open_memory(&model, data.data, data.size, NULL, &error), EPCTX_OK);
    CHECK_INT(epctx_repair(&model, &opts, note, &all, NULL, NULL, &error), EPCTX_OK);
    CHECK_INT(all.done, 2);
    CHECK_INT(all.last, EPCTX_RULE_DEFAULTS);
    CHECK_INT(epctx_model_opset(&model, epctx_str_of("com.microsoft")), 0);
    rule = EPCTX_RULE_EPCONTEXT_OPSET;
    CHECK_INT(epctx_repair(&model, &opts, note, &all, NULL, NULL, &error), EPCTX_OK);
    CHECK_INT(epctx_model_opset(&model, epctx_str_of("com.microsoft")), 1);
    epctx_model_close(&model);
    bytes_free(&data);
}

/* The type of an output that only DequantizeLinear reads is that of its zero point. */
TEST(repair_type_from_reader)
{
    static const uint8_t zero = 0;
    bytes graph = {0}, data, tensor = {0};
    epctx_repair_opts opts;
    epctx_cursor it;
    epctx_value_view value;
    epctx_model model;
    epctx_error error;
    memset(&opts, 0, sizeof opts);
    opts.check.no_files = true;
    add_epnode(&graph, "n", "x", "q", 1, 1, "QNN", "n", "payload", 7);
    add_node(&graph, "DequantizeLinear", "dq", "q,s,z", "y");
    add_floats(&graph, "s", weights, 1);
    put_int(&tensor, 2, EPCTX_ONNX_UINT8);
    put_str(&tensor, 8, "z");
    put_data(&tensor, 9, &zero, 1);
    put_child(&graph, 5, &tensor);
    add_value(&graph, GRAPH_INPUT, "x", EPCTX_ONNX_FLOAT, vector);
    add_value(&graph, GRAPH_OUTPUT, "y", EPCTX_ONNX_FLOAT, vector);
    data = new_model(&graph);
    CHECK_INT(epctx_model_open_memory(&model, data.data, data.size, NULL, &error), EPCTX_OK);
    CHECK_INT(epctx_repair(&model, &opts, NULL, NULL, NULL, NULL, &error), EPCTX_OK);
    it = epctx_graph_values(epctx_model_graph(&model));
    CHECK_TRUE(epctx_next_value(&it, &value));
    CHECK_TRUE(epctx_str_is(value.name, "q") && value.elem_type == EPCTX_ONNX_UINT8);
    epctx_model_close(&model);
    bytes_free(&data);
}

/* -- lack of memory and damaged input -- */

enum { MERGE, CHAIN, CONNECT, SPLIT_BEHIND, SPLIT_BEFORE, SPLIT_ALL, REPAIR, OPERATIONS };

/* One of the operations on two models; the models may be anything. */
static epctx_status operate(int which, epctx_model *a, epctx_model *b,
                            epctx_error *error)
{
    epctx_connection link = {0};
    epctx_merge_opts merge_opts;
    epctx_repair_opts repair_opts;
    epctx_part parts[2];
    epctx_combined out;
    epctx_rule rules[EPCTX_RULE_COUNT];
    memset(&merge_opts, 0, sizeof merge_opts);
    memset(&repair_opts, 0, sizeof repair_opts);
    memset(parts, 0, sizeof parts);
    parts[0].model = a;
    parts[1].model = b;
    repair_opts.source = b;
    repair_opts.check.no_files = true;
    repair_opts.check.allocator = a->arena.allocator.alloc_fn ? &a->arena.allocator : NULL;
    repair_opts.rules = rules;
    for (; repair_opts.rule_count < EPCTX_RULE_COUNT; repair_opts.rule_count++)
        rules[repair_opts.rule_count] = (epctx_rule)repair_opts.rule_count;
    merge_opts.metadata = EPCTX_METADATA_PREFIX;
    merge_opts.force_opset = true;
    link.output = epctx_str_of("y");
    link.to = EPCTX_ANY_PART;
    link.input = epctx_str_of("y");
    switch (which) {
    case CHAIN:
        merge_opts.chain = merge_opts.share_inputs = true;
        return epctx_merge(parts, 2, &merge_opts, &out, error);
    case CONNECT:
        parts[1].prefix = "right_";
        merge_opts.connections = &link;
        merge_opts.connection_count = 1;
        return epctx_merge(parts, 2, &merge_opts, &out, error);
    case MERGE:
        return epctx_merge(parts, 2, &merge_opts, NULL, error);
    case SPLIT_BEHIND:
        return split_at(a, "t", "y", error);
    case SPLIT_BEFORE:
        return split_at(a, "", "t", error);
    case SPLIT_ALL:
        return epctx_split(a, NULL, &out, error);
    default:
        return epctx_repair(a, &repair_opts, NULL, NULL, NULL, NULL, error);
    }
}

static bool same_as(epctx_model *model, const bytes *data)
{
    bytes now = written(model);
    bool same = bytes_equal(&now, data->data, data->size);
    bytes_free(&now);
    return same;
}

/* Whatever becomes of the operation: undo restores, and a failure has nothing to undo. */
static const char *operate_on(int which, const bytes *a, const bytes *b, counting *memory)
{
    epctx_allocator allocator = counting_allocator(memory);
    epctx_open_opts opts;
    epctx_model first, second;
    epctx_status status;
    const char *problem = NULL;
    size_t fail_at = memory->fail_at;
    memset(&opts, 0, sizeof opts);
    memset(&second, 0, sizeof second);
    opts.allocator = &allocator;
    memory->fail_at = 0;
    if (epctx_model_open_memory(&first, a->data, a->size, &opts, NULL) == EPCTX_OK &&
        epctx_model_open_memory(&second, b->data, b->size, &opts, NULL) == EPCTX_OK) {
        memory->calls = 0;
        memory->fail_at = fail_at;
        status = operate(which, &first, &second, NULL);
        memory->fail_at = 0;
        if (status != EPCTX_OK && !same_as(&first, a)) problem = "a failure left an edit";
        if (!same_as(&second, b)) problem = "the second model changed";
        epctx_undo(&first, 0);
        if (!same_as(&first, a)) problem = "undo does not restore";
        if (fail_at != 0 && memory->calls >= fail_at && status == EPCTX_OK)
            problem = "out of memory is a success";
    }
    epctx_model_close(&first);
    epctx_model_close(&second);
    if (memory->alive != 0) problem = "memory leaks";
    memory->fail_at = fail_at;
    return problem;
}

TEST(allocator_fails)
{
    bytes a = chain_model("x", "y", 17), b = chain_model("y", "z", 17);
    int which;
    add_metadata(&b, "ep_compatibility_info.none", "x");
    for (which = 0; which < OPERATIONS; which++) {
        counting memory = {0, 0, 0};
        const char *problem;
        do {
            memory.fail_at++;
            problem = operate_on(which, &a, &b, &memory);
            CHECK(problem == NULL, "operation %d, call %zu: %s", which, memory.fail_at, problem);
        } while (memory.calls >= memory.fail_at && memory.fail_at < 500);
        CHECK(memory.fail_at > 1, "operation %d asks for no memory", which);
    }
    bytes_free(&a);
    bytes_free(&b);
}

static void add_sparse(bytes *graph, const char *name)
{
    bytes sparse = {0}, values = {0}, indices = {0};
    put_int(&values, 1, 1);
    put_int(&values, 2, EPCTX_ONNX_FLOAT);
    put_str(&values, 8, name);
    put_data(&values, 9, weights, 4);
    put_int(&indices, 1, 1);
    put_int(&indices, 2, EPCTX_ONNX_INT64);
    put_data(&indices, 9, "\0\0\0\0\0\0\0\0", 8);
    put_child(&sparse, 1, &values);
    put_child(&sparse, 2, &indices);
    put_int(&sparse, 3, 4);
    put_child(graph, 15, &sparse);
}

static void add_annotation(bytes *graph, const char *value, const char *scale)
{
    bytes annotation = {0}, entry = {0};
    put_str(&entry, 1, "SCALE_TENSOR");
    put_str(&entry, 2, scale);
    put_str(&annotation, 1, value);
    put_child(&annotation, 2, &entry);
    put_child(graph, 14, &annotation);
}

static void add_function(bytes *model, const char *name, const char *calls)
{
    bytes function = {0};
    put_str(&function, 1, name);
    put_str(&function, 4, "fx");
    put_str(&function, 5, "fy");
    bytes node = new_node(calls, "mine", "call", "fx", "fy"), opset = {0};
    put_child(&function, 7, &node);
    put_str(&opset, 1, "mine");
    put_int(&opset, 2, 1);
    put_child(&function, 9, &opset);
    put_str(&function, 10, "mine");
    put_child(model, 25, &function);
}

/* Something of everything: x -> compiled -> t -> Called -> If -> y, a second compiled node beside
 * them, functions, a sparse and a plain initializer, annotations, metadata, training. */
static bytes rich_model(const char *x, const char *t, const char *y, const char *source,
                        int64_t ir_version, bool training)
{
    bytes graph = {0}, model = {0}, node, info = {0}, algorithm = {0};
    char names[64], side[64];
    snprintf(names, sizeof names, "%s,w", t);
    snprintf(side, sizeof side, "%s_side", t);
    put_str(&graph, 2, "rich");
    add_epnode(&graph, "n0", x, t, 1, 1, source, "p0", "payload", 7);
    add_epnode(&graph, "n1", x, side, 0, 1, source, "p1", NULL, 0);
    node = new_node("Called", "mine", "call", names, "u");
    put_child(&graph, 1, &node);
    add_node(&graph, "Sparse", "", "u,sp", "v");
    add_body(&graph, "if", "v", y, "w");
    add_floats(&graph, "w", weights, 4);
    add_floats(&graph, "scale", weights, 1);
    add_sparse(&graph, "sp");
    add_value(&graph, GRAPH_INPUT, x, EPCTX_ONNX_FLOAT, vector);
    add_value(&graph, GRAPH_INPUT, "w", EPCTX_ONNX_FLOAT, vector);
    add_value(&graph, GRAPH_OUTPUT, y, EPCTX_ONNX_FLOAT, vector);
    add_value(&graph, GRAPH_OUTPUT, side, EPCTX_ONNX_FLOAT, vector);
    add_value(&graph, GRAPH_VALUE, t, EPCTX_ONNX_FLOAT, vector);
    add_annotation(&graph, t, "scale");
    add_annotation(&graph, "u", "scale");
    put_int(&model, 1, ir_version);
    add_opset(&model, "", 17);
    add_opset(&model, "mine", 1);
    add_opset(&model, "com.microsoft", 1);
    put_child(&model, 7, &graph);
    add_function(&model, "Called", "Inner");
    add_function(&model, "Inner", "Leaf");
    add_function(&model, "Leaf", "Nothing");
    add_function(&model, "Idle", "Leaf");
    add_metadata(&model, "author", training ? "one" : "two");
    add_metadata(&model, "same", "same");
    add_metadata(&model, EPCTX_BUILD_PREFIX "x", "1");
    add_metadata(&model, "ep_compatibility_info.none", "x");
    if (training) {
        add_node(&algorithm, "Step", "step", "w", "w2");
        put_child(&info, 2, &algorithm);
        put_child(&model, 20, &info);
    }
    return model;
}

/* What repair can put right, as far as it stands in the model or its source. */
static bytes broken_model(void)
{
    bytes graph = {0}, model = {0}, node, tensor = {0};
    put_str(&graph, 2, "broken");
    node = new_node("EPContext", "", "same", "x", "q"); /* wrong domain, no attribute but these */
    add_attr_str(&node, "source", "qnn", 3);
    add_attr_str(&node, "ep_cache_context", "payload", 7);
    add_attr_str(&node, "ep_cache_context", "payload", 7);
    put_child(&graph, 1, &node);
    add_epnode(&graph, "same", "x", "r", -1, -1, "VitisAIExecutionProvider", "p", "c", 1);
    add_epnode(&graph, "", "x", "r2", 0, 1, "OpenVINOExecutionProvider", "p", NULL, 0);
    node = new_node("DequantizeLinear", "", "dq", "q,w,z", "dqy");
    put_child(&graph, 1, &node);
    add_node(&graph, "Add", "dq", "r,w", "s");
    add_node(&graph, "Else", "", "r2", "s2");
    node = new_node("Other", "mine", "other", "s", "y");
    put_child(&graph, 1, &node);
    add_body(&graph, "if", "y", "y2", "lost");
    add_floats(&graph, "w", weights, 4);
    add_floats(&graph, "w", weights, 4);
    add_floats(&graph, "idle", weights, 4);
    put_int(&tensor, 2, EPCTX_ONNX_UINT8);
    put_str(&tensor, 8, "z");
    put_data(&tensor, 9, "", 1);
    put_child(&graph, 5, &tensor);
    add_external(&graph, "far", 4, "*/_ORT_MEM_ADDR_/*", "0", "16");
    add_node(&graph, "Use", "use", "far", "used");
    add_value(&graph, GRAPH_INPUT, "x", EPCTX_ONNX_FLOAT, vector);
    add_value(&graph, GRAPH_OUTPUT, "y2", EPCTX_ONNX_FLOAT, vector);
    add_value(&graph, GRAPH_VALUE, "s", EPCTX_ONNX_FLOAT, vector);
    add_value(&graph, GRAPH_VALUE, "s", EPCTX_ONNX_FLOAT, vector);
    add_annotation(&graph, "gone", "w");
    add_annotation(&graph, "s", "gone");
    put_int(&model, 1, 8);
    put_int(&model, 1, 8);
    add_opset(&model, "", 17);
    add_opset(&model, "", 17);
    put_child(&model, 7, &graph);
    add_metadata(&model, "twice", "x");
    add_metadata(&model, "twice", "x");
    add_metadata(&model, "ep_compatibility_info.none", "x");
    return model;
}

/* What the broken model was compiled from. */
static bytes source_model(void)
{
    bytes graph = {0}, model = {0};
    add_node(&graph, "Relu", "n", "x", "r2");
    add_floats(&graph, "lost", weights, 4);
    add_floats(&graph, "far", weights, 4);
    add_value(&graph, GRAPH_INPUT, "x", EPCTX_ONNX_FLOAT, vector);
    add_value(&graph, GRAPH_OUTPUT, "y2", EPCTX_ONNX_FLOAT, vector);
    add_value(&graph, GRAPH_VALUE, "r2", EPCTX_ONNX_FLOAT, vector);
    put_int(&model, 1, 8);
    add_opset(&model, "", 17);
    add_opset(&model, "mine", 3);
    put_child(&model, 7, &graph);
    return model;
}

/* Every allocation of the first or of the second model fails once. */
static const char *starve(int which, const bytes *a, const bytes *b, bool second)
{
    static uint64_t memory[2][HUNGRY_BUFFER / 8];
    static epctx_error error;
    size_t room = 0, rounds;
    for (rounds = 0; rounds < 20000; rounds++) {
        epctx_model models[2];
        epctx_status status;
        size_t left, missing;
        if (open_hungry(&models[0], a, memory[0], second ? SIZE_MAX : room) != EPCTX_OK ||
            open_hungry(&models[1], b, memory[1], second ? room : SIZE_MAX) != EPCTX_OK)
            return "a model cannot be opened";
        models[second].arena.missing = 0;
        status = operate(which, &models[0], &models[1], &error);
        left = models[second].arena.left;
        missing = models[second].arena.missing;
        models[0].arena.left += 4096; /* for writing */
        models[1].arena.left += 4096;
        if (status == EPCTX_OK && missing == 0) return NULL;
        if (status != EPCTX_OK && status != EPCTX_ERR_NOMEM) return error.message;
        if (status != EPCTX_OK && !same_as(&models[0], a)) return "a failure left an edit";
        if (!same_as(&models[1], b)) return "the second model changed";
        if (left + missing == 0) return "a failure without a request";
        room += missing;
        epctx_model_close(&models[0]);
        epctx_model_close(&models[1]);
    }
    return "it never ends";
}

TEST(every_allocation_fails)
{
    bytes models[6];
    static const struct {
        int which, a, b;
    } cases[] = {{MERGE, 0, 1},        {CHAIN, 0, 2},        {CONNECT, 0, 3},   {SPLIT_BEHIND, 0, 1},
                 {SPLIT_BEFORE, 0, 1}, {SPLIT_ALL, 0, 1},    {REPAIR, 4, 5}};
    size_t i;
    models[0] = rich_model("x", "t", "y", "EpctxNpuExecutionProvider", 8, true);
    models[1] = rich_model("x", "t", "y", "Unknown", 3, false);
    models[2] = rich_model("y", "t2", "z", "OpenVINOExecutionProvider", 8, false);
    models[3] = rich_model("y", "t2", "z", "Unknown", 8, false);
    models[4] = broken_model();
    models[5] = source_model();
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const bytes *a = &models[cases[i].a], *b = &models[cases[i].b];
        const char *problem = starve(cases[i].which, a, b, false);
        CHECK(problem == NULL, "operation %d: %s", cases[i].which, problem);
        problem = starve(cases[i].which, a, b, true);
        CHECK(problem == NULL, "operation %d, second model: %s", cases[i].which, problem);
    }
    for (i = 0; i < 6; i++)
        bytes_free(&models[i]);
}

TEST(damaged_models)
{
    bytes models[3];
    uint32_t state = 20261121;
    size_t tries, i;
    models[0] = chain_model("x", "y", 17);
    models[1] = compiled_model("EpctxNpuExecutionProvider");
    models[2] = compiled_model("QNN");
    for (tries = 0; tries < 6000; tries++) {
        bytes a = {0}, b = {0};
        counting memory = {0, 0, 0};
        const char *problem;
        bytes_add(&a, models[tries % 3].data, models[tries % 3].size);
        bytes_add(&b, models[tries / 3 % 3].data, models[tries / 3 % 3].size);
        for (i = 1 + random_below(&state, 3); i > 0; i--) {
            bytes *victim = random_below(&state, 2) == 0 ? &a : &b;
            victim->data[random_below(&state, (uint32_t)victim->size)] =
                (uint8_t)random_below(&state, 256);
        }
        problem = operate_on((int)(tries / 9 % OPERATIONS), &a, &b, &memory);
        bytes_free(&a);
        bytes_free(&b);
        CHECK(problem == NULL, "try %zu: %s", tries, problem);
    }
    for (i = 0; i < 3; i++)
        bytes_free(&models[i]);
}

int main(int argc, char **argv)
{
    RUN(merge_side_by_side);
    RUN(merge_prefixes);
    RUN(merge_share_inputs);
    RUN(chain);
    RUN(chain_refusals);
    RUN(chain_type_differs);
    RUN(merge_opsets);
    RUN(merge_metadata);
    RUN(merge_keys);
    RUN(chain_keeps_names_of_binaries);
    RUN(merge_breaks_a_rule);
    RUN(merge_the_same_model);
    RUN(merge_refusals);
    RUN(connections);
    RUN(types_of_connections);
    RUN(merge_names_are_new);
    RUN(merge_of_an_old_model);
    RUN(split);
    RUN(split_refusals);
    RUN(split_hands_the_context_over);
    RUN(wrap_refusals);
    RUN(repair_and_undo);
    RUN(repair_by_rule);
    RUN(repair_type_from_reader);
    RUN(allocator_fails);
    RUN(every_allocation_fails);
    RUN(damaged_models);
    return test_end();
}
