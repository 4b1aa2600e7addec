/* ops.h - common parts of the operations in this folder. They change whole models and use only the
 * public API of epctx.h. To use one in a program, link libepctx_ops.a, or compile its .c file and
 * those of the headers that it includes; lint is all of lint*.c.
 *
 * An operation edits an open model and reports what it did and which files must be beside the
 * result; it writes nothing (epctx_model_write_group does). After a failure the model is unchanged;
 * epctx_edit_undo reverts an operation that succeeded. Results live in the model's arena. */
#ifndef EPCTX_OPS_H
#define EPCTX_OPS_H

#include "epctx.h"
#include "views.h"

#include <stdarg.h>
#include <string.h>

/* Returns the status of a call that fails. */
#define OPS_TRY(call) \
    do { \
        epctx_status ops_tried = (call); \
        if (ops_tried != EPCTX_OK) { \
            return ops_tried; \
        } \
    } while (0)

/* One change: value x gets the name m2_x. */
typedef struct epctx_step {
    size_t part;        /* number of the model in the list, from 0 */
    const char *action; /* "rename", "add", "change", "remove", "keep" */
    const char *kind;   /* of what is changed: "value", "node" ... */
    epctx_str name;     /* of it; may be empty */
    epctx_str now;      /* its new name; empty: it has none */
    const char *text;   /* "value 'x' is now 'm2_x'" */
} epctx_step;

/* The changes, and the files that must be written beside the result, except those that already
 * exist. Everything lives until the resulting model is closed. */
typedef struct epctx_combined {
    const epctx_step *steps;
    size_t step_count;
    epctx_output_file *files;
    size_t file_count;
} epctx_combined;

/* -- memory -- */

static inline epctx_status ops_nomem(const epctx_arena *arena, epctx_error *error) {
    return epctx_fail(error, EPCTX_ERR_NOMEM, "out of memory: %u more bytes were needed",
                      (uint64_t)arena->missing);
}

/* Zeroed elements. `out` is the address of a pointer to them. */
static inline epctx_status ops_array(epctx_arena *arena, size_t count, size_t size, void *out,
                                     epctx_error *error) {
    void *memory = epctx_arena_array(arena, count, size);
    memcpy(out, &memory, sizeof memory);
    return memory != NULL ? EPCTX_OK : ops_nomem(arena, error);
}

/* A zeroed element at the end of a list. `out` is the address of a pointer to it. */
static inline epctx_status ops_add(epctx_list *list, epctx_arena *arena, size_t size, void *out,
                                   epctx_error *error) {
    void *item = epctx_list_add(list, arena, size);
    memcpy(out, &item, sizeof item);
    return item != NULL ? EPCTX_OK : ops_nomem(arena, error);
}

/* "<a><b>", in the arena. */
static inline epctx_status ops_join(epctx_arena *arena, epctx_str a, epctx_str b, epctx_str *out,
                                    epctx_error *error) {
    char *text =
        a.size < SIZE_MAX - b.size ? (char *)epctx_arena_alloc(arena, a.size + b.size + 1) : NULL;
    out->data = text;
    out->size = 0;
    if (text == NULL) return ops_nomem(arena, error);
    memcpy(text, a.size > 0 ? a.data : "", a.size);
    memcpy(text + a.size, b.size > 0 ? b.data : "", b.size);
    out->size = a.size + b.size;
    return EPCTX_OK;
}

/* -- names -- */

/* Whether a name contains "..", which EPs with EPCTX_TRAIT_NO_DOTS refuse. */
static inline bool ops_has_dots(epctx_str name) {
    size_t i;
    for (i = 1; i < name.size; i++)
        if (name.data[i - 1] == '.' && name.data[i] == '.') return true;
    return false;
}

/* -- ends -- */

/* Ends an operation: after a failure, reverts its edits and adds the model's path to the error. */
static inline epctx_status ops_end(epctx_model *model, size_t mark, epctx_status status,
                                   epctx_error *error) {
    if (status != EPCTX_OK) {
        epctx_edit_undo(model, mark);
        epctx_blame(error, model->path, NULL, NULL);
    }
    return status;
}

/* Edits each message and reverts the edit, so that writing encodes it again from its parts, to the
 * same bytes. Does nothing to a model that cannot be edited. */
