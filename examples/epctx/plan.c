/* What `epctx compile` would write, looked at before anything is compiled. */
#include "compile.h"

#include <string.h>

/* -- a binary that other models need -- */

typedef struct search {
    const char *binary; /* canonical */
    epctx_str folder;
    epctx_arena arena;
    epctx_map graphs;           /* of the models that are replaced: they may go */
    char found[EPCTX_PATH_MAX]; /* the first by name of the models that need another one */
    bool no_memory;
} search;

static bool names_binary(search *s, const epctx_model *model)
{
    epctx_dependency *files;
    epctx_arena arena;
    epctx_error ignored;
    size_t count = 0, i;
    bool found = false;
    epctx_arena_init(&arena, NULL);
    if (epctx_model_files(model, NULL, &arena, &files, &count, &ignored) == EPCTX_OK)
        for (i = 0; i < count; i++)
            found = found || (files[i].use == EPCTX_USE_CONTEXT && files[i].path != NULL &&
                              strcmp(files[i].path, s->binary) == 0);
    epctx_arena_free(&arena);
    return found;
}

/* The name of the next node's graph. */
static bool next_graph(epctx_cursor *nodes, epctx_str *name)
{
    epctx_node_view view;
    epctx_epnode node;
    while (epctx_next_node(nodes, &view))
        if (epctx_is_epnode(&view) && epctx_epnode_read(&view, &node, NULL) == EPCTX_OK) {
            *name = node.partition_name;
            return true;
        }
    return false;
}

/* Remembers the graphs of a model that is replaced; it need not be there yet. */
static void add_graphs(search *s, const char *path)
{
    epctx_model model;
    epctx_error ignored;
    epctx_str name;
    if (epctx_model_open_file(&model, path, NULL, &ignored) == EPCTX_OK) {
        epctx_cursor nodes = epctx_graph_nodes(epctx_model_graph(&model));
        while (next_graph(&nodes, &name)) {
            epctx_str copy = epctx_str_of(epctx_arena_copy(&s->arena, name));
            if (copy.data == NULL || epctx_map_put(&s->graphs, copy, 1) != EPCTX_OK)
                s->no_memory = true;
        }
    }
    epctx_model_close(&model);
}

/* A copy of a model that is replaced needs nothing that its original did not. */
static bool needs_other_graph(search *s, const char *path)
{
    epctx_model model;
    epctx_error ignored;
    epctx_str name;
    bool needs = false;
    if (epctx_model_open_file(&model, path, NULL, &ignored) == EPCTX_OK &&
        names_binary(s, &model)) {
        epctx_cursor nodes = epctx_graph_nodes(epctx_model_graph(&model));
        while (!needs && next_graph(&nodes, &name))
            needs = epctx_map_get(&s->graphs, name) == EPCTX_MAP_NONE;
    }
    epctx_model_close(&model);
    return needs;
}

static bool look_at(void *state, const char *name)
{
    static char path[EPCTX_PATH_MAX];
    search *s = (search *)state;
    size_t size = strlen(name);
    int all;
    if (size < 6 || strcmp(name + size - 5, ".onnx") != 0 ||
        (s->found[0] != '\0' && strcmp(name, s->found) > 0))
        return true;
    all = snprintf(path, sizeof path, "%.*s%s", (int)s->folder.size, s->folder.data, name);
    if (all < 0 || (size_t)all >= sizeof path) return true; /* it cannot be opened */
    if (needs_other_graph(s, path)) snprintf(s->found, sizeof s->found, "%s", name);
    return true;
}

/* The path of a model's output; terminated. */
static epctx_status context_path(const char *file, const compile_settings *set, char *out,
                                 epctx_error *error)
{
    if (set->gen.context_file_path == NULL)
        return epctx_path_context_model(epctx_str_of(file), out, EPCTX_PATH_MAX, error);
    snprintf(out, EPCTX_PATH_MAX, "%s", set->gen.context_file_path);
    return EPCTX_OK;
}

