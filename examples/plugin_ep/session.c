/* session.c - one EP instance per session: the nodes it claims, and Compile. */
#include "ep.h"

#include <stdio.h>

/* -------------------------------------------------------------- capability */

/* Groups of nodes: owner[i] is the group of node i, or this. */
#define NOBODY UINT32_MAX

/* By what epctx.h says that ORT may fuse. */
static OrtStatus *group(const epctx_ort_record *record, const epctx_backend *backend,
                        const uint8_t *take, epctx_arena *arena, uint32_t *owner,
                        size_t *group_count) {
    const epctx_graph *graph = &record->graph;
    epctx_partition *parts = NULL;
    epctx_error error;
    size_t p, i;
    epctx_error_clear(&error);
    EPCTX_ORT_TRY(epctx_ort_status(
        record->api,
        epctx_backend_partition(backend, graph, take, arena, &parts, group_count, &error), &error));
    for (i = 0; i < graph->node_count; i++) owner[i] = NOBODY;
    for (p = 0; p < *group_count; p++)
        for (i = 0; i < parts[p].claim_count; i++) owner[parts[p].claims[i]] = (uint32_t)p;
    return NULL;
}

/* The nodes of one group, in order. */
static size_t members(const epctx_ort_record *record, const uint32_t *owner, size_t which,
                      const OrtNode **out, uint32_t *positions) {
    size_t i, count = 0;
    for (i = 0; i < record->graph.node_count; i++) {
        if (owner[i] != which) continue;
        out[count] = record->nodes[i];
        positions[count++] = (uint32_t)i;
    }
    return count;
}

/* The nodes of a graph that are claimed. */
typedef struct claim {
    ep_session *session;
    const epctx_ort_record *record;
    epctx_arena *arena;
    uint8_t *take;    /* 1: can be claimed */
    uint32_t *owner;  /* its group */
    const char **why; /* it is not, where explain_fn has no answer for the whole graph; or NULL */
} claim;

/* Of the backend, with node `index` of `graph` in view; NULL: it has nothing to say. */
static const char *explanation(const claim *c, const epctx_graph *graph, size_t index) {
    const epctx_backend *backend = &c->session->backend;
    epctx_error error;
    epctx_error_clear(&error);
    if (!backend->explain_fn ||
        backend->explain_fn(backend->self, graph, index, &error) == EPCTX_OK)
        return NULL;
    return epctx_arena_copy(c->arena, epctx_str_of(error.message));
}

/* Clears take[] of the nodes that the backend refused in a view. A view has node objects of its
 * own, with the same ids. */
static OrtStatus *untake(claim *c, const epctx_ort_record *view, const uint8_t *again,
                         const OrtNode **nodes, const uint32_t *positions, size_t count,
                         bool *changed) {
    const OrtApi *ort = view->api->ort;
    size_t i, k;
    for (i = 0; i < view->graph.node_count; i++) {
        size_t wanted = 0, id = 0;
        if (again[i]) continue;
        EPCTX_ORT_TRY(ort->Node_GetId(view->nodes[i], &wanted));
        for (k = 0; k < count; k++) {
            EPCTX_ORT_TRY(ort->Node_GetId(nodes[k], &id));
            if (id != wanted) continue;
            c->take[positions[k]] = 0;
            c->why[positions[k]] = explanation(c, &view->graph, i);
            *changed = true;
        }
    }
    return NULL;
}

/* Shows the backend the group as ORT would cut it out. Nodes it no longer takes lose take[i]. */
static OrtStatus *check_group(claim *c, const OrtGraph *graph, const OrtNode **nodes,
                              const uint32_t *positions, size_t count, bool *changed) {
    const epctx_ort_api *api = c->session->api;
    const epctx_backend *backend = &c->session->backend;
    OrtGraph *view = NULL;
    epctx_ort_record record;
    OrtStatus *status;
    EPCTX_ORT_TRY(api->ort->Graph_GetGraphView(graph, nodes, count, &view));
    status = epctx_ort_record_read(&record, api, view, NULL);
    if (!status) {
        uint8_t *again =
            (uint8_t *)epctx_arena_array(&record.arena, record.graph.node_count + 1, 1);
        epctx_error error;
        epctx_error_clear(&error);
        status = again
                     ? epctx_ort_status(
                           api, backend->capability_fn(backend->self, &record.graph, again, &error),
                           &error)
                     : epctx_ort_no_memory(api);
        if (!status) status = untake(c, &record, again, nodes, positions, count, changed);
        epctx_ort_record_free(&record);
    }
    api->ort->ReleaseGraph(view);
    return status;
}

