/* What `epctx diff` knows of a model: shared by its source files only. */
#ifndef EPCTX_CLI_DIFF_INTERNAL_H
#define EPCTX_CLI_DIFF_INTERNAL_H

#include "core/cli.h"

typedef enum fact_kind {
    FACT_OTHER,
    FACT_INPUT, /* of a node: the fact's value is the name of what it reads */
    FACT_OUTPUT,
    FACT_TYPE /* of a value inside a graph */
} fact_kind;

/* One thing that a model says. */
typedef struct fact {
    const char *key, *value;
    uint32_t repeats; /* how many facts had the same key */
    fact_kind kind;
    bool told;        /* by the line of a partition */
    uint32_t at_size; /* of a FACT_TYPE: of the key's beginning that says in which body */
} fact;

/* What may have another name in the other model: a node, or an initializer. */
typedef struct thing {
    const char *at;      /* the body that it stands in */
    const char *owner;   /* "node 'a'" with `at` before it: how the keys of its facts begin */
    const char *outputs; /* a node's; empty when it has none */
    uint64_t content;    /* of its facts without its name and its outputs */
    uint32_t first, end; /* its facts, those of its bodies too */
    uint32_t next;       /* the next one that looks the same, UINT32_MAX behind the last */
    uint32_t partition;  /* of the node that replaces it, from 1; 0: none does */
} thing;

typedef struct facts {
    const char *file;
    epctx_model model;
    epctx_arena arena;
    epctx_map at;
    fact *list;
    size_t count, room;
    thing *things;
    size_t thing_count, thing_room;
    char texts[16][512]; /* of diff_text: used in turn */
    unsigned turn;
    epctx_map data;       /* files of external data that were read */
    uint64_t there, read; /* bytes of these files, and of the tensors in them */
    bool overlaid;        /* too much to read */
    bool short_of_memory;
} facts;

/* -- diff_text.c -- */

/* Good for the next few calls: what lasts goes through diff_keep. */
CLI_FORMAT(2) epctx_str diff_text(facts *f, const char *format, ...);
const char *diff_keep(facts *f, epctx_str made);

/* -- diff_partitions.c -- */

/* A line or an element of "changes" for each EPContext node of `now` that stands for ordinary nodes
 * of `old`; `w` NULL: for people. The facts of these nodes, and of the initializers and values that
 * went with them, are told by it, unless `all`. Returns how many lines. */
size_t diff_put_partitions(json_writer *w, facts *old, facts *now, bool all);

#endif
