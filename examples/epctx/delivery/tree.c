/* tree.c - what is in a folder and in those below it. */
#define _XOPEN_SOURCE 700

#include "tree.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum { DEEPEST = 64 };

typedef struct reader {
    tree *out;
    size_t room;
    size_t root; /* bytes of the folder's name and of the separator behind it */
    epctx_arena *arena;
    epctx_error *error;
} reader;

/* What a link is: a file when it leads to one in the folder. */
static void look_at_link(const reader *r, tree_entry *entry) {
    const epctx_io *io = epctx_io_files();
    char path[EPCTX_PATH_MAX];
    epctx_file_info info;
    entry->kind = TREE_LINK;
    if (epctx_path_find(io, epctx_str_of(r->out->folder), epctx_str_of(entry->name),
                        cli_path_flags(), path, sizeof path, NULL) != EPCTX_OK ||
        io->stat_fn(io->user, path, &info, NULL) != EPCTX_OK || info.kind != EPCTX_FILE_REGULAR)
        return;
    entry->kind = TREE_FILE;
    entry->link = true;
    entry->size = info.size;
}

static epctx_status add(reader *r, const char *path, tree_entry **added) {
    tree *out = r->out;
    struct stat info;
    tree_entry *entry;
    if (out->count == r->room) {
        size_t room = r->room * 2 + 32;
        tree_entry *more = (tree_entry *)epctx_arena_array(r->arena, room, sizeof *more);
        if (more == NULL) return cli_no_memory(r->error);
        if (out->count > 0) memcpy(more, out->entries, out->count * sizeof *more);
        out->entries = more;
        r->room = room;
    }
    entry = &out->entries[out->count++];
    memset(entry, 0, sizeof *entry);
    entry->path = path;
    entry->name = path + r->root;
    entry->kind = TREE_OTHER;
    *added = entry;
    if (lstat(path, &info) != 0) { /* a folder that may be listed, but not entered */
        entry->kind = TREE_UNREADABLE;
        return EPCTX_OK;
    }
    if (S_ISREG(info.st_mode)) {
        entry->kind = TREE_FILE;
        entry->size = (uint64_t)info.st_size;
    } else if (S_ISDIR(info.st_mode)) {
        entry->kind = TREE_FOLDER;
    } else if (S_ISLNK(info.st_mode)) {
        look_at_link(r, entry);
    }
    return EPCTX_OK;
}

static epctx_status read_folder(reader *r, const char *folder, int depth, bool *readable) {
    DIR *dir = depth > 0 ? opendir(folder) : NULL;
    const struct dirent *found;
    epctx_status status = EPCTX_OK;
    *readable = dir != NULL;
    if (dir == NULL) return EPCTX_OK;
    while (status == EPCTX_OK && (found = readdir(dir)) != NULL) {
        size_t size = strlen(folder), room = size + strlen(found->d_name) + 2;
        char *path;
        tree_entry *entry = NULL;
        size_t at;
        bool below = true;
        if (strcmp(found->d_name, ".") == 0 || strcmp(found->d_name, "..") == 0) continue;
        path = (char *)epctx_arena_alloc(r->arena, room);
        if (path == NULL) {
            status = cli_no_memory(r->error);
            break;
        }
        snprintf(path, room, "%s%s%s", folder, folder[size - 1] == '/' ? "" : "/", found->d_name);
        status = add(r, path, &entry);
        at = r->out->count - 1;
        if (status == EPCTX_OK && entry->kind == TREE_FOLDER)
            status = read_folder(r, path, depth - 1, &below);
        if (!below) r->out->entries[at].kind = TREE_UNREADABLE;
    }
    closedir(dir);
    return status;
}

static int compare(const void *a, const void *b) {
    return strcmp(((const tree_entry *)a)->name, ((const tree_entry *)b)->name);
}

epctx_status tree_read(tree *out, const char *folder, epctx_arena *arena, epctx_error *error) {
    reader r;
    bool readable = false;
    size_t size = strlen(folder);
    epctx_error_clear(error);
    memset(out, 0, sizeof *out);
    memset(&r, 0, sizeof r);
    out->folder = folder;
    r.out = out;
    r.root = size + (size > 0 && folder[size - 1] != '/');
    r.arena = arena;
    r.error = error;
    errno = 0;
    if (size > 0 && read_folder(&r, folder, DEEPEST, &readable) != EPCTX_OK) return error->status;
    if (!readable)
        return epctx_fail(error, EPCTX_ERR_IO, "%s: cannot read this folder: %s", folder,
                          strerror(errno));
    if (out->count > 0) qsort(out->entries, out->count, sizeof *out->entries, compare);
    return EPCTX_OK;
}

/* The next part of a path; "" and "." are passed over. */
static epctx_str next_part(epctx_str *rest) {
    epctx_str part = epctx_str_of("");
    while (rest->size > 0 && (part.size == 0 || epctx_str_is(part, ".")))
        part = epctx_str_cut(rest, '/');
    return epctx_str_is(part, ".") ? epctx_str_of("") : part;
}

static bool same_path(epctx_str a, epctx_str b) {
    epctx_str x, y;
    do {
        x = next_part(&a);
        y = next_part(&b);
    } while (x.size > 0 && epctx_str_eq(x, y));
    return x.size == 0 && y.size == 0;
}

const tree_entry *tree_find(const tree *t, epctx_str name) {
    size_t i;
    for (i = 0; i < t->count; i++)
        if (same_path(name, epctx_str_of(t->entries[i].name))) return &t->entries[i];
    return NULL;
}

bool tree_is_folder(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

bool tree_ends(const char *name, const char *end) {
    size_t size = strlen(name), tail = strlen(end);
    return size > tail && strcasecmp(name + size - tail, end) == 0;
}