/* What ORT loses when it writes a context model around control flow; such a model would not load
 * again, so Compile refuses. (A backend that compiles control flow claims the whole node: then no
 * body is left to write, and ORT hands the bodies over with their constants.)
 *
 *   before 1.31  initializers of a body are written twice ("initializer name is not unique"), and a
 *                value that a body alone uses has no type
 *   also 1.31.1  a body cannot refer to an initializer of the main graph: ORT ends with "Nodes in a
 *                graph must be topologically sorted", and our binary would be left behind
 *
 * Not seen by an EP: constants that 1.31.1 itself folds inside a body (session options at the
 * default level, or ORT_ENABLE_BASIC) make it fail with "Duplicate definition of name" when our
 * binary is there, which then goes again (ep_binary_withdraw). So does a call of a model's function
 * in a body: EPs get the body with what the function does in its place, but ORT writes the call,
 * and not the function ("is not a registered function/op"). */

/* Only of bodies, and of those in them. */
static OrtStatus *bodies_have_initializers(const epctx_ort_api *api, const OrtNode *node,
                                           epctx_arena *arena, bool *found) {
    const OrtApi *ort = api->ort;
    const OrtGraph **bodies;
    size_t body_count = 0, count = 0, i, k;
    EPCTX_ORT_TRY(ort->Node_GetNumSubgraphs(node, &body_count));
    if (body_count == 0) return NULL;
    bodies = (const OrtGraph **)epctx_arena_array(arena, body_count, sizeof *bodies);
    if (!bodies) return epctx_ort_no_memory(api);
    EPCTX_ORT_TRY(ort->Node_GetSubgraphs(node, bodies, body_count, NULL));
    for (i = 0; i < body_count && !*found; i++) {
        const OrtNode **nodes;
        EPCTX_ORT_TRY(ort->Graph_GetNumInitializers(bodies[i], &count));
        *found = count > 0;
        EPCTX_ORT_TRY(ort->Graph_GetNumNodes(bodies[i], &count));
        nodes = (const OrtNode **)epctx_arena_array(arena, count + 1, sizeof *nodes);
        if (!nodes) return epctx_ort_no_memory(api);
        if (count) EPCTX_ORT_TRY(ort->Graph_GetNodes(bodies[i], nodes, count));
        for (k = 0; k < count && !*found; k++)
            EPCTX_ORT_TRY(bodies_have_initializers(api, nodes[k], arena, found));
    }
    return NULL;
}

/* The initializer of the graph of `node` that its bodies use, also one that is an input, too. */
static OrtStatus *captured_initializer(const epctx_ort_api *api, const OrtNode *node,
                                       epctx_arena *arena, const char **name) {
    const OrtApi *ort = api->ort;
    const OrtValueInfo **captures;
    size_t count = 0, i;
    EPCTX_ORT_TRY(ort->Node_GetNumImplicitInputs(node, &count));
    captures = (const OrtValueInfo **)epctx_arena_array(arena, count + 1, sizeof *captures);
    if (!captures) return epctx_ort_no_memory(api);
    if (count) EPCTX_ORT_TRY(ort->Node_GetImplicitInputs(node, captures, count));
    for (i = 0; i < count && !*name; i++) {
        bool is_constant = false, is_default = false;
        EPCTX_ORT_TRY(ort->ValueInfo_IsConstantInitializer(captures[i], &is_constant));
        EPCTX_ORT_TRY(ort->ValueInfo_IsOptionalGraphInput(captures[i], &is_default));
        if (is_constant || is_default) EPCTX_ORT_TRY(ort->GetValueInfoName(captures[i], name));
    }
    return NULL;
}

