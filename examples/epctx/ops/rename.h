/* rename.h - values and nodes get other names, everywhere. */
#ifndef EPCTX_OPS_RENAME_H
#define EPCTX_OPS_RENAME_H

#include "ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* NULL stands for all defaults. */
typedef struct epctx_name_opts {
    const epctx_profile *profile; /* default: of each node's source */
    bool one_graph;               /* every binary holds the graph of one node: the caller knows */
    bool any_io; /* values at EPContext nodes may change in spite of EPCTX_IO_NAMES */
} epctx_name_opts;

/* Renames values of a graph (an empty view: the main graph) or function, from[i] to to[i], wherever
 * the name occurs: nodes, graph inputs and outputs, initializers, value_info, quantization
 * annotations, sharding, training, and subgraphs that do not define the name themselves. Takes one
 * walk for any number of names; names may be swapped; names that do not occur are passed over.
 * `uses` (may be NULL) gets how many places changed. EPCTX_ERR_EXISTS when a new name is in use,
 * EPCTX_ERR_UNSUPPORTED for an input or output of an EPContext node that its EP finds in the binary
 * by name (EPCTX_IO_NAMES). */
epctx_status epctx_rename_values(epctx_model *model, epctx_view scope, const epctx_str *from,
                                 const epctx_str *to, size_t count, const epctx_name_opts *opts,
                                 size_t *uses, epctx_error *error);

/* Renames a node. The name of an EPContext node may be the key into its binary (epctx_profile.key):
 * EPCTX_ERR_UNSUPPORTED, unless the binary holds the graph of this node alone, which
 * epctx_model_holds_one_graph or opts->one_graph tells. EPCTX_ERR_EXISTS when another node has the
 * name. */
epctx_status epctx_node_rename(epctx_model *model, epctx_view node, epctx_str name,
                               const epctx_name_opts *opts, epctx_error *error);

#ifdef __cplusplus
}
#endif

#endif
