/*
 * The plugin EP inside the unmodified ONNX Runtime: what every application does with it.
 * Generating, reloading, the compile API, bad files, threads, control flow. tests/ort/ort_test.h is
 * the harness.
 */
#define _GNU_SOURCE 1
#include <pthread.h>
#include <time.h>

#include "examples/epctx/ops/dims.h"
#include "examples/plugin_ep/device.h"
#include "ort/ort_test.h"
#if defined(__has_include)
#if __has_include("epctx_npu.h")
#include "epctx_npu.h"
#define HAVE_NPU 1
#endif
#endif

/* ------------------------------------------------------------------- cases */

TEST(jit) {
    ort_spec spec = spec_of(in_folder("m.onnx"));
    CHECK_TRUE(make_one("m.onnx"));
    CHECK(check_run(&spec, spec.path) == 4, "%s", ort_text);
    CHECK_INT(count_files(), 1);
}

/* Each of several graphs gets a computation of its own, with its own inputs and outputs: the first
 * two have one of each, the third two. */
TEST(jit_partitions) {
    ort_spec spec = spec_of(in_folder("m.onnx"));
    CHECK_TRUE(make_three("m.onnx"));
    spec.allow_cpu = true;
    CHECK(check_run(&spec, spec.path) == 4, "%s", ort_text);
    CHECK_INT(count_files(), 1);
}

/* An EP keeps nodes apart by different numbers in take[] (of the toy: Mul). */
TEST(kept_apart) {
    static const struct {
        const char *options[5];
        size_t contexts, ran, left; /* nodes of ours; source nodes in them, and on the CPU */
    } rows[] = {
        {{NULL}, 1, 3, 0},
        {{"apart", "1", NULL}, 3, 3, 0},
        {{"units", "1", NULL}, 1, 3, 0},
        {{"apart", "1", "units", "1", NULL},
         1,
         1,
         2}, /* Add and Mul together, and apart: neither */
        {{"most_nodes", "1", NULL}, 3, 3, 0},
        {{"most_nodes", "1", "units", "1", NULL}, 1, 1, 2},
    };
    ort_spec spec = spec_of(in_folder("m.onnx"));
    ort_contexts n;
    onnx_model m;
    float w[6];
    onnx_begin(&m);
    onnx_input(&m.graph, "x", 2, dims23);
    weights(w, 1);
    onnx_floats(&m.graph, "w", 2, dims23, w);
    onnx_node(&m.graph, "Add", "", "p1", "x,w", "a", NULL);
    onnx_node(&m.graph, "Mul", "", "p2", "a,w", "b", NULL);
    onnx_node(&m.graph, "Sub", "", "p3", "b,a", "y", NULL);
    onnx_output(&m.graph, "y", 2, dims23);
    CHECK_TRUE(save_model("m.onnx", &m));
    spec.allow_cpu = true;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t count;
        spec.options = rows[i].options;
        spec.config = NULL;
        spec.path = in_folder("m.onnx");
        CHECK(check_run(&spec, in_folder("m.onnx")) == rows[i].ran, "row %zu: %s", i, ort_text);
        CHECK_UINT(nodes_left, rows[i].left);
        spec.config = generate;
        spec.path = in_folder("m.onnx");
        CHECK_ORT(make_session(&spec));
        CHECK(ort_read_contexts(in_folder("m_ctx.onnx"), &n), "%s", ort_text);
        count = n.count;
        epctx_model_close(&n.model);
        CHECK_UINT(count, rows[i].contexts);
        spec = spec_of(in_folder("m_ctx.onnx"));
        spec.allow_cpu = true;
        CHECK(check_run(&spec, in_folder("m.onnx")) == rows[i].contexts, "row %zu: %s", i,
              ort_text);
        CHECK_TRUE(remove(in_folder("m_ctx.onnx")) == 0);
    }
}

/* Only 1 asks for files. A session that does not get it leaves none, and a model from memory needs
 * no name. */
TEST(nothing_is_written) {
    static const char *const off[] = {"ep.context_enable", "0", NULL};
    static const char *const path[] = {"ep.context_file_path", "/no/such/folder/m_ctx.onnx", NULL};
    ort_spec spec = spec_of(in_folder("m.onnx"));
    void *model;
    size_t ran;
    CHECK_TRUE(make_one("m.onnx"));
    spec.config = off;
    CHECK(check_run(&spec, in_folder("m.onnx")) == 4, "%s", ort_text);
    spec.config = path;
    CHECK(check_run(&spec, in_folder("m.onnx")) == 4, "%s", ort_text);
    spec.config = NULL;
    spec.path = NULL;
    spec.data = model = slurp("m.onnx", &spec.size);
    ran = check_run(&spec, in_folder("m.onnx"));
    free(model);
    CHECK(ran == 4, "%s", ort_text);
    CHECK_INT(count_files(), 1);
}

/* Element types are the model's. */
TEST(types_of_values) {
    ort_spec spec = spec_of(in_folder("m.onnx"));
    onnx_bytes attrs = {0};
    onnx_model m;
    float w[6];
    onnx_begin(&m);
    weights(w, 1);
    onnx_value(&m.graph, ONNX_INPUT, "n", 7, 2, dims23);
    onnx_floats(&m.graph, "w", 2, dims23, w);
    onnx_attr_int(&attrs, "to", ONNX_FLOAT);
    onnx_node(&m.graph, "Cast", "", "cast", "n", "a", &attrs);
    onnx_node(&m.graph, "Add", "", "add", "a,w", "y", NULL);
    onnx_node(&m.graph, "Add", "", "twice", "n,n", "k", NULL);
    onnx_output(&m.graph, "y", 2, dims23);
    onnx_value(&m.graph, ONNX_OUTPUT, "k", 7, 2, dims23);
    CHECK_TRUE(save_model("m.onnx", &m));
    spec.allow_cpu = true;
    CHECK(check_run(&spec, spec.path) >= 1, "%s", ort_text);
}

TEST(generate_by_options) {
    ort_spec spec = spec_of(in_folder("m.onnx"));
    ort_contexts n;
    CHECK_TRUE(make_one("m.onnx"));
    spec.config = generate;
    /* The session that generates is also good for running. */
    CHECK(check_run(&spec, spec.path) == 4, "%s", ort_text);
    CHECK_INT(count_files(), 3);
    CHECK(exists("m_ctx.onnx") && exists(binary_name("m")), "expected m_ctx.onnx and %s",
          binary_name("m"));
    CHECK(ort_read_contexts(in_folder("m_ctx.onnx"), &n), "%s", ort_text);
    CHECK_INT(n.count, 1);
    CHECK_INT(n.others, 0);
    CHECK_INT(n.list[0].main_context, 1);
    CHECK_INT(n.list[0].embed_mode, 0);
    CHECK_TRUE(epctx_str_is(n.list[0].ep_cache_context, binary_name("m")));
    CHECK_TRUE(epctx_str_is(n.list[0].source, ep->ep));
    CHECK_TRUE(epctx_str_is(n.list[0].onnx_model_filename, "m.onnx"));
    CHECK_TRUE(n.list[0].partition_name.size > 0);
    CHECK_TRUE(n.list[0].ep_sdk_version.size > 0);
    CHECK_TRUE(n.list[0].hardware_architecture.size > 0);
    CHECK_TRUE(epctx_notes_hash(n.list[0].notes) != 0);
    /* The weights are in the binary, not inputs of the node. */
    CHECK_UINT(epctx_cursor_count(epctx_view_node_inputs(&n.views[0])), 1);
    epctx_model_close(&n.model);
    /* Reload, where the original is gone. */
    spec.path = in_folder("m_ctx.onnx");
    spec.config = NULL;
    CHECK(check_run(&spec, in_folder("m.onnx")) == 1, "%s", ort_text);
}

TEST(generate_embedded) {
    ort_spec spec = spec_of(in_folder("m.onnx"));
    ort_contexts n;
    CHECK_TRUE(make_one("m.onnx"));
    spec.config = generate_embed;
    CHECK(check_run(&spec, spec.path) == 4, "%s", ort_text);
    CHECK_INT(count_files(), 2);
    CHECK(ort_read_contexts(in_folder("m_ctx.onnx"), &n), "%s", ort_text);
    CHECK_INT(n.count, 1);
    CHECK_INT(n.list[0].embed_mode, 1);
    CHECK_TRUE(n.list[0].ep_cache_context.size > 60);
    epctx_model_close(&n.model);
    spec.path = in_folder("m_ctx.onnx");
    spec.config = NULL;
    CHECK(check_run(&spec, in_folder("m.onnx")) == 1, "%s", ort_text);
}

TEST(partitions_in_one_binary) {
    ort_spec spec = spec_of(in_folder("m.onnx"));
    ort_contexts n;
    size_t i, primaries = 0;
    CHECK_TRUE(make_three("m.onnx"));
    spec.config = generate;
    spec.allow_cpu = true;
    CHECK(check_run(&spec, spec.path) == 4, "%s", ort_text);
    CHECK_INT(count_files(), 3);
    CHECK(ort_read_contexts(in_folder("m_ctx.onnx"), &n), "%s", ort_text);
    CHECK_INT(n.count, 3);
    CHECK_INT(n.others, 2);
    for (i = 0; i < 3; i++) {
        primaries += n.list[i].main_context == 1;
        CHECK_INT(n.list[i].embed_mode, 0);
        CHECK_INT(n.list[i].ep_cache_context.size > 0, n.list[i].main_context);
    }
    CHECK_INT(primaries, 1);
    epctx_model_close(&n.model);
    spec.path = in_folder("m_ctx.onnx");
    spec.config = NULL;
    CHECK(check_run(&spec, in_folder("m.onnx")) == 3, "%s", ort_text);
}

/* Letters of several alphabets, one outside the basic plane, blanks, more than 260 characters. */
#define LETTERS "\xc3\xa9 \xd0\xb6 \xe6\xa8\xa1 \xf0\x9f\x90\xb3 "
#define PART    LETTERS LETTERS LETTERS LETTERS LETTERS LETTERS LETTERS LETTERS "end"
#define AWAY    PART "/" PART "/" PART "/" PART "/"

static bool make_far_folder(void) {
    static const char *const folders[] = {PART, PART "/" PART, PART "/" PART "/" PART,
                                          PART "/" PART "/" PART "/" PART};
    size_t i;
    bool ok = true;
    for (i = 0; ok && i < 4; i++) ok = mkdir(in_folder(folders[i]), 0777) == 0;
    return ok;
}

TEST(far_folder) {
    static const char *const sharing[] = {"ep.share_ep_contexts", "1", NULL};
    const char *const named[] = {"ep.context_enable", "1", "ep.context_file_path",
                                 in_folder(AWAY "n_ctx.onnx"), NULL};
    char binary[sizeof AWAY + 128];
    int embed;
    for (embed = 0; embed < 2; embed++) {
        ort_spec spec = spec_of(in_folder(AWAY "m.onnx"));
        ort_output out = {0};
        void *model;
        size_t ran;
        clear_folder();
        CHECK_TRUE(make_far_folder() && make_one(AWAY "m.onnx"));
        spec.config = embed ? generate_embed : generate;
        CHECK(check_run(&spec, spec.path) == 4, "embed %d: %s", embed, ort_text);
        snprintf(binary, sizeof binary, AWAY "%s", binary_name("m"));
        CHECK_INT(exists(binary), !embed);
        spec.config = NULL;
        out.path = in_folder(AWAY "o_ctx.onnx");
        out.embed = embed;
        CHECK(ort_compile_model(&spec, &out), "embed %d: %s", embed, ort_text);
        snprintf(binary, sizeof binary, AWAY "%s", binary_name("o"));
        CHECK_INT(exists(binary), !embed);
        spec.path = out.path;
        CHECK(check_run(&spec, in_folder(AWAY "m.onnx")) == 1, "embed %d: %s", embed, ort_text);
        spec.path = in_folder(AWAY "m_ctx.onnx");
        CHECK(check_run(&spec, in_folder(AWAY "m.onnx")) == 1, "embed %d: %s", embed, ort_text);
        spec.config = sharing;
        CHECK(check_run(&spec, in_folder(AWAY "m.onnx")) == 1, "embed %d: %s", embed, ort_text);
        /* From memory, to a place that only the option names. */
        spec.path = NULL;
        spec.data = model = slurp(AWAY "m.onnx", &spec.size);
        spec.config = named;
        ran = check_run(&spec, in_folder(AWAY "m.onnx"));
        free(model);
        CHECK(ran == 4, "from memory: %s", ort_text);
        spec = spec_of(named[3]);
        CHECK(check_run(&spec, in_folder(AWAY "m.onnx")) == 1, "from memory: %s", ort_text);
    }
}

TEST(devices) {
    const OrtEpDevice *device = ort_device(ep->ep, OrtHardwareDeviceType_CPU);
    CHECK(device, "expected a CPU device of %s", ep->ep);
    CHECK(!ort_device(ep->ep, OrtHardwareDeviceType_NPU), "an NPU nobody allowed");
    if (ep->vendor) {
        CHECK_STR(ort->EpDevice_EpVendor(device), ep->vendor);
        CHECK_STR(ort->GetKeyValue(ort->EpDevice_EpMetadata(device), "version"), ep->version);
        CHECK_STR(ort->GetKeyValue(ort->EpDevice_EpMetadata(device), "hardware_architecture"),
                  ep->architecture);
        CHECK_STR(ort->GetKeyValue(ort->EpDevice_EpMetadata(device), "ep_sdk_version"), ep->sdk);
    }
    /* The same EP cannot be appended twice. */
    {
        OrtSessionOptions *options = NULL;
        ort_spec spec = spec_of(NULL);
        bool once = ort_options(&spec, &options);
        bool twice = ort_ok(ort->SessionOptionsAppendExecutionProvider_V2(options, ort_env, &device,
                                                                          1, NULL, NULL, 0));
        if (twice) {
            OrtSession *session = NULL;
            make_one("m.onnx");
            twice = ort_ok(
                ort->CreateSession(ort_env, ort_path(in_folder("m.onnx")), options, &session));
            if (session) ort->ReleaseSession(session);
        }
        ort->ReleaseSessionOptions(options);
        CHECK(once && !twice, "expected the second append to fail");
        CHECK_HAS(ort_text, "already been registered");
    }
}

/* Without the device the library registers and shows none. */
TEST(absent) {
    bool registered, seen;
    CHECK_ORT(ort_ok(ort->UnregisterExecutionProviderLibrary(ort_env, ep->label)));
    setenv("TOY_ABSENT", "1", 1);
    registered = register_library("absent", ep->library);
    seen = ort_device(ep->ep, OrtHardwareDeviceType_CPU) != NULL;
    if (registered) ort_ok(ort->UnregisterExecutionProviderLibrary(ort_env, "absent"));
    unsetenv("TOY_ABSENT");
    CHECK_ORT(register_library(ep->label, ep->library));
    CHECK(registered && !seen, "expected a library without devices: %s", ort_text);
    CHECK_TRUE(ort_device(ep->ep, OrtHardwareDeviceType_CPU));
}

/* A registration name that ends in .virtual allows a virtual NPU, and a policy picks it. */
TEST(virtual_npu) {
    ort_spec spec = spec_of(in_folder("m.onnx"));
    const OrtEpDevice *device;
    bool is_virtual = false;
    size_t ran = 0;
    char text[sizeof ort_text] = "";
    CHECK_TRUE(make_one("m.onnx"));
    CHECK_ORT(ort_ok(ort->UnregisterExecutionProviderLibrary(ort_env, ep->label)));
    CHECK_ORT(register_library("pretended.virtual", ep->library));
    device = ort_device(ep->ep, OrtHardwareDeviceType_NPU);
    if (device) {
        const OrtKeyValuePairs *metadata =
            ort->HardwareDevice_Metadata(ort->EpDevice_Device(device));
        const char *text_value = ort->GetKeyValue(metadata, "is_virtual");
        is_virtual = text_value && strcmp(text_value, "1") == 0;
        spec.prefer_npu = true;
        ran = check_run(&spec, spec.path);
        memcpy(text, ort_text, sizeof text);
    }
    CHECK_ORT(ort_ok(ort->UnregisterExecutionProviderLibrary(ort_env, "pretended.virtual")));
    CHECK_ORT(register_library(ep->label, ep->library));
    CHECK(device, "expected an NPU device");
    CHECK_TRUE(is_virtual);
    CHECK(ran == 4, "PREFER_NPU: %zu nodes, %s", ran, text);
}

/* OrtCompileApi: from path and memory, to path, memory and function, payload inside and outside. */
TEST(compile_api) {
    int from_memory, to, embed;
    size_t size;
    CHECK_TRUE(make_one("m.onnx"));
    for (from_memory = 0; from_memory < 2; from_memory++) {
        for (to = 0; to < 3; to++) {
            for (embed = 0; embed < 2; embed++) {
                const char *const where[] = {"ep.context_file_path", in_folder("o_ctx.onnx"), NULL};
                ort_spec spec = spec_of(in_folder("m.onnx"));
                ort_output out = {0};
                char slash[300];
                void *model = NULL;
                size_t ran;
                clear_folder();
                CHECK_TRUE(make_one("m.onnx"));
                if (from_memory) {
                    model = slurp("m.onnx", &size);
                    spec.path = NULL;
                    spec.data = model;
                    spec.size = size;
                }
                snprintf(slash, sizeof slash, "%s/", folder);
                out.embed = embed;
                out.flags = OrtCompileApiFlags_ERROR_IF_NO_NODES_COMPILED;
                if (to == 0) out.path = in_folder("o_ctx.onnx");
                out.to_function = to == 2;
                if (to != 0) {
                    out.folder = slash;
                    out.name = "o";
                }
                CHECK(ort_compile_model(&spec, &out), "from %s to %d, embed %d: %s",
                      from_memory ? "memory" : "path", to, embed, ort_text);
                free(model);
                CHECK(exists(binary_name("o")) == !embed, "from %d to %d, embed %d: %s",
                      from_memory, to, embed, binary_name("o"));
                CHECK_INT(count_files(), 1 + (to == 0) + !embed);
                spec = spec_of(to == 0 ? in_folder("o_ctx.onnx") : NULL);
                spec.data = out.data;
                spec.size = out.size;
                if (to != 0 && !embed) spec.config = where;
                ran = check_run(&spec, in_folder("m.onnx"));
                free(out.data);
                CHECK(ran == 1, "reload from %d to %d, embed %d: %s", from_memory, to, embed,
                      ort_text);
            }
        }
    }
}

/* Nowhere to put the binary. */
TEST(compile_api_without_place) {
    ort_spec spec = spec_of(NULL);
    ort_output out = {0};
    void *model;
    bool ok;
    CHECK_TRUE(make_one("m.onnx"));
    model = slurp("m.onnx", &spec.size);
    spec.data = model;
    ok = ort_compile_model(&spec, &out);
    free(model);
    free(out.data);
    CHECK_ORT_FAILS(ok, ORT_INVALID_ARGUMENT, "ep.context_file_path");
}

TEST(prefix) {
    static const char *const prefixes[] = {"front_", "B", NULL};
    ort_spec spec = spec_of(in_folder("m_ctx.onnx"));
    ort_contexts n;
    size_t i, k;
    CHECK_TRUE(make_three("m.onnx"));
    spec.allow_cpu = true;
    for (k = 0; k < 3; k++) {
        const char *const wanted = prefixes[k] ? prefixes[k] : "";
        const char *const config[] = {"ep.context_enable", "1",
                                      prefixes[k] ? "ep.context_node_name_prefix" : NULL, wanted,
                                      NULL};
        const size_t size = strlen(wanted), source = strlen(ep->ep);
        remove(in_folder("m_ctx.onnx"));
        CHECK_ORT(generate_one(config));
        CHECK(ort_read_contexts(in_folder("m_ctx.onnx"), &n), "%s", ort_text);
        CHECK_INT(n.count, 3);
        for (i = 0; i < 3; i++) {
            /* The names of the graphs; those of the nodes are ORT's. */
            const epctx_str name = n.list[i].partition_name;
            CHECK_TRUE(name.size > size + source && memcmp(name.data, wanted, size) == 0);
            CHECK_TRUE(memcmp(name.data + size, ep->ep, source) == 0);
            CHECK_TRUE(i == 0 || !epctx_str_eq(name, n.list[i - 1].partition_name));
        }
        epctx_model_close(&n.model);
        spec.config = NULL;
        CHECK(check_run(&spec, in_folder("m.onnx")) == 3, "%s", ort_text);
        spec.config = config + 2; /* means nothing to a session that loads */
        CHECK(check_run(&spec, in_folder("m.onnx")) == 3, "%s", ort_text);
    }
}

/* Weights beside the source model, from a path and (with the folder option) from memory: then the
 * context model is the file asked for, with its binary beside it. */
