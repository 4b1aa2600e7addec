/* A small file of every kind that epctx_binary_identify knows, made here: for tests, and for the
 * seeds of fuzz_binary. */
#ifndef EPCTX_TEST_BINARIES_H
#define EPCTX_TEST_BINARIES_H

#include "build.h"
#include "npu_blob.h"

#include <string.h>

#define BINARIES_UNUSED BUILD_UNUSED

/* -- bytes -- */

BINARIES_UNUSED static void put_number(bytes *b, uint64_t number, size_t size) {
    uint8_t out[8];
    size_t i;
    for (i = 0; i < size; i++) out[i] = (uint8_t)(number >> 8 * i);
    bytes_add(b, out, size);
}

BINARIES_UNUSED static void put_text(bytes *b, const char *text) {
    bytes_add(b, text, strlen(text));
}

BINARIES_UNUSED static void put_zeros(bytes *b, size_t size) {
    while (size-- > 0) put_number(b, 0, 1);
}

BINARIES_UNUSED static void set_number(bytes *b, size_t at, uint64_t number, size_t size) {
    size_t i;
    for (i = 0; i < size; i++) b->data[at + i] = (uint8_t)(number >> 8 * i);
}

/* Bytes of every value, the same each time. */
BINARIES_UNUSED static void put_noise(bytes *b, size_t size) {
    uint32_t state = 1;
    size_t i;
    for (i = 0; i < size; i++) {
        state = state * 1664525u + 1013904223u;
        put_number(b, state >> 24, 1);
    }
}

/* -- the reference NPU, by the format in the manual of epctx_npu.h -- */

BINARIES_UNUSED static bytes npu_binary(void) {
    bytes b = {0};
    size_t i;
    put_text(&b, "EPCTXNPU");
    put_number(&b, 3, 4);
    put_number(&b, 128, 4);
    put_text(&b, "0.1.0");
    put_zeros(&b, 11);
    put_text(&b, "generic");
    put_zeros(&b, 17);
    put_zeros(&b, 8);       /* 56: size */
    put_number(&b, 44, 8);  /* words: a graph, two values */
    put_number(&b, 304, 8); /* strings */
    put_number(&b, 6, 8);
    put_number(&b, 320, 8); /* weights */
    put_number(&b, 0, 8);
    put_number(&b, 1, 4);
    put_zeros(&b, 4 + 16);
    put_number(&b, 0, 4); /* graph: name */
    put_number(&b, 4, 4);
    put_zeros(&b, 16);
    put_number(&b, 20, 4); /* values */
    put_number(&b, 1, 4);
    put_number(&b, 1, 4);
    put_zeros(&b, 44);
    for (i = 0; i < 2; i++) { /* "x" and "y", float[2,3] */
        put_number(&b, 4 + i, 4);
        put_number(&b, 1, 4);
        put_number(&b, 1, 4);
        put_number(&b, 2, 4);
        put_number(&b, 2, 4);
        put_number(&b, 3, 4);
        put_zeros(&b, 24);
    }
    put_text(&b, "mainxy");
    put_zeros(&b, 10);
    set_number(&b, 56, b.size, 8);
    correct_sum(b.data, b.size);
    return b;
}

/* -- the toy -- */

BINARIES_UNUSED static void put_counted(bytes *b, const char *text) {
    put_number(b, strlen(text), 4);
    put_text(b, text);
}

BINARIES_UNUSED static void correct_toy(uint8_t *data, size_t size) {
    uint64_t sum;
    size_t i;
    if (size < 20) return;
    sum = epctx_hash(data + 20, size - 20, 0);
    for (i = 0; i < 8; i++) data[12 + i] = (uint8_t)(sum >> 8 * i);
}

BINARIES_UNUSED static bytes toy_binary(void) {
    static const char *const names[3] = {"a", "", "b"};
    bytes b = {0};
    size_t i;
    put_text(&b, "TOY1");
    put_number(&b, 1, 4);
    put_number(&b, 1, 4);
    put_zeros(&b, 8);
    put_counted(&b, "toy_0");
    put_number(&b, 7, 8);
    put_number(&b, 3, 4); /* slots, inputs, outputs, steps */
    put_number(&b, 1, 4);
    put_number(&b, 1, 4);
    put_number(&b, 1, 4);
    for (i = 0; i < 3; i++) {
        put_number(&b, i, 4);
        put_number(&b, 2, 8);
        put_counted(&b, names[i]);
        put_number(&b, 1, 4);
        put_number(&b, 2, 8);
        if (i == 1) put_zeros(&b, 8);
    }
    put_number(&b, 2, 4);
    put_zeros(&b, 16);
    correct_toy(b.data, b.size);
    return b;
}

