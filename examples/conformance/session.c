/* session.c - the probe, and sessions from ordinary models. */
#define _GNU_SOURCE
#include "conformance.h"

#include <math.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

/* -------------------------------------------------------------------- probe */

/* Sessions of the probe. */
typedef struct attempts {
    size_t opened;
    double seconds; /* that they took */
    char first_refusal[1100];
    ort_spec refused; /* what it was about, and its model */
    char model[PATH_MAX];
} attempts;

/* The node assignment names the EP that made the session, the device the factory. */
static void check_assignment(trial *t, const OrtSession *session) {
    const OrtEpAssignedSubgraph *const *graphs = NULL;
    const char *name = NULL;
    size_t count = 0, i;
    if (!ort_ok(ort->Session_GetEpGraphAssignmentInfo(session, &graphs, &count))) return;
    for (i = 0; i < count; i++) {
        if (!ort_ok(ort->EpAssignedSubgraph_GetEpName(graphs[i], &name))) continue;
        if (strcmp(name, "CPUExecutionProvider") == 0) continue;
        judge(t, "PLG-027", strcmp(name, t->board->ep.name) == 0,
              "the EP of the session is called '%s', its device's '%s'", name, t->board->ep.name);
    }
}

/* The probe writes its models over each other: the first that is refused stays. */
static void keep_refused(trial *t, attempts *a, const ort_spec *spec) {
    const char *copy = in_folder(t, "src/refused.onnx");
    const bool ours = strncmp(spec->path, t->folder, strlen(t->folder)) == 0;
    snprintf(a->model, sizeof a->model, "%s",
             ours && copy_file(spec->path, copy) ? copy : spec->path);
    a->refused = *spec;
    a->refused.path = a->model;
}

/* There is no session of a model that the CPU EP takes. */
static void note_refusal(trial *t, attempts *a, const ort_spec *spec) {
    ort_spec cpu = *spec;
    char text[sizeof a->first_refusal];
    snprintf(text, sizeof text, "%d: %.980s", ort_code, ort_text);
    cpu.ep = NULL;
    if (!*a->first_refusal && session_opens(&cpu)) {
        snprintf(a->first_refusal, sizeof a->first_refusal, "%s: expected success, found %.700s",
                 t->board->doing, text);
        keep_refused(t, a, spec);
    }
}

static bool is_of_type(const OrtEpAssignedNode *node, const char *op) {
    const char *type = "";
    return !op ||
           (ort_ok(ort->EpAssignedNode_GetOperatorType(node, &type)) && strcmp(type, op) == 0);
}

/* Nodes `op` (NULL: any) of the session that run on this EP. */
static size_t assigned_of(const trial *t, const OrtSession *session, const char *op) {
    const OrtEpAssignedSubgraph *const *graphs = NULL;
    const OrtEpAssignedNode *const *nodes = NULL;
    const char *name = NULL;
    size_t graph_count = 0, count = 0, total = 0, i, k;
    if (!ort_ok(ort->Session_GetEpGraphAssignmentInfo(session, &graphs, &graph_count))) return 0;
    for (i = 0; i < graph_count; i++) {
        if (!ort_ok(ort->EpAssignedSubgraph_GetEpName(graphs[i], &name)) ||
            strcmp(name, t->board->ep.name) != 0 ||
            !ort_ok(ort->EpAssignedSubgraph_GetNodes(graphs[i], &nodes, &count)))
            continue;
        for (k = 0; k < count; k++) total += is_of_type(nodes[k], op);
    }
    return total;
}

/* How many nodes `op` (NULL: any) of a model the EP takes; 0 also when there is no session. */
static size_t claimed(trial *t, attempts *a, const char *path, const char *op) {
    const ort_spec spec = spec_of(t, path);
    OrtSession *session = NULL;
    const double start = seconds_now();
    size_t count = 0;
    if (ort_session(&spec, &session)) {
        a->seconds += seconds_now() - start;
        a->opened++;
        t->board->ep.session = a->seconds / (double)a->opened;
        count = assigned_of(t, session, op);
        if (count == 0) check_assignment(t, session);
        ort->ReleaseSession(session);
    } else {
        note_refusal(t, a, &spec);
    }
    return count;
}

/* CreateEp refuses, or what was claimed is not compiled. */
static void judge_refusal(trial *t, const attempts *a) {
    const char *ids = "PLG-008";
    if (!*a->first_refusal) return;
    if (t->board->ep.is_virtual && !a->opened) {
        cannot_judge(t, "PLG-032", "the virtual device makes no sessions: %s", a->first_refusal);
        return;
    }
    if (strstr(a->first_refusal, "creating execution provider")) ids = "PLG-032";
    if (strstr(a->first_refusal, "ort_version_supported")) ids = "PLG-006 PLG-032";
    if (a->refused.seen) session_opens(&a->refused); /* what is kept ends with it */
    judge(t, ids, false, "%s%s",
          a->opened ? ""
                    : "no session can be created, whatever the "
                      "model: ",
          a->first_refusal);
}

static void judge_probe(trial *t, const attempts *a) {
    ep_facts *ep = &t->board->ep;
    const char *log = strstr(ort_log, "GetCapability");
    judge_refusal(t, a);
    if (claims_any(ep)) {
        holds(t, "PLG-008 PLG-032 PLG-051 PLG-053 PLG-056 PLG-074");
        return;
    }
    snprintf(ep->no_claim, sizeof ep->no_claim, a->opened ? "%s" : "%s: %.500s",
             a->opened ? "the EP claims none of the operators that were tried, nor a node of a "
                         "--model: name one of its models"
                       : "no session can be created",
             a->first_refusal);
    judge(t, "PLG-008", !log, "nothing is claimed, and the log says: %.300s", log ? log : "");
}

/* The first of the operators that the EP takes in a chain of two, or as a lone node. */
static void find_op(trial *t, attempts *a, form how, const char *const *ops, bool binary,
                    char *out) {
    const char *path = in_folder(t, "src/probe.onnx");
    for (; *ops && !*out; ops++) {
        judging(t, "PLG-008", "a session with nodes %s", *ops);
        if (!(binary ? make_probe_binary : make_probe)(t, how, *ops, path)) continue;
        if (claimed(t, a, path, *ops) >= (t->board->ep.lone ? 1 : 2)) snprintf(out, OP, "%s", *ops);
    }
}

/* The first of the user's models that the EP takes a node of. */
static void find_given(trial *t, attempts *a) {
    ep_facts *ep = &t->board->ep;
    size_t i;
    for (i = 0; i < t->wanted.model_count; i++) {
        judging(t, "PLG-008", "a session of %.200s", t->wanted.words[i]);
        if (claimed(t, a, t->wanted.models[i], NULL) == 0) continue;
        ep->form = FORM_GIVEN;
        ep->given = (int)i;
        return;
    }
}

/* Chains are asked for before lone nodes, the user's models last: they cannot be changed as freely.
 */
static void find_claims(trial *t, attempts *a) {
    ep_facts *ep = &t->board->ep;
    int lone, how;
    for (lone = 0; lone < 2; lone++) {
        for (how = FORM_FLOAT; how < FORM_GIVEN; how++) {
            ep->lone = lone == 1;
            ep->form = (form)how;
            find_op(t, a, ep->form, unary_ops, false, ep->unary);
            find_op(t, a, ep->form, weighted_ops, false, ep->weighted);
            find_op(t, a, ep->form, binary_ops, true, ep->binary);
            if (claims_any(ep)) return;
        }
    }
    ep->lone = false;
    ep->form = FORM_FLOAT;
    find_given(t, a);
}

/* What is to be seen again in each session of the chain. */
static void measure_chain(trial *t, attempts *a) {
    const char *path = in_folder(t, "src/probe.onnx");
    const ort_spec spec = spec_of(t, path);
    OrtSession *session = NULL;
    if (!make_model(t, MODEL_CHAIN, path)) return;
    judging(t, "PLG-008", "a session of a chain");
    if (!ort_session(&spec, &session)) {
        note_refusal(t, a, &spec);
        return;
    }
    t->board->ep.chain = assigned_of(t, session, NULL);
    t->board->ep.whole = t->board->ep.chain == ort_assigned(session, NULL);
    ort->ReleaseSession(session);
}

