/* Merge, split and repair with every allocation failing in turn, on models that have something of
 * everything, and with more and more names, so that every table grows at every place; and with
 * bytes of the models damaged. */
/* runs: once */
#define _XOPEN_SOURCE 700
#include "examples/epctx/ops/repair.h"
#include "combine.h"
#include "examples/epctx/ops/lint.h"
#include "starve.h"

/* -- parts of models -- */

static void add_inside(bytes *owner, uint32_t number, const char *name) {
    bytes tensor = {0};
    put_int(&tensor, 1, 4);
    put_int(&tensor, 2, EPCTX_ONNX_FLOAT);
    if (name[0] != '\0') put_str(&tensor, 8, name);
    put_data(&tensor, 9, weights, sizeof weights);
    put_child(owner, number, &tensor);
}

/* A tensor with its data in a file (NULL: not), as a field of any message. */
static void add_outside(bytes *owner, uint32_t number, const char *name, const char *location) {
    bytes tensor = {0};
    if (location == NULL) {
        add_inside(owner, number, name);
        return;
    }
    put_int(&tensor, 1, 4);
    put_int(&tensor, 2, EPCTX_ONNX_FLOAT);
    if (name[0] != '\0') put_str(&tensor, 8, name);
    put_pair(&tensor, 13, "location", location);
    put_pair(&tensor, 13, "length", "16");
    put_int(&tensor, 14, 1);
    put_child(owner, number, &tensor);
}

static void add_sparse(bytes *owner, uint32_t number, const char *name, const char *location) {
    bytes sparse = {0}, dims = {0};
    add_outside(&sparse, 1, name, location);
    add_outside(&sparse, 2, "", location);
    put_varint(&dims, 4);
    put_child(&sparse, 3, &dims); /* packed */
    put_child(owner, number, &sparse);
}

/* A body: an outer value, an initializer of its own, a call. */
static bytes new_body(const char *captured, const char *inner, const char *data) {
    bytes body = {0}, node;
    char names[200], own[64], out[64];
    snprintf(own, sizeof own, "%s_own", inner);
    snprintf(out, sizeof out, "%s_out", inner);
    snprintf(names, sizeof names, "%s,%s", captured, own);
    put_str(&body, 2, "body");
    add_node(&body, "Add", "", names, inner);
    node = new_node("Used", "mine", "", inner, out);
    put_child(&body, 1, &node);
    add_value(&body, GRAPH_INPUT, own, EPCTX_ONNX_FLOAT, vector);
    if (data != NULL)
        add_outside(&body, 5, own, data);
    else
        add_inside(&body, 5, own);
    add_value(&body, GRAPH_OUTPUT, out, EPCTX_ONNX_FLOAT, vector);
    return body;
}

/* Every kind of attribute that has tensors or graphs. */
static void add_attributes(bytes *node, const char *captured, const char *inner, const char *data) {
    bytes attr = {0}, body;
    add_outside(&attr, 5, "", data);
    end_attr(node, "tensor", EPCTX_ATTR_TENSOR, &attr);
    add_outside(&attr, 10, "", data);
    end_attr(node, "tensors", EPCTX_ATTR_TENSORS, &attr);
    add_sparse(&attr, 22, "", data);
    end_attr(node, "sparse", EPCTX_ATTR_SPARSE_TENSOR, &attr);
    add_sparse(&attr, 23, "", data);
    end_attr(node, "sparses", EPCTX_ATTR_SPARSE_TENSORS, &attr);
    body = new_body(captured, inner, data);
    put_child(&attr, 6, &body);
    end_attr(node, "body", EPCTX_ATTR_GRAPH, &attr);
    body = new_body(captured, inner, NULL);
    put_child(&attr, 11, &body);
    end_attr(node, "bodies", EPCTX_ATTR_GRAPHS, &attr);
}

static void add_function(bytes *model, const char *name, const char *calls, const char *data) {
    bytes function = {0}, node = new_node(calls, "mine", "", "fx", "fy"), opset = {0};
    put_str(&function, 1, name);
    put_str(&function, 4, "fx");
    put_str(&function, 5, "fy");
    if (data != NULL) {
        bytes attr = {0};
        add_outside(&attr, 5, "", data);
        end_attr(&node, "tensor", EPCTX_ATTR_TENSOR, &attr);
    }
    put_child(&function, 7, &node);
    put_str(&opset, 1, "mine");
    put_int(&opset, 2, 1);
    put_child(&function, 9, &opset);
    put_str(&function, 10, "mine");
    put_child(model, 25, &function);
}

/* -- merge -- */

typedef struct look {
    const char *x, *t, *y; /* values: x -> compiled -> t -> Used -> Relu -> y */
    const char *inner;     /* values of bodies */
    const char *source;
    int64_t ir_version;
    const char *context, *data, *more; /* files */
    const char *author;                /* metadata and a function that differ */
    int64_t opset;
    int fill; /* of each kind of thing that many more */
} look;

