/* needs.c - every file that a model needs. */
#include "needs.h"

/* What is known of a file besides. */
typedef struct needs_extent {
    const char *by; /* who refers to it, for messages; NULL: the model */
    uint64_t end;   /* how many bytes it must have */
} needs_extent;

typedef struct needs_work {
    const epctx_io *io; /* NULL: files are only named */
    epctx_arena *arena;
    epctx_error *error;
    uint32_t flags;      /* of paths */
    const char *folder;  /* of the model; NULL: unknown */
    epctx_list files;    /* epctx_dependency */
    epctx_list extents;  /* of each */
    epctx_map places[2]; /* names in the folder of contexts, and in the model's -> position */
    bool same;           /* the two folders are one, and so are the maps: the first */
} needs_work;

static epctx_dependency *needs_at(const needs_work *n, size_t i) {
    return (epctx_dependency *)n->files.items + i;
}

static needs_extent *needs_extent_at(const needs_work *n, size_t i) {
    return (needs_extent *)n->extents.items + i;
}

/* -- the list -- */

static epctx_status needs_append(needs_work *n, const epctx_dependency *file, epctx_map *map) {
    epctx_dependency *to;
    needs_extent *extent;
    if (map != NULL) OPS_TRY(ops_put(map, file->name, (uint32_t)n->files.count, n->error));
    OPS_TRY(ops_add(&n->extents, n->arena, sizeof *extent, &extent, n->error));
    OPS_TRY(ops_add(&n->files, n->arena, sizeof *to, &to, n->error));
    *to = *file;
    return EPCTX_OK;
}

/* A file to which `by` refers, in the folder of `like`, which tells who names that one. */
static epctx_status needs_companion(needs_work *n, const epctx_dependency *like, epctx_str name,
                                    const char *by, uint64_t end) {
    epctx_map *map = &n->places[!n->same && like->folder == n->folder];
    uint32_t at = epctx_map_get(map, name);
    if (at == EPCTX_MAP_NONE) {
        epctx_dependency file = *like;
        const char *copy = epctx_arena_copy(n->arena, name);
        if (copy == NULL) return ops_nomem(n->arena, n->error);
        file.use = EPCTX_USE_COMPANION;
        file.name = epctx_str_of(copy);
        file.path = file.problem = NULL;
        file.size = file.users = 0;
        at = (uint32_t)n->files.count;
        OPS_TRY(needs_append(n, &file, map));
    }
    needs_at(n, at)->users++;
    if (like->required) needs_at(n, at)->required = true;
    needs_extent_at(n, at)->by = by;
    if (end > needs_extent_at(n, at)->end) needs_extent_at(n, at)->end = end;
    return EPCTX_OK;
}

/* Why a file is unusable, and who wants it. */
static epctx_status needs_problem(const needs_work *n, epctx_dependency *file, const char *by,
                                  const char *why) {
    const epctx_str parts[4] = {epctx_str_of(why), epctx_str_of("; "), epctx_str_of(by),
                                epctx_str_of(" refers to it")};
    epctx_str text = parts[0];
    size_t i;
    for (i = 1; i < 4 && by != NULL; i++)
        OPS_TRY(ops_join(n->arena, text, parts[i], &text, n->error));
    file->path = NULL;
    file->problem = epctx_arena_copy(n->arena, text);
    return file->problem != NULL ? EPCTX_OK : ops_nomem(n->arena, n->error);
}

/* Finds what the model does not name. */
static epctx_status needs_look(const needs_work *n, epctx_dependency *file, const char *by) {
    char path[EPCTX_PATH_MAX];
    epctx_file_info info;
    epctx_error why;
    epctx_error_clear(&why);
    if (file->folder == NULL)
        file->status =
            epctx_fail(&why, EPCTX_ERR_PATH, "the model came from memory: the folder is not known");
    else if (n->io == NULL)
        file->status = epctx_path_check(file->name, &why);
    else
        file->status = epctx_path_find(n->io, epctx_str_of(file->folder), file->name, n->flags,
                                       path, sizeof path, &why);
    if (file->status == EPCTX_OK && n->io != NULL) {
        file->status = n->io->stat_fn(n->io->user, path, &info, &why);
        file->size = info.size;
        file->path = epctx_arena_copy(n->arena, epctx_str_of(path));
        if (file->path == NULL) return ops_nomem(n->arena, n->error);
    }
    return file->status == EPCTX_OK ? EPCTX_OK : needs_problem(n, file, by, why.message);
}

