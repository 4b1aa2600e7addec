/*
 * Weight sharing in the unmodified ONNX Runtime: sessions with ep.share_ep_contexts=1 generate a
 * group of context models over one binary, and load them again, so that the binary is opened once.
 * With arguments it is what test_plugin_share.sh drives:
 *
 *     --generate MODEL...        one session each, the last with ep.stop_share_ep_contexts=1
 *     --compile MODEL...         the same through OrtCompileApi, which replaces what is there
 *     --judge CTX MODEL OTHER    what a crash left: does it run as one of the models or not at all?
 *     --load CTX MODEL [...]     sessions side by side over one binary, which goes after the first
 *                                one; outputs as those of ORT's CPU EP on MODEL
 */
#define _GNU_SOURCE 1
#include <pthread.h>
#if !defined(_WIN32)
#include <sys/inotify.h>
#endif

#include "ort/ort_test.h"

static const char *const share[] = {"ep.share_ep_contexts", "1", NULL};
static const char *const join[] = {"ep.context_enable", "1", "ep.share_ep_contexts", "1", NULL};
static const char *const finish[] = {
    "ep.context_enable", "1", "ep.share_ep_contexts", "1", "ep.stop_share_ep_contexts", "1", NULL};

/* ------------------------------------------------------------------- helpers */

/* y = relu((x + w) * v): one partition; `v` is the same in every model, `w` begins with `start`. */
static bool make_plain(const char *name, float start) {
    onnx_model m;
    float w[6];
    onnx_begin(&m);
    onnx_input(&m.graph, "x", 2, dims23);
    weights(w, start);
    onnx_floats(&m.graph, "w", 2, dims23, w);
    weights(w, 2);
    onnx_floats(&m.graph, "v", 2, dims23, w);
    onnx_node(&m.graph, "Add", "", "add", "x,w", "a", NULL);
    onnx_node(&m.graph, "Mul", "", "mul", "a,v", "b", NULL);
    onnx_node(&m.graph, "Relu", "", "relu", "b", "y", NULL);
    onnx_output(&m.graph, "y", 2, dims23);
    return save_model(name, &m);
}

/* a.onnx, b.onnx (three partitions and CPU nodes) and c.onnx. */
static bool make_sources(void) {
    return make_plain("a.onnx", 1) && make_three("b.onnx") && make_plain("c.onnx", -2);
}

static const char *const sources[] = {"a.onnx", "b.onnx", "c.onnx"};
static const char *const contexts[] = {"a_ctx.onnx", "b_ctx.onnx", "c_ctx.onnx"};

static bool generate_session(const char *model, const char *const *config) {
    ort_spec spec = spec_of(in_folder(model));
    spec.config = config;
    spec.allow_cpu = true;
    return make_session(&spec);
}

/* The sources become context models over a binary named after the first. */
static bool make_group(size_t count) {
    size_t i;
    bool ok = make_sources();
    for (i = 0; ok && i < count; i++)
        ok = generate_session(sources[i], i + 1 < count ? join : finish);
    return ok;
}

static bool open_session(const char *model, OrtSession **out) {
    ort_spec spec = spec_of(in_folder(model));
    spec.config = share;
    spec.allow_cpu = true;
    return ort_session(&spec, out);
}

/* Outputs of a session are those of the CPU on `model`, and our EP made them. */
static bool runs_as(OrtSession *session, const char *model) {
    ort_values got = {0};
    bool ok;
    ok = ort_run(session, 7, &got) && as_on_cpu(model, &got);
    if (ok && (ort_assigned(session, ep->ep) == 0 || ort_assigned(session, ep->ep) == SIZE_MAX)) {
        snprintf(ort_text, sizeof ort_text, "no node ran on %s", ep->ep);
        ok = false;
    }
    if (got.count) {
        char text[sizeof ort_text];
        memcpy(text, ort_text, sizeof text);
        ort_values_free(&got);
        memcpy(ort_text, text, sizeof text);
    }
    return ok;
}

/* Every context of the group, loaded alone, without and with sharing. */
static bool all_run(size_t count) {
    size_t i;
    bool ok = true;
    for (i = 0; ok && i < 2 * count; i++) {
        ort_spec spec = spec_of(in_folder(contexts[i / 2]));
        spec.allow_cpu = true;
        spec.config = i % 2 ? share : NULL;
        ok = check_run(&spec, in_folder(sources[i / 2])) == (i / 2 == 1 ? 3 : 1);
    }
    return ok;
}

#if defined(_WIN32)

/* Nothing there tells that a file is opened: what a case sees otherwise has to do. */
typedef struct watch {
    int opens;
} watch;

static bool watch_begin(watch *w, const char *path) {
    w->opens = -1;
    return windows_access(path) == 0;
}

static bool watch_opened(watch *w, int times) {
    (void)w, (void)times;
    return true;
}

static void watch_end(watch *w) {
    (void)w;
}

#else

/* Tells whether a file is opened, by whomever. The system merges equal events that nobody has read:
 * it is read after each step. (test_plugin_share.sh counts with strace.) */
typedef struct watch {
    int handle;
    int opens;
} watch;

static bool watch_begin(watch *w, const char *path) {
    w->opens = 0;
    w->handle = inotify_init1(IN_NONBLOCK);
    return w->handle >= 0 && inotify_add_watch(w->handle, path, IN_OPEN) >= 0;
}

