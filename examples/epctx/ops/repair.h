/* repair.h - puts right what lint finds. */
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
    bool done;        /* else `text` says why not */
    bool needs_source; /* not done for want of epctx_repair_opts.source */
    epctx_str name;   /* of the node, value or metadata key; may be empty */
    const char *text; /* what was done */
} epctx_repair_note;

typedef void (*epctx_repair_fn)(void *user, const epctx_repair_note *note);

typedef struct epctx_repair_opts {
    const epctx_rule *rules; /* only these; default every error and warning */
    size_t rule_count;
    epctx_check_opts check; /* where files are, which EP judges */
    epctx_model *source; /* the model before it was compiled, open: has types and data that are
                            lost in this one; may be NULL, must stay open as long */
} epctx_repair_opts;

/* Repairs what lint finds, where the right answer is in the model, beside it, or in `source`.
 * Nothing is guessed: what has more than one answer is reported as not done. A model with doubled
 * fields becomes what libprotobuf reads in it. `opts` may be NULL. `done` and `left` (may be NULL)
 * get the numbers of repairs and of findings that remain. Fails, and changes nothing, without
 * memory and for a rule that does not exist (EPCTX_ERR_ARG). */
epctx_status epctx_repair(epctx_model *model, const epctx_repair_opts *opts,
                          epctx_repair_fn note_fn, void *user, size_t *done, size_t *left,
                          epctx_error *error);
/* Whether epctx_repair knows a repair for a rule. */
bool epctx_can_repair(epctx_rule rule);

/* Removes the compatibility information of EPs that have no node in the model, and reports it. */
epctx_status ops_drop_stale(ops_report *report, epctx_model *model, epctx_error *error);

#ifdef __cplusplus
}
#endif

#endif
