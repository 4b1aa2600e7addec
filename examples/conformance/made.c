/* made.c - what experiments with context models begin with, and how they end: a source, the context
 * model made of it, and the judgement of a session that loads it. */
#define _GNU_SOURCE
#include "conformance.h"

bool prepare_context(trial *t, model_kind kind, bool embed) {
    if (!open_ep(t) || !make_model(t, kind, in_folder(t, "src/m.onnx")))
        return give_up(t, "%s", ort_text);
    judging(t, "PLG-010", "CompileModel of the model '%s', embed mode %d", model_names[kind],
            embed);
    return judge(t, "PLG-010",
                 generate(t, in_folder(t, "src/m.onnx"), in_folder(t, "out/m_ctx.onnx"), embed),
                 "CompileModel of the model '%s', embed mode %d: expected success, found %s",
                 model_names[kind], embed, t->answer) ||
           give_up(t, "the context model was not generated: %s", ort_text);
}

const char *keep_reference(trial *t) {
    make_folder("ref");
    copy_file("src/m.onnx", "ref/m.onnx");
    return in_folder(t, "ref/m.onnx");
}

ort_spec strict_spec(trial *t, const char *path) {
    static const char *const no_compile[] = {"session.disable_model_compile", "1", NULL};
    ort_spec spec = spec_of(t, path);
    spec.config = no_compile;
    return spec;
}

void judge_load(trial *t, const char *ids, const ort_spec *spec, const char *what) {
    char first[16];
    snprintf(first, sizeof first, "%.7s", ids);
    judging(t, first, "%s", what);
    judge(t, ids, runs_as(spec, in_folder(t, "ref/m.onnx")),
          "%s: expected the outputs of the source model, found %s", what, t->answer);
}
