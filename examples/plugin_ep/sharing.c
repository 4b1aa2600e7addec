/* sharing.c - what sessions have in common that share contexts (ep.share_ep_contexts). ORT only
 * passes the option on; what outlives a session is here, in the factory: a workspace of epctx.h,
 * and the backends of these sessions. */
#include "ep.h"

#include <stdio.h>

/* A backend and its EP options. */
typedef struct shared_backend {
    struct shared_backend *next;
    epctx_backend backend;
    char options[]; /* "key=value\n..." */
} shared_backend;

struct ep_sharing {
    epctx_workspace *workspace;
    epctx_lock lock; /* for the list; the workspace has its own */
    shared_backend *backends;
};

OrtStatus *ep_sharing_make(ep_factory *factory) {
    ep_sharing *sharing = (ep_sharing *)calloc(1, sizeof *sharing);
    epctx_workspace_opts opts;
    epctx_error error;
    epctx_status status;
    if (!sharing) return epctx_ort_no_memory(&factory->api);
    memset(&opts, 0, sizeof opts);
    epctx_error_clear(&error);
    status = epctx_lock_make(&sharing->lock, NULL, &error);
    if (status == EPCTX_OK) status = epctx_lock_make(&opts.lock, NULL, &error);
    if (status == EPCTX_OK) {
        status = epctx_workspace_open(&sharing->workspace, &opts, &error);
        if (status != EPCTX_OK) opts.lock.free_fn(opts.lock.user);
    }
    if (status != EPCTX_OK) {
        if (sharing->lock.free_fn) sharing->lock.free_fn(sharing->lock.user);
        free(sharing);
        return epctx_ort_status(&factory->api, status, &error);
    }
    factory->sharing = sharing;
    return NULL;
}

void ep_sharing_free(ep_factory *factory) {
    ep_sharing *sharing = factory->sharing;
    if (!sharing) return;
    epctx_workspace_close(sharing->workspace); /* discards groups without a last session */
    while (sharing->backends) {
        shared_backend *gone = sharing->backends;
        sharing->backends = gone->next;
        factory->device->close_fn(&gone->backend);
        free(gone);
    }
    sharing->lock.free_fn(sharing->lock.user);
    free(sharing);
    factory->sharing = NULL;
}

epctx_workspace *ep_sharing_workspace(const ep_factory *factory) {
    return factory->sharing->workspace;
}

/* -------------------------------------------------------------------- backends */

/* The EP's own options as one text; NULL: no memory. Sessions with the same text share. */
static char *describe_options(const ep_options *options) {
    const char *const *keys = NULL, *const *values = NULL;
    size_t count = 0, i, key, value;
    char sizes[48];
    epctx_buffer text;
    bool ok = true;
    epctx_buffer_init(&text, NULL);
    options->ort->GetKeyValuePairs(options->pairs, &keys, &values, &count);
    for (i = 0; ok && i < count; i++) {
        if (strncmp(keys[i], options->prefix, strlen(options->prefix)) != 0) continue;
        key = strlen(keys[i]);
        value = strlen(values[i]);
        snprintf(sizes, sizeof sizes, "%zu %zu ", key, value); /* any text may occur in either */
        ok = epctx_buffer_append(&text, sizes, strlen(sizes)) == EPCTX_OK &&
             epctx_buffer_append(&text, keys[i], key) == EPCTX_OK &&
             epctx_buffer_append(&text, values[i], value) == EPCTX_OK;
    }
    if (!ok || epctx_buffer_append(&text, "", 1) != EPCTX_OK) {
        epctx_buffer_free(&text);
        return NULL;
    }
    return (char *)text.data; /* of malloc, the buffer's default */
}

static epctx_status open_backend(ep_factory *factory, const ep_options *options, const char *text,
                                 epctx_backend *out, epctx_error *error) {
    ep_sharing *sharing = factory->sharing;
    shared_backend *one;
    epctx_status status;
    for (one = sharing->backends; one; one = one->next) {
        if (strcmp(one->options, text) != 0) continue;
        *out = one->backend;
        return EPCTX_OK;
    }
    one = (shared_backend *)calloc(1, sizeof *one + strlen(text) + 1);
    if (!one) return EPCTX_ERR_NOMEM;
    memcpy(one->options, text, strlen(text) + 1);
    status = ep_backend_open(factory->device, options, &one->backend, error);
    if (status != EPCTX_OK) {
        free(one);
        return status;
    }
    one->next = sharing->backends;
    sharing->backends = one;
    *out = one->backend;
    return EPCTX_OK;
}

OrtStatus *ep_sharing_backend(ep_factory *factory, const ep_options *options, epctx_backend *out) {
    const epctx_lock *lock = &factory->sharing->lock;
    char *text = describe_options(options);
    epctx_error error;
    epctx_status status;
    if (!text) return epctx_ort_no_memory(&factory->api);
    epctx_error_clear(&error);
    lock->lock_fn(lock->user);
    status = open_backend(factory, options, text, out, &error);
    lock->unlock_fn(lock->user);
    free(text);
    return epctx_ort_status(&factory->api, status, &error);
}

const epctx_backend *ep_sharing_lasting(const ep_session *session) {
    const ep_sharing *sharing = session->factory->sharing;
    const shared_backend *one;
    sharing->lock.lock_fn(sharing->lock.user);
    for (one = sharing->backends; one->backend.self != session->backend.self; one = one->next) {
    }
    sharing->lock.unlock_fn(sharing->lock.user);
    return &one->backend;
}
