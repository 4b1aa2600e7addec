/* device_mine.c - the device to begin with: it knows Relu, Add, Sub and Mul of float tensors with a
 * fixed shape, without broadcasting, and one EP option, and is complete in everything else.
 * examples/README.md walks through it: copy the file, give it your names, then replace one part
 * marked YOURS after the other by your SDK.
 *
 * Context binary: "MINE1\0\0\0", then for each graph a `mine_graph`, its steps and its weights, as
 * this machine stores them.
 */
#include "device.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_RANK = 6, MAX_ENDS = 8, MAX_STEPS = 4096, NAME = 192 };

typedef struct mine_value {
    char name[NAME];
    int32_t rank;
    int64_t dims[MAX_RANK];
} mine_value;

/* A session's device. YOURS: the handle of your SDK. */
typedef struct mine_device {
    uint64_t max_elements; /* EP option: larger tensors are left to the CPU */
} mine_device;

/* A graph computes numbered values: first its inputs, then one in each step. */
typedef struct mine_step {
    uint32_t kind;    /* STEP_WEIGHT or a place in `operators` */
    uint32_t from[2]; /* values */
    uint32_t unused;
    uint64_t count; /* elements */
    uint64_t at;    /* STEP_WEIGHT: offset among the weights; else, when loaded, in scratch */
} mine_step;

typedef struct mine_graph {
    char name[NAME];
    uint64_t hash;
    uint32_t input_count, output_count, step_count;
    uint32_t source[MAX_ENDS]; /* the value of each output */
    mine_value inputs[MAX_ENDS], outputs[MAX_ENDS];
    uint64_t weight_size;
} mine_graph;

/* YOURS: eight bytes of your own. Two EPs with one magic take each other's binaries for theirs;
 * with a new number at the end for each change of the format old ones are refused, not misread. */
static const char magic[8] = "MINE1";

/* -------------------------------------------------------------- 0. operators */

static float relu(float x, float y) {
    (void)y;
    return x > 0 ? x : 0;
}

static float add(float x, float y) {
    return x + y;
}

static float subtract(float x, float y) {
    return x - y;
}

static float multiply(float x, float y) {
    return x * y;
}

typedef struct mine_operator {
    const char *op_type;
    uint32_t operands; /* 1 or 2 */
    float (*compute_fn)(float x, float y);
} mine_operator;

/* YOURS: what the hardware computes. Binaries hold places in this list: append to it. */
static const mine_operator operators[] = {
    {"", 0, NULL}, /* STEP_WEIGHT: a value that is there */
    {"Relu", 1, relu}, {"Add", 2, add}, {"Sub", 2, subtract}, {"Mul", 2, multiply},
};

enum { STEP_WEIGHT, OPERATOR_COUNT = sizeof operators / sizeof operators[0] };

/* False for more than this device computes. */
static bool count_elements(int32_t rank, const int64_t *dims, uint64_t *count) {
    int32_t i;
    *count = 1;
    if (rank < 0 || rank > MAX_RANK) return false;
    for (i = 0; i < rank; i++) {
        if (dims[i] < 0 || dims[i] > 1 << 20) return false;
        *count *= (uint64_t)dims[i];
        if (*count > 1 << 28) return false;
    }
    return true;
}

/* ------------------------------------------------- 1. which nodes are taken */

static const epctx_value *find_value(const epctx_value *values, size_t count, epctx_str name) {
    size_t i;
    for (i = 0; i < count; i++)
        if (epctx_str_eq(values[i].name, name)) return &values[i];
    return NULL;
}

/* YOURS, if you have weights: they are the graph's initializers, their bytes in `data`. */
static const epctx_tensor *find_weight(const epctx_graph *graph, epctx_str name) {
    size_t i;
    for (i = 0; i < graph->initializer_count; i++)
        if (epctx_str_eq(graph->initializers[i].name, name)) return &graph->initializers[i];
    return NULL;
}

