/* Makes ONNX models for tests, byte by byte: no protobuf library, so that odd encodings are as easy
 * as proper ones. */
#ifndef EPCTX_TEST_BUILD_H
#define EPCTX_TEST_BUILD_H

#include "epctx.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__GNUC__)
#define BUILD_UNUSED __attribute__((unused))
#else
#define BUILD_UNUSED
#endif

/* Bytes that grow. Starts as {0}. */
typedef struct bytes {
    uint8_t *data;
    size_t size;
    size_t room;
} bytes;

BUILD_UNUSED static void bytes_add(bytes *b, const void *data, size_t size) {
    if (b->size + size > b->room) {
        b->room = (b->size + size) * 2 + 64;
        b->data = (uint8_t *)realloc(b->data, b->room);
        if (b->data == NULL) abort();
    }
    if (size > 0) memcpy(b->data + b->size, data, size);
    b->size += size;
}

BUILD_UNUSED static void bytes_free(bytes *b) {
    free(b->data);
    memset(b, 0, sizeof *b);
}

BUILD_UNUSED static bool bytes_equal(const bytes *b, const void *data, size_t size) {
    return b->size == size && (size == 0 || memcmp(b->data, data, size) == 0);
}

/* Whether `part` occurs somewhere in `all`. */
BUILD_UNUSED static bool bytes_contain(const bytes *all, const void *part, size_t size) {
    size_t i;
    for (i = 0; size <= all->size && i <= all->size - size; i++)
        if (memcmp(all->data + i, part, size) == 0) return true;
    return false;
}

/* -- protobuf -- */

/* At least `width` bytes: a longer form than needed when the value is small. */
BUILD_UNUSED static void put_varint_wide(bytes *b, uint64_t value, size_t width) {
    size_t at = 0;
    do {
        uint8_t byte = (uint8_t)(value & 0x7f);
        value >>= 7;
        at++;
        if (value != 0 || at < width) byte |= 0x80;
        bytes_add(b, &byte, 1);
    } while (value != 0 || at < width);
}

BUILD_UNUSED static void put_varint(bytes *b, uint64_t value) {
    put_varint_wide(b, value, 1);
}

BUILD_UNUSED static void put_tag(bytes *b, uint32_t number, uint32_t wire) {
    put_varint(b, (uint64_t)number << 3 | wire);
}

BUILD_UNUSED static void put_int(bytes *b, uint32_t number, int64_t value) {
    put_tag(b, number, 0);
    put_varint(b, (uint64_t)value);
}

BUILD_UNUSED static void put_float(bytes *b, uint32_t number, float value) {
    uint32_t bits;
    uint8_t raw[4];
    size_t i;
    memcpy(&bits, &value, sizeof bits);
    for (i = 0; i < 4; i++) raw[i] = (uint8_t)(bits >> 8 * i);
    put_tag(b, number, 5);
    bytes_add(b, raw, sizeof raw);
}

BUILD_UNUSED static void put_data(bytes *b, uint32_t number, const void *data, size_t size) {
    put_tag(b, number, 2);
    put_varint(b, size);
    bytes_add(b, data, size);
}

BUILD_UNUSED static void put_str(bytes *b, uint32_t number, const char *text) {
    put_data(b, number, text, strlen(text));
}

/* Adds `child` as a field and frees it. */
BUILD_UNUSED static void put_child(bytes *b, uint32_t number, bytes *child) {
    put_data(b, number, child->data, child->size);
    bytes_free(child);
}

/* A StringStringEntryProto. */
BUILD_UNUSED static void put_pair(bytes *b, uint32_t number, const char *key, const char *value) {
    bytes pair = {0};
    put_str(&pair, 1, key);
    put_str(&pair, 2, value);
    put_child(b, number, &pair);
}

/* -- onnx: every function adds one field to its parent -- */

/* Strings of a comma-separated list. "" is no string; "a,,b" holds an empty one. */
BUILD_UNUSED static void put_list(bytes *b, uint32_t number, const char *list) {
    while (*list != '\0') {
        const char *comma = strchr(list, ',');
        size_t size = comma != NULL ? (size_t)(comma - list) : strlen(list);
        put_data(b, number, list, size);
        list += size + (comma != NULL);
        if (comma != NULL && *list == '\0') put_data(b, number, "", 0);
    }
}

/* A NodeProto without its end: attributes follow, then put_child(graph, 1, &node). */
BUILD_UNUSED static bytes new_node(const char *op, const char *domain, const char *name,
                                   const char *inputs, const char *outputs) {
    bytes node = {0};
    put_list(&node, 1, inputs);
    put_list(&node, 2, outputs);
    if (name[0] != '\0') put_str(&node, 3, name);
    put_str(&node, 4, op);
    if (domain[0] != '\0') put_str(&node, 7, domain);
    return node;
}

