/* Loads a model for the reference NPU and runs its EPContext nodes one after the other. */
#include "session.h"

#include <string.h>

/* Memory at a multiple of 64: run_fn wants it of its scratch, and is faster with such tensors. */
static uint8_t *aligned(session *s, size_t size) {
    const size_t alignment = 64;
    uint8_t *data = size > SIZE_MAX - alignment
                        ? NULL
                        : (uint8_t *)epctx_arena_alloc(&s->arena, size + alignment);
    return data == NULL ? NULL : data + (alignment - (uintptr_t)data % alignment) % alignment;
}

static epctx_status compile(session *s, epctx_error *error) {
    const epctx_gen_memory memory = {NULL, NULL, NULL}; /* the open model will do */
    epctx_gen_opts opts;
    memset(&opts, 0, sizeof opts);
    opts.embed = true;
    opts.memory = &memory;
    s->compiled = true;
    return epctx_generate(&s->model, &s->backend, &opts, NULL, error);
}

/* -- nodes that are not ours -- */

enum { SHOWN_NAME = 60, SHOWN_WORD = 40 };

/* Appends the first letters of a text, with a mark where there are more. */
static void append_start(char *text, size_t capacity, epctx_str part, size_t most) {
    size_t used = strlen(text);
    size_t size = part.size < most ? part.size : most;
    snprintf(text + used, capacity - used, "%.*s%s", (int)size, size > 0 ? part.data : "",
             part.size > most ? "..." : "");
}

/* Appends "'name' (op)"; false when `text` is full. */
static bool append_node(char *text, size_t capacity, const epctx_node_view *node) {
    char one[SHOWN_NAME + SHOWN_WORD + 16] = "'";
    size_t used = strlen(text);
    int size;
    append_start(one, sizeof one, node->name, SHOWN_NAME);
    strcat(one, "' (");
    append_start(one, sizeof one, node->op_type, SHOWN_WORD);
    size = snprintf(text + used, capacity - used, "%s%s)", used > 0 ? ", " : "", one);
    if (size >= 0 && (size_t)size < capacity - used) return true;
    text[used] = '\0';
    return false;
}

/* The nodes that the session has not: `at` is the next of the graph, `bound` of those it has. */
typedef struct others {
    epctx_cursor it;
    size_t at, bound;
} others;

static others others_of(const session *s) {
    others all = {0};
    all.it = epctx_view_graph_nodes(epctx_model_graph(&s->model));
    return all;
}

static bool next_other(const session *s, others *all, epctx_node_view *node) {
    while (epctx_next_node(&all->it, node)) {
        const bool ours =
            all->bound < s->loaded.bound_count && s->loaded.bound[all->bound].index == all->at;
        all->at++;
        if (!ours) return true;
        all->bound++;
    }
    return false;
}

/* Which EPs they need: the first by name that nodes with contexts name, and ORT's for the rest. */
static void needed_eps(const session *s, char *text, size_t capacity) {
    epctx_epnode ep, first;
    bool found = false, more = false, cpu = false;
    epctx_node_view node;
    others all = others_of(s);
    memset(&first, 0, sizeof first);
    while (next_other(s, &all, &node)) {
        if (!epctx_view_is_epnode(&node)) {
            cpu = true;
        } else if (epctx_view_read_epnode(&node, &ep, NULL) == EPCTX_OK) {
            more = more || (found && !epctx_str_eq(ep.source, first.source));
            if (!found) first = ep;
            found = true;
        }
    }
    text[0] = '\0';
    if (found)
        append_start(text, capacity,
                     first.source.size > 0 ? first.source : epctx_str_of("an unnamed one"),
                     SHOWN_WORD);
    snprintf(text + strlen(text), capacity - strlen(text), "%s%s", more ? " and others" : "",
             cpu ? found ? ", and ONNX Runtime's CPU EP" : "ONNX Runtime's CPU EP" : "");
}