/* -- QNN: a beginning as QAIRT writes it, and texts -- */

BINARIES_UNUSED static bytes qnn_binary(const char *chip, const char *arch) {
    bytes b = {0};
    bytes_add(&b, "\0\0\0\2\0\0\0\3", 8);
    put_zeros(&b, 56);
    put_noise(&b, 1000);
    put_zeros(&b, 4);
    put_text(&b, "v2.51.0.260929181845");
    put_zeros(&b, 40);
    put_text(&b, "OpO=2;min_arch=");
    put_text(&b, arch);
    put_text(&b, ";fuse=true;soc_type=");
    put_text(&b, chip);
    put_text(&b, ";vtcm_size=8388608;dma=1;");
    put_noise(&b, 500);
    return b;
}

/* -- ZIP -- */

typedef struct zip {
    bytes body, directory;
    size_t count;
    bool wide; /* as QAIRT: sizes in extra fields */
} zip;

BINARIES_UNUSED static void put_sizes(bytes *b, const zip *z, size_t size) {
    put_number(b, z->wide ? UINT32_MAX : size, 4);
    put_number(b, z->wide ? UINT32_MAX : size, 4);
}

BINARIES_UNUSED static void zip_add(zip *z, const char *name, const void *data, size_t size) {
    const size_t at = z->body.size, extra = z->wide ? 28 : 0;
    put_text(&z->body, "PK\3\4");
    put_number(&z->body, 45, 2);
    put_zeros(&z->body, 12);
    put_sizes(&z->body, z, size);
    put_number(&z->body, strlen(name), 2);
    put_number(&z->body, 0, 2);
    put_text(&z->body, name);
    bytes_add(&z->body, data, size);
    put_text(&z->directory, "PK\1\2");
    put_number(&z->directory, 45, 2);
    put_number(&z->directory, 45, 2);
    put_zeros(&z->directory, 12);
    put_sizes(&z->directory, z, size);
    put_number(&z->directory, strlen(name), 2);
    put_number(&z->directory, extra, 2);
    put_zeros(&z->directory, 10);
    put_number(&z->directory, z->wide ? UINT32_MAX : at, 4);
    put_text(&z->directory, name);
    if (z->wide) {
        put_number(&z->directory, 1, 2);
        put_number(&z->directory, 24, 2);
        put_number(&z->directory, size, 8);
        put_number(&z->directory, size, 8);
        put_number(&z->directory, at, 8);
    }
    z->count++;
}

BINARIES_UNUSED static bytes zip_end(zip *z) {
    const size_t at = z->body.size;
    bytes b = z->body;
    bytes_add(&b, z->directory.data, z->directory.size);
    if (z->wide) {
        const size_t end = b.size;
        put_text(&b, "PK\6\6");
        put_number(&b, 44, 8);
        put_zeros(&b, 12);
        put_number(&b, z->count, 8);
        put_number(&b, z->count, 8);
        put_number(&b, z->directory.size, 8);
        put_number(&b, at, 8);
        put_text(&b, "PK\6\7");
        put_number(&b, 0, 4);
        put_number(&b, end, 8);
        put_number(&b, 1, 4);
    }
    put_text(&b, "PK\5\6");
    put_zeros(&b, 4);
    put_number(&b, z->wide ? 0xffff : z->count, 2);
    put_number(&b, z->wide ? 0xffff : z->count, 2);
    put_number(&b, z->wide ? UINT32_MAX : z->directory.size, 4);
    put_number(&b, z->wide ? UINT32_MAX : at, 4);
    put_zeros(&b, 2);
    bytes_free(&z->directory);
    return b;
}

BINARIES_UNUSED static bytes dlc_binary(bool wide) {
    zip z;
    bytes one = qnn_binary("SM8750", "79"), other = qnn_binary("SC8380XP", "73");
    memset(&z, 0, sizeof z);
    z.wide = wide;
    zip_add(&z, "htp.shared.weights.<abc>", "0123456789", 10);
    zip_add(&z, "htp.cache.sm8750.0", one.data, one.size);
    zip_add(&z, "htp.cache.sc8380xp.0", other.data, other.size);
    zip_add(&z, "dlc.metadata2.3.0", "{}", 2);
    bytes_free(&one);
    bytes_free(&other);
    return zip_end(&z);
}

