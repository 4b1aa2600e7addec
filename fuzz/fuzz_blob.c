/*
 * Context binaries of any content: load, and run every graph of what is
 * accepted.
 *
 *     clang -g -O1 -fsanitize=fuzzer,address,undefined -I. fuzz/fuzz_blob.c libepctx.a
 *
 * The checksum of the directory is corrected first, else nothing but the
 * checksum would ever be tested.
 */
#define _XOPEN_SOURCE 700 /* posix_memalign */
#include "epctx_npu.h"

#include <stdlib.h>
#include <string.h>

#define MOST_BYTES (1u << 20) /* of scratch, inputs and outputs: a run must end soon */
#define META_SUM   112

static uint64_t u64(const uint8_t *p)
{
    uint64_t v = 0;
    int i;
    for (i = 8; i > 0; i--)
        v = v << 8 | p[i - 1];
    return v;
}

static void correct_sum(uint8_t *blob, size_t size)
{
    const size_t head = EPCTX_NPU_HEADER_SIZE;
    uint64_t strings = u64(blob + 72), bytes = u64(blob + 80), sum;
    int i;
    if (strings < head || strings > size || bytes > size - strings) return;
    memset(blob + META_SUM, 0, 8);
    sum = epctx_hash(blob, head, 0);
    sum = epctx_hash(blob + head, (size_t)strings - head, sum);
    sum = epctx_hash(blob + strings, (size_t)bytes, sum);
    for (i = 0; i < 8; i++)
        blob[META_SUM + i] = (uint8_t)(sum >> (8 * i));
}

static size_t bytes_of(const epctx_value *v)
{
    size_t n = epctx_elem_size(v->elem_type);
    int32_t i;
    for (i = 0; i < v->rank; i++)
        n *= (size_t)v->dims[i];
    return n;
}

static void run(const epctx_npu_graph *graph)
{
    const epctx_graph_info *info = &graph->info;
    const size_t count = info->input_count + info->output_count;
    epctx_span *inputs = calloc(count + 1, sizeof *inputs);
    epctx_memory *outputs = calloc(count + 1, sizeof *outputs);
    void **blocks = calloc(count + 1, sizeof *blocks), *scratch = NULL;
    size_t total = info->scratch_size, i;
    uint32_t position = 0;
    epctx_npu_command command;
    epctx_error error;
    for (i = 0; i < count && total <= MOST_BYTES; i++) {
        const epctx_value *v =
            i < info->input_count ? &info->inputs[i] : &info->outputs[i - info->input_count];
        total += bytes_of(v);
        if (total > MOST_BYTES) break;
        blocks[i] = calloc(1, bytes_of(v));
        if (i < info->input_count) {
            inputs[i].data = blocks[i];
            inputs[i].size = bytes_of(v);
        } else {
            outputs[i - info->input_count].data = blocks[i];
            outputs[i - info->input_count].size = bytes_of(v);
        }
    }
    /* exactly the size: a byte more touched is found */
    if (total <= MOST_BYTES &&
        (info->scratch_size == 0 || posix_memalign(&scratch, 64, info->scratch_size) == 0)) {
        if (scratch) memset(scratch, 0, info->scratch_size);
        (void)epctx_npu_run(graph, inputs, outputs, scratch, info->scratch_size, &error);
        while (epctx_npu_next_command(graph, &position, &command)) {
        }
    }
    for (i = 0; i < count; i++)
        free(blocks[i]);
    free(blocks);
    free(scratch);
    free(inputs);
    free(outputs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *blob = malloc(size + 1), *memory = NULL;
    epctx_npu_context context;
    epctx_error error;
    epctx_span span;
    size_t need, i;
    if (size > 0) memcpy(blob, data, size);
    if (size >= EPCTX_NPU_HEADER_SIZE) correct_sum(blob, size);
    span.data = blob;
    span.size = size;
    if (epctx_npu_load_size(span, &need, &error) == EPCTX_OK) {
        memory = malloc(need + 1);
        if (epctx_npu_load(&context, span, memory, need, &error) == EPCTX_OK) {
            (void)epctx_npu_check_weights(&context, &error);
            for (i = 0; i < context.graph_count; i++)
                run(&context.graphs[i]);
        }
    }
    free(memory);
    free(blob);
    return 0;
}
