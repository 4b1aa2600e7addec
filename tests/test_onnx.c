/* >>onnx and >>record: views over a model, the graph record, memory. */
#define _POSIX_C_SOURCE 200809L

#include "examples/epctx/ops/ops.h"
#include "build.h"
#include "examples/epctx/ops/views.h"
#include "rich.h"
#include "temp.h"
#include "files.h"
#include "test.h"

#include <time.h>

#include <unistd.h>

static const int64_t dims_2_3[] = {2, 3, -1};

/* A model with a bit of everything that views show. */
static bytes sample(void) {
    bytes graph = {0}, model, node, function = {0};
    static const float weights[] = {1, 2, 3};
    node = new_node("Conv", "", "conv", "x,w,,b", "y,");
    add_attr_int(&node, "group", 4);
    add_attr_str(&node, "auto_pad", "SAME", 4);
    put_child(&graph, 1, &node);
    put_str(&graph, 2, "main");
    add_node(&graph, "Relu", "relu", "y", "z");
    add_value(&graph, GRAPH_INPUT, "x", EPCTX_ONNX_FLOAT, dims_2_3);
    add_value(&graph, GRAPH_OUTPUT, "z", EPCTX_ONNX_FLOAT, NULL);
    add_value(&graph, GRAPH_VALUE, "y", EPCTX_ONNX_INT64, (const int64_t[]){-1});
    add_floats(&graph, "w", weights, 3);
    model = new_model(&graph);
    put_str(&model, 3, "1.2");
    put_str(&model, 4, "org.test");
    put_int(&model, 5, 77);
    put_str(&model, 6, "doc");
    add_opset(&model, "com.microsoft", 1);
    add_metadata(&model, "key", "value");
    put_str(&function, 1, "f");
    put_child(&model, 25, &function);
    return model;
}

TEST(model_info) {
    bytes b = sample();
    epctx_model model;
    epctx_model_info info;
    epctx_str value;
    CHECK_INT(epctx_model_open_memory(&model, b.data, b.size, NULL, NULL), EPCTX_OK);
    info = epctx_model_read(&model);
    CHECK_INT(info.ir_version, 8);
    CHECK_TRUE(epctx_str_is(info.producer_name, "test"));
    CHECK_TRUE(epctx_str_is(info.producer_version, "1.2"));
    CHECK_TRUE(epctx_str_is(info.domain, "org.test"));
    CHECK_TRUE(epctx_str_is(info.doc_string, "doc"));
    CHECK_INT(info.model_version, 77);
    CHECK_UINT(info.function_count, 1);
    CHECK_INT(epctx_model_opset(&model, epctx_str_of("")), 17);
    CHECK_INT(epctx_model_opset(&model, epctx_str_of("ai.onnx")), 17);
    CHECK_INT(epctx_model_opset(&model, epctx_str_of("com.microsoft")), 1);
    CHECK_INT(epctx_model_opset(&model, epctx_str_of("nobody")), 0);
    CHECK_TRUE(epctx_model_metadata(&model, epctx_str_of("key"), &value));
    CHECK_TRUE(epctx_str_is(value, "value"));
    CHECK_TRUE(!epctx_model_metadata(&model, epctx_str_of("other"), &value));
    CHECK_TRUE(epctx_str_is(epctx_model_graph(&model).name, "main"));
    epctx_model_close(&model);
    epctx_model_close(&model);
    bytes_free(&b);
}

TEST(nodes) {
    bytes b = sample();
    epctx_model model;
    epctx_cursor it, inner;
    epctx_node_view node;
    epctx_attr_view attr;
    epctx_str s;
    CHECK_INT(epctx_model_open_memory(&model, b.data, b.size, NULL, NULL), EPCTX_OK);
    it = epctx_view_graph_nodes(epctx_model_graph(&model));
    CHECK_TRUE(epctx_next_node(&it, &node));
    CHECK_TRUE(epctx_str_is(node.op_type, "Conv") && epctx_str_is(node.name, "conv"));
    CHECK_UINT(node.domain.size, 0);
    CHECK_UINT(node.input_count, 4);
    CHECK_UINT(node.output_count, 2);
    CHECK_UINT(node.attr_count, 2);
    inner = epctx_view_node_inputs(&node);
    CHECK_TRUE(epctx_next_str(&inner, &s) && epctx_str_is(s, "x"));
    CHECK_TRUE(epctx_next_str(&inner, &s) && epctx_str_is(s, "w"));
    CHECK_TRUE(epctx_next_str(&inner, &s) && s.size == 0);
    CHECK_TRUE(epctx_next_str(&inner, &s) && epctx_str_is(s, "b"));
    CHECK_TRUE(!epctx_next_str(&inner, &s));
    inner = epctx_view_node_attrs(&node);
    CHECK_TRUE(epctx_next_attr(&inner, &attr) && epctx_str_is(attr.name, "group"));
    CHECK_INT(attr.i, 4);
    CHECK_INT(attr.type, EPCTX_ATTR_INT);
    CHECK_TRUE(attr.g.data == NULL && attr.g.slot == NULL);
    CHECK_TRUE(epctx_next_attr(&inner, &attr) && epctx_str_is(attr.s, "SAME"));
    CHECK_TRUE(!epctx_next_attr(&inner, &attr));
    CHECK_TRUE(epctx_next_node(&it, &node) && epctx_str_is(node.op_type, "Relu"));
    CHECK_TRUE(!epctx_next_node(&it, &node));
    epctx_model_close(&model);
    bytes_free(&b);
}

TEST(values_and_tensors) {
    bytes b = sample();
    epctx_model model;
    epctx_graph_view graph;
    epctx_cursor it, dims;
    epctx_value_view value;
    epctx_tensor_view tensor;
    epctx_dim dim;
    int64_t n;
    CHECK_INT(epctx_model_open_memory(&model, b.data, b.size, NULL, NULL), EPCTX_OK);
    graph = epctx_model_graph(&model);
    it = epctx_view_graph_inputs(graph);
    CHECK_TRUE(epctx_next_value(&it, &value) && epctx_str_is(value.name, "x"));
    CHECK_TRUE(value.is_tensor && value.has_type && value.has_shape);
    CHECK_INT(value.elem_type, EPCTX_ONNX_FLOAT);
    dims = epctx_view_value_dims(&value);
    CHECK_TRUE(epctx_next_dim(&dims, &dim) && dim.known && dim.value == 2);
    CHECK_TRUE(epctx_next_dim(&dims, &dim) && dim.known && dim.value == 3);
    CHECK_TRUE(!epctx_next_dim(&dims, &dim));
    it = epctx_view_graph_outputs(graph);
    CHECK_TRUE(epctx_next_value(&it, &value) && value.is_tensor && !value.has_shape);
    it = epctx_view_graph_values(graph);
    CHECK_TRUE(epctx_next_value(&it, &value) && value.has_shape); /* a scalar */
    dims = epctx_view_value_dims(&value);
    CHECK_TRUE(!epctx_next_dim(&dims, &dim));
    it = epctx_view_graph_initializers(graph);
    CHECK_TRUE(epctx_next_tensor(&it, &tensor) && epctx_str_is(tensor.name, "w"));
    CHECK_TRUE(tensor.has_raw && !tensor.external && tensor.raw.size == 12 && tensor.rank == 1);
    dims = epctx_view_tensor_dims(&tensor);
    CHECK_TRUE(epctx_next_int(&dims, &n) && n == 3 && !epctx_next_int(&dims, &n));
    epctx_model_close(&model);
    bytes_free(&b);
}

/* What libprotobuf does with a singular scalar that stands more than once. A checker that took the
 * first would approve one file and load another. */
TEST(last_scalar_wins) {
    bytes attr = {0}, value = {0}, type = {0}, tensor = {0}, shape = {0}, dim = {0};
    epctx_attr_view a;
    epctx_view view = {NULL, NULL, 0};
    epctx_dim d;
    epctx_cursor it;
    put_str(&attr, 1, "first");
    put_str(&attr, 4, "a.bin");
    put_int(&attr, 3, 1);
    put_str(&attr, 4, "../evil.bin");
    put_int(&attr, 3, 2);
    put_str(&attr, 1, "last");
    view.data = attr.data;
    view.size = attr.size;
    a = epctx_view_as_attr(view);
    CHECK_TRUE(epctx_str_is(a.name, "last") && epctx_str_is(a.s, "../evil.bin"));
    CHECK_INT(a.i, 2);
    bytes_free(&attr);
    /* A oneof: the number is gone when the name comes later, and the other way round. */
    put_int(&dim, 1, 5);
    put_str(&dim, 2, "N");
    put_child(&shape, 1, &dim);
    put_str(&dim, 2, "N");
    put_int(&dim, 1, 5);
    put_child(&shape, 1, &dim);
    put_child(&shape, 1, &dim); /* neither */
    put_int(&tensor, 1, 1);
    put_child(&tensor, 2, &shape);
    put_child(&type, 1, &tensor);
    put_child(&value, 2, &type);
    view.data = value.data;
    view.size = value.size;
    {
        epctx_value_view v = epctx_view_as_value(view);
        it = epctx_view_value_dims(&v);
        CHECK_TRUE(epctx_next_dim(&it, &d) && !d.known && epctx_str_is(d.param, "N"));
        CHECK_TRUE(epctx_next_dim(&it, &d) && d.known && d.value == 5 && d.param.size == 0);
        CHECK_TRUE(epctx_next_dim(&it, &d) && !d.known && d.param.size == 0);
        CHECK_TRUE(!epctx_next_dim(&it, &d));
    }
    bytes_free(&value);
}

/* TypeProto's messages are a oneof: of tensor, sequence, tensor only the last tensor is left, and
 * two in a row are merged. Models with such fields are opened up while they are read. */