static inline epctx_status ops_rebuild_message(epctx_model *model, epctx_view message,
                                               epctx_kind kind, epctx_error *error) {
    const uint32_t unknown = 536870911; /* the last field number of protobuf */
    epctx_cursor it;
    epctx_field field;
    epctx_view placed;
    OPS_TRY(epctx_edit_put_copy(model, message, unknown, epctx_view_none(), epctx_view_none(),
                                &placed, error));
    OPS_TRY(epctx_edit_remove(model, placed, error));
    it = epctx_view_fields(message, 0);
    while (epctx_next_field(&it, &field)) {
        const epctx_field_info *info = epctx_field_find(kind, field.number);
        if (info != NULL && info->kind < EPCTX_KIND_INT && field.wire == EPCTX_WIRE_LEN)
            OPS_TRY(ops_rebuild_message(model, field.body, (epctx_kind)info->kind, error));
    }
    return EPCTX_OK;
}

static inline epctx_status ops_rebuild(epctx_model *model, epctx_error *error) {
    size_t mark = epctx_edit_mark(model);
    epctx_status status = EPCTX_OK;
    epctx_error_clear(error);
    if (epctx_model_is_editable(model))
        status = ops_rebuild_message(model, epctx_model_root(model), EPCTX_KIND_MODEL, error);
    return ops_end(model, mark, status, error);
}

/* Says why a model that is not epctx_model_is_editable cannot take part. */
#define OPS_READ_ONLY \
    "a singular field occurs twice, so the model is read-only: 'epctx repair' merges the two"

/* EPCTX_ERR_LIMIT for a model that is too large for readers; `cure` is the advice. */
static inline epctx_status ops_check_size(epctx_model *model, const char *cure,
                                          epctx_error *error) {
    uint64_t size = epctx_model_size(model);
    if (size <= (uint64_t)EPCTX_MODEL_MAX) return EPCTX_OK;
    return epctx_fail(
        error, EPCTX_ERR_LIMIT,
        "the model would have %u bytes, but protobuf readers such as ONNX Runtime read "
        "at most %u: %s",
        size, (uint64_t)EPCTX_MODEL_MAX, cure);
}

/* -- names -- */

static inline bool ops_has(const epctx_map *map, epctx_str key) {
    return epctx_map_get(map, key) != EPCTX_MAP_NONE;
}

/* Ignores empty names. */
static inline epctx_status ops_put(epctx_map *map, epctx_str key, uint32_t value,
                                   epctx_error *error) {
    if (key.size > 0 && epctx_map_put(map, key, value) != EPCTX_OK)
        return ops_nomem(map->arena, error);
    return EPCTX_OK;
}

/* "<base>_<number>", in the arena. */
static inline epctx_status ops_number(epctx_arena *arena, epctx_str base, uint32_t number,
                                      epctx_str *out, epctx_error *error) {
    char digits[16];
    epctx_text text = epctx_text_of(digits, sizeof digits);
    epctx_text_put_char(&text, '_');
    epctx_text_put_number(&text, number);
    return ops_join(arena, base, epctx_text_str(&text), out, error);
}

static inline bool ops_is_taken(const epctx_map *const *taken, size_t count, epctx_str name) {
    size_t i = 0;
    while (i < count && !ops_has(taken[i], name)) i++;
    return i < count;
}

/* A name that none of the maps has: `base`, else base_2, base_3 ... It is put into `own`, which
 * holds at a base the number to go on with: many names of one base cost a step each. */
static inline epctx_status ops_free_name(epctx_arena *arena, const epctx_map *const *taken,
                                         size_t count, epctx_map *own, epctx_str base,
                                         epctx_str *out, epctx_error *error) {
    uint32_t number = epctx_map_get(own, base);
    if (number == EPCTX_MAP_NONE || number < 2) number = 2;
    *out = base;
    while (ops_has(own, *out) || ops_is_taken(taken, count, *out))
        OPS_TRY(ops_number(arena, base, number++, out, error));
    OPS_TRY(ops_put(own, base, number, error));
    return epctx_str_eq(base, *out) ? EPCTX_OK : ops_put(own, *out, 2, error);
}

static inline epctx_status ops_add_name(epctx_list *names, epctx_arena *arena, epctx_str name,
                                        epctx_error *error) {
    epctx_str *place = (epctx_str *)epctx_list_add(names, arena, sizeof *place);
    if (place == NULL) return ops_nomem(arena, error);
    *place = name;
    return EPCTX_OK;
}

