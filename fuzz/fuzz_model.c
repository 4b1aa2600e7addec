/*
 * Opens any bytes as a model. What is accepted is read through every view, loaded as a graph
 * record, edited, the edits undone, taken apart and written: the same bytes must come out.
 */
#include <stdlib.h>
#include <string.h>

#include "epctx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition) abort();
}

static size_t read_str(epctx_str text)
{
    size_t sum = 0, i;
    for (i = 0; i < text.size; i++)
        sum += (unsigned char)text.data[i];
    return sum;
}

static void read_values(epctx_cursor values)
{
    epctx_value_view value;
    while (epctx_next_value(&values, &value)) {
        epctx_cursor dims = epctx_value_dims(&value);
        epctx_dim dim;
        read_str(value.name);
        while (epctx_next_dim(&dims, &dim))
            read_str(dim.param);
    }
}

static void read_graph(epctx_graph_view graph)
{
    epctx_cursor nodes = epctx_graph_nodes(graph), tensors = epctx_graph_initializers(graph);
    epctx_node_view node;
    epctx_tensor_view tensor;
    while (epctx_next_node(&nodes, &node)) {
        epctx_cursor attrs = epctx_node_attrs(&node), names = epctx_node_inputs(&node);
        epctx_attr_view attr;
        epctx_epnode context;
        epctx_str name;
        uint32_t count = 0;
        while (epctx_next_str(&names, &name)) {
            read_str(name);
            count++;
        }
        require(count == node.input_count);
        while (epctx_next_attr(&attrs, &attr)) {
            read_str(attr.s);
            if (attr.g.data != NULL || attr.g.slot != NULL) read_graph(epctx_graph_of(attr.g));
            if (attr.t.data != NULL || attr.t.slot != NULL) epctx_tensor_of(attr.t);
        }
        if (epctx_is_epnode(&node)) epctx_epnode_read(&node, &context, NULL);
    }
    while (epctx_next_tensor(&tensors, &tensor)) {
        epctx_cursor dims = epctx_tensor_dims(&tensor);
        int64_t dim;
        while (epctx_next_int(&dims, &dim)) {
        }
    }
    read_values(epctx_graph_inputs(graph));
    read_values(epctx_graph_outputs(graph));
    read_values(epctx_graph_values(graph));
}

static void require_same(epctx_model *model, const uint8_t *data, size_t size)
{
    uint8_t *copy = (uint8_t *)malloc(size + 1);
    pb_ostream_t stream = pb_ostream_from_buffer(copy, size);
    require(copy != NULL);
    require(epctx_model_size(model) == size);
    require(epctx_model_write_stream(model, &stream, NULL) == EPCTX_OK);
    require(stream.bytes_written == size && memcmp(copy, data, size) == 0);
    free(copy);
}

/* Edits that a compilation makes; the model may be too strange for any of them. */
static void edit(epctx_model *model)
{
    epctx_cursor nodes = epctx_graph_nodes(epctx_model_graph(model));
    epctx_node_view node;
    epctx_put_opset(model, epctx_str_of("com.microsoft"), 1, NULL);
    epctx_put_metadata(model, epctx_str_of("key"), epctx_str_of("value"), NULL);
    if (epctx_next_node(&nodes, &node)) epctx_remove(model, node.view, NULL);
    epctx_model_size(model);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    epctx_model model;
    epctx_graph graph;
    epctx_error error;
    size_t mark;
    if (epctx_model_open_memory(&model, data, size, NULL, &error) != EPCTX_OK) {
        require(error.status != EPCTX_OK && error.message[0] != '\0');
        return 0;
    }
    if (epctx_model_has_graph(&model)) read_graph(epctx_model_graph(&model));
    epctx_graph_load(&model, &graph, NULL);
    mark = epctx_edit_mark(&model);
    edit(&model);
    epctx_undo(&model, mark);
    require_same(&model, data, size);
    require(epctx_rebuild(&model, NULL) == EPCTX_OK);
    require_same(&model, data, size);
    epctx_model_close(&model);
    return 0;
}
