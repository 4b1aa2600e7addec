/* load.c - EPContext nodes of a model that is opened: their binaries found again and loaded. */
#include "ep.h"

#include <stdio.h>

/* epctx_load_nodes on its way. */
typedef struct loader {
    ep_context *context;
    epctx_ort_record *records;
    epctx_node *nodes; /* the records' nodes, with their payloads */
    size_t count;
    const epctx_bound *named;     /* the node whose constants and weights are in */
    epctx_map constants, weights; /* name -> position: of the former, of the latter's lines */
} loader;

static epctx_status name_weights(loader *l, const epctx_bound *bound) {
    const epctx_graph *graph = &l->records[bound->index].graph;
    epctx_str rest = bound->weights;
    epctx_outside_weight ref;
    epctx_status status = EPCTX_OK;
    size_t i;
    if (l->named == bound) return EPCTX_OK;
    epctx_map_init(&l->constants, &l->context->arena);
    epctx_map_init(&l->weights, &l->context->arena);
    for (i = graph->initializer_count; i-- > 0 && status == EPCTX_OK;) /* the first of a name */
        status = epctx_map_put(&l->constants, graph->initializers[i].name, (uint32_t)i);
    for (i = 0; status == EPCTX_OK && epctx_outside_weight_next(&rest, &ref); i++)
        status = epctx_map_put(&l->weights, ref.name, (uint32_t)i);
    if (status == EPCTX_OK) l->named = bound;
    return status;
}

/* What stands in the place of a weight, if that is the one that was compiled: ORT may have renamed
 * it. Else (in a model of 0.2 weights are where their first readers are) the constant of its name.
 * NULL: neither. */
static const epctx_tensor *constant_for(const loader *l, const epctx_bound *bound,
                                        const epctx_outside_weight *ref) {
    const epctx_graph *graph = &l->records[bound->index].graph;
    const epctx_node *node = l->nodes ? &l->nodes[bound->index] : NULL;
    const size_t place = bound->info.input_count + epctx_map_get(&l->weights, ref->name);
    uint32_t at = EPCTX_MAP_NONE;
    if (node && place < node->input_count) at = epctx_map_get(&l->constants, node->inputs[place]);
    if (at != EPCTX_MAP_NONE &&
        epctx_outside_weight_verify(ref, &graph->initializers[at], "", NULL) == EPCTX_OK)
        return &graph->initializers[at];
    at = epctx_map_get(&l->constants, ref->name);
    return at == EPCTX_MAP_NONE ? NULL : &graph->initializers[at];
}

/* A constant that ORT has given to the node, copied: ORT promises nothing beyond Compile. */
static epctx_status weight_of(void *user, const epctx_bound *bound, const epctx_outside_weight *ref,
                              epctx_tensor *out, epctx_error *error) {
    loader *l = (loader *)user;
    epctx_arena *arena = &l->context->arena;
    const epctx_tensor *found;
    uint8_t *copy;
    int64_t *dims;
    epctx_status status = name_weights(l, bound);
    if (status != EPCTX_OK) return epctx_fail(error, status, "no memory for names");
    found = constant_for(l, bound, ref);
    if (!found) return EPCTX_ERR_NOT_FOUND; /* in the source model */
    status = epctx_outside_weight_verify(ref, found, "(inputs of the EPContext node)", error);
    if (status != EPCTX_OK) return status;
    *out = *found;
    copy = (uint8_t *)epctx_arena_alloc(arena, found->size);
    out->name = ref->name;
    out->name.data = epctx_arena_copy(arena, ref->name);
    dims = (int64_t *)epctx_arena_array(arena, (size_t)found->rank + 1, sizeof *dims);
    if (!copy || !out->name.data || !dims)
        return epctx_fail(error, EPCTX_ERR_NOMEM, "no memory for a weight");
    memcpy(copy, found->data, found->size);
    if (found->rank) memcpy(dims, found->dims, (size_t)found->rank * sizeof *dims);
    out->dims = dims;
    out->data = copy;
    return EPCTX_OK;
}

