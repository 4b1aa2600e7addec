/*
 * Converts any model by every conversion under every profile, with files that exist under any name:
 * what comes out opens again, undoing gives the first bytes, and a failure changes nothing.
 */
#include "examples/epctx/ops/contexts.h"
#include "examples/epctx/ops/init.h"
#include "examples/epctx/ops/weightless.h"
#include "fuzz.h"
#include "mutate.h"

typedef struct input {
    const uint8_t *data;
    size_t size;
} input;

typedef struct written {
    uint8_t *data;
    size_t size;
} written;

typedef epctx_status (*convert_fn)(epctx_model *model, const ops_convert_opts *opts,
                                   ops_changes *changes, epctx_error *error);

/* -- one folder, /m, where every file has the same bytes and "m.onnx" is the model -- */

static epctx_status map(void *user, const char *root, const char *name, bool copy,
                        epctx_mapping *out, epctx_error *error) {
    const input *in = (const input *)user;
    char path[EPCTX_PATH_MAX];
    epctx_status status =
        epctx_path_join(epctx_str_of(root), epctx_str_of(name), path, sizeof path, error);
    (void)copy;
    if (status != EPCTX_OK) return status;
    memset(out, 0, sizeof *out);
    out->data = in->data;
    out->size = strcmp(path, "/m/m.onnx") == 0 ? in->size : in->size / 2;
    out->handle = NULL;
    return EPCTX_OK;
}

static void unmap(void *user, epctx_mapping *mapping) {
    (void)user, (void)mapping;
}

static epctx_status look(void *user, const char *path, epctx_file_info *info, epctx_error *error) {
    const input *in = (const input *)user;
    (void)error;
    memset(info, 0, sizeof *info);
    info->kind = path[strlen(path) - 1] == '/' ? EPCTX_FILE_FOLDER : EPCTX_FILE_REGULAR;
    info->size = in->size / 2;
    return EPCTX_OK;
}

static bool add(pb_ostream_t *stream, const pb_byte_t *data, size_t size) {
    written *out = (written *)stream->state;
    uint8_t *more = (uint8_t *)realloc(out->data, out->size + size);
    require(more != NULL);
    memcpy(more + out->size, data, size);
    out->data = more;
    out->size += size;
    return true;
}

static written write_model(epctx_model *model) {
    written out = {NULL, 0};
    pb_ostream_t stream;
    memset(&stream, 0, sizeof stream);
    stream.callback = add;
    stream.state = &out;
    stream.max_size = SIZE_MAX;
    require(epctx_model_write_stream(model, &stream, NULL) == EPCTX_OK);
    return out;
}

static void require_same(epctx_model *model, const uint8_t *data, size_t size) {
    written out = write_model(model);
    require(out.size == size && memcmp(out.data, data, size) == 0);
    free(out.data);
}

/* The files of a result have their bytes, and names that a model may hold. */
static void check_files(const ops_changes *changes) {
    for (size_t i = 0; i < changes->file_count; i++) {
        const epctx_output_file *file = &changes->files[i];
        uint64_t size = 0;
        for (size_t k = 0; k < file->part_count; k++) size += file->parts[k].size;
        require(size == file->size && strncmp(file->path, "/m/", 3) == 0);
        require(epctx_path_check(epctx_str_of(file->name), NULL) == EPCTX_OK);
    }
}

static void convert(epctx_model *model, const input *in, convert_fn function,
                    const ops_convert_opts *opts) {
    ops_changes changes;
    epctx_error error;
    if (function(model, opts, &changes, &error) == EPCTX_OK) {
        written out = write_model(model);
        epctx_model again;
        require(epctx_model_open_memory(&again, out.data, out.size, NULL, NULL) == EPCTX_OK);
        epctx_model_close(&again);
        check_files(&changes);
        if (changes.done == 0) require_same(model, in->data, in->size);
        free(out.data);
        epctx_edit_undo(model, 0);
    } else {
        require(error.message[0] != '\0');
    }
    require_same(model, in->data, in->size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const convert_fn functions[] = {ops_embed,           ops_extract,      epctx_init_inline,
                                           epctx_init_external, epctx_init_prune, epctx_weightless,
                                           epctx_self_contained};
    input in = {data, size};
    epctx_io io;
    epctx_open_opts open;
    ops_convert_opts opts;
    epctx_model model;
    size_t count;
    const epctx_profile *profiles = epctx_profiles(&count);
    memset(&io, 0, sizeof io);
    memset(&open, 0, sizeof open);
    memset(&opts, 0, sizeof opts);
    io.user = &in;
    io.map_fn = map;
    io.unmap_fn = unmap;
    io.stat_fn = look;
    io.canonical_fn = same_path;
    open.io = &io;
    opts.source = "m.onnx";
    if (epctx_model_open_file(&model, "/m/m.onnx", &open, NULL) == EPCTX_OK) {
        for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
            convert(&model, &in, functions[i], &opts);
        opts.common.profile = &profiles[epctx_hash(data, size, 0) % count];
        convert(&model, &in, ops_embed, &opts);
        convert(&model, &in, ops_extract, &opts);
    }
    epctx_model_close(&model);
    return 0;
}
