/* views.h - views of rarely used messages, in addition to those of epctx.h. */
#ifndef EPCTX_OPS_VIEWS_H
#define EPCTX_OPS_VIEWS_H

#include "epctx.h"

#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* FunctionProto. */
typedef struct epctx_function_view {
    epctx_view view;
    epctx_str name, domain, overload, doc_string;
    uint32_t input_count, output_count, node_count;
} epctx_function_view;

typedef enum epctx_type_kind { /* the member of TypeProto's oneof, by field number */
                               EPCTX_TYPE_NONE = 0,
                               EPCTX_TYPE_TENSOR = 1,
                               EPCTX_TYPE_SEQUENCE = 4,
                               EPCTX_TYPE_MAP = 5,
                               EPCTX_TYPE_OPAQUE = 7,
                               EPCTX_TYPE_SPARSE = 8,
                               EPCTX_TYPE_OPTIONAL = 9
} epctx_type_kind;

/* TypeProto; the kind is EPCTX_TYPE_NONE if there is no type. */
typedef struct epctx_type_view {
    epctx_view view;
    epctx_type_kind kind;
    int32_t elem_type; /* of tensors and sparse tensors; the key type of maps */
    bool has_shape;
    epctx_view shape;   /* TensorShapeProto */
    epctx_view element; /* TypeProto of a sequence's or optional's element, of a map's value */
    epctx_str denotation;
} epctx_type_view;

/* SparseTensorProto. */
typedef struct epctx_sparse_view {
    epctx_view view;
    epctx_tensor_view values, indices; /* `values` has the name */
} epctx_sparse_view;

/* TensorAnnotation: the quantization parameters of a value. */
typedef struct epctx_annotation_view {
    epctx_view view;
    epctx_str tensor_name;
} epctx_annotation_view;

/* TrainingInfoProto. */
typedef struct epctx_training_view {
    epctx_view view;
    epctx_graph_view initialization, algorithm; /* view empty when absent */
} epctx_training_view;

/* The last payload in a field, as libprotobuf reads it; if there is none, it does not exist. */
static inline epctx_view ops_last_view(epctx_view message, uint32_t number) {
    epctx_cursor it = epctx_view_fields(message, number);
    epctx_view last = epctx_view_none();
    while (epctx_next_view(&it, &last)) {
    }
    return last;
}

static inline epctx_str ops_last_str(epctx_view message, uint32_t number) {
    return epctx_view_str(ops_last_view(message, number));
}

/* The last varint in a field, or 0. */
static inline int64_t ops_last_int(epctx_view message, uint32_t number) {
    epctx_cursor it = epctx_view_fields(message, number);
    epctx_field field;
    int64_t last = 0;
    while (epctx_next_field(&it, &field))
        if (field.wire == EPCTX_WIRE_VARINT) last = (int64_t)field.value;
    return last;
}

/* A FunctionProto, e.g. one of epctx_model_functions. */
static inline epctx_function_view epctx_function_of(epctx_view view) {
    epctx_function_view f;
    f.view = view;
    f.name = ops_last_str(view, EPCTX_FIELD_FUNCTION_NAME);
    f.domain = ops_last_str(view, EPCTX_FIELD_FUNCTION_DOMAIN);
    f.overload = ops_last_str(view, EPCTX_FIELD_FUNCTION_OVERLOAD);
    f.doc_string = ops_last_str(view, EPCTX_FIELD_FUNCTION_DOC_STRING);
    f.input_count =
        (uint32_t)epctx_cursor_count(epctx_view_fields(view, EPCTX_FIELD_FUNCTION_INPUT));
    f.output_count =
        (uint32_t)epctx_cursor_count(epctx_view_fields(view, EPCTX_FIELD_FUNCTION_OUTPUT));
    f.node_count = (uint32_t)epctx_cursor_count(epctx_view_fields(view, EPCTX_FIELD_FUNCTION_NODE));
    return f;
}

/* A TypeProto, e.g. epctx_value_view.type. */
static inline epctx_type_view epctx_type_of(epctx_view view) {
    epctx_type_view type;
    epctx_view member = epctx_view_none();
    epctx_cursor it = epctx_view_fields(view, 0);
    epctx_field f;
    bool tensor;
    memset(&type, 0, sizeof type);
    type.view = view;
    /* A oneof: the last member wins. */
    while (epctx_next_field(&it, &f)) {
        const epctx_field_info *info = epctx_field_find(EPCTX_KIND_TYPE, f.number);
        if (f.wire == EPCTX_WIRE_LEN && f.number == EPCTX_FIELD_TYPE_DENOTATION) {
            type.denotation = epctx_view_str(f.body);
        } else if (info != NULL && epctx_field_fits(info, f.wire)) {
            type.kind = (epctx_type_kind)f.number;
            member = f.body;
        }
    }
    tensor = type.kind == EPCTX_TYPE_TENSOR || type.kind == EPCTX_TYPE_SPARSE;
    it = epctx_view_fields(type.kind == EPCTX_TYPE_OPAQUE ? epctx_view_none() : member, 0);
    while (epctx_next_field(&it, &f)) {
        /* The same numbers in all of them. */
        if (f.number == EPCTX_FIELD_TYPE_TENSOR_ELEM_TYPE && f.wire == EPCTX_WIRE_VARINT) {
            type.elem_type = (int32_t)(uint32_t)f.value;
        } else if (f.wire == EPCTX_WIRE_LEN && tensor &&
                   f.number == EPCTX_FIELD_TYPE_TENSOR_SHAPE) {
            type.has_shape = true;
            type.shape = f.body;
        } else if (f.wire == EPCTX_WIRE_LEN && !tensor &&
                   f.number == (type.kind == EPCTX_TYPE_MAP
                                    ? (uint32_t)EPCTX_FIELD_TYPE_MAP_VALUE_TYPE
                                    : (uint32_t)EPCTX_FIELD_TYPE_SEQUENCE_ELEM_TYPE)) {
            type.element = f.body;
        }
    }
    return type;
}