BUILD_UNUSED static void add_attr_int(bytes *node, const char *name, int64_t value) {
    bytes attr = {0};
    put_str(&attr, 1, name);
    put_int(&attr, 3, value);
    put_int(&attr, 20, EPCTX_ATTR_INT);
    put_child(node, 5, &attr);
}

BUILD_UNUSED static void add_attr_str(bytes *node, const char *name, const void *data,
                                      size_t size) {
    bytes attr = {0};
    put_str(&attr, 1, name);
    put_data(&attr, 4, data, size);
    put_int(&attr, 20, EPCTX_ATTR_STRING);
    put_child(node, 5, &attr);
}

/* Adds an attribute whose value is in `attr`, which is freed. */
BUILD_UNUSED static void end_attr(bytes *node, const char *name, int32_t type, bytes *attr) {
    put_str(attr, 1, name);
    put_int(attr, 20, type);
    put_child(node, 5, attr);
}

/* Adds the graph `body`, which is freed. */
BUILD_UNUSED static void add_attr_graph(bytes *node, const char *name, bytes *body) {
    bytes attr = {0};
    put_child(&attr, 6, body);
    end_attr(node, name, EPCTX_ATTR_GRAPH, &attr);
}

BUILD_UNUSED static void add_node(bytes *graph, const char *op, const char *name,
                                  const char *inputs, const char *outputs) {
    bytes node = new_node(op, "", name, inputs, outputs);
    put_child(graph, 1, &node);
}

/* A value of a shape, which is released; NULL means no shape. */
BUILD_UNUSED static void add_shaped(bytes *graph, uint32_t number, const char *name, int32_t elem,
                                    bytes *shape) {
    bytes value = {0}, type = {0}, tensor = {0};
    put_int(&tensor, 1, elem);
    if (shape != NULL) put_child(&tensor, 2, shape);
    put_child(&type, 1, &tensor);
    put_str(&value, 1, name);
    put_child(&value, 2, &type);
    put_child(graph, number, &value);
}

/* `dims` ends with a negative number; NULL means no shape. */
BUILD_UNUSED static void add_value(bytes *graph, uint32_t number, const char *name, int32_t elem,
                                   const int64_t *dims) {
    bytes shape = {0};
    const int64_t *d;
    for (d = dims; d != NULL && *d >= 0; d++) {
        bytes dim = {0};
        put_int(&dim, 1, *d);
        put_child(&shape, 1, &dim);
    }
    add_shaped(graph, number, name, elem, dims != NULL ? &shape : NULL);
}

enum { GRAPH_INPUT = 11, GRAPH_OUTPUT = 12, GRAPH_VALUE = 13 };

/* Input x and output y, each a vector of two floats. */
BUILD_UNUSED static void add_x_and_y(bytes *graph) {
    static const int64_t dims[] = {2, -1};
    add_value(graph, GRAPH_INPUT, "x", EPCTX_ONNX_FLOAT, dims);
    add_value(graph, GRAPH_OUTPUT, "y", EPCTX_ONNX_FLOAT, dims);
}

/* The quantization annotation of a value: tensor `scale` is its scale. */
BUILD_UNUSED static void add_scale(bytes *graph, const char *value, const char *scale) {
    bytes annotation = {0};
    put_str(&annotation, 1, value);
    put_pair(&annotation, 2, "SCALE_TENSOR", scale);
    put_child(graph, 14, &annotation);
}

/* A float vector of `count` elements, stored raw. */
BUILD_UNUSED static void add_floats(bytes *graph, const char *name, const float *data,
                                    size_t count) {
    bytes tensor = {0};
    put_int(&tensor, 1, (int64_t)count);
    put_int(&tensor, 2, EPCTX_ONNX_FLOAT);
    put_str(&tensor, 8, name);
    put_data(&tensor, 9, data, count * sizeof *data);
    put_child(graph, 5, &tensor);
}

/* An initializer in an external file. */
BUILD_UNUSED static void add_external(bytes *graph, const char *name, int64_t count,
                                      const char *location, const char *offset,
                                      const char *length) {
    const char *const pairs[3][2] = {
        {"location", location}, {"offset", offset}, {"length", length}};
    bytes tensor = {0};
    size_t i;
    put_int(&tensor, 1, count);
    put_int(&tensor, 2, EPCTX_ONNX_FLOAT);
    put_str(&tensor, 8, name);
    for (i = 0; i < 3; i++)
        if (pairs[i][1] != NULL) put_pair(&tensor, 13, pairs[i][0], pairs[i][1]);
    put_int(&tensor, 14, 1);
    put_child(graph, 5, &tensor);
}

BUILD_UNUSED static void add_opset(bytes *model, const char *domain, int64_t version) {
    bytes opset = {0};
    if (domain[0] != '\0') put_str(&opset, 1, domain);
    put_int(&opset, 2, version);
    put_child(model, 8, &opset);
}

