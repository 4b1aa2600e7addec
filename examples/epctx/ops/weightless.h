/* weightless.h - weights of EPContext nodes in the source model, or in the model itself. */
#ifndef EPCTX_OPS_WEIGHTLESS_H
#define EPCTX_OPS_WEIGHTLESS_H

#include "ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A weightless model has EPContext nodes that take their weights as inputs (ORT's
 * ep.enable_weightless). Its initializers are copies of those of the source model: this one makes
 * each of them a reference into the source model (or into its data file), and stores
 * onnx_model_filename where it is missing. `source` says which model that is; default what the
 * nodes name. EPCTX_ERR_VERSION where the source has another tensor of that name or none.
 * EPCTX_ERR_UNSUPPORTED when no EPContext node takes weights: they are in its binary, out of reach
 * for everyone but the EP, or were left out by it already. EPCTX_ERR_NO_NODES without the node. */
epctx_status epctx_weightless(epctx_model *model, const epctx_convert_opts *opts,
                              epctx_changes *changes, epctx_error *error);
/* The way back: the weights that EPContext nodes take come into the model, and a node that took
 * weights forgets onnx_model_filename. EPCTX_ERR_UNSUPPORTED for binaries without weights. */
epctx_status epctx_self_contained(epctx_model *model, const epctx_convert_opts *opts,
                                  epctx_changes *changes, epctx_error *error);

#ifdef __cplusplus
}
#endif

#endif
