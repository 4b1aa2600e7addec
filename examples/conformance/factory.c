/* factory.c - what CreateEpFactories gives, looked at as ONNX Runtime (ORT) does, before ORT does:
 * a member that is not set, but that it calls unchecked, ends its process.
 *
 * CreateEpFactories wants a logger of ORT, which applications do not get; kernels of custom
 * operators do. So there is a model with one such operator. */
#define _GNU_SOURCE
#include "conformance.h"

#include <dlfcn.h>

enum { MAX_FACTORIES = 4 }; /* as many as ORT has room for */

typedef OrtStatus *(*create_fn)(const char *, const OrtApiBase *, const OrtLogger *,
                                OrtEpFactory **, size_t, size_t *);
typedef OrtStatus *(*release_fn)(OrtEpFactory *);

/* ------------------------------------------------------------------- logger */

static const OrtLogger *logger;

static void *ORT_API_CALL make_kernel(const OrtCustomOp *op, const OrtApi *api,
                                      const OrtKernelInfo *info) {
    (void)op, (void)api;
    ort_ok(ort->KernelInfo_GetLogger(info, &logger));
    return &logger;
}

static const char *ORT_API_CALL op_name(const OrtCustomOp *op) {
    (void)op;
    return "Logger";
}

static const char *ORT_API_CALL op_provider(const OrtCustomOp *op) {
    (void)op;
    return NULL; /* the CPU */
}

static ONNXTensorElementDataType ORT_API_CALL op_type(const OrtCustomOp *op, size_t index) {
    (void)op, (void)index;
    return ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
}

static size_t ORT_API_CALL op_count(const OrtCustomOp *op) {
    (void)op;
    return 1;
}

static OrtCustomOpInputOutputCharacteristic ORT_API_CALL op_required(const OrtCustomOp *op,
                                                                     size_t index) {
    (void)op, (void)index;
    return INPUT_OUTPUT_REQUIRED;
}

static void ORT_API_CALL op_compute(void *kernel, OrtKernelContext *context) {
    (void)kernel, (void)context;
}

static void ORT_API_CALL op_destroy(void *kernel) {
    (void)kernel;
}

static OrtCustomOpDomain *domain;

static void add_domain(OrtSessionOptions *options) {
    ort_ok(ort->AddCustomOpDomain(options, domain));
}

/* `session` keeps the logger. */
static bool get_logger(OrtSession **session) {
    static OrtCustomOp op;
    const char *model = in_folder("src/logger.onnx");
    ort_spec spec;
    op.version = 12; /* members that came later are not looked at */
    op.CreateKernel = make_kernel;
    op.GetName = op_name;
    op.GetExecutionProviderType = op_provider;
    op.GetInputType = op_type;
    op.GetInputTypeCount = op_count;
    op.GetOutputType = op_type;
    op.GetOutputTypeCount = op_count;
    op.KernelCompute = op_compute;
    op.KernelDestroy = op_destroy;
    op.GetInputCharacteristic = op_required;
    op.GetOutputCharacteristic = op_required;
    memset(&spec, 0, sizeof spec);
    spec.path = model;
    spec.more = add_domain;
    return make_custom("conformance", "Logger", model) &&
           ort_ok(ort->CreateCustomOpDomain("conformance", &domain)) &&
           ort_ok(ort->CustomOpDomain_Add(domain, &op)) && ort_session(&spec, session) &&
           logger != NULL;
}

/* ---------------------------------------------------------------- factories */

static void judge_texts(const OrtEpFactory *f) {
    judging("PLG-027", "OrtEpFactory::GetName");
    judge("PLG-027", f->GetName && f->GetName(f) && *f->GetName(f),
          "GetName of the factory is not set, or gives nothing");
    judging("PLG-028", "OrtEpFactory::GetVendor");
    judge("PLG-028", f->GetVendor && f->GetVendor(f),
          "GetVendor of the factory is not set, or gives NULL");
    judging("PLG-029", "OrtEpFactory::GetVendorId");
    if (judge("PLG-029", f->GetVendorId != NULL, "GetVendorId of the factory is not set"))
        judge("PLG-029", f->GetVendorId(f) == f->GetVendorId(f), "GetVendorId changes");
    judging("PLG-030", "OrtEpFactory::GetVersion");
    judge("PLG-030", f->GetVersion && f->GetVersion(f),
          "GetVersion of the factory is not set, or gives NULL");
}

