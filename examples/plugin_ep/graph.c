/* SPDX-License-Identifier: MIT */
/* graph.c - OrtGraph -> epctx_graph. Only what ORT hands out by value is copied: shapes, attribute
 * lists, pointers. Weights are read where ORT keeps them. */
#include "bridge.h"

#include <stdlib.h>

#if defined(_WIN32)
#include <windows.h>
#endif

/* ORT numbers the element types as onnx.proto does, except the three newest, whose names older
 * headers do not have. */
enum { NEW_UINT2 = 24, NEW_INT2 = 25, NEW_FLOAT8E8M0 = 26 };
#if ORT_API_VERSION >= 29
_Static_assert(NEW_UINT2 == (int)ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT2 &&
                   NEW_INT2 == (int)ONNX_TENSOR_ELEMENT_DATA_TYPE_INT2 &&
                   NEW_FLOAT8E8M0 == (int)ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E8M0,
               "ORT's numbers");
#endif

static int32_t elem_type_of(ONNXTensorElementDataType type) {
    switch ((int)type) {
    case NEW_UINT2: return 25;
    case NEW_INT2: return 26;
    case NEW_FLOAT8E8M0: return 24;
    default: return (int32_t)type;
    }
}

static OrtStatus *get_memory(epctx_ort_record *record, size_t count, size_t size, void **out) {
    *out = epctx_arena_array(&record->arena, count ? count : 1, size);
    return *out ? NULL : epctx_ort_no_memory(record->api);
}

/* ------------------------------------------------------------------ values */

static OrtStatus *read_value(epctx_ort_record *record, const OrtValueInfo *info,
                             epctx_value *value) {
    const OrtApi *ort = record->api->ort;
    const OrtTypeInfo *type = NULL;
    const OrtTensorTypeAndShapeInfo *tensor = NULL;
    ONNXTensorElementDataType elem = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
    const char *name = NULL;
    size_t rank = 0;
    void *dims;
    EPCTX_ORT_TRY(ort->GetValueInfoName(info, &name));
    value->name = epctx_str_of(name);
    value->rank = -1;
    EPCTX_ORT_TRY(ort->GetValueInfoTypeInfo(info, &type)); /* borrowed */
    if (type) EPCTX_ORT_TRY(ort->CastTypeInfoToTensorInfo(type, &tensor));
    if (!tensor) return NULL; /* a sequence, a map, an optional: elem_type 0 */
    EPCTX_ORT_TRY(ort->GetTensorElementType(tensor, &elem));
    value->elem_type = elem_type_of(elem);
    if (!ort->TensorTypeAndShape_HasShape(tensor)) return NULL;
    EPCTX_ORT_TRY(ort->GetDimensionsCount(tensor, &rank));
    EPCTX_ORT_TRY(get_memory(record, rank, sizeof(int64_t), &dims));
    EPCTX_ORT_TRY(ort->GetDimensions(tensor, (int64_t *)dims, rank));
    value->dims = (const int64_t *)dims;
    value->rank = (int32_t)rank;
    return NULL;
}

/* The caller sets `tensor->name`. */
static OrtStatus *read_tensor(epctx_ort_record *record, const OrtValue *value,
                              epctx_tensor *tensor) {
    static const uint8_t nothing[1] = {0};
    const OrtApi *ort = record->api->ort;
    ONNXTensorElementDataType elem = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
    const int64_t *shape = NULL;
    const void *data = NULL;
    size_t rank = 0;
    EPCTX_ORT_TRY(ort->GetTensorElementTypeAndShapeDataReference(value, &elem, &shape, &rank));
    tensor->elem_type = elem_type_of(elem);
    tensor->rank = (int32_t)rank;
    tensor->dims = shape;
    if (elem == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING) return NULL; /* not plain bytes: not loaded */
    EPCTX_ORT_TRY(ort->GetTensorSizeInBytes(value, &tensor->size));
    EPCTX_ORT_TRY(ort->GetTensorData(value, &data));
    /* NULL would mean "not loaded". */
    tensor->data = tensor->size ? (const uint8_t *)data : nothing;
    return NULL;
}

/* ---------------------------------------------------- names of a node's ends */

/* The ends of a node; an omitted optional one is NULL. */
static OrtStatus *node_ends(const epctx_ort_api *api, const OrtNode *node, bool outputs,
                            epctx_arena *arena, const OrtValueInfo ***ends, size_t *count) {
    const OrtApi *ort = api->ort;
    EPCTX_ORT_TRY(outputs ? ort->Node_GetNumOutputs(node, count)
                          : ort->Node_GetNumInputs(node, count));
    *ends = (const OrtValueInfo **)epctx_arena_array(arena, *count + 1, sizeof **ends);
    if (!*ends) return epctx_ort_no_memory(api);
    if (*count == 0) return NULL;
    return outputs ? ort->Node_GetOutputs(node, *ends, *count)
                   : ort->Node_GetInputs(node, *ends, *count);
}

