/* Merge, split, wrap and repair: what the models of the other tests do not have. Each case says
 * what becomes of it, and a refusal leaves the models as they were. */
#define _XOPEN_SOURCE 700
#include "examples/epctx/ops/merge.h"
#include "examples/epctx/ops/split.h"
#include "examples/epctx/ops/wrap.h"
#include "files.h"

#include <time.h>

static const int64_t vector[] = {4, -1};
static const float weights[] = {1, 2, 3, 4};
static const char npu[] = "EpctxNpuExecutionProvider";
static const char ov[] = "OpenVINOExecutionProvider";

static void add_ends(bytes *graph, const char *x, const char *y)
{
    put_str(graph, 2, "g");
    add_value(graph, GRAPH_INPUT, x, EPCTX_ONNX_FLOAT, vector);
    add_value(graph, GRAPH_OUTPUT, y, EPCTX_ONNX_FLOAT, vector);
}

/* x -> one node -> y */
static bytes small_model(const char *node, const char *x, const char *y)
{
    bytes graph = {0};
    add_node(&graph, "Relu", node, x, y);
    add_ends(&graph, x, y);
    return new_model(&graph);
}

/* A node with a graph inside that makes `inner` from `captured`. */
static void add_body(bytes *graph, const char *name, const char *x, const char *y,
                     const char *captured, const char *inner)
{
    bytes body = {0}, attr = {0}, node = new_node("If", "", name, x, y);
    put_str(&body, 2, "body");
    add_node(&body, "Relu", "", captured, inner);
    add_value(&body, GRAPH_OUTPUT, inner, EPCTX_ONNX_FLOAT, vector);
    put_child(&attr, 6, &body);
    end_attr(&node, "then_branch", EPCTX_ATTR_GRAPH, &attr);
    put_child(graph, 1, &node);
}

static bytes body_model(const char *x, const char *y, const char *inner)
{
    bytes graph = {0};
    add_body(&graph, "", x, y, x, inner);
    add_ends(&graph, x, y);
    return new_model(&graph);
}

static bytes compiled(const char *node, const char *x, const char *y, const char *source,
                      const char *partition)
{
    bytes graph = {0}, model;
    add_epnode(&graph, node, x, y, 1, 1, source, partition, "payload", 7);
    add_ends(&graph, x, y);
    model = new_model(&graph);
    add_opset(&model, "com.microsoft", 1);
    return model;
}

/* -- two models and what becomes of them -- */

typedef struct pair {
    bytes data[2]; /* as they were */
    epctx_model models[2];
    epctx_part parts[2];
    epctx_merge_opts opts;
    epctx_connection link;
    epctx_combined out;
    epctx_error error;
} pair;

static void pair_begin(pair *p)
{
    memset(p, 0, sizeof *p);
    for (int i = 0; i < 2; i++)
        p->parts[i].model = &p->models[i];
}

/* Takes the bytes over. */
static bool pair_open(pair *p, bytes a, bytes b)
{
    bool good = true;
    pair_begin(p);
    p->data[0] = a;
    p->data[1] = b;
    for (int i = 0; i < 2; i++)
        good = good && epctx_model_open_memory(&p->models[i], p->data[i].data, p->data[i].size,
                                               NULL, &p->error) == EPCTX_OK;
    return good;
}

static bool pair_files(pair *p, const char *a, const char *b)
{
    bool good;
    pair_begin(p);
    good = epctx_model_open_file(&p->models[0], a, NULL, &p->error) == EPCTX_OK &&
           epctx_model_open_file(&p->models[1], b, NULL, &p->error) == EPCTX_OK;
    for (int i = 0; i < 2 && good; i++)
        p->data[i] = written(&p->models[i]);
    return good;
}

static epctx_status pair_merge(pair *p)
{
    return epctx_merge(p->parts, 2, &p->opts, &p->out, &p->error);
}

static void pair_link(pair *p, const char *output, const char *input)
{
    p->link.from = p->link.to = EPCTX_ANY_PART;
    p->link.output = epctx_str_of(output);
    p->link.input = epctx_str_of(input);
    p->opts.connections = &p->link;
    p->opts.connection_count = 1;
}

static bool untouched(epctx_model *model, const bytes *data)
{
    bytes now = written(model);
    bool same = bytes_equal(&now, data->data, data->size);
    bytes_free(&now);
    return same;
}

static bool pair_untouched(pair *p)
{
    return untouched(&p->models[0], &p->data[0]) && untouched(&p->models[1], &p->data[1]);
}

static void pair_close(pair *p)
{
    for (int i = 0; i < 2; i++) {
        epctx_model_close(&p->models[i]);
        bytes_free(&p->data[i]);
    }
}

#define MERGES(p)      CHECK(pair_merge(p) == EPCTX_OK, "%s", (p)->error.message)
#define REFUSED(p, wanted, text)                                                                   \
    do {                                                                                           \
        CHECK(pair_merge(p) == (wanted), "%s: %s", epctx_status_name((p)->error.status),           \
              (p)->error.message);                                                                 \
        CHECK_HAS((p)->error.message, text);                                                       \
        CHECK(pair_untouched(p), "a refusal changes something");                                   \
    } while (0)

