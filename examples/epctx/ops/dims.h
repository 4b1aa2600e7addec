/* dims.h - dimensions that a model leaves open get numbers. */
#ifndef EPCTX_OPS_DIMS_H
#define EPCTX_OPS_DIMS_H

#include "ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Gives the dimensions that have the name `param` (dim_param) the number `value`, 1 or more: of
 * inputs, outputs and value_info, in the main graph and in bodies, as one name means one number
 * everywhere (onnx.proto). What ORT's free dimension overrides do by name. `count` (may be NULL)
 * gets how many there were. EPCTX_ERR_NOT_FOUND when there is none. */
epctx_status epctx_fix_dim(epctx_model *model, epctx_str param, int64_t value, size_t *count,
                           epctx_error *error);
/* The same for one dimension of a graph input, counted from 0; when it has a name, for all of that
 * name. EPCTX_ERR_NOT_FOUND: no such input or dimension, ERR_GRAPH: it is another number. */
epctx_status epctx_fix_input_dim(epctx_model *model, epctx_str input, uint32_t axis, int64_t value,
                                 size_t *count, epctx_error *error);

#ifdef __cplusplus
}
#endif

#endif
