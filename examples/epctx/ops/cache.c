/* cache.c - the EPContext model as a cache: used when it is fresh, else compiled, by one
 * process. */
#include "cache.h"
#include "needs.h"

#include <inttypes.h>
#include <stdio.h>

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

/* A context binary that the model needs, or what that refers to, is not there or, where that is not
 * told yet, cut. The first one decides, each is told. */
static bool lacks_file(const epctx_model *model, const epctx_fresh_opts *opts, bool cut,
                       epctx_error *why) {
    epctx_dependency *files;
    epctx_arena arena;
    epctx_error ignored;
    size_t count = 0, i;
    bool found = false;
    epctx_arena_init(&arena, NULL);
    if (needs_of_model(model, NULL, &arena, &files, &count, &ignored) != EPCTX_OK) count = 0;
    for (i = 0; i < count; i++) {
        const bool context = files[i].use == EPCTX_USE_CONTEXT;
        epctx_error one;
        if (!files[i].required || (!context && files[i].use != EPCTX_USE_COMPANION) ||
            (files[i].status != EPCTX_ERR_NOT_FOUND &&
             !(cut && files[i].status == EPCTX_ERR_CONTEXT)))
            continue;
        epctx_error_clear(&one);
        epctx_fail(&one, EPCTX_ERR_NOT_FOUND, "%s: %s%s", model->path,
                   context ? "context binary: " : "", files[i].problem);
        if (!found && why != NULL) *why = one;
        found = true;
        if (opts != NULL && opts->differs_fn != NULL) opts->differs_fn(opts->user, &one);
    }
    epctx_arena_free(&arena);
    return found;
}

/* What a binary refers to and the stamp does not name was not compared. */
static bool is_compared(const epctx_model *model, const char *ep, const epctx_fresh_opts *opts,
                        epctx_error *why) {
    epctx_arena arena;
    const char *name;
    epctx_arena_init(&arena, NULL);
    name = needs_unstamped(model, ep, opts == NULL || opts->source_path == NULL, &arena);
    if (name != NULL)
        epctx_fail(why, EPCTX_ERR_NOT_FOUND,
                   "%s: the build stamp has no hash of '%s', to which the binary refers: it was "
                   "not compared",
                   model->path, name);
    epctx_arena_free(&arena);
    return name == NULL;
}

epctx_freshness epctx_cache_judge(const epctx_model *model, const char *ep,
                                  const epctx_backend *backend, const epctx_fresh_opts *opts,
                                  epctx_error *why) {
    const epctx_freshness verdict = epctx_model_check_fresh(model, ep, backend, opts, why);
    const bool all = opts != NULL && opts->differs_fn != NULL;
    epctx_error lack;
    if (verdict == EPCTX_STALE && !all) return verdict;
    epctx_error_clear(&lack);
    if (!lacks_file(model, opts, verdict != EPCTX_STALE, &lack))
        return verdict == EPCTX_FRESH && !is_compared(model, ep, opts, why) ? EPCTX_FRESH_UNKNOWN
                                                                            : verdict;
    if (verdict != EPCTX_STALE && why != NULL) *why = lack;
    return EPCTX_STALE;
}

/* ---------------------------------------------------------------- generations */

/* Before the stem of the model's name: the files of earlier results, a line each as in a stamp. */
#define KEY_PREFIX "epctx.generations."

enum { EARLIER_MOST = 1024 }; /* files; more stay where they are */

/* A file of an earlier result, as it was written. */
typedef struct earlier_file {
    epctx_str name;
    uint64_t size, hash;
} earlier_file;

/* A folder, as it is read for the files of generations. */
typedef struct folder_work {
    const epctx_io *io;
    char root[EPCTX_PATH_MAX]; /* canonical */
    epctx_str file, stem;      /* the model's name */
    epctx_str key;             /* of its metadata */
    epctx_arena arena;
    epctx_map named;                    /* generations that models name, by number_key */
    earlier_file earlier[EARLIER_MOST]; /* what the model itself says */
    size_t count;
    uint32_t last, last_named; /* the highest numbers */
    epctx_status status;
} folder_work;

/* What the names of its files begin with, for the EPContext model at `path`. */
static epctx_str stem_of(const char *path) {
    const epctx_str file = epctx_path_file(epctx_str_of(path));
    epctx_str stem = file;
    for (; stem.size > 0 && stem.data[stem.size - 1] != '.'; stem.size--) continue;
    stem.size = stem.size > 1 ? stem.size - 1 : file.size;
    return stem;
}

