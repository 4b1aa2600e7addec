/* >>scan: the same verdict and the same nodes as the index, from memory of constant size. */
/* runs: once */
#include "build.h"
#include "rich.h"
#include "test.h"

typedef struct memory_source {
    const uint8_t *data;
    size_t size;
    uint64_t fail_from; /* reads that reach this offset fail */
} memory_source;

static bool read_memory(void *user, uint64_t offset, void *out, size_t size) {
    memory_source *m = (memory_source *)user;
    if (offset > m->size || size > m->size - offset || offset + size > m->fail_from) return false;
    memcpy(out, m->data + offset, size);
    return true;
}

typedef struct stream_state {
    const uint8_t *data;
    size_t left;
} stream_state;

static bool read_stream(pb_istream_t *stream, pb_byte_t *out, size_t count) {
    stream_state *s = (stream_state *)stream->state;
    if (count > s->left) {
        stream->bytes_left = 0;
        return false;
    }
    if (out != NULL) memcpy(out, s->data, count);
    s->data += count;
    s->left -= count;
    return true;
}

/* What was found, in a form that does not depend on the order. */
typedef struct summary {
    bool good;
    uint64_t nodes, broken, sum;
} summary;

static uint64_t mix(uint64_t h, uint64_t value) {
    return epctx_hash(&value, sizeof value, h);
}

static uint64_t node_hash(const epctx_epnode *node, const epctx_range *ranges) {
    uint64_t h =
        mix(mix(mix(node->present, (uint64_t)node->main_context), (uint64_t)node->embed_mode),
            (uint64_t)node->max_size);
    int i;
    for (i = 0; i < EPCTX_EPNODE_ATTR_COUNT; i++)
        if (i != EPCTX_EPNODE_MAIN_CONTEXT && i != EPCTX_EPNODE_EMBED_MODE &&
            i != EPCTX_EPNODE_MAX_SIZE)
            h = mix(mix(h, ranges[i].length > 0 ? ranges[i].offset : 0), ranges[i].length);
    return h;
}

static summary run_scan(epctx_scan *scan) {
    summary out = {false, 0, 0, 0};
    epctx_scan_event event;
    epctx_error error;
    while ((event = epctx_scan_next(scan, &error)) != EPCTX_SCAN_END &&
           event != EPCTX_SCAN_FAILED) {
        if (event != EPCTX_SCAN_EPNODE) continue;
        out.nodes++;
        out.broken += scan->broken;
        if (!scan->broken) out.sum += node_hash(&scan->node, scan->ranges);
    }
    out.good = event == EPCTX_SCAN_END;
    return out;
}

static summary scan_memory(const void *data, size_t size) {
    memory_source m = {(const uint8_t *)data, size, UINT64_MAX};
    epctx_reader source = {&m, read_memory, size};
    epctx_scan scan;
    epctx_scan_begin(&scan, &source);
    return run_scan(&scan);
}

static summary scan_stream(const void *data, size_t size, bool known) {
    stream_state s = {(const uint8_t *)data, size};
    pb_istream_t stream = {0};
    epctx_scan scan;
    stream.callback = read_stream;
    stream.state = &s;
    stream.bytes_left = known ? size : SIZE_MAX;
    epctx_scan_begin_stream(&scan, &stream);
    return run_scan(&scan);
}

static epctx_range range_of(epctx_str text, const void *data) {
    epctx_range range = {0, text.size};
    if (text.size > 0) range.offset = (uint64_t)(text.data - (const char *)data);
    return range;
}

/* The same from the index; `merged` tells that doubled messages make the comparison void. */
static summary index_memory(const void *data, size_t size, bool *merged) {
    summary out = {false, 0, 0, 0};
    epctx_model model;
    epctx_walk walk;
    epctx_node_view view;
    *merged = false;
    if (epctx_model_open_memory(&model, data, size, NULL, NULL) != EPCTX_OK) return out;
    out.good = true;
    *merged = model.duplicate;
    epctx_walk_begin(&walk, &model);
    while (epctx_walk_epnode(&walk, &view)) {
        epctx_epnode node;
        epctx_range ranges[EPCTX_EPNODE_ATTR_COUNT];
        memset(ranges, 0, sizeof ranges);
        out.nodes++;
        if (epctx_view_read_epnode(&view, &node, NULL) != EPCTX_OK ||
            !epctx_view_is_epnode(&view)) {
            out.broken++;
            continue;
        }
        ranges[EPCTX_EPNODE_EP_CACHE_CONTEXT] = range_of(node.ep_cache_context, data);
        ranges[EPCTX_EPNODE_EP_SDK_VERSION] = range_of(node.ep_sdk_version, data);
        ranges[EPCTX_EPNODE_ONNX_MODEL_FILENAME] = range_of(node.onnx_model_filename, data);
        ranges[EPCTX_EPNODE_HARDWARE_ARCHITECTURE] = range_of(node.hardware_architecture, data);
        ranges[EPCTX_EPNODE_PARTITION_NAME] = range_of(node.partition_name, data);
        ranges[EPCTX_EPNODE_SOURCE] = range_of(node.source, data);
        ranges[EPCTX_EPNODE_NOTES] = range_of(node.notes, data);
        out.sum += node_hash(&node, ranges);
    }
    epctx_model_close(&model);
    return out;
}

