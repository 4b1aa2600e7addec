/* The graphs of a model for the page of `epctx view`. */
#define _POSIX_C_SOURCE 200809L

#include "core/values.h"
#include "view.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum {
    SHOWN_TEXT = 240,   /* bytes of a text attribute */
    SHOWN_NUMBERS = 24, /* elements of a list */
    DEEPEST = 100
};

typedef struct writer {
    json_writer *json;
    FILE *text; /* a type is put together here */
    char *text_data;
    size_t text_size;
} writer;

static void put_graph(writer *w, const char *kind, epctx_graph_view graph, uint32_t depth);

/* The beginning of a long text. */
static void put_short(const writer *w, const char *key, epctx_str text) {
    epctx_str cut = text;
    size_t size = 0;
    for (cut.size = 0; cut.size < text.size && cut.size < SHOWN_TEXT; cut.size += size)
        (void)epctx_str_char(text, cut.size, &size);
    json_str(w->json, key, cut);
}

static void put_names(const writer *w, const char *key, epctx_cursor names) {
    epctx_str name;
    json_array(w->json, key, JSON_TIGHT);
    while (epctx_next_str(&names, &name)) json_str(w->json, NULL, name);
    json_end(w->json);
}

static void put_type(writer *w, epctx_view view) {
    epctx_type_view type = epctx_type_of(view);
    epctx_str made;
    rewind(w->text);
    value_put_type(w->text, &type);
    fflush(w->text);
    made.data = w->text_data;
    made.size = w->text_size;
    put_short(w, NULL, made);
}

static void put_values(writer *w, const char *key, epctx_cursor values) {
    epctx_value_view value;
    json_array(w->json, key, JSON_TIGHT);
    while (epctx_next_value(&values, &value)) {
        json_array(w->json, NULL, JSON_TIGHT);
        json_str(w->json, NULL, value.name);
        put_type(w, value.type);
        json_end(w->json);
    }
    json_end(w->json);
}

/* -- tensors -- */

/* UINT64_MAX: nobody knows. */
static uint64_t tensor_bytes(const epctx_tensor_view *tensor) {
    return tensor->has_raw && !tensor->external ? tensor->raw.size
                                                : epctx_view_tensor_bytes(tensor);
}

/* A part of a string that has begun. */
CLI_FORMAT(2) static void add(const writer *w, const char *format, ...) {
    char text[64];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    json_add_text(w->json, epctx_str_of(text));
}

static void put_tensor_type(const writer *w, const epctx_tensor_view *tensor) {
    epctx_cursor dims = epctx_view_tensor_dims(tensor);
    const char *comma = "";
    int64_t dim;
    size_t i;
    json_begin_text(w->json, NULL);
    add(w, "%s[", epctx_elem_name(tensor->elem_type));
    for (i = 0; i < SHOWN_NUMBERS && epctx_next_int(&dims, &dim); i++, comma = ",")
        add(w, "%s%" PRId64, comma, dim);
    add(w, i == SHOWN_NUMBERS ? "...]" : "]");
    json_end_text(w->json);
}

static void put_digits(const writer *w, const epctx_tensor_view *tensor) {
    value_sum sum;
    size_t i;
    value_begin(&sum, true);
    value_add_tensor(&sum, tensor);
    value_end(&sum);
    json_begin_text(w->json, NULL);
    for (i = 0; i < sum.size && i < VALUES_KEPT; i++) add(w, "%02x", sum.block[i]);
    json_end_text(w->json);
}

/* "float32[2,3]", bytes, hexadecimal digits of all elements when they are few, and the file that
 * they are in: elements of the array that `name` begins. */
static void put_tensor(const writer *w, epctx_str name, const epctx_tensor_view *tensor) {
    const uint64_t bytes = tensor_bytes(tensor);
    json_array(w->json, NULL, JSON_TIGHT);
    json_str(w->json, NULL, name);
    put_tensor_type(w, tensor);
    if (bytes == UINT64_MAX)
        json_null(w->json, NULL);
    else
        json_uint(w->json, NULL, bytes);
    if (tensor->external || bytes > VALUES_KEPT)
        json_null(w->json, NULL);
    else
        put_digits(w, tensor);
    if (tensor->external) json_str(w->json, NULL, tensor->location);
    json_end(w->json);
}

static void put_initializers(const writer *w, epctx_graph_view graph) {
    epctx_cursor tensors = epctx_view_graph_initializers(graph),
                 sparses = epctx_graph_sparse(graph);
    epctx_tensor_view tensor;
    epctx_sparse_view sparse;
    json_array(w->json, "inits", JSON_TIGHT);
    while (epctx_next_tensor(&tensors, &tensor)) put_tensor(w, tensor.name, &tensor);
    while (epctx_next_sparse(&sparses, &sparse)) {
        json_array(w->json, NULL, JSON_TIGHT);
        json_str(w->json, NULL, sparse.values.name);
        json_begin_text(w->json, NULL);
        add(w, "sparse %s", epctx_elem_name(sparse.values.elem_type));
        json_end_text(w->json);
        json_null(w->json, NULL);
        json_null(w->json, NULL);
        json_end(w->json);
    }
    json_end(w->json);
}

