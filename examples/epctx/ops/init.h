/* init.h - moves initializers into the model or into a file, or removes them. */
#ifndef EPCTX_OPS_INIT_H
#define EPCTX_OPS_INIT_H

#include "ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Moves external initializers of the main graph and its subgraphs into the model; with
 * `threshold`, only those of fewer bytes. `opts` may be NULL, here and below. EPCTX_ERR_LIMIT if
 * the model would have 2 GiB or more. */
epctx_status epctx_init_inline(epctx_model *model, const epctx_convert_opts *opts,
                               epctx_changes *changes, epctx_error *error);
/* Moves initializers of `threshold` or more bytes into one file. Strings, sparse initializers and
 * attribute tensors stay in the model because ORT does not read them from files. */
epctx_status epctx_init_external(epctx_model *model, const epctx_convert_opts *opts,
                                 epctx_changes *changes, epctx_error *error);
/* Removes initializers that nothing reads. An initializer counts as read if it makes an input
 * optional, if a subgraph captures it, or if a quantization annotation or training info names
 * it. */
epctx_status epctx_init_prune(epctx_model *model, const epctx_convert_opts *opts,
                              epctx_changes *changes, epctx_error *error);

#ifdef __cplusplus
}
#endif

#endif
