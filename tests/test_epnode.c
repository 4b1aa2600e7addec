/* >>epnode: the ten attributes, stored and effective. */
#include "build.h"
#include "test.h"

/* Opens a model with one EPContext node (freed) and reads the node. */
static epctx_status read_node(bytes *node, epctx_model *model, bytes *b, epctx_epnode *out,
                              epctx_error *error) {
    bytes graph = {0};
    epctx_cursor it;
    epctx_node_view view;
    put_child(&graph, 1, node);
    *b = new_model(&graph);
    epctx_error_clear(error);
    if (epctx_model_open_memory(model, b->data, b->size, NULL, error) != EPCTX_OK)
        return EPCTX_ERR_BACKEND;
    it = epctx_view_graph_nodes(epctx_model_graph(model));
    if (!epctx_next_node(&it, &view) || !epctx_view_is_epnode(&view)) return EPCTX_ERR_BACKEND;
    return epctx_view_read_epnode(&view, out, error);
}

static bytes start(void) {
    return new_node("EPContext", "com.microsoft", "ctx0", "x", "y");
}

TEST(defaults) {
    epctx_epnode node = epctx_epnode_default();
    epctx_attr attrs[EPCTX_EPNODE_ATTR_COUNT];
    CHECK_UINT(node.present, 0);
    CHECK_INT(node.main_context, 1);
    CHECK_INT(node.embed_mode, 1);
    CHECK_INT(node.max_size, 0);
    CHECK_UINT(node.source.size, 0);
    CHECK_UINT(epctx_epnode_attrs(&node, attrs), 0);
    CHECK_INT(EPCTX_EPNODE_ATTR_COUNT, 10);
}

/* Absent is not the same as stored with the default's value. */
TEST(presence) {
    bytes node = start(), b;
    epctx_model model;
    epctx_epnode ep;
    epctx_error error;
    CHECK_INT(read_node(&node, &model, &b, &ep, &error), EPCTX_OK);
    CHECK_UINT(ep.present, 0);
    CHECK_INT(ep.main_context, 1);
    CHECK_INT(ep.embed_mode, 1);
    CHECK_TRUE(epctx_str_is(ep.name, "ctx0"));
    epctx_model_close(&model);
    bytes_free(&b);

    node = start();
    add_attr_int(&node, "main_context", 1);
    add_attr_int(&node, "max_size", 0);
    add_attr_str(&node, "notes", "", 0);
    CHECK_INT(read_node(&node, &model, &b, &ep, &error), EPCTX_OK);
    CHECK_UINT(ep.present, 1u << EPCTX_EPNODE_MAIN_CONTEXT | 1u << EPCTX_EPNODE_MAX_SIZE |
                               1u << EPCTX_EPNODE_NOTES);
    CHECK_INT(ep.embed_mode, 1);
    epctx_model_close(&model);
    bytes_free(&b);
}

/* A value is never left out because nobody set its bit; the bit stores a default, too. */
TEST(values_without_bits) {
    static const struct {
        const char *name;
        epctx_attr_type type;
        size_t place;
    } rows[] = {
#define ROW(id, name, type, member) {name, EPCTX_ATTR_##type, offsetof(epctx_epnode, member)},
        EPCTX_EPNODE_ATTR_LIST(ROW)
#undef ROW
    };
    const epctx_str text = epctx_str_of("v");
    const int64_t number = 7;
    epctx_attr attrs[EPCTX_EPNODE_ATTR_COUNT];
    epctx_epnode node;
    for (size_t i = 0; i < EPCTX_EPNODE_ATTR_COUNT; i++) {
        const bool is_text = rows[i].type == EPCTX_ATTR_STRING;
        node = epctx_epnode_default();
        if (is_text)
            memcpy((char *)&node + rows[i].place, &text, sizeof text);
        else
            memcpy((char *)&node + rows[i].place, &number, sizeof number);
        CHECK_UINT(epctx_epnode_attrs(&node, attrs), 1);
        CHECK_TRUE(epctx_str_is(attrs[0].name, rows[i].name));
        CHECK_TRUE(is_text ? epctx_str_is(attrs[0].s, "v") : attrs[0].i == 7);
        node = epctx_epnode_default();
        node.present = 1u << i;
        CHECK_UINT(epctx_epnode_attrs(&node, attrs), 1);
        CHECK_TRUE(epctx_str_is(attrs[0].name, rows[i].name));
    }
    node = epctx_epnode_default();
    node.source = epctx_str_of("QNNExecutionProvider");
    CHECK_INT(epctx_profile_claims(epctx_profile_find(epctx_str_of("qnn")), &node),
              EPCTX_CLAIM_YES);
    node.main_context = node.embed_mode = 0;
    CHECK_UINT(epctx_epnode_attrs(&node, attrs), 3);
}

