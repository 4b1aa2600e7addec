/* >>edit: changes, undoing them, and writing. */
#define _POSIX_C_SOURCE 200809L
#include "examples/epctx/ops/dims.h"
#include "examples/epctx/ops/views.h"
#include "examples/epctx/ops/rename.h"

#include "build.h"
#include "rich.h"
#include "starve.h"
#include "temp.h"
#include "test.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const epctx_view no_view = {NULL, NULL, 0};

/* Fields that nobody knows, in every form that the grammar has. */
static void add_unknown(bytes *b) {
    put_tag(b, 1000, 0);
    put_varint_wide(b, 5, 9);
    put_str(b, 1001, "unknown text");
    put_tag(b, 1002, 3);
    put_str(b, 1, "in a group");
    put_tag(b, 1002, 4);
    put_tag(b, 1003, 1);
    bytes_add(b, "8 bytes.", 8);
    put_tag(b, 1004, 5);
    bytes_add(b, "four", 4);
}

/* A child whose length takes `width` bytes. */
static void put_child_wide(bytes *b, uint32_t number, bytes *child, size_t width) {
    put_tag(b, number, 2);
    put_varint_wide(b, child->size, width);
    bytes_add(b, child->data, child->size);
    bytes_free(child);
}

/* A node with attributes, one of them a graph. */
static void add_first(bytes *graph) {
    bytes node = new_node("Relu", "", "first", "x", "a"), body = {0}, attr = {0};
    add_attr_int(&node, "number", 7);
    put_str(&attr, 1, "text");
    put_str(&attr, 13, "doc of an attribute");
    put_tag(&attr, 4, 2);
    put_varint_wide(&attr, 5, 4);
    bytes_add(&attr, "value", 5);
    put_int(&attr, 20, EPCTX_ATTR_STRING);
    put_child(&node, 5, &attr);
    add_node(&body, "Relu", "inner", "x", "t");
    put_str(&body, 2, "body");
    add_attr_graph(&node, "graph", &body);
    put_child(graph, 1, &node);
}

/* Three nodes in a row, with everything in the model that an editor could lose. */
static bytes sample(void) {
    static const int64_t dims[] = {4, -1};
    static const float weights[] = {1, 2, 3, 4};
    bytes graph = {0}, model = {0}, node, function = {0};
    put_str(&model, 6, "doc of the model");
    add_unknown(&model);
    add_first(&graph);
    node = new_node("Add", "", "second", "a,w", "b");
    add_unknown(&node);
    put_str(&node, 6, "doc of a node");
    put_child_wide(&graph, 1, &node, 4);
    add_unknown(&graph);
    add_node(&graph, "Tanh", "third", "b", "y");
    put_str(&graph, 2, "main");
    add_value(&graph, GRAPH_INPUT, "x", EPCTX_ONNX_FLOAT, dims);
    add_value(&graph, GRAPH_OUTPUT, "y", EPCTX_ONNX_FLOAT, dims);
    add_value(&graph, GRAPH_VALUE, "a", EPCTX_ONNX_FLOAT, dims);
    add_floats(&graph, "w", weights, 4);
    put_str(&graph, 10, "doc of the graph");
    put_child_wide(&model, 7, &graph, 5);
    put_tag(&model, 1, 0);
    put_varint_wide(&model, 8, 3); /* ir_version, longer than needed */
    put_str(&model, 2, "producer");
    add_metadata(&model, "key", "old");
    put_str(&function, 1, "my_function");
    put_child(&model, 25, &function);
    add_opset(&model, "", 17);
    return model;
}

static bool open_sample(epctx_model *model, bytes *b) {
    *b = sample();
    return epctx_model_open_memory(model, b->data, b->size, NULL, NULL) == EPCTX_OK;
}

static epctx_node_view node_at(const epctx_model *model, size_t index) {
    epctx_cursor it = epctx_view_graph_nodes(epctx_model_graph(model));
    epctx_node_view node = {0};
    for (size_t i = 0; i <= index; i++)
        if (!epctx_next_node(&it, &node)) memset(&node, 0, sizeof node);
    return node;
}

/* "name,name,..." of the main graph's nodes. */
static const char *node_names(const epctx_model *model) {
    static char text[400];
    epctx_cursor it = epctx_view_graph_nodes(epctx_model_graph(model));
    epctx_node_view node;
    size_t used = 0;
    text[0] = '\0';
    while (epctx_next_node(&it, &node) && used < sizeof text)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%.*s", used > 0 ? "," : "",
                                 (int)node.name.size, node.name.data);
    return text;
}

static epctx_status put_simple(epctx_model *model, const char *name, epctx_view after) {
    static const epctx_str in = {"a", 1}, out = {"q", 1};
    static epctx_attr attrs[6];
    static const int64_t ints[] = {1, -1};
    static const float floats[] = {0.5f};
    static const epctx_str strings[] = {{"s", 1}, {"", 0}};
    epctx_node node = {0};
    memset(attrs, 0, sizeof attrs);
    attrs[0].name = epctx_str_of("i");
    attrs[0].type = EPCTX_ATTR_INT;
    attrs[0].i = -7;
    attrs[1].name = epctx_str_of("f");
    attrs[1].type = EPCTX_ATTR_FLOAT;
    attrs[1].f = 1.5f;
    attrs[2].name = epctx_str_of("s");
    attrs[2].type = EPCTX_ATTR_STRING;
    attrs[2].s = epctx_str_of("text");
    attrs[3].name = epctx_str_of("is");
    attrs[3].type = EPCTX_ATTR_INTS;
    attrs[3].ints = ints;
    attrs[3].count = 2;
    attrs[4].name = epctx_str_of("fs");
    attrs[4].type = EPCTX_ATTR_FLOATS;
    attrs[4].floats = floats;
    attrs[4].count = 1;
    attrs[5].name = epctx_str_of("ss");
    attrs[5].type = EPCTX_ATTR_STRINGS;
    attrs[5].strings = strings;
    attrs[5].count = 2;
    node.name = epctx_str_of(name);
    node.op_type = epctx_str_of("Made");
    node.inputs = &in;
    node.input_count = 1;
    node.outputs = &out;
    node.output_count = 1;
    node.attrs = attrs;
    node.attr_count = 6;
    return epctx_edit_put_node(model, no_view, &node, after, NULL, NULL);
}

static bool writes(epctx_model *model, const bytes *want) {
    bytes out = written(model);
    bool same = bytes_equal(&out, want->data, want->size) && epctx_model_size(model) == want->size;
    bytes_free(&out);
    return same;
}

TEST(untouched) {
    epctx_model model;
    bytes b;
    CHECK_TRUE(open_sample(&model, &b));
    CHECK_TRUE(writes(&model, &b));
    CHECK_INT(ops_rebuild(&model, NULL), EPCTX_OK);
    CHECK_TRUE(writes(&model, &b));
    CHECK_INT(ops_rebuild(&model, NULL), EPCTX_OK);
    CHECK_TRUE(writes(&model, &b));
    CHECK_STR(node_names(&model), "first,second,third");
    epctx_model_close(&model);
    bytes_free(&b);
}

/* The node inside the first one. */
static epctx_node_view inner_node(const epctx_model *model) {
    epctx_node_view node = node_at(model, 0), inner;
    epctx_cursor it = epctx_view_node_attrs(&node);
    epctx_attr_view attr;
    memset(&inner, 0, sizeof inner);
    while (epctx_next_attr(&it, &attr))
        if (attr.type == EPCTX_ATTR_GRAPH) {
            epctx_cursor nodes = epctx_view_graph_nodes(epctx_view_as_graph(attr.g));
            (void)epctx_next_node(&nodes, &inner);
        }
    return inner;
}

static epctx_status set_attr(epctx_model *model, epctx_view node, const char *name,
                             epctx_attr_type type) {
    static const int64_t dims[] = {2, 1};
    static const float data[] = {1, 2};
    epctx_tensor tensor = {0};
    epctx_value value = {0};
    epctx_graph graph = {0};
    epctx_node inside = {0};
    epctx_attr attr = {0};
    tensor.elem_type = EPCTX_ONNX_FLOAT;
    tensor.rank = 2;
    tensor.dims = dims;
    tensor.data = (const uint8_t *)data;
    tensor.size = sizeof data;
    inside.name = epctx_str_of("made inside");
    inside.op_type = epctx_str_of("Relu");
    graph.name = epctx_str_of("made");
    graph.nodes = &inside;
    graph.node_count = 1;
    graph.initializers = &tensor;
    graph.initializer_count = 1;
    value.name = epctx_str_of("in and out");
    value.rank = -1;
    graph.inputs = graph.outputs = graph.values = &value;
    graph.input_count = graph.output_count = graph.value_count = 1;
    attr.name = epctx_str_of(name);
    attr.type = type;
    attr.i = 8;
    attr.f = 0.25f;
    attr.s = epctx_str_of("new value");
    attr.t = &tensor;
    attr.g = &graph;
    attr.count = 2; /* of lists */
    attr.ints = dims;
    attr.floats = data;
    {
        static const epctx_str strings[] = {{"one", 3}, {"two", 3}};
        attr.strings = strings;
    }
    return epctx_edit_set_attr(model, node, &attr, NULL);
}

static epctx_status put_tensor(epctx_model *model) {
    static const int64_t dims[] = {2};
    static const float data[] = {1, 2};
    epctx_tensor tensor = {0};
    tensor.name = epctx_str_of("added");
    tensor.elem_type = EPCTX_ONNX_FLOAT;
    tensor.rank = 1;
    tensor.dims = dims;
    tensor.data = (const uint8_t *)data;
    tensor.size = sizeof data;
    return epctx_edit_put_initializer(model, no_view, &tensor, no_view, NULL, NULL);
}

static epctx_status rename_two(epctx_model *model) {
    static const epctx_str from[] = {{"x", 1}, {"a", 1}}, to[] = {{"a", 1}, {"x", 1}};
    return epctx_rename_values(model, no_view, from, to, 2, NULL, NULL, NULL);
}

static epctx_view main_graph(const epctx_model *model) {
    return epctx_model_graph(model).view;
}

/* What puts something new in or sets something, at any depth. */
static epctx_status edit_deep(epctx_model *model, int kind) {
    static const int64_t dims[] = {2, -1, 5};
    epctx_view first = node_at(model, 0).view;
    epctx_view root = epctx_model_read(model).view;
    epctx_view input = {NULL, (const uint8_t *)"input", 5};
    epctx_value value = {0};
    epctx_prefix_opts all = {0};
    all.all_nodes = true;
    value.name = epctx_str_of("added");
    value.elem_type = EPCTX_ONNX_FLOAT;
    value.rank = 3;
    value.dims = dims;
    switch (kind) {
    case 0: return epctx_edit_remove(model, inner_node(model).view, NULL);
    case 1:
        return epctx_edit_set_field_str(model, inner_node(model).view, 3, epctx_str_of("other"),
                                        NULL);
    case 2: return set_attr(model, first, "number", EPCTX_ATTR_INT);
    case 3: return set_attr(model, first, "number", EPCTX_ATTR_STRINGS);
    case 4: return set_attr(model, first, "text", EPCTX_ATTR_STRING);
    case 5: return set_attr(model, first, "text", EPCTX_ATTR_TENSOR);
    case 6: return set_attr(model, inner_node(model).view, "new", EPCTX_ATTR_GRAPH);
    case 7: return epctx_edit_remove_attr(model, first, epctx_str_of("text"), NULL);
    case 8: return epctx_edit_set_field_int(model, root, 1, 9, NULL);
    case 9:
        return epctx_edit_put_copy(model, main_graph(model), 1, inner_node(model).view, first, NULL,
                                   NULL);
    case 10: return epctx_edit_move(model, node_at(model, 2).view, main_graph(model), NULL, NULL);
    case 11:
        return epctx_edit_put_value(model, no_view, EPCTX_FIELD_GRAPH_INPUT, &value,
                                    main_graph(model), NULL, NULL);
    case 12:
        return epctx_edit_put_value(model, no_view, EPCTX_FIELD_GRAPH_OUTPUT, &value, no_view, NULL,
                                    NULL);
    case 13: return put_tensor(model);
    case 14: return rename_two(model);
    case 15: return epctx_edit_prefix(model, epctx_str_of("p_"), &all, NULL, NULL);
    case 16: return epctx_edit_set_opset(model, epctx_str_of("ai.onnx"), 18, NULL);
    case 17: return epctx_edit_remove_metadata(model, epctx_str_of("key"), NULL);
    case 18: return epctx_edit_remove_field(model, root, 2, NULL);
    default: return epctx_edit_put_copy(model, first, 1, input, no_view, NULL, NULL);
    }
}

/* One kind of edit each, before and after a rebuild: seen at once, undone to the byte. */
static epctx_status edit(epctx_model *model, int kind) {
    static const int64_t dims[] = {2, -1, 5};
    epctx_cursor it;
    epctx_value_view value;
    epctx_tensor_view tensor;
    epctx_value added;
    switch (kind) {
    case 0: return epctx_edit_remove(model, node_at(model, 1).view, NULL);
    case 1: return put_simple(model, "new", no_view);
    case 2: return put_simple(model, "new", node_at(model, 0).view);
    case 3:
        memset(&added, 0, sizeof added);
        added.name = epctx_str_of("b");
        added.elem_type = EPCTX_ONNX_FLOAT;
        added.rank = 3;
        added.dims = dims;
        return epctx_edit_put_value(model, no_view, EPCTX_FIELD_GRAPH_VALUE_INFO, &added, no_view,
                                    NULL, NULL);
    case 4: return epctx_edit_put_opset(model, epctx_str_of("com.microsoft"), 1, NULL);
    case 5:
        return epctx_edit_set_metadata(model, epctx_str_of("key"), epctx_str_of("a new value"),
                                       NULL);
    case 6:
        return epctx_edit_set_metadata(model, epctx_str_of("other"), epctx_str_of("added"), NULL);
    case 7:
        it = epctx_view_graph_values(epctx_model_graph(model));
        if (!epctx_next_value(&it, &value)) return EPCTX_ERR_BACKEND;
        return epctx_edit_remove(model, value.view, NULL);
    case 8:
        it = epctx_view_graph_initializers(epctx_model_graph(model));
        if (!epctx_next_tensor(&it, &tensor)) return EPCTX_ERR_BACKEND;
        return epctx_edit_remove(model, tensor.view, NULL);
    default: return edit_deep(model, kind - 9);
    }
}

