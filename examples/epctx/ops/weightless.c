/* weightless.c - reads weights of EPContext nodes from the source model, or stores them. */
#include "weightless.h"

/* An EPContext node of the model. */
typedef struct weightless_node {
    epctx_view view;
    epctx_epnode node;
    bool chosen;
    bool takes; /* weights as inputs */
} weightless_node;

typedef struct weightless_work {
    ops_conversion c;
    epctx_list nodes;  /* weightless_node */
    epctx_map weights; /* names of initializers that nodes take */
    epctx_str source;  /* name of the source model */
} weightless_work;

typedef epctx_status (*weightless_step)(weightless_work *w);

static weightless_node *weightless_node_at(const weightless_work *w, size_t i) {
    return (weightless_node *)w->nodes.items + i;
}

static epctx_status weightless_note(weightless_work *w, ops_change_kind kind, epctx_str name,
                                    epctx_str file, uint64_t size, const char *reason) {
    ops_change change = {kind, name, file, size, reason};
    return ops_changes_put(w->c.changes, w->c.arena, &change, w->c.error);
}

/* Every EPContext node of the model. */
static epctx_status weightless_find_nodes(weightless_work *w) {
    epctx_walk walk;
    epctx_node_view view;
    size_t chosen = 0;
    epctx_walk_begin(&walk, w->c.model);
    while (epctx_walk_epnode(&walk, &view)) {
        weightless_node *node;
        if (!epctx_view_is_epnode(&view)) continue;
        OPS_TRY(ops_add(&w->nodes, w->c.arena, sizeof *node, &node, w->c.error));
        OPS_TRY(epctx_view_read_epnode(&view, &node->node, w->c.error));
        node->view = view.view;
        node->chosen =
            w->c.opts.common.node == NULL || epctx_str_is(node->node.name, w->c.opts.common.node);
        chosen += node->chosen;
    }
    if (w->nodes.count == 0) {
        return epctx_fail(w->c.error, EPCTX_ERR_NO_NODES,
                          "there is no EPContext node: compile the model first");
    }
    return chosen > 0 ? EPCTX_OK
                      : epctx_fail(w->c.error, EPCTX_ERR_NO_NODES,
                                   "there is no EPContext node '%s', but for example '%S'",
                                   w->c.opts.common.node, &weightless_node_at(w, 0)->node.name);
}

/* The initializers of the main graph that chosen nodes take. */
static epctx_status weightless_find_weights(weightless_work *w) {
    epctx_cursor tensors = epctx_view_graph_initializers(epctx_model_graph(w->c.model));
    epctx_tensor_view tensor;
    epctx_map initializers;
    epctx_str name;
    size_t i;
    epctx_map_init(&initializers, w->c.arena);
    while (epctx_next_tensor(&tensors, &tensor))
        OPS_TRY(ops_put(&initializers, tensor.name, 1, w->c.error));
    for (i = 0; i < w->nodes.count; i++) {
        weightless_node *node = weightless_node_at(w, i);
        epctx_cursor inputs = epctx_view_fields(node->view, EPCTX_FIELD_NODE_INPUT);
        while (node->chosen && epctx_next_str(&inputs, &name)) {
            if (ops_has(&initializers, name)) {
                node->takes = true;
                OPS_TRY(ops_put(&w->weights, name, 1, w->c.error));
            }
        }
    }
    return EPCTX_OK;
}

static epctx_status weightless_run(epctx_model *model, const ops_convert_opts *opts,
                                   weightless_step step, ops_changes *changes, epctx_error *error) {
    epctx_status status;
    weightless_work w;
    memset(&w, 0, sizeof w);
    ops_begin(&w.c, model, opts, changes, error);
    epctx_map_init(&w.weights, w.c.arena);
    status = weightless_find_nodes(&w);
    if (status == EPCTX_OK) status = weightless_find_weights(&w);
    if (status == EPCTX_OK) status = step(&w);
    return ops_end_conversion(&w.c, status);
}

/* -- weights into the source model -- */

/* The source model's name: given, or what the first node that takes weights stores. */
static epctx_status weightless_name_source(weightless_work *w) {
    size_t i;
    w->source = epctx_str_of(w->c.opts.source);
    for (i = 0; i < w->nodes.count && w->source.size == 0; i++)
        if (weightless_node_at(w, i)->takes)
            w->source = weightless_node_at(w, i)->node.onnx_model_filename;
    return w->source.size > 0
               ? EPCTX_OK
               : epctx_fail(w->c.error, EPCTX_ERR_ARG,
                            "no node stores onnx_model_filename: specify the source model");
}

