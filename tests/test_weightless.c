/* >>gen and >>load: weightless contexts, generated without weights, loaded with those of the
 * source model, on the reference NPU. What is in the way of that is refused before anything
 * runs. */
#define _XOPEN_SOURCE 700
#include "epctx_npu.h"
#include "examples/epctx/ops/cache.h"
#include "fake.h"
#include "files.h"
#include "test.h"

#include <time.h>

enum { IN = 16, HIDDEN = 64, OUT = 8 };

static void store_float(uint8_t *to, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    for (int i = 0; i < 4; i++) to[i] = (uint8_t)(bits >> 8 * i);
}

/* Numbers that repeat nowhere, as they stand in a file. Free the result. */
static bytes numbers(size_t count, uint32_t seed) {
    bytes b = {0};
    for (size_t i = 0; i < count; i++) {
        uint8_t raw[4];
        store_float(raw, (float)(random_below(&seed, 2000) + 1) / 1000.0f - 1.0f);
        bytes_add(&b, raw, sizeof raw);
    }
    return b;
}

/* A matrix (or a vector, `rows` 0) in the model, or at `offset` of the file w.data. */
static void add_weights(bytes *graph, const char *name, int64_t rows, int64_t columns,
                        uint32_t seed, const char *offset) {
    bytes tensor = {0};
    bytes data = numbers((size_t)((rows > 0 ? rows : 1) * columns), seed);
    if (rows > 0) put_int(&tensor, 1, rows);
    put_int(&tensor, 1, columns);
    put_int(&tensor, 2, EPCTX_ONNX_FLOAT);
    put_str(&tensor, 8, name);
    if (offset != NULL) {
        char length[24];
        snprintf(length, sizeof length, "%zu", data.size);
        const char *const pairs[3][2] = {
            {"location", "w.data"}, {"offset", offset}, {"length", length}};
        for (size_t i = 0; i < 3; i++) put_pair(&tensor, 13, pairs[i][0], pairs[i][1]);
        put_int(&tensor, 14, 1);
    } else {
        put_data(&tensor, 9, data.data, data.size);
    }
    put_child(graph, 5, &tensor);
    bytes_free(&data);
}

typedef struct recipe {
    uint32_t first, bias, second; /* seeds; 0: the usual ones */
    bool outside;                 /* the second matrix is in w.data */
    bool turned;                  /* initializers in another order */
    bool split;                   /* an operator in between that the NPU does not have */
    bool smaller;                 /* the second matrix has other dimensions */
    bool renamed;                 /* the first matrix has another name */
} recipe;

/* x [1,16] * first [16,64] + bias, Relu, * second [64,8] = y */
static bytes model_of(const recipe *r) {
    static const int64_t x[] = {1, IN, -1}, y[] = {1, OUT, -1}, h[] = {1, HIDDEN, -1};
    const uint32_t first = r->first ? r->first : 1, bias = r->bias ? r->bias : 2;
    const uint32_t second = r->second ? r->second : 3;
    bytes graph = {0};
    add_node(&graph, "MatMul", "m1", r->renamed ? "x,other" : "x,first", "a");
    add_node(&graph, "Add", "add", "a,bias", "b");
    add_node(&graph, r->split ? "Strange" : "Relu", "act", "b", "c");
    add_node(&graph, "MatMul", "m2", "c,second", "y");
    put_str(&graph, 2, "main");
    add_value(&graph, GRAPH_INPUT, "x", EPCTX_ONNX_FLOAT, x);
    add_value(&graph, GRAPH_OUTPUT, "y", EPCTX_ONNX_FLOAT, y);
    add_value(&graph, GRAPH_VALUE, "b", EPCTX_ONNX_FLOAT, h);
    add_value(&graph, GRAPH_VALUE, "c", EPCTX_ONNX_FLOAT, h);
    if (r->turned) add_weights(&graph, "bias", 0, HIDDEN, bias, NULL);
    add_weights(&graph, r->renamed ? "other" : "first", IN, HIDDEN, first, NULL);
    if (!r->turned) add_weights(&graph, "bias", 0, HIDDEN, bias, NULL);
    add_weights(&graph, "second", r->smaller ? HIDDEN / 2 : HIDDEN, OUT, second,
                r->outside ? "64" : NULL);
    return new_model(&graph);
}

static void make_model(const char *name, const recipe *r) {
    bytes b = model_of(r);
    save_bytes(name, &b);
    if (r->outside) {
        bytes data = {0}, second = numbers(HIDDEN * OUT, r->second ? r->second : 3);
        for (int i = 0; i < 64; i++) bytes_add(&data, "-", 1);
        bytes_add(&data, second.data, second.size);
        make_file(at("w.data"), data.data, data.size);
        bytes_free(&second);
        bytes_free(&data);
    }
}

static const recipe usual;

