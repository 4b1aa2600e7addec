/* device_toy.c - a second device for the plugin EP, as small as one can be: Add, Sub, Mul and Relu
 * of float tensors, and two global pools, with which ORT's data layouts are tried. It shares no
 * line with the reference NPU, which is its purpose: the tests run the same scaffolding
 * (examples/plugin_ep) on top of it.
 *
 * Context binary, numbers little-endian:
 *   "TOY1" u32:sdk_major u32:graphs u64:checksum of the rest, then for each graph
 *   str:name u64:hash u32:slots u32:inputs u32:outputs u32:steps
 *   slots:   u32:kind u64:elements str:name u32:rank i64:dims...; constants: elements * f32
 *   outputs: u32:slot
 *   steps:   u32:op u32:left u32:right u32:result
 * where str is u32:size and its bytes. The first slots are the inputs.
 */
#define _POSIX_C_SOURCE 200809L
#include "examples/plugin_ep/device.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SDK_MAJOR = 1, MAX_GRAPHS = 1024, MAX_SLOTS = 65536, MAX_RANK = 8 };
enum { OP_ADD, OP_SUB, OP_MUL, OP_RELU, OP_MAX, OP_MEAN, OP_MAX_LAST, OP_COUNT };
enum { SLOT_INPUT, SLOT_CONSTANT, SLOT_RESULT };

#define NHWC "com.ms.internal.nhwc" /* where ORT puts nodes whose layout it converted */

static const struct {
    const char *name, *domain;
    size_t inputs;
} ops[OP_COUNT] = {
    {"Add", "", 2},
    {"Sub", "", 2},
    {"Mul", "", 2},
    {"Relu", "", 1},
    {"GlobalMaxPool", "", 1},
    {"GlobalAveragePool", "", 1},
    {"GlobalMaxPool", NHWC, 1},
};

typedef struct toy {
    char architecture[32];
    bool fail_run;       /* for tests: EP option fail_run=1 */
    bool fail_load;      /* fail_load=1: the device, not the binary, is to blame */
    bool show_addresses; /* and show_addresses=1: the first output tells where the tensors were */
    bool channels_last;  /* layout=nhwc */
    bool apart;          /* apart=1: Mul shares no partition with another operator */
    bool take_if;        /* take_if=1: claims If, tells the hash of the graph it cannot compile */
    char node[16];       /* node=...: what is wrong with its EPContext nodes */
    /* Dynamic options for tests: a run is held up between "1" and "0". */
    atomic_bool fail;
    atomic_int hold; /* 2: only the first */
    atomic_uint held;
} toy;

/* ---------------------------------------------------------------- capability */

static int op_of(const epctx_node *node) {
    int op;
    for (op = 0; op < OP_COUNT; op++)
        if (epctx_str_is(node->op_type, ops[op].name) && epctx_str_is(node->domain, ops[op].domain))
            return op;
    return -1;
}

/* The declared type of a value, or of a constant as a value without a name. */
static bool type_of(const epctx_graph *graph, epctx_str name, epctx_value *out) {
    const epctx_value *lists[3];
    size_t counts[3], i, k;
    lists[0] = graph->inputs, counts[0] = graph->input_count;
    lists[1] = graph->values, counts[1] = graph->value_count;
    lists[2] = graph->outputs, counts[2] = graph->output_count;
    for (i = 0; i < 3; i++) {
        for (k = 0; k < counts[i]; k++) {
            if (!epctx_str_eq(lists[i][k].name, name)) continue;
            *out = lists[i][k];
            return true;
        }
    }
    for (i = 0; i < graph->initializer_count; i++) {
        const epctx_tensor *tensor = &graph->initializers[i];
        if (!epctx_str_eq(tensor->name, name) || !tensor->data) continue;
        out->elem_type = tensor->elem_type;
        out->rank = tensor->rank;
        out->dims = tensor->dims;
        return true;
    }
    return false;
}

static bool elements_of(const epctx_value *value, uint64_t *out) {
    int32_t i;
    *out = 1;
    if (value->elem_type != EPCTX_ONNX_FLOAT || value->rank < 0 || value->rank > MAX_RANK)
        return false;
    for (i = 0; i < value->rank; i++) {
        if (value->dims[i] < 0 || value->dims[i] > 1 << 24) return false;
        *out *= (uint64_t)value->dims[i];
        if (*out > 1u << 28) return false;
    }
    return true;
}

