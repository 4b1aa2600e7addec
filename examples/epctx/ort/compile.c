/* Compiles models with OrtCompileApi; several share their contexts. */
#include "child.h"

/* For the callback of the driver, which has no state. */
static const child *current;

static void more(OrtModelCompilationOptions *options) {
    const anyep_job *job = current->job;
    if (job->optimization >= 0)
        ort->ReleaseStatus(ort_compile->ModelCompilationOptions_SetGraphOptimizationLevel(
            options, (GraphOptimizationLevel)job->optimization));
    if (job->weightless && ort_version >= 29)
        ort->ReleaseStatus(
            ort_compile->ModelCompilationOptions_SetWeightlessEnabled(options, true));
}

/* The user's session options, and with several models those of sharing. */
enum { ROOM = 2 * ORT_MAX_OPTIONS + 8 };
static bool sharing_config(child *c, bool last, const char **config) {
    const char *const *from = c->set->session;
    size_t count = 0;
    for (; from != NULL && from[count] != NULL; count++) {
        if (count + 8 > ROOM) return child_fail(c, "too many --option");
        config[count] = from[count];
    }
    if (c->job->count > 1) {
        config[count++] = "ep.share_ep_contexts";
        config[count++] = "1";
    }
    if (c->job->count > 1 && last) {
        config[count++] = "ep.stop_share_ep_contexts";
        config[count++] = "1";
    }
    if (c->job->weightless && ort_version < 29) {
        config[count++] = "ep.enable_weightless_ep_context_nodes";
        config[count++] = "1";
    }
    config[count] = NULL;
    return true;
}

bool child_compile(child *c) {
    const char *config[ROOM + 1];
    size_t i;
    current = c;
    for (i = 0; i < c->job->count; i++) {
        const anyep_model *model = &c->job->models[i];
        const double start = cli_now();
        ort_spec spec = child_spec(c);
        ort_output out;
        memset(&out, 0, sizeof out);
        child_doing(c, "compiling %s", model->source);
        if (!sharing_config(c, i + 1 == c->job->count, config)) return false;
        spec.config = config;
        spec.path = model->source;
        spec.level = NULL; /* the compile API has its own */
        out.path = model->output;
        out.embed = c->job->embed;
        out.initializers = c->job->initializers;
        out.flags = OrtCompileApiFlags_ERROR_IF_NO_NODES_COMPILED;
        out.more = more;
        if (!ort_compile_model(&spec, &out)) return child_refused(c);
        c->board->compile_ms[i] = cli_now() - start;
        c->board->compiled = i + 1;
    }
    return true;
}
