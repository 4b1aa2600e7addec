/* sharing.c - N models, one binary: ep.share_ep_contexts and ep.stop_share_ep_contexts. */
#define _GNU_SOURCE
#include "conformance.h"

#include <sys/stat.h>

static const char *const share_only[] = {"ep.share_ep_contexts", "1", NULL};

/* A session of the group; `folder`: of the context model. */
static bool join_in(const char *source, const char *context, bool last, bool embed) {
    const char *more[] = {"ep.context_file_path",
                          context,
                          "ep.share_ep_contexts",
                          "1",
                          "ep.context_embed_mode",
                          embed ? "1" : "0",
                          last ? "ep.stop_share_ep_contexts" : NULL,
                          "1",
                          NULL};
    return generate_by_options(source, more);
}

static void make_sources(model_kind first, model_kind second) {
    make_model(first, in_folder("src/a.onnx"));
    make_model(second, in_folder("src/b.onnx"));
    make_model(MODEL_SUB, in_folder("src/c.onnx"));
}

/* out/a_ctx.onnx, out/b_ctx.onnx, out/a_*.bin. */
static bool make_group(void) {
    make_sources(*now->ep.weighted ? MODEL_WEIGHTS : MODEL_CHAIN,
                 *now->ep.weighted ? MODEL_PAIR : MODEL_OTHER);
    return join_in(in_folder("src/a.onnx"), in_folder("out/a_ctx.onnx"), false, false) &&
           join_in(in_folder("src/b.onnx"), in_folder("out/b_ctx.onnx"), true, false);
}

static size_t count_binaries(const char *folder) {
    char names[64][256];
    const size_t count = list_files(folder, names, 64);
    size_t i, binaries = 0;
    for (i = 0; i < count; i++) binaries += !strstr(names[i], ".onnx");
    return binaries;
}

static size_t file_size(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 ? (size_t)st.st_size : 0;
}

/* -------------------------------------------------------------- generating */

/* Whether it shares at all, which no option tells. */
static void sharing_probe(void) {
    char a[PATH_MAX], b[PATH_MAX];
    if (!open_ep()) {
        give_up("%s", ort_text);
        return;
    }
    judging("EPC-125", "two sessions that share their contexts");
    if (!make_group()) {
        does_not_apply("EPC-125", "no sharing: %s", ort_answer);
        return;
    }
    if (!binary_of("out/a_ctx.onnx", "out", a, sizeof a) ||
        !binary_of("out/b_ctx.onnx", "out", b, sizeof b)) {
        does_not_apply("EPC-125", "no sharing: nodes name no binary");
        return;
    }
    judge("EPC-140", file_exists(a) && file_exists(b),
          "the group is complete, and '%s' that a node names is not there", file_exists(a) ? b : a);
    now->ep.shares = strcmp(a, b) == 0;
    if (now->ep.shares)
        holds("EPC-125");
    else
        does_not_apply("EPC-125", "no sharing: two models have two binaries");
}

static bool begins_with(const char *path, const char *name) {
    const char *slash = strrchr(path, '/');
    return strncmp(slash ? slash + 1 : path, name, strlen(name)) == 0;
}

static void group_files(void) {
    char names[64][256], a[PATH_MAX], b[PATH_MAX];
    struct stat model, binary;
    if (!open_ep()) {
        give_up("%s", ort_text);
        return;
    }
    make_sources(MODEL_CHAIN, MODEL_OTHER);
    judging("EPC-129", "the first session of a group");
    if (!judge("EPC-129 EPC-131 EPC-138",
               join_in(in_folder("src/a.onnx"), in_folder("out/a_ctx.onnx"), false, false),
               "the first session of a group: expected success, found %s", ort_answer))
        return;
    judge("EPC-139 EPC-141", file_exists("out/a_ctx.onnx"),
          "the first session of a group wrote no context model");
    judge("EPC-142 EPC-141", count_binaries("out") == 0,
          "the first session of a group, not the last, wrote a binary");
    judging("EPC-132", "the last session of a group");
    if (!judge("EPC-132 EPC-148",
               join_in(in_folder("src/b.onnx"), in_folder("out/b_ctx.onnx"), true, false),
               "the last session of a group: expected success, found %s", ort_answer))
        return;
    judge("EPC-142 EPC-132", count_binaries("out") >= 1,
          "the last session of a group wrote no binary");
    judge("EPC-146 EPC-139", list_files("out", names, 64) == 3,
          "two models of a group gave %zu files, expected 3", list_files("out", names, 64));
    if (!judge("EPC-140",
               binary_of("out/a_ctx.onnx", "out", a, sizeof a) &&
                   binary_of("out/b_ctx.onnx", "out", b, sizeof b),
               "a node of the group names no binary"))
        return;
    judge("EPC-140 EPC-136", strcmp(a, b) == 0, "the nodes of a group name '%s' and '%s'", a, b);
    judge("EPC-143 EPC-077", file_exists(a), "'%s' is not there", a);
    if (begins_with(a, "a_") && strlen(a) > 4 && strcmp(a + strlen(a) - 4, ".bin") == 0)
        holds("EPC-137 EPC-147 EPC-136");
    else
        remark("EPC-137 EPC-147 EPC-136", "the binary is '%s', the document says a_[ep].bin", a);
    if (stat("out/a_ctx.onnx", &model) == 0 && stat(a, &binary) == 0) holds("EPC-141");
}

