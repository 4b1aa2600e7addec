/* lint_function.c - the list of functions and their calls; the order of nodes. */
#include "lint_internal.h"

/* -- order -- */

epctx_status lint_add_edge(linter *l, epctx_list *edges, uint32_t from, uint32_t to) {
    lint_edge *edge;
    OPS_TRY(lint_append(l, edges, sizeof *edge, &edge));
    edge->from = from;
    edge->to = to;
    return EPCTX_OK;
}

/* Edges sorted by one end, stable: `start[n]` is where those of node n begin. */
static void lint_sort_edges(const lint_edge *in, size_t edges, bool by_from, uint32_t nodes,
                            uint32_t *start, lint_edge *out) {
    size_t i;
    memset(start, 0, ((size_t)nodes + 1) * sizeof *start);
    for (i = 0; i < edges; i++) start[(by_from ? in[i].from : in[i].to) + 1]++;
    for (i = 0; i < nodes; i++) start[i + 1] += start[i];
    for (i = 0; i < edges; i++) out[start[by_from ? in[i].from : in[i].to]++] = in[i];
    for (i = nodes; i > 0; i--) start[i] = start[i - 1];
    start[0] = 0;
}

/* Orders nodes as ORT does (graph.cc): first those that read from no node, then depth first from
 * those that nothing reads from, the last of them first. `order` gets the position of each; in a
 * circle, UINT32_MAX for its members and what hangs on them. */
epctx_status lint_ort_order(linter *l, const epctx_list *edges, uint32_t nodes, uint32_t *order,
                            bool *circle) {
    const uint8_t seen = 1, done = 2;
    lint_edge *sorted;
    uint32_t *reads;
    uint32_t *stack;
    uint8_t *state;
    uint32_t *read;
    size_t top = 0;
    uint32_t placed = 0;
    uint32_t n;
    *circle = true;
    OPS_TRY(ops_array(&l->arena, edges->count + 1, 2 * sizeof *sorted, &sorted, l->error));
    OPS_TRY(ops_array(&l->arena, (size_t)nodes + 1, 2 * sizeof *reads, &reads, l->error));
    OPS_TRY(ops_array(&l->arena, (size_t)nodes * 2 + edges->count + 1, sizeof *stack, &stack,
                      l->error));
    OPS_TRY(ops_array(&l->arena, (size_t)nodes + 1, 1, &state, l->error));
    read = reads + nodes + 1;
    lint_sort_edges((const lint_edge *)edges->items, edges->count, true, nodes, read,
                    sorted + edges->count);
    lint_sort_edges(sorted + edges->count, edges->count, false, nodes, reads, sorted);
    memset(state, 0, (size_t)nodes + 1);
    for (n = 0; n < nodes; n++) {
        order[n] = UINT32_MAX;
        if (reads[n + 1] == reads[n]) {
            order[n] = placed++;
            state[n] = done;
        }
        if (read[n + 1] == read[n]) stack[top++] = n;
    }
    while (top > 0) {
        uint32_t i;
        n = stack[top - 1];
        if (state[n] != 0) {
            if (state[n] == seen) {
                order[n] = placed++;
                state[n] = done;
            }
            top--;
            continue;
        }
        state[n] = seen;
        for (i = reads[n]; i < reads[n + 1]; i++) {
            if (state[sorted[i].from] == seen) return EPCTX_OK;
            if (state[sorted[i].from] == 0) stack[top++] = sorted[i].from;
        }
    }
    *circle = placed != nodes;
    return EPCTX_OK;
}

/* -- who calls whom -- */

lint_callee *lint_callee_at(const linter *l, size_t i) {
    return (lint_callee *)l->callees.items + i;
}

/* By what calls find functions, in `out`; empty when it is too long. */
static epctx_str lint_call_key(char out[LINT_MESSAGE], epctx_str domain, epctx_str name,
                               epctx_str overload) {
    epctx_text text = epctx_text_of(out, LINT_MESSAGE);
    epctx_text_put(&text, domain);
    epctx_text_put_char(&text, '\n');
    epctx_text_put(&text, name);
    epctx_text_put_char(&text, '\n');
    epctx_text_put(&text, overload);
    return text.cut ? epctx_str_of("") : epctx_text_str(&text);
}

/* The function that a node calls: its position, or EPCTX_MAP_NONE. */
uint32_t lint_callee_of(const linter *l, const epctx_node_view *node) {
    char out[LINT_MESSAGE];
    return l->callees.count == 0
               ? EPCTX_MAP_NONE
               : epctx_map_get(&l->functions,
                               lint_call_key(out, node->domain, node->op_type, node->overload));
}

