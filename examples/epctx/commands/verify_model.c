/* epctx verify: the types of a model, its random nodes, and its weights with less precision. */
#include "verify_model.h"
#include "ops/views.h"

#include <stdlib.h>
#include <string.h>

/* -- the coarsest type -- */

static void coarser(int32_t *found, int32_t elem_type) {
    if (elem_type == EPCTX_ONNX_BFLOAT16 ||
        (elem_type == EPCTX_ONNX_FLOAT16 && *found == EPCTX_ONNX_FLOAT))
        *found = elem_type;
}

static void coarsest_value(int32_t *found, epctx_cursor values) {
    epctx_value_view value;
    while (epctx_next_value(&values, &value)) coarser(found, value.elem_type);
}

int32_t verify_coarsest(const epctx_model *model) {
    int32_t found = EPCTX_ONNX_FLOAT;
    epctx_walk walk;
    epctx_walk_begin(&walk, model);
    while (epctx_walk_step(&walk)) {
        if (walk.kind == EPCTX_KIND_TENSOR) {
            coarser(&found, epctx_view_as_tensor(walk.view).elem_type);
        } else if (walk.kind == EPCTX_KIND_NODE) {
            const epctx_node_view node = epctx_view_as_node(walk.view);
            epctx_attr_view to;
            if (epctx_str_is(node.op_type, "Cast") && epctx_view_node_find_attr(&node, "to", &to))
                coarser(&found, (int32_t)(to.i & 0xff));
        } else if (walk.kind == EPCTX_KIND_GRAPH) {
            const epctx_graph_view graph = epctx_view_as_graph(walk.view);
            coarsest_value(&found, epctx_view_graph_inputs(graph));
            coarsest_value(&found, epctx_view_graph_values(graph));
            coarsest_value(&found, epctx_view_graph_outputs(graph));
        }
    }
    return found;
}

/* -- numbers that are drawn -- */

static bool draws(epctx_str op_type) {
    static const char *const all[] = {"RandomNormal",      "RandomNormalLike", "RandomUniform",
                                      "RandomUniformLike", "Multinomial",      "Bernoulli"};
    size_t i;
    for (i = 0; i < sizeof all / sizeof *all; i++)
        if (epctx_str_is(op_type, all[i])) return true;
    return false;
}

typedef struct drawn {
    epctx_map functions; /* names of those that draw */
    epctx_map *values;
    epctx_node_view *example;
} drawn;

static epctx_status note_functions(drawn *d, const epctx_model *model, epctx_error *error) {
    epctx_cursor it = epctx_model_functions(model);
    epctx_function_view function;
    while (epctx_next_function(&it, &function)) {
        epctx_walk walk;
        epctx_node_view node;
        bool found = false;
        epctx_walk_below(&walk, function.view, EPCTX_KIND_FUNCTION);
        while (!found && epctx_walk_next(&walk, &node)) found = draws(node.op_type);
        if (found && epctx_map_put(&d->functions, function.name, 1) != EPCTX_OK)
            return epctx_fail(error, EPCTX_ERR_NOMEM, "out of memory");
    }
    return EPCTX_OK;
}

/* A node, or one in its bodies, draws or reads what depends on it. */
static bool depends(const drawn *d, const epctx_node_view *node) {
    epctx_walk walk;
    epctx_node_view inner;
    epctx_str name;
    epctx_walk_below(&walk, node->view, EPCTX_KIND_NODE);
    while (epctx_walk_next(&walk, &inner)) {
        epctx_cursor inputs = epctx_view_node_inputs(&inner);
        if (draws(inner.op_type) || epctx_map_get(&d->functions, inner.op_type) != EPCTX_MAP_NONE) {
            if (d->example->op_type.size == 0) *d->example = inner;
            return true;
        }
        while (epctx_next_str(&inputs, &name))
            if (name.size > 0 && epctx_map_get(d->values, name) != EPCTX_MAP_NONE) return true;
    }
    return false;
}

/* The model is closed before its outputs are compared. */
static bool keep_name(epctx_map *values, epctx_str name) {
    const char *kept = name.size > 0 ? epctx_arena_copy(values->arena, name) : "";
    return kept != NULL && epctx_map_put(values, epctx_str_of(kept), 1) == EPCTX_OK;
}

