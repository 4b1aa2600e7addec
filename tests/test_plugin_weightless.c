/*
 * Weightless contexts in the unmodified ONNX Runtime (ep.enable_weightless=1): the binary holds no
 * weights; they are initializers of the context model, and ORT hands them over as inputs of the
 * EPContext node.
 */
#define _GNU_SOURCE 1
#include <errno.h>

#include "epctx_npu.h"
#include "ort/ort_test.h"

enum { SIDE = 64, COUNT = SIDE * SIDE, BYTES = COUNT * 4 };

static const char *const weightless[] = {"ep.context_enable", "1", "ep.enable_weightless", "1",
                                         NULL};
static const char *const just_in_time[] = {"ep.enable_weightless", "1", NULL};
static const char *const former[] = {"ep.context_enable", "1",
                                     "ep.enable_weightless_ep_context_nodes", "1", NULL};

static float numbers[2][COUNT];

static void make_numbers(float start) {
    int i;
    for (i = 0; i < 2 * COUNT; i++)
        numbers[i / COUNT][i % COUNT] = start + (float)(i * 7 % 1009) / 512;
}

/* y = relu(x * w + v), with v in external data when `external`. */
enum { EXTERNAL_AT = 64 };

static bool save_weights(const char *name) {
    uint8_t *data = (uint8_t *)calloc(1, EXTERNAL_AT + BYTES);
    bool ok;
    if (!data) return false;
    memcpy(data + EXTERNAL_AT, numbers[1], BYTES);
    ok = save(name, data, EXTERNAL_AT + BYTES);
    free(data);
    return ok;
}

static bool make_heavy(const char *name, bool external, float start) {
    const int64_t dims[2] = {SIDE, SIDE};
    onnx_model m;
    bool ok;
    make_numbers(start);
    onnx_begin(&m);
    onnx_input(&m.graph, "x", 2, dims);
    onnx_floats(&m.graph, "w", 2, dims, numbers[0]);
    if (external)
        onnx_external(&m.graph, "v", 2, dims, "weights.bin", EXTERNAL_AT);
    else
        onnx_floats(&m.graph, "v", 2, dims, numbers[1]);
    onnx_node(&m.graph, "Mul", "", "mul", "x,w", "a", NULL);
    onnx_node(&m.graph, "Add", "", "add", "a,v", "b", NULL);
    onnx_node(&m.graph, "Relu", "", "relu", "b", "y", NULL);
    onnx_output(&m.graph, "y", 2, dims);
    ok = save_model(name, &m) && (!external || save_weights("weights.bin"));
    return ok;
}

static size_t size_of(const char *name) {
    struct stat st;
    return stat(in_folder(name), &st) == 0 ? (size_t)st.st_size : SIZE_MAX;
}

/* The weights that a node names, and how many inputs it has. */
static bool read_weights(const char *name, size_t *weights_named, size_t *inputs) {
    ort_contexts n;
    epctx_cursor it;
    epctx_attr_view attr;
    epctx_str text;
    *weights_named = *inputs = 0;
    if (!ort_read_contexts(in_folder(name), &n)) return false;
    it = epctx_view_node_inputs(&n.views[0]);
    while (epctx_next_str(&it, &text)) ++*inputs;
    it = epctx_view_node_attrs(&n.views[0]);
    while (epctx_next_attr(&it, &attr)) {
        epctx_outside_weight ref;
        epctx_str rest = attr.s;
        if (!epctx_str_is(attr.name, EPCTX_WEIGHTS_ATTR)) continue;
        while (epctx_outside_weight_next(&rest, &ref)) ++*weights_named;
    }
    epctx_model_close(&n.model);
    return true;
}