/* What is called `name`, a weight or a value; false if there is no such thing. */
static bool find_type(const epctx_graph *graph, epctx_str name, epctx_value *out) {
    const epctx_tensor *weight = find_weight(graph, name);
    const epctx_value *found = find_value(graph->values, graph->value_count, name);
    if (!found) found = find_value(graph->inputs, graph->input_count, name);
    if (!found) found = find_value(graph->outputs, graph->output_count, name);
    memset(out, 0, sizeof *out);
    if (found) *out = *found;
    if (!found && weight && weight->data) {
        out->name = weight->name;
        out->elem_type = weight->elem_type;
        out->rank = weight->rank;
        out->dims = weight->dims;
    }
    return found || (weight && weight->data);
}

static bool type_fits(const epctx_value *type) {
    uint64_t count;
    return type->elem_type == EPCTX_ONNX_FLOAT && type->name.size < NAME &&
           count_elements(type->rank, type->dims, &count);
}

static bool same_shape(const epctx_value *a, const epctx_value *b) {
    return a->rank == b->rank &&
           (a->rank == 0 || memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) == 0);
}

/* The operator of a node; STEP_WEIGHT: none. */
static uint32_t operator_of(const epctx_node *node) {
    uint32_t i;
    for (i = STEP_WEIGHT + 1; i < OPERATOR_COUNT; i++)
        if (node->domain.size == 0 && epctx_str_is(node->op_type, operators[i].op_type)) return i;
    return STEP_WEIGHT;
}

/* Why a node is not for this device; NULL: it is. */
static const char *refusal(const mine_device *device, const epctx_graph *graph,
                           const epctx_node *node) {
    const uint32_t kind = operator_of(node);
    uint64_t count;
    epctx_value out, in;
    size_t i;
    if (kind == STEP_WEIGHT) return "the device has no such operator";
    if (node->input_count != operators[kind].operands || node->output_count != 1)
        return "the device has this operator with another number of inputs or outputs";
    if (!find_type(graph, node->outputs[0], &out) || !type_fits(&out))
        return "its output is not float of a fixed shape";
    if (!count_elements(out.rank, out.dims, &count) || count > device->max_elements)
        return "its output has more elements than the EP option max_elements";
    for (i = 0; i < node->input_count; i++) {
        if (!find_type(graph, node->inputs[i], &in) || !type_fits(&in))
            return "an input is not float of a fixed shape";
        if (!same_shape(&in, &out)) return "it broadcasts an input";
    }
    return NULL;
}

/* YOURS: ask your SDK, node by node. Types are in the graph's inputs, outputs and values, weights
 * in its initializers. Take too little rather than too much: what is taken here and refused in
 * mine_compile fails the application's session. */
static epctx_status mine_capability(void *self, const epctx_graph *graph, uint8_t *take,
                                    epctx_error *error) {
    size_t i;
    (void)error;
    for (i = 0; i < graph->node_count; i++)
        take[i] = !refusal((const mine_device *)self, graph, &graph->nodes[i]);
    return EPCTX_OK;
}

/* YOURS: what a user reads who wonders why a node is on the CPU. */
static epctx_status mine_explain(void *self, const epctx_graph *graph, size_t index,
                                 epctx_error *error) {
    const char *why = refusal((const mine_device *)self, graph, &graph->nodes[index]);
    return why ? epctx_fail(error, EPCTX_ERR_UNSUPPORTED, "%s", why) : EPCTX_OK;
}

/* ------------------------------------------------------------- 2. compiling */

/* A context under construction is a buffer of compiled graphs. */
static epctx_status mine_begin(void *self, void **build, epctx_error *error) {
    epctx_buffer *buffer = (epctx_buffer *)malloc(sizeof *buffer);
    (void)self;
    if (!buffer) return epctx_fail(error, EPCTX_ERR_NOMEM, "no memory");
    epctx_buffer_init(buffer, NULL);
    *build = buffer;
    return epctx_buffer_append(buffer, magic, sizeof magic);
}

static void mine_discard(void *self, void *build) {
    (void)self;
    epctx_buffer_free((epctx_buffer *)build);
    free(build);
}

