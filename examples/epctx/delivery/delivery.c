/* delivery.c - what the rules for deliveries share: findings, names, JSON, models. */
#include "delivery_internal.h"
#include "ops/needs.h"

#include <stdarg.h>
#include <string.h>

void delivery_say(delivery *d, int rule, epctx_str where, const char *format, ...) {
    char message[1024];
    epctx_text text = epctx_text_of(message, sizeof message);
    const fact *versions = facts_rule(rule_info(RULE_DELIVERY + rule).id, NULL);
    finding what = {
        RULE_DELIVERY + rule, where, epctx_str_of(""), "", message, d->line, d->since, d->until};
    va_list args;
    d->since = d->until = NULL;
    if (d->out == NULL || (versions != NULL && !facts_hold(versions, NULL))) return;
    if (versions != NULL) {
        what.since = fact_get(versions, "since");
        what.until = fact_get(versions, "until");
    }
    va_start(args, format);
    epctx_text_put_args(&text, format, args);
    va_end(args);
    findings_add(d->out, &what);
}

void delivery_say_later(delivery *d, int rule, epctx_str where, const char *path, epctx_str key,
                        const fact *later) {
    const char *since = fact_get(later, "since"), *until = fact_get(later, "until");
    const bool begun = facts_begun(later, NULL);
    d->since = begun ? until : NULL;
    d->until = begun ? NULL : since;
    delivery_say(d, rule, where, "'%s%S' is there %s %s only, and not in the version judged for",
                 path, &key, begun ? "until" : "since", begun ? until : since);
}

void *delivery_alloc(delivery *d, size_t count, size_t size) {
    return epctx_arena_array(d->arena, count > 0 ? count : 1, size);
}

const char *delivery_join(delivery *d, const char *folder, epctx_str name) {
    size_t size = strlen(folder), i = 0;
    char *path = (char *)epctx_arena_alloc(d->arena, size + name.size + 2);
    if (path == NULL) return NULL;
    memcpy(path, folder, size);
    while (i < name.size) {
        size_t part = 0;
        while (i + part < name.size && name.data[i + part] != '/') part++;
        if (part > 0 && !(part == 1 && name.data[i] == '.')) {
            if (size > 0 && path[size - 1] != '/') path[size++] = '/';
            memcpy(path + size, name.data + i, part);
            size += part;
        }
        i += part + 1;
    }
    return path;
}

bool delivery_is_absolute(epctx_str name) {
    if (name.size == 0) return false;
    return name.data[0] == '/' || name.data[0] == '\\' ||
           (name.size > 1 && name.data[1] == ':' &&
            ((name.data[0] >= 'a' && name.data[0] <= 'z') ||
             (name.data[0] >= 'A' && name.data[0] <= 'Z')));
}

bool delivery_climbs(epctx_str name) {
    size_t i = 0;
    while (i < name.size) {
        size_t start = i;
        while (i < name.size && name.data[i] != '/' && name.data[i] != '\\') i++;
        if (i - start == 2 && memcmp(name.data + start, "..", 2) == 0) return true;
        i++;
    }
    return false;
}

epctx_str delivery_text(const json *object, const char *key) {
    const json *member = json_get(object, key);
    return member != NULL && member->kind == JSON_STRING ? member->text : epctx_str_of("");
}

/* -- JSON -- */

static unsigned line_at(epctx_str text, size_t at) {
    unsigned line = 1;
    size_t i;
    for (i = 0; i < at && i < text.size; i++) line += text.data[i] == '\n';
    return line;
}

