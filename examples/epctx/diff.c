/* epctx diff: two models compared by meaning: names and values, not bytes and order of fields. */
#include "cli.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

/* One thing that a model says. */
typedef struct fact {
    epctx_str key, value;
    uint64_t repeats;
} fact;

typedef struct facts {
    epctx_model model;
    epctx_arena arena;
    epctx_map at;
    fact *list;
    size_t count, room;
    bool short_of_memory;
} facts;

static epctx_str text(facts *f, const char *format, ...)
{
    char small[512];
    va_list args;
    const char *copy;
    va_start(args, format);
    vsnprintf(small, sizeof small, format, args);
    va_end(args);
    copy = epctx_arena_copy(&f->arena, epctx_str_of(small));
    if (copy == NULL) f->short_of_memory = true;
    return epctx_str_of(copy);
}

/* Names of hostile length are cut; a hash keeps them apart. */
static epctx_str name_of(facts *f, epctx_str name)
{
    if (name.size <= 150) return text(f, "%.*s", (int)name.size, name.data);
    return text(f, "%.100s...#%016" PRIx64, name.data, epctx_hash(name.data, name.size, 0));
}

/* Short printable text as it is, everything else by size and hash. */
static epctx_str value_of(facts *f, epctx_str value)
{
    size_t i;
    for (i = 0; i < value.size && i < 200 && (unsigned char)value.data[i] >= 0x20; i++) {
    }
    if (i == value.size) return text(f, "\"%.*s\"", (int)value.size, value.data);
    return text(f, "%zu bytes, hash %016" PRIx64, value.size,
                epctx_hash(value.data, value.size, 0));
}

static void add(facts *f, epctx_str key, epctx_str value)
{
    uint32_t at = epctx_map_get(&f->at, key);
    if (f->count == f->room) {
        size_t room = f->room * 2 + 64;
        fact *more = (fact *)epctx_arena_array(&f->arena, room, sizeof *more);
        if (more == NULL) {
            f->short_of_memory = true;
            return;
        }
        if (f->count > 0) memcpy(more, f->list, f->count * sizeof *more);
        f->list = more;
        f->room = room;
    }
    /* The same key again: the second, third ... of its kind. */
    if (at != EPCTX_MAP_NONE) {
        f->list[at].repeats++;
        key = text(f, "%" PRIu64 " more: %.*s", f->list[at].repeats, (int)key.size, key.data);
    }
    f->list[f->count].key = key;
    f->list[f->count].value = value;
    f->list[f->count].repeats = 0;
    if (epctx_map_put(&f->at, key, (uint32_t)f->count++) != EPCTX_OK) f->short_of_memory = true;
}

static epctx_str type_of(facts *f, const epctx_value_view *value)
{
    epctx_cursor dims = epctx_value_dims(value);
    epctx_dim dim;
    char out[400];
    size_t used;
    if (!value->is_tensor) return text(f, value->has_type ? "not a tensor" : "no type");
    used = (size_t)snprintf(out, sizeof out, "%s%s", epctx_elem_name(value->elem_type),
                            value->has_shape ? "[" : " without shape");
    while (value->has_shape && used < sizeof out - 80 && epctx_next_dim(&dims, &dim)) {
        int n = dim.known ? snprintf(out + used, sizeof out - used, "%" PRId64 ",", dim.value)
                          : snprintf(out + used, sizeof out - used, "%.*s,",
                                     (int)(dim.param.size < 60 ? dim.param.size : 60),
                                     dim.param.size > 0 ? dim.param.data : "?");
        used += n > 0 ? (size_t)n : 0;
    }
    return text(f, "%s%s", out, value->has_shape ? "]" : "");
}

static void add_values(facts *f, const char *word, epctx_cursor values, bool ordered)
{
    epctx_value_view value;
    uint64_t i = 0;
    for (; epctx_next_value(&values, &value); i++) {
        epctx_str name = name_of(f, value.name);
        if (ordered) add(f, text(f, "%s %" PRIu64, word, i), name);
        add(f, text(f, "type of %s", name.data), type_of(f, &value));
    }
}

static void add_names(facts *f, const char *node, const char *word, epctx_cursor names)
{
    epctx_str name;
    uint64_t i = 0;
    for (; epctx_next_str(&names, &name); i++)
        add(f, text(f, "node %s: %s %" PRIu64, node, word, i), name_of(f, name));
}

static void add_graph(facts *f, const char *at, epctx_graph_view graph, uint32_t depth);

