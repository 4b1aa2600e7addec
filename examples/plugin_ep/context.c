/* context.c - context binaries and EPContext nodes: built and written when a context model is
 * generated, found again and loaded when one is opened. */
#include "ep.h"

#include <inttypes.h>
#include <stdio.h>

#define PAYLOAD_ALIGNMENT 64u

/* ---------------------------------------------------------------- contexts */

/* A payload in memory is as aligned as one in a mapped file may be expected to be. */
static void *aligned_alloc_fn(void *user, size_t size)
{
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

static void aligned_free_fn(void *user, void *memory)
{
    uint8_t *block;
    (void)user;
    if (!memory) return;
    memcpy(&block, (uint8_t *)memory - sizeof(void *), sizeof block);
    free(block);
}

ep_context *ep_context_new(ep_session *session)
{
    const epctx_allocator allocator = {NULL, aligned_alloc_fn, aligned_free_fn};
    ep_context *context = (ep_context *)calloc(1, sizeof *context);
    if (!context) return NULL;
    context->session = session;
    context->references = 1;
    epctx_arena_init(&context->arena, NULL);
    epctx_buffer_init(&context->bytes, &allocator);
    return context;
}

void ep_context_drop(ep_context *context)
{
    const epctx_backend *backend;
    if (!context || --context->references > 0) return;
    backend = &context->session->backend;
    ep_share_give(context);
    if (context->handle) backend->unload_fn(backend->self, context->handle);
    if (context->mapped) epctx_io_private()->unmap_fn(epctx_io_private()->user, &context->mapping);
    ep_bytes_free(&context->given);
    epctx_buffer_free(&context->bytes);
    epctx_ep_end(&context->made);
    epctx_arena_free(&context->arena);
    free(context->path);
    free(context);
}

static OrtStatus *context_load(ep_context *context)
{
    const epctx_backend *backend = &context->session->backend;
    epctx_span binary;
    epctx_error error;
    epctx_status status;
    binary = epctx_ep_binary(&context->made);
    if (binary.size == 0) {
        binary.data = context->bytes.size ? context->bytes.data : context->mapping.data;
        binary.size = context->bytes.size ? context->bytes.size : context->mapping.size;
    }
    epctx_error_clear(&error);
    status = backend->load_fn(backend->self, binary, &context->handle, &error);
    if (status != EPCTX_OK) {
        context->handle = NULL;
        if (context->path) epctx_blame(&error, context->path, NULL, NULL);
    }
    return ep_load_status(context->session->api, status, &error);
}

/* --------------------------------------------------------- EPContext nodes */

static OrtStatus *make_attr(const ep_api *api, const epctx_attr *attr, OrtOpAttr **out)
{
    const char *name = attr->name.data; /* a literal of epctx.h: terminated */
    if (attr->type == EPCTX_ATTR_INT) {
        return api->ort->CreateOpAttr(name, &attr->i, (int)sizeof attr->i, ORT_OP_ATTR_INT, out);
    }
    if (attr->s.size > INT32_MAX) {
        return ep_fail(api, EPCTX_ERR_LIMIT,
                       "%s is %zu bytes and an attribute holds less than 2 GiB: use "
                       "ep.context_embed_mode=0",
                       name, attr->s.size);
    }
    return api->ort->CreateOpAttr(name, attr->s.data, (int)attr->s.size, ORT_OP_ATTR_STRING, out);
}

OrtStatus *ep_context_node_create(const ep_api *api, const OrtNode *fused, const epctx_epnode *node,
                                  epctx_str weights, epctx_arena *arena, OrtNode **out)
{
    epctx_attr attrs[EPCTX_EP_ATTR_COUNT + 1];
    OrtOpAttr *made[EPCTX_EP_ATTR_COUNT + 1] = {NULL};
    size_t count = epctx_epnode_attrs(node, attrs);
    const char **inputs, **outputs, *name = NULL;
    size_t input_count, output_count, i;
    OrtStatus *status = NULL;
    EP_TRY(api->ort->Node_GetName(fused, &name));
    EP_TRY(ep_node_names(api, fused, false, arena, &inputs, &input_count));
    EP_TRY(ep_node_names(api, fused, true, arena, &outputs, &output_count));
    if (weights.size > 0) {
        memset(&attrs[count], 0, sizeof attrs[count]);
        attrs[count].name = epctx_str_of(EPCTX_WEIGHTS_ATTR);
        attrs[count].type = EPCTX_ATTR_STRING;
        attrs[count++].s = weights;
    }
    for (i = 0; i < count && !status; i++)
        status = make_attr(api, &attrs[i], &made[i]);
    if (!status) {
        status = api->editor->CreateNode(
            EPCTX_OP_TYPE, EPCTX_DOMAIN, name, (const char *const *)inputs, input_count,
            (const char *const *)outputs, output_count, made, count, out);
    }
    /* CreateNode copied them. */
    for (i = 0; i < count; i++) {
        if (made[i]) api->ort->ReleaseOpAttr(made[i]);
    }
    return status;
}

/* -------------------------------------------------------------- generation */

/* Where the context binary goes. */
typedef struct binary_file {
    char path[EPCTX_PATH_MAX];
    char name[EPCTX_PATH_MAX]; /* as the nodes call it: relative to the context model */
    epctx_io_file file;
    bool open;
} binary_file;

/* Under session.model_external_initializers_file_folder_path ORT hides the model's path behind a
 * made-up one in that folder, where only initializers belong. */
static bool is_hidden(const ep_session *session, const char *model_path)
{
    return *epctx_option_text(&session->options, EPCTX_OPTION_EXTERNAL_INITIALIZERS_FOLDER) &&
           epctx_str_is(epctx_path_file(epctx_str_of(model_path)), "virtual_model.onnx");
}

const char *ep_model_path(const ep_session *session, const ep_record *record)
{
    return is_hidden(session, record->model_path) ? "" : record->model_path;
}

#define HIDDEN                                                                                     \
    "session.model_external_initializers_file_folder_path is set, and with it ONNX Runtime does "  \
    "not tell where the model is: set ep.context_file_path"

OrtStatus *ep_check_place(const ep_session *session, const ep_record *record)
{
    /* The compile API may write into memory, and the application take the binary. */
    const bool alone = session->compile_only && (session->embed || session->buffers.write_fn);
    if (!session->generate || *session->context_path || alone ||
        !is_hidden(session, record->model_path)) {
        return NULL;
    }
    return ep_fail(session->api, EPCTX_ERR_ARG, "%s", HIDDEN);
}

OrtStatus *ep_context_model_path(const ep_session *session, const char *model_path, char *out,
                                 size_t capacity)
{
    const ep_api *api = session->api;
    epctx_error error;
    epctx_error_clear(&error);
    if (*session->context_path) {
        const size_t size = strlen(session->context_path);
        if (size >= capacity) {
            return ep_fail(api, EPCTX_ERR_LIMIT, "ep.context_file_path is too long");
        }
        memcpy(out, session->context_path, size + 1);
        return NULL;
    }
    if (!*model_path) {
        return ep_fail(api, EPCTX_ERR_ARG,
                       "the context binary needs a folder and the model came from memory: set "
                       "ep.context_file_path, or ep.context_embed_mode=1");
    }
    return ep_status(api,
                     epctx_path_context_model(epctx_str_of(model_path), out, capacity, &error),
                     &error);
}

/* Opens the temporary file before anything is compiled: a folder that is missing or not writable
 * shows up now and not after minutes. */
static OrtStatus *binary_open(const ep_session *session, const char *model_path, binary_file *out)
{
    const ep_api *api = session->api;
    const epctx_io *io = epctx_io_files();
    char context_model[EPCTX_PATH_MAX];
    epctx_str folder, path;
    epctx_error error;
    int length;
    epctx_error_clear(&error);
    if (!*session->context_path && !*model_path && session->buffers.write_fn) {
        path = epctx_str_of("model_ctx.onnx"); /* there is no folder, only a name */
    } else {
        EP_TRY(ep_context_model_path(session, model_path, context_model, sizeof context_model));
        path = epctx_str_of(context_model);
    }
    EP_TRY(ep_status(api,
                     epctx_path_binary(path, epctx_str_of(session->backend.short_name), out->name,
                                       sizeof out->name, &error),
                     &error));
    folder = epctx_path_folder(path);
    length =
        snprintf(out->path, sizeof out->path, "%.*s%s", (int)folder.size, folder.data, out->name);
    if (length < 0 || (size_t)length >= sizeof out->path) {
        return ep_fail(api, EPCTX_ERR_LIMIT, "the path of the context binary is too long");
    }
    if (session->buffers.write_fn) return NULL; /* the application has its own place */
    EP_TRY(ep_status(api, io->create_fn(io->user, NULL, out->path, &out->file, &error), &error));
    out->open = true;
    return NULL;
}

static void binary_abort(binary_file *binary)
{
    const epctx_io *io = epctx_io_files();
    if (binary->open) io->close_fn(io->user, &binary->file);
    binary->open = false;
}

/* The binary gets its name before ORT writes the model. A crash in between leaves at worst the
 * model of an older generation beside it, and its nodes' graph hashes do not match this binary. */
static OrtStatus *binary_commit(const ep_api *api, binary_file *binary, epctx_span bytes)
{
    const epctx_io *io = epctx_io_files();
    epctx_error error;
    epctx_status status;
    epctx_error_clear(&error);
    status = io->write_fn(io->user, &binary->file, bytes.data, bytes.size, &error);
    if (status == EPCTX_OK) status = io->sync_fn(io->user, &binary->file, &error);
    if (status != EPCTX_OK) {
        binary_abort(binary);
        return ep_status(api, status, &error);
    }
    status = io->commit_fn(io->user, &binary->file, EPCTX_OVERWRITE_REPLACE, &error);
    if (status != EPCTX_OK) io->back_fn(io->user, &binary->file);
    binary_abort(binary);
    return ep_status(api, status, &error);
}

/* One fused graph on its way into the context. */
typedef struct piece {
    ep_record record;
    epctx_epnode node; /* as epctx.h made it */
    epctx_str weights; /* its EPCTX_WEIGHTS_ATTR */
} piece;

/* Of the model that a fused node is cut out of. */
static uint64_t model_hash(const ep_api *api, const OrtNode *fused)
{
    const char *name = NULL;
    OrtStatus *status = api->ort->Node_GetName(fused, &name);
    if (status) api->ort->ReleaseStatus(status);
    /* ORT puts a hash of the model and a number into it. */
    return name ? epctx_hash(name, strlen(name), 0) | 1 : 1;
}

epctx_str ep_weights_text(const epctx_node *node)
{
    const epctx_attr *attr = epctx_node_attr(node, EPCTX_WEIGHTS_ATTR);
    return attr && attr->type == EPCTX_ATTR_STRING ? attr->s : epctx_str_of(NULL);
}

/* All pieces into one context, and the nodes that stand for them. */
static OrtStatus *compile_pieces(ep_context *context, piece *pieces, size_t count,
                                 const OrtNode **fused, const char *binary)
{
    const epctx_allocator allocator = {NULL, aligned_alloc_fn, aligned_free_fn};
    const ep_session *session = context->session;
    const epctx_node *nodes;
    epctx_ep_opts opts;
    epctx_error error;
    epctx_status status;
    size_t i, made;
    memset(&opts, 0, sizeof opts);
    opts.name_prefix = session->generate ? session->prefix : "";
    opts.model_hash = model_hash(session->api, fused[0]);
    opts.binary = binary;
    opts.prepare_only = session->compile_only;
    opts.weightless = session->weightless;
    opts.allocator = &allocator;
    epctx_error_clear(&error);
    status = epctx_ep_begin(&context->made, &session->backend, &opts, count, &context->arena,
                            &error);
    for (i = 0; i < count && status == EPCTX_OK; i++)
        status = epctx_ep_compile(&context->made, &pieces[i].record.graph, &error);
    if (status == EPCTX_OK) status = epctx_ep_finish(&context->made, &error);
    nodes = epctx_ep_context_nodes(&context->made, &made);
    for (i = 0; i < count && status == EPCTX_OK; i++) {
        status = epctx_epnode_from_record(&nodes[i], &pieces[i].node, &error);
        pieces[i].weights = ep_weights_text(&nodes[i]);
    }
    return ep_status(session->api, status, &error);
}

static OrtStatus *names_of(const ep_api *api, const epctx_value *values, size_t count,
                           epctx_arena *arena, const char ***out)
{
    const char **names = (const char **)epctx_arena_array(arena, count + 1, sizeof *names);
    size_t i;
    if (!names) return ep_no_memory(api);
    for (i = 0; i < count; i++) {
        names[i] = epctx_arena_copy(arena, values[i].name);
        if (!names[i]) return ep_no_memory(api);
    }
    *out = names;
    return NULL;
}

static OrtStatus *kernel_for_piece(ep_context *context, const piece *p, const OrtNode *fused,
                                   epctx_arena *arena, OrtNodeComputeInfo **out)
{
    const ep_session *session = context->session;
    const epctx_graph *graph = &p->record.graph;
    const char **inputs, **outputs;
    void *handle = NULL;
    epctx_error error;
    epctx_error_clear(&error);
    EP_TRY(ep_status(session->api,
                     session->backend.find_fn(session->backend.self, context->handle,
                                              p->node.partition_name,
                                              epctx_notes_hash(p->node.notes), &handle, &error),
                     &error));
    EP_TRY(names_of(session->api, graph->inputs, graph->input_count, arena, &inputs));
    EP_TRY(names_of(session->api, graph->outputs, graph->output_count, arena, &outputs));
    EP_TRY(ep_kernel_create(context, handle, (const char *const *)inputs, graph->input_count,
                            (const char *const *)outputs, graph->output_count, fused, out));
    return ep_kernel_set_weights(*out, p->weights, graph);
}

static OrtStatus *node_for_piece(const ep_session *session, piece *p, epctx_span payload,
                                 const OrtNode *fused, epctx_arena *arena, OrtNode **out)
{
    epctx_epnode *node = &p->node;
    if (session->embed) {
        node->embed_mode = 1;
        node->ep_cache_context = epctx_str_of(NULL);
        if (node->main_context) {
            node->ep_cache_context.data = (const char *)payload.data;
            node->ep_cache_context.size = payload.size;
        }
    }
    node->onnx_model_filename = epctx_path_file(epctx_str_of(ep_model_path(session, &p->record)));
    if (node->onnx_model_filename.size) node->present |= 1u << EPCTX_EP_ONNX_MODEL_FILENAME;
    return ep_context_node_create(session->api, fused, node, p->weights, arena, out);
}

static OrtStatus *build(ep_session *session, ep_context *context, piece *pieces,
                        binary_file *binary, const OrtGraph **graphs, const OrtNode **fused,
                        size_t count, epctx_arena *arena, OrtNodeComputeInfo **infos,
                        OrtNode **context_nodes)
{
    epctx_span bytes;
    size_t i;
    for (i = 0; i < count; i++) {
        EP_TRY(ep_record_read(&pieces[i].record, session->api, graphs[i], fused[i]));
    }
    EP_TRY(ep_check_place(session, &pieces[0].record));
    if (session->generate && !session->embed) {
        EP_TRY(binary_open(session, ep_model_path(session, &pieces[0].record), binary));
    }
    EP_TRY(compile_pieces(context, pieces, count, fused, binary->name));
    /* What can be run is loaded before anything is written. */
    if (!session->compile_only) EP_TRY(context_load(context));
    for (i = 0; i < count; i++) {
        EP_TRY(session->compile_only
                   ? ep_kernel_create_idle(context, &infos[i])
                   : kernel_for_piece(context, &pieces[i], fused[i], arena, &infos[i]));
    }
    if (!session->generate) return NULL;
    bytes = epctx_ep_binary(&context->made);
    for (i = 0; i < count; i++) {
        EP_TRY(
            node_for_piece(session, &pieces[i], bytes, fused[i], arena, &context_nodes[i]));
    }
    if (session->buffers.write_fn && !session->embed) {
        return session->buffers.write_fn(session->buffers.write_state, binary->name, bytes.data,
                                         bytes.size);
    }
    return binary->open ? binary_commit(session->api, binary, bytes) : NULL;
}

OrtStatus *ep_compile_graphs(ep_session *session, const OrtGraph **graphs, const OrtNode **fused,
                             size_t count, OrtNodeComputeInfo **infos, OrtNode **context_nodes)
{
    const ep_api *api = session->api;
    piece *pieces = (piece *)calloc(count, sizeof *pieces);
    binary_file *binary = (binary_file *)calloc(1, sizeof *binary);
    ep_context *context = ep_context_new(session);
    OrtStatus *status;
    epctx_arena arena;
    size_t i;
    memset(&arena, 0, sizeof arena);
    epctx_arena_init(&arena, NULL);
    status = pieces && binary && context ? build(session, context, pieces, binary, graphs, fused,
                                                 count, &arena, infos, context_nodes)
                                         : ep_no_memory(api);
    /* After a failure ORT takes nothing from these arrays. */
    for (i = 0; status && i < count; i++) {
        ep_kernel_release(infos[i]);
        infos[i] = NULL;
        if (session->generate && context_nodes[i]) {
            api->ort->ReleaseNode(context_nodes[i]);
            context_nodes[i] = NULL;
        }
    }
    for (i = 0; pieces && i < count; i++)
        ep_record_free(&pieces[i].record);
    if (binary) binary_abort(binary);
    epctx_arena_free(&arena);
    ep_context_drop(context);
    free(binary);
    free(pieces);
    return status;
}

/* ------------------------------------------------------------------ loading */

/* An EPContext node of ours, as the model has it. */
typedef struct bound_node {
    ep_record record;
    epctx_epnode node;
    epctx_str key;       /* name of its graph in the binary */
    epctx_str folder;    /* of a primary whose binary is a file, and */
    epctx_str file;      /* that file as the node names it */
    ep_context *context; /* owned by the loader's list */
} bound_node;

typedef struct loader {
    ep_session *session;
    bound_node *nodes;
    ep_context **contexts; /* one reference each */
    size_t context_count;
    epctx_arena arena;
} loader;

/* A payload that somebody took for a path would end up in messages. */
static bool is_path(epctx_str text)
{
    size_t i;
    for (i = 0; i < text.size && (uint8_t)text.data[i] >= 0x20 && text.data[i] != 0x7f; i++) {
    }
    return i == text.size && text.size < EPCTX_PATH_MAX && epctx_str_is_utf8(text);
}

/* Where the binary of a primary is. */
static OrtStatus *read_file_name(loader *l, bound_node *bound)
{
    const ep_session *session = l->session;
    epctx_buffer name;
    epctx_error error;
    epctx_status status = EPCTX_OK;
    OrtStatus *failed;
    epctx_error_clear(&error);
    epctx_buffer_init(&name, NULL);
    failed = ep_node_bytes(session->api, bound->record.nodes[0], "ep_cache_context", &name);
    if (!failed) {
        epctx_str text;
        text.data = (const char *)name.data;
        text.size = name.size;
        bound->file.data = epctx_arena_copy(&l->arena, text);
        bound->file.size = text.size;
        if (!bound->file.data) status = EPCTX_ERR_NOMEM;
        if (!is_path(text)) {
            bound->file.size = 0;
            status = epctx_fail(&error, EPCTX_ERR_CONTEXT,
                                "embed_mode is 0, so a path is expected, found %u bytes that are "
                                "none: if they are the context itself, embed_mode must be 1",
                                (uint64_t)text.size);
        }
        if (status == EPCTX_OK && !session->buffers.read_fn) {
            status = epctx_path_base(epctx_str_of(ep_model_path(session, &bound->record)),
                                     epctx_str_of(session->context_path), &bound->folder, &error);
            if (status == EPCTX_ERR_PATH && is_hidden(session, bound->record.model_path)) {
                status = epctx_fail(&error, EPCTX_ERR_PATH, "%s", HIDDEN);
            }
        }
        if (status != EPCTX_OK) epctx_blame(&error, NULL, &bound->node.name, "ep_cache_context");
        failed = ep_load_status(session->api, status, &error);
    }
    epctx_buffer_free(&name);
    return failed;
}

static OrtStatus *read_bound(loader *l, const OrtGraph *graph, const OrtNode *fused,
                             bound_node *out)
{
    const ep_api *api = l->session->api;
    const epctx_backend *backend = &l->session->backend;
    epctx_error error;
    epctx_status checked = EPCTX_OK;
    epctx_error_clear(&error);
    EP_TRY(ep_record_read(&out->record, api, graph, fused));
    EP_TRY(ep_load_status(
        api, epctx_epnode_from_record(&out->record.graph.nodes[0], &out->node, &error), &error));
    /* Everybody writes partition_name; the node's name is the older key. */
    out->key = out->node.partition_name.size ? out->node.partition_name : out->node.name;
    if (!out->node.main_context) return NULL;
    if (backend->check_fn) checked = backend->check_fn(backend->self, &out->node, &error);
    if (checked != EPCTX_OK) {
        epctx_blame(&error, NULL, &out->node.name, NULL);
        return ep_load_status(api, checked, &error);
    }
    return out->node.embed_mode ? NULL : read_file_name(l, out);
}

/* Would the binary be found in a Hugging Face cache? */
static bool is_cached(const loader *l, const bound_node *bound)
{
    char path[EPCTX_PATH_MAX];
    return bound->file.size > 0 && l->session->path_flags == 0 &&
           epctx_path_find(epctx_io_private(), bound->folder, bound->file, EPCTX_PATH_HUGGING_FACE,
                           path, sizeof path, NULL) == EPCTX_OK;
}

/* The message ends with the cure, where there is one. */
static OrtStatus *file_failed(const loader *l, const bound_node *bound, epctx_status status,
                              epctx_error *error)
{
    const char *cure = NULL;
    if (status == EPCTX_ERR_NOT_FOUND && l->session->share) {
        cure = "a binary that several models share is written by the last session of the group "
               "that generates them (ep.stop_share_ep_contexts=1)";
    } else if (status == EPCTX_ERR_PATH && is_cached(l, bound)) {
        cure = "that is a blob of a Hugging Face cache: allow it with the EP option "
               "hugging_face_cache=1";
    }
    epctx_blame(error, NULL, &bound->node.name, "ep_cache_context");
    if (!cure) return ep_load_status(l->session->api, status, error);
    return ep_fail(l->session->api, EPCTX_ERR_CONTEXT, "%s; %s", error->message, cure);
}

/* Asks the application for the binary that a primary names, or finds it among those it gave. */
static OrtStatus *open_given(loader *l, epctx_str name, ep_context *context, ep_context **shared)
{
    const ep_api *api = l->session->api;
    size_t i;
    for (i = 0; i < l->context_count; i++) {
        if (!l->contexts[i]->path || !epctx_str_is(name, l->contexts[i]->path)) continue;
        *shared = l->contexts[i];
        return NULL;
    }
    context->path = (char *)malloc(name.size + 1);
    if (!context->path) return ep_no_memory(api);
    memcpy(context->path, name.data, name.size);
    context->path[name.size] = '\0';
    EP_TRY(ep_buffers_read(api, &l->session->buffers, context->path, &context->given));
    context->mapping.data = (const uint8_t *)context->given.data;
    context->mapping.size = context->given.size;
    if ((uintptr_t)context->given.data % PAYLOAD_ALIGNMENT == 0) return NULL;
    /* Not from the allocator that it was given. */
    return ep_status(
        api, epctx_buffer_append(&context->bytes, context->given.data, context->given.size), NULL);
}

/* Reads the file a primary names, or finds it among those that are there. Not mapped: what the
 * backend has checked must not change under it, whatever others do to the file. */
static OrtStatus *open_file(loader *l, const bound_node *bound, ep_context *context,
                            ep_context **shared)
{
    const epctx_io *io = epctx_io_private();
    char path[EPCTX_PATH_MAX];
    epctx_error error;
    epctx_status status;
    size_t i;
    epctx_error_clear(&error);
    if (l->session->buffers.read_fn) {
        /* The name comes from the model, so from anybody: the application must not be talked into a
         * path out of its folder. */
        status = epctx_path_check(bound->file, &error);
        return status == EPCTX_OK ? open_given(l, bound->file, context, shared)
                                  : file_failed(l, bound, status, &error);
    }
    status = epctx_path_find(io, bound->folder, bound->file, l->session->path_flags, path,
                             sizeof path, &error);
    for (i = 0; status == EPCTX_OK && i < l->context_count; i++) {
        if (l->contexts[i]->path && strcmp(l->contexts[i]->path, path) == 0) {
            *shared = l->contexts[i];
            return NULL;
        }
    }
    if (status == EPCTX_OK) {
        status = epctx_path_map(io, bound->folder, bound->file, l->session->path_flags,
                                &context->mapping, path, sizeof path, &error);
    }
    if (status == EPCTX_OK) {
        context->path = (char *)malloc(strlen(path) + 1);
        if (context->path) {
            memcpy(context->path, path, strlen(path) + 1);
            context->mapped = true;
        } else {
            io->unmap_fn(io->user, &context->mapping);
            status = EPCTX_ERR_NOMEM;
        }
    }
    return status == EPCTX_OK ? NULL : file_failed(l, bound, status, &error);
}

static OrtStatus *open_primary(loader *l, bound_node *bound)
{
    const ep_api *api = l->session->api;
    ep_context *shared = NULL, *context = ep_context_new(l->session);
    OrtStatus *status;
    if (!context) return ep_no_memory(api);
    status = bound->node.embed_mode
                 ? ep_node_bytes(api, bound->record.nodes[0], "ep_cache_context", &context->bytes)
                 : open_file(l, bound, context, &shared);
    if (!status && !shared && bound->node.embed_mode && context->bytes.size == 0) {
        status = ep_fail(api, EPCTX_ERR_CONTEXT, "node '%.*s': ep_cache_context is empty",
                         (int)bound->node.name.size, bound->node.name.data);
    }
    if (!status && !shared) status = context_load(context);
    if (status || shared) {
        ep_context_drop(context);
        bound->context = shared;
        return status;
    }
    l->contexts[l->context_count++] = context;
    bound->context = context;
    return NULL;
}

/* A secondary has no content of its own: exactly one of the primaries has its graph. */
static OrtStatus *find_primary(loader *l, bound_node *bound)
{
    const epctx_backend *backend = &l->session->backend;
    size_t i, found = 0;
    for (i = 0; i < l->context_count; i++) {
        void *graph = NULL;
        if (!l->contexts[i]->handle ||
            backend->find_fn(backend->self, l->contexts[i]->handle, bound->key, 0, &graph, NULL) !=
                EPCTX_OK) {
            continue;
        }
        bound->context = l->contexts[i];
        found++;
    }
    if (found == 1) return NULL;
    return ep_fail(l->session->api, EPCTX_ERR_CONTEXT,
                   "node '%.*s' has main_context 0 and needs the graph '%.*s': expected it in one "
                   "of the %zu contexts of this model, found it in %zu",
                   (int)bound->node.name.size, bound->node.name.data, (int)bound->key.size,
                   bound->key.data, l->context_count, found);
}

static bool has_embedded(const loader *l)
{
    size_t i;
    for (i = 0; i < l->context_count && !l->contexts[i]->handle; i++) {
    }
    return i < l->context_count;
}

/* A graph from the workspace: out of the node's own binary, or for a secondary node out of one that
 * a primary of this model names. Leaves bound->context NULL when embedded contexts may have it. */
static OrtStatus *take_shared(loader *l, size_t count, bound_node *bound)
{
    epctx_status status = EPCTX_ERR_CONTEXT;
    epctx_error error;
    size_t i;
    epctx_error_clear(&error);
    for (i = 0; i < count && status == EPCTX_ERR_CONTEXT; i++) {
        const bound_node *primary = bound->node.main_context ? bound : &l->nodes[i];
        if (primary->file.size == 0) continue;
        epctx_error_clear(&error);
        status = ep_share_take(l->session, primary->folder, primary->file, bound->key,
                               epctx_notes_hash(bound->node.notes), &bound->context, &error);
        if (primary == bound) break;
    }
    if (status == EPCTX_OK) {
        l->contexts[l->context_count++] = bound->context;
        return NULL;
    }
    if (!bound->node.main_context && status == EPCTX_ERR_CONTEXT &&
        (error.status == EPCTX_OK || has_embedded(l))) {
        return NULL; /* find_primary has the word */
    }
    return file_failed(l, bound, status, &error);
}

/* A weightless node has all constants of its graph as inputs besides those that the graph was
 * compiled with. Of another node constants are among the latter: ORT may compute now what was a
 * value when the graph was compiled. */
static OrtStatus *without_weights(loader *l, const epctx_graph *graph, void *compiled,
                                  const char **names, size_t *count)
{
    const ep_session *session = l->session;
    const epctx_backend *backend = &session->backend;
    epctx_graph_info info;
    epctx_map weights;
    epctx_error error;
    size_t i, kept = 0;
    memset(&info, 0, sizeof info);
    epctx_error_clear(&error);
    EP_TRY(ep_load_status(session->api, backend->info_fn(backend->self, compiled, &info, &error),
                          &error));
    if (*count <= info.input_count) return NULL;
    epctx_map_init(&weights, &l->arena);
    for (i = 0; i < graph->initializer_count; i++) {
        if (epctx_map_put(&weights, graph->initializers[i].name, 1) != EPCTX_OK) {
            return ep_no_memory(session->api);
        }
    }
    for (i = 0; i < *count; i++) {
        if (epctx_map_get(&weights, epctx_str_of(names[i])) == EPCTX_MAP_NONE) {
            names[kept++] = names[i];
        }
    }
    *count = kept;
    return NULL;
}

static OrtStatus *kernel_for_node(loader *l, bound_node *bound, const OrtNode *fused,
                                  OrtNodeComputeInfo **out)
{
    const ep_api *api = l->session->api;
    const epctx_backend *backend = &l->session->backend;
    const OrtNode *node = bound->record.nodes[0];
    const char **inputs, **outputs;
    size_t input_count, output_count;
    void *graph = bound->context->shared.graph;
    if (!graph) {
        epctx_error error;
        epctx_status status;
        epctx_error_clear(&error);
        status = backend->find_fn(backend->self, bound->context->handle, bound->key,
                                  epctx_notes_hash(bound->node.notes), &graph, &error);
        if (status != EPCTX_OK) epctx_blame(&error, bound->context->path, &bound->node.name, NULL);
        EP_TRY(ep_load_status(api, status, &error));
    }
    EP_TRY(ep_node_names(api, node, false, &l->arena, &inputs, &input_count));
    EP_TRY(ep_node_names(api, node, true, &l->arena, &outputs, &output_count));
    EP_TRY(without_weights(l, &bound->record.graph, graph, inputs, &input_count));
    EP_TRY(ep_kernel_create(bound->context, graph, (const char *const *)inputs, input_count,
                            (const char *const *)outputs, output_count, fused, out));
    return ep_kernel_set_weights(*out, ep_weights_text(&bound->record.graph.nodes[0]),
                                 &bound->record.graph);
}

static OrtStatus *load(loader *l, const OrtGraph **graphs, const OrtNode **fused, size_t count,
                       OrtNodeComputeInfo **infos)
{
    size_t i;
    for (i = 0; i < count; i++)
        EP_TRY(read_bound(l, graphs[i], fused[i], &l->nodes[i]));
    /* All primaries first: a secondary may stand before its primary. */
    for (i = 0; i < count; i++) {
        const bound_node *bound = &l->nodes[i];
        const bool takes = l->session->share && bound->file.size > 0;
        if (bound->node.main_context && !takes) EP_TRY(open_primary(l, &l->nodes[i]));
    }
    for (i = 0; i < count; i++) {
        bound_node *bound = &l->nodes[i];
        if (!bound->context && l->session->share) EP_TRY(take_shared(l, count, bound));
        if (!bound->context) EP_TRY(find_primary(l, bound));
        EP_TRY(kernel_for_node(l, bound, fused[i], &infos[i]));
    }
    return NULL;
}

OrtStatus *ep_load_graphs(ep_session *session, const OrtGraph **graphs, const OrtNode **fused,
                          size_t count, OrtNodeComputeInfo **infos)
{
    loader l;
    OrtStatus *status;
    size_t i;
    memset(&l, 0, sizeof l);
    l.session = session;
    epctx_arena_init(&l.arena, NULL);
    l.nodes = (bound_node *)calloc(count, sizeof *l.nodes);
    l.contexts = (ep_context **)calloc(count, sizeof(ep_context *));
    status =
        l.nodes && l.contexts ? load(&l, graphs, fused, count, infos) : ep_no_memory(session->api);
    for (i = 0; status && i < count; i++) {
        ep_kernel_release(infos[i]);
        infos[i] = NULL;
    }
    for (i = 0; l.nodes && i < count; i++)
        ep_record_free(&l.nodes[i].record);
    /* The kernels hold what they need. */
    for (i = 0; i < l.context_count; i++)
        ep_context_drop(l.contexts[i]);
    free(l.contexts);
    free(l.nodes);
    epctx_arena_free(&l.arena);
    return status;
}