static epctx_status compile(const char *from, const char *to, epctx_weightless_support weightless,
                            bool embed, epctx_gen_report *report, epctx_error *error) {
    epctx_npu npu;
    epctx_backend backend;
    epctx_gen_opts opts = {0};
    epctx_model model;
    epctx_status status = epctx_npu_init(&npu, NULL, &backend, error);
    opts.context_file_path = at(to);
    opts.overwrite = true;
    opts.weightless = weightless;
    opts.embed = embed;
    opts.verify = true;
    if (status == EPCTX_OK) status = epctx_model_open_file(&model, at(from), NULL, error);
    if (status == EPCTX_OK) status = epctx_generate(&model, &backend, &opts, report, error);
    epctx_model_close(&model);
    return status;
}

/* Runs every node in turn over one value for each of its inputs and outputs. */
static epctx_status run_loaded(const epctx_loaded *loaded, const epctx_backend *b, uint8_t *y,
                               epctx_error *error) {
    bytes x = numbers(HIDDEN, 9);
    epctx_status status = EPCTX_OK;
    memset(y, 0, OUT * 4);
    for (size_t i = 0; status == EPCTX_OK && i < loaded->bound_count; i++) {
        const epctx_graph_info *info = &loaded->bound[i].info;
        const bool last = i + 1 == loaded->bound_count;
        uint8_t middle[HIDDEN * 4];
        void *block = malloc(info->scratch_size + 64);
        uint8_t *scratch = (uint8_t *)block;
        epctx_span in = {x.data, (size_t)info->inputs[0].dims[1] * 4};
        epctx_memory out = {middle, sizeof middle};
        scratch += (64 - (uintptr_t)scratch % 64) % 64;
        if (last) out.data = y, out.size = OUT * 4;
        status = b->run_fn(b->self, loaded->bound[i].graph, &in, &out, scratch, info->scratch_size,
                           error);
        if (!last) memcpy(x.data, middle, sizeof middle);
        free(block);
    }
    bytes_free(&x);
    return status;
}

static epctx_status run(const char *name, const epctx_load_opts *opts, uint8_t *y,
                        epctx_error *error) {
    epctx_npu npu;
    epctx_backend backend;
    epctx_model model;
    epctx_loaded loaded;
    epctx_status status = epctx_npu_init(&npu, NULL, &backend, error);
    if (status == EPCTX_OK) status = epctx_model_open_file(&model, at(name), NULL, error);
    if (status != EPCTX_OK) return status;
    status = epctx_load(&loaded, &model, &backend, opts, error);
    if (status == EPCTX_OK) status = run_loaded(&loaded, &backend, y, error);
    epctx_unload(&loaded);
    epctx_model_close(&model);
    return status;
}

/* The text of the attribute of the n-th node; free it. */
static bytes attribute(const char *name, size_t index, char *source, size_t capacity) {
    bytes text = {0};
    epctx_model model;
    epctx_cursor it;
    epctx_node_view node;
    epctx_attr_view attr;
    source[0] = '\0';
    if (epctx_model_open_file(&model, at(name), NULL, NULL) != EPCTX_OK) return text;
    it = epctx_view_graph_nodes(epctx_model_graph(&model));
    while (epctx_next_node(&it, &node)) {
        epctx_cursor attrs = epctx_view_node_attrs(&node);
        if (!epctx_view_is_epnode(&node) || index-- != 0) continue;
        while (epctx_next_attr(&attrs, &attr)) {
            if (epctx_str_is(attr.name, EPCTX_WEIGHTS_ATTR))
                bytes_add(&text, attr.s.data, attr.s.size);
            if (epctx_str_is(attr.name, "onnx_model_filename"))
                snprintf(source, capacity, "%.*s", (int)attr.s.size, attr.s.data);
        }
    }
    epctx_model_close(&model);
    return text;
}

TEST(small_and_equal) {
    epctx_gen_report full, without;
    epctx_error error;
    uint8_t expected[OUT * 4], found[OUT * 4];
    bytes first = numbers(IN * HIDDEN, 1), second = numbers(HIDDEN * OUT, 3), binary;
    clear_root();
    make_model("m.onnx", &usual);
    CHECK_OK(compile("m.onnx", "f_ctx.onnx", EPCTX_WEIGHTLESS_NONE, false, &full, &error), error);
    CHECK_OK(compile("m.onnx", "w_ctx.onnx", EPCTX_WEIGHTLESS_ALL, false, &without, &error), error);
    CHECK_UINT(without.outside_count, 3);
    CHECK_UINT(without.outside_size, 4 * (IN * HIDDEN + HIDDEN + HIDDEN * OUT));
    CHECK(full.binary_size > without.outside_size, "the full binary has %" PRIu64 " bytes",
          full.binary_size);
    CHECK(without.binary_size < 2048, "the weightless binary has %" PRIu64 " bytes",
          without.binary_size);
    binary = read_file(without.binary_path);
    CHECK(!bytes_contain(&binary, first.data, 16), "numbers of 'first' are in the binary");
    CHECK(!bytes_contain(&binary, second.data, 16), "numbers of 'second' are in the binary");
    CHECK_OK(run("f_ctx.onnx", NULL, expected, &error), error);
    CHECK_OK(run("w_ctx.onnx", NULL, found, &error), error);
    CHECK(memcmp(expected, found, sizeof found) == 0, "the outputs differ");
    bytes_free(&first);
    bytes_free(&second);
    bytes_free(&binary);
}