/* Index, random access and stream agree on these bytes. */
static bool agree(const void *data, size_t size, char *why, size_t room) {
    bool merged;
    summary want = index_memory(data, size, &merged);
    summary got = scan_memory(data, size);
    summary known = scan_stream(data, size, true);
    summary endless = scan_stream(data, size, false);
    /* A stream cannot look twice at a node with a graph inside. */
    bool twice = got.good && !known.good;
    if (got.good != want.good)
        snprintf(why, room, "scan says %d, the index %d", got.good, want.good);
    else if (!twice && (known.good != got.good || endless.good != got.good))
        snprintf(why, room, "scan says %d, streams %d and %d", got.good, known.good, endless.good);
    else if (want.good && !merged &&
             (got.nodes != want.nodes || got.broken != want.broken || got.sum != want.sum))
        snprintf(why, room, "scan finds %d nodes, %d broken; the index %d and %d", (int)got.nodes,
                 (int)got.broken, (int)want.nodes, (int)want.broken);
    else if (want.good && !merged && !twice && (known.sum != got.sum || endless.sum != got.sum))
        snprintf(why, room, "streams find other nodes");
    else
        return true;
    return false;
}

/* A model with everything that makes scanning hard. */
static bytes odd_model(void) {
    bytes graph = {0}, body = {0}, inner = {0}, node, attr = {0}, model, function = {0};
    const int64_t dims[] = {1, 2, -2};
    char payload[300];
    memset(payload, 0x5a, sizeof payload);
    add_epnode(&graph, "first", "x", "a", 1, 1, "QNN", "p1", payload, sizeof payload);
    add_epnode(&body, "in body", "a", "b", 1, 0, "QNN", "p2", "b.bin", 5);
    add_epnode(&inner, "inner", "a", "c", 0, 0, "QNN", "p3", "", 0);
    /* An EPContext node that owns a body: its own state must survive what is inside. */
    node = new_node("EPContext", "com.microsoft", "owner", "a", "d");
    add_attr_str(&node, "source", "QNN", 3);
    put_str(&attr, 1, "extra");
    put_child(&attr, 6, &inner);
    put_int(&attr, 20, 5);
    put_child(&node, 5, &attr);
    add_attr_str(&node, "ep_cache_context", "owned.bin", 9);
    add_attr_int(&node, "embed_mode", 0);
    put_child(&graph, 1, &node);
    node = new_node("If", "", "if", "x", "y");
    put_str(&attr, 1, "then_branch");
    put_child(&attr, 6, &body);
    put_int(&attr, 20, 5);
    put_child(&node, 5, &attr);
    put_child(&graph, 1, &node);
    add_epnode(&graph, "last", "a", "y", 2, 1, "QNN", "p4", "x", 1);
    add_value(&graph, 11, "x", 1, dims);
    model = new_model(&graph);
    node = new_node("EPContext", "", "wrong domain", "", "z");
    put_str(&function, 1, "F");
    put_child(&function, 7, &node);
    put_child(&model, 25, &function);
    /* An unknown group with a group inside. */
    put_tag(&model, 900, 3);
    put_tag(&model, 5, 3);
    put_int(&model, 1, 7);
    put_tag(&model, 5, 4);
    put_str(&model, 2, "text");
    put_tag(&model, 900, 4);
    return model;
}

TEST(finds_what_the_index_finds) {
    bytes model = odd_model();
    char why[160];
    bool merged;
    summary want = index_memory(model.data, model.size, &merged);
    CHECK_TRUE(want.good && !merged);
    CHECK_UINT(want.nodes, 6);
    CHECK_UINT(want.broken, 2);
    CHECK(agree(model.data, model.size, why, sizeof why), "%s", why);
    bytes_free(&model);
    for (int noise = 0; noise < 2; noise++) {
        model = rich_model(noise);
        CHECK(agree(model.data, model.size, why, sizeof why), "with everything: %s", why);
        bytes_free(&model);
    }
}

