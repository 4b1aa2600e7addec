/* Files in memory, in one folder, "/d", and in "/e/", which is only read. The Nth call can go
 * wrong: it fails, a read gives too few bytes or wrong ones, a write stops in the middle. All that
 * is handed out is counted. */
#ifndef EPCTX_TEST_DISK_H
#define EPCTX_TEST_DISK_H

#include "epctx.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__GNUC__)
#define DISK_UNUSED __attribute__((unused))
#else
#define DISK_UNUSED
#endif

#define DISK_FILES 48

typedef enum disk_fault {
    DISK_FAILS = 0,
    DISK_SHORT,  /* half of the bytes: a file read, or written before the disk is full */
    DISK_CHANGED /* one byte of what is read is another one */
} disk_fault;

typedef struct disk_file {
    char path[200];
    uint8_t *data;
    size_t size;
    uint64_t written;
} disk_file;

typedef struct disk {
    disk_file files[DISK_FILES];
    size_t count;
    uint64_t clock;
    int calls;
    int fail_at; /* 0: never */
    disk_fault fault;
    uint32_t place;           /* of the byte that is changed */
    int maps, writers, locks; /* alive */
    char locked[8][200];
} disk;

static disk_file *disk_find(disk *d, const char *path) {
    for (size_t i = 0; i < d->count; i++)
        if (strcmp(d->files[i].path, path) == 0) return &d->files[i];
    return NULL;
}

static void disk_put(disk *d, const char *path, const void *data, size_t size) {
    disk_file *f = disk_find(d, path);
    if (f == NULL) {
        if (d->count == DISK_FILES || strlen(path) >= sizeof f->path) abort();
        f = &d->files[d->count++];
        memset(f, 0, sizeof *f);
        strcpy(f->path, path);
    }
    free(f->data);
    f->data = (uint8_t *)malloc(size + 1);
    if (f->data == NULL) abort();
    if (size > 0) memcpy(f->data, data, size);
    f->size = size;
    f->written = ++d->clock;
}

static void disk_take_away(disk *d, disk_file *f) {
    free(f->data);
    *f = d->files[--d->count];
}

DISK_UNUSED static void disk_free(disk *d) {
    while (d->count > 0) disk_take_away(d, &d->files[0]);
}

static bool disk_now(disk *d) {
    return ++d->calls == d->fail_at;
}

static bool disk_fails(disk *d, epctx_error *error) {
    if (!disk_now(d) || d->fault != DISK_FAILS) return false;
    epctx_fail(error, EPCTX_ERR_IO, "the injected failure");
    return true;
}

static epctx_status disk_missing(const char *path, epctx_error *error) {
    return epctx_fail(error, EPCTX_ERR_NOT_FOUND, "there is no '%s'", path);
}

static void disk_path(const char *root, const char *name, char path[200]) {
    if (epctx_path_join(epctx_str_of(root), epctx_str_of(name), path, 200, NULL) != EPCTX_OK)
        abort();
}

/* A copy of exactly that size for each mapping: a byte touched too many is found. */
static epctx_status disk_map(void *user, const char *root, const char *name, bool copy,
                             epctx_mapping *out, epctx_error *error) {
    disk *d = (disk *)user;
    char path[200];
    const disk_file *f = (disk_path(root, name, path), disk_find(d, path));
    bool now = disk_now(d);
    (void)copy;
    memset(out, 0, sizeof *out);
    if (now && d->fault == DISK_FAILS)
        return epctx_fail(error, EPCTX_ERR_IO, "the injected failure");
    if (f == NULL) return disk_missing(path, error);
    out->size = now && d->fault == DISK_SHORT ? f->size / 2 : f->size;
    out->handle = malloc(out->size > 0 ? out->size : 1);
    if (out->handle == NULL) abort();
    if (out->size > 0) memcpy(out->handle, f->data, out->size);
    if (now && d->fault == DISK_CHANGED && out->size > 0)
        ((uint8_t *)out->handle)[d->place % out->size] ^= (uint8_t)(1u << d->place / 7 % 8);
    out->data = (const uint8_t *)out->handle;
    d->maps++;
    return EPCTX_OK;
}

static void disk_unmap(void *user, epctx_mapping *mapping) {
    if (mapping->handle != NULL) ((disk *)user)->maps--;
    free(mapping->handle);
    memset(mapping, 0, sizeof *mapping);
}

static bool disk_is_folder(const char *path) {
    return strcmp(path, "/d") == 0 || strcmp(path, "/d/") == 0 || strcmp(path, "/") == 0 ||
           strcmp(path, "/e/") == 0;
}

