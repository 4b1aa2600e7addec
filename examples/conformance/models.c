/* models.c - the models of the experiments, built by epctx.h of operators that the EP claims. */
#define _GNU_SOURCE
#include "conformance.h"

const char *const model_names[MODEL_KINDS] = {
    "chain",  "sub",       "island", "fan",  "weights", "external weights",
    "const",  "scalar",    "dyn",    "zero", "names",   "if",
    "double", "constants", "other",  "pair", "none"};

/* In falling order of how many EPs have them; all give the shape that they get. */
const char *const unary_ops[] = {"Relu", "Sigmoid",   "Tanh", "Abs",         "Neg",
                                 "Exp",  "LeakyRelu", "Sqrt", "HardSigmoid", NULL};
const char *const weighted_ops[] = {"Add", "Mul", "Sub", "MatMul", "Conv", NULL};
const char *const binary_ops[] = {"Sub", "Mul", "Add", "Max", "MatMul", NULL};
const char *const foreign_ops[] = {"Asinh",  "Softsign", "Selu",    "ThresholdedRelu",
                                   "Shrink", "Sign",     "Hardmax", "Erf",
                                   "double", "Trilu",    NULL};

enum { RANK = 4, SIDE = 8, ELEMENTS = SIDE * SIDE * SIDE, MOST_DIMS = 7, MOST_WEIGHTS = 16 };
enum { FLOAT32 = 1, UINT8 = 2, INT8 = 3, BOOLEAN = 9, FLOAT64 = 11, INT64 = 7 };

static const int64_t full[RANK] = {1, SIDE, SIDE, SIDE};
static const int64_t small[RANK] = {1, SIDE, 4, 4};

/* A model under construction. Nodes take their names from `count`. */
typedef struct builder {
    ep_facts ep;
    epctx_model model;
    epctx_status status;
    epctx_error error;
    form form;
    unsigned count;
    unsigned seed;          /* of the first weight */
    const char *node_names; /* before the numbers */
    epctx_view graph;       /* empty: the main graph */
    bool open_batch;
    char second[160]; /* what a node of two inputs reads besides; "": what it reads already */
    /* Weights are borrowed until the model is written. */
    float floats[MOST_WEIGHTS][ELEMENTS];
    uint8_t bytes[MOST_WEIGHTS][ELEMENTS];
    unsigned weight_count;
} builder;

static void note(builder *b, epctx_status status) {
    if (b->status == EPCTX_OK) b->status = status;
}

static void begin(trial *t, builder *b) {
    memset(b, 0, sizeof *b);
    b->ep = t->board->ep;
    epctx_error_clear(&b->error);
    b->form = b->ep.form == FORM_GIVEN ? FORM_FLOAT : b->ep.form;
    b->node_names = "n";
    note(b, epctx_model_new(&b->model, 8, NULL, &b->error));
    if (b->status != EPCTX_OK) return;
    note(b, epctx_edit_set_opset(&b->model, epctx_str_of(""), 17, &b->error));
    note(b, epctx_edit_set_field_str(&b->model, epctx_model_graph(&b->model).view,
                                     EPCTX_FIELD_GRAPH_NAME, epctx_str_of("g"), &b->error));
}

static bool end(builder *b, const char *path) {
    epctx_write_opts opts;
    memset(&opts, 0, sizeof opts);
    if (b->status == EPCTX_OK) note(b, epctx_model_write_file(&b->model, path, &opts, &b->error));
    if (b->status != EPCTX_OK) {
        ort_code = ORT_FAIL;
        snprintf(ort_text, sizeof ort_text, "%s", b->error.message);
    }
    epctx_model_close(&b->model);
    return b->status == EPCTX_OK;
}

static void put_value(builder *b, uint32_t field, const char *name, int32_t type,
                      const int64_t *dims, int32_t rank) {
    int64_t open[MOST_DIMS];
    epctx_value value;
    memset(&value, 0, sizeof value);
    value.name = epctx_str_of(name);
    value.elem_type = type;
    value.rank = rank;
    value.dims = dims;
    if (b->open_batch && rank > 0) {
        memcpy(open, dims, (size_t)rank * sizeof *dims);
        open[0] = -1;
        value.dims = open;
    }
    note(b, epctx_edit_put_value(&b->model, b->graph, field, &value, epctx_view_none(), NULL,
                                 &b->error));
}