enum { EDITS = 29 };

TEST(undo_restores) {
    for (int rebuilt = 0; rebuilt < 2; rebuilt++) {
        for (int kind = 0; kind < EDITS; kind++) {
            epctx_model model;
            bytes b;
            size_t mark;
            CHECK_TRUE(open_sample(&model, &b));
            if (rebuilt) CHECK_INT(ops_rebuild(&model, NULL), EPCTX_OK);
            mark = epctx_edit_mark(&model);
            CHECK(edit(&model, kind) == EPCTX_OK, "edit %d", kind);
            CHECK(!writes(&model, &b), "edit %d changed nothing", kind);
            epctx_edit_undo(&model, mark);
            CHECK(writes(&model, &b), "edit %d is not undone", kind);
            CHECK_STR(node_names(&model), "first,second,third");
            epctx_model_close(&model);
            bytes_free(&b);
        }
    }
}

/* Whatever is edited, everything else is still there, and the result is a model. */
TEST(rest_survives) {
    static const char *const kept[] = {
        "unknown text",  "in a group", "8 bytes.",         "four",        "doc of the model",
        "doc of a node", "producer",   "doc of the graph", "my_function", "doc of an attribute"};
    for (int kind = 0; kind < EDITS; kind++) {
        epctx_model model, again;
        bytes b, out;
        CHECK_TRUE(open_sample(&model, &b));
        CHECK(edit(&model, kind) == EPCTX_OK, "edit %d", kind);
        out = written(&model);
        CHECK_UINT(epctx_model_size(&model), out.size);
        for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
            if ((kind != 0 || strcmp(kept[i], "doc of a node") != 0) &&
                (kind != 16 || strcmp(kept[i], "doc of an attribute") != 0) &&
                (kind != 27 || strcmp(kept[i], "producer") != 0))
                CHECK(bytes_contain(&out, kept[i], strlen(kept[i])), "edit %d loses '%s'", kind,
                      kept[i]);
        /* ir_version and the graph's length keep their odd widths. */
        CHECK(kind == 17 || bytes_contain(&out, "\x08\x88\x80\x00", 4), "edit %d: ir_version",
              kind);
        /* So does the length of a value that is replaced by one that fits. */
        CHECK(kind != 13 || bytes_contain(&out, "\x22\x89\x80\x80\x00new value", 14),
              "the attribute's length changed its width");
        CHECK_INT(epctx_model_open_memory(&again, out.data, out.size, NULL, NULL), EPCTX_OK);
        {
            epctx_cursor it = epctx_view_fields(epctx_model_read(&again).view, 7);
            epctx_field graph;
            CHECK_TRUE(epctx_next_field(&it, &graph));
            CHECK(graph.body.data[-1] < 0x80 && (graph.body.data[-2] & 0x80) &&
                      (graph.body.data[-5] & 0x80) && graph.body.data[-6] == 0x3a,
                  "edit %d: the graph's length changed its width", kind);
        }
        epctx_model_close(&again);
        epctx_model_close(&model);
        bytes_free(&b);
        bytes_free(&out);
    }
}

TEST(placing_nodes) {
    epctx_model model;
    bytes b;
    epctx_node_view node;
    epctx_attr_view attr;
    epctx_cursor it;
    CHECK_TRUE(open_sample(&model, &b));
    CHECK_INT(put_simple(&model, "n0", node_at(&model, 0).view), EPCTX_OK);
    CHECK_STR(node_names(&model), "first,n0,second,third");
    CHECK_INT(put_simple(&model, "n1", no_view), EPCTX_OK);
    CHECK_STR(node_names(&model), "first,n0,second,third,n1");
    CHECK_INT(put_simple(&model, "n2", node_at(&model, 1).view), EPCTX_OK);
    CHECK_STR(node_names(&model), "first,n0,n2,second,third,n1");
    CHECK_INT(epctx_edit_remove(&model, node_at(&model, 1).view, NULL), EPCTX_OK);
    CHECK_STR(node_names(&model), "first,n2,second,third,n1");
    node = node_at(&model, 1);
    CHECK_UINT(node.attr_count, 6);
    it = epctx_view_node_attrs(&node);
    CHECK_TRUE(epctx_next_attr(&it, &attr) && attr.i == -7 && attr.type == EPCTX_ATTR_INT);
    CHECK_TRUE(epctx_next_attr(&it, &attr) && attr.f == 1.5f && attr.type == EPCTX_ATTR_FLOAT);
    CHECK_TRUE(epctx_next_attr(&it, &attr) && epctx_str_is(attr.s, "text"));
    epctx_model_close(&model);
    bytes_free(&b);
}

TEST(remove_every_node) {
    epctx_model model;
    bytes b;
    CHECK_TRUE(open_sample(&model, &b));
    for (int i = 0; i < 3; i++)
        CHECK_INT(epctx_edit_remove(&model, node_at(&model, 0).view, NULL), EPCTX_OK);
    CHECK_STR(node_names(&model), "");
    CHECK_INT(put_simple(&model, "only", no_view), EPCTX_OK);
    CHECK_STR(node_names(&model), "only");
    epctx_edit_undo(&model, 0);
    CHECK_TRUE(writes(&model, &b));
    epctx_model_close(&model);
    bytes_free(&b);
}

/* Everything a view can tell of a model, one line an item. */
static void print_view(bytes *out, const epctx_model *model) {
    static epctx_walk walk;
    epctx_node_view node;
    epctx_cursor it;
    epctx_value_view value;
    epctx_opset opset;
    epctx_pair pair;
    char line[300];
    epctx_walk_begin(&walk, model);
    while (epctx_walk_next(&walk, &node)) {
        epctx_attr_view attr;
        epctx_str name;
        it = epctx_view_fields(node.view, 0);
        bytes_add(out, node.name.data, node.name.size);
        for (it = epctx_view_node_inputs(&node); epctx_next_str(&it, &name);)
            bytes_add(out, name.data, name.size);
        for (it = epctx_view_node_attrs(&node); epctx_next_attr(&it, &attr);) {
            snprintf(line, sizeof line, "%.*s %d %lld %g %.*s\n", (int)attr.name.size,
                     attr.name.data, (int)attr.type, (long long)attr.i, (double)attr.f,
                     (int)attr.s.size, attr.s.data);
            bytes_add(out, line, strlen(line));
        }
    }
    for (it = epctx_view_graph_inputs(epctx_model_graph(model)); epctx_next_value(&it, &value);)
        bytes_add(out, value.name.data, value.name.size);
    for (it = epctx_model_opsets(model); epctx_next_opset(&it, &opset);) {
        snprintf(line, sizeof line, "%.*s %lld\n", (int)opset.domain.size, opset.domain.data,
                 (long long)opset.version);
        bytes_add(out, line, strlen(line));
    }
    it = epctx_view_fields(epctx_model_read(model).view, EPCTX_FIELD_MODEL_METADATA_PROPS);
    while (epctx_next_pair(&it, &pair)) bytes_add(out, pair.value.data, pair.value.size);
}

/* The edited model reads like the one that opens from what it writes. */
TEST(reads_like_reopened) {
    for (int kind = 0; kind < EDITS * EDITS; kind++) {
        epctx_model model, again;
        bytes b, out, here = {0}, there = {0};
        CHECK_TRUE(open_sample(&model, &b));
        (void)edit(&model, kind % EDITS);
        (void)edit(&model, kind / EDITS);
        out = written(&model);
        CHECK_INT(epctx_model_open_memory(&again, out.data, out.size, NULL, NULL), EPCTX_OK);
        print_view(&here, &model);
        print_view(&there, &again);
        CHECK(bytes_equal(&here, there.data, there.size), "edits %d and %d", kind % EDITS,
              kind / EDITS);
        epctx_model_close(&again);
        epctx_model_close(&model);
        bytes_free(&b);
        bytes_free(&out);
        bytes_free(&here);
        bytes_free(&there);
    }
}

/* The operators of the main graph that a walk gives, with an edit after `step` steps; false when
 * the walk ended before, or does not end. */
static bool walk_edited(int kind, int step, char *nodes, size_t room) {
    static epctx_walk walk;
    epctx_model model;
    bytes b;
    size_t used = 0;
    int at = 0;
    bool ok = open_sample(&model, &b);
    nodes[0] = '\0';
    epctx_walk_begin(&walk, &model);
    while (at < 100 && epctx_walk_step(&walk)) {
        if (walk.kind == EPCTX_KIND_NODE && walk.depth == 0 && !walk.in_function) {
            epctx_str op = epctx_view_as_node(walk.view).op_type;
            if (used < room)
                used += (size_t)snprintf(nodes + used, room - used, "%.*s ", (int)op.size, op.data);
        }
        if (++at == step) ok = edit(&model, kind) == EPCTX_OK && ok;
    }
    epctx_model_close(&model);
    bytes_free(&b);
    return ok && at >= step && at < 100;
}

/* Each edit at each step of a walk: the walk ends, and gives each message once that stays. */
TEST(edited_while_walked) {
    for (int kind = 0; kind < EDITS; kind++) {
        const bool second = kind != 0, third = kind != 19; /* removed, moved to the front */
        for (int step = 2; step < 8; step++) {             /* the first gives the graph */
            char nodes[80], want[80];
            CHECK(walk_edited(kind, step, nodes, sizeof nodes), "edit %d at step %d: %s", kind,
                  step, nodes);
            snprintf(want, sizeof want, "Relu %s%s", second ? "Add " : "", third ? "Tanh " : "");
            CHECK(strncmp(nodes, want, strlen(want)) == 0 &&
                      (!nodes[strlen(want)] || (kind == 1 && strstr(nodes, "Tanh Made "))),
                  "edit %d at step %d: the walk gave %s, expected %s", kind, step, nodes, want);
        }
    }
}

TEST(metadata_and_opsets) {
    epctx_model model;
    bytes b;
    epctx_str value;
    size_t mark;
    CHECK_TRUE(open_sample(&model, &b));
    CHECK_INT(epctx_edit_set_metadata(&model, epctx_str_of("key"), epctx_str_of("new"), NULL),
              EPCTX_OK);
    CHECK_TRUE(epctx_model_metadata(&model, epctx_str_of("key"), &value));
    CHECK_TRUE(epctx_str_is(value, "new"));
    CHECK_INT(epctx_edit_set_metadata(&model, epctx_str_of("k2"), epctx_str_of("v2"), NULL),
              EPCTX_OK);
    CHECK_TRUE(epctx_model_metadata(&model, epctx_str_of("k2"), &value));
    CHECK_TRUE(epctx_str_is(value, "v2"));
    mark = epctx_edit_mark(&model);
    CHECK_INT(epctx_edit_put_opset(&model, epctx_str_of(""), 3, NULL), EPCTX_OK);
    CHECK_INT(epctx_edit_put_opset(&model, epctx_str_of("ai.onnx"), 3, NULL), EPCTX_OK);
    CHECK_INT(epctx_model_opset(&model, epctx_str_of("")), 17);
    CHECK_UINT(epctx_edit_mark(&model), mark);
    CHECK_INT(epctx_edit_put_opset(&model, epctx_str_of("com.microsoft"), 1, NULL), EPCTX_OK);
    CHECK_INT(epctx_model_opset(&model, epctx_str_of("com.microsoft")), 1);
    epctx_model_close(&model);
    bytes_free(&b);
}

/* A length in two bytes grows to three only when it must. */
TEST(length_width) {
    for (size_t pad = 0; pad < 300; pad++) {
        static char text[16800];
        bytes graph = {0}, b, out;
        epctx_model model, again;
        memset(text, 'd', sizeof text);
        add_node(&graph, "Relu", "first", "x", "y");
        put_data(&graph, 10, text, 16383 - 200 + pad - graph.size);
        b = new_model(&graph);
        CHECK_INT(epctx_model_open_memory(&model, b.data, b.size, NULL, NULL), EPCTX_OK);
        CHECK_INT(put_simple(&model, "new", no_view), EPCTX_OK);
        out = written(&model);
        CHECK_UINT(epctx_model_size(&model), out.size);
        CHECK_INT(epctx_model_open_memory(&again, out.data, out.size, NULL, NULL), EPCTX_OK);
        CHECK_STR(node_names(&again), "first,new");
        epctx_edit_undo(&model, 0);
        CHECK_TRUE(writes(&model, &b));
        epctx_model_close(&again);
        epctx_model_close(&model);
        bytes_free(&b);
        bytes_free(&out);
    }
}

/* Any edits in any order, undone to any earlier mark. */
TEST(random_scripts) {
    enum { STEPS = 30 };
    uint32_t random = 12345;
    for (int round = 0; round < 200; round++) {
        epctx_model model;
        bytes b, states[STEPS + 1];
        size_t marks[STEPS + 1];
        size_t count = 0;
        CHECK_TRUE(open_sample(&model, &b));
        if (round % 2) CHECK_INT(ops_rebuild(&model, NULL), EPCTX_OK);
        for (int step = 0; step < STEPS; step++) {
            marks[count] = epctx_edit_mark(&model);
            states[count++] = written(&model);
            if (random_below(&random, 4) == 0) {
                size_t back = random_below(&random, (uint32_t)count);
                epctx_edit_undo(&model, marks[back]);
                while (count > back) {
                    count--;
                    if (count == back)
                        CHECK(writes(&model, &states[count]), "round %d, step %d: not undone",
                              round, step);
                    bytes_free(&states[count]);
                }
            } else if (node_at(&model, 0).view.data != NULL || round % 3 == 0) {
                (void)edit(&model, (int)random_below(&random, EDITS));
            }
        }
        epctx_edit_undo(&model, 0);
        CHECK(writes(&model, &b), "round %d: not undone at the end", round);
        while (count > 0) bytes_free(&states[--count]);
        epctx_model_close(&model);
        bytes_free(&b);
    }
}

