/* Joins containers of OpenVINO (version 1 of the file, 1.x of the directory, as of 1.8.1 in 2026):
 * header, directory, blobs at multiples of 65,536 bytes, zeros up to such a multiple. */
#include "join.h"

#include "bson.h"
#include "reader.h"

enum { JOIN_BLOCK = 65536 };

/* The most bytes of a directory: a document's size is an int32. */
#define JOIN_MOST ((uint64_t)INT32_MAX / 2)

/* A field of one of the directories that the result has. */
typedef struct join_field {
    binary_bson field;
    size_t source;
    /* Of a blob: */
    epctx_str name; /* in the result */
    epctx_span bytes;
    uint64_t at; /* in the result */
} join_field;

/* Fields of one map, by their names in the result. */
typedef struct join_map {
    epctx_map numbers; /* of `fields` */
    epctx_list fields; /* join_field */
} join_map;

typedef struct join {
    const binary_source *sources;
    size_t count;
    epctx_arena *arena;
    epctx_error *error;
    epctx_map names; /* of blobs, in all sources and in the result */
    join_map blobs, weights, others;
    epctx_list renamed; /* binary_renamed */
    uint64_t room;      /* bytes that the directory has at most */
    uint64_t used;      /* bytes of a source that its graphs have */
} join;

static join_field *field_at(const join_map *map, size_t i) {
    return (join_field *)map->fields.items + i;
}

static epctx_status blame(const join *j, size_t source, epctx_status status) {
    char name[256];
    epctx_text text = epctx_text_of(name, sizeof name);
    epctx_text_put_shown(&text, j->sources[source].name);
    if (status != EPCTX_OK) epctx_blame(j->error, name, NULL, NULL);
    return status;
}

/* -- what is joined -- */

static epctx_status check_source(const join *j, const binary_source *source) {
    binary_facts facts;
    OPS_TRY(binary_read(source->bytes, NULL, j->arena, &facts, j->error));
    if (facts.id.kind != EPCTX_BINARY_OPENVINO_CONTAINER) {
        return epctx_fail(j->error, EPCTX_ERR_UNSUPPORTED,
                          "is %s: of the binaries that hold several graphs only OpenVINO's "
                          "containers can be joined",
                          facts.id.name);
    }
    if (facts.damage != NULL)
        return epctx_fail(j->error, EPCTX_ERR_CONTEXT, "is %s that %s", facts.id.name,
                          facts.damage);
    if (!facts.graphs_known)
        return epctx_fail(j->error, EPCTX_ERR_UNSUPPORTED,
                          "is %s of a version that is not known: %S", facts.id.name,
                          &facts.format_version);
    return EPCTX_OK;
}

static epctx_span directory_of(const binary_source *source) {
    epctx_span document, fields = {NULL, 0};
    if (binary_part(source->bytes, binary_u64(source->bytes, 24), binary_u64(source->bytes, 32),
                    &document))
        (void)binary_bson_open(document, &fields);
    return fields;
}

static bool is_map(const binary_bson *field, const char *name) {
    return field->type == BINARY_BSON_DOCUMENT && epctx_str_is(field->name, name);
}