/* [n,c,h,w] to [n,c,1,1], or [n,h,w,c] to [n,1,1,c]. */
static bool pool_fits(int op, const epctx_value *from, const epctx_value *to) {
    int32_t i;
    const int32_t channels = op == OP_MAX_LAST ? 3 : 1;
    if (from->rank != 4 || to->rank != 4) return false;
    for (i = 0; i < 4; i++) {
        const int64_t want = i == 0 || i == channels ? from->dims[i] : 1;
        if (from->dims[i] < 1 || to->dims[i] != want) return false;
    }
    return true;
}

static bool node_fits(const epctx_graph *graph, const epctx_node *node) {
    epctx_value value, result;
    uint64_t have = 0, want = 0;
    size_t i;
    const int op = op_of(node);
    memset(&value, 0, sizeof value);
    memset(&result, 0, sizeof result);
    if (op < 0 || node->output_count != 1 || node->input_count != ops[op].inputs) return false;
    if (!type_of(graph, node->outputs[0], &result) || !elements_of(&result, &want)) return false;
    if (op >= OP_MAX) {
        return type_of(graph, node->inputs[0], &value) && elements_of(&value, &have) &&
               pool_fits(op, &value, &result);
    }
    for (i = 0; i < node->input_count; i++) {
        if (!type_of(graph, node->inputs[i], &value) || !elements_of(&value, &have)) return false;
        if (have != want && have != 1) return false; /* no broadcasting but of one number */
    }
    return true;
}

static epctx_status toy_capability(void *self, const epctx_graph *graph, uint8_t *take,
                                   epctx_error *error) {
    size_t i;
    (void)error;
    for (i = 0; i < graph->node_count; i++) {
        take[i] = node_fits(graph, &graph->nodes[i]) ||
                  (((const toy *)self)->take_if && epctx_str_is(graph->nodes[i].op_type, "If"));
        if (take[i] && ((const toy *)self)->apart && epctx_str_is(graph->nodes[i].op_type, "Mul"))
            take[i] = 2;
    }
    return EPCTX_OK;
}

/* ------------------------------------------------------------------- compile */

typedef struct toy_build {
    epctx_buffer graphs;
    uint32_t count;
} toy_build;

static epctx_status toy_begin(void *self, void **build, epctx_error *error) {
    toy_build *b = (toy_build *)calloc(1, sizeof *b);
    (void)self;
    if (!b) return epctx_fail(error, EPCTX_ERR_NOMEM, "no memory");
    epctx_buffer_init(&b->graphs, NULL);
    *build = b;
    return EPCTX_OK;
}

static void toy_discard(void *self, void *build) {
    (void)self;
    epctx_buffer_free(&((toy_build *)build)->graphs);
    free(build);
}

/* A writer with a sticky error. */
typedef struct out_stream {
    epctx_buffer *buffer;
    epctx_status status;
} out_stream;

static void put(out_stream *out, const void *data, size_t size) {
    if (out->status == EPCTX_OK) out->status = epctx_buffer_append(out->buffer, data, size);
}

static void put32(out_stream *out, uint64_t number) {
    uint8_t bytes[4];
    int i;
    for (i = 0; i < 4; i++) bytes[i] = (uint8_t)(number >> (8 * i));
    put(out, bytes, sizeof bytes);
}

static void put64(out_stream *out, uint64_t number) {
    put32(out, number & 0xffffffffu);
    put32(out, number >> 32);
}

static void put_str(out_stream *out, epctx_str text) {
    put32(out, text.size);
    put(out, text.data, text.size);
}

static void put_slot(out_stream *out, uint32_t kind, const epctx_value *value,
                     const uint8_t *data) {
    uint64_t elements = 0;
    int32_t i;
    elements_of(value, &elements);
    put32(out, kind);
    put64(out, elements);
    put_str(out, value->name);
    put32(out, (uint64_t)value->rank);
    for (i = 0; i < value->rank; i++) put64(out, (uint64_t)value->dims[i]);
    if (kind == SLOT_CONSTANT) put(out, data, (size_t)elements * sizeof(float));
}

