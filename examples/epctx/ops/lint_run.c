/* lint_run.c - the order of all checks, and what an operation breaks. */
#include "lint_internal.h"

static epctx_status lint_run(linter *l) {
    const epctx_profile *forced = l->opts != NULL ? l->opts->profile : NULL;
    epctx_graph_view graph = epctx_model_graph(l->model);
    epctx_str none = epctx_str_of("");
    size_t i;
    OPS_TRY(lint_list_files(l));
    OPS_TRY(lint_callees(l));
    lint_fields(l, EPCTX_KIND_MODEL, epctx_model_root(l->model), none, none);
    OPS_TRY(lint_model(l));
    l->main_nodes = epctx_cursor_count(epctx_view_graph_nodes(graph));
    OPS_TRY(lint_graph(l, graph.view, NULL));
    for (i = 0; i < l->callees.count; i++) OPS_TRY(lint_function(l, lint_callee_at(l, i)));
    OPS_TRY(lint_inlined(l));
    OPS_TRY(lint_parties(l));
    if (forced != NULL && l->parties.count == 0) {
        lint_say(l, EPCTX_RULE_NOT_OURS, none, NULL,
                 "none of the %u EPContext nodes is for EP '%s'", (uint64_t)l->nodes.count,
                 forced->name);
    }
    OPS_TRY(lint_binaries(l));
    OPS_TRY(lint_shape_constants(l));
    OPS_TRY(lint_compat(l));
    lint_stamps(l);
    lint_files(l);
    return EPCTX_OK;
}

/* `payloads`: whether contexts are looked into. */
static epctx_status lint_with(const epctx_model *model, const epctx_check_opts *opts,
                              const struct binary_asker *asker, bool payloads,
                              epctx_finding_fn found_fn, void *user,
                              uint64_t counts[EPCTX_SEVERITY_COUNT], epctx_error *error) {
    linter l;
    epctx_status status;
    size_t i;
    epctx_error_clear(error);
    memset(&l, 0, sizeof l);
    l.model = model;
    l.opts = opts;
    l.asker = asker;
    l.no_payloads = !payloads;
    l.found_fn = found_fn;
    l.user = user;
    l.error = error;
    l.graph = epctx_str_of("");
    l.demoted = EPCTX_RULE_COUNT;
    facts_release("ort", l.ort);
    epctx_arena_init(&l.arena, opts != NULL ? opts->allocator : NULL);
    epctx_map *const maps[] = {&l.party_of,       &l.epnode_names,  &l.unknown_sources,
                               &l.configurations, &l.functions,     &l.idle_files,
                               &l.body_files,     &l.external_files};
    for (i = 0; i < sizeof maps / sizeof maps[0]; i++) epctx_map_init(maps[i], &l.arena);
    status = lint_run(&l);
    if (counts != NULL) memcpy(counts, l.counts, sizeof l.counts);
    epctx_arena_free(&l.arena);
    return status;
}

epctx_status epctx_lint(const epctx_model *model, const epctx_check_opts *opts,
                        epctx_finding_fn found_fn, void *user,
                        uint64_t counts[EPCTX_SEVERITY_COUNT], epctx_error *error) {
    return lint_with(model, opts, NULL, true, found_fn, user, counts, error);
}

epctx_status epctx_lint_asking(const epctx_model *model, const epctx_check_opts *opts,
                               const struct binary_asker *asker, epctx_finding_fn found_fn,
                               void *user, uint64_t counts[EPCTX_SEVERITY_COUNT],
                               epctx_error *error) {
    return lint_with(model, opts, asker, true, found_fn, user, counts, error);
}

/* -- what an operation breaks -- */

typedef struct lint_verdict {
    uint64_t *counts;
    const uint64_t *allowed; /* NULL: any number */
    bool by_ort;             /* only what ORT itself refuses counts */
    epctx_error *error;
    epctx_status status;
} lint_verdict;

