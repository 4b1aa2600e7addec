/* What a file is (epctx.h, >>binary), and what context binaries tell (examples/epctx/binary): a
 * small file of every kind, whole, cut everywhere, with every number forged. */
#include "binaries.h"
#include "test.h"

#include "examples/epctx/binary/binary.h"

/* -- the kinds -- */

enum { CASE_COUNT = 32 };

typedef struct kind_case {
    bytes file;
    epctx_binary_kind kind;
} kind_case;

static bytes text_of(const char *text) {
    bytes b = {0};
    put_text(&b, text);
    return b;
}

static bytes repeated(uint8_t byte, size_t size) {
    bytes b = {0};
    while (size-- > 0) bytes_add(&b, &byte, 1);
    return b;
}

static bytes noise(const char *start, size_t size) {
    bytes b = {0};
    put_text(&b, start);
    put_noise(&b, size);
    return b;
}

static bytes converted(bytes from, int how) {
    bytes b = how == 0 ? with_crlf(&from) : as_utf8(&from, how == 1);
    bytes_free(&from);
    return b;
}

static size_t all_kinds(kind_case *out) {
    size_t n = 0;
#define KIND(of, made) out[n].kind = EPCTX_BINARY_##of, out[n++].file = made
    KIND(NPU, npu_binary());
    KIND(TOY, toy_binary());
    KIND(QNN, qnn_binary("SM8750", "79"));
    KIND(QNN_DLC, dlc_binary(true));
    KIND(QNN_DLC, dlc_binary(false));
    KIND(OPENVINO_CONTAINER, openvino_container(1024, "1.1.0"));
    KIND(OPENVINO_BLOB, openvino_blob(true));
    KIND(OPENVINO_BLOB, openvino_blob(false));
    KIND(OPENVINO_BLOB, noise("ELF", 300));
    put_text(&out[n - 1].file, "OVNPU");
    KIND(OPENVINO_IR, ir_text(true));
    KIND(TENSORRT, noise("ftrt", 300));
    KIND(VITISAI, tar_file("cache.bin"));
    KIND(VITISAI, text_of("{\"backend_cache_dir\": \"a\", \"backend_cache_key\": \"b\"}"));
    KIND(ONNX, onnx_model());
    KIND(UNKNOWN, noise("", 3000));
    KIND(EMPTY, text_of(""));
    KIND(ONE_BYTE, repeated(0, 5000));
    KIND(LFS_POINTER, text_of("version https://git-lfs.github.com/spec/v1\noid sha256:12\n"));
    KIND(HTML, text_of("\n<!DOCTYPE html>\n<html><body>404</body></html>\n"));
    KIND(XML, text_of("<?xml version='1.0'?><Error><Code>AccessDenied</Code></Error>\n"));
    KIND(JSON, text_of("{\"error\": \"not found\"}\n"));
    KIND(TEXT,
         text_of("# Weights\n\nThe weights of this model are\nsomewhere else, ask for them.\n"));
    KIND(TEXT, text_of("Entry not found"));
    KIND(CRLF, converted(noise("", 6000), 0));
    KIND(CRLF, converted(onnx_model(), 0));
    KIND(UTF8, converted(onnx_model(), 1));
    KIND(UTF8, converted(qnn_binary("SM8750", "79"), 2));
    KIND(GZIP, noise("\x1f\x8b\x08", 100));
    KIND(ZIP, plain_zip());
    KIND(TAR, tar_file("models/a.onnx"));
    KIND(ORT, noise("\x18", 3));
    put_text(&out[n - 1].file, "ORTM and more");
#undef KIND
    return n;
}

static void free_kinds(kind_case *cases, size_t count) {
    while (count-- > 0) bytes_free(&cases[count].file);
}

static epctx_span span_of(const bytes *b) {
    epctx_span span = {b->data, b->size};
    return span;
}

static epctx_binary_id id_of(const bytes *b) {
    epctx_binary_id id;
    epctx_binary_identify(span_of(b), span_of(b), b->size, &id);
    return id;
}