static void add_fill(const look *l, bytes *graph, bytes *model) {
    for (int i = 0; i < l->fill; i++) {
        char name[32], domain[32];
        bytes node;
        snprintf(name, sizeof name, "%s_fill%d", l->x, i);
        snprintf(domain, sizeof domain, "%s_domain%d", l->x, i);
        node = new_node("Op", domain, name, name, "");
        put_child(graph, 1, &node);
        if (i % 2 == 0)
            add_value(graph, GRAPH_INPUT, name, EPCTX_ONNX_FLOAT, vector);
        else
            add_outside(graph, 5, name, l->data);
        add_opset(model, domain, 1);
        put_pair(model, 14, name, "x");
        add_function(model, name, "Leaf", NULL);
    }
}

static bytes merge_model(const look *l) {
    bytes graph = {0}, model = {0}, node;
    char names[200], side[64];
    snprintf(names, sizeof names, "%s,w,sp,v,k,%s_own", l->t, l->t);
    snprintf(side, sizeof side, "%s_side", l->t);
    put_str(&graph, 2, "g");
    put_int(&graph, 1000, 1); /* unknown */
    put_int(&model, 1, l->ir_version);
    if (l->opset > 0) add_opset(&model, "ai.onnx", l->opset);
    add_opset(&model, "idle", l->opset + 1);
    add_opset(&model, "mine", 1);
    add_opset(&model, "com.microsoft", 1);
    node = new_node("EPContext", "com.microsoft", "n2", l->x, "");
    add_attr_int(&node, "main_context", 1);
    add_attr_int(&node, "embed_mode", 0);
    add_attr_str(&node, "source", l->source, strlen(l->source));
    add_attr_str(&node, "partition_name", l->author, strlen(l->author));
    add_attr_str(&node, "ep_dlc_context", l->context, strlen(l->context));
    put_child(&graph, 1, &node);
    node = new_node("EPContext", "com.microsoft", "n0", l->x, l->t);
    add_attr_int(&node, "main_context", 1);
    add_attr_int(&node, "embed_mode", 0);
    add_attr_str(&node, "source", l->source, strlen(l->source));
    add_attr_str(&node, "partition_name", "p0", 2);
    add_attr_str(&node, "ep_cache_context", l->context, strlen(l->context));
    put_child(&graph, 1, &node);
    add_epnode(&graph, "n1", l->x, side, 0, 0, l->source, "p1", NULL, 0);
    node = new_node("Used", "mine", "use", names, "u");
    add_attributes(&node, "w", l->inner, l->data);
    put_child(&graph, 1, &node);
    add_node(&graph, "Relu", "connect_x", "u", "");
    if (l->ir_version > 4) add_node(&graph, "Relu", "m2_use", "u", "");
    node = new_node("Relu", "ai.onnx", "relu", "u", l->y);
    put_child(&graph, 1, &node);
    add_fill(l, &graph, &model); /* behind the others: tables are about to grow */
    add_outside(&graph, 5, "w", l->data);
    add_outside(&graph, 5, "v", l->more);
    add_inside(&graph, 5, "k");
    snprintf(names, sizeof names, "%s_own", l->t);
    add_inside(&graph, 5, names);
    add_sparse(&graph, 15, "sp", l->data);
    add_value(&graph, GRAPH_INPUT, l->x, EPCTX_ONNX_FLOAT, vector);
    if (l->ir_version < 4) {
        add_value(&graph, GRAPH_INPUT, "w", EPCTX_ONNX_FLOAT, vector);
        add_value(&graph, GRAPH_INPUT, "k", EPCTX_ONNX_FLOAT, vector);
    }
    add_value(&graph, GRAPH_OUTPUT, l->y, EPCTX_ONNX_FLOAT, vector);
    add_value(&graph, GRAPH_OUTPUT, side, EPCTX_ONNX_FLOAT, vector);
    add_value(&graph, GRAPH_VALUE, l->t, EPCTX_ONNX_FLOAT, vector);
    add_scale(&graph, l->t, "k");
    put_pair(&graph, 16, "of", l->author);
    put_pair(&graph, 16, l->author, "graph");
    put_child(&model, 7, &graph);
    add_function(&model, "Used", "Inner", l->more);
    add_function(&model, "Inner", "Leaf", NULL);
    add_function(&model, l->author, "Leaf", NULL);
    put_pair(&model, 14, "author", l->author);
    put_pair(&model, 14, l->author, "model");
    put_pair(&model, 14, EPCTX_BUILD_PREFIX "x", "1");
    return model;
}

static void make_model(const char *name, bytes model) {
    save_bytes(name, &model);
}

/* Both models name c.bin and w.bin and mean different bytes. */
static void make_pair(const look *a, const look *b) {
    mkdir(at("sub"), 0700);
    make_model("a.onnx", merge_model(a));
    make_model("sub/b.onnx", merge_model(b));
    save_sixteen("c.bin", 1);
    save_sixteen("w.bin", 2);
    save_sixteen("v.bin", 3);
    save_sixteen("sub/c.bin", 4);
    save_sixteen("sub/w.bin", 5);
    save_sixteen("sub/v.bin", 3);
}

static void remove_pair(void) {
    static const char *const names[] = {"sub/b.onnx", "sub/c.bin", "sub/w.bin", "sub/v.bin"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) remove(at(names[i]));
    rmdir(at("sub"));
    remove_root();
}