/* Names the first few nodes that would need another execution provider. */
static epctx_status refuse_others(const session *s, epctx_error *error) {
    char text[180] = ""; /* epctx_fail prints no more than 200 bytes of it */
    char eps[120];
    size_t listed = 0;
    epctx_node_view node;
    others all = others_of(s);
    needed_eps(s, eps, sizeof eps);
    while (next_other(s, &all, &node) && append_node(text, sizeof text, &node)) listed++;
    return epctx_fail(error, EPCTX_ERR_UNSUPPORTED,
                      s->loaded.other_nodes == 1
                          ? "%u node needs an execution provider that this tool lacks (%s): %s%s"
                          : "%u nodes need an execution provider that this tool lacks (%s): %s%s",
                      (uint64_t)s->loaded.other_nodes, eps, text,
                      listed == s->loaded.other_nodes ? ""
                      : listed > 0                    ? " ..."
                                                      : "...");
}

/* -- values -- */

static epctx_status value_size(const epctx_value *type, size_t *size, epctx_error *error) {
    size_t bytes = epctx_elem_size(type->elem_type);
    int32_t i;
    if (bytes == 0)
        return epctx_fail(error, EPCTX_ERR_UNSUPPORTED,
                          "value '%S': element type %s (%d) is not supported", &type->name,
                          epctx_elem_name(type->elem_type), (int64_t)type->elem_type);
    if (type->rank < 0)
        return epctx_fail(error, EPCTX_ERR_UNSUPPORTED, "value '%S' has no shape", &type->name);
    for (i = 0; i < type->rank; i++) {
        if (type->dims[i] < 0)
            return epctx_fail(error, EPCTX_ERR_UNSUPPORTED,
                              "value '%S': dimension %d is not a fixed number", &type->name,
                              (int64_t)i);
        if (type->dims[i] > 0 && bytes > SIZE_MAX / 2 / (uint64_t)type->dims[i])
            return epctx_fail(error, EPCTX_ERR_LIMIT, "value '%S' is too large", &type->name);
        bytes *= (size_t)type->dims[i];
    }
    *size = bytes;
    return EPCTX_OK;
}

static bool same_type(const epctx_value *a, const epctx_value *b) {
    int32_t i;
    if (a->elem_type != b->elem_type || a->rank != b->rank) return false;
    for (i = 0; i < a->rank; i++)
        if (a->dims[i] != b->dims[i]) return false;
    return true;
}

static session_value *find_value(const session *s, epctx_str name) {
    uint32_t at = epctx_map_get(&s->names, name);
    return at != EPCTX_MAP_NONE ? &s->values[at] : NULL;
}

/* The value called `name`, made with `type` when it is new; both sides must agree on the type. */
static epctx_status use_value(session *s, epctx_str name, const epctx_value *type,
                              session_value **out, epctx_error *error) {
    session_value *value = find_value(s, name);
    epctx_status status;
    if (value != NULL && !same_type(&value->type, type))
        return epctx_fail(error, EPCTX_ERR_GRAPH,
                          "value '%S' is produced with one type and used with another", &name);
    if (value == NULL) {
        value = &s->values[s->value_count];
        value->type = *type;
        value->type.name = name;
        status = value_size(&value->type, &value->size, error);
        if (status != EPCTX_OK) return status;
        value->data = aligned(s, value->size);
        if (value->data == NULL) return cli_no_memory(error);
        status = epctx_map_put(&s->names, name, (uint32_t)s->value_count);
        if (status != EPCTX_OK) return cli_no_memory(error);
        s->value_count++;
    }
    *out = value;
    return EPCTX_OK;
}

/* -- steps -- */

/* The weights among a node's inputs, where ONNX Runtime puts them: epctx_load has given them to the
 * graph. Empty ones have no line in EPCTX_WEIGHTS_ATTR. */
static epctx_status find_weights(const epctx_bound *bound, const epctx_graph *graph,
                                 epctx_map *weights, epctx_error *error) {
    epctx_status status = EPCTX_OK;
    epctx_str rest = bound->weights;
    epctx_outside_weight ref;
    size_t i;
    if (bound->view.input_count <= bound->info.input_count) return EPCTX_OK;
    while (status == EPCTX_OK && epctx_outside_weight_next(&rest, &ref))
        status = epctx_map_put(weights, ref.name, 1);
    for (i = 0; status == EPCTX_OK && i < graph->initializer_count; i++)
        if (graph->initializers[i].size == 0)
            status = epctx_map_put(weights, graph->initializers[i].name, 1);
    return status == EPCTX_OK ? EPCTX_OK : cli_no_memory(error);
}

