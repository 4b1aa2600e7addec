/* init.c - moves initializers into the model or into a file, removes them, makes them constants. */
#include "init.h"

typedef struct init_work {
    ops_conversion c;
    epctx_map shapes; /* names of constants that ORT reads while it infers shapes */
    epctx_str file;   /* that takes initializers, as the model names it */
    epctx_list parts; /* epctx_span: its bytes, */
    uint64_t size;    /* and how many they are */
    bool file_used;   /* by initializers that were in it before */
    epctx_map left;   /* names of files that initializers left -> position in `left_list` */
    epctx_list left_list;
} init_work;

typedef epctx_status (*init_step)(init_work *w);

static epctx_status init_note(init_work *w, ops_change_kind kind, epctx_str name, epctx_str file,
                              uint64_t size, const char *reason) {
    ops_change change = {kind, name, file, size, reason};
    return ops_changes_put(w->c.changes, w->c.arena, &change, w->c.error);
}

static epctx_status init_skip(init_work *w, epctx_str name, uint64_t size, const char *reason) {
    return init_note(w, OPS_CHANGE_SKIPPED, name, epctx_str_of(NULL), size, reason);
}

/* The main graph and its bodies, outer ones first. */
static bool init_next_graph(epctx_walk *walk, epctx_graph_view *graph) {
    return epctx_walk_graph(walk, graph) && !walk->in_function && !walk->in_training;
}

static epctx_status init_run(epctx_model *model, const ops_convert_opts *opts, init_step step,
                             ops_changes *changes, epctx_error *error) {
    init_work w;
    memset(&w, 0, sizeof w);
    ops_begin(&w.c, model, opts, changes, error);
    epctx_map_init(&w.shapes, w.c.arena);
    epctx_map_init(&w.left, w.c.arena);
    return ops_end_conversion(&w.c, step(&w));
}

/* -- what ORT reads from files: initializers, and values of Constant nodes -- */

/* Called with the name of the constant as the view's. */
typedef epctx_status (*init_tensor_fn)(init_work *w, const epctx_tensor_view *tensor);

static epctx_status init_node_tensor(init_work *w, epctx_view view, init_tensor_fn tensor_fn) {
    const epctx_node_view node = epctx_view_as_node(view);
    epctx_cursor outputs = epctx_view_node_outputs(&node);
    epctx_tensor_view tensor;
    epctx_attr_view attr;
    if (!epctx_str_is(node.op_type, "Constant") ||
        !epctx_view_node_find_attr(&node, "value", &attr) || !epctx_view_exists(attr.t))
        return EPCTX_OK;
    tensor = epctx_view_as_tensor(attr.t);
    (void)epctx_next_str(&outputs, &tensor.name);
    return tensor_fn(w, &tensor);
}

static epctx_status init_graph_tensors(init_work *w, epctx_view graph, init_tensor_fn tensor_fn) {
    epctx_cursor tensors = epctx_view_graph_initializers(epctx_view_as_graph(graph));
    epctx_tensor_view tensor;
    while (epctx_next_tensor(&tensors, &tensor)) OPS_TRY(tensor_fn(w, &tensor));
    return EPCTX_OK;
}

static epctx_status init_each_tensor(init_work *w, init_tensor_fn tensor_fn) {
    epctx_walk walk;
    epctx_walk_begin(&walk, w->c.model);
    while (epctx_walk_step(&walk)) {
        if (walk.in_training) continue;
        if (walk.kind == EPCTX_KIND_GRAPH)
            OPS_TRY(init_graph_tensors(w, walk.view, tensor_fn));
        else if (walk.kind == EPCTX_KIND_NODE)
            OPS_TRY(init_node_tensor(w, walk.view, tensor_fn));
    }
    return EPCTX_OK;
}

/* ORT reads it while it infers shapes, before it opens any file. */
static bool init_is_shape(const init_work *w, const epctx_tensor_view *tensor) {
    return ops_has(&w->shapes, tensor->name);
}

static epctx_status init_find_shapes(init_work *w) {
    return epctx_model_shape_names(w->c.model, &w->shapes, w->c.error);
}

static epctx_status init_inline_tensor(init_work *w, const epctx_tensor_view *tensor) {
    return ops_inline_tensor(w->c.model, tensor, w->c.changes, w->c.error);
}

/* -- inline -- */

/* The size that it will have; the loader says what is wrong with it. */
static bool init_is_small(const init_work *w, const epctx_tensor_view *view) {
    return epctx_view_tensor_bytes(view) < w->c.opts.threshold;
}

