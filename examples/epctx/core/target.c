/* Names on the command line of `epctx set` and `epctx unset`. */
#include "target.h"
#include "ops/views.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { LISTED = 20 }; /* names in a message */

/* Names to choose from: EPContext nodes when there are some, else all. */
static void list_names(const epctx_model *model) {
    epctx_walk walk;
    epctx_node_view node;
    epctx_node_view first;
    uint64_t count = 0;
    epctx_walk_begin(&walk, model);
    bool only = epctx_walk_epnode(&walk, &first);
    epctx_walk_begin(&walk, model);
    fputs(only ? "EPContext nodes:" : "nodes:", stderr);
    while (epctx_walk_next(&walk, &node)) {
        if (node.name.size == 0 || (only && !epctx_view_is_epnode(&node)) || count++ >= LISTED)
            continue;
        fputs(" '", stderr);
        cli_put(stderr, node.name);
        fputc('\'', stderr);
    }
    if (count > LISTED) fprintf(stderr, " and %" PRIu64 " more", count - LISTED);
    if (count == 0) fputs(" none with a name", stderr);
    fputc('\n', stderr);
}

static bool wanted(const epctx_node_view *node, const char *name) {
    return name != NULL ? epctx_str_is(node->name, name) : epctx_view_is_epnode(node);
}

bool target_find(const epctx_model *model, const char *file, const char *name, bool all,
                 epctx_arena *arena, target_nodes *out) {
    epctx_walk walk;
    epctx_node_view node;
    size_t count = 0;
    memset(out, 0, sizeof *out);
    epctx_walk_begin(&walk, model);
    while (epctx_walk_next(&walk, &node)) count += wanted(&node, name);
    if (count == 1 || (all && count > 0)) {
        out->nodes = (epctx_node_view *)epctx_arena_array(arena, count, sizeof *out->nodes);
        if (out->nodes == NULL) {
            cli_fail_text("out of memory");
            return false;
        }
        epctx_walk_begin(&walk, model);
        while (out->count < count && epctx_walk_next(&walk, &node))
            if (wanted(&node, name)) out->nodes[out->count++] = node;
        return true;
    }
    if (count == 0 && cli_numbered_epnode(model, name, &node)) {
        out->nodes = (epctx_node_view *)epctx_arena_array(arena, 1, sizeof *out->nodes);
        if (out->nodes == NULL) {
            cli_fail_text("out of memory");
            return false;
        }
        out->nodes[out->count++] = node;
        return true;
    }
    if (count == 0 && name != NULL)
        cli_fail_text("%s: there is no node '%s'", file, name);
    else if (count == 0)
        cli_fail_text("%s: there is no EPContext node, select a node with --node", file);
    else if (name != NULL)
        cli_fail_text("%s: %zu nodes are named '%s': select an EPContext node by its number in "
                      "`epctx info`, e.g. --node '#1'",
                      file, count, name);
    else
        cli_fail_text("%s: there are %zu EPContext nodes, select one with --node or use --all",
                      file, count);
    list_names(model);
    return false;
}

typedef struct field_name {
    const char *name;
    uint32_t number; /* onnx.proto */
    bool is_text;
} field_name;

static const field_name model_fields[] = {
    {"ir_version", EPCTX_FIELD_MODEL_IR_VERSION, false},
    {"producer_name", EPCTX_FIELD_MODEL_PRODUCER_NAME, true},
    {"producer_version", EPCTX_FIELD_MODEL_PRODUCER_VERSION, true},
    {"domain", EPCTX_FIELD_MODEL_DOMAIN, true},
    {"model_version", EPCTX_FIELD_MODEL_MODEL_VERSION, false},
    {"doc_string", EPCTX_FIELD_MODEL_DOC_STRING, true},
    {NULL, 0, false}};
static const field_name graph_fields[] = {{"name", EPCTX_FIELD_GRAPH_NAME, true},
                                          {"doc_string", EPCTX_FIELD_GRAPH_DOC_STRING, true},
                                          {"inputs", EPCTX_FIELD_GRAPH_INPUT, false},
                                          {"outputs", EPCTX_FIELD_GRAPH_OUTPUT, false},
                                          {NULL, 0, false}};

static bool find_field(const field_name *fields, const char *scope, target *out) {
    char list[256];
    epctx_text names = epctx_text_of(list, sizeof list);
    cli_guess guess = cli_guess_of(out->name);
    const field_name *field;
    for (field = fields; field->name != NULL; field++) {
        if (!epctx_str_is(out->name, field->name)) continue;
        out->number = field->number;
        out->is_text = field->is_text;
        return true;
    }
    for (field = fields; field->name != NULL; field++) {
        epctx_text_put_format(&names, " %s:%s", scope, field->name);
        cli_guess_word(&guess, field->name);
    }
    cli_misuse("'%s:%.*s': there is only%s%s", scope, (int)out->name.size, out->name.data, list,
               cli_guess_hint(&guess));
    return false;
}

