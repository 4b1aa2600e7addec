/* rename.c - renames values and nodes wherever their names are used. */
#include "rename.h"

typedef struct rename_work {
    epctx_model *model;
    epctx_arena *arena;
    epctx_error *error;
    epctx_name_opts opts;
    epctx_map from;         /* old name -> index */
    epctx_map taken;        /* new name -> index */
    const epctx_str *names; /* old names; new names in `to` */
    const epctx_str *to;
    size_t count;
    uint32_t *hidden;  /* enclosing graphs that define the old name themselves */
    epctx_list scopes; /* rename_scope: these graphs */
    bool apply;        /* else only check for clashes */
    size_t uses;
} rename_work;

/* A graph inside the scope: names that it defines hide outer ones. */
typedef struct rename_scope {
    epctx_view graph;
    uint32_t level; /* in the walk */
} rename_scope;

/* -- where names of values occur: a message, and the path of fields to the name -- */

typedef struct rename_place {
    epctx_kind kind;
    uint32_t fields[3]; /* 0 ends them */
} rename_place;

static const rename_place rename_places[] = {
    {EPCTX_KIND_GRAPH, {EPCTX_FIELD_GRAPH_INPUT, EPCTX_FIELD_VALUE_NAME, 0}},
    {EPCTX_KIND_GRAPH, {EPCTX_FIELD_GRAPH_OUTPUT, EPCTX_FIELD_VALUE_NAME, 0}},
    {EPCTX_KIND_GRAPH, {EPCTX_FIELD_GRAPH_VALUE_INFO, EPCTX_FIELD_VALUE_NAME, 0}},
    {EPCTX_KIND_GRAPH, {EPCTX_FIELD_GRAPH_INITIALIZER, EPCTX_FIELD_TENSOR_NAME, 0}},
    {EPCTX_KIND_GRAPH,
     {EPCTX_FIELD_GRAPH_SPARSE_INITIALIZER, EPCTX_FIELD_SPARSE_VALUES, EPCTX_FIELD_TENSOR_NAME}},
    {EPCTX_KIND_GRAPH,
     {EPCTX_FIELD_GRAPH_QUANTIZATION_ANNOTATION, EPCTX_FIELD_ANNOTATION_TENSOR_NAME, 0}},
    {EPCTX_KIND_GRAPH,
     {EPCTX_FIELD_GRAPH_QUANTIZATION_ANNOTATION,
      EPCTX_FIELD_ANNOTATION_QUANT_PARAMETER_TENSOR_NAMES, EPCTX_FIELD_PAIR_VALUE}},
    {EPCTX_KIND_FUNCTION, {EPCTX_FIELD_FUNCTION_INPUT, 0, 0}},
    {EPCTX_KIND_FUNCTION, {EPCTX_FIELD_FUNCTION_OUTPUT, 0, 0}},
    {EPCTX_KIND_FUNCTION, {EPCTX_FIELD_FUNCTION_VALUE_INFO, EPCTX_FIELD_VALUE_NAME, 0}},
    {EPCTX_KIND_NODE, {EPCTX_FIELD_NODE_INPUT, 0, 0}},
    {EPCTX_KIND_NODE, {EPCTX_FIELD_NODE_OUTPUT, 0, 0}},
    {EPCTX_KIND_NODE,
     {EPCTX_FIELD_NODE_DEVICE_CONFIGURATIONS, EPCTX_FIELD_NODE_CONFIG_SHARDING_SPEC,
      EPCTX_FIELD_SHARDING_TENSOR_NAME}},
};

/* The index of the new name of a value, or EPCTX_MAP_NONE. */
static uint32_t rename_index(const rename_work *w, epctx_str name) {
    uint32_t i = name.size > 0 ? epctx_map_get(&w->from, name) : EPCTX_MAP_NONE;
    return i != EPCTX_MAP_NONE && w->hidden[i] == 0 ? i : EPCTX_MAP_NONE;
}

static epctx_status rename_in_use(const rename_work *w, epctx_str name, const char *where) {
    uint32_t i = epctx_map_get(&w->taken, name);
    return i == EPCTX_MAP_NONE
               ? EPCTX_OK
               : epctx_fail(w->error, EPCTX_ERR_EXISTS, "value '%S' cannot be renamed to '%S': %s",
                            &w->names[i], &name, where);
}