OrtStatus *epctx_ort_node_names(const epctx_ort_api *api, const OrtNode *node, bool outputs,
                                epctx_arena *arena, const char ***names, size_t *count) {
    const OrtValueInfo **ends;
    size_t i;
    EPCTX_ORT_TRY(node_ends(api, node, outputs, arena, &ends, count));
    *names = (const char **)epctx_arena_array(arena, *count + 1, sizeof **names);
    if (!*names) return epctx_ort_no_memory(api);
    for (i = 0; i < *count; i++) {
        (*names)[i] = "";
        if (ends[i]) EPCTX_ORT_TRY(api->ort->GetValueInfoName(ends[i], &(*names)[i]));
    }
    return NULL;
}

static OrtStatus *read_names(epctx_ort_record *record, const OrtValueInfo **ends, size_t count,
                             const epctx_str **out) {
    void *memory;
    epctx_str *names;
    size_t i;
    EPCTX_ORT_TRY(get_memory(record, count, sizeof(epctx_str), &memory));
    names = (epctx_str *)memory;
    for (i = 0; i < count; i++) {
        const char *name = "";
        if (ends[i]) EPCTX_ORT_TRY(record->api->ort->GetValueInfoName(ends[i], &name));
        names[i] = epctx_str_of(name);
    }
    *out = names;
    return NULL;
}

/* -------------------------------------------------------------- attributes */

OrtStatus *epctx_ort_attr_size(const epctx_ort_api *api, const OrtOpAttr *attr, OrtOpAttrType type,
                               size_t *size) {
    OrtStatus *status;
    *size = 0;
    status = api->ort->ReadOpAttr(attr, type, NULL, 0, size);
    if (!status) return NULL;
    if (*size == 0) return status; /* a real failure, e.g. another type */
    api->ort->ReleaseStatus(status);
    return NULL;
}

static OrtStatus *attr_bytes(epctx_ort_record *record, const OrtOpAttr *attr, OrtOpAttrType type,
                             void **data, size_t *size) {
    EPCTX_ORT_TRY(epctx_ort_attr_size(record->api, attr, type, size));
    EPCTX_ORT_TRY(get_memory(record, *size + 1, 1, data));
    if (*size == 0) return NULL;
    return record->api->ort->ReadOpAttr(attr, type, *data, *size, size);
}

/* ORT joins the strings of a list with a zero byte after each. */
static OrtStatus *split_strings(epctx_ort_record *record, const char *text, size_t size,
                                epctx_attr *out) {
    void *memory;
    epctx_str *strings;
    size_t i, start = 0, count = 0;
    for (i = 0; i < size; i++) count += text[i] == '\0';
    EPCTX_ORT_TRY(get_memory(record, count, sizeof(epctx_str), &memory));
    strings = (epctx_str *)memory;
    count = 0;
    for (i = 0; i < size; i++) {
        if (text[i]) continue;
        strings[count].data = text + start;
        strings[count].size = i - start;
        count++;
        start = i + 1;
    }
    out->strings = strings;
    out->count = count;
    return NULL;
}

/* ORT makes a new OrtValue of a tensor attribute; it lives as long as the record. */
static OrtStatus *read_tensor_attr(epctx_ort_record *record, const OrtOpAttr *attr,
                                   epctx_attr *out) {
    OrtValue *value = NULL;
    void *memory;
    epctx_tensor *tensor;
    if (record->held_count == record->held_room) {
        const size_t room = record->held_room ? 2 * record->held_room : 16;
        OrtValue **held;
        EPCTX_ORT_TRY(get_memory(record, room, sizeof *held, &memory));
        held = (OrtValue **)memory;
        if (record->held_count) memcpy(held, record->held, record->held_count * sizeof *held);
        record->held = held;
        record->held_room = room;
    }
    EPCTX_ORT_TRY(record->api->ort->OpAttr_GetTensorAttributeAsOrtValue(attr, &value));
    if (!value) return NULL;
    record->held[record->held_count++] = value;
    EPCTX_ORT_TRY(get_memory(record, 1, sizeof *tensor, &memory));
    tensor = (epctx_tensor *)memory;
    EPCTX_ORT_TRY(read_tensor(record, value, tensor));
    out->t = tensor;
    return NULL;
}

/* ORT has no word for an attribute that is a type (of Optional), and fails. */
static OrtOpAttrType attr_type(const epctx_ort_api *api, const OrtOpAttr *attr) {
    OrtOpAttrType type = ORT_OP_ATTR_UNDEFINED;
    OrtStatus *status = api->ort->OpAttr_GetType(attr, &type);
    if (!status) return type;
    api->ort->ReleaseStatus(status);
    return ORT_OP_ATTR_UNDEFINED;
}

