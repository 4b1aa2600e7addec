#include "split.h"

#include "carry.h"
#include "lint.h"
#include "place.h"
#include "repair.h"

typedef struct split {
    epctx_model *model;
    epctx_view graph;   /* its main graph, for edits */
    epctx_arena *arena; /* of the model, for everything here */
    epctx_error *error;
    ops_report report;
    epctx_split_opts opts;
    bool inputs_wanted, outputs_wanted; /* by the caller */
    epctx_node_view *nodes;
    size_t node_count;
    bool *needed;        /* per node */
    epctx_map producers; /* name -> number of the node */
    epctx_map inits;     /* names of initializers */
    epctx_map inputs;    /* names of graph inputs */
    epctx_map cuts;      /* names of the inputs wanted -> number */
    epctx_map seen;      /* names that the outputs need */
    epctx_map ends;      /* names of inputs and outputs of the result */
    bool *reached;       /* per cut */
    epctx_list stack;    /* of these, those that are still to be followed */
    epctx_list gone;     /* views */
} split;

static epctx_status drop(split *s, epctx_view view) {
    return ops_add_view(&s->gone, s->arena, view, s->error);
}

/* Removes the collected views. */
static epctx_status drop_end(split *s) {
    OPS_TRY(ops_remove_views(s->model, &s->gone, s->error));
    s->gone.count = 0;
    return EPCTX_OK;
}

static epctx_status split_index(split *s) {
    epctx_graph_view graph = epctx_model_graph(s->model);
    epctx_cursor nodes = epctx_view_graph_nodes(graph);
    epctx_cursor inputs = epctx_view_graph_inputs(graph);
    epctx_value_view value;
    epctx_node_view node;
    epctx_str name;
    size_t count = epctx_cursor_count(nodes);
    OPS_TRY(ops_array(s->arena, count, sizeof *s->nodes, &s->nodes, s->error));
    OPS_TRY(ops_array(s->arena, count, sizeof *s->needed, &s->needed, s->error));
    while (epctx_next_node(&nodes, &node)) {
        epctx_cursor outputs = epctx_view_node_outputs(&node);
        while (epctx_next_str(&outputs, &name))
            OPS_TRY(ops_put(&s->producers, name, (uint32_t)s->node_count, s->error));
        s->nodes[s->node_count++] = node;
    }
    while (epctx_next_value(&inputs, &value)) OPS_TRY(ops_put(&s->inputs, value.name, 1, s->error));
    return ops_put_definitions(&s->inits, ops_initializers_of(graph.view), s->error);
}

/* -- what is wanted -- */

/* By default, the inputs and outputs of the model. */
static epctx_status split_defaults(split *s, epctx_cursor it, const epctx_value **list,
                                   size_t *count, bool inputs) {
    epctx_value_view value;
    epctx_value *values;
    OPS_TRY(ops_array(s->arena, epctx_cursor_count(it), sizeof *values, &values, s->error));
    *count = 0;
    while (epctx_next_value(&it, &value))
        if (!inputs || !ops_has(&s->inits, value.name)) values[(*count)++].name = value.name;
    *list = values;
    return EPCTX_OK;
}

static epctx_status check_known(const split *s, epctx_str name) {
    if (ops_has(&s->producers, name) || ops_has(&s->inits, name) || ops_has(&s->inputs, name))
        return EPCTX_OK;
    return epctx_fail(s->error, EPCTX_ERR_NOT_FOUND,
                      "the main graph has no value '%S' (values inside subgraphs cannot be cut)",
                      &name);
}

