#include "merge.h"

#include "carry.h"
#include "inlined.h"
#include "lint.h"
#include "one_context.h"
#include "place.h"
#include "rename.h"

/* A value that inputs of later models may be connected to. */
typedef struct merge_end {
    size_t part;
    epctx_str name; /* in its model */
    epctx_str now;  /* in the result */
    epctx_view value;
    bool input;      /* a graph input, for share_inputs */
    uint32_t before; /* an earlier end of the same name, or EPCTX_MAP_NONE */
} merge_end;

typedef struct merge {
    epctx_model *model; /* the result: the first one */
    epctx_view graph;   /* its main graph, for edits */
    epctx_arena *arena; /* its memory, for everything here */
    epctx_error *error;
    ops_report report;
    carry files;
    one_context contexts;
    const epctx_part *parts;
    size_t count;
    epctx_merge_opts opts;
    int64_t ir_version;
    epctx_map outer, inner; /* names of values in the result's main graph; in its bodies */
    epctx_map nodes;        /* names of nodes */
    epctx_map inlined[2];   /* what ORT gives values, and nodes, of functions that it inlines, */
    epctx_map inlinable;    /* and the names of these */
    epctx_map partitions;   /* partition names that are keys -> number of the model */
    epctx_map twice;        /* those that more than one model has */
    epctx_map domains;      /* operator sets that nodes of the result use */
    epctx_map functions;    /* domain, name, overload -> number in `function_views` */
    epctx_list function_views;
    epctx_list ends;
    epctx_map end_names; /* name -> last end */
    epctx_map fed;       /* names (now) of outputs that feed an input */
    bool *used;          /* per connection */
    uint64_t allowed[EPCTX_RULE_COUNT];
} merge;

/* A model that is being added. */
typedef struct guest {
    merge *w;
    epctx_model *model;
    epctx_error *error;
    size_t number;
    char own_prefix[32];
    epctx_str prefix;         /* explicit, or what clashes get */
    bool always;              /* every name gets it */
    bool never;               /* clashes are errors */
    epctx_map fixed;          /* values that a compiled node finds by name */
    epctx_map own;            /* names of values of the model, before and after */
    epctx_map own_nodes;      /* the same of nodes of the main graph */
    epctx_map from;           /* names of the main graph */
    epctx_map joined;         /* inputs (before) that an output feeds -> number of the end */
    epctx_map inits;          /* names of initializers, before */
    epctx_list before, after; /* names of the values of the main graph */
    uint32_t linked;
} guest;

static const merge_end *end_at(const merge *w, uint32_t at) {
    return (const merge_end *)w->ends.items + at;
}

static const epctx_profile *profile_of(const epctx_node_view *node) {
    return epctx_profile_of_node(NULL, node);
}

static epctx_view main_graph(const epctx_model *model) {
    return epctx_model_graph(model).view;
}

/* The next graph of the main graph and its bodies; functions and training graphs come after. */
static bool next_body(epctx_walk *walk, epctx_graph_view *graph) {
    return epctx_walk_graph(walk, graph) && !walk->in_function && !walk->in_training;
}

/* -- what a model brings -- */

/* Values that an EP finds in its binary by name. */
static epctx_status guest_fixed(guest *g) {
    epctx_cursor nodes = epctx_view_graph_nodes(epctx_model_graph(g->model));
    epctx_node_view node;
    epctx_str name;
    while (epctx_next_node(&nodes, &node)) {
        epctx_cursor inputs = epctx_view_node_inputs(&node);
        epctx_cursor outputs = epctx_view_node_outputs(&node);
        const epctx_profile *profile;
        bool overrides;
        if (!epctx_view_is_epnode(&node)) continue;
        profile = profile_of(&node);
        overrides = ops_goes_by_overrides(profile, &node);
        while (epctx_next_str(&inputs, &name) || epctx_next_str(&outputs, &name))
            if (ops_fixes_name(profile, overrides, name))
                OPS_TRY(ops_put(&g->fixed, name, 1, g->error));
    }
    return EPCTX_OK;
}

static epctx_status guest_look(guest *g) {
    epctx_cursor nodes = epctx_view_graph_nodes(epctx_model_graph(g->model));
    epctx_graph_view graph;
    epctx_node_view node;
    epctx_walk walk;
    epctx_walk_begin(&walk, g->model);
    while (next_body(&walk, &graph))
        OPS_TRY(ops_put_definitions(&g->own, ops_definitions_of(graph.view), g->error));
    OPS_TRY(ops_put_definitions(&g->inits, ops_initializers_of(main_graph(g->model)), g->error));
    while (epctx_next_node(&nodes, &node)) OPS_TRY(ops_put(&g->own_nodes, node.name, 1, g->error));
    return guest_fixed(g);
}

static void guest_begin(guest *g, merge *w, size_t number) {
    const epctx_part *part = &w->parts[number];
    epctx_text text;
    memset(g, 0, sizeof *g);
    g->w = w;
    g->model = part->model;
    g->error = w->error;
    g->number = number;
    g->never = part->prefix != NULL && part->prefix[0] == '\0';
    g->always = part->prefix != NULL && part->prefix[0] != '\0';
    text = epctx_text_of(g->own_prefix, sizeof g->own_prefix);
    epctx_text_put_format(&text, "m%u_", (uint64_t)number + 1);
    g->prefix = part->prefix != NULL ? epctx_str_of(part->prefix) : epctx_text_str(&text);
    epctx_map_init(&g->fixed, w->arena);
    epctx_map_init(&g->own, w->arena);
    epctx_map_init(&g->own_nodes, w->arena);
    epctx_map_init(&g->from, w->arena);
    epctx_map_init(&g->joined, w->arena);
    epctx_map_init(&g->inits, w->arena);
}

/* Names the model that a failure is about. */
static epctx_status guest_end(const guest *g, epctx_status status) {
    char number[40];
    epctx_text text = epctx_text_of(number, sizeof number);
    if (status != EPCTX_OK) {
        epctx_text_put_format(&text, "model %u", (uint64_t)g->number + 1);
        epctx_blame(g->error, epctx_str_of(g->model->path).size > 0 ? g->model->path : number, NULL,
                    NULL);
    }
    return status;
}

/* -- names -- */

/* Names that are compared with each other. */
typedef struct merge_names {
    const epctx_map *taken[3]; /* in the result; the last: by ORT, when it inlines functions */
    epctx_map *own;            /* of the model, before and after */
} merge_names;

static merge_names value_names(guest *g) {
    merge_names names;
    names.taken[0] = &g->w->outer;
    names.taken[1] = &g->w->inner;
    names.taken[2] = &g->w->inlined[0];
    names.own = &g->own;
    return names;
}

