/* init.h - initializers into the model, into a file, or away. */
#ifndef EPCTX_OPS_INIT_H
#define EPCTX_OPS_INIT_H

#include "ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* External initializers of the main graph and of its bodies come into the model. `opts` may be
 * NULL, here and below. EPCTX_ERR_LIMIT where the model would have 2 GiB or more. */
epctx_status epctx_init_inline(epctx_model *model, const epctx_convert_opts *opts,
                               epctx_changes *changes, epctx_error *error);
/* Initializers of `threshold` bytes and more go into one file. Strings, sparse initializers and
 * attribute tensors stay, because ORT does not look for them in files. */
epctx_status epctx_init_external(epctx_model *model, const epctx_convert_opts *opts,
                                 epctx_changes *changes, epctx_error *error);
/* Initializers that nothing reads go. One that makes an input optional, that a body captures or
 * that a quantization annotation or training names is read. */
epctx_status epctx_init_prune(epctx_model *model, const epctx_convert_opts *opts,
                              epctx_changes *changes, epctx_error *error);

#ifdef __cplusplus
}
#endif

#endif