/* A failing allocation during an edit: the model is as before. */
TEST(allocator_fails) {
    for (int turn = 0; turn < 2 * EDITS; turn++) {
        int kind = turn % EDITS;
        bool done = false;
        bytes whole = {0};
        for (size_t extra = 0; !done && extra < 5000; extra++) {
            epctx_status status;
            counting c = {0};
            epctx_allocator allocator = counting_allocator(&c);
            epctx_open_opts opts = {0};
            epctx_model model;
            bytes b = sample();
            opts.allocator = &allocator;
            CHECK_INT(epctx_model_open_memory(&model, b.data, b.size, &opts, NULL), EPCTX_OK);
            /* Use up the arena's block, so that edits have to ask for more. */
            while (model.arena.left >= 32) CHECK_TRUE(epctx_arena_alloc(&model.arena, 32) != NULL);
            c.fail_at = extra > 0 ? c.calls + extra : 0;
            c.once = turn >= EDITS; /* or with all that follow */
            status = edit(&model, kind);
            CHECK(status == EPCTX_OK || status == EPCTX_ERR_NOMEM, "edit %d: status %d", kind,
                  (int)status);
            done = extra > 0 && c.calls < c.fail_at;
            c.fail_at = 0;
            if (extra == 0) whole = written(&model);
            CHECK(writes(&model, status == EPCTX_OK ? &whole : &b),
                  status == EPCTX_OK ? "edit %d is not whole" : "edit %d left traces", kind);
            epctx_edit_undo(&model, 0);
            CHECK(writes(&model, &b), "edit %d is not undone", kind);
            epctx_model_close(&model);
            CHECK_UINT(c.alive, 0);
            bytes_free(&b);
        }
        bytes_free(&whole);
        CHECK(done, "edit %d never ends", kind);
    }
}

/* Memory that runs out anywhere in a rebuild, or in an edit after it: the bytes stay the same, also
 * when it is tried again. */
TEST(fixed_arena_full) {
    static uint8_t space[1 << 15];
    bytes b = sample();
    size_t failed = 0;
    for (size_t size = 0; size < sizeof space; size += 16) {
        epctx_open_opts opts = {0};
        epctx_model model;
        opts.buffer = space;
        opts.buffer_size = size;
        if (epctx_model_open_memory(&model, b.data, b.size, &opts, NULL) != EPCTX_OK) continue;
        for (int i = 0; i < 3; i++) {
            failed += ops_rebuild(&model, NULL) != EPCTX_OK;
            CHECK(writes(&model, &b), "arena of %zu: rebuild %d", size, i);
        }
        for (int kind = 0; kind < EDITS; kind++) {
            (void)edit(&model, kind);
            epctx_edit_undo(&model, 0);
            CHECK(writes(&model, &b), "arena of %zu: edit %d", size, kind);
        }
        epctx_model_close(&model);
    }
    CHECK_TRUE(failed > 0);
    bytes_free(&b);
}

/* Views that edits do not take. */
TEST(bad_views) {
    epctx_model model;
    bytes b;
    epctx_error error;
    epctx_view wild = {NULL, NULL, 0};
    epctx_node_view node;
    epctx_cursor it;
    epctx_attr_view attr;
    CHECK_TRUE(open_sample(&model, &b));
    CHECK_INT(epctx_edit_remove(&model, no_view, &error), EPCTX_ERR_ARG);
    wild.data = (const uint8_t *)"elsewhere";
    wild.size = 9;
    CHECK_INT(epctx_edit_remove(&model, wild, &error), EPCTX_ERR_ARG);
    node = node_at(&model, 1);
    it = epctx_view_node_attrs(&node);
    if (epctx_next_attr(&it, &attr))
        CHECK_INT(epctx_edit_remove(&model, attr.view, &error), EPCTX_ERR_ARG);
    CHECK_TRUE(writes(&model, &b));
    epctx_model_close(&model);
    bytes_free(&b);
}

/* x -> If(c){ then: Relu(x) -> t; else: x defined again inside } -> y, with everything around that
 * can name a value. */
static bytes nested(void) {
    static const int64_t dims[] = {4, -1};
    static const float weights[] = {1, 2, 3, 4};
    bytes graph = {0}, then = {0}, other = {0}, node, attr = {0};
    add_node(&then, "Relu", "in_then", "x", "t");
    put_str(&then, 2, "then");
    add_value(&then, GRAPH_OUTPUT, "t", EPCTX_ONNX_FLOAT, dims);
    add_node(&other, "Tanh", "shadow", "c", "x");
    add_node(&other, "Relu", "in_else", "x", "e");
    put_str(&other, 2, "else");
    add_value(&other, GRAPH_OUTPUT, "e", EPCTX_ONNX_FLOAT, dims);
    node = new_node("If", "", "branch", "c", "y");
    put_str(&attr, 1, "then_branch");
    put_child(&attr, 6, &then);
    put_int(&attr, 20, EPCTX_ATTR_GRAPH);
    put_child_wide(&node, 5, &attr, 3);
    add_attr_graph(&node, "else_branch", &other);
    add_attr_int(&node, "number", 7);
    put_child(&graph, 1, &node);
    put_str(&graph, 2, "main");
    add_value(&graph, GRAPH_INPUT, "c", EPCTX_ONNX_BOOL, dims);
    add_value(&graph, GRAPH_INPUT, "x", EPCTX_ONNX_FLOAT, dims);
    add_value(&graph, GRAPH_OUTPUT, "y", EPCTX_ONNX_FLOAT, dims);
    add_floats(&graph, "scale", weights, 4);
    add_scale(&graph, "x", "scale");
    return new_model(&graph);
}

/* Subgraph `which` of the first node. */
static epctx_graph_view branch(const epctx_model *model, const char *which) {
    epctx_node_view node = node_at(model, 0);
    epctx_cursor it = epctx_view_node_attrs(&node);
    epctx_attr_view attr;
    while (epctx_next_attr(&it, &attr))
        if (epctx_str_is(attr.name, which)) return epctx_view_as_graph(attr.g);
    return epctx_view_as_graph(no_view);
}

static bool has_text(epctx_model *model, const char *text) {
    bytes out = written(model);
    bool found = bytes_contain(&out, text, strlen(text));
    bytes_free(&out);
    return found;
}

TEST(edits_in_subgraphs) {
    epctx_model model;
    bytes b = nested();
    epctx_cursor it;
    epctx_node_view node;
    epctx_attr attr = {0};
    epctx_error error;
    CHECK_INT(epctx_model_open_memory(&model, b.data, b.size, NULL, NULL), EPCTX_OK);
    it = epctx_view_graph_nodes(branch(&model, "else_branch"));
    CHECK_TRUE(epctx_next_node(&it, &node) && epctx_str_is(node.name, "shadow"));
    attr.name = epctx_str_of("added");
    attr.type = EPCTX_ATTR_INT;
    attr.i = 5;
    CHECK_OK(epctx_edit_set_attr(&model, node.view, &attr, &error), error);
    CHECK_TRUE(has_text(&model, "added"));
    CHECK_OK(epctx_edit_remove(&model, node.view, &error), error);
    CHECK_TRUE(!has_text(&model, "shadow") && has_text(&model, "in_else"));
    CHECK_INT(epctx_edit_remove(&model, node.view, &error), EPCTX_ERR_ARG);
    /* The view that was made before the edits still finds its place. */
    CHECK_TRUE(epctx_next_node(&it, &node) && epctx_str_is(node.name, "in_else"));
    CHECK_INT(epctx_edit_set_field_str(&model, node.view, 3, epctx_str_of("renamed"), &error),
              EPCTX_OK);
    CHECK_TRUE(!has_text(&model, "in_else") && has_text(&model, "renamed"));
    epctx_edit_undo(&model, 0);
    CHECK_TRUE(writes(&model, &b));
    epctx_model_close(&model);
    bytes_free(&b);
}

TEST(rename_values) {
    static const epctx_str from[] = {{"x", 1}, {"scale", 5}, {"y", 1}};
    static const epctx_str to[] = {{"data_in", 7}, {"y", 1}, {"scale", 5}};
    epctx_model model;
    bytes b = nested();
    epctx_cursor it;
    epctx_node_view node;
    epctx_error error;
    epctx_str name;
    size_t uses;
    CHECK_INT(epctx_model_open_memory(&model, b.data, b.size, NULL, NULL), EPCTX_OK);
    CHECK_OK(epctx_rename_values(&model, no_view, from, to, 3, NULL, &uses, &error), error);
    CHECK_UINT(uses, 7); /* x, x, x; scale, scale; y, y */
    it = epctx_view_graph_nodes(branch(&model, "then_branch"));
    CHECK_TRUE(epctx_next_node(&it, &node));
    it = epctx_view_node_inputs(&node);
    CHECK_TRUE(epctx_next_str(&it, &name) && epctx_str_is(name, "data_in"));
    it = epctx_view_graph_nodes(branch(&model, "else_branch"));
    CHECK_TRUE(epctx_next_node(&it, &node) && epctx_next_node(&it, &node));
    it = epctx_view_node_inputs(&node);
    CHECK_TRUE(epctx_next_str(&it, &name) && epctx_str_is(name, "x"));
    epctx_edit_undo(&model, 0);
    CHECK_TRUE(writes(&model, &b));
    CHECK_INT(epctx_rename_values(&model, no_view, from, &to[1], 1, NULL, NULL, &error),
              EPCTX_ERR_EXISTS);
    CHECK_HAS(error.message, "value 'x' cannot be renamed to 'y'");
    CHECK_TRUE(writes(&model, &b));
    epctx_model_close(&model);
    bytes_free(&b);
}

/* Everything else that names values: training graphs and their bindings, sparse initializers,
 * device configurations; functions have names of their own. */
static bytes rare_places(void) {
    bytes graph = {0}, model = {0}, training = {0}, algorithm = {0}, function = {0};
    bytes node = new_node("Add", "", "add", "x,w", "y"), spec = {0}, device = {0};
    bytes sparse = {0}, values = {0};
    put_str(&device, 1, "configuration");
    put_str(&spec, 1, "x");
    put_child(&device, 2, &spec);
    put_child(&node, 10, &device);
    put_child(&graph, 1, &node);
    add_value(&graph, GRAPH_INPUT, "x", EPCTX_ONNX_FLOAT, NULL);
    add_value(&graph, GRAPH_OUTPUT, "y", EPCTX_ONNX_FLOAT, NULL);
    put_str(&values, 8, "w");
    put_child(&sparse, 1, &values);
    put_child(&graph, 15, &sparse);
    put_str(&graph, 2, "main");
    put_child(&model, 7, &graph);
    put_int(&model, 1, 10);
    add_node(&algorithm, "Sub", "step", "w,own", "new_w");
    add_floats(&algorithm, "own", (const float[]){1}, 1);
    put_child(&training, 2, &algorithm);
    put_pair(&training, 4, "w", "new_w");
    put_pair(&training, 4, "own", "w");
    put_child(&model, 20, &training);
    put_str(&function, 1, "twice");
    put_str(&function, 4, "x");
    put_str(&function, 5, "w");
    node = new_node("Add", "", "inside", "x,x", "w");
    put_child(&function, 7, &node);
    put_child(&model, 25, &function);
    add_opset(&model, "", 17);
    return model;
}

/* How often a text stands in what is written. */
static size_t occurrences(epctx_model *model, const char *text) {
    bytes out = written(model);
    size_t count = 0, size = strlen(text);
    for (size_t i = 0; i + size <= out.size; i++) count += memcmp(out.data + i, text, size) == 0;
    bytes_free(&out);
    return count;
}

TEST(rename_in_rare_places) {
    static const epctx_str from[] = {{"w", 1}, {"x", 1}, {"own", 3}};
    static const epctx_str to[] = {{"weights", 7}, {"input", 5}, {"other", 5}};
    epctx_model model;
    bytes b = rare_places();
    epctx_error error;
    epctx_cursor it;
    epctx_function_view function;
    epctx_node added = {0};
    size_t uses;
    CHECK_INT(epctx_model_open_memory(&model, b.data, b.size, NULL, NULL), EPCTX_OK);
    CHECK_OK(epctx_rename_values(&model, no_view, from, to, 3, NULL, &uses, &error), error);
    /* w: node, sparse, algorithm's node, two bindings; x: node, sharding, input. `own` is the
     * algorithm's, and the function is another world. */
    CHECK_UINT(occurrences(&model, "weights"), 5);
    CHECK_UINT(occurrences(&model, "input"), 3);
    CHECK_UINT(occurrences(&model, "other"), 0);
    CHECK_UINT(uses, 8);
    epctx_edit_undo(&model, 0);
    it = epctx_model_functions(&model);
    CHECK_TRUE(epctx_next_function(&it, &function));
    CHECK_INT(epctx_rename_values(&model, function.view, from, to, 2, NULL, &uses, &error),
              EPCTX_OK);
    CHECK_UINT(uses, 5);
    CHECK_UINT(occurrences(&model, "weights"), 2);
    added.name = epctx_str_of("added here");
    added.op_type = epctx_str_of("Relu");
    CHECK_INT(epctx_edit_put_node(&model, function.view, &added, function.view, NULL, &error),
              EPCTX_OK);
    it = epctx_model_functions(&model);
    CHECK_TRUE(epctx_next_function(&it, &function));
    CHECK_UINT(function.node_count, 2);
    CHECK_INT(epctx_edit_put_value(&model, function.view, EPCTX_FIELD_GRAPH_INPUT,
                                   &(epctx_value){0}, no_view, NULL, &error),
              EPCTX_ERR_ARG);
    epctx_edit_undo(&model, 0);
    CHECK_TRUE(writes(&model, &b));
    epctx_model_close(&model);
    bytes_free(&b);
}

static const char *folder_names(const char *folder, bool empty);

/* -- the model with everything, with fields that say nothing -- */

static bool open_rich(epctx_model *model, bytes *b, epctx_io *io, const epctx_allocator *allocator,
                      bool noise) {
    epctx_open_opts opts = {0};
    *b = rich_model(noise);
    *io = rich_io();
    opts.io = io;
    opts.external_folder = "/m";
    opts.allocator = allocator;
    return epctx_model_open_memory(model, b->data, b->size, &opts, NULL) == EPCTX_OK;
}