/* Reading fails at any place of a model with everything but its end, which may be skipped. */
TEST(read_failures_anywhere) {
    bytes model = rich_model(false);
    for (size_t limit = 0; limit < model.size - 100; limit += 5) {
        memory_source m = {model.data, model.size, limit};
        epctx_reader source = {&m, read_memory, model.size};
        epctx_error error;
        epctx_scan scan;
        epctx_scan_event event;
        epctx_scan_begin(&scan, &source);
        while ((event = epctx_scan_next(&scan, &error)) != EPCTX_SCAN_FAILED)
            CHECK(event != EPCTX_SCAN_END, "%zu bytes are enough", limit);
        CHECK_INT(error.status, EPCTX_ERR_IO);
        CHECK_INT(epctx_scan_next(&scan, NULL), EPCTX_SCAN_FAILED);
    }
    bytes_free(&model);
}

TEST(sources_of_odd_sizes) {
    static const uint64_t sizes[] = {0, UINT64_C(1) << 40, UINT64_MAX - 1};
    static const epctx_status want[] = {EPCTX_ERR_PROTOBUF, EPCTX_ERR_LIMIT, EPCTX_ERR_LIMIT};
    for (size_t i = 0; i < 3; i++) {
        memory_source m = {(const uint8_t *)"", 0, 0};
        epctx_reader source = {&m, read_memory, sizes[i]};
        epctx_error error;
        epctx_scan scan;
        epctx_scan_begin(&scan, &source);
        CHECK_INT(epctx_scan_next(&scan, &error), EPCTX_SCAN_FAILED);
        CHECK(error.status == want[i], "size %" PRIu64 ": %s", sizes[i], error.message);
    }
}

TEST(same_verdict_on_damaged_models) {
    bytes model = odd_model();
    uint8_t *copy = (uint8_t *)malloc(model.size);
    uint32_t state = 12345;
    char why[160];
    bool same = true;
    int i;
    for (i = 0; i < 60000 && same; i++) {
        uint32_t flips = 1 + random_below(&state, 3);
        size_t size = random_below(&state, 4) == 0
                          ? 1 + random_below(&state, (uint32_t)model.size - 1)
                          : model.size;
        memcpy(copy, model.data, model.size);
        while (flips-- > 0)
            copy[random_below(&state, (uint32_t)size)] = (uint8_t)random_below(&state, 256);
        same = agree(copy, size, why, sizeof why);
    }
    free(copy);
    bytes_free(&model);
    CHECK(same, "damage %d: %s", i - 1, why);
}

TEST(every_cut) {
    bytes model = odd_model();
    char why[160];
    size_t i;
    for (i = 1; i <= model.size; i++)
        CHECK(agree(model.data, i, why, sizeof why), "cut at %zu: %s", i, why);
    bytes_free(&model);
}

TEST(nesting_has_the_same_limit) {
    int levels;
    for (levels = 96; levels <= 104; levels++) {
        bytes group = {0};
        char why[160];
        int i;
        for (i = 0; i < levels; i++) put_tag(&group, 900, 3);
        for (i = 0; i < levels; i++) put_tag(&group, 900, 4);
        CHECK(agree(group.data, group.size, why, sizeof why), "%d groups: %s", levels, why);
        bytes_free(&group);
    }
    for (levels = 28; levels <= 36; levels++) {
        bytes graph = {0}, model;
        char why[160];
        int i;
        for (i = 0; i < levels; i++) {
            bytes node = new_node("If", "", "n", "", "y"), attr = {0}, outer = {0};
            put_child(&attr, 6, &graph);
            put_child(&node, 5, &attr);
            put_child(&outer, 1, &node);
            graph = outer;
        }
        model = new_model(&graph);
        CHECK(agree(model.data, model.size, why, sizeof why), "%d graphs: %s", levels, why);
        bytes_free(&model);
    }
}

