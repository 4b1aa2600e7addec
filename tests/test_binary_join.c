/* Context binaries that become one (examples/epctx/binary/join.h): what is in the result, what is
 * refused; with every byte of a directory forged, and without memory. */
#include "binaries.h"
#include "test.h"

#include "examples/epctx/binary/join.h"

static epctx_arena arena;
static epctx_error error;
static binary_joined joined;

static container usual(const char *first, const char *second) {
    container c = {1024, "1.1.0", {NULL, NULL}, NULL, NULL, false};
    c.names[0] = first;
    c.names[1] = second;
    return c;
}

static epctx_status join_both(const bytes *a, const bytes *b) {
    binary_source sources[2];
    const bytes *const files[2] = {a, b};
    size_t i;
    for (i = 0; i < 2; i++) {
        sources[i].bytes.data = files[i]->data;
        sources[i].bytes.size = files[i]->size;
        sources[i].name = epctx_str_of(i == 0 ? "a.bin" : "b.bin");
        sources[i].prefix = epctx_str_of(i == 0 ? "m1_" : "m2_");
    }
    epctx_arena_free(&arena);
    epctx_arena_init(&arena, NULL);
    return binary_join(sources, 2, &arena, &joined, &error);
}

/* Takes the descriptions; the files are freed. */
static epctx_status join_of(const container *a, const container *b) {
    bytes first = openvino_container_of(a), second = openvino_container_of(b);
    static bytes kept[2]; /* the result borrows from them */
    bytes_free(&kept[0]);
    bytes_free(&kept[1]);
    kept[0] = first;
    kept[1] = second;
    return join_both(&kept[0], &kept[1]);
}

static bytes whole(void) {
    bytes b = {0};
    size_t i;
    for (i = 0; i < joined.part_count; i++)
        bytes_add(&b, joined.parts[i].data, joined.parts[i].size);
    return b;
}

/* "NAME NAME ..." of the graphs of the result, which the reader finds whole. */
static const char *graphs(void) {
    static char text[400];
    epctx_text out = epctx_text_of(text, sizeof text);
    bytes b = whole();
    epctx_span span = {b.data, b.size};
    binary_facts facts;
    size_t i;
    if (b.size != joined.size || b.size % 65536 != 0) return "of another size than told";
    if (binary_read(span, NULL, &arena, &facts, &error) != EPCTX_OK) return error.message;
    for (i = 0; i < facts.graph_count && facts.damage == NULL; i++) {
        epctx_text_put(&out, facts.graphs[i].name);
        epctx_text_put_char(&out, facts.graphs[i].values_known ? ' ' : '?');
    }
    epctx_text_put(&out, epctx_str_of(facts.damage));
    epctx_text_put_format(&out, "needs %u", (uint64_t)facts.need_count);
    bytes_free(&b);
    return text;
}

/* -- what is joined -- */

TEST(all_graphs) {
    container a = usual("a_0", "a_1"), b = usual("b_0", "b_1");
    CHECK_OK(join_of(&a, &b), error);
    CHECK_STR(graphs(), "a_0 a_1 b_0 b_1 needs 0");
    CHECK_UINT(joined.size, 5 * 65536);
    CHECK_UINT(joined.renamed_count, 0);
    a.location = "w.bin";
    CHECK_OK(join_of(&a, &b), error);
    CHECK_STR(graphs(), "a_0 a_1 b_0 b_1 needs 2");
    CHECK_OK(join_of(&b, &a), error);
    CHECK_STR(graphs(), "b_0 b_1 a_0 a_1 needs 2");
    b.location = "w.bin"; /* the same parts of the same file */
    CHECK_OK(join_of(&a, &b), error);
    CHECK_STR(graphs(), "a_0 a_1 b_0 b_1 needs 2");
}