static bool starts_with(epctx_str text, const char *start, epctx_str *rest) {
    size_t size = strlen(start);
    if (text.size < size || memcmp(text.data, start, size) != 0) return false;
    rest->data = text.data + size;
    rest->size = text.size - size;
    return true;
}

bool target_parse(epctx_str what, target *out) {
    memset(out, 0, sizeof *out);
    out->kind = TARGET_ATTR;
    out->name = what;
    if (starts_with(what, "metadata:", &out->name)) out->kind = TARGET_METADATA;
    if (starts_with(what, "opset:", &out->name)) out->kind = TARGET_OPSET;
    if (starts_with(what, "value:", &out->name)) out->kind = TARGET_VALUE;
    if (starts_with(what, "dim:", &out->name)) out->kind = TARGET_DIM;
    if (starts_with(what, "model:", &out->name)) {
        out->kind = TARGET_MODEL;
        return find_field(model_fields, "model", out);
    }
    if (starts_with(what, "graph:", &out->name)) {
        out->kind = TARGET_GRAPH;
        return find_field(graph_fields, "graph", out);
    }
    if (out->name.size == 0 && out->kind != TARGET_OPSET) {
        cli_misuse("'%.*s': the name is empty", (int)what.size, what.data);
        return false;
    }
    return true;
}

/* "ai.onnx" has two names. */
static epctx_str place_name(const target *what) {
    const bool standard = what->kind == TARGET_OPSET && epctx_str_is(what->name, "ai.onnx");
    return standard ? epctx_str_of("") : what->name;
}

static bool same_place(const target *a, const target *b) {
    return a->kind == b->kind && a->number == b->number &&
           epctx_str_eq(place_name(a), place_name(b));
}

bool target_once(target_work *work, const target *place, epctx_str text, const char *problem) {
    size_t i;
    for (i = 0; i < work->done_count; i++) {
        if (!same_place(&work->done[i], place)) continue;
        cli_misuse("'%.*s' %s", (int)text.size, text.data, problem);
        work->misused = true;
        return false;
    }
    work->done[work->done_count++] = *place;
    return true;
}

bool target_is_set_only(const target *what) {
    if (what->kind != TARGET_VALUE && what->kind != TARGET_DIM) return false;
    cli_misuse("value: and dim: are for `epctx set` only; `epctx dump FILE` shows types");
    return true;
}

epctx_view target_message(const epctx_model *model, const target *what) {
    return what->kind == TARGET_GRAPH ? epctx_model_graph(model).view
                                      : epctx_model_read(model).view;
}

bool target_attr(const epctx_node_view *node, epctx_str name, epctx_attr_view *out) {
    epctx_cursor it = epctx_view_node_attrs(node);
    epctx_attr_view attr;
    bool found = false;
    while (epctx_next_attr(&it, &attr))
        if (epctx_str_eq(attr.name, name)) {
            *out = attr;
            found = true;
        }
    return found;
}

/* "[1,2,3]", the first few of a list; texts by their number only. */
static void describe_list(const epctx_attr_view *attr, char *text, size_t size) {
    bool ints = attr->type == EPCTX_ATTR_INTS;
    epctx_cursor it =
        epctx_view_fields(attr->view, ints ? EPCTX_FIELD_ATTR_INTS : EPCTX_FIELD_ATTR_FLOATS);
    const char *comma = "[";
    int64_t number = 0;
    float real = 0;
    size_t used = 0;
    while (used + 40 < size &&
           (ints ? epctx_next_int(&it, &number) : epctx_next_float(&it, &real))) {
        int n = ints ? snprintf(text + used, size - used, "%s%" PRId64, comma, number)
                     : snprintf(text + used, size - used, "%s%.9g", comma, (double)real);
        used += n > 0 ? (size_t)n : 0;
        comma = ",";
    }
    snprintf(text + used, size - used, "%s%s]", used == 0 ? "[" : "",
             used + 40 < size ? "" : ",...");
}

void target_describe(const epctx_attr_view *attr, char *text, size_t size) {
    if (attr->type == EPCTX_ATTR_INT)
        snprintf(text, size, "%" PRId64, attr->i);
    else if (attr->type == EPCTX_ATTR_FLOAT)
        snprintf(text, size, "%.9g", (double)attr->f);
    else if (attr->type == EPCTX_ATTR_STRING && attr->s.size <= TARGET_SHOWN)
        snprintf(text, size, "'%.*s'", (int)attr->s.size, attr->s.data);
    else if (attr->type == EPCTX_ATTR_STRING)
        snprintf(text, size, "%zu bytes", attr->s.size);
    else if (attr->type == EPCTX_ATTR_INTS || attr->type == EPCTX_ATTR_FLOATS)
        describe_list(attr, text, size);
    else
        snprintf(text, size, "a value of type %s", epctx_attr_type_name(attr->type));
}

static epctx_str keep(target_work *work, epctx_str text) {
    if (text.data == NULL || text.size > OUTPUT_LONGEST) return text;
    text.data = epctx_arena_copy(&work->out.arena, text);
    if (text.data == NULL) work->out.no_memory = true;
    return text;
}