/* "op:name:inputs>outputs " of every node of the main graph. */
static const char *nodes_of(const epctx_model *model)
{
    static char text[2000];
    epctx_cursor it = epctx_graph_nodes(epctx_model_graph(model));
    epctx_node_view node;
    size_t used = 0;
    text[0] = '\0';
    while (epctx_next_node(&it, &node)) {
        epctx_cursor names = epctx_node_inputs(&node);
        epctx_str name;
        used += (size_t)snprintf(text + used, sizeof text - used, "%.*s:%.*s:",
                                 (int)node.op_type.size, node.op_type.data, (int)node.name.size,
                                 node.name.data);
        while (epctx_next_str(&names, &name))
            used += (size_t)snprintf(text + used, sizeof text - used, "%.*s", (int)name.size,
                                     name.data);
        used += (size_t)snprintf(text + used, sizeof text - used, ">");
        names = epctx_node_outputs(&node);
        while (epctx_next_str(&names, &name))
            used += (size_t)snprintf(text + used, sizeof text - used, "%.*s", (int)name.size,
                                     name.data);
        used += (size_t)snprintf(text + used, sizeof text - used, " ");
    }
    return text;
}

static size_t count_of(epctx_cursor it)
{
    epctx_field field;
    size_t count = 0;
    while (epctx_next_field(&it, &field))
        count++;
    return count;
}

/* -- merge: names -- */

/* A value of the second model has the name of one in a body of the first, where it would be
 * hidden; or the other way round. */
TEST(merge_values_of_bodies)
{
    pair p;
    bytes text;
    CHECK_TRUE(pair_open(&p, body_model("x", "y", "inner"), small_model("n", "inner", "z")));
    MERGES(&p);
    CHECK_STR(nodes_of(&p.models[0]), "If::x>y Relu:n:m2_inner>z ");
    pair_close(&p);
    CHECK_TRUE(pair_open(&p, small_model("n", "inner", "z"), body_model("x", "y", "inner")));
    p.parts[1].prefix = "";
    REFUSED(&p, EPCTX_ERR_EXISTS,
            "value 'inner' is in an earlier model, too: give the model a prefix");
    p.parts[1].prefix = NULL;
    MERGES(&p);
    text = written(&p.models[0]);
    CHECK(bytes_contain(&text, "m2_inner", 8), "the value of the body has its name still");
    bytes_free(&text);
    pair_close(&p);
    /* The new name of a value of the graph is that of a value of its body; and there, of one that
     * hides another. */
    CHECK_TRUE(pair_open(&p, small_model("n", "q", "z"), body_model("x", "y", "b_x")));
    p.parts[1].prefix = "b_";
    MERGES(&p);
    text = written(&p.models[0]);
    CHECK(bytes_contain(&text, "b_b_x", 5), "the body hides the value that it reads");
    CHECK_STR(nodes_of(&p.models[0]), "Relu:n:q>z If::b_x>b_y ");
    bytes_free(&text);
    pair_close(&p);
    CHECK_TRUE(pair_open(&p, small_model("n", "q", "z"), body_model("x", "b_x", "b_x")));
    p.parts[1].prefix = "b_";
    REFUSED(&p, EPCTX_ERR_EXISTS, "value 'x' cannot be called 'b_x'");
    pair_close(&p);
}

/* A body lists its initializer as an input, too: one name, once. */
TEST(merge_a_name_twice_in_a_body)
{
    bytes graph = {0}, body = {0}, attr = {0}, node = new_node("If", "", "if", "x", "y");
    pair p;
    size_t i, renamed = 0;
    put_str(&body, 2, "body");
    add_node(&body, "Relu", "", "own", "out");
    add_value(&body, GRAPH_INPUT, "own", EPCTX_ONNX_FLOAT, vector);
    add_floats(&body, "own", weights, 4);
    add_value(&body, GRAPH_OUTPUT, "out", EPCTX_ONNX_FLOAT, vector);
    put_child(&attr, 6, &body);
    end_attr(&node, "then_branch", EPCTX_ATTR_GRAPH, &attr);
    put_child(&graph, 1, &node);
    add_ends(&graph, "x", "y");
    CHECK_TRUE(pair_open(&p, small_model("n", "own", "z"), new_model(&graph)));
    MERGES(&p);
    for (i = 0; i < p.out.step_count; i++)
        renamed += strstr(p.out.steps[i].text, "'own' of a body is now 'm2_own'") != NULL;
    CHECK_UINT(renamed, 1);
    pair_close(&p);
}

