/* Writes JSON. */
#include "json_writer.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The caller's mistake: what follows would be no JSON. */
_Noreturn static void refuse(const char *what) {
    fflush(NULL);
    fprintf(stderr, "epctx: mistake in the program: JSON: %s\n", what);
    abort();
}

static void put(json_writer *w, const char *data, size_t size) {
    if (size == 0) return;
    if (w->file != NULL)
        fwrite(data, 1, size, w->file);
    else if (epctx_buffer_append(w->buffer, data, size) != EPCTX_OK)
        w->no_memory = true;
}

static void put_word(json_writer *w, const char *word) {
    put(w, word, strlen(word));
}

static void begin(json_writer *w) {
    memset(w, 0, sizeof *w);
    w->step = 2;
}

void json_to_file(json_writer *w, FILE *file) {
    begin(w);
    w->file = file;
}

void json_to_buffer(json_writer *w, epctx_buffer *buffer) {
    begin(w);
    w->buffer = buffer;
}

void json_indent(json_writer *w, unsigned margin, unsigned step) {
    w->margin = margin;
    w->step = step;
}

bool json_is_whole(const json_writer *w) {
    return w->depth == 0 && !w->keyed && !w->in_text && !w->no_memory;
}

/* -- what stands between values -- */

static json_level *innermost(json_writer *w) {
    return w->depth > 0 ? &w->levels[w->depth - 1] : NULL;
}

static void put_line(json_writer *w, unsigned indent) {
    put_word(w, "\n");
    for (; indent > 0; indent--) put_word(w, " ");
}

/* The comma and the line break before a member or an element. */
static void separate(json_writer *w, json_level *level) {
    if (level->some) put_word(w, ",");
    if (level->layout >= JSON_HANGING || (level->layout == JSON_COLUMN && level->some))
        put_line(w, level->indent);
    else if (level->some && level->layout == JSON_INLINE)
        put_word(w, " ");
    level->some = true;
}

static void put_string(json_writer *w, epctx_str value) {
    put_word(w, "\"");
    w->before = 0;
    w->in_text = true;
    json_add_text(w, value);
    w->in_text = false;
    put_word(w, "\"");
}

void json_key(json_writer *w, epctx_str key) {
    json_level *level = innermost(w);
    if (level == NULL || level->array || w->keyed || w->in_text) refuse("a key in a wrong place");
    separate(w, level);
    put_string(w, key);
    put_word(w, level->layout == JSON_TIGHT ? ":" : ": ");
    w->keyed = true;
}

/* A value follows. */
static void place(json_writer *w, const char *key) {
    json_level *level = innermost(w);
    if (w->in_text) refuse("a value in a text");
    if (level == NULL && w->done) refuse("a second value");
    w->done = true;
    if (key != NULL) json_key(w, epctx_str_of(key));
    if (level != NULL && level->array) separate(w, level);
    if (level != NULL && !level->array && !w->keyed) refuse("a value without its key");
    w->keyed = false;
}

/* -- objects and arrays -- */

static void open_level(json_writer *w, const char *key, json_layout layout, bool array) {
    const json_level *around;
    json_level *level;
    unsigned indent = w->margin;
    place(w, key);
    if (w->depth == JSON_DEEPEST) refuse("too deep");
    around = innermost(w);
    if (around != NULL)
        indent = around->indent + (layout >= JSON_HANGING  ? w->step
                                   : layout == JSON_COLUMN ? 1 /* the bracket */
                                                           : 0);
    level = &w->levels[w->depth++];
    level->layout = (unsigned char)layout;
    level->array = array;
    level->some = false;
    level->indent = (unsigned short)indent;
    put_word(w, array ? "[" : "{");
}

void json_object(json_writer *w, const char *key, json_layout layout) {
    open_level(w, key, layout, false);
}

void json_array(json_writer *w, const char *key, json_layout layout) {
    open_level(w, key, layout, true);
}

void json_end(json_writer *w) {
    const json_level *level = innermost(w);
    if (level == NULL || w->keyed || w->in_text) refuse("an end in a wrong place");
    w->depth--;
    if (level->layout == JSON_LINES || (level->layout == JSON_ROWS && level->some))
        put_line(w, w->depth > 0 ? innermost(w)->indent : 0);
    put_word(w, level->array ? "]" : "}");
}