/* While a context model is generated: a value that only the body of a node that is left uses gets
 * no type in the written model, so its node is left to the CPU. A body reads what comes before. */
static OrtStatus *leave_captured(claim *c) {
    const epctx_graph *graph = &c->record->graph;
    epctx_map captured;
    size_t i, k;
    epctx_map_init(&captured, c->arena);
    for (i = graph->node_count; i-- > 0;) {
        const epctx_node *node = &graph->nodes[i];
        for (k = 0; k < node->output_count; k++) {
            if (epctx_map_get(&captured, node->outputs[k]) == EPCTX_MAP_NONE) continue;
            c->take[i] = 0;
            c->why[i] = "a body uses its value, which ONNX Runtime before 1.31 cannot write";
        }
        for (k = 0; k < node->capture_count && !c->take[i]; k++)
            if (epctx_map_put(&captured, node->captures[k], 1) != EPCTX_OK)
                return epctx_ort_no_memory(c->session->api);
    }
    return NULL;
}

/* EPCTX_OK: ORT writes the node rightly. Else why not. */
static OrtStatus *is_writable(const claim *c, size_t index, epctx_status *refusal,
                              epctx_error *error) {
    const epctx_ort_api *api = c->session->api;
    const epctx_node *node = &c->record->graph.nodes[index];
    const char *name = NULL;
    bool found = false;
    epctx_error_clear(error);
    *refusal = EPCTX_OK;
    EPCTX_ORT_TRY(captured_initializer(api, c->record->nodes[index], c->arena, &name));
    if (name) {
        *refusal = epctx_fail(
            error, EPCTX_ERR_UNSUPPORTED,
            "a body of node '%S' (%S) uses '%s', an initializer of the main graph, and ONNX "
            "Runtime cannot write a context model with such a body: compile it without ONNX "
            "Runtime (epctx compile without --ep)",
            &node->name, &node->op_type, name);
    }
    if (name || api->version >= EP_CONTROL_FLOW_API) return NULL;
    EPCTX_ORT_TRY(bodies_have_initializers(api, c->record->nodes[index], c->arena, &found));
    if (found) {
        *refusal = epctx_fail(
            error, EPCTX_ERR_UNSUPPORTED,
            "a body of node '%S' (%S) has constants, and ONNX Runtime before 1.31 writes a context "
            "model with such a body wrongly: use a newer one, or compile it without ONNX Runtime "
            "(epctx compile without --ep)",
            &node->name, &node->op_type);
    }
    return NULL;
}

/* The first node whose bodies would be written wrongly, or NULL; then Compile will refuse. Without
 * an EPContext node of ours, too: the bodies are as broken in a model that another EP compiles, and
 * in the one that the compile API writes when nothing was compiled. */
static OrtStatus *find_unwritable(claim *c, const OrtNode **out) {
    ep_session *session = c->session;
    size_t i;
    *out = NULL;
    for (i = 0; i < c->record->graph.node_count && !*out; i++) {
        const char *taken_by = NULL;
        if (c->owner[i] != NOBODY) continue;
        EPCTX_ORT_TRY(session->api->ort->Node_GetEpName(c->record->nodes[i], &taken_by));
        if (taken_by && *taken_by) continue; /* its bodies are compiled with it */
        EPCTX_ORT_TRY(is_writable(c, i, &session->refusal, &session->refusal_text));
        if (session->refusal != EPCTX_OK) *out = c->record->nodes[i];
    }
    return NULL;
}