/* Of the graph's ends. */
static int32_t end_type(const builder *b) {
    return b->form == FORM_INT8 ? INT8 : FLOAT32;
}

static void input(builder *b, const char *name, const int64_t *dims) {
    put_value(b, EPCTX_FIELD_GRAPH_INPUT, name, end_type(b), dims, RANK);
}

static void output(builder *b, const char *name, const int64_t *dims) {
    put_value(b, EPCTX_FIELD_GRAPH_OUTPUT, name, end_type(b), dims, RANK);
}

static void put_tensor(builder *b, const char *name, int32_t type, const int64_t *dims,
                       int32_t rank, const void *data, size_t size) {
    epctx_tensor tensor;
    memset(&tensor, 0, sizeof tensor);
    tensor.name = epctx_str_of(name);
    tensor.elem_type = type;
    tensor.rank = rank;
    tensor.dims = dims;
    tensor.data = (const uint8_t *)data;
    tensor.size = size;
    note(b, epctx_edit_put_initializer(&b->model, b->graph, &tensor, epctx_view_none(), NULL,
                                       &b->error));
}

static void put_node(builder *b, const char *op, const char *first, const char *second,
                     const char *third, const char *out, const epctx_attr *attrs, size_t count) {
    epctx_str inputs[3], outputs[1];
    epctx_node node;
    char name[80];
    memset(&node, 0, sizeof node);
    snprintf(name, sizeof name, "%s%u", b->node_names, b->count++);
    inputs[0] = epctx_str_of(first);
    inputs[1] = epctx_str_of(second);
    inputs[2] = epctx_str_of(third);
    outputs[0] = epctx_str_of(out);
    node.name = epctx_str_of(*b->node_names ? name : "");
    node.op_type = epctx_str_of(op);
    node.inputs = inputs;
    node.input_count = first ? (second ? (third ? 3 : 2) : 1) : 0;
    node.outputs = outputs;
    node.output_count = 1;
    node.attrs = attrs;
    node.attr_count = count;
    note(b, epctx_edit_put_node(&b->model, b->graph, &node, epctx_view_none(), NULL, &b->error));
}

static void plain_node(builder *b, const char *op, const char *first, const char *second,
                       const char *out) {
    put_node(b, op, first, second, NULL, out, NULL, 0);
}

/* Of another domain than ONNX's. */
static void custom_node(builder *b, const char *domain, const char *op, const char *in,
                        const char *out) {
    const epctx_str input = epctx_str_of(in), output = epctx_str_of(out);
    epctx_node node;
    char name[80];
    note(b, epctx_edit_set_opset(&b->model, epctx_str_of(domain), 1, &b->error));
    memset(&node, 0, sizeof node);
    snprintf(name, sizeof name, "%s%u", b->node_names, b->count++);
    node.name = epctx_str_of(*b->node_names ? name : "");
    node.op_type = epctx_str_of(op);
    node.domain = epctx_str_of(domain);
    node.inputs = &input;
    node.input_count = 1;
    node.outputs = &output;
    node.output_count = 1;
    note(b, epctx_edit_put_node(&b->model, b->graph, &node, epctx_view_none(), NULL, &b->error));
}

static void cast_node(builder *b, const char *in, int32_t to, const char *out) {
    epctx_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.name = epctx_str_of("to");
    attr.type = EPCTX_ATTR_INT;
    attr.i = to;
    put_node(b, "Cast", in, NULL, NULL, out, &attr, 1);
}

/* ------------------------------------------------------------ what is quantized */

static const float quant_scale = 1.0f / 64;
static const uint8_t quant_zero[] = {0, 128, 0}; /* of each form; int8's is 0 */

