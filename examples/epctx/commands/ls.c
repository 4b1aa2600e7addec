/* epctx ls: every file that models and context binaries depend on, and where it was looked for. */
#include "core/options.h"
#include "delivery/each.h"
#include "info_binary.h"
#include "core/asker.h"
#include "ops/needs.h"
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
    printf("\n%28s %" PRIu64 " time%s", "", file->users, cli_plural(file->users));
    if (file->node.size > 0) { /* else a binary refers to it */
        fputs(", first in '", stdout);
        cli_put(stdout, file->node);
        putchar('\'');
    }
    printf(" %s\n", file->attribute);
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

/* Their names are in the model. */
static epctx_status model_files(const char *path, const epctx_check_opts *opts, epctx_arena *arena,
                                epctx_model *model, epctx_dependency **files, size_t *count,
                                epctx_error *error) {
    EPCTX__TRY(cli_open(model, path, error));
    return needs_of_model(model, opts, arena, files, count, error);
}

/* What is asked for, and where it is printed. */
typedef struct ls_work {
    epctx_check_opts opts;
    info_out out;
    bool print0;
    size_t listed; /* of the operands' files */
} ls_work;

static json_writer *begin(ls_work *work, const char *path) {
    json_writer *w = NULL;
    if (work->out.json) {
        w = info_begin(&work->out);
        if (work->out.several) json_text(w, "file", path);
        json_array(w, "files", JSON_LINES);
    } else if (work->out.several && !work->print0) {
        fputs(work->listed > 0 ? "\n" : "", stdout);
        cli_put(stdout, epctx_str_of(path));
        puts(":");
    }
    work->listed++;
    return w;
}

/* `in_folder`: it was not named itself, and is left out when it needs nothing. */
static int ls(void *user, const char *path, bool in_folder) {
    ls_work *work = (ls_work *)user;
    epctx_dependency *files = NULL;
    json_writer *w = NULL;
    size_t count = 0, missing = 0, i;
    epctx_arena arena;
    epctx_model model;
    epctx_error error;
    epctx_status status;
    memset(&model, 0, sizeof model);
    epctx_arena_init(&arena, NULL);
    if (!info_binary_files(path, &work->out.asker, &arena, &files, &count, &status, &error))
        status = model_files(path, &work->opts, &arena, &model, &files, &count, &error);
    if (status == EPCTX_OK && (!in_folder || count > 0)) w = begin(work, path);
    for (i = 0; status == EPCTX_OK && i < count; i++) {
        missing += files[i].required && files[i].path == NULL;
        if (w != NULL)
            put_json(w, &files[i]);
        else if (!work->print0)
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
    if (w != NULL) {
        json_end(w);
        info_end(&work->out);
    }
    return missing > 0 ? CLI_FAILED : CLI_OK;
}

static int run(const cli_args *args) {
    ls_work work;
    int code;
    memset(&work, 0, sizeof work);
    work.opts.context_file_path = args->context_path;
    work.opts.external_folder = args->external_folder;
    work.out.json = args->json;
    work.out.several = each_is_several(args);
    work.print0 = args->print0;
    if (args->json && args->print0) {
        cli_misuse("--json and -0 cannot be combined");
        return CLI_USAGE;
    }
    if (!cli_binary_asker(args, &work.out.asker)) return CLI_USAGE;
    code = each_file(args, EACH_MODEL_OR_BINARY, CLI_FAILED, ls, &work);
    info_close(&work.out, code == CLI_OK);
    return code;
}

const cli_command cli_ls = {
    .name = "ls",
    .group = CLI_LOOK,
    .operands = "FILE...",
    .least = 1,
    .summary = "list the files that models or context binaries depend on",
    .about = "Searches context binaries beside the model or in the folder of\n"
             "ep.context_file_path, and initializers beside the model or in the folder that\n"
             "the session option names. The exit code is 1 if a required file is missing or\n"
             "must not be used.\n"
             "Of a folder, lists those of its models and context binaries that need any, in it\n"
             "and in folders below.\n"
             "Of a context binary that refers to parts of other files (weights of OpenVINO's\n"
             "container, the .bin of an IR), lists these.\n",
    .more = "Example: epctx ls model_ctx.onnx\n",
    .run = run,
};
