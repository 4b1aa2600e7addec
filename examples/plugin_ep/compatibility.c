/* compatibility.c - may a compiled model run here, may this EP run on that hardware: what ORT and
 * applications ask before anything is loaded. */
#include "ep.h"

#include <stdio.h>

/* The value of `key=` in "a=1;b=2". */
static epctx_str part(const char *text, const char *key)
{
    const size_t length = strlen(key);
    epctx_str value = {"", 0};
    for (;;) {
        const size_t size = strcspn(text, ";");
        if (size > length && strncmp(text, key, length) == 0 && text[length] == '=') {
            value.data = text + length + 1;
            value.size = size - length - 1;
            return value;
        }
        if (!text[size]) return value;
        text += size + 1;
    }
}

static epctx_str major_of(epctx_str version)
{
    size_t i;
    for (i = 0; i < version.size && version.data[i] != '.'; i++) {
    }
    version.size = i;
    return version;
}

/* Judges what epctx_backend_compatibility wrote, here or elsewhere. */
static ep_verdict judge(const ep_device *device, const epctx_backend *backend, const char *text)
{
    const epctx_str sdk = part(text, "sdk"), architecture = part(text, "arch");
    if (!epctx_str_is(part(text, "epctx"), "1") ||
        !epctx_str_is(part(text, "source"), backend->source)) {
        return EP_NOT_APPLICABLE;
    }
    if (device->compatible_fn) return device->compatible_fn(backend, sdk, architecture);
    if (!epctx_str_is(architecture, backend->hardware_architecture) ||
        !epctx_str_eq(major_of(sdk), major_of(epctx_str_of(backend->sdk_version)))) {
        return EP_UNSUPPORTED;
    }
    return epctx_str_is(sdk, backend->sdk_version) ? EP_OPTIMAL : EP_PREFER_RECOMPILATION;
}

static const char *ORT_API_CALL get_compatibility(OrtEp *self, const OrtGraph *graph)
{
    (void)graph;
    return ((ep_session *)(void *)self)->compatibility; /* NULL would crash ORT */
}

static OrtStatus *ORT_API_CALL validate(OrtEpFactory *self, const OrtHardwareDevice *const *devices,
                                        size_t device_count, const char *text,
                                        OrtCompiledModelCompatibility *out)
{
    const ep_factory *factory = (const ep_factory *)(const void *)self;
    epctx_backend backend;
    epctx_error error;
    (void)devices;
    (void)device_count;
    memset(&backend, 0, sizeof backend);
    epctx_error_clear(&error);
    EP_TRY(ep_status(&factory->api, factory->device->open_fn(NULL, &backend, &error), &error));
    *out = (OrtCompiledModelCompatibility)judge(factory->device, &backend, text ? text : "");
    factory->device->close_fn(&backend);
    return NULL;
}

/* ---------------------------------------------- one of several compiled models */

/* The better, the larger; 0: cannot be used. */
enum { RANK_UNSUPPORTED, RANK_FOREIGN, RANK_SUBOPTIMAL, RANK_OPTIMAL };

static int rank_of(const ep_factory *factory, const epctx_backend *backend, const char *text,
                   bool strict)
{
    switch (judge(factory->device, backend, text ? text : "")) {
    case EP_OPTIMAL:
        return RANK_OPTIMAL;
    case EP_PREFER_RECOMPILATION:
        return strict ? RANK_UNSUPPORTED : RANK_SUBOPTIMAL;
    case EP_NOT_APPLICABLE:
        return RANK_FOREIGN;
    default:
        return RANK_UNSUPPORTED;
    }
}

/* A candidate is worth as much as the worst of its models. */
static int rank_candidate(const ep_factory *factory, const epctx_backend *backend,
                          const OrtKeyValuePairs *candidate, bool strict)
{
    const char *text = factory->api.ort->GetKeyValue(candidate, "num_models");
    const unsigned long count = text ? strtoul(text, NULL, 10) : 1;
    unsigned long i;
    int worst = count ? RANK_OPTIMAL : RANK_UNSUPPORTED;
    for (i = 0; i < count && worst > RANK_UNSUPPORTED; i++) {
        char key[64];
        int rank;
        snprintf(key, sizeof key, "%lu.ep_compatibility_info", i);
        text = factory->api.ort->GetKeyValue(candidate, key);
        rank = rank_of(factory, backend, text, strict);
        if (rank < worst) worst = rank;
    }
    return worst;
}

/* session.fail_on_suboptimal_compiled_model: such a candidate would not load. */
static OrtStatus *is_strict(const ep_api *api, const OrtSessionOptions *options, bool *out)
{
    const char *key = "session.fail_on_suboptimal_compiled_model";
    int there = 0;
    char value[8] = "";
    size_t size = sizeof value;
    *out = false;
    if (!options) return NULL;
    EP_TRY(api->ort->HasSessionConfigEntry(options, key, &there));
    if (!there) return NULL;
    EP_TRY(api->ort->GetSessionConfigEntry(options, key, value, &size));
    *out = strcmp(value, "1") == 0;
    return NULL;
}

static OrtStatus *ORT_API_CALL select_best(OrtEpFactory *self, const OrtHardwareDevice *device,
                                           const OrtKeyValuePairs *const *candidates, size_t count,
                                           const OrtSessionOptions *options, size_t *selected)
{
    const ep_factory *factory = (const ep_factory *)(const void *)self;
    epctx_backend backend;
    epctx_error error;
    bool strict = false;
    int best = RANK_UNSUPPORTED;
    size_t i;
    (void)device; /* all of ours compute alike */
    *selected = SIZE_MAX;
    EP_TRY(is_strict(&factory->api, options, &strict));
    memset(&backend, 0, sizeof backend);
    epctx_error_clear(&error);
    EP_TRY(ep_status(&factory->api, factory->device->open_fn(NULL, &backend, &error), &error));
    for (i = 0; i < count; i++) { /* of equals the first: the package's order counts */
        const int rank = rank_candidate(factory, &backend, candidates[i], strict);
        if (rank <= best) continue;
        best = rank;
        *selected = i;
    }
    factory->device->close_fn(&backend);
    return NULL;
}

/* ---------------------------------------------------------------- hardware */

static OrtStatus *ORT_API_CALL hardware_details(OrtEpFactory *self, const OrtHardwareDevice *device,
                                                OrtDeviceEpIncompatibilityDetails *details)
{
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

void ep_compatibility_register(ep_factory *factory)
{
    factory->ort.ValidateCompiledModelCompatibilityInfo = validate;
    factory->ort.GetHardwareDeviceIncompatibilityDetails = hardware_details;
    if (factory->api.version >= 28) factory->ort.SelectBestModelCandidate = select_best;
}

void ep_compatibility_register_session(ep_session *session)
{
    session->ort.GetCompiledModelCompatibilityInfo = get_compatibility;
}
