/* Merge, chain, split, wrap and repair on small models: refusals, undo, lack of memory, damaged
 * input. What the results mean is judged in test_combine.sh. */
#define _XOPEN_SOURCE 700
#include "examples/epctx/ops/merge.h"
#include "examples/epctx/ops/split.h"
#include "examples/epctx/ops/wrap.h"
#include "examples/epctx/ops/repair.h"
#include "files.h"
#include "examples/epctx/ops/lint.h"

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
    CHECK_OK(epctx_merge(p.parts, 2, NULL, &p.out, &p.error), p.error);
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
    CHECK_OK(epctx_merge(p.parts, 2, NULL, &p.out, &p.error), p.error);
    CHECK_TRUE(has_input(&p.first, "left_x") && has_input(&p.first, "right_x"));
    pair_close(&p);
}

TEST(merge_share_inputs)
{
    epctx_merge_opts opts = {0};
    pair p;
    opts.share_inputs = true;
    CHECK_TRUE(pair_open(&p, chain_model("x", "y", 17), chain_model("x", "z", 17)));
    CHECK_OK(epctx_merge(p.parts, 2, &opts, &p.out, &p.error), p.error);
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
    CHECK_OK(epctx_merge(p.parts, 2, &opts, &p.out, &p.error), p.error);
    CHECK_INT(count_of(epctx_graph_inputs(epctx_model_graph(&p.first))), 1);
    CHECK_INT(count_of(epctx_graph_outputs(epctx_model_graph(&p.first))), 1);
    /* t, its namesake, and y, which is no output any more */
    CHECK_INT(count_of(epctx_graph_values(epctx_model_graph(&p.first))), 3);
    epctx_undo(&p.first, 0);
    opts.keep_outputs = true;
    CHECK_OK(epctx_merge(p.parts, 2, &opts, &p.out, &p.error), p.error);
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
    CHECK_OK(epctx_merge(p.parts, 2, &opts, NULL, &p.error), p.error);
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
    CHECK_OK(epctx_merge(p.parts, 2, &opts, NULL, &p.error), p.error);
    CHECK_INT(epctx_model_opset(&p.first, epctx_str_of("")), 17);
    pair_close(&p);
    /* A compiled model does not use ai.onnx, so its version says nothing. */
    {
        bytes compiled = compiled_model("EpctxNpuExecutionProvider");
        add_opset(&compiled, "", 21);
        CHECK_TRUE(pair_open(&p, compiled, chain_model("x", "y", 13)));
    }
    CHECK_OK(epctx_merge(p.parts, 2, NULL, NULL, &p.error), p.error);
    CHECK_INT(epctx_model_opset(&p.first, epctx_str_of("")), 13);
    pair_close(&p);
    {
        bytes compiled = compiled_model("EpctxNpuExecutionProvider");
        add_opset(&compiled, "", 21);
        CHECK_TRUE(pair_open(&p, chain_model("x", "y", 13), compiled));
    }
    CHECK_OK(epctx_merge(p.parts, 2, NULL, NULL, &p.error), p.error);
    CHECK_INT(epctx_model_opset(&p.first, epctx_str_of("")), 13);
    pair_close(&p);
    /* An import that does not say its version contradicts none. */
    CHECK_TRUE(pair_open(&p, chain_model("x", "y", 0), chain_model("x", "y", 13)));
    CHECK_OK(epctx_merge(p.parts, 2, NULL, NULL, &p.error), p.error);
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
    CHECK_TRUE(epctx_model_metadata(&p.first, epctx_str_of("key"), &value));
    CHECK_TRUE(epctx_str_is(value, "1"));
    CHECK_TRUE(epctx_model_metadata(&p.first, epctx_str_of("new"), &value));
    epctx_undo(&p.first, 0);
    opts.metadata = EPCTX_METADATA_PREFIX;
    CHECK_OK(epctx_merge(p.parts, 2, &opts, NULL, &p.error), p.error);
    CHECK_TRUE(epctx_model_metadata(&p.first, epctx_str_of("m2_key"), &value));
    CHECK_TRUE(epctx_str_is(value, "2"));
    pair_close(&p);
}

/* Whoever has the key with the prefix already keeps its value, whichever model it is from. */
TEST(merge_metadata_prefix_taken)
{
    static const struct {
        const char *first, *second; /* value of m2_key in the models, NULL: absent */
        bool behind;                /* in the second model it comes after "key" */
        const char *m2, *m2_m2;     /* in the result, NULL: absent */
    } cases[] = {
        {"0", NULL, false, "0", "2"}, {"2", NULL, false, "2", NULL}, {NULL, "0", false, "0", "2"},
        {NULL, "2", false, "2", NULL}, {NULL, "0", true, "2", "0"},  {NULL, "2", true, "2", NULL},
        {"0", "2", false, "0", "2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        static const char *const keys[] = {"key", "m2_key", "m2_m2_key"};
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
        if (cases[i].second != NULL && cases[i].behind)
            add_metadata(&b, "m2_key", cases[i].second);
        CHECK_TRUE(pair_open(&p, a, b));
        CHECK_OK(epctx_merge(p.parts, 2, &opts, NULL, &p.error), p.error);
        wants[0] = "1";
        wants[1] = cases[i].m2;
        wants[2] = cases[i].m2_m2;
        for (int k = 0; k < 3; k++) {
            epctx_str value = {NULL, 0};
            bool there = epctx_model_metadata(&p.first, epctx_str_of(keys[k]), &value);
            CHECK(wants[k] == NULL ? !there : there && epctx_str_is(value, wants[k]),
                  "case %zu: '%s' is '%.*s', expected %s", i, keys[k], (int)value.size, value.data,
                  wants[k] == NULL ? "nothing" : wants[k]);
        }
        epctx_undo(&p.first, 0);
        p.parts[1].prefix = "";
        opts.share_inputs = true;
        CHECK_TRUE(epctx_merge(p.parts, 2, &opts, NULL, &p.error) == EPCTX_ERR_EXISTS);
        CHECK(pair_untouched(&p), "case %zu: a refusal changes something", i);
        pair_close(&p);
    }
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
    CHECK_OK(epctx_merge(p.parts, 2, &opts, &p.out, &p.error), p.error);
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
    bytes body = {0}, node;
    char names[64];
    snprintf(names, sizeof names, "%s,own", captured);
    add_node(&body, "Add", "inner", names, "inside");
    add_node(&body, "Relu", "inner2", "inside", "body_out");
    add_floats(&body, "own", weights, 4);
    add_value(&body, GRAPH_OUTPUT, "body_out", EPCTX_ONNX_FLOAT, vector);
    node = new_node("If", "", node_name, input, output);
    add_attr_graph(&node, "then_branch", &body);
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
                  EPCTX_ERR_EXISTS,
                  "value 'b_x' is in an earlier model, too: choose another prefix");
    MERGE_REFUSED(small_model("b_m", "x", "y"), small_model("m", "x", "z"), "b_", NULL,
                  EPCTX_ERR_EXISTS,
                  "node 'b_m' is in an earlier model, too: choose another prefix");
    MERGE_REFUSED(small_model("n", "x", "y"), small_model("n", "p", "q"), "", NULL,
                  EPCTX_ERR_EXISTS,
                  "node 'n' is in an earlier model, too: give the model a prefix");
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
    CHECK_OK(epctx_merge(parts, 3, &opts, NULL, &error), error);
    CHECK_TRUE(has_input(&models[0], "x") && has_input(&models[0], "p"));
    CHECK(!has_input(&models[0], "in"), "the connected input is one of the result");
    for (i = 0; i < 3; i++) {
        epctx_model_close(&models[i]);
        bytes_free(&data[i]);
    }
}