/* A file that ends before what is needed of it cannot be used. */
static epctx_status needs_measure(const needs_work *n, epctx_dependency *file,
                                  const needs_extent *extent) {
    epctx_error why;
    if (file->path == NULL || file->size >= extent->end) return EPCTX_OK;
    epctx_error_clear(&why);
    file->status = epctx_fail(&why, EPCTX_ERR_CONTEXT, "'%S' has %u bytes, but %s needs %u of it",
                              &file->name, file->size, extent->by, extent->end);
    return needs_problem(n, file, NULL, why.message);
}

/* Looks for all files from the number `first` on, and compares the sizes of all. */
static epctx_status needs_find(needs_work *n, size_t first, epctx_dependency **out, size_t *count) {
    size_t i;
    for (i = 0; i < n->files.count; i++) {
        const needs_extent *extent = needs_extent_at(n, i);
        if (i >= first) OPS_TRY(needs_look(n, needs_at(n, i), extent->by));
        OPS_TRY(needs_measure(n, needs_at(n, i), extent));
    }
    *out = (epctx_dependency *)n->files.items;
    *count = n->files.count;
    return EPCTX_OK;
}

/* -- what binaries refer to -- */

/* "model.bin" of "model.xml". */
static epctx_status needs_beside(const needs_work *n, epctx_str binary, epctx_str *name) {
    char buffer[EPCTX_PATH_MAX];
    OPS_TRY(epctx_profile_fill_name(BINARY_BESIDE, NULL, NULL, epctx_path_file(binary), buffer,
                                    sizeof buffer, n->error));
    return ops_join(n->arena, epctx_path_folder(binary), epctx_str_of(buffer), name, n->error);
}

/* `binary`: its name in the folder of `named`; empty: it is embedded. */
static epctx_status needs_of_parts(needs_work *n, const epctx_dependency *named, epctx_str binary,
                                   const binary_need *parts, size_t count) {
    static const char by[] = "the context binary";
    epctx_dependency weights = *named;
    size_t i;
    weights.folder = n->folder;
    weights.attribute = NEEDS_WEIGHTS;
    for (i = 0; i < count; i++) {
        const uint64_t offset = parts[i].offset, size = parts[i].size;
        const uint64_t end = size > UINT64_MAX - offset ? UINT64_MAX : offset + size;
        epctx_str name = parts[i].location;
        if (!epctx_str_is(name, BINARY_BESIDE)) {
            OPS_TRY(needs_companion(n, &weights, name, by, end));
        } else if (binary.size > 0) {
            OPS_TRY(needs_beside(n, binary, &name));
            OPS_TRY(needs_companion(n, named, name, by, end));
        }
    }
    return EPCTX_OK;
}

static epctx_status needs_of_bytes(needs_work *n, const epctx_dependency *named, epctx_str binary,
                                   epctx_span bytes) {
    binary_need *parts;
    size_t count;
    OPS_TRY(binary_read_needs(bytes, n->arena, &parts, &count, n->error));
    return needs_of_parts(n, named, binary, parts, count);
}

/* The binaries in files. */
static epctx_status needs_of_contexts(needs_work *n, size_t count) {
    size_t i;
    for (i = 0; i < count && n->io != NULL; i++) {
        const epctx_dependency file = *needs_at(n, i); /* the list moves as it grows */
        epctx_mapping mapping;
        epctx_span bytes;
        epctx_status status;
        if (file.use != EPCTX_USE_CONTEXT || file.path == NULL ||
            n->io->map_fn(n->io->user, NULL, file.path, false, &mapping, NULL) != EPCTX_OK)
            continue;
        bytes.data = mapping.data;
        bytes.size = mapping.size;
        status = needs_of_bytes(n, &file, file.name, bytes);
        n->io->unmap_fn(n->io->user, &mapping);
        OPS_TRY(status);
    }
    return EPCTX_OK;
}

/* The binaries in nodes. */
static epctx_status needs_of_embedded(needs_work *n, const epctx_model *model) {
    epctx_walk walk;
    epctx_node_view view;
    epctx_epnode node;
    epctx_dependency named;
    memset(&named, 0, sizeof named);
    epctx_walk_begin(&walk, model);
    while (epctx_walk_epnode(&walk, &view)) {
        epctx_span bytes;
        if (!epctx_view_is_epnode(&view) ||
            epctx_view_read_epnode(&view, &node, NULL) != EPCTX_OK || node.embed_mode != 1)
            continue;
        named.node = node.name;
        named.required = !walk.in_training;
        bytes.data = (const uint8_t *)node.ep_cache_context.data;
        bytes.size = node.ep_cache_context.size;
        OPS_TRY(needs_of_bytes(n, &named, epctx_str_of(""), bytes));
    }
    return EPCTX_OK;
}

