/* What `epctx compile` would write, looked at before anything is compiled, and what was written. */
#include "compile.h"
#include "core/judge.h"
#include "core/neighbours.h"

#include <inttypes.h>
#include <string.h>

/* -- binaries that other models need, or none any more -- */

enum { MOST_NAMES = 8, MOST_TEXT = 300 };

enum { NO_BINARY = INT32_MAX - 1, NEW_BINARY }; /* of which_binary, beside numbers */

/* The first names of a list that has no end. */
typedef struct name_list {
    const char *names[MOST_NAMES]; /* sorted */
    size_t count;                  /* of all */
} name_list;

/* A binary that a model which is replaced names now, and will not any more. */
typedef struct old_binary {
    struct old_binary *next;
    uint32_t number;
    const char *path, *name;    /* canonical, and as the model has it */
    name_list leaving, staying; /* models that are replaced, and others that name it */
} old_binary;

typedef struct search {
    const char *binary; /* the new one, canonical; NULL: it is not there yet */
    epctx_str folder;
    epctx_arena *arena;
    epctx_map graphs;   /* of the models that are replaced: they may go */
    epctx_map replaced; /* the names of these models */
    epctx_map looked;   /* names of binaries in `folder` -> NEW_BINARY or number of an old one */
    name_list needing;  /* models that need another graph of the new binary */
    old_binary *old;    /* the last one has number 0 */
    bool strict;        /* names of graphs tell nothing: whoever names the binary needs it */
    bool no_memory;
} search;

static void add_name(search *s, name_list *list, const char *name) {
    size_t at, size = list->count < MOST_NAMES ? list->count : MOST_NAMES;
    for (at = size; at > 0 && strcmp(name, list->names[at - 1]) < 0; at--)
        if (at < MOST_NAMES) list->names[at] = list->names[at - 1];
    list->count++;
    if (at == MOST_NAMES) return;
    list->names[at] = epctx_arena_copy(s->arena, epctx_str_of(name));
    if (list->names[at] != NULL) return;
    list->names[at] = "?";
    s->no_memory = true;
}

/* "a, b and 3 more" */
static const char *list_text(const name_list *list, char out[MOST_TEXT]) {
    size_t i, used = 0, size = list->count < MOST_NAMES ? list->count : MOST_NAMES;
    out[0] = '\0';
    for (i = 0; i < size && (i == 0 || used + strlen(list->names[i]) + 32 < MOST_TEXT); i++) {
        const char *between = i == 0 ? "" : i + 1 == list->count ? " and " : ", ";
        int n = snprintf(out + used, MOST_TEXT - used, "%s%.*s", between, MOST_TEXT - 60,
                         list->names[i]);
        used += n > 0 ? (size_t)n : 0;
    }
    if (i < list->count) snprintf(out + used, MOST_TEXT - used, " and %zu more", list->count - i);
    return out;
}

/* The name of the next node's graph. */
static bool next_graph(epctx_cursor *nodes, epctx_str *name) {
    epctx_node_view view;
    epctx_epnode node;
    while (epctx_next_node(nodes, &view))
        if (epctx_view_is_epnode(&view) && epctx_view_read_epnode(&view, &node, NULL) == EPCTX_OK) {
            *name = node.partition_name;
            return true;
        }
    return false;
}

/* A copy of a model that is replaced needs nothing that its original did not. */
static bool needs_other_graph(const search *s, const epctx_model *model) {
    epctx_cursor nodes = epctx_view_graph_nodes(epctx_model_graph(model));
    epctx_str name;
    while (next_graph(&nodes, &name))
        if (s->strict || epctx_map_get(&s->graphs, name) == EPCTX_MAP_NONE) return true;
    return false;
}

static void add_old(search *s, const char *model, const epctx_dependency *file) {
    old_binary *old = s->old;
    while (old != NULL && strcmp(old->path, file->path) != 0) old = old->next;
    if (old == NULL) {
        old = (old_binary *)epctx_arena_alloc(s->arena, sizeof *old);
        if (old != NULL) old->path = epctx_arena_copy(s->arena, epctx_str_of(file->path));
        if (old != NULL) old->name = epctx_arena_copy(s->arena, file->name);
        if (old == NULL || old->path == NULL || old->name == NULL) {
            s->no_memory = true;
            return;
        }
        old->number = s->old != NULL ? s->old->number + 1 : 0;
        old->next = s->old;
        s->old = old;
    }
    add_name(s, &old->leaving, model);
}