static epctx_status weightless_open_source(weightless_work *w, epctx_model *source) {
    epctx_str folder = epctx_path_folder(epctx_str_of(w->c.model->path));
    char path[EPCTX_PATH_MAX];
    epctx_open_opts opts;
    memset(&opts, 0, sizeof opts);
    opts.io = epctx_model_io(w->c.model);
    opts.limits = w->c.model->limits;
    opts.path_flags = w->c.model->path_flags;
    opts.allocator = w->c.arena->allocator.alloc_fn != NULL ? &w->c.arena->allocator : NULL;
    OPS_TRY(epctx_path_find(opts.io, folder, w->source, opts.path_flags, path, sizeof path,
                            w->c.error));
    return epctx_model_open_file(source, path, &opts, w->c.error);
}

/* Not the model that this one was compiled from: to refer to a part of it would hide that. */
static epctx_status weightless_refuse(weightless_work *w, epctx_str name, const char *found) {
    return epctx_fail(w->c.error, EPCTX_ERR_VERSION,
                      "initializer '%S': expected the same in the source model '%S', found %s: it "
                      "is a different model",
                      &name, &w->source, found);
}

static bool weightless_equal(const epctx_tensor *a, const epctx_tensor *b) {
    return a->elem_type == b->elem_type && a->rank == b->rank && a->size == b->size &&
           (a->rank == 0 || memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) == 0) &&
           (a->size == 0 || memcmp(a->data, b->data, a->size) == 0);
}

/* Where the data of a tensor of the source is, as this model would name it. */
static epctx_status weightless_place(weightless_work *w, const epctx_model *source,
                                     const epctx_tensor_view *theirs, epctx_str *location,
                                     uint64_t *offset) {
    if (theirs->external) {
        *offset = theirs->offset;
        return ops_join(w->c.arena, epctx_path_folder(w->source), theirs->location, location,
                        w->c.error);
    }
    *location = w->source;
    *offset = (uint64_t)(theirs->raw.data - source->bytes.data);
    return EPCTX_OK;
}

/* Replaces an initializer with a reference to the same one of the source. */
static epctx_status weightless_refer(weightless_work *w, epctx_model *source,
                                     const epctx_tensor_view *mine, epctx_view other) {
    epctx_tensor_view theirs = epctx_view_as_tensor(other);
    epctx_tensor a, b;
    epctx_str location;
    uint64_t offset;
    const char *why;
    OPS_TRY(epctx_model_load_tensor(w->c.model, mine->view, NULL, &a, w->c.error));
    why = ops_no_bytes(&a);
    if (why == NULL) {
        OPS_TRY(epctx_model_load_tensor(source, other, NULL, &b, w->c.error));
        why = ops_no_bytes(&b);
    }
    if (why == NULL && !weightless_equal(&a, &b))
        return weightless_refuse(w, mine->name, "another tensor of this name");
    if (why == NULL && !theirs.external && !theirs.has_raw)
        why = "the source model stores it in typed fields, which cannot be referenced";
    if (why == NULL && a.size == 0) why = "has no bytes";
    if (why != NULL)
        return weightless_note(w, OPS_CHANGE_SKIPPED, mine->name, epctx_str_of(NULL), a.size, why);
    OPS_TRY(weightless_place(w, source, &theirs, &location, &offset));
    OPS_TRY(epctx_edit_set_tensor_external(w->c.model, mine->view, location, offset, a.size,
                                           w->c.error));
    return weightless_note(w, OPS_CHANGE_EXTERNAL, mine->name, location, a.size, NULL);
}

static epctx_status weightless_refer_all(weightless_work *w, epctx_model *source) {
    epctx_cursor tensors = epctx_view_graph_initializers(epctx_model_graph(source));
    epctx_tensor_view tensor;
    epctx_list views;
    epctx_map theirs;
    memset(&views, 0, sizeof views);
    epctx_map_init(&theirs, w->c.arena);
    while (epctx_next_tensor(&tensors, &tensor)) {
        OPS_TRY(ops_put(&theirs, tensor.name, (uint32_t)views.count, w->c.error));
        OPS_TRY(ops_add_view(&views, w->c.arena, tensor.view, w->c.error));
    }
    tensors = epctx_view_graph_initializers(epctx_model_graph(w->c.model));
    while (epctx_next_tensor(&tensors, &tensor)) {
        if (!ops_has(&w->weights, tensor.name)) continue;
        if (!ops_has(&theirs, tensor.name)) return weightless_refuse(w, tensor.name, "none");
        OPS_TRY(weightless_refer(w, source, &tensor,
                                 ops_view_at(&views, epctx_map_get(&theirs, tensor.name))));
    }
    return EPCTX_OK;
}

