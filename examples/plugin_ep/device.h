/* device.h - the NPU-facing side of the plugin EP: what you replace to serve your own device.
 *
 * The rest of this folder speaks with ONNX Runtime (ORT) and knows nothing of the device; the file
 * that implements ep_device_get() knows the device and nothing of ORT. device_npu.c does it for the
 * reference NPU of epctx_npu.h, tests/ort/device_toy.c for a calculator of four operators.
 */
#ifndef EP_DEVICE_H
#define EP_DEVICE_H

#include "epctx.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Options of one session, read with ep_option_get. */
typedef struct ep_options ep_options;

/* The value the application gave to the EP option `key` (argument of
 * SessionOptionsAppendExecutionProvider_V2, or session config "ep.<ep name in lower case>.<key>"),
 * or NULL. Valid during open_fn. `options` may be NULL: no option is set. */
const char *ep_option_get(const ep_options *options, const char *key);

/* An option that is "0" (the default) or "1"; anything else is EPCTX_ERR_ARG. */
epctx_status ep_option_switch(const ep_options *options, const char *key, bool *out,
                              epctx_error *error);
/* An option that is "auto" (0, the default), "always" (1) or "never" (2). */
epctx_status ep_option_choice(const ep_options *options, const char *key, unsigned *out,
                              epctx_error *error);

/* EP option `key`, a number from `low` to `high`; absent: `otherwise`. */
epctx_status ep_option_number(const ep_options *options, const char *key, uint32_t low,
                              uint32_t high, uint32_t otherwise, uint32_t *out, epctx_error *error);

/* Processors of the machine, at most 64. */
uint32_t ep_processors(void);

/* ORT's threads during one run: calls work_fn(work, i) for each i below `count`, in any order and
 * at once, and returns when all calls have returned. */
typedef struct ep_helpers {
    void *user;
    void (*parallel_fn)(void *user, uint32_t count, void (*work_fn)(void *work, uint32_t i),
                        void *work);
    uint32_t threads; /* how many work at once; 1: only that of the run */
} ep_helpers;

/* One execution provider. Everything is constant and lives as long as the library. */
typedef struct ep_device {
    const char *ep_name; /* what applications ask for; ends in ExecutionProvider */
    const char *vendor;
    uint32_t vendor_id;  /* PCI vendor id, or another number that is yours */
    const char *version; /* of the EP, Semantic Versioning 2.0 */
    /* Makes the backend of one session; sessions may live in different threads, so each has its
     * own. Sessions that share contexts (ep.share_ep_contexts) and have equal EP options have one
     * backend together, as long as the library is registered; what of it may be called at once is
     * in epctx_backend. The strings in `backend` stay valid until close_fn. */
    epctx_status (*open_fn)(const ep_options *options, epctx_backend *backend, epctx_error *error);
    void (*close_fn)(epctx_backend *backend);
    /* What an application may change while a session lives (SetEpDynamicOptions): keys, NULL at the
     * end, and the function that gets one of them. It may be called while run_fn runs in other
     * threads. Both NULL: nothing. */
    const char *const *dynamic_keys;
    epctx_status (*dynamic_fn)(epctx_backend *backend, const char *key, const char *value,
                               epctx_error *error);
    /* Does the device of this session want channels last (NHWC)? Then ORT puts Transposes around
     * the nodes that capability_fn takes and that know a layout, moves them into the domain
     * com.ms.internal.nhwc, and asks capability_fn again. NULL: channels first, as models have it.
     */
    bool (*channels_last_fn)(const epctx_backend *backend);
    /* Which nodes: positive: this one, 0: not this one, negative or NULL: ORT decides. */
    int (*convert_fn)(const epctx_backend *backend, const char *domain, const char *op_type);
    /* The EP options that open_fn reads, NULL at the end: a session with another one is refused.
     * NULL: none. Every EP of this folder has "hugging_face_cache", "map_binary",
     * "device_memory_limit" and "write_control_flow" besides. */
    const char *const *option_keys;
    /* Is the device in this machine? Asked when the library is registered; false: applications see
     * no device of this EP. NULL: it is. Never fail instead: ONNX Runtime keeps devices of a
     * library whose registration failed late, and crashes on them. */
    bool (*present_fn)(void);
    /* What applications may know of the device before there is a session (EpDevice_EpMetadata):
     * keys and values in turn, NULL at the end. ORT itself adds "version" and others. NULL:
     * nothing. */
    const char *const *metadata;
    /* Runs as epctx_backend.run_fn, which is not called then, on ORT's threads. NULL: run_fn. */
    epctx_status (*run_fn)(const epctx_backend *backend, void *graph, const epctx_span *inputs,
                           const epctx_memory *outputs, void *scratch, size_t scratch_size,
                           const ep_helpers *helpers, epctx_error *error);
} ep_device;

/* What an application gets from OrtApi::SyncStream_GetHandle for a stream of this EP. */
typedef struct ep_stream_info {
    uint64_t copies, flushes, runs;
} ep_stream_info;

/* Memory for payloads, aligned like a mapped file. A backend that builds its payload with this
 * allocator can hand the memory over instead of copying it. */
extern const epctx_allocator ep_payload_allocator;

const ep_device *ep_device_get(void);

#ifdef __cplusplus
}
#endif

#endif