static int watch_opens(watch *w) {
    union {
        struct inotify_event event;
        char bytes[4096];
    } buffer;
    ssize_t size;
    while ((size = read(w->handle, &buffer, sizeof buffer)) > 0) {
        ssize_t at = 0;
        while (at < size) {
            struct inotify_event event;
            memcpy(&event, buffer.bytes + at, sizeof event);
            w->opens += (event.mask & IN_OPEN) != 0;
            at += (ssize_t)(sizeof event + event.len);
        }
    }
    return w->opens;
}

static void watch_end(watch *w) {
    close(w->handle);
}

static bool watch_opened(watch *w, int times) {
    return watch_opens(w) == times;
}

#endif

/* ---------------------------------------------------------------- generating */

TEST(generate_group) {
    size_t count, i, k;
    for (count = 1; count <= 3; count++) {
        clear_folder();
        CHECK_TRUE(make_sources());
        for (i = 0; i < count; i++) {
            CHECK(!exists(binary_name("a")), "the binary is there before session %zu", i);
            CHECK_ORT(generate_session(sources[i], i + 1 < count ? join : finish));
            CHECK(exists(contexts[i]), "expected %s", contexts[i]);
        }
        /* N models, N + 1 files. */
        CHECK_INT(count_files(), 3 + count + 1);
        CHECK(exists(binary_name("a")), "expected %s", binary_name("a"));
        for (i = 0; i < count; i++) {
            ort_contexts n;
            CHECK(ort_read_contexts(in_folder(contexts[i]), &n), "%s", ort_text);
            CHECK_INT(n.count, i == 1 ? 3 : 1);
            for (k = 0; k < n.count; k++) {
                CHECK_INT(n.list[k].embed_mode, 0);
                CHECK_INT(n.list[k].main_context, k == 0);
                CHECK_INT(epctx_str_is(n.list[k].ep_cache_context, binary_name("a")), k == 0);
                CHECK_TRUE(epctx_str_is(n.list[k].source, ep->ep));
                CHECK_TRUE(epctx_str_is(n.list[k].onnx_model_filename, sources[i]));
                CHECK_TRUE(epctx_notes_hash(n.list[k].notes) != 0);
            }
            epctx_model_close(&n.model);
        }
        CHECK(all_run(count), "%zu models: %s", count, ort_text);
    }
}

enum { SIDE = 64, COUNT = SIDE * SIDE };

/* y = last(x + w), where w may be quantized: then a node computes it. */
static bool make_common(const char *name, const char *last, bool quantized) {
    static float w[COUNT];
    static int8_t q[COUNT];
    const int64_t dims[2] = {SIDE, SIDE};
    const float scale = 0.25f;
    onnx_model m;
    int k;
    for (k = 0; k < COUNT; k++) {
        w[k] = (float)(k % 1001) / 16;
        q[k] = (int8_t)(k % 251 - 125);
    }
    onnx_begin(&m);
    onnx_input(&m.graph, "x", 2, dims);
    if (quantized) {
        const int8_t zero = 0;
        onnx_tensor(&m.graph, "q", ONNX_INT8, 2, dims, q, sizeof q);
        onnx_floats(&m.graph, "scale", 0, NULL, &scale);
        onnx_tensor(&m.graph, "zero", ONNX_INT8, 0, NULL, &zero, 1);
        onnx_node(&m.graph, "DequantizeLinear", "", "dequantize", "q,scale,zero", "w", NULL);
    } else {
        onnx_floats(&m.graph, "w", 2, dims, w);
    }
    onnx_node(&m.graph, "Add", "", "add", "x,w", "a", NULL);
    onnx_node(&m.graph, last, "", "last", "a", "y", NULL);
    onnx_output(&m.graph, "y", 2, dims);
    return save_model(name, &m);
}

/* Weights that two models have in common are stored once, also when a node of each computes them:
 * it belongs to the partition. (The toy has no DequantizeLinear.) */
TEST(binary_holds_weights_once) {
    size_t size[2];
    int quantized;
    for (quantized = 0; quantized <= (strcmp(ep->label, "npu") == 0); quantized++) {
        clear_folder();
        CHECK_TRUE(make_common("a.onnx", "Neg", quantized) &&
                   make_common("b.onnx", "Relu", quantized));
        CHECK_ORT(generate_session("a.onnx", finish));
        free(slurp(binary_name("a"), &size[0]));
        remove(in_folder("a_ctx.onnx"));
        CHECK_ORT(generate_session("a.onnx", join));
        CHECK_ORT(generate_session("b.onnx", finish));
        free(slurp(binary_name("a"), &size[1]));
        CHECK(size[0] > COUNT, "a binary of %zu bytes cannot hold %d weights", size[0], COUNT);
        CHECK(size[1] * 20 <= size[0] * 21, "%zu bytes for two models, %zu for one", size[1],
              size[0]);
    }
}

/* The session that only compiles says so when somebody runs it. */
TEST(compiling_session_does_not_run) {
    ort_spec spec = spec_of(in_folder("a.onnx"));
    OrtSession *session = NULL;
    ort_values out;
    bool ran;
    CHECK_TRUE(make_sources());
    spec.config = finish;
    CHECK_ORT(ort_session(&spec, &session));
    ran = ort_run(session, 7, &out);
    ort->ReleaseSession(session);
    CHECK(!ran, "expected a refusal");
    CHECK_HAS(ort_text, "load the context model to run it");
}

