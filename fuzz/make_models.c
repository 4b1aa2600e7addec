/*
 * Writes the seeds of fuzz_open: small models that together use every message
 * of the schema that the library looks into, and odd encodings of them.
 *
 *     make_models FOLDER
 */
#include "../tests/build.h"

#include <stdio.h>

static const int64_t dims_2_3[] = {2, 3, -1};
static const float weights[] = {1, 2, 3};

static bool save(const char *folder, const char *name, bytes *b) {
    char path[1024];
    FILE *file;
    bool good;
    snprintf(path, sizeof path, "%s/%s.onnx", folder, name);
    file = fopen(path, "wb");
    good = file != NULL && fwrite(b->data, 1, b->size, file) == b->size && fclose(file) == 0;
    if (!good) fprintf(stderr, "%s: cannot be written\n", path);
    bytes_free(b);
    return good;
}

static bytes plain(void) {
    bytes graph = {0}, node;
    node = new_node("Conv", "", "conv", "x,w,,b", "y,");
    add_attr_int(&node, "group", 4);
    add_attr_str(&node, "auto_pad", "SAME", 4);
    put_child(&graph, 1, &node);
    add_node(&graph, "Relu", "relu", "y", "z");
    put_str(&graph, 2, "main");
    add_value(&graph, GRAPH_INPUT, "x", EPCTX_ONNX_FLOAT, dims_2_3);
    add_value(&graph, GRAPH_OUTPUT, "z", EPCTX_ONNX_FLOAT, NULL);
    add_value(&graph, GRAPH_VALUE, "y", EPCTX_ONNX_INT64, dims_2_3);
    add_floats(&graph, "w", weights, 3);
    add_external(&graph, "b", 3, "w.bin", "64", "12");
    return new_model(&graph);
}

static bytes context(void) {
    static const char blob[] = "\0binary\xff";
    bytes graph = {0}, model;
    add_epnode(&graph, "p0", "x", "a", 1, 0, "NPU", "p0", "m_npu.bin", 9);
    add_epnode(&graph, "p1", "a", "b", 1, 1, "QNN", "p1", blob, sizeof blob);
    add_epnode(&graph, "p2", "b", "y", 0, -1, "NPU", NULL, NULL, 0);
    add_node(&graph, "Relu", "r", "y", "z");
    model = new_model(&graph);
    add_opset(&model, "com.microsoft", 1);
    return model;
}

/* If with a body in `g`, a body in `graphs`, a tensor, and a function. */
static bytes nested(void) {
    bytes body = {0}, attr = {0}, node = new_node("If", "", "if", "c", "y"), graph = {0}, model;
    bytes tensor = {0}, function = {0}, inner;
    add_node(&body, "Add", "add", "outer,outer", "r");
    add_floats(&body, "w", weights, 2);
    put_str(&attr, 1, "then_branch");
    put_child(&attr, 6, &body);
    put_int(&attr, 20, EPCTX_ATTR_GRAPH);
    put_child(&node, 5, &attr);
    add_node(&body, "Neg", "neg", "outer", "r");
    put_str(&attr, 1, "bodies");
    put_child(&attr, 11, &body);
    put_int(&attr, 20, EPCTX_ATTR_GRAPHS);
    put_child(&node, 5, &attr);
    put_int(&tensor, 1, 1);
    put_int(&tensor, 2, EPCTX_ONNX_INT64);
    put_int(&tensor, 7, -5);
    put_str(&attr, 1, "value");
    put_child(&attr, 5, &tensor);
    put_int(&attr, 20, EPCTX_ATTR_TENSOR);
    put_child(&node, 5, &attr);
    put_child(&graph, 1, &node);
    model = new_model(&graph);
    put_str(&function, 1, "f");
    inner = new_node("Relu", "", "", "a", "b");
    put_child(&function, 7, &inner);
    put_child(&model, 25, &function);
    return model;
}