/* Whether this is a string, for a payload: OpAttr_GetType would copy it. */
static bool is_string(const epctx_ort_api *api, const OrtOpAttr *attr) {
    size_t size = 0;
    OrtStatus *status = epctx_ort_attr_size(api, attr, ORT_OP_ATTR_STRING, &size);
    if (status) api->ort->ReleaseStatus(status);
    return !status;
}

static OrtStatus *read_attr(epctx_ort_record *record, const OrtOpAttr *attr, bool skip_payload,
                            epctx_attr *out) {
    const OrtApi *ort = record->api->ort;
    OrtOpAttrType type;
    const char *name = NULL;
    void *data = NULL;
    size_t size = 0;
    EPCTX_ORT_TRY(ort->OpAttr_GetName(attr, &name));
    out->name = epctx_str_of(name);
    if (skip_payload && strcmp(name, "ep_cache_context") == 0 && is_string(record->api, attr)) {
        out->type = EPCTX_ATTR_STRING;
        return NULL;
    }
    type = attr_type(record->api, attr);
    switch (type) {
    case ORT_OP_ATTR_INT:
        out->type = EPCTX_ATTR_INT;
        return ort->ReadOpAttr(attr, type, &out->i, sizeof out->i, &size);
    case ORT_OP_ATTR_FLOAT:
        out->type = EPCTX_ATTR_FLOAT;
        return ort->ReadOpAttr(attr, type, &out->f, sizeof out->f, &size);
    case ORT_OP_ATTR_INTS:
        out->type = EPCTX_ATTR_INTS;
        EPCTX_ORT_TRY(attr_bytes(record, attr, type, &data, &size));
        out->ints = (const int64_t *)data;
        out->count = size / sizeof(int64_t);
        return NULL;
    case ORT_OP_ATTR_FLOATS:
        out->type = EPCTX_ATTR_FLOATS;
        EPCTX_ORT_TRY(attr_bytes(record, attr, type, &data, &size));
        out->floats = (const float *)data;
        out->count = size / sizeof(float);
        return NULL;
    case ORT_OP_ATTR_STRING:
        out->type = EPCTX_ATTR_STRING;
        EPCTX_ORT_TRY(attr_bytes(record, attr, type, &data, &size));
        out->s.data = (const char *)data;
        out->s.size = size;
        return NULL;
    case ORT_OP_ATTR_STRINGS:
        out->type = EPCTX_ATTR_STRINGS;
        EPCTX_ORT_TRY(attr_bytes(record, attr, type, &data, &size));
        return split_strings(record, (const char *)data, size, out);
    case ORT_OP_ATTR_TENSOR:
        out->type = EPCTX_ATTR_TENSOR;
        return read_tensor_attr(record, attr, out);
    case ORT_OP_ATTR_GRAPH:
        out->type = EPCTX_ATTR_GRAPH; /* read_bodies */
        return NULL;
    default: out->type = EPCTX_ATTR_UNDEFINED; return NULL;
    }
}

/* ------------------------------------------------------------------- nodes */

bool epctx_ort_is_context_node(const epctx_node *node) {
    return epctx_str_is(node->op_type, EPCTX_OP_TYPE) && epctx_str_is(node->domain, EPCTX_DOMAIN);
}

bool epctx_ort_hides(const epctx_node *node) {
    size_t i, k;
    for (i = 0; i < node->attr_count; i++) {
        const epctx_graph *body = node->attrs[i].g;
        if (node->attrs[i].type == EPCTX_ATTR_UNDEFINED) return true;
        for (k = 0; body && k < body->node_count; k++)
            if (epctx_ort_hides(&body->nodes[k])) return true;
    }
    return false;
}

static OrtStatus *read_record(epctx_ort_record *record, const epctx_ort_api *api,
                              const OrtGraph *graph, const OrtNode *fused, int kind);

/* Bodies of the node, into its attributes; their hash into `extra_hash`. */
static OrtStatus *read_bodies(epctx_ort_record *record, const OrtNode *node, epctx_node *out,
                              epctx_attr *attrs) {
    const OrtApi *ort = record->api->ort;
    const OrtGraph **bodies;
    const char **names;
    void *memory;
    size_t i, k, count = 0;
    EPCTX_ORT_TRY(ort->Node_GetNumSubgraphs(node, &count));
    if (count == 0) return NULL;
    EPCTX_ORT_TRY(get_memory(record, count, sizeof *bodies, &memory));
    bodies = (const OrtGraph **)memory;
    EPCTX_ORT_TRY(get_memory(record, count, sizeof *names, &memory));
    names = (const char **)memory;
    EPCTX_ORT_TRY(ort->Node_GetSubgraphs(node, bodies, count, names));
    for (i = 0; i < count; i++) {
        epctx_ort_record *body;
        EPCTX_ORT_TRY(get_memory(record, 1, sizeof *body, &memory));
        body = (epctx_ort_record *)memory;
        EPCTX_ORT_TRY(
            read_record(body, record->api, bodies[i], NULL, record->kind | EPCTX_ORT_RECORD_BODY));
        body->next = record->inner;
        record->inner = body;
        if (record->kind & EPCTX_ORT_RECORD_HASHED)
            out->extra_hash = epctx_hash(names[i], strlen(names[i]),
                                         out->extra_hash ^ epctx_graph_hash(&body->graph));
        for (k = 0; k < out->attr_count; k++)
            if (epctx_str_is(attrs[k].name, names[i]) &&
                record->api->version >= EPCTX_ORT_BODIES_API)
                attrs[k].g = &body->graph;
    }
    return NULL;
}

