/* kernel.c - one fused node. ORT's tensors go to the backend as they are; the only memory of ours
 * is the backend's scratch, which concurrent calls must not share. */
#include "ep.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>

enum { POOL_SIZE = 8 };
#define SCRATCH_ALIGNMENT 64u

typedef struct ep_kernel {
    OrtNodeComputeInfo ort; /* first */
    const epctx_ort_api *api;
    ep_context *context;
    void *graph;
    epctx_graph_info info;
    uint32_t *places; /* for each input, then each output of the graph: its place in ORT's list */
    size_t ort_input_count, ort_output_count;
    /* One block per running call: argument lists and scratch. A call takes a block out of the pool
     * or makes one, and puts it back, or frees it when the pool is full. */
    size_t block_size, scratch_offset;
    _Atomic(void *) pool[POOL_SIZE];
} ep_kernel;

static void *take_block(ep_kernel *kernel) {
    size_t i;
    for (i = 0; i < POOL_SIZE; i++) {
        void *block = atomic_load_explicit(&kernel->pool[i], memory_order_relaxed);
        if (!block) continue;
        block = atomic_exchange_explicit(&kernel->pool[i], NULL, memory_order_acquire);
        if (block) return block;
    }
    return malloc(kernel->block_size);
}

static void give_block(ep_kernel *kernel, void *block) {
    size_t i = atomic_load(&kernel->context->session->runs.efficient) ? POOL_SIZE : 0;
    for (; i < POOL_SIZE; i++) {
        void *empty = NULL;
        if (atomic_compare_exchange_strong_explicit(&kernel->pool[i], &empty, block,
                                                    memory_order_release, memory_order_relaxed))
            return;
    }
    free(block);
}

/* "float32[1,3,?]" */
static void describe(char *out, size_t size, int32_t elem_type, const int64_t *dims, size_t rank) {
    size_t used = (size_t)snprintf(out, size, "%s[", epctx_elem_name(elem_type)), i;
    for (i = 0; i < rank && used + 1 < size; i++) {
        const char *comma = i ? "," : "";
        const int n = dims[i] < 0 ? snprintf(out + used, size - used, "%s?", comma)
                                  : snprintf(out + used, size - used, "%s%" PRId64, comma, dims[i]);
        used += n > 0 ? (size_t)n : 0;
    }
    if (used + 1 < size) snprintf(out + used, size - used, "]");
}

/* Of a static type and shape; SIZE_MAX: too much. */
static size_t size_of(const epctx_value *value) {
    size_t size = epctx_elem_size(value->elem_type);
    int32_t i;
    for (i = 0; i < value->rank; i++) {
        if (value->dims[i] > 0 && size > SIZE_MAX / 2 / (uint64_t)value->dims[i]) return SIZE_MAX;
        size *= (size_t)value->dims[i];
    }
    return size;
}

static size_t aligned(size_t size) {
    return (size + SCRATCH_ALIGNMENT - 1) / SCRATCH_ALIGNMENT * SCRATCH_ALIGNMENT;
}

static OrtStatus *wrong_input(const ep_kernel *kernel, const epctx_value *want, int32_t elem,
                              const int64_t *shape, size_t rank) {
    char expected[160], found[160];
    describe(expected, sizeof expected, want->elem_type, want->dims,
             want->rank > 0 ? (size_t)want->rank : 0);
    describe(found, sizeof found, elem, shape, rank);
    return epctx_ort_fail(kernel->api, EPCTX_ERR_ARG,
                          "input '%.*s' of graph '%.*s': expected %s, found %s",
                          (int)want->name.size, want->name.data, (int)kernel->info.name.size,
                          kernel->info.name.data, expected, found);
}