/* What a node says about its weights: enough to read them without a parser. */
TEST(references) {
    recipe r = {0};
    epctx_error error;
    epctx_outside_weight ref;
    epctx_str rest;
    char source_name[64];
    bytes text, source_bytes, data, second = numbers(HIDDEN * OUT, 3);
    r.outside = true;
    clear_root();
    make_model("m.onnx", &r);
    CHECK_INT(compile("m.onnx", "w_ctx.onnx", EPCTX_WEIGHTLESS_ALL, false, NULL, &error), EPCTX_OK);
    text = attribute("w_ctx.onnx", 0, source_name, sizeof source_name);
    CHECK(strcmp(source_name, "m.onnx") == 0, "onnx_model_filename is '%s'", source_name);
    rest.data = (const char *)text.data;
    rest.size = text.size;
    source_bytes = read_file(at("m.onnx"));
    data = read_file(at("w.data"));
    CHECK(epctx_outside_weight_next(&rest, &ref) && epctx_str_is(ref.name, "first"),
          "the first weight");
    CHECK_UINT(ref.size, 4 * IN * HIDDEN);
    CHECK_UINT(ref.location.size, 0);
    CHECK(ref.offset > 0 && ref.offset + ref.size < source_bytes.size, "offset %" PRIu64,
          ref.offset);
    CHECK_UINT(epctx_hash(source_bytes.data + ref.offset, (size_t)ref.size, 0), ref.hash);
    CHECK(epctx_outside_weight_next(&rest, &ref) && epctx_str_is(ref.name, "bias"),
          "the second weight");
    CHECK(epctx_outside_weight_next(&rest, &ref) && epctx_str_is(ref.name, "second"),
          "the third weight");
    CHECK(epctx_str_is(ref.location, "w.data"), "the location of 'second'");
    CHECK_UINT(ref.offset, 64);
    CHECK_UINT(epctx_hash(data.data + 64, second.size, 0), ref.hash);
    CHECK(!epctx_outside_weight_next(&rest, &ref) && rest.size == 0, "there are three weights");
    bytes_free(&text);
    bytes_free(&source_bytes);
    bytes_free(&data);
    bytes_free(&second);
}

/* The application's buffer, its path, what the node names: the first that is there counts. */
TEST(precedence) {
    recipe wrong = {0};
    epctx_load_opts opts = {0};
    epctx_error error;
    uint8_t expected[OUT * 4], y[OUT * 4];
    bytes good = model_of(&usual), bad;
    wrong.second = 7;
    bad = model_of(&wrong);
    clear_root();
    make_model("m.onnx", &usual);
    CHECK_INT(compile("m.onnx", "w_ctx.onnx", EPCTX_WEIGHTLESS_ALL, false, NULL, &error), EPCTX_OK);
    CHECK_OK(run("w_ctx.onnx", NULL, expected, &error), error);
    make_model("good.onnx", &usual);
    make_model("bad.onnx", &wrong);
    opts.source_model_path = at("bad.onnx");
    CHECK_INT(epctx_status_to_ort(run("w_ctx.onnx", &opts, y, &error)), 10);
    CHECK_HAS(error.message, "bad.onnx");
    opts.source_model.data = good.data;
    opts.source_model.size = good.size;
    CHECK(run("w_ctx.onnx", &opts, y, &error) == EPCTX_OK, "buffer before path: %s", error.message);
    CHECK(memcmp(expected, y, sizeof y) == 0, "the outputs differ");
    opts.source_model_path = at("good.onnx");
    opts.source_model.data = bad.data;
    opts.source_model.size = bad.size;
    CHECK_INT(epctx_status_to_ort(run("w_ctx.onnx", &opts, y, &error)), 10);
    CHECK_HAS(error.message, "(from memory)");
    memset(&opts.source_model, 0, sizeof opts.source_model);
    make_model("m.onnx", &wrong);
    CHECK(run("w_ctx.onnx", &opts, y, &error) == EPCTX_OK, "path before the node: %s",
          error.message);
    CHECK(memcmp(expected, y, sizeof y) == 0, "the outputs differ");
    CHECK_INT(epctx_status_to_ort(run("w_ctx.onnx", NULL, y, &error)), 10);
    CHECK_HAS(error.message, "m.onnx");
    bytes_free(&good);
    bytes_free(&bad);
}