TEST(events_carry_text) {
    bytes graph = {0}, model;
    memory_source m;
    epctx_reader source;
    epctx_scan scan;
    add_epnode(&graph, "n", "x", "y", 1, 0, "QNN", "p", "a.bin", 5);
    model = new_model(&graph);
    add_metadata(&model, "ep_compatibility_info.QNN", "0:1.2.3:4.5.6:7.8.9:73:0");
    m.data = model.data;
    m.size = model.size;
    m.fail_from = UINT64_MAX;
    source.user = &m;
    source.read_fn = read_memory;
    source.size = model.size;
    epctx_scan_begin(&scan, &source);
    for (;;) {
        epctx_scan_event event = epctx_scan_next(&scan, NULL);
        if (event == EPCTX_SCAN_END) break;
        CHECK_TRUE(event != EPCTX_SCAN_FAILED);
        if (event == EPCTX_SCAN_EPNODE) {
            CHECK_TRUE(epctx_str_is(scan.node.name, "n"));
            CHECK_TRUE(epctx_str_is(scan.node.source, "QNN"));
            CHECK_TRUE(epctx_str_is(scan.node.ep_cache_context, "a.bin"));
            CHECK_INT(scan.node.embed_mode, 0);
        } else if (event == EPCTX_SCAN_METADATA) {
            CHECK_TRUE(epctx_str_is(scan.key, "ep_compatibility_info.QNN"));
            CHECK_TRUE(epctx_str_is(scan.value, "0:1.2.3:4.5.6:7.8.9:73:0"));
        }
    }
    CHECK_INT(epctx_scan_next(&scan, NULL), EPCTX_SCAN_END);
    bytes_free(&model);
}

/* -- external data -- */

static bytes external_tensor(const char *name, const char *location, const char *offset,
                             const char *length) {
    bytes graph = {0}, tensor = {0};
    add_external(&graph, name, 1, location, offset, length);
    /* Without the tag and the length of the graph's field. */
    bytes_add(&tensor, graph.data + 2, graph.size - 2);
    bytes_free(&graph);
    return tensor;
}

/* Tensors with external data, wherever they can be, and a node after each. */
static bytes external_model(void) {
    bytes graph = {0}, body = {0}, attr = {0}, node, sparse = {0}, tensor, model, pair = {0};
    add_external(&graph, "first", 1, "a.bin", "4096", "16");
    add_external(&graph, "no range", 1, "a.bin", NULL, NULL);
    add_external(&graph, "odd range", 1, "b.bin", "-1", "18446744073709551616");
    add_floats(&graph, "inside", NULL, 0);
    add_external(&body, "in body", 1, "c.bin", "0018446744073709551615", "7");
    node = new_node("If", "", "if", "x", "y");
    put_str(&attr, 1, "then_branch");
    put_child(&attr, 6, &body);
    put_child(&node, 5, &attr);
    put_child(&graph, 1, &node);
    /* The tensor of an EPContext node must leave its own strings alone. */
    node = new_node("EPContext", "com.microsoft", "ep", "x", "z");
    add_attr_str(&node, "source", "QNN", 3);
    tensor = external_tensor("of node", "d.bin", "1", "2");
    put_str(&attr, 1, "notes");
    put_child(&attr, 5, &tensor);
    put_str(&attr, 4, "text behind a tensor");
    put_int(&attr, 20, EPCTX_ATTR_STRING);
    put_child(&node, 5, &attr);
    put_child(&graph, 1, &node);
    tensor = external_tensor("sparse", "e.bin", "3", "4");
    put_child(&sparse, 1, &tensor);
    put_child(&graph, 15, &sparse);
    /* Value in front of key; the last of two locations counts. */
    put_str(&pair, 2, "f.bin");
    put_str(&pair, 1, "location");
    tensor = external_tensor("swapped", "lost.bin", "5", "6");
    put_child(&tensor, 13, &pair);
    put_child(&graph, 5, &tensor);
    model = new_model(&graph);
    return model;
}

/* Scans for external data as text; the node must come out whole. */
static bool external_text(epctx_scan *scan, char *out, size_t room) {
    epctx_scan_event event;
    bool node = false;
    out[0] = '\0';
    while ((event = epctx_scan_next(scan, NULL)) != EPCTX_SCAN_END) {
        size_t used = strlen(out);
        if (event == EPCTX_SCAN_FAILED) return false;
        if (event == EPCTX_SCAN_EPNODE)
            node = epctx_str_is(scan->node.source, "QNN") && !scan->broken &&
                   epctx_str_is(scan->node.notes, "text behind a tensor");
        if (event != EPCTX_SCAN_EXTERNAL) continue;
        snprintf(out + used, room - used, "%.*s %.*s %" PRIu64 " %" PRIu64 " %u\n",
                 (int)scan->key.size, scan->key.data, (int)scan->value.size, scan->value.data,
                 scan->data.offset, scan->data.length, (unsigned)scan->depth);
    }
    return node;
}

