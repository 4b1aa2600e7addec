/* Checksums, and the elements of a tensor as bytes whatever they are stored as. */
#include "values.h"

#include <inttypes.h>
#include <string.h>

/* -- checksums -- */

static uint32_t crc_of(uint32_t crc, const uint8_t *data, size_t size) {
    static uint32_t table[256];
    size_t i;
    if (table[1] == 0) {
        uint32_t at;
        for (at = 0; at < 256; at++) {
            uint32_t value = at;
            int bit;
            for (bit = 0; bit < 8; bit++)
                value = value >> 1 ^ ((value & 1) != 0 ? UINT32_C(0xedb88320) : 0);
            table[at] = value;
        }
    }
    crc = ~crc;
    for (i = 0; i < size; i++) crc = crc >> 8 ^ table[(crc ^ data[i]) & 0xff];
    return ~crc;
}

static void take(value_sum *sum, const uint8_t *data, size_t size) {
    if (sum->by_hash)
        sum->hash = epctx_hash(data, size, sum->hash);
    else
        sum->crc = crc_of(sum->crc, data, size);
}

void value_begin(value_sum *sum, bool by_hash) {
    memset(sum, 0, sizeof *sum);
    sum->by_hash = by_hash;
}

void value_add(value_sum *sum, const void *data, size_t size) {
    const uint8_t *from = (const uint8_t *)data;
    sum->size += size;
    while (size > 0) {
        size_t room = sizeof sum->block - sum->used;
        size_t part = size < room ? size : room;
        if (part == sizeof sum->block) {
            take(sum, from, part);
        } else {
            memcpy(sum->block + sum->used, from, part);
            sum->used += part;
            if (sum->used == sizeof sum->block) {
                take(sum, sum->block, sum->used);
                sum->used = 0;
            }
        }
        from += part;
        size -= part;
        cli_progress_add(part);
    }
}

void value_add_number(value_sum *sum, uint64_t bits, size_t size) {
    uint8_t bytes[8];
    size_t i;
    for (i = 0; i < size; i++) bytes[i] = (uint8_t)(bits >> 8 * i);
    value_add(sum, bytes, size);
}

void value_add_text(value_sum *sum, epctx_str text) {
    value_add_number(sum, text.size, 8);
    value_add(sum, text.data, text.size);
}

void value_end(value_sum *sum) {
    if (sum->used > 0) take(sum, sum->block, sum->used);
}

/* -- tensors -- */

/* Where the typed form of an element type is: field of TensorProto, bytes of what is one number
 * there. The two halves of a complex number are two numbers; elements of less than a byte stand
 * together in one number a byte. */
typedef struct storage {
    uint8_t field, bytes;
} storage;

static storage storage_of(int32_t elem_type) {
    enum { FLOATS = 4, INT32S = 5, STRINGS = 6, INT64S = 7, DOUBLES = 10, UINT64S = 11 };
    static const storage all[27] = {
        {0, 0},       {FLOATS, 4},  {INT32S, 1},  {INT32S, 1},  {INT32S, 2}, {INT32S, 2},
        {INT32S, 4},  {INT64S, 8},  {STRINGS, 0}, {INT32S, 1},  {INT32S, 2}, {DOUBLES, 8},
        {UINT64S, 4}, {UINT64S, 8}, {FLOATS, 4},  {DOUBLES, 8}, {INT32S, 2}, {INT32S, 1},
        {INT32S, 1},  {INT32S, 1},  {INT32S, 1},  {INT32S, 1},  {INT32S, 1}, {INT32S, 1},
        {INT32S, 1},  {INT32S, 1},  {INT32S, 1}};
    return all[elem_type > 0 && elem_type < 27 ? elem_type : 0];
}

/* fixed32 and fixed64, packed or not: on the wire they are what is wanted. */
static void add_fixed(value_sum *sum, epctx_cursor it, epctx_wire wire, size_t bytes) {
    epctx_field field;
    while (epctx_next_field(&it, &field))
        if (field.wire == EPCTX_WIRE_LEN)
            value_add(sum, field.body.data, field.body.size);
        else if (field.wire == wire)
            value_add_number(sum, field.value, bytes);
}

void value_add_tensor(value_sum *sum, const epctx_tensor_view *tensor) {
    storage typed = storage_of(tensor->elem_type);
    epctx_cursor it = epctx_view_fields(tensor->view, typed.field);
    epctx_str text;
    int64_t number;
    if (tensor->has_raw && tensor->elem_type != EPCTX_ONNX_STRING) {
        value_add(sum, tensor->raw.data, tensor->raw.size);
        return;
    }
    switch (typed.field) {
    case 0: break;
    case 4: add_fixed(sum, it, EPCTX_WIRE_FIXED32, 4); break;
    case 10: add_fixed(sum, it, EPCTX_WIRE_FIXED64, 8); break;
    case 6:
        while (epctx_next_str(&it, &text)) value_add_text(sum, text);
        break;
    default:
        while (epctx_next_int(&it, &number)) value_add_number(sum, (uint64_t)number, typed.bytes);
    }
}

/* -- types -- */

static void put_tensor_type(FILE *out, const epctx_type_view *type) {
    epctx_cursor dims = epctx_type_dims(type);
    const char *comma = "";
    epctx_dim dim;
    fputs(epctx_elem_name(type->elem_type), out);
    if (!type->has_shape) {
        fputs(", no shape", out);
        return;
    }
    fputc('[', out);
    for (; epctx_next_dim(&dims, &dim); comma = ",") {
        fputs(comma, out);
        if (dim.known)
            fprintf(out, "%" PRId64, dim.value);
        else if (dim.param.size > 0)
            cli_put(out, dim.param);
        else
            fputc('?', out);
    }
    fputc(']', out);
}

/* Recursion ends: opening refused models nested deeper than epctx_limits allows. */
void value_put_type(FILE *out, const epctx_type_view *type) {
    epctx_type_view element = epctx_type_of(type->element);
    epctx_view opaque;
    switch (type->kind) {
    case EPCTX_TYPE_TENSOR: put_tensor_type(out, type); return;
    case EPCTX_TYPE_SPARSE:
        fputs("sparse ", out);
        put_tensor_type(out, type);
        return;
    case EPCTX_TYPE_SEQUENCE:
    case EPCTX_TYPE_OPTIONAL:
        fputs(type->kind == EPCTX_TYPE_SEQUENCE ? "sequence(" : "optional(", out);
        value_put_type(out, &element);
        fputc(')', out);
        return;
    case EPCTX_TYPE_MAP:
        fprintf(out, "map(%s,", epctx_elem_name(type->elem_type));
        value_put_type(out, &element);
        fputc(')', out);
        return;
    case EPCTX_TYPE_OPAQUE:
        opaque = ops_last_view(type->view, EPCTX_TYPE_OPAQUE);
        fputs("opaque(", out);
        cli_put(out, ops_last_str(opaque, 1));
        fputc(',', out);
        cli_put(out, ops_last_str(opaque, 2));
        fputc(')', out);
        return;
    case EPCTX_TYPE_NONE: fputs("no type", out);
    }
}