/* For the user who wonders why a node is on the CPU: session log level 1 (INFO) and below. */
static OrtStatus *log_refusals(const claim *c) {
    const ep_session *session = c->session;
    const epctx_graph *graph = &c->record->graph;
    OrtLoggingLevel level = ORT_LOGGING_LEVEL_FATAL;
    size_t i, left = 0;
    EPCTX_ORT_TRY(session->api->ort->Logger_GetLoggingSeverityLevel(session->logger, &level));
    if (level > ORT_LOGGING_LEVEL_INFO) return NULL;
    for (i = 0; i < graph->node_count; i++) {
        const epctx_node *node = &graph->nodes[i];
        const char *why = c->why[i];
        if (c->owner[i] != NOBODY) continue;
        left++;
        if (!why && !c->take[i]) why = explanation(c, graph, i);
        if (!why && !c->take[i]) why = "the backend does not take it";
        if (!why)
            why = "all its inputs are constant, and its value is not for one partition alone; or "
                  "it belongs to nodes that do not fit into one partition; or nobody reads what "
                  "its partition computes";
        epctx_ort_log(session->api, session->logger, ORT_LOGGING_LEVEL_INFO,
                      "%.*s '%.*s' is left to other EPs: %s", (int)node->op_type.size,
                      node->op_type.data, (int)node->name.size, node->name.data, why);
    }
    epctx_ort_log(
        session->api, session->logger, ORT_LOGGING_LEVEL_INFO,
        "%s takes %zu of %zu nodes, as they are after ONNX Runtime's basic graph optimizations",
        session->factory->device->ep_name, graph->node_count - left, graph->node_count);
    return NULL;
}

/* Is what ORT would write wrongly refused? */
static bool guards_bodies(const ep_session *session) {
    ep_options ep;
    const char *text;
    ep_options_of(session, &ep);
    text = ep_option_get(&ep, "write_control_flow");
    return session->generate && !(text && strcmp(text, "1") == 0);
}

/* Asks the backend, and excludes nodes that another EP has claimed. */
static OrtStatus *take_nodes(claim *c) {
    ep_session *session = c->session;
    const epctx_ort_record *record = c->record;
    const epctx_ort_api *api = session->api;
    epctx_error error;
    size_t i;
    epctx_error_clear(&error);
    EPCTX_ORT_TRY(epctx_ort_status(
        api, session->backend.capability_fn(session->backend.self, &record->graph, c->take, &error),
        &error));
    for (i = 0; i < record->graph.node_count; i++) {
        const char *taken_by = NULL;
        EPCTX_ORT_TRY(api->ort->Node_GetEpName(record->nodes[i], &taken_by));
        /* A node whose layout ORT has converted for us is ours already, and must be taken again. */
        if (taken_by && *taken_by && strcmp(taken_by, session->factory->device->ep_name) != 0) {
            c->take[i] = 0;
            c->why[i] = "another EP has it already";
        }
        if (epctx_ort_hides(&record->graph.nodes[i])) {
            c->take[i] = 0;
            c->why[i] = "ONNX Runtime does not tell EPs of one of its attributes";
        }
    }
    return NULL;
}

/* Forms the groups. */
static OrtStatus *claim_nodes(claim *c, const OrtGraph *graph, const OrtNode **nodes,
                              uint32_t *positions, size_t *group_count) {
    const size_t node_count = c->record->graph.node_count;
    bool changed;
    size_t p;
    EPCTX_ORT_TRY(take_nodes(c));
    do {
        changed = false;
        if (guards_bodies(c->session) && c->session->api->version < EP_CONTROL_FLOW_API)
            EPCTX_ORT_TRY(leave_captured(c));
        EPCTX_ORT_TRY(
            group(c->record, &c->session->backend, c->take, c->arena, c->owner, group_count));
        for (p = 0; p < *group_count; p++) {
            /* Cut out of its graph a node may lose what the backend relied on: a constant that is
             * computed outside, a shape that was known there. */
            const size_t count = members(c->record, c->owner, p, nodes, positions);
            if (count && count < node_count)
                EPCTX_ORT_TRY(check_group(c, graph, nodes, positions, count, &changed));
        }
    } while (changed);
    return log_refusals(c);
}