static epctx_status init_inline_small(init_work *w, const epctx_tensor_view *tensor) {
    return tensor->external && (init_is_small(w, tensor) || init_is_shape(w, tensor))
               ? init_inline_tensor(w, tensor)
               : EPCTX_OK;
}

static epctx_status init_inline_any(init_work *w, const epctx_tensor_view *tensor) {
    return tensor->external ? init_inline_tensor(w, tensor) : EPCTX_OK;
}

/* Those of other attributes, and of sparse tensors, too. */
static epctx_status init_inline_all(init_work *w) {
    epctx_walk walk;
    epctx_tensor_view tensor;
    OPS_TRY(init_each_tensor(w, init_inline_any));
    epctx_walk_begin(&walk, w->c.model);
    while (epctx_walk_tensor(&walk, &tensor))
        if (!walk.in_training) OPS_TRY(init_inline_any(w, &tensor));
    return EPCTX_OK;
}

static epctx_status init_inline_step(init_work *w) {
    if (w->c.opts.threshold > 0) {
        OPS_TRY(init_find_shapes(w));
        OPS_TRY(init_each_tensor(w, init_inline_small));
    } else {
        OPS_TRY(init_inline_all(w));
    }
    return ops_check_size(w->c.model, "store initializers in a file", w->c.error);
}

epctx_status epctx_init_inline(epctx_model *model, const ops_convert_opts *opts,
                               ops_changes *changes, epctx_error *error) {
    return init_run(model, opts, init_inline_step, changes, error);
}

static epctx_status init_inline_shape(init_work *w, const epctx_tensor_view *tensor) {
    return tensor->external && init_is_shape(w, tensor) ? init_inline_tensor(w, tensor) : EPCTX_OK;
}

static epctx_status init_shapes_step(init_work *w) {
    OPS_TRY(init_find_shapes(w));
    return init_each_tensor(w, init_inline_shape);
}

epctx_status epctx_init_shapes(epctx_model *model, const ops_convert_opts *opts,
                               ops_changes *changes, epctx_error *error) {
    return init_run(model, opts, init_shapes_step, changes, error);
}

/* -- external -- */

/* Whether a tensor belongs into the file, by its size and by what ORT reads there: a reason is told
 * of those that are large. What is in a file comes in by its size only where that is
 * wanted. */
static bool init_may_go(const init_work *w, const epctx_tensor_view *tensor, const char **reason) {
    const bool small = init_is_small(w, tensor) && (!tensor->external || w->c.opts.bring_in);
    *reason = NULL;
    if (tensor->elem_type == EPCTX_ONNX_STRING)
        *reason = "strings cannot be external";
    else if (!tensor->has_raw && !tensor->external && epctx_elem_size(tensor->elem_type) == 0)
        *reason = "its data is in fields of a packed type and cannot be moved";
    else if (init_is_shape(w, tensor) && !small)
        *reason = "ORT reads it while it infers shapes, and only in the model";
    return *reason == NULL && !init_is_shape(w, tensor) && !small &&
           epctx_view_tensor_bytes(tensor) > 0;
}

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

static epctx_status init_leave(init_work *w, const epctx_tensor_view *tensor) {
    if (!tensor->external || ops_has(&w->left, tensor->location)) return EPCTX_OK;
    OPS_TRY(ops_put(&w->left, tensor->location, (uint32_t)w->left_list.count, w->c.error));
    return ops_add_name(&w->left_list, w->c.arena, tensor->location, w->c.error);
}

static epctx_status init_put_outside(init_work *w, const epctx_tensor_view *view) {
    epctx_tensor tensor;
    uint64_t gap = (0 - w->size) % w->c.opts.alignment;
    OPS_TRY(epctx_model_load_tensor(w->c.model, view->view, NULL, &tensor, w->c.error));
    OPS_TRY(init_leave(w, view));
    OPS_TRY(init_add_part(w, NULL, (size_t)gap));
    OPS_TRY(epctx_edit_set_tensor_external(w->c.model, view->view, w->file, w->size, tensor.size,
                                           w->c.error));
    OPS_TRY(init_add_part(w, tensor.data, tensor.size));
    return init_note(w, OPS_CHANGE_EXTERNAL, view->name, w->file, tensor.size, NULL);
}

