/* context.c - context binaries and EPContext nodes: built and written when a context model is
 * generated, found again and loaded when one is opened. */
#include "ep.h"

#include <inttypes.h>
#include <stdio.h>

#define PAYLOAD_ALIGNMENT 64u

/* ---------------------------------------------------------------- contexts */

/* A payload in memory is aligned like one in a mapped file. */
static void *aligned_alloc_fn(void *user, size_t size) {
    uint8_t *block, *aligned;
    (void)user;
    if (size > SIZE_MAX - PAYLOAD_ALIGNMENT - sizeof(void *)) return NULL;
    block = (uint8_t *)malloc(size + PAYLOAD_ALIGNMENT + sizeof(void *));
    if (!block) return NULL;
    aligned = block + sizeof(void *);
    aligned += (PAYLOAD_ALIGNMENT - (uintptr_t)aligned % PAYLOAD_ALIGNMENT) % PAYLOAD_ALIGNMENT;
    memcpy(aligned - sizeof(void *), &block, sizeof block);
    return aligned;
}

static void aligned_free_fn(void *user, void *memory) {
    uint8_t *block;
    (void)user;
    if (!memory) return;
    memcpy(&block, (uint8_t *)memory - sizeof(void *), sizeof block);
    free(block);
}

const epctx_allocator ep_payload_allocator = {NULL, aligned_alloc_fn, aligned_free_fn};

/* The binary just compiled. */
static epctx_status map_made(void *user, const char *root, const char *name, bool copy,
                             epctx_mapping *out, epctx_error *error) {
    const epctx_span made = epctx_ep_binary(&((ep_context *)user)->made);
    (void)root;
    (void)name;
    (void)copy;
    (void)error;
    memset(out, 0, sizeof *out);
    out->data = made.data;
    out->size = made.size;
    return EPCTX_OK;
}

static void unmap_made(void *user, epctx_mapping *mapping) {
    (void)user;
    (void)mapping;
}

ep_context *ep_context_new(ep_session *session, size_t count) {
    ep_context *context = (ep_context *)calloc(1, sizeof *context);
    if (!context) return NULL;
    context->payloads = (epctx_buffer *)calloc(count + 1, sizeof *context->payloads);
    if (!context->payloads) {
        free(context);
        return NULL;
    }
    context->payload_count = count;
    context->session = session;
    context->references = 1;
    context->made_io.user = context;
    context->made_io.map_fn = map_made;
    context->made_io.unmap_fn = unmap_made;
    ep_reader_init(&context->reader, session->api, &session->buffers);
    epctx_arena_init(&context->arena, NULL);
    return context;
}

void ep_context_drop(ep_context *context) {
    size_t i;
    if (!context || --context->references > 0) return;
    epctx_unload(&context->loaded);
    ep_reader_free(&context->reader);
    for (i = 0; i < context->payload_count; i++) epctx_buffer_free(&context->payloads[i]);
    epctx_ep_end(&context->made);
    epctx_arena_free(&context->arena);
    free(context->payloads);
    free(context);
}

/* ------------------------------------------------------------------ loading */

static bool is_hidden(const ep_session *session, const char *model_path) {
    return ep_path_is_hidden(
        model_path,
        epctx_option_text(&session->options, EPCTX_OPTION_EXTERNAL_INITIALIZERS_FOLDER));
}

const char *ep_model_path(const ep_session *session, const ep_record *record) {
    return is_hidden(session, record->model_path) ? "" : record->model_path;
}

#define HIDDEN \
    "session.model_external_initializers_file_folder_path is set, and with it ONNX Runtime does " \
    "not tell where the model is: set ep.context_file_path"

/* epctx_load_nodes on its way. */
typedef struct loader {
    ep_context *context;
    ep_record *records;
    epctx_node *nodes; /* the records' nodes, with their payloads */
    size_t count;
    const epctx_bound *named; /* the node whose constants are in */
    epctx_map names;
} loader;

static epctx_status name_constants(loader *l, const epctx_bound *bound, const epctx_graph *graph) {
    size_t i;
    epctx_map_init(&l->names, &l->context->arena);
    l->named = bound;
    for (i = graph->initializer_count; i-- > 0;) /* the first of a name counts */
        if (epctx_map_put(&l->names, graph->initializers[i].name, (uint32_t)i) != EPCTX_OK)
            return EPCTX_ERR_NOMEM;
    return EPCTX_OK;
}

