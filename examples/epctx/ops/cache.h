/* cache.h - the EPContext model as a cache of its source, for the start of an application. */
#ifndef EPCTX_OPS_CACHE_H
#define EPCTX_OPS_CACHE_H

#include "ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As epctx_model_check_fresh; a model whose context binary, or a file to which that refers, is not
 * there or cut is stale, too, and such a file that the stamp does not name is unknown. */
epctx_freshness epctx_cache_judge(const epctx_model *model, const char *ep,
                                  const epctx_backend *backend, const epctx_fresh_opts *opts,
                                  epctx_error *why);

/* -- generations: the files beside the model, of one result after another -- */

/* The files of a result have names that no other result had, so that they never change: whoever has
 * opened the model finds those that belong to it, while the model alone is replaced, in one step.
 * Besides the newest result the two before stay. */
typedef struct epctx_generation {
    char stem[EPCTX_NAME_MAX]; /* <model>_gen<number>: what the next files' names begin with */
    uint64_t number;           /* of it; the first is 1 */
    /* private */
    epctx_arena arena;
    epctx_str key, earlier;
} epctx_generation;

/* Under the lock of the EPContext model `path`: removes files of earlier results that neither this
 * model nor another one in its folder names, and names the next result. A file is removed only if
 * the model knows that it was written for it, and its size and hash are those of then. On success
 * epctx_generation_end follows. */
epctx_status epctx_generation_begin(const epctx_io *io, const char *path, epctx_generation *out,
                                    epctx_error *error);

/* Notes in the next EPContext model, before it is written, which files of earlier results are its
 * own: the metadata epctx.generations.<stem>, a line "data <size> <hash> <name>" each. */
epctx_status epctx_generation_note(const epctx_generation *generation, epctx_model *model,
                                   epctx_error *error);
/* May be called twice, and on a zeroed one. */
void epctx_generation_end(epctx_generation *generation);

/* The number of the generation whose files the EPContext model at `path` names; 0: of none. */
uint64_t epctx_generation_of(const epctx_model *model, const char *path);

/* -- open or compile -- */

typedef enum epctx_origin {
    EPCTX_FROM_CACHE = 0, /* the EPContext model existed and was fresh */
    EPCTX_FROM_COMPILER,  /* the source was compiled */
    EPCTX_FROM_FALLBACK   /* nothing is open: fallback_fn was called */
} epctx_origin;

typedef struct epctx_cache_opts {
    const epctx_open_opts *open; /* for the source and for the EPContext model */
    const epctx_gen_opts *gen;   /* without a workspace; `overwrite` counts as true */
    const epctx_load_opts *load;
    bool no_compile; /* session.disable_model_compile */
    bool fast;       /* as in epctx_fresh_opts */
    /* The binary of each result has a name of its own, <model>_gen<number>.bin, instead of
     * gen->binary: a process that has opened the model finds the binary that belongs to it while
     * another one compiles. */
    bool generations;
    void *user;
    /* May be NULL. Called if there is no usable EPContext model and compiling is not allowed or
     * finds no supported node. If it returns OK, the origin is EPCTX_FROM_FALLBACK. */
    epctx_status (*fallback_fn)(void *user, const char *model_path, const epctx_error *why);
} epctx_cache_opts;

/* Do not move: `loaded` points into `model`. */
typedef struct epctx_opened {
    epctx_model model;
    epctx_loaded loaded;
    epctx_origin origin;
    epctx_error reason; /* why an existing EPContext model was not used */
} epctx_opened;

/* Uses <stem>_ctx.onnx (or gen->context_file_path) if it exists, loads, and equals what
 * compiling the source would give; otherwise compiles and writes it. This replaces an existing
 * file, including a model without a build stamp, as ORT writes: to keep one, choose another
 * gen->context_file_path. Ignores where contexts and initializers are stored (embed, binary,
 * initializers_file_name): epctx_edit_embed and epctx_edit_extract leave a model fresh. A
 * model whose source is missing is fresh. Models that share a binary leave the group one by one:
 * compiling the one that the binary is named after makes the others stale, and they are then
 * compiled alone. Safe if several processes start at once: one compiles, the others wait
 * (epctx_file_lock with a temporary <model>.lock) and use the complete result. Errors: those of
 * epctx_generate and epctx_load; NOT_COMPILED under no_compile (ORT's
 * MODEL_REQUIRES_COMPILATION). */
epctx_status epctx_open_or_compile(epctx_opened *opened, const char *model_path,
                                   const epctx_backend *backend, const epctx_cache_opts *opts,
                                   epctx_error *error);
/* May be called on a zeroed object, and twice. */
void epctx_opened_close(epctx_opened *opened);

#ifdef __cplusplus
}
#endif

#endif
