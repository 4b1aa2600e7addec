/* The graphs of a model for the page of `epctx view`. */
#define _POSIX_C_SOURCE 200809L

#include "core/values.h"
#include "view.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    SHOWN_TEXT = 240,   /* bytes of a text attribute */
    SHOWN_NUMBERS = 24, /* elements of a list */
    DEEPEST = 100
};

typedef struct writer {
    FILE *out;
    FILE *text; /* a type is put together here */
    char *text_data;
    size_t text_size;
} writer;

static void put_graph(writer *w, const char *kind, epctx_graph_view graph, uint32_t depth);

/* A comma before all but the first. */
static void put_comma(const writer *w, bool *first) {
    if (!*first) fputc(',', w->out);
    *first = false;
}

/* The beginning of a long text. */
static void put_short(const writer *w, epctx_str text) {
    epctx_str cut = text;
    size_t size = 0;
    for (cut.size = 0; cut.size < text.size && cut.size < SHOWN_TEXT; cut.size += size)
        (void)epctx_str_char(text, cut.size, &size);
    cli_put_json(w->out, cut);
}

static void put_names(const writer *w, const char *key, epctx_cursor names) {
    bool first = true;
    epctx_str name;
    fprintf(w->out, ",\"%s\":[", key);
    while (epctx_next_str(&names, &name)) {
        put_comma(w, &first);
        cli_put_json(w->out, name);
    }
    fputc(']', w->out);
}

static void put_type(writer *w, epctx_view view) {
    epctx_type_view type = epctx_type_of(view);
    epctx_str made;
    rewind(w->text);
    value_put_type(w->text, &type);
    fflush(w->text);
    made.data = w->text_data;
    made.size = w->text_size;
    put_short(w, made);
}

static void put_values(writer *w, const char *key, epctx_cursor values) {
    bool first = true;
    epctx_value_view value;
    fprintf(w->out, ",\"%s\":[", key);
    while (epctx_next_value(&values, &value)) {
        put_comma(w, &first);
        fputc('[', w->out);
        cli_put_json(w->out, value.name);
        fputc(',', w->out);
        put_type(w, value.type);
        fputc(']', w->out);
    }
    fputc(']', w->out);
}

/* -- tensors -- */

/* UINT64_MAX: nobody knows. */
static uint64_t tensor_bytes(const epctx_tensor_view *tensor) {
    epctx_cursor dims = epctx_tensor_dims(tensor);
    uint64_t bytes = epctx_elem_size(tensor->elem_type);
    int64_t dim;
    if (tensor->external && tensor->length != UINT64_MAX) return tensor->length;
    if (tensor->has_raw) return tensor->raw.size;
    if (bytes == 0) return UINT64_MAX;
    while (epctx_next_int(&dims, &dim)) {
        if (dim < 0 || (dim > 0 && bytes > UINT64_MAX / 2 / (uint64_t)dim)) return UINT64_MAX;
        bytes *= (uint64_t)dim;
    }
    return bytes;
}

/* "float32[2,3]", bytes, and hexadecimal digits of all elements when they are few. */
static void put_tensor(const writer *w, const epctx_tensor_view *tensor) {
    epctx_cursor dims = epctx_tensor_dims(tensor);
    const uint64_t bytes = tensor_bytes(tensor);
    const char *comma = "";
    value_sum sum;
    int64_t dim;
    size_t i;
    fprintf(w->out, "\"%s[", epctx_elem_name(tensor->elem_type));
    for (i = 0; i < SHOWN_NUMBERS && epctx_next_int(&dims, &dim); i++, comma = ",")
        fprintf(w->out, "%s%" PRId64, comma, dim);
    fputs(i == SHOWN_NUMBERS ? "...]\"," : "]\",", w->out);
    if (bytes == UINT64_MAX)
        fputs("null,", w->out);
    else
        fprintf(w->out, "%" PRIu64 ",", bytes);
    if (tensor->external || bytes > VALUES_KEPT) {
        fputs("null", w->out);
        return;
    }
    value_begin(&sum, true);
    value_add_tensor(&sum, tensor);
    value_end(&sum);
    fputc('"', w->out);
    for (i = 0; i < sum.size && i < VALUES_KEPT; i++) fprintf(w->out, "%02x", sum.block[i]);
    fputc('"', w->out);
}

