/*
 * Any bytes, read by us and by libprotobuf: the same verdict, and in every message the same fields
 * with the same values, unknown fields included.
 *
 * libprotobuf reads by the schema of the judges (tests/judge/onnx_schema.py), which the Makefile
 * writes to build/fuzz/onnx.desc.
 */
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/unknown_field_set.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "epctx.h"
#include "examples/epctx/ops/views.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

namespace pb = google::protobuf;
typedef pb::FieldDescriptor Field;

static void differ(const std::string &where, const char *what) {
    fprintf(stderr, "ERROR: %s: %s\n", where.c_str(), what);
    abort();
}

static const pb::Message *prototype() {
    static pb::DescriptorPool pool;
    static pb::DynamicMessageFactory factory(&pool);
    static const pb::Message *made = nullptr;
    if (made != nullptr) return made;
    pb::SetLogHandler(nullptr); /* complains of every string that is not UTF-8 */
    std::ifstream in("build/fuzz/onnx.desc", std::ios::binary);
    pb::FileDescriptorProto file;
    if (!file.ParseFromIstream(&in) || pool.BuildFile(file) == nullptr)
        differ("build/fuzz/onnx.desc", "cannot be read: run from the top of the source tree");
    made = factory.GetPrototype(pool.FindMessageTypeByName("onnx.ModelProto"));
    return made;
}

static epctx_wire wire_of(const Field *f) {
    switch (f->cpp_type()) {
    case Field::CPPTYPE_FLOAT: return EPCTX_WIRE_FIXED32;
    case Field::CPPTYPE_DOUBLE: return EPCTX_WIRE_FIXED64;
    case Field::CPPTYPE_STRING:
    case Field::CPPTYPE_MESSAGE: return EPCTX_WIRE_LEN;
    default: return EPCTX_WIRE_VARINT;
    }
}

/* A number as libprotobuf keeps it: cut to the type of its field. */
static uint64_t bits_of(const Field *f, uint64_t value) {
    switch (f->cpp_type()) {
    case Field::CPPTYPE_INT32:
    case Field::CPPTYPE_ENUM: return (uint64_t)(int64_t)(int32_t)(uint32_t)value;
    case Field::CPPTYPE_BOOL: return value != 0;
    default: return value;
    }
}

/* The bits of number `i` of a field (-1: a singular one) in libprotobuf's message. */
static uint64_t number_in(const pb::Message &m, const Field *f, int i) {
    const pb::Reflection *r = m.GetReflection();
    uint64_t bits = 0;
    float single;
    double twice;
    uint32_t word;
    switch (f->cpp_type()) {
    case Field::CPPTYPE_INT32:
        return (uint64_t)(int64_t)(i < 0 ? r->GetInt32(m, f) : r->GetRepeatedInt32(m, f, i));
    case Field::CPPTYPE_INT64:
        return (uint64_t)(i < 0 ? r->GetInt64(m, f) : r->GetRepeatedInt64(m, f, i));
    case Field::CPPTYPE_UINT64: return i < 0 ? r->GetUInt64(m, f) : r->GetRepeatedUInt64(m, f, i);
    case Field::CPPTYPE_ENUM:
        return (uint64_t)(int64_t)(i < 0 ? r->GetEnumValue(m, f)
                                         : r->GetRepeatedEnumValue(m, f, i));
    case Field::CPPTYPE_FLOAT:
        single = i < 0 ? r->GetFloat(m, f) : r->GetRepeatedFloat(m, f, i);
        memcpy(&word, &single, sizeof word);
        return word;
    case Field::CPPTYPE_DOUBLE:
        twice = i < 0 ? r->GetDouble(m, f) : r->GetRepeatedDouble(m, f, i);
        memcpy(&bits, &twice, sizeof bits);
        return bits;
    default: differ(f->full_name(), "has a type that this fuzzer does not know"); return 0;
    }
}

static std::string text(epctx_str s) {
    return s.size > 0 ? std::string(s.data, s.size) : std::string();
}