static epctx_status with_source(const recipe *r, epctx_error *error) {
    uint8_t y[OUT * 4];
    make_model("m.onnx", r);
    return run("w_ctx.onnx", NULL, y, error);
}

TEST(wrong_sources) {
    recipe r = {0};
    epctx_error error;
    uint8_t y[OUT * 4];
    char text[32];
    bytes other;
    clear_root();
    make_model("m.onnx", &usual);
    CHECK_INT(compile("m.onnx", "w_ctx.onnx", EPCTX_WEIGHTLESS_ALL, false, NULL, &error), EPCTX_OK);
    r.turned = true; /* the same weights elsewhere in the file */
    CHECK_OK(with_source(&r, &error), error);
    r.turned = false;
    r.second = 4;
    CHECK_INT(epctx_status_to_ort(with_source(&r, &error)), 10);
    CHECK_HAS(error.message, "m.onnx': initializer 'second' has hash ");
    other = numbers(HIDDEN * OUT, 4);
    snprintf(text, sizeof text, "%" PRIx64, epctx_hash(other.data, other.size, 0));
    CHECK_HAS(error.message, text);
    bytes_free(&other);
    other = numbers(HIDDEN * OUT, 3);
    snprintf(text, sizeof text, "expected %" PRIx64, epctx_hash(other.data, other.size, 0));
    CHECK_HAS(error.message, text);
    bytes_free(&other);
    r.second = 0;
    r.bias = 5; /* so small that the binary may hold what was computed from it */
    CHECK_INT(epctx_status_to_ort(with_source(&r, &error)), 10);
    CHECK_HAS(error.message, "initializer 'bias'");
    r.bias = 0;
    r.smaller = true;
    CHECK_INT(epctx_status_to_ort(with_source(&r, &error)), 10);
    CHECK_HAS(error.message, "'second' was compiled with 2048 bytes, found 1024");
    r.smaller = false;
    r.renamed = true;
    CHECK_INT(epctx_status_to_ort(with_source(&r, &error)), 10);
    CHECK_HAS(error.message, "initializer 'first' was compiled with 4096 bytes, found none");
    make_file(at("m.onnx"), "this is no model", 16);
    CHECK_INT(epctx_status_to_ort(run("w_ctx.onnx", NULL, y, &error)), 10);
    CHECK_HAS(error.message, "m.onnx");
    remove(at("m.onnx"));
    CHECK_INT(epctx_status_to_ort(run("w_ctx.onnx", NULL, y, &error)), 10);
    CHECK_HAS(error.message, "ep.context_source_model_path");
    CHECK_HAS(error.message, "'m.onnx'");
}

/* Weights in external data are read from there, and a changed data file is noticed. */
TEST(external_data) {
    recipe r = {0};
    epctx_load_opts opts = {0};
    epctx_error error;
    uint8_t expected[OUT * 4], y[OUT * 4];
    bytes data, source_bytes;
    r.outside = true;
    clear_root();
    make_model("m.onnx", &r);
    CHECK_INT(compile("m.onnx", "f_ctx.onnx", EPCTX_WEIGHTLESS_NONE, false, NULL, &error),
              EPCTX_OK);
    CHECK_INT(compile("m.onnx", "w_ctx.onnx", EPCTX_WEIGHTLESS_ALL, false, NULL, &error), EPCTX_OK);
    CHECK_INT(run("f_ctx.onnx", NULL, expected, &error), EPCTX_OK);
    CHECK_OK(run("w_ctx.onnx", NULL, y, &error), error);
    CHECK(memcmp(expected, y, sizeof y) == 0, "the outputs differ");
    /* The model from memory, its data beside the EPContext model. */
    source_bytes = read_file(at("m.onnx"));
    opts.source_model.data = source_bytes.data;
    opts.source_model.size = source_bytes.size;
    CHECK_OK(run("w_ctx.onnx", &opts, y, &error), error);
    CHECK(memcmp(expected, y, sizeof y) == 0, "the outputs differ");
    data = read_file(at("w.data"));
    data.data[100] ^= 1;
    make_file(at("w.data"), data.data, data.size);
    CHECK_INT(epctx_status_to_ort(run("w_ctx.onnx", NULL, y, &error)), 10);
    CHECK_HAS(error.message, "initializer 'second'");
    make_file(at("w.data"), data.data, 100);
    CHECK_INT(epctx_status_to_ort(run("w_ctx.onnx", NULL, y, &error)), 10);
    remove(at("w.data"));
    CHECK_INT(epctx_status_to_ort(run("w_ctx.onnx", NULL, y, &error)), 10);
    CHECK_HAS(error.message, "w.data");
    bytes_free(&data);
    bytes_free(&source_bytes);
}

