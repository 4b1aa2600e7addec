/* contexts.h - epctx_edit_embed and epctx_edit_extract as conversions like the others here. */
#ifndef EPCTX_OPS_CONTEXTS_H
#define EPCTX_OPS_CONTEXTS_H

#include "ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* `opts` and `changes` may be NULL. Errors: those of the library's functions. */
epctx_status ops_embed(epctx_model *model, const ops_convert_opts *opts, ops_changes *changes,
                       epctx_error *error);
epctx_status ops_extract(epctx_model *model, const ops_convert_opts *opts, ops_changes *changes,
                         epctx_error *error);

#ifdef __cplusplus
}
#endif

#endif