/* With the hardware that ORT knows. */
static void judge_devices(OrtEpFactory *f) {
    const OrtEpDevice *const *known = NULL;
    const OrtHardwareDevice *hardware[16];
    OrtEpDevice *devices[8] = {NULL};
    size_t count = 0, given = 0, i;
    bool ok;
    judging("PLG-031", "OrtEpFactory::GetSupportedDevices");
    if (!judge("PLG-031", f->GetSupportedDevices != NULL,
               "GetSupportedDevices of the factory is not set") ||
        !ort_ok(ort->GetEpDevices(ort_env, &known, &count)))
        return;
    if (count > 16) count = 16;
    for (i = 0; i < count; i++) hardware[i] = ort->EpDevice_Device(known[i]);
    now->step = step_register;
    ok = ort_ok(f->GetSupportedDevices(f, hardware, count, devices, 8, &given)) && given <= 8;
    now->step = NULL;
    judge("PLG-031 PLG-046", ok,
          "GetSupportedDevices: expected success and at most 8 devices, found %s", ort_answer);
    judging("PLG-031", "OrtEpFactory::GetSupportedDevices without hardware");
    for (i = 0; i < given && i < 8; i++) ort->GetEpApi()->ReleaseEpDevice(devices[i]);
    judge("PLG-031", ort_ok(f->GetSupportedDevices(f, hardware, 0, devices, 8, &given)),
          "GetSupportedDevices without hardware: expected success, found %s", ort_answer);
    for (i = 0; i < given && i < 8; i++) ort->GetEpApi()->ReleaseEpDevice(devices[i]);
}

/* ORT calls these unchecked. */
static void judge_functions(OrtEpFactory *f) {
    OrtDataTransferImpl *transfer = NULL;
    bool ok;
    judge("PLG-032 PLG-033", f->CreateEp && f->ReleaseEp,
          "CreateEp or ReleaseEp of the factory is not set");
    judging("PLG-038", "OrtEpFactory::CreateDataTransfer");
    if (judge("PLG-038", f->CreateDataTransfer != NULL,
              "CreateDataTransfer is not set: ONNX Runtime calls it unchecked; set it, and let it "
              "give NULL")) {
        now->step = step_register;
        ok = ort_ok(f->CreateDataTransfer(f, &transfer));
        now->step = NULL;
        judge("PLG-038", ok,
              "CreateDataTransfer: expected success and NULL where nothing is to be copied, found "
              "%s; the registration then fails when devices are listed already",
              ort_answer);
        if (transfer && transfer->Release) transfer->Release(transfer);
    }
    judging("PLG-039", "OrtEpFactory::IsStreamAware");
    if (!f->IsStreamAware) {
        remark("PLG-039",
               "IsStreamAware is not set: ONNX Runtime's CreateSyncStreamForEpDevice calls "
               "it unchecked");
    } else {
        judge("PLG-039", f->IsStreamAware(f) == f->IsStreamAware(f), "IsStreamAware changes");
    }
    judge("PLG-037", !f->CreateAllocator || f->ReleaseAllocator,
          "CreateAllocator is set, and ReleaseAllocator is not");
}

static void factories(void) {
    OrtEpFactory *list[MAX_FACTORIES] = {NULL};
    OrtSession *session = NULL;
    create_fn create = NULL;
    release_fn release = NULL;
    size_t count = 0, i;
    void *library;
    bool ok;
    if (!ort_open(false) || !get_logger(&session)) {
        give_up("no logger of ONNX Runtime: %s", ort_text);
        return;
    }
    judging("PLG-002", "CreateEpFactories");
    library = load_ep();
    if (!library || !ort_symbol(library, "CreateEpFactories", &create, sizeof create) ||
        !ort_symbol(library, "ReleaseEpFactory", &release, sizeof release)) {
        give_up("the library has not both functions");
        return;
    }
    now->step = step_register;
    ok = ort_ok(create("by hand", ort_base, logger, list, MAX_FACTORIES, &count));
    now->step = NULL;
    if (!judge("PLG-002", ok, "CreateEpFactories: expected success, found %s", ort_answer) ||
        !judge("PLG-002 PLG-046", count >= 1 && count <= MAX_FACTORIES,
               "CreateEpFactories gives %zu factories, expected 1 to %d; where there is no device, "
               "say so by a factory without devices",
               count, MAX_FACTORIES))
        return;
    for (i = 0; i < count; i++) {
        if (!judge("PLG-002", list[i] != NULL, "factory %zu is NULL", i)) continue;
        judge("PLG-026",
              list[i]->ort_version_supported > 0 && list[i]->ort_version_supported < 1000,
              "ort_version_supported of the factory is %u, expected ORT_API_VERSION of the headers",
              list[i]->ort_version_supported);
        judge_texts(list[i]);
        judge_functions(list[i]);
        judge_devices(list[i]);
        judging("PLG-003", "ReleaseEpFactory");
        judge("PLG-003", ort_ok(release(list[i])), "ReleaseEpFactory: expected success, found %s",
              ort_answer);
    }
}

const experiment factory_experiments[] = {
    {"factories", factories, 0,
     "PLG-002 PLG-003 PLG-026 PLG-027 PLG-028 PLG-029 PLG-030 PLG-031 PLG-032 PLG-033 PLG-037 "
     "PLG-038 PLG-039 PLG-046"},
    {NULL, NULL, 0, NULL},
};