static bool same_bytes(epctx_span a, epctx_span b) {
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

static epctx_status add_field(join *j, join_map *map, size_t source, epctx_str name,
                              const binary_bson *field, join_field **out) {
    OPS_TRY(ops_put(&map->numbers, name, (uint32_t)map->fields.count, j->error));
    OPS_TRY(ops_add(&map->fields, j->arena, sizeof **out, out, j->error));
    (*out)->field = *field;
    (*out)->source = source;
    (*out)->name = name;
    /* A number may be written wider than it was; the terminators of a document. */
    j->room += (uint64_t)field->whole.size + name.size + 64;
    return j->room <= JOIN_MOST
               ? EPCTX_OK
               : epctx_fail(j->error, EPCTX_ERR_LIMIT,
                            "together the directories of the containers would have more than %u "
                            "bytes",
                            JOIN_MOST);
}

/* -- blobs -- */

static epctx_status note_names(join *j, size_t source) {
    epctx_span rest = directory_of(&j->sources[source]), blobs;
    binary_bson field;
    while (rest.size > 0 && binary_bson_next(&rest, &field)) {
        blobs = field.document;
        while (is_map(&field, "blob_metadata_map") && blobs.size > 0) {
            binary_bson blob;
            if (!binary_bson_next(&blobs, &blob)) break;
            OPS_TRY(ops_put(&j->names, blob.name, 1, j->error));
        }
    }
    return EPCTX_OK;
}

/* A name that no graph has: "m2_<name>", "m2_<name>_2". */
static epctx_status fresh_name(join *j, size_t source, epctx_str name, epctx_str *out) {
    binary_renamed *renamed;
    epctx_str base;
    OPS_TRY(ops_join(j->arena, j->sources[source].prefix, name, &base, j->error));
    OPS_TRY(ops_free_name(j->arena, NULL, 0, &j->names, base, out, j->error));
    if (out->size > BINARY_MOST_NAME)
        return epctx_fail(j->error, EPCTX_ERR_LIMIT,
                          "graph '%S' also exists in an earlier binary, and a new name would "
                          "have more than %u bytes",
                          &name, (uint64_t)BINARY_MOST_NAME);
    OPS_TRY(ops_add(&j->renamed, j->arena, sizeof *renamed, &renamed, j->error));
    renamed->source = source;
    renamed->from = name;
    renamed->to = *out;
    return EPCTX_OK;
}

static epctx_span bytes_of(const join *j, size_t source, const binary_bson *blob) {
    epctx_span rest = blob->document, bytes = {NULL, 0};
    uint64_t at = 0, size = 0;
    binary_bson field;
    while (rest.size > 0 && binary_bson_next(&rest, &field)) {
        if (epctx_str_is(field.name, "data_offset")) at = field.number;
        if (epctx_str_is(field.name, "size")) size = field.number;
    }
    (void)binary_part(j->sources[source].bytes, at, size, &bytes); /* was checked */
    return bytes;
}

static epctx_status add_blob(join *j, size_t source, const binary_bson *blob) {
    const epctx_span bytes = bytes_of(j, source, blob);
    const uint32_t at = epctx_map_get(&j->blobs.numbers, blob->name);
    epctx_str name = blob->name;
    join_field *made;
    if (name.size == 0)
        return epctx_fail(j->error, EPCTX_ERR_CONTEXT, "has a graph without a name");
    if (at != EPCTX_MAP_NONE && field_at(&j->blobs, at)->source == source)
        return epctx_fail(j->error, EPCTX_ERR_CONTEXT, "has two graphs of the name '%S'", &name);
    j->used += bytes.size;
    if (j->used > j->sources[source].bytes.size)
        return epctx_fail(j->error, EPCTX_ERR_CONTEXT, "has graphs that overlap, up to '%S'",
                          &name);
    if (at != EPCTX_MAP_NONE && same_bytes(field_at(&j->blobs, at)->bytes, bytes)) return EPCTX_OK;
    if (at != EPCTX_MAP_NONE) OPS_TRY(fresh_name(j, source, blob->name, &name));
    if (j->blobs.fields.count == BINARY_MOST_GRAPHS)
        return epctx_fail(j->error, EPCTX_ERR_LIMIT, "together they have more than %u graphs",
                          (uint64_t)BINARY_MOST_GRAPHS);
    OPS_TRY(add_field(j, &j->blobs, source, name, blob, &made));
    made->bytes = bytes;
    return EPCTX_OK;
}

/* -- weights in other files, and what else is in a directory -- */

static epctx_status add_equal(join *j, join_map *map, size_t source, const binary_bson *field,
                              const char *what) {
    const uint32_t at = epctx_map_get(&map->numbers, field->name);
    join_field *made;
    if (at == EPCTX_MAP_NONE) return add_field(j, map, source, field->name, field, &made);
    if (same_bytes(field_at(map, at)->field.whole, field->whole)) return EPCTX_OK;
    return epctx_fail(j->error, EPCTX_ERR_EXISTS,
                      "%s '%S' is not what it is in an earlier container, '%S': compile one of the "
                      "models again, with the same EP",
                      what, &field->name, &j->sources[field_at(map, at)->source].name);
}

static epctx_status add_map(join *j, size_t source, epctx_span rest, bool blobs) {
    binary_bson field;
    while (rest.size > 0 && binary_bson_next(&rest, &field))
        OPS_TRY(blobs ? add_blob(j, source, &field)
                      : add_equal(j, &j->weights, source, &field, "the tensor"));
    return EPCTX_OK;
}

/* The program that wrote the first one counts as that of all. */
static epctx_status add_source(join *j, size_t source) {
    epctx_span rest = directory_of(&j->sources[source]);
    binary_bson field;
    j->used = 0;
    while (rest.size > 0 && binary_bson_next(&rest, &field))
        if (is_map(&field, "blob_metadata_map"))
            OPS_TRY(add_map(j, source, field.document, true));
        else if (is_map(&field, "weights_metadata_map"))
            OPS_TRY(add_map(j, source, field.document, false));
        else if (source == 0 || !epctx_str_is(field.name, "producer"))
            OPS_TRY(add_equal(j, &j->others, source, &field, "the entry"));
    return EPCTX_OK;
}

/* -- the result -- */

static uint64_t aligned(uint64_t size) {
    return (size + JOIN_BLOCK - 1) / JOIN_BLOCK * JOIN_BLOCK;
}

/* Where the blobs come, behind a head of `size` bytes. */
static epctx_status place_blobs(join *j, uint64_t head, uint64_t *size) {
    size_t i;
    *size = aligned(head);
    for (i = 0; i < j->blobs.fields.count; i++) {
        join_field *blob = field_at(&j->blobs, i);
        blob->at = *size;
        if (blob->bytes.size > (uint64_t)INT64_MAX - JOIN_BLOCK - *size)
            return epctx_fail(j->error, EPCTX_ERR_LIMIT, "together they are too large");
        *size = aligned(*size + blob->bytes.size);
    }
    return EPCTX_OK;
}

static void put_blob(epctx_text *out, const join_field *blob) {
    const size_t begin = binary_bson_begin(out, blob->name);
    epctx_span rest = blob->field.document;
    binary_bson field;
    while (rest.size > 0 && binary_bson_next(&rest, &field))
        if (epctx_str_is(field.name, "data_offset"))
            binary_bson_put_number(out, field.name, blob->at);
        else
            binary_bson_put_whole(out, &field);
    binary_bson_end(out, begin);
}

static void put_directory(const join *j, epctx_text *out) {
    const size_t all = binary_bson_begin(out, epctx_str_of(NULL));
    size_t begin = binary_bson_begin(out, epctx_str_of("blob_metadata_map")), i;
    for (i = 0; i < j->blobs.fields.count; i++) put_blob(out, field_at(&j->blobs, i));
    binary_bson_end(out, begin);
    for (i = 0; i < j->others.fields.count; i++)
        binary_bson_put_whole(out, &field_at(&j->others, i)->field);
    if (j->weights.fields.count > 0) {
        begin = binary_bson_begin(out, epctx_str_of("weights_metadata_map"));
        for (i = 0; i < j->weights.fields.count; i++)
            binary_bson_put_whole(out, &field_at(&j->weights, i)->field);
        binary_bson_end(out, begin);
    }
    binary_bson_end(out, all);
}

/* Header and directory; its size does not depend on where the blobs are. */
static size_t put_head(const join *j, char *bytes, size_t capacity) {
    epctx_text text = epctx_text_of(bytes, capacity);
    size_t i;
    epctx_text_put(&text, epctx_str_of("OVEP_BIN"));
    for (i = text.size; i < BINARY_CONTAINER_HEADER; i++) epctx_text_put_char(&text, '\0');
    put_directory(j, &text);
    binary_bson_set(bytes + 8, 1, 8);
    binary_bson_set(bytes + 16, BINARY_CONTAINER_HEADER, 8);
    binary_bson_set(bytes + 24, BINARY_CONTAINER_HEADER, 8);
    binary_bson_set(bytes + 32, text.size - BINARY_CONTAINER_HEADER, 8);
    return text.size;
}

/* Zeros up to a place, at most a block of them. */
static void put_gap(const uint8_t *zeros, uint64_t to, binary_joined *out, epctx_span *parts) {
    parts[out->part_count].data = zeros;
    parts[out->part_count++].size = (size_t)(to - out->size);
    out->size = to;
}

/* Head and blobs with zeros behind each. */
static epctx_status put_parts(join *j, binary_joined *out) {
    const size_t capacity = BINARY_CONTAINER_HEADER + (size_t)j->room + 1;
    epctx_span *parts;
    uint64_t size;
    uint8_t *zeros;
    char *head;
    size_t i;
    OPS_TRY(ops_array(j->arena, 2 * j->blobs.fields.count + 2, sizeof *parts, &parts, j->error));
    OPS_TRY(ops_array(j->arena, JOIN_BLOCK, 1, &zeros, j->error));
    OPS_TRY(ops_array(j->arena, capacity, 1, &head, j->error));
    out->parts = parts;
    parts[0].data = (const uint8_t *)head;
    parts[0].size = put_head(j, head, capacity);
    out->size = parts[0].size;
    out->part_count = 1;
    OPS_TRY(place_blobs(j, out->size, &size));
    (void)put_head(j, head, capacity);
    for (i = 0; i < j->blobs.fields.count; i++) {
        const join_field *blob = field_at(&j->blobs, i);
        put_gap(zeros, blob->at, out, parts);
        parts[out->part_count++] = blob->bytes;
        out->size += blob->bytes.size;
    }
    put_gap(zeros, size, out, parts);
    return EPCTX_OK;
}

static epctx_status join_all(join *j, binary_joined *out) {
    size_t i;
    for (i = 0; i < j->count; i++) OPS_TRY(blame(j, i, check_source(j, &j->sources[i])));
    for (i = 0; i < j->count; i++) OPS_TRY(note_names(j, i));
    for (i = 0; i < j->count; i++) OPS_TRY(blame(j, i, add_source(j, i)));
    OPS_TRY(put_parts(j, out));
    out->renamed = (const binary_renamed *)j->renamed.items;
    out->renamed_count = j->renamed.count;
    return EPCTX_OK;
}

epctx_status binary_join(const binary_source *sources, size_t count, epctx_arena *arena,
                         binary_joined *out, epctx_error *error) {
    join j;
    epctx_error_clear(error);
    memset(out, 0, sizeof *out);
    memset(&j, 0, sizeof j);
    j.sources = sources;
    j.count = count;
    j.arena = arena;
    j.error = error;
    j.room = 128; /* the names of the maps */
    epctx_map_init(&j.names, arena);
    epctx_map_init(&j.blobs.numbers, arena);
    epctx_map_init(&j.weights.numbers, arena);
    epctx_map_init(&j.others.numbers, arena);
    return join_all(&j, out);
}