static epctx_status rename_one(epctx_model *model, epctx_view scope, const char *from,
                               const char *to, size_t *uses, epctx_error *error) {
    epctx_str old = epctx_str_of(from), fresh = epctx_str_of(to);
    epctx_name_opts opts = {0};
    opts.any_io = true;
    return epctx_rename_values(model, scope, &old, &fresh, 1, &opts, uses, error);
}

/* Whatever has a name already that a value could be confused with. */
TEST(names_that_are_in_use) {
    static const struct {
        const char *name;
        bool in_function; /* else in the main graph */
    } cases[] = {
        {"x", false},         {"w", false},        {"a", false},       {"y", false},
        {"f", false},         {"v4", false},       {"e", false},       {"sp", false},
        {"i", false},         {"inner", false},    {"t", false},       {"u", false},
        {"sparse_in", false}, {"noted", false},    {"scaled", false},  {"sharded", false},
        {"w0", false},        {"momentum", false}, {"w1", false},      {"unused", false},
        {"bound", false},     {"bound to", false}, {"started", false}, {"start to", false},
        {"q", true},          {"r", true},         {"inner", true},    {"typed in F", true}};
    epctx_model model;
    epctx_io io;
    epctx_error error;
    bytes b;
    epctx_function_view function;
    epctx_cursor it;
    size_t uses;
    CHECK_TRUE(open_rich(&model, &b, &io, NULL, true));
    it = epctx_model_functions(&model);
    CHECK_TRUE(epctx_next_function(&it, &function));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bool f = cases[i].in_function;
        epctx_status status = rename_one(&model, f ? function.view : no_view, f ? "p" : "b",
                                         cases[i].name, &uses, &error);
        CHECK(status == EPCTX_ERR_EXISTS, "'%s' is free: %s", cases[i].name,
              epctx_status_name(status));
        CHECK_HAS(error.message, cases[i].name);
        CHECK_UINT(uses, 0);
    }
    CHECK_TRUE(writes(&model, &b));
    CHECK_INT(rename_one(&model, no_view, "b", "free", &uses, &error), EPCTX_OK);
    CHECK_UINT(uses, 3); /* an output, an input, a value */
    epctx_edit_undo(&model, 0);
    CHECK_TRUE(writes(&model, &b));
    epctx_model_close(&model);
    bytes_free(&b);
}

/* The body of the loop. */
static epctx_view body_of(const epctx_model *model) {
    epctx_node_view node = node_at(model, 3);
    epctx_cursor it = epctx_view_node_attrs(&node);
    epctx_attr_view attr;
    while (epctx_next_attr(&it, &attr))
        if (attr.type == EPCTX_ATTR_GRAPH) return attr.g;
    return no_view;
}

static epctx_view first_in(epctx_view graph) {
    epctx_cursor it = epctx_view_fields(graph, 1);
    epctx_node_view node = {0};
    epctx_next_node(&it, &node);
    return node.view;
}

/* A body sees the values of the graphs around it. */
TEST(names_around_a_body) {
    epctx_model model;
    epctx_io io;
    epctx_error error;
    bytes b;
    epctx_view body;
    CHECK_TRUE(open_rich(&model, &b, &io, NULL, true));
    body = body_of(&model);
    CHECK_INT(rename_one(&model, body, "t", "sp", NULL, &error), EPCTX_ERR_EXISTS);
    CHECK_HAS(error.message, "an outer graph uses the name");
    CHECK_INT(rename_one(&model, body, "t", "free", NULL, &error), EPCTX_OK);
    epctx_edit_undo(&model, 0);
    CHECK_TRUE(writes(&model, &b));
    epctx_model_close(&model);
    bytes_free(&b);
}

TEST(plans_of_names) {
    static const struct {
        epctx_str from[2], to[2];
        epctx_status want;
        const char *message;
    } cases[] = {
        {{{"", 0}, {"x", 1}}, {{"a1", 2}, {"a2", 2}}, EPCTX_ERR_ARG, "must not be empty"},
        {{{"b", 1}, {"x", 1}}, {{"a1", 2}, {"", 0}}, EPCTX_ERR_ARG, "must not be empty"},
        {{{"b", 1}, {"b", 1}}, {{"a1", 2}, {"a2", 2}}, EPCTX_ERR_ARG, "has two new names"},
        {{{"b", 1}, {"a", 1}},
         {{"a1", 2}, {"a1", 2}},
         EPCTX_ERR_EXISTS,
         "two values would be named"},
        {{{"b", 1}, {"a", 1}}, {{"b", 1}, {"a1", 2}}, EPCTX_OK, ""},
    };
    epctx_model model;
    epctx_io io;
    epctx_error error;
    epctx_name_opts opts = {0};
    bytes b;
    opts.any_io = true;
    CHECK_TRUE(open_rich(&model, &b, &io, NULL, true));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        epctx_status status = epctx_rename_values(&model, no_view, cases[i].from, cases[i].to, 2,
                                                  &opts, NULL, &error);
        CHECK(status == cases[i].want, "case %zu: %s", i, error.message);
        CHECK_HAS(error.message, cases[i].message);
    }
    epctx_model_close(&model);
    bytes_free(&b);
}

/* A view that points anywhere into the model is a field or refused; nothing is broken by it. */
TEST(views_to_anywhere) {
    epctx_model model;
    epctx_io io;
    bytes b;
    epctx_view view;
    size_t removed = 0;
    CHECK_TRUE(open_rich(&model, &b, &io, NULL, true));
    view = epctx_model_read(&model).view;
    for (size_t i = 0; i < b.size; i++) {
        epctx_view made = view;
        epctx_error error;
        epctx_status status;
        made.data = b.data + i;
        made.size = 1;
        status = epctx_edit_remove(&model, made, &error);
        CHECK(status == EPCTX_OK || status == EPCTX_ERR_ARG, "byte %zu: %s", i, error.message);
        removed += status == EPCTX_OK;
        epctx_edit_undo(&model, 0);
        if (i % 64 == 0) CHECK(writes(&model, &b), "byte %zu: not as before", i);
    }
    CHECK(removed > 500, "only %zu fields were found", removed);
    CHECK_TRUE(writes(&model, &b));
    epctx_model_close(&model);
    bytes_free(&b);
}

/* Edits that find something in their way, or nothing to do. */
TEST(edits_refused) {
    static const int64_t two[] = {2}, negative[] = {-1}, huge[] = {INT64_MAX / 4};
    static const float data[] = {1, 2};
    bytes b, doubled;
    epctx_model model, other;
    epctx_io io;
    epctx_error error;
    epctx_attr attr = {0};
    epctx_tensor tensor = {0};
    epctx_node nested[50], node = {0};
    epctx_graph graphs[50];
    epctx_attr inner[50];
    epctx_view root, graph, loop;
    epctx_str ok = {"ok", 2};
    CHECK_TRUE(open_rich(&model, &b, &io, NULL, true));
    root = epctx_model_read(&model).view;
    graph = epctx_model_graph(&model).view;
    loop = node_at(&model, 3).view;
    /* fields */
    CHECK_INT(epctx_edit_set_field_str(&model, root, 7, ok, &error), EPCTX_ERR_ARG);
    CHECK_HAS(error.message, "is not a string or number");
    CHECK_INT(epctx_edit_set_field_int(&model, root, 0, 1, &error), EPCTX_ERR_ARG);
    CHECK_INT(epctx_edit_replace_str(&model, root, ok, &error), EPCTX_ERR_ARG);
    CHECK_INT(epctx_edit_replace_str(&model, loop, ok, &error), EPCTX_ERR_ARG);
    CHECK_HAS(error.message, "the view is not a string");
    CHECK_INT(epctx_edit_replace_str(&model, no_view, ok, &error), EPCTX_ERR_ARG);
    CHECK_INT(epctx_edit_remove(&model, root, &error), EPCTX_ERR_ARG);
    CHECK_INT(epctx_edit_move(&model, root, no_view, NULL, &error), EPCTX_ERR_ARG);
    CHECK_INT(epctx_edit_move(&model, loop, root, NULL, &error), EPCTX_ERR_ARG);
    CHECK_INT(epctx_edit_put_copy(&model, graph, 0, loop, no_view, NULL, &error), EPCTX_ERR_ARG);
    CHECK_INT(epctx_edit_put_copy(&model, root, 7, graph, no_view, NULL, &error), EPCTX_ERR_ARG);
    CHECK_HAS(error.message, "has a field 7 already");
    CHECK_INT(epctx_edit_copy_attr(&model, graph, loop, &error), EPCTX_ERR_ARG);
    CHECK_HAS(error.message, "the view is not a NodeProto");
    CHECK_INT(epctx_edit_put_node(&model, (epctx_view){NULL, b.data, b.size}, &node, no_view, NULL,
                                  &error),
              EPCTX_ERR_ARG);
    CHECK_INT(epctx_edit_put_node(&model, loop, &node, no_view, NULL, &error), EPCTX_ERR_ARG);
    CHECK_HAS(error.message, "the view is not a graph");
    CHECK_INT(epctx_edit_set_pair(&model, loop, 5, ok, ok, &error), EPCTX_ERR_ARG);
    CHECK_HAS(error.message, "holds no pairs");
    /* tensors and attributes of records */
    attr.name = ok;
    attr.type = EPCTX_ATTR_TENSOR;
    CHECK_INT(epctx_edit_set_attr(&model, loop, &attr, &error), EPCTX_ERR_UNSUPPORTED);
    attr.t = &tensor;
    tensor.elem_type = EPCTX_ONNX_STRING;
    CHECK_INT(epctx_edit_set_attr(&model, loop, &attr, &error), EPCTX_ERR_UNSUPPORTED);
    tensor.elem_type = EPCTX_ONNX_FLOAT;
    tensor.rank = 1;
    tensor.dims = two;
    tensor.size = 8;
    CHECK_INT(epctx_edit_set_attr(&model, loop, &attr, &error), EPCTX_ERR_UNSUPPORTED);
    tensor.data = (const uint8_t *)data;
    CHECK_INT(epctx_edit_set_attr(&model, loop, &attr, &error), EPCTX_OK);
    tensor.size = 7;
    CHECK_INT(epctx_edit_put_initializer(&model, no_view, &tensor, no_view, NULL, &error),
              EPCTX_ERR_ARG);
    CHECK_HAS(error.message, "7 bytes do not fit its dimensions");
    tensor.dims = negative;
    CHECK_INT(epctx_edit_put_initializer(&model, no_view, &tensor, no_view, NULL, &error),
              EPCTX_ERR_ARG);
    tensor.dims = huge;
    CHECK_INT(epctx_edit_put_initializer(&model, no_view, &tensor, no_view, NULL, &error),
              EPCTX_ERR_ARG);
    attr.type = EPCTX_ATTR_GRAPH;
    CHECK_INT(epctx_edit_set_attr(&model, loop, &attr, &error), EPCTX_ERR_UNSUPPORTED);
    CHECK_HAS(error.message, "has no record");
    attr.type = EPCTX_ATTR_TYPE_PROTO;
    CHECK_INT(epctx_edit_set_attr(&model, loop, &attr, &error), EPCTX_ERR_UNSUPPORTED);
    CHECK_HAS(error.message, "cannot be written from a record");
    /* a graph with a bad tensor and behind it others, then too many graphs in each other */
    memset(nested, 0, sizeof nested);
    memset(graphs, 0, sizeof graphs);
    memset(inner, 0, sizeof inner);
    attr.type = EPCTX_ATTR_GRAPH;
    attr.g = &graphs[0];
    graphs[0].initializers = &tensor;
    graphs[0].initializer_count = 2;
    CHECK_INT(epctx_edit_set_attr(&model, loop, &attr, &error), EPCTX_ERR_ARG);
    graphs[0].initializer_count = 0;
    for (size_t i = 0; i < 50; i++) {
        graphs[i].nodes = &nested[i];
        graphs[i].node_count = i < 49;
        nested[i].attrs = &inner[i];
        nested[i].attr_count = 1;
        inner[i].type = EPCTX_ATTR_GRAPH;
        inner[i].g = i < 49 ? &graphs[i + 1] : NULL;
    }
    CHECK_INT(epctx_edit_set_attr(&model, loop, &attr, &error), EPCTX_ERR_LIMIT);
    CHECK_HAS(error.message, "graphs are nested too deep");
    graphs[32].node_count = 0;
    CHECK_INT(epctx_edit_set_attr(&model, loop, &attr, &error), EPCTX_OK);
    epctx_edit_undo(&model, 0);
    CHECK_INT(epctx_edit_set_attr(&model, first_in(body_of(&model)), &attr, &error),
              EPCTX_ERR_LIMIT);
    CHECK_HAS(error.message, "messages are nested too deep");
    /* packed numbers that are none, and a message where a number is */
    CHECK_INT(epctx_edit_put_copy(&model, loop, 5, loop, no_view, NULL, &error), EPCTX_ERR_GRAPH);
    epctx_edit_undo(&model, 0);
    CHECK_TRUE(writes(&model, &b));
    /* what can be read, but not edited */
    doubled = rich_model(false);
    put_data(&doubled, 7, "", 0);
    CHECK_INT(epctx_model_open_memory(&other, doubled.data, doubled.size, NULL, NULL), EPCTX_OK);
    CHECK_INT(epctx_edit_set_opset(&other, ok, 1, &error), EPCTX_ERR_GRAPH);
    CHECK_HAS(error.message, "the model is read-only");
    CHECK_INT(epctx_edit_remove_opset(&other, ok, &error), EPCTX_ERR_GRAPH);
    CHECK_INT(epctx_edit_prefix(&other, ok, NULL, NULL, &error), EPCTX_ERR_GRAPH);
    epctx_model_close(&other);
    epctx_model_close(&model);
    bytes_free(&doubled);
    bytes_free(&b);
}

