/* The files of the machine, where one call fails as told. Without map_inside_fn: every map is
 * counted. */
#ifndef EPCTX_TEST_FLAKY_H
#define EPCTX_TEST_FLAKY_H

#include "build.h"

#include <string.h>

typedef struct flaky {
    const epctx_io *files;
    int calls;
    int fail_at; /* 0: never */
    int opens;   /* files created and not yet committed or aborted */
    int maps;    /* files mapped and not yet unmapped */
    int mapped;  /* all that were */
    bool no_links; /* files have one name */
    bool stays;    /* every later call fails, too */
} flaky;

static bool flaky_fails(flaky *f, epctx_error *error)
{
    f->calls++;
    if (f->calls != f->fail_at && !(f->stays && f->calls > f->fail_at && f->fail_at > 0))
        return false;
    epctx_fail(error, EPCTX_ERR_IO, "the injected failure");
    return true;
}

static epctx_status flaky_map(void *user, const char *path, epctx_mapping *out, epctx_error *error)
{
    flaky *f = (flaky *)user;
    epctx_status status;
    if (flaky_fails(f, error)) return EPCTX_ERR_IO;
    status = f->files->map_fn(f->files->user, path, out, error);
    f->maps += status == EPCTX_OK;
    f->mapped += status == EPCTX_OK;
    return status;
}

static void flaky_unmap(void *user, epctx_mapping *mapping)
{
    flaky *f = (flaky *)user;
    f->maps--;
    f->files->unmap_fn(f->files->user, mapping);
}

static epctx_status flaky_stat(void *user, const char *path, epctx_file_kind *kind, uint64_t *size,
                               epctx_error *error)
{
    flaky *f = (flaky *)user;
    if (flaky_fails(f, error)) return EPCTX_ERR_IO;
    return f->files->stat_fn(f->files->user, path, kind, size, error);
}

static epctx_status flaky_canonical(void *user, const char *path, char *out, size_t capacity,
                                    epctx_error *error)
{
    flaky *f = (flaky *)user;
    return f->files->canonical_fn(f->files->user, path, out, capacity, error);
}

static epctx_status flaky_create(void *user, const char *path, epctx_io_file *file,
                                 epctx_error *error)
{
    flaky *f = (flaky *)user;
    epctx_status status;
    if (flaky_fails(f, error)) return EPCTX_ERR_IO;
    status = f->files->create_fn(f->files->user, path, file, error);
    f->opens += status == EPCTX_OK;
    return status;
}

static epctx_status flaky_write(void *user, epctx_io_file *file, const void *data, size_t size,
                                epctx_error *error)
{
    flaky *f = (flaky *)user;
    if (flaky_fails(f, error)) return EPCTX_ERR_IO;
    return f->files->write_fn(f->files->user, file, data, size, error);
}

static epctx_status flaky_sync(void *user, epctx_io_file *file, epctx_error *error)
{
    flaky *f = (flaky *)user;
    if (flaky_fails(f, error)) return EPCTX_ERR_IO;
    return f->files->sync_fn(f->files->user, file, error);
}

static epctx_status flaky_commit(void *user, epctx_io_file *file, epctx_error *error)
{
    flaky *f = (flaky *)user;
    f->opens--;
    if (flaky_fails(f, error)) {
        f->files->abort_fn(f->files->user, file); /* a failed commit releases the file, too */
        return EPCTX_ERR_IO;
    }
    return f->files->commit_fn(f->files->user, file, error);
}

static void flaky_abort(void *user, epctx_io_file *file)
{
    flaky *f = (flaky *)user;
    f->opens--;
    f->files->abort_fn(f->files->user, file);
}

static epctx_status flaky_link(void *user, const char *from, const char *to, epctx_error *error)
{
    flaky *f = (flaky *)user;
    if (flaky_fails(f, error)) return EPCTX_ERR_IO;
    return f->files->link_fn(f->files->user, from, to, error);
}

static epctx_status flaky_remove(void *user, const char *path, epctx_error *error)
{
    flaky *f = (flaky *)user;
    if (flaky_fails(f, error)) return EPCTX_ERR_IO;
    return f->files->remove_fn(f->files->user, path, error);
}

static epctx_status flaky_sync_folder(void *user, const char *path, epctx_error *error)
{
    flaky *f = (flaky *)user;
    if (flaky_fails(f, error)) return EPCTX_ERR_IO;
    return f->files->sync_folder_fn(f->files->user, path, error);
}

BUILD_UNUSED static epctx_io flaky_io(flaky *f)
{
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
    io.abort_fn = flaky_abort;
    io.remove_fn = flaky_remove;
    io.sync_folder_fn = flaky_sync_folder;
    io.link_fn = f->no_links ? NULL : flaky_link;
    return io;
}

#endif