static inline bool ops_ends(epctx_str text, const char *end) {
    size_t size = strlen(end);
    return text.size >= size && memcmp(text.data + text.size - size, end, size) == 0;
}

static inline epctx_str ops_name_at(const epctx_list *names, size_t i) {
    return ((const epctx_str *)names->items)[i];
}

/* Whether a name can stand in io_name_overrides, "model=binary;...". */
static inline bool ops_may_override(epctx_str name) {
    size_t i;
    for (i = 0; i < name.size; i++)
        if (name.data[i] == ';' || name.data[i] == '=') return false;
    return true;
}

/* Whether the EP of an EPContext node goes by its attribute io_name_overrides, so that a new name
 * of an input or output needs an entry. Without the attribute the only input and the only output
 * need none: they are matched by position. */
static inline bool ops_goes_by_overrides(const epctx_profile *profile,
                                         const epctx_node_view *node) {
    epctx_cursor inputs = epctx_view_node_inputs(node), outputs = epctx_view_node_outputs(node);
    epctx_attr_view attr;
    epctx_str name;
    if (epctx_view_node_find_attr(node, "io_name_overrides", &attr)) return true;
    if ((profile->traits & EPCTX_TRAIT_IO_OVERRIDES) == 0) return false;
    return (epctx_next_str(&inputs, &name) && epctx_next_str(&inputs, &name)) ||
           (epctx_next_str(&outputs, &name) && epctx_next_str(&outputs, &name));
}

/* Whether its EP finds an input or output of a node in the binary by its name in the model, which
 * then cannot change. `overrides`: what ops_goes_by_overrides says of the node. */
static inline bool ops_fixes_name(const epctx_profile *profile, bool overrides, epctx_str name) {
    return overrides ? !ops_may_override(name) : (profile->traits & EPCTX_TRAIT_IO_NAMES) != 0;
}

/* The same key for all calls of a function, however they spell its domain. */
static inline epctx_status ops_function_key(epctx_arena *arena, epctx_str domain, epctx_str name,
                                            epctx_str overload, epctx_str *key,
                                            epctx_error *error) {
    epctx_str none = {"", 1}; /* a NUL between the parts */
    OPS_TRY(ops_join(arena, epctx_str_is(domain, "ai.onnx") ? epctx_str_of("") : domain, none, key,
                     error));
    OPS_TRY(ops_join(arena, *key, name, key, error));
    OPS_TRY(ops_join(arena, *key, none, key, error));
    return ops_join(arena, *key, overload, key, error);
}

/* -- views, collected before the model is edited -- */

static inline epctx_status ops_add_view(epctx_list *views, epctx_arena *arena, epctx_view view,
                                        epctx_error *error) {
    epctx_view *place = (epctx_view *)epctx_list_add(views, arena, sizeof *place);
    if (place == NULL) return ops_nomem(arena, error);
    *place = view;
    return EPCTX_OK;
}

static inline epctx_view ops_view_at(const epctx_list *views, size_t i) {
    return ((const epctx_view *)views->items)[i];
}

static inline epctx_status ops_remove_views(epctx_model *model, const epctx_list *views,
                                            epctx_error *error) {
    size_t i;
    for (i = 0; i < views->count; i++)
        OPS_TRY(epctx_edit_remove(model, ops_view_at(views, i), error));
    return EPCTX_OK;
}

/* -- functions -- */

/* ORT's identifier of a function, by which calls find it: "domain:name", ":overload" behind it
 * unless that is empty. Without data when it does not fit into `out`. */
static inline epctx_str ops_function_id(char *out, size_t capacity, epctx_str domain,
                                        epctx_str name, epctx_str overload) {
    epctx_text text = epctx_text_of(out, capacity);
    epctx_text_put(&text, domain);
    epctx_text_put_char(&text, ':');
    epctx_text_put(&text, name);
    if (overload.size > 0) epctx_text_put_char(&text, ':');
    epctx_text_put(&text, overload);
    return text.cut ? epctx_str_of(NULL) : epctx_text_str(&text);
}

/* Bytes that hold any identifier of these parts. */
static inline size_t ops_function_id_size(epctx_str domain, epctx_str name, epctx_str overload) {
    return domain.size + name.size + overload.size + sizeof "::";
}

