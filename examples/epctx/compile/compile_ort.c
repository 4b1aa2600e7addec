/* epctx compile --ort: any vendor's EP compiles, through ONNX Runtime's compile API. Everything is
 * made in a temporary folder, looked at, and put into place together. */
#define _GNU_SOURCE
#include "compile.h"
#include "binary/context.h"
#include "ops/init.h"
#include "ops/lint.h"
#include "ops/needs.h"
#include "ops/shadows.h"
#include "core/given.h"
#include "core/judge.h"
#include "core/neighbours.h"
#include "core/output.h"
#include "core/vendors.h"

#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_FILES = 4096 };

/* A file that ORT or the EP wrote. */
typedef struct made_file {
    const char *name;  /* in the folder of the models */
    const char *given; /* as it was made */
    epctx_mapping mapping;
    uint64_t size;
    bool mapped, is_model, needed, is_binary;
} made_file;

/* One model of a group. */
typedef struct made_model {
    const char *source, *name; /* name: of the output, in `folder` */
    const char *given;         /* its name while it is made: binaries are named after it */
    size_t epnodes, others;    /* nodes of its main graph */
    const char *compatibility; /* the string in it, or NULL */
    const char *foreign;       /* a source that is not the EP's name, or NULL */
    const char *made_for;      /* the chip, as the first binary tells it, or NULL */
} made_model;

/* What one child makes: models that share, or one alone. */
typedef struct made_group {
    const compile_settings *set;
    const anyep_settings *any;
    epctx_arena arena;
    const char *folder; /* of the results */
    char temp[EPCTX_PATH_MAX], out[EPCTX_PATH_MAX];
    made_model *models;
    anyep_model *jobs;
    size_t count;
    made_file *files;
    size_t file_count;
    compile_notes notes;
    compile_notes warnings; /* of ORT and the EP */
    size_t more_warnings;
    anyep_result result;
    epctx_overwrite policy;
    bool replaces;          /* -f: whatever is there */
    int optimization;       /* as ORT numbers the levels; -1: its default */
    compile_needed *needed; /* NULL: without --if-needed */
} made_group;

static void fail_or_replace(const made_group *g, const epctx_error *error) {
    if (error->status == EPCTX_ERR_EXISTS && !g->replaces)
        cli_fail_cure(error, "-f replaces it");
    else
        cli_fail(error);
}

static bool say(const char *what, const char *text) {
    cli_fail_text("%s%s%s", what, what[0] != '\0' ? ": " : "", text);
    return false;
}

static void note(made_group *g, const char *format, ...) {
    char line[1024];
    epctx_error ignored;
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    compile_add_note(&g->notes, line, &ignored);
}

/* ---------------------------------------------------------------- where results go */

static const char *join(epctx_arena *arena, const char *folder, const char *name) {
    const size_t size = strlen(folder) + strlen(name) + 2;
    char *path = (char *)epctx_arena_alloc(arena, size);
    if (path != NULL) snprintf(path, size, "%s/%s", folder, name);
    return path;
}

static bool name_output(made_group *g, made_model *model) {
    char path[EPCTX_PATH_MAX];
    epctx_error error;
    epctx_str folder;
    const char *in;
    epctx_error_clear(&error);
    if (g->set->gen.context_file_path != NULL)
        snprintf(path, sizeof path, "%s", g->set->gen.context_file_path);
    else if (epctx_path_context_model(epctx_str_of(model->source), path, sizeof path, &error) !=
             EPCTX_OK)
        return say(model->source, error.message);
    folder = epctx_path_folder(epctx_str_of(path));
    in = folder.size == 0 ? "." : epctx_arena_copy(&g->arena, folder);
    model->name = epctx_arena_copy(&g->arena, epctx_path_file(epctx_str_of(path)));
    model->given = model->name;
    if (in == NULL || model->name == NULL) return say("", "out of memory");
    if (strchr(model->name, '.') == NULL)
        return say(path, "ONNX Runtime wants a file name with an extension: use -o NAME.onnx");
    if (g->folder == NULL) g->folder = in;
    return true;
}

/* No output replaces a source; the EP's binaries follow in is_apart. */
static bool check_output(made_group *g, epctx_outputs *all, size_t i) {
    const char *file = g->models[i].source;
    epctx_error error;
    epctx_status status;
    epctx_error_clear(&error);
    status = compile_outputs(file, NULL, NULL, false, g->set, &g->arena, &all[i], &error);
    if (status == EPCTX_OK && i > 0) status = compile_fits_group(all, (int)i, &error);
    if (status != EPCTX_OK) fail_or_replace(g, &error);
    return status == EPCTX_OK;
}

static bool name_outputs(made_group *g, const char *const *files, size_t count) {
    epctx_outputs *all = (epctx_outputs *)epctx_arena_array(&g->arena, count, sizeof *all);
    size_t i;
    g->count = count;
    g->models = (made_model *)epctx_arena_array(&g->arena, count, sizeof *g->models);
    g->jobs = (anyep_model *)epctx_arena_array(&g->arena, count, sizeof *g->jobs);
    if (all == NULL || g->models == NULL || g->jobs == NULL) return say("", "out of memory");
    for (i = 0; i < count; i++) {
        struct stat there;
        g->models[i].source = files[i];
        if (stat(files[i], &there) != 0) return say(files[i], strerror(errno));
        if (S_ISDIR(there.st_mode)) return say(files[i], "is a folder");
        if (!name_output(g, &g->models[i]) || !check_output(g, all, i)) return false;
    }
    return true;
}

/* An empty folder for results, in the temporary one. */
static bool make_out(made_group *g, const char *name) {
    size_t i;
    if ((size_t)snprintf(g->out, sizeof g->out, "%s/%s", g->temp, name) >= sizeof g->out ||
        mkdir(g->out, 0777) != 0)
        return say(g->temp, "cannot make a folder here");
    g->file_count = 0;
    for (i = 0; i < g->count; i++) {
        g->jobs[i].source = g->models[i].source;
        g->jobs[i].output = join(&g->arena, g->out, g->models[i].given);
        if (g->jobs[i].output == NULL) return say("", "out of memory");
        g->models[i].epnodes = g->models[i].others = 0;
        g->models[i].foreign = g->models[i].made_for = NULL;
    }
    return true;
}