static OrtStatus *claim_ordinary(ep_session *session, const epctx_ort_record *record,
                                 const OrtGraph *graph, OrtEpGraphSupportInfo *info,
                                 epctx_arena *arena) {
    const epctx_ort_api *api = session->api;
    const size_t node_count = record->graph.node_count;
    uint32_t *positions = (uint32_t *)epctx_arena_array(arena, node_count + 1, sizeof *positions);
    const OrtNode **nodes =
        (const OrtNode **)epctx_arena_array(arena, node_count + 1, sizeof *nodes);
    const OrtNode *unwritable = NULL;
    OrtNodeFusionOptions options;
    size_t p, count, group_count = 0;
    claim c;
    c.session = session;
    c.record = record;
    c.arena = arena;
    c.take = (uint8_t *)epctx_arena_array(arena, node_count + 1, 1);
    c.owner = (uint32_t *)epctx_arena_array(arena, node_count + 1, sizeof *c.owner);
    c.why = (const char **)epctx_arena_array(arena, node_count + 1, sizeof *c.why);
    if (!c.take || !c.owner || !c.why || !positions || !nodes) return epctx_ort_no_memory(api);
    EPCTX_ORT_TRY(claim_nodes(&c, graph, nodes, positions, &group_count));
    memset(&options, 0, sizeof options);
    options.ort_version_supported = epctx_ort_layout(api);
    /* compile_fn copies them into the binary. If they are inputs, ORT writes them into the context
     * model: a weightless node has them there, and one of an EP that wants them. */
    options.drop_constant_initializers =
        session->weightless == EPCTX_WEIGHTLESS_NONE && !session->backend.weight_inputs;
    if (guards_bodies(session)) EPCTX_ORT_TRY(find_unwritable(&c, &unwritable));
    if (unwritable) /* an error here would not fail the session: it does in Compile */
        return api->ep->EpGraphSupportInfo_AddNodesToFuse(info, &unwritable, 1, &options);
    for (p = 0; p < group_count; p++) {
        count = members(record, c.owner, p, nodes, positions);
        if (count)
            EPCTX_ORT_TRY(api->ep->EpGraphSupportInfo_AddNodesToFuse(info, nodes, count, &options));
    }
    return NULL;
}

static bool is_ours(const ep_session *session, const epctx_node *node) {
    const epctx_attr *source = epctx_node_attr(node, "source");
    return source && source->type == EPCTX_ATTR_STRING &&
           epctx_str_is(source->s, session->backend.source);
}

/* In a model with EPContext nodes, claims only ours, each alone. */
static OrtStatus *claim_contexts(ep_session *session, const epctx_ort_record *record,
                                 OrtEpGraphSupportInfo *info, bool *compiled) {
    OrtNodeFusionOptions options;
    size_t i;
    memset(&options, 0, sizeof options);
    options.ort_version_supported = epctx_ort_layout(session->api);
    /* Weights may be inputs of an EPContext node and must be kept. */
    options.drop_constant_initializers = false;
    for (i = 0; i < record->graph.node_count; i++) {
        if (!epctx_ort_is_context_node(&record->graph.nodes[i])) continue;
        *compiled = true;
        if (!is_ours(session, &record->graph.nodes[i])) continue;
        EPCTX_ORT_TRY(session->api->ep->EpGraphSupportInfo_AddNodesToFuse(info, &record->nodes[i],
                                                                          1, &options));
    }
    return NULL;
}

/* Is the model of this body compiled for us? Its main graph, where the EPContext nodes are, is not
 * there yet when ORT asks about a body; the model's metadata is. Without this a body of a context
 * model would be compiled at every load, and session.disable_model_compile=1 would refuse it. */
static OrtStatus *is_compiled_model(const ep_session *session, const OrtGraph *graph, bool *out) {
    const OrtApi *ort = session->api->ort;
    OrtModelMetadata *metadata = NULL;
    OrtAllocator *allocator = NULL;
    OrtStatus *status;
    char key[256], *value = NULL;
    snprintf(key, sizeof key, "ep_compatibility_info.%s", session->factory->device->ep_name);
    EPCTX_ORT_TRY(ort->GetAllocatorWithDefaultOptions(&allocator));
    EPCTX_ORT_TRY(ort->Graph_GetModelMetadata(graph, &metadata));
    status = ort->ModelMetadataLookupCustomMetadataMap(metadata, allocator, key, &value);
    ort->ReleaseModelMetadata(metadata);
    if (value) {
        *out = true;
        allocator->Free(allocator, value);
    }
    return status;
}