static epctx_status init_external_tensor(init_work *w, const epctx_tensor_view *tensor) {
    const char *reason;
    const bool goes = init_may_go(w, tensor, &reason);
    if (tensor->external) w->file_used = w->file_used || epctx_str_eq(tensor->location, w->file);
    if (tensor->external && !w->c.opts.gather && !init_is_shape(w, tensor)) return EPCTX_OK;
    if (goes) return init_put_outside(w, tensor);
    if (tensor->external) {
        OPS_TRY(init_leave(w, tensor));
        return init_inline_tensor(w, tensor);
    }
    return reason != NULL ? init_skip(w, tensor->name, epctx_view_tensor_bytes(tensor), reason)
                          : EPCTX_OK;
}

static epctx_status init_skip_sparse(init_work *w) {
    epctx_walk walk;
    epctx_graph_view graph;
    epctx_sparse_view sparse;
    epctx_walk_begin(&walk, w->c.model);
    while (init_next_graph(&walk, &graph)) {
        epctx_cursor sparses = epctx_graph_sparse(graph);
        while (epctx_next_sparse(&sparses, &sparse))
            OPS_TRY(init_skip(w, sparse.values.name, 0, "sparse initializers stay in the model"));
    }
    return EPCTX_OK;
}

/* Whether a tensor is where it would be brought. */
static epctx_status init_check_place(init_work *w, const epctx_tensor_view *tensor) {
    const char *reason;
    const bool goes = init_may_go(w, tensor, &reason);
    if (goes != tensor->external ||
        (goes && (!epctx_str_eq(tensor->location, w->file) ||
                  (w->c.opts.alignment != 0 && tensor->offset % w->c.opts.alignment != 0))))
        w->size = 1;
    return EPCTX_OK;
}

/* Whether all of them are: then nothing is written anew. */
static bool init_is_settled(init_work *w) {
    bool settled;
    (void)init_each_tensor(w, init_check_place);
    settled = w->size == 0;
    w->size = 0;
    return settled;
}

/* Names the file, and checks the options. */
static epctx_status init_external_begin(init_work *w) {
    epctx_str path = epctx_str_of(ops_result_path(w->c.model, &w->c.opts));
    const char *pattern = w->c.opts.common.name != NULL ? w->c.opts.common.name : "{file}.data";
    const uint64_t alignment = w->c.opts.alignment;
    char name[EPCTX_PATH_MAX];
    if (epctx_path_file(path).size == 0) {
        return epctx_fail(w->c.error, EPCTX_ERR_PATH,
                          "the model came from memory: set output_path, where it will be written");
    }
    if ((alignment & (alignment - 1)) != 0 || alignment > 1u << 30) {
        return epctx_fail(w->c.error, EPCTX_ERR_ARG,
                          "alignment %u is not a power of two up to 2^30", alignment);
    }
    OPS_TRY(epctx_profile_fill_name(pattern, NULL, NULL, epctx_path_file(path), name, sizeof name,
                                    w->c.error));
    OPS_TRY(epctx_output_name_check(epctx_str_of(name), path, NULL, w->c.error));
    w->file = epctx_str_of(epctx_arena_copy(w->c.arena, epctx_str_of(name)));
    if (w->file.size == 0) return ops_nomem(w->c.arena, w->c.error);
    return init_find_shapes(w);
}

/* Reports files that no tensor names any more. */
static epctx_status init_tell_left(init_work *w) {
    epctx_map used;
    epctx_walk walk;
    epctx_tensor_view tensor;
    size_t i;
    if (w->left_list.count == 0) return EPCTX_OK;
    epctx_map_init(&used, w->c.arena);
    epctx_walk_begin(&walk, w->c.model);
    while (epctx_walk_tensor(&walk, &tensor))
        if (tensor.external) OPS_TRY(ops_put(&used, tensor.location, 1, w->c.error));
    for (i = 0; i < w->left_list.count; i++) {
        epctx_str name = ops_name_at(&w->left_list, i);
        if (!ops_has(&used, name))
            OPS_TRY(init_skip(w, name, 0,
                              "the model no longer names this file: remove it if no other does"));
    }
    return EPCTX_OK;
}

