/*
 * The plugin EP inside the unmodified ONNX Runtime: the rows of OrtEp and OrtEpFactory beside
 * GetCapability and Compile. Device memory and streams are those of the virtual NPU, which a
 * registration name in ".virtual" allows. examples/README.md has the table.
 */
#define _GNU_SOURCE 1
#include <pthread.h>

#include "epctx_npu.h"
#include "examples/plugin_ep/device.h"
#include "ort/ort_test.h"

/* "ep.<ep name in lower case>.<key>" */
static const char *ep_key(const char *key) {
    static char text[256];
    size_t i;
    snprintf(text, sizeof text, "ep.%s.%s", ep->ep, key);
    for (i = 0; text[i]; i++)
        if (text[i] >= 'A' && text[i] <= 'Z') text[i] = (char)(text[i] - 'A' + 'a');
    return text;
}

/* Options of a run, with one entry and a tag; both may be NULL. */
static OrtRunOptions *run_options(const char *key, const char *value, const char *tag) {
    OrtRunOptions *options = NULL;
    if (!ort_ok(ort->CreateRunOptions(&options))) return NULL;
    if (key) ort_ok(ort->AddRunConfigEntry(options, key, value));
    if (tag) ort_ok(ort->RunOptionsSetRunTag(options, tag));
    return options;
}

/* One run for its side effect. */
static bool run_once(OrtSession *session, const OrtRunOptions *options) {
    ort_values out;
    if (!ort_run_with(session, options, 7, &out)) return false;
    ort_values_free(&out);
    return true;
}

static bool run_and_release(OrtSession *session, OrtRunOptions *options) {
    const bool ok = run_once(session, options);
    ort->ReleaseRunOptions(options);
    return ok;
}

static bool set_dynamic(OrtSession *session, const char *key, const char *value) {
    return ort_ok(ort->SetEpDynamicOptions(session, &key, &value, 1));
}

/* Lines of the EP's end-of-session report go into ort_log from here on. */
static void listen(const char *text) {
    ort_log_also = text;
    ort_log_clear();
    ort_ok(ort->UpdateEnvWithCustomLogLevel(ort_env, text ? ORT_LOGGING_LEVEL_INFO
                                                          : ORT_LOGGING_LEVEL_WARNING));
}

/* ----------------------------------------------------------------- options */

/* What contradicts itself ends CreateEp, with the cure; ORT makes FAIL of every code there. */
TEST(contradictory_options) {
    static const char *const stop[] = {"ep.context_enable", "1", "ep.stop_share_ep_contexts", "1",
                                       NULL};
    static const char *const embed[] = {
        "ep.context_enable", "1", "ep.context_embed_mode", "1", "ep.share_ep_contexts", "1", NULL};
    static const char *const file[] = {"ep.context_enable", "1",
                                       "ep.context_model_external_initializers_file_name",
                                       "../w.bin", NULL};
    ort_spec spec = spec_of(in_folder("m.onnx"));
    CHECK_TRUE(make_one("m.onnx"));
    spec.config = stop;
    CHECK_ORT_FAILS(make_session(&spec), ORT_FAIL, "without ep.share_ep_contexts");
    spec.config = embed;
    CHECK_ORT_FAILS(make_session(&spec), ORT_FAIL, "set ep.context_embed_mode to 0");
    spec.config = file;
    CHECK_ORT_FAILS(make_session(&spec), ORT_FAIL, "a file name is expected");
    CHECK_INT(count_files(), 1);
}

/* -------------------------------------------------------------------- runs */

typedef struct runner {
    OrtSession *session;
    OrtRunOptions *options;
    int code;
    char text[512];
} runner;

/* Not through ort_ok: its texts are shared. */
static void *run_in_thread(void *argument) {
    runner *r = (runner *)argument;
    const char *const names_in[] = {"x", "z"}, *const names_out[] = {"y"};
    OrtAllocator *allocator = NULL;
    OrtValue *in[2] = {NULL, NULL}, *out = NULL;
    OrtStatus *status = ort->GetAllocatorWithDefaultOptions(&allocator);
    size_t count = 0, i;
    if (!status) status = ort->SessionGetInputCount(r->session, &count);
    for (i = 0; !status && i < count; i++) {
        void *data = NULL;
        status = ort->CreateTensorAsOrtValue(allocator, dims23, 2,
                                             ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &in[i]);
        if (!status) status = ort->GetTensorMutableData(in[i], &data);
        if (!status) memset(data, 0, 6 * sizeof(float));
    }
    if (!status) {
        status = ort->Run(r->session, r->options, names_in, (const OrtValue *const *)in, count,
                          names_out, 1, &out);
    }
    r->code = status ? (int)ort->GetErrorCode(status) : 0;
    snprintf(r->text, sizeof r->text, "%s", status ? ort->GetErrorMessage(status) : "");
    if (status) ort->ReleaseStatus(status);
    for (i = 0; i < 2; i++)
        if (in[i]) ort->ReleaseValue(in[i]);
    if (out) ort->ReleaseValue(out);
    return NULL;
}

/* A run option that makes no sense ends the run, not the session. */
TEST(run_options) {
    static const char *const bad[] = {"x", "", "0", "-1", "1x", "99999999999999999999"};
    ort_spec spec = spec_of(in_folder("m.onnx"));
    OrtSession *session = NULL;
    size_t i;
    CHECK_TRUE(make_one("m.onnx"));
    CHECK_ORT(ort_session(&spec, &session));
    for (i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        OrtRunOptions *options = run_options(ep_key("max_concurrent_runs"), bad[i], NULL);
        CHECK_ORT_FAILS(run_and_release(session, options), ORT_INVALID_ARGUMENT,
                        "a number from 1 is expected");
    }
    CHECK_ORT(run_and_release(session, run_options(ep_key("max_concurrent_runs"), "1", NULL)));
    CHECK_ORT(run_and_release(session, run_options("of.somebody.else", "x", NULL)));
    ort->ReleaseSession(session);
}

/* Two runs at once: the second is let in, or refused when it asks not to wait. This also shows that
 * ORT does not queue them (IsConcurrentRunSupported): the first is held while the second hears. */
TEST(run_refused) {
    ort_spec spec = spec_of(in_folder("m.onnx"));
    OrtSession *session = NULL;
    pthread_t thread;
    runner first = {0};
    bool held, ok;
    int code;
    char text[sizeof ort_text];
    CHECK_TRUE(make_one("m.onnx"));
    listen("under way");
    CHECK_ORT(ort_session(&spec, &session));
    first.session = session;
    CHECK_ORT(set_dynamic(session, "ep.dynamic.toy_hold", "1"));
    if (pthread_create(&thread, NULL, run_in_thread, &first) != 0) exit(1);
    held = set_dynamic(session, "ep.dynamic.toy_hold", "held");
    ok = run_and_release(session, run_options(ep_key("max_concurrent_runs"), "1", "second"));
    code = ort_code;
    memcpy(text, ort_text, sizeof text);
    set_dynamic(session, "ep.dynamic.toy_hold", "0");
    pthread_join(thread, NULL);
    CHECK(held, "the first run did not begin");
    CHECK(first.code == 0, "the first run: %s", first.text);
    CHECK(!ok && code == ORT_EP_FAIL && strstr(text, "run 'second' is refused: 1 of this session"),
          "expected EP_FAIL, found %d: %s", code, text);
    /* The first has left. */
    CHECK_ORT(run_and_release(session, run_options(ep_key("max_concurrent_runs"), "1", NULL)));
    ort->ReleaseSession(session);
    CHECK(strstr(ort_log, ep->ep) && strstr(ort_log, ": 2 runs, 1 refused, 0 under way"),
          "the log says: %s", ort_log);
    listen(NULL);
}

/* A run that the application terminates ends, too, and its place is free again. */
TEST(run_cancelled) {
    ort_spec spec = spec_of(in_folder("m.onnx"));
    OrtSession *session = NULL;
    pthread_t thread;
    runner r = {0};
    bool held;
    CHECK_TRUE(make_three("m.onnx"));
    spec.allow_cpu = true;
    listen("under way");
    CHECK_ORT(ort_session(&spec, &session));
    r.session = session;
    r.options = run_options(NULL, NULL, "cancelled");
    CHECK_ORT(set_dynamic(session, "ep.dynamic.toy_hold", "1"));
    if (pthread_create(&thread, NULL, run_in_thread, &r) != 0) exit(1);
    held = set_dynamic(session, "ep.dynamic.toy_hold", "held");
    ort_ok(ort->RunOptionsSetTerminate(r.options));
    set_dynamic(session, "ep.dynamic.toy_hold", "0");
    pthread_join(thread, NULL);
    ort->ReleaseRunOptions(r.options);
    CHECK(held, "the run did not begin");
    CHECK(r.code != 0 && strstr(r.text, "terminate"), "expected the run to end, found %d: %s",
          r.code, r.text);
    CHECK_ORT(run_and_release(session, run_options(ep_key("max_concurrent_runs"), "1", NULL)));
    ort->ReleaseSession(session);
    CHECK(strstr(ort_log, ": 2 runs, 0 refused, 0 under way"), "the log says: %s", ort_log);
    listen(NULL);
}

/* Runs until one fails. */
static void *run_until_failure(void *argument) {
    runner *r = (runner *)argument;
    do {
        run_in_thread(r);
    } while (r->code == 0);
    return NULL;
}

/* Inside a partition only the device can end a run, and ORT does not tell it to: the application
 * does. */