TEST(merge_nodes_of_one_name)
{
    bytes graph = {0};
    pair p;
    add_node(&graph, "Relu", "n", "p", "q");
    add_node(&graph, "Relu", "m2_n", "q", "r");
    add_ends(&graph, "p", "r");
    CHECK_TRUE(pair_open(&p, small_model("n", "x", "y"), new_model(&graph)));
    MERGES(&p);
    CHECK_STR(nodes_of(&p.models[0]), "Relu:n:x>y Relu:m2_m2_n:p>q Relu:m2_n:q>r ");
    pair_close(&p);
    /* The name that is free in the second model is taken in the first. */
    add_node(&graph, "Relu", "n", "x", "t");
    add_node(&graph, "Relu", "m2_m2_n", "t", "y");
    add_ends(&graph, "x", "y");
    {
        bytes first = new_model(&graph);
        add_node(&graph, "Relu", "n", "p", "q");
        add_node(&graph, "Relu", "m2_n", "q", "r");
        add_ends(&graph, "p", "r");
        CHECK_TRUE(pair_open(&p, first, new_model(&graph)));
    }
    MERGES(&p);
    CHECK_STR(nodes_of(&p.models[0]),
              "Relu:n:x>t Relu:m2_m2_n:t>y Relu:m2_m2_m2_n:p>q Relu:m2_n:q>r ");
    pair_close(&p);
}

/* OpenVINO finds values by name, so a node must give the value that name: not when it is taken. */
TEST(merge_feeds_a_name_that_must_stay)
{
    bytes graph = {0};
    pair p;
    CHECK_TRUE(pair_open(&p, small_model("n", "x", "y"), compiled("k", "x", "z", ov, "p")));
    pair_link(&p, "y", "x");
    REFUSED(&p, EPCTX_ERR_EXISTS, "value 'x' is in an earlier model, too: its EP finds the inputs");
    pair_close(&p);
    /* The same name is no matter; nor is the name of the node in between. */
    CHECK_TRUE(pair_open(&p, small_model("n", "x", "y"), compiled("k", "y", "z", ov, "p")));
    pair_link(&p, "y", "y");
    MERGES(&p);
    CHECK_STR(nodes_of(&p.models[0]), "Relu:n:x>y EPContext:k:y>z ");
    pair_close(&p);
    add_node(&graph, "Relu", "connect_a", "x", "t");
    add_node(&graph, "Relu", "connect_a_", "t", "y");
    add_ends(&graph, "x", "y");
    CHECK_TRUE(pair_open(&p, new_model(&graph), compiled("k", "a", "z", ov, "p")));
    pair_link(&p, "y", "a");
    MERGES(&p);
    CHECK_STR(nodes_of(&p.models[0]), "Relu:connect_a:x>t Relu:connect_a_:t>y "
                                      "Identity:connect_a__:y>a EPContext:k:a>z ");
    pair_close(&p);
}

/* Two nodes of one model that ask for the same partition are its own affair; a node whose
 * attributes cannot be read has none. */
TEST(merge_partitions)
{
    bytes graph = {0}, node, attr = {0}, a;
    pair p;
    add_epnode(&graph, "n0", "x", "y", 1, 1, npu, "p", "payload", 7);
    add_epnode(&graph, "n1", "x", "y1", 0, 1, npu, "p", NULL, 0);
    node = new_node("EPContext", "com.microsoft", "odd", "x", "y2");
    add_attr_str(&node, "source", npu, strlen(npu));
    add_attr_str(&node, "partition_name", "q", 1);
    put_str(&attr, 4, "yes");
    end_attr(&node, "main_context", EPCTX_ATTR_STRING, &attr);
    put_child(&graph, 1, &node);
    add_ends(&graph, "x", "y");
    a = new_model(&graph);
    add_opset(&a, "com.microsoft", 1);
    CHECK_TRUE(pair_open(&p, a, compiled("m", "u", "v", npu, "q")));
    MERGES(&p);
    for (size_t i = 0; i < p.out.step_count; i++)
        CHECK(strstr(p.out.steps[i].text, "names the binary itself") == NULL, "%s",
              p.out.steps[i].text);
    pair_close(&p);
}

/* -- merge: what stands once -- */

TEST(merge_newer_operator_sets)
{
    bytes b = small_model("m", "p", "q");
    pair p;
    add_opset(&b, "idle", 2); /* nothing of it is used: its version is nobody's business */
    CHECK_TRUE(pair_open(&p, small_model("n", "x", "y"), b));
    CHECK_INT(epctx_set_opset(&p.models[0], epctx_str_of(""), 13, NULL), EPCTX_OK);
    CHECK_INT(epctx_put_opset(&p.models[0], epctx_str_of("idle"), 1, NULL), EPCTX_OK);
    CHECK_INT(pair_merge(&p), EPCTX_ERR_GRAPH);
    CHECK_HAS(p.error.message, "operator set ai.onnx version 17, those of earlier models of "
                               "version 13");
    p.opts.force_opset = true;
    MERGES(&p);
    CHECK_INT(epctx_model_opset(&p.models[0], epctx_str_of("")), 17);
    CHECK_INT(epctx_model_opset(&p.models[0], epctx_str_of("idle")), 1);
    CHECK_HAS(p.out.steps[0].text, "operator set ai.onnx: version 17 here, 13 before; the result "
                                   "has 17");
    CHECK_HAS(p.out.steps[1].text, "operator set idle: version 2 here, 1 before; the result has 1");
    pair_close(&p);
}