static merge_names node_names(guest *g) {
    merge_names names;
    names.taken[0] = names.taken[1] = &g->w->nodes;
    names.taken[2] = &g->w->inlined[1];
    names.own = &g->own_nodes;
    return names;
}

static bool is_taken(const merge_names *names, epctx_str name) {
    return ops_has(names->taken[0], name) || ops_has(names->taken[1], name);
}

/* Whether ORT gives this name, or may, when it inlines functions of the result. */
static bool is_inlined(const guest *g, const merge_names *names, epctx_str name) {
    return ops_has(names->taken[2], name) || inlined_may_be(name, &g->w->inlinable);
}

/* The name with the prefix, and a number where that is not new everywhere. */
static epctx_status guest_fresh(guest *g, const merge_names *names, epctx_str name,
                                epctx_str *out) {
    OPS_TRY(ops_join(g->w->arena, g->prefix, name, &name, g->error));
    return ops_free_name(g->w->arena, names->taken, 3, names->own, name, out, g->error);
}

static epctx_status guest_clash(guest *g, const char *what, epctx_str name, const char *cure) {
    return epctx_fail(g->error, EPCTX_ERR_EXISTS, "%s '%S' also exists in an earlier model%s", what,
                      &name, cure);
}

/* The new name of something that an EP does not find by name. */
static epctx_status guest_name(guest *g, const char *what, const merge_names *names, epctx_str name,
                               epctx_str *out) {
    *out = name;
    if (g->always) {
        OPS_TRY(ops_join(g->w->arena, g->prefix, name, out, g->error));
        return is_taken(names, *out) ? guest_clash(g, what, *out, "; choose another prefix")
                                     : EPCTX_OK;
    }
    if (!is_taken(names, name)) /* without a prefix, lint refuses what clashes with ORT's names */
        return g->never || !is_inlined(g, names, name) ? EPCTX_OK
                                                       : guest_fresh(g, names, name, out);
    return g->never ? guest_clash(g, what, name, "; use a prefix for the model")
                    : guest_fresh(g, names, name, out);
}

/* The new name of a value of the main graph that is not connected. */
static epctx_status guest_value_name(guest *g, epctx_str name, epctx_str *out) {
    merge_names names = value_names(g);
    if (!ops_has(&g->fixed, name)) return guest_name(g, "value", &names, name, out);
    *out = name;
    return !is_taken(&names, name)
               ? EPCTX_OK
               : guest_clash(g, "value", name,
                             ": its EP finds the inputs and outputs of a compiled node by name, so "
                             "it cannot be renamed; compile one of the models with other names");
}

static epctx_status guest_node_name(guest *g, const epctx_name_survey *survey,
                                    const epctx_node_view *node, epctx_str *out) {
    merge_names names = node_names(g);
    *out = node->name;
    if (node->name.size == 0) return EPCTX_OK;
    if (!epctx_view_is_epnode(node) || epctx_node_may_rename(survey, node, NULL) == EPCTX_OK)
        return guest_name(g, "node", &names, node->name, out);
    return !is_taken(&names, node->name)
               ? EPCTX_OK
               : guest_clash(g, "EPContext node", node->name,
                             ": its EP finds the graph in the binary by this name, so it cannot be "
                             "renamed; generate one of the models with "
                             "ep.context_node_name_prefix");
}

/* -- connections -- */

static bool same_dims(epctx_cursor x, epctx_cursor y) {
    epctx_dim p, q;
    while (epctx_next_dim(&x, &p))
        if (!epctx_next_dim(&y, &q) || (p.known && q.known && p.value != q.value)) return false;
    return !epctx_next_dim(&y, &q);
}

/* Whether two types are compatible. */
static bool same_type(const epctx_value_view *a, const epctx_value_view *b) {
    if (!a->has_type || !b->has_type) return true;
    if (a->is_tensor != b->is_tensor || (a->is_tensor && a->elem_type != b->elem_type))
        return a->is_tensor && b->is_tensor && (a->elem_type == 0 || b->elem_type == 0);
    return !a->is_tensor || !a->has_shape || !b->has_shape ||
           same_dims(epctx_view_value_dims(a), epctx_view_value_dims(b));
}

/* The last end that a connection can mean, or EPCTX_MAP_NONE. */
static uint32_t end_of(const merge *w, const epctx_connection *link) {
    uint32_t at = epctx_map_get(&w->end_names, link->output);
    while (at != EPCTX_MAP_NONE && (end_at(w, at)->input || (link->from != EPCTX_ANY_PART &&
                                                             end_at(w, at)->part != link->from)))
        at = end_at(w, at)->before;
    return at;
}

/* What feeds an input: an explicit connection, the output of the same name, the same input. */
static epctx_status guest_source(guest *g, epctx_str input, uint32_t *end) {
    merge *w = g->w;
    uint32_t at;
    size_t i;
    *end = EPCTX_MAP_NONE;
    for (i = 0; i < w->opts.connection_count; i++) {
        const epctx_connection *link = &w->opts.connections[i];
        if ((link->to != EPCTX_ANY_PART && link->to != g->number) ||
            !epctx_str_eq(link->input, input))
            continue;
        at = end_of(w, link);
        if (at == EPCTX_MAP_NONE) continue;
        if (*end != EPCTX_MAP_NONE && *end != at)
            return epctx_fail(g->error, EPCTX_ERR_ARG, "the input '%S' is connected twice", &input);
        w->used[i] = true;
        *end = at;
    }
    if (*end == EPCTX_MAP_NONE && !ops_has(&g->inits, input)) {
        at = epctx_map_get(&w->end_names, input);
        while (at != EPCTX_MAP_NONE &&
               !(end_at(w, at)->input ? w->opts.share_inputs : w->opts.chain))
            at = end_at(w, at)->before;
        *end = at;
    }
    return EPCTX_OK;
}

static epctx_status guest_join_one(guest *g, const epctx_value_view *input, uint32_t at) {
    epctx_step step;
    merge *w = g->w;
    const merge_end *end = end_at(w, at);
    epctx_value_view value = epctx_view_as_value(end->value);
    if (!same_type(&value, input)) {
        return epctx_fail(g->error, EPCTX_ERR_GRAPH,
                          "%s '%S' has another type or shape than the input '%S' that it would "
                          "feed",
                          end->input ? "input" : "output", &end->name, &input->name);
    }
    OPS_TRY(ops_put(&g->joined, input->name, at, g->error));
    if (!end->input) {
        OPS_TRY(ops_put(&w->fed, end->now, 1, g->error));
        g->linked++;
    }
    step = ops_step(g->number, "change", "input", input->name);
    return ops_say(&w->report, &step, g->error, "input '%S' is %s '%S' of model %u", &input->name,
                   end->input ? "input" : "connected to output", &end->name,
                   (uint64_t)end->part + 1);
}

