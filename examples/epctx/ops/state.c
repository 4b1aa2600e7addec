#include "state.h"

#include "ops.h"

const char *epctx_file_use_name(epctx_file_use use) {
    static const char *const names[] = {"context binary", "initializers", "source model",
                                        "companion"}; /* in the order of epctx_file_use */
    return (unsigned)use < sizeof names / sizeof names[0] ? names[use] : "unknown";
}

/* "source\0version\0architecture\0" */
static epctx_status maker_key(const epctx_epnode *node, epctx_arena *arena, epctx_str *out,
                              epctx_error *error) {
    const epctx_str parts[3] = {node->source, node->ep_sdk_version, node->hardware_architecture};
    size_t i;
    char *text;
    out->size = 0;
    for (i = 0; i < 3; i++) out->size += parts[i].size + 1;
    OPS_TRY(ops_array(arena, out->size, 1, &text, error));
    out->data = text;
    for (i = 0; i < 3; i++) {
        if (parts[i].size > 0) memcpy(text, parts[i].data, parts[i].size);
        text += parts[i].size + 1;
    }
    return EPCTX_OK;
}

static epctx_status count_maker(const epctx_epnode *node, epctx_arena *arena, epctx_map *seen,
                                epctx_list *makers, epctx_error *error) {
    epctx_maker *maker;
    epctx_str key;
    uint32_t at;
    OPS_TRY(maker_key(node, arena, &key, error));
    at = epctx_map_get(seen, key);
    if (at == EPCTX_MAP_NONE) {
        at = (uint32_t)makers->count;
        OPS_TRY(ops_add(makers, arena, sizeof *maker, &maker, error));
        OPS_TRY(ops_put(seen, key, at, error));
        maker->source = node->source;
        maker->sdk_version = node->ep_sdk_version;
        maker->architecture = node->hardware_architecture;
        maker->profile = epctx_profile_of(node->source);
    }
    maker = (epctx_maker *)makers->items + at;
    maker->nodes++;
    maker->primaries += node->main_context == 1;
    if (node->embed_mode == 1) {
        maker->embedded++;
        maker->payload_size += node->ep_cache_context.size;
    }
    return EPCTX_OK;
}

static epctx_status list_compat(const epctx_model *model, epctx_arena *arena, epctx_state *out,
                                epctx_error *error) {
    epctx_cursor it =
        epctx_view_fields(epctx_model_read(model).view, EPCTX_FIELD_MODEL_METADATA_PROPS);
    epctx_list list = {0};
    epctx_pair pair;
    while (epctx_next_pair(&it, &pair)) {
        const size_t prefix = sizeof EPCTX_COMPAT_PREFIX - 1;
        epctx_compat_entry *entry;
        if (!epctx_str_starts(pair.key, EPCTX_COMPAT_PREFIX)) continue;
        OPS_TRY(ops_add(&list, arena, sizeof *entry, &entry, error));
        entry->ep.data = pair.key.data + prefix;
        entry->ep.size = pair.key.size - prefix;
        entry->value = pair.value;
    }
    out->compat = (const epctx_compat_entry *)list.items;
    out->compat_count = list.count;
    return EPCTX_OK;
}

epctx_status epctx_model_state(const epctx_model *model, epctx_arena *arena, epctx_state *out,
                               epctx_error *error) {
    epctx_cursor it = epctx_view_graph_initializers(epctx_model_graph(model));
    epctx_map seen, initializers;
    epctx_list makers = {0};
    epctx_view body;
    epctx_walk walk;
    epctx_node_view node;
    epctx_epnode ep;
    epctx_str name;
    epctx_error_clear(error);
    memset(out, 0, sizeof *out);
    epctx_map_init(&seen, arena);
    epctx_map_init(&initializers, arena);
    while (epctx_next_view(&it, &body))
        OPS_TRY(ops_put(&initializers, epctx_view_as_tensor(body).name, 1, error));
    epctx_walk_begin(&walk, model);
    while (epctx_walk_next(&walk, &node)) {
        if (!epctx_str_is(node.op_type, EPCTX_OP_TYPE)) {
            out->other_nodes++;
            continue;
        }
        if (!epctx_view_is_epnode(&node) || epctx_view_read_epnode(&node, &ep, NULL) != EPCTX_OK) {
            out->broken_nodes++;
            continue;
        }
        out->ep_nodes++;
        OPS_TRY(count_maker(&ep, arena, &seen, &makers, error));
        it = epctx_view_node_inputs(&node);
        while (walk.depth == 0 && !walk.in_function && epctx_next_str(&it, &name))
            out->weightless_inputs += epctx_map_get(&initializers, name) != EPCTX_MAP_NONE;
    }
    OPS_TRY(list_compat(model, arena, out, error));
    out->makers = (const epctx_maker *)makers.items;
    out->maker_count = makers.count;
    out->compiled = out->ep_nodes == 0      ? EPCTX_PLAIN
                    : out->other_nodes == 0 ? EPCTX_FULLY_COMPILED
                                            : EPCTX_PARTLY_COMPILED;
    return EPCTX_OK;
}
