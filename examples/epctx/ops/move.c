/* move.c - renames a context binary and updates the nodes that name it. */
#include "move.h"

typedef struct move_model {
    epctx_model model;
    const char *path;
    size_t nodes; /* 0: the model does not use the binary */
} move_model;

typedef struct move_work {
    const epctx_io *io;
    const epctx_move_opts *opts;
    epctx_error *error;
    epctx_arena arena;
    char from[EPCTX_PATH_MAX]; /* without links */
    char to[EPCTX_PATH_MAX];
    size_t inside; /* of both: the outermost folder of a model that names one, SIZE_MAX: none */
    move_model *models;
    size_t count;
    epctx_move_report report;
} move_work;

/* -- both names -- */

/* The binary without links, and its size. */
static epctx_status move_source(move_work *m, const char *from) {
    char real[EPCTX_PATH_MAX];
    epctx_str path;
    epctx_file_info info;
    OPS_TRY(m->io->canonical_fn(m->io->user, from, real, sizeof real, m->error));
    path = epctx_str_of(real);
    OPS_TRY(epctx_path_find(m->io, epctx_path_folder(path), epctx_path_file(path), 0, m->from,
                            sizeof m->from, m->error));
    OPS_TRY(m->io->stat_fn(m->io->user, m->from, &info, m->error));
    m->report.size = info.size;
    return EPCTX_OK;
}

/* The canonical folder of a path; its file may be a link into another one. */
static epctx_status move_folder(const move_work *m, const char *path, char out[EPCTX_PATH_MAX]) {
    char given[EPCTX_PATH_MAX];
    epctx_str folder = epctx_path_folder(epctx_str_of(path));
    OPS_TRY(epctx_path_join(epctx_str_of(""), folder.size > 0 ? folder : epctx_str_of("."), given,
                            sizeof given, m->error));
    return m->io->canonical_fn(m->io->user, given, out, EPCTX_PATH_MAX, m->error);
}

/* The new name without links: its folder's, and its own. Where `from` is a link into another
 * folder, what is beside the link goes beside the file. */
static epctx_status move_target(move_work *m, const char *from, const char *to) {
    char beside[EPCTX_PATH_MAX];
    char there[EPCTX_PATH_MAX];
    epctx_str folder = epctx_path_folder(epctx_str_of(m->from));
    epctx_str name = epctx_path_file(epctx_str_of(to));
    if (name.size == 0)
        return epctx_fail(m->error, EPCTX_ERR_PATH, "is a folder, expected a file name");
    OPS_TRY(epctx_output_check(m->io, to, EPCTX_OVERWRITE_REPLACE, m->error));
    OPS_TRY(move_folder(m, from, beside));
    OPS_TRY(move_folder(m, to, there));
    if (strcmp(beside, there) != 0) folder = epctx_str_of(there);
    OPS_TRY(epctx_path_join(folder, name, m->to, sizeof m->to, m->error));
    return strcmp(m->from, m->to) != 0
               ? EPCTX_OK
               : epctx_fail(m->error, EPCTX_ERR_ARG, "already has this name");
}

/* -- the nodes -- */

/* Whether the EP of a node accepts the new name. */
static epctx_status move_allowed(const move_work *m, const epctx_epnode *node, epctx_str name) {
    const epctx_profile *profile = epctx_profile_for(m->opts->profile, node->source);
    epctx_str old = node->ep_cache_context;
    OPS_TRY(epctx_path_check(name, m->error));
    if ((profile->traits & EPCTX_TRAIT_NO_DOTS) != 0 && ops_has_dots(name)) {
        return epctx_fail(m->error, EPCTX_ERR_UNSUPPORTED,
                          "EP %s refuses '..' anywhere in a name: choose another name",
                          profile->name);
    }
    if ((profile->traits & EPCTX_TRAIT_XML_PAIR) != 0 && ops_ends(old, ".xml")) {
        return epctx_fail(m->error, EPCTX_ERR_UNSUPPORTED,
                          "is an OpenVINO IR, and the .bin beside it must have the same name: "
                          "rename both by hand and set ep_cache_context");
    }
    if ((profile->traits & EPCTX_TRAIT_STRIPPED_ENGINE) != 0 &&
        ops_ends(old, ".stripped.engine") != ops_ends(name, ".stripped.engine")) {
        return epctx_fail(m->error, EPCTX_ERR_UNSUPPORTED,
                          "TensorRT recognizes engines without weights by .stripped.engine: do "
                          "not remove or add this suffix");
    }
    return EPCTX_OK;
}

/* The new name as a model in `folder` stores it: with slashes on every system. */
static epctx_status move_name(move_work *m, epctx_str folder, epctx_str *name) {
    char *copy;
    if (epctx_path_relative(folder, epctx_str_of(m->to), name, NULL) != EPCTX_OK) {
        return epctx_fail(m->error, EPCTX_ERR_PATH,
                          "'%s' is outside of the model's folder %S, and the model cannot refer "
                          "to it: choose a place inside",
                          m->to, &folder);
    }
    copy = epctx_arena_copy(&m->arena, *name);
    if (copy == NULL) return ops_nomem(&m->arena, m->error);
    name->data = copy;
#ifdef _WIN32
    for (; *copy != '\0'; copy++) *copy = *copy == '\\' ? '/' : *copy;
#endif
    return EPCTX_OK;
}