/* Our numbers of a repeated field, by the cursors of the library where it has one. */
static std::vector<uint64_t> our_numbers(epctx_view view, const Field *f) {
    std::vector<uint64_t> all;
    epctx_cursor it = epctx_view_fields(view, (uint32_t)f->number());
    epctx_field field;
    int64_t i;
    float v;
    uint32_t word;
    uint64_t bits;
    if (f->cpp_type() == Field::CPPTYPE_FLOAT) {
        while (epctx_next_float(&it, &v)) {
            memcpy(&word, &v, sizeof word);
            all.push_back(word);
        }
    } else if (f->cpp_type() != Field::CPPTYPE_DOUBLE) {
        while (epctx_next_int(&it, &i)) all.push_back(bits_of(f, (uint64_t)i));
    } else {
        while (epctx_next_field(&it, &field)) {
            if (field.wire == EPCTX_WIRE_FIXED64) all.push_back(field.value);
            if (field.wire != EPCTX_WIRE_LEN) continue;
            for (size_t at = 0; at + 8 <= field.body.size; at += 8) {
                memcpy(&bits, field.body.data + at, 8); /* fuzzing is little-endian */
                all.push_back(bits);
            }
        }
    }
    return all;
}

static void same(const pb::Message &m, epctx_view view, const std::string &where);

static void same_repeated(const pb::Message &m, epctx_view view, const Field *f,
                          const std::string &where) {
    const pb::Reflection *r = m.GetReflection();
    epctx_cursor it = epctx_view_fields(view, (uint32_t)f->number());
    epctx_field field;
    epctx_str s;
    int count = r->FieldSize(m, f), i = 0;
    if (f->cpp_type() == Field::CPPTYPE_MESSAGE) {
        while (epctx_next_field(&it, &field)) {
            if (field.wire != EPCTX_WIRE_LEN) continue;
            if (i == count) differ(where, "we see more messages");
            same(r->GetRepeatedMessage(m, f, i), field.body, where);
            i++;
        }
    } else if (f->cpp_type() == Field::CPPTYPE_STRING) {
        for (; epctx_next_str(&it, &s); i++) {
            if (i == count) differ(where, "we see more strings");
            if (text(s) != r->GetRepeatedString(m, f, i)) differ(where, "strings differ");
        }
    } else {
        for (uint64_t value : our_numbers(view, f)) {
            if (i == count) differ(where, "we see more numbers");
            if (value != number_in(m, f, i)) differ(where, "numbers differ");
            i++;
        }
    }
    if (i != count) differ(where, "libprotobuf sees more of them");
}

static bool is_known(const Field *f, const epctx_field &field) {
    if (f == nullptr) return false;
    if (field.wire != wire_of(f))
        return field.wire == EPCTX_WIRE_LEN && f->is_repeated() && f->is_packable();
    /* proto2 keeps values that an enum does not have among the unknown fields. */
    return f->cpp_type() != Field::CPPTYPE_ENUM ||
           f->enum_type()->FindValueByNumber((int)(int32_t)(uint32_t)field.value) != nullptr;
}

/* The last field that counts for `f`; a later member of the same oneof takes its place. */
static bool last_of(epctx_view view, const pb::Descriptor *type, const Field *f, epctx_field *out) {
    epctx_cursor it = epctx_view_fields(view, 0);
    epctx_field field;
    bool found = false;
    while (epctx_next_field(&it, &field)) {
        const Field *other = type->FindFieldByNumber((int)field.number);
        if (!is_known(other, field)) continue;
        if (other == f) *out = field;
        if (other == f)
            found = true;
        else if (f->containing_oneof() && other->containing_oneof() == f->containing_oneof())
            found = false;
    }
    return found;
}

static void same_singular(const pb::Message &m, epctx_view view, const Field *f,
                          const std::string &where) {
    const pb::Reflection *r = m.GetReflection();
    epctx_field field;
    if (last_of(view, m.GetDescriptor(), f, &field) != r->HasField(m, f))
        differ(where, r->HasField(m, f) ? "we do not see it" : "libprotobuf does not see it");
    if (!r->HasField(m, f)) return;
    if (f->cpp_type() == Field::CPPTYPE_MESSAGE)
        same(r->GetMessage(m, f), field.body, where);
    else if (f->cpp_type() == Field::CPPTYPE_STRING) {
        if (std::string((const char *)field.body.data, field.body.size) != r->GetString(m, f))
            differ(where, "strings differ");
    } else if (bits_of(f, field.value) != number_in(m, f, -1))
        differ(where, "numbers differ");
}

