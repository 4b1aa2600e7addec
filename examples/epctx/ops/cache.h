/* cache.h - the EPContext model as a cache of its source, for an application that starts. */
#ifndef EPCTX_OPS_CACHE_H
#define EPCTX_OPS_CACHE_H

#include "ops.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum epctx_origin {
    EPCTX_FROM_CACHE = 0, /* the EPContext model was there and fresh */
    EPCTX_FROM_COMPILER,  /* it was compiled now */
    EPCTX_FROM_FALLBACK   /* nothing is open: fallback_fn did the rest */
} epctx_origin;

typedef struct epctx_cache_opts {
    const epctx_open_opts *open; /* for the source and for the EPContext model */
    const epctx_gen_opts *gen;   /* without a workspace; `overwrite` counts as true */
    const epctx_load_opts *load;
    bool no_compile; /* session.disable_model_compile */
    bool fast;       /* as in epctx_fresh_opts */
    void *user;
    /* May be NULL. Called when there is no usable EPContext model and compiling is not allowed, or
     * takes no node. OK: the call succeeds with EPCTX_FROM_FALLBACK. */
    epctx_status (*fallback_fn)(void *user, const char *model_path, const epctx_error *why);
} epctx_cache_opts;

/* Do not move: `loaded` points into `model`. */
typedef struct epctx_opened {
    epctx_model model;
    epctx_loaded loaded;
    epctx_origin origin;
    epctx_error reason; /* why the EPContext model that was there was not used */
} epctx_opened;

/* Uses <stem>_ctx.onnx (or gen->context_file_path) when it is there, loads, and is what the source
 * would give now; otherwise compiles and writes it. That replaces what is at the name, also a model
 * without a build stamp, as ORT writes them: choose another gen->context_file_path to keep one.
 * Where contexts and initializers are stored is not compared (embed, binary,
 * initializers_file_name): epctx_model_embed and epctx_model_extract leave a model fresh. A model
 * without its source is fresh. Models that share a binary leave the group one by one: compiling the
 * one after which the binary is named makes the others stale, and they compile for themselves. Safe
 * when several processes start at once: one compiles, the others wait (epctx_file_lock, a file
 * <model>.lock that goes again) and use the result; nobody sees half of it.
 * Errors: those of epctx_generate and epctx_load; NOT_COMPILED under no_compile (ORT's
 * MODEL_REQUIRES_COMPILATION). */
epctx_status epctx_open_or_compile(epctx_opened *opened, const char *model_path,
                                   const epctx_backend *backend, const epctx_cache_opts *opts,
                                   epctx_error *error);
/* Legal on a zeroed object and twice. */
void epctx_opened_close(epctx_opened *opened);

#ifdef __cplusplus
}
#endif

#endif
