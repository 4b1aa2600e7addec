/* unloadable.c - what an EP's author does wrong in the EPContext nodes that go to ONNX Runtime, for
 * EPs in C and in C++: linked with --wrap, it spoils the node that EPCTX_TEST_NODE names. Without
 * that it does nothing. */
#include <stdlib.h>
#include <string.h>

#include "bridge.h"

epctx_status __real_epctx_epnode_from_record(const epctx_node *record, epctx_epnode *out,
                                             epctx_error *error);
epctx_status __wrap_epctx_epnode_from_record(const epctx_node *record, epctx_epnode *out,
                                             epctx_error *error);
epctx_node __real_epctx_ort_context_node_own(const epctx_node *record);
epctx_node __wrap_epctx_ort_context_node_own(const epctx_node *record);

static bool wished(const char *what) {
    const char *wish = getenv("EPCTX_TEST_NODE");
    return wish && strcmp(wish, what) == 0;
}

epctx_status __wrap_epctx_epnode_from_record(const epctx_node *record, epctx_epnode *out,
                                             epctx_error *error) {
    const epctx_status status = __real_epctx_epnode_from_record(record, out, error);
    if (wished("zeroed")) memset(out, 0, sizeof *out);
    if (wished("main_context")) out->main_context = 7;
    if (wished("secondary")) out->main_context = 0;
    if (wished("embed_mode")) out->embed_mode = 2;
    if (wished("source")) out->source = epctx_str_of("");
    if (wished("payload")) out->ep_cache_context = epctx_str_of("");
    if (wished("path")) {
        out->embed_mode = 0;
        out->ep_cache_context = epctx_str_of("/tmp/evil.bin");
    }
    return status;
}

epctx_node __wrap_epctx_ort_context_node_own(const epctx_node *record) {
    static const epctx_attr wrong[] = {
        {.name = {"lanes", 5}, .type = EPCTX_ATTR_INT, .i = 1},
        {.name = {"lanes", 5}, .type = EPCTX_ATTR_INT, .i = 2},
        {.name = {"source", 6}, .type = EPCTX_ATTR_STRING, .s = {"another", 7}},
        {.name = {"", 0}, .type = EPCTX_ATTR_INT, .i = 3},
        {.name = {EPCTX_WEIGHTS_ATTR, sizeof EPCTX_WEIGHTS_ATTR - 1}, .type = EPCTX_ATTR_FLOAT},
    };
    static const epctx_str no_data = {NULL, 5};
    const char *const names[] = {"own_twice", "own_of_schema", "own_nameless", "own_weights"};
    epctx_node own = __real_epctx_ort_context_node_own(record);
    size_t i;
    for (i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (!wished(names[i])) continue;
        own.attrs = &wrong[i == 0 ? 0 : i + 1];
        own.attr_count = i == 0 ? 2 : 1;
    }
    if (wished("own_no_list")) {
        own.attrs = NULL;
        own.attr_count = 3;
    }
    if (wished("inputs_no_list")) {
        own.inputs = NULL;
        own.input_count = 3;
    }
    if (wished("outputs_no_list")) {
        own.outputs = NULL;
        own.output_count = 3;
    }
    if (wished("inputs_no_data")) {
        own.inputs = &no_data;
        own.input_count = 1;
    }
    if (wished("outputs_no_data")) {
        own.outputs = &no_data;
        own.output_count = 1;
    }
    return own;
}