/* The same graph once; another one of its name gets a prefix, and no name that there is. */
TEST(one_name) {
    container a = usual("p", "a_1"), b = usual("p", "m2_p");
    CHECK_OK(join_of(&a, &b), error);
    CHECK_STR(graphs(), "p a_1 m2_p needs 0");
    b.other = true;
    CHECK_OK(join_of(&a, &b), error);
    CHECK_STR(graphs(), "p a_1 m2_p_2 m2_p needs 0");
    CHECK_UINT(joined.renamed_count, 1);
    CHECK_UINT(joined.renamed[0].source, 1);
    CHECK_TRUE(epctx_str_is(joined.renamed[0].from, "p") &&
               epctx_str_is(joined.renamed[0].to, "m2_p_2"));
}

/* The result is a container like its parts: it can be joined again. */
TEST(again) {
    container a = usual("a", "b"), b = usual("c", "d"), c = usual("e", "a");
    bytes both, third;
    c.other = true;
    CHECK_OK(join_of(&a, &b), error);
    both = whole();
    third = openvino_container_of(&c);
    CHECK_OK(join_both(&both, &third), error);
    CHECK_STR(graphs(), "a b c d e m2_a needs 0");
    bytes_free(&both);
    bytes_free(&third);
}

/* More graphs than fit into a block of directory. */
TEST(large_directory) {
    enum { NAMES = 40, LENGTH = 4000 };
    static char names[2 * NAMES][LENGTH + 1];
    bytes all = {0}, next, both;
    size_t i;
    for (i = 0; i < 2 * NAMES; i++) {
        memset(names[i], 'n', LENGTH);
        snprintf(names[i], 8, "%06zu", i);
        names[i][6] = 'n';
    }
    for (i = 0; i < NAMES; i++) {
        container c = usual(names[2 * i], names[2 * i + 1]);
        c.block = 16384;
        next = openvino_container_of(&c);
        if (i == 0) {
            all = next;
            continue;
        }
        CHECK_OK(join_both(&all, &next), error);
        both = whole();
        bytes_free(&next);
        bytes_free(&all);
        all = both;
    }
    CHECK_UINT(joined.part_count, 2 + 4 * NAMES);
    CHECK_UINT(all.size, (2 * NAMES + 5) * 65536);
    bytes_free(&all);
}

/* -- what is refused -- */

TEST(refusals) {
    container a = usual("a", "b"), b = usual("c", "d");
    char name[4098];
    bytes good = openvino_container_of(&a), other;
    b.version = "1.0.0";
    CHECK_INT(join_of(&a, &b), EPCTX_ERR_EXISTS);
    CHECK_HAS(error.message, "b.bin: the entry 'version' is not what it is in an earlier "
                             "container, 'a.bin'");
    b.version = "2.0.0";
    CHECK_INT(join_of(&a, &b), EPCTX_ERR_UNSUPPORTED);
    CHECK_HAS(error.message, "b.bin: is a container of OpenVINO blobs of a version that is not "
                             "known: 2.0.0");
    b.version = "1.1.0";
    a.location = "w.bin";
    b.location = "v.bin";
    CHECK_INT(join_of(&a, &b), EPCTX_ERR_EXISTS);
    CHECK_HAS(error.message, "the tensor 'w0' is not what it is in an earlier container");
    b.location = a.location = NULL;
    b.names[1] = "c";
    CHECK_INT(join_of(&a, &b), EPCTX_ERR_CONTEXT);
    CHECK_HAS(error.message, "b.bin: has two graphs of the name 'c'");
    b.names[1] = "";
    CHECK_INT(join_of(&a, &b), EPCTX_ERR_CONTEXT);
    CHECK_HAS(error.message, "has a graph without a name");
    memset(name, 'n', sizeof name);
    name[4095] = '\0';
    a.names[0] = b.names[0] = name;
    b.names[1] = "d";
    b.other = true;
    a.block = b.block = 8192;
    CHECK_INT(join_of(&a, &b), EPCTX_ERR_LIMIT);
    CHECK_HAS(error.message, "a new name would have more than 4096 bytes");
    other = qnn_binary("SM8750", "79");
    CHECK_INT(join_both(&good, &other), EPCTX_ERR_UNSUPPORTED);
    CHECK_HAS(error.message, "b.bin: is a QNN context binary: of the binaries");
    bytes_free(&other);
    other = openvino_container_of(&b);
    other.size /= 2;
    CHECK_INT(join_both(&good, &other), EPCTX_ERR_CONTEXT);
    CHECK_HAS(error.message, "b.bin: is a container of OpenVINO blobs that is cut off");
    other.size = 0;
    CHECK_INT(join_both(&good, &other), EPCTX_ERR_UNSUPPORTED);
    bytes_free(&other);
    bytes_free(&good);
}

