/* >>gen: EPContext nodes as the EP wants them (node_fn): attributes of its own, of every type, a
 * name, other inputs and outputs; and what epctx refuses. */
#define _XOPEN_SOURCE 700
#include "fake.h"
#include "files.h"
#include "test.h"

/* Attributes that epctx gives the first node of a fake context; the EP's own follow. */
enum { SCHEMA_ATTRS = 8 };

/* What a node_fn does to the node. */
typedef void wish(epctx_node *node, epctx_arena *arena);

typedef struct wanted {
    fake f; /* first: `self` of the others */
    wish *make;
    bool weights; /* weight_inputs; graphs have one */
} wanted;

static epctx_status wanted_node(void *self, void *build, const epctx_graph *graph,
                                epctx_arena *arena, epctx_node *node, epctx_error *error) {
    const wanted *w = (const wanted *)self;
    (void)error;
    if (build == NULL || graph->input_count + w->weights != node->input_count ||
        node->attr_count != 0)
        return epctx_fail(error, EPCTX_ERR_ARG, "node_fn gets another node");
    w->make(node, arena);
    return EPCTX_OK;
}

static epctx_backend wanted_backend(wanted *w) {
    epctx_backend backend = fake_backend(&w->f);
    backend.node_fn = wanted_node;
    backend.weight_inputs = w->weights;
    return backend;
}

static epctx_attr *more_attrs(epctx_node *node, epctx_arena *arena, size_t count) {
    epctx_attr *attrs = (epctx_attr *)epctx_arena_array(arena, count, sizeof *attrs);
    node->attrs = attrs;
    node->attr_count = count;
    return attrs;
}

/* -- what is allowed -- */

static const int64_t own_ints[] = {1, -2};
static const float own_floats[] = {0.5f};

/* One of every type, and the names that QNN, NVIDIA and others use. */
static void every_type(epctx_node *node, epctx_arena *arena) {
    static const char *const names[] = {"index",      "scale",     "ep_context_type",
                                        "own_tensor", "own_graph", "floats",
                                        "io",         "companies"};
    static const epctx_attr_type types[] = {EPCTX_ATTR_INT,    EPCTX_ATTR_FLOAT,  EPCTX_ATTR_STRING,
                                            EPCTX_ATTR_TENSOR, EPCTX_ATTR_GRAPH,  EPCTX_ATTR_FLOATS,
                                            EPCTX_ATTR_INTS,   EPCTX_ATTR_STRINGS};
    static const epctx_str strings[] = {{"a", 1}, {"", 0}};
    static const uint8_t data[] = {1, 2, 3};
    static const int64_t dims[] = {3};
    static epctx_tensor tensor;
    static epctx_graph graph;
    epctx_attr *attrs = more_attrs(node, arena, 8);
    tensor.elem_type = EPCTX_ONNX_UINT8;
    tensor.rank = 1;
    tensor.dims = dims;
    tensor.data = data;
    tensor.size = sizeof data;
    graph.name = epctx_str_of("body");
    for (size_t i = 0; i < 8; i++) {
        attrs[i].name = epctx_str_of(names[i]);
        attrs[i].type = types[i];
    }
    attrs[0].i = -7;
    attrs[1].f = 0.25f;
    attrs[2].s = epctx_str_of("dlc");
    attrs[3].t = &tensor;
    attrs[4].g = &graph;
    attrs[5].floats = own_floats;
    attrs[5].count = 1;
    attrs[6].ints = own_ints;
    attrs[6].count = 2;
    attrs[7].strings = strings;
    attrs[7].count = 2;
}

static void own_name(epctx_node *node, epctx_arena *arena) {
    (void)arena;
    node->name = epctx_str_of("qnn_graph_0");
}

/* 30 of them, as some write for each version and company. */
static void many_attrs(epctx_node *node, epctx_arena *arena) {
    epctx_attr *attrs = more_attrs(node, arena, 30);
    for (size_t i = 0; i < 30; i++) {
        char name[24];
        snprintf(name, sizeof name, "version_of_%d", (int)i);
        attrs[i].name = epctx_str_of(epctx_arena_copy(arena, epctx_str_of(name)));
        attrs[i].type = EPCTX_ATTR_INT;
        attrs[i].i = (int64_t)i;
    }
}