/* ep.enable_weightless_ep_context_nodes: what is in the model is compiled in. */
TEST(external_only) {
    recipe r = {0};
    epctx_gen_report report;
    epctx_error error;
    uint8_t expected[OUT * 4], y[OUT * 4];
    r.outside = true;
    clear_root();
    make_model("m.onnx", &r);
    CHECK_INT(compile("m.onnx", "f_ctx.onnx", EPCTX_WEIGHTLESS_NONE, false, NULL, &error),
              EPCTX_OK);
    CHECK_INT(
        compile("m.onnx", "w_ctx.onnx", EPCTX_WEIGHTLESS_EXTERNAL_ONLY, false, &report, &error),
        EPCTX_OK);
    CHECK_UINT(report.outside_count, 1);
    CHECK(report.binary_size > 4 * IN * HIDDEN && report.binary_size < 4 * IN * HIDDEN + 2048,
          "the binary has %" PRIu64 " bytes", report.binary_size);
    CHECK_INT(run("f_ctx.onnx", NULL, expected, &error), EPCTX_OK);
    CHECK_OK(run("w_ctx.onnx", NULL, y, &error), error);
    CHECK(memcmp(expected, y, sizeof y) == 0, "the outputs differ");
}

TEST(embedded_and_split) {
    recipe r = {0};
    epctx_gen_report report;
    epctx_error error;
    uint8_t expected[OUT * 4], y[OUT * 4];
    char source_name[64];
    bytes text;
    r.split = true;
    clear_root();
    make_model("m.onnx", &r);
    CHECK_INT(compile("m.onnx", "f_ctx.onnx", EPCTX_WEIGHTLESS_NONE, false, NULL, &error),
              EPCTX_OK);
    CHECK_OK(compile("m.onnx", "w_ctx.onnx", EPCTX_WEIGHTLESS_ALL, true, &report, &error), error);
    CHECK_UINT(report.partition_count, 2);
    text = attribute("w_ctx.onnx", 1, source_name, sizeof source_name);
    CHECK(text.size > 0 && strcmp(source_name, "m.onnx") == 0, "the second node has no weights");
    CHECK(bytes_contain(&text, " second ", 8) && !bytes_contain(&text, " first ", 7),
          "the second node names weights of the first");
    CHECK_INT(run("f_ctx.onnx", NULL, expected, &error), EPCTX_OK);
    CHECK_OK(run("w_ctx.onnx", NULL, y, &error), error);
    CHECK(memcmp(expected, y, sizeof y) == 0, "the outputs differ");
    bytes_free(&text);
}

/* An EP that cannot do without weights says so before it compiles. */
TEST(not_supported) {
    fake f = {0};
    epctx_backend backend = fake_backend(&f);
    epctx_gen_opts opts = {0};
    epctx_model model;
    epctx_error error;
    f.takes = "MatMul,Add,Relu";
    opts.weightless = EPCTX_WEIGHTLESS_ALL;
    clear_root();
    make_model("m.onnx", &usual);
    CHECK_INT(epctx_model_open_file(&model, at("m.onnx"), NULL, &error), EPCTX_OK);
    CHECK_INT(epctx_generate(&model, &backend, &opts, NULL, &error), EPCTX_ERR_UNSUPPORTED);
    CHECK_HAS(error.message, "FakeEP has no weightless support");
    CHECK_INT(f.alive, 0);
    CHECK(strcmp(listing(), "m.onnx ") == 0, "%s", listing());
    epctx_model_close(&model);
}