static epctx_status init_external_step(init_work *w) {
    epctx_output_file file;
    OPS_TRY(init_external_begin(w));
    if (w->c.opts.gather && init_is_settled(w)) return EPCTX_OK;
    w->c.opts.alignment = w->c.opts.alignment != 0 ? w->c.opts.alignment : 4096;
    OPS_TRY(init_each_tensor(w, init_external_tensor));
    OPS_TRY(init_skip_sparse(w));
    OPS_TRY(init_tell_left(w));
    if (w->parts.count == 0) return EPCTX_OK;
    if (w->file_used) {
        return epctx_fail(w->c.error, EPCTX_ERR_PATH,
                          "'%S' already contains weights of this model: inline them first, or "
                          "choose another name",
                          &w->file);
    }
    OPS_TRY(epctx_model_output_file(w->c.model, ops_result_path(w->c.model, &w->c.opts), w->file,
                                    (const epctx_span *)w->parts.items, w->parts.count, &file,
                                    w->c.error));
    return ops_changes_put_file(w->c.changes, w->c.arena, &file, w->c.error);
}

epctx_status epctx_init_external(epctx_model *model, const ops_convert_opts *opts,
                                 ops_changes *changes, epctx_error *error) {
    return init_run(model, opts, init_external_step, changes, error);
}

/* -- no inputs -- */

/* From this IR version on initializers need not be inputs. */
enum { INIT_FREE_IR = 4 };

static epctx_status init_drop_inputs(init_work *w, epctx_graph_view graph) {
    epctx_cursor inputs = epctx_view_graph_inputs(graph);
    epctx_value_view value;
    epctx_map names;
    epctx_map_init(&names, w->c.arena);
    OPS_TRY(ops_put_definitions(&names, ops_initializers_of(graph.view), w->c.error));
    while (epctx_next_value(&inputs, &value)) {
        if (!ops_has(&names, value.name)) continue;
        OPS_TRY(epctx_edit_remove(w->c.model, value.view, w->c.error));
        OPS_TRY(init_note(w, OPS_CHANGE_FIXED, value.name, epctx_str_of(NULL), 0,
                          "it is no input of the graph any more, but a constant"));
    }
    return EPCTX_OK;
}

static epctx_status init_fix_step(init_work *w) {
    const int64_t version = epctx_model_read(w->c.model).ir_version;
    OPS_TRY(init_drop_inputs(w, epctx_model_graph(w->c.model)));
    if (w->c.changes->done == 0) return EPCTX_OK;
    if (version < INIT_FREE_IR) {
        OPS_TRY(epctx_edit_set_field_int(w->c.model, epctx_model_root(w->c.model),
                                         EPCTX_FIELD_MODEL_IR_VERSION, INIT_FREE_IR, w->c.error));
        OPS_TRY(init_note(w, OPS_CHANGE_FIXED, epctx_str_of("ir_version"), epctx_str_of(NULL), 0,
                          "it is 4 now: before, initializers had to be inputs"));
    }
    return init_shapes_step(w); /* as constants they are read */
}

epctx_status epctx_init_fix(epctx_model *model, const ops_convert_opts *opts, ops_changes *changes,
                            epctx_error *error) {
    return init_run(model, opts, init_fix_step, changes, error);
}

/* -- prune -- */

static epctx_status init_use_node(init_work *w, epctx_map *used, const epctx_node_view *node) {
    epctx_cursor inputs = epctx_view_node_inputs(node);
    const epctx_str *captures;
    epctx_str name;
    size_t count, i;
    while (epctx_next_str(&inputs, &name)) OPS_TRY(ops_put(used, name, 1, w->c.error));
    OPS_TRY(epctx_view_node_captures(node->view, w->c.arena, &captures, &count, w->c.error));
    for (i = 0; i < count; i++) OPS_TRY(ops_put(used, captures[i], 1, w->c.error));
    return EPCTX_OK;
}

/* Names that a graph and its subgraphs read, and that its interface and annotations use. */
static epctx_status init_use_graph(init_work *w, epctx_map *used, epctx_graph_view graph) {
    epctx_cursor nodes = epctx_view_graph_nodes(graph);
    epctx_cursor inputs = epctx_view_graph_inputs(graph);
    epctx_cursor outputs = epctx_view_graph_outputs(graph);
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
    OPS_TRY(epctx_edit_remove(w->c.model, view, w->c.error));
    return init_note(w, OPS_CHANGE_PRUNED, name, epctx_str_of(NULL), view.size, NULL);
}

static epctx_status init_prune_step(init_work *w) {
    epctx_walk walk;
    epctx_graph_view graph;
    epctx_walk_begin(&walk, w->c.model);
    while (init_next_graph(&walk, &graph)) {
        epctx_cursor tensors = epctx_view_graph_initializers(graph);
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

epctx_status epctx_init_prune(epctx_model *model, const ops_convert_opts *opts,
                              ops_changes *changes, epctx_error *error) {
    return init_run(model, opts, init_prune_step, changes, error);
}
