/* epctx set: attributes of nodes, metadata, opset imports, fields of model and graph. */
#include "core/combine.h"
#include "compile/compile.h"
#include "core/output.h"
#include "core/target.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    epctx_attr_type type;
} types[] = {{"int", EPCTX_ATTR_INT},       {"float", EPCTX_ATTR_FLOAT},
             {"string", EPCTX_ATTR_STRING}, {"ints", EPCTX_ATTR_INTS},
             {"floats", EPCTX_ATTR_FLOATS}, {"strings", EPCTX_ATTR_STRINGS}};
#define TYPE_COUNT (sizeof types / sizeof types[0])

/* The command line is wrong: "<what>: '<text>' <problem>". */
static bool misuse(target_work *work, epctx_str what, epctx_str text, const char *problem) {
    cli_misuse("%.*s: '%.*s' %s", (int)what.size, what.data, (int)text.size, text.data, problem);
    work->misused = true;
    return false;
}

/* The model did not take it. */
static bool refused(const target_work *work, epctx_status status) {
    if (status == EPCTX_OK) return false;
    cli_fail(&work->error);
    return true;
}

static epctx_str part_of(const char *text, size_t size) {
    epctx_str part;
    part.data = text;
    part.size = size;
    return part;
}

/* -- values -- */

/* The value of WHAT=VALUE: the text, with @FILE the bytes of a file, with @@ a text that starts
 * with one @. With --all many nodes get one value: its file is mapped once. */
static bool read_text(target_work *work, const char *text, epctx_str *value) {
    const epctx_io *io = epctx_io_files();
    epctx_mapping *mapping = &work->mappings[work->mapping_count];
    *value = epctx_str_of(text);
    if (text[0] != '@') return true;
    if (text[1] == '@') {
        *value = epctx_str_of(text + 1);
        return true;
    }
    if (text == work->mapped) {
        mapping--;
    } else {
        if (refused(work, io->map_fn(io->user, NULL, text + 1, false, mapping, &work->error)))
            return false;
        work->mapping_count++;
        work->mapped = text;
    }
    value->data = (const char *)mapping->data;
    value->size = mapping->size;
    return true;
}

/* What protobuf calls a string must be UTF-8, or no other reader takes the model. Attributes that
 * ONNX calls strings are bytes, and free. */
static bool is_utf8(target_work *work, epctx_str what, epctx_str text) {
    if (epctx_str_is_utf8(text)) return true;
    cli_misuse("%.*s: the text is not UTF-8, as ONNX requires", (int)what.size, what.data);
    work->misused = true;
    return false;
}

static bool read_int(const char *text, size_t size, int64_t *value) {
    char digits[32];
    char *end;
    if (size == 0 || size >= sizeof digits) return false;
    memcpy(digits, text, size);
    digits[size] = '\0';
    errno = 0;
    *value = strtoll(digits, &end, 10);
    return errno == 0 && *end == '\0' &&
           (digits[0] == '-' || (digits[0] >= '0' && digits[0] <= '9'));
}

static bool read_float(const char *text, size_t size, float *value) {
    char digits[64];
    char *end;
    if (size == 0 || size >= sizeof digits) return false;
    memcpy(digits, text, size);
    digits[size] = '\0';
    *value = strtof(digits, &end);
    return *end == '\0' && digits[0] != ' ';
}

/* The next item of a list that commas part; "" has none. */
static bool next_item(const char **at, const char **item, size_t *size) {
    if (*at == NULL || **at == '\0') return false;
    *item = *at;
    *size = strcspn(*at, ",");
    *at += *size;
    if (**at == ',') ++*at;
    return true;
}

static size_t count_items(const char *text) {
    const char *item;
    size_t size, count = 0;
    while (next_item(&text, &item, &size)) count++;
    return count;
}