/* With --if-needed under a name that the next process finds, should this one be killed. */
static bool make_folder(made_group *g) {
    const char *own = g->needed != NULL ? join(&g->arena, g->folder, ".epctx-") : NULL;
    if (g->needed == NULL || g->set->dry_run)
        return anyep_folder(g->folder, g->temp, sizeof g->temp) && make_out(g, "out");
    if (own == NULL ||
        (size_t)snprintf(g->temp, sizeof g->temp, "%s%s", own, g->models[0].name) >= sizeof g->temp)
        return say("", own == NULL ? "out of memory" : "the path is too long");
    if (anyep_own_folder(g->temp)) return make_out(g, "out");
    g->temp[0] = '\0';
    return false;
}

/* ---------------------------------------------------------------- what was made */

static made_group *listing; /* nftw has no state */

static int list_entry(const char *path, const struct stat *st, int kind, struct FTW *ftw) {
    made_group *g = listing;
    made_file *file;
    size_t i;
    (void)ftw;
    if (kind == FTW_D) return 0;
    if (kind != FTW_F || !S_ISREG(st->st_mode)) {
        say(path, "the EP made something that is no regular file");
        return 1;
    }
    if (g->file_count == MOST_FILES) {
        say(path, "the EP made too many files");
        return 1;
    }
    file = &g->files[g->file_count++];
    file->name = epctx_arena_copy(&g->arena, epctx_str_of(path + strlen(g->out) + 1));
    file->given = file->name;
    file->size = (uint64_t)st->st_size;
    if (file->name == NULL) return say("", "out of memory") + 1;
    for (i = 0; i < g->count; i++) {
        if (strcmp(g->models[i].given, file->given) != 0) continue;
        file->name = g->models[i].name;
        file->is_model = file->needed = true;
    }
    return 0;
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const made_file *)a)->name, ((const made_file *)b)->name);
}

static bool list_files(made_group *g) {
    g->files = (made_file *)epctx_arena_array(&g->arena, MOST_FILES, sizeof *g->files);
    if (g->files == NULL) return say("", "out of memory");
    listing = g;
    if (nftw(g->out, list_entry, 8, FTW_PHYS) != 0) return false;
    qsort(g->files, g->file_count, sizeof *g->files, by_name);
    return true;
}

/* A file that a model names: one of those that were made. */
static bool need_file(made_group *g, const made_model *model, const epctx_dependency *file) {
    char real[PATH_MAX], out[PATH_MAX];
    size_t i, size;
    if (file->path == NULL) {
        cli_fail_text("%s: the EP wrote an EPContext node that names '%.*s': %s", model->name,
                      (int)file->name.size, file->name.data,
                      file->problem != NULL ? file->problem : "there is no such file");
        return false;
    }
    if (realpath(file->path, real) == NULL || realpath(g->out, out) == NULL)
        return say(file->path, strerror(errno));
    size = strlen(out);
    for (i = 0; i < g->file_count; i++)
        if (strncmp(real, out, size) == 0 && real[size] == '/' &&
            strcmp(real + size + 1, g->files[i].name) == 0) {
            g->files[i].needed = true;
            if (file->use != EPCTX_USE_INITIALIZERS) g->files[i].is_binary = true;
            return true;
        }
    return say(file->path, "the EP put this file outside of the model's folder");
}

/* The value of a session option; NULL: it is not given. */
static const char *session_option(const made_group *g, const char *key) {
    const char *const *at = g->any->session;
    for (; at != NULL && at[0] != NULL; at += 2)
        if (strcmp(at[0], key) == 0) return at[1];
    return NULL;
}

static void note_ignored(made_group *g, const made_model *model, const epctx_model *open) {
    const char *embed = session_option(g, "ep.context_embed_mode");
    const char *path =
        strcmp(g->folder, ".") == 0 ? model->name : join(&g->arena, g->folder, model->name);
    compile_asked asked;
    epctx_error error;
    asked.ep = g->result.board->eps[0].ep;
    asked.prefix = session_option(g, "ep.context_node_name_prefix");
    asked.embed = g->set->gen.embed || (embed != NULL && strcmp(embed, "1") == 0);
    if (path == NULL || compile_note_ignored(open, path, &asked, &g->notes, &error) != EPCTX_OK)
        note(g, "%s: no memory to tell what the EP ignored", model->name);
}

/* Whether a node is for the EP under the name that it has here. Of an EP without a profile only
 * loading tells: `foreign` is kept for then. */
static bool is_for_ep(made_group *g, made_model *model, const epctx_node_view *node) {
    const char *ep = g->result.board->eps[0].ep;
    const epctx_profile *profile = epctx_profile_of(epctx_str_of(ep));
    epctx_epnode read;
    if (epctx_view_read_epnode(node, &read, NULL) != EPCTX_OK || epctx_str_is(read.source, ep))
        return true;
    if ((profile->traits & EPCTX_TRAIT_ANY_EP) != 0)
        return (model->foreign = epctx_arena_copy(&g->arena, read.source)) != NULL;
    if (epctx_profile_claims(profile, &read) == EPCTX_CLAIM_YES) return true;
    cli_fail_text("%s: node '%.*s': the EP wrote source '%.*s', and under the name it has here, "
                  "'%s', it loads only its own: give the name of its applications, --ep "
                  "LIBRARY:NAME",
                  model->source, (int)node->name.size, node->name.data, (int)read.source.size,
                  read.source.data, ep);
    cli_fail_file(model->source);
    return false;
}

/* Whether a binary is for the chip that was asked for: the EP may have compiled for another one. */
static bool is_for_chip(made_group *g, const made_model *model, const binary_context *context) {
    char asked[160], made[160];
    if (g->set->chip == NULL) return true;
    chip_describe(g->set->chip, asked, sizeof asked);
    chip_describe_made(&context->facts, made, sizeof made);
    switch (chip_is_made_for(g->set->chip, &context->facts)) {
    case CHIP_MADE_YES: return true;
    case CHIP_MADE_UNTOLD:
        note(g,
             "%s: the binary does not tell its chip (--qnn-system asks Qualcomm's library): it is "
             "not verified",
             model->name);
        return true;
    default: break;
    }
    cli_fail_text("%s: node '%.*s': --chip asks for %s, but the binary is for %s, as %s tells",
                  model->source, (int)context->node.size, context->node.data, asked, made,
                  context->facts.told_by);
    cli_fail_file(model->source);
    return false;
}

