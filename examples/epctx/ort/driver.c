/* driver.c - see driver.h. examples/conformance/ort_driver.c includes it, with ONNX Runtime's own
 * header in front of it. */
#ifndef _XOPEN_SOURCE
#define _XOPEN_SOURCE 700
#endif
#include "driver.h"

#if !defined(_WIN32) /* tests/windows.h is in front of us */
#include <dlfcn.h>
#endif
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t ort_log_lock = PTHREAD_MUTEX_INITIALIZER; /* sessions log from any thread */

const OrtApi *ort;
uint32_t ort_version;
const OrtApiBase *ort_base;
const OrtCompileApi *ort_compile;
OrtEnv *ort_env;
_Thread_local int ort_code;
_Thread_local char ort_text[4096];
char ort_log[1 << 16];
const char *ort_log_also;
char ort_free_dims[8][64];
bool ort_free_batch[8];
int64_t ort_free_size[8];
size_t ort_free_count;
int64_t ort_free_length = 1;
double ort_relative;

bool ort_ok(OrtStatus *status) {
    ort_code = 0;
    ort_text[0] = '\0';
    if (!status) return true;
    ort_code = (int)ort->GetErrorCode(status);
    snprintf(ort_text, sizeof ort_text, "%s", ort->GetErrorMessage(status));
    ort->ReleaseStatus(status);
    return false;
}

void ort_log_clear(void) {
    ort_log[0] = '\0';
}

void ORT_API_CALL ort_logger(void *param, OrtLoggingLevel severity, const char *category,
                             const char *logid, const char *code, const char *message) {
    size_t used;
    (void)param, (void)category, (void)logid, (void)code;
    if (severity < ORT_LOGGING_LEVEL_WARNING && !strstr(message, ORT_LEFT) &&
        !(ort_log_also && strstr(message, ort_log_also)))
        return;
    pthread_mutex_lock(&ort_log_lock);
    used = strlen(ort_log);
    snprintf(ort_log + used, sizeof ort_log - used, "%s\n", message);
    pthread_mutex_unlock(&ort_log_lock);
}

const ORTCHAR_T *ort_path(const char *path) {
#if defined(_WIN32)
    static _Thread_local WCHAR wide[8][4096];
    static _Thread_local unsigned next;
    WCHAR *out = wide[next++ % 8];
    if (MultiByteToWideChar(CP_UTF8, 0, path, -1, out, 4096) == 0) *out = L'\0';
    return out;
#else
    return path;
#endif
}

char **ort_words(int count, char **given) {
#if defined(_WIN32)
    (void)given;
    return windows_words(count);
#else
    (void)count;
    return given;
#endif
}

bool ort_read_option(char *text, ort_ep_options *to) {
    char *equals = strchr(text, '=');
    if (!equals || equals == text) {
        snprintf(ort_text, sizeof ort_text, "expected --ep-opt KEY=VALUE");
        return false;
    }
    if (to->count == 2 * ORT_MAX_OPTIONS) {
        snprintf(ort_text, sizeof ort_text, "more than %d --ep-opt", ORT_MAX_OPTIONS);
        return false;
    }
    *equals = '\0';
    to->list[to->count++] = text;
    to->list[to->count++] = equals + 1;
    return true;
}

bool ort_library(char *out, size_t size) {
    const char *set = getenv("EPCTX_ORT_LIBRARY");
    FILE *pipe;
    if (set) return (size_t)snprintf(out, size, "%s", set) < size;
    if (access("tests/deps.sh", R_OK) != 0) return false; /* not in the source tree */
    pipe = popen("sh tests/deps.sh where ort", "r");
    if (!pipe) return false;
    if (!fgets(out, (int)size, pipe)) out[0] = '\0';
    pclose(pipe);
    out[strcspn(out, "\n")] = '\0';
    return out[0] != '\0';
}

bool ort_symbol(void *library, const char *name, void *function, size_t size) {
    void *symbol = dlsym(library, name);
    if (symbol) memcpy(function, &symbol, size);
    return symbol != NULL;
}