BINARIES_UNUSED static bytes plain_zip(void) {
    zip z;
    memset(&z, 0, sizeof z);
    zip_add(&z, "context.bin", "\1\2\3", 3);
    return zip_end(&z);
}

/* -- OpenVINO -- */

/* Two inputs, one with two names; the output says its name, or does not, as before 2024. */
BINARIES_UNUSED static bytes ir_text(bool named) {
    bytes b = {0};
    put_text(&b, "<?xml version=\"1.0\"?>\n<net name=\"m\" version=\"11\">\n<layers>\n"
                 "<layer id=\"0\" name=\"a\" type=\"Parameter\" version=\"opset1\">\n"
                 "<data shape=\"1,?\" element_type=\"f32\" />\n<output>\n"
                 "<port id=\"0\" precision=\"FP32\" names=\"x&lt;1&gt;,x\\,2\">\n"
                 "<dim>1</dim><dim>-1</dim>\n</port>\n</output>\n</layer>\n"
                 "<layer id=\"1\" name=\"w\" type=\"Const\" version=\"opset1\">\n"
                 "<data element_type=\"i64\" shape=\"2\" offset=\"8\" size=\"16\" />\n<output>\n"
                 "<port id=\"0\" precision=\"I64\" names=\"w\"><dim>2</dim></port>\n"
                 "</output>\n</layer>\n"
                 "<layer id=\"2\" name=\"loop\" type=\"Loop\"><body><layers>"
                 "<layer id=\"0\" name=\"in\" type=\"Parameter\"><output><port id=\"0\"/></output>"
                 "</layer></layers></body>\n"
                 "<output><port id=\"3\" precision=\"I8\" names=\"y,z\"><dim>4</dim></port>"
                 "</output></layer>\n"
                 "<layer id=\"5\" name=\"y/sink\" type=\"Result\" version=\"opset1\"");
    if (named) put_text(&b, " output_names=\"y\"");
    put_text(&b, ">\n<input>\n<port id=\"0\" precision=\"I8\"><dim>4</dim></port>\n</input>\n"
                 "</layer>\n</layers>\n<edges>\n"
                 "<edge from-layer=\"2\" from-port=\"3\" to-layer=\"5\" to-port=\"0\" />\n"
                 "</edges>\n<rt_info />\n</net>\n");
    return b;
}