static epctx_status say_combined(epctx_status status, const epctx_combined *out) {
    for (size_t i = 0; status == EPCTX_OK && i < out->step_count; i++)
        starve_say("%s\n", out->steps[i].text);
    for (size_t i = 0; status == EPCTX_OK && i < out->file_count; i++)
        starve_say("%s %" PRIu64 "\n", out->files[i].path, out->files[i].size);
    return status;
}

static epctx_merge_opts wish_opts; /* of the runs to come */
static const char *merge_prefix[2];

static epctx_status run_merge(epctx_model *a, epctx_model *b, epctx_error *error) {
    epctx_part parts[2];
    epctx_combined out;
    parts[0].model = a;
    parts[1].model = b;
    parts[0].prefix = merge_prefix[0];
    parts[1].prefix = merge_prefix[1];
    return say_combined(epctx_merge(parts, 2, &wish_opts, &out, error), &out);
}

/* How many more of everything there are in turn: with these, every table of the operations is full
 * at every place once (tables have room for 8, 11, 22 entries). */
static const int fills[] = {0, 2, 3, 4, 5, 6, 8, 9, 11};
enum { FILLS = sizeof fills / sizeof fills[0] };

/* Both models as files. */
static const char *starve_merge(look a, look b, size_t *runs) {
    static char text[900];
    for (int turn = 0; turn < FILLS; turn++) {
        int fill = fills[turn];
        starve_in in = {0};
        char path[2][400];
        const char *wrong;
        a.fill = fill;
        b.fill = fill / 2;
        if (!make_root()) return "no folder";
        make_pair(&a, &b);
        snprintf(path[0], sizeof path[0], "%s", at("a.onnx"));
        snprintf(path[1], sizeof path[1], "%s", at("sub/b.onnx"));
        in.path[0] = path[0];
        in.path[1] = path[1];
        wish_opts.output_path = path[0];
        wrong = fill > 0                  ? starve_tables(run_merge, &in, runs)
                : merge_prefix[0] == NULL ? starve(run_merge, &in, runs)
                                          : starve_allocator(run_merge, &in, runs);
        wish_opts.output_path = NULL;
        remove_pair();
        if (wrong != NULL) {
            snprintf(text, sizeof text, "fill %d: %s", fill, wrong);
            return text;
        }
    }
    return NULL;
}

static void merge_wish(const char *first, const char *second, epctx_metadata_policy rule) {
    memset(&wish_opts, 0, sizeof wish_opts);
    wish_opts.metadata = rule;
    wish_opts.force_opset = true;
    merge_prefix[0] = first;
    merge_prefix[1] = second;
}

/* The second model's bodies have names of the first one's main graph. */
static const look one = {"x", "t", "y", "a", npu, 3, "c.bin", "w.bin", "v.bin", "one", 13, 0};
static const look two = {"x", "t", "z", "t", npu, 8, "c.bin", "w.bin", "v.bin", "two", 17, 0};
/* The second model's EP finds values by name. */
static const look feeds = {"p", "q", "y", "a", npu, 8, "c.bin", "w.bin", "v.bin", "one", 0, 0};
static const char by_name[] = "MIGraphXExecutionProvider";
static const look fed = {"x", "t", "z", "t", by_name, 8, "c.bin", "w.bin", "v.bin", "two", 17, 0};

TEST(merge_side_by_side) {
    size_t runs = 0;
    const char *wrong;
    merge_wish(NULL, NULL, EPCTX_METADATA_PREFIX);
    wrong = starve_merge(one, two, &runs);
    CHECK(wrong == NULL, "%s", wrong);
    printf("note %zu runs\n", runs);
}

TEST(merge_with_prefixes) {
    size_t runs = 0;
    const char *wrong;
    merge_wish("left_", "right_", EPCTX_METADATA_FIRST);
    wrong = starve_merge(two, one, &runs);
    CHECK(wrong == NULL, "%s", wrong);
}

/* A node in between gives the value that feeds the second model the name that its EP knows. */
TEST(merge_with_bridges) {
    epctx_connection link;
    size_t runs = 0;
    const char *wrong;
    merge_wish(NULL, NULL, EPCTX_METADATA_FIRST);
    link.from = link.to = EPCTX_ANY_PART;
    link.output = epctx_str_of("y");
    link.input = epctx_str_of("x");
    wish_opts.connections = &link;
    wish_opts.connection_count = 1;
    wrong = starve_merge(feeds, fed, &runs);
    CHECK(wrong == NULL, "%s", wrong);
}

/* -- split -- */

