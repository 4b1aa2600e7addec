/* Wrap: what a binary's model must say, by profile, and in any amount of memory. */
#define _XOPEN_SOURCE 700
#include "examples/epctx/ops/wrap.h"
#include "binaries.h"
#include "combine.h"

TEST(wrap_refusals) {
    static const struct {
        int32_t type;
        bool quantized;
        float scale;
        int64_t zero;
        const char *text;
    } cases[] = {
        {EPCTX_ONNX_STRING, false, 0, 0, "EPContext takes"},
        {EPCTX_ONNX_FLOAT, true, 1, 0, "8 or 16 bits"},
        {EPCTX_ONNX_UINT8, true, 0, 0, "scale"},
        {EPCTX_ONNX_UINT8, true, 1, 256, "zero point"},
        {EPCTX_ONNX_INT8, true, 1, -129, "zero point"},
    };
    epctx_wrap_value out = {0};
    epctx_wrap_opts opts = {0};
    epctx_model model;
    epctx_error error;
    epctx_span binary;
    size_t i;
    binary.data = (const uint8_t *)"binary";
    binary.size = 6;
    opts.profile = epctx_profile_find(epctx_str_of("qnn"));
    opts.name = "g";
    opts.embed = true;
    opts.outputs = &out;
    opts.output_count = 1;
    out.value.name = epctx_str_of("y");
    out.value.rank = 1;
    out.value.dims = vector;
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        out.value.elem_type = cases[i].type;
        out.quantized = cases[i].quantized;
        out.scale = cases[i].scale;
        out.zero_point = cases[i].zero;
        CHECK_INT(epctx_wrap(&model, binary, &opts, NULL, NULL, &error), EPCTX_ERR_ARG);
        CHECK_HAS(error.message, cases[i].text);
    }
    out.value.elem_type = EPCTX_ONNX_FLOAT;
    out.quantized = false;
    out.value.dims = (const int64_t[]){-1};
    CHECK_INT(epctx_wrap(&model, binary, &opts, NULL, NULL, &error), EPCTX_ERR_ARG);
    CHECK_HAS(error.message, "static shapes");
    out.value.dims = vector;
    opts.inputs = &out; /* input and output of one name */
    opts.input_count = 1;
    CHECK_INT(epctx_wrap(&model, binary, &opts, NULL, NULL, &error), EPCTX_ERR_ARG);
    CHECK_HAS(error.message, "'y'");
    opts.input_count = 0;
    opts.embed = false;
    CHECK_INT(epctx_wrap(&model, binary, &opts, NULL, NULL, &error), EPCTX_ERR_ARG);
    opts.binary_name = "../b.bin";
    CHECK_INT(epctx_wrap(&model, binary, &opts, NULL, NULL, &error), EPCTX_ERR_PATH);
    opts.binary_name = "b.bin";
    binary.size = 0;
    CHECK_INT(epctx_wrap(&model, binary, &opts, NULL, NULL, &error), EPCTX_ERR_ARG);
    binary.size = 6;
    CHECK_OK(epctx_wrap(&model, binary, &opts, NULL, NULL, &error), error);
    epctx_model_close(&model);
}

/* An EP that reads no files gets its binary in the model, or not at all. */
TEST(wrap_for_an_ep_without_files) {
    epctx_wrap_value out = {0};
    epctx_wrap_opts opts = {0};
    epctx_model model;
    epctx_error error;
    epctx_span binary = {(const uint8_t *)"binary", 6};
    out.value.name = epctx_str_of("y");
    out.value.elem_type = EPCTX_ONNX_FLOAT;
    out.value.rank = 1;
    out.value.dims = vector;
    opts.profile = epctx_profile_find(epctx_str_of("telum"));
    opts.name = "g";
    opts.binary_name = "b.bin";
    opts.outputs = &out;
    opts.output_count = 1;
    CHECK_INT(epctx_wrap(&model, binary, &opts, NULL, NULL, &error), EPCTX_ERR_ARG);
    CHECK_HAS(error.message, "EP 'telum' reads no files");
    opts.embed = true;
    CHECK_OK(epctx_wrap(&model, binary, &opts, NULL, NULL, &error), error);
    epctx_model_close(&model);
}