/* Of a text or other literal, which is foreign or not. */
static epctx_binary_id id_of_data(const void *data, size_t size) {
    epctx_span span = {(const uint8_t *)data, size};
    epctx_binary_id id;
    epctx_binary_identify(span, span, span.size, &id);
    return id;
}

TEST(every_kind) {
    static kind_case cases[CASE_COUNT];
    const size_t count = all_kinds(cases);
    bool seen[EPCTX_BINARY_KIND_COUNT] = {false};
    size_t i;
    CHECK_TRUE(count <= CASE_COUNT);
    for (i = 0; i < count; i++) {
        const epctx_binary_id id = id_of(&cases[i].file);
        CHECK(id.kind == cases[i].kind, "case %zu is %s, expected kind %d", i, id.name,
              (int)cases[i].kind);
        CHECK(id.damage == NULL, "case %zu, %s %s", i, id.name, id.damage);
        CHECK_TRUE((id.cure != NULL) == (id.sort == EPCTX_BINARY_SORT_FOREIGN));
        seen[id.kind] = true;
    }
    for (i = 0; i < EPCTX_BINARY_KIND_COUNT; i++) CHECK(seen[i], "no file is of kind %zu", i);
    free_kinds(cases, count);
}

/* Only the ends are there, as of a file that is read in two pieces. */
TEST(two_ends) {
    static kind_case cases[CASE_COUNT];
    const size_t count = all_kinds(cases);
    size_t i, k;
    for (i = 0; i < count; i++) {
        const bytes *file = &cases[i].file;
        for (k = 0; k <= file->size; k += 1 + file->size / 16) {
            epctx_span first = span_of(file), last = span_of(file);
            epctx_binary_id id;
            first.size = k;
            last.data = file->data != NULL ? file->data + (file->size - k) : NULL;
            last.size = k;
            epctx_binary_identify(first, last, file->size, &id);
            if (cases[i].kind < EPCTX_BINARY_EMPTY)
                CHECK(id.sort != EPCTX_BINARY_SORT_FOREIGN || k < 64,
                      "case %zu by %zu bytes of each end is %s", i, k, id.name);
            epctx_binary_identify(first, last, 3, &id); /* it became shorter */
        }
    }
    free_kinds(cases, count);
}

/* A whole file that is larger than its windows. */
TEST(large) {
    bytes b = openvino_container(EPCTX_BINARY_WINDOW, "1.1.0"), zeros = repeated(0, 300000);
    epctx_binary_id id = id_of(&b);
    CHECK_INT(id.kind, EPCTX_BINARY_OPENVINO_CONTAINER);
    id = id_of(&zeros);
    CHECK_INT(id.kind, EPCTX_BINARY_ONE_BYTE);
    zeros.data[150000] = 1; /* between the windows */
    id = id_of(&zeros);
    CHECK_INT(id.kind, EPCTX_BINARY_UNKNOWN);
    bytes_free(&b);
    bytes_free(&zeros);
}

