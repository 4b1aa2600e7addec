/* >>ep: the hash of a graph: what changes it and what does not. */
#define _XOPEN_SOURCE 700
#include "edit.h"

enum {
    ONE_VALUE,
    OP,
    WEIGHT,
    OUTER_NAME,
    NESTED,
    ONE_OF_GRAPHS,
    ONE_OF_TENSORS,
    SPARSE,
    ONE_OF_SPARSE,
    TYPE,
    ONE_OF_TYPES,
    STRINGS_IN_ATTRIBUTE,
    STRINGS,
    HALF_BYTES,
    CALLED,
    CALLED_BY_BODY,
    VERSION_IN_BODY,
    FILE_OF_BODY,
    FLOATS,
    DOUBLES,
    CHANGES
};

static void add_named_tensor(bytes *parent, uint32_t number, const char *name, int32_t type,
                             int64_t last) {
    bytes tensor = {0};
    put_int(&tensor, 1, 2);
    put_int(&tensor, 2, type);
    if (type == EPCTX_ONNX_STRING) {
        const char text = (char)last;
        put_str(&tensor, 6, "first");
        put_data(&tensor, 6, &text, 1);
    } else {
        put_int(&tensor, 5, 7);
        put_int(&tensor, 5, last);
    }
    put_str(&tensor, 8, name);
    put_child(parent, number, &tensor);
}

/* Two floats or doubles, packed or not. */
static void add_fixed(bytes *graph, int32_t type, bool other, bool packed) {
    const uint8_t numbers[2][8] = {{7}, {other}};
    size_t width = type == EPCTX_ONNX_FLOAT ? 4 : 8;
    uint32_t field = width == 4 ? EPCTX_FIELD_TENSOR_FLOAT_DATA : EPCTX_FIELD_TENSOR_DOUBLE_DATA;
    bytes tensor = {0}, list = {0};
    put_int(&tensor, 1, 2);
    put_int(&tensor, 2, type);
    for (int i = 0; i < 2; i++) {
        if (!packed) put_tag(&tensor, field, width == 4 ? 5 : 1);
        bytes_add(packed ? &list : &tensor, numbers[i], width);
    }
    if (packed) put_child(&tensor, field, &list);
    put_str(&tensor, 8, width == 4 ? "floats" : "doubles");
    put_child(graph, 5, &tensor);
}

static void add_sparse_value(bytes *parent, uint32_t number, int64_t last) {
    bytes sparse = {0};
    add_named_tensor(&sparse, 1, "", EPCTX_ONNX_INT32, last);
    put_int(&sparse, 3, 4);
    put_child(parent, number, &sparse);
}

static void add_sequence_type(bytes *parent, uint32_t number, int32_t type) {
    bytes tensor = {0}, elem = {0}, sequence = {0}, outer = {0};
    put_int(&tensor, 1, type);
    put_child(&elem, 1, &tensor);
    put_child(&sequence, 1, &elem);
    put_child(&outer, 4, &sequence);
    put_child(parent, number, &outer);
}

static bytes hash_body(int change, bool odd) {
    bytes body = {0}, nested = {0}, node, packed = {0}, attr = {0};
    node = new_node(change == OP ? "Floor" : "Relu", "", "inner", change == OUTER_NAME ? "x2" : "x",
                    "b");
    put_str(&attr, 1, "list");
    if (odd) { /* packed, and one number wider than it must be */
        put_varint(&packed, 1);
        put_varint_wide(&packed, change == ONE_VALUE ? 3 : 2, 5);
        put_child(&attr, 8, &packed);
    } else {
        put_int(&attr, 8, 1);
        put_int(&attr, 8, change == ONE_VALUE ? 3 : 2);
    }
    put_int(&attr, 20, EPCTX_ATTR_INTS);
    put_child(&node, 5, &attr);
    if (odd) /* fields in another order */
        add_value(&body, GRAPH_OUTPUT, "b", EPCTX_ONNX_FLOAT, vector);
    put_child(&body, 1, &node);
    node = new_node("Use", "elsewhere", "use", "b", "c");
    put_child(&body, 1, &node);
    node = new_node("If", "", "deep", "b", "d");
    add_node(&nested, change == NESTED ? "Floor" : "Relu", "deepest", "b", "e");
    add_attr_graph(&node, "then_branch", &nested);
    put_child(&body, 1, &node);
    add_named_tensor(&body, 5, "w", EPCTX_ONNX_INT32, change == WEIGHT);
    add_fixed(&body, EPCTX_ONNX_FLOAT, change == FLOATS, odd);
    add_fixed(&body, 11, change == DOUBLES, odd);
    add_external(&body, "file", 4, "w.bin", "0", "16");
    if (!odd) add_value(&body, GRAPH_OUTPUT, "b", EPCTX_ONNX_FLOAT, vector);
    return body;
}

