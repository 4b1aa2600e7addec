/* SPDX-License-Identifier: MIT */
/* node.c - EPContext nodes: ORT's as records, with their payloads, and new ones for ORT. */
#include "bridge.h"

#include <string.h>

/* ----------------------------------------------------------------- reading */

/* Whether a string attribute is this text. ORT has an error for one that is not there. */
static OrtStatus *attr_is(const epctx_ort_api *api, const OrtNode *node, const char *name,
                          const char *text, bool *out) {
    char value[256];
    const OrtOpAttr *attr = NULL;
    OrtOpAttrType type = ORT_OP_ATTR_UNDEFINED;
    OrtStatus *status = api->ort->Node_GetAttributeByName(node, name, &attr);
    size_t size = 0;
    *out = false;
    if (status) api->ort->ReleaseStatus(status);
    if (status || !attr) return NULL;
    EPCTX_ORT_TRY(api->ort->OpAttr_GetType(attr, &type));
    if (type != ORT_OP_ATTR_STRING) return NULL;
    EPCTX_ORT_TRY(epctx_ort_attr_size(api, attr, type, &size));
    if (size != strlen(text) || size > sizeof value) return NULL;
    if (size > 0) EPCTX_ORT_TRY(api->ort->ReadOpAttr(attr, type, value, size, &size));
    *out = memcmp(value, text, size) == 0;
    return NULL;
}

OrtStatus *epctx_ort_node_is_context(const epctx_ort_api *api, const OrtNode *node,
                                     const char *source, bool *out) {
    const char *op_type = NULL, *domain = NULL;
    *out = false;
    if (!node) return NULL;
    EPCTX_ORT_TRY(api->ort->Node_GetOperatorType(node, &op_type));
    EPCTX_ORT_TRY(api->ort->Node_GetDomain(node, &domain));
    if (strcmp(op_type, EPCTX_OP_TYPE) != 0 || strcmp(domain, EPCTX_DOMAIN) != 0) return NULL;
    *out = true;
    return source ? attr_is(api, node, "source", source, out) : NULL;
}

/* A string attribute of any size, into the empty `out`. */
static OrtStatus *read_bytes(const epctx_ort_api *api, const OrtNode *node, const char *name,
                             epctx_buffer *out) {
    const OrtOpAttr *attr = NULL;
    OrtStatus *status = api->ort->Node_GetAttributeByName(node, name, &attr);
    size_t size = 0;
    if (status || !attr) {
        if (status) api->ort->ReleaseStatus(status);
        return epctx_ort_fail(api, EPCTX_ERR_GRAPH, "an EPContext node has no attribute '%s'",
                              name);
    }
    EPCTX_ORT_TRY(epctx_ort_attr_size(api, attr, ORT_OP_ATTR_STRING, &size));
    if (size == 0) return NULL;
    /* epctx_buffer_append would fill all of it with zeros first, and reserve more. */
    out->data = (uint8_t *)out->allocator.alloc_fn(out->allocator.user, size);
    if (!out->data) return epctx_ort_no_memory(api);
    out->capacity = size;
    return api->ort->ReadOpAttr(attr, ORT_OP_ATTR_STRING, out->data, size, &out->size);
}

OrtStatus *epctx_ort_context_node_read(const epctx_ort_record *record, size_t index,
                                       epctx_buffer *payload, epctx_arena *arena, epctx_node *out) {
    epctx_attr *attrs;
    size_t i;
    *out = record->graph.nodes[index];
    attrs = (epctx_attr *)epctx_arena_array(arena, out->attr_count + 1, sizeof *attrs);
    if (!attrs) return epctx_ort_no_memory(record->api);
    for (i = 0; i < out->attr_count; i++) {
        attrs[i] = out->attrs[i];
        if (!epctx_str_is(attrs[i].name, "ep_cache_context") || attrs[i].type != EPCTX_ATTR_STRING)
            continue;
        EPCTX_ORT_TRY(read_bytes(record->api, record->nodes[index], "ep_cache_context", payload));
        attrs[i].s.data = (const char *)payload->data;
        attrs[i].s.size = payload->size;
    }
    out->attrs = attrs;
    return NULL;
}

/* ---------------------------------------------------------------- creating */

