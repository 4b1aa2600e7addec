/* `epctx compile` with several models: they share one binary. */
#define _POSIX_C_SOURCE 200809L

#include "compile.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Weights of a compiled graph: bytes that were new in the binary, and that were there already. */
typedef struct weights {
    uint64_t stored, shared;
} weights;

/* The group while it is compiled. */
typedef struct sharing {
    weights all;
    FILE *lines; /* of the report, printed when everything was written */
    epctx_arena arena;
    epctx_map known; /* name of a graph -> bytes of its weights in `sizes` */
    uint64_t *sizes;
    size_t known_count, room;
} sharing;

/* One model of it. */
typedef struct member {
    const char *file;
    weights *graphs; /* in the order of the model's partitions */
    epctx_arena *arena;
    bool verbose;
    left_nodes left;
    char *open_inputs; /* NULL or "": every input has a fixed shape */
} member;

/* What the compiler tells of the graph that is done; of one that was in the binary it is old. */
static void note_step(void *user, const char *work, uint64_t done, uint64_t total) {
    member *m = (member *)user;
    bool compiling = strcmp(work, "compile") == 0;
    if (compiling && m->graphs == NULL)
        m->graphs = epctx_arena_array(m->arena, (size_t)total, sizeof *m->graphs);
    if (compiling && m->graphs != NULL)
        cli_weight_bytes(&m->graphs[done - 1].stored, &m->graphs[done - 1].shared);
    if (m->verbose)
        fprintf(stderr, "%s%s%s %" PRIu64 " of %" PRIu64 "\n", compiling ? m->file : "",
                compiling ? ": " : "", work, done, total);
}

/* Remembers a graph under its name. */
static bool learn(sharing *s, epctx_str name, uint64_t size) {
    epctx_str copy = epctx_str_of(epctx_arena_copy(&s->arena, name));
    if (s->known_count == s->room) {
        uint64_t *more = epctx_arena_array(&s->arena, s->room * 2 + 16, sizeof *more);
        if (more == NULL) return false;
        if (s->room > 0) memcpy(more, s->sizes, s->room * sizeof *more);
        s->sizes = more;
        s->room = s->room * 2 + 16;
    }
    s->sizes[s->known_count] = size;
    return copy.data != NULL &&
           epctx_map_put(&s->known, copy, (uint32_t)s->known_count++) == EPCTX_OK;
}

/* Weights of the model's graphs; those of a graph that another model brought are all shared. */
static bool add_graphs(sharing *s, const member *m, const epctx_gen_report *report, weights *sum) {
    size_t i;
    memset(sum, 0, sizeof *sum);
    for (i = 0; i < report->partition_count; i++) {
        epctx_str name = report->nodes[i].name;
        uint32_t at = epctx_map_get(&s->known, name);
        if (m->graphs == NULL) return false;
        if (at != EPCTX_MAP_NONE) {
            sum->shared += s->sizes[at];
            continue;
        }
        sum->stored += m->graphs[i].stored;
        sum->shared += m->graphs[i].shared;
        if (!learn(s, name, m->graphs[i].stored + m->graphs[i].shared)) return false;
    }
    s->all.stored += sum->stored;
    s->all.shared += sum->shared;
    return true;
}

static void print_member(FILE *out, const char *file, const epctx_gen_report *report,
                         const weights *w) {
    fprintf(out, "%-14s ", "model");
    cli_put(out, epctx_str_of(report->context_path[0] != '\0' ? report->context_path : file));
    fprintf(out,
            ": %zu partition%s, %zu node%s compiled, %zu left to the CPU; %" PRIu64
            " bytes of weights, %" PRIu64 " of them shared\n",
            report->partition_count, cli_plural(report->partition_count), report->compiled_nodes,
            cli_plural(report->compiled_nodes), report->cpu_nodes, w->stored + w->shared,
            w->shared);
}

/* Why nodes of it are left to the CPU. */
static void note_refusal(void *user, const epctx_node *node, const epctx_error *why) {
    left_note(&((member *)user)->left, node, why);
}

/* One model of the group; the last one writes everything. */
static epctx_status compile_member(epctx_workspace *workspace, const char *file, bool last,
                                   const compile_settings *set, const epctx_backend *backend,
                                   epctx_gen_report *report, sharing *s, epctx_error *error) {
    member mine;
    epctx_gen_opts gen = set->gen;
    epctx_open_opts open = set->open;
    epctx_hooks hooks;
    epctx_model model;
    epctx_status status;
    weights sum;
    open.io = cli_io();
    status = epctx_model_open_file(&model, file, &open, error);
    if (status != EPCTX_OK) return status;
    memset(&mine, 0, sizeof mine);
    mine.file = file;
    mine.arena = &s->arena;
    mine.verbose = set->verbose;
    left_begin(&mine.left);
    status = compile_fix_dims(&model, set, false, error);
    if (status == EPCTX_OK && last) status = compile_unused_dim(set, error);
    if (status == EPCTX_OK) status = compile_open_inputs(&model, &mine.open_inputs, error);
    cli_progress_begin("compile", 0);
    memset(&hooks, 0, sizeof hooks);
    hooks.user = &mine;
    hooks.spent_fn = cli_spent;
    hooks.progress_fn = note_step;
    if (set->verbose) hooks.refused_fn = note_refusal;
    gen.hooks = &hooks;
    gen.workspace = workspace;
    gen.stop = last;
    if (status == EPCTX_OK) status = epctx_generate(&model, backend, &gen, report, error);
    if (status == EPCTX_OK && !add_graphs(s, &mine, report, &sum))
        status = epctx_fail(error, EPCTX_ERR_NOMEM, "out of memory");
    epctx_model_close(&model);
    cli_progress_end();
    if (status == EPCTX_OK) {
        print_member(s->lines, file, report, &sum);
        left_print(s->lines, &mine.left);
        if (report->cpu_nodes > 0 && mine.open_inputs[0] != '\0')
            fprintf(s->lines, "%-14s %s\n", "note", mine.open_inputs);
    } else if (status == EPCTX_ERR_NO_NODES && mine.open_inputs != NULL &&
               mine.open_inputs[0] != '\0')
        cli_say("epctx: %s: %s\n", file, mine.open_inputs);
    free(mine.open_inputs);
    left_end(&mine.left);
    return status;
}