/* The names of what the graph gets when it runs. */
static epctx_status name_inputs(session *s, const epctx_graph *graph, session_step *step,
                                epctx_error *error) {
    const epctx_bound *bound = step->bound;
    const epctx_graph_info *info = &bound->info;
    epctx_cursor it = epctx_view_node_inputs(&bound->view);
    epctx_map weights;
    epctx_str name;
    size_t count = 0;
    epctx_status status;
    step->names =
        (epctx_str *)epctx_arena_array(&s->arena, info->input_count + 1, sizeof *step->names);
    if (step->names == NULL) return cli_no_memory(error);
    epctx_map_init(&weights, &s->arena);
    status = find_weights(bound, graph, &weights, error);
    if (status != EPCTX_OK) return status;
    while (epctx_next_str(&it, &name)) {
        if (epctx_map_get(&weights, name) != EPCTX_MAP_NONE) continue;
        if (count < info->input_count) step->names[count] = name;
        count++;
    }
    if (info->input_count != count || info->output_count != bound->view.output_count)
        return epctx_fail(error, EPCTX_ERR_CONTEXT,
                          "the node has %u inputs and %u outputs, its compiled graph %u and %u",
                          (uint64_t)count, (uint64_t)bound->view.output_count,
                          (uint64_t)info->input_count, (uint64_t)info->output_count);
    return EPCTX_OK;
}

static epctx_status add_inputs(session *s, session_step *step, epctx_error *error) {
    const epctx_bound *bound = step->bound;
    size_t i;
    for (i = 0; i < bound->info.input_count; i++) {
        session_value *value;
        epctx_status status = use_value(s, step->names[i], &bound->info.inputs[i], &value, error);
        if (status != EPCTX_OK) return status;
        if (!value->made)
            return epctx_fail(error, EPCTX_ERR_GRAPH, "no earlier node produces its input '%S'",
                              &step->names[i]);
        step->inputs[i].data = value->data;
        step->inputs[i].size = value->size;
    }
    return EPCTX_OK;
}

static epctx_status add_outputs(session *s, session_step *step, epctx_error *error) {
    const epctx_bound *bound = step->bound;
    epctx_cursor it = epctx_view_node_outputs(&bound->view);
    epctx_str name;
    size_t i;
    for (i = 0; epctx_next_str(&it, &name); i++) {
        session_value *value;
        epctx_status status = use_value(s, name, &bound->info.outputs[i], &value, error);
        if (status != EPCTX_OK) return status;
        if (value->made)
            return epctx_fail(error, EPCTX_ERR_GRAPH, "its output '%S' is produced twice", &name);
        value->made = true;
        step->outputs[i].data = value->data;
        step->outputs[i].size = value->size;
    }
    return EPCTX_OK;
}

static epctx_status add_step(session *s, const epctx_graph *graph, session_step *step,
                             epctx_error *error) {
    const epctx_graph_info *info = &step->bound->info;
    epctx_status status;
    (void)graph;
    step->inputs =
        (epctx_span *)epctx_arena_array(&s->arena, info->input_count, sizeof *step->inputs);
    step->outputs =
        (epctx_memory *)epctx_arena_array(&s->arena, info->output_count, sizeof *step->outputs);
    if (step->inputs == NULL || step->outputs == NULL) return cli_no_memory(error);
    status = add_inputs(s, step, error);
    if (status == EPCTX_OK) status = add_outputs(s, step, error);
    if (info->scratch_size > s->scratch_size) s->scratch_size = info->scratch_size;
    return status;
}

/* What the compiled graphs take under the names of the model's inputs -> index in `known`. Types of
 * a model's inputs may have free dimensions; the compiled graphs know better. */
static epctx_status find_types(const session *s, const epctx_graph *graph, epctx_map *names,
                               const epctx_value **known, epctx_error *error) {
    size_t i, k;
    for (i = 0; i < graph->input_count; i++) {
        known[i] = NULL;
        if (epctx_map_put(names, graph->inputs[i].name, (uint32_t)i) != EPCTX_OK)
            return cli_no_memory(error);
    }
    for (i = 0; i < s->loaded.bound_count; i++) {
        const epctx_bound *bound = &s->loaded.bound[i];
        for (k = 0; k < bound->info.input_count; k++) {
            uint32_t at = epctx_map_get(names, s->steps[i].names[k]);
            if (at != EPCTX_MAP_NONE && known[at] == NULL) known[at] = &bound->info.inputs[k];
        }
    }
    return EPCTX_OK;
}