/* An output that is an input of its own model, and that input is shared: nobody has it. */
TEST(connection_of_a_passed_input)
{
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
    CHECK_HAS(error.message, "no model behind that with the output 'x' has the input 'in'");
    CHECK_INT(epctx_merge(parts, SIZE_MAX, &opts, NULL, &error), EPCTX_ERR_ARG);
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
    CHECK_OK(epctx_merge(p.parts, 2, &opts, &p.out, &p.error), p.error);
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
    CHECK_OK(epctx_merge(p.parts, 2, NULL, NULL, &p.error), p.error);
    CHECK_TRUE(has_input(&p.first, "p") && has_input(&p.first, "x"));
    CHECK(!has_input(&p.first, "v"), "the weight is an input of the result");
    CHECK_INT(epctx_model_read(&p.first).ir_version, 8);
    epctx_undo(&p.first, 0);
    p.parts[0].model = &p.second; /* the other way round, with names that change */
    p.parts[1].model = &p.first;
    p.parts[1].prefix = "old_";
    CHECK_OK(epctx_merge(p.parts, 2, NULL, NULL, &p.error), p.error);
    CHECK_TRUE(has_input(&p.second, "old_p"));
    CHECK(!has_input(&p.second, "old_v"), "the weight is an input of the result");
    pair_close(&p);
}

/* -- split -- */

static epctx_value value_named(const char *name)
{
    epctx_value value = {0};
    value.name = epctx_str_of(name);
    value.rank = -1;
    return value;
}

static epctx_status split_at(epctx_model *model, const char *input, const char *output,
                             epctx_error *error)
{
    epctx_value in = value_named(input), out = value_named(output);
    epctx_split_opts opts = {0};
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
    CHECK_OK(split_at(&model, "", "t", &error), error);
    CHECK_INT(count_of(epctx_graph_nodes(epctx_model_graph(&model))), 1);
    CHECK_INT(count_of(epctx_graph_initializers(epctx_model_graph(&model))), 1);
    epctx_undo(&model, 0);
    CHECK_OK(split_at(&model, "t", "", &error), error);
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
    CHECK_OK(split_at(&model, "t", "", &error), error);
    it = epctx_graph_nodes(epctx_model_graph(&model));
    CHECK_TRUE(epctx_next_node(&it, &node));
    CHECK_INT(epctx_epnode_read(&node, &ep, &error), EPCTX_OK);
    CHECK_INT(ep.main_context, 1);
    CHECK_TRUE(epctx_str_is(ep.ep_cache_context, "payload"));
    CHECK_TRUE(epctx_str_is(ep.partition_name, "p1"));
    epctx_model_close(&model);
    bytes_free(&data);
}

/* Splits at lists of values, "NAME:1" for one of a type that is given. */
static epctx_status split_lists(epctx_model *model, const char *inputs, const char *outputs,
                                epctx_combined *out, epctx_error *error)
{
    static char names[400];
    epctx_value values[8];
    epctx_split_opts opts = {0};
    size_t used = 0, count = 0;
    int k;
    for (k = 0; k < 2; k++) {
        const char *rest = k == 0 ? inputs : outputs;
        size_t first = count;
        while (*rest != '\0') {
            size_t size = strcspn(rest, ",:");
            memcpy(names + used, rest, size);
            names[used + size] = '\0';
            values[count] = value_named(names + used);
            used += size + 1;
            rest += size;
            if (*rest == ':') {
                values[count].elem_type = rest[1] - '0';
                rest += 2;
                values[count].rank = 1;
                values[count].dims = vector;
            }
            count++;
            rest += *rest == ',';
        }
        if (k == 0) {
            opts.inputs = values;
            opts.input_count = count;
        } else {
            opts.outputs = values + first;
            opts.output_count = count - first;
        }
    }
    return epctx_split(model, &opts, out, error);
}