static void add_attr(facts *f, const char *node, const epctx_attr_view *attr, uint32_t depth)
{
    epctx_str key = text(f, "node %s: %s", node, name_of(f, attr->name).data);
    epctx_cursor it = epctx_fields(attr->view, attr->type == EPCTX_ATTR_INTS ? 8 : 0);
    uint64_t hash = 0, count = 0;
    int64_t number;
    epctx_field field;
    switch (attr->type) {
    case EPCTX_ATTR_INT:
        add(f, key, text(f, "%" PRId64, attr->i));
        return;
    case EPCTX_ATTR_FLOAT:
        add(f, key, text(f, "%.9g", (double)attr->f));
        return;
    case EPCTX_ATTR_STRING:
        add(f, key, value_of(f, attr->s));
        return;
    case EPCTX_ATTR_INTS:
        for (; epctx_next_int(&it, &number); count++)
            hash = epctx_hash(&number, sizeof number, hash);
        add(f, key, text(f, "%" PRIu64 " integers, hash %016" PRIx64, count, hash));
        return;
    case EPCTX_ATTR_GRAPH:
        if (depth > 0) add_graph(f, key.data, epctx_graph_of(attr->g), depth - 1);
        return;
    default:
        while (epctx_next_field(&it, &field))
            if (field.wire == EPCTX_WIRE_LEN && field.number != 1)
                hash = epctx_hash(field.body.data, field.body.size, hash + field.number);
        add(f, key, text(f, "type %d, hash %016" PRIx64, (int)attr->type, hash));
    }
}

/* Nodes are known by name, or by what they make. */
static void add_node(facts *f, const char *at, const epctx_node_view *node, uint32_t depth)
{
    epctx_cursor outputs = epctx_node_outputs(node), attrs = epctx_node_attrs(node);
    epctx_str name = node->name;
    epctx_attr_view attr;
    if (name.size == 0) epctx_next_str(&outputs, &name);
    name = text(f, "%s'%s'", at, name_of(f, name).data);
    add(f, text(f, "node %s", name.data),
        text(f, "%s:%s", name_of(f, node->domain).data, name_of(f, node->op_type).data));
    add_names(f, name.data, "input", epctx_node_inputs(node));
    add_names(f, name.data, "output", epctx_node_outputs(node));
    while (epctx_next_attr(&attrs, &attr))
        add_attr(f, name.data, &attr, depth);
}

static void add_tensor(facts *f, const char *at, const epctx_tensor_view *tensor)
{
    epctx_cursor it = epctx_tensor_dims(tensor), fields = epctx_fields(tensor->view, 0);
    uint64_t hash = 0;
    int64_t dim;
    epctx_field field;
    char dims[200] = "";
    size_t used = 0;
    epctx_str key = text(f, "initializer %s'%s'", at, name_of(f, tensor->name).data);
    while (epctx_next_int(&it, &dim) && used < sizeof dims - 32) {
        int n = snprintf(dims + used, sizeof dims - used, "%" PRId64 ",", dim);
        used += n > 0 ? (size_t)n : 0;
    }
    if (tensor->external) {
        add(f, key,
            text(f, "%s[%s] at %" PRIu64 " in '%s'", epctx_elem_name(tensor->elem_type), dims,
                 tensor->offset, name_of(f, tensor->location).data));
        return;
    }
    if (tensor->has_raw)
        hash = epctx_hash(tensor->raw.data, tensor->raw.size, 0);
    else
        while (epctx_next_field(&fields, &field))
            if (field.wire == EPCTX_WIRE_LEN && field.number != 8 && field.number != 1)
                hash = epctx_hash(field.body.data, field.body.size, 0);
            else if (field.number != 1 && field.number != 2 && field.number != 8)
                hash = epctx_hash(&field.value, sizeof field.value, hash);
    add(f, key,
        text(f, "%s[%s], hash %016" PRIx64, epctx_elem_name(tensor->elem_type), dims, hash));
}

static void add_graph(facts *f, const char *at, epctx_graph_view graph, uint32_t depth)
{
    epctx_cursor nodes = epctx_graph_nodes(graph), tensors = epctx_graph_initializers(graph);
    epctx_node_view node;
    epctx_tensor_view tensor;
    const char *prefix = at[0] != '\0' ? text(f, "%s > ", at).data : "";
    while (!f->short_of_memory && epctx_next_node(&nodes, &node))
        add_node(f, prefix, &node, depth);
    while (!f->short_of_memory && epctx_next_tensor(&tensors, &tensor))
        add_tensor(f, prefix, &tensor);
}