static epctx_str *some_names(epctx_arena *arena, const char *const *names, size_t count) {
    epctx_str *list = (epctx_str *)epctx_arena_array(arena, count, sizeof *list);
    for (size_t i = 0; i < count; i++) list[i] = epctx_str_of(names[i]);
    return list;
}

static void no_inputs(epctx_node *node, epctx_arena *arena) {
    (void)arena;
    node->input_count = 0;
    node->inputs = NULL;
}

static void as_it_is(epctx_node *node, epctx_arena *arena) {
    (void)node, (void)arena;
}

static void weights_first(epctx_node *node, epctx_arena *arena) {
    static const char *const names[] = {"w", "x"};
    node->inputs = some_names(arena, names, 2);
    node->input_count = 2;
}

static void outputs_turned(epctx_node *node, epctx_arena *arena) {
    static const char *const names[] = {"z", "y"};
    node->outputs = some_names(arena, names, 2);
}

/* x -> Take(w: 4,000 bytes) -> y -> Take -> z -> Keep -> u; y and u are outputs. */
static void make_model(const char *keep) {
    static const int64_t dims[] = {2, -1};
    static const float weights[1000] = {1};
    bytes graph = {0};
    add_node(&graph, "Take", "n0", "x,w", "y");
    add_node(&graph, "Take", "n1", "y", "z");
    add_node(&graph, "Keep", keep, "z", "u");
    put_str(&graph, 2, "main");
    add_value(&graph, GRAPH_INPUT, "x", EPCTX_ONNX_FLOAT, dims);
    add_value(&graph, GRAPH_OUTPUT, "y", EPCTX_ONNX_FLOAT, dims);
    add_value(&graph, GRAPH_OUTPUT, "u", EPCTX_ONNX_FLOAT, dims);
    add_floats(&graph, "w", weights, 1000);
    clear_root();
    save_model("m.onnx", &graph);
}

static epctx_status compile_with(wanted *w, const epctx_backend *backend,
                                 const epctx_gen_opts *opts, epctx_error *error) {
    epctx_model model;
    epctx_status status = epctx_model_open_file(&model, at("m.onnx"), NULL, error);
    if (status == EPCTX_OK) status = epctx_generate(&model, backend, opts, NULL, error);
    epctx_model_close(&model);
    return w->f.alive == 0 ? status : EPCTX_ERR_BACKEND; /* nothing stays behind */
}

static void put_strs(char *text, size_t room, const epctx_str *names, size_t count,
                     const char *end) {
    for (size_t i = 0; i < count; i++) {
        size_t used = strlen(text);
        snprintf(text + used, room - used, "%.*s%s", (int)names[i].size, names[i].data,
                 i + 1 < count ? "," : "");
    }
    strncat(text, end, room - strlen(text) - 1);
}

/* "name: in,in -> out,out [attributes that are not of the schema]" of the EPContext node. */
static const char *node_text(epctx_model *model) {
    static char text[2000];
    epctx_graph graph;
    epctx_error error;
    text[0] = '\0';
    if (epctx_model_load_graph(model, &graph, &error) != EPCTX_OK) return "";
    for (size_t i = 0; i < graph.node_count; i++) {
        const epctx_node *node = &graph.nodes[i];
        if (!epctx_str_is(node->op_type, EPCTX_OP_TYPE)) continue;
        put_strs(text, sizeof text, &node->name, 1, ": ");
        put_strs(text, sizeof text, node->inputs, node->input_count, " -> ");
        put_strs(text, sizeof text, node->outputs, node->output_count, " [");
        for (size_t k = SCHEMA_ATTRS; k < node->attr_count; k++) {
            const epctx_attr *attr = &node->attrs[k];
            size_t used = strlen(text);
            snprintf(text + used, sizeof text - used, " %.*s:%s:%d:%g:%.*s:%d",
                     (int)attr->name.size, attr->name.data,
                     epctx_attr_type_name((int32_t)attr->type), (int)attr->i, (double)attr->f,
                     (int)attr->s.size, attr->s.size > 0 ? attr->s.data : "", (int)attr->count);
        }
        strcat(text, "]");
    }
    return text;
}