/* Two contexts of an EP whose nodes share one, and secondary nodes of EPs that have one each. */
static bytes contexts_model(void)
{
    bytes graph = {0}, model;
    add_epnode(&graph, "a", "x", "t", 1, 1, "EpctxNpuExecutionProvider", "p0", "one", 3);
    add_epnode(&graph, "b", "x", "u", 1, 1, "EpctxNpuExecutionProvider", "p1", "two", 3);
    add_epnode(&graph, "c", "t", "y", 0, 1, "EpctxNpuExecutionProvider", "p2", NULL, 0);
    add_epnode(&graph, "each", "t", "z", 0, 1, "MIGraphXExecutionProvider", "p3", "m", 1);
    add_epnode(&graph, "lone", "t", "alone", 0, 1, "VitisAIExecutionProvider", "p4", NULL, 0);
    add_epnode(&graph, "own", "t", "w", 0, 1, "TensorrtExecutionProvider", "p5", "m", 1);
    add_value(&graph, GRAPH_INPUT, "x", EPCTX_ONNX_FLOAT, vector);
    add_value(&graph, GRAPH_OUTPUT, "y", EPCTX_ONNX_FLOAT, vector);
    add_value(&graph, GRAPH_OUTPUT, "z", EPCTX_ONNX_FLOAT, vector);
    add_value(&graph, GRAPH_VALUE, "t", EPCTX_ONNX_FLOAT, vector);
    model = new_model(&graph);
    add_opset(&model, "com.microsoft", 1);
    return model;
}

/* x and the weight s -> t (no type) -> y; x goes straight through, too. */
static bytes untyped_model(void)
{
    static const float scale[1] = {1};
    bytes graph = {0};
    add_node(&graph, "Mul", "m", "x,w", "t");
    add_node(&graph, "Mul", "n", "t,s", "y");
    add_node(&graph, "Relu", "idle", "", "nothing");
    add_floats(&graph, "w", weights, 4);
    add_floats(&graph, "s", scale, 1);
    add_value(&graph, GRAPH_INPUT, "x", EPCTX_ONNX_FLOAT, vector);
    add_value(&graph, GRAPH_INPUT, "s", EPCTX_ONNX_FLOAT, NULL);
    add_value(&graph, GRAPH_OUTPUT, "y", EPCTX_ONNX_FLOAT, vector);
    add_value(&graph, GRAPH_OUTPUT, "x", EPCTX_ONNX_FLOAT, vector);
    return new_model(&graph);
}

TEST(split_at_lists)
{
    static const struct {
        bool contexts;
        const char *inputs, *outputs;
        epctx_status status;
        const char *text; /* of the error, or an input of the result */
    } cases[] = {
        {true, "t", "y", EPCTX_ERR_UNSUPPORTED, "one of several nodes"},
        {true, "t", "z", EPCTX_OK, "t"},
        {true, "t", "alone", EPCTX_OK, "t"},
        {true, "t", "w", EPCTX_OK, "t"},
        {true, "", "y,u", EPCTX_ERR_UNSUPPORTED, "one of several nodes"},
        {true, "t,t", "z", EPCTX_ERR_ARG, "the input 't' is named twice"},
        {true, "", "z,z", EPCTX_ERR_ARG, "'z' is named as input and output, or twice"},
        {false, "t", "y", EPCTX_ERR_GRAPH, "the model does not say of which type 't' is"},
        {false, "t:1", "y", EPCTX_OK, "t"},
        {false, "x,w", "t", EPCTX_OK, "w"},
        {false, "x,w", "t:1", EPCTX_OK, "w"},
        {false, "x,t:1", "y", EPCTX_ERR_ARG, "the input 'x' does not cut"},
        {false, "", "", EPCTX_OK, "x"},
        {false, "s,x", "y", EPCTX_OK, "s"},
        {false, "", "nothing", EPCTX_OK, NULL},
    };
    size_t i;
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        static uint64_t memory[HUNGRY_BUFFER / 8];
        bytes data = cases[i].contexts ? contexts_model() : untyped_model();
        size_t room = 0, rounds;
        for (rounds = 0; rounds < 5000; rounds++) { /* every allocation fails once */
            epctx_model model;
            epctx_combined out;
            epctx_error error;
            epctx_status status;
            size_t missing;
            CHECK_INT(open_hungry(&model, NULL, &data, memory, room, &error), EPCTX_OK);
            status = split_lists(&model, cases[i].inputs, cases[i].outputs, &out, &error);
            missing = model.arena.missing;
            if (status != EPCTX_ERR_NOMEM) {
                CHECK(status == cases[i].status, "'%s' to '%s': %s: %s", cases[i].inputs,
                      cases[i].outputs, epctx_status_name(status), error.message);
                if (status != EPCTX_OK) CHECK_HAS(error.message, cases[i].text);
                if (status == EPCTX_OK && cases[i].text != NULL)
                    CHECK(has_input(&model, cases[i].text), "'%s' to '%s': '%s' is no input",
                          cases[i].inputs, cases[i].outputs, cases[i].text);
            }
            epctx_model_close(&model);
            if (status != EPCTX_ERR_NOMEM) break;
            CHECK(missing > 0, "a failure without a request");
            room += missing;
        }
        CHECK(rounds < 5000, "'%s' to '%s': it never ends", cases[i].inputs, cases[i].outputs);
        bytes_free(&data);
    }
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
    epctx_wrap_value out = {0};
    epctx_wrap_opts opts = {0};
    epctx_model model;
    epctx_error error;
    epctx_span binary;
    size_t i;
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
    CHECK_OK(epctx_wrap(&model, binary, &opts, NULL, NULL, &error), error);
    epctx_model_close(&model);
}

/* An EP that reads no files gets its binary in the model, or not at all. */
TEST(wrap_for_an_ep_without_files)
{
    epctx_wrap_value out = {0};
    epctx_wrap_opts opts = {0};
    epctx_model model;
    epctx_error error;
    epctx_span binary = {(const uint8_t *)"binary", 6};
    out.value.name = epctx_str_of("y");
    out.value.elem_type = EPCTX_ONNX_FLOAT;
    out.value.rank = 1;
    out.value.dims = vector;
    opts.profile = epctx_profile_find(epctx_str_of("telum"));
    opts.name = "g";
    opts.binary_name = "b.bin";
    opts.outputs = &out;
    opts.output_count = 1;
    CHECK_INT(epctx_wrap(&model, binary, &opts, NULL, NULL, &error), EPCTX_ERR_ARG);
    CHECK_HAS(error.message, "EP 'telum' reads no files");
    opts.embed = true;
    CHECK_OK(epctx_wrap(&model, binary, &opts, NULL, NULL, &error), error);
    epctx_model_close(&model);
}

