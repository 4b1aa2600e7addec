/*
 * Writes the seeds of fuzz_blob: small context binaries that together use
 * every opcode.
 *
 *     make_blobs FOLDER
 */
#include "../tests/npu_graph.h"

#include <stdio.h>

static float numbers[256];
static int written;

static int save(graph_builder *b, const char *folder, const char *name) {
    char path[1024];
    epctx_buffer blob;
    epctx_error error;
    FILE *file;
    epctx_error_clear(&error);
    if (gb_compile(b, NULL, &blob, &error) != EPCTX_OK) {
        fprintf(stderr, "%s: %s\n", name, error.message);
        return 1;
    }
    snprintf(path, sizeof path, "%s/%s.bin", folder, name);
    file = fopen(path, "wb");
    if (!file || fwrite(blob.data, 1, blob.size, file) != blob.size || fclose(file) != 0) {
        fprintf(stderr, "%s: cannot be written\n", path);
        return 1;
    }
    written++;
    epctx_buffer_free(&blob);
    gb_free(b);
    return 0;
}

/* Strides and kernels with loops of their own, a sum in a convolution, slices, parts, quantizing */
static int windows(const char *folder) {
    static const int64_t x[4] = {1, 1, 20, 21}, w[4] = {8, 1, 3, 3}, d[4] = {8, 1, 5, 5};
    static const int64_t q[4] = {8, 8, 1, 1}, two[4] = {2, 2, 2, 2}, one[4] = {1, 1, 1, 1};
    static const int64_t scalar[1] = {1};
    static const int8_t zero[1] = {3};
    static const float scale[1] = {0.125f};
    graph_builder b;
    gb_init(&b);
    gb_input(&b, "x", EPCTX_ONNX_FLOAT, 4, x);
    gb_floats(&b, "w", 4, w, numbers);
    gb_floats(&b, "d", 4, d, numbers + 20);
    gb_floats(&b, "q", 4, q, numbers + 40);
    gb_floats(&b, "s", 0, scalar, scale);
    gb_constant(&b, "z", EPCTX_ONNX_INT8, 0, scalar, zero);
    gb_node(&b, "Conv", 11, "x,w", "a");
    gb_attr_ints(&b, "pads", 4, one);
    gb_node(&b, "MaxPool", 12, "a", "p");
    gb_attr_ints(&b, "kernel_shape", 2, two);
    gb_attr_ints(&b, "strides", 2, two);
    gb_node(&b, "Conv", 11, "p,d", "e");
    gb_attr_int(&b, "group", 8);
    gb_attr_ints(&b, "pads", 4, two);
    gb_node(&b, "Conv", 11, "e,w1", "f");
    gb_floats(&b, "w1", 4, w, numbers + 70);
    gb_attr_int(&b, "group", 8);
    gb_attr_ints(&b, "strides", 2, two);
    gb_attr_ints(&b, "pads", 4, one);
    gb_node(&b, "Conv", 11, "f,q", "g");
    gb_node(&b, "Add", 14, "g,f", "h");
    gb_node(&b, "QuantizeLinear", 13, "h,s,z", "i");
    gb_node(&b, "DequantizeLinear", 13, "i,s,z", "y");
    gb_output(&b, "y");
    return save(&b, folder, "windows");
}

static int cnn(const char *folder) {
    static const int64_t x[4] = {1, 2, 6, 6}, w[4] = {3, 2, 3, 3}, d[4] = {3, 1, 3, 3};
    static const int64_t c[1] = {3}, one[4] = {1, 1, 1, 1}, two[2] = {2, 2};
    graph_builder b;
    gb_init(&b);
    gb_input(&b, "x", EPCTX_ONNX_FLOAT, 4, x);
    gb_floats(&b, "w", 4, w, numbers);
    gb_floats(&b, "d", 4, d, numbers + 60);
    gb_floats(&b, "c", 1, c, numbers + 90);
    gb_node(&b, "Conv", 11, "x,w,c", "a");
    gb_attr_ints(&b, "pads", 4, one);
    gb_node(&b, "Relu", 14, "a", "r");
    gb_node(&b, "Conv", 11, "r,d", "e");
    gb_attr_int(&b, "group", 3);
    gb_attr_ints(&b, "pads", 4, one);
    gb_node(&b, "MaxPool", 12, "e", "p");
    gb_attr_ints(&b, "kernel_shape", 2, two);
    gb_attr_ints(&b, "strides", 2, two);
    gb_node(&b, "BatchNormalization", 15, "p,c,c,c,v", "n");
    gb_floats(&b, "v", 1, c, numbers + 3);
    gb_node(&b, "GlobalAveragePool", 1, "n", "g");
    gb_node(&b, "Softmax", 13, "g", "s");
    gb_attr_int(&b, "axis", 1);
    gb_output(&b, "s");
    return save(&b, folder, "cnn");
}

