/* >>edit: records, places, copies, members of a oneof and names of nodes, field by field; and edits
 * with every allocation failing in turn. */
#define _XOPEN_SOURCE 700
#include "examples/epctx/ops/rename.h"
#include "edit.h"
#include "starve.h"

/* -- records -- */

/* The typed field of doubles with another wire type has no data; a dimension that is negative is
 * unknown. */
TEST(odd_tensors_and_shapes) {
    bytes graph = {0}, tensor = {0}, value = {0}, type = {0}, inner = {0}, shape = {0}, dim = {0};
    epctx_graph record;
    desk d;
    put_int(&tensor, 1, 1);
    put_int(&tensor, 2, 11);
    put_str(&tensor, 8, "d");
    put_int(&tensor, 10, 1);
    put_child(&graph, 5, &tensor);
    add_ends(&graph, "x", "y");
    CHECK_TRUE(desk_open(&d, new_model(&graph)));
    CHECK_INT(epctx_model_load_graph(&d.model, &record, &d.error), EPCTX_ERR_GRAPH);
    CHECK_HAS(d.error.message, "'d': its typed field holds bytes: 0, its shape needs 8");
    desk_close(&d);
    put_int(&dim, 1, -5);
    put_child(&shape, 1, &dim);
    put_str(&dim, 2, "n");
    put_child(&shape, 1, &dim);
    put_int(&dim, 1, 3);
    put_child(&shape, 1, &dim);
    put_int(&inner, 1, EPCTX_ONNX_FLOAT);
    put_child(&inner, 2, &shape);
    put_child(&type, 1, &inner);
    put_str(&value, 1, "v");
    put_child(&value, 2, &type);
    put_child(&graph, GRAPH_INPUT, &value);
    put_str(&graph, 2, "g");
    CHECK_TRUE(desk_open(&d, new_model(&graph)));
    CHECK_INT(epctx_model_load_graph(&d.model, &record, &d.error), EPCTX_OK);
    CHECK_INT(record.inputs[0].rank, 3);
    CHECK_INT(record.inputs[0].dims[0], -1);
    CHECK_INT(record.inputs[0].dims[1], -1);
    CHECK_INT(record.inputs[0].dims[2], 3);
    desk_close(&d);
}

