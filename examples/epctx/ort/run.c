/* Makes a session of a model and runs it. */
#include "core/tensors.h"
#include "child.h"

#include <stdlib.h>

/* The session's inputs, with fixed shapes. */
static bool describe_inputs(child *c, OrtSession *made, epctx_arena *arena, tensor_list *inputs) {
    OrtAllocator *allocator = NULL;
    size_t count = 0, i;
    if (!ort_ok(ort->GetAllocatorWithDefaultOptions(&allocator)) ||
        !ort_ok(ort->SessionGetInputCount(made, &count)))
        return child_refused(c);
    if (!tensors_make_list(inputs, count, arena)) return child_fail(c, "out of memory");
    for (i = 0; i < count; i++) {
        char *name = NULL;
        ort_type type;
        if (!ort_input_type(made, i, allocator, &name, &type)) return child_refused(c);
        if (epctx_elem_size((int32_t)type.elem) == 0)
            return child_fail(c, "input '%s' has elements that cannot be made up here", name);
        if (!tensors_describe(inputs->values[i], epctx_str_of(name), (int32_t)type.elem, type.dims,
                              type.rank, arena))
            return child_fail(c, "input '%s' is too big", name);
        allocator->Free(allocator, name);
    }
    return true;
}

/* The same inputs as in another run, whatever their order is. */
static bool take_inputs(child *c, const tensor_list *inputs, epctx_arena *arena) {
    tensor_list there, outputs;
    epctx_error error;
    size_t i, k;
    if (tensors_restore(c->job->inputs, arena, &there, &outputs, &error) != EPCTX_OK)
        return child_fail(c, "%s", error.message);
    for (i = 0; i < inputs->count; i++) {
        const session_value *to = inputs->values[i];
        for (k = 0; k < there.count; k++)
            if (epctx_str_eq(there.values[k]->type.name, to->type.name)) break;
        if (k == there.count || there.values[k]->size != to->size)
            return child_fail(c,
                              "input '%.*s' is not in the other model, or has another size there",
                              (int)to->type.name.size, to->type.name.data);
        if (to->size > 0) memcpy(to->data, there.values[k]->data, to->size);
    }
    return true;
}

static bool make_inputs(child *c, const tensor_list *inputs, epctx_arena *arena) {
    epctx_error error;
    size_t i;
    epctx_error_clear(&error);
    if (c->job->inputs != NULL) return take_inputs(c, inputs, arena);
    if (c->job->input_folder != NULL)
        return tensors_read(inputs, c->job->input_folder, &error) == EPCTX_OK ||
               child_fail(c, "%s", error.message);
    for (i = 0; i < inputs->count; i++) tensors_fill(inputs->values[i], c->job->seed, i);
    return true;
}

static bool wrap_inputs(child *c, const tensor_list *inputs, OrtMemoryInfo *memory,
                        OrtValue **values) {
    size_t i;
    for (i = 0; i < inputs->count; i++) {
        const session_value *v = inputs->values[i];
        if (!ort_ok(ort->CreateTensorWithDataAsOrtValue(
                memory, v->data, v->size, v->type.dims, (size_t)v->type.rank,
                (ONNXTensorElementDataType)v->type.elem_type, &values[i])))
            return child_refused(c);
    }
    return true;
}

/* Copies an output; ORT may reuse its memory. */
static bool take_output(child *c, const char *name, const OrtValue *from, session_value *to,
                        epctx_arena *arena) {
    ONNXTensorElementDataType type;
    const int64_t *dims = NULL;
    const void *data = NULL;
    size_t rank = 0, bytes = 0;
    ONNXType kind = ONNX_TYPE_UNKNOWN;
    if (!ort_ok(ort->GetValueType(from, &kind))) return child_refused(c);
    if (kind != ONNX_TYPE_TENSOR) return child_fail(c, "output '%s' is no tensor", name);
    if (!ort_ok(ort->GetTensorElementTypeAndShapeDataReference(from, &type, &dims, &rank)))
        return child_refused(c);
    if (epctx_elem_size((int32_t)type) == 0)
        return child_fail(c, "output '%s' has elements that are no numbers", name);
    if (!tensors_describe(to, epctx_str_of(name), (int32_t)type, dims, rank, arena))
        return child_fail(c, "output '%s' is too big", name);
    if (!ort_ok(ort->GetTensorSizeInBytes(from, &bytes)) ||
        !ort_ok(ort->GetTensorData(from, &data)))
        return child_refused(c);
    if (bytes != to->size) return child_fail(c, "output '%s' has an unexpected size", name);
    if (bytes > 0) memcpy(to->data, data, bytes);
    return true;
}