typedef struct opset {
    const char **domains;
    int64_t *versions;
    size_t count;
} opset;

static OrtStatus *read_opsets(epctx_ort_record *record, const OrtGraph *graph, opset *out) {
    const OrtApi *ort = record->api->ort;
    void *domains, *versions;
    EPCTX_ORT_TRY(ort->Graph_GetNumOperatorSets(graph, &out->count));
    EPCTX_ORT_TRY(get_memory(record, out->count, sizeof(char *), &domains));
    EPCTX_ORT_TRY(get_memory(record, out->count, sizeof(int64_t), &versions));
    out->domains = (const char **)domains;
    out->versions = (int64_t *)versions;
    return ort->Graph_GetOperatorSets(graph, out->domains, out->versions, out->count);
}

static bool is_onnx(const char *domain) {
    return !*domain || strcmp(domain, "ai.onnx") == 0;
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const epctx_attr *)a)->name.data, ((const epctx_attr *)b)->name.data);
}

static OrtStatus *read_node(epctx_ort_record *record, const OrtNode *node, const opset *opsets,
                            const OrtValueInfo ***inputs, const OrtValueInfo ***outputs,
                            epctx_node *out) {
    const OrtApi *ort = record->api->ort;
    const OrtOpAttr **list;
    const OrtValueInfo **captures;
    epctx_attr *attrs;
    const char *text = NULL;
    void *memory;
    size_t i;
    EPCTX_ORT_TRY(ort->Node_GetName(node, &text));
    out->name = epctx_str_of(text);
    EPCTX_ORT_TRY(ort->Node_GetOperatorType(node, &text));
    out->op_type = epctx_str_of(text);
    EPCTX_ORT_TRY(ort->Node_GetDomain(node, &text));
    out->domain = epctx_str_of(is_onnx(text) ? "" : text);
    for (i = 0; i < opsets->count; i++)
        if (strcmp(opsets->domains[i], text) == 0 || (is_onnx(opsets->domains[i]) && is_onnx(text)))
            out->version = opsets->versions[i];
    EPCTX_ORT_TRY(node_ends(record->api, node, false, &record->arena, inputs, &out->input_count));
    EPCTX_ORT_TRY(node_ends(record->api, node, true, &record->arena, outputs, &out->output_count));
    EPCTX_ORT_TRY(read_names(record, *inputs, out->input_count, &out->inputs));
    EPCTX_ORT_TRY(read_names(record, *outputs, out->output_count, &out->outputs));
    EPCTX_ORT_TRY(ort->Node_GetNumImplicitInputs(node, &out->capture_count));
    if (out->capture_count) {
        EPCTX_ORT_TRY(get_memory(record, out->capture_count, sizeof *captures, &memory));
        captures = (const OrtValueInfo **)memory;
        EPCTX_ORT_TRY(ort->Node_GetImplicitInputs(node, captures, out->capture_count));
        EPCTX_ORT_TRY(read_names(record, captures, out->capture_count, &out->captures));
    }
    EPCTX_ORT_TRY(ort->Node_GetNumAttributes(node, &out->attr_count));
    if (!out->attr_count) return NULL;
    EPCTX_ORT_TRY(get_memory(record, out->attr_count, sizeof *list, &memory));
    list = (const OrtOpAttr **)memory;
    EPCTX_ORT_TRY(ort->Node_GetAttributes(node, list, out->attr_count));
    EPCTX_ORT_TRY(get_memory(record, out->attr_count, sizeof *attrs, &memory));
    attrs = (epctx_attr *)memory;
    for (i = 0; i < out->attr_count; i++)
        EPCTX_ORT_TRY(read_attr(record, list[i], epctx_ort_is_context_node(out), &attrs[i]));
    /* ORT has them in a hash table: in another order on every system, so with another hash. */
    qsort(attrs, out->attr_count, sizeof *attrs, by_name);
    out->attrs = attrs;
    return read_bodies(record, node, out, attrs);
}

/* ------------------------------------------------------------------- graph */

/* The meaning of a value name while a graph is read. */
enum { FROM_INPUT = 1, FROM_NODE, FROM_CONSTANT };

