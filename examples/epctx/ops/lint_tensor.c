/* lint_tensor.c - tensors: their data, their files, sparse ones. */
#include "lint_internal.h"

/* onnx.proto TensorProto.DataType. */
bool lint_elem_known(int32_t elem_type) {
    return elem_type >= 1 && elem_type <= 26;
}

/* Where the data of a tensor can be, and the wire type of one element; several are in one string of
 * bytes. */
enum { LINT_DATA_FIELDS = 7, LINT_DATA_RAW = 4 };
static const struct {
    uint32_t number;
    epctx_wire wire;
} lint_data_fields[LINT_DATA_FIELDS] = {
    {EPCTX_FIELD_TENSOR_FLOAT_DATA, EPCTX_WIRE_FIXED32},
    {EPCTX_FIELD_TENSOR_INT32_DATA, EPCTX_WIRE_VARINT},
    {EPCTX_FIELD_TENSOR_STRING_DATA, EPCTX_WIRE_LEN},
    {EPCTX_FIELD_TENSOR_INT64_DATA, EPCTX_WIRE_VARINT},
    {EPCTX_FIELD_TENSOR_RAW_DATA, EPCTX_WIRE_LEN},
    {EPCTX_FIELD_TENSOR_DOUBLE_DATA, EPCTX_WIRE_FIXED64},
    {EPCTX_FIELD_TENSOR_UINT64_DATA, EPCTX_WIRE_VARINT},
};

/* Elements in each of them, bytes in raw_data. */
static void lint_count_data(epctx_view view, uint64_t counts[LINT_DATA_FIELDS],
                            bool present[LINT_DATA_FIELDS]) {
    epctx_cursor it = epctx_view_fields(view, 0);
    epctx_field f;
    size_t i, k;
    memset(counts, 0, LINT_DATA_FIELDS * sizeof counts[0]);
    memset(present, 0, LINT_DATA_FIELDS * sizeof present[0]);
    while (epctx_next_field(&it, &f)) {
        for (k = 0; k < LINT_DATA_FIELDS && lint_data_fields[k].number != f.number; k++) {
        }
        if (k == LINT_DATA_FIELDS ||
            (f.wire != EPCTX_WIRE_LEN && f.wire != lint_data_fields[k].wire))
            continue;
        present[k] = true;
        if (f.wire != EPCTX_WIRE_LEN || f.number == EPCTX_FIELD_TENSOR_STRING_DATA)
            counts[k]++;
        else if (k == LINT_DATA_RAW)
            counts[k] = f.body.size;
        else if (lint_data_fields[k].wire == EPCTX_WIRE_FIXED32)
            counts[k] += f.body.size / 4;
        else if (lint_data_fields[k].wire == EPCTX_WIRE_FIXED64)
            counts[k] += f.body.size / 8;
        else
            for (i = 0; i < f.body.size; i++)
                counts[k] += (((const uint8_t *)f.body.data)[i] & 0x80) == 0;
    }
}

/* The field that has the numbers of a type, and how many of them `elements` take. */
static int lint_data_field(int32_t elem_type, uint64_t elements, uint64_t *numbers) {
    unsigned bits = epctx_elem_bits(elem_type);
    *numbers = bits == 4 ? (elements + 1) / 2 : bits == 2 ? (elements + 3) / 4 : elements;
    switch (elem_type) {
    case 14: /* complex numbers are two */ *numbers = elements * 2; return 0;
    case 1: return 0;
    case 8: return 2;
    case 7: return 3;
    case 15: *numbers = elements * 2; return 5;
    case 11: return 5;
    case 12:
    case 13: return 6;
    default: return 1;
    }
}

/* What the ONNX checker, by which ORT has every node judged, wants of a tensor in an attribute or a
 * body: data in exactly one field, that of the type or raw_data. */
