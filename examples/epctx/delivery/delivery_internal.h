/* delivery_internal.h - common declarations of the files that judge deliveries. */
#ifndef EPCTX_CLI_DELIVERY_INTERNAL_H
#define EPCTX_CLI_DELIVERY_INTERNAL_H

#include "delivery.h"
#include "core/json.h"
#include "facts/facts.h"

/* A folder that is judged as a whole. */
typedef struct delivery {
    findings *out; /* NULL: nothing is judged, only `paths` are collected */
    delivery_paths *paths;
    const tree *files;
    epctx_arena *arena;
    const char *assets;        /* shared_assets of the model package around the folder, or NULL */
    unsigned line;             /* of what is said next; 0: none */
    const char *since, *until; /* the same: see finding */
} delivery;

/* An input or output of a model. */
typedef struct delivery_value {
    epctx_str name;
    int32_t elem_type;   /* 0: unknown */
    int32_t rank;        /* -1: unknown */
    const int64_t *dims; /* -1: not fixed */
} delivery_value;

typedef struct delivery_values {
    delivery_value *items;
    size_t count;
    epctx_map places; /* name -> position */
} delivery_values;

/* An EPContext node. */
typedef struct delivery_node {
    epctx_epnode node;
    epctx_str dlc; /* ep_dlc_context */
    const epctx_profile *profile;
} delivery_node;

typedef struct delivery_model {
    epctx_model model;
    delivery_values inputs, outputs; /* of the main graph; no input that has an initializer */
    delivery_node *nodes;            /* those that can be read */
    size_t node_count;
    epctx_dependency *files;
    size_t file_count;
} delivery_model;

/* Adds a finding; `where` is the stage, component or variant and may be empty. The formats are
 * those of epctx_fail. */
void delivery_say(delivery *d, int rule, epctx_str where, const char *format, ...);
/* A key behind `path`, whose fact is not of the version that is judged for. */
void delivery_say_later(delivery *d, int rule, epctx_str where, const char *path, epctx_str key,
                        const fact *later);
/* Most bytes of a text that is read whole: real ones have some kilobytes. */
#define DELIVERY_MOST_TEXT (64u << 20)

/* A file as a text, in the arena. LIMIT: it is larger than DELIVERY_MOST_TEXT. */
epctx_status delivery_read_text(const delivery *d, const char *path, epctx_str *out,
                                epctx_error *error);
/* The JSON object in a file; NULL after a finding of `rule`. With `text` that gets the object's own
 * text, and more may follow in the file: `rest` is its line, or 0. */
const json *delivery_read_json(delivery *d, const char *path, int rule, epctx_str *text,
                               unsigned *rest);
/* Reads a model and what the rules ask of it; close it also after a failure. `paths` may be
 * NULL. */
epctx_status delivery_open(delivery *d, const char *path, const delivery_paths *paths,
                           delivery_model *out, epctx_error *error);
/* Notes where the files of a model are; NULL if it does not exist, or without memory. */
const delivery_paths *delivery_add_paths(delivery *d, const char *model, const char *context,
                                         const char *external);
void delivery_close(delivery_model *done);
/* How inputs and outputs of `b` differ from those of `a`, in names, types and ranks, as far as they
 * are known; NULL: not at all. */
const char *delivery_difference(delivery *d, const delivery_model *a, const delivery_model *b);
const delivery_value *delivery_find(const delivery_values *values, epctx_str name);
/* Memory that is zero, or NULL; it is released with the delivery. */
void *delivery_alloc(delivery *d, size_t count, size_t size);
/* "a/b" of "a" and "./b", in the delivery's memory; NULL: out of memory. */
const char *delivery_join(delivery *d, const char *folder, epctx_str name);
/* Whether a name is absolute on any system: "/a", "\a", "c:". */
bool delivery_is_absolute(epctx_str name);
/* Whether a part of a name between separators of any system is "..". */
bool delivery_climbs(epctx_str name);
/* A member of an object that is text; empty otherwise. */
epctx_str delivery_text(const json *object, const char *key);

/* Judges a folder with genai_config.json. `config` is that file. */
void genai_lint(delivery *d, const char *config);
/* Judges a folder with manifest.json. */
void package_lint(delivery *d, const char *manifest);

/* Checks the keys and types of a configuration of ORT GenAI. */
void genai_check_schema(delivery *d, const json *root);
/* Whether they refuse this member of an object, named as in the facts. */
bool genai_refuses(const char *object, const json *member);
/* The provider of ORT GenAI for a node of this `source`, a fact "provider"; NULL: none. */
const fact *genai_provider_of(epctx_str source);
/* A provider from any spelling of its name; NULL: ORT GenAI knows none. */
const fact *genai_provider(epctx_str name);

#endif