static OrtStatus *remember(epctx_ort_record *record, epctx_map *map, epctx_str name,
                           uint32_t what) {
    return epctx_ort_status(record->api, epctx_map_put(map, name, what), NULL);
}

/* Where constants are inputs of the fused node (weightless), its ends do not tell: the ends of the
 * nodes inside do. */
static OrtStatus *find_constants(epctx_ort_record *record, const OrtValueInfo ***node_inputs,
                                 epctx_map *constants) {
    const OrtApi *ort = record->api->ort;
    const epctx_graph *graph = &record->graph;
    size_t i, k;
    for (i = 0; i < graph->node_count; i++) {
        const epctx_node *node = &graph->nodes[i];
        const OrtValueInfo **captures;
        void *memory;
        for (k = 0; k < node->input_count; k++) {
            bool constant = false;
            if (!node_inputs[i][k]) continue;
            EPCTX_ORT_TRY(ort->ValueInfo_IsConstantInitializer(node_inputs[i][k], &constant));
            if (constant) EPCTX_ORT_TRY(remember(record, constants, node->inputs[k], 1));
        }
        if (!node->capture_count) continue;
        EPCTX_ORT_TRY(get_memory(record, node->capture_count, sizeof *captures, &memory));
        captures = (const OrtValueInfo **)memory;
        EPCTX_ORT_TRY(ort->Node_GetImplicitInputs(record->nodes[i], captures, node->capture_count));
        for (k = 0; k < node->capture_count; k++) { /* bodies have them as their own */
            bool constant = false;
            EPCTX_ORT_TRY(ort->ValueInfo_IsConstantInitializer(captures[k], &constant));
            if (constant) EPCTX_ORT_TRY(remember(record, constants, node->captures[k], 1));
        }
    }
    return NULL;
}

/* The run-time inputs among `infos`: constants are left out, they come with their users. */
static OrtStatus *read_inputs(epctx_ort_record *record, const OrtValueInfo **infos, size_t count,
                              size_t room, const epctx_map *constants, epctx_map *known,
                              epctx_value **out) {
    void *memory;
    size_t i;
    EPCTX_ORT_TRY(get_memory(record, room, sizeof(epctx_value), &memory));
    *out = (epctx_value *)memory;
    record->graph.inputs = *out;
    for (i = 0; i < count; i++) {
        epctx_value *value = *out + record->graph.input_count;
        bool constant = false;
        if (!infos[i]) continue;
        EPCTX_ORT_TRY(record->api->ort->ValueInfo_IsConstantInitializer(infos[i], &constant));
        if (constant) continue;
        EPCTX_ORT_TRY(read_value(record, infos[i], value));
        if (epctx_map_get(known, value->name) != EPCTX_MAP_NONE ||
            epctx_map_get(constants, value->name) != EPCTX_MAP_NONE)
            continue;
        EPCTX_ORT_TRY(remember(record, known, value->name, FROM_INPUT));
        record->graph.input_count++;
    }
    return NULL;
}

/* A copy of a path of ORT's, in UTF-8: on Windows ORT's paths are wide. NULL becomes "". */
static OrtStatus *read_path(epctx_ort_record *record, const ORTCHAR_T *path, const char **out) {
#if defined(_WIN32)
    const WCHAR *wide = path ? path : L"";
    const int size =
        WideCharToMultiByte(CP_UTF8, WC_ERR_INVALID_CHARS, wide, -1, NULL, 0, NULL, NULL);
    char *copy = (char *)epctx_arena_alloc(&record->arena, (size_t)size + 1);
    if (size <= 0) {
        return epctx_ort_fail(record->api, EPCTX_ERR_PATH,
                              "a path of ONNX Runtime is no valid UTF-16: the EP cannot name it");
    }
    if (copy) WideCharToMultiByte(CP_UTF8, 0, wide, -1, copy, size, NULL, NULL);
#else
    const char *copy = epctx_arena_copy(&record->arena, epctx_str_of(path));
#endif
    *out = copy;
    return copy ? NULL : epctx_ort_no_memory(record->api);
}

bool epctx_ort_path_is_hidden(const char *model_path, const char *folder) {
    return *folder && epctx_str_is(epctx_path_file(epctx_str_of(model_path)), "virtual_model.onnx");
}

/* The location of an initializer in a file, if any. */
static OrtStatus *read_location(epctx_ort_record *record, const OrtValueInfo *info,
                                epctx_tensor *tensor) {
    const OrtApi *ort = record->api->ort;
    OrtExternalInitializerInfo *external = NULL;
    OrtStatus *status;
    const char *path = NULL;
    EPCTX_ORT_TRY(ort->ValueInfo_GetExternalInitializerInfo(info, &external));
    if (!external) return NULL;
    status = read_path(record, ort->ExternalInitializerInfo_GetFilePath(external), &path);
    tensor->location = epctx_path_file(epctx_str_of(path));
    tensor->offset = (uint64_t)ort->ExternalInitializerInfo_GetFileOffset(external);
    ort->ReleaseExternalInitializerInfo(external);
    return status;
}

