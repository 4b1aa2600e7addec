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

/* The function that a node calls: its position, or EPCTX_MAP_NONE. */
uint32_t lint_callee_of(const linter *l, const epctx_node_view *node) {
    epctx_str id = epctx_str_of(NULL);
    if (l->callees.count > 0)
        id = ops_function_id(l->identifier, l->identifier_size, node->domain, node->op_type,
                             node->overload);
    return id.data == NULL ? EPCTX_MAP_NONE : epctx_map_get(&l->functions, id);
}

static uint64_t lint_sum(uint64_t a, uint64_t b) {
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t lint_product(uint64_t a, uint64_t b) {
    return b > 0 && a > UINT64_MAX / b ? UINT64_MAX : a * b;
}

/* The bytes of a tensor's fields. */
static uint64_t lint_tensor_bytes(epctx_view tensor) {
    epctx_cursor it = epctx_view_fields(tensor, 0);
    epctx_field field;
    uint64_t bytes = 0;
    while (epctx_next_field(&it, &field))
        if (field.wire == EPCTX_WIRE_LEN) bytes += field.body.size;
    return bytes;
}

/* The functions that nodes call, as edges; bodies belong to their node. `caller` is a function
 * whose nodes and constants are counted, or the main graph. */
static epctx_status lint_calls(linter *l, epctx_view graph, uint32_t list, uint32_t caller,
                               epctx_list *calls) {
    lint_callee none;
    lint_callee *owner = caller < l->callees.count ? lint_callee_at(l, caller) : &none;
    epctx_cursor nodes = epctx_view_fields(graph, list);
    epctx_cursor tensors = epctx_view_fields(
        graph, list == EPCTX_FIELD_GRAPH_NODE ? EPCTX_FIELD_GRAPH_INITIALIZER : UINT32_MAX);
    epctx_node_view node;
    epctx_view view;
    memset(&none, 0, sizeof none);
    while (epctx_next_view(&tensors, &view)) owner->bytes += lint_tensor_bytes(view);
    while (epctx_next_node(&nodes, &node)) {
        uint32_t callee = lint_callee_of(l, &node);
        epctx_cursor attrs = epctx_view_node_attrs(&node);
        owner->nodes++;
        if (callee != EPCTX_MAP_NONE) OPS_TRY(lint_add_edge(l, calls, callee, caller));
        while (epctx_next_view(&attrs, &view)) {
            epctx_cursor parts = epctx_view_fields(view, 0);
            epctx_field field;
            while (epctx_next_field(&parts, &field))
                if (lint_is_body(&field))
                    OPS_TRY(lint_calls(l, field.body, EPCTX_FIELD_GRAPH_NODE, caller, calls));
                else if (field.wire == EPCTX_WIRE_LEN && (field.number == EPCTX_FIELD_ATTR_T ||
                                                          field.number == EPCTX_FIELD_ATTR_TENSORS))
                    owner->bytes += lint_tensor_bytes(field.body);
        }
    }
    return EPCTX_OK;
}

/* The calls of node n, `calls[start[n]]` to `calls[start[n + 1] - 1]`. */
typedef struct lint_call_graph {
    uint32_t *start;
    lint_edge *calls;
    uint32_t main; /* the node that is the main graph, the last one */
} lint_call_graph;

/* Marks what the main graph reaches. */
static epctx_status lint_mark_called(linter *l, const lint_call_graph *graph) {
    uint32_t *stack;
    size_t top = 0;
    uint32_t i;
    OPS_TRY(ops_array(&l->arena, (size_t)graph->main + 2, sizeof *stack, &stack, l->error));
    stack[top++] = graph->main;
    while (top > 0) {
        uint32_t n = stack[--top];
        for (i = graph->start[n]; i < graph->start[n + 1]; i++) {
            lint_callee *callee = lint_callee_at(l, graph->calls[i].from);
            if (!callee->called) {
                callee->called = true;
                stack[top++] = graph->calls[i].from;
            }
        }
    }
    return EPCTX_OK;
}

/* -- what ORT makes of the calls -- */

/* One of ORT's two limits, and what the model needs of it. */
typedef struct lint_limit {
    const char *format; /* needed, most, name of the function, times it is expanded */
    uint64_t most;
    uint64_t needed;
    uint64_t peak; /* of the function that needs most */
    const lint_callee *callee;
} lint_limit;

static void lint_need(lint_limit *limit, const lint_callee *callee, uint64_t each) {
    uint64_t all = lint_product(callee->times, each);
    limit->needed = lint_sum(limit->needed, all);
    if (all > limit->peak) {
        limit->peak = all;
        limit->callee = callee;
    }
}

/* ORT replaces each call of a function by its nodes, again and again, and counts nodes and bytes of
 * what it puts in. Two things are less here than there: a constant may come by an attribute of the
 * call, and names get longer. Functions of ORT's own domains may be operators that it has. */
static void lint_limits(linter *l) {
    lint_limit limits[2] = {
        {"inlining functions makes at least %u nodes, ONNX Runtime %s allows %u "
         "(session.function_expansion_node_limit): '%S' is expanded %u times",
         1000000, 0, 0, NULL},
        {"inlining functions copies at least %u bytes of constants, ONNX Runtime %s allows %u "
         "(session.function_expansion_byte_limit): '%S' is expanded %u times",
         UINT64_C(1) << 30, 0, 0, NULL}};
    size_t i;
    for (i = 0; i < l->callees.count; i++) {
        const lint_callee *callee = lint_callee_at(l, i);
        lint_need(&limits[0], callee, callee->nodes);
        lint_need(&limits[1], callee, callee->bytes);
    }
    for (i = 0; i < 2; i++) {
        const lint_limit *limit = &limits[i];
        if (limit->needed > limit->most) {
            lint_say(l, EPCTX_RULE_EXPANSION, limit->callee->view.name, NULL, limit->format,
                     limit->needed, l->ort, limit->most, &limit->callee->view.name,
                     limit->callee->times);
        }
    }
}

/* Counts how often each function is expanded; `order` has those that are called before the
 * callers. */
static epctx_status lint_expansion(linter *l, const lint_call_graph *graph, const uint32_t *order) {
    uint32_t *at;
    uint32_t i;
    uint32_t k;
    OPS_TRY(ops_array(&l->arena, (size_t)graph->main + 1, sizeof *at, &at, l->error));
    for (i = 0; i <= graph->main; i++) at[order[i]] = i;
    for (i = graph->main + 1; i-- > 0;) {
        uint64_t times = at[i] == graph->main ? 1 : lint_callee_at(l, at[i])->times;
        for (k = graph->start[at[i]]; k < graph->start[at[i] + 1]; k++) {
            lint_callee *callee = lint_callee_at(l, graph->calls[k].from);
            if (epctx_lint_opset(callee->view.domain) == 0)
                callee->times = lint_sum(callee->times, times);
        }
    }
    lint_limits(l);
    return EPCTX_OK;
}

/* -- the list of functions -- */

/* Of two functions of one identifier, an ORT that does not refuse them takes the last. */
static epctx_status lint_add_callee(linter *l, const epctx_function_view *view) {
    epctx_str id = ops_function_id(l->identifier, l->identifier_size, view->domain, view->name,
                                   view->overload);
    uint32_t before = epctx_map_get(&l->functions, id);
    lint_callee *callee;
    OPS_TRY(lint_append(l, &l->callees, sizeof *callee, &callee));
    callee->view = *view;
    if (before != EPCTX_MAP_NONE) {
        lint_callee_at(l, before)->replaced = true;
        lint_say(l, EPCTX_RULE_DOUBLED_FUNCTION, view->name, NULL,
                 "there are two functions '%S' (domain:name:overload)", &id);
    }
    id.data = epctx_arena_copy(&l->arena, id);
    return id.data != NULL ? lint_set(l, &l->functions, id, (uint32_t)l->callees.count - 1)
                           : ops_nomem(&l->arena, l->error);
}

static epctx_status lint_list_functions(linter *l) {
    epctx_cursor it = epctx_model_functions(l->model);
    epctx_function_view function;
    while (epctx_next_function(&it, &function)) {
        size_t size = ops_function_id_size(function.domain, function.name, function.overload);
        if (size > l->identifier_size) l->identifier_size = size;
    }
    OPS_TRY(ops_array(&l->arena, l->identifier_size, 1, &l->identifier, l->error));
    it = epctx_model_functions(l->model);
    while (epctx_next_function(&it, &function)) OPS_TRY(lint_add_callee(l, &function));
    return EPCTX_OK;
}

/* Lists the functions, which of them the main graph calls, itself or through others, and how often
 * ORT expands them. */
epctx_status lint_callees(linter *l) {
    lint_call_graph graph;
    epctx_list calls;
    uint32_t *order;
    uint32_t i;
    bool circle;
    if (epctx_cursor_count(epctx_model_functions(l->model)) == 0) return EPCTX_OK;
    OPS_TRY(lint_list_functions(l));
    memset(&calls, 0, sizeof calls);
    graph.main = (uint32_t)l->callees.count;
    OPS_TRY(lint_calls(l, epctx_model_graph(l->model).view, EPCTX_FIELD_GRAPH_NODE, graph.main,
                       &calls));
    for (i = 0; i < graph.main; i++)
        OPS_TRY(
            lint_calls(l, lint_callee_at(l, i)->view.view, EPCTX_FIELD_FUNCTION_NODE, i, &calls));
    OPS_TRY(ops_array(&l->arena, (size_t)graph.main + 2, sizeof *order, &order, l->error));
    OPS_TRY(lint_ort_order(l, &calls, graph.main + 1, order, &circle));
    OPS_TRY(
        ops_array(&l->arena, (size_t)graph.main + 2, sizeof *graph.start, &graph.start, l->error));
    OPS_TRY(ops_array(&l->arena, calls.count + 1, sizeof *graph.calls, &graph.calls, l->error));
    lint_sort_edges((const lint_edge *)calls.items, calls.count, false, graph.main + 1, graph.start,
                    graph.calls);
    OPS_TRY(lint_mark_called(l, &graph));
    if (!circle) return lint_expansion(l, &graph, order);
    lint_say(l, EPCTX_RULE_RECURSION, epctx_str_of(""), NULL,
             "a function calls itself through others");
    return EPCTX_OK;
}