/* The group through OrtCompileApi, into another folder. */
TEST(generate_by_compile_api) {
    char binary[2][160];
    size_t i;
    CHECK_TRUE(make_sources());
    mkdir(in_folder("out"), 0777);
    for (i = 0; i < 3; i++) {
        ort_spec spec = spec_of(in_folder(sources[i]));
        ort_output out;
        char path[64];
        snprintf(path, sizeof path, "out/%s", contexts[i]);
        memset(&out, 0, sizeof out);
        out.path = in_folder(path);
        spec.config = i < 2 ? share : finish;
        spec.allow_cpu = true;
        CHECK_ORT(ort_compile_model(&spec, &out));
    }
    CHECK_INT(count_files(), 4);
    for (i = 0; i < 3; i++) {
        char path[64];
        ort_spec spec;
        snprintf(path, sizeof path, "out/%s", contexts[i]);
        spec = spec_of(in_folder(path));
        spec.allow_cpu = true;
        CHECK(check_run(&spec, in_folder(sources[i])) > 0, "%s: %s", path, ort_text);
    }
    snprintf(binary[0], sizeof binary[0], "out/%s", binary_name("a"));
    snprintf(binary[1], sizeof binary[1], "out/%s", binary_name("a_ctx"));
    CHECK(exists(binary[0]) || exists(binary[1]), "expected %s or %s", binary[0], binary[1]);
}

/* A session fails at every place of a group: ORT refuses to overwrite its model after the EP has
 * compiled it. The others go on, and it may try again. */
TEST(generating_session_fails) {
    size_t bad, i;
    int again;
    for (bad = 0; bad < 3; bad++) {
        for (again = 0; again < 2; again++) {
            const char *first = bad == 0 && !again ? "b" : "a";
            clear_folder();
            CHECK_TRUE(make_sources());
            CHECK_TRUE(save(contexts[bad], "x", 1));
            for (i = 0; i < 3; i++) {
                const bool ok = generate_session(sources[i], i < 2 ? join : finish);
                CHECK(ok == (i != bad), "session %zu of the group where %zu fails: %s", i, bad,
                      ort_text);
                if (ok) continue;
                CHECK_HAS(ort_text, "exists already");
                CHECK(!exists(binary_name("a")), "a failed session wrote the binary");
                remove(in_folder(contexts[bad]));
                if (again || bad == 2)
                    CHECK_ORT(generate_session(sources[i], i < 2 ? join : finish));
            }
            CHECK(exists(binary_name(first)), "bad %zu: expected %s", bad, binary_name(first));
            CHECK_INT(count_files(), 3 + 3 + 1 - (!again && bad < 2));
            for (i = 0; i < 3; i++) {
                ort_spec spec = spec_of(in_folder(contexts[i]));
                if (i == bad && !again && bad < 2) continue;
                spec.allow_cpu = true;
                CHECK(check_run(&spec, in_folder(sources[i])) > 0, "%s", ort_text);
            }
        }
    }
}

static bool reregister(void) {
    return ort_ok(ort->UnregisterExecutionProviderLibrary(ort_env, ep->label)) &&
           register_library(ep->label, ep->library);
}

/* ORT fails after the EP has compiled: the session leaves the group, which is empty again. */
TEST(model_not_written) {
    static const char *const nowhere[] = {"ep.context_enable",
                                          "1",
                                          "ep.share_ep_contexts",
                                          "1",
                                          "ep.context_model_external_initializers_file_name",
                                          "cpu.bin",
                                          NULL};
    ort_spec spec = spec_of(in_folder("b_ctx.onnx"));
    CHECK_TRUE(make_sources());
    mkdir(in_folder("cpu.bin"), 0777); /* no file can be made there */
    CHECK(!generate_session("b.onnx", nowhere), "expected ORT to fail");
    CHECK_HAS(ort_text, "cpu.bin");
    remove(in_folder("b_ctx.onnx"));
    if (ort_version < 27) { /* does not tell that the session failed: it is in the group */
        CHECK(!generate_session("b.onnx", finish), "expected the path to be taken");
        CHECK_ORT(reregister());
    }
    CHECK_ORT(generate_session("c.onnx", join));
    CHECK_ORT(generate_session("b.onnx", finish));
    CHECK(exists(binary_name("c")) && !exists(binary_name("b")), "expected a group of its own");
    spec.allow_cpu = true;
    CHECK(check_run(&spec, in_folder("b.onnx")) == 3, "%s", ort_text);
}

/* The last session never comes: nothing of the binary is written, the models say what is missing,
 * and the next group is a new one. */
TEST(no_last_session) {
    ort_spec spec = spec_of(in_folder("a_ctx.onnx"));
    int with_share;
    CHECK_TRUE(make_sources());
    CHECK_ORT(generate_session("a.onnx", join));
    CHECK_ORT(generate_session("b.onnx", join));
    CHECK_ORT(reregister());
    CHECK_INT(count_files(), 5);
    for (with_share = 0; with_share < 2; with_share++) {
        spec.config = with_share ? share : NULL;
        CHECK_ORT_FAILS(make_session(&spec), ORT_INVALID_GRAPH, binary_name("a"));
        /* Advice on sharing is for those who share. */
        CHECK((strstr(ort_text, "ep.stop_share_ep_contexts=1") != NULL) == with_share, "%s",
              ort_text);
    }
    CHECK_ORT(generate_session("c.onnx", finish));
    CHECK(exists(binary_name("c")) && !exists(binary_name("a")), "expected a group of its own");
    CHECK_INT(count_files(), 7);
}