static void begin_memory(epctx_scan *scan, memory_source *m, const bytes *model) {
    epctx_reader source = {m, read_memory, model->size};
    m->data = model->data;
    m->size = model->size;
    m->fail_from = UINT64_MAX;
    epctx_scan_begin(scan, &source);
}

TEST(external_data_at_any_depth) {
    static const char want[] = "first a.bin 4096 16 0\n"
                               "no range a.bin 0 18446744073709551615 0\n"
                               "odd range b.bin 18446744073709551615 18446744073709551615 0\n"
                               "in body c.bin 18446744073709551615 7 1\n"
                               "of node d.bin 1 2 1\n"
                               "sparse e.bin 3 4 0\n"
                               "swapped f.bin 5 6 0\n";
    bytes model = external_model();
    memory_source m;
    stream_state state = {model.data, model.size};
    pb_istream_t stream = {0};
    epctx_scan scan;
    char text[1000];
    begin_memory(&scan, &m, &model);
    CHECK_TRUE(external_text(&scan, text, sizeof text));
    CHECK_STR(text, want);
    stream.callback = read_stream;
    stream.state = &state;
    stream.bytes_left = model.size;
    epctx_scan_begin_stream(&scan, &stream);
    CHECK_TRUE(external_text(&scan, text, sizeof text));
    CHECK_STR(text, want);
    bytes_free(&model);
}

TEST(a_long_location_has_its_place) {
    bytes graph = {0}, model;
    char location[EPCTX_SCAN_TEXT + 2];
    memory_source m;
    epctx_scan scan;
    memset(location, 'a', sizeof location - 1);
    location[sizeof location - 1] = '\0';
    add_external(&graph, "w", 1, location, "1", "2");
    model = new_model(&graph);
    begin_memory(&scan, &m, &model);
    while (epctx_scan_next(&scan, NULL) != EPCTX_SCAN_EXTERNAL)
        CHECK_TRUE(scan.status == EPCTX_OK && scan.at < model.size);
    CHECK_TRUE(scan.value.data == NULL && epctx_str_is(scan.key, "w"));
    CHECK_UINT(scan.location.length, sizeof location - 1);
    CHECK_MEM(model.data + scan.location.offset, (size_t)scan.location.length, location,
              sizeof location - 1);
    CHECK_UINT(scan.data.offset, 1);
    bytes_free(&model);
}

/* -- when text is short -- */

TEST(name_source_and_partition_come_first) {
    char filler[EPCTX_SCAN_TEXT], name[41], partition[61];
    bytes node, graph = {0}, model;
    memory_source m;
    epctx_scan scan;
    memset(filler, 'f', sizeof filler);
    memset(name, 'n', 40);
    memset(partition, 'p', 60);
    name[40] = partition[60] = '\0';
    node = new_node("EPContext", "com.microsoft", name, "x", "y");
    add_attr_str(&node, "ep_sdk_version", "2.30", 4);
    add_attr_str(&node, "notes", filler, 70);
    add_attr_str(&node, "ep_cache_context", filler, 60);
    add_attr_int(&node, "embed_mode", 0);
    add_attr_str(&node, "partition_name", partition, 60);
    add_attr_str(&node, "source", "QNNExecutionProvider", 20);
    add_attr_str(&node, "hardware_architecture", "v73", 3);
    put_child(&graph, 1, &node);
    model = new_model(&graph);
    begin_memory(&scan, &m, &model);
    while (epctx_scan_next(&scan, NULL) != EPCTX_SCAN_EPNODE)
        CHECK_TRUE(scan.status == EPCTX_OK && scan.at < model.size);
    CHECK_TRUE(epctx_str_is(scan.node.name, name));
    CHECK_TRUE(epctx_str_is(scan.node.partition_name, partition));
    CHECK_TRUE(epctx_str_is(scan.node.source, "QNNExecutionProvider"));
    /* Notes made room; what came behind them was moved, not lost. */
    CHECK_TRUE(scan.node.notes.data == NULL && scan.ranges[EPCTX_EPNODE_NOTES].length == 70);
    CHECK_TRUE(epctx_str_is(scan.node.ep_sdk_version, "2.30"));
    CHECK_MEM(scan.node.ep_cache_context.data, scan.node.ep_cache_context.size, filler, 60);
    CHECK_TRUE(epctx_str_is(scan.node.hardware_architecture, "v73"));
    bytes_free(&model);
}

