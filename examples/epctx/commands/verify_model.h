/* What `epctx verify` asks the model itself, before it compares what was computed. */
#ifndef EPCTX_CLI_VERIFY_MODEL_H
#define EPCTX_CLI_VERIFY_MODEL_H

#include "core/tensors.h"

/* The coarsest type of floats that the model stores or casts to: float16, bfloat16, or else
 * float32. What was rounded to it inside is no better in a float32 output. */
int32_t verify_coarsest(const epctx_model *model);

/* Values of the main graph that depend on drawn numbers: two runs differ by nature. `values` is a
 * map of their names, copied to its arena; `example` becomes a node that draws, empty if none
 * does. */
epctx_status verify_find_drawn(const epctx_model *model, epctx_map *values,
                               epctx_node_view *example, epctx_error *error);

/* A copy of the model in which all float32 weights are rounded to bfloat16. LIMIT: they lie in
 * other files. */
epctx_status verify_round_weights(const epctx_model *model, const char *path, epctx_error *error);
/* Rounds the values of a list to bfloat16, in place. */
void verify_round_values(const tensor_list *list);

#endif
