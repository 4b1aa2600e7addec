/* device_mine.c - the device to begin with: it knows one operator, Relu of float tensors with a
 * fixed shape, and is complete in everything else. examples/README.md walks through it: copy the
 * file, give it your names, then replace one part marked YOURS after the other by your SDK.
 *
 * Context binary: "MINE1\0\0\0", then one `mine_graph` after the other as this machine stores them.
 */
#include "device.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_RANK = 6, MAX_ENDS = 8, NAME = 192 };

typedef struct mine_value {
    char name[NAME];
    int32_t rank;
    int64_t dims[MAX_RANK];
} mine_value;

/* A compiled graph: output i is the Relu of input source[i]. */
typedef struct mine_graph {
    char name[NAME];
    uint64_t hash;
    uint32_t input_count, output_count;
    mine_value inputs[MAX_ENDS], outputs[MAX_ENDS];
    uint32_t source[MAX_ENDS];
} mine_graph;

/* YOURS: eight bytes of your own. Two EPs with one magic take each other's binaries for theirs;
 * with a new number at the end for each change of the format old ones are refused, not misread. */
static const char magic[8] = "MINE1";

/* ------------------------------------------------- 1. which nodes are taken */

static const epctx_value *find_value(const epctx_value *values, size_t count, epctx_str name)
{
    size_t i;
    for (i = 0; i < count; i++) {
        if (epctx_str_eq(values[i].name, name)) return &values[i];
    }
    return NULL;
}

static const epctx_value *find_in_graph(const epctx_graph *graph, epctx_str name)
{
    const epctx_value *found = find_value(graph->values, graph->value_count, name);
    if (!found) found = find_value(graph->inputs, graph->input_count, name);
    if (!found) found = find_value(graph->outputs, graph->output_count, name);
    return found;
}

static bool value_fits(const epctx_value *value)
{
    int32_t i;
    if (!value || value->elem_type != EPCTX_ONNX_FLOAT || value->rank < 0 ||
        value->rank > MAX_RANK || value->name.size >= NAME) {
        return false;
    }
    for (i = 0; i < value->rank; i++) {
        if (value->dims[i] < 0) return false;
    }
    return true;
}

/* YOURS: ask your SDK, node by node. Types are in the graph's inputs, outputs and values, weights
 * in its initializers. Take too little rather than too much: what is taken here and refused in
 * mine_compile fails the application's session. */
static epctx_status mine_capability(void *self, const epctx_graph *graph, uint8_t *take,
                                    epctx_error *error)
{
    size_t i;
    (void)self, (void)error;
    for (i = 0; i < graph->node_count; i++) {
        const epctx_node *node = &graph->nodes[i];
        if (!epctx_str_is(node->op_type, "Relu") || node->domain.size) continue;
        take[i] = value_fits(find_in_graph(graph, node->inputs[0])) &&
                  value_fits(find_in_graph(graph, node->outputs[0]));
    }
    return EPCTX_OK;
}

/* ------------------------------------------------------------- 2. compiling */

/* A context under construction is a buffer of compiled graphs. */
static epctx_status mine_begin(void *self, void **build, epctx_error *error)
{
    epctx_buffer *buffer = (epctx_buffer *)malloc(sizeof *buffer);
    (void)self;
    if (!buffer) return epctx_fail(error, EPCTX_ERR_NOMEM, "no memory");
    epctx_buffer_init(buffer, NULL);
    *build = buffer;
    return epctx_buffer_append(buffer, magic, sizeof magic);
}

static void mine_discard(void *self, void *build)
{
    (void)self;
    epctx_buffer_free((epctx_buffer *)build);
    free(build);
}

/* The ends of a graph need not be those of the nodes that mine_capability saw: look again. */
static epctx_status copy_value(mine_value *to, const epctx_value *from, epctx_error *error)
{
    if (!value_fits(from)) {
        return epctx_fail(error, EPCTX_ERR_BACKEND, "'%S' has a type or a name that does not fit",
                          &from->name);
    }
    memcpy(to->name, from->name.data, from->name.size);
    to->rank = from->rank;
    if (from->rank) memcpy(to->dims, from->dims, (size_t)from->rank * sizeof *from->dims);
    return EPCTX_OK;
}

/* The input a value comes from, through a chain of Relus. */
static uint32_t source_of(const epctx_graph *graph, epctx_str name)
{
    size_t i, k;
    for (i = graph->node_count; i-- > 0;) {
        if (epctx_str_eq(graph->nodes[i].outputs[0], name)) name = graph->nodes[i].inputs[0];
    }
    for (k = 0; k < graph->input_count; k++) {
        if (epctx_str_eq(graph->inputs[k].name, name)) return (uint32_t)k;
    }
    return UINT32_MAX;
}

