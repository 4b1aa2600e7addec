/* One graph of the reference NPU as JSON. */
#include "npu_graph.h"

static void put_range(json_writer *w, const char *key, const epctx_npu_range *range) {
    json_array(w, key, JSON_INLINE);
    json_uint(w, NULL, range->offset);
    json_uint(w, NULL, range->offset + range->bytes);
    json_end(w);
}

/* Where a command reads and writes scratch: [from, to) each. */
static void put_memory(json_writer *w, const epctx_npu_command *c) {
    size_t i;
    json_array(w, "reads", JSON_INLINE);
    for (i = 0; i < EPCTX_NPU_MAX_READS; i++)
        if (c->reads[i].bytes > 0) put_range(w, NULL, &c->reads[i]);
    json_end(w);
    if (c->result.bytes == 0)
        json_null(w, "writes");
    else
        put_range(w, "writes", &c->result);
}

void npu_graph_put(json_writer *w, const char *key, const epctx_npu_graph *graph,
                   const double *times) {
    uint32_t position = 0;
    epctx_npu_command c;
    json_object(w, key, JSON_INLINE);
    json_str(w, "name", graph->info.name);
    json_uint(w, "work", graph->work);
    json_uint(w, "scratch", graph->info.scratch_size);
    json_array(w, "commands", JSON_HANGING);
    while (epctx_npu_next_command(graph, &position, &c)) {
        json_object(w, NULL, JSON_INLINE);
        json_text(w, "op", c.op);
        json_str(w, "node", c.name);
        json_uint(w, "elements", c.elements);
        json_uint(w, "products", c.products);
        json_uint(w, "bytes", c.bytes);
        json_uint(w, "workspace", c.temporary);
        put_memory(w, &c);
        if (times != NULL) json_fixed(w, "us", *times++ / 1000, 3);
        json_end(w);
    }
    json_end(w);
    json_end(w);
}