TEST(generate_and_load) {
    int external, embed;
    for (external = 0; external < 2; external++) {
        for (embed = 0; embed < 2; embed++) {
            const char *const config[] = {
                "ep.context_enable", "1", "ep.enable_weightless", "1", "ep.context_embed_mode",
                embed ? "1" : "0",   NULL};
            ort_spec spec = spec_of(in_folder("m.onnx"));
            size_t named, inputs;
            clear_folder();
            CHECK_TRUE(make_heavy("m.onnx", external, 1));
            spec.config = config;
            /* The session that generates is also good for running. */
            CHECK(check_run(&spec, spec.path) == 3, "%s", ort_text);
            CHECK(embed || size_of(binary_name("m")) < BYTES / 8, "the binary has %zu bytes",
                  size_of(binary_name("m")));
            CHECK(read_weights("m_ctx.onnx", &named, &inputs), "%s", ort_text);
            CHECK_INT(named, 2);
            CHECK_INT(inputs, 3); /* ORT's way: the weights are inputs of the node */
            spec.path = in_folder("m_ctx.onnx");
            spec.config = NULL;
            CHECK(check_run(&spec, in_folder("m.onnx")) == 1, "%s", ort_text);
            spec.config = just_in_time;
            CHECK(check_run(&spec, in_folder("m.onnx")) == 1, "%s", ort_text);
        }
    }
}

/* Without a context model. */
TEST(compiled_now) {
    ort_spec spec = spec_of(in_folder("m.onnx"));
    CHECK_TRUE(make_heavy("m.onnx", false, 1));
    spec.config = just_in_time;
    CHECK(check_run(&spec, spec.path) == 3, "%s", ort_text);
}

static bool holds(const char *name, const char *text) {
    size_t size;
    void *data = slurp(name, &size);
    const bool ok = data && memmem(data, size, text, strlen(text));
    free(data);
    return ok;
}

/* The option's former name means the same, wherever the weights are: none in the binary, all of
 * them once in the context model. */
TEST(former_option) {
    int external;
    for (external = 0; external < 2; external++) {
        ort_spec spec = spec_of(in_folder("m.onnx"));
        size_t named, inputs;
        clear_folder();
        CHECK_TRUE(make_heavy("m.onnx", external, 1));
        spec.config = former;
        CHECK(check_run(&spec, spec.path) == 3, "%s", ort_text);
        CHECK(size_of(binary_name("m")) < BYTES / 8, "external %d: the binary has %zu bytes",
              external, size_of(binary_name("m")));
        CHECK(size_of("m_ctx.onnx") < 2 * BYTES + BYTES / 4, "the model has %zu bytes",
              size_of("m_ctx.onnx"));
        CHECK(read_weights("m_ctx.onnx", &named, &inputs), "%s", ort_text);
        CHECK_INT(named, 2);
        CHECK_INT(inputs, 3);
        CHECK(!external || holds("m_ctx.onnx", " 64 1 v 11 weights.bin\n"),
              "expected the place of the weight: offset 64 of weights.bin");
        spec.path = in_folder("m_ctx.onnx");
        spec.config = NULL;
        CHECK(check_run(&spec, in_folder("m.onnx")) == 1, "external %d: %s", external, ort_text);
    }
}

/* A weight that a node computes: what it computes it from stays outside. */
TEST(quantized) {
    const int64_t dims[2] = {SIDE, SIDE};
    static int8_t q[COUNT];
    const float scale = 0.25f;
    const int8_t zero = 3;
    const char *const *const configs[] = {weightless, former};
    int i;
    for (i = 0; i < COUNT; i++) q[i] = (int8_t)(i % 251 - 125);
    for (i = 0; i < 2; i++) {
        ort_spec spec = spec_of(in_folder("m.onnx"));
        onnx_model m;
        bool saved;
        clear_folder();
        onnx_begin(&m);
        onnx_input(&m.graph, "x", 2, dims);
        onnx_tensor(&m.graph, "q", ONNX_INT8, 2, dims, q, sizeof q);
        onnx_floats(&m.graph, "scale", 0, NULL, &scale);
        onnx_tensor(&m.graph, "zero", ONNX_INT8, 0, NULL, &zero, 1);
        onnx_node(&m.graph, "DequantizeLinear", "", "dequantize", "q,scale,zero", "w", NULL);
        onnx_node(&m.graph, "Mul", "", "mul", "x,w", "y", NULL);
        onnx_output(&m.graph, "y", 2, dims);
        saved = save_model("m.onnx", &m);
        CHECK_TRUE(saved);
        spec.config = configs[i];
        CHECK(check_run(&spec, spec.path) == 2, "%s", ort_text);
        spec.path = in_folder("m_ctx.onnx");
        spec.config = NULL;
        CHECK(check_run(&spec, in_folder("m.onnx")) == 1, "%s", ort_text);
    }
}