/* Operators that are taken alone but not together: then those of one input do. */
static void prefer_chain(trial *t, attempts *a) {
    const char *path = in_folder(t, "src/probe.onnx");
    char weighted[OP];
    memcpy(weighted, t->board->ep.weighted, OP);
    if (t->board->ep.lone || !*t->board->ep.unary || !*weighted ||
        !make_model(t, MODEL_CHAIN, path) || claimed(t, a, path, NULL) >= 3)
        return;
    t->board->ep.weighted[0] = '\0';
    if (make_model(t, MODEL_CHAIN, path) && claimed(t, a, path, NULL) < 3)
        memcpy(t->board->ep.weighted, weighted, OP);
}

/* One operator that is left to the CPU: of its nodes none is claimed. */
static void find_foreign(trial *t, attempts *a, char *out) {
    const char *path = in_folder(t, "src/probe.onnx");
    const char *const *op;
    for (op = foreign_ops; *op && !*out; op++) {
        judging(t, "PLG-008", "a session with two nodes %s", *op);
        if (make_probe(t, FORM_FLOAT, *op, path) && claimed(t, a, path, NULL) == 0)
            snprintf(out, OP, "%s", *op);
    }
}

/* An EP that only embeds refuses embed mode 0: who asks for a file gets it, or is told. */
static void check_mode(trial *t, bool wanted_inside, bool inside) {
    char names[16][256];
    if (wanted_inside || !inside) return;
    judge(t, "EPC-071 EPC-042", false,
          "embed mode 0 was asked for: expected a file, or NOT_IMPLEMENTED; found %s",
          list_files("out", names, 16) == 1 ? "the context in the node"
                                            : "a file, and embed_mode 1 in the node");
}

static void find_contexts(trial *t) {
    ep_facts *ep = &t->board->ep;
    const char *source = in_folder(t, "src/probe.onnx");
    const char *out = in_folder(t, "out/probe_ctx.onnx");
    ort_contexts c;
    bool embed;
    int mode;
    if (!make_model(t, MODEL_CHAIN, source)) return;
    snprintf(ep->no_contexts, sizeof ep->no_contexts,
             "CompileModel did not return, or ended the process");
    for (mode = 0; mode < 2; mode++) {
        embed = mode == 1;
        judging(t, "PLG-010", "CompileModel with embed mode %d", mode);
        if (!generate(t, source, out, embed)) {
            snprintf(ep->no_contexts, sizeof ep->no_contexts, "CompileModel: %d: %.500s", ort_code,
                     ort_text);
            /* Only "not implemented" is an EP without contexts. */
            if (ort_code != ORT_NOT_IMPLEMENTED) {
                judge(t, "PLG-010", false,
                      "CompileModel with embed mode %d of a model that the EP takes: expected "
                      "EPContext nodes, or NOT_IMPLEMENTED; found %s",
                      mode, t->answer);
            }
            continue;
        }
        if (ort_read_contexts(out, &c) && c.count > 0) {
            ep->contexts = true;
            ep->files |= c.list[0].embed_mode == 0;
            check_mode(t, embed, c.list[0].embed_mode == 1);
            ep->embeds |= c.list[0].embed_mode == 1;
        }
        epctx_model_close(&c.model);
        if (!ep->contexts) {
            snprintf(ep->no_contexts, sizeof ep->no_contexts,
                     "compiling the model writes no EPContext node");
        }
        remove(out);
    }
}

/* Several, if the CPU runs what is between them. */
static void count_parts(trial *t) {
    const char *source = in_folder(t, "src/probe.onnx"), *out = in_folder(t, "out/parts_ctx.onnx");
    ort_contexts c;
    if (!t->board->ep.contexts || !make_model(t, MODEL_ISLAND, source)) return;
    judging(t, "PLG-010", "CompileModel of several partitions");
    if (!generate(t, source, out, !t->board->ep.files)) return; /* "several partitions" tells it */
    if (ort_read_contexts(out, &c)) t->board->ep.parts = c.count;
    epctx_model_close(&c.model);
}

/* A virtual device that makes no sessions may be there to compile. */
static void only_compile(trial *t) {
    const char *source = in_folder(t, "src/probe.onnx");
    judging(t, "PLG-010", "CompileModel on the virtual device");
    if (make_probe(t, FORM_FLOAT, "Relu", source) &&
        !generate(t, source, in_folder(t, "out/probe_ctx.onnx"), false))
        cannot_judge(t, "PLG-010", "CompileModel on the virtual device: %s", t->answer);
}

/* Its device shows itself at once, or where virtual devices are allowed. */
static bool open_any(trial *t) {
    ep_facts *ep = &t->board->ep;
    if (open_ep(t)) return true;
    snprintf(ep->no_device, sizeof ep->no_device, "%.590s", ort_text);
    if (!ort_env || !unregister_ep(registration_of(t, "conformance"))) return false;
    ep->is_virtual = true;
    judging(t, "PLG-041", "registration with virtual devices");
    if (register_ep(t, registration_of(t, "conformance")) && find_device(t)) return true;
    ep->is_virtual = false;
    return false;
}

/* A device that only compiles says so in the first run. */
static void find_runs(trial *t) {
    const char *source = in_folder(t, "src/probe.onnx");
    const ort_spec spec = spec_of(t, source);
    OrtSession *session = NULL;
    ort_values out;
    if (!t->board->ep.is_virtual || !make_model(t, MODEL_CHAIN, source)) return;
    judging(t, "PLG-009", "a run on a virtual device");
    if (!ort_session(&spec, &session)) return;
    if (ort_run(session, 1, &out)) {
        ort_values_free(&out);
    } else if (ort_code == ORT_NOT_IMPLEMENTED) {
        t->board->ep.runs = false;
        snprintf(t->board->ep.no_runs, sizeof t->board->ep.no_runs,
                 "the virtual device only compiles: %.400s", ort_text);
    }
    ort->ReleaseSession(session);
}

static void tell_claims(trial *t) {
    static const char *const forms[] = {"", ", quantized", ", int8", ""};
    const ep_facts *ep = &t->board->ep;
    if (ep->form == FORM_GIVEN)
        tell_fact(t, "models made of", "%.110s", t->wanted.words[ep->given]);
    else
        tell_fact(t, "operators claimed", "%s %s %s%s%s", ep->unary, ep->weighted, ep->binary,
                  forms[ep->form], ep->lone && claims_any(ep) ? ", one in a row" : "");
}

static void probe(trial *t) {
    ep_facts *ep = &t->board->ep;
    const OrtEpDevice *device;
    const char *version;
    attempts a;
    memset(&a, 0, sizeof a);
    if (!open_any(t)) return;
    device = find_device(t);
    version = ort->GetKeyValue(ort->EpDevice_EpMetadata(device), "version");
    ep->device = true;
    snprintf(ep->name, sizeof ep->name, "%s", ort->EpDevice_EpName(device));
    snprintf(ep->vendor, sizeof ep->vendor, "%s", ort->EpDevice_EpVendor(device));
    snprintf(ep->version, sizeof ep->version, "%s", version ? version : "");
    ep->runs = true; /* a virtual device may not: find_runs */
    find_claims(t, &a);
    if (ep->is_virtual) tell_fact(t, "device", "virtual");
    tell_claims(t);
    if (!claims_any(ep)) {
        judge_probe(t, &a);
        if (ep->is_virtual && a.opened == 0) only_compile(t);
        return;
    }
    prefer_chain(t, &a);
    measure_chain(t, &a);
    find_foreign(t, &a, ep->foreign);
    judge_probe(t, &a);
    find_runs(t);
    find_contexts(t);
    count_parts(t);
}

/* ---------------------------------------------------------------------- JIT */

/* `list`: names, blanks between. */
static bool folder_holds_only(const char *folder, const char *list) {
    char names[64][256];
    const size_t count = list_files(folder, names, 64);
    size_t i;
    for (i = 0; i < count; i++) {
        if (!strstr(list, names[i])) {
            snprintf(ort_text, sizeof ort_text, "%s/%.200s", folder, names[i]);
            return false;
        }
    }
    return true;
}

static void check_claims(trial *t, const OrtSession *session) {
    const ep_facts *ep = &t->board->ep;
    const size_t least = ep->form == FORM_GIVEN ? ep->chain : ep->lone ? 1 : 3;
    check_assignment(t, session);
    judge(t, "PLG-008", ort_assigned(session, ep->name) >= least,
          "%zu of the chain's nodes are claimed, expected %zu: such nodes were in the probe",
          ort_assigned(session, ep->name), least);
}

