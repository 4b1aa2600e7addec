/* Split: where a model can be cut, of which type the new inputs are, and whose the context is. A
 * refusal leaves the model as it was. What the parts compute is judged in test_combine.sh. */
#define _XOPEN_SOURCE 700
#include "combine.h"
#include "examples/epctx/ops/views.h"

TEST(split) {
    bytes data = chain_model("x", "y", 17), now;
    epctx_model model;
    epctx_error error;
    CHECK_INT(epctx_model_open_memory(&model, data.data, data.size, NULL, &error), EPCTX_OK);
    CHECK_OK(split_at(&model, "", "t", &error), error);
    CHECK_INT(count_of(epctx_view_graph_nodes(epctx_model_graph(&model))), 1);
    CHECK_INT(count_of(epctx_view_graph_initializers(epctx_model_graph(&model))), 1);
    epctx_edit_undo(&model, 0);
    CHECK_OK(split_at(&model, "t", "", &error), error);
    CHECK_TRUE(has_input(&model, "t"));
    CHECK_INT(count_of(epctx_view_graph_initializers(epctx_model_graph(&model))), 0);
    epctx_edit_undo(&model, 0);
    now = written(&model);
    CHECK_MEM(now.data, now.size, data.data, data.size);
    bytes_free(&now);
    epctx_model_close(&model);
    bytes_free(&data);
}

TEST(split_refusals) {
    static const struct {
        const char *input, *output;
        epctx_status status;
        const char *text;
    } cases[] = {
        {"nowhere", "", EPCTX_ERR_NOT_FOUND, "'nowhere'"},
        {"", "nowhere", EPCTX_ERR_NOT_FOUND, "'nowhere'"},
        {"t", "t", EPCTX_ERR_ARG, "'t'"},
        {"y", "t", EPCTX_ERR_GRAPH, "'x'"},
        {"w", "", EPCTX_ERR_GRAPH, "'x'"},
    };
    bytes data = chain_model("x", "y", 17), now;
    epctx_model model;
    epctx_error error;
    size_t i;
    CHECK_INT(epctx_model_open_memory(&model, data.data, data.size, NULL, &error), EPCTX_OK);
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        epctx_status status = split_at(&model, cases[i].input, cases[i].output, &error);
        CHECK(status == cases[i].status, "'%s' to '%s': %s: %s", cases[i].input, cases[i].output,
              epctx_status_name(status), error.message);
        CHECK_HAS(error.message, cases[i].text);
    }
    now = written(&model);
    CHECK_MEM(now.data, now.size, data.data, data.size);
    bytes_free(&now);
    epctx_model_close(&model);
    bytes_free(&data);
}

/* The secondary node stays alone and takes the context over. */
TEST(split_hands_the_context_over) {
    bytes data = compiled_model("EpctxNpuExecutionProvider");
    epctx_model model;
    epctx_error error;
    epctx_cursor it;
    epctx_node_view node;
    epctx_epnode ep;
    CHECK_INT(epctx_model_open_memory(&model, data.data, data.size, NULL, &error), EPCTX_OK);
    it = epctx_view_graph_nodes(epctx_model_graph(&model));
    CHECK_TRUE(epctx_next_node(&it, &node));
    CHECK_OK(epctx_edit_set_attr_int(&model, node.view, "max_size", 77, &error), error);
    CHECK_OK(split_at(&model, "t", "", &error), error);
    it = epctx_view_graph_nodes(epctx_model_graph(&model));
    CHECK_TRUE(epctx_next_node(&it, &node));
    CHECK_INT(epctx_view_read_epnode(&node, &ep, &error), EPCTX_OK);
    CHECK_INT(ep.main_context, 1);
    CHECK_INT(ep.max_size, 77);
    CHECK_TRUE(epctx_str_is(ep.ep_cache_context, "payload"));
    CHECK_TRUE(epctx_str_is(ep.partition_name, "p1"));
    epctx_model_close(&model);
    bytes_free(&data);
}

/* -- at lists of values -- */

/* Splits at lists of values, "NAME:1" for one of a type that is given. */
static epctx_status split_lists(epctx_model *model, const char *inputs, const char *outputs,
                                epctx_combined *out, epctx_error *error) {
    static char names[400];
    epctx_value values[8];
    epctx_split_opts opts = {0};
    size_t used = 0, count = 0;
    int k;
    for (k = 0; k < 2; k++) {
        const char *rest = k == 0 ? inputs : outputs;
        size_t first = count;
        while (*rest != '\0') {
            size_t size = strcspn(rest, ",:");
            memcpy(names + used, rest, size);
            names[used + size] = '\0';
            values[count] = value_named(names + used);
            used += size + 1;
            rest += size;
            if (*rest == ':') {
                values[count].elem_type = rest[1] - '0';
                rest += 2;
                values[count].rank = 1;
                values[count].dims = vector;
            }
            count++;
            rest += *rest == ',';
        }
        if (k == 0) {
            opts.inputs = values;
            opts.input_count = count;
        } else {
            opts.outputs = values + first;
            opts.output_count = count - first;
        }
    }
    return epctx_split(model, &opts, out, error);
}