/* Two models with the same weight under different names, and two with different ones. */
static void shared_weights(void) {
    char together[PATH_MAX], one[PATH_MAX];
    size_t both, alone;
    if (!*now->ep.weighted) {
        give_up("the EP claims no operator with weights");
        return;
    }
    if (!open_ep() || !make_group() ||
        !binary_of("out/b_ctx.onnx", "out", together, sizeof together)) {
        give_up("%s", ort_text);
        return;
    }
    both = file_size(together);
    make_folder("alone");
    if (!generate(in_folder("src/a.onnx"), in_folder("alone/a_ctx.onnx"), false) ||
        !binary_of("alone/a_ctx.onnx", "alone", one, sizeof one)) {
        give_up("%s", ort_text);
        return;
    }
    alone = file_size(one);
    if (both < 2 * alone) {
        holds("EPC-124 EPC-126 EPC-127");
    } else {
        remark("EPC-124 EPC-126 EPC-127",
               "two models with one weight have a binary of %zu bytes, one alone %zu: it is stored "
               "twice",
               both, alone);
    }
}

/* The next group after the last session, and a group of one. */
static void groups(void) {
    char first[PATH_MAX], second[PATH_MAX];
    ort_spec spec;
    if (!open_ep() || !make_group()) {
        give_up("%s", ort_text);
        return;
    }
    make_folder("next");
    make_model(MODEL_OTHER, in_folder("src/n.onnx"));
    judging("EPC-145", "a group after a group");
    if (!judge("EPC-145 EPC-135 EPC-144 EPC-151",
               join_in(in_folder("src/n.onnx"), in_folder("next/n_ctx.onnx"), true, false),
               "a group of one after another group: expected success, found %s", ort_answer))
        return;
    judge("EPC-151", count_binaries("next") == 1, "a group of one wrote %zu binaries, expected 1",
          count_binaries("next"));
    if (!judge("EPC-145",
               binary_of("next/n_ctx.onnx", "next", second, sizeof second) &&
                   binary_of("out/a_ctx.onnx", "out", first, sizeof first),
               "a node names no binary"))
        return;
    judge("EPC-145 EPC-144", strcmp(strrchr(first, '/'), strrchr(second, '/')) != 0,
          "the second group has the binary of the first: '%s'", second);
    judge("EPC-144 EPC-130", file_exists(second),
          "the binary of the second group, '%s', is not there", second);
    spec = spec_of(in_folder("next/n_ctx.onnx"));
    judging("EPC-130", "a context model of the second group");
    judge("EPC-130 EPC-144", runs_as(&spec, in_folder("src/n.onnx")),
          "a context model of the second group: expected the outputs of its source, found %s",
          ort_answer);
}

static void refusals(void) {
    if (!open_ep()) {
        give_up("%s", ort_text);
        return;
    }
    make_sources(MODEL_CHAIN, MODEL_OTHER);
    judging("EPC-149", "sharing with embed mode 1");
    if (join_in(in_folder("src/a.onnx"), in_folder("out/e_ctx.onnx"), true, true))
        remark("EPC-149", "sharing with embed mode 1 is accepted");
    else
        judge("EPC-149", *ort_text != '\0', "a refusal without a text");
    make_folder("elsewhere");
    judging("EPC-150", "a group with two folders");
    if (join_in(in_folder("src/a.onnx"), in_folder("out/a_ctx.onnx"), false, false) &&
        join_in(in_folder("src/b.onnx"), in_folder("elsewhere/b_ctx.onnx"), true, false)) {
        remark("EPC-150", "context models of one group may be in two folders, one of which has no "
                          "binary");
    } else {
        judge("EPC-150", *ort_text != '\0', "a refusal without a text");
    }
}

