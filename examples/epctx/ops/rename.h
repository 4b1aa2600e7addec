/* rename.h - values get other names, everywhere. */
#ifndef EPCTX_OPS_RENAME_H
#define EPCTX_OPS_RENAME_H

#include "ops.h"

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

#endif