static OrtStatus *bind_inputs(ep_kernel *kernel, const OrtKernelContext *ort_context,
                              epctx_span *inputs) {
    const OrtApi *ort = kernel->api->ort;
    size_t i, count = 0;
    /* KernelContext_GetInput past the end returns OK and NULL. */
    EPCTX_ORT_TRY(ort->KernelContext_GetInputCount(ort_context, &count));
    if (count < kernel->ort_input_count) {
        return epctx_ort_fail(kernel->api, EPCTX_ERR_BACKEND,
                              "the node has %zu inputs where %zu were compiled", count,
                              kernel->ort_input_count);
    }
    for (i = 0; i < kernel->info.input_count; i++) {
        const epctx_value *want = &kernel->info.inputs[i];
        const OrtValue *value = NULL;
        const int64_t *shape = NULL;
        const void *data = NULL;
        ONNXTensorElementDataType elem = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
        size_t rank = 0, size = 0;
        EPCTX_ORT_TRY(ort->KernelContext_GetInput(ort_context, kernel->places[i], &value));
        if (!value) {
            return epctx_ort_fail(kernel->api, EPCTX_ERR_ARG, "input '%.*s' is missing",
                                  (int)want->name.size, want->name.data);
        }
        EPCTX_ORT_TRY(ort->GetTensorElementTypeAndShapeDataReference(value, &elem, &shape, &rank));
        if ((int32_t)elem != want->elem_type || rank != (size_t)want->rank ||
            (rank && memcmp(shape, want->dims, rank * sizeof *shape) != 0))
            return wrong_input(kernel, want, (int32_t)elem, shape, rank);
        EPCTX_ORT_TRY(ort->GetTensorData(value, &data));
        EPCTX_ORT_TRY(ort->GetTensorSizeInBytes(value, &size));
        inputs[i].data = (const uint8_t *)data;
        inputs[i].size = size;
    }
    return NULL;
}

/* `spare` is for the outputs that ORT pruned. */
static OrtStatus *bind_outputs(ep_kernel *kernel, OrtKernelContext *ort_context,
                               epctx_memory *outputs, uint8_t *spare) {
    const OrtApi *ort = kernel->api->ort;
    const uint32_t *places = kernel->places + kernel->info.input_count;
    size_t i;
    for (i = 0; i < kernel->info.output_count; i++) {
        const epctx_value *have = &kernel->info.outputs[i];
        OrtValue *value = NULL;
        if (places[i] == EPCTX_MAP_NONE) {
            outputs[i].data = spare;
            outputs[i].size = size_of(have);
            spare += aligned(outputs[i].size);
            continue;
        }
        EPCTX_ORT_TRY(ort->KernelContext_GetOutput(ort_context, places[i], have->dims,
                                                   (size_t)have->rank, &value));
        if (!value) {
            return epctx_ort_fail(kernel->api, EPCTX_ERR_BACKEND, "output '%.*s' is missing",
                                  (int)have->name.size, have->name.data);
        }
        EPCTX_ORT_TRY(ort->GetTensorMutableData(value, &outputs[i].data));
        EPCTX_ORT_TRY(ort->GetTensorSizeInBytes(value, &outputs[i].size));
        /* ORT 1.30 continues after an allocator of a device has failed. */
        if (!outputs[i].data && outputs[i].size) return epctx_ort_no_memory(kernel->api);
    }
    return NULL;
}

static epctx_status run(ep_kernel *kernel, OrtKernelContext *ort_context, const epctx_span *inputs,
                        const epctx_memory *outputs, uint8_t *scratch, epctx_error *error) {
    ep_session *session = kernel->context->session;
    const epctx_backend *backend = &session->backend;
    const ep_device *device = session->factory->device;
    const size_t size = kernel->info.scratch_size;
    ep_pool pool = {session, ort_context};
    ep_helpers helpers = {&pool, ep_share_work, 1};
    if (!device->run_fn)
        return backend->run_fn(backend->self, kernel->graph, inputs, outputs, scratch, size, error);
    helpers.threads = ep_threads(session);
    return device->run_fn(backend, kernel->graph, inputs, outputs, scratch, size, &helpers, error);
}

static OrtStatus *compute_in(ep_kernel *kernel, OrtKernelContext *ort_context, void *block) {
    epctx_span *inputs = (epctx_span *)block;
    epctx_memory *outputs = (epctx_memory *)(void *)(inputs + kernel->info.input_count);
    uint8_t *scratch = (uint8_t *)block + kernel->scratch_offset;
    epctx_error error;
    epctx_status status;
    int64_t start;
    scratch += (SCRATCH_ALIGNMENT - (uintptr_t)scratch % SCRATCH_ALIGNMENT) % SCRATCH_ALIGNMENT;
    EPCTX_ORT_TRY(bind_inputs(kernel, ort_context, inputs));
    EPCTX_ORT_TRY(
        bind_outputs(kernel, ort_context, outputs, scratch + aligned(kernel->info.scratch_size)));
    epctx_error_clear(&error);
    start = ep_profile_begin(kernel->context->session);
    status = run(kernel, ort_context, inputs, outputs, scratch, &error);
    ep_profile_end(kernel->context->session, kernel->info.name, start);
    return epctx_ort_status(kernel->api, status, &error);
}

