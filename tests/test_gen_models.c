/* >>gen: models, states and places at the edge of what it meets: fields of wrong wire types and
 * removed ones, nodes nobody reads, sources elsewhere, writes that fail in the middle. */
#define _XOPEN_SOURCE 700
#include "fake.h"
#include "files.h"
#include "flaky.h"
#include "sessions.h"
#include "test.h"

static const int64_t two[] = {2, -1};
static const float numbers[2] = {1, 2};

static epctx_status generate_file(fake *f, const char *name, const epctx_gen_opts *opts,
                                  epctx_gen_report *report, const epctx_io *io,
                                  epctx_error *error) {
    epctx_backend backend = fake_backend(f);
    return generate_one(at(name), &backend, opts, report, io, error);
}

/* x -> Take -> y, which each case adds to. */
static bytes plain_graph(void) {
    bytes graph = {0};
    add_node(&graph, "Take", "n0", "x,w", "y");
    put_str(&graph, 2, "g");
    add_floats(&graph, "w", numbers, 2);
    add_x_and_y(&graph);
    return graph;
}

static void make_plain(const char *name) {
    bytes graph = plain_graph();
    save_model(name, &graph);
}

/* Names of the main graph's fields `number`, each with a blank behind it. */
static const char *names_in(const epctx_model *model, uint32_t number) {
    static char text[500];
    epctx_cursor it = epctx_view_fields(epctx_model_graph(model).view, number);
    epctx_field field;
    text[0] = '\0';
    while (epctx_next_field(&it, &field)) {
        epctx_str name = field.wire != EPCTX_WIRE_LEN ? epctx_str_of("?")
                         : number == 5                ? epctx_view_as_tensor(field.body).name
                                                      : epctx_view_as_value(field.body).name;
        strncat(text, name.data != NULL ? name.data : "", name.size);
        strcat(text, " ");
    }
    return text;
}

/* -- messages -- */