/* What looks foreign, and is not surely so. */
TEST(not_foreign) {
    static const char umlauts[] = "\x08\x08\x12\x03vor: \xc3\xa4\xc3\xb6\xc3\xbc "
                                  "\xc3\xa4\xc3\xb6\xc3\xbc\xc3\xa4\xc3\xb6\xc3\xbc\xc3\xa4\xc3\xb6"
                                  "\xc3\xbc\xc3\xa4\xc3\xb6\xc3\xbc\xc3\xa4\xc3\xb6\xc3\xbc\x01";
    bytes b = {0};
    size_t i;
    CHECK_INT(id_of_data("binary_data", 11).sort, EPCTX_BINARY_SORT_UNKNOWN);
    CHECK_INT(id_of_data("context\n", 8).sort, EPCTX_BINARY_SORT_UNKNOWN);
    CHECK_INT(id_of_data("{", 1).sort, EPCTX_BINARY_SORT_UNKNOWN);
    CHECK_INT(id_of_data("{ abc }", 7).sort, EPCTX_BINARY_SORT_UNKNOWN);
    CHECK_INT(id_of_data("<", 1).sort, EPCTX_BINARY_SORT_UNKNOWN);
    CHECK_INT(id_of_data("\0\0\0\0", 4).sort, EPCTX_BINARY_SORT_UNKNOWN);
    CHECK_TRUE(id_of_data(umlauts, sizeof umlauts).sort != EPCTX_BINARY_SORT_FOREIGN);
    CHECK_INT(id_of_data("<?xml version=\"1.0\"?><cnndata>\0\1\2", 33).kind,
              EPCTX_BINARY_OPENVINO_BLOB);
    /* Texts of Windows in a binary: no line end by chance. */
    put_zeros(&b, 64);
    for (i = 0; i < 100; i++) put_text(&b, "a licence in many lines\r\n");
    put_noise(&b, 9);
    CHECK_INT(id_of(&b).sort, EPCTX_BINARY_SORT_UNKNOWN);
    /* A single bare line feed in what would be one else. */
    bytes_free(&b);
    b = converted(noise("", 6000), 0);
    CHECK_INT(id_of(&b).kind, EPCTX_BINARY_CRLF);
    put_text(&b, "\1\n\1");
    CHECK_INT(id_of(&b).kind, EPCTX_BINARY_UNKNOWN);
    bytes_free(&b);
    /* A single byte that is not UTF-8. */
    b = converted(onnx_model(), 1);
    put_text(&b, "\xff zzzz");
    CHECK(id_of(&b).kind != EPCTX_BINARY_UTF8, "found %s", id_of(&b).name);
    bytes_free(&b);
    /* Weights look converted by chance; the size that a file tells is not its size after that. */
    b = npu_binary();
    for (i = 0; i < 100; i++) put_text(&b, "\x81\x01\r\n\x02\x82");
    set_number(&b, 56, b.size, 8);
    CHECK_INT(id_of(&b).kind, EPCTX_BINARY_NPU);
    put_text(&b, "\x01");
    CHECK_INT(id_of(&b).kind, EPCTX_BINARY_CRLF);
    bytes_free(&b);
}

/* -- the readers -- */

static binary_facts facts;
static epctx_arena arena;

static void read_bytes(const bytes *b) {
    epctx_error error;
    epctx_arena_free(&arena);
    epctx_arena_init(&arena, NULL);
    if (binary_read(span_of(b), NULL, &arena, &facts, &error) != EPCTX_OK)
        memset(&facts, 0, sizeof facts);
}

static bool value_is(const binary_value *value, const char *name, int32_t type, size_t rank,
                     int64_t first) {
    return epctx_str_is(value->name, name) && value->elem_type == type && value->shaped &&
           value->rank == rank && (rank == 0 || value->dims[0] == first);
}

TEST(npu) {
    bytes b = npu_binary();
    read_bytes(&b);
    CHECK(facts.damage == NULL, "it %s", facts.damage);
    CHECK_TRUE(facts.graphs_known && facts.graph_count == 1);
    CHECK_TRUE(epctx_str_is(facts.sdk, "0.1.0") && epctx_str_is(facts.architecture, "generic"));
    CHECK_TRUE(epctx_str_is(facts.graphs[0].name, "main"));
    CHECK_TRUE(value_is(&facts.graphs[0].inputs[0], "x", EPCTX_ONNX_FLOAT, 2, 2));
    CHECK_TRUE(value_is(&facts.graphs[0].outputs[0], "y", EPCTX_ONNX_FLOAT, 2, 2));
    b.data[200] ^= 1;
    read_bytes(&b);
    CHECK_HAS(facts.damage, "checksum");
    set_number(&b, 8, 4, 4); /* a newer format is not wrong */
    read_bytes(&b);
    CHECK_TRUE(facts.damage == NULL && !facts.graphs_known);
    bytes_free(&b);
}

