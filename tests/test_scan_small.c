/* >>scan with little memory, as a firmware sets it. */
#define EPCTX_SCAN_DEPTH 16
#define EPCTX_SCAN_TEXT  64
#define EPCTX_IMPLEMENTATION
#include "build.h"
#include "test.h"

static bool read_memory(void *user, uint64_t offset, void *out, size_t size) {
    const bytes *b = (const bytes *)user;
    if (offset > b->size || size > b->size - offset) return false;
    memcpy(out, b->data + offset, size);
    return true;
}

/* `bodies` graphs around a graph with an EPContext node. */
static bytes nested(int bodies) {
    bytes graph = {0}, model;
    add_epnode(&graph, "node", "x", "y", 1, 0, "QNN", "part", "long_name_of_a_context.bin", 26);
    while (bodies-- > 0) {
        bytes node = new_node("If", "", "if", "", "y"), attr = {0}, outer = {0};
        put_child(&attr, 6, &graph);
        put_child(&node, 5, &attr);
        put_child(&outer, 1, &node);
        graph = outer;
    }
    model = new_model(&graph);
    return model;
}

static epctx_scan_event first_event(bytes *model, epctx_scan *scan, epctx_error *error) {
    epctx_reader source = {model, read_memory, model->size};
    epctx_scan_event event;
    epctx_scan_begin(scan, &source);
    do {
        event = epctx_scan_next(scan, error);
    } while (event == EPCTX_SCAN_METADATA);
    return event;
}

TEST(real_models_fit) {
    int bodies;
    for (bodies = 0; bodies <= 4; bodies++) {
        bytes model = nested(bodies);
        epctx_scan scan;
        epctx_error error;
        epctx_scan_event event = first_event(&model, &scan, &error);
        bytes_free(&model);
        CHECK(event == EPCTX_SCAN_EPNODE, "%d bodies: %s", bodies, error.message);
        CHECK_UINT(scan.depth, bodies);
        CHECK_TRUE(epctx_str_is(scan.node.source, "QNN"));
        CHECK_TRUE(epctx_str_is(scan.node.partition_name, "part"));
    }
}

/* Not malformed, only more than there is room for. */
TEST(deeper_is_a_limit) {
    bytes model = nested(5);
    epctx_scan scan;
    epctx_error error;
    CHECK_INT(first_event(&model, &scan, &error), EPCTX_SCAN_FAILED);
    CHECK_INT(error.status, EPCTX_ERR_LIMIT);
    bytes_free(&model);
}

TEST(state_is_smaller) {
    CHECK(sizeof(epctx_scan) <= 832, "epctx_scan has %zu bytes, 832 are enough",
          sizeof(epctx_scan));
    printf("note epctx_scan, 16 levels, 64 bytes of text: %zu bytes\n", sizeof(epctx_scan));
}

int main(int argc, char **argv) {
    RUN(real_models_fit);
    RUN(deeper_is_a_limit);
    RUN(state_is_smaller);
    return test_end();
}
