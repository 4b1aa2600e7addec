/* weightless.h - reads weights of EPContext nodes from the source model, or stores them. */
#ifndef EPCTX_OPS_WEIGHTLESS_H
#define EPCTX_OPS_WEIGHTLESS_H

#include "ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A weightless model has EPContext nodes that take their weights as inputs (ORT's
 * ep.enable_weightless). Its initializers are copies of those of the source model. Replaces each of
 * them with a reference into the source model (or into its data file), and stores
 * onnx_model_filename if it is missing. `source` is the source model; default: the one that the
 * nodes name. EPCTX_ERR_VERSION: the source has a different tensor of that name, or none.
 * EPCTX_ERR_UNSUPPORTED: no EPContext node takes weights; they are in its binary, which only the EP
 * can change, or the EP has left them out. EPCTX_ERR_NO_NODES: the node does not exist. */
epctx_status epctx_weightless(epctx_model *model, const ops_convert_opts *opts,
                              ops_changes *changes, epctx_error *error);
/* The reverse: stores the weights that EPContext nodes take in the model, and removes
 * onnx_model_filename from these nodes. EPCTX_ERR_UNSUPPORTED for binaries without weights. */
epctx_status epctx_self_contained(epctx_model *model, const ops_convert_opts *opts,
                                  ops_changes *changes, epctx_error *error);

#ifdef __cplusplus
}
#endif

#endif
