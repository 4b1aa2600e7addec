/* shadows.c - see shadows.h. */
#include "shadows.h"

#include "rename.h"

/* A graph around what the walk gives, at this level of it. */
typedef struct shadows_scope {
    epctx_view graph;
    uint32_t level;
} shadows_scope;

typedef struct shadow {
    epctx_view body;
    size_t number; /* of the body */
    epctx_str name;
} shadow;

typedef struct shadows {
    epctx_model *model;
    epctx_arena *arena;
    epctx_error *error;
    epctx_list scopes; /* of shadows_scope, outermost first */
    epctx_map defined; /* name -> how many of these define it */
    epctx_map all;     /* as for ops_free_name: names of all graphs */
    size_t bodies;     /* that were looked at */
    epctx_list found;  /* of shadow; those of one body follow each other */
} shadows;

/* `by` 1: the graph is around what follows; UINT32_MAX, minus one: no longer. */
static epctx_status shadows_count(shadows *s, epctx_view graph, uint32_t by) {
    ops_definitions defined = ops_definitions_of(graph);
    epctx_str name;
    while (ops_next_definition(&defined, &name)) {
        const uint32_t before = epctx_map_get(&s->defined, name);
        if (!ops_has(&s->all, name)) OPS_TRY(ops_put(&s->all, name, 1, s->error));
        OPS_TRY(ops_put(&s->defined, name, (before == EPCTX_MAP_NONE ? 0 : before) + by, s->error));
    }
    return EPCTX_OK;
}

/* Leaves the graphs that are not around a message of this level. */
static epctx_status shadows_leave(shadows *s, uint32_t level) {
    const shadows_scope *scopes = (const shadows_scope *)s->scopes.items;
    while (s->scopes.count > 0 && scopes[s->scopes.count - 1].level >= level)
        OPS_TRY(shadows_count(s, scopes[--s->scopes.count].graph, UINT32_MAX));
    return EPCTX_OK;
}

static epctx_status shadows_enter(shadows *s, const epctx_walk *walk) {
    shadows_scope *scope;
    OPS_TRY(ops_add(&s->scopes, s->arena, sizeof *scope, &scope, s->error));
    scope->graph = walk->view;
    scope->level = walk->level;
    return shadows_count(s, walk->view, 1);
}

static bool shadows_is(const shadows *s, const epctx_map *fixed, epctx_str name) {
    const uint32_t count = epctx_map_get(&s->defined, name);
    return count != EPCTX_MAP_NONE && count > 0 && !ops_has(fixed, name);
}

/* Of the graph that the walk gives, before it is entered. */
static epctx_status shadows_find(shadows *s, const epctx_walk *walk) {
    epctx_graph_view graph = epctx_view_as_graph(walk->view);
    epctx_cursor outputs = epctx_view_graph_outputs(graph), nodes = epctx_view_graph_nodes(graph);
    epctx_value_view value;
    epctx_node_view node;
    epctx_map fixed;
    s->bodies++;
    epctx_map_init(&fixed, s->arena);
    while (ops_goes_by_names(walk) && epctx_next_value(&outputs, &value))
        OPS_TRY(ops_put(&fixed, value.name, 1, s->error));
    while (epctx_next_node(&nodes, &node)) {
        epctx_cursor it = epctx_view_node_outputs(&node);
        epctx_str name;
        while (epctx_next_str(&it, &name)) {
            shadow *found;
            if (!shadows_is(s, &fixed, name)) continue;
            OPS_TRY(ops_add(&s->found, s->arena, sizeof *found, &found, s->error));
            found->body = walk->view;
            found->number = s->bodies;
            found->name = name;
        }
    }
    return EPCTX_OK;
}

static epctx_status shadows_find_all(shadows *s) {
    epctx_walk walk;
    epctx_walk_begin(&walk, s->model);
    while (epctx_walk_step(&walk)) {
        OPS_TRY(shadows_leave(s, walk.level));
        if (walk.kind != EPCTX_KIND_GRAPH) continue;
        if (walk.depth > 0) OPS_TRY(shadows_find(s, &walk));
        OPS_TRY(shadows_enter(s, &walk));
    }
    return EPCTX_OK;
}

/* Those of one body. */
static epctx_status shadows_rename_body(shadows *s, const shadow *first, size_t count,
                                        ops_report *report) {
    epctx_str *from, *to;
    size_t i;
    OPS_TRY(ops_array(s->arena, count, sizeof *from, &from, s->error));
    OPS_TRY(ops_array(s->arena, count, sizeof *to, &to, s->error));
    for (i = 0; i < count; i++) {
        from[i] = first[i].name;
        OPS_TRY(ops_free_name(s->arena, NULL, 0, &s->all, from[i], &to[i], s->error));
        OPS_TRY(ops_say_now(report, 0, "value", from[i], " of a body", to[i], s->error));
    }
    return epctx_rename_values(s->model, first->body, from, to, count, NULL, NULL, s->error);
}

epctx_status shadows_rename(epctx_model *model, ops_report *report, epctx_error *error) {
    const shadow *found;
    size_t i, count;
    shadows s;
    memset(&s, 0, sizeof s);
    s.model = model;
    s.arena = report->arena;
    s.error = error;
    epctx_map_init(&s.defined, s.arena);
    epctx_map_init(&s.all, s.arena);
    OPS_TRY(shadows_find_all(&s));
    found = (const shadow *)s.found.items;
    for (i = 0; i < s.found.count; i += count) {
        count = 1;
        while (i + count < s.found.count && found[i + count].number == found[i].number) count++;
        OPS_TRY(shadows_rename_body(&s, found + i, count, report));
    }
    return EPCTX_OK;
}
