/* epctx weights: what several models would share in one context binary, and what they nearly would.
 *
 * The weights are the initializers, the tensors of Constant nodes, and the weights in the context
 * binaries of the reference NPU. They go through the weight table of epctx.h as through an EP's
 * compiler; nothing is copied, the table is shown the bytes of the models. */
#include "core/options.h"
#include "epctx_npu.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define NEAR_SHOWN 20u /* without --json */

/* A model of the command line. */
typedef struct source {
    const char *file;
    epctx_model model;
    uint64_t tensors, bytes;
    uint64_t shared_bytes; /* of weights that another model has, too */
    uint64_t unread;       /* strings, and types without a size */
    struct binary *binaries;
} source;

/* A context binary beside a model. */
typedef struct binary {
    epctx_mapping mapping;
    struct binary *next;
} binary;

typedef struct item {
    const epctx_tensor *tensor;
    epctx_str name;
    uint32_t source;
    uint32_t place; /* in the table */
} item;

/* A place in the table: who was there first. */
typedef struct place {
    uint64_t offset;
    uint32_t item;
    bool many; /* in more than one model */
} place;

typedef enum reason { REASON_DTYPE, REASON_SHAPE, REASON_BYTES } reason;

static const char *const reasons[] = {"dtype", "shape", "bytes"};

/* Two weights that one would expect to be shared. */
typedef struct near_miss {
    uint32_t a, b; /* items */
    reason why;
    uint64_t differ, first; /* bytes */
    size_t size;            /* of `b` */
} near_miss;

typedef struct work {
    epctx_arena arena; /* the lists and the maps */
    source *sources;
    size_t source_count;
    item *items;
    size_t item_count, item_room;
    place *places;
    size_t place_count;
    near_miss *misses;
    size_t miss_count;
    uint64_t unlike;  /* weights of one name, type and shape of which most bytes differ */
    epctx_map names;  /* of earlier models -> item */
    epctx_map shapes; /* dtype, shape and which one of these -> item of an earlier model */
    epctx_weights table;
    epctx_weights_stats stats;
    epctx_error *error;
} work;

/* -- the weights of a model -- */

static epctx_status add_item(work *w, uint32_t from, const epctx_tensor *tensor, epctx_str name) {
    source *s = &w->sources[from];
    if (tensor->data == NULL) {
        s->unread++;
        return EPCTX_OK;
    }
    if (w->item_count == w->item_room) {
        item *more;
        w->item_room = w->item_room * 2 + 256;
        more = (item *)epctx_arena_array(&w->arena, w->item_room, sizeof *more);
        if (more == NULL) return cli_no_memory(w->error);
        if (w->item_count > 0) memcpy(more, w->items, w->item_count * sizeof *more);
        w->items = more;
    }
    memset(&w->items[w->item_count], 0, sizeof *w->items);
    w->items[w->item_count].tensor = tensor;
    w->items[w->item_count].name = name;
    w->items[w->item_count++].source = from;
    s->tensors++;
    s->bytes += tensor->size;
    return EPCTX_OK;
}

/* The weights of a context binary; `name` is for messages. Their types are not in it. */
static epctx_status add_binary(work *w, uint32_t from, epctx_str name, epctx_span bytes) {
    epctx_npu_context context;
    epctx_span weight;
    uint32_t elem, i;
    epctx_status status = cli_load_binary(bytes, &w->arena, &context, NULL, w->error);
    for (i = 0; status == EPCTX_OK && epctx_npu_weight_at(&context, i, &weight, &elem); i++) {
        const size_t room = name.size + 16;
        epctx_tensor *tensor = (epctx_tensor *)epctx_arena_alloc(&w->arena, sizeof *tensor);
        int64_t *dims = (int64_t *)epctx_arena_alloc(&w->arena, sizeof *dims);
        char *text = (char *)epctx_arena_alloc(&w->arena, room);
        if (tensor == NULL || dims == NULL || text == NULL) return cli_no_memory(w->error);
        snprintf(text, room, "%.*s:%" PRIu32, (int)name.size, name.data, i);
        dims[0] = (int64_t)(weight.size / elem);
        tensor->rank = 1;
        tensor->dims = dims;
        tensor->data = weight.data;
        tensor->size = weight.size;
        status = add_item(w, from, tensor, epctx_str_of(text));
    }
    return status;
}