/* All of them are looked for before the first one is compiled. */
static epctx_status find_models(const char *const *files, int count, epctx_error *error) {
    const epctx_io *io = epctx_io_files();
    epctx_status status = EPCTX_OK;
    epctx_file_info info;
    int i;
    for (i = 0; status == EPCTX_OK && i < count; i++) {
        status = io->stat_fn(io->user, files[i], &info, error);
        if (status != EPCTX_OK || info.kind != EPCTX_FILE_NONE) continue;
        status = epctx_fail(error, EPCTX_ERR_NOT_FOUND, "cannot open: there is no such file");
        epctx_blame(error, files[i], NULL, NULL);
    }
    return status;
}

static epctx_status compile_members(const char *const *files, int count,
                                    const compile_settings *set, sharing *s,
                                    epctx_gen_report *report, char *first_binary,
                                    compile_notes *notes, epctx_error *error) {
    epctx_workspace *workspace;
    epctx_backend backend;
    static epctx_io_file lock;
    bool locked = false;
    int i;
    epctx_status status = find_models(files, count, error);
    if (status == EPCTX_OK) status = cli_backend(set->arch, &backend, error);
    if (status == EPCTX_OK) locked = compile_lock(files[0], set, &backend, &lock);
    if (status == EPCTX_OK)
        status = compile_check_binary(files, count, set, &backend, notes, error);
    if (status == EPCTX_OK) status = epctx_workspace_open(&workspace, NULL, error);
    if (status != EPCTX_OK) {
        if (locked) compile_unlock(&lock);
        return status;
    }
    for (i = 0; status == EPCTX_OK && i < count; i++) {
        status =
            compile_member(workspace, files[i], i + 1 == count, set, &backend, report, s, error);
        if (i == 0 && status == EPCTX_OK)
            snprintf(first_binary, EPCTX_PATH_MAX, "%s", report->binary_path);
    }
    epctx_workspace_close(workspace);
    if (locked) compile_unlock(&lock);
    return status;
}

int compile_group(const char *const *files, int count, const compile_settings *set) {
    static epctx_gen_report report;
    char first_binary[EPCTX_PATH_MAX] = "";
    char *lines = NULL;
    size_t size = 0;
    double start = cli_now();
    sharing s;
    compile_notes notes;
    epctx_error error;
    epctx_status status;
    epctx_error_clear(&error);
    memset(&s, 0, sizeof s);
    memset(&notes, 0, sizeof notes);
    s.lines = open_memstream(&lines, &size);
    if (s.lines == NULL) return cli_fail_text("out of memory");
    epctx_arena_init(&s.arena, NULL);
    epctx_arena_init(&notes.arena, NULL);
    epctx_map_init(&s.known, &s.arena);
    status = compile_members(files, count, set, &s, &report, first_binary, &notes, &error);
    if (fclose(s.lines) == 0 && status == EPCTX_OK) fputs(lines, stdout);
    free(lines);
    epctx_arena_free(&s.arena);
    if (status != EPCTX_OK) epctx_arena_free(&notes.arena);
    if (status == EPCTX_ERR_EXISTS && !set->gen.overwrite)
        return cli_fail_cure(&error, "-f replaces it");
    if (status != EPCTX_OK) {
        cli_fail(&error);
        if (count > 1) cli_fail_text("nothing was written for any of the models");
        return CLI_FAILED;
    }
    if (compile_judge(files, count, set, &notes, &error) != EPCTX_OK) {
        epctx_arena_free(&notes.arena);
        return cli_fail(&error);
    }
    compile_print_file(stdout, "binary", first_binary, &report.binary_size);
    printf("shared         %" PRIu64 " of %" PRIu64 " bytes of weights were already stored\n",
           s.all.shared, s.all.stored + s.all.shared);
    printf("files          %d\n", count + 1);
    if (report.outside_count > 0 || set->weightless)
        compile_note_sources(files, count, set, &notes, &error); /* all is written: only notes */
    compile_print_notes(stdout, &notes);
    epctx_arena_free(&notes.arena);
    printf("time           %.1f ms\n", cli_now() - start);
    return CLI_OK;
}