static epctx_status rename_field(rename_work *w, epctx_view field) {
    epctx_str name = epctx_view_str(field);
    uint32_t i = rename_index(w, name);
    if (i == EPCTX_MAP_NONE)
        return w->apply || name.size == 0 ? EPCTX_OK : rename_in_use(w, name, "the name is in use");
    w->uses++;
    return w->apply ? epctx_edit_replace_str(w->model, field, w->to[i], w->error) : EPCTX_OK;
}

/* Renames the fields of a message at the path `fields` of `left` numbers. */
static epctx_status rename_fields(rename_work *w, epctx_view message, const uint32_t *fields,
                                  size_t left) {
    epctx_cursor it = epctx_view_fields(message, fields[0]);
    epctx_view view;
    while (epctx_next_view(&it, &view)) {
        OPS_TRY(left == 1 || fields[1] == 0 ? rename_field(w, view)
                                            : rename_fields(w, view, fields + 1, left - 1));
    }
    return EPCTX_OK;
}

static epctx_status rename_message(rename_work *w, epctx_view message, epctx_kind kind) {
    size_t i;
    for (i = 0; i < sizeof rename_places / sizeof rename_places[0]; i++)
        if (rename_places[i].kind == kind)
            OPS_TRY(rename_fields(w, message, rename_places[i].fields, 3));
    return EPCTX_OK;
}

/* -- scopes -- */

/* `by` 1: a graph hides the names that it defines; UINT32_MAX, minus one: no longer. */
static void rename_hide(rename_work *w, epctx_view graph, uint32_t by) {
    ops_definitions defined = ops_definitions_of(graph);
    epctx_str name;
    while (ops_next_definition(&defined, &name)) {
        uint32_t i = epctx_map_get(&w->from, name);
        if (i != EPCTX_MAP_NONE) w->hidden[i] += by;
    }
}

static epctx_status rename_enter(rename_work *w, epctx_view graph, uint32_t level) {
    rename_scope *scope = (rename_scope *)epctx_list_add(&w->scopes, w->arena, sizeof *scope);
    if (scope == NULL) return ops_nomem(w->arena, w->error);
    scope->graph = graph;
    scope->level = level;
    rename_hide(w, graph, 1);
    return EPCTX_OK;
}

/* Leaves the graphs that do not enclose a message of this level. */
static void rename_leave(rename_work *w, uint32_t level) {
    const rename_scope *scopes = (const rename_scope *)w->scopes.items;
    while (w->scopes.count > 0 && scopes[w->scopes.count - 1].level >= level)
        rename_hide(w, scopes[--w->scopes.count].graph, UINT32_MAX);
}

/* Whether the inputs and outputs of a node, if it is an EPContext node, may be renamed. */
static epctx_status rename_allowed(const rename_work *w, epctx_view message) {
    epctx_node_view node = epctx_view_as_node(message);
    epctx_cursor inputs = epctx_view_node_inputs(&node);
    epctx_cursor outputs = epctx_view_node_outputs(&node);
    const epctx_profile *profile;
    epctx_epnode ep;
    epctx_str name;
    bool overrides;
    if (w->opts.any_io || !epctx_view_is_epnode(&node) ||
        epctx_view_read_epnode(&node, &ep, NULL) != EPCTX_OK)
        return EPCTX_OK;
    profile = epctx_profile_of_node(w->opts.profile, &node);
    overrides = ops_goes_by_overrides(profile, &node);
    while (epctx_next_str(&inputs, &name) || epctx_next_str(&outputs, &name)) {
        if (rename_index(w, name) != EPCTX_MAP_NONE && ops_fixes_name(profile, overrides, name)) {
            epctx_fail(w->error, EPCTX_ERR_UNSUPPORTED,
                       "value '%S' cannot be renamed: %s finds it in the binary by name%s", &name,
                       profile->name,
                       ops_may_override(name)
                           ? ""
                           : ", and io_name_overrides cannot name one with ';' or '='");
            epctx_blame(w->error, NULL, &node.name, NULL);
            return EPCTX_ERR_UNSUPPORTED;
        }
    }
    return EPCTX_OK;
}

/* -- names of inputs and outputs beside those in the binary: QNN's "model=binary;..." -- */

static void rename_put_entry(epctx_text *out, epctx_str name, epctx_str binary) {
    epctx_text_put(out, name);
    epctx_text_put_char(out, '=');
    epctx_text_put(out, binary);
    epctx_text_put_char(out, ';');
}