/* Every type that has a size has its typed field. */
TEST(typed_fields) {
    static const struct {
        int32_t elem;
        uint32_t field;
        size_t count, size; /* numbers in the field, bytes that come of them */
    } cases[] = {
        {1, 4, 1, 4},   {14, 4, 2, 8},  {7, 7, 1, 8},  {11, 10, 1, 8}, {15, 10, 2, 16},
        {12, 11, 1, 4}, {13, 11, 1, 8}, {2, 5, 1, 1},  {3, 5, 1, 1},   {4, 5, 1, 2},
        {5, 5, 1, 2},   {6, 5, 1, 4},   {9, 5, 1, 1},  {10, 5, 1, 2},  {16, 5, 1, 2},
        {17, 5, 1, 1},  {20, 5, 1, 1},  {24, 5, 1, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bytes graph = {0}, tensor = {0};
        epctx_graph record;
        desk d;
        put_int(&tensor, 1, 1);
        put_int(&tensor, 2, cases[i].elem);
        put_str(&tensor, 8, "t");
        for (size_t k = 0; k < cases[i].count; k++)
            if (cases[i].field == 4)
                put_float(&tensor, 4, 1);
            else if (cases[i].field == 10)
                put_data(&tensor, 10, "\1\0\0\0\0\0\0", 8);
            else
                put_int(&tensor, cases[i].field, 1);
        put_child(&graph, 5, &tensor);
        add_ends(&graph, "x", "y");
        CHECK_TRUE(desk_open(&d, new_model(&graph)));
        CHECK(epctx_model_load_graph(&d.model, &record, &d.error) == EPCTX_OK, "type %d: %s",
              (int)cases[i].elem, d.error.message);
        CHECK_UINT(record.initializers[0].size, cases[i].size);
        CHECK(record.initializers[0].data[cases[i].field == 4 ? 2 : 0] ==
                  (cases[i].field == 4 ? 0x80 : 1),
              "type %d: another value", (int)cases[i].elem);
        desk_close(&d);
    }
}

/* Data of a tensor that was edited is not at an offset of the file, whether the memory of the model
 * lies before the file or behind it. */
TEST(offsets_of_edited_data) {
    enum { ROOM = 1 << 16 };
    bytes data = sample();
    uint8_t *memory = (uint8_t *)malloc(2 * ROOM + data.size);
    int side;
    CHECK_TRUE(memory != NULL);
    memcpy(memory + ROOM, data.data, data.size);
    for (side = 0; side < 2; side++) {
        epctx_open_opts opts = {0};
        epctx_span other = {(const uint8_t *)"0123456789abcdef", 16};
        epctx_graph record;
        epctx_model model;
        opts.buffer = memory + (side == 0 ? 0 : ROOM + data.size);
        opts.buffer_size = ROOM;
        CHECK_INT(epctx_model_open_memory(&model, memory + ROOM, data.size, &opts, NULL), EPCTX_OK);
        CHECK_INT(epctx_model_load_graph(&model, &record, NULL), EPCTX_OK);
        CHECK(record.initializers[0].offset > 0, "a tensor of the file has offset 0");
        CHECK_MEM(data.data + record.initializers[0].offset, 16, weights, 16);
        CHECK_INT(epctx_edit_set_tensor_raw(&model, tensor_at(&model), other, NULL), EPCTX_OK);
        CHECK_INT(epctx_model_load_graph(&model, &record, NULL), EPCTX_OK);
        CHECK_MEM(record.initializers[0].data, record.initializers[0].size, other.data, 16);
        CHECK_UINT(record.initializers[0].offset, 0);
        epctx_model_close(&model);
    }
    free(memory);
    bytes_free(&data);
}

/* A new field without bytes has no address either (clang's UBSan counts from none). */
TEST(new_fields_without_bytes) {
    bytes data = sample();
    epctx_model model;
    epctx_error error;
    epctx_tensor_view tensor;
    epctx_cursor dims;
    int64_t dim;
    CHECK_INT(epctx_model_open_memory(&model, data.data, data.size, NULL, &error), EPCTX_OK);
    CHECK_INT(epctx_edit_remove_field(&model, tensor_at(&model), EPCTX_FIELD_TENSOR_DIMS, &error),
              EPCTX_OK);
    CHECK_INT(epctx_edit_put_copy(&model, tensor_at(&model), EPCTX_FIELD_TENSOR_DIMS,
                                  epctx_view_none(), epctx_view_none(), NULL, &error),
              EPCTX_OK);
    tensor = epctx_view_as_tensor(tensor_at(&model));
    CHECK_INT(tensor.rank, 0);
    dims = epctx_view_tensor_dims(&tensor);
    CHECK(!epctx_next_int(&dims, &dim), "a dimension of an empty field");
    epctx_model_close(&model);
    bytes_free(&data);
}

/* Records that are wrong stop at the first that is. */
TEST(records_refused) {
    static const int64_t none[] = {0}, negative[] = {-1}, two[] = {2}, huge[] = {INT64_MAX, 2},
                         many[] = {INT64_MAX / 2};
    static const struct {
        int32_t elem, rank;
        const int64_t *dims;
        const void *data;
        size_t size;
        epctx_status status;
    } cases[] = {
        {EPCTX_ONNX_FLOAT, 1, two, NULL, 8, EPCTX_ERR_UNSUPPORTED},
        {EPCTX_ONNX_STRING, 1, two, weights, 8, EPCTX_ERR_UNSUPPORTED},
        {EPCTX_ONNX_FLOAT, 1, negative, weights, 8, EPCTX_ERR_ARG},
        {EPCTX_ONNX_FLOAT, 2, huge, weights, 8, EPCTX_ERR_ARG},
        {EPCTX_ONNX_FLOAT, 1, many, weights, 8, EPCTX_ERR_ARG},
        {EPCTX_ONNX_FLOAT, 1, two, weights, 4, EPCTX_ERR_ARG},
        {EPCTX_ONNX_FLOAT, 1, none, NULL, 0, EPCTX_OK},
        {22, 1, two, weights, 1, EPCTX_OK}, /* int4: no size of its own */
    };
    epctx_attr attrs[2];
    epctx_node node, inner[2];
    epctx_tensor tensor;
    epctx_value value = {0};
    epctx_graph graph = {0};
    desk d;
    size_t i;
    CHECK_TRUE(desk_open(&d, sample()));
    memset(&node, 0, sizeof node);
    memset(inner, 0, sizeof inner);
    memset(attrs, 0, sizeof attrs);
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        memset(&tensor, 0, sizeof tensor);
        tensor.name = epctx_str_of("new");
        tensor.elem_type = cases[i].elem;
        tensor.rank = cases[i].rank;
        tensor.dims = cases[i].dims;
        tensor.data = (const uint8_t *)cases[i].data;
        tensor.size = cases[i].size;
        CHECK(epctx_edit_put_initializer(&d.model, no_view(), &tensor, no_view(), NULL, &d.error) ==
                  cases[i].status,
              "case %zu: %s", i, d.error.message);
        CHECK_UINT(epctx_edit_mark(&d.model), cases[i].status == EPCTX_OK);
        epctx_edit_undo(&d.model, 0);
        CHECK(untouched(&d.model, &d.data), "case %zu changes something", i);
    }
    tensor.elem_type = EPCTX_ONNX_FLOAT;
    REFUSES(&d,
            epctx_edit_put_initializer(&d.model, node_at(&d.model, 0).view, &tensor, no_view(),
                                       NULL, &d.error),
            EPCTX_ERR_ARG, "graph");
    /* The first of two attributes, the first of two nodes of a body. */
    node.op_type = inner[0].op_type = inner[1].op_type = epctx_str_of("Op");
    node.attrs = attrs;
    node.attr_count = 2;
    attrs[0].name = epctx_str_of("wrong");
    attrs[0].type = EPCTX_ATTR_TENSOR;
    attrs[1].name = epctx_str_of("right");
    attrs[1].type = EPCTX_ATTR_INT;
    REFUSES(&d, epctx_edit_put_node(&d.model, no_view(), &node, no_view(), NULL, &d.error),
            EPCTX_ERR_UNSUPPORTED, "tensor");
    inner[0].attrs = attrs;
    inner[0].attr_count = 1;
    graph.nodes = inner;
    graph.node_count = 2;
    attrs[1].type = EPCTX_ATTR_GRAPH;
    attrs[1].g = &graph;
    node.attrs = attrs + 1;
    node.attr_count = 1;
    REFUSES(&d, epctx_edit_put_node(&d.model, no_view(), &node, no_view(), NULL, &d.error),
            EPCTX_ERR_UNSUPPORTED, "tensor");
    /* A type without a record, of a node that is none: what is wrong first. */
    attrs[0].type = EPCTX_ATTR_SPARSE_TENSOR;
    REFUSES(&d, epctx_edit_set_attr(&d.model, no_view(), attrs, &d.error), EPCTX_ERR_ARG, "view");
    REFUSES(&d, epctx_edit_set_attr(&d.model, node_at(&d.model, 0).view, attrs, &d.error),
            EPCTX_ERR_UNSUPPORTED, "copy it from a view");
    value.name = epctx_str_of("v");
    REFUSES(&d,
            epctx_edit_put_value(&d.model, no_view(), EPCTX_FIELD_GRAPH_NODE, &value, no_view(),
                                 NULL, &d.error),
            EPCTX_ERR_ARG, "field 1 of a graph holds no values");
    desk_close(&d);
}