TEST(all_attributes) {
    bytes node = start(), b;
    epctx_model model;
    epctx_epnode ep;
    epctx_error error;
    epctx_attr attrs[EPCTX_EPNODE_ATTR_COUNT];
    static const char *const order[EPCTX_EPNODE_ATTR_COUNT] = {"main_context",
                                                               "ep_cache_context",
                                                               "embed_mode",
                                                               "ep_sdk_version",
                                                               "onnx_model_filename",
                                                               "hardware_architecture",
                                                               "partition_name",
                                                               "source",
                                                               "notes",
                                                               "max_size"};
    add_attr_str(&node, "notes", "n", 1);
    add_attr_str(&node, "unknown", "u", 1); /* vendors add their own */
    add_attr_int(&node, "main_context", 0);
    add_attr_int(&node, "embed_mode", 0);
    add_attr_int(&node, "max_size", -5);
    add_attr_str(&node, "ep_cache_context", "a.bin", 5);
    add_attr_str(&node, "ep_sdk_version", "v1", 2);
    add_attr_str(&node, "onnx_model_filename", "m.onnx", 6);
    add_attr_str(&node, "hardware_architecture", "hw", 2);
    add_attr_str(&node, "partition_name", "p0", 2);
    add_attr_str(&node, "source", "NPU", 3);
    CHECK_INT(read_node(&node, &model, &b, &ep, &error), EPCTX_OK);
    CHECK_UINT(ep.present, (1u << EPCTX_EPNODE_ATTR_COUNT) - 1);
    CHECK_INT(ep.main_context, 0);
    CHECK_INT(ep.embed_mode, 0);
    CHECK_INT(ep.max_size, -5);
    CHECK_TRUE(epctx_str_is(ep.ep_cache_context, "a.bin"));
    CHECK_TRUE(epctx_str_is(ep.hardware_architecture, "hw"));
    CHECK_UINT(epctx_epnode_attrs(&ep, attrs), EPCTX_EPNODE_ATTR_COUNT);
    for (size_t i = 0; i < EPCTX_EPNODE_ATTR_COUNT; i++)
        CHECK(epctx_str_is(attrs[i].name, order[i]), "attribute %zu is not %s", i, order[i]);
    CHECK_INT(attrs[EPCTX_EPNODE_MAX_SIZE].i, -5);
    CHECK_INT(attrs[EPCTX_EPNODE_MAX_SIZE].type, EPCTX_ATTR_INT);
    CHECK_INT(attrs[EPCTX_EPNODE_SOURCE].type, EPCTX_ATTR_STRING);
    epctx_model_close(&model);
    bytes_free(&b);
}

/* Payloads are bytes, not text. */
TEST(payload_with_nul) {
    static const char payload[] = "\0\xff\xfe\0bin\0";
    bytes node = start(), b;
    epctx_model model;
    epctx_epnode ep;
    epctx_error error;
    add_attr_str(&node, "ep_cache_context", payload, sizeof payload);
    CHECK_INT(read_node(&node, &model, &b, &ep, &error), EPCTX_OK);
    CHECK_MEM(ep.ep_cache_context.data, ep.ep_cache_context.size, payload, sizeof payload);
    epctx_model_close(&model);
    bytes_free(&b);
}