/* A prefix would make another key of compatibility information. */
TEST(merge_compatibility)
{
    bytes a = compiled("n", "x", "y", npu, "p"), b = compiled("m", "u", "v", npu, "q");
    epctx_str value;
    pair p;
    put_pair(&a, 14, "ep_compatibility_info.EpctxNpuExecutionProvider", "1");
    put_pair(&b, 14, "ep_compatibility_info.EpctxNpuExecutionProvider", "2");
    CHECK_TRUE(pair_open(&p, a, b));
    p.opts.metadata = EPCTX_METADATA_PREFIX;
    REFUSED(&p, EPCTX_ERR_GRAPH, "is '2', in an earlier model '1': keep the first, or change");
    p.opts.metadata = EPCTX_METADATA_FIRST;
    MERGES(&p);
    pair_close(&p);
    a = compiled("n", "x", "y", npu, "p");
    b = compiled("m", "u", "v", npu, "q");
    put_pair(&a, 14, "ep_compatibility_of_something", "1");
    put_pair(&b, 14, "ep_compatibility_of_something", "2");
    CHECK_TRUE(pair_open(&p, a, b));
    p.opts.metadata = EPCTX_METADATA_PREFIX;
    MERGES(&p);
    CHECK_TRUE(epctx_model_metadata(&p.models[0], epctx_str_of("m2_ep_compatibility_of_something"),
                                    &value));
    CHECK_TRUE(epctx_str_is(value, "2"));
    pair_close(&p);
}

/* Metadata of the graph may have the key of compatibility information, and be anything. */
TEST(merge_metadata_of_graphs)
{
    bytes graphs[2] = {{0}, {0}};
    epctx_cursor it;
    epctx_pair pairs[3];
    pair p;
    for (int i = 0; i < 2; i++) {
        add_node(&graphs[i], "Relu", "", i == 0 ? "x" : "u", i == 0 ? "y" : "v");
        add_ends(&graphs[i], i == 0 ? "x" : "u", i == 0 ? "y" : "v");
        put_pair(&graphs[i], 16, "ep_compatibility_info.X", i == 0 ? "1" : "2");
        put_pair(&graphs[i], 16, EPCTX_BUILD_PREFIX "x", "same");
    }
    CHECK_TRUE(pair_open(&p, new_model(&graphs[0]), new_model(&graphs[1])));
    REFUSED(&p, EPCTX_ERR_GRAPH, "use a prefix, or change one of them");
    p.opts.metadata = EPCTX_METADATA_PREFIX;
    MERGES(&p);
    it = epctx_metadata(epctx_model_graph(&p.models[0]).view, EPCTX_KIND_GRAPH);
    for (int i = 0; i < 3; i++)
        CHECK(epctx_next_pair(&it, &pairs[i]), "%d entries, expected 3", i);
    CHECK_TRUE(epctx_str_is(pairs[1].key, EPCTX_BUILD_PREFIX "x"));
    CHECK_TRUE(epctx_str_is(pairs[2].key, "m2_ep_compatibility_info.X"));
    CHECK_TRUE(epctx_str_is(pairs[2].value, "2") && !epctx_next_pair(&it, &pairs[0]));
    pair_close(&p);
}

/* "ai.onnx" and "" are one domain. */
TEST(merge_functions_of_onnx)
{
    bytes models[2];
    pair p;
    for (int i = 0; i < 2; i++) {
        bytes function = {0};
        models[i] = small_model(i == 0 ? "n" : "m", i == 0 ? "x" : "u", i == 0 ? "y" : "v");
        put_str(&function, 1, "F");
        put_str(&function, 4, "in");
        if (i == 0) put_str(&function, 10, "ai.onnx");
        put_child(&models[i], 25, &function);
    }
    CHECK_TRUE(pair_open(&p, models[0], models[1]));
    REFUSED(&p, EPCTX_ERR_GRAPH, "function 'F' of domain '' is another one in an earlier model");
    pair_close(&p);
}

/* -- merge: outputs -- */

TEST(merge_outputs_that_feed)
{
    bytes a = {0}, b = {0}, value = {0};
    pair p;
    add_node(&a, "Relu", "n", "x", "y");
    put_str(&a, 2, "g");
    add_value(&a, GRAPH_INPUT, "x", EPCTX_ONNX_FLOAT, vector);
    put_str(&value, 1, "y"); /* no type */
    put_child(&a, GRAPH_OUTPUT, &value);
    add_node(&b, "Relu", "m", "y", "z");
    put_str(&b, 2, "g");
    add_value(&b, GRAPH_INPUT, "y", EPCTX_ONNX_FLOAT, vector);
    CHECK_TRUE(pair_open(&p, new_model(&a), new_model(&b)));
    p.opts.chain = true;
    REFUSED(&p, EPCTX_ERR_GRAPH, "every output feeds an input: keep the outputs, or connect less");
    p.opts.keep_outputs = true;
    MERGES(&p);
    CHECK_UINT(count_of(epctx_graph_outputs(epctx_model_graph(&p.models[0]))), 1);
    pair_close(&p);
    /* An output whose type stands among the values already, and one that has none. */
    add_node(&a, "Split", "n", "x", "y,s,t");
    put_str(&a, 2, "g");
    add_value(&a, GRAPH_INPUT, "x", EPCTX_ONNX_FLOAT, vector);
    put_str(&value, 1, "y");
    put_child(&a, GRAPH_OUTPUT, &value);
    add_value(&a, GRAPH_OUTPUT, "s", EPCTX_ONNX_FLOAT, vector);
    add_value(&a, GRAPH_OUTPUT, "t", EPCTX_ONNX_FLOAT, vector);
    add_value(&a, GRAPH_VALUE, "s", EPCTX_ONNX_FLOAT, vector);
    add_node(&b, "Add", "m", "y,s,t", "z");
    add_ends(&b, "y", "z");
    add_value(&b, GRAPH_INPUT, "s", EPCTX_ONNX_FLOAT, vector);
    add_value(&b, GRAPH_INPUT, "t", EPCTX_ONNX_FLOAT, vector);
    CHECK_TRUE(pair_open(&p, new_model(&a), new_model(&b)));
    p.opts.chain = true;
    MERGES(&p);
    CHECK_UINT(count_of(epctx_graph_outputs(epctx_model_graph(&p.models[0]))), 1);
    CHECK_UINT(count_of(epctx_graph_values(epctx_model_graph(&p.models[0]))), 2); /* s, t */
    pair_close(&p);
}

