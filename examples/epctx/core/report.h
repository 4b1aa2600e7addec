/* What `epctx info` knows about a model, gathered before anything is printed. */
#ifndef EPCTX_CLI_REPORT_H
#define EPCTX_CLI_REPORT_H

#include "binary/context.h"
#include "cli.h"
#include "given.h"
#include "ops/state.h"

/* An EPContext node. */
typedef struct report_part {
    epctx_epnode node;
    epctx_node_view view;
    epctx_str graph; /* the body or function that it is in; empty: the main graph */
    epctx_str dlc;   /* ep_dlc_context: a path, instead of a context */
    bool readable;   /* otherwise only node.name is known */
    uint32_t inputs, outputs;
} report_part;

/* Ordinary nodes of one kind. */
typedef struct report_op {
    epctx_str name; /* "Conv", "com.microsoft:FusedConv" */
    uint64_t count;
} report_op;

typedef struct report {
    epctx_arena arena; /* owns every list below */
    const epctx_model *model;
    const char *file;
    report_part *parts;
    size_t part_count;
    epctx_dependency *files;
    size_t file_count;
    binary_contexts contexts;
    report_op *ops; /* most frequent first */
    size_t op_count;
    size_t op_room;
    uint64_t cpu_nodes;
    uint64_t inner_nodes; /* ordinary nodes of bodies and functions */
    uint64_t initializers;
    given_build *builds;
    size_t build_count;
    const char **warnings; /* something the model needs is missing or broken */
    size_t warning_count;
    size_t warning_room;
} report;

/* `model` and `file` must outlive the report. `asker` may be NULL. */
epctx_status report_make(report *out, const epctx_model *model, const char *file,
                         const binary_asker *asker, epctx_error *error);
void report_free(report *done);
/* The members of the object of `epctx info --json`. */
void report_put_json(json_writer *w, const report *all, const epctx_state *state);

#endif