static epctx_status toy_compile(void *self, void *build, const epctx_graph *graph, epctx_str name,
                                uint64_t hash, epctx_error *error) {
    toy_build *b = (toy_build *)build;
    out_stream out;
    epctx_arena arena;
    epctx_map slots;
    epctx_status status = EPCTX_OK;
    epctx_value value;
    size_t i, k;
    uint32_t next = 0;
    out.buffer = &b->graphs;
    out.status = EPCTX_OK;
    memset(&arena, 0, sizeof arena);
    epctx_arena_init(&arena, NULL);
    epctx_map_init(&slots, &arena);
    put_str(&out, name);
    put64(&out, hash);
    put32(&out, graph->input_count + graph->initializer_count + graph->node_count);
    put32(&out, graph->input_count);
    put32(&out, graph->output_count);
    put32(&out, graph->node_count);
    for (i = 0; i < graph->input_count && status == EPCTX_OK; i++) {
        put_slot(&out, SLOT_INPUT, &graph->inputs[i], NULL);
        status = epctx_map_put(&slots, graph->inputs[i].name, next++);
    }
    for (i = 0; i < graph->initializer_count && status == EPCTX_OK; i++) {
        const epctx_tensor *tensor = &graph->initializers[i];
        value.name = tensor->name;
        value.elem_type = tensor->elem_type;
        value.rank = tensor->rank;
        value.dims = tensor->dims;
        put_slot(&out, SLOT_CONSTANT, &value, tensor->data);
        status = epctx_map_put(&slots, tensor->name, next++);
    }
    for (i = 0; i < graph->node_count && status == EPCTX_OK; i++) {
        const epctx_node *node = &graph->nodes[i];
        if (!node_fits(graph, node) || !type_of(graph, node->outputs[0], &value)) {
            status = epctx_fail(error, EPCTX_ERR_BACKEND, "the toy cannot compile %S of graph %x",
                                &node->op_type, hash);
            break;
        }
        if (((const toy *)self)->channels_last && op_of(node) == OP_MAX) {
            status = epctx_fail(error, EPCTX_ERR_BACKEND,
                                "GlobalMaxPool has channels first, where the toy asked for last");
            break;
        }
        value.name = node->outputs[0];
        put_slot(&out, SLOT_RESULT, &value, NULL);
        status = epctx_map_put(&slots, value.name, next++);
    }
    for (i = 0; i < graph->output_count; i++)
        put32(&out, epctx_map_get(&slots, graph->outputs[i].name));
    for (i = 0; i < graph->node_count && status == EPCTX_OK; i++) {
        const epctx_node *node = &graph->nodes[i];
        put32(&out, (uint64_t)op_of(node));
        for (k = 0; k < 2; k++) {
            const epctx_str input = node->inputs[k < node->input_count ? k : 0];
            put32(&out, epctx_map_get(&slots, input));
        }
        put32(&out, epctx_map_get(&slots, node->outputs[0]));
    }
    epctx_arena_free(&arena);
    b->count++;
    if (status == EPCTX_OK) status = out.status;
    return status;
}

static epctx_status toy_finish(void *self, void *build, epctx_buffer *out, epctx_error *error) {
    toy_build *b = (toy_build *)build;
    out_stream stream;
    (void)error;
    stream.buffer = out;
    stream.status = EPCTX_OK;
    put(&stream, "TOY1", 4);
    put32(&stream, SDK_MAJOR);
    put32(&stream, b->count);
    put64(&stream, epctx_hash(b->graphs.data, b->graphs.size, 0));
    put(&stream, b->graphs.data, b->graphs.size);
    toy_discard(self, build);
    return stream.status;
}

/* ---------------------------------------------------------------------- load */

typedef struct toy_slot {
    uint32_t kind;
    uint64_t elements;
    epctx_value value;
    const uint8_t *constant;
} toy_slot;

typedef struct toy_step {
    uint32_t op, left, right, result;
} toy_step;

typedef struct toy_graph {
    epctx_str name;
    uint64_t hash;
    uint32_t slot_count, input_count, output_count, step_count;
    toy_slot *slots;
    uint32_t *outputs;
    toy_step *steps;
    epctx_value *output_values;
    epctx_value *input_values;
    size_t scratch;
} toy_graph;

typedef struct toy_context {
    epctx_arena arena;
    toy_graph *graphs;
    uint32_t count;
} toy_context;

/* A reader with a sticky error: past the end everything is 0. */
typedef struct in_stream {
    const uint8_t *next, *end;
    bool bad;
    epctx_arena *arena;
} in_stream;

static const uint8_t *get(in_stream *in, uint64_t size) {
    const uint8_t *here = in->next;
    if (in->bad || size > (uint64_t)(in->end - in->next)) {
        in->bad = true;
        return NULL;
    }
    in->next += size;
    return here;
}