static int by_size(const void *a, const void *b) {
    const double *x = (const double *)a;
    const double *y = (const double *)b;
    return (*x > *y) - (*x < *y);
}

/* Runs `repeat` times; the outputs are those of the first run. */
static bool run_times(child *c, OrtSession *made, const tensor_list *inputs, OrtValue **values,
                      tensor_list *outputs, epctx_arena *arena) {
    const size_t count = (size_t)c->job->repeat;
    double *times = (double *)epctx_arena_array(arena, count, sizeof *times);
    OrtAllocator *allocator = NULL;
    const char **in = NULL;
    char **out = NULL;
    OrtValue **results = NULL;
    size_t output_count = 0, i, k;
    bool ok = true;
    if (!ort_ok(ort->GetAllocatorWithDefaultOptions(&allocator)) ||
        !ort_ok(ort->SessionGetOutputCount(made, &output_count)))
        return child_refused(c);
    in = (const char **)epctx_arena_array(arena, inputs->count, sizeof *in);
    out = (char **)epctx_arena_array(arena, output_count, sizeof *out);
    results = (OrtValue **)epctx_arena_array(arena, output_count, sizeof *results);
    if (times == NULL || in == NULL || out == NULL || results == NULL ||
        !tensors_make_list(outputs, output_count, arena))
        return child_fail(c, "out of memory");
    for (i = 0; i < inputs->count; i++) in[i] = inputs->values[i]->type.name.data;
    for (i = 0; i < output_count; i++)
        if (!ort_ok(ort->SessionGetOutputName(made, i, allocator, &out[i])))
            return child_refused(c);
    for (k = 0; k < count && ok; k++) {
        const double start = cli_now();
        if (!ort_ok(ort->Run(made, NULL, in, (const OrtValue *const *)values, inputs->count,
                             (const char *const *)out, output_count, results)))
            return child_refused(c);
        times[k] = cli_now() - start;
        for (i = 0; i < output_count; i++) {
            if (k == 0 && ok) ok = take_output(c, out[i], results[i], outputs->values[i], arena);
            ort->ReleaseValue(results[i]);
            results[i] = NULL;
        }
    }
    if (!ok) return false;
    c->board->first_ms = times[0];
    qsort(times, count, sizeof *times, by_size);
    c->board->median_ms = times[count / 2];
    return true;
}

static bool run_session(child *c, OrtSession *made, epctx_arena *arena) {
    tensor_list inputs, outputs;
    OrtMemoryInfo *memory = NULL;
    OrtValue **values;
    epctx_error error;
    child_doing(c, "making inputs for %s", c->job->model);
    if (!describe_inputs(c, made, arena, &inputs) || !make_inputs(c, &inputs, arena)) return false;
    values = (OrtValue **)epctx_arena_array(arena, inputs.count, sizeof *values);
    if (values == NULL) return child_fail(c, "out of memory");
    if (!ort_ok(ort->CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &memory)))
        return child_refused(c);
    child_doing(c, "running %s", c->job->model);
    if (!wrap_inputs(c, &inputs, memory, values) ||
        !run_times(c, made, &inputs, values, &outputs, arena))
        return false;
    if (c->job->results != NULL &&
        tensors_save(c->job->results, &inputs, &outputs, &error) != EPCTX_OK)
        return child_fail(c, "%s", error.message);
    return true;
}

bool child_run(child *c) {
    OrtSession *made = NULL;
    ort_spec spec = child_spec(c);
    epctx_arena arena;
    double start;
    size_t i;
    child_doing(c, "making a session of %s", c->job->model);
    c->board->at_model = true;
    start = cli_now();
    if (!child_model(c, c->job->model, &spec)) return false;
    if (!ort_session(&spec, &made)) return child_refused(c);
    c->board->session_ms = cli_now() - start;
    c->board->nodes = ort_assigned(made, NULL);
    for (i = 0; i < c->ep_count; i++) {
        c->board->eps[i].nodes = ort_assigned(made, c->specs[i].ep);
        c->board->ep_nodes += c->board->eps[i].nodes;
    }
    if (c->job->repeat == 0) return true;
    epctx_arena_init(&arena, NULL);
    if (!run_session(c, made, &arena)) return false; /* the process ends soon */
    epctx_arena_free(&arena);
    child_doing(c, "ending the session of %s", c->job->model);
    ort->ReleaseSession(made);
    return true;
}