TEST(run_cancelled_inside) {
    ort_spec spec = spec_of(in_folder("m.onnx"));
    OrtSession *session = NULL;
    pthread_t thread;
    runner r = {0};
    CHECK_TRUE(make_one("m.onnx"));
    CHECK_ORT(ort_session(&spec, &session));
    CHECK_ORT_FAILS(set_dynamic(session, "ep.dynamic.cancel_runs", "yes"), ORT_INVALID_ARGUMENT,
                    "0 or 1 is expected, found 'yes'");
    r.session = session;
    if (pthread_create(&thread, NULL, run_until_failure, &r) != 0) exit(1);
    CHECK_ORT(set_dynamic(session, "ep.dynamic.cancel_runs", "1"));
    pthread_join(thread, NULL);
    CHECK(strstr(r.text, "cancelled by the caller"), "expected the run to be cancelled: %s",
          r.text);
    CHECK_ORT(set_dynamic(session, "ep.dynamic.cancel_runs", "0"));
    CHECK_ORT(run_once(session, NULL));
    ort->ReleaseSession(session);
}

/* --------------------------------------------------------- dynamic options */

TEST(dynamic_options) {
    static const char *const keys[] = {"ep.dynamic.workload_type", "ep.dynamic.nonsense"};
    static const char *const values[] = {"Efficient", "1"};
    ort_spec spec = spec_of(in_folder("m.onnx"));
    OrtSession *session = NULL;
    CHECK_TRUE(make_one("m.onnx"));
    CHECK_ORT(ort_session(&spec, &session));
    CHECK_ORT_FAILS(set_dynamic(session, "ep.dynamic.nonsense", "1"), ORT_INVALID_ARGUMENT,
                    "'ep.dynamic.nonsense' is not one of");
    CHECK_HAS(ort_text, "ep.dynamic.workload_type");
    CHECK_ORT_FAILS(ort_ok(ort->SetEpDynamicOptions(session, keys, values, 2)),
                    ORT_INVALID_ARGUMENT, "ep.dynamic.nonsense");
    CHECK_ORT_FAILS(set_dynamic(session, "ep.dynamic.workload_type", "fast"), ORT_INVALID_ARGUMENT,
                    "Default or Efficient is expected, found 'fast'");
    CHECK_ORT(set_dynamic(session, "ep.dynamic.workload_type", "Efficient"));
    CHECK_ORT(run_once(session, NULL));
    CHECK_ORT(set_dynamic(session, "ep.dynamic.workload_type", "Default"));
    CHECK_ORT(run_once(session, NULL));
    ort->ReleaseSession(session);
}

/* Keys of the device reach it, and all or none of a list counts. */
TEST(dynamic_options_of_the_device) {
    static const char *const keys[] = {"ep.dynamic.toy_fail", "ep.dynamic.nonsense"};
    static const char *const values[] = {"1", "1"};
    ort_spec spec = spec_of(in_folder("m.onnx"));
    OrtSession *session = NULL;
    CHECK_TRUE(make_one("m.onnx"));
    CHECK_ORT(ort_session(&spec, &session));
    CHECK_ORT_FAILS(ort_ok(ort->SetEpDynamicOptions(session, keys, values, 2)),
                    ORT_INVALID_ARGUMENT, "ep.dynamic.workload_type, ep.dynamic.toy_fail");
    CHECK_ORT(run_once(session, NULL));
    CHECK_ORT(set_dynamic(session, "ep.dynamic.toy_fail", "1"));
    CHECK_ORT_FAILS(run_once(session, NULL), ORT_EP_FAIL, "the toy was told to fail");
    CHECK_ORT(set_dynamic(session, "ep.dynamic.toy_fail", "0"));
    CHECK_ORT(run_once(session, NULL));
    CHECK_ORT_FAILS(set_dynamic(session, "ep.dynamic.toy_fail", "perhaps"), ORT_INVALID_ARGUMENT,
                    "0 or 1 is expected");
    ort->ReleaseSession(session);
}

/* Default: a run allocates nothing, it has the memory of the one before. Efficient: it gave that
 * back. */
TEST(workload_type) {
    oom_library oom;
    ort_spec spec = spec_of(in_folder("m.onnx"));
    OrtSession *session = NULL;
    bool ok, kept = false, given = false, failed = false;
    CHECK_TRUE(make_one("m.onnx"));
    CHECK_ORT(oom_open(&oom));
    ok = register_library("oom", PLUGIN("toy_oom_ep")) && ort_session(&spec, &session) &&
         run_once(session, NULL);
    oom.arm(1);
    ok = ok && run_once(session, NULL);
    kept = !oom.fired();
    oom.arm(0);
    ok = ok && set_dynamic(session, "ep.dynamic.workload_type", "Efficient") &&
         run_once(session, NULL);
    oom.arm(1);
    failed = ok && !run_once(session, NULL);
    given = oom.fired();
    oom.arm(0);
    ok = ok && run_once(session, NULL);
    if (session) ort->ReleaseSession(session);
    ort_ok(ort->UnregisterExecutionProviderLibrary(ort_env, "oom"));
    CHECK_ORT(oom_close(&oom));
    CHECK_TRUE(ok);
    CHECK(kept, "a run of the Default workload allocated memory");
    CHECK(given && failed, "a run of the Efficient workload found the memory of another");
}

/* ------------------------------------------------------------------ layout */

enum { N = 1, C = 3, H = 2, W = 5 };

/* y = relu(max of each channel of x + mean of each channel of x): two pools, one of which the toy
 * wants channels last. */
static bool make_pools(const char *name) {
    static const int64_t dims[4] = {N, C, H, W}, one[4] = {N, C, 1, 1};
    onnx_model m;
    onnx_begin(&m);
    onnx_input(&m.graph, "x", 4, dims);
    onnx_node(&m.graph, "GlobalMaxPool", "", "max", "x", "a", NULL);
    onnx_node(&m.graph, "GlobalAveragePool", "", "mean", "x", "b", NULL);
    onnx_node(&m.graph, "Add", "", "add", "a,b", "c", NULL);
    onnx_node(&m.graph, "Relu", "", "relu", "c", "y", NULL);
    onnx_output(&m.graph, "y", 4, one);
    return save_model(name, &m);
}

/* The toy refuses to compile the pool that it asked for channels last unless ORT converted it, and
 * does not know the converted form of the other. */
TEST(data_layout) {
    static const char *const last[] = {"layout", "nhwc", NULL};
    ort_spec spec = spec_of(in_folder("m.onnx"));
    size_t ran;
    CHECK_TRUE(make_pools("m.onnx"));
    ran = check_run(&spec, spec.path); /* nothing is left for the CPU: there is no Transpose */
    CHECK(ran == 4, "channels first: %s", ort_text);
    spec.allow_cpu = true; /* for the Transposes */
    spec.options = last;
    ran = check_run(&spec, spec.path);
    CHECK(ran == 4, "channels last: %s", ort_text);
    /* And in a context model. */
    spec.config = generate;
    CHECK_ORT(make_session(&spec));
    spec.config = NULL;
    spec.path = in_folder("m_ctx.onnx");
    ran = check_run(&spec, in_folder("m.onnx"));
    CHECK(ran >= 1, "from the context: %s", ort_text);
}

/* ------------------------------------------------------------------ memory */

/* Runs `body` with the plugin registered so that it has its virtual NPU, maybe with memory. */
static void with_npu(bool memory, void (*body)(const OrtEpDevice *)) {
    const OrtEpDevice *device;
    if (memory && ort_version < 27) SKIP("the NPU has memory of its own since ONNX Runtime 1.27");
    CHECK_ORT(ort_ok(ort->UnregisterExecutionProviderLibrary(ort_env, ep->label)));
    CHECK_ORT(register_library("rows.virtual", ep->library));
    device = ort_device(ep->ep, OrtHardwareDeviceType_NPU);
    if (device) body(device);
    if (!device && test_name) test_fail(__FILE__, __LINE__, "expected a virtual NPU");
    if (!ort_ok(ort->UnregisterExecutionProviderLibrary(ort_env, "rows.virtual")) && test_name)
        test_fail(__FILE__, __LINE__, "%s", ort_text);
    if (!register_library(ep->label, ep->library) && test_name)
        test_fail(__FILE__, __LINE__, "%s", ort_text);
}

/* A number of an allocator's statistics; -2 when it has none of that name. */
static long stat_of(const OrtAllocator *allocator, const char *key) {
    OrtKeyValuePairs *pairs = NULL;
    const char *text;
    long number = -2;
    if (!ort_ok(ort->AllocatorGetStats(allocator, &pairs))) return -2;
    text = ort->GetKeyValue(pairs, key);
    if (text) number = strtol(text, NULL, 10);
    ort->ReleaseKeyValuePairs(pairs);
    return number;
}

