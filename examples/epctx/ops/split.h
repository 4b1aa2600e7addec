/* split.h - extracts a part of a model between values. */
#ifndef EPCTX_OPS_SPLIT_H
#define EPCTX_OPS_SPLIT_H

#include "ops.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct epctx_split_opts {
    const epctx_value *inputs; /* where to cut; elem_type 0: use the model's type. None: the
                                  inputs of the model that are needed */
    size_t input_count;
    const epctx_value *outputs; /* none: the outputs of the model */
    size_t output_count;
    const char *output_path; /* where the result will be written; default the model's path */
} epctx_split_opts;

/* Reduces the model to what lies between the inputs and the outputs: nodes, initializers, types,
 * annotations, functions, and the files that are still needed. If the node with the context is
 * removed, the first of its secondary nodes takes over the context. Errors: NOT_FOUND for a value
 * that does not exist, ARG for an input that nothing reads or that is an output, GRAPH if the
 * outputs need more inputs than given, or if a type is unknown. `opts` and `out` may be NULL. */
epctx_status epctx_split(epctx_model *model, const epctx_split_opts *opts, epctx_combined *out,
                         epctx_error *error);

#ifdef __cplusplus
}
#endif

#endif
