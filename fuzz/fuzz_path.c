/*
 * Names from a model, against a tree of files and links in memory: what is resolved and mapped lies
 * in the model's folder, and what lies there is found.
 *
 * The first byte chooses how the folder is spelled and the flags; the rest is the name.
 */
#include "fuzz.h"

#define FOLDER "/hub/snapshots/1"

/* `link` is where a link points to. */
static const struct entry {
    const char *path;
    epctx_file_kind kind;
    const char *link;
} tree[] = {
    {"/", EPCTX_FILE_FOLDER, NULL},
    {"/hub", EPCTX_FILE_FOLDER, NULL},
    {"/hub/snapshots", EPCTX_FILE_FOLDER, NULL},
    {FOLDER, EPCTX_FILE_FOLDER, NULL},
    {FOLDER "/a.bin", EPCTX_FILE_REGULAR, NULL},
    {FOLDER "/a..b", EPCTX_FILE_REGULAR, NULL},
    {FOLDER "/a\\b", EPCTX_FILE_REGULAR, NULL},
    {FOLDER "/pipe", EPCTX_FILE_OTHER, NULL},
    {FOLDER "/sub", EPCTX_FILE_FOLDER, NULL},
    {FOLDER "/sub/b.bin", EPCTX_FILE_REGULAR, NULL},
    {FOLDER "/sub/up", EPCTX_FILE_NONE, ".."},
    {FOLDER "/sub/far", EPCTX_FILE_NONE, "../.."},
    {FOLDER "/in", EPCTX_FILE_NONE, "sub/b.bin"},
    {FOLDER "/out", EPCTX_FILE_NONE, "/secret"},
    {FOLDER "/near", EPCTX_FILE_NONE, "../10/z"},
    {FOLDER "/blob", EPCTX_FILE_NONE, "../../blobs/x"},
    {FOLDER "/deep", EPCTX_FILE_NONE, "../../blobs/d/y"},
    {FOLDER "/loop", EPCTX_FILE_NONE, "loop"},
    {"/hub/snapshots/10", EPCTX_FILE_FOLDER, NULL}, /* the folder's name with more behind it */
    {"/hub/snapshots/10/z", EPCTX_FILE_REGULAR, NULL},
    {"/hub/blobs", EPCTX_FILE_FOLDER, NULL},
    {"/hub/blobs/x", EPCTX_FILE_REGULAR, NULL},
    {"/hub/blobs/d", EPCTX_FILE_FOLDER, NULL},
    {"/hub/blobs/d/y", EPCTX_FILE_REGULAR, NULL},
    {"/secret", EPCTX_FILE_FOLDER, NULL},
    {"/secret/key", EPCTX_FILE_REGULAR, NULL},
};

static const struct entry *entry_at(const char *path) {
    size_t i;
    for (i = 0; i < sizeof tree / sizeof tree[0]; i++)
        if (strcmp(tree[i].path, path) == 0) return &tree[i];
    return NULL;
}

/* As POSIX walks a path; relative ones start in FOLDER. NULL: nothing there. */
static const struct entry *walk(const char *path) {
    static char todo[3 * EPCTX_PATH_MAX], rest[3 * EPCTX_PATH_MAX];
    char at[EPCTX_PATH_MAX] = FOLDER;
    const struct entry *e = entry_at(FOLDER);
    char *p = todo;
    int links = 0;
    require(strlen(path) < EPCTX_PATH_MAX);
    strcpy(todo, path);
    if (*p == '/') strcpy(at, "/");
    while (e != NULL && *p != '\0') {
        size_t n = strcspn(p, "/"), used = strlen(at);
        char *next = p + n;
        if (n == 0) {
            p++;
            continue;
        }
        e = entry_at(at);
        if (e == NULL || e->kind != EPCTX_FILE_FOLDER) return NULL;
        if (n == 2 && memcmp(p, "..", 2) == 0) {
            *strrchr(at, '/') = '\0';
            if (at[0] == '\0') strcpy(at, "/");
        } else if (n != 1 || *p != '.') {
            if (used + n + 2 > sizeof at) return NULL;
            if (used > 1) at[used++] = '/';
            memcpy(at + used, p, n);
            at[used + n] = '\0';
        }
        e = entry_at(at);
        if (e == NULL) return NULL;
        if (e->link != NULL) {
            if (++links > 400) return NULL; /* more than a name has room for: a loop */
            strcpy(rest, e->link);
            strcat(rest, next);
            strcpy(todo, rest);
            next = todo;
            *strrchr(at, '/') = '\0';
            if (todo[0] == '/') strcpy(at, "/");
        } else if (*next == '/' && e->kind != EPCTX_FILE_FOLDER) {
            return NULL;
        }
        p = next;
        e = entry_at(at);
    }
    return e;
}

