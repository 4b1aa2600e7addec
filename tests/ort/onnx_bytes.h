/*
 * Small ONNX models as bytes, for tests that need one with a certain shape:
 *
 *     onnx_model m;
 *     onnx_begin(&m);
 *     onnx_input(&m.graph, "x", 1, dims);
 *     onnx_floats(&m.graph, "w", 1, dims, values);
 *     onnx_node(&m.graph, "Add", "", "n", "x,w", "y", NULL);
 *     onnx_output(&m.graph, "y", 1, dims);
 *     onnx_finish(&m, &size);   -> m.bytes.data
 *     onnx_free(&m);
 *
 * Attributes of a node are onnx_bytes filled by onnx_attr_*. Memory: checked by exit.
 */
#ifndef ONNX_BYTES_H
#define ONNX_BYTES_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct onnx_bytes {
    uint8_t *data;
    size_t size, room;
} onnx_bytes;

typedef struct onnx_model {
    onnx_bytes graph; /* a GraphProto under construction */
    onnx_bytes extra; /* further fields of ModelProto */
    onnx_bytes bytes; /* the result */
} onnx_model;

static inline void onnx_raw(onnx_bytes *b, const void *data, size_t size) {
    if (b->size + size > b->room) {
        b->room = 2 * (b->size + size) + 64;
        b->data = (uint8_t *)realloc(b->data, b->room);
        if (!b->data) exit(99);
    }
    if (size) memcpy(b->data + b->size, data, size);
    b->size += size;
}

static inline void onnx_varint(onnx_bytes *b, uint64_t value) {
    do {
        const uint8_t byte = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        onnx_raw(b, &byte, 1);
        value >>= 7;
    } while (value);
}

static inline void onnx_int(onnx_bytes *b, unsigned field, int64_t value) {
    onnx_varint(b, field << 3);
    onnx_varint(b, (uint64_t)value);
}

static inline void onnx_data(onnx_bytes *b, unsigned field, const void *data, size_t size) {
    onnx_varint(b, field << 3 | 2);
    onnx_varint(b, size);
    onnx_raw(b, data, size);
}

static inline void onnx_text(onnx_bytes *b, unsigned field, const char *text) {
    onnx_data(b, field, text, strlen(text));
}

/* Adds a finished message and frees it. */
static inline void onnx_sub(onnx_bytes *b, unsigned field, onnx_bytes *sub) {
    onnx_data(b, field, sub->data, sub->size);
    free(sub->data);
    memset(sub, 0, sizeof *sub);
}

/* ------------------------------------------------------------------- parts */

enum { ONNX_INPUT = 11, ONNX_OUTPUT = 12, ONNX_VALUE = 13 };
enum { ONNX_FLOAT = 1, ONNX_INT8 = 3, ONNX_BOOL = 9, ONNX_DOUBLE = 11 };

static inline void onnx_value(onnx_bytes *graph, unsigned field, const char *name, int type,
                              size_t rank, const int64_t *dims) {
    onnx_bytes value = {0}, proto = {0}, tensor = {0}, shape = {0};
    size_t i;
    for (i = 0; i < rank; i++) {
        onnx_bytes dim = {0};
        onnx_int(&dim, 1, dims[i]);
        onnx_sub(&shape, 1, &dim);
    }
    onnx_int(&tensor, 1, type);
    onnx_sub(&tensor, 2, &shape);
    onnx_sub(&proto, 1, &tensor);
    onnx_text(&value, 1, name);
    onnx_sub(&value, 2, &proto);
    onnx_sub(graph, field, &value);
}

static inline void onnx_input(onnx_bytes *graph, const char *name, size_t rank,
                              const int64_t *dims) {
    onnx_value(graph, ONNX_INPUT, name, ONNX_FLOAT, rank, dims);
}

static inline void onnx_output(onnx_bytes *graph, const char *name, size_t rank,
                               const int64_t *dims) {
    onnx_value(graph, ONNX_OUTPUT, name, ONNX_FLOAT, rank, dims);
}

static inline void onnx_tensor(onnx_bytes *graph, const char *name, int type, size_t rank,
                               const int64_t *dims, const void *data, size_t size) {
    onnx_bytes tensor = {0};
    size_t i;
    for (i = 0; i < rank; i++) onnx_int(&tensor, 1, dims[i]);
    onnx_int(&tensor, 2, type);
    onnx_text(&tensor, 8, name);
    onnx_data(&tensor, 9, data, size);
    onnx_sub(graph, 5, &tensor);
}

static inline void onnx_floats(onnx_bytes *graph, const char *name, size_t rank,
                               const int64_t *dims, const float *values) {
    size_t i, count = 1;
    for (i = 0; i < rank; i++) count *= (size_t)dims[i];
    onnx_tensor(graph, name, ONNX_FLOAT, rank, dims, values, count * sizeof *values);
}

/* An initializer whose floats are in the file `location`. */
static inline void onnx_external(onnx_bytes *graph, const char *name, size_t rank,
                                 const int64_t *dims, const char *location, size_t offset) {
    onnx_bytes tensor = {0};
    const char *keys[3] = {"location", "offset", "length"};
    char numbers[2][32];
    const char *values[3];
    size_t i, count = sizeof(float);
    for (i = 0; i < rank; i++) {
        onnx_int(&tensor, 1, dims[i]);
        count *= (size_t)dims[i];
    }
    onnx_int(&tensor, 2, ONNX_FLOAT);
    onnx_text(&tensor, 8, name);
    snprintf(numbers[0], sizeof numbers[0], "%zu", offset);
    snprintf(numbers[1], sizeof numbers[1], "%zu", count);
    values[0] = location, values[1] = numbers[0], values[2] = numbers[1];
    for (i = 0; i < 3; i++) {
        onnx_bytes entry = {0};
        onnx_text(&entry, 1, keys[i]);
        onnx_text(&entry, 2, values[i]);
        onnx_sub(&tensor, 13, &entry);
    }
    onnx_int(&tensor, 14, 1);
    onnx_sub(graph, 5, &tensor);
}