/* Both grids have the names that the nodes below use. */
static void put_grid(builder *b) {
    if (b->form == FORM_FLOAT) return;
    put_tensor(b, "grid_scale", FLOAT32, NULL, 0, &quant_scale, sizeof quant_scale);
    put_tensor(b, "grid_zero", b->form == FORM_INT8 ? INT8 : UINT8, NULL, 0, &quant_zero[b->form],
               1);
}

static void quantize(builder *b, const char *from, const char *to) {
    put_node(b, "QuantizeLinear", from, "grid_scale", "grid_zero", to, NULL, 0);
}

static void dequantize(builder *b, const char *from, const char *to) {
    put_node(b, "DequantizeLinear", from, "grid_scale", "grid_zero", to, NULL, 0);
}

/* `from` on the grid, as `to`. */
static void to_grid(builder *b, const char *from, const char *to) {
    char middle[160];
    snprintf(middle, sizeof middle, "%s.q%u", from, b->count);
    quantize(b, from, middle);
    dequantize(b, middle, to);
}

/* What a node of S reads instead of a graph input, in `room`. */
static const char *enter(builder *b, const char *name, char *room, size_t size) {
    if (b->form != FORM_QDQ) return name;
    snprintf(room, size, "%s.in", name);
    to_grid(b, name, room);
    return room;
}

/* A node of S and, where the form asks for it, the grid around it. */
static void s_node(builder *b, const char *op, const char *first, const char *second,
                   const char *out) {
    char raw[160], floats[2][160];
    if (b->form == FORM_FLOAT) {
        plain_node(b, op, first, second, out);
        return;
    }
    snprintf(raw, sizeof raw, "%s.raw", out);
    if (b->form == FORM_QDQ) {
        plain_node(b, op, first, second, raw);
        to_grid(b, raw, out);
        return;
    }
    snprintf(floats[0], sizeof floats[0], "%.140s.f%u", first, b->count);
    dequantize(b, first, floats[0]);
    if (second) snprintf(floats[1], sizeof floats[1], "%.140s.f%u", second, b->count);
    if (second) dequantize(b, second, floats[1]);
    plain_node(b, op, floats[0], second ? floats[1] : NULL, raw);
    quantize(b, raw, out);
}

/* ------------------------------------------------------------------ weights */

/* Of the nth tensor: no two of a model are equal, or a node that runs another one's graph would
 * give the right numbers. One number has the byte 0a, which writing in text mode would change. */
static float weight_at(unsigned n, size_t i) {
    if (i == 3) return 1.0f + 10.0f / (1 << 23);
    return (float)((int)((i * 7 + n * 13) % 17) - 8) / 16.0f;
}

static void put_constant(builder *b, const char *name, const int64_t *dims, int32_t rank) {
    const unsigned n = b->seed + b->weight_count;
    const unsigned at = b->weight_count++ % MOST_WEIGHTS;
    float *floats = b->floats[at];
    uint8_t *bytes = b->bytes[at];
    char stored[160];
    size_t count = 1, i;
    for (i = 0; i < (size_t)rank; i++) count *= (size_t)dims[i];
    for (i = 0; i < count; i++) {
        floats[i] = weight_at(n, i);
        bytes[i] = (uint8_t)((int)(floats[i] / quant_scale) + quant_zero[b->form]);
    }
    if (b->form == FORM_INT8) {
        put_tensor(b, name, INT8, dims, rank, bytes, count);
        return;
    }
    if (b->form == FORM_FLOAT) {
        put_tensor(b, name, FLOAT32, dims, rank, floats, count * sizeof floats[0]);
        return;
    }
    snprintf(stored, sizeof stored, "%s.bytes", name);
    put_tensor(b, stored, UINT8, dims, rank, bytes, count);
    dequantize(b, stored, name);
}

/* The weights of one operator. */
static void put_weight(builder *b, const char *name, const char *op) {
    static const int64_t kernel[RANK] = {SIDE, SIDE, 1, 1};
    put_constant(b, name, strcmp(op, "Conv") == 0 ? kernel : full, RANK);
}

static void weighted_node(builder *b, const char *op, const char *in, const char *weight,
                          const char *out) {
    put_weight(b, weight, op);
    s_node(b, op, in, weight, out);
}

/* -------------------------------------------------------------------- steps */