static epctx_status look_beside(search *s, const char *path, const char *const *files, int count,
                                const compile_settings *set, epctx_error *error)
{
    static char old[EPCTX_PATH_MAX];
    const epctx_io *io = epctx_io_files();
    const char *folder;
    epctx_status status = EPCTX_OK;
    int i;
    for (i = 0; status == EPCTX_OK && i < count; i++) {
        status = context_path(files[i], set, old, error);
        if (status == EPCTX_OK) add_graphs(s, old);
    }
    if (status != EPCTX_OK) return status;
    s->folder = epctx_path_folder(epctx_str_of(path));
    folder = epctx_arena_copy(&s->arena, s->folder);
    if (folder == NULL || s->no_memory)
        return epctx_fail(error, EPCTX_ERR_NOMEM, "out of memory");
    status = io->list_fn(io->user, folder, look_at, s, error);
    if (status != EPCTX_OK || s->found[0] == '\0') return status;
    status = epctx_fail(error, EPCTX_ERR_EXISTS,
                        "%s needs this binary as it is: compile all models that share it "
                        "together, or remove it first",
                        s->found);
    epctx_blame(error, path, NULL, NULL);
    return status;
}

epctx_status compile_check_binary(const char *const *files, int count, const compile_settings *set,
                                  const epctx_backend *backend, epctx_error *error)
{
    static search s;
    static char path[EPCTX_PATH_MAX], name[EPCTX_PATH_MAX], real[EPCTX_PATH_MAX];
    const epctx_io *io = epctx_io_files();
    epctx_status status;
    epctx_error_clear(error);
    /* Without -f no binary is replaced. */
    if (set->gen.embed || !set->gen.overwrite) return EPCTX_OK;
    status = context_path(files[0], set, path, error);
    if (status == EPCTX_OK)
        status = epctx_path_binary(epctx_str_of(path), epctx_str_of(backend->short_name), name,
                                   sizeof name, error);
    if (status != EPCTX_OK) return status;
    snprintf(path + epctx_path_folder(epctx_str_of(path)).size,
             sizeof path - epctx_path_folder(epctx_str_of(path)).size, "%s", name);
    if (io->canonical_fn(io->user, path, real, sizeof real, NULL) != EPCTX_OK) return EPCTX_OK;
    memset(&s, 0, sizeof s);
    s.binary = real;
    epctx_arena_init(&s.arena, NULL);
    epctx_map_init(&s.graphs, &s.arena);
    status = look_beside(&s, path, files, count, set, error);
    epctx_arena_free(&s.arena);
    return status;
}

/* -- a dry run -- */

/* The outputs of one model; `binary` (NULL: to be named) is that of the group. */
static epctx_status outputs_of(const char *file, const char *binary, const compile_settings *set,
                               const epctx_backend *backend, epctx_arena *arena, epctx_outputs *out,
                               epctx_error *error)
{
    epctx_dependency *files;
    epctx_preflight_in in;
    epctx_options options;
    epctx_model model;
    const char **inputs = NULL;
    size_t count = 0, i;
    epctx_status status = epctx_model_open_file(&model, file, &set->open, error);
    if (status == EPCTX_OK)
        status = epctx_model_files(&model, NULL, arena, &files, &count, error);
    epctx_options_init(&options, arena);
    options.values[EPCTX_OPTION_CONTEXT_FILE_PATH] = set->gen.context_file_path;
    options.values[EPCTX_OPTION_CONTEXT_EMBED_MODE] = set->gen.embed ? "1" : "0";
    options.values[EPCTX_OPTION_EXTERNAL_INITIALIZERS_FILE] = set->gen.initializers_file_name;
    options.values[EPCTX_OPTION_OVERWRITE] = set->gen.overwrite ? "1" : "0";
    memset(&in, 0, sizeof in);
    in.model_path = file;
    in.eps = &backend->short_name;
    in.ep_count = 1;
    in.binary = binary;
    in.binary_joined = binary != NULL;
    if (status == EPCTX_OK) {
        inputs = epctx_arena_array(arena, count, sizeof *inputs);
        if (inputs == NULL) status = epctx_fail(error, EPCTX_ERR_NOMEM, "out of memory");
    }
    for (i = 0; status == EPCTX_OK && i < count; i++)
        if (files[i].path != NULL) inputs[in.input_count++] = files[i].path;
    in.inputs = inputs;
    if (status == EPCTX_OK) status = epctx_preflight(&options, &in, arena, out, error);
    epctx_model_close(&model);
    return status;
}

