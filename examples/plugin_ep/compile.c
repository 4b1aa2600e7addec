/* compile.c - ordinary graphs: compiled into one context binary, which is written, with the
 * EPContext nodes that refer to it, when a context model is generated. */
#include "ep.h"

/* Where the context binary goes. */
typedef struct ep_binary_file {
    char path[EPCTX_PATH_MAX];
    char name[EPCTX_PATH_MAX]; /* as the nodes call it: relative to the context model */
    char context_model[EPCTX_PATH_MAX];
    epctx_file_info written; /* of a new file; none: it replaced one, or is the application's */
} binary_file;

OrtStatus *ep_check_place(const ep_session *session, const epctx_ort_record *record) {
    /* The compile API may write into memory, and the application take the binary. */
    const bool alone = session->compile_only && (session->embed || session->buffers.write_fn);
    if (!session->generate || *session->context_path || alone ||
        !ep_model_is_hidden(session, record))
        return NULL;
    return epctx_ort_fail(session->api, EPCTX_ERR_ARG, "%s", EP_HIDDEN);
}

OrtStatus *ep_context_model_path(const ep_session *session, const char *model_path, char *out,
                                 size_t capacity) {
    const epctx_ort_api *api = session->api;
    epctx_error error;
    epctx_error_clear(&error);
    if (*session->context_path) {
        const size_t size = strlen(session->context_path);
        if (size >= capacity)
            return epctx_ort_fail(api, EPCTX_ERR_LIMIT, "ep.context_file_path is too long");
        memcpy(out, session->context_path, size + 1);
        return NULL;
    }
    if (!*model_path) {
        return epctx_ort_fail(
            api, EPCTX_ERR_ARG,
            "the context binary needs a folder and the model came from memory: set "
            "ep.context_file_path, or ep.context_embed_mode=1");
    }
    return epctx_ort_status(
        api, epctx_path_context_model(epctx_str_of(model_path), out, capacity, &error), &error);
}

/* Tries to make a file before anything is compiled: a folder that is missing or not writable shows
 * up now and not after minutes. */
static OrtStatus *binary_place(const ep_session *session, const char *model_path,
                               binary_file *out) {
    const epctx_ort_api *api = session->api;
    const epctx_io *io = epctx_io_files();
    epctx_str path;
    epctx_error error;
    epctx_io_file probe;
    epctx_error_clear(&error);
    if (!*session->context_path && !*model_path && session->buffers.write_fn) {
        path = epctx_str_of("model_ctx.onnx"); /* a name without a folder */
    } else {
        EPCTX_ORT_TRY(ep_context_model_path(session, model_path, out->context_model,
                                            sizeof out->context_model));
        path = epctx_str_of(out->context_model);
    }
    EPCTX_ORT_TRY(
        epctx_ort_status(api,
                         epctx_path_binary(path, epctx_str_of(session->backend.short_name),
                                           out->name, sizeof out->name, &error),
                         &error));
    EPCTX_ORT_TRY(epctx_ort_status(api,
                                   epctx_path_join(epctx_path_folder(path), epctx_str_of(out->name),
                                                   out->path, sizeof out->path, &error),
                                   &error));
    if (session->buffers.write_fn) return NULL; /* the application has its own place */
    EPCTX_ORT_TRY(
        epctx_ort_status(api, io->create_fn(io->user, NULL, out->path, &probe, &error), &error));
    io->close_fn(io->user, &probe);
    return NULL;
}

/* The binary gets its name before ORT writes the model. A crash in between leaves at worst the
 * model of an older generation beside it, and its nodes' graph hashes do not match this binary. */
static OrtStatus *binary_write(const ep_session *session, binary_file *binary, epctx_span bytes) {
    const epctx_io *io = epctx_io_files();
    epctx_error error;
    epctx_file_info before;
    epctx_status status;
    if (session->buffers.write_fn) {
        return session->buffers.write_fn(session->buffers.write_state, binary->name, bytes.data,
                                         bytes.size);
    }
    status = io->stat_fn(io->user, binary->path, &before, &error);
    if (status == EPCTX_OK)
        status = epctx_write_bytes(NULL, binary->path, bytes.data, bytes.size, NULL, &error);
    if (status == EPCTX_OK && before.kind == EPCTX_FILE_NONE)
        status = io->stat_fn(io->user, binary->path, &binary->written, &error);
    return epctx_ort_status(session->api, status, &error);
}

