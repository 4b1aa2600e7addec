/* epctx diff: two models compared by meaning: names and values, not bytes and order of fields. */
#define _POSIX_C_SOURCE 200809L

#include "diff.h"
#include "diff_internal.h"
#include "core/values.h"
#include "core/options.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The exit code when a model cannot be read: 1 says that they differ. */
enum { DIFF_FAILED = 2 };

static bool stopped(const facts *f) {
    return f->short_of_memory || f->overlaid;
}

/* Room for one more element of a list that malloc made. */
static bool list_room(facts *f, void **list, size_t count, size_t *room, size_t size) {
    size_t want = *room * 2 + 64;
    void *more;
    if (count < *room) return true;
    more = count < UINT32_MAX / 2 && want <= SIZE_MAX / size ? realloc(*list, want * size) : NULL;
    if (more == NULL) {
        f->short_of_memory = true;
        return false;
    }
    *list = more;
    *room = want;
    return true;
}

/* Names of hostile length are cut, and so are those with a zero; a hash keeps them apart. */
static epctx_str name_of(facts *f, epctx_str name) {
    bool zero = name.size > 0 && memchr(name.data, '\0', name.size) != NULL;
    if (name.size <= 150 && !zero) return diff_text(f, "%.*s", (int)name.size, name.data);
    return diff_text(f, "%.*s...#%016" PRIx64, (int)(name.size < 100 ? name.size : 100), name.data,
                     epctx_hash(name.data, name.size, 0));
}

/* Short printable text as it is, everything else by size and hash. */
static epctx_str value_of(facts *f, epctx_str value) {
    size_t i;
    for (i = 0; i < value.size && i < 200 && (unsigned char)value.data[i] >= 0x20; i++) {
    }
    if (i == value.size) return diff_text(f, "\"%.*s\"", (int)value.size, value.data);
    return diff_text(f, "%zu bytes, hash %016" PRIx64, value.size,
                     epctx_hash(value.data, value.size, 0));
}

/* `key` lasts. */
static void add_kept(facts *f, const char *key, epctx_str value) {
    uint32_t at = epctx_map_get(&f->at, epctx_str_of(key));
    const fact *last = f->count > 0 ? &f->list[f->count - 1] : NULL;
    fact made;
    /* The same key again: the second, third ... of its kind. */
    if (at != EPCTX_MAP_NONE)
        key = diff_keep(f, diff_text(f, "%" PRIu32 " more: %s", ++f->list[at].repeats, key));
    made.key = key;
    made.value = last != NULL && epctx_str_eq(epctx_str_of(last->value), value)
                     ? last->value
                     : diff_keep(f, value);
    made.repeats = 0;
    made.kind = FACT_OTHER;
    made.told = false;
    made.at_size = 0;
    if (!list_room(f, (void **)&f->list, f->count, &f->room, sizeof *f->list)) return;
    f->list[f->count] = made;
    if (epctx_map_put(&f->at, epctx_str_of(key), (uint32_t)f->count++) != EPCTX_OK)
        f->short_of_memory = true;
}

static void add(facts *f, epctx_str key, epctx_str value) {
    add_kept(f, diff_keep(f, key), value);
}

/* -- things: what is paired when its name has changed -- */

static bool begins_with(epctx_str text, epctx_str prefix) {
    return text.size >= prefix.size &&
           (prefix.size == 0 || memcmp(text.data, prefix.data, prefix.size) == 0);
}

/* The facts from now on are about `owner`; returns its number for end_thing. */
static size_t begin_thing(facts *f, const char *at, const char *owner, epctx_str outputs) {
    thing *t;
    if (!list_room(f, (void **)&f->things, f->thing_count, &f->thing_room, sizeof *f->things))
        return SIZE_MAX;
    t = &f->things[f->thing_count];
    memset(t, 0, sizeof *t);
    t->at = at;
    t->owner = owner;
    t->outputs = diff_keep(f, outputs);
    t->first = t->end = (uint32_t)f->count;
    return f->thing_count++;
}