/* A node without weights, which have one shape. */
static void bare_step(builder *b, const char *in, const char *out) {
    if (*b->ep.unary)
        s_node(b, b->ep.unary, in, NULL, out);
    else
        s_node(b, b->ep.binary, in, *b->second ? b->second : in, out);
}

/* The nth node of S of a chain. Where the EP takes both, those with weights are between others. */
static void step(builder *b, unsigned n, const char *in, const char *out) {
    const ep_facts *ep = &b->ep;
    char weight[160];
    snprintf(weight, sizeof weight, "w%u", b->count);
    if (*ep->weighted && (n % 2 == 0 || !*ep->unary))
        weighted_node(b, ep->weighted, in, weight, out);
    else
        bare_step(b, in, out);
}

/* Two nodes, since some EPs take no lone one; or one, since others take no two. */
static void group(builder *b, unsigned n, const char *in, const char *out) {
    char middle[160];
    if (b->ep.lone) {
        step(b, 0, in, out);
        return;
    }
    snprintf(middle, sizeof middle, "%.150s.m", out);
    step(b, n, in, middle);
    step(b, n + 1, middle, out);
}

/* Of floats. */
static void foreign_node(builder *b, const char *in, const char *out) {
    const char *op = b->ep.foreign;
    char first[160], second[160];
    if (strcmp(op, "double") == 0) {
        snprintf(first, sizeof first, "%s.d", out);
        snprintf(second, sizeof second, "%s.e", out);
        cast_node(b, in, FLOAT64, first);
        plain_node(b, "Neg", first, NULL, second);
        cast_node(b, second, FLOAT32, out);
    } else if (strcmp(op, "Trilu") == 0) { /* ORT's own, which hardly an EP has */
        custom_node(b, "com.microsoft", op, in, out);
    } else {
        plain_node(b, op, in, NULL, out);
    }
}

static void foreign_step(builder *b, const char *in, const char *out) {
    char first[160], second[160];
    if (b->form != FORM_INT8) {
        foreign_node(b, in, out);
        return;
    }
    snprintf(first, sizeof first, "%.150s.fi", out);
    snprintf(second, sizeof second, "%.150s.fo", out);
    dequantize(b, in, first);
    foreign_node(b, first, second);
    quantize(b, second, out);
}

/* ------------------------------------------------------------------- models */

/* A graph input as nodes of S read it. An EP that takes nothing but nodes of two inputs gets
 * another one: a difference of equal numbers would tell nothing. `bare`: no node has weights. */
static const char *entry(builder *b, const char *name, const int64_t *dims, int32_t rank, bool bare,
                         char *room, size_t size) {
    char other[80], entered[160];
    put_value(b, EPCTX_FIELD_GRAPH_INPUT, name, end_type(b), dims, rank);
    if (!*b->ep.unary && *b->ep.binary && (bare || !*b->ep.weighted)) {
        snprintf(other, sizeof other, "%.70s2", name);
        put_value(b, EPCTX_FIELD_GRAPH_INPUT, other, end_type(b), dims, rank);
        snprintf(b->second, sizeof b->second, "%s", enter(b, other, entered, sizeof entered));
    }
    return enter(b, name, room, size);
}

static void chain(builder *b, const int64_t *dims, unsigned steps) {
    char room[160], from[160], to[40];
    unsigned i;
    if (b->ep.lone) steps = 1;
    output(b, "y", dims);
    snprintf(from, sizeof from, "%s", entry(b, "x", dims, RANK, dims != full, room, sizeof room));
    for (i = 0; i < steps; i++) {
        snprintf(to, sizeof to, "t%u", i);
        if (i + 1 == steps) snprintf(to, sizeof to, "y");
        if (dims == full)
            step(b, i, from, to);
        else
            bare_step(b, from, to);
        snprintf(from, sizeof from, "%s", to);
    }
}