/* A name that no input and no node of this graph explains: a constant, or (in the body of a
 * control-flow node) a value of an outer graph. Of a body that is compiled alone that is an
 * input. */
static OrtStatus *read_unknown(epctx_ort_record *record, const OrtValueInfo *info, epctx_str name,
                               epctx_map *known, epctx_value *inputs, epctx_tensor *tensors) {
    const OrtApi *ort = record->api->ort;
    bool constant = false;
    EPCTX_ORT_TRY(ort->ValueInfo_IsConstantInitializer(info, &constant));
    if (constant) {
        const OrtValue *value = NULL;
        epctx_tensor *tensor = &tensors[record->graph.initializer_count];
        EPCTX_ORT_TRY(ort->ValueInfo_GetInitializerValue(info, &value)); /* borrowed */
        if (!value) {
            return epctx_ort_fail(record->api, EPCTX_ERR_GRAPH, "initializer '%s' has no value",
                                  name.data);
        }
        EPCTX_ORT_TRY(read_tensor(record, value, tensor));
        EPCTX_ORT_TRY(read_location(record, info, tensor));
        tensor->name = name;
        record->graph.initializer_count++;
        return remember(record, known, name, FROM_CONSTANT);
    }
    if (!(record->kind & EPCTX_ORT_RECORD_BODY)) { /* a body finds it by its name */
        EPCTX_ORT_TRY(read_value(record, info, &inputs[record->graph.input_count]));
        record->graph.input_count++;
    }
    return remember(record, known, name, FROM_INPUT);
}

/* The state of reading a graph. */
typedef struct reading {
    epctx_ort_record *record;
    const OrtGraph *graph;
    const OrtNode *fused; /* its boundary counts; NULL: the graph's own */
    const OrtValueInfo ***node_inputs;
    epctx_node *nodes;
    epctx_map known;           /* known names */
    size_t end_count;          /* inputs and captures of all nodes */
    const OrtValueInfo **ends; /* outputs of the graph */
} reading;

/* Nodes, in ORT's topological order; returns how many outputs they have. */
static OrtStatus *read_nodes(reading *r, size_t *output_count) {
    epctx_ort_record *record = r->record;
    const OrtApi *ort = record->api->ort;
    const OrtValueInfo **ends;
    opset opsets = {NULL, NULL, 0};
    void *memory;
    size_t i, count;
    EPCTX_ORT_TRY(read_opsets(record, r->graph, &opsets));
    EPCTX_ORT_TRY(ort->Graph_GetNumNodes(r->graph, &count));
    EPCTX_ORT_TRY(get_memory(record, count, sizeof *record->nodes, &memory));
    record->nodes = (const OrtNode **)memory;
    if (count) EPCTX_ORT_TRY(ort->Graph_GetNodes(r->graph, record->nodes, count));
    EPCTX_ORT_TRY(get_memory(record, count, sizeof *r->nodes, &memory));
    r->nodes = (epctx_node *)memory;
    record->graph.nodes = r->nodes;
    record->graph.node_count = count;
    EPCTX_ORT_TRY(get_memory(record, count, sizeof *r->node_inputs, &memory));
    r->node_inputs = (const OrtValueInfo ***)memory;
    for (i = 0; i < count; i++) {
        EPCTX_ORT_TRY(
            read_node(record, record->nodes[i], &opsets, &r->node_inputs[i], &ends, &r->nodes[i]));
        r->nodes[i].id = (uint32_t)i;
        r->end_count += r->nodes[i].input_count + r->nodes[i].capture_count;
        *output_count += r->nodes[i].output_count;
    }
    return NULL;
}

/* Types of what the nodes produce. */
static OrtStatus *read_values(reading *r, size_t output_count) {
    epctx_ort_record *record = r->record;
    epctx_graph *out = &record->graph;
    const OrtValueInfo **ends;
    epctx_value *values;
    void *memory;
    size_t i, k, end_count;
    EPCTX_ORT_TRY(get_memory(record, output_count, sizeof *values, &memory));
    values = (epctx_value *)memory;
    out->values = values;
    for (i = 0; i < out->node_count; i++) {
        EPCTX_ORT_TRY(
            node_ends(record->api, record->nodes[i], true, &record->arena, &ends, &end_count));
        for (k = 0; k < end_count; k++) {
            if (!ends[k]) continue;
            EPCTX_ORT_TRY(read_value(record, ends[k], &values[out->value_count]));
            if (values[out->value_count].name.size == 0) continue;
            EPCTX_ORT_TRY(remember(record, &r->known, values[out->value_count].name, FROM_NODE));
            out->value_count++;
        }
    }
    return NULL;
}