static void end_thing(facts *f, size_t number) {
    static const char output[] = ": output ";
    thing *t;
    size_t i;
    if (number == SIZE_MAX) return;
    t = &f->things[number];
    t->end = (uint32_t)f->count;
    for (i = t->first; i < t->end; i++) {
        epctx_str key = epctx_str_of(f->list[i].key), owner = epctx_str_of(t->owner);
        if (!begins_with(key, owner)) continue; /* cut, or the second of its name */
        key.data += owner.size;
        key.size -= owner.size;
        if (begins_with(key, epctx_str_of(output))) continue;
        t->content = epctx_hash(key.data, key.size, t->content);
        t->content = epctx_hash(f->list[i].value, strlen(f->list[i].value), t->content);
    }
}

/* The bytes when there are few, else their size and hash. */
static epctx_str sum_text(facts *f, value_sum *sum) {
    char hex[2 * 16 + 1] = "";
    size_t i;
    value_end(sum);
    if (sum->size > 16)
        return diff_text(f, "%" PRIu64 " bytes, hash %016" PRIx64, sum->size, sum->hash);
    for (i = 0; i < sum->size; i++)
        snprintf(hex + 2 * i, sizeof hex - 2 * i, "%02x", sum->block[i]);
    return diff_text(f, "bytes %s", hex);
}

/* "[2,3]", the end of many dimensions left out. */
static epctx_str dims_text(facts *f, epctx_cursor dims) {
    char list[200] = "[";
    size_t used = 1;
    const char *comma = "";
    int64_t dim;
    for (; used < sizeof list - 32 && epctx_next_int(&dims, &dim); comma = ",") {
        int n = snprintf(list + used, sizeof list - used, "%s%" PRId64, comma, dim);
        used += n > 0 ? (size_t)n : 0;
    }
    return diff_text(f, "%s%s]", list, epctx_next_int(&dims, &dim) ? ",..." : "");
}

static epctx_str type_text(facts *f, const epctx_type_view *type) {
    char *made = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&made, &size);
    epctx_str result = {NULL, 0};
    if (out != NULL) value_put_type(out, type);
    if (out == NULL || fclose(out) != 0) {
        f->short_of_memory = true;
    } else {
        epctx_str whole = {NULL, 0};
        whole.data = made;
        whole.size = size;
        result = name_of(f, whole);
    }
    free(made);
    return result;
}

static void add_values(facts *f, const char *at, const char *word, epctx_cursor values,
                       bool ordered) {
    epctx_value_view value;
    uint64_t i = 0;
    for (; !stopped(f) && epctx_next_value(&values, &value); i++) {
        epctx_type_view type = epctx_type_of(value.type);
        epctx_str name = name_of(f, value.name);
        if (ordered) add(f, diff_text(f, "%s%s %" PRIu64, at, word, i), name);
        add(f, diff_text(f, "%stype of %s", at, name.data), type_text(f, &type));
        if (ordered || stopped(f)) continue;
        f->list[f->count - 1].kind = FACT_TYPE;
        f->list[f->count - 1].at_size = (uint32_t)strlen(at);
    }
}

static void add_names(facts *f, const char *owner, const char *word, epctx_cursor names,
                      fact_kind kind) {
    epctx_str name;
    uint64_t i = 0;
    for (; !stopped(f) && epctx_next_str(&names, &name); i++) {
        add(f, diff_text(f, "%s: %s %" PRIu64, owner, word, i), name_of(f, name));
        if (!stopped(f)) f->list[f->count - 1].kind = kind;
    }
}

static void add_pairs(facts *f, const char *owner, const char *word, epctx_cursor pairs) {
    epctx_pair pair;
    while (!stopped(f) && epctx_next_pair(&pairs, &pair))
        add(f, diff_text(f, "%s%s '%s'", owner, word, name_of(f, pair.key).data),
            value_of(f, pair.value));
}

/* -- tensors: the elements, wherever and however they are stored -- */

/* Tensors that lie over each other in a file must not make the time that it takes theirs times
 * their number: what epctx_model_load_graph refuses is not compared either. */
static epctx_status count_external(facts *f, const epctx_tensor_view *tensor, uint64_t size,
                                   uint64_t length, epctx_error *error) {
    enum { TIMES = 16, FREE = 1 << 30 };
    if (epctx_map_get(&f->data, tensor->location) == EPCTX_MAP_NONE) {
        f->there += size;
        if (epctx_map_put(&f->data, tensor->location, 1) != EPCTX_OK) f->short_of_memory = true;
    }
    f->read += length;
    if (f->read <= FREE || (f->read - FREE) / TIMES <= f->there) return EPCTX_OK;
    f->overlaid = true;
    return epctx_fail(error, EPCTX_ERR_LIMIT, "tensors overlap in their file");
}