/* Two contexts of an EP whose nodes share one, and secondary nodes of EPs that have one each. */
static bytes contexts_model(void) {
    bytes graph = {0}, model;
    add_epnode(&graph, "a", "x", "t", 1, 1, "EpctxNpuExecutionProvider", "p0", "one", 3);
    add_epnode(&graph, "b", "x", "u", 1, 1, "EpctxNpuExecutionProvider", "p1", "two", 3);
    add_epnode(&graph, "c", "t", "y", 0, 1, "EpctxNpuExecutionProvider", "p2", NULL, 0);
    add_epnode(&graph, "each", "t", "z", 0, 1, "MIGraphXExecutionProvider", "p3", "m", 1);
    add_epnode(&graph, "lone", "t", "alone", 0, 1, "VitisAIExecutionProvider", "p4", NULL, 0);
    add_epnode(&graph, "own", "t", "w", 0, 1, "TensorrtExecutionProvider", "p5", "m", 1);
    add_value(&graph, GRAPH_INPUT, "x", EPCTX_ONNX_FLOAT, vector);
    add_value(&graph, GRAPH_OUTPUT, "y", EPCTX_ONNX_FLOAT, vector);
    add_value(&graph, GRAPH_OUTPUT, "z", EPCTX_ONNX_FLOAT, vector);
    add_value(&graph, GRAPH_VALUE, "t", EPCTX_ONNX_FLOAT, vector);
    model = new_model(&graph);
    add_opset(&model, "com.microsoft", 1);
    return model;
}

/* x and the weight s -> t (no type) -> y; x goes straight through, too. */
static bytes untyped_model(void) {
    static const float scale[1] = {1};
    bytes graph = {0};
    add_node(&graph, "Mul", "m", "x,w", "t");
    add_node(&graph, "Mul", "n", "t,s", "y");
    add_node(&graph, "Relu", "idle", "", "nothing");
    add_floats(&graph, "w", weights, 4);
    add_floats(&graph, "s", scale, 1);
    add_value(&graph, GRAPH_INPUT, "x", EPCTX_ONNX_FLOAT, vector);
    add_value(&graph, GRAPH_INPUT, "s", EPCTX_ONNX_FLOAT, NULL);
    add_value(&graph, GRAPH_OUTPUT, "y", EPCTX_ONNX_FLOAT, vector);
    add_value(&graph, GRAPH_OUTPUT, "x", EPCTX_ONNX_FLOAT, vector);
    return new_model(&graph);
}

TEST(split_at_lists) {
    static const struct {
        bool contexts;
        const char *inputs, *outputs;
        epctx_status status;
        const char *text; /* of the error, or an input of the result */
    } cases[] = {
        {true, "t", "y", EPCTX_ERR_UNSUPPORTED, "one of several nodes"},
        {true, "t", "z", EPCTX_OK, "t"},
        {true, "t", "alone", EPCTX_OK, "t"},
        {true, "t", "w", EPCTX_OK, "t"},
        {true, "", "y,u", EPCTX_ERR_UNSUPPORTED, "one of several nodes"},
        {true, "t,t", "z", EPCTX_ERR_ARG, "input 't' is listed twice"},
        {true, "", "z,z", EPCTX_ERR_ARG, "'z' is listed twice, or as input and output"},
        {false, "t", "y", EPCTX_ERR_GRAPH, "the model has no type for 't'"},
        {false, "t:1", "y", EPCTX_OK, "t"},
        {false, "x,w", "t", EPCTX_OK, "w"},
        {false, "x,w", "t:1", EPCTX_OK, "w"},
        {false, "x,t:1", "y", EPCTX_ERR_ARG, "input 'x' has no effect"},
        {false, "", "", EPCTX_OK, "x"},
        {false, "s,x", "y", EPCTX_OK, "s"},
        {false, "", "nothing", EPCTX_OK, NULL},
    };
    size_t i;
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        static uint64_t memory[HUNGRY_BUFFER / 8];
        bytes data = cases[i].contexts ? contexts_model() : untyped_model();
        size_t room = 0, rounds;
        for (rounds = 0; rounds < 5000; rounds++) { /* every allocation fails once */
            epctx_model model;
            epctx_combined out;
            epctx_error error;
            epctx_status status;
            size_t missing;
            CHECK_INT(open_hungry(&model, NULL, &data, memory, room, &error), EPCTX_OK);
            status = split_lists(&model, cases[i].inputs, cases[i].outputs, &out, &error);
            missing = model.arena.missing;
            if (status != EPCTX_ERR_NOMEM) {
                CHECK(status == cases[i].status, "'%s' to '%s': %s: %s", cases[i].inputs,
                      cases[i].outputs, epctx_status_name(status), error.message);
                if (status != EPCTX_OK) CHECK_HAS(error.message, cases[i].text);
                if (status == EPCTX_OK && cases[i].text != NULL)
                    CHECK(has_input(&model, cases[i].text), "'%s' to '%s': '%s' is no input",
                          cases[i].inputs, cases[i].outputs, cases[i].text);
            }
            epctx_model_close(&model);
            if (status != EPCTX_ERR_NOMEM) break;
            CHECK(missing > 0, "a failure without a request");
            room += missing;
        }
        CHECK(rounds < 5000, "'%s' to '%s': it never ends", cases[i].inputs, cases[i].outputs);
        bytes_free(&data);
    }
}

