/* compatibility.c - may a compiled model run here, may this EP run on that hardware: what ORT and
 * applications ask before anything is loaded. */
#include "ep.h"

#include <stdio.h>

/* Whether this backend runs what the EP named `text` wrote. */
static OrtStatus *judge(const ep_factory *factory, const epctx_backend *backend, const char *text,
                        epctx_compat *out) {
    char here[300];
    epctx_error error;
    EPCTX_ORT_TRY(epctx_ort_status(
        &factory->api, epctx_backend_compatibility(backend, here, sizeof here, &error), &error));
    *out = epctx_compat_compare(NULL, epctx_str_of(text), epctx_str_of(here), NULL);
    return NULL;
}

static const char *ORT_API_CALL get_compatibility(OrtEp *self, const OrtGraph *graph) {
    (void)graph;
    return ((ep_session *)(void *)self)->compatibility; /* ORT crashes on NULL */
}

static OrtStatus *ORT_API_CALL validate(OrtEpFactory *self, const OrtHardwareDevice *const *devices,
                                        size_t device_count, const char *text,
                                        OrtCompiledModelCompatibility *out) {
    const ep_factory *factory = (const ep_factory *)(const void *)self;
    epctx_backend backend;
    epctx_compat compat = EPCTX_COMPAT_NOT_APPLICABLE;
    epctx_error error;
    OrtStatus *status;
    (void)devices;
    (void)device_count;
    EPCTX_ORT_TRY(epctx_ort_status(
        &factory->api, ep_backend_open(factory->device, NULL, &backend, &error), &error));
    status = judge(factory, &backend, text, &compat);
    factory->device->close_fn(&backend);
    *out = (OrtCompiledModelCompatibility)compat;
    return status;
}

/* ---------------------------------------------- one of several compiled models */

/* A larger value is better; 0: unusable. */
enum { RANK_UNSUPPORTED, RANK_FOREIGN, RANK_SUBOPTIMAL, RANK_OPTIMAL };

static int rank_of(epctx_compat compat, bool strict) {
    switch (compat) {
    case EPCTX_COMPAT_OPTIMAL: return RANK_OPTIMAL;
    case EPCTX_COMPAT_PREFER_RECOMPILATION: return strict ? RANK_UNSUPPORTED : RANK_SUBOPTIMAL;
    case EPCTX_COMPAT_NOT_APPLICABLE: return RANK_FOREIGN;
    default: return RANK_UNSUPPORTED;
    }
}

/* A candidate is as good as the worst of its models. */
static OrtStatus *rank_candidate(const ep_factory *factory, const epctx_backend *backend,
                                 const OrtKeyValuePairs *candidate, bool strict, int *worst) {
    const char *text = factory->api.ort->GetKeyValue(candidate, "num_models");
    const unsigned long count = text ? strtoul(text, NULL, 10) : 1;
    unsigned long i;
    *worst = count ? RANK_OPTIMAL : RANK_UNSUPPORTED;
    for (i = 0; i<count && * worst> RANK_UNSUPPORTED; i++) {
        epctx_compat compat;
        char key[64];
        int rank;
        snprintf(key, sizeof key, "%lu.ep_compatibility_info", i);
        text = factory->api.ort->GetKeyValue(candidate, key);
        EPCTX_ORT_TRY(judge(factory, backend, text, &compat));
        rank = rank_of(compat, strict);
        if (rank < *worst) *worst = rank;
    }
    return NULL;
}

/* session.fail_on_suboptimal_compiled_model: such a candidate would not load. */
static OrtStatus *is_strict(const epctx_ort_api *api, const OrtSessionOptions *options, bool *out) {
    const char *key = "session.fail_on_suboptimal_compiled_model";
    int there = 0;
    char value[8] = "";
    size_t size = sizeof value;
    *out = false;
    if (!options) return NULL;
    EPCTX_ORT_TRY(api->ort->HasSessionConfigEntry(options, key, &there));
    if (!there) return NULL;
    EPCTX_ORT_TRY(api->ort->GetSessionConfigEntry(options, key, value, &size));
    *out = strcmp(value, "1") == 0;
    return NULL;
}

static OrtStatus *ORT_API_CALL select_best(OrtEpFactory *self, const OrtHardwareDevice *device,
                                           const OrtKeyValuePairs *const *candidates, size_t count,
                                           const OrtSessionOptions *options, size_t *selected) {
    const ep_factory *factory = (const ep_factory *)(const void *)self;
    epctx_backend backend;
    epctx_error error;
    OrtStatus *status = NULL;
    bool strict = false;
    int best = RANK_UNSUPPORTED;
    size_t i;
    (void)device; /* all of ours compute the same */
    *selected = SIZE_MAX;
    EPCTX_ORT_TRY(is_strict(&factory->api, options, &strict));
    EPCTX_ORT_TRY(epctx_ort_status(
        &factory->api, ep_backend_open(factory->device, NULL, &backend, &error), &error));
    for (i = 0; i < count && !status; i++) { /* the first wins a tie: the package's order counts */
        int rank = RANK_UNSUPPORTED;
        status = rank_candidate(factory, &backend, candidates[i], strict, &rank);
        if (status || rank <= best) continue;
        best = rank;
        *selected = i;
    }
    factory->device->close_fn(&backend);
    return status;
}

/* ---------------------------------------------------------------- hardware */

bool ep_factory_supports(const ep_factory *factory, const OrtHardwareDevice *device) {
    return device == factory->virtual_npu ||
           factory->api.ort->HardwareDevice_Type(device) == OrtHardwareDeviceType_CPU;
}

static OrtStatus *ORT_API_CALL hardware_details(OrtEpFactory *self, const OrtHardwareDevice *device,
                                                OrtDeviceEpIncompatibilityDetails *details) {
    static const char *const kinds[] = {"CPU", "GPU", "NPU"};
    const ep_factory *factory = (const ep_factory *)(const void *)self;
    const OrtHardwareDeviceType type = factory->api.ort->HardwareDevice_Type(device);
    char text[300];
    if (ep_factory_supports(factory, device)) return NULL;
    snprintf(text, sizeof text, "%s runs on the CPU device%s; this is another %s, of '%s'",
             factory->device->ep_name, factory->virtual_npu ? " and on its virtual NPU" : "",
             (unsigned)type < 3 ? kinds[type] : "device",
             factory->api.ort->HardwareDevice_Vendor(device));
    return factory->api.ep->DeviceEpIncompatibilityDetails_SetDetails(
        details, OrtDeviceEpIncompatibility_DEVICE_INCOMPATIBLE, 0, text);
}

void ep_compatibility_register(ep_factory *factory) {
    factory->ort.ValidateCompiledModelCompatibilityInfo = validate;
    factory->ort.GetHardwareDeviceIncompatibilityDetails = hardware_details;
    if (factory->api.version >= 28) factory->ort.SelectBestModelCandidate = select_best;
}

void ep_compatibility_register_session(ep_session *session) {
    session->ort.older.GetCompiledModelCompatibilityInfo = get_compatibility;
}