/* YOURS: turn the graph into what your hardware runs. Store `hash`, mine_find gives it back. */
static epctx_status mine_compile(void *self, void *build, const epctx_graph *graph, epctx_str name,
                                 uint64_t hash, epctx_error *error)
{
    mine_graph *out;
    epctx_status status = EPCTX_OK;
    size_t i;
    (void)self;
    if (graph->input_count > MAX_ENDS || graph->output_count > MAX_ENDS || name.size >= NAME) {
        return epctx_fail(error, EPCTX_ERR_BACKEND, "graph '%S' has too many inputs or outputs",
                          &name);
    }
    out = (mine_graph *)calloc(1, sizeof *out); /* zeroed: no stray bytes in the binary */
    if (!out) return epctx_fail(error, EPCTX_ERR_NOMEM, "no memory");
    memcpy(out->name, name.data, name.size);
    out->hash = hash;
    out->input_count = (uint32_t)graph->input_count;
    out->output_count = (uint32_t)graph->output_count;
    for (i = 0; i < graph->input_count && status == EPCTX_OK; i++)
        status = copy_value(&out->inputs[i], &graph->inputs[i], error);
    for (i = 0; i < graph->output_count && status == EPCTX_OK; i++) {
        status = copy_value(&out->outputs[i], &graph->outputs[i], error);
        if (status != EPCTX_OK) break;
        out->source[i] = source_of(graph, graph->outputs[i].name);
        if (out->source[i] == UINT32_MAX) {
            status = epctx_fail(error, EPCTX_ERR_BACKEND, "output '%S' comes from nowhere",
                                &graph->outputs[i].name);
        }
    }
    if (status == EPCTX_OK) status = epctx_buffer_append((epctx_buffer *)build, out, sizeof *out);
    free(out);
    return status;
}

static epctx_status mine_finish(void *self, void *build, epctx_buffer *out, epctx_error *error)
{
    const epctx_buffer *buffer = (const epctx_buffer *)build;
    const epctx_status status = epctx_buffer_append(out, buffer->data, buffer->size);
    (void)error;
    mine_discard(self, build);
    return status;
}

/* --------------------------------------------------------------- 3. loading */

typedef struct mine_loaded {
    mine_graph graph;
    epctx_value inputs[MAX_ENDS], outputs[MAX_ENDS];
} mine_loaded;

typedef struct mine_context {
    size_t count;
    mine_loaded *graphs;
} mine_context;

static void mine_unload(void *self, void *context)
{
    (void)self;
    free(((mine_context *)context)->graphs);
    free(context);
}

/* The binary came from a file that anybody may have changed: do not trust anything in it. */
static bool value_is_sane(const mine_value *value)
{
    int32_t i;
    int64_t elements = 1;
    if (!memchr(value->name, 0, NAME) || value->rank < 0 || value->rank > MAX_RANK) return false;
    for (i = 0; i < value->rank; i++) {
        if (value->dims[i] < 0 || value->dims[i] > 1 << 20) return false;
        elements *= value->dims[i];
        if (elements > 1 << 28) return false;
    }
    return true;
}

static int64_t elements_of(const mine_value *value)
{
    int64_t elements = 1;
    int32_t i;
    for (i = 0; i < value->rank; i++)
        elements *= value->dims[i];
    return elements;
}

static void expose(epctx_value *to, const mine_value *from)
{
    to->name = epctx_str_of(from->name);
    to->elem_type = EPCTX_ONNX_FLOAT;
    to->rank = from->rank;
    to->dims = from->dims;
}

static bool take_graph(mine_loaded *to)
{
    const mine_graph *graph = &to->graph;
    uint32_t i;
    if (!memchr(graph->name, 0, NAME) || graph->input_count > MAX_ENDS ||
        graph->output_count > MAX_ENDS) {
        return false;
    }
    for (i = 0; i < graph->input_count; i++) {
        if (!value_is_sane(&graph->inputs[i])) return false;
        expose(&to->inputs[i], &graph->inputs[i]);
    }
    for (i = 0; i < graph->output_count; i++) {
        if (!value_is_sane(&graph->outputs[i]) || graph->source[i] >= graph->input_count ||
            elements_of(&graph->outputs[i]) != elements_of(&graph->inputs[graph->source[i]])) {
            return false;
        }
        expose(&to->outputs[i], &graph->outputs[i]);
    }
    return true;
}

static const char sdk_version[] = "1.0.0", architecture[] = "mine1";

/* YOURS: can this device run a context that was made for `node`'s hardware, by its SDK? Here the
 * hardware must be the same and the SDK's major version, as in epctx_compat_compare. What a
 * node does not tell is not checked. */