/* What must be said, and values that are quantized, in any amount of memory. */
TEST(wrap_in_little_memory)
{
    static uint64_t memory[HUNGRY_BUFFER / 8];
    epctx_wrap_value values[3];
    epctx_wrap_opts opts = {0};
    epctx_open_opts open = {0};
    epctx_combined out;
    epctx_model model;
    epctx_error error;
    epctx_span binary;
    epctx_status status = EPCTX_ERR_NOMEM;
    size_t i;
    int wide;
    binary.data = (const uint8_t *)"binary";
    binary.size = 6;
    memset(values, 0, sizeof values);
    for (i = 0; i < 3; i++) {
        values[i].value.name = epctx_str_of(i == 0 ? "x" : i == 1 ? "y" : "z");
        values[i].value.elem_type = i == 2 ? EPCTX_ONNX_FLOAT : EPCTX_ONNX_UINT8;
        values[i].value.rank = 1;
        values[i].value.dims = vector;
        values[i].quantized = i < 2;
        values[i].scale = 0.5f;
        values[i].zero_point = 3;
    }
    opts.inputs = values;
    opts.input_count = 1;
    opts.outputs = values + 1;
    opts.output_count = 2;
    CHECK_INT(epctx_wrap(&model, binary, NULL, NULL, NULL, NULL), EPCTX_ERR_ARG);
    CHECK_INT(epctx_wrap(&model, binary, &opts, NULL, NULL, &error), EPCTX_ERR_ARG);
    opts.profile = epctx_profile_find(epctx_str_of("qnn"));
    CHECK_INT(epctx_wrap(&model, binary, &opts, NULL, NULL, &error), EPCTX_ERR_ARG);
    opts.name = "";
    CHECK_INT(epctx_wrap(&model, binary, &opts, NULL, NULL, &error), EPCTX_ERR_ARG);
    opts.name = "g";
    opts.output_count = 0;
    CHECK_INT(epctx_wrap(&model, binary, &opts, NULL, NULL, &error), EPCTX_ERR_ARG);
    opts.output_count = 2;
    opts.profile = epctx_profile_find(epctx_str_of("generic"));
    opts.binary_name = "b.bin";
    CHECK_INT(epctx_wrap(&model, binary, &opts, NULL, NULL, &error), EPCTX_ERR_ARG);
    CHECK_HAS(error.message, "give the source");
    opts.profile = epctx_profile_find(epctx_str_of("qnn"));
    opts.source = "QNN";
    opts.partition_name = "part";
    opts.max_size = 7;
    values[0].value.name = epctx_str_of("");
    CHECK_INT(epctx_wrap(&model, binary, &opts, NULL, NULL, &error), EPCTX_ERR_ARG);
    CHECK_HAS(error.message, "without a name");
    values[0].value.name = epctx_str_of("x");
    values[0].scale = INFINITY;
    CHECK_INT(epctx_wrap(&model, binary, &opts, NULL, NULL, &error), EPCTX_ERR_ARG);
    values[0].scale = 0.5f;
    open.buffer = memory;
    for (wide = 0; wide < 3; wide++) {
        values[0].value.elem_type = wide == 0 ? EPCTX_ONNX_UINT8 : wide == 1 ? 4 : 5;
        values[1].value.elem_type = wide == 2 ? 5 : EPCTX_ONNX_INT8;
        for (i = 0; i < sizeof memory; i += 16) {
            open.buffer_size = i;
            status = epctx_wrap(&model, binary, &opts, &open, &out, &error);
            if (status == EPCTX_OK) break;
            CHECK(status == EPCTX_ERR_NOMEM, "%s", error.message);
            CHECK(model.root == NULL, "a model that was not made is open");
        }
        CHECK_INT(status, EPCTX_OK);
        CHECK_INT(epctx_model_opset(&model, epctx_str_of("")), wide == 0 ? 13 : 21);
        CHECK_INT(count_of(epctx_graph_nodes(epctx_model_graph(&model))), 3);
        CHECK_UINT(out.step_count, 3);
        CHECK_HAS(out.steps[1].text, "node 'g' of EP 'qnn' around 6 bytes, 1 inputs, 2 outputs");
        CHECK_UINT(out.file_count, 1);
        epctx_model_close(&model);
    }
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
    epctx_repair_opts opts = {0};
    epctx_model model;
    epctx_error error;
    notes all = {0, 0, EPCTX_RULE_COUNT};
    size_t done, left;
    opts.check.no_files = true;
    add_node(&graph, "Relu", "extra", "y", "z");
    put_child(&data, 7, &graph);
    CHECK_INT(epctx_model_open_memory(&model, data.data, data.size, NULL, &error), EPCTX_OK);
    CHECK_INT(epctx_put_metadata(&model, epctx_str_of("a"), epctx_str_of("b"), &error),
              EPCTX_ERR_GRAPH);
    CHECK_OK(epctx_repair(&model, &opts, note, &all, &done, &left, &error), error);
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
    epctx_repair_opts opts = {0};
    epctx_model model;
    epctx_error error;
    notes all = {0, 0, EPCTX_RULE_COUNT};
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
    epctx_repair_opts opts = {0};
    epctx_cursor it;
    epctx_value_view value;
    epctx_model model;
    epctx_error error;
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

/* -- files -- */

/* A tensor with its data in a file, as the last field of a message that holds a tensor there. */
static void put_outside(bytes *owner, uint32_t number, const char *name, const char *location)
{
    bytes holder = {0};
    add_external(&holder, name, 4, location, "0", "16");
    /* add_external wrote field 5; `number` is below 16, so its tag is one byte, too. */
    holder.data[0] = (uint8_t)(number << 3 | 2);
    bytes_add(owner, holder.data, holder.size);
    bytes_free(&holder);
}

/* A compiled model with its context in `context` and tensors in `data` wherever tensors can be:
 * initializers dense and sparse, of a body, attributes of nodes and of functions. */
static bytes outside_model(const char *x, const char *context, const char *data, const char *more,
                           const char *called)
{
    bytes graph = {0}, model, body = {0}, node, function = {0};
    bytes attr = {0}, sparse = {0}, sparse_attr = {0}, opset = {0};
    add_epnode(&graph, "n0", x, "t", 1, 0, "EpctxNpuExecutionProvider", "p0", context,
               strlen(context));
    add_epnode(&graph, "n1", x, "side", 0, 0, "EpctxNpuExecutionProvider", "p1", NULL, 0);
    node = new_node("Use", "mine", "use", "t,w,sp,v", "y");
    put_str(&attr, 1, "value");
    put_outside(&attr, 5, "", data);
    put_int(&attr, 20, EPCTX_ATTR_TENSOR);
    put_child(&node, 5, &attr);
    put_outside(&sparse_attr, 1, "", data);
    put_outside(&sparse_attr, 2, "", data);
    put_str(&attr, 1, "sparse_value");
    put_child(&attr, 22, &sparse_attr);
    put_int(&attr, 20, EPCTX_ATTR_SPARSE_TENSOR);
    put_child(&node, 5, &attr);
    put_child(&graph, 1, &node);
    node = new_node("If", "", "if", "y", "z");
    add_node(&body, "Relu", "inner", "own", "b");
    put_outside(&body, 5, "own", data);
    add_value(&body, GRAPH_OUTPUT, "b", EPCTX_ONNX_FLOAT, vector);
    add_attr_graph(&node, "then_branch", &body);
    put_child(&graph, 1, &node);
    put_outside(&graph, 5, "w", data);
    put_outside(&graph, 5, "v", more);
    put_outside(&sparse, 1, "sp", data);
    put_outside(&sparse, 2, "", data);
    put_int(&sparse, 3, 4);
    put_child(&graph, 15, &sparse);
    add_value(&graph, GRAPH_INPUT, x, EPCTX_ONNX_FLOAT, vector);
    add_value(&graph, GRAPH_OUTPUT, "z", EPCTX_ONNX_FLOAT, vector);
    add_value(&graph, GRAPH_OUTPUT, "side", EPCTX_ONNX_FLOAT, vector);
    add_value(&graph, GRAPH_VALUE, "t", EPCTX_ONNX_FLOAT, vector);
    model = new_model(&graph);
    add_opset(&model, "com.microsoft", 1);
    add_opset(&model, "mine", 1);
    put_str(&function, 1, "Use");
    put_str(&function, 10, "mine");
    node = new_node("Constant", "", "constant", "", "c");
    put_str(&attr, 1, "value");
    put_outside(&attr, 5, "", called);
    put_int(&attr, 20, EPCTX_ATTR_TENSOR);
    put_child(&node, 5, &attr);
    put_child(&function, 7, &node);
    put_int(&opset, 2, 17);
    put_child(&function, 9, &opset);
    put_child(&model, 25, &function);
    return model;
}

/* `called`: what the second model's function has; that of the first has v.bin. */
static void make_outside(const char *called)
{
    bytes a = outside_model("x", "c.bin", "w.bin", "v.bin", "v.bin");
    bytes b = outside_model("x", "c.bin", "w.bin", "w_2.bin", called);
    mkdir(at("sub"), 0700);
    make_file(at("a.onnx"), a.data, a.size);
    make_file(at("sub/b.onnx"), b.data, b.size);
    save_sixteen("c.bin", 1);
    save_sixteen("w.bin", 2);
    save_sixteen("v.bin", 3);
    save_sixteen("sub/c.bin", 4);
    save_sixteen("sub/w.bin", 5);
    save_sixteen("sub/w_2.bin", 3); /* what v.bin has */
    bytes_free(&a);
    bytes_free(&b);
}

static void remove_outside(void)
{
    static const char *const names[] = {"sub/b.onnx", "sub/c.bin", "sub/w.bin", "sub/w_2.bin"};
    size_t i;
    for (i = 0; i < sizeof names / sizeof names[0]; i++)
        remove(at(names[i]));
    rmdir(at("sub"));
    clear_root();
}

/* Functions that name files are the same when the bytes of the files are, whatever their names. */
TEST(merge_functions_with_files)
{
    static const char *const called[] = {"w_2.bin", "w.bin", "c.bin"};
    for (int i = 0; i < 3; i++) {
        epctx_merge_opts opts = {0};
        epctx_model models[2];
        epctx_part parts[2] = {{NULL, NULL}, {NULL, NULL}};
        epctx_error error;
        epctx_status status;
        char path[400];
        CHECK_TRUE(make_root());
        make_outside(called[i]);
        snprintf(path, sizeof path, "%s", at("out.onnx"));
        opts.output_path = path;
        CHECK_OK(epctx_model_open_file(&models[0], at("a.onnx"), NULL, &error), error);
        CHECK_OK(epctx_model_open_file(&models[1], at("sub/b.onnx"), NULL, &error), error);
        parts[0].model = &models[0];
        parts[1].model = &models[1];
        status = epctx_merge(parts, 2, &opts, NULL, &error);
        CHECK(status == (i == 0 ? EPCTX_OK : EPCTX_ERR_GRAPH), "'%s': %s", called[i],
              error.message);
        if (i > 0) CHECK_HAS(error.message, "function 'Use' of domain 'mine' is another one");
        epctx_model_close(&models[0]);
        epctx_model_close(&models[1]);
        remove_outside();
        rmdir(root);
    }
}

/* What the last merge wrote as files: "name=first byte " for each. */
static const char *files_of(const epctx_combined *out)
{
    static char text[400];
    size_t i;
    text[0] = '\0';
    for (i = 0; i < out->file_count; i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s=%d ", out->files[i].name,
                 out->files[i].parts[0].data[0]);
    }
    return text;
}

