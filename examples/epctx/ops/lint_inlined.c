/* lint_inlined.c - names that ORT itself gives when it inlines a function; of each further call,
 * with _token_<number> behind the function. They clash with those of a model that ORT has once
 * written with functions inlined, and that got functions again. */
#include "inlined.h"
#include "lint_internal.h"

/* What the main graph calls itself, and what bodies call: of that, which call comes first, and so
 * gets the names without a token, is not known. */
static epctx_status inlined_calls(linter *l, uint8_t *direct, uint8_t *other) {
    epctx_walk walk;
    epctx_node_view node;
    epctx_walk_begin(&walk, l->model);
    while (epctx_walk_next(&walk, &node)) {
        const uint32_t at = lint_callee_of(l, &node);
        if (at == EPCTX_MAP_NONE || walk.in_function || walk.in_training) continue;
        *(walk.depth == 0 ? &direct[at] : &other[at]) = 1;
    }
    return EPCTX_OK;
}

/* Names of values, or of nodes, of the main graph that may be such. */
static epctx_status inlined_taken(linter *l, epctx_map *values, epctx_map *nodes) {
    const epctx_graph_view graph = epctx_model_graph(l->model);
    ops_definitions defined = ops_definitions_of(graph.view);
    epctx_cursor it = epctx_view_graph_nodes(graph);
    epctx_node_view node;
    epctx_str name;
    while (ops_next_definition(&defined, &name))
        if (epctx_str_starts(name, INLINED_PREFIX)) OPS_TRY(lint_set(l, values, name, 1));
    while (epctx_next_node(&it, &node))
        if (epctx_str_starts(node.name, INLINED_PREFIX) && !epctx_str_is(node.op_type, "Constant"))
            OPS_TRY(lint_set(l, nodes, node.name, 1));
    return EPCTX_OK;
}

/* Names of the main graph that a function is asked about. */
typedef struct inlined_search {
    linter *l;
    epctx_map values, nodes;
    epctx_str function;
} inlined_search;

static epctx_status inlined_look(void *user, bool of_node, epctx_str name) {
    inlined_search *s = (inlined_search *)user;
    const char *what = of_node ? "node" : "value";
    if (!ops_has(of_node ? &s->nodes : &s->values, name)) return EPCTX_OK;
    lint_say(s->l, EPCTX_RULE_INLINED_NAME, name, NULL,
             "a %s of the graph has the name '%S', which ORT gives a %s of function '%S' when it "
             "inlines it",
             what, &name, what, &s->function);
    return EPCTX_OK;
}

epctx_status lint_inlined(linter *l) {
    const size_t count = l->callees.count;
    inlined_search search;
    epctx_map namesakes; /* functions of one name */
    uint8_t *direct, *other;
    size_t i;
    if (count == 0) return EPCTX_OK;
    search.l = l;
    epctx_map_init(&search.values, &l->arena);
    epctx_map_init(&search.nodes, &l->arena);
    epctx_map_init(&namesakes, &l->arena);
    OPS_TRY(inlined_taken(l, &search.values, &search.nodes));
    if (search.values.count == 0 && search.nodes.count == 0) return EPCTX_OK;
    OPS_TRY(ops_array(&l->arena, count, 1, &direct, l->error));
    OPS_TRY(ops_array(&l->arena, count, 1, &other, l->error));
    OPS_TRY(inlined_calls(l, direct, other));
    for (i = 0; i < count; i++) {
        const epctx_str name = lint_callee_at(l, i)->view.name;
        OPS_TRY(lint_set(l, &namesakes, name, ops_has(&namesakes, name) ? 2 : 1));
    }
    for (i = 0; i < count; i++) {
        const epctx_function_view *function = &lint_callee_at(l, i)->view;
        search.function = function->name;
        if (direct[i] && !other[i] && epctx_lint_opset(function->domain) == 0 &&
            epctx_map_get(&namesakes, function->name) == 1)
            OPS_TRY(inlined_names(function, &l->arena, inlined_look, &search, l->error));
    }
    return EPCTX_OK;
}
