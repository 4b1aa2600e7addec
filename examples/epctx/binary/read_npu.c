/* Binaries of the reference NPU: format 3, as the manual of epctx_npu.h describes it. */
#include "reader.h"

enum {
    HEADER = 128,
    FORMAT = 3,
    GRAPH_BYTES = 80, /* records of words */
    VALUE_BYTES = 48,
    MOST_RANK = 8
};

typedef struct tables {
    epctx_span words, strings;
} tables;

static epctx_str padded(epctx_span file, uint64_t at, size_t size) {
    epctx_span part;
    epctx_str text = {NULL, 0};
    if (!binary_part(file, at, size, &part)) return text;
    text.data = (const char *)part.data;
    while (text.size < size && text.data[text.size] != '\0') text.size++;
    return text;
}

static bool name_at(binary_reading *r, const tables *t, uint64_t at, epctx_str *name) {
    epctx_span part;
    const uint64_t offset = binary_u32(t->words, at), size = binary_u32(t->words, at + 4);
    if (!binary_part(t->strings, offset, size, &part)) {
        binary_damage(r, "is damaged: a name lies outside of its strings");
        return false;
    }
    name->data = (const char *)part.data;
    name->size = part.size;
    return true;
}

static bool read_value(binary_reading *r, const tables *t, uint64_t at, epctx_list *list) {
    binary_value *value = binary_add_value(r, list);
    const uint64_t rank = binary_u32(t->words, at + 12);
    int64_t *dims;
    uint64_t i;
    if (value == NULL || !name_at(r, t, at, &value->name)) return false;
    value->elem_type = (int32_t)(binary_u32(t->words, at + 8) & INT32_MAX);
    value->type = epctx_str_of(epctx_elem_name(value->elem_type));
    if (rank > MOST_RANK) {
        binary_damage(r, "is damaged: '%S' has %u dimensions", &value->name, rank);
        return false;
    }
    if (!binary_set_rank(r, value, rank, &dims)) return false;
    for (i = 0; i < rank; i++) dims[i] = binary_u32(t->words, at + 16 + 4 * i);
    return true;
}

static bool read_graph(binary_reading *r, const tables *t, uint64_t at) {
    binary_builder graph;
    epctx_span part;
    const uint64_t values = (uint64_t)binary_u32(t->words, at + 24) * 4;
    const uint64_t inputs = binary_u32(t->words, at + 28), outputs = binary_u32(t->words, at + 32);
    uint64_t i;
    memset(&graph, 0, sizeof graph);
    if (!name_at(r, t, at, &graph.name)) return false;
    if (!binary_part(t->words, values, (inputs + outputs) * VALUE_BYTES, &part)) {
        binary_damage(r, "is damaged: the inputs and outputs of '%S' lie outside", &graph.name);
        return false;
    }
    for (i = 0; i < inputs + outputs; i++)
        if (!read_value(r, t, values + i * VALUE_BYTES,
                        i < inputs ? &graph.inputs : &graph.outputs))
            return false;
    if (binary_u32(t->words, at + 52) == 0) /* else it only makes weights */
        binary_add_graph(r, &graph, true);
    return true;
}

/* The sum of everything but the weights. */
static bool sum_fits(epctx_span file, const tables *t) {
    uint8_t header[HEADER];
    uint64_t sum;
    memcpy(header, file.data, HEADER);
    memset(header + 112, 0, 8);
    sum = epctx_hash(header, HEADER, 0);
    sum = epctx_hash(file.data + HEADER, (size_t)(t->strings.data - file.data) - HEADER, sum);
    return epctx_hash(t->strings.data, t->strings.size, sum) == binary_u64(file, 112);
}

void binary_read_npu(binary_reading *r) {
    const epctx_span file = r->file;
    const uint64_t words = binary_u64(file, 64), strings = binary_u64(file, 72);
    const uint64_t graphs = binary_u32(file, 104);
    tables t;
    epctx_span part;
    uint64_t i;
    char version[24];
    epctx_text text = epctx_text_of(version, sizeof version);
    if (file.size < HEADER) {
        binary_damage(r, "is cut off: its header has %u bytes, it has %u", (uint64_t)HEADER,
                      (uint64_t)file.size);
        return;
    }
    epctx_text_put_number(&text, binary_u32(file, 8));
    r->facts->format_version = binary_copy(r, epctx_text_str(&text));
    r->facts->sdk = padded(file, 16, 16);
    r->facts->architecture = padded(file, 32, 24);
    if (binary_u32(file, 8) != FORMAT || r->facts->damage != NULL) return;
    if (strings < HEADER || words > (strings - HEADER) / 4 ||
        !binary_part(file, strings, binary_u64(file, 80), &t.strings) ||
        !binary_part(file, HEADER, words * 4, &t.words)) {
        binary_damage(r, "is damaged: its tables lie outside of the file");
        return;
    }
    if (!sum_fits(file, &t)) {
        binary_damage(r, "is damaged: its checksum does not fit");
        return;
    }
    if (!binary_part(t.words, 0, graphs * GRAPH_BYTES, &part)) {
        binary_damage(r, "is damaged: its %u graphs do not fit", graphs);
        return;
    }
    for (i = 0; i < graphs && !r->no_memory; i++)
        if (!read_graph(r, &t, i * GRAPH_BYTES)) return;
    r->facts->graphs_known = true;
}