/* Takes in what an external tensor has in its file. */
static epctx_status add_external(facts *f, value_sum *sum, const epctx_tensor_view *tensor,
                                 epctx_error *error) {
    const epctx_io *io = epctx_io_files();
    epctx_mapping mapping;
    epctx_str folder;
    uint64_t length = 0;
    epctx_status status =
        epctx_path_base(epctx_str_of(f->file), epctx_str_of(NULL), &folder, error);
    if (status == EPCTX_OK)
        status =
            epctx_path_map(io, folder, tensor->location, cli_path_flags(), &mapping, NULL, error);
    if (status != EPCTX_OK) return status;
    status = epctx_view_tensor_extent(tensor, mapping.size, &length, error);
    if (status == EPCTX_OK) status = count_external(f, tensor, mapping.size, length, error);
    if (status == EPCTX_OK) value_add(sum, mapping.data + (size_t)tensor->offset, (size_t)length);
    io->unmap_fn(io->user, &mapping);
    return status;
}

static epctx_str tensor_text(facts *f, const epctx_tensor_view *tensor) {
    const char *dims = dims_text(f, epctx_view_tensor_dims(tensor)).data;
    epctx_error error;
    value_sum sum;
    value_begin(&sum, true);
    if (tensor->external && add_external(f, &sum, tensor, &error) != EPCTX_OK)
        return diff_text(f, "%s%s at %" PRIu64 " in '%s', unreadable: %.100s",
                         epctx_elem_name(tensor->elem_type), dims, tensor->offset,
                         name_of(f, tensor->location).data, error.message);
    if (!tensor->external) value_add_tensor(&sum, tensor);
    return diff_text(f, "%s%s, %s", epctx_elem_name(tensor->elem_type), dims,
                     sum_text(f, &sum).data);
}

static epctx_str sparse_text(facts *f, const epctx_sparse_view *sparse) {
    return diff_text(f, "%s, values %s, indices %s",
                     dims_text(f, epctx_view_fields(sparse->view, EPCTX_FIELD_SPARSE_DIMS)).data,
                     tensor_text(f, &sparse->values).data, tensor_text(f, &sparse->indices).data);
}

/* -- attributes -- */

static void add_graph(facts *f, const char *at, epctx_graph_view graph, uint32_t depth);

/* Lists of up to 16 numbers as they are, others by size and hash. */
static epctx_str numbers_text(facts *f, const epctx_attr_view *attr) {
    bool ints = attr->type == EPCTX_ATTR_INTS;
    epctx_cursor it =
        epctx_view_fields(attr->view, ints ? EPCTX_FIELD_ATTR_INTS : EPCTX_FIELD_ATTR_FLOATS);
    char list[16 * 24 + 8] = "[";
    size_t used = 1, count = 0;
    int64_t number = 0;
    float real = 0;
    value_sum sum;
    value_begin(&sum, true);
    for (; ints ? epctx_next_int(&it, &number) : epctx_next_float(&it, &real); count++) {
        uint32_t bits;
        int n = 0;
        memcpy(&bits, &real, sizeof bits);
        value_add_number(&sum, ints ? (uint64_t)number : bits, ints ? 8 : 4);
        if (count < 16 && ints)
            n = snprintf(list + used, sizeof list - used, "%s%" PRId64, count > 0 ? "," : "",
                         number);
        else if (count < 16)
            n = snprintf(list + used, sizeof list - used, "%s%.9g", count > 0 ? "," : "",
                         (double)real);
        used += n > 0 ? (size_t)n : 0;
    }
    if (count <= 16) return diff_text(f, "%s]", list);
    return diff_text(f, "%zu numbers, %s", count, sum_text(f, &sum).data);
}