static void jit(trial *t) {
    const char *model = in_folder(t, "src/m.onnx");
    static const char *const off[] = {
        "ep.context_enable",  "0", "ep.context_embed_mode", "1", "ep.context_file_path",
        "out/other_ctx.onnx", NULL};
    OrtSession *session = NULL;
    ort_spec spec;
    if (!open_ep(t) || !make_model(t, MODEL_CHAIN, model)) {
        give_up(t, "%s", ort_text);
        return;
    }
    spec = spec_of(t, model);
    spec.allow_cpu = !t->board->ep.whole;
    judging(t, "PLG-009", "a session%s", spec.allow_cpu ? "" : " without CPU fallback");
    if (!judge(t, "PLG-006 PLG-009 PLG-032 PLG-051 PLG-053 PLG-056 PLG-073 PLG-074 EPC-098",
               ort_session(&spec, &session),
               "a session%s of a model whose operators the EP claims: expected success, found %s",
               spec.allow_cpu ? "" : " without CPU fallback", t->answer))
        return;
    check_claims(t, session);
    judging(t, "PLG-009", "a run");
    judge(t, "PLG-009 PLG-072", equals_cpu(t, session, model, 3),
          "outputs differ from the CPU EP's: %s", ort_text);
    judging(t, "PLG-033", "the end of the session");
    ort->ReleaseSession(session);
    holds(t, "PLG-033 PLG-011");
    judge(t, "EPC-063 EPC-037",
          folder_holds_only("src", "m.onnx") && folder_holds_only("out", "") &&
              folder_holds_only(".", "src out"),
          "a session without ep.context_enable wrote %s", ort_text);
    spec.config = off;
    judging(t, "EPC-063", "a session with ep.context_enable=0");
    judge(t, "EPC-063 EPC-037",
          session_opens(&spec) && folder_holds_only("src", "m.onnx") &&
              folder_holds_only("out", ""),
          "ep.context_enable=0 with other ep.context_* options: expected a session and no file, "
          "found %s",
          ort_text);
}

/* Every model gives a session and the CPU's numbers: what is not claimed runs there. */
static void odd_models(trial *t) {
    OrtSession *session;
    int kind;
    if (!open_ep(t)) {
        give_up(t, "%s", ort_text);
        return;
    }
    for (kind = 0; kind < MODEL_KINDS; kind++) {
        char name[80];
        const char *model;
        ort_spec spec;
        snprintf(name, sizeof name, "src/%d.onnx", kind);
        model = in_folder(t, name);
        if (!make_model(t, (model_kind)kind, model)) continue;
        judging(t, "PLG-008", "model '%s' in a session", model_names[kind]);
        ort_log_clear();
        spec = spec_of(t, model);
        if (!judge(t, "PLG-008", ort_session(&spec, &session),
                   "model '%s': expected a session, found %s", model_names[kind], t->answer))
            continue;
        judging(t, "PLG-009", "model '%s', a run", model_names[kind]);
        if (judge(t, "PLG-009",
                  equals_cpu(t, session, model, 1) && equals_cpu(t, session, model, 2),
                  "model '%s': expected the CPU EP's outputs, found %s", model_names[kind],
                  t->answer))
            holds(t, "PLG-005");
        ort->ReleaseSession(session);
        judge(t, "PLG-008", !strstr(ort_log, "GetCapability"), "model '%s': %.400s",
              model_names[kind], strstr(ort_log, "GetCapability") ? ort_log : "");
    }
    if (make_model(t, MODEL_NONE, in_folder(t, "src/none.onnx"))) holds(t, "PLG-005");
}

static void levels(trial *t) {
    static const GraphOptimizationLevel tried[] = {ORT_DISABLE_ALL, ORT_ENABLE_BASIC,
                                                   ORT_ENABLE_EXTENDED, ORT_ENABLE_ALL};
    static const model_kind kinds[] = {MODEL_CHAIN, MODEL_ISLAND, MODEL_SUB, MODEL_FAN};
    const char *model = in_folder(t, "src/m.onnx");
    /* Only none and all of a slow EP. */
    const size_t step = affordable(t->board->ep.session, 2, 16) < 16 ? 3 : 1;
    size_t i, k;
    if (!open_ep(t)) {
        give_up(t, "%s", ort_text);
        return;
    }
    for (k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        if (!make_model(t, kinds[k], model)) continue;
        for (i = 0; i < sizeof tried / sizeof tried[0]; i += step) {
            ort_spec spec = spec_of(t, model);
            spec.plain = false;
            spec.level = &tried[i];
            judging(t, "PLG-008", "model '%s' at graph optimization level %d",
                    model_names[kinds[k]], (int)tried[i]);
            judge(t, "PLG-008", runs_as(&spec, model),
                  "model '%s' at graph optimization level %d: expected the CPU EP's outputs, found "
                  "%s",
                  model_names[kinds[k]], (int)tried[i], t->answer);
        }
    }
}

/* ----------------------------------------------------------------- sessions */

static void two_sessions(trial *t, const char *model, bool first_ends_first) {
    OrtSession *sessions[2] = {NULL, NULL};
    const ort_spec spec = spec_of(t, model);
    int i;
    judging(t, "PLG-032", "two sessions at once");
    for (i = 0; i < 2; i++)
        if (!judge(t, "PLG-032", ort_session(&spec, &sessions[i]),
                   "session %d of two at once: expected success, found %s", i + 1, t->answer))
            return;
    judge(t, "PLG-032",
          equals_cpu(t, sessions[0], model, 1) && equals_cpu(t, sessions[1], model, 2),
          "two sessions at once: %s", ort_text);
    i = first_ends_first ? 0 : 1;
    ort->ReleaseSession(sessions[i]);
    judge(t, "PLG-033", equals_cpu(t, sessions[1 - i], model, 3),
          "session %d after the other one's end: %s", 2 - i, ort_text);
    ort->ReleaseSession(sessions[1 - i]);
}

static void many_sessions(trial *t) {
    const char *model = in_folder(t, "src/m.onnx");
    const size_t count = affordable(t->board->ep.session, 12, 60);
    ort_spec spec, cpu;
    if (!open_ep(t) || !make_model(t, MODEL_CHAIN, model)) {
        give_up(t, "%s", ort_text);
        return;
    }
    t->board->beside = several_sessions;
    two_sessions(t, model, true);
    two_sessions(t, model, false);
    t->board->beside = NULL;
    spec = spec_of(t, model);
    cpu = spec;
    cpu.ep = NULL;
    judge_left(t, "sessions", &spec, true, &cpu, count);
}

/* Bytes that runs of a session leave, after a sixth of them to warm up; false: one failed. */
static bool runs_leave(OrtSession *session, size_t count, size_t *bytes) {
    size_t before = 0, i;
    for (i = 0; i < count; i++) {
        ort_values out;
        if (!ort_run(session, (uint32_t)i, &out)) return false;
        ort_values_free(&out);
        if (i == count / 6) before = memory_now();
    }
    *bytes = memory_now() > before ? memory_now() - before : 0;
    return true;
}

/* What one of ten runs takes. */
static double run_seconds(OrtSession *session) {
    const double start = seconds_now();
    ort_values out;
    int i;
    for (i = 0; i < 10 && ort_run(session, 1, &out); i++) ort_values_free(&out);
    return (seconds_now() - start) / 10;
}

static void many_runs(trial *t) {
    const char *model = in_folder(t, "src/m.onnx");
    OrtSession *session = NULL, *cpu = NULL;
    size_t ours = 0, theirs = 0, count;
    ort_spec spec;
    if (!open_ep(t) || !make_model(t, MODEL_CHAIN, model)) {
        give_up(t, "%s", ort_text);
        return;
    }
    spec = spec_of(t, model);
    judging(t, "PLG-009", "many runs");
    if (!judge(t, "PLG-009", ort_session(&spec, &session), "a session: %s", t->answer)) return;
    count = affordable(run_seconds(session), 300, 3000);
    spec.ep = NULL;
    if (!ort_session(&spec, &cpu) || !runs_leave(cpu, count, &theirs)) {
        give_up(t, "%s", ort_text);
        return;
    }
    if (!judge(t, "PLG-009", runs_leave(session, count, &ours), "%zu runs of a session: %s", count,
               t->answer))
        return;
    judge(t, "PLG-011", ours < theirs + count * 128 + 128 * 1024,
          "%zu runs leave %zu bytes, on the CPU EP %zu: is something kept in each run?",
          count - count / 6, ours, theirs);
    ort->ReleaseSession(session);
    ort->ReleaseSession(cpu);
}