/* A node with a graph inside is read twice, and a stream does not go back. */
TEST(streams_do_not_go_back) {
    bytes graph = {0}, body = {0}, attr = {0}, node, model;
    pb_istream_t stream;
    epctx_scan scan;
    epctx_scan_event event;
    epctx_error error;
    char at[40];
    node = new_node("EPContext", "com.microsoft", "outer", "x", "y");
    put_str(&attr, 1, "body");
    add_node(&body, "Relu", "inner", "x", "z");
    put_child(&attr, 6, &body);
    put_int(&attr, 20, EPCTX_ATTR_GRAPH);
    put_child(&node, 5, &attr);
    put_child(&graph, 1, &node);
    model = new_model(&graph);
    stream = pb_istream_from_buffer(model.data, model.size);
    epctx_scan_begin_stream(&scan, &stream);
    do event = epctx_scan_next(&scan, &error);
    while (event != EPCTX_SCAN_END && event != EPCTX_SCAN_FAILED);
    CHECK_INT(event, EPCTX_SCAN_FAILED);
    CHECK_INT(error.status, EPCTX_ERR_UNSUPPORTED);
    CHECK_HAS(error.message, "that can go back");
    /* Its size is not known: the message has a place in it, and no end. */
    snprintf(at, sizeof at, "byte %u: ", (unsigned)error.offset);
    CHECK_HAS(error.message, at);
    bytes_free(&model);
}

/* The message says where in how many bytes. */
TEST(a_source_has_an_end) {
    bytes graph = {0}, model = new_model(&graph);
    memory_source m;
    epctx_scan scan;
    epctx_scan_event event;
    epctx_error error;
    char of[40];
    model.size--;
    begin_memory(&scan, &m, &model);
    do event = epctx_scan_next(&scan, &error);
    while (event != EPCTX_SCAN_END && event != EPCTX_SCAN_FAILED);
    CHECK_INT(event, EPCTX_SCAN_FAILED);
    snprintf(of, sizeof of, " of %u: ", (unsigned)model.size);
    CHECK_HAS(error.message, of);
    bytes_free(&model);
}

/* Places in a model have 40 bits. */
TEST(terabytes) {
    static const struct {
        uint64_t size;
        epctx_status status;
    } cases[] = {{UINT64_C(0xfffffffffe), EPCTX_ERR_IO},
                 {UINT64_C(0xffffffffff), EPCTX_ERR_LIMIT},
                 {UINT64_C(0x10000000000), EPCTX_ERR_LIMIT}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        memory_source m = {(const uint8_t *)"", 0, 0};
        epctx_reader source = {&m, read_memory, cases[i].size};
        epctx_scan scan;
        epctx_error error;
        epctx_scan_begin(&scan, &source);
        CHECK_INT(epctx_scan_next(&scan, &error), EPCTX_SCAN_FAILED);
        CHECK(error.status == cases[i].status, "case %zu: %s", i, error.message);
    }
}

TEST(read_failure_is_an_io_error) {
    bytes model = odd_model();
    memory_source m = {model.data, model.size, 40};
    epctx_reader source = {&m, read_memory, model.size};
    epctx_error error;
    epctx_scan scan;
    epctx_scan_event event;
    epctx_scan_begin(&scan, &source);
    while ((event = epctx_scan_next(&scan, &error)) > EPCTX_SCAN_END &&
           event != EPCTX_SCAN_FAILED) {
    }
    CHECK_INT(event, EPCTX_SCAN_FAILED);
    CHECK_INT(error.status, EPCTX_ERR_IO);
    CHECK_INT(epctx_scan_next(&scan, &error), EPCTX_SCAN_FAILED);
    bytes_free(&model);
}

/* A name that has no room at all takes none from what is there. */
TEST(a_name_too_long_takes_no_room) {
    static char name[EPCTX_SCAN_TEXT + 1];
    bytes graph = {0}, node = {0}, model;
    memory_source m;
    epctx_scan scan;
    epctx_scan_event event;
    memset(name, 'n', sizeof name);
    put_str(&node, 4, "EPContext");
    put_str(&node, 7, "com.microsoft");
    add_attr_str(&node, "source", "QNN", 3);
    add_attr_str(&node, "notes", "kept", 4);
    put_data(&node, 3, name, sizeof name);
    put_child(&graph, 1, &node);
    model = new_model(&graph);
    begin_memory(&scan, &m, &model);
    while ((event = epctx_scan_next(&scan, NULL)) != EPCTX_SCAN_EPNODE)
        CHECK_TRUE(event != EPCTX_SCAN_END && event != EPCTX_SCAN_FAILED);
    CHECK_UINT(scan.node.name.size, 0);
    CHECK_TRUE(epctx_str_is(scan.node.source, "QNN"));
    CHECK_TRUE(epctx_str_is(scan.node.notes, "kept"));
    bytes_free(&model);
}