/* Decides which inputs are connected, and checks their types. */
static epctx_status guest_join(guest *g) {
    epctx_cursor inputs = epctx_view_graph_inputs(epctx_model_graph(g->model));
    epctx_value_view input;
    uint32_t at;
    while (epctx_next_value(&inputs, &input)) {
        OPS_TRY(guest_source(g, input.name, &at));
        if (at != EPCTX_MAP_NONE) OPS_TRY(guest_join_one(g, &input, at));
    }
    if (g->number > 0 && g->w->opts.chain && g->linked == 0) {
        return epctx_fail(
            g->error, EPCTX_ERR_NOT_FOUND,
            "none of its inputs has the name of an output of an earlier model: specify "
            "the connections");
    }
    return EPCTX_OK;
}

/* -- new names in the model -- */

static epctx_status guest_value(guest *g, epctx_str name) {
    uint32_t at = epctx_map_get(&g->joined, name);
    epctx_str now = name;
    if (at != EPCTX_MAP_NONE) now = end_at(g->w, at)->now;
    /* Where the name is a key, a node in between gives the value its second name. */
    if (at == EPCTX_MAP_NONE || (ops_has(&g->fixed, name) && !epctx_str_eq(now, name)))
        OPS_TRY(guest_value_name(g, name, &now));
    OPS_TRY(ops_add_name(&g->before, g->w->arena, name, g->error));
    OPS_TRY(ops_add_name(&g->after, g->w->arena, now, g->error));
    OPS_TRY(ops_put(&g->from, name, 1, g->error));
    return at != EPCTX_MAP_NONE || epctx_str_eq(now, name)
               ? EPCTX_OK
               : ops_say_now(&g->w->report, g->number, "value", name, "", now, g->error);
}

/* New names for the values of the main graph. */
static epctx_status guest_values(guest *g) {
    ops_definitions d = ops_definitions_of(main_graph(g->model));
    epctx_str name;
    while (ops_next_definition(&d, &name))
        if (!ops_has(&g->from, name)) OPS_TRY(guest_value(g, name));
    return EPCTX_OK;
}

static epctx_status guest_rename(guest *g, epctx_view scope, const epctx_list *before,
                                 const epctx_list *after) {
    epctx_list from, to;
    size_t i;
    memset(&from, 0, sizeof from);
    memset(&to, 0, sizeof to);
    for (i = 0; i < before->count; i++) {
        if (!epctx_str_eq(ops_name_at(before, i), ops_name_at(after, i))) {
            OPS_TRY(ops_add_name(&from, g->w->arena, ops_name_at(before, i), g->error));
            OPS_TRY(ops_add_name(&to, g->w->arena, ops_name_at(after, i), g->error));
        }
    }
    return from.count == 0
               ? EPCTX_OK
               : epctx_rename_values(g->model, scope, (const epctx_str *)from.items,
                                     (const epctx_str *)to.items, from.count, NULL, NULL, g->error);
}

static epctx_status put_names(guest *g, epctx_map *names, epctx_cursor values) {
    epctx_value_view value;
    while (epctx_next_value(&values, &value)) OPS_TRY(ops_put(names, value.name, 1, g->error));
    return EPCTX_OK;
}

/* Names in a body must not hide values of the main graphs, but where they are what it is known by.
 * `now`: the new ones of its own. */
static epctx_status guest_body_names(guest *g, epctx_view body, bool by_names,
                                     const epctx_map *now) {
    ops_definitions d = ops_definitions_of(body);
    merge_names names = value_names(g);
    epctx_list before, after;
    epctx_str name, fresh;
    epctx_map seen;
    memset(&before, 0, sizeof before);
    memset(&after, 0, sizeof after);
    epctx_map_init(&seen, g->w->arena);
    if (by_names) {
        OPS_TRY(put_names(g, &seen, epctx_view_graph_inputs(epctx_view_as_graph(body))));
        OPS_TRY(put_names(g, &seen, epctx_view_graph_outputs(epctx_view_as_graph(body))));
    }
    while (ops_next_definition(&d, &name)) {
        bool hides =
            ops_has(&g->w->outer, name) || (ops_has(now, name) && !ops_has(&g->from, name));
        if (!hides || ops_has(&seen, name)) continue;
        if (g->never) return guest_clash(g, "value", name, "; use a prefix for the model");
        OPS_TRY(ops_put(&seen, name, 1, g->error));
        OPS_TRY(guest_fresh(g, &names, name, &fresh));
        OPS_TRY(ops_add_name(&before, g->w->arena, name, g->error));
        OPS_TRY(ops_add_name(&after, g->w->arena, fresh, g->error));
        OPS_TRY(
            ops_say_now(&g->w->report, g->number, "value", name, " of a body", fresh, g->error));
    }
    return guest_rename(g, body, &before, &after);
}

static epctx_status guest_rename_all(guest *g) {
    epctx_list bodies, named; /* the latter: those that a node knows by names */
    epctx_graph_view graph;
    epctx_walk walk;
    epctx_map now;
    size_t i;
    memset(&bodies, 0, sizeof bodies);
    memset(&named, 0, sizeof named);
    epctx_map_init(&now, g->w->arena);
    for (i = 0; i < g->after.count; i++)
        OPS_TRY(ops_put(&now, ops_name_at(&g->after, i), 1, g->error));
    epctx_walk_begin(&walk, g->model);
    while (next_body(&walk, &graph)) {
        epctx_list *list = ops_goes_by_names(&walk) ? &named : &bodies;
        OPS_TRY(ops_add_view(list, g->w->arena, graph.view, g->error));
    }
    for (i = 1; i < bodies.count; i++) /* the first is the main graph */
        OPS_TRY(guest_body_names(g, ops_view_at(&bodies, i), false, &now));
    for (i = 0; i < named.count; i++)
        OPS_TRY(guest_body_names(g, ops_view_at(&named, i), true, &now));
    return guest_rename(g, epctx_view_none(), &g->before, &g->after);
}

static epctx_status guest_nodes(guest *g) {
    epctx_cursor nodes = epctx_view_graph_nodes(epctx_model_graph(g->model));
    epctx_name_survey survey;
    epctx_node_view node;
    epctx_str name;
    OPS_TRY(epctx_name_survey_of(&survey, g->model, NULL, g->w->arena, g->error));
    while (epctx_next_node(&nodes, &node)) {
        OPS_TRY(guest_node_name(g, &survey, &node, &name));
        if (epctx_str_eq(name, node.name)) continue;
        OPS_TRY(ops_say_now(&g->w->report, g->number, "node", node.name, "", name, g->error));
        OPS_TRY(
            epctx_edit_set_field_str(g->model, node.view, EPCTX_FIELD_NODE_NAME, name, g->error));
    }
    return EPCTX_OK;
}

