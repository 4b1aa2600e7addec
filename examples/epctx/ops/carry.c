#include "carry.h"
#include "needs.h"
#include "state.h"

/* A file of the result. */
typedef struct carry_file {
    epctx_str name;   /* in the result */
    const char *path; /* where it is now, canonical */
    epctx_span bytes;
    bool hashed;
    uint64_t hash;
} carry_file;

/* Whether the model can use another name for a file. */
static bool is_renamable(const epctx_dependency *file) {
    return file->use == EPCTX_USE_CONTEXT || file->use == EPCTX_USE_INITIALIZERS;
}

static carry_file *file_at(const carry *c, uint32_t at) {
    return (carry_file *)c->files.items + at;
}

static epctx_status refuse(carry *c, const epctx_dependency *file, epctx_status status,
                           const char *text) {
    return epctx_fail(c->error, status, "%s '%S' of '%S': %s", epctx_file_use_name(file->use),
                      &file->name, &file->node, text);
}

/* -- equal files become one -- */

static uint64_t hash_of(carry_file *file) {
    if (!file->hashed) {
        file->hash = epctx_hash(file->bytes.data, file->bytes.size, 0);
        file->hashed = true;
    }
    return file->hash;
}

/* The key of a file: its size, or size and hash if other files have the same size. */
static epctx_str key_of(carry_file *file, bool by_hash, uint64_t key[2]) {
    epctx_str text;
    key[0] = file->bytes.size;
    key[1] = by_hash ? hash_of(file) : 0;
    text.data = (const char *)key;
    text.size = (by_hash ? 2 : 1) * sizeof *key;
    return text;
}

static epctx_status know(carry *c, uint32_t at, bool by_hash) {
    uint64_t *key;
    epctx_str text;
    OPS_TRY(ops_array(&c->result->arena, 2, sizeof *key, &key, c->error));
    text = key_of(file_at(c, at), by_hash, key);
    return ops_has(&c->alike, text) ? EPCTX_OK : ops_put(&c->alike, text, at, c->error);
}

/* An earlier file with the same bytes, or EPCTX_MAP_NONE. Hashes only sizes that occur twice. */
static epctx_status find_equal(carry *c, carry_file *file, uint32_t *at) {
    uint64_t key[2];
    *at = epctx_map_get(&c->alike, key_of(file, false, key));
    if (*at == EPCTX_MAP_NONE) return EPCTX_OK;
    OPS_TRY(know(c, *at, true));
    *at = epctx_map_get(&c->alike, key_of(file, true, key));
    if (*at != EPCTX_MAP_NONE &&
        memcmp(file_at(c, *at)->bytes.data, file->bytes.data, file->bytes.size) != 0)
        *at = EPCTX_MAP_NONE;
    return EPCTX_OK;
}

/* -- new files -- */

/* The name of the file, with a number if another file has the name. */
static epctx_status choose_name(carry *c, const epctx_dependency *dep, epctx_str *name) {
    char text[EPCTX_PATH_MAX];
    uint64_t number = 2;
    const char *copy;
    *name = dep->name;
    while (ops_has(&c->names, *name)) {
        if (!is_renamable(dep)) {
            return refuse(c, dep, EPCTX_ERR_EXISTS,
                          "another file of the result has this name, and this one cannot be "
                          "renamed automatically: rename it before");
        }
        OPS_TRY(epctx_path_numbered(dep->name, number++, text, sizeof text, c->error));
        *name = epctx_str_of(text);
    }
    copy = epctx_arena_copy(&c->result->arena, *name);
    *name = epctx_str_of(copy);
    return copy != NULL ? EPCTX_OK : ops_nomem(&c->result->arena, c->error);
}

/* Adds a file to those to write, unless it is already in place. */
static epctx_status put_output(carry *c, const carry_file *file) {
    const epctx_io *io = epctx_model_io(c->result);
    epctx_output_file out;
    char real[EPCTX_PATH_MAX];
    OPS_TRY(ops_file_of(c->result, c->path, file->name, file->bytes, &out, c->error));
    if (io->canonical_fn(io->user, out.path, real, sizeof real, NULL) == EPCTX_OK &&
        strcmp(real, file->path) == 0)
        return EPCTX_OK;
    OPS_TRY(epctx_output_name_check(file->name, epctx_str_of(c->path), NULL, c->error));
    return ops_put_file(c->report, &out, c->error);
}