/* A SparseTensorProto. */
static inline epctx_sparse_view epctx_sparse_of(epctx_view view) {
    epctx_sparse_view sparse;
    sparse.view = view;
    sparse.values = epctx_view_as_tensor(ops_last_view(view, EPCTX_FIELD_SPARSE_VALUES));
    sparse.indices = epctx_view_as_tensor(ops_last_view(view, EPCTX_FIELD_SPARSE_INDICES));
    return sparse;
}

/* A TensorAnnotation. */
static inline epctx_annotation_view epctx_annotation_of(epctx_view view) {
    epctx_annotation_view annotation;
    annotation.view = view;
    annotation.tensor_name = ops_last_str(view, EPCTX_FIELD_ANNOTATION_TENSOR_NAME);
    return annotation;
}

/* A TrainingInfoProto. */
static inline epctx_training_view epctx_training_of(epctx_view view) {
    epctx_training_view training;
    training.view = view;
    training.initialization =
        epctx_view_as_graph(ops_last_view(view, EPCTX_FIELD_TRAINING_INITIALIZATION));
    training.algorithm = epctx_view_as_graph(ops_last_view(view, EPCTX_FIELD_TRAINING_ALGORITHM));
    return training;
}

/* The next one of a cursor; false at the end. */
static inline bool epctx_next_sparse(epctx_cursor *cursor, epctx_sparse_view *sparse) {
    epctx_view view;
    bool more = epctx_next_view(cursor, &view);
    if (more) *sparse = epctx_sparse_of(view);
    return more;
}

/* The next one of a cursor; false at the end. */
static inline bool epctx_next_annotation(epctx_cursor *cursor, epctx_annotation_view *annotation) {
    epctx_view view;
    bool more = epctx_next_view(cursor, &view);
    if (more) *annotation = epctx_annotation_of(view);
    return more;
}

/* The next one of a cursor; false at the end. */
static inline bool epctx_next_training(epctx_cursor *cursor, epctx_training_view *training) {
    epctx_view view;
    bool more = epctx_next_view(cursor, &view);
    if (more) *training = epctx_training_of(view);
    return more;
}

/* The next one of a cursor; false at the end. */
static inline bool epctx_next_function(epctx_cursor *cursor, epctx_function_view *function) {
    epctx_view view;
    bool more = epctx_next_view(cursor, &view);
    if (more) *function = epctx_function_of(view);
    return more;
}

/* For epctx_next_opset. */
static inline epctx_cursor epctx_function_opsets(const epctx_function_view *function) {
    return epctx_view_fields(function->view, EPCTX_FIELD_FUNCTION_OPSET_IMPORT);
}

/* For epctx_next_node. */
static inline epctx_cursor epctx_function_nodes(const epctx_function_view *function) {
    return epctx_view_fields(function->view, EPCTX_FIELD_FUNCTION_NODE);
}

/* For epctx_next_str. */
static inline epctx_cursor epctx_function_inputs(const epctx_function_view *function) {
    return epctx_view_fields(function->view, EPCTX_FIELD_FUNCTION_INPUT);
}

/* For epctx_next_str. */
static inline epctx_cursor epctx_function_outputs(const epctx_function_view *function) {
    return epctx_view_fields(function->view, EPCTX_FIELD_FUNCTION_OUTPUT);
}

/* For epctx_next_dim. */
static inline epctx_cursor epctx_type_dims(const epctx_type_view *type) {
    return epctx_view_fields(type->shape, EPCTX_FIELD_SHAPE_DIM);
}

/* For epctx_next_training. */
static inline epctx_cursor epctx_model_trainings(const epctx_model *model) {
    return epctx_view_fields(epctx_model_read(model).view, EPCTX_FIELD_MODEL_TRAINING_INFO);
}

/* sparse_initializer */
static inline epctx_cursor epctx_graph_sparse(epctx_graph_view graph) {
    return epctx_view_fields(graph.view, EPCTX_FIELD_GRAPH_SPARSE_INITIALIZER);
}

/* For epctx_next_annotation. */
static inline epctx_cursor epctx_graph_annotations(epctx_graph_view graph) {
    return epctx_view_fields(graph.view, EPCTX_FIELD_GRAPH_QUANTIZATION_ANNOTATION);
}

/* Quantization parameters: "SCALE_TENSOR" -> value name. For epctx_next_pair. */
static inline epctx_cursor epctx_annotation_pairs(const epctx_annotation_view *annotation) {
    return epctx_view_fields(annotation->view, EPCTX_FIELD_ANNOTATION_QUANT_PARAMETER_TENSOR_NAMES);
}

#ifdef __cplusplus
}
#endif

#endif
