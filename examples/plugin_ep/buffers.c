/* SPDX-License-Identifier: MIT */
/* buffers.c - context binaries from and to the application instead of files: ORT's callbacks for
 * data of EPContext nodes, with which it encrypts, compresses, or keeps binaries where no file
 * system is.
 *
 *   ORT 1.31 and newer  four functions of OrtEpApi, and a member of OrtEp by which ORT asks whether
 *                       the EP uses the callbacks: if not, a session that has some is refused
 *   ORT 1.28 to 1.30    the same functions, experimental: found by name; ORT does not ask
 *   before              there are none; nor are there in ORT 1.28 to 1.30 for an EP compiled with
 *                       headers before API 28
 *
 * This is the only place that knows the difference, for EPs in C and in C++. */
#include <stdlib.h>
#include <string.h>

#include "bridge.h"

/* Before, applications cannot set callbacks. */
#define BUFFERS_API 28
#define ALIGNMENT   64u

/* ------------------------------------------------------------------ session */

/* ort131.h has the types: they were the same when the functions were experimental. */
typedef OrtStatus *(ORT_API_CALL *get_config_fn)(const OrtSessionOptions *options,
                                                 ort131_config **out);
typedef void(ORT_API_CALL *release_config_fn)(ort131_config *config);
typedef OrtStatus *(ORT_API_CALL *get_read_fn)(const ort131_config *config,
                                               ort131_read_fn *callback, void **state);
typedef OrtStatus *(ORT_API_CALL *get_write_fn)(const ort131_config *config,
                                                ort131_write_fn *callback, void **state);
typedef struct calls {
    get_config_fn get_config;
    release_config_fn release_config;
    get_read_fn get_read;
    get_write_fn get_write;
} calls;

typedef void(ORT_API_CALL *found_fn)(void);

/* Counts the names that this ORT has. Headers before API 28 have nothing to ask with. */
static found_fn find(const epctx_ort_api *api, const char *name, unsigned *count) {
#if ORT_API_VERSION >= BUFFERS_API
    const found_fn found = (found_fn)api->ort->GetExperimentalFunction(name);
#else
    const found_fn found = NULL;
    (void)api, (void)name;
#endif
    *count += found != NULL;
    return found;
}

/* `get_config` stays NULL where there are no callbacks. */
static OrtStatus *find_calls(const epctx_ort_api *api, calls *out) {
    const ort131_ep_api *stable = ort131_ep_of(api->ep, api->version);
    unsigned count = 0;
    memset(out, 0, sizeof *out);
    if (stable) {
        out->get_config = stable->SessionOptionsGetEpContextConfig;
        out->release_config = stable->ReleaseEpContextConfig;
        out->get_read = stable->EpContextConfigGetEpContextDataReadFunc;
        out->get_write = stable->EpContextConfigGetEpContextDataWriteFunc;
        return NULL;
    }
    if (api->version < BUFFERS_API) return NULL;
    out->get_config =
        (get_config_fn)find(api, "OrtEpApi_SessionOptions_GetEpContextConfig_SinceV28", &count);
    out->release_config =
        (release_config_fn)find(api, "OrtEpApi_ReleaseEpContextConfig_SinceV28", &count);
    out->get_read = (get_read_fn)find(
        api, "OrtEpApi_EpContextConfig_GetEpContextDataReadFunc_SinceV28", &count);
    out->get_write = (get_write_fn)find(
        api, "OrtEpApi_EpContextConfig_GetEpContextDataWriteFunc_SinceV28", &count);
    if (count == 0 || count == 4) return NULL; /* without all the application has none either */
    return epctx_ort_fail(api, EPCTX_ERR_UNSUPPORTED,
                          "this ONNX Runtime has %u of the 4 functions that tell the application's "
                          "callbacks for data of EPContext nodes",
                          count);
}

OrtStatus *epctx_ort_buffers_open(const epctx_ort_api *api, const OrtSessionOptions *options,
                                  epctx_ort_buffers *out) {
    ort131_config *config = NULL;
    OrtStatus *status;
    calls ort;
    memset(out, 0, sizeof *out);
    EPCTX_ORT_TRY(find_calls(api, &ort));
    if (!ort.get_config) return NULL;
    EPCTX_ORT_TRY(ort.get_config(options, &config));
    status = ort.get_read(config, &out->read_fn, &out->read_state);
    if (!status) status = ort.get_write(config, &out->write_fn, &out->write_state);
    ort.release_config(config);
    return status;
}

/* Valid for every session, also where epctx_ort_buffers_open fails one: that has a reason to tell.
 */
static OrtStatus *ORT_API_CALL data_support(const OrtEp *self, uint32_t *flags) {
    (void)self;
    *flags = ORT131_DATA_READ | ORT131_DATA_WRITE;
    return NULL;
}