bool epctx_lint_is_for_ep(epctx_rule rule) {
    static const epctx_rule rules[] = {
        EPCTX_RULE_ATTRIBUTE_VALUE, EPCTX_RULE_NO_PRIMARY,     EPCTX_RULE_NO_CONTEXT,
        EPCTX_RULE_NO_PAYLOAD,      EPCTX_RULE_MIXED_MODES,    EPCTX_RULE_NO_SOURCE,
        EPCTX_RULE_SOURCE_SPELLING, EPCTX_RULE_NOT_OURS,       EPCTX_RULE_PATH_EMPTY,
        EPCTX_RULE_DYNAMIC_SHAPE,   EPCTX_RULE_MORE_NODES,     EPCTX_RULE_ONLY_EMBEDDED,
        EPCTX_RULE_NO_KEY,          EPCTX_RULE_DOUBLED_KEY,    EPCTX_RULE_NO_ATTRIBUTE,
        EPCTX_RULE_MANY_PRIMARIES,  EPCTX_RULE_PROFILE,        EPCTX_RULE_NO_BASE,
        EPCTX_RULE_STALE_BINARY,    EPCTX_RULE_REGISTRATION,   EPCTX_RULE_OTHER_EP,
        EPCTX_RULE_FOREIGN_BINARY,  EPCTX_RULE_OTHER_BINARY,   EPCTX_RULE_DAMAGED_BINARY,
        EPCTX_RULE_BINARY_GRAPH,    EPCTX_RULE_BINARY_VALUES,  EPCTX_RULE_BINARY_TARGET,
        EPCTX_RULE_CONTEXT_PLACE,   EPCTX_RULE_DOUBLED_EPNODE, EPCTX_RULE_PATH_UNSAFE,
        EPCTX_RULE_PAYLOAD_AS_PATH};
    size_t i;
    for (i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rule == rules[i]) return true;
    return false;
}

static void lint_verdict_found(void *user, const epctx_finding *finding) {
    lint_verdict *v = (lint_verdict *)user;
    /* What a later version is known to load may be meant for it. */
    if (v->by_ort && (epctx_lint_is_for_ep(finding->rule) || finding->until[0] != '\0')) return;
    v->counts[finding->rule]++;
    if (v->allowed != NULL && v->status == EPCTX_OK &&
        finding->info.severity == EPCTX_SEVERITY_ERROR &&
        v->counts[finding->rule] > v->allowed[finding->rule]) {
        v->status = epctx_fail(v->error, EPCTX_ERR_GRAPH, "the result would break rule %s: %s (%s)",
                               finding->info.id, finding->message, finding->info.fix);
    }
}

static epctx_status lint_judge(const epctx_model *model, const epctx_profile *profile,
                               lint_verdict *v, epctx_error *error) {
    epctx_check_opts opts;
    epctx_error local;
    memset(&opts, 0, sizeof opts);
    opts.no_files = true;
    opts.profile = profile;
    opts.allocator = model->arena.allocator.alloc_fn != NULL ? &model->arena.allocator : NULL;
    if (epctx_str_of(model->path).size == 0) { /* the path of a new model does not matter */
        opts.context_file_path = "model.onnx";
        opts.external_folder = ".";
    }
    v->status = EPCTX_OK;
    v->error = &local;
    epctx_error_clear(&local);
    OPS_TRY(lint_with(model, &opts, NULL, false, lint_verdict_found, v, NULL, error));
    if (v->status != EPCTX_OK && error != NULL) *error = local;
    return v->status;
}

epctx_status epctx_lint_count(const epctx_model *model, const epctx_profile *profile,
                              uint64_t counts[EPCTX_RULE_COUNT], epctx_error *error) {
    lint_verdict v;
    v.counts = counts;
    v.allowed = NULL;
    v.by_ort = false;
    return lint_judge(model, profile, &v, error);
}

static epctx_status lint_compare(const epctx_model *model, const epctx_profile *profile,
                                 bool by_ort, const uint64_t *allowed, epctx_error *error) {
    static const uint64_t none[EPCTX_RULE_COUNT];
    uint64_t counts[EPCTX_RULE_COUNT];
    lint_verdict v;
    memset(counts, 0, sizeof counts);
    v.counts = counts;
    v.allowed = allowed != NULL ? allowed : none;
    v.by_ort = by_ort;
    return lint_judge(model, profile, &v, error);
}

epctx_status epctx_lint_verify(const epctx_model *model, const epctx_profile *profile,
                               const uint64_t *allowed, epctx_error *error) {
    return lint_compare(model, profile, false, allowed, error);
}

epctx_status epctx_lint_verify_ort(const epctx_model *model, const uint64_t *allowed,
                                   epctx_error *error) {
    return lint_compare(model, NULL, true, allowed, error);
}