/* Whether the binary would be found in a Hugging Face cache. */
static bool is_cached(const loader *l, const epctx_node *node) {
    const ep_session *session = l->context->session;
    const char *model = ep_model_path(session, &l->records[0]);
    epctx_epnode content;
    const epctx_profile *profile = epctx_profile_of(epctx_str_of(session->backend.source));
    epctx_str folder;
    char path[EPCTX_PATH_MAX], room[EPCTX_PATH_MAX];
    return (session->path_flags & EPCTX_PATH_HUGGING_FACE) == 0 &&
           epctx_epnode_from_record(node, &content, NULL) == EPCTX_OK && content.embed_mode == 0 &&
           epctx_profile_path_base(profile, epctx_io_private(), epctx_str_of(model),
                                   session->context_path, room, &folder, NULL) == EPCTX_OK &&
           epctx_path_find(epctx_io_private(), folder, content.ep_cache_context, 0, path,
                           sizeof path, NULL) == EPCTX_ERR_PATH &&
           epctx_path_find(epctx_io_private(), folder, content.ep_cache_context,
                           EPCTX_PATH_HUGGING_FACE, path, sizeof path, NULL) == EPCTX_OK;
}

/* Appends a fix to the message, if there is one. */
static OrtStatus *load_failed(const loader *l, const epctx_node *nodes, epctx_status status,
                              const epctx_error *error) {
    const ep_session *session = l->context->session;
    OrtStatus *refusal = epctx_ort_reader_refusal(&l->context->reader);
    const char *cure = NULL;
    size_t i;
    if (refusal) return refusal; /* the application's own message */
    if (status == EPCTX_ERR_PATH && ep_model_is_hidden(session, &l->records[0]) &&
        !*session->context_path)
        cure = EP_HIDDEN;
    for (i = 0; i < l->count && !cure && status == EPCTX_ERR_PATH; i++) {
        if (is_cached(l, &nodes[i])) {
            cure = "that is a blob of a Hugging Face cache: allow it with the EP option "
                   "hugging_face_cache=1";
        }
    }
    if (!cure) return epctx_ort_load_status(session->api, status, error);
    return epctx_ort_fail(session->api, EPCTX_ERR_CONTEXT, "%s; %s", error->message, cure);
}

static OrtStatus *load_nodes(loader *l, const epctx_node *nodes, epctx_load_opts *opts) {
    ep_context *context = l->context;
    epctx_error error;
    epctx_status status;
    epctx_error_clear(&error);
    opts->profile = NULL;
    opts->path_flags = context->session->path_flags;
    opts->weight_fn = weight_of;
    opts->weight_user = l;
    status = epctx_load_nodes(&context->loaded, nodes, l->count, &context->session->backend, opts,
                              &error);
    if (status != EPCTX_OK) return load_failed(l, nodes, status, &error);
    if (context->loaded.bound_count != l->count) {
        return epctx_ort_fail(
            context->session->api, EPCTX_ERR_CONTEXT, "%zu EPContext nodes are of %s, expected %zu",
            context->loaded.bound_count, context->session->backend.source, l->count);
    }
    return NULL;
}

/* The graph's inputs come first at its node, but for weights in a model of 0.2. Which of them are
 * constants now does not matter: ORT may compute what was a value when the graph was compiled. */
static OrtStatus *run_time_inputs(loader *l, const epctx_bound *bound, const char **names,
                                  size_t *count) {
    size_t i, kept = 0;
    if (name_weights(l, bound) != EPCTX_OK) return epctx_ort_no_memory(l->context->session->api);
    for (i = 0; i < *count; i++) {
        const epctx_str name = epctx_str_of(names[i]);
        const bool other = kept >= bound->info.input_count; /* a constant without a line */
        if (epctx_map_get(&l->weights, name) == EPCTX_MAP_NONE &&
            !(other && epctx_map_get(&l->constants, name) != EPCTX_MAP_NONE))
            names[kept++] = names[i];
    }
    *count = kept;
    return NULL;
}

