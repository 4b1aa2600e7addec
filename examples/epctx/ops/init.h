/* init.h - moves initializers into the model or into a file, removes them, makes them constants. */
#ifndef EPCTX_OPS_INIT_H
#define EPCTX_OPS_INIT_H

#include "ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Moves external tensors into the model; with `threshold`, only initializers and values of Constant
 * nodes that have fewer bytes, and those of epctx_init_shapes. `opts` may be NULL, here and below.
 * EPCTX_ERR_LIMIT if the model would have 2 GiB or more. */
epctx_status epctx_init_inline(epctx_model *model, const ops_convert_opts *opts,
                               ops_changes *changes, epctx_error *error);
/* Moves those constants into the model that ORT reads while it infers shapes
 * (epctx_model_shape_names): it refuses a model that has them in a file. */
epctx_status epctx_init_shapes(epctx_model *model, const ops_convert_opts *opts,
                               ops_changes *changes, epctx_error *error);
/* Moves initializers and values of Constant nodes of `threshold` or more bytes into one file; with
 * `gather`, also those that are in files; with `bring_in`, smaller ones of these into the model.
 * What ORT does not read from files stays in the model: strings, sparse initializers, tensors
 * without bytes, those of epctx_init_shapes. */
epctx_status epctx_init_external(epctx_model *model, const ops_convert_opts *opts,
                                 ops_changes *changes, epctx_error *error);
/* Takes initializers out of the inputs of the main graph, where the application could replace
 * them: they become constants, which EPs compile. An older IR version, which wants them there,
 * becomes 4. */
epctx_status epctx_init_fix(epctx_model *model, const ops_convert_opts *opts, ops_changes *changes,
                            epctx_error *error);
/* Removes initializers that nothing reads. An initializer counts as read if it makes an input
 * optional, if a subgraph captures it, or if a quantization annotation or training info names
 * it. */
epctx_status epctx_init_prune(epctx_model *model, const ops_convert_opts *opts,
                              ops_changes *changes, epctx_error *error);

#ifdef __cplusplus
}
#endif

#endif
