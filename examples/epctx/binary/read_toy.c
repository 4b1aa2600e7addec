/* Binaries of the toy device that the plugin scaffolding is tested with (tests/ort/device_toy.c),
 * version 1: "TOY1", u32 version, u32 graphs, u64 sum of the rest, the graphs. */
#include "reader.h"

enum { HEADER = 20, VERSION = 1, MOST_RANK = 8, CONSTANT = 1 };

/* Past the end everything is 0 and `bad`. */
typedef struct in_stream {
    epctx_span rest;
    bool bad;
} in_stream;

static epctx_span get(in_stream *in, uint64_t size) {
    epctx_span part = {NULL, 0};
    if (in->bad || !binary_part(in->rest, 0, size, &part)) {
        in->bad = true;
        return part;
    }
    if (size > 0) {
        in->rest.data += size;
        in->rest.size -= (size_t)size;
    }
    return part;
}

static uint32_t get32(in_stream *in) {
    return binary_u32(get(in, 4), 0);
}

static uint64_t get64(in_stream *in) {
    return binary_u64(get(in, 8), 0);
}

static epctx_str get_str(in_stream *in) {
    const epctx_span part = get(in, get32(in));
    epctx_str text = {(const char *)part.data, part.size};
    return text;
}

static void get_slot(binary_reading *r, in_stream *in, binary_value *value) {
    const uint32_t kind = get32(in);
    const uint64_t elements = get64(in);
    int64_t *dims = NULL;
    uint32_t rank, i;
    value->name = get_str(in);
    value->elem_type = EPCTX_ONNX_FLOAT;
    value->type = epctx_str_of("float");
    rank = get32(in);
    if (rank > MOST_RANK) in->bad = true;
    if (in->bad || !binary_set_rank(r, value, rank, &dims)) return;
    for (i = 0; i < rank; i++) dims[i] = (int64_t)get64(in);
    if (kind != CONSTANT) return;
    if (elements > in->rest.size / 4) in->bad = true;
    get(in, in->bad ? 0 : elements * 4);
}

/* Steps are of no interest, and outputs come behind the slots that they name. */
static bool get_graph(binary_reading *r, in_stream *in) {
    binary_builder graph;
    epctx_list slots;
    uint32_t slot_count, inputs, outputs, steps, i;
    memset(&graph, 0, sizeof graph);
    memset(&slots, 0, sizeof slots);
    graph.name = get_str(in);
    get64(in);
    slot_count = get32(in);
    inputs = get32(in);
    outputs = get32(in);
    steps = get32(in);
    if (inputs > slot_count) in->bad = true;
    for (i = 0; i < slot_count && !in->bad; i++) {
        binary_value *value = binary_add_value(r, &slots);
        if (value == NULL) return false;
        get_slot(r, in, value);
    }
    for (i = 0; i < inputs && !in->bad; i++) {
        binary_value *value = binary_add_value(r, &graph.inputs);
        if (value == NULL) return false;
        *value = ((const binary_value *)slots.items)[i];
    }
    for (i = 0; i < outputs && !in->bad; i++) {
        const uint32_t slot = get32(in);
        binary_value *value = binary_add_value(r, &graph.outputs);
        if (value == NULL) return false;
        if (slot >= slot_count)
            in->bad = true;
        else
            *value = ((const binary_value *)slots.items)[slot];
    }
    get(in, (uint64_t)steps * 16);
    if (!in->bad) binary_add_graph(r, &graph, true);
    return !in->bad && !r->no_memory;
}

void binary_read_toy(binary_reading *r) {
    in_stream in;
    uint32_t graphs, i;
    uint64_t sum;
    char version[24];
    epctx_text text = epctx_text_of(version, sizeof version);
    in.rest = r->file;
    in.bad = false;
    get(&in, 4);
    epctx_text_put_number(&text, get32(&in));
    graphs = get32(&in);
    sum = get64(&in);
    if (in.bad) {
        binary_damage(r, "is cut off: its header has %u bytes, it has %u", (uint64_t)HEADER,
                      (uint64_t)r->file.size);
        return;
    }
    r->facts->format_version = binary_copy(r, epctx_text_str(&text));
    if (!epctx_str_is(r->facts->format_version, "1")) return;
    if (sum != epctx_hash(in.rest.data, in.rest.size, 0)) {
        binary_damage(r, "is damaged: its checksum does not fit");
        return;
    }
    for (i = 0; i < graphs && !r->no_memory; i++) {
        if (get_graph(r, &in)) continue;
        binary_damage(r, "is damaged: graph %u of %u lies outside of the file", (uint64_t)i,
                      (uint64_t)graphs);
        return;
    }
    r->facts->graphs_known = true;
}
