/* sharing.c - N models, one binary: ep.share_ep_contexts and ep.stop_share_ep_contexts. */
#define _GNU_SOURCE
#include "conformance.h"

#include <sys/stat.h>

static const char *const share_only[] = {"ep.share_ep_contexts", "1", NULL};

/* A session of the group; `folder`: of the context model. */
static bool join_in(trial *t, const char *source, const char *context, bool last, bool embed) {
    const char *more[] = {"ep.context_file_path",
                          context,
                          "ep.share_ep_contexts",
                          "1",
                          "ep.context_embed_mode",
                          embed ? "1" : "0",
                          last ? "ep.stop_share_ep_contexts" : NULL,
                          "1",
                          NULL};
    return generate_by_options(t, source, more);
}

static void make_sources(trial *t, model_kind first, model_kind second) {
    make_model(t, first, in_folder(t, "src/a.onnx"));
    make_model(t, second, in_folder(t, "src/b.onnx"));
    make_model(t, MODEL_SUB, in_folder(t, "src/c.onnx"));
}

/* out/a_ctx.onnx, out/b_ctx.onnx, out/a_*.bin. */
static bool make_group(trial *t) {
    make_sources(t, *t->board->ep.weighted ? MODEL_WEIGHTS : MODEL_CHAIN,
                 *t->board->ep.weighted ? MODEL_PAIR : MODEL_OTHER);
    return join_in(t, in_folder(t, "src/a.onnx"), in_folder(t, "out/a_ctx.onnx"), false, false) &&
           join_in(t, in_folder(t, "src/b.onnx"), in_folder(t, "out/b_ctx.onnx"), true, false);
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
static void sharing_probe(trial *t) {
    char a[PATH_MAX], b[PATH_MAX];
    if (!open_ep(t)) {
        give_up(t, "%s", ort_text);
        return;
    }
    judging(t, "EPC-125", "two sessions that share their contexts");
    if (!make_group(t)) {
        does_not_apply(t, "EPC-125", "no sharing: %s", t->answer);
        return;
    }
    if (!binary_of("out/a_ctx.onnx", "out", a, sizeof a) ||
        !binary_of("out/b_ctx.onnx", "out", b, sizeof b)) {
        does_not_apply(t, "EPC-125", "no sharing: nodes name no binary");
        return;
    }
    judge(t, "EPC-140", file_exists(a) && file_exists(b),
          "the group is complete, and '%s' that a node names is not there", file_exists(a) ? b : a);
    t->board->ep.shares = strcmp(a, b) == 0;
    if (t->board->ep.shares)
        holds(t, "EPC-125");
    else
        does_not_apply(t, "EPC-125", "no sharing: two models have two binaries");
}

static bool begins_with(const char *path, const char *name) {
    const char *slash = strrchr(path, '/');
    return strncmp(slash ? slash + 1 : path, name, strlen(name)) == 0;
}

static void group_files(trial *t) {
    char names[64][256], a[PATH_MAX], b[PATH_MAX];
    struct stat model, binary;
    if (!open_ep(t)) {
        give_up(t, "%s", ort_text);
        return;
    }
    make_sources(t, MODEL_CHAIN, MODEL_OTHER);
    judging(t, "EPC-129", "the first session of a group");
    if (!judge(t, "EPC-129 EPC-131 EPC-138",
               join_in(t, in_folder(t, "src/a.onnx"), in_folder(t, "out/a_ctx.onnx"), false, false),
               "the first session of a group: expected success, found %s", t->answer))
        return;
    judge(t, "EPC-139 EPC-141", file_exists("out/a_ctx.onnx"),
          "the first session of a group wrote no context model");
    judge(t, "EPC-142 EPC-141", count_binaries("out") == 0,
          "the first session of a group, not the last, wrote a binary");
    judging(t, "EPC-132", "the last session of a group");
    if (!judge(t, "EPC-132 EPC-148",
               join_in(t, in_folder(t, "src/b.onnx"), in_folder(t, "out/b_ctx.onnx"), true, false),
               "the last session of a group: expected success, found %s", t->answer))
        return;
    judge(t, "EPC-142 EPC-132", count_binaries("out") >= 1,
          "the last session of a group wrote no binary");
    judge(t, "EPC-146 EPC-139", list_files("out", names, 64) == 3,
          "two models of a group gave %zu files, expected 3", list_files("out", names, 64));
    if (!judge(t, "EPC-140",
               binary_of("out/a_ctx.onnx", "out", a, sizeof a) &&
                   binary_of("out/b_ctx.onnx", "out", b, sizeof b),
               "a node of the group names no binary"))
        return;
    judge(t, "EPC-140 EPC-136", strcmp(a, b) == 0, "the nodes of a group name '%s' and '%s'", a, b);
    judge(t, "EPC-143 EPC-077", file_exists(a), "'%s' is not there", a);
    if (begins_with(a, "a_") && strlen(a) > 4 && strcmp(a + strlen(a) - 4, ".bin") == 0)
        holds(t, "EPC-137 EPC-147 EPC-136");
    else
        remark(t, "EPC-137 EPC-147 EPC-136", "the binary is '%s', the document says a_[ep].bin", a);
    if (stat("out/a_ctx.onnx", &model) == 0 && stat(a, &binary) == 0) holds(t, "EPC-141");
}

/* Two models with the same weight under different names, and two with different ones. */
static void shared_weights(trial *t) {
    char together[PATH_MAX], one[PATH_MAX];
    size_t both, alone;
    if (!*t->board->ep.weighted) {
        give_up(t, "the EP claims no operator with weights");
        return;
    }
    if (!open_ep(t) || !make_group(t) ||
        !binary_of("out/b_ctx.onnx", "out", together, sizeof together)) {
        give_up(t, "%s", ort_text);
        return;
    }
    both = file_size(together);
    make_folder("alone");
    if (!generate(t, in_folder(t, "src/a.onnx"), in_folder(t, "alone/a_ctx.onnx"), false) ||
        !binary_of("alone/a_ctx.onnx", "alone", one, sizeof one)) {
        give_up(t, "%s", ort_text);
        return;
    }
    alone = file_size(one);
    if (both < 2 * alone) {
        holds(t, "EPC-124 EPC-126 EPC-127");
    } else {
        remark(t, "EPC-124 EPC-126 EPC-127",
               "two models with one weight have a binary of %zu bytes, one alone %zu: it is stored "
               "twice",
               both, alone);
    }
}

/* The next group after the last session, and a group of one. */
static void groups(trial *t) {
    char first[PATH_MAX], second[PATH_MAX];
    ort_spec spec;
    if (!open_ep(t) || !make_group(t)) {
        give_up(t, "%s", ort_text);
        return;
    }
    make_folder("next");
    make_model(t, MODEL_OTHER, in_folder(t, "src/n.onnx"));
    judging(t, "EPC-145", "a group after a group");
    if (!judge(t, "EPC-145 EPC-135 EPC-144 EPC-151",
               join_in(t, in_folder(t, "src/n.onnx"), in_folder(t, "next/n_ctx.onnx"), true, false),
               "a group of one after another group: expected success, found %s", t->answer))
        return;
    judge(t, "EPC-151", count_binaries("next") == 1,
          "a group of one wrote %zu binaries, expected 1", count_binaries("next"));
    if (!judge(t, "EPC-145",
               binary_of("next/n_ctx.onnx", "next", second, sizeof second) &&
                   binary_of("out/a_ctx.onnx", "out", first, sizeof first),
               "a node names no binary"))
        return;
    judge(t, "EPC-145 EPC-144", strcmp(strrchr(first, '/'), strrchr(second, '/')) != 0,
          "the second group has the binary of the first: '%s'", second);
    judge(t, "EPC-144 EPC-130", file_exists(second),
          "the binary of the second group, '%s', is not there", second);
    spec = spec_of(t, in_folder(t, "next/n_ctx.onnx"));
    judging(t, "EPC-130", "a context model of the second group");
    judge(t, "EPC-130 EPC-144", runs_as(&spec, in_folder(t, "src/n.onnx")),
          "a context model of the second group: expected the outputs of its source, found %s",
          t->answer);
}

static void refusals(trial *t) {
    if (!open_ep(t)) {
        give_up(t, "%s", ort_text);
        return;
    }
    make_sources(t, MODEL_CHAIN, MODEL_OTHER);
    judging(t, "EPC-149", "sharing with embed mode 1");
    if (join_in(t, in_folder(t, "src/a.onnx"), in_folder(t, "out/e_ctx.onnx"), true, true))
        remark(t, "EPC-149", "sharing with embed mode 1 is accepted");
    else
        judge(t, "EPC-149", *ort_text != '\0', "a refusal without a text");
    make_folder("elsewhere");
    judging(t, "EPC-150", "a group with two folders");
    if (join_in(t, in_folder(t, "src/a.onnx"), in_folder(t, "out/a_ctx.onnx"), false, false) &&
        join_in(t, in_folder(t, "src/b.onnx"), in_folder(t, "elsewhere/b_ctx.onnx"), true, false)) {
        remark(t, "EPC-150",
               "context models of one group may be in two folders, one of which has no "
               "binary");
    } else {
        judge(t, "EPC-150", *ort_text != '\0', "a refusal without a text");
    }
}

/* ------------------------------------------------------------------ loading */

static ort_spec shared_spec(trial *t, const char *path) {
    ort_spec spec = spec_of(t, path);
    spec.config = share_only;
    return spec;
}

static void load_shared(trial *t) {
    OrtSession *first = NULL, *second = NULL;
    char binary[PATH_MAX];
    ort_spec spec;
    if (!open_ep(t) || !make_group(t) ||
        !binary_of("out/a_ctx.onnx", "out", binary, sizeof binary)) {
        give_up(t, "%s", ort_text);
        return;
    }
    spec = shared_spec(t, in_folder(t, "out/a_ctx.onnx"));
    judging(t, "EPC-160", "the first session of two that share");
    if (!judge(t, "EPC-159 EPC-160 EPC-122 EPC-161", ort_session(&spec, &first),
               "the first session of two that share: expected success, found %s", t->answer))
        return;
    judge(t, "EPC-162 EPC-161", equals_cpu(t, first, in_folder(t, "src/a.onnx"), 1),
          "the first session: %s", ort_text);
    remove(binary);
    spec = shared_spec(t, in_folder(t, "out/b_ctx.onnx"));
    judging(t, "EPC-165", "the second session, the binary being deleted");
    t->board->beside = several_sessions;
    if (!judge(t, "EPC-163 EPC-164 EPC-165 EPC-143", ort_session(&spec, &second),
               "the second session of two that share, the binary being deleted: expected success, "
               "found %s",
               t->answer))
        return;
    judging(t, "EPC-169", "runs of both");
    judge(t, "EPC-164 EPC-161", equals_cpu(t, second, in_folder(t, "src/b.onnx"), 1),
          "the second session: %s", ort_text);
    judge(t, "EPC-169",
          equals_cpu(t, first, in_folder(t, "src/a.onnx"), 2) &&
              equals_cpu(t, second, in_folder(t, "src/b.onnx"), 2),
          "both sessions at once: %s", ort_text);
    judging(t, "EPC-168", "a run after the first session's end");
    ort->ReleaseSession(first);
    judge(t, "EPC-167 EPC-168", equals_cpu(t, second, in_folder(t, "src/b.onnx"), 3),
          "the second session after the first one's end: %s", ort_text);
    ort->ReleaseSession(second);
}

/* Three sessions of one model that share: the first takes the graph, the others load for
 * themselves, or are refused; none gives wrong outputs. */
static void taken(trial *t) {
    OrtSession *sessions[3] = {NULL, NULL, NULL};
    ort_spec spec;
    int i;
    if (!open_ep(t) || !make_group(t)) {
        give_up(t, "%s", ort_text);
        return;
    }
    for (i = 0; i < 3; i++) {
        if (i == 1) t->board->beside = several_sessions;
        spec = shared_spec(t, in_folder(t, "out/a_ctx.onnx"));
        judging(t, "EPC-166", "session %d of one model, sharing", i + 1);
        if (!ort_session(&spec, &sessions[i])) {
            judge(t, "EPC-166", i > 0, "the first session: %s", t->answer);
            continue;
        }
        judge(t, "EPC-166", equals_cpu(t, sessions[i], in_folder(t, "src/a.onnx"), (uint32_t)i),
              "session %d of one model, sharing: %s", i + 1, ort_text);
    }
    for (i = 0; i < 3; i++) {
        if (!sessions[i]) continue;
        judge(t, "EPC-166 EPC-168", equals_cpu(t, sessions[i], in_folder(t, "src/a.onnx"), 7),
              "session %d after the end of %d: %s", i + 1, i, ort_text);
        ort->ReleaseSession(sessions[i]);
    }
}

static void load_apart(trial *t) {
    OrtSession *sessions[2] = {NULL, NULL};
    ort_spec spec;
    if (!open_ep(t) || !make_group(t)) {
        give_up(t, "%s", ort_text);
        return;
    }
    judging(t, "EPC-158", "sessions without ep.share_ep_contexts");
    spec = spec_of(t, in_folder(t, "out/b_ctx.onnx"));
    judge(t, "EPC-158 EPC-053",
          ort_session(&spec, &sessions[0]) &&
              equals_cpu(t, sessions[0], in_folder(t, "src/b.onnx"), 1),
          "a session of a shared binary without ep.share_ep_contexts: %s", t->answer);
    spec = spec_of(t, in_folder(t, "out/a_ctx.onnx"));
    judge(t, "EPC-158 EPC-053",
          ort_session(&spec, &sessions[1]) &&
              equals_cpu(t, sessions[1], in_folder(t, "src/a.onnx"), 1),
          "another one: %s", t->answer);
    judging(t, "EPC-167", "the end of sessions in reverse order");
    t->board->beside = several_sessions;
    if (sessions[1]) ort->ReleaseSession(sessions[1]);
    judge(t, "EPC-167", sessions[0] && equals_cpu(t, sessions[0], in_folder(t, "src/b.onnx"), 2),
          "the first session after the second one's end: %s", ort_text);
    if (sessions[0]) ort->ReleaseSession(sessions[0]);
}

static void several_nodes(trial *t) {
    ort_spec spec;
    if (!open_ep(t) || !make_model(t, MODEL_ISLAND, in_folder(t, "src/a.onnx")) ||
        !make_model(t, MODEL_CHAIN, in_folder(t, "src/b.onnx"))) {
        give_up(t, "%s", ort_text);
        return;
    }
    judging(t, "EPC-133", "a group with a model of several partitions");
    if (!judge(
            t, "EPC-133",
            join_in(t, in_folder(t, "src/a.onnx"), in_folder(t, "out/a_ctx.onnx"), false, false) &&
                join_in(t, in_folder(t, "src/b.onnx"), in_folder(t, "out/b_ctx.onnx"), true, false),
            "a group with a model of several partitions: %s", t->answer))
        return;
    spec = shared_spec(t, in_folder(t, "out/a_ctx.onnx"));
    judge(t, "EPC-133", runs_as(&spec, in_folder(t, "src/a.onnx")),
          "its context model: expected the outputs of its source, found %s", t->answer);
}

/* Two models that differ in their weights only. */
static void unequal_weights(trial *t) {
    ort_spec spec;
    if (!open_ep(t)) {
        give_up(t, "%s", ort_text);
        return;
    }
    make_sources(t, MODEL_CHAIN, MODEL_OTHER);
    if (!join_in(t, in_folder(t, "src/a.onnx"), in_folder(t, "out/a_ctx.onnx"), false, false) ||
        !join_in(t, in_folder(t, "src/b.onnx"), in_folder(t, "out/b_ctx.onnx"), true, false)) {
        give_up(t, "%s", ort_text);
        return;
    }
    judging(t, "EPC-128", "two models with other weights in one binary");
    spec = spec_of(t, in_folder(t, "out/a_ctx.onnx"));
    judge(t, "EPC-128 EPC-143", runs_as(&spec, in_folder(t, "src/a.onnx")), "the first model: %s",
          t->answer);
    spec = spec_of(t, in_folder(t, "out/b_ctx.onnx"));
    judge(t, "EPC-128 EPC-143", runs_as(&spec, in_folder(t, "src/b.onnx")), "the second model: %s",
          t->answer);
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
    {"several nodes of a group", several_nodes, FOR_SHARING | NEEDS_PARTS, "EPC-133"},
    {NULL, NULL, 0, NULL},
};