/* Puts the entries as they are afterwards; `known` gets the model's names in them. */
static epctx_status rename_entries(const rename_work *w, epctx_str rest, epctx_map *known,
                                   epctx_text *out) {
    while (rest.size > 0) {
        epctx_str binary = epctx_str_cut(&rest, ';');
        const epctx_str name = epctx_str_cut(&binary, '=');
        const uint32_t i = rename_index(w, name);
        OPS_TRY(ops_put(known, name, 1, w->error));
        rename_put_entry(out, i == EPCTX_MAP_NONE ? name : w->to[i], binary);
    }
    return EPCTX_OK;
}

/* A name that the list lacks is the binary's, too. */
static epctx_status rename_overrides(rename_work *w, epctx_view message) {
    epctx_node_view node = epctx_view_as_node(message);
    const epctx_str before = epctx_view_node_attr_str(&node, "io_name_overrides");
    epctx_cursor inputs = epctx_view_node_inputs(&node), outputs = epctx_view_node_outputs(&node);
    size_t size = 2 * before.size + 1, i;
    epctx_map known;
    epctx_text text;
    epctx_str name;
    char *bytes;
    if (!epctx_view_is_epnode(&node) ||
        !ops_goes_by_overrides(epctx_profile_of_node(w->opts.profile, &node), &node))
        return EPCTX_OK;
    for (i = 0; i < w->count; i++) size += w->names[i].size + 2 * w->to[i].size + 2;
    OPS_TRY(ops_array(w->arena, size, 1, &bytes, w->error));
    text = epctx_text_of(bytes, size);
    epctx_map_init(&known, w->arena);
    OPS_TRY(rename_entries(w, before, &known, &text));
    while (epctx_next_str(&inputs, &name) || epctx_next_str(&outputs, &name)) {
        const uint32_t at = rename_index(w, name);
        if (at == EPCTX_MAP_NONE || ops_has(&known, name)) continue;
        OPS_TRY(ops_put(&known, name, 1, w->error));
        rename_put_entry(&text, w->to[at], name);
    }
    name = epctx_text_str(&text);
    return epctx_str_eq(name, before)
               ? EPCTX_OK
               : epctx_edit_set_attr_str(w->model, message, "io_name_overrides", name, w->error);
}

/* Everything below a graph or function that sees its values. */
static epctx_status rename_below(rename_work *w, epctx_view scope, epctx_kind kind) {
    epctx_walk walk;
    epctx_walk_below(&walk, scope, kind);
    while (epctx_walk_step(&walk)) {
        rename_leave(w, walk.level);
        if (walk.kind == EPCTX_KIND_GRAPH && walk.level > 0)
            OPS_TRY(rename_enter(w, walk.view, walk.level));
        else if (walk.kind == EPCTX_KIND_NODE && !w->apply)
            OPS_TRY(rename_allowed(w, walk.view));
        else if (walk.kind == EPCTX_KIND_NODE)
            OPS_TRY(rename_overrides(w, walk.view));
        OPS_TRY(rename_message(w, walk.view, walk.kind));
    }
    rename_leave(w, 0);
    return EPCTX_OK;
}

static epctx_status rename_bindings(rename_work *w, epctx_view training, uint32_t number,
                                    uint32_t inner) {
    uint32_t fields[2];
    fields[0] = number;
    fields[1] = inner;
    return rename_fields(w, training, fields, 2);
}

/* A graph of a TrainingInfoProto sees the main graph's values. The value of a binding is an output
 * of this graph. */
static epctx_status rename_training_graph(rename_work *w, const epctx_training_view *training,
                                          bool algorithm) {
    epctx_view graph = algorithm ? training->algorithm.view : training->initialization.view;
    uint32_t number = algorithm ? EPCTX_FIELD_TRAINING_UPDATE_BINDING
                                : EPCTX_FIELD_TRAINING_INITIALIZATION_BINDING;
    rename_hide(w, graph, 1);
    OPS_TRY(rename_below(w, graph, EPCTX_KIND_GRAPH));
    OPS_TRY(rename_bindings(w, training->view, number, EPCTX_FIELD_PAIR_VALUE));
    if (algorithm) { /* keys: initializers of the algorithm or of the main graph */
        OPS_TRY(rename_bindings(w, training->view, EPCTX_FIELD_TRAINING_INITIALIZATION_BINDING,
                                EPCTX_FIELD_PAIR_KEY));
        OPS_TRY(rename_bindings(w, training->view, EPCTX_FIELD_TRAINING_UPDATE_BINDING,
                                EPCTX_FIELD_PAIR_KEY));
    }
    rename_hide(w, graph, UINT32_MAX);
    return EPCTX_OK;
}

