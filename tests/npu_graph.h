/*
 * Graph records by hand, and running them on the reference NPU. Sizes are fixed
 * and generous; memory comes from a pool that gb_free releases.
 */
#ifndef NPU_GRAPH_H
#define NPU_GRAPH_H

#include "epctx_npu.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GB_MAX 128
#define GB_FN  static __attribute__((unused))

typedef struct graph_builder {
    epctx_graph graph;
    epctx_node nodes[GB_MAX];
    epctx_value inputs[GB_MAX], outputs[GB_MAX];
    epctx_tensor constants[GB_MAX];
    void *pool[1024];
    size_t pool_count;
} graph_builder;

GB_FN void *gb_alloc(graph_builder *b, size_t size) {
    void *p = calloc(1, size + 1);
    if (!p || b->pool_count == sizeof b->pool / sizeof b->pool[0]) abort();
    b->pool[b->pool_count++] = p;
    return p;
}

GB_FN void gb_init(graph_builder *b) {
    memset(b, 0, sizeof *b);
    b->graph.name = epctx_str_of("test");
    b->graph.nodes = b->nodes;
    b->graph.inputs = b->inputs;
    b->graph.outputs = b->outputs;
    b->graph.initializers = b->constants;
}

GB_FN void gb_free(graph_builder *b) {
    while (b->pool_count > 0) free(b->pool[--b->pool_count]);
}

GB_FN epctx_str gb_text(graph_builder *b, const char *text) {
    char *copy = (char *)gb_alloc(b, strlen(text));
    memcpy(copy, text, strlen(text));
    return epctx_str_of(copy);
}

GB_FN const int64_t *gb_dims(graph_builder *b, int rank, const int64_t *dims) {
    int64_t *copy = (int64_t *)gb_alloc(b, sizeof(int64_t) * 16);
    if (rank > 0) memcpy(copy, dims, (size_t)rank * sizeof *dims);
    return copy;
}

GB_FN size_t gb_count(int rank, const int64_t *dims) {
    size_t n = 1;
    int i;
    for (i = 0; i < rank; i++) n *= (size_t)dims[i];
    return n;
}

GB_FN void gb_input(graph_builder *b, const char *name, int32_t elem, int rank,
                    const int64_t *dims) {
    epctx_value *v = &b->inputs[b->graph.input_count++];
    v->name = gb_text(b, name);
    v->elem_type = elem;
    v->rank = rank;
    v->dims = gb_dims(b, rank, dims);
}

GB_FN void gb_output(graph_builder *b, const char *name) {
    epctx_value *v = &b->outputs[b->graph.output_count++];
    v->name = gb_text(b, name);
    v->rank = -1; /* of no declared type: as it is computed */
}

/* Little-endian bytes from native numbers of 1, 4 or 8 bytes, a byte off alignment as in files. */
GB_FN void gb_constant(graph_builder *b, const char *name, int32_t elem, int rank,
                       const int64_t *dims, const void *data) {
    epctx_tensor *t = &b->constants[b->graph.initializer_count++];
    size_t size = epctx_elem_size(elem), count = gb_count(rank, dims), i, j;
    uint8_t *bytes = (uint8_t *)gb_alloc(b, count * size + 1) + 1;
    for (i = 0; i < count; i++) {
        uint64_t v = 0;
        uint32_t v4;
        if (size == 1) {
            v = ((const uint8_t *)data)[i];
        } else if (size == 4) {
            memcpy(&v4, (const uint8_t *)data + i * 4, 4);
            v = v4;
        } else {
            memcpy(&v, (const uint8_t *)data + i * 8, 8);
        }
        for (j = 0; j < size; j++) bytes[i * size + j] = (uint8_t)(v >> (8 * j));
    }
    t->name = gb_text(b, name);
    t->elem_type = elem;
    t->rank = rank;
    t->dims = gb_dims(b, rank, dims);
    t->data = bytes;
    t->size = count * size;
}

GB_FN void gb_floats(graph_builder *b, const char *name, int rank, const int64_t *dims,
                     const float *data) {
    gb_constant(b, name, EPCTX_ONNX_FLOAT, rank, dims, data);
}

GB_FN void gb_ints(graph_builder *b, const char *name, int64_t count, const int64_t *data) {
    gb_constant(b, name, EPCTX_ONNX_INT64, 1, &count, data);
}

