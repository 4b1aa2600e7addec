/* place.c - which node has an embedded context. */
#include "place.h"

/* -- the groups -- */

static epctx_status find_group(epctx_list *groups, epctx_str source, epctx_arena *arena,
                               place_group **out, bool *is_new, epctx_error *error) {
    size_t i;
    *is_new = false;
    for (i = 0; i < groups->count; i++) {
        *out = (place_group *)groups->items + i;
        if (epctx_str_eq((*out)->source, source)) return EPCTX_OK;
    }
    *is_new = true;
    OPS_TRY(ops_add(groups, arena, sizeof **out, out, error));
    memset(*out, 0, sizeof **out);
    (*out)->source = source;
    return EPCTX_OK;
}

static epctx_status note_node(epctx_list *groups, const epctx_node_view *view, size_t number,
                              epctx_arena *arena, epctx_error *error) {
    place_group *group;
    epctx_epnode ep;
    bool is_new;
    if (!epctx_view_is_epnode(view) ||
        (epctx_profile_of_node(NULL, view)->traits & EPCTX_TRAIT_ONE_CONTEXT) == 0 ||
        epctx_view_read_epnode(view, &ep, NULL) != EPCTX_OK || ep.embed_mode == 0)
        return EPCTX_OK;
    OPS_TRY(find_group(groups, ep.source, arena, &group, &is_new, error));
    if (is_new) {
        group->first = *view;
        group->first_number = number;
    }
    if (ep.ep_cache_context.size == 0 || group->held) return EPCTX_OK;
    group->holder = *view;
    group->holder_number = number;
    group->context = ep.ep_cache_context;
    group->held = true;
    return EPCTX_OK;
}

/* The nodes of the main graph, and their numbers in ORT's order. */
static epctx_status order_nodes(const epctx_model *model, epctx_arena *arena,
                                epctx_node_view **nodes, const uint32_t **order, size_t *count,
                                epctx_error *error) {
    const epctx_graph_view graph = epctx_model_graph(model);
    epctx_cursor it = epctx_view_graph_nodes(graph);
    size_t i;
    OPS_TRY(ops_array(arena, epctx_cursor_count(it) + 1, sizeof **nodes, nodes, error));
    for (i = 0; epctx_next_node(&it, &(*nodes)[i]); i++) continue;
    return epctx_view_graph_order(graph, arena, order, count, error);
}

epctx_status place_find(const epctx_model *model, epctx_arena *arena, epctx_list *out,
                        epctx_error *error) {
    epctx_node_view *nodes;
    const uint32_t *order;
    size_t count, i;
    memset(out, 0, sizeof *out);
    OPS_TRY(order_nodes(model, arena, &nodes, &order, &count, error));
    for (i = 0; i < count; i++) OPS_TRY(note_node(out, &nodes[order[i]], order[i], arena, error));
    return EPCTX_OK;
}

/* -- what comes behind -- */

static epctx_status put_all(epctx_map *names, epctx_cursor it, epctx_error *error) {
    epctx_str name;
    while (epctx_next_str(&it, &name)) OPS_TRY(ops_put(names, name, 1, error));
    return EPCTX_OK;
}

static bool has_any(const epctx_map *names, epctx_cursor it) {
    epctx_str name;
    while (epctx_next_str(&it, &name))
        if (ops_has(names, name)) return true;
    return false;
}

epctx_status place_is_late(const epctx_model *model, const place_group *group, epctx_arena *arena,
                           bool *late, epctx_error *error) {
    epctx_node_view *nodes;
    const uint32_t *order;
    epctx_map written; /* by the first node, and by what reads that */
    size_t count, i = 0;
    *late = false;
    epctx_map_init(&written, arena);
    OPS_TRY(put_all(&written, epctx_view_node_outputs(&group->first), error));
    OPS_TRY(order_nodes(model, arena, &nodes, &order, &count, error));
    while (i < count && order[i] != group->first_number) i++;
    for (; i < count; i++) {
        const epctx_node_view *node = &nodes[order[i]];
        if (!has_any(&written, epctx_view_node_inputs(node))) continue;
        if (order[i] == group->holder_number) {
            *late = true;
            return EPCTX_OK;
        }
        OPS_TRY(put_all(&written, epctx_view_node_outputs(node), error));
    }
    return EPCTX_OK;
}

/* -- into its place -- */

static epctx_status hand_over(epctx_model *model, const place_group *group, ops_report *report,
                              epctx_error *error) {
    const epctx_step step = ops_step(0, "change", "node", group->first.name);
    const epctx_str none = epctx_str_of("");
    const epctx_view holder = group->holder.view, first = group->first.view;
    epctx_attr_view attr;
    if (!group->held || group->first_number == group->holder_number) return EPCTX_OK;
    if (epctx_view_node_find_attr(&group->first, "ep_cache_context", &attr))
        OPS_TRY(epctx_edit_set_attr_str(model, holder, "ep_cache_context", none, error));
    else
        OPS_TRY(epctx_edit_remove_attr(model, holder, epctx_str_of("ep_cache_context"), error));
    OPS_TRY(epctx_edit_set_attr_int(model, holder, "main_context", 0, error));
    OPS_TRY(epctx_edit_set_attr_str(model, first, "ep_cache_context", group->context, error));
    OPS_TRY(epctx_edit_set_attr_int(model, first, "main_context", 1, error));
    return ops_say(report, &step, error,
                   "node '%S' has the context, not '%S': ONNX Runtime gives it to the EP first",
                   &group->first.name, &group->holder.name);
}

epctx_status place_contexts(epctx_model *model, ops_report *report, epctx_error *error) {
    epctx_list groups;
    size_t i;
    OPS_TRY(place_find(model, &model->arena, &groups, error));
    for (i = 0; i < groups.count; i++)
        OPS_TRY(hand_over(model, (const place_group *)groups.items + i, report, error));
    return EPCTX_OK;
}