/* y = a op b or, without such an operator, S(a); z = S(c): outputs of different shapes. */
static void sub(builder *b) {
    char rooms[3][160];
    const bool binary = *b->ep.binary != '\0';
    const char *x, *z;
    input(b, "c", small);
    input(b, "a", full);
    if (binary) input(b, "b", full);
    output(b, "y", full);
    output(b, "z", small);
    z = enter(b, "c", rooms[0], sizeof rooms[0]);
    x = enter(b, "a", rooms[1], sizeof rooms[1]);
    bare_step(b, z, "z");
    if (binary)
        s_node(b, b->ep.binary, x, enter(b, "b", rooms[2], sizeof rooms[2]), "y");
    else
        step(b, 0, x, "y");
}

static void island(builder *b) {
    char room[160];
    output(b, "y", full);
    group(b, 0, entry(b, "x", full, RANK, false, room, sizeof room), "a");
    foreign_step(b, "a", "b");
    group(b, 1, enter(b, "b", room, sizeof room), "c");
    foreign_step(b, "c", "d");
    group(b, 0, enter(b, "d", room, sizeof room), "y");
}

/* Without B the CPU's part is missing. */
static void fan(builder *b) {
    char room[160];
    output(b, "y", full);
    output(b, "m", full);
    output(b, "z", full);
    step(b, 0, entry(b, "x", full, RANK, false, room, sizeof room), "m");
    if (b->ep.lone)
        foreign_step(b, "m", "y");
    else
        step(b, 1, "m", "y");
    if (*b->ep.foreign) {
        foreign_step(b, "m", "f");
        step(b, 1, enter(b, "f", room, sizeof room), "z");
    } else {
        step(b, 1, "m", "z");
    }
}

static void constant(builder *b) {
    output(b, "y", full);
    put_weight(b, "k", "Add");
    group(b, 0, "k", "y");
}

static void scalar(builder *b) {
    char room[160];
    const char *x = entry(b, "x", NULL, 0, true, room, sizeof room);
    put_value(b, EPCTX_FIELD_GRAPH_OUTPUT, "y", end_type(b), NULL, 0);
    bare_step(b, x, b->ep.lone ? "y" : "m");
    if (!b->ep.lone) bare_step(b, "m", "y");
}

/* Each node gives an output of its own: an EP may take one and leave another. All sides are equal,
 * so that a constant which is laid along another one gives no error but other numbers. */
static void constants(builder *b) {
    static const int64_t shapes[][3] = {{SIDE}, {SIDE, 1, 1}, {SIDE, SIDE}, {SIDE, SIDE}, {1}};
    static const int32_t ranks[] = {1, 3, 2, 2, 1};
    char room[160], weight[40], out[40];
    const char *x;
    unsigned i;
    input(b, "x", full);
    x = enter(b, "x", room, sizeof room);
    for (i = 0; i < sizeof ranks / sizeof ranks[0]; i++) {
        snprintf(weight, sizeof weight, "w%u", i);
        snprintf(out, sizeof out, "y%u", i);
        output(b, out, full);
        put_constant(b, weight, shapes[i], ranks[i]);
        if (i % 2 == 0)
            s_node(b, b->ep.weighted, x, weight, out);
        else
            s_node(b, b->ep.weighted, weight, x, out);
    }
}

/* Values that are prefixes of each other, with characters that are separators elsewhere. */
static void names(builder *b) {
    char room[160];
    const char *x;
    b->node_names = "/block 1/\xc3\xa9:";
    output(b, "out/y", full);
    output(b, "out/y:1", full);
    x = entry(b, "in/x", full, RANK, false, room, sizeof room);
    if (!b->ep.lone) step(b, 0, x, "out");
    b->node_names = "";
    step(b, 1, b->ep.lone ? x : "out", "out/y");
    step(b, 0, b->ep.lone ? x : "out", "out/y:1");
}