/* What the binaries say of themselves. */
static bool look_into(made_group *g, made_model *model, const epctx_model *open,
                      const epctx_dependency *files, size_t count) {
    binary_contexts contexts;
    epctx_error error;
    char made[160];
    size_t i;
    bool ok = binary_contexts_read(open, files, count, g->set->asker, &g->arena, &contexts,
                                   &error) == EPCTX_OK;
    if (!ok) cli_fail(&error);
    for (i = 0; ok && i < contexts.count; i++) {
        const binary_context *context = &contexts.items[i];
        if (!epctx_str_is(context->source, g->result.board->eps[0].ep)) continue;
        chip_describe_made(&context->facts, made, sizeof made);
        if (made[0] != '\0' && model->made_for == NULL)
            model->made_for = epctx_arena_copy(&g->arena, epctx_str_of(made));
        ok = is_for_chip(g, model, context);
    }
    binary_contexts_close(&contexts);
    return ok;
}

/* Weights that lie beside the source: where the results are tried they are links. A link that
 * cannot be made is told by the EP, which does not find the file. */
static bool link_need(made_group *g, const made_model *model, const epctx_dependency *file) {
    char real[PATH_MAX];
    const char *name = epctx_arena_copy(&g->arena, file->name);
    const char *link = name != NULL ? join(&g->arena, g->out, name) : NULL;
    const char *path;
    epctx_str beside;
    epctx_error error;
    if (link == NULL || ops_join(&g->arena, epctx_path_folder(epctx_str_of(model->source)),
                                 file->name, &beside, &error) != EPCTX_OK)
        return say("", "out of memory");
    path = epctx_arena_copy(&g->arena, beside);
    if (path == NULL) return say("", "out of memory");
    if (epctx_path_check(file->name, NULL) == EPCTX_OK && realpath(path, real) != NULL &&
        symlink(real, link) == 0)
        note(g, "%s reads its weights from '%s'", model->name, name);
    return true;
}

static bool link_needs(made_group *g, const made_model *model, const epctx_model *open) {
    epctx_dependency *files = NULL;
    epctx_error error;
    size_t count = 0, i;
    bool ok = needs_of_model(open, NULL, &g->arena, &files, &count, &error) == EPCTX_OK;
    if (!ok) cli_fail(&error);
    for (i = 0; ok && i < count; i++)
        if (files[i].use == EPCTX_USE_COMPANION && files[i].path == NULL)
            ok = link_need(g, model, &files[i]);
    return ok;
}

static bool look_at(made_group *g, made_model *model, const char *path) {
    epctx_dependency *files = NULL;
    epctx_cursor it;
    epctx_node_view node;
    epctx_model open;
    epctx_error error;
    char key[160];
    size_t count = 0, i;
    bool ok = true;
    epctx_str text;
    if (cli_open(&open, path, &error) != EPCTX_OK ||
        epctx_model_files(&open, NULL, &g->arena, &files, &count, &error) != EPCTX_OK) {
        cli_fail_text("what ONNX Runtime wrote cannot be read: %s", error.message);
        epctx_model_close(&open);
        return false;
    }
    it = epctx_view_graph_nodes(epctx_model_graph(&open));
    while (ok && epctx_next_node(&it, &node)) {
        const bool compiled = epctx_view_is_epnode(&node);
        *(compiled ? &model->epnodes : &model->others) += 1;
        ok = !compiled || is_for_ep(g, model, &node);
    }
    for (i = 0; i < count && ok; i++) {
        if (files[i].use == EPCTX_USE_CONTEXT || files[i].use == EPCTX_USE_COMPANION ||
            (files[i].use == EPCTX_USE_INITIALIZERS && files[i].path != NULL))
            ok = need_file(g, model, &files[i]);
        else if (files[i].use == EPCTX_USE_SOURCE_MODEL && files[i].required)
            note(g, "%s reads its weights from '%.*s'", model->name, (int)files[i].name.size,
                 files[i].name.data);
    }
    ok = ok && look_into(g, model, &open, files, count) && link_needs(g, model, &open);
    if (ok) note_ignored(g, model, &open);
    snprintf(key, sizeof key, "ep_compatibility_info.%s", g->result.board->eps[0].ep);
    if (epctx_model_metadata(&open, epctx_str_of(key), &text))
        model->compatibility = epctx_arena_copy(&g->arena, text);
    epctx_model_close(&open);
    return ok;
}

/* What the EP says of itself becomes metadata only if that may hold it. */
static const char *known_text(const char *text) {
    return text[0] != '\0' && epctx_str_is_utf8(epctx_str_of(text)) ? text : NULL;
}

/* Those of the user, and that of sharing, which child_compile adds. */
static const char **session_options(const made_group *g) {
    static const char share[] = "ep.share_ep_contexts";
    anyep_settings set = *g->any;
    if (g->count > 1 && session_option(g, share) == NULL)
        (void)anyep_add(&set, &set.session, share, "1");
    return set.session;
}

