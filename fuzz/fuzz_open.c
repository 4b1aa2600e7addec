/*
 * Opens any bytes as a model and uses everything that a model offers:
 *   - every view through every cursor: it lies inside the input, and counts agree;
 *   - untouched, and taken apart with ops_rebuild, it is written as it was read;
 *   - random edits are seen at once, what is written opens again, and undoing them
 *     restores the bytes;
 *   - a fixed arena of a size that the input chooses is enough or EPCTX_ERR_NOMEM;
 *   - bytes that change under an open model lead no access out of it.
 */
#include "examples/epctx/ops/rename.h"
#include "fuzz.h"
#include "mutate.h"

static const epctx_view no_view = {NULL, NULL, 0};

/* -- views -- */

/* The input, for views to lie in; empty once the model is edited. */
typedef struct walk {
    const uint8_t *data;
    size_t size;
    uint64_t sum; /* keeps reads from being optimized away */
} walk;

static void inside(walk *w, const void *data, size_t size) {
    const uint8_t *p = (const uint8_t *)data;
    size_t i;
    for (i = 0; i < size; i++) w->sum += p[i];
    if (w->data == NULL || size == 0) return;
    require(p >= w->data && p <= w->data + w->size && size <= (size_t)(w->data + w->size - p));
}

static void see_str(walk *w, epctx_str text) {
    inside(w, text.data, text.size);
}

static void see_fields(walk *w, epctx_view view) {
    epctx_cursor it = epctx_view_fields(view, 0);
    epctx_field field;
    while (epctx_next_field(&it, &field)) {
        require(field.number > 0);
        if (field.wire == EPCTX_WIRE_LEN) inside(w, field.body.data, field.body.size);
        w->sum += field.value;
    }
}

static uint32_t see_names(walk *w, epctx_cursor it) {
    epctx_str name;
    uint32_t count = 0;
    for (; epctx_next_str(&it, &name); count++) see_str(w, name);
    return count;
}

static void see_tensor(walk *w, epctx_view view) {
    epctx_tensor_view tensor = epctx_view_as_tensor(view);
    epctx_cursor it = epctx_view_tensor_dims(&tensor);
    epctx_cursor floats = epctx_view_fields(view, EPCTX_FIELD_TENSOR_FLOAT_DATA);
    epctx_cursor ints = epctx_view_fields(view, EPCTX_FIELD_TENSOR_INT64_DATA);
    uint32_t rank = 0;
    int64_t number;
    float real;
    for (; epctx_next_int(&it, &number); rank++) w->sum += (uint64_t)number;
    require(rank == tensor.rank);
    while (epctx_next_int(&ints, &number)) w->sum += (uint64_t)number;
    while (epctx_next_float(&floats, &real)) w->sum++;
    see_str(w, tensor.name);
    see_str(w, tensor.location);
    inside(w, tensor.raw.data, tensor.raw.size);
    see_fields(w, view);
}

static void see_values(walk *w, epctx_cursor it) {
    epctx_value_view value;
    while (epctx_next_value(&it, &value)) {
        epctx_cursor dims = epctx_view_value_dims(&value);
        epctx_dim dim;
        see_str(w, value.name);
        require(value.has_type || !value.is_tensor);
        while (epctx_next_dim(&dims, &dim)) {
            see_str(w, dim.param);
            require(!dim.known || dim.param.size == 0);
        }
    }
}

static void see_graph(walk *w, epctx_graph_view graph);