/* -- partitions of one name in a context that nodes share -- */

/* Whether a node finds its graph by its partition name in a context that others share; where there
 * is one for all, one_context.c names the graphs. */
static bool by_partition(const epctx_node_view *node, epctx_epnode *ep) {
    const epctx_profile *profile = profile_of(node);
    return epctx_view_is_epnode(node) && profile->key == EPCTX_KEY_PARTITION &&
           (profile->traits & (EPCTX_TRAIT_EACH_CONTEXT | EPCTX_TRAIT_ONE_CONTEXT)) == 0 &&
           epctx_view_read_epnode(node, ep, NULL) == EPCTX_OK;
}

/* Which partition names more than one model has. */
static epctx_status merge_partitions(merge *w, size_t number) {
    epctx_cursor nodes = epctx_view_graph_nodes(epctx_model_graph(w->parts[number].model));
    epctx_node_view node;
    epctx_epnode ep;
    while (epctx_next_node(&nodes, &node)) {
        uint32_t part;
        if (!by_partition(&node, &ep)) continue;
        part = epctx_map_get(&w->partitions, ep.partition_name);
        if (part != EPCTX_MAP_NONE && part != (uint32_t)number)
            OPS_TRY(ops_put(&w->twice, ep.partition_name, 1, w->error));
        OPS_TRY(ops_put(&w->partitions, ep.partition_name, (uint32_t)number, w->error));
    }
    return EPCTX_OK;
}

static epctx_status guest_name_binary(guest *g, epctx_view view, epctx_str file) {
    epctx_str name = epctx_view_as_node(view).name;
    const epctx_step step = ops_step(g->number, "change", "node", name);
    OPS_TRY(epctx_edit_set_attr_int(g->model, view, "main_context", 1, g->error));
    OPS_TRY(epctx_edit_set_attr_int(g->model, view, "embed_mode", 0, g->error));
    OPS_TRY(epctx_edit_set_attr_str(g->model, view, "ep_cache_context", file, g->error));
    return ops_say(
        &g->w->report, &step, g->error,
        "node '%S' now names the binary itself: another model has a partition of the same "
        "name",
        &name);
}

/* Two nodes that ask one context for the same partition would be one: where the names clash, the
 * binary of the later model stays a file of its own, and secondary nodes name theirs themselves. */
static epctx_status guest_partitions(guest *g, bool *alone) {
    epctx_cursor nodes = epctx_view_graph_nodes(epctx_model_graph(g->model));
    epctx_node_view node;
    epctx_epnode ep;
    epctx_str file = epctx_str_of("");
    epctx_list views;
    size_t primaries = 0;
    size_t i;
    memset(&views, 0, sizeof views);
    *alone = false;
    while (epctx_next_node(&nodes, &node)) {
        bool twice;
        if (!by_partition(&node, &ep)) continue;
        twice = ops_has(&g->w->twice, ep.partition_name);
        *alone = *alone || (twice && g->number > 0);
        if (ep.main_context == 1 && ep.embed_mode == 0) {
            primaries += !epctx_str_eq(ep.ep_cache_context, file);
            file = ep.ep_cache_context;
        } else if (ep.main_context == 0 && twice) {
            OPS_TRY(ops_add_view(&views, g->w->arena, node.view, g->error));
        }
    }
    /* With several binaries, lint checks the result. */
    for (i = 0; i < views.count && primaries == 1; i++)
        OPS_TRY(guest_name_binary(g, ops_view_at(&views, i), file));
    return EPCTX_OK;
}

/* All changes of a model before it is copied. */
static epctx_status guest_prepare(guest *g) {
    bool alone;
    OPS_TRY(guest_look(g));
    OPS_TRY(guest_join(g));
    OPS_TRY(guest_values(g));
    OPS_TRY(guest_nodes(g));
    OPS_TRY(guest_rename_all(g));
    OPS_TRY(one_context_settle(&g->w->contexts, g->number));
    OPS_TRY(guest_partitions(g, &alone));
    return carry_files(&g->w->files, g->model, g->number, alone);
}

/* -- copying -- */

/* Whether a field of the graph of a model goes into the result. `fed`: values that are there. */
static bool guest_copies(const guest *g, const epctx_field *field, const epctx_map *fed) {
    epctx_str name;
    switch (field->number) {
    case EPCTX_FIELD_GRAPH_NODE:
    case EPCTX_FIELD_GRAPH_OUTPUT:
    case EPCTX_FIELD_GRAPH_QUANTIZATION_ANNOTATION:
    case EPCTX_FIELD_GRAPH_SPARSE_INITIALIZER: return true;
    case EPCTX_FIELD_GRAPH_INITIALIZER:
        return !ops_has(fed, epctx_view_as_tensor(field->body).name);
    case EPCTX_FIELD_GRAPH_INPUT:
        name = epctx_view_as_value(field->body).name;
        return !ops_has(fed, name) && !ops_has(&g->inits, name);
    case EPCTX_FIELD_GRAPH_VALUE_INFO: return !ops_has(fed, epctx_view_as_value(field->body).name);
    default: return false;
    }
}

/* A connected input that must keep its name gets a node that produces it. */
static epctx_status guest_bridge(guest *g, const epctx_value_view *input, epctx_str now,
                                 epctx_view *last) {
    epctx_step step;
    merge *w = g->w;
    epctx_view none = epctx_view_none();
    epctx_node node;
    memset(&node, 0, sizeof node);
    OPS_TRY(ops_join(w->arena, epctx_str_of("connect_"), input->name, &node.name, g->error));
    while (ops_has(&w->nodes, node.name))
        OPS_TRY(ops_join(w->arena, node.name, epctx_str_of("_"), &node.name, g->error));
    node.op_type = epctx_str_of("Identity");
    node.inputs = &now;
    node.input_count = 1;
    node.outputs = &input->name;
    node.output_count = 1;
    OPS_TRY(ops_put(&w->nodes, node.name, 1, g->error));
    OPS_TRY(ops_put(&w->domains, epctx_str_of("ai.onnx"), 1, g->error));
    OPS_TRY(epctx_edit_put_opset(w->model, epctx_str_of(""), 13, g->error));
    OPS_TRY(epctx_edit_put_node(w->model, none, &node, *last, last, g->error));
    OPS_TRY(epctx_edit_put_copy(w->model, w->graph, EPCTX_FIELD_GRAPH_VALUE_INFO, input->view, none,
                                NULL, g->error));
    step = ops_step(g->number, "add", "node", node.name);
    return ops_say(&w->report, &step, g->error,
                   "node '%S' copies '%S' to '%S', the name by which the EP finds it", &node.name,
                   &now, &input->name);
}