/* The build stamp, of each EP in the model. */
static epctx_status stamp_nodes(made_group *g, epctx_model *open, const epctx_model *source,
                                epctx_error *error) {
    enum { MOST_EPS = 16 };
    const anyep_board *board = g->result.board;
    const char *eps[MOST_EPS];
    epctx_stamp_opts opts;
    epctx_node_view view;
    epctx_epnode node;
    epctx_walk walk;
    epctx_status status = EPCTX_OK;
    size_t count = 0, i;
    memset(&opts, 0, sizeof opts);
    opts.source_model = source;
    /* What binaries refer to is the source's, and not beside a model that is being made. */
    opts.needs_folder = epctx_arena_copy(&g->arena, epctx_path_folder(epctx_str_of(source->path)));
    opts.options = identity_options(g->set, g->any, &g->arena);
    opts.libraries = identity_libraries(g->any, g->result.board->libraries, &g->arena);
    opts.machine = g->needed != NULL ? g->needed->machine : NULL;
    opts.ort = known_text(board->ort_version);
    opts.ep = known_text(board->eps[0].version);
    opts.driver = known_text(board->eps[0].driver);
    opts.device = known_text(board->eps[0].device);
    epctx_walk_begin(&walk, open);
    while (count < MOST_EPS && epctx_walk_epnode(&walk, &view)) {
        if (epctx_view_read_epnode(&view, &node, NULL) != EPCTX_OK || node.source.size == 0)
            continue;
        for (i = 0; i < count && !epctx_str_is(node.source, eps[i]); i++) continue;
        if (i == count) eps[count] = epctx_arena_copy(&g->arena, node.source);
        if (i == count && eps[count] != NULL) count++;
    }
    for (i = 0; i < count && status == EPCTX_OK; i++) {
        /* Nodes of others were in the source. */
        const bool own = count == 1 || strcmp(eps[i], board->eps[0].ep) == 0;
        opts.ep_options = own ? given_tell(g->any->eps[0].options, &g->arena) : NULL;
        opts.session_options = own ? given_tell(session_options(g), &g->arena) : NULL;
        status = needs_to_stamp(open, eps[i], &g->arena, &opts.needs, error);
        if (status == EPCTX_OK) status = epctx_edit_stamp(open, eps[i], &opts, error);
    }
    return status;
}

/* Names of values in bodies were no trouble before ONNX Runtime changed the order of nodes. */
static epctx_status mend_bodies(made_group *g, epctx_model *open, epctx_error *error) {
    uint64_t counts[EPCTX_RULE_COUNT] = {0};
    ops_report report;
    size_t i;
    memset(&report, 0, sizeof report);
    report.arena = &g->arena;
    OPS_TRY(epctx_lint_count(open, NULL, counts, error));
    if (counts[EPCTX_RULE_OUTER_NAME] == 0) return EPCTX_OK;
    OPS_TRY(shadows_rename(open, &report, error));
    for (i = 0; i < report.steps.count; i++)
        note(g, "%s", ((const epctx_step *)report.steps.items)[i].text);
    return EPCTX_OK;
}

/* What cannot have a stamp is delivered without. */
static void stamp(made_group *g, const made_model *model, const char *path) {
    epctx_write_opts opts;
    epctx_model open, source;
    epctx_error error;
    epctx_status status;
    memset(&opts, 0, sizeof opts);
    opts.overwrite = EPCTX_OVERWRITE_REPLACE;
    status = cli_open(&source, model->source, &error);
    if (status == EPCTX_OK) {
        status = cli_open(&open, path, &error);
        if (status == EPCTX_OK) status = mend_bodies(g, &open, &error);
        if (status == EPCTX_OK) status = stamp_nodes(g, &open, &source, &error);
        if (status == EPCTX_OK && g->needed != NULL)
            status = epctx_generation_note(&g->needed->next, &open, &error);
        if (status == EPCTX_OK) status = epctx_model_write_file(&open, path, &opts, &error);
        epctx_model_close(&open);
    }
    epctx_model_close(&source);
    if (status != EPCTX_OK) note(g, "%s has no build stamp: %s", model->name, error.message);
}

/* What ONNX Runtime writes to a file of initializers: constants among them that it reads in the
 * model only, and by the session option, unlike the compile API, also small ones. */
static bool keep_inside(const char *path) {
    ops_convert_opts opts;
    epctx_write_opts write;
    ops_changes changes;
    epctx_model open;
    epctx_error error;
    epctx_status status;
    memset(&opts, 0, sizeof opts);
    memset(&write, 0, sizeof write);
    opts.threshold = CLI_SMALL_INITIALIZER;
    write.overwrite = EPCTX_OVERWRITE_REPLACE;
    status = cli_open(&open, path, &error);
    if (status == EPCTX_OK) status = epctx_init_inline(&open, &opts, &changes, &error);
    if (status == EPCTX_OK) status = epctx_model_write_file(&open, path, &write, &error);
    epctx_model_close(&open);
    if (status != EPCTX_OK) cli_fail(&error);
    return status == EPCTX_OK;
}

/* What the EP has named replaces no source either, and is no other output. */
static bool is_apart(made_group *g, const made_file *file, epctx_error *error) {
    epctx_outputs ignored;
    size_t i;
    for (i = 0; i < g->count && file->is_binary; i++)
        if (compile_outputs(g->models[i].source, NULL, file->name, true, g->set, &g->arena,
                            &ignored, error) != EPCTX_OK)
            return false;
    return true;
}

static bool examine(made_group *g) {
    const bool outside =
        g->set->gen.initializers_file_name != NULL ||
        session_option(g, "ep.context_model_external_initializers_file_name") != NULL;
    size_t i;
    for (i = 0; i < g->count && outside; i++)
        if (!keep_inside(g->jobs[i].output)) return false;
    for (i = 0; i < g->count; i++) stamp(g, &g->models[i], g->jobs[i].output);
    if (!list_files(g)) return false;
    for (i = 0; i < g->count; i++) {
        if (!look_at(g, &g->models[i], g->jobs[i].output)) return false;
        if (g->models[i].epnodes == 0)
            return say(g->models[i].source,
                       "the EP compiled nothing: the model would have no EPContext node");
    }
    for (i = 0; i < g->file_count; i++) {
        epctx_error error;
        epctx_error_clear(&error);
        if (!is_apart(g, &g->files[i], &error)) {
            fail_or_replace(g, &error);
            return false;
        }
        if (!g->files[i].needed)
            note(g, "no node names '%s', which the EP wrote, too", g->files[i].name);
    }
    return true;
}

/* ---------------------------------------------------------------- loading */

/* Those of a process that came to its end, each once. */
static void keep_warnings(made_group *g, const anyep_board *board) {
    size_t i, k;
    g->more_warnings += board->more_warnings;
    for (i = 0; i < board->warning_count; i++) {
        epctx_error ignored;
        for (k = 0; k < g->warnings.count; k++)
            if (strcmp(g->warnings.lines[k], board->warnings[i]) == 0) break;
        if (k < g->warnings.count) continue;
        if (g->warnings.count == ANYEP_MOST_WARNINGS ||
            compile_add_note(&g->warnings, board->warnings[i], &ignored) != EPCTX_OK)
            g->more_warnings++;
    }
}

