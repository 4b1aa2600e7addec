/* judge.h - whether ONNX Runtime would load what a command has made, before it reports success. */
#ifndef EPCTX_CLI_JUDGE_H
#define EPCTX_CLI_JUDGE_H

#include "cli.h"

/* By the rules of lint that mean that ONNX Runtime refuses a model, whatever its EPs do; what one
 * of the `sources`, files that it was made of, breaks as often is not the command's doing: then
 * `before` says that. `huge`: a size that no reader takes was asked for. Does not look at other
 * files. */
epctx_status judge_made(const epctx_model *made, const char *const *sources, size_t count,
                        bool huge, epctx_error *before, epctx_error *error);
/* The same for a file that was written, which is made of one source. */
epctx_status judge_file(const char *path, const char *source, epctx_error *before,
                        epctx_error *error);
/* A model that goes into something as it is, by every rule that needs no other file. The first by
 * which ONNX Runtime refuses it is the failure, the first by which its EP does, or that of
 * `profile` (NULL: of each node), is in `ep`. */
epctx_status judge_given(const epctx_model *model, const epctx_profile *profile, epctx_error *ep,
                         epctx_error *error);

#endif