static epctx_status add_context(work *w, uint32_t from, const epctx_epnode *node) {
    source *s = &w->sources[from];
    epctx_str folder = epctx_path_folder(epctx_str_of(s->file));
    epctx_span bytes;
    binary *b;
    epctx_status status;
    if (node->embed_mode == 1) {
        bytes.data = (const uint8_t *)node->ep_cache_context.data;
        bytes.size = node->ep_cache_context.size;
        return add_binary(w, from, node->name, bytes);
    }
    b = (binary *)epctx_arena_alloc(&w->arena, sizeof *b);
    if (b == NULL) return cli_no_memory(w->error);
    status = epctx_path_map(epctx_io_files(), folder, node->ep_cache_context, cli_path_flags(),
                            &b->mapping, NULL, w->error);
    if (status != EPCTX_OK) return status;
    b->next = s->binaries;
    s->binaries = b;
    bytes.data = b->mapping.data;
    bytes.size = b->mapping.size;
    return add_binary(w, from, node->ep_cache_context, bytes);
}

/* The context binaries of the reference NPU; those of others are closed books. */
static epctx_status add_contexts(work *w, uint32_t from) {
    epctx_status status = EPCTX_OK;
    epctx_walk walk;
    epctx_node_view node;
    epctx_backend backend;
    epctx_epnode ep;
    epctx_walk_begin(&walk, &w->sources[from].model);
    while (status == EPCTX_OK && epctx_walk_epnode(&walk, &node)) {
        if (!epctx_view_is_epnode(&node)) continue;
        status = epctx_view_read_epnode(&node, &ep, w->error);
        if (status != EPCTX_OK || ep.main_context != 1 || !cli_own_backend(ep.source, &backend))
            continue;
        status = add_context(w, from, &ep);
        if (status != EPCTX_OK) epctx_blame(w->error, w->sources[from].file, &ep.name, NULL);
    }
    return status;
}

static epctx_status add_source(work *w, uint32_t from) {
    source *s = &w->sources[from];
    epctx_graph graph;
    size_t i, optional;
    epctx_status status = cli_open(&s->model, s->file, w->error);
    /* What callers may override is a weight all the same. */
    if (status == EPCTX_OK) status = cli_optional_inputs(&s->model, true, &optional, w->error);
    if (status == EPCTX_OK) status = epctx_model_load_graph(&s->model, &graph, w->error);
    for (i = 0; status == EPCTX_OK && i < graph.initializer_count; i++)
        status = add_item(w, from, &graph.initializers[i], graph.initializers[i].name);
    for (i = 0; status == EPCTX_OK && i < graph.node_count; i++) {
        const epctx_node *node = &graph.nodes[i];
        const epctx_attr *value = epctx_node_attr(node, "value");
        if (epctx_str_is(node->op_type, "Constant") && node->domain.size == 0 && value != NULL &&
            value->t != NULL && node->output_count > 0)
            status = add_item(w, from, value->t, node->outputs[0]);
    }
    return status == EPCTX_OK ? add_contexts(w, from) : status;
}

/* -- what is shared -- */

/* The bytes of a place are those of its first weight. */
static epctx_status fetch(void *user, uint64_t offset, size_t size, const uint8_t **data,
                          epctx_error *error) {
    const work *w = (const work *)user;
    size_t low = 0, high = w->place_count;
    (void)size;
    (void)error;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (w->places[middle].offset <= offset)
            low = middle;
        else
            high = middle;
    }
    *data = w->items[w->places[low].item].tensor->data + (offset - w->places[low].offset);
    return EPCTX_OK;
}

static epctx_status share(work *w) {
    epctx_weights_opts opts;
    epctx_status status;
    uint32_t i;
    memset(&opts, 0, sizeof opts);
    opts.fetch_fn = fetch;
    opts.user = w;
    w->places = (place *)epctx_arena_array(&w->arena, w->item_count, sizeof *w->places);
    if (w->places == NULL) return cli_no_memory(w->error);
    status = epctx_weights_init(&w->table, &opts, w->error);
    for (i = 0; status == EPCTX_OK && i < w->item_count; i++) {
        item *it = &w->items[i];
        epctx_weight got;
        status =
            epctx_weights_add(&w->table, it->tensor->data, it->tensor->size, 1, 0, &got, w->error);
        if (status != EPCTX_OK) break;
        it->place = got.index;
        if (got.fresh) {
            w->places[got.index].offset = got.offset;
            w->places[got.index].item = i;
            w->place_count++;
        } else if (w->items[w->places[got.index].item].source != it->source)
            w->places[got.index].many = true;
    }
    w->stats = w->table.stats;
    for (i = 0; status == EPCTX_OK && i < w->item_count; i++)
        if (w->places[w->items[i].place].many)
            w->sources[w->items[i].source].shared_bytes += w->items[i].tensor->size;
    return status;
}

