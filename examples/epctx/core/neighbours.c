/* Files that other models in the folder need. Those are opened one by one; nothing is remembered of
 * a model, so that memory does not depend on how many there are. */
#include "neighbours.h"
#include "ops/needs.h"

#include <string.h>

enum { ABOVE = 2 }; /* folders above that of a file, in which models may name it */

/* A file that would be replaced. */
typedef struct target {
    const char *path, *real;       /* as given, and canonical */
    const epctx_output_file *file; /* its new bytes, or NULL */
    bool compared, equal;          /* with what is there */
} target;

/* Who needs a target: of several the first by name. */
typedef struct needing {
    const char *model; /* NULL: nobody */
    const char *reason, *name;
    const target *file;
    size_t others; /* further models */
} needing;

typedef struct neighbourhood {
    const neighbours_plan *plan;
    epctx_arena arena;
    target *targets;
    size_t count;
    const char **spared; /* canonical paths of models that are written */
    size_t spared_count;
    struct {
        const char *path, *real; /* as given, and canonical */
        bool above;              /* of no file that is written */
    } * folders;                 /* which are looked at */
    size_t folder_count;
    epctx_str folder; /* this one, as given */
    bool above, apart;
    needing found;
    epctx_status status;
    epctx_error *error;
} neighbourhood;

/* -- what is written -- */

static bool compare(const epctx_output_file *file, const char *path) {
    const epctx_io *io = epctx_io_files();
    epctx_mapping old;
    uint64_t at = 0;
    size_t i, k;
    bool equal = file != NULL && file->part_count > 0 &&
                 io->map_fn(io->user, NULL, path, false, &old, NULL) == EPCTX_OK;
    if (!equal) return false;
    for (i = 0; i < file->part_count && equal; i++) {
        const epctx_span *part = &file->parts[i];
        equal = part->size <= old.size - at;
        if (equal && part->data != NULL)
            equal = part->size == 0 || memcmp(old.data + at, part->data, part->size) == 0;
        for (k = 0; equal && part->data == NULL && k < part->size; k++)
            equal = old.data[at + k] == 0;
        at += part->size;
    }
    equal = equal && at == old.size;
    io->unmap_fn(io->user, &old);
    return equal;
}

static bool is_equal(target *to) {
    if (!to->compared) to->equal = compare(to->file, to->real);
    to->compared = true;
    return to->equal;
}

/* In the arena; NULL: there is no such file, or no memory, which `n` then says. */
static const char *real_of(neighbourhood *n, const char *path) {
    const epctx_io *io = epctx_io_files();
    char real[EPCTX_PATH_MAX];
    const char *copy;
    if (io->canonical_fn(io->user, path, real, sizeof real, NULL) != EPCTX_OK) return NULL;
    copy = epctx_arena_copy(&n->arena, epctx_str_of(real));
    if (copy == NULL) n->status = epctx_fail(n->error, EPCTX_ERR_NOMEM, "out of memory");
    return copy;
}

/* The canonical path that a new file will have, which another process may write meanwhile. */
static const char *place_of(neighbourhood *n, const char *path) {
    const epctx_str whole = epctx_str_of(path), part = epctx_path_folder(whole);
    const char *folder = epctx_arena_copy(&n->arena, part.size > 0 ? part : epctx_str_of("."));
    char place[EPCTX_PATH_MAX];
    const char *real = folder != NULL ? real_of(n, folder) : NULL;
    if (real == NULL || epctx_path_join(epctx_str_of(real), epctx_path_file(whole), place,
                                        sizeof place, NULL) != EPCTX_OK)
        return NULL;
    return epctx_arena_copy(&n->arena, epctx_str_of(place));
}

/* Once. */
static void add_folder(neighbourhood *n, epctx_str part, bool above) {
    const char *folder = epctx_arena_copy(&n->arena, part);
    const char *real = NULL;
    size_t i;
    if (folder == NULL) n->status = epctx_fail(n->error, EPCTX_ERR_NOMEM, "out of memory");
    if (folder != NULL) real = real_of(n, part.size > 0 ? folder : ".");
    if (real == NULL) return;
    for (i = 0; i < n->folder_count && strcmp(n->folders[i].real, real) != 0; i++) continue;
    n->folders[i].above = above && (i == n->folder_count || n->folders[i].above);
    if (i < n->folder_count) return;
    n->folders[i].path = folder;
    n->folders[i].real = real;
    n->folder_count++;
}