/* -- at initializers -- */

typedef struct cut {
    bytes data;
    epctx_model model;
    epctx_value values[4];
    epctx_split_opts opts;
    epctx_combined out;
    epctx_error error;
} cut;

static bool cut_open(cut *c, bytes data) {
    memset(c, 0, sizeof *c);
    c->data = data;
    for (int i = 0; i < 4; i++) c->values[i].rank = -1;
    return epctx_model_open_memory(&c->model, data.data, data.size, NULL, &c->error) == EPCTX_OK;
}

/* A type (0: none) as the wish says. */
static epctx_status cut_at(cut *c, const char *input, int32_t elem, const char *output) {
    epctx_edit_undo(&c->model, 0);
    c->values[0].name = epctx_str_of(input);
    c->values[0].elem_type = elem;
    c->values[0].rank = elem != 0 ? 1 : -1;
    c->values[0].dims = vector;
    c->opts.inputs = c->values;
    c->opts.input_count = input[0] != '\0';
    c->values[1].name = epctx_str_of(output);
    c->opts.outputs = c->values + 1;
    c->opts.output_count = output[0] != '\0';
    return epctx_split(&c->model, &c->opts, &c->out, &c->error);
}

static void cut_close(cut *c) {
    epctx_model_close(&c->model);
    bytes_free(&c->data);
}

/* x, w -> two, two2 -> y; sp -> z */
static bytes cut_model(void) {
    bytes graph = {0};
    add_node(&graph, "Two", "two", "x,v,w", "two,two2");
    add_node(&graph, "Add", "add", "two,two2", "y");
    add_node(&graph, "Use", "use", "sp,x", "z");
    add_floats(&graph, "v", weights, 4);
    add_floats(&graph, "w", weights, 3);
    add_sparse_floats(&graph, "sp");
    add_ends(&graph, "x", "y");
    add_value(&graph, GRAPH_OUTPUT, "z", EPCTX_ONNX_FLOAT, vector);
    return new_model(&graph);
}

TEST(split_at_initializers) {
    epctx_value_view value;
    epctx_cursor it, dims;
    epctx_dim dim;
    cut c;
    CHECK_TRUE(cut_open(&c, cut_model()));
    /* One of two outputs is enough, and both are once. */
    CHECK_OK(cut_at(&c, "", 0, "y"), c.error);
    CHECK_STR(nodes_of(&c.model), "Two:two:xvw>twotwo2 Add:add:twotwo2>y ");
    CHECK_UINT(count_of(epctx_graph_sparse(epctx_model_graph(&c.model))), 0);
    /* The type is that of the initializer. */
    c.values[0].name = epctx_str_of("w");
    c.values[1] = c.values[0];
    c.values[1].name = epctx_str_of("x");
    epctx_edit_undo(&c.model, 0);
    c.values[3].name = epctx_str_of("y");
    c.opts.inputs = c.values;
    c.opts.input_count = 2;
    c.opts.outputs = c.values + 3;
    c.opts.output_count = 1;
    CHECK_OK(epctx_split(&c.model, &c.opts, &c.out, &c.error), c.error);
    it = epctx_view_graph_inputs(epctx_model_graph(&c.model));
    CHECK_TRUE(epctx_next_value(&it, &value) && epctx_str_is(value.name, "w"));
    dims = epctx_view_value_dims(&value);
    CHECK_TRUE(value.elem_type == EPCTX_ONNX_FLOAT && epctx_next_dim(&dims, &dim));
    CHECK_INT(dim.value, 3);
    CHECK_UINT(count_of(epctx_view_graph_initializers(epctx_model_graph(&c.model))), 1);
    /* That of a sparse one must be said. */
    c.values[0].name = epctx_str_of("sp");
    c.values[3].name = epctx_str_of("z");
    epctx_edit_undo(&c.model, 0);
    CHECK_INT(epctx_split(&c.model, &c.opts, &c.out, &c.error), EPCTX_ERR_GRAPH);
    CHECK_HAS(c.error.message, "the model has no type for 'sp'");
    CHECK(untouched(&c.model, &c.data), "a refusal changes something");
    c.values[0].elem_type = EPCTX_ONNX_FLOAT;
    CHECK_OK(epctx_split(&c.model, &c.opts, &c.out, &c.error), c.error);
    CHECK_STR(nodes_of(&c.model), "Use:use:spx>z ");
    CHECK_UINT(count_of(epctx_graph_sparse(epctx_model_graph(&c.model))), 0);
    cut_close(&c);
}

int main(int argc, char **argv) {
    RUN(split);
    RUN(split_refusals);
    RUN(split_hands_the_context_over);
    RUN(split_at_lists);
    RUN(split_at_initializers);
    return test_end();
}