static epctx_status add_model_inputs(session *s, const epctx_graph *graph, epctx_error *error) {
    const epctx_value **known =
        (const epctx_value **)epctx_arena_array(&s->arena, graph->input_count, sizeof *known);
    epctx_status status;
    epctx_map names;
    size_t i;
    epctx_map_init(&names, &s->arena);
    s->inputs =
        (session_value **)epctx_arena_array(&s->arena, graph->input_count, sizeof *s->inputs);
    if (s->inputs == NULL || known == NULL) return cli_no_memory(error);
    status = find_types(s, graph, &names, known, error);
    for (i = 0; status == EPCTX_OK && i < graph->input_count; i++) {
        const epctx_value *declared = &graph->inputs[i];
        const epctx_value *type = known[epctx_map_get(&names, declared->name)];
        session_value *value;
        status = use_value(s, declared->name, type != NULL ? type : declared, &value, error);
        if (status != EPCTX_OK) return status;
        value->made = true;
        s->inputs[s->input_count++] = value;
    }
    return status;
}

static epctx_status add_initializers(session *s, const epctx_graph *graph, epctx_error *error) {
    size_t i;
    for (i = 0; i < graph->initializer_count; i++) {
        const epctx_tensor *tensor = &graph->initializers[i];
        session_value *value;
        epctx_value type;
        epctx_status status;
        /* Unsupported types are harmless unless they are used. */
        if (epctx_elem_size(tensor->elem_type) == 0) continue;
        type.name = tensor->name;
        type.elem_type = tensor->elem_type;
        type.rank = tensor->rank;
        type.dims = tensor->dims;
        status = use_value(s, tensor->name, &type, &value, error);
        if (status != EPCTX_OK) return status;
        if (value->made || tensor->data == NULL || tensor->size != value->size) continue;
        if (tensor->size > 0) memcpy(value->data, tensor->data, tensor->size);
        value->made = true;
    }
    return EPCTX_OK;
}

static epctx_status add_model_outputs(session *s, const epctx_graph *graph, epctx_error *error) {
    size_t i;
    s->outputs =
        (session_value **)epctx_arena_array(&s->arena, graph->output_count, sizeof *s->outputs);
    if (s->outputs == NULL) return cli_no_memory(error);
    for (i = 0; i < graph->output_count; i++) {
        session_value *value = find_value(s, graph->outputs[i].name);
        if (value == NULL || !value->made)
            return epctx_fail(error, EPCTX_ERR_GRAPH, "no node produces the model's output '%S'",
                              &graph->outputs[i].name);
        s->outputs[s->output_count++] = value;
    }
    return EPCTX_OK;
}

/* Most values that there can be. */
static size_t count_values(const session *s, const epctx_graph *graph) {
    size_t count = graph->input_count + graph->initializer_count;
    size_t i;
    for (i = 0; i < s->loaded.bound_count; i++)
        count += s->loaded.bound[i].info.input_count + s->loaded.bound[i].info.output_count;
    return count;
}

typedef epctx_status (*step_fn)(session *s, const epctx_graph *graph, session_step *step,
                                epctx_error *error);

static epctx_status each_step(session *s, const epctx_graph *graph, step_fn fn,
                              epctx_error *error) {
    size_t i;
    for (i = 0; i < s->loaded.bound_count; i++) {
        epctx_status status = fn(s, graph, &s->steps[i], error);
        if (status != EPCTX_OK) {
            epctx_blame(error, NULL, &s->loaded.bound[i].node.name, NULL);
            return status;
        }
    }
    return EPCTX_OK;
}

static epctx_status begin_steps(session *s, const epctx_graph *graph, epctx_error *error) {
    size_t i;
    s->steps =
        (session_step *)epctx_arena_array(&s->arena, s->loaded.bound_count, sizeof *s->steps);
    if (s->steps == NULL) return cli_no_memory(error);
    for (i = 0; i < s->loaded.bound_count; i++) s->steps[i].bound = &s->loaded.bound[i];
    return each_step(s, graph, name_inputs, error);
}

