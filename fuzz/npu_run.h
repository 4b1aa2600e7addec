/* Loads context binaries of the reference NPU and runs every graph in memory of exactly its size,
 * so that a byte touched too many is found, and twice, so that one read before it is written is.
 * For fuzz_blob.c and fuzz_compile.c. */
#ifndef EPCTX_FUZZ_NPU_RUN_H
#define EPCTX_FUZZ_NPU_RUN_H

#include "epctx_npu.h"

#include <stdlib.h>
#include <string.h>

#define MOST_BYTES (1u << 20) /* of scratch, inputs and outputs: a run must end soon */

static size_t bytes_of(const epctx_value *v) {
    size_t n = epctx_elem_size(v->elem_type);
    int32_t i;
    for (i = 0; i < v->rank; i++) n *= (size_t)v->dims[i];
    return n;
}

/* Runs a graph in memory that holds `fill`; the hash of its outputs, 0: an error. */
static uint64_t run_in(const epctx_npu_graph *graph, const epctx_span *inputs,
                       const epctx_memory *outputs, void *scratch, int fill) {
    const epctx_graph_info *info = &graph->info;
    uint64_t hash = 1;
    epctx_error error;
    size_t i;
    if (scratch) memset(scratch, fill, info->scratch_size);
    for (i = 0; i < info->output_count; i++) memset(outputs[i].data, fill, outputs[i].size);
    if (epctx_npu_run(graph, inputs, outputs, scratch, info->scratch_size, &error) != EPCTX_OK)
        return 0;
    for (i = 0; i < info->output_count; i++)
        hash = epctx_hash(outputs[i].data, outputs[i].size, hash);
    return hash;
}

static void run_graph(const epctx_npu_graph *graph) {
    const epctx_graph_info *info = &graph->info;
    const size_t count = info->input_count + info->output_count;
    epctx_span *inputs = calloc(count + 1, sizeof *inputs);
    epctx_memory *outputs = calloc(count + 1, sizeof *outputs);
    void **blocks = calloc(count + 1, sizeof *blocks), *scratch = NULL;
    size_t total = info->scratch_size, i;
    uint32_t position = 0;
    epctx_npu_command command;
    for (i = 0; i < count && total <= MOST_BYTES; i++) {
        const epctx_value *v =
            i < info->input_count ? &info->inputs[i] : &info->outputs[i - info->input_count];
        const size_t elem = epctx_elem_size(v->elem_type); /* the least alignment, no more */
        total += bytes_of(v);
        if (total > MOST_BYTES) break;
        blocks[i] = calloc(1, bytes_of(v) + elem);
        if (i < info->input_count) {
            inputs[i].data = (uint8_t *)blocks[i] + elem;
            inputs[i].size = bytes_of(v);
        } else {
            outputs[i - info->input_count].data = (uint8_t *)blocks[i] + elem;
            outputs[i - info->input_count].size = bytes_of(v);
        }
    }
    /* exactly the size: a byte more touched is found */
    if (total <= MOST_BYTES &&
        (info->scratch_size == 0 || posix_memalign(&scratch, 64, info->scratch_size) == 0)) {
        if (run_in(graph, inputs, outputs, scratch, 0) !=
            run_in(graph, inputs, outputs, scratch, 0x7f))
            abort(); /* the result depends on what the memory held before */
        while (epctx_npu_next_command(graph, &position, &command)) {
        }
    }
    for (i = 0; i < count; i++) free(blocks[i]);
    free(blocks);
    free(scratch);
    free(inputs);
    free(outputs);
}

/* Whether the blob was accepted. */
static bool load_and_run(epctx_span blob, epctx_error *error) {
    epctx_npu_context context;
    size_t need, i;
    void *memory;
    bool good;
    if (epctx_npu_load_size(blob, &need, error) != EPCTX_OK) return false;
    memory = malloc(need + 1);
    good = epctx_npu_load(&context, blob, memory, need, error) == EPCTX_OK;
    if (good) {
        (void)epctx_npu_check_weights(&context, error);
        for (i = 0; i < context.graph_count; i++) run_graph(&context.graphs[i]);
    }
    free(memory);
    return good;
}

#endif