/* ORT asks about bodies first. Does the backend take the node around this one whole? */
static OrtStatus *is_taken_whole(ep_session *session, const OrtGraph *body, bool *out) {
    epctx_backend *backend = &session->backend;
    epctx_error error;
    epctx_ort_record record;
    OrtStatus *status;
    uint8_t take = 0;
    epctx_error_clear(&error);
    EPCTX_ORT_TRY(epctx_ort_record_read_parent(&record, session->api, body));
    status = epctx_ort_status(
        session->api, backend->capability_fn(backend->self, &record.graph, &take, &error), &error);
    *out = take != 0 && !epctx_ort_hides(&record.graph.nodes[0]);
    epctx_ort_record_free(&record);
    return status;
}

static OrtStatus *ORT_API_CALL get_capability(OrtEp *self, const OrtGraph *graph,
                                              OrtEpGraphSupportInfo *info) {
    ep_session *session = (ep_session *)(void *)self;
    const OrtNode *parent = NULL;
    epctx_ort_record record;
    OrtStatus *status;
    bool compiled = false;
    EPCTX_ORT_TRY(session->api->ort->Graph_GetParentNode(graph, &parent));
    /* ORT cannot write an EPContext node into the body of a control-flow node. */
    if (parent && (session->generate || session->api->version < EPCTX_ORT_BODIES_API)) return NULL;
    if (parent) EPCTX_ORT_TRY(is_compiled_model(session, graph, &compiled));
    if (parent && !compiled) EPCTX_ORT_TRY(is_taken_whole(session, graph, &compiled));
    if (compiled) return NULL;
    EPCTX_ORT_TRY(epctx_ort_record_read(&record, session->api, graph, NULL));
    status = claim_contexts(session, &record, info, &compiled);
    if (!status && !compiled) status = claim_ordinary(session, &record, graph, info, &record.arena);
    epctx_ort_record_free(&record);
    return status;
}

/* ----------------------------------------------------------------- Compile */

/* A fused graph is one EPContext node or a group of ordinary nodes. */
static OrtStatus *is_context_graph(const epctx_ort_api *api, const OrtGraph *graph, bool *out) {
    const OrtNode *node = NULL;
    size_t count = 0;
    *out = false;
    EPCTX_ORT_TRY(api->ort->Graph_GetNumNodes(graph, &count));
    if (count != 1) return NULL;
    EPCTX_ORT_TRY(api->ort->Graph_GetNodes(graph, &node, 1));
    return epctx_ort_node_is_context(api, node, NULL, out);
}

static OrtStatus *ORT_API_CALL compile(OrtEp *self, const OrtGraph **graphs,
                                       const OrtNode **fused_nodes, size_t count,
                                       OrtNodeComputeInfo **infos, OrtNode **context_nodes) {
    ep_session *session = (ep_session *)(void *)self;
    const epctx_ort_api *api = session->api;
    size_t i;
    bool context = false, other = false;
    if (count == 0) return NULL;
    for (i = 0; i < count; i++) {
        bool is = false;
        infos[i] = NULL;
        if (session->generate) context_nodes[i] = NULL;
        EPCTX_ORT_TRY(is_context_graph(api, graphs[i], &is));
        context |= is;
        other |= !is;
    }
    if (context && other)
        return epctx_ort_fail(api, EPCTX_ERR_BACKEND,
                              "EPContext nodes and ordinary nodes in one Compile");
    if (context && session->generate) {
        return epctx_ort_fail(
            api, EPCTX_ERR_GRAPH,
            "the model is compiled already: it has EPContext nodes of %s, and "
            "ep.context_enable=1 asks for a new context model; give the original model",
            session->backend.source);
    }
    if (context) return ep_load_graphs(session, graphs, fused_nodes, count, infos);
    EPCTX_ORT_TRY(epctx_ort_status(api, session->refusal, &session->refusal_text));
    if (session->share && session->generate)
        return ep_share_compile(session, graphs, fused_nodes, count, infos, context_nodes);
    return ep_compile_graphs(session, graphs, fused_nodes, count, infos, context_nodes);
}