/* The number in "<stem>_gen<number>" and more; 0: it is no such name. */
static uint32_t number_behind(epctx_str stem, epctx_str name) {
    static const char middle[] = "_gen";
    uint64_t number = 0;
    if (name.size < stem.size || memcmp(name.data, stem.data, stem.size) != 0) return 0;
    name.data += stem.size;
    name.size -= stem.size;
    if (!epctx_str_starts(name, middle)) return 0;
    name.data += sizeof middle - 1;
    name.size -= sizeof middle - 1;
    return epctx_str_take_number(&name, &number) && name.size > 0 && number < EPCTX_MAP_NONE
               ? (uint32_t)number
               : 0;
}

static uint32_t number_in(const folder_work *w, epctx_str name) {
    return number_behind(w->stem, name);
}

uint64_t epctx_generation_of(const epctx_model *model, const char *path) {
    const epctx_str stem = stem_of(path);
    epctx_check_opts names_only;
    epctx_dependency *files;
    epctx_arena arena;
    epctx_error ignored;
    uint64_t last = 0;
    size_t count = 0, i;
    memset(&names_only, 0, sizeof names_only);
    names_only.no_files = true;
    epctx_arena_init(&arena, NULL);
    if (epctx_model_files(model, &names_only, &arena, &files, &count, &ignored) != EPCTX_OK)
        count = 0;
    for (i = 0; i < count; i++) {
        const uint32_t number = number_behind(stem, epctx_path_file(files[i].name));
        if (number > last) last = number;
    }
    epctx_arena_free(&arena);
    return last;
}

/* The key of a number, which is in `number`. */
static epctx_str number_key(const uint32_t *number) {
    epctx_str key;
    key.data = (const char *)number;
    key.size = sizeof *number;
    return key;
}

static bool note_file(void *state, const char *name) {
    folder_work *w = (folder_work *)state;
    const uint32_t number = number_in(w, epctx_str_of(name));
    if (number > w->last) w->last = number;
    return true;
}

static void note_number(folder_work *w, uint32_t number) {
    uint32_t *copy;
    if (number > w->last_named) w->last_named = number;
    if (number == 0 || epctx_map_get(&w->named, number_key(&number)) != EPCTX_MAP_NONE) return;
    copy = (uint32_t *)epctx_arena_alloc(&w->arena, sizeof *copy);
    if (copy != NULL) *copy = number;
    if (copy == NULL || epctx_map_put(&w->named, number_key(copy), number) != EPCTX_OK)
        w->status = EPCTX_ERR_NOMEM;
}

static void note_earlier(folder_work *w, epctx_str name, uint64_t size, uint64_t hash) {
    earlier_file *file = &w->earlier[w->count];
    if (w->count == EARLIER_MOST || number_in(w, name) == 0) return;
    file->name.data = epctx_arena_copy(&w->arena, name);
    file->name.size = name.size;
    file->size = size;
    file->hash = hash;
    if (file->name.data == NULL) w->status = EPCTX_ERR_NOMEM;
    w->count += file->name.data != NULL;
}

/* Size and hash of a file in the folder, which is no link. */
static epctx_status hash_file(const folder_work *w, epctx_str name, uint64_t *size,
                              uint64_t *hash) {
    epctx_mapping mapping;
    OPS_TRY(epctx_path_map(w->io, epctx_str_of(w->root), name, 0, &mapping, NULL, NULL));
    *size = mapping.size;
    *hash = epctx_hash(mapping.data, mapping.size, 0);
    w->io->unmap_fn(w->io->user, &mapping);
    return EPCTX_OK;
}

static bool has_stamp(const epctx_model *model) {
    epctx_cursor it =
        epctx_view_fields(epctx_model_read(model).view, EPCTX_FIELD_MODEL_METADATA_PROPS);
    epctx_pair pair;
    while (epctx_next_pair(&it, &pair))
        if (epctx_str_starts(pair.key, EPCTX_BUILD_PREFIX)) return true;
    return false;
}

/* What was written for earlier results: those that the model lists, and for itself. What is not as
 * its stamps say was written by somebody else. */