/* A weight in the context model is not the one that was compiled. */
TEST(changed_weight) {
    ort_spec spec = spec_of(in_folder("m.onnx"));
    uint8_t *model, *at;
    size_t size;
    CHECK_TRUE(make_heavy("m.onnx", false, 1));
    spec.config = weightless;
    CHECK_ORT(make_session(&spec));
    model = (uint8_t *)slurp("m_ctx.onnx", &size);
    CHECK_TRUE(model);
    at = (uint8_t *)memmem(model, size, numbers[1], 400);
    if (at) at[100] ^= 1;
    CHECK_TRUE(save("m_ctx.onnx", model, size));
    free(model);
    CHECK(at, "the weights are not in the context model");
    spec.path = in_folder("m_ctx.onnx");
    spec.config = NULL;
    CHECK_ORT_FAILS(make_session(&spec), ORT_INVALID_GRAPH, "it has changed, compile again");
}

/* What `epctx compile` makes of the folder's m.onnx: nodes that name their weights, which stay in
 * the source model. */
static bool generate_ours(epctx_weightless_support which) {
    epctx_npu npu;
    epctx_backend backend;
    epctx_model model;
    epctx_gen_opts opts;
    epctx_error error;
    epctx_status status;
    memset(&opts, 0, sizeof opts);
    opts.weightless = which;
    epctx_error_clear(&error);
    status = epctx_npu_init(&npu, NULL, &backend, &error);
    if (status == EPCTX_OK)
        status = epctx_model_open_file(&model, in_folder("m.onnx"), NULL, &error);
    if (status == EPCTX_OK) {
        status = epctx_generate(&model, &backend, &opts, NULL, &error);
        epctx_model_close(&model);
    }
    snprintf(ort_text, sizeof ort_text, "%s", error.message);
    return status == EPCTX_OK;
}

static const void *source_data; /* SessionOptionsSetWeightlessSourceModelBuffer */
static size_t source_size;

static void give_source(OrtSessionOptions *options, void *user) {
    (void)user;
    ort_ok(ort->SessionOptionsSetWeightlessSourceModelBuffer(options, source_data, source_size));
}

static bool move_away(const char *name) {
    char to[PATH_MAX];
    snprintf(to, sizeof to, "%s", in_folder("away"));
    if (mkdir(to, 0700) != 0 && errno != EEXIST) return false;
    snprintf(to, sizeof to, "%s/%s", in_folder("away"), name);
    return rename(in_folder(name), to) == 0;
}

/* Weights that stay in the source model: found by the node's attribute, by the session's option and
 * in the application's buffer, in the order that ORT recommends: buffer, path, attribute. */