bool ort_open(bool virtual_devices) {
    const OrtApiBase *(*get_base)(void) = NULL;
    OrtEnvCreationOptions options;
    OrtKeyValuePairs *config = NULL;
    char path[4096];
    void *library;
    bool ok;
    /* Before the library initializes; later is too late. */
    setenv("ORT_DISABLE_TELEMETRY", "1", 1);
    if (!ort_library(path, sizeof path)) {
        snprintf(
            ort_text, sizeof ort_text,
            "no ONNX Runtime found: name it with --ort or EPCTX_ORT_LIBRARY; in the source tree, "
            "tests/deps.sh demo fetches it");
        return false;
    }
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        snprintf(ort_text, sizeof ort_text, "%s", dlerror());
        return false;
    }
    if (!ort_symbol(library, "OrtGetApiBase", &get_base, sizeof get_base)) {
        snprintf(ort_text, sizeof ort_text, "%.4000s is no ONNX Runtime: it has no OrtGetApiBase",
                 path);
        return false;
    }
    ort_base = get_base();
    /* "1.24.3" -> 24: asking for too new a table makes ORT print to stderr. */
    if (sscanf(ort_base->GetVersionString(), "1.%u", &ort_version) != 1) ort_version = 0;
    if (ort_version > ORT_NEWEST_API) ort_version = ORT_NEWEST_API;
    ort = ort_base->GetApi(ort_version);
    if (!ort || ort_version < 22) {
        snprintf(ort_text, sizeof ort_text,
                 "%.3900s is ONNX Runtime %.60s and %s: 1.22 or newer is needed", path,
                 ort_base->GetVersionString(), ort ? "too old" : "gives no functions");
        return false;
    }
    if (ort_version < 24) { /* good for one thing: what a plugin says that needs more */
        return ort_ok(ort->CreateEnvWithCustomLogger(ort_logger, NULL, ORT_LOGGING_LEVEL_WARNING,
                                                     "epctx", &ort_env));
    }
    ort_compile = ort->GetCompileApi();
    memset(&options, 0, sizeof options);
    options.version = 24; /* of the structure */
    options.logging_severity_level = ORT_LOGGING_LEVEL_WARNING;
    options.log_id = "epctx";
    options.custom_logging_function = ort_logger;
    ort->CreateKeyValuePairs(&config);
    if (virtual_devices) ort->AddKeyValuePair(config, "allow_virtual_devices", "1");
    options.config_entries = config;
    ok = ort_ok(ort->CreateEnvWithOptions(&options, &ort_env));
    ort->ReleaseKeyValuePairs(config);
    return ok;
}

/* ---------------------------------------------------------------- sessions */

const OrtEpDevice *ort_device(const char *name, OrtHardwareDeviceType type) {
    const OrtEpDevice *const *devices = NULL;
    size_t count = 0, i;
    if (!ort_ok(ort->GetEpDevices(ort_env, &devices, &count))) return NULL;
    for (i = 0; i < count; i++)
        if (strcmp(ort->EpDevice_EpName(devices[i]), name) == 0 &&
            ort->HardwareDevice_Type(ort->EpDevice_Device(devices[i])) == type)
            return devices[i];
    return NULL;
}

/* ORT tells for each device which file its EP comes from. */
bool ort_is_of(const OrtEpDevice *device, const char *library) {
    char real[4096], wanted[4096];
    const char *path;
    if (!library) return true;
    path = ort->GetKeyValue(ort->EpDevice_EpMetadata(device), "library_path");
    return path && realpath(path, real) && realpath(library, wanted) && strcmp(real, wanted) == 0;
}

const OrtEpDevice *ort_device_of(const char *library, const char *name,
                                 const OrtHardwareDeviceType *type) {
    const OrtEpDevice *const *devices = NULL;
    size_t count = 0, i;
    if (!ort_ok(ort->GetEpDevices(ort_env, &devices, &count))) return NULL;
    for (i = 0; i < count; i++)
        if ((!name || strcmp(ort->EpDevice_EpName(devices[i]), name) == 0) &&
            (!type || ort->HardwareDevice_Type(ort->EpDevice_Device(devices[i])) == *type) &&
            ort_is_of(devices[i], library))
            return devices[i];
    snprintf(ort_text, sizeof ort_text, "%s is registered, but lists no device here%s%s",
             library ? library : "the EP", name ? " of " : "", name ? name : "");
    return NULL;
}

int64_t ort_free_value(size_t i) {
    if (ort_free_size[i]) return ort_free_size[i];
    return ort_free_batch[i] ? 1 : ort_free_length;
}

bool ort_has_inside(const char *name) {
    char **names = NULL;
    int count = 0, i;
    bool has = false;
    if (!ort_ok(ort->GetAvailableProviders(&names, &count))) return false;
    for (i = 0; i < count && !has; i++) has = strcmp(names[i], name) == 0;
    ort->ReleaseStatus(ort->ReleaseAvailableProviders(names, count));
    return has;
}

