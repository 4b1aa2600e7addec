/* beside.c - see beside.h. */
#include "beside.h"

#include "../binary/binary.h"

#include <stdlib.h>

void beside_init(beside *b, const epctx_allocator *allocator) {
    memset(b, 0, sizeof *b);
    epctx_arena_init(&b->arena, allocator);
}

void beside_free(beside *b) {
    epctx_arena_free(&b->arena);
    b->folder = NULL;
    memset(&b->files, 0, sizeof b->files);
}

static void beside_forget(beside *b) {
    const epctx_allocator allocator = b->arena.allocator;
    beside_free(b);
    epctx_arena_init(&b->arena, allocator.alloc_fn != NULL ? &allocator : NULL);
}

typedef struct beside_listing {
    beside *to;
    const epctx_model *model;
    epctx_error *error;
    epctx_status status;
} beside_listing;

static epctx_status beside_add(beside *b, const epctx_model *model, epctx_str name,
                               epctx_error *error) {
    const epctx_io *io = epctx_model_io(model);
    char path[EPCTX_PATH_MAX];
    beside_file *file = NULL;
    epctx_file_info info;
    if (epctx_path_find(io, epctx_str_of(b->folder), name, model->path_flags, path, sizeof path,
                        NULL) != EPCTX_OK ||
        io->stat_fn(io->user, path, &info, NULL) != EPCTX_OK || info.kind != EPCTX_FILE_REGULAR)
        return EPCTX_OK;
    OPS_TRY(ops_add(&b->files, &b->arena, sizeof *file, &file, error));
    file->size = info.size;
    return ops_join(&b->arena, name, epctx_str_of(""), &file->name, error);
}

static bool beside_listed(void *state, const char *name) {
    beside_listing *listing = (beside_listing *)state;
    listing->status = beside_add(listing->to, listing->model, epctx_str_of(name), listing->error);
    return listing->status == EPCTX_OK;
}

/* Names as epctx_str and in the arena, terminated. */
static int beside_by_name(const void *a, const void *b) {
    return strcmp(((const beside_file *)a)->name.data, ((const beside_file *)b)->name.data);
}

epctx_status beside_list(beside *b, const epctx_model *model, const char *folder,
                         epctx_error *error) {
    const epctx_io *io = epctx_model_io(model);
    beside_listing listing;
    if (b->folder != NULL && strcmp(b->folder, folder) == 0) return EPCTX_OK;
    beside_forget(b);
    b->folder = epctx_arena_copy(&b->arena, epctx_str_of(folder));
    if (b->folder == NULL) return ops_nomem(&b->arena, error);
    listing.to = b;
    listing.model = model;
    listing.error = error;
    listing.status = EPCTX_OK;
    if (io->list_fn != NULL &&
        io->list_fn(io->user, folder, beside_listed, &listing, NULL) != EPCTX_OK)
        b->files.count = 0;
    if (b->files.count > 0)
        qsort(b->files.items, b->files.count, sizeof(beside_file), beside_by_name);
    if (listing.status != EPCTX_OK) beside_forget(b);
    return listing.status;
}

static bool beside_map(const beside *b, const epctx_model *model, const beside_file *file,
                       epctx_mapping *out) {
    return epctx_path_map(epctx_model_io(model), epctx_str_of(b->folder), file->name,
                          model->path_flags, out, NULL, NULL) == EPCTX_OK;
}

bool beside_has_bytes(beside *b, const epctx_model *model, beside_file *file,
                      const epctx_stamp_line *line) {
    const epctx_io *io = epctx_model_io(model);
    epctx_mapping bytes;
    if (file->size != line->size) return false;
    if (!file->is_hashed) {
        if (!beside_map(b, model, file, &bytes)) return false;
        file->size = bytes.size;
        file->hash = epctx_hash(bytes.data, bytes.size, 0);
        file->is_hashed = true;
        io->unmap_fn(io->user, &bytes);
    }
    return file->size == line->size && file->hash == line->hash;
}

bool beside_may_be(beside *b, const epctx_model *model, beside_file *file,
                   const epctx_profile *profile) {
    const epctx_io *io = epctx_model_io(model);
    epctx_mapping mapping;
    epctx_binary_id id;
    epctx_span bytes;
    if (!file->is_looked && beside_map(b, model, file, &mapping)) {
        bytes.data = mapping.data;
        bytes.size = mapping.size;
        epctx_binary_identify(bytes, bytes, bytes.size, &id);
        io->unmap_fn(io->user, &mapping);
        file->is_context = id.sort == EPCTX_BINARY_SORT_CONTEXT;
        file->profile = id.profile;
    }
    file->is_looked = true;
    return file->is_context && (file->profile == NULL || binary_is_of(file->profile, profile));
}
