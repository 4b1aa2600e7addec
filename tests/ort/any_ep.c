/* any_ep.c - an EP that takes every EPContext node, whoever made it, and looks at nothing in it.
 * With it ONNX Runtime refuses an EPContext model for what is wrong with the file, and not because
 * the node's EP is not there (tests/ort/verdicts.c). Running such a session is refused. */
#include <onnxruntime_c_api.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define NAME   "AnyEP"

EXPORT OrtStatus *CreateEpFactories(const char *name, const OrtApiBase *base,
                                    const OrtLogger *logger, OrtEpFactory **factories, size_t max,
                                    size_t *count);
EXPORT OrtStatus *ReleaseEpFactory(OrtEpFactory *factory);

static const OrtApi *api; /* ORT hands it over once, before anything else */

static OrtStatus *no_run(OrtNodeComputeInfo *self, void *state, OrtKernelContext *context) {
    (void)self, (void)state, (void)context;
    return api->CreateStatus(ORT_NOT_IMPLEMENTED, "this EP only loads");
}

static OrtStatus *create_state(OrtNodeComputeInfo *self, OrtNodeComputeContext *context,
                               void **state) {
    (void)self, (void)context;
    *state = NULL;
    return NULL;
}

static void release_state(OrtNodeComputeInfo *self, void *state) {
    (void)self, (void)state;
}

static const char *ep_name(const OrtEp *self) {
    (void)self;
    return NAME;
}

static OrtStatus *capability(OrtEp *self, const OrtGraph *graph, OrtEpGraphSupportInfo *info) {
    const OrtNode **nodes = NULL;
    const char *type = NULL;
    size_t count = 0, i;
    OrtStatus *status = api->Graph_GetNumNodes(graph, &count);
    (void)self;
    if (!status && count > 0) {
        nodes = (const OrtNode **)calloc(count, sizeof *nodes);
        status = nodes ? api->Graph_GetNodes(graph, nodes, count)
                       : api->CreateStatus(ORT_FAIL, "no memory");
    }
    for (i = 0; !status && i < count; i++) {
        status = api->Node_GetOperatorType(nodes[i], &type);
        if (!status && strcmp(type, "EPContext") == 0)
            status = api->GetEpApi()->EpGraphSupportInfo_AddNodesToFuse(info, &nodes[i], 1, NULL);
    }
    free(nodes);
    return status;
}

static OrtStatus *compile(OrtEp *self, const OrtGraph **graphs, const OrtNode **fused, size_t count,
                          OrtNodeComputeInfo **infos, OrtNode **contexts) {
    size_t i;
    (void)self, (void)graphs, (void)fused, (void)contexts;
    for (i = 0; i < count; i++) {
        infos[i] = (OrtNodeComputeInfo *)calloc(1, sizeof **infos);
        if (!infos[i]) return api->CreateStatus(ORT_FAIL, "no memory");
        infos[i]->ort_version_supported = ORT_API_VERSION;
        infos[i]->CreateState = create_state;
        infos[i]->Compute = no_run;
        infos[i]->ReleaseState = release_state;
    }
    return NULL;
}

static void release_infos(OrtEp *self, OrtNodeComputeInfo **infos, size_t count) {
    size_t i;
    (void)self;
    for (i = 0; i < count; i++) free(infos[i]);
}

static const char *factory_name(const OrtEpFactory *self) {
    (void)self;
    return NAME;
}

static const char *factory_version(const OrtEpFactory *self) {
    (void)self;
    return "1.0.0";
}

static uint32_t vendor_id(const OrtEpFactory *self) {
    (void)self;
    return 0xffff;
}

static OrtStatus *devices(OrtEpFactory *self, const OrtHardwareDevice *const *hardware,
                          size_t count, OrtEpDevice **out, size_t max, size_t *found) {
    size_t i;
    *found = 0;
    for (i = 0; i < count && *found < max; i++) {
        OrtStatus *status;
        if (api->HardwareDevice_Type(hardware[i]) != OrtHardwareDeviceType_CPU) continue;
        status = api->GetEpApi()->CreateEpDevice(self, hardware[i], NULL, NULL, &out[*found]);
        if (status) return status;
        ++*found;
    }
    return NULL;
}

static OrtStatus *create_ep(OrtEpFactory *self, const OrtHardwareDevice *const *hardware,
                            const OrtKeyValuePairs *const *metadata, size_t count,
                            const OrtSessionOptions *options, const OrtLogger *logger,
                            OrtEp **out) {
    OrtEp *ep = (OrtEp *)calloc(1, sizeof *ep);
    (void)self, (void)hardware, (void)metadata, (void)count, (void)options, (void)logger;
    if (!ep) return api->CreateStatus(ORT_FAIL, "no memory");
    ep->ort_version_supported = ORT_API_VERSION;
    ep->GetName = ep_name;
    ep->GetCapability = capability;
    ep->Compile = compile;
    ep->ReleaseNodeComputeInfos = release_infos;
    *out = ep;
    return NULL;
}

static void release_ep(OrtEpFactory *self, OrtEp *ep) {
    (void)self;
    free(ep);
}

static OrtStatus *no_transfer(OrtEpFactory *self, OrtDataTransferImpl **out) {
    (void)self;
    *out = NULL;
    return NULL;
}

OrtStatus *CreateEpFactories(const char *name, const OrtApiBase *base, const OrtLogger *logger,
                             OrtEpFactory **factories, size_t max, size_t *count) {
    OrtEpFactory *factory = (OrtEpFactory *)calloc(1, sizeof *factory);
    (void)name, (void)logger;
    api = base->GetApi(ORT_API_VERSION);
    if (!factory || max < 1) {
        free(factory);
        return api->CreateStatus(ORT_FAIL, "no room for a factory");
    }
    factory->ort_version_supported = ORT_API_VERSION;
    factory->GetName = factory_name;
    factory->GetVendor = factory_name;
    factory->GetVendorId = vendor_id;
    factory->GetVersion = factory_version;
    factory->GetSupportedDevices = devices;
    factory->CreateEp = create_ep;
    factory->ReleaseEp = release_ep;
    factory->CreateDataTransfer = no_transfer;
    factories[0] = factory;
    *count = 1;
    return NULL;
}

OrtStatus *ReleaseEpFactory(OrtEpFactory *factory) {
    free(factory);
    return NULL;
}
