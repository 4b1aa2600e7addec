/* Reads what the child wrote down about a binary. The library may have written anything there. */
#include "qnn.h"
#include "qnn_api.h"

#include "core/vendors.h"

#include <stdio.h>
#include <string.h>

/* What is left to read; `failed`: it is no answer, or there is no memory. */
typedef struct reader {
    epctx_span rest;
    epctx_arena *arena;
    size_t values; /* of all graphs so far */
    bool failed;
} reader;

static uint32_t get_number(reader *r) {
    uint32_t number = 0;
    if (r->rest.size < sizeof number) r->failed = true;
    if (r->failed) return 0;
    memcpy(&number, r->rest.data, sizeof number);
    r->rest.data += sizeof number;
    r->rest.size -= sizeof number;
    return number;
}

static epctx_str get_text(reader *r) {
    const uint32_t size = get_number(r);
    epctx_str text = epctx_str_of("");
    if (size > QNN_NAME_MOST || size > r->rest.size) r->failed = true;
    if (r->failed || size == 0) return text;
    text.data = (const char *)r->rest.data;
    text.size = size;
    r->rest.data += size;
    r->rest.size -= size;
    return text;
}

static void *get_list(reader *r, size_t count, size_t size) {
    void *list = NULL;
    if (!r->failed && count > 0) list = epctx_arena_array(r->arena, count, size);
    if (list == NULL && count > 0) r->failed = true;
    if (list != NULL) memset(list, 0, count * size);
    return list;
}

/* "1.2.3" */
static epctx_str get_version(reader *r) {
    char text[40];
    const uint32_t major = get_number(r), minor = get_number(r), patch = get_number(r);
    const char *copy;
    snprintf(text, sizeof text, "%u.%u.%u", (unsigned)major, (unsigned)minor, (unsigned)patch);
    copy = epctx_arena_copy(r->arena, epctx_str_of(text));
    r->failed = r->failed || copy == NULL;
    return epctx_str_of(copy);
}

/* ---------------------------------------------------------------- types */

static const struct {
    uint32_t qnn;
    int32_t onnx;
    const char *name;
} types[] = {{QNN_INT_8, EPCTX_ONNX_INT8, "INT_8"},
             {QNN_INT_16, EPCTX_ONNX_INT16, "INT_16"},
             {QNN_INT_32, EPCTX_ONNX_INT32, "INT_32"},
             {QNN_INT_64, EPCTX_ONNX_INT64, "INT_64"},
             {QNN_UINT_8, EPCTX_ONNX_UINT8, "UINT_8"},
             {QNN_UINT_16, EPCTX_ONNX_UINT16, "UINT_16"},
             {QNN_UINT_32, EPCTX_ONNX_UINT32, "UINT_32"},
             {QNN_UINT_64, EPCTX_ONNX_UINT64, "UINT_64"},
             {QNN_FLOAT_16, EPCTX_ONNX_FLOAT16, "FLOAT_16"},
             {QNN_FLOAT_32, EPCTX_ONNX_FLOAT, "FLOAT_32"},
             {QNN_FLOAT_64, EPCTX_ONNX_DOUBLE, "FLOAT_64"},
             {QNN_SFIXED_8, EPCTX_ONNX_INT8, "SFIXED_POINT_8"},
             {QNN_SFIXED_16, EPCTX_ONNX_INT16, "SFIXED_POINT_16"},
             {QNN_SFIXED_32, EPCTX_ONNX_INT32, "SFIXED_POINT_32"},
             {QNN_UFIXED_8, EPCTX_ONNX_UINT8, "UFIXED_POINT_8"},
             {QNN_UFIXED_16, EPCTX_ONNX_UINT16, "UFIXED_POINT_16"},
             {QNN_UFIXED_32, EPCTX_ONNX_UINT32, "UFIXED_POINT_32"},
             {QNN_BOOL_8, EPCTX_ONNX_BOOL, "BOOL_8"}};

/* Another type is told by its number alone. */
static void get_type(reader *r, binary_value *to) {
    const uint32_t type = get_number(r);
    char number[16];
    size_t i;
    for (i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (types[i].qnn != type) continue;
        to->elem_type = types[i].onnx;
        to->type = epctx_str_of(types[i].name);
        return;
    }
    snprintf(number, sizeof number, "0x%04x", (unsigned)type);
    to->type = epctx_str_of(epctx_arena_copy(r->arena, epctx_str_of(number)));
}