static inline void onnx_attr_int(onnx_bytes *attrs, const char *name, int64_t value) {
    onnx_bytes attr = {0};
    onnx_text(&attr, 1, name);
    onnx_int(&attr, 3, value);
    onnx_int(&attr, 20, 2);
    onnx_sub(attrs, 5, &attr);
}

static inline void onnx_attr_ints(onnx_bytes *attrs, const char *name, size_t count,
                                  const int64_t *values) {
    onnx_bytes attr = {0};
    size_t i;
    onnx_text(&attr, 1, name);
    for (i = 0; i < count; i++) onnx_int(&attr, 8, values[i]);
    onnx_int(&attr, 20, 7);
    onnx_sub(attrs, 5, &attr);
}

static inline void onnx_attr_float(onnx_bytes *attrs, const char *name, float value) {
    onnx_bytes attr = {0};
    onnx_text(&attr, 1, name);
    onnx_varint(&attr, 2 << 3 | 5);
    onnx_raw(&attr, &value, sizeof value);
    onnx_int(&attr, 20, 1);
    onnx_sub(attrs, 5, &attr);
}

static inline void onnx_attr_data(onnx_bytes *attrs, const char *name, const void *data,
                                  size_t size) {
    onnx_bytes attr = {0};
    onnx_text(&attr, 1, name);
    onnx_data(&attr, 4, data, size);
    onnx_int(&attr, 20, 3);
    onnx_sub(attrs, 5, &attr);
}

static inline void onnx_attr_text(onnx_bytes *attrs, const char *name, const char *text) {
    onnx_attr_data(attrs, name, text, strlen(text));
}

/* A body; frees it. */
static inline void onnx_attr_graph(onnx_bytes *attrs, const char *name, onnx_bytes *graph) {
    onnx_bytes attr = {0};
    onnx_text(graph, 2, name);
    onnx_text(&attr, 1, name);
    onnx_sub(&attr, 6, graph);
    onnx_int(&attr, 20, 5);
    onnx_sub(attrs, 5, &attr);
}

/* A tensor's type without a shape. */
static inline void onnx_attr_type(onnx_bytes *attrs, const char *name, int64_t elem_type) {
    onnx_bytes attr = {0}, type = {0}, tensor = {0};
    onnx_text(&attr, 1, name);
    onnx_int(&tensor, 1, elem_type);
    onnx_sub(&type, 1, &tensor);
    onnx_sub(&attr, 14, &type);
    onnx_int(&attr, 20, 13);
    onnx_sub(attrs, 5, &attr);
}

/* "a,,b" -> three fields, the second one empty. */
static inline void onnx_list(onnx_bytes *node, unsigned field, const char *names) {
    while (*names) {
        const size_t size = strcspn(names, ",");
        onnx_data(node, field, names, size);
        names += size;
        if (*names) names++;
    }
}

/* Frees `attrs` (may be NULL). */
static inline void onnx_node(onnx_bytes *graph, const char *op, const char *domain,
                             const char *name, const char *inputs, const char *outputs,
                             onnx_bytes *attrs) {
    onnx_bytes node = {0};
    onnx_list(&node, 1, inputs);
    onnx_list(&node, 2, outputs);
    onnx_text(&node, 3, name);
    onnx_text(&node, 4, op);
    if (attrs) {
        onnx_raw(&node, attrs->data, attrs->size);
        free(attrs->data);
        memset(attrs, 0, sizeof *attrs);
    }
    if (*domain) onnx_text(&node, 7, domain);
    onnx_sub(graph, 1, &node);
}

/* ------------------------------------------------------------------- model */

static inline void onnx_opset(onnx_model *m, const char *domain, int64_t version) {
    onnx_bytes opset = {0};
    onnx_text(&opset, 1, domain);
    onnx_int(&opset, 2, version);
    onnx_sub(&m->extra, 8, &opset);
}

static inline void onnx_metadata(onnx_model *m, const char *key, const char *value) {
    onnx_bytes entry = {0};
    onnx_text(&entry, 1, key);
    onnx_text(&entry, 2, value);
    onnx_sub(&m->extra, 14, &entry);
}

static inline void onnx_begin(onnx_model *m) {
    memset(m, 0, sizeof *m);
    onnx_opset(m, "", 17);
    onnx_opset(m, "com.microsoft", 1);
}

static inline void onnx_finish(onnx_model *m) {
    onnx_int(&m->bytes, 1, 8);
    onnx_text(&m->graph, 2, "g");
    onnx_sub(&m->bytes, 7, &m->graph);
    onnx_raw(&m->bytes, m->extra.data, m->extra.size);
    free(m->extra.data);
    memset(&m->extra, 0, sizeof m->extra);
}

static inline void onnx_free(onnx_model *m) {
    free(m->graph.data);
    free(m->extra.data);
    free(m->bytes.data);
    memset(m, 0, sizeof *m);
}

#endif
