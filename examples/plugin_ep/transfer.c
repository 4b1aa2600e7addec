/* transfer.c - copies between memory of the device and the CPU: a real device replaces the body of
 * device_copy. */
#include "ep.h"

static void device_copy(void *to, const void *from, size_t size) {
    if (size) memcpy(to, from, size);
}

struct ep_transfer {
    OrtDataTransferImpl ort; /* first */
    const ep_factory *factory;
};

/* One object serves all sessions, until the factory is released. */
static void ORT_API_CALL transfer_release(OrtDataTransferImpl *self) {
    (void)self;
}

static bool ORT_API_CALL transfer_can_copy(const OrtDataTransferImpl *self,
                                           const OrtMemoryDevice *from, const OrtMemoryDevice *to) {
    const ep_factory *factory = ((const ep_transfer *)(const void *)self)->factory;
    const OrtEpApi *ep = factory->api.ep;
    const bool ours_from = ep_memory_is_ours(factory, from),
               ours_to = ep_memory_is_ours(factory, to);
    return (ours_from || ours_to) &&
           (ours_from || ep->MemoryDevice_GetDeviceType(from) == OrtMemoryInfoDeviceType_CPU) &&
           (ours_to || ep->MemoryDevice_GetDeviceType(to) == OrtMemoryInfoDeviceType_CPU);
}

static OrtStatus *copy_tensor(const epctx_ort_api *api, const OrtValue *from, OrtValue *to) {
    const OrtApi *ort = api->ort;
    const void *source = NULL;
    void *target = NULL;
    size_t size = 0, room = 0;
    EPCTX_ORT_TRY(ort->GetTensorSizeInBytes(from, &size));
    EPCTX_ORT_TRY(ort->GetTensorSizeInBytes(to, &room));
    if (size != room) {
        return epctx_ort_fail(api, EPCTX_ERR_ARG, "a tensor of %zu bytes does not fit one of %zu",
                              size, room);
    }
    EPCTX_ORT_TRY(ort->GetTensorData(from, &source));
    EPCTX_ORT_TRY(ort->GetTensorMutableData(to, &target));
    if (size && (!source || !target)) {
        /* ORT 1.30 continues after our allocator has failed. */
        return epctx_ort_fail(api, EPCTX_ERR_NOMEM, "no device memory for a tensor of %zu bytes",
                              size);
    }
    device_copy(target, source, size);
    return NULL;
}

static OrtStatus *ORT_API_CALL transfer_copy(OrtDataTransferImpl *self, const OrtValue **from,
                                             OrtValue **to, OrtSyncStream **streams, size_t count) {
    const ep_factory *factory = ((const ep_transfer *)(const void *)self)->factory;
    size_t i;
    for (i = 0; i < count; i++) {
        EPCTX_ORT_TRY(copy_tensor(&factory->api, from[i], to[i]));
        if (streams && streams[i]) ep_stream_copied(factory, streams[i]);
    }
    return NULL;
}

/* Optional by the headers, called by ORT 1.30 without a look. NULL: nothing to copy. */
static OrtStatus *ORT_API_CALL create_data_transfer(OrtEpFactory *self, OrtDataTransferImpl **out) {
    ep_transfer *transfer = ((ep_factory *)(void *)self)->transfer;
    *out = transfer ? &transfer->ort : NULL;
    return NULL;
}

OrtStatus *ep_transfer_announce(ep_factory *factory) {
    ep_transfer *transfer;
    if (factory->transfer || factory->api.version < EP_MEMORY_API) return NULL;
    transfer = (ep_transfer *)calloc(1, sizeof *transfer);
    if (!transfer) return epctx_ort_no_memory(&factory->api);
    transfer->ort.ort_version_supported = epctx_ort_layout(&factory->api);
    transfer->ort.Release = transfer_release;
    transfer->ort.CanCopy = transfer_can_copy;
    transfer->ort.CopyTensors = transfer_copy;
    transfer->factory = factory;
    factory->transfer = transfer;
    return NULL;
}

void ep_transfer_register(ep_factory *factory) {
    factory->ort.CreateDataTransfer = create_data_transfer;
}

void ep_transfer_release(ep_factory *factory) {
    free(factory->transfer);
}