TEST(source_model) {
    int external;
    if (ort_version < 29) SKIP("buffers of source models came with ONNX Runtime 1.29");
    for (external = 0; external < 2; external++) {
        ort_spec spec = spec_of(in_folder("m_ctx.onnx"));
        const char *config[] = {"ep.context_source_model_path", NULL, NULL, NULL, NULL, NULL, NULL};
        char source[PATH_MAX], other[PATH_MAX];
        uint8_t *bytes;
        size_t named, inputs;
        clear_folder();
        CHECK_TRUE(make_heavy("other.onnx", false, 2) && make_heavy("m.onnx", external, 1));
        CHECK(generate_ours(external ? EPCTX_WEIGHTLESS_EXTERNAL_ONLY : EPCTX_WEIGHTLESS_ALL), "%s",
              ort_text);
        CHECK(read_weights("m_ctx.onnx", &named, &inputs), "%s", ort_text);
        CHECK_INT(named, external ? 1 : 2);
        CHECK_INT(inputs, 1);
        /* The attribute: m.onnx beside the model. */
        CHECK(check_run(&spec, in_folder("m.onnx")) == 1, "%s", ort_text);
        snprintf(source, sizeof source, "%s", in_folder("away/m.onnx"));
        snprintf(other, sizeof other, "%s", in_folder("other.onnx"));
        bytes = (uint8_t *)slurp("m.onnx", &source_size);
        CHECK_TRUE(bytes);
        /* The path goes before it... */
        config[1] = other;
        spec.config = config;
        CHECK_ORT_FAILS(make_session(&spec), ORT_INVALID_GRAPH, "source model '");
        CHECK_HAS(ort_text, "other.onnx");
        /* ...and serves where there is nothing beside the model. */
        CHECK_TRUE(move_away("m.onnx") && (!external || move_away("weights.bin")));
        config[1] = source;
        CHECK(check_run(&spec, source) == 1, "%s", ort_text);
        spec.config = NULL;
        CHECK_ORT_FAILS(make_session(&spec), ORT_INVALID_GRAPH, "set ep.context_source_model_path");
        /* The buffer goes before both. It has no folder: its external data are where the session
         * looks for initializers, and then ORT hides where the model is. */
        source_data = bytes;
        spec.more = give_source;
        spec.config = config;
        config[1] = other;
        if (external) {
            config[2] = "session.model_external_initializers_file_folder_path";
            config[3] = in_folder("away");
            config[4] = "ep.context_file_path";
            config[5] = in_folder("m_ctx.onnx");
        }
        CHECK(check_run(&spec, source) == 1, "external %d: %s", external, ort_text);
        source_data = "no model";
        source_size = 8;
        CHECK(!make_session(&spec), "expected a refusal of a buffer that is no model");
        free(bytes);
    }
}

/* Weights that are inputs of the node come before any source. */
TEST(inputs_first) {
    ort_spec spec = spec_of(in_folder("m.onnx"));
    const char *const config[] = {"ep.context_source_model_path", "/nowhere/m.onnx", NULL};
    CHECK_TRUE(make_heavy("m.onnx", false, 1));
    spec.config = weightless;
    CHECK_ORT(make_session(&spec));
    spec.path = in_folder("m_ctx.onnx");
    spec.config = config;
    CHECK(check_run(&spec, in_folder("m.onnx")) == 1, "%s", ort_text);
}

/* y = (x + b) * a: which of them are constants, and how the model says it. */
enum { EQUAL_CONSTANTS, DEFAULT_OF_INPUT, COMPUTED_INPUT, WEIGHT_FIRST, CHANGES };

static bool make_changed(const char *name, int kind) {
    const int64_t dims[1] = {4};
    const float values[4] = {1.5f, 1.5f, 1.5f, 1.5f};
    onnx_bytes attrs[2] = {{0}, {0}};
    onnx_model m;
    onnx_begin(&m);
    onnx_input(&m.graph, "x", 1, dims);
    if (kind == DEFAULT_OF_INPUT) onnx_input(&m.graph, "a", 1, dims);
    if (kind == EQUAL_CONSTANTS) {
        onnx_attr_float(&attrs[0], "value_float", 1.5f);
        onnx_attr_float(&attrs[1], "value_float", 1.5f);
        onnx_node(&m.graph, "Constant", "", "ca", "", "a", &attrs[0]);
        onnx_node(&m.graph, "Constant", "", "cb", "", "b", &attrs[1]);
    } else {
        onnx_floats(&m.graph, "a", 1, dims, values);
        onnx_floats(&m.graph, kind == COMPUTED_INPUT ? "k" : "b", 1, dims, values);
    }
    if (kind == COMPUTED_INPUT) { /* left to the CPU; ORT computes it when it loads the model */
        onnx_floats(&m.graph, "bias", 1, dims, values);
        onnx_node(&m.graph, "BiasGelu", "com.microsoft", "cpu", "k,bias", "b", NULL);
        onnx_value(&m.graph, ONNX_VALUE, "b", EPCTX_ONNX_FLOAT, 1, dims);
    }
    onnx_node(&m.graph, "Add", "", "add", kind == WEIGHT_FIRST ? "b,x" : "x,b", "t", NULL);
    onnx_node(&m.graph, "Mul", "", "mul", "t,a", "y", NULL);
    onnx_output(&m.graph, "y", 1, dims);
    return save_model(name, &m);
}