/* Since ORT 1.27. */
static OrtStatus *ORT_API_CALL initialization_end(OrtEp *self) {
    ep_binary_confirm((ep_session *)(void *)self);
    return ep_share_written((ep_session *)(void *)self);
}

static void ORT_API_CALL release_infos(OrtEp *self, OrtNodeComputeInfo **infos, size_t count) {
    size_t i;
    (void)self;
    for (i = 0; i < count; i++) ep_kernel_release(infos[i]);
}

/* ----------------------------------------------------------------- session */

static const char *ORT_API_CALL get_name(const OrtEp *self) {
    return ((const ep_session *)(const void *)self)->factory->device->ep_name;
}

/* Each call of run_fn has its own scratch. */
static OrtStatus *ORT_API_CALL is_concurrent(OrtEp *self, bool *supported) {
    (void)self;
    *supported = true;
    return NULL;
}

/* ------------------------------------------------------------------ layout */

static OrtStatus *ORT_API_CALL get_layout(OrtEp *self, OrtEpDataLayout *layout) {
    const ep_session *session = (const ep_session *)(const void *)self;
    *layout = session->factory->device->channels_last_fn(&session->backend) ? OrtEpDataLayout_NHWC
                                                                            : OrtEpDataLayout_NCHW;
    return NULL;
}

static OrtStatus *ORT_API_CALL should_convert(OrtEp *self, const char *domain, const char *op_type,
                                              OrtEpDataLayout target, int *answer) {
    const ep_session *session = (const ep_session *)(const void *)self;
    *answer = target == OrtEpDataLayout_NHWC
                  ? session->factory->device->convert_fn(&session->backend, domain, op_type)
                  : -1;
    return NULL;
}

/* The same numbers in epctx.h and in ORT. */
static OrtStatus *ORT_API_CALL get_weightless(const OrtEp *self, OrtWeightlessSupport *support) {
    const ep_session *session = (const ep_session *)(const void *)self;
    *support = (OrtWeightlessSupport)session->backend.weightless;
    return NULL;
}

/* ep.enable_weightless, or while generating its former name. They mean the same here: ORT makes all
 * constants of a fused node its inputs or none, so a weight in the binary would be in the context
 * model as well. */
static const char *weightless_key(const ep_session *session) {
    const epctx_options *options = &session->options;
    if (epctx_option_on(options, EPCTX_OPTION_WEIGHTLESS)) return "ep.enable_weightless";
    return session->generate && epctx_option_on(options, EPCTX_OPTION_WEIGHTLESS_NODES)
               ? "ep.enable_weightless_ep_context_nodes"
               : NULL;
}

/* Checks that need the open backend. */
static OrtStatus *session_ready(ep_session *session) {
    const char *key = weightless_key(session);
    epctx_error error;
    session->weightless = key ? session->backend.weightless : EPCTX_WEIGHTLESS_NONE;
    if (key && session->weightless == EPCTX_WEIGHTLESS_NONE) {
        return epctx_ort_fail(session->api, EPCTX_ERR_UNSUPPORTED, /* ORT calls it since 1.29 */
                              "%s is 1, but %s does not support weightless mode", key,
                              session->factory->device->ep_name);
    }
    epctx_error_clear(&error);
    return epctx_ort_status(session->api,
                            epctx_backend_compatibility(&session->backend, session->compatibility,
                                                        sizeof session->compatibility, &error),
                            &error);
}

static OrtStatus *read_source_model(ep_session *session, const OrtSessionOptions *options) {
    const void *data = NULL;
    size_t size = 0;
    if (session->api->version < EP_WEIGHTLESS_API) return NULL;
    EPCTX_ORT_TRY(
        session->api->ep->SessionOptionsGetWeightlessSourceModelBuffer(options, &data, &size));
    session->source_model.data = (const uint8_t *)data;
    session->source_model.size = size;
    return NULL;
}