/* A backend without weights_fn meets a weightless node, and hostile texts of the attribute. */
TEST(bad_attributes) {
    epctx_error error;
    epctx_npu npu;
    epctx_backend backend;
    epctx_model model;
    epctx_loaded loaded;
    char source_name[64];
    bytes text;
    clear_root();
    make_model("m.onnx", &usual);
    CHECK_INT(compile("m.onnx", "w_ctx.onnx", EPCTX_WEIGHTLESS_ALL, false, NULL, &error), EPCTX_OK);
    CHECK_INT(epctx_npu_init(&npu, NULL, &backend, &error), EPCTX_OK);
    backend.weights_fn = NULL;
    CHECK_INT(epctx_model_open_file(&model, at("w_ctx.onnx"), NULL, &error), EPCTX_OK);
    CHECK_INT(epctx_status_to_ort(epctx_load(&loaded, &model, &backend, NULL, &error)), 10);
    CHECK_HAS(error.message, "weightless");
    epctx_model_close(&model);
    text = attribute("w_ctx.onnx", 0, source_name, sizeof source_name);
    for (size_t size = 0; size <= text.size; size++) {
        char *copy = (char *)malloc(size > 0 ? size : 1); /* exact, for the sanitizer */
        epctx_outside_weight ref;
        epctx_str rest = {copy, size};
        size_t lines = 0;
        memcpy(copy, text.data, size);
        while (epctx_outside_weight_next(&rest, &ref)) lines++;
        CHECK(rest.size == 0 ? size == 0 || copy[size - 1] == '\n' : lines < 3,
              "%zu bytes give %zu lines", size, lines);
        free(copy);
    }
    bytes_free(&text);
    static const char *const bad[] = {"x",
                                      "1",
                                      "1 ",
                                      "1 0123456789abcdef",
                                      "1 0123456789abcdef 0 99999999999999999999 a 0 \n",
                                      "1 0123456789abcdef 0 18446744073709551615 a 0 \n",
                                      "1 0123456789abcdef 0 1 a 1 \n",
                                      "1 0123456789abcdef 0 1 a 0  ",
                                      "-1 0123456789abcdef 0 1 a 0 \n",
                                      "1 0123456789abcdeg 0 1 a 0 \n",
                                      "1 0123456789ABCDEF 0 1 a 0 \n",
                                      "1 0123456789abcdef00 0 1 a 0 \n"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        epctx_outside_weight ref;
        epctx_str rest = epctx_str_of(bad[i]);
        CHECK(!epctx_outside_weight_next(&rest, &ref) && rest.size > 0, "'%s' is taken", bad[i]);
    }
}

/* A hostile node names one large weight over and over: it is read and hashed once. */
TEST(one_weight_named_often) {
    enum { SIDE = 1024, LINES = 3000 };
    epctx_error error;
    epctx_npu npu;
    epctx_backend backend;
    epctx_model model;
    epctx_loaded loaded;
    epctx_load_opts opts = {0};
    epctx_attr attr = {0};
    epctx_cursor it;
    epctx_node_view node;
    bytes graph = {0}, source, text = {0};
    bytes weight = numbers((size_t)SIDE * SIDE, 1);
    char line[100];
    clock_t start;
    double seconds;
    clear_root();
    make_model("m.onnx", &usual);
    CHECK_INT(compile("m.onnx", "w_ctx.onnx", EPCTX_WEIGHTLESS_ALL, false, NULL, &error), EPCTX_OK);
    put_str(&graph, 2, "main");
    add_weights(&graph, "first", SIDE, SIDE, 1, NULL);
    source = new_model(&graph);
    make_file(at("large.onnx"), source.data, source.size);
    snprintf(line, sizeof line, "%zu %016llx 0 5 first 0 \n", weight.size,
             (unsigned long long)epctx_hash(weight.data, weight.size, 0));
    for (int i = 0; i < LINES; i++) bytes_add(&text, line, strlen(line));
    CHECK_INT(epctx_npu_init(&npu, NULL, &backend, &error), EPCTX_OK);
    CHECK_INT(epctx_model_open_file(&model, at("w_ctx.onnx"), NULL, &error), EPCTX_OK);
    it = epctx_view_graph_nodes(epctx_model_graph(&model));
    CHECK_TRUE(epctx_next_node(&it, &node));
    attr.name = epctx_str_of(EPCTX_WEIGHTS_ATTR);
    attr.type = EPCTX_ATTR_STRING;
    attr.s.data = (const char *)text.data;
    attr.s.size = text.size;
    CHECK_INT(epctx_edit_set_attr(&model, node.view, &attr, &error), EPCTX_OK);
    opts.source_model_path = at("large.onnx");
    start = clock();
    CHECK_INT(epctx_load(&loaded, &model, &backend, &opts, &error), EPCTX_ERR_CONTEXT);
    seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    CHECK(strstr(error.message, "source model") == NULL, "the text is wrong: %s", error.message);
    CHECK(seconds < 0.5, "%d lines take %.2f s", LINES, seconds);
    epctx_model_close(&model);
    bytes_free(&text);
    bytes_free(&source);
    bytes_free(&weight);
}

/* A blob by itself: no run before the weights, none after they went. */
TEST(order_of_calls) {
    epctx_error error;
    epctx_npu npu;
    epctx_backend backend;
    epctx_model model;
    epctx_loaded loaded;
    uint8_t y[OUT * 4];
    clear_root();
    make_model("m.onnx", &usual);
    CHECK_INT(compile("m.onnx", "w_ctx.onnx", EPCTX_WEIGHTLESS_ALL, false, NULL, &error), EPCTX_OK);
    CHECK_INT(epctx_npu_init(&npu, NULL, &backend, &error), EPCTX_OK);
    CHECK_INT(epctx_model_open_file(&model, at("w_ctx.onnx"), NULL, &error), EPCTX_OK);
    CHECK_INT(epctx_load(&loaded, &model, &backend, NULL, &error), EPCTX_OK);
    CHECK_INT(run_loaded(&loaded, &backend, y, &error), EPCTX_OK);
    CHECK_INT(backend.weights_fn(backend.self, loaded.bound[0].graph, NULL, 0, &error), EPCTX_OK);
    CHECK_INT(run_loaded(&loaded, &backend, y, &error), EPCTX_ERR_ARG);
    CHECK_HAS(error.message, "pass its weights before running");
    epctx_unload(&loaded);
    epctx_model_close(&model);
}