/* -v has shown them. */
static void print_warnings(const made_group *g) {
    const char *ep = g->result.board->eps[0].ep;
    size_t i;
    if (g->set->verbose) return;
    for (i = 0; i < g->warnings.count; i++)
        cli_say("epctx: warning of %s or ONNX Runtime: %s\n", ep, g->warnings.lines[i]);
    if (g->more_warnings > 0)
        cli_say("epctx: %zu more warnings, which -v shows\n", g->more_warnings);
}

/* What is told of a model that does not load: its name may be why. */
static void put_what(const made_group *g, const made_model *m, char *out, size_t size) {
    const char *ep = g->result.board->eps[0].ep;
    const anyep_ep *given = &g->any->eps[0];
    const char *vendors =
        given->library != NULL ? vendor_registration(epctx_str_of(given->library)) : NULL;
    epctx_text text = epctx_text_of(out, size);
    epctx_text_put_format(&text, "%s: compiled, but it does not load", m->source);
    if (m->foreign != NULL)
        epctx_text_put_format(&text, "; its source is '%s', the EP is '%s'", m->foreign, ep);
    else if (vendors != NULL && strcmp(vendors, given->registration) != 0)
        epctx_text_put_format(&text, "; the EP is registered as '%s', by its vendor as '%s'",
                              given->registration, vendors);
}

/* A session of a result, in another process, as an application makes it. */
static anyep_job load_job(const made_group *g, size_t i, const anyep_settings *set) {
    anyep_job job;
    memset(&job, 0, sizeof job);
    job.set = set;
    job.work = ANYEP_RUN;
    job.folder = g->temp;
    job.model = g->jobs[i].output;
    job.optimization = job.threads = -1;
    return job;
}

/* Those of several models may share: what does not load by default is tried with that option. */
static bool loads_shared(made_group *g, size_t i) {
    anyep_settings set = *g->any;
    anyep_result result;
    anyep_job job;
    bool ok;
    set.session = session_options(g);
    if (set.session == g->any->session) return false;
    job = load_job(g, i, &set);
    anyep_do(&job, &result);
    ok = result.end == ANYEP_OK;
    if (ok) note(g, "%s loads with ep.share_ep_contexts 1 only", g->models[i].name);
    if (ok) keep_warnings(g, result.board);
    anyep_free(&result);
    return ok;
}

/* What is not loaded here is judged by the rules that mean that ONNX Runtime refuses it; what the
 * source breaks, too, is not its doing. */
static bool judge(made_group *g, size_t i) {
    epctx_error before, error;
    const epctx_status status = judge_file(g->jobs[i].output, g->models[i].source, &before, &error);
    if (status != EPCTX_OK)
        cli_fail_text("what ONNX Runtime wrote for %s it would not load: %s", g->models[i].source,
                      error.message);
    return status == EPCTX_OK;
}

/* What does not load is no success. Where it cannot be asked here that is told. `words` gets why it
 * failed; `last`: it is printed, too. */
static bool loads(made_group *g, bool last, char *words, size_t size) {
    size_t i;
    bool ok = true;
    for (i = 0; g->set->no_load && i < g->count; i++)
        if (!judge(g, i)) return false;
    for (i = 0; !g->set->no_load && ok && i < g->count; i++) {
        const anyep_job job = load_job(g, i, g->any);
        anyep_result result;
        anyep_do(&job, &result);
        ok = result.end == ANYEP_OK;
        if (ok) keep_warnings(g, result.board);
        if (!ok) snprintf(words, size, "%s", result.words);
        if (!ok && !g->set->gen.verify && anyep_needs_device(&job, &result) &&
            g->models[i].foreign == NULL) {
            note(g, "%s was not loaded: that needs the device", g->models[i].name);
            ok = judge(g, i);
        } else if (!ok && loads_shared(g, i)) {
            ok = true;
        } else if (!ok && last) {
            char what[EPCTX_PATH_MAX + 512];
            put_what(g, &g->models[i], what, sizeof what);
            anyep_tell(&job, &result, what);
            cli_fail_file(g->models[i].source);
            say("", g->count > 1
                        ? "try --no-share; what only the device can load is written with --no-load"
                        : "what only the device can load is written with --no-load");
        }
        anyep_free(&result);
    }
    return ok;
}

/* ---------------------------------------------------------------- into place */

static bool map_file(made_group *g, made_file *file, epctx_span *part, epctx_error *error) {
    const epctx_io *io = cli_io();
    char root[EPCTX_PATH_MAX];
    if (file->size == 0) return true;
    if (io->canonical_fn(io->user, g->out, root, sizeof root, error) != EPCTX_OK ||
        io->map_fn(io->user, root, file->given, false, &file->mapping, error) != EPCTX_OK)
        return false;
    file->mapped = true;
    part->data = file->mapping.data;
    part->size = file->mapping.size;
    file->size = file->mapping.size;
    return true;
}

/* Folders inside the models' folder, which an EP may ask for. */
static bool make_subfolder(const made_group *g, const char *name, epctx_error *error) {
    char path[EPCTX_PATH_MAX];
    const epctx_str folder = epctx_path_folder(epctx_str_of(name));
    if (folder.size == 0) return true;
    snprintf(path, sizeof path, "%s/%.*s", g->folder, (int)folder.size - 1, folder.data);
    return cli_make_folder(path, error) == EPCTX_OK;
}

/* Whether the folder has a file of that name with other bytes. */
static bool changes(const made_group *g, const made_file *file, const epctx_span *part) {
    const epctx_io *io = epctx_io_files();
    epctx_mapping old;
    bool differs;
    if (epctx_path_map(io, epctx_str_of(g->folder), epctx_str_of(file->name), cli_path_flags(),
                       &old, NULL, NULL) != EPCTX_OK)
        return false;
    differs = old.size != part->size || memcmp(old.data, part->data, part->size) != 0;
    io->unmap_fn(io->user, &old);
    return differs;
}