static bool read_list(target_work *work, const char *text, epctx_attr *attr) {
    size_t count = count_items(text);
    int64_t *ints = (int64_t *)epctx_arena_array(&work->arena, count, sizeof *ints);
    float *floats = (float *)epctx_arena_array(&work->arena, count, sizeof *floats);
    epctx_str *strings = (epctx_str *)epctx_arena_array(&work->arena, count, sizeof *strings);
    const char *item;
    size_t size;
    if (ints == NULL || floats == NULL || strings == NULL) {
        cli_fail_text("out of memory");
        return false;
    }
    attr->ints = ints;
    attr->floats = floats;
    attr->strings = strings;
    while (next_item(&text, &item, &size)) {
        size_t i = attr->count++;
        strings[i].data = item;
        strings[i].size = size;
        if (attr->type == EPCTX_ATTR_INTS && !read_int(item, size, &ints[i]))
            return misuse(work, attr->name, part_of(item, size), "is not an integer");
        if (attr->type == EPCTX_ATTR_FLOATS && !read_float(item, size, &floats[i]))
            return misuse(work, attr->name, part_of(item, size), "is not a number");
    }
    return true;
}

static bool read_value(target_work *work, const char *text, epctx_attr *attr) {
    size_t size = strlen(text);
    switch (attr->type) {
    case EPCTX_ATTR_INT:
        return read_int(text, size, &attr->i) ||
               misuse(work, attr->name, epctx_str_of(text), "is not an integer");
    case EPCTX_ATTR_FLOAT:
        return read_float(text, size, &attr->f) ||
               misuse(work, attr->name, epctx_str_of(text), "is not a number");
    case EPCTX_ATTR_STRING: return read_text(work, text, &attr->s);
    default: return read_list(work, text, attr);
    }
}

/* -- types -- */

static bool type_of_schema(epctx_str name, epctx_attr_type *type) {
#define SCHEMA_ROW(id, text, kind, member) \
    if (epctx_str_is(name, text)) { \
        *type = EPCTX_ATTR_##kind; \
        return true; \
    }
    EPCTX_EPNODE_ATTR_LIST(SCHEMA_ROW)
#undef SCHEMA_ROW
    return false;
}

/* NAME:TYPE on the command line; takes the type off the name. */
static bool type_of_suffix(epctx_str *name, epctx_attr_type *type) {
    size_t i;
    for (i = 0; i < TYPE_COUNT; i++) {
        size_t size = strlen(types[i].name);
        if (name->size <= size + 1 || name->data[name->size - size - 1] != ':' ||
            memcmp(name->data + name->size - size, types[i].name, size) != 0)
            continue;
        *type = types[i].type;
        name->size -= size + 1;
        return true;
    }
    return false;
}

/* The type of a new value: what the command line says, the schema, or what is there. */
static bool choose_type(target_work *work, const epctx_node_view *node, epctx_attr *attr) {
    epctx_attr_type schema;
    epctx_attr_view old;
    size_t i;
    bool said = type_of_suffix(&attr->name, &attr->type);
    if (epctx_view_is_epnode(node) && type_of_schema(attr->name, &schema)) {
        if (said && attr->type != schema)
            return misuse(work, node->name, attr->name, "has another type in the EPContext schema");
        attr->type = schema;
        return true;
    }
    if (said) return true;
    if (!target_attr(node, attr->name, &old)) {
        cli_guess guess = target_guess_attr(node, attr->name);
        if (guess.best != NULL)
            cli_misuse("there is no attribute '%.*s'%s", (int)attr->name.size, attr->name.data,
                       cli_guess_hint(&guess));
        return misuse(work, node->name, attr->name,
                      "is a new attribute: give its type as NAME:int=, :float=, :string=, :ints=, "
                      ":floats= or :strings=");
    }
    for (i = 0; i < TYPE_COUNT; i++)
        if ((int32_t)types[i].type == old.type) attr->type = types[i].type;
    return attr->type != EPCTX_ATTR_UNDEFINED ||
           misuse(work, node->name, attr->name,
                  "has a type that cannot be set (a tensor or graph, for example)");
}

/* -- changes -- */

static bool set_attr(target_work *work, size_t index, epctx_str name, const char *value) {
    epctx_node_view *node = &work->nodes.nodes[index];
    epctx_attr attr;
    epctx_attr_view old, now;
    epctx_epnode check;
    char before[96] = "", after[96] = "";
    output_item what;
    bool had;
    memset(&attr, 0, sizeof attr);
    attr.name = name;
    if (!choose_type(work, node, &attr) || !read_value(work, value, &attr)) return false;
    had = target_attr(node, attr.name, &old);
    if (had) target_describe(&old, before, sizeof before);
    what = output_item_of("set", "node", node->name);
    what.attribute = attr.name;
    if (had) what.before = target_attr_value(work, &old);
    if (epctx_str_is(attr.name, "notes")) target_note_hash(work, node, attr.s);
    if (refused(work, epctx_edit_set_attr(&work->model, node->view, &attr, &work->error)))
        return false;
    *node = epctx_view_as_node(node->view);
    if (epctx_view_is_epnode(node) &&
        refused(work, epctx_view_read_epnode(node, &check, &work->error)))
        return false;
    if (target_attr(node, attr.name, &now)) {
        target_describe(&now, after, sizeof after);
        what.after = target_attr_value(work, &now);
    }
    output_change(&work->out, &what, "node '%.*s': %.*s = %s%s%s%s", (int)node->name.size,
                  node->name.data, (int)attr.name.size, attr.name.data, after,
                  had ? " (was " : " (new", before, ")");
    return true;
}

