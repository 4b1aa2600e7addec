/* A conversion of the library, from the command line to the report. */
#include "convert.h"
#include "delivery/each.h"
#include "ops/contexts.h"
#include "ops/needs.h"

#include <inttypes.h>
#include <string.h>

void convert_tell(output *out, const ops_change *c) {
    static const char *const words[OPS_CHANGE_COUNT][2] = {
        {"embed", "node"},        {"extract", "node"},        {"change", "node"},
        {"embed", "initializer"}, {"extract", "initializer"}, {"remove", "initializer"},
        {"change", "node"},       {"change", "input"},        {"keep", "item"}};
    const char *kind = ops_change_name(c->kind);
    int name = (int)c->name.size, file = (int)c->file.size;
    output_item what = output_item_of(words[c->kind][0], words[c->kind][1], c->name);
    if (c->file.size > 0) what.file = c->file;
    if (c->kind != OPS_CHANGE_FOLLOWED && c->kind != OPS_CHANGE_SOURCE &&
        c->kind != OPS_CHANGE_FIXED && c->kind != OPS_CHANGE_SKIPPED)
        what.size = c->size;
    switch (c->kind) {
    case OPS_CHANGE_EMBEDDED:
    case OPS_CHANGE_INLINED:
        output_change(out, &what, "%s '%.*s' from %.*s, %" PRIu64 " bytes", kind, name,
                      c->name.data, file, c->file.data, c->size);
        break;
    case OPS_CHANGE_EXTRACTED:
    case OPS_CHANGE_EXTERNAL:
        output_change(out, &what, "%s '%.*s' in %.*s, %" PRIu64 " bytes", kind, name, c->name.data,
                      file, c->file.data, c->size);
        break;
    case OPS_CHANGE_FOLLOWED:
        output_change(out, &what, "%s '%.*s' gets the embed_mode of its primary node", kind, name,
                      c->name.data);
        break;
    case OPS_CHANGE_SOURCE:
        output_change(out, &what,
                      c->file.size > 0 ? "%s '%.*s' names %.*s" : "%s '%.*s' names no source%.*s",
                      kind, name, c->name.data, file, c->file.data);
        break;
    case OPS_CHANGE_PRUNED:
        output_change(out, &what, "%s '%.*s', %" PRIu64 " bytes", kind, name, c->name.data,
                      c->size);
        break;
    case OPS_CHANGE_FIXED:
    case OPS_CHANGE_SKIPPED:
        output_change(out, &what, "%s '%.*s': %s", kind, name, c->name.data, c->reason);
        break;
    default: break;
    }
}

/* In another folder the result must find what the source finds: a file that is not part of the
 * result has to be there. */
static epctx_status check_left_behind(const output *out, epctx_model *model,
                                      const ops_changes *changes, epctx_error *error) {
    epctx_str folder = epctx_path_folder(epctx_str_of(out->path));
    epctx_dependency *files;
    epctx_arena arena;
    epctx_status status;
    size_t count, i, k;
    char path[EPCTX_PATH_MAX];
    epctx_arena_init(&arena, NULL);
    status = needs_of_model(model, NULL, &arena, &files, &count, error);
    for (i = 0; i < count && status == EPCTX_OK; i++) {
        bool found = !files[i].required || files[i].status != EPCTX_OK;
        for (k = 0; k < changes->file_count && !found; k++)
            found = epctx_str_is(files[i].name, changes->files[k].name);
        if (found || epctx_path_find(epctx_model_io(model), folder, files[i].name, cli_path_flags(),
                                     path, sizeof path, NULL) == EPCTX_OK)
            continue;
        status = epctx_fail(error, EPCTX_ERR_NOT_FOUND,
                            "%s would not find '%S' in its folder: copy the file there first, or "
                            "use --in-place",
                            out->path, &files[i].name);
    }
    epctx_arena_free(&arena);
    return status;
}

static int write_all(output *out, epctx_model *model, ops_changes *changes) {
    epctx_error error;
    epctx_error_clear(&error);
    if (check_left_behind(out, model, changes, &error) != EPCTX_OK)
        return output_refuse(out, &error);
    return output_group(out, model, changes->files, changes->file_count);
}

static int convert(output *out, epctx_model *model, ops_convert_opts *opts, convert_fn function) {
    ops_changes changes;
    epctx_error error;
    size_t i;
    if (out->path != NULL && !out->to_stdout) opts->common.output_path = out->path;
    if (function(model, opts, &changes, &error) != EPCTX_OK)
        return (function == ops_embed || function == ops_extract) && !opts->common.allow_stale
                   ? cli_fail_stale(&error, "--allow-stale")
                   : cli_fail(&error);
    for (i = 0; i < changes.count; i++) convert_tell(out, &changes.items[i]);
    if (out->to_stdout && changes.file_count > 0)
        return cli_fail_text("the result consists of several files: use -o FILE or --in-place");
    if (out->path == NULL || out->to_stdout || out->no_memory) return output_model(out, model);
    return write_all(out, model, &changes);
}

int convert_file(output *out, const char *file, ops_convert_opts *opts, convert_fn function) {
    epctx_model model;
    epctx_error error;
    int code;
    if (output_open(out, &model, file, &error) != EPCTX_OK) return cli_fail(&error);
    code = convert(out, &model, opts, function);
    epctx_model_close(&model);
    return code;
}

typedef struct contexts_work {
    const cli_args *args;
    convert_fn function;
} contexts_work;

static int convert_one(void *user, const char *file, json_writer *w) {
    const contexts_work *work = (const contexts_work *)user;
    const cli_args *args = work->args;
    ops_convert_opts opts;
    output out;
    int code = CLI_USAGE;
    memset(&opts, 0, sizeof opts);
    opts.common.node = args->node;
    opts.common.context_file_path = args->context_path;
    opts.common.name = args->name;
    opts.common.allow_stale = args->allow_stale;
    if (output_begin(&out, args, file) && cli_profile(args->profile, &opts.common.profile)) {
        out.several = w;
        out.of = file;
        code = convert_file(&out, file, &opts, work->function);
    }
    output_free(&out);
    return code;
}

int convert_contexts(const cli_args *args, convert_fn function) {
    contexts_work work = {args, function};
    return each_change(args, convert_one, &work);
}