static epctx_status disk_stat(void *user, const char *path, epctx_file_info *info,
                              epctx_error *error) {
    disk *d = (disk *)user;
    const disk_file *f = disk_find(d, path);
    bool now = disk_now(d);
    memset(info, 0, sizeof *info);
    info->kind = f != NULL              ? EPCTX_FILE_REGULAR
                 : disk_is_folder(path) ? EPCTX_FILE_FOLDER
                                        : EPCTX_FILE_NONE;
    if (f != NULL) {
        info->size = f->size;
        info->written = info->changed = f->written;
    }
    if (!now) return EPCTX_OK;
    if (d->fault == DISK_SHORT) info->size /= 2;
    if (d->fault == DISK_CHANGED) info->size ^= (uint64_t)1 << d->place % 64;
    return d->fault == DISK_FAILS ? epctx_fail(error, EPCTX_ERR_IO, "the injected failure")
                                  : EPCTX_OK;
}

static epctx_status disk_canonical(void *user, const char *path, char *out, size_t capacity,
                                   epctx_error *error) {
    disk *d = (disk *)user;
    size_t size = strlen(path);
    if (disk_fails(d, error)) return EPCTX_ERR_IO;
    if (disk_find(d, path) == NULL && !disk_is_folder(path)) return disk_missing(path, error);
    while (size > 1 && path[size - 1] == '/') size--;
    if (size >= capacity) return epctx_fail(error, EPCTX_ERR_LIMIT, "the path is too long");
    memcpy(out, path, size);
    out[size] = '\0';
    return EPCTX_OK;
}

/* What is being written; a file when it is committed. */
typedef struct disk_writer {
    uint8_t *data, *old;
    size_t size, old_size;
    bool existed, changed;
} disk_writer;

static epctx_status disk_create(void *user, const char *root, const char *name, epctx_io_file *file,
                                epctx_error *error) {
    disk *d = (disk *)user;
    char path[200];
    memset(file, 0, sizeof *file);
    if (disk_fails(d, error)) return EPCTX_ERR_IO;
    disk_path(root, name, path);
    if (strncmp(path, "/d/", 3) != 0 || strchr(path + 3, '/') != NULL)
        return disk_missing(path, error);
    strcpy(file->path, path);
    file->handle = calloc(1, sizeof(disk_writer));
    if (file->handle == NULL) abort();
    d->writers++;
    return EPCTX_OK;
}

static epctx_status disk_write(void *user, epctx_io_file *file, const void *data, size_t size,
                               epctx_error *error) {
    disk *d = (disk *)user;
    disk_writer *w = (disk_writer *)file->handle;
    bool now = disk_now(d) && d->fault != DISK_CHANGED;
    uint8_t *more;
    if (now) size = d->fault == DISK_SHORT ? size / 2 : 0;
    more = (uint8_t *)realloc(w->data, w->size + size + 1);
    if (more == NULL) abort();
    if (size > 0) memcpy(more + w->size, data, size);
    w->data = more;
    w->size += size;
    return now ? epctx_fail(error, EPCTX_ERR_IO, "the injected failure: no space left") : EPCTX_OK;
}

static epctx_status disk_sync(void *user, epctx_io_file *file, epctx_error *error) {
    (void)file;
    return disk_fails((disk *)user, error) ? EPCTX_ERR_IO : EPCTX_OK;
}

/* What is there is remembered, or has its backup. */
static epctx_status disk_hold(disk *d, epctx_io_file *file, epctx_overwrite overwrite,
                              epctx_error *error) {
    disk_writer *w = (disk_writer *)file->handle;
    disk_file *old = disk_find(d, file->path);
    if (old != NULL && overwrite == EPCTX_OVERWRITE_FAIL)
        return epctx_fail(error, EPCTX_ERR_EXISTS, "'%s' exists", file->path);
    if (old == NULL || w->existed || w->changed) return EPCTX_OK;
    w->existed = true;
    w->old = (uint8_t *)malloc(old->size + 1);
    if (w->old == NULL) abort();
    memcpy(w->old, old->data, old->size);
    w->old_size = old->size;
    if (overwrite == EPCTX_OVERWRITE_BACKUP) {
        char name[200];
        strcpy(name, file->path);
        strcat(name, "~");
        strcpy(file->kept, name + 3);
        disk_put(d, name, w->old, w->old_size);
    }
    return EPCTX_OK;
}

/* What was written takes its name, or the name is cleared. Fails before anything is done, or when
 * the names cannot be made durable. */
static epctx_status disk_change(disk *d, epctx_io_file *file, epctx_overwrite overwrite, bool put,
                                epctx_error *error) {
    disk_writer *w = (disk_writer *)file->handle;
    epctx_status status;
    if (disk_fails(d, error)) return EPCTX_ERR_IO;
    status = disk_hold(d, file, overwrite, error);
    if (status != EPCTX_OK) return status;
    if (put)
        disk_put(d, file->path, w->data, w->size);
    else if (w->existed)
        disk_take_away(d, disk_find(d, file->path));
    w->changed = true;
    return disk_fails(d, error) ? EPCTX_ERR_IO : EPCTX_OK;
}

static epctx_status disk_commit(void *user, epctx_io_file *file, epctx_overwrite overwrite,
                                epctx_error *error) {
    return disk_change((disk *)user, file, overwrite, true, error);
}