static epctx_status rename_all(rename_work *w, epctx_view scope) {
    epctx_cursor trainings = epctx_model_trainings(w->model);
    epctx_training_view training;
    w->uses = 0;
    OPS_TRY(rename_below(w, scope, epctx_view_kind(scope)));
    while (scope.slot == epctx_model_graph(w->model).view.slot &&
           epctx_next_training(&trainings, &training)) {
        OPS_TRY(rename_training_graph(w, &training, false));
        OPS_TRY(rename_training_graph(w, &training, true));
    }
    return EPCTX_OK;
}

/* -- what is to be renamed -- */

/* The current view of the scope. Names of enclosing graphs must not be reused. */
static epctx_status rename_find_scope(rename_work *w, epctx_view *scope) {
    epctx_view inner, outer;
    epctx_kind kind;
    if (!epctx_view_exists(*scope)) *scope = epctx_model_graph(w->model).view;
    if (!epctx_view_exists(*scope))
        return epctx_fail(w->error, EPCTX_ERR_GRAPH, "the model has no graph to edit");
    OPS_TRY(epctx_edit_refresh(w->model, scope, &outer, w->error));
    kind = epctx_view_kind(*scope);
    if (kind != EPCTX_KIND_GRAPH && kind != EPCTX_KIND_FUNCTION)
        return epctx_fail(w->error, EPCTX_ERR_ARG, "the view is not a graph or function");
    while (epctx_view_exists(outer)) {
        ops_definitions defined = ops_definitions_of(outer);
        epctx_str name;
        while (epctx_view_kind(outer) == EPCTX_KIND_GRAPH && ops_next_definition(&defined, &name))
            OPS_TRY(rename_in_use(w, name, "an outer graph uses the name"));
        inner = outer;
        OPS_TRY(epctx_edit_refresh(w->model, &inner, &outer, w->error));
    }
    return EPCTX_OK;
}

static epctx_status rename_plan(rename_work *w, size_t count) {
    size_t i;
    OPS_TRY(ops_array(w->arena, count, sizeof *w->hidden, &w->hidden, w->error));
    for (i = 0; i < count; i++) {
        const epctx_str *from = &w->names[i];
        const epctx_str *to = &w->to[i];
        if (from->size == 0 || to->size == 0)
            return epctx_fail(w->error, EPCTX_ERR_ARG, "the name of a value must not be empty");
        if (epctx_str_eq(*from, *to)) continue;
        if (ops_has(&w->from, *from))
            return epctx_fail(w->error, EPCTX_ERR_ARG, "value '%S' has two new names", from);
        if (ops_has(&w->taken, *to))
            return epctx_fail(w->error, EPCTX_ERR_EXISTS, "two values would be named '%S'", to);
        OPS_TRY(ops_put(&w->from, *from, (uint32_t)i, w->error));
        OPS_TRY(ops_put(&w->taken, *to, (uint32_t)i, w->error));
    }
    return EPCTX_OK;
}

static epctx_status rename_run(rename_work *w, epctx_view scope, size_t count) {
    OPS_TRY(rename_plan(w, count));
    OPS_TRY(rename_find_scope(w, &scope));
    OPS_TRY(rename_all(w, scope));
    w->apply = true;
    return rename_all(w, scope);
}

epctx_status epctx_rename_values(epctx_model *model, epctx_view scope, const epctx_str *from,
                                 const epctx_str *to, size_t count, const epctx_name_opts *opts,
                                 size_t *uses, epctx_error *error) {
    size_t mark = epctx_edit_mark(model);
    epctx_status status;
    rename_work w;
    epctx_error_clear(error);
    memset(&w, 0, sizeof w);
    w.model = model;
    w.arena = &model->arena;
    w.error = error;
    w.names = from;
    w.to = to;
    w.count = count;
    if (opts != NULL) w.opts = *opts;
    epctx_map_init(&w.from, w.arena);
    epctx_map_init(&w.taken, w.arena);
    status = rename_run(&w, scope, count);
    if (uses != NULL) *uses = status == EPCTX_OK ? w.uses : 0;
    return ops_end(model, mark, status, error);
}

/* -- names of nodes -- */

static const epctx_profile *rename_profile(const epctx_name_opts *opts, const epctx_epnode *node) {
    return epctx_profile_for(opts->profile, node->source);
}

static bool survey_shares(const epctx_name_survey *survey, const epctx_profile *profile) {
    size_t i;
    for (i = 0; i < survey->shared.count; i++)
        if (((const epctx_profile *const *)survey->shared.items)[i] == profile) return true;
    return false;
}