/* Every attribute with the other type: the error names node and attribute. */
TEST(wrong_types) {
    static const struct {
        const char *name;
        bool is_int;
    } attrs[] = {{"main_context", true},
                 {"ep_cache_context", false},
                 {"embed_mode", true},
                 {"ep_sdk_version", false},
                 {"onnx_model_filename", false},
                 {"hardware_architecture", false},
                 {"partition_name", false},
                 {"source", false},
                 {"notes", false},
                 {"max_size", true}};
    for (size_t i = 0; i < sizeof attrs / sizeof attrs[0]; i++) {
        bytes node = start(), b;
        epctx_model model;
        epctx_epnode ep;
        epctx_error error;
        if (attrs[i].is_int)
            add_attr_str(&node, attrs[i].name, "1", 1);
        else
            add_attr_int(&node, attrs[i].name, 1);
        CHECK(read_node(&node, &model, &b, &ep, &error) == EPCTX_ERR_GRAPH, "%s", attrs[i].name);
        CHECK_STR(error.attribute, attrs[i].name);
        CHECK_STR(error.node, "ctx0");
        CHECK_HAS(error.message, attrs[i].name);
        CHECK_HAS(error.message, "ctx0");
        epctx_model_close(&model);
        bytes_free(&b);
    }
}

TEST(bad_values) {
    static const char *const names[] = {"main_context", "embed_mode"};
    static const int64_t values[] = {-1, 2, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < 2; i++) {
        for (size_t k = 0; k < sizeof values / sizeof values[0]; k++) {
            bytes node = start(), b;
            epctx_model model;
            epctx_epnode ep;
            epctx_error error;
            add_attr_int(&node, names[i], values[k]);
            CHECK(read_node(&node, &model, &b, &ep, &error) == EPCTX_ERR_GRAPH, "%s %" PRId64,
                  names[i], values[k]);
            CHECK_STR(error.attribute, names[i]);
            epctx_model_close(&model);
            bytes_free(&b);
        }
    }
}

/* op_type and domain together, letter by letter: the same op_type elsewhere is not an EPContext
 * node, nor is another operator of the same domain. */
TEST(other_domains) {
    static const struct {
        const char *op_type, *domain;
        bool is;
    } list[] = {{"EPContext", "com.microsoft", true},    {"EPContext", "", false},
                {"EPContext", "ai.onnx", false},         {"EPContext", "com.microsoft.x", false},
                {"EPContext", "com.microsof", false},    {"EPContext", "com.Microsoft", false},
                {"EPContext", "org.microsoft", false},   {"EPContext", "com", false},
                {"FusedMatMul", "com.microsoft", false}, {"", "com.microsoft", false},
                {"EPContex", "com.microsoft", false},    {"EPContexts", "com.microsoft", false},
                {"EpContext", "com.microsoft", false},   {"epcontext", "com.microsoft", false},
                {"XPContext", "com.microsoft", false},   {"Context", "com.microsoft", false},
                {"EP", "com.microsoft", false},          {"com.microsoft", "EPContext", false}};
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
        bytes node = new_node(list[i].op_type, list[i].domain, "n", "x", "y");
        epctx_node_view view;
        epctx_view body = {NULL, NULL, 0};
        bool is;
        body.data = node.data;
        body.size = node.size;
        view = epctx_view_as_node(body);
        is = epctx_view_is_epnode(&view);
        bytes_free(&node);
        CHECK(is == list[i].is, "'%s' of domain '%s'", list[i].op_type, list[i].domain);
    }
    /* Any one letter in the other case, or another letter. */
    for (size_t i = 0; i < 2 * (9 + 13); i++) {
        char op_type[] = "EPContext", domain[] = "com.microsoft";
        char *letter = i / 2 < 9 ? &op_type[i / 2] : &domain[i / 2 - 9];
        epctx_node_view view = {0};
        *letter = (char)(i % 2 == 0 ? *letter ^ 0x20 : '_');
        view.op_type = epctx_str_of(op_type);
        view.domain = epctx_str_of(domain);
        CHECK(!epctx_view_is_epnode(&view), "'%s' of domain '%s'", op_type, domain);
    }
}

