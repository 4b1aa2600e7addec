/* lint_shape.c - constants that ORT reads while it infers shapes: in the model only. */
#include "lint_internal.h"

typedef struct lint_shapes {
    linter *l;
    epctx_list constants; /* lint_constant_note: initializers and Constant nodes */
    epctx_map places;     /* name -> position in `constants` */
    epctx_map shaped;     /* values whose shape the model tells */
    epctx_map told;       /* constants that were reported */
} lint_shapes;

/* -- what the model tells -- */

static epctx_status lint_put_constant(lint_shapes *s, epctx_view view, epctx_str name) {
    lint_constant_note *note;
    OPS_TRY(lint_set(s->l, &s->places, name, (uint32_t)s->constants.count));
    OPS_TRY(lint_set(s->l, &s->shaped, name, 1));
    OPS_TRY(lint_append(s->l, &s->constants, sizeof *note, &note));
    note->view = view;
    note->name = name;
    return EPCTX_OK;
}

/* Graph inputs may be initializers: from IR version 4 on the application may replace them, so that
 * ORT does not look at them. */
static epctx_status lint_put_graph(lint_shapes *s, const epctx_walk *walk) {
    const epctx_graph_view graph = epctx_view_as_graph(walk->view);
    const bool free = walk->depth == 0 && s->l->ir_version >= 4;
    epctx_cursor tensors = epctx_view_graph_initializers(graph);
    epctx_cursor lists[2];
    epctx_tensor_view tensor;
    epctx_value_view value;
    epctx_map inputs;
    int i;
    lists[0] = epctx_view_graph_inputs(graph);
    lists[1] = epctx_view_graph_values(graph);
    epctx_map_init(&inputs, &s->l->arena);
    for (i = 0; i < 2; i++) {
        while (epctx_next_value(&lists[i], &value)) {
            if (value.is_tensor && value.has_shape)
                OPS_TRY(lint_set(s->l, &s->shaped, value.name, 1));
            if (i == 0 && free) OPS_TRY(lint_set(s->l, &inputs, value.name, 1));
        }
    }
    while (epctx_next_tensor(&tensors, &tensor))
        if (!ops_has(&inputs, tensor.name)) OPS_TRY(lint_put_constant(s, tensor.view, tensor.name));
    return EPCTX_OK;
}

static epctx_status lint_put_node(lint_shapes *s, epctx_view view) {
    const epctx_node_view node = epctx_view_as_node(view);
    epctx_cursor outputs = epctx_view_node_outputs(&node);
    epctx_attr_view attr;
    epctx_str name;
    if (!epctx_str_is(node.op_type, "Constant") || !epctx_next_str(&outputs, &name) ||
        !epctx_view_node_find_attr(&node, "value", &attr) || !epctx_view_exists(attr.t))
        return EPCTX_OK;
    return lint_put_constant(s, attr.t, name);
}

static epctx_status lint_collect(lint_shapes *s) {
    epctx_walk walk;
    epctx_walk_begin(&walk, s->l->model);
    while (epctx_walk_step(&walk)) {
        if (walk.in_training || walk.in_function) continue;
        if (walk.kind == EPCTX_KIND_GRAPH)
            OPS_TRY(lint_put_graph(s, &walk));
        else if (walk.kind == EPCTX_KIND_NODE)
            OPS_TRY(lint_put_node(s, walk.view));
    }
    return EPCTX_OK;
}

/* -- who reads it -- */

static const lint_constant_note *lint_constant_at(const lint_shapes *s, epctx_str name) {
    const uint32_t at = epctx_map_get(&s->places, name);
    return at != EPCTX_MAP_NONE ? (const lint_constant_note *)s->constants.items + at : NULL;
}

/* Whether ORT surely comes to read them: it does not when one is missing, or the shape of the data
 * is not known to it. What the model does not tell it may find out. */
static bool lint_reads_surely(const lint_shapes *s, const epctx_node_view *node,
                              const epctx_shape_reader *reader) {
    epctx_cursor it = epctx_view_node_inputs(node);
    epctx_str name;
    uint32_t i;
    for (i = 0; i < 32 && epctx_next_str(&it, &name); i++) {
        if (i == 0 && !reader->always && !ops_has(&s->shaped, name)) return false;
        if ((reader->sure >> i & 1) != 0 && name.size > 0 && !ops_has(&s->places, name))
            return false;
    }
    return true;
}

static epctx_status lint_shape_reader(lint_shapes *s, const epctx_node_view *node) {
    const epctx_shape_reader *reader = epctx_shape_reader_of(node->domain, node->op_type);
    epctx_cursor it = epctx_view_node_inputs(node);
    epctx_str name;
    uint32_t i;
    if (reader == NULL || !lint_reads_surely(s, node, reader)) return EPCTX_OK;
    for (i = 0; i < 32 && epctx_next_str(&it, &name); i++) {
        const lint_constant_note *constant = lint_constant_at(s, name);
        epctx_tensor_view tensor;
        if ((reader->sure >> i & 1) == 0 || constant == NULL || ops_has(&s->told, name)) continue;
        tensor = epctx_view_as_tensor(constant->view);
        if (!tensor.external) continue;
        lint_say(s->l, EPCTX_RULE_SHAPE_OUTSIDE, name, "location",
                 "'%S' is in file '%S', but the shapes of %S node '%S' depend on it: ORT reads "
                 "them in the model only",
                 &name, &tensor.location, &node->op_type, &node->name);
        OPS_TRY(lint_set(s->l, &s->told, name, 1));
    }
    return EPCTX_OK;
}

/* Those that ORT may come to read: once it knows more shapes, or has removed nodes. */
static epctx_status lint_tell_rest(lint_shapes *s) {
    epctx_map names;
    size_t i;
    epctx_map_init(&names, &s->l->arena);
    OPS_TRY(epctx_model_shape_names(s->l->model, &names, s->l->error));
    for (i = 0; i < s->constants.count; i++) {
        const lint_constant_note *constant = (const lint_constant_note *)s->constants.items + i;
        const epctx_tensor_view tensor = epctx_view_as_tensor(constant->view);
        if (!tensor.external || !ops_has(&names, constant->name) ||
            ops_has(&s->told, constant->name))
            continue;
        lint_say(s->l, EPCTX_RULE_SHAPE_MAYBE, constant->name, "location",
                 "'%S' is in file '%S', but shapes depend on it: ORT refuses the model once it "
                 "knows enough to infer them",
                 &constant->name, &tensor.location);
    }
    return EPCTX_OK;
}

epctx_status lint_shape_constants(linter *l) {
    lint_shapes s;
    epctx_walk walk;
    epctx_node_view node;
    if (l->external_files.count == 0) return EPCTX_OK;
    memset(&s, 0, sizeof s);
    s.l = l;
    epctx_map_init(&s.places, &l->arena);
    epctx_map_init(&s.shaped, &l->arena);
    epctx_map_init(&s.told, &l->arena);
    OPS_TRY(lint_collect(&s));
    epctx_walk_begin(&walk, l->model);
    while (epctx_walk_next(&walk, &node))
        if (!walk.in_training && !walk.in_function) OPS_TRY(lint_shape_reader(&s, &node));
    return lint_tell_rest(&s);
}