/* Remembers graphs and binaries of a model that is replaced; it need not be there yet. */
static void add_replaced(search *s, const char *path) {
    epctx_str file = epctx_path_file(epctx_str_of(path));
    epctx_str copy = epctx_str_of(epctx_arena_copy(s->arena, file));
    epctx_dependency *files;
    epctx_model model;
    epctx_error ignored;
    epctx_str name;
    size_t count = 0, i;
    if (copy.data == NULL || epctx_map_put(&s->replaced, copy, 1) != EPCTX_OK) s->no_memory = true;
    if (cli_open(&model, path, &ignored) == EPCTX_OK &&
        epctx_model_files(&model, NULL, s->arena, &files, &count, &ignored) == EPCTX_OK) {
        epctx_cursor nodes = epctx_view_graph_nodes(epctx_model_graph(&model));
        while (next_graph(&nodes, &name)) {
            epctx_str graph = epctx_str_of(epctx_arena_copy(s->arena, name));
            if (graph.data == NULL || epctx_map_put(&s->graphs, graph, 1) != EPCTX_OK)
                s->no_memory = true;
        }
        for (i = 0; i < count; i++)
            if (files[i].use == EPCTX_USE_CONTEXT && files[i].path != NULL &&
                (s->binary == NULL || strcmp(files[i].path, s->binary) != 0))
                add_old(s, copy.data != NULL ? copy.data : "?", &files[i]);
    }
    epctx_model_close(&model);
}

/* Which binary a name means in the folder: the number of an old one, or NEW_BINARY. However many
 * models have the name, it is looked for once: that takes a dozen system calls. */
static uint32_t which_binary(search *s, epctx_str name) {
    static char path[EPCTX_PATH_MAX];
    uint32_t which = epctx_map_get(&s->looked, name);
    epctx_str copy = {NULL, 0};
    const old_binary *old;
    if (which != EPCTX_MAP_NONE) return which;
    which = NO_BINARY;
    if (epctx_path_find(epctx_io_files(), s->folder, name, 0, path, sizeof path, NULL) ==
        EPCTX_OK) {
        for (old = s->old; old != NULL; old = old->next)
            if (strcmp(path, old->path) == 0) which = old->number;
        if (s->binary != NULL && strcmp(path, s->binary) == 0) which = NEW_BINARY;
    }
    copy.data = epctx_arena_copy(s->arena, name);
    copy.size = name.size;
    if (copy.data == NULL || epctx_map_put(&s->looked, copy, which) != EPCTX_OK)
        s->no_memory = true;
    return which;
}

/* Which of the binaries another model names. */
static void add_other(search *s, const char *name, const char *path) {
    epctx_check_opts names_only;
    epctx_dependency *files;
    epctx_model model;
    epctx_error ignored;
    epctx_arena arena;
    old_binary *old;
    size_t count = 0, i;
    memset(&names_only, 0, sizeof names_only);
    names_only.no_files = true;
    epctx_arena_init(&arena, NULL);
    if (cli_open(&model, path, &ignored) == EPCTX_OK &&
        epctx_model_files(&model, &names_only, &arena, &files, &count, &ignored) == EPCTX_OK)
        for (i = 0; i < count; i++) {
            uint32_t which;
            if (files[i].use != EPCTX_USE_CONTEXT) continue;
            which = which_binary(s, files[i].name);
            if (which == NEW_BINARY && needs_other_graph(s, &model)) add_name(s, &s->needing, name);
            for (old = which < NO_BINARY ? s->old : NULL; old != NULL; old = old->next)
                if (old->number == which) add_name(s, &old->staying, name);
        }
    epctx_model_close(&model);
    epctx_arena_free(&arena);
}

static bool look_at(void *state, const char *name) {
    static char path[EPCTX_PATH_MAX];
    search *s = (search *)state;
    size_t size = strlen(name);
    int all;
    if (size < 6 || strcmp(name + size - 5, ".onnx") != 0 ||
        epctx_map_get(&s->replaced, epctx_str_of(name)) != EPCTX_MAP_NONE)
        return true;
    all = snprintf(path, sizeof path, "%.*s%s", (int)s->folder.size, s->folder.data, name);
    if (all >= 0 && (size_t)all < sizeof path) add_other(s, name, path); /* else cannot be opened */
    return true;
}

