/* What `epctx compile` was asked for, and its parts: one model, or several that share a binary. */
#ifndef EPCTX_CLI_COMPILE_H
#define EPCTX_CLI_COMPILE_H

#include "cli.h"

typedef struct compile_settings {
    epctx_gen_opts gen;
    epctx_open_opts open;
    epctx_options options; /* of -C */
    const char *arch;
    const char *ep, *ep_options, *session_options;
    bool share;
    bool weightless;
    bool verbose;
    bool dry_run;
    bool json;
} compile_settings;

/* EPCTX_ERR_EXISTS when the binary that `files` give is there and a model beside it needs a graph
 * from it that none of them had: it would not load any more. */
epctx_status compile_check_binary(const char *const *files, int count, const compile_settings *set,
                                  const epctx_backend *backend, epctx_error *error);
/* --dry-run: says what would be written, or why it would fail before anything is compiled. */
int compile_plan(const char *const *files, int count, const compile_settings *set);
/* Several models, one binary. */
int compile_group(const char *const *files, int count, const compile_settings *set);

#endif
