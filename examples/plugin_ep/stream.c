/* stream.c - the order of work on the device.
 *
 * The virtual NPU computes and copies while the call lasts: what a stream promises is kept when it
 * is made, and waiting is over at once. A device with a queue puts its handle into ep_stream, waits
 * for it in stream_flush, and records and awaits an event of its SDK in the notification.
 */
#include "ep.h"

typedef struct ep_stream {
    OrtSyncStreamImpl ort; /* first */
    ep_stream_info info;   /* what applications get from SyncStream_GetHandle */
    const ep_factory *factory;
    ep_session *session; /* NULL: for copies outside of sessions */
} ep_stream;

static ep_stream *stream_of(OrtSyncStreamImpl *self) {
    return (ep_stream *)(void *)self;
}

/* ------------------------------------------------------------ notification */

typedef struct ep_notification {
    OrtSyncNotificationImpl ort; /* first */
} ep_notification;

static void ORT_API_CALL notification_release(OrtSyncNotificationImpl *self) {
    free(self);
}

static OrtStatus *ORT_API_CALL notification_activate(OrtSyncNotificationImpl *self) {
    (void)self;
    return NULL;
}

static OrtStatus *ORT_API_CALL notification_wait_device(OrtSyncNotificationImpl *self,
                                                        OrtSyncStream *consumer) {
    (void)self;
    (void)consumer;
    return NULL;
}

static OrtStatus *ORT_API_CALL notification_wait_host(OrtSyncNotificationImpl *self) {
    (void)self;
    return NULL;
}

/* ------------------------------------------------------------------ stream */

static void ORT_API_CALL stream_release(OrtSyncStreamImpl *self) {
    ep_stream *stream = stream_of(self);
    if (stream->session) atomic_fetch_sub(&stream->session->runs.open_streams, 1);
    free(stream);
}

static void *ORT_API_CALL stream_handle(OrtSyncStreamImpl *self) {
    return &stream_of(self)->info;
}

static OrtStatus *ORT_API_CALL stream_notification(OrtSyncStreamImpl *self,
                                                   OrtSyncNotificationImpl **out) {
    const epctx_ort_api *api = &stream_of(self)->factory->api;
    ep_notification *notification = (ep_notification *)calloc(1, sizeof *notification);
    *out = NULL;
    if (!notification) return epctx_ort_no_memory(api);
    notification->ort.ort_version_supported = epctx_ort_layout(api);
    notification->ort.Release = notification_release;
    notification->ort.Activate = notification_activate;
    notification->ort.WaitOnDevice = notification_wait_device;
    notification->ort.WaitOnHost = notification_wait_host;
    *out = &notification->ort;
    return NULL;
}

static OrtStatus *ORT_API_CALL stream_flush(OrtSyncStreamImpl *self) {
    ep_stream *stream = stream_of(self);
    stream->info.flushes++;
    if (stream->session) atomic_fetch_add(&stream->session->runs.flushes, 1);
    return NULL;
}

static OrtStatus *ORT_API_CALL stream_run_end(OrtSyncStreamImpl *self) {
    stream_of(self)->info.runs++;
    return NULL;
}

static OrtStatus *make_stream(const ep_factory *factory, ep_session *session,
                              const OrtMemoryDevice *device, OrtSyncStreamImpl **out) {
    const epctx_ort_api *api = &factory->api;
    ep_stream *stream;
    *out = NULL;
    if (!ep_memory_is_ours(factory, device)) {
        return epctx_ort_fail(api, EPCTX_ERR_ARG,
                              "no stream for this memory: %s did not announce it",
                              factory->device->ep_name);
    }
    stream = (ep_stream *)calloc(1, sizeof *stream);
    if (!stream) return epctx_ort_no_memory(api);
    stream->ort.ort_version_supported = epctx_ort_layout(api);
    stream->ort.Release = stream_release;
    stream->ort.GetHandle = stream_handle;
    stream->ort.CreateNotification = stream_notification;
    stream->ort.Flush = stream_flush;
    stream->ort.OnSessionRunEnd = stream_run_end;
    stream->factory = factory;
    stream->session = session;
    if (session) {
        atomic_fetch_add(&session->runs.streams, 1);
        atomic_fetch_add(&session->runs.open_streams, 1);
    }
    *out = &stream->ort;
    return NULL;
}

void ep_stream_copied(const ep_factory *factory, OrtSyncStream *stream) {
    /* ORT keeps our objects as const; we own them. */
    const OrtSyncStreamImpl *impl = factory->api.ep->SyncStream_GetImpl(stream);
    union {
        const OrtSyncStreamImpl *const_impl;
        OrtSyncStreamImpl *impl;
    } ours;
    ours.const_impl = impl;
    if (ours.impl) stream_of(ours.impl)->info.copies++;
}

/* ------------------------------------------------------------ registration */

static OrtStatus *ORT_API_CALL stream_for_all(OrtEpFactory *self, const OrtMemoryDevice *device,
                                              const OrtKeyValuePairs *options,
                                              OrtSyncStreamImpl **out) {
    (void)options;
    return make_stream((const ep_factory *)(const void *)self, NULL, device, out);
}

static OrtStatus *ORT_API_CALL stream_for_session(OrtEp *self, const OrtMemoryDevice *device,
                                                  OrtSyncStreamImpl **out) {
    ep_session *session = (ep_session *)(void *)self;
    return make_stream(session->factory, session, device, out);
}

/* Streams exist only for devices with their own memory. */
static bool ORT_API_CALL is_stream_aware(const OrtEpFactory *self) {
    return ((const ep_factory *)(const void *)self)->memory[EP_MEMORY_DEVICE] != NULL;
}

void ep_stream_register(ep_factory *factory) {
    factory->ort.IsStreamAware = is_stream_aware;
    factory->ort.CreateSyncStreamForDevice = stream_for_all;
}

void ep_stream_register_session(ep_session *session) {
    session->ort.older.CreateSyncStreamForDevice = stream_for_session;
}