/* ---------------------------------------------------------------- graphs */

static void get_value(reader *r, binary_value *to) {
    int64_t *dims;
    size_t i;
    to->name = get_text(r);
    get_type(r, to);
    to->shaped = get_number(r) != 0;
    to->rank = get_number(r);
    if (to->rank > BINARY_MOST_RANK) r->failed = true;
    dims = (int64_t *)get_list(r, to->rank, sizeof *dims);
    for (i = 0; !r->failed && i < to->rank; i++) {
        const bool any = get_number(r) != 0;
        const uint32_t dim = get_number(r);
        dims[i] = any ? -1 : (int64_t)dim;
    }
    to->dims = dims;
}

static binary_value *get_values(reader *r, size_t *count) {
    binary_value *values;
    size_t i;
    *count = get_number(r);
    r->values += *count;
    if (r->values > BINARY_MOST_VALUES) r->failed = true;
    values = (binary_value *)get_list(r, *count, sizeof *values);
    for (i = 0; !r->failed && i < *count; i++) get_value(r, &values[i]);
    return values;
}

static void get_graph(reader *r, binary_graph *to) {
    to->name = get_text(r);
    to->values_known = get_number(r) != 0;
    if (!to->values_known) return;
    to->inputs = get_values(r, &to->input_count);
    to->outputs = get_values(r, &to->output_count);
}

static void get_graphs(reader *r, binary_facts *facts) {
    size_t i;
    facts->graphs_known = get_number(r) != 0;
    facts->graph_count = facts->graphs_known ? get_number(r) : 0;
    if (facts->graph_count > BINARY_MOST_GRAPHS) r->failed = true;
    facts->graphs = (binary_graph *)get_list(r, facts->graph_count, sizeof *facts->graphs);
    for (i = 0; !r->failed && i < facts->graph_count; i++) get_graph(r, &facts->graphs[i]);
}

/* ---------------------------------------------------------------- what it was made for */

static const char *backend_name(uint32_t number) {
    switch (number) {
    case QNN_CPU: return "CPU";
    case QNN_GPU: return "GPU";
    case QNN_DSP: return "DSP";
    case QNN_HTP: return "HTP";
    default: return NULL;
    }
}

/* "HTP", or a number that has no name here */
static epctx_str get_backend(reader *r) {
    const uint32_t number = get_number(r);
    char text[16];
    if (backend_name(number) != NULL) return epctx_str_of(backend_name(number));
    snprintf(text, sizeof text, "%u", (unsigned)number);
    return epctx_str_of(epctx_arena_copy(r->arena, epctx_str_of(text)));
}

/* The first name of a chip that is known, else QNN's number; 0: not told. */
static void get_chip(reader *r, binary_facts *facts) {
    const uint32_t number = get_number(r);
    char text[16];
    vendor_chip known;
    epctx_str name;
    if (number == 0) return;
    snprintf(text, sizeof text, "%u", (unsigned)number);
    name = epctx_str_of(text);
    if (vendor_chip_of(text, &known)) {
        epctx_str all = epctx_str_of(known.name);
        name = epctx_str_cut(&all, '/');
    }
    facts->chips = (epctx_str *)get_list(r, 1, sizeof *facts->chips);
    if (r->failed) return;
    facts->chips[0] = epctx_str_of(epctx_arena_copy(r->arena, name));
    facts->chip_count = 1;
}

bool qnn_read(epctx_span told, epctx_arena *arena, binary_facts *facts) {
    binary_facts out = *facts;
    reader r;
    memset(&r, 0, sizeof r);
    r.rest = told;
    r.arena = arena;
    out.backend = get_backend(&r);
    out.sdk = get_text(&r);
    out.core_api = get_version(&r);
    out.backend_api = get_version(&r);
    out.format_version = get_version(&r);
    get_chip(&r, &out);
    get_graphs(&r, &out);
    if (r.failed || r.rest.size != 0) return false;
    *facts = out;
    return true;
}