static void same_unknown(const pb::Message &m, epctx_view view, const std::string &where) {
    static const pb::UnknownField::Type types[] = {
        pb::UnknownField::TYPE_VARINT,
        pb::UnknownField::TYPE_FIXED64,
        pb::UnknownField::TYPE_LENGTH_DELIMITED,
        pb::UnknownField::TYPE_GROUP,
        pb::UnknownField::TYPE_GROUP /* end tags are no fields */,
        pb::UnknownField::TYPE_FIXED32};
    const pb::UnknownFieldSet &set = m.GetReflection()->GetUnknownFields(m);
    epctx_cursor it = epctx_view_fields(view, 0);
    epctx_field field;
    int i = 0;
    while (epctx_next_field(&it, &field)) {
        const Field *f = m.GetDescriptor()->FindFieldByNumber((int)field.number);
        if (is_known(f, field)) continue;
        if (i == set.field_count()) differ(where, "we see more unknown fields");
        const pb::UnknownField &u = set.field(i++);
        if (u.number() != (int)field.number || u.type() != types[field.wire])
            differ(where, "unknown fields differ in kind");
        if (f != nullptr && field.wire == EPCTX_WIRE_VARINT) field.value = bits_of(f, field.value);
        if ((field.wire == EPCTX_WIRE_VARINT && u.varint() != field.value) ||
            (field.wire == EPCTX_WIRE_FIXED64 && u.fixed64() != field.value) ||
            (field.wire == EPCTX_WIRE_FIXED32 && u.fixed32() != field.value) ||
            (field.wire == EPCTX_WIRE_LEN &&
             u.length_delimited() != std::string((const char *)field.body.data, field.body.size)))
            differ(where, "unknown fields differ");
    }
    if (i != set.field_count()) differ(where, "libprotobuf sees more unknown fields");
}

static std::string string_in(const pb::Message &m, const char *name) {
    return m.GetReflection()->GetString(m, m.GetDescriptor()->FindFieldByName(name));
}

/* The readers of the library that know the schema. */
static void same_reader(const pb::Message &m, epctx_view view, const std::string &where) {
    const pb::Descriptor *type = m.GetDescriptor();
    const pb::Reflection *r = m.GetReflection();
    if (type->name() == "NodeProto") {
        epctx_node_view node = epctx_view_as_node(view);
        if (text(node.name) != string_in(m, "name") ||
            text(node.domain) != string_in(m, "domain") ||
            text(node.op_type) != string_in(m, "op_type") ||
            (int)node.input_count != r->FieldSize(m, type->FindFieldByName("input")))
            differ(where, "epctx_view_as_node differs");
    } else if (type->name() == "AttributeProto") {
        epctx_attr_view attr = epctx_view_as_attr(view);
        if (text(attr.name) != string_in(m, "name") || text(attr.s) != string_in(m, "s") ||
            (uint64_t)attr.i != number_in(m, type->FindFieldByName("i"), -1))
            differ(where, "epctx_view_as_attr differs");
    } else if (type->name() == "TensorProto") {
        epctx_tensor_view tensor = epctx_view_as_tensor(view);
        if (text(tensor.name) != string_in(m, "name") ||
            (int)tensor.rank != r->FieldSize(m, type->FindFieldByName("dims")) ||
            (uint64_t)(int64_t)tensor.elem_type !=
                number_in(m, type->FindFieldByName("data_type"), -1))
            differ(where, "epctx_view_as_tensor differs");
    } else if (type->name() == "TypeProto") {
        const Field *set = r->GetOneofFieldDescriptor(m, type->oneof_decl(0));
        if ((int)epctx_type_of(view).kind != (set != nullptr ? set->number() : 0))
            differ(where, "epctx_type_of sees another member of the oneof");
    } else if (type->name() == "ValueInfoProto") {
        if (text(epctx_view_as_value(view).name) != string_in(m, "name"))
            differ(where, "epctx_view_as_value differs");
    }
}

static void same(const pb::Message &m, epctx_view view, const std::string &where) {
    const pb::Descriptor *type = m.GetDescriptor();
    for (int i = 0; i < type->field_count(); i++) {
        const Field *f = type->field(i);
        if (f->is_repeated())
            same_repeated(m, view, f, f->full_name());
        else
            same_singular(m, view, f, f->full_name());
    }
    same_unknown(m, view, type->full_name());
    same_reader(m, view, where);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    std::unique_ptr<pb::Message> theirs(prototype()->New());
    epctx_model model;
    epctx_error error;
    if (size == 0) return 0; /* an empty message to libprotobuf, no model to us and to ORT */
    bool accepted = theirs->ParsePartialFromArray(data, (int)size);
    epctx_status status = epctx_model_open_memory(&model, data, size, nullptr, &error);
    if ((status == EPCTX_OK) != accepted)
        differ(accepted ? "libprotobuf accepts, we do not" : "we accept, libprotobuf does not",
               error.message);
    if (accepted) same(*theirs, epctx_model_read(&model).view, "ModelProto");
    epctx_model_close(&model);
    return 0;
}