/* A constant that ORT has given to the node, copied: ORT promises nothing beyond Compile. */
static epctx_status weight_of(void *user, const epctx_bound *bound, const epctx_weight_ref *ref,
                              epctx_tensor *out, epctx_error *error) {
    loader *l = (loader *)user;
    const epctx_graph *graph = &l->records[bound->index].graph;
    epctx_arena *arena = &l->context->arena;
    const epctx_tensor *found;
    uint8_t *copy;
    int64_t *dims;
    uint32_t at;
    epctx_status status = EPCTX_OK;
    if (l->named != bound) status = name_constants(l, bound, graph);
    if (status != EPCTX_OK) return epctx_fail(error, status, "no memory for names");
    at = epctx_map_get(&l->names, ref->name);
    if (at == EPCTX_MAP_NONE) return EPCTX_ERR_NOT_FOUND; /* in the source model */
    found = &graph->initializers[at];
    status = epctx_weight_verify(ref, found, "(inputs of the EPContext node)", error);
    if (status != EPCTX_OK) return status;
    *out = *found;
    copy = (uint8_t *)epctx_arena_alloc(arena, found->size);
    out->name.data = epctx_arena_copy(arena, found->name);
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
    epctx_str folder;
    char path[EPCTX_PATH_MAX];
    return (session->path_flags & EPCTX_PATH_HUGGING_FACE) == 0 &&
           epctx_epnode_from_record(node, &content, NULL) == EPCTX_OK && content.embed_mode == 0 &&
           epctx_path_base(epctx_str_of(model), epctx_str_of(session->context_path), &folder,
                           NULL) == EPCTX_OK &&
           epctx_path_find(epctx_io_private(), folder, content.ep_cache_context, 0, path,
                           sizeof path, NULL) == EPCTX_ERR_PATH &&
           epctx_path_find(epctx_io_private(), folder, content.ep_cache_context,
                           EPCTX_PATH_HUGGING_FACE, path, sizeof path, NULL) == EPCTX_OK;
}

/* Appends a fix to the message, if there is one. */
static OrtStatus *load_failed(const loader *l, const epctx_node *nodes, epctx_status status,
                              const epctx_error *error) {
    const ep_session *session = l->context->session;
    OrtStatus *refusal = ep_reader_refusal(&l->context->reader);
    const char *cure = NULL;
    size_t i;
    if (refusal) return refusal; /* the application's own message */
    if (status == EPCTX_ERR_PATH && is_hidden(session, l->records[0].model_path) &&
        !*session->context_path)
        cure = HIDDEN;
    for (i = 0; i < l->count && !cure && status == EPCTX_ERR_PATH; i++) {
        if (is_cached(l, &nodes[i])) {
            cure = "that is a blob of a Hugging Face cache: allow it with the EP option "
                   "hugging_face_cache=1";
        }
    }
    if (!cure) return ep_load_status(session->api, status, error);
    return ep_fail(session->api, EPCTX_ERR_CONTEXT, "%s; %s", error->message, cure);
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
        return ep_fail(context->session->api, EPCTX_ERR_CONTEXT,
                       "%zu EPContext nodes are of %s, expected %zu", context->loaded.bound_count,
                       context->session->backend.source, l->count);
    }
    return NULL;
}

/* A weightless node has all constants of its graph as inputs besides those that the graph was
 * compiled with. Of another node constants are among the latter: ORT may compute now what was a
 * value when the graph was compiled. */
static OrtStatus *without_weights(ep_context *context, const epctx_graph *graph,
                                  size_t compiled_count, const char **names, size_t *count) {
    epctx_map weights;
    size_t i, kept = 0;
    if (*count <= compiled_count) return NULL;
    epctx_map_init(&weights, &context->arena);
    for (i = 0; i < graph->initializer_count; i++)
        if (epctx_map_put(&weights, graph->initializers[i].name, 1) != EPCTX_OK)
            return ep_no_memory(context->session->api);
    for (i = 0; i < *count; i++)
        if (epctx_map_get(&weights, epctx_str_of(names[i])) == EPCTX_MAP_NONE)
            names[kept++] = names[i];
    *count = kept;
    return NULL;
}