/* Members that may stand several times: `key` and, for lists, the position. */
static void add_members(facts *f, epctx_str key, const epctx_attr_view *attr) {
    static const uint8_t numbers[EPCTX_ATTR_TYPE_PROTOS + 1] = {
        0, 0, 0, 0, 5, 0, 0, 0, 9, 10, 0, 22, 23, 14, 15}; /* by type, of AttributeProto */
    epctx_cursor it = epctx_view_fields(attr->view, numbers[attr->type]);
    epctx_tensor_view tensor;
    epctx_sparse_view sparse;
    epctx_field field;
    epctx_str word;
    uint64_t i = 0;
    switch (attr->type) {
    case EPCTX_ATTR_STRINGS:
        for (; epctx_next_str(&it, &word); i++)
            add(f, diff_text(f, "%s %" PRIu64, key.data, i), value_of(f, word));
        break;
    case EPCTX_ATTR_TENSOR:
    case EPCTX_ATTR_TENSORS:
        for (; epctx_next_tensor(&it, &tensor); i++)
            add(f, diff_text(f, "%s %" PRIu64, key.data, i), tensor_text(f, &tensor));
        break;
    case EPCTX_ATTR_SPARSE_TENSOR:
    case EPCTX_ATTR_SPARSE_TENSORS:
        for (; epctx_next_sparse(&it, &sparse); i++)
            add(f, diff_text(f, "%s %" PRIu64, key.data, i), sparse_text(f, &sparse));
        break;
    default:
        for (; numbers[attr->type] != 0 && epctx_next_field(&it, &field); i++) {
            epctx_type_view type = epctx_type_of(field.body);
            add(f, diff_text(f, "%s %" PRIu64, key.data, i), type_text(f, &type));
        }
    }
}

static void add_graphs(facts *f, epctx_str key, const epctx_attr_view *attr, uint32_t depth) {
    epctx_cursor it = epctx_view_fields(attr->view, EPCTX_FIELD_ATTR_GRAPHS);
    epctx_field field;
    uint64_t i = 0;
    if (depth == 0) return;
    if (attr->type == EPCTX_ATTR_GRAPH) {
        add_graph(f, key.data, epctx_view_as_graph(attr->g), depth - 1);
        return;
    }
    for (; epctx_next_field(&it, &field); i++)
        if (field.wire == EPCTX_WIRE_LEN)
            add_graph(f, diff_text(f, "%s %" PRIu64, key.data, i).data,
                      epctx_view_as_graph(field.body), depth - 1);
}

static void add_attr(facts *f, const char *owner, const epctx_attr_view *attr, uint32_t depth) {
    epctx_str key =
        epctx_str_of(diff_keep(f, diff_text(f, "%s: %s", owner, name_of(f, attr->name).data)));
    if (attr->ref_attr_name.size > 0) {
        add_kept(f, key.data,
                 diff_text(f, "the attribute '%s' of the function",
                           name_of(f, attr->ref_attr_name).data));
        return;
    }
    switch (attr->type) {
    case EPCTX_ATTR_INT: add_kept(f, key.data, diff_text(f, "%" PRId64, attr->i)); return;
    case EPCTX_ATTR_FLOAT: add_kept(f, key.data, diff_text(f, "%.9g", (double)attr->f)); return;
    case EPCTX_ATTR_STRING: add_kept(f, key.data, value_of(f, attr->s)); return;
    case EPCTX_ATTR_INTS:
    case EPCTX_ATTR_FLOATS: add_kept(f, key.data, numbers_text(f, attr)); return;
    default:
        add_kept(f, key.data, diff_text(f, "of type %s", epctx_attr_type_name(attr->type)));
        if (attr->type == EPCTX_ATTR_GRAPH || attr->type == EPCTX_ATTR_GRAPHS)
            add_graphs(f, key, attr, depth);
        else
            add_members(f, key, attr);
    }
}

/* -- nodes and graphs -- */

/* The default domain has two spellings. */
static epctx_str domain_of(facts *f, epctx_str domain) {
    return name_of(f, domain.size > 0 ? domain : epctx_str_of("ai.onnx"));
}