void ep_binary_confirm(ep_session *session) {
    free(session->unconfirmed);
    session->unconfirmed = NULL;
}

/* Where a context model is nobody knows whose binary that is. Failures are of no use to anybody:
 * the session has one already. */
void ep_binary_withdraw(ep_session *session) {
    const epctx_io *io = epctx_io_files();
    const binary_file *binary = session->unconfirmed;
    epctx_file_info model, now;
    epctx_error error;
    if (binary && io->stat_fn(io->user, binary->context_model, &model, &error) == EPCTX_OK &&
        io->stat_fn(io->user, binary->path, &now, &error) == EPCTX_OK &&
        model.kind == EPCTX_FILE_NONE && epctx_file_same(&now, &binary->written))
        (void)io->remove_fn(io->user, NULL, binary->path, &error);
    ep_binary_confirm(session);
}

/* Of the model that a fused node is cut out of. */
static uint64_t model_hash(const epctx_ort_api *api, const OrtNode *fused) {
    const char *name = NULL;
    OrtStatus *status = api->ort->Node_GetName(fused, &name);
    if (status) api->ort->ReleaseStatus(status);
    /* ORT puts a hash of the model and a number into it. */
    return name ? epctx_hash(name, strlen(name), 0) | 1 : 1;
}

/* All pieces into one context, and the nodes that stand for them. */
static OrtStatus *compile_pieces(ep_context *context, const epctx_ort_record *records, size_t count,
                                 const OrtNode **fused, const char *binary) {
    const ep_session *session = context->session;
    epctx_ep_opts opts;
    epctx_error error;
    epctx_status status;
    size_t i;
    memset(&opts, 0, sizeof opts);
    opts.name_prefix = session->generate ? session->prefix : "";
    opts.model_hash = model_hash(session->api, fused[0]);
    opts.binary = *binary ? binary : "context.bin"; /* not used in any model */
    opts.prepare_only = session->compile_only;
    opts.weightless = session->weightless;
    opts.allocator = &ep_payload_allocator;
    epctx_error_clear(&error);
    status =
        epctx_ep_begin(&context->made, &session->backend, &opts, count, &context->arena, &error);
    for (i = 0; i < count && status == EPCTX_OK; i++)
        status = epctx_ep_compile(&context->made, &records[i].graph, &error);
    if (status == EPCTX_OK) status = epctx_ep_finish(&context->made, &error);
    return epctx_ort_status(session->api, status, &error);
}

static OrtStatus *names_of(ep_context *context, const epctx_value *values, size_t count,
                           const char ***out) {
    size_t i;
    *out = (const char **)epctx_arena_array(&context->arena, count + 1, sizeof **out);
    for (i = 0; *out && i < count; i++) {
        (*out)[i] = epctx_arena_copy(&context->arena, values[i].name);
        if (!(*out)[i]) return epctx_ort_no_memory(context->session->api);
    }
    return *out ? NULL : epctx_ort_no_memory(context->session->api);
}

/* If this session can run, loads the context before writing anything. */
static OrtStatus *kernels_for_pieces(ep_context *context, epctx_ort_record *records, size_t count,
                                     const OrtNode **fused, OrtNodeComputeInfo **infos) {
    size_t i;
    EPCTX_ORT_TRY(ep_load_made(context, records, count));
    for (i = 0; i < count; i++) {
        const epctx_graph *graph = &records[i].graph;
        const char **inputs, **outputs;
        EPCTX_ORT_TRY(names_of(context, graph->inputs, graph->input_count, &inputs));
        EPCTX_ORT_TRY(names_of(context, graph->outputs, graph->output_count, &outputs));
        EPCTX_ORT_TRY(ep_kernel_create(
            context, &context->loaded.bound[i], (const char *const *)inputs, graph->input_count,
            (const char *const *)outputs, graph->output_count, fused[i], &infos[i]));
    }
    return NULL;
}

