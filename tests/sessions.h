/* One session from beginning to end: a model is opened, compiled or loaded, and closed. */
#ifndef EPCTX_TEST_SESSIONS_H
#define EPCTX_TEST_SESSIONS_H

#include "build.h"

BUILD_UNUSED static epctx_status generate_one(const char *path, const epctx_backend *backend,
                                              const epctx_gen_opts *opts, epctx_gen_report *report,
                                              const epctx_io *io, epctx_error *error) {
    epctx_open_opts open = {0};
    epctx_model model;
    epctx_status status;
    open.io = io;
    status = epctx_model_open_file(&model, path, &open, error);
    if (status == EPCTX_OK) status = epctx_generate(&model, backend, opts, report, error);
    epctx_model_close(&model);
    return status;
}

/* Loads the model in `b`, or the file of that path. `bound`: the nodes; NULL: never mind. */
BUILD_UNUSED static epctx_status load_one(const bytes *b, const char *path,
                                          const epctx_backend *backend, const epctx_open_opts *open,
                                          const epctx_load_opts *opts, size_t *bound,
                                          epctx_error *error) {
    epctx_model model;
    epctx_loaded loaded;
    epctx_status status = path != NULL
                              ? epctx_model_open_file(&model, path, open, error)
                              : epctx_model_open_memory(&model, b->data, b->size, open, error);
    if (status != EPCTX_OK) return status;
    status = epctx_load(&loaded, &model, backend, opts, error);
    if (bound != NULL) *bound = status == EPCTX_OK ? loaded.bound_count : 0;
    epctx_unload(&loaded);
    epctx_unload(&loaded); /* the second time there is nothing to do */
    epctx_model_close(&model);
    return status;
}

#endif