/* Shapes that are not known are for EPs that take them; a binary of 2 GiB is for no model. */
TEST(wrap_by_profile) {
    static const int64_t open_shape[] = {-1};
    epctx_wrap_value values[2];
    epctx_wrap_opts opts = {0};
    epctx_combined out;
    epctx_model model;
    epctx_error error;
    epctx_span binary = {(const uint8_t *)"binary", 6};
    memset(values, 0, sizeof values);
    for (int i = 0; i < 2; i++) {
        values[i].value.name = epctx_str_of(i == 0 ? "x" : "y");
        values[i].value.elem_type = EPCTX_ONNX_FLOAT;
        values[i].value.rank = 1;
        values[i].value.dims = open_shape;
    }
    opts.name = "g";
    opts.embed = true;
    opts.partition_name = "p";
    opts.inputs = &values[0];
    opts.outputs = &values[1];
    opts.input_count = opts.output_count = 1;
    opts.profile = epctx_profile_find(epctx_str_of("qnn"));
    CHECK_INT(epctx_wrap(&model, binary, &opts, NULL, &out, &error), EPCTX_ERR_ARG);
    CHECK_HAS(error.message, "this EP supports static shapes only");
    opts.profile = epctx_profile_find(epctx_str_of("generic"));
    opts.source = "MyEP";
    CHECK_OK(epctx_wrap(&model, binary, &opts, NULL, &out, &error), error);
    CHECK_STR(nodes_of(&model), "EPContext:g:x>y ");
    epctx_model_close(&model);
    binary.size = (size_t)EPCTX_MODEL_MAX - 9; /* never touched */
    CHECK(epctx_wrap(&model, binary, &opts, NULL, &out, &error) == EPCTX_ERR_LIMIT, "%s",
          error.message);
    CHECK_HAS(error.message, "do not embed the binary");
    CHECK(model.root == NULL, "a model that was not made is open");
}

/* Node and binary must agree, as far as the binary tells: names of graph and values, type. */
TEST(wrap_beside_the_binary) {
    static const int64_t dims[] = {2, 3};
    static const struct {
        const char *name, *partition, *x;
        int32_t type;
        const char *text; /* "": it is taken */
    } cases[] = {{"main", NULL, "x", EPCTX_ONNX_FLOAT, ""},
                 {"n", "main", "any", EPCTX_ONNX_FLOAT, ""}, /* by position */
                 {"other", NULL, "x", EPCTX_ONNX_FLOAT, "its graph is not in the binary"},
                 {"main", "p", "x", EPCTX_ONNX_FLOAT, "which has 'main' (E079)"},
                 {"main", NULL, "x", EPCTX_ONNX_INT8, "is of type int8, in the binary"}};
    epctx_wrap_value values[2];
    epctx_wrap_opts opts = {0};
    epctx_node_view node;
    epctx_model model;
    epctx_error error;
    epctx_span binary;
    bytes file = npu_binary();
    size_t i, k;
    memset(values, 0, sizeof values);
    for (i = 0; i < 2; i++) {
        values[i].value.name = epctx_str_of("y");
        values[i].value.elem_type = EPCTX_ONNX_FLOAT;
        values[i].value.rank = 2;
        values[i].value.dims = dims;
    }
    opts.profile = epctx_profile_find(epctx_str_of("npu"));
    opts.binary_name = "b.bin";
    opts.inputs = &values[0];
    opts.outputs = &values[1];
    opts.input_count = opts.output_count = 1;
    opts.overrides = "x=x;";
    binary.data = file.data;
    binary.size = file.size;
    for (i = 0; i < 2 * sizeof cases / sizeof cases[0]; i++) {
        k = i / 2;
        opts.embed = i % 2 == 1;
        opts.name = cases[k].name;
        opts.partition_name = cases[k].partition;
        values[0].value.name = epctx_str_of(cases[k].x);
        values[0].value.elem_type = cases[k].type;
        if (cases[k].text[0] != '\0') {
            CHECK_INT(epctx_wrap(&model, binary, &opts, NULL, NULL, &error), EPCTX_ERR_CONTEXT);
            CHECK_HAS(error.message, cases[k].text);
            continue;
        }
        CHECK_OK(epctx_wrap(&model, binary, &opts, NULL, NULL, &error), error);
        CHECK_HAS(sharing_of(&model), opts.embed ? "1:1:" : "main:1:0:b.bin ");
        node = node_at(&model, 0);
        CHECK_TRUE(epctx_str_is(epctx_view_node_attr_str(&node, "io_name_overrides"), "x=x;"));
        epctx_model_close(&model);
    }
    bytes_free(&file);
    put_text(&file, "<html>no</html>");
    binary.data = file.data;
    binary.size = file.size;
    CHECK_INT(epctx_wrap(&model, binary, &opts, NULL, NULL, &error), EPCTX_ERR_CONTEXT);
    CHECK_HAS(error.message, "node 'main': the binary does not fit: is an HTML page");
    bytes_free(&file);
}