/* -- what nearly is -- */

static bool same_shape(const epctx_tensor *a, const epctx_tensor *b) {
    return a->rank == b->rank &&
           (a->rank == 0 || memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) == 0);
}

/* Why two weights are not shared. */
static near_miss compare(const work *w, uint32_t a, uint32_t b) {
    const epctx_tensor *x = w->items[a].tensor, *y = w->items[b].tensor;
    near_miss miss = {a, b, REASON_BYTES, 0, 0, y->size};
    size_t i;
    if (x->elem_type != y->elem_type)
        miss.why = REASON_DTYPE;
    else if (!same_shape(x, y) || x->size != y->size)
        miss.why = REASON_SHAPE;
    for (i = 0; miss.why == REASON_BYTES && i < x->size; i++) {
        if (x->data[i] == y->data[i]) continue;
        if (miss.differ++ == 0) miss.first = i;
    }
    return miss;
}

/* "dtype dims #ordinal" as bytes: the weights of one type and shape are numbered in each model. */
static epctx_status shape_key(work *w, epctx_map *counts, uint32_t index, epctx_str *key) {
    const epctx_tensor *t = w->items[index].tensor;
    size_t dims = (size_t)t->rank * sizeof *t->dims;
    char *text = (char *)epctx_arena_alloc(&w->arena, sizeof t->elem_type + dims + 4);
    uint32_t ordinal;
    epctx_str shape;
    if (text == NULL) return cli_no_memory(w->error);
    memcpy(text, &t->elem_type, sizeof t->elem_type);
    if (dims > 0) memcpy(text + sizeof t->elem_type, t->dims, dims);
    shape.data = text;
    shape.size = sizeof t->elem_type + dims;
    ordinal = epctx_map_get(counts, shape);
    ordinal = ordinal == EPCTX_MAP_NONE ? 0 : ordinal + 1;
    if (epctx_map_put(counts, shape, ordinal) != EPCTX_OK) return cli_no_memory(w->error);
    memcpy(text + shape.size, &ordinal, 4);
    key->data = text;
    key->size = shape.size + 4;
    return EPCTX_OK;
}

static void find_miss(work *w, uint32_t index, epctx_str key) {
    const item *it = &w->items[index];
    uint32_t other = epctx_map_get(&w->names, it->name);
    bool named = other != EPCTX_MAP_NONE;
    near_miss miss;
    if (w->places[it->place].item != index) {
        /* Shared as bytes; an EP that keeps types apart stores both. */
        other = w->places[it->place].item;
        if (w->items[other].source == it->source ||
            w->items[other].tensor->elem_type == it->tensor->elem_type ||
            w->items[other].tensor->elem_type == 0 || it->tensor->elem_type == 0)
            return;
        named = true;
    } else if (!named)
        other = epctx_map_get(&w->shapes, key);
    if (other == EPCTX_MAP_NONE) return;
    miss = compare(w, other, index);
    /* The same name tells what was meant: the low bytes of each number may differ. Without it only
     * few bytes may. */
    if (named && miss.differ > it->tensor->size / 2) {
        w->unlike++;
        return;
    }
    if (!named && miss.differ * 8 > it->tensor->size) return;
    if (!named && miss.differ > 1 && miss.differ > it->tensor->size / 100) return;
    w->misses[w->miss_count++] = miss;
}

static epctx_status remember(work *w, uint32_t index, epctx_str key) {
    const item *it = &w->items[index];
    if (epctx_map_get(&w->names, it->name) == EPCTX_MAP_NONE &&
        epctx_map_put(&w->names, it->name, index) != EPCTX_OK)
        return cli_no_memory(w->error);
    if (epctx_map_get(&w->shapes, key) == EPCTX_MAP_NONE &&
        epctx_map_put(&w->shapes, key, index) != EPCTX_OK)
        return cli_no_memory(w->error);
    return EPCTX_OK;
}

/* Large weights first, of these the nearest. */
static int by_size(const void *left, const void *right) {
    const near_miss *a = (const near_miss *)left, *b = (const near_miss *)right;
    if (a->size != b->size) return a->size < b->size ? 1 : -1;
    if (a->why == REASON_BYTES && b->why == REASON_BYTES && a->differ != b->differ)
        return a->differ > b->differ ? 1 : -1;
    return a->b > b->b ? 1 : -1;
}