static int mlp(const char *folder) {
    static const int64_t x[2] = {3, 5}, w[2] = {5, 4}, i2[2] = {0, 2};
    static const int64_t four[1] = {4};
    graph_builder b;
    gb_init(&b);
    gb_input(&b, "x", EPCTX_ONNX_FLOAT, 2, x);
    gb_input(&b, "i", EPCTX_ONNX_INT64, 1, i2 + 1);
    gb_floats(&b, "w", 2, w, numbers);
    gb_floats(&b, "c", 1, four, numbers + 20);
    gb_node(&b, "Gemm", 13, "x,w,c", "g");
    gb_attr_float(&b, "alpha", 0.5f);
    gb_node(&b, "Sigmoid", 13, "g", "s");
    gb_node(&b, "Transpose", 13, "s", "t");
    gb_node(&b, "MatMul", 13, "s,t", "m");
    gb_node(&b, "Tanh", 13, "x", "h");
    gb_node(&b, "Gather", 13, "m,i", "y");
    gb_node(&b, "Cast", 13, "i", "f");
    gb_attr_int(&b, "to", EPCTX_ONNX_FLOAT);
    gb_output(&b, "y");
    gb_output(&b, "f");
    gb_output(&b, "h");
    return save(&b, folder, "mlp");
}

static int shapes(const char *folder) {
    static const int64_t x[3] = {2, 3, 4}, y[3] = {1, 3, 1}, pads[6] = {0, 1, 1, 0, 0, 2};
    graph_builder b;
    gb_init(&b);
    gb_input(&b, "x", EPCTX_ONNX_FLOAT, 3, x);
    gb_input(&b, "y", EPCTX_ONNX_FLOAT, 3, y);
    gb_ints(&b, "pads", 6, pads);
    gb_node(&b, "Add", 14, "x,y", "a");
    gb_node(&b, "Concat", 13, "a,x", "c");
    gb_attr_int(&b, "axis", 1);
    gb_node(&b, "Pad", 13, "c,pads", "p");
    gb_node(&b, "Pad", 13, "x,pads", "q");
    gb_attr_text(&b, "mode", "reflect");
    gb_output(&b, "p");
    gb_output(&b, "q");
    return save(&b, folder, "shapes");
}

static int indices(const char *folder) {
    static const int64_t x[2] = {3, 4}, i2[2] = {2, 1}, u[2] = {2, 4}, one[1] = {1};
    static const int8_t zero[1] = {3};
    graph_builder b;
    gb_init(&b);
    gb_input(&b, "x", EPCTX_ONNX_FLOAT, 2, x);
    gb_input(&b, "i", EPCTX_ONNX_INT64, 2, i2);
    gb_input(&b, "u", EPCTX_ONNX_FLOAT, 2, u);
    gb_floats(&b, "s", 0, one, numbers);
    gb_constant(&b, "z", EPCTX_ONNX_INT8, 0, one, zero);
    gb_node(&b, "GatherElements", 13, "x,i", "a");
    gb_node(&b, "ScatterElements", 16, "x,i,a", "b");
    gb_attr_text(&b, "reduction", "add");
    gb_node(&b, "GatherND", 13, "b,i", "c");
    gb_node(&b, "ScatterND", 16, "b,i,u", "d");
    gb_node(&b, "QuantizeLinear", 13, "d,s,z", "q");
    gb_node(&b, "DequantizeLinear", 13, "q,s,z", "e");
    gb_node(&b, "Less", 13, "e,x", "l");
    gb_node(&b, "Where", 16, "l,e,x", "w");
    gb_node(&b, "ArgMax", 13, "w", "m");
    gb_attr_int(&b, "axis", 1);
    gb_node(&b, "Div", 14, "m,m", "y");
    gb_output(&b, "y");
    gb_output(&b, "c");
    return save(&b, folder, "indices");
}

static int sequence(const char *folder) {
    static const int64_t x[3] = {3, 1, 4}, w[3] = {1, 12, 4}, r[3] = {1, 12, 3}, s[1] = {3};
    static const int64_t one[1] = {1};
    static const float scales[3] = {2, 1, 1.5f};
    graph_builder b;
    gb_init(&b);
    gb_input(&b, "x", EPCTX_ONNX_FLOAT, 3, x);
    gb_input(&b, "l", EPCTX_ONNX_INT32, 1, one);
    gb_floats(&b, "w", 3, w, numbers);
    gb_floats(&b, "r", 3, r, numbers + 50);
    gb_floats(&b, "n", 1, s, numbers);
    gb_floats(&b, "f", 1, s, scales);
    gb_node(&b, "LSTM", 14, "x,w,r,,l", "h,k");
    gb_attr_int(&b, "hidden_size", 3);
    gb_node(&b, "LayerNormalization", 17, "k,n", "o");
    gb_node(&b, "Resize", 13, "o,,f", "y");
    gb_attr_text(&b, "mode", "linear");
    gb_output(&b, "y");
    gb_output(&b, "h");
    return save(&b, folder, "sequence");
}

int main(int argc, char **argv) {
    size_t i;
    for (i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        numbers[i] = (float)(i % 7) * 0.25f + 0.125f;
    if (argc != 2 || cnn(argv[1]) || windows(argv[1]) || mlp(argv[1]) || shapes(argv[1]) ||
        indices(argv[1]) || sequence(argv[1]))
        return 1;
    printf("%d seeds\n", written);
    return 0;
}