/* x -> main -> t -> secondary -> y; t -> Op -> "o0" and so on; two outputs of one node. */
static bytes split_model(int fill) {
    bytes graph = {0}, model = {0}, node;
    char name[32], scale[32];
    put_str(&graph, 2, "g");
    put_int(&model, 1, 8);
    add_opset(&model, "", 17);
    add_opset(&model, "com.microsoft", 1);
    add_opset(&model, "mine", 1);
    node = new_node("EPContext", "com.microsoft", "main", "x", "t,t2");
    add_attr_int(&node, "main_context", 1);
    add_attr_int(&node, "embed_mode", 1);
    add_attr_int(&node, "max_size", 7);
    add_attr_str(&node, "source", npu, sizeof npu - 1);
    add_attr_str(&node, "partition_name", "p0", 2);
    add_attr_str(&node, "ep_cache_context", "payload", 7);
    put_child(&graph, 1, &node);
    add_epnode(&graph, "second", "t", "y", 0, 1, npu, "p1", NULL, 0);
    node = new_node("Used", "mine", "use", "t,w,k,sp", "z,z2");
    add_attributes(&node, "w", "a", NULL);
    put_child(&graph, 1, &node);
    node = new_node("Used", "mine", "use2", "z", "z3");
    put_child(&graph, 1, &node);
    add_inside(&graph, 5, "k0");
    add_inside(&graph, 5, "w");
    add_inside(&graph, 5, "k");
    add_sparse(&graph, 15, "sp0", NULL);
    add_sparse(&graph, 15, "sp", NULL);
    add_scale(&graph, "t2", "k0");
    add_scale(&graph, "t", "k0");
    add_scale(&graph, "t", "no initializer");
    for (int i = 0; i < fill; i++) {
        snprintf(name, sizeof name, "o%d", i);
        snprintf(scale, sizeof scale, "s%d", i);
        add_node(&graph, "Relu", "", "t", name);
        add_node(&graph, "Relu", "", "x", ""); /* goes */
        add_inside(&graph, 5, scale);
        add_scale(&graph, name, scale);
        add_scale(&graph, scale, name);
        add_value(&graph, GRAPH_OUTPUT, name, EPCTX_ONNX_FLOAT, vector);
        add_function(&model, name, "Leaf", NULL);
    }
    add_value(&graph, GRAPH_INPUT, "x", EPCTX_ONNX_FLOAT, vector);
    add_value(&graph, GRAPH_OUTPUT, "y", EPCTX_ONNX_FLOAT, vector);
    add_value(&graph, GRAPH_OUTPUT, "z3", EPCTX_ONNX_FLOAT, vector);
    add_value(&graph, GRAPH_OUTPUT, "z2", EPCTX_ONNX_FLOAT, vector);
    add_value(&graph, GRAPH_VALUE, "t", EPCTX_ONNX_FLOAT, vector);
    put_child(&model, 7, &graph);
    add_function(&model, "Used", "Inner", NULL);
    add_function(&model, "Inner", "Leaf", NULL);
    return model;
}

static epctx_status run_split(epctx_model *a, epctx_model *b, epctx_error *error) {
    epctx_value value = {0};
    epctx_split_opts opts = {0};
    epctx_combined out;
    (void)b;
    value.name = epctx_str_of("t");
    value.rank = -1;
    opts.inputs = &value;
    opts.input_count = 1;
    return say_combined(epctx_split(a, &opts, &out, error), &out);
}

/* Models in memory; `make` gets how many more of everything there are to be. */
static const char *starve_made(starve_fn run, bytes (*make)(int fill), bytes (*make_second)(int),
                               int turns, size_t *runs) {
    static char text[900];
    for (int turn = 0; turn < turns; turn++) {
        int fill = fills[turn];
        bytes a = make(fill), b = make_second(fill);
        starve_in in = {{&a, &b}, {NULL, NULL}};
        const char *wrong = fill == 0 ? starve(run, &in, runs) : starve_tables(run, &in, runs);
        bytes_free(&a);
        bytes_free(&b);
        if (wrong != NULL) {
            snprintf(text, sizeof text, "fill %d: %s", fill, wrong);
            return text;
        }
    }
    return NULL;
}

static bytes no_model(int fill) {
    bytes graph = {0};
    (void)fill;
    put_str(&graph, 2, "g");
    return new_model(&graph);
}

TEST(split_behind_a_context) {
    size_t runs = 0;
    const char *wrong = starve_made(run_split, split_model, no_model, FILLS, &runs);
    CHECK(wrong == NULL, "%s", wrong);
    printf("note %zu runs\n", runs);
}

/* -- repair -- */

