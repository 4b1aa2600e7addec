/* A small model on a desk, to be edited and written, and what a refusal looks like. The program
 * defines _XOPEN_SOURCE 700 first. */
#ifndef EPCTX_TEST_EDIT_H
#define EPCTX_TEST_EDIT_H

#include "files.h"

static const int64_t vector[] = {4, -1};
static const float weights[] = {1, 2, 3, 4};

TEST_UNUSED static void add_ends(bytes *graph, const char *x, const char *y) {
    put_str(graph, 2, "g");
    add_value(graph, GRAPH_INPUT, x, EPCTX_ONNX_FLOAT, vector);
    add_value(graph, GRAPH_OUTPUT, y, EPCTX_ONNX_FLOAT, vector);
}

/* x -> first -> second -> y */
TEST_UNUSED static bytes sample(void) {
    bytes graph = {0};
    add_node(&graph, "Relu", "first", "x", "t");
    add_node(&graph, "Relu", "second", "t", "y");
    add_floats(&graph, "w", weights, 4);
    add_ends(&graph, "x", "y");
    return new_model(&graph);
}

TEST_UNUSED static epctx_node_view node_at(const epctx_model *model, int number) {
    epctx_cursor it = epctx_view_graph_nodes(epctx_model_graph(model));
    epctx_node_view node = {0};
    for (int i = 0; i <= number; i++)
        if (!epctx_next_node(&it, &node)) break;
    return node;
}

/* The field with the name of the first node. */
TEST_UNUSED static epctx_view node_name(const epctx_model *model) {
    epctx_cursor it = epctx_view_fields(node_at(model, 0).view, 3);
    epctx_field field = {0};
    (void)epctx_next_field(&it, &field);
    return field.body;
}

TEST_UNUSED static epctx_view tensor_at(const epctx_model *model) {
    epctx_cursor it = epctx_view_graph_initializers(epctx_model_graph(model));
    epctx_tensor_view tensor = {0};
    (void)epctx_next_tensor(&it, &tensor);
    return tensor.view;
}

TEST_UNUSED static epctx_view no_view(void) {
    epctx_view view = {NULL, NULL, 0};
    return view;
}

/* Writing the model gives `data`. */
TEST_UNUSED static bool untouched(epctx_model *model, const bytes *data) {
    bytes now = written(model);
    bool same = bytes_equal(&now, data->data, data->size);
    bytes_free(&now);
    return same;
}

typedef struct desk {
    bytes data;
    epctx_model model;
    epctx_error error;
} desk;

TEST_UNUSED static bool desk_open(desk *d, bytes data) {
    memset(d, 0, sizeof *d);
    d->data = data;
    return epctx_model_open_memory(&d->model, data.data, data.size, NULL, &d->error) == EPCTX_OK;
}

TEST_UNUSED static void desk_close(desk *d) {
    epctx_model_close(&d->model);
    bytes_free(&d->data);
}

/* The call fails as wanted, with `text` in `error`, and all is as before: `same` says so. */
#define CHECK_REFUSED(call, wanted, error, text, same) \
    do { \
        epctx_status found_ = (call); \
        CHECK(found_ == (wanted), "%s: %s", epctx_status_name(found_), (error).message); \
        CHECK_HAS((error).message, text); \
        CHECK(same, "a refusal changes something"); \
    } while (0)

/* Of a call on the model of a desk, or of a fixture that has these members, too. */
#define REFUSES(d, call, wanted, text) \
    CHECK_REFUSED(call, wanted, (d)->error, text, untouched(&(d)->model, &(d)->data))

#endif
