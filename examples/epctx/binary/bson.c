/* BSON, as far as containers of OpenVINO have it. */
#include "bson.h"

#include "reader.h"

/* -- reading -- */

/* Bytes of a value, or UINT64_MAX: a type that this reader does not know. */
static uint64_t bson_size(uint8_t type, epctx_span value) {
    switch (type) {
    case 6:
    case 10: return 0;
    case 8: return 1;
    case BINARY_BSON_INT32: return 4;
    case 1:
    case 9:
    case BINARY_BSON_UINT64:
    case BINARY_BSON_INT64: return 8;
    case BINARY_BSON_TEXT: return 4 + (uint64_t)binary_u32(value, 0);
    case 4:
    case BINARY_BSON_DOCUMENT: return binary_u32(value, 0);
    case 5: return 5 + (uint64_t)binary_u32(value, 0);
    default: return UINT64_MAX;
    }
}

bool binary_bson_open(epctx_span whole, epctx_span *fields) {
    const uint32_t size = binary_u32(whole, 0);
    return size >= 5 && size <= whole.size && binary_part(whole, 4, size - 5, fields);
}

bool binary_bson_next(epctx_span *rest, binary_bson *out) {
    epctx_span value;
    const uint8_t *end = (const uint8_t *)memchr(rest->data, 0, rest->size);
    uint64_t size;
    memset(out, 0, sizeof *out);
    if (end == NULL || end == rest->data) return false;
    out->type = rest->data[0];
    out->name.data = (const char *)rest->data + 1;
    out->name.size = (size_t)(end - rest->data) - 1;
    value.data = end + 1;
    value.size = rest->size - (size_t)(value.data - rest->data);
    size = bson_size(out->type, value);
    if (size > value.size) return false;
    out->whole.data = rest->data;
    rest->data = value.data + size;
    out->whole.size = (size_t)(rest->data - out->whole.data);
    rest->size = value.size - (size_t)size;
    value.size = (size_t)size;
    switch (out->type) {
    case BINARY_BSON_TEXT: /* with a terminator */
        if (size < 5) return false;
        out->text.data = (const char *)value.data + 4;
        out->text.size = (size_t)size - 5;
        return true;
    case BINARY_BSON_DOCUMENT: return binary_bson_open(value, &out->document);
    case BINARY_BSON_INT32:
        out->number = binary_u32(value, 0);
        if (out->number > INT32_MAX) out->number = UINT64_MAX;
        return true;
    case BINARY_BSON_UINT64:
    case BINARY_BSON_INT64: out->number = binary_u64(value, 0); return true;
    default: return true;
    }
}

/* -- writing -- */

void binary_bson_set(char *at, uint64_t number, size_t size) {
    size_t i;
    for (i = 0; i < size; i++) at[i] = (char)(uint8_t)(number >> 8 * i);
}

static void put_bytes(epctx_text *out, const char *data, size_t size) {
    const epctx_str bytes = {data, size};
    epctx_text_put(out, bytes);
}

static void put_name(epctx_text *out, uint8_t type, epctx_str name) {
    epctx_text_put_char(out, (char)type);
    epctx_text_put(out, name);
    epctx_text_put_char(out, '\0');
}

size_t binary_bson_begin(epctx_text *out, epctx_str name) {
    const size_t begin = out->size + (name.data != NULL ? name.size + 2 : 0);
    if (name.data != NULL) put_name(out, BINARY_BSON_DOCUMENT, name);
    put_bytes(out, "\0\0\0\0", 4);
    return begin;
}

void binary_bson_end(epctx_text *out, size_t begin) {
    epctx_text_put_char(out, '\0');
    if (!out->cut) binary_bson_set(out->data + begin, out->size - begin, 4);
}

void binary_bson_put_number(epctx_text *out, epctx_str name, uint64_t number) {
    char bytes[8];
    put_name(out, BINARY_BSON_INT64, name);
    binary_bson_set(bytes, number, sizeof bytes);
    put_bytes(out, bytes, sizeof bytes);
}

void binary_bson_put_whole(epctx_text *out, const binary_bson *field) {
    put_bytes(out, (const char *)field->whole.data, field->whole.size);
}