/* The factory's allocators: counted, limited, of the memory that the device announced. */
static void shared_memory(const OrtEpDevice *device) {
    static const OrtDeviceMemoryType types[] = {OrtDeviceMemoryType_DEFAULT,
                                                OrtDeviceMemoryType_HOST_ACCESSIBLE};
    OrtKeyValuePairs *options = NULL;
    OrtAllocator *allocator = NULL;
    size_t i;
    CHECK(!ort->EpDevice_MemoryInfo(ort_device(ep->ep, OrtHardwareDeviceType_CPU),
                                    OrtDeviceMemoryType_DEFAULT),
          "the CPU device of %s announces memory of its own", ep->ep);
    for (i = 0; i < 2; i++) {
        const OrtMemoryInfo *info = ort->EpDevice_MemoryInfo(device, types[i]);
        OrtMemoryInfoDeviceType kind = OrtMemoryInfoDeviceType_CPU;
        void *block;
        CHECK(info, "no memory of kind %zu", i);
        ort->MemoryInfoGetDeviceType(info, &kind);
        CHECK_INT(kind, OrtMemoryInfoDeviceType_NPU);
        CHECK_INT(ort->MemoryInfoGetVendorId(info),
                  ort->HardwareDevice_VendorId(ort->EpDevice_Device(device)));
        CHECK_ORT(ort_ok(ort->GetSharedAllocator(ort_env, info, &allocator)));
        CHECK(allocator, "no allocator for memory of kind %zu", i);
        CHECK_INT(stat_of(allocator, "Limit"), -1);
        block = allocator->Alloc(allocator, 100);
        CHECK(block && (uintptr_t)block % 64 == 0, "expected memory aligned to 64, found %p",
              block);
        memset(block, 1, 100);
        CHECK_INT(stat_of(allocator, "InUse"), 100);
        allocator->Free(allocator, block);
        CHECK_INT(stat_of(allocator, "InUse"), 0);
        CHECK_INT(stat_of(allocator, "MaxInUse"), 100);
    }
    ort->CreateKeyValuePairs(&options);
    ort->AddKeyValuePair(options, "device_memory_limit", "4096");
    CHECK_ORT(ort_ok(ort->CreateSharedAllocator(ort_env, device, OrtDeviceMemoryType_DEFAULT,
                                                OrtDeviceAllocator, options, &allocator)));
    {
        void *first = allocator->Alloc(allocator, 4000), *second, *third;
        CHECK_TRUE(first != NULL);
        second = allocator->Alloc(allocator, 97);
        third = allocator->Alloc(allocator, 96);
        CHECK(!second, "97 bytes where 96 are left");
        CHECK(third, "96 bytes where 96 are left");
        CHECK_INT(stat_of(allocator, "Limit"), 4096);
        CHECK_INT(stat_of(allocator, "NumAllocs"), 2);
        CHECK_INT(stat_of(allocator, "MaxInUse"), 4096);
        CHECK_TRUE(!allocator->Alloc(allocator, 0) && !allocator->Alloc(allocator, SIZE_MAX));
        allocator->Free(allocator, first);
        allocator->Free(allocator, third);
        allocator->Free(allocator, NULL);
        CHECK_INT(stat_of(allocator, "InUse"), 0);
    }
    ort->AddKeyValuePair(options, "device_memory_limit", "much");
    CHECK_ORT_FAILS(ort_ok(ort->CreateSharedAllocator(ort_env, device, OrtDeviceMemoryType_DEFAULT,
                                                      OrtDeviceAllocator, options, &allocator)),
                    ORT_INVALID_ARGUMENT, "a number of bytes is expected, found 'much'");
    ort->ReleaseKeyValuePairs(options);
}

TEST(memory_of_the_factory) {
    with_npu(true, shared_memory);
}

/* A CPU tensor of six floats 0, 1, 2, ... or of device memory. */
static bool six_floats(OrtAllocator *allocator, float start, OrtValue **out) {
    void *data = NULL;
    int i;
    if (!ort_ok(ort->CreateTensorAsOrtValue(allocator, dims23, 2,
                                            ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, out)) ||
        !ort_ok(ort->GetTensorMutableData(*out, &data)))
        return false;
    for (i = 0; i < 6; i++) ((float *)data)[i] = start + (float)i;
    return true;
}

/* A session's own allocator, with the session's limit; input and output in device memory. */
static void session_memory(const OrtEpDevice *device) {
    static const char *const options[] = {"device_memory_limit", "65536", NULL};
    const OrtMemoryInfo *info = ort->EpDevice_MemoryInfo(device, OrtDeviceMemoryType_DEFAULT);
    ort_spec spec = spec_of(in_folder("m.onnx"));
    OrtSession *session = NULL, *cpu = NULL;
    OrtAllocator *allocator = NULL, *host = NULL;
    OrtIoBinding *binding = NULL;
    OrtValue *x = NULL, *near = NULL, *far = NULL, *wide = NULL, **outputs = NULL, *want = NULL;
    static const int64_t dims33[2] = {3, 3};
    const char *const in_name[] = {"x"}, *const out_name[] = {"y"};
    const void *got_data = NULL, *want_data = NULL;
    size_t count = 0;
    CHECK_TRUE(make_one("m.onnx"));
    spec.npu = true;
    spec.options = options;
    CHECK_ORT(ort_session(&spec, &session));
    CHECK_ORT(ort_ok(ort->CreateAllocator(session, info, &allocator)));
    CHECK_INT(stat_of(allocator, "Limit"), 65536);
    CHECK_ORT(ort_ok(ort->GetAllocatorWithDefaultOptions(&host)));
    CHECK_ORT(six_floats(host, -2, &x) && six_floats(host, 0, &near));
    CHECK_ORT(ort_ok(ort->CreateTensorAsOrtValue(allocator, dims23, 2,
                                                 ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &far)));
    CHECK_INT(stat_of(allocator, "InUse"), 24);
    CHECK_ORT(ort_ok(ort->CreateTensorAsOrtValue(allocator, dims33, 2,
                                                 ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &wide)));
    CHECK_TRUE(!ort_ok(ort->CopyTensors(ort_env, (const OrtValue *const *)&x, &wide, NULL, 1)));
    CHECK_HAS(ort_text, "a tensor of 24 bytes does not fit one of 36");
    ort->ReleaseValue(wide);
    CHECK_ORT(ort_ok(ort->CopyTensors(ort_env, (const OrtValue *const *)&x, &far, NULL, 1)));
    CHECK_ORT(ort_ok(ort->CreateIoBinding(session, &binding)));
    CHECK_ORT(ort_ok(ort->BindInput(binding, "x", far)));
    CHECK_ORT(ort_ok(ort->BindOutputToDevice(binding, "y", info)));
    CHECK_ORT(ort_ok(ort->RunWithBinding(session, NULL, binding)));
    CHECK_ORT(ort_ok(ort->GetBoundOutputValues(binding, host, &outputs, &count)));
    CHECK_INT(count, 1);
    CHECK_ORT(ort_ok(ort->CopyTensors(ort_env, (const OrtValue *const *)outputs, &near, NULL, 1)));
    CHECK(stat_of(allocator, "NumAllocs") >= 2, "the output is not in device memory");
    /* The same on the CPU. */
    spec.ep = NULL;
    CHECK_ORT(ort_session(&spec, &cpu));
    CHECK_ORT(
        ort_ok(ort->Run(cpu, NULL, in_name, (const OrtValue *const *)&x, 1, out_name, 1, &want)));
    CHECK_ORT(ort_ok(ort->GetTensorData(near, &got_data)));
    CHECK_ORT(ort_ok(ort->GetTensorData(want, &want_data)));
    CHECK_MEM(got_data, 6 * sizeof(float), want_data, 6 * sizeof(float));
    ort->ReleaseValue(outputs[0]);
    host->Free(host, outputs);
    ort->ReleaseIoBinding(binding);
    ort->ReleaseValue(far);
    CHECK_INT(stat_of(allocator, "InUse"), 0);
    ort->ReleaseAllocator(allocator);
    ort->ReleaseValue(x);
    ort->ReleaseValue(near);
    ort->ReleaseValue(want);
    ort->ReleaseSession(session);
    ort->ReleaseSession(cpu);
}

TEST(memory_of_a_session) {
    with_npu(true, session_memory);
}

/* A session whose tensors do not fit fails with an error. */
static void too_little_memory(const OrtEpDevice *device) {
    static const char *const few[] = {"device_memory_limit", "23", NULL};
    static const char *const none[] = {"device_memory_limit", "-5", NULL};
    ort_spec spec = spec_of(in_folder("m.onnx"));
    OrtSession *session = NULL;
    bool ok;
    (void)device;
    CHECK_TRUE(make_one("m.onnx"));
    spec.npu = true;
    spec.options = few;
    CHECK_ORT(ort_session(&spec, &session));
    ok = run_once(session, NULL);
    CHECK(!ok && strstr(ort_text, "no device memory for a tensor of 24 bytes"),
          "24 bytes of input into 23: found %s", ort_text);
    ort->ReleaseSession(session);
    spec.options = none;
    CHECK(!make_session(&spec), "a limit of -5 bytes is taken");
    CHECK_HAS(ort_text, "a number of bytes is expected, found '-5'");
}

TEST(memory_limit) {
    with_npu(true, too_little_memory);
}

/* Nodes of the CPU between those of the NPU: ORT copies back and forth. */
static void beside_the_cpu(const OrtEpDevice *device) {
    ort_spec spec = spec_of(in_folder("m.onnx"));
    size_t ran;
    (void)device;
    CHECK_TRUE(make_three("m.onnx"));
    spec.npu = true;
    spec.allow_cpu = true;
    ran = check_run(&spec, spec.path);
    CHECK(ran >= 4, "%s", ort_text);
    spec.config = generate;
    CHECK_ORT(make_session(&spec));
    spec.config = NULL;
    spec.path = in_folder("m_ctx.onnx");
    ran = check_run(&spec, in_folder("m.onnx"));
    CHECK(ran >= 3, "%s", ort_text);
}

TEST(memory_beside_the_cpu) {
    with_npu(true, beside_the_cpu);
}

/* ----------------------------------------------------------------- streams */

static void outside_streams(const OrtEpDevice *device) {
    const OrtMemoryInfo *info = ort->EpDevice_MemoryInfo(device, OrtDeviceMemoryType_DEFAULT);
    OrtSyncStream *stream = NULL;
    OrtAllocator *allocator = NULL, *host = NULL;
    OrtValue *x = NULL, *y = NULL, *far = NULL;
    const ep_stream_info *handle;
    const void *a = NULL, *b = NULL;
    CHECK(!ort_ok(ort->CreateSyncStreamForEpDevice(ort_device(ep->ep, OrtHardwareDeviceType_CPU),
                                                   NULL, &stream)),
          "a stream on the CPU");
    CHECK_ORT(ort_ok(ort->CreateSyncStreamForEpDevice(device, NULL, &stream)));
    handle = (const ep_stream_info *)ort->SyncStream_GetHandle(stream);
    CHECK_TRUE(handle != NULL);
    CHECK_INT(handle->copies, 0);
    CHECK_ORT(ort_ok(ort->GetAllocatorWithDefaultOptions(&host)));
    CHECK_ORT(ort_ok(ort->GetSharedAllocator(ort_env, info, &allocator)));
    CHECK_ORT(six_floats(host, 3, &x) && six_floats(host, 9, &y));
    CHECK_ORT(ort_ok(ort->CreateTensorAsOrtValue(allocator, dims23, 2,
                                                 ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &far)));
    CHECK_ORT(ort_ok(ort->CopyTensors(ort_env, (const OrtValue *const *)&x, &far, stream, 1)));
    CHECK_ORT(ort_ok(ort->CopyTensors(ort_env, (const OrtValue *const *)&far, &y, stream, 1)));
    CHECK_INT(handle->copies, 2);
    CHECK_ORT(ort_ok(ort->GetTensorData(x, &a)) && ort_ok(ort->GetTensorData(y, &b)));
    CHECK_MEM(b, 24, a, 24);
    ort->ReleaseValue(x);
    ort->ReleaseValue(y);
    ort->ReleaseValue(far);
    ort->ReleaseSyncStream(stream);
}