/* More than protobuf readers take. The bytes are never touched, so they need not exist. */
TEST(merge_of_too_much)
{
    epctx_span payload;
    pair p;
    CHECK_TRUE(pair_open(&p, small_model("n", "x", "y"), small_model("m", "u", "v")));
    payload.data = p.data[0].data;
    payload.size = (size_t)EPCTX_MODEL_MAX;
    CHECK_INT(epctx_set_data(&p.models[0], epctx_model_read(&p.models[0]).view, 6, payload, NULL),
              EPCTX_OK);
    CHECK_INT(pair_merge(&p), EPCTX_ERR_LIMIT);
    CHECK_HAS(p.error.message, "move contexts and initializers into files beforehand");
    CHECK_UINT(epctx_edit_mark(&p.models[0]), 1);
    epctx_undo(&p.models[0], 0);
    CHECK(pair_untouched(&p), "a refusal changes something");
    pair_close(&p);
}

/* -- merge: files -- */

static void make_model(const char *name, bytes model)
{
    save_bytes(name, &model);
}

/* A node with its context in `cache`, and the model that it was compiled from. */
static bytes file_model(const char *x, const char *y, const char *partition, const char *cache,
                        const char *source)
{
    bytes graph = {0}, node = new_node("EPContext", "com.microsoft", partition, x, y), model;
    add_attr_int(&node, "main_context", 1);
    add_attr_int(&node, "embed_mode", 0);
    add_attr_str(&node, "source", npu, strlen(npu));
    add_attr_str(&node, "partition_name", partition, strlen(partition));
    add_attr_str(&node, "ep_cache_context", cache, strlen(cache));
    if (source != NULL) add_attr_str(&node, "onnx_model_filename", source, strlen(source));
    put_child(&graph, 1, &node);
    add_ends(&graph, x, y);
    model = new_model(&graph);
    add_opset(&model, "com.microsoft", 1);
    return model;
}

/* Merges a.onnx with sub/b.onnx (or b.onnx); NULL when that is refused as told, or merges. */
static const char *merge_files(bytes a, const char *second, bytes b, const char *output,
                               epctx_status status, const char *text, size_t files)
{
    static char wrong[900];
    char path[400];
    epctx_status found;
    pair p;
    make_model("a.onnx", a);
    make_model(second, b);
    snprintf(path, sizeof path, "%s", at(output));
    wrong[0] = '\0';
    if (!pair_files(&p, at("a.onnx"), at(second))) return "a model cannot be opened";
    p.opts.output_path = path;
    found = pair_merge(&p);
    if (found != status || strstr(p.error.message, text) == NULL)
        snprintf(wrong, sizeof wrong, "%s: %s", epctx_status_name(found), p.error.message);
    else if (found == EPCTX_OK && p.out.file_count != files)
        snprintf(wrong, sizeof wrong, "%zu files", p.out.file_count);
    else if (found != EPCTX_OK && !pair_untouched(&p))
        snprintf(wrong, sizeof wrong, "a refusal changes something");
    pair_close(&p);
    remove(at(second));
    return wrong[0] != '\0' ? wrong : NULL;
}

#define FILES_MERGE(a, second, b, output, status, text, files)                                     \
    do {                                                                                           \
        const char *why_ = merge_files(a, second, b, output, status, text, files);                 \
        CHECK(why_ == NULL, "expected %s '%s', found %s", epctx_status_name(status), text, why_);  \
    } while (0)

static void make_folders(void)
{
    mkdir(at("sub"), 0700);
    mkdir(at("out"), 0700);
    save_sixteen("c.bin", 1);
    save_sixteen("d.bin", 2);
    save_sixteen("e.stripped.engine", 3);
    save_sixteen("s.onnx", 4);
    save_sixteen("sub/e.stripped.engine", 3);
    save_sixteen("sub/s.onnx", 5);
}