TEST(doubled_types) {
    bytes graph = {0}, model, value = {0}, type = {0}, tensor = {0}, element = {0};
    epctx_cursor it;
    epctx_value_view v;
    epctx_model m;
    put_int(&tensor, 1, EPCTX_ONNX_INT64);
    put_child(&type, 1, &tensor);
    put_child(&type, 4, &element);
    put_child(&type, 1, &element); /* no element type */
    put_str(&value, 1, "a");
    put_child(&value, 2, &type);
    put_child(&graph, 11, &value);
    put_child(&type, 1, &element);
    put_int(&tensor, 1, EPCTX_ONNX_INT64);
    put_child(&type, 1, &tensor);
    put_str(&value, 1, "b");
    put_child(&value, 2, &type);
    put_child(&graph, 11, &value);
    model = new_model(&graph);
    CHECK_INT(epctx_model_open_memory(&m, model.data, model.size, NULL, NULL), EPCTX_OK);
    it = epctx_view_graph_inputs(epctx_model_graph(&m));
    CHECK_TRUE(epctx_next_value(&it, &v) && epctx_str_is(v.name, "a"));
    CHECK_INT(epctx_type_of(v.type).kind, EPCTX_TYPE_TENSOR);
    CHECK_INT(v.elem_type, 0);
    CHECK_TRUE(epctx_next_value(&it, &v) && epctx_str_is(v.name, "b"));
    CHECK_INT(epctx_type_of(v.type).kind, EPCTX_TYPE_TENSOR);
    CHECK_INT(v.elem_type, EPCTX_ONNX_INT64);
    epctx_model_close(&m);
    bytes_free(&model);
}

TEST(no_graph) {
    epctx_model model;
    epctx_graph graph;
    epctx_error error;
    epctx_node_view node;
    epctx_cursor it;
    CHECK_INT(epctx_model_open_memory(&model, "\x08\x08", 2, NULL, NULL), EPCTX_OK);
    CHECK_TRUE(!epctx_model_has_graph(&model));
    it = epctx_view_graph_nodes(epctx_model_graph(&model));
    CHECK_TRUE(!epctx_next_node(&it, &node));
    CHECK_INT(epctx_model_load_graph(&model, &graph, &error), EPCTX_ERR_GRAPH);
    epctx_model_close(&model);
}

static void write_file(const char *path, const void *data, size_t size) {
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(data, 1, size, file) != size || fclose(file) != 0) abort();
}

TEST(not_a_model) {
    static const struct {
        const char *data;
        size_t size;
        const char *word;
    } cases[] = {
        {"version https://git-lfs.github.com/spec/v1\noid sha256:12\nsize 3\n", 65, "git lfs pull"},
        {"\x1f\x8b\x08\x00\x00\x00\x00\x00", 8, "gzip"},
        {"PK\x03\x04\x14\x00\x00\x00", 8, "zip"},
        {"<!DOCTYPE html>\n<html></html>\n", 29, "an HTML page"},
        {"EPCTXNPU", 8, "a context binary of the reference NPU, not an ONNX model"},
        {"\x18\x00\x00\x00ORTM\x00\x00\x00\x00", 12, "ort"},
        {"", 0, "empty"},
        {"\x08\x08\x3a\x7f", 4, "field 7 wants 127 bytes, the file has 0 left"},
    };
    char folder[TEST_TEMP], path[300];
    CHECK_TRUE(test_temp(folder));
    snprintf(path, sizeof path, "%s/m.onnx", folder);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        epctx_model model;
        epctx_error error, plain;
        memset(&error, 0xee, sizeof error);
        write_file(path, cases[i].data, cases[i].size);
        CHECK_INT(epctx_model_open_file(&model, path, NULL, &error), EPCTX_ERR_PROTOBUF);
        CHECK_HAS(error.message, cases[i].word);
        CHECK_INT(epctx_model_open_memory(&model, cases[i].data, cases[i].size, NULL, &plain),
                  EPCTX_ERR_PROTOBUF);
        CHECK_INT(plain.offset, error.offset);
        epctx_model_close(&model);
    }
    unlink(path);
    rmdir(folder);
}

/* Where the damage is, and whether the file may be cut off: only if the file, not a message in it,
 * has fewer bytes than the field wants. */