static void put_initializers(const writer *w, epctx_graph_view graph) {
    epctx_cursor tensors = epctx_graph_initializers(graph), sparses = epctx_graph_sparse(graph);
    epctx_tensor_view tensor;
    epctx_sparse_view sparse;
    bool first = true;
    fputs(",\"inits\":[", w->out);
    while (epctx_next_tensor(&tensors, &tensor)) {
        put_comma(w, &first);
        fputc('[', w->out);
        cli_put_json(w->out, tensor.name);
        fputc(',', w->out);
        put_tensor(w, &tensor);
        if (tensor.external) fputc(',', w->out), cli_put_json(w->out, tensor.location);
        fputc(']', w->out);
    }
    while (epctx_next_sparse(&sparses, &sparse)) {
        put_comma(w, &first);
        fputc('[', w->out);
        cli_put_json(w->out, sparse.values.name);
        fprintf(w->out, ",\"sparse %s\",null,null]", epctx_elem_name(sparse.values.elem_type));
    }
    fputc(']', w->out);
}

/* -- attributes -- */

/* Integers stay exact: they are text in the page. */
static void put_list(const writer *w, const epctx_attr_view *attr) {
    const bool ints = attr->type == EPCTX_ATTR_INTS;
    epctx_cursor it = epctx_view_fields(attr->view, ints ? CLI_ATTR_INTS : CLI_ATTR_FLOATS);
    const char *comma = "";
    size_t count = 0;
    int64_t number;
    float real;
    fputs("\"[", w->out);
    for (; ints ? epctx_next_int(&it, &number) : epctx_next_float(&it, &real); count++) {
        if (count >= SHOWN_NUMBERS) continue;
        if (ints)
            fprintf(w->out, "%s%" PRId64, comma, number);
        else
            fprintf(w->out, "%s%.9g", comma, (double)real);
        comma = ", ";
    }
    if (count > SHOWN_NUMBERS) fprintf(w->out, ", ... %zu in all", count);
    fputs("]\"", w->out);
}

static void put_strings(const writer *w, const epctx_attr_view *attr) {
    epctx_cursor it = epctx_view_fields(attr->view, CLI_ATTR_STRINGS);
    bool first = true;
    size_t count = 0;
    epctx_str text;
    fputc('[', w->out);
    for (; count <= SHOWN_NUMBERS && epctx_next_str(&it, &text); count++) {
        put_comma(w, &first);
        if (count < SHOWN_NUMBERS)
            put_short(w, text);
        else
            fputs("\"...\"", w->out);
    }
    fputc(']', w->out);
}

/* Name, type, and a short value: a text, a list of them, or a tensor. */
static void put_attr(const writer *w, const epctx_attr_view *attr) {
    epctx_tensor_view tensor;
    fputc('[', w->out);
    cli_put_json(w->out, attr->name);
    fprintf(w->out, ",\"%s\",", epctx_attr_type_name(attr->type));
    if (attr->ref_attr_name.size > 0) {
        fputs("{\"ref\":", w->out);
        cli_put_json(w->out, attr->ref_attr_name);
        fputs("}]", w->out);
        return;
    }
    switch (attr->type) {
    case EPCTX_ATTR_INT: fprintf(w->out, "\"%" PRId64 "\"", attr->i); break;
    case EPCTX_ATTR_FLOAT: fprintf(w->out, "\"%.9g\"", (double)attr->f); break;
    case EPCTX_ATTR_INTS:
    case EPCTX_ATTR_FLOATS: put_list(w, attr); break;
    case EPCTX_ATTR_STRINGS: put_strings(w, attr); break;
    case EPCTX_ATTR_STRING:
        if (epctx_str_is_utf8(attr->s))
            put_short(w, attr->s);
        else
            fputs("null", w->out);
        if (attr->s.size > SHOWN_TEXT || !epctx_str_is_utf8(attr->s))
            fprintf(w->out, ",%zu", attr->s.size);
        break;
    case EPCTX_ATTR_TENSOR:
        tensor = epctx_tensor_of(attr->t);
        fputs("{\"tensor\":[\"\",", w->out);
        put_tensor(w, &tensor);
        if (tensor.external) fputc(',', w->out), cli_put_json(w->out, tensor.location);
        fputs("]}", w->out);
        break;
    default: fputs("null", w->out);
    }
    fputc(']', w->out);
}

static void put_body(writer *w, const epctx_attr_view *attr, epctx_view body, bool *first,
                     uint32_t depth) {
    put_comma(w, first);
    fputc('[', w->out);
    cli_put_json(w->out, attr->name);
    fputc(',', w->out);
    put_graph(w, "body", epctx_graph_of(body), depth - 1);
    fputc(']', w->out);
}

