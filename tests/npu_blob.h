/* The checksum of a context binary, so that damage gets past it. */
#ifndef EPCTX_TEST_NPU_BLOB_H
#define EPCTX_TEST_NPU_BLOB_H

#include "epctx_npu.h"

#include <string.h>

#define META_SUM 112 /* offset of the directory's checksum */

static inline uint64_t u64(const uint8_t *p) {
    uint64_t v = 0;
    int i;
    for (i = 8; i > 0; i--) v = v << 8 | p[i - 1];
    return v;
}

static inline void correct_sum(uint8_t *blob, size_t size) {
    const size_t head = EPCTX_NPU_HEADER_SIZE;
    uint64_t strings, text, sum;
    int i;
    if (size < head) return;
    strings = u64(blob + 72);
    text = u64(blob + 80);
    if (strings < head || strings > size || text > size - strings) return;
    memset(blob + META_SUM, 0, 8);
    sum = epctx_hash(blob, head, 0);
    sum = epctx_hash(blob + head, (size_t)strings - head, sum);
    sum = epctx_hash(blob + strings, (size_t)text, sum);
    for (i = 0; i < 8; i++) blob[META_SUM + i] = (uint8_t)(sum >> (8 * i));
}

#endif