/* -- attributes -- */

/* Integers stay exact: they are text in the page. */
static void put_list(const writer *w, const epctx_attr_view *attr) {
    const bool ints = attr->type == EPCTX_ATTR_INTS;
    epctx_cursor it =
        epctx_view_fields(attr->view, ints ? EPCTX_FIELD_ATTR_INTS : EPCTX_FIELD_ATTR_FLOATS);
    const char *comma = "";
    size_t count = 0;
    int64_t number;
    float real;
    json_begin_text(w->json, NULL);
    add(w, "[");
    for (; ints ? epctx_next_int(&it, &number) : epctx_next_float(&it, &real); count++) {
        if (count >= SHOWN_NUMBERS) continue;
        if (ints)
            add(w, "%s%" PRId64, comma, number);
        else
            add(w, "%s%.9g", comma, (double)real);
        comma = ", ";
    }
    if (count > SHOWN_NUMBERS) add(w, ", ... %zu in all", count);
    add(w, "]");
    json_end_text(w->json);
}

static void put_strings(const writer *w, const epctx_attr_view *attr) {
    epctx_cursor it = epctx_view_fields(attr->view, EPCTX_FIELD_ATTR_STRINGS);
    size_t count = 0;
    epctx_str text;
    json_array(w->json, NULL, JSON_TIGHT);
    for (; count <= SHOWN_NUMBERS && epctx_next_str(&it, &text); count++)
        put_short(w, NULL, count < SHOWN_NUMBERS ? text : epctx_str_of("..."));
    json_end(w->json);
}

/* A text in short, and its size when that is not all of it. */
static void put_string(const writer *w, epctx_str text) {
    const bool is_text = epctx_str_is_utf8(text);
    if (is_text)
        put_short(w, NULL, text);
    else
        json_null(w->json, NULL);
    if (text.size > SHOWN_TEXT || !is_text) json_uint(w->json, NULL, text.size);
}

/* A number as text, which is exact in the page, too. */
static void put_number(const writer *w, const epctx_attr_view *attr) {
    json_begin_text(w->json, NULL);
    if (attr->type == EPCTX_ATTR_INT)
        add(w, "%" PRId64, attr->i);
    else
        add(w, "%.9g", (double)attr->f);
    json_end_text(w->json);
}

static void put_attr_value(const writer *w, const epctx_attr_view *attr) {
    epctx_tensor_view tensor;
    switch (attr->type) {
    case EPCTX_ATTR_INT:
    case EPCTX_ATTR_FLOAT: put_number(w, attr); break;
    case EPCTX_ATTR_INTS:
    case EPCTX_ATTR_FLOATS: put_list(w, attr); break;
    case EPCTX_ATTR_STRINGS: put_strings(w, attr); break;
    case EPCTX_ATTR_STRING: put_string(w, attr->s); break;
    case EPCTX_ATTR_TENSOR:
        tensor = epctx_view_as_tensor(attr->t);
        json_object(w->json, NULL, JSON_TIGHT);
        json_key(w->json, epctx_str_of("tensor"));
        put_tensor(w, epctx_str_of(""), &tensor);
        json_end(w->json);
        break;
    default: json_null(w->json, NULL);
    }
}

/* Name, type, and a short value: a text, a list of them, or a tensor. */
static void put_attr(const writer *w, const epctx_attr_view *attr) {
    json_array(w->json, NULL, JSON_TIGHT);
    json_str(w->json, NULL, attr->name);
    json_text(w->json, NULL, epctx_attr_type_name(attr->type));
    if (attr->ref_attr_name.size > 0) {
        json_object(w->json, NULL, JSON_TIGHT);
        json_str(w->json, "ref", attr->ref_attr_name);
        json_end(w->json);
    } else {
        put_attr_value(w, attr);
    }
    json_end(w->json);
}

static void put_body(writer *w, const epctx_attr_view *attr, epctx_view body, uint32_t depth) {
    json_array(w->json, NULL, JSON_TIGHT);
    json_str(w->json, NULL, attr->name);
    put_graph(w, "body", epctx_view_as_graph(body), depth - 1);
    json_end(w->json);
}