TEST(external_initializers_in) {
    const char *const config[] = {"ep.context_enable",
                                  "1",
                                  "session.model_external_initializers_file_folder_path",
                                  folder,
                                  "ep.context_file_path",
                                  in_folder("out/n_ctx.onnx"),
                                  NULL};
    char binary[128];
    ort_spec spec = spec_of(in_folder("m.onnx"));
    onnx_model m;
    float w[12];
    weights(w, 1);
    weights(w + 6, -2);
    onnx_begin(&m);
    three_graph(&m, true);
    onnx_finish(&m);
    CHECK_TRUE(save("m.onnx", m.bytes.data, m.bytes.size));
    CHECK_TRUE(save("weights.bin", w, sizeof w));
    spec.allow_cpu = true;
    spec.config = generate;
    CHECK(check_run(&spec, spec.path) == 4, "%s", ort_text);
    spec.path = NULL;
    spec.data = m.bytes.data;
    spec.size = m.bytes.size;
    spec.config = config;
    mkdir(in_folder("out"), 0777);
    CHECK(check_run(&spec, in_folder("m.onnx")) == 4, "%s", ort_text);
    onnx_free(&m);
    snprintf(binary, sizeof binary, "out/%s", binary_name("n"));
    CHECK(exists("out/n_ctx.onnx") && exists(binary), "expected out/n_ctx.onnx and %s", binary);
    /* The context models stand on their own. */
    CHECK_TRUE(make_three("same.onnx"));
    remove(in_folder("weights.bin"));
    spec = spec_of(in_folder("m_ctx.onnx"));
    spec.allow_cpu = true;
    CHECK(check_run(&spec, in_folder("same.onnx")) == 3, "%s", ort_text);
    spec.path = in_folder("out/n_ctx.onnx");
    CHECK(check_run(&spec, in_folder("same.onnx")) == 3, "%s", ort_text);
}

/* The folder of initializers is for initializers: with it ORT does not tell where the model is, so
 * the application must. */
TEST(initializers_folder) {
    const char *const folder_only[] = {"session.model_external_initializers_file_folder_path",
                                       in_folder("w"), NULL};
    const char *const with_path[] = {"session.model_external_initializers_file_folder_path",
                                     in_folder("w"), "ep.context_file_path",
                                     in_folder("m_ctx.onnx"), NULL};
    const char *const generating[] = {"ep.context_enable", "1",
                                      "session.model_external_initializers_file_folder_path",
                                      in_folder("w"), NULL};
    const char *const embedding[] = {"ep.context_enable",
                                     "1",
                                     "ep.context_embed_mode",
                                     "1",
                                     "session.model_external_initializers_file_folder_path",
                                     in_folder("w"),
                                     NULL};
    const char *const all[] = {"ep.context_enable",
                               "1",
                               "ep.context_file_path",
                               in_folder("m_ctx.onnx"),
                               "session.model_external_initializers_file_folder_path",
                               in_folder("w"),
                               NULL};
    const char *const sharing[] = {"ep.context_enable",
                                   "1",
                                   "ep.share_ep_contexts",
                                   "1",
                                   "session.model_external_initializers_file_folder_path",
                                   in_folder("w"),
                                   NULL};
    const char *const *const refused[] = {generating, embedding, sharing};
    char wrong[128];
    ort_contexts n;
    void *model;
    size_t i, size = 0;
    bool nameless;
    ort_spec spec = spec_of(in_folder("m.onnx"));
    ort_output out = {0};
    mkdir(in_folder("w"), 0777);
    CHECK_TRUE(make_one("m.onnx"));
    spec.config = generating;
    if (make_session(&spec) && exists("m_ctx.onnx"))
        SKIP("ORT %s tells where the model is", ort_base->GetVersionString());
    for (i = 0; i < 3; i++) {
        spec.config = refused[i];
        CHECK_ORT_FAILS(make_session(&spec), ORT_INVALID_ARGUMENT, "set ep.context_file_path");
    }
    CHECK_INT(count_files(), 2);
    CHECK(!exists("w/virtual_model_ctx.onnx"), "ORT wrote into the folder of the initializers");
    /* Into memory there is nothing to misplace. */
    spec.config = folder_only;
    out.embed = true;
    CHECK_ORT(ort_compile_model(&spec, &out));
    free(out.data);
    spec.config = all;
    CHECK_ORT(make_session(&spec));
    CHECK_INT(count_files(), 4);
    CHECK(ort_read_contexts(in_folder("m_ctx.onnx"), &n), "%s", ort_text);
    nameless = n.count == 1 && n.list[0].onnx_model_filename.size == 0;
    epctx_model_close(&n.model);
    CHECK(nameless, "expected no onnx_model_filename: its name is not known");
    /* A file of that name in the folder of the initializers is not the binary. */
    model = slurp(binary_name("m"), &size);
    snprintf(wrong, sizeof wrong, "w/%s", binary_name("m"));
    CHECK_TRUE(save(wrong, model, size));
    free(model);
    model = slurp("m_ctx.onnx", &size);
    for (i = 0; i < 2; i++) { /* from a file, from memory */
        bool alone;
        size_t ran;
        spec = spec_of(i ? NULL : in_folder("m_ctx.onnx"));
        spec.data = model;
        spec.size = size;
        spec.config = folder_only;
        alone = make_session(&spec);
        if (alone || ort_code != ORT_INVALID_GRAPH ||
            !strstr(ort_text, "set ep.context_file_path") ||
            (i == 0 && strstr(ort_text, "the model came from memory"))) {
            free(model);
            test_fail(__FILE__, __LINE__, "expected a hint at ep.context_file_path: %s", ort_text);
            return;
        }
        spec.config = with_path;
        ran = check_run(&spec, in_folder("m.onnx"));
        if (ran != 1) {
            free(model);
            test_fail(__FILE__, __LINE__, "%s", ort_text);
            return;
        }
    }
    free(model);
}

/* An attribute of each kind that ORT hands over as a number, a list or a text, none of them the
 * operator's default. */
TEST(attributes) {
    static const int64_t in[4] = {1, 8, 2, 3}, out[4] = {1, 4, 6, 2}, order[4] = {0, 2, 3, 1};
    ort_spec spec = spec_of(in_folder("m.onnx"));
    onnx_model m;
    onnx_bytes attrs = {0};
    bool saved;
    onnx_begin(&m);
    onnx_input(&m.graph, "x", 4, in);
    onnx_attr_int(&attrs, "blocksize", 2);
    onnx_attr_text(&attrs, "mode", "CRD");
    onnx_node(&m.graph, "DepthToSpace", "", "int and string", "x", "a", &attrs);
    onnx_attr_ints(&attrs, "perm", 4, order);
    onnx_node(&m.graph, "Transpose", "", "ints", "a", "b", &attrs);
    onnx_attr_float(&attrs, "alpha", 0.25f);
    onnx_node(&m.graph, "LeakyRelu", "", "float", "b", "y", &attrs);
    onnx_output(&m.graph, "y", 4, out);
    saved = save_model("m.onnx", &m);
    CHECK_TRUE(saved);
    CHECK(check_run(&spec, spec.path) == 3, "%s", ort_text);
}

/* The CPU's weights leave the context model. */
TEST(external_initializers_out) {
    static const char *const config[] = {"ep.context_enable", "1",
                                         "ep.context_model_external_initializers_file_name",
                                         "cpu.bin", NULL};
    ort_spec spec = spec_of(in_folder("m_ctx.onnx"));
    CHECK_TRUE(make_three("m.onnx"));
    CHECK_ORT(generate_one(config));
    CHECK_TRUE(exists("cpu.bin") && exists(binary_name("m")));
    spec.allow_cpu = true;
    CHECK(check_run(&spec, in_folder("m.onnx")) == 3, "%s", ort_text);
}

/* A node with this source, around a context that is ours and good. */
static bool claims(context_spec *c, const char *source) {
    ort_spec spec = spec_of(in_folder("f.onnx"));
    spec.allow_cpu = true;
    c->source = source;
    if (make_context("f.onnx", c) && make_session(&spec)) return true;
    /* Any other failure is one of loading: it was claimed. */
    return ort_code != ORT_NOT_IMPLEMENTED || !strstr(ort_text, "EPContext");
}

/* The source is compared as a whole and letter by letter: one byte more, less or different is
 * another EP's, and a node without source is nobody's. */
TEST(foreign_nodes_left_alone) {
    const char *const other = "OtherExecutionProvider";
    context_spec c = context_of(binary_name("m"), NULL);
    const size_t size = strlen(ep->ep);
    char source[128], key[256];
    ort_spec spec = spec_of(NULL);
    onnx_model m;
    ort_contexts n;
    size_t i;
    CHECK_TRUE(make_one("m.onnx"));
    CHECK_ORT(generate_one(generate));
    CHECK(ort_read_contexts(in_folder("m_ctx.onnx"), &n), "%s", ort_text);
    keep(key, sizeof key, n.list[0].partition_name);
    epctx_model_close(&n.model);
    c.partition = key;
    CHECK(claims(&c, ep->ep) && ort_code == 0, "our own node is not loaded: %s", ort_text);
    CHECK(!claims(&c, NULL), "a node without source is nobody's: %s", ort_text);
    CHECK(!claims(&c, other), "source '%s': %s", c.source, ort_text);
    CHECK(!claims(&c, ep->short_name), "source '%s': %s", c.source, ort_text);
    for (i = 0; i < size; i++) {
        snprintf(source, sizeof source, "%.*s", (int)i, ep->ep);
        CHECK(!claims(&c, source), "source '%s': %s", source, ort_text);
        snprintf(source, sizeof source, "%s", ep->ep);
        source[i] ^= 0x20; /* the other case */
        CHECK(!claims(&c, source), "source '%s': %s", source, ort_text);
        source[i] = '_';
        CHECK(!claims(&c, source), "source '%s': %s", source, ort_text);
    }
    snprintf(source, sizeof source, "%sX", ep->ep);
    CHECK(!claims(&c, source), "source '%s': %s", source, ort_text);
    snprintf(source, sizeof source, "X%s", ep->ep);
    CHECK(!claims(&c, source), "source '%s': %s", source, ort_text);
    c.partition = ep->ep;
    CHECK(!claims(&c, NULL), "another attribute has our name: %s", ort_text);
    /* Each node for itself: ours, and then one that is not. */
    onnx_begin(&m);
    onnx_input(&m.graph, "x", 2, dims23);
    onnx_output(&m.graph, "y", 2, dims23);
    onnx_value(&m.graph, ONNX_VALUE, "a", ONNX_FLOAT, 2, dims23);
    c = context_of(binary_name("m"), key);
    add_context(&m, &c, "ours", "x", "a");
    c.source = other;
    add_context(&m, &c, "not ours", "a", "y");
    CHECK_TRUE(save_model("two.onnx", &m));
    spec.path = in_folder("two.onnx");
    spec.allow_cpu = true;
    CHECK_ORT_FAILS(make_session(&spec), ORT_NOT_IMPLEMENTED, "'not ours'");
}

static void append_ours(OrtSessionOptions *options, void *user) {
    (void)user;
    const OrtEpDevice *device = ort_device(ep->ep, OrtHardwareDeviceType_CPU);
    if (device) {
        ort_ok(ort->SessionOptionsAppendExecutionProvider_V2(options, ort_env, &device, 1, NULL,
                                                             NULL, 0));
    }
}

/* Another EP's compiled model is a compiled model: its ordinary nodes are not compiled for us, who
 * are asked first. */
TEST(foreign_model) {
    const subject *mine = ep, *other = second_subject();
    ort_spec spec = spec_of(in_folder("f.onnx"));
    context_spec c;
    OrtSession *session = NULL;
    onnx_model m;
    ort_contexts n;
    size_t ran[2] = {0, 0};
    bool ok;
    char key[256] = "", text[sizeof ort_text];
    if (!other) SKIP("there is no second EP");
    CHECK_ORT(register_library(other->label, other->library));
    ep = other;
    ok = make_one("m.onnx") && generate_one(generate);
    if (ok && ort_read_contexts(in_folder("m_ctx.onnx"), &n)) {
        keep(key, sizeof key, n.list[0].partition_name);
        epctx_model_close(&n.model);
    }
    c = context_of(binary_name("m"), key);
    ep = mine;
    onnx_begin(&m);
    onnx_input(&m.graph, "x", 2, dims23);
    onnx_output(&m.graph, "y", 2, dims23);
    onnx_value(&m.graph, ONNX_VALUE, "a", ONNX_FLOAT, 2, dims23);
    add_context(&m, &c, "theirs", "x", "a");
    onnx_node(&m.graph, "Relu", "", "nobody's", "a", "y", NULL);
    ok = save_model("f.onnx", &m) && ok;
    spec.allow_cpu = true;
    spec.more = append_ours;
    spec.ep = other->ep;
    ok = ok && ort_session(&spec, &session);
    memcpy(text, ort_text, sizeof text);
    if (ok) {
        ran[0] = ort_assigned(session, mine->ep);
        ran[1] = ort_assigned(session, other->ep);
    }
    if (session) ort->ReleaseSession(session);
    ort_ok(ort->UnregisterExecutionProviderLibrary(ort_env, other->label));
    CHECK(ok, "%s", text);
    CHECK_INT(ran[0], 0);
    CHECK_INT(ran[1], 1);
}

TEST(compiled_input_refused) {
    ort_spec spec = spec_of(in_folder("m_ctx.onnx"));
    ort_output out = {0};
    CHECK_TRUE(make_one("m.onnx"));
    CHECK_ORT(generate_one(generate));
    spec.config = generate;
    CHECK_ORT_FAILS(make_session(&spec), ORT_INVALID_GRAPH, "the model is compiled already");
    out.path = in_folder("again.onnx");
    spec.config = NULL;
    CHECK_ORT_FAILS(ort_compile_model(&spec, &out), ORT_INVALID_GRAPH, "compiled already");
    CHECK_INT(exists("again.onnx"), 0);
}

TEST(reload_from_memory) {
    const char *const config[] = {"ep.context_file_path", in_folder("not_there.onnx"), NULL};
    ort_spec spec = spec_of(NULL);
    void *model;
    bool alone;
    size_t ran;
    char text[sizeof ort_text];
    int code;
    CHECK_TRUE(make_one("m.onnx"));
    CHECK_ORT(generate_one(generate));
    model = slurp("m_ctx.onnx", &spec.size);
    spec.data = model;
    alone = make_session(&spec);
    code = ort_code;
    memcpy(text, ort_text, sizeof text);
    spec.config = config; /* only the folder counts */
    ran = check_run(&spec, in_folder("m.onnx"));
    free(model);
    CHECK(!alone && code == ORT_INVALID_GRAPH && strstr(text, "ep.context_file_path"),
          "expected INVALID_GRAPH and a hint at ep.context_file_path, found %d: %s", code, text);
    CHECK(ran == 1, "%s", ort_text);
}

/* Is the file mapped into this process? */
static bool is_mapped(const char *name) {
#if defined(_WIN32)
    /* It can be renamed, but not written. */
    FILE *file = fopen(in_folder(name), "r+b");
    if (file) return fclose(file) != 0;
    return rename(in_folder(name), in_folder("renamed")) == 0 &&
           rename(in_folder("renamed"), in_folder(name)) == 0;
#else
    char line[PATH_MAX + 200], real[PATH_MAX];
    bool found = false;
    FILE *maps = realpath(in_folder(name), real) ? fopen("/proc/self/maps", "r") : NULL;
    while (maps && !found && fgets(line, sizeof line, maps)) found = strstr(line, real) != NULL;
    if (maps) fclose(maps);
    return found;
#endif
}

/* Writes into a file without making a new one: a mapping shows it. */
static bool overwrite(const char *name) {
    FILE *file = fopen(in_folder(name), "r+b");
    bool written = false;
    if (file) {
        long size, i;
        written = fseek(file, 0, SEEK_END) == 0 && (size = ftell(file)) > 0;
        rewind(file);
        for (i = 0; written && i < size; i++) written = fputc(0xff, file) != EOF;
        written = fclose(file) == 0 && written;
    }
    return written;
}

/* A binary stays in its file where nobody else can write file and folder. Elsewhere what the
 * backend checked is what runs, whatever is written into the file meanwhile. */
TEST(map_binary) {
    static const struct {
        const char *how; /* NULL: the default */
        unsigned file, folder;
        bool mapped;
    } rows[] = {{NULL, 0644, 0755, true},     {NULL, 0664, 0755, false},
                {NULL, 0646, 0755, false},    {NULL, 0600, 0770, false},
                {NULL, 0600, 01777, false},   {"auto", 0400, 0700, true},
                {"auto", 0666, 0700, false},  {"never", 0600, 0700, false},
                {"always", 0666, 0777, true}, {"never", 0666, 0777, false}};
    const char *options[] = {"map_binary", NULL, NULL};
    ort_spec spec = spec_of(in_folder("m_ctx.onnx"));
    size_t i;
    CHECK_TRUE(make_one("m.onnx"));
    CHECK_ORT(generate_one(generate));
    for (i = 0; i < sizeof rows / sizeof *rows; i++) {
        OrtSession *session = NULL;
        ort_values got = {0};
        char text[sizeof ort_text];
        bool ok, mapped;
#if defined(_WIN32) /* has no such modes: whoever maps keeps the others from writing */
        const bool expected = rows[i].how == NULL || strcmp(rows[i].how, "never") != 0;
#else
        const bool expected = rows[i].mapped;
#endif
        options[1] = rows[i].how;
        spec.options = rows[i].how ? options : NULL;
        CHECK_TRUE(chmod(in_folder(binary_name("m")), rows[i].file) == 0 &&
                   chmod(in_folder(""), rows[i].folder) == 0);
        ok = ort_session(&spec, &session);
        mapped = is_mapped(binary_name("m"));
        ok = ok && ort_run(session, 7, &got) && as_on_cpu(in_folder("m.onnx"), &got);
        memcpy(text, ort_text, sizeof text);
        ort_values_free(&got);
        if (session) ort->ReleaseSession(session);
        CHECK(ok, "row %zu: %s", i, text);
        CHECK(mapped == expected, "row %zu: the binary is %s", i, mapped ? "mapped" : "not mapped");
    }
    CHECK(!is_mapped(binary_name("m")), "the binary is mapped when its session is gone");
    CHECK_TRUE(chmod(in_folder(binary_name("m")), 0600) == 0 && chmod(in_folder(""), 0700) == 0);
    options[1] = "sometimes";
    spec.options = options;
    CHECK_ORT_FAILS(make_session(&spec), ORT_FAIL,
                    "map_binary: expected never, auto or always, found 'sometimes'");
}

TEST(binary_changed_while_loaded) {
    static const char *const never[] = {"map_binary", "never", NULL};
    ort_spec spec = spec_of(in_folder("m_ctx.onnx"));
    int how;
    for (how = 0; how < 2; how++) {
        OrtSession *session = NULL;
        ort_values got = {0};
        char text[sizeof ort_text];
        bool ok, written = false;
        clear_folder();
        CHECK_TRUE(make_one("m.onnx"));
        CHECK_ORT(generate_one(generate));
#if defined(_WIN32)
        if (how == 1) break; /* then nobody can */
#endif
        /* The default, where others may write. */
        CHECK_TRUE(how == 0 || chmod(in_folder(binary_name("m")), 0666) == 0);
        spec.options = how == 0 ? never : NULL;
        ok = ort_session(&spec, &session);
        if (!ok && ep == &other_ep && strstr(ort_text, "has no option 'map_binary'")) {
            spec.options = NULL;
            ok = ort_session(&spec, &session);
        }
        if (ok) written = overwrite(binary_name("m"));
        ok = ok && ort_run(session, 7, &got) && as_on_cpu(in_folder("m.onnx"), &got);
        memcpy(text, ort_text, sizeof text);
        ort_values_free(&got);
        if (session) ort->ReleaseSession(session);
        CHECK(written, "%s could not be changed", binary_name("m"));
        CHECK(ok, "%s", text);
    }
}