/* Nodes are known by name, or by what they make. */
static void add_node(facts *f, const char *at, const epctx_node_view *node, uint32_t depth) {
    epctx_cursor outputs = epctx_view_node_outputs(node), attrs = epctx_view_node_attrs(node);
    epctx_str name = node->name, output = {NULL, 0};
    const char *owner;
    epctx_attr_view attr;
    size_t number;
    epctx_next_str(&outputs, &output);
    if (name.size == 0) name = output;
    owner = diff_keep(f, diff_text(f, "%snode '%s'", at, name_of(f, name).data));
    number = begin_thing(f, at, owner, name_of(f, output));
    add_kept(f, owner,
             diff_text(f, "%s:%s%s%s", domain_of(f, node->domain).data,
                       name_of(f, node->op_type).data, node->overload.size > 0 ? ":" : "",
                       name_of(f, node->overload).data));
    add_names(f, owner, "input", epctx_view_node_inputs(node), FACT_INPUT);
    add_names(f, owner, "output", epctx_view_node_outputs(node), FACT_OUTPUT);
    add_pairs(f, owner, ": metadata",
              epctx_view_fields(node->view, EPCTX_FIELD_NODE_METADATA_PROPS));
    while (!stopped(f) && epctx_next_attr(&attrs, &attr)) add_attr(f, owner, &attr, depth);
    end_thing(f, number);
}

static void add_initializer(facts *f, const char *at, const epctx_tensor_view *tensor) {
    const char *owner =
        diff_keep(f, diff_text(f, "%sinitializer '%s'", at, name_of(f, tensor->name).data));
    size_t number = begin_thing(f, at, owner, epctx_str_of(""));
    add_kept(f, owner, tensor_text(f, tensor));
    end_thing(f, number);
}

static void add_nodes(facts *f, const char *at, epctx_cursor nodes, uint32_t depth) {
    epctx_node_view node;
    while (!stopped(f) && epctx_next_node(&nodes, &node)) add_node(f, at, &node, depth);
}

/* `at` leads to a body; it is empty for the main graph. */
static void add_graph(facts *f, const char *at, epctx_graph_view graph, uint32_t depth) {
    epctx_cursor tensors = epctx_view_graph_initializers(graph),
                 sparses = epctx_graph_sparse(graph);
    epctx_cursor annotations = epctx_graph_annotations(graph);
    epctx_annotation_view annotation;
    epctx_tensor_view tensor;
    epctx_sparse_view sparse;
    const char *prefix = "";
    if (at[0] != '\0')
        prefix = diff_keep(f, diff_text(f, "%s > ", name_of(f, epctx_str_of(at)).data));
    if (f->short_of_memory) return;
    add(f, diff_text(f, "%sgraph name", prefix), value_of(f, graph.name));
    add_pairs(f, prefix, "graph metadata",
              epctx_view_fields(graph.view, EPCTX_FIELD_GRAPH_METADATA_PROPS));
    add_values(f, prefix, "graph input", epctx_view_graph_inputs(graph), true);
    add_values(f, prefix, "graph output", epctx_view_graph_outputs(graph), true);
    add_values(f, prefix, "value", epctx_view_graph_values(graph), false);
    add_nodes(f, prefix, epctx_view_graph_nodes(graph), depth);
    while (!stopped(f) && epctx_next_tensor(&tensors, &tensor)) add_initializer(f, prefix, &tensor);
    while (!stopped(f) && epctx_next_sparse(&sparses, &sparse))
        add(f,
            diff_text(f, "%ssparse initializer '%s'", prefix, name_of(f, sparse.values.name).data),
            sparse_text(f, &sparse));
    while (!stopped(f) && epctx_next_annotation(&annotations, &annotation))
        add_pairs(f,
                  diff_keep(f, diff_text(f, "%sannotation of %s: ", prefix,
                                         name_of(f, annotation.tensor_name).data)),
                  "", epctx_annotation_pairs(&annotation));
}

/* -- the model -- */

static void add_opsets(facts *f, const char *owner, epctx_cursor opsets) {
    epctx_opset opset;
    while (!stopped(f) && epctx_next_opset(&opsets, &opset))
        add(f, diff_text(f, "%sopset '%s'", owner, domain_of(f, opset.domain).data),
            diff_text(f, "%" PRId64, opset.version));
}

