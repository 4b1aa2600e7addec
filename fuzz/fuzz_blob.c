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
#include "../tests/npu_blob.h"
#include "fuzz.h"
#include "npu_run.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint8_t *blob = malloc(size + 1);
    epctx_error error;
    epctx_span span;
    if (size > 0) memcpy(blob, data, size);
    correct_sum(blob, size);
    span.data = blob;
    span.size = size;
    (void)load_and_run(span, &error);
    free(blob);
    return 0;
}