/* A graph on its way into the binary. */
typedef struct compiling {
    const mine_device *device;
    mine_graph head;
    epctx_buffer steps, weights;
    epctx_arena arena;
    epctx_map values; /* name -> number */
} compiling;

/* Adds a step; its value is called `name`. */
static epctx_status add_step(compiling *c, epctx_str name, mine_step *step, epctx_error *error) {
    const uint32_t value = c->head.input_count + c->head.step_count;
    if (c->head.step_count == MAX_STEPS) {
        return epctx_fail(error, EPCTX_ERR_BACKEND, "a graph of more than %u steps",
                          (uint64_t)MAX_STEPS);
    }
    c->head.step_count++;
    return epctx_map_put(&c->values, name, value) == EPCTX_OK
               ? epctx_buffer_append(&c->steps, step, sizeof *step)
               : epctx_fail(error, EPCTX_ERR_NOMEM, "no memory");
}

/* The number of the value `name`; a weight becomes one when it is first used. */
static epctx_status use_value(compiling *c, const epctx_graph *graph, epctx_str name, uint32_t *out,
                              epctx_error *error) {
    const epctx_tensor *weight = find_weight(graph, name);
    mine_step step;
    epctx_status status;
    *out = epctx_map_get(&c->values, name);
    if (*out != EPCTX_MAP_NONE) return EPCTX_OK;
    memset(&step, 0, sizeof step);
    if (!weight || !weight->data || !count_elements(weight->rank, weight->dims, &step.count) ||
        weight->size != step.count * sizeof(float))
        return epctx_fail(error, EPCTX_ERR_BACKEND, "value '%S' comes from nowhere", &name);
    step.kind = STEP_WEIGHT;
    step.at = c->weights.size;
    status = epctx_buffer_append(&c->weights, weight->data, weight->size);
    if (status == EPCTX_OK) status = add_step(c, name, &step, error);
    *out = epctx_map_get(&c->values, name);
    return status;
}

static epctx_status add_node(compiling *c, const epctx_graph *graph, const epctx_node *node,
                             epctx_error *error) {
    const char *why = refusal(c->device, graph, node);
    epctx_status status = EPCTX_OK;
    epctx_value type;
    mine_step step;
    size_t i;
    memset(&step, 0, sizeof step); /* no stray bytes in the binary */
    step.kind = operator_of(node);
    if (why || !find_type(graph, node->outputs[0], &type) ||
        !count_elements(type.rank, type.dims, &step.count)) {
        return epctx_fail(error, EPCTX_ERR_BACKEND, "node '%S': %s", &node->name,
                          why ? why : "its output has no type");
    }
    for (i = 0; i < node->input_count && status == EPCTX_OK; i++)
        status = use_value(c, graph, node->inputs[i], &step.from[i], error);
    return status == EPCTX_OK ? add_step(c, node->outputs[0], &step, error) : status;
}

/* The ends of a graph need not be those of the nodes that mine_capability saw: look again. */
static epctx_status copy_end(mine_value *to, const epctx_value *from, epctx_error *error) {
    if (!type_fits(from)) {
        return epctx_fail(error, EPCTX_ERR_BACKEND, "'%S' has a type or a name that does not fit",
                          &from->name);
    }
    memcpy(to->name, from->name.data, from->name.size);
    to->rank = from->rank;
    if (from->rank) memcpy(to->dims, from->dims, (size_t)from->rank * sizeof *from->dims);
    return EPCTX_OK;
}