static epctx_status find_misses(work *w) {
    epctx_str *keys = (epctx_str *)epctx_arena_array(&w->arena, w->item_count, sizeof *keys);
    epctx_status status = EPCTX_OK;
    uint32_t i, k, end;
    w->misses = (near_miss *)epctx_arena_array(&w->arena, w->item_count, sizeof *w->misses);
    if (keys == NULL || w->misses == NULL) return cli_no_memory(w->error);
    epctx_map_init(&w->names, &w->arena);
    epctx_map_init(&w->shapes, &w->arena);
    for (i = 0; status == EPCTX_OK && i < w->item_count; i = end) {
        epctx_map counts;
        epctx_map_init(&counts, &w->arena);
        end = i;
        while (end < w->item_count && w->items[end].source == w->items[i].source) end++;
        for (k = i; status == EPCTX_OK && k < end; k++) {
            status = shape_key(w, &counts, k, &keys[k]);
            if (status == EPCTX_OK) find_miss(w, k, keys[k]);
        }
        for (k = i; status == EPCTX_OK && k < end; k++) status = remember(w, k, keys[k]);
    }
    if (w->miss_count > 0) qsort(w->misses, w->miss_count, sizeof *w->misses, by_size);
    return status;
}

/* -- output -- */

static void put_shape(const epctx_tensor *t) {
    int32_t i;
    putchar('[');
    for (i = 0; i < t->rank; i++) printf("%s%" PRId64, i > 0 ? ", " : "", t->dims[i]);
    putchar(']');
}

static void put_detail(const work *w, const near_miss *miss) {
    const epctx_tensor *a = w->items[miss->a].tensor, *b = w->items[miss->b].tensor;
    switch (miss->why) {
    case REASON_DTYPE:
        printf("dtype %s and %s", epctx_elem_name(a->elem_type), epctx_elem_name(b->elem_type));
        if (w->items[miss->a].place == w->items[miss->b].place)
            fputs(", the bytes are the same", stdout);
        break;
    case REASON_SHAPE:
        fputs("shape ", stdout);
        put_shape(a);
        fputs(" and ", stdout);
        put_shape(b);
        break;
    case REASON_BYTES:
        printf("%" PRIu64 " of %zu byte%s different, the first at %" PRIu64, miss->differ, a->size,
               cli_plural(a->size), miss->first);
        break;
    }
}

static void put_text(const work *w) {
    const epctx_weights_stats *s = &w->stats;
    size_t i;
    printf("%10s %14s %14s     model\n", "weights", "bytes", "also in others");
    for (i = 0; i < w->source_count; i++) {
        const source *m = &w->sources[i];
        printf("%10" PRIu64 " %14" PRIu64 " %14" PRIu64 "  %zu: ", m->tensors, m->bytes,
               m->shared_bytes, i + 1);
        cli_put(stdout, epctx_str_of(m->file));
        if (m->unread > 0) printf(" (%" PRIu64 " weights without a fixed size skipped)", m->unread);
        putchar('\n');
    }
    printf("%10" PRIu64 " %14" PRIu64 " %14s  together\n", s->added, s->added_bytes, "");
    printf("%10" PRIu64 " %14" PRIu64 " %14s  stored once: %" PRIu64 " bytes (%.1f %%) less\n",
           s->stored, s->stored_bytes, "", s->shared_bytes,
           s->added_bytes > 0 ? 100.0 * (double)s->shared_bytes / (double)s->added_bytes : 0.0);
    if (w->miss_count > 0) puts("\nnot shared, but nearly:");
    for (i = 0; i < w->miss_count && i < NEAR_SHOWN; i++) {
        const item *a = &w->items[w->misses[i].a], *b = &w->items[w->misses[i].b];
        printf("  %" PRIu32 ": ", a->source + 1);
        cli_put(stdout, a->name);
        printf(", %" PRIu32 ": ", b->source + 1);
        if (epctx_str_eq(a->name, b->name))
            fputs("the same name", stdout);
        else
            cli_put(stdout, b->name);
        fputs(": ", stdout);
        put_detail(w, &w->misses[i]);
        putchar('\n');
    }
    if (w->miss_count > NEAR_SHOWN)
        printf("  and %zu more, see --json\n", w->miss_count - NEAR_SHOWN);
    if (w->unlike > 0)
        printf("\n%" PRIu64 " weight%s of the same name, type and shape: most bytes different\n",
               w->unlike, cli_plural(w->unlike));
}