void lint_tensor_form(linter *l, epctx_view view, epctx_str node) {
    epctx_tensor_view tensor = epctx_view_as_tensor(view);
    uint64_t counts[LINT_DATA_FIELDS];
    bool present[LINT_DATA_FIELDS];
    epctx_cursor dims = epctx_view_tensor_dims(&tensor);
    uint64_t numbers;
    int64_t dim;
    bool zero = false;
    bool negative = false;
    int used = 0;
    int i;
    int own = lint_data_field(tensor.elem_type, 1, &numbers);
    while (epctx_next_int(&dims, &dim)) {
        zero = zero || dim == 0;
        negative = negative || dim < 0;
    }
    lint_count_data(view, counts, present);
    for (i = 0; i < LINT_DATA_FIELDS; i++) used += counts[i] > 0;
    if (!lint_elem_known(tensor.elem_type)) {
        lint_say(l, EPCTX_RULE_ELEMENT_TYPE, node, NULL, "tensor '%S' has data_type %d",
                 &tensor.name, (int64_t)tensor.elem_type);
    } else if (negative) {
        lint_say(l, EPCTX_RULE_TENSOR_SIZE, node, NULL, "tensor '%S' has a negative dimension",
                 &tensor.name);
    } else if (tensor.external && used > 0) {
        lint_say(l, EPCTX_RULE_TENSOR_FORM, node, NULL,
                 "tensor '%S' has data in a file and in the model", &tensor.name);
    } else if (tensor.external && tensor.location.size == 0) {
        lint_say(l, EPCTX_RULE_NO_LOCATION, node, NULL,
                 "tensor '%S' has external data, but no location", &tensor.name);
    } else if (!tensor.external && used != (zero ? 0 : 1)) {
        lint_say(l, EPCTX_RULE_TENSOR_FORM, node, NULL,
                 "tensor '%S' has data in %d fields, expected %d", &tensor.name, (int64_t)used,
                 (int64_t)(zero ? 0 : 1));
    } else if (!tensor.external && !zero &&
               (tensor.elem_type == 8 ? counts[2] == 0
                                      : counts[own] == 0 && counts[LINT_DATA_RAW] == 0)) {
        lint_say(l, EPCTX_RULE_TENSOR_FORM, node, NULL,
                 "tensor '%S' has its data in the wrong field for type %s", &tensor.name,
                 epctx_elem_name(tensor.elem_type));
    }
}

/* Entries of external data that ORT does not take (tensor_external_data_info.cc). */
static void lint_entries(linter *l, const epctx_tensor_view *tensor) {
    epctx_cursor it = epctx_view_fields(tensor->view, EPCTX_FIELD_TENSOR_EXTERNAL_DATA);
    epctx_pair pair;
    bool located = false;
    while (epctx_next_pair(&it, &pair)) {
        bool location = epctx_str_is(pair.key, "location");
        bool known = location || epctx_str_is(pair.key, "offset") ||
                     epctx_str_is(pair.key, "length") || epctx_str_is(pair.key, "checksum") ||
                     epctx_str_starts(pair.key, "prepacked");
        if (!known || (location && located)) {
            lint_say(l, EPCTX_RULE_EXTERNAL_ENTRY, tensor->name, "external_data",
                     "initializer '%S': entry '%S' %s", &tensor->name, &pair.key,
                     known ? "occurs twice" : "is not defined by ONNX");
        }
        located = located || location;
    }
    if (tensor->wrong_key.size > 0) {
        lint_say(l, EPCTX_RULE_EXTERNAL_ENTRY, tensor->name, "external_data",
                 "initializer '%S': the %S of its external data is '%S', not a number",
                 &tensor->name, &tensor->wrong_key, &tensor->wrong_number);
    }
}

