/* epctx ls: every file that a model depends on, and where it was looked for. */
#include "core/options.h"
#include "ops/state.h"

#include <inttypes.h>
#include <string.h>

/* Of a file that cannot be used: is it not there, or empty, a folder, in another place? */
static const char *state_of(const epctx_dependency *file) {
    if (!file->required) return "-";
    return file->status == EPCTX_ERR_NOT_FOUND ? "MISSING" : "UNUSABLE";
}

static void put_text(const epctx_dependency *file) {
    if (file->path != NULL)
        printf("%12" PRIu64 "  %-14s ", file->size, epctx_file_use_name(file->use));
    else
        printf("%12s  %-14s ", state_of(file), epctx_file_use_name(file->use));
    if (file->path != NULL) {
        cli_put(stdout, epctx_str_of(file->path));
    } else {
        cli_put(stdout, file->name);
        printf("\n%28s ", "");
        cli_put(stdout, epctx_str_of(file->problem != NULL ? file->problem : "not looked for"));
    }
    printf("\n%28s %" PRIu64 " time%s, first in '", "", file->users, cli_plural(file->users));
    cli_put(stdout, file->node);
    printf("' %s\n", file->attribute);
}

static void put_json(json_writer *w, const epctx_dependency *file) {
    json_object(w, NULL, JSON_INLINE);
    json_text(w, "use", epctx_file_use_name(file->use));
    json_bool(w, "required", file->required);
    json_uint(w, "users", file->users);
    json_str(w, "name", file->name);
    json_str(w, "node", file->node);
    json_text(w, "attribute", file->attribute);
    json_text(w, "folder", file->folder);
    json_text(w, "path", file->path);
    if (file->path != NULL) {
        json_uint(w, "size", file->size);
        json_null(w, "problem");
    } else {
        json_null(w, "size");
        json_text(w, "problem", file->problem != NULL ? file->problem : "");
    }
    json_end(w);
}

static int ls(const char *path, const epctx_check_opts *opts, bool json, bool print0) {
    epctx_dependency *files = NULL;
    json_writer *w = NULL;
    size_t count = 0, missing = 0, i;
    epctx_arena arena;
    epctx_model model;
    epctx_error error;
    epctx_status status = cli_open(&model, path, &error);
    if (status != EPCTX_OK) return cli_fail(&error);
    epctx_arena_init(&arena, NULL);
    status = epctx_model_files(&model, opts, &arena, &files, &count, &error);
    if (json && status == EPCTX_OK) {
        w = cli_json_begin(stdout);
        json_array(w, "files", JSON_LINES);
    }
    for (i = 0; status == EPCTX_OK && i < count; i++) {
        missing += files[i].required && files[i].path == NULL;
        if (json)
            put_json(w, &files[i]);
        else if (!print0)
            put_text(&files[i]);
        else if (files[i].path != NULL)
            fwrite(files[i].path, 1, strlen(files[i].path) + 1, stdout);
    }
    epctx_arena_free(&arena);
    epctx_model_close(&model);
    if (status != EPCTX_OK) return cli_fail(&error);
    if (missing > 0)
        cli_fail_text("%s: %zu file%s that it needs cannot be used", path, missing,
                      cli_plural(missing));
    if (json) {
        json_end(w);
        cli_json_end();
    }
    return missing > 0 ? CLI_FAILED : CLI_OK;
}

static int run(const cli_args *args) {
    epctx_check_opts opts;
    memset(&opts, 0, sizeof opts);
    opts.context_file_path = args->context_path;
    opts.external_folder = args->external_folder;
    if (args->json && args->print0) {
        cli_misuse("--json and -0 cannot be combined");
        return CLI_USAGE;
    }
    return ls(args->operands[0], &opts, args->json, args->print0);
}

const cli_command cli_ls = {
    .name = "ls",
    .group = CLI_LOOK,
    .operands = "FILE",
    .least = 1,
    .most = 1,
    .summary = "list the files that a model depends on",
    .about = "Searches context binaries beside the model or in the folder of\n"
             "ep.context_file_path, and initializers beside the model or in the folder that\n"
             "the session option names. The exit code is 1 if a required file is missing or\n"
             "must not be used.\n",
    .more = "Example: epctx ls model_ctx.onnx\n",
    .run = run,
};