static OrtStatus *ORT_API_CALL compute(OrtNodeComputeInfo *self, void *state,
                                       OrtKernelContext *ort_context) {
    ep_kernel *kernel = (ep_kernel *)(void *)self;
    OrtStatus *status;
    void *block;
    (void)state;
    if (!kernel->graph) {
        return epctx_ort_fail(kernel->api, EPCTX_ERR_UNSUPPORTED,
                              "this session only compiles: load the context model to run it");
    }
    block = take_block(kernel);
    if (!block) {
        return epctx_ort_fail(kernel->api, EPCTX_ERR_NOMEM,
                              "no memory for the %zu bytes of scratch that info_fn asks for",
                              kernel->info.scratch_size);
    }
    status = compute_in(kernel, ort_context, block);
    give_block(kernel, block);
    return status;
}

/* Everything was prepared in Compile, where an error still reaches the application with its text;
 * from here only ORT_FAIL would. ORT wants a state that is not NULL. */
static OrtStatus *ORT_API_CALL create_state(OrtNodeComputeInfo *self,
                                            OrtNodeComputeContext *compute_context, void **state) {
    (void)compute_context;
    *state = self;
    return NULL;
}

static void ORT_API_CALL release_state(OrtNodeComputeInfo *self, void *state) {
    (void)self;
    (void)state;
}

/* ----------------------------------------------------------------- making one */

/* Fills out[i] with the place of wanted[i] among ORT's names: by value name, because the fused
 * node of a reloaded model need not keep the order of the EPContext node. `prunes`: ORT has removed
 * what nobody reads any more, once it folded the readers away; EPCTX_MAP_NONE is its place. */
static OrtStatus *find_places(const epctx_ort_api *api, const epctx_value *values,
                              const char *const *wanted, size_t wanted_count,
                              const char *const *names, size_t name_count, const char *what,
                              bool prunes, epctx_arena *arena, uint32_t *out) {
    epctx_map places;
    size_t i;
    epctx_map_init(&places, arena);
    for (i = name_count; i-- > 0;) /* the first of a name counts */
        if (epctx_map_put(&places, epctx_str_of(names[i]), (uint32_t)i) != EPCTX_OK)
            return epctx_ort_no_memory(api);
    for (i = 0; i < wanted_count; i++) {
        const epctx_value *value = &values[i];
        int32_t d;
        out[i] = epctx_map_get(&places, epctx_str_of(wanted[i]));
        if (out[i] == EPCTX_MAP_NONE && !prunes) {
            return epctx_ort_fail(api, EPCTX_ERR_CONTEXT, "%s '%s' is not at the fused node", what,
                                  wanted[i]);
        }
        for (d = 0; d < value->rank && value->dims[d] >= 0; d++) {
        }
        if (value->rank < 0 || d != value->rank || value->elem_type <= 0) {
            return epctx_ort_fail(api, EPCTX_ERR_CONTEXT,
                                  "%s '%s' of the context's graph has no static type and shape: "
                                  "info_fn has to give both",
                                  what, wanted[i]);
        }
    }
    return NULL;
}

/* Has the graph as many values as the node that is bound to it? */
static OrtStatus *check_count(const epctx_ort_api *api, const epctx_bound *bound, const char *what,
                              size_t has, size_t wanted) {
    const epctx_str *node = &bound->node.name, *graph = &bound->info.name;
    if (has == wanted) return NULL;
    return epctx_ort_fail(
        api, EPCTX_ERR_CONTEXT,
        "node '%.*s': attribute 'partition_name': graph '%.*s' of the context has "
        "%zu %s%s, the node has %zu",
        (int)node->size, node->data, (int)graph->size, graph->data, has, what, has == 1 ? "" : "s",
        wanted);
}