/* Fields of every number with a wire type that readers skip: they stay where they are. */
static void add_noise(bytes *message) {
    static const uint8_t eight[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    for (uint32_t number = 1; number < 26; number++) {
        put_tag(message, number, 1);
        bytes_add(message, eight, sizeof eight);
    }
}

static bytes noisy_model(void) {
    bytes graph = {0}, model = {0}, whole;
    add_noise(&graph);
    add_node(&graph, "Take", "n0", "x,w", "a");
    add_node(&graph, "Keep", "gone", "x", "nowhere");
    add_node(&graph, "Keep", "n1", "a,k", "y");
    put_str(&graph, 2, "g");
    add_floats(&graph, "w", numbers, 2);
    add_floats(&graph, "k", numbers, 2);
    add_floats(&graph, "gone", numbers, 2);
    add_value(&graph, GRAPH_INPUT, "x", EPCTX_ONNX_FLOAT, two);
    add_value(&graph, GRAPH_INPUT, "gone", EPCTX_ONNX_FLOAT, two);
    add_value(&graph, GRAPH_OUTPUT, "y", EPCTX_ONNX_FLOAT, two);
    add_value(&graph, GRAPH_VALUE, "a", EPCTX_ONNX_FLOAT, two);
    add_value(&graph, GRAPH_VALUE, "gone", EPCTX_ONNX_FLOAT, two);
    for (int i = 0; i < 2; i++) add_scale(&graph, i == 0 ? "a" : "nowhere", "k");
    add_noise(&model);
    add_metadata(&model, "epctx.build.Gone", "x");
    whole = new_model(&graph);
    bytes_add(&model, whole.data, whole.size);
    bytes_free(&whole);
    return model;
}

/* Removes everything called "gone" and what belongs to it, one field of each kind. */
static bool remove_gone(epctx_model *model) {
    static const uint32_t numbers_of[] = {1, 5, 11, 13, 14};
    epctx_error error;
    epctx_cursor it;
    epctx_field field;
    for (size_t i = 0; i < 5; i++) {
        bool found = false;
        it = epctx_view_fields(epctx_model_graph(model).view, numbers_of[i]);
        while (!found && epctx_next_field(&it, &field)) {
            epctx_str name;
            if (field.wire != EPCTX_WIRE_LEN) continue;
            name = numbers_of[i] == 1   ? epctx_view_as_node(field.body).name
                   : numbers_of[i] == 5 ? epctx_view_as_tensor(field.body).name
                                        : epctx_view_as_value(field.body).name;
            found = epctx_str_is(name, "gone") || epctx_str_is(name, "nowhere");
        }
        if (!found || epctx_edit_remove(model, field.body, &error) != EPCTX_OK) return false;
    }
    return epctx_edit_remove_metadata(model, epctx_str_of("epctx.build.Gone"), &error) == EPCTX_OK;
}

/* An edited model gives what its bytes give: removed fields are no fields, and fields of other wire
 * types are nobody's business. */
TEST(noisy_and_edited) {
    fake f = {0};
    epctx_backend backend = fake_backend(&f);
    epctx_gen_opts opts = {0};
    epctx_model model, again;
    epctx_error error;
    bytes b = noisy_model(), edited, first, second, bare_first, bare_second;
    clear_root();
    save_bytes("m.onnx", &b);
    opts.overwrite = true;
    CHECK_INT(epctx_model_open_file(&model, at("m.onnx"), NULL, &error), EPCTX_OK);
    CHECK_TRUE(remove_gone(&model));
    edited = written(&model);
    CHECK_OK(epctx_generate(&model, &backend, &opts, NULL, &error), error);
    first = written(&model);
    CHECK_STR(names_in(&model, 5), "? k ");
    CHECK_STR(names_in(&model, GRAPH_INPUT), "? x ");
    CHECK_STR(names_in(&model, GRAPH_VALUE), "? a ");
    CHECK_STR(names_in(&model, 14), "? a ");
    epctx_model_close(&model);
    CHECK_INT(epctx_model_open_memory(&again, edited.data, edited.size, NULL, &error), EPCTX_OK);
    opts.context_file_path = at("m_ctx.onnx");
    CHECK_OK(epctx_generate(&again, &backend, &opts, NULL, &error), error);
    second = written(&again);
    epctx_model_close(&again);
    /* All but the stamp, which names the file of the source and its hash. */
    CHECK_INT(epctx_model_open_memory(&model, first.data, first.size, NULL, &error), EPCTX_OK);
    CHECK_INT(epctx_model_open_memory(&again, second.data, second.size, NULL, &error), EPCTX_OK);
    CHECK_INT(epctx_edit_remove_metadata(&model, epctx_str_of("epctx.build.FakeEP"), &error),
              EPCTX_OK);
    CHECK_INT(epctx_edit_remove_metadata(&again, epctx_str_of("epctx.build.FakeEP"), &error),
              EPCTX_OK);
    bare_first = written(&model);
    bare_second = written(&again);
    CHECK_MEM(bare_first.data, bare_first.size, bare_second.data, bare_second.size);
    epctx_model_close(&model);
    epctx_model_close(&again);
    bytes_free(&edited);
    bytes_free(&first);
    bytes_free(&second);
    bytes_free(&bare_first);
    bytes_free(&bare_second);
}

/* A graph without nodes, copied: only what says that it is a copy is new. */
TEST(copy_of_nothing) {
    fake f = {0};
    epctx_gen_opts opts = {0};
    epctx_gen_report report;
    epctx_error error;
    bytes graph = {0}, source, copy;
    clear_root();
    put_str(&graph, 2, "g");
    add_value(&graph, GRAPH_INPUT, "x", EPCTX_ONNX_FLOAT, two);
    add_value(&graph, GRAPH_OUTPUT, "x", EPCTX_ONNX_FLOAT, two);
    save_model("m.onnx", &graph);
    opts.no_nodes = EPCTX_NO_NODES_COPY;
    CHECK_OK(generate_file(&f, "m.onnx", &opts, &report, NULL, &error), error);
    CHECK_UINT(report.partition_count, 0);
    CHECK_STR(listing(), "m.onnx m_ctx.onnx ");
    source = read_file(at("m.onnx"));
    copy = read_file(at("m_ctx.onnx"));
    CHECK_MEM(copy.data, copy.size, source.data, source.size);
    bytes_free(&source);
    bytes_free(&copy);
}

/* A constant node is taken, and nobody reads it: nothing was refused, nothing is compiled. */
TEST(constant_alone) {
    fake f = {0};
    epctx_error error;
    bytes graph = {0};
    clear_root();
    add_node(&graph, "Take", "n0", "w", "y");
    put_str(&graph, 2, "g");
    add_floats(&graph, "w", numbers, 2);
    add_value(&graph, GRAPH_OUTPUT, "w", EPCTX_ONNX_FLOAT, two);
    save_model("m.onnx", &graph);
    CHECK_INT(generate_file(&f, "m.onnx", NULL, NULL, NULL, &error), EPCTX_ERR_NO_NODES);
    CHECK_HAS(error.message, "FakeEP compiles none of the 1 nodes");
    CHECK_TRUE(strstr(error.message, "does not take") == NULL);
    CHECK_STR(listing(), "m.onnx ");
}

/* Nodes that nobody reads stay, with the annotations of what they make; so do types of initializers
 * that are read. */
TEST(unread) {
    fake f = {0};
    epctx_error error;
    epctx_model model;
    bytes graph = plain_graph();
    clear_root();
    add_node(&graph, "Keep", "unread", "x,k", "z");
    add_floats(&graph, "k", numbers, 2);
    add_floats(&graph, "s", numbers, 2);
    add_value(&graph, GRAPH_VALUE, "k", EPCTX_ONNX_FLOAT, two);
    add_scale(&graph, "z", "s");
    save_model("m.onnx", &graph);
    CHECK_OK(generate_file(&f, "m.onnx", NULL, NULL, NULL, &error), error);
    CHECK_INT(epctx_model_open_file(&model, at("m_ctx.onnx"), NULL, &error), EPCTX_OK);
    CHECK_STR(names_in(&model, 5), "k s ");
    CHECK_STR(names_in(&model, GRAPH_VALUE), "k ");
    CHECK_STR(names_in(&model, 14), "z ");
    {
        epctx_cursor it = epctx_view_graph_nodes(epctx_model_graph(&model));
        epctx_node_view node;
        CHECK_TRUE(epctx_next_node(&it, &node) && epctx_view_is_epnode(&node));
        CHECK_TRUE(epctx_next_node(&it, &node) && epctx_str_is(node.name, "unread"));
        CHECK_TRUE(!epctx_next_node(&it, &node));
    }
    epctx_model_close(&model);
}

/* Nodes in the wrong order: the partition stands where the last of its nodes stood. */
TEST(out_of_order) {
    fake f = {0};
    epctx_error error;
    epctx_model model;
    epctx_cursor it;
    epctx_node_view node;
    bytes graph = {0};
    clear_root();
    add_node(&graph, "Take", "second", "a,w", "b");
    add_node(&graph, "Keep", "apart", "x", "k");
    add_node(&graph, "Take", "first", "x,w", "a");
    add_node(&graph, "Keep", "last", "b,k", "y");
    put_str(&graph, 2, "g");
    add_floats(&graph, "w", numbers, 2);
    add_x_and_y(&graph);
    save_model("m.onnx", &graph);
    CHECK_OK(generate_file(&f, "m.onnx", NULL, NULL, NULL, &error), error);
    CHECK_STR(f.log, "x->b;");
    CHECK_INT(epctx_model_open_file(&model, at("m_ctx.onnx"), NULL, &error), EPCTX_OK);
    it = epctx_view_graph_nodes(epctx_model_graph(&model));
    CHECK_TRUE(epctx_next_node(&it, &node) && epctx_str_is(node.name, "apart"));
    CHECK_TRUE(epctx_next_node(&it, &node) && epctx_view_is_epnode(&node));
    CHECK_TRUE(epctx_next_node(&it, &node) && epctx_str_is(node.name, "last"));
    epctx_model_close(&model);
}

/* An initializer without elements has no bytes to move; a sparse one without values has no name. */
TEST(empty_initializers) {
    fake f = {0};
    epctx_gen_opts opts = {0};
    epctx_gen_report report;
    epctx_error error;
    epctx_model model;
    epctx_cursor it;
    epctx_tensor_view tensor;
    bytes graph = plain_graph(), empty = {0}, typed = {0}, data;
    clear_root();
    add_node(&graph, "Keep", "n1", "empty,full,typed", "z");
    put_int(&empty, 1, 0);
    put_int(&empty, 2, EPCTX_ONNX_FLOAT);
    put_str(&empty, 8, "empty");
    put_child(&graph, 5, &empty);
    add_floats(&graph, "full", numbers, 2);
    put_int(&typed, 1, 2); /* two in a field of their type: they go out as bytes */
    put_int(&typed, 2, EPCTX_ONNX_INT64);
    put_int(&typed, 7, 1);
    put_int(&typed, 7, 258);
    put_str(&typed, 8, "typed");
    put_child(&graph, 5, &typed);
    save_model("m.onnx", &graph);
    opts.initializers_file_name = "m.data";
    CHECK_OK(generate_file(&f, "m.onnx", &opts, &report, NULL, &error), error);
    CHECK_UINT(report.initializers_size, 64 + 16);
    data = read_file(at("m.data"));
    CHECK_MEM(data.data + 64, data.size - 64, "\1\0\0\0\0\0\0\0\2\1\0\0\0\0\0\0", 16);
    bytes_free(&data);
    CHECK_INT(epctx_model_open_file(&model, at("m_ctx.onnx"), NULL, &error), EPCTX_OK);
    it = epctx_view_graph_initializers(epctx_model_graph(&model));
    CHECK_TRUE(epctx_next_tensor(&it, &tensor) && epctx_str_is(tensor.name, "empty"));
    CHECK_TRUE(!tensor.external);
    CHECK_TRUE(epctx_next_tensor(&it, &tensor) && epctx_str_is(tensor.name, "full"));
    CHECK_TRUE(tensor.external);
    CHECK_TRUE(epctx_next_tensor(&it, &tensor) && epctx_str_is(tensor.name, "typed"));
    CHECK_TRUE(tensor.external);
    {
        epctx_cursor fields = epctx_view_fields(tensor.view, 7);
        epctx_field field;
        CHECK_TRUE(!epctx_next_field(&fields, &field));
    }
    epctx_model_close(&model);
}

TEST(sparse_without_values) {
    fake f = {0};
    epctx_error error;
    epctx_status status;
    bytes graph = plain_graph(), sparse = {0};
    clear_root();
    put_int(&sparse, 3, 9);
    put_child(&graph, 15, &sparse);
    save_model("m.onnx", &graph);
    status = generate_file(&f, "m.onnx", NULL, NULL, NULL, &error);
    if (status == EPCTX_OK) {
        epctx_model model;
        CHECK_INT(epctx_model_open_file(&model, at("m_ctx.onnx"), NULL, &error), EPCTX_OK);
        CHECK_STR(names_in(&model, 15), " ");
        epctx_model_close(&model);
    } else {
        CHECK_INT(status, EPCTX_ERR_GRAPH);
        CHECK_STR(listing(), "m.onnx ");
    }
}

/* What another known EP's node is not about goes. */
TEST(metadata_of_another_known_ep) {
    fake f = {0};
    epctx_error error;
    epctx_model model;
    epctx_str value;
    bytes graph = plain_graph(), b;
    clear_root();
    add_epnode(&graph, "o", "x", "z", 1, 1, "QNN", "p", "payload", 7);
    b = new_model(&graph);
    add_opset(&b, "com.microsoft", 1);
    add_metadata(&b, "ep_compatibility_info.OpenVINOExecutionProvider", "info");
    save_bytes("m.onnx", &b);
    CHECK_OK(generate_file(&f, "m.onnx", NULL, NULL, NULL, &error), error);
    CHECK_INT(epctx_model_open_file(&model, at("m_ctx.onnx"), NULL, &error), EPCTX_OK);
    CHECK_TRUE(!epctx_model_metadata(
        &model, epctx_str_of("ep_compatibility_info.OpenVINOExecutionProvider"), &value));
    epctx_model_close(&model);
}

/* -- names and places -- */

/* An empty name is no name. */
TEST(empty_binary_name) {
    fake f = {0};
    epctx_gen_opts opts = {0};
    epctx_gen_report report;
    epctx_error error;
    clear_root();
    make_plain("m.onnx");
    opts.binary = "";
    CHECK_OK(generate_file(&f, "m.onnx", &opts, &report, NULL, &error), error);
    CHECK_STR(report.binary_path, at("m_fake.bin"));
    CHECK_STR(listing(), "m.onnx m_ctx.onnx m_fake.bin ");
}

/* Two files of one name: the EPContext model elsewhere would meet the other one. */
TEST(foreign_binary_of_that_name) {
    fake f = {0};
    epctx_gen_opts opts = {0};
    epctx_error error;
    bytes graph = plain_graph(), b;
    char folder[400], inside[400], model[400];
    clear_root();
    snprintf(folder, sizeof folder, "%s", at("sub"));
    snprintf(inside, sizeof inside, "%s", at("sub/o.bin"));
    snprintf(model, sizeof model, "%s", at("sub/m_ctx.onnx"));
    CHECK_INT(mkdir(folder, 0777), 0);
    make_file(at("o.bin"), "one", 3);
    make_file(inside, "another", 7);
    add_epnode(&graph, "o", "x", "z", 1, 0, "QNN", "p", "o.bin", 5);
    b = new_model(&graph);
    add_opset(&b, "com.microsoft", 1);
    save_bytes("m.onnx", &b);
    opts.context_file_path = model;
    CHECK_INT(generate_file(&f, "m.onnx", &opts, NULL, NULL, &error), EPCTX_ERR_PATH);
    CHECK_HAS(error.message, "needs 'o.bin' beside the model, which another EP made");
    remove(inside);
    CHECK_INT(rmdir(folder), 0); /* nothing was written */
}

static epctx_status keeps_all(void *self, void *build, const epctx_build_opts *opts,
                              epctx_error *error) {
    (void)self, (void)build, (void)error;
    return opts->weightless == EPCTX_WEIGHTLESS_ALL ? EPCTX_OK : EPCTX_ERR_BACKEND;
}

/* One generation without weights; "?" and the reason when it fails, else onnx_model_filename. */
static const char *source_name(const char *model_path, const char *context, const epctx_io *io) {
    static char text[2000];
    fake f = {0};
    epctx_backend backend = fake_backend(&f);
    epctx_open_opts open = {0};
    epctx_gen_opts opts = {0};
    epctx_gen_report report;
    epctx_epnode node;
    epctx_model model;
    epctx_error error;
    bytes graph = plain_graph(), b = new_model(&graph);
    epctx_status status;
    backend.weightless = opts.weightless = EPCTX_WEIGHTLESS_ALL;
    backend.setup_fn = keeps_all;
    backend.weights_fn = fake_any_weights;
    opts.context_file_path = context;
    opts.overwrite = opts.embed = true;
    open.io = io;
    status = model_path != NULL ? epctx_model_open_file(&model, model_path, &open, &error)
                                : epctx_model_open_memory(&model, b.data, b.size, &open, &error);
    if (status == EPCTX_OK) status = epctx_generate(&model, &backend, &opts, &report, &error);
    if (status == EPCTX_OK) status = epctx_epnode_from_record(report.nodes, &node, &error);
    if (status == EPCTX_OK)
        snprintf(text, sizeof text, "%.*s", (int)node.onnx_model_filename.size,
                 node.onnx_model_filename.data != NULL ? node.onnx_model_filename.data : "");
    else
        snprintf(text, sizeof text, "?%s", error.message);
    epctx_model_close(&model);
    bytes_free(&b);
    return text;
}

/* A place that cannot be resolved is no reason to fail: then it is the file's name alone. */
/* Less than 0: the model, else this call for a folder. */
static int unresolved;

static epctx_status some_canonical(void *user, const char *path, char *out, size_t capacity,
                                   epctx_error *error) {
    const epctx_io *files = epctx_io_files();
    size_t size = strlen(path);
    (void)user;
    if (unresolved > 0 && path[size - 1] == '/' && --unresolved == 0)
        return epctx_fail(error, EPCTX_ERR_IO, "not now");
    if (unresolved < 0 && strcmp(path + size - 6, "m.onnx") == 0)
        return epctx_fail(error, EPCTX_ERR_IO, "not now");
    return files->canonical_fn(files->user, path, out, capacity, error);
}

/* Beside the EPContext model or below it the source has a relative path, elsewhere its name. */
TEST(source_names) {
    epctx_io io = *epctx_io_files();
    char near[400], under[400], beside[400], above[400];
    int alone = 0;
    clear_root();
    snprintf(near, sizeof near, "%s", at("ab"));
    snprintf(under, sizeof under, "%s", at("ab/m.onnx"));
    snprintf(beside, sizeof beside, "%s", at("a/m_ctx.onnx"));
    snprintf(above, sizeof above, "%s", at("m_ctx.onnx"));
    CHECK_INT(mkdir(near, 0777), 0);
    CHECK_INT(mkdir(at("a"), 0777), 0);
    make_plain("ab/m.onnx");
    make_plain("m.onnx");
    CHECK_STR(source_name(at("m.onnx"), above, NULL), "m.onnx");
    CHECK_STR(source_name(under, above, NULL), "ab/m.onnx");
    CHECK_STR(source_name(under, beside, NULL), "m.onnx"); /* "ab" is not below "a" */
    CHECK_STR(source_name(at("m.onnx"), beside, NULL), "m.onnx");
    CHECK_STR(source_name(NULL, above, NULL), "");
    io.canonical_fn = some_canonical;
    unresolved = -1;
    CHECK_STR(source_name(under, above, &io), "m.onnx");
    for (int call = 1; call < 10; call++) { /* other calls fail the whole, or are not reached */
        unresolved = call;
        alone += strcmp(source_name(under, above, &io), "m.onnx") == 0;
    }
    CHECK_TRUE(alone > 0);
    remove(beside);
    remove(under);
    CHECK_INT(rmdir(near), 0);
    CHECK_INT(rmdir(at("a")), 0);
}

/* -- what fails -- */

/* A file of initializers in three pieces of which the first fills the buffer: every call fails
 * once, and nothing of it stays. */
TEST(large_initializers) {
    static const size_t sizes[] = {16380, 3, 20000};
    bytes graph = plain_graph(), whole;
    epctx_gen_opts opts = {0};
    epctx_error error;
    int at_call;
    clear_root();
    add_node(&graph, "Keep", "n1", "i0,i1,i2", "z");
    for (int i = 0; i < 3; i++) {
        bytes tensor = {0};
        char name[24];
        uint8_t *data = (uint8_t *)calloc(1, sizes[i]);
        CHECK_TRUE(data != NULL);
        memset(data, 'a' + i, sizes[i]);
        snprintf(name, sizeof name, "i%d", i);
        put_int(&tensor, 1, (int64_t)sizes[i]);
        put_int(&tensor, 2, EPCTX_ONNX_UINT8);
        put_str(&tensor, 8, name);
        put_data(&tensor, 9, data, sizes[i]);
        put_child(&graph, 5, &tensor);
        free(data);
    }
    save_model("m.onnx", &graph);
    opts.initializers_file_name = "m.data";
    for (at_call = 1;; at_call++) {
        fake f = {0};
        flaky io = {0};
        epctx_io calls = flaky_io(&io);
        epctx_status status;
        io.fail_at = at_call;
        status = generate_file(&f, "m.onnx", &opts, NULL, &calls, &error);
        CHECK_INT(io.maps, 0);
        CHECK_INT(io.opens, 0);
        if (status == EPCTX_OK) break;
        CHECK_HAS(error.message, "the injected failure");
        CHECK_STR(listing(), "m.onnx ");
        CHECK_TRUE(at_call < 200);
    }
    CHECK_TRUE(at_call > 10);
    whole = read_file(at("m.data"));
    CHECK_UINT(whole.size, 16384 + 64 + 20000);
    CHECK_TRUE(whole.data[16379] == 'a' && whole.data[16380] == 0 && whole.data[16384] == 'b');
    CHECK_TRUE(whole.data[16387] == 0 && whole.data[16448] == 'c' &&
               whole.data[whole.size - 1] == 'c');
    bytes_free(&whole);
}

TEST(no_model) {
    fake f = {0};
    epctx_backend backend = fake_backend(&f);
    epctx_model model = {0};
    epctx_error error;
    CHECK_INT(epctx_generate(&model, &backend, NULL, NULL, &error), EPCTX_ERR_ARG);
    CHECK_HAS(error.message, "an open model with an io");
}

/* Without times the fast way compares hashes, as the slow one does. */
TEST(fast_without_times) {
    fake f = {0};
    flaky io = {0};
    epctx_io calls = flaky_io(&io);
    epctx_open_opts open = {0};
    epctx_fresh_opts opts = {0};
    epctx_model model;
    epctx_error error;
    bytes b;
    clear_root();
    make_plain("m.onnx");
    CHECK_INT(generate_file(&f, "m.onnx", NULL, NULL, NULL, &error), EPCTX_OK);
    open.io = &calls;
    opts.fast = true;
    CHECK_INT(epctx_model_open_file(&model, at("m_ctx.onnx"), &open, &error), EPCTX_OK);
    CHECK_INT(epctx_model_check_fresh(&model, "FakeEP", NULL, &opts, &error), EPCTX_FRESH);
    b = read_file(at("m.onnx"));
    b.data[b.size - 1] ^= 1;
    save_bytes("m.onnx", &b);
    CHECK_INT(epctx_model_check_fresh(&model, "FakeEP", NULL, &opts, &error), EPCTX_STALE);
    CHECK_HAS(error.message, "has changed since it was compiled");
    epctx_model_close(&model);
}

/* -- bytes that change while the backend compiles -- */

static struct {
    bytes *source;
    size_t at;
    uint8_t value;
    bool done;
} tamper;

static void tamper_now(void) {
    tamper.source->data[tamper.at] = tamper.value;
    tamper.done = true;
}

static epctx_status tamper_compile(void *self, void *build, const epctx_graph *graph,
                                   epctx_str name, uint64_t hash, epctx_error *error) {
    epctx_status status = fake_compile(self, build, graph, name, hash, error);
    tamper_now();
    return status;
}

/* Compiles a model from memory of exactly its size. */
static epctx_status generate_tampered(const bytes *whole, const epctx_backend *backend,
                                      const epctx_io *io, const char *initializers,
                                      epctx_error *error) {
    epctx_open_opts open = {0};
    epctx_gen_opts opts = {0};
    epctx_model model;
    epctx_status status;
    bytes source = {0};
    source.data = (uint8_t *)malloc(whole->size);
    if (source.data == NULL) abort();
    memcpy(source.data, whole->data, whole->size);
    tamper.source = &source;
    tamper.done = false;
    open.external_folder = root;
    open.io = io;
    opts.context_file_path = at("m_ctx.onnx");
    opts.initializers_file_name = initializers;
    opts.overwrite = true;
    remove(at("m_ctx.onnx"));
    status = epctx_model_open_memory(&model, source.data, whole->size, &open, error);
    if (status == EPCTX_OK) status = epctx_generate(&model, backend, &opts, NULL, error);
    epctx_model_close(&model);
    free(source.data);
    return status;
}

/* Writes some values over each byte in turn, when `backend` or `io` say so. No access leaves the
 * source (the sanitizers watch), and what is written is a file, or nothing is written. */
static const char *tamper_all(const bytes *whole, epctx_backend *backend, const epctx_io *io,
                              const char *initializers, size_t *written_count, size_t *refused) {
    static const uint8_t values[] = {0xff, 0x00, 0x08, 0x7a};
    fake *f = (fake *)backend->self;
    for (tamper.at = 0; tamper.at < whole->size; tamper.at++) {
        for (size_t k = 0; k < sizeof values; k++) {
            epctx_error error;
            epctx_status status;
            bool file;
            tamper.value = values[k];
            f->log[0] = '\0';
            status = generate_tampered(whole, backend, io, initializers, &error);
            file = access(at("m_ctx.onnx"), F_OK) == 0;
            if (!tamper.done) return "nobody wrote into the source";
            if (f->alive != 0) return "something of the backend is left";
            if (file != (status == EPCTX_OK)) return "the file does not follow the status";
            if ((error.message[0] == '\0') != (status == EPCTX_OK)) return "no message";
            *written_count += file;
            *refused += !file;
        }
    }
    return NULL;
}

/* Somebody writes into the source under the open model, in the middle of the generation. */
TEST(source_changes) {
    fake f = {0};
    epctx_backend backend = fake_backend(&f);
    epctx_io io = quick_io();
    bytes graph = plain_graph(), whole, sparse = {0}, tensor = {0};
    size_t written_count = 0, refused = 0;
    const char *wrong;
    backend.compile_fn = tamper_compile;
    add_node(&graph, "Keep", "n1", "y,k,e", "z");
    add_floats(&graph, "k", numbers, 2);
    add_external(&graph, "e", 2, "w.bin", "0", "8");
    put_int(&tensor, 1, 1);
    put_int(&tensor, 2, EPCTX_ONNX_FLOAT);
    put_str(&tensor, 8, "sp");
    put_data(&tensor, 9, "abcd", 4);
    put_child(&sparse, 1, &tensor);
    put_int(&tensor, 1, 1);
    put_int(&tensor, 2, EPCTX_ONNX_INT64);
    put_int(&tensor, 7, 2);
    put_child(&sparse, 2, &tensor);
    put_int(&sparse, 3, 9);
    put_child(&graph, 15, &sparse);
    whole = new_model(&graph);
    clear_root();
    make_file(at("w.bin"), numbers, sizeof numbers);
    wrong = tamper_all(&whole, &backend, &io, "m.data", &written_count, &refused);
    CHECK(wrong == NULL, "byte %zu as 0x%02x: %s", tamper.at, tamper.value, wrong);
    printf("note source_changes: %zu written, %zu refused\n", written_count, refused);
    CHECK_TRUE(written_count > 0 && refused > 0);
    bytes_free(&whole);
}

/* The same, when the file that a body's weights are in is opened: between the first look at their
 * tensor and its storing. */
static epctx_status tamper_map(void *user, const char *folder, const char *name, bool copy,
                               epctx_mapping *out, epctx_error *error) {
    const epctx_io *files = epctx_io_files();
    size_t size = strlen(name);
    (void)user;
    if (size >= 8 && strcmp(name + size - 8, "body.bin") == 0) tamper_now();
    return files->map_fn(files->user, folder, name, copy, out, error);
}

TEST(tensor_changes) {
    fake f = {0};
    epctx_backend backend = fake_backend(&f);
    epctx_io io = quick_io();
    bytes graph = plain_graph(), whole, body = {0};
    bytes node = new_node("Keep", "", "with a body", "y", "z");
    size_t written_count = 0, refused = 0;
    const char *wrong;
    io.map_fn = tamper_map;
    add_node(&body, "Keep", "inner", "wi", "bi");
    put_str(&body, 2, "body");
    add_external(&body, "wi", 2, "body.bin", "0", "8");
    add_value(&body, GRAPH_OUTPUT, "bi", EPCTX_ONNX_FLOAT, two);
    add_attr_graph(&node, "body", &body);
    put_child(&graph, 1, &node);
    whole = new_model(&graph);
    clear_root();
    make_file(at("body.bin"), numbers, sizeof numbers);
    wrong = tamper_all(&whole, &backend, &io, NULL, &written_count, &refused);
    CHECK(wrong == NULL, "byte %zu as 0x%02x: %s", tamper.at, tamper.value, wrong);
    CHECK_TRUE(written_count > 0);
    bytes_free(&whole);
}

/* Strings have no bytes that could stay outside: a node does not name them as weights. */
TEST(strings_stay) {
    fake f = {0};
    epctx_backend backend = fake_backend(&f);
    epctx_gen_opts opts = {0};
    epctx_gen_report report;
    epctx_model model;
    epctx_error error;
    bytes graph = {0}, text = {0};
    clear_root();
    add_node(&graph, "Take", "n0", "x,w,text", "y");
    put_str(&graph, 2, "g");
    put_int(&text, 1, 1);
    put_int(&text, 2, EPCTX_ONNX_STRING);
    put_str(&text, 6, "some text");
    put_str(&text, 8, "text");
    put_child(&graph, 5, &text);
    add_floats(&graph, "w", numbers, 2);
    add_x_and_y(&graph);
    save_model("m.onnx", &graph);
    backend.weightless = opts.weightless = EPCTX_WEIGHTLESS_ALL;
    backend.setup_fn = keeps_all;
    backend.weights_fn = fake_any_weights;
    CHECK_INT(epctx_model_open_file(&model, at("m.onnx"), NULL, &error), EPCTX_OK);
    CHECK_OK(epctx_generate(&model, &backend, &opts, &report, &error), error);
    CHECK_UINT(report.outside_count, 1);
    CHECK_UINT(report.outside_size, 8);
    epctx_model_close(&model);
}

/* Names of every length and of characters that are escaped: wherever the text of the build stamp
 * grows, the memory for it is missing once. */
TEST(stamp_without_memory) {
    static const char *const fillers[] = {"%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%", /* 40 times */
                                          "\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n"
                                          "\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n",
                                          "1.2.3"};
    epctx_io io = quick_io();
    size_t refused = 0;
    clear_root();
    make_file(at("w.bin"), numbers, sizeof numbers);
    for (int turn = 0; turn < 3 * 140; turn++) {
        const int length = 100 + turn / 3;
        bytes graph = plain_graph(), b;
        char name[300], context[400];
        size_t total = 0;
        add_node(&graph, "Keep", "n1", "y,k", "z");
        add_external(&graph, "k", 2, "w.bin", "0", "8");
        b = new_model(&graph);
        memset(name, 'n', (size_t)length);
        snprintf(name + length, sizeof name - (size_t)length, ".onnx");
        save_bytes(name, &b);
        snprintf(context, sizeof context, "%s", at("c.onnx"));
        for (size_t back = 0; back < 25 && (back == 0 || back <= total); back++) {
            counting c = {0};
            epctx_allocator allocator = counting_allocator(&c);
            fake f = {0};
            epctx_backend backend = fake_backend(&f);
            epctx_open_opts open = {0};
            epctx_gen_opts opts = {0};
            epctx_model model;
            epctx_error error;
            epctx_status status;
            size_t first, calls;
            backend.sdk_version = fillers[turn % 3];
            backend.hardware_architecture = fillers[(turn + 1) % 3];
            open.allocator = &allocator;
            open.io = &io;
            opts.context_file_path = context;
            opts.embed = true;
            CHECK_INT(epctx_model_open_file(&model, at(name), &open, &error), EPCTX_OK);
            first = c.calls;
            if (back > 0) c.fail_at = first + total - back;
            status = epctx_generate(&model, &backend, &opts, NULL, &error);
            calls = c.calls - first;
            epctx_model_close(&model);
            CHECK_UINT(c.alive, 0);
            CHECK_INT(f.alive, 0);
            if (back == 0) {
                CHECK_OK(status, error);
                CHECK_INT(remove(context), 0);
                total = calls;
                continue;
            }
            CHECK_INT(status, EPCTX_ERR_NOMEM);
            CHECK_HAS(error.message, "out of memory");
            CHECK_INT(access(context, F_OK), -1);
            refused++;
        }
        remove(at(name));
    }
    CHECK_TRUE(refused >= 3 * 140); /* more where every piece is an allocation of its own */
}

int main(int argc, char **argv) {
    if (!make_root()) {
        printf("FAIL test_gen_models: no folder to work in\n");
        return 1;
    }
    RUN(noisy_and_edited);
    RUN(copy_of_nothing);
    RUN(constant_alone);
    RUN(unread);
    RUN(out_of_order);
    RUN(empty_initializers);
    RUN(sparse_without_values);
    RUN(metadata_of_another_known_ep);
    RUN(empty_binary_name);
    RUN(foreign_binary_of_that_name);
    RUN(source_names);
    RUN(large_initializers);
    RUN(no_model);
    RUN(fast_without_times);
    RUN(source_changes);
    RUN(tensor_changes);
    RUN(strings_stay);
    RUN(stamp_without_memory);
    remove_root();
    return test_end();
}