static void remove_folders(void)
{
    remove(at("sub/e.stripped.engine"));
    remove(at("sub/s.onnx"));
    rmdir(at("sub"));
    rmdir(at("out"));
    remove_root();
}

/* The context goes along; the model that it was compiled from does where loading needs it, and
 * cannot get another name. */
TEST(merge_files_by_use)
{
    static const char stripped[] = "e.stripped.engine";
    CHECK_TRUE(make_root());
    make_folders();
    FILES_MERGE(file_model("x", "y", "p", "c.bin", NULL), "b.onnx",
                file_model("u", "v", "q", "c.bin", NULL), "o.onnx", EPCTX_OK, "", 0);
    FILES_MERGE(file_model("x", "y", "p", "c.bin", "gone.onnx"), "b.onnx",
                file_model("u", "v", "q", "d.bin", "gone.onnx"), "out/o.onnx", EPCTX_OK, "", 2);
    FILES_MERGE(file_model("x", "y", "p", stripped, "s.onnx"), "b.onnx",
                file_model("u", "v", "q", stripped, "s.onnx"), "out/o.onnx", EPCTX_OK, "", 2);
    FILES_MERGE(file_model("x", "y", "p", stripped, "s.onnx"), "sub/b.onnx",
                file_model("u", "v", "q", stripped, "s.onnx"), "o.onnx", EPCTX_ERR_EXISTS,
                "source model 's.onnx' of 'q': another file of the result has this name", 0);
    FILES_MERGE(file_model("x", "y", "p", stripped, "sub/s.onnx"), "sub/b.onnx",
                file_model("u", "v", "q", stripped, "s.onnx"), "o.onnx", EPCTX_ERR_EXISTS,
                "source model 's.onnx' of 'q': the same file has another name in the result", 0);
    FILES_MERGE(file_model("x", "y", "p", "c.bin", NULL), "b.onnx",
                file_model("u", "v", "q", "gone.bin", NULL), "o.onnx", EPCTX_ERR_NOT_FOUND,
                "context binary 'gone.bin' of 'q': file 'gone.bin' does not exist", 0);
    FILES_MERGE(file_model("x", "y", "p", "c.bin", NULL), "b.onnx",
                file_model("u", "v", "q", "d.bin", NULL), "out/c.bin", EPCTX_ERR_PATH,
                "new file 'c.bin' would be the model itself", 0);
    remove_folders();
}

/* Weights that only training reads may be missing. */
TEST(merge_files_of_training)
{
    bytes model, training = {0}, step = {0};
    CHECK_TRUE(make_root());
    make_folders();
    model = file_model("x", "y", "p", "c.bin", NULL);
    add_node(&step, "Relu", "step", "far", "far2");
    add_external(&step, "far", 4, "gone.bin", "0", "16");
    put_child(&training, 2, &step);
    put_child(&model, 20, &training);
    FILES_MERGE(model, "b.onnx", file_model("u", "v", "q", "d.bin", NULL), "o.onnx", EPCTX_OK, "",
                0);
    remove_folders();
}

/* A folder in which no file of the result can have a name. */
TEST(merge_into_a_long_path)
{
    static char path[2 * EPCTX_PATH_MAX];
    pair p;
    CHECK_TRUE(make_root());
    make_folders();
    make_model("a.onnx", file_model("x", "y", "p", "c.bin", NULL));
    make_model("b.onnx", file_model("u", "v", "q", "d.bin", NULL));
    memset(path, 'd', EPCTX_PATH_MAX - 4);
    strcpy(path + EPCTX_PATH_MAX - 4, "/o.onnx");
    CHECK_TRUE(pair_files(&p, at("a.onnx"), at("b.onnx")));
    p.opts.output_path = path;
    REFUSED(&p, EPCTX_ERR_LIMIT, "a path");
    pair_close(&p);
    remove_folders();
}

/* Files in memory: a model by the name "a.onnx"; every other file is there, with bytes of its own
 * for each io. */
typedef struct shelf {
    const bytes *model;
    uint8_t data[16];
    char real[16];
} shelf;

static epctx_status shelf_map(void *user, const char *folder, const char *name, bool copy,
                              epctx_mapping *out, epctx_error *error)
{
    const shelf *s = (const shelf *)user;
    bool model = strcmp(name, "a.onnx") == 0;
    (void)folder, (void)copy, (void)error;
    memset(out, 0, sizeof *out);
    out->data = model ? s->model->data : s->data;
    out->size = model ? s->model->size : sizeof s->data;
    return EPCTX_OK;
}

static void shelf_unmap(void *user, epctx_mapping *mapping)
{
    (void)user;
    memset(mapping, 0, sizeof *mapping);
}

static epctx_status shelf_stat(void *user, const char *path, epctx_file_info *info,
                               epctx_error *error)
{
    (void)error;
    (void)path;
    memset(info, 0, sizeof *info);
    info->kind = EPCTX_FILE_REGULAR;
    info->size = sizeof((const shelf *)user)->data;
    return EPCTX_OK;
}