TEST(stream_outside_a_session) {
    with_npu(true, outside_streams);
}

/* A session on the NPU gets a stream of its own, which is flushed and released. */
static void inside_streams(const OrtEpDevice *device) {
    ort_spec spec = spec_of(in_folder("m.onnx"));
    OrtSession *session = NULL;
    const char *line;
    unsigned streams = 0, open = 0, flushes = 0;
    (void)device;
    CHECK_TRUE(make_one("m.onnx"));
    spec.npu = true;
    listen("streams:");
    CHECK_ORT(ort_session(&spec, &session));
    CHECK_ORT(run_once(session, NULL));
    CHECK_ORT(run_once(session, NULL));
    ort->ReleaseSession(session);
    line = strstr(ort_log, "streams: ");
    CHECK(line && sscanf(line, "streams: %u, of them open %u, flushed %u", &streams, &open,
                         &flushes) == 3,
          "the log says: %s", ort_log);
    CHECK(streams > 0 && open == 0 && flushes >= 2, "the log says: %s", line);
    /* On the CPU there is none. */
    spec.npu = false;
    listen("streams:");
    CHECK_ORT(ort_session(&spec, &session));
    CHECK_ORT(run_once(session, NULL));
    ort->ReleaseSession(session);
    CHECK_HAS(ort_log, "streams: 0,");
    listen(NULL);
}

TEST(stream_of_a_session) {
    with_npu(true, inside_streams);
}

/* ---------------------------------------------------------------- hardware */

/* Which hardware this EP can use, and why not. */
static void hardware(const OrtEpDevice *device) {
    const subject *other = second_subject();
    const OrtEpDevice *foreign;
    const OrtHardwareDevice *devices[3];
    OrtDeviceEpIncompatibilityDetails *details = NULL;
    int i;
    CHECK_ORT(register_library("foreign.virtual", other->library));
    foreign = ort_device(other->ep, OrtHardwareDeviceType_NPU);
    CHECK_TRUE(foreign != NULL);
    devices[0] = ort->EpDevice_Device(ort_device(ep->ep, OrtHardwareDeviceType_CPU));
    devices[1] = ort->EpDevice_Device(device);
    devices[2] = ort->EpDevice_Device(foreign);
    for (i = 0; i < 3; i++) {
        uint32_t reasons = 77;
        const char *notes = NULL;
        CHECK_ORT(ort_ok(
            ort->GetHardwareDeviceEpIncompatibilityDetails(ort_env, ep->ep, devices[i], &details)));
        CHECK_ORT(ort_ok(ort->DeviceEpIncompatibilityDetails_GetReasonsBitmask(details, &reasons)));
        CHECK_ORT(ort_ok(ort->DeviceEpIncompatibilityDetails_GetNotes(details, &notes)));
        CHECK_INT(reasons, i < 2 ? 0 : OrtDeviceEpIncompatibility_DEVICE_INCOMPATIBLE);
        if (i == 2) CHECK_HAS(notes, "this is another NPU, of '");
        ort->ReleaseDeviceEpIncompatibilityDetails(details);
    }
    CHECK_ORT(ort_ok(ort->UnregisterExecutionProviderLibrary(ort_env, "foreign.virtual")));
}

TEST(hardware_details) {
    if (!second_subject()) SKIP("there is no second EP");
    with_npu(false, hardware);
}

/* One candidate of a package: a model for each string. */
static OrtKeyValuePairs *candidate_of(const char *first, const char *second) {
    OrtKeyValuePairs *pairs = NULL;
    ort->CreateKeyValuePairs(&pairs);
    ort->AddKeyValuePair(pairs, "num_models", second ? "2" : "1");
    ort->AddKeyValuePair(pairs, "0.ep_compatibility_info", first);
    if (second) ort->AddKeyValuePair(pairs, "1.ep_compatibility_info", second);
    return pairs;
}

/* Which of "new", "old" (should be compiled again), "no" (cannot run), "?" (not ours), given as
 * words, one candidate each; "new+old" is a candidate of two models. -1: none. -2: an error. */
static int choice(OrtEpFactory *factory, bool strict, const char *words) {
    OrtKeyValuePairs *candidates[8];
    OrtSessionOptions *options = NULL;
    size_t count = 0, selected = 77, i;
    char list[200], *word, *rest = NULL;
    bool ok = ort_ok(ort->CreateSessionOptions(&options));
    if (ok && strict) {
        ok = ort_ok(
            ort->AddSessionConfigEntry(options, "session.fail_on_suboptimal_compiled_model", "1"));
    }
    snprintf(list, sizeof list, "%s", words);
    for (word = strtok_r(list, " ", &rest); ok && word; word = strtok_r(NULL, " ", &rest)) {
        char texts[2][256];
        char *plus = strchr(word, '+');
        if (plus) *plus = '\0';
        for (i = 0; i < 2; i++) {
            const char *w = i && plus ? plus + 1 : word;
            snprintf(texts[i], sizeof texts[i], "epctx=1;source=%s;sdk=%s;arch=%s",
                     *w == '?' ? "Other" : ep->ep, strcmp(w, "old") == 0 ? ep->old_sdk : ep->sdk,
                     strcmp(w, "no") == 0 ? "nowhere" : ep->architecture);
        }
        candidates[count++] = candidate_of(texts[0], plus ? texts[1] : NULL);
    }
    ok = ok && ort_ok(factory->SelectBestModelCandidate(factory, NULL,
                                                        (const OrtKeyValuePairs *const *)candidates,
                                                        count, strict ? options : NULL, &selected));
    for (i = 0; i < count; i++) ort->ReleaseKeyValuePairs(candidates[i]);
    if (options) ort->ReleaseSessionOptions(options);
    return !ok ? -2 : selected == SIZE_MAX ? -1 : (int)selected;
}

/* The functions that ORT does not call, or calls with what it was given only: called here as ORT
 * would. */
/* Of a list of hardware the factory pairs itself with what it supports, as far as there is room,
 * and with nothing else, wherever it stands in the list. */
static bool pairs_of(OrtEpFactory *factory) {
    const OrtEpApi *api = ort->GetEpApi();
    const OrtHardwareDevice *cpu =
                                ort->EpDevice_Device(ort_device(ep->ep, OrtHardwareDeviceType_CPU)),
                            *list[4] = {NULL};
    OrtHardwareDevice *gpu = NULL;
    OrtEpDevice *pairs[4] = {NULL};
    size_t max, i;
    bool ok = ort_ok(api->CreateHardwareDevice(OrtHardwareDeviceType_GPU, 1, 2, "x", NULL, &gpu));
    list[0] = list[3] = gpu;
    list[1] = list[2] = cpu;
    for (max = 0; ok && max < 3; max++) { /* a third one would be the virtual NPU, if allowed */
        size_t count = 9;
        ok = ort_ok(factory->GetSupportedDevices(factory, list, 4, pairs, max, &count)) &&
             count == max;
        for (i = 0; i < (count < 4 ? count : 4) && pairs[i]; i++) {
            ok = ok && ort->EpDevice_Device(pairs[i]) == cpu;
            api->ReleaseEpDevice(pairs[i]);
            pairs[i] = NULL;
        }
    }
    if (gpu) api->ReleaseHardwareDevice(gpu);
    return ok;
}

TEST(factory_by_hand) {
    OrtStatus *(*create)(const char *, const OrtApiBase *, const OrtLogger *, OrtEpFactory **,
                         size_t, size_t *) = NULL;
    OrtStatus *(*release)(OrtEpFactory *) = NULL;
    OrtEpFactory *factory = NULL;
    OrtMemoryInfo *cpu = NULL;
    OrtAllocator *allocator = NULL;
    OrtSyncStreamImpl *stream = NULL;
    const OrtEpApi *api = ort->GetEpApi();
    const char *path = library_path(ep->library);
    size_t count = 0;
    void *library;
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    CHECK(library && ort_symbol(library, "CreateEpFactories", &create, sizeof create) &&
              ort_symbol(library, "ReleaseEpFactory", &release, sizeof release),
          "%s: %s", path, dlerror());
    CHECK_ORT(ort_ok(create("x", ort_base, NULL, &factory, 1, &count)));
    if (ep->vendor_id) CHECK_INT(factory->GetVendorId(factory), ep->vendor_id);
    CHECK_TRUE(pairs_of(factory));
    CHECK_ORT(ort_ok(ort->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &cpu)));
    CHECK_ORT_FAILS(ort_ok(factory->CreateAllocator(factory, cpu, NULL, &allocator)),
                    ORT_INVALID_ARGUMENT, "did not announce it");
    CHECK_ORT(ort_ok(factory->CreateAllocator(factory, NULL, NULL, &allocator)));
    CHECK_TRUE(allocator == NULL);
    factory->ReleaseAllocator(factory, NULL);
    CHECK_TRUE(!factory->IsStreamAware(factory)); /* no NPU, no memory of its own */
    CHECK_ORT_FAILS(ort_ok(factory->CreateSyncStreamForDevice(
                        factory, api->MemoryInfo_GetMemoryDevice(cpu), NULL, &stream)),
                    ORT_INVALID_ARGUMENT, "did not announce it");
    ort->ReleaseMemoryInfo(cpu);
    if (ort_version >= 28 && ep->sdk) {
        CHECK_INT(choice(factory, false, "old new"), 1);
        CHECK_INT(choice(factory, false, "no old new new"), 2);
        CHECK_INT(choice(factory, false, "? old no"), 1);
        CHECK_INT(choice(factory, false, "no ?"), 1);
        CHECK_INT(choice(factory, false, "no no"), -1);
        CHECK_INT(choice(factory, false, ""), -1);
        CHECK_INT(choice(factory, false, "new+no old"), 1);
        CHECK_INT(choice(factory, false, "new+old old+new new+new"), 2);
        CHECK_INT(choice(factory, true, "old old"), -1);
        CHECK_INT(choice(factory, true, "old new"), 1);
    }
    ort_ok(release(factory));
    dlclose(library);
}