static OrtStatus *kernel_for_node(const loader *l, size_t index, const OrtNode *fused,
                                  OrtNodeComputeInfo **out) {
    ep_context *context = l->context;
    const ep_api *api = context->session->api;
    const ep_record *record = &l->records[index];
    const epctx_bound *bound = &context->loaded.bound[index];
    const char **inputs, **outputs;
    size_t input_count, output_count;
    EP_TRY(ep_node_names(api, record->nodes[0], false, &context->arena, &inputs, &input_count));
    EP_TRY(ep_node_names(api, record->nodes[0], true, &context->arena, &outputs, &output_count));
    EP_TRY(without_weights(context, &record->graph, bound->info.input_count, inputs, &input_count));
    return ep_kernel_create(context, bound, (const char *const *)inputs, input_count,
                            (const char *const *)outputs, output_count, fused, out);
}

static OrtStatus *load(loader *l, const OrtGraph **graphs, const OrtNode **fused,
                       OrtNodeComputeInfo **infos) {
    ep_context *context = l->context;
    ep_session *session = context->session;
    epctx_load_opts opts;
    size_t i;
    memset(&opts, 0, sizeof opts);
    for (i = 0; i < l->count; i++) {
        EP_TRY(ep_record_read(&l->records[i], session->api, graphs[i], fused[i]));
        epctx_buffer_init(&context->payloads[i], &ep_payload_allocator);
        EP_TRY(ep_context_node_read(&l->records[i], 0, &context->payloads[i], &context->arena,
                                    &l->nodes[i]));
    }
    opts.model_path = ep_model_path(session, &l->records[0]);
    opts.context_file_path = session->context_path;
    opts.source_model = session->source_model;
    opts.source_model_path = epctx_option_text(&session->options, EPCTX_OPTION_SOURCE_MODEL_PATH);
    opts.external_folder =
        epctx_option_text(&session->options, EPCTX_OPTION_EXTERNAL_INITIALIZERS_FOLDER);
    if (session->share) opts.workspace = ep_sharing_workspace(session->factory);
    if (session->buffers.read_fn) opts.io = &context->reader.io;
    EP_TRY(load_nodes(l, l->nodes, &opts));
    for (i = 0; i < l->count; i++) EP_TRY(kernel_for_node(l, i, fused[i], &infos[i]));
    return NULL;
}

OrtStatus *ep_load_graphs(ep_session *session, const OrtGraph **graphs, const OrtNode **fused,
                          size_t count, OrtNodeComputeInfo **infos) {
    loader l;
    OrtStatus *status;
    size_t i;
    memset(&l, 0, sizeof l);
    l.context = ep_context_new(session, count);
    l.records = (ep_record *)calloc(count, sizeof *l.records);
    l.nodes = (epctx_node *)calloc(count, sizeof *l.nodes);
    l.count = count;
    status = l.context && l.records && l.nodes ? load(&l, graphs, fused, infos)
                                               : ep_no_memory(session->api);
    for (i = 0; status && i < count; i++) {
        ep_kernel_release(infos[i]);
        infos[i] = NULL;
    }
    for (i = 0; l.records && i < count; i++) ep_record_free(&l.records[i]);
    ep_context_drop(l.context); /* the kernels hold it */
    free(l.records);
    free(l.nodes);
    return status;
}

/* -------------------------------------------------------------- generation */

/* Where the context binary goes. */
typedef struct binary_file {
    char path[EPCTX_PATH_MAX];
    char name[EPCTX_PATH_MAX]; /* as the nodes call it: relative to the context model */
} binary_file;

OrtStatus *ep_check_place(const ep_session *session, const ep_record *record) {
    /* The compile API may write into memory, and the application take the binary. */
    const bool alone = session->compile_only && (session->embed || session->buffers.write_fn);
    if (!session->generate || *session->context_path || alone ||
        !is_hidden(session, record->model_path))
        return NULL;
    return ep_fail(session->api, EPCTX_ERR_ARG, "%s", HIDDEN);
}