static epctx_status shelf_canonical(void *user, const char *path, char *out, size_t capacity,
                                    epctx_error *error)
{
    (void)error;
    snprintf(out, capacity, "%s", strlen(path) < 3 ? "/" : ((const shelf *)user)->real);
    return EPCTX_OK;
}

/* Eleven files of one name that is so long that nine more numbers, but not ten, go behind it. */
TEST(merge_of_long_names)
{
    enum { MODELS = 11 };
    static char name[EPCTX_PATH_MAX];
    static shelf shelves[MODELS];
    static epctx_model models[MODELS];
    bytes data[MODELS];
    epctx_part parts[MODELS] = {{NULL, NULL}};
    epctx_io io[MODELS];
    epctx_combined out;
    epctx_error error;
    for (size_t i = 0; i < sizeof name - 3; i++)
        name[i] = i % 100 == 50 ? '/' : 'n';
    for (int i = 0; i < MODELS; i++) {
        epctx_open_opts opts = {0};
        char x[16], y[16];
        snprintf(x, sizeof x, "x%d", i);
        snprintf(y, sizeof y, "y%d", i);
        data[i] = file_model(x, y, x, name, NULL);
        memset(shelves[i].data, i, sizeof shelves[i].data);
        snprintf(shelves[i].real, sizeof shelves[i].real, "/%d", i);
        shelves[i].model = &data[i];
        io[i] = *epctx_io_files();
        io[i].user = &shelves[i];
        io[i].map_fn = shelf_map;
        io[i].unmap_fn = shelf_unmap;
        io[i].stat_fn = shelf_stat;
        io[i].canonical_fn = shelf_canonical;
        opts.io = &io[i];
        parts[i].model = &models[i];
        CHECK_OK(epctx_model_open_file(&models[i], "a.onnx", &opts, &error), error);
    }
    CHECK_OK(epctx_merge(parts, MODELS - 2, NULL, &out, &error), error);
    CHECK_UINT(out.file_count, MODELS - 3); /* the first is where it should be */
    CHECK_UINT(strlen(out.files[MODELS - 4].name), EPCTX_PATH_MAX - 1);
    CHECK_HAS(out.files[MODELS - 4].name, "nnn_9");
    epctx_undo(&models[0], 0);
    CHECK_INT(epctx_merge(parts, MODELS, NULL, NULL, &error), EPCTX_ERR_LIMIT);
    CHECK_HAS(error.message, "a path is longer than 4095 bytes");
    for (int i = 0; i < MODELS; i++) {
        CHECK(untouched(&models[i], &data[i]), "a refusal changes model %d", i);
        epctx_model_close(&models[i]);
        bytes_free(&data[i]);
    }
}

/* -- split -- */

typedef struct cut {
    bytes data;
    epctx_model model;
    epctx_value values[4];
    epctx_split_opts opts;
    epctx_combined out;
    epctx_error error;
} cut;

static bool cut_open(cut *c, bytes data)
{
    memset(c, 0, sizeof *c);
    c->data = data;
    for (int i = 0; i < 4; i++)
        c->values[i].rank = -1;
    return epctx_model_open_memory(&c->model, data.data, data.size, NULL, &c->error) == EPCTX_OK;
}

