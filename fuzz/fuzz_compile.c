/*
 * Models compiled for the reference NPU: compiling ends, within bounded memory, and what comes out
 * passes the verifier and runs inside its scratch.
 *
 * Bytes changed blindly mostly break the protobuf, so the mutator takes the model apart and changes
 * one field: a number, a name, a shape, a whole message; lengths are made right again.
 */
#define _XOPEN_SOURCE 700 /* posix_memalign */
#include "../tests/build.h"
#include "fuzz.h"
#include "npu_run.h"

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t room);

#define MOST_MEMORY ((size_t)16 << 20)

static void require_told(bool condition, const epctx_error *error) {
    if (!condition) fprintf(stderr, "%s\n", error->message);
    require(condition);
}

/* -- an allocator with an end -- */

static size_t allocated;

static void *limited_alloc(void *user, size_t size) {
    size_t *block;
    (void)user;
    if (size > MOST_MEMORY - allocated) return NULL;
    block = (size_t *)malloc(size + 16);
    if (block == NULL) return NULL;
    *block = size;
    allocated += size;
    return (uint8_t *)block + 16;
}

static void limited_free(void *user, void *memory) {
    size_t *block;
    (void)user;
    if (memory == NULL) return;
    block = (size_t *)(void *)((uint8_t *)memory - 16);
    allocated -= *block;
    free(block);
}

static const epctx_allocator limited = {NULL, limited_alloc, limited_free};

/* No file is there. */
static epctx_status no_stat(void *user, const char *path, epctx_file_info *info,
                            epctx_error *error) {
    (void)user;
    (void)path;
    (void)error;
    memset(info, 0, sizeof *info);
    return EPCTX_OK;
}

/* -- the mutator -- */

/* Fields that hold messages worth going into: message, field, message inside. */
enum { MODEL, GRAPH, NODE, ATTR, TENSOR, VALUE, TYPE, TENSOR_TYPE, SHAPE, LEAF };
static const uint8_t inner[][3] = {
    {MODEL, 7, GRAPH},  {MODEL, 8, LEAF},   {GRAPH, 1, NODE},       {GRAPH, 5, TENSOR},
    {GRAPH, 11, VALUE}, {GRAPH, 12, VALUE}, {GRAPH, 13, VALUE},     {NODE, 5, ATTR},
    {ATTR, 5, TENSOR},  {VALUE, 2, TYPE},   {TYPE, 1, TENSOR_TYPE}, {TENSOR_TYPE, 2, SHAPE},
    {SHAPE, 1, LEAF}};

typedef struct rewrite {
    uint32_t state;
    size_t site;         /* fields seen */
    size_t goal;         /* the one to change */
    epctx_str names[64]; /* seen in nodes: value names and operators */
    size_t name_count;
} rewrite;

static uint32_t any(rewrite *w, uint32_t below) {
    w->state = w->state * 1664525u + 1013904223u;
    return (w->state >> 8) % below;
}

static void change_number(rewrite *w, bytes *out, const epctx_field *field) {
    static const int64_t good[] = {0,         1,         2,         3,         4,  5,   6,    7,
                                   8,         9,         11,        13,        64, 255, 1000, 65536,
                                   INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, -1, -2};
    uint64_t value = field->value;
    switch (any(w, 4)) {
    case 0: value++; break;
    case 1: value--; break;
    case 2: value ^= UINT64_C(1) << any(w, 64); break;
    default: value = (uint64_t)good[any(w, sizeof good / sizeof good[0])];
    }
    put_int(out, field->number, (int64_t)value);
}

static void change_bytes(rewrite *w, bytes *out, const epctx_field *field) {
    uint8_t copy[512];
    size_t size = field->body.size < 256 ? field->body.size : 256;
    if (w->name_count > 0 && any(w, 2) == 0) {
        epctx_str name = w->names[any(w, (uint32_t)w->name_count)];
        put_data(out, field->number, name.data, name.size);
        return;
    }
    if (size > 0) memcpy(copy, field->body.data, size);
    put_data(out, field->number, copy, LLVMFuzzerMutate(copy, size, size + 64));
}

static void copy_field(bytes *out, const epctx_field *field) {
    if (field->wire == EPCTX_WIRE_VARINT)
        put_int(out, field->number, (int64_t)field->value);
    else if (field->wire == EPCTX_WIRE_LEN)
        put_data(out, field->number, field->body.data, field->body.size);
    else if (field->wire == EPCTX_WIRE_FIXED32) {
        uint32_t word = (uint32_t)field->value;
        put_tag(out, field->number, 5);
        bytes_add(out, &word, 4);
    }
}