static epctx_status load_with(counting *memory, epctx_error *error) {
    epctx_allocator allocator = counting_allocator(memory);
    epctx_npu_opts npu_opts = {0};
    epctx_load_opts opts = {0};
    epctx_npu npu;
    epctx_backend backend;
    epctx_model model;
    epctx_loaded loaded;
    epctx_status status;
    npu_opts.allocator = &allocator;
    opts.allocator = &allocator;
    status = epctx_npu_init(&npu, &npu_opts, &backend, error);
    if (status == EPCTX_OK) status = epctx_model_open_file(&model, at("w_ctx.onnx"), NULL, error);
    if (status != EPCTX_OK) return status;
    status = epctx_load(&loaded, &model, &backend, &opts, error);
    epctx_unload(&loaded);
    epctx_model_close(&model);
    return status;
}

TEST(out_of_memory) {
    epctx_error error;
    size_t calls = 0;
    clear_root();
    make_model("m.onnx", &usual);
    CHECK_INT(compile("m.onnx", "w_ctx.onnx", EPCTX_WEIGHTLESS_ALL, false, NULL, &error), EPCTX_OK);
    for (size_t fail_at = 2; fail_at < 2000; fail_at++) {
        counting memory = {0};
        memory.fail_at = fail_at / 2;
        memory.once = fail_at % 2 == 1; /* or with all that follow */
        epctx_status status = load_with(&memory, &error);
        CHECK_UINT(memory.alive, 0);
        if (status == EPCTX_OK && memory.calls < memory.fail_at) break;
        CHECK(status == EPCTX_ERR_NOMEM, "call %zu: %s", memory.fail_at, error.message);
        calls++;
    }
    CHECK(calls > 6 && calls < 1998, "%zu calls failed", calls);
}

/* Sessions that share a binary get their weights, too, each from its own source. */
TEST(shared) {
    static const char *const sources[2] = {"m.onnx", "n.onnx"};
    static const char *const results[2] = {"m_ctx.onnx", "n_ctx.onnx"};
    recipe second = {0};
    uint8_t expected[2][OUT * 4], y[OUT * 4];
    epctx_error error;
    epctx_npu npu;
    epctx_backend backend;
    epctx_gen_opts opts = {0};
    epctx_gen_report report;
    epctx_load_opts load = {0};
    epctx_workspace *workspace;
    epctx_model models[2];
    epctx_loaded loaded[2];
    second.second = 8;
    clear_root();
    make_model("m.onnx", &usual);
    make_model("n.onnx", &second);
    CHECK_INT(epctx_npu_init(&npu, NULL, &backend, &error), EPCTX_OK);
    CHECK_INT(epctx_workspace_open(&workspace, NULL, &error), EPCTX_OK);
    opts.weightless = EPCTX_WEIGHTLESS_ALL;
    for (int i = 0; i < 2; i++) {
        CHECK_INT(compile(sources[i], "f_ctx.onnx", EPCTX_WEIGHTLESS_NONE, false, NULL, &error),
                  EPCTX_OK);
        CHECK_INT(run("f_ctx.onnx", NULL, expected[i], &error), EPCTX_OK);
        CHECK_INT(epctx_model_open_file(&models[i], at(sources[i]), NULL, &error), EPCTX_OK);
        opts.workspace = workspace;
        opts.stop = i == 1;
        CHECK_OK(epctx_generate(&models[i], &backend, &opts, &report, &error), error);
        epctx_model_close(&models[i]);
    }
    CHECK(report.binary_size < 4096, "the binary has %" PRIu64 " bytes", report.binary_size);
    load.workspace = workspace;
    for (int i = 0; i < 2; i++) {
        CHECK_INT(epctx_model_open_file(&models[i], at(results[i]), NULL, &error), EPCTX_OK);
        CHECK_OK(epctx_load(&loaded[i], &models[i], &backend, &load, &error), error);
    }
    for (int i = 0; i < 2; i++) {
        CHECK_OK(run_loaded(&loaded[i], &backend, y, &error), error);
        CHECK(memcmp(expected[i], y, sizeof y) == 0, "the outputs of %s differ", results[i]);
    }
    for (int i = 0; i < 2; i++) {
        epctx_unload(&loaded[i]);
        epctx_model_close(&models[i]);
    }
    epctx_workspace_close(workspace);
}