/* ------------------------------------------------------------------ threads */

enum { THREADS = 8 };

typedef struct worker {
    trial *t;
    pthread_mutex_t *gate; /* opens when all workers are there */
    pthread_t thread;
    OrtSession *session; /* NULL: one of its own */
    const char *model;
    uint32_t seed;
    size_t runs;
    ort_values want[8];
    bool ok;
    char text[400];
} worker;

static void *work(void *param) {
    worker *w = (worker *)param;
    OrtSession *session = w->session;
    size_t i;
    pthread_mutex_lock(w->gate);
    pthread_mutex_unlock(w->gate);
    w->ok = true;
    if (!session) {
        ort_spec spec = spec_of(w->t, w->model);
        spec.seen = NULL; /* in one thread only */
        spec.done = NULL;
        w->ok = ort_session(&spec, &session);
    }
    for (i = 0; i < w->runs && w->ok; i++) {
        ort_values got;
        w->ok = ort_run(session, w->seed + (uint32_t)(i % 8), &got) &&
                (ort_same(&got, &w->want[i % 8]) || (ort_values_free(&got), false));
        if (w->ok) ort_values_free(&got);
    }
    snprintf(w->text, sizeof w->text, "%.390s", ort_text);
    if (session && !w->session) ort->ReleaseSession(session);
    return NULL;
}

/* What each thread must see, by the CPU EP. */
static bool prepare(worker *w, size_t count, const char *model) {
    OrtSession *cpu = NULL;
    ort_spec spec;
    size_t i, k;
    bool ok;
    memset(&spec, 0, sizeof spec);
    spec.path = model;
    spec.plain = true;
    ok = ort_session(&spec, &cpu);
    for (i = 0; ok && i < count; i++) {
        w[i].model = model;
        w[i].seed = (uint32_t)(100 * i);
        for (k = 0; ok && k < 8; k++) ok = ort_run(cpu, w[i].seed + (uint32_t)k, &w[i].want[k]);
    }
    if (cpu) ort->ReleaseSession(cpu);
    return ok;
}

/* The EP is open, src/m.onnx is there, and the workers know what it gives. */
static bool open_workers(trial *t, worker w[THREADS]) {
    const char *model = in_folder(t, "src/m.onnx");
    OrtSession *session = NULL;
    ort_spec spec;
    size_t i, runs;
    memset(w, 0, THREADS * sizeof *w);
    if (!open_ep(t) || (!make_model(t, MODEL_SUB, model) && !make_model(t, MODEL_CHAIN, model)) ||
        !prepare(w, THREADS, model))
        return give_up(t, "%s", ort_text);
    spec = spec_of(t, model);
    if (!ort_session(&spec, &session)) return give_up(t, "%s", ort_text);
    runs = affordable(run_seconds(session) * THREADS, 16, 200);
    ort->ReleaseSession(session);
    for (i = 0; i < THREADS; i++) {
        w[i].t = t;
        w[i].runs = runs;
    }
    return true;
}

/* They begin together, when all are there. */
static void run_workers(trial *t, const char *id, worker w[THREADS], const char *what) {
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    size_t i, begun = 0;
    judging(t, id, "%d threads that %s", THREADS, what);
    t->board->beside = "threads";
    pthread_mutex_lock(&gate);
    for (i = 0; i < THREADS; i++) {
        w[i].gate = &gate;
        if (pthread_create(&w[i].thread, NULL, work, &w[i]) != 0) break;
        begun++;
    }
    pthread_mutex_unlock(&gate);
    for (i = 0; i < begun; i++) pthread_join(w[i].thread, NULL);
    if (begun < THREADS) cannot_judge(t, id, "%s: a thread cannot be made", t->board->doing);
    for (i = 0; i < begun; i++)
        judge(t, id, w[i].ok, "%s: thread %zu: %s", t->board->doing, i, w[i].text);
    t->board->beside = NULL;
}

static void threads(trial *t) {
    worker workers[THREADS];
    OrtSession *session = NULL;
    ort_spec spec;
    size_t i;
    if (!open_workers(t, workers)) return;
    spec = spec_of(t, workers[0].model);
    if (!ort_session(&spec, &session)) {
        give_up(t, "%s", ort_text);
        return;
    }
    for (i = 0; i < THREADS; i++) workers[i].session = session;
    run_workers(t, "PLG-009", workers, "run one session");
    for (i = 0; i < THREADS; i++) workers[i].session = NULL;
    run_workers(t, "PLG-032", workers, "create a session each and run it");
}

static void loading_threads(trial *t) {
    const char *context = in_folder(t, "out/m_ctx.onnx");
    worker workers[THREADS];
    size_t i;
    if (!open_workers(t, workers)) return;
    if (!generate(t, workers[0].model, context, !t->board->ep.files)) {
        give_up(t, "%s", ort_text);
        return;
    }
    for (i = 0; i < THREADS; i++) workers[i].model = context;
    run_workers(t, "PLG-032", workers, "load a context model each and run it");
}

/* --------------------------------------------------------------------- runs */

typedef struct one_run {
    OrtSession *session;
    OrtAllocator *allocator;
    ort_values in, want;
    size_t outputs;
    void *data; /* of the first input */
    size_t size;
    const int64_t *dims;
    size_t rank;
    ONNXTensorElementDataType type;
} one_run;

static bool run_open(trial *t, one_run *r, const char *model, const char *reference) {
    const ort_spec spec = spec_of(t, model);
    ort_spec cpu_spec;
    OrtSession *cpu = NULL;
    size_t i;
    bool ok;
    memset(r, 0, sizeof *r);
    memset(&cpu_spec, 0, sizeof cpu_spec);
    cpu_spec.path = reference;
    cpu_spec.plain = true;
    ok = ort_session(&spec, &r->session) && ort_session(&cpu_spec, &cpu) &&
         ort_run(cpu, 5, &r->want) && ort_ok(ort->GetAllocatorWithDefaultOptions(&r->allocator)) &&
         ort_ok(ort->SessionGetInputCount(r->session, &r->in.count));
    for (i = 0; ok && i < r->in.count; i++)
        ok = ort_make_input(r->session, i, r->allocator, 5, &r->in);
    if (cpu) ort->ReleaseSession(cpu);
    return ok && r->in.count > 0 && ort_ok(ort->GetTensorMutableData(r->in.values[0], &r->data)) &&
           ort_ok(ort->GetTensorSizeInBytes(r->in.values[0], &r->size)) &&
           ort_ok(ort->GetTensorElementTypeAndShapeDataReference(r->in.values[0], &r->type,
                                                                 &r->dims, &r->rank));
}

/* With the first input's bytes at `data`; the first output into `out`, which may be NULL. */
static bool run_at(one_run *r, void *data, const OrtRunOptions *options, OrtValue *out,
                   ort_values *got) {
    OrtMemoryInfo *info = NULL;
    OrtValue *first = NULL, *kept = r->in.values[0];
    size_t i;
    bool ok = ort_ok(ort->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &info)) &&
              ort_ok(ort->CreateTensorWithDataAsOrtValue(info, data, r->size, r->dims, r->rank,
                                                         r->type, &first));
    memset(got, 0, sizeof *got);
    got->count = r->want.count;
    got->values[0] = out;
    for (i = 0; ok && i < got->count; i++)
        ok = ort_ok(ort->SessionGetOutputName(r->session, i, r->allocator, &got->names[i]));
    if (ok) {
        r->in.values[0] = first;
        ok = ort_ok(ort->Run(r->session, options, (const char *const *)r->in.names,
                             (const OrtValue *const *)r->in.values, r->in.count,
                             (const char *const *)got->names, got->count, got->values));
        r->in.values[0] = kept;
    }
    if (first) ort->ReleaseValue(first);
    if (info) ort->ReleaseMemoryInfo(info);
    return ok;
}