BUILD_UNUSED static void add_metadata(bytes *model, const char *key, const char *value) {
    put_pair(model, 14, key, value);
}

/* A model around `graph`, which is freed. */
BUILD_UNUSED static bytes new_model(bytes *graph) {
    bytes model = {0};
    put_int(&model, 1, 8);
    put_str(&model, 2, "test");
    add_opset(&model, "", 17);
    put_child(&model, 7, graph);
    return model;
}

/* The same with input x and output y of four floats, for EPContext nodes. */
BUILD_UNUSED static bytes end_model(bytes *graph) {
    static const int64_t dims[] = {4, -1};
    bytes model;
    put_str(graph, 2, "g");
    add_value(graph, GRAPH_INPUT, "x", EPCTX_ONNX_FLOAT, dims);
    add_value(graph, GRAPH_OUTPUT, "y", EPCTX_ONNX_FLOAT, dims);
    model = new_model(graph);
    add_opset(&model, "com.microsoft", 1);
    return model;
}

/* An EPContext node; NULL leaves an attribute out, `main_context` and `embed_mode` -1 too. */
BUILD_UNUSED static void add_epnode(bytes *graph, const char *name, const char *inputs,
                                    const char *outputs, int64_t main_context, int64_t embed_mode,
                                    const char *source, const char *partition, const void *cache,
                                    size_t cache_size) {
    bytes node = new_node("EPContext", "com.microsoft", name, inputs, outputs);
    if (main_context >= 0) add_attr_int(&node, "main_context", main_context);
    if (cache != NULL) add_attr_str(&node, "ep_cache_context", cache, cache_size);
    if (embed_mode >= 0) add_attr_int(&node, "embed_mode", embed_mode);
    if (source != NULL) add_attr_str(&node, "source", source, strlen(source));
    if (partition != NULL) add_attr_str(&node, "partition_name", partition, strlen(partition));
    put_child(graph, 1, &node);
}

/* -- allocators and random numbers -- */

enum { HUNGRY_BUFFER = 1 << 20 };

/* Counts what is alive; call number `fail_at` (from 1) and all later ones return NULL, or only that
 * one: who overlooks it then gets away, and leaves something out. */
typedef struct counting {
    size_t calls;
    size_t fail_at; /* 0: never */
    size_t alive;
    bool once;
} counting;

BUILD_UNUSED static void *counting_alloc(void *user, size_t size) {
    counting *c = (counting *)user;
    void *memory;
    c->calls++;
    if (c->fail_at != 0 && (c->once ? c->calls == c->fail_at : c->calls >= c->fail_at)) return NULL;
    memory = malloc(size > 0 ? size : 1);
    if (memory != NULL) c->alive++;
    return memory;
}

BUILD_UNUSED static void counting_free(void *user, void *memory) {
    counting *c = (counting *)user;
    if (memory != NULL) c->alive--;
    free(memory);
}

BUILD_UNUSED static epctx_allocator counting_allocator(counting *c) {
    epctx_allocator a;
    a.user = c;
    a.alloc_fn = counting_alloc;
    a.free_fn = counting_free;
    return a;
}

/* xorshift: the state is never 0. */
BUILD_UNUSED static uint32_t random_below(uint32_t *state, uint32_t limit) {
    uint32_t x = *state;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    *state = x;
    return x % limit;
}

/* Opens a model (a file when `path` is set) in a buffer of HUNGRY_BUFFER bytes and leaves `room` of
 * it. A loop that adds what arena.missing says to `room` after each failure lets every allocation
 * fail once. */
BUILD_UNUSED static epctx_status open_hungry(epctx_model *model, const char *path,
                                             const bytes *data, void *buffer, size_t room,
                                             epctx_error *error) {
    epctx_open_opts opts;
    epctx_status status;
    memset(&opts, 0, sizeof opts);
    opts.buffer = buffer;
    opts.buffer_size = HUNGRY_BUFFER;
    status = path != NULL ? epctx_model_open_file(model, path, &opts, error)
                          : epctx_model_open_memory(model, data->data, data->size, &opts, error);
    if (status == EPCTX_OK && room < model->arena.left) model->arena.left = room;
    return status;
}

/* Writes an open model to memory. */
BUILD_UNUSED static bool bytes_sink(pb_ostream_t *stream, const pb_byte_t *data, size_t size) {
    bytes_add((bytes *)stream->state, data, size);
    return true;
}

BUILD_UNUSED static bytes written(epctx_model *model) {
    bytes out = {0};
    pb_ostream_t stream = {0};
    stream.callback = bytes_sink;
    stream.state = &out;
    stream.max_size = SIZE_MAX;
    if (epctx_model_write_stream(model, &stream, NULL) != EPCTX_OK) bytes_free(&out);
    return out;
}

#endif
