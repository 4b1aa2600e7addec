/* buffers.c - context binaries from and to the application instead of files: ORT's named-buffer
 * callbacks, with which it encrypts, compresses, or keeps binaries where no file system is. They
 * are experimental in ORT 1.28 and newer: found by name, absent where they are not. */
#include "ep.h"

/* Declared here: the packages with ORT's stable headers leave the experimental one out. */
typedef struct config_handle config_handle; /* OrtEpContextConfig */
typedef OrtStatus *(ORT_API_CALL *get_config_fn)(const OrtSessionOptions *options,
                                                 config_handle **config);
typedef void(ORT_API_CALL *release_config_fn)(config_handle *config);
typedef OrtStatus *(ORT_API_CALL *get_read_fn)(const config_handle *config, ep_read_fn *function,
                                               void **state);
typedef OrtStatus *(ORT_API_CALL *get_write_fn)(const config_handle *config, ep_write_fn *function,
                                                void **state);

OrtStatus *ep_buffers_open(const ep_api *api, const OrtSessionOptions *options, ep_buffers *out) {
    const OrtApi *ort = api->ort;
    get_config_fn get_config;
    release_config_fn release_config;
    get_read_fn get_read;
    get_write_fn get_write;
    config_handle *config = NULL;
    OrtStatus *status;
    memset(out, 0, sizeof *out);
    if (api->version < 28) return NULL;
    get_config = (get_config_fn)ort->GetExperimentalFunction(
        "OrtEpApi_SessionOptions_GetEpContextConfig_SinceV28");
    release_config =
        (release_config_fn)ort->GetExperimentalFunction("OrtEpApi_ReleaseEpContextConfig_SinceV28");
    get_read = (get_read_fn)ort->GetExperimentalFunction(
        "OrtEpApi_EpContextConfig_GetEpContextDataReadFunc_SinceV28");
    get_write = (get_write_fn)ort->GetExperimentalFunction(
        "OrtEpApi_EpContextConfig_GetEpContextDataWriteFunc_SinceV28");
    if (!get_config || !release_config || !get_read || !get_write) return NULL;
    EP_TRY(get_config(options, &config));
    status = get_read(config, &out->read_fn, &out->read_state);
    if (!status) status = get_write(config, &out->write_fn, &out->write_state);
    release_config(config);
    return status;
}

OrtStatus *ep_buffers_read(const ep_api *api, const ep_buffers *buffers, const char *name,
                           ep_bytes *out) {
    OrtAllocator *allocator = NULL;
    memset(out, 0, sizeof *out);
    EP_TRY(api->ort->GetAllocatorWithDefaultOptions(&allocator));
    EP_TRY(buffers->read_fn(buffers->read_state, name, allocator, &out->data, &out->size));
    out->allocator = allocator;
    if (out->data && out->size) return NULL;
    ep_bytes_free(out);
    return ep_fail(api, EPCTX_ERR_CONTEXT, "the application's read callback gave no bytes for '%s'",
                   name);
}

void ep_bytes_free(ep_bytes *bytes) {
    if (bytes->data) bytes->allocator->Free(bytes->allocator, bytes->data);
    memset(bytes, 0, sizeof *bytes);
}
