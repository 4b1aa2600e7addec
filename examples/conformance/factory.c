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

/* The operator, and what its kernel is told. */
typedef struct logger_op {
    OrtCustomOp op; /* first */
    OrtCustomOpDomain *domain;
    const OrtLogger **logger;
} logger_op;

static void *ORT_API_CALL make_kernel(const OrtCustomOp *op, const OrtApi *api,
                                      const OrtKernelInfo *info) {
    const OrtLogger **logger = ((const logger_op *)(const void *)op)->logger;
    (void)api;
    ort_ok(ort->KernelInfo_GetLogger(info, logger));
    return logger;
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

static void add_domain(OrtSessionOptions *options, void *domain) {
    ort_ok(ort->AddCustomOpDomain(options, (OrtCustomOpDomain *)domain));
}

/* `session` keeps the logger, and needs `own`. */
static bool get_logger(trial *t, logger_op *own, OrtSession **session) {
    OrtCustomOp *op = &own->op;
    const char *model = in_folder(t, "src/logger.onnx");
    ort_spec spec;
    op->version = 12; /* members that came later are not looked at */
    op->CreateKernel = make_kernel;
    op->GetName = op_name;
    op->GetExecutionProviderType = op_provider;
    op->GetInputType = op_type;
    op->GetInputTypeCount = op_count;
    op->GetOutputType = op_type;
    op->GetOutputTypeCount = op_count;
    op->KernelCompute = op_compute;
    op->KernelDestroy = op_destroy;
    op->GetInputCharacteristic = op_required;
    op->GetOutputCharacteristic = op_required;
    if (!make_custom(t, "conformance", "Logger", model) ||
        !ort_ok(ort->CreateCustomOpDomain("conformance", &own->domain)) ||
        !ort_ok(ort->CustomOpDomain_Add(own->domain, op)))
        return false;
    memset(&spec, 0, sizeof spec);
    spec.path = model;
    spec.more = add_domain;
    spec.user = own->domain;
    return ort_session(&spec, session) && *own->logger != NULL;
}

/* ---------------------------------------------------------------- factories */

static void judge_texts(trial *t, const OrtEpFactory *f) {
    judging(t, "PLG-027", "OrtEpFactory::GetName");
    judge(t, "PLG-027", f->GetName && f->GetName(f) && *f->GetName(f),
          "GetName of the factory is not set, or gives nothing");
    judging(t, "PLG-028", "OrtEpFactory::GetVendor");
    judge(t, "PLG-028", f->GetVendor && f->GetVendor(f),
          "GetVendor of the factory is not set, or gives NULL");
    judging(t, "PLG-029", "OrtEpFactory::GetVendorId");
    if (judge(t, "PLG-029", f->GetVendorId != NULL, "GetVendorId of the factory is not set"))
        judge(t, "PLG-029", f->GetVendorId(f) == f->GetVendorId(f), "GetVendorId changes");
    judging(t, "PLG-030", "OrtEpFactory::GetVersion");
    judge(t, "PLG-030", f->GetVersion && f->GetVersion(f),
          "GetVersion of the factory is not set, or gives NULL");
}

/* With the hardware that ORT knows. */
static void judge_devices(trial *t, OrtEpFactory *f) {
    const OrtEpDevice *const *known = NULL;
    const OrtHardwareDevice *hardware[16];
    OrtEpDevice *devices[8] = {NULL};
    size_t count = 0, given = 0, i;
    bool ok;
    judging(t, "PLG-031", "OrtEpFactory::GetSupportedDevices");
    if (!judge(t, "PLG-031", f->GetSupportedDevices != NULL,
               "GetSupportedDevices of the factory is not set") ||
        !ort_ok(ort->GetEpDevices(ort_env, &known, &count)))
        return;
    if (count > 16) count = 16;
    for (i = 0; i < count; i++) hardware[i] = ort->EpDevice_Device(known[i]);
    t->board->step = step_register;
    ok = ort_ok(f->GetSupportedDevices(f, hardware, count, devices, 8, &given)) && given <= 8;
    t->board->step = NULL;
    judge(t, "PLG-031 PLG-046", ok,
          "GetSupportedDevices: expected success and at most 8 devices, found %s", t->answer);
    judging(t, "PLG-031", "OrtEpFactory::GetSupportedDevices without hardware");
    for (i = 0; i < given && i < 8; i++) ort->GetEpApi()->ReleaseEpDevice(devices[i]);
    given = 0; /* ORT, too, counts from 0 what an EP without a device leaves as it is */
    judge(t, "PLG-031", ort_ok(f->GetSupportedDevices(f, hardware, 0, devices, 8, &given)),
          "GetSupportedDevices without hardware: expected success, found %s", t->answer);
    for (i = 0; i < given && i < 8; i++) ort->GetEpApi()->ReleaseEpDevice(devices[i]);
}

/* ORT calls these unchecked. */
static void judge_functions(trial *t, OrtEpFactory *f) {
    OrtDataTransferImpl *transfer = NULL;
    bool ok;
    judge(t, "PLG-032 PLG-033", f->CreateEp && f->ReleaseEp,
          "CreateEp or ReleaseEp of the factory is not set");
    judging(t, "PLG-038", "OrtEpFactory::CreateDataTransfer");
    if (judge(t, "PLG-038", f->CreateDataTransfer != NULL,
              "CreateDataTransfer is not set: ONNX Runtime calls it unchecked; set it, and let it "
              "give NULL")) {
        t->board->step = step_register;
        ok = ort_ok(f->CreateDataTransfer(f, &transfer));
        t->board->step = NULL;
        judge(t, "PLG-038", ok,
              "CreateDataTransfer: expected success and NULL where nothing is to be copied, found "
              "%s; the registration then fails when devices are listed already",
              t->answer);
        if (transfer && transfer->Release) transfer->Release(transfer);
    }
    judging(t, "PLG-039", "OrtEpFactory::IsStreamAware");
    if (!f->IsStreamAware) {
        remark(t, "PLG-039",
               "IsStreamAware is not set: ONNX Runtime's CreateSyncStreamForEpDevice calls "
               "it unchecked");
    } else {
        judge(t, "PLG-039", f->IsStreamAware(f) == f->IsStreamAware(f), "IsStreamAware changes");
    }
    judge(t, "PLG-037", !f->CreateAllocator || f->ReleaseAllocator,
          "CreateAllocator is set, and ReleaseAllocator is not");
}

static void factories(trial *t) {
    OrtEpFactory *list[MAX_FACTORIES] = {NULL};
    const OrtLogger *logger = NULL;
    OrtSession *session = NULL;
    logger_op own;
    create_fn create = NULL;
    release_fn release = NULL;
    size_t count = 0, i;
    void *library;
    bool ok;
    memset(&own, 0, sizeof own);
    own.logger = &logger;
    if (!ort_open(false) || !get_logger(t, &own, &session)) {
        give_up(t, "no logger of ONNX Runtime: %s", ort_text);
        return;
    }
    judging(t, "PLG-002", "CreateEpFactories");
    library = load_ep(t);
    if (!library || !ort_symbol(library, "CreateEpFactories", &create, sizeof create) ||
        !ort_symbol(library, "ReleaseEpFactory", &release, sizeof release)) {
        give_up(t, "the library has not both functions");
        return;
    }
    t->board->step = step_register;
    ok = ort_ok(create("by hand", ort_base, logger, list, MAX_FACTORIES, &count));
    t->board->step = NULL;
    if (!judge(t, "PLG-002", ok, "CreateEpFactories: expected success, found %s", t->answer) ||
        !judge(t, "PLG-002 PLG-046", count >= 1 && count <= MAX_FACTORIES,
               "CreateEpFactories gives %zu factories, expected 1 to %d; where there is no device, "
               "say so by a factory without devices",
               count, MAX_FACTORIES))
        return;
    for (i = 0; i < count; i++) {
        if (!judge(t, "PLG-002", list[i] != NULL, "factory %zu is NULL", i)) continue;
        judge(t, "PLG-026",
              list[i]->ort_version_supported > 0 && list[i]->ort_version_supported < 1000,
              "ort_version_supported of the factory is %u, expected ORT_API_VERSION of the headers",
              list[i]->ort_version_supported);
        judge_texts(t, list[i]);
        judge_functions(t, list[i]);
        judge_devices(t, list[i]);
        judging(t, "PLG-003", "ReleaseEpFactory");
        judge(t, "PLG-003", ort_ok(release(list[i])),
              "ReleaseEpFactory: expected success, found %s", t->answer);
    }
}

const experiment factory_experiments[] = {
    {"factories", factories, 0,
     "PLG-002 PLG-003 PLG-026 PLG-027 PLG-028 PLG-029 PLG-030 PLG-031 PLG-032 PLG-033 PLG-037 "
     "PLG-038 PLG-039 PLG-046"},
    {NULL, NULL, 0, NULL},
};
