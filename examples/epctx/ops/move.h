/* move.h - a context binary gets another name, and every node that names it. */
#ifndef EPCTX_OPS_MOVE_H
#define EPCTX_OPS_MOVE_H

#include "ops.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct epctx_move_opts {
    const epctx_profile *profile;     /* default: each node by its source */
    const epctx_io *io;               /* default epctx_io_files() */
    const epctx_allocator *allocator; /* default malloc */
    bool dry_run;                     /* judge only */
    bool derived; /* the models were found, not named by the user: none may be a link */
    /* Hears, when all is done, the path of each model with its number of nodes; may be NULL. */
    void (*moved_fn)(void *user, const char *model, size_t nodes);
    void *user;
} epctx_move_opts;

typedef struct epctx_move_report {
    size_t model_count; /* models that named the file, */
    size_t node_count;  /* with how many nodes */
    uint64_t size;      /* of the file */
    bool linked;        /* nothing had to be copied */
} epctx_move_report;

/* Renames a context binary, also into another folder, together with every node of `models` that
 * names it. The new name is made first, then each model is replaced, then the old name goes: every
 * state in between loads, and the same call again completes what a crash interrupted. Models that
 * do not name the file are left alone; EPCTX_ERR_NOT_FOUND when none does. `opts` and `report` may
 * be NULL. */
epctx_status epctx_move_binary(const char *from, const char *to, const char *const *models,
                               size_t count, const epctx_move_opts *opts,
                               epctx_move_report *report, epctx_error *error);

#ifdef __cplusplus
}
#endif

#endif