static epctx_status move_rename(move_work *m, move_model *moved, epctx_str folder,
                                const epctx_epnode *node, epctx_view view) {
    epctx_str name;
    moved->nodes++;
    OPS_TRY(move_name(m, folder, &name));
    OPS_TRY(move_allowed(m, node, name));
    return epctx_edit_set_attr_str(&moved->model, view, "ep_cache_context", name, m->error);
}

/* Which of the two names a node has; *path is empty for another one. A file that cannot be looked
 * at is an error: it may be the binary, and a model left out would lose it. */
static epctx_status move_look(const move_work *m, epctx_str folder, epctx_str name,
                              char path[EPCTX_PATH_MAX]) {
    epctx_error why;
    epctx_str inside;
    epctx_status status = epctx_path_find(m->io, folder, name, 0, path, EPCTX_PATH_MAX, &why);
    if (status == EPCTX_ERR_NOT_FOUND || status == EPCTX_ERR_PATH) {
        path[0] = '\0';
        return EPCTX_OK;
    }
    if (status != EPCTX_OK) return epctx_fail(m->error, status, "%s", why.message);
    /* The new name counts where the old one could have been. */
    if (strcmp(path, m->from) != 0 &&
        (strcmp(path, m->to) != 0 ||
         epctx_path_relative(folder, epctx_str_of(m->from), &inside, NULL) != EPCTX_OK))
        path[0] = '\0';
    return EPCTX_OK;
}

static epctx_status move_node(move_work *m, move_model *moved, epctx_str folder,
                              const epctx_node_view *view) {
    char path[EPCTX_PATH_MAX];
    epctx_epnode node;
    epctx_status status;
    if (!epctx_view_is_epnode(view) || epctx_view_read_epnode(view, &node, NULL) != EPCTX_OK ||
        node.embed_mode != 0)
        return EPCTX_OK;
    status = move_look(m, folder, node.ep_cache_context, path);
    if (status == EPCTX_OK && path[0] == '\0') return EPCTX_OK;
    if (status == EPCTX_OK && folder.size < m->inside) m->inside = folder.size;
    if (status == EPCTX_OK && strcmp(path, m->from) == 0)
        status = move_rename(m, moved, folder, &node, view->view);
    if (status != EPCTX_OK) epctx_blame(m->error, moved->path, &node.name, "ep_cache_context");
    return status;
}

/* -- the models -- */

/* Opens a model and edits it; writes nothing yet. */
static epctx_status move_edit(move_work *m, move_model *moved) {
    epctx_open_opts opts;
    epctx_walk walk;
    epctx_node_view view;
    char folder[EPCTX_PATH_MAX];
    memset(&opts, 0, sizeof opts);
    opts.io = m->io;
    opts.allocator = m->opts->allocator;
    OPS_TRY(epctx_model_open_file(&moved->model, moved->path, &opts, m->error));
    OPS_TRY(m->io->canonical_fn(m->io->user, moved->path, folder, sizeof folder, m->error));
    folder[epctx_path_folder(epctx_str_of(folder)).size] = '\0';
    epctx_walk_begin(&walk, &moved->model);
    while (epctx_walk_epnode(&walk, &view))
        OPS_TRY(move_node(m, moved, epctx_str_of(folder), &view));
    m->report.model_count += moved->nodes > 0;
    m->report.node_count += moved->nodes;
    return EPCTX_OK;
}

/* The old name of a binary if the new one is already in use, after an interrupted move. */
static bool move_left(const move_work *m) {
    epctx_file_info from, to;
    return m->inside != SIZE_MAX && m->io->stat_fn(m->io->user, m->from, &from, NULL) == EPCTX_OK &&
           m->io->stat_fn(m->io->user, m->to, &to, NULL) == EPCTX_OK && epctx_file_same(&from, &to);
}

static epctx_status move_edits(move_work *m) {
    epctx_status status;
    size_t i;
    for (i = 0; i < m->count; i++) OPS_TRY(move_edit(m, &m->models[i]));
    if (m->report.node_count > 0 || move_left(m)) return EPCTX_OK;
    status = epctx_fail(m->error, EPCTX_ERR_NOT_FOUND,
                        "no EPContext node of these models names it: nothing is renamed");
    epctx_blame(m->error, m->from, NULL, NULL);
    return status;
}