static epctx_status connect(session *s, epctx_error *error) {
    epctx_graph graph;
    epctx_status status = epctx_model_load_graph(&s->model, &graph, error);
    if (status != EPCTX_OK) return status;
    epctx_map_init(&s->names, &s->arena);
    s->values =
        (session_value *)epctx_arena_array(&s->arena, count_values(s, &graph), sizeof *s->values);
    if (s->values == NULL) return cli_no_memory(error);
    status = begin_steps(s, &graph, error);
    if (status == EPCTX_OK) status = add_model_inputs(s, &graph, error);
    if (status == EPCTX_OK) status = add_initializers(s, &graph, error);
    if (status == EPCTX_OK) status = each_step(s, &graph, add_step, error);
    if (status == EPCTX_OK) status = add_model_outputs(s, &graph, error);
    if (status != EPCTX_OK) return status;
    s->scratch = aligned(s, s->scratch_size);
    if (s->scratch == NULL) return cli_no_memory(error);
    return EPCTX_OK;
}

/* -- session -- */

/* Does an EPContext node take weights from the source model? */
static bool is_weightless(const epctx_model *model) {
    epctx_cursor it = epctx_view_graph_nodes(epctx_model_graph(model));
    epctx_node_view node;
    while (epctx_next_node(&it, &node)) {
        epctx_cursor attrs = epctx_view_node_attrs(&node);
        epctx_attr_view attr;
        while (epctx_view_is_epnode(&node) && epctx_next_attr(&attrs, &attr))
            if (epctx_str_is(attr.name, EPCTX_WEIGHTS_ATTR)) return true;
    }
    return false;
}

static epctx_status open_steps(session *s, const char *file, const char *source,
                               epctx_error *error) {
    epctx_load_opts load;
    epctx_open_opts opts;
    epctx_node_view node;
    epctx_status status;
    size_t optional;
    memset(&opts, 0, sizeof opts);
    opts.path_flags = cli_path_flags();
    status = epctx_model_open_file(&s->model, file, &opts, error);
    /* Nobody is going to give another value to these here. */
    if (status == EPCTX_OK) status = cli_optional_inputs(&s->model, true, &optional, error);
    if (status != EPCTX_OK) return status;
    if (!cli_first_epnode(&s->model, &node)) status = compile(s, error);
    if (status == EPCTX_OK && source != NULL && !is_weightless(&s->model))
        status = epctx_fail(error, EPCTX_ERR_ARG, "%s is %s: omit --source", file,
                            s->compiled ? "an ordinary model with its own weights"
                                        : "not weightless, its weights are in the context binary");
    memset(&load, 0, sizeof load);
    load.source_model_path = source;
    if (status == EPCTX_OK) status = epctx_load(&s->loaded, &s->model, &s->backend, &load, error);
    if (status != EPCTX_OK) return status;
    status = s->loaded.other_nodes > 0 ? refuse_others(s, error) : connect(s, error);
    if (status != EPCTX_OK) epctx_blame(error, file, NULL, NULL);
    return status;
}

epctx_status session_open(session *out, const char *file, const char *source, epctx_error *error) {
    epctx_status status;
    epctx_error_clear(error);
    memset(out, 0, sizeof *out);
    epctx_arena_init(&out->arena, NULL);
    status = cli_backend(NULL, &out->backend, error);
    return status == EPCTX_OK ? open_steps(out, file, source, error) : status;
}

epctx_status session_run(session *s, epctx_error *error) {
    size_t i;
    epctx_error_clear(error);
    for (i = 0; i < s->loaded.bound_count; i++) {
        session_step *step = &s->steps[i];
        epctx_status status = s->backend.run_fn(s->backend.self, step->bound->graph, step->inputs,
                                                step->outputs, s->scratch, s->scratch_size, error);
        if (status != EPCTX_OK) {
            epctx_blame(error, s->model.path, &step->bound->node.name, NULL);
            return status;
        }
    }
    return EPCTX_OK;
}

void session_close(session *s) {
    epctx_unload(&s->loaded);
    epctx_model_close(&s->model);
    epctx_arena_free(&s->arena);
}
