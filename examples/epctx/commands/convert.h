/* What the commands share that move contexts and weights between a model and its files. */
#ifndef EPCTX_CLI_CONVERT_H
#define EPCTX_CLI_CONVERT_H

#include "ops/contexts.h"
#include "core/output.h"

typedef epctx_status (*convert_fn)(epctx_model *model, const ops_convert_opts *opts,
                                   ops_changes *changes, epctx_error *error);

/* One change into the plan. */
void convert_tell(output *out, const ops_change *change);
/* Opens `file`, converts it with `convert` and writes the result with its files where `out` says.
 * Returns the exit code. */
int convert_file(output *out, const char *file, ops_convert_opts *opts, convert_fn convert);
#define CONVERT_STALE_HELP \
    "  --allow-stale        also a binary that is not the one the model was compiled with\n"

/* The commands embed and extract, from their arguments on. */
int convert_contexts(const cli_args *args, convert_fn convert);

#endif