static bool set_attrs(target_work *work, epctx_str name, const char *value) {
    size_t i;
    if (work->nodes.count == 0 &&
        !target_find(&work->model, work->file, work->node, work->all, &work->arena, &work->nodes))
        return false;
    for (i = 0; i < work->nodes.count; i++)
        if (!set_attr(work, i, name, value)) return false;
    return true;
}

static bool find_value(epctx_view graph, uint32_t number, epctx_str name, epctx_view *found) {
    epctx_cursor it = epctx_view_fields(graph, number);
    epctx_value_view value;
    while (epctx_next_value(&it, &value)) {
        if (!epctx_str_eq(value.name, name)) continue;
        *found = value.view;
        return true;
    }
    return false;
}

/* graph:inputs=A,B or graph:outputs=A,B: the order. */
static bool set_order(target_work *work, const target *what, const char *value) {
    epctx_view graph = epctx_model_graph(&work->model).view;
    epctx_cursor it = epctx_view_fields(graph, what->number);
    epctx_view after = graph; /* the first one goes in front */
    epctx_view found;
    epctx_field field;
    output_item item;
    const char *rest = value;
    epctx_str name;
    size_t count = 0;
    while (epctx_next_field(&it, &field)) count++;
    while (count > 0 && next_part(&rest, &work->arena, &name)) count--;
    if (count != 0 || *rest != '\0')
        return misuse(work, what->name, epctx_str_of(value), "must contain each name exactly once");
    for (rest = value; next_part(&rest, &work->arena, &name);) {
        if (!find_value(graph, what->number, name, &found))
            return misuse(work, what->name, name, "is not one of them");
        if (refused(work, epctx_edit_move(&work->model, found, after, &after, &work->error)))
            return false;
        graph = epctx_model_graph(&work->model).view;
    }
    /* A name that occurs twice in VALUE takes the place of one that is missing. */
    it = epctx_view_fields(graph, what->number);
    for (rest = value; next_part(&rest, &work->arena, &name) && epctx_next_field(&it, &field);)
        if (!epctx_str_eq(epctx_view_as_value(field.body).name, name))
            return misuse(work, what->name, epctx_str_of(value),
                          "must contain each name exactly once");
    item = target_item(work, "set", what);
    item.after = epctx_str_of(value);
    output_change(&work->out, &item, "%.*s of the graph: now %s", (int)what->name.size,
                  what->name.data, value);
    return true;
}

static bool set_field(target_work *work, const target *what, const char *value) {
    epctx_view message = target_message(&work->model, what);
    const char *scope = what->kind == TARGET_GRAPH ? "graph" : "model";
    output_item item = target_item(work, "set", what);
    epctx_status status;
    epctx_str text;
    int64_t number;
    if (what->is_text) {
        if (!read_text(work, value, &text) || !is_utf8(work, what->name, text)) return false;
        status = epctx_edit_set_field_str(&work->model, message, what->number, text, &work->error);
    } else {
        if (!read_int(value, strlen(value), &number))
            return misuse(work, what->name, epctx_str_of(value), "is not an integer");
        status =
            epctx_edit_set_field_int(&work->model, message, what->number, number, &work->error);
    }
    (void)target_value(work, what, &item.after);
    output_change(&work->out, &item, "%s: %.*s = '%s'", scope, (int)what->name.size,
                  what->name.data, value);
    return !refused(work, status);
}