/* The nodes that ORT writes in the place of the fused ones. */
OrtStatus *ep_give_nodes(const ep_session *session, const epctx_ort_record *records,
                         const epctx_node *nodes, const OrtNode **fused, size_t count,
                         epctx_span payload, epctx_arena *arena, OrtNode **out) {
    /* ORT gives a weightless node its weights as inputs. What the EP has left out stays out. */
    const epctx_ort_ends ends = session->weightless == EPCTX_WEIGHTLESS_NONE ? EPCTX_ORT_ENDS_RECORD
                                : session->backend.node_fn ? EPCTX_ORT_ENDS_WEIGHTS
                                                           : EPCTX_ORT_ENDS_FUSED;
    size_t i;
    for (i = 0; i < count; i++) {
        const epctx_node own = epctx_ort_context_node_own(&nodes[i]);
        epctx_epnode node;
        epctx_error error;
        epctx_error_clear(&error);
        EPCTX_ORT_TRY(epctx_ort_status(session->api,
                                       epctx_epnode_from_record(&nodes[i], &node, &error), &error));
        if (session->embed) {
            node.embed_mode = 1;
            node.ep_cache_context = epctx_str_of(NULL);
        }
        if (session->embed && node.main_context) {
            node.ep_cache_context.data = (const char *)payload.data;
            node.ep_cache_context.size = payload.size;
        }
        node.onnx_model_filename =
            epctx_path_file(epctx_str_of(ep_model_path(session, &records[i])));
        EPCTX_ORT_TRY(epctx_ort_context_node_create(session->api, fused[i], &own, &node, ends,
                                                    arena, &out[i]));
    }
    return NULL;
}

static OrtStatus *build(ep_session *session, ep_context *context, epctx_ort_record *records,
                        binary_file *binary, const OrtGraph **graphs, const OrtNode **fused,
                        size_t count, OrtNodeComputeInfo **infos, OrtNode **context_nodes) {
    epctx_span bytes;
    const epctx_node *nodes;
    size_t i, made;
    for (i = 0; i < count; i++)
        EPCTX_ORT_TRY(epctx_ort_record_read(&records[i], session->api, graphs[i], fused[i]));
    EPCTX_ORT_TRY(ep_check_place(session, &records[0]));
    if (session->generate && !session->embed)
        EPCTX_ORT_TRY(binary_place(session, ep_model_path(session, &records[0]), binary));
    EPCTX_ORT_TRY(compile_pieces(context, records, count, fused, binary->name));
    if (!session->compile_only)
        EPCTX_ORT_TRY(kernels_for_pieces(context, records, count, fused, infos));
    for (i = 0; session->compile_only && i < count; i++)
        EPCTX_ORT_TRY(ep_kernel_create_idle(context, &infos[i]));
    if (!session->generate) return NULL;
    bytes = epctx_ep_binary(&context->made);
    nodes = epctx_ep_context_nodes(&context->made, &made);
    EPCTX_ORT_TRY(ep_give_nodes(session, records, nodes, fused, count, bytes, &context->arena,
                                context_nodes));
    if (!session->embed) EPCTX_ORT_TRY(binary_write(session, binary, bytes));
    /* Nothing will run: ORT writes the model without a second copy of the binary beside it. */
    if (session->compile_only) epctx_ep_end(&context->made);
    return NULL;
}

OrtStatus *ep_compile_graphs(ep_session *session, const OrtGraph **graphs, const OrtNode **fused,
                             size_t count, OrtNodeComputeInfo **infos, OrtNode **context_nodes) {
    epctx_ort_record *records = (epctx_ort_record *)calloc(count, sizeof *records);
    binary_file *binary = (binary_file *)calloc(1, sizeof *binary);
    ep_context *context = ep_context_new(session, 0);
    OrtStatus *status =
        records && binary && context
            ? build(session, context, records, binary, graphs, fused, count, infos, context_nodes)
            : epctx_ort_no_memory(session->api);
    size_t i;
    /* After a failure ORT does not read these arrays. */
    for (i = 0; status && i < count; i++) {
        ep_kernel_release(infos[i]);
        infos[i] = NULL;
        if (session->generate && context_nodes[i]) {
            session->api->ort->ReleaseNode(context_nodes[i]);
            context_nodes[i] = NULL;
        }
    }
    for (i = 0; records && i < count; i++) epctx_ort_record_free(&records[i]);
    ep_context_drop(context);   /* the kernels hold it */
    ep_binary_confirm(session); /* of an earlier call */
    if (!status && session->api->version >= EP_INITIALIZED_API &&
        binary->written.kind != EPCTX_FILE_NONE)
        session->unconfirmed = binary;
    else
        free(binary);
    free(records);
    return status;
}