static epctx_status split_wishes(split *s) {
    epctx_graph_view graph = epctx_model_graph(s->model);
    size_t i;
    if (!s->outputs_wanted) {
        OPS_TRY(split_defaults(s, epctx_view_graph_outputs(graph), &s->opts.outputs,
                               &s->opts.output_count, false));
    }
    if (!s->inputs_wanted) {
        OPS_TRY(split_defaults(s, epctx_view_graph_inputs(graph), &s->opts.inputs,
                               &s->opts.input_count, true));
    }
    OPS_TRY(ops_array(s->arena, s->opts.input_count, sizeof *s->reached, &s->reached, s->error));
    for (i = 0; i < s->opts.input_count; i++) {
        epctx_str name = s->opts.inputs[i].name;
        OPS_TRY(check_known(s, name));
        if (ops_has(&s->cuts, name))
            return epctx_fail(s->error, EPCTX_ERR_ARG, "input '%S' is listed twice", &name);
        OPS_TRY(ops_put(&s->cuts, name, (uint32_t)i, s->error));
        OPS_TRY(ops_put(&s->ends, name, 1, s->error));
    }
    for (i = 0; i < s->opts.output_count; i++) {
        epctx_str name = s->opts.outputs[i].name;
        OPS_TRY(check_known(s, name));
        /* A model may pass an input through; a part that only does so is empty. */
        if (ops_has(&s->ends, name) && (s->inputs_wanted || s->outputs_wanted)) {
            return epctx_fail(s->error, EPCTX_ERR_ARG,
                              "'%S' is listed twice, or as input and output", &name);
        }
        OPS_TRY(ops_put(&s->ends, name, 1, s->error));
    }
    return EPCTX_OK;
}

/* -- what the outputs need -- */

static epctx_status push(split *s, epctx_str name) {
    if (name.size == 0 || ops_has(&s->seen, name)) return EPCTX_OK;
    OPS_TRY(ops_add_name(&s->stack, s->arena, name, s->error));
    return ops_put(&s->seen, name, 1, s->error);
}

/* The values that a node and its subgraphs read. */
static epctx_status push_reads(split *s, const epctx_node_view *node) {
    epctx_cursor inputs = epctx_view_node_inputs(node);
    const epctx_str *captures;
    epctx_str name;
    size_t count, i;
    while (epctx_next_str(&inputs, &name)) OPS_TRY(push(s, name));
    OPS_TRY(epctx_view_node_captures(node->view, s->arena, &captures, &count, s->error));
    for (i = 0; i < count; i++) OPS_TRY(push(s, captures[i]));
    return EPCTX_OK;
}

static epctx_status split_follow(split *s, epctx_str name) {
    uint32_t cut = epctx_map_get(&s->cuts, name);
    uint32_t node = epctx_map_get(&s->producers, name);
    if (cut != EPCTX_MAP_NONE) {
        s->reached[cut] = true;
        return EPCTX_OK;
    }
    if (node != EPCTX_MAP_NONE) {
        bool first = !s->needed[node];
        s->needed[node] = true;
        return first ? push_reads(s, &s->nodes[node]) : EPCTX_OK;
    }
    if (ops_has(&s->inits, name)) return EPCTX_OK;
    return epctx_fail(s->error, EPCTX_ERR_GRAPH,
                      ops_has(&s->inputs, name)
                          ? "the outputs also need input '%S': list it, or a value computed from "
                            "it, as an input"
                          : "a node reads '%S', but nothing produces it",
                      &name);
}

static epctx_status split_walk(split *s) {
    size_t i;
    for (i = 0; i < s->opts.output_count; i++) OPS_TRY(push(s, s->opts.outputs[i].name));
    while (s->stack.count > 0) OPS_TRY(split_follow(s, ops_name_at(&s->stack, --s->stack.count)));
    for (i = 0; s->inputs_wanted && i < s->opts.input_count; i++) {
        if (!s->reached[i]) {
            return epctx_fail(
                s->error, EPCTX_ERR_ARG,
                "input '%S' has no effect: nothing between the inputs and the outputs "
                "reads it",
                &s->opts.inputs[i].name);
        }
    }
    return EPCTX_OK;
}

/* -- the context of nodes that stay -- */

/* Hands the context over to the first secondary node that stays. */
static epctx_status promote(split *s, const epctx_node_view *from, const epctx_node_view *to) {
    epctx_step step;
    static const char *const names[] = {"main_context",     "embed_mode",
                                        "ep_cache_context", "max_size",
                                        "ep_context_type",  "is_multi_soc_ep_context"};
    size_t i;
    for (i = 0; i < sizeof names / sizeof names[0]; i++) {
        epctx_cursor attrs = epctx_view_node_attrs(from);
        epctx_attr_view attr;
        while (epctx_next_attr(&attrs, &attr))
            if (epctx_str_is(attr.name, names[i]))
                OPS_TRY(epctx_edit_copy_attr(s->model, to->view, attr.view, s->error));
    }
    OPS_TRY(epctx_edit_set_attr_int(s->model, to->view, "main_context", 1, s->error));
    step = ops_step(0, "change", "node", to->name);
    return ops_say(&s->report, &step, s->error,
                   "node '%S' takes over the context of '%S', which is removed", &to->name,
                   &from->name);
}