TEST(toy) {
    bytes b = toy_binary();
    read_bytes(&b);
    CHECK(facts.damage == NULL, "it %s", facts.damage);
    CHECK_TRUE(facts.graphs_known && facts.graph_count == 1);
    CHECK_TRUE(epctx_str_is(facts.graphs[0].name, "toy_0"));
    CHECK_TRUE(value_is(&facts.graphs[0].inputs[0], "a", EPCTX_ONNX_FLOAT, 1, 2));
    CHECK_TRUE(value_is(&facts.graphs[0].outputs[0], "b", EPCTX_ONNX_FLOAT, 1, 2));
    b.data[b.size - 1] ^= 1;
    read_bytes(&b);
    CHECK_HAS(facts.damage, "checksum");
    bytes_free(&b);
}

/* That of `count` graphs, with the sum of its bytes. */
static bytes toy_of(size_t count) {
    bytes one = toy_binary(), b = {0};
    bytes_add(&b, one.data, 20);
    while (count-- > 0) bytes_add(&b, one.data + 20, one.size - 20);
    bytes_free(&one);
    return b;
}

/* More graphs than are read, and more values, are no damage; what is cut off is. */
TEST(too_many) {
    static const uint32_t counts[] = {4096, 5000, 20000};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        bytes b = toy_of(counts[i]);
        set_number(&b, 8, counts[i], 4);
        correct_toy(b.data, b.size);
        read_bytes(&b);
        CHECK(facts.damage == NULL, "of %u graphs: it %s", (unsigned)counts[i], facts.damage);
        CHECK_INT(facts.graph_count, counts[i] == 4096 ? 4096 : 0);
        CHECK_TRUE(facts.graphs_known == (counts[i] == 4096));
        b.size--;
        correct_toy(b.data, b.size);
        read_bytes(&b);
        if (counts[i] < 20000) CHECK_HAS(facts.damage, "lies outside of the file");
        bytes_free(&b);
    }
}

TEST(qnn) {
    bytes b = qnn_binary("SM8750", "79");
    read_bytes(&b);
    CHECK_TRUE(!facts.graphs_known && facts.damage == NULL);
    CHECK_TRUE(facts.chip_count == 1 && epctx_str_is(facts.chips[0], "SM8750"));
    CHECK_TRUE(epctx_str_is(facts.architecture, "v79"));
    CHECK_TRUE(epctx_str_is(facts.sdk, "v2.51.0.260929181845"));
    CHECK_TRUE(facts.vtcm_size == 8388608);
    bytes_free(&b);
    b = qnn_binary("UNKNOWN_SDM", "0");
    read_bytes(&b);
    CHECK_TRUE(facts.chip_count == 0 && facts.architecture.size == 0);
    bytes_free(&b);
}

TEST(dlc) {
    int wide;
    for (wide = 0; wide < 2; wide++) {
        bytes b = dlc_binary(wide == 1);
        read_bytes(&b);
        CHECK(facts.damage == NULL, "it %s", facts.damage);
        CHECK_TRUE(facts.chip_count == 2 && epctx_str_is(facts.chips[0], "SM8750") &&
                   epctx_str_is(facts.chips[1], "SC8380XP"));
        CHECK_TRUE(epctx_str_is(facts.architecture, "v79,v73"));
        CHECK_TRUE(epctx_str_is(facts.format_version, "2.3.0"));
        b.size -= 10;
        read_bytes(&b);
        CHECK_HAS(facts.damage, "is cut off");
        b.size += 10;
        put_zeros(&b, 64); /* which programs that read ZIP files overlook */
        read_bytes(&b);
        CHECK(facts.damage == NULL && facts.chip_count == 2, "it %s", facts.damage);
        bytes_free(&b);
    }
}

