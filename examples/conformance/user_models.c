/* user_models.c - the user's models, and facts: times and sizes. */
#define _GNU_SOURCE
#include "conformance.h"

/* Seconds until a session is there; negative: it is not. */
static double open_time(const ort_spec *spec) {
    const double start = seconds_now();
    OrtSession *session = NULL;
    double taken;
    if (!ort_session(spec, &session)) return -1;
    taken = seconds_now() - start;
    ort->ReleaseSession(session);
    return taken;
}

static double best_of(const ort_spec *spec, int rounds) {
    double best = open_time(spec);
    int i;
    for (i = 1; i < rounds && best >= 0; i++) {
        const double next = open_time(spec);
        if (next >= 0 && next < best) best = next;
    }
    return best;
}

static double run_time(const ort_spec *spec) {
    OrtSession *session = NULL;
    double best = -1;
    int i;
    if (!ort_session(spec, &session)) return -1;
    for (i = 0; i < 20; i++) {
        const double start = seconds_now();
        ort_values out;
        if (!ort_run(session, 1, &out)) break;
        if (best < 0 || seconds_now() - start < best) best = seconds_now() - start;
        ort_values_free(&out);
    }
    ort->ReleaseSession(session);
    return best;
}

/* A time in words. */
typedef struct span_text {
    char text[40];
} span_text;

static span_text milliseconds(double seconds) {
    span_text out;
    snprintf(out.text, sizeof out.text, seconds < 0 ? "-" : "%.3f ms", seconds * 1e3);
    return out;
}

static size_t size_of(const char *path) {
    size_t size = 0;
    free(read_file(path, &size));
    return size;
}

static void tell_sizes(trial *t, const char *source, const char *context) {
    char binary[PATH_MAX];
    tell_fact(t, "source model", "%zu bytes", size_of(source));
    tell_fact(t, "context model", "%zu bytes", size_of(context));
    if (binary_of(context, "out", binary, sizeof binary))
        tell_fact(t, "context binary", "%zu bytes", size_of(binary));
}

static void times(trial *t) {
    const char *source = in_folder(t, "src/m.onnx"), *context = in_folder(t, "out/m_ctx.onnx");
    ort_spec spec;
    double compiling, load;
    if (!open_ep(t) || !make_model(t, MODEL_CHAIN, source) ||
        !generate(t, source, context, !t->board->ep.files)) {
        give_up(t, "%s", ort_text);
        return;
    }
    spec = spec_of(t, source);
    compiling = best_of(&spec, 5);
    tell_fact(t, "session, compiled now", "%s", milliseconds(compiling).text);
    tell_fact(t, "run", "%s", milliseconds(run_time(&spec)).text);
    spec = spec_of(t, context);
    load = best_of(&spec, 5);
    tell_fact(t, "session, from a context model", "%s", milliseconds(load).text);
    tell_sizes(t, source, context);
    tell_fact(t, "memory of the process", "%zu KiB", memory_now() / 1024);
    if (compiling < 0 || load < 0) {
        cannot_judge(t, "EPC-002", "no session to take the time of: %s", t->answer);
        return;
    }
    /* The documents say "less" and give no number: a small model may take as long. */
    judge(t, "EPC-002", load < 10 * compiling + 0.2,
          "a session from the context model takes %s, one that compiles %s",
          milliseconds(load).text, milliseconds(compiling).text);
    if (load >= compiling) {
        remark(t, "EPC-002",
               "a small model: a session from the context model takes %s, one that "
               "compiles %s",
               milliseconds(load).text, milliseconds(compiling).text);
    }
}

/* A name for the report: what is behind the last slash. */
static const char *short_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void try_context(trial *t, const char *source, bool embed) {
    const char *context = in_folder(t, embed ? "out/e_ctx.onnx" : "out/f_ctx.onnx");
    char name[80];
    ort_spec spec;
    bool written;
    judging(t, "PLG-010", "CompileModel of %.100s, embed mode %d", source, embed);
    written = generate(t, source, context, embed);
    if (!written && ort_code == ORT_NOT_IMPLEMENTED) {
        remark(t, "PLG-010", "%.60s: CompileModel with embed mode %d: %s", short_name(source),
               embed, t->answer);
        return;
    }
    if (!judge(t, "PLG-010", written, "%.60s: CompileModel with embed mode %d: %s",
               short_name(source), embed, t->answer))
        return;
    spec = spec_of(t, context);
    judging(t, "EPC-119", "the context model of %.100s", source);
    judge(t, "EPC-119 EPC-003", runs_as(&spec, source),
          "%.60s: the context model with embed mode %d: expected the CPU EP's outputs, found %s",
          short_name(source), embed, t->answer);
    snprintf(name, sizeof name, "%.30s, context, mode %d", short_name(source), embed);
    tell_fact(t, name, "session %s", milliseconds(best_of(&spec, 3)).text);
}

/* What ONNX Runtime does not take without the EP either says nothing about the EP. */
static void judge_no_session(trial *t, const char *source) {
    char text[sizeof t->board->findings[0].text];
    ort_spec cpu;
    memset(&cpu, 0, sizeof cpu);
    cpu.path = source;
    snprintf(text, sizeof text, "%d: %.580s", ort_code, ort_text);
    if (session_opens(&cpu))
        judge(t, "PLG-008", false, "%.60s: expected a session, found %s", short_name(source), text);
    else
        cannot_judge(t, "PLG-008", "%.60s: ONNX Runtime's CPU EP does not take it either: %s",
                     short_name(source), t->answer);
}

/* Deep models sum in another order. */
static void try_model(trial *t, const char *source) {
    OrtSession *session = NULL;
    ort_spec spec = spec_of(t, source);
    char name[80];
    size_t count;
    judging(t, "PLG-008", "a session of %.200s", source);
    if (!ort_session(&spec, &session)) {
        judge_no_session(t, source);
        return;
    }
    count = ort_assigned(session, t->board->ep.name);
    snprintf(name, sizeof name, "%.40s", short_name(source));
    tell_fact(t, name, "%zu nodes claimed, session %s", count,
              milliseconds(best_of(&spec, 2)).text);
    if (count == 0) { /* what the CPU EP runs says nothing about this one */
        give_up(t, "%.60s: the EP claims no node of it", short_name(source));
        ort->ReleaseSession(session);
        return;
    }
    holds(t, "PLG-008");
    judging(t, "PLG-009", "a run of %.200s", source);
    allow(t, 1e-3);
    judge(t, "PLG-009", equals_cpu(t, session, source, 1),
          "%.60s: expected the CPU EP's outputs, found %s", short_name(source), t->answer);
    ort->ReleaseSession(session);
    if (!t->board->ep.contexts) return;
    if (t->board->ep.files) try_context(t, source, false);
    if (t->board->ep.embeds) try_context(t, source, true);
}

static void user_models(trial *t) {
    const int model = t->board->model;
    if (model == NO_MODEL || !open_ep(t)) {
        give_up(t, model == NO_MODEL ? "no --model was given" : "%s", ort_text);
        return;
    }
    try_model(t, t->wanted.models[model]);
}

const experiment model_experiments[] = {
    {"times", times, NEEDS_DEVICE | NEEDS_RUNS | NEEDS_CLAIM | NEEDS_CONTEXTS, "EPC-002"},
    {"the user's models", user_models, NEEDS_DEVICE | NEEDS_RUNS | EACH_MODEL,
     "EPC-003 EPC-119 PLG-008 PLG-009 PLG-010"},
    {NULL, NULL, 0, NULL},
};