/* Whether a node is one of EPContext with that main_context; `key`: those that share contexts. */
static epctx_status context_of(split *s, size_t number, int64_t main_context, epctx_epnode *ep,
                               epctx_str *key, bool *is) {
    const epctx_node_view *node = &s->nodes[number];
    *is = epctx_view_is_epnode(node) && epctx_view_read_epnode(node, ep, NULL) == EPCTX_OK &&
          ep->main_context == main_context;
    /* A source may be empty, which no map takes as a key. */
    return *is ? ops_join(s->arena, ep->source, epctx_str_of("\n"), key, s->error) : EPCTX_OK;
}

static epctx_status split_contexts(split *s) {
    epctx_map primaries; /* source -> number of the only primary node, or `many` */
    epctx_map kept;
    const uint32_t many = UINT32_MAX - 1;
    epctx_epnode ep;
    epctx_str key;
    bool is;
    size_t i;
    epctx_map_init(&primaries, s->arena);
    epctx_map_init(&kept, s->arena);
    for (i = 0; i < s->node_count; i++) {
        OPS_TRY(context_of(s, i, 1, &ep, &key, &is));
        if (is)
            OPS_TRY(
                ops_put(&primaries, key, ops_has(&primaries, key) ? many : (uint32_t)i, s->error));
        if (is && s->needed[i]) OPS_TRY(ops_put(&kept, key, 1, s->error));
    }
    for (i = 0; i < s->node_count; i++) {
        const epctx_profile *profile;
        uint32_t from;
        OPS_TRY(context_of(s, i, 0, &ep, &key, &is));
        if (!is || !s->needed[i]) continue;
        profile = epctx_profile_of(ep.source);
        from = epctx_map_get(&primaries, key);
        if ((profile->traits & EPCTX_TRAIT_EACH_CONTEXT) != 0 ||
            (profile->traits & EPCTX_TRAIT_SECONDARY_CONTEXT) != 0 || from == EPCTX_MAP_NONE ||
            (from != many && ops_has(&kept, key)))
            continue;
        if (from == many) {
            epctx_fail(s->error, EPCTX_ERR_UNSUPPORTED,
                       "the node's graph is in the context of one of several nodes, and only the "
                       "EP knows which one");
            epctx_blame(s->error, NULL, &ep.name, NULL);
            return EPCTX_ERR_UNSUPPORTED;
        }
        OPS_TRY(promote(s, &s->nodes[from], &s->nodes[i]));
        OPS_TRY(ops_put(&kept, key, 1, s->error));
    }
    return EPCTX_OK;
}

/* -- inputs and outputs -- */

/* What knows the type of a value that becomes an input or output. */
typedef struct split_types {
    epctx_map names; /* -> number in `values` */
    epctx_list values;
} split_types;

static epctx_status put_types(split *s, split_types *types, epctx_cursor it) {
    epctx_value_view value;
    while (epctx_next_value(&it, &value)) {
        if (ops_has(&s->ends, value.name)) {
            OPS_TRY(ops_put(&types->names, value.name, (uint32_t)types->values.count, s->error));
            OPS_TRY(ops_add_view(&types->values, s->arena, value.view, s->error));
        }
    }
    return EPCTX_OK;
}

/* The type of an initializer that becomes an input. */
static epctx_status tensor_type(split *s, epctx_str name, epctx_value *out) {
    epctx_cursor tensors = epctx_view_graph_initializers(epctx_model_graph(s->model));
    epctx_tensor_view tensor;
    while (ops_has(&s->inits, name) && epctx_next_tensor(&tensors, &tensor)) {
        epctx_cursor dims = epctx_view_tensor_dims(&tensor);
        int64_t *list;
        if (!epctx_str_eq(tensor.name, name)) continue;
        OPS_TRY(ops_array(s->arena, tensor.rank, sizeof *list, &list, s->error));
        out->elem_type = tensor.elem_type;
        out->dims = list;
        for (out->rank = 0; out->rank < (int32_t)tensor.rank; out->rank++)
            (void)epctx_next_int(&dims, &list[out->rank]);
        return EPCTX_OK;
    }
    return EPCTX_OK;
}