TEST(container) {
    static const container weighted = {4096, "1.1.0", {"m_0", "m_1"}, "weights.bin", "x<1>", false};
    bytes b = openvino_container(4096, "1.1.0");
    read_bytes(&b);
    CHECK(facts.damage == NULL, "it %s", facts.damage);
    CHECK_TRUE(facts.graphs_known && facts.graph_count == 2 && facts.need_count == 2);
    CHECK_TRUE(epctx_str_is(facts.format_version, "1.1.0"));
    CHECK_TRUE(epctx_str_is(facts.producer, "a test") && epctx_str_is(facts.sdk, "2026.4.1"));
    CHECK_TRUE(epctx_str_is(facts.architecture, "AVX2"));
    CHECK_TRUE(epctx_str_is(facts.graphs[1].name, "m_1") && facts.graphs[1].values_known);
    CHECK_INT(facts.graphs[1].input_count, 1);
    CHECK_TRUE(value_is(&facts.graphs[1].inputs[0], "x<1>", EPCTX_ONNX_FLOAT, 2, 1));
    CHECK_TRUE(facts.graphs[1].inputs[0].dims[1] == -1);
    CHECK_TRUE(epctx_str_is(facts.graphs[1].inputs[0].aliases, "x\\,2"));
    CHECK_TRUE(value_is(&facts.graphs[1].outputs[0], "y", EPCTX_ONNX_INT8, 1, 4));
    CHECK_TRUE(epctx_str_is(facts.needs[1].location, "weights.bin") &&
               facts.needs[1].offset == 64 && facts.needs[1].size == 64);
    b.size = 4096 + 100;
    read_bytes(&b);
    CHECK_HAS(facts.damage, "is cut off: the blob 'm_0'");
    bytes_free(&b);
    b = openvino_container_of(&weighted);
    read_bytes(&b);
    CHECK(facts.damage == NULL && facts.graph_count == 2, "it %s", facts.damage);
    CHECK_INT(facts.graphs[0].input_count, 0); /* the EP gives it what is in the file */
    CHECK_INT(facts.graphs[0].output_count, 1);
    bytes_free(&b);
    b = openvino_container(4096, "2.0.0");
    read_bytes(&b);
    CHECK_TRUE(facts.damage == NULL && !facts.graphs_known);
    bytes_free(&b);
}

/* The header of a blob has 48 bytes. Another size that fits the rest is another format. */
TEST(blob_header) {
    bytes b = openvino_blob(false);
    CHECK_INT(id_of(&b).kind, EPCTX_BINARY_OPENVINO_BLOB);
    b.data[0] = 56; /* where the options begin */
    b.data[8] = 0;  /* and their size */
    CHECK_TRUE(id_of(&b).kind != EPCTX_BINARY_OPENVINO_BLOB);
    bytes_free(&b);
}

/* The padding behind the blobs may be anything, a blob may not. */
TEST(container_zeros) {
    bytes b = openvino_container(4096, "1.1.0"), blob = openvino_blob(true);
    b.data[4096 + blob.size - 1] = 0;
    b.data[b.size - 1] = 0;
    read_bytes(&b);
    CHECK(facts.damage == NULL || strstr(facts.damage, "m_0") != NULL, "it %s", facts.damage);
    memset(b.data + 4096 + blob.size / 2, 0, blob.size - blob.size / 2);
    read_bytes(&b);
    CHECK_HAS(facts.damage, "the blob 'm_0'");
    memset(b.data + 4096, 0, blob.size);
    read_bytes(&b);
    CHECK_HAS(facts.damage, "the blob 'm_0'");
    bytes_free(&b);
    bytes_free(&blob);
}

