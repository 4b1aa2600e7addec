/* Models for the operations that make models of models (merge, split, wrap, repair), and a pair of
 * open ones. The program defines _XOPEN_SOURCE 700 first. */
#ifndef EPCTX_TEST_COMBINE_H
#define EPCTX_TEST_COMBINE_H

#include "examples/epctx/ops/merge.h"
#include "examples/epctx/ops/split.h"
#include "edit.h"

static const char npu[] = "EpctxNpuExecutionProvider";
static const char ov[] = "OpenVINOExecutionProvider";

/* -- models -- */

/* x -> one node -> y */
TEST_UNUSED static bytes small_model(const char *node, const char *x, const char *y) {
    bytes graph = {0};
    add_node(&graph, "Relu", node, x, y);
    add_ends(&graph, x, y);
    return new_model(&graph);
}

/* x -> Add w -> t -> Relu -> y, with value_info for t. */
TEST_UNUSED static bytes chain_model(const char *x, const char *y, int64_t opset) {
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
TEST_UNUSED static bytes compiled_model(const char *source) {
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

/* A node with a graph inside that reads `captured` and an initializer of its own. */
TEST_UNUSED static void add_own_body(bytes *graph, const char *node_name, const char *input,
                                     const char *output, const char *captured) {
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

TEST_UNUSED static void add_sparse_floats(bytes *graph, const char *name) {
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

/* A tensor with its data in a file, as the last field of a message that holds a tensor there. */
TEST_UNUSED static void put_outside(bytes *owner, uint32_t number, const char *name,
                                    const char *location) {
    bytes holder = {0};
    add_external(&holder, name, 4, location, "0", "16");
    /* add_external wrote field 5; `number` is below 16, so its tag is one byte, too. */
    holder.data[0] = (uint8_t)(number << 3 | 2);
    bytes_add(owner, holder.data, holder.size);
    bytes_free(&holder);
}

/* -- two models and what becomes of them -- */

typedef struct pair {
    bytes data[2]; /* as they were */
    epctx_model models[2];
    epctx_part parts[2];
    epctx_merge_opts opts;
    epctx_connection link;
    epctx_combined out;
    epctx_error error;
} pair;

TEST_UNUSED static void pair_begin(pair *p) {
    memset(p, 0, sizeof *p);
    for (int i = 0; i < 2; i++) p->parts[i].model = &p->models[i];
}

/* Takes the bytes over. */
TEST_UNUSED static bool pair_open(pair *p, bytes a, bytes b) {
    bool good = true;
    pair_begin(p);
    p->data[0] = a;
    p->data[1] = b;
    for (int i = 0; i < 2; i++)
        good = good && epctx_model_open_memory(&p->models[i], p->data[i].data, p->data[i].size,
                                               NULL, &p->error) == EPCTX_OK;
    return good;
}

TEST_UNUSED static bool pair_files(pair *p, const char *a, const char *b) {
    bool good;
    pair_begin(p);
    good = epctx_model_open_file(&p->models[0], a, NULL, &p->error) == EPCTX_OK &&
           epctx_model_open_file(&p->models[1], b, NULL, &p->error) == EPCTX_OK;
    for (int i = 0; i < 2 && good; i++) p->data[i] = written(&p->models[i]);
    return good;
}

TEST_UNUSED static epctx_status pair_merge(pair *p) {
    return epctx_merge(p->parts, 2, &p->opts, &p->out, &p->error);
}

TEST_UNUSED static void pair_link(pair *p, const char *output, const char *input) {
    p->link.from = p->link.to = EPCTX_ANY_PART;
    p->link.output = epctx_str_of(output);
    p->link.input = epctx_str_of(input);
    p->opts.connections = &p->link;
    p->opts.connection_count = 1;
}

TEST_UNUSED static bool pair_untouched(pair *p) {
    return untouched(&p->models[0], &p->data[0]) && untouched(&p->models[1], &p->data[1]);
}

TEST_UNUSED static void pair_close(pair *p) {
    for (int i = 0; i < 2; i++) {
        epctx_model_close(&p->models[i]);
        bytes_free(&p->data[i]);
    }
}

#define MERGES(p) CHECK(pair_merge(p) == EPCTX_OK, "%s", (p)->error.message)
#define REFUSED(p, wanted, text) \
    CHECK_REFUSED(pair_merge(p), wanted, (p)->error, text, pair_untouched(p))

/* -- what is in a model -- */

TEST_UNUSED static size_t count_of(epctx_cursor it) {
    epctx_field field;
    size_t count = 0;
    while (epctx_next_field(&it, &field)) count++;
    return count;
}

TEST_UNUSED static bool has_input(const epctx_model *model, const char *name) {
    epctx_cursor it = epctx_view_graph_inputs(epctx_model_graph(model));
    epctx_value_view value;
    while (epctx_next_value(&it, &value))
        if (epctx_str_is(value.name, name)) return true;
    return false;
}

/* "op:name:inputs>outputs " of every node of the main graph. */
TEST_UNUSED static const char *nodes_of(const epctx_model *model) {
    static char text[2000];
    epctx_cursor it = epctx_view_graph_nodes(epctx_model_graph(model));
    epctx_node_view node;
    size_t used = 0;
    text[0] = '\0';
    while (epctx_next_node(&it, &node)) {
        epctx_cursor names = epctx_view_node_inputs(&node);
        epctx_str name;
        used +=
            (size_t)snprintf(text + used, sizeof text - used, "%.*s:%.*s:", (int)node.op_type.size,
                             node.op_type.data, (int)node.name.size, node.name.data);
        while (epctx_next_str(&names, &name))
            used += (size_t)snprintf(text + used, sizeof text - used, "%.*s", (int)name.size,
                                     name.data);
        used += (size_t)snprintf(text + used, sizeof text - used, ">");
        names = epctx_view_node_outputs(&node);
        while (epctx_next_str(&names, &name))
            used += (size_t)snprintf(text + used, sizeof text - used, "%.*s", (int)name.size,
                                     name.data);
        used += (size_t)snprintf(text + used, sizeof text - used, " ");
    }
    return text;
}

/* -- a split -- */

TEST_UNUSED static epctx_value value_named(const char *name) {
    epctx_value value = {0};
    value.name = epctx_str_of(name);
    value.rank = -1;
    return value;
}

TEST_UNUSED static epctx_status split_at(epctx_model *model, const char *input, const char *output,
                                         epctx_error *error) {
    epctx_value in = value_named(input), out = value_named(output);
    epctx_split_opts opts = {0};
    opts.inputs = &in;
    opts.input_count = input[0] != '\0';
    opts.outputs = &out;
    opts.output_count = output[0] != '\0';
    return epctx_split(model, &opts, NULL, error);
}

/* "name:partition:main_context:embed_mode:context " of every EPContext node of the main graph; of
 * an embedded context only how many bytes it has, "-" for none. */
TEST_UNUSED static const char *sharing_of(const epctx_model *model) {
    static char text[2000];
    epctx_text out = epctx_text_of(text, sizeof text);
    epctx_cursor it = epctx_view_graph_nodes(epctx_model_graph(model));
    epctx_node_view node;
    while (epctx_next_node(&it, &node)) {
        epctx_attr_view attr;
        epctx_epnode ep;
        if (!epctx_view_is_epnode(&node) || epctx_view_read_epnode(&node, &ep, NULL) != EPCTX_OK)
            continue;
        epctx_text_put_format(&out, "%S:%S:%d:%d:", &node.name, &ep.partition_name, ep.main_context,
                              ep.embed_mode);
        if (!epctx_view_node_find_attr(&node, "ep_cache_context", &attr))
            epctx_text_put_char(&out, '-');
        else if (ep.embed_mode == 0)
            epctx_text_put(&out, ep.ep_cache_context);
        else if (ep.ep_cache_context.size > 0)
            epctx_text_put_number(&out, ep.ep_cache_context.size);
        epctx_text_put_char(&out, ' ');
    }
    return text;
}

#endif
