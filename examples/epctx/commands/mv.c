/* epctx mv: a context binary under another name, and every model that names it. */
#define _XOPEN_SOURCE 700

#include "core/neighbours.h"
#include "core/output.h"

#include "ops/move.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static int compare_names(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool is_model(const char *name) {
    size_t size = strlen(name);
    return size > 5 && strcmp(name + size - 5, ".onnx") == 0;
}

/* Adds the models in an open folder to a list that grows in the arena. */
static bool read_folder(DIR *dir, epctx_str folder, epctx_arena *arena, const char ***list,
                        size_t *count) {
    const struct dirent *entry;
    size_t room = 0;
    while ((entry = readdir(dir)) != NULL) {
        size_t size = folder.size + strlen(entry->d_name) + 1;
        char *path;
        if (!is_model(entry->d_name)) continue;
        if (*count == room) {
            const char **more =
                (const char **)epctx_arena_array(arena, room * 2 + 16, sizeof *more);
            if (more == NULL) return false;
            if (*count > 0) memcpy(more, *list, *count * sizeof *more);
            *list = more;
            room = room * 2 + 16;
        }
        path = (char *)epctx_arena_alloc(arena, size);
        if (path == NULL) return false;
        snprintf(path, size, "%.*s%s", (int)folder.size, folder.data, entry->d_name);
        (*list)[(*count)++] = path;
    }
    return true;
}

/* A model that was found here but is elsewhere is not changed unless the user names it; and left
 * alone it might lose the binary. */
static bool are_here(epctx_str folder, const char *const *list, size_t count, epctx_arena *arena) {
    const epctx_io *io = epctx_io_files();
    char *here = epctx_arena_copy(arena, folder.size > 0 ? folder : epctx_str_of("."));
    char root[EPCTX_PATH_MAX], real[EPCTX_PATH_MAX];
    epctx_error error;
    size_t i;
    epctx_error_clear(&error);
    if (here == NULL || io->canonical_fn(io->user, here, root, sizeof root, &error) != EPCTX_OK) {
        here == NULL ? cli_fail_text("out of memory") : cli_fail(&error);
        return false;
    }
    for (i = 0; i < count; i++) {
        epctx_str place;
        if (io->canonical_fn(io->user, list[i], real, sizeof real, NULL) != EPCTX_OK) continue;
        place = epctx_path_folder(epctx_str_of(real));
        if (place.size > 1) place.size--; /* the separator, but for the root's */
        if (epctx_str_is(place, root)) continue;
        cli_fail_text("%s: is a link to %s: specify the models to change", list[i], real);
        return false;
    }
    return true;
}

/* A file that is not a model does not need the binary. One that cannot be opened for another reason
 * may name it: the command stops. */
static void leave_broken(output *out, const char **list, size_t *count) {
    size_t i, kept = 0;
    for (i = 0; i < *count; i++) {
        epctx_model model;
        epctx_error error;
        epctx_status status = cli_open(&model, list[i], &error);
        const output_item what = output_item_of("keep", "model", epctx_str_of(list[i]));
        epctx_model_close(&model);
        if (status == EPCTX_ERR_PROTOBUF)
            output_change(out, &what, "skipped %s", error.message);
        else
            list[kept++] = list[i];
    }
    *count = kept;
}

/* The .onnx files beside the binary, by name. */
static int list_models(output *out, const char *binary, epctx_str *folder, const char ***list,
                       size_t *count) {
    char *name;
    DIR *dir;
    bool ok;
    *folder = epctx_path_folder(epctx_str_of(binary));
    name = epctx_arena_copy(&out->arena, folder->size > 0 ? *folder : epctx_str_of("."));
    dir = name != NULL ? opendir(name) : NULL;
    if (name == NULL) return cli_fail_text("out of memory");
    if (dir == NULL) return cli_fail_text("%s: %s", name, strerror(errno));
    ok = read_folder(dir, *folder, &out->arena, list, count);
    closedir(dir);
    if (!ok) return cli_fail_text("out of memory");
    if (*count > 0) qsort(*list, *count, sizeof **list, compare_names);
    return CLI_OK;
}

/* The models beside the binary. */
static int find_models(output *out, const char *binary, const char ***list, size_t *count) {
    epctx_str folder;
    int code = list_models(out, binary, &folder, list, count);
    if (code != CLI_OK) return code;
    if (*count == 0)
        return cli_fail_text("%s: there is no .onnx file beside it: specify the models", binary);
    if (!are_here(folder, *list, *count, &out->arena)) return CLI_FAILED;
    leave_broken(out, *list, count);
    return CLI_OK;
}

static bool is_one_of(const char *path, const char *const *models, size_t count) {
    const epctx_io *io = epctx_io_files();
    epctx_file_info one, other;
    size_t i;
    if (io->stat_fn(io->user, path, &one, NULL) != EPCTX_OK) return false;
    for (i = 0; i < count; i++)
        if (io->stat_fn(io->user, models[i], &other, NULL) == EPCTX_OK &&
            epctx_file_same(&one, &other))
            return true;
    return false;
}