/* Singular fields that occur twice become one, unless the caller says no: then nothing changes. */
static epctx_status count_doubled(void *user, const epctx_field_info *field, epctx_str node,
                                  epctx_error *error) {
    (void)field, (void)error;
    ++*(int *)user;
    return epctx_str_is(node, "no") ? EPCTX_ERR_CANCELLED : EPCTX_OK;
}

TEST(doubled_fields) {
    bytes graph = {0}, data;
    int count = 0;
    desk d;
    for (int i = 0; i < 2; i++) {
        bytes node = new_node("Relu", "", "first", i == 0 ? "x" : "t", i == 0 ? "t" : "y");
        put_str(&node, 3, i == 0 ? "yes" : "no");
        put_child(&graph, 1, &node);
    }
    add_ends(&graph, "x", "y");
    data = new_model(&graph);
    CHECK_TRUE(desk_open(&d, data));
    CHECK_INT(epctx_edit_merge_doubled(&d.model, count_doubled, &count, &d.error),
              EPCTX_ERR_CANCELLED);
    CHECK_INT(count, 2);
    CHECK(untouched(&d.model, &d.data), "a refusal changes something");
    /* what was removed is not asked about */
    CHECK_INT(epctx_edit_remove(&d.model, node_at(&d.model, 1).view, &d.error), EPCTX_OK);
    count = 0;
    CHECK_OK(epctx_edit_merge_doubled(&d.model, count_doubled, &count, &d.error), d.error);
    CHECK_INT(count, 1);
    CHECK_TRUE(epctx_str_is(node_at(&d.model, 0).name, "yes"));
    desk_close(&d);
}

/* Data goes, and unknown fields stay; a file without a name is none to rename. */
TEST(data_and_files_of_others) {
    static const uint8_t raw[4] = {1};
    const epctx_span data = {raw, sizeof raw};
    const epctx_file_rename nameless = {EPCTX_USE_INITIALIZERS, epctx_str_of(""),
                                        epctx_str_of("w.bin")};
    bytes graph = {0}, tensor = {0};
    epctx_cursor it;
    epctx_field field;
    desk d;
    put_int(&tensor, 1, 1);
    put_int(&tensor, 2, EPCTX_ONNX_FLOAT);
    put_int(&tensor, 14, 1);
    put_int(&tensor, 40, 7);
    put_child(&graph, 5, &tensor);
    CHECK_TRUE(desk_open(&d, new_model(&graph)));
    CHECK_OK(epctx_edit_rename_files(&d.model, &nameless, 1, &d.error), d.error);
    CHECK_TRUE(untouched(&d.model, &d.data));
    CHECK_OK(epctx_edit_set_tensor_raw(&d.model, tensor_at(&d.model), data, &d.error), d.error);
    it = epctx_view_fields(tensor_at(&d.model), 40);
    CHECK_TRUE(epctx_next_field(&it, &field) && field.value == 7);
    CHECK_TRUE(!epctx_view_as_tensor(tensor_at(&d.model)).external);
    desk_close(&d);
}

/* -- places -- */

TEST(places_of_fields) {
    desk d, other;
    epctx_view graph, placed;
    CHECK_TRUE(desk_open(&d, sample()) && desk_open(&other, sample()));
    graph = epctx_model_graph(&d.model).view;
    REFUSES(&d,
            epctx_edit_put_copy(&d.model, graph, 1, node_at(&d.model, 0).view,
                                node_at(&other.model, 0).view, NULL, &d.error),
            EPCTX_ERR_ARG, "");
    REFUSES(&d,
            epctx_edit_put_copy(&d.model, graph, 1, node_at(&d.model, 0).view,
                                epctx_model_read(&d.model).view, NULL, &d.error),
            EPCTX_ERR_ARG, "`after` is a field of another message");
    /* In front of the first of a kind that the message has not, of one that went, of others. */
    CHECK_INT(
        epctx_edit_put_copy(&d.model, graph, 14, node_at(&d.model, 0).view, graph, NULL, &d.error),
        EPCTX_ERR_GRAPH);
    CHECK_INT(epctx_edit_put_copy(&d.model, graph, 13, no_view(), graph, &placed, &d.error),
              EPCTX_OK);
    CHECK_INT(epctx_edit_remove(&d.model, node_at(&d.model, 0).view, &d.error), EPCTX_OK);
    CHECK_OK(epctx_edit_put_copy(&d.model, graph, 1, node_at(&other.model, 0).view, graph, &placed,
                                 &d.error),
             d.error);
    CHECK_TRUE(epctx_str_is(node_at(&d.model, 0).name, "first"));
    CHECK_TRUE(epctx_str_is(node_at(&d.model, 1).name, "second"));
    epctx_edit_undo(&d.model, 0);
    CHECK_TRUE(untouched(&d.model, &d.data));
    desk_close(&other);
    desk_close(&d);
}