static void see_attr(walk *w, const epctx_attr_view *attr) {
    epctx_cursor graphs = epctx_view_fields(attr->view, EPCTX_FIELD_ATTR_GRAPHS);
    epctx_cursor floats = epctx_view_fields(attr->view, EPCTX_FIELD_ATTR_FLOATS);
    epctx_cursor ints = epctx_view_fields(attr->view, EPCTX_FIELD_ATTR_INTS);
    epctx_field field;
    int64_t number;
    float real;
    see_str(w, attr->name);
    see_str(w, attr->ref_attr_name);
    see_str(w, attr->s);
    see_fields(w, attr->view);
    while (epctx_next_int(&ints, &number)) w->sum += (uint64_t)number;
    while (epctx_next_float(&floats, &real)) w->sum++;
    see_names(w, epctx_view_fields(attr->view, EPCTX_FIELD_ATTR_STRINGS));
    if (attr->t.data != NULL || attr->t.slot != NULL) see_tensor(w, attr->t);
    if (attr->g.data != NULL || attr->g.slot != NULL) see_graph(w, epctx_view_as_graph(attr->g));
    while (epctx_next_field(&graphs, &field))
        if (field.wire == EPCTX_WIRE_LEN) see_graph(w, epctx_view_as_graph(field.body));
}

static void see_epnode(walk *w, const epctx_node_view *node) {
    epctx_attr attrs[EPCTX_EPNODE_ATTR_COUNT];
    epctx_epnode ep;
    epctx_error error;
    if (!epctx_view_is_epnode(node)) return;
    if (epctx_view_read_epnode(node, &ep, &error) != EPCTX_OK) {
        require(error.status == EPCTX_ERR_GRAPH && error.message[0] != '\0');
        return;
    }
    require((ep.main_context & ~(int64_t)1) == 0 && (ep.embed_mode & ~(int64_t)1) == 0);
    see_str(w, ep.ep_cache_context);
    see_str(w, ep.source);
    require(epctx_epnode_attrs(&ep, attrs) <= EPCTX_EPNODE_ATTR_COUNT);
    if (epctx_path_check(ep.ep_cache_context, NULL) == EPCTX_OK)
        require(memchr(ep.ep_cache_context.data, '\0', ep.ep_cache_context.size) == NULL);
}

static void see_node(walk *w, const epctx_node_view *node) {
    epctx_cursor attrs = epctx_view_node_attrs(node);
    epctx_attr_view attr;
    uint32_t count = 0;
    see_str(w, node->name);
    see_str(w, node->op_type);
    see_str(w, node->domain);
    see_str(w, node->overload);
    see_str(w, node->doc_string);
    require(see_names(w, epctx_view_node_inputs(node)) == node->input_count);
    require(see_names(w, epctx_view_node_outputs(node)) == node->output_count);
    for (; epctx_next_attr(&attrs, &attr); count++) see_attr(w, &attr);
    require(count == node->attr_count);
    see_epnode(w, node);
}

static void see_graph(walk *w, epctx_graph_view graph) {
    epctx_cursor nodes = epctx_view_graph_nodes(graph),
                 tensors = epctx_view_graph_initializers(graph);
    epctx_node_view node;
    epctx_tensor_view tensor;
    see_str(w, graph.name);
    see_str(w, graph.doc_string);
    see_fields(w, graph.view);
    while (epctx_next_node(&nodes, &node)) see_node(w, &node);
    while (epctx_next_tensor(&tensors, &tensor)) see_tensor(w, tensor.view);
    see_values(w, epctx_view_graph_inputs(graph));
    see_values(w, epctx_view_graph_outputs(graph));
    see_values(w, epctx_view_graph_values(graph));
}

static void see_model(walk *w, const epctx_model *model) {
    epctx_model_info info = epctx_model_read(model);
    epctx_str value;
    see_str(w, info.producer_name);
    see_str(w, info.producer_version);
    see_str(w, info.domain);
    see_str(w, info.doc_string);
    see_fields(w, info.view);
    (void)epctx_model_opset(model, epctx_str_of(""));
    if (epctx_model_metadata(model, epctx_str_of("k"), &value)) see_str(w, value);
    if (epctx_model_has_graph(model)) see_graph(w, epctx_model_graph(model));
}

/* -- writing -- */

typedef struct copy {
    uint8_t *data;
    size_t size;
} copy;

