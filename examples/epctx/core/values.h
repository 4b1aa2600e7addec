/* Values as bytes: one form for every way to store a tensor, and checksums over it. */
#ifndef EPCTX_CLI_VALUES_H
#define EPCTX_CLI_VALUES_H

#include "cli.h"
#include "ops/views.h"

/* A checksum of a stream of bytes. The first VALUES_KEPT of them stay in `block` to the end. */
typedef struct value_sum {
    uint64_t size;
    bool by_hash;
    uint32_t crc;  /* CRC-32 as in zip, gzip and PNG: other programs have it */
    uint64_t hash; /* of the last block, seeded with the hash of the blocks before: faster, wider */
    uint8_t block[4096];
    size_t used; /* of `block` */
} value_sum;

enum { VALUES_KEPT = 64 };

/* Either `hash` or `crc` is made. */
void value_begin(value_sum *sum, bool by_hash);
void value_add(value_sum *sum, const void *data, size_t size);
/* The low `size` bytes of a number, little-endian. */
void value_add_number(value_sum *sum, uint64_t bits, size_t size);
/* A string with its length in 8 bytes before it. */
void value_add_text(value_sum *sum, epctx_str text);
/* Takes in the rest; after that nothing can be added. */
void value_end(value_sum *sum);

/* The elements of a tensor that is inside the model: packed, little-endian, two 4-bit or four
 * 2-bit elements to a byte with the first in the low bits, strings with their lengths. raw_data
 * and the typed fields of the same tensor give the same bytes. Without a known element type: what
 * raw_data has. */
void value_add_tensor(value_sum *sum, const epctx_tensor_view *tensor);

/* "float32[1,N,?]", "sequence(int64[])", "no type"; names from the model escaped as by cli_put. */
void value_put_type(FILE *out, const epctx_type_view *type);

#endif