GB_FN epctx_str *gb_names(graph_builder *b, const char *list, size_t *count) {
    epctx_str *names = (epctx_str *)gb_alloc(b, sizeof(epctx_str) * 16);
    const char *text = gb_text(b, list).data;
    *count = 0;
    while (*text) {
        const char *comma = strchr(text, ',');
        names[*count].data = text;
        names[*count].size = comma ? (size_t)(comma - text) : strlen(text);
        text += names[*count].size + (comma ? 1 : 0);
        ++*count;
    }
    return names;
}

/* Inputs and outputs as comma-separated lists. Attributes follow with gb_attr_*. */
GB_FN epctx_node *gb_node(graph_builder *b, const char *op_type, int64_t version,
                          const char *inputs, const char *outputs) {
    epctx_node *n = &b->nodes[b->graph.node_count];
    char name[64];
    size_t i;
    for (i = 0; op_type[i] && i < 50; i++) name[i] = op_type[i];
    name[i++] = '_';
    name[i++] = (char)('0' + b->graph.node_count / 10);
    name[i++] = (char)('0' + b->graph.node_count % 10);
    name[i] = '\0';
    n->id = (uint32_t)b->graph.node_count++;
    n->name = gb_text(b, name);
    n->op_type = gb_text(b, op_type);
    n->version = version;
    n->inputs = gb_names(b, inputs, &n->input_count);
    n->outputs = gb_names(b, outputs, &n->output_count);
    n->attrs = (epctx_attr *)gb_alloc(b, sizeof(epctx_attr) * 12);
    return n;
}

GB_FN epctx_attr *gb_attr(graph_builder *b, const char *name, epctx_attr_type type) {
    epctx_node *n = &b->nodes[b->graph.node_count - 1];
    epctx_attr *list = (epctx_attr *)gb_alloc(b, sizeof(epctx_attr) * 12);
    epctx_attr *a;
    memcpy(list, n->attrs, n->attr_count * sizeof *list);
    n->attrs = list;
    a = &list[n->attr_count++];
    a->name = gb_text(b, name);
    a->type = type;
    return a;
}

/* Attributes of the node added last. */
GB_FN void gb_attr_int(graph_builder *b, const char *name, int64_t value) {
    gb_attr(b, name, EPCTX_ATTR_INT)->i = value;
}

GB_FN void gb_attr_float(graph_builder *b, const char *name, float value) {
    gb_attr(b, name, EPCTX_ATTR_FLOAT)->f = value;
}

GB_FN void gb_attr_text(graph_builder *b, const char *name, const char *value) {
    gb_attr(b, name, EPCTX_ATTR_STRING)->s = gb_text(b, value);
}

GB_FN void gb_attr_ints(graph_builder *b, const char *name, size_t count, const int64_t *values) {
    epctx_attr *a = gb_attr(b, name, EPCTX_ATTR_INTS);
    a->count = count;
    a->ints = gb_dims(b, (int)count, values);
}

/* With EPCTX_TEST_BYTES in the environment: a line of each binary, for other machines, too. */
GB_FN void gb_print_bytes(const epctx_buffer *blob) {
    uint64_t sum = UINT64_C(14695981039346656037); /* FNV-1a */
    size_t i;
    if (!getenv("EPCTX_TEST_BYTES")) return;
    for (i = 0; i < blob->size; i++) sum = (sum ^ blob->data[i]) * UINT64_C(1099511628211);
    printf("bytes %" PRIx64 "\n", sum);
}

/* Compiles into a blob; `blob` is initialised here and freed by the caller. */
GB_FN epctx_status gb_compile(const graph_builder *b, epctx_npu_stats *stats, epctx_buffer *blob,
                              epctx_error *error) {
    epctx_npu npu;
    epctx_backend backend;
    void *build = NULL;
    epctx_status status;
    epctx_buffer_init(blob, NULL);
    status = epctx_npu_init(&npu, NULL, &backend, error);
    if (status == EPCTX_OK) status = backend.begin_fn(backend.self, &build, error);
    if (status != EPCTX_OK) return status;
    status = backend.compile_fn(backend.self, build, &b->graph, epctx_str_of("main"), 7, error);
    if (status != EPCTX_OK) {
        backend.discard_fn(backend.self, build);
        return status;
    }
    if (stats) *stats = npu.stats;
    status = backend.finish_fn(backend.self, build, blob, error);
    if (status == EPCTX_OK) gb_print_bytes(blob);
    return status;
}