TEST(ir) {
    int named;
    for (named = 0; named < 2; named++) {
        bytes b = ir_text(named == 1);
        read_bytes(&b);
        CHECK(facts.damage == NULL, "it %s", facts.damage);
        CHECK_TRUE(facts.graphs_known && facts.graph_count == 1);
        CHECK_INT(facts.graphs[0].input_count, 1);
        CHECK_INT(facts.graphs[0].output_count, 1);
        CHECK_TRUE(value_is(&facts.graphs[0].outputs[0], "y", EPCTX_ONNX_INT8, 1, 4));
        CHECK_TRUE(epctx_str_is(facts.graphs[0].outputs[0].aliases, named == 1 ? "" : "z"));
        CHECK_TRUE(facts.need_count == 1 && facts.needs[0].size == 24 &&
                   epctx_str_is(facts.needs[0].location, "{stem}.bin"));
        bytes_free(&b);
    }
}

/* A library of a vendor that tells the rest. */
static bool answer(void *user, epctx_span file, epctx_arena *to, binary_facts *out) {
    (void)file, (void)to;
    ++*(int *)user;
    out->told_by = "a library";
    out->graphs_known = true;
    return true;
}

TEST(asked) {
    int calls = 0;
    binary_asker asker = {&calls, answer};
    bytes qnn = qnn_binary("SM8750", "79"), npu = npu_binary(), none = noise("", 100);
    epctx_error error;
    epctx_arena_free(&arena);
    epctx_arena_init(&arena, NULL);
    CHECK_INT(binary_read(span_of(&npu), &asker, &arena, &facts, &error), EPCTX_OK);
    CHECK_INT(binary_read(span_of(&none), &asker, &arena, &facts, &error), EPCTX_OK);
    CHECK_INT(calls, 0);
    CHECK_INT(binary_read(span_of(&qnn), &asker, &arena, &facts, &error), EPCTX_OK);
    CHECK_INT(calls, 1);
    CHECK_STR(facts.told_by, "a library");
    CHECK_INT(facts.chip_count, 1);
    bytes_free(&qnn);
    bytes_free(&npu);
    bytes_free(&none);
}

/* -- damage -- */

/* Everything that was told can be read, and is within its limits. */
static uint64_t touch_text(epctx_str text) {
    return text.size > 0 ? epctx_hash(text.data, text.size, 0) : 0;
}

static uint64_t touch_values(const binary_value *values, size_t count) {
    uint64_t sum = count;
    size_t i;
    for (i = 0; i < count; i++) {
        sum += touch_text(values[i].name) + touch_text(values[i].aliases);
        sum += touch_text(values[i].type) + (uint64_t)values[i].elem_type;
        if (values[i].rank > 0) sum += epctx_hash(values[i].dims, values[i].rank * 8, 0);
        sum += values[i].rank > BINARY_MOST_RANK;
    }
    return sum;
}

static uint64_t touch(void) {
    uint64_t sum = touch_text(facts.format_version) + touch_text(facts.producer) +
                   touch_text(facts.sdk) + touch_text(facts.architecture);
    size_t i;
    for (i = 0; i < facts.chip_count; i++) sum += touch_text(facts.chips[i]);
    for (i = 0; i < facts.need_count; i++) sum += touch_text(facts.needs[i].location);
    for (i = 0; i < facts.graph_count; i++) {
        sum += touch_text(facts.graphs[i].name);
        sum += touch_values(facts.graphs[i].inputs, facts.graphs[i].input_count);
        sum += touch_values(facts.graphs[i].outputs, facts.graphs[i].output_count);
    }
    return sum + (facts.damage != NULL ? strlen(facts.damage) : 0);
}

/* In memory of exactly this size, so that a sanitizer sees a byte too many. True: it is as it
 * should be. */
static bool holds(const uint8_t *data, size_t size) {
    bytes copy = {0};
    bool good;
    copy.data = (uint8_t *)malloc(size + (size == 0));
    if (copy.data == NULL) return false;
    if (size > 0) memcpy(copy.data, data, size);
    copy.size = size;
    read_bytes(&copy);
    touch();
    good = facts.id.name != NULL && facts.graph_count <= BINARY_MOST_GRAPHS;
    bytes_free(&copy);
    return good;
}