/* Graphs that share bytes would make the result many times as large as its parts. */
TEST(overlapping) {
    container c = usual("a", "b");
    bytes good = openvino_container_of(&c), bad;
    size_t at;
    c.names[0] = "c";
    c.names[1] = "d";
    bad = openvino_container_of(&c);
    for (at = 0; at + 17 < 300; at++) { /* each from the beginning to the end */
        if (memcmp(bad.data + at, "\x10size", 6) == 0) set_number(&bad, at + 6, bad.size, 4);
        if (memcmp(bad.data + at + 1, "data_offset", 12) == 0) set_number(&bad, at + 13, 0, 4);
    }
    CHECK_INT(join_both(&good, &bad), EPCTX_ERR_CONTEXT);
    CHECK_HAS(error.message, "b.bin: has graphs that overlap, up to 'd'");
    bytes_free(&good);
    bytes_free(&bad);
}

/* Every byte of header and directory, changed: refused, or a container that can be read. */
TEST(forged) {
    static const uint8_t values[] = {0, 1, 0x7f, 0x80, 0xff};
    container a = usual("a", "b"), b = usual("c", "d");
    bytes good, bad;
    size_t i, k, joins = 0;
    b.location = "w.bin";
    good = openvino_container_of(&a);
    bad = openvino_container_of(&b);
    for (i = 0; i < 600; i++) {
        const uint8_t before = bad.data[i];
        for (k = 0; k < sizeof values; k++) {
            bad.data[i] = values[k];
            if (join_both(&good, &bad) == EPCTX_OK) {
                bytes result = whole();
                CHECK(result.size == joined.size, "byte %zu", i);
                bytes_free(&result);
                joins++;
            } else {
                CHECK(error.message[0] != '\0', "byte %zu: no message", i);
            }
        }
        bad.data[i] = before;
    }
    CHECK_TRUE(joins > 0);
    bytes_free(&good);
    bytes_free(&bad);
}

TEST(little_memory) {
    container a = usual("a", "b"), b = usual("a", "d");
    binary_source sources[2] = {{{NULL, 0}, {NULL, 0}, {NULL, 0}},
                                {{NULL, 0}, {NULL, 0}, {NULL, 0}}};
    bytes files[2];
    counting c = {0};
    const epctx_allocator allocator = {&c, counting_alloc, counting_free};
    epctx_status status = EPCTX_ERR_NOMEM;
    size_t i;
    a.location = b.location = "w.bin";
    b.other = true;
    files[0] = openvino_container_of(&a);
    files[1] = openvino_container_of(&b);
    for (i = 0; i < 2; i++) {
        sources[i].bytes.data = files[i].data;
        sources[i].bytes.size = files[i].size;
        sources[i].name = epctx_str_of("a.bin");
        sources[i].prefix = epctx_str_of("m_");
    }
    for (c.fail_at = 1; status != EPCTX_OK && c.fail_at < 1000; c.fail_at++) {
        epctx_arena_free(&arena);
        c.calls = 0;
        epctx_arena_init(&arena, &allocator);
        status = binary_join(sources, 2, &arena, &joined, &error);
        CHECK(status == EPCTX_OK || status == EPCTX_ERR_NOMEM, "%s", error.message);
        epctx_arena_free(&arena);
        CHECK_UINT(c.alive, 0);
    }
    CHECK_INT(status, EPCTX_OK);
    CHECK_TRUE(c.fail_at > 3);
    bytes_free(&files[0]);
    bytes_free(&files[1]);
}

int main(int argc, char **argv) {
    RUN(all_graphs);
    RUN(one_name);
    RUN(again);
    RUN(large_directory);
    RUN(refusals);
    RUN(overlapping);
    RUN(forged);
    RUN(little_memory);
    epctx_arena_free(&arena);
    return test_end();
}