/* Models of a group are beside its binary, each under a name of its own. */
static epctx_status fits_group(const epctx_outputs *all, int count, epctx_error *error)
{
    const epctx_io *io = epctx_io_files();
    static char first[EPCTX_PATH_MAX], here[EPCTX_PATH_MAX], folder[EPCTX_PATH_MAX];
    const char *paths[2] = {all[0].model, all[count].model};
    char *real[2] = {first, here};
    epctx_status status = EPCTX_OK;
    int i;
    for (i = 0; i < 2 && status == EPCTX_OK; i++) {
        epctx_str part = epctx_path_folder(epctx_str_of(paths[i]));
        snprintf(folder, sizeof folder, "%.*s.", (int)part.size, part.data);
        status = io->canonical_fn(io->user, folder, real[i], EPCTX_PATH_MAX, error);
    }
    if (status == EPCTX_OK && strcmp(first, here) != 0)
        status = epctx_fail(error, EPCTX_ERR_ARG,
                            "'%s' is not in the folder of '%s': models that share a binary are "
                            "beside it",
                            paths[1], paths[0]);
    for (i = 0; i < count && status == EPCTX_OK; i++) {
        epctx_str name = epctx_path_file(epctx_str_of(all[i].model));
        epctx_str again = epctx_path_file(epctx_str_of(paths[1]));
        if (epctx_str_eq(name, again) ||
            (all[count].initializers != NULL &&
             strcmp(all[i].initializers, all[count].initializers) == 0))
            status = epctx_fail(error, EPCTX_ERR_ARG,
                                "'%s' and '%s' would write the same file: each model of a group "
                                "needs a name of its own",
                                all[i].model, paths[1]);
    }
    return status;
}

static void print_plan(const epctx_outputs *all, int count)
{
    int i;
    for (i = 0; i < count; i++) {
        printf("model          %s\n", all[i].model);
        if (all[i].initializers != NULL) printf("initializers   %s\n", all[i].initializers);
    }
    printf("binary         %s\n", all[0].binary_count > 0 ? all[0].binaries[0] : "embedded");
    puts("note           a dry run: nothing was compiled, nothing was written");
}

int compile_plan(const char *const *files, int count, const compile_settings *set)
{
    epctx_outputs *all;
    epctx_backend backend;
    epctx_arena arena;
    epctx_error error;
    const char *binary = NULL;
    int i;
    epctx_status status;
    epctx_error_clear(&error);
    epctx_arena_init(&arena, NULL);
    status = cli_backend(set->arch, &backend, &error);
    all = epctx_arena_array(&arena, (size_t)count, sizeof *all);
    if (all == NULL) status = epctx_fail(&error, EPCTX_ERR_NOMEM, "out of memory");
    for (i = 0; status == EPCTX_OK && i < count; i++) {
        status = outputs_of(files[i], binary, set, &backend, &arena, &all[i], &error);
        if (status == EPCTX_OK && i > 0) status = fits_group(all, i, &error);
        if (status == EPCTX_OK && set->share) {
            epctx_str name = epctx_path_file(epctx_str_of(all[0].binaries[0]));
            binary = epctx_arena_copy(&arena, name);
        }
    }
    if (status == EPCTX_OK) status = compile_check_binary(files, count, set, &backend, &error);
    if (status == EPCTX_OK) print_plan(all, count);
    epctx_arena_free(&arena);
    if (status == EPCTX_ERR_EXISTS && !set->gen.overwrite)
        return cli_fail_text("%s (-f replaces it)", error.message);
    return status == EPCTX_OK ? CLI_OK : cli_fail(&error);
}