static void add_function(facts *f, const epctx_function_view *function) {
    epctx_cursor attrs = epctx_view_fields(function->view, EPCTX_FIELD_FUNCTION_ATTRIBUTE_PROTO);
    epctx_attr_view attr;
    const char *owner = diff_keep(
        f, diff_text(f, "function %s:%s%s%s", domain_of(f, function->domain).data,
                     name_of(f, function->name).data, function->overload.size > 0 ? ":" : "",
                     name_of(f, function->overload).data));
    const char *prefix = diff_keep(f, diff_text(f, "%s > ", name_of(f, epctx_str_of(owner)).data));
    if (f->short_of_memory) return;
    add(f, epctx_str_of(owner),
        diff_text(f, "%" PRIu32 " node%s", function->node_count, cli_plural(function->node_count)));
    add_names(f, owner, "input", epctx_function_inputs(function), FACT_OTHER);
    add_names(f, owner, "output", epctx_function_outputs(function), FACT_OTHER);
    add_names(f, owner, "attribute",
              epctx_view_fields(function->view, EPCTX_FIELD_FUNCTION_ATTRIBUTE), FACT_OTHER);
    add_opsets(f, prefix, epctx_function_opsets(function));
    add_values(f, prefix, "value",
               epctx_view_fields(function->view, EPCTX_FIELD_FUNCTION_VALUE_INFO), false);
    while (!stopped(f) && epctx_next_attr(&attrs, &attr)) add_attr(f, owner, &attr, 100);
    add_nodes(f, prefix, epctx_function_nodes(function), 100);
}

static void add_model(facts *f) {
    epctx_model_info info = epctx_model_read(&f->model);
    epctx_cursor it = epctx_model_functions(&f->model);
    epctx_function_view function;
    epctx_training_view training;
    uint64_t i = 0;
    add(f, diff_text(f, "ir_version"), diff_text(f, "%" PRId64, info.ir_version));
    add(f, diff_text(f, "producer"), value_of(f, info.producer_name));
    add(f, diff_text(f, "producer version"), value_of(f, info.producer_version));
    add(f, diff_text(f, "model domain"), value_of(f, info.domain));
    add(f, diff_text(f, "model version"), diff_text(f, "%" PRId64, info.model_version));
    add_opsets(f, "", epctx_model_opsets(&f->model));
    add_pairs(f, "", "metadata", epctx_view_fields(info.view, EPCTX_FIELD_MODEL_METADATA_PROPS));
    if (epctx_model_has_graph(&f->model)) add_graph(f, "", epctx_model_graph(&f->model), 100);
    while (!stopped(f) && epctx_next_function(&it, &function)) add_function(f, &function);
    it = epctx_model_trainings(&f->model);
    for (; !stopped(f) && epctx_next_training(&it, &training); i++) {
        const char *at = diff_keep(f, diff_text(f, "training %" PRIu64, i));
        add_graph(f, diff_text(f, "%s: initialization", at).data, training.initialization, 100);
        add_graph(f, diff_text(f, "%s: algorithm", at).data, training.algorithm, 100);
        add_pairs(f, at, ": initialize",
                  epctx_view_fields(training.view, EPCTX_FIELD_TRAINING_INITIALIZATION_BINDING));
        add_pairs(f, at, ": update",
                  epctx_view_fields(training.view, EPCTX_FIELD_TRAINING_UPDATE_BINDING));
    }
}

static bool open_facts(facts *f, const char *file) {
    epctx_error error;
    memset(f, 0, sizeof *f);
    f->file = file;
    epctx_arena_init(&f->arena, NULL);
    epctx_map_init(&f->at, &f->arena);
    epctx_map_init(&f->data, &f->arena);
    if (cli_open(&f->model, file, &error) != EPCTX_OK) {
        cli_fail(&error);
        return false;
    }
    add_model(f);
    if (f->short_of_memory)
        cli_fail_text("out of memory");
    else if (f->overlaid)
        cli_fail_text("%s: its tensors overlap in the external data: they have %" PRIu64
                      " bytes, the files %" PRIu64,
                      file, f->read, f->there);
    return !f->short_of_memory && !f->overlaid;
}

static void close_facts(facts *f) {
    epctx_model_close(&f->model);
    epctx_arena_free(&f->arena);
    free(f->list);
    free(f->things);
}