/* What repair can put right, also with the model that it was compiled from. */
static bytes broken_model(int fill) {
    bytes graph = {0}, more = {0}, model = {0}, node, value = {0}, type = {0}, inner = {0};
    char name[32];
    put_str(&graph, 2, "broken");
    node = new_node("EPContext", "", "same", "x", "q,q2"); /* wrong domain */
    add_attr_str(&node, "source", "qnn", 3);
    add_attr_str(&node, "ep_cache_context", "payload", 7);
    add_attr_str(&node, "ep_cache_context", "payload", 7);
    put_child(&graph, 1, &node);
    add_epnode(&graph, "same", "x", "r", -1, -1, "VitisAIExecutionProvider", "p", "c", 1);
    add_epnode(&graph, "same", "x", "r1", -1, -1, npu, "p", "c", 1);
    add_epnode(&graph, "", "x", "r2", 0, 1, ov, "p", NULL, 0);
    node = new_node("EPContext", "com.microsoft", "doubled", "x", "r3");
    add_attr_str(&node, "source", "openvinoexecutionprovider", 25);
    add_attr_str(&node, "partition_name", "p", 1);
    add_attr_str(&node, "partition_name", "p", 1);
    put_child(&graph, 1, &node);
    for (int i = 0; i < fill; i++) {
        snprintf(name, sizeof name, "o%d", i);
        add_epnode(&graph, name, "x", name, 0, 1, "openvinoexecutionprovider", "p", "", 0);
        add_node(&graph, "Relu", "dq", name, "");
        snprintf(name, sizeof name, "lost%d", i);
        add_node(&graph, "Relu", "", name, "");
        snprintf(name, sizeof name, "kept%d", i);
        add_node(&graph, "Relu", "", name, "");
        add_inside(&graph, 5, name);
    }
    add_node(&graph, "DequantizeLinear", "dq", "q,w,z8", "dqy");
    add_node(&graph, "Add", "dq", "r,w", "s");
    node = new_node("If", "", "if", "s", "y2");
    add_attributes(&node, "lost", "a", "*/_ORT_MEM_ADDR_/*");
    put_child(&graph, 1, &node);
    node = new_node("Other", "mine", "other", "far,lost2", "y");
    put_child(&graph, 1, &node);
    add_inside(&graph, 5, "w");
    add_inside(&graph, 5, "w");
    add_inside(&graph, 5, "idle");
    add_outside(&graph, 5, "far", "*/_ORT_MEM_ADDR_/*");
    put_int(&inner, 1, EPCTX_ONNX_FLOAT); /* one value with two types */
    put_child(&type, 1, &inner);
    put_child(&inner, 1, &type);
    put_child(&type, 4, &inner);
    put_int(&inner, 1, EPCTX_ONNX_FLOAT);
    put_child(&type, 1, &inner);
    put_str(&value, 1, "s");
    put_child(&value, 2, &type);
    put_str(&type, 6, "denotation");
    put_child(&value, 2, &type); /* and the type twice */
    put_child(&graph, GRAPH_VALUE, &value);
    add_value(&graph, GRAPH_INPUT, "x", EPCTX_ONNX_FLOAT, vector);
    add_value(&graph, GRAPH_OUTPUT, "y2", EPCTX_ONNX_FLOAT, vector);
    add_scale(&graph, "gone", "w");
    add_scale(&graph, "s", "gone");
    add_scale(&graph, "s", "w");
    put_int(&model, 1, 8);
    put_int(&model, 1, 8);
    add_opset(&model, "", 17);
    add_opset(&model, "", 17);
    put_child(&model, 7, &graph);
    put_str(&more, 10, "the graph goes on");
    add_node(&more, "Relu", "more", "y", "y3");
    put_child(&model, 7, &more);
    put_pair(&model, 14, "twice", "x");
    put_pair(&model, 14, "twice", "x");
    put_pair(&model, 14, "ep_compatibility_info.none", "x");
    return model;
}

static bytes broken_source(int fill) {
    bytes graph = {0}, model;
    char name[32];
    put_str(&graph, 2, "source");
    add_node(&graph, "Relu", "n", "x", "r2");
    add_inside(&graph, 5, "lost");
    add_inside(&graph, 5, "far");
    for (int i = 0; i < fill; i++) {
        snprintf(name, sizeof name, "v%d", i);
        add_inside(&graph, 5, name);
        add_value(&graph, GRAPH_VALUE, name, EPCTX_ONNX_FLOAT, vector);
    }
    add_value(&graph, GRAPH_INPUT, "x", EPCTX_ONNX_FLOAT, vector);
    add_value(&graph, GRAPH_OUTPUT, "y2", EPCTX_ONNX_FLOAT, vector);
    add_value(&graph, GRAPH_VALUE, "r2", EPCTX_ONNX_FLOAT, vector);
    model = new_model(&graph);
    add_opset(&model, "mine", 3);
    return model;
}

/* Nothing but outputs that have no type and no reader, and an initializer that was dropped. */
static bytes untyped_model(int fill) {
    bytes graph = {0}, node = new_node("EPContext", "com.microsoft", "n", "x", ""), model;
    char name[32];
    add_attr_int(&node, "main_context", 1);
    add_attr_int(&node, "embed_mode", 1);
    add_attr_str(&node, "source", npu, sizeof npu - 1);
    add_attr_str(&node, "partition_name", "p", 1);
    add_attr_str(&node, "ep_cache_context", "payload", 7);
    for (int i = 0; i < 7 + fill; i++) {
        snprintf(name, sizeof name, "out%d", i);
        put_str(&node, 2, name);
    }
    put_child(&graph, 1, &node);
    add_inside(&graph, 5, "k");
    add_inside(&graph, 5, "k2");
    node = new_node("If", "", "if", "x", "y2");
    add_attributes(&node, "lost", "a", NULL);
    put_child(&graph, 1, &node);
    put_str(&graph, 2, "g");
    add_value(&graph, GRAPH_INPUT, "x", EPCTX_ONNX_FLOAT, vector);
    add_value(&graph, GRAPH_OUTPUT, "y2", EPCTX_ONNX_FLOAT, vector);
    model = new_model(&graph);
    add_opset(&model, "com.microsoft", 1);
    add_opset(&model, "mine", 1);
    return model;
}

static const epctx_profile *repair_profile;

