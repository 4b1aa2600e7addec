/* inlined.h - names that ONNX Runtime gives when it puts the nodes of a function in the place of a
 * call (function_utils.cc): _inlfunc_<function>_<name> for the first one. A model that has one of
 * them and the call is refused (E088). */
#ifndef EPCTX_OPS_INLINED_H
#define EPCTX_OPS_INLINED_H

#include "ops.h"

#ifdef __cplusplus
extern "C" {
#endif

#define INLINED_PREFIX "_inlfunc_"

/* Gets a name, that of a node or else of a value; it lasts as long as the call. What it returns
 * ends the walk unless it is EPCTX_OK. */
typedef epctx_status (*inlined_fn)(void *user, bool of_node, epctx_str name);

/* The names that the nodes and values of a function get; those of more than about 1,000 bytes are
 * left out. */
epctx_status inlined_names(const epctx_function_view *function, epctx_arena *arena, inlined_fn fn,
                           void *user, epctx_error *error);

/* Whether ORT may give the name at a further call of one of these functions:
 * _inlfunc_<function>_token_<number>_<name>. Its numbers are its own. */
bool inlined_may_be(epctx_str name, const epctx_map *functions);

#ifdef __cplusplus
}
#endif

#endif
