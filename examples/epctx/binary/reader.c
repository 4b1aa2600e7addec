/* What the readers share: bytes of the file, and lists of what is told. */
#include "reader.h"

#include <stdarg.h>

/* -- bytes -- */

bool binary_part(epctx_span whole, uint64_t at, uint64_t size, epctx_span *out) {
    if (at > whole.size || size > whole.size - at) return false;
    out->data = whole.size > 0 ? whole.data + at : NULL;
    out->size = (size_t)size;
    return true;
}

uint32_t binary_u32(epctx_span whole, uint64_t at) {
    epctx_span p;
    if (!binary_part(whole, at, 4, &p)) return 0;
    return (uint32_t)p.data[0] | (uint32_t)p.data[1] << 8 | (uint32_t)p.data[2] << 16 |
           (uint32_t)p.data[3] << 24;
}

uint64_t binary_u64(epctx_span whole, uint64_t at) {
    epctx_span p;
    if (!binary_part(whole, at, 8, &p)) return 0;
    return binary_u32(p, 0) | (uint64_t)binary_u32(p, 4) << 32;
}

size_t binary_find(epctx_span whole, size_t from, const char *word) {
    const size_t size = strlen(word);
    while (from <= whole.size && whole.size - from >= size) {
        const uint8_t *at =
            (const uint8_t *)memchr(whole.data + from, word[0], whole.size - from - size + 1);
        if (at == NULL) return SIZE_MAX;
        from = (size_t)(at - whole.data);
        if (memcmp(at, word, size) == 0) return from;
        from++;
    }
    return SIZE_MAX;
}

/* -- results -- */

void binary_damage(binary_reading *r, const char *format, ...) {
    char buffer[512];
    epctx_text text = epctx_text_of(buffer, sizeof buffer);
    va_list args;
    if (r->facts->damage != NULL || r->stopped) return;
    va_start(args, format);
    epctx_text_put_args(&text, format, args);
    va_end(args);
    r->facts->damage = epctx_arena_copy(r->arena, epctx_text_str(&text));
    r->no_memory = r->no_memory || r->facts->damage == NULL;
}

epctx_str binary_copy(binary_reading *r, epctx_str text) {
    epctx_str copy = epctx_str_of(NULL);
    const char *data = epctx_arena_copy(r->arena, text);
    r->no_memory = r->no_memory || data == NULL;
    if (data != NULL) copy.data = data, copy.size = text.size;
    return copy;
}

static void *add(binary_reading *r, epctx_list *list, size_t size) {
    void *item = r->no_memory ? NULL : epctx_list_add(list, r->arena, size);
    r->no_memory = r->no_memory || item == NULL;
    return item;
}

binary_value *binary_add_value(binary_reading *r, epctx_list *list) {
    if (r->values >= BINARY_MOST_VALUES) {
        r->too_many = r->stopped = true;
        return NULL;
    }
    r->values++;
    return (binary_value *)add(r, list, sizeof(binary_value));
}

bool binary_set_rank(binary_reading *r, binary_value *value, uint64_t rank, int64_t **dims) {
    *dims = NULL;
    if (rank > BINARY_MOST_RANK) {
        binary_damage(r, "is damaged: '%S' has %u dimensions", &value->name, rank);
        return false;
    }
    if (rank > 0) *dims = (int64_t *)epctx_arena_array(r->arena, (size_t)rank, sizeof **dims);
    if (rank > 0 && *dims == NULL) {
        r->no_memory = true;
        return false;
    }
    value->shaped = true;
    value->rank = (size_t)rank;
    value->dims = *dims;
    return true;
}

void binary_add_graph(binary_reading *r, const binary_builder *graph, bool values_known) {
    binary_graph *to;
    if (r->graphs.count >= BINARY_MOST_GRAPHS) {
        r->too_many = true;
        return;
    }
    to = (binary_graph *)add(r, &r->graphs, sizeof *to);
    if (to == NULL) return;
    to->name = graph->name;
    to->values_known = values_known;
    if (!values_known) return;
    to->inputs = (binary_value *)graph->inputs.items;
    to->input_count = graph->inputs.count;
    to->outputs = (binary_value *)graph->outputs.items;
    to->output_count = graph->outputs.count;
}

void binary_add_need(binary_reading *r, const binary_need *need) {
    binary_need *to;
    if (r->needs.count >= BINARY_MOST_NEEDS) {
        binary_damage(r, "is damaged: it refers to more than %u parts of other files",
                      (uint64_t)BINARY_MOST_NEEDS);
        return;
    }
    to = (binary_need *)add(r, &r->needs, sizeof *to);
    if (to != NULL) *to = *need;
}

void binary_add_chip(binary_reading *r, epctx_str name) {
    const epctx_str *known = (const epctx_str *)r->chips.items;
    char *copy;
    epctx_str *to;
    size_t i;
    if (name.size == 0 || name.size > BINARY_MOST_NAME || r->chips.count >= BINARY_MOST_GRAPHS)
        return;
    for (i = 0; i < r->chips.count; i++)
        if (epctx_str_eq_nocase(known[i], name)) return;
    to = (epctx_str *)add(r, &r->chips, sizeof *to);
    if (to == NULL) return;
    copy = epctx_arena_copy(r->arena, name);
    r->no_memory = r->no_memory || copy == NULL;
    if (copy == NULL) return;
    for (i = 0; i < name.size; i++)
        if (copy[i] >= 'a' && copy[i] <= 'z') copy[i] = (char)(copy[i] - 'a' + 'A');
    to->data = copy;
    to->size = name.size;
}
