/* bad_ep.c - the toy's factory with one member broken, for what ORT 1.30 crashes on or never looks
 * at. It loads libtoy_ep.so from EPCTX_TOY_EP and breaks what EPCTX_BAD_EP says:
 *   data_transfer  OrtEpFactory::CreateDataTransfer is NULL, which its header allows
 *   compatibility  OrtEp::GetCompiledModelCompatibilityInfo returns NULL
 *   none           nothing: shows that the rest works
 *   vendor_id      OrtEpFactory::GetVendorId ends the process: does ORT ever call it?
 *   version        the same for OrtEpFactory::GetVersion
 * The tests run it in a process of its own. When a newer ORT survives, they say so.
 */
#if !defined(_WIN32) /* tests/windows.h is in front of us */
#include <dlfcn.h>
#endif
#include <onnxruntime_c_api.h>
#include <stdio.h>

typedef OrtStatus *(*create_fn)(const char *, const OrtApiBase *, const OrtLogger *,
                                OrtEpFactory **, size_t, size_t *);
typedef OrtStatus *(*release_fn)(OrtEpFactory *);

#if defined(_WIN32)
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif
EXPORT OrtStatus *CreateEpFactories(const char *name, const OrtApiBase *base,
                                    const OrtLogger *logger, OrtEpFactory **factories, size_t max,
                                    size_t *count);
EXPORT OrtStatus *ReleaseEpFactory(OrtEpFactory *factory);

static OrtStatus *(*real_create_ep)(OrtEpFactory *, const OrtHardwareDevice *const *,
                                    const OrtKeyValuePairs *const *, size_t,
                                    const OrtSessionOptions *, const OrtLogger *, OrtEp **);

static const char *no_text(OrtEp *ep, const OrtGraph *graph)
{
    (void)ep, (void)graph;
    return NULL;
}

static OrtStatus *create_ep(OrtEpFactory *self, const OrtHardwareDevice *const *devices,
                            const OrtKeyValuePairs *const *metadata, size_t count,
                            const OrtSessionOptions *options, const OrtLogger *logger, OrtEp **ep)
{
    OrtStatus *status = real_create_ep(self, devices, metadata, count, options, logger, ep);
    if (!status) (*ep)->GetCompiledModelCompatibilityInfo = no_text;
    return status;
}

static uint32_t vendor_trap(const OrtEpFactory *self)
{
    (void)self;
    exit(9);
}

static const char *version_trap(const OrtEpFactory *self)
{
    (void)self;
    exit(9);
}

/* The library stays open: this one is for processes that end at once. */
static void *symbol(const char *name, void *function, size_t size)
{
    void *library = dlopen(getenv("EPCTX_TOY_EP"), RTLD_NOW | RTLD_LOCAL);
    void *found = library ? dlsym(library, name) : NULL;
    if (found) memcpy(function, &found, size);
    return found;
}

OrtStatus *CreateEpFactories(const char *name, const OrtApiBase *base, const OrtLogger *logger,
                             OrtEpFactory **factories, size_t max, size_t *count)
{
    const char *what = getenv("EPCTX_BAD_EP");
    create_fn create = NULL;
    OrtStatus *status;
    if (!symbol("CreateEpFactories", &create, sizeof create)) {
        return base->GetApi(ORT_API_VERSION)->CreateStatus(ORT_FAIL, "EPCTX_TOY_EP is not set");
    }
    status = create(name, base, logger, factories, max, count);
    if (status || !what) return status;
    if (strcmp(what, "data_transfer") == 0) factories[0]->CreateDataTransfer = NULL;
    if (strcmp(what, "vendor_id") == 0) factories[0]->GetVendorId = vendor_trap;
    if (strcmp(what, "version") == 0) factories[0]->GetVersion = version_trap;
    if (strcmp(what, "compatibility") == 0) {
        real_create_ep = factories[0]->CreateEp;
        factories[0]->CreateEp = create_ep;
    }
    return NULL;
}

OrtStatus *ReleaseEpFactory(OrtEpFactory *factory)
{
    release_fn release = NULL;
    return symbol("ReleaseEpFactory", &release, sizeof release) ? release(factory) : NULL;
}
