/* factory.c - what the library exports, and the factory ORT gets from it. */
#include "ep.h"

#include <stdio.h>

/* The export list of this library: nothing else is visible. */
#if defined(_WIN32)
#define EP_EXPORT __declspec(dllexport)
#else
#define EP_EXPORT __attribute__((visibility("default")))
#endif

EP_EXPORT OrtStatus *CreateEpFactories(const char *registration_name, const OrtApiBase *base,
                                       const OrtLogger *logger, OrtEpFactory **factories,
                                       size_t max_factories, size_t *count);
EP_EXPORT OrtStatus *ReleaseEpFactory(OrtEpFactory *factory);

static ep_factory *factory_of(OrtEpFactory *self) {
    return (ep_factory *)(void *)self;
}

static const ep_factory *const_factory_of(const OrtEpFactory *self) {
    return (const ep_factory *)(const void *)self;
}

static const char *ORT_API_CALL get_name(const OrtEpFactory *self) {
    return const_factory_of(self)->device->ep_name;
}

static const char *ORT_API_CALL get_vendor(const OrtEpFactory *self) {
    return const_factory_of(self)->device->vendor;
}

static uint32_t ORT_API_CALL get_vendor_id(const OrtEpFactory *self) {
    return const_factory_of(self)->device->vendor_id;
}

static const char *ORT_API_CALL get_version(const OrtEpFactory *self) {
    return const_factory_of(self)->device->version;
}

/* ----------------------------------------------------------------- devices */

static OrtStatus *add_device(ep_factory *factory, const OrtHardwareDevice *device,
                             OrtEpDevice **out, size_t max, size_t *count) {
    const char *const *entry = factory->device->metadata;
    OrtKeyValuePairs *metadata = NULL;
    OrtStatus *status;
    if (*count == max) return NULL;
    factory->api.ort->CreateKeyValuePairs(&metadata);
    if (!metadata) return epctx_ort_no_memory(&factory->api);
    for (; entry && *entry; entry += 2)
        factory->api.ort->AddKeyValuePair(metadata, entry[0], entry[1]);
    /* No default options: ORT would let them overwrite what the application set before. No
     * allocator for the CPU: there the EP reads and writes ordinary memory. */
    status = factory->api.ep->CreateEpDevice(&factory->ort, device, metadata, NULL, &out[*count]);
    factory->api.ort->ReleaseKeyValuePairs(metadata); /* ORT has copied them */
    if (status) return status;
    ++*count;
    if (device != factory->virtual_npu) return NULL;
    EPCTX_ORT_TRY(ep_memory_announce(factory, out[*count - 1]));
    return ep_transfer_announce(factory);
}

static bool virtual_devices_allowed(const ep_factory *factory, OrtStatus **status) {
    OrtKeyValuePairs *pairs = NULL;
    const char *value;
    bool allowed;
    *status = factory->api.ep->GetEnvConfigEntries(&pairs);
    if (*status) return false;
    value = factory->api.ort->GetKeyValue(pairs, "allow_virtual_devices");
    allowed = value && strcmp(value, "1") == 0;
    factory->api.ort->ReleaseKeyValuePairs(pairs);
    return allowed;
}

/* An NPU that exists only on paper, for applications that ask for one (PREFER_NPU) on a machine
 * without it. Kept until the factory goes: ORT does not own it. */
static OrtStatus *make_virtual_npu(ep_factory *factory) {
    const epctx_ort_api *api = &factory->api;
    OrtKeyValuePairs *metadata = NULL;
    OrtStatus *status;
    if (factory->virtual_npu) return NULL;
    api->ort->CreateKeyValuePairs(&metadata);
    if (!metadata) return epctx_ort_no_memory(api);
    api->ort->AddKeyValuePair(metadata, "is_virtual", "1");
    status =
        api->ep->CreateHardwareDevice(OrtHardwareDeviceType_NPU, factory->device->vendor_id, 0,
                                      factory->device->vendor, metadata, &factory->virtual_npu);
    api->ort->ReleaseKeyValuePairs(metadata);
    return status;
}

static OrtStatus *add_devices(ep_factory *factory, const OrtHardwareDevice *const *devices,
                              size_t device_count, OrtEpDevice **out, size_t max, size_t *count) {
    OrtStatus *status = NULL;
    size_t i;
    for (i = 0; i < device_count; i++)
        if (ep_factory_supports(factory, devices[i]))
            EPCTX_ORT_TRY(add_device(factory, devices[i], out, max, count));
    if (virtual_devices_allowed(factory, &status)) {
        EPCTX_ORT_TRY(make_virtual_npu(factory));
        EPCTX_ORT_TRY(add_device(factory, factory->virtual_npu, out, max, count));
    }
    return status;
}