static bool set_opset(target_work *work, const target *what, const char *value) {
    output_item item = target_item(work, "set", what);
    int64_t version;
    if (!read_int(value, strlen(value), &version) || version < 1)
        return misuse(work, what->name.size > 0 ? what->name : epctx_str_of("ai.onnx"),
                      epctx_str_of(value), "is not an opset version");
    item.after = epctx_str_of(value);
    output_change(&work->out, &item, "opset '%.*s': version %" PRId64 " (was %" PRId64 ")",
                  (int)what->name.size, what->name.data, version,
                  epctx_model_opset(&work->model, what->name));
    return !refused(work, epctx_edit_set_opset(&work->model, what->name, version, &work->error));
}

static bool set_metadata(target_work *work, const target *what, const char *value) {
    output_item item = target_item(work, "set", what);
    epctx_str text;
    if (!read_text(work, value, &text) || !is_utf8(work, what->name, text)) return false;
    item.after = text;
    output_change(&work->out, &item, "metadata: '%.*s' = '%.*s'", (int)what->name.size,
                  what->name.data, (int)(text.size < TARGET_SHOWN ? text.size : TARGET_SHOWN),
                  text.data);
    return !refused(work, epctx_edit_set_metadata(&work->model, what->name, text, &work->error));
}

/* -- types and shapes -- */

/* value:NAME=TYPE[DIMS]: the type of a graph input or output, or of what a node gives. */
static bool read_type(target_work *work, epctx_str name, const char *text, epctx_value *type) {
    const size_t room = strlen(text) + 3;
    char *named = (char *)epctx_arena_alloc(&work->arena, room);
    value_spec *specs;
    size_t count;
    if (named == NULL) return cli_fail_text("out of memory") == CLI_OK;
    snprintf(named, room, "x:%s", text);
    if (!read_values("value", named, true, &work->arena, &specs, &count)) {
        work->misused = true;
        return false;
    }
    if (count != 1 || specs[0].value.name.size != 1 || specs[0].quantized)
        return misuse(work, name, epctx_str_of(text), "is not a type such as float32[1,3,?]");
    *type = specs[0].value;
    type->name = name;
    return true;
}

/* Puts the type of `from` into `value`, whose other fields stay. */
static epctx_status copy_type(target_work *work, epctx_view value, epctx_view from) {
    epctx_cursor it = epctx_view_fields(from, EPCTX_FIELD_VALUE_TYPE);
    epctx_field type;
    epctx_status status =
        epctx_edit_remove_field(&work->model, value, EPCTX_FIELD_VALUE_TYPE, &work->error);
    while (status == EPCTX_OK && epctx_next_field(&it, &type))
        status = epctx_edit_put_copy(&work->model, value, EPCTX_FIELD_VALUE_TYPE, type.body,
                                     epctx_view_none(), NULL, &work->error);
    return status;
}

static bool is_node_output(const epctx_model *model, epctx_str name) {
    epctx_cursor nodes = epctx_view_graph_nodes(epctx_model_graph(model));
    epctx_node_view node;
    epctx_str result;
    while (epctx_next_node(&nodes, &node)) {
        epctx_cursor outputs = epctx_view_node_outputs(&node);
        while (epctx_next_str(&outputs, &result))
            if (epctx_str_eq(result, name)) return true;
    }
    return false;
}

static bool set_type(target_work *work, epctx_str name, const char *text) {
    static const uint32_t places[] = {EPCTX_FIELD_GRAPH_INPUT, EPCTX_FIELD_GRAPH_OUTPUT,
                                      EPCTX_FIELD_GRAPH_VALUE_INFO};
    const epctx_view graph = epctx_model_graph(&work->model).view;
    epctx_view old[3], made;
    epctx_value type;
    epctx_status status;
    output_item item;
    size_t count = 0, i;
    if (!read_type(work, name, text, &type)) return false;
    for (i = 0; i < 3; i++) count += find_value(graph, places[i], name, &old[count]);
    if (count == 0 && !is_node_output(&work->model, name)) {
        cli_fail_text("%s: there is no input, output or result of a node '%.*s'", work->file,
                      (int)name.size, name.data);
        return false;
    }
    status = epctx_edit_put_value(&work->model, graph, EPCTX_FIELD_GRAPH_VALUE_INFO, &type,
                                  epctx_view_none(), &made, &work->error);
    for (i = 0; i < count && status == EPCTX_OK; i++) status = copy_type(work, old[i], made);
    if (status == EPCTX_OK && count > 0)
        status = epctx_edit_remove(&work->model, made, &work->error);
    item = output_item_of("set", "value", name);
    item.attribute = epctx_str_of("type");
    item.after = epctx_str_of(text);
    output_change(&work->out, &item, "value '%.*s': %s", (int)name.size, name.data, text);
    return !refused(work, status);
}