/* The path of a model's output; terminated. */
epctx_status compile_output_path(const char *file, const compile_settings *set, char *out,
                                 epctx_error *error) {
    if (set->gen.context_file_path == NULL)
        return epctx_path_context_model(epctx_str_of(file), out, EPCTX_PATH_MAX, error);
    snprintf(out, EPCTX_PATH_MAX, "%s", set->gen.context_file_path);
    return EPCTX_OK;
}

static epctx_status look_beside(search *s, const char *path, const char *const *files, int count,
                                const compile_settings *set, epctx_error *error) {
    static char old[EPCTX_PATH_MAX], text[MOST_TEXT];
    const epctx_io *io = epctx_io_files();
    const char *folder;
    epctx_status status = EPCTX_OK;
    int i;
    for (i = 0; status == EPCTX_OK && i < count; i++) {
        status = compile_output_path(files[i], set, old, error);
        if (status == EPCTX_OK) add_replaced(s, old);
    }
    if (status != EPCTX_OK || (s->binary == NULL && s->old == NULL)) return status;
    s->folder = epctx_path_folder(epctx_str_of(path));
    folder = epctx_arena_copy(s->arena, s->folder);
    if (folder != NULL && !s->no_memory) status = io->list_fn(io->user, folder, look_at, s, error);
    if (folder == NULL || s->no_memory) return epctx_fail(error, EPCTX_ERR_NOMEM, "out of memory");
    if (status != EPCTX_OK || s->needing.count == 0) return status;
    status = epctx_fail(error, EPCTX_ERR_EXISTS,
                        "%s still need%s this binary: compile all models that share it "
                        "together, or remove it first",
                        list_text(&s->needing, text), s->needing.count == 1 ? "s" : "");
    epctx_blame(error, path, NULL, NULL);
    return status;
}

epctx_status compile_add_note(compile_notes *notes, const char *line, epctx_error *error) {
    const char **lines =
        (const char **)epctx_arena_array(&notes->arena, notes->count + 1, sizeof *lines);
    char *copy = epctx_arena_copy(&notes->arena, epctx_str_of(line));
    if (lines == NULL || copy == NULL) return epctx_fail(error, EPCTX_ERR_NOMEM, "out of memory");
    if (notes->count > 0) memcpy(lines, notes->lines, notes->count * sizeof *lines);
    notes->lines = lines;
    lines[notes->count++] = copy;
    return EPCTX_OK;
}

/* Adds notes about the binaries that are kept. */
static epctx_status tell_left(const search *s, compile_notes *notes, epctx_error *error) {
    static char leaving[MOST_TEXT], staying[MOST_TEXT], line[3 * MOST_TEXT];
    const old_binary *old;
    epctx_status status = EPCTX_OK;
    for (old = s->old; old != NULL && status == EPCTX_OK; old = old->next) {
        list_text(&old->leaving, leaving);
        if (old->staying.count > 0)
            snprintf(line, sizeof line, "%s no longer share%s %.*s, which %s still need%s", leaving,
                     old->leaving.count == 1 ? "s" : "", MOST_TEXT, old->name,
                     list_text(&old->staying, staying), old->staying.count == 1 ? "s" : "");
        else
            snprintf(line, sizeof line,
                     "%.*s is kept although no model here needs it any more; last "
                     "used by %s",
                     MOST_TEXT, old->name, leaving);
        status = compile_add_note(notes, line, error);
    }
    return status;
}

/* The path of the binary that is written, beside the first model. */
static epctx_status binary_path(const char *first, const compile_settings *set,
                                const epctx_backend *backend, char *path, epctx_error *error) {
    static char name[EPCTX_PATH_MAX];
    size_t folder;
    epctx_status status = compile_output_path(first, set, path, error);
    if (status != EPCTX_OK || set->gen.embed) return status;
    status = epctx_path_binary(epctx_str_of(path), epctx_str_of(backend->short_name), name,
                               sizeof name, error);
    folder = epctx_path_folder(epctx_str_of(path)).size;
    if (status == EPCTX_OK) snprintf(path + folder, EPCTX_PATH_MAX - folder, "%s", name);
    return status;
}