/* The graph's own inputs or outputs, or those of the fused node. */
static OrtStatus *graph_ends(reading *r, bool outputs, const OrtValueInfo ***ends, size_t *count) {
    const OrtApi *ort = r->record->api->ort;
    void *memory;
    if (r->fused)
        return node_ends(r->record->api, r->fused, outputs, &r->record->arena, ends, count);
    EPCTX_ORT_TRY(outputs ? ort->Graph_GetNumOutputs(r->graph, count)
                          : ort->Graph_GetNumInputs(r->graph, count));
    EPCTX_ORT_TRY(get_memory(r->record, *count, sizeof **ends, &memory));
    *ends = (const OrtValueInfo **)memory;
    if (!*count) return NULL;
    return outputs ? ort->Graph_GetOutputs(r->graph, *ends, *count)
                   : ort->Graph_GetInputs(r->graph, *ends, *count);
}

static OrtStatus *read_outputs(reading *r) {
    epctx_ort_record *record = r->record;
    epctx_graph *out = &record->graph;
    epctx_value *values;
    void *memory;
    size_t i, count;
    EPCTX_ORT_TRY(graph_ends(r, true, &r->ends, &count));
    EPCTX_ORT_TRY(get_memory(record, count, sizeof *values, &memory));
    values = (epctx_value *)memory;
    out->outputs = values;
    for (i = 0; i < count; i++) {
        if (!r->ends[i]) continue;
        EPCTX_ORT_TRY(read_value(record, r->ends[i], &values[out->output_count]));
        out->output_count++;
    }
    return NULL;
}

/* What bodies read belongs to the cut as what the node reads does. */
static OrtStatus *read_captures(reading *r, size_t node, epctx_value *inputs,
                                epctx_tensor *tensors) {
    epctx_ort_record *record = r->record;
    const epctx_node *reader = &r->nodes[node];
    const OrtValueInfo **infos;
    void *memory;
    size_t i;
    if (reader->capture_count == 0) return NULL;
    EPCTX_ORT_TRY(get_memory(record, reader->capture_count, sizeof *infos, &memory));
    infos = (const OrtValueInfo **)memory;
    EPCTX_ORT_TRY(record->api->ort->Node_GetImplicitInputs(record->nodes[node], infos,
                                                           reader->capture_count));
    for (i = 0; i < reader->capture_count; i++) {
        const epctx_str name = reader->captures[i];
        if (epctx_map_get(&r->known, name) == EPCTX_MAP_NONE)
            EPCTX_ORT_TRY(read_unknown(record, infos[i], name, &r->known, inputs, tensors));
    }
    return NULL;
}

/* Constants, found through the nodes that use them: a graph view lists too many, the body of a
 * control-flow node too few. `inputs` has room for the values of outer graphs. Of a fused node,
 * ORT gives bodies the constants that they read. */
static OrtStatus *read_constants(reading *r, epctx_value *inputs) {
    epctx_ort_record *record = r->record;
    epctx_tensor *tensors;
    void *memory;
    size_t i, k;
    EPCTX_ORT_TRY(
        get_memory(record, r->end_count + record->graph.output_count, sizeof *tensors, &memory));
    tensors = (epctx_tensor *)memory;
    record->graph.initializers = tensors;
    for (i = 0; i < record->graph.node_count; i++) {
        for (k = 0; k < r->nodes[i].input_count; k++) {
            const epctx_str name = r->nodes[i].inputs[k];
            if (name.size == 0 || epctx_map_get(&r->known, name) != EPCTX_MAP_NONE) continue;
            EPCTX_ORT_TRY(
                read_unknown(record, r->node_inputs[i][k], name, &r->known, inputs, tensors));
        }
        if (!r->fused && !(record->kind & EPCTX_ORT_RECORD_BODY))
            EPCTX_ORT_TRY(read_captures(r, i, inputs, tensors));
    }
    for (i = 0; (record->kind & EPCTX_ORT_RECORD_BODY) && i < record->graph.output_count; i++) {
        const epctx_str name = record->graph.outputs[i].name;
        if (epctx_map_get(&r->known, name) != EPCTX_MAP_NONE) continue;
        EPCTX_ORT_TRY(read_unknown(record, r->ends[i], name, &r->known, inputs, tensors));
    }
    return NULL;
}