/* -- what source models refer to -- */

static void *needs_alloc(void *user, size_t size) {
    return epctx_arena_alloc((epctx_arena *)user, size);
}

static void needs_free(void *user, void *memory) {
    (void)user; /* with the arena */
    (void)memory;
}

/* The external data of one. A source that is no model is told by whoever reads it. */
static epctx_status needs_of_source(needs_work *n, const epctx_dependency *source) {
    const epctx_allocator in_arena = {n->arena, needs_alloc, needs_free};
    epctx_dependency *files = NULL;
    epctx_open_opts open;
    epctx_model model;
    epctx_error ignored;
    epctx_status status;
    size_t count = 0, i;
    memset(&open, 0, sizeof open);
    open.io = n->io;
    open.allocator = &in_arena;
    open.path_flags = n->flags;
    if (epctx_model_open_file(&model, source->path, &open, &ignored) != EPCTX_OK)
        return ignored.status == EPCTX_ERR_NOMEM ? ops_nomem(n->arena, n->error) : EPCTX_OK;
    status = epctx_model_files(&model, NULL, n->arena, &files, &count, n->error);
    for (i = 0; i < count && status == EPCTX_OK; i++) {
        epctx_str name;
        if (files[i].use != EPCTX_USE_INITIALIZERS || !files[i].required) continue;
        status =
            ops_join(n->arena, epctx_path_folder(source->name), files[i].name, &name, n->error);
        if (status == EPCTX_OK) status = needs_companion(n, source, name, "the source model", 0);
    }
    epctx_model_close(&model);
    return status;
}

static epctx_status needs_of_sources(needs_work *n, size_t count) {
    size_t i;
    for (i = 0; i < count && n->io != NULL; i++) {
        const epctx_dependency file = *needs_at(n, i);
        if (file.use == EPCTX_USE_SOURCE_MODEL && file.required && file.path != NULL)
            OPS_TRY(needs_of_source(n, &file));
    }
    return EPCTX_OK;
}

/* -- all -- */

static void needs_begin(needs_work *n, const epctx_io *io, epctx_arena *arena, epctx_error *error) {
    memset(n, 0, sizeof *n);
    n->io = io;
    n->arena = arena;
    n->error = error;
    epctx_map_init(&n->places[0], arena);
    epctx_map_init(&n->places[1], arena);
}

/* Whoever needs a file opens it: what a file is does not tell whether it can be read. Files only:
 * an application's buffers may be asked once. */
static epctx_status needs_open(const needs_work *n, epctx_dependency *file) {
    epctx_mapping mapping;
    epctx_error why;
    if (file->status != EPCTX_OK || file->path == NULL || n->io == NULL ||
        n->io->map_fn != epctx_io_files()->map_fn)
        return EPCTX_OK;
    epctx_error_clear(&why);
    if (n->io->map_fn(n->io->user, NULL, file->path, false, &mapping, &why) == EPCTX_OK) {
        n->io->unmap_fn(n->io->user, &mapping);
        return EPCTX_OK;
    }
    if (why.status != EPCTX_ERR_IO) return EPCTX_OK; /* more than this process can map */
    file->status = EPCTX_ERR_IO;
    return needs_problem(n, file, NULL, why.message);
}

epctx_status needs_of_model(const epctx_model *model, const epctx_check_opts *opts,
                            epctx_arena *arena, epctx_dependency **out, size_t *count,
                            epctx_error *error) {
    static const epctx_check_opts defaults;
    const epctx_str path = epctx_str_of(model->path);
    epctx_dependency *named = NULL;
    needs_work n;
    size_t named_count = 0, i;
    OPS_TRY(epctx_model_files(model, opts, arena, &named, &named_count, error));
    opts = opts != NULL ? opts : &defaults;
    needs_begin(&n, opts->no_files ? NULL : epctx_model_io(model), arena, error);
    n.flags = model->path_flags | opts->path_flags;
    n.same = opts->context_file_path == NULL;
    if (path.size > 0) {
        n.folder = epctx_arena_copy(arena, epctx_path_folder(path));
        if (n.folder == NULL) return ops_nomem(arena, error);
    }
    for (i = 0; i < named_count; i++) {
        const bool own = named[i].use == EPCTX_USE_INITIALIZERS;
        OPS_TRY(needs_append(&n, &named[i], own ? NULL : &n.places[0]));
    }
    OPS_TRY(needs_of_contexts(&n, named_count));
    OPS_TRY(needs_of_embedded(&n, model));
    OPS_TRY(needs_of_sources(&n, named_count));
    OPS_TRY(needs_find(&n, named_count, out, count));
    for (i = 0; i < *count; i++) OPS_TRY(needs_open(&n, &(*out)[i]));
    return EPCTX_OK;
}

