/* OpenVINO's formats, which are open source: the container of the plugin EP, a file for all
 * partitions of a model ("OVEP_BIN", written by 1.8.1 in 2026 as version 1.1.0; the EP reads every
 * 1.x); blobs of the CPU plugin in it or bare (2026.4); the IR, XML beside a .bin. */
#include "bson.h"
#include "reader.h"

enum { MOST_FIELDS = 65536 };

/* -- blobs -- */

/* The text before a blob of a CPU: "meta=1.0;ov=2026.4.1;isa=Intel AVX2". */
static void note_build(binary_reading *r, epctx_span text) {
    epctx_str rest = {(const char *)text.data, text.size};
    while (rest.size > 0) {
        epctx_str value = epctx_str_cut(&rest, ';');
        const epctx_str key = epctx_str_cut(&value, '=');
        if (epctx_str_is(key, "ov") && r->facts->sdk.size == 0) r->facts->sdk = value;
        if (epctx_str_is(key, "isa") && r->facts->architecture.size == 0)
            r->facts->architecture = value;
    }
}

/* Every model begins with the same words, and each byte of it was changed by one of twelve bytes in
 * turn: so they tell these. All zero, the text is plain. */
static bool find_mask(epctx_span xml, uint8_t mask[12]) {
    static const char start[] = "<?xml version=\"1.0\"?>";
    size_t i;
    if (xml.size < sizeof start - 1) return false;
    for (i = 0; i < 12; i++) mask[i] = (uint8_t)(xml.data[i] ^ (uint8_t)start[i]);
    for (; i < sizeof start - 1; i++)
        if ((uint8_t)(xml.data[i] ^ mask[i % 12]) != (uint8_t)start[i]) return false;
    return true;
}

/* Offset and size of options, constants and model follow each other. False: another layout. */
static bool model_of(binary_reading *r, epctx_span blob, epctx_str name, epctx_span *xml) {
    uint64_t numbers[6];
    size_t i;
    for (i = 0; i < 6; i++) numbers[i] = binary_u64(blob, 8 * i);
    if (blob.size < 48 || numbers[0] != 48 || numbers[2] < numbers[0] ||
        numbers[1] != numbers[2] - numbers[0] || numbers[4] < numbers[2] ||
        numbers[3] != numbers[4] - numbers[2])
        return false;
    if (binary_part(blob, numbers[4], numbers[5], xml)) return true;
    binary_damage(r, "is cut off: the model of the blob '%S' ends at byte %u of %u", &name,
                  numbers[4] > UINT64_MAX - numbers[5] ? UINT64_MAX : numbers[4] + numbers[5],
                  (uint64_t)blob.size);
    return false;
}

static bool blob_model(binary_reading *r, epctx_span blob, binary_builder *graph) {
    epctx_span xml, text, rest = blob;
    uint8_t mask[12];
    uint64_t constants;
    if (blob.size >= 20 && memcmp(blob.data, "RR_UPCVO", 8) == 0) {
        const uint64_t size = binary_u64(blob, 12);
        if (binary_u32(blob, 8) != 1) return false; /* a newer version */
        if (!binary_part(blob, 20, size, &text)) {
            binary_damage(r, "is damaged: the blob '%S' has a text of %u bytes in %u", &graph->name,
                          size, (uint64_t)blob.size);
            return false;
        }
        note_build(r, text);
        rest.data += 20 + size;
        rest.size -= (size_t)(20 + size);
    }
    if (!model_of(r, rest, graph->name, &xml)) return false;
    if (find_mask(xml, mask) && binary_openvino_model(r, xml, mask, graph, &constants)) return true;
    if (rest.data != blob.data) /* else it may only look like one */
        binary_damage(r, "is damaged: the model in the blob '%S' is none", &graph->name);
    return false;
}

void binary_openvino_blob(binary_reading *r, epctx_span blob, epctx_str name) {
    binary_builder graph;
    epctx_binary_id id;
    bool known;
    memset(&graph, 0, sizeof graph);
    graph.name = name;
    known = blob_model(r, blob, &graph);
    epctx_binary_identify(blob, blob, blob.size, &id);
    if (id.kind == EPCTX_BINARY_ONE_BYTE)
        binary_damage(r, "is damaged: the blob '%S' is one repeated byte", &name);
    binary_add_graph(r, &graph, known);
}

void binary_read_openvino_blob(binary_reading *r) {
    binary_openvino_blob(r, r->file, epctx_str_of(NULL));
    r->facts->graphs_known = true;
}

/* -- the container -- */

static bool is_name(epctx_str name) {
    return name.size <= BINARY_MOST_NAME;
}

/* One of blob_metadata_map: {data_offset, size}. */
static bool read_blob(binary_reading *r, const binary_bson *map) {
    uint64_t at = UINT64_MAX, size = UINT64_MAX;
    epctx_span rest = map->document, blob;
    while (rest.size > 0) {
        binary_bson field;
        if (!binary_bson_next(&rest, &field)) return false;
        if (epctx_str_is(field.name, "data_offset")) at = field.number;
        if (epctx_str_is(field.name, "size")) size = field.number;
    }
    if (!is_name(map->name)) return false;
    if (binary_part(r->file, at, size, &blob)) {
        binary_openvino_blob(r, blob, map->name);
    } else {
        binary_damage(r, "is cut off: the blob '%S' has %u bytes from byte %u on, the file has %u",
                      &map->name, size, at, (uint64_t)r->file.size);
    }
    return true;
}

