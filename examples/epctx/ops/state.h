/* state.h - the state of a model without a session: whether it is compiled, by which EP, for
 * what. */
#ifndef EPCTX_OPS_STATE_H
#define EPCTX_OPS_STATE_H

#include "epctx.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum epctx_compiled {
    EPCTX_PLAIN = 0,       /* no EPContext node: EPs compile when the model is loaded */
    EPCTX_PARTLY_COMPILED, /* some nodes are left to the session */
    EPCTX_FULLY_COMPILED   /* nothing but EPContext nodes */
} epctx_compiled;

/* EPContext nodes that agree in source, SDK version and architecture. */
typedef struct epctx_maker {
    epctx_str source, sdk_version, architecture;
    const epctx_profile *profile;
    uint64_t nodes, primaries, embedded;
    uint64_t payload_size; /* bytes embedded in the model */
} epctx_maker;

/* One entry "ep_compatibility_info.<EP>" of the metadata. */
typedef struct epctx_compat_entry {
    epctx_str ep, value;
} epctx_compat_entry;

typedef struct epctx_state {
    epctx_compiled compiled;
    uint64_t ep_nodes;     /* of the whole model, bodies and functions included */
    uint64_t broken_nodes; /* op_type EPContext, but unreadable or of a wrong domain */
    uint64_t other_nodes;
    uint64_t weightless_inputs; /* initializers that EPContext nodes take as inputs */
    const epctx_maker *makers;
    size_t maker_count;
    const epctx_compat_entry *compat;
    size_t compat_count;
} epctx_state;

/* What a file is used for: "context binary" ... */
const char *epctx_file_use_name(epctx_file_use use);

/* Lists live in `arena`. Fails with NOMEM only. */
epctx_status epctx_model_state(const epctx_model *model, epctx_arena *arena, epctx_state *out,
                               epctx_error *error);

#ifdef __cplusplus
}
#endif

#endif