/* Appends one EP. */
static bool ort_append(const ort_spec *spec, OrtSessionOptions *to) {
    const char *keys[ORT_MAX_OPTIONS + 1], *values[ORT_MAX_OPTIONS + 1];
    const OrtEpDevice *device = spec->device;
    size_t count = 0, i;
    for (i = 0; spec->options && spec->options[i]; i += 2, count++) {
        if (count > ORT_MAX_OPTIONS) {
            snprintf(ort_text, sizeof ort_text, "more than %d EP options", ORT_MAX_OPTIONS);
            return false;
        }
        keys[count] = spec->options[i];
        values[count] = spec->options[i + 1];
    }
    if (spec->by_name)
        return ort_ok(
            ort->SessionOptionsAppendExecutionProvider(to, spec->ep, keys, values, count));
    if (!device)
        device =
            ort_device(spec->ep, spec->npu ? OrtHardwareDeviceType_NPU : OrtHardwareDeviceType_CPU);
    if (!device) {
        snprintf(ort_text, sizeof ort_text, "no device of %s", spec->ep);
        return false;
    }
    return ort_ok(ort->SessionOptionsAppendExecutionProvider_V2(to, ort_env, &device, 1, keys,
                                                                values, count));
}

bool ort_options(const ort_spec *spec, OrtSessionOptions **out) {
    size_t i;
    bool ok = ort_ok(ort->CreateSessionOptions(out));
    for (i = 0; ok && spec->config && spec->config[i]; i += 2)
        ok = ort_ok(ort->AddSessionConfigEntry(*out, spec->config[i], spec->config[i + 1]));
    if (ok) {
        ok = ort_ok(
            ort->AddSessionConfigEntry(*out, "session.record_ep_graph_assignment_info", "1"));
    }
    /* One thread: the tests run beside each other, and times are compared. */
    if (ok && spec->threads >= 0)
        ok = ort_ok(ort->SetIntraOpNumThreads(*out, spec->threads ? spec->threads : 1));
    for (i = 0; ok && i < ort_free_count; i++)
        ok = ort_ok(ort->AddFreeDimensionOverrideByName(*out, ort_free_dims[i], ort_free_value(i)));
    if (ok && spec->plain)
        ok = ort_ok(ort->SetSessionGraphOptimizationLevel(*out, ORT_DISABLE_ALL));
    if (ok && spec->level) ok = ort_ok(ort->SetSessionGraphOptimizationLevel(*out, *spec->level));
    if (ok && spec->tell)
        ok = ort_ok(ort->SetSessionLogSeverityLevel(*out, ORT_LOGGING_LEVEL_INFO));
    if (ok && spec->profile) ok = ort_ok(ort->EnableProfiling(*out, ort_path(spec->profile)));
    if (ok && spec->more) spec->more(*out, spec->user);
    if (!ok || !spec->ep) return ok;
    if (!spec->allow_cpu)
        ok = ort_ok(ort->AddSessionConfigEntry(*out, "session.disable_cpu_ep_fallback", "1"));
    if (ok && spec->prefer_npu) {
        return ort_ok(ort->SessionOptionsSetEpSelectionPolicy(
            *out, OrtExecutionProviderDevicePolicy_PREFER_NPU));
    }
    for (; ok && spec; spec = spec->next) ok = ort_append(spec, *out);
    return ok;
}

bool ort_session(const ort_spec *spec, OrtSession **out) {
    OrtSessionOptions *options = NULL;
    bool ok;
    if (spec->seen) spec->seen(spec, NULL);
    ok = ort_options(spec, &options);
    *out = NULL;
    if (ok) {
        ok = spec->path ? ort_ok(ort->CreateSession(ort_env, ort_path(spec->path), options, out))
                        : ort_ok(ort->CreateSessionFromArray(ort_env, spec->data, spec->size,
                                                             options, out));
    }
    if (options) ort->ReleaseSessionOptions(options);
    if (spec->done) spec->done(spec, ok);
    return ok;
}

size_t ort_assigned(const OrtSession *session, const char *ep) {
    const OrtEpAssignedSubgraph *const *graphs = NULL;
    const OrtEpAssignedNode *const *nodes = NULL;
    const char *name = NULL;
    size_t graph_count = 0, count = 0, total = 0, i;
    if (!ort_ok(ort->Session_GetEpGraphAssignmentInfo(session, &graphs, &graph_count)))
        return SIZE_MAX;
    for (i = 0; i < graph_count; i++) {
        if (!ort_ok(ort->EpAssignedSubgraph_GetEpName(graphs[i], &name)) ||
            !ort_ok(ort->EpAssignedSubgraph_GetNodes(graphs[i], &nodes, &count)))
            return SIZE_MAX;
        if (!ep || strcmp(name, ep) == 0) total += count;
    }
    return total;
}