/* Everything that can be wrong with a binary is INVALID_GRAPH, with the culprit's name. */
TEST(bad_contexts) {
    ort_spec spec = spec_of(in_folder("m_ctx.onnx"));
    context_spec c = context_of(NULL, "g");
    uint8_t *binary;
    size_t size = 0, i;
    const char *bin = binary_name("m");
    static const char *const paths[] = {"../m.bin", "/etc/passwd", "a/../../m.bin", "", "."};
    CHECK_TRUE(make_one("m.onnx"));
    CHECK_ORT(generate_one(generate));
    binary = (uint8_t *)slurp(bin, &size);
    CHECK_TRUE(binary && size > 40);
    /* Truncated at many places, damaged at many places. */
    for (i = 0; i < 16; i++) {
        bool ok;
        CHECK_TRUE(save(bin, binary, size * i / 16));
        ok = make_session(&spec);
        CHECK(!ok && ort_code == ORT_INVALID_GRAPH && strstr(ort_text, "bin"),
              "%zu of %zu bytes: expected INVALID_GRAPH, found %d: %s", size * i / 16, size,
              ort_code, ort_text);
    }
    for (i = 0; i < 4; i++) {
        binary[i] ^= 0x40;
        CHECK_TRUE(save(bin, binary, size));
        CHECK_ORT_FAILS(make_session(&spec), ORT_INVALID_GRAPH, "");
        binary[i] ^= 0x40;
    }
    /* Of another model: same partition name or not, never a silent wrong answer. */
    CHECK_TRUE(make_three("o.onnx"));
    remove(bin);
    {
        ort_spec other = spec_of(in_folder("o.onnx"));
        other.allow_cpu = true;
        other.config = generate;
        CHECK_ORT(make_session(&other));
    }
    free(binary);
    binary = (uint8_t *)slurp(binary_name("o"), &size);
    CHECK_TRUE(binary && save(binary_name("m"), binary, size));
    free(binary);
    CHECK_ORT_FAILS(make_session(&spec), ORT_INVALID_GRAPH, "");
    remove(in_folder(binary_name("m")));
    CHECK_ORT_FAILS(make_session(&spec), ORT_INVALID_GRAPH, binary_name("m"));
    mkdir(in_folder(binary_name("m")), 0777);
    CHECK_ORT_FAILS(make_session(&spec), ORT_INVALID_GRAPH, binary_name("m"));
    /* Paths that leave the folder. */
    spec.path = in_folder("p.onnx");
    for (i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        c.path = paths[i];
        CHECK_TRUE(make_context("p.onnx", &c));
        CHECK_ORT_FAILS(make_session(&spec), ORT_INVALID_GRAPH, "ep_cache_context");
    }
    /* Embedded: nothing, and nonsense. */
    c.path = NULL;
    c.embed_mode = 1;
    CHECK_TRUE(make_context("p.onnx", &c));
    CHECK_ORT_FAILS(make_session(&spec), ORT_INVALID_GRAPH, "ep_cache_context");
    c.payload = "";
    CHECK_TRUE(make_context("p.onnx", &c));
    CHECK_ORT_FAILS(make_session(&spec), ORT_INVALID_GRAPH, "'ep_cache_context': is empty");
    c.payload = "not a context";
    c.payload_size = 13;
    CHECK_TRUE(make_context("p.onnx", &c));
    CHECK_ORT_FAILS(make_session(&spec), ORT_INVALID_GRAPH, "");
    /* Made for other hardware. */
    c.architecture = "pdp-11";
    CHECK_TRUE(make_context("p.onnx", &c));
    CHECK_ORT_FAILS(make_session(&spec), ORT_INVALID_GRAPH, "pdp-11");
    c.architecture = NULL;
    /* A secondary without a primary; numbers outside the schema. */
    c.main_context = 0;
    CHECK_TRUE(make_context("p.onnx", &c));
    CHECK_ORT_FAILS(make_session(&spec), ORT_INVALID_GRAPH, "has main_context 1");
    c.main_context = 7;
    CHECK_TRUE(make_context("p.onnx", &c));
    CHECK_ORT_FAILS(make_session(&spec), ORT_INVALID_GRAPH, "main_context");
    c.main_context = 1;
    c.embed_mode = 2;
    CHECK_TRUE(make_context("p.onnx", &c));
    CHECK_ORT_FAILS(make_session(&spec), ORT_INVALID_GRAPH, "embed_mode");
}

/* NULL is not. */
static bool printable(const char *text) {
    for (; text && *text; text++)
        if ((unsigned char)*text < 0x20 || (unsigned char)*text > 0x7e) return false;
    return text != NULL;
}

/* An embedded payload under embed_mode 0 is no path: the message says so, not what it holds. */
TEST(payload_as_path) {
    static const struct {
        const char *bytes;
        size_t size; /* 0: the whole binary */
    } payloads[] = {{NULL, 0}, {"PK\x03\x04secret", 10}, {"secret\xff", 7}, {"secret\0", 7}};
    ort_spec spec = spec_of(in_folder("p.onnx"));
    context_spec c = context_of(NULL, "g");
    uint8_t *binary, *longest;
    size_t size = 0, i;
    CHECK_TRUE(make_one("m.onnx"));
    CHECK_ORT(generate_one(generate));
    binary = (uint8_t *)slurp(binary_name("m"), &size);
    longest = (uint8_t *)malloc(100000);
    CHECK_TRUE(binary && longest);
    memset(longest, 'A', 100000);
    for (i = 0; i < 5; i++) {
        const bool last = i == 4; /* letters, but more than a path can have */
        c.payload = last ? longest : i ? (const void *)payloads[i].bytes : binary;
        c.payload_size = last ? 100000 : i ? payloads[i].size : size;
        c.embed_mode = 0;
        CHECK_TRUE(make_context("p.onnx", &c));
        CHECK_ORT_FAILS(make_session(&spec), ORT_INVALID_GRAPH, "embed_mode is 0");
        CHECK(printable(strstr(ort_text, "p.onnx")) && !strstr(ort_text, "secret") &&
                  !strstr(ort_text, "AAAA") && strlen(ort_text) < 500,
              "payload %zu is in the message: %s", i, ort_text);
    }
    free(longest);
    free(binary);
}

/* A node that says it was made for other hardware or by another SDK; the binary does not. One
 * operator is enough: for the template, too. */
static void made_elsewhere(const char *other_architecture, const char *other_sdk) {
    ort_spec spec = spec_of(in_folder("p.onnx"));
    onnx_model m;
    ort_contexts n;
    context_spec c;
    char partition[256], architecture[64], sdk[64];
    bool saved;
    onnx_begin(&m);
    onnx_input(&m.graph, "x", 2, dims23);
    onnx_node(&m.graph, "Relu", "", "relu", "x", "y", NULL);
    onnx_output(&m.graph, "y", 2, dims23);
    saved = save_model("m.onnx", &m);
    CHECK_TRUE(saved);
    CHECK_ORT(generate_one(generate));
    CHECK(ort_read_contexts(in_folder("m_ctx.onnx"), &n), "%s", ort_text);
    keep(partition, sizeof partition, n.list[0].partition_name);
    keep(architecture, sizeof architecture, n.list[0].hardware_architecture);
    keep(sdk, sizeof sdk, n.list[0].ep_sdk_version);
    epctx_model_close(&n.model);
    c = context_of(binary_name("m"), partition);
    c.architecture = architecture;
    c.sdk = sdk;
    CHECK_TRUE(make_context("p.onnx", &c));
    CHECK(check_run(&spec, in_folder("m.onnx")) == 1, "%s", ort_text);
    if (other_architecture) c.architecture = other_architecture;
    if (other_sdk) c.sdk = other_sdk;
    CHECK_TRUE(make_context("p.onnx", &c));
    CHECK_ORT_FAILS(make_session(&spec), ORT_INVALID_GRAPH,
                    other_sdk ? other_sdk : other_architecture);
    if (strcmp(ep->label, "vector") == 0)
        CHECK_HAS(ort_text, other_sdk ? "ep_sdk_version" : "hardware_architecture");
}

TEST(other_hardware) {
    made_elsewhere("pdp-11", NULL);
}

/* The template's binaries do not tell their SDK: the node's word counts, up to the first dot. (The
 * SDK of the reference NPU is in the binary.) */
TEST(other_sdk) {
    static const char *const others[] = {"999.0.0", "10.0.0", "2.0.0", "-"};
    size_t i;
    for (i = 0; test_name && i < sizeof others / sizeof others[0]; i++) {
        clear_folder();
        made_elsewhere(NULL, others[i]);
    }
}

/* The NPU reads weights when it runs, not when it loads them, unless it is told to. */
TEST(damaged_weight) {
    const char *options[] = {"check_weights", NULL, NULL};
    ort_spec spec = spec_of(in_folder("m_ctx.onnx"));
    float w[6];
    uint8_t *binary, *at;
    size_t size;
    CHECK_TRUE(make_one("m.onnx"));
    CHECK_ORT(generate_one(generate));
    spec.options = options;
    options[1] = "always";
    CHECK(check_run(&spec, in_folder("m.onnx")) == 1, "%s", ort_text);
    binary = (uint8_t *)slurp(binary_name("m"), &size);
    CHECK_TRUE(binary);
    weights(w, -1);
    at = (uint8_t *)memmem(binary, size, w, sizeof w);
    if (at) at[5] ^= 1;
    CHECK_TRUE(save(binary_name("m"), binary, size));
    free(binary);
    CHECK(at, "the weights are not in the binary");
    CHECK_ORT_FAILS(make_session(&spec), ORT_INVALID_GRAPH, "weight checksum");
    CHECK_HAS(ort_text, binary_name("m"));
    spec.options = NULL; /* so few are always read */
    CHECK_ORT_FAILS(make_session(&spec), ORT_INVALID_GRAPH, "weight checksum");
    spec.options = options;
    options[1] = "never";
    CHECK_ORT(make_session(&spec));
    options[1] = "true";
    CHECK_ORT_FAILS(make_session(&spec), ORT_FAIL,
                    "check_weights: expected never, auto or always, found 'true'");
}

/* Files of a snapshot are links into the folder of blobs: fine where the application says that it
 * is such a cache, and into no other folder. */
TEST(hugging_face_cache) {
    static const char *const cache[] = {"hugging_face_cache", "1", NULL};
    static const char *const share[] = {"ep.share_ep_contexts", "1", NULL};
    ort_spec spec = spec_of(in_folder("hub/snapshots/x/m_ctx.onnx"));
    char link[192], target[64];
    int shared;
    CHECK_TRUE(make_one("m.onnx"));
    CHECK_ORT(generate_one(generate));
    mkdir(in_folder("hub"), 0777);
    mkdir(in_folder("hub/blobs"), 0777);
    mkdir(in_folder("hub/other"), 0777);
    mkdir(in_folder("hub/snapshots"), 0777);
    mkdir(in_folder("hub/snapshots/x"), 0777);
    snprintf(link, sizeof link, "hub/snapshots/x/%s", binary_name("m"));
    CHECK_INT(rename(in_folder("m_ctx.onnx"), in_folder("hub/blobs/c")), 0);
    CHECK_INT(rename(in_folder(binary_name("m")), in_folder("hub/blobs/d")), 0);
#if defined(_WIN32)
    SKIP("tests/windows.h has no symbolic links: wine makes none");
#endif
    CHECK_INT(symlink("../../blobs/c", spec.path), 0);
    CHECK_INT(symlink("../../blobs/d", in_folder(link)), 0);
    for (shared = 0; shared < 2; shared++) {
        spec.config = shared ? share : NULL;
        spec.options = NULL;
        CHECK_ORT_FAILS(make_session(&spec), ORT_INVALID_GRAPH, "leaves the model's folder");
        CHECK_HAS(ort_text, "hugging_face_cache");
        spec.options = cache;
        CHECK(check_run(&spec, in_folder("m.onnx")) == 1, "shared %d: %s", shared, ort_text);
    }
    CHECK_INT(rename(in_folder("hub/blobs/d"), in_folder("hub/other/d")), 0);
    CHECK_INT(remove(in_folder(link)), 0);
    snprintf(target, sizeof target, "../../other/d");
    CHECK_INT(symlink(target, in_folder(link)), 0);
    spec.config = NULL;
    CHECK_ORT_FAILS(make_session(&spec), ORT_INVALID_GRAPH, "leaves the model's folder");
}

/* Whatever status the backend has for it: a context that cannot be loaded is INVALID_GRAPH. */
TEST(load_fails) {
    static const char *const options[] = {"fail_load", "1", NULL};
    ort_spec spec = spec_of(in_folder("m_ctx.onnx"));
    CHECK_TRUE(make_one("m.onnx"));
    CHECK_ORT(generate_one(generate));
    spec.options = options;
    CHECK_ORT_FAILS(make_session(&spec), ORT_INVALID_GRAPH, "told not to load");
    spec.options = NULL;
    CHECK(check_run(&spec, in_folder("m.onnx")) == 1, "%s", ort_text);
}

/* The binary of a recompiled model beside the old model: the graph hash tells. */
TEST(other_generation) {
    static const char *const notes[] = {"graph_hash=0123456789abcdef", NULL};
    ort_spec spec = spec_of(in_folder("p.onnx"));
    ort_contexts n;
    context_spec c;
    char partition[256];
    int i;
    CHECK_TRUE(make_one("m.onnx"));
    CHECK_ORT(generate_one(generate));
    CHECK(ort_read_contexts(in_folder("m_ctx.onnx"), &n), "%s", ort_text);
    keep(partition, sizeof partition, n.list[0].partition_name);
    epctx_model_close(&n.model);
    c = context_of(binary_name("m"), partition);
    for (i = 0; i < 2; i++) {
        c.notes = notes[i]; /* without the note nothing is checked */
        CHECK_TRUE(make_context("p.onnx", &c));
        if (notes[i])
            CHECK_ORT_FAILS(make_session(&spec), ORT_INVALID_GRAPH, "123456789abcdef");
        else
            CHECK(check_run(&spec, in_folder("m.onnx")) == 1, "%s", ort_text);
    }
}

/* Several primaries, embedded and in files, and secondaries before them, in one model. */
TEST(primaries_and_secondaries) {
    ort_spec spec = spec_of(in_folder("all.onnx"));
    ort_contexts n;
    onnx_model m;
    context_spec c;
    char names[4][256];
    uint8_t *payload;
    size_t size = 0, i, ran;
    /* `a` has three graphs in one file, `m` one that is embedded. */
    CHECK_TRUE(make_three("a.onnx"));
    CHECK_TRUE(make_one("m.onnx"));
    CHECK_ORT(generate_one(generate));
    spec.path = in_folder("a.onnx");
    spec.allow_cpu = true;
    spec.config = generate;
    CHECK_ORT(make_session(&spec));
    CHECK(ort_read_contexts(in_folder("a_ctx.onnx"), &n), "%s", ort_text);
    for (i = 0; i < 3; i++) {
        keep(names[i], sizeof names[i], n.list[i].partition_name);
        /* p1 is the one with input x alone: its graph is a + w1. */
    }
    epctx_model_close(&n.model);
    CHECK(ort_read_contexts(in_folder("m_ctx.onnx"), &n), "%s", ort_text);
    keep(names[3], sizeof names[3], n.list[0].partition_name);
    epctx_model_close(&n.model);
    payload = (uint8_t *)slurp(binary_name("m"), &size);
    CHECK_TRUE(payload != NULL);
    /* y = m(m(x)): the first node is a secondary, its primary comes later; the second is another
     * primary with the same payload in a file: then the secondary's graph is in two contexts. */
    onnx_begin(&m);
    onnx_input(&m.graph, "x", 2, dims23);
    onnx_output(&m.graph, "y", 2, dims23);
    onnx_value(&m.graph, ONNX_VALUE, "t", ONNX_FLOAT, 2, dims23);
    c = context_of(NULL, names[3]);
    c.main_context = 0;
    add_context(&m, &c, "second", "x", "t");
    c = embedded_of(payload, size, names[3]);
    add_context(&m, &c, "first", "t", "y");
    CHECK_TRUE(save_model("all.onnx", &m));
    /* The same by ordinary nodes, for the CPU. */
    onnx_begin(&m);
    onnx_input(&m.graph, "x", 2, dims23);
    onnx_output(&m.graph, "y", 2, dims23);
    {
        float w[6];
        weights(w, -1);
        onnx_floats(&m.graph, "w1", 2, dims23, w);
        weights(w, 2);
        onnx_floats(&m.graph, "w2", 2, dims23, w);
    }
    onnx_node(&m.graph, "Add", "", "1", "x,w1", "a", NULL);
    onnx_node(&m.graph, "Mul", "", "2", "a,w2", "b", NULL);
    onnx_node(&m.graph, "Relu", "", "3", "b", "c", NULL);
    onnx_node(&m.graph, "Sub", "", "4", "c,x", "t", NULL);
    onnx_node(&m.graph, "Add", "", "5", "t,w1", "d", NULL);
    onnx_node(&m.graph, "Mul", "", "6", "d,w2", "e", NULL);
    onnx_node(&m.graph, "Relu", "", "7", "e", "f", NULL);
    onnx_node(&m.graph, "Sub", "", "8", "f,t", "y", NULL);
    CHECK_TRUE(save_model("twice.onnx", &m));
    spec = spec_of(in_folder("all.onnx"));
    ran = check_run(&spec, in_folder("twice.onnx"));
    CHECK(ran == 2, "secondary before primary: %s", ort_text);
    /* Two primaries, one embedded, one of the file with three graphs; each with its own graph. */
    onnx_begin(&m);
    onnx_input(&m.graph, "x", 2, dims23);
    onnx_output(&m.graph, "y", 2, dims23);
    onnx_value(&m.graph, ONNX_VALUE, "t", ONNX_FLOAT, 2, dims23);
    c = context_of(binary_name("m"), names[3]);
    add_context(&m, &c, "file", "x", "t");
    c = embedded_of(payload, size, names[3]);
    add_context(&m, &c, "inside", "t", "y");
    CHECK_TRUE(save_model("all.onnx", &m));
    ran = check_run(&spec, in_folder("twice.onnx"));
    CHECK(ran == 2, "two primaries: %s", ort_text);
    /* A secondary whose graph both have takes the first one's, as epctx_load does. */
    onnx_begin(&m);
    onnx_input(&m.graph, "x", 2, dims23);
    onnx_output(&m.graph, "y", 2, dims23);
    onnx_value(&m.graph, ONNX_VALUE, "t", ONNX_FLOAT, 2, dims23);
    onnx_value(&m.graph, ONNX_VALUE, "u", ONNX_FLOAT, 2, dims23);
    c = context_of(binary_name("m"), names[3]);
    add_context(&m, &c, "file", "x", "t");
    c = embedded_of(payload, size, names[3]);
    add_context(&m, &c, "inside", "t", "u");
    c = context_of(NULL, names[3]);
    c.main_context = 0;
    add_context(&m, &c, "second", "u", "y");
    CHECK_TRUE(save_model("all.onnx", &m));
    free(payload);
    CHECK_ORT(make_session(&spec));
}

/* Can the session be made? What it logs is in ort_log. */
static bool logged_session(const ort_spec *spec) {
    OrtSessionOptions *options = NULL;
    OrtSession *session = NULL;
    ort_log_clear();
    if (ort_options(spec, &options) &&
        ort_ok(ort->SetUserLoggingFunction(options, ort_logger, NULL)))
        ort_ok(ort->CreateSession(ort_env, ort_path(spec->path), options, &session));
    if (session) ort->ReleaseSession(session);
    if (options) ort->ReleaseSessionOptions(options);
    return session != NULL;
}

/* Options that make no sense fail the session, with the reason, if they count: what only generating
 * needs is a warning when loading. ORT turns every code from CreateEp into FAIL. */
TEST(bad_options) {
    static const char *const embed[] = {"ep.context_enable", "1", "ep.context_embed_mode", "2",
                                        NULL};
    static const char *const share[] = {"ep.share_ep_contexts", "2", NULL};
    static const char *const stop[] = {"ep.context_enable", "1", "ep.stop_share_ep_contexts", "1",
                                       NULL};
    static const char *const both[] = {
        "ep.context_enable", "1", "ep.context_embed_mode", "1", "ep.share_ep_contexts", "1", NULL};
    const char *const missing[] = {"ep.context_enable", "1", "ep.context_file_path",
                                   in_folder("no/such/folder/m_ctx.onnx"), NULL};
    static const char *const disabled[] = {"ep.context_enable", "1",
                                           "session.disable_model_compile", "1", NULL};
    static const char *const as_folder[] = {"ep.context_enable", "1", "ep.context_file_path",
                                            "out/", NULL};
    ort_spec spec = spec_of(in_folder("m.onnx"));
    CHECK_TRUE(make_one("m.onnx"));
    spec.config = embed;
    CHECK_ORT_FAILS(make_session(&spec), ORT_FAIL, "one of 0 1 is expected, found '2'");
    spec.config = share;
    CHECK_ORT_FAILS(make_session(&spec), ORT_FAIL, "one of 0 1 is expected, found '2'");
    spec.config = stop;
    CHECK_ORT_FAILS(make_session(&spec), ORT_FAIL, "without ep.share_ep_contexts");
    spec.config = both;
    CHECK_ORT_FAILS(make_session(&spec), ORT_FAIL, "a shared binary is a file of its own");
    spec.config = missing;
    CHECK(!make_session(&spec), "expected a missing folder to fail");
    CHECK_HAS(ort_text, "no/such/folder");
    /* ORT's own answers keep ORT's codes. */
    spec.config = disabled;
    CHECK_ORT_FAILS(make_session(&spec), ORT_MODEL_REQUIRES_COMPILATION, ep->ep);
    spec.config = as_folder;
    CHECK_ORT_FAILS(make_session(&spec), ORT_INVALID_ARGUMENT, "should not point to a folder");
    CHECK_INT(count_files(), 1);
    /* Nothing is overwritten through session options: ORT's rule. */
    CHECK_ORT(generate_one(generate));
    CHECK(!generate_one(generate), "expected an existing context model to fail");
    CHECK_HAS(ort_text, "exists already");
}

/* What a session does not need is no reason to refuse it: a warning in ORT's log, whoever has set
 * the option. Walks the table of options. */