/* A group that has no last session, in a folder that is left: it ends with its models. */
TEST(abandoned_group) {
    const char *const elsewhere[] = {"ep.context_enable",
                                     "1",
                                     "ep.share_ep_contexts",
                                     "1",
                                     "ep.stop_share_ep_contexts",
                                     "1",
                                     "ep.context_file_path",
                                     in_folder("out/c_ctx.onnx"),
                                     NULL};
    char binary[300];
    if (ort_version < 27) {
        printf("skip %s abandoned_group: ORT %s does not tell when a model is written\n", ep->label,
               ort_base->GetVersionString());
        return;
    }
    CHECK_TRUE(make_sources());
    mkdir(in_folder("out"), 0777);
    CHECK_ORT(generate_session("a.onnx", join));
    CHECK_ORT_FAILS(generate_session("c.onnx", elsewhere), ORT_INVALID_ARGUMENT,
                    "or delete its EPContext models");
    CHECK_INT(remove(in_folder("a_ctx.onnx")), 0);
    CHECK_ORT(generate_session("c.onnx", elsewhere));
    snprintf(binary, sizeof binary, "out/%s", binary_name("c"));
    CHECK_TRUE(exists(binary));
}

/* Two groups after each other, and a group over the files of an older one. */
TEST(groups_after_each_other) {
    ort_spec spec = spec_of(in_folder("a_ctx.onnx"));
    size_t i;
    CHECK_ORT(make_group(2));
    CHECK_ORT(generate_session("c.onnx", finish));
    CHECK_TRUE(exists(binary_name("a")) && exists(binary_name("c")));
    CHECK_INT(count_files(), 3 + 3 + 2);
    CHECK(all_run(3), "%s", ort_text);
    /* Another generation of the same names: its models never meet the old binary. */
    CHECK_TRUE(make_plain("a.onnx", 5) && make_plain("b.onnx", 6));
    for (i = 0; i < 2; i++) remove(in_folder(contexts[i]));
    CHECK_ORT(generate_session("a.onnx", join));
    CHECK_ORT_FAILS(make_session(&spec), ORT_INVALID_GRAPH, "");
    CHECK_ORT(generate_session("b.onnx", finish));
    CHECK_INT(check_run(&spec, in_folder("a.onnx")), 1);
}

TEST(group_refuses) {
    const char *const elsewhere[] = {
        "ep.context_enable",         "1", "ep.share_ep_contexts", "1", "ep.context_file_path",
        in_folder("out/b_ctx.onnx"), NULL};
    const char *const same[] = {
        "ep.context_enable",     "1", "ep.share_ep_contexts", "1", "ep.context_file_path",
        in_folder("a_ctx.onnx"), NULL};
    ort_spec spec = spec_of(in_folder("c.onnx"));
    CHECK_TRUE(make_sources());
    mkdir(in_folder("out"), 0777);
    CHECK_ORT(generate_session("a.onnx", join));
    spec.config = join;
    spec.options = ep->option;
    if (ep->option[0])
        CHECK_ORT_FAILS(make_session(&spec), ORT_INVALID_ARGUMENT, "other EP options");
    CHECK(!generate_session("b.onnx", elsewhere) && ort_code == ORT_INVALID_ARGUMENT,
          "expected another folder to be refused, found %d: %s", ort_code, ort_text);
    CHECK_HAS(ort_text, "the group's folder");
    CHECK(!generate_session("b.onnx", same), "expected the path of another session to be refused");
    /* The group stays usable. */
    CHECK_ORT(generate_session("b.onnx", join));
    CHECK_ORT(generate_session("c.onnx", finish));
    CHECK(all_run(3), "%s", ort_text);
    /* Nowhere to write: told by the first session, before anything is compiled. */
    clear_folder();
    CHECK_TRUE(make_sources());
    mkdir(in_folder(binary_name("a")), 0777);
    CHECK(!generate_session("a.onnx", join), "expected a folder in the binary's place to fail");
    CHECK_HAS(ort_text, "is a folder or a device");
    CHECK_ORT(generate_session("b.onnx", finish));
    CHECK_TRUE(exists(binary_name("b")));
}

/* Another model has nothing for us: as the last session it still ends the group. */
TEST(last_session_without_nodes) {
    onnx_model m;
    float w[6];
    size_t i;
    if (ort_version < 27) {
        printf("skip %s last_session_without_nodes: ORT %s does not tell when a session is made\n",
               ep->label, ort_base->GetVersionString());
        return;
    }
    CHECK_TRUE(make_sources());
    weights(w, 1);
    onnx_begin(&m);
    onnx_input(&m.graph, "x", 2, dims23);
    onnx_floats(&m.graph, "bias", 1, dims23 + 1, w);
    onnx_node(&m.graph, "BiasGelu", "com.microsoft", "cpu", "x,bias", "y", NULL);
    onnx_output(&m.graph, "y", 2, dims23);
    CHECK_TRUE(save_model("cpu.onnx", &m));
    CHECK_ORT(generate_session("a.onnx", join));
    CHECK_ORT(generate_session("b.onnx", join));
    CHECK_ORT(generate_session("cpu.onnx", finish));
    CHECK_TRUE(exists(binary_name("a")));
    for (i = 0; i < 2; i++) {
        ort_spec spec = spec_of(in_folder(contexts[i]));
        spec.allow_cpu = true;
        CHECK(check_run(&spec, in_folder(sources[i])) > 0, "%s", ort_text);
    }
}

/* ------------------------------------------------------------------- loading */

