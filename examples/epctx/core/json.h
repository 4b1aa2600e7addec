/* A small JSON reader: the whole text as a tree. */
#ifndef EPCTX_CLI_JSON_H
#define EPCTX_CLI_JSON_H

#include "epctx.h"

typedef enum json_kind {
    JSON_NULL,
    JSON_BOOL,
    JSON_NUMBER,
    JSON_STRING,
    JSON_LIST,
    JSON_OBJECT
} json_kind;

typedef struct json {
    json_kind kind;
    epctx_str key;  /* in an object */
    epctx_str text; /* of a string, without escapes; of a number, as it stands */
    double number;
    bool truth;
    struct json *first; /* children of lists and objects */
    struct json *next;
} json;

/* Reads `text` into `arena`; NULL when it is no JSON, `*at` is then where. */
const json *json_read(epctx_str text, epctx_arena *arena, size_t *at);
/* The same for text that goes on behind the value, at `*at`. */
const json *json_read_first(epctx_str text, epctx_arena *arena, size_t *at);
/* A member of an object, or NULL (also when `object` is NULL or no object). */
const json *json_get(const json *object, const char *key);
/* "a.b.c": members of members. */
const json *json_find(const json *object, const char *path);

#endif
