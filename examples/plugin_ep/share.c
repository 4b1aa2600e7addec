/* share.c - contexts that several sessions share (ep.share_ep_contexts), generated: the graphs of a
 * group of context models go into one context, and the group's last session writes it. */
#include "ep.h"

static OrtStatus *join(ep_session *session, epctx_ort_record *records, const OrtGraph **graphs,
                       const OrtNode **fused, size_t count, epctx_arena *arena,
                       OrtNode **context_nodes) {
    const epctx_ort_api *api = session->api;
    const epctx_graph **pieces =
        (const epctx_graph **)epctx_arena_array(arena, count, sizeof *pieces);
    char *path = (char *)epctx_arena_alloc(arena, EPCTX_PATH_MAX);
    const epctx_node *nodes = NULL;
    const epctx_span none = {NULL, 0};
    epctx_share_opts opts;
    epctx_error error;
    size_t i;
    if (!pieces || !path) return epctx_ort_no_memory(api);
    for (i = 0; i < count; i++) {
        EPCTX_ORT_TRY(epctx_ort_record_read(&records[i], api, graphs[i], fused[i]));
        pieces[i] = &records[i].graph;
    }
    EPCTX_ORT_TRY(ep_check_place(session, &records[0]));
    EPCTX_ORT_TRY(
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
    EPCTX_ORT_TRY(epctx_ort_status(api,
                                   epctx_share_compile(ep_sharing_workspace(session->factory),
                                                       ep_sharing_lasting(session), &opts, arena,
                                                       &nodes, &error),
                                   &error));
    session->joined = (char *)malloc(strlen(path) + 1);
    if (!session->joined) {
        epctx_share_withdraw(ep_sharing_workspace(session->factory), NULL, session->backend.source,
                             path);
        return epctx_ort_no_memory(api);
    }
    memcpy(session->joined, path, strlen(path) + 1);
    return ep_give_nodes(session, records, nodes, fused, count, none, arena, context_nodes);
}

/* Such a session cannot run: its context is not finished before the last session of the group. */
static OrtStatus *idle_kernels(ep_session *session, size_t count, OrtNodeComputeInfo **infos) {
    ep_context *context = ep_context_new(session, 0);
    OrtStatus *status = context ? NULL : epctx_ort_no_memory(session->api);
    size_t i;
    for (i = 0; i < count && !status; i++) status = ep_kernel_create_idle(context, &infos[i]);
    ep_context_drop(context); /* the kernels hold it */
    return status;
}

OrtStatus *ep_share_compile(ep_session *session, const OrtGraph **graphs, const OrtNode **fused,
                            size_t count, OrtNodeComputeInfo **infos, OrtNode **context_nodes) {
    const epctx_ort_api *api = session->api;
    epctx_ort_record *records = (epctx_ort_record *)calloc(count, sizeof *records);
    OrtStatus *status;
    epctx_arena arena;
    size_t i;
    memset(&arena, 0, sizeof arena);
    epctx_arena_init(&arena, NULL);
    status = records ? idle_kernels(session, count, infos) : epctx_ort_no_memory(api);
    if (!status) status = join(session, records, graphs, fused, count, &arena, context_nodes);
    if (!status && api->version < EP_INITIALIZED_API) status = ep_share_written(session);
    /* After a failure ORT does not read these arrays. */
    for (i = 0; status && i < count; i++) {
        ep_kernel_release(infos[i]);
        infos[i] = NULL;
        if (context_nodes[i]) api->ort->ReleaseNode(context_nodes[i]);
        context_nodes[i] = NULL;
    }
    for (i = 0; records && i < count; i++) epctx_ort_record_free(&records[i]);
    free(records);
    epctx_arena_free(&arena);
    return status;
}

OrtStatus *ep_share_written(ep_session *session) {
    epctx_workspace *workspace = ep_sharing_workspace(session->factory);
    const char *source = session->backend.source;
    epctx_error error;
    epctx_status status = EPCTX_OK;
    epctx_error_clear(&error);
    if (session->joined)
        status = epctx_share_written(workspace, NULL, source, session->joined, &error);
    free(session->joined);
    session->joined = NULL;
    if (status == EPCTX_OK && session->generate && session->stop)
        status = epctx_share_finish(workspace, NULL, source, NULL, NULL, &error);
    /* No group: its other sessions have ended it, or none of them has a node of ours. */
    return status == EPCTX_ERR_NOT_FOUND ? NULL : epctx_ort_status(session->api, status, &error);
}

void ep_share_leave(ep_session *session) {
    if (!session->joined) return;
    epctx_share_withdraw(ep_sharing_workspace(session->factory), NULL, session->backend.source,
                         session->joined);
    free(session->joined);
    session->joined = NULL;
}