TEST(options_of_the_other_phase) {
    static const char *const stop[] = {"ep.stop_share_ep_contexts", "1", NULL};
    static const char *const both[] = {"ep.share_ep_contexts", "1", "ep.context_embed_mode", "1",
                                       NULL};
    static const char *const as_folder[] = {"ep.context_file_path", "no_such_folder/", NULL};
    size_t count, i;
    const epctx_option_info *list = epctx_option_list(&count);
    ort_spec spec = spec_of(in_folder("m.onnx"));
    CHECK_TRUE(make_one("m.onnx"));
    for (i = 0; i < count; i++) {
        const char *const config[] = {list[i].key, "yes", NULL};
        if (list[i].type != EPCTX_OPTION_TYPE_SWITCH || (list[i].phases & EPCTX_PHASE_LOAD) != 0)
            continue;
        spec.config = config;
        CHECK(logged_session(&spec), "%s: %s", list[i].key, ort_text);
        CHECK_HAS(ort_log, list[i].key);
        CHECK_HAS(ort_log, "one of 0 1 is expected, found 'yes'");
    }
    spec.config = stop;
    CHECK(logged_session(&spec), "%s", ort_text);
    CHECK_HAS(ort_log, "without ep.share_ep_contexts");
    spec.config = both;
    CHECK(logged_session(&spec), "%s", ort_text);
    CHECK_HAS(ort_log, "a shared binary is a file of its own");
    spec.config = as_folder;
    CHECK(logged_session(&spec), "%s", ort_text);
    CHECK_INT(count_files(), 1);
}

/* As a session entry, under the EP's prefix. */
TEST(unknown_entry) {
    char own[160];
    const char *config[] = {own, "1", NULL};
    size_t i;
    ort_spec spec = spec_of(in_folder("m.onnx"));
    CHECK_TRUE(make_one("m.onnx"));
    snprintf(own, sizeof own, "ep.%s.no_such_option", ep->ep);
    for (i = 0; own[i]; i++)
        own[i] = own[i] >= 'A' && own[i] <= 'Z' ? (char)(own[i] - 'A' + 'a') : own[i];
    spec.config = config;
    CHECK_ORT_FAILS(make_session(&spec), ORT_FAIL, "has no option 'no_such_option'");
}

/* An option that nobody knows would have no effect. */
TEST(unknown_options) {
    static const char *const one_letter[] = {"hugging_face_cach", "1", NULL};
    static const char *const far[] = {"colour", "blue", NULL};
    static const char *const value[] = {"hugging_face_cache", "yes", NULL};
    static const char *const entry[] = {"ep.context_enabled",
                                        "1",
                                        "session.no_such_thing",
                                        "1",
                                        "ep.other.enabled",
                                        "1",
                                        "my.own",
                                        "x",
                                        NULL};
    char cut[64], meant[160];
    const char *letter[] = {cut, "1", NULL};
    ort_spec spec = spec_of(in_folder("m.onnx"));
    CHECK_TRUE(make_one("m.onnx"));
    spec.options = one_letter;
    CHECK_ORT_FAILS(make_session(&spec), ORT_FAIL,
                    "has no option 'hugging_face_cach', did you mean 'hugging_face_cache'?");
    if (ep->option[0]) { /* without its last letter */
        snprintf(cut, sizeof cut, "%.*s", (int)strlen(ep->option[0]) - 1, ep->option[0]);
        snprintf(meant, sizeof meant, "has no option '%s', did you mean '%s'?: it knows ", cut,
                 ep->option[0]);
        spec.options = letter;
        CHECK_ORT_FAILS(make_session(&spec), ORT_FAIL, meant);
    }
    spec.options = far;
    CHECK_ORT_FAILS(make_session(&spec), ORT_FAIL, "has no option 'colour': it knows ");
    CHECK_HAS(ort_text, ep->option[0] ? ep->option[0] : "hugging_face_cache");
    CHECK_HAS(ort_text, "device_memory_limit, hugging_face_cache, map_binary");
    spec.options = value;
    CHECK_ORT_FAILS(make_session(&spec), ORT_FAIL,
                    "hugging_face_cache: expected 0 or 1, found 'yes'");
    spec.options = NULL;
    /* Session entries are warned about: ORT may know more than we do. */
    spec.config = entry;
    CHECK(logged_session(&spec), "%s", ort_text);
    CHECK_HAS(ort_log,
              "there is no session option 'ep.context_enabled', the nearest is ep.context_enable");
    CHECK(!strstr(ort_log, "ep.other") && !strstr(ort_log, "my.own"), "%s", ort_log);
}

TEST(compile_disabled) {
    static const char *const config[] = {"session.disable_model_compile", "1", NULL};
    static const char *const generating[] = {"session.disable_model_compile", "1",
                                             "ep.context_enable", "1", NULL};
    ort_spec spec = spec_of(in_folder("m.onnx"));
    CHECK_TRUE(make_one("m.onnx"));
    spec.config = generating;
    CHECK_ORT_FAILS(make_session(&spec), ORT_MODEL_REQUIRES_COMPILATION, ep->ep);
    CHECK_ORT(generate_one(generate));
    spec.config = config;
    CHECK_ORT_FAILS(make_session(&spec), ORT_MODEL_REQUIRES_COMPILATION, ep->ep);
    spec.path = in_folder("m_ctx.onnx");
    CHECK(check_run(&spec, in_folder("m.onnx")) == 1, "%s", ort_text);
}

/* A context model without its EP. */
TEST(without_the_ep) {
    ort_spec spec = {0};
    CHECK_TRUE(make_one("m.onnx"));
    CHECK_ORT(generate_one(generate));
    spec.path = in_folder("m_ctx.onnx");
    CHECK_ORT_FAILS(make_session(&spec), ORT_NOT_IMPLEMENTED, ep->ep);
}

/* What fails in Compute reaches the application with code and text (the toy fails on demand). */
TEST(run_fails) {
    static const char *const options[] = {"fail_run", "1", NULL};
    ort_spec spec = spec_of(in_folder("m.onnx"));
    OrtSession *session = NULL;
    ort_values out;
    bool ok;
    CHECK_TRUE(make_one("m.onnx"));
    spec.options = options;
    ok = ort_session(&spec, &session);
    if (ok) {
        ok = ort_run(session, 1, &out);
        ort->ReleaseSession(session);
    }
    CHECK_ORT_FAILS(ok, ORT_EP_FAIL, "the toy was told to fail");
}

/* The application's own tensors reach the backend: inputs and outputs are not copied. */
TEST(no_copies) {
    static const char *const options[] = {"show_addresses", "1", NULL};
    const char *const names_in[] = {"x"}, *const names_out[] = {"y"};
    ort_spec spec = spec_of(in_folder("m.onnx"));
    OrtSession *session = NULL;
    OrtMemoryInfo *memory = NULL;
    OrtValue *in = NULL, *out = NULL;
    const void *addresses[2] = {NULL, NULL};
    float x[6] = {0}, y[6] = {0};
    bool ok;
    CHECK_TRUE(make_one("m.onnx"));
    spec.options = options;
    ok = ort_session(&spec, &session) &&
         ort_ok(ort->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &memory)) &&
         ort_ok(ort->CreateTensorWithDataAsOrtValue(memory, x, sizeof x, dims23, 2,
                                                    ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &in)) &&
         ort_ok(ort->CreateTensorWithDataAsOrtValue(memory, y, sizeof y, dims23, 2,
                                                    ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &out)) &&
         ort_ok(ort->Run(session, NULL, names_in, (const OrtValue *const *)&in, 1, names_out, 1,
                         &out));
    if (in) ort->ReleaseValue(in);
    if (out) ort->ReleaseValue(out);
    if (memory) ort->ReleaseMemoryInfo(memory);
    if (session) ort->ReleaseSession(session);
    CHECK(ok, "%s", ort_text);
    memcpy(addresses, y, sizeof addresses);
    CHECK(addresses[0] == x, "the input was copied: expected %p, found %p", (const void *)x,
          addresses[0]);
    CHECK(addresses[1] == y, "the output was copied: expected %p, found %p", (const void *)y,
          addresses[1]);
}

/* Two EPs compile parts of one model; each finds its own nodes again. */
TEST(two_eps_in_one_model) {
    const subject *other = second_subject();
    const char *names[2] = {NULL, NULL};
    const OrtEpDevice *devices[2] = {NULL, NULL};
    OrtSession *session = NULL;
    ort_values want, got;
    ort_contexts n;
    onnx_model m;
    float w[6];
    size_t ran[2] = {0, 0}, i;
    int round;
    bool ok = true;
    char text[sizeof ort_text] = "";
    if (!other) SKIP("there is no second EP");
    names[strcmp(ep->label, "toy") != 0] = ep->ep;
    names[strcmp(ep->label, "toy") == 0] = other->ep;
    onnx_begin(&m);
    onnx_input(&m.graph, "x", 2, dims23);
    weights(w, 1);
    onnx_floats(&m.graph, "w", 2, dims23, w);
    onnx_node(&m.graph, "Add", "", "for_both", "x,w", "a", NULL);
    onnx_node(&m.graph, "Tanh", "", "for_the_npu", "a", "b", NULL);
    onnx_node(&m.graph, "Mul", "", "for_both_too", "b,w", "y", NULL);
    onnx_output(&m.graph, "y", 2, dims23);
    CHECK_TRUE(save_model("m.onnx", &m));
    CHECK_ORT(register_library(other->label, other->library));
    memset(&want, 0, sizeof want);
    memset(&got, 0, sizeof got);
    for (round = 0; round < 2 && ok; round++) {
        OrtSessionOptions *options = NULL;
        ort_spec spec = {0};
        spec.config = round ? NULL : generate;
        ok = ort_options(&spec, &options) &&
             ort_ok(ort->AddSessionConfigEntry(options, "session.disable_cpu_ep_fallback", "1"));
        for (i = 0; i < 2 && ok; i++) { /* the toy first: it leaves Tanh to the NPU */
            devices[i] = ort_device(names[i], OrtHardwareDeviceType_CPU);
            ok = devices[i] && ort_ok(ort->SessionOptionsAppendExecutionProvider_V2(
                                   options, ort_env, &devices[i], 1, NULL, NULL, 0));
        }
        ok = ok &&
             ort_ok(ort->CreateSession(
                 ort_env, ort_path(in_folder(round ? "m_ctx.onnx" : "m.onnx")), options, &session));
        if (options) ort->ReleaseSessionOptions(options);
        if (ok && round) {
            ok = ort_run(session, 7, &got) && cpu_outputs(in_folder("m.onnx"), &want) &&
                 ort_same(&got, &want);
            for (i = 0; i < 2; i++) ran[i] = ort_assigned(session, names[i]);
        }
        memcpy(text, ort_text, sizeof text);
        if (session) ort->ReleaseSession(session);
        session = NULL;
    }
    ort_values_free(&want);
    ort_values_free(&got);
    ort_ok(ort->UnregisterExecutionProviderLibrary(ort_env, other->label));
    CHECK(ok, "%s", text);
    CHECK_INT(ran[0], 2);
    CHECK_INT(ran[1], 1);
    CHECK_TRUE(exists("m_toy.bin") && exists("m_npu.bin"));
    CHECK(ort_read_contexts(in_folder("m_ctx.onnx"), &n), "%s", ort_text);
    epctx_model_close(&n.model);
    CHECK_INT(n.count, 3);
    CHECK_INT(n.others, 0);
}

/* The model says another shape than the binary was compiled for: an error, not a wrong access. */
TEST(other_shape_than_compiled) {
    ort_spec spec = spec_of(in_folder("p.onnx"));
    OrtSession *session = NULL;
    ort_values out;
    ort_contexts n;
    onnx_model m;
    context_spec c;
    char partition[256], wanted[400];
    int64_t dims[2] = {2, 2};
    bool ok;
    CHECK_TRUE(make_one("m.onnx"));
    CHECK_ORT(generate_one(generate));
    CHECK(ort_read_contexts(in_folder("m_ctx.onnx"), &n), "%s", ort_text);
    keep(partition, sizeof partition, n.list[0].partition_name);
    snprintf(wanted, sizeof wanted,
             "node 'ctx': attribute 'partition_name': graph '%s' of the context has 1 input, the "
             "node has 2",
             partition);
    epctx_model_close(&n.model);
    c = context_of(binary_name("m"), partition);
    onnx_begin(&m);
    onnx_input(&m.graph, "x", 2, dims);
    onnx_output(&m.graph, "y", 2, dims);
    add_context(&m, &c, "ctx", "x", "y");
    CHECK_TRUE(save_model("p.onnx", &m));
    ok = ort_session(&spec, &session);
    if (ok) {
        ok = ort_run(session, 1, &out);
        ort->ReleaseSession(session);
    }
    CHECK_ORT_FAILS(ok, ORT_INVALID_ARGUMENT, "expected float32[2,3], found float32[2,2]");
    /* Another number of inputs shows when it is loaded. */
    onnx_begin(&m);
    onnx_input(&m.graph, "x", 2, dims23);
    onnx_input(&m.graph, "z", 2, dims23);
    onnx_output(&m.graph, "y", 2, dims23);
    add_context(&m, &c, "ctx", "x,z", "y");
    CHECK_TRUE(save_model("p.onnx", &m));
    CHECK_ORT_FAILS(make_session(&spec), ORT_INVALID_GRAPH, wanted);
    /* The same value twice: ORT's fused node has one input. */
    onnx_begin(&m);
    onnx_input(&m.graph, "x", 2, dims23);
    onnx_output(&m.graph, "y", 2, dims23);
    add_context(&m, &c, "ctx", "x,x", "y");
    CHECK_TRUE(save_model("p.onnx", &m));
    CHECK_ORT_FAILS(make_session(&spec), ORT_INVALID_GRAPH, wanted);
}

/* Promises ORT asks of an EP and this one does not make. */
TEST(nothing_compiled) {
    static const char *const weightless[] = {"ep.enable_weightless", "1", NULL};
    ort_spec spec = spec_of(in_folder("m.onnx"));
    ort_output out = {0};
    onnx_model m;
    float w[3] = {1, 2, 3};
    onnx_begin(&m);
    onnx_input(&m.graph, "x", 2, dims23);
    onnx_floats(&m.graph, "bias", 1, dims23 + 1, w);
    onnx_node(&m.graph, "BiasGelu", "com.microsoft", "cpu", "x,bias", "y", NULL);
    onnx_output(&m.graph, "y", 2, dims23);
    CHECK_TRUE(save_model("m.onnx", &m));
    out.path = in_folder("o.onnx");
    out.flags = OrtCompileApiFlags_ERROR_IF_NO_NODES_COMPILED;
    spec.allow_cpu = true;
    CHECK_ORT_FAILS(ort_compile_model(&spec, &out), ORT_FAIL, "Unable to compile any nodes");
    CHECK_INT(count_files(), 1);
    /* Through session options ORT writes nothing and calls that success. */
    CHECK_ORT(generate_one(generate));
    CHECK_INT(count_files(), 1);
    if (ort_version < 29) return; /* an option of 1.29 */
    CHECK_TRUE(make_one("m.onnx"));
    if (strcmp(ep->label, "toy") != 0) return; /* test_plugin_weightless.c */
    spec.config = weightless;
    CHECK(!make_session(&spec), "expected weightless mode to be refused");
    CHECK_HAS(ort_text, "does not support weightless mode");
}

/* The compile API, with the CPU's weights in a file. */
TEST(compile_api_external_initializers) {
    ort_spec spec = spec_of(in_folder("m.onnx"));
    ort_output out = {0};
    CHECK_TRUE(make_three("m.onnx"));
    out.path = in_folder("o_ctx.onnx");
    out.initializers = "cpu.bin";
    spec.allow_cpu = true;
    CHECK_ORT(ort_compile_model(&spec, &out));
    CHECK_TRUE(exists("cpu.bin") && exists(binary_name("o")));
    spec.path = in_folder("o_ctx.onnx");
    CHECK(check_run(&spec, in_folder("m.onnx")) == 3, "%s", ort_text);
    /* Without the CPU this model cannot run, and ORT says so. */
    spec.allow_cpu = false;
    CHECK(!make_session(&spec), "expected a missing CPU fallback to fail");
    CHECK_HAS(ort_text, "fallback to CPU EP has been explicitly disabled");
}

/* ------------------------------------------------------------ compatibility */

static bool set_metadata(const char *from, const char *to, const char *key, const char *value) {
    epctx_model model;
    epctx_error error;
    epctx_status status = epctx_model_open_file(&model, in_folder(from), NULL, &error);
    if (status == EPCTX_OK)
        status = epctx_edit_set_metadata(&model, epctx_str_of(key), epctx_str_of(value), &error);
    if (status == EPCTX_OK) status = epctx_model_write_file(&model, in_folder(to), NULL, &error);
    epctx_model_close(&model);
    return status == EPCTX_OK;
}

static OrtCompiledModelCompatibility verdict_of(const char *text) {
    const OrtEpDevice *device = ort_device(ep->ep, OrtHardwareDeviceType_CPU);
    OrtCompiledModelCompatibility verdict = (OrtCompiledModelCompatibility)-1;
    if (!ort_ok(ort->GetModelCompatibilityForEpDevices(&device, 1, text, &verdict)))
        return (OrtCompiledModelCompatibility)-1;
    return verdict;
}

TEST(compatibility) {
    static const char *const strict[] = {"session.fail_on_suboptimal_compiled_model", "1", NULL};
    ort_spec spec = spec_of(in_folder("c_ctx.onnx"));
    OrtAllocator *allocator = NULL;
    char *text = NULL;
    char key[128], own[512], changed[512], *at;
    CHECK_TRUE(make_one("m.onnx"));
    CHECK_ORT(generate_one(generate));
    CHECK_ORT(ort_ok(ort->GetAllocatorWithDefaultOptions(&allocator)));
    CHECK_ORT(ort_ok(ort->GetCompatibilityInfoFromModel(ort_path(in_folder("m_ctx.onnx")), ep->ep,
                                                        allocator, &text)));
    CHECK_TRUE(text != NULL);
    snprintf(own, sizeof own, "%s", text);
    allocator->Free(allocator, text);
    CHECK_HAS(own, ep->ep);
    CHECK_INT(verdict_of(own), OrtCompiledModelCompatibility_EP_SUPPORTED_OPTIMAL);
    CHECK_INT(verdict_of("something else"), OrtCompiledModelCompatibility_EP_NOT_APPLICABLE);
    CHECK_INT(verdict_of(""), OrtCompiledModelCompatibility_EP_NOT_APPLICABLE);
    snprintf(key, sizeof key, "ep_compatibility_info.%s", ep->ep);
    /* Another architecture cannot run. */
    snprintf(changed, sizeof changed, "%.*s;arch=nowhere", (int)strcspn(own, ";"), own);
    at = strstr(own, ";arch=");
    CHECK_TRUE(at != NULL);
    snprintf(changed, sizeof changed, "%.*s;arch=nowhere", (int)(at - own), own);
    CHECK_INT(verdict_of(changed), OrtCompiledModelCompatibility_EP_UNSUPPORTED);
    CHECK_TRUE(set_metadata("m_ctx.onnx", "c_ctx.onnx", key, changed));
    CHECK(!make_session(&spec), "expected an unsupported model to fail");
    CHECK_HAS(ort_text, "not supported");
    /* Another minor version of the SDK can, but a fresh compilation would be better. */
    at = strstr(own, ";sdk=");
    CHECK_TRUE(at != NULL);
    {
        const char *major = at + 5;
        const char *rest = strchr(major, ';');
        CHECK_TRUE(rest != NULL);
        snprintf(changed, sizeof changed, "%.*s%.*s.99.0%s", (int)(major - own), own,
                 (int)strcspn(major, "."), major, rest);
    }
    CHECK_INT(verdict_of(changed), OrtCompiledModelCompatibility_EP_SUPPORTED_PREFER_RECOMPILATION);
    CHECK_TRUE(set_metadata("m_ctx.onnx", "c_ctx.onnx", key, changed));
    CHECK(check_run(&spec, in_folder("m.onnx")) == 1, "%s", ort_text);
    spec.config = strict;
    CHECK(!make_session(&spec), "expected a suboptimal model to fail");
    CHECK_HAS(ort_text, "suboptimal");
    /* A string of somebody else under our key is not our business. */
    spec.config = NULL;
    CHECK_TRUE(set_metadata("m_ctx.onnx", "c_ctx.onnx", key, "???"));
    CHECK(check_run(&spec, in_folder("m.onnx")) == 1, "%s", ort_text);
}

/* A constant that is computed, and used by two partitions: ORT cannot copy its node into both, so
 * it stays on the CPU and its value is an input of theirs. */
TEST(shared_constant_node) {
    ort_spec spec = spec_of(in_folder("m.onnx"));
    onnx_model m;
    float w[6];
    size_t ran;
    onnx_begin(&m);
    onnx_input(&m.graph, "x", 2, dims23);
    weights(w, 1);
    onnx_floats(&m.graph, "w1", 2, dims23, w);
    onnx_floats(&m.graph, "w2", 2, dims23, w);
    onnx_floats(&m.graph, "bias", 1, dims23 + 1, w);
    onnx_node(&m.graph, "Add", "", "constant", "w1,w2", "k", NULL);
    onnx_node(&m.graph, "Mul", "", "p1", "x,k", "a", NULL);
    onnx_node(&m.graph, "BiasGelu", "com.microsoft", "cpu", "a,bias", "b", NULL);
    onnx_node(&m.graph, "Mul", "", "p2", "b,k", "y", NULL);
    onnx_output(&m.graph, "y", 2, dims23);
    CHECK_TRUE(save_model("m.onnx", &m));
    spec.allow_cpu = true;
    spec.plain = true; /* or ORT would have folded it before we see it */
    ran = check_run(&spec, spec.path);
    CHECK(ran == 2, "%s", ort_text);
    spec.config = generate;
    CHECK_ORT(make_session(&spec));
    spec.config = NULL;
    spec.path = in_folder("m_ctx.onnx");
    ran = check_run(&spec, in_folder("m.onnx"));
    CHECK(ran == 2, "%s", ort_text);
}

