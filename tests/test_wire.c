/* >>wire: what is accepted as protobuf, and the cursors. The judge of the grammar is libprotobuf:
 * test_onnx_corpus.sh compares the verdicts on thousands of damaged files. Here are the edges. */
/* runs: once */
#include "examples/epctx/ops/ops.h"
#include "build.h"
#include "test.h"

/* Opens `b`, frees it, and tells how it went. */
static epctx_status verdict(bytes *b, epctx_error *error) {
    epctx_model model;
    epctx_status status = epctx_model_open_memory(&model, b->data, b->size, NULL, error);
    if (status == EPCTX_OK) {
        bytes out = written(&model);
        if (!bytes_equal(&out, b->data, b->size)) status = EPCTX_ERR_BACKEND;
        bytes_free(&out);
        if (status == EPCTX_OK && ops_rebuild(&model, NULL) == EPCTX_OK) {
            out = written(&model);
            if (!bytes_equal(&out, b->data, b->size)) status = EPCTX_ERR_BACKEND;
            bytes_free(&out);
        }
    }
    epctx_model_close(&model);
    bytes_free(b);
    return status;
}

static epctx_status verdict_of(const char *data, size_t size) {
    bytes b = {0};
    epctx_error error;
    bytes_add(&b, data, size);
    return verdict(&b, &error);
}

/* A model of these bytes behind `ir_version: 8`: not to be taken for another kind of file. */
#define VERDICT(literal) verdict_of("\x08\x08" literal, sizeof("\x08\x08" literal) - 1)

TEST(tags) {
    CHECK_INT(VERDICT("\x10\x01"), EPCTX_OK);
    CHECK_INT(VERDICT("\x90\x00\x01"), EPCTX_OK); /* longer than needed */
    CHECK_INT(VERDICT("\x90\x80\x80\x80\x00\x01"), EPCTX_OK);
    CHECK_INT(VERDICT("\x90\x80\x80\x80\x80\x00\x01"), EPCTX_ERR_PROTOBUF); /* 6 bytes */
    CHECK_INT(VERDICT("\x90\x80\x80\x80\x80\x80\x80\x80\x80\x00\x01"), EPCTX_ERR_PROTOBUF);
    CHECK_INT(VERDICT("\xf8\xff\xff\xff\x0f\x01"), EPCTX_OK); /* the highest field number */
    CHECK_INT(VERDICT("\x00\x01"), EPCTX_ERR_PROTOBUF);       /* field 0 */
    CHECK_INT(VERDICT("\x02\x00"), EPCTX_ERR_PROTOBUF);
    CHECK_INT(VERDICT("\x80\x00\x01"), EPCTX_ERR_PROTOBUF);
    CHECK_INT(VERDICT("\x0e\x01"), EPCTX_ERR_PROTOBUF); /* wire type 6 */
    CHECK_INT(VERDICT("\x0f\x01"), EPCTX_ERR_PROTOBUF);
    CHECK_INT(VERDICT("\x90"), EPCTX_ERR_PROTOBUF);
}