epctx_status delivery_read_text(const delivery *d, const char *path, epctx_str *out,
                                epctx_error *error) {
    const epctx_io *io = epctx_io_files();
    epctx_file_info info;
    epctx_mapping bytes;
    epctx_status status = io->stat_fn(io->user, path, &info, error);
    if (status != EPCTX_OK) return status;
    if (info.kind == EPCTX_FILE_REGULAR && info.size > DELIVERY_MOST_TEXT)
        return epctx_fail(error, EPCTX_ERR_LIMIT,
                          "has %u bytes: a text of at most %u is expected here", info.size,
                          (uint64_t)DELIVERY_MOST_TEXT);
    status = io->map_fn(io->user, NULL, path, true, &bytes, error);
    if (status != EPCTX_OK) return status;
    out->size = bytes.size;
    out->data = epctx_arena_copy(d->arena, (epctx_str){(const char *)bytes.data, bytes.size});
    io->unmap_fn(io->user, &bytes);
    return out->data != NULL ? EPCTX_OK : epctx_fail(error, EPCTX_ERR_NOMEM, "out of memory");
}

const json *delivery_read_json(delivery *d, const char *path, int rule, epctx_str *text,
                               unsigned *rest) {
    const epctx_str nothing = epctx_str_of("");
    epctx_error error;
    epctx_str all;
    const json *root;
    size_t at = 0;
    epctx_error_clear(&error);
    if (delivery_read_text(d, path, &all, &error) != EPCTX_OK) {
        delivery_say(d, rule, nothing, "%s", error.message);
        return NULL;
    }
    root = text != NULL ? json_read_first(all, d->arena, &at) : json_read(all, d->arena, &at);
    if (text != NULL) {
        text->data = all.data;
        text->size = at;
        *rest = at < all.size ? line_at(all, at) : 0;
    }
    if (root != NULL && root->kind == JSON_OBJECT) return root;
    d->line = root == NULL ? line_at(all, at) : 1;
    delivery_say(d, rule, nothing, root == NULL ? "is not JSON" : "is not a JSON object");
    d->line = 0;
    return NULL;
}

/* -- models -- */

static epctx_status read_value(delivery *d, const epctx_value_view *view, delivery_value *out) {
    epctx_cursor dims = epctx_view_value_dims(view);
    size_t rank = epctx_cursor_count(dims), i = 0;
    epctx_dim dim;
    int64_t *numbers;
    out->name = view->name;
    out->elem_type = view->is_tensor ? view->elem_type : 0;
    out->rank = -1;
    if (!view->has_shape || rank > INT32_MAX) return EPCTX_OK;
    numbers = (int64_t *)delivery_alloc(d, rank, sizeof *numbers);
    if (numbers == NULL) return EPCTX_ERR_NOMEM;
    while (i < rank && epctx_next_dim(&dims, &dim))
        numbers[i++] = dim.known && dim.value >= 0 ? dim.value : -1;
    out->rank = (int32_t)i;
    out->dims = numbers;
    return EPCTX_OK;
}

static epctx_status read_values(delivery *d, epctx_cursor it, const epctx_map *without,
                                delivery_values *out) {
    epctx_value_view view;
    epctx_map_init(&out->places, d->arena);
    out->items = (delivery_value *)delivery_alloc(d, epctx_cursor_count(it), sizeof *out->items);
    if (out->items == NULL) return EPCTX_ERR_NOMEM;
    while (epctx_next_value(&it, &view)) {
        if (without != NULL && epctx_map_get(without, view.name) != EPCTX_MAP_NONE) continue;
        if (epctx_map_put(&out->places, view.name, (uint32_t)out->count) != EPCTX_OK ||
            read_value(d, &view, &out->items[out->count]) != EPCTX_OK)
            return EPCTX_ERR_NOMEM;
        out->count++;
    }
    return EPCTX_OK;
}

static epctx_status read_nodes(delivery *d, delivery_model *out) {
    epctx_node_view view;
    epctx_walk walk;
    size_t count = 0;
    epctx_walk_begin(&walk, &out->model);
    while (epctx_walk_epnode(&walk, &view)) count++;
    out->nodes = (delivery_node *)delivery_alloc(d, count, sizeof *out->nodes);
    if (out->nodes == NULL) return EPCTX_ERR_NOMEM;
    epctx_walk_begin(&walk, &out->model);
    while (out->node_count < count && epctx_walk_epnode(&walk, &view)) {
        delivery_node *node = &out->nodes[out->node_count];
        if (epctx_view_read_epnode(&view, &node->node, NULL) != EPCTX_OK) continue;
        node->dlc = epctx_view_node_attr_str(&view, "ep_dlc_context");
        node->profile = epctx_profile_of(node->node.source);
        out->node_count++;
    }
    return EPCTX_OK;
}