static OrtStatus *kernel_for_node(loader *l, size_t index, const OrtNode *fused,
                                  OrtNodeComputeInfo **out) {
    ep_context *context = l->context;
    const epctx_ort_api *api = context->session->api;
    const epctx_ort_record *record = &l->records[index];
    const epctx_bound *bound = &context->loaded.bound[index];
    const char **inputs, **outputs;
    size_t input_count, output_count;
    EPCTX_ORT_TRY(
        epctx_ort_node_names(api, record->nodes[0], false, &context->arena, &inputs, &input_count));
    EPCTX_ORT_TRY(epctx_ort_node_names(api, record->nodes[0], true, &context->arena, &outputs,
                                       &output_count));
    EPCTX_ORT_TRY(run_time_inputs(l, bound, inputs, &input_count));
    return ep_kernel_create(context, bound, (const char *const *)inputs, input_count,
                            (const char *const *)outputs, output_count, fused, out);
}

static OrtStatus *load(loader *l, const OrtGraph **graphs, const OrtNode **fused,
                       OrtNodeComputeInfo **infos) {
    ep_context *context = l->context;
    ep_session *session = context->session;
    epctx_ort_log_to log = {session->api, session->logger, session->factory->device->ep_name};
    const epctx_hooks hooks = epctx_ort_hooks(&log);
    epctx_load_opts opts;
    size_t i;
    memset(&opts, 0, sizeof opts);
    opts.hooks = &hooks;
    for (i = 0; i < l->count; i++) {
        EPCTX_ORT_TRY(epctx_ort_record_read(&l->records[i], session->api, graphs[i], fused[i]));
        epctx_buffer_init(&context->payloads[i], &ep_payload_allocator);
        EPCTX_ORT_TRY(epctx_ort_context_node_read(&l->records[i], 0, &context->payloads[i],
                                                  &context->arena, &l->nodes[i]));
    }
    opts.model_path = ep_model_path(session, &l->records[0]);
    opts.context_file_path = session->context_path;
    opts.source_model = session->source_model;
    opts.source_model_path = epctx_option_text(&session->options, EPCTX_OPTION_SOURCE_MODEL_PATH);
    opts.external_folder =
        epctx_option_text(&session->options, EPCTX_OPTION_EXTERNAL_INITIALIZERS_FOLDER);
    if (session->share) opts.workspace = ep_sharing_workspace(session->factory);
    if (session->buffers.read_fn) opts.io = &context->reader.io;
    EPCTX_ORT_TRY(load_nodes(l, l->nodes, &opts));
    for (i = 0; i < l->count; i++) EPCTX_ORT_TRY(kernel_for_node(l, i, fused[i], &infos[i]));
    return NULL;
}

OrtStatus *ep_load_graphs(ep_session *session, const OrtGraph **graphs, const OrtNode **fused,
                          size_t count, OrtNodeComputeInfo **infos) {
    loader l;
    OrtStatus *status;
    size_t i;
    memset(&l, 0, sizeof l);
    l.context = ep_context_new(session, count);
    l.records = (epctx_ort_record *)calloc(count, sizeof *l.records);
    l.nodes = (epctx_node *)calloc(count, sizeof *l.nodes);
    l.count = count;
    status = l.context && l.records && l.nodes ? load(&l, graphs, fused, infos)
                                               : epctx_ort_no_memory(session->api);
    for (i = 0; status && i < count; i++) {
        ep_kernel_release(infos[i]);
        infos[i] = NULL;
    }
    for (i = 0; l.records && i < count; i++) epctx_ort_record_free(&l.records[i]);
    ep_context_drop(l.context); /* the kernels hold it */
    free(l.records);
    free(l.nodes);
    return status;
}

OrtStatus *ep_load_made(ep_context *context, epctx_ort_record *records, size_t count) {
    epctx_load_opts opts;
    size_t made;
    loader l;
    memset(&l, 0, sizeof l);
    memset(&opts, 0, sizeof opts);
    l.context = context;
    l.records = records;
    l.count = count;
    opts.io = &context->made_io;
    return load_nodes(&l, epctx_ep_context_nodes(&context->made, &made), &opts);
}