/* A binary that other models in the folder name is not replaced by another one. */
static bool is_free(made_group *g, const made_file *file, const epctx_span *part,
                    epctx_error *error) {
    compile_notes unsaid; /* a file of initializers takes no binary's place */
    const char **sources;
    const char *path;
    size_t i;
    bool is;
    if (file->is_model || g->policy == EPCTX_OVERWRITE_FAIL || !changes(g, file, part)) return true;
    sources = (const char **)epctx_arena_array(&g->arena, g->count, sizeof *sources);
    path = join(&g->arena, g->folder, file->name);
    if (sources == NULL || path == NULL)
        return epctx_fail(error, EPCTX_ERR_NOMEM, "out of memory") == EPCTX_OK;
    for (i = 0; i < g->count; i++) sources[i] = g->models[i].source;
    memset(&unsaid, 0, sizeof unsaid);
    epctx_arena_init(&unsaid.arena, NULL);
    is = compile_check_path(path, sources, (int)g->count, g->set, true,
                            file->is_binary ? &g->notes : &unsaid, error) == EPCTX_OK;
    epctx_arena_free(&unsaid.arena);
    return is;
}

/* Nor what they need in another way: data, also of their binaries, or a source model. */
static bool is_allowed(made_group *g, const epctx_output_file *outputs, epctx_error *error) {
    neighbours_plan plan;
    epctx_output_file *files =
        (epctx_output_file *)epctx_arena_array(&g->arena, g->file_count, sizeof *files);
    const char **models =
        (const char **)epctx_arena_array(&g->arena, g->file_count, sizeof *models);
    size_t i;
    if (files == NULL || models == NULL)
        return epctx_fail(error, EPCTX_ERR_NOMEM, "out of memory") == EPCTX_OK;
    if (g->policy == EPCTX_OVERWRITE_FAIL) return true;
    if (g->needed != NULL && needed_allow(g->needed, g->result.board->eps[0].ep, error) != EPCTX_OK)
        return false;
    memset(&plan, 0, sizeof plan);
    plan.files = files;
    plan.models = models;
    plan.contexts_apart = true;
    for (i = 0; i < g->file_count; i++) {
        const char *path = join(&g->arena, g->folder, g->files[i].name);
        if (path == NULL) return epctx_fail(error, EPCTX_ERR_NOMEM, "out of memory") == EPCTX_OK;
        if (g->files[i].is_model) {
            models[plan.model_count++] = path;
        } else {
            files[plan.file_count] = outputs[i];
            files[plan.file_count++].path = path;
        }
    }
    return neighbours_allow(&plan, error) == EPCTX_OK;
}

static bool commit(made_group *g) {
    epctx_output_file *outputs =
        (epctx_output_file *)epctx_arena_array(&g->arena, g->file_count, sizeof *outputs);
    epctx_span *parts = (epctx_span *)epctx_arena_array(&g->arena, g->file_count, sizeof *parts);
    epctx_commit all;
    epctx_status status;
    epctx_error error;
    size_t i;
    bool ok;
    epctx_error_clear(&error);
    status = epctx_commit_begin(&all, cli_io(), &g->arena, &error);
    if (status == EPCTX_OK) status = epctx_commit_set_folder(&all, g->folder, &error);
    if (g->needed != NULL) all.lock = &g->needed->lock;
    if (outputs == NULL || parts == NULL)
        status = epctx_fail(&error, EPCTX_ERR_NOMEM, "out of memory");
    ok = status == EPCTX_OK;
    for (i = 0; ok && i < g->file_count; i++) {
        made_file *file = &g->files[i];
        ok = map_file(g, file, &parts[i], &error) && is_free(g, file, &parts[i], &error) &&
             make_subfolder(g, file->name, &error);
        outputs[i].path = outputs[i].name = file->name;
        outputs[i].parts = &parts[i];
        outputs[i].part_count = 1;
        outputs[i].size = file->size;
        outputs[i].is_model = file->is_model;
        ok = ok && epctx_commit_put_file(&all, &outputs[i], g->policy, &error) == EPCTX_OK;
    }
    ok = ok && is_allowed(g, outputs, &error) && epctx_commit_run(&all, &error) == EPCTX_OK;
    epctx_commit_close(&all);
    for (i = 0; i < g->file_count; i++)
        if (g->files[i].mapped) cli_io()->unmap_fn(cli_io()->user, &g->files[i].mapping);
    if (ok)
        cli_wrote_files();
    else
        fail_or_replace(g, &error);
    return ok;
}

/* ---------------------------------------------------------------- report */

/* "folder/name" */
static void put_path(const made_group *g, const char *name) {
    if (strcmp(g->folder, ".") != 0) {
        cli_put(stdout, epctx_str_of(g->folder));
        if (g->folder[strlen(g->folder) - 1] != '/') putchar('/');
    }
    cli_put(stdout, epctx_str_of(name));
}

static const char *kind_of(const made_file *file) {
    return file->is_model ? "model" : file->needed ? "binary" : "other";
}

static void put_told(const char *word, const char *text) {
    if (text == NULL) return;
    printf("%-14s ", word);
    cli_put(stdout, epctx_str_of(text));
    putchar('\n');
}

static void print_report(const made_group *g) {
    const anyep_board *board = g->result.board;
    size_t i;
    if (g->needed != NULL) needed_print(g->needed);
    anyep_print_ep(board);
    for (i = 0; i < g->count; i++) {
        const made_model *m = &g->models[i];
        printf("compiled       ");
        cli_put(stdout, epctx_str_of(m->source));
        printf(": %zu EPContext node%s, %zu node%s left to other EPs, %.1f ms\n", m->epnodes,
               cli_plural(m->epnodes), m->others, cli_plural(m->others), board->compile_ms[i]);
        put_told("made for", m->made_for);
        put_told("compatibility", m->compatibility);
    }
    for (i = 0; i < g->file_count; i++) {
        printf("%-14s ", kind_of(&g->files[i]));
        put_path(g, g->files[i].name);
        printf(", %" PRIu64 " bytes\n", g->files[i].size);
    }
    compile_print_notes(stdout, &g->notes);
    printf("memory         %" PRIu64 " MiB\n", board->memory >> 20);
    printf("time           %.1f s\n", g->result.seconds);
}