/* A node whose value nobody reads makes no EPContext node: that would have no output. The first
 * model has another partition. */
TEST(unread_results) {
    int kind;
    for (kind = 0; kind < 4; kind++) {
        const bool other = kind < 2, api = kind % 2 == 1;
        ort_spec spec = spec_of(in_folder("m.onnx"));
        ort_output out = {0};
        onnx_model m;
        float w[6];
        clear_folder();
        weights(w, 1);
        onnx_begin(&m);
        onnx_input(&m.graph, "x", 2, dims23);
        onnx_floats(&m.graph, "w", 2, dims23, w);
        onnx_floats(&m.graph, "bias", 1, dims23 + 1, w);
        onnx_node(&m.graph, "BiasGelu", "com.microsoft", "cpu", "x,bias", other ? "a" : "y", NULL);
        onnx_node(&m.graph, "Mul", "", "dead", other ? "a,w" : "x,w", "d", NULL);
        if (other) onnx_node(&m.graph, "Add", "", "p", "x,w", "y", NULL);
        onnx_output(&m.graph, "y", 2, dims23);
        CHECK_TRUE(save_model("m.onnx", &m));
        spec.allow_cpu = true;
        spec.plain = true; /* or ORT drops the node before we see it */
        spec.config = api ? NULL : generate;
        out.path = in_folder("m_ctx.onnx");
        CHECK(api ? ort_compile_model(&spec, &out) : make_session(&spec), "kind %d: %s", kind,
              ort_text);
        CHECK(exists(binary_name("m")) == other, "kind %d: %zu files", kind, count_files());
        if (!other) continue;
        spec.config = NULL;
        spec.path = in_folder("m_ctx.onnx");
        CHECK(check_run(&spec, in_folder("m.onnx")) == 1, "kind %d: %s", kind, ort_text);
    }
}

/* When it loads the context model ONNX Runtime replaces Shape by a constant: nothing reads the
 * first output of our node then, and it is dropped. */
TEST(pruned_output) {
    const int64_t dims2[] = {2};
    ort_spec spec = spec_of(in_folder("m.onnx"));
    onnx_model m;
    float w[6];
    size_t ran;
    onnx_begin(&m);
    onnx_input(&m.graph, "x", 2, dims23);
    weights(w, 1);
    onnx_floats(&m.graph, "w", 2, dims23, w);
    onnx_node(&m.graph, "Add", "", "p1", "x,w", "a", NULL);
    onnx_node(&m.graph, "Mul", "", "p2", "a,w", "y", NULL);
    onnx_node(&m.graph, "Shape", "", "cpu", "a", "s", NULL);
    onnx_output(&m.graph, "y", 2, dims23);
    onnx_value(&m.graph, ONNX_OUTPUT, "s", EPCTX_ONNX_INT64, 1, dims2);
    CHECK_TRUE(save_model("m.onnx", &m));
    spec.allow_cpu = true;
    spec.plain = true;
    spec.config = generate;
    CHECK_ORT(make_session(&spec));
    spec.config = NULL;
    spec.path = in_folder("m_ctx.onnx");
    for (spec.plain = false;; spec.plain = true) {
        ran = check_run(&spec, in_folder("m.onnx"));
        CHECK(ran == 1, "%s optimized: %s", spec.plain ? "not" : "when", ort_text);
        if (spec.plain) break;
    }
}

/* ONNX Runtime cannot tell an EP of an attribute that is a type: only its node is not for us. */
TEST(attribute_of_a_type) {
    ort_spec spec = spec_of(in_folder("m.onnx"));
    onnx_bytes attrs = {0};
    onnx_model m;
    float w[6];
    onnx_begin(&m);
    onnx_input(&m.graph, "x", 2, dims23);
    weights(w, 1);
    onnx_floats(&m.graph, "w", 2, dims23, w);
    onnx_attr_type(&attrs, "type", EPCTX_ONNX_FLOAT);
    onnx_node(&m.graph, "Optional", "", "cpu", "", "o", &attrs);
    onnx_node(&m.graph, "OptionalHasElement", "", "cpu2", "o", "has", NULL);
    onnx_node(&m.graph, "Add", "", "p1", "x,w", "a", NULL);
    onnx_node(&m.graph, "Mul", "", "p2", "a,w", "y", NULL);
    onnx_output(&m.graph, "y", 2, dims23);
    onnx_value(&m.graph, ONNX_OUTPUT, "has", EPCTX_ONNX_BOOL, 0, dims23);
    CHECK_TRUE(save_model("m.onnx", &m));
    spec.allow_cpu = true;
    spec.plain = true;
    CHECK(check_run(&spec, in_folder("m.onnx")) == 2, "%s", ort_text);
    spec.config = generate;
    CHECK_ORT(make_session(&spec));
    spec.config = NULL;
    spec.path = in_folder("m_ctx.onnx");
    CHECK(check_run(&spec, in_folder("m.onnx")) == 1, "%s", ort_text);
}

/* k = w1 + w2 and k2 = k * w1 are constant. Who reads them: the partition alone; also the
 * application; also a node of the CPU; a node of the CPU that the partition reads. */
enum { CONSTANT_ALONE, CONSTANT_OUTPUT, CONSTANT_CPU, CONSTANT_BEFORE, CONSTANT_KINDS };

static bool make_constants(const char *name, int kind) {
    onnx_model m;
    float w[6];
    onnx_begin(&m);
    onnx_input(&m.graph, "x", 2, dims23);
    weights(w, 1);
    onnx_floats(&m.graph, "w1", 2, dims23, w);
    onnx_floats(&m.graph, "w2", 2, dims23, w);
    onnx_floats(&m.graph, "bias", 1, dims23 + 1, w);
    onnx_node(&m.graph, "Add", "", "first", "w1,w2", "k", NULL);
    onnx_node(&m.graph, "Mul", "", "second", "k,w1", "k2", NULL);
    if (kind == CONSTANT_CPU || kind == CONSTANT_BEFORE)
        onnx_node(&m.graph, "BiasGelu", "com.microsoft", "cpu", "k,bias", "u", NULL);
    if (kind == CONSTANT_BEFORE) {
        onnx_node(&m.graph, "Mul", "", "third", "u,k2", "t", NULL);
        onnx_node(&m.graph, "Add", "", "fourth", "x,t", "y", NULL);
    } else {
        onnx_node(&m.graph, "Mul", "", "third", "x,k2", "y", NULL);
    }
    onnx_output(&m.graph, "y", 2, dims23);
    if (kind == CONSTANT_OUTPUT) onnx_output(&m.graph, "k2", 2, dims23);
    if (kind == CONSTANT_CPU) onnx_output(&m.graph, "u", 2, dims23);
    return save_model(name, &m);
}

/* Constant nodes belong to the partition that uses them, unless another node does, too. */
TEST(constant_nodes) {
    static const size_t left[CONSTANT_KINDS] = {0, 0, 2, 2}, ours[CONSTANT_KINDS] = {3, 3, 2, 3};
    int kind;
    for (kind = 0; kind < CONSTANT_KINDS; kind++) {
        ort_spec spec = spec_of(in_folder("m.onnx"));
        ort_output out = {0};
        ort_contexts n;
        size_t ran, count, others;
        clear_folder();
        CHECK_TRUE(make_constants("m.onnx", kind));
        spec.plain = true; /* or ORT would have folded them before we see them */
        spec.allow_cpu = kind > CONSTANT_OUTPUT;
        ran = check_run(&spec, spec.path);
        CHECK(ran == ours[kind], "kind %d: expected %zu nodes, found %zu: %s", kind, ours[kind],
              ran, ort_text);
        spec.config = generate;
        CHECK_ORT(make_session(&spec));
        spec.config = NULL;
        out.path = in_folder("o_ctx.onnx"); /* the compile API optimizes nothing by itself */
        spec.plain = false;
        CHECK_ORT(ort_compile_model(&spec, &out));
        CHECK(ort_read_contexts(in_folder("o_ctx.onnx"), &n), "%s", ort_text);
        count = n.count;
        others = n.others;
        epctx_model_close(&n.model);
        CHECK(count == 1 && others == left[kind], "kind %d: %zu EPContext nodes, %zu others", kind,
              count, others);
        spec.plain = true;
        spec.path = in_folder("m_ctx.onnx");
        CHECK(check_run(&spec, in_folder("m.onnx")) == 1, "kind %d: %s", kind, ort_text);
        spec.path = out.path;
        CHECK(check_run(&spec, in_folder("m.onnx")) == 1, "kind %d: %s", kind, ort_text);
    }
}

/* -------------------------------------------------------------- concurrency */

typedef struct worker {
    OrtSession *session;
    const ort_values *want;
    uint32_t seed;
    bool ok;
} worker;

static void *work(void *argument) {
    worker *w = (worker *)argument;
    const char *const names_in[] = {"x"}, *const names_out[] = {"y"};
    OrtAllocator *allocator = NULL;
    ort_values input = {0};
    const void *want = NULL, *got = NULL;
    OrtStatus *status;
    int i;
    input.count = 1;
    status = ort->GetAllocatorWithDefaultOptions(&allocator);
    w->ok = !status && ort_make_input(w->session, 0, allocator, w->seed, &input);
    if (w->ok) w->ok = !ort->GetTensorData(w->want->values[0], &want);
    for (i = 0; w->ok && i < 200; i++) {
        OrtValue *out = NULL;
        w->ok = !ort->Run(w->session, NULL, names_in, (const OrtValue *const *)input.values, 1,
                          names_out, 1, &out);
        if (w->ok) {
            w->ok = !ort->GetTensorData(out, &got) && memcmp(got, want, 6 * sizeof(float)) == 0;
            ort->ReleaseValue(out);
        }
    }
    ort->ReleaseValue(input.values[0]);
    allocator->Free(allocator, input.names[0]);
    return NULL;
}

/* Eight threads on one session, each with inputs of its own, and a second session beside it. */
TEST(concurrent_runs) {
    enum { THREADS = 8 };
    ort_spec spec = spec_of(in_folder("m_ctx.onnx"));
    OrtSession *sessions[2] = {NULL, NULL};
    pthread_t threads[THREADS];
    worker workers[THREADS];
    ort_values want[THREADS];
    bool ok;
    int i;
    CHECK_TRUE(make_one("m.onnx"));
    CHECK_ORT(generate_one(generate));
    ok = ort_session(&spec, &sessions[0]) && ort_session(&spec, &sessions[1]);
    memset(want, 0, sizeof want);
    for (i = 0; ok && i < THREADS; i++) {
        ok = ort_run(sessions[0], (uint32_t)i, &want[i]);
        workers[i].session = sessions[i % 2];
        workers[i].want = &want[i];
        workers[i].seed = (uint32_t)i;
    }
    for (i = 0; ok && i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, &workers[i]) != 0) exit(1);
    for (i = 0; ok && i < THREADS; i++) pthread_join(threads[i], NULL);
    for (i = 0; ok && i < THREADS; i++) ok = workers[i].ok;
    for (i = 0; i < THREADS; i++) ort_values_free(&want[i]);
    for (i = 0; i < 2; i++)
        if (sessions[i]) ort->ReleaseSession(sessions[i]);
    CHECK(ok, "a thread failed or got another result");
}

/* Compiling for hardware that is elsewhere: the compile API's session is never run. The toy has a
 * second architecture. */
TEST(compile_for_other_hardware) {
    static const char *const options[] = {"architecture", "slide-rule", NULL};
    ort_spec spec = spec_of(in_folder("m.onnx"));
    ort_output out = {0};
    ort_contexts n;
    bool there;
    CHECK_TRUE(make_one("m.onnx"));
    out.path = in_folder("o_ctx.onnx");
    spec.options = options;
    CHECK_ORT(ort_compile_model(&spec, &out));
    CHECK(ort_read_contexts(in_folder("o_ctx.onnx"), &n), "%s", ort_text);
    there = n.count == 1 && epctx_str_is(n.list[0].hardware_architecture, "slide-rule");
    epctx_model_close(&n.model);
    CHECK_TRUE(there);
    spec.options = NULL;
    spec.path = out.path;
    CHECK(!make_session(&spec), "expected another architecture to be refused");
    CHECK_HAS(ort_text, "not supported");
}

/* At log level INFO the EP says of constant nodes that others need why they are left. */
TEST(explains_constant_nodes) {
    int kind;
    for (kind = 0; kind < CONSTANT_KINDS; kind++) {
        ort_spec spec = spec_of(in_folder("m.onnx"));
        clear_folder();
        CHECK_TRUE(make_constants("m.onnx", kind));
        spec.plain = true;
        spec.allow_cpu = kind > CONSTANT_OUTPUT;
        spec.tell = true;
        ort_log_clear();
        CHECK(check_run(&spec, spec.path), "kind %d: %s", kind, ort_text);
        CHECK(!strstr(ort_log, "Add 'first' is left to other EPs: all its inputs are constant") ==
                  (kind <= CONSTANT_OUTPUT),
              "kind %d: the log says of the constant node: %s", kind, ort_log);
    }
}

/* At log level INFO the EP says why a node is left to others. */
TEST(explains_refusals) {
    OrtSessionOptions *options = NULL;
    OrtSession *session = NULL;
    ort_spec spec = spec_of(in_folder("m.onnx"));
    bool ok;
    CHECK_TRUE(make_three("m.onnx"));
    spec.allow_cpu = true;
    ort_log_clear();
    ort_log_also = "takes ";
    ok = ort_options(&spec, &options) &&
         ort_ok(ort->SetSessionLogSeverityLevel(options, ORT_LOGGING_LEVEL_INFO)) &&
         ort_ok(ort->SetUserLoggingFunction(options, ort_logger, NULL)) &&
         ort_ok(ort->CreateSession(ort_env, ort_path(spec.path), options, &session));
    ort_log_also = NULL;
    if (session) ort->ReleaseSession(session);
    if (options) ort->ReleaseSessionOptions(options);
    CHECK(ok, "%s", ort_text);
    CHECK(strstr(ort_log, "BiasGelu 'cpu1' is left to other EPs"), "no such line in the log");
    CHECK(!strstr(ort_log, "Add 'p1' is left"), "a node that was taken is explained");
    CHECK_HAS(ort_log, "takes 4 of 6 nodes");
}

static char thread_paths[2][512];

static void *open_and_run(void *argument) {
    worker *w = (worker *)argument;
    int i;
    w->ok = true;
    for (i = 0; w->ok && i < 10; i++) {
        OrtSession *session = NULL;
        OrtSessionOptions *options = NULL;
        const OrtEpDevice *const *devices = NULL;
        const OrtEpDevice *mine = NULL;
        size_t count = 0, k;
        OrtStatus *status;
        /* Not through ort_ok: its texts are shared. */
        status = ort->GetEpDevices(ort_env, &devices, &count);
        for (k = 0; !status && k < count; k++)
            if (strcmp(ort->EpDevice_EpName(devices[k]), ep->ep) == 0) mine = devices[k];
        if (!status) status = ort->CreateSessionOptions(&options);
        if (!status) {
            status = ort->SessionOptionsAppendExecutionProvider_V2(options, ort_env, &mine, 1, NULL,
                                                                   NULL, 0);
        }
        if (!status) {
            /* Half of them compile, half load. */
            status =
                ort->CreateSession(ort_env, ort_path(thread_paths[w->seed % 2]), options, &session);
        }
        w->ok = !status;
        if (status) ort->ReleaseStatus(status);
        if (session) ort->ReleaseSession(session);
        if (options) ort->ReleaseSessionOptions(options);
    }
    return NULL;
}

/* Sessions made and released by several threads at once, compiling and loading. */
TEST(concurrent_sessions) {
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    worker workers[THREADS];
    int i;
    bool ok = true;
    CHECK_TRUE(make_one("m.onnx"));
    CHECK_ORT(generate_one(generate));
    snprintf(thread_paths[0], sizeof thread_paths[0], "%s", in_folder("m_ctx.onnx"));
    snprintf(thread_paths[1], sizeof thread_paths[1], "%s", in_folder("m.onnx"));
    for (i = 0; i < THREADS; i++) {
        memset(&workers[i], 0, sizeof workers[i]);
        workers[i].seed = (uint32_t)i;
        if (pthread_create(&threads[i], NULL, open_and_run, &workers[i]) != 0) exit(1);
    }
    for (i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        ok = ok && workers[i].ok;
    }
    CHECK(ok, "a session could not be made");
}

/* ------------------------------------------------------------- control flow */

/* What a body multiplies by: t itself; a constant of its own, of the main graph, or of the main
 * graph that is an input as well (so no constant). INNER, MIDDLE: the body is in another body, and
 * the constant is its own or the outer body's. */
enum {
    BODY_PLAIN,
    BODY_CONSTANT,
    BODY_INNER_CONSTANT,
    BODY_MIDDLE_CONSTANT,
    BODY_DEFAULT,
    BODY_OUTER_CONSTANT,
    BODY_INNER_OUTER_CONSTANT,
    BODY_COUNT
};

static bool body_is_inner(int body) {
    return body == BODY_INNER_CONSTANT || body == BODY_MIDDLE_CONSTANT ||
           body == BODY_INNER_OUTER_CONSTANT;
}

/* relu(t * ?) */
static void if_branch(onnx_bytes *graph, int body) {
    float w[6];
    weights(w, 1);
    if (body == BODY_CONSTANT || body == BODY_INNER_CONSTANT)
        onnx_floats(graph, "wc", 2, dims23, w);
    onnx_node(graph, "Mul", "", "inside",
              body == BODY_PLAIN                                                 ? "t,t"
              : body == BODY_OUTER_CONSTANT || body == BODY_INNER_OUTER_CONSTANT ? "t,w"
                                                                                 : "t,wc",
              "u", NULL);
    onnx_node(graph, "Relu", "", "inside2", "u", "v", NULL);
    onnx_output(graph, "v", 2, dims23);
}

static void if_other(onnx_bytes *graph, const char *to) {
    onnx_node(graph, "Identity", "", "other", "t", to, NULL);
    onnx_output(graph, to, 2, dims23);
}

/* if (flag) y = relu(t * ?) else y = t, where t = x + w is computed outside, used only inside. */
static bool make_if(const char *name, int body) {
    onnx_model m;
    onnx_bytes then_graph = {0}, else_graph = {0}, attrs = {0};
    onnx_bytes inner_then = {0}, inner_else = {0}, inner_attrs = {0};
    float w[6];
    onnx_begin(&m);
    weights(w, 1);
    onnx_value(&m.graph, ONNX_INPUT, "flag", ONNX_BOOL, 0, NULL);
    onnx_input(&m.graph, "x", 2, dims23);
    if (body == BODY_DEFAULT) onnx_input(&m.graph, "wc", 2, dims23);
    if (body == BODY_DEFAULT) onnx_floats(&m.graph, "wc", 2, dims23, w);
    onnx_floats(&m.graph, "w", 2, dims23, w);
    onnx_node(&m.graph, "Add", "", "outside", "x,w", "t", NULL);
    if (body_is_inner(body)) {
        if (body == BODY_MIDDLE_CONSTANT) onnx_floats(&then_graph, "wc", 2, dims23, w);
        if_branch(&inner_then, body);
        if_other(&inner_else, "inner_q");
        onnx_attr_graph(&inner_attrs, "then_branch", &inner_then);
        onnx_attr_graph(&inner_attrs, "else_branch", &inner_else);
        onnx_node(&then_graph, "If", "", "inner if", "flag", "z", &inner_attrs);
        onnx_output(&then_graph, "z", 2, dims23);
    } else {
        if_branch(&then_graph, body);
    }
    if_other(&else_graph, "q");
    onnx_attr_graph(&attrs, "then_branch", &then_graph);
    onnx_attr_graph(&attrs, "else_branch", &else_graph);
    onnx_node(&m.graph, "If", "", "if", "flag", "r", &attrs);
    onnx_node(&m.graph, "Relu", "", "after", "r", "y", NULL);
    onnx_output(&m.graph, "y", 2, dims23);
    return save_model(name, &m);
}

/* The NPU takes control flow whole, where ORT hands bodies over. */
static bool takes_bodies(void) {
    return strcmp(ep->label, "npu") == 0 && ort_version >= 29;
}

/* ORT itself writes the bodies of nodes that are left, but not what they use of the main graph. */
static bool writes_bodies(void) {
    return ort_version >= 31;
}

static bool body_is_refused(int body) {
    return body != BODY_PLAIN && (body >= BODY_DEFAULT || !writes_bodies());
}