/* What ORT makes of constants between compiling and loading: it keeps one of equal ones, an input's
 * default is no input of the context model, and what a node computed is a constant now. */
TEST(constants_change) {
    int kind, plain;
    for (kind = 0; kind < CHANGES; kind++) {
        ort_spec spec = spec_of(in_folder("m.onnx"));
        clear_folder();
        CHECK_TRUE(make_changed("m.onnx", kind));
        spec.config = weightless;
        spec.plain = true;
        spec.allow_cpu = kind == COMPUTED_INPUT;
        CHECK(make_session(&spec), "kind %d: %s", kind, ort_text);
        spec.config = NULL;
        spec.path = in_folder("m_ctx.onnx");
        for (plain = 0; plain < 2; plain++) {
            spec.plain = plain;
            CHECK(check_run(&spec, in_folder("m.onnx")) == 1, "kind %d, %s: %s", kind,
                  plain ? "as it is" : "optimized", ort_text);
        }
    }
}

/* Weightless and shared. */
TEST(shared) {
    static const char *const join[] = {
        "ep.context_enable", "1", "ep.enable_weightless", "1", "ep.share_ep_contexts", "1", NULL};
    static const char *const finish[] = {"ep.context_enable",
                                         "1",
                                         "ep.enable_weightless",
                                         "1",
                                         "ep.share_ep_contexts",
                                         "1",
                                         "ep.stop_share_ep_contexts",
                                         "1",
                                         NULL};
    static const char *const share[] = {"ep.share_ep_contexts", "1", NULL};
    static const char *const full[] = {"ep.context_enable", "1", "ep.share_ep_contexts", "1", NULL};
    ort_spec spec = spec_of(in_folder("a.onnx"));
    CHECK_TRUE(make_heavy("a.onnx", false, 1) && make_heavy("b.onnx", false, 2));
    spec.config = join;
    CHECK_ORT(make_session(&spec));
    spec.path = in_folder("b.onnx");
    spec.config = full;
    CHECK_ORT_FAILS(make_session(&spec), ORT_INVALID_ARGUMENT, "is weightless");
    spec.config = finish;
    CHECK_ORT(make_session(&spec));
    CHECK_INT(count_files(), 5);
    CHECK(size_of(binary_name("a")) < BYTES / 4, "the binary has %zu bytes",
          size_of(binary_name("a")));
    spec.config = share;
    spec.path = in_folder("a_ctx.onnx");
    CHECK(check_run(&spec, in_folder("a.onnx")) == 1, "%s", ort_text);
    spec.path = in_folder("b_ctx.onnx");
    CHECK(check_run(&spec, in_folder("b.onnx")) == 1, "%s", ort_text);
}

/* A backend that cannot: ORT refuses, as it promises. */
TEST(unsupported) {
    ort_spec spec = spec_of(in_folder("m.onnx"));
    CHECK_TRUE(make_heavy("m.onnx", false, 1));
    spec.config = weightless;
    CHECK(!make_session(&spec), "expected a refusal");
    CHECK_HAS(ort_text, "does not support weightless mode");
    spec.config = former;
    CHECK(!make_session(&spec), "expected a refusal of the former name");
    CHECK_HAS(ort_text, "ep.enable_weightless_ep_context_nodes is 1, but");
}

static const ort_case cases[] = {
    ORT_CASE_OF("npu", generate_and_load),
    ORT_CASE_OF("npu", compiled_now),
    ORT_CASE_OF("npu", former_option),
    ORT_CASE_OF("npu", quantized),
    ORT_CASE_OF("npu", changed_weight),
    ORT_CASE_OF("npu", source_model),
    ORT_CASE_OF("npu", inputs_first),
    ORT_CASE_OF("npu", constants_change),
    ORT_CASE_OF("npu", shared),
    ORT_CASE_OF("toy", unsupported),
};

int main(int argc, char **argv) {
    if (!ort_test_begin(argv[0])) return ort_test_end();
    ort_test_cases(argc, argv, cases, sizeof cases / sizeof cases[0]);
    return ort_test_end();
}