static epctx_status put_end(split *s, const epctx_value *wish, bool input, const split_types *types,
                            epctx_view *last) {
    uint32_t at = epctx_map_get(&types->names, wish->name);
    epctx_view none = epctx_view_none();
    epctx_value value = *wish;
    if (wish->elem_type == 0 && at != EPCTX_MAP_NONE) {
        return epctx_edit_put_copy(s->model, s->graph,
                                   input ? EPCTX_FIELD_GRAPH_INPUT : EPCTX_FIELD_GRAPH_OUTPUT,
                                   ops_view_at(&types->values, at), *last, last, s->error);
    }
    if (wish->elem_type == 0) {
        memset(&value, 0, sizeof value);
        value.name = wish->name;
        value.rank = -1;
        OPS_TRY(tensor_type(s, wish->name, &value));
    }
    if (value.elem_type == 0 && input) {
        return epctx_fail(s->error, EPCTX_ERR_GRAPH,
                          "the model has no type for '%S': specify type and shape, or "
                          "add value_info (onnx.shape_inference)",
                          &wish->name);
    }
    if (value.elem_type == 0) {
        const epctx_step step = ops_step(0, "add", "output", wish->name);
        value.rank = -1;
        OPS_TRY(
            ops_say(&s->report, &step, s->error,
                    "output '%S' has no type: ONNX Runtime infers it, the ONNX checker requires "
                    "one",
                    &wish->name));
    }
    return epctx_edit_put_value(s->model, none,
                                input ? EPCTX_FIELD_GRAPH_INPUT : EPCTX_FIELD_GRAPH_OUTPUT, &value,
                                *last, last, s->error);
}

/* Whether an input of the model is one of the result. Those that only make an initializer
 * replaceable stay with it. */
static bool input_stays(const split *s, epctx_str name) {
    bool optional = ops_has(&s->inits, name) && !ops_has(&s->cuts, name);
    return (optional || !s->inputs_wanted) && ops_has(&s->seen, name);
}

/* Whether a value exists in the result. */
static bool lives(const split *s, epctx_str name) {
    uint32_t node = epctx_map_get(&s->producers, name);
    if (!ops_has(&s->cuts, name) && node != EPCTX_MAP_NONE) return s->needed[node];
    return ops_has(&s->seen, name);
}

/* An output that is dropped, of a node that stays, is a value inside now: its type must not get
 * lost, as nobody can infer that of an EPContext node. */
static epctx_status keep_types(split *s) {
    epctx_graph_view graph = epctx_model_graph(s->model);
    epctx_cursor it = epctx_view_graph_values(graph);
    epctx_value_view value;
    epctx_view last = epctx_view_none();
    epctx_map typed;
    epctx_map_init(&typed, s->arena);
    while (epctx_next_value(&it, &value)) OPS_TRY(ops_put(&typed, value.name, 1, s->error));
    it = epctx_view_graph_outputs(graph);
    while (epctx_next_value(&it, &value)) {
        if (!value.has_type || ops_has(&s->ends, value.name) || !lives(s, value.name) ||
            ops_has(&typed, value.name))
            continue;
        OPS_TRY(ops_put(&typed, value.name, 1, s->error));
        OPS_TRY(epctx_edit_put_copy(s->model, s->graph, EPCTX_FIELD_GRAPH_VALUE_INFO, value.view,
                                    last, &last, s->error));
    }
    return EPCTX_OK;
}

static epctx_status split_ends(split *s) {
    epctx_graph_view graph = epctx_model_graph(s->model);
    epctx_cursor it = epctx_view_graph_inputs(graph);
    epctx_value_view value;
    epctx_view last = epctx_view_none();
    split_types types;
    size_t i;
    memset(&types, 0, sizeof types);
    epctx_map_init(&types.names, s->arena);
    OPS_TRY(put_types(s, &types, epctx_view_graph_values(graph)));
    OPS_TRY(put_types(s, &types, epctx_view_graph_outputs(graph)));
    OPS_TRY(put_types(s, &types, epctx_view_graph_inputs(graph)));
    while (epctx_next_value(&it, &value))
        if (!input_stays(s, value.name)) OPS_TRY(drop(s, value.view));
    for (i = 0; s->inputs_wanted && i < s->opts.input_count; i++)
        OPS_TRY(put_end(s, &s->opts.inputs[i], true, &types, &last));
    if (s->outputs_wanted) OPS_TRY(keep_types(s));
    it = epctx_view_graph_outputs(graph);
    while (s->outputs_wanted && epctx_next_value(&it, &value)) OPS_TRY(drop(s, value.view));
    last = epctx_view_none();
    for (i = 0; s->outputs_wanted && i < s->opts.output_count; i++)
        OPS_TRY(put_end(s, &s->opts.outputs[i], false, &types, &last));
    return drop_end(s);
}