/* Stores the name of the source in nodes that take weights. */
static epctx_status weightless_store_source(weightless_work *w) {
    size_t i;
    for (i = 0; i < w->nodes.count; i++) {
        const weightless_node *node = weightless_node_at(w, i);
        if (node->takes && node->node.onnx_model_filename.size == 0) {
            OPS_TRY(epctx_edit_set_attr_str(w->c.model, node->view, "onnx_model_filename",
                                            w->source, w->c.error));
            OPS_TRY(weightless_note(w, OPS_CHANGE_SOURCE, node->node.name, w->source, 0, NULL));
        }
    }
    return EPCTX_OK;
}

static epctx_status weightless_out(weightless_work *w) {
    epctx_model source;
    epctx_status status;
    if (w->weights.count == 0) {
        return epctx_fail(w->c.error, EPCTX_ERR_UNSUPPORTED,
                          "no EPContext node takes weights as inputs: they are in the binary, and "
                          "only the EP can omit them (compile with ep.enable_weightless)");
    }
    OPS_TRY(weightless_name_source(w));
    memset(&source, 0, sizeof source);
    status = weightless_open_source(w, &source);
    if (status == EPCTX_OK) status = weightless_refer_all(w, &source);
    epctx_model_close(&source);
    OPS_TRY(status);
    return w->c.changes->done > 0 ? weightless_store_source(w) : EPCTX_OK;
}

epctx_status epctx_weightless(epctx_model *model, const ops_convert_opts *opts,
                              ops_changes *changes, epctx_error *error) {
    return weightless_run(model, opts, weightless_out, changes, error);
}

/* -- weights into the model -- */

/* A binary without weights reads them from the source model when it is loaded. */
static epctx_status weightless_check_binary(weightless_work *w, const weightless_node *node) {
    epctx_node_view view = epctx_view_as_node(node->view);
    epctx_str context = node->node.ep_cache_context;
    bool stripped = ops_ends(context, ".stripped.engine");
    if (!node->chosen ||
        (!stripped && epctx_view_node_attr_str(&view, EPCTX_WEIGHTS_ATTR).size == 0))
        return EPCTX_OK;
    epctx_fail(w->c.error, EPCTX_ERR_UNSUPPORTED,
               "has a context without weights: only the EP can put them in; compile again without "
               "%s",
               stripped ? "trt_weight_stripped_engine_enable" : "ep.enable_weightless");
    epctx_blame(w->c.error, NULL, &view.name, "ep_cache_context");
    return EPCTX_ERR_UNSUPPORTED;
}

static epctx_status weightless_in(weightless_work *w) {
    epctx_cursor tensors = epctx_view_graph_initializers(epctx_model_graph(w->c.model));
    epctx_tensor_view tensor;
    size_t i;
    while (epctx_next_tensor(&tensors, &tensor))
        if (tensor.external && ops_has(&w->weights, tensor.name))
            OPS_TRY(ops_inline_tensor(w->c.model, &tensor, w->c.changes, w->c.error));
    for (i = 0; i < w->nodes.count; i++) {
        const weightless_node *node = weightless_node_at(w, i);
        OPS_TRY(weightless_check_binary(w, node));
        if (node->takes && (node->node.present & 1u << EPCTX_EPNODE_ONNX_MODEL_FILENAME) != 0) {
            OPS_TRY(epctx_edit_remove_attr(w->c.model, node->view,
                                           epctx_str_of("onnx_model_filename"), w->c.error));
            OPS_TRY(weightless_note(w, OPS_CHANGE_SOURCE, node->node.name, epctx_str_of(NULL), 0,
                                    NULL));
        }
    }
    return ops_check_size(w->c.model, "store the weights in a file", w->c.error);
}

epctx_status epctx_self_contained(epctx_model *model, const ops_convert_opts *opts,
                                  ops_changes *changes, epctx_error *error) {
    return weightless_run(model, opts, weightless_in, changes, error);
}
