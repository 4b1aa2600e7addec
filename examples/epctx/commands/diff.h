/* What `epctx diff` finds, for other commands. */
#ifndef EPCTX_CLI_DIFF_H
#define EPCTX_CLI_DIFF_H

#include "core/cli.h"

/* The member "changes" of `epctx diff --json`. CLI_FAILED when a model cannot be read, after the
 * message. */
int diff_put_json(json_writer *w, const char *old, const char *now);

#endif
