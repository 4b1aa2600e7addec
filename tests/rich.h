/* A model with nearly everything that onnx.proto knows, in the main graph, in bodies, functions and
 * training graphs, and a text with all that the views say of it. */
#ifndef EPCTX_TEST_RICH_H
#define EPCTX_TEST_RICH_H

#include "build.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

/* Adds fields that no reader may take for its own: fixed64 under every number. */
static bool rich_noise;

static bytes rich_message_but(uint32_t taken) {
    static const uint8_t eight[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    bytes b = {0};
    for (uint32_t number = 1; rich_noise && number < 33; number++) {
        if (number == taken) continue;
        put_tag(&b, number, 1);
        bytes_add(&b, eight, sizeof eight);
    }
    if (rich_noise) put_str(&b, 60, "not known");
    return b;
}

static bytes rich_message(void) {
    return rich_message_but(0);
}

static void rich_pair(bytes *parent, uint32_t number, const char *key, const char *value) {
    bytes pair = rich_message();
    put_str(&pair, 1, key);
    put_str(&pair, 2, value);
    put_child(parent, number, &pair);
}

static bytes rich_tensor(const char *name, int32_t elem, int64_t dim) {
    bytes tensor = rich_message_but(10); /* elements of double_data are fixed64 */
    if (dim >= 0) put_int(&tensor, 1, dim);
    put_int(&tensor, 2, elem);
    put_str(&tensor, 8, name);
    return tensor;
}

static void rich_raw(bytes *parent, uint32_t number, const char *name) {
    bytes tensor = rich_tensor(name, EPCTX_ONNX_FLOAT, 1);
    put_data(&tensor, 9, "abcd", 4);
    if (rich_noise) put_int(&tensor, 14, 7); /* no location of data that is known */
    put_child(parent, number, &tensor);
}

static void rich_external(bytes *parent, uint32_t number, const char *name, const char *file) {
    bytes tensor = rich_tensor(name, EPCTX_ONNX_FLOAT, 1);
    rich_pair(&tensor, 13, "location", file);
    rich_pair(&tensor, 13, "offset", "4");
    rich_pair(&tensor, 13, "length", "4");
    rich_pair(&tensor, 13, "checksum", "none");
    put_int(&tensor, 14, 1);
    put_child(parent, number, &tensor);
}

static void rich_sparse(bytes *parent, uint32_t number, const char *name, bool external) {
    bytes sparse = rich_message(), indices = rich_tensor("", EPCTX_ONNX_INT64, 1);
    if (external)
        rich_external(&sparse, 1, name, "sparse.bin");
    else
        rich_raw(&sparse, 1, name);
    put_int(&indices, 7, 2);
    put_child(&sparse, 2, &indices);
    put_data(&sparse, 3, "\x09", 1);
    put_child(parent, number, &sparse);
}

/* Kinds as in TypeProto: 1 tensor, 4 sequence, 5 map, 7 opaque, 8 sparse tensor, 9 optional. */
static bytes rich_type(uint32_t kind) {
    bytes type = rich_message(), member = rich_message(), shape = rich_message();
    bytes known = rich_message(), named = rich_message(), neither = rich_message(), inner;
    put_int(&known, 1, 1);
    put_str(&named, 2, "batch");
    put_child(&shape, 1, &known);
    put_child(&shape, 1, &named);
    put_child(&shape, 1, &neither);
    if (kind == 1 || kind == 8) {
        put_int(&member, 1, EPCTX_ONNX_FLOAT);
        put_child(&member, 2, &shape);
    } else if (kind == 7) {
        put_str(&member, 1, "domain");
    } else {
        inner = rich_type(1);
        if (kind == 5) put_int(&member, 1, EPCTX_ONNX_INT64);
        put_child(&member, kind == 5 ? 2 : 1, &inner);
    }
    bytes_free(&shape);
    put_str(&type, 6, "IMAGE");
    put_child(&type, kind, &member);
    return type;
}

static void rich_value(bytes *graph, uint32_t number, const char *name, uint32_t kind) {
    bytes value = rich_message(), type = rich_type(kind);
    put_str(&value, 1, name);
    put_child(&value, 2, &type);
    rich_pair(&value, 4, "of", "value");
    put_child(graph, number, &value);
}

/* An attribute; its fields follow, then put_child(node, 5, &attr). */
static bytes rich_attr(const char *name, epctx_attr_type type) {
    bytes attr = rich_message();
    put_str(&attr, 1, name);
    put_int(&attr, 20, type);
    return attr;
}

static bytes rich_node(const char *op, const char *domain, const char *name, const char *inputs,
                       const char *outputs) {
    bytes node = rich_message(), rest = new_node(op, domain, name, inputs, outputs);
    bytes_add(&node, rest.data, rest.size);
    bytes_free(&rest);
    put_str(&node, 6, "about the node");
    put_str(&node, 8, "overload");
    rich_pair(&node, 9, "of", "node");
    return node;
}

static void rich_annotation(bytes *graph, const char *name, const char *scale) {
    bytes annotation = rich_message();
    put_str(&annotation, 1, name);
    rich_pair(&annotation, 2, "SCALE_TENSOR", scale);
    put_child(graph, 14, &annotation);
}

/* Reads `outer` from the graph around it. */
static bytes rich_body(const char *outer) {
    bytes body = rich_message(), node = rich_node("Add", "", "in body", "i,inner,sparse_in", "t");
    bytes last = rich_node("Add", "", "", "t,", "u");
    put_child(&body, 1, &node);
    put_str(&last, 1, outer);
    put_child(&body, 1, &last);
    put_str(&body, 2, "body");
    rich_raw(&body, 5, "inner");
    rich_external(&body, 5, "inner_file", "body.bin");
    put_str(&body, 10, "about the body");
    rich_value(&body, 11, "i", 1);
    rich_value(&body, 12, "u", 1);
    rich_sparse(&body, 15, "sparse_in", true);
    return body;
}

static void rich_attrs(bytes *node) {
    bytes attr = rich_attr("ints", EPCTX_ATTR_INTS), child;
    put_int(&attr, 8, 3);
    put_int(&attr, 8, -4);
    put_child(node, 5, &attr);
    attr = rich_attr("floats", EPCTX_ATTR_FLOATS);
    put_float(&attr, 7, 0.5f);
    put_float(&attr, 7, 2);
    put_child(node, 5, &attr);
    attr = rich_attr("strings", EPCTX_ATTR_STRINGS);
    put_str(&attr, 9, "one");
    put_str(&attr, 9, "two");
    put_child(node, 5, &attr);
    attr = rich_attr("number", EPCTX_ATTR_FLOAT);
    put_float(&attr, 2, 1.5f);
    put_child(node, 5, &attr);
    attr = rich_attr("tensor", EPCTX_ATTR_TENSOR);
    rich_external(&attr, 5, "in attribute", "attr.bin");
    put_child(node, 5, &attr);
    attr = rich_attr("tensors", EPCTX_ATTR_TENSORS);
    rich_raw(&attr, 10, "in list");
    put_child(node, 5, &attr);
    attr = rich_attr("sparse", EPCTX_ATTR_SPARSE_TENSOR);
    rich_sparse(&attr, 22, "s", true);
    put_child(node, 5, &attr);
    attr = rich_attr("sparses", EPCTX_ATTR_SPARSE_TENSORS);
    rich_sparse(&attr, 23, "s", false);
    put_child(node, 5, &attr);
    attr = rich_attr("type", EPCTX_ATTR_TYPE_PROTO);
    child = rich_type(9);
    put_child(&attr, 14, &child);
    put_child(node, 5, &attr);
    attr = rich_attr("body", EPCTX_ATTR_GRAPH);
    child = rich_body("x");
    put_child(&attr, 6, &child);
    put_child(node, 5, &attr);
    attr = rich_attr("bodies", EPCTX_ATTR_GRAPHS);
    child = rich_body("a");
    put_child(&attr, 11, &child);
    child = rich_body("w");
    put_child(&attr, 11, &child);
    put_child(node, 5, &attr);
}

static void rich_devices(bytes *node) {
    bytes on = rich_message(), sharding = rich_message(), group = rich_message();
    bytes dim = rich_message(), part = rich_message();
    put_int(&part, 1, 4);
    put_int(&part, 3, 2);
    put_int(&dim, 1, -1);
    put_child(&dim, 2, &part);
    put_int(&group, 1, 1);
    put_int(&group, 2, 0);
    put_str(&sharding, 1, "a");
    put_int(&sharding, 2, 0);
    put_child(&sharding, 3, &group);
    put_child(&sharding, 4, &dim);
    put_str(&on, 1, "mesh");
    put_child(&on, 2, &sharding);
    put_int(&on, 3, 1);
    sharding = rich_message();
    put_str(&sharding, 1, "sharded");
    put_child(&on, 2, &sharding);
    put_child(node, 10, &on);
}

static void rich_epnode(bytes *graph, uint32_t number, const char *name, const char *inputs,
                        const char *outputs, int64_t main_context, const char *source,
                        const char *cache) {
    bytes node = rich_node("EPContext", "com.microsoft", name, inputs, outputs);
    add_attr_int(&node, "main_context", main_context);
    add_attr_int(&node, "embed_mode", cache == NULL);
    add_attr_str(&node, "ep_cache_context", cache != NULL ? cache : "payload",
                 strlen(cache != NULL ? cache : "payload"));
    add_attr_str(&node, "source", source, strlen(source));
    add_attr_str(&node, "onnx_model_filename", "from.onnx", 9);
    add_attr_str(&node, "own", "x", 1);
    put_child(graph, number, &node);
}

/* The main graph: x -> part0 (QNN, a file) -> a -> part1 (OpenVINO, an IR) -> b -> loop -> y */
static bytes rich_graph(void) {
    bytes graph = rich_message(), node = rich_node("Loop", "ai.onnx", "loop", "b,w,a", "y,z");
    bytes tensor;
    rich_epnode(&graph, 1, "part0", "x,w", "a", 1, "QNN", "model_qnn.bin");
    rich_epnode(&graph, 1, "part1", "a", "b", 1, "OpenVINOExecutionProvider", "model.xml");
    rich_epnode(&graph, 1, "part2", "a", "c", 0, "SomebodysEP", NULL);
    rich_attrs(&node);
    rich_devices(&node);
    put_child(&graph, 1, &node);
    node = rich_node("F", "mine", "call", "y", "f");
    put_child(&graph, 1, &node);
    put_str(&graph, 2, "g");
    rich_raw(&graph, 5, "w");
    rich_external(&graph, 5, "e", "weights.bin");
    tensor = rich_tensor("typed", EPCTX_ONNX_INT64, 2);
    put_int(&tensor, 7, -1);
    put_int(&tensor, 7, 1);
    put_child(&graph, 5, &tensor);
    tensor = rich_tensor("doubles", 11, 1);
    put_data(&tensor, 10, "12345678", 8);
    put_child(&graph, 5, &tensor);
    put_str(&graph, 10, "about the graph");
    rich_value(&graph, 11, "x", 1);
    rich_value(&graph, 12, "y", 1);
    rich_value(&graph, 12, "f", 4);
    for (uint32_t kind = 4; kind < 10; kind++) {
        char name[8];
        snprintf(name, sizeof name, "v%" PRIu32, kind);
        if (kind != 6) rich_value(&graph, 13, name, kind);
    }
    rich_value(&graph, 13, "a", 1);
    rich_value(&graph, 13, "b", 1);
    rich_value(&graph, 13, "c", 1);
    rich_annotation(&graph, "a", "w");
    rich_annotation(&graph, "noted", "w");
    rich_annotation(&graph, "a", "scaled");
    rich_sparse(&graph, 15, "sp", true);
    rich_pair(&graph, 16, "of", "graph");
    return graph;
}

static bytes rich_opset(const char *domain, int64_t version) {
    bytes opset = rich_message();
    put_str(&opset, 1, domain);
    put_int(&opset, 2, version);
    return opset;
}

static bytes rich_function(void) {
    bytes function = rich_message(), node = rich_node("Relu", "", "in function", "p", "q"), opset;
    rich_attrs(&node);
    put_str(&function, 1, "F");
    put_str(&function, 4, "p");
    put_str(&function, 5, "q");
    put_str(&function, 6, "alpha");
    put_child(&function, 7, &node);
    rich_epnode(&function, 7, "part in function", "q", "r", 1, "QNN", NULL);
    put_str(&function, 8, "about the function");
    opset = rich_opset("", 17);
    put_child(&function, 9, &opset);
    put_str(&function, 10, "mine");
    rich_value(&function, 12, "typed in F", 1);
    put_str(&function, 13, "overload");
    rich_pair(&function, 14, "of", "function");
    return function;
}

static bytes rich_training(void) {
    bytes training = rich_message(), start = rich_message(), step = rich_message();
    bytes node = rich_node("RandomNormal", "", "start it", "", "w0");
    put_child(&start, 1, &node);
    put_str(&start, 2, "start");
    rich_external(&start, 5, "unused", "start.bin");
    rich_value(&start, 12, "w0", 1);
    node = rich_node("Add", "", "a step", "w,momentum", "w1");
    put_child(&step, 1, &node);
    put_str(&step, 2, "step");
    rich_raw(&step, 5, "momentum");
    rich_external(&step, 5, "step file", "step.bin");
    rich_value(&step, 12, "w1", 1);
    rich_epnode(&step, 1, "part in training", "w1", "w2", 1, "QNN", "training.bin");
    put_child(&training, 1, &start);
    put_child(&training, 2, &step);
    rich_pair(&training, 3, "w", "w0");
    rich_pair(&training, 4, "w", "w1");
    rich_pair(&training, 3, "started", "w0");
    rich_pair(&training, 3, "w", "start to");
    rich_pair(&training, 4, "bound", "w1");
    rich_pair(&training, 4, "w", "bound to");
    return training;
}

/* `noise`: with fields in every message that say nothing. */
static inline bytes rich_model(bool noise) {
    bytes model, child;
    rich_noise = noise;
    model = rich_message();
    put_int(&model, 1, 10);
    put_str(&model, 2, "producer");
    put_str(&model, 3, "1.2");
    put_str(&model, 4, "domain");
    put_int(&model, 5, 3);
    put_str(&model, 6, "about the model");
    child = rich_graph();
    put_child(&model, 7, &child);
    child = rich_opset("", 17);
    put_child(&model, 8, &child);
    child = rich_opset("com.microsoft", 1);
    put_child(&model, 8, &child);
    child = rich_opset("mine", 1);
    put_child(&model, 8, &child);
    rich_pair(&model, 14, "ep_compatibility_info.QNN", "6:2.30.0:2.20.0:3.3.3:73:0");
    rich_pair(&model, 14, "author", "somebody");
    child = rich_training();
    put_child(&model, 20, &child);
    child = rich_function();
    put_child(&model, 25, &child);
    child = rich_message();
    put_str(&child, 1, "mesh");
    put_int(&child, 2, 2);
    put_str(&child, 3, "npu:0");
    put_child(&model, 26, &child);
    return model;
}

/* -- its files: each is there, with 40 bytes -- */

static epctx_status rich_stat(void *user, const char *path, epctx_file_info *info,
                              epctx_error *error) {
    (void)user;
    (void)path;
    (void)error;
    memset(info, 0, sizeof *info);
    info->kind = EPCTX_FILE_REGULAR;
    info->size = 40;
    return EPCTX_OK;
}

static epctx_status rich_canonical(void *user, const char *path, char *out, size_t capacity,
                                   epctx_error *error) {
    size_t size = strlen(path);
    (void)user;
    (void)error;
    snprintf(out, capacity, "%.*s", (int)(path[size - 1] == '/' ? size - 1 : size), path);
    return EPCTX_OK;
}

static epctx_status rich_map(void *user, const char *folder, const char *name, bool copy,
                             epctx_mapping *out, epctx_error *error) {
    static const uint8_t data[40] = {0};
    (void)user, (void)folder, (void)name, (void)copy, (void)error;
    memset(out, 0, sizeof *out);
    out->data = data;
    out->size = sizeof data;
    out->handle = NULL;
    return EPCTX_OK;
}

static void rich_unmap(void *user, epctx_mapping *mapping) {
    (void)user;
    memset(mapping, 0, sizeof *mapping);
}

BUILD_UNUSED static epctx_io rich_io(void) {
    epctx_io io = *epctx_io_files();
    io.stat_fn = rich_stat;
    io.canonical_fn = rich_canonical;
    io.map_fn = rich_map;
    io.unmap_fn = rich_unmap;
    return io;
}

#endif