/* --------------------------------------------------------------------- run */

void ort_values_free(ort_values *v) {
    OrtAllocator *allocator = NULL;
    OrtStatus *status = ort->GetAllocatorWithDefaultOptions(&allocator);
    size_t i;
    if (status) { /* ort_text stays: of what failed before */
        ort->ReleaseStatus(status);
        return;
    }
    for (i = 0; i < v->count; i++) {
        if (v->names[i]) allocator->Free(allocator, v->names[i]);
        if (v->values[i]) ort->ReleaseValue(v->values[i]);
    }
    memset(v, 0, sizeof *v);
}

void ort_fill(void *data, size_t count, ONNXTensorElementDataType type, uint32_t seed) {
    uint32_t state = seed * 2654435761u + 12345u;
    size_t i;
    for (i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        switch (type) {
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT:
            ((float *)data)[i] = (float)(state >> 16) / 32768.0f - 1.0f;
            break;
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64: ((int64_t *)data)[i] = state >> 30; break;
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32:
            ((int32_t *)data)[i] = (int32_t)(state >> 30);
            break;
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL:
            ((uint8_t *)data)[i] = (uint8_t)(state >> 31);
            break;
        default: ((uint8_t *)data)[i] = (uint8_t)(state >> 24); break;
        }
    }
}

size_t ort_elem_size(ONNXTensorElementDataType type) {
    switch (type) {
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32: return 4;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64: return 8;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8: return 1;
    default: return 0;
    }
}

bool ort_input_type(const OrtSession *session, size_t index, OrtAllocator *allocator, char **name,
                    ort_type *out) {
    OrtTypeInfo *info = NULL;
    const OrtTensorTypeAndShapeInfo *tensor = NULL;
    size_t i;
    bool ok;
    memset(out, 0, sizeof *out);
    ok = ort_ok(ort->SessionGetInputName(session, index, allocator, name)) &&
         ort_ok(ort->SessionGetInputTypeInfo(session, index, &info)) &&
         ort_ok(ort->CastTypeInfoToTensorInfo(info, &tensor)) && tensor &&
         ort_ok(ort->GetTensorElementType(tensor, &out->elem)) &&
         ort_ok(ort->GetDimensionsCount(tensor, &out->rank)) &&
         out->rank <= sizeof out->dims / sizeof out->dims[0] &&
         ort_ok(ort->GetDimensions(tensor, out->dims, out->rank));
    if (info) ort->ReleaseTypeInfo(info);
    if (!ok && !*ort_text)
        snprintf(ort_text, sizeof ort_text, "input %zu is no tensor, or has too many dimensions",
                 index);
    for (i = 0; ok && i < out->rank; i++)
        if (out->dims[i] < 0) out->dims[i] = 1;
    return ok;
}

bool ort_make_input(const OrtSession *session, size_t index, OrtAllocator *allocator, uint32_t seed,
                    ort_values *out) {
    ort_type type;
    size_t count = 1, i;
    void *data = NULL;
    bool ok = ort_input_type(session, index, allocator, &out->names[index], &type);
    for (i = 0; ok && i < type.rank; i++) count *= (size_t)type.dims[i];
    if (ok && ort_elem_size(type.elem) == 0) {
        snprintf(ort_text, sizeof ort_text, "input %zu has a type the driver cannot fill", index);
        return false;
    }
    ok = ok &&
         ort_ok(ort->CreateTensorAsOrtValue(allocator, type.dims, type.rank, type.elem,
                                            &out->values[index])) &&
         ort_ok(ort->GetTensorMutableData(out->values[index], &data));
    if (ok) ort_fill(data, count, type.elem, seed + (uint32_t)index);
    return ok;
}