/* Lists that differ in length only, values that are there already, opsets and pairs twice. */
TEST(edits_that_compare) {
    static const int64_t ints[] = {3, -4, 5};
    bytes b;
    epctx_model model;
    epctx_io io;
    epctx_error error;
    epctx_attr attr = {0};
    epctx_view root, loop;
    epctx_attr_view view;
    epctx_cursor it;
    epctx_str key = {"key", 3}, value = {"value", 5};
    size_t mark;
    CHECK_TRUE(open_rich(&model, &b, &io, NULL, true));
    root = epctx_model_read(&model).view;
    loop = node_at(&model, 3).view;
    attr.name = epctx_str_of("ints");
    attr.type = EPCTX_ATTR_INTS;
    attr.ints = ints;
    attr.count = 2;
    CHECK_INT(epctx_edit_set_attr(&model, loop, &attr, &error), EPCTX_OK);
    mark = epctx_edit_mark(&model);
    CHECK_INT(epctx_edit_set_attr(&model, loop, &attr, &error), EPCTX_OK);
    CHECK(epctx_edit_mark(&model) == mark, "setting the same is an edit");
    for (size_t count = 0; count < 4; count++) {
        int64_t got;
        attr.count = count;
        CHECK_INT(epctx_edit_set_attr(&model, loop, &attr, &error), EPCTX_OK);
        for (it = epctx_view_node_attrs(&(epctx_node_view){.view = loop});
             epctx_next_attr(&it, &view);)
            if (epctx_str_is(view.name, "ints")) break;
        it = epctx_view_fields(view.view, 8);
        for (size_t i = 0; i < count; i++)
            CHECK(epctx_next_int(&it, &got) && got == ints[i], "value %zu of %zu is lost", i,
                  count);
        CHECK_TRUE(!epctx_next_int(&it, &got));
    }
    epctx_edit_undo(&model, 0);
    CHECK_TRUE(writes(&model, &b));
    /* pairs: two of a key become one, or none */
    for (int i = 0; i < 3; i++) {
        CHECK_INT(epctx_edit_set_metadata(&model, i == 1 ? value : key, value, &error), EPCTX_OK);
        it = epctx_view_fields(root, EPCTX_FIELD_MODEL_METADATA_PROPS);
    }
    for (int set = 0; set < 2; set++) {
        epctx_view first = no_view;
        epctx_pair pair;
        epctx_field field;
        size_t found = 0;
        epctx_edit_undo(&model, 0);
        CHECK_INT(epctx_edit_set_metadata(&model, key, value, &error), EPCTX_OK);
        for (it = epctx_view_fields(root, EPCTX_FIELD_MODEL_METADATA_PROPS);
             epctx_next_field(&it, &field);)
            first = field.body;
        CHECK_INT(epctx_edit_put_copy(&model, root, EPCTX_FIELD_MODEL_METADATA_PROPS, first,
                                      no_view, NULL, &error),
                  EPCTX_OK);
        CHECK_INT(set ? epctx_edit_set_metadata(&model, key, key, &error)
                      : epctx_edit_remove_metadata(&model, key, &error),
                  EPCTX_OK);
        for (it = epctx_view_fields(root, EPCTX_FIELD_MODEL_METADATA_PROPS);
             epctx_next_pair(&it, &pair);)
            found += epctx_str_eq(pair.key, key);
        CHECK_UINT(found, set);
    }
    epctx_edit_undo(&model, 0);
    /* opsets: every import of a domain goes, whichever way it is spelled */
    CHECK_INT(epctx_edit_put_opset(&model, epctx_str_of("mine"), 7, &error), EPCTX_OK);
    CHECK_INT(epctx_model_opset(&model, epctx_str_of("mine")), 1);
    CHECK_INT(epctx_edit_set_opset(&model, epctx_str_of("mine"), 7, &error), EPCTX_OK);
    CHECK_INT(epctx_model_opset(&model, epctx_str_of("mine")), 7);
    CHECK_INT(epctx_edit_remove_opset(&model, epctx_str_of("ai.onnx"), &error), EPCTX_OK);
    CHECK_INT(epctx_model_opset(&model, epctx_str_of("")), 0);
    epctx_edit_undo(&model, 0);
    CHECK_TRUE(writes(&model, &b));
    /* a number where a string belongs is an unknown field beside it */
    CHECK_INT(epctx_edit_set_field_int(&model, root, 2, 5, &error), EPCTX_OK);
    CHECK_UINT(epctx_model_read(&model).producer_name.size, 8);
    epctx_edit_undo(&model, 0);
    /* the graph goes and comes again */
    CHECK_INT(epctx_edit_remove_field(&model, root, 7, &error), EPCTX_OK);
    CHECK_TRUE(!epctx_model_has_graph(&model));
    CHECK_INT(put_simple(&model, "new", no_view), EPCTX_ERR_GRAPH);
    epctx_edit_undo(&model, 0);
    CHECK_TRUE(writes(&model, &b));
    epctx_model_close(&model);
    bytes_free(&b);
}

/* Views of edited models are compared field by field; what a group holds is not looked at. */
TEST(edited_views_compare) {
    static const struct {
        const char *a, *b; /* unknown fields before the others; at last one number in two types */
        bool equal;
    } cases[] = {{"\xa0\x06\x05", "\xa0\x06\x05", true},
                 {"\xa0\x06\x05", "\xa8\x06\x05", false},
                 {"\xa0\x06\x05", "\xa2\x06\x01x", false},
                 {"\xa0\x06\x05", "\xa0\x06\x04", false},
                 {"\xa2\x06\x01x", "\xa2\x06\x01x", true},
                 {"\xa2\x06\x01x", "\xa2\x06\x01y", false},
                 {"\xa3\x06\xa4\x06", "\xa3\x06\xa4\x06", false},
                 {"\xa0\x06\x81\x82\x84\x08", "\xa5\x06\x01\x01\x01\x01", false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        epctx_model models[2];
        bytes b[2];
        for (int k = 0; k < 2; k++) {
            const char *first = k == 0 ? cases[i].a : cases[i].b;
            b[k] = (bytes){0};
            bytes_add(&b[k], first, strlen(first));
            put_int(&b[k], 1, 8);
            CHECK_INT(epctx_model_open_memory(&models[k], b[k].data, b[k].size, NULL, NULL),
                      EPCTX_OK);
        }
        for (int version = 9; version > 7; version--) /* there and back */
            CHECK_INT(epctx_edit_set_field_int(&models[0], epctx_model_root(&models[0]), 1, version,
                                               NULL),
                      EPCTX_OK);
        for (int k = 0; k < 2; k++)
            CHECK(epctx_view_equal(epctx_model_root(&models[k]),
                                   epctx_model_root(&models[1 - k])) == cases[i].equal,
                  "case %zu, turn %d", i, k);
        for (int k = 0; k < 2; k++) {
            epctx_model_close(&models[k]);
            bytes_free(&b[k]);
        }
    }
}

/* Views from before the first edit serve in any order, though the search for a field starts where
 * the last one was found. */
TEST(edits_backwards) {
    bytes graph = {0}, node = new_node("Op", "", "n", "x", "y");
    epctx_view attrs[3];
    epctx_cursor it;
    epctx_attr_view attr;
    epctx_model model;
    epctx_error error;
    bytes b;
    for (int i = 0; i < 3; i++) {
        bytes a = {0};
        char name[] = "a";
        name[0] = (char)('a' + i);
        put_str(&a, 1, name);
        put_int(&a, 3, 1);
        put_int(&a, 20, EPCTX_ATTR_INT);
        put_child(&node, 5, &a);
    }
    put_child(&graph, 1, &node);
    b = new_model(&graph);
    CHECK_OK(epctx_model_open_memory(&model, b.data, b.size, NULL, &error), error);
    it = epctx_view_fields(node_at(&model, 0).view, 5);
    for (int i = 0; i < 3; i++) CHECK_TRUE(epctx_next_view(&it, &attrs[i]));
    for (int i = 3; i-- > 0;)
        CHECK_OK(epctx_edit_set_field_int(&model, attrs[i], 3, 10 + i, &error), error);
    it = epctx_view_fields(node_at(&model, 0).view, 5);
    for (int i = 0; i < 3; i++) {
        CHECK_TRUE(epctx_next_attr(&it, &attr));
        CHECK_INT(attr.i, 10 + i);
    }
    epctx_model_close(&model);
    bytes_free(&b);
}

/* Many imports of one domain go in one pass: linear, and all or none. */
TEST(many_opsets_of_a_domain) {
    enum { COUNT = 200000 };
    bytes graph = {0}, b;
    epctx_model model;
    put_str(&graph, 2, "g");
    b = new_model(&graph);
    for (int i = 0; i < COUNT; i++) put_data(&b, 8, "", 0);
    CHECK_INT(epctx_model_open_memory(&model, b.data, b.size, NULL, NULL), EPCTX_OK);
    CHECK_INT(epctx_edit_remove_opset(&model, epctx_str_of(""), NULL), EPCTX_OK);
    CHECK_TRUE(epctx_model_size(&model) < 100);
    epctx_edit_undo(&model, 0);
    CHECK_TRUE(writes(&model, &b));
    epctx_model_close(&model);
    bytes_free(&b);
}

/* Names that are there already, prefixes that meet one, a name buffer without room. */
TEST(names_that_stay) {
    char folder[TEST_TEMP], path[200], command[400], name[200] = "x";
    epctx_model model;
    epctx_io io;
    epctx_error error;
    epctx_prefix_opts opts = {0};
    epctx_write_opts write;
    epctx_str part2 = {"part2", 5};
    bytes b;
    CHECK_TRUE(open_rich(&model, &b, &io, NULL, false));
    CHECK_INT(epctx_node_rename(&model, node_at(&model, 2).view, part2, NULL, &error), EPCTX_OK);
    CHECK_UINT(epctx_edit_mark(&model), 0);
    CHECK_INT(
        epctx_node_rename(&model, node_at(&model, 2).view, epctx_str_of("loop"), NULL, &error),
        EPCTX_ERR_EXISTS);
    CHECK_INT(epctx_edit_prefix(&model, epctx_str_of(""), NULL, NULL, &error), EPCTX_ERR_ARG);
    CHECK_HAS(error.message, "the prefix is empty");
    opts.one_graph = true;
    CHECK_INT(epctx_edit_set_field_str(&model, node_at(&model, 3).view, 3, epctx_str_of("a_part2"),
                                       &error),
              EPCTX_OK);
    CHECK_INT(epctx_edit_prefix(&model, epctx_str_of("a_"), &opts, NULL, &error), EPCTX_ERR_EXISTS);
    CHECK_HAS(error.message, "cannot be renamed to 'a_part2'");
    epctx_model_close(&model);
    bytes_free(&b);
    CHECK_TRUE(test_temp(folder));
    snprintf(path, sizeof path, "%s/m.onnx", folder);
    snprintf(command, sizeof command,
             "cd %s && touch m.onnx m.onnx~ && seq 2 999 | sed 's/^/m.onnx~/' | xargs touch",
             folder);
    CHECK_TRUE(system(command) == 0);
    b = sample();
    memset(&write, 0, sizeof write);
    write.overwrite = EPCTX_OVERWRITE_BACKUP;
    write.backup = name;
    write.backup_capacity = sizeof name;
    CHECK_INT(epctx_model_open_memory(&model, b.data, b.size, NULL, NULL), EPCTX_OK);
    CHECK_INT(epctx_model_write_file(&model, path, &write, &error), EPCTX_ERR_EXISTS);
    CHECK_HAS(error.message, "has 999 backups already");
    CHECK_STR(name, "");
    epctx_model_close(&model);
    bytes_free(&b);
    CHECK_TRUE(folder_names(folder, true) != NULL);
}

static epctx_status rich_edit(epctx_model *model, int kind) {
    epctx_str mine = {"mine", 4}, name = {"p_", 2};
    epctx_function_view function;
    epctx_cursor it = epctx_model_functions(model);
    epctx_name_opts all = {0};
    epctx_prefix_opts alone = {0};
    all.any_io = all.one_graph = true;
    alone.one_graph = true;
    switch (kind) {
    case 0: return epctx_edit_remove_opset(model, mine, NULL);
    case 1: return rename_one(model, no_view, "x", "free", NULL, NULL);
    case 2:
        if (!epctx_next_function(&it, &function)) return EPCTX_ERR_BACKEND;
        return rename_one(model, function.view, "p", "free", NULL, NULL);
    case 3: return epctx_node_rename(model, node_at(model, 2).view, mine, &all, NULL);
    case 4: return epctx_edit_prefix(model, name, &alone, NULL, NULL);
    case 5:
        return epctx_edit_put_copy(model, epctx_model_graph(model).view, 1, node_at(model, 3).view,
                                   no_view, NULL, NULL);
    case 6: return rename_one(model, no_view, "w", "free", NULL, NULL);
    default:
        return epctx_edit_copy_attr(model, node_at(model, 0).view, node_at(model, 3).view, NULL);
    }
}

/* Whichever allocation fails: NOMEM, and the bytes are as they were. */
TEST(allocator_fails_with_everything) {
    for (int turn = 0; turn < 14; turn++) {
        int kind = turn % 7;
        bool done = false;
        bytes whole = {0};
        for (size_t n = 0; !done && n < 5000; n++) {
            epctx_status status;
            counting c = {0};
            epctx_allocator allocator = counting_allocator(&c);
            epctx_model model;
            epctx_io io;
            bytes b;
            CHECK_TRUE(open_rich(&model, &b, &io, &allocator, false));
            while (model.arena.left >= 32) CHECK_TRUE(epctx_arena_alloc(&model.arena, 32) != NULL);
            c.fail_at = n > 0 ? c.calls + n : 0;
            c.once = turn >= 7; /* or with all that follow */
            status = rich_edit(&model, kind);
            CHECK(status == EPCTX_OK || status == EPCTX_ERR_NOMEM, "edit %d: %s", kind,
                  epctx_status_name(status));
            done = n > 0 && c.calls < c.fail_at;
            c.fail_at = 0;
            if (n == 0) whole = written(&model);
            CHECK(writes(&model, status == EPCTX_OK ? &whole : &b),
                  status == EPCTX_OK ? "edit %d is not whole" : "edit %d left traces", kind);
            epctx_model_close(&model);
            CHECK_UINT(c.alive, 0);
            bytes_free(&b);
        }
        bytes_free(&whole);
        CHECK(done, "edit %d never ends", kind);
    }
    for (size_t n = 1; n < 100; n++) {
        counting c = {0};
        epctx_allocator allocator = counting_allocator(&c);
        epctx_open_opts opts = {0};
        epctx_model model;
        epctx_status status;
        opts.allocator = &allocator;
        c.fail_at = n;
        status = epctx_model_new(&model, 8, &opts, NULL);
        if (status == EPCTX_OK) epctx_model_close(&model);
        CHECK_UINT(c.alive, 0);
    }
}

/* A model from nothing, and a main graph that goes and comes back. */
TEST(new_models) {
    epctx_model model, other;
    bytes b = nested(), out;
    epctx_error error;
    epctx_view graph;
    CHECK_INT(epctx_model_open_memory(&other, b.data, b.size, NULL, NULL), EPCTX_OK);
    CHECK_INT(epctx_model_new(&model, 10, NULL, &error), EPCTX_OK);
    CHECK_INT(epctx_model_read(&model).ir_version, 10);
    CHECK_INT(epctx_edit_remove(&model, epctx_model_graph(&model).view, &error), EPCTX_OK);
    CHECK_TRUE(!epctx_model_has_graph(&model));
    CHECK_INT(put_simple(&model, "nowhere", no_view), EPCTX_ERR_GRAPH);
    CHECK_INT(epctx_edit_put_copy(&model, epctx_model_read(&model).view, 7,
                                  epctx_model_graph(&other).view, no_view, &graph, &error),
              EPCTX_OK);
    CHECK_STR(node_names(&model), "branch");
    CHECK_INT(put_simple(&model, "here", no_view), EPCTX_OK);
    CHECK_STR(node_names(&model), "branch,here");
    CHECK_STR(node_names(&other), "branch");
    out = written(&model);
    CHECK_TRUE(bytes_contain(&out, "in_else", 7));
    bytes_free(&out);
    epctx_edit_undo(&model, 0);
    CHECK_TRUE(epctx_model_has_graph(&model));
    CHECK_STR(node_names(&model), "");
    epctx_model_close(&model);
    epctx_model_close(&other);
    bytes_free(&b);
}

/* Names that are keys inside a binary: of nodes and of values at them. */
TEST(names_of_epnodes) {
    static const epctx_str x[] = {{"x", 1}}, image[] = {{"image", 5}};
    static const char *const sources[] = {"QNN", "EpctxNpuExecutionProvider"};
    for (int nodes = 1; nodes <= 2; nodes++) {
        for (int npu = 0; npu < 2; npu++) {
            for (int embed = 0; embed < 2; embed++) {
                bytes graph = {0}, b;
                epctx_name_opts opts = {0};
                epctx_model model;
                epctx_error error;
                size_t count;
                bool free_name = npu; /* of the others nobody knows what is in the binary */
                for (int i = 0; i < nodes; i++) {
                    bytes node = new_node("EPContext", "com.microsoft", i ? "second" : "first", "x",
                                          i ? "z" : "y");
                    add_attr_str(&node, "source", sources[npu], strlen(sources[npu]));
                    add_attr_int(&node, "embed_mode", embed);
                    add_attr_int(&node, "main_context", i == 0);
                    add_attr_str(&node, "ep_cache_context", "c.bin", i == 0 ? 5 : 0);
                    put_child(&graph, 1, &node);
                }
                add_node(&graph, "Relu", "other", "y", "r");
                b = new_model(&graph);
                CHECK_INT(epctx_model_open_memory(&model, b.data, b.size, NULL, NULL), EPCTX_OK);
                CHECK_INT(epctx_edit_prefix(&model, epctx_str_of("p_"), NULL, &count, &error),
                          free_name ? EPCTX_OK : EPCTX_ERR_UNSUPPORTED);
                CHECK_UINT(count, free_name ? nodes : 0);
                if (!free_name && nodes > 1)
                    CHECK_HAS(error.message, "several nodes share a context");
                CHECK_STR(node_names(&model),
                          !free_name   ? (nodes == 1 ? "first,other" : "first,second,other")
                          : nodes == 1 ? "p_first,other"
                                       : "p_first,p_second,other");
                epctx_edit_undo(&model, 0);
                opts.one_graph = true;
                CHECK_INT(
                    epctx_node_rename(&model, node_at(&model, 0).view, image[0], &opts, &error),
                    npu || nodes == 1 ? EPCTX_OK : EPCTX_ERR_UNSUPPORTED);
                CHECK_INT(epctx_node_rename(&model, node_at(&model, 0).view, epctx_str_of("other"),
                                            &opts, &error),
                          npu || nodes == 1 ? EPCTX_ERR_EXISTS : EPCTX_ERR_UNSUPPORTED);
                epctx_edit_undo(&model, 0);
                CHECK_INT(epctx_rename_values(&model, no_view, x, image, 1, NULL, NULL, &error),
                          npu ? EPCTX_OK : EPCTX_ERR_UNSUPPORTED);
                if (!npu) CHECK_HAS(error.message, "qnn finds it in the binary by name");
                opts.any_io = true;
                epctx_edit_undo(&model, 0);
                CHECK_INT(epctx_rename_values(&model, no_view, x, image, 1, &opts, NULL, &error),
                          EPCTX_OK);
                epctx_edit_undo(&model, 0);
                CHECK_TRUE(writes(&model, &b));
                epctx_model_close(&model);
                bytes_free(&b);
            }
        }
    }
}

TEST(attributes) {
    epctx_model model;
    bytes b = nested();
    epctx_error error;
    epctx_attr attr = {0};
    epctx_attr_view seen;
    epctx_cursor it;
    epctx_node_view node;
    CHECK_INT(epctx_model_open_memory(&model, b.data, b.size, NULL, NULL), EPCTX_OK);
    attr.name = epctx_str_of("then_branch");
    attr.type = EPCTX_ATTR_STRING;
    attr.s = epctx_str_of("now a string");
    CHECK_OK(epctx_edit_set_attr(&model, node_at(&model, 0).view, &attr, &error), error);
    node = node_at(&model, 0);
    it = epctx_view_node_attrs(&node);
    CHECK_TRUE(epctx_next_attr(&it, &seen) && epctx_str_is(seen.name, "then_branch"));
    CHECK_INT(seen.type, EPCTX_ATTR_STRING);
    CHECK_TRUE(epctx_str_is(seen.s, "now a string") && !has_text(&model, "in_then"));
    CHECK_INT(epctx_edit_remove_attr(&model, node.view, epctx_str_of("else_branch"), &error),
              EPCTX_OK);
    CHECK_TRUE(!has_text(&model, "in_else"));
    /* Every field that can hold a value goes with the old value. */
    {
        static const uint32_t numbers[] = {2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 14, 15, 21, 22, 23};
        for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
            bytes graph = {0}, made = new_node("Op", "", "node", "", ""), old = {0}, m;
            epctx_model one;
            put_str(&old, 1, "number");
            if (numbers[i] == 2)
                put_float(&old, 2, 1);
            else if (numbers[i] == 3)
                put_int(&old, 3, 1);
            else
                put_data(&old, numbers[i], "", 0);
            put_child(&made, 5, &old);
            put_child(&graph, 1, &made);
            m = new_model(&graph);
            CHECK_INT(epctx_model_open_memory(&one, m.data, m.size, NULL, NULL), EPCTX_OK);
            CHECK_INT(set_attr(&one, node_at(&one, 0).view, "number", EPCTX_ATTR_INT), EPCTX_OK);
            node = node_at(&one, 0);
            it = epctx_view_node_attrs(&node);
            CHECK_TRUE(epctx_next_attr(&it, &seen) && seen.i == 8);
            it = epctx_view_fields(seen.view, 0);
            {
                epctx_field field;
                size_t count = 0;
                while (epctx_next_field(&it, &field)) count++;
                CHECK(count == 3, "field %u stays beside the new value", numbers[i]);
            }
            epctx_model_close(&one);
            bytes_free(&m);
        }
    }
    attr.name = epctx_str_of("number");
    attr.type = EPCTX_ATTR_INT;
    attr.i = 7; /* what it is already */
    CHECK_INT(epctx_edit_set_attr(&model, node_at(&model, 0).view, &attr, &error), EPCTX_OK);
    epctx_edit_undo(&model, 0);
    CHECK_INT(epctx_edit_set_attr(&model, node_at(&model, 0).view, &attr, &error), EPCTX_OK);
    CHECK_UINT(epctx_edit_mark(&model), 0);
    CHECK_TRUE(writes(&model, &b));
    epctx_model_close(&model);
    bytes_free(&b);
}