bool compile_lock(const char *first, const compile_settings *set, const epctx_backend *backend,
                  epctx_io_file *lock) {
    static char path[EPCTX_PATH_MAX], folder[EPCTX_PATH_MAX], root[EPCTX_PATH_MAX];
    const epctx_io *io = cli_io();
    char name[EPCTX_NAME_MAX];
    epctx_str part;
    if (binary_path(first, set, backend, path, NULL) != EPCTX_OK) return false;
    part = epctx_path_folder(epctx_str_of(path));
    snprintf(folder, sizeof folder, "%.*s", part.size > 0 ? (int)part.size : 1,
             part.size > 0 ? part.data : ".");
    snprintf(name, sizeof name, "%.200s.compile.lock", path + part.size);
    memset(lock, 0, sizeof *lock);
    return io->canonical_fn(io->user, folder, root, sizeof root, NULL) == EPCTX_OK &&
           io->lock_fn(io->user, root, name, lock, NULL) == EPCTX_OK;
}

void compile_unlock(epctx_io_file *lock) {
    cli_io()->close_fn(cli_io()->user, lock);
}

/* The models that are written, and their files of initializers. */
static epctx_status list_outputs(const char *const *files, const compile_settings *set,
                                 epctx_arena *arena, const char **models,
                                 epctx_output_file *initializers, size_t count,
                                 epctx_error *error) {
    static char path[EPCTX_PATH_MAX], beside[EPCTX_PATH_MAX];
    const char *const name = set->gen.initializers_file_name;
    size_t i;
    for (i = 0; i < count; i++) {
        epctx_status status = compile_output_path(files[i], set, path, error);
        models[i] = epctx_arena_copy(arena, epctx_str_of(path));
        if (status == EPCTX_OK && name != NULL) {
            status = epctx_path_join(epctx_path_folder(epctx_str_of(path)), epctx_str_of(name),
                                     beside, sizeof beside, error);
            initializers[i].path = epctx_arena_copy(arena, epctx_str_of(beside));
        }
        if (status != EPCTX_OK) return status;
        if (models[i] == NULL || (name != NULL && initializers[i].path == NULL))
            return epctx_fail(error, EPCTX_ERR_NOMEM, "out of memory");
    }
    return EPCTX_OK;
}

/* What other models need: initializers in any way, the binary as anything but their own. */
static epctx_status allow(const char *binary, const char *const *files, int count,
                          const compile_settings *set, compile_notes *notes, epctx_error *error) {
    neighbours_plan plan;
    epctx_output_file one;
    epctx_status status;
    const char **models;
    epctx_output_file *initializers;
    memset(&plan, 0, sizeof plan);
    memset(&one, 0, sizeof one);
    plan.model_count = (size_t)count;
    models = (const char **)epctx_arena_array(&notes->arena, plan.model_count, sizeof *models);
    initializers = (epctx_output_file *)epctx_arena_array(&notes->arena, plan.model_count,
                                                          sizeof *initializers);
    if (models == NULL || initializers == NULL)
        return epctx_fail(error, EPCTX_ERR_NOMEM, "out of memory");
    status = list_outputs(files, set, &notes->arena, models, initializers, plan.model_count, error);
    plan.models = models;
    plan.files = initializers;
    plan.file_count = set->gen.initializers_file_name != NULL ? plan.model_count : 0;
    if (status == EPCTX_OK) status = neighbours_allow(&plan, error);
    one.path = binary;
    plan.files = &one;
    plan.file_count = !set->gen.embed;
    plan.contexts_apart = true;
    return status == EPCTX_OK ? neighbours_allow(&plan, error) : status;
}

epctx_status compile_check_binary(const char *const *files, int count, const compile_settings *set,
                                  const epctx_backend *backend, compile_notes *notes,
                                  epctx_error *error) {
    static char path[EPCTX_PATH_MAX];
    epctx_status status;
    epctx_error_clear(error);
    if (!set->gen.overwrite) return EPCTX_OK; /* then nothing is replaced */
    status = binary_path(files[0], set, backend, path, error);
    if (status == EPCTX_OK) status = allow(path, files, count, set, notes, error);
    return status == EPCTX_OK ? compile_check_path(path, files, count, set, false, notes, error)
                              : status;
}

epctx_status compile_check_path(const char *path, const char *const *files, int count,
                                const compile_settings *set, bool strict, compile_notes *notes,
                                epctx_error *error) {
    static search s;
    static char real[EPCTX_PATH_MAX];
    const epctx_io *io = epctx_io_files();
    epctx_status status;
    memset(&s, 0, sizeof s);
    s.strict = strict;
    if (!set->gen.embed && io->canonical_fn(io->user, path, real, sizeof real, NULL) == EPCTX_OK)
        s.binary = real;
    s.arena = &notes->arena;
    epctx_map_init(&s.graphs, s.arena);
    epctx_map_init(&s.replaced, s.arena);
    epctx_map_init(&s.looked, s.arena);
    status = look_beside(&s, path, files, count, set, error);
    return status == EPCTX_OK ? tell_left(&s, notes, error) : status;
}