void epctx_ort_announce(const epctx_ort_api *api, ort131_ep *ep) {
    OrtEp *const older = (OrtEp *)(void *)ep;
    const ort131_support_fn support = data_support;
    older->ort_version_supported = epctx_ort_layout(api);
    if (api->version < ORT131_API) return;
    older->ort_version_supported = api->version;
    memcpy((char *)ep + ORT131_SUPPORT_AT * sizeof(void *), &support, sizeof support);
}

_Static_assert(sizeof(ort131_ep) >= (ORT131_SUPPORT_AT + 1) * sizeof(void *),
               "the structure has the member that ORT reads from API 31 on");
#if ORT_API_VERSION < 31
_Static_assert(sizeof(ort131_ep) == (ORT131_SUPPORT_AT + 1) * sizeof(void *), "which is its last");
#endif

/* ------------------------------------------------------------------ loading */

/* What the application's callback allocated, and a copy if that is not aligned as files are. */
typedef struct given_bytes {
    OrtAllocator *allocator;
    void *data, *copy;
} given_bytes;

static void unmap_given(void *user, epctx_mapping *mapping) {
    given_bytes *given = (given_bytes *)mapping->handle;
    (void)user;
    if (!given) return;
    if (given->data) given->allocator->Free(given->allocator, given->data);
    free(given->copy);
    free(given);
}

static OrtStatus *ask(const epctx_ort_reader *reader, const char *name, given_bytes *given,
                      size_t *size) {
    const epctx_ort_api *api = reader->api;
    void *data = NULL;
    EPCTX_ORT_TRY(api->ort->GetAllocatorWithDefaultOptions(&given->allocator));
    /* After a failure the buffer is not ours: the callback may have given it back. */
    EPCTX_ORT_TRY(
        reader->buffers.read_fn(reader->buffers.read_state, name, given->allocator, &data, size));
    given->data = data;
    return NULL;
}

static epctx_status align(given_bytes *given, epctx_mapping *out, epctx_error *error) {
    const size_t over = (uintptr_t)out->data % ALIGNMENT;
    uint8_t *copy;
    if (over == 0) return EPCTX_OK;
    given->copy = out->size <= SIZE_MAX - ALIGNMENT ? malloc(out->size + ALIGNMENT) : NULL;
    if (!given->copy) return epctx_fail(error, EPCTX_ERR_NOMEM, "no memory for a context");
    copy = (uint8_t *)given->copy;
    copy += (ALIGNMENT - (uintptr_t)copy % ALIGNMENT) % ALIGNMENT;
    memcpy(copy, out->data, out->size);
    out->data = copy;
    return EPCTX_OK;
}

static epctx_status map_given(void *user, const char *root, const char *name, bool copy,
                              epctx_mapping *out, epctx_error *error) {
    epctx_ort_reader *reader = (epctx_ort_reader *)user;
    given_bytes *given = (given_bytes *)calloc(1, sizeof *given);
    epctx_status status;
    (void)root;
    (void)copy;
    memset(out, 0, sizeof *out);
    if (!given) return epctx_fail(error, EPCTX_ERR_NOMEM, "no memory for a context");
    out->handle = given;
    epctx_ort_reader_free(reader); /* what another node brought, if it was not asked for */
    reader->refusal = ask(reader, name, given, &out->size);
    out->data = (const uint8_t *)given->data;
    if (reader->refusal) {
        status = epctx_fail(error, EPCTX_ERR_IO, "the application has no bytes");
    } else if (!given->data || out->size == 0) {
        status = epctx_fail(error, EPCTX_ERR_CONTEXT,
                            "the application's read callback gave no bytes for '%s'", name);
    } else {
        status = align(given, out, error);
    }
    if (status != EPCTX_OK) unmap_given(NULL, out);
    return status;
}

void epctx_ort_reader_init(epctx_ort_reader *reader, const epctx_ort_api *api,
                           const epctx_ort_buffers *buffers) {
    memset(reader, 0, sizeof *reader);
    reader->api = api;
    reader->buffers = *buffers;
    reader->io.user = reader;
    reader->io.map_fn = map_given;
    reader->io.unmap_fn = unmap_given;
}

OrtStatus *epctx_ort_reader_refusal(epctx_ort_reader *reader) {
    OrtStatus *refusal = reader->refusal;
    reader->refusal = NULL;
    return refusal;
}

void epctx_ort_reader_free(epctx_ort_reader *reader) {
    OrtStatus *refusal = epctx_ort_reader_refusal(reader);
    if (refusal) reader->api->ort->ReleaseStatus(refusal);
}