static void judge_run(trial *t, one_run *r, const char *what, void *data, OrtValue *out) {
    ort_values got;
    judging(t, "PLG-009", "a run with %s", what);
    judge(t, "PLG-009", run_at(r, data, NULL, out, &got) && ort_same(&got, &r->want),
          "a run with %s: expected the CPU EP's outputs, found %s", what, t->answer);
    if (out) got.values[0] = NULL;
    ort_values_free(&got);
}

/* In pages that nobody can write to: an EP that writes into its inputs crashes. */
static void run_readonly(trial *t, one_run *r) {
    const size_t size = (r->size + 65535) / 65536 * 65536;
    void *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) return;
    memcpy(pages, r->data, r->size);
    mprotect(pages, size, PROT_READ);
    judge_run(t, r, "an input in pages that cannot be written to", pages, NULL);
    munmap(pages, size);
}

static void run_terminated(trial *t, one_run *r) {
    OrtRunOptions *options = NULL;
    ort_values got;
    if (!ort_ok(ort->CreateRunOptions(&options))) return;
    ort_ok(ort->RunOptionsSetTerminate(options));
    judging(t, "PLG-009", "a run that is terminated before it starts");
    run_at(r, r->data, options, NULL, &got);
    ort_values_free(&got);
    ort->ReleaseRunOptions(options);
    judge_run(t, r, "good input after a terminated run", r->data, NULL);
}

/* A shape that the model does not have is refused, and the next run is right. */
static void run_misshaped(trial *t, one_run *r) {
    static const int64_t wrong[17] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    const int64_t *dims = r->dims;
    const size_t rank = r->rank, size = r->size;
    ort_values got;
    r->dims = wrong;
    r->rank = rank + 1;
    r->size = ort_elem_size(r->type);
    judging(t, "PLG-009", "a run with an input of the wrong shape");
    judge(t, "PLG-009", !run_at(r, r->data, NULL, NULL, &got),
          "a run with an input of the wrong shape: expected a status, found success");
    ort_values_free(&got);
    r->dims = dims;
    r->rank = rank;
    r->size = size;
    judge_run(t, r, "good input after a refused run", r->data, NULL);
}

static void odd_runs(trial *t) {
    const char *model = in_folder(t, "src/m.onnx");
    const int64_t *dims = NULL;
    ONNXTensorElementDataType type;
    OrtValue *out = NULL;
    size_t rank = 0;
    uint8_t *unaligned;
    one_run r;
    if (!open_ep(t) || !make_model(t, MODEL_CHAIN, model) || !run_open(t, &r, model, model)) {
        give_up(t, "%s", ort_text);
        return;
    }
    judge_run(t, &r, "inputs as usual", r.data, NULL);
    if (ort_ok(ort->GetTensorElementTypeAndShapeDataReference(r.want.values[0], &type, &dims,
                                                              &rank)) &&
        ort_ok(ort->CreateTensorAsOrtValue(r.allocator, dims, rank, type, &out))) {
        judge_run(t, &r, "the output's memory given", r.data, out);
        ort->ReleaseValue(out);
    }
    unaligned = (uint8_t *)malloc(r.size + sizeof(float));
    if (unaligned) {
        memcpy(unaligned + sizeof(float), r.data, r.size);
        judge_run(t, &r, "an input that is only aligned to its elements", unaligned + sizeof(float),
                  NULL);
        judge(t, "PLG-009", memcmp(unaligned + sizeof(float), r.data, r.size) == 0,
              "the run changed its input");
        free(unaligned);
    }
    run_readonly(t, &r);
    run_terminated(t, &r);
    run_misshaped(t, &r);
}

/* NaN, infinities and -0 where `a` is; where -0 is, `b` is 0. */
static void spoil_numbers(one_run *r) {
    static const float odd[] = {NAN, INFINITY, -INFINITY, -0.0f};
    const size_t count = r->size / sizeof(float);
    void *second = NULL;
    size_t i;
    for (i = 0; i < 64 && i < count; i++) ((float *)r->data)[i] = odd[i % 4];
    if (r->in.count < 2 || !ort_ok(ort->GetTensorMutableData(r->in.values[1], &second))) return;
    for (i = 3; i < 64 && i < count; i += 4) ((float *)second)[i] = 0;
}

/* Runs on the inputs of `r`; the outputs into `out`. */
static bool run_given(OrtSession *session, one_run *r, ort_values *out) {
    OrtSession *own = r->session;
    bool ok;
    r->session = session;
    ok = run_at(r, r->data, NULL, NULL, out);
    r->session = own;
    return ok;
}

/* Floats of the first output; NULL: none. */
static float *floats_of(const ort_values *values, size_t *count) {
    void *data = NULL;
    size_t size = 0;
    if (!ort_ok(ort->GetTensorSizeInBytes(values->values[0], &size)) ||
        !ort_ok(ort->GetTensorMutableData(values->values[0], &data)))
        return NULL;
    *count = size / sizeof(float);
    return (float *)data;
}

/* What no document speaks of: -0 that is 0, and what is not finite and another number. These become
 * what is wanted, so that all else can be compared. */
typedef struct odd_lost {
    size_t signs, others;
    float wanted, found; /* the first of the others */
} odd_lost;

static odd_lost forgive(const ort_values *got, const ort_values *want) {
    odd_lost lost = {0, 0, 0, 0};
    size_t count = 0, of_got = 0, i;
    float *a = floats_of(got, &of_got);
    const float *b = floats_of(want, &count);
    for (i = 0; a && b && of_got == count && i < count; i++) {
        lost.signs += fpclassify(b[i]) == FP_ZERO && signbit(b[i]) && !signbit(a[i]);
        if (isfinite(b[i]) || (isnan(a[i]) && isnan(b[i])) || a[i] == b[i]) continue;
        if (lost.others++ == 0) {
            lost.wanted = b[i];
            lost.found = a[i];
        }
        a[i] = b[i];
    }
    return lost;
}

/* Sums and products tell what becomes of numbers that are none. */
static bool make_sums(trial *t, const char *path) {
    const ep_facts *ep = &t->board->ep;
    if (ep->form != FORM_FLOAT) return give_up(t, "the EP takes quantized models only");
    if (is_sum_or_product(ep->binary))
        return make_probe_binary(t, ep->form, ep->binary, path) || give_up(t, "%s", ort_text);
    if (is_sum_or_product(ep->weighted))
        return make_probe(t, ep->form, ep->weighted, path) || give_up(t, "%s", ort_text);
    return give_up(t, "the EP claims no Add, Sub or Mul");
}

static void odd_numbers(trial *t) {
    const char *model = in_folder(t, "src/m.onnx");
    OrtSession *cpu = NULL;
    ort_values got, want;
    ort_spec spec;
    odd_lost lost;
    one_run r;
    if (!open_ep(t) || !make_sums(t, model) || !run_open(t, &r, model, model)) return;
    spoil_numbers(&r);
    spec = spec_of(t, model);
    spec.ep = NULL;
    if (!ort_session(&spec, &cpu) || !run_given(cpu, &r, &want)) {
        give_up(t, "%s", ort_text);
        return;
    }
    judging(t, "PLG-009", "NaN and infinities");
    if (!judge(t, "PLG-009", run_given(r.session, &r, &got),
               "a run with NaN and infinities in an input: expected success, found %s", t->answer))
        return;
    lost = forgive(&got, &want);
    judge(t, "PLG-009", ort_same(&got, &want),
          "NaN and infinities in an input, other numbers: expected the CPU EP's outputs, found %s",
          t->answer);
    if (lost.others)
        remark(t, "PLG-009",
               "NaN and infinities in an input: the CPU EP gives %g where this one gives %g, at "
               "%zu places; ONNX Runtime has no words for them",
               (double)lost.wanted, (double)lost.found, lost.others);
    if (lost.signs) remark(t, "PLG-009", "-0 becomes 0, at %zu places", lost.signs);
    ort_values_free(&got);
    ort_values_free(&want);
}

/* x -> y with a batch of `count`, in `out`. */
static bool run_batch(OrtSession *session, int64_t count, ort_values *out) {
    char y[] = "y";
    const int64_t dims[4] = {count, 8, 4, 4};
    const ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
    const char *in_name = "x", *out_name = y;
    OrtAllocator *allocator = NULL;
    OrtValue *x = NULL;
    void *data = NULL;
    bool ok = ort_ok(ort->GetAllocatorWithDefaultOptions(&allocator)) &&
              ort_ok(ort->CreateTensorAsOrtValue(allocator, dims, 4, type, &x)) &&
              ort_ok(ort->GetTensorMutableData(x, &data));
    memset(out, 0, sizeof *out);
    out->count = 1;
    out->names[0] = y;
    if (ok) {
        ort_fill(data, (size_t)count * 128, type, 3);
        ok = ort_ok(ort->Run(session, NULL, &in_name, (const OrtValue *const *)&x, 1, &out_name, 1,
                             out->values));
    }
    if (x) ort->ReleaseValue(x);
    return ok;
}