/* A body of a node that finds the body's inputs and outputs by their names: ONNX Runtime's text
 * generators. */
static inline bool ops_goes_by_names(const epctx_walk *walk) {
    static const char *const all[] = {"BeamSearch", "GreedySearch", "Sampling",
                                      "WhisperBeamSearch"};
    epctx_node_view node;
    size_t i;
    if (walk->level < 2 || walk->levels[walk->level - 2].kind != EPCTX_KIND_NODE) return false;
    node = epctx_view_as_node(walk->levels[walk->level - 2].view);
    for (i = 0; i < sizeof all / sizeof *all; i++)
        if (epctx_str_is(node.domain, "com.microsoft") && epctx_str_is(node.op_type, all[i]))
            return true;
    return false;
}

/* -- the names that a graph defines: inputs, initializers, outputs of nodes -- */

typedef struct ops_definitions {
    epctx_cursor inputs, tensors, sparses, nodes, outputs;
} ops_definitions;

static inline ops_definitions ops_definitions_of(epctx_view graph) {
    ops_definitions d;
    epctx_graph_view view = epctx_view_as_graph(graph);
    d.inputs = epctx_view_graph_inputs(view);
    d.tensors = epctx_view_graph_initializers(view);
    d.sparses = epctx_graph_sparse(view);
    d.nodes = epctx_view_graph_nodes(view);
    d.outputs = epctx_view_fields(epctx_view_none(), 0);
    return d;
}

/* Only those of initializers. */
static inline ops_definitions ops_initializers_of(epctx_view graph) {
    ops_definitions d = ops_definitions_of(graph);
    d.inputs = d.outputs;
    d.nodes = d.outputs;
    return d;
}

static inline bool ops_next_definition(ops_definitions *d, epctx_str *name) {
    epctx_value_view value;
    epctx_tensor_view tensor;
    epctx_sparse_view sparse;
    epctx_view node;
    for (;;) {
        if (epctx_next_value(&d->inputs, &value)) {
            *name = value.name;
        } else if (epctx_next_tensor(&d->tensors, &tensor)) {
            *name = tensor.name;
        } else if (epctx_next_sparse(&d->sparses, &sparse)) {
            *name = sparse.values.name;
        } else if (!epctx_next_str(&d->outputs, name)) {
            if (!epctx_next_view(&d->nodes, &node)) return false;
            d->outputs = epctx_view_fields(node, EPCTX_FIELD_NODE_OUTPUT);
            continue;
        }
        if (name->size > 0) return true;
    }
}

static inline epctx_status ops_put_definitions(epctx_map *map, ops_definitions d,
                                               epctx_error *error) {
    epctx_str name;
    while (ops_next_definition(&d, &name)) OPS_TRY(ops_put(map, name, 1, error));
    return EPCTX_OK;
}

/* -- reports -- */

typedef struct ops_report {
    epctx_arena *arena;
    epctx_list steps; /* epctx_step */
    epctx_list files; /* epctx_output_file */
} ops_report;

typedef struct ops_name {
    char text[32];
} ops_name;

/* A field's name as in onnx.proto. */
static inline ops_name ops_field_name(const epctx_field_info *field) {
    ops_name name = {""};
    for (size_t i = 0; i < sizeof name.text - 1 && field->name[i] != '\0'; i++) {
        char c = field->name[i];
        name.text[i] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
    }
    return name;
}

/* A text in the arena, formatted like that of epctx_fail; NULL if out of memory. */
static inline const char *ops_text(epctx_arena *arena, const char *format, va_list args) {
    char line[1024];
    epctx_text text = epctx_text_of(line, sizeof line);
    epctx_text_put_args(&text, format, args);
    return epctx_arena_copy(arena, epctx_text_str(&text));
}

/* Adds a step; `what` has all of it but the text. */
static inline epctx_status ops_say(ops_report *report, const epctx_step *what, epctx_error *error,
                                   const char *format, ...) {
    epctx_step *step = (epctx_step *)epctx_list_add(&report->steps, report->arena, sizeof *step);
    va_list args;
    if (step == NULL) return ops_nomem(report->arena, error);
    *step = *what;
    va_start(args, format);
    step->text = ops_text(report->arena, format, args);
    va_end(args);
    return step->text != NULL ? EPCTX_OK : ops_nomem(report->arena, error);
}