bool ort_run_with(OrtSession *session, const OrtRunOptions *options, uint32_t seed,
                  ort_values *outputs) {
    OrtAllocator *allocator = NULL;
    ort_values inputs;
    size_t count = 0, i;
    bool ok = ort_ok(ort->GetAllocatorWithDefaultOptions(&allocator)) &&
              ort_ok(ort->SessionGetInputCount(session, &count)) && count <= ORT_MAX_VALUES;
    memset(&inputs, 0, sizeof inputs);
    memset(outputs, 0, sizeof *outputs);
    for (i = 0; ok && i < count; i++) {
        inputs.count = i + 1;
        ok = ort_make_input(session, i, allocator, seed, &inputs);
    }
    ok = ok && ort_ok(ort->SessionGetOutputCount(session, &count)) && count <= ORT_MAX_VALUES;
    for (i = 0; ok && i < count; i++) {
        outputs->count = i + 1;
        ok = ort_ok(ort->SessionGetOutputName(session, i, allocator, &outputs->names[i]));
    }
    if (ok) {
        ok = ort_ok(ort->Run(session, options, (const char *const *)inputs.names,
                             (const OrtValue *const *)inputs.values, inputs.count,
                             (const char *const *)outputs->names, outputs->count, outputs->values));
    }
    if (!ok) ort_values_free(outputs);
    ort_values_free(&inputs);
    return ok;
}

bool ort_run(OrtSession *session, uint32_t seed, ort_values *outputs) {
    return ort_run_with(session, NULL, seed, outputs);
}

static int byte_at(ONNXTensorElementDataType type, const void *data, size_t i) {
    return type == ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8 ? ((const int8_t *)data)[i]
                                                      : ((const uint8_t *)data)[i];
}

bool ort_same(const ort_values *a, const ort_values *b) {
    size_t i, k;
    double largest;
    size_t outliers;
    if (a->count != b->count) {
        snprintf(ort_text, sizeof ort_text, "%zu outputs, expected %zu", a->count, b->count);
        return false;
    }
    for (i = 0; i < a->count; i++) {
        ONNXTensorElementDataType type_a, type_b;
        const int64_t *shape_a = NULL, *shape_b = NULL;
        size_t rank_a = 0, rank_b = 0, size_a = 0, size_b = 0;
        const void *data_a = NULL, *data_b = NULL;
        if (!ort_ok(ort->GetTensorElementTypeAndShapeDataReference(a->values[i], &type_a, &shape_a,
                                                                   &rank_a)) ||
            !ort_ok(ort->GetTensorElementTypeAndShapeDataReference(b->values[i], &type_b, &shape_b,
                                                                   &rank_b)) ||
            !ort_ok(ort->GetTensorSizeInBytes(a->values[i], &size_a)) ||
            !ort_ok(ort->GetTensorSizeInBytes(b->values[i], &size_b)) ||
            !ort_ok(ort->GetTensorData(a->values[i], &data_a)) ||
            !ort_ok(ort->GetTensorData(b->values[i], &data_b)))
            return false;
        if (strcmp(a->names[i], b->names[i]) != 0 || type_a != type_b || rank_a != rank_b ||
            size_a != size_b || (rank_a && memcmp(shape_a, shape_b, rank_a * sizeof *shape_a))) {
            snprintf(ort_text, sizeof ort_text, "output %s differs from %s in type or shape",
                     a->names[i], b->names[i]);
            return false;
        }
        if (ort_relative > 0 && (type_a == ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8 ||
                                 type_a == ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8)) {
            for (k = 0; k < size_a; k++) {
                const int step = byte_at(type_a, data_a, k) - byte_at(type_a, data_b, k);
                if (abs(step) <= (ort_relative * 255 > 1 ? (int)(ort_relative * 255) : 1)) continue;
                snprintf(ort_text, sizeof ort_text, "output %s[%zu] differs by %d", a->names[i], k,
                         step);
                return false;
            }
            continue;
        }
        if (type_a != ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT) {
            if (size_a && memcmp(data_a, data_b, size_a) != 0) {
                snprintf(ort_text, sizeof ort_text, "output %s differs", a->names[i]);
                return false;
            }
            continue;
        }
        outliers = 0;
        for (k = 0, largest = 0; k < size_a / sizeof(float); k++) {
            const double size = fabs((double)((const float *)data_b)[k]);
            if (size > largest && !isinf(size)) largest = size;
        }
        for (k = 0; k < size_a / sizeof(float); k++) {
            const double got = (double)((const float *)data_a)[k];
            const double want = (double)((const float *)data_b)[k];
            if (isnan(got) || isnan(want)) {
                if (isnan(got) && isnan(want)) continue;
            } else if (fabs(got - want) <=
                           1e-5 * (1 + largest) + 1e-3 * fabs(want) + ort_relative * largest ||
                       !(got < want || got > want)) {
                continue; /* the latter: the same infinity */
            }
            if (ort_relative > 0 && fabs(got - want) <= largest / 12 &&
                ++outliers <= size_a / sizeof(float) / 100)
                continue;
            snprintf(ort_text, sizeof ort_text, "output %s[%zu]: expected %.9g, found %.9g",
                     a->names[i], k, want, got);
            return false;
        }
    }
    return true;
}

