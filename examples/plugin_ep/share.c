/* share.c - contexts that several sessions share (ep.share_ep_contexts): while a group of context
 * models is generated their graphs go into one context, and graphs of a loaded binary wait for the
 * session that asks for them. ORT only passes the options on; what outlives a session is here, in
 * the factory: a workspace of epctx.h, and the backends that the sessions have in common. */
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
    if (!sharing) return ep_no_memory(&factory->api);
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
        return ep_status(&factory->api, status, &error);
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
    if (!text) return ep_no_memory(&factory->api);
    epctx_error_clear(&error);
    lock->lock_fn(lock->user);
    status = open_backend(factory, options, text, out, &error);
    lock->unlock_fn(lock->user);
    free(text);
    return ep_status(&factory->api, status, &error);
}

/* The group keeps a pointer to its backend: the factory's, not the session's copy. */
static const epctx_backend *lasting_backend(const ep_session *session) {
    const ep_sharing *sharing = session->factory->sharing;
    const shared_backend *one;
    sharing->lock.lock_fn(sharing->lock.user);
    for (one = sharing->backends; one->backend.self != session->backend.self; one = one->next) {
    }
    sharing->lock.unlock_fn(sharing->lock.user);
    return &one->backend;
}

/* ------------------------------------------------------------------ generating */

static OrtStatus *join(ep_session *session, ep_record *records, const OrtGraph **graphs,
                       const OrtNode **fused, size_t count, epctx_arena *arena,
                       OrtNode **context_nodes) {
    const ep_api *api = session->api;
    const epctx_graph **pieces =
        (const epctx_graph **)epctx_arena_array(arena, count, sizeof *pieces);
    char *path = (char *)epctx_arena_alloc(arena, EPCTX_PATH_MAX);
    const epctx_node *nodes = NULL;
    const epctx_span none = {NULL, 0};
    epctx_share_opts opts;
    epctx_error error;
    size_t i;
    if (!pieces || !path) return ep_no_memory(api);
    for (i = 0; i < count; i++) {
        EP_TRY(ep_record_read(&records[i], api, graphs[i], fused[i]));
        pieces[i] = &records[i].graph;
    }
    EP_TRY(ep_check_place(session, &records[0]));
    EP_TRY(
        ep_context_model_path(session, ep_model_path(session, &records[0]), path, EPCTX_PATH_MAX));
    memset(&opts, 0, sizeof opts);
    opts.pieces = pieces;
    opts.piece_count = count;
    opts.context_path = path;
    opts.name_prefix = session->prefix;
    opts.weightless = session->weightless;
    opts.overwrite = true; /* ORT's rule for the model decides */
    opts.prepare_only = session->compile_only;
    opts.verify = !session->compile_only;
    epctx_error_clear(&error);
    EP_TRY(ep_status(api,
                     epctx_share_compile(session->factory->sharing->workspace,
                                         lasting_backend(session), &opts, arena, &nodes, &error),
                     &error));
    session->joined = (char *)malloc(strlen(path) + 1);
    if (!session->joined) {
        epctx_share_withdraw(session->factory->sharing->workspace, NULL, session->backend.source,
                             path);
        return ep_no_memory(api);
    }
    memcpy(session->joined, path, strlen(path) + 1);
    return ep_give_nodes(session, records, nodes, fused, count, none, arena, context_nodes);
}

/* Such a session cannot run: its context is not finished before the last session of the group. */
static OrtStatus *idle_kernels(ep_session *session, size_t count, OrtNodeComputeInfo **infos) {
    ep_context *context = ep_context_new(session, 0);
    OrtStatus *status = context ? NULL : ep_no_memory(session->api);
    size_t i;
    for (i = 0; i < count && !status; i++) status = ep_kernel_create_idle(context, &infos[i]);
    ep_context_drop(context); /* the kernels hold it */
    return status;
}

OrtStatus *ep_share_compile(ep_session *session, const OrtGraph **graphs, const OrtNode **fused,
                            size_t count, OrtNodeComputeInfo **infos, OrtNode **context_nodes) {
    const ep_api *api = session->api;
    ep_record *records = (ep_record *)calloc(count, sizeof *records);
    OrtStatus *status;
    epctx_arena arena;
    size_t i;
    memset(&arena, 0, sizeof arena);
    epctx_arena_init(&arena, NULL);
    status = records ? idle_kernels(session, count, infos) : ep_no_memory(api);
    if (!status) status = join(session, records, graphs, fused, count, &arena, context_nodes);
    if (!status && api->version < EP_INITIALIZED_API) status = ep_share_written(session);
    /* After a failure ORT does not read these arrays. */
    for (i = 0; status && i < count; i++) {
        ep_kernel_release(infos[i]);
        infos[i] = NULL;
        if (context_nodes[i]) api->ort->ReleaseNode(context_nodes[i]);
        context_nodes[i] = NULL;
    }
    for (i = 0; records && i < count; i++) ep_record_free(&records[i]);
    free(records);
    epctx_arena_free(&arena);
    return status;
}

OrtStatus *ep_share_written(ep_session *session) {
    epctx_workspace *workspace = session->factory->sharing->workspace;
    epctx_error error;
    epctx_status status;
    free(session->joined);
    session->joined = NULL;
    if (!session->generate || !session->stop) return NULL;
    epctx_error_clear(&error);
    status = epctx_share_finish(workspace, NULL, session->backend.source, NULL, NULL, &error);
    /* The group has no node of ours: nothing to write. */
    return status == EPCTX_ERR_NOT_FOUND ? NULL : ep_status(session->api, status, &error);
}

void ep_share_leave(ep_session *session) {
    if (!session->joined) return;
    epctx_share_withdraw(session->factory->sharing->workspace, NULL, session->backend.source,
                         session->joined);
    free(session->joined);
    session->joined = NULL;
}
