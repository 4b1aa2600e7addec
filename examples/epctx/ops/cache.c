/* cache.c - the EPContext model as a cache: used when it is fresh, else compiled, by one
 * process. */
#include "cache.h"

typedef struct cache {
    epctx_opened *opened;
    const char *model_path;
    const epctx_backend *backend;
    epctx_cache_opts opts;
    const epctx_io *io;
    epctx_error *error;
    bool derived;              /* `path` is derived: do not follow links */
    char path[EPCTX_PATH_MAX]; /* of the EPContext model */
} cache;

void epctx_opened_close(epctx_opened *opened) {
    epctx_unload(&opened->loaded);
    epctx_model_close(&opened->model);
}

static epctx_status check_fresh(const cache *c, epctx_error *why) {
    epctx_fresh_opts fresh;
    epctx_freshness verdict;
    epctx_file_info info;
    memset(&fresh, 0, sizeof fresh);
    fresh.source_path = c->model_path;
    fresh.gen = c->opts.gen;
    fresh.fast = c->opts.fast;
    verdict = epctx_check_fresh(&c->opened->model, c->backend->source, c->backend, &fresh, why);
    if (verdict == EPCTX_FRESH) return EPCTX_OK;
    /* One that says nothing against it and whose source is gone is delivered without the source. */
    return verdict != EPCTX_STALE &&
                   c->io->stat_fn(c->io->user, c->model_path, &info, NULL) == EPCTX_OK &&
                   info.kind == EPCTX_FILE_NONE
               ? EPCTX_OK
               : EPCTX_ERR_VERSION;
}

static epctx_status load_fresh(const cache *c, epctx_error *why) {
    epctx_opened *opened = c->opened;
    epctx_load_opts load;
    OPS_TRY(epctx_model_open_file(&opened->model, c->path, c->opts.open, why));
    OPS_TRY(check_fresh(c, why));
    memset(&load, 0, sizeof load);
    if (c->opts.load != NULL) load = *c->opts.load;
    if (load.source_model.data == NULL && load.source_model_path == NULL)
        load.source_model_path = c->model_path; /* only weightless contexts read it */
    OPS_TRY(epctx_load(&opened->loaded, &opened->model, c->backend, &load, why));
    if (opened->loaded.bound_count == 0) {
        epctx_fail(why, EPCTX_ERR_GRAPH, "the model has no node of %s", c->backend->source);
        epctx_blame(why, c->path, NULL, NULL);
        return EPCTX_ERR_GRAPH;
    }
    return EPCTX_OK;
}

/* Opens and loads the EPContext model when it is there, fresh and complete. What is wrong stays in
 * opened->reason. */
static bool open_cache(const cache *c) {
    if (load_fresh(c, &c->opened->reason) == EPCTX_OK) return true;
    epctx_opened_close(c->opened);
    return false;
}

static epctx_status compile(const cache *c, const epctx_file_lock *lock) {
    epctx_gen_opts gen;
    epctx_model source;
    epctx_status status = epctx_model_open_file(&source, c->model_path, c->opts.open, c->error);
    memset(&gen, 0, sizeof gen);
    if (c->opts.gen != NULL) gen = *c->opts.gen;
    gen.lock = lock;
    gen.overwrite = true;
    gen.no_nodes = EPCTX_NO_NODES_ERROR;
    if (status == EPCTX_OK) status = epctx_generate(&source, c->backend, &gen, NULL, c->error);
    epctx_model_close(&source);
    return status;
}

static epctx_status fall_back(const cache *c, epctx_status status) {
    if (c->opts.fallback_fn == NULL) return status;
    OPS_TRY(c->opts.fallback_fn(c->opts.user, c->model_path, c->error));
    epctx_error_clear(c->error);
    c->opened->origin = EPCTX_FROM_FALLBACK;
    return EPCTX_OK;
}