static OrtStatus *ORT_API_CALL get_supported_devices(OrtEpFactory *self,
                                                     const OrtHardwareDevice *const *devices,
                                                     size_t device_count, OrtEpDevice **out,
                                                     size_t max, size_t *count) {
    ep_factory *factory = factory_of(self);
    OrtStatus *status;
    *count = 0;
    if (factory->device->present_fn && !factory->device->present_fn()) return NULL;
    status = add_devices(factory, devices, device_count, out, max, count);
    while (status && *count > 0) /* ORT takes none of them */
        factory->api.ep->ReleaseEpDevice(out[--*count]);
    return status;
}

/* ---------------------------------------------------------------- sessions */

static OrtStatus *ORT_API_CALL create_ep(OrtEpFactory *self,
                                         const OrtHardwareDevice *const *devices,
                                         const OrtKeyValuePairs *const *metadata,
                                         size_t device_count, const OrtSessionOptions *options,
                                         const OrtLogger *logger, OrtEp **out) {
    ep_session *session = NULL;
    (void)devices;
    (void)metadata;
    *out = NULL;
    if (device_count == 0)
        return epctx_ort_fail(&factory_of(self)->api, EPCTX_ERR_ARG, "no device was chosen");
    EPCTX_ORT_TRY(ep_session_create(factory_of(self), options, logger, &session));
    *out = &session->ort.older;
    return NULL;
}

static void ORT_API_CALL release_ep(OrtEpFactory *self, OrtEp *ep) {
    (void)self;
    ep_session_release((ep_session *)(void *)ep);
}

/* ----------------------------------------------------------------- exports */

/* Only for the error message: any version of the API can create a status. */
static OrtStatus *too_old(const OrtApiBase *base, const char *ep_name) {
    char text[256];
    const OrtApi *ort = NULL;
    uint32_t version;
    for (version = epctx_ort_runtime(base); version > 0 && !ort; version--)
        ort = base->GetApi(version);
    if (!ort) return NULL;
    snprintf(text, sizeof text,
             "%s needs ONNX Runtime 1.%d or newer (OrtEpApi::CreateHardwareDevice, "
             "GetTensorElementTypeAndShapeDataReference); this is %s",
             ep_name, EP_OLDEST_API, base->GetVersionString());
    return ort->CreateStatus(ORT_NOT_IMPLEMENTED, text);
}

OrtStatus *CreateEpFactories(const char *registration_name, const OrtApiBase *base,
                             const OrtLogger *logger, OrtEpFactory **factories,
                             size_t max_factories, size_t *count) {
    const ep_device *device = ep_device_get();
    const uint32_t version = epctx_ort_runtime(base);
    epctx_error error;
    epctx_status fault;
    ep_factory *factory;
    OrtStatus *status;
    epctx_ort_api api;
    (void)registration_name; /* the application's choice; the EP's name is its own */
    epctx_error_clear(&error);
    fault = ep_device_check(device, &error);
    *count = 0;
    api.version = version;
    api.ort = version >= EP_OLDEST_API ? base->GetApi(version) : NULL;
    if (!api.ort) return too_old(base, fault == EPCTX_OK ? device->ep_name : "this EP");
    if (fault != EPCTX_OK) return epctx_ort_status(&api, fault, &error);
    api.ep = api.ort->GetEpApi();
    api.editor = api.ort->GetModelEditorApi();
    if (!api.ep || !api.editor) {
        return api.ort->CreateStatus(
            ORT_NOT_IMPLEMENTED, "this build of ONNX Runtime has no plugin EPs (minimal build)");
    }
    if (max_factories == 0) return epctx_ort_fail(&api, EPCTX_ERR_ARG, "no room for a factory");
    factory = (ep_factory *)calloc(1, sizeof *factory);
    if (!factory) return epctx_ort_no_memory(&api);
    factory->api = api;
    factory->device = device;
    factory->logger = logger;
    factory->ort.ort_version_supported = epctx_ort_layout(&factory->api);
    factory->ort.GetName = get_name;
    factory->ort.GetVendor = get_vendor;
    factory->ort.GetVendorId = get_vendor_id;
    factory->ort.GetVersion = get_version;
    factory->ort.GetSupportedDevices = get_supported_devices;
    factory->ort.CreateEp = create_ep;
    factory->ort.ReleaseEp = release_ep;
    status = ep_sharing_make(factory);
    if (status) {
        free(factory);
        return status;
    }
    ep_compatibility_register(factory);
    ep_memory_register(factory);
    ep_transfer_register(factory);
    ep_stream_register(factory);
    /* Always one: a library without factories is loaded twice and never unloaded. Whatever can fail
     * did so above or does in GetSupportedDevices: later ORT has the devices in its list already,
     * and leaves them there when it unloads the library. */
    factories[0] = &factory->ort;
    *count = 1;
    return NULL;
}

OrtStatus *ReleaseEpFactory(OrtEpFactory *self) {
    ep_factory *factory = factory_of(self);
    if (!factory) return NULL;
    ep_sharing_free(factory);
    ep_memory_release(factory);
    ep_transfer_release(factory);
    if (factory->virtual_npu) factory->api.ep->ReleaseHardwareDevice(factory->virtual_npu);
    free(factory);
    return NULL;
}