/* A type (0: none) as the wish says. */
static epctx_status cut_at(cut *c, const char *input, int32_t elem, const char *output)
{
    epctx_undo(&c->model, 0);
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

static void cut_close(cut *c)
{
    epctx_model_close(&c->model);
    bytes_free(&c->data);
}

static void add_sparse(bytes *graph, const char *name)
{
    bytes sparse = {0}, values = {0}, indices = {0};
    put_int(&values, 1, 1);
    put_int(&values, 2, EPCTX_ONNX_FLOAT);
    put_str(&values, 8, name);
    put_data(&values, 9, weights, 4);
    put_int(&indices, 1, 1);
    put_int(&indices, 2, EPCTX_ONNX_INT64);
    put_data(&indices, 9, "\0\0\0\0\0\0\0\0", 8);
    put_child(&sparse, 1, &values);
    put_child(&sparse, 2, &indices);
    put_int(&sparse, 3, 4);
    put_child(graph, 15, &sparse);
}

/* x, w -> two, two2 -> y; sp -> z */
static bytes cut_model(void)
{
    bytes graph = {0};
    add_node(&graph, "Two", "two", "x,v,w", "two,two2");
    add_node(&graph, "Add", "add", "two,two2", "y");
    add_node(&graph, "Use", "use", "sp,x", "z");
    add_floats(&graph, "v", weights, 4);
    add_floats(&graph, "w", weights, 3);
    add_sparse(&graph, "sp");
    add_ends(&graph, "x", "y");
    add_value(&graph, GRAPH_OUTPUT, "z", EPCTX_ONNX_FLOAT, vector);
    return new_model(&graph);
}

TEST(split_at_initializers)
{
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
    epctx_undo(&c.model, 0);
    c.values[3].name = epctx_str_of("y");
    c.opts.inputs = c.values;
    c.opts.input_count = 2;
    c.opts.outputs = c.values + 3;
    c.opts.output_count = 1;
    CHECK_OK(epctx_split(&c.model, &c.opts, &c.out, &c.error), c.error);
    it = epctx_graph_inputs(epctx_model_graph(&c.model));
    CHECK_TRUE(epctx_next_value(&it, &value) && epctx_str_is(value.name, "w"));
    dims = epctx_value_dims(&value);
    CHECK_TRUE(value.elem_type == EPCTX_ONNX_FLOAT && epctx_next_dim(&dims, &dim));
    CHECK_INT(dim.value, 3);
    CHECK_UINT(count_of(epctx_graph_initializers(epctx_model_graph(&c.model))), 1);
    /* That of a sparse one must be said. */
    c.values[0].name = epctx_str_of("sp");
    c.values[3].name = epctx_str_of("z");
    epctx_undo(&c.model, 0);
    CHECK_INT(epctx_split(&c.model, &c.opts, &c.out, &c.error), EPCTX_ERR_GRAPH);
    CHECK_HAS(c.error.message, "the model does not say of which type 'sp' is");
    CHECK(untouched(&c.model, &c.data), "a refusal changes something");
    c.values[0].elem_type = EPCTX_ONNX_FLOAT;
    CHECK_OK(epctx_split(&c.model, &c.opts, &c.out, &c.error), c.error);
    CHECK_STR(nodes_of(&c.model), "Use:use:spx>z ");
    CHECK_UINT(count_of(epctx_graph_sparse(epctx_model_graph(&c.model))), 0);
    cut_close(&c);
}

/* -- wrap -- */

/* Shapes that are not known are for EPs that take them; a binary of 2 GiB is for no model. */
TEST(wrap_by_profile)
{
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
    opts.profile = epctx_profile_find(epctx_str_of("npu"));
    CHECK_INT(epctx_wrap(&model, binary, &opts, NULL, &out, &error), EPCTX_ERR_ARG);
    CHECK_HAS(error.message, "this EP takes static shapes only");
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

/* -- time -- */

static const char *numbered(const char *name, size_t number)
{
    static char text[2][40];
    static int turn;
    turn = !turn;
    snprintf(text[turn], sizeof text[turn], "%s%zu", name, number);
    return text[turn];
}

/* x -> y, with `count` of one thing. */
static bytes long_model(int what, size_t count)
{
    bytes graph = {0}, node, model, pairs = {0};
    if (what == 0) {
        for (size_t i = 0; i < count; i++)
            add_metadata(&pairs, numbered("key", i), "value");
    } else if (what == 1) {
        for (size_t i = 0; i < count; i++) {
            const char *domain = numbered("domain", i);
            node = new_node("Op", domain, "", "x", numbered("v", i));
            put_child(&graph, 1, &node);
            add_opset(&pairs, domain, 1);
        }
    } else {
        node = new_node("Op", "", "n", "x", "y");
        for (size_t i = 0; i < count; i++) {
            put_str(&node, what == 2 ? 1 : 2, numbered("v", i));
            if (what == 2) add_value(&graph, GRAPH_INPUT, numbered("v", i), 1, vector);
        }
        put_child(&graph, 1, &node);
    }
    add_node(&graph, "Relu", "", "x", "y");
    add_ends(&graph, "x", "y");
    model = new_model(&graph);
    bytes_add(&model, pairs.data, pairs.size);
    bytes_free(&pairs);
    return model;
}

/* Four times as much takes about four times as long, not sixteen times; the best of three counts,
 * and what a clock cannot tell apart is allowed. */
TEST(merge_is_linear)
{
    static const char *const names[] = {"keys", "operator sets", "inputs", "outputs of a node"};
    enum { COUNT = 2000 };
    for (int what = 0; what < 4; what++) {
        double best[2] = {1e9, 1e9};
        for (int round = 0; round < 6; round++) {
            size_t count = round % 2 == 0 ? COUNT : 4 * COUNT;
            clock_t start;
            double seconds;
            pair p;
            CHECK_TRUE(pair_open(&p, long_model(what, count), long_model(what, count)));
            start = clock();
            CHECK_OK(pair_merge(&p), p.error);
            seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
            if (seconds < best[round % 2]) best[round % 2] = seconds;
            pair_close(&p);
        }
        CHECK(best[1] < 8 * best[0] + 0.05, "%d %s %.3f s, %d %.3f s", COUNT, names[what], best[0],
              4 * COUNT, best[1]);
    }
}

int main(int argc, char **argv)
{
    RUN(merge_is_linear);
    RUN(merge_values_of_bodies);
    RUN(merge_a_name_twice_in_a_body);
    RUN(merge_nodes_of_one_name);
    RUN(merge_feeds_a_name_that_must_stay);
    RUN(merge_partitions);
    RUN(merge_newer_operator_sets);
    RUN(merge_compatibility);
    RUN(merge_metadata_of_graphs);
    RUN(merge_functions_of_onnx);
    RUN(merge_outputs_that_feed);
    RUN(merge_of_too_much);
    RUN(merge_files_by_use);
    RUN(merge_files_of_training);
    RUN(merge_into_a_long_path);
    RUN(merge_of_long_names);
    RUN(split_at_initializers);
    RUN(wrap_by_profile);
    return test_end();
}
