/* init.c - moves initializers into the model or into a file, or removes them. */
#include "init.h"

typedef struct init_work {
    ops_conversion c;
    epctx_str file;   /* that takes initializers, as the model names it */
    epctx_list parts; /* epctx_span: its bytes, */
    uint64_t size;    /* and how many they are */
    bool file_used;   /* by initializers that were in it before */
} init_work;

typedef epctx_status (*init_step)(init_work *w);

static epctx_status init_note(init_work *w, epctx_change_kind kind, epctx_str name, epctx_str file,
                              uint64_t size) {
    epctx_change change = {kind, name, file, size, NULL};
    return epctx_changes_put(w->c.changes, w->c.arena, &change, w->c.error);
}

static epctx_status init_skip(init_work *w, epctx_str name, uint64_t size, const char *reason) {
    epctx_change change = {EPCTX_CHANGE_SKIPPED, name, epctx_str_of(NULL), size, reason};
    return epctx_changes_put(w->c.changes, w->c.arena, &change, w->c.error);
}

/* The main graph and its bodies, outer ones first. */
static bool init_next_graph(epctx_walk *walk, epctx_graph_view *graph) {
    return epctx_walk_graph(walk, graph) && !walk->in_function && !walk->in_training;
}

static epctx_status init_run(epctx_model *model, const epctx_convert_opts *opts, init_step step,
                             epctx_changes *changes, epctx_error *error) {
    init_work w;
    memset(&w, 0, sizeof w);
    ops_begin(&w.c, model, opts, changes, error);
    return ops_end_conversion(&w.c, step(&w));
}

/* -- inline -- */

static bool init_is_small(const init_work *w, const epctx_tensor_view *view) {
    epctx_tensor tensor;
    return epctx_tensor_load(w->c.model, view->view, NULL, &tensor, NULL) == EPCTX_OK &&
           tensor.size < w->c.opts.threshold;
}

static epctx_status init_inline_step(init_work *w) {
    epctx_walk walk;
    epctx_graph_view graph;
    epctx_walk_begin(&walk, w->c.model);
    while (init_next_graph(&walk, &graph)) {
        epctx_cursor tensors = epctx_graph_initializers(graph);
        epctx_tensor_view tensor;
        while (epctx_next_tensor(&tensors, &tensor))
            if (tensor.external && (w->c.opts.threshold == 0 || init_is_small(w, &tensor)))
                OPS_TRY(ops_inline_tensor(w->c.model, &tensor, w->c.changes, w->c.error));
    }
    return ops_check_size(w->c.model, "store initializers in a file", w->c.error);
}

epctx_status epctx_init_inline(epctx_model *model, const epctx_convert_opts *opts,
                               epctx_changes *changes, epctx_error *error) {
    return init_run(model, opts, init_inline_step, changes, error);
}

/* -- external -- */

static epctx_status init_add_part(init_work *w, const uint8_t *data, size_t size) {
    epctx_span *part;
    if (size > 0) {
        OPS_TRY(ops_add(&w->parts, w->c.arena, sizeof *part, &part, w->c.error));
        part->data = data;
        part->size = size;
        w->size += size;
    }
    return EPCTX_OK;
}

static epctx_status init_external_tensor(init_work *w, const epctx_tensor_view *view) {
    epctx_tensor tensor;
    uint64_t gap;
    OPS_TRY(epctx_tensor_load(w->c.model, view->view, NULL, &tensor, w->c.error));
    if (tensor.data == NULL) return init_skip(w, view->name, 0, ops_no_bytes(&tensor));
    if (tensor.size < w->c.opts.threshold) return EPCTX_OK;
    gap = (0 - w->size) % w->c.opts.alignment;
    OPS_TRY(init_add_part(w, NULL, (size_t)gap));
    OPS_TRY(epctx_tensor_set_external(w->c.model, view->view, w->file, w->size, tensor.size,
                                      w->c.error));
    OPS_TRY(init_add_part(w, tensor.data, tensor.size));
    return init_note(w, EPCTX_CHANGE_EXTERNAL, view->name, w->file, tensor.size);
}

