/* dims.c - fixes dynamic dimensions of a model. */
#include "dims.h"

typedef struct dims_work {
    epctx_model *model;
    int64_t value;
    size_t count; /* of dimensions that were set */
    epctx_error *error;
} dims_work;

static epctx_status dims_set(dims_work *w, epctx_view dim) {
    w->count++;
    return epctx_edit_set_field_int(w->model, dim, EPCTX_FIELD_DIM_DIM_VALUE, w->value, w->error);
}

/* Sets the dimensions `param` of the values in field `number` of a graph. */
static epctx_status dims_of_values(dims_work *w, epctx_view graph, uint32_t number,
                                   epctx_str param) {
    epctx_cursor values = epctx_view_fields(graph, number);
    epctx_value_view value;
    while (epctx_next_value(&values, &value)) {
        epctx_cursor dims = epctx_view_value_dims(&value);
        epctx_view view;
        while (epctx_next_view(&dims, &view)) {
            epctx_dim dim = epctx_view_as_dim(view);
            if (!dim.known && dim.param.size > 0 && epctx_str_eq(dim.param, param))
                OPS_TRY(dims_set(w, view));
        }
    }
    return EPCTX_OK;
}

static epctx_status dims_fix_named(dims_work *w, epctx_str param) {
    epctx_walk walk;
    epctx_graph_view graph;
    epctx_walk_begin(&walk, w->model);
    while (epctx_walk_graph(&walk, &graph) && !walk.in_function && !walk.in_training) {
        OPS_TRY(dims_of_values(w, graph.view, EPCTX_FIELD_GRAPH_INPUT, param));
        OPS_TRY(dims_of_values(w, graph.view, EPCTX_FIELD_GRAPH_OUTPUT, param));
        OPS_TRY(dims_of_values(w, graph.view, EPCTX_FIELD_GRAPH_VALUE_INFO, param));
    }
    return w->count > 0 ? EPCTX_OK
                        : epctx_fail(w->error, EPCTX_ERR_NOT_FOUND,
                                     "no dimension has the name '%S'", &param);
}

/* Dimension `axis` of a graph input. */
static epctx_status dims_find(const dims_work *w, epctx_str input, uint32_t axis, epctx_view *out) {
    epctx_cursor inputs = epctx_view_graph_inputs(epctx_model_graph(w->model));
    epctx_value_view value;
    epctx_cursor dims;
    uint32_t at = 0;
    do {
        if (!epctx_next_value(&inputs, &value)) {
            return epctx_fail(w->error, EPCTX_ERR_NOT_FOUND, "there is no graph input '%S'",
                              &input);
        }
    } while (!epctx_str_eq(value.name, input));
    dims = epctx_view_value_dims(&value);
    while (epctx_next_view(&dims, out))
        if (at++ == axis) return EPCTX_OK;
    return epctx_fail(w->error, EPCTX_ERR_NOT_FOUND,
                      value.has_shape ? "input '%S' has %u dimensions and no number %u"
                                      : "input '%S' has no shape with a known number of dimensions "
                                        "(%u known) and no number %u",
                      &input, (uint64_t)at, (uint64_t)axis);
}

static epctx_status dims_fix_input(dims_work *w, epctx_str input, uint32_t axis) {
    epctx_view view;
    epctx_dim dim;
    OPS_TRY(dims_find(w, input, axis, &view));
    dim = epctx_view_as_dim(view);
    if (!dim.known && dim.param.size > 0) return dims_fix_named(w, dim.param);
    if (!dim.known || dim.value < 0) /* a negative number means dynamic */
        return dims_set(w, view);
    return dim.value == w->value ? EPCTX_OK
                                 : epctx_fail(w->error, EPCTX_ERR_GRAPH,
                                              "dimension %u of input '%S' is %d and cannot be %d",
                                              (uint64_t)axis, &input, dim.value, w->value);
}

static epctx_status dims_begin(dims_work *w, epctx_model *model, int64_t value, size_t *count,
                               epctx_error *error) {
    epctx_error_clear(error);
    if (count != NULL) *count = 0;
    w->model = model;
    w->value = value;
    w->count = 0;
    w->error = error;
    return value > 0
               ? EPCTX_OK
               : epctx_fail(error, EPCTX_ERR_ARG, "a dimension must be 1 or more, not %d", value);
}

static epctx_status dims_end(dims_work *w, size_t mark, epctx_status status, size_t *count) {
    if (status == EPCTX_OK && count != NULL) *count = w->count;
    return ops_end(w->model, mark, status, w->error);
}

epctx_status epctx_fix_dim(epctx_model *model, epctx_str param, int64_t value, size_t *count,
                           epctx_error *error) {
    size_t mark = epctx_edit_mark(model);
    dims_work w;
    OPS_TRY(dims_begin(&w, model, value, count, error));
    return dims_end(&w, mark, dims_fix_named(&w, param), count);
}

epctx_status epctx_fix_input_dim(epctx_model *model, epctx_str input, uint32_t axis, int64_t value,
                                 size_t *count, epctx_error *error) {
    size_t mark = epctx_edit_mark(model);
    dims_work w;
    OPS_TRY(dims_begin(&w, model, value, count, error));
    return dims_end(&w, mark, dims_fix_input(&w, input, axis), count);
}
