/* >>gen into memory: the same bytes as in files, and no file is touched. */
#define _XOPEN_SOURCE 700
#include "fake.h"
#include "files.h"
#include "test.h"

typedef struct results {
    epctx_buffer model, binary, initializers;
    epctx_gen_memory memory;
} results;

static void begin_results(results *r) {
    epctx_buffer_init(&r->model, NULL);
    epctx_buffer_init(&r->binary, NULL);
    epctx_buffer_init(&r->initializers, NULL);
    r->memory.model = &r->model;
    r->memory.binary = &r->binary;
    r->memory.initializers = &r->initializers;
}

static void end_results(results *r) {
    epctx_buffer_free(&r->model);
    epctx_buffer_free(&r->binary);
    epctx_buffer_free(&r->initializers);
}

static epctx_status generate(const epctx_gen_opts *opts, fake *f, epctx_gen_report *report,
                             epctx_error *error) {
    epctx_backend backend = fake_backend(f);
    epctx_model model;
    epctx_status status = epctx_model_open_file(&model, at("m.onnx"), NULL, error);
    if (opts->weightless != EPCTX_WEIGHTLESS_NONE) {
        backend.weightless = EPCTX_WEIGHTLESS_ALL;
        backend.weights_fn = fake_any_weights;
    }
    if (status == EPCTX_OK) status = epctx_generate(&model, &backend, opts, report, error);
    epctx_model_close(&model);
    return status;
}

static bool same_as_file(const epctx_buffer *buffer, const char *name) {
    bytes file = read_file(at(name));
    bool same = bytes_equal(&file, buffer->data, buffer->size);
    bytes_free(&file);
    return same;
}