/* -- what is in the graph -- */

static bool initializer_stays(const split *s, epctx_str name) {
    return ops_has(&s->seen, name) && !ops_has(&s->cuts, name);
}

static epctx_status split_nodes(split *s) {
    epctx_step step;
    epctx_str name = epctx_model_graph(s->model).name;
    size_t i, count = 0;
    for (i = 0; i < s->node_count; i++) {
        count += s->needed[i];
        if (!s->needed[i]) OPS_TRY(drop(s, s->nodes[i].view));
    }
    step = ops_step(0, "change", "graph", name);
    return ops_say(&s->report, &step, s->error, "%u of %u nodes remain", (uint64_t)count,
                   (uint64_t)s->node_count);
}

/* Keeps annotations of existing values, and the initializers that they name. */
static epctx_status split_annotations(split *s) {
    epctx_cursor it = epctx_graph_annotations(epctx_model_graph(s->model));
    epctx_annotation_view annotation;
    epctx_pair pair;
    while (epctx_next_annotation(&it, &annotation)) {
        epctx_cursor pairs = epctx_annotation_pairs(&annotation);
        if (!lives(s, annotation.tensor_name)) {
            OPS_TRY(drop(s, annotation.view));
            continue;
        }
        while (epctx_next_pair(&pairs, &pair))
            if (ops_has(&s->inits, pair.value)) OPS_TRY(ops_put(&s->seen, pair.value, 1, s->error));
    }
    return EPCTX_OK;
}

static epctx_status split_graph(split *s) {
    epctx_graph_view graph = epctx_model_graph(s->model);
    epctx_cursor tensors = epctx_view_graph_initializers(graph);
    epctx_cursor sparses = epctx_graph_sparse(graph);
    epctx_cursor values = epctx_view_graph_values(graph);
    epctx_tensor_view tensor;
    epctx_sparse_view sparse;
    epctx_value_view value;
    OPS_TRY(split_nodes(s));
    OPS_TRY(split_annotations(s));
    while (epctx_next_tensor(&tensors, &tensor))
        if (!initializer_stays(s, tensor.name)) OPS_TRY(drop(s, tensor.view));
    while (epctx_next_sparse(&sparses, &sparse))
        if (!initializer_stays(s, sparse.values.name)) OPS_TRY(drop(s, sparse.view));
    while (epctx_next_value(&values, &value))
        if (!lives(s, value.name) || ops_has(&s->ends, value.name)) OPS_TRY(drop(s, value.view));
    return drop_end(s);
}

/* -- functions, training -- */

/* Functions by key, and those whose bodies are still to be looked at. */
typedef struct split_calls {
    epctx_function_view *functions;
    epctx_map numbers;
    bool *used;
    uint32_t *stack;
    size_t waiting;
} split_calls;

static epctx_status index_functions(split *s, epctx_cursor it, size_t count, split_calls *calls) {
    uint32_t i;
    memset(calls, 0, sizeof *calls);
    epctx_map_init(&calls->numbers, s->arena);
    OPS_TRY(ops_array(s->arena, count, sizeof *calls->functions, &calls->functions, s->error));
    OPS_TRY(ops_array(s->arena, count, sizeof *calls->used, &calls->used, s->error));
    OPS_TRY(ops_array(s->arena, count, sizeof *calls->stack, &calls->stack, s->error));
    for (i = 0; i < count; i++) {
        epctx_function_view *f = &calls->functions[i];
        epctx_str key;
        (void)epctx_next_function(&it, f);
        OPS_TRY(ops_function_key(s->arena, f->domain, f->name, f->overload, &key, s->error));
        OPS_TRY(ops_put(&calls->numbers, key, i, s->error));
    }
    return EPCTX_OK;
}