/* Sequence, map, optional, sparse types; sparse initializer; annotations; training; metadata. */
static bytes rare(void) {
    bytes graph = {0}, model, type = {0}, inner = {0}, value = {0}, entry = {0}, tensor = {0};
    static const uint32_t kinds[] = {4, 5, 8, 9};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        bytes leaf = {0};
        put_int(&tensor, 1, EPCTX_ONNX_FLOAT);
        put_child(&leaf, 1, &tensor);
        if (kinds[i] == 5) put_int(&inner, 1, EPCTX_ONNX_INT64);
        if (kinds[i] == 8)
            put_int(&inner, 1, EPCTX_ONNX_FLOAT);
        else
            put_data(&inner, kinds[i] == 5 ? 2 : 1, leaf.data, leaf.size);
        bytes_free(&leaf);
        put_child(&type, kinds[i], &inner);
        put_str(&value, 1, "v");
        put_child(&value, 2, &type);
        put_child(&graph, GRAPH_INPUT, &value);
    }
    put_str(&tensor, 8, "s");
    put_child(&inner, 1, &tensor);
    put_child(&graph, 15, &inner);
    put_str(&entry, 1, "k");
    put_str(&entry, 2, "v");
    put_data(&graph, 16, entry.data, entry.size);
    put_str(&inner, 1, "t");
    put_data(&inner, 2, entry.data, entry.size);
    put_child(&graph, 14, &inner);
    model = new_model(&graph);
    put_child(&model, 14, &entry);
    put_child(&model, 20, &inner);
    return model;
}

/* Longer varints and lengths than needed, unknown fields of every wire type, packed fields,
 * singular fields that occur twice. */
static bytes odd(void) {
    bytes graph = {0}, model = {0}, node, tensor = {0}, packed = {0}, value = {0}, type = {0};
    put_tag(&model, 1, 0);
    put_varint_wide(&model, 8, 10);
    put_tag(&model, 1000, 3);
    put_str(&model, 5, "group");
    put_tag(&model, 1000, 4);
    put_tag(&model, 1001, 1);
    bytes_add(&model, "8 bytes.", 8);
    put_tag(&model, 1002, 5);
    bytes_add(&model, "four", 4);
    node = new_node("Op", "d", "n", "x", "y");
    put_str(&node, 3, "the last name wins");
    put_tag(&graph, 1, 2);
    put_varint_wide(&graph, node.size, 5);
    bytes_add(&graph, node.data, node.size);
    bytes_free(&node);
    put_varint(&packed, 2);
    put_varint_wide(&packed, 3, 4);
    put_child(&tensor, 1, &packed);
    put_int(&tensor, 2, EPCTX_ONNX_FLOAT);
    put_data(&tensor, 4, weights, 8);
    put_float(&tensor, 4, 1.5f);
    put_child(&graph, 5, &tensor);
    put_str(&value, 1, "x");
    for (int i = 0; i < 2; i++) {
        bytes shape = {0};
        put_int(&tensor, 1, EPCTX_ONNX_FLOAT);
        put_data(&shape, 1, "\x08\x02", 2);
        put_child(&tensor, 2, &shape);
        put_child(&type, 1, &tensor);
        put_child(&value, 2, &type);
    }
    put_child(&graph, GRAPH_INPUT, &value);
    put_data(&model, 7, graph.data, graph.size);
    put_child(&model, 7, &graph);
    return model;
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        bytes (*make)(void);
    } seeds[] = {
        {"plain", plain}, {"context", context}, {"nested", nested}, {"rare", rare}, {"odd", odd}};
    if (argc != 2) {
        fprintf(stderr, "usage: make_models FOLDER\n");
        return 2;
    }
    for (size_t i = 0; i < sizeof seeds / sizeof seeds[0]; i++) {
        bytes model = seeds[i].make();
        if (!save(argv[1], seeds[i].name, &model)) return 1;
    }
    return 0;
}