/* What must be said, and values that are quantized, in any amount of memory. */
TEST(wrap_in_little_memory) {
    static uint64_t memory[HUNGRY_BUFFER / 8];
    epctx_wrap_value values[3];
    epctx_wrap_opts opts = {0};
    epctx_open_opts open = {0};
    epctx_combined out;
    epctx_model model;
    epctx_error error;
    epctx_span binary;
    epctx_status status = EPCTX_ERR_NOMEM;
    size_t i;
    int wide;
    binary.data = (const uint8_t *)"binary";
    binary.size = 6;
    memset(values, 0, sizeof values);
    for (i = 0; i < 3; i++) {
        values[i].value.name = epctx_str_of(i == 0 ? "x" : i == 1 ? "y" : "z");
        values[i].value.elem_type = i == 2 ? EPCTX_ONNX_FLOAT : EPCTX_ONNX_UINT8;
        values[i].value.rank = 1;
        values[i].value.dims = vector;
        values[i].quantized = i < 2;
        values[i].scale = 0.5f;
        values[i].zero_point = 3;
    }
    opts.inputs = values;
    opts.input_count = 1;
    opts.outputs = values + 1;
    opts.output_count = 2;
    CHECK_INT(epctx_wrap(&model, binary, NULL, NULL, NULL, NULL), EPCTX_ERR_ARG);
    CHECK_INT(epctx_wrap(&model, binary, &opts, NULL, NULL, &error), EPCTX_ERR_ARG);
    opts.profile = epctx_profile_find(epctx_str_of("qnn"));
    CHECK_INT(epctx_wrap(&model, binary, &opts, NULL, NULL, &error), EPCTX_ERR_ARG);
    opts.name = "";
    CHECK_INT(epctx_wrap(&model, binary, &opts, NULL, NULL, &error), EPCTX_ERR_ARG);
    opts.name = "g";
    opts.output_count = 0;
    CHECK_INT(epctx_wrap(&model, binary, &opts, NULL, NULL, &error), EPCTX_ERR_ARG);
    opts.output_count = 2;
    opts.profile = epctx_profile_find(epctx_str_of("generic"));
    opts.binary_name = "b.bin";
    CHECK_INT(epctx_wrap(&model, binary, &opts, NULL, NULL, &error), EPCTX_ERR_ARG);
    CHECK_HAS(error.message, "specify it");
    opts.profile = epctx_profile_find(epctx_str_of("qnn"));
    opts.source = "QNN";
    opts.partition_name = "part";
    opts.max_size = 7;
    values[0].value.name = epctx_str_of("");
    CHECK_INT(epctx_wrap(&model, binary, &opts, NULL, NULL, &error), EPCTX_ERR_ARG);
    CHECK_HAS(error.message, "a value has no name");
    values[0].value.name = epctx_str_of("x");
    values[0].scale = INFINITY;
    CHECK_INT(epctx_wrap(&model, binary, &opts, NULL, NULL, &error), EPCTX_ERR_ARG);
    values[0].scale = 0.5f;
    open.buffer = memory;
    for (wide = 0; wide < 3; wide++) {
        values[0].value.elem_type = wide == 0 ? EPCTX_ONNX_UINT8 : wide == 1 ? 4 : 5;
        values[1].value.elem_type = wide == 2 ? 5 : EPCTX_ONNX_INT8;
        for (i = 0; i < sizeof memory; i += 16) {
            open.buffer_size = i;
            status = epctx_wrap(&model, binary, &opts, &open, &out, &error);
            if (status == EPCTX_OK) break;
            CHECK(status == EPCTX_ERR_NOMEM, "%s", error.message);
            CHECK(model.root == NULL, "a model that was not made is open");
        }
        CHECK_INT(status, EPCTX_OK);
        CHECK_INT(epctx_model_opset(&model, epctx_str_of("")), wide == 0 ? 13 : 21);
        CHECK_INT(count_of(epctx_view_graph_nodes(epctx_model_graph(&model))), 3);
        CHECK_UINT(out.step_count, 3);
        CHECK_HAS(out.steps[1].text, "node 'g' of EP 'qnn' around 6 bytes, 1 inputs, 2 outputs");
        CHECK_UINT(out.file_count, 1);
        epctx_model_close(&model);
    }
}

int main(int argc, char **argv) {
    RUN(wrap_refusals);
    RUN(wrap_for_an_ep_without_files);
    RUN(wrap_by_profile);
    RUN(wrap_beside_the_binary);
    RUN(wrap_in_little_memory);
    return test_end();
}