/* Values of the model that the result has already become `fed`. */
static epctx_status guest_bridges(guest *g, epctx_map *fed, epctx_view *last) {
    epctx_cursor inputs = epctx_view_graph_inputs(epctx_model_graph(g->model));
    epctx_value_view input;
    size_t i;
    for (i = 0; i < g->before.count; i++) {
        uint32_t at = epctx_map_get(&g->joined, ops_name_at(&g->before, i));
        if (at != EPCTX_MAP_NONE) OPS_TRY(ops_put(fed, ops_name_at(&g->after, i), at, g->error));
    }
    while (epctx_next_value(&inputs, &input)) {
        uint32_t at = epctx_map_get(fed, input.name);
        if (at != EPCTX_MAP_NONE && !epctx_str_eq(end_at(g->w, at)->now, input.name))
            OPS_TRY(guest_bridge(g, &input, end_at(g->w, at)->now, last));
    }
    return EPCTX_OK;
}

static epctx_status guest_copy(guest *g) {
    epctx_cursor fields = epctx_view_fields(main_graph(g->model), 0);
    epctx_view last[EPCTX_FIELD_GRAPH_SPARSE_INITIALIZER + 1]; /* that was placed, by number */
    epctx_map fed;
    epctx_field field;
    memset(last, 0, sizeof last);
    epctx_map_init(&fed, g->w->arena);
    OPS_TRY(guest_bridges(g, &fed, &last[EPCTX_FIELD_GRAPH_NODE]));
    while (epctx_next_field(&fields, &field)) {
        if (field.wire == EPCTX_WIRE_LEN && guest_copies(g, &field, &fed)) {
            OPS_TRY(epctx_edit_put_copy(g->w->model, g->w->graph, field.number, field.body,
                                        last[field.number], &last[field.number], g->error));
        }
    }
    return EPCTX_OK;
}

/* -- operator sets -- */

static epctx_str domain_of(epctx_str domain) {
    return domain.size > 0 ? domain : epctx_str_of("ai.onnx");
}

/* Which operator sets the nodes of a model use; functions bring their own imports. */
static epctx_status put_domains(const epctx_model *model, epctx_map *domains, epctx_error *error) {
    epctx_walk walk;
    epctx_node_view node;
    epctx_walk_begin(&walk, model);
    while (epctx_walk_next(&walk, &node))
        if (!walk.in_function) OPS_TRY(ops_put(domains, domain_of(node.domain), 1, error));
    return EPCTX_OK;
}

/* An operator set that the result imports. */
typedef struct merge_import {
    epctx_view view;
    int64_t version;
} merge_import;

typedef struct merge_imports {
    epctx_map domains; /* -> number in `items`, the last one of a domain */
    epctx_list items;  /* merge_import */
    epctx_view last;   /* that was added */
} merge_imports;

static epctx_status know_import(merge *w, merge_imports *known, epctx_view view) {
    epctx_opset opset = epctx_view_as_opset(view);
    uint32_t at = (uint32_t)known->items.count;
    merge_import *item;
    OPS_TRY(ops_add(&known->items, w->arena, sizeof *item, &item, w->error));
    item->view = view;
    item->version = opset.version;
    return ops_put(&known->domains, domain_of(opset.domain), at, w->error);
}

/* One import of the guest, of a domain that the result imports, too. `here`: its nodes use it. */
static epctx_status guest_import(guest *g, merge_import *have, epctx_str domain, int64_t version,
                                 bool here) {
    merge *w = g->w;
    bool there = ops_has(&w->domains, domain);
    int64_t before = have->version;
    const epctx_step step = ops_step(g->number, "change", "opset", domain);
    if (before == version) return EPCTX_OK;
    if (here && there && !w->opts.force_opset && before != 0) {
        return epctx_fail(g->error, EPCTX_ERR_GRAPH,
                          "its nodes are of operator set %S version %d, those of earlier models of "
                          "version %d: convert one of them (onnx.version_converter), or force the "
                          "newer version for both",
                          &domain, version, before);
    }
    if (before == 0 || (here && (!there || before < version))) {
        OPS_TRY(epctx_edit_set_field_int(w->model, have->view, EPCTX_FIELD_OPSET_VERSION, version,
                                         g->error));
        have->version = version;
    }
    return before == 0 ? EPCTX_OK
                       : ops_say(&w->report, &step, g->error,
                                 "operator set %S: version %d here, %d before; the result has %d",
                                 &domain, version, before, have->version);
}

static epctx_status guest_opsets(guest *g) {
    merge *w = g->w;
    epctx_cursor ours = epctx_model_opsets(w->model);
    epctx_cursor theirs = epctx_model_opsets(g->model);
    merge_imports known;
    epctx_map used;
    epctx_view view;
    memset(&known, 0, sizeof known);
    epctx_map_init(&known.domains, w->arena);
    epctx_map_init(&used, w->arena);
    while (epctx_next_view(&ours, &view)) OPS_TRY(know_import(w, &known, view));
    OPS_TRY(put_domains(g->model, &used, g->error));
    while (epctx_next_view(&theirs, &view)) {
        epctx_opset opset = epctx_view_as_opset(view);
        epctx_str domain = domain_of(opset.domain);
        uint32_t at = epctx_map_get(&known.domains, domain);
        if (at != EPCTX_MAP_NONE) {
            OPS_TRY(guest_import(g, (merge_import *)known.items.items + at, domain, opset.version,
                                 ops_has(&used, domain)));
            continue;
        }
        OPS_TRY(epctx_edit_put_copy(w->model, epctx_model_root(w->model),
                                    EPCTX_FIELD_MODEL_OPSET_IMPORT, view, known.last, &known.last,
                                    g->error));
        OPS_TRY(know_import(w, &known, known.last));
    }
    return EPCTX_OK;
}

/* -- metadata -- */

/* Metadata of the result, by key. */
typedef struct merge_pairs {
    epctx_view owner;
    epctx_kind kind; /* of the owner: MODEL or GRAPH */
    epctx_map keys;  /* key -> number in `values` */
    epctx_list values;
    epctx_view last; /* that was added */
} merge_pairs;

static epctx_status know_pair(merge *w, merge_pairs *known, epctx_str key, epctx_str value) {
    if (epctx_map_put(&known->keys, key, (uint32_t)known->values.count) != EPCTX_OK)
        return ops_nomem(w->arena, w->error);
    return ops_add_name(&known->values, w->arena, value, w->error);
}