/* Memory that may be handed to the executor, 64-aligned, freed with free(). */
GB_FN void *gb_aligned(size_t size) {
    void *p = aligned_alloc(64, (size + 127) / 64 * 64);
    if (!p) abort();
    memset(p, 0x7f, size); /* large floats: a value that is used unset shows */
    return p;
}

/* For epctx_npu_run_opts: the last part first. */
GB_FN void gb_backwards(void *user, uint32_t count, void (*work_fn)(void *work, uint32_t i),
                        void *work) {
    (void)user;
    while (count-- > 0) work_fn(work, count);
}

/* Runs a graph once more, with every command in parts; false: other bytes than in `out`. */
GB_FN bool gb_same_in_parts(const epctx_npu_graph *graph, const epctx_span *in,
                            const epctx_memory *out, uint32_t threads, uint64_t part_work) {
    const size_t size = epctx_npu_scratch_size(graph, threads), count = graph->info.output_count;
    epctx_npu_run_opts opts;
    epctx_memory again[GB_MAX];
    epctx_error error;
    void *scratch = gb_aligned(size);
    bool same;
    size_t i;
    memset(&opts, 0, sizeof opts);
    opts.parallel_fn = gb_backwards;
    opts.threads = threads;
    opts.part_work = part_work;
    for (i = 0; i < count; i++) {
        again[i].size = out[i].size;
        again[i].data = gb_aligned(out[i].size);
    }
    same = epctx_npu_run_with(graph, in, again, scratch, size, &opts, &error) == EPCTX_OK;
    for (i = 0; i < count; i++) {
        same = same && memcmp(again[i].data, out[i].data, out[i].size) == 0;
        free(again[i].data);
    }
    free(scratch);
    return same;
}

/* Loads a blob and runs its first graph, whole and in parts. */
GB_FN epctx_status gb_run_blob(epctx_span blob, const void *const *inputs, void *const *outputs,
                               epctx_error *error) {
    epctx_npu_context context;
    epctx_span in[GB_MAX];
    epctx_memory out[GB_MAX];
    void *memory, *scratch;
    size_t need, i, size;
    int32_t j;
    epctx_status status = epctx_npu_load_size(blob, &need, error);
    if (status != EPCTX_OK) return status;
    memory = gb_aligned(need);
    status = epctx_npu_load(&context, blob, memory, need, error);
    if (status == EPCTX_OK) {
        const epctx_graph_info *info = &context.graphs[0].info;
        for (i = 0; i < info->input_count + info->output_count; i++) {
            const epctx_value *v =
                i < info->input_count ? &info->inputs[i] : &info->outputs[i - info->input_count];
            for (j = 0, size = epctx_elem_size(v->elem_type); j < v->rank; j++)
                size *= (size_t)v->dims[j];
            if (i < info->input_count) {
                in[i].data = (const uint8_t *)inputs[i];
                in[i].size = size;
            } else {
                out[i - info->input_count].data = outputs[i - info->input_count];
                out[i - info->input_count].size = size;
            }
        }
        scratch = gb_aligned(info->scratch_size);
        status = epctx_npu_run(&context.graphs[0], in, out, scratch, info->scratch_size, error);
        free(scratch);
        if (status == EPCTX_OK && !gb_same_in_parts(&context.graphs[0], in, out, 3, 1))
            status = epctx_fail(error, EPCTX_ERR_CONTEXT, "other bytes in three parts");
    }
    free(memory);
    return status;
}

GB_FN epctx_status gb_run(const graph_builder *b, const void *const *inputs, void *const *outputs,
                          epctx_error *error) {
    epctx_buffer blob;
    epctx_span span;
    epctx_status status = gb_compile(b, NULL, &blob, error);
    if (status == EPCTX_OK) {
        span.data = blob.data;
        span.size = blob.size;
        status = gb_run_blob(span, inputs, outputs, error);
    }
    epctx_buffer_free(&blob);
    return status;
}

/* The same numbers on every machine, in -1..1. */
GB_FN float gb_random(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return (float)(*state >> 8) / 8388608.0f - 1.0f;
}

GB_FN void gb_randomize(float *data, size_t count, uint32_t seed) {
    size_t i;
    for (i = 0; i < count; i++) data[i] = gb_random(&seed);
}

#endif