/* Whether a node of this name is of the EP. */
static bool needs_is_of(const epctx_model *model, epctx_str node, const char *ep) {
    epctx_walk walk;
    epctx_node_view view;
    epctx_walk_begin(&walk, model);
    while (epctx_walk_epnode(&walk, &view))
        if (epctx_str_eq(view.name, node) &&
            epctx_str_is(epctx_view_node_attr_str(&view, "source"), ep))
            return true;
    return false;
}

epctx_status needs_to_stamp(const epctx_model *model, const char *ep, epctx_arena *arena,
                            const char *const **out, epctx_error *error) {
    epctx_dependency *files = NULL;
    const char **names;
    size_t count = 0, used = 0, i;
    OPS_TRY(needs_of_model(model, NULL, arena, &files, &count, error));
    OPS_TRY(ops_array(arena, count + 1, sizeof *names, &names, error));
    for (i = 0; i < count; i++) {
        const epctx_dependency *file = &files[i];
        const bool weights = strcmp(file->attribute, NEEDS_WEIGHTS) == 0;
        const bool source = strcmp(file->attribute, "onnx_model_filename") == 0;
        if (!file->required || !(weights || (source && file->path != NULL)) ||
            !needs_is_of(model, file->node, ep))
            continue;
        names[used] = epctx_arena_copy(arena, file->name);
        if (names[used++] == NULL) return ops_nomem(arena, error);
    }
    *out = names;
    return EPCTX_OK;
}

/* Whether a stamp has a line `needs` or, if it counts, `data` for a file. */
static bool needs_is_stamped(epctx_str stamp, epctx_str name, bool data) {
    epctx_stamp_line line;
    char plain[EPCTX_PATH_MAX];
    while (epctx_stamp_next_line(&stamp, &line))
        if ((epctx_str_is(line.word, "needs") || (data && epctx_str_is(line.word, "data"))) &&
            epctx_stamp_plain(line.text, plain, sizeof plain) && epctx_str_is(name, plain))
            return true;
    return false;
}

const char *needs_unstamped(const epctx_model *model, const char *ep, bool beside,
                            epctx_arena *arena) {
    epctx_dependency *files = NULL;
    epctx_error ignored;
    epctx_str stamp;
    size_t count = 0, i;
    if (!epctx_model_get_stamp(model, epctx_str_of(ep), &stamp) ||
        needs_of_model(model, NULL, arena, &files, &count, &ignored) != EPCTX_OK)
        return NULL;
    for (i = 0; i < count; i++)
        if (files[i].required && strcmp(files[i].attribute, NEEDS_WEIGHTS) == 0 &&
            needs_is_of(model, files[i].node, ep) &&
            !needs_is_stamped(stamp, files[i].name, beside))
            return epctx_arena_copy(arena, files[i].name);
    return NULL;
}

/* -- a binary on its own -- */

epctx_status needs_of_binary(const char *file, const binary_facts *facts, epctx_arena *arena,
                             epctx_dependency **out, size_t *count, epctx_error *error) {
    const epctx_str path = epctx_str_of(file);
    epctx_dependency named;
    needs_work n;
    epctx_error_clear(error);
    needs_begin(&n, epctx_io_files(), arena, error);
    n.same = true;
    n.folder = epctx_arena_copy(arena, epctx_path_folder(path));
    if (n.folder == NULL) return ops_nomem(arena, error);
    memset(&named, 0, sizeof named);
    named.attribute = NEEDS_WEIGHTS;
    named.required = true;
    named.folder = n.folder;
    OPS_TRY(needs_of_parts(&n, &named, epctx_path_file(path), facts->needs, facts->need_count));
    return needs_find(&n, 0, out, count);
}