static void put_line(char sign, const fact *a, const fact *b) {
    printf("%c ", sign);
    cli_put(stdout, epctx_str_of(a->key));
    fputs(": ", stdout);
    cli_put(stdout, epctx_str_of(a->value));
    if (b != NULL) fputs(" -> ", stdout);
    if (b != NULL) cli_put(stdout, epctx_str_of(b->value));
    putchar('\n');
}

static void put_json(json_writer *w, const char *change, const fact *a, const fact *b) {
    json_object(w, NULL, JSON_INLINE);
    json_text(w, "change", change);
    json_text(w, "what", a != NULL ? a->key : b->key);
    if (a != NULL) json_text(w, "old", a->value);
    if (b != NULL) json_text(w, "new", b->value);
    json_end(w);
}

/* -- what has another name -- */

/* In the other model nothing is called so, and no partition has to do with it. */
static bool is_free(const thing *t, const facts *other) {
    return t->end > t->first && t->partition == 0 &&
           epctx_map_get(&other->at, epctx_str_of(t->owner)) == EPCTX_MAP_NONE;
}

/* What two things have in common when one is the other under a new name. A node of the same
 * outputs is the same, whatever else has changed; after that the same content will do. */
static epctx_str likeness(facts *f, const thing *t, bool by_content) {
    return by_content ? diff_text(f, "%016" PRIx64 " %s", t->content, t->at)
                      : diff_text(f, "%s %s", t->outputs, t->at);
}

/* `text` with another beginning. */
static const char *with_prefix(facts *f, const char *whole, epctx_str old, epctx_str now) {
    if (!begins_with(epctx_str_of(whole), old)) return whole;
    return diff_keep(f, diff_text(f, "%.*s%s", (int)now.size, now.data, whole + old.size));
}

/* The facts of a thing, and of what stands in its bodies, under the name in the other model. */
static void rename_thing(facts *f, size_t number, epctx_str now) {
    thing t = f->things[number];
    epctx_str old = epctx_str_of(t.owner);
    size_t i;
    for (i = t.first; i < t.end; i++) {
        f->list[i].key = with_prefix(f, f->list[i].key, old, now);
        if (epctx_map_put(&f->at, epctx_str_of(f->list[i].key), (uint32_t)i) != EPCTX_OK)
            f->short_of_memory = true;
    }
    for (i = number; i < f->thing_count && f->things[i].first < t.end; i++) {
        f->things[i].at = with_prefix(f, f->things[i].at, old, now);
        f->things[i].owner = with_prefix(f, f->things[i].owner, old, now);
    }
}

/* `w` NULL, here and below: for people. */
static void put_renamed(json_writer *w, const thing *old, const thing *now) {
    const fact from = {.key = old->owner, .value = old->owner}, to = {.value = now->owner};
    if (w != NULL) {
        put_json(w, "renamed", &from, &to);
        return;
    }
    fputs("> ", stdout);
    cli_put(stdout, epctx_str_of(from.value));
    fputs(" -> ", stdout);
    cli_put(stdout, epctx_str_of(to.value));
    putchar('\n');
}

/* Pairs what is only in one of the models, in the order of the file; returns how many. */
static size_t pair_things(json_writer *w, facts *a, facts *b, bool by_content) {
    epctx_map alike;
    size_t i, count = 0;
    epctx_map_init(&alike, &b->arena);
    for (i = b->thing_count; i-- > 0;) {
        thing *t = &b->things[i];
        epctx_str key;
        uint32_t next;
        if (!is_free(t, a) || (!by_content && t->outputs[0] == '\0')) continue;
        key = likeness(b, t, by_content);
        next = epctx_map_get(&alike, key);
        t->next = next;
        if (next == EPCTX_MAP_NONE)
            key = epctx_str_of(diff_keep(b, key)); /* else it is in the map */
        if (epctx_map_put(&alike, key, (uint32_t)i) != EPCTX_OK) b->short_of_memory = true;
    }
    for (i = 0; i < a->thing_count && !a->short_of_memory && !b->short_of_memory; i++) {
        thing *t = &a->things[i];
        thing *other;
        epctx_str key;
        uint32_t at;
        if (!is_free(t, b) || (!by_content && t->outputs[0] == '\0')) continue;
        key = likeness(a, t, by_content);
        at = epctx_map_get(&alike, key);
        if (at == EPCTX_MAP_NONE) continue;
        other = &b->things[at];
        if (!is_free(other, a)) continue; /* found already, in a body that was renamed */
        if (other->next != UINT32_MAX &&
            epctx_map_put(&alike, key, (uint32_t)other->next) != EPCTX_OK)
            a->short_of_memory = true;
        put_renamed(w, t, other);
        count++;
        rename_thing(a, i, epctx_str_of(other->owner));
    }
    return count;
}

