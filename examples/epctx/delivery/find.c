/* find.c - finds the deliveries in a folder, and has each judged. */
#include "delivery_internal.h"

#include <string.h>

static bool has_name(const tree_entry *entry, const char *name) {
    return strcmp(epctx_path_file(epctx_str_of(entry->name)).data, name) == 0;
}

static bool is_named(const tree_entry *entry, const char *name) {
    return entry->kind == TREE_FILE && has_name(entry, name);
}

/* The shared assets of the innermost model package that a file is in, or NULL. */
static const char *find_assets(const tree *files, const tree_entry *file, delivery *d) {
    epctx_str best = epctx_str_of(NULL), folder;
    size_t i;
    for (i = 0; i < files->count; i++) {
        const char *path = files->entries[i].path;
        if (!is_named(&files->entries[i], "manifest.json")) continue;
        folder = epctx_path_folder(epctx_str_of(path));
        if (strncmp(file->path, path, folder.size) == 0 && folder.size > best.size) best = folder;
    }
    if (best.size == 0) return NULL;
    best.data = epctx_arena_copy(d->arena, best);
    return best.data != NULL ? delivery_join(d, best.data, epctx_str_of("shared_assets")) : NULL;
}

typedef void (*judge_fn)(delivery *d, const char *file);

/* The rules for the folder of a file, if that makes it a delivery. */
static judge_fn judge_of(const tree_entry *entry) {
    if (is_named(entry, "genai_config.json")) return genai_lint;
    return is_named(entry, "manifest.json") ? package_lint : NULL;
}

/* Judges the folder of a file that makes it a delivery. */
static epctx_status run_judge(delivery *d, const tree *all, const tree_entry *file,
                              epctx_error *error) {
    const epctx_str folder = epctx_path_folder(epctx_str_of(file->path));
    const char *name = epctx_arena_copy(d->arena, folder.size > 0 ? folder : epctx_str_of("."));
    tree files;
    if (name == NULL) return epctx_fail(error, EPCTX_ERR_NOMEM, "out of memory");
    if (tree_read(&files, name, d->arena, error) != EPCTX_OK) return error->status;
    d->files = &files;
    d->assets = find_assets(all, file, d);
    judge_of(file)(d, file->path);
    d->files = NULL;
    return EPCTX_OK;
}

static bool is_file(const char *path) {
    const epctx_io *io = epctx_io_files();
    epctx_file_info info;
    return path != NULL && io->stat_fn(io->user, path, &info, NULL) == EPCTX_OK &&
           info.kind == EPCTX_FILE_REGULAR;
}

static bool is_there(delivery *d, const char *folder, const char *name) {
    return is_file(delivery_join(d, folder, epctx_str_of(name)));
}

/* The file's own folder first; a package has others inside. */
const char *delivery_around(const char *file, epctx_arena *arena) {
    epctx_str folder = epctx_path_folder(epctx_str_of(file));
    bool own = true;
    delivery d;
    memset(&d, 0, sizeof d);
    d.arena = arena;
    if (tree_ends(file, ".onnx") || !is_file(file)) return NULL;
    for (;; own = false) {
        const char *name = epctx_arena_copy(arena, folder.size > 0 ? folder : epctx_str_of("."));
        if (name == NULL) return NULL;
        if ((own && is_there(&d, name, "genai_config.json")) || is_there(&d, name, "manifest.json"))
            return name;
        if (folder.size == 0) return NULL;
        while (folder.size > 1 && folder.data[folder.size - 1] == '/') folder.size--;
        while (folder.size > 0 && folder.data[folder.size - 1] != '/') folder.size--;
        if (folder.size == 1 && folder.data[0] == '/') return NULL;
        while (folder.size > 1 && folder.data[folder.size - 1] == '/') folder.size--;
    }
}

delivery_paths *delivery_read_paths(const tree *files, epctx_arena *arena) {
    epctx_error error;
    delivery d;
    size_t i;
    memset(&d, 0, sizeof d);
    d.arena = arena;
    for (i = 0; i < files->count; i++)
        if (judge_of(&files->entries[i]) != NULL)
            (void)run_judge(&d, files, &files->entries[i], &error);
    return d.paths;
}

/* What would make its folder a delivery, but cannot be read as a file. */
static bool is_no_file(findings *out, const tree_entry *entry) {
    if (entry->kind == TREE_FILE ||
        (!has_name(entry, "genai_config.json") && !has_name(entry, "manifest.json")))
        return false;
    if (entry->kind == TREE_LINK)
        findings_alone(out, entry->path, RULE_LINK, "a link that leads to no file in the folder");
    else
        findings_alone(out, entry->path, RULE_UNREADABLE, "is not a regular file");
    return true;
}

bool delivery_lint(findings *out, const tree *files) {
    bool any = false;
    size_t i;
    for (i = 0; i < files->count; i++) {
        const tree_entry *entry = &files->entries[i];
        epctx_arena arena;
        epctx_error error;
        delivery d;
        if (is_no_file(out, entry)) any = true;
        if (judge_of(entry) == NULL) continue;
        any = true;
        epctx_arena_init(&arena, NULL);
        memset(&d, 0, sizeof d);
        d.out = out;
        d.arena = &arena;
        findings_file(out, entry->path);
        if (run_judge(&d, files, entry, &error) != EPCTX_OK)
            findings_say(out, RULE_UNREADABLE, error.message);
        findings_file_end(out);
        epctx_arena_free(&arena);
    }
    return any;
}
