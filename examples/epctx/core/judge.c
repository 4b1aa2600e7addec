/* judge.c - see judge.h. */
#include "judge.h"

#include "ops/lint.h"

#include <string.h>

/* What is wrong with the sources; one that cannot be read any more allows nothing. */
static epctx_status count_sources(const char *const *sources, size_t count, uint64_t *allowed,
                                  epctx_error *error) {
    epctx_status status = EPCTX_OK;
    size_t i;
    for (i = 0; i < count && status == EPCTX_OK; i++) {
        epctx_model source;
        epctx_error ignored;
        if (cli_open(&source, sources[i], &ignored) == EPCTX_OK)
            status = epctx_lint_count(&source, NULL, allowed, error);
        epctx_model_close(&source);
    }
    return status;
}

epctx_status judge_made(const epctx_model *made, const char *const *sources, size_t count,
                        bool huge, epctx_error *before, epctx_error *error) {
    uint64_t allowed[EPCTX_RULE_COUNT] = {0};
    epctx_status status;
    epctx_error_clear(before);
    if (huge) allowed[EPCTX_RULE_MODEL_SIZE] = UINT64_MAX;
    /* Sources are read only where there is something to compare. */
    status = epctx_lint_verify_ort(made, allowed, error);
    if (status != EPCTX_ERR_GRAPH) return status;
    *before = *error;
    status = count_sources(sources, count, allowed, error);
    if (huge) allowed[EPCTX_RULE_MODEL_SIZE] = UINT64_MAX;
    if (status == EPCTX_OK) status = epctx_lint_verify_ort(made, allowed, error);
    if (status != EPCTX_OK) epctx_error_clear(before);
    return status;
}

epctx_status judge_file(const char *path, const char *source, epctx_error *before,
                        epctx_error *error) {
    epctx_model made;
    epctx_status status = cli_open(&made, path, error);
    epctx_error_clear(before);
    if (status == EPCTX_OK) status = judge_made(&made, &source, 1, false, before, error);
    epctx_model_close(&made);
    return status;
}

typedef struct given {
    const char *path;
    epctx_error *ep, *ort;
} given;

static void given_found(void *user, const epctx_finding *what) {
    const given *g = (const given *)user;
    epctx_error *error = epctx_lint_is_for_ep(what->rule) ? g->ep : g->ort;
    if (what->info.severity != EPCTX_SEVERITY_ERROR || error->message[0] != '\0') return;
    if (what->until[0] != '\0') return; /* what a later version is known to take */
    epctx_fail(error, EPCTX_ERR_GRAPH, "breaks rule %s: %s (%s)", what->info.id, what->message,
               what->info.fix);
    epctx_blame(error, g->path, &what->node, what->attribute);
}

epctx_status judge_given(const epctx_model *model, const epctx_profile *profile, epctx_error *ep,
                         epctx_error *error) {
    epctx_check_opts opts;
    epctx_error ort;
    epctx_status status;
    given g = {model->path, ep, &ort};
    memset(&opts, 0, sizeof opts);
    opts.no_files = true;
    opts.profile = profile;
    epctx_error_clear(ep);
    epctx_error_clear(&ort);
    status = epctx_lint(model, &opts, given_found, &g, NULL, error);
    if (status == EPCTX_OK && ort.message[0] != '\0') {
        *error = ort;
        status = ort.status;
    }
    return status;
}