/* What the backend sets is what the model has, embedded and beside a file. */
TEST(own_nodes) {
    static const struct {
        wish *make;
        const char *name, *boundary, *attrs; /* NULL: the default name */
        bool weights, stay;                  /* weight_inputs; in the model */
    } rows[] = {
        {every_type, NULL, "x -> y,z",
         " index:INT:-7:0::0 scale:FLOAT:0:0.25::0 ep_context_type:STRING:0:0:dlc:0 "
         "own_tensor:TENSOR:0:0::0 own_graph:GRAPH:0:0::0 floats:FLOATS:0:0::1 io:INTS:0:0::2 "
         "companies:STRINGS:0:0::2]",
         false, false},
        {many_attrs, NULL, "x -> y,z", " version_of_29:INT:29:0::0]", false, false},
        {own_name, "qnn_graph_0: ", "x -> y,z", " []", false, false},
        {no_inputs, NULL, " -> y,z", " []", false, false},
        {as_it_is, NULL, ": x,w -> y,z", " []", true, true},
        {weights_first, NULL, ": w,x -> y,z", " []", true, true},
        {no_inputs, NULL, ":  -> y,z", " []", true, false},
        {outputs_turned, NULL, "x -> z,y", " []", false, false},
    };
    for (size_t i = 0; i < 2 * sizeof rows / sizeof rows[0]; i++) {
        wanted w = {.make = rows[i / 2].make, .weights = rows[i / 2].weights};
        epctx_backend backend = wanted_backend(&w);
        epctx_gen_opts opts = {.embed = i % 2 == 1, .verify = true};
        epctx_error error;
        epctx_model model;
        const char *text;
        make_model("n2");
        CHECK_OK(compile_with(&w, &backend, &opts, &error), error);
        CHECK_INT(epctx_model_open_file(&model, at("m_ctx.onnx"), NULL, &error), EPCTX_OK);
        text = node_text(&model);
        CHECK_HAS(text, rows[i / 2].name != NULL ? rows[i / 2].name : "FakeEP_");
        CHECK_HAS(text, rows[i / 2].boundary);
        CHECK_HAS(text, rows[i / 2].attrs);
        /* The weights alone have 4,000 bytes. */
        CHECK(rows[i / 2].stay == (model.bytes.size > 4000), "%zu bytes in row %zu",
              model.bytes.size, i);
        epctx_model_close(&model);
    }
}

/* -- what is refused -- */

static void twice(epctx_node *node, epctx_arena *arena) {
    epctx_attr *attrs = more_attrs(node, arena, 2);
    attrs[0].name = attrs[1].name = epctx_str_of("index");
    attrs[0].type = attrs[1].type = EPCTX_ATTR_INT;
}

static void reserved(epctx_node *node, epctx_arena *arena) {
    epctx_attr *attrs = more_attrs(node, arena, 1);
    attrs[0].name = epctx_str_of("main_context");
    attrs[0].type = EPCTX_ATTR_INT;
}

static void reserved_weights(epctx_node *node, epctx_arena *arena) {
    epctx_attr *attrs = more_attrs(node, arena, 1);
    attrs[0].name = epctx_str_of(EPCTX_WEIGHTS_ATTR);
    attrs[0].type = EPCTX_ATTR_STRING;
}

static void nameless_attr(epctx_node *node, epctx_arena *arena) {
    more_attrs(node, arena, 1)->type = EPCTX_ATTR_INT;
}

static void no_tensor(epctx_node *node, epctx_arena *arena) {
    epctx_attr *attrs = more_attrs(node, arena, 1);
    attrs[0].name = epctx_str_of("t");
    attrs[0].type = EPCTX_ATTR_TENSOR;
}

static void other_type(epctx_node *node, epctx_arena *arena) {
    epctx_attr *attrs = more_attrs(node, arena, 1);
    attrs[0].name = epctx_str_of("t");
    attrs[0].type = (epctx_attr_type)77;
}

static void no_strings(epctx_node *node, epctx_arena *arena) {
    epctx_attr *attrs = more_attrs(node, arena, 1);
    attrs[0].name = epctx_str_of("s");
    attrs[0].type = EPCTX_ATTR_STRINGS;
    attrs[0].count = 3;
}