static inline epctx_step ops_step(size_t part, const char *action, const char *kind,
                                  epctx_str name) {
    epctx_step step = {part, action, kind, name, {NULL, 0}, NULL};
    return step;
}

/* A new name. `where` is behind the old one in the text: " of a body", or "". */
static inline epctx_status ops_say_now(ops_report *report, size_t part, const char *kind,
                                       epctx_str name, const char *where, epctx_str now,
                                       epctx_error *error) {
    epctx_step step = ops_step(part, "rename", kind, name);
    step.now = now;
    return ops_say(report, &step, error, "%s '%S'%s is now '%S'", kind, &name, where, &now);
}

/* A file of one part beside a model that is written to `path` (NULL: its own). The bytes are
 * borrowed. */
static inline epctx_status ops_file_of(epctx_model *model, const char *path, epctx_str name,
                                       epctx_span data, epctx_output_file *out,
                                       epctx_error *error) {
    epctx_span *part;
    OPS_TRY(ops_array(&model->arena, 1, sizeof *part, &part, error));
    *part = data;
    return epctx_model_output_file(model, path, name, part, 1, out, error);
}

static inline epctx_status ops_put_file(ops_report *report, const epctx_output_file *file,
                                        epctx_error *error) {
    epctx_output_file *place;
    OPS_TRY(ops_add(&report->files, report->arena, sizeof *place, &place, error));
    *place = *file;
    return EPCTX_OK;
}

/* Build stamps go: the model is not what the source of one of its parts would give. */
static inline epctx_status ops_drop_builds(ops_report *report, epctx_model *model,
                                           epctx_error *error) {
    epctx_cursor it = epctx_view_fields(epctx_model_root(model), EPCTX_FIELD_MODEL_METADATA_PROPS);
    epctx_list gone;
    epctx_view view;
    memset(&gone, 0, sizeof gone);
    while (epctx_next_view(&it, &view)) {
        epctx_str key = epctx_view_as_pair(view).key;
        if (epctx_str_starts(key, EPCTX_BUILD_PREFIX)) {
            const epctx_step step = ops_step(0, "remove", "metadata", key);
            OPS_TRY(ops_say(report, &step, error,
                            "metadata '%S' was removed: it describes another model", &key));
            OPS_TRY(ops_add_view(&gone, report->arena, view, error));
        }
    }
    return ops_remove_views(model, &gone, error);
}

static inline void ops_report_end(const ops_report *report, epctx_combined *out) {
    if (out != NULL) {
        out->steps = (const epctx_step *)report->steps.items;
        out->step_count = report->steps.count;
        out->files = (epctx_output_file *)report->files.items;
        out->file_count = report->files.count;
    }
}

/* -- conversions: contexts and initializers come into the model, or into files -- */

typedef enum ops_change_kind {
    OPS_CHANGE_EMBEDDED = 0, /* those of epctx_change_kind, then ours */
    OPS_CHANGE_EXTRACTED,
    OPS_CHANGE_FOLLOWED,
    OPS_CHANGE_INLINED,  /* initializer moved into the model */
    OPS_CHANGE_EXTERNAL, /* initializer moved into a file, or refers to another one */
    OPS_CHANGE_PRUNED,   /* unused initializer removed */
    OPS_CHANGE_SOURCE,   /* node names the source model `file`, or no longer does */
    OPS_CHANGE_FIXED,    /* initializer is no input any more */
    OPS_CHANGE_SKIPPED,  /* unchanged for `reason` */
    OPS_CHANGE_COUNT
} ops_change_kind;

typedef struct ops_change {
    ops_change_kind kind;
    epctx_str name;     /* of the node or of the initializer */
    epctx_str file;     /* old or new file; empty: none */
    uint64_t size;      /* bytes of the context or tensor */
    const char *reason; /* of SKIPPED and FIXED, else NULL */
} ops_change;

/* The result of a conversion; valid until the model is closed. */
typedef struct ops_changes {
    ops_change *items; /* in the order of the model */
    size_t count;
    size_t done; /* items that are not SKIPPED */
    epctx_output_file *files;
    size_t file_count;
    epctx_list item_list, file_list; /* private */
} ops_changes;