/* Registers the toy with a function that ends the process, and makes a session of its NPU or CPU
 * that runs: 0 when ORT never called it. */
static int with_trap(const char *name, const char *model) {
    ort_spec spec;
    if (!run_self_begin(name) || !register_library("bad.virtual", PLUGIN("bad_ep"))) return 3;
    spec = spec_of(model);
    if (!make_session(&spec)) return 4;
    spec.npu = ort_version >= 27;
    spec.config = generate;
    return make_session(&spec) ? 0 : 5;
}

static int trap(const char *what) {
    char *words[] = {program, "--trap", NULL, NULL};
    char model[512];
    snprintf(model, sizeof model, "%s", in_folder("m.onnx"));
    words[2] = model;
    remove(in_folder("m_ctx.onnx"));
    return run_self(words, what);
}

/* Why factory_by_hand asks for the vendor: ORT does not. */
TEST(vendor_id_is_not_asked) {
    CHECK_TRUE(make_one("m.onnx"));
    CHECK_INT(trap("version"), 9); /* which ORT asks for: shows that the trap works */
    CHECK(trap("vendor_id") == 0, "%s asks for the vendor: test it through ORT",
          ort_base->GetVersionString());
}

/* ----------------------------------------------------------- named buffers */

/* An application that keeps one binary, "encrypted", in memory. */
static struct store {
    char name[256];
    uint8_t *data;
    size_t size;
    unsigned reads, writes;
    bool fail, unaligned, empty, freed;
} store;

static OrtStatus *ORT_API_CALL store_write(void *state, const char *name, const void *data,
                                           size_t size) {
    struct store *s = (struct store *)state;
    size_t i;
    s->writes++;
    if (s->fail) return ort->CreateStatus(ORT_RUNTIME_EXCEPTION, "the store is full");
    snprintf(s->name, sizeof s->name, "%s", name);
    free(s->data);
    s->data = (uint8_t *)malloc(size ? size : 1);
    s->size = size;
    for (i = 0; i < size; i++) s->data[i] = ((const uint8_t *)data)[i] ^ 0x5a;
    return NULL;
}

static OrtStatus *ORT_API_CALL store_read(void *state, const char *name, OrtAllocator *allocator,
                                          void **data, size_t *size) {
    struct store *s = (struct store *)state;
    size_t i;
    s->reads++;
    if (s->fail) return ort->CreateStatus(ORT_RUNTIME_EXCEPTION, "the key is lost");
    if (strcmp(name, s->name) != 0) return ort->CreateStatus(ORT_NO_SUCHFILE, "no such buffer");
    *size = s->empty ? 0 : s->size;
    *data = allocator->Alloc(allocator, s->size + 1);
    if (!*data) return ort->CreateStatus(ORT_FAIL, "no memory");
    if (s->freed) { /* it gives back what it took, and does not clear what it told */
        allocator->Free(allocator, *data);
        return ort->CreateStatus(ORT_RUNTIME_EXCEPTION, "half of it is lost");
    }
    for (i = 0; i < s->size; i++) ((uint8_t *)*data)[i] = s->data[i] ^ 0x5a;
    return NULL;
}

static void set_reader(OrtSessionOptions *options, void *user) {
    (void)user;
    if (!ort_set_reader(options, store_read, &store)) test_fail(__FILE__, __LINE__, "%s", ort_text);
}

static void set_writer(OrtModelCompilationOptions *options, void *user) {
    (void)user;
    if (!ort_set_writer(options, store_write, &store))
        test_fail(__FILE__, __LINE__, "%s", ort_text);
}

static void store_clear(void) {
    free(store.data);
    memset(&store, 0, sizeof store);
}

/* Context binaries go through the application's callbacks and never touch a file. */
TEST(named_buffers) {
    ort_spec spec = spec_of(in_folder("m.onnx"));
    ort_output out = {0};
    ort_contexts n;
    bool named;
    if (ort_version < 28) SKIP("named buffers came with ONNX Runtime 1.28");
    store_clear();
    CHECK_TRUE(make_three("m.onnx"));
    out.path = in_folder("o_ctx.onnx");
    out.more = set_writer;
    spec.allow_cpu = true;
    CHECK_ORT(ort_compile_model(&spec, &out));
    CHECK_INT(store.writes, 1);
    CHECK_INT(count_files(), 2); /* the two models */
    CHECK_STR(store.name, binary_name("o"));
    CHECK(ort_read_contexts(in_folder("o_ctx.onnx"), &n), "%s", ort_text);
    named = n.count == 3 && epctx_str_is(n.list[0].ep_cache_context, store.name);
    epctx_model_close(&n.model);
    CHECK_TRUE(named);
    spec.path = out.path;
    CHECK_ORT_FAILS(make_session(&spec), ORT_INVALID_GRAPH, store.name);
    spec.more = set_reader;
    CHECK(check_run(&spec, in_folder("m.onnx")) == 3, "%s", ort_text);
    CHECK_INT(store.reads, 1);
    /* From memory, without any folder. */
    {
        void *model = slurp("o_ctx.onnx", &spec.size);
        size_t ran;
        spec.path = NULL;
        spec.data = model;
        ran = check_run(&spec, in_folder("m.onnx"));
        free(model);
        CHECK(ran == 3, "%s", ort_text);
    }
    store_clear();
}

TEST(named_buffers_fail) {
    static const char *const share[] = {"ep.share_ep_contexts", "1", NULL};
    ort_spec spec = spec_of(in_folder("m.onnx"));
    ort_output out = {0};
    context_spec c;
    if (ort_version < 28) SKIP("named buffers came with ONNX Runtime 1.28");
    store_clear();
    CHECK_TRUE(make_one("m.onnx"));
    out.path = in_folder("o_ctx.onnx");
    out.more = set_writer;
    /* The application's error is the compilation's. */
    store.fail = true;
    CHECK_ORT_FAILS(ort_compile_model(&spec, &out), ORT_RUNTIME_EXCEPTION, "the store is full");
    CHECK_INT(count_files(), 1);
    store.fail = false;
    /* A shared binary is a file. */
    spec.config = share;
    CHECK_ORT_FAILS(ort_compile_model(&spec, &out), ORT_FAIL, "needs files");
    spec.config = NULL;
    CHECK_INT(count_files(), 1);
    /* Embedded: nothing to write. */
    out.embed = true;
    store.writes = 0;
    CHECK_ORT(ort_compile_model(&spec, &out));
    CHECK_INT(store.writes, 0);
    out.embed = false;
    CHECK_ORT(ort_compile_model(&spec, &out));
    spec.path = out.path;
    spec.more = set_reader;
    store.fail = true;
    CHECK_ORT_FAILS(make_session(&spec), ORT_RUNTIME_EXCEPTION, "the key is lost");
    store.fail = false;
    store.freed = true;
    CHECK_ORT_FAILS(make_session(&spec), ORT_RUNTIME_EXCEPTION, "half of it is lost");
    store.freed = false;
    store.empty = true;
    CHECK_ORT_FAILS(make_session(&spec), ORT_INVALID_GRAPH, "gave no bytes for '");
    CHECK_HAS(ort_text, ": node '");
    CHECK_HAS(ort_text, "': attribute 'ep_cache_context': the application's read callback");
    store.empty = false;
    store.data[0] ^= 1;
    CHECK_ORT_FAILS(make_session(&spec), ORT_INVALID_GRAPH, "");
    store.data[0] ^= 1;
    CHECK_ORT(make_session(&spec));
    /* Nothing is asked for by no name. */
    c = context_of("", "g");
    CHECK_TRUE(make_context("p.onnx", &c));
    spec.path = in_folder("p.onnx");
    store.reads = 0;
    CHECK_ORT_FAILS(make_session(&spec), ORT_INVALID_GRAPH, "ep_cache_context");
    CHECK_INT(store.reads, 0);
    store_clear();
}

/* The model p.onnx: o_ctx.onnx whose node has another name for its binary. */
/* ----------------------------------------------------------------- loading */

/* The device gets more than bytes: the file, and the node with attributes of its own. The log of
 * the session tells which context it loads. */
TEST(what_comes_with_the_bytes) {
    ort_spec spec = spec_of(in_folder("n_ctx.onnx"));
    const char *binary = binary_name("m");
    char real[PATH_MAX], key[256], text[2 * PATH_MAX];
    ort_contexts n;
    context_spec c;
    bool told;
    CHECK_TRUE(make_one("m.onnx") && generate_one(generate));
    CHECK(ort_read_contexts(in_folder("m_ctx.onnx"), &n), "%s", ort_text);
    snprintf(key, sizeof key, "%.*s", (int)n.list[0].partition_name.size,
             n.list[0].partition_name.data);
    epctx_model_close(&n.model);
    c = context_of(binary, key);
    c.embed_mode = 0;
    c.remark = "of our own";
    CHECK_TRUE(make_context("n_ctx.onnx", &c));
    CHECK_TRUE(realpath(in_folder(binary), real) != NULL);
    listen(real);
    CHECK(check_run(&spec, in_folder("m.onnx")) == 1, "%s", ort_text);
    snprintf(text, sizeof text, "%s: remark 'of our own' on '%s'", ep->ep, real);
    told = strstr(ort_log, text) != NULL;
    snprintf(text, sizeof text, " bytes from '%s'", real);
    told = told && strstr(ort_log, "node 'ctx' loads its context, ") && strstr(ort_log, text);
    listen(NULL);
    CHECK(told, "%s", ort_log);
}