static void no_list(epctx_node *node, epctx_arena *arena) {
    (void)arena;
    node->attr_count = SIZE_MAX;
}

static void no_name(epctx_node *node, epctx_arena *arena) {
    (void)arena;
    node->name = epctx_str_of("");
}

static void unknown_input(epctx_node *node, epctx_arena *arena) {
    static const char *const names[] = {"x", "nowhere"};
    node->inputs = some_names(arena, names, 2);
    node->input_count = 2;
}

static void inner_input(epctx_node *node, epctx_arena *arena) {
    static const char *const names[] = {"y"};
    node->inputs = some_names(arena, names, 1);
}

static void output_twice(epctx_node *node, epctx_arena *arena) {
    static const char *const names[] = {"y", "y"};
    node->outputs = some_names(arena, names, 2);
}

static void output_less(epctx_node *node, epctx_arena *arena) {
    (void)arena;
    node->output_count = 1;
}

static void output_more(epctx_node *node, epctx_arena *arena) {
    static const char *const names[] = {"y", "z", "x"};
    node->outputs = some_names(arena, names, 3);
    node->output_count = 3;
}

TEST(refused_nodes) {
    static const struct {
        wish *make;
        const char *what, *expected;
    } rows[] = {
        {twice, "attribute 'index': own attributes 0 and 1 have this name",
         "each is expected once"},
        {reserved, "attribute 'main_context': own attribute 0 has this name of the schema",
         "or take a name of the EP's own"},
        {reserved_weights, "attribute 'epctx_weights': epctx makes this one",
         "an attribute of the EP's own is expected"},
        {nameless_attr, "own attribute 0 has no name", "node_fn: "},
        {no_tensor, "attribute 't': has type 4 (TENSOR)", "STRING and lists of these"},
        {other_type, "attribute 't': has type 77", "STRING and lists of these"},
        {no_strings, "attribute 's': is STRINGS with count 3", "and strings is NULL"},
        {no_list, "2 outputs and", "no list"},
        {no_name, "gave no name", "one is expected"},
        {unknown_input, "input 1, 'nowhere'", "one of the 1 inputs and 0 weight inputs"},
        {inner_input, "input 0, 'y'", "one of the 1 inputs and 0 weight inputs"},
        {weights_first, "input 0, 'w'", "one of the 1 inputs and 0 weight inputs"},
        {output_twice, "output 1, 'y'", "the 2 outputs of the partition, each once"},
        {output_less, "gave 1 outputs", "expected 2"},
        {output_more, "output 2, 'x'", "the 2 outputs of the partition, each once"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        wanted w = {.make = rows[i].make};
        epctx_backend backend = wanted_backend(&w);
        epctx_error error;
        make_model("n2");
        CHECK_INT(compile_with(&w, &backend, NULL, &error), EPCTX_ERR_BACKEND);
        CHECK_HAS(error.message, rows[i].what);
        CHECK_HAS(error.message, rows[i].expected);
        CHECK_HAS(error.message, "m.onnx: partition 'FakeEP_");
        if (rows[i].make != no_name) CHECK_HAS(error.node, "FakeEP_");
        CHECK_STR(listing(), "m.onnx ");
    }
}

/* An EP that finds graphs by names of nodes may not rename them. */
TEST(name_that_is_a_key) {
    wanted w = {.make = own_name};
    epctx_backend backend = wanted_backend(&w);
    epctx_error error;
    backend.source = "QNNExecutionProvider";
    make_model("n2");
    CHECK_INT(compile_with(&w, &backend, NULL, &error), EPCTX_ERR_BACKEND);
    CHECK_HAS(error.message, "finds graphs by names of nodes");
}

/* Names of two partitions, and of one and a node that stays. */
TEST(names_that_clash) {
    wanted w = {.make = own_name};
    epctx_backend backend = wanted_backend(&w);
    epctx_error error;
    clear_root();
    make_source(0);
    CHECK_INT(compile_with(&w, &backend, NULL, &error), EPCTX_ERR_BACKEND);
    CHECK_HAS(error.message, "the name 'qnn_graph_0', which partition 'FakeEP_");
    make_model("qnn_graph_0");
    CHECK_INT(compile_with(&w, &backend, NULL, &error), EPCTX_ERR_GRAPH);
    CHECK_HAS(error.message, "node 'qnn_graph_0': has the name of an EPContext node of FakeEP");
    CHECK_STR(listing(), "m.onnx ");
}

/* A node_fn that fails fails the partition; in a group a later one may follow. */
static bool refuse_once;

static epctx_status refusing_node(void *self, void *build, const epctx_graph *graph,
                                  epctx_arena *arena, epctx_node *node, epctx_error *error) {
    (void)self, (void)build, (void)graph, (void)arena, (void)node;
    if (!refuse_once) return EPCTX_OK;
    refuse_once = false;
    return epctx_fail(error, EPCTX_ERR_UNSUPPORTED, "node_fn fails as told");
}

TEST(node_fn_fails) {
    fake f = {0};
    epctx_backend backend = fake_backend(&f);
    epctx_ep_opts opts = {.binary = "m_fake.bin"};
    epctx_arena arena;
    epctx_error error;
    epctx_ep ep;
    fake_piece piece;
    size_t count = 0;
    const epctx_graph *graph = fake_make_piece(&piece, "x", "y");
    backend.node_fn = refusing_node;
    refuse_once = true;
    epctx_arena_init(&arena, NULL);
    CHECK_INT(epctx_ep_begin(&ep, &backend, &opts, 2, &arena, &error), EPCTX_OK);
    CHECK_INT(epctx_ep_compile(&ep, graph, &error), EPCTX_ERR_UNSUPPORTED);
    CHECK_HAS(error.message, "node_fn fails as told");
    CHECK_INT(epctx_ep_compile(&ep, graph, &error), EPCTX_OK);
    CHECK_INT(epctx_ep_finish(&ep, &error), EPCTX_OK);
    CHECK_TRUE(epctx_ep_context_nodes(&ep, &count) != NULL && count == 1);
    epctx_ep_end(&ep);
    epctx_arena_free(&arena);
    CHECK_INT(f.alive, 0);
}

/* -- units, and a limit -- */

/* The first and the last Take of source(), between which Keep is. */
static epctx_status ends_together(void *self, const epctx_graph *graph, const uint8_t *take,
                                  uint32_t *units, epctx_error *error) {
    (void)self, (void)take, (void)error;
    units[0] = units[graph->node_count - 1] = 1;
    return EPCTX_OK;
}

static char refused[400];

static void note_refused(void *user, const epctx_node *node, const epctx_error *why) {
    size_t used = strlen(refused);
    (void)user;
    snprintf(refused + used, sizeof refused - used, "%.*s: %s; ", (int)node->name.size,
             node->name.data, strstr(why->message, "operator"));
}

TEST(units_and_limit) {
    static const struct {
        bool units;
        size_t most;
        const char *pieces, *refused;
    } rows[] = {
        {false, 0, "x,x2->b,b2;c,b2->y;", "n2: operator Keep "},
        {false, 1, "x->a;a,x2->b,b2;c,b2->y;", "n2: operator Keep "},
        {true, 0, "a,x2->b,b2;",
         "n0: operator Take is one of several nodes that FakeEP takes together, and they do not "
         "fit "
         "into one partition; n2: operator Keep "},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        wanted w = {.make = as_it_is};
        epctx_backend backend = wanted_backend(&w);
        epctx_hooks hooks = {.refused_fn = note_refused};
        epctx_gen_opts opts = {.hooks = &hooks};
        epctx_error error;
        if (rows[i].units) backend.units_fn = ends_together;
        backend.most_nodes = rows[i].most;
        refused[0] = '\0';
        clear_root();
        make_source(0);
        CHECK_OK(compile_with(&w, &backend, &opts, &error), error);
        CHECK_STR(w.f.log, rows[i].pieces);
        CHECK_HAS(refused, rows[i].refused);
    }
}

int main(int argc, char **argv) {
    if (!make_root()) return 1;
    RUN(own_nodes);
    RUN(refused_nodes);
    RUN(name_that_is_a_key);
    RUN(names_that_clash);
    RUN(node_fn_fails);
    RUN(units_and_limit);
    remove_root();
    return test_end();
}