static epctx_status tree_stat(void *user, const char *path, epctx_file_info *info,
                              epctx_error *error) {
    const struct entry *e = walk(path);
    (void)user;
    (void)error;
    memset(info, 0, sizeof *info);
    info->kind = e != NULL ? e->kind : EPCTX_FILE_NONE;
    info->size = 4;
    return EPCTX_OK;
}

static epctx_status tree_canonical(void *user, const char *path, char *out, size_t capacity,
                                   epctx_error *error) {
    const struct entry *e = walk(path);
    (void)user;
    if (e == NULL) return epctx_fail(error, EPCTX_ERR_NOT_FOUND, "nothing there");
    require(strlen(e->path) < capacity);
    strcpy(out, e->path);
    return EPCTX_OK;
}

/* `user` gets what was mapped last. */
static epctx_status tree_map(void *user, const char *root, const char *name, bool copy,
                             epctx_mapping *out, epctx_error *error) {
    const struct entry *e;
    char path[EPCTX_PATH_MAX];
    (void)copy;
    require(root != NULL);
    require(epctx_path_join(epctx_str_of(root), epctx_str_of(name), path, sizeof path, error) ==
            EPCTX_OK);
    e = walk(path);
    if (e == NULL) return epctx_fail(error, EPCTX_ERR_NOT_FOUND, "nothing there");
    *(const struct entry **)user = e;
    out->data = (const uint8_t *)"data";
    out->size = 4;
    return EPCTX_OK;
}

static void tree_unmap(void *user, epctx_mapping *mapping) {
    (void)user;
    memset(mapping, 0, sizeof *mapping);
}

static bool allowed(const char *path, bool hub) {
    return strncmp(path, FOLDER "/", sizeof FOLDER) == 0 ||
           (hub && strcmp(path, "/hub/blobs/x") == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const folders[] = {FOLDER, FOLDER "/", "", "./", "sub/..", "sub/up/"};
    const struct entry *mapped = NULL, *expected;
    epctx_io io;
    epctx_str folder, name;
    epctx_mapping mapping;
    epctx_error error;
    epctx_status status;
    uint32_t flags;
    char out[EPCTX_PATH_MAX], joined[2 * EPCTX_PATH_MAX];
    bool inside;
    if (size == 0 || size > 1000) return 0;
    flags = (data[0] & 1) != 0 ? EPCTX_PATH_HUGGING_FACE : 0;
    folder = epctx_str_of(folders[(size_t)(data[0] >> 2) % (sizeof folders / sizeof folders[0])]);
    name.data = (const char *)data + 1;
    name.size = size - 1;
    memset(&io, 0, sizeof io);
    io.user = (void *)&mapped;
    io.stat_fn = tree_stat;
    io.canonical_fn = tree_canonical;
    io.map_fn = tree_map;
    io.unmap_fn = tree_unmap;

    status = epctx_path_map(&io, folder, name, flags, &mapping, out, &error);
    require((status == EPCTX_OK) == (error.message[0] == '\0'));
    require((status == EPCTX_OK) == (mapped != NULL));
    require(mapped == NULL ||
            (allowed(mapped->path, flags != 0) && strcmp(mapped->path, out) == 0));
    if (epctx_path_check(name, &error) != EPCTX_OK) {
        require(status == EPCTX_ERR_PATH);
        return 0;
    }
    /* A harmless name: what is there is found. */
    strcpy(joined, FOLDER "/");
    memcpy(joined + sizeof FOLDER, name.data, name.size);
    joined[sizeof FOLDER + name.size] = '\0';
    expected = walk(joined);
    inside = expected != NULL && expected->kind == EPCTX_FILE_REGULAR &&
             allowed(expected->path, flags != 0);
    require((status == EPCTX_OK) == inside);
    /* Names of outputs can be read back. */
    if (epctx_path_binary(name, epctx_str_of("ep"), out, sizeof out, &error) == EPCTX_OK)
        require(strchr(out, '/') == NULL && epctx_path_check(epctx_str_of(out), NULL) == EPCTX_OK);
    return 0;
}
