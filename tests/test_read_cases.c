/* Scan, check, profiles and records: what the models of the other tests do not have. */
#define _XOPEN_SOURCE 700
#include "files.h"
#include "examples/epctx/ops/lint.h"
#include "starve.h"

static const char npu[] = "EpctxNpuExecutionProvider";

/* -- records and profiles -- */

TEST(names_of_types)
{
    CHECK_STR(epctx_attr_type_name(-1), "unknown");
    CHECK_STR(epctx_attr_type_name(0), "UNDEFINED");
    CHECK_STR(epctx_attr_type_name(14), "TYPE_PROTOS");
    CHECK_STR(epctx_attr_type_name(15), "unknown");
}

/* As many sources as a profile can have. */
TEST(four_sources)
{
    epctx_profile own = *epctx_profile_find(epctx_str_of("npu"));
    epctx_epnode node = epctx_epnode_default();
    own.sources[0] = "A";
    own.sources[1] = "B";
    own.sources[2] = "C";
    own.sources[3] = "D";
    node.present |= 1u << EPCTX_EP_SOURCE;
    node.source = epctx_str_of("D");
    CHECK_INT(epctx_profile_claims(&own, &node), EPCTX_CLAIM_YES);
    node.source = epctx_str_of("E");
    CHECK_INT(epctx_profile_claims(&own, &node), EPCTX_CLAIM_NO);
}

/* -- check -- */

typedef struct findings {
    char ids[600]; /* each with a blank behind it */
} findings;

static void note_finding(void *user, const epctx_finding *finding)
{
    findings *all = (findings *)user;
    size_t used = strlen(all->ids);
    snprintf(all->ids + used, sizeof all->ids - used, "%s ", finding->info.id);
}

