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

/* An attribute to be made, and the node that messages name. */
typedef struct making {
    const epctx_ort_api *api;
    const char *node;
    const epctx_attr *attr;
    const char *name; /* of the attribute */
    epctx_arena *arena;
} making;

/* ORT counts in int. */
static OrtStatus *make_list(const making *m, const void *data, size_t count, OrtOpAttrType type,
                            OrtOpAttr **out) {
    static const char nothing[sizeof(int64_t)] = {0};
    const bool bytes = m->attr->type == EPCTX_ATTR_STRING;
    if (count > INT32_MAX) {
        return epctx_ort_fail(m->api, EPCTX_ERR_LIMIT,
                              "node '%s': attribute '%s' has %zu %s, and one of ONNX Runtime holds "
                              "less than 2^31%s",
                              m->node, m->name, count, bytes ? "bytes" : "elements",
                              bytes ? ": use ep.context_embed_mode=0" : "");
    }
    return m->api->ort->CreateOpAttr(m->name, data ? data : nothing, (int)count, type, out);
}

/* ORT takes the strings of a list as C strings. */
static OrtStatus *make_strings(const making *m, OrtOpAttr **out) {
    const epctx_attr *attr = m->attr;
    const char **strings =
        (const char **)epctx_arena_array(m->arena, attr->count + 1, sizeof *strings);
    size_t i;
    if (!strings) return epctx_ort_no_memory(m->api);
    for (i = 0; i < attr->count; i++) {
        const epctx_str *s = &attr->strings[i];
        if (s->size && memchr(s->data, '\0', s->size)) {
            return epctx_ort_fail(m->api, EPCTX_ERR_UNSUPPORTED,
                                  "node '%s': attribute '%s': string %zu has a NUL inside: ONNX "
                                  "Runtime takes none",
                                  m->node, m->name, i);
        }
        strings[i] = epctx_arena_copy(m->arena, *s);
        if (!strings[i]) return epctx_ort_no_memory(m->api);
    }
    return make_list(m, strings, attr->count, ORT_OP_ATTR_STRINGS, out);
}

static OrtStatus *make_attr(const epctx_ort_api *api, const char *node, const epctx_attr *attr,
                            epctx_arena *arena, OrtOpAttr **out) {
    const making m = {api, node, attr, epctx_arena_copy(arena, attr->name), arena};
    if (!m.name) return epctx_ort_no_memory(api);
    switch (attr->type) {
    case EPCTX_ATTR_INT: return make_list(&m, &attr->i, 1, ORT_OP_ATTR_INT, out);
    case EPCTX_ATTR_FLOAT: return make_list(&m, &attr->f, 1, ORT_OP_ATTR_FLOAT, out);
    case EPCTX_ATTR_STRING:
        return make_list(&m, attr->s.data, attr->s.size, ORT_OP_ATTR_STRING, out);
    case EPCTX_ATTR_INTS: return make_list(&m, attr->ints, attr->count, ORT_OP_ATTR_INTS, out);
    case EPCTX_ATTR_FLOATS:
        return make_list(&m, attr->floats, attr->count, ORT_OP_ATTR_FLOATS, out);
    case EPCTX_ATTR_STRINGS: return make_strings(&m, out);
    default:
        return epctx_ort_fail(api, EPCTX_ERR_UNSUPPORTED,
                              "node '%s': attribute '%s' is a %s, and ONNX Runtime makes none for "
                              "an EP: expected INT, FLOAT, STRING or a list of them",
                              node, m.name, epctx_attr_type_name((int32_t)attr->type));
    }
}

static bool is_of_schema(epctx_str name) {
#define IS_NAME(id, text, type, member) || epctx_str_is(name, text)
    return false EPCTX_EPNODE_ATTR_LIST(IS_NAME);
#undef IS_NAME
}

static OrtStatus *record_names(const epctx_ort_api *api, const epctx_str *from, size_t count,
                               epctx_arena *arena, const char ***names) {
    size_t i;
    *names = (const char **)epctx_arena_array(arena, count + 1, sizeof **names);
    for (i = 0; *names && i < count; i++) {
        (*names)[i] = epctx_arena_copy(arena, from[i]);
        if (!(*names)[i]) return epctx_ort_no_memory(api);
    }
    return *names ? NULL : epctx_ort_no_memory(api);
}

/* What CreateNode wants. */
typedef struct parts {
    const char *name;
    const char **inputs, **outputs;
    size_t input_count, output_count;
    OrtOpAttr **attrs;
    size_t attr_count; /* made so far */
} parts;

/* Puts the inputs of a fused node into the order that its EPContext node has for good. What ORT
 * makes of them when it loads the model may have other names (of equal constants it keeps one), and
 * a run-time input may be a constant then: only its place tells what an input is. Not `all`:
 * without those that the record does not name. */