/* As a cache: the source is at hand, wherever the EPContext model is. */
TEST(cache) {
    epctx_error error;
    epctx_npu npu;
    epctx_backend backend;
    epctx_gen_opts gen = {0};
    epctx_cache_opts opts = {0};
    epctx_opened opened;
    uint8_t y[OUT * 4];
    clear_root();
    make_model("m.onnx", &usual);
    mkdir(at("sub"), 0777);
    CHECK_INT(epctx_npu_init(&npu, NULL, &backend, &error), EPCTX_OK);
    gen.weightless = EPCTX_WEIGHTLESS_ALL;
    gen.context_file_path = at("sub/m_ctx.onnx");
    opts.gen = &gen;
    for (int i = 0; i < 2; i++) {
        gen.context_file_path = at("sub/m_ctx.onnx");
        CHECK_OK(epctx_open_or_compile(&opened, at("m.onnx"), &backend, &opts, &error), error);
        CHECK_INT(opened.origin, i == 0 ? EPCTX_FROM_COMPILER : EPCTX_FROM_CACHE);
        CHECK_INT(run_loaded(&opened.loaded, &backend, y, &error), EPCTX_OK);
        epctx_opened_close(&opened);
    }
    /* With weights is something else. */
    gen.weightless = EPCTX_WEIGHTLESS_NONE;
    CHECK_INT(epctx_open_or_compile(&opened, at("m.onnx"), &backend, &opts, &error), EPCTX_OK);
    CHECK_INT(opened.origin, EPCTX_FROM_COMPILER);
    epctx_opened_close(&opened);
    remove(at("sub/m_ctx.onnx"));
    remove(at("sub/m_npu.bin"));
}

/* What a node says of its weights is as hostile as the rest of the model. */
TEST(bad_references) {
    { /* a tensor without bytes is no better than none */
        epctx_outside_weight ref = {0};
        epctx_tensor tensor = {0};
        epctx_error error;
        ref.name = epctx_str_of("w");
        ref.size = 4;
        CHECK_INT(epctx_outside_weight_verify(&ref, NULL, "m", &error), EPCTX_ERR_CONTEXT);
        CHECK_INT(epctx_outside_weight_verify(&ref, &tensor, "m", &error), EPCTX_ERR_CONTEXT);
        CHECK_HAS(error.message, "compiled with 4 bytes, found none");
    }

    static const struct {
        const char *weights, *message;
    } cases[] = {
        {"nonsense", "line 1 does not name a weight"},
        {"4 0123456789abcdef 0 1 w 0 \n4 ", "line 2 does not name a weight"},
        {"4 0123456789abcdef 0 1 w 0 \n", "the node does not name"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        epctx_error error;
        epctx_npu npu;
        epctx_backend backend;
        epctx_model model;
        epctx_loaded loaded;
        epctx_node_view node;
        epctx_cursor it;
        epctx_attr attr;
        clear_root();
        make_model("m.onnx", &usual);
        CHECK_INT(compile("m.onnx", "w_ctx.onnx", EPCTX_WEIGHTLESS_ALL, false, NULL, &error),
                  EPCTX_OK);
        CHECK_INT(epctx_npu_init(&npu, NULL, &backend, &error), EPCTX_OK);
        CHECK_INT(epctx_model_open_file(&model, at("w_ctx.onnx"), NULL, &error), EPCTX_OK);
        it = epctx_view_graph_nodes(epctx_model_graph(&model));
        while (epctx_next_node(&it, &node) && !epctx_view_is_epnode(&node)) {
        }
        memset(&attr, 0, sizeof attr);
        attr.name = epctx_str_of(EPCTX_WEIGHTS_ATTR);
        attr.type = EPCTX_ATTR_STRING;
        attr.s = epctx_str_of(cases[i].weights);
        CHECK_INT(epctx_edit_set_attr(&model, node.view, &attr, &error), EPCTX_OK);
        CHECK_INT(
            epctx_edit_remove_attr(&model, node.view, epctx_str_of("onnx_model_filename"), &error),
            EPCTX_OK);
        CHECK_INT(epctx_status_to_ort(epctx_load(&loaded, &model, &backend, NULL, NULL)), 10);
        CHECK_INT(epctx_status_to_ort(epctx_load(&loaded, &model, &backend, NULL, &error)), 10);
        CHECK_HAS(error.message, cases[i].message);
        epctx_model_close(&model);
    }
}

int main(int argc, char **argv) {
    if (!make_root()) return 1;
    RUN(small_and_equal);
    RUN(references);
    RUN(precedence);
    RUN(wrong_sources);
    RUN(external_data);
    RUN(external_only);
    RUN(embedded_and_split);
    RUN(not_supported);
    RUN(bad_attributes);
    RUN(one_weight_named_often);
    RUN(order_of_calls);
    RUN(out_of_memory);
    RUN(shared);
    RUN(cache);
    RUN(bad_references);
    remove_root();
    return test_end();
}