static void add_model(facts *f)
{
    epctx_model_info info = epctx_model_read(&f->model);
    epctx_graph_view graph = epctx_model_graph(&f->model);
    epctx_cursor it = epctx_fields(info.view, CLI_MODEL_OPSET_IMPORT);
    epctx_field field;
    add(f, text(f, "ir_version"), text(f, "%" PRId64, info.ir_version));
    add(f, text(f, "producer"), value_of(f, info.producer_name));
    add(f, text(f, "graph name"), value_of(f, graph.name));
    add(f, text(f, "functions"), text(f, "%" PRIu32, info.function_count));
    while (epctx_next_field(&it, &field))
        if (field.wire == EPCTX_WIRE_LEN)
            add(f, text(f, "opset '%s'", name_of(f, cli_field_str(field.body, 1)).data),
                text(f, "%" PRId64, cli_field_int(field.body, 2)));
    it = epctx_fields(info.view, 14);
    while (epctx_next_field(&it, &field))
        if (field.wire == EPCTX_WIRE_LEN)
            add(f, text(f, "metadata '%s'", name_of(f, cli_field_str(field.body, 1)).data),
                value_of(f, cli_field_str(field.body, 2)));
    add_values(f, "graph input", epctx_graph_inputs(graph), true);
    add_values(f, "graph output", epctx_graph_outputs(graph), true);
    add_values(f, "value", epctx_graph_values(graph), false);
    add_graph(f, "", graph, 100);
}

static bool open_facts(facts *f, const char *file)
{
    epctx_error error;
    memset(f, 0, sizeof *f);
    epctx_arena_init(&f->arena, NULL);
    epctx_map_init(&f->at, &f->arena);
    if (epctx_model_open_file(&f->model, file, NULL, &error) != EPCTX_OK) {
        cli_fail(&error);
        return false;
    }
    add_model(f);
    if (f->short_of_memory) cli_fail_text("out of memory");
    return !f->short_of_memory;
}

static void put_line(char sign, const fact *a, const fact *b)
{
    printf("%c ", sign);
    cli_put(stdout, a->key);
    fputs(": ", stdout);
    cli_put(stdout, a->value);
    if (b != NULL) fputs(" -> ", stdout);
    if (b != NULL) cli_put(stdout, b->value);
    putchar('\n');
}

static void put_json(const char *change, const fact *a, const fact *b, bool first)
{
    printf("%s\n  {\"change\": \"%s\", ", first ? "" : ",", change);
    cli_json_str("what", a != NULL ? a->key : b->key, ", ");
    if (a != NULL) cli_json_str("old", a->value, b != NULL ? ", " : "}");
    if (b != NULL) cli_json_str("new", b->value, "}");
}

static size_t compare(const facts *a, const facts *b, bool json)
{
    size_t i, found = 0;
    for (i = 0; i < a->count; i++) {
        uint32_t at = epctx_map_get(&b->at, a->list[i].key);
        const fact *other = at != EPCTX_MAP_NONE ? &b->list[at] : NULL;
        if (other != NULL && epctx_str_eq(other->value, a->list[i].value)) continue;
        if (json)
            put_json(other != NULL ? "changed" : "removed", &a->list[i], other, found == 0);
        else
            put_line(other != NULL ? '~' : '-', &a->list[i], other);
        found++;
    }
    for (i = 0; i < b->count; i++) {
        if (epctx_map_get(&a->at, b->list[i].key) != EPCTX_MAP_NONE) continue;
        if (json)
            put_json("added", NULL, &b->list[i], found == 0);
        else
            put_line('+', &b->list[i], NULL);
        found++;
    }
    return found;
}

static int run(int argc, char **argv)
{
    bool json = false;
    const cli_option options[] = {{"--json", NULL, &json}, {NULL, NULL, NULL}};
    const char *files[2] = {NULL, NULL};
    facts a, b;
    int code = CLI_USAGE;
    if (!cli_parse(&cli_diff, argc, argv, options, files, 2)) return CLI_USAGE;
    memset(&b, 0, sizeof b);
    if (open_facts(&a, files[0]) && open_facts(&b, files[1])) {
        if (json) putchar('[');
        code = compare(&a, &b, json) > 0 ? CLI_FAILED : CLI_OK;
        if (json) puts("\n]");
    }
    epctx_model_close(&a.model);
    epctx_arena_free(&a.arena);
    epctx_model_close(&b.model);
    epctx_arena_free(&b.arena);
    return code;
}

const cli_command cli_diff = {
    "diff",
    "[--json] OLD NEW",
    "compare two models by meaning",
    "Nodes are compared by name, attributes by name, in any order; payloads and weights by "
    "content.\n"
    "Lines begin with - (only in OLD), + (only in NEW) or ~ (changed). The exit code is 0 when "
    "the\n"
    "models say the same, 1 when they differ, 2 when one cannot be read.\n\n"
    "  --json   one JSON array\n",
    run,
};