static epctx_status add_graph(compiling *c, const epctx_graph *graph, epctx_error *error) {
    epctx_status status = EPCTX_OK;
    size_t i;
    for (i = 0; i < graph->input_count && status == EPCTX_OK; i++) {
        status = copy_end(&c->head.inputs[i], &graph->inputs[i], error);
        if (status == EPCTX_OK)
            status = epctx_map_put(&c->values, graph->inputs[i].name, (uint32_t)i);
    }
    for (i = 0; i < graph->node_count && status == EPCTX_OK; i++)
        status = add_node(c, graph, &graph->nodes[i], error);
    for (i = 0; i < graph->output_count && status == EPCTX_OK; i++) {
        status = copy_end(&c->head.outputs[i], &graph->outputs[i], error);
        if (status == EPCTX_OK)
            status = use_value(c, graph, graph->outputs[i].name, &c->head.source[i], error);
    }
    c->head.weight_size = c->weights.size;
    return status;
}

/* YOURS: turn the graph into what your hardware runs. Store `hash`, mine_find gives it back. */
static epctx_status mine_compile(void *self, void *build, const epctx_graph *graph, epctx_str name,
                                 uint64_t hash, epctx_error *error) {
    epctx_buffer *out = (epctx_buffer *)build;
    const size_t before = out->size;
    compiling c;
    epctx_status status;
    if (graph->input_count > MAX_ENDS || graph->output_count > MAX_ENDS || name.size >= NAME) {
        return epctx_fail(error, EPCTX_ERR_BACKEND, "graph '%S' has too many inputs or outputs",
                          &name);
    }
    memset(&c, 0, sizeof c);
    c.device = (const mine_device *)self;
    memcpy(c.head.name, name.data, name.size);
    c.head.hash = hash;
    c.head.input_count = (uint32_t)graph->input_count;
    c.head.output_count = (uint32_t)graph->output_count;
    epctx_buffer_init(&c.steps, NULL);
    epctx_buffer_init(&c.weights, NULL);
    epctx_arena_init(&c.arena, NULL);
    epctx_map_init(&c.values, &c.arena);
    status = add_graph(&c, graph, error);
    if (status == EPCTX_OK) status = epctx_buffer_append(out, &c.head, sizeof c.head);
    if (status == EPCTX_OK) status = epctx_buffer_append(out, c.steps.data, c.steps.size);
    if (status == EPCTX_OK) status = epctx_buffer_append(out, c.weights.data, c.weights.size);
    if (status != EPCTX_OK) out->size = before; /* other graphs may follow */
    epctx_buffer_free(&c.steps);
    epctx_buffer_free(&c.weights);
    epctx_arena_free(&c.arena);
    return status;
}

static epctx_status mine_finish(void *self, void *build, epctx_buffer *out, epctx_error *error) {
    const epctx_buffer *buffer = (const epctx_buffer *)build;
    const epctx_status status = epctx_buffer_append(out, buffer->data, buffer->size);
    (void)error;
    mine_discard(self, build);
    return status;
}

/* --------------------------------------------------------------- 3. loading */

typedef struct mine_loaded {
    mine_graph graph;
    mine_step *steps;
    const uint8_t *weights; /* in the binary */
    size_t scratch_size;
    epctx_value inputs[MAX_ENDS], outputs[MAX_ENDS];
} mine_loaded;

typedef struct mine_context {
    size_t count;
    mine_loaded *graphs;
} mine_context;

static void mine_unload(void *self, void *context) {
    mine_context *c = (mine_context *)context;
    size_t i;
    (void)self;
    for (i = 0; i < c->count; i++) free(c->graphs[i].steps);
    free(c->graphs);
    free(c);
}

/* The binary came from a file that anybody may have changed: do not trust anything in it. */
static bool expose(epctx_value *to, const mine_value *from) {
    uint64_t count;
    if (!memchr(from->name, 0, NAME) || !count_elements(from->rank, from->dims, &count))
        return false;
    to->name = epctx_str_of(from->name);
    to->elem_type = EPCTX_ONNX_FLOAT;
    to->rank = from->rank;
    to->dims = from->dims;
    return true;
}

/* The elements of a value that `at` steps have computed; UINT64_MAX: there is none. */
static uint64_t count_of(const mine_loaded *g, uint32_t value, uint32_t at) {
    uint64_t count = UINT64_MAX;
    if (value < g->graph.input_count)
        count_elements(g->inputs[value].rank, g->inputs[value].dims, &count);
    else if (value - g->graph.input_count < at)
        count = g->steps[value - g->graph.input_count].count;
    return count;
}