/* Fields of another model, and of this one, changed or not. */
TEST(copies) {
    epctx_model model, other;
    bytes b = nested(), c;
    epctx_view placed, root;
    epctx_error error;
    CHECK_INT(epctx_model_open_memory(&model, b.data, b.size, NULL, NULL), EPCTX_OK);
    CHECK_TRUE(open_sample(&other, &c));
    CHECK_OK(epctx_edit_put_copy(&model, epctx_model_graph(&model).view, 1, node_at(&other, 1).view,
                                 epctx_model_graph(&model).view, &placed, &error),
             error);
    CHECK_STR(node_names(&model), "second,branch");
    CHECK_INT(epctx_edit_set_field_str(&model, placed, 3, epctx_str_of("again"), &error), EPCTX_OK);
    CHECK_INT(epctx_edit_put_copy(&model, epctx_model_graph(&model).view, 1,
                                  node_at(&model, 0).view, no_view, NULL, &error),
              EPCTX_OK);
    CHECK_STR(node_names(&model), "again,branch,again");
    {
        size_t mark = epctx_edit_mark(&model);
        epctx_view gone;
        CHECK_INT(epctx_edit_put_copy(&model, main_graph(&model), 1, node_at(&model, 0).view,
                                      no_view, &gone, &error),
                  EPCTX_OK);
        epctx_edit_undo(&model, mark);
        CHECK_INT(epctx_edit_remove(&model, gone, &error), EPCTX_ERR_ARG);
    }
    CHECK_INT(epctx_edit_move(&model, node_at(&model, 0).view, no_view, NULL, &error), EPCTX_OK);
    CHECK_STR(node_names(&model), "branch,again,again");
    root = epctx_model_read(&model).view;
    CHECK_INT(epctx_edit_put_copy(&model, root, 7, root, no_view, NULL, &error), EPCTX_ERR_ARG);
    CHECK_INT(epctx_edit_put_copy(&model, root, 14, node_at(&model, 0).view, no_view, NULL, &error),
              EPCTX_OK);
    epctx_edit_undo(&model, 0);
    CHECK_TRUE(writes(&model, &b));
    epctx_model_close(&other);
    epctx_model_close(&model);
    bytes_free(&b);
    bytes_free(&c);
}

/* A stream that runs out of room, at every size: an error, and nothing behind the end. */
TEST(stream_full) {
    epctx_model model;
    bytes b;
    CHECK_TRUE(open_sample(&model, &b));
    CHECK_INT(put_simple(&model, "new", no_view), EPCTX_OK);
    {
        bytes whole = written(&model);
        uint8_t *out = (uint8_t *)malloc(whole.size + 1);
        CHECK_TRUE(out != NULL);
        for (size_t size = 0; size <= whole.size; size++) {
            pb_ostream_t stream = pb_ostream_from_buffer(out, size);
            epctx_error error;
            epctx_status status = epctx_model_write_stream(&model, &stream, &error);
            CHECK((status == EPCTX_OK) == (size == whole.size), "%zu of %zu bytes: %s", size,
                  whole.size, error.message);
        }
        CHECK_MEM(out, whole.size, whole.data, whole.size);
        free(out);
        bytes_free(&whole);
    }
    epctx_model_close(&model);
    bytes_free(&b);
}

/* Written over its own source, which stays mapped until the end. */
TEST(write_over_source) {
    char folder[TEST_TEMP], path[200];
    FILE *file;
    bytes b = sample();
    epctx_model model;
    epctx_error error;
    CHECK_TRUE(test_temp(folder));
    snprintf(path, sizeof path, "%s/m.onnx", folder);
    file = fopen(path, "wb");
    CHECK_TRUE(file != NULL && fwrite(b.data, 1, b.size, file) == b.size && fclose(file) == 0);
    CHECK_INT(epctx_model_open_file(&model, path, NULL, &error), EPCTX_OK);
    CHECK_INT(put_simple(&model, "new", no_view), EPCTX_OK);
    CHECK_OK(epctx_model_write_file(&model, path, NULL, &error), error);
    CHECK_STR(node_names(&model), "first,second,third,new");
    epctx_edit_undo(&model, 0);
    CHECK_TRUE(writes(&model, &b));
    epctx_model_close(&model);
    CHECK_INT(epctx_model_open_file(&model, path, NULL, &error), EPCTX_OK);
    CHECK_STR(node_names(&model), "first,second,third,new");
    CHECK_TRUE(epctx_model_write_file(&model, "/no/such/folder/x.onnx", NULL, &error) != EPCTX_OK);
    CHECK_HAS(error.message, "/no/such/folder/x.onnx");
    epctx_model_close(&model);
    unlink(path);
    rmdir(folder);
    bytes_free(&b);
}

/* -- overwriting -- */

/* Fails at one call of those that change the disk. */
typedef struct flaky {
    const epctx_io *files;
    int calls, fail_at;
    bool dies; /* instead of failing */
} flaky;

static bool flaky_fails(flaky *f, epctx_error *error) {
    if (++f->calls != f->fail_at) return false;
    if (f->dies) _exit(9);
    epctx_fail(error, EPCTX_ERR_IO, "the injected failure");
    return true;
}

static epctx_status flaky_create(void *user, const char *folder, const char *name,
                                 epctx_io_file *file, epctx_error *error) {
    flaky *f = (flaky *)user;
    return flaky_fails(f, error) ? EPCTX_ERR_IO
                                 : f->files->create_fn(NULL, folder, name, file, error);
}