static uint32_t metadata_field(epctx_kind owner) {
    return owner == EPCTX_KIND_MODEL ? (uint32_t)EPCTX_FIELD_MODEL_METADATA_PROPS
                                     : (uint32_t)EPCTX_FIELD_GRAPH_METADATA_PROPS;
}

/* Adds a pair under a key that is free. */
static epctx_status put_pair(merge *w, merge_pairs *known, epctx_view view, epctx_str key) {
    epctx_pair pair = epctx_view_as_pair(view);
    uint32_t number = metadata_field(known->kind);
    OPS_TRY(epctx_edit_put_copy(w->model, known->owner, number, view, known->last, &known->last,
                                w->error));
    if (!epctx_str_eq(pair.key, key))
        OPS_TRY(
            epctx_edit_set_field_str(w->model, known->last, EPCTX_FIELD_PAIR_KEY, key, w->error));
    return know_pair(w, known, key, pair.value);
}

/* A pair whose key has another value: it gets the prefix, and a number where that key has another
 * value as well. */
static epctx_status guest_prefix_pair(guest *g, merge_pairs *known, epctx_view view) {
    epctx_pair pair = epctx_view_as_pair(view);
    epctx_str base, key;
    uint32_t at, number = 2;
    OPS_TRY(ops_join(g->w->arena, g->prefix, pair.key, &base, g->error));
    key = base;
    at = epctx_map_get(&known->keys, key);
    while (at != EPCTX_MAP_NONE && !epctx_str_eq(ops_name_at(&known->values, at), pair.value)) {
        OPS_TRY(ops_number(g->w->arena, base, number++, &key, g->error));
        at = epctx_map_get(&known->keys, key);
    }
    if (at == EPCTX_MAP_NONE) OPS_TRY(put_pair(g->w, known, view, key));
    return ops_say_now(&g->w->report, g->number, "metadata", pair.key, "", key, g->error);
}

static epctx_status guest_pair(guest *g, merge_pairs *known, epctx_view view) {
    epctx_pair pair = epctx_view_as_pair(view);
    uint32_t at = epctx_map_get(&known->keys, pair.key);
    epctx_str old;
    bool is_compat;
    if (at == EPCTX_MAP_NONE) return put_pair(g->w, known, view, pair.key);
    old = ops_name_at(&known->values, at);
    if (epctx_str_eq(old, pair.value)) return EPCTX_OK;
    if (g->w->opts.metadata == EPCTX_METADATA_FIRST) {
        const epctx_step step = ops_step(g->number, "keep", "metadata", pair.key);
        return ops_say(&g->w->report, &step, g->error, "metadata '%S': the earlier value stays",
                       &pair.key);
    }
    is_compat = known->kind == EPCTX_KIND_MODEL && epctx_str_starts(pair.key, EPCTX_COMPAT_PREFIX);
    if (g->w->opts.metadata == EPCTX_METADATA_REFUSE || is_compat) {
        return epctx_fail(
            g->error, EPCTX_ERR_GRAPH,
            "metadata '%S' is '%S', but '%S' in an earlier model: keep the first%s, or "
            "change one of them",
            &pair.key, &pair.value, &old, is_compat ? "" : ", use a prefix");
    }
    if (g->prefix.size == 0) {
        return epctx_fail(g->error, EPCTX_ERR_EXISTS,
                          "metadata '%S' is '%S', but '%S' in an earlier model, and the prefix is "
                          "empty",
                          &pair.key, &pair.value, &old);
    }
    return guest_prefix_pair(g, known, view);
}

static epctx_status guest_metadata(guest *g, epctx_view from, epctx_view into, epctx_kind kind) {
    uint32_t number = metadata_field(kind);
    epctx_cursor theirs = epctx_view_fields(from, number);
    epctx_cursor ours = epctx_view_fields(into, number);
    merge_pairs known;
    epctx_pair pair;
    epctx_view view;
    memset(&known, 0, sizeof known);
    epctx_map_init(&known.keys, g->w->arena);
    known.owner = into;
    known.kind = kind;
    while (epctx_next_pair(&ours, &pair))
        if (!ops_has(&known.keys, pair.key)) OPS_TRY(know_pair(g->w, &known, pair.key, pair.value));
    while (epctx_next_view(&theirs, &view)) {
        bool stamp = epctx_str_starts(epctx_view_as_pair(view).key, EPCTX_BUILD_PREFIX);
        if (kind != EPCTX_KIND_MODEL || !stamp) OPS_TRY(guest_pair(g, &known, view));
    }
    return EPCTX_OK;
}

/* -- functions -- */

/* Equal functions are stored once. */
static epctx_status guest_functions(guest *g) {
    merge *w = g->w;
    epctx_cursor theirs = epctx_model_functions(g->model);
    epctx_function_view function;
    while (epctx_next_function(&theirs, &function)) {
        epctx_str key;
        uint32_t at;
        OPS_TRY(ops_function_key(w->arena, function.domain, function.name, function.overload, &key,
                                 g->error));
        at = epctx_map_get(&w->functions, key);
        if (at == EPCTX_MAP_NONE) {
            OPS_TRY(ops_put(&w->functions, key, (uint32_t)w->function_views.count, g->error));
            OPS_TRY(ops_add_view(&w->function_views, w->arena, function.view, g->error));
            if (g->number > 0) {
                OPS_TRY(epctx_edit_put_copy(w->model, epctx_model_root(w->model),
                                            EPCTX_FIELD_MODEL_FUNCTIONS, function.view,
                                            epctx_view_none(), NULL, g->error));
            }
        } else if (!epctx_view_equal(ops_view_at(&w->function_views, at), function.view)) {
            return epctx_fail(g->error, EPCTX_ERR_GRAPH,
                              "function '%S' of domain '%S' is different in an earlier model: "
                              "rename one of them",
                              &function.name, &function.domain);
        }
    }
    return EPCTX_OK;
}

/* -- what the result has now, for the models that follow -- */

static epctx_status guest_settle(guest *g) {
    merge *w = g->w;
    epctx_cursor nodes = epctx_view_graph_nodes(epctx_model_graph(g->model));
    epctx_map *names = &w->outer;
    epctx_graph_view graph;
    epctx_node_view node;
    epctx_walk walk;
    epctx_walk_begin(&walk, g->model);
    while (next_body(&walk, &graph)) {
        OPS_TRY(ops_put_definitions(names, ops_definitions_of(graph.view), g->error));
        names = &w->inner;
    }
    while (epctx_next_node(&nodes, &node)) OPS_TRY(ops_put(&w->nodes, node.name, 1, g->error));
    return put_domains(g->model, &w->domains, g->error);
}