/* What is copied must be right where it goes. */
TEST(copies_refused) {
    static const uint8_t cut[] = {0x80};
    bytes node = new_node("Relu", "", "one", "x", "z"), graph = {0}, model, attr = {0};
    epctx_view packed;
    desk d, other;
    put_str(&attr, 1, "twice"); /* two tensors in one field: the model can only be read */
    put_data(&attr, 5, "", 0);
    put_data(&attr, 5, "", 0);
    put_child(&node, 5, &attr);
    put_child(&graph, 1, &node);
    add_ends(&graph, "x", "y");
    CHECK_TRUE(desk_open(&d, sample()) && desk_open(&other, new_model(&graph)));
    CHECK_TRUE(other.model.duplicate);
    REFUSES(&d,
            epctx_edit_put_copy(&d.model, epctx_model_graph(&d.model).view, 1,
                                node_at(&other.model, 0).view, no_view(), NULL, &d.error),
            EPCTX_ERR_GRAPH, "a singular field of this message occurs twice");
    /* Packed numbers. */
    packed.slot = NULL;
    packed.data = cut;
    packed.size = sizeof cut;
    REFUSES(
        &d,
        epctx_edit_put_copy(&d.model, tensor_at(&d.model), 7, packed, no_view(), NULL, &d.error),
        EPCTX_ERR_GRAPH, "cannot become field 7");
    packed.size = 0;
    CHECK_INT(
        epctx_edit_put_copy(&d.model, tensor_at(&d.model), 7, packed, no_view(), NULL, &d.error),
        EPCTX_OK);
    desk_close(&other);
    desk_close(&d);
    /* One graph is enough; it may go and come back. */
    CHECK_TRUE(desk_open(&d, sample()));
    CHECK_TRUE(desk_open(&other, sample()));
    {
        epctx_view whole = epctx_model_read(&d.model).view;
        REFUSES(&d,
                epctx_edit_put_copy(&d.model, whole, 7, epctx_model_graph(&other.model).view,
                                    no_view(), NULL, &d.error),
                EPCTX_ERR_ARG, "the message has a field 7 already");
        CHECK_INT(epctx_edit_remove(&d.model, epctx_model_graph(&d.model).view, &d.error),
                  EPCTX_OK);
        CHECK_OK(epctx_edit_put_copy(&d.model, whole, 7, epctx_model_graph(&other.model).view,
                                     no_view(), NULL, &d.error),
                 d.error);
        CHECK_TRUE(epctx_str_is(node_at(&d.model, 1).name, "second"));
        epctx_edit_undo(&d.model, 0);
        CHECK_TRUE(untouched(&d.model, &d.data));
    }
    desk_close(&other);
    desk_close(&d);
    /* A model that has none yet. */
    memset(&model, 0, sizeof model);
    put_int(&model, 1, 8);
    CHECK_TRUE(desk_open(&other, sample()));
    if (desk_open(&d, model)) {
        CHECK_OK(epctx_edit_put_copy(&d.model, epctx_model_read(&d.model).view, 7,
                                     epctx_model_graph(&other.model).view, no_view(), NULL,
                                     &d.error),
                 d.error);
        CHECK_TRUE(epctx_str_is(node_at(&d.model, 0).name, "first"));
    }
    desk_close(&other);
    desk_close(&d);
}

/* A field of a message that was never looked into, a graph that was edited, and a field of a
 * message without any. */
