/* move.h - renames a context binary and updates the nodes that name it. */
#ifndef EPCTX_OPS_MOVE_H
#define EPCTX_OPS_MOVE_H

#include "ops.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct epctx_move_opts {
    const epctx_profile *profile;     /* rules of this EP (epctx_profile_for) */
    const epctx_io *io;               /* default epctx_io_files() */
    const epctx_allocator *allocator; /* default malloc */
    bool dry_run;                     /* only check */
    bool derived;                     /* the user did not name the models: none may be a link */
    /* Called at the end with the path and number of nodes of each changed model; may be NULL. */
    void (*moved_fn)(void *user, const char *model, size_t nodes);
    void *user;
} epctx_move_opts;

typedef struct epctx_move_report {
    size_t model_count; /* models that named the file */
    size_t node_count;  /* nodes that named it */
    uint64_t size;      /* of the file */
    bool linked;        /* nothing was copied */
} epctx_move_report;

/* Renames a context binary, possibly to another folder, and updates all nodes of `models` that name
 * it. Creates the new name, then replaces each model, then removes the old name: every intermediate
 * state is loadable, and repeating the call after a crash completes it. Does not change models that
 * do not name the file; EPCTX_ERR_NOT_FOUND if none does. `opts` and `report` may be NULL. */
epctx_status epctx_move_binary(const char *from, const char *to, const char *const *models,
                               size_t count, const epctx_move_opts *opts, epctx_move_report *report,
                               epctx_error *error);

#ifdef __cplusplus
}
#endif

#endif