/* JIT inside bodies works; while generating, bodies of nodes that are left stay as they are. */
TEST(control_flow) {
    ort_spec spec = spec_of(in_folder("m.onnx"));
    ort_contexts n;
    size_t compiled;
    int body;
    for (body = BODY_PLAIN; body < BODY_COUNT; body++) {
        CHECK_TRUE(make_if("m.onnx", body));
        spec.allow_cpu = true;
        /* Old runtimes cannot do it: there the bodies are the CPU's. */
        CHECK(check_run(&spec, spec.path) > (takes_bodies() || ort_version < 29 ? 0 : 2),
              "body %d: %s", body, ort_text);
    }
    CHECK_TRUE(make_if("m.onnx", BODY_PLAIN));
    CHECK_ORT(generate_one(generate));
    CHECK(ort_read_contexts(in_folder("m_ctx.onnx"), &n), "%s", ort_text);
    epctx_model_close(&n.model);
    /* Before 1.31 the Add stays on the CPU beside an If that is left: only a body uses its sum. */
    compiled = !takes_bodies() && writes_bodies() ? 2 : 1;
    CHECK_INT(n.count, compiled);
    CHECK_INT(n.others, takes_bodies() ? 0 : writes_bodies() ? 1 : 2);
    spec.path = in_folder("m_ctx.onnx");
    CHECK(check_run(&spec, in_folder("m.onnx")) == compiled, "%s", ort_text);
}

/* What ORT would write wrongly is refused; with our guard off ORT still does it. */
TEST(control_flow_refused) {
    static const char *const bypass[] = {"write_control_flow", "1", NULL};
    ort_spec spec = spec_of(in_folder("m.onnx"));
    int body;
    for (body = BODY_PLAIN; body < BODY_COUNT; body++) {
        bool mended;
        clear_folder();
        CHECK_TRUE(make_if("m.onnx", body));
        spec.allow_cpu = true;
        spec.config = generate;
        spec.options = NULL;
        spec.path = in_folder("m.onnx");
        if (takes_bodies()) {
            CHECK_ORT(make_session(&spec));
            spec.path = in_folder("m_ctx.onnx");
            spec.config = NULL;
            spec.allow_cpu = false;
            CHECK(check_run(&spec, in_folder("m.onnx")) == 1, "body %d: %s", body, ort_text);
            continue;
        }
        if (body_is_refused(body)) {
            CHECK_ORT_FAILS(make_session(&spec), ORT_NOT_IMPLEMENTED,
                            body < BODY_DEFAULT ? "has constants" : "an initializer of the main");
            CHECK_INT(count_files(), 1);
        }
        spec.options = bypass;
        mended = make_session(&spec);
        if (mended) {
            spec.path = in_folder("m_ctx.onnx");
            spec.config = NULL;
            mended = check_run(&spec, in_folder("m.onnx")) > 0;
        }
        if (writes_bodies() && !body_is_refused(body))
            CHECK(mended, "body %d: %s", body, ort_text);
        else
            CHECK(!mended, "%s writes this model rightly (body %d): lift the guard",
                  ort_base->GetVersionString(), body);
    }
}

/* if (flag) y = sin(x * wc) else y = x, of a type in which no backend here takes Sin: nothing is
 * claimed but within bodies. */
static bool make_foreign_if(const char *name, double first) {
    onnx_model m;
    onnx_bytes then_graph = {0}, else_graph = {0}, attrs = {0};
    const double w[6] = {first, 2, 3, 4, 5, 6};
    onnx_begin(&m);
    onnx_value(&m.graph, ONNX_INPUT, "flag", ONNX_BOOL, 0, NULL);
    onnx_value(&m.graph, ONNX_INPUT, "x", ONNX_DOUBLE, 2, dims23);
    onnx_tensor(&then_graph, "wc", ONNX_DOUBLE, 2, dims23, w, sizeof w);
    onnx_node(&then_graph, "Mul", "", "inside", "x,wc", "u", NULL);
    onnx_node(&then_graph, "Sin", "", "inside2", "u", "v", NULL);
    onnx_value(&then_graph, ONNX_OUTPUT, "v", ONNX_DOUBLE, 2, dims23);
    onnx_node(&else_graph, "Identity", "", "other", "x", "q", NULL);
    onnx_value(&else_graph, ONNX_OUTPUT, "q", ONNX_DOUBLE, 2, dims23);
    onnx_attr_graph(&attrs, "then_branch", &then_graph);
    onnx_attr_graph(&attrs, "else_branch", &else_graph);
    onnx_node(&m.graph, "If", "", "if", "flag", "y", &attrs);
    onnx_value(&m.graph, ONNX_OUTPUT, "y", ONNX_DOUBLE, 2, dims23);
    return save_model(name, &m);
}

/* Graphs whose bodies differ have other hashes: a stale binary is told apart. */
TEST(bodies_in_hashes) {
    static const char *const claim[] = {"take_if", "1", NULL};
    ort_spec spec = spec_of(in_folder("m.onnx"));
    char first[sizeof ort_text] = "";
    int i;
    spec.options = claim;
    spec.allow_cpu = true;
    for (i = 0; i < 3; i++) {
        CHECK_TRUE(make_foreign_if("m.onnx", i < 2 ? 1 : 7));
        CHECK(!make_session(&spec), "expected the toy to refuse an If");
        CHECK_HAS(ort_text, "the toy cannot compile If of graph ");
        if (i == 0) snprintf(first, sizeof first, "%s", ort_text);
        CHECK((strcmp(first, ort_text) == 0) == (i < 2), "%d: %s", i, ort_text);
    }
}

/* Also when nothing is claimed: the compile API writes a model all the same, which an ORT before
 * 1.31 then refuses. */
TEST(unclaimed_control_flow_refused) {
    static const char *const bypass[] = {"write_control_flow", "1", NULL};
    ort_spec spec = spec_of(in_folder("m.onnx"));
    ort_output out = {0};
    CHECK_TRUE(make_foreign_if("m.onnx", 1));
    spec.allow_cpu = true;
    CHECK_ORT(make_session(&spec)); /* the CPU runs it */
    out.path = in_folder("o.onnx");
    if (writes_bodies()) {
        CHECK_ORT(ort_compile_model(&spec, &out));
        spec.path = out.path;
        CHECK_ORT(make_session(&spec));
        return;
    }
    CHECK_ORT_FAILS(ort_compile_model(&spec, &out), ORT_NOT_IMPLEMENTED, "body of node 'if' (If)");
    spec.config = generate;
    CHECK_ORT_FAILS(make_session(&spec), ORT_NOT_IMPLEMENTED, "has constants");
    CHECK_INT(count_files(), 1);
    spec.config = NULL;
    spec.options = bypass;
    CHECK_ORT(ort_compile_model(&spec, &out));
    spec.options = NULL;
    spec.path = out.path;
    CHECK(!make_session(&spec), "%s writes this model rightly: lift the guard",
          ort_base->GetVersionString());
    CHECK_HAS(ort_text, "not unique");
}

/* if (flag) y = r * -1 else y = r, where r = relu(x): ORT folds the -1 of the body. */
static bool make_folding_if(const char *name) {
    onnx_model m;
    onnx_bytes then_graph = {0}, else_graph = {0}, attrs = {0};
    float w[6];
    onnx_begin(&m);
    weights(w, 1);
    onnx_value(&m.graph, ONNX_INPUT, "flag", ONNX_BOOL, 0, NULL);
    onnx_input(&m.graph, "x", 2, dims23);
    onnx_node(&m.graph, "Relu", "", "before", "x", "t", NULL);
    onnx_floats(&then_graph, "wc", 2, dims23, w);
    onnx_node(&then_graph, "Neg", "", "folded", "wc", "c", NULL);
    onnx_node(&then_graph, "Mul", "", "inside", "t,c", "v", NULL);
    onnx_output(&then_graph, "v", 2, dims23);
    if_other(&else_graph, "q");
    onnx_attr_graph(&attrs, "then_branch", &then_graph);
    onnx_attr_graph(&attrs, "else_branch", &else_graph);
    onnx_node(&m.graph, "If", "", "if", "flag", "y", &attrs);
    onnx_output(&m.graph, "y", 2, dims23);
    return save_model(name, &m);
}

/* ORT fails after Compile: a new binary goes with the session, unless a context model is there;
 * one that was there before stays, whoever wrote it. Without folding ORT writes the model. */
TEST(failed_sessions_leave_no_binary) {
    static const GraphOptimizationLevel none = ORT_DISABLE_ALL;
    ort_spec spec = spec_of(in_folder("m.onnx"));
    if (!writes_bodies()) SKIP("this ONNX Runtime refuses the model before Compile");
    CHECK_TRUE(make_folding_if("m.onnx"));
    spec.allow_cpu = true;
    spec.config = generate;
    CHECK_ORT_FAILS(make_session(&spec), ORT_FAIL, "Duplicate definition of name");
    CHECK_INT(count_files(), 1);
    CHECK_TRUE(save(binary_name("m"), "other", 5));
    CHECK_ORT_FAILS(make_session(&spec), ORT_FAIL, "Duplicate definition of name");
    CHECK_INT(count_files(), 2);
    spec.level = &none;
    CHECK_ORT(make_session(&spec));
    CHECK_INT(count_files(), 3);
    spec.path = in_folder("m_ctx.onnx");
    spec.config = NULL;
    CHECK(check_run(&spec, in_folder("m.onnx")) > 0, "%s", ort_text);
}

/* ------------------------------------------------------------------ crashes */

/* Runs ORT with a broken EP in another process: ORT_LIVES, or how that ended. */
enum { ORT_LIVES = 0, ORT_DIES = -1 };

static int fate(const char *what) {
    char *words[] = {program, "--broken", NULL, NULL};
    char model[512];
    snprintf(model, sizeof model, "%s", in_folder("m.onnx"));
    words[2] = model;
    remove(in_folder("m_ctx.onnx"));
    return run_self(words, what);
}

static int with_broken_ep(const char *name, const char *model) {
    ort_spec spec;
    if (!run_self_begin(name) || !register_library("bad", PLUGIN("bad_ep"))) return 3;
    spec = spec_of(model);
    spec.config = generate_embed;
    return make_session(&spec) ? ORT_LIVES : 4;
}

/* Two members whose absence ORT does not survive, which is why this EP always sets them. */
TEST(ort_crashes) {
    CHECK_TRUE(make_one("m.onnx"));
    CHECK_INT(fate("none"), ORT_LIVES);
    CHECK(fate("data_transfer") == ORT_DIES,
          "%s survives CreateDataTransfer NULL: update the notes", ort_base->GetVersionString());
    CHECK(fate("compatibility") == ORT_DIES,
          "%s survives compatibility info NULL: update the notes", ort_base->GetVersionString());
}

/* -------------------------------------------------------------- interchange */

/* The toy is linked into this program, too: no EP option is set here. */
const char *ep_option_get(const ep_options *options, const char *key) {
    (void)options, (void)key;
    return NULL;
}

/* The backend under test as epctx.h uses it, without ORT. */
typedef struct own_backend {
    epctx_backend backend;
    bool toy;
#ifdef HAVE_NPU
    epctx_npu npu;
#endif
} own_backend;

static bool own_known(void) {
    return strcmp(ep->label, "toy") == 0 || strcmp(ep->label, "npu") == 0;
}

static bool own_open(own_backend *own) {
    epctx_error error;
    memset(own, 0, sizeof *own);
    epctx_error_clear(&error);
    own->toy = strcmp(ep->label, "toy") == 0;
    if (own->toy) return ep_device_get()->open_fn(NULL, &own->backend, &error) == EPCTX_OK;
#ifdef HAVE_NPU
    return epctx_npu_init(&own->npu, NULL, &own->backend, &error) == EPCTX_OK;
#else
    return false;
#endif
}

static void own_close(own_backend *own) {
    if (own->toy) ep_device_get()->close_fn(&own->backend);
}

/* What epctx_generate writes, ORT loads. */
TEST(ours_in_ort) {
    int embed;
    if (!own_known()) SKIP("its backend is not in this program");
    for (embed = 0; embed < 2; embed++) {
        own_backend own;
        epctx_model model;
        epctx_gen_opts opts = {0};
        epctx_gen_report report;
        epctx_error error;
        epctx_status status;
        ort_spec spec = spec_of(in_folder("m_ctx.onnx"));
        clear_folder();
        CHECK_TRUE(make_three("m.onnx"));
        CHECK_TRUE(own_open(&own));
        opts.embed = embed;
        opts.name_prefix = "ours_";
        status = epctx_model_open_file(&model, in_folder("m.onnx"), NULL, &error);
        if (status == EPCTX_OK)
            status = epctx_generate(&model, &own.backend, &opts, &report, &error);
        epctx_model_close(&model);
        own_close(&own);
        CHECK_OK(status, error);
        CHECK_INT(report.partition_count, 3);
        spec.allow_cpu = true;
        CHECK(check_run(&spec, in_folder("m.onnx")) == 3, "embed %d: %s", embed, ort_text);
    }
}

/* Runs node `bound` of a loaded model on inputs made as ort_run makes them. */
static bool run_bound(own_backend *own, const epctx_bound *bound, float *out, size_t count,
                      epctx_error *error) {
    float x[6];
    epctx_span input;
    epctx_memory output;
    uint8_t *scratch;
    epctx_status status;
    if (bound->info.input_count != 1 || bound->info.output_count != 1) return false;
    ort_fill(x, 6, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, 7);
    input.data = (const uint8_t *)x;
    input.size = sizeof x;
    output.data = out;
    output.size = count * sizeof *out;
    scratch = (uint8_t *)malloc(bound->info.scratch_size + 64);
    if (!scratch) return false;
    status = own->backend.run_fn(own->backend.self, bound->graph, &input, &output,
                                 scratch + (64 - (uintptr_t)scratch % 64) % 64,
                                 bound->info.scratch_size, error);
    free(scratch);
    return status == EPCTX_OK;
}

/* What ORT writes through our EP, epctx_load loads and runs. */
TEST(ort_in_ours) {
    int embed;
    if (!own_known()) SKIP("its backend is not in this program");
    for (embed = 0; embed < 2; embed++) {
        own_backend own;
        epctx_model model;
        epctx_loaded loaded = {0};
        epctx_error error;
        epctx_status status;
        ort_values want;
        const void *data = NULL;
        float got[6] = {0};
        bool ran = false;
        int i;
        clear_folder();
        CHECK_TRUE(make_one("m.onnx"));
        CHECK_ORT(generate_one(embed ? generate_embed : generate));
        CHECK_TRUE(own_open(&own));
        status = epctx_model_open_file(&model, in_folder("m_ctx.onnx"), NULL, &error);
        if (status == EPCTX_OK) status = epctx_load(&loaded, &model, &own.backend, NULL, &error);
        if (status == EPCTX_OK && loaded.bound_count == 1)
            ran = run_bound(&own, &loaded.bound[0], got, 6, &error);
        epctx_unload(&loaded);
        epctx_model_close(&model);
        own_close(&own);
        CHECK(status == EPCTX_OK && ran, "embed %d: %s", embed, error.message);
        CHECK_ORT(cpu_outputs(in_folder("m.onnx"), &want));
        if (ort_ok(ort->GetTensorData(want.values[0], &data)))
            for (i = 0; i < 6; i++) ran = ran && fabsf(got[i] - ((const float *)data)[i]) < 1e-5f;
        ort_values_free(&want);
        CHECK(ran, "embed %d: another result than the CPU's", embed);
    }
}

/* -------------------------------------------------------------- real models */

/* The lines of the log that tell why nodes are left, once each: an EP is asked several times. */
static char *left_lines(void) {
    char *out = (char *)calloc(1, 2 * sizeof ort_log);
    const char *line, *end;
    size_t used = 0;
    for (line = ort_log; out && *line; line = end) {
        const char *before;
        size_t size = strcspn(line, "\n");
        bool seen = false;
        end = line + size + (line[size] == '\n');
        for (before = ort_log; before < line && !seen; before += strcspn(before, "\n") + 1)
            seen = strcspn(before, "\n") == size && memcmp(before, line, size) == 0;
        if (seen || !strstr(line, ORT_LEFT) || strstr(line, ORT_LEFT) > line + size) continue;
        used +=
            (size_t)snprintf(out + used, 2 * sizeof ort_log - used, "  %.*s\n", (int)size, line);
    }
    return out;
}

static bool is_among(char (*names)[64], size_t count, epctx_str name) {
    size_t i;
    for (i = 0; i < count; i++)
        if (epctx_str_is(name, names[i])) return true;
    return false;
}

/* Names of the free dimensions of a model's inputs. The first of several dimensions is a batch. */
static void free_dims(const char *path) {
    char(*names)[64] = ort_free_dims;
    size_t *count = &ort_free_count;
    epctx_model model;
    epctx_cursor inputs;
    epctx_value_view value;
    *count = 0;
    if (epctx_model_open_file(&model, path, NULL, NULL) != EPCTX_OK) return;
    inputs = epctx_view_graph_inputs(epctx_model_graph(&model));
    while (epctx_next_value(&inputs, &value)) {
        epctx_cursor dims = epctx_view_value_dims(&value);
        const size_t rank = epctx_cursor_count(dims);
        epctx_dim dim;
        size_t at;
        for (at = 0; *count < 8 && epctx_next_dim(&dims, &dim); at++) {
            if (dim.known || dim.param.size == 0 || dim.param.size >= 64) continue;
            if (is_among(names, *count, dim.param)) continue;
            ort_free_batch[*count] =
                (at == 0 && rank > 1) || strncmp(dim.param.data, "batch", 5) == 0;
            snprintf(names[(*count)++], 64, "%.*s", (int)dim.param.size, dim.param.data);
        }
    }
    epctx_model_close(&model);
}

/* What a compilation made of a model. */
typedef struct outcome {
    size_t contexts, others; /* EPContext nodes, ordinary nodes */
    size_t constants;        /* ordinary nodes whose inputs are all constant */
    size_t inputs;           /* of the first EPContext node */
    bool bodies;             /* the model's nodes hold graphs, which ORT does not give away whole */
    size_t binary;           /* bytes */
    bool alone;              /* it runs with the CPU fallback disabled */
    double difference;       /* from the CPU EP, part of the output's largest number */
} outcome;

static bool has_body(const epctx_node_view *node) {
    epctx_cursor it = epctx_view_node_attrs(node);
    epctx_attr_view attr;
    while (epctx_next_attr(&it, &attr))
        if (attr.type == EPCTX_ATTR_GRAPH) return true;
    return false;
}

static bool has_bodies(const epctx_model *model) {
    epctx_cursor it = epctx_view_graph_nodes(epctx_model_graph(model));
    epctx_node_view node;
    while (epctx_next_node(&it, &node))
        if (has_body(&node)) return true;
    return false;
}

static bool is_constant(const epctx_node_view *node, const epctx_map *constants) {
    epctx_cursor it = epctx_view_node_inputs(node);
    epctx_str name;
    if (has_body(node)) return false; /* may read values of this graph */
    while (epctx_next_str(&it, &name))
        if (name.size && epctx_map_get(constants, name) == EPCTX_MAP_NONE) return false;
    return true;
}

/* Those that could be part of what reads them. */
static size_t count_constants(const epctx_model *model) {
    epctx_cursor it = epctx_view_graph_initializers(epctx_model_graph(model)), names;
    epctx_tensor_view tensor;
    epctx_node_view node;
    epctx_arena arena;
    epctx_map constants;
    epctx_str name;
    size_t count = 0;
    epctx_arena_init(&arena, NULL);
    epctx_map_init(&constants, &arena);
    while (epctx_next_tensor(&it, &tensor)) epctx_map_put(&constants, tensor.name, 1);
    it = epctx_view_graph_nodes(epctx_model_graph(model));
    while (epctx_next_node(&it, &node)) {
        if (epctx_view_is_epnode(&node) || !is_constant(&node, &constants)) continue;
        count++;
        names = epctx_view_node_outputs(&node);
        while (epctx_next_str(&names, &name)) epctx_map_put(&constants, name, 1);
    }
    epctx_arena_free(&arena);
    return count;
}

static bool read_outcome(const char *context_model, const char *binary, outcome *out) {
    ort_contexts n;
    epctx_cursor it;
    epctx_str name;
    struct stat st;
    memset(out, 0, sizeof *out);
    if (!ort_read_contexts(in_folder(context_model), &n)) return false;
    out->contexts = n.count;
    out->others = n.others;
    out->constants = count_constants(&n.model);
    it = epctx_view_node_inputs(&n.views[0]);
    while (n.count && epctx_next_str(&it, &name)) out->inputs++;
    epctx_model_close(&n.model);
    if (stat(in_folder(binary), &st) == 0) out->binary = (size_t)st.st_size;
    return true;
}

/* What epctx_generate makes of the model, with the same free dimensions. */
static bool own_outcome(const char *path, outcome *out) {
    own_backend own;
    epctx_model model;
    epctx_gen_opts opts = {0};
    epctx_error error;
    epctx_status status;
    bool bodies;
    size_t i;
    memset(out, 0, sizeof *out);
    if (!own_open(&own)) return false;
    epctx_error_clear(&error);
    opts.context_file_path = in_folder("own_ctx.onnx");
    opts.overwrite = true;
    status = epctx_model_open_file(&model, path, NULL, &error);
    for (i = 0; i < ort_free_count && status == EPCTX_OK; i++)
        status =
            epctx_fix_dim(&model, epctx_str_of(ort_free_dims[i]), ort_free_value(i), NULL, &error);
    bodies = status == EPCTX_OK && has_bodies(&model);
    if (status == EPCTX_OK) status = epctx_generate(&model, &own.backend, &opts, NULL, &error);
    epctx_model_close(&model);
    own_close(&own);
    if (status != EPCTX_OK || !read_outcome("own_ctx.onnx", binary_name("own"), out)) return false;
    out->bodies = bodies;
    return true;
}