/* An attribute of the EP's own that has another type is not taken for an empty text. */
TEST(own_attribute_of_another_type) {
    ort_spec spec = spec_of(in_folder("n_ctx.onnx"));
    char key[256];
    ort_contexts n;
    context_spec c;
    CHECK_TRUE(make_one("m.onnx") && generate_one(generate));
    CHECK(ort_read_contexts(in_folder("m_ctx.onnx"), &n), "%s", ort_text);
    snprintf(key, sizeof key, "%.*s", (int)n.list[0].partition_name.size,
             n.list[0].partition_name.data);
    epctx_model_close(&n.model);
    c = context_of(binary_name("m"), key);
    c.embed_mode = 0;
    CHECK_TRUE(make_context("n_ctx.onnx", &c));
    CHECK(check_run(&spec, in_folder("m.onnx")) == 1, "%s", ort_text);
    c.remark_number = 7;
    CHECK_TRUE(make_context("n_ctx.onnx", &c));
    CHECK_ORT_FAILS(make_session(&spec), ORT_INVALID_GRAPH,
                    "attribute 'remark': has attribute type 2 (INT), expected STRING");
    CHECK_HAS(ort_text, "node 'ctx'");
}

static bool rename_buffer(const char *name) {
    ort_contexts n;
    epctx_error error;
    epctx_write_opts opts = {0};
    bool ok = ort_read_contexts(in_folder("o_ctx.onnx"), &n) &&
              epctx_edit_set_attr_str(&n.model, n.views[0].view, "ep_cache_context",
                                      epctx_str_of(name), &error) == EPCTX_OK &&
              epctx_model_write_file(&n.model, in_folder("p.onnx"), &opts, &error) == EPCTX_OK;
    epctx_model_close(&n.model);
    return ok;
}

/* The application's names are its own keys: they reach its callback as they stand, whatever they
 * look like as paths, and what it says about them is the session's error. */
TEST(named_buffers_names) {
    static const char *const names[] = {"vault://k//1", "../x",     "../../a/../x",
                                        "/absolute/x",  "a\\b",     "C:\\x",
                                        "./x",          "a//b/",    ".",
                                        "..",           " x ",      "x y?z=1&k=%2f#",
                                        "*/x",          "\xc3\xa4", "~/x",
                                        "$HOME",        "a:b:c",    "\\\\server\\share"};
    ort_spec spec = spec_of(in_folder("m.onnx"));
    ort_output out = {0};
    size_t i;
    if (ort_version < 28) SKIP("named buffers came with ONNX Runtime 1.28");
    store_clear();
    CHECK_TRUE(make_one("m.onnx"));
    out.path = in_folder("o_ctx.onnx");
    out.more = set_writer;
    CHECK_ORT(ort_compile_model(&spec, &out));
    spec.path = in_folder("p.onnx");
    spec.more = set_reader;
    for (i = 0; i < sizeof names / sizeof names[0]; i++) {
        CHECK(rename_buffer(names[i]), "%s", names[i]);
        snprintf(store.name, sizeof store.name, "%s", names[i]);
        store.reads = 0;
        CHECK(make_session(&spec), "'%s': %s", names[i], ort_text);
        CHECK_INT(store.reads, 1);
        store.fail = true;
        CHECK_ORT_FAILS(make_session(&spec), ORT_RUNTIME_EXCEPTION, "the key is lost");
        store.fail = false;
        store.name[0] = '\0'; /* it does not know the name */
        CHECK_ORT_FAILS(make_session(&spec), ORT_NO_SUCHFILE, "no such buffer");
    }
    store_clear();
}

/* Sessions and compilations of an EP that tells ORT which callbacks it uses. */
enum {
    FLAGS_PLAIN,          /* no callback */
    FLAGS_READ_PLAIN,     /* a read callback, and nothing to read */
    FLAGS_WRITE,          /* compile, the binary apart */
    FLAGS_WRITE_EMBEDDED, /* compile, the binary in the model */
    FLAGS_READ,           /* load, the binary apart */
    FLAGS_READ_EMBEDDED,  /* load, the binary in the model */
    FLAGS_READ_GENERATE,  /* generate by session options, with a read callback */
    FLAGS_COUNT
};

/* In a process with bad_ep.c: one line for each into a file beside the model. */
static int with_flags(const char *name, const char *model) {
    char path[PATH_MAX], *at;
    FILE *out;
    int i;
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(model, '/') - model), model);
    snprintf(path, sizeof path, "%s/flags.txt", folder);
    out = fopen(path, "w");
    if (!out || !run_self_begin(name) || !register_library("bad", PLUGIN("bad_ep"))) return 3;
    store.fail = true;
    for (i = 0; i < FLAGS_COUNT; i++) {
        ort_spec spec = spec_of(model);
        ort_output output = {0};
        bool ok;
        if (i == FLAGS_WRITE || i == FLAGS_WRITE_EMBEDDED) {
            output.path = in_folder("w_ctx.onnx");
            output.embed = i == FLAGS_WRITE_EMBEDDED;
            output.more = set_writer;
            ok = ort_compile_model(&spec, &output);
        } else {
            if (i == FLAGS_READ) spec.path = in_folder("f_ctx.onnx");
            if (i == FLAGS_READ_EMBEDDED) spec.path = in_folder("e_ctx.onnx");
            if (i == FLAGS_READ_GENERATE) spec.config = generate;
            if (i != FLAGS_PLAIN) spec.more = set_reader;
            ok = make_session(&spec);
        }
        for (at = ort_text; (at = strchr(at, '\n'));) *at = ' ';
        fprintf(out, "%s\n", ok ? "made" : ort_text);
    }
    return fclose(out) == 0 ? 0 : 4;
}

TEST(data_support) {
#define NO_WRITE \
    "EP 'ToyExecutionProvider' does not support the registered EPContext data write callback"
#define NO_READ \
    "EP 'ToyExecutionProvider' does not support the registered EPContext data read callback"
#define UNKNOWN "returned unknown EPContext data support flags: "
#define PART    "this ONNX Runtime has 1 of the 4 functions"
    static const struct {
        const char *flags, *expected[FLAGS_COUNT];
    } rows[] = {
        {"0", {"made", "made", NO_WRITE, "made", NO_READ, "made", "made"}},
        {"1", {"made", "made", NO_WRITE, "made", "the key is lost", "made", "made"}},
        {"2", {"made", "made", "the store is full", "made", NO_READ, "made", "made"}},
        {"3", {"made", "made", "the store is full", "made", "the key is lost", "made", "made"}},
        {"7", {"made", "made", UNKNOWN, "made", UNKNOWN, "made", "made"}},
        {"4", {"made", "made", UNKNOWN, "made", UNKNOWN, "made", "made"}},
        {"fail", {"made", "made", "asleep", "made", "asleep", "made", "made"}},
        {"names", {PART, PART, PART, PART, PART, PART, PART}},
        {"none", {"made", "made", NO_WRITE, "made", NO_READ, "made", "made"}},
    };
    char *words[] = {program, "--flags", NULL, NULL};
    char model[512], what[64], line[1024];
    ort_output out = {0};
    ort_spec spec;
    size_t i, k;
    if (ort_version < 31) SKIP("ONNX Runtime asks for the callbacks that an EP uses since 1.31");
    CHECK_TRUE(make_one("m.onnx"));
    snprintf(model, sizeof model, "%s", in_folder("m.onnx"));
    words[2] = model;
    spec = spec_of(model);
    out.path = in_folder("f_ctx.onnx");
    CHECK_ORT(ort_compile_model(&spec, &out));
    out.path = in_folder("e_ctx.onnx");
    out.embed = true;
    CHECK_ORT(ort_compile_model(&spec, &out));
    for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        FILE *results;
        snprintf(what, sizeof what, "data_flags_%s", rows[i].flags);
        CHECK_INT(run_self(words, what), 0);
        results = fopen(in_folder("flags.txt"), "r");
        CHECK_TRUE(results);
        for (k = 0; k < FLAGS_COUNT; k++) {
            if (!fgets(line, sizeof line, results)) line[0] = '\0';
            if (!strstr(line, rows[i].expected[k]))
                test_fail(__FILE__, __LINE__, "flags %s, session %d: expected '%s', found '%s'",
                          rows[i].flags, (int)k, rows[i].expected[k], line);
        }
        fclose(results);
        /* Only what was made is there: never a plain file in the place of a callback's. */
        CHECK_TRUE(!exists(binary_name("w")));
        remove(in_folder("m_ctx.onnx"));
        remove(in_folder(binary_name("m")));
        remove(in_folder("w_ctx.onnx"));
    }
}

/* ----------------------------------------------------------------- profile */

/* How often `text` is in the file. */
static size_t occurrences(const char *path, const char *text) {
    FILE *file = fopen(path, "rb");
    char *all = (char *)malloc(1 << 22);
    size_t size = file && all ? fread(all, 1, (1 << 22) - 1, file) : 0, count = 0;
    const char *at;
    if (file) fclose(file);
    if (!all) return 0;
    all[size] = '\0';
    for (at = strstr(all, text); at; at = strstr(at + 1, text)) count++;
    free(all);
    return count;
}

/* ORT's profile has an event of the device for each run of each graph. */
TEST(profile_of_a_session) {
    ort_spec spec = spec_of(in_folder("m.onnx"));
    OrtSession *session = NULL;
    OrtAllocator *allocator = NULL;
    char *path = NULL, kept[512];
    if (ort_version < 25) SKIP("EPs take part in profiles since ONNX Runtime 1.25");
    CHECK_TRUE(make_three("m.onnx"));
    spec.allow_cpu = true;
    spec.profile = in_folder("profile");
    CHECK_ORT(ort_session(&spec, &session));
    CHECK_ORT(run_once(session, NULL));
    CHECK_ORT(run_once(session, NULL));
    CHECK_ORT(ort_ok(ort->GetAllocatorWithDefaultOptions(&allocator)));
    CHECK_ORT(ort_ok(ort->SessionEndProfiling(session, allocator, &path)));
    snprintf(kept, sizeof kept, "%s", path);
    allocator->Free(allocator, path);
    /* Nobody listens any more. */
    CHECK_ORT(run_once(session, NULL));
    ort->ReleaseSession(session);
    CHECK_INT(occurrences(kept, "\"ort_event\""), 6);
    CHECK(occurrences(kept, "\"cat\" : \"Kernel\"") == 6, "%s has no kernel events", kept);
}