/* ------------------------------------------------------------------ loading */

static ort_spec shared_spec(const char *path) {
    ort_spec spec = spec_of(path);
    spec.config = share_only;
    return spec;
}

static void load_shared(void) {
    OrtSession *first = NULL, *second = NULL;
    char binary[PATH_MAX];
    ort_spec spec;
    if (!open_ep() || !make_group() || !binary_of("out/a_ctx.onnx", "out", binary, sizeof binary)) {
        give_up("%s", ort_text);
        return;
    }
    spec = shared_spec(in_folder("out/a_ctx.onnx"));
    judging("EPC-160", "the first session of two that share");
    if (!judge("EPC-159 EPC-160 EPC-122 EPC-161", ort_session(&spec, &first),
               "the first session of two that share: expected success, found %s", ort_answer))
        return;
    judge("EPC-162 EPC-161", equals_cpu(first, in_folder("src/a.onnx"), 1), "the first session: %s",
          ort_text);
    remove(binary);
    spec = shared_spec(in_folder("out/b_ctx.onnx"));
    judging("EPC-165", "the second session, the binary being deleted");
    if (!judge("EPC-163 EPC-164 EPC-165 EPC-143", ort_session(&spec, &second),
               "the second session of two that share, the binary being deleted: expected success, "
               "found %s",
               ort_answer))
        return;
    judging("EPC-169", "runs of both");
    judge("EPC-164 EPC-161", equals_cpu(second, in_folder("src/b.onnx"), 1),
          "the second session: %s", ort_text);
    judge("EPC-169",
          equals_cpu(first, in_folder("src/a.onnx"), 2) &&
              equals_cpu(second, in_folder("src/b.onnx"), 2),
          "both sessions at once: %s", ort_text);
    judging("EPC-168", "a run after the first session's end");
    ort->ReleaseSession(first);
    judge("EPC-167 EPC-168", equals_cpu(second, in_folder("src/b.onnx"), 3),
          "the second session after the first one's end: %s", ort_text);
    ort->ReleaseSession(second);
}

/* Three sessions of one model that share: the first takes the graph, the others load for
 * themselves, or are refused; none gives wrong outputs. */
static void taken(void) {
    OrtSession *sessions[3] = {NULL, NULL, NULL};
    ort_spec spec;
    int i;
    if (!open_ep() || !make_group()) {
        give_up("%s", ort_text);
        return;
    }
    for (i = 0; i < 3; i++) {
        spec = shared_spec(in_folder("out/a_ctx.onnx"));
        judging("EPC-166", "session %d of one model, sharing", i + 1);
        if (!ort_session(&spec, &sessions[i])) {
            judge("EPC-166", i > 0, "the first session: %s", ort_answer);
            continue;
        }
        judge("EPC-166", equals_cpu(sessions[i], in_folder("src/a.onnx"), (uint32_t)i),
              "session %d of one model, sharing: %s", i + 1, ort_text);
    }
    for (i = 0; i < 3; i++) {
        if (!sessions[i]) continue;
        judge("EPC-166 EPC-168", equals_cpu(sessions[i], in_folder("src/a.onnx"), 7),
              "session %d after the end of %d: %s", i + 1, i, ort_text);
        ort->ReleaseSession(sessions[i]);
    }
}

static void load_apart(void) {
    OrtSession *sessions[2] = {NULL, NULL};
    ort_spec spec;
    if (!open_ep() || !make_group()) {
        give_up("%s", ort_text);
        return;
    }
    judging("EPC-158", "sessions without ep.share_ep_contexts");
    spec = spec_of(in_folder("out/b_ctx.onnx"));
    judge("EPC-158 EPC-053",
          ort_session(&spec, &sessions[0]) && equals_cpu(sessions[0], in_folder("src/b.onnx"), 1),
          "a session of a shared binary without ep.share_ep_contexts: %s", ort_answer);
    spec = spec_of(in_folder("out/a_ctx.onnx"));
    judge("EPC-158 EPC-053",
          ort_session(&spec, &sessions[1]) && equals_cpu(sessions[1], in_folder("src/a.onnx"), 1),
          "another one: %s", ort_answer);
    judging("EPC-167", "the end of sessions in reverse order");
    if (sessions[1]) ort->ReleaseSession(sessions[1]);
    judge("EPC-167", sessions[0] && equals_cpu(sessions[0], in_folder("src/b.onnx"), 2),
          "the first session after the second one's end: %s", ort_text);
    if (sessions[0]) ort->ReleaseSession(sessions[0]);
}