static OrtStatus *fill(ep_kernel *kernel, const char *const *inputs, size_t input_count,
                       const char *const *outputs, size_t output_count, const OrtNode *fused,
                       epctx_arena *arena) {
    const epctx_ort_api *api = kernel->api;
    const epctx_graph_info *info = &kernel->info;
    const char **names;
    size_t arguments, i;
    if ((info->input_count && !info->inputs) || (info->output_count && !info->outputs)) {
        return epctx_ort_fail(api, EPCTX_ERR_BACKEND,
                              "info_fn gives graph '%.*s' no list of its values",
                              (int)info->name.size, info->name.data);
    }
    kernel->places =
        (uint32_t *)calloc(info->input_count + info->output_count + 1, sizeof(uint32_t));
    if (!kernel->places) return epctx_ort_no_memory(api);
    EPCTX_ORT_TRY(epctx_ort_node_names(api, fused, false, arena, &names, &kernel->ort_input_count));
    EPCTX_ORT_TRY(find_places(api, info->inputs, inputs, input_count, (const char *const *)names,
                              kernel->ort_input_count, "input", false, arena, kernel->places));
    EPCTX_ORT_TRY(epctx_ort_node_names(api, fused, true, arena, &names, &kernel->ort_output_count));
    EPCTX_ORT_TRY(find_places(api, info->outputs, outputs, output_count, (const char *const *)names,
                              kernel->ort_output_count, "output", true, arena,
                              kernel->places + info->input_count));
    arguments = info->input_count * sizeof(epctx_span) + info->output_count * sizeof(epctx_memory);
    kernel->scratch_offset = arguments;
    kernel->block_size = arguments + 2 * SCRATCH_ALIGNMENT;
    if (info->scratch_size > SIZE_MAX - kernel->block_size) return epctx_ort_no_memory(api);
    kernel->block_size += info->scratch_size;
    for (i = 0; i < info->output_count; i++) {
        const size_t size = size_of(&info->outputs[i]);
        if (kernel->places[info->input_count + i] != EPCTX_MAP_NONE) continue;
        if (size > SIZE_MAX / 2 || aligned(size) > SIZE_MAX - kernel->block_size)
            return epctx_ort_no_memory(api);
        kernel->block_size += aligned(size);
    }
    return NULL;
}

/* With a reference of `context`. */
static ep_kernel *kernel_new(ep_context *context) {
    ep_kernel *kernel = (ep_kernel *)calloc(1, sizeof *kernel);
    if (!kernel) return NULL;
    kernel->api = context->session->api;
    kernel->ort.ort_version_supported = epctx_ort_layout(kernel->api);
    kernel->ort.CreateState = create_state;
    kernel->ort.Compute = compute;
    kernel->ort.ReleaseState = release_state;
    kernel->context = context;
    context->references++;
    return kernel;
}

OrtStatus *ep_kernel_create_idle(ep_context *context, OrtNodeComputeInfo **out) {
    ep_kernel *kernel = kernel_new(context);
    if (!kernel) return epctx_ort_no_memory(context->session->api);
    *out = &kernel->ort;
    return NULL;
}

OrtStatus *ep_kernel_create(ep_context *context, const epctx_bound *bound,
                            const char *const *inputs, size_t input_count,
                            const char *const *outputs, size_t output_count, const OrtNode *fused,
                            OrtNodeComputeInfo **out) {
    ep_kernel *kernel = kernel_new(context);
    OrtStatus *status;
    epctx_arena arena;
    if (!kernel) return epctx_ort_no_memory(context->session->api);
    kernel->graph = bound->graph;
    kernel->info = bound->info;
    memset(&arena, 0, sizeof arena);
    epctx_arena_init(&arena, NULL);
    status = check_count(kernel->api, bound, "input", bound->info.input_count, input_count);
    if (!status)
        status = check_count(kernel->api, bound, "output", bound->info.output_count, output_count);
    if (!status) status = fill(kernel, inputs, input_count, outputs, output_count, fused, &arena);
    epctx_arena_free(&arena);
    if (status) {
        ep_kernel_release(&kernel->ort);
        return status;
    }
    *out = &kernel->ort;
    return NULL;
}

void ep_kernel_release(OrtNodeComputeInfo *info) {
    ep_kernel *kernel = (ep_kernel *)(void *)info;
    size_t i;
    if (!kernel) return;
    for (i = 0; i < POOL_SIZE; i++) free(atomic_load(&kernel->pool[i]));
    free(kernel->places);
    ep_context_drop(kernel->context);
    free(kernel);
}