static void judge_batch(trial *t, OrtSession *session, OrtSession *cpu, int64_t count) {
    ort_values got, want;
    judging(t, "PLG-009", "a run with a batch of %d", (int)count);
    if (run_batch(cpu, count, &want)) {
        judge(t, "PLG-009", run_batch(session, count, &got) && ort_same(&got, &want),
              "a batch of %d: expected the CPU EP's outputs, found %s", (int)count, t->answer);
        if (got.values[0]) ort->ReleaseValue(got.values[0]);
    }
    if (want.values[0]) ort->ReleaseValue(want.values[0]);
}

/* One session, one batch after the other. */
static void open_shapes(trial *t) {
    static const int64_t batches[] = {2, 1, 3, 2};
    const char *model = in_folder(t, "src/m.onnx");
    OrtSession *session = NULL, *cpu = NULL;
    ort_spec spec;
    size_t i;
    if (!open_ep(t) || !make_model(t, MODEL_DYN, model)) {
        give_up(t, "%s", ort_text);
        return;
    }
    spec = spec_of(t, model);
    judging(t, "PLG-009", "a model with an open batch");
    if (!judge(t, "PLG-009", ort_session(&spec, &session), "a model with an open batch: %s",
               t->answer))
        return;
    if (ort_assigned(session, t->board->ep.name) == 0)
        remark(t, "PLG-009", "nodes with open dimensions are left to the CPU");
    spec.ep = NULL;
    if (!ort_session(&spec, &cpu)) return;
    for (i = 0; i < sizeof batches / sizeof batches[0]; i++)
        judge_batch(t, session, cpu, batches[i]);
}

/* ------------------------------------------------------------------ options */

/* Besides the options of the user. */
static void odd_ep_option(trial *t, const char *model, const char *value, const char *what,
                          bool tell) {
    const char *odd[2 * ORT_MAX_OPTIONS + 3];
    size_t count = 0;
    ort_spec spec = spec_of(t, model);
    for (; t->wanted.options.list[count]; count++) odd[count] = t->wanted.options.list[count];
    odd[count] = "conformance_no_such_option";
    odd[count + 1] = value;
    odd[count + 2] = NULL;
    spec.options = odd;
    judging(t, "PLG-055", "%s", what);
    if (session_opens(&spec) && tell) remark(t, "PLG-055", "%s is accepted in silence", what);
    holds(t, "PLG-055");
}

static void stop_alone(trial *t, const char *model) {
    static const char *const config[] = {"ep.stop_share_ep_contexts", "1", NULL};
    ort_spec spec = spec_of(t, model);
    spec.config = config;
    judging(t, "EPC-054", "ep.stop_share_ep_contexts without ep.share_ep_contexts");
    if (session_opens(&spec))
        remark(t, "EPC-054", "ep.stop_share_ep_contexts without ep.share_ep_contexts is accepted");
    else
        judge(t, "EPC-054", *ort_text != '\0', "a refusal without a text");
}

static void dynamic_option(trial *t, const char *model) {
    const char *key = "conformance.no_such_option", *value = "1";
    OrtSession *session = NULL;
    const ort_spec spec = spec_of(t, model);
    if (!ort_session(&spec, &session)) return;
    judging(t, "PLG-016", "SetEpDynamicOptions with a key that no EP has");
    if (ort_ok(ort->SetEpDynamicOptions(session, &key, &value, 1)))
        remark(t, "PLG-016", "an unknown dynamic option is accepted in silence");
    else
        judge(t, "PLG-016", *ort_text != '\0',
              "the refusal of an unknown dynamic option has no text");
    judge(t, "PLG-016", equals_cpu(t, session, model, 1), "after an unknown dynamic option: %s",
          ort_text);
    ort->ReleaseSession(session);
}

static void options(trial *t) {
    char long_value[8193];
    const char *model = in_folder(t, "src/m.onnx");
    ort_spec spec;
    if (!open_ep(t) || !make_model(t, MODEL_CHAIN, model)) {
        give_up(t, "%s", ort_text);
        return;
    }
    spec = spec_of(t, model);
    judging(t, "PLG-055", "a session without further EP options");
    judge(t, "PLG-055", session_opens(&spec), "expected success, found %s", t->answer);
    odd_ep_option(t, model, "1", "an EP option that no EP has", true);
    memset(long_value, 'v', sizeof long_value - 1);
    long_value[sizeof long_value - 1] = '\0';
    odd_ep_option(t, model, long_value, "an EP option of 8192 bytes", false);
    stop_alone(t, model);
    dynamic_option(t, model);
}

/* ------------------------------------------------------------------- policy */

/* `state`: where the one to select is. */
static OrtStatus *ORT_API_CALL choose(const OrtEpDevice **devices, size_t count,
                                      const OrtKeyValuePairs *model_metadata,
                                      const OrtKeyValuePairs *runtime_metadata,
                                      const OrtEpDevice **selected, size_t max,
                                      size_t *selected_count, void *state) {
    size_t i;
    (void)model_metadata, (void)runtime_metadata;
    *selected_count = 0;
    for (i = 0; i < count && *selected_count < max; i++)
        if (devices[i] == *(const OrtEpDevice *const *)state)
            selected[(*selected_count)++] = devices[i];
    return NULL;
}

static void set_delegate(OrtSessionOptions *o, void *chosen) {
    ort_ok(ort->SessionOptionsSetEpSelectionPolicyDelegate(o, choose, chosen));
}

static void set_policy(OrtSessionOptions *o, void *policy) {
    ort_ok(ort->SessionOptionsSetEpSelectionPolicy(
        o, *(const OrtExecutionProviderDevicePolicy *)policy));
}

static void policies(trial *t) {
    static const OrtExecutionProviderDevicePolicy tried[] = {
        OrtExecutionProviderDevicePolicy_PREFER_CPU, OrtExecutionProviderDevicePolicy_PREFER_GPU,
        OrtExecutionProviderDevicePolicy_PREFER_NPU};
    const char *model = in_folder(t, "src/m.onnx");
    OrtExecutionProviderDevicePolicy policy;
    const OrtEpDevice *chosen;
    char refused[sizeof t->answer] = "";
    ort_spec spec;
    size_t i;
    bool runs;
    if (!open_ep(t) || !make_model(t, MODEL_CHAIN, model)) {
        give_up(t, "%s", ort_text);
        return;
    }
    for (i = 0; i < 3; i++) {
        spec = spec_of(t, model);
        spec.ep = NULL;
        policy = tried[i];
        spec.more = set_policy;
        spec.user = &policy;
        judging(t, "PLG-057", "a session by policy %d", (int)policy);
        runs = runs_as(&spec, model);
        if (!runs) memcpy(refused, t->answer, sizeof refused);
        judge(t, i == 2 ? "PLG-057 PLG-058" : "PLG-057", runs,
              "selection by policy %d: expected the CPU EP's outputs, found %s", (int)policy,
              t->answer);
    }
    chosen = find_device(t);
    spec = spec_of(t, model);
    spec.ep = NULL;
    spec.more = set_delegate;
    spec.user = &chosen;
    judging(t, "PLG-059", "a session whose EP a delegate selects");
    runs = runs_as(&spec, model);
    if (!runs && strcmp(t->answer, refused) == 0)
        cannot_judge(t, "PLG-059", "what is reported at PLG-057 is in the way");
    else
        judge(t, "PLG-059", runs, "expected the CPU EP's outputs, found %s", t->answer);
}

/* ------------------------------------------------------------------- memory */

enum { COPIED = 64 };

/* A tensor of COPIED floats, on the CPU. */
static OrtValue *cpu_tensor(float **data) {
    static const int64_t dims[1] = {COPIED};
    OrtAllocator *cpu = NULL;
    OrtValue *value = NULL;
    void *bytes = NULL;
    if (!ort_ok(ort->GetAllocatorWithDefaultOptions(&cpu)) ||
        !ort_ok(ort->CreateTensorAsOrtValue(cpu, dims, 1, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
                                            &value)) ||
        !ort_ok(ort->GetTensorMutableData(value, &bytes)))
        return NULL;
    *data = (float *)bytes;
    return value;
}