/* Both models name c.bin and w.bin and mean different bytes; the second has what the first calls
 * v.bin under another name. */
TEST(merge_with_files)
{
    static uint64_t memory[2][HUNGRY_BUFFER / 8];
    static epctx_error error;
    epctx_merge_opts opts = {0};
    epctx_part parts[2] = {{NULL, NULL}, {NULL, NULL}};
    char path[400];
    int hungry;
    CHECK_TRUE(make_root());
    make_outside("w_2.bin");
    snprintf(path, sizeof path, "%s", at("out.onnx"));
    opts.output_path = path;
    for (hungry = 0; hungry < 2; hungry++) {
        size_t room = 0, rounds;
        for (rounds = 0; rounds < 20000; rounds++) {
            epctx_model models[2];
            epctx_combined out;
            epctx_status status;
            size_t missing;
            char found[400];
            bytes result;
            CHECK_OK(open_hungry(&models[0], at("a.onnx"), NULL, memory[0],
                                 hungry ? SIZE_MAX : room, &error),
                     error);
            CHECK_OK(open_hungry(&models[1], at("sub/b.onnx"), NULL, memory[1],
                                 hungry ? room : SIZE_MAX, &error),
                     error);
            parts[0].model = &models[0];
            parts[1].model = &models[1];
            status = epctx_merge(parts, 2, &opts, &out, &error);
            missing = models[hungry].arena.missing;
            if (status == EPCTX_OK) {
                snprintf(found, sizeof found, "%s", files_of(&out));
                CHECK_STR(found, "c_2.bin=4 w_2.bin=5 ");
                result = written(&models[0]);
                CHECK_TRUE(bytes_contain(&result, "c_2.bin", 7));
                CHECK_TRUE(bytes_contain(&result, "w_2.bin", 7));
                bytes_free(&result);
            } else {
                CHECK(status == EPCTX_ERR_NOMEM, "%s", error.message);
            }
            epctx_model_close(&models[0]);
            epctx_model_close(&models[1]);
            if (status == EPCTX_OK) break;
            CHECK(missing > 0, "a failure without a request");
            room += missing;
        }
        CHECK(rounds > 50 && rounds < 20000, "%zu rounds", rounds);
    }
    remove_outside();
    rmdir(root);
}