/* What is converted, and how. */
typedef struct ops_convert_opts {
    uint64_t threshold;        /* initializers of fewer bytes stay (init.h) */
    bool gather;               /* also those that are in files (init.h), */
    bool bring_in;             /* smaller ones of them into the model */
    uint64_t alignment;        /* of each tensor in the file; default 4096, as ONNX advises */
    const char *source;        /* model with the weights, relative to the model's folder; default
                           onnx_model_filename (weightless.h) */
    epctx_convert_opts common; /* as of epctx_edit_embed; its `name` is also that of the file for
                                  weights, default {file}.data */
} ops_convert_opts;

static inline const char *ops_change_name(ops_change_kind kind) {
    static const char *const names[] = {"embedded", "extracted", "followed", "inlined", "external",
                                        "pruned",   "source",    "fixed",    "skipped"};
    return (unsigned)kind < OPS_CHANGE_COUNT ? names[kind] : "unknown";
}

static inline epctx_status ops_changes_put(ops_changes *changes, epctx_arena *arena,
                                           const ops_change *change, epctx_error *error) {
    ops_change *item;
    OPS_TRY(ops_add(&changes->item_list, arena, sizeof *item, &item, error));
    *item = *change;
    changes->items = (ops_change *)changes->item_list.items;
    changes->count = changes->item_list.count;
    changes->done += change->kind != OPS_CHANGE_SKIPPED;
    return EPCTX_OK;
}

static inline epctx_status ops_changes_put_file(ops_changes *changes, epctx_arena *arena,
                                                const epctx_output_file *file, epctx_error *error) {
    epctx_output_file *item;
    OPS_TRY(ops_add(&changes->file_list, arena, sizeof *item, &item, error));
    *item = *file;
    changes->files = (epctx_output_file *)changes->file_list.items;
    changes->file_count = changes->file_list.count;
    return EPCTX_OK;
}

/* Where the result of a conversion will be written. */
static inline const char *ops_result_path(const epctx_model *model, const ops_convert_opts *opts) {
    return opts->common.output_path != NULL ? opts->common.output_path : model->path;
}

typedef struct ops_conversion {
    epctx_model *model;
    epctx_arena *arena;
    epctx_error *error;
    ops_convert_opts opts;
    ops_changes *changes;
    ops_changes ignored; /* when the caller does not want to know */
    size_t mark;
} ops_conversion;

/* `opts` and `changes` may be NULL. The conversion must not be moved afterwards. */
static inline void ops_begin(ops_conversion *c, epctx_model *model, const ops_convert_opts *opts,
                             ops_changes *changes, epctx_error *error) {
    epctx_error_clear(error);
    memset(c, 0, sizeof *c);
    c->model = model;
    c->arena = &model->arena;
    c->error = error;
    c->changes = changes != NULL ? changes : &c->ignored;
    memset(c->changes, 0, sizeof *c->changes);
    if (opts != NULL) c->opts = *opts;
    c->mark = epctx_edit_mark(model);
}

/* After a failure nothing was done. */
static inline epctx_status ops_end_conversion(ops_conversion *c, epctx_status status) {
    if (status != EPCTX_OK) memset(c->changes, 0, sizeof *c->changes);
    return ops_end(c->model, c->mark, status, c->error);
}

/* Why a tensor that was loaded cannot be in a file, or NULL. */
static inline const char *ops_no_bytes(const epctx_tensor *tensor) {
    if (tensor->data != NULL) return NULL;
    return tensor->elem_type == EPCTX_ONNX_STRING
               ? "strings cannot be external"
               : "its data is in fields of a packed type and cannot be moved";
}

/* An external initializer comes into the model. */
static inline epctx_status ops_inline_tensor(epctx_model *model, const epctx_tensor_view *view,
                                             ops_changes *changes, epctx_error *error) {
    ops_change change = {OPS_CHANGE_INLINED, view->name, view->location, 0, NULL};
    epctx_tensor tensor;
    epctx_span data;
    OPS_TRY(epctx_model_load_tensor(model, view->view, NULL, &tensor, error));
    if (tensor.elem_type == EPCTX_ONNX_STRING) {
        return epctx_fail(error, EPCTX_ERR_GRAPH, "initializer '%S': strings cannot be external",
                          &tensor.name);
    }
    data.data = tensor.data;
    data.size = tensor.size;
    OPS_TRY(epctx_edit_set_tensor_raw(model, view->view, data, error));
    change.size = tensor.size;
    return ops_changes_put(changes, &model->arena, &change, error);
}

#endif