static epctx_status disk_clear(void *user, epctx_io_file *file, epctx_overwrite overwrite,
                               epctx_error *error) {
    return disk_change((disk *)user, file, overwrite, false, error);
}

static bool disk_back(void *user, epctx_io_file *file) {
    disk *d = (disk *)user;
    disk_writer *w = (disk_writer *)file->handle;
    char name[200] = "/d/";
    if (w->changed && w->existed) disk_put(d, file->path, w->old, w->old_size);
    if (w->changed && !w->existed && disk_find(d, file->path) != NULL)
        disk_take_away(d, disk_find(d, file->path));
    strcat(name, file->kept);
    if (file->kept[0] != '\0' && disk_find(d, name) != NULL) disk_take_away(d, disk_find(d, name));
    return true;
}

/* A file, or a lock, which has no writer. */
static void disk_close(void *user, epctx_io_file *file) {
    disk *d = (disk *)user;
    disk_writer *w = (disk_writer *)file->handle;
    char path[200] = "/d/";
    disk_file *second = disk_find(d, strcat(path, file->second));
    if (w == NULL) {
        d->locks--;
        return;
    }
    if (second != NULL) disk_take_away(d, second);
    d->writers--;
    free(w->data);
    free(w->old);
    free(w);
    file->handle = NULL;
}

static epctx_status disk_second(void *user, epctx_io_file *file, const char *name,
                                epctx_error *error) {
    disk *d = (disk *)user;
    disk_writer *w = (disk_writer *)file->handle;
    char path[200] = "/d/";
    if (disk_fails(d, error)) return EPCTX_ERR_IO;
    strcat(path, name);
    if (disk_find(d, path) != NULL) return epctx_fail(error, EPCTX_ERR_EXISTS, "'%s' exists", name);
    disk_put(d, path, w->data, w->size);
    strcpy(file->second, name);
    return EPCTX_OK;
}

static epctx_status disk_remove(void *user, const char *root, const char *name,
                                epctx_error *error) {
    disk *d = (disk *)user;
    char path[200];
    disk_file *f = (disk_path(root, name, path), disk_find(d, path));
    if (disk_fails(d, error)) return EPCTX_ERR_IO;
    if (f == NULL) return disk_missing(path, error);
    disk_take_away(d, f);
    return EPCTX_OK;
}

static epctx_status disk_link(void *user, const char *root, const char *from, const char *to,
                              epctx_error *error) {
    disk *d = (disk *)user;
    char old[200], made[200];
    const disk_file *f = (disk_path(root, from, old), disk_find(d, old));
    disk_path(root, to, made);
    if (disk_fails(d, error)) return EPCTX_ERR_IO;
    if (f == NULL) return disk_missing(old, error);
    if (disk_find(d, made) != NULL) return epctx_fail(error, EPCTX_ERR_EXISTS, "'%s' exists", made);
    disk_put(d, made, f->data, f->size);
    return EPCTX_OK;
}

static epctx_status disk_list(void *user, const char *folder,
                              bool (*name_fn)(void *state, const char *name), void *state,
                              epctx_error *error) {
    disk *d = (disk *)user;
    bool now = disk_now(d);
    size_t count = now && d->fault == DISK_SHORT ? d->count / 2 : d->count;
    if (now && d->fault == DISK_FAILS)
        return epctx_fail(error, EPCTX_ERR_IO, "the injected failure");
    if (!disk_is_folder(folder)) return disk_missing(folder, error);
    for (size_t i = 0; i < count; i++)
        if (!name_fn(state, d->files[i].path + 3)) break;
    return EPCTX_OK;
}

static epctx_status disk_lock(void *user, const char *root, const char *name, epctx_io_file *lock,
                              epctx_error *error) {
    disk *d = (disk *)user;
    char path[200];
    memset(lock, 0, sizeof *lock);
    if (disk_fails(d, error)) return EPCTX_ERR_IO;
    disk_path(root, name, path);
    for (int i = 0; i < d->locks; i++)
        if (strcmp(d->locked[i], path) == 0) abort(); /* one process waits for itself */
    if (d->locks == 8) abort();
    strcpy(d->locked[d->locks++], path);
    return EPCTX_OK;
}

DISK_UNUSED static epctx_io disk_io(disk *d) {
    epctx_io io;
    memset(&io, 0, sizeof io);
    io.user = d;
    io.map_fn = disk_map;
    io.unmap_fn = disk_unmap;
    io.stat_fn = disk_stat;
    io.canonical_fn = disk_canonical;
    io.create_fn = disk_create;
    io.write_fn = disk_write;
    io.sync_fn = disk_sync;
    io.commit_fn = disk_commit;
    io.back_fn = disk_back;
    io.close_fn = disk_close;
    io.clear_fn = disk_clear;
    io.remove_fn = disk_remove;
    io.second_fn = disk_second;
    io.link_fn = disk_link;
    io.list_fn = disk_list;
    io.lock_fn = disk_lock;
    return io;
}

#endif
