/*
 * A device that takes what the cases of test_plugin.c ask of any device, and no more: Add, Sub,
 * Mul, Relu and MatMul. It has nothing optional: no explain_fn, no weightless contexts, no options.
 * Behind it computes the reference NPU. Linked with device_npu.o and -Wl,--wrap=ep_device_get:
 * what it asks for by the name __real_ep_device_get is the NPU's.
 */
#include <stdatomic.h>
#include <stddef.h>

#include "device.h"

typedef epctx_status (*capability_fn)(void *self, const epctx_graph *graph, uint8_t *take,
                                      epctx_error *error);

const ep_device *__real_ep_device_get(void);
const ep_device *__wrap_ep_device_get(void);

static _Atomic(capability_fn) npu_capability; /* the same for every session */

static epctx_status five_capability(void *self, const epctx_graph *graph, uint8_t *take,
                                    epctx_error *error) {
    static const char *const known[] = {"Add", "Sub", "Mul", "Relu", "MatMul"};
    const capability_fn capability = atomic_load(&npu_capability);
    const epctx_status status = capability(self, graph, take, error);
    size_t i, k;
    for (i = 0; i < graph->node_count; i++) {
        for (k = 0; k < 5 && !epctx_str_is(graph->nodes[i].op_type, known[k]); k++) {
        }
        if (k == 5) take[i] = 0;
    }
    return status;
}

static epctx_status five_open(const ep_options *options, epctx_backend *backend,
                              epctx_error *error) {
    const epctx_status status = __real_ep_device_get()->open_fn(options, backend, error);
    atomic_store(&npu_capability, backend->capability_fn);
    backend->source = "FiveExecutionProvider";
    backend->short_name = "five";
    backend->sdk_version = "5.0.1";
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
};

const ep_device *__wrap_ep_device_get(void) {
    return &five;
}