TEST(same_bytes) {
    static const struct {
        epctx_gen_opts opts;
        const char *binary; /* NULL: embedded */
    } rows[] = {
        {{.embed = true}, NULL},
        {{.binary = NULL}, "m_fake.bin"},
        {{.binary = "other.bin"}, "other.bin"},
        {{.context_file_path = "/nowhere/o_ctx.onnx"}, "o_fake.bin"},
        {{.initializers_file_name = "w.data"}, "m_fake.bin"},
        {{.embed = true, .initializers_file_name = "w.data", .name_prefix = "p_"}, NULL},
        {{.verify = true, .prepare_only = true}, "m_fake.bin"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        epctx_gen_opts opts = rows[i].opts;
        epctx_gen_report report, in_files;
        epctx_error error;
        results r;
        fake f = {0};
        clear_root();
        make_source(0);
        begin_results(&r);
        opts.memory = &r.memory;
        CHECK_OK(generate(&opts, &f, &report, &error), error);
        CHECK_STR(listing(), "m.onnx ");
        CHECK_STR(report.binary_path, rows[i].binary != NULL ? rows[i].binary : "");
        CHECK_UINT(report.initializers_size, r.initializers.size);
        opts.memory = NULL;
        if (opts.context_file_path != NULL) opts.context_file_path = at("o_ctx.onnx");
        CHECK_OK(generate(&opts, &f, &in_files, &error), error);
        CHECK(same_as_file(&r.model, opts.context_file_path != NULL ? "o_ctx.onnx" : "m_ctx.onnx"),
              "row %zu: the models differ", i);
        if (rows[i].binary != NULL)
            CHECK(same_as_file(&r.binary, rows[i].binary), "row %zu: the binaries differ", i);
        CHECK_UINT(r.binary.size, rows[i].binary != NULL ? report.binary_size : 0);
        if (opts.initializers_file_name != NULL)
            CHECK(r.initializers.size > 0 && same_as_file(&r.initializers, "w.data"),
                  "row %zu: the initializers differ", i);
        CHECK_UINT(report.compiled_nodes, in_files.compiled_nodes);
        end_results(&r);
        CHECK_INT(f.alive, 0);
    }
}

/* An io that has nothing: each call ends the test. */
static epctx_status never_canonical(void *user, const char *path, char *out, size_t capacity,
                                    epctx_error *error) {
    (void)user, (void)path, (void)out, (void)capacity, (void)error;
    abort();
}

static epctx_status never_create(void *user, const char *root_path, const char *name,
                                 epctx_io_file *file, epctx_error *error) {
    (void)user, (void)root_path, (void)name, (void)file, (void)error;
    abort();
}

/* A model from memory has no name; the open model is the result as well. */
TEST(no_files) {
    fake f = {0};
    epctx_backend backend = fake_backend(&f);
    epctx_io io = *epctx_io_files();
    epctx_open_opts open = {.io = &io};
    epctx_gen_memory nothing = {NULL, NULL, NULL};
    epctx_error error;
    bytes source_bytes = source(0);
    io.canonical_fn = never_canonical;
    io.create_fn = never_create;
    for (int embed = 0; embed < 2; embed++) {
        epctx_gen_report report;
        epctx_gen_opts opts = {.embed = embed == 1};
        epctx_model model;
        results r;
        bytes now;
        begin_results(&r);
        opts.memory = embed == 1 ? &nothing : &r.memory;
        CHECK_INT(
            epctx_model_open_memory(&model, source_bytes.data, source_bytes.size, &open, &error),
            EPCTX_OK);
        CHECK_OK(epctx_generate(&model, &backend, &opts, &report, &error), error);
        CHECK_STR(report.context_path, "model_ctx.onnx");
        CHECK_STR(report.binary_path, embed == 1 ? "" : "model_fake.bin");
        now = written(&model);
        if (embed == 0) CHECK_TRUE(bytes_equal(&now, r.model.data, r.model.size));
        CHECK_TRUE(bytes_contain(&now, embed == 1 ? "FAKE\001" : "model_fake.bin", 5));
        bytes_free(&now);
        epctx_model_close(&model);
        end_results(&r);
    }
    bytes_free(&source_bytes);
    CHECK_INT(f.alive, 0);
}

/* What is missing is named before anything is compiled; a failure leaves no result. */
TEST(refused) {
    static const struct {
        epctx_gen_opts opts;
        bool binary, initializers; /* there are buffers */
        fake_step fail;
        epctx_status status;
        const char *text;
    } rows[] = {
        {{.embed = false}, false, true, FAKE_NONE, EPCTX_ERR_ARG, "no buffer for the binary"},
        {{.initializers_file_name = "w.data"},
         true,
         false,
         FAKE_NONE,
         EPCTX_ERR_ARG,
         "no buffer for the initializers"},
        {{.binary = "../m.bin"}, true, true, FAKE_NONE, EPCTX_ERR_PATH, "m.bin"},
        {{.binary = "w", .initializers_file_name = "w"},
         true,
         true,
         FAKE_NONE,
         EPCTX_ERR_PATH,
         "would both be 'w'"},
        {{.embed = false}, true, true, FAKE_FINISH, EPCTX_ERR_BACKEND, "the fake fails as told"},
    };
    clear_root();
    make_source(0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        epctx_gen_opts opts = rows[i].opts;
        epctx_error error;
        results r;
        fake f = {.fail = rows[i].fail};
        begin_results(&r);
        CHECK_INT(epctx_buffer_append(&r.model, "old", 3), EPCTX_OK);
        if (!rows[i].binary) r.memory.binary = NULL;
        if (!rows[i].initializers) r.memory.initializers = NULL;
        opts.memory = &r.memory;
        CHECK_INT(generate(&opts, &f, NULL, &error), rows[i].status);
        CHECK_HAS(error.message, rows[i].text);
        CHECK_HAS(error.message, "m.onnx");
        CHECK_UINT(r.model.size, i < 2 ? 3 : 0); /* an argument is refused before all else */
        end_results(&r);
        CHECK_INT(f.alive, 0);
    }
    CHECK_STR(listing(), "m.onnx ");
}

TEST(not_for_a_group) {
    fake f = {0};
    epctx_workspace *workspace;
    epctx_gen_opts opts = {.embed = false};
    epctx_error error;
    results r;
    clear_root();
    make_source(0);
    begin_results(&r);
    CHECK_INT(epctx_workspace_open(&workspace, NULL, NULL), EPCTX_OK);
    opts.workspace = workspace;
    opts.memory = &r.memory;
    CHECK_INT(generate(&opts, &f, NULL, &error), EPCTX_ERR_ARG);
    CHECK_HAS(error.message, "a group writes files");
    epctx_workspace_close(workspace);
    end_results(&r);
}

/* Every allocation of the buffers fails once. */
TEST(buffers_fail) {
    bool done = false;
    clear_root();
    make_source(0);
    for (size_t limit = 0; !done && limit < 50; limit++) {
        counting c = {.fail_at = limit + 1, .once = true};
        epctx_allocator allocator = counting_allocator(&c);
        epctx_gen_opts opts = {.initializers_file_name = "w.data"};
        epctx_error error;
        epctx_status status;
        results r;
        fake f = {0};
        begin_results(&r);
        epctx_buffer_init(&r.model, &allocator);
        epctx_buffer_init(&r.binary, &allocator);
        epctx_buffer_init(&r.initializers, &allocator);
        opts.memory = &r.memory;
        status = generate(&opts, &f, NULL, &error);
        done = status == EPCTX_OK;
        if (!done) {
            CHECK_INT(status, EPCTX_ERR_NOMEM);
            CHECK_UINT(r.model.size + r.binary.size + r.initializers.size, 0);
        }
        end_results(&r);
        CHECK_INT(f.alive, 0);
    }
    CHECK_TRUE(done);
}

int main(int argc, char **argv) {
    if (!make_root()) return 1;
    RUN(same_bytes);
    RUN(no_files);
    RUN(refused);
    RUN(not_for_a_group);
    RUN(buffers_fail);
    remove_root();
    return test_end();
}
