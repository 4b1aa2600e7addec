/* A small JSON reader. */
#include "json.h"

#include <stdlib.h>
#include <string.h>

enum { DEEPEST = 64 };

typedef struct reader {
    const char *start, *p, *end;
    epctx_arena *arena;
} reader;

static void skip_space(reader *r) {
    while (r->p < r->end && strchr(" \t\r\n", *r->p) != NULL && *r->p != '\0') r->p++;
}

static bool take(reader *r, char c) {
    skip_space(r);
    if (r->p == r->end || *r->p != c) return false;
    r->p++;
    return true;
}

static bool take_word(reader *r, const char *word) {
    size_t size = strlen(word);
    if ((size_t)(r->end - r->p) < size || memcmp(r->p, word, size) != 0) return false;
    r->p += size;
    return true;
}

/* Four hexadecimal digits. */
static bool read_hex(reader *r, unsigned *code) {
    int i;
    *code = 0;
    for (i = 0; i < 4; i++) {
        char c = r->p < r->end ? *r->p++ : '\0';
        unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
                         : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10)
                         : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A' + 10)
                                                : 16;
        if (digit == 16) return false;
        *code = *code * 16 + digit;
    }
    return true;
}

static size_t put_utf8(char *out, unsigned long code) {
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (char)(0xc0 | code >> 6);
        out[1] = (char)(0x80 | (code & 63));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (char)(0xe0 | code >> 12);
        out[1] = (char)(0x80 | (code >> 6 & 63));
        out[2] = (char)(0x80 | (code & 63));
        return 3;
    }
    out[0] = (char)(0xf0 | code >> 18);
    out[1] = (char)(0x80 | (code >> 12 & 63));
    out[2] = (char)(0x80 | (code >> 6 & 63));
    out[3] = (char)(0x80 | (code & 63));
    return 4;
}

static bool read_escape(reader *r, char *out, size_t *size) {
    static const char from[] = "\"\\/bfnrt";
    static const char to[] = "\"\\/\b\f\n\r\t";
    unsigned code, low;
    char c = r->p < r->end ? *r->p++ : '\0';
    const char *found = c != '\0' ? strchr(from, c) : NULL;
    unsigned long whole;
    if (found != NULL) {
        out[(*size)++] = to[found - from];
        return true;
    }
    if (c != 'u' || !read_hex(r, &code)) return false;
    whole = code;
    if (code >= 0xd800 && code < 0xdc00) {
        if (!take_word(r, "\\u") || !read_hex(r, &low) || low < 0xdc00 || low > 0xdfff)
            return false;
        whole = 0x10000 + ((unsigned long)(code - 0xd800) << 10) + (low - 0xdc00);
    } else if (code >= 0xdc00 && code < 0xe000) {
        return false; /* the second half of a pair */
    }
    *size += put_utf8(out + *size, whole);
    return true;
}

static bool read_string(reader *r, epctx_str *out) {
    char *text;
    size_t size = 0;
    const char *q;
    if (!take(r, '"')) return false;
    /* An escape is never shorter than what it stands for. */
    for (q = r->p; q < r->end && *q != '"'; q++) q += *q == '\\' && q + 1 < r->end;
    text = (char *)epctx_arena_alloc(r->arena, (size_t)(q - r->p) + 1);
    if (text == NULL) return false;
    while (r->p < r->end && *r->p != '"') {
        char c = *r->p++;
        if (c == '\\') {
            if (!read_escape(r, text, &size)) return false;
        } else {
            if ((unsigned char)c < 0x20) return false;
            text[size++] = c;
        }
    }
    out->data = text;
    out->size = size;
    return take(r, '"');
}

static size_t digits(const char *text) {
    return strspn(text, "0123456789");
}

/* The grammar of RFC 8259, which strtod does not keep: no plus, no zero in front. */
static bool is_number(const char *text) {
    size_t count;
    text += *text == '-';
    count = digits(text);
    if (count == 0 || (count > 1 && *text == '0')) return false;
    text += count;
    if (*text == '.') {
        count = digits(++text);
        if (count == 0) return false;
        text += count;
    }
    if (*text == 'e' || *text == 'E') {
        text++;
        text += *text == '+' || *text == '-';
        count = digits(text);
        if (count == 0) return false;
        text += count;
    }
    return *text == '\0';
}

static bool read_number(reader *r, json *out) {
    char text[64];
    size_t size = 0;
    const char *from = r->p;
    if (r->p < r->end && *r->p == '+') return false;
    while (r->p < r->end && size + 1 < sizeof text && *r->p != '\0' &&
           strchr("+-0123456789.eE", *r->p) != NULL)
        text[size++] = *r->p++;
    text[size] = '\0';
    if (!is_number(text)) return false;
    out->kind = JSON_NUMBER;
    out->number = strtod(text, NULL);
    out->text.data = from;
    out->text.size = size;
    return true;
}

static bool read_value(reader *r, json *out, int depth);

static bool read_children(reader *r, json *out, char close, int depth) {
    json **last = &out->first;
    skip_space(r);
    if (take(r, close)) return true;
    do {
        json *child = (json *)epctx_arena_alloc(r->arena, sizeof *child);
        if (child == NULL) return false;
        if (close == '}' && (!read_string(r, &child->key) || !take(r, ':'))) return false;
        if (!read_value(r, child, depth - 1)) return false;
        *last = child;
        last = &child->next;
    } while (take(r, ','));
    return take(r, close);
}

static bool read_value(reader *r, json *out, int depth) {
    skip_space(r);
    if (r->p == r->end || depth == 0) return false;
    if (*r->p == '"') {
        out->kind = JSON_STRING;
        return read_string(r, &out->text);
    }
    if (take(r, '{')) {
        out->kind = JSON_OBJECT;
        return read_children(r, out, '}', depth);
    }
    if (take(r, '[')) {
        out->kind = JSON_LIST;
        return read_children(r, out, ']', depth);
    }
    out->kind = JSON_BOOL;
    out->truth = *r->p == 't';
    if (take_word(r, "true") || take_word(r, "false")) return true;
    out->kind = JSON_NULL;
    return take_word(r, "null") || read_number(r, out);
}

const json *json_read_first(epctx_str text, epctx_arena *arena, size_t *at) {
    json *root = (json *)epctx_arena_alloc(arena, sizeof *root);
    reader r;
    bool ok;
    r.start = r.p = text.data;
    r.end = text.data + text.size;
    r.arena = arena;
    ok = root != NULL && read_value(&r, root, DEEPEST);
    skip_space(&r);
    *at = (size_t)(r.p - r.start);
    return ok ? root : NULL;
}

const json *json_read(epctx_str text, epctx_arena *arena, size_t *at) {
    const json *root = json_read_first(text, arena, at);
    return *at == text.size ? root : NULL;
}

const json *json_get(const json *object, const char *key) {
    const json *child = object != NULL && object->kind == JSON_OBJECT ? object->first : NULL;
    while (child != NULL && !epctx_str_is(child->key, key)) child = child->next;
    return child;
}

const json *json_find(const json *object, const char *path) {
    while (object != NULL && *path != '\0') {
        char key[64];
        size_t size = strcspn(path, ".");
        if (size >= sizeof key) return NULL;
        memcpy(key, path, size);
        key[size] = '\0';
        object = json_get(object, key);
        path += size + (path[size] == '.');
    }
    return object;
}