static epctx_status run_repair(epctx_model *a, epctx_model *b, epctx_error *error) {
    epctx_rule rules[EPCTX_RULE_COUNT];
    epctx_repair_opts opts = {0};
    opts.source = b;
    opts.check.no_files = true;
    opts.check.profile = repair_profile;
    opts.check.allocator = a->arena.allocator.alloc_fn != NULL ? &a->arena.allocator : NULL;
    for (opts.rules = rules; opts.rule_count < EPCTX_RULE_COUNT; opts.rule_count++)
        rules[opts.rule_count] = (epctx_rule)opts.rule_count;
    return epctx_repair(a, &opts, NULL, NULL, NULL, NULL, error);
}

TEST(repair_of_everything) {
    size_t runs = 0;
    const char *wrong;
    repair_profile = NULL;
    wrong = starve_made(run_repair, broken_model, broken_source, FILLS, &runs);
    CHECK(wrong == NULL, "%s", wrong);
    wrong = starve_made(run_repair, untyped_model, broken_source, FILLS, &runs);
    CHECK(wrong == NULL, "untyped: %s", wrong);
    repair_profile = epctx_profile_find(epctx_str_of("openvino"));
    wrong = starve_made(run_repair, broken_model, broken_source, 1, &runs);
    CHECK(wrong == NULL, "openvino: %s", wrong);
    printf("note %zu runs\n", runs);
}

/* -- every operation, on any two models -- */

enum { MERGE, CHAIN, CONNECT, SPLIT_BEHIND, SPLIT_BEFORE, SPLIT_ALL, REPAIR, OPERATIONS };

/* One of the operations on two models; the models may be anything. */
static epctx_status operate(int which, epctx_model *a, epctx_model *b, epctx_error *error) {
    epctx_connection link = {0};
    epctx_merge_opts merge_opts = {0};
    epctx_repair_opts repair_opts = {0};
    epctx_part parts[2];
    epctx_combined out;
    epctx_rule rules[EPCTX_RULE_COUNT];
    memset(parts, 0, sizeof parts);
    parts[0].model = a;
    parts[1].model = b;
    repair_opts.source = b;
    repair_opts.check.no_files = true;
    repair_opts.check.allocator = a->arena.allocator.alloc_fn ? &a->arena.allocator : NULL;
    repair_opts.rules = rules;
    for (; repair_opts.rule_count < EPCTX_RULE_COUNT; repair_opts.rule_count++)
        rules[repair_opts.rule_count] = (epctx_rule)repair_opts.rule_count;
    merge_opts.metadata = EPCTX_METADATA_PREFIX;
    merge_opts.force_opset = true;
    link.output = epctx_str_of("y");
    link.to = EPCTX_ANY_PART;
    link.input = epctx_str_of("y");
    switch (which) {
    case CHAIN:
        merge_opts.chain = merge_opts.share_inputs = true;
        return epctx_merge(parts, 2, &merge_opts, &out, error);
    case CONNECT:
        parts[1].prefix = "right_";
        merge_opts.connections = &link;
        merge_opts.connection_count = 1;
        return epctx_merge(parts, 2, &merge_opts, &out, error);
    case MERGE: return epctx_merge(parts, 2, &merge_opts, NULL, error);
    case SPLIT_BEHIND: return split_at(a, "t", "y", error);
    case SPLIT_BEFORE: return split_at(a, "", "t", error);
    case SPLIT_ALL: return epctx_split(a, NULL, &out, error);
    default: return epctx_repair(a, &repair_opts, NULL, NULL, NULL, NULL, error);
    }
}

/* Whatever becomes of the operation: undo restores, and a failure has nothing to undo. */
static const char *operate_on(int which, const bytes *a, const bytes *b, counting *memory) {
    epctx_allocator allocator = counting_allocator(memory);
    epctx_open_opts opts = {0};
    epctx_model first, second;
    epctx_status status;
    const char *problem = NULL;
    size_t fail_at = memory->fail_at;
    memset(&second, 0, sizeof second);
    opts.allocator = &allocator;
    memory->fail_at = 0;
    if (epctx_model_open_memory(&first, a->data, a->size, &opts, NULL) == EPCTX_OK &&
        epctx_model_open_memory(&second, b->data, b->size, &opts, NULL) == EPCTX_OK) {
        memory->calls = 0;
        memory->fail_at = fail_at;
        status = operate(which, &first, &second, NULL);
        memory->fail_at = 0;
        if (status != EPCTX_OK && !untouched(&first, a)) problem = "a failure left an edit";
        if (!untouched(&second, b)) problem = "the second model changed";
        epctx_edit_undo(&first, 0);
        if (!untouched(&first, a)) problem = "undo does not restore";
        if (fail_at != 0 && memory->calls >= fail_at && status == EPCTX_OK)
            problem = "out of memory is a success";
    }
    epctx_model_close(&first);
    epctx_model_close(&second);
    if (memory->alive != 0) problem = "memory leaks";
    memory->fail_at = fail_at;
    return problem;
}

TEST(allocator_fails) {
    bytes a = chain_model("x", "y", 17), b = chain_model("y", "z", 17);
    int which;
    add_metadata(&b, "ep_compatibility_info.none", "x");
    for (which = 0; which < 2 * OPERATIONS; which++) {
        counting memory = {0};
        const char *problem;
        memory.once = which >= OPERATIONS;
        do {
            memory.fail_at++;
            problem = operate_on(which % OPERATIONS, &a, &b, &memory);
            CHECK(problem == NULL, "operation %d, call %zu: %s", which, memory.fail_at, problem);
        } while (memory.calls >= memory.fail_at && memory.fail_at < 500);
        CHECK(memory.fail_at > 1, "operation %d asks for no memory", which);
    }
    bytes_free(&a);
    bytes_free(&b);
}

