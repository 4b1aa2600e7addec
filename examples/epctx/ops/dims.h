/* dims.h - fixes dynamic dimensions of a model. */
#ifndef EPCTX_OPS_DIMS_H
#define EPCTX_OPS_DIMS_H

#include "ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sets all dimensions with the name `param` (dim_param) to `value`, 1 or more: in inputs, outputs
 * and value_info of the main graph and its subgraphs, because a name stands for the same number
 * everywhere (onnx.proto). Corresponds to ORT's free dimension override by name. `count` (may be
 * NULL) gets the number of dimensions. EPCTX_ERR_NOT_FOUND if there are none. */
epctx_status epctx_fix_dim(epctx_model *model, epctx_str param, int64_t value, size_t *count,
                           epctx_error *error);
/* The same for one dimension of a graph input, counted from 0; if it has a name, for all dimensions
 * with that name. EPCTX_ERR_NOT_FOUND: no such input or dimension. EPCTX_ERR_GRAPH: it already has
 * another value. */
epctx_status epctx_fix_input_dim(epctx_model *model, epctx_str input, uint32_t axis, int64_t value,
                                 size_t *count, epctx_error *error);

#ifdef __cplusplus
}
#endif

#endif