/* Other processes wait here. */
static epctx_status fill(const cache *c, const epctx_file_lock *lock) {
    epctx_error why;
    if (open_cache(c)) return EPCTX_OK; /* another process was faster */
    why = c->opened->reason;
    OPS_TRY(compile(c, lock));
    if (!open_cache(c)) {
        *c->error = c->opened->reason;
        return c->error->status;
    }
    c->opened->origin = EPCTX_FROM_COMPILER;
    c->opened->reason = why;
    return EPCTX_OK;
}

/* A derived path must not be a link: neither the lock nor the model follows one. */
static epctx_status take_lock(const cache *c, epctx_file_lock *lock) {
    epctx_str folder = epctx_path_folder(epctx_str_of(c->path));
    char given[EPCTX_PATH_MAX];
    char real[EPCTX_PATH_MAX];
    if (c->derived) {
        folder = folder.size > 0 ? folder : epctx_str_of(".");
        OPS_TRY(epctx_path_join(epctx_str_of(""), folder, given, sizeof given, c->error));
        OPS_TRY(c->io->canonical_fn(c->io->user, given, real, sizeof real, c->error));
        OPS_TRY(epctx_path_join(epctx_str_of(real), epctx_path_file(epctx_str_of(c->path)), given,
                                sizeof given, c->error));
        if (c->io->canonical_fn(c->io->user, c->path, real, sizeof real, NULL) == EPCTX_OK &&
            strcmp(real, given) != 0) {
            return epctx_fail(c->error, EPCTX_ERR_PATH,
                              "%s is a link to %s; remove it or choose another name", c->path,
                              real);
        }
    }
    return epctx_file_lock_take(lock, c->io, c->path, c->error);
}

static epctx_status open_or_compile(const cache *c) {
    epctx_file_lock lock;
    epctx_status status;
    if (open_cache(c)) return EPCTX_OK;
    if (c->opts.no_compile) {
        status = epctx_fail(c->error, EPCTX_ERR_NOT_COMPILED,
                            "the model must be compiled, which is not allowed "
                            "(session.disable_model_compile): %s",
                            c->opened->reason.message);
        return fall_back(c, status);
    }
    OPS_TRY(take_lock(c, &lock));
    status = fill(c, &lock);
    epctx_file_lock_drop(&lock);
    return status == EPCTX_ERR_NO_NODES ? fall_back(c, status) : status;
}

epctx_status epctx_open_or_compile(epctx_opened *opened, const char *model_path,
                                   const epctx_backend *backend, const epctx_cache_opts *opts,
                                   epctx_error *error) {
    cache c;
    epctx_error local;
    epctx_str chosen;
    memset(opened, 0, sizeof *opened);
    memset(&c, 0, sizeof c);
    c.opened = opened;
    c.model_path = model_path;
    c.backend = backend;
    c.error = error != NULL ? error : &local;
    epctx_error_clear(c.error);
    if (opts != NULL) c.opts = *opts;
    c.io = c.opts.open != NULL && c.opts.open->io != NULL ? c.opts.open->io : epctx_io_files();
    if (c.io == NULL || backend == NULL || backend->version != EPCTX_BACKEND_VERSION) {
        return epctx_fail(c.error, EPCTX_ERR_ARG, "an io and a backend of version %u are expected",
                          (uint64_t)EPCTX_BACKEND_VERSION);
    }
    if (c.opts.gen != NULL && c.opts.gen->workspace != NULL)
        return epctx_fail(c.error, EPCTX_ERR_ARG, "one model is cached, not a group: no workspace");
    chosen = epctx_str_of(c.opts.gen != NULL ? c.opts.gen->context_file_path : NULL);
    c.derived = chosen.size == 0;
    OPS_TRY(c.derived
                ? epctx_path_context_model(epctx_str_of(model_path), c.path, sizeof c.path, c.error)
                : epctx_path_join(epctx_str_of(""), chosen, c.path, sizeof c.path, c.error));
    return open_or_compile(&c);
}