/* Data that lies in a file: entries, size, and whether the file has it. `bytes`: of its shape. */
static void lint_external(linter *l, const epctx_tensor_view *tensor, uint64_t bytes) {
    const bool stored = tensor->length != UINT64_MAX && tensor->length != 0;
    const uint64_t need = stored ? tensor->length : bytes;
    const epctx_dependency *file;
    if (tensor->location.size == 0) {
        lint_say(l, EPCTX_RULE_NO_LOCATION, tensor->name, "location",
                 "initializer '%S' has external data, but no location", &tensor->name);
        return;
    }
    lint_entries(l, tensor);
    if (tensor->wrong_key.size > 0) return; /* nobody knows what it means */
    if (bytes != UINT64_MAX && need != bytes) {
        lint_say(l, EPCTX_RULE_TENSOR_SIZE, tensor->name, "length",
                 "initializer '%S' has a length of %u bytes, but its shape needs %u", &tensor->name,
                 need, bytes);
    }
    /* All external tensors were listed. */
    file = l->files + epctx_map_get(&l->external_files, tensor->location);
    if (file->path == NULL || need == UINT64_MAX) return;
    if (tensor->offset > file->size || need > file->size - tensor->offset) {
        lint_say(l, EPCTX_RULE_EXTERNAL_RANGE, tensor->name, "location",
                 "initializer '%S' needs %u bytes from offset %u, but the file has %u",
                 &tensor->name, need, tensor->offset, file->size);
    } else if (need == 0 && tensor->offset > 0) {
        lint_say(l, EPCTX_RULE_EXTERNAL_RANGE, tensor->name, "location",
                 "initializer '%S' has no bytes, but ORT tries to read at its offset %u: it has to "
                 "be 0",
                 &tensor->name, tensor->offset);
    }
}

/* An initializer that something reads. */
void lint_tensor(linter *l, epctx_view view, epctx_str name) {
    epctx_tensor_view tensor = epctx_view_as_tensor(view);
    epctx_cursor it = epctx_view_tensor_dims(&tensor);
    uint64_t counts[LINT_DATA_FIELDS];
    bool present[LINT_DATA_FIELDS];
    const uint64_t bytes = epctx_view_tensor_bytes(&tensor);
    uint64_t count = 1;
    uint64_t numbers;
    int64_t dim;
    int own;
    tensor.name = name;
    while (epctx_next_int(&it, &dim)) {
        if (dim < 0) {
            lint_say(l, EPCTX_RULE_TENSOR_SIZE, tensor.name, NULL,
                     "initializer '%S' has a dimension of %d", &tensor.name, dim);
            return;
        }
        if (dim > 0 && count > INT64_MAX / 16 / (uint64_t)dim) {
            lint_say(l, EPCTX_RULE_TENSOR_SIZE, tensor.name, NULL,
                     "initializer '%S' has more elements than can be counted", &tensor.name);
            return;
        }
        count *= (uint64_t)dim;
    }
    if (tensor.external) {
        lint_external(l, &tensor, bytes);
        return;
    }
    lint_count_data(view, counts, present);
    own = lint_data_field(tensor.elem_type, count, &numbers);
    if (tensor.elem_type != 8 && present[LINT_DATA_RAW]) {
        if (bytes != UINT64_MAX && tensor.raw.size != bytes) {
            lint_say(l, EPCTX_RULE_TENSOR_SIZE, tensor.name, NULL,
                     "initializer '%S' has %u bytes, but its shape needs %u", &tensor.name,
                     (uint64_t)tensor.raw.size, bytes);
        }
    } else if (counts[own] != numbers) {
        lint_say(l, EPCTX_RULE_TENSOR_SIZE, tensor.name, NULL,
                 "initializer '%S' has %u values of its type, but its shape needs %u", &tensor.name,
                 counts[own], numbers);
    }
}

/* -- sparse tensors -- */

/* The numbers of a tensor of indices, in order: typed or raw. */
static bool lint_next_index(const epctx_tensor_view *tensor, epctx_cursor *typed, size_t *at,
                            int64_t *out) {
    size_t size = epctx_elem_size(tensor->elem_type);
    const uint8_t *bytes = (const uint8_t *)tensor->raw.data;
    uint64_t bits = 0;
    size_t i;
    if (!tensor->has_raw) return epctx_next_int(typed, out);
    if (tensor->raw.size - *at < size) return false;
    for (i = 0; i < size; i++) bits |= (uint64_t)bytes[*at + i] << 8 * i;
    *at += size;
    if (size < 8 && (bits >> (8 * size - 1) & 1) != 0) bits |= UINT64_MAX << 8 * size;
    *out = (int64_t)bits;
    return true;
}