static void json_model(json_writer *w, const made_model *m, const char *path, double milliseconds) {
    json_object(w, NULL, JSON_INLINE);
    json_text(w, "source_model", m->source);
    json_text(w, "model", path);
    json_uint(w, "epcontext_nodes", m->epnodes);
    json_uint(w, "other_nodes", m->others);
    json_fixed(w, "milliseconds", milliseconds, 3);
    json_text(w, "made_for", m->made_for);
    json_text(w, "compatibility", m->compatibility);
    json_end(w);
}

static void print_json(const made_group *g, epctx_arena *arena) {
    const anyep_board *board = g->result.board;
    json_writer *w = cli_json_begin(stdout);
    size_t i;
    needed_json(w, g->needed);
    anyep_json_ep(w, board);
    json_array(w, "models", JSON_HANGING);
    for (i = 0; i < g->count; i++)
        json_model(w, &g->models[i], join(arena, g->folder, g->models[i].name),
                   board->compile_ms[i]);
    json_end(w);
    json_array(w, "files", JSON_HANGING);
    for (i = 0; i < g->file_count; i++) {
        json_object(w, NULL, JSON_INLINE);
        json_text(w, "kind", kind_of(&g->files[i]));
        json_text(w, "name", g->files[i].name);
        json_uint(w, "size", g->files[i].size);
        json_end(w);
    }
    json_end(w);
    compile_json_notes(w, "notes", &g->notes);
    compile_json_notes(w, "warnings", &g->warnings);
    json_uint(w, "more_warnings", g->more_warnings);
    json_uint(w, "memory", board->memory);
    json_fixed(w, "seconds", g->result.seconds, 3);
    cli_json_end();
}

/* ---------------------------------------------------------------- a group */

/* What the child gets. */
static anyep_job job_of(const made_group *g, anyep_work work) {
    anyep_job job;
    memset(&job, 0, sizeof job);
    job.set = g->any;
    job.work = work;
    job.folder = g->temp;
    job.models = g->jobs;
    job.count = g->count;
    job.embed = g->set->gen.embed;
    job.weightless = g->set->weightless;
    job.by_session = g->set->by_session;
    job.keeps = work == ANYEP_COMPILE;
    job.initializers = g->set->gen.initializers_file_name;
    job.require_all = g->set->gen.require_all;
    job.optimization = g->optimization;
    job.threads = -1;
    return job;
}

/* Whether open dimensions may be the reason: EPs say so in their own words, or nothing. */
static bool may_be_shapes(const char *words) {
    static const char *const about[] = {"shape", "Shape",   "dimension",
                                        "dim ",  "dynamic", "Unable to compile any nodes"};
    size_t i;
    for (i = 0; i < sizeof about / sizeof *about; i++)
        if (strstr(words, about[i]) != NULL) return true;
    return words[0] == '\0';
}

/* An input or output whose name has a zero byte: EPs get names of ONNX Runtime as texts, which end
 * there, and it does not find in the compiled model what they call by them. */
static bool tell_cut_name(const epctx_model *model) {
    const epctx_graph_view graph = epctx_model_graph(model);
    epctx_cursor ends[2];
    epctx_value_view value;
    char text[512];
    size_t i;
    ends[0] = epctx_view_graph_inputs(graph);
    ends[1] = epctx_view_graph_outputs(graph);
    for (i = 0; i < 2; i++) {
        while (epctx_next_value(&ends[i], &value)) {
            if (value.name.size == 0 || !memchr(value.name.data, '\0', value.name.size)) continue;
            snprintf(text, sizeof text,
                     "%s '%.200s' has a zero byte in its name, and EPs get from ONNX Runtime what "
                     "stands before it: give it another name",
                     i == 0 ? "input" : "output", value.name.data);
            cli_fail_with_cure(text);
            return true;
        }
    }
    return false;
}

/* The functions of a model are in no context model, but calls in bodies of control flow are. No EP
 * can tell: it gets bodies without calls. */
static bool tell_functions(const epctx_model *model, const char *words) {
    epctx_cursor functions = epctx_model_functions(model);
    if (epctx_cursor_count(functions) == 0 || !strstr(words, "is not a registered function/op"))
        return false;
    cli_fail_with_cure("ONNX Runtime writes a context model without the functions that bodies of "
                       "If, Loop and Scan call: compile it without ONNX Runtime (epctx compile "
                       "without --ep), or with the functions inlined");
    return true;
}

/* Why many an EP takes no node: the model is compiled already, or it has free dimensions. */
static void tell_source(const made_group *g, const made_model *model) {
    epctx_model open;
    epctx_error error;
    char *text = NULL;
    if (cli_open(&open, model->source, &error) == EPCTX_OK && !tell_cut_name(&open) &&
        !tell_functions(&open, g->result.words) && !compile_tell_compiled(&open, model->source) &&
        g->any->dim_count == 0 && may_be_shapes(g->result.words) &&
        compile_open_inputs(&open, &text, &error) == EPCTX_OK && text[0] != '\0')
        cli_fail_with_cure(text);
    free(text);
    epctx_model_close(&open);
}

/* Of an EP that compiles nothing ORT says "Unable to compile any nodes". */
static bool tell_plain(const char *ep) {
    const fact *plain = vendor_plain_of(ep);
    char text[512];
    if (plain == NULL) return false;
    snprintf(text, sizeof text, "%s writes no EPContext models. %s", plain->name,
             fact_get(plain, "instead"));
    cli_fail_with_cure(text);
    return true;
}

/* Compiles, and looks at what was made. */
static bool try_to_make(made_group *g) {
    const anyep_job job = job_of(g, ANYEP_COMPILE);
    cli_progress_begin("compile", g->count > 1 ? g->count : 0);
    anyep_do(&job, &g->result);
    cli_progress_end();
    if (g->result.end != ANYEP_OK) {
        const size_t at = g->result.board != NULL ? g->result.board->compiled : 0;
        const made_model *model = &g->models[at < g->count ? at : 0];
        anyep_tell(&job, &g->result, model->source);
        cli_fail_file(model->source);
        if (g->result.end == ANYEP_REFUSED && !tell_plain(g->result.board->eps[0].ep))
            tell_source(g, model);
        return false;
    }
    if (g->set->verbose) anyep_print_log(&job);
    g->warnings.count = g->more_warnings = 0; /* those of an earlier try */
    keep_warnings(g, g->result.board);
    return examine(g);
}