/* The folder that a file is or will be in. */
static void add_folder_of(neighbourhood *n, const char *path) {
    add_folder(n, epctx_path_folder(epctx_str_of(path)), false);
}

/* Those above it, by its canonical path. */
static void add_folders_above(neighbourhood *n, const char *real) {
    epctx_str folder = epctx_path_folder(epctx_str_of(real));
    size_t i;
    for (i = 0; i < ABOVE && folder.size > 1 && n->status == EPCTX_OK; i++) {
        folder.size--;
        folder = epctx_path_folder(folder);
        add_folder(n, folder, true);
    }
}

/* A file that is there is a target; a new one is in nobody's way. */
static void add_target(neighbourhood *n, const char *path, const epctx_output_file *file) {
    target *to = &n->targets[n->count];
    to->path = path;
    to->file = file;
    to->real = real_of(n, path);
    if (to->real == NULL) return;
    n->count++;
    add_folder_of(n, path);
    add_folder_of(n, to->real);
    add_folders_above(n, to->real);
}

static bool is_spared(const neighbourhood *n, const char *real) {
    size_t i;
    for (i = 0; i < n->spared_count; i++)
        if (strcmp(n->spared[i], real) == 0) return true;
    return false;
}

static void add_models(neighbourhood *n) {
    const char *source = n->plan->source != NULL ? real_of(n, n->plan->source) : NULL;
    size_t i;
    for (i = 0; i < n->plan->model_count && n->status == EPCTX_OK; i++) {
        const char *path = n->plan->models[i];
        const char *real = real_of(n, path);
        const char *place = real != NULL ? real : place_of(n, path);
        add_folder_of(n, path);
        if (place != NULL) n->spared[n->spared_count++] = place;
        if (real != NULL && (source == NULL || strcmp(source, real) != 0))
            add_target(n, path, NULL);
    }
}

/* -- who needs it -- */

static bool counts(const neighbourhood *n, const epctx_dependency *file, const target *to) {
    return !(n->apart && to->file != NULL && file->use == EPCTX_USE_CONTEXT &&
             strcmp(file->attribute, "ep_cache_context") == 0);
}

/* What a model has in a file. */
static const char *reason_of(const epctx_dependency *file) {
    switch (file->use) {
    case EPCTX_USE_CONTEXT: return "a context of it is there";
    case EPCTX_USE_INITIALIZERS: return "initializers of it are there";
    case EPCTX_USE_SOURCE_MODEL: return "it takes its weights from there";
    default:
        return strcmp(file->attribute, "onnx_model_filename") == 0
                   ? "its source model refers to it"
                   : "its context binary refers to it";
    }
}

/* Notes that a model needs a target. */
static void note(neighbourhood *n, const char *model, const epctx_dependency *file,
                 const target *to) {
    needing *found = &n->found;
    if (found->model != NULL && strcmp(found->model, model) < 0) return;
    found->model = epctx_arena_copy(&n->arena, epctx_str_of(model));
    found->name = epctx_arena_copy(&n->arena, file->name);
    found->reason = reason_of(file);
    found->file = to;
    if (found->model == NULL || found->name == NULL)
        n->status = epctx_fail(n->error, EPCTX_ERR_NOMEM, "out of memory");
}

/* False: the model does not need a target by this file. */
static bool look_at_need(neighbourhood *n, const char *model, const epctx_dependency *file) {
    size_t i;
    for (i = 0; i < n->count && file->required && file->path != NULL; i++) {
        if (strcmp(n->targets[i].real, file->path) != 0 || !counts(n, file, &n->targets[i]) ||
            is_equal(&n->targets[i]))
            continue;
        note(n, model, file, &n->targets[i]);
        return true;
    }
    return false;
}

static void look_at_model(neighbourhood *n, const char *path) {
    const bool first = n->found.model == NULL;
    epctx_dependency *files = NULL;
    epctx_arena arena;
    epctx_model model;
    epctx_error error;
    size_t count = 0, i = 0;
    epctx_status status = cli_open(&model, path, &error);
    epctx_arena_init(&arena, NULL);
    if (status == EPCTX_OK) status = needs_of_model(&model, NULL, &arena, &files, &count, &error);
    if (status != EPCTX_OK) count = 0;
    while (i < count && !look_at_need(n, path, &files[i])) i++;
    n->found.others += i < count && !first;
    if (status == EPCTX_ERR_NOMEM) n->status = epctx_fail(n->error, status, "%s", error.message);
    epctx_model_close(&model);
    epctx_arena_free(&arena);
}