/* One partition name, in contexts of their own or in one. */
TEST(partitions_of_one_name)
{
    static const struct {
        int64_t embed[2];
        const char *cache[2];
        bool doubled;
    } cases[] = {
        {{0, 0}, {"c.bin", "c.bin"}, true},  {{0, 0}, {"c.bin", "d.bin"}, false},
        {{0, 1}, {"c.bin", "c.bin"}, false}, {{1, 0}, {"c.bin", "c.bin"}, false},
        {{1, 1}, {"c.bin", "c.bin"}, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bytes graph = {0}, data;
        epctx_check_opts opts = {0};
        epctx_model model;
        findings all = {{0}};
        for (int k = 0; k < 2; k++)
            add_epnode(&graph, k == 0 ? "a" : "b", "x", k == 0 ? "y" : "z", 1, cases[i].embed[k],
                       npu, "same", cases[i].cache[k], 5);
        data = end_model(&graph);
        opts.no_files = true;
        CHECK_INT(epctx_model_open_memory(&model, data.data, data.size, NULL, NULL), EPCTX_OK);
        CHECK_INT(epctx_lint(&model, &opts, note_finding, &all, NULL, NULL), EPCTX_OK);
        CHECK((strstr(all.ids, "E040 ") != NULL) == cases[i].doubled, "case %zu: %s", i, all.ids);
        epctx_model_close(&model);
        bytes_free(&data);
    }
}

/* A secondary node with a context of its own; more sidecars than are listed: the first by name. */
TEST(files_of_a_model)
{
    enum { SIDECARS = 70 };
    bytes graph = {0}, data;
    epctx_dependency *files;
    epctx_arena arena;
    epctx_model model;
    epctx_error error;
    size_t count, sidecars = 0;
    char name[40];
    CHECK_TRUE(make_root());
    for (int i = 0; i < SIDECARS; i++) {
        snprintf(name, sizeof name, "m%02d_schematic.bin", i * 37 % SIDECARS);
        make_file(at(name), "s", 1);
    }
    make_file(at("rtx.bin"), "c", 1);
    make_file(at("qnn.bin"), "c", 1);
    add_epnode(&graph, "a", "x", "y", 0, 0, "NvTensorRTRTXExecutionProvider", "p", "rtx.bin", 7);
    add_epnode(&graph, "b", "x", "z", 1, 0, "QNN", "p", "qnn.bin", 7);
    data = end_model(&graph);
    make_file(at("m.onnx"), data.data, data.size);
    CHECK_INT(epctx_model_open_file(&model, at("m.onnx"), NULL, &error), EPCTX_OK);
    epctx_arena_init(&arena, NULL);
    CHECK_OK(epctx_model_files(&model, NULL, &arena, &files, &count, &error), error);
    CHECK_UINT(count, 2 + EPCTX_MATCH_MAX);
    CHECK_TRUE(epctx_str_is(files[0].name, "rtx.bin") && files[0].required);
    for (size_t i = 0; i < count; i++) {
        if (files[i].use != EPCTX_USE_COMPANION) continue;
        snprintf(name, sizeof name, "m%02zu_schematic.bin", sidecars++);
        CHECK(epctx_str_is(files[i].name, name), "'%.*s', expected '%s'", (int)files[i].name.size,
              files[i].name.data, name);
    }
    epctx_arena_free(&arena);
    epctx_model_close(&model);
    bytes_free(&data);
    remove_root();
}

static epctx_status run_files(epctx_model *a, epctx_model *b, epctx_error *error)
{
    epctx_dependency *files;
    size_t count;
    epctx_status status = epctx_model_files(a, NULL, &a->arena, &files, &count, error);
    (void)b;
    for (size_t i = 0; status == EPCTX_OK && i < count; i++)
        starve_say("%d %.*s %d %d %s %s\n", (int)files[i].use, (int)files[i].name.size,
                   files[i].name.data, (int)files[i].required, (int)files[i].status,
                   files[i].folder, files[i].path != NULL ? files[i].path : "");
    return status;
}

/* What is reported when memory ends is true, as far as it goes. */
static epctx_status run_lint(epctx_model *a, epctx_model *b, epctx_error *error)
{
    static findings all, some;
    epctx_check_opts opts = {0};
    epctx_status status;
    (void)b;
    memset(&all, 0, sizeof all);
    memset(&some, 0, sizeof some);
    if (epctx_lint(a, &opts, note_finding, &all, NULL, NULL) != EPCTX_OK) return EPCTX_ERR_ARG;
    opts.allocator = a->arena.allocator.alloc_fn != NULL ? &a->arena.allocator : NULL;
    status = epctx_lint(a, &opts, note_finding, &some, NULL, error);
    if (strncmp(all.ids, some.ids, strlen(some.ids)) != 0 ||
        (status == EPCTX_OK && strcmp(all.ids, some.ids) != 0))
        return epctx_fail(error, EPCTX_ERR_ARG, "found '%s', with all memory '%s'", some.ids,
                          all.ids);
    return status;
}

TEST(out_of_memory)
{
    size_t runs = 0;
    for (int fill = 0; fill < 13; fill++) {
        static const starve_fn runs_of[] = {run_files, run_lint};
        bytes graph = {0}, node, data;
        char name[40], path[400];
        starve_in in;
        CHECK_TRUE(make_root());
        for (int i = 0; i < fill; i++) {
            snprintf(name, sizeof name, "c%d.bin", i);
            make_file(at(name), "c", 1);
            add_epnode(&graph, name, "x", "", 1, 0, npu, name, name, strlen(name));
        }
        make_file(at("qnn_op_trace.json"), "{}", 2);
        node = new_node("EPContext", "com.microsoft", "dlc", "x", "y");
        add_attr_int(&node, "embed_mode", 0);
        add_attr_str(&node, "source", "QNN", 3);
        add_attr_str(&node, "ep_dlc_context", "qnn_op_trace.json", 17);
        put_child(&graph, 1, &node);
        data = end_model(&graph);
        make_file(at("m.onnx"), data.data, data.size);
        snprintf(path, sizeof path, "%s", at("m.onnx"));
        memset(&in, 0, sizeof in);
        in.path[0] = path;
        in.data[1] = &data;
        for (int k = 0; k < 2; k++) {
            const char *wrong = fill == 0 ? starve(runs_of[k], &in, &runs)
                                          : starve_tables(runs_of[k], &in, &runs);
            CHECK(wrong == NULL, "operation %d, fill %d: %s", k, fill, wrong);
        }
        bytes_free(&data);
        remove_root();
    }
    printf("note %zu runs\n", runs);
}

/* -- scan -- */

typedef struct bytes_source {
    const bytes *data;
} bytes_source;

static bool read_bytes(void *user, uint64_t offset, void *out, size_t size)
{
    const bytes *b = ((const bytes_source *)user)->data;
    if (offset > b->size || size > b->size - offset) return false;
    memcpy(out, b->data + offset, size);
    return true;
}

typedef struct stream_state {
    const bytes *data;
    size_t at;
    size_t broken_at; /* reading fails there; SIZE_MAX: it ends */
} stream_state;

static bool read_stream(pb_istream_t *stream, pb_byte_t *out, size_t count)
{
    stream_state *s = (stream_state *)stream->state;
    if (s->broken_at < s->at + count) return false;
    if (count > s->data->size - s->at) {
        stream->bytes_left = 0;
        return false;
    }
    if (out != NULL) memcpy(out, s->data->data + s->at, count);
    s->at += count;
    return true;
}

static char strings_found[3 * EPCTX_SCAN_TEXT]; /* name, source, partition */

/* The last event, and the node of the main graph that was found last. */
static epctx_scan_event scan_all(epctx_scan *scan, epctx_scan *found, epctx_error *error)
{
    epctx_scan_event event;
    epctx_error_clear(error);
    while ((event = epctx_scan_next(scan, error)) != EPCTX_SCAN_END && event != EPCTX_SCAN_FAILED)
        if (event == EPCTX_SCAN_EPNODE && scan->depth == 0) {
            *found = *scan; /* its strings are those of `scan`, which goes on */
            snprintf(strings_found, sizeof strings_found, "%.*s %.*s %.*s",
                     (int)scan->node.name.size, scan->node.name.data, (int)scan->node.source.size,
                     scan->node.source.data, (int)scan->node.partition_name.size,
                     scan->node.partition_name.data);
        }
    return event;
}

/* A stream of unknown length may end between two fields of the model, and nowhere else; one that
 * fails has not ended. */
TEST(streams_that_end)
{
    bytes graph = {0}, data;
    size_t ends = 0;
    add_epnode(&graph, "n", "x", "y", 1, 1, npu, "p", "c", 1);
    data = end_model(&graph);
    for (size_t size = 0; size <= data.size; size++) {
        for (int broken = 0; broken < 2; broken++) {
            bytes part = {data.data, size, 0};
            stream_state s = {&part, 0, SIZE_MAX};
            pb_istream_t stream = {0};
            epctx_scan scan, found;
            epctx_error error;
            epctx_scan_event event;
            if (broken) {
                part.size = data.size;
                s.broken_at = size;
            }
            stream.callback = read_stream;
            stream.state = &s;
            stream.bytes_left = SIZE_MAX;
            epctx_scan_begin_stream(&scan, &stream);
            event = scan_all(&scan, &found, &error);
            ends += event == EPCTX_SCAN_END;
            CHECK(event == EPCTX_SCAN_END || error.message[0] != '\0', "%zu bytes: no message",
                  size);
            if (broken)
                CHECK(event == EPCTX_SCAN_FAILED && error.status == EPCTX_ERR_IO,
                      "broken at %zu: %s", size, epctx_status_name(error.status));
            else if (size == 0)
                CHECK(event == EPCTX_SCAN_FAILED, "an empty stream is a model");
            else if (size == data.size)
                CHECK(event == EPCTX_SCAN_END, "%s", error.message);
        }
    }
    CHECK_UINT(ends, 5); /* behind each of five fields */
    bytes_free(&data);
}

/* Numbers that do not end; attributes that no node has; a tensor in segments: the verdict is that
 * of the index. */
TEST(odd_fields)
{
    static const uint8_t endless[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                      0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    for (int turn = 0; turn < 6; turn++) {
        bytes graph = {0}, data, function = {0}, attr = {0}, tensor = {0}, segment = {0};
        bytes entry = {0};
        bytes_source bs = {&data};
        epctx_source source;
        epctx_model model;
        epctx_scan scan, found;
        epctx_error error;
        epctx_status status;
        epctx_scan_event event;
        add_epnode(&graph, "n", "x", "y", 1, 1, npu, "p", "c", 1);
        if (turn == 4) {
            put_int(&tensor, 1, 1);
            put_int(&tensor, 2, EPCTX_ONNX_FLOAT);
            put_int(&segment, 1, 0);
            put_int(&segment, 2, 1);
            put_child(&tensor, 3, &segment);
            put_str(&tensor, 8, "w");
            put_data(&tensor, 9, "1234", 4);
            put_str(&entry, 1, "offset"); /* metadata, not a place in a file */
            put_str(&entry, 2, "not a number");
            put_child(&tensor, 16, &entry);
            put_child(&graph, 5, &tensor);
        }
        data = end_model(&graph);
        if (turn == 1) bytes_add(&data, endless, sizeof endless); /* a tag, */
        if (turn == 2) { /* a value, a length */
            put_tag(&data, 1, 0);
            bytes_add(&data, endless, sizeof endless);
        }
        if (turn == 3) {
            put_tag(&data, 6, 2);
            bytes_add(&data, endless, sizeof endless);
        }
        if (turn == 5) {
            put_str(&function, 1, "F");
            put_str(&attr, 1, "source");
            put_str(&attr, 4, "value");
            put_int(&attr, 20, EPCTX_ATTR_STRING);
            put_child(&function, 11, &attr);
            put_child(&data, 25, &function);
        }
        source.user = &bs;
        source.read_fn = read_bytes;
        source.size = data.size;
        memset(&found, 0, sizeof found);
        epctx_scan_begin(&scan, &source);
        event = scan_all(&scan, &found, &error);
        status = epctx_model_open_memory(&model, data.data, data.size, NULL, NULL);
        CHECK((event == EPCTX_SCAN_END) == (status == EPCTX_OK), "turn %d: scan %s, open %s", turn,
              error.message, epctx_status_name(status));
        CHECK((status == EPCTX_OK) == (turn == 0 || turn > 3), "turn %d: %s", turn,
              epctx_status_name(status));
        epctx_model_close(&model);
        bytes_free(&data);
    }
}

/* A graph inside of a compiled node, and the node's attributes behind it. */
TEST(attributes_behind_a_graph)
{
    bytes graph = {0}, node = new_node("EPContext", "com.microsoft", "n", "x", "y"), data;
    bytes body = {0};
    bytes_source bs = {&data};
    epctx_source source;
    epctx_scan scan, found;
    epctx_error error;
    add_epnode(&body, "inner", "x", "z", 1, 1, "QNN", "inside", "d", 1);
    add_attr_graph(&node, "body", &body);
    add_attr_str(&node, "source", npu, strlen(npu));
    add_attr_str(&node, "partition_name", "p", 1);
    put_child(&graph, 1, &node);
    data = end_model(&graph);
    source.user = &bs;
    source.read_fn = read_bytes;
    source.size = data.size;
    memset(&found, 0, sizeof found);
    epctx_scan_begin(&scan, &source);
    CHECK(scan_all(&scan, &found, &error) == EPCTX_SCAN_END, "%s", error.message);
    CHECK_STR(strings_found, "n EpctxNpuExecutionProvider p");
    bytes_free(&data);
}

/* Strings of a node that are longer together than there is room: the places of all are known, and
 * what fits is kept. */
TEST(more_text_than_room)
{
    static char half[EPCTX_SCAN_TEXT * 6 / 10 + 1], whole[EPCTX_SCAN_TEXT + 2];
    for (int turn = 0; turn < 2; turn++) {
        bytes graph = {0}, data;
        bytes_source bs = {&data};
        epctx_source source;
        epctx_scan scan, found;
        epctx_error error;
        const char *first = half, *second = turn == 0 ? half : whole;
        memset(half, 'h', sizeof half - 1);
        memset(whole, 'w', sizeof whole - 1);
        add_epnode(&graph, "n", "x", "y", 1, 1, second, first, "c", 1);
        data = end_model(&graph);
        source.user = &bs;
        source.read_fn = read_bytes;
        source.size = data.size;
        memset(&found, 0, sizeof found);
        epctx_scan_begin(&scan, &source);
        CHECK(scan_all(&scan, &found, &error) == EPCTX_SCAN_END, "%s", error.message);
        CHECK_UINT(found.ranges[EPCTX_EP_SOURCE].length, strlen(second));
        CHECK_UINT(found.ranges[EPCTX_EP_PARTITION_NAME].length, strlen(first));
        CHECK_MEM(data.data + found.ranges[EPCTX_EP_SOURCE].offset, strlen(second), second,
                  strlen(second));
        CHECK_TRUE(found.node.source.size == 0 || found.node.partition_name.size == 0);
        bytes_free(&data);
    }
}

int main(int argc, char **argv)
{
    RUN(names_of_types);
    RUN(four_sources);
    RUN(partitions_of_one_name);
    RUN(files_of_a_model);
    RUN(out_of_memory);
    RUN(streams_that_end);
    RUN(odd_fields);
    RUN(attributes_behind_a_graph);
    RUN(more_text_than_room);
    return test_end();
}