epctx_status delivery_open(delivery *d, const char *path, const delivery_paths *paths,
                           delivery_model *out, epctx_error *error) {
    epctx_graph_view graph;
    epctx_status status;
    epctx_map initializers;
    epctx_check_opts opts;
    memset(out, 0, sizeof *out);
    memset(&opts, 0, sizeof opts);
    if (paths != NULL) {
        opts.context_file_path = paths->context;
        opts.external_folder = paths->external;
    }
    status = cli_open(&out->model, path, error);
    if (status != EPCTX_OK) return status;
    graph = epctx_model_graph(&out->model);
    epctx_map_init(&initializers, d->arena);
    if (!cli_initializer_names(&out->model, &initializers) ||
        read_values(d, epctx_view_graph_inputs(graph), &initializers, &out->inputs) != EPCTX_OK ||
        read_values(d, epctx_view_graph_outputs(graph), NULL, &out->outputs) != EPCTX_OK ||
        read_nodes(d, out) != EPCTX_OK)
        return cli_no_memory(error);
    return needs_of_model(&out->model, &opts, d->arena, &out->files, &out->file_count, error);
}

void delivery_close(delivery_model *done) {
    epctx_model_close(&done->model);
}

const delivery_value *delivery_find(const delivery_values *values, epctx_str name) {
    uint32_t at = epctx_map_get(&values->places, name);
    return at != EPCTX_MAP_NONE ? &values->items[at] : NULL;
}

static bool values_differ(const char *what, const delivery_values *a, const delivery_values *b,
                          epctx_text *why) {
    size_t i;
    for (i = 0; i < a->count; i++) {
        const delivery_value *one = &a->items[i], *other = delivery_find(b, one->name);
        if (other == NULL)
            epctx_text_put_format(why, "has no %s '%S'", what, &one->name);
        else if (one->elem_type != 0 && other->elem_type != 0 && one->elem_type != other->elem_type)
            epctx_text_put_format(why, "%s '%S' has another type", what, &one->name);
        else if (one->rank >= 0 && other->rank >= 0 && one->rank != other->rank)
            epctx_text_put_format(why, "%s '%S' has rank %d instead of %d", what, &one->name,
                                  (int64_t)other->rank, (int64_t)one->rank);
        else
            continue;
        return true;
    }
    for (i = 0; i < b->count; i++) {
        if (delivery_find(a, b->items[i].name) != NULL) continue;
        epctx_text_put_format(why, "has one more %s, '%S'", what, &b->items[i].name);
        return true;
    }
    return false;
}

const char *delivery_difference(delivery *d, const delivery_model *a, const delivery_model *b) {
    char room[256];
    epctx_text why = epctx_text_of(room, sizeof room);
    if (!values_differ("input", &a->inputs, &b->inputs, &why) &&
        !values_differ("output", &a->outputs, &b->outputs, &why))
        return NULL;
    return epctx_arena_copy(d->arena, epctx_text_str(&why));
}

const delivery_paths *delivery_add_paths(delivery *d, const char *model, const char *context,
                                         const char *external) {
    const epctx_io *io = epctx_io_files();
    delivery_paths *more = (delivery_paths *)delivery_alloc(d, 1, sizeof *more);
    char path[EPCTX_PATH_MAX];
    if (more == NULL || io->canonical_fn(io->user, model, path, sizeof path, NULL) != EPCTX_OK)
        return NULL;
    more->model = epctx_arena_copy(d->arena, epctx_str_of(path));
    if (more->model == NULL) return NULL;
    more->next = d->paths;
    more->context = context;
    more->external = external;
    d->paths = more;
    return more;
}
