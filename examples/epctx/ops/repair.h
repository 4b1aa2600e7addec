/* repair.h - fixes what lint finds. */
#ifndef EPCTX_OPS_REPAIR_H
#define EPCTX_OPS_REPAIR_H

#include "lint.h"
#include "ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A finding of lint that was repaired or that remains. Strings are valid during the callback. */
typedef struct epctx_repair_note {
    epctx_rule rule;
    epctx_rule_info info;
    bool done;         /* else `text` is the reason */
    bool needs_source; /* not done because epctx_repair_opts.source is NULL */
    epctx_str name;    /* of the node, value or metadata key; may be empty */
    const char *text;  /* what was done */
} epctx_repair_note;

typedef void (*epctx_repair_fn)(void *user, const epctx_repair_note *note);

typedef struct epctx_repair_opts {
    const epctx_rule *rules; /* only these; default every error and warning */
    size_t rule_count;
    epctx_check_opts check;           /* where the files are, whose rules apply */
    const struct binary_asker *asker; /* as in epctx_lint_asking; may be NULL */
    struct beside
        *files;          /* beside.h: kept from model to model while no file changes; may be NULL */
    epctx_model *source; /* the open source model, for lost types and data; may be NULL, must stay
                            open as long as the repaired model */
} epctx_repair_opts;

/* Fixes what lint finds if the model, the files beside it, or `source` determine the fix: a missing
 * context binary is the only one beside it that has what the nodes want. Does not guess: a finding
 * with more than one possible fix is reported as not done. A model with duplicate singular fields
 * becomes what libprotobuf reads from it. `opts` may be NULL. `done` and `left` (may be NULL) get
 * the numbers of fixed and of remaining findings. Fails without a change if out of memory, or for
 * an unknown rule (EPCTX_ERR_ARG). */
epctx_status epctx_repair(epctx_model *model, const epctx_repair_opts *opts,
                          epctx_repair_fn note_fn, void *user, size_t *done, size_t *left,
                          epctx_error *error);
/* Whether epctx_repair can fix findings of a rule. */
bool epctx_can_repair(epctx_rule rule);
/* Whether it needs the source model for that. */
bool epctx_repair_wants_source(epctx_rule rule);

/* Removes and reports compatibility info of EPs that have no node in the model. */
epctx_status ops_drop_stale(ops_report *report, epctx_model *model, epctx_error *error);

#ifdef __cplusplus
}
#endif

#endif