static void json_side(json_writer *w, const work *all, const char *key, uint32_t index) {
    const item *it = &all->items[index];
    int32_t i;
    json_object(w, key, JSON_INLINE);
    json_text(w, "file", all->sources[it->source].file);
    json_str(w, "name", it->name);
    json_text(w, "dtype", epctx_elem_name(it->tensor->elem_type));
    json_array(w, "shape", JSON_INLINE);
    for (i = 0; i < it->tensor->rank; i++) json_int(w, NULL, it->tensor->dims[i]);
    json_end(w);
    json_end(w);
}

static void json_source(json_writer *w, const source *m) {
    json_object(w, NULL, JSON_INLINE);
    json_text(w, "file", m->file);
    json_uint(w, "weights", m->tensors);
    json_uint(w, "bytes", m->bytes);
    json_uint(w, "shared_bytes", m->shared_bytes);
    json_uint(w, "left_out", m->unread);
    json_end(w);
}

static void json_miss(json_writer *w, const work *all, const near_miss *miss) {
    json_object(w, NULL, JSON_INLINE);
    json_side(w, all, "a", miss->a);
    json_side(w, all, "b", miss->b);
    json_text(w, "reason", reasons[miss->why]);
    json_bool(w, "shared_bytes", all->items[miss->a].place == all->items[miss->b].place);
    json_uint(w, "differing_bytes", miss->differ);
    json_uint(w, "first", miss->first);
    json_end(w);
}

static void put_json(const work *all) {
    const epctx_weights_stats *s = &all->stats;
    json_writer *w = cli_json_begin(stdout);
    size_t i;
    json_array(w, "models", JSON_HANGING);
    for (i = 0; i < all->source_count; i++) json_source(w, &all->sources[i]);
    json_end(w);
    json_uint(w, "weights", s->added);
    json_uint(w, "bytes", s->added_bytes);
    json_uint(w, "stored_weights", s->stored);
    json_uint(w, "stored_bytes", s->stored_bytes);
    json_uint(w, "saved_bytes", s->shared_bytes);
    json_array(w, "near", JSON_HANGING);
    for (i = 0; i < all->miss_count; i++) json_miss(w, all, &all->misses[i]);
    json_end(w);
    json_uint(w, "unlike", all->unlike);
    cli_json_end();
}

static int weights(const char *const *files, size_t count, bool json) {
    epctx_error error;
    work w;
    epctx_status status = EPCTX_OK;
    size_t i;
    epctx_error_clear(&error);
    memset(&w, 0, sizeof w);
    w.error = &error;
    epctx_arena_init(&w.arena, NULL);
    w.sources = (source *)epctx_arena_array(&w.arena, count, sizeof *w.sources);
    w.source_count = w.sources != NULL ? count : 0;
    if (w.sources == NULL) status = cli_no_memory(w.error);
    for (i = 0; status == EPCTX_OK && i < count; i++) {
        w.sources[i].file = files[i];
        status = add_source(&w, (uint32_t)i);
    }
    if (status == EPCTX_OK) status = share(&w);
    if (status == EPCTX_OK) status = find_misses(&w);
    if (status == EPCTX_OK) {
        if (json)
            put_json(&w);
        else
            put_text(&w);
    }
    epctx_weights_free(&w.table);
    for (i = 0; i < w.source_count; i++) {
        const binary *b = w.sources[i].binaries;
        for (; b != NULL; b = b->next) {
            epctx_mapping mapping = b->mapping;
            epctx_io_files()->unmap_fn(NULL, &mapping);
        }
        epctx_model_close(&w.sources[i].model);
    }
    epctx_arena_free(&w.arena);
    return status == EPCTX_OK ? CLI_OK : cli_fail(&error);
}

static int run(const cli_args *args) {
    return weights(args->operands, (size_t)args->count, args->json);
}

const cli_command cli_weights = {
    .name = "weights",
    .group = CLI_JUDGE,
    .operands = "MODEL...",
    .least = 1,
    .summary = "show which weights several models would share",
    .about = "Compiled into one context binary, models share all weights that are equal in\n"
             "every byte, whatever their names. Counts initializers and constants, including\n"
             "external data, and the weights in context binaries of the reference NPU (stored\n"
             "in its own layout, so they seldom equal those of an ordinary model). Also lists\n"
             "weights that are nearly shared: same name but different type or shape, or at\n"
             "most half of the bytes different; another name and at most one byte in a\n"
             "hundred different.\n",
    .more = "Example: epctx weights prefill.onnx decode.onnx\n",
    .run = run,
};
