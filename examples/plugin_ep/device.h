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

/* Answer of compatible_fn, the values of OrtCompiledModelCompatibility. */
typedef enum ep_verdict {
    EP_NOT_APPLICABLE = 0, /* not a string of ours */
    EP_OPTIMAL = 1,
    EP_PREFER_RECOMPILATION = 2, /* runs, but a fresh compilation would run better */
    EP_UNSUPPORTED = 3
} ep_verdict;

/* One execution provider. Everything is constant and lives as long as the library. */
typedef struct ep_device {
    const char *ep_name; /* what applications ask for; ends in ExecutionProvider */
    const char *vendor;
    uint32_t vendor_id;  /* PCI vendor id, or another number that is yours */
    const char *version; /* of the EP, Semantic Versioning 2.0 */
    /* Makes the backend of one session; sessions may live in different threads, so each has its
     * own. The strings in `backend` stay valid until close_fn. */
    epctx_status (*open_fn)(const ep_options *options, epctx_backend *backend, epctx_error *error);
    void (*close_fn)(epctx_backend *backend);
    /* Can a backend that open_fn made run a context of this SDK and architecture? NULL: the default
     * rule, same architecture and same major SDK version; another minor version is
     * EP_PREFER_RECOMPILATION. */
    ep_verdict (*compatible_fn)(const epctx_backend *backend, epctx_str sdk_version,
                                epctx_str hardware_architecture);
} ep_device;

const ep_device *ep_device_get(void);

#ifdef __cplusplus
}
#endif

#endif
