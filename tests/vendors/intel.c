/* intel.c - Intel's EP on another maker's processor. It offers its CPU device on Intel's only,
 * though OpenVINO computes on any x86-64: this library loads it from EPCTX_INTEL_EP and hands all
 * through, but tells it that the processor is Intel's. The rest is the EP's own, which stays loaded
 * and keeps what it was told: this library must stay, too (-z nodelete).
 */
#include <dlfcn.h>
#include <onnxruntime_c_api.h>
#include <stdlib.h>
#include <string.h>

#include "ort131.h"

typedef OrtStatus *(*create_fn)(const char *, const OrtApiBase *, const OrtLogger *,
                                OrtEpFactory **, size_t, size_t *);
typedef OrtStatus *(*release_fn)(OrtEpFactory *);

OrtStatus *CreateEpFactories(const char *name, const OrtApiBase *base, const OrtLogger *logger,
                             OrtEpFactory **factories, size_t max, size_t *count);
OrtStatus *ReleaseEpFactory(OrtEpFactory *factory);

static const OrtApiBase *real_base;
static const OrtApi *real;
static union {
    OrtApi known;
    ort131_api whole; /* as long as ORT's own */
} api;
static void *library;

static uint32_t ORT_API_CALL vendor_id(const OrtHardwareDevice *device) {
    return real->HardwareDevice_Type(device) == OrtHardwareDeviceType_CPU
               ? 0x8086
               : real->HardwareDevice_VendorId(device);
}

static const char *ORT_API_CALL vendor(const OrtHardwareDevice *device) {
    return real->HardwareDevice_Type(device) == OrtHardwareDeviceType_CPU
               ? "Intel"
               : real->HardwareDevice_Vendor(device);
}

static const OrtApi *ORT_API_CALL get_api(uint32_t version) {
    real = real_base->GetApi(version);
    if (!real) return NULL;
    memcpy(&api, real, sizeof api);
    api.known.HardwareDevice_VendorId = vendor_id;
    api.known.HardwareDevice_Vendor = vendor;
    return &api.known;
}

static const char *ORT_API_CALL get_version(void) {
    return real_base->GetVersionString();
}

static void *symbol(const char *name) {
    const char *path = getenv("EPCTX_INTEL_EP");
    if (!library && path) library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    return library ? dlsym(library, name) : NULL;
}

OrtStatus *CreateEpFactories(const char *name, const OrtApiBase *base, const OrtLogger *logger,
                             OrtEpFactory **factories, size_t max, size_t *count) {
    static const OrtApiBase told = {get_api, get_version};
    create_fn create = NULL;
    void *found = symbol("CreateEpFactories");
    real_base = base;
    if (!found)
        return base->GetApi(ORT_API_VERSION)
            ->CreateStatus(ORT_FAIL, "EPCTX_INTEL_EP names no EP that can be loaded");
    memcpy(&create, &found, sizeof create);
    return create(name, &told, logger, factories, max, count);
}

OrtStatus *ReleaseEpFactory(OrtEpFactory *factory) {
    release_fn release = NULL;
    void *found = symbol("ReleaseEpFactory");
    memcpy(&release, &found, sizeof release);
    return release ? release(factory) : NULL;
}
