/* What the page of `epctx view` is filled with. */
#ifndef EPCTX_CLI_VIEW_H
#define EPCTX_CLI_VIEW_H

#include "core/cli.h"

/* The main graph, the functions and the training graphs of a model as a JSON array: nodes,
 * attributes in short, values with their types, and initializers with their sizes. False: no
 * memory. */
bool view_put_graphs(FILE *out, const epctx_model *model);
/* Does the reference NPU run a node of it? */
bool view_has_npu(const epctx_model *model);
/* Commands and memory plan of a model of the reference NPU, or of an ordinary one that is compiled
 * in memory, as a JSON object. Fails without memory only. */
epctx_status view_put_npu(FILE *out, const char *file, epctx_error *error);

#endif
