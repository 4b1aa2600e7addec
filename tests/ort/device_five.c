/*
 * A device that takes what the cases of test_plugin.c ask of any device, and no more: Add, Sub,
 * Mul, Relu and MatMul. It has nothing optional: no explain_fn, no weightless contexts, no options.
 * Behind it computes the reference NPU. Linked with device_npu.o and -Wl,--wrap=ep_device_get:
 * what it asks for by the name __real_ep_device_get is the NPU's.
 *
 * EPCTX_FIVE_TAKES makes it a device that takes less, of other operators:
 *   int8_conv  a Conv between DequantizeLinear and QuantizeLinear of int8, none behind another
 *   one_mul    one Mul in a graph, as ONNX Runtime's example
 *   named      nodes whose names begin with "mine", whatever they are
 *
 * EPCTX_FIVE_NODES makes it a device that takes what the NPU takes, has weightless contexts, too,
 * and gives each node an attribute of its own (node_fn).
 */
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"

typedef epctx_status (*capability_fn)(void *self, const epctx_graph *graph, uint8_t *take,
                                      epctx_error *error);

const ep_device *__real_ep_device_get(void);
const ep_device *__wrap_ep_device_get(void);

static _Atomic(capability_fn) npu_capability; /* the same for every session */

static bool is_op(const epctx_node *node, const char *op) {
    return epctx_str_is(node->op_type, op);
}

/* The number of the node that gives the value; node_count: none does. */
static size_t giver_of(const epctx_graph *graph, epctx_str value) {
    size_t i;
    for (i = 0; i < graph->node_count; i++)
        if (graph->nodes[i].output_count > 0 && epctx_str_eq(graph->nodes[i].outputs[0], value))
            break;
    return i;
}

static size_t reader_of(const epctx_graph *graph, epctx_str value) {
    size_t i;
    for (i = 0; i < graph->node_count; i++)
        if (graph->nodes[i].input_count > 0 && epctx_str_eq(graph->nodes[i].inputs[0], value))
            break;
    return i;
}

static int32_t type_of(const epctx_graph *graph, epctx_str value) {
    size_t i;
    for (i = 0; i < graph->initializer_count; i++)
        if (epctx_str_eq(graph->initializers[i].name, value))
            return graph->initializers[i].elem_type;
    return 0;
}

/* DequantizeLinear or QuantizeLinear of int8. */
static bool is_int8(const epctx_graph *graph, size_t at, const char *op) {
    const epctx_node *node = &graph->nodes[at];
    return at < graph->node_count && is_op(node, op) && node->input_count == 3 &&
           type_of(graph, node->inputs[2]) == EPCTX_ONNX_INT8;
}

/* `keep` gets the Conv `at` with what is around it; unless it reads what is kept already. */
static void keep_unit(const epctx_graph *graph, size_t at, uint8_t *keep) {
    const epctx_node *conv = &graph->nodes[at];
    const size_t data = giver_of(graph, conv->inputs[0]), weight = giver_of(graph, conv->inputs[1]);
    const size_t out = reader_of(graph, conv->outputs[0]);
    size_t before;
    if (!is_int8(graph, data, "DequantizeLinear") || !is_int8(graph, weight, "DequantizeLinear") ||
        !is_int8(graph, out, "QuantizeLinear"))
        return;
    before = giver_of(graph, graph->nodes[data].inputs[0]);
    if (before < graph->node_count && keep[before]) return;
    keep[at] = keep[data] = keep[weight] = keep[out] = 1;
}

static void keep_only(const char *what, const epctx_graph *graph, uint8_t *keep) {
    bool taken = false;
    size_t i;
    for (i = 0; i < graph->node_count; i++) {
        const epctx_node *node = &graph->nodes[i];
        if (strcmp(what, "int8_conv") == 0 && is_op(node, "Conv") && node->input_count == 2)
            keep_unit(graph, i, keep);
        if (strcmp(what, "named") == 0)
            keep[i] = node->name.size >= 4 && memcmp(node->name.data, "mine", 4) == 0;
        if (strcmp(what, "one_mul") != 0 || taken || !is_op(node, "Mul")) continue;
        keep[i] = 1;
        taken = true;
    }
}

static epctx_status take_less(const char *what, const epctx_graph *graph, uint8_t *take,
                              epctx_error *error) {
    uint8_t *keep = (uint8_t *)calloc(graph->node_count + 1, 1);
    size_t i;
    if (!keep) return epctx_fail(error, EPCTX_ERR_NOMEM, "no memory");
    keep_only(what, graph, keep);
    for (i = 0; i < graph->node_count; i++) take[i] = take[i] && keep[i];
    free(keep);
    return EPCTX_OK;
}

static epctx_status five_capability(void *self, const epctx_graph *graph, uint8_t *take,
                                    epctx_error *error) {
    static const char *const known[] = {"Add", "Sub", "Mul", "Relu", "MatMul"};
    const capability_fn capability = atomic_load(&npu_capability);
    const epctx_status status = capability(self, graph, take, error);
    const char *less = getenv("EPCTX_FIVE_TAKES");
    size_t i, k;
    if (less && status == EPCTX_OK) return take_less(less, graph, take, error);
    for (i = 0; i < graph->node_count; i++) {
        for (k = 0; k < 5 && !epctx_str_is(graph->nodes[i].op_type, known[k]); k++) {
        }
        if (k == 5) take[i] = 0;
    }
    return status;
}

static epctx_status own_node(void *self, void *build, const epctx_graph *graph, epctx_arena *arena,
                             epctx_node *node, epctx_error *error) {
    epctx_attr *attr = (epctx_attr *)epctx_arena_array(arena, 1, sizeof *attr);
    (void)self, (void)build, (void)graph;
    if (!attr) return epctx_fail(error, EPCTX_ERR_NOMEM, "no memory");
    attr->name = epctx_str_of("lanes");
    attr->type = EPCTX_ATTR_INT;
    attr->i = 4;
    node->attrs = attr;
    node->attr_count = 1;
    return EPCTX_OK;
}

static epctx_status five_open(const ep_options *options, epctx_backend *backend,
                              epctx_error *error) {
    const epctx_status status = __real_ep_device_get()->open_fn(options, backend, error);
    atomic_store(&npu_capability, backend->capability_fn);
    backend->source = "FiveExecutionProvider";
    backend->short_name = "five";
    backend->sdk_version = "5.0.1";
    if (getenv("EPCTX_FIVE_NODES")) {
        backend->node_fn = own_node;
        return status;
    }
    backend->capability_fn = five_capability;
    backend->explain_fn = NULL;
    backend->weights_fn = NULL;
    backend->weightless = EPCTX_WEIGHTLESS_NONE;
    return status;
}

static void five_close(epctx_backend *backend) {
    __real_ep_device_get()->close_fn(backend);
}

static const ep_device five = {
    "FiveExecutionProvider",
    "Five & Co.",
    0x5555,
    "5.0.0",
    five_open,
    five_close,
    NULL,
    NULL,
    NULL,
    NULL,
    NULL,
    NULL,
    NULL,
    NULL,
};

const ep_device *__wrap_ep_device_get(void) {
    return &five;
}