/* How far ORT's CPU EP, with and without its optimizations, is from itself: part of the output's
 * largest number. Nobody can be judged by less. */
static double own_distance(const ort_values *a, const ort_values *b) {
    double worst = 0;
    size_t i, k;
    for (i = 0; i < a->count && i < b->count; i++) {
        ONNXTensorElementDataType type;
        const int64_t *shape;
        size_t rank, size = 0;
        const void *x = NULL, *y = NULL;
        double largest = 0, most = 0;
        if (!ort_ok(ort->GetTensorElementTypeAndShapeDataReference(a->values[i], &type, &shape,
                                                                   &rank)) ||
            type != ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT ||
            !ort_ok(ort->GetTensorSizeInBytes(a->values[i], &size)) ||
            !ort_ok(ort->GetTensorData(a->values[i], &x)) ||
            !ort_ok(ort->GetTensorData(b->values[i], &y)))
            continue;
        for (k = 0; k < size / sizeof(float); k++) {
            const double one = (double)((const float *)x)[k], other = (double)((const float *)y)[k];
            if (fabs(other) > largest) largest = fabs(other);
            if (fabs(one - other) > most) most = fabs(one - other);
        }
        if (most > worst * largest && largest > 0) worst = most / largest;
    }
    return worst;
}

/* How far the context model is from the CPU EP, with or without its optimizations. */
static double difference_of(const ort_spec *spec, const char *model) {
    OrtSession *session = NULL;
    ort_values got = {0};
    double best = -1;
    int plain;
    if (ort_session(spec, &session) && ort_run(session, 7, &got)) {
        for (plain = 0; plain < 2; plain++) {
            ort_values want = {0};
            double one;
            if (!cpu_outputs_of(model, plain, &want)) continue;
            one = own_distance(&got, &want);
            if (best < 0 || one < best) best = one;
            ort_values_free(&want);
        }
    }
    ort_values_free(&got);
    if (session) ort->ReleaseSession(session);
    return best;
}

static bool is_whole(const outcome *o) {
    return o->contexts == 1 && o->others == 0 && !o->bodies;
}

/* Where `own` is one partition and nothing else, ORT must have got to the same: nothing is left to
 * the CPU, and the weights are in the binary instead of among the node's inputs. */
static bool is_as_whole(const char *context_model, const char *binary, const outcome *own,
                        const char *model, outcome *got) {
    ort_spec spec = spec_of(in_folder(context_model));
    if (!read_outcome(context_model, binary, got)) return false;
    got->alone = make_session(&spec);
    spec.allow_cpu = true;
    got->difference = difference_of(&spec, model);
    if (got->constants > own->constants) {
        snprintf(ort_text, sizeof ort_text,
                 "%zu nodes with constant inputs are left, where epctx_generate leaves %zu",
                 got->constants, own->constants);
        return false;
    }
    if (!is_whole(own)) return true;
    if (!is_whole(got) || got->inputs != own->inputs || !got->alone ||
        got->binary < own->binary / 4) {
        snprintf(ort_text, sizeof ort_text,
                 "%zu contexts, %zu other nodes, %zu inputs, a binary of %zu bytes, where "
                 "epctx_generate makes 1, 0, %zu and %zu",
                 got->contexts, got->others, got->inputs, got->binary, own->inputs, own->binary);
        return false;
    }
    spec.allow_cpu = false;
    return check_run(&spec, model) == 1;
}

/* A row of the table that the models make. */
typedef struct model_row {
    char name[64];
    outcome own, options, api;
    double noise;     /* ORT's CPU EP from itself */
    const char *note; /* why a way has no outcome, or NULL */
    char *left;       /* what the EP said of nodes that it left, one line for each */
} model_row;

static model_row model_rows[64];
static size_t model_row_count;

static void print_outcome(const outcome *o) {
    if (o->contexts == 0)
        printf(" - |");
    else
        printf(" %zu + %zu (%zu) |", o->contexts, o->others, o->constants);
}

static void print_row(const model_row *row) {
    const outcome *o = row->api.contexts ? &row->api : &row->options;
    printf("| %s |", row->name);
    print_outcome(&row->own);
    print_outcome(&row->options);
    print_outcome(&row->api);
    if (o->contexts == 0) {
        printf(" - | - |");
    } else {
        printf(" %s | %.1e |", o->alone ? "yes" : "no",
               row->options.difference > o->difference ? row->options.difference : o->difference);
    }
    printf(" %.1e | %s |\n", row->noise, row->note ? row->note : "");
}

static void print_table(void) {
    size_t i;
    if (model_row_count == 0) return;
    printf(
        "partitions + nodes left to the CPU (of these with constant inputs only); whether it runs "
        "without the\nCPU; difference from ORT's CPU EP, and of that from itself between its "
        "optimization levels, as part of\nthe output's largest number\n"
        "| model | epctx compile | session options | compile API | without CPU | difference | "
        "ORT's own | note |\n|---|---|---|---|---|---|---|---|\n");
    for (i = 0; i < model_row_count; i++) print_row(&model_rows[i]);
    for (i = 0; i < model_row_count; i++) {
        if (model_rows[i].left && *model_rows[i].left)
            printf("%s\n%s", model_rows[i].name, model_rows[i].left);
        free(model_rows[i].left);
    }
    model_row_count = 0;
}

static double ort_noise; /* how far it is from itself */

/* Whether ORT's CPU EP runs the model with this length, and how exact its outputs are. */
static bool runs_with(const char *path, int64_t length) {
    ort_values plain, optimized;
    ort_free_length = length;
    ort_relative = 1e-3;
    if (!cpu_outputs(path, &optimized)) return false;
    if (cpu_outputs_of(path, true, &plain)) {
        ort_noise = own_distance(&optimized, &plain);
        if (!ort_same(&optimized, &plain)) ort_relative = 1.5 * ort_noise;
        ort_values_free(&plain);
    }
    ort_values_free(&optimized);
    return true;
}

/* Chooses the free dimensions: those with which epctx_generate takes the whole model, else any with
 * which ORT's CPU EP runs it. */
static bool prepare(const char *path, outcome *own) {
    static const int64_t lengths[] = {1, 64, 512, 1280}; /* or some 30 and 80 ms of speech */
    int64_t first = 0;
    size_t i;
    free_dims(path);
    for (i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        if (!runs_with(path, lengths[i])) continue;
        if (!own_outcome(path, own)) memset(own, 0, sizeof *own);
        if (is_whole(own) || ort_free_count == 0) return true;
        if (!first) first = lengths[i];
    }
    if (!first || !runs_with(path, first)) return false;
    if (!own_outcome(path, own)) memset(own, 0, sizeof *own);
    return true;
}

/* A model on the CPU EP, compiled now, generated and reloaded: the same numbers. */
static void model_case(const char *path, model_row *row) {
    const char *const config[] = {"ep.context_enable", "1", "ep.context_file_path",
                                  in_folder("r_ctx.onnx"), NULL};
    ort_spec spec = spec_of(path);
    size_t taken;
    ort_output out;
    bool ok;
    clear_folder();
    if (!prepare(path, &row->own)) {
        row->note = "ORT's CPU EP does not run it";
        test_skip("ORT's CPU EP: %s", ort_text);
        return;
    }
    spec.allow_cpu = !is_whole(&row->own);
    spec.tell = true;
    ort_log_clear();
    taken = check_run(&spec, path);
    spec.tell = false;
    row->left = left_lines();
    if (taken == 0 && strncmp(ort_text, "no node", 7) == 0) {
        row->note = "no node is taken";
        test_skip("%s", ort_text);
        return;
    }
    if (taken == 0) {
        test_fail(path, 0, "compiled now: %s", ort_text);
        return;
    }
    spec.config = config;
    ok = make_session(&spec);
    row->noise = ort_noise;
    if (!ok && strstr(ort_text, "compile it without ONNX Runtime")) {
        row->note = "ORT cannot write the bodies of its control flow";
        return;
    }
    if (!ok) {
        test_fail(path, 0, "generated: %s", ort_text);
        return;
    }
    if (!exists("r_ctx.onnx")) {
        row->note = "what is taken is in bodies";
        return;
    }
    spec.config = NULL;
    spec.path = in_folder("r_ctx.onnx");
    if (check_run(&spec, path) == 0 ||
        !is_as_whole("r_ctx.onnx", binary_name("r"), &row->own, path, &row->options)) {
        test_fail(path, 0, "reloaded: %s", ort_text);
        return;
    }
    /* The compile API leaves the graph as it is: nodes compute constants, other nodes are taken. */
    memset(&out, 0, sizeof out);
    out.path = in_folder("c_ctx.onnx");
    spec.path = path;
    spec.allow_cpu = true;
    ok = ort_compile_model(&spec, &out);
    if (ok) {
        spec.path = out.path;
        ok = check_run(&spec, path) > 0 || strncmp(ort_text, "no node", 7) == 0;
    }
    if (!ok && strstr(ort_text, "compile it without ONNX Runtime")) {
        row->note = "compile API: ORT cannot write the bodies of its control flow";
        return;
    }
    if (!ok || !is_as_whole("c_ctx.onnx", binary_name("c"), &row->own, path, &row->api))
        test_fail(path, 0, "compile API: %s", ort_text);
}

#if defined(__SANITIZE_ADDRESS__)
/* Half of the time of all; the others have every operator that these have. */
static const char *const heavy[] = {"light_resnet50", "mlsd_512x512_tiny", "super_resolution_10",
                                    "basic_pitch_nmp"};
#endif

static int model_entry(const char *path, const struct stat *st, int kind, struct FTW *ftw) {
    const char *file = strrchr(path, '/'), *end = file ? strstr(file, ".onnx") : NULL;
    char name[160];
    (void)st, (void)kind, (void)ftw;
    if (!end || end[5] || strstr(file, "_ctx")) return 0;
#if defined(__SANITIZE_ADDRESS__)
    for (size_t i = 0; i < sizeof heavy / sizeof *heavy; i++)
        if (strncmp(file + 1, heavy[i], (size_t)(end - file - 1)) == 0) return 0;
#endif
    snprintf(name, sizeof name, "%s model %s", ep->label, file + 1);
    test_name = name;
    fprintf(stderr, "case %s\n", name);
    if (model_row_count < sizeof model_rows / sizeof *model_rows) {
        model_row *row = &model_rows[model_row_count++];
        memset(row, 0, sizeof *row);
        snprintf(row->name, sizeof row->name, "%s", file + 1);
        model_case(path, row);
    } else {
        test_skip("the table is full");
    }
    if (test_name) printf("ok %s\n", name);
    fflush(stdout);
    test_name = NULL;
    return 0;
}

static void models_in(const char *models) {
    nftw(models, model_entry, 8, FTW_PHYS);
}

/* The folder of the demo's model: EPCTX_DEMO_MODEL, or what tests/deps.sh downloaded. */
static bool demo_models(char *out, size_t size) {
    const char *set = getenv("EPCTX_DEMO_MODEL");
    FILE *pipe;
    if (set) return (size_t)snprintf(out, size, "%s", set) < size && access(out, R_OK) == 0;
    pipe = popen("sh tests/deps.sh where blazeface 2>/dev/null", "r");
    if (!pipe) return false;
    if (!fgets(out, (int)size, pipe)) *out = '\0';
    pclose(pipe);
    out[strcspn(out, "\n")] = '\0';
    return *out && access(out, R_OK) == 0;
}

/* The demo's model and, where there are some, models of EPCTX_TEST_MODELS. */
TEST(models) {
    const char *more = test_models();
    char path[1024];
    if (demo_models(path, sizeof path))
        models_in(path);
    else
        printf("skip %s models: the demo's model is not there\n", ep->label);
#if defined(__SANITIZE_THREAD__)
    printf("skip %s further models: one session after the other, nothing for ThreadSanitizer\n",
           ep->label);
    more = NULL;
#else
    if (!more || !*more)
        printf("skip %s further models: EPCTX_TEST_MODELS is not set\n", ep->label);
#endif
#if defined(__SANITIZE_ADDRESS__)
    printf("skip %s %zu heavy models: minutes under the sanitizer\n", ep->label,
           sizeof heavy / sizeof *heavy);
#endif
    if (more && *more) {
        snprintf(path, sizeof path, "%s/onnx", more);
        models_in(access(path, R_OK) == 0 ? path : more);
    }
    ort_relative = 0;
    ort_free_count = 0;
    ort_free_length = 1;
    print_table();
    test_name = NULL; /* each model has reported */
}

/* ------------------------------------------------------------- out of memory */

/* Generates, reloads and runs; `ran` tells whether our EP did the work. */
static bool whole_life(size_t *ran) {
    ort_spec spec = spec_of(in_folder("m.onnx"));
    OrtSession *session = NULL;
    ort_values out;
    bool ok;
    *ran = 0;
    remove(in_folder("m_ctx.onnx"));
    remove(in_folder(binary_name("m")));
    if (!register_library("oom", PLUGIN("toy_oom_ep"))) return false;
    spec.config = generate;
    spec.allow_cpu = true; /* GetCapability cannot fail a session */
    ok = make_session(&spec);
    if (ok && exists("m_ctx.onnx")) {
        spec.config = NULL;
        spec.path = in_folder("m_ctx.onnx");
        ok = ort_session(&spec, &session) && ort_run(session, 7, &out);
        if (ok) {
            *ran = ort_assigned(session, ep->ep);
            ort_values_free(&out);
        }
        if (session) ort->ReleaseSession(session);
    }
    ort_ok(ort->UnregisterExecutionProviderLibrary(ort_env, "oom"));
    return ok;
}

/* Every allocation of the plugin fails once, from registration to the end: an error or the CPU, no
 * crash, no leak (under the sanitizer), no file left half done. */
/* A library comes, reads bodies to hash them, and goes. */
static void life_with_bodies(void) {
    static const char *const claim[] = {"take_if", "1", NULL};
    ort_spec spec = spec_of(in_folder("m.onnx"));
    spec.options = claim;
    spec.allow_cpu = true;
    if (!register_library("oom", "libtoy_oom_ep.so")) return;
    make_session(&spec);
    ort_ok(ort->UnregisterExecutionProviderLibrary(ort_env, "oom"));
}

TEST(out_of_memory) {
    oom_library oom;
    bool more = true, ok = false, tidy = true;
    size_t ran = 0;
    long n, lost = 0;
    CHECK_ORT(oom_open(&oom));
    CHECK_TRUE(make_foreign_if("m.onnx", 1));
    oom.arm(1000000); /* nothing fails */
    life_with_bodies();
    CHECK(oom.alive() == 0, "%ld blocks of a graph with bodies are not freed", oom.alive());
    CHECK_TRUE(make_one("m.onnx"));
    for (n = 1; more && n < 10000; n++) {
        oom.arm(n);
        ok = whole_life(&ran);
        more = oom.fired();
        tidy = tidy && count_files() <= 3;
        if (lost == 0 && oom.alive() != 0) lost = n;
    }
    CHECK_ORT(oom_close(&oom));
    CHECK(!more && ok && ran == 1, "expected the undisturbed round to work");
    CHECK_TRUE(tidy);
    CHECK(n > 20, "only %ld allocations", n);
    CHECK(lost == 0,
          "blocks that the unregistered library has not freed, first seen when "
          "allocation %ld of %ld failed",
          lost, n - 2);
    printf("%ld allocations failed in turn\n", n - 2);
}

/* -------------------------------------------------------------------- times */

/* Seconds that this process computed: what else the machine does is no part of it. Windows counts
 * them in steps of 15 ms: there it is. */
#if defined(_WIN32)
#define OWN_TIME CLOCK_MONOTONIC
#else
#define OWN_TIME CLOCK_PROCESS_CPUTIME_ID
#endif