/* How files of context binaries are found and read. */
static epctx_status read_path_flags(const ep_options *ep, uint32_t *flags, epctx_error *error) {
    static const uint32_t ways[] = {EPCTX_PATH_GUARDED, EPCTX_PATH_IN_PLACE, 0};
    bool hugging_face;
    unsigned map = 0;
    epctx_status status = ep_option_switch(ep, "hugging_face_cache", &hugging_face, error);
    if (status == EPCTX_OK) status = ep_option_choice(ep, "map_binary", &map, error);
    if (status == EPCTX_OK) *flags = ways[map] | (hugging_face ? EPCTX_PATH_HUGGING_FACE : 0);
    return status;
}

static OrtStatus *session_open(ep_session *session, const OrtSessionOptions *options) {
    const epctx_ort_api *api = session->api;
    const ep_device *device = session->factory->device;
    ep_options ep;
    epctx_error error;
    epctx_status status;
    EPCTX_ORT_TRY(api->ort->GetSessionOptionsConfigEntries(options, &session->config));
    EPCTX_ORT_TRY(ep_options_read(session));
    EPCTX_ORT_TRY(epctx_ort_buffers_open(api, options, &session->buffers));
    EPCTX_ORT_TRY(read_source_model(session, options));
    ep_options_of(session, &ep);
    epctx_error_clear(&error);
    EPCTX_ORT_TRY(
        epctx_ort_status(api, read_path_flags(&ep, &session->path_flags, &error), &error));
    if (session->share && (session->buffers.read_fn || session->buffers.write_fn)) {
        return epctx_ort_fail(
            api, EPCTX_ERR_ARG,
            "ep.share_ep_contexts needs files: binaries that the application reads or "
            "writes itself have no paths to tell them apart");
    }
    if (session->share) {
        EPCTX_ORT_TRY(ep_sharing_backend(session->factory, &ep, &session->backend));
        return session_ready(session);
    }
    epctx_error_clear(&error);
    status = ep_backend_open(device, &ep, &session->backend, &error);
    session->backend_open = status == EPCTX_OK;
    EPCTX_ORT_TRY(epctx_ort_status(api, status, &error));
    return session_ready(session);
}

OrtStatus *ep_session_create(ep_factory *factory, const OrtSessionOptions *options,
                             const OrtLogger *logger, ep_session **out) {
    /* calloc: ORT takes every member that is not set for "default". */
    ep_session *session = (ep_session *)calloc(1, sizeof *session);
    OrtStatus *status;
    if (!session) return epctx_ort_no_memory(&factory->api);
    session->factory = factory;
    session->api = &factory->api;
    session->logger = logger;
    epctx_ort_announce(&factory->api, &session->ort);
    session->ort.older.GetName = get_name;
    session->ort.older.GetCapability = get_capability;
    session->ort.older.Compile = compile;
    session->ort.older.ReleaseNodeComputeInfos = release_infos;
    session->ort.older.IsConcurrentRunSupported = is_concurrent;
    if (factory->api.version >= EP_INITIALIZED_API)
        session->ort.older.OnSessionInitializationEnd = initialization_end;
    if (session->api->version >= EP_WEIGHTLESS_API)
        session->ort.older.GetWeightlessSupport = get_weightless;
    if (factory->device->channels_last_fn) session->ort.older.GetPreferredDataLayout = get_layout;
    if (factory->device->convert_fn)
        session->ort.older.ShouldConvertDataLayoutForOp = should_convert;
    ep_compatibility_register_session(session);
    ep_runs_register(session);
    ep_memory_register_session(session);
    ep_stream_register_session(session);
    ep_profiler_register(session);
    status = session_open(session, options);
    if (status) {
        ep_session_release(session);
        return status;
    }
    *out = session;
    return NULL;
}

void ep_session_release(ep_session *session) {
    if (!session) return;
    ep_share_leave(session);
    ep_binary_withdraw(session);
    ep_runs_report(session);
    ep_profiler_detach(session);
    if (session->backend_open) session->factory->device->close_fn(&session->backend);
    if (session->config) session->api->ort->ReleaseKeyValuePairs(session->config);
    epctx_arena_free(&session->arena);
    free(session);
}
