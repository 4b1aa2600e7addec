/* place.h - which node has an embedded context, where an EP reads one for a model
 * (EPCTX_TRAIT_ONE_CONTEXT): that which ORT hands over first. */
#ifndef EPCTX_OPS_PLACE_H
#define EPCTX_OPS_PLACE_H

#include "ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The embedded nodes of one source in the main graph. */
typedef struct place_group {
    epctx_str source, context;
    epctx_node_view first,
        holder; /* in ORT's order (epctx_view_graph_order), and with the context */
    size_t first_number, holder_number;
    bool held; /* there is a context */
} place_group;

/* All of them, as place_group in `out`, in ORT's order. Listed in `arena`. Errors: NOMEM. */
epctx_status place_find(const epctx_model *model, epctx_arena *arena, epctx_list *out,
                        epctx_error *error);
/* Whether the holder comes behind the first one whatever else ORT changes in the graph: it reads,
 * over any number of nodes, what that one writes. Errors: NOMEM. */
epctx_status place_is_late(const epctx_model *model, const place_group *group, epctx_arena *arena,
                           bool *late, epctx_error *error);
/* Hands contexts over to the first ones, after edits that change the order. */
epctx_status place_contexts(epctx_model *model, ops_report *report, epctx_error *error);

#ifdef __cplusplus
}
#endif

#endif