static bytes hash_model(int change, bool odd) {
    bytes graph = {0}, node, body = hash_body(change, odd), attr = {0}, model;
    node = new_node("If", "", "if", "c", "y");
    add_attr_graph(&node, "then_branch", &body);
    for (int i = 0; i < 2; i++) {
        bytes one = {0};
        add_node(&one, change == ONE_OF_GRAPHS && i == 1 ? "Floor" : "Relu", "one", "x", "o");
        put_child(&attr, 11, &one);
        add_named_tensor(&attr, 10, "t", EPCTX_ONNX_INT32, change == ONE_OF_TENSORS && i == 1);
        add_sparse_value(&attr, 23, change == ONE_OF_SPARSE && i == 1);
        add_sequence_type(&attr, 15, change == ONE_OF_TYPES && i == 1 ? 6 : 1);
    }
    /* One attribute for each type; the other lists in it are not looked at, but make no harm. */
    for (int type = EPCTX_ATTR_TENSORS; type <= EPCTX_ATTR_TYPE_PROTOS; type++) {
        bytes copy = {0};
        char name[8];
        if (type == EPCTX_ATTR_SPARSE_TENSOR)
            add_sparse_value(&copy, 22, change == SPARSE);
        else if (type == EPCTX_ATTR_TYPE_PROTO)
            add_sequence_type(&copy, 14, change == TYPE ? 6 : 1);
        else
            bytes_add(&copy, attr.data, attr.size);
        snprintf(name, sizeof name, "a%d", type);
        end_attr(&node, name, type, &copy);
    }
    bytes_free(&attr);
    add_named_tensor(&attr, 5, "", EPCTX_ONNX_STRING, change == STRINGS_IN_ATTRIBUTE ? 'b' : 'a');
    end_attr(&node, "text", EPCTX_ATTR_TENSOR, &attr);
    put_child(&graph, 1, &node);
    node = new_node("Mine", "own", "call", "x", "z");
    put_child(&graph, 1, &node);
    add_named_tensor(&graph, 5, "s", EPCTX_ONNX_STRING, change == STRINGS ? 'b' : 'a');
    add_named_tensor(&graph, 5, "h", 22 /* int4 */, change == HALF_BYTES);
    add_ends(&graph, "x", "y");
    model = new_model(&graph);
    for (int i = 0; i < 2; i++) {
        bytes function = {0};
        put_str(&function, 1, i == 0 ? "Mine" : "Use");
        put_str(&function, 10, i == 0 ? "own" : "elsewhere");
        node = new_node(change == (i == 0 ? CALLED : CALLED_BY_BODY) ? "Floor" : "Relu", "", "f",
                        "a", "b");
        put_child(&function, 7, &node);
        put_child(&model, 25, &function);
    }
    add_opset(&model, "elsewhere", change == VERSION_IN_BODY ? 2 : 1);
    return model;
}

static uint64_t hash_of(bytes b, epctx_error *error) {
    epctx_open_opts opts = {0};
    epctx_model model;
    epctx_graph graph;
    uint64_t hash = 0;
    opts.external_folder = root;
    if (epctx_model_open_memory(&model, b.data, b.size, &opts, error) == EPCTX_OK &&
        epctx_model_load_graph(&model, &graph, error) == EPCTX_OK)
        hash = epctx_graph_hash(&graph);
    epctx_model_close(&model);
    bytes_free(&b);
    return hash;
}

/* Whatever a graph says counts, wherever it says so: in bodies, in functions, in attributes and
 * tensors that a record has no member for. How it is encoded does not. */
TEST(hash_of_everything) {
    static uint8_t data[16];
    uint64_t hashes[CHANGES + 1];
    epctx_error error;
    CHECK_TRUE(make_root());
    make_file(at("w.bin"), data, sizeof data);
    epctx_error_clear(&error);
    for (int i = 0; i <= CHANGES; i++) {
        data[15] = (uint8_t)(i == FILE_OF_BODY);
        make_file(at("w.bin"), data, sizeof data);
        hashes[i] = hash_of(hash_model(i, false), &error);
        CHECK(hashes[i] != 0, "%s", error.message);
        CHECK(hash_of(hash_model(i, true), &error) == hashes[i],
              "change %d: the encoding of a body counts", i);
        for (int k = 0; k < i; k++)
            CHECK(hashes[i] != hashes[k], "changes %d and %d give the same hash", i, k);
    }
    clear_root();
    rmdir(root);
}

/* What has no body keeps the hash it has always had: binaries stay fresh. */
TEST(hash_without_bodies) {
    bytes graph = {0}, node = new_node("Conv", "", "conv", "x,w", "t");
    epctx_error error;
    float little[4]; /* endian, as raw data is */
    for (int i = 0; i < 16; i++) {
        uint32_t bits;
        memcpy(&bits, &weights[i / 4], 4);
        ((uint8_t *)little)[i] = (uint8_t)(bits >> 8 * (i % 4));
    }
    add_attr_int(&node, "group", 4);
    add_attr_str(&node, "auto_pad", "SAME", 4);
    put_child(&graph, 1, &node);
    add_node(&graph, "Relu", "relu", "t", "y");
    add_floats(&graph, "w", little, 4);
    add_ends(&graph, "x", "y");
    root[0] = '\0';
    CHECK_UINT(hash_of(new_model(&graph), &error), UINT64_C(9833412423721309037));
}

int main(int argc, char **argv) {
    RUN(hash_of_everything);
    RUN(hash_without_bodies);
    return test_end();
}