static epctx_status mine_check(void *self, const epctx_epnode *node, epctx_error *error)
{
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

/* YOURS: hand the binary to your SDK. It stays valid until mine_unload, so nothing need be copied;
 * this device copies because its structs are not aligned in a file. */
static epctx_status mine_load(void *self, epctx_span binary, void **out, epctx_error *error)
{
    mine_context *context;
    size_t i;
    if (binary.size < sizeof magic || memcmp(binary.data, magic, sizeof magic) != 0 ||
        (binary.size - sizeof magic) % sizeof(mine_graph) != 0) {
        return epctx_fail(error, EPCTX_ERR_CONTEXT, "not a context binary of this EP, or damaged");
    }
    context = (mine_context *)calloc(1, sizeof *context);
    if (!context) return epctx_fail(error, EPCTX_ERR_NOMEM, "no memory");
    context->count = (binary.size - sizeof magic) / sizeof(mine_graph);
    context->graphs = (mine_loaded *)calloc(context->count + 1, sizeof *context->graphs);
    for (i = 0; context->graphs && i < context->count; i++) {
        memcpy(&context->graphs[i].graph, binary.data + sizeof magic + i * sizeof(mine_graph),
               sizeof(mine_graph));
        if (take_graph(&context->graphs[i])) continue;
        mine_unload(self, context);
        return epctx_fail(error, EPCTX_ERR_CONTEXT, "graph %u of the binary is damaged",
                          (uint64_t)i);
    }
    if (!context->graphs) {
        mine_unload(self, context);
        return epctx_fail(error, EPCTX_ERR_NOMEM, "no memory");
    }
    *out = context;
    return EPCTX_OK;
}

static epctx_status mine_find(void *self, void *context, epctx_str name, uint64_t hash,
                              void **graph, epctx_error *error)
{
    mine_context *c = (mine_context *)context;
    size_t i;
    (void)self;
    for (i = 0; i < c->count; i++) {
        if (!epctx_str_is(name, c->graphs[i].graph.name)) continue;
        if (hash && hash != c->graphs[i].graph.hash) {
            return epctx_fail(error, EPCTX_ERR_VERSION, "graph '%S' is of another generation",
                              &name);
        }
        *graph = &c->graphs[i];
        return EPCTX_OK;
    }
    return epctx_fail(error, EPCTX_ERR_CONTEXT, "the context has no graph '%S'", &name);
}

/* --------------------------------------------------------------- 4. running */

static epctx_status mine_info(void *self, void *graph, epctx_graph_info *info, epctx_error *error)
{
    const mine_loaded *loaded = (const mine_loaded *)graph;
    (void)self, (void)error;
    info->name = epctx_str_of(loaded->graph.name);
    info->inputs = loaded->inputs;
    info->input_count = loaded->graph.input_count;
    info->outputs = loaded->outputs;
    info->output_count = loaded->graph.output_count;
    info->scratch_size = 0;
    return EPCTX_OK;
}

/* YOURS: start the hardware and wait. Inputs and outputs are ORT's own tensors. Several threads may
 * be here at once, each with its own scratch. */
static epctx_status mine_run(void *self, void *graph, const epctx_span *inputs,
                             const epctx_memory *outputs, void *scratch, size_t scratch_size,
                             epctx_error *error)
{
    const mine_loaded *loaded = (const mine_loaded *)graph;
    uint32_t i;
    size_t k;
    (void)self, (void)scratch, (void)scratch_size, (void)error;
    for (i = 0; i < loaded->graph.output_count; i++) {
        const float *in = (const float *)(const void *)inputs[loaded->graph.source[i]].data;
        float *out = (float *)outputs[i].data;
        for (k = 0; k < outputs[i].size / sizeof *out; k++)
            out[k] = in[k] > 0 ? in[k] : 0;
    }
    return EPCTX_OK;
}

/* ---------------------------------------------------------------- the device */

static void mine_close(epctx_backend *backend)
{
    (void)backend;
}

/* YOURS: open the device. Each session calls this once; ep_option_get reads the EP options
 * that `device` lists. */
static epctx_status mine_open(const ep_options *options, epctx_backend *backend, epctx_error *error)
{
    (void)options, (void)error;
    memset(backend, 0, sizeof *backend);
    backend->version = EPCTX_BACKEND_VERSION;
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
    backend->check_fn = mine_check;
    return EPCTX_OK;
}

static const ep_device device = {
    "MineExecutionProvider",
    "Mine, Inc.",
    0x1234,
    "1.0.0",
    mine_open,
    mine_close,
    NULL,
    NULL,
    NULL,
    NULL,
    NULL, /* YOURS: the names of the EP options that mine_open reads */
    NULL, /* YOURS: is the device in this machine? */
};

const ep_device *ep_device_get(void)
{
    return &device;
}