OrtStatus *ep_context_model_path(const ep_session *session, const char *model_path, char *out,
                                 size_t capacity) {
    const ep_api *api = session->api;
    epctx_error error;
    epctx_error_clear(&error);
    if (*session->context_path) {
        const size_t size = strlen(session->context_path);
        if (size >= capacity)
            return ep_fail(api, EPCTX_ERR_LIMIT, "ep.context_file_path is too long");
        memcpy(out, session->context_path, size + 1);
        return NULL;
    }
    if (!*model_path) {
        return ep_fail(api, EPCTX_ERR_ARG,
                       "the context binary needs a folder and the model came from memory: set "
                       "ep.context_file_path, or ep.context_embed_mode=1");
    }
    return ep_status(api, epctx_path_context_model(epctx_str_of(model_path), out, capacity, &error),
                     &error);
}

/* Tries to make a file before anything is compiled: a folder that is missing or not writable shows
 * up now and not after minutes. */
static OrtStatus *binary_place(const ep_session *session, const char *model_path,
                               binary_file *out) {
    const ep_api *api = session->api;
    const epctx_io *io = epctx_io_files();
    char context_model[EPCTX_PATH_MAX];
    epctx_str path;
    epctx_error error;
    epctx_io_file probe;
    epctx_error_clear(&error);
    if (!*session->context_path && !*model_path && session->buffers.write_fn) {
        path = epctx_str_of("model_ctx.onnx"); /* a name without a folder */
    } else {
        EP_TRY(ep_context_model_path(session, model_path, context_model, sizeof context_model));
        path = epctx_str_of(context_model);
    }
    EP_TRY(ep_status(api,
                     epctx_path_binary(path, epctx_str_of(session->backend.short_name), out->name,
                                       sizeof out->name, &error),
                     &error));
    EP_TRY(ep_status(api,
                     epctx_path_join(epctx_path_folder(path), epctx_str_of(out->name), out->path,
                                     sizeof out->path, &error),
                     &error));
    if (session->buffers.write_fn) return NULL; /* the application has its own place */
    EP_TRY(ep_status(api, io->create_fn(io->user, NULL, out->path, &probe, &error), &error));
    io->close_fn(io->user, &probe);
    return NULL;
}

/* The binary gets its name before ORT writes the model. A crash in between leaves at worst the
 * model of an older generation beside it, and its nodes' graph hashes do not match this binary. */
static OrtStatus *binary_write(const ep_session *session, const binary_file *binary,
                               epctx_span bytes) {
    epctx_error error;
    if (session->buffers.write_fn) {
        return session->buffers.write_fn(session->buffers.write_state, binary->name, bytes.data,
                                         bytes.size);
    }
    return ep_status(session->api,
                     epctx_write_bytes(NULL, binary->path, bytes.data, bytes.size, NULL, &error),
                     &error);
}

/* Of the model that a fused node is cut out of. */
static uint64_t model_hash(const ep_api *api, const OrtNode *fused) {
    const char *name = NULL;
    OrtStatus *status = api->ort->Node_GetName(fused, &name);
    if (status) api->ort->ReleaseStatus(status);
    /* ORT puts a hash of the model and a number into it. */
    return name ? epctx_hash(name, strlen(name), 0) | 1 : 1;
}

static epctx_str weights_text(const epctx_node *node) {
    const epctx_attr *attr = epctx_node_attr(node, EPCTX_WEIGHTS_ATTR);
    return attr && attr->type == EPCTX_ATTR_STRING ? attr->s : epctx_str_of(NULL);
}

/* All pieces into one context, and the nodes that stand for them. */
static OrtStatus *compile_pieces(ep_context *context, const ep_record *records, size_t count,
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
    if (status == EPCTX_OK && epctx_ep_binary(&context->made).size == 0) {
        status = epctx_fail(&error, EPCTX_ERR_BACKEND, "finish_fn of %s makes an empty binary",
                            session->backend.source);
    }
    return ep_status(session->api, status, &error);
}

static OrtStatus *names_of(ep_context *context, const epctx_value *values, size_t count,
                           const char ***out) {
    size_t i;
    *out = (const char **)epctx_arena_array(&context->arena, count + 1, sizeof **out);
    for (i = 0; *out && i < count; i++) {
        (*out)[i] = epctx_arena_copy(&context->arena, values[i].name);
        if (!(*out)[i]) return ep_no_memory(context->session->api);
    }
    return *out ? NULL : ep_no_memory(context->session->api);
}