static void correct(bytes *b, epctx_binary_kind kind) {
    if (kind == EPCTX_BINARY_NPU) correct_sum(b->data, b->size);
    if (kind == EPCTX_BINARY_TOY) correct_toy(b->data, b->size);
}

TEST(every_cut) {
    static kind_case cases[CASE_COUNT];
    const size_t count = all_kinds(cases);
    size_t i, size;
    for (i = 0; i < count; i++) {
        const size_t step = 1 + cases[i].file.size / 2000;
        for (size = 0; size < cases[i].file.size; size += step) {
            CHECK(holds(cases[i].file.data, size), "case %zu, cut to %zu bytes", i, size);
            if (cases[i].kind >= EPCTX_BINARY_EMPTY || size < 80) continue;
            CHECK(facts.id.sort != EPCTX_BINARY_SORT_FOREIGN, "case %zu, cut to %zu bytes: %s", i,
                  size, facts.id.name);
        }
    }
    free_kinds(cases, count);
}

/* Each place becomes each of these numbers, of four and of eight bytes. */
TEST(every_number_forged) {
    static const uint64_t numbers[] = {0,          1,          0x7f,          0x80,
                                       0xffff,     0x7fffffff, 0x80000000,    0xffffffff,
                                       UINT64_MAX, INT64_MAX,  UINT64_MAX - 7};
    static kind_case cases[CASE_COUNT];
    const size_t count = all_kinds(cases);
    size_t i, at, k, width;
    for (i = 0; i < count; i++) {
        bytes *b = &cases[i].file;
        const size_t step = 1 + b->size / 250;
        if (cases[i].kind >= EPCTX_BINARY_EMPTY) continue; /* nothing is read of them */
        for (at = 0; at + 8 <= b->size; at += step) {
            uint8_t before[8];
            memcpy(before, b->data + at, 8);
            for (k = 0; k < 2 * sizeof numbers / sizeof numbers[0]; k++) {
                width = k % 2 == 0 ? 4 : 8;
                set_number(b, at, numbers[k / 2], width);
                CHECK(holds(b->data, b->size), "case %zu, number %zu at %zu", i, k, at);
                correct(b, cases[i].kind);
                CHECK(holds(b->data, b->size), "case %zu, number %zu at %zu, summed", i, k, at);
                memcpy(b->data + at, before, 8);
            }
        }
        correct(b, cases[i].kind);
    }
    free_kinds(cases, count);
}

/* With too little memory it says so, and with enough it tells the same. */
TEST(little_memory) {
    static kind_case cases[CASE_COUNT];
    static uint8_t room[1 << 16];
    const size_t count = all_kinds(cases);
    size_t i, size;
    for (i = 0; i < count; i++) {
        uint64_t sum;
        bool done = false;
        read_bytes(&cases[i].file);
        sum = touch();
        for (size = 0; size < sizeof room && !done; size += size < 2000 ? 16 : 1000) {
            epctx_arena little;
            epctx_error error;
            epctx_status status;
            epctx_arena_init_fixed(&little, room, size);
            status = binary_read(span_of(&cases[i].file), NULL, &little, &facts, &error);
            done = status == EPCTX_OK;
            CHECK_TRUE(done || (status == EPCTX_ERR_NOMEM && error.message[0] != '\0'));
            if (done) CHECK(touch() == sum, "case %zu differs with %zu bytes", i, size);
        }
        CHECK(done, "case %zu needs more than %zu bytes", i, sizeof room);
    }
    free_kinds(cases, count);
}

int main(int argc, char **argv) {
    RUN(every_kind);
    RUN(two_ends);
    RUN(large);
    RUN(not_foreign);
    RUN(npu);
    RUN(toy);
    RUN(too_many);
    RUN(qnn);
    RUN(dlc);
    RUN(container);
    RUN(blob_header);
    RUN(container_zeros);
    RUN(ir);
    RUN(asked);
    RUN(every_cut);
    RUN(every_number_forged);
    RUN(little_memory);
    epctx_arena_free(&arena);
    return test_end();
}