/* One of weights_metadata_map: {location, data_offset, size}: weights of the source model that the
 * blobs read where they are. */
static bool read_weight(binary_reading *r, const binary_bson *map) {
    binary_need need;
    epctx_span rest = map->document;
    memset(&need, 0, sizeof need);
    need.value = map->name;
    while (rest.size > 0) {
        binary_bson field;
        if (!binary_bson_next(&rest, &field)) return false;
        if (epctx_str_is(field.name, "location")) need.location = field.text;
        if (epctx_str_is(field.name, "data_offset")) need.offset = field.number;
        if (epctx_str_is(field.name, "size")) need.size = field.number;
    }
    if (need.location.size == 0 || !is_name(need.location)) return false;
    binary_add_need(r, &need);
    return true;
}

static bool read_map(binary_reading *r, epctx_span rest,
                     bool (*read)(binary_reading *r, const binary_bson *map)) {
    size_t count;
    for (count = 0; rest.size > 0 && !r->no_memory; count++) {
        binary_bson field;
        if (count == MOST_FIELDS || !binary_bson_next(&rest, &field) ||
            field.type != BINARY_BSON_DOCUMENT || !read(r, &field))
            return false;
    }
    return true;
}

/* The EP itself gives weights to the inputs of these names: the node does not have them. */
static void drop_weights(binary_reading *r) {
    const binary_need *needs = (const binary_need *)r->needs.items;
    binary_graph *graphs = (binary_graph *)r->graphs.items;
    epctx_map names;
    size_t i, k;
    epctx_map_init(&names, r->arena);
    for (i = 0; i < r->needs.count && !r->no_memory; i++)
        r->no_memory =
            needs[i].value.size > 0 && epctx_map_put(&names, needs[i].value, 1) != EPCTX_OK;
    for (i = 0; i < r->graphs.count && !r->no_memory; i++) {
        const size_t count = graphs[i].input_count;
        graphs[i].input_count = 0;
        for (k = 0; k < count; k++) {
            const binary_value input = graphs[i].inputs[k];
            if (epctx_map_get(&names, input.name) == EPCTX_MAP_NONE)
                graphs[i].inputs[graphs[i].input_count++] = input;
        }
    }
}

static const char version_key[] = "version";

/* The version stands last, and decides whether the rest is understood. */
static void note_version(binary_reading *r, epctx_span rest) {
    binary_bson field;
    while (rest.size > 0 && binary_bson_next(&rest, &field)) {
        if (field.type != BINARY_BSON_TEXT || !is_name(field.text)) continue;
        if (epctx_str_is(field.name, version_key)) r->facts->format_version = field.text;
        if (epctx_str_is(field.name, "producer")) r->facts->producer = field.text;
    }
}

static void read_directory(binary_reading *r, epctx_span rest) {
    bool good = true;
    while (rest.size > 0 && good && !r->no_memory) {
        binary_bson field;
        good = binary_bson_next(&rest, &field);
        if (good && !r->needs_only && epctx_str_is(field.name, "blob_metadata_map"))
            good = field.type == BINARY_BSON_DOCUMENT && read_map(r, field.document, read_blob);
        else if (good && epctx_str_is(field.name, "weights_metadata_map"))
            good = field.type == BINARY_BSON_DOCUMENT && read_map(r, field.document, read_weight);
    }
    if (!good) binary_damage(r, "is damaged: its directory cannot be read");
    drop_weights(r);
    r->facts->graphs_known = good;
}

void binary_read_openvino_container(binary_reading *r) {
    epctx_span document, fields;
    const uint64_t at = binary_u64(r->file, 24), size = binary_u64(r->file, 32);
    if (r->file.size < BINARY_CONTAINER_HEADER) {
        binary_damage(r, "is cut off: its header has %u bytes, it has %u",
                      (uint64_t)BINARY_CONTAINER_HEADER, (uint64_t)r->file.size);
        return;
    }
    if (binary_u64(r->file, 8) != 1) return;                /* a newer version */
    if (!binary_part(r->file, at, size, &document)) return; /* the damage is told already */
    if (!binary_bson_open(document, &fields)) {
        binary_damage(r, "is damaged: its directory cannot be read");
        return;
    }
    note_version(r, fields);
    if (epctx_str_starts(r->facts->format_version, "1.") || r->facts->format_version.size == 0)
        read_directory(r, fields);
}

/* -- the IR -- */

void binary_read_openvino_ir(binary_reading *r) {
    binary_builder graph;
    binary_need need;
    uint8_t mask[12];
    bool known;
    memset(&graph, 0, sizeof graph);
    memset(&need, 0, sizeof need);
    memset(mask, 0, sizeof mask);
    known = binary_openvino_model(r, r->file, mask, &graph, &need.size);
    need.location = epctx_str_of(BINARY_BESIDE);
    if (known && need.size > 0) binary_add_need(r, &need);
    if (!known) binary_damage(r, "is damaged: its XML does not end, or is no model");
    binary_add_graph(r, &graph, known);
    r->facts->graphs_known = known;
}