static bool step_is_sane(const mine_loaded *g, uint32_t at) {
    const mine_step *step = &g->steps[at];
    const uint64_t size = step->count * sizeof(float);
    uint32_t i;
    if (step->count > 1 << 28 || step->kind >= OPERATOR_COUNT) return false;
    if (step->kind == STEP_WEIGHT)
        return step->at <= g->graph.weight_size && size <= g->graph.weight_size - step->at;
    for (i = 0; i < operators[step->kind].operands; i++)
        if (count_of(g, step->from[i], at) != step->count) return false;
    return true;
}

static bool graph_is_sane(mine_loaded *g) {
    uint32_t i;
    for (i = 0; i < g->graph.input_count; i++)
        if (!expose(&g->inputs[i], &g->graph.inputs[i])) return false;
    for (i = 0; i < g->graph.step_count; i++) {
        mine_step *step = &g->steps[i];
        if (!step_is_sane(g, i) || g->scratch_size > SIZE_MAX / 4) return false;
        if (step->kind == STEP_WEIGHT) continue;
        step->at = g->scratch_size; /* one result behind the other */
        g->scratch_size += ((size_t)step->count * sizeof(float) + 63) / 64 * 64;
    }
    for (i = 0; i < g->graph.output_count; i++) {
        uint64_t count;
        if (!expose(&g->outputs[i], &g->graph.outputs[i]) ||
            !count_elements(g->outputs[i].rank, g->outputs[i].dims, &count) ||
            count_of(g, g->graph.source[i], g->graph.step_count) != count)
            return false;
    }
    return true;
}

/* Takes a graph from the front of `rest`. What is checked is copied: the file may be mapped, and
 * change. Weights are only numbers and stay where they are. */
static bool take_graph(epctx_span *rest, mine_loaded *to, bool *memory) {
    mine_graph *graph = &to->graph;
    size_t size;
    if (rest->size < sizeof *graph) return false;
    memcpy(graph, rest->data, sizeof *graph);
    rest->data += sizeof *graph;
    rest->size -= sizeof *graph;
    size = (size_t)graph->step_count * sizeof *to->steps;
    if (!memchr(graph->name, 0, NAME) || graph->input_count > MAX_ENDS ||
        graph->output_count > MAX_ENDS || graph->step_count > MAX_STEPS || size > rest->size ||
        graph->weight_size > rest->size - size)
        return false;
    to->steps = (mine_step *)malloc(size + 1);
    *memory = to->steps != NULL;
    if (!*memory) return false;
    memcpy(to->steps, rest->data, size);
    to->weights = rest->data + size;
    size += (size_t)graph->weight_size;
    rest->data += size;
    rest->size -= size;
    return graph_is_sane(to);
}

static const char sdk_version[] = "1.0.0", architecture[] = "mine1";

/* YOURS: can this device run a context that was made for `node`'s hardware, by its SDK? Here the
 * hardware must be the same and the SDK's major version, as in epctx_compat_compare. What a
 * node does not tell is not checked. */
static epctx_status mine_check(void *self, const epctx_epnode *node, epctx_error *error) {
    const epctx_str made_by = node->ep_sdk_version;
    const size_t major = strcspn(sdk_version, ".") + 1; /* with the dot */
    (void)self;
    if (node->hardware_architecture.size &&
        !epctx_str_is(node->hardware_architecture, architecture)) {
        return epctx_fail(error, EPCTX_ERR_VERSION, "hardware_architecture: expected %s, found %S",
                          architecture, &node->hardware_architecture);
    }
    if (made_by.size && (made_by.size < major || memcmp(made_by.data, sdk_version, major) != 0)) {
        return epctx_fail(error, EPCTX_ERR_VERSION,
                          "ep_sdk_version: expected %s or another minor version, found %S",
                          sdk_version, &made_by);
    }
    return EPCTX_OK;
}