/* dim:NAME=N or dim:INPUT[AXIS]=N */
static bool set_dim(target_work *work, epctx_str name, const char *text) {
    compile_dim dim;
    output_item item;
    size_t count = 0;
    memset(&dim, 0, sizeof dim);
    if (!read_int(text, strlen(text), &dim.value) || dim.value < 1 || dim.value > INT32_MAX)
        return misuse(work, name, epctx_str_of(text), "is not a dimension: 1 or more");
    dim.name = name;
    compile_read_place(&dim);
    if (refused(work, compile_fix_dim(&work->model, &dim, &count, &work->error))) return false;
    item = output_item_of("set", "dimension", name);
    item.after = epctx_str_of(text);
    item.count = count;
    output_change(&work->out, &item, "dimension '%.*s': %s (%zu place%s)", (int)name.size,
                  name.data, text, count, cli_plural(count));
    return true;
}

/* A second value for one place is a slip of the hand, also with another type. */
static bool assigned_once(target_work *work, const target *what, epctx_str text) {
    target place = *what;
    epctx_attr_type type;
    if (place.kind == TARGET_ATTR) (void)type_of_suffix(&place.name, &type);
    return target_once(work, &place, text, "is given a second value");
}

static bool assign(target_work *work, const char *text) {
    const char *equals = strchr(text, '=');
    epctx_str what = epctx_str_of(text);
    target found;
    if (equals == NULL) {
        cli_misuse("'%s' is not of the form WHAT=VALUE", text);
        work->misused = true;
        return false;
    }
    what.size = (size_t)(equals - text);
    if (!is_utf8(work, epctx_str_of("the name before '='"), what)) return false;
    if (!target_parse(what, &found)) {
        work->misused = true;
        return false;
    }
    if (!assigned_once(work, &found, what)) return false;
    switch (found.kind) {
    case TARGET_METADATA: return set_metadata(work, &found, equals + 1);
    case TARGET_OPSET: return set_opset(work, &found, equals + 1);
    case TARGET_ATTR: return set_attrs(work, found.name, equals + 1);
    case TARGET_VALUE: return set_type(work, found.name, equals + 1);
    case TARGET_DIM: return set_dim(work, found.name, equals + 1);
    default:
        return found.number == EPCTX_FIELD_GRAPH_INPUT || found.number == EPCTX_FIELD_GRAPH_OUTPUT
                   ? set_order(work, &found, equals + 1)
                   : set_field(work, &found, equals + 1);
    }
}

static int run(const cli_args *args) {
    return target_run(args, assign);
}

const cli_command cli_set = {
    .name = "set",
    .group = CLI_CHANGE,
    .operands = "MODEL WHAT=VALUE...",
    .least = 2,
    .summary = "set attributes, metadata, opset imports and other fields",
    .about = "Changes only the given fields: all other bytes stay the same. WHAT is one of\n"
             "  ATTRIBUTE        an attribute of a node; if it is neither in the node nor in\n"
             "                   the schema of EPContext, add its type: ATTRIBUTE:int, :float,\n"
             "                   :string, :ints, :floats, :strings\n"
             "  metadata:KEY     an entry of the model's metadata\n"
             "  opset:DOMAIN     the version of an opset import; opset: is that of ai.onnx\n"
             "  model:FIELD      ir_version, producer_name, producer_version, domain,\n"
             "                   model_version, doc_string\n"
             "  graph:FIELD      name, doc_string; inputs or outputs: all names, in the new\n"
             "                   order\n"
             "  value:NAME       type and shape of an input, an output or a result of a node,\n"
             "                   such as float32[1,3,?]\n"
             "  dim:NAME         a dimension with this name, in the whole model; or\n"
             "                   dim:INPUT[AXIS]. NPUs need fixed shapes before they compile\n"
             "@FILE reads a text VALUE from a file; @@x is the text @x. Separate list items\n"
             "with commas; write a comma in the name of an input or output as \\,.\n",
    .more = "Example: epctx set model_ctx.onnx ep_sdk_version=2.45 --in-place\n"
            "Example: epctx set model.onnx dim:batch=1 -o fixed.onnx\n",
    .run = run,
};