/* Something of everything: x -> compiled -> t -> Called -> If -> y, a second compiled node beside
 * them, functions, a sparse and a plain initializer, annotations, metadata, training. */
static bytes rich_model(const char *x, const char *t, const char *y, const char *source,
                        int64_t ir_version, bool training, size_t fillers) {
    bytes graph = {0}, model = {0}, node, info = {0}, algorithm = {0};
    char names[64], side[64];
    size_t i;
    snprintf(names, sizeof names, "%s,w", t);
    snprintf(side, sizeof side, "%s_side", t);
    put_str(&graph, 2, "rich");
    for (i = 0; i < fillers; i++) {
        char filler[32];
        snprintf(filler, sizeof filler, "%s%zu", i % 2 == 0 ? "in" : "init", i);
        if (i % 2 == 0)
            add_value(&graph, GRAPH_INPUT, filler, EPCTX_ONNX_FLOAT, vector);
        else
            add_floats(&graph, filler, weights, 4);
        add_node(&graph, "Relu", filler, filler, "");
    }
    add_epnode(&graph, "n0", x, t, 1, 1, source, "p0", "payload", 7);
    add_epnode(&graph, "n1", x, side, 0, 1, source, "p1", NULL, 0);
    node = new_node("Called", "mine", "call", names, "u");
    put_child(&graph, 1, &node);
    add_node(&graph, "Sparse", "", "u,sp", "v");
    add_own_body(&graph, "if", "v", y, "w");
    add_floats(&graph, "w", weights, 4);
    add_floats(&graph, "scale", weights, 1);
    add_sparse_floats(&graph, "sp");
    add_value(&graph, GRAPH_INPUT, x, EPCTX_ONNX_FLOAT, vector);
    add_value(&graph, GRAPH_INPUT, "w", EPCTX_ONNX_FLOAT, vector);
    add_value(&graph, GRAPH_OUTPUT, y, EPCTX_ONNX_FLOAT, vector);
    add_value(&graph, GRAPH_OUTPUT, side, EPCTX_ONNX_FLOAT, vector);
    add_value(&graph, GRAPH_VALUE, t, EPCTX_ONNX_FLOAT, vector);
    add_scale(&graph, t, "scale");
    add_scale(&graph, "u", "scale");
    put_int(&model, 1, ir_version);
    add_opset(&model, "", 17);
    add_opset(&model, "mine", 1);
    add_opset(&model, "com.microsoft", 1);
    add_opset(&model, source, 1);
    put_child(&model, 7, &graph);
    add_function(&model, "Called", "Inner", NULL);
    add_function(&model, "Inner", "Leaf", NULL);
    add_function(&model, "Leaf", "Nothing", NULL);
    add_function(&model, "Idle", "Leaf", NULL);
    add_metadata(&model, "author", training ? "one" : "two");
    add_metadata(&model, "same", "same");
    add_metadata(&model, EPCTX_BUILD_PREFIX "x", "1");
    add_metadata(&model, "ep_compatibility_info.none", "x");
    if (training) {
        add_node(&algorithm, "Step", "step", "w", "w2");
        put_child(&info, 2, &algorithm);
        put_child(&model, 20, &info);
    }
    return model;
}

/* What repair can put right, as far as it stands in the model or its source. */
static bytes misfit_model(void) {
    bytes graph = {0}, model = {0}, node, tensor = {0};
    put_str(&graph, 2, "broken");
    node = new_node("EPContext", "", "same", "x", "q"); /* wrong domain, no attribute but these */
    add_attr_str(&node, "source", "qnn", 3);
    add_attr_str(&node, "ep_cache_context", "payload", 7);
    add_attr_str(&node, "ep_cache_context", "payload", 7);
    put_child(&graph, 1, &node);
    add_epnode(&graph, "same", "x", "r", -1, -1, "VitisAIExecutionProvider", "p", "c", 1);
    add_epnode(&graph, "", "x", "r2", 0, 1, "OpenVINOExecutionProvider", "p", NULL, 0);
    node = new_node("DequantizeLinear", "", "dq", "q,w,z", "dqy");
    put_child(&graph, 1, &node);
    add_node(&graph, "Add", "dq", "r,w", "s");
    add_node(&graph, "Else", "", "r2", "s2");
    node = new_node("Other", "mine", "other", "s", "y");
    put_child(&graph, 1, &node);
    add_own_body(&graph, "if", "y", "y2", "lost");
    add_floats(&graph, "w", weights, 4);
    add_floats(&graph, "w", weights, 4);
    add_floats(&graph, "idle", weights, 4);
    put_int(&tensor, 2, EPCTX_ONNX_UINT8);
    put_str(&tensor, 8, "z");
    put_data(&tensor, 9, "", 1);
    put_child(&graph, 5, &tensor);
    add_external(&graph, "far", 4, "*/_ORT_MEM_ADDR_/*", "0", "16");
    add_node(&graph, "Use", "use", "far", "used");
    add_value(&graph, GRAPH_INPUT, "x", EPCTX_ONNX_FLOAT, vector);
    add_value(&graph, GRAPH_OUTPUT, "y2", EPCTX_ONNX_FLOAT, vector);
    add_value(&graph, GRAPH_VALUE, "s", EPCTX_ONNX_FLOAT, vector);
    add_value(&graph, GRAPH_VALUE, "s", EPCTX_ONNX_FLOAT, vector);
    add_scale(&graph, "gone", "w");
    add_scale(&graph, "s", "gone");
    put_int(&model, 1, 8);
    put_int(&model, 1, 8);
    add_opset(&model, "", 17);
    add_opset(&model, "", 17);
    put_child(&model, 7, &graph);
    add_metadata(&model, "twice", "x");
    add_metadata(&model, "twice", "x");
    add_metadata(&model, "ep_compatibility_info.none", "x");
    return model;
}