/* Both branches give S of a captured value. */
static void conditional(builder *b) {
    static const uint8_t yes = 1;
    epctx_graph bodies[2];
    epctx_node nodes[2];
    epctx_value outs[2];
    epctx_attr attrs[2];
    epctx_str reads[2], writes[2];
    size_t i;
    memset(bodies, 0, sizeof bodies);
    memset(nodes, 0, sizeof nodes);
    memset(outs, 0, sizeof outs);
    memset(attrs, 0, sizeof attrs);
    input(b, "x", full);
    if (!*b->ep.unary) input(b, "x2", full);
    output(b, "y", full);
    put_tensor(b, "yes", BOOLEAN, NULL, 0, &yes, 1);
    for (i = 0; i < 2; i++) {
        reads[0] = epctx_str_of("x");
        reads[1] = epctx_str_of("x2");
        writes[i] = epctx_str_of(i == 0 ? "then_y" : "else_y");
        nodes[i].name = epctx_str_of(i == 0 ? "then" : "else");
        nodes[i].op_type = epctx_str_of(*b->ep.unary ? b->ep.unary : b->ep.binary);
        nodes[i].inputs = reads;
        nodes[i].input_count = *b->ep.unary ? 1 : 2;
        nodes[i].outputs = &writes[i];
        nodes[i].output_count = 1;
        outs[i].name = writes[i];
        outs[i].elem_type = FLOAT32;
        outs[i].rank = RANK;
        outs[i].dims = full;
        bodies[i].name = nodes[i].name;
        bodies[i].nodes = &nodes[i];
        bodies[i].node_count = 1;
        bodies[i].outputs = &outs[i];
        bodies[i].output_count = 1;
        attrs[i].name = epctx_str_of(i == 0 ? "then_branch" : "else_branch");
        attrs[i].type = EPCTX_ATTR_GRAPH;
        attrs[i].g = &bodies[i];
    }
    put_node(b, "If", "yes", NULL, NULL, "y", attrs, 2);
}

/* What an EP of float32 must not take by accident: another type, a high rank. */
static void doubles(builder *b) {
    static const int64_t seven[MOST_DIMS] = {1, 1, 2, 1, 2, 1, 2};
    const char *op = *b->ep.unary ? b->ep.unary : b->ep.binary;
    const bool unary = *b->ep.unary != '\0';
    put_value(b, EPCTX_FIELD_GRAPH_INPUT, "x", FLOAT32, seven, MOST_DIMS);
    put_value(b, EPCTX_FIELD_GRAPH_OUTPUT, "y", FLOAT32, seven, MOST_DIMS);
    plain_node(b, op, "x", unary ? NULL : "x", "r");
    cast_node(b, "r", FLOAT64, "d");
    plain_node(b, op, "d", unary ? NULL : "d", "e");
    cast_node(b, "e", FLOAT32, "y");
}

bool is_sum_or_product(const char *op) {
    return strcmp(op, "Add") == 0 || strcmp(op, "Sub") == 0 || strcmp(op, "Mul") == 0;
}

bool claims_any(const ep_facts *ep) {
    return *ep->unary || *ep->weighted || *ep->binary || ep->form == FORM_GIVEN;
}

static bool can_make(trial *t, model_kind kind) {
    const ep_facts *ep = &t->board->ep;
    const bool bare = *ep->unary || *ep->binary;
    switch (kind) {
    case MODEL_NONE: return *ep->foreign != '\0';
    case MODEL_ISLAND: return *ep->foreign && claims_any(ep);
    case MODEL_FAN: return !ep->lone || *ep->foreign;
    case MODEL_CONST: return *ep->unary || *ep->weighted;
    case MODEL_WEIGHTS:
    case MODEL_WEXT:
    case MODEL_PAIR: return *ep->weighted != '\0';
    case MODEL_CONSTS: return is_sum_or_product(ep->weighted);
    case MODEL_SUB:
    case MODEL_SCALAR:
    case MODEL_ZERO: return bare;
    case MODEL_DYN:
    case MODEL_IF:
    case MODEL_DOUBLE: return bare && ep->form == FORM_FLOAT;
    default: return claims_any(ep);
    }
}

/* Its weight has another name in a pair. */
static void weights(builder *b, bool pair) {
    const char *weight = pair ? "its_weight" : "weight";
    char room[160];
    input(b, "x", full);
    output(b, "y", full);
    weighted_node(b, b->ep.weighted, enter(b, "x", room, sizeof room), weight,
                  b->ep.lone ? "y" : "m");
    if (b->ep.lone) return;
    step(b, 1, "m", pair ? "q" : "y");
    if (pair) step(b, 1, "q", "y");
}