TEST(copies_of_every_age) {
    bytes graph = {0}, node = new_node("Op", "", "n", "x", "y"), attr = {0}, tensor = {0};
    epctx_node_view view;
    epctx_attr_view found;
    epctx_attr record;
    epctx_tensor data = {0};
    epctx_cursor it;
    epctx_view place;
    epctx_value_view value, input;
    desk d, other;
    add_attr_int(&node, "a", 7);
    put_int(&tensor, 1, 4);
    put_int(&tensor, 2, EPCTX_ONNX_FLOAT);
    put_data(&tensor, 9, weights, sizeof weights);
    put_child(&attr, 5, &tensor);
    put_str(&attr, 1, "t");
    put_int(&attr, 20, EPCTX_ATTR_TENSOR);
    put_child(&node, 5, &attr);
    put_child(&graph, 1, &node);
    add_ends(&graph, "x", "y");
    put_data(&graph, GRAPH_VALUE, "", 0);
    CHECK_TRUE(desk_open(&d, sample()) && desk_open(&other, new_model(&graph)));
    view = node_at(&other.model, 0);
    it = epctx_view_node_attrs(&view);
    CHECK_TRUE(epctx_next_attr(&it, &found));
    CHECK_OK(epctx_edit_put_copy(&d.model, node_at(&d.model, 0).view, 5, found.view, no_view(),
                                 &place, &d.error),
             d.error);
    view = node_at(&d.model, 0);
    it = epctx_view_node_attrs(&view);
    CHECK_TRUE(epctx_next_attr(&it, &found) && epctx_str_is(found.name, "a") && found.i == 7);
    /* The same view when its node has been edited since. */
    view = node_at(&other.model, 0);
    it = epctx_view_node_attrs(&view);
    CHECK_TRUE(epctx_next_attr(&it, &found));
    CHECK_INT(
        epctx_edit_replace_str(&other.model, node_name(&other.model), epctx_str_of("n"), &d.error),
        EPCTX_OK);
    CHECK_UINT(epctx_edit_mark(&other.model), 0); /* it is called so already */
    CHECK_INT(
        epctx_edit_replace_str(&other.model, node_name(&other.model), epctx_str_of("nn"), &d.error),
        EPCTX_OK);
    CHECK_INT(epctx_edit_replace_str(&other.model, node_at(&d.model, 0).view, epctx_str_of("nn"),
                                     &d.error),
              EPCTX_ERR_ARG);
    CHECK_INT(epctx_edit_put_copy(&d.model, node_at(&d.model, 1).view, 5, found.view, no_view(),
                                  NULL, &d.error),
              EPCTX_OK);
    view = node_at(&d.model, 1);
    it = epctx_view_node_attrs(&view);
    CHECK_TRUE(epctx_next_attr(&it, &found) && epctx_str_is(found.name, "a") && found.i == 7);
    /* A tensor of the same bytes, from a record. */
    memset(&record, 0, sizeof record);
    record.name = epctx_str_of("t");
    record.type = EPCTX_ATTR_TENSOR;
    record.t = &data;
    data.elem_type = EPCTX_ONNX_FLOAT;
    data.rank = 1;
    data.dims = vector;
    data.data = (const uint8_t *)weights;
    data.size = sizeof weights;
    view = node_at(&other.model, 0);
    CHECK_INT(epctx_edit_set_attr(&other.model, view.view, &record, &d.error), EPCTX_OK);
    /* The first field of a message. */
    it = epctx_view_graph_inputs(epctx_model_graph(&other.model));
    CHECK_TRUE(epctx_next_value(&it, &input));
    it = epctx_view_graph_values(epctx_model_graph(&other.model));
    CHECK_TRUE(epctx_next_value(&it, &value));
    it = epctx_view_fields(input.view, 2);
    {
        epctx_field type;
        CHECK_TRUE(epctx_next_field(&it, &type));
        CHECK_OK(
            epctx_edit_put_copy(&other.model, value.view, 2, type.body, no_view(), NULL, &d.error),
            d.error);
    }
    it = epctx_view_graph_values(epctx_model_graph(&other.model));
    CHECK_TRUE(epctx_next_value(&it, &value) && value.elem_type == EPCTX_ONNX_FLOAT);
    /* The edited graph in a model whose own one went. */
    CHECK_INT(epctx_edit_remove(&d.model, epctx_model_graph(&d.model).view, &d.error), EPCTX_OK);
    CHECK_OK(epctx_edit_put_copy(&d.model, epctx_model_read(&d.model).view, 7,
                                 epctx_model_graph(&other.model).view, no_view(), NULL, &d.error),
             d.error);
    CHECK_TRUE(epctx_str_is(node_at(&d.model, 0).name, "nn"));
    /* A node may lose its name. */
    CHECK_INT(
        epctx_node_rename(&d.model, node_at(&d.model, 0).view, epctx_str_of(""), NULL, &d.error),
        EPCTX_OK);
    CHECK_UINT(node_at(&d.model, 0).name.size, 0);
    epctx_edit_undo(&d.model, 0);
    CHECK_TRUE(untouched(&d.model, &d.data));
    desk_close(&other);
    desk_close(&d);
}

/* Attributes that are equal stay as they are, however long. */
TEST(attributes_that_are_equal) {
    enum { LARGE = 70000 };
    static char texts[2][LARGE];
    epctx_attr attr = {0};
    desk d;
    size_t i, edits;
    CHECK_TRUE(desk_open(&d, sample()));
    attr.name = epctx_str_of("a");
    attr.type = EPCTX_ATTR_STRING;
    for (i = 0; i < 3; i++) {
        attr.s.size = i == 0 ? 0 : i == 1 ? 10 : LARGE;
        attr.s.data = texts[0];
        CHECK_INT(epctx_edit_set_attr(&d.model, node_at(&d.model, 0).view, &attr, NULL), EPCTX_OK);
        edits = epctx_edit_mark(&d.model);
        attr.s.data = texts[1];
        CHECK_INT(epctx_edit_set_attr(&d.model, node_at(&d.model, 0).view, &attr, NULL), EPCTX_OK);
        CHECK(epctx_edit_mark(&d.model) == edits, "%zu bytes", attr.s.size);
    }
    desk_close(&d);
}

/* -- members of a oneof, fields of another wire type -- */

/* A model whose first node has one sharded dimension and whose one value_info has a type of the
 * fields of `type`; the dimensions have the fields of `dim`. */
static bytes dim_model(const bytes *dim, const bytes *type) {
    bytes graph = {0}, node = {0}, config = {0}, sharding = {0}, sharded = {0}, value = {0};
    bytes inner = {0}, copy = {0};
    bytes_add(&inner, dim->data, dim->size);
    put_child(&sharded, 2, &inner);
    put_child(&sharding, 4, &sharded);
    put_child(&config, 2, &sharding);
    node = new_node("Relu", "", "first", "x", "y");
    put_child(&node, 10, &config);
    put_child(&graph, 1, &node);
    add_ends(&graph, "x", "y");
    put_str(&value, 1, "v");
    bytes_add(&copy, type->data, type->size);
    put_child(&value, 2, &copy);
    put_child(&graph, GRAPH_VALUE, &value);
    return new_model(&graph);
}