static epctx_status put_end(guest *g, epctx_str name, const epctx_value_view *value, bool input) {
    merge *w = g->w;
    uint32_t at = (uint32_t)w->ends.count;
    merge_end *end;
    OPS_TRY(ops_add(&w->ends, w->arena, sizeof *end, &end, g->error));
    OPS_TRY(ops_join(w->arena, name, epctx_str_of(""), &end->name, g->error));
    end->part = g->number;
    end->now = value->name;
    end->value = value->view;
    end->input = input;
    end->before = epctx_map_get(&w->end_names, name);
    /* Of those with one name in one model the last is found, and would be n times. */
    if (end->before != EPCTX_MAP_NONE && end_at(w, end->before)->part == g->number &&
        end_at(w, end->before)->input == input)
        end->before = end_at(w, end->before)->before;
    return ops_put(&w->end_names, end->name, at, g->error);
}

/* The inputs and outputs of a model by the names they had; the views show the result. */
static epctx_status guest_ends(guest *g) {
    epctx_graph_view graph = epctx_model_graph(g->w->model);
    epctx_map before;
    size_t i;
    int k;
    epctx_map_init(&before, g->w->arena);
    for (i = 0; i < g->before.count; i++)
        if (!ops_has(&g->joined, ops_name_at(&g->before, i)))
            OPS_TRY(ops_put(&before, ops_name_at(&g->after, i), (uint32_t)i, g->error));
    for (k = 0; k < 2; k++) {
        epctx_cursor values =
            k == 0 ? epctx_view_graph_inputs(graph) : epctx_view_graph_outputs(graph);
        epctx_value_view value;
        while (epctx_next_value(&values, &value)) {
            uint32_t at = epctx_map_get(&before, value.name);
            if (at != EPCTX_MAP_NONE)
                OPS_TRY(put_end(g, ops_name_at(&g->before, at), &value, k == 0));
        }
    }
    return EPCTX_OK;
}

/* -- one model after the other -- */

/* Before IR version 4 initializers had to be listed as inputs; now that would make them
 * replaceable: `inits` becomes the names of those that may not be, as they are now. */
static epctx_status guest_listed(guest *g) {
    epctx_map_init(&g->inits, g->w->arena);
    return g->w->ir_version < 4 || epctx_model_read(g->model).ir_version >= 4
               ? EPCTX_OK
               : ops_put_definitions(&g->inits, ops_initializers_of(main_graph(g->model)),
                                     g->error);
}

static epctx_status guest_first(guest *g) {
    merge *w = g->w;
    epctx_cursor inputs;
    epctx_value_view input;
    epctx_list gone;
    memset(&gone, 0, sizeof gone);
    OPS_TRY(guest_prepare(g));
    OPS_TRY(guest_settle(g));
    OPS_TRY(guest_ends(g));
    OPS_TRY(guest_functions(g));
    OPS_TRY(guest_listed(g));
    inputs = epctx_view_graph_inputs(epctx_model_graph(w->model));
    while (epctx_next_value(&inputs, &input))
        if (ops_has(&g->inits, input.name))
            OPS_TRY(ops_add_view(&gone, w->arena, input.view, g->error));
    OPS_TRY(ops_remove_views(w->model, &gone, g->error));
    return epctx_model_read(w->model).ir_version == w->ir_version
               ? EPCTX_OK
               : epctx_edit_set_field_int(w->model, epctx_model_root(w->model),
                                          EPCTX_FIELD_MODEL_IR_VERSION, w->ir_version, g->error);
}

static epctx_status guest_next(guest *g) {
    epctx_model *model = g->w->model;
    OPS_TRY(guest_prepare(g));
    OPS_TRY(guest_listed(g));
    OPS_TRY(guest_copy(g));
    OPS_TRY(guest_opsets(g));
    OPS_TRY(guest_functions(g));
    OPS_TRY(
        guest_metadata(g, epctx_model_root(g->model), epctx_model_root(model), EPCTX_KIND_MODEL));
    OPS_TRY(guest_metadata(g, main_graph(g->model), main_graph(model), EPCTX_KIND_GRAPH));
    OPS_TRY(guest_settle(g));
    return guest_ends(g);
}

static epctx_status merge_part(merge *w, size_t number) {
    guest g;
    size_t mark = epctx_edit_mark(w->parts[number].model);
    epctx_status status;
    guest_begin(&g, w, number);
    if (number == 0) return guest_end(&g, guest_first(&g));
    status = guest_end(&g, guest_next(&g));
    epctx_edit_undo(g.model, mark);
    return status;
}

/* Removes connected outputs; their types stay as value_info. */
static epctx_status merge_outputs(merge *w) {
    epctx_model *model = w->model;
    epctx_graph_view graph = epctx_model_graph(model);
    epctx_cursor outputs = epctx_view_graph_outputs(graph);
    epctx_cursor values = epctx_view_graph_values(graph);
    epctx_map typed;
    epctx_value_view value;
    epctx_list gone;
    size_t i;
    if (w->opts.keep_outputs || w->fed.count == 0) return EPCTX_OK;
    memset(&gone, 0, sizeof gone);
    epctx_map_init(&typed, w->arena);
    while (epctx_next_value(&values, &value)) OPS_TRY(ops_put(&typed, value.name, 1, w->error));
    while (epctx_next_value(&outputs, &value))
        if (ops_has(&w->fed, value.name))
            OPS_TRY(ops_add_view(&gone, w->arena, value.view, w->error));
    for (i = 0; i < gone.count; i++) {
        value = epctx_view_as_value(ops_view_at(&gone, i));
        if (value.has_type && !ops_has(&typed, value.name)) {
            OPS_TRY(epctx_edit_put_copy(model, w->graph, EPCTX_FIELD_GRAPH_VALUE_INFO, value.view,
                                        epctx_view_none(), NULL, w->error));
        }
    }
    OPS_TRY(ops_remove_views(model, &gone, w->error));
    outputs = epctx_view_graph_outputs(epctx_model_graph(model));
    return epctx_next_value(&outputs, &value)
               ? EPCTX_OK
               : epctx_fail(w->error, EPCTX_ERR_GRAPH,
                            "every output feeds an input: keep the outputs, or connect less");
}

/* -- what must hold before anything is edited -- */

static epctx_status keep_inlined(void *user, bool of_node, epctx_str name) {
    merge *w = (merge *)user;
    OPS_TRY(ops_join(w->arena, name, epctx_str_of(""), &name, w->error));
    return ops_put(&w->inlined[of_node], name, 1, w->error);
}

/* What ORT gives when it inlines a function of any model is nobody's name, so the first model's
 * values and nodes make way, too. */