static double now(void) {
    struct timespec t;
    clock_gettime(OWN_TIME, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int compare_doubles(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Median of the time to create a session, in ms. */
static double session_ms(const ort_spec *spec) {
    double times[15];
    size_t i;
    for (i = 0; i < 15; i++) {
        const double start = now();
        if (!make_session(spec)) return -1;
        times[i] = 1e3 * (now() - start);
    }
    qsort(times, 15, sizeof times[0], compare_doubles);
    return times[7];
}

/* Median of the time of one Run, in us. */
static double run_us(const ort_spec *spec) {
    enum { ROUNDS = 31, RUNS = 200 };
    const char *const names_in[] = {"x"}, *const names_out[] = {"y"};
    double times[ROUNDS];
    OrtAllocator *allocator = NULL;
    OrtSession *session = NULL;
    ort_values input = {0};
    OrtValue *out = NULL;
    size_t i, k;
    bool ok =
        ort_session(spec, &session) && ort_ok(ort->GetAllocatorWithDefaultOptions(&allocator));
    input.count = 1;
    ok = ok && ort_make_input(session, 0, allocator, 1, &input);
    for (i = 0; ok && i < ROUNDS; i++) {
        const double start = now();
        for (k = 0; ok && k < RUNS; k++) {
            ok = ort_ok(ort->Run(session, NULL, names_in, (const OrtValue *const *)input.values, 1,
                                 names_out, 1, &out));
        }
        times[i] = 1e6 * (now() - start) / RUNS;
    }
    if (out) ort->ReleaseValue(out);
    if (input.count) ort_values_free(&input);
    if (session) ort->ReleaseSession(session);
    if (!ok) return -1;
    qsort(times, ROUNDS, sizeof times[0], compare_doubles);
    return times[ROUNDS / 2];
}

/* x + w + w ... : a graph whose work is nothing and whose length is. */
static bool make_chain(const char *name, size_t length) {
    onnx_model m;
    float w[6];
    size_t i;
    onnx_begin(&m);
    onnx_input(&m.graph, "x", 2, dims23);
    weights(w, 0);
    for (i = 0; i < length; i++) {
        char in[48], out[32], weight[32];
        snprintf(weight, sizeof weight, "w%zu", i);
        onnx_floats(&m.graph, weight, 2, dims23, w);
        snprintf(in, sizeof in, i ? "v%zu,w%zu" : "x,w%zu", i ? i - 1 : i, i);
        snprintf(out, sizeof out, i + 1 < length ? "v%zu" : "y", i);
        onnx_node(&m.graph, i % 2 ? "Add" : "Sub", "", out, in, out, NULL);
    }
    onnx_output(&m.graph, "y", 2, dims23);
    return save_model(name, &m);
}

TEST(times) {
    ort_spec jit = spec_of(in_folder("m.onnx")), context = spec_of(in_folder("m_ctx.onnx")), cpu;
    double jit_ms, context_ms, cpu_us, ep_us;
    memset(&cpu, 0, sizeof cpu);
    cpu.path = in_folder("one.onnx");
    CHECK_TRUE(make_chain("m.onnx", 500));
    CHECK_ORT(generate_one(generate));
    jit_ms = session_ms(&jit);
    context_ms = session_ms(&context);
    CHECK(jit_ms > 0 && context_ms > 0, "%s", ort_text);
    printf("note %s: session of 500 nodes: %.2f ms compiled now, %.2f ms from its context\n",
           ep->label, jit_ms, context_ms);
    CHECK_TRUE(make_chain("one.onnx", 1));
    jit.path = in_folder("one.onnx");
    cpu_us = run_us(&cpu);
    ep_us = run_us(&jit);
    CHECK(cpu_us > 0 && ep_us > 0, "%s", ort_text);
    printf("note %s: one Run of one node: %.2f us, on the CPU EP %.2f us\n", ep->label, ep_us,
           cpu_us);
    CHECK(context_ms < jit_ms, "expected less time from the context: %.2f ms, compiled now %.2f ms",
          context_ms, jit_ms);
}

/* Bytes of this process in memory. */
static double resident_mib(void) {
    long pages = 0, all;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file && fscanf(file, "%ld %ld", &all, &pages) != 2) pages = 0;
    if (file) fclose(file);
    return (double)pages * (double)sysconf(_SC_PAGESIZE) / (1 << 20);
}

/* y = x * w with side * side weights in a file of zeros. */
static bool make_large(const char *name, int64_t side) {
    const int64_t dims[2] = {side, side}, line[2] = {1, side};
    onnx_model m;
    onnx_begin(&m);
    onnx_input(&m.graph, "x", 2, line);
    onnx_external(&m.graph, "w", 2, dims, "large.bin", 0);
    onnx_node(&m.graph, "MatMul", "", "multiply", "x,w", "y", NULL);
    onnx_output(&m.graph, "y", 2, line);
    return save("large.bin", "", 1) && truncate(in_folder("large.bin"), side * side * 4) == 0 &&
           save_model(name, &m);
}

/* The time and the memory of a session do not grow with a binary that is mapped.
 * EPCTX_TEST_LARGE_MIB: another size of the binary. */
TEST(large_binary) {
    static const char *const ways[] = {"never", "auto", "always"};
    const char *options[] = {"map_binary", NULL, NULL}, *asked = getenv("EPCTX_TEST_LARGE_MIB");
    const double mib = asked && atof(asked) > 0 ? atof(asked) : 64;
    ort_spec spec = spec_of(in_folder("m_ctx.onnx"));
    double ms[3], memory[3];
    size_t i;
#if defined(_WIN32)
    SKIP("about the modes of files, and /proc");
#endif
    CHECK_TRUE(make_large("m.onnx", (int64_t)sqrt(mib * (1 << 20) / 4)));
    CHECK_ORT(generate_one(generate));
    spec.options = options;
    for (i = 0; i < 3; i++) {
        OrtSession *session = NULL;
        const double before = resident_mib();
        options[1] = ways[i];
        CHECK_ORT(ort_session(&spec, &session));
        memory[i] = resident_mib() - before;
        ort->ReleaseSession(session);
        ms[i] = session_ms(&spec);
        printf("note %s: session of a binary of %.0f MiB, map_binary %s: %.2f ms, %.1f MiB\n",
               ep->label, mib, ways[i], ms[i], memory[i]);
    }
    for (i = 1; i < 3; i++) {
        CHECK(memory[i] < mib / 4, "%s: %.1f MiB", ways[i], memory[i]);
        CHECK(ms[i] < ms[0] / 2, "%s: %.2f ms, never: %.2f ms", ways[i], ms[i], ms[0]);
    }
}

/* -------------------------------------------------------------------- main */

/* A runtime without the API: a message, no crash. Registration itself fails earlier in some of
 * them, so the library's function is called as ORT would. */
TEST(too_old) {
    OrtStatus *(*create)(const char *, const OrtApiBase *, const OrtLogger *, OrtEpFactory **,
                         size_t, size_t *) = NULL;
    OrtEpFactory *factories[4];
    const char *path = library_path(ep->library);
    size_t count = 7;
    void *library;
    bool ok;
    CHECK(!register_library(ep->label, ep->library), "expected %s to be refused by ORT %s",
          ep->library, ort_base->GetVersionString());
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    CHECK(library && ort_symbol(library, "CreateEpFactories", &create, sizeof create), "%s: %s",
          path, dlerror());
    ok = ort_ok(create("x", ort_base, NULL, factories, 4, &count));
    dlclose(library);
    CHECK(!ok && count == 0, "expected a failure and no factory");
    CHECK_INT(ort_code, ORT_NOT_IMPLEMENTED);
    CHECK_HAS(ort_text, "needs ONNX Runtime 1.24");
    CHECK_HAS(ort_text, ort_base->GetVersionString());
}

/* ------------------------------------------------------- for test_plugin.sh */

static bool dump_values(const ort_values *v, const char *to, const char *kind) {
    size_t i;
    for (i = 0; i < v->count; i++) {
        char path[1024];
        const void *data = NULL;
        size_t size = 0;
        FILE *file;
        bool ok;
        if (!ort_ok(ort->GetTensorData(v->values[i], &data)) ||
            !ort_ok(ort->GetTensorSizeInBytes(v->values[i], &size)))
            return false;
        snprintf(path, sizeof path, "%s/%s_%zu.bin", to, kind, i);
        file = fopen(path, "wb");
        if (!file) return false;
        ok = fwrite(data, 1, size, file) == size;
        if (fclose(file) != 0 || !ok) return false;
    }
    return true;
}

/* The inputs ort_run makes of its seed, and the CPU's outputs. */
static bool dump_cpu(const char *model, const char *to) {
    ort_spec spec = {0};
    OrtSession *session = NULL;
    OrtAllocator *allocator = NULL;
    ort_values inputs, outputs;
    size_t count = 0, i;
    bool ok;
    memset(&inputs, 0, sizeof inputs);
    memset(&outputs, 0, sizeof outputs);
    spec.path = model;
    mkdir(to, 0777);
    ok = ort_session(&spec, &session) && ort_run(session, 7, &outputs) &&
         ort_ok(ort->GetAllocatorWithDefaultOptions(&allocator)) &&
         ort_ok(ort->SessionGetInputCount(session, &count));
    for (i = 0; ok && i < count; i++) {
        inputs.count = i + 1;
        ok = ort_make_input(session, i, allocator, 7, &inputs);
    }
    ok = ok && dump_values(&inputs, to, "input") && dump_values(&outputs, to, "output");
    ort_values_free(&inputs);
    ort_values_free(&outputs);
    if (session) ort->ReleaseSession(session);
    return ok;
}

/* Files of floats in two folders. */
static bool compare_folders(const char *got, const char *want) {
    int i;
    for (i = 0;; i++) {
        char path[2][1024];
        FILE *files[2];
        float a = 0, b = 0;
        size_t have_a, have_b, at = 0;
        bool same = true;
        snprintf(path[0], sizeof path[0], "%s/output_%d.bin", got, i);
        snprintf(path[1], sizeof path[1], "%s/output_%d.bin", want, i);
        files[0] = fopen(path[0], "rb");
        files[1] = fopen(path[1], "rb");
        do {
            have_a = files[0] ? fread(&a, sizeof a, 1, files[0]) : 0;
            have_b = files[1] ? fread(&b, sizeof b, 1, files[1]) : 0;
            same = have_a == have_b && (!have_a || fabsf(a - b) <= 1e-3f + 1e-3f * fabsf(b));
            at++;
        } while (same && have_a);
        if (files[0]) fclose(files[0]);
        if (files[1]) fclose(files[1]);
        if (!same) {
            snprintf(ort_text, sizeof ort_text,
                     "output_%d.bin differs at %zu: expected %g, found %g", i, at - 1, (double)b,
                     (double)a);
            return false;
        }
        if (at == 1) return i > 0;
    }
}

/* Prints the lines of ORT's log that hold `text`. */
static void tell_lines(const char *text) {
    const char *line = ort_log;
    while (*line) {
        const size_t size = strcspn(line, "\n");
        const char *found = strstr(line, text);
        if (found && found < line + size) printf("  %.*s\n", (int)size, line);
        line += size + (line[size] != '\0');
    }
}

/* Compiles the model now and tells which nodes the EP leaves, and why. `plain`: without graph
 * optimizations, as the compile API does it unless it is told otherwise. The lines of the first
 * call are not told again. */
static bool try_level(ort_spec *spec, bool plain, const char *told, char **left) {
    size_t count;
    spec->plain = plain;
    spec->tell = true;
    ort_log_clear();
    count = check_run(spec, spec->path);
    spec->plain = spec->tell = false;
    *left = left_lines();
    if (count) {
        printf("compiled now, %s: %zu node%s taken, %zu left, outputs as on the CPU\n",
               plain ? "graph optimization ORT_DISABLE_ALL (the compile API's default)"
                     : "graph optimization ORT_ENABLE_ALL (a session's default)",
               count, count == 1 ? "" : "s", nodes_left);
    } else {
        printf("compiled now: failed\n");
        tell_lines("GetCapability"); /* its errors end no session */
    }
    if (told && *left && strcmp(told, *left) == 0)
        printf("%s", **left ? "  the same nodes are left\n" : "");
    else
        printf("%s", *left ? *left : "");
    return count > 0;
}

static bool try_levels(ort_spec *spec) {
    char *left = NULL, *plain = NULL;
    size_t left_count = 0, plain_count = 0;
    bool ok = try_level(spec, false, NULL, &left);
    left_count = nodes_left;
    ok = ok && try_level(spec, true, left, &plain);
    plain_count = nodes_left;
    if (ok && (left_count > 0) != (plain_count > 0)) {
        printf("  %s graph optimizations no node is left: SetSessionGraphOptimizationLevel, or "
               "ModelCompilationOptions_SetGraphOptimizationLevel, decides\n",
               plain_count ? "with" : "without");
    }
    free(left);
    free(plain);
    return ok;
}

/* What --try is told before its words. */
typedef struct try_options {
    bool strict; /* every node must be taken */
    ort_ep_options ep;
} try_options;

/* For authors of EPs: --try LIBRARY EP MODEL compiles a model with the EP, generates and reloads
 * its context model both ways, and compares every run with the CPU. */
static int try_ep(const char *library, const char *name, const char *model,
                  const try_options *options) {
    const char *const where[] = {"ep.context_enable", "1", "ep.context_file_path",
                                 in_folder("try_ctx.onnx"), NULL};
    const char *const inside[] = {"ep.context_enable",
                                  "1",
                                  "ep.context_file_path",
                                  in_folder("in_ctx.onnx"),
                                  "ep.context_embed_mode",
                                  "1",
                                  NULL};
    const char *const *const configs[] = {where, inside};
    subject mine;
    char full[PATH_MAX];
    ort_spec spec;
    size_t count, i;
    bool ok;
    memset(&mine, 0, sizeof mine);
    mine.label = "try";
    mine.library = library;
    mine.ep = name;
    mine.short_name = "";
    ep = &mine;
    if (!realpath(library, full) ||
        !ort_ok(ort->RegisterExecutionProviderLibrary(ort_env, "try", ort_path(full)))) {
        printf("%s: cannot be registered: %s\n", library, ort_text);
        return 1;
    }
    spec = spec_of(model);
    spec.allow_cpu = !options->strict;
    spec.options = options->ep.list;
    ok = try_levels(&spec);
    for (i = 0; i < 2 && ok; i++) {
        spec.path = model;
        spec.config = configs[i];
        ok = make_session(&spec);
        spec.path = configs[i][3];
        spec.config = NULL;
        count = ok ? check_run(&spec, model) : 0;
        ok = count > 0;
        if (ok) {
            printf("%s: generated, reloaded: %zu EPContext node%s, outputs as on the CPU\n",
                   i ? "embedded" : "in a file", count, count == 1 ? "" : "s");
        }
    }
    if (!ok) printf("%s\n", ort_text);
    ort_ok(ort->UnregisterExecutionProviderLibrary(ort_env, "try"));
    return ok ? 0 : 1;
}

/* ORT's model packages: a table since 1.31, before experimental functions of the same kind. */
static bool find_packages(ort131_package_api *out) {
    const ort131_api *stable = ort131_api_of(ort, ort_version);
    const ort131_package_api *table = stable ? stable->GetModelPackageApi() : NULL;
    if (stable && !table) {
        snprintf(ort_text, sizeof ort_text, "ONNX Runtime %s has no model packages",
                 ort_base->GetVersionString());
        return false;
    }
    if (table) {
        *out = *table;
        return true;
    }
    memset(out, 0, sizeof *out);
#define PACKAGE_FIND(name) \
    ort_experimental("OrtModelPackageApi_" #name "_SinceV28", (void *)&out->name, sizeof out->name)
    return PACKAGE_FIND(CreateModelPackageOptionsFromSessionOptions) &&
           PACKAGE_FIND(ReleaseModelPackageOptions) && PACKAGE_FIND(CreateModelPackageContext) &&
           PACKAGE_FIND(ReleaseModelPackageContext) && PACKAGE_FIND(SelectComponent) &&
           PACKAGE_FIND(ReleaseModelPackageComponentContext) &&
           PACKAGE_FIND(ModelPackageComponent_GetSelectedVariantName) &&
           PACKAGE_FIND(CreateSession);
#undef PACKAGE_FIND
}

/* Lets ORT choose from a package and run what it chose, with the options of the package alone:
 * prints the variant's name. `how` cpu: without our EP; strict: nothing that should better be
 * compiled again. The outputs are those of `model`. */
static bool run_package(const char *path, const char *model, const char *how) {
    static const char *const strict[] = {"session.fail_on_suboptimal_compiled_model", "1", NULL};
    ort131_package_api api;
    ort_spec spec = spec_of(NULL);
    OrtSessionOptions *session_options = NULL;
    ort131_package_options *options = NULL;
    ort131_package *package = NULL;
    ort131_component *component = NULL;
    OrtSession *session = NULL;
    ort_values got = {0};
    const char *name = NULL;
    char text[sizeof ort_text];
    bool ok;
    if (strcmp(how, "cpu") == 0) spec.ep = NULL;
    if (strcmp(how, "strict") == 0) spec.config = strict;
    if (!find_packages(&api)) return false;
    ok = ort_options(&spec, &session_options) &&
         ort_ok(
             api.CreateModelPackageOptionsFromSessionOptions(ort_env, session_options, &options)) &&
         ort_ok(api.CreateModelPackageContext(ort_path(path), &package)) &&
         ort_ok(api.SelectComponent(package, "model", options, &component)) &&
         ort_ok(api.ModelPackageComponent_GetSelectedVariantName(component, &name)) &&
         ort_ok(api.CreateSession(ort_env, component, NULL, &session)) &&
         ort_run(session, 7, &got) && as_on_cpu(model, &got);
    if (ok) printf("variant %s, outputs as on the CPU\n", name);
    memcpy(text, ort_text, sizeof text);
    ort_values_free(&got);
    if (session) ort->ReleaseSession(session);
    if (component) api.ReleaseModelPackageComponentContext(component);
    if (package) api.ReleaseModelPackageContext(package);
    if (options) api.ReleaseModelPackageOptions(options);
    if (session_options) ort->ReleaseSessionOptions(session_options);
    memcpy(ort_text, text, sizeof text);
    return ok;
}

/* `key` (may be NULL): one more option, which becomes 1. */
static bool write_context(ort_spec *spec, const char *to, const char *key) {
    const char *const config[] = {
        "ep.context_enable", "1", "ep.context_file_path", to, key, "1", NULL};
    spec->config = config;
    return make_session(spec);
}

/* ORT puts the path of a model into the names of its nodes, if it has one. */
static bool write_from_memory(const char *model, const char *to, const char *key) {
    const epctx_io *io = epctx_io_files();
    ort_spec spec = spec_of(NULL);
    epctx_mapping map;
    epctx_error error;
    bool ok;
    if (io->map_fn(io->user, NULL, model, false, &map, &error) != EPCTX_OK) {
        snprintf(ort_text, sizeof ort_text, "%s", error.message);
        return false;
    }
    spec.data = map.data;
    spec.size = map.size;
    ok = write_context(&spec, to, key);
    io->unmap_fn(io->user, &map);
    return ok;
}

static int tool(int argc, char **argv) {
    bool ok = false;
    ort_spec spec;
    ep = npu_subject();
    if (!find_plugins(argv[0]) || !ort_open(false) || !register_library(ep->label, ep->library)) {
        printf("%s\n", ort_text);
        return 1;
    }
    spec = spec_of(argv[2]);
    if (strcmp(argv[1], "--run") == 0) ok = check_run(&spec, argv[3]) > 0;
    if (strcmp(argv[1], "--package") == 0)
        ok = run_package(argv[2], argv[3], argc > 4 ? argv[4] : "");
    if (strcmp(argv[1], "--dump") == 0) ok = dump_cpu(argv[2], argv[3]);
    if (strcmp(argv[1], "--compare") == 0) ok = compare_folders(argv[2], argv[3]);
    if (strcmp(argv[1], "--write") == 0)
        ok = write_context(&spec, argv[3], argc > 4 ? argv[4] : NULL);
    if (strcmp(argv[1], "--write-bytes") == 0)
        ok = write_from_memory(argv[2], argv[3], argc > 4 ? argv[4] : NULL);
    if (!ok) printf("%s\n", ort_text);
    ort_ok(ort->UnregisterExecutionProviderLibrary(ort_env, ep->label));
    ort->ReleaseEnv(ort_env);
    return ok ? 0 : 1;
}

static const ort_case cases[] = {
    ORT_CASE(jit),
    ORT_CASE(jit_partitions),
    ORT_CASE_OF("toy", kept_apart),
    ORT_CASE(nothing_is_written),
    ORT_CASE(types_of_values),
    ORT_CASE(generate_by_options),
    ORT_CASE(generate_embedded),
    ORT_CASE(partitions_in_one_binary),
    ORT_CASE(far_folder),
    ORT_CASE(devices),
    ORT_CASE_OF("toy", absent),
    ORT_CASE(virtual_npu),
    ORT_CASE(compile_api),
    ORT_CASE(compile_api_without_place),
    ORT_CASE(prefix),
    ORT_CASE(external_initializers_in),
    ORT_CASE(initializers_folder),
    ORT_CASE_OF("npu", attributes),
    ORT_CASE(external_initializers_out),
    ORT_CASE(foreign_nodes_left_alone),
    ORT_CASE(foreign_model),
    ORT_CASE(compiled_input_refused),
    ORT_CASE(reload_from_memory),
    ORT_CASE(map_binary),
    ORT_CASE(binary_changed_while_loaded),
    ORT_CASE(bad_contexts),
    ORT_CASE(payload_as_path),
    ORT_CASE(other_hardware),
    ORT_CASE_OF("acorn", other_sdk), /* the name that examples/README.md gives the template */
    ORT_CASE_OF("npu", damaged_weight),
    ORT_CASE(hugging_face_cache),
    ORT_CASE_OF("toy", load_fails),
    ORT_CASE(other_generation),
    ORT_CASE(primaries_and_secondaries),
    ORT_CASE(bad_options),
    ORT_CASE(options_of_the_other_phase),
    ORT_CASE(unknown_entry),
    ORT_CASE(unknown_options),
    ORT_CASE(compile_disabled),
    ORT_CASE(without_the_ep),
    ORT_CASE_OF("toy", run_fails),
    ORT_CASE_OF("toy", no_copies),
    ORT_CASE(two_eps_in_one_model),
    ORT_CASE(other_shape_than_compiled),
    ORT_CASE(nothing_compiled),
    ORT_CASE(compile_api_external_initializers),
    ORT_CASE(compatibility),
    ORT_CASE(shared_constant_node),
    ORT_CASE(unread_results),
    ORT_CASE(pruned_output),
    ORT_CASE(attribute_of_a_type),
    ORT_CASE(constant_nodes),
    ORT_CASE(explains_constant_nodes),
    ORT_CASE(concurrent_runs),
    ORT_CASE(concurrent_sessions),
    ORT_CASE_OF("toy", compile_for_other_hardware),
    ORT_CASE(explains_refusals),
    ORT_CASE(control_flow),
    ORT_CASE_OF("toy", bodies_in_hashes),
    ORT_CASE(control_flow_refused),
    ORT_CASE(unclaimed_control_flow_refused),
    ORT_CASE_OF("toy", failed_sessions_leave_no_binary), /* the NPU compiles bodies whole */
    ORT_CASE_OF("toy", ort_crashes),
    ORT_CASE_OF("toy", out_of_memory),
    ORT_CASE(ours_in_ort),
    ORT_CASE(ort_in_ours),
    ORT_CASE(times),
    ORT_CASE_OF("npu", large_binary),
    ORT_CASE_OF("npu", models),
};

/* NAME=SIZE of a free dimension. */
static bool read_dim(const char *text) {
    const char *sign = strchr(text, '=');
    const size_t at = ort_free_count;
    if (!sign || at == 8 || (size_t)(sign - text) >= sizeof ort_free_dims[0]) return false;
    snprintf(ort_free_dims[at], sizeof ort_free_dims[0], "%.*s", (int)(sign - text), text);
    ort_free_size[at] = atoll(sign + 1);
    ort_free_count += ort_free_size[at] > 0;
    return ort_free_size[at] > 0;
}

/* The options of --try, which begin at argv[2]. False: one is wrong. `first`: the word behind. */
static bool read_try_options(int argc, char **argv, try_options *out, int *first) {
    for (*first = 2; *first < argc && argv[*first][0] == '-'; ++*first) {
        const char *name = argv[*first];
        if (strcmp(name, "--strict") == 0) {
            out->strict = true;
            continue;
        }
        if (++*first == argc) return false;
        if (!(strcmp(name, "--dim") == 0 && read_dim(argv[*first])) &&
            !(strcmp(name, "--ep-opt") == 0 && ort_read_option(argv[*first], &out->ep)))
            return false;
    }
    return true;
}

int main(int argc, char **given) {
    char **argv = ort_words(argc, given);
    const bool trying = argc > 1 && strcmp(argv[1], "--try") == 0;
    try_options options;
    bool wrong;
    size_t i;
    int first = 2;
    memset(&options, 0, sizeof options);
    wrong = trying && !read_try_options(argc, argv, &options, &first);
    if (argc == 3 && strcmp(argv[1], "--broken") == 0) return with_broken_ep(argv[0], argv[2]);
    if (argc > 3 && argv[1][0] == '-' && !trying) return tool(argc, argv);
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || (trying && (wrong || argc != first + 3)))) {
        fprintf(stderr,
                "usage: %s [CASE...]\n"
                "       %s --try [--strict] [--dim NAME=SIZE]... [--ep-opt KEY=VALUE]...\n"
                "           LIBRARY EP_NAME MODEL\n"
                "--strict: no node may be left to the CPU; --dim: of a free dimension;\n"
                "--ep-opt: an EP option for every session\n",
                argv[0], argv[0]);
        return 2;
    }
    if (!ort_test_begin(argv[0])) return ort_test_end() || trying;
    if (trying) {
        test_failures = try_ep(argv[first], argv[first + 1], argv[first + 2], &options);
    } else if (ort_version < 24) {
        for (i = 0; i < SUBJECT_COUNT; i++) {
            ep = &subjects[i];
            run_case("too_old", test_case_too_old);
        }
    } else {
        ort_test_cases(argc, argv, cases, sizeof cases / sizeof cases[0]);
    }
    return ort_test_end();
}