static epctx_view child_of(epctx_view view, uint32_t number) {
    epctx_cursor it = epctx_view_fields(view, number);
    epctx_field field;
    field.body = no_view();
    while (epctx_next_field(&it, &field)) {
    }
    return field.body;
}

/* The dimension in the shape of the value, or in the node's sharding. */
static epctx_view dim_at(const epctx_model *model, bool sharded) {
    epctx_view graph = epctx_model_graph(model).view;
    if (sharded) return child_of(child_of(child_of(child_of(child_of(graph, 1), 10), 2), 4), 2);
    return child_of(child_of(child_of(child_of(child_of(graph, 13), 2), 1), 2), 1);
}

static bytes tensor_type(const bytes *dim) {
    bytes type = {0}, tensor = {0}, shape = {0}, copy = {0};
    bytes_add(&copy, dim->data, dim->size);
    put_child(&shape, 1, &copy);
    put_int(&tensor, 1, EPCTX_ONNX_FLOAT);
    put_child(&tensor, 2, &shape);
    put_child(&type, 1, &tensor);
    return type;
}

/* A fixed32 that ends in the byte `last`: an unknown field wherever another wire type is meant. */
static void put_unknown(bytes *out, uint32_t number, uint8_t last) {
    uint8_t field[4] = {1, 2, 3, 0};
    field[3] = last;
    put_tag(out, number, EPCTX_WIRE_FIXED32);
    bytes_add(out, field, sizeof field);
}

/* What was set is what every reader sees, in whatever order the members stood, and nothing else
 * goes: what has the number of a field but another wire type is an unknown field. */
TEST(members_of_a_oneof) {
    static const char *const before[] = {"p", "n", "pn", "np", "upun", "nupu", "", "wpn"};
    for (size_t i = 0; i < sizeof before / sizeof before[0]; i++) {
        for (int way = 0; way < 8; way++) {
            bool sharded = way & 1, text = way & 2, same = way & 4;
            bytes dim = {0}, type;
            epctx_view view;
            desk d;
            for (const char *c = before[i]; *c != '\0'; c++) {
                if (*c == 'p') put_str(&dim, 2, "N");
                if (*c == 'n') put_int(&dim, 1, 5);
                if (*c == 'w') put_str(&dim, 3, "x"); /* denotation, or an unknown field */
                if (*c == 'u') put_unknown(&dim, 1, 9);
                if (*c == 'u') put_unknown(&dim, 2, 9);
            }
            type = tensor_type(&dim);
            CHECK_TRUE(desk_open(&d, dim_model(&dim, &type)));
            view = dim_at(&d.model, sharded);
            CHECK_TRUE(view.data != NULL);
            CHECK_OK(text ? epctx_edit_set_field_str(&d.model, view, 2,
                                                     epctx_str_of(same ? "N" : "M"), &d.error)
                          : epctx_edit_set_field_int(&d.model, view, 1, same ? 5 : 6, &d.error),
                     d.error);
            /* one member is left, with everything that was unknown */
            {
                epctx_cursor it = epctx_view_fields(dim_at(&d.model, sharded), 0);
                size_t members = 0, unknown = 0;
                epctx_field f;
                while (epctx_next_field(&it, &f)) {
                    bool number = f.number == 1 && f.wire == EPCTX_WIRE_VARINT;
                    bool param = f.number == 2 && f.wire == EPCTX_WIRE_LEN;
                    members += number || param;
                    unknown += f.wire == EPCTX_WIRE_FIXED32;
                    CHECK(!number || (!text && f.value == (same ? 5u : 6u)),
                          "'%s', way %d: a number is there", before[i], way);
                    CHECK(!param ||
                              (text && f.body.size == 1 && f.body.data[0] == (same ? 'N' : 'M')),
                          "'%s', way %d: a name is there", before[i], way);
                }
                CHECK(members == 1, "'%s', way %d: %zu members", before[i], way, members);
                CHECK(unknown == (strchr(before[i], 'u') != NULL ? 4u : 0u),
                      "'%s', way %d: %zu unknown fields are left", before[i], way, unknown);
            }
            epctx_edit_undo(&d.model, 0);
            CHECK(untouched(&d.model, &d.data), "'%s', way %d: undo does not restore", before[i],
                  way);
            desk_close(&d);
            bytes_free(&dim);
            bytes_free(&type);
        }
    }
}