/* Names that are wrong, of files that are there. */
static void make_misnamed(void)
{
    static char deep[6000];
    bytes graph = {0}, model, attr = {0}, node;
    size_t i;
    for (i = 0; i < sizeof deep - 1; i++)
        deep[i] = i % 2 == 0 ? 'd' : '/';
    mkdir(at("sub"), 0700);
    save_sixteen("ctx.bin", 1);
    save_sixteen("sub/two.bin", 2);
    save_sixteen("three.bin", 3);
    save_sixteen("w.bin", 4);
    add_epnode(&graph, "a", "x", "a", 1, 1, NULL, "p0", "ctx.bin", 7); /* embed_mode is wrong */
    add_epnode(&graph, "b", "x", "b", 1, 0, NULL, "p1", "C:\\build\\sub\\two.bin", 20);
    add_epnode(&graph, "c", "x", "c", 1, 0, NULL, "p2", "/build//three.bin", 17);
    add_epnode(&graph, "d", "x", "d", 1, 0, NULL, "p3", "gone/three.bin", 14);
    add_epnode(&graph, "e", "x", "e", 1, 0, NULL, "p4", deep, sizeof deep - 1);
    add_epnode(&graph, "f", "x", "f", 1, 0, NULL, "p5", "nowhere.bin", 11);
    node = new_node("EPContext", "com.microsoft", "g", "x", "g");
    add_attr_str(&node, "onnx_model_filename", "C:\\build/old\\m.onnx", 19);
    add_attr_str(&node, "ep_cache_context", "", 0);
    put_child(&graph, 1, &node);
    node = new_node("EPContext", "com.microsoft", "", "x", "h"); /* has a type that is wrong */
    put_str(&attr, 1, "embed_mode");
    put_str(&attr, 4, "no");
    put_int(&attr, 20, EPCTX_ATTR_STRING);
    put_child(&node, 5, &attr);
    put_child(&graph, 1, &node);
    add_epnode(&graph, "", "x", "i", 0, 1, NULL, NULL, NULL, 0);
    put_outside(&graph, 5, "w", "old/w.bin");
    add_node(&graph, "Use", "use", "w", "y");
    add_value(&graph, GRAPH_INPUT, "x", EPCTX_ONNX_FLOAT, vector);
    add_value(&graph, GRAPH_OUTPUT, "y", EPCTX_ONNX_FLOAT, vector);
    model = new_model(&graph);
    add_opset(&model, "com.microsoft", 1);
    save_bytes("m.onnx", &model);
}

/* "name embed_mode context" of every EPContext node that can be read. */
static const char *contexts_of(const epctx_model *model)
{
    static char text[12000];
    epctx_walk walk;
    epctx_node_view node;
    epctx_epnode ep;
    text[0] = '\0';
    epctx_walk_begin(&walk, model);
    while (epctx_walk_epnode(&walk, &node)) {
        size_t used = strlen(text);
        if (epctx_epnode_read(&node, &ep, NULL) == EPCTX_OK)
            snprintf(text + used, sizeof text - used, "%.*s %d %.*s; ", (int)ep.name.size,
                     ep.name.data, (int)ep.embed_mode, (int)ep.ep_cache_context.size,
                     ep.ep_cache_context.data);
    }
    return text;
}

TEST(repair_of_names_of_files)
{
    static uint64_t memory[HUNGRY_BUFFER / 8];
    static epctx_profile strict;
    static epctx_error error;
    const epctx_profile *profiles[3] = {NULL, NULL, NULL};
    epctx_rule rules[EPCTX_RULE_COUNT];
    epctx_repair_opts opts = {0};
    notes all = {0, 0, EPCTX_RULE_COUNT};
    size_t i, room, done, left;
    int turn;
    CHECK_TRUE(make_root());
    make_misnamed();
    strict = *epctx_profile_find(epctx_str_of("npu"));
    strict.required = (1u << EPCTX_EP_ATTR_COUNT) - 1;
    profiles[1] = epctx_profile_find(epctx_str_of("tensorrt"));
    profiles[2] = &strict;
    for (i = 0; i < EPCTX_RULE_COUNT; i++)
        rules[i] = (epctx_rule)i;
    for (turn = 0; turn < 4; turn++) {
        opts.check.profile = profiles[turn % 3];
        opts.rules = rules;
        opts.rule_count = turn < 2 ? EPCTX_RULE_COUNT : turn == 2 ? 0 : 1;
        for (room = 0;;) { /* every allocation fails once */
            epctx_model model;
            epctx_status status;
            size_t missing;
            CHECK_OK(open_hungry(&model, at("m.onnx"), NULL, memory, room, &error), error);
            status = epctx_repair(&model, &opts, note, &all, &done, &left, &error);
            missing = model.arena.missing;
            if (status == EPCTX_OK && turn < 3) {
                CHECK_HAS(contexts_of(&model), "a 0 ctx.bin; b 0 sub/two.bin; c 0 three.bin; "
                                               "d 0 three.bin; e 0 d/d/");
                CHECK_HAS(contexts_of(&model), "f 0 nowhere.bin; ");
            }
            epctx_model_close(&model);
            if (status == EPCTX_OK) break;
            CHECK(status == EPCTX_ERR_NOMEM, "%s", error.message);
            CHECK(missing > 0, "a failure without a request");
            room += missing;
        }
        CHECK(turn == 3 || (done > 5 && left > 0), "%zu repaired, %zu left", done, left);
    }
    remove(at("sub/two.bin"));
    rmdir(at("sub"));
    clear_root();
    rmdir(root);
}