/* The path of the one file in the folder that begins with "run". */
static char profile_found[PATH_MAX];

static int find_profile(const char *path, const struct stat *st, int kind, struct FTW *ftw) {
    const char *name = strrchr(path, '/');
    (void)st, (void)kind, (void)ftw;
    if (!name || strncmp(name, "/run", 4) != 0) return 0;
    snprintf(profile_found, sizeof profile_found, "%s", path);
    return 1;
}

static bool run_profile(void) {
    return nftw(folder, find_profile, 8, FTW_PHYS) == 1;
}

/* A profile of one run has the events of that run alone. */
TEST(profile_of_a_run) {
    ort_spec spec = spec_of(in_folder("m.onnx"));
    OrtSession *session = NULL;
    OrtRunOptions *options;
    if (ort_version < 25) SKIP("EPs take part in profiles since ONNX Runtime 1.25");
    CHECK_TRUE(make_three("m.onnx"));
    spec.allow_cpu = true;
    CHECK_ORT(ort_session(&spec, &session));
    CHECK_ORT(run_once(session, NULL));
    options = run_options(NULL, NULL, NULL);
    CHECK_ORT(ort_ok(ort->RunOptionsEnableProfiling(options, ort_path(in_folder("run")))));
    CHECK_ORT(run_and_release(session, options));
    CHECK_ORT(run_once(session, NULL));
    ort->ReleaseSession(session);
    CHECK(run_profile(), "ORT wrote no profile of the run");
    CHECK_INT(occurrences(profile_found, "\"ort_event\""), 3);
}

/* Also when another run passes while this one is in the device. */
TEST(profiles_apart) {
    ort_spec spec = spec_of(in_folder("m.onnx"));
    OrtSession *session = NULL;
    pthread_t thread;
    runner profiled = {0};
    bool held, passed;
    if (ort_version < 25) SKIP("EPs take part in profiles since ONNX Runtime 1.25");
    CHECK_TRUE(make_three("m.onnx"));
    spec.allow_cpu = true;
    CHECK_ORT(ort_session(&spec, &session));
    profiled.session = session;
    profiled.options = run_options(NULL, NULL, NULL);
    CHECK_ORT(ort_ok(ort->RunOptionsEnableProfiling(profiled.options, ort_path(in_folder("run")))));
    CHECK_ORT(set_dynamic(session, "ep.dynamic.toy_hold", "first"));
    if (pthread_create(&thread, NULL, run_in_thread, &profiled) != 0) exit(1);
    held = set_dynamic(session, "ep.dynamic.toy_hold", "held");
    passed = run_once(session, NULL);
    set_dynamic(session, "ep.dynamic.toy_hold", "0");
    pthread_join(thread, NULL);
    ort->ReleaseRunOptions(profiled.options);
    ort->ReleaseSession(session);
    CHECK(held && passed, "no run passed another");
    CHECK(profiled.code == 0, "%s", profiled.text);
    CHECK(run_profile(), "ORT wrote no profile of the run");
    CHECK_INT(occurrences(profile_found, "\"ort_event\""), 3);
}

/* ------------------------------------------------------------- out of memory */

/* Everything that the rows allocate: device memory, streams, a profile, options, runs. */
static bool whole_life(void) {
    static const char *const options[] = {"device_memory_limit", "1000000", NULL};
    ort_spec spec = spec_of(in_folder("m.onnx"));
    OrtSession *session = NULL;
    const OrtEpDevice *device;
    OrtSyncStream *stream = NULL;
    bool ok = register_library("oom.virtual", PLUGIN("toy_oom_ep"));
    if (!ok) return false;
    device = ort_device(ep->ep, OrtHardwareDeviceType_NPU);
    if (device && ort_version >= 27) {
        ok = ort_ok(ort->CreateSyncStreamForEpDevice(device, NULL, &stream));
        if (stream) ort->ReleaseSyncStream(stream);
    }
    spec.npu = device != NULL;
    spec.options = options;
    spec.allow_cpu = true;
    spec.profile = ort_version < 25 ? NULL : in_folder("profile");
    ok = ort_session(&spec, &session) && ok &&
         set_dynamic(session, "ep.dynamic.workload_type", "Efficient") && run_once(session, NULL) &&
         run_and_release(session, run_options(ep_key("max_concurrent_runs"), "4", "oom")) && device;
    if (session) ort->ReleaseSession(session);
    ort_ok(ort->UnregisterExecutionProviderLibrary(ort_env, "oom.virtual"));
    return ok;
}

/* Every allocation of the plugin fails once: an error or the CPU, no crash, no leak (under the
 * sanitizer). */
TEST(out_of_memory) {
    oom_library oom;
    bool more = true, ok = false;
    long n;
    CHECK_TRUE(make_one("m.onnx"));
    CHECK_ORT(oom_open(&oom));
    for (n = 1; more && n < 10000; n++) {
        clear_folder();
        make_one("m.onnx");
        oom.arm(n);
        ok = whole_life();
        more = oom.fired();
    }
    CHECK_ORT(oom_close(&oom));
    CHECK(!more && ok, "expected the undisturbed round to work: %s", ort_text);
    CHECK(n > 20, "only %ld allocations", n);
    printf("note %ld allocations failed in turn\n", n - 2);
}

/* ------------------------------------------------------------ nodes of the EP's own */

/* y = (x + w) * w, with 4 MB of weights. */
static bool make_heavy(const char *name) {
    static const int64_t dims[2] = {1000, 1000};
    const size_t count = 1000000;
    float *w = (float *)malloc(count * sizeof *w);
    onnx_model m;
    bool made;
    if (!w) return false;
    for (size_t i = 0; i < count; i++) w[i] = (float)(i % 97);
    onnx_begin(&m);
    onnx_input(&m.graph, "x", 2, dims);
    onnx_floats(&m.graph, "w", 2, dims, w);
    onnx_node(&m.graph, "Add", "", "first", "x,w", "a", NULL);
    onnx_node(&m.graph, "Mul", "", "second", "a,w", "y", NULL);
    onnx_output(&m.graph, "y", 2, dims);
    made = save_model(name, &m);
    free(w);
    return made;
}

/* The attributes of a node that are not of the schema, in the order of the toy, as text. */
static const char *own_attributes(const epctx_node *node) {
    static const char *const names[] = {"lanes", "clock", "unit", "tiles", "rates", "stages"};
    static char text[400];
    char *at = text;
    *at = '\0';
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const epctx_attr *attr = epctx_node_attr(node, names[i]);
        if (!attr) continue;
        at += sprintf(at, "%s %s %d %g %.*s", names[i], epctx_attr_type_name((int32_t)attr->type),
                      (int)attr->i, (double)attr->f, (int)attr->s.size, attr->s.data);
        for (size_t k = 0; k < attr->count; k++) {
            if (attr->ints) at += sprintf(at, ",%d", (int)attr->ints[k]);
            if (attr->floats) at += sprintf(at, ",%g", (double)attr->floats[k]);
            if (attr->strings)
                at += sprintf(at, ",%.*s", (int)attr->strings[k].size, attr->strings[k].data);
        }
        at += sprintf(at, "; ");
    }
    return text;
}

/* Compiles m.onnx by ORT; `found`: own attributes and inputs of the EPContext node. */
static bool generate_node(const char *const *options, size_t *bytes, size_t *inputs,
                          const char **found) {
    static const char *const generates[] = {"ep.context_enable", "1", NULL};
    ort_spec spec = spec_of(in_folder("m.onnx"));
    epctx_model model;
    epctx_graph graph;
    epctx_error error;
    bool ok = false;
    spec.config = generates;
    spec.options = options;
    if (!make_session(&spec)) return false;
    if (epctx_model_open_file(&model, in_folder("m_ctx.onnx"), NULL, &error) == EPCTX_OK &&
        epctx_model_load_graph(&model, &graph, &error) == EPCTX_OK && graph.node_count == 1) {
        *bytes = model.bytes.size;
        *inputs = graph.nodes[0].input_count;
        *found = own_attributes(&graph.nodes[0]);
        ok = true;
    }
    epctx_model_close(&model);
    return ok;
}

/* The EP's own attributes (only of the toy and the vector EP) come through ORT, and the weights
 * stay out of the context model. */
TEST(own_node) {
    static const char wanted[] = "lanes INT -4 0 ; clock FLOAT 0 1.5 ; unit STRING 0 0 sum; "
                                 "tiles INTS 0 0 ,2,3; rates FLOATS 0 0 ,0.5,2; "
                                 "stages STRINGS 0 0 ,load,,run; ";
    ort_spec spec = spec_of(in_folder("m_ctx.onnx"));
    const char *found = "";
    size_t bytes = 0, inputs = 0;
    CHECK_TRUE(make_heavy("m.onnx"));
    CHECK(generate_node(NULL, &bytes, &inputs, &found), "%s", ort_text);
    CHECK_STR(found,
              strcmp(ep->label, "toy") == 0 || strcmp(ep->label, "vector") == 0 ? wanted : "");
    CHECK_UINT(inputs, 1);
    CHECK(bytes < 4000, "the context model has %zu bytes, with 4 MB of weights left out", bytes);
    CHECK_ORT(make_session(&spec));
    CHECK_TRUE(remove(in_folder("m_ctx.onnx")) == 0);
    printf("note %s: context model of %zu bytes\n", ep->ep, bytes);
}