static copy write_model(epctx_model *model) {
    copy out;
    pb_ostream_t stream;
    out.size = (size_t)epctx_model_size(model);
    out.data = (uint8_t *)malloc(out.size + 1);
    require(out.data != NULL);
    stream = pb_ostream_from_buffer(out.data, out.size);
    require(epctx_model_write_stream(model, &stream, NULL) == EPCTX_OK);
    require(stream.bytes_written == out.size);
    return out;
}

static void require_same(epctx_model *model, const uint8_t *data, size_t size) {
    copy out = write_model(model);
    require(out.size == size && memcmp(out.data, data, size) == 0);
    free(out.data);
}

/* -- edits -- */

static uint32_t next_random(uint64_t *state, uint32_t limit) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 33) % limit;
}

static epctx_view any_node(const epctx_model *model, uint64_t *random) {
    epctx_cursor it = epctx_view_graph_nodes(epctx_model_graph(model));
    epctx_node_view node;
    epctx_view view = no_view;
    uint32_t at = next_random(random, 8);
    while (epctx_next_node(&it, &node)) {
        view = node.view;
        if (at-- == 0) break;
    }
    return view;
}

static epctx_status put_node(epctx_model *model, uint64_t *random) {
    static const int64_t ints[3] = {0, -1, INT64_MAX};
    static const epctx_str names[2] = {{"a", 1}, {"", 0}};
    epctx_attr attr[2];
    epctx_node node;
    epctx_view after = next_random(random, 2) != 0 ? any_node(model, random) : no_view;
    epctx_view placed;
    epctx_status status;
    memset(&node, 0, sizeof node);
    memset(attr, 0, sizeof attr);
    attr[0].name = epctx_str_of("ints");
    attr[0].type = EPCTX_ATTR_INTS;
    attr[0].ints = ints;
    attr[0].count = next_random(random, 4);
    attr[1].name = epctx_str_of("text");
    attr[1].type = EPCTX_ATTR_STRING;
    attr[1].s = epctx_str_of("some text");
    node.name = epctx_str_of("added");
    node.op_type = epctx_str_of("Op");
    node.inputs = names;
    node.input_count = next_random(random, 3);
    node.outputs = names;
    node.output_count = 1;
    node.attrs = attr;
    node.attr_count = next_random(random, 3);
    status = epctx_edit_put_node(model, no_view, &node, after, &placed, NULL);
    if (status == EPCTX_OK) {
        epctx_node_view seen = epctx_view_as_node(placed);
        require(epctx_str_is(seen.name, "added") && seen.attr_count == node.attr_count);
    }
    return status;
}

/* Any payload at any depth: a message, mostly. */
static epctx_view any_view(const epctx_model *model, uint64_t *random) {
    epctx_view view = epctx_model_read(model).view;
    uint32_t depth = next_random(random, 9);
    while (depth-- > 0) {
        epctx_cursor it = epctx_view_fields(view, 0);
        epctx_field field;
        uint32_t at = next_random(random, 12);
        epctx_view found = no_view;
        while (epctx_next_field(&it, &field)) {
            if (field.wire != EPCTX_WIRE_LEN) continue;
            found = field.body;
            if (at-- == 0) break;
        }
        if (found.slot == NULL) break;
        view = found;
    }
    return view;
}

/* A name that occurs, or a new one. */
static epctx_str any_name(const epctx_model *model, uint64_t *random) {
    epctx_node_view node = epctx_view_as_node(any_node(model, random));
    epctx_cursor it = epctx_view_node_inputs(&node);
    epctx_str name = epctx_str_of("added");
    uint32_t at = next_random(random, 4);
    while (at-- > 0) (void)epctx_next_str(&it, &name);
    return name;
}