static epctx_status put_file(carry *c, const epctx_dependency *dep, carry_file *file) {
    uint32_t at = (uint32_t)c->files.count;
    bool size_known;
    uint64_t key[2];
    carry_file *kept;
    OPS_TRY(choose_name(c, dep, &file->name));
    OPS_TRY(ops_add(&c->files, &c->result->arena, sizeof *kept, &kept, c->error));
    *kept = *file;
    OPS_TRY(ops_put(&c->names, file->name, at, c->error));
    OPS_TRY(ops_put(&c->paths, epctx_str_of(file->path), at, c->error));
    size_known = ops_has(&c->alike, key_of(file, false, key));
    OPS_TRY(know(c, at, size_known));
    return put_output(c, file);
}

/* -- the files of a model -- */

/* The file of the result that `dep` becomes. */
static epctx_status find_or_put(carry *c, epctx_model *model, const epctx_dependency *dep,
                                bool alone, uint32_t *at) {
    carry_file file;
    memset(&file, 0, sizeof file);
    file.path = dep->path;
    *at = alone ? EPCTX_MAP_NONE : epctx_map_get(&c->paths, epctx_str_of(dep->path));
    if (*at != EPCTX_MAP_NONE) return EPCTX_OK;
    OPS_TRY(
        epctx_model_map_file(model, epctx_str_of(dep->folder), dep->name, &file.bytes, c->error));
    if (!alone && is_renamable(dep)) OPS_TRY(find_equal(c, &file, at));
    if (*at == EPCTX_MAP_NONE) {
        OPS_TRY(put_file(c, dep, &file));
        *at = (uint32_t)c->files.count - 1;
    }
    return EPCTX_OK;
}

static epctx_status carry_one(carry *c, epctx_model *model, size_t part,
                              const epctx_dependency *dep, bool alone, epctx_list *renames) {
    epctx_file_rename *rename;
    uint32_t at;
    epctx_str now;
    OPS_TRY(find_or_put(c, model, dep, alone, &at));
    now = file_at(c, at)->name;
    if (epctx_str_eq(now, dep->name)) return EPCTX_OK;
    if (!is_renamable(dep))
        return refuse(c, dep, EPCTX_ERR_EXISTS, "the same file has another name in the result");
    OPS_TRY(ops_add(renames, &c->result->arena, sizeof *rename, &rename, c->error));
    rename->use = dep->use;
    rename->from = dep->name;
    rename->to = now;
    return ops_say_now(c->report, part, "file", dep->name, "", now, c->error);
}

void carry_begin(carry *c, ops_report *report, epctx_model *result, const char *path,
                 epctx_error *error) {
    memset(c, 0, sizeof *c);
    c->report = report;
    c->result = result;
    c->path = path != NULL ? path : result->path;
    c->error = error;
    epctx_map_init(&c->names, &result->arena);
    epctx_map_init(&c->paths, &result->arena);
    epctx_map_init(&c->alike, &result->arena);
    epctx_map_init(&c->made, &result->arena);
}

epctx_status carry_new(carry *c, epctx_str name, const epctx_span *parts, size_t count) {
    epctx_output_file out;
    OPS_TRY(epctx_output_name_check(name, epctx_str_of(c->path), NULL, c->error));
    OPS_TRY(epctx_model_output_file(c->result, c->path, name, parts, count, &out, c->error));
    OPS_TRY(ops_put(&c->names, name, UINT32_MAX - 1, c->error));
    OPS_TRY(ops_put(&c->made, name, 1, c->error));
    return ops_put_file(c->report, &out, c->error);
}

epctx_status carry_files(carry *c, epctx_model *model, size_t part, bool alone) {
    epctx_dependency *files = NULL;
    epctx_check_opts opts;
    epctx_list renames;
    size_t count = 0, i;
    memset(&opts, 0, sizeof opts);
    memset(&renames, 0, sizeof renames);
    opts.path_flags = model->path_flags;
    OPS_TRY(needs_of_model(model, &opts, &c->result->arena, &files, &count, c->error));
    for (i = 0; i < count; i++) {
        const epctx_dependency *file = &files[i];
        if (file->use == EPCTX_USE_CONTEXT && ops_has(&c->made, file->name)) continue;
        if (file->status != EPCTX_OK && file->required)
            return refuse(c, file, EPCTX_ERR_NOT_FOUND, file->problem);
        /* A model may name files that only sessions with other options need. */
        if (file->status == EPCTX_OK && (is_renamable(file) || file->required)) {
            OPS_TRY(
                carry_one(c, model, part, file, alone && file->use == EPCTX_USE_CONTEXT, &renames));
        }
    }
    return epctx_edit_rename_files(model, (const epctx_file_rename *)renames.items, renames.count,
                                   c->error);
}