/* Prints what differs; what has another name is compared under the new one. */
static size_t compare(json_writer *w, facts *a, facts *b, bool all) {
    size_t i, found = diff_put_partitions(w, a, b, all);
    found += pair_things(w, a, b, false);
    found += pair_things(w, a, b, true);
    for (i = 0; i < a->count; i++) {
        uint32_t at = epctx_map_get(&b->at, epctx_str_of(a->list[i].key));
        const fact *other = at != EPCTX_MAP_NONE ? &b->list[at] : NULL;
        if (a->list[i].told) continue;
        if (other != NULL && strcmp(other->value, a->list[i].value) == 0) continue;
        if (w != NULL)
            put_json(w, other != NULL ? "changed" : "removed", &a->list[i], other);
        else
            put_line(other != NULL ? '~' : '-', &a->list[i], other);
        found++;
    }
    for (i = 0; i < b->count; i++) {
        if (b->list[i].told) continue;
        if (epctx_map_get(&a->at, epctx_str_of(b->list[i].key)) != EPCTX_MAP_NONE) continue;
        if (w != NULL)
            put_json(w, "added", NULL, &b->list[i]);
        else
            put_line('+', &b->list[i], NULL);
        found++;
    }
    return found;
}

int diff_put_json(json_writer *w, const char *old, const char *now) {
    facts a, b;
    bool good;
    memset(&b, 0, sizeof b);
    good = open_facts(&a, old) && open_facts(&b, now);
    json_array(w, "changes", JSON_HANGING);
    if (good) (void)compare(w, &a, &b, false);
    json_end(w);
    close_facts(&a);
    close_facts(&b);
    return good ? CLI_OK : CLI_FAILED;
}

static int run(const cli_args *args) {
    const char *const *files = args->operands;
    json_writer *w = NULL;
    facts a, b;
    int code = DIFF_FAILED;
    memset(&b, 0, sizeof b);
    cli_progress_begin("diff", cli_file_size(files[0]) + cli_file_size(files[1]));
    if (open_facts(&a, files[0]) && open_facts(&b, files[1])) {
        cli_progress_end();
        if (args->json) w = cli_json_begin(stdout);
        if (w != NULL) json_array(w, "changes", JSON_HANGING);
        code = compare(w, &a, &b, args->all) > 0 ? CLI_FAILED : CLI_OK;
        if (w != NULL) json_end(w);
        if (w != NULL) cli_json_end();
    }
    close_facts(&a);
    close_facts(&b);
    return code;
}

const cli_command cli_diff = {
    .name = "diff",
    .group = CLI_COMPARE,
    .operands = "OLD NEW",
    .least = 2,
    .most = 2,
    .failed = DIFF_FAILED,
    .summary = "compare two models by meaning",
    .about = "Compares everything that a session or an EP can see: versions, opset imports,\n"
             "metadata, graph inputs and outputs in their order, types, nodes by name (or by\n"
             "first output), attributes by name, tensors by element, subgraphs, functions and\n"
             "training graphs. Ignores documentation; the order of nodes, attributes,\n"
             "initializers, metadata, imports and functions; whether a tensor is raw, typed or\n"
             "external; '' versus 'ai.onnx'; and fields that are not in the ONNX schema. Of a\n"
             "context in a file, compares only the file's name.\n"
             "\n"
             "Lines begin with - (only in OLD), + (only in NEW), ~ (changed) or > (renamed: a\n"
             "node or initializer with another name but the same outputs or content). Of an\n"
             "EPContext node in NEW one line says which nodes of OLD it replaces: those\n"
             "between its inputs and outputs. The exit code is 0 if the models are equal, 1 if\n"
             "they differ, 2 if one is unreadable.\n",
    .more = "Example: epctx diff old_ctx.onnx new_ctx.onnx\n",
    .run = run,
};
