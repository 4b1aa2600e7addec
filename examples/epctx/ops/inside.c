#include "inside.h"

#include "../binary/binary.h"
#include "lint.h"

/* -- what lint says -- */

typedef struct inside_judge {
    const inside *search;
    uint64_t count;
    char text[640]; /* of the first finding */
} inside_judge;

static void judge_found(void *user, const epctx_finding *finding) {
    inside_judge *judge = (inside_judge *)user;
    const inside *s = judge->search;
    epctx_text text;
    if (!epctx_rule_is_of_binary(finding->rule) ||
        (!s->alone && finding->node.size > 0 && !ops_has(&s->nodes, finding->node)))
        return;
    if (judge->count++ > 0) return;
    text = epctx_text_of(judge->text, sizeof judge->text);
    epctx_text_put_format(&text, "%s: node '%S': %s", finding->info.id, &finding->node,
                          finding->message);
}

static epctx_status judge_model(const inside *s, inside_judge *judge) {
    memset(judge, 0, sizeof *judge);
    judge->search = s;
    return epctx_lint_asking(s->model, s->check, s->asker, judge_found, judge, NULL, s->error);
}

epctx_status inside_begin(inside *s, epctx_model *model, const epctx_dependency *file, bool alone,
                          const epctx_check_opts *check, const struct binary_asker *asker,
                          epctx_error *error) {
    epctx_walk walk;
    epctx_node_view view;
    inside_judge judge;
    memset(s, 0, sizeof *s);
    s->model = model;
    s->check = check;
    s->asker = asker;
    s->error = error;
    s->file = file;
    epctx_map_init(&s->nodes, &model->arena);
    epctx_walk_begin(&walk, model);
    while (epctx_walk_epnode(&walk, &view)) {
        if (!epctx_str_eq(epctx_view_node_attr_str(&view, file->attribute), file->name)) continue;
        if (s->profile == NULL) s->profile = epctx_profile_of_node(check->profile, &view);
        OPS_TRY(ops_put(&s->nodes, view.name, 1, error));
    }
    s->alone = alone;
    OPS_TRY(judge_model(s, &judge));
    s->before = judge.count;
    return EPCTX_OK;
}

/* -- a file -- */

/* Whether a context binary says which graphs it has, or that it is damaged. */
static epctx_status look_inside(const inside *s, epctx_str name, bool *tells) {
    const epctx_io *io = epctx_model_io(s->model);
    epctx_mapping mapping;
    epctx_arena arena;
    binary_facts facts;
    epctx_span bytes;
    epctx_status status;
    *tells = false;
    if (epctx_path_map(io, epctx_str_of(s->file->folder), name, s->model->path_flags, &mapping,
                       NULL, NULL) != EPCTX_OK)
        return EPCTX_OK;
    bytes.data = mapping.data;
    bytes.size = mapping.size;
    epctx_arena_init(&arena, s->check->allocator);
    status = binary_read(bytes, s->asker, &arena, &facts, s->error);
    *tells = status == EPCTX_OK && (facts.damage != NULL || facts.graphs_known);
    epctx_arena_free(&arena);
    io->unmap_fn(io->user, &mapping);
    return status;
}

/* The model with the file under this name, as lint sees it. */
static epctx_status judge_file(const inside *s, epctx_str name, inside_judge *judge) {
    const size_t mark = epctx_edit_mark(s->model);
    epctx_file_rename rename;
    epctx_status status;
    rename.use = s->file->use;
    rename.from = s->file->name;
    rename.to = name;
    status = epctx_edit_rename_files(s->model, &rename, 1, s->error);
    if (status == EPCTX_OK) status = judge_model(s, judge);
    epctx_edit_undo(s->model, mark);
    return status;
}

void inside_note(epctx_str names[INSIDE_NAMES], size_t *count, epctx_str name) {
    if (*count < INSIDE_NAMES) names[*count] = name;
    (*count)++;
}

void inside_put_names(epctx_text *out, const epctx_str names[INSIDE_NAMES], size_t count) {
    size_t i;
    for (i = 0; i < count && i < INSIDE_NAMES; i++)
        epctx_text_put_format(out, "%s'%S'",
                              i == 0           ? ""
                              : i + 1 == count ? " and "
                                               : ", ",
                              &names[i]);
    if (count > INSIDE_NAMES)
        epctx_text_put_format(out, " and %u more", (uint64_t)(count - INSIDE_NAMES));
}

epctx_status inside_try(inside *s, epctx_str name) {
    inside_judge judge;
    bool tells;
    OPS_TRY(look_inside(s, name, &tells));
    if (!tells) {
        inside_note(s->closed, &s->unread, name);
        return EPCTX_OK;
    }
    OPS_TRY(judge_file(s, name, &judge));
    if (judge.count <= s->before) {
        inside_note(s->fits, &s->fit, name);
    } else if (s->tried++ == 0) {
        s->other = name;
        memcpy(s->why, judge.text, sizeof s->why);
    }
    return EPCTX_OK;
}

epctx_str inside_end(const inside *s, epctx_text *out) {
    if (s->fit == 1 && s->unread == 0) return s->fits[0];
    if (s->fit > 1) {
        inside_put_names(out, s->fits, s->fit);
        epctx_text_put_format(out, "%s have what its nodes want: rename the right one",
                              s->fit == 2 ? " both" : " all");
    } else if (s->unread > 0) {
        epctx_text_put_format(out, "whether it is ");
        inside_put_names(out, s->closed, s->unread);
        epctx_text_put_format(out, " only its vendor's library can tell");
    } else if (s->tried > 0) {
        epctx_text_put_format(out, "it is none of the context binaries here, as '%S': %s",
                              &s->other, s->why);
    }
    return epctx_str_of(NULL);
}