TEST(from_record) {
    epctx_attr attrs[3];
    epctx_node record = {0};
    epctx_epnode ep;
    epctx_error error;
    memset(attrs, 0, sizeof attrs);
    attrs[0].name = epctx_str_of("source");
    attrs[0].type = EPCTX_ATTR_STRING;
    attrs[0].s = epctx_str_of("NPU");
    attrs[1].name = epctx_str_of("embed_mode");
    attrs[1].type = EPCTX_ATTR_INT;
    attrs[2].name = epctx_str_of("extra");
    attrs[2].type = EPCTX_ATTR_GRAPH;
    record.name = epctx_str_of("r");
    record.attrs = attrs;
    record.attr_count = 3;
    CHECK_INT(epctx_epnode_from_record(&record, &ep, &error), EPCTX_OK);
    CHECK_UINT(ep.present, 1u << EPCTX_EPNODE_SOURCE | 1u << EPCTX_EPNODE_EMBED_MODE);
    CHECK_INT(ep.embed_mode, 0);
    CHECK_INT(ep.main_context, 1);
    attrs[0].type = EPCTX_ATTR_FLOAT;
    CHECK_INT(epctx_epnode_from_record(&record, &ep, &error), EPCTX_ERR_GRAPH);
    CHECK_STR(error.attribute, "source");
}

/* -- before a node is written -- */

static const epctx_attr *own_attr(epctx_attr *attr, const char *name, epctx_attr_type type) {
    memset(attr, 0, sizeof *attr);
    attr->name = epctx_str_of(name);
    attr->type = type;
    return attr;
}

static epctx_status check_node(const epctx_epnode *node, const epctx_attr *own, size_t count,
                               epctx_error *error) {
    epctx_arena arena;
    epctx_status status;
    epctx_arena_init(&arena, NULL);
    status = epctx_epnode_check(node, own, count, &arena, error);
    epctx_arena_free(&arena);
    return status;
}

/* What can never be loaded is refused, with node, attribute, what is expected and found. */
TEST(never_loads) {
    static char long_path[EPCTX_PATH_MAX + 1];
    static const struct {
        const char *source;
        int64_t main_context, embed_mode;
        const char *context, *attribute, *message; /* NULL: it loads */
    } rows[] = {
        {"NPU", 1, 1, "payload", NULL, NULL},
        {"NPU", 1, 0, "a/b.bin", NULL, NULL},
        {"NPU", 0, 1, "", NULL, NULL},
        {"NPU", 0, 0, "", NULL, NULL},
        {"TensorrtExecutionProvider", 0, 1, "payload", NULL, NULL}, /* each has its own */
        {"openvinoexecutionprovider", 0, 0, "b.xml", NULL, NULL},   /* one of two EPs reads it */
        {"OpenVINOExecutionProvider", 0, 0, "b.xml", NULL, NULL},
        {"", 0, 0, "", "source", "is empty, the name of the EP is expected"}, /* all zero */
        {"NPU", 7, 1, "payload", "main_context", "is 7, must be 0 or 1"},
        {"NPU", -1, 1, "", "main_context", "is -1, must be 0 or 1"},
        {"NPU", 1, 2, "payload", "embed_mode", "is 2, must be 0 or 1"},
        {"NPU", 0, INT64_MIN, "", "embed_mode", "must be 0 or 1"},
        {"NPU", 1, 1, "", "ep_cache_context", "embed_mode 1 need the payload here"},
        {"NPU", 1, 0, "", "ep_cache_context", "embed_mode 0 need the path here"},
        {"NPU", 1, 0, "/tmp/evil.bin", "ep_cache_context", "is absolute"},
        {"NPU", 1, 0, "../up.bin", "ep_cache_context", "contains '..'"},
        {"NPU", 1, 0, "C:\\a.bin", "ep_cache_context", "is absolute"},
        {"NPU", 1, 0, "\x01secret", "ep_cache_context", "expected a path, found 7 bytes"},
        {"NPU", 1, 0, long_path, "ep_cache_context", "expected a path, found 4096 bytes"},
        {"OpenVINOExecutionProvider", 0, 0, "/b.xml", "ep_cache_context", "is absolute"},
        {"NPU", 0, 1, "payload", "main_context", "is 0, expected 1: ep_cache_context has 7 bytes"},
        {"NPU", 0, 0, "a.bin", "main_context", "is 0, expected 1: ep_cache_context has 5 bytes"},
    };
    epctx_attr own;
    memset(long_path, 'x', EPCTX_PATH_MAX);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        epctx_epnode node = epctx_epnode_default();
        epctx_error error;
        epctx_status status;
        node.name = epctx_str_of("n1");
        node.source = epctx_str_of(rows[i].source);
        node.main_context = rows[i].main_context;
        node.embed_mode = rows[i].embed_mode;
        node.ep_cache_context = epctx_str_of(rows[i].context);
        status = check_node(&node, NULL, 0, &error);
        if (rows[i].attribute == NULL) {
            CHECK(status == EPCTX_OK, "row %zu: %s", i, error.message);
            continue;
        }
        CHECK(status == EPCTX_ERR_BACKEND, "row %zu: %d", i, (int)status);
        CHECK_STR(error.attribute, rows[i].attribute);
        CHECK_STR(error.node, "n1");
        CHECK_HAS(error.message, rows[i].message);
        CHECK(strstr(error.message, "secret") == NULL, "%s", error.message);
        CHECK_INT(check_node(&node, NULL, 0, NULL), EPCTX_ERR_BACKEND);
    }
    /* QNN's other context stands for it. */
    {
        epctx_epnode node = epctx_epnode_default();
        epctx_error error;
        node.source = epctx_str_of("QNN");
        own_attr(&own, "ep_dlc_context", EPCTX_ATTR_STRING);
        CHECK_INT(check_node(&node, NULL, 0, &error), EPCTX_ERR_BACKEND);
        CHECK_INT(check_node(&node, &own, 1, &error), EPCTX_OK);
    }
}

