/* What a child wrote down of a QNN binary is read like any hostile input: whole, cut anywhere, with
 * any number in it changed. */
#include "epctx.h"
#include "test.h"

#include "examples/epctx/core/vendors.c"
#include "examples/epctx/ort/qnn_read.c"

static uint8_t told[4096];
static size_t used;

static void put_bytes(const void *data, size_t size) {
    memcpy(told + used, data, size);
    used += size;
}

static void put(uint32_t number) {
    put_bytes(&number, sizeof number);
}

static void put_name(const char *name) {
    put((uint32_t)strlen(name));
    put_bytes(name, strlen(name));
}

static void put_numbers(size_t count) {
    size_t i;
    for (i = 0; i < count; i++) put((uint32_t)i + 1);
}

/* A tensor [3, ?] */
static void put_value(const char *name, uint32_t type) {
    put_name(name);
    put(type);
    put(1), put(2);
    put(0), put(3);
    put(1), put(4);
}

/* In the order of qnn_ask.c: one graph with an input and an output. */
static epctx_span answer(void) {
    epctx_span span;
    used = 0;
    put(QNN_HTP);
    put_name("v2.51");
    put_numbers(9);
    put(69);
    put(1), put(1);
    put_name("graph");
    put(1);
    put(1), put_value("x", QNN_SFIXED_8);
    put(1), put_value("y", 0x0999);
    span.data = told;
    span.size = used;
    return span;
}

static epctx_arena arena;

static bool read_from(epctx_span span, binary_facts *facts) {
    epctx_arena_free(&arena);
    epctx_arena_init(&arena, NULL);
    memset(facts, 0, sizeof *facts);
    return qnn_read(span, &arena, facts);
}

static bool is(epctx_str text, const char *expected) {
    return epctx_str_is(text, expected);
}

TEST(reads_what_was_told) {
    binary_facts facts;
    const binary_graph *graph;
    CHECK(read_from(answer(), &facts), "it is not read");
    CHECK(is(facts.backend, "HTP") && is(facts.sdk, "v2.51"), "backend or SDK");
    CHECK(is(facts.core_api, "1.2.3") && is(facts.backend_api, "4.5.6"), "versions of interfaces");
    CHECK(is(facts.format_version, "7.8.9"), "version of the format");
    CHECK(facts.chip_count == 1 && is(facts.chips[0], "SM8750"), "the chip");
    CHECK(facts.graphs_known && facts.graph_count == 1, "%zu graphs", facts.graph_count);
    graph = &facts.graphs[0];
    CHECK(graph->values_known && graph->input_count == 1 && graph->output_count == 1, "values");
    CHECK_INT(graph->inputs[0].elem_type, EPCTX_ONNX_INT8);
    CHECK_INT(graph->inputs[0].dims[0], 3);
    CHECK_INT(graph->inputs[0].dims[1], -1);
    CHECK_INT(graph->outputs[0].elem_type, 0);
    CHECK(is(graph->outputs[0].type, "0x0999"), "a type that ONNX has not");
}

TEST(an_answer_that_is_cut_is_none) {
    binary_facts facts;
    epctx_span span = answer();
    while (span.size-- > 0) {
        CHECK(!read_from(span, &facts), "%zu bytes are read", span.size);
        CHECK(facts.graphs == NULL && facts.sdk.size == 0, "something changed");
    }
    span = answer();
    span.size++;
    CHECK(!read_from(span, &facts), "more behind it is taken");
}

/* Whatever the numbers are, nothing is read or allocated beyond the bounds. */
TEST(any_number_may_be_forged) {
    static const uint32_t forged[] = {
        0,         1,     2,     3,        5,        33,       4096,
        4097,      65536, 65537, 1u << 24, 1u << 28, 1u << 31, UINT32_MAX - 3,
        UINT32_MAX};
    binary_facts facts;
    size_t at, i;
    for (at = 0; at + sizeof forged[0] <= answer().size; at++) {
        for (i = 0; i < sizeof forged / sizeof forged[0]; i++) {
            const epctx_span span = answer();
            memcpy(told + at, &forged[i], sizeof forged[i]);
            CHECK(!read_from(span, &facts) || facts.graph_count <= 1, "%zu graphs of one",
                  facts.graph_count);
        }
    }
}

int main(int argc, char **argv) {
    RUN(reads_what_was_told);
    RUN(an_answer_that_is_cut_is_none);
    RUN(any_number_may_be_forged);
    epctx_arena_free(&arena);
    return test_end();
}