epctx_str target_attr_value(target_work *work, const epctx_attr_view *attr) {
    char text[96];
    if (attr->type == EPCTX_ATTR_STRING) return keep(work, attr->s);
    target_describe(attr, text, sizeof text);
    return keep(work, epctx_str_of(text));
}

bool target_value(target_work *work, const target *what, epctx_str *value) {
    const epctx_view message = target_message(&work->model, what);
    int64_t number = 0;
    char digits[24];
    bool is_text = what->is_text, found = true;
    *value = epctx_str_of(NULL);
    switch (what->kind) {
    case TARGET_METADATA:
        is_text = true;
        found = epctx_model_metadata(&work->model, what->name, value);
        break;
    case TARGET_OPSET:
        number = epctx_model_opset(&work->model, what->name);
        found = number != 0;
        break;
    case TARGET_MODEL:
    case TARGET_GRAPH:
        found = what->number != EPCTX_FIELD_GRAPH_INPUT && what->number != EPCTX_FIELD_GRAPH_OUTPUT;
        if (is_text)
            *value = ops_last_str(message, what->number);
        else
            number = ops_last_int(message, what->number);
        break;
    default: found = false;
    }
    if (!found) return false;
    snprintf(digits, sizeof digits, "%" PRId64, number);
    *value = keep(work, is_text ? *value : epctx_str_of(digits));
    return true;
}

output_item target_item(target_work *work, const char *action, const target *what) {
    static const char *const kinds[] = {"node", "metadata", "opset", "model", "graph"};
    const bool field = what->kind == TARGET_MODEL || what->kind == TARGET_GRAPH;
    output_item item =
        output_item_of(action, kinds[what->kind], field ? epctx_str_of(NULL) : what->name);
    if (field) item.attribute = what->name;
    (void)target_value(work, what, &item.before);
    return item;
}

cli_guess target_guess_attr(const epctx_node_view *node, epctx_str name) {
    cli_guess guess = cli_guess_of(name);
    epctx_cursor it = epctx_view_node_attrs(node);
    epctx_attr_view attr;
    static char best[64]; /* the model's names end with nothing */
    char own[sizeof best];
    if (epctx_view_is_epnode(node)) {
#define GUESS_ROW(id, attr_name, kind, member) cli_guess_word(&guess, attr_name);
        EPCTX_EPNODE_ATTR_LIST(GUESS_ROW)
#undef GUESS_ROW
    }
    while (epctx_next_attr(&it, &attr)) {
        if (attr.name.size >= sizeof own) continue;
        snprintf(own, sizeof own, "%.*s", (int)attr.name.size, attr.name.data);
        cli_guess_word(&guess, own);
        if (guess.best != own) continue;
        memcpy(best, own, sizeof best);
        guess.best = best;
    }
    return guess;
}

void target_note_hash(target_work *work, const epctx_node_view *node, epctx_str notes) {
    epctx_attr_view old;
    if (!epctx_view_is_epnode(node) || !target_attr(node, epctx_str_of("notes"), &old)) return;
    if (epctx_notes_hash(old.s) == 0 || epctx_notes_hash(notes) == epctx_notes_hash(old.s)) return;
    output_note(&work->out,
                "node '%.*s': its graph hash (%.*s) is gone from notes: loading cannot detect a "
                "binary of another generation",
                (int)node->name.size, node->name.data, (int)old.s.size, old.s.data);
}

static int change_all(target_work *work, const char *const *whats, int count,
                      bool (*change)(target_work *work, const char *what)) {
    const epctx_io *io = epctx_io_files();
    int code = CLI_OK;
    int i;
    if (output_open(&work->out, &work->model, work->file, &work->error) != EPCTX_OK)
        return cli_fail(&work->error);
    work->mappings =
        (epctx_mapping *)epctx_arena_array(&work->arena, (size_t)count, sizeof *work->mappings);
    work->done = (target *)epctx_arena_array(&work->arena, (size_t)count, sizeof *work->done);
    if (work->mappings == NULL || work->done == NULL) code = cli_fail_text("out of memory");
    for (i = 0; i < count && code == CLI_OK; i++)
        if (!change(work, whats[i])) code = work->misused ? CLI_USAGE : CLI_FAILED;
    if (code == CLI_OK) code = output_model(&work->out, &work->model);
    while (work->mapping_count > 0) io->unmap_fn(io->user, &work->mappings[--work->mapping_count]);
    epctx_model_close(&work->model);
    return code;
}

int target_run(const cli_args *args, bool (*change)(target_work *work, const char *what)) {
    target_work work;
    int code = CLI_USAGE;
    memset(&work, 0, sizeof work);
    epctx_arena_init(&work.arena, NULL);
    work.file = args->operands[0];
    work.node = args->node;
    work.all = args->all;
    if (output_begin(&work.out, args, work.file)) {
        if (work.all && work.node != NULL)
            cli_misuse("--node and --all cannot be combined");
        else
            code = change_all(&work, args->operands + 1, args->count - 1, change);
    }
    epctx_arena_free(&work.arena);
    output_free(&work.out);
    return code;
}