/* The user named models: another one beside the binary would lose it. */
static int check_others(output *out, const char *from, const char *to, const char *const *models,
                        size_t count, const epctx_profile *profile) {
    const char **others = NULL;
    size_t other_count = 0, i;
    epctx_str folder;
    epctx_move_opts opts;
    int code = list_models(out, from, &folder, &others, &other_count);
    memset(&opts, 0, sizeof opts);
    opts.profile = profile;
    opts.io = cli_io();
    opts.dry_run = true;
    for (i = 0; code == CLI_OK && i < other_count; i++) {
        epctx_move_report report;
        epctx_error error;
        if (is_one_of(others[i], models, count)) continue;
        if (epctx_move_binary(from, to, &others[i], 1, &opts, &report, &error) == EPCTX_OK &&
            report.model_count > 0)
            code = cli_fail_text("%s names %s, too: name it as well, or no model", others[i], from);
    }
    return code;
}

/* Behind a link the file would get the new name, and the link would lead nowhere. */
static bool is_no_link(const char *from) {
    const epctx_io *io = epctx_io_files();
    char real[EPCTX_PATH_MAX];
    epctx_error error;
    if (!output_is_link(from)) return true;
    if (io->canonical_fn(io->user, from, real, sizeof real, &error) != EPCTX_OK) {
        epctx_blame(&error, from, NULL, NULL);
        cli_fail(&error);
    } else {
        cli_fail_text("%s: is a link to %s: specify the file itself", from, real);
    }
    return false;
}

/* Only nodes get the new name: what else refers to the file would lose it. */
static bool is_movable(const char *from, const char *const *models, size_t count) {
    epctx_output_file file;
    neighbours_plan plan;
    epctx_error error;
    memset(&file, 0, sizeof file);
    memset(&plan, 0, sizeof plan);
    file.path = from;
    plan.files = &file;
    plan.file_count = 1;
    plan.contexts_apart = true;
    plan.apart = models;
    plan.apart_count = count;
    plan.cure = "mv renames what nodes have in ep_cache_context, of models beside the file and of "
                "those that are named, and nothing else";
    if (neighbours_allow(&plan, &error) == EPCTX_OK) return true;
    cli_fail(&error);
    return false;
}

static void tell(void *user, const char *model, size_t nodes) {
    output *out = (output *)user;
    output_item what = output_item_of("change", "model", epctx_str_of(model));
    what.count = nodes;
    what.attribute = epctx_str_of("ep_cache_context");
    output_change(out, &what, "%s: %zu node%s", model, nodes, nodes == 1 ? "" : "s");
    output_file(out, "write", model, NULL, NULL);
}

enum { ATTEMPTS = 100 };

static int move(output *out, const char *from, const char *to, const char *const *models,
                size_t count, bool found, const epctx_profile *profile) {
    epctx_move_opts opts;
    epctx_move_report report;
    epctx_error error;
    epctx_status status = EPCTX_ERR_CHANGED;
    int i;
    memset(&opts, 0, sizeof opts);
    opts.profile = profile;
    opts.io = cli_io();
    opts.dry_run = out->dry_run;
    opts.derived = found;
    opts.moved_fn = tell;
    opts.user = out;
    if (out->dry_run && cli_writable(to, &error) != EPCTX_OK) return cli_fail(&error);
    /* A model that another process changed meanwhile is read again. */
    for (i = 0; i < ATTEMPTS && status == EPCTX_ERR_CHANGED; i++)
        status = epctx_move_binary(from, to, models, count, &opts, &report, &error);
    if (status == EPCTX_ERR_NOT_FOUND && found && report.size > 0)
        return cli_fail_cure(&error, "models in other folders must be named");
    if (status != EPCTX_OK) return cli_fail(&error);
    output_file(out, "rename", from, &report.size, to);
    return output_done(out);
}

static int run(const cli_args *args) {
    const char *const *operands = args->operands;
    const char **models = NULL;
    const epctx_profile *profile = NULL;
    const bool all = args->count == 2;
    size_t count = 0;
    output out;
    int code = CLI_USAGE;
    output_init(&out, args);
    if (cli_profile(args->profile, &profile)) {
        if (!is_no_link(operands[0])) {
            code = CLI_FAILED;
        } else if (all) {
            code = find_models(&out, operands[0], &models, &count);
        } else {
            count = (size_t)args->count - 2;
            code = check_others(&out, operands[0], operands[1], operands + 2, count, profile);
        }
        if (code == CLI_OK && !is_movable(operands[0], all ? models : operands + 2, count))
            code = CLI_FAILED;
        if (code == CLI_OK)
            code = move(&out, operands[0], operands[1], all ? models : operands + 2, count, all,
                        profile);
    }
    output_free(&out);
    return code;
}

const cli_command cli_mv = {
    .name = "mv",
    .group = CLI_CHANGE,
    .operands = "BINARY NAME [MODEL...]",
    .least = 2,
    .summary = "rename a context binary and update the models that name it",
    .about = "Renames a context binary, or moves it to another folder, and updates each\n"
             "EPContext node that names it. Without MODEL, updates all models beside the\n"
             "binary and skips .onnx files that are not models. Specify models in other\n"
             "folders, also if a link beside the binary refers to them; then list all models\n"
             "that use the binary: a model beside it that uses it and is not listed is an\n"
             "error, as is one in the two folders above. Each model stays loadable\n"
             "throughout; after a crash, run the same command again to complete it. BINARY is\n"
             "no link, and links to it are not changed.\n",
    .more = "Example: epctx mv model_npu.bin weights.bin\n",
    .run = run,
};