/* If this session can run, loads the context before writing anything. */
static OrtStatus *kernels_for_pieces(ep_context *context, ep_record *records, size_t count,
                                     const OrtNode **fused, OrtNodeComputeInfo **infos) {
    loader l;
    epctx_load_opts opts;
    size_t i, made;
    memset(&l, 0, sizeof l);
    memset(&opts, 0, sizeof opts);
    l.context = context;
    l.records = records;
    l.count = count;
    opts.io = &context->made_io;
    EP_TRY(load_nodes(&l, epctx_ep_context_nodes(&context->made, &made), &opts));
    for (i = 0; i < count; i++) {
        const epctx_graph *graph = &records[i].graph;
        const char **inputs, **outputs;
        EP_TRY(names_of(context, graph->inputs, graph->input_count, &inputs));
        EP_TRY(names_of(context, graph->outputs, graph->output_count, &outputs));
        EP_TRY(ep_kernel_create(context, &context->loaded.bound[i], (const char *const *)inputs,
                                graph->input_count, (const char *const *)outputs,
                                graph->output_count, fused[i], &infos[i]));
    }
    return NULL;
}

/* The nodes that ORT writes in the place of the fused ones. */
OrtStatus *ep_give_nodes(const ep_session *session, const ep_record *records,
                         const epctx_node *nodes, const OrtNode **fused, size_t count,
                         epctx_span payload, epctx_arena *arena, OrtNode **out) {
    size_t i;
    for (i = 0; i < count; i++) {
        epctx_epnode node;
        epctx_error error;
        epctx_error_clear(&error);
        EP_TRY(ep_status(session->api, epctx_epnode_from_record(&nodes[i], &node, &error), &error));
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
        if (node.onnx_model_filename.size) node.present |= 1u << EPCTX_EP_ONNX_MODEL_FILENAME;
        EP_TRY(ep_context_node_create(session->api, fused[i], &node, weights_text(&nodes[i]), arena,
                                      &out[i]));
    }
    return NULL;
}

static OrtStatus *build(ep_session *session, ep_context *context, ep_record *records,
                        binary_file *binary, const OrtGraph **graphs, const OrtNode **fused,
                        size_t count, OrtNodeComputeInfo **infos, OrtNode **context_nodes) {
    epctx_span bytes;
    const epctx_node *nodes;
    size_t i, made;
    for (i = 0; i < count; i++)
        EP_TRY(ep_record_read(&records[i], session->api, graphs[i], fused[i]));
    EP_TRY(ep_check_place(session, &records[0]));
    if (session->generate && !session->embed)
        EP_TRY(binary_place(session, ep_model_path(session, &records[0]), binary));
    EP_TRY(compile_pieces(context, records, count, fused, binary->name));
    if (!session->compile_only) EP_TRY(kernels_for_pieces(context, records, count, fused, infos));
    for (i = 0; session->compile_only && i < count; i++)
        EP_TRY(ep_kernel_create_idle(context, &infos[i]));
    if (!session->generate) return NULL;
    bytes = epctx_ep_binary(&context->made);
    nodes = epctx_ep_context_nodes(&context->made, &made);
    EP_TRY(ep_give_nodes(session, records, nodes, fused, count, bytes, &context->arena,
                         context_nodes));
    if (!session->embed) EP_TRY(binary_write(session, binary, bytes));
    /* Nothing will run: ORT writes the model without a second copy of the binary beside it. */
    if (session->compile_only) epctx_ep_end(&context->made);
    return NULL;
}

OrtStatus *ep_compile_graphs(ep_session *session, const OrtGraph **graphs, const OrtNode **fused,
                             size_t count, OrtNodeComputeInfo **infos, OrtNode **context_nodes) {
    ep_record *records = (ep_record *)calloc(count, sizeof *records);
    binary_file *binary = (binary_file *)calloc(1, sizeof *binary);
    ep_context *context = ep_context_new(session, 0);
    OrtStatus *status =
        records && binary && context
            ? build(session, context, records, binary, graphs, fused, count, infos, context_nodes)
            : ep_no_memory(session->api);
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
    for (i = 0; records && i < count; i++) ep_record_free(&records[i]);
    ep_context_drop(context); /* the kernels hold it */
    free(binary);
    free(records);
    return status;
}
