/* shadows.h - values of bodies that have the name of a value around the body (E055): ONNX Runtime
 * refuses them, or does so once it has put the nodes into another order. */
#ifndef EPCTX_OPS_SHADOWS_H
#define EPCTX_OPS_SHADOWS_H

#include "ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Gives what nodes of bodies make other names, those of outputs of a body excepted that a node
 * finds by name. Errors: those of epctx_rename_values. */
epctx_status shadows_rename(epctx_model *model, ops_report *report, epctx_error *error);

#ifdef __cplusplus
}
#endif

#endif