static OrtStatus *read_graph(epctx_ort_record *record, const OrtGraph *graph,
                             const OrtNode *fused) {
    const OrtApi *ort = record->api->ort;
    const OrtValueInfo **ends;
    epctx_value *inputs;
    epctx_map constants;
    reading r;
    const ORTCHAR_T *path = NULL;
    const char *text = NULL;
    size_t count, output_count = 0;
    memset(&r, 0, sizeof r);
    r.record = record;
    r.graph = graph;
    r.fused = fused;
    epctx_map_init(&r.known, &record->arena);
    epctx_map_init(&constants, &record->arena);
    EPCTX_ORT_TRY(ort->Graph_GetName(graph, &text));
    record->graph.name = epctx_str_of(text);
    EPCTX_ORT_TRY(ort->Graph_GetModelPath(graph, &path));
    EPCTX_ORT_TRY(read_path(record, path, &record->model_path));
    EPCTX_ORT_TRY(read_nodes(&r, &output_count));
    EPCTX_ORT_TRY(read_values(&r, output_count));
    EPCTX_ORT_TRY(graph_ends(&r, false, &ends, &count));
    if (fused) EPCTX_ORT_TRY(find_constants(record, r.node_inputs, &constants));
    EPCTX_ORT_TRY(
        read_inputs(record, ends, count, count + r.end_count, &constants, &r.known, &inputs));
    EPCTX_ORT_TRY(read_outputs(&r));
    return read_constants(&r, inputs);
}

static OrtStatus *read_record(epctx_ort_record *record, const epctx_ort_api *api,
                              const OrtGraph *graph, const OrtNode *fused, int kind) {
    OrtStatus *status;
    memset(record, 0, sizeof *record);
    record->api = api;
    record->kind = kind;
    record->model_path = "";
    epctx_arena_init(&record->arena, NULL);
    status = read_graph(record, graph, fused);
    if (status) epctx_ort_record_free(record);
    return status;
}

/* Only what is compiled is hashed. */
OrtStatus *epctx_ort_record_read(epctx_ort_record *record, const epctx_ort_api *api,
                                 const OrtGraph *graph, const OrtNode *fused) {
    return read_record(record, api, graph, fused, fused ? EPCTX_ORT_RECORD_HASHED : 0);
}

/* ORT has no graph of the node yet: its ends are all that is known, constants among them, too. */
static OrtStatus *read_parent(epctx_ort_record *record, const OrtGraph *body) {
    const OrtApi *ort = record->api->ort;
    const OrtValueInfo **inputs, **outputs, **captures;
    const OrtNode *parent = NULL;
    epctx_graph *out = &record->graph;
    epctx_map known;
    opset opsets = {NULL, NULL, 0};
    void *memory;
    epctx_node *node;
    epctx_value *values;
    size_t i;
    EPCTX_ORT_TRY(ort->Graph_GetParentNode(body, &parent));
    EPCTX_ORT_TRY(read_opsets(record, body, &opsets));
    EPCTX_ORT_TRY(get_memory(record, 1, sizeof *node, &memory));
    out->nodes = node = (epctx_node *)memory;
    out->node_count = 1;
    EPCTX_ORT_TRY(read_node(record, parent, &opsets, &inputs, &outputs, node));
    EPCTX_ORT_TRY(get_memory(record, node->capture_count, sizeof *captures, &memory));
    captures = (const OrtValueInfo **)memory;
    if (node->capture_count)
        EPCTX_ORT_TRY(ort->Node_GetImplicitInputs(parent, captures, node->capture_count));
    epctx_map_init(&known, &record->arena);
    EPCTX_ORT_TRY(
        get_memory(record, node->input_count + node->capture_count, sizeof *values, &memory));
    out->inputs = values = (epctx_value *)memory;
    for (i = 0; i < node->input_count + node->capture_count; i++) {
        const OrtValueInfo *end =
            i < node->input_count ? inputs[i] : captures[i - node->input_count];
        if (!end) continue;
        EPCTX_ORT_TRY(read_value(record, end, &values[out->input_count]));
        if (epctx_map_get(&known, values[out->input_count].name) != EPCTX_MAP_NONE) continue;
        EPCTX_ORT_TRY(remember(record, &known, values[out->input_count].name, FROM_INPUT));
        out->input_count++;
    }
    EPCTX_ORT_TRY(get_memory(record, node->output_count, sizeof *values, &memory));
    out->outputs = values = (epctx_value *)memory;
    for (i = 0; i < node->output_count; i++)
        if (outputs[i]) EPCTX_ORT_TRY(read_value(record, outputs[i], &values[out->output_count++]));
    return NULL;
}

OrtStatus *epctx_ort_record_read_parent(epctx_ort_record *record, const epctx_ort_api *api,
                                        const OrtGraph *body) {
    OrtStatus *status;
    memset(record, 0, sizeof *record);
    record->api = api;
    record->model_path = "";
    epctx_arena_init(&record->arena, NULL);
    status = read_parent(record, body);
    if (status) epctx_ort_record_free(record);
    return status;
}

void epctx_ort_record_free(epctx_ort_record *record) {
    size_t i;
    for (; record->inner; record->inner = record->inner->next) epctx_ort_record_free(record->inner);
    for (i = 0; i < record->held_count; i++) record->api->ort->ReleaseValue(record->held[i]);
    record->held_count = 0;
    epctx_arena_free(&record->arena);
}