/* The first session opens the binary, the others do not even need it to be there. */
TEST(binary_opened_once) {
    OrtSession *sessions[3] = {NULL, NULL, NULL};
    watch w;
    size_t i;
    bool ok;
    char text[sizeof ort_text];
    CHECK_ORT(make_group(3));
    CHECK_TRUE(watch_begin(&w, in_folder(binary_name("a"))));
    ok = open_session(contexts[0], &sessions[0]) && watch_opened(&w, 1) &&
         open_session(contexts[1], &sessions[1]) && watch_opened(&w, 1) &&
         rename(in_folder(binary_name("a")), in_folder("away.bin")) == 0 &&
         open_session(contexts[2], &sessions[2]);
    for (i = 0; ok && i < 3; i++) ok = runs_as(sessions[i], in_folder(sources[i]));
    memcpy(text, ort_text, sizeof text);
    for (i = 3; i-- > 0;) /* the document's best practice: in reverse */
        if (sessions[i]) ort->ReleaseSession(sessions[i]);
    CHECK(ok, "opened %d times: %s", w.opens, text);
    CHECK(watch_opened(&w, 1), "opened %d times, expected once", w.opens);
    watch_end(&w);
    /* The workspace is empty again: without its binary no session can be first. */
    CHECK(!open_session(contexts[0], &sessions[0]), "the workspace kept the binary");
    if (sessions[0]) ort->ReleaseSession(sessions[0]);
}

/* The prefix of a session goes before the names of its graphs, in a group as without one. */
TEST(prefix) {
    const char *const config[] = {"ep.context_enable",
                                  "1",
                                  "ep.share_ep_contexts",
                                  "1",
                                  "ep.stop_share_ep_contexts",
                                  "1",
                                  "ep.context_node_name_prefix",
                                  "mine_",
                                  NULL};
    OrtSession *session = NULL;
    ort_contexts n;
    bool ok;
    CHECK_TRUE(make_sources());
    CHECK_ORT(generate_session("a.onnx", config));
    CHECK(ort_read_contexts(in_folder("a_ctx.onnx"), &n), "%s", ort_text);
    ok = n.count > 0 && n.list[0].partition_name.size > 5 &&
         memcmp(n.list[0].partition_name.data, "mine_", 5) == 0;
    epctx_model_close(&n.model);
    CHECK(ok, "expected a partition_name that begins with mine_");
    CHECK_ORT(open_session("a_ctx.onnx", &session));
    ok = runs_as(session, in_folder("a.onnx"));
    ort->ReleaseSession(session);
    CHECK(ok, "%s", ort_text);
}

/* The node says which graph by name and by hash: a name that stands for a graph of another
 * generation is refused, out of the binary and out of the workspace, with and without a context of
 * its own. */
TEST(graph_of_another_generation) {
    context_spec c, main_node;
    ort_contexts n[2];
    char partition[2][200], notes[2][200], file[200];
    size_t i;
    int kind, wrong;
    CHECK_ORT(make_group(3));
    for (i = 0; i < 2; i++) {
        CHECK(ort_read_contexts(in_folder(contexts[i ? 2 : 0]), &n[i]), "%s", ort_text);
        keep(partition[i], sizeof partition[i], n[i].list[0].partition_name);
        keep(notes[i], sizeof notes[i], n[i].list[0].notes);
        epctx_model_close(&n[i].model);
    }
    CHECK_TRUE(strlen(notes[1]) > 16);
    snprintf(file, sizeof file, "%s", binary_name("a"));
    /* The graph of c, 0: alone; 1: while another session has the binary; 2: for a node without a
     * context of its own, beside one of a. 3: as 0, in a session that does not share. */
    for (kind = 0; kind < 4; kind++) {
        for (wrong = 0; wrong < 4; wrong++) {
            OrtSession *sessions[2] = {NULL, NULL};
            onnx_model m;
            bool ok;
            int code;
            char hash[200], text[sizeof ort_text];
            snprintf(hash, sizeof hash, "%s", wrong == 3 ? notes[0] : notes[1]);
            /* One digit is another: the last one, or the first one. */
            if (wrong == 1) hash[strlen(hash) - 1] ^= 1;
            if (wrong == 2) hash[strlen(hash) - 16] ^= 1;
            onnx_begin(&m);
            onnx_input(&m.graph, "x", 2, dims23);
            main_node = context_of(file, partition[0]);
            main_node.embed_mode = 0;
            main_node.notes = notes[0];
            c = context_of(file, partition[1]);
            c.embed_mode = 0;
            c.notes = hash;
            if (kind == 2) {
                c.path = NULL;
                c.main_context = 0;
                add_context(&m, &main_node, "main", "x", "z");
                onnx_output(&m.graph, "z", 2, dims23);
            }
            add_context(&m, &c, "node", "x", "y");
            onnx_output(&m.graph, "y", 2, dims23);
            ok = save_model("hash.onnx", &m);
            ok = ok && (kind != 1 || open_session(contexts[0], &sessions[0]));
            CHECK(ok, "%s", ort_text);
            if (kind == 3) {
                ort_spec spec = spec_of(in_folder("hash.onnx"));
                ok = ort_session(&spec, &sessions[1]);
            } else {
                ok = open_session("hash.onnx", &sessions[1]);
            }
            code = ort_code;
            memcpy(text, ort_text, sizeof text);
            for (i = 0; i < 2; i++)
                if (sessions[i]) ort->ReleaseSession(sessions[i]);
            CHECK(ok == (wrong == 0) && (ok || code == ORT_INVALID_GRAPH),
                  "kind %d, wrong hash %d: %s, %d: %s", kind, wrong, ok ? "opened" : "refused",
                  code, text);
        }
    }
}