static OrtStatus *order_inputs(const epctx_ort_api *api, const epctx_node *record, bool all,
                               epctx_arena *arena, const char **names, size_t *named) {
    const size_t count = *named;
    const char **ordered = (const char **)epctx_arena_array(arena, count + 1, sizeof *ordered);
    const epctx_attr *attr = epctx_node_attr(record, EPCTX_WEIGHTS_ATTR);
    epctx_str weights = attr ? attr->s : epctx_str_of(NULL);
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
        if (i < record->input_count)
            name = record->inputs[i];
        else if (epctx_outside_weight_next(&weights, &ref))
            name = ref.name;
        else
            break;
        at = epctx_map_get(&places, name);
        if (at == EPCTX_MAP_NONE || !names[at]) continue;
        ordered[done++] = names[at];
        names[at] = NULL;
    }
    for (i = 0; all && i < count; i++)
        if (names[i]) ordered[done++] = names[i];
    if (done) memcpy(names, ordered, done * sizeof *names);
    *named = done;
    return NULL;
}

static OrtStatus *check_list(const epctx_ort_api *api, const char *node, const char *what,
                             const epctx_str *list, size_t count) {
    size_t i;
    if (!list && count)
        return epctx_ort_fail(api, EPCTX_ERR_BACKEND, "node '%s': there are %zu %s, and no list",
                              node, count, what);
    for (i = 0; i < count; i++)
        if (!list[i].data && list[i].size)
            return epctx_ort_fail(api, EPCTX_ERR_BACKEND,
                                  "node '%s': %s: name %zu has %zu bytes, and data is NULL", node,
                                  what, i, list[i].size);
    return NULL;
}

static OrtStatus *make_ends(const epctx_ort_api *api, const OrtNode *fused,
                            const epctx_node *record, epctx_ort_ends ends, epctx_arena *arena,
                            parts *out) {
    if (ends == EPCTX_ORT_ENDS_RECORD) {
        out->input_count = record->input_count;
        EPCTX_ORT_TRY(record_names(api, record->inputs, record->input_count, arena, &out->inputs));
    } else {
        EPCTX_ORT_TRY(
            epctx_ort_node_names(api, fused, false, arena, &out->inputs, &out->input_count));
        EPCTX_ORT_TRY(order_inputs(api, record, ends == EPCTX_ORT_ENDS_FUSED, arena, out->inputs,
                                   &out->input_count));
    }
    if (ends == EPCTX_ORT_ENDS_FUSED)
        return epctx_ort_node_names(api, fused, true, arena, &out->outputs, &out->output_count);
    out->output_count = record->output_count;
    return record_names(api, record->outputs, record->output_count, arena, &out->outputs);
}

epctx_node epctx_ort_context_node_own(const epctx_node *record) {
    epctx_node own = *record;
    for (; own.attr_count > 0 && is_of_schema(own.attrs->name); own.attr_count--) own.attrs++;
    return own;
}

static OrtStatus *check_node(const epctx_ort_api *api, const char *name, const epctx_node *record,
                             const epctx_epnode *node, epctx_arena *arena) {
    epctx_epnode named = *node;
    epctx_error error;
    EPCTX_ORT_TRY(check_list(api, name, "inputs", record->inputs, record->input_count));
    EPCTX_ORT_TRY(check_list(api, name, "outputs", record->outputs, record->output_count));
    named.name = epctx_str_of(name);
    return epctx_ort_status(
        api, epctx_epnode_check(&named, record->attrs, record->attr_count, arena, &error), &error);
}

static OrtStatus *make_attrs(const epctx_ort_api *api, const epctx_node *record,
                             const epctx_epnode *node, epctx_arena *arena, parts *out) {
    epctx_attr attrs[EPCTX_EPNODE_ATTR_COUNT];
    const size_t count = epctx_epnode_attrs(node, attrs);
    if (record->attr_count > SIZE_MAX - count) return epctx_ort_no_memory(api);
    out->attrs =
        (OrtOpAttr **)epctx_arena_array(arena, count + record->attr_count, sizeof *out->attrs);
    if (!out->attrs) return epctx_ort_no_memory(api);
    for (; out->attr_count < count + record->attr_count; out->attr_count++) {
        const size_t i = out->attr_count;
        EPCTX_ORT_TRY(make_attr(api, out->name, i < count ? &attrs[i] : &record->attrs[i - count],
                                arena, &out->attrs[i]));
    }
    return NULL;
}

OrtStatus *epctx_ort_context_node_create(const epctx_ort_api *api, const OrtNode *fused,
                                         const epctx_node *record, const epctx_epnode *node,
                                         epctx_ort_ends ends, epctx_arena *arena, OrtNode **out) {
    parts p;
    OrtStatus *status;
    size_t i;
    memset(&p, 0, sizeof p);
    status = api->ort->Node_GetName(fused, &p.name);
    if (!status) status = check_node(api, p.name, record, node, arena);
    if (!status) status = make_ends(api, fused, record, ends, arena, &p);
    if (!status) status = make_attrs(api, record, node, arena, &p);
    if (!status) {
        status = api->editor->CreateNode(
            EPCTX_OP_TYPE, EPCTX_DOMAIN, p.name, (const char *const *)p.inputs, p.input_count,
            (const char *const *)p.outputs, p.output_count, p.attrs, p.attr_count, out);
    }
    /* CreateNode takes them and clears the array; after a failure they are ours. So release what is
     * left in this array, and keep no other pointer to them. */
    for (i = 0; i < p.attr_count; i++)
        if (p.attrs[i]) api->ort->ReleaseOpAttr(p.attrs[i]);
    return status;
}