/* Initializers that only bodies read come back in the order of the bodies, whatever the addresses
 * are. */
TEST(repair_order)
{
    bytes graph = {0}, source = {0}, body = {0}, node, a, b;
    epctx_repair_opts opts = {0};
    epctx_model model, before;
    epctx_tensor_view tensor;
    epctx_cursor it;
    char name[16];
    int i;
    for (i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "w%d", i * 7 % 40);
        add_node(&body, "Relu", "", name, "");
        add_floats(&source, name, weights, 4);
    }
    add_value(&body, GRAPH_OUTPUT, "w0", EPCTX_ONNX_FLOAT, vector);
    node = new_node("If", "", "if", "x", "y");
    add_attr_graph(&node, "then_branch", &body);
    put_child(&graph, 1, &node);
    add_value(&graph, GRAPH_INPUT, "x", EPCTX_ONNX_BOOL, NULL);
    add_value(&graph, GRAPH_OUTPUT, "y", EPCTX_ONNX_FLOAT, vector);
    a = new_model(&graph);
    b = new_model(&source);
    CHECK_INT(epctx_model_open_memory(&before, b.data, b.size, NULL, NULL), EPCTX_OK);
    CHECK_INT(epctx_model_open_memory(&model, a.data, a.size, NULL, NULL), EPCTX_OK);
    opts.source = &before;
    opts.check.no_files = true;
    CHECK_INT(epctx_repair(&model, &opts, NULL, NULL, NULL, NULL, NULL), EPCTX_OK);
    it = epctx_graph_initializers(epctx_model_graph(&model));
    for (i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "w%d", i * 7 % 40);
        CHECK_TRUE(epctx_next_tensor(&it, &tensor));
        CHECK(epctx_str_is(tensor.name, name), "initializer %d is '%.*s', expected '%s'", i,
              (int)tensor.name.size, tensor.name.data, name);
    }
    epctx_model_close(&model);
    epctx_model_close(&before);
    bytes_free(&a);
    bytes_free(&b);
}