/* A type that is put into a TypeProto replaces the one of another kind. */
TEST(kinds_of_a_type) {
    static const uint32_t kinds[] = {1, 4, 5, 7, 8, 9};
    bytes dim = {0};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
            bytes type = {0}, inner = {0};
            epctx_view view, other;
            epctx_cursor it;
            epctx_field f;
            size_t members = 0;
            bool front;
            desk d;
            if (k == i) continue;
            for (front = false;; front = true) {
                put_child(&type, kinds[i], &inner);
                put_unknown(&type, kinds[k], 1);
                put_str(&type, 6, "denotation");
                CHECK_TRUE(desk_open(&d, dim_model(&dim, &type)));
                bytes_free(&type);
                view = child_of(child_of(epctx_model_graph(&d.model).view, 13), 2);
                other = child_of(view, kinds[i]);
                CHECK_OK(epctx_edit_put_copy(&d.model, view, kinds[k], other,
                                             front ? view : no_view(), NULL, &d.error),
                         d.error);
                view = child_of(child_of(epctx_model_graph(&d.model).view, 13), 2);
                for (members = 0, it = epctx_view_fields(view, 0); epctx_next_field(&it, &f);) {
                    CHECK(f.number == kinds[k] || f.number == 6, "kind %u is still there",
                          (unsigned)f.number);
                    members += f.wire == EPCTX_WIRE_LEN && f.number != 6;
                }
                CHECK(members == 1, "%zu members of kind %u", members, (unsigned)kinds[k]);
                epctx_edit_undo(&d.model, 0);
                CHECK_TRUE(untouched(&d.model, &d.data));
                desk_close(&d);
                if (front) break;
            }
        }
    }
}

/* Fields that have the number of what is set, and another wire type, are unknown and stay. */
TEST(unknown_fields_of_known_numbers) {
    epctx_attr attr = {0};
    bytes graph = {0}, node, value = {0}, data;
    epctx_cursor it;
    epctx_field f;
    size_t count = 0;
    desk d;
    node = new_node("Relu", "", "first", "x", "y");
    put_str(&value, 1, "a");
    put_unknown(&value, 3, 1); /* i */
    put_int(&value, 2, 1);     /* f */
    put_unknown(&value, 20, 1);
    put_int(&value, 3, 4);
    put_int(&value, 20, EPCTX_ATTR_INT);
    put_child(&node, 5, &value);
    put_unknown(&node, 3, 7); /* name */
    put_child(&graph, 1, &node);
    add_ends(&graph, "x", "y");
    data = new_model(&graph);
    put_str(&data, 1, "no IR version");
    CHECK_TRUE(desk_open(&d, data));
    CHECK_OK(epctx_edit_set_field_int(&d.model, epctx_model_read(&d.model).view, 1, 9, &d.error),
             d.error);
    CHECK_INT(epctx_model_read(&d.model).ir_version, 9);
    for (it = epctx_view_fields(epctx_model_read(&d.model).view, 1); epctx_next_field(&it, &f);)
        count += f.wire == EPCTX_WIRE_LEN && f.body.size == 13;
    CHECK(count == 1, "the unknown field of the model is gone");
    CHECK_OK(epctx_edit_set_field_str(&d.model, node_at(&d.model, 0).view, 3, epctx_str_of("new"),
                                      &d.error),
             d.error);
    CHECK_TRUE(epctx_str_is(node_at(&d.model, 0).name, "new"));
    attr.name = epctx_str_of("a");
    attr.type = EPCTX_ATTR_STRING;
    attr.s = epctx_str_of("text");
    CHECK_OK(epctx_edit_set_attr(&d.model, node_at(&d.model, 0).view, &attr, &d.error), d.error);
    count = 0;
    for (it = epctx_view_fields(node_at(&d.model, 0).view, 3); epctx_next_field(&it, &f);)
        count += f.wire == EPCTX_WIRE_FIXED32;
    CHECK(count == 1, "the unknown field of the node is gone");
    count = 0;
    for (it = epctx_view_fields(child_of(node_at(&d.model, 0).view, 5), 0);
         epctx_next_field(&it, &f);)
        count += f.number == 2 || f.wire == EPCTX_WIRE_FIXED32;
    CHECK(count == 3, "%zu of three unknown fields of the attribute are left", count);
    epctx_edit_undo(&d.model, 0);
    CHECK_TRUE(untouched(&d.model, &d.data));
    desk_close(&d);
}

/* -- names of nodes -- */

static bytes keys_model(int odd) {
    bytes graph = {0}, node, attr = {0}, model;
    add_epnode(&graph, "one", "x", "a", 1, 0, "QNN", "p", "c.bin", 5);
    add_epnode(&graph, "two", "x", "b", 1, 0, "QNN", "p", "c.bin", 5);
    add_epnode(&graph, "alone", "x", "c", 1, 0, "QNN", "p", "d.bin", 5);
    node = new_node("EPContext", odd == 1 ? "elsewhere" : "com.microsoft", "odd", "x", "y");
    put_str(&attr, 1, "main_context");
    put_str(&attr, 4, "yes");
    put_int(&attr, 20, EPCTX_ATTR_STRING);
    put_child(&node, 5, &attr);
    if (odd > 0) put_child(&graph, 1, &node);
    bytes_free(&node);
    if (odd == 3) add_epnode(&graph, "other", "x", "e", 0, 1, "QNN", "p", NULL, 0);
    add_ends(&graph, "x", "y");
    model = new_model(&graph);
    add_opset(&model, "com.microsoft", 1);
    return model;
}