static void note_own(folder_work *w, const epctx_model *model, const epctx_dependency *files,
                     size_t count) {
    epctx_str text;
    epctx_stamp_line line;
    size_t i;
    if (epctx_model_metadata(model, w->key, &text))
        while (epctx_stamp_next_line(&text, &line))
            note_earlier(w, line.text, line.size, line.hash);
    if (!has_stamp(model) || epctx_model_check_binary(model, NULL, NULL) != EPCTX_OK) return;
    for (i = 0; i < count; i++) {
        uint64_t size, hash;
        if (number_in(w, files[i].name) != 0 &&
            hash_file(w, files[i].name, &size, &hash) == EPCTX_OK)
            note_earlier(w, files[i].name, size, hash);
    }
}

/* The generations that a model of the folder names: one that cannot be read names none. */
static bool note_model(void *state, const char *name) {
    folder_work *w = (folder_work *)state;
    const epctx_str text = epctx_str_of(name), end = epctx_str_of(".onnx");
    char path[EPCTX_PATH_MAX];
    epctx_dependency *files;
    epctx_open_opts open;
    epctx_check_opts names_only;
    epctx_model model;
    epctx_arena arena;
    epctx_error ignored;
    size_t count = 0, i;
    if (text.size <= end.size ||
        memcmp(text.data + text.size - end.size, end.data, end.size) != 0 ||
        epctx_path_join(epctx_str_of(w->root), text, path, sizeof path, &ignored) != EPCTX_OK)
        return true;
    memset(&open, 0, sizeof open);
    memset(&names_only, 0, sizeof names_only);
    open.io = w->io;
    names_only.no_files = true;
    epctx_arena_init(&arena, NULL);
    if (epctx_model_open_file(&model, path, &open, &ignored) == EPCTX_OK &&
        epctx_model_files(&model, &names_only, &arena, &files, &count, &ignored) != EPCTX_OK)
        count = 0;
    for (i = 0; i < count; i++) note_number(w, number_in(w, epctx_path_file(files[i].name)));
    if (epctx_str_eq(text, w->file)) note_own(w, &model, files, count);
    epctx_model_close(&model);
    epctx_arena_free(&arena);
    return w->status == EPCTX_OK;
}

static bool is_named(const folder_work *w, uint32_t number) {
    return epctx_map_get(&w->named, number_key(&number)) != EPCTX_MAP_NONE;
}

/* The generation before the last one that is named: somebody may be about to open it. */
static void keep_before(folder_work *w) {
    uint32_t before = 0;
    size_t i;
    for (i = 0; i < w->count; i++) {
        const uint32_t number = number_in(w, w->earlier[i].name);
        if (number < w->last_named && number > before) before = number;
    }
    note_number(w, before);
}

/* Removes a file that is as it was written; what cannot be removed stays until the next time.
 * Whether it is still there. */
static bool stays(const folder_work *w, const earlier_file *file) {
    uint64_t size, hash;
    if (hash_file(w, file->name, &size, &hash) != EPCTX_OK || size != file->size ||
        hash != file->hash)
        return false;
    return is_named(w, number_in(w, file->name)) ||
           w->io->remove_fn(w->io->user, w->root, file->name.data, NULL) != EPCTX_OK;
}

/* Removes what nobody names, and lists the rest for the next model. */
static epctx_status sweep(const folder_work *w, epctx_generation *out, epctx_error *error) {
    enum { LINE_MOST = EPCTX_NAME_MAX + 48 };
    const size_t most = w->count * LINE_MOST + 1;
    char *lines = (char *)epctx_arena_alloc(&out->arena, most);
    char *key = epctx_arena_copy(&out->arena, w->key);
    epctx_text text;
    size_t i;
    if (lines == NULL || key == NULL) return epctx_fail(error, EPCTX_ERR_NOMEM, "out of memory");
    text = epctx_text_of(lines, most);
    for (i = 0; i < w->count; i++) {
        const earlier_file *file = &w->earlier[i];
        char numbers[64];
        if (!stays(w, file)) continue;
        if (text.size > 0) epctx_text_put_char(&text, '\n');
        snprintf(numbers, sizeof numbers, "data %" PRIu64 " %016" PRIx64 " ", file->size,
                 file->hash);
        epctx_text_put(&text, epctx_str_of(numbers));
        epctx_text_put(&text, file->name);
    }
    out->key = epctx_str_of(key);
    out->earlier = epctx_text_str(&text);
    return EPCTX_OK;
}