/* -- values -- */

void json_null(json_writer *w, const char *key) {
    place(w, key);
    put_word(w, "null");
}

void json_bool(json_writer *w, const char *key, bool value) {
    place(w, key);
    put_word(w, value ? "true" : "false");
}

void json_int(json_writer *w, const char *key, int64_t value) {
    char digits[24];
    place(w, key);
    snprintf(digits, sizeof digits, "%" PRId64, value);
    put_word(w, digits);
}

void json_uint(json_writer *w, const char *key, uint64_t value) {
    char digits[24];
    place(w, key);
    snprintf(digits, sizeof digits, "%" PRIu64, value);
    put_word(w, digits);
}

/* A number as printf made it, where the point may be another of the locale's, of several bytes. */
static void put_number(json_writer *w, const char *number) {
    while (*number != '\0') {
        const size_t size = strspn(number, "+-0123456789e");
        put(w, number, size);
        number += size;
        if (*number != '\0') put_word(w, ".");
        number += strcspn(number, "+-0123456789e");
    }
}

static bool put_no_number(json_writer *w, double value) {
    if (isfinite(value)) return false;
    put_word(w, isnan(value) ? "\"nan\"" : value > 0 ? "\"inf\"" : "\"-inf\"");
    return true;
}

static void put_real(json_writer *w, const char *key, double value, int digits) {
    char number[64];
    place(w, key);
    if (put_no_number(w, value)) return;
    snprintf(number, sizeof number, "%.*g", digits, value);
    put_number(w, number);
}

void json_real(json_writer *w, const char *key, double value) {
    put_real(w, key, value, 9);
}

void json_double(json_writer *w, const char *key, double value) {
    put_real(w, key, value, 17);
}

void json_extent(json_writer *w, const char *key, uint64_t value) {
    if (value == UINT64_MAX)
        json_null(w, key);
    else
        json_uint(w, key, value);
}

void json_fixed(json_writer *w, const char *key, double value, int decimals) {
    char number[400]; /* DBL_MAX has 309 digits */
    place(w, key);
    if (put_no_number(w, value)) return;
    snprintf(number, sizeof number, "%.*f", decimals, value);
    put_number(w, number);
}

void json_str(json_writer *w, const char *key, epctx_str value) {
    place(w, key);
    put_string(w, value);
}

void json_text(json_writer *w, const char *key, const char *value) {
    if (value != NULL)
        json_str(w, key, epctx_str_of(value));
    else
        json_null(w, key);
}

/* -- strings -- */

void json_begin_text(json_writer *w, const char *key) {
    place(w, key);
    put_word(w, "\"");
    w->before = 0;
    w->in_text = true;
}

static void put_escape(json_writer *w, uint32_t code) {
    char escape[16];
    if (code == EPCTX_NO_CHAR) code = 0xfffd;
    if (code == '"' || code == '\\')
        snprintf(escape, sizeof escape, "\\%c", (char)code);
    else if (code < 0x10000)
        snprintf(escape, sizeof escape, "\\u%04x", (unsigned)code);
    else /* a surrogate pair */
        snprintf(escape, sizeof escape, "\\u%04x\\u%04x", (unsigned)(0xd7c0 + (code >> 10)),
                 (unsigned)(0xdc00 + (code & 0x3ff)));
    put_word(w, escape);
}

void json_add_text(json_writer *w, epctx_str part) {
    size_t from = 0, i, size;
    if (!w->in_text) refuse("a part of no text");
    for (i = 0; i < part.size; i += size) {
        const uint32_t code = epctx_str_char(part, i, &size);
        const bool plain = code != EPCTX_NO_CHAR && code != '"' && code != '\\' &&
                           epctx_char_is_shown(code, w->before);
        w->before = code;
        if (plain) continue;
        put(w, part.data + from, i - from);
        put_escape(w, code);
        from = i + size;
    }
    if (from < part.size) put(w, part.data + from, part.size - from);
}

void json_end_text(json_writer *w) {
    if (!w->in_text) refuse("the end of no text");
    w->in_text = false;
    put_word(w, "\"");
}