/* The sources that a weightless model looks for in vain. */
static epctx_status note_source(const char *path, compile_notes *notes, epctx_error *error) {
    static char line[2 * EPCTX_PATH_MAX + 300];
    epctx_dependency *files;
    epctx_model model;
    size_t count = 0, i;
    epctx_status status = cli_open(&model, path, error);
    if (status == EPCTX_OK)
        status = epctx_model_files(&model, NULL, &notes->arena, &files, &count, error);
    for (i = 0; i < count && status == EPCTX_OK; i++) {
        if (files[i].use != EPCTX_USE_SOURCE_MODEL || files[i].path != NULL) continue;
        snprintf(line, sizeof line,
                 "%s reads its weights from '%.*s', which is not in its folder: copy it there "
                 "with its data, or specify it (epctx run --source, "
                 "ep.context_source_model_path)",
                 path, (int)files[i].name.size, files[i].name.data);
        status = compile_add_note(notes, line, error);
    }
    epctx_model_close(&model);
    return status;
}

epctx_status compile_note_sources(const char *const *files, int count, const compile_settings *set,
                                  compile_notes *notes, epctx_error *error) {
    static char path[EPCTX_PATH_MAX];
    epctx_status status = EPCTX_OK;
    int i;
    epctx_error_clear(error);
    for (i = 0; i < count && status == EPCTX_OK; i++) {
        status = compile_output_path(files[i], set, path, error);
        if (status == EPCTX_OK) status = note_source(path, notes, error);
    }
    return status;
}

/* Whether the reference NPU loads what it has made. */
static epctx_status load_output(const char *file, const char *path, const compile_settings *set,
                                epctx_error *error) {
    epctx_load_opts load;
    epctx_backend backend;
    epctx_loaded loaded;
    epctx_model model;
    const epctx_io *io = epctx_io_files();
    char real[EPCTX_PATH_MAX]; /* where a link leads: the binary is beside that file */
    epctx_status status;
    memset(&load, 0, sizeof load);
    memset(&loaded, 0, sizeof loaded);
    memset(&model, 0, sizeof model);
    status = io->canonical_fn(io->user, path, real, sizeof real, error);
    if (status == EPCTX_OK) status = epctx_model_open_file(&model, real, &set->open, error);
    load.source_model_path = file; /* only weightless contexts read it */
    if (status == EPCTX_OK) status = cli_backend(set->arch, &backend, error);
    if (status == EPCTX_OK) status = epctx_load(&loaded, &model, &backend, &load, error);
    epctx_unload(&loaded);
    epctx_model_close(&model);
    return status;
}

static epctx_status judge_output(const char *file, const char *path, const compile_settings *set,
                                 compile_notes *notes, epctx_error *error) {
    epctx_error before, why;
    epctx_status status = judge_file(path, file, &before, &why);
    if (status == EPCTX_OK) {
        status = load_output(file, path, set, &why);
        if (status != EPCTX_OK)
            return epctx_fail(error, status,
                              "%s was written, but the reference NPU does not load it (rule E900): "
                              "%s",
                              path, why.message);
    }
    if (status != EPCTX_OK)
        return epctx_fail(error, status, "%s was written, but ONNX Runtime would not load it: %s",
                          path, why.message);
    if (before.message[0] == '\0') return EPCTX_OK;
    return compile_add_note(notes,
                            "ONNX Runtime refuses the model, as it did before: epctx lint tells "
                            "why",
                            error);
}

epctx_status compile_judge(const char *const *files, int count, const compile_settings *set,
                           compile_notes *notes, epctx_error *error) {
    static char path[EPCTX_PATH_MAX];
    epctx_status status = EPCTX_OK;
    int i;
    for (i = 0; i < count && status == EPCTX_OK; i++) {
        status = compile_output_path(files[i], set, path, error);
        if (status == EPCTX_OK) status = judge_output(files[i], path, set, notes, error);
    }
    return status;
}

void compile_print_notes(FILE *out, const compile_notes *notes) {
    size_t i;
    for (i = 0; i < notes->count; i++) {
        fprintf(out, "%-14s ", "note");
        cli_put(out, epctx_str_of(notes->lines[i]));
        fputc('\n', out);
    }
}