/* The example in C++ has an option of its own. */
TEST(own_option) {
    static const struct {
        const char *options[3], *refused;
        size_t contexts;
    } rows[] = {
        {{NULL}, NULL, 1},
        {{"most_nodes", "0", NULL}, NULL, 1},
        {{"most_nodes", "1", NULL}, NULL, 4},
        {{"most_nodes", "-1", NULL}, "option most_nodes: expected a number, found '-1'", 0},
        {{"most_node", "1", NULL}, "did you mean 'most_nodes'?", 0},
    };
    ort_spec spec = spec_of(in_folder("m.onnx"));
    ort_contexts n;
    size_t count;
    CHECK_TRUE(make_one("m.onnx"));
    spec.config = generate;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        spec.options = rows[i].options;
        if (rows[i].refused) {
            CHECK_ORT_FAILS(make_session(&spec), ORT_FAIL, rows[i].refused);
            continue;
        }
        CHECK_ORT(make_session(&spec));
        CHECK(ort_read_contexts(in_folder("m_ctx.onnx"), &n), "%s", ort_text);
        count = n.count;
        epctx_model_close(&n.model);
        CHECK_UINT(count, rows[i].contexts);
        CHECK_TRUE(remove(in_folder("m_ctx.onnx")) == 0);
    }
}

/* With weight_inputs they are inputs, and ORT writes them. */
TEST(weight_inputs) {
    static const char *const options[] = {"weight_inputs", "1", NULL};
    ort_spec spec = spec_of(in_folder("m_ctx.onnx"));
    const char *found = "";
    size_t bytes = 0, inputs = 0;
    CHECK_TRUE(make_heavy("m.onnx"));
    CHECK(generate_node(strcmp(ep->label, "toy") == 0 ? options : NULL, &bytes, &inputs, &found),
          "%s", ort_text);
    CHECK_UINT(inputs, 2);
    CHECK(bytes > 4000000, "the context model has %zu bytes, and 4 MB of weights", bytes);
    CHECK_ORT(make_session(&spec));
}

/* What node_fn does wrong fails the session, with the node and what was expected. */
TEST(wrong_nodes) {
    static const struct {
        const char *wish, *what, *expected;
        OrtErrorCode code;
    } rows[] = {
        {"twice", "attribute 'lanes': own attributes 0 and 6 have this name",
         "each is expected once", ORT_EP_FAIL},
        {"reserved", "attribute 'source': own attribute 0 has this name of the schema",
         "or take a name of the EP's own", ORT_EP_FAIL},
        {"input", "input 0, 'nowhere'", "one of the 1 inputs and 0 weight inputs", ORT_EP_FAIL},
        {"tensor", "': attribute 'table' is a TENSOR",
         "expected INT, FLOAT, STRING or a list of them", ORT_NOT_IMPLEMENTED},
    };
    const char *found = "";
    size_t bytes = 0, inputs = 0;
    CHECK_TRUE(make_one("m.onnx"));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *const options[] = {"node", rows[i].wish, NULL};
        CHECK_ORT_FAILS(generate_node(options, &bytes, &inputs, &found), rows[i].code,
                        rows[i].what);
        CHECK_HAS(ort_text, rows[i].expected);
        CHECK_INT(count_files(), 1);
    }
}

/* EPCTX_TEST_NODE is `wish`: nothing is written. `attribute` may be NULL. */
static void refused_node(const ort_spec *spec, const char *wish, const char *attribute,
                         const char *what) {
    char text[200];
    bool made;
    CHECK_TRUE(setenv("EPCTX_TEST_NODE", wish, 1) == 0);
    made = make_session(spec);
    unsetenv("EPCTX_TEST_NODE");
    CHECK(!made, "%s", wish);
    CHECK_INT(ort_code, ORT_EP_FAIL);
    snprintf(text, sizeof text, attribute ? "': attribute '%s': %s" : "%s%s",
             attribute ? attribute : "", what);
    CHECK_HAS(ort_text, text);
    CHECK_HAS(ort_text, "node '");
    CHECK(count_files() == 1, "%s: %d files", wish, (int)count_files());
}

/* Nodes that could never be loaded are not written, nor is their binary:
 * epctx_ort_context_node_create, from C and by epctx::MakeNode. tests/ort/unloadable.c spoils
 * them. */
TEST(unloadable_nodes) {
    static const struct {
        const char *wish, *attribute, *what;
        bool filled; /* in the other mode the EP puts its own in */
    } rows[] = {
        {"zeroed", "source", "is empty, the name of the EP is expected", false},
        {"source", "source", "is empty, the name of the EP is expected", false},
        {"main_context", "main_context", "is 7, must be 0 or 1", false},
        {"embed_mode", "embed_mode", "is 2, must be 0 or 1", true},
        {"secondary", "main_context", "is 0, expected 1: ep_cache_context has", true},
        {"payload", "ep_cache_context", "is empty: main_context 1 and embed_mode", true},
        {"path", "ep_cache_context", "path '/tmp/evil.bin' is absolute", true},
        {"own_twice", "lanes", "own attributes 0 and 1 have this name", false},
        {"own_of_schema", "source", "own attribute 0 has this name of the schema", false},
        {"own_nameless", NULL, "own attribute 0 has no name", false},
        {"own_weights", EPCTX_WEIGHTS_ATTR, "has type 1 (FLOAT), STRING is expected", false},
        {"own_no_list", NULL, "there are 3 own attributes, and no list", false},
        {"inputs_no_list", NULL, "': there are 3 inputs, and no list", false},
        {"outputs_no_list", NULL, "': there are 3 outputs, and no list", false},
        {"inputs_no_data", NULL, "': inputs: name 0 has 5 bytes, and data is NULL", false},
        {"outputs_no_data", NULL, "': outputs: name 0 has 5 bytes, and data is NULL", false},
    };
    static const char *const embeds[] = {"ep.context_enable", "1", "ep.context_embed_mode", "1",
                                         NULL};
    const bool by_file = strcmp(ep->label, "toy") == 0; /* the mode that fills nothing in */
    ort_spec spec = spec_of(in_folder("m.onnx"));
    CHECK_TRUE(make_one("m.onnx"));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        spec.config = by_file ? generate : embeds;
        refused_node(&spec, rows[i].wish, rows[i].attribute, rows[i].what);
        spec.config = by_file ? embeds : generate;
        if (!rows[i].filled) refused_node(&spec, rows[i].wish, rows[i].attribute, rows[i].what);
    }
    CHECK_ORT(make_session(&spec));
}

/* ORT finds the node by the name of the fused one, which stays. Two partitions of one name: the
 * EP's mistake. */
TEST(named_nodes) {
    static const char *const options[] = {"node", "name", NULL};
    static const char *const generates[] = {"ep.context_enable", "1", NULL};
    ort_spec spec = spec_of(in_folder("m.onnx"));
    const char *found = "";
    size_t bytes = 0, inputs = 0;
    CHECK_TRUE(make_one("m.onnx"));
    CHECK(generate_node(options, &bytes, &inputs, &found), "%s", ort_text);
    clear_folder();
    CHECK_TRUE(make_three("m.onnx"));
    spec.config = generates;
    spec.options = options;
    spec.allow_cpu = true;
    CHECK_ORT_FAILS(make_session(&spec), ORT_EP_FAIL, "the name 'every_node', which partition");
}

static const ort_case cases[] = {
    ORT_CASE(own_node),
    ORT_CASE_OF("vector", own_option), /* the example in C++ */
    ORT_CASE_OF("toy", weight_inputs),
    ORT_CASE_OF("weights", weight_inputs), /* the example in C++ with another device */
    ORT_CASE_OF("toy", wrong_nodes),
    ORT_CASE_OF("toy", unloadable_nodes),
    ORT_CASE_OF("weights", unloadable_nodes), /* the example in C++ */
    ORT_CASE_OF("toy", named_nodes),
    ORT_CASE(contradictory_options),
    ORT_CASE(run_options),
    ORT_CASE_OF("toy", run_refused),
    ORT_CASE_OF("toy", run_cancelled),
    ORT_CASE_OF("npu", run_cancelled_inside),
    ORT_CASE(dynamic_options),
    ORT_CASE_OF("toy", dynamic_options_of_the_device),
    ORT_CASE_OF("toy", workload_type),
    ORT_CASE_OF("toy", data_layout),
    ORT_CASE(memory_of_the_factory),
    ORT_CASE(memory_of_a_session),
    ORT_CASE(memory_limit),
    ORT_CASE(memory_beside_the_cpu),
    ORT_CASE(stream_outside_a_session),
    ORT_CASE(stream_of_a_session),
    ORT_CASE(hardware_details),
    ORT_CASE(factory_by_hand),
    ORT_CASE_OF("toy", vendor_id_is_not_asked),
    ORT_CASE(named_buffers),
    ORT_CASE(named_buffers_fail),
    ORT_CASE(named_buffers_names),
    ORT_CASE_OF("toy", what_comes_with_the_bytes),
    ORT_CASE_OF("vector", what_comes_with_the_bytes), /* the example in C++ */
    ORT_CASE_OF("toy", own_attribute_of_another_type),
    ORT_CASE_OF("vector", own_attribute_of_another_type), /* the example in C++ */
    ORT_CASE_OF("toy", data_support),
    ORT_CASE(profile_of_a_session),
    ORT_CASE(profile_of_a_run),
    ORT_CASE_OF("toy", profiles_apart),
    ORT_CASE_OF("toy", out_of_memory),
};

int main(int argc, char **given) {
    char **argv = ort_words(argc, given);
    if (argc == 3 && strcmp(argv[1], "--trap") == 0) return with_trap(argv[0], argv[2]);
    if (argc == 3 && strcmp(argv[1], "--flags") == 0) return with_flags(argv[0], argv[2]);
    if (!ort_test_begin(argv[0])) return ort_test_end();
    ort_test_cases(argc, argv, cases, sizeof cases / sizeof cases[0]);
    return ort_test_end();
}
