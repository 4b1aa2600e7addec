/* What `epctx set` and `epctx unset` change: nodes by name, and the words in front of a colon. */
#ifndef EPCTX_CLI_TARGET_H
#define EPCTX_CLI_TARGET_H

#include "output.h"

/* Nodes of a model, in the order of the walk. */
typedef struct target_nodes {
    epctx_node_view *nodes; /* from `arena` */
    size_t count;
} target_nodes;

/* The nodes meant: with `all` every EPContext node, with `name` the one node of that name, else the
 * only EPContext node. Prints what is wrong, with the names there are, and returns false. */
bool target_find(const epctx_model *model, const char *file, const char *name, bool all,
                 epctx_arena *arena, target_nodes *out);

/* Where a value stands. */
typedef enum target_kind {
    TARGET_ATTR,     /* NAME of a node */
    TARGET_METADATA, /* metadata:KEY */
    TARGET_OPSET,    /* opset:DOMAIN */
    TARGET_MODEL,    /* model:FIELD */
    TARGET_GRAPH,    /* graph:FIELD */
    TARGET_VALUE,    /* value:NAME, its type; only to set */
    TARGET_DIM       /* dim:NAME or dim:INPUT[AXIS]; only to set */
} target_kind;

typedef struct target {
    target_kind kind;
    epctx_str name;  /* what stands behind the colon, or the attribute */
    uint32_t number; /* MODEL and GRAPH: of the field in onnx.proto */
    bool is_text;    /* MODEL and GRAPH: a string, else a number */
} target;

/* Reads a WHAT; prints what is wrong otherwise. */
bool target_parse(epctx_str what, target *out);
/* Says so if it is one that can only be set. */
bool target_is_set_only(const target *what);
/* The message that a target of kind MODEL or GRAPH is a field of. */
epctx_view target_message(const epctx_model *model, const target *what);
/* The attribute of the node, or of the schema, that a mistyped name means. */
cli_guess target_guess_attr(const epctx_node_view *node, epctx_str name);
/* The last attribute of that name; false when there is none. */
bool target_attr(const epctx_node_view *node, epctx_str name, epctx_attr_view *out);

/* A run of set or unset. */
typedef struct target_work {
    const char *file, *node;
    bool all;
    bool misused; /* the command line is wrong, not the model */
    output out;
    epctx_model model;
    epctx_arena arena;       /* what the model borrows, */
    epctx_mapping *mappings; /* and files, at most one for each operand */
    size_t mapping_count;
    const char *mapped; /* the operand's value that the last mapping is of */
    target_nodes nodes;
    target *done; /* by earlier operands */
    size_t done_count;
    epctx_error error;
} target_work;

/* Notes the place of an operand; false, with "'<text>' <problem>", if an earlier one has it. */
bool target_once(target_work *work, const target *place, epctx_str text, const char *problem);

/* A value in few words, for people. */
enum { TARGET_SHOWN = 60 };
void target_describe(const epctx_attr_view *attr, char *text, size_t size);
/* The same as data: a text as it is. */
epctx_str target_attr_value(target_work *work, const epctx_attr_view *attr);
/* What metadata, an opset or a field is now; false: not there. */
bool target_value(target_work *work, const target *what, epctx_str *value);
/* The change of such a thing, with what it is before. */
output_item target_item(target_work *work, const char *action, const target *what);

/* Before `notes` of an EPContext node changes: a note when it loses its graph hash. */
void target_note_hash(target_work *work, const epctx_node_view *node, epctx_str notes);

/* MODEL WHAT...: `change` does each WHAT, then the model is written. Returns the exit code. */
int target_run(const cli_args *args, bool (*change)(target_work *work, const char *what));

#endif