epctx_status verify_find_drawn(const epctx_model *model, epctx_map *values,
                               epctx_node_view *example, epctx_error *error) {
    drawn d;
    epctx_cursor nodes;
    epctx_node_view node;
    epctx_str name;
    epctx_status status;
    memset(&d, 0, sizeof d);
    memset(example, 0, sizeof *example);
    d.values = values;
    d.example = example;
    epctx_map_init(&d.functions, values->arena);
    status = note_functions(&d, model, error);
    if (status != EPCTX_OK || !epctx_model_has_graph(model)) return status;
    nodes = epctx_view_graph_nodes(epctx_model_graph(model));
    while (
        epctx_next_node(&nodes, &node)) { /* those that make something stand before its readers */
        epctx_cursor outputs = epctx_view_node_outputs(&node);
        if (!depends(&d, &node)) continue;
        while (epctx_next_str(&outputs, &name))
            if (!keep_name(values, name))
                return epctx_fail(error, EPCTX_ERR_NOMEM, "out of memory");
    }
    return EPCTX_OK;
}

/* -- rounding to bfloat16 -- */

/* To the nearest, ties to even; NaN and infinity stay. The sign and the exponent are in front. */
static uint32_t rounded(uint32_t bits) {
    if ((bits & 0x7f800000) == 0x7f800000) return bits;
    return (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
}

static void round_values(uint8_t *data, size_t size) {
    size_t i;
    for (i = 0; i + 4 <= size; i += 4) {
        uint32_t bits;
        memcpy(&bits, data + i, 4);
        bits = rounded(bits);
        memcpy(data + i, &bits, 4);
    }
}

void verify_round_values(const tensor_list *list) {
    size_t i;
    for (i = 0; i < list->count; i++)
        if (list->values[i]->type.elem_type == EPCTX_ONNX_FLOAT)
            round_values(list->values[i]->data, list->values[i]->size);
}

/* As values, but little-endian on every processor: that is how a model has them. */
static void round_stored(uint8_t *data, size_t size) {
    size_t i;
    for (i = 0; i + 4 <= size; i += 4) {
        uint32_t bits = (uint32_t)data[i] | (uint32_t)data[i + 1] << 8 |
                        (uint32_t)data[i + 2] << 16 | (uint32_t)data[i + 3] << 24;
        bits = rounded(bits);
        data[i] = 0;
        data[i + 1] = 0;
        data[i + 2] = (uint8_t)(bits >> 16);
        data[i + 3] = (uint8_t)(bits >> 24);
    }
}

enum { FLOAT_DATA = 4 }; /* of TensorProto */

/* The bytes of a view, in the copy. */
static void round_span(const epctx_model *model, uint8_t *copy, const uint8_t *data, size_t size) {
    if (data < model->bytes.data || size > model->bytes.size ||
        (size_t)(data - model->bytes.data) > model->bytes.size - size)
        return;
    round_stored(copy + (data - model->bytes.data), size);
}

epctx_status verify_round_weights(const epctx_model *model, const char *path, epctx_error *error) {
    uint8_t *copy = (uint8_t *)malloc(model->bytes.size + 1);
    epctx_status status = EPCTX_OK;
    epctx_tensor_view tensor;
    epctx_walk walk;
    if (copy == NULL) return epctx_fail(error, EPCTX_ERR_NOMEM, "out of memory");
    memcpy(copy, model->bytes.data, model->bytes.size);
    epctx_walk_begin(&walk, model);
    while (status == EPCTX_OK && epctx_walk_tensor(&walk, &tensor)) {
        epctx_cursor it = epctx_view_fields(tensor.view, FLOAT_DATA);
        epctx_field field;
        if (tensor.external)
            status = epctx_fail(error, EPCTX_ERR_LIMIT, "weights lie in other files");
        if (status != EPCTX_OK || tensor.elem_type != EPCTX_ONNX_FLOAT) continue;
        if (tensor.has_raw) round_span(model, copy, tensor.raw.data, tensor.raw.size);
        while (epctx_next_field(&it, &field))
            if (field.wire == EPCTX_WIRE_LEN)
                round_span(model, copy, field.body.data, field.body.size);
    }
    if (status == EPCTX_OK)
        status = epctx_write_bytes(cli_io(), path, copy, model->bytes.size, NULL, error);
    free(copy);
    return status;
}
