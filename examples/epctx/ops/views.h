/* views.h - views of messages that few programs read, beside those of epctx.h. */
#ifndef EPCTX_OPS_VIEWS_H
#define EPCTX_OPS_VIEWS_H

#include "epctx.h"

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

/* The last payload in a field, as libprotobuf reads it; it does not exist when there is none. */
static inline epctx_view ops_last_view(epctx_view message, uint32_t number)
{
    epctx_cursor it = epctx_view_fields(message, number);
    epctx_view last = epctx_view_none();
    while (epctx_next_view(&it, &last)) {
    }
    return last;
}

static inline epctx_sparse_view epctx_sparse_of(epctx_view view)
{
    epctx_sparse_view sparse;
    sparse.view = view;
    sparse.values = epctx_tensor_of(ops_last_view(view, EPCTX_FIELD_SPARSE_VALUES));
    sparse.indices = epctx_tensor_of(ops_last_view(view, EPCTX_FIELD_SPARSE_INDICES));
    return sparse;
}

static inline epctx_annotation_view epctx_annotation_of(epctx_view view)
{
    epctx_annotation_view annotation;
    annotation.view = view;
    annotation.tensor_name =
        epctx_view_str(ops_last_view(view, EPCTX_FIELD_ANNOTATION_TENSOR_NAME));
    return annotation;
}

static inline epctx_training_view epctx_training_of(epctx_view view)
{
    epctx_training_view training;
    training.view = view;
    training.initialization =
        epctx_graph_of(ops_last_view(view, EPCTX_FIELD_TRAINING_INITIALIZATION));
    training.algorithm = epctx_graph_of(ops_last_view(view, EPCTX_FIELD_TRAINING_ALGORITHM));
    return training;
}

/* The next one of a cursor; false at the end. */
static inline bool epctx_next_sparse(epctx_cursor *cursor, epctx_sparse_view *sparse)
{
    epctx_view view;
    bool more = epctx_next_view(cursor, &view);
    if (more) {
        *sparse = epctx_sparse_of(view);
    }
    return more;
}

static inline bool epctx_next_annotation(epctx_cursor *cursor, epctx_annotation_view *annotation)
{
    epctx_view view;
    bool more = epctx_next_view(cursor, &view);
    if (more) {
        *annotation = epctx_annotation_of(view);
    }
    return more;
}

static inline bool epctx_next_training(epctx_cursor *cursor, epctx_training_view *training)
{
    epctx_view view;
    bool more = epctx_next_view(cursor, &view);
    if (more) {
        *training = epctx_training_of(view);
    }
    return more;
}

static inline epctx_cursor epctx_model_trainings(const epctx_model *model)
{
    return epctx_view_fields(epctx_model_read(model).view, EPCTX_FIELD_MODEL_TRAINING_INFO);
}

/* sparse_initializer */
static inline epctx_cursor epctx_graph_sparse(epctx_graph_view graph)
{
    return epctx_view_fields(graph.view, EPCTX_FIELD_GRAPH_SPARSE_INITIALIZER);
}

static inline epctx_cursor epctx_graph_annotations(epctx_graph_view graph)
{
    return epctx_view_fields(graph.view, EPCTX_FIELD_GRAPH_QUANTIZATION_ANNOTATION);
}

/* Quantization parameters: "SCALE_TENSOR" -> value name. For epctx_next_pair. */
static inline epctx_cursor epctx_annotation_pairs(const epctx_annotation_view *annotation)
{
    return epctx_view_fields(annotation->view, EPCTX_FIELD_ANNOTATION_QUANT_PARAMETER_TENSOR_NAMES);
}

#endif