/* Sessions end in every order; those that are left go on running. */
TEST(any_order_of_release) {
    static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                     {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    OrtSession *first = NULL;
    size_t o, i, k;
    CHECK_ORT(make_group(3));
    for (o = 0; o < 6; o++) {
        OrtSession *sessions[3] = {NULL, NULL, NULL};
        bool ok = true;
        for (i = 0; ok && i < 3; i++) ok = open_session(contexts[i], &sessions[i]);
        for (i = 0; i < 3; i++) {
            const int gone = orders[o][i];
            if (sessions[gone]) ort->ReleaseSession(sessions[gone]);
            sessions[gone] = NULL;
            for (k = 0; ok && k < 3; k++)
                ok = !sessions[k] || runs_as(sessions[k], in_folder(sources[k]));
        }
        CHECK(ok, "order %zu: %s", o, ort_text);
    }
    /* What waits for other sessions is gone with the last one, too: its file is needed again. */
    CHECK_ORT(open_session(contexts[0], &first));
    ort->ReleaseSession(first);
    CHECK_TRUE(rename(in_folder(binary_name("a")), in_folder("away.bin")) == 0);
    first = NULL;
    CHECK(!open_session(contexts[1], &first), "the workspace kept a graph that nobody had taken");
    CHECK_INT(ort_code, ORT_INVALID_GRAPH);
}

/* Two sessions on one model: the second finds its graph taken and loads the binary for itself. */
TEST(same_model_twice) {
    OrtSession *sessions[2] = {NULL, NULL};
    watch w;
    bool ok;
    CHECK_ORT(make_group(2));
    CHECK_TRUE(watch_begin(&w, in_folder(binary_name("a"))));
    ok = open_session(contexts[0], &sessions[0]) && watch_opened(&w, 1) &&
         open_session(contexts[0], &sessions[1]) && watch_opened(&w, 2) &&
         runs_as(sessions[0], in_folder(sources[0])) && runs_as(sessions[1], in_folder(sources[0]));
    if (sessions[0]) ort->ReleaseSession(sessions[0]);
    if (ok) ok = runs_as(sessions[1], in_folder(sources[0]));
    if (sessions[1]) ort->ReleaseSession(sessions[1]);
    CHECK(ok, "opened %d times: %s", w.opens, ort_text);
    watch_end(&w);
}

/* A session takes a graph and then fails: the graph is there for the next one. */
TEST(graphs_come_back) {
    OrtSession *sessions[2] = {NULL, NULL};
    context_spec c;
    onnx_model m;
    ort_contexts n;
    char partition[200], name[200];
    bool failed, ok;
    char text[sizeof ort_text];
    CHECK_ORT(make_group(3));
    CHECK(ort_read_contexts(in_folder("c_ctx.onnx"), &n), "%s", ort_text);
    keep(partition, sizeof partition, n.list[0].partition_name);
    epctx_model_close(&n.model);
    snprintf(name, sizeof name, "%s", binary_name("a"));
    /* c's graph, and one that does not exist. */
    c = context_of(name, partition);
    c.embed_mode = 0;
    onnx_begin(&m);
    onnx_input(&m.graph, "x", 2, dims23);
    add_context(&m, &c, "good", "x", "y");
    c.partition = "no_such_graph";
    c.main_context = 0;
    c.path = NULL;
    add_context(&m, &c, "bad", "x", "z");
    onnx_output(&m.graph, "y", 2, dims23);
    onnx_output(&m.graph, "z", 2, dims23);
    CHECK_TRUE(save_model("half.onnx", &m));
    ok = open_session(contexts[0], &sessions[0]);
    failed = ok && !open_session("half.onnx", &sessions[1]) && ort_code == ORT_INVALID_GRAPH;
    memcpy(text, ort_text, sizeof text);
    if (failed) {
        rename(in_folder(name), in_folder("away.bin"));
        ok = open_session(contexts[2], &sessions[1]) && runs_as(sessions[1], in_folder(sources[2]));
    }
    if (sessions[1]) ort->ReleaseSession(sessions[1]);
    if (sessions[0]) ort->ReleaseSession(sessions[0]);
    CHECK(failed, "expected INVALID_GRAPH, found: %s", text);
    CHECK_HAS(text, "no_such_graph");
    CHECK(ok, "the graph did not come back: %s", ort_text);
}

/* A damaged binary and one of another generation are refused, and the workspace stays usable. */
TEST(bad_binaries) {
    OrtSession *session = NULL;
    uint8_t *binary;
    size_t size = 0, i;
    CHECK_ORT(make_group(2));
    binary = (uint8_t *)slurp(binary_name("a"), &size);
    CHECK_TRUE(binary && size > 40);
    for (i = 0; i < 16; i++) {
        bool opened;
        CHECK_TRUE(save(binary_name("a"), binary, size * i / 16));
        opened = open_session(contexts[i % 2], &session);
        if (opened) ort->ReleaseSession(session);
        CHECK(!opened && ort_code == ORT_INVALID_GRAPH,
              "%zu of %zu bytes: expected INVALID_GRAPH, found %d: %s", size * i / 16, size,
              ort_code, ort_text);
    }
    CHECK_TRUE(save(binary_name("a"), binary, size));
    free(binary);
    CHECK(all_run(2), "%s", ort_text);
}

/* --------------------------------------------------------------- out of memory */

/* A group of two, both loaded side by side and run; `ran`: everything went well. */
static bool whole_life(bool *ran) {
    OrtSession *sessions[2] = {NULL, NULL};
    int i;
    bool ok = true;
    *ran = false;
    for (i = 0; i < 2; i++) remove(in_folder(contexts[i]));
    remove(in_folder(binary_name("a")));
    remove(in_folder(binary_name("b"))); /* of a group whose first session failed */
    if (!register_library("oom", PLUGIN("toy_oom_ep"))) return false;
    for (i = 0; i < 2 && ok; i++) ok = generate_session(sources[i], i ? finish : join);
    for (i = 0; i < 2 && ok; i++)
        ok = exists(contexts[i]) && open_session(contexts[i], &sessions[i]);
    if (ok) {
        *ran =
            runs_as(sessions[0], in_folder("a.onnx")) && runs_as(sessions[1], in_folder("b.onnx"));
    }
    for (i = 0; i < 2; i++)
        if (sessions[i]) ort->ReleaseSession(sessions[i]);
    ort_ok(ort->UnregisterExecutionProviderLibrary(ort_env, "oom"));
    return ok;
}

/* Every allocation of the plugin fails once: an error or the CPU, no crash, no leak (under the
 * sanitizer), no half file. */
TEST(out_of_memory) {
    oom_library oom;
    bool more = true, ok = false, ran = false, tidy = true;
    long n;
    CHECK_TRUE(make_plain("a.onnx", 1) && make_plain("b.onnx", 2));
    CHECK_ORT(oom_open(&oom));
    for (n = 1; more && n < 10000; n++) {
        oom.arm(n);
        ok = whole_life(&ran);
        more = oom.fired();
        tidy = tidy && count_files() <= 5;
    }
    CHECK_ORT(oom_close(&oom));
    CHECK(!more && ok && ran, "expected the undisturbed round to work: %s", ort_text);
    CHECK_TRUE(tidy);
    CHECK(n > 60, "only %ld allocations", n);
}

/* ----------------------------------------------------------------- concurrency */

typedef struct worker {
    const OrtEpDevice *device;
    const char *path;
    const char *const *config;
    int times;
    char text[512];
} worker;

/* Not through the driver: its texts are shared. */
static void *work(void *argument) {
    worker *w = (worker *)argument;
    int i;
    for (i = 0; i < w->times && !*w->text; i++) {
        OrtSessionOptions *options = NULL;
        OrtSession *session = NULL;
        OrtStatus *status = ort->CreateSessionOptions(&options);
        size_t k;
        if (!status) status = ort->SetIntraOpNumThreads(options, 1);
        for (k = 0; !status && w->config[k]; k += 2)
            status = ort->AddSessionConfigEntry(options, w->config[k], w->config[k + 1]);
        if (!status) {
            status = ort->SessionOptionsAppendExecutionProvider_V2(options, ort_env, &w->device, 1,
                                                                   NULL, NULL, 0);
        }
        if (!status) status = ort->CreateSession(ort_env, ort_path(w->path), options, &session);
        if (status) {
            snprintf(w->text, sizeof w->text, "%s", ort->GetErrorMessage(status));
            ort->ReleaseStatus(status);
        }
        if (session) ort->ReleaseSession(session);
        if (options) ort->ReleaseSessionOptions(options);
    }
    return NULL;
}

static bool run_workers(worker *workers, size_t count) {
    pthread_t threads[8];
    size_t i;
    for (i = 0; i < count; i++) {
        workers[i].device = ort_device(ep->ep, OrtHardwareDeviceType_CPU);
        workers[i].text[0] = '\0';
        if (pthread_create(&threads[i], NULL, work, &workers[i]) != 0) exit(1);
    }
    for (i = 0; i < count; i++) pthread_join(threads[i], NULL);
    for (i = 0; i < count; i++) {
        if (!*workers[i].text) continue;
        snprintf(ort_text, sizeof ort_text, "thread %zu: %s", i, workers[i].text);
        return false;
    }
    return true;
}

/* Sessions of one group generated at the same time, then loaded and released by several threads. */
TEST(threads) {
    worker workers[6];
    size_t i;
    memset(workers, 0, sizeof workers);
    CHECK_TRUE(make_sources());
    /* A new factory, so that the sessions also meet where their backend is opened. */
    CHECK_ORT(ort_ok(ort->UnregisterExecutionProviderLibrary(ort_env, ep->label)));
    CHECK_ORT(register_library(ep->label, ep->library));
    for (i = 0; i < 3; i++) {
        workers[i].path = in_folder(sources[i]);
        workers[i].config = join;
        workers[i].times = 1;
    }
    CHECK(run_workers(workers, 3), "%s", ort_text);
    CHECK_TRUE(make_plain("d.onnx", 9));
    CHECK_ORT(generate_session("d.onnx", finish));
    CHECK(all_run(3), "%s", ort_text);
    for (i = 0; i < 6; i++) {
        workers[i].path = in_folder(contexts[i % 3]);
        workers[i].config = share;
        workers[i].times = 15;
    }
    CHECK(run_workers(workers, 6), "%s", ort_text);
}

/* --------------------------------------------------- for test_plugin_share.sh */

static bool tool_generate(int count, char **models) {
    int i;
    bool ok = true;
    for (i = 0; ok && i < count; i++) {
        ort_spec spec = spec_of(models[i]);
        spec.config = i + 1 < count ? join : finish;
        spec.allow_cpu = true;
        ok = make_session(&spec);
    }
    return ok;
}

static bool tool_compile(int count, char **models) {
    int i;
    bool ok = true;
    for (i = 0; ok && i < count; i++) {
        char path[PATH_MAX];
        epctx_error error;
        ort_spec spec = spec_of(models[i]);
        ort_output out = {0};
        ok = epctx_path_context_model(epctx_str_of(models[i]), path, sizeof path, &error) ==
             EPCTX_OK;
        out.path = path;
        spec.config = i + 1 < count ? share : finish;
        spec.allow_cpu = true;
        if (ok) ok = ort_compile_model(&spec, &out);
    }
    return ok;
}

static bool tool_judge(const char *context, char **models) {
    ort_spec spec = spec_of(context);
    OrtSession *session = NULL;
    int i;
    bool ok = false;
    spec.config = share;
    spec.allow_cpu = true;
    if (!ort_session(&spec, &session)) {
        printf("refused: %s\n", ort_text);
        return true;
    }
    for (i = 0; i < 2 && !ok; i++) {
        ok = runs_as(session, models[i]);
        if (ok) printf("runs as %d\n", i);
    }
    ort->ReleaseSession(session);
    return ok;
}

/* The file that the first node of a context model names. */
static bool binary_of(const char *path, char *out, size_t size) {
    epctx_model model;
    epctx_error error;
    epctx_cursor it;
    epctx_node_view view;
    epctx_epnode node;
    bool found = false;
    const epctx_str base = epctx_path_folder(epctx_str_of(path));
    if (epctx_model_open_file(&model, path, NULL, &error) != EPCTX_OK) return false;
    it = epctx_view_graph_nodes(epctx_model_graph(&model));
    while (!found && epctx_next_node(&it, &view)) {
        found = epctx_view_is_epnode(&view) &&
                epctx_view_read_epnode(&view, &node, &error) == EPCTX_OK && node.embed_mode == 0 &&
                node.ep_cache_context.size > 0;
    }
    if (found) {
        snprintf(out, size, "%.*s%.*s", (int)base.size, base.data, (int)node.ep_cache_context.size,
                 node.ep_cache_context.data);
    }
    epctx_model_close(&model);
    return found;
}

static bool tool_load(int count, char **paths) {
    OrtSession *sessions[8] = {NULL};
    char binary[PATH_MAX], away[PATH_MAX + 8];
    watch w;
    int i;
    bool ok = count % 2 == 0 && count <= 16 && binary_of(paths[0], binary, sizeof binary) &&
              watch_begin(&w, binary);
    if (!ok) {
        snprintf(ort_text, sizeof ort_text, "no binary to watch");
        return false;
    }
    snprintf(away, sizeof away, "%s.away", binary);
    for (i = 0; ok && i < count / 2; i++) {
        ort_spec spec = spec_of(paths[2 * i]);
        spec.config = share;
        spec.allow_cpu = true;
        ok = ort_session(&spec, &sessions[i]);
        if (ok && i == 0) ok = watch_opened(&w, 1) && rename(binary, away) == 0;
    }
    ort_relative = 1e-3;
    for (i = 0; ok && i < count / 2; i++) ok = runs_as(sessions[i], paths[2 * i + 1]);
    for (i = count / 2; i-- > 0;)
        if (sessions[i]) ort->ReleaseSession(sessions[i]);
    rename(away, binary);
    if (ok) printf("%d sessions, binary opened %d times\n", count / 2, w.opens);
    ok = ok && watch_opened(&w, 1);
    watch_end(&w);
    return ok;
}

static int tool(int argc, char **argv) {
    bool ok = false;
    ep = npu_subject();
    if (!ort_test_begin(argv[0]) || !register_library(ep->label, ep->library)) {
        printf("%s\n", ort_text);
        return 1;
    }
    if (strcmp(argv[1], "--generate") == 0) ok = tool_generate(argc - 2, argv + 2);
    if (strcmp(argv[1], "--compile") == 0) ok = tool_compile(argc - 2, argv + 2);
    if (strcmp(argv[1], "--judge") == 0 && argc == 5) ok = tool_judge(argv[2], argv + 3);
    if (strcmp(argv[1], "--load") == 0) ok = tool_load(argc - 2, argv + 2);
    if (!ok) printf("%s\n", ort_text);
    ort_ok(ort->UnregisterExecutionProviderLibrary(ort_env, ep->label));
    ort->ReleaseEnv(ort_env);
    nftw(folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    return ok ? 0 : 1;
}

static const ort_case cases[] = {
    ORT_CASE(generate_group),
    ORT_CASE_OF("npu", binary_holds_weights_once),
    ORT_CASE(compiling_session_does_not_run),
    ORT_CASE(generate_by_compile_api),
    ORT_CASE(generating_session_fails),
    ORT_CASE(model_not_written),
    ORT_CASE(no_last_session),
    ORT_CASE(abandoned_group),
    ORT_CASE(groups_after_each_other),
    ORT_CASE(group_refuses),
    ORT_CASE(last_session_without_nodes),
    ORT_CASE(binary_opened_once),
    ORT_CASE(prefix),
    ORT_CASE(graph_of_another_generation),
    ORT_CASE(any_order_of_release),
    ORT_CASE(same_model_twice),
    ORT_CASE(graphs_come_back),
    ORT_CASE(bad_binaries),
    ORT_CASE_OF("toy", out_of_memory),
    ORT_CASE(threads),
};

int main(int argc, char **given) {
    char **argv = ort_words(argc, given);
    if (argc > 2 && strncmp(argv[1], "--", 2) == 0) return tool(argc, argv);
    if (!ort_test_begin(argv[0])) return ort_test_end();
    ort_test_cases(argc, argv, cases, sizeof cases / sizeof cases[0]);
    return ort_test_end();
}