static void several_nodes(void) {
    ort_spec spec;
    if (!open_ep() || !make_model(MODEL_ISLAND, in_folder("src/a.onnx")) ||
        !make_model(MODEL_CHAIN, in_folder("src/b.onnx"))) {
        give_up("%s", ort_text);
        return;
    }
    judging("EPC-133", "a group with a model of several partitions");
    if (!judge("EPC-133",
               join_in(in_folder("src/a.onnx"), in_folder("out/a_ctx.onnx"), false, false) &&
                   join_in(in_folder("src/b.onnx"), in_folder("out/b_ctx.onnx"), true, false),
               "a group with a model of several partitions: %s", ort_answer))
        return;
    spec = shared_spec(in_folder("out/a_ctx.onnx"));
    judge("EPC-133", runs_as(&spec, in_folder("src/a.onnx")),
          "its context model: expected the outputs of its source, found %s", ort_answer);
}

/* Two models that differ in their weights only. */
static void unequal_weights(void) {
    ort_spec spec;
    if (!open_ep()) {
        give_up("%s", ort_text);
        return;
    }
    make_sources(MODEL_CHAIN, MODEL_OTHER);
    if (!join_in(in_folder("src/a.onnx"), in_folder("out/a_ctx.onnx"), false, false) ||
        !join_in(in_folder("src/b.onnx"), in_folder("out/b_ctx.onnx"), true, false)) {
        give_up("%s", ort_text);
        return;
    }
    judging("EPC-128", "two models with other weights in one binary");
    spec = spec_of(in_folder("out/a_ctx.onnx"));
    judge("EPC-128 EPC-143", runs_as(&spec, in_folder("src/a.onnx")), "the first model: %s",
          ort_answer);
    spec = spec_of(in_folder("out/b_ctx.onnx"));
    judge("EPC-128 EPC-143", runs_as(&spec, in_folder("src/b.onnx")), "the second model: %s",
          ort_answer);
}

enum {
    FOR_SHARING =
        NEEDS_DEVICE | NEEDS_CLAIM | NEEDS_CONTEXTS | NEEDS_FILES | NEEDS_SHARING | NEEDS_RUNS
};

const experiment sharing_experiments[] = {
    {"does it share?", sharing_probe,
     FINDS_FACTS | NEEDS_DEVICE | NEEDS_CLAIM | NEEDS_CONTEXTS | NEEDS_FILES, "EPC-125 EPC-140"},
    {"files of a group", group_files, FOR_SHARING,
     "EPC-077 EPC-129 EPC-131 EPC-132 EPC-136 EPC-137 EPC-138 EPC-139 EPC-140 EPC-141 EPC-142 "
     "EPC-143 EPC-146 EPC-147 EPC-148"},
    {"shared weights", shared_weights, FOR_SHARING, "EPC-124 EPC-126 EPC-127"},
    {"other weights", unequal_weights, FOR_SHARING, "EPC-128 EPC-143"},
    {"groups after each other", groups, FOR_SHARING, "EPC-130 EPC-135 EPC-144 EPC-145 EPC-151"},
    {"refusals of groups", refusals, FOR_SHARING, "EPC-149 EPC-150"},
    {"shared loading", load_shared, FOR_SHARING,
     "EPC-122 EPC-143 EPC-159 EPC-160 EPC-161 EPC-162 EPC-163 EPC-164 EPC-165 EPC-167 EPC-168 "
     "EPC-169"},
    {"one model three times", taken, FOR_SHARING, "EPC-166 EPC-168"},
    {"loading without sharing", load_apart, FOR_SHARING, "EPC-053 EPC-158 EPC-167"},
    {"several nodes of a group", several_nodes, FOR_SHARING | NEEDS_FOREIGN, "EPC-133"},
    {NULL, NULL, 0, NULL},
};
