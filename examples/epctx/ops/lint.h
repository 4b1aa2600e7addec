/* Stands in for lint.h until lint is an operation, too. */
#ifndef EPCTX_OPS_LINT_H
#define EPCTX_OPS_LINT_H

#include "ops.h"

typedef struct lint_verdict {
    uint64_t *counts;
    const uint64_t *allowed; /* per rule: how many there may be */
    epctx_error *error;
    bool refused;
} lint_verdict;

static inline void lint_found(void *user, const epctx_finding *finding)
{
    lint_verdict *v = (lint_verdict *)user;
    v->counts[finding->rule]++;
    if (v->allowed != NULL && !v->refused && finding->info.severity == EPCTX_SEVERITY_ERROR &&
        v->counts[finding->rule] > v->allowed[finding->rule]) {
        v->refused = true;
        epctx_fail(v->error, EPCTX_ERR_GRAPH, "the result would break rule %s: %s (%s)",
                   finding->info.id, finding->message, finding->info.fix);
    }
}

static inline epctx_status lint_judge(const epctx_model *model, const epctx_profile *profile,
                                      lint_verdict *v)
{
    epctx_check_opts opts;
    memset(&opts, 0, sizeof opts);
    opts.no_files = true;
    opts.profile = profile;
    opts.allocator = model->arena.allocator.alloc_fn != NULL ? &model->arena.allocator : NULL;
    if (model->path[0] == '\0') { /* where a new model will stand is not its fault */
        opts.context_file_path = "model.onnx";
        opts.external_folder = ".";
    }
    v->refused = false;
    OPS_TRY(epctx_lint(model, &opts, lint_found, v, NULL, v->error));
    return v->refused ? EPCTX_ERR_GRAPH : EPCTX_OK;
}

static inline epctx_status epctx_lint_count(const epctx_model *model,
                                            const epctx_profile *profile,
                                            uint64_t counts[EPCTX_RULE_COUNT], epctx_error *error)
{
    lint_verdict v = {counts, NULL, error, false};
    return lint_judge(model, profile, &v);
}

static inline epctx_status epctx_lint_verify(const epctx_model *model,
                                             const epctx_profile *profile, const uint64_t *allowed,
                                             epctx_error *error)
{
    static const uint64_t none[EPCTX_RULE_COUNT];
    uint64_t counts[EPCTX_RULE_COUNT] = {0};
    lint_verdict v = {counts, allowed != NULL ? allowed : none, error, false};
    return lint_judge(model, profile, &v);
}

static inline bool epctx_lint_allows(int32_t type)
{
    return type >= EPCTX_ONNX_FLOAT && type != EPCTX_ONNX_STRING && type <= 16 && type != 14 &&
           type != 15;
}

#endif
