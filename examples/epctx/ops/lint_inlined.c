/* lint_inlined.c - names that ORT itself gives when it puts the nodes of a function in the place of
 * a call (function_utils.cc): _inlfunc_<function>_<name>, and for each further call _token_<number>
 * behind the function. They clash with those of a model that ORT has once written with functions
 * inlined, and that got functions again. */
#include "lint_internal.h"

#define INLINED "_inlfunc_"

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
static epctx_status inlined_names(linter *l, epctx_map *values, epctx_map *nodes) {
    const epctx_graph_view graph = epctx_model_graph(l->model);
    ops_definitions defined = ops_definitions_of(graph.view);
    epctx_cursor it = epctx_view_graph_nodes(graph);
    epctx_node_view node;
    epctx_str name;
    while (ops_next_definition(&defined, &name))
        if (epctx_str_starts(name, INLINED)) OPS_TRY(lint_set(l, values, name, 1));
    while (epctx_next_node(&it, &node))
        if (epctx_str_starts(node.name, INLINED) && !epctx_str_is(node.op_type, "Constant"))
            OPS_TRY(lint_set(l, nodes, node.name, 1));
    return EPCTX_OK;
}

static void inlined_look(linter *l, const epctx_map *taken, const char *what,
                         const epctx_function_view *function, epctx_str name) {
    char full[1200]; /* longer names are left out */
    epctx_text text = epctx_text_of(full, sizeof full);
    epctx_text_put_format(&text, INLINED "%S_%S", &function->name, &name);
    if (name.size == 0 || text.cut || !ops_has(taken, epctx_text_str(&text))) return;
    name = epctx_text_str(&text);
    lint_say(l, EPCTX_RULE_INLINED_NAME, name, NULL,
             "a %s of the graph has the name '%S', which ORT gives a %s of function '%S' when it "
             "inlines it",
             what, &name, what, &function->name);
}

static epctx_status inlined_function(linter *l, const epctx_function_view *function,
                                     const epctx_map *values, const epctx_map *nodes) {
    epctx_cursor it = epctx_view_fields(function->view, EPCTX_FIELD_FUNCTION_OUTPUT);
    epctx_node_view node;
    epctx_map outputs; /* these get the names that the call has for them */
    epctx_str name;
    epctx_map_init(&outputs, &l->arena);
    while (epctx_next_str(&it, &name)) OPS_TRY(lint_set(l, &outputs, name, 1));
    it = epctx_view_fields(function->view, EPCTX_FIELD_FUNCTION_NODE);
    while (epctx_next_node(&it, &node)) {
        epctx_cursor made = epctx_view_node_outputs(&node);
        if (!epctx_str_is(node.op_type, "Constant"))
            inlined_look(l, nodes, "node", function, node.name);
        while (epctx_next_str(&made, &name))
            if (!ops_has(&outputs, name)) inlined_look(l, values, "value", function, name);
    }
    return EPCTX_OK;
}

epctx_status lint_inlined(linter *l) {
    const size_t count = l->callees.count;
    epctx_map values, nodes, namesakes; /* functions of one name */
    uint8_t *direct, *other;
    size_t i;
    if (count == 0) return EPCTX_OK;
    epctx_map_init(&values, &l->arena);
    epctx_map_init(&nodes, &l->arena);
    epctx_map_init(&namesakes, &l->arena);
    OPS_TRY(inlined_names(l, &values, &nodes));
    if (values.count == 0 && nodes.count == 0) return EPCTX_OK;
    OPS_TRY(ops_array(&l->arena, count, 1, &direct, l->error));
    OPS_TRY(ops_array(&l->arena, count, 1, &other, l->error));
    OPS_TRY(inlined_calls(l, direct, other));
    for (i = 0; i < count; i++) {
        const epctx_str name = lint_callee_at(l, i)->view.name;
        OPS_TRY(lint_set(l, &namesakes, name, ops_has(&namesakes, name) ? 2 : 1));
    }
    for (i = 0; i < count; i++) {
        const epctx_function_view *function = &lint_callee_at(l, i)->view;
        if (direct[i] && !other[i] && epctx_lint_opset(function->domain) == 0 &&
            epctx_map_get(&namesakes, function->name) == 1)
            OPS_TRY(inlined_function(l, function, &values, &nodes));
    }
    return EPCTX_OK;
}
