/* bson.h - the documents of OpenVINO's containers, which begin with a header of their own. */
#ifndef EPCTX_BINARY_BSON_H
#define EPCTX_BINARY_BSON_H

#include "epctx.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of a container: magic, then version, size of this header, offset and size of the directory. */
enum { BINARY_CONTAINER_HEADER = 40 };

enum {
    BINARY_BSON_TEXT = 2,
    BINARY_BSON_DOCUMENT = 3,
    BINARY_BSON_INT32 = 16,
    BINARY_BSON_UINT64 = 17,
    BINARY_BSON_INT64 = 18
};

/* A field, borrowed from its document. */
typedef struct binary_bson {
    uint8_t type;
    epctx_str name;
    epctx_span whole;    /* as it stands there */
    epctx_span document; /* the fields of it */
    epctx_str text;
    uint64_t number; /* negative: UINT64_MAX */
} binary_bson;

/* Takes the fields out of a document. */
bool binary_bson_open(epctx_span whole, epctx_span *fields);
/* Takes the first field off; false: it is damaged, or of an unknown type. */
bool binary_bson_next(epctx_span *rest, binary_bson *out);

/* Writes into a text with room: a document, which begins at the place that is returned and is ended
 * with it (without a name: the outermost), a number, a field or its value as it stood elsewhere. */
size_t binary_bson_begin(epctx_text *out, epctx_str name);
void binary_bson_end(epctx_text *out, size_t begin);
void binary_bson_put_number(epctx_text *out, epctx_str name, uint64_t number);
void binary_bson_put_whole(epctx_text *out, const binary_bson *field);
/* Writes a number of 4 or 8 bytes at its place, little-endian. */
void binary_bson_set(char *at, uint64_t number, size_t size);

#ifdef __cplusplus
}
#endif

#endif
