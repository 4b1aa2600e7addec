/* join.h - makes one context binary of several, for EPs that read one for a model. */
#ifndef EPCTX_BINARY_JOIN_H
#define EPCTX_BINARY_JOIN_H

#include "binary.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct binary_source {
    epctx_span bytes;
    epctx_str name;   /* for messages */
    epctx_str prefix; /* for graphs whose name an earlier one has; not empty */
} binary_source;

/* A graph that has another name in the result. */
typedef struct binary_renamed {
    size_t source; /* number of the binary, from 0 */
    epctx_str from, to;
} binary_renamed;

/* The result: its bytes are borrowed from the sources and the arena. */
typedef struct binary_joined {
    const epctx_span *parts;
    size_t part_count;
    uint64_t size;
    const binary_renamed *renamed;
    size_t renamed_count;
} binary_joined;

/* Joins containers of OpenVINO of one version, with all their graphs. Graphs that are equal stand
 * once; another one of the same name gets its binary's prefix. Errors, which name the binary:
 * UNSUPPORTED for another format or version; CONTEXT for damage; EXISTS for weights of one name
 * that are not the same, because the graphs find them by it; LIMIT; NOMEM. */
epctx_status binary_join(const binary_source *sources, size_t count, epctx_arena *arena,
                         binary_joined *out, epctx_error *error);

#ifdef __cplusplus
}
#endif

#endif