static bool is_apart(const neighbourhood *n, const char *real) {
    const epctx_io *io = epctx_io_files();
    char other[EPCTX_PATH_MAX];
    size_t i;
    if (!n->plan->contexts_apart || !n->above) return n->plan->contexts_apart;
    for (i = 0; i < n->plan->apart_count; i++)
        if (io->canonical_fn(io->user, n->plan->apart[i], other, sizeof other, NULL) == EPCTX_OK &&
            strcmp(other, real) == 0)
            return true;
    return false;
}

static bool look_at_name(void *state, const char *name) {
    neighbourhood *n = (neighbourhood *)state;
    char path[EPCTX_PATH_MAX], real[EPCTX_PATH_MAX];
    const epctx_io *io = epctx_io_files();
    const size_t size = strlen(name);
    if (size < 6 || strcmp(name + size - 5, ".onnx") != 0 ||
        epctx_path_join(n->folder, epctx_str_of(name), path, sizeof path, NULL) != EPCTX_OK ||
        io->canonical_fn(io->user, path, real, sizeof real, NULL) != EPCTX_OK || is_spared(n, real))
        return true;
    n->apart = is_apart(n, real);
    look_at_model(n, path);
    return n->status == EPCTX_OK;
}

/* -- the question -- */

static epctx_status look_around(neighbourhood *n) {
    const epctx_io *io = epctx_io_files();
    const size_t most = n->plan->file_count + n->plan->model_count + 1;
    size_t i;
    n->targets = (target *)epctx_arena_array(&n->arena, most, sizeof *n->targets);
    n->spared = (const char **)epctx_arena_array(&n->arena, most, sizeof *n->spared);
    n->folders = epctx_arena_array(&n->arena, (2 + ABOVE) * most, sizeof *n->folders);
    if (n->targets == NULL || n->spared == NULL || n->folders == NULL)
        return epctx_fail(n->error, EPCTX_ERR_NOMEM, "out of memory");
    add_models(n);
    for (i = 0; i < n->plan->file_count && n->status == EPCTX_OK; i++)
        add_target(n, n->plan->files[i].path, &n->plan->files[i]);
    for (i = 0; i < n->folder_count && n->count > 0 && n->status == EPCTX_OK; i++) {
        epctx_error error;
        n->folder = epctx_str_of(n->folders[i].path);
        n->above = n->folders[i].above;
        if (io->list_fn(io->user, n->folders[i].real, look_at_name, n, &error) != EPCTX_OK &&
            !n->above)
            return epctx_fail(n->error, error.status,
                              "who needs the files that would be replaced is not known: %s",
                              error.message);
    }
    return n->status;
}

static epctx_status refuse(const neighbourhood *n) {
    const needing *found = &n->found;
    char others[40] = "";
    epctx_status status;
    if (found->others > 0) snprintf(others, sizeof others, " and %zu more need", found->others);
    status = epctx_fail(n->error, EPCTX_ERR_PATH, "%s%s this file: %s (as '%s'): %s", found->model,
                        found->others > 0 ? others : " needs", found->reason, found->name,
                        n->plan->cure != NULL ? n->plan->cure
                                              : "choose another name, or remove that model first");
    epctx_blame(n->error, found->file->path, NULL, NULL);
    return status;
}

epctx_status neighbours_allow(const neighbours_plan *plan, epctx_error *error) {
    neighbourhood n;
    epctx_status status;
    epctx_error_clear(error);
    memset(&n, 0, sizeof n);
    n.plan = plan;
    n.error = error;
    epctx_arena_init(&n.arena, NULL);
    status = look_around(&n);
    if (status == EPCTX_OK && n.found.model != NULL) status = refuse(&n);
    epctx_arena_free(&n.arena);
    return status;
}

epctx_status neighbours_allow_file(const char *path, epctx_error *error) {
    epctx_output_file file;
    neighbours_plan plan;
    memset(&file, 0, sizeof file);
    memset(&plan, 0, sizeof plan);
    file.path = path;
    plan.files = &file;
    plan.file_count = 1;
    return neighbours_allow(&plan, error);
}