/* Lists the folder of `path`. */
static epctx_status look_into(folder_work *w, const char *path, epctx_error *error) {
    const epctx_str folder = epctx_path_folder(epctx_str_of(path));
    char given[EPCTX_PATH_MAX];
    OPS_TRY(epctx_path_join(epctx_str_of(""), folder.size > 0 ? folder : epctx_str_of("."), given,
                            sizeof given, error));
    OPS_TRY(w->io->canonical_fn(w->io->user, given, w->root, sizeof w->root, error));
    if (w->io->list_fn == NULL) return EPCTX_OK;
    OPS_TRY(w->io->list_fn(w->io->user, w->root, note_file, w, error));
    if (w->last > 0) OPS_TRY(w->io->list_fn(w->io->user, w->root, note_model, w, error));
    keep_before(w);
    return w->status == EPCTX_OK ? EPCTX_OK : ops_nomem(&w->arena, error);
}

/* Names of the work, which is zeroed. */
static epctx_status name_work(folder_work *w, const epctx_io *io, const char *path,
                              epctx_error *error) {
    w->io = io;
    w->file = epctx_path_file(epctx_str_of(path));
    w->stem = stem_of(path);
    epctx_map_init(&w->named, &w->arena);
    return ops_join(&w->arena, epctx_str_of(KEY_PREFIX), w->stem, &w->key, error);
}

epctx_status epctx_generation_begin(const epctx_io *io, const char *path, epctx_generation *out,
                                    epctx_error *error) {
    folder_work *w;
    epctx_arena arena;
    epctx_status status;
    epctx_text text;
    epctx_error_clear(error);
    memset(out, 0, sizeof *out);
    epctx_arena_init(&out->arena, NULL);
    epctx_arena_init(&arena, NULL);
    w = (folder_work *)epctx_arena_array(&arena, 1, sizeof *w);
    if (w == NULL) return ops_nomem(&arena, error);
    w->arena = arena;
    status = name_work(w, io, path, error);
    if (status == EPCTX_OK) status = look_into(w, path, error);
    if (status == EPCTX_OK) status = sweep(w, out, error);
    if (status == EPCTX_OK) {
        out->number = (uint64_t)w->last + 1;
        text = epctx_text_of(out->stem, sizeof out->stem);
        epctx_text_put(&text, w->stem);
        epctx_text_put_format(&text, "_gen%u", out->number);
        if (text.cut)
            status = epctx_fail(error, EPCTX_ERR_LIMIT, "'%s': the name is too long", path);
    }
    arena = w->arena;
    epctx_arena_free(&arena);
    if (status != EPCTX_OK) epctx_generation_end(out);
    return status;
}

epctx_status epctx_generation_note(const epctx_generation *generation, epctx_model *model,
                                   epctx_error *error) {
    return generation->earlier.size > 0
               ? epctx_edit_set_metadata(model, generation->key, generation->earlier, error)
               : EPCTX_OK;
}

void epctx_generation_end(epctx_generation *generation) {
    epctx_arena_free(&generation->arena);
    memset(generation, 0, sizeof *generation);
}

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
    verdict = epctx_cache_judge(&c->opened->model, c->backend->source, c->backend, &fresh, why);
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
    epctx_generation next;
    char binary[EPCTX_NAME_MAX + 8];
    epctx_text text;
    epctx_status status = EPCTX_OK;
    memset(&gen, 0, sizeof gen);
    if (c->opts.gen != NULL) gen = *c->opts.gen;
    if (c->opts.generations) {
        OPS_TRY(epctx_generation_begin(c->io, c->path, &next, c->error));
        text = epctx_text_of(binary, sizeof binary);
        epctx_text_put_format(&text, "%s.bin", next.stem);
        gen.binary = binary;
    }
    status = epctx_model_open_file(&source, c->model_path, c->opts.open, c->error);
    gen.lock = lock;
    gen.overwrite = true;
    gen.no_nodes = EPCTX_NO_NODES_ERROR;
    if (status == EPCTX_OK && c->opts.generations)
        status = epctx_generation_note(&next, &source, c->error);
    if (status == EPCTX_OK) status = epctx_generate(&source, c->backend, &gen, NULL, c->error);
    epctx_model_close(&source);
    if (c->opts.generations) epctx_generation_end(&next);
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