static epctx_status reserve_inlined(merge *w, const epctx_model *model) {
    epctx_cursor functions = epctx_model_functions(model);
    epctx_function_view function;
    while (epctx_next_function(&functions, &function)) {
        OPS_TRY(ops_put(&w->inlinable, function.name, 1, w->error));
        OPS_TRY(inlined_names(&function, w->arena, keep_inlined, w, w->error));
    }
    return EPCTX_OK;
}

static epctx_status check_part(merge *w, size_t number) {
    epctx_model *model = w->parts[number].model;
    epctx_cursor trainings = epctx_model_trainings(model);
    epctx_model_info info = epctx_model_read(model);
    epctx_training_view training;
    size_t k;
    if (!epctx_model_is_editable(model))
        return epctx_fail(w->error, EPCTX_ERR_GRAPH, OPS_READ_ONLY);
    for (k = 0; k < number; k++) {
        if (w->parts[k].model == model) {
            return epctx_fail(w->error, EPCTX_ERR_ARG,
                              "the same model is listed twice: open its file twice");
        }
    }
    if (number > 0 && epctx_next_training(&trainings, &training))
        return epctx_fail(w->error, EPCTX_ERR_UNSUPPORTED, "training info cannot be merged");
    if (!w->opts.allow_stale) OPS_TRY(epctx_model_check_binary(model, NULL, w->error));
    OPS_TRY(epctx_lint_count(model, NULL, w->allowed, w->error));
    OPS_TRY(reserve_inlined(w, model));
    w->ir_version = info.ir_version > w->ir_version ? info.ir_version : w->ir_version;
    return merge_partitions(w, number);
}

static bool has_value(epctx_cursor values, epctx_str name) {
    epctx_value_view value;
    while (epctx_next_value(&values, &value))
        if (epctx_str_eq(value.name, name)) return true;
    return false;
}

/* Whether the ends of a connection exist, before a name that clashes for want of it is refused. */
static epctx_status check_connection(merge *w, const epctx_connection *link) {
    size_t first = SIZE_MAX; /* model with the output */
    size_t last = 0;         /* model with the input */
    size_t i;
    epctx_value_view value;
    epctx_cursor outputs;
    for (i = 0; i < w->count; i++) {
        epctx_graph_view graph = epctx_model_graph(w->parts[i].model);
        if ((link->from == EPCTX_ANY_PART || link->from == i) && first == SIZE_MAX &&
            has_value(epctx_view_graph_outputs(graph), link->output))
            first = i;
        if ((link->to == EPCTX_ANY_PART || link->to == i) &&
            has_value(epctx_view_graph_inputs(graph), link->input))
            last = i;
    }
    if (first < last) return EPCTX_OK;
    outputs = epctx_view_graph_outputs(
        epctx_model_graph(w->parts[link->from < w->count ? link->from : 0].model));
    if (first == SIZE_MAX && epctx_next_value(&outputs, &value)) {
        return epctx_fail(w->error, EPCTX_ERR_NOT_FOUND,
                          "connection '%S' to '%S': no such output; outputs include '%S'",
                          &link->output, &link->input, &value.name);
    }
    return epctx_fail(w->error, EPCTX_ERR_NOT_FOUND,
                      "connection '%S' to '%S': no later model has the input", &link->output,
                      &link->input);
}

static epctx_status merge_run(merge *w) {
    size_t i;
    OPS_TRY(ops_array(w->arena, w->opts.connection_count, sizeof *w->used, &w->used, w->error));
    for (i = 0; i < w->opts.connection_count; i++)
        OPS_TRY(check_connection(w, &w->opts.connections[i]));
    for (i = 0; i < w->count; i++) {
        epctx_status status = check_part(w, i);
        if (status != EPCTX_OK) {
            epctx_blame(w->error, w->parts[i].model->path, NULL, NULL);
            return status;
        }
    }
    OPS_TRY(one_context_begin(&w->contexts, w->parts, w->count, &w->files));
    for (i = 0; i < w->count; i++) OPS_TRY(merge_part(w, i));
    for (i = 0; i < w->opts.connection_count; i++) {
        if (!w->used[i]) {
            return epctx_fail(w->error, EPCTX_ERR_NOT_FOUND,
                              "no model after the one with output '%S' has an input '%S'",
                              &w->opts.connections[i].output, &w->opts.connections[i].input);
        }
    }
    OPS_TRY(merge_outputs(w));
    OPS_TRY(place_contexts(w->model, &w->report, w->error));
    OPS_TRY(ops_drop_builds(&w->report, w->model, w->error));
    OPS_TRY(epctx_lint_verify(w->model, NULL, w->allowed, w->error));
    return ops_check_size(w->model, "first move contexts and initializers into files", w->error);
}

static void merge_begin(merge *w, const epctx_part *parts, size_t count,
                        const epctx_merge_opts *opts, epctx_error *error) {
    memset(w, 0, sizeof *w);
    w->model = parts[0].model;
    w->graph = main_graph(w->model);
    w->arena = &w->model->arena;
    w->error = error;
    w->report.arena = w->arena;
    w->parts = parts;
    w->count = count;
    if (opts != NULL) w->opts = *opts;
    carry_begin(&w->files, &w->report, w->model, w->opts.output_path, error);
    epctx_map_init(&w->outer, w->arena);
    epctx_map_init(&w->inner, w->arena);
    epctx_map_init(&w->nodes, w->arena);
    epctx_map_init(&w->inlined[0], w->arena);
    epctx_map_init(&w->inlined[1], w->arena);
    epctx_map_init(&w->inlinable, w->arena);
    epctx_map_init(&w->partitions, w->arena);
    epctx_map_init(&w->twice, w->arena);
    epctx_map_init(&w->domains, w->arena);
    epctx_map_init(&w->functions, w->arena);
    epctx_map_init(&w->end_names, w->arena);
    epctx_map_init(&w->fed, w->arena);
}

epctx_status epctx_merge(const epctx_part *parts, size_t count, const epctx_merge_opts *opts,
                         epctx_combined *out, epctx_error *error) {
    merge w;
    epctx_status status;
    size_t mark;
    epctx_error_clear(error);
    if (out != NULL) memset(out, 0, sizeof *out);
    if (parts == NULL || count == 0 || count >= UINT32_MAX)
        return epctx_fail(error, EPCTX_ERR_ARG, "expected at least one model");
    merge_begin(&w, parts, count, opts, error);
    mark = epctx_edit_mark(w.model);
    status = merge_run(&w);
    if (status != EPCTX_OK) {
        epctx_edit_undo(w.model, mark);
        return status;
    }
    ops_report_end(&w.report, out);
    return EPCTX_OK;
}