static uint32_t get32(in_stream *in) {
    const uint8_t *b = get(in, 4);
    return b ? (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24
             : 0;
}

static uint64_t get64(in_stream *in) {
    const uint64_t low = get32(in);
    return low | (uint64_t)get32(in) << 32;
}

static epctx_str get_str(in_stream *in) {
    epctx_str text;
    const uint32_t size = get32(in);
    text.data = (const char *)get(in, size);
    text.size = text.data ? size : 0;
    return text;
}

/* A number below `limit`. */
static uint32_t get_below(in_stream *in, uint32_t limit) {
    const uint32_t number = get32(in);
    if (number < limit) return number;
    in->bad = true;
    return 0;
}

static void *get_room(in_stream *in, size_t count, size_t size) {
    void *room = epctx_arena_array(in->arena, count ? count : 1, size);
    if (!room) in->bad = true;
    return room;
}

static void get_slot(in_stream *in, toy_slot *slot) {
    int64_t *dims;
    uint64_t elements = 0;
    uint32_t rank, i;
    slot->kind = get_below(in, SLOT_RESULT + 1);
    slot->elements = get64(in);
    slot->value.name = get_str(in);
    slot->value.elem_type = EPCTX_ONNX_FLOAT;
    rank = get_below(in, MAX_RANK + 1);
    dims = (int64_t *)get_room(in, rank, sizeof *dims);
    for (i = 0; i < rank && !in->bad; i++) dims[i] = (int64_t)get64(in);
    if (in->bad) return;
    slot->value.rank = (int32_t)rank;
    slot->value.dims = dims;
    if (!elements_of(&slot->value, &elements) || elements != slot->elements) in->bad = true;
    if (slot->kind == SLOT_CONSTANT) slot->constant = get(in, elements * sizeof(float));
}

static void get_graph(in_stream *in, toy_graph *graph) {
    uint32_t i;
    graph->name = get_str(in);
    graph->hash = get64(in);
    graph->slot_count = get_below(in, MAX_SLOTS);
    graph->input_count = get_below(in, graph->slot_count + 1);
    graph->output_count = get_below(in, MAX_SLOTS);
    graph->step_count = get_below(in, MAX_SLOTS);
    if (in->bad) return;
    graph->slots = (toy_slot *)get_room(in, graph->slot_count, sizeof *graph->slots);
    graph->outputs = (uint32_t *)get_room(in, graph->output_count, sizeof *graph->outputs);
    graph->steps = (toy_step *)get_room(in, graph->step_count, sizeof *graph->steps);
    graph->input_values = (epctx_value *)get_room(in, graph->input_count, sizeof(epctx_value));
    graph->output_values = (epctx_value *)get_room(in, graph->output_count, sizeof(epctx_value));
    for (i = 0; i < graph->slot_count && !in->bad; i++) {
        toy_slot *slot = &graph->slots[i];
        get_slot(in, slot);
        if ((slot->kind == SLOT_INPUT) != (i < graph->input_count)) in->bad = true;
        if (i < graph->input_count) graph->input_values[i] = slot->value;
        if (slot->kind == SLOT_RESULT) graph->scratch += (size_t)slot->elements * sizeof(float);
    }
    for (i = 0; i < graph->output_count && !in->bad; i++) {
        graph->outputs[i] = get_below(in, graph->slot_count);
        if (!in->bad) graph->output_values[i] = graph->slots[graph->outputs[i]].value;
    }
    for (i = 0; i < graph->step_count && !in->bad; i++) {
        toy_step *step = &graph->steps[i];
        uint64_t n;
        step->op = get_below(in, OP_COUNT);
        step->left = get_below(in, graph->slot_count);
        step->right = get_below(in, graph->slot_count);
        step->result = get_below(in, graph->slot_count);
        if (in->bad) return;
        n = graph->slots[step->result].elements;
        if (step->op >= OP_MAX) {
            const toy_slot *slots = graph->slots;
            if (slots[step->result].kind != SLOT_RESULT ||
                !pool_fits((int)step->op, &slots[step->left].value, &slots[step->result].value))
                in->bad = true;
            continue;
        }
        if (graph->slots[step->result].kind != SLOT_RESULT ||
            (graph->slots[step->left].elements != n && graph->slots[step->left].elements != 1) ||
            (graph->slots[step->right].elements != n && graph->slots[step->right].elements != 1))
            in->bad = true;
    }
}

static void toy_unload(void *self, void *context) {
    (void)self;
    epctx_arena_free(&((toy_context *)context)->arena);
    free(context);
}

/* What comes with the bytes: an attribute of one's own, the file, a log. */
static bool tell_remark(const epctx_load_in *in, epctx_error *error) {
    const epctx_attr *remark;
    char text[1000];
    if (epctx_node_get_attr(in->record, "remark", EPCTX_ATTR_STRING, &remark, error) != EPCTX_OK)
        return false;
    if (!remark || !in->hooks || !in->hooks->log_fn) return true;
    snprintf(text, sizeof text, "remark '%.*s' on '%s'", (int)remark->s.size, remark->s.data,
             in->path);
    in->hooks->log_fn(in->hooks->user, EPCTX_LOG_INFO, text);
    return true;
}

static epctx_status toy_load(void *self, const epctx_load_in *from, void **out,
                             epctx_error *error) {
    toy_context *context = (toy_context *)calloc(1, sizeof *context);
    in_stream in;
    const uint8_t *magic;
    uint32_t sdk, i;
    uint64_t sum;
    if (!context) return epctx_fail(error, EPCTX_ERR_NOMEM, "no memory");
    epctx_arena_init(&context->arena, NULL);
    if (((const toy *)self)->fail_load) {
        toy_unload(self, context);
        return epctx_fail(error, EPCTX_ERR_BACKEND, "the toy was told not to load");
    }
    in.next = from->binary.data;
    in.end = in.next + from->binary.size;
    in.bad = false;
    in.arena = &context->arena;
    magic = get(&in, 4);
    sdk = get32(&in);
    context->count = get_below(&in, MAX_GRAPHS);
    sum = get64(&in);
    if (in.bad || memcmp(magic, "TOY1", 4) != 0) {
        toy_unload(self, context);
        return epctx_fail(error, EPCTX_ERR_CONTEXT, "not a context binary of the toy");
    }
    if (sdk != SDK_MAJOR) {
        toy_unload(self, context);
        return epctx_fail(error, EPCTX_ERR_VERSION, "SDK version: expected %u, found %u",
                          (uint64_t)SDK_MAJOR, (uint64_t)sdk);
    }
    if (sum != epctx_hash(in.next, (size_t)(in.end - in.next), 0)) {
        toy_unload(self, context);
        return epctx_fail(error, EPCTX_ERR_CONTEXT, "the context binary is damaged: checksum");
    }
    context->graphs = (toy_graph *)get_room(&in, context->count, sizeof(toy_graph));
    for (i = 0; i < context->count && !in.bad; i++) get_graph(&in, &context->graphs[i]);
    if (in.bad) {
        toy_unload(self, context);
        return epctx_fail(error, EPCTX_ERR_CONTEXT, "the context binary is damaged: graph");
    }
    if (!tell_remark(from, error)) {
        toy_unload(self, context);
        return EPCTX_ERR_GRAPH;
    }
    *out = context;
    return EPCTX_OK;
}

static epctx_str toy_name(const void *graphs, size_t index) {
    return ((const toy_graph *)graphs)[index].name;
}

static epctx_status toy_find(void *self, void *context, epctx_str name, uint64_t hash, void **graph,
                             epctx_error *error) {
    toy_context *c = (toy_context *)context;
    uint32_t i;
    (void)self;
    for (i = 0; i < c->count; i++) {
        if (!epctx_str_eq(c->graphs[i].name, name)) continue;
        if (hash && hash != c->graphs[i].hash) {
            return epctx_fail(error, EPCTX_ERR_VERSION,
                              "graph '%S' is of another generation: expected hash %x, found %x",
                              &name, hash, c->graphs[i].hash);
        }
        *graph = &c->graphs[i];
        return EPCTX_OK;
    }
    return epctx_fail_no_graph(error, name, c->graphs, c->count, toy_name);
}

/* ----------------------------------------------------------------------- run */

static epctx_status toy_info(void *self, void *graph, epctx_graph_info *info, epctx_error *error) {
    const toy_graph *g = (const toy_graph *)graph;
    (void)self;
    (void)error;
    info->name = g->name;
    info->inputs = g->input_values;
    info->input_count = g->input_count;
    info->outputs = g->output_values;
    info->output_count = g->output_count;
    info->scratch_size = g->scratch + g->slot_count * sizeof(uint8_t *);
    return EPCTX_OK;
}

static float load_float(const uint8_t *data, size_t i) {
    float number;
    memcpy(&number, data + i * sizeof number, sizeof number);
    return number;
}

/* Number `k` of the result. */
static float pool(uint32_t op, const toy_slot *from, const uint8_t *data, size_t k) {
    const bool last = op == OP_MAX_LAST;
    const size_t channels = (size_t)from->value.dims[last ? 3 : 1];
    const size_t count = (size_t)(from->value.dims[last ? 1 : 2] * from->value.dims[last ? 2 : 3]);
    const size_t start = last ? k / channels * channels * count + k % channels : k * count;
    const size_t step = last ? channels : 1;
    float result = load_float(data, start);
    size_t i;
    for (i = 1; i < count; i++) {
        const float next = load_float(data, start + i * step);
        if (op == OP_MEAN)
            result += next;
        else if (next > result)
            result = next;
    }
    return op == OP_MEAN ? result / (float)count : result;
}

static float apply(uint32_t op, float a, float b) {
    switch (op) {
    case OP_ADD: return a + b;
    case OP_SUB: return a - b;
    case OP_MUL: return a * b;
    default: return a > 0 ? a : 0;
    }
}

/* Ten seconds at most: a test that forgets a run must end. */
static void nap(void) {
    const struct timespec t = {0, 1000000};
    nanosleep(&t, NULL);
}

/* Seconds; naps take much longer than they should on a busy machine. */
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* False: nobody let the run go, so whoever should have waits for it instead. */
static bool wait_while_held(toy *self) {
    const int hold = atomic_load(&self->hold);
    const double end = now() + 10;
    bool released = true;
    if (!hold || (atomic_fetch_add(&self->held, 1) > 0 && hold == 2)) {
        if (hold) atomic_fetch_sub(&self->held, 1);
        return true;
    }
    while (atomic_load(&self->hold) && released) {
        nap();
        released = now() < end;
    }
    atomic_fetch_sub(&self->held, 1);
    return released;
}

static epctx_status toy_run(void *self, void *graph, const epctx_span *inputs,
                            const epctx_memory *outputs, void *scratch, size_t scratch_size,
                            epctx_error *error) {
    const toy_graph *g = (const toy_graph *)graph;
    const uint8_t **data = (const uint8_t **)scratch;
    uint8_t *next = (uint8_t *)scratch + g->slot_count * sizeof *data;
    uint32_t i;
    uint64_t k;
    if (!wait_while_held((toy *)self))
        return epctx_fail(error, EPCTX_ERR_BACKEND, "a held run was not let go");
    if (((const toy *)self)->fail_run || atomic_load(&((toy *)self)->fail))
        return epctx_fail(error, EPCTX_ERR_BACKEND, "the toy was told to fail");
    if (((const toy *)self)->show_addresses) {
        const void *addresses[2];
        addresses[0] = inputs[0].data;
        addresses[1] = outputs[0].data;
        if (outputs[0].size < sizeof addresses) return EPCTX_ERR_ARG;
        memcpy(outputs[0].data, addresses, sizeof addresses);
        return EPCTX_OK;
    }
    if (scratch_size < g->scratch + g->slot_count * sizeof *data)
        return epctx_fail(error, EPCTX_ERR_ARG, "too little scratch");
    for (i = 0; i < g->slot_count; i++) {
        const toy_slot *slot = &g->slots[i];
        data[i] = slot->kind == SLOT_CONSTANT ? slot->constant : next;
        if (slot->kind == SLOT_INPUT) data[i] = inputs[i].data;
        if (slot->kind == SLOT_RESULT) next += slot->elements * sizeof(float);
    }
    for (i = 0; i < g->step_count; i++) {
        const toy_step *step = &g->steps[i];
        const toy_slot *result = &g->slots[step->result];
        const uint64_t one_left = g->slots[step->left].elements == 1;
        const uint64_t one_right = g->slots[step->right].elements == 1;
        /* Scratch is ours to write, though the table says const for the inputs' sake. */
        uint8_t *to = (uint8_t *)scratch + (data[step->result] - (const uint8_t *)scratch);
        for (k = 0; k < result->elements; k++) {
            const float number =
                step->op >= OP_MAX
                    ? pool(step->op, &g->slots[step->left], data[step->left], (size_t)k)
                    : apply(step->op, load_float(data[step->left], one_left ? 0 : (size_t)k),
                            load_float(data[step->right], one_right ? 0 : (size_t)k));
            memcpy(to + k * sizeof number, &number, sizeof number);
        }
    }
    for (i = 0; i < g->output_count; i++) {
        const toy_slot *slot = &g->slots[g->outputs[i]];
        if (outputs[i].size != slot->elements * sizeof(float))
            return epctx_fail(error, EPCTX_ERR_ARG, "an output has the wrong size");
        memcpy(outputs[i].data, data[g->outputs[i]], outputs[i].size);
    }
    return EPCTX_OK;
}

static epctx_status toy_check(void *self, const epctx_epnode *node, epctx_error *error) {
    const char *mine = ((const toy *)self)->architecture;
    if (!node->hardware_architecture.size || epctx_str_is(node->hardware_architecture, mine))
        return EPCTX_OK;
    return epctx_fail(error, EPCTX_ERR_VERSION, "hardware_architecture: expected %s, found %S",
                      mine, &node->hardware_architecture);
}

static epctx_status toy_explain(void *self, const epctx_graph *graph, size_t index,
                                epctx_error *error) {
    (void)self;
    return epctx_fail(error, EPCTX_ERR_UNSUPPORTED, "the toy does not know %S",
                      &graph->nodes[index].op_type);
}

/* units=1: all Add and Mul are in one partition, or left. */
static epctx_status toy_units(void *self, const epctx_graph *graph, const uint8_t *take,
                              uint32_t *units, epctx_error *error) {
    size_t i;
    (void)self, (void)take, (void)error;
    for (i = 0; i < graph->node_count; i++) {
        const int op = op_of(&graph->nodes[i]);
        units[i] = op == OP_ADD || op == OP_MUL;
    }
    return EPCTX_OK;
}

/* ---------------------------------------------------------------------- node */

/* Attributes of the toy's own, one of every type that ONNX Runtime makes; with node=... something
 * that is refused. */
static epctx_status toy_node(void *self, void *build, const epctx_graph *graph, epctx_arena *arena,
                             epctx_node *node, epctx_error *error) {
    static const int64_t tiles[] = {2, 3};
    static const float rates[] = {0.5f, 2};
    static const epctx_str stages[] = {{"load", 4}, {"", 0}, {"run", 3}};
    static const epctx_str nowhere[] = {{"nowhere", 7}};
    static const epctx_tensor tensor = {{"t", 1}, EPCTX_ONNX_UINT8, 0, NULL, NULL,
                                        0,        {"", 0},          0, 0};
    static const epctx_attr own[] = {
        {.name = {"lanes", 5}, .type = EPCTX_ATTR_INT, .i = -4},
        {.name = {"clock", 5}, .type = EPCTX_ATTR_FLOAT, .f = 1.5f},
        {.name = {"unit", 4}, .type = EPCTX_ATTR_STRING, .s = {"sum", 3}},
        {.name = {"tiles", 5}, .type = EPCTX_ATTR_INTS, .ints = tiles, .count = 2},
        {.name = {"rates", 5}, .type = EPCTX_ATTR_FLOATS, .floats = rates, .count = 2},
        {.name = {"stages", 6}, .type = EPCTX_ATTR_STRINGS, .strings = stages, .count = 3},
        {.name = {"lanes", 5}, .type = EPCTX_ATTR_INT, .i = 1}, /* node=twice */
    };
    static const epctx_attr wrong[] = {
        {.name = {"source", 6}, .type = EPCTX_ATTR_STRING, .s = {"another", 7}},
        {.name = {"table", 5}, .type = EPCTX_ATTR_TENSOR, .t = &tensor},
    };
    const char *wish = ((const toy *)self)->node;
    (void)build, (void)graph, (void)arena, (void)error;
    node->attrs = own;
    node->attr_count = sizeof own / sizeof own[0] - 1;
    if (strcmp(wish, "twice") == 0) node->attr_count++;
    if (strcmp(wish, "reserved") == 0 || strcmp(wish, "tensor") == 0) {
        node->attrs = &wrong[*wish == 't'];
        node->attr_count = 1;
    }
    if (strcmp(wish, "input") == 0) node->inputs = nowhere;
    if (strcmp(wish, "name") == 0) node->name = epctx_str_of("every_node");
    return EPCTX_OK;
}

/* -------------------------------------------------------------------- device */

static void toy_close(epctx_backend *backend) {
    free(backend->self);
    memset(backend, 0, sizeof *backend);
}

/* ep.dynamic.toy_fail 0|1: runs fail. ep.dynamic.toy_hold 0|1|first: runs wait, or the first to
 * come does; "held": returns when one waits. */
static const char *const dynamic_keys[] = {"ep.dynamic.toy_fail", "ep.dynamic.toy_hold", NULL};

static epctx_status toy_dynamic(epctx_backend *backend, const char *key, const char *value,
                                epctx_error *error) {
    toy *self = (toy *)backend->self;
    const bool hold = strcmp(key, dynamic_keys[1]) == 0;
    int i;
    if (hold && strcmp(value, "held") == 0) {
        for (i = 0; i < 10000 && atomic_load(&self->held) == 0; i++) nap();
        return atomic_load(&self->held) ? EPCTX_OK
                                        : epctx_fail(error, EPCTX_ERR_BACKEND, "no run is held");
    }
    if (hold && strcmp(value, "first") == 0)
        atomic_store(&self->hold, 2);
    else if (strcmp(value, "0") != 0 && strcmp(value, "1") != 0)
        return epctx_fail(error, EPCTX_ERR_ARG, "%s: 0 or 1 is expected, found '%s'", key, value);
    else if (hold)
        atomic_store(&self->hold, *value == '1');
    else
        atomic_store(&self->fail, *value == '1');
    return EPCTX_OK;
}

static bool toy_channels_last(const epctx_backend *backend) {
    return ((const toy *)backend->self)->channels_last;
}

/* Of the two pools that ORT would convert only this one. */
static int toy_convert(const epctx_backend *backend, const char *domain, const char *op_type) {
    (void)backend;
    return !*domain && strcmp(op_type, "GlobalMaxPool") == 0;
}

/* EP options: architecture=abacus|slide-rule, layout=nchw|nhwc, fail_run=1, fail_load=1,
 * show_addresses=1, take_if=1, apart=1, units=1, most_nodes=1, weight_inputs=1,
 * node=twice|reserved|tensor|input|name. */
static epctx_status toy_open(const ep_options *options, epctx_backend *backend,
                             epctx_error *error) {
    const char *architecture = ep_option_get(options, "architecture");
    const char *fail = ep_option_get(options, "fail_run");
    const char *show = ep_option_get(options, "show_addresses");
    const char *layout = ep_option_get(options, "layout");
    const char *node = ep_option_get(options, "node");
    toy *self;
    if (!architecture) architecture = "abacus";
    if (strcmp(architecture, "abacus") != 0 && strcmp(architecture, "slide-rule") != 0) {
        return epctx_fail(error, EPCTX_ERR_ARG,
                          "option architecture: expected abacus or slide-rule, found '%s'",
                          architecture);
    }
    self = (toy *)calloc(1, sizeof *self);
    if (!self) return epctx_fail(error, EPCTX_ERR_NOMEM, "no memory");
    memcpy(self->architecture, architecture, strlen(architecture) + 1);
    self->channels_last = layout && strcmp(layout, "nhwc") == 0;
    self->fail_run = fail && strcmp(fail, "1") == 0;
    fail = ep_option_get(options, "fail_load");
    self->fail_load = fail && strcmp(fail, "1") == 0;
    self->show_addresses = show && strcmp(show, "1") == 0;
    self->apart = ep_option_get(options, "apart") != NULL;
    self->take_if = ep_option_get(options, "take_if") != NULL;
    if (node) memcpy(self->node, node, strlen(node) + 1 < 16 ? strlen(node) + 1 : 15);
    memset(backend, 0, sizeof *backend);
    backend->version = EPCTX_BACKEND_VERSION;
    backend->self = self;
    backend->source = "ToyExecutionProvider";
    backend->short_name = "toy";
    backend->sdk_version = "1.2.0";
    backend->hardware_architecture = self->architecture;
    backend->capability_fn = toy_capability;
    backend->begin_fn = toy_begin;
    backend->compile_fn = toy_compile;
    backend->finish_fn = toy_finish;
    backend->discard_fn = toy_discard;
    backend->load_fn = toy_load;
    backend->unload_fn = toy_unload;
    backend->find_fn = toy_find;
    backend->info_fn = toy_info;
    backend->run_fn = toy_run;
    backend->explain_fn = toy_explain;
    backend->check_fn = toy_check;
    backend->node_fn = toy_node;
    backend->units_fn = ep_option_get(options, "units") ? toy_units : NULL;
    backend->most_nodes = ep_option_get(options, "most_nodes") ? 1 : 0;
    backend->weight_inputs = ep_option_get(options, "weight_inputs") != NULL;
    return EPCTX_OK;
}

static const char *const option_keys[] = {
    "architecture", "fail_run", "fail_load",     "show_addresses", "layout",     "take_if",
    "apart",        "node",     "weight_inputs", "units",          "most_nodes", NULL};

static bool toy_present(void) {
    return !getenv("TOY_ABSENT");
}

static const char *const metadata[] = {"hardware_architecture", "abacus", "ep_sdk_version", "1.2.0",
                                       NULL};

static const ep_device device = {
    "ToyExecutionProvider",
    "epctx tests",
    0x7079,
    "1.2.0",
    toy_open,
    toy_close,
    dynamic_keys,
    toy_dynamic,
    toy_channels_last,
    toy_convert,
    option_keys,
    toy_present,
    metadata,
    NULL, /* one thread will do */
};

const ep_device *ep_device_get(void) {
    return &device;
}