/* Links the new name to the file; false if it must be copied. */
static bool move_link(move_work *m, const char *root, epctx_status *status) {
    epctx_file_info there;
    *status = m->io->stat_fn(m->io->user, m->to, &there, m->error);
    if (*status != EPCTX_OK || there.kind != EPCTX_FILE_NONE || m->io->link_fn == NULL)
        return *status != EPCTX_OK;
    *status = m->io->link_fn(m->io->user, root, m->from + m->inside, m->to + m->inside, m->error);
    m->report.linked = *status == EPCTX_OK;
    if (*status == EPCTX_OK || *status == EPCTX_ERR_EXISTS || *status == EPCTX_ERR_PATH) {
        epctx_blame(m->error, m->to, NULL, NULL);
        return true;
    }
    epctx_error_clear(m->error);
    return false;
}

/* Creates the new name, then replaces the models, then removes the old name. After an interrupted
 * move the new name may already have the same bytes. */
static epctx_status move_place(move_work *m, epctx_commit *c, const char *root) {
    epctx_mapping bytes;
    epctx_output_file file;
    epctx_span part;
    epctx_status status;
    if (!m->opts->dry_run && move_link(m, root, &status)) return status;
    OPS_TRY(m->io->map_fn(m->io->user, root, m->from + m->inside, false, &bytes, m->error));
    memset(&file, 0, sizeof file);
    part.data = bytes.data;
    part.size = bytes.size;
    file.path = m->to;
    file.name = m->to + m->inside;
    file.parts = &part;
    file.part_count = 1;
    file.size = bytes.size;
    c->keep = true;
    status = epctx_commit_put_file(c, &file, EPCTX_OVERWRITE_FAIL, m->error);
    if (status == EPCTX_OK && !m->opts->dry_run) status = epctx_commit_fill(c, m->error);
    m->io->unmap_fn(m->io->user, &bytes);
    return status;
}

/* The models with the new name, and the new name itself. */
static epctx_status move_put(move_work *m, epctx_commit *c) {
    char root[EPCTX_PATH_MAX];
    epctx_str folder = {m->from, m->inside};
    epctx_write_opts opts;
    size_t i;
    memset(&opts, 0, sizeof opts);
    opts.overwrite = EPCTX_OVERWRITE_REPLACE;
    opts.derived = m->opts->derived;
    for (i = 0; i < m->count; i++) {
        move_model *moved = &m->models[i];
        if (moved->nodes > 0)
            OPS_TRY(epctx_commit_put_model(c, &moved->model, moved->path, &opts, m->error));
    }
    OPS_TRY(epctx_path_join(folder, epctx_str_of(""), root, sizeof root, m->error));
    OPS_TRY(epctx_commit_set_folder(c, root, m->error));
    OPS_TRY(epctx_commit_remove(c, m->from + m->inside, m->error));
    return move_place(m, c, c->folder);
}

static epctx_status move_write(move_work *m) {
    epctx_commit c;
    epctx_status status = epctx_commit_begin(&c, m->io, &m->arena, m->error);
    if (status == EPCTX_OK) status = move_put(m, &c);
    if (status == EPCTX_OK && !m->opts->dry_run) {
        status = epctx_commit_run(&c, m->error);
        if (status != EPCTX_OK && m->report.linked && !c.stuck)
            (void)m->io->remove_fn(m->io->user, c.folder, m->to + m->inside, NULL);
    }
    epctx_commit_close(&c);
    return status;
}

static epctx_status move_run(move_work *m, const char *from, const char *to,
                             const char *const *models, size_t count) {
    epctx_status status = move_source(m, from);
    epctx_blame(m->error, from, NULL, NULL);
    OPS_TRY(status);
    status = move_target(m, from, to);
    epctx_blame(m->error, to, NULL, NULL);
    OPS_TRY(status);
    OPS_TRY(ops_array(&m->arena, count, sizeof *m->models, &m->models, m->error));
    for (; m->count < count; m->count++) m->models[m->count].path = models[m->count];
    OPS_TRY(move_edits(m));
    return move_write(m);
}

/* Reports what was done, and closes the models. */
static void move_end(move_work *m, bool done) {
    size_t i;
    for (i = 0; i < m->count; i++) {
        if (done && m->opts->moved_fn != NULL && m->models[i].nodes > 0)
            m->opts->moved_fn(m->opts->user, m->models[i].path, m->models[i].nodes);
        epctx_model_close(&m->models[i].model);
    }
    epctx_arena_free(&m->arena);
}

epctx_status epctx_move_binary(const char *from, const char *to, const char *const *models,
                               size_t count, const epctx_move_opts *opts, epctx_move_report *report,
                               epctx_error *error) {
    static const epctx_move_opts defaults;
    move_work m;
    epctx_status status;
    epctx_error_clear(error);
    memset(&m, 0, sizeof m);
    m.opts = opts != NULL ? opts : &defaults;
    m.io = m.opts->io != NULL ? m.opts->io : epctx_io_files();
    m.error = error;
    m.inside = SIZE_MAX;
    if (m.io == NULL) return epctx_fail(error, EPCTX_ERR_ARG, "EPCTX_NO_STDIO: pass an epctx_io");
    epctx_arena_init(&m.arena, m.opts->allocator);
    status = move_run(&m, from, to, models, count);
    move_end(&m, status == EPCTX_OK);
    if (report != NULL) *report = m.report;
    return status;
}