TEST(place_of_damage) {
    static const struct {
        const char *data;
        size_t size;
        int offset;
        const char *want;
    } cases[] = {
        {"\x08\x08\x3a\x7f", 4, 2,
         "2 of 4: field 7 wants 127 bytes, the file has 0 left: is it cut"},
        {"\x3a\x04\x0a\x05\x08\x08", 6, 2,
         "2 of 6: field 1 wants 5 bytes, the file has 2 left: is it cut off?"},
        {"\x3a\x02\x0a\x02\x08\x08", 6, 2, "2 of 6: no valid protobuf field"},
        {"\x02\x7f", 2, 0, "0 of 2: "},
        {"\x08\x08\x0d\x01", 4, 2, "2 of 4: "},
        {"\x08\x80", 2, 0, "0 of 2: "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        epctx_model model;
        epctx_error error;
        CHECK_INT(epctx_model_open_memory(&model, cases[i].data, cases[i].size, NULL, &error),
                  EPCTX_ERR_PROTOBUF);
        CHECK_HAS(error.message, cases[i].want);
        CHECK((strstr(error.message, "cut off?") != NULL) == (i < 2), "%s", error.message);
        CHECK_INT(error.offset, cases[i].offset);
        CHECK_INT(epctx_model_open_memory(&model, cases[i].data, cases[i].size, NULL, NULL),
                  EPCTX_ERR_PROTOBUF);
        epctx_model_close(&model);
    }
}

TEST(bad_arguments) {
    epctx_model model;
    epctx_error error;
    epctx_model zero = {0};
    epctx_model_close(&zero);
    epctx_model_close(NULL);
    CHECK_INT(epctx_model_open_file(NULL, "m.onnx", NULL, &error), EPCTX_ERR_ARG);
    CHECK_INT(epctx_model_open_memory(NULL, "", 0, NULL, &error), EPCTX_ERR_ARG);
    CHECK_INT(epctx_model_open_memory(&model, NULL, 5, NULL, &error), EPCTX_ERR_ARG);
    CHECK_INT(epctx_model_open_file(&model, NULL, NULL, &error), EPCTX_ERR_ARG);
    CHECK_INT(epctx_model_open_file(&model, "no/such/file.onnx", NULL, &error),
              EPCTX_ERR_NOT_FOUND);
    CHECK_HAS(error.message, "no/such/file.onnx");
    CHECK_STR(error.file, "no/such/file.onnx");
    epctx_model_close(&model);
    /* A closed model has nothing in it. */
    CHECK_UINT(epctx_model_root(&model).size, 0);
    CHECK_INT(epctx_model_read(&model).ir_version, 0);
    CHECK_UINT(epctx_cursor_count(epctx_view_graph_nodes(epctx_model_graph(&zero))), 0);
}

static bool no_sink(pb_ostream_t *stream, const pb_byte_t *data, size_t size) {
    (void)stream, (void)data, (void)size;
    return true;
}

/* A model that was never opened, failed to open, or was closed: nothing reads through it, nothing
 * is written, and a missing argument leaves such a model, too. */
TEST(closed_models) {
    char folder[TEST_TEMP];
    CHECK_TRUE(test_temp(folder));
    for (int kind = 0; kind < 4; kind++) {
        const epctx_str name = epctx_str_of("x");
        char path[TEST_TEMP + 20];
        pb_ostream_t stream = {0};
        epctx_model model;
        epctx_error error;
        epctx_output_file file;
        memset(&model, kind == 0 ? 0 : 0x5a, sizeof model);
        if (kind == 1) CHECK_INT(epctx_model_open_file(&model, NULL, NULL, NULL), EPCTX_ERR_ARG);
        if (kind == 2)
            CHECK_INT(epctx_model_open_memory(&model, NULL, 5, NULL, NULL), EPCTX_ERR_ARG);
        if (kind == 3) CHECK_INT(epctx_model_new(&model, 8, NULL, NULL), EPCTX_OK);
        epctx_model_close(&model);
        snprintf(path, sizeof path, "%s/closed.onnx", folder);
        stream.callback = no_sink;
        stream.max_size = SIZE_MAX;
        CHECK_UINT(epctx_model_size(&model), 0);
        CHECK_INT(epctx_model_write_stream(&model, &stream, &error), EPCTX_ERR_ARG);
        CHECK_HAS(error.message, "an open model is expected");
        CHECK_INT(epctx_edit_set_opset(&model, name, 1, NULL), EPCTX_ERR_ARG);
        CHECK_INT(epctx_edit_put_opset(&model, name, 1, NULL), EPCTX_ERR_ARG);
        CHECK_INT(epctx_edit_remove_opset(&model, name, NULL), EPCTX_ERR_ARG);
        CHECK_INT(epctx_edit_set_metadata(&model, name, name, NULL), EPCTX_ERR_ARG);
        CHECK_INT(epctx_edit_remove_metadata(&model, name, NULL), EPCTX_ERR_ARG);
        CHECK_INT(epctx_edit_merge_doubled(&model, NULL, NULL, NULL), EPCTX_ERR_ARG);
        CHECK_TRUE(epctx_model_output_file(&model, NULL, name, NULL, 0, &file, NULL) != EPCTX_OK);
        CHECK_TRUE(epctx_model_write_file(&model, path, NULL, NULL) != EPCTX_OK);
        {
            epctx_arena arena;
            epctx_commit commit;
            epctx_arena_init(&arena, NULL);
            CHECK_INT(epctx_commit_begin(&commit, NULL, &arena, NULL), EPCTX_OK);
            CHECK_INT(epctx_commit_put_model(&commit, &model, path, NULL, &error), EPCTX_ERR_ARG);
            epctx_commit_close(&commit);
            epctx_arena_free(&arena);
        }
        CHECK_TRUE(access(path, F_OK) != 0);
    }
    rmdir(folder);
}

/* Bytes of no model may be nested deeper than any model: the walk stays within its levels. */
TEST(deep_bytes_of_no_model) {
    static const uint32_t fields[] = {1, 5, 6}; /* a graph's node, its attribute, its graph */
    bytes inner = {0};
    epctx_walk walk;
    epctx_view view = {NULL, NULL, 0};
    size_t steps = 0;
    for (int i = 0; i < 300; i++) {
        bytes outer = {0};
        put_child(&outer, fields[2 - i % 3], &inner);
        inner = outer;
    }
    view.data = inner.data;
    view.size = inner.size;
    epctx_walk_below(&walk, view, EPCTX_KIND_GRAPH);
    while (epctx_walk_step(&walk)) steps++;
    CHECK_UINT(steps, EPCTX_WALK_LEVELS + 1);
    bytes_free(&inner);
}

/* -- the record -- */

TEST(elements) {
    epctx_attr attr = {0};
    epctx_node node = {0};
    CHECK_UINT(epctx_elem_size(EPCTX_ONNX_INT64), 8);
    CHECK_UINT(epctx_elem_size(-1), 0);
    CHECK_UINT(epctx_elem_size(25), 0);
    CHECK_STR(epctx_elem_name(EPCTX_ONNX_FLOAT), "float32");
    CHECK_STR(epctx_elem_name(-1), "unknown");
    CHECK_STR(epctx_elem_name(27), "unknown");
    attr.name = epctx_str_of("number");
    attr.type = EPCTX_ATTR_FLOAT;
    attr.f = 0.5f;
    node.attrs = &attr;
    node.attr_count = 1;
    CHECK_TRUE(epctx_node_float(&node, "number", 2) == 0.5f);
    CHECK_TRUE(epctx_node_float(&node, "other", 2) == 2);
    CHECK_INT(epctx_node_int(&node, "number", 7), 7);
    attr.type = EPCTX_ATTR_INT;
    CHECK_TRUE(epctx_node_float(&node, "number", 2) == 2);
}

/* Nodes in any order, many of them ready at the same time. */
TEST(shuffled_nodes) {
    enum { COUNT = 60 };
    bytes graph = {0}, b;
    epctx_model model;
    epctx_graph g;
    uint32_t state = 7;
    int order[COUNT];
    for (int i = 0; i < COUNT; i++) order[i] = i;
    for (uint32_t i = COUNT - 1; i > 0; i--) {
        uint32_t k = random_below(&state, i + 1);
        int swap = order[i];
        order[i] = order[k];
        order[k] = swap;
    }
    for (int i = 0; i < COUNT; i++) { /* node n reads what n / 3 makes */
        char in[16], out[16];
        snprintf(in, sizeof in, order[i] < 3 ? "x" : "v%d", order[i] / 3);
        snprintf(out, sizeof out, "v%d", order[i]);
        add_node(&graph, "Relu", out, in, out);
    }
    b = new_model(&graph);
    for (size_t n = 1;; n++) {
        counting c = {0};
        epctx_allocator allocator = counting_allocator(&c);
        epctx_open_opts opts = {0};
        epctx_status status;
        bool made[COUNT] = {false};
        opts.allocator = &allocator;
        c.fail_at = n;
        status = epctx_model_open_memory(&model, b.data, b.size, &opts, NULL);
        if (status == EPCTX_OK) status = epctx_model_load_graph(&model, &g, NULL);
        /* Of the nodes whose inputs are there, the first of the file is next. */
        for (size_t i = 0; status == EPCTX_OK && i < g.node_count; i++) {
            int node = atoi(g.nodes[i].name.data + 1), next = 0;
            while (made[order[next]] || (order[next] >= 3 && !made[order[next] / 3])) next++;
            CHECK(node == order[next], "v%d is where v%d was expected", node, order[next]);
            made[order[next]] = true;
        }
        epctx_model_close(&model);
        CHECK_UINT(c.alive, 0);
        CHECK(status == EPCTX_OK || status == EPCTX_ERR_NOMEM, "%s", epctx_status_name(status));
        if (status == EPCTX_OK) break;
    }
    bytes_free(&b);
}

static epctx_status load_tensor(int32_t elem, int64_t dim, int64_t other, uint32_t field,
                                const char *data, size_t size, epctx_error *error) {
    bytes tensor = {0}, graph = {0}, b;
    epctx_model model;
    epctx_graph g;
    epctx_status status;
    put_int(&tensor, 1, dim);
    put_int(&tensor, 1, other);
    put_int(&tensor, 2, elem);
    put_str(&tensor, 8, "w");
    if (field == 10 && size == 9) { /* one element unpacked */
        put_tag(&tensor, 10, 1);
        bytes_add(&tensor, data, 8);
    } else if (field != 0)
        put_data(&tensor, field, data, size);
    put_child(&graph, 5, &tensor);
    b = new_model(&graph);
    status = epctx_model_open_memory(&model, b.data, b.size, NULL, error);
    if (status == EPCTX_OK) status = epctx_model_load_graph(&model, &g, error);
    epctx_model_close(&model);
    bytes_free(&b);
    return status;
}

/* A typed field must hold what the shape needs, no more and no less. */
TEST(typed_fields) {
    static const struct {
        int32_t elem;
        int64_t dim, other;
        uint32_t field;
        const char *data;
        size_t size;
        const char *message; /* NULL: good */
    } cases[] = {
        {7, 2, 1, 7, "\x01\x02", 2, NULL},
        {7, 2, 1, 7, "\x01", 1, "holds bytes: 8, its shape needs 16"},
        {7, 2, 1, 7, "\x01\x02\x03", 3, "holds bytes: 24, its shape needs 16"},
        {12, 2, 1, 11, "\x01\x02", 2, NULL},
        {14, 1, 1, 4, "12345678", 8, NULL},
        {15, 1, 1, 10, "1234567812345678", 16, NULL},
        {11, 2, 1, 10, "1234567812345678", 16, NULL},
        {11, 1, 1, 10, "123456781", 9, NULL}, /* unpacked */
        {11, 2, 1, 10, "123456781", 9, "holds bytes: 8, its shape needs 16"},
        {11, 1, 1, 10, "1234567812345678", 16, "holds bytes: 16, its shape needs 8"},
        {11, 1, 0, 10, "123456781", 9, "holds bytes: 8, its shape needs 0"},
        {7, 0, 7, 0, NULL, 0, NULL},
        {7, -1, 7, 0, NULL, 0, "a dimension is negative"},
        {7, -1, 0, 0, NULL, 0, "a dimension is negative"}, /* of no elements, all the same */
        {7, INT64_MAX, 7, 0, NULL, 0, "the shape too large"},
        {7, INT64_MAX, 1, 0, NULL, 0, "the shape too large"},
        {7, 1000, 1000, 0, NULL, 0, "its shape has elements: 1000000"},
        {1, 3, 1, 9, "12345678", 8, "its data has bytes: 8, its shape needs 12"},
        {22, 3, 1, 9, "12", 2, NULL},
        {22, 3, 1, 0, NULL, 0, NULL},
        {8, 1, 1, 6, "text", 4, NULL},
        {8, 0, 1, 0, NULL, 0, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        epctx_error error;
        epctx_status status = load_tensor(cases[i].elem, cases[i].dim, cases[i].other,
                                          cases[i].field, cases[i].data, cases[i].size, &error);
        CHECK((status == EPCTX_OK) == (cases[i].message == NULL), "case %zu: %s", i, error.message);
        if (cases[i].message != NULL) CHECK_HAS(error.message, cases[i].message);
    }
}

static const epctx_tensor *initializer(const epctx_graph *graph, const char *name) {
    for (size_t i = 0; i < graph->initializer_count; i++)
        if (epctx_str_is(graph->initializers[i].name, name)) return &graph->initializers[i];
    return NULL;
}

static void add_typed(bytes *graph, const char *name, int32_t elem, uint32_t field,
                      const int64_t *values, size_t count, bool packed) {
    bytes tensor = {0}, data = {0};
    put_int(&tensor, 1, (int64_t)count);
    put_int(&tensor, 2, elem);
    for (size_t i = 0; i < count; i++)
        if (packed)
            put_varint(&data, (uint64_t)values[i]);
        else
            put_int(&tensor, field, values[i]);
    if (packed) put_child(&tensor, field, &data);
    put_str(&tensor, 8, name);
    put_child(graph, 5, &tensor);
}

TEST(record) {
    bytes graph = {0}, model, b, node, attr = {0};
    epctx_model m;
    epctx_graph g;
    epctx_error error;
    const epctx_tensor *t;
    static const int64_t values[] = {1, -2, 127};
    node = new_node("Foo", "", "foo", "x,i8,i64", "y");
    add_attr_int(&node, "n", -3);
    put_str(&attr, 1, "ints");
    put_int(&attr, 8, 4);
    put_int(&attr, 8, 5);
    put_int(&attr, 20, EPCTX_ATTR_INTS);
    put_child(&node, 5, &attr);
    put_child(&graph, 1, &node);
    add_value(&graph, GRAPH_INPUT, "x", EPCTX_ONNX_FLOAT, dims_2_3);
    add_value(&graph, GRAPH_OUTPUT, "y", EPCTX_ONNX_FLOAT, NULL);
    add_typed(&graph, "i8", EPCTX_ONNX_INT8, 5, values, 3, true);
    add_typed(&graph, "i64", EPCTX_ONNX_INT64, 7, values, 3, false);
    model = new_model(&graph);
    b = model;
    CHECK_INT(epctx_model_open_memory(&m, b.data, b.size, NULL, NULL), EPCTX_OK);
    CHECK_OK(epctx_model_load_graph(&m, &g, &error), error);
    CHECK_UINT(g.node_count, 1);
    CHECK_UINT(g.input_count, 1);
    CHECK_INT(g.inputs[0].rank, 2);
    CHECK_INT(g.inputs[0].dims[1], 3);
    CHECK_INT(g.outputs[0].rank, -1);
    CHECK_INT(g.nodes[0].version, 17);
    CHECK_INT(epctx_node_int(&g.nodes[0], "n", 9), -3);
    CHECK_INT(epctx_node_int(&g.nodes[0], "none", 9), 9);
    CHECK_INT(epctx_node_int(&g.nodes[0], "ints", 9), 9);
    CHECK_TRUE(epctx_node_float(&g.nodes[0], "n", 2.5f) == 2.5f);
    CHECK_TRUE(epctx_node_attr(&g.nodes[0], "ints") != NULL);
    CHECK_UINT(epctx_node_attr(&g.nodes[0], "ints")->count, 2);
    CHECK_INT(epctx_node_attr(&g.nodes[0], "ints")->ints[1], 5);
    t = initializer(&g, "i8");
    CHECK_TRUE(t != NULL && t->size == 3 && t->data[1] == 0xfe && t->data[2] == 127);
    t = initializer(&g, "i64");
    CHECK_TRUE(t != NULL && t->size == 24 && t->data[8] == 0xfe && t->data[15] == 0xff);
    epctx_model_close(&m);
    bytes_free(&b);
}

/* Wrong amounts of data for the dims, and dims that overflow, unless one of them is 0. */
TEST(record_bad_tensors) {
    static const struct {
        int64_t dims[3];
        int32_t elem;
        size_t raw;
    } cases[] = {
        {{3, 1, 1}, EPCTX_ONNX_FLOAT, 11},
        {{3, 1, 1}, EPCTX_ONNX_FLOAT, 13},
        {{-1, 1, 1}, EPCTX_ONNX_FLOAT, 4},
        {{INT64_MAX, 2, 1}, EPCTX_ONNX_FLOAT, 8},
        {{INT64_MAX, INT64_MAX, INT64_MAX}, EPCTX_ONNX_INT8, 1},
        {{1 << 20, 1 << 20, 1 << 24}, EPCTX_ONNX_FLOAT, 0}, /* the product wraps to 0 */
        {{INT64_MAX, 3, 0}, EPCTX_ONNX_FLOAT, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bytes tensor = {0}, graph = {0}, b;
        epctx_model m;
        epctx_graph g;
        epctx_error error;
        epctx_status want = cases[i].dims[2] == 0 ? EPCTX_OK : EPCTX_ERR_GRAPH;
        for (size_t k = 0; k < 3; k++) put_int(&tensor, 1, cases[i].dims[k]);
        put_int(&tensor, 2, cases[i].elem);
        put_str(&tensor, 8, "culprit");
        put_data(&tensor, 9, "0123456789abcdef", cases[i].raw);
        put_child(&graph, 5, &tensor);
        add_node(&graph, "Foo", "n", "culprit", "y");
        b = new_model(&graph);
        CHECK_INT(epctx_model_open_memory(&m, b.data, b.size, NULL, NULL), EPCTX_OK);
        CHECK(epctx_model_load_graph(&m, &g, &error) == want, "case %zu: %s", i, error.message);
        if (want != EPCTX_OK) CHECK_HAS(error.message, "culprit");
        epctx_model_close(&m);
        bytes_free(&b);
    }
}

/* -- external data -- */

static epctx_status load_external(const char *folder, int64_t count, const char *location,
                                  const char *offset, const char *length, epctx_error *error,
                                  uint8_t first[4]) {
    char path[300];
    bytes graph = {0}, b;
    epctx_model m;
    epctx_graph g;
    epctx_status status;
    add_external(&graph, "w", count, location, offset, length);
    add_node(&graph, "Foo", "n", "w", "y");
    b = new_model(&graph);
    snprintf(path, sizeof path, "%s/m.onnx", folder);
    write_file(path, b.data, b.size);
    bytes_free(&b);
    status = epctx_model_open_file(&m, path, NULL, error);
    if (status == EPCTX_OK) status = epctx_model_load_graph(&m, &g, error);
    if (status == EPCTX_OK) {
        const epctx_tensor *t = initializer(&g, "w");
        if (t == NULL || t->size != (size_t)count * 4) status = EPCTX_ERR_BACKEND;
        if (status == EPCTX_OK) memcpy(first, t->data, 4);
    }
    epctx_model_close(&m);
    return status;
}

TEST(external_data) {
    char folder[TEST_TEMP];
    char path[300];
    uint8_t first[4];
    epctx_error e;
    CHECK_TRUE(test_temp(folder));
    snprintf(path, sizeof path, "%s/w.bin", folder);
    write_file(path, "0123456789abcdefghij", 20);
    CHECK(load_external(folder, 2, "w.bin", "4", "8", &e, first) == EPCTX_OK, "%s", e.message);
    CHECK_MEM(first, 4, "4567", 4);
    CHECK(load_external(folder, 5, "w.bin", NULL, NULL, &e, first) == EPCTX_OK, "%s", e.message);
    CHECK_INT(load_external(folder, 5, "w.bin", "4", NULL, &e, first), EPCTX_ERR_GRAPH);
    CHECK_HAS(e.message, "'w'");
    CHECK_TRUE(load_external(folder, 2, "w.bin", "16", "8", &e, first) != EPCTX_OK);
    CHECK_TRUE(load_external(folder, 2, "w.bin", "18446744073709551612", "8", &e, first) !=
               EPCTX_OK);
    CHECK_TRUE(load_external(folder, 2, "w.bin", "-4", "8", &e, first) != EPCTX_OK);
    CHECK_TRUE(load_external(folder, 2, "w.bin", "4x", "8", &e, first) != EPCTX_OK);
    CHECK_TRUE(load_external(folder, 2, "w.bin", "", "8", &e, first) != EPCTX_OK);
    CHECK_TRUE(load_external(folder, 2, "w.bin", "18446744073709551616", "8", &e, first) !=
               EPCTX_OK);
    CHECK_INT(load_external(folder, 2, "none.bin", NULL, NULL, &e, first), EPCTX_ERR_NOT_FOUND);
    CHECK_HAS(e.message, "none.bin");
    CHECK_INT(load_external(folder, 2, "../w.bin", NULL, NULL, &e, first), EPCTX_ERR_PATH);
    CHECK_INT(load_external(folder, 2, "/etc/passwd", NULL, NULL, &e, first), EPCTX_ERR_PATH);
    CHECK_INT(load_external(folder, 2, "", NULL, NULL, &e, first), EPCTX_ERR_PATH);
    unlink(path);
    snprintf(path, sizeof path, "%s/m.onnx", folder);
    unlink(path);
    rmdir(folder);
}

/* A model from memory does not know where its data is; the option says so. */
TEST(external_data_from_memory) {
    char folder[TEST_TEMP];
    char path[300];
    bytes graph = {0}, b;
    epctx_open_opts opts = {0};
    epctx_model m;
    epctx_graph g;
    epctx_error e;
    CHECK_TRUE(test_temp(folder));
    snprintf(path, sizeof path, "%s/w.bin", folder);
    write_file(path, "01234567", 8);
    add_external(&graph, "w", 2, "w.bin", NULL, NULL);
    add_node(&graph, "Foo", "n", "w", "y");
    b = new_model(&graph);
    CHECK_INT(epctx_model_open_memory(&m, b.data, b.size, NULL, &e), EPCTX_OK);
    CHECK_TRUE(epctx_model_load_graph(&m, &g, &e) != EPCTX_OK);
    CHECK_HAS(e.message, "session.model_external_initializers_file_folder_path");
    CHECK_HAS(e.message, "w.bin");
    epctx_model_close(&m);
    opts.external_folder = folder;
    CHECK_INT(epctx_model_open_memory(&m, b.data, b.size, &opts, &e), EPCTX_OK);
    CHECK(epctx_model_load_graph(&m, &g, &e) == EPCTX_OK, "%s", e.message);
    CHECK_MEM(g.initializers[0].data, g.initializers[0].size, "01234567", 8);
    epctx_model_close(&m);
    bytes_free(&b);
    unlink(path);
    rmdir(folder);
}

/* Tensors may lie over each other, up to 1 GiB and 16 times the file, counted anew by each load. */
TEST(external_data_overlaps) {
    enum { MEGABYTE = 1 << 20 };
    char folder[TEST_TEMP], path[300];
    void *zeros = calloc(1, MEGABYTE);
    CHECK_TRUE(zeros != NULL && test_temp(folder));
    snprintf(path, sizeof path, "%s/w.bin", folder);
    write_file(path, zeros, MEGABYTE);
    free(zeros);
    for (int count = 1040; count < 1042; count++) {
        bytes graph = {0}, b;
        epctx_open_opts opts = {0};
        epctx_model m;
        epctx_graph g;
        epctx_error e;
        for (int i = 0; i < count; i++) {
            char name[16];
            snprintf(name, sizeof name, "w%d", i);
            add_external(&graph, name, MEGABYTE / 4, "w.bin", NULL, NULL);
        }
        b = new_model(&graph);
        opts.external_folder = folder;
        CHECK_INT(epctx_model_open_memory(&m, b.data, b.size, &opts, &e), EPCTX_OK);
        for (int again = 0; again < 2; again++) {
            epctx_status status = epctx_model_load_graph(&m, &g, &e);
            CHECK(status == (count == 1040 ? EPCTX_OK : EPCTX_ERR_LIMIT), "%d tensors, load %d: %s",
                  count, again, status == EPCTX_OK ? "accepted" : e.message);
            if (status != EPCTX_OK)
                CHECK_HAS(e.message, "'w1040': tensors overlap in the external data");
        }
        epctx_model_close(&m);
        bytes_free(&b);
    }
    unlink(path);
    rmdir(folder);
}

/* What a node calls is part of it: the data of a function's body has to be there. */
TEST(external_data_of_functions) {
    bytes graph = {0}, b, node = new_node("Constant", "", "c", "", "y"), attr = {0}, function = {0};
    epctx_open_opts opts = {0};
    epctx_model m;
    epctx_graph g;
    epctx_error e;
    add_external(&attr, "t", 2, "none.bin", NULL, NULL);
    end_attr(&node, "value", EPCTX_ATTR_TENSOR, &attr);
    put_str(&function, 1, "Mine");
    put_child(&function, 7, &node);
    add_node(&graph, "Mine", "call", "", "y");
    b = new_model(&graph);
    put_child(&b, 25, &function);
    opts.external_folder = "/";
    CHECK_INT(epctx_model_open_memory(&m, b.data, b.size, &opts, &e), EPCTX_OK);
    CHECK_INT(epctx_model_load_graph(&m, &g, &e), EPCTX_ERR_NOT_FOUND);
    CHECK_HAS(e.message, "none.bin");
    epctx_model_close(&m);
    bytes_free(&b);
}

/* -- memory -- */

static epctx_status open_and_load(const bytes *b, const epctx_open_opts *opts, size_t *used) {
    epctx_model model;
    epctx_graph graph;
    epctx_error error;
    epctx_status status = epctx_model_open_memory(&model, b->data, b->size, opts, &error);
    if (status == EPCTX_OK) status = ops_rebuild(&model, &error);
    if (status == EPCTX_OK) status = epctx_model_load_graph(&model, &graph, &error);
    *used = model.arena.used;
    epctx_model_close(&model);
    epctx_model_close(&model);
    return status;
}

TEST(allocator_fails) {
    bytes b = sample();
    size_t n;
    epctx_status status = EPCTX_ERR_NOMEM;
    for (n = 1; status != EPCTX_OK && n < 5000; n++) {
        counting c = {0};
        epctx_allocator allocator = counting_allocator(&c);
        epctx_open_opts opts = {0};
        size_t used;
        opts.allocator = &allocator;
        c.fail_at = n;
        status = open_and_load(&b, &opts, &used);
        CHECK(status == EPCTX_OK || status == EPCTX_ERR_NOMEM, "allocation %zu: status %d", n,
              (int)status);
        CHECK_UINT(c.alive, 0);
    }
    CHECK_TRUE(n > 1 && n < 5000);
    bytes_free(&b);
}

TEST(fixed_buffers) {
    static uint8_t space[1 << 16];
    bytes b = sample();
    size_t used = 0, failed = 0;
    for (size_t size = 0; size < 16000; size += size < 2000 ? 1 : 7) {
        epctx_open_opts opts = {0};
        epctx_status status;
        opts.buffer = space;
        opts.buffer_size = size;
        memset(space + size, 0xa5, 64);
        status = open_and_load(&b, &opts, &used);
        for (size_t i = 0; i < 64; i++)
            CHECK(space[size + i] == 0xa5, "buffer of %zu: byte %zu behind it was written", size,
                  i);
        failed += status == EPCTX_ERR_NOMEM;
        CHECK(status == EPCTX_OK || status == EPCTX_ERR_NOMEM, "buffer of %zu: %d", size,
              (int)status);
    }
    CHECK_TRUE(failed > 0);
    {
        epctx_open_opts opts = {0};
        opts.buffer = space;
        opts.buffer_size = sizeof space;
        CHECK_INT(open_and_load(&b, &opts, &used), EPCTX_OK);
    }
    {
        epctx_open_opts opts = {0};
        epctx_model model;
        int tries = 0;
        opts.buffer = space;
        while (epctx_model_open_memory(&model, b.data, b.size, &opts, NULL) != EPCTX_OK &&
               tries++ < 100) {
            CHECK_TRUE(model.arena.missing > 0);
            opts.buffer_size += model.arena.missing;
        }
        CHECK_TRUE(tries > 0 && tries < 100);
        epctx_model_close(&model);
    }
    bytes_free(&b);
}

/* Subgraphs are reached through attributes. */
TEST(subgraph) {
    bytes body = {0}, node, graph = {0}, b;
    epctx_model model;
    epctx_cursor it, attrs;
    epctx_node_view n;
    epctx_attr_view a;
    put_str(&body, 2, "body");
    add_node(&body, "Add", "inner", "outer,outer", "r");
    node = new_node("If", "", "if", "c", "y");
    add_attr_graph(&node, "then_branch", &body);
    put_child(&graph, 1, &node);
    b = new_model(&graph);
    CHECK_INT(epctx_model_open_memory(&model, b.data, b.size, NULL, NULL), EPCTX_OK);
    it = epctx_view_graph_nodes(epctx_model_graph(&model));
    CHECK_TRUE(epctx_next_node(&it, &n));
    attrs = epctx_view_node_attrs(&n);
    CHECK_TRUE(epctx_next_attr(&attrs, &a) && a.g.data != NULL);
    CHECK_TRUE(epctx_str_is(epctx_view_as_graph(a.g).name, "body"));
    it = epctx_view_graph_nodes(epctx_view_as_graph(a.g));
    CHECK_TRUE(epctx_next_node(&it, &n) && epctx_str_is(n.name, "inner"));
    {
        epctx_graph g;
        epctx_error error;
        CHECK_OK(epctx_model_load_graph(&model, &g, &error), error);
        CHECK_TRUE(g.nodes[0].capture_count > 0);
        for (size_t i = 0; i < g.nodes[0].capture_count; i++)
            CHECK_TRUE(epctx_str_is(g.nodes[0].captures[i], "outer"));
        CHECK_TRUE(g.nodes[0].attrs[0].g != NULL);
        CHECK_TRUE(epctx_str_is(g.nodes[0].attrs[0].g->name, "body"));
        CHECK_INT(g.nodes[0].attrs[0].g->node_count, 1);
        CHECK_TRUE(epctx_str_is(g.nodes[0].attrs[0].g->nodes[0].name, "inner"));
    }
    epctx_model_close(&model);
    bytes_free(&b);
}

/* Bodies in bodies are loaded, but no deeper than 8. Each has its own constants. */
TEST(bodies_in_bodies) {
    static const float one[1] = {1};
    bytes graph = {0}, node, b;
    epctx_model model;
    epctx_graph g;
    const epctx_graph *body;
    epctx_error error;
    int depth = 0;
    for (int i = 0; i < 10; i++) {
        bytes outer = {0};
        add_floats(&outer, "w", one, 1);
        node = new_node("If", "", "if", "c", "y");
        add_attr_graph(&node, "then_branch", &graph);
        put_child(&outer, 1, &node);
        graph = outer;
    }
    b = new_model(&graph);
    CHECK_INT(epctx_model_open_memory(&model, b.data, b.size, NULL, NULL), EPCTX_OK);
    CHECK_OK(epctx_model_load_graph(&model, &g, &error), error);
    for (body = &g; body != NULL; body = body->nodes[0].attrs[0].g, depth++) {
        CHECK_INT(body->initializer_count, 1);
        CHECK_INT(body->node_count, 1);
    }
    CHECK_INT(depth, 9);
    epctx_model_close(&model);
    bytes_free(&b);
}

/* A body reads an outer value, its own input, its own initializer and its own result: only the
 * outer value is captured, also from a body inside the body. */
TEST(captures_are_exact) {
    static const float one[1] = {1};
    bytes inner = {0}, inner_if, body = {0}, node, graph = {0}, b;
    epctx_model model;
    epctx_graph g;
    epctx_error error;
    add_node(&inner, "Add", "deep", "t,far", "u");
    inner_if = new_node("If", "", "inner_if", "i", "v");
    add_attr_graph(&inner_if, "then_branch", &inner);
    add_value(&body, GRAPH_INPUT, "i", EPCTX_ONNX_FLOAT, NULL);
    add_floats(&body, "w", one, 1);
    add_node(&body, "Sum", "shallow", "i,w,near,", "t");
    put_child(&body, 1, &inner_if);
    node = new_node("Loop", "", "loop", "n", "y");
    add_attr_graph(&node, "body", &body);
    put_child(&graph, 1, &node);
    b = new_model(&graph);
    CHECK_INT(epctx_model_open_memory(&model, b.data, b.size, NULL, NULL), EPCTX_OK);
    CHECK_OK(epctx_model_load_graph(&model, &g, &error), error);
    CHECK_INT(g.nodes[0].capture_count, 2);
    CHECK_TRUE(epctx_str_is(g.nodes[0].captures[0], "near"));
    CHECK_TRUE(epctx_str_is(g.nodes[0].captures[1], "far"));
    epctx_model_close(&model);
    bytes_free(&b);
}

/* The first capture is an output of the body; each allocation fails once. */
TEST(captures_without_memory) {
    bytes body = {0}, node = new_node("If", "", "if", "c", "y"), graph = {0}, b;
    const epctx_str *names;
    epctx_status status = EPCTX_ERR_NOMEM;
    epctx_model model;
    epctx_error error;
    size_t count, n;
    add_value(&body, GRAPH_OUTPUT, "outer", EPCTX_ONNX_FLOAT, NULL);
    add_attr_graph(&node, "then_branch", &body);
    put_child(&graph, 1, &node);
    b = new_model(&graph);
    CHECK_INT(epctx_model_open_memory(&model, b.data, b.size, NULL, NULL), EPCTX_OK);
    for (n = 1; status != EPCTX_OK; n++) {
        counting c = {0};
        epctx_allocator allocator = counting_allocator(&c);
        epctx_cursor it = epctx_view_graph_nodes(epctx_model_graph(&model));
        epctx_node_view view;
        epctx_arena arena;
        c.fail_at = n;
        epctx_arena_init(&arena, &allocator);
        CHECK_TRUE(epctx_next_node(&it, &view));
        status = epctx_view_node_captures(view.view, &arena, &names, &count, &error);
        CHECK(status == EPCTX_OK || (status == EPCTX_ERR_NOMEM && count == 0),
              "allocation %zu: %s, %zu names", n, epctx_status_name(status), count);
        if (status == EPCTX_OK) CHECK_TRUE(count == 1 && epctx_str_is(names[0], "outer"));
        epctx_arena_free(&arena);
        CHECK_UINT(c.alive, 0);
    }
    CHECK_TRUE(n > 2);
    epctx_model_close(&model);
    bytes_free(&b);
}

/* A view knows its kind, also inside of messages that nobody has opened. */
TEST(kinds_of_views) {
    bytes body = {0}, node = new_node("If", "", "if", "c", "y"), graph = {0}, b;
    epctx_model model;
    epctx_cursor it;
    epctx_node_view outer, inner;
    epctx_attr_view attr;
    epctx_field op;
    epctx_view before, behind;
    add_node(&body, "Relu", "inner", "x", "z");
    put_int(&node, 90, 1);
    add_attr_int(&node, "n", 1);
    add_attr_graph(&node, "then_branch", &body);
    put_child(&graph, 1, &node);
    b = new_model(&graph);
    CHECK_INT(epctx_model_open_memory(&model, b.data, b.size, NULL, NULL), EPCTX_OK);
    it = epctx_view_graph_nodes(epctx_model_graph(&model));
    CHECK_TRUE(epctx_next_node(&it, &outer));
    CHECK_TRUE(epctx_view_node_find_attr(&outer, "then_branch", &attr));
    it = epctx_view_graph_nodes(epctx_view_as_graph(attr.g));
    CHECK_TRUE(epctx_next_node(&it, &inner));
    it = epctx_view_fields(inner.view, EPCTX_FIELD_NODE_OP_TYPE);
    CHECK_TRUE(epctx_next_field(&it, &op));
    before = behind = outer.view;
    before.data = b.data;
    behind.data = &b.data[b.size];
    CHECK_INT(epctx_view_kind(epctx_model_root(&model)), EPCTX_KIND_MODEL);
    CHECK_INT(epctx_view_kind(epctx_model_graph(&model).view), EPCTX_KIND_GRAPH);
    CHECK_INT(epctx_view_kind(outer.view), EPCTX_KIND_NODE);
    CHECK_INT(epctx_view_kind(attr.view), EPCTX_KIND_ATTR);
    CHECK_INT(epctx_view_kind(attr.g), EPCTX_KIND_GRAPH);
    CHECK_INT(epctx_view_kind(inner.view), EPCTX_KIND_NODE);
    CHECK_INT(epctx_view_kind(op.body), EPCTX_KIND_NONE);
    CHECK_INT(epctx_view_kind(before), EPCTX_KIND_NONE);
    CHECK_INT(epctx_view_kind(behind), EPCTX_KIND_NONE);
    CHECK_INT(epctx_view_kind(epctx_view_none()), EPCTX_KIND_NONE);
    epctx_model_close(&model);
    bytes_free(&b);
}

TEST(unsorted_nodes) {
    static const char *const order[3] = {"first", "second", "third"};
    bytes graph = {0}, b;
    epctx_model model;
    epctx_graph g;
    epctx_error error;
    add_node(&graph, "Relu", "third", "b", "c");
    add_node(&graph, "Relu", "first", "x", "a");
    add_node(&graph, "Relu", "second", "a", "b");
    b = new_model(&graph);
    CHECK_INT(epctx_model_open_memory(&model, b.data, b.size, NULL, NULL), EPCTX_OK);
    CHECK_OK(epctx_model_load_graph(&model, &g, &error), error);
    CHECK_INT(g.node_count, 3);
    for (size_t i = 0; i < 3; i++)
        CHECK(epctx_str_is(g.nodes[i].name, order[i]), "node %zu is '%.*s', expected '%s'", i,
              (int)g.nodes[i].name.size, g.nodes[i].name.data, order[i]);
    CHECK_INT(g.nodes[0].id, 1);
    epctx_model_close(&model);
    bytes_free(&b);
}

TEST(cycle) {
    bytes graph = {0}, b;
    epctx_model model;
    epctx_graph g;
    epctx_error error;
    add_node(&graph, "Add", "one", "x,b", "a");
    add_node(&graph, "Relu", "two", "a", "b");
    b = new_model(&graph);
    CHECK_INT(epctx_model_open_memory(&model, b.data, b.size, NULL, NULL), EPCTX_OK);
    CHECK_INT(epctx_model_load_graph(&model, &g, &error), EPCTX_ERR_GRAPH);
    CHECK_HAS(error.message, "cycle");
    epctx_model_close(&model);
    bytes_free(&b);
}

TEST(genuine_models) {
    const char *folder = test_models();
    static const struct {
        const char *file;
        size_t nodes, epnodes;
    } cases[] = {
        {"epcontext/multi_partition/multi_embed1_ctx.onnx", 6, 3},
        {"epcontext/ort_example_ep/05_partial_ctx.onnx", 0, 1},
        {"epcontext/ort_testdata/qnn_multi_ctx_embed.onnx", 0, 0},
    };
    if (folder == NULL) SKIP("EPCTX_TEST_MODELS is not set");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char path[1000];
        epctx_model model;
        epctx_error error;
        epctx_node_view node;
        epctx_cursor it;
        size_t nodes = 0, epnodes = 0;
        snprintf(path, sizeof path, "%s/%s", folder, cases[i].file);
        CHECK_OK(epctx_model_open_file(&model, path, NULL, &error), error);
        it = epctx_view_graph_nodes(epctx_model_graph(&model));
        for (; epctx_next_node(&it, &node); nodes++) epnodes += epctx_view_is_epnode(&node);
        if (cases[i].nodes > 0) CHECK_UINT(nodes, cases[i].nodes);
        if (cases[i].epnodes > 0) CHECK_UINT(epnodes, cases[i].epnodes);
        CHECK_TRUE(epnodes > 0);
        epctx_model_close(&model);
    }
}

/* A value of type sequence(map(int64, sparse float tensor [3])). */
static void add_nested_type(bytes *graph) {
    bytes value = {0}, type = {0}, sequence = {0}, inner = {0}, map = {0}, leaf = {0};
    bytes sparse = {0}, shape = {0}, dim = {0};
    put_int(&dim, 1, 3);
    put_child(&shape, 1, &dim);
    put_int(&sparse, 1, 1);
    put_child(&sparse, 2, &shape);
    put_child(&leaf, 8, &sparse);
    put_int(&map, 1, 7);
    put_child(&map, 2, &leaf);
    put_child(&inner, 5, &map);
    put_child(&sequence, 1, &inner);
    put_child(&type, 4, &sequence);
    put_str(&type, 6, "IMAGES");
    put_str(&value, 1, "v");
    put_child(&value, 2, &type);
    put_pair(&value, 4, "of", "value");
    put_child(graph, 13, &value);
}

/* -- everything that the views say -- */

static void say(bytes *out, const char *format, ...) {
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    bytes_add(out, text, strlen(text));
}

static void say_str(bytes *out, const char *what, epctx_str text) {
    say(out, " %s '%.*s'", what, (int)text.size, text.size > 0 ? text.data : "");
}

static void say_pairs(bytes *out, epctx_cursor it) {
    epctx_pair pair;
    while (epctx_next_pair(&it, &pair)) {
        say_str(out, "key", pair.key);
        say_str(out, "is", pair.value);
    }
}

static void say_dims(bytes *out, epctx_cursor it) {
    epctx_dim dim;
    while (epctx_next_dim(&it, &dim)) {
        say(out, " dim %d %d", (int)dim.known, (int)dim.value);
        say_str(out, "param", dim.param);
    }
}

static void say_type(bytes *out, const epctx_type_view *type) {
    epctx_type_view inner;
    say(out, " kind %d elem %d", (int)type->kind, (int)type->elem_type);
    say_str(out, "denotation", type->denotation);
    say_dims(out, epctx_type_dims(type));
    if (type->element.data == NULL) return;
    inner = epctx_type_of(type->element);
    say_type(out, &inner);
}

static void say_value(bytes *out, const epctx_value_view *value) {
    epctx_type_view type = epctx_type_of(value->type);
    say_str(out, "\nvalue", value->name);
    say(out, " %d %d %d %d", (int)value->has_type, (int)value->is_tensor, (int)value->has_shape,
        (int)value->elem_type);
    say_dims(out, epctx_view_value_dims(value));
    say_type(out, &type);
    say_pairs(out, epctx_view_fields(value->view, EPCTX_FIELD_VALUE_METADATA_PROPS));
}

static void say_tensor(bytes *out, const epctx_tensor_view *t) {
    say_str(out, "\ntensor", t->name);
    say(out, " elem %d rank %d raw %d %d external %d at %d size %d", (int)t->elem_type,
        (int)t->rank, (int)t->has_raw, (int)t->raw.size, (int)t->external, (int)t->offset,
        (int)t->length);
    say_str(out, "in", t->location);
}

static void say_graph(bytes *out, epctx_graph_view graph);

static void say_attr(bytes *out, const epctx_attr_view *attr) {
    epctx_cursor it = epctx_view_fields(attr->view, 8);
    epctx_view graph;
    epctx_field field;
    int64_t i;
    float f;
    epctx_str s;
    say_str(out, "\nattribute", attr->name);
    say(out, " type %d i %d f %g", (int)attr->type, (int)attr->i, attr->f);
    say_str(out, "s", attr->s);
    say_str(out, "ref", attr->ref_attr_name);
    while (epctx_next_int(&it, &i)) say(out, " %d", (int)i);
    for (it = epctx_view_fields(attr->view, 7); epctx_next_float(&it, &f);) say(out, " %g", f);
    for (it = epctx_view_fields(attr->view, 9); epctx_next_str(&it, &s);) say_str(out, "string", s);
    if (attr->t.data != NULL) {
        epctx_tensor_view tensor = epctx_view_as_tensor(attr->t);
        say_tensor(out, &tensor);
    }
    if (attr->g.data != NULL) say_graph(out, epctx_view_as_graph(attr->g));
    for (it = epctx_view_fields(attr->view, 11); epctx_next_field(&it, &field);) {
        graph = field.body;
        if (field.wire == EPCTX_WIRE_LEN) say_graph(out, epctx_view_as_graph(graph));
    }
}

static void say_nodes(bytes *out, epctx_cursor it) {
    epctx_node_view node;
    while (epctx_next_node(&it, &node)) {
        epctx_cursor attrs = epctx_view_node_attrs(&node);
        epctx_attr_view attr;
        epctx_epnode ep;
        say_str(out, "\nnode", node.name);
        say_str(out, "op", node.op_type);
        say_str(out, "domain", node.domain);
        say_str(out, "overload", node.overload);
        say_str(out, "doc", node.doc_string);
        say(out, " %d %d %d", (int)node.input_count, (int)node.output_count, (int)node.attr_count);
        say_pairs(out, epctx_view_fields(node.view, EPCTX_FIELD_NODE_METADATA_PROPS));
        while (epctx_next_attr(&attrs, &attr)) say_attr(out, &attr);
        if (epctx_view_is_epnode(&node) && epctx_view_read_epnode(&node, &ep, NULL) == EPCTX_OK)
            say_str(out, "source", ep.source);
    }
}

static void say_graph(bytes *out, epctx_graph_view graph) {
    epctx_cursor it;
    epctx_value_view value;
    epctx_tensor_view tensor;
    epctx_sparse_view sparse;
    epctx_annotation_view annotation;
    say_str(out, "\ngraph", graph.name);
    say_str(out, "doc", graph.doc_string);
    say_pairs(out, epctx_view_fields(graph.view, EPCTX_FIELD_GRAPH_METADATA_PROPS));
    say_nodes(out, epctx_view_graph_nodes(graph));
    for (it = epctx_view_graph_inputs(graph); epctx_next_value(&it, &value);)
        say_value(out, &value);
    for (it = epctx_view_graph_outputs(graph); epctx_next_value(&it, &value);)
        say_value(out, &value);
    for (it = epctx_view_graph_values(graph); epctx_next_value(&it, &value);)
        say_value(out, &value);
    for (it = epctx_view_graph_initializers(graph); epctx_next_tensor(&it, &tensor);)
        say_tensor(out, &tensor);
    for (it = epctx_graph_sparse(graph); epctx_next_sparse(&it, &sparse);) {
        say_tensor(out, &sparse.values);
        say_tensor(out, &sparse.indices);
    }
    for (it = epctx_graph_annotations(graph); epctx_next_annotation(&it, &annotation);) {
        say_str(out, "\nannotation", annotation.tensor_name);
        say_pairs(out, epctx_annotation_pairs(&annotation));
    }
}

static void say_model(bytes *out, const epctx_model *model) {
    epctx_model_info info = epctx_model_read(model);
    epctx_cursor it = epctx_model_opsets(model);
    epctx_opset opset;
    epctx_function_view f;
    epctx_training_view t;
    say(out, "ir %d version %d functions %d", (int)info.ir_version, (int)info.model_version,
        (int)info.function_count);
    say_str(out, "producer", info.producer_name);
    say_str(out, "version", info.producer_version);
    say_str(out, "domain", info.domain);
    say_str(out, "doc", info.doc_string);
    while (epctx_next_opset(&it, &opset)) {
        say_str(out, "\nopset", opset.domain);
        say(out, " %d", (int)opset.version);
    }
    say_pairs(out, epctx_view_fields(info.view, EPCTX_FIELD_MODEL_METADATA_PROPS));
    say_graph(out, epctx_model_graph(model));
    for (it = epctx_model_functions(model); epctx_next_function(&it, &f);) {
        epctx_cursor imports = epctx_function_opsets(&f);
        say_str(out, "\nfunction", f.name);
        say_str(out, "domain", f.domain);
        say_str(out, "overload", f.overload);
        say_str(out, "doc", f.doc_string);
        say(out, " %d %d %d", (int)f.input_count, (int)f.output_count, (int)f.node_count);
        say_nodes(out, epctx_function_nodes(&f));
        while (epctx_next_opset(&imports, &opset)) say(out, " opset %d", (int)opset.version);
    }
    for (it = epctx_model_trainings(model); epctx_next_training(&it, &t);) {
        say_graph(out, t.initialization);
        say_graph(out, t.algorithm);
        say_pairs(out, epctx_view_fields(t.view, EPCTX_FIELD_TRAINING_INITIALIZATION_BINDING));
        say_pairs(out, epctx_view_fields(t.view, EPCTX_FIELD_TRAINING_UPDATE_BINDING));
    }
}

/* The same of the record. */
static void say_record(bytes *out, const epctx_graph *g) {
    for (size_t i = 0; i < g->node_count; i++) {
        const epctx_node *node = &g->nodes[i];
        say_str(out, "\nnode", node->name);
        say(out, " version %d inputs %d captures", (int)node->version, (int)node->input_count);
        for (size_t k = 0; k < node->capture_count; k++) say_str(out, "", node->captures[k]);
        for (size_t k = 0; k < node->attr_count; k++) {
            const epctx_attr *attr = &node->attrs[k];
            say_str(out, "attribute", attr->name);
            say(out, " type %d count %d", (int)attr->type, (int)attr->count);
            for (size_t n = 0; n < attr->count; n++) {
                if (attr->type == EPCTX_ATTR_INTS) say(out, " %d", (int)attr->ints[n]);
                if (attr->type == EPCTX_ATTR_FLOATS) say(out, " %g", attr->floats[n]);
                if (attr->type == EPCTX_ATTR_STRINGS) say_str(out, "", attr->strings[n]);
            }
        }
    }
    for (size_t i = 0; i < g->initializer_count; i++)
        say(out, "\ninitializer rank %d size %d first %d", (int)g->initializers[i].rank,
            (int)g->initializers[i].size,
            g->initializers[i].size > 0 ? g->initializers[i].data[0] : 0);
    say(out, "\n%d inputs %d outputs %d values", (int)g->input_count, (int)g->output_count,
        (int)g->value_count);
}

/* Also of a model whose graph occurs twice, so that everything is merged. */
static epctx_status say_all(bool noise, bool doubled, const epctx_allocator *allocator,
                            bytes *out) {
    bytes b = rich_model(noise), more = {0};
    epctx_io io = rich_io();
    epctx_open_opts opts = {0};
    epctx_model model;
    epctx_graph g;
    epctx_error error;
    epctx_status status;
    opts.io = &io;
    opts.allocator = allocator;
    opts.external_folder = "/m";
    if (doubled) {
        add_node(&more, "Relu", "more", "y", "m");
        add_value(&more, GRAPH_OUTPUT, "m", 1, NULL);
        put_child(&b, 7, &more);
    }
    status = epctx_model_open_memory(&model, b.data, b.size, &opts, &error);
    if (status == EPCTX_OK) {
        say_model(out, &model);
        status = epctx_model_load_graph(&model, &g, &error);
        if (status == EPCTX_OK) say_record(out, &g);
        epctx_model_close(&model);
    }
    if (status != EPCTX_OK && allocator == NULL) say(out, "%s", error.message);
    bytes_free(&b);
    bytes_add(out, "", 1);
    return status;
}

/* A field of another wire type than its number's is an unknown field. */
TEST(unknown_fields_say_nothing) {
    static const char *const parts[] = {
        "ir 10 version 3 functions 1 producer 'producer' version '1.2' domain 'domain'",
        "node 'loop' op 'Loop' domain 'ai.onnx' overload 'overload' doc 'about the node' 3 2 11",
        "attribute 'floats' type 6 i 0 f 0 s '' ref '' 0.5 2",
        "value 'v7' 1 0 0 0 kind 7 elem 0 denotation 'IMAGE'",
        "tensor 'e' elem 1 rank 1 raw 0 0 external 1 at 4 size 4 in 'weights.bin'",
        "node 'loop' version 17 inputs 3 captures  'x'  'a'  'w'",
        "initializer rank 1 size 16 first 255",
    };
    for (int doubled = 0; doubled < 2; doubled++) {
        bytes plain = {0}, noisy = {0};
        CHECK(say_all(false, doubled, NULL, &plain) == EPCTX_OK, "%s", (char *)plain.data);
        CHECK(say_all(true, doubled, NULL, &noisy) == EPCTX_OK, "%s", (char *)noisy.data);
        CHECK_STR((char *)noisy.data, (char *)plain.data);
        for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
            CHECK_HAS((char *)plain.data, parts[i]);
        CHECK((strstr((char *)plain.data, "'more'") != NULL) == (doubled == 1),
              "the second graph is %s", doubled ? "lost" : "there");
        bytes_free(&plain);
        bytes_free(&noisy);
    }
}

TEST(allocator_fails_with_everything) {
    for (int doubled = 0; doubled < 4; doubled++) {
        bytes whole = {0};
        counting c;
        size_t n = 0;
        CHECK_INT(say_all(false, doubled % 2, NULL, &whole), EPCTX_OK);
        do {
            epctx_allocator allocator = counting_allocator(&c);
            bytes out = {0};
            epctx_status status;
            bool right;
            memset(&c, 0, sizeof c);
            c.fail_at = ++n;
            c.once = doubled < 2;
            status = say_all(false, doubled % 2, &allocator, &out);
            right = bytes_equal(&out, whole.data, whole.size);
            bytes_free(&out);
            CHECK(status == EPCTX_ERR_NOMEM || (status == EPCTX_OK && right),
                  "allocation %zu: %s and %s answer", n, epctx_status_name(status),
                  right ? "the right" : "another");
            CHECK_UINT(c.alive, 0);
        } while (c.calls >= n && n < 5000);
        bytes_free(&whole);
        CHECK_TRUE(n > 2 && n < 5000);
    }
}

/* Overwrites the model with what is no protobuf before one of the allocations. */
typedef struct changing {
    bytes *model;
    size_t calls, at;
} changing;

static void *changing_alloc(void *user, size_t size) {
    changing *c = (changing *)user;
    if (++c->calls == c->at) memset(c->model->data, 0xff, c->model->size);
    return malloc(size > 0 ? size : 1);
}

static void changing_free(void *user, void *memory) {
    (void)user;
    free(memory);
}

/* A mapped file changes at any time, also between counting fields and reading them: an error or
 * what was there, and no byte behind a list (the run under ASan looks for that). */
TEST(changed_while_loaded) {
    changing c = {NULL, 0, 0};
    do {
        bytes b = rich_model(false);
        epctx_allocator allocator = {&c, changing_alloc, changing_free};
        epctx_io io = rich_io();
        epctx_open_opts opts = {0};
        epctx_error error;
        epctx_model model;
        epctx_graph g;
        epctx_status status;
        opts.allocator = &allocator;
        opts.io = &io;
        opts.external_folder = "/m";
        c.model = &b;
        c.calls = 0;
        c.at++;
        status = epctx_model_open_memory(&model, b.data, b.size, &opts, &error);
        if (status == EPCTX_OK) status = epctx_model_load_graph(&model, &g, &error);
        CHECK(status == EPCTX_OK || error.message[0] != '\0', "allocation %zu: no message", c.at);
        if (status == EPCTX_OK) {
            bytes said = {0};
            say_record(&said, &g);
            bytes_free(&said);
        }
        epctx_model_close(&model);
        bytes_free(&b);
    } while (c.calls >= c.at);
    CHECK_TRUE(c.at > 2);
}

/* An attribute with several graphs. */
TEST(lists_of_graphs) {
    bytes graph = {0}, attr = {0}, node = new_node("Choose", "", "n", "x", "y"), model;
    epctx_model m;
    epctx_cursor it;
    epctx_node_view n;
    epctx_attr_view a;
    epctx_view body;
    put_str(&attr, 1, "branches");
    put_int(&attr, 20, EPCTX_ATTR_GRAPHS);
    for (int i = 0; i < 2; i++) {
        bytes branch = {0};
        put_str(&branch, 2, i == 0 ? "first" : "second");
        put_child(&attr, 11, &branch);
    }
    put_child(&node, 5, &attr);
    put_child(&graph, 1, &node);
    model = new_model(&graph);
    CHECK_INT(epctx_model_open_memory(&m, model.data, model.size, NULL, NULL), EPCTX_OK);
    it = epctx_view_graph_nodes(epctx_model_graph(&m));
    CHECK_TRUE(epctx_next_node(&it, &n) && epctx_view_node_find_attr(&n, "branches", &a));
    it = epctx_view_fields(a.view, EPCTX_FIELD_ATTR_GRAPHS);
    for (int i = 0; i < 2; i++) {
        CHECK_TRUE(epctx_next_view(&it, &body));
        CHECK_TRUE(epctx_str_is(epctx_view_as_graph(body).name, i == 0 ? "first" : "second"));
    }
    CHECK_TRUE(!epctx_next_view(&it, &body));
    epctx_model_close(&m);
    bytes_free(&model);
}

TEST(the_rest_of_the_schema) {
    bytes graph = {0}, sparse = {0}, values = {0}, indices = {0}, annotation = {0};
    bytes function = {0}, opset = {0}, training = {0}, algorithm = {0}, node, model;
    epctx_model m;
    epctx_graph_view g;
    epctx_cursor it;
    epctx_pair pair;
    epctx_opset import;
    epctx_function_view f;
    epctx_sparse_view s;
    epctx_annotation_view a;
    epctx_training_view t;
    epctx_value_view v;
    epctx_type_view type;
    epctx_dim dim;
    put_str(&values, 8, "sparse");
    put_int(&values, 2, 1);
    put_child(&sparse, 1, &values);
    put_int(&indices, 2, 7);
    put_child(&sparse, 2, &indices);
    put_child(&graph, 15, &sparse);
    put_str(&annotation, 1, "x");
    put_pair(&annotation, 2, "SCALE_TENSOR", "x_scale");
    put_child(&graph, 14, &annotation);
    put_pair(&graph, 16, "of", "graph");
    add_nested_type(&graph);
    model = new_model(&graph);
    put_pair(&model, 14, "of", "model");
    put_str(&function, 1, "F");
    put_str(&function, 4, "in");
    put_str(&function, 5, "out1");
    put_str(&function, 5, "out2");
    node = new_node("Relu", "", "r", "in", "out1");
    put_child(&function, 7, &node);
    put_int(&opset, 2, 21);
    put_child(&function, 9, &opset);
    put_str(&function, 10, "my.domain");
    put_str(&function, 13, "over");
    put_child(&model, 25, &function);
    put_str(&algorithm, 2, "train");
    put_child(&training, 2, &algorithm);
    put_pair(&training, 4, "w", "w_new");
    put_child(&model, 20, &training);
    CHECK_INT(epctx_model_open_memory(&m, model.data, model.size, NULL, NULL), EPCTX_OK);
    g = epctx_model_graph(&m);
    it = epctx_model_opsets(&m);
    CHECK_TRUE(epctx_next_opset(&it, &import));
    CHECK_INT(import.version, 17);
    it = epctx_view_fields(epctx_model_read(&m).view, EPCTX_FIELD_MODEL_METADATA_PROPS);
    CHECK_TRUE(epctx_next_pair(&it, &pair) && epctx_str_is(pair.value, "model"));
    it = epctx_view_fields(g.view, EPCTX_FIELD_GRAPH_METADATA_PROPS);
    CHECK_TRUE(epctx_next_pair(&it, &pair) && epctx_str_is(pair.value, "graph"));
    it = epctx_model_functions(&m);
    CHECK_TRUE(epctx_next_function(&it, &f));
    CHECK_TRUE(epctx_str_is(f.name, "F") && epctx_str_is(f.domain, "my.domain"));
    CHECK_TRUE(epctx_str_is(f.overload, "over"));
    CHECK_TRUE(f.input_count == 1 && f.output_count == 2 && f.node_count == 1);
    CHECK_TRUE(!epctx_next_function(&it, &f));
    it = epctx_function_opsets(&f);
    CHECK_TRUE(epctx_next_opset(&it, &import));
    CHECK_INT(import.version, 21);
    it = epctx_graph_sparse(g);
    CHECK_TRUE(epctx_next_sparse(&it, &s));
    CHECK_TRUE(epctx_str_is(s.values.name, "sparse"));
    CHECK_INT(s.indices.elem_type, 7);
    it = epctx_graph_annotations(g);
    CHECK_TRUE(epctx_next_annotation(&it, &a) && epctx_str_is(a.tensor_name, "x"));
    it = epctx_annotation_pairs(&a);
    CHECK_TRUE(epctx_next_pair(&it, &pair) && epctx_str_is(pair.value, "x_scale"));
    it = epctx_model_trainings(&m);
    CHECK_TRUE(epctx_next_training(&it, &t) && epctx_str_is(t.algorithm.name, "train"));
    it = epctx_view_fields(t.view, EPCTX_FIELD_TRAINING_UPDATE_BINDING);
    CHECK_TRUE(epctx_next_pair(&it, &pair) && epctx_str_is(pair.value, "w_new"));
    it = epctx_view_graph_values(g);
    CHECK_TRUE(epctx_next_value(&it, &v));
    it = epctx_view_fields(v.view, EPCTX_FIELD_VALUE_METADATA_PROPS);
    CHECK_TRUE(epctx_next_pair(&it, &pair) && epctx_str_is(pair.value, "value"));
    type = epctx_type_of(v.type);
    CHECK_INT(type.kind, EPCTX_TYPE_SEQUENCE);
    CHECK_TRUE(epctx_str_is(type.denotation, "IMAGES"));
    type = epctx_type_of(type.element);
    CHECK_INT(type.kind, EPCTX_TYPE_MAP);
    CHECK_INT(type.elem_type, 7);
    type = epctx_type_of(type.element);
    CHECK_INT(type.kind, EPCTX_TYPE_SPARSE);
    it = epctx_type_dims(&type);
    CHECK_TRUE(type.has_shape && epctx_next_dim(&it, &dim) && dim.value == 3);
    epctx_model_close(&m);
    bytes_free(&model);
}

/* Doubled fields are merged without paying for each of them twice: at most two slots. */
TEST(many_doubled_fields) {
    enum { COUNT = 100000 };
    bytes b = {0}, value = {0}, type = {0}, graph = {0};
    epctx_model model;
    size_t i, used[2];
    for (i = 0; i < COUNT; i++) put_data(&b, 7, "", 0);
    CHECK_INT(epctx_model_open_memory(&model, b.data, b.size, NULL, NULL), EPCTX_OK);
    used[0] = model.arena.used / COUNT;
    epctx_model_close(&model);
    bytes_free(&b);
    for (i = 0; i < COUNT; i++) put_data(&type, 1, "", 0);
    put_str(&value, 1, "x");
    put_child(&value, 2, &type);
    put_child(&graph, GRAPH_VALUE, &value);
    b = new_model(&graph);
    CHECK_INT(epctx_model_open_memory(&model, b.data, b.size, NULL, NULL), EPCTX_OK);
    used[1] = model.arena.used / COUNT;
    epctx_model_close(&model);
    bytes_free(&b);
    CHECK(used[0] <= 112 && used[1] <= 56, "%zu bytes for a doubled graph, %zu for a doubled type",
          used[0], used[1]);
}

/* Time stays in proportion to the model, whatever there is much of. */
TEST(many_opsets) {
    enum { COUNT = 20000 };
    bytes graph = {0}, b;
    epctx_model model;
    epctx_graph g;
    epctx_error error;
    char text[16];
    clock_t begin = clock();
    for (int i = 0; i < COUNT; i++) add_node(&graph, "Relu", "", "x", "");
    b = new_model(&graph);
    for (int i = 0; i < COUNT; i++) {
        snprintf(text, sizeof text, "d%d", i);
        add_opset(&b, text, i);
    }
    add_opset(&b, "ai.onnx", 18);
    CHECK_INT(epctx_model_open_memory(&model, b.data, b.size, NULL, NULL), EPCTX_OK);
    CHECK_OK(epctx_model_load_graph(&model, &g, &error), error);
    CHECK_UINT(g.node_count, COUNT);
    CHECK_INT(g.nodes[COUNT - 1].version, 18);
    CHECK_INT(epctx_model_opset(&model, epctx_str_of("")), 18);
    CHECK_INT(epctx_model_opset(&model, epctx_str_of("d77")), 77);
    epctx_model_close(&model);
    bytes_free(&b);
    CHECK((clock() - begin) / CLOCKS_PER_SEC < 5, "more than 5 s");
}

TEST(names_of_types) {
    CHECK_STR(epctx_attr_type_name(-1), "unknown");
    CHECK_STR(epctx_attr_type_name(0), "UNDEFINED");
    CHECK_STR(epctx_attr_type_name(14), "TYPE_PROTOS");
    CHECK_STR(epctx_attr_type_name(15), "unknown");
}

/* -- the order in which ONNX Runtime hands out nodes -- */

/* "name name " in that order. */
static const char *order_of(const bytes *data) {
    static char text[200];
    epctx_text out = epctx_text_of(text, sizeof text);
    epctx_cursor it;
    epctx_node_view nodes[16];
    const uint32_t *order;
    epctx_model model;
    size_t count, i;
    if (epctx_model_open_memory(&model, data->data, data->size, NULL, NULL) != EPCTX_OK)
        return "unreadable";
    it = epctx_view_graph_nodes(epctx_model_graph(&model));
    for (i = 0; i < 16 && epctx_next_node(&it, &nodes[i]); i++) {
    }
    if (epctx_view_graph_order(epctx_model_graph(&model), &model.arena, &order, &count, NULL) ==
        EPCTX_OK)
        for (i = 0; i < count; i++) epctx_text_put_format(&out, "%S ", &nodes[order[i]].name);
    epctx_model_close(&model);
    return text;
}

/* As seen with ONNX Runtime 1.31: the last branch comes first, so does the last input. */
TEST(order_of_nodes) {
    bytes graph = {0}, body = {0}, node, model;
    model = new_model(&graph);
    CHECK_STR(order_of(&model), "");
    bytes_free(&model);
    add_node(&graph, "Relu", "a", "x", "a1");
    add_node(&graph, "Relu", "b", "x", "b1");
    add_node(&graph, "Relu", "c", "b1", "c1");
    add_node(&graph, "Add", "d", "c1,a1", "d1");
    add_node(&graph, "Relu", "e", "x", "e1");
    model = new_model(&graph);
    CHECK_STR(order_of(&model), "e b c a d ");
    bytes_free(&model);
    /* A body reads from outside, a circle is left out, nodes may be listed in any order. */
    add_node(&body, "Relu", "inner", "late", "inner1");
    node = new_node("If", "", "if", "x", "y");
    add_attr_graph(&node, "then_branch", &body);
    put_child(&graph, 1, &node);
    add_node(&graph, "Relu", "last", "x", "late");
    add_node(&graph, "Add", "one", "two1,two1", "one1");
    add_node(&graph, "Add", "two", "one1,,two1", "two1");
    model = new_model(&graph);
    CHECK_STR(order_of(&model), "last if ");
    bytes_free(&model);
}

int main(int argc, char **argv) {
    RUN(model_info);
    RUN(nodes);
    RUN(values_and_tensors);
    RUN(last_scalar_wins);
    RUN(doubled_types);
    RUN(no_graph);
    RUN(not_a_model);
    RUN(place_of_damage);
    RUN(bad_arguments);
    RUN(closed_models);
    RUN(deep_bytes_of_no_model);
    RUN(record);
    RUN(record_bad_tensors);
    RUN(external_data);
    RUN(external_data_from_memory);
    RUN(external_data_overlaps);
    RUN(external_data_of_functions);
    RUN(allocator_fails);
    RUN(fixed_buffers);
    RUN(subgraph);
    RUN(bodies_in_bodies);
    RUN(captures_are_exact);
    RUN(captures_without_memory);
    RUN(kinds_of_views);
    RUN(elements);
    RUN(shuffled_nodes);
    RUN(typed_fields);
    RUN(unsorted_nodes);
    RUN(cycle);
    RUN(genuine_models);
    RUN(unknown_fields_say_nothing);
    RUN(allocator_fails_with_everything);
    RUN(changed_while_loaded);
    RUN(lists_of_graphs);
    RUN(the_rest_of_the_schema);
    RUN(many_doubled_fields);
    RUN(many_opsets);
    RUN(names_of_types);
    RUN(order_of_nodes);
    return test_end();
}