/* Thousands of nodes of one name take memory in proportion. */
TEST(repair_of_many_names)
{
    enum { MANY = 5000 };
    bytes graph = {0}, data;
    epctx_repair_opts opts = {0};
    epctx_rule rule = EPCTX_RULE_DOUBLED_NODE, none = (epctx_rule)EPCTX_RULE_COUNT;
    epctx_model model;
    epctx_error error;
    size_t done, i;
    for (i = 0; i < MANY; i++)
        add_node(&graph, "Relu", "same", "x", "");
    data = new_model(&graph);
    CHECK_INT(epctx_model_open_memory(&model, data.data, data.size, NULL, &error), EPCTX_OK);
    opts.rules = &none;
    opts.rule_count = 1;
    CHECK_INT(epctx_repair(&model, &opts, NULL, NULL, NULL, NULL, &error), EPCTX_ERR_ARG);
    opts.rules = &rule;
    opts.check.no_files = true;
    CHECK_OK(epctx_repair(&model, &opts, NULL, NULL, &done, NULL, &error), error);
    CHECK_UINT(done, MANY - 1);
    CHECK(model.arena.used < MANY * 2000u, "%zu bytes for %d names", model.arena.used, MANY);
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
    epctx_merge_opts merge_opts = {0};
    epctx_repair_opts repair_opts = {0};
    epctx_part parts[2];
    epctx_combined out;
    epctx_rule rules[EPCTX_RULE_COUNT];
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
    epctx_open_opts opts = {0};
    epctx_model first, second;
    epctx_status status;
    const char *problem = NULL;
    size_t fail_at = memory->fail_at;
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
    for (which = 0; which < 2 * OPERATIONS; which++) {
        counting memory = {0};
        const char *problem;
        memory.once = which >= OPERATIONS;
        do {
            memory.fail_at++;
            problem = operate_on(which % OPERATIONS, &a, &b, &memory);
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

/* Functions are compared to the last byte, however long they are. */
TEST(merge_equal_functions_of_any_size)
{
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
        CHECK_UINT(count_of(epctx_model_functions(&p.first)), 1);
        pair_close(&p);
    }
    free(text);
}

/* Something of everything: x -> compiled -> t -> Called -> If -> y, a second compiled node beside
 * them, functions, a sparse and a plain initializer, annotations, metadata, training. */
static bytes rich_model(const char *x, const char *t, const char *y, const char *source,
                        int64_t ir_version, bool training, size_t fillers)
{
    bytes graph = {0}, model = {0}, node, info = {0}, algorithm = {0};
    char names[64], side[64];
    size_t i;
    snprintf(names, sizeof names, "%s,w", t);
    snprintf(side, sizeof side, "%s_side", t);
    put_str(&graph, 2, "rich");
    for (i = 0; i < fillers; i++) {
        char filler[32];
        snprintf(filler, sizeof filler, "%s%zu", i % 2 == 0 ? "in" : "init", i);
        if (i % 2 == 0)
            add_value(&graph, GRAPH_INPUT, filler, EPCTX_ONNX_FLOAT, vector);
        else
            add_floats(&graph, filler, weights, 4);
        add_node(&graph, "Relu", filler, filler, "");
    }
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
    add_scale(&graph, t, "scale");
    add_scale(&graph, "u", "scale");
    put_int(&model, 1, ir_version);
    add_opset(&model, "", 17);
    add_opset(&model, "mine", 1);
    add_opset(&model, "com.microsoft", 1);
    add_opset(&model, source, 1);
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
    add_scale(&graph, "gone", "w");
    add_scale(&graph, "s", "gone");
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
    bytes graph = {0}, model = {0}, tensor = {0};
    add_node(&graph, "Relu", "n", "x", "r2");
    add_floats(&graph, "lost", weights, 4);
    put_int(&tensor, 1, 4);
    put_int(&tensor, 2, EPCTX_ONNX_FLOAT);
    put_data(&tensor, 4, weights, sizeof weights); /* float_data: takes memory to read */
    put_str(&tensor, 8, "far");
    put_child(&graph, 5, &tensor);
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
        if (open_hungry(&models[0], NULL, a, memory[0], second ? SIZE_MAX : room, &error) !=
                EPCTX_OK ||
            open_hungry(&models[1], NULL, b, memory[1], second ? room : SIZE_MAX, &error) !=
                EPCTX_OK)
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

/* A file that nobody needs may be missing. */
TEST(merge_without_what_nobody_needs)
{
    bytes model[2];
    epctx_model models[2];
    epctx_merge_opts opts = {0};
    epctx_part parts[2] = {{NULL, NULL}, {NULL, NULL}};
    epctx_combined out;
    epctx_error error;
    char path[400];
    CHECK_TRUE(make_root());
    for (int i = 0; i < 2; i++) {
        bytes graph = {0}, node = new_node("EPContext", "com.microsoft", i > 0 ? "b" : "a",
                                           i > 0 ? "p" : "x", i > 0 ? "q" : "y");
        add_attr_int(&node, "main_context", 1);
        add_attr_int(&node, "embed_mode", 1);
        add_attr_str(&node, "ep_cache_context", "payload", 7);
        add_attr_str(&node, "source", "QNN", 3);
        add_attr_str(&node, "onnx_model_filename", "gone.onnx", 9);
        put_child(&graph, 1, &node);
        add_value(&graph, GRAPH_INPUT, i > 0 ? "p" : "x", EPCTX_ONNX_FLOAT, NULL);
        add_value(&graph, GRAPH_OUTPUT, i > 0 ? "q" : "y", EPCTX_ONNX_FLOAT, NULL);
        model[i] = new_model(&graph);
        add_opset(&model[i], "com.microsoft", 1);
        make_file(at(i > 0 ? "b.onnx" : "a.onnx"), model[i].data, model[i].size);
        CHECK_INT(epctx_model_open_file(&models[i], at(i > 0 ? "b.onnx" : "a.onnx"), NULL, &error),
                  EPCTX_OK);
        parts[i].model = &models[i];
    }
    snprintf(path, sizeof path, "%s", at("out.onnx"));
    opts.output_path = path;
    CHECK_OK(epctx_merge(parts, 2, &opts, &out, &error), error);
    CHECK_UINT(out.file_count, 0);
    for (int i = 0; i < 2; i++) {
        epctx_model_close(&models[i]);
        bytes_free(&model[i]);
    }
    remove_root();
}

/* With more and more names, so that tables grow at every place. */
TEST(every_allocation_fails)
{
    static const struct {
        int which, a, b;
    } cases[] = {{MERGE, 0, 1},        {CHAIN, 0, 2},     {CONNECT, 0, 3}, {SPLIT_BEHIND, 0, 1},
                 {SPLIT_BEFORE, 0, 1}, {SPLIT_ALL, 0, 1}, {REPAIR, 4, 5}};
    bytes models[6];
    size_t fillers, i;
    for (fillers = 0; fillers < 12; fillers += 6) {
        models[0] = rich_model("x", "t", "y", "EpctxNpuExecutionProvider", 8, true, fillers);
        models[1] = rich_model("x", "t", "y", "Unknown", 3, false, fillers / 2);
        models[2] = rich_model("y", "t2", "z", "OpenVINOExecutionProvider", 8, false, 11 - fillers);
        models[3] = rich_model("y", "t2", "z", "Unknown", 8, false, fillers);
        models[4] = broken_model();
        models[5] = source_model();
        for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            const bytes *a = &models[cases[i].a], *b = &models[cases[i].b];
            const char *problem;
            if (cases[i].which == REPAIR && fillers > 0) continue;
            problem = starve(cases[i].which, a, b, false);
            CHECK(problem == NULL, "operation %d: %s", cases[i].which, problem);
            problem = starve(cases[i].which, a, b, true);
            CHECK(problem == NULL, "operation %d, second model: %s", cases[i].which, problem);
        }
        for (i = 0; i < 6; i++)
            bytes_free(&models[i]);
    }
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
        counting memory = {0};
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
    RUN(merge_metadata_prefix_taken);
    RUN(merge_keys);
    RUN(chain_keeps_names_of_binaries);
    RUN(merge_breaks_a_rule);
    RUN(merge_the_same_model);
    RUN(merge_refusals);
    RUN(connections);
    RUN(connection_of_a_passed_input);
    RUN(types_of_connections);
    RUN(merge_names_are_new);
    RUN(merge_of_an_old_model);
    RUN(split);
    RUN(split_refusals);
    RUN(split_hands_the_context_over);
    RUN(split_at_lists);
    RUN(wrap_refusals);
    RUN(wrap_for_an_ep_without_files);
    RUN(wrap_in_little_memory);
    RUN(repair_and_undo);
    RUN(repair_by_rule);
    RUN(repair_type_from_reader);
    RUN(merge_with_files);
    RUN(merge_functions_with_files);
    RUN(repair_of_names_of_files);
    RUN(repair_order);
    RUN(repair_of_many_names);
    RUN(allocator_fails);
    RUN(merge_equal_functions_of_any_size);
    RUN(merge_without_what_nobody_needs);
    RUN(every_allocation_fails);
    RUN(damaged_models);
    return test_end();
}