/* Compiling, ORT optimizes nothing by default, loading it folds constants: some EPs miss what was
 * folded then. */
static bool make(made_group *g) {
    enum { BASIC = 1 };
    char words[sizeof g->result.words];
    const bool again = g->optimization < 0;
    const size_t notes = g->notes.count;
    if (!try_to_make(g)) return false;
    if (loads(g, !again, words, sizeof words)) return commit(g);
    if (!again) return false;
    anyep_free(&g->result);
    g->notes.count = notes; /* what follows is said of the second try */
    g->optimization = BASIC;
    if (!make_out(g, "again") || !try_to_make(g) || !loads(g, true, words, sizeof words))
        return false;
    note(g, "compiled with --optimization basic: without it, it does not load");
    return commit(g);
}

/* --dry-run: what would be written, and whether the EP is there. */
static bool plan(made_group *g) {
    const anyep_job job = job_of(g, ANYEP_LIST);
    bool ok;
    size_t i;
    anyep_do(&job, &g->result);
    ok = g->result.end == ANYEP_OK;
    if (!ok) {
        anyep_tell(&job, &g->result, "--ep");
        return false;
    }
    if (g->needed != NULL) needed_print(g->needed);
    anyep_print_ep(g->result.board);
    for (i = 0; i < g->count; i++) {
        printf("%-14s ", "model");
        put_path(g, g->models[i].name);
        putchar('\n');
    }
    puts(g->set->gen.embed ? "binary         embedded" : "binary         the EP chooses its name");
    puts("note           dry run: nothing was compiled or written");
    return true;
}

/* "<stem><end>" */
static const char *name_of(epctx_arena *arena, const char *stem, const char *end) {
    const size_t size = strlen(stem) + strlen(end) + 1;
    char *name = (char *)epctx_arena_alloc(arena, size);
    if (name != NULL) snprintf(name, size, "%s%s", stem, end);
    return name;
}

/* --if-needed: decides, and names what is to be made. */
static bool begin_needed(made_group *g, compile_needed *needed) {
    static char machine[1024];
    epctx_error error;
    compile_machine(machine, sizeof machine);
    memset(needed, 0, sizeof *needed);
    needed->source = g->models[0].source;
    needed->path = strcmp(g->folder, ".") == 0 ? g->models[0].name
                                               : join(&g->arena, g->folder, g->models[0].name);
    needed->any = g->any;
    needed->options = identity_options(g->set, g->any, &g->arena);
    needed->machine = machine;
    needed->session = session_options(g);
    needed->wait = g->set->wait;
    needed->replaces = g->replaces;
    if (needed->path == NULL) return say("", "out of memory");
    g->needed = needed;
    if (needed_begin(needed, g->set->dry_run, &error) != EPCTX_OK) {
        fail_or_replace(g, &error);
        return false;
    }
    if (needed->current || g->set->dry_run) return true;
    g->models[0].given = name_of(&g->arena, needed->next.stem, strrchr(g->models[0].name, '.'));
    return g->models[0].given != NULL || say("", "out of memory");
}

static void report(made_group *g) {
    if (g->needed != NULL && g->needed->current) {
        needed_report(g->needed, g->set->json);
        return;
    }
    if (g->set->dry_run) return;
    g->set->json ? print_json(g, &g->arena) : print_report(g);
    print_warnings(g);
}

/* Nothing is to be done when what is there is what would be made. */
static bool do_group(made_group *g) {
    bool ok;
    if (g->needed != NULL && g->needed->current) return true;
    ok = make_folder(g) && (g->set->dry_run ? plan(g) : make(g));
    if (g->temp[0] != '\0') anyep_remove(g->temp);
    return ok;
}

static int compile_unit(const char *const *files, size_t count, const compile_settings *set,
                        const anyep_settings *any) {
    static made_group g;
    static compile_needed needed;
    compile_settings own = *set;
    bool ok;
    own.gen.overwrite = set->gen.overwrite || set->if_needed; /* needed_allow asks */
    memset(&g, 0, sizeof g);
    epctx_arena_init(&g.arena, NULL);
    epctx_arena_init(&g.notes.arena, NULL);
    epctx_arena_init(&g.warnings.arena, NULL);
    g.set = &own;
    g.any = any;
    g.optimization = set->optimization;
    g.policy = own.gen.overwrite ? EPCTX_OVERWRITE_REPLACE : EPCTX_OVERWRITE_FAIL;
    g.replaces = set->gen.overwrite;
    ok = name_outputs(&g, files, count) && (!set->if_needed || begin_needed(&g, &needed)) &&
         do_group(&g);
    if (ok) report(&g);
    if (!ok && count > 1) cli_fail_text("nothing was written for any of the %zu models", count);
    if (g.needed != NULL) needed_end(g.needed);
    anyep_free(&g.result);
    epctx_arena_free(&g.notes.arena);
    epctx_arena_free(&g.warnings.arena);
    epctx_arena_free(&g.arena);
    return ok ? CLI_OK : CLI_FAILED;
}

int compile_ort(const char *const *files, int count, const compile_settings *set,
                const anyep_settings *any) {
    int failed = 0, i;
    if (!set->alone || count == 1) return compile_unit(files, (size_t)count, set, any);
    /* Models that shared a binary so far part from it, the last first: it is named after the first,
     * which may replace it when nobody else needs it. */
    for (i = 0; i < count && !cli_signals_waiting(); i++) {
        const int at = set->gen.overwrite ? count - 1 - i : i;
        failed += compile_unit(&files[at], 1, set, any) != CLI_OK;
    }
    if (failed > 0)
        cli_fail_text("%d of %d models could not be compiled; the others were", failed, count);
    return failed > 0 || i < count ? CLI_FAILED : CLI_OK;
}