void compile_print_file(FILE *out, const char *word, const char *path, const uint64_t *size) {
    fprintf(out, "%-14s ", word);
    cli_put(out, epctx_str_of(path));
    if (size != NULL) fprintf(out, ", %" PRIu64 " bytes", *size);
    fputc('\n', out);
}

void compile_json_notes(json_writer *w, const char *key, const compile_notes *notes) {
    size_t i;
    json_array(w, key, JSON_INLINE);
    for (i = 0; i < notes->count; i++) json_text(w, NULL, notes->lines[i]);
    json_end(w);
}

/* -- a dry run -- */

epctx_status compile_outputs(const char *file, const char *ep, const char *binary, bool joined,
                             const compile_settings *set, epctx_arena *arena, epctx_outputs *out,
                             epctx_error *error) {
    epctx_dependency *files;
    epctx_preflight_in in;
    epctx_gen_opts gen = set->gen;
    epctx_options options;
    epctx_model model;
    const char **inputs = NULL;
    size_t count = 0, i;
    epctx_status status = epctx_model_open_file(&model, file, &set->open, error);
    if (status == EPCTX_OK) status = epctx_model_files(&model, NULL, arena, &files, &count, error);
    memset(&in, 0, sizeof in);
    in.model_path = file;
    in.short_name = ep;
    in.binary = binary;
    in.binary_joined = joined;
    if (ep == NULL) gen.embed = binary == NULL;
    options = epctx_options_of_gen(&gen);
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

epctx_status compile_fits_group(const epctx_outputs *all, int count, epctx_error *error) {
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
                            "'%s' is not in the folder of '%s': models that share a binary must be "
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
                                "needs a unique name",
                                all[i].model, paths[1]);
    }
    return status;
}

static void print_plan(const epctx_outputs *all, int count, const compile_notes *notes) {
    int i;
    for (i = 0; i < count; i++) {
        compile_print_file(stdout, "model", all[i].model, NULL);
        if (all[i].initializers != NULL)
            compile_print_file(stdout, "initializers", all[i].initializers, NULL);
    }
    compile_print_file(stdout, "binary", all[0].binary != NULL ? all[0].binary : "embedded", NULL);
    compile_print_notes(stdout, notes);
    puts("note           dry run: nothing was compiled or written");
}

int compile_plan(const char *const *files, int count, const compile_settings *set) {
    epctx_outputs *all;
    epctx_backend backend;
    epctx_arena arena;
    epctx_error error;
    const char *binary = NULL;
    compile_notes notes;
    int i;
    epctx_status status;
    epctx_error_clear(&error);
    epctx_arena_init(&arena, NULL);
    memset(&notes, 0, sizeof notes);
    epctx_arena_init(&notes.arena, NULL);
    status = cli_backend(set->arch, &backend, &error);
    all = epctx_arena_array(&arena, (size_t)count, sizeof *all);
    if (all == NULL) status = epctx_fail(&error, EPCTX_ERR_NOMEM, "out of memory");
    for (i = 0; status == EPCTX_OK && i < count; i++) {
        status = compile_outputs(files[i], backend.short_name, binary, binary != NULL, set, &arena,
                                 &all[i], &error);
        if (status == EPCTX_OK && i > 0) status = compile_fits_group(all, i, &error);
        if (status == EPCTX_OK && set->share) {
            epctx_str name = epctx_path_file(epctx_str_of(all[0].binary));
            binary = epctx_arena_copy(&arena, name);
        }
    }
    if (status == EPCTX_OK)
        status = compile_check_binary(files, count, set, &backend, &notes, &error);
    if (status == EPCTX_OK) print_plan(all, count, &notes);
    epctx_arena_free(&notes.arena);
    epctx_arena_free(&arena);
    if (status == EPCTX_ERR_EXISTS && !set->gen.overwrite)
        return cli_fail_cure(&error, "-f replaces it");
    return status == EPCTX_OK ? CLI_OK : cli_fail(&error);
}

bool compile_tell_compiled(const epctx_model *model, const char *file) {
    char text[EPCTX_PATH_MAX + 300];
    epctx_walk walk;
    epctx_node_view node;
    epctx_str ep;
    epctx_walk_begin(&walk, model);
    if (!epctx_walk_epnode(&walk, &node)) return false;
    ep = epctx_view_node_attr_str(&node, "source");
    snprintf(text, sizeof text,
             "%s has EPContext nodes of '%.*s': it is compiled already, compile the original model",
             file, ep.size < 200 ? (int)ep.size : 200, ep.data);
    cli_fail_with_cure(text);
    return true;
}