static void put_attrs(writer *w, const epctx_node_view *node, uint32_t depth) {
    epctx_cursor attrs = epctx_node_attrs(node);
    epctx_attr_view attr;
    epctx_field field;
    bool first = true, bodies = false;
    fputs(",\"attrs\":[", w->out);
    while (epctx_next_attr(&attrs, &attr)) {
        bodies = bodies || attr.type == EPCTX_ATTR_GRAPH || attr.type == EPCTX_ATTR_GRAPHS;
        put_comma(w, &first);
        put_attr(w, &attr);
    }
    fputc(']', w->out);
    if (!bodies || depth == 0) return;
    fputs(",\"bodies\":[", w->out);
    attrs = epctx_node_attrs(node);
    for (first = true; epctx_next_attr(&attrs, &attr);) {
        epctx_cursor graphs = epctx_view_fields(attr.view, CLI_ATTR_GRAPHS);
        if (attr.type == EPCTX_ATTR_GRAPH) put_body(w, &attr, attr.g, &first, depth);
        while (attr.type == EPCTX_ATTR_GRAPHS && epctx_next_field(&graphs, &field))
            if (field.wire == EPCTX_WIRE_LEN) put_body(w, &attr, field.body, &first, depth);
    }
    fputc(']', w->out);
}

/* -- nodes and graphs -- */

static void put_node(writer *w, const epctx_node_view *node, uint32_t depth) {
    epctx_epnode ep;
    fputs("\n{\"op\":", w->out);
    cli_put_json(w->out, node->op_type);
    fputs(",\"domain\":", w->out);
    cli_put_json(w->out, node->domain);
    if (node->overload.size > 0) fputs(",\"overload\":", w->out);
    if (node->overload.size > 0) cli_put_json(w->out, node->overload);
    fputs(",\"name\":", w->out);
    cli_put_json(w->out, node->name);
    if (node->doc_string.size > 0) fputs(",\"doc\":", w->out);
    if (node->doc_string.size > 0) put_short(w, node->doc_string);
    if (epctx_node_is_epnode(node)) {
        fputs(",\"ep\":", w->out);
        if (epctx_epnode_read(node, &ep, NULL) == EPCTX_OK)
            cli_put_json(w->out, ep.source);
        else
            fputs("null", w->out);
    }
    put_names(w, "in", epctx_node_inputs(node));
    put_names(w, "out", epctx_node_outputs(node));
    put_attrs(w, node, depth);
    fputc('}', w->out);
}

static void put_nodes(writer *w, epctx_cursor nodes, uint32_t depth) {
    epctx_node_view node;
    bool first = true;
    fputs(",\"nodes\":[", w->out);
    while (epctx_next_node(&nodes, &node)) {
        put_comma(w, &first);
        put_node(w, &node, depth);
    }
    fputc(']', w->out);
}

static void put_graph(writer *w, const char *kind, epctx_graph_view graph, uint32_t depth) {
    fprintf(w->out, "{\"kind\":\"%s\",\"name\":", kind);
    cli_put_json(w->out, graph.name);
    put_values(w, "inputs", epctx_graph_inputs(graph));
    put_values(w, "outputs", epctx_graph_outputs(graph));
    put_values(w, "values", epctx_graph_values(graph));
    put_initializers(w, graph);
    put_nodes(w, epctx_graph_nodes(graph), depth);
    fputc('}', w->out);
}

/* Inputs and outputs of a function have no types. */
static void put_function(writer *w, const epctx_function_view *function) {
    fputs(",\n{\"kind\":\"function\",\"name\":", w->out);
    cli_put_json(w->out, function->name);
    fputs(",\"domain\":", w->out);
    cli_put_json(w->out, function->domain);
    fputs(",\"overload\":", w->out);
    cli_put_json(w->out, function->overload);
    put_names(w, "inputs", epctx_function_inputs(function));
    put_names(w, "outputs", epctx_function_outputs(function));
    put_values(w, "values", epctx_view_fields(function->view, CLI_FUNCTION_VALUES));
    fputs(",\"inits\":[]", w->out);
    put_nodes(w, epctx_function_nodes(function), DEEPEST);
    fputc('}', w->out);
}

bool view_put_graphs(FILE *out, const epctx_model *model) {
    epctx_cursor it = epctx_model_functions(model);
    epctx_function_view function;
    epctx_training_view training;
    writer w = {out, NULL, NULL, 0};
    bool good;
    w.text = open_memstream(&w.text_data, &w.text_size);
    if (w.text == NULL) return false;
    fputc('[', out);
    put_graph(&w, "main", epctx_model_graph(model), DEEPEST);
    while (epctx_next_function(&it, &function)) put_function(&w, &function);
    it = epctx_model_trainings(model);
    while (epctx_next_training(&it, &training)) {
        fputs(",\n", out);
        put_graph(&w, "initialization", training.initialization, DEEPEST);
        fputs(",\n", out);
        put_graph(&w, "training", training.algorithm, DEEPEST);
    }
    fputc(']', out);
    good = !ferror(w.text);
    good = fclose(w.text) == 0 && good;
    free(w.text_data);
    return good;
}