/* ----------------------------------------------------------------- compile */

static OrtStatus *ORT_API_CALL ort_write(void *state, const void *buffer, size_t size) {
    ort_output *out = (ort_output *)state;
    uint8_t *more = (uint8_t *)realloc(out->data, out->size + size + 1);
    if (!more) return ort->CreateStatus(ORT_FAIL, "no memory");
    memcpy(more + out->size, buffer, size);
    out->data = more;
    out->size += size;
    return NULL;
}

bool ort_compile_model(const ort_spec *spec, ort_output *out) {
    OrtSessionOptions *options = NULL;
    OrtModelCompilationOptions *mo = NULL;
    OrtAllocator *allocator = NULL;
    void *buffer = NULL;
    size_t size = 0;
    bool ok;
    if (spec->seen) spec->seen(spec, out);
    ok =
        ort_options(spec, &options) && ort_ok(ort->GetAllocatorWithDefaultOptions(&allocator)) &&
        ort_ok(ort_compile->CreateModelCompilationOptionsFromSessionOptions(ort_env, options, &mo));
    if (options) ort->ReleaseSessionOptions(options);
    if (ok) {
        ok = spec->path ? ort_ok(ort_compile->ModelCompilationOptions_SetInputModelPath(
                              mo, ort_path(spec->path)))
                        : ort_ok(ort_compile->ModelCompilationOptions_SetInputModelFromBuffer(
                              mo, spec->data, spec->size));
    }
    if (ok && out->path) {
        ok = ort_ok(
            ort_compile->ModelCompilationOptions_SetOutputModelPath(mo, ort_path(out->path)));
    } else if (ok && out->to_function) {
        ok = ort_ok(
            ort_compile->ModelCompilationOptions_SetOutputModelWriteFunc(mo, ort_write, out));
    } else if (ok) {
        ok = ort_ok(ort_compile->ModelCompilationOptions_SetOutputModelBuffer(mo, allocator,
                                                                              &buffer, &size));
    }
    if (ok) ok = ort_ok(ort_compile->ModelCompilationOptions_SetEpContextEmbedMode(mo, out->embed));
    if (ok && out->folder) {
        ok = ort_ok(ort_compile->ModelCompilationOptions_SetEpContextBinaryInformation(
            mo, ort_path(out->folder), ort_path(out->name)));
    }
    if (ok && out->initializers) {
        ok = ort_ok(ort_compile->ModelCompilationOptions_SetOutputModelExternalInitializersFile(
            mo, ort_path(out->initializers), out->threshold));
    }
    if (ok && out->flags)
        ok = ort_ok(ort_compile->ModelCompilationOptions_SetFlags(mo, out->flags));
    if (ok && out->more) out->more(mo, out->user);
    ok = ok && ort_ok(ort_compile->CompileModel(ort_env, mo));
    if (ok && buffer) {
        out->data = malloc(size ? size : 1);
        if (out->data) memcpy(out->data, buffer, size);
        out->size = size;
        allocator->Free(allocator, buffer);
    }
    if (mo) ort_compile->ReleaseModelCompilationOptions(mo);
    if (spec->done) spec->done(spec, ok);
    return ok;
}

bool ort_read_contexts(const char *path, ort_contexts *out) {
    epctx_error error;
    epctx_cursor it;
    epctx_node_view view;
    const size_t room = sizeof out->list / sizeof out->list[0];
    memset(out, 0, sizeof *out);
    epctx_error_clear(&error);
    if (epctx_model_open_file(&out->model, path, NULL, &error) != EPCTX_OK) {
        snprintf(ort_text, sizeof ort_text, "%s", error.message);
        return false;
    }
    it = epctx_view_graph_nodes(epctx_model_graph(&out->model));
    while (epctx_next_node(&it, &view)) {
        if (!epctx_view_is_epnode(&view)) {
            out->others++;
        } else if (out->count < room) {
            out->views[out->count] = view;
            if (epctx_view_read_epnode(&view, &out->list[out->count], &error) != EPCTX_OK) {
                snprintf(ort_text, sizeof ort_text, "%s", error.message);
                return false;
            }
            out->primaries += out->list[out->count++].main_context == 1;
        }
    }
    return true;
}