static void put_bodies(writer *w, epctx_cursor attrs, uint32_t depth) {
    epctx_attr_view attr;
    epctx_field field;
    json_array(w->json, "bodies", JSON_TIGHT);
    while (epctx_next_attr(&attrs, &attr)) {
        epctx_cursor graphs = epctx_view_fields(attr.view, EPCTX_FIELD_ATTR_GRAPHS);
        if (attr.type == EPCTX_ATTR_GRAPH) put_body(w, &attr, attr.g, depth);
        while (attr.type == EPCTX_ATTR_GRAPHS && epctx_next_field(&graphs, &field))
            if (field.wire == EPCTX_WIRE_LEN) put_body(w, &attr, field.body, depth);
    }
    json_end(w->json);
}

static void put_attrs(writer *w, const epctx_node_view *node, uint32_t depth) {
    epctx_cursor attrs = epctx_view_node_attrs(node);
    epctx_attr_view attr;
    bool bodies = false;
    json_array(w->json, "attrs", JSON_TIGHT);
    while (epctx_next_attr(&attrs, &attr)) {
        bodies = bodies || attr.type == EPCTX_ATTR_GRAPH || attr.type == EPCTX_ATTR_GRAPHS;
        put_attr(w, &attr);
    }
    json_end(w->json);
    if (bodies && depth > 0) put_bodies(w, epctx_view_node_attrs(node), depth);
}

/* -- nodes and graphs -- */

static void put_node(writer *w, const epctx_node_view *node, uint32_t depth) {
    epctx_epnode ep;
    json_object(w->json, NULL, JSON_TIGHT);
    json_str(w->json, "op", node->op_type);
    json_str(w->json, "domain", node->domain);
    if (node->overload.size > 0) json_str(w->json, "overload", node->overload);
    json_str(w->json, "name", node->name);
    if (node->doc_string.size > 0) put_short(w, "doc", node->doc_string);
    if (epctx_view_is_epnode(node)) {
        if (epctx_view_read_epnode(node, &ep, NULL) == EPCTX_OK)
            json_str(w->json, "ep", ep.source);
        else
            json_null(w->json, "ep");
    }
    put_names(w, "in", epctx_view_node_inputs(node));
    put_names(w, "out", epctx_view_node_outputs(node));
    put_attrs(w, node, depth);
    json_end(w->json);
}

static void put_nodes(writer *w, epctx_cursor nodes, uint32_t depth) {
    epctx_node_view node;
    json_array(w->json, "nodes", JSON_HANGING);
    while (epctx_next_node(&nodes, &node)) put_node(w, &node, depth);
    json_end(w->json);
}

static void put_graph(writer *w, const char *kind, epctx_graph_view graph, uint32_t depth) {
    json_object(w->json, NULL, JSON_TIGHT);
    json_text(w->json, "kind", kind);
    json_str(w->json, "name", graph.name);
    put_values(w, "inputs", epctx_view_graph_inputs(graph));
    put_values(w, "outputs", epctx_view_graph_outputs(graph));
    put_values(w, "values", epctx_view_graph_values(graph));
    put_initializers(w, graph);
    put_nodes(w, epctx_view_graph_nodes(graph), depth);
    json_end(w->json);
}

/* Inputs and outputs of a function have no types. */
static void put_function(writer *w, const epctx_function_view *function) {
    json_object(w->json, NULL, JSON_TIGHT);
    json_text(w->json, "kind", "function");
    json_str(w->json, "name", function->name);
    json_str(w->json, "domain", function->domain);
    json_str(w->json, "overload", function->overload);
    put_names(w, "inputs", epctx_function_inputs(function));
    put_names(w, "outputs", epctx_function_outputs(function));
    put_values(w, "values", epctx_view_fields(function->view, EPCTX_FIELD_FUNCTION_VALUE_INFO));
    json_array(w->json, "inits", JSON_TIGHT);
    json_end(w->json);
    put_nodes(w, epctx_function_nodes(function), DEEPEST);
    json_end(w->json);
}

bool view_put_graphs(json_writer *json, const epctx_model *model) {
    epctx_cursor it = epctx_model_functions(model);
    epctx_function_view function;
    epctx_training_view training;
    writer w = {json, NULL, NULL, 0};
    bool good;
    w.text = open_memstream(&w.text_data, &w.text_size);
    if (w.text == NULL) return false;
    json_array(json, "graphs", JSON_HANGING);
    put_graph(&w, "main", epctx_model_graph(model), DEEPEST);
    while (epctx_next_function(&it, &function)) put_function(&w, &function);
    it = epctx_model_trainings(model);
    while (epctx_next_training(&it, &training)) {
        put_graph(&w, "initialization", training.initialization, DEEPEST);
        put_graph(&w, "training", training.algorithm, DEEPEST);
    }
    json_end(json);
    good = !ferror(w.text);
    good = fclose(w.text) == 0 && good;
    free(w.text_data);
    return good;
}