/* Reports attribute tensors above the threshold, which stay in the model. */
static epctx_status init_skip_attrs(init_work *w, epctx_graph_view graph) {
    epctx_cursor nodes = epctx_graph_nodes(graph);
    epctx_node_view node;
    epctx_attr_view attr;
    while (epctx_next_node(&nodes, &node)) {
        epctx_cursor attrs = epctx_node_attrs(&node);
        while (epctx_next_attr(&attrs, &attr)) {
            if (epctx_view_exists(attr.t) && attr.t.size >= w->c.opts.threshold) {
                OPS_TRY(init_skip(w, node.name, attr.t.size,
                                  "attribute tensors stay: ORT looks into files for initializers "
                                  "only"));
            }
        }
    }
    return EPCTX_OK;
}

static epctx_status init_external_graph(init_work *w, epctx_graph_view graph) {
    epctx_cursor tensors = epctx_graph_initializers(graph);
    epctx_cursor sparses = epctx_graph_sparse(graph);
    epctx_tensor_view tensor;
    epctx_sparse_view sparse;
    while (epctx_next_tensor(&tensors, &tensor))
        if (tensor.external)
            w->file_used = w->file_used || epctx_str_eq(tensor.location, w->file);
        else
            OPS_TRY(init_external_tensor(w, &tensor));
    OPS_TRY(init_skip_attrs(w, graph));
    while (epctx_next_sparse(&sparses, &sparse))
        OPS_TRY(init_skip(w, sparse.values.name, 0, "sparse initializers stay in the model"));
    return EPCTX_OK;
}

/* Checks the options and names the file. */
static epctx_status init_external_begin(init_work *w) {
    epctx_str path = epctx_str_of(ops_result_path(w->c.model, &w->c.opts));
    const char *pattern = w->c.opts.name != NULL ? w->c.opts.name : "{file}.data";
    char name[EPCTX_PATH_MAX];
    if (epctx_path_file(path).size == 0) {
        return epctx_fail(w->c.error, EPCTX_ERR_PATH,
                          "the model came from memory: set output_path, where it will be written");
    }
    w->c.opts.alignment = w->c.opts.alignment != 0 ? w->c.opts.alignment : 4096;
    if ((w->c.opts.alignment & (w->c.opts.alignment - 1)) != 0 || w->c.opts.alignment > 1u << 30) {
        return epctx_fail(w->c.error, EPCTX_ERR_ARG,
                          "alignment %u is not a power of two up to 2^30", w->c.opts.alignment);
    }
    OPS_TRY(epctx_profile_fill_name(pattern, NULL, NULL, epctx_path_file(path), name, sizeof name,
                                    w->c.error));
    OPS_TRY(epctx_output_name_check(epctx_str_of(name), path, NULL, w->c.error));
    w->file = epctx_str_of(epctx_arena_copy(w->c.arena, epctx_str_of(name)));
    return w->file.size > 0 ? EPCTX_OK : ops_nomem(w->c.arena, w->c.error);
}

static epctx_status init_external_step(init_work *w) {
    epctx_walk walk;
    epctx_graph_view graph;
    epctx_output_file file;
    OPS_TRY(init_external_begin(w));
    epctx_walk_begin(&walk, w->c.model);
    while (init_next_graph(&walk, &graph)) OPS_TRY(init_external_graph(w, graph));
    if (w->parts.count == 0) return EPCTX_OK;
    if (w->file_used) {
        return epctx_fail(w->c.error, EPCTX_ERR_PATH,
                          "'%S' already contains weights of this model: inline them first, or "
                          "choose another name",
                          &w->file);
    }
    OPS_TRY(epctx_output_file_of(w->c.model, ops_result_path(w->c.model, &w->c.opts), w->file,
                                 (const epctx_span *)w->parts.items, w->parts.count, &file,
                                 w->c.error));
    return epctx_changes_put_file(w->c.changes, w->c.arena, &file, w->c.error);
}

epctx_status epctx_init_external(epctx_model *model, const epctx_convert_opts *opts,
                                 epctx_changes *changes, epctx_error *error) {
    return init_run(model, opts, init_external_step, changes, error);
}

/* -- prune -- */