static bool copy(const OrtValue *from, OrtValue *to, OrtSyncStream *stream) {
    return ort_ok(ort->CopyTensors(ort_env, &from, &to, stream, 1));
}

#define NO_CPU_COPIES "%s is the CPU's: ONNX Runtime itself does not copy from CPU to CPU"

/* Whether ORT, too, can copy between the CPU and what this memory is. */
static bool is_copied(const OrtMemoryInfo *info) {
    OrtMemoryInfoDeviceType type = OrtMemoryInfoDeviceType_CPU;
    float *a = NULL, *b = NULL;
    OrtValue *from, *to;
    bool ok;
    ort->MemoryInfoGetDeviceType(info, &type);
    if (type != OrtMemoryInfoDeviceType_CPU) return true;
    from = cpu_tensor(&a);
    to = cpu_tensor(&b);
    ok = from && to && copy(from, to, NULL);
    if (from) ort->ReleaseValue(from);
    if (to) ort->ReleaseValue(to);
    return ok;
}

static bool needs_copies(const OrtAllocator *allocator) {
    const OrtMemoryInfo *info = NULL;
    return !ort_ok(ort->AllocatorGetInfo(allocator, &info)) || is_copied(info);
}

/* Bytes go to memory of `allocator` and come back; `stream` may be NULL. */
static void round_trip(trial *t, const char *ids, OrtAllocator *allocator, OrtSyncStream *stream,
                       const char *what) {
    static const int64_t dims[1] = {COPIED};
    float *a = NULL, *b = NULL;
    OrtValue *from = cpu_tensor(&a), *to = cpu_tensor(&b), *there = NULL;
    if (!from || !to) return;
    ort_fill(a, COPIED, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, 9);
    memset(b, 0, COPIED * sizeof *b);
    judging(t, "PLG-035", "a tensor in %s", what);
    if (judge(t, ids,
              ort_ok(ort->CreateTensorAsOrtValue(allocator, dims, 1,
                                                 ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &there)),
              "a tensor in %s: %s", what, t->answer)) {
        judging(t, "PLG-038", "CopyTensors to %s and back", what);
        if (!needs_copies(allocator))
            cannot_judge(t, "PLG-038", NO_CPU_COPIES, what);
        else
            judge(t, "PLG-038",
                  copy(from, there, stream) && copy(there, to, stream) &&
                      memcmp(a, b, COPIED * sizeof *a) == 0,
                  "CopyTensors to %s and back: expected the same bytes, found %s", what, t->answer);
        judging(t, "PLG-037", "the release of a tensor in %s", what);
        ort->ReleaseValue(there);
        holds(t, "PLG-037");
    }
    ort->ReleaseValue(from);
    ort->ReleaseValue(to);
}

static void shared_memory(trial *t, const OrtEpDevice *device, OrtDeviceMemoryType type) {
    const OrtMemoryInfo *info = ort->EpDevice_MemoryInfo(device, type);
    OrtAllocator *allocator = NULL;
    if (!info) return;
    judge(t, "PLG-020", ort->MemoryInfoGetDeviceMemType(info) == type,
          "memory announced as type %d says type %d", (int)type,
          (int)ort->MemoryInfoGetDeviceMemType(info));
    judging(t, "PLG-035", "GetSharedAllocator");
    if (judge(t, "PLG-035 PLG-020",
              ort_ok(ort->GetSharedAllocator(ort_env, info, &allocator)) && allocator,
              "the device announces memory, but there is no allocator for it: %s", ort_text))
        round_trip(t, "PLG-035 PLG-036", allocator, NULL, "the device's memory");
}

static bool bind_inputs(OrtSession *session, OrtIoBinding *binding, OrtAllocator *cpu,
                        ort_values *inputs) {
    size_t count = 0, i;
    bool ok = ort_ok(ort->SessionGetInputCount(session, &count)) && count <= ORT_MAX_VALUES;
    for (i = 0; ok && i < count; i++) {
        inputs->count = i + 1;
        ok = ort_make_input(session, i, cpu, 1, inputs) &&
             ort_ok(ort->BindInput(binding, inputs->names[i], inputs->values[i]));
    }
    return ok;
}

/* A run whose first output stays in the device's memory, and is read after the session's end. */
static OrtValue *run_on_device(OrtSession *session, const OrtMemoryInfo *info) {
    OrtIoBinding *binding = NULL;
    OrtAllocator *cpu = NULL;
    OrtValue **values = NULL, *out = NULL;
    char *name = NULL;
    size_t count = 0;
    ort_values inputs;

    memset(&inputs, 0, sizeof inputs);
    if (ort_ok(ort->GetAllocatorWithDefaultOptions(&cpu)) &&
        ort_ok(ort->CreateIoBinding(session, &binding)) &&
        bind_inputs(session, binding, cpu, &inputs) &&
        ort_ok(ort->SessionGetOutputName(session, 0, cpu, &name)) &&
        ort_ok(ort->BindOutputToDevice(binding, name, info)) &&
        ort_ok(ort->RunWithBinding(session, NULL, binding)) &&
        ort_ok(ort->GetBoundOutputValues(binding, cpu, &values, &count)) && count == 1)
        out = values[0];
    if (name) cpu->Free(cpu, name);
    if (values) cpu->Free(cpu, values);
    if (binding) ort->ReleaseIoBinding(binding);
    ort_values_free(&inputs);
    return out;
}

/* The bytes of a value of the device, as the CPU EP's output of `model`. */
static bool is_output_of(const OrtValue *there, const char *model) {
    const ort_spec spec = {.path = model, .plain = true};
    OrtSession *cpu = NULL;
    ort_values want, first, got;
    OrtAllocator *allocator = NULL;
    const int64_t *dims = NULL;
    size_t rank = 0;
    ONNXTensorElementDataType type;
    bool ok;
    if (!ort_session(&spec, &cpu) || !ort_run(cpu, 1, &want)) return false;
    first = want;
    first.count = 1;
    memset(&got, 0, sizeof got);
    got.count = 1;
    got.names[0] = want.names[0];
    ok = ort_ok(ort->GetAllocatorWithDefaultOptions(&allocator)) &&
         ort_ok(ort->GetTensorElementTypeAndShapeDataReference(there, &type, &dims, &rank)) &&
         ort_ok(ort->CreateTensorAsOrtValue(allocator, dims, rank, type, &got.values[0])) &&
         copy(there, got.values[0], NULL) && ort_same(&got, &first);
    if (got.values[0]) ort->ReleaseValue(got.values[0]);
    ort_values_free(&want);
    ort->ReleaseSession(cpu);
    return ok;
}

/* The EP's own allocator and stream of a session; options of both come with the session's. */
static void session_memory(trial *t, const OrtEpDevice *device, const OrtMemoryInfo *info,
                           bool streams) {
    const char *model = in_folder(t, "src/m.onnx");
    ort_spec spec = spec_of(t, model);
    OrtSession *session = NULL;
    OrtAllocator *allocator = NULL;
    OrtValue *out;
    spec.device = device;
    judging(t, "PLG-019", "a session on the device with memory of its own");
    if (!make_model(t, MODEL_CHAIN, model) || !ort_session(&spec, &session)) {
        does_not_apply(t, "PLG-019 PLG-021 PLG-022 PLG-023", "no session there: %s", ort_text);
        return;
    }
    judging(t, "PLG-019", "CreateAllocator of a session");
    if (judge(t, "PLG-019", ort_ok(ort->CreateAllocator(session, info, &allocator)),
              "the allocator of a session: expected success, found %s", t->answer)) {
        round_trip(t, "PLG-019", allocator, NULL, "the memory of a session");
        ort->ReleaseAllocator(allocator);
    }
    judging(t, "PLG-019", "a run whose output is in the device's memory");
    out = run_on_device(session, info);
    judge(t, "PLG-019", out != NULL, "a run whose output is in the device's memory: %s", t->answer);
    judging(t, "PLG-035", "a value in the device's memory that outlives its session");
    ort->ReleaseSession(session);
    if (!out) return;
    if (!is_copied(info)) {
        cannot_judge(t, "PLG-035", NO_CPU_COPIES, "the device's memory");
        ort->ReleaseValue(out);
        return;
    }
    judge(t, streams ? "PLG-022 PLG-023 PLG-035" : "PLG-035", is_output_of(out, model),
          "a value in the device's memory, read after its session's end: expected the CPU EP's "
          "output, found %s",
          t->answer);
    ort->ReleaseValue(out);
}