static void copy_message(rewrite *w, bytes *out, epctx_view view, int type) {
    epctx_cursor it = epctx_view_fields(view, 0);
    epctx_field field, last;
    bool have_last = false;
    while (epctx_next_field(&it, &field)) {
        size_t i;
        bool chosen = w->site++ == w->goal;
        bytes child = {0};
        for (i = 0; i < sizeof inner / sizeof inner[0]; i++)
            if (inner[i][0] == type && inner[i][1] == field.number) break;
        if (type == NODE && field.wire == EPCTX_WIRE_LEN && w->name_count < 64 &&
            (field.number <= 2 || field.number == 4)) {
            epctx_str name = {(const char *)field.body.data, field.body.size};
            w->names[w->name_count++] = name;
        }
        if (chosen && any(w, 6) == 0) continue; /* gone */
        if (chosen && any(w, 6) == 0) {         /* twice, or once more what came before */
            copy_field(out, have_last && any(w, 2) == 0 ? &last : &field);
            copy_field(out, &field);
        } else if (field.wire == EPCTX_WIRE_LEN && i < sizeof inner / sizeof inner[0]) {
            if (chosen) w->goal = w->site; /* its first field */
            copy_message(w, &child, field.body, inner[i][2]);
            put_child(out, field.number, &child);
        } else if (chosen && field.wire == EPCTX_WIRE_VARINT) {
            change_number(w, out, &field);
        } else if (chosen && field.wire == EPCTX_WIRE_LEN) {
            change_bytes(w, out, &field);
        } else {
            copy_field(out, &field);
        }
        last = field;
        have_last = true;
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed) {
    epctx_model model;
    rewrite w;
    bytes out = {0};
    int pass;
    if (seed % 16 == 0 || epctx_model_open_memory(&model, data, size, NULL, NULL) != EPCTX_OK)
        return LLVMFuzzerMutate(data, size, room);
    memset(&w, 0, sizeof w);
    w.goal = SIZE_MAX; /* the first pass counts */
    for (pass = 0; pass < 2; pass++) {
        bytes_free(&out);
        w.state = seed;
        if (pass > 0) w.goal = any(&w, (uint32_t)w.site + 1);
        w.site = 0;
        copy_message(&w, &out, epctx_model_read(&model).view, MODEL);
    }
    epctx_model_close(&model);
    if (out.size > 0 && out.size <= room) {
        memcpy(data, out.data, out.size);
        size = out.size;
    }
    bytes_free(&out);
    return size;
}

/* -- the test -- */

static void compile(const epctx_backend *backend, const epctx_graph *graph) {
    epctx_buffer blob;
    epctx_span span;
    epctx_error error;
    void *build = NULL;
    epctx_status status;
    epctx_error_clear(&error);
    epctx_buffer_init(&blob, &limited);
    if (backend->begin_fn(backend->self, &build, &error) != EPCTX_OK) return;
    status = backend->compile_fn(backend->self, build, graph, epctx_str_of("g"), 7, &error);
    require_told((status == EPCTX_OK) == (error.message[0] == '\0'), &error);
    if (status != EPCTX_OK)
        backend->discard_fn(backend->self, build);
    else if (backend->finish_fn(backend->self, build, &blob, &error) == EPCTX_OK) {
        span.data = blob.data;
        span.size = blob.size;
        require_told(load_and_run(span, &error), &error);
    }
    epctx_buffer_free(&blob);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    epctx_open_opts opts;
    epctx_io io;
    epctx_model model;
    epctx_graph graph;
    epctx_partition *parts;
    epctx_npu_opts npu_opts;
    epctx_npu npu;
    epctx_backend backend;
    epctx_arena arena;
    epctx_error error;
    size_t count, i;
    memset(&opts, 0, sizeof opts);
    memset(&io, 0, sizeof io);
    memset(&npu_opts, 0, sizeof npu_opts);
    io.stat_fn = no_stat;
    opts.io = &io;
    opts.allocator = npu_opts.allocator = &limited;
    require_told(epctx_npu_init(&npu, &npu_opts, &backend, &error) == EPCTX_OK, &error);
    epctx_arena_init(&arena, &limited);
    if (epctx_model_open_memory(&model, data, size, &opts, NULL) == EPCTX_OK &&
        epctx_model_load_graph(&model, &graph, NULL) == EPCTX_OK) {
        uint8_t *take = (uint8_t *)calloc(graph.node_count + 1, 1);
        if (backend.capability_fn(backend.self, &graph, take, &error) == EPCTX_OK &&
            epctx_graph_partition(&graph, take, &arena, &parts, &count, &error) == EPCTX_OK)
            for (i = 0; i < count; i++) compile(&backend, &parts[i].graph);
        free(take);
    }
    epctx_arena_free(&arena);
    epctx_model_close(&model);
    if (allocated != 0) abort(); /* leaked */
    return 0;
}