/* Whether the values of a sparse tensor are as many as it says. */
static bool lint_values_fit(const epctx_tensor_view *values, uint64_t count) {
    uint64_t counts[LINT_DATA_FIELDS];
    bool present[LINT_DATA_FIELDS];
    uint64_t numbers;
    int own = lint_data_field(values->elem_type, count, &numbers);
    if (values->external) return true;
    if (values->has_raw) return values->raw.size == count * epctx_elem_size(values->elem_type);
    lint_count_data(values->view, counts, present);
    return counts[own] == numbers;
}

/* What is wrong with the indices of a sparse tensor of `rank` dimensions and `total` elements, of
 * which `count` are stored; NULL when nothing is. */
static const char *lint_indices_fault(epctx_view sparse, const epctx_tensor_view *indices,
                                      int64_t rank, int64_t total, int64_t count) {
    epctx_cursor it = epctx_view_tensor_dims(indices);
    epctx_cursor typed = epctx_view_fields(indices->view, indices->elem_type == EPCTX_ONNX_INT64
                                                              ? EPCTX_FIELD_TENSOR_INT64_DATA
                                                              : EPCTX_FIELD_TENSOR_INT32_DATA);
    int64_t dims[2] = {1, 1};
    int64_t index;
    uint64_t found = 0;
    size_t at = 0;
    if (indices->elem_type != EPCTX_ONNX_INT8 &&
        (indices->elem_type < 5 || indices->elem_type > EPCTX_ONNX_INT64)) /* 16 bits and more */
        return "has indices that are not signed integers";
    if (indices->rank < 1 || indices->rank > 2 || !epctx_next_int(&it, &dims[0]) ||
        dims[0] != count || (epctx_next_int(&it, &dims[1]) && dims[1] != rank))
        return "has indices whose shape does not match its values and rank";
    if (indices->external) return NULL;
    it = epctx_view_fields(sparse, EPCTX_FIELD_SPARSE_DIMS);
    for (; lint_next_index(indices, &typed, &at, &index); found++) {
        int64_t limit = total;
        if (indices->rank == 2 && !epctx_next_int(&it, &limit)) {
            it = epctx_view_fields(sparse, EPCTX_FIELD_SPARSE_DIMS);
            (void)epctx_next_int(&it, &limit);
        }
        if (index < 0 || index >= limit) return "has an index outside its shape";
    }
    return found == (uint64_t)count * (uint64_t)dims[1] ? NULL : "has a wrong number of indices";
}

/* What is wrong with a sparse tensor, by which ORT makes a dense one; NULL when nothing is. */
static const char *lint_sparse_fault(const epctx_sparse_view *sparse) {
    const epctx_tensor_view *values = &sparse->values;
    const epctx_tensor_view *indices = &sparse->indices;
    epctx_cursor it = epctx_view_fields(sparse->view, EPCTX_FIELD_SPARSE_DIMS);
    int64_t total = 1;
    int64_t rank = 0;
    int64_t count = -1;
    int64_t dim;
    for (; epctx_next_int(&it, &dim); rank++) {
        if (dim < 0 || (dim > 0 && total > INT64_MAX / dim)) return "has an impossible shape";
        total *= dim;
    }
    it = epctx_view_tensor_dims(values);
    if (rank == 0 || values->rank != 1 || !epctx_next_int(&it, &count))
        return rank == 0 ? "has no shape" : "has values that are not a list";
    if ((values->external && values->location.size == 0) ||
        (indices->external && indices->location.size == 0))
        return "has data in a file without a location";
    if (values->elem_type == EPCTX_ONNX_STRING || epctx_elem_bits(values->elem_type) < 8)
        return "has values of a type that ORT does not support";
    if (count < 0 || !lint_values_fit(values, (uint64_t)count))
        return "has a wrong number of values";
    return count == 0 ? NULL : lint_indices_fault(sparse->view, indices, rank, total, count);
}

void lint_sparse(linter *l, const epctx_sparse_view *sparse, epctx_str name) {
    const char *fault = lint_sparse_fault(sparse);
    if (fault != NULL) {
        lint_say(l, EPCTX_RULE_SPARSE_TENSOR, name, NULL, "sparse initializer '%S' %s", &name,
                 fault);
    } else if (name.size == 0) {
        lint_say(l, EPCTX_RULE_SPARSE_TENSOR, name, NULL, "a sparse initializer has no name");
    }
}