static const char npu[] = "EpctxNpuExecutionProvider";

typedef struct broken_stream {
    const bytes *data;
    size_t at;
    size_t broken_at; /* reading fails there; SIZE_MAX: it ends */
} broken_stream;

static bool read_broken(pb_istream_t *stream, pb_byte_t *out, size_t count) {
    broken_stream *s = (broken_stream *)stream->state;
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
static epctx_scan_event scan_all(epctx_scan *scan, epctx_scan *found, epctx_error *error) {
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

/* A group that never ends, in the model and in a graph. */
TEST(open_groups) {
    static const uint8_t root[] = {0x4b, 0x08, 0x01};
    static const uint8_t inside[] = {0x3a, 0x02, 0x4b, 0x00, 0x08, 0x01};
    const epctx_span models[2] = {{root, sizeof root}, {inside, sizeof inside}};
    for (size_t i = 0; i < 2; i++) {
        bytes model = {0};
        memory_source m;
        epctx_scan scan, found;
        epctx_error error;
        char why[160];
        bytes_add(&model, models[i].data, models[i].size);
        begin_memory(&scan, &m, &model);
        CHECK_INT(scan_all(&scan, &found, &error), EPCTX_SCAN_FAILED);
        CHECK_INT(error.status, EPCTX_ERR_PROTOBUF);
        CHECK(agree(model.data, model.size, why, sizeof why), "%s", why);
        bytes_free(&model);
    }
}

/* A stream of unknown length may end between two fields of the model, and nowhere else; one that
 * fails has not ended. */
TEST(streams_that_end) {
    bytes graph = {0}, data;
    size_t ends = 0;
    add_epnode(&graph, "n", "x", "y", 1, 1, npu, "p", "c", 1);
    data = end_model(&graph);
    for (size_t size = 0; size <= data.size; size++) {
        for (int broken = 0; broken < 2; broken++) {
            bytes part = {data.data, size, 0};
            broken_stream s = {&part, 0, SIZE_MAX};
            pb_istream_t stream = {0};
            epctx_scan scan, found;
            epctx_error error;
            epctx_scan_event event;
            if (broken) {
                part.size = data.size;
                s.broken_at = size;
            }
            stream.callback = read_broken;
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
TEST(odd_fields) {
    static const uint8_t endless[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                      0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    for (int turn = 0; turn < 6; turn++) {
        bytes graph = {0}, data, function = {0}, attr = {0}, tensor = {0}, segment = {0};
        bytes entry = {0};
        memory_source m;
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
        if (turn == 2) {                                          /* a value, a length */
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
        memset(&found, 0, sizeof found);
        begin_memory(&scan, &m, &data);
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

/* A name with a zero is not the word before it. */
TEST(zero_in_a_name) {
    bytes graph = {0}, node = new_node("EPContext", "com.microsoft", "n", "x", "y"), attr = {0};
    bytes model;
    char why[160];
    put_data(&attr, 1, "source", sizeof "source");
    put_str(&attr, 4, "Other");
    put_int(&attr, 20, EPCTX_ATTR_STRING);
    add_attr_str(&node, "source", "QNN", 3);
    put_child(&node, 5, &attr);
    put_child(&graph, 1, &node);
    model = end_model(&graph);
    CHECK(agree(model.data, model.size, why, sizeof why), "%s", why);
    bytes_free(&model);
}

/* A node that ends behind its graph, but inside the file, is not given to anyone. */
TEST(node_beyond_its_graph) {
    bytes node = new_node("EPContext", "com.microsoft", "n", "x", "y"), graph = {0}, model = {0};
    epctx_scan scan;
    epctx_error error;
    memory_source m;
    add_attr_str(&node, "source", "QNN", 3);
    put_child(&graph, 1, &node);
    put_tag(&model, 7, 2);
    put_varint(&model, graph.size - 3);
    bytes_add(&model, graph.data, graph.size);
    put_str(&model, 2, "a producer");
    begin_memory(&scan, &m, &model);
    CHECK_INT(epctx_scan_next(&scan, &error), EPCTX_SCAN_FAILED);
    CHECK_INT(error.status, EPCTX_ERR_PROTOBUF);
    bytes_free(&graph);
    bytes_free(&model);
}

/* A graph inside of a compiled node, and the node's attributes behind it. */
TEST(attributes_behind_a_graph) {
    bytes graph = {0}, node = new_node("EPContext", "com.microsoft", "n", "x", "y"), data;
    bytes body = {0};
    memory_source m;
    epctx_scan scan, found;
    epctx_error error;
    add_epnode(&body, "inner", "x", "z", 1, 1, "QNN", "inside", "d", 1);
    add_attr_graph(&node, "body", &body);
    add_attr_str(&node, "source", npu, strlen(npu));
    add_attr_str(&node, "partition_name", "p", 1);
    put_child(&graph, 1, &node);
    data = end_model(&graph);
    memset(&found, 0, sizeof found);
    begin_memory(&scan, &m, &data);
    CHECK(scan_all(&scan, &found, &error) == EPCTX_SCAN_END, "%s", error.message);
    CHECK_STR(strings_found, "n EpctxNpuExecutionProvider p");
    bytes_free(&data);
}

/* Strings of a node that are longer together than there is room: the places of all are known, and
 * what fits is kept. */
TEST(more_text_than_room) {
    static char half[EPCTX_SCAN_TEXT * 6 / 10 + 1], whole[EPCTX_SCAN_TEXT + 2];
    for (int turn = 0; turn < 2; turn++) {
        bytes graph = {0}, data;
        memory_source m;
        epctx_scan scan, found;
        epctx_error error;
        const char *first = half, *second = turn == 0 ? half : whole;
        memset(half, 'h', sizeof half - 1);
        memset(whole, 'w', sizeof whole - 1);
        add_epnode(&graph, "n", "x", "y", 1, 1, second, first, "c", 1);
        data = end_model(&graph);
        memset(&found, 0, sizeof found);
        begin_memory(&scan, &m, &data);
        CHECK(scan_all(&scan, &found, &error) == EPCTX_SCAN_END, "%s", error.message);
        CHECK_UINT(found.ranges[EPCTX_EPNODE_SOURCE].length, strlen(second));
        CHECK_UINT(found.ranges[EPCTX_EPNODE_PARTITION_NAME].length, strlen(first));
        CHECK_MEM(data.data + found.ranges[EPCTX_EPNODE_SOURCE].offset, strlen(second), second,
                  strlen(second));
        CHECK_TRUE(found.node.source.size == 0 || found.node.partition_name.size == 0);
        bytes_free(&data);
    }
}

/* The room is each node's anew. */
TEST(text_of_each_node) {
    static char half[EPCTX_SCAN_TEXT * 6 / 10 + 1];
    bytes graph = {0}, data;
    memory_source m;
    epctx_scan scan;
    epctx_scan_event event;
    epctx_error error;
    int nodes = 0;
    memset(half, 'h', sizeof half - 1);
    for (int i = 0; i < 3; i++) add_epnode(&graph, "n", "x", "y", 1, 1, half, "p", "c", 1);
    data = end_model(&graph);
    begin_memory(&scan, &m, &data);
    while ((event = epctx_scan_next(&scan, &error)) == EPCTX_SCAN_EPNODE) {
        nodes++;
        CHECK(epctx_str_is(scan.node.source, half), "node %d has %zu bytes", nodes,
              scan.node.source.size);
        CHECK_TRUE(epctx_str_is(scan.node.name, "n"));
        CHECK_TRUE(epctx_str_is(scan.node.partition_name, "p"));
    }
    CHECK_INT(event, EPCTX_SCAN_END);
    CHECK_INT(nodes, 3);
    bytes_free(&data);
}

TEST(state_is_small) {
    CHECK(sizeof(epctx_scan) <= 1536, "epctx_scan has %zu bytes, at most 1536 are promised",
          sizeof(epctx_scan));
    printf("note epctx_scan: %zu bytes\n", sizeof(epctx_scan));
}

int main(int argc, char **argv) {
    RUN(finds_what_the_index_finds);
    RUN(read_failures_anywhere);
    RUN(sources_of_odd_sizes);
    RUN(same_verdict_on_damaged_models);
    RUN(open_groups);
    RUN(every_cut);
    RUN(nesting_has_the_same_limit);
    RUN(events_carry_text);
    RUN(external_data_at_any_depth);
    RUN(a_long_location_has_its_place);
    RUN(name_source_and_partition_come_first);
    RUN(streams_do_not_go_back);
    RUN(a_source_has_an_end);
    RUN(terabytes);
    RUN(read_failure_is_an_io_error);
    RUN(a_name_too_long_takes_no_room);
    RUN(streams_that_end);
    RUN(odd_fields);
    RUN(zero_in_a_name);
    RUN(node_beyond_its_graph);
    RUN(attributes_behind_a_graph);
    RUN(more_text_than_room);
    RUN(text_of_each_node);
    RUN(state_is_small);
    return test_end();
}