static epctx_status set_attr(epctx_model *model, uint64_t *random) {
    static const int64_t dims[2] = {2, 1};
    static const uint8_t data[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    static const float floats[2] = {1, -1};
    static const epctx_str strings[2] = {{"a", 1}, {"", 0}};
    epctx_view view = any_node(model, random);
    epctx_attr_view seen;
    epctx_cursor it;
    epctx_tensor tensor;
    epctx_graph graph;
    epctx_attr attr;
    epctx_status status;
    epctx_node_view node = epctx_view_as_node(view);
    memset(&attr, 0, sizeof attr);
    memset(&tensor, 0, sizeof tensor);
    memset(&graph, 0, sizeof graph);
    tensor.elem_type = EPCTX_ONNX_FLOAT;
    tensor.rank = 2;
    tensor.dims = dims;
    tensor.data = data;
    tensor.size = sizeof data;
    graph.name = epctx_str_of("inner");
    attr.name = epctx_str_of("text");
    it = epctx_view_node_attrs(&node);
    if (next_random(random, 2) != 0 && epctx_next_attr(&it, &seen)) attr.name = seen.name;
    attr.type = (epctx_attr_type)next_random(random, 10);
    attr.i = -1;
    attr.s = epctx_str_of("value");
    attr.t = &tensor;
    attr.g = &graph;
    attr.count = attr.type >= EPCTX_ATTR_FLOATS ? 2 : 0;
    attr.ints = dims;
    attr.floats = floats;
    attr.strings = strings;
    status = epctx_edit_set_attr(model, view, &attr, NULL);
    if (status == EPCTX_OK) {
        bool found = false;
        node = epctx_view_as_node(view);
        for (it = epctx_view_node_attrs(&node); epctx_next_attr(&it, &seen);)
            if (epctx_str_eq(seen.name, attr.name)) {
                require(!found && seen.type == (int32_t)attr.type);
                found = true;
            }
        require(found);
    }
    return status;
}

static epctx_status put_copy(epctx_model *model, uint64_t *random) {
    epctx_view parent = any_view(model, random);
    epctx_view other = any_view(model, random);
    epctx_view after = next_random(random, 3) == 0 ? any_view(model, random) : no_view;
    epctx_view placed;
    epctx_status status;
    if (epctx_model_size(model) > 1 << 15) return EPCTX_ERR_LIMIT;
    if (next_random(random, 3) == 0) after = parent;
    status =
        epctx_edit_put_copy(model, parent, next_random(random, 27), other, after, &placed, NULL);
    if (status == EPCTX_OK && next_random(random, 2) != 0) {
        status =
            epctx_edit_remove(model, placed, NULL); /* remembered for undo, which takes memory */
        require(status == EPCTX_OK || status == EPCTX_ERR_NOMEM);
    }
    return status;
}

static epctx_status rename_value(epctx_model *model, uint64_t *random) {
    epctx_str from[2], to[2];
    epctx_view scope = next_random(random, 2) != 0 ? any_view(model, random) : no_view;
    size_t mark = epctx_edit_mark(model);
    size_t uses;
    epctx_status status;
    from[0] = any_name(model, random);
    to[0] = epctx_str_of("renamed");
    from[1] = any_name(model, random);
    to[1] = any_name(model, random);
    status =
        epctx_rename_values(model, scope, from, to, 1 + next_random(random, 2), NULL, &uses, NULL);
    require(status == EPCTX_OK || epctx_edit_mark(model) == mark);
    return status;
}

/* What is put into the main graph besides nodes. */
static epctx_status put_value(epctx_model *model, uint64_t *random) {
    static const int64_t dims[3] = {1, -1, 70000};
    epctx_view after = next_random(random, 2) != 0 ? any_view(model, random) : no_view;
    epctx_value value;
    value.name = epctx_str_of("added");
    value.elem_type = (int32_t)next_random(random, 2);
    value.rank = 3;
    value.dims = dims;
    switch (next_random(random, 3)) {
    case 0:
        return epctx_edit_put_value(model, no_view, EPCTX_FIELD_GRAPH_INPUT, &value, after, NULL,
                                    NULL);
    case 1:
        return epctx_edit_put_value(model, no_view, EPCTX_FIELD_GRAPH_OUTPUT, &value, after, NULL,
                                    NULL);
    default:
        return epctx_edit_put_value(model, no_view, EPCTX_FIELD_GRAPH_VALUE_INFO, &value, no_view,
                                    NULL, NULL);
    }
}

/* Plain fields of any message. */
static epctx_status set_field(epctx_model *model, uint64_t *random) {
    static const char text[] = "a text that is a little longer than what was there before";
    epctx_view view = any_view(model, random);
    uint32_t number = next_random(random, 26);
    epctx_str value = epctx_str_of(text + next_random(random, sizeof text));
    epctx_view bytes = {NULL, (const uint8_t *)value.data, value.size};
    switch (next_random(random, 7)) {
    case 0: return epctx_edit_set_field_str(model, view, number, value, NULL);
    case 1: return epctx_edit_set_field_int(model, view, number, -1, NULL);
    case 2: return epctx_edit_remove_field(model, view, number, NULL);
    case 3: return epctx_edit_put_copy(model, view, number, bytes, no_view, NULL, NULL);
    case 4: return epctx_edit_replace_str(model, view, value, NULL);
    case 5: return epctx_edit_set_pair(model, view, number, epctx_str_of("k"), value, NULL);
    default: return epctx_edit_remove_pair(model, view, number, epctx_str_of("k"), NULL);
    }
}

static epctx_status edit_nodes(epctx_model *model, uint64_t *random) {
    epctx_view node = any_node(model, random);
    switch (next_random(random, 5)) {
    case 0: return epctx_edit_copy_attr(model, node, any_view(model, random), NULL);
    case 1: return epctx_edit_remove_attr(model, node, epctx_str_of("text"), NULL);
    case 2:
        return epctx_edit_move(model, any_view(model, random), any_view(model, random), NULL, NULL);
    case 3: return epctx_edit_move(model, node, no_view, NULL, NULL);
    default: {
        epctx_prefix_opts opts;
        memset(&opts, 0, sizeof opts);
        opts.all_nodes = next_random(random, 2) != 0;
        return epctx_edit_prefix(model, epctx_str_of("p_"), &opts, NULL, NULL);
    }
    }
}

static void edit(epctx_model *model, uint64_t *random) {
    switch (next_random(random, 12)) {
    case 0: (void)put_node(model, random); break;
    case 1: (void)epctx_edit_remove(model, any_view(model, random), NULL); break;
    case 2: (void)put_value(model, random); break;
    case 3: (void)epctx_edit_put_opset(model, epctx_str_of("com.microsoft"), 1, NULL); break;
    case 4:
        (void)epctx_edit_set_metadata(model, epctx_str_of("k"), epctx_str_of("value"), NULL);
        break;
    case 5: (void)set_attr(model, random); break;
    case 6: (void)put_copy(model, random); break;
    case 7: (void)rename_value(model, random); break;
    case 8: (void)edit_nodes(model, random); break;
    case 9:
    case 10: (void)set_field(model, random); break;
    default: (void)ops_rebuild(model, NULL); break;
    }
}

/* An edited model reads like the one that opens from its bytes. */
static void require_same_nodes(const epctx_model *a, const epctx_model *b) {
    static epctx_walk walks[2];
    epctx_node_view x, y;
    epctx_walk_begin(&walks[0], a);
    epctx_walk_begin(&walks[1], b);
    while (epctx_walk_next(&walks[0], &x)) {
        require(epctx_walk_next(&walks[1], &y));
        require(epctx_str_eq(x.name, y.name) && epctx_str_eq(x.op_type, y.op_type));
        require(x.input_count == y.input_count && x.output_count == y.output_count);
        require(x.attr_count == y.attr_count);
    }
    require(!epctx_walk_next(&walks[1], &y));
}

/* What is written opens again and writes the same. */
static void reopen(epctx_model *model) {
    copy out = write_model(model);
    epctx_model again;
    epctx_status status = epctx_model_open_memory(&again, out.data, out.size, NULL, NULL);
    require(status == EPCTX_OK || out.size == 0);
    if (status == EPCTX_OK) {
        require_same(&again, out.data, out.size);
        require_same_nodes(model, &again);
    }
    epctx_model_close(&again);
    free(out.data);
}

static void edit_and_undo(epctx_model *model, const uint8_t *data, size_t size, uint64_t *random) {
    size_t start = epctx_edit_mark(model);
    uint32_t rounds = 1 + next_random(random, 4);
    while (rounds-- > 0) {
        walk w = {NULL, 0, 0};
        uint32_t edits = 1 + next_random(random, 6);
        size_t mark = epctx_edit_mark(model);
        copy before = write_model(model);
        while (edits-- > 0) edit(model, random);
        see_model(&w, model);
        reopen(model);
        if (next_random(random, 2) != 0) {
            epctx_edit_undo(model, mark);
            require_same(model, before.data, before.size);
        }
        free(before.data);
    }
    epctx_edit_undo(model, start);
    require_same(model, data, size);
}

/* -- memory -- */

static void in_fixed_arena(const uint8_t *data, size_t size, uint64_t *random) {
    epctx_open_opts opts;
    epctx_model model;
    epctx_error error;
    epctx_graph graph;
    memset(&opts, 0, sizeof opts);
    opts.buffer_size = next_random(random, (uint32_t)(size * 40 + 600));
    opts.buffer = malloc(opts.buffer_size + 1);
    require(opts.buffer != NULL);
    if (epctx_model_open_memory(&model, data, size, &opts, &error) == EPCTX_OK) {
        walk w = {data, size, 0};
        see_model(&w, &model);
        require_same(&model, data, size);
        (void)epctx_model_load_graph(&model, &graph, NULL);
        (void)ops_rebuild(&model, NULL);
        require_same(&model, data, size);
        edit(&model, random);
        epctx_edit_undo(&model, 0);
        require_same(&model, data, size);
    } else {
        require(error.status == EPCTX_ERR_NOMEM);
    }
    epctx_model_close(&model);
    free(opts.buffer);
}

/* -- a file that somebody changes while it is mapped -- */

static void changed_while_open(const uint8_t *data, size_t size, uint64_t *random) {
    walk w = {NULL, 0, 0};
    uint8_t *bytes = (uint8_t *)malloc(size > 0 ? size : 1); /* what is read behind it is found */
    uint32_t changes = 1 + next_random(random, 4);
    epctx_model model;
    epctx_graph graph;
    pb_ostream_t sizing = PB_OSTREAM_SIZING;
    require(bytes != NULL);
    memcpy(bytes, data, size);
    if (epctx_model_open_memory(&model, bytes, size, NULL, NULL) == EPCTX_OK && size > 0) {
        if (next_random(random, 2) != 0) (void)ops_rebuild(&model, NULL);
        while (changes-- > 0)
            bytes[next_random(random, (uint32_t)size)] = (uint8_t)next_random(random, 256);
        see_model(&w, &model);
        (void)epctx_model_load_graph(&model, &graph, NULL);
        (void)ops_rebuild(&model, NULL);
        (void)epctx_model_size(&model);
        (void)epctx_model_write_stream(&model, &sizing, NULL);
        epctx_edit_undo(&model, 0);
        see_model(&w, &model);
    }
    epctx_model_close(&model);
    free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    walk w = {data, size, 0};
    uint64_t random = epctx_hash(data, size, 1);
    epctx_model model;
    epctx_graph graph;
    epctx_error error;
    if (epctx_model_open_memory(&model, data, size, NULL, &error) != EPCTX_OK) {
        require(error.status == EPCTX_ERR_PROTOBUF && error.message[0] != '\0');
        require(error.offset == EPCTX_NO_OFFSET || error.offset <= size);
        return 0;
    }
    see_model(&w, &model);
    require_same(&model, data, size);
    if (epctx_model_load_graph(&model, &graph, &error) != EPCTX_OK)
        require(error.message[0] != '\0');
    edit_and_undo(&model, data, size, &random);
    require(ops_rebuild(&model, NULL) == EPCTX_OK);
    require_same(&model, data, size);
    edit_and_undo(&model, data, size, &random);
    epctx_model_close(&model);
    in_fixed_arena(data, size, &random);
    changed_while_open(data, size, &random);
    return 0;
}
