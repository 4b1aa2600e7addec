/* json_writer.h - writes JSON, value by value, into a file or a text that grows. Commas, line
 * breaks, indentation and escapes are the writer's.
 *
 *     json_writer w;
 *     json_to_file(&w, stdout);
 *     json_object(&w, NULL, JSON_LINES);
 *     json_text(&w, "file", path);
 *     json_array(&w, "sizes", JSON_INLINE);
 *     json_uint(&w, NULL, 3);
 *     json_end(&w);
 *     json_end(&w);
 *
 * Every value takes the key that it has in an object; in an array, at the top, and behind json_key
 * it is NULL. A call that would not give JSON (a value without its key, a key in an array, an end
 * too many, deeper than JSON_DEEPEST) is a mistake in the program, which ends there.
 */
#ifndef EPCTX_CLI_JSON_WRITER_H
#define EPCTX_CLI_JSON_WRITER_H

#include <stdio.h>

#include "epctx.h"

/* Bodies in bodies are deep in the page of `epctx view`. */
enum { JSON_DEEPEST = 640 };

/* Where the members of an object or the elements of an array stand. */
typedef enum json_layout {
    JSON_TIGHT,   /* {"a":1,"b":2} */
    JSON_INLINE,  /* {"a": 1, "b": 2} */
    JSON_COLUMN,  /* the first behind the bracket, the others below it */
    JSON_HANGING, /* each on a line of its own; the bracket that closes, behind the last */
    JSON_LINES,   /* so does that bracket */
    JSON_ROWS     /* the same; without an element it is [] */
} json_layout;

typedef struct json_level {
    unsigned char layout;
    bool array, some; /* `some`: there was an element */
    unsigned short indent;
} json_level;

typedef struct json_writer {
    FILE *file;
    epctx_buffer *buffer;
    size_t depth;
    unsigned margin, step;
    bool keyed, in_text; /* a key waits for its value; a text has begun */
    bool done;           /* the outermost value has begun */
    bool no_memory;
    uint32_t before; /* the character before, in a text */
    json_level levels[JSON_DEEPEST];
} json_writer;

void json_to_file(json_writer *w, FILE *file);
/* Into a buffer, behind what is in it; the writer borrows it. */
void json_to_buffer(json_writer *w, epctx_buffer *buffer);
/* Of lines: the outermost have `margin` blanks (0), all others `step` (2) more than those around
 * them. Concerns what begins later. */
void json_indent(json_writer *w, unsigned margin, unsigned step);
/* Everything has ended and, in a buffer, got its memory. */
bool json_is_whole(const json_writer *w);

void json_object(json_writer *w, const char *key, json_layout layout);
void json_array(json_writer *w, const char *key, json_layout layout);
/* Of the object or array that began last. */
void json_end(json_writer *w);
/* Of the value that follows: a key that somebody else chose. */
void json_key(json_writer *w, epctx_str key);

void json_null(json_writer *w, const char *key);
void json_bool(json_writer *w, const char *key, bool value);
void json_int(json_writer *w, const char *key, int64_t value);
void json_uint(json_writer *w, const char *key, uint64_t value);
/* An offset or a length; UINT64_MAX, which stands for one that is not told or cannot be read, is
 * null. */
void json_extent(json_writer *w, const char *key, uint64_t value);
/* With nine digits, which give a float back, with 17, which give a double back, and with so many
 * decimals; always with a point. What is no number in JSON is a string: "nan", "inf", "-inf". */
void json_real(json_writer *w, const char *key, double value);
void json_double(json_writer *w, const char *key, double value);
void json_fixed(json_writer *w, const char *key, double value, int decimals);
/* Bytes that are no UTF-8 become U+FFFD; what a terminal would not show, and quotes, are
 * escaped. */
void json_str(json_writer *w, const char *key, epctx_str value);
/* The same; NULL is null. */
void json_text(json_writer *w, const char *key, const char *value);
/* A string in parts of whole characters. */
void json_begin_text(json_writer *w, const char *key);
void json_add_text(json_writer *w, epctx_str part);
void json_end_text(json_writer *w);

#endif