/* Marks the functions that the nodes of a graph or function call, those in bodies included. */
static epctx_status mark_calls(split *s, epctx_view body, epctx_kind kind, split_calls *calls) {
    epctx_node_view node;
    epctx_walk walk;
    epctx_walk_below(&walk, body, kind);
    while (epctx_walk_next(&walk, &node)) {
        epctx_str key;
        uint32_t at;
        OPS_TRY(
            ops_function_key(s->arena, node.domain, node.op_type, node.overload, &key, s->error));
        at = epctx_map_get(&calls->numbers, key);
        if (at != EPCTX_MAP_NONE && !calls->used[at]) {
            calls->used[at] = true;
            calls->stack[calls->waiting++] = at;
        }
    }
    return EPCTX_OK;
}

/* Removes functions that nothing calls any more. */
static epctx_status split_functions(split *s) {
    epctx_cursor it = epctx_model_functions(s->model);
    size_t count = epctx_cursor_count(it);
    split_calls calls;
    size_t i;
    OPS_TRY(index_functions(s, it, count, &calls));
    OPS_TRY(mark_calls(s, epctx_model_graph(s->model).view, EPCTX_KIND_GRAPH, &calls));
    while (calls.waiting > 0) {
        epctx_view body = calls.functions[calls.stack[--calls.waiting]].view;
        OPS_TRY(mark_calls(s, body, EPCTX_KIND_FUNCTION, &calls));
    }
    for (i = 0; i < count; i++) {
        const epctx_function_view *f = &calls.functions[i];
        if (!calls.used[i]) {
            const epctx_step step = ops_step(0, "remove", "function", f->name);
            OPS_TRY(drop(s, f->view));
            OPS_TRY(ops_say(&s->report, &step, s->error,
                            "function '%S' was removed: nothing calls it", &f->name));
        }
    }
    return drop_end(s);
}

static epctx_status split_training(split *s) {
    epctx_step step;
    epctx_cursor trainings = epctx_model_trainings(s->model);
    epctx_training_view training;
    while (epctx_next_training(&trainings, &training)) OPS_TRY(drop(s, training.view));
    if (s->gone.count == 0) return EPCTX_OK;
    OPS_TRY(drop_end(s));
    step = ops_step(0, "remove", "training", epctx_str_of(NULL));
    return ops_say(&s->report, &step, s->error,
                   "training info was removed: it describes the whole model");
}

static epctx_status split_run(split *s) {
    uint64_t allowed[EPCTX_RULE_COUNT];
    carry files;
    memset(allowed, 0, sizeof allowed);
    if (!epctx_model_is_editable(s->model))
        return epctx_fail(s->error, EPCTX_ERR_GRAPH, OPS_READ_ONLY);
    OPS_TRY(epctx_lint_count(s->model, NULL, allowed, s->error));
    OPS_TRY(split_index(s));
    OPS_TRY(split_wishes(s));
    OPS_TRY(split_walk(s));
    OPS_TRY(split_contexts(s));
    OPS_TRY(split_ends(s));
    OPS_TRY(split_graph(s));
    OPS_TRY(split_functions(s));
    OPS_TRY(split_training(s));
    OPS_TRY(place_contexts(s->model, &s->report, s->error));
    OPS_TRY(ops_drop_stale(&s->report, s->model, s->error));
    OPS_TRY(ops_drop_builds(&s->report, s->model, s->error));
    carry_begin(&files, &s->report, s->model, s->opts.output_path, s->error);
    OPS_TRY(carry_files(&files, s->model, 0, false));
    return epctx_lint_verify(s->model, NULL, allowed, s->error);
}

epctx_status epctx_split(epctx_model *model, const epctx_split_opts *opts, epctx_combined *out,
                         epctx_error *error) {
    split s;
    size_t mark = epctx_edit_mark(model);
    epctx_error_clear(error);
    memset(&s, 0, sizeof s);
    if (out != NULL) memset(out, 0, sizeof *out);
    if (opts != NULL) s.opts = *opts;
    s.model = model;
    s.graph = epctx_model_graph(model).view;
    s.arena = &model->arena;
    s.error = error;
    s.report.arena = s.arena;
    s.inputs_wanted = s.opts.input_count > 0;
    s.outputs_wanted = s.opts.output_count > 0;
    epctx_map_init(&s.producers, s.arena);
    epctx_map_init(&s.inits, s.arena);
    epctx_map_init(&s.inputs, s.arena);
    epctx_map_init(&s.cuts, s.arena);
    epctx_map_init(&s.seen, s.arena);
    epctx_map_init(&s.ends, s.arena);
    OPS_TRY(ops_end(model, mark, split_run(&s), error));
    ops_report_end(&s.report, out);
    return EPCTX_OK;
}