static epctx_status flaky_write(void *user, epctx_io_file *file, const void *data, size_t size,
                                epctx_error *error) {
    flaky *f = (flaky *)user;
    return flaky_fails(f, error) ? EPCTX_ERR_IO : f->files->write_fn(NULL, file, data, size, error);
}

static epctx_status flaky_sync(void *user, epctx_io_file *file, epctx_error *error) {
    flaky *f = (flaky *)user;
    return flaky_fails(f, error) ? EPCTX_ERR_IO : f->files->sync_fn(NULL, file, error);
}

/* Fails before or after it is done. */
static epctx_status flaky_commit(void *user, epctx_io_file *file, epctx_overwrite overwrite,
                                 epctx_error *error) {
    flaky *f = (flaky *)user;
    epctx_status status;
    if (flaky_fails(f, error)) return EPCTX_ERR_IO;
    status = f->files->commit_fn(NULL, file, overwrite, error);
    return status == EPCTX_OK && !f->dies && flaky_fails(f, error) ? EPCTX_ERR_IO : status;
}

static epctx_io flaky_io(flaky *f) {
    epctx_io io = *epctx_io_files();
    f->files = epctx_io_files();
    io.user = f;
    io.create_fn = flaky_create;
    io.write_fn = flaky_write;
    io.sync_fn = flaky_sync;
    io.commit_fn = flaky_commit;
    return io;
}

/* Names in a folder, sorted; the folder is emptied and removed with `empty`. */
static const char *folder_names(const char *folder, bool empty) {
    static char names[200];
    char command[300];
    FILE *pipe;
    size_t size;
    snprintf(command, sizeof command,
             empty ? "rm -rf '%s'" : "cd '%s' && LC_ALL=C ls | tr '\\n' ' '", folder);
    pipe = popen(command, "r");
    if (pipe == NULL) return NULL;
    size = fread(names, 1, sizeof names - 1, pipe);
    names[size] = '\0';
    return pclose(pipe) == 0 ? names : NULL;
}

static bool file_is(const char *folder, const char *name, const bytes *want) {
    char path[100];
    epctx_mapping mapping;
    bool same;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (epctx_io_files()->map_fn(NULL, NULL, path, false, &mapping, NULL) != EPCTX_OK) return false;
    same = mapping.size == want->size && memcmp(mapping.data, want->data, want->size) == 0;
    epctx_io_files()->unmap_fn(NULL, &mapping);
    return same;
}

TEST(overwriting) {
    char folder[TEST_TEMP], path[200], backup[200];
    bytes b = sample(), edited;
    epctx_write_opts opts = {0};
    epctx_model model;
    epctx_error error;
    opts.backup = backup;
    opts.backup_capacity = sizeof backup;
    CHECK_TRUE(test_temp(folder));
    snprintf(path, sizeof path, "%s/m.onnx", folder);
    CHECK_INT(epctx_model_open_memory(&model, b.data, b.size, NULL, NULL), EPCTX_OK);
    CHECK_INT(epctx_model_write_file(&model, path, &opts, &error), EPCTX_OK);
    CHECK_INT(put_simple(&model, "new", no_view), EPCTX_OK);
    edited = written(&model);
    opts.overwrite = EPCTX_OVERWRITE_FAIL;
    CHECK_INT(epctx_model_write_file(&model, path, &opts, &error), EPCTX_ERR_EXISTS);
    CHECK_HAS(error.message, path);
    CHECK_TRUE(file_is(folder, "m.onnx", &b));
    opts.overwrite = EPCTX_OVERWRITE_BACKUP;
    CHECK_OK(epctx_model_write_file(&model, path, &opts, &error), error);
    CHECK_HAS(backup, "/m.onnx~");
    CHECK_TRUE(file_is(folder, "m.onnx", &edited) && file_is(folder, "m.onnx~", &b));
    CHECK_INT(epctx_model_write_file(&model, path, &opts, &error), EPCTX_OK);
    CHECK_STR(folder_names(folder, false), "m.onnx m.onnx~ m.onnx~2 ");
    CHECK_TRUE(file_is(folder, "m.onnx~", &b) && file_is(folder, "m.onnx~2", &edited));
    CHECK_TRUE(folder_names(folder, true) != NULL);
    epctx_model_close(&model);
    bytes_free(&b);
    bytes_free(&edited);
}

/* Whichever call fails, the file is the old or the new one, whole, and nothing else is left but a
 * backup of what was replaced. */
TEST(failing_writes) {
    bytes b = sample(), edited = {0};
    for (int run = 0; run < 400; run++) {
        char folder[TEST_TEMP], path[200];
        flaky f = {0};
        epctx_io io = flaky_io(&f);
        epctx_open_opts open_opts = {0};
        epctx_write_opts opts = {0};
        epctx_model model;
        epctx_error error;
        epctx_status status;
        const char *names;
        open_opts.io = &io;
        opts.overwrite = run % 2 == 0 ? EPCTX_OVERWRITE_BACKUP : EPCTX_OVERWRITE_REPLACE;
        CHECK_TRUE(test_temp(folder));
        snprintf(path, sizeof path, "%s/m.onnx", folder);
        CHECK_INT(epctx_model_open_memory(&model, b.data, b.size, &open_opts, NULL), EPCTX_OK);
        CHECK_INT(epctx_model_write_file(&model, path, NULL, NULL), EPCTX_OK);
        CHECK_INT(put_simple(&model, "new", no_view), EPCTX_OK);
        bytes_free(&edited);
        edited = written(&model);
        f.calls = 0;
        f.fail_at = run / 2 + 1;
        status = epctx_model_write_file(&model, path, &opts, &error);
        names = folder_names(folder, false);
        if (status != EPCTX_OK) {
            CHECK_HAS(error.message, "the injected failure");
            CHECK(file_is(folder, "m.onnx", &b), "run %d: the old file is gone", run);
            CHECK_STR(names, "m.onnx ");
        } else {
            CHECK(file_is(folder, "m.onnx", &edited), "run %d: the new file is not there", run);
            CHECK_STR(names, run % 2 == 0 ? "m.onnx m.onnx~ " : "m.onnx ");
            CHECK(run % 2 != 0 || file_is(folder, "m.onnx~", &b), "run %d: no backup", run);
        }
        CHECK_TRUE(folder_names(folder, true) != NULL);
        epctx_model_close(&model);
        if (status == EPCTX_OK && run % 2 == 0) {
            CHECK_TRUE(run >= 10);
            break;
        }
    }
    bytes_free(&b);
    bytes_free(&edited);
}

/* The process dies at any call that changes the disk: the file is the old or the new one, whole. */
TEST(killed_while_writing) {
    bytes b = sample(), edited;
    bool done = false;
    for (int run = 0; !done; run++) {
        char folder[TEST_TEMP], path[200];
        flaky f = {0};
        epctx_io io = flaky_io(&f);
        epctx_open_opts open_opts = {0};
        epctx_write_opts opts = {0};
        epctx_model model;
        int child, result = 0;
        open_opts.io = &io;
        opts.overwrite = run % 2 ? EPCTX_OVERWRITE_BACKUP : EPCTX_OVERWRITE_REPLACE;
        CHECK_TRUE(run < 100 && test_temp(folder));
        snprintf(path, sizeof path, "%s/m.onnx", folder);
        CHECK_INT(epctx_model_open_memory(&model, b.data, b.size, &open_opts, NULL), EPCTX_OK);
        CHECK_INT(epctx_model_write_file(&model, path, NULL, NULL), EPCTX_OK);
        CHECK_INT(put_simple(&model, "new", no_view), EPCTX_OK);
        edited = written(&model);
        f.calls = 0;
        f.dies = true;
        f.fail_at = run / 2 + 1;
        child = fork();
        CHECK_TRUE(child >= 0);
        if (child == 0)
            _exit(epctx_model_write_file(&model, path, &opts, NULL) == EPCTX_OK ? 0 : 1);
        CHECK_TRUE(waitpid(child, &result, 0) == child && WIFEXITED(result));
        done = WEXITSTATUS(result) == 0 && run % 2;
        CHECK_TRUE(WEXITSTATUS(result) == 0 || WEXITSTATUS(result) == 9);
        CHECK(file_is(folder, "m.onnx", WEXITSTATUS(result) == 0 ? &edited : &b),
              "death at call %d: the file is neither the old nor the new one", f.fail_at);
        CHECK_TRUE(folder_names(folder, true) != NULL);
        epctx_model_close(&model);
        bytes_free(&edited);
    }
    bytes_free(&b);
}

/* More than protobuf readers take: refused before anything is written. The payload is never
 * touched, so it need not exist. */
TEST(huge_models) {
    char folder[TEST_TEMP], path[200];
    bytes b = sample();
    epctx_model model;
    epctx_error error;
    epctx_view payload = {NULL, NULL, 0};
    CHECK_TRUE(test_temp(folder));
    snprintf(path, sizeof path, "%s/m.onnx", folder);
    CHECK_INT(epctx_model_open_memory(&model, b.data, b.size, NULL, NULL), EPCTX_OK);
    payload.data = b.data;
    payload.size = (size_t)EPCTX_MODEL_MAX;
    CHECK_INT(
        epctx_edit_put_copy(&model, node_at(&model, 0).view, 6, payload, no_view, NULL, &error),
        EPCTX_OK);
    CHECK_INT(epctx_model_write_file(&model, path, NULL, &error), EPCTX_ERR_LIMIT);
    CHECK_HAS(error.message, "2147483647");
    CHECK_STR(folder_names(folder, false), "");
    CHECK_TRUE(folder_names(folder, true) != NULL);
    epctx_model_close(&model);
    bytes_free(&b);
}

/* Equal bytes under another type, and payloads that were built: both are other values. */
TEST(values_that_look_alike) {
    static const int64_t five[] = {5}, two[] = {2};
    static const float data[2][2] = {{1, 2}, {3, 4}};
    epctx_str text = {"text", 4};
    epctx_model model;
    epctx_attr attr = {0};
    epctx_tensor tensor = {0};
    epctx_error error;
    epctx_view node;
    epctx_attr_view view;
    epctx_cursor it;
    bytes b;
    CHECK_TRUE(open_sample(&model, &b));
    node = node_at(&model, 1).view;
    attr.name = epctx_str_of("alike");
    attr.i = 5;
    attr.s = text;
    attr.t = &tensor;
    attr.count = 1;
    attr.ints = five;
    attr.strings = &text;
    tensor.elem_type = EPCTX_ONNX_FLOAT;
    tensor.dims = two;
    tensor.rank = 1;
    tensor.size = sizeof data[0];
    for (int i = 0; i < 6; i++) {
        static const epctx_attr_type types[] = {EPCTX_ATTR_INT,    EPCTX_ATTR_INTS,
                                                EPCTX_ATTR_STRING, EPCTX_ATTR_STRINGS,
                                                EPCTX_ATTR_TENSOR, EPCTX_ATTR_TENSOR};
        static const uint32_t fields[] = {3, 8, 4, 9, 5, 5};
        epctx_field field;
        attr.type = types[i];
        tensor.data = (const uint8_t *)data[i % 2];
        CHECK_OK(epctx_edit_set_attr(&model, node, &attr, &error), error);
        it = epctx_view_node_attrs(&(epctx_node_view){.view = node});
        while (epctx_next_attr(&it, &view) && !epctx_str_is(view.name, "alike")) {
        }
        CHECK_TRUE(epctx_str_is(view.name, "alike"));
        CHECK_INT(view.type, types[i]);
        it = epctx_view_fields(view.view, fields[i]);
        CHECK(epctx_next_field(&it, &field), "value %d is not there", i);
        if (fields[i] == 5) {
            bytes now = written(&model);
            CHECK(bytes_contain(&now, data[i % 2], sizeof data[0]), "the tensor is the old one");
            bytes_free(&now);
        }
    }
    epctx_edit_undo(&model, 0);
    CHECK_TRUE(writes(&model, &b));
    epctx_model_close(&model);
    bytes_free(&b);
}

/* A string is no message, whatever its bytes say. */
TEST(strings_are_no_messages) {
    epctx_model model;
    epctx_error error;
    epctx_cursor it;
    epctx_field name;
    bytes b;
    CHECK_TRUE(open_sample(&model, &b));
    it = epctx_view_fields(node_at(&model, 1).view, 4);
    CHECK_TRUE(epctx_next_field(&it, &name));
    CHECK_INT(epctx_edit_set_field_int(&model, name.body, 1, 5, &error), EPCTX_ERR_ARG);
    CHECK_HAS(error.message, "a string or number");
    CHECK_TRUE(writes(&model, &b));
    epctx_model_close(&model);
    bytes_free(&b);
}

/* A string may hold a message, and one that could be read but not edited is not copied from it. */
TEST(copies_with_doubled_fields) {
    bytes graph = {0}, node, attr = {0}, b;
    epctx_model model;
    epctx_error error;
    epctx_node_view view;
    epctx_cursor it;
    epctx_attr_view holder;
    put_str(&attr, 1, "twice");
    put_int(&attr, 20, EPCTX_ATTR_TENSOR);
    put_data(&attr, 5, "", 0);
    put_data(&attr, 5, "", 0);
    node = new_node("Relu", "", "n", "x", "y");
    add_attr_str(&node, "once", attr.data, attr.size - 2);
    add_attr_str(&node, "twice", attr.data, attr.size);
    put_child(&graph, 1, &node);
    b = new_model(&graph);
    CHECK_INT(epctx_model_open_memory(&model, b.data, b.size, NULL, NULL), EPCTX_OK);
    view = node_at(&model, 0);
    it = epctx_view_node_attrs(&view);
    for (int i = 0; i < 2; i++) {
        epctx_view other = no_view;
        CHECK_TRUE(epctx_next_attr(&it, &holder));
        other.data = (const uint8_t *)holder.s.data;
        other.size = holder.s.size;
        CHECK_INT(epctx_edit_put_copy(&model, view.view, 5, other, no_view, NULL, &error),
                  i == 0 ? EPCTX_OK : EPCTX_ERR_GRAPH);
        if (i == 1) CHECK_HAS(error.message, "occurs twice");
        epctx_edit_undo(&model, 0);
    }
    CHECK_TRUE(writes(&model, &b));
    epctx_model_close(&model);
    bytes_free(&attr);
    bytes_free(&b);
}

