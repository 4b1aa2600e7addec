/* The files of the machine, where one call fails as told. */
#ifndef EPCTX_TEST_FLAKY_H
#define EPCTX_TEST_FLAKY_H

#include "build.h"

#include <string.h>

typedef struct flaky {
    const epctx_io *files;
    int calls;
    int fail_at;   /* 0: never */
    int opens;     /* files created and not yet committed or aborted */
    int maps;      /* files mapped and not yet unmapped */
    int mapped;    /* all that were */
    bool no_links; /* files have one name */
    bool stays;    /* every later call fails, too */
} flaky;

static bool flaky_fails(flaky *f, epctx_error *error) {
    f->calls++;
    if (f->calls != f->fail_at && !(f->stays && f->calls > f->fail_at && f->fail_at > 0))
        return false;
    epctx_fail(error, EPCTX_ERR_IO, "the injected failure");
    return true;
}

static epctx_status flaky_map(void *user, const char *folder, const char *name, bool copy,
                              epctx_mapping *out, epctx_error *error) {
    flaky *f = (flaky *)user;
    epctx_status status;
    if (flaky_fails(f, error)) return EPCTX_ERR_IO;
    status = f->files->map_fn(f->files->user, folder, name, copy, out, error);
    f->maps += status == EPCTX_OK;
    f->mapped += status == EPCTX_OK;
    return status;
}

static void flaky_unmap(void *user, epctx_mapping *mapping) {
    flaky *f = (flaky *)user;
    f->maps--;
    f->files->unmap_fn(f->files->user, mapping);
}

static epctx_status flaky_stat(void *user, const char *path, epctx_file_info *info,
                               epctx_error *error) {
    flaky *f = (flaky *)user;
    if (flaky_fails(f, error)) return EPCTX_ERR_IO;
    return f->files->stat_fn(f->files->user, path, info, error);
}

static epctx_status flaky_canonical(void *user, const char *path, char *out, size_t capacity,
                                    epctx_error *error) {
    flaky *f = (flaky *)user;
    return f->files->canonical_fn(f->files->user, path, out, capacity, error);
}

static epctx_status flaky_create(void *user, const char *folder, const char *name,
                                 epctx_io_file *file, epctx_error *error) {
    flaky *f = (flaky *)user;
    epctx_status status;
    if (flaky_fails(f, error)) return EPCTX_ERR_IO;
    status = f->files->create_fn(f->files->user, folder, name, file, error);
    f->opens += status == EPCTX_OK;
    return status;
}

static epctx_status flaky_write(void *user, epctx_io_file *file, const void *data, size_t size,
                                epctx_error *error) {
    flaky *f = (flaky *)user;
    if (flaky_fails(f, error)) return EPCTX_ERR_IO;
    return f->files->write_fn(f->files->user, file, data, size, error);
}

static epctx_status flaky_sync(void *user, epctx_io_file *file, epctx_error *error) {
    flaky *f = (flaky *)user;
    if (flaky_fails(f, error)) return EPCTX_ERR_IO;
    return f->files->sync_fn(f->files->user, file, error);
}

/* Fails before anything is done, or when the names cannot be made durable. */
static epctx_status flaky_commit(void *user, epctx_io_file *file, epctx_overwrite overwrite,
                                 epctx_error *error) {
    flaky *f = (flaky *)user;
    epctx_status status;
    if (flaky_fails(f, error)) return EPCTX_ERR_IO;
    status = f->files->commit_fn(f->files->user, file, overwrite, error);
    return status == EPCTX_OK && flaky_fails(f, error) ? EPCTX_ERR_IO : status;
}

static epctx_status flaky_clear(void *user, epctx_io_file *file, epctx_overwrite overwrite,
                                epctx_error *error) {
    flaky *f = (flaky *)user;
    if (flaky_fails(f, error)) return EPCTX_ERR_IO;
    return f->files->clear_fn(f->files->user, file, overwrite, error);
}

static bool flaky_back(void *user, epctx_io_file *file) {
    flaky *f = (flaky *)user;
    return f->files->back_fn(f->files->user, file);
}

static void flaky_close(void *user, epctx_io_file *file) {
    flaky *f = (flaky *)user;
    f->opens--;
    f->files->close_fn(f->files->user, file);
}

static epctx_status flaky_second(void *user, epctx_io_file *file, const char *name,
                                 epctx_error *error) {
    flaky *f = (flaky *)user;
    if (flaky_fails(f, error)) return EPCTX_ERR_IO;
    return f->files->second_fn(f->files->user, file, name, error);
}

static epctx_status flaky_link(void *user, const char *folder, const char *from, const char *to,
                               epctx_error *error) {
    flaky *f = (flaky *)user;
    if (flaky_fails(f, error)) return EPCTX_ERR_IO;
    return f->files->link_fn(f->files->user, folder, from, to, error);
}

static epctx_status flaky_remove(void *user, const char *folder, const char *name,
                                 epctx_error *error) {
    flaky *f = (flaky *)user;
    if (flaky_fails(f, error)) return EPCTX_ERR_IO;
    return f->files->remove_fn(f->files->user, folder, name, error);
}

BUILD_UNUSED static epctx_io flaky_io(flaky *f) {
    epctx_io io;
    memset(&io, 0, sizeof io);
    f->files = epctx_io_files();
    io.user = f;
    io.map_fn = flaky_map;
    io.unmap_fn = flaky_unmap;
    io.stat_fn = flaky_stat;
    io.canonical_fn = flaky_canonical;
    io.create_fn = flaky_create;
    io.write_fn = flaky_write;
    io.sync_fn = flaky_sync;
    io.commit_fn = flaky_commit;
    io.back_fn = flaky_back;
    io.close_fn = flaky_close;
    io.clear_fn = flaky_clear;
    io.remove_fn = flaky_remove;
    io.second_fn = f->no_links ? NULL : flaky_second;
    io.link_fn = f->no_links ? NULL : flaky_link;
    return io;
}

#endif