TEST(own_attributes) {
    epctx_epnode node = epctx_epnode_default();
    epctx_attr own[3];
    epctx_error error;
    node.name = epctx_str_of("n1");
    node.source = epctx_str_of("NPU");
    node.ep_cache_context = epctx_str_of("payload");
    own_attr(&own[0], "lanes", EPCTX_ATTR_INT);
    own_attr(&own[1], EPCTX_WEIGHTS_ATTR, EPCTX_ATTR_STRING);
    own_attr(&own[2], "sourc", EPCTX_ATTR_STRING);
    CHECK_OK(check_node(&node, own, 3, &error), error);
    own[2].name = epctx_str_of("lanes");
    CHECK_INT(check_node(&node, own, 3, &error), EPCTX_ERR_BACKEND);
    CHECK_STR(error.attribute, "lanes");
    CHECK_HAS(error.message, "own attributes 0 and 2 have this name: each is expected once");
    own[2].name = epctx_str_of("");
    CHECK_INT(check_node(&node, own, 3, &error), EPCTX_ERR_BACKEND);
    CHECK_HAS(error.message, "node 'n1': own attribute 2 has no name, one is expected");
    own_attr(&own[2], "table", EPCTX_ATTR_TENSOR);
    CHECK_INT(check_node(&node, own, 3, &error), EPCTX_ERR_BACKEND);
    CHECK_STR(error.attribute, "table");
    CHECK_HAS(error.message, "has type 4 (TENSOR) and no value: ONNX Runtime makes INT, FLOAT, "
                             "STRING and lists of these");
    own_attr(&own[1], EPCTX_WEIGHTS_ATTR, EPCTX_ATTR_INT); /* loading refuses it */
    CHECK_INT(check_node(&node, own, 2, &error), EPCTX_ERR_BACKEND);
    CHECK_STR(error.attribute, EPCTX_WEIGHTS_ATTR);
    CHECK_HAS(error.message, "has type 2 (INT), STRING is expected");
    own_attr(&own[1], EPCTX_WEIGHTS_ATTR, EPCTX_ATTR_STRING);
    CHECK_INT(check_node(&node, NULL, SIZE_MAX, &error), EPCTX_ERR_BACKEND);
    CHECK_HAS(error.message, "own attributes, and no list");
    CHECK_OK(check_node(&node, NULL, 0, &error), error);
#define OF_SCHEMA(id, text, type, member) \
    own_attr(&own[2], text, EPCTX_ATTR_##type); \
    CHECK_INT(check_node(&node, own, 3, &error), EPCTX_ERR_BACKEND); \
    CHECK_STR(error.attribute, text); \
    CHECK_HAS(error.message, \
              "own attribute 2 has this name of the schema: set epctx_epnode." #member \
              ", or take a name of the EP's own"); \
    CHECK_STR(error.node, "n1");
    EPCTX_EPNODE_ATTR_LIST(OF_SCHEMA)
#undef OF_SCHEMA
}

/* What is not there, or is of no type, is named. */
TEST(own_values) {
    static const epctx_str broken[] = {{"a", 1}, {NULL, 3}};
    static const struct {
        int type;
        size_t size; /* of a string, else the elements of a list */
        const epctx_str *strings;
        const char *message; /* NULL: whole */
    } rows[] = {
        {EPCTX_ATTR_INT, 0, NULL, NULL},
        {EPCTX_ATTR_FLOAT, 0, NULL, NULL},
        {EPCTX_ATTR_STRING, 0, NULL, NULL},
        {EPCTX_ATTR_INTS, 0, NULL, NULL},
        {EPCTX_ATTR_STRINGS, 0, NULL, NULL},
        {EPCTX_ATTR_STRINGS, 1, broken, NULL},
        {EPCTX_ATTR_STRING, 3, NULL, "is STRING with size 3, and s.data is NULL"},
        {EPCTX_ATTR_INTS, 2, NULL, "is INTS with count 2, and ints is NULL"},
        {EPCTX_ATTR_FLOATS, SIZE_MAX, NULL, ", and floats is NULL"},
        {EPCTX_ATTR_STRINGS, 1, NULL, "is STRINGS with count 1, and strings is NULL"},
        {EPCTX_ATTR_STRINGS, 2, broken, "is STRINGS with count 2, and the data of one is NULL"},
        {EPCTX_ATTR_GRAPH, 0, NULL, "has type 5 (GRAPH) and no value: ONNX Runtime makes INT, "},
        {0, 0, NULL, "has type 0 ("},
        {99, 0, NULL, "and no value: ONNX Runtime makes INT, FLOAT, STRING and lists of these"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        epctx_epnode node = epctx_epnode_default();
        epctx_attr own;
        epctx_error error;
        epctx_status status;
        node.source = epctx_str_of("NPU");
        node.ep_cache_context = epctx_str_of("payload");
        own_attr(&own, "lanes", (epctx_attr_type)rows[i].type);
        own.s.size = own.count = rows[i].size;
        own.strings = rows[i].strings;
        status = check_node(&node, &own, 1, &error);
        CHECK(status == (rows[i].message != NULL ? EPCTX_ERR_BACKEND : EPCTX_OK), "row %zu: %s", i,
              error.message);
        if (rows[i].message == NULL) continue;
        CHECK_STR(error.attribute, "lanes");
        CHECK_HAS(error.message, rows[i].message);
    }
}

/* An attribute of the EP's own: of the type that is asked for, absent, or an error. */
TEST(typed_attribute) {
    epctx_attr attr;
    epctx_node record = {0};
    const epctx_attr *found;
    epctx_error error;
    record.name = epctx_str_of("r");
    record.attrs = &attr;
    record.attr_count = 1;
    for (int type = EPCTX_ATTR_FLOAT; type <= EPCTX_ATTR_STRINGS; type++) {
        own_attr(&attr, "lanes", (epctx_attr_type)type);
        for (int wanted = EPCTX_ATTR_FLOAT; wanted <= EPCTX_ATTR_STRINGS; wanted++) {
            char text[80];
            epctx_status status =
                epctx_node_get_attr(&record, "lanes", (epctx_attr_type)wanted, &found, &error);
            CHECK_INT(status, wanted == type ? EPCTX_OK : EPCTX_ERR_GRAPH);
            CHECK_TRUE(found == (wanted == type ? &attr : NULL));
            if (status == EPCTX_OK) continue;
            snprintf(text, sizeof text, "has attribute type %d (%s), expected %s", type,
                     epctx_attr_type_name(type), epctx_attr_type_name(wanted));
            CHECK_HAS(error.message, text);
            CHECK_STR(error.attribute, "lanes");
            CHECK_STR(error.node, "r");
        }
    }
    CHECK_INT(epctx_node_get_attr(&record, "lane", EPCTX_ATTR_INT, &found, &error), EPCTX_OK);
    CHECK_TRUE(found == NULL);
}

/* Inputs are variadic: none, and hundreds. */
TEST(many_inputs) {
    static const size_t counts[] = {0, 1, 300};
    for (size_t k = 0; k < 3; k++) {
        bytes graph = {0}, source, result;
        epctx_view none = {NULL, NULL, 0}, placed;
        epctx_model model, again;
        epctx_epnode ep = epctx_epnode_default();
        epctx_attr attrs[EPCTX_EPNODE_ATTR_COUNT];
        epctx_node record;
        epctx_node_view view;
        epctx_cursor it;
        epctx_str names[300], name, output = epctx_str_of("y");
        char texts[300][24];
        epctx_error error;
        size_t found = 0;
        for (size_t i = 0; i < counts[k]; i++) {
            snprintf(texts[i], sizeof texts[i], "x%zu", i);
            names[i] = epctx_str_of(texts[i]);
        }
        source = new_model(&graph);
        CHECK_INT(epctx_model_open_memory(&model, source.data, source.size, NULL, NULL), EPCTX_OK);
        memset(&record, 0, sizeof record);
        record.name = epctx_str_of("n");
        record.op_type = epctx_str_of(EPCTX_OP_TYPE);
        record.domain = epctx_str_of(EPCTX_DOMAIN);
        record.inputs = names;
        record.input_count = counts[k];
        record.outputs = &output;
        record.output_count = 1;
        record.attrs = attrs;
        record.attr_count = epctx_epnode_attrs(&ep, attrs);
        CHECK_OK(epctx_edit_put_node(&model, none, &record, none, &placed, &error), error);
        result = written(&model);
        CHECK_INT(epctx_model_open_memory(&again, result.data, result.size, NULL, NULL), EPCTX_OK);
        it = epctx_view_graph_nodes(epctx_model_graph(&again));
        CHECK_TRUE(epctx_next_node(&it, &view) && epctx_view_is_epnode(&view));
        CHECK_INT(epctx_view_read_epnode(&view, &ep, &error), EPCTX_OK);
        CHECK_UINT(view.input_count, counts[k]);
        it = epctx_view_node_inputs(&view);
        while (epctx_next_str(&it, &name)) {
            CHECK_TRUE(epctx_str_eq(name, names[found]));
            found++;
        }
        CHECK_UINT(found, counts[k]);
        epctx_model_close(&again);
        epctx_model_close(&model);
        bytes_free(&result);
        bytes_free(&source);
    }
}

/* Built, written, read again. */
TEST(round_trip) {
    bytes graph = {0}, source, result;
    epctx_model model, again;
    epctx_epnode ep = epctx_epnode_default(), back;
    epctx_attr attrs[EPCTX_EPNODE_ATTR_COUNT];
    epctx_node record = {0};
    epctx_view none = {NULL, NULL, 0}, placed;
    epctx_node_view view;
    epctx_cursor it;
    epctx_error error;
    epctx_str input = epctx_str_of("x"), output = epctx_str_of("y");
    add_node(&graph, "Relu", "relu", "x", "y");
    source = new_model(&graph);
    CHECK_INT(epctx_model_open_memory(&model, source.data, source.size, NULL, NULL), EPCTX_OK);
    ep.present = 1u << EPCTX_EPNODE_MAIN_CONTEXT | 1u << EPCTX_EPNODE_EP_CACHE_CONTEXT |
                 1u << EPCTX_EPNODE_MAX_SIZE | 1u << EPCTX_EPNODE_SOURCE;
    ep.main_context = 0;
    ep.max_size = INT64_MIN;
    ep.ep_cache_context.data = "a\0b";
    ep.ep_cache_context.size = 3;
    ep.source = epctx_str_of("NPU");
    record.name = epctx_str_of("new");
    record.op_type = epctx_str_of(EPCTX_OP_TYPE);
    record.domain = epctx_str_of(EPCTX_DOMAIN);
    record.inputs = &input;
    record.input_count = 1;
    record.outputs = &output;
    record.output_count = 1;
    record.attrs = attrs;
    record.attr_count = epctx_epnode_attrs(&ep, attrs);
    CHECK_OK(epctx_edit_put_node(&model, none, &record, none, &placed, &error), error);
    view = epctx_view_as_node(placed);
    CHECK_TRUE(epctx_str_is(view.name, "new"));
    result = written(&model);
    CHECK_UINT(result.size, epctx_model_size(&model));
    CHECK_INT(epctx_model_open_memory(&again, result.data, result.size, NULL, NULL), EPCTX_OK);
    it = epctx_view_graph_nodes(epctx_model_graph(&again));
    CHECK_TRUE(epctx_next_node(&it, &view) && epctx_str_is(view.name, "relu"));
    CHECK_TRUE(epctx_next_node(&it, &view) && epctx_view_is_epnode(&view));
    CHECK_INT(epctx_view_read_epnode(&view, &back, &error), EPCTX_OK);
    CHECK_UINT(back.present, ep.present);
    CHECK_INT(back.main_context, 0);
    CHECK_INT(back.max_size, INT64_MIN);
    CHECK_TRUE(epctx_str_eq(back.ep_cache_context, ep.ep_cache_context));
    CHECK_TRUE(epctx_str_is(back.source, "NPU"));
    epctx_model_close(&again);
    epctx_model_close(&model);
    bytes_free(&source);
    bytes_free(&result);
}

/* What genuine EPs write can be read. */
TEST(genuine) {
    const char *folder = test_models();
    static const struct {
        const char *file, *source;
    } cases[] = {
        {"epcontext/ort_testdata/qnn_multi_ctx_embed.onnx", NULL},
        {"epcontext/ort_testdata/mul_1_ep_ctx_ovir.onnx", "OpenVINOExecutionProvider"},
        {"epcontext/multi_partition/multi_single_embed0_ctx.onnx", "MiniEP"},
    };
    if (folder == NULL) SKIP("EPCTX_TEST_MODELS is not set");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char path[1000];
        epctx_model model;
        epctx_node_view node;
        epctx_epnode ep;
        epctx_error error;
        epctx_cursor it;
        snprintf(path, sizeof path, "%s/%s", folder, cases[i].file);
        CHECK_OK(epctx_model_open_file(&model, path, NULL, &error), error);
        it = epctx_view_graph_nodes(epctx_model_graph(&model));
        while (epctx_next_node(&it, &node)) {
            if (!epctx_view_is_epnode(&node)) continue;
            CHECK_OK(epctx_view_read_epnode(&node, &ep, &error), error);
            if (cases[i].source != NULL) CHECK_TRUE(epctx_str_is(ep.source, cases[i].source));
        }
        epctx_model_close(&model);
    }
}

int main(int argc, char **argv) {
    RUN(defaults);
    RUN(presence);
    RUN(values_without_bits);
    RUN(all_attributes);
    RUN(payload_with_nul);
    RUN(wrong_types);
    RUN(bad_values);
    RUN(other_domains);
    RUN(from_record);
    RUN(never_loads);
    RUN(own_attributes);
    RUN(own_values);
    RUN(typed_attribute);
    RUN(many_inputs);
    RUN(round_trip);
    RUN(genuine);
    return test_end();
}