static void fill(builder *b, model_kind kind) {
    static const int64_t none[RANK] = {1, SIDE, 0, 4};
    switch (kind) {
    case MODEL_SUB: sub(b); break;
    case MODEL_ISLAND: island(b); break;
    case MODEL_FAN: fan(b); break;
    case MODEL_CONST: constant(b); break;
    case MODEL_CONSTS: constants(b); break;
    case MODEL_SCALAR: scalar(b); break;
    case MODEL_NAMES: names(b); break;
    case MODEL_IF: conditional(b); break;
    case MODEL_DOUBLE: doubles(b); break;
    case MODEL_ZERO: chain(b, none, 2); break;
    case MODEL_DYN:
        b->open_batch = true;
        chain(b, small, 3);
        break;
    case MODEL_OTHER:
        b->seed = 5;
        chain(b, full, 4);
        break;
    case MODEL_WEIGHTS:
    case MODEL_WEXT:
    case MODEL_PAIR: weights(b, kind == MODEL_PAIR); break;
    case MODEL_NONE:
        input(b, "x", full);
        output(b, "y", full);
        foreign_step(b, "x", "y");
        break;
    default: chain(b, full, 3); break;
    }
}

bool make_model(trial *t, model_kind kind, const char *path) {
    const bool given = t->board->ep.form == FORM_GIVEN && kind != MODEL_NONE;
    builder b;
    if (given ? !can_change(kind) : !can_make(t, kind)) {
        ort_code = ORT_OK;
        snprintf(ort_text, sizeof ort_text, "the EP claims no operator that '%s' is made of",
                 model_names[kind]);
        return false;
    }
    if (given) return make_given(t, kind, path);
    begin(t, &b);
    put_grid(&b);
    fill(&b, kind);
    if (kind == MODEL_WEXT && b.status == EPCTX_OK && !make_external(&b.model, path, &b.error))
        note(&b, epctx_fail(&b.error, EPCTX_ERR_IO, "%s: the weights beside it", path));
    return end(&b, path);
}

static bool is_weighted(const char *op) {
    const char *const *w;
    for (w = weighted_ops; *w; w++)
        if (strcmp(*w, op) == 0) return true;
    return false;
}

bool make_probe(trial *t, form how, const char *op, const char *path) {
    builder b;
    char room[160];
    const char *x;
    begin(t, &b);
    b.form = how;
    put_grid(&b);
    input(&b, "x", full);
    output(&b, "y", full);
    x = enter(&b, "x", room, sizeof room);
    if (is_weighted(op)) {
        weighted_node(&b, op, x, "w0", b.ep.lone ? "y" : "m");
        if (!b.ep.lone) weighted_node(&b, op, "m", "w1", "y");
    } else if (strcmp(op, "double") == 0 || strcmp(op, "Trilu") == 0) {
        snprintf(b.ep.foreign, OP, "%s", op);
        foreign_step(&b, x, "y");
    } else {
        s_node(&b, op, x, NULL, b.ep.lone ? "y" : "m");
        if (!b.ep.lone) s_node(&b, op, "m", NULL, "y");
    }
    return end(&b, path);
}

bool make_probe_binary(trial *t, form how, const char *op, const char *path) {
    builder b;
    char rooms[2][160];
    const char *x, *y;
    begin(t, &b);
    b.form = how;
    put_grid(&b);
    input(&b, "a", full);
    input(&b, "b", full);
    output(&b, "y", full);
    x = enter(&b, "a", rooms[0], sizeof rooms[0]);
    y = enter(&b, "b", rooms[1], sizeof rooms[1]);
    s_node(&b, op, x, y, b.ep.lone ? "y" : "m");
    if (!b.ep.lone) s_node(&b, op, "m", y, "y");
    return end(&b, path);
}

bool make_custom(trial *t, const char *domain, const char *op, const char *path) {
    builder b;
    begin(t, &b);
    input(&b, "x", full);
    output(&b, "y", full);
    custom_node(&b, domain, op, "x", "y");
    return end(&b, path);
}