static OrtStatus *make_attr(const epctx_ort_api *api, const epctx_attr *attr, OrtOpAttr **out) {
    const char *name = attr->name.data; /* a literal of epctx.h: terminated */
    if (attr->type == EPCTX_ATTR_INT)
        return api->ort->CreateOpAttr(name, &attr->i, (int)sizeof attr->i, ORT_OP_ATTR_INT, out);
    if (attr->s.size > INT32_MAX) {
        return epctx_ort_fail(api, EPCTX_ERR_LIMIT,
                              "%s is %zu bytes and an attribute holds less than 2 GiB: use "
                              "ep.context_embed_mode=0",
                              name, attr->s.size);
    }
    return api->ort->CreateOpAttr(name, attr->s.data, (int)attr->s.size, ORT_OP_ATTR_STRING, out);
}

/* Puts the inputs of a fused node into the order that its EPContext node has for good. What ORT
 * makes of them when it loads the model may have other names (of equal constants it keeps one), and
 * a run-time input may be a constant then: only its place tells what an input is. */
static OrtStatus *order_inputs(const epctx_ort_api *api, const epctx_graph *graph,
                               epctx_str weights, epctx_arena *arena, const char **names,
                               size_t count) {
    const char **ordered = (const char **)epctx_arena_array(arena, count + 1, sizeof *ordered);
    epctx_outside_weight ref;
    epctx_map places;
    size_t i, done = 0;
    epctx_map_init(&places, arena);
    for (i = 0; i < count; i++)
        if (!ordered || epctx_map_put(&places, epctx_str_of(names[i]), (uint32_t)i) != EPCTX_OK)
            return epctx_ort_no_memory(api);
    for (i = 0;; i++) {
        epctx_str name;
        uint32_t at;
        if (i < graph->input_count)
            name = graph->inputs[i].name;
        else if (epctx_outside_weight_next(&weights, &ref))
            name = ref.name;
        else
            break;
        at = epctx_map_get(&places, name);
        if (at == EPCTX_MAP_NONE || !names[at]) continue;
        ordered[done++] = names[at];
        names[at] = NULL;
    }
    for (i = 0; i < count; i++)
        if (names[i]) ordered[done++] = names[i];
    if (count) memcpy(names, ordered, count * sizeof *names);
    return NULL;
}

OrtStatus *epctx_ort_context_node_create(const epctx_ort_api *api, const OrtNode *fused,
                                         const epctx_graph *graph, const epctx_epnode *node,
                                         epctx_str weights, epctx_arena *arena, OrtNode **out) {
    epctx_attr attrs[EPCTX_EPNODE_ATTR_COUNT + 1];
    OrtOpAttr *made[EPCTX_EPNODE_ATTR_COUNT + 1] = {NULL};
    size_t count = epctx_epnode_attrs(node, attrs);
    const char **inputs, **outputs, *name = NULL;
    size_t input_count, output_count, i;
    OrtStatus *status = NULL;
    EPCTX_ORT_TRY(api->ort->Node_GetName(fused, &name));
    EPCTX_ORT_TRY(epctx_ort_node_names(api, fused, false, arena, &inputs, &input_count));
    EPCTX_ORT_TRY(order_inputs(api, graph, weights, arena, inputs, input_count));
    EPCTX_ORT_TRY(epctx_ort_node_names(api, fused, true, arena, &outputs, &output_count));
    if (weights.size > 0) {
        memset(&attrs[count], 0, sizeof attrs[count]);
        attrs[count].name = epctx_str_of(EPCTX_WEIGHTS_ATTR);
        attrs[count].type = EPCTX_ATTR_STRING;
        attrs[count++].s = weights;
    }
    for (i = 0; i < count && !status; i++) status = make_attr(api, &attrs[i], &made[i]);
    if (!status) {
        status = api->editor->CreateNode(
            EPCTX_OP_TYPE, EPCTX_DOMAIN, name, (const char *const *)inputs, input_count,
            (const char *const *)outputs, output_count, made, count, out);
    }
    /* CreateNode takes them and clears the array; after a failure they are ours. So release what is
     * left in this array, and keep no other pointer to them. */
    for (i = 0; i < count; i++)
        if (made[i]) api->ort->ReleaseOpAttr(made[i]);
    return status;
}
