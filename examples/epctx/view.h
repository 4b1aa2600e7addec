/* What the page of `epctx view` is filled with. */
#ifndef EPCTX_CLI_VIEW_H
#define EPCTX_CLI_VIEW_H

#include "cli.h"

/* The main graph, the functions and the training graphs of a model as a JSON array: nodes,
 * attributes in short, values with their types, and initializers with their sizes. False: no
 * memory. */
bool view_put_graphs(FILE *out, const epctx_model *model);
/* What lint finds, as a JSON array. */
epctx_status view_put_findings(FILE *out, const epctx_model *model, const char *file,
                               epctx_error *error);

#endif