/* The functions that nodes call, as edges; bodies belong to their node. */
static epctx_status lint_calls(linter *l, epctx_cursor nodes, uint32_t caller, epctx_list *calls) {
    epctx_node_view node;
    while (epctx_next_node(&nodes, &node)) {
        uint32_t callee = lint_callee_of(l, &node);
        epctx_cursor attrs = epctx_node_attrs(&node);
        epctx_view attr;
        if (callee != EPCTX_MAP_NONE) OPS_TRY(lint_add_edge(l, calls, callee, caller));
        while (epctx_next_view(&attrs, &attr)) {
            epctx_cursor parts = epctx_view_fields(attr, 0);
            epctx_field field;
            while (epctx_next_field(&parts, &field)) {
                if (lint_is_body(&field)) {
                    OPS_TRY(lint_calls(l, epctx_view_fields(field.body, EPCTX_FIELD_GRAPH_NODE),
                                       caller, calls));
                }
            }
        }
    }
    return EPCTX_OK;
}

/* Marks what node `main` reaches. */
static epctx_status lint_mark_called(linter *l, const epctx_list *calls, uint32_t main) {
    uint32_t *start;
    uint32_t *stack;
    lint_edge *sorted;
    size_t top = 0;
    uint32_t i;
    OPS_TRY(ops_array(&l->arena, (size_t)main + 2, sizeof *start, &start, l->error));
    OPS_TRY(ops_array(&l->arena, (size_t)main + 2, sizeof *stack, &stack, l->error));
    OPS_TRY(ops_array(&l->arena, calls->count + 1, sizeof *sorted, &sorted, l->error));
    lint_sort_edges((const lint_edge *)calls->items, calls->count, false, main + 1, start, sorted);
    stack[top++] = main;
    while (top > 0) {
        uint32_t n = stack[--top];
        for (i = start[n]; i < start[n + 1]; i++) {
            lint_callee *callee = lint_callee_at(l, sorted[i].from);
            if (!callee->called) {
                callee->called = true;
                stack[top++] = sorted[i].from;
            }
        }
    }
    return EPCTX_OK;
}

/* ORT takes the last function of a name. */
static epctx_status lint_add_callee(linter *l, const epctx_function_view *view) {
    char out[LINT_MESSAGE];
    epctx_str key = lint_call_key(out, view->domain, view->name, view->overload);
    uint32_t before;
    lint_callee *callee;
    OPS_TRY(lint_append(l, &l->callees, sizeof *callee, &callee));
    callee->view = *view;
    callee->called = key.size == 0; /* too long to look for */
    if (key.size == 0) return EPCTX_OK;
    before = epctx_map_get(&l->functions, key);
    if (before != EPCTX_MAP_NONE) lint_callee_at(l, before)->replaced = true;
    key.data = epctx_arena_copy(&l->arena, key);
    return key.data != NULL ? lint_set(l, &l->functions, key, (uint32_t)l->callees.count - 1)
                            : ops_nomem(&l->arena, l->error);
}

/* Lists the functions, and which of them the main graph calls, itself or through others. */
epctx_status lint_callees(linter *l) {
    epctx_cursor it = epctx_model_functions(l->model);
    epctx_function_view function;
    epctx_list calls;
    uint32_t *order;
    uint32_t main;
    uint32_t i;
    bool circle;
    while (epctx_next_function(&it, &function)) OPS_TRY(lint_add_callee(l, &function));
    if (l->callees.count == 0) return EPCTX_OK;
    memset(&calls, 0, sizeof calls);
    main = (uint32_t)l->callees.count;
    OPS_TRY(lint_calls(l, epctx_graph_nodes(epctx_model_graph(l->model)), main, &calls));
    for (i = 0; i < main; i++)
        OPS_TRY(lint_calls(l, epctx_function_nodes(&lint_callee_at(l, i)->view), i, &calls));
    OPS_TRY(ops_array(&l->arena, l->callees.count + 1, sizeof *order, &order, l->error));
    OPS_TRY(lint_ort_order(l, &calls, main + 1, order, &circle));
    if (circle) {
        lint_say(l, EPCTX_RULE_RECURSION, epctx_str_of(""), NULL,
                 "a function calls itself through others");
    }
    return lint_mark_called(l, &calls, main);
}