TEST(varints) {
    CHECK_INT(VERDICT("\x28\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), EPCTX_OK);
    CHECK_INT(VERDICT("\x28\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00"), EPCTX_OK);
    CHECK_INT(VERDICT("\x28\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00"), EPCTX_ERR_PROTOBUF);
    CHECK_INT(VERDICT("\x28\xff\xff"), EPCTX_ERR_PROTOBUF);
    CHECK_INT(VERDICT("\x28"), EPCTX_ERR_PROTOBUF);
}

TEST(fixed) {
    CHECK_INT(VERDICT("\xe9\x3f\x01\x02\x03\x04\x05\x06\x07\x08"), EPCTX_OK); /* unknown 1021 */
    CHECK_INT(VERDICT("\xe9\x3f\x01\x02\x03\x04\x05\x06\x07"), EPCTX_ERR_PROTOBUF);
    CHECK_INT(VERDICT("\xed\x3f\x01\x02\x03\x04"), EPCTX_OK);
    CHECK_INT(VERDICT("\xed\x3f\x01\x02\x03"), EPCTX_ERR_PROTOBUF);
}

TEST(lengths) {
    CHECK_INT(VERDICT("\x12\x01x"), EPCTX_OK);
    CHECK_INT(VERDICT("\x12\x81\x80\x80\x80\x00x"), EPCTX_OK);
    CHECK_INT(VERDICT("\x12\x81\x80\x80\x80\x80\x00x"), EPCTX_ERR_PROTOBUF); /* 6 bytes */
    CHECK_INT(VERDICT("\x12\x02x"), EPCTX_ERR_PROTOBUF);
    CHECK_INT(VERDICT("\x12\xff\xff\xff\xff\x07x"), EPCTX_ERR_PROTOBUF);
    CHECK_INT(VERDICT("\x12\xff\xff\xff\xff\x0fx"), EPCTX_ERR_PROTOBUF);
    CHECK_INT(VERDICT("\x12"), EPCTX_ERR_PROTOBUF);
}

TEST(groups) {
    CHECK_INT(VERDICT("\xeb\x3f\xec\x3f"), EPCTX_OK);                           /* empty */
    CHECK_INT(VERDICT("\xeb\x3f\x08\x01\x12\x01x\xec\x3f"), EPCTX_OK);          /* with fields */
    CHECK_INT(VERDICT("\xeb\x3f\xf3\x3f\xf4\x3f\xec\x3f"), EPCTX_OK);           /* nested */
    CHECK_INT(VERDICT("\xeb\x3f\xf3\x3f\xec\x3f\xf4\x3f"), EPCTX_ERR_PROTOBUF); /* crossed */
    CHECK_INT(VERDICT("\xeb\x3f\xf4\x3f"), EPCTX_ERR_PROTOBUF);
    CHECK_INT(VERDICT("\xeb\x3f"), EPCTX_ERR_PROTOBUF);
    CHECK_INT(VERDICT("\xec\x3f"), EPCTX_ERR_PROTOBUF);
    CHECK_INT(VERDICT("\xeb\x3f\x00\x01\xec\x3f"), EPCTX_ERR_PROTOBUF); /* field 0 inside */
}

/* A known field with another wire type is an unknown field. */
TEST(wire_mismatch) {
    epctx_model model;
    static const char data[] = "\x0a\x01x\x10\x05\x3a\x00\x38\x01";
    CHECK_INT(epctx_model_open_memory(&model, data, sizeof data - 1, NULL, NULL), EPCTX_OK);
    CHECK_INT(epctx_model_read(&model).ir_version, 0);
    CHECK_UINT(epctx_model_read(&model).producer_name.size, 0);
    CHECK_TRUE(epctx_model_has_graph(&model));
    epctx_model_close(&model);
    {
        bytes segment = {0}, tensor = {0}, graph = {0}, b;
        epctx_error error;
        put_str(&segment, 1, "begin, a number by the schema");
        put_str(&segment, 2, "end");
        put_child(&tensor, 3, &segment);
        put_child(&graph, 5, &tensor);
        b = new_model(&graph);
        CHECK(verdict(&b, &error) == EPCTX_OK, "%s", error.message);
    }
}

TEST(message_names) {
    CHECK_STR(epctx_message_name(EPCTX_KIND_SEGMENT), "TensorProto.Segment");
    CHECK_STR(epctx_message_name(EPCTX_KIND_NONE), "unknown");
    CHECK_STR(epctx_message_name(EPCTX_KIND_INT), "unknown");
}

/* Nested messages: TypeProto.sequence_type.elem_type, as deep as it takes. The model itself is
 * depth 0, and libprotobuf goes down 100 levels. */
static bytes nested_types(size_t depth) {
    static const uint32_t numbers[2] = {4, 1}; /* TypeProto.sequence_type, Sequence.elem_type */
    bytes message = {0};
    bytes graph = {0}, value = {0}, model = {0};
    for (size_t level = depth; level > 3; level--) {
        bytes parent = {0};
        put_child(&parent, numbers[level % 2], &message);
        message = parent;
    }
    put_child(&value, 2, &message); /* level 3: type */
    put_child(&graph, 11, &value);  /* level 2: input */
    put_int(&model, 1, 8);
    put_child(&model, 7, &graph); /* level 1: graph */
    return model;
}

static bytes nested_groups(size_t depth) {
    bytes model = {0};
    put_int(&model, 1, 8);
    for (size_t i = 0; i < depth; i++) put_tag(&model, 1021, 3);
    for (size_t i = 0; i < depth; i++) put_tag(&model, 1021, 4);
    return model;
}

TEST(depth) {
    epctx_error error;
    for (size_t depth = 90; depth < 120; depth++) {
        epctx_status want = depth <= 100 ? EPCTX_OK : EPCTX_ERR_PROTOBUF;
        bytes model = nested_types(depth);
        CHECK(verdict(&model, &error) == want, "types nested %zu deep: %s", depth, error.message);
        model = nested_groups(depth);
        CHECK(verdict(&model, &error) == want, "groups nested %zu deep: %s", depth, error.message);
    }
    {
        bytes model = nested_types(50000);
        CHECK_INT(verdict(&model, &error), EPCTX_ERR_PROTOBUF);
        model = nested_groups(50000);
        CHECK_INT(verdict(&model, &error), EPCTX_ERR_PROTOBUF);
    }
}

TEST(depth_limit) {
    epctx_open_opts opts = {0};
    epctx_model model;
    bytes b = nested_types(20);
    opts.limits.max_depth = 19;
    CHECK_TRUE(epctx_model_open_memory(&model, b.data, b.size, &opts, NULL) != EPCTX_OK);
    opts.limits.max_depth = 20;
    CHECK_INT(epctx_model_open_memory(&model, b.data, b.size, &opts, NULL), EPCTX_OK);
    epctx_model_close(&model);
    bytes_free(&b);
}

TEST(size_limits) {
    epctx_open_opts opts = {0};
    epctx_model model;
    epctx_error error;
    static const char data[] = "\x08\x08\x12\x01x\x1a\x01y";
    opts.limits.max_size = sizeof data - 2;
    CHECK_INT(epctx_model_open_memory(&model, data, sizeof data - 1, &opts, &error),
              EPCTX_ERR_LIMIT);
    opts.limits.max_size = sizeof data - 1;
    CHECK_INT(epctx_model_open_memory(&model, data, sizeof data - 1, &opts, &error), EPCTX_OK);
    epctx_model_close(&model);
    opts.limits.max_fields = 2;
    CHECK_INT(epctx_model_open_memory(&model, data, sizeof data - 1, &opts, &error),
              EPCTX_ERR_LIMIT);
    CHECK_HAS(error.message, "max_fields");
    opts.limits.max_fields = 3;
    CHECK_INT(epctx_model_open_memory(&model, data, sizeof data - 1, &opts, &error), EPCTX_OK);
    epctx_model_close(&model);
}

/* A model cut off anywhere is a model only where a field of the top level ends. */
TEST(truncated) {
    bytes graph = {0}, model;
    size_t ends[16], count = 0;
    static const int64_t dims[] = {2, 3, -1};
    add_node(&graph, "Relu", "n", "x", "y");
    add_value(&graph, GRAPH_INPUT, "x", 1, dims);
    add_value(&graph, GRAPH_OUTPUT, "y", 1, dims);
    add_floats(&graph, "w", (const float[]){1, 2, 3}, 3);
    model = new_model(&graph);
    for (size_t at = 0; at < model.size;) { /* every length here is below 16384 */
        size_t body = model.data[at + 1] & 0x7f;
        bool two = (model.data[at + 1] & 0x80) != 0;
        if (two) body |= (size_t)model.data[at + 2] << 7;
        at += (model.data[at] & 7) == 2 ? body + (two ? 3 : 2) : 2;
        ends[count++] = at;
    }
    CHECK_UINT(ends[count - 1], model.size);
    for (size_t size = 1; size <= model.size; size++) {
        epctx_error error;
        epctx_status want = EPCTX_ERR_PROTOBUF;
        bytes part = {0};
        for (size_t i = 0; i < count; i++)
            if (ends[i] == size) want = EPCTX_OK;
        bytes_add(&part, model.data, size);
        CHECK(verdict(&part, &error) == want, "cut after %zu of %zu bytes: %s", size, model.size,
              error.message);
        if (want != EPCTX_OK)
            CHECK(error.offset <= size, "offset %" PRIu64 " of %zu", error.offset, size);
    }
    bytes_free(&model);
}

TEST(empty) {
    epctx_error error;
    bytes none = {0};
    CHECK_INT(epctx_status_to_ort(verdict(&none, &error)), 7);
    CHECK_TRUE(error.message[0] != '\0');
}

/* -- cursors -- */

static epctx_view view_of(const bytes *b) {
    epctx_view view = {NULL, NULL, 0};
    view.data = b->data;
    view.size = b->size;
    return view;
}

TEST(fields_cursor) {
    bytes b = {0};
    epctx_cursor it;
    epctx_field f;
    put_int(&b, 1, -2);
    put_str(&b, 2, "two");
    put_tag(&b, 9, 3);
    put_int(&b, 1, 77); /* inside a group: not a field of this message */
    put_tag(&b, 9, 4);
    put_float(&b, 3, 1.0f);
    put_int(&b, 1, 5);
    it = epctx_view_fields(view_of(&b), 0);
    CHECK_TRUE(epctx_next_field(&it, &f) && f.number == 1 && f.wire == EPCTX_WIRE_VARINT);
    CHECK_INT((int64_t)f.value, -2);
    CHECK_TRUE(epctx_next_field(&it, &f) && f.number == 2 && f.wire == EPCTX_WIRE_LEN);
    CHECK_MEM(f.body.data, f.body.size, "two", 3);
    CHECK_TRUE(epctx_next_field(&it, &f) && f.number == 9 && f.wire == EPCTX_WIRE_GROUP);
    CHECK_TRUE(epctx_next_field(&it, &f) && f.number == 3 && f.wire == EPCTX_WIRE_FIXED32);
    CHECK_UINT(f.value, 0x3f800000);
    CHECK_TRUE(epctx_next_field(&it, &f) && f.number == 1 && f.value == 5);
    CHECK_TRUE(!epctx_next_field(&it, &f));
    CHECK_TRUE(!epctx_next_field(&it, &f));
    it = epctx_view_fields(view_of(&b), 1);
    CHECK_TRUE(epctx_next_field(&it, &f) && (int64_t)f.value == -2);
    CHECK_TRUE(epctx_next_field(&it, &f) && f.value == 5);
    CHECK_TRUE(!epctx_next_field(&it, &f));
    it = epctx_view_fields(view_of(&b), 4);
    CHECK_TRUE(!epctx_next_field(&it, &f));
    bytes_free(&b);
}

TEST(packed_and_not) {
    static const int64_t want[] = {1, -1, 300, 7, 0, 8};
    bytes b = {0}, packed = {0};
    epctx_cursor it;
    int64_t value;
    put_int(&b, 1, 1);
    put_varint(&packed, UINT64_MAX);
    put_varint_wide(&packed, 300, 5);
    put_child(&b, 1, &packed);
    put_int(&b, 2, 99);
    put_data(&b, 1, "", 0); /* an empty packed field */
    put_int(&b, 1, 7);
    put_varint(&packed, 0);
    put_varint(&packed, 8);
    put_child(&b, 1, &packed);
    it = epctx_view_fields(view_of(&b), 1);
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        CHECK(epctx_next_int(&it, &value), "only %zu numbers", i);
        CHECK_INT(value, want[i]);
    }
    CHECK_TRUE(!epctx_next_int(&it, &value));
    bytes_free(&b);
}

TEST(packed_floats) {
    bytes b = {0};
    epctx_cursor it;
    float value;
    static const uint8_t raw[8] = {0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0}; /* 1, -2 */
    put_float(&b, 7, 0.5f);
    put_data(&b, 7, raw, sizeof raw);
    put_float(&b, 7, 3.0f);
    it = epctx_view_fields(view_of(&b), 7);
    CHECK_TRUE(epctx_next_float(&it, &value) && value == 0.5f);
    CHECK_TRUE(epctx_next_float(&it, &value) && value == 1.0f);
    CHECK_TRUE(epctx_next_float(&it, &value) && value == -2.0f);
    CHECK_TRUE(epctx_next_float(&it, &value) && value == 3.0f);
    CHECK_TRUE(!epctx_next_float(&it, &value));
    bytes_free(&b);
}

/* Bytes that no open checked: what does not end ends the walk. */
TEST(packed_cut_off) {
    bytes b = {0};
    epctx_cursor it;
    float f;
    int64_t i;
    put_data(&b, 7, "\0\0\x80\x3f\0\0", 6);
    put_data(&b, 8, "\x05\x80", 2);
    put_int(&b, 8, 6);
    it = epctx_view_fields(view_of(&b), 7);
    CHECK_TRUE(epctx_next_float(&it, &f) && f == 1.0f);
    CHECK_TRUE(!epctx_next_float(&it, &f));
    it = epctx_view_fields(view_of(&b), 8);
    CHECK_TRUE(epctx_next_int(&it, &i) && i == 5);
    CHECK_TRUE(epctx_next_int(&it, &i) && i == 6);
    CHECK_TRUE(!epctx_next_int(&it, &i));
    bytes_free(&b);
}

/* A packed field of a known message must end where a number ends. */
TEST(packed_broken) {
    static const struct {
        const char *data;
        size_t size;
        epctx_status want;
    } dims[] = {
        {"\x01\x02", 2, EPCTX_OK},
        {"\x01\x82", 2, EPCTX_ERR_PROTOBUF},
        {"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", 11, EPCTX_ERR_PROTOBUF},
    };
    for (size_t i = 0; i < sizeof dims / sizeof dims[0]; i++) {
        bytes tensor = {0}, graph = {0}, model;
        epctx_error error;
        put_data(&tensor, 1, dims[i].data, dims[i].size);
        put_child(&graph, 5, &tensor);
        model = new_model(&graph);
        CHECK(verdict(&model, &error) == dims[i].want, "dims %zu: %s", i, error.message);
    }
    for (size_t size = 0; size < 12; size++) {
        bytes tensor = {0}, graph = {0}, model;
        epctx_error error;
        put_data(&tensor, 4, "abcdefghijkl", size); /* float_data */
        put_child(&graph, 5, &tensor);
        model = new_model(&graph);
        CHECK(verdict(&model, &error) == (size % 4 == 0 ? EPCTX_OK : EPCTX_ERR_PROTOBUF),
              "%zu bytes of floats: %s", size, error.message);
    }
}

TEST(strings_cursor) {
    bytes b = {0};
    epctx_cursor it;
    epctx_str s;
    put_str(&b, 1, "a");
    put_int(&b, 1, 4); /* no string */
    put_data(&b, 1, "", 0);
    put_data(&b, 1, "x\0y", 3);
    it = epctx_view_fields(view_of(&b), 1);
    CHECK_TRUE(epctx_next_str(&it, &s) && epctx_str_is(s, "a"));
    CHECK_TRUE(epctx_next_str(&it, &s) && s.size == 0);
    CHECK_TRUE(epctx_next_str(&it, &s) && s.size == 3);
    CHECK_TRUE(!epctx_next_str(&it, &s));
    bytes_free(&b);
}

int main(int argc, char **argv) {
    RUN(tags);
    RUN(varints);
    RUN(fixed);
    RUN(lengths);
    RUN(groups);
    RUN(wire_mismatch);
    RUN(message_names);
    RUN(depth);
    RUN(depth_limit);
    RUN(size_limits);
    RUN(truncated);
    RUN(empty);
    RUN(fields_cursor);
    RUN(packed_and_not);
    RUN(packed_floats);
    RUN(packed_cut_off);
    RUN(packed_broken);
    RUN(strings_cursor);
    return test_end();
}