/* QNN finds the graph by the node's name. */
TEST(names_that_are_keys) {
    epctx_name_opts opts = {0};
    epctx_prefix_opts prefix = {0};
    int odd;
    opts.one_graph = prefix.one_graph = true;
    for (odd = 0; odd < 4; odd++) {
        desk d;
        CHECK_TRUE(desk_open(&d, keys_model(odd)));
        REFUSES(&d,
                epctx_node_rename(&d.model, node_at(&d.model, 0).view, epctx_str_of("new"), &opts,
                                  &d.error),
                EPCTX_ERR_UNSUPPORTED,
                odd == 3 ? "several nodes share a context" : "several nodes name this binary");
        REFUSES(&d, epctx_edit_prefix(&d.model, epctx_str_of("p_"), &prefix, NULL, &d.error),
                EPCTX_ERR_UNSUPPORTED, "several nodes name this binary");
        if (odd == 2) {
            REFUSES(&d,
                    epctx_node_rename(&d.model, node_at(&d.model, 3).view, epctx_str_of("new"),
                                      &opts, &d.error),
                    EPCTX_ERR_GRAPH, "main_context");
        } else if (odd == 3) {
            REFUSES(&d,
                    epctx_node_rename(&d.model, node_at(&d.model, 4).view, epctx_str_of("new"),
                                      &opts, &d.error),
                    EPCTX_ERR_UNSUPPORTED, "several nodes share a context");
        } else {
            CHECK_OK(epctx_node_rename(&d.model, node_at(&d.model, 2).view, epctx_str_of("new"),
                                       &opts, &d.error),
                     d.error);
            CHECK_TRUE(epctx_str_is(node_at(&d.model, 2).name, "new"));
        }
        desk_close(&d);
    }
}

/* -- without memory -- */

static bytes many_model(int fill) {
    bytes graph = {0}, body = {0}, inner = {0}, node, sparse = {0}, values = {0}, model;
    char name[32];
    for (int i = 0; i < fill; i++) {
        snprintf(name, sizeof name, "b%d", i);
        add_value(&body, GRAPH_INPUT, name, EPCTX_ONNX_FLOAT, vector);
        add_node(&graph, "Relu", "", "x", "");
        snprintf(name, sizeof name, "c%d.bin", i);
        add_epnode(&graph, name, "x", "", 1, 0, "QNN", name, name, strlen(name));
    }
    put_str(&values, 8, "sp");
    put_child(&sparse, 1, &values);
    put_child(&body, 15, &sparse);
    add_node(&body, "Use", "", "x,sp", "b");
    add_node(&inner, "Relu", "", "x", "i");
    put_str(&inner, 2, "inner");
    node = new_node("If", "", "", "b", "b2");
    add_attr_graph(&node, "then_branch", &inner);
    put_child(&body, 1, &node);
    put_str(&body, 2, "body");
    add_value(&body, GRAPH_OUTPUT, "b2", EPCTX_ONNX_FLOAT, vector);
    node = new_node("If", "", "if", "x", "y");
    add_attr_graph(&node, "then_branch", &body);
    put_child(&graph, 1, &node);
    add_epnode(&graph, "last", "x", "z", 1, 0, "QNN", "p", "last.bin", 8);
    add_ends(&graph, "x", "y");
    model = new_model(&graph);
    add_opset(&model, "com.microsoft", 1);
    return model;
}

static epctx_status run_load(epctx_model *a, epctx_model *b, epctx_error *error) {
    epctx_graph graph;
    (void)b;
    return epctx_model_load_graph(a, &graph, error);
}

static epctx_status run_names(epctx_model *a, epctx_model *b, epctx_error *error) {
    const epctx_str from = epctx_str_of("y"), to = epctx_str_of("y2");
    epctx_cursor it = epctx_view_graph_nodes(epctx_model_graph(a));
    epctx_node_view node, last;
    epctx_name_opts opts = {0};
    epctx_status status;
    opts.one_graph = true;
    memset(&last, 0, sizeof last);
    while (epctx_next_node(&it, &node)) last = node;
    status = epctx_node_rename(a, last.view, epctx_str_of("another"), &opts, error);
    if (status == EPCTX_OK)
        status = epctx_rename_values(a, no_view(), &from, &to, 1, &opts, NULL, error);
    if (status == EPCTX_OK) { /* the graph of one model as that of another */
        status = epctx_edit_remove(a, epctx_model_graph(a).view, error);
        if (status == EPCTX_OK)
            status = epctx_edit_put_copy(a, epctx_model_read(a).view, 7, epctx_model_graph(b).view,
                                         no_view(), NULL, error);
    }
    if (status != EPCTX_OK) epctx_edit_undo(a, 0);
    return status;
}

TEST(out_of_memory) {
    static const starve_fn runs_of[] = {run_load, run_names};
    size_t runs = 0;
    for (int fill = 0; fill < 13; fill++) {
        bytes a = many_model(fill), b = sample();
        starve_in in = {{&a, &b}, {NULL, NULL}};
        for (int k = 0; k < 2; k++) {
            const char *wrong =
                fill == 0 ? starve(runs_of[k], &in, &runs) : starve_tables(runs_of[k], &in, &runs);
            CHECK(wrong == NULL, "operation %d, fill %d: %s", k, fill, wrong);
        }
        bytes_free(&a);
        bytes_free(&b);
    }
    printf("note %zu runs\n", runs);
}

int main(int argc, char **argv) {
    RUN(odd_tensors_and_shapes);
    RUN(typed_fields);
    RUN(offsets_of_edited_data);
    RUN(new_fields_without_bytes);
    RUN(records_refused);
    RUN(doubled_fields);
    RUN(data_and_files_of_others);
    RUN(places_of_fields);
    RUN(copies_refused);
    RUN(copies_of_every_age);
    RUN(attributes_that_are_equal);
    RUN(members_of_a_oneof);
    RUN(kinds_of_a_type);
    RUN(unknown_fields_of_known_numbers);
    RUN(names_that_are_keys);
    RUN(out_of_memory);
    return test_end();
}
