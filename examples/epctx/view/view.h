/* What the page of `epctx view` is filled with. */
#ifndef EPCTX_CLI_VIEW_H
#define EPCTX_CLI_VIEW_H

#include "core/cli.h"

/* The member "graphs": the main graph, the functions and the training graphs of a model with nodes,
 * attributes in short, values with their types, and initializers with their sizes. False: no
 * memory. */
bool view_put_graphs(json_writer *w, const epctx_model *model);
/* Does the reference NPU run a node of it? */
bool view_has_npu(const epctx_model *model);
/* The member "npu": commands and memory plan of a model of the reference NPU, or of an ordinary one
 * that is compiled in memory. Fails without memory only. */
epctx_status view_put_npu(json_writer *w, const char *file, epctx_error *error);

#endif