static epctx_status init_use_node(init_work *w, epctx_map *used, const epctx_node_view *node) {
    epctx_cursor inputs = epctx_node_inputs(node);
    const epctx_str *captures;
    epctx_str name;
    size_t count, i;
    while (epctx_next_str(&inputs, &name)) OPS_TRY(ops_put(used, name, 1, w->c.error));
    OPS_TRY(epctx_node_captures(node->view, w->c.arena, &captures, &count, w->c.error));
    for (i = 0; i < count; i++) OPS_TRY(ops_put(used, captures[i], 1, w->c.error));
    return EPCTX_OK;
}

/* Names that a graph and its subgraphs read, and that its interface and annotations use. */
static epctx_status init_use_graph(init_work *w, epctx_map *used, epctx_graph_view graph) {
    epctx_cursor nodes = epctx_graph_nodes(graph);
    epctx_cursor inputs = epctx_graph_inputs(graph);
    epctx_cursor outputs = epctx_graph_outputs(graph);
    epctx_cursor annotations = epctx_graph_annotations(graph);
    epctx_annotation_view annotation;
    epctx_value_view value;
    epctx_node_view node;
    epctx_pair pair;
    while (epctx_next_node(&nodes, &node)) OPS_TRY(init_use_node(w, used, &node));
    while (epctx_next_value(&inputs, &value) || epctx_next_value(&outputs, &value))
        OPS_TRY(ops_put(used, value.name, 1, w->c.error));
    while (epctx_next_annotation(&annotations, &annotation)) {
        epctx_cursor pairs = epctx_annotation_pairs(&annotation);
        OPS_TRY(ops_put(used, annotation.tensor_name, 1, w->c.error));
        while (epctx_next_pair(&pairs, &pair)) OPS_TRY(ops_put(used, pair.value, 1, w->c.error));
    }
    return EPCTX_OK;
}

/* Training graphs read and replace initializers of the main graph. */
static epctx_status init_use_training(init_work *w, epctx_map *used) {
    epctx_cursor trainings = epctx_model_trainings(w->c.model);
    epctx_training_view training;
    epctx_pair pair;
    while (epctx_next_training(&trainings, &training)) {
        epctx_cursor initial =
            epctx_view_fields(training.view, EPCTX_FIELD_TRAINING_INITIALIZATION_BINDING);
        epctx_cursor updates =
            epctx_view_fields(training.view, EPCTX_FIELD_TRAINING_UPDATE_BINDING);
        OPS_TRY(init_use_graph(w, used, training.initialization));
        OPS_TRY(init_use_graph(w, used, training.algorithm));
        while (epctx_next_pair(&initial, &pair) || epctx_next_pair(&updates, &pair)) {
            OPS_TRY(ops_put(used, pair.key, 1, w->c.error));
            OPS_TRY(ops_put(used, pair.value, 1, w->c.error));
        }
    }
    return EPCTX_OK;
}

static epctx_status init_prune_one(init_work *w, const epctx_map *used, epctx_view view,
                                   epctx_str name) {
    if (ops_has(used, name)) return EPCTX_OK;
    OPS_TRY(epctx_view_remove(w->c.model, view, w->c.error));
    return init_note(w, EPCTX_CHANGE_PRUNED, name, epctx_str_of(NULL), view.size);
}

static epctx_status init_prune_step(init_work *w) {
    epctx_walk walk;
    epctx_graph_view graph;
    epctx_walk_begin(&walk, w->c.model);
    while (init_next_graph(&walk, &graph)) {
        epctx_cursor tensors = epctx_graph_initializers(graph);
        epctx_cursor sparses = epctx_graph_sparse(graph);
        epctx_tensor_view tensor;
        epctx_sparse_view sparse;
        epctx_map used;
        epctx_map_init(&used, w->c.arena);
        OPS_TRY(init_use_graph(w, &used, graph));
        if (walk.depth == 0) OPS_TRY(init_use_training(w, &used));
        while (epctx_next_tensor(&tensors, &tensor))
            OPS_TRY(init_prune_one(w, &used, tensor.view, tensor.name));
        while (epctx_next_sparse(&sparses, &sparse))
            OPS_TRY(init_prune_one(w, &used, sparse.view, sparse.values.name));
    }
    return EPCTX_OK;
}

epctx_status epctx_init_prune(epctx_model *model, const epctx_convert_opts *opts,
                              epctx_changes *changes, epctx_error *error) {
    return init_run(model, opts, init_prune_step, changes, error);
}
