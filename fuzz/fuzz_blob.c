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
#include "npu_run.h"

#define META_SUM 112

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *blob = malloc(size + 1);
    epctx_error error;
    epctx_span span;
    if (size > 0) memcpy(blob, data, size);
    if (size >= EPCTX_NPU_HEADER_SIZE) correct_sum(blob, size);
    span.data = blob;
    span.size = size;
    (void)load_and_run(span, &error);
    free(blob);
    return 0;
}