/* YOURS: hand the binary to your SDK. It stays valid until mine_unload, so weights need not be
 * copied. in->path is its file and in->record the node, if your SDK wants these. */
static epctx_status mine_load(void *self, const epctx_load_in *in, void **out, epctx_error *error) {
    epctx_span rest = in->binary;
    mine_context *context;
    bool memory = true;
    if (rest.size < sizeof magic || memcmp(rest.data, magic, sizeof magic) != 0)
        return epctx_fail(error, EPCTX_ERR_CONTEXT, "not a context binary of this EP");
    rest.data += sizeof magic;
    rest.size -= sizeof magic;
    context = (mine_context *)calloc(1, sizeof *context);
    if (!context) return epctx_fail(error, EPCTX_ERR_NOMEM, "no memory");
    context->graphs =
        (mine_loaded *)calloc(rest.size / sizeof(mine_graph) + 1, sizeof *context->graphs);
    memory = context->graphs != NULL;
    while (memory && rest.size > 0) {
        if (take_graph(&rest, &context->graphs[context->count++], &memory)) continue;
        if (!memory) break;
        epctx_fail(error, EPCTX_ERR_CONTEXT, "graph %u of the binary is damaged",
                   (uint64_t)context->count - 1);
        mine_unload(self, context);
        return EPCTX_ERR_CONTEXT;
    }
    if (!memory) {
        mine_unload(self, context);
        return epctx_fail(error, EPCTX_ERR_NOMEM, "no memory");
    }
    *out = context;
    return EPCTX_OK;
}

static epctx_str mine_name(const void *graphs, size_t index) {
    return epctx_str_of(((const mine_loaded *)graphs)[index].graph.name);
}

static epctx_status mine_find(void *self, void *context, epctx_str name, uint64_t hash,
                              void **graph, epctx_error *error) {
    mine_context *c = (mine_context *)context;
    size_t i;
    (void)self;
    for (i = 0; i < c->count; i++) {
        if (!epctx_str_is(name, c->graphs[i].graph.name)) continue;
        if (hash && hash != c->graphs[i].graph.hash) {
            return epctx_fail(error, EPCTX_ERR_VERSION,
                              "graph '%S' is of another generation: expected %x, found %x", &name,
                              hash, c->graphs[i].graph.hash);
        }
        *graph = &c->graphs[i];
        return EPCTX_OK;
    }
    return epctx_fail_no_graph(error, name, c->graphs, c->count, mine_name);
}

/* --------------------------------------------------------------- 4. running */

static epctx_status mine_info(void *self, void *graph, epctx_graph_info *info, epctx_error *error) {
    const mine_loaded *loaded = (const mine_loaded *)graph;
    (void)self, (void)error;
    info->name = epctx_str_of(loaded->graph.name);
    info->inputs = loaded->inputs;
    info->input_count = loaded->graph.input_count;
    info->outputs = loaded->outputs;
    info->output_count = loaded->graph.output_count;
    info->scratch_size = loaded->scratch_size;
    return EPCTX_OK;
}

/* Where a value is in this run. */
static const uint8_t *place_of(const mine_loaded *g, uint32_t value, const epctx_span *inputs,
                               const uint8_t *scratch) {
    const mine_step *step;
    if (value < g->graph.input_count) return inputs[value].data;
    step = &g->steps[value - g->graph.input_count];
    return (step->kind == STEP_WEIGHT ? g->weights : scratch) + step->at;
}

/* Weights may be anywhere in the binary: not aligned. */
static float number_at(const uint8_t *from, size_t index) {
    float number;
    memcpy(&number, from + index * sizeof number, sizeof number);
    return number;
}

static void run_step(const mine_step *step, const uint8_t *a, const uint8_t *b, float *out) {
    const mine_operator *op = &operators[step->kind];
    size_t i;
    for (i = 0; i < step->count; i++) out[i] = op->compute_fn(number_at(a, i), number_at(b, i));
}