/* A stream of the factory, and a copy on it. */
static bool device_stream(trial *t, const OrtEpDevice *device, const OrtMemoryInfo *info) {
    OrtSyncStream *stream = NULL;
    OrtAllocator *allocator = NULL;
    judging(t, "PLG-040", "CreateSyncStreamForEpDevice");
    if (!ort_ok(ort->CreateSyncStreamForEpDevice(device, NULL, &stream))) {
        if (ort_code == ORT_NOT_IMPLEMENTED || strstr(ort_text, "stream aware")) return false;
        judge(t, "PLG-040", *ort_text != '\0', "a refusal without a text");
        return false;
    }
    if (ort_ok(ort->GetSharedAllocator(ort_env, info, &allocator)) && allocator)
        round_trip(t, "PLG-040", allocator, stream, "the device's memory, on a stream");
    judging(t, "PLG-040", "the release of a stream");
    ort->ReleaseSyncStream(stream);
    holds(t, "PLG-039 PLG-040");
    return true;
}

/* Devices of the EP, also virtual ones: these may have memory where others work in the CPU's. */
static void memory(trial *t) {
    const OrtEpDevice *const *devices = NULL;
    size_t count = 0, i, found = 0;
    bool streams = false;
    if (!ort_open(false) || !register_ep(t, virtual_registration_of(t, "memory")) ||
        !ort_ok(ort->GetEpDevices(ort_env, &devices, &count))) {
        give_up(t, "%s", ort_text);
        return;
    }
    for (i = 0; i < count; i++) {
        const OrtMemoryInfo *info =
            ort->EpDevice_MemoryInfo(devices[i], OrtDeviceMemoryType_DEFAULT);
        if (!is_own_device(t, devices[i]) || !info) continue;
        found++;
        shared_memory(t, devices[i], OrtDeviceMemoryType_DEFAULT);
        shared_memory(t, devices[i], OrtDeviceMemoryType_HOST_ACCESSIBLE);
        streams |= device_stream(t, devices[i], info);
        session_memory(t, devices[i], info, streams);
    }
    if (!found)
        give_up(t, "no device announces memory of its own: the EP works in the CPU's");
    else if (!streams)
        give_up(t, "the EP has no streams");
    else
        does_not_apply(t, "PLG-021", "only the EP knows which options its allocators have");
}

/* ------------------------------------------------------------------- layout */

static bool is_converted(const OrtSession *session) {
    const OrtEpAssignedSubgraph *const *graphs = NULL;
    const OrtEpAssignedNode *const *nodes = NULL;
    const char *domain = NULL;
    size_t graph_count = 0, count = 0, i, k;
    if (!ort_ok(ort->Session_GetEpGraphAssignmentInfo(session, &graphs, &graph_count)))
        return false;
    for (i = 0; i < graph_count; i++) {
        if (!ort_ok(ort->EpAssignedSubgraph_GetNodes(graphs[i], &nodes, &count))) return false;
        for (k = 0; k < count; k++)
            if (ort_ok(ort->EpAssignedNode_GetDomain(nodes[k], &domain)) &&
                strcmp(domain, "com.ms.internal.nhwc") == 0)
                return true;
    }
    return false;
}

static bool run_once(OrtSession *session) {
    ort_values out;
    const bool ok = ort_run(session, 1, &out);
    if (ok) ort_values_free(&out);
    return ok;
}

/* Who prefers NHWC gets convolutions in a domain of ORT's own. */
static void layout(trial *t) {
    const char *model = in_folder(t, "src/m.onnx");
    OrtSession *session = NULL;
    ort_spec spec;
    const form how = t->board->ep.form == FORM_GIVEN ? FORM_FLOAT : t->board->ep.form;
    if (!open_ep(t) || !make_probe(t, how, "Conv", model)) {
        give_up(t, "%s", ort_text);
        return;
    }
    spec = spec_of(t, model);
    spec.plain = false;
    judging(t, "PLG-014", "a session with two nodes Conv");
    if (!judge(t, "PLG-008", ort_session(&spec, &session),
               "a session with two nodes Conv: expected success, found %s", t->answer))
        return;
    if (!run_once(session)) {
        judge(t, "PLG-008", false, "two nodes Conv that the EP claims: expected a run, found %s",
              t->answer);
    } else if (is_converted(session)) {
        judge(t, "PLG-013 PLG-014 PLG-015", equals_cpu(t, session, model, 1),
              "convolutions in NHWC: expected the CPU EP's outputs, found %s", t->answer);
    } else if (ort_assigned(session, t->board->ep.name) == 0) {
        does_not_apply(t, "PLG-013 PLG-014 PLG-015", "the EP claims no Conv, whatever its layout");
    } else {
        judge(t, "PLG-013", equals_cpu(t, session, model, 1),
              "convolutions in NCHW: expected the CPU EP's outputs, found %s", t->answer);
        does_not_apply(t, "PLG-014 PLG-015", "the EP prefers no other layout than NCHW");
    }
    ort->ReleaseSession(session);
}

const experiment session_experiments[] = {
    {"probe", probe, FINDS_FACTS,
     "EPC-071 PLG-006 PLG-008 PLG-010 PLG-027 PLG-032 PLG-051 PLG-053 PLG-056 PLG-074"},
    {"session", jit, NEEDS_DEVICE | NEEDS_RUNS | NEEDS_CLAIM,
     "PLG-006 PLG-008 PLG-009 PLG-011 PLG-027 PLG-032 PLG-033 PLG-051 PLG-053 PLG-056 PLG-072 "
     "PLG-073 "
     "PLG-074 "
     "EPC-037 EPC-063 EPC-098"},
    {"odd models", odd_models, NEEDS_DEVICE | NEEDS_RUNS | NEEDS_CLAIM, "PLG-005 PLG-008 PLG-009"},
    {"optimization levels", levels, NEEDS_DEVICE | NEEDS_RUNS | NEEDS_CLAIM, "PLG-008"},
    {"several sessions", many_sessions, NEEDS_DEVICE | NEEDS_RUNS | NEEDS_CLAIM,
     "PLG-011 PLG-032 PLG-033"},
    {"many runs", many_runs, NEEDS_DEVICE | NEEDS_RUNS | NEEDS_CLAIM, "PLG-009 PLG-011"},
    {"threads", threads, NEEDS_DEVICE | NEEDS_RUNS | NEEDS_CLAIM, "PLG-009 PLG-032"},
    {"odd runs", odd_runs, NEEDS_DEVICE | NEEDS_RUNS | NEEDS_CLAIM, "PLG-009"},
    {"odd numbers", odd_numbers, NEEDS_DEVICE | NEEDS_RUNS | NEEDS_CLAIM, "PLG-009"},
    {"open shapes", open_shapes, NEEDS_DEVICE | NEEDS_RUNS | NEEDS_CLAIM, "PLG-009"},
    {"options", options, NEEDS_DEVICE | NEEDS_RUNS | NEEDS_CLAIM, "EPC-054 PLG-016 PLG-055"},
    {"selection", policies, NEEDS_DEVICE | NEEDS_RUNS | NEEDS_CLAIM, "PLG-057 PLG-058 PLG-059"},
    {"memory and streams", memory, NEEDS_DEVICE,
     "PLG-019 PLG-020 PLG-021 PLG-022 PLG-023 PLG-035 PLG-036 PLG-037 PLG-038 PLG-039 PLG-040"},
    {"data layout", layout, NEEDS_DEVICE | NEEDS_RUNS, "PLG-008 PLG-013 PLG-014 PLG-015"},
    {NULL, NULL, 0, NULL},
};

/* After those of context models: one that does not load is not about threads. */
const experiment loading_experiments[] = {
    {"threads that load", loading_threads, NEEDS_DEVICE | NEEDS_RUNS | NEEDS_CLAIM | NEEDS_CONTEXTS,
     "PLG-032"},
    {NULL, NULL, 0, NULL},
};