/* What the broken model was compiled from. */
static bytes source_model(void) {
    bytes graph = {0}, model = {0}, tensor = {0};
    add_node(&graph, "Relu", "n", "x", "r2");
    add_floats(&graph, "lost", weights, 4);
    put_int(&tensor, 1, 4);
    put_int(&tensor, 2, EPCTX_ONNX_FLOAT);
    put_data(&tensor, 4, weights, sizeof weights); /* float_data: takes memory to read */
    put_str(&tensor, 8, "far");
    put_child(&graph, 5, &tensor);
    add_value(&graph, GRAPH_INPUT, "x", EPCTX_ONNX_FLOAT, vector);
    add_value(&graph, GRAPH_OUTPUT, "y2", EPCTX_ONNX_FLOAT, vector);
    add_value(&graph, GRAPH_VALUE, "r2", EPCTX_ONNX_FLOAT, vector);
    put_int(&model, 1, 8);
    add_opset(&model, "", 17);
    add_opset(&model, "mine", 3);
    put_child(&model, 7, &graph);
    return model;
}

static int operation; /* of the runs to come */

static epctx_status run_operation(epctx_model *a, epctx_model *b, epctx_error *error) {
    return operate(operation, a, b, error);
}

/* With more and more names, so that tables grow at every place. */
TEST(every_allocation_fails) {
    static const struct {
        int which, a, b;
    } cases[] = {{MERGE, 0, 1},        {CHAIN, 0, 2},     {CONNECT, 0, 3}, {SPLIT_BEHIND, 0, 1},
                 {SPLIT_BEFORE, 0, 1}, {SPLIT_ALL, 0, 1}, {REPAIR, 4, 5}};
    bytes models[6];
    size_t fillers, i, runs = 0;
    for (fillers = 0; fillers < 12; fillers += 6) {
        models[0] = rich_model("x", "t", "y", "EpctxNpuExecutionProvider", 8, true, fillers);
        models[1] = rich_model("x", "t", "y", "Unknown", 3, false, fillers / 2);
        models[2] = rich_model("y", "t2", "z", "OpenVINOExecutionProvider", 8, false, 11 - fillers);
        models[3] = rich_model("y", "t2", "z", "Unknown", 8, false, fillers);
        models[4] = misfit_model();
        models[5] = source_model();
        for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            starve_in in = {{&models[cases[i].a], &models[cases[i].b]}, {NULL, NULL}};
            const char *wrong;
            operation = cases[i].which;
            if (operation == REPAIR && fillers > 0) continue;
            wrong = starve_models(run_operation, &in, &runs);
            CHECK(wrong == NULL, "operation %d: %s", operation, wrong);
        }
        for (i = 0; i < 6; i++) bytes_free(&models[i]);
    }
}

TEST(damaged_models) {
    bytes models[3];
    uint32_t state = 20261121;
    size_t tries, i;
    models[0] = chain_model("x", "y", 17);
    models[1] = compiled_model("EpctxNpuExecutionProvider");
    models[2] = compiled_model("QNN");
    for (tries = 0; tries < 6000; tries++) {
        bytes a = {0}, b = {0};
        counting memory = {0};
        const char *problem;
        bytes_add(&a, models[tries % 3].data, models[tries % 3].size);
        bytes_add(&b, models[tries / 3 % 3].data, models[tries / 3 % 3].size);
        for (i = 1 + random_below(&state, 3); i > 0; i--) {
            bytes *victim = random_below(&state, 2) == 0 ? &a : &b;
            victim->data[random_below(&state, (uint32_t)victim->size)] =
                (uint8_t)random_below(&state, 256);
        }
        problem = operate_on((int)(tries / 9 % OPERATIONS), &a, &b, &memory);
        bytes_free(&a);
        bytes_free(&b);
        CHECK(problem == NULL, "try %zu: %s", tries, problem);
    }
    for (i = 0; i < 3; i++) bytes_free(&models[i]);
}

int main(int argc, char **argv) {
    RUN(merge_side_by_side);
    RUN(merge_with_prefixes);
    RUN(merge_with_bridges);
    RUN(split_behind_a_context);
    RUN(repair_of_everything);
    RUN(allocator_fails);
    RUN(every_allocation_fails);
    RUN(damaged_models);
    return test_end();
}