/* YOURS: start the hardware and wait. Inputs and outputs are ORT's own tensors, `scratch` has
 * mine_info's bytes, aligned to 64. Several threads may be here at once, each with its own
 * scratch. */
static epctx_status mine_run(void *self, void *graph, const epctx_span *inputs,
                             const epctx_memory *outputs, void *scratch, size_t scratch_size,
                             epctx_error *error) {
    const mine_loaded *g = (const mine_loaded *)graph;
    uint8_t *results = (uint8_t *)scratch;
    uint32_t i;
    (void)self, (void)scratch_size, (void)error;
    for (i = 0; i < g->graph.step_count; i++) {
        const mine_step *step = &g->steps[i];
        if (step->kind == STEP_WEIGHT) continue;
        run_step(step, place_of(g, step->from[0], inputs, results),
                 place_of(g, step->from[operators[step->kind].operands - 1], inputs, results),
                 (float *)(void *)(results + step->at));
    }
    for (i = 0; i < g->graph.output_count; i++) {
        const uint8_t *from = place_of(g, g->graph.source[i], inputs, results);
        if (outputs[i].size) memcpy(outputs[i].data, from, outputs[i].size);
    }
    return EPCTX_OK;
}

/* ---------------------------------------------------------------- the device */

/* YOURS: release what mine_open made. */
static void mine_close(epctx_backend *backend) {
    free(backend->self);
}

/* YOURS: the names of the EP options that mine_open reads, then NULL. */
static const char *const option_keys[] = {"max_elements", NULL};

/* YOURS: open the device. Each session calls this once. A failure has a message, and leaves nothing
 * behind. */
static epctx_status mine_open(const ep_options *options, epctx_backend *backend,
                              epctx_error *error) {
    const char *text = ep_option_get(options, "max_elements");
    uint64_t max_elements = UINT64_MAX;
    mine_device *self;
    if (text && !epctx_str_number(epctx_str_of(text), &max_elements)) {
        return epctx_fail(error, EPCTX_ERR_ARG,
                          "option max_elements: expected a number, found '%s'", text);
    }
    self = (mine_device *)calloc(1, sizeof *self);
    if (!self) return epctx_fail(error, EPCTX_ERR_NOMEM, "no memory");
    self->max_elements = max_elements;
    memset(backend, 0, sizeof *backend);
    backend->version = EPCTX_BACKEND_VERSION;
    backend->self = self;
    backend->source = "MineExecutionProvider"; /* marks our EPContext nodes */
    backend->short_name = "mine";              /* model_mine.bin */
    backend->sdk_version = sdk_version;
    backend->hardware_architecture = architecture;
    backend->capability_fn = mine_capability;
    backend->begin_fn = mine_begin;
    backend->compile_fn = mine_compile;
    backend->finish_fn = mine_finish;
    backend->discard_fn = mine_discard;
    backend->load_fn = mine_load;
    backend->unload_fn = mine_unload;
    backend->find_fn = mine_find;
    backend->info_fn = mine_info;
    backend->run_fn = mine_run;
    backend->explain_fn = mine_explain;
    backend->check_fn = mine_check;
    return EPCTX_OK;
}

/* For applications that choose among devices, as in the EPContext nodes. */
static const char *const metadata[] = {"hardware_architecture", architecture, "ep_sdk_version",
                                       sdk_version, NULL};

/* YOURS: the first four. */
static const ep_device device = {
    "MineExecutionProvider",
    "Mine, Inc.", /* vendor */
    0x1234,       /* vendor_id */
    "1.0.0",      /* version of the EP, in three numbers */
    mine_open,
    mine_close,
    NULL, /* dynamic_keys: nothing changes while a session lives */
    NULL, /* dynamic_fn */
    NULL, /* channels_last_fn: the device wants channels first */
    NULL, /* convert_fn */
    option_keys,
    NULL, /* present_fn: YOURS, is the device in this machine? */
    metadata,
    NULL, /* run_fn: the device has threads of its own */
};

const ep_device *ep_device_get(void) {
    return &device;
}