/* One graph in each binary, but two nodes that name the same one. */
TEST(names_of_nodes_of_one_binary) {
    for (int same = 0; same < 2; same++) {
        bytes graph = {0}, b;
        epctx_name_opts opts = {0};
        epctx_prefix_opts prefix = {0};
        epctx_model model;
        epctx_error error;
        add_epnode(&graph, "first", "x", "y", 1, 0, "QNN", "p", "a.bin", 5);
        add_epnode(&graph, "second", "x", "z", 1, 0, "QNN", "q", same ? "a.bin" : "b.bin", 5);
        b = new_model(&graph);
        opts.one_graph = prefix.one_graph = true;
        CHECK_INT(epctx_model_open_memory(&model, b.data, b.size, NULL, NULL), EPCTX_OK);
        CHECK_INT(
            epctx_node_rename(&model, node_at(&model, 0).view, epctx_str_of("new"), &opts, &error),
            same ? EPCTX_ERR_UNSUPPORTED : EPCTX_OK);
        if (same) CHECK_HAS(error.message, "several nodes name this binary");
        epctx_edit_undo(&model, 0);
        CHECK_INT(epctx_edit_prefix(&model, epctx_str_of("p_"), &prefix, NULL, &error),
                  same ? EPCTX_ERR_UNSUPPORTED : EPCTX_OK);
        if (same) {
            CHECK_HAS(error.message, "several nodes name this binary");
            CHECK_STR(error.node, "second");
        }
        CHECK_STR(node_names(&model), same ? "first,second" : "p_first,p_second");
        epctx_model_close(&model);
        bytes_free(&b);
    }
}

/* What an output may be: a file that is not there, or one that may be replaced, in a folder. */
TEST(places_of_outputs) {
    static const struct {
        const char *name;
        epctx_overwrite overwrite;
        epctx_status want;
        const char *text;
    } cases[] = {
        {"new", EPCTX_OVERWRITE_FAIL, EPCTX_OK, ""},
        {"file", EPCTX_OVERWRITE_FAIL, EPCTX_ERR_EXISTS, "exists already"},
        {"file", EPCTX_OVERWRITE_REPLACE, EPCTX_OK, ""},
        {"none/new", EPCTX_OVERWRITE_FAIL, EPCTX_ERR_NOT_FOUND, "its folder does not exist"},
        {"file/new", EPCTX_OVERWRITE_REPLACE, EPCTX_ERR_NOT_FOUND, "its folder does not exist"},
        {"sub", EPCTX_OVERWRITE_REPLACE, EPCTX_ERR_PATH, "is a folder or a device"},
        {"sub", EPCTX_OVERWRITE_FAIL, EPCTX_ERR_PATH, "is a folder or a device"},
    };
    char folder[TEST_TEMP], path[200], command[400];
    CHECK_TRUE(test_temp(folder));
    snprintf(command, sizeof command, "mkdir %s/sub && touch %s/file", folder, folder);
    CHECK_INT(system(command), 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        epctx_error error;
        epctx_status status;
        snprintf(path, sizeof path, "%s/%s", folder, cases[i].name);
        status = epctx_output_check(epctx_io_files(), path, cases[i].overwrite, &error);
        CHECK(status == cases[i].want, "%s: %s %s", cases[i].name, epctx_status_name(status),
              error.message);
        CHECK_HAS(error.message, cases[i].text);
    }
    snprintf(command, sizeof command, "rm -r %s", folder);
    CHECK_INT(system(command), 0);
}

/* A pipe or a device is not replaced by a file. */
TEST(write_over_pipe) {
    char folder[TEST_TEMP];
    char path[200];
    struct stat info;
    bytes b = sample();
    epctx_model model;
    epctx_error error;
    CHECK_TRUE(test_temp(folder));
    snprintf(path, sizeof path, "%s/pipe", folder);
    CHECK_TRUE(mkfifo(path, 0600) == 0);
    CHECK_INT(epctx_model_open_memory(&model, b.data, b.size, NULL, NULL), EPCTX_OK);
    CHECK_INT(epctx_model_write_file(&model, path, NULL, &error), EPCTX_ERR_PATH);
    CHECK_HAS(error.message, "pipe");
    CHECK_TRUE(stat(path, &info) == 0 && S_ISFIFO(info.st_mode));
    CHECK_TRUE(unlink(path) == 0 && rmdir(folder) == 0);
    epctx_model_close(&model);
    bytes_free(&b);
}

/* -- dimensions -- */

/* A value whose dimensions are words: "N" a name, "4" a number, "" nothing. NULL ends them. */
static void add_open(bytes *graph, uint32_t number, const char *name, const char *const *dims) {
    bytes shape = {0};
    const char *const *d;
    for (d = dims; d != NULL && *d != NULL; d++) {
        bytes dim = {0};
        if (**d == '-' || (**d >= '0' && **d <= '9')) {
            put_int(&dim, 1, atoi(*d));
        } else if (**d != '\0') {
            put_str(&dim, 2, *d);
            put_str(&dim, 3, "DATA_BATCH");
        }
        put_child(&shape, 1, &dim);
    }
    add_shaped(graph, number, name, EPCTX_ONNX_FLOAT, dims != NULL ? &shape : NULL);
}

/* x[N,4,,-1], y without a shape -> z[N,M], with v[M,N] and in two bodies w[N]. */
static bytes open_dims(void) {
    static const char *const x[] = {"N", "4", "", "-1", NULL}, *const z[] = {"N", "M", NULL},
                             *const v[] = {"M", "N", NULL}, *const w[] = {"N", NULL};
    bytes graph = {0}, body = {0}, node = new_node("If", "", "choice", "c", "o"), attr = {0};
    add_open(&body, GRAPH_VALUE, "w", w);
    put_str(&body, 2, "body");
    put_str(&attr, 1, "then_branch");
    put_child(&attr, 6, &body);
    put_int(&attr, 20, EPCTX_ATTR_GRAPH);
    put_child(&node, 5, &attr);
    add_open(&body, GRAPH_VALUE, "w", w);
    put_str(&attr, 1, "branches");
    put_child(&attr, 11, &body);
    put_int(&attr, 20, EPCTX_ATTR_GRAPHS);
    put_child(&node, 5, &attr);
    put_child(&graph, 1, &node);
    add_open(&graph, GRAPH_INPUT, "x", x);
    add_open(&graph, GRAPH_INPUT, "y", NULL);
    add_open(&graph, GRAPH_OUTPUT, "z", z);
    add_open(&graph, GRAPH_VALUE, "v", v);
    return new_model(&graph);
}

/* "N,4,?,-1" of a value; `number` is its field in the main graph. */
static const char *dims_of(const epctx_model *model, uint32_t number) {
    static char text[100];
    epctx_cursor it = epctx_view_fields(epctx_model_graph(model).view, number), dims;
    epctx_value_view value;
    epctx_dim dim;
    size_t used = 0;
    text[0] = '\0';
    if (!epctx_next_value(&it, &value)) return "none";
    dims = epctx_view_value_dims(&value);
    while (epctx_next_dim(&dims, &dim)) {
        const char *comma = used > 0 ? "," : "";
        if (dim.known)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%lld", comma,
                                     (long long)dim.value);
        else
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%.*s", comma,
                                     dim.param.size > 0 ? (int)dim.param.size : 1,
                                     dim.param.size > 0 ? dim.param.data : "?");
    }
    return text;
}

/* By name everywhere, or by the place in an input; all or nothing. */
TEST(dimensions_get_numbers) {
    static const struct {
        const char *name;
        int axis; /* -1: `name` is that of the dimension, else of the input */
        int64_t value;
        epctx_status want;
        size_t count;
        const char *x, *z, *v; /* dimensions; or what the message says */
    } cases[] = {
        {"N", -1, 3, EPCTX_OK, 5, "3,4,?,-1", "3,M", "M,3"},
        {"M", -1, 3, EPCTX_OK, 2, "N,4,?,-1", "N,3", "3,N"},
        {"x", 0, 5, EPCTX_OK, 5, "5,4,?,-1", "5,M", "M,5"},
        {"x", 1, 4, EPCTX_OK, 0, "N,4,?,-1", "N,M", "M,N"},
        {"x", 2, 7, EPCTX_OK, 1, "N,4,7,-1", "N,M", "M,N"},
        {"x", 3, 7, EPCTX_OK, 1, "N,4,?,7", "N,M", "M,N"},
        {"", -1, 3, EPCTX_ERR_NOT_FOUND, 0, "no dimension has the name ''", NULL, NULL},
        {"K", -1, 3, EPCTX_ERR_NOT_FOUND, 0, "no dimension has the name 'K'", NULL, NULL},
        {"N", -1, 0, EPCTX_ERR_ARG, 0, "1 or more, not 0", NULL, NULL},
        {"x", 0, -3, EPCTX_ERR_ARG, 0, "1 or more, not -3", NULL, NULL},
        {"x", 1, 5, EPCTX_ERR_GRAPH, 0, "1 of input 'x' is 4 and cannot be 5", NULL, NULL},
        {"x", 4, 5, EPCTX_ERR_NOT_FOUND, 0, "has 4 dimensions and no number 4", NULL, NULL},
        {"y", 0, 5, EPCTX_ERR_NOT_FOUND, 0, "input 'y' has no shape", NULL, NULL},
        {"z", 0, 5, EPCTX_ERR_NOT_FOUND, 0, "there is no graph input 'z'", NULL, NULL},
    };
    bytes b = open_dims();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        epctx_model model, again;
        epctx_error error;
        epctx_str name = epctx_str_of(cases[i].name);
        size_t count = 99, mark;
        epctx_status status;
        bytes out;
        CHECK_INT(epctx_model_open_memory(&model, b.data, b.size, NULL, NULL), EPCTX_OK);
        mark = epctx_edit_mark(&model);
        status = cases[i].axis < 0 ? epctx_fix_dim(&model, name, cases[i].value, &count, &error)
                                   : epctx_fix_input_dim(&model, name, (uint32_t)cases[i].axis,
                                                         cases[i].value, &count, &error);
        CHECK(status == cases[i].want, "case %zu: %s", i, error.message);
        CHECK_UINT(count, cases[i].count);
        out = written(&model);
        if (status != EPCTX_OK) {
            CHECK_HAS(error.message, cases[i].x);
            CHECK_TRUE(bytes_equal(&out, b.data, b.size));
        } else {
            CHECK_INT(epctx_model_open_memory(&again, out.data, out.size, NULL, NULL), EPCTX_OK);
            CHECK_STR(dims_of(&again, GRAPH_INPUT), cases[i].x);
            CHECK_STR(dims_of(&again, GRAPH_OUTPUT), cases[i].z);
            CHECK_STR(dims_of(&again, GRAPH_VALUE), cases[i].v);
            CHECK_TRUE(bytes_contain(&out, "DATA_BATCH", 10)); /* the denotation stays */
            epctx_model_close(&again);
            epctx_edit_undo(&model, mark);
            CHECK_TRUE(writes(&model, &b));
        }
        bytes_free(&out);
        epctx_model_close(&model);
    }
    bytes_free(&b);
}

static epctx_status run_fix_dim(epctx_model *a, epctx_model *b, epctx_error *error) {
    size_t count;
    epctx_status status = epctx_fix_dim(a, epctx_str_of("N"), 3, &count, error);
    (void)b;
    starve_say("%zu", count);
    return status;
}

/* Without memory, and in a model that cannot be edited, all stay as they are. */
TEST(dimensions_stay_open) {
    const epctx_str n = {"N", 1}, x = {"x", 1};
    bytes b = open_dims();
    starve_in in = {{&b, &b}, {NULL, NULL}};
    const char *wrong;
    epctx_error error;
    epctx_model model;
    size_t runs = 0;
    wrong = starve(run_fix_dim, &in, &runs);
    CHECK(wrong == NULL, "%s", wrong);
    put_data(&b, 7, "", 0);
    CHECK_INT(epctx_model_open_memory(&model, b.data, b.size, NULL, NULL), EPCTX_OK);
    CHECK_INT(epctx_fix_dim(&model, n, 3, NULL, &error), EPCTX_ERR_GRAPH);
    CHECK_HAS(error.message, "occurs twice");
    CHECK_INT(epctx_fix_input_dim(&model, x, 2, 3, NULL, &error), EPCTX_ERR_GRAPH);
    CHECK_HAS(error.message, "occurs twice");
    epctx_model_close(&model);
    bytes_free(&b);
}

int main(int argc, char **argv) {
    RUN(untouched);
    RUN(undo_restores);
    RUN(rest_survives);
    RUN(placing_nodes);
    RUN(remove_every_node);
    RUN(reads_like_reopened);
    RUN(edited_while_walked);
    RUN(metadata_and_opsets);
    RUN(length_width);
    RUN(random_scripts);
    RUN(allocator_fails);
    RUN(fixed_arena_full);
    RUN(bad_views);
    RUN(edits_in_subgraphs);
    RUN(rename_values);
    RUN(rename_in_rare_places);
    RUN(names_that_are_in_use);
    RUN(names_around_a_body);
    RUN(plans_of_names);
    RUN(views_to_anywhere);
    RUN(edits_refused);
    RUN(names_that_stay);
    RUN(edits_that_compare);
    RUN(edited_views_compare);
    RUN(edits_backwards);
    RUN(many_opsets_of_a_domain);
    RUN(allocator_fails_with_everything);
    RUN(new_models);
    RUN(names_of_epnodes);
    RUN(attributes);
    RUN(copies);
    RUN(stream_full);
    RUN(write_over_source);
    RUN(overwriting);
    RUN(failing_writes);
    RUN(killed_while_writing);
    RUN(huge_models);
    RUN(values_that_look_alike);
    RUN(strings_are_no_messages);
    RUN(copies_with_doubled_fields);
    RUN(names_of_nodes_of_one_binary);
    RUN(places_of_outputs);
    RUN(write_over_pipe);
    RUN(dimensions_get_numbers);
    RUN(dimensions_stay_open);
    return test_end();
}