static epctx_status survey_add(epctx_name_survey *survey, epctx_arena *arena,
                               const epctx_epnode *node, epctx_error *error) {
    const epctx_profile *profile = rename_profile(&survey->opts, node);
    if (node->main_context == 0 && !survey_shares(survey, profile)) {
        const epctx_profile **place =
            (const epctx_profile **)epctx_list_add(&survey->shared, arena, sizeof *place);
        if (place == NULL) return ops_nomem(arena, error);
        *place = profile;
    }
    if (node->main_context == 0 || node->embed_mode != 0) return EPCTX_OK;
    return ops_put(&survey->files, node->ep_cache_context,
                   ops_has(&survey->files, node->ep_cache_context) ? 2 : 1, error);
}

epctx_status epctx_name_survey_of(epctx_name_survey *survey, const epctx_model *model,
                                  const epctx_name_opts *opts, epctx_arena *arena,
                                  epctx_error *error) {
    epctx_walk walk;
    epctx_node_view view;
    epctx_epnode node;
    memset(survey, 0, sizeof *survey);
    if (opts != NULL) survey->opts = *opts;
    survey->model = model;
    epctx_map_init(&survey->files, arena);
    epctx_walk_begin(&walk, model);
    while (epctx_walk_epnode(&walk, &view))
        if (epctx_view_is_epnode(&view) && epctx_view_read_epnode(&view, &node, NULL) == EPCTX_OK)
            OPS_TRY(survey_add(survey, arena, &node, error));
    return EPCTX_OK;
}

epctx_status epctx_node_may_rename(const epctx_name_survey *survey, const epctx_node_view *view,
                                   epctx_error *error) {
    const epctx_profile *profile;
    epctx_epnode node;
    const char *why;
    OPS_TRY(epctx_view_read_epnode(view, &node, error));
    profile = rename_profile(&survey->opts, &node);
    if (profile->key != EPCTX_KEY_NODE_NAME) return EPCTX_OK;
    if (node.main_context == 0 || survey_shares(survey, profile)) {
        why = "several nodes share a context, and the EP finds the graph in it by the node's name";
    } else if (node.embed_mode == 0 && epctx_map_get(&survey->files, node.ep_cache_context) == 2) {
        why = "several nodes name this binary, and the EP finds the graph in it by the node's "
              "name";
    } else if (survey->opts.one_graph || epctx_model_holds_one_graph(survey->model, &node)) {
        return EPCTX_OK;
    } else {
        why = "the EP finds the graph in the binary by the node's name, and the binary may "
              "contain other graphs; set one_graph if it does not";
    }
    return epctx_fail(error, EPCTX_ERR_UNSUPPORTED, "%s EPContext node cannot be renamed: %s",
                      profile->name, why);
}

static epctx_status rename_node(epctx_model *model, const epctx_node_view *node, epctx_str name,
                                const epctx_name_opts *opts, epctx_error *error) {
    epctx_node_view other;
    epctx_walk walk;
    if (epctx_view_is_epnode(node)) {
        epctx_name_survey survey;
        OPS_TRY(epctx_name_survey_of(&survey, model, opts, &model->arena, error));
        OPS_TRY(epctx_node_may_rename(&survey, node, error));
    }
    epctx_walk_begin(&walk, model);
    while (name.size > 0 && epctx_walk_next(&walk, &other)) {
        if (epctx_str_eq(other.name, name)) {
            return epctx_fail(error, EPCTX_ERR_EXISTS,
                              "cannot be renamed to '%S': another node has that name", &name);
        }
    }
    return epctx_edit_set_field_str(model, node->view, EPCTX_FIELD_NODE_NAME, name, error);
}

epctx_status epctx_node_rename(epctx_model *model, epctx_view node, epctx_str name,
                               const epctx_name_opts *opts, epctx_error *error) {
    const epctx_name_opts defaults = {NULL, false, false};
    epctx_node_view view;
    epctx_status status;
    OPS_TRY(epctx_edit_refresh(model, &node, NULL, error));
    if (epctx_view_kind(node) != EPCTX_KIND_NODE)
        return epctx_fail(error, EPCTX_ERR_ARG, "the view is not a node");
    view = epctx_view_as_node(node);
    if (epctx_str_eq(view.name, name)) return EPCTX_OK;
    status = rename_node(model, &view, name, opts != NULL ? opts : &defaults, error);
    epctx_blame(error, model->path, &view.name, NULL);
    return status;
}
