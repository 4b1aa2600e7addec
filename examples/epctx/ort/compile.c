/* Compiles models with OrtCompileApi, or by session options; several share their contexts. */
#include "child.h"

#include <stdio.h>

static void more(OrtModelCompilationOptions *options, void *user) {
    const anyep_job *job = ((const child *)user)->job;
    if (job->optimization >= 0)
        ort->ReleaseStatus(ort_compile->ModelCompilationOptions_SetGraphOptimizationLevel(
            options, (GraphOptimizationLevel)job->optimization));
    if (job->weightless && ort_version >= 29)
        ort->ReleaseStatus(
            ort_compile->ModelCompilationOptions_SetWeightlessEnabled(options, true));
}

enum { OWN = 16, ROOM = 2 * ORT_MAX_OPTIONS + OWN }; /* OWN: words that put_config adds at most */

static void put(const char **config, const char *key, const char *value) {
    while (*config != NULL) config += 2;
    config[0] = key;
    config[1] = value;
}

/* The user's session options, those of sharing, and what the compile API would set. `config` is
 * zeroed. */
static bool put_config(child *c, const anyep_model *model, const char **config) {
    const char *const *from = c->set->session;
    const bool last = model + 1 == c->job->models + c->job->count;
    size_t count = 0;
    for (; from != NULL && from[count] != NULL; count++) {
        if (count + OWN > ROOM) return child_fail(c, "too many --option");
        config[count] = from[count];
    }
    if (c->job->count > 1) put(config, "ep.share_ep_contexts", "1");
    if (c->job->count > 1 && last) put(config, "ep.stop_share_ep_contexts", "1");
    if (c->job->weightless && ort_version < 29)
        put(config, "ep.enable_weightless_ep_context_nodes", "1");
    if (!c->job->by_session) return true;
    put(config, "ep.context_enable", "1");
    put(config, "ep.context_file_path", model->output);
    put(config, "ep.context_embed_mode", c->job->embed ? "1" : "0");
    if (c->job->weightless && ort_version >= 29) put(config, "ep.enable_weightless", "1");
    if (c->job->initializers != NULL)
        put(config, "ep.context_model_external_initializers_file_name", c->job->initializers);
    return true;
}

/* The old way, which some EPs support better. */
static bool compile_by_session(child *c, const ort_spec *spec, const anyep_model *model) {
    OrtSession *made = NULL;
    FILE *file;
    if (!ort_session(spec, &made)) return child_refused(c);
    ort->ReleaseSession(made);
    file = fopen(model->output, "rb");
    if (file == NULL)
        return child_fail(c, "the EP compiled no node, or writes no context: there is no model");
    fclose(file);
    return true;
}

bool child_compile(child *c) {
    size_t i;
    for (i = 0; i < c->job->count; i++) {
        const anyep_model *model = &c->job->models[i];
        const double start = cli_now();
        const char *config[ROOM + 2] = {NULL};
        ort_spec spec = child_spec(c);
        ort_output out;
        memset(&out, 0, sizeof out);
        child_doing(c, "compiling %s", model->source);
        if (!put_config(c, model, config)) return false;
        spec.config = config;
        if (!child_model(c, model->source, &spec)) return false;
        if (c->job->by_session) {
            if (!compile_by_session(c, &spec, model)) return false;
            c->board->compile_ms[i] = cli_now() - start;
            c->board->compiled = i + 1;
            continue;
        }
        spec.level = NULL; /* the compile API has its own */
        out.path = model->output;
        out.embed = c->job->embed;
        out.initializers = c->job->initializers;
        out.threshold = CLI_SMALL_INITIALIZER;
        out.flags = OrtCompileApiFlags_ERROR_IF_NO_NODES_COMPILED;
        out.more = more;
        out.user = c;
        if (!ort_compile_model(&spec, &out)) return child_refused(c);
        c->board->compile_ms[i] = cli_now() - start;
        c->board->compiled = i + 1;
    }
    return true;
}