/* A blob as the CPU plugin writes it: for what, the sizes, options, constants, the masked model. */
BINARIES_UNUSED static bytes openvino_blob(bool magic) {
    static const char text[] = "meta=1.0;ov=2026.4.1;isa=AVX2";
    static const uint8_t mask[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    bytes b = {0}, model = ir_text(true);
    size_t i;
    if (magic) {
        put_text(&b, "RR_UPCVO");
        put_number(&b, 1, 4);
        put_number(&b, sizeof text - 1, 8);
        put_text(&b, text);
    }
    put_number(&b, 48, 8);
    put_number(&b, 8, 8);
    put_number(&b, 56, 8);
    put_number(&b, 32, 8);
    put_number(&b, 88, 8);
    put_number(&b, model.size, 8);
    put_noise(&b, 40);
    for (i = 0; i < model.size; i++) put_number(&b, model.data[i] ^ mask[i % 12], 1);
    bytes_free(&model);
    return b;
}

BINARIES_UNUSED static void bson_document(bytes *to, const char *name, bytes *fields) {
    if (name != NULL) {
        put_number(to, 3, 1);
        bytes_add(to, name, strlen(name) + 1);
    }
    put_number(to, fields->size + 5, 4);
    bytes_add(to, fields->data, fields->size);
    put_number(to, 0, 1);
    bytes_free(fields);
}

BINARIES_UNUSED static void bson_number(bytes *to, const char *name, uint64_t number) {
    put_number(to, number > INT32_MAX ? 18 : 16, 1);
    bytes_add(to, name, strlen(name) + 1);
    put_number(to, number, number > INT32_MAX ? 8 : 4);
}

BINARIES_UNUSED static void bson_text(bytes *to, const char *name, const char *text) {
    put_number(to, 2, 1);
    bytes_add(to, name, strlen(name) + 1);
    put_number(to, strlen(text) + 1, 4);
    bytes_add(to, text, strlen(text) + 1);
}

/* What a container has; aligned to `block` bytes (65,536 in the real ones). */
typedef struct container {
    size_t block;
    const char *version;
    const char *names[2]; /* of its partitions */
    const char *location; /* of its weights, NULL: it has none */
    const char *weight;   /* the input that the first weights are for; NULL: w0 */
    bool other;           /* blobs with other options than usual */
} container;

BINARIES_UNUSED static bytes openvino_container_of(const container *c) {
    const size_t block = c->block;
    bytes b = {0}, all = {0}, map = {0}, blob = openvino_blob(true);
    const size_t room = (blob.size + block - 1) / block * block;
    size_t i;
    if (c->other) blob.data[100] ^= 1;
    for (i = 0; i < 2; i++) {
        bytes one = {0};
        bson_number(&one, "data_offset", block + i * room);
        bson_number(&one, "size", blob.size);
        bson_document(&map, c->names[i], &one);
    }
    bson_document(&all, "blob_metadata_map", &map);
    bson_text(&all, "producer", "a test");
    bson_text(&all, "version", c->version);
    for (i = 0; i < 2 && c->location != NULL; i++) {
        bytes one = {0};
        bson_text(&one, "location", c->location);
        bson_number(&one, "data_offset", 64 * i);
        bson_number(&one, "size", 64);
        bson_document(&map, i == 1 ? "w1" : c->weight != NULL ? c->weight : "w0", &one);
    }
    if (c->location != NULL) bson_document(&all, "weights_metadata_map", &map);
    put_text(&b, "OVEP_BIN");
    put_number(&b, 1, 8);
    put_number(&b, 40, 8);
    put_number(&b, 40, 8);
    put_number(&b, all.size + 5, 8);
    bson_document(&b, NULL, &all);
    put_zeros(&b, block - b.size);
    for (i = 0; i < 2; i++) {
        bytes_add(&b, blob.data, blob.size);
        put_zeros(&b, room - blob.size);
    }
    bytes_free(&blob);
    return b;
}

/* Two partitions, weights in another file. */
BINARIES_UNUSED static bytes openvino_container(size_t block, const char *version) {
    container c = {0, NULL, {"m_0", "m_1"}, "weights.bin", NULL, false};
    c.block = block;
    c.version = version;
    return openvino_container_of(&c);
}

/* -- models, and what is none -- */

BINARIES_UNUSED static bytes onnx_model(void) {
    static const int64_t dims[] = {2, 3, -1};
    static float weights[600];
    bytes graph = {0};
    size_t i;
    for (i = 0; i < 600; i++) weights[i] = (float)i * 1.618f;
    add_node(&graph, "Relu", "relu", "x", "y");
    put_str(&graph, 2, "main");
    add_value(&graph, GRAPH_INPUT, "x", EPCTX_ONNX_FLOAT, dims);
    add_floats(&graph, "w", weights, 600);
    return new_model(&graph);
}

BINARIES_UNUSED static bytes tar_file(const char *name) {
    bytes b = {0};
    put_text(&b, name);
    put_zeros(&b, 257 - b.size);
    put_text(&b, "ustar");
    put_zeros(&b, 512 - b.size);
    put_noise(&b, 512);
    put_zeros(&b, 1024);
    return b;
}

/* As unix2dos leaves it. */
BINARIES_UNUSED static bytes with_crlf(const bytes *from) {
    bytes b = {0};
    size_t i;
    for (i = 0; i < from->size; i++) {
        if (from->data[i] == '\n') put_number(&b, '\r', 1);
        put_number(&b, from->data[i], 1);
    }
    return b;
}

/* As a program leaves it that takes it for Latin-1, or for UTF-8 with mistakes. */
BINARIES_UNUSED static bytes as_utf8(const bytes *from, bool latin) {
    bytes b = {0};
    size_t i;
    for (i = 0; i < from->size; i++) {
        const uint8_t c = from->data[i];
        if (c < 0x80) {
            put_number(&b, c, 1);
        } else if (latin) {
            put_number(&b, 0xc0u | c >> 6, 1);
            put_number(&b, 0x80u | (c & 0x3f), 1);
        } else {
            put_text(&b, "\xef\xbf\xbd");
        }
    }
    return b;
}

#endif
