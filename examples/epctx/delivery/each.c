/* Commands that take several files, and folders for what is in them and below. */
#include "each.h"
#include "tree.h"

#include <string.h>

typedef struct each_work {
    each_sort sort;
    int failed, code;
    int (*fn)(void *user, const char *file, bool in_folder);
    void *user;
} each_work;

static void call(each_work *work, const char *file, bool in_folder) {
    const int code = work->fn(work->user, file, in_folder);
    if (code > work->code) work->code = code;
}

static bool is_binary(const char *path) {
    const epctx_io *io = epctx_io_files();
    epctx_mapping mapping;
    epctx_binary_id id;
    epctx_span bytes;
    if (io->map_fn(io->user, NULL, path, false, &mapping, NULL) != EPCTX_OK) return false;
    bytes.data = mapping.data;
    bytes.size = mapping.size;
    epctx_binary_identify(bytes, bytes, bytes.size, &id);
    io->unmap_fn(io->user, &mapping);
    return id.sort == EPCTX_BINARY_SORT_CONTEXT;
}

/* What cannot be read is tried, so that its failure is told. */
static bool is_compiled(const char *path) {
    epctx_model model;
    epctx_node_view node;
    bool compiled = cli_open(&model, path, NULL) != EPCTX_OK || cli_first_epnode(&model, &node);
    epctx_model_close(&model);
    return compiled;
}

static bool is_wanted(each_sort sort, const char *path) {
    const bool model = tree_ends(path, ".onnx");
    return sort == EACH_COMPILED ? model && is_compiled(path) : model || is_binary(path);
}

static void call_folder(each_work *work, const char *folder) {
    static const char *const words[] = {"model or context binary", "EPContext model"};
    epctx_arena arena;
    epctx_error error;
    tree all;
    size_t i, found = 0;
    epctx_arena_init(&arena, NULL);
    if (tree_read(&all, folder, &arena, &error) != EPCTX_OK) {
        cli_fail(&error);
        all.count = 0;
        found = 1;
        work->code = work->failed > work->code ? work->failed : work->code;
    }
    for (i = 0; i < all.count && !cli_signals_waiting(); i++) {
        const tree_entry *entry = &all.entries[i];
        if (entry->kind != TREE_FILE || !is_wanted(work->sort, entry->path)) continue;
        found++;
        call(work, entry->path, true);
    }
    epctx_arena_free(&arena);
    if (found > 0) return;
    cli_fail_text("%s: there is no %s in this folder", folder, words[work->sort]);
    work->code = work->failed > work->code ? work->failed : work->code;
}

bool each_is_several(const cli_args *args) {
    return args->count > 1 || tree_is_folder(args->operands[0]);
}

int each_file(const cli_args *args, each_sort sort, int failed,
              int (*fn)(void *user, const char *file, bool in_folder), void *user) {
    each_work work = {sort, failed, CLI_OK, fn, user};
    int i;
    for (i = 0; i < args->count && !cli_signals_waiting(); i++) {
        const char *path = args->operands[i];
        if (tree_is_folder(path))
            call_folder(&work, path);
        else
            call(&work, path, false);
    }
    return work.code;
}

/* -- changes -- */

typedef struct change_work {
    int (*fn)(void *user, const char *file, json_writer *w);
    void *user;
    bool json;
    size_t count;
    json_writer *w;
} change_work;

static int change(void *user, const char *file, bool in_folder) {
    change_work *work = (change_work *)user;
    (void)in_folder;
    if (!work->json) {
        fputs(work->count > 0 ? "\n" : "", stdout);
        cli_put(stdout, epctx_str_of(file));
        puts(":");
    }
    work->count++;
    return work->fn(work->user, file, work->w);
}

int each_change(const cli_args *args, int (*fn)(void *user, const char *file, json_writer *w),
                void *user) {
    change_work work = {fn, user, args->json, 0, NULL};
    int code;
    if (!each_is_several(args)) return fn(user, args->operands[0], NULL);
    if (args->output != NULL || (!args->in_place && !args->dry_run)) {
        cli_misuse("several files are changed with --in-place, each in its place (--dry-run writes "
                   "nothing); -o is for one");
        return CLI_USAGE;
    }
    if (work.json) {
        work.w = cli_json_begin(stdout);
        json_array(work.w, "models", JSON_HANGING);
    }
    code = each_file(args, EACH_COMPILED, CLI_FAILED, change, &work);
    if (work.json) {
        json_end(work.w);
        cli_json_end();
    }
    return code;
}
