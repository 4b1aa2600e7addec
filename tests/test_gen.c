/* >>gen and >>load: a model becomes an EPContext model and is loaded again, with a backend that
 * only writes down what it is asked. */
#define _XOPEN_SOURCE 700
#include "examples/epctx/ops/merge.h"
#include "examples/epctx/ops/split.h"
#include "examples/epctx/ops/views.h"
#include "examples/epctx/ops/wrap.h"
#include "fake.h"
#include "flaky.h"
#include "files.h"
#include "sessions.h"
#include "test.h"

static epctx_status generate(fake *f, const epctx_gen_opts *opts, epctx_gen_report *report,
                             const epctx_io *io, epctx_error *error) {
    epctx_backend backend = fake_backend(f);
    epctx_open_opts open = {0};
    epctx_model model;
    epctx_status status;
    bytes before, after;
    open.io = io;
    f->log[0] = '\0';
    status = epctx_model_open_file(&model, at("m.onnx"), &open, error);
    if (status != EPCTX_OK) return status;
    before = written(&model);
    status = epctx_generate(&model, &backend, opts, report, error);
    after = written(&model);
    /* On failure the model is as before, on success it is what was written. */
    if (status != EPCTX_OK && !bytes_equal(&after, before.data, before.size)) status = EPCTX_OK;
    if (status == EPCTX_OK && report != NULL) {
        bytes file = read_file(report->context_path);
        if (!bytes_equal(&after, file.data, file.size)) status = EPCTX_ERR_BACKEND;
        bytes_free(&file);
    }
    epctx_model_close(&model);
    bytes_free(&before);
    bytes_free(&after);
    return status;
}

static epctx_status load(fake *f, const char *path, epctx_error *error) {
    epctx_backend backend = fake_backend(f);
    return load_one(NULL, path, &backend, NULL, NULL, NULL, error);
}

/* "name(op):in,in->out,out;" for the nodes of the main graph. */
static const char *nodes_of(const epctx_model *model) {
    static char text[2000];
    epctx_cursor it = epctx_view_graph_nodes(epctx_model_graph(model)), names;
    epctx_node_view node;
    epctx_str s;
    text[0] = '\0';
    while (epctx_next_node(&it, &node)) {
        strncat(text, node.op_type.data, node.op_type.size);
        strcat(text, ":");
        names = epctx_view_node_inputs(&node);
        while (epctx_next_str(&names, &s)) {
            strncat(text, s.data, s.size);
            strcat(text, ",");
        }
        strcat(text, "->");
        names = epctx_view_node_outputs(&node);
        while (epctx_next_str(&names, &s)) {
            strncat(text, s.data, s.size);
            strcat(text, ",");
        }
        strcat(text, ";");
    }
    return text;
}

TEST(two_partitions) {
    fake f = {0};
    epctx_gen_report report;
    epctx_error error;
    epctx_model model;
    epctx_epnode ep[2];
    epctx_node_view node;
    epctx_tensor_view tensor;
    epctx_cursor it;
    size_t count = 0;
    bytes file;
    clear_root();
    make_source(0);
    CHECK_OK(generate(&f, NULL, &report, NULL, &error), error);
    CHECK_STR(f.log, "x,x2->b,b2;c,b2->y;");
    CHECK_STR(listing(), "m.onnx m_ctx.onnx m_fake.bin ");
    CHECK_STR(report.context_path, at("m_ctx.onnx"));
    CHECK_STR(report.binary_path, at("m_fake.bin"));
    CHECK_UINT(report.partition_count, 2);
    CHECK_UINT(report.compiled_nodes, 3);
    CHECK_UINT(report.cpu_nodes, 1);
    file = read_file(report.binary_path);
    CHECK_UINT(report.binary_size, file.size);
    bytes_free(&file);
    CHECK_INT(epctx_model_open_file(&model, report.context_path, NULL, NULL), EPCTX_OK);
    CHECK_STR(nodes_of(&model), "EPContext:x,x2,->b,b2,;Keep:b,k,->c,;EPContext:c,b2,->y,;");
    it = epctx_view_graph_nodes(epctx_model_graph(&model));
    while (epctx_next_node(&it, &node))
        if (epctx_view_is_epnode(&node))
            CHECK_INT(epctx_view_read_epnode(&node, &ep[count++], &error), EPCTX_OK);
    CHECK_UINT(count, 2);
    CHECK_INT(ep[0].main_context, 1);
    CHECK_INT(ep[1].main_context, 0);
    CHECK_INT(ep[0].embed_mode, 0);
    CHECK_TRUE(epctx_str_is(ep[0].ep_cache_context, "m_fake.bin"));
    CHECK_TRUE((ep[1].present & 1u << EPCTX_EPNODE_EP_CACHE_CONTEXT) == 0);
    /* The option defaults to 0, the attribute to 1: it is always written. */
    CHECK_TRUE((ep[0].present & 1u << EPCTX_EPNODE_EMBED_MODE) != 0);
    CHECK_TRUE(epctx_str_is(ep[0].source, "FakeEP") && epctx_str_is(ep[1].source, "FakeEP"));
    CHECK_TRUE(epctx_str_is(ep[0].ep_sdk_version, "1.0"));
    CHECK_TRUE(epctx_str_is(ep[0].hardware_architecture, "paper"));
    CHECK_TRUE(epctx_str_eq(ep[0].partition_name, ep[0].name));
    CHECK_TRUE(!epctx_str_eq(ep[0].name, ep[1].name));
    CHECK_TRUE(epctx_notes_hash(ep[0].notes) != 0);
    CHECK_TRUE(epctx_notes_hash(ep[0].notes) != epctx_notes_hash(ep[1].notes));
    CHECK_INT(epctx_model_opset(&model, epctx_str_of("com.microsoft")), 1);
    /* Only the weight that the remaining node reads is left. */
    it = epctx_view_graph_initializers(epctx_model_graph(&model));
    CHECK_TRUE(epctx_next_tensor(&it, &tensor) && epctx_str_is(tensor.name, "k"));
    CHECK_TRUE(!epctx_next_tensor(&it, &tensor));
    epctx_model_close(&model);
    file = read_file(at("m_ctx.onnx"));
    CHECK_TRUE(bytes_contain(&file, "unknown in the graph", 20));
    CHECK_TRUE(bytes_contain(&file, "my_function", 11));
    CHECK_TRUE(bytes_contain(&file, "doc of the model", 16));
    bytes_free(&file);
    CHECK_INT(f.alive, 0);
}

TEST(loads_again) {
    fake f = {0};
    epctx_backend backend;
    epctx_model model;
    epctx_loaded loaded;
    epctx_error error;
    clear_root();
    make_source(0);
    CHECK_INT(generate(&f, NULL, NULL, NULL, &error), EPCTX_OK);
    backend = fake_backend(&f);
    CHECK_INT(epctx_model_open_file(&model, at("m_ctx.onnx"), NULL, NULL), EPCTX_OK);
    CHECK_OK(epctx_load(&loaded, &model, &backend, NULL, &error), error);
    CHECK_UINT(loaded.bound_count, 2);
    CHECK_UINT(loaded.other_nodes, 1);
    CHECK_INT(f.loads, 1);    /* one file, one context */
    CHECK_INT(f.compiled, 2); /* those of the generation: loading compiles nothing */
    CHECK_UINT(loaded.bound[0].info.input_count, 2);
    CHECK_TRUE(epctx_str_is(loaded.bound[0].info.inputs[1].name, "x2"));
    CHECK_TRUE(epctx_str_is(loaded.bound[1].info.inputs[0].name, "c"));
    CHECK_TRUE(epctx_str_is(loaded.bound[1].info.outputs[0].name, "y"));
    CHECK_INT(f.alive, 1);
    epctx_unload(&loaded);
    epctx_unload(&loaded);
    CHECK_INT(f.alive, 0);
    epctx_model_close(&model);
}

TEST(embedded) {
    fake f = {0};
    epctx_gen_opts opts = {0};
    epctx_gen_report report;
    epctx_error error;
    epctx_model model;
    epctx_node_view node;
    epctx_epnode ep;
    epctx_cursor it;
    bytes b;
    opts.embed = true;
    clear_root();
    make_source(0);
    CHECK_OK(generate(&f, &opts, &report, NULL, &error), error);
    CHECK_STR(listing(), "m.onnx m_ctx.onnx ");
    CHECK_STR(report.binary_path, "");
    /* Also from memory, where there is no folder. */
    b = read_file(at("m_ctx.onnx"));
    CHECK_INT(epctx_model_open_memory(&model, b.data, b.size, NULL, NULL), EPCTX_OK);
    it = epctx_view_graph_nodes(epctx_model_graph(&model));
    CHECK_TRUE(epctx_next_node(&it, &node));
    CHECK_INT(epctx_view_read_epnode(&node, &ep, NULL), EPCTX_OK);
    CHECK_INT(ep.embed_mode, 1);
    CHECK_UINT(ep.ep_cache_context.size, report.binary_size);
    CHECK_TRUE(memcmp(ep.ep_cache_context.data, "FAKE\001\n2\n", 8) == 0);
    {
        epctx_backend backend = fake_backend(&f);
        epctx_loaded loaded;
        CHECK_OK(epctx_load(&loaded, &model, &backend, NULL, &error), error);
        epctx_unload(&loaded);
    }
    epctx_model_close(&model);
    bytes_free(&b);
    CHECK_INT(f.alive, 0);
}

/* The model after epctx_generate can be loaded as it is. */
TEST(load_after_generate) {
    for (int embed = 0; embed < 2; embed++) {
        fake f = {0};
        epctx_backend backend = fake_backend(&f);
        epctx_gen_opts opts = {0};
        epctx_model model;
        epctx_loaded loaded;
        epctx_error error;
        opts.embed = embed;
        clear_root();
        make_source(0);
        CHECK_INT(epctx_model_open_file(&model, at("m.onnx"), NULL, NULL), EPCTX_OK);
        CHECK_OK(epctx_generate(&model, &backend, &opts, NULL, &error), error);
        CHECK_OK(epctx_load(&loaded, &model, &backend, NULL, &error), error);
        CHECK_UINT(loaded.bound_count, 2);
        epctx_unload(&loaded);
        epctx_model_close(&model);
        CHECK_INT(f.alive, 0);
    }
}

TEST(names_and_prefix) {
    fake f = {0};
    epctx_gen_opts opts = {0};
    epctx_gen_report report;
    epctx_error error;
    epctx_model model;
    epctx_node_view node;
    epctx_cursor it;
    bytes binary;
    opts.name_prefix = "modelA_";
    opts.context_file_path = at("other_ctx.onnx");
    clear_root();
    make_source(0);
    CHECK_OK(generate(&f, &opts, &report, NULL, &error), error);
    CHECK_STR(listing(), "m.onnx other_ctx.onnx other_fake.bin ");
    CHECK_INT(epctx_model_open_file(&model, at("other_ctx.onnx"), NULL, NULL), EPCTX_OK);
    it = epctx_view_graph_nodes(epctx_model_graph(&model));
    CHECK_TRUE(epctx_next_node(&it, &node));
    CHECK_TRUE(node.name.size > 7 && memcmp(node.name.data, "modelA_", 7) == 0);
    /* The graph in the binary bears the same name. */
    binary = read_file(at("other_fake.bin"));
    CHECK_TRUE(bytes_contain(&binary, node.name.data, node.name.size));
    bytes_free(&binary);
    epctx_model_close(&model);
    CHECK_INT(load(&f, at("other_ctx.onnx"), &error), EPCTX_OK);
}

/* Whatever stands in the way of the outputs is found before anything is compiled. */
TEST(preflight) {
    fake f = {0};
    epctx_gen_opts opts = {0};
    epctx_error error;
    clear_root();
    make_source(0);
    make_file(at("m_ctx.onnx"), "old", 3);
    CHECK_INT(generate(&f, &opts, NULL, NULL, &error), EPCTX_ERR_EXISTS);
    CHECK_HAS(error.message, "m_ctx.onnx");
    remove(at("m_ctx.onnx"));
    make_file(at("m_fake.bin"), "old", 3);
    CHECK_INT(generate(&f, &opts, NULL, NULL, &error), EPCTX_ERR_EXISTS);
    CHECK_HAS(error.message, "m_fake.bin");
    CHECK_STR(listing(), "m.onnx m_fake.bin ");
    opts.embed = true; /* then the binary is in nobody's way */
    CHECK_OK(generate(&f, &opts, NULL, NULL, &error), error);
    f.compiled = 0;
    opts.embed = false;
    opts.context_file_path = at("no/such/folder/m_ctx.onnx");
    CHECK_INT(generate(&f, &opts, NULL, NULL, &error), EPCTX_ERR_NOT_FOUND);
    CHECK_HAS(error.message, "no/such/folder");
    opts.context_file_path = root; /* a folder, and no extension */
    CHECK_INT(generate(&f, &opts, NULL, NULL, &error), EPCTX_ERR_ARG);
    CHECK_HAS(error.message, "should not point to a folder");
    opts.context_file_path = at("m_ctx.onnx");
    opts.initializers_file_name = "folder/w.data";
    CHECK_INT(generate(&f, &opts, NULL, NULL, &error), EPCTX_ERR_ARG);
    CHECK_HAS(error.message, "has a folder");
    opts.initializers_file_name = NULL;
    opts.overwrite = true;
    opts.context_file_path = at("m.onnx");
    CHECK_INT(generate(&f, &opts, NULL, NULL, &error), EPCTX_ERR_PATH);
    CHECK_HAS(error.message, "m.onnx");
    opts.context_file_path = NULL;
    remove(at("m_ctx.onnx"));
    CHECK_TRUE(mkdir(at("m_ctx.onnx"), 0777) == 0);
    CHECK_INT(generate(&f, &opts, NULL, NULL, &error), EPCTX_ERR_PATH);
    rmdir(at("m_ctx.onnx"));
    /* Another name for the source is the source. */
    CHECK_TRUE(symlink("m.onnx", at("link.onnx")) == 0);
    opts.context_file_path = at("link.onnx");
    CHECK_INT(generate(&f, &opts, NULL, NULL, &error), EPCTX_ERR_PATH);
    CHECK_HAS(error.message, "belongs to the source model");
    CHECK_INT(f.compiled, 0);
    CHECK_STR(listing(), "link.onnx m.onnx m_fake.bin ");
}

/* ep.context_file_path that is a folder: EPs whose profile says so mean it, if it is there. */
TEST(folder_as_path) {
    static const struct {
        const char *path, *out; /* what is made then; NULL: refused */
        epctx_status status[2]; /* of an EP that does not look, and of one that does */
        const char *said[2];
    } rows[] = {
        {"out", "out/m_ctx.onnx", {EPCTX_ERR_ARG, EPCTX_OK}, {"not point to a folder", ""}},
        {"out/", "out/m_ctx.onnx", {EPCTX_ERR_ARG, EPCTX_OK}, {"not point to a folder", ""}},
        {"out/.", "out/m_ctx.onnx", {EPCTX_ERR_ARG, EPCTX_OK}, {"not point to a folder", ""}},
        {"a.b", "a.b/m_ctx.onnx", {EPCTX_ERR_PATH, EPCTX_OK}, {"a.b", ""}},
        {"none", NULL, {EPCTX_ERR_ARG, EPCTX_ERR_ARG}, {"to a folder", "to a folder"}},
        {"none/", NULL, {EPCTX_ERR_ARG, EPCTX_ERR_ARG}, {"to a folder", "to a folder"}},
        {"file", NULL, {EPCTX_ERR_ARG, EPCTX_ERR_ARG}, {"to a folder", "to a folder"}},
        {"file.onnx", NULL, {EPCTX_ERR_EXISTS, EPCTX_ERR_EXISTS}, {"file.onnx", "file.onnx"}},
        {"locked", "locked/m_ctx.onnx", {EPCTX_ERR_ARG, EPCTX_ERR_IO}, {"to a folder", "locked"}},
    };
    const char *const names[] = {"m_ctx.onnx", "m_fake.bin"};
    for (size_t i = 0; i < 2 * (sizeof rows / sizeof rows[0]); i++) {
        const size_t row = i / 2, looks = i % 2;
        /* root may write into any folder */
        const bool root_may = strcmp(rows[row].path, "locked") == 0 && geteuid() == 0 && looks;
        const epctx_status expected = root_may ? EPCTX_OK : rows[row].status[looks];
        fake f = {0};
        epctx_backend backend = fake_backend(&f);
        epctx_gen_opts opts = {0};
        epctx_model model;
        epctx_error error;
        epctx_status status;
        char given[4096], made[4096];
        clear_root();
        make_source(0);
        make_file(at("file"), "old", 3);
        make_file(at("file.onnx"), "old", 3);
        CHECK_TRUE(mkdir(at("out"), 0777) == 0 && mkdir(at("a.b"), 0777) == 0 &&
                   mkdir(at("locked"), 0555) == 0);
        if (looks) backend.source = "TensorrtExecutionProvider";
        snprintf(given, sizeof given, "%s", at(rows[row].path));
        snprintf(made, sizeof made, "%s", rows[row].out ? at(rows[row].out) : "");
        opts.context_file_path = given;
        CHECK_INT(epctx_model_open_file(&model, at("m.onnx"), NULL, NULL), EPCTX_OK);
        status = epctx_generate(&model, &backend, &opts, NULL, &error);
        epctx_model_close(&model);
        CHECK(status == expected, "path '%s', looks %zu: expected %d, found %d: %s", rows[row].path,
              looks, (int)expected, (int)status, error.message);
        CHECK(status == EPCTX_OK || strstr(error.message, rows[row].said[looks]) != NULL,
              "path '%s', looks %zu: %s", rows[row].path, looks, error.message);
        CHECK((access(made, F_OK) == 0) == (expected == EPCTX_OK), "path '%s', looks %zu: %s",
              rows[row].path, looks, made);
        CHECK_INT(f.alive, 0);
        for (size_t k = 0; k < 6; k++) {
            char file[64];
            static const char *const folders[] = {"out", "a.b", "locked"};
            snprintf(file, sizeof file, "%s/%s", folders[k / 2], names[k % 2]);
            remove(at(file));
        }
        CHECK_TRUE(rmdir(at("out")) == 0 && rmdir(at("a.b")) == 0 && rmdir(at("locked")) == 0);
    }
}

/* The binary, too, must not replace the model that is being compiled. */
TEST(binary_over_source) {
    fake f = {0};
    epctx_gen_opts opts = {0};
    epctx_error error;
    epctx_model model;
    epctx_backend backend = fake_backend(&f);
    bytes b = source(0), kept;
    clear_root();
    make_file(at("m_fake.bin"), b.data, b.size);
    opts.overwrite = true;
    opts.context_file_path = at("m_ctx.onnx");
    CHECK_INT(epctx_model_open_file(&model, at("m_fake.bin"), NULL, NULL), EPCTX_OK);
    CHECK_INT(epctx_generate(&model, &backend, &opts, NULL, &error), EPCTX_ERR_PATH);
    CHECK_HAS(error.message, "m_fake.bin");
    epctx_model_close(&model);
    kept = read_file(at("m_fake.bin"));
    CHECK_MEM(kept.data, kept.size, b.data, b.size);
    bytes_free(&b);
    bytes_free(&kept);
}

TEST(overwrite) {
    fake f = {0};
    epctx_gen_opts opts = {0};
    epctx_error error;
    bytes first, second;
    opts.overwrite = true;
    clear_root();
    make_source(0);
    CHECK_INT(generate(&f, &opts, NULL, NULL, &error), EPCTX_OK);
    first = read_file(at("m_ctx.onnx"));
    make_source(5);
    CHECK_INT(generate(&f, &opts, NULL, NULL, &error), EPCTX_OK);
    second = read_file(at("m_ctx.onnx"));
    CHECK_TRUE(!bytes_equal(&second, first.data, first.size));
    CHECK_STR(listing(), "m.onnx m_ctx.onnx m_fake.bin ");
    CHECK_INT(load(&f, at("m_ctx.onnx"), &error), EPCTX_OK);
    /* The same input gives the same bytes. */
    bytes_free(&first);
    CHECK_INT(generate(&f, &opts, NULL, NULL, &error), EPCTX_OK);
    first = read_file(at("m_ctx.onnx"));
    CHECK_TRUE(bytes_equal(&second, first.data, first.size));
    bytes_free(&first);
    bytes_free(&second);
}

/* The context model's name is a link: what it points to is replaced and the link stays, when the
 * caller named it. A name that nobody chose is not written through a link. */
TEST(linked_output) {
    fake f = {0};
    epctx_gen_opts opts = {0};
    epctx_error error;
    struct stat info;
    bytes old, fresh;
    opts.overwrite = true;
    clear_root();
    make_source(0);
    CHECK_INT(generate(&f, &opts, NULL, NULL, &error), EPCTX_OK);
    CHECK_TRUE(rename(at("m_ctx.onnx"), at("real.onnx")) == 0);
    CHECK_TRUE(symlink("real.onnx", at("m_ctx.onnx")) == 0);
    old = read_file(at("real.onnx"));
    make_source(5);
    CHECK_INT(generate(&f, &opts, NULL, NULL, &error), EPCTX_ERR_PATH);
    CHECK_HAS(error.message, "m_ctx.onnx: is a link");
    opts.context_file_path = at("m_ctx.onnx");
    CHECK_OK(generate(&f, &opts, NULL, NULL, &error), error);
    CHECK_STR(listing(), "m.onnx m_ctx.onnx m_fake.bin real.onnx ");
    CHECK_TRUE(lstat(at("m_ctx.onnx"), &info) == 0 && S_ISLNK(info.st_mode));
    fresh = read_file(at("real.onnx"));
    CHECK_TRUE(!bytes_equal(&fresh, old.data, old.size));
    CHECK_INT(load(&f, at("m_ctx.onnx"), &error), EPCTX_OK);
    bytes_free(&old);
    bytes_free(&fresh);
}

/* A node that an edit put in and that has to move behind a partition keeps what it holds. */
TEST(new_node_moves) {
    const epctx_str a = epctx_str_of("a"), c = epctx_str_of("c");
    fake f = {0};
    epctx_backend backend = fake_backend(&f);
    bytes graph = {0}, b, before, after;
    epctx_model model;
    epctx_node node = {0};
    epctx_error error;
    epctx_cursor it;
    epctx_node_view view;
    clear_root();
    add_node(&graph, "Take", "n0", "x", "a");
    add_node(&graph, "Keep", "n1", "x", "b"); /* waits for nothing: stands in front */
    add_node(&graph, "Take", "n3", "a,x", "d");
    add_node(&graph, "Keep", "n4", "b,c,d", "y");
    add_x_and_y(&graph);
    b = new_model(&graph);
    make_file(at("m.onnx"), b.data, b.size);
    CHECK_INT(epctx_model_open_file(&model, at("m.onnx"), NULL, NULL), EPCTX_OK);
    it = epctx_view_graph_nodes(epctx_model_graph(&model));
    CHECK_TRUE(epctx_next_node(&it, &view));
    node.name = epctx_str_of("n2");
    node.op_type = epctx_str_of("Keep");
    node.inputs = &a;
    node.input_count = 1;
    node.outputs = &c;
    node.output_count = 1;
    CHECK_INT(
        epctx_edit_put_node(&model, epctx_model_graph(&model).view, &node, view.view, NULL, &error),
        EPCTX_OK);
    before = written(&model);
    CHECK_OK(epctx_generate(&model, &backend, NULL, NULL, &error), error);
    CHECK_STR(nodes_of(&model), "Keep:x,->b,;EPContext:x,->a,d,;Keep:a,->c,;Keep:b,c,d,->y,;");
    epctx_edit_undo(&model, 1);
    after = written(&model);
    CHECK_MEM(after.data, after.size, before.data, before.size);
    epctx_model_close(&model);
    bytes_free(&b);
    bytes_free(&before);
    bytes_free(&after);
}

TEST(nothing_to_compile) {
    fake f = {0};
    epctx_gen_opts opts = {0};
    epctx_error error;
    f.takes = "Nothing";
    clear_root();
    make_source(0);
    CHECK_INT(generate(&f, NULL, NULL, NULL, &error), EPCTX_ERR_NO_NODES);
    CHECK_STR(listing(), "m.onnx ");
    f.takes = "Take";
    opts.require_all = true;
    CHECK_TRUE(generate(&f, &opts, NULL, NULL, &error) != EPCTX_OK);
    CHECK_HAS(error.message, "'n2'");
    CHECK_HAS(error.message, "Keep");
    CHECK_STR(listing(), "m.onnx ");
    f.takes = "Take,Keep";
    CHECK_OK(generate(&f, &opts, NULL, NULL, &error), error);
    CHECK_STR(f.log, "x,x2->y;");
}

/* Nodes whose results nobody needs make no partition, which would have no output: they go. */
TEST(unread_results) {
    static const struct {
        const char *label, *nodes; /* TYPE:IN,IN->OUT of the source */
        const char *log, *made;
    } cases[] = {
        {"beside a live one", "Take:x->y;Take:x->d", "x->y;", "EPContext:x,->y,;"},
        {"behind a live one", "Take:x->y;Take:y->d", "x->y;", "EPContext:x,->y,;"},
        {"a chain", "Take:x->d;Take:d->e;Take:x->y", "x->y;", "EPContext:x,->y,;"},
        {"read by what stays", "Take:x->d;Keep:d->e;Take:x->y", "x->d,y;",
         "EPContext:x,->d,y,;Keep:d,->e,;"},
        {"what stays, unread", "Keep:x->e;Take:x->y", "x->y;", "Keep:x,->e,;EPContext:x,->y,;"},
        {"constants", "Take:->c;Take:c->d;Take:x->y", "x->y;", "EPContext:x,->y,;"},
        {"nothing else", "Take:x->d;Keep:x->y", NULL, NULL},
    };
    static const int64_t dims[] = {4, -1};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fake f = {0};
        epctx_error error;
        epctx_model model;
        bytes graph = {0}, file;
        char text[200], *rest = NULL;
        clear_root();
        strcpy(text, cases[i].nodes);
        for (char *node = strtok_r(text, ";", &rest); node; node = strtok_r(NULL, ";", &rest)) {
            char *inputs = strchr(node, ':'), *outputs = strstr(node, "->");
            *inputs++ = *outputs = '\0';
            add_node(&graph, node, outputs + 2, inputs, outputs + 2);
        }
        add_value(&graph, GRAPH_INPUT, "x", EPCTX_ONNX_FLOAT, dims);
        add_value(&graph, GRAPH_OUTPUT, "y", EPCTX_ONNX_FLOAT, dims);
        file = new_model(&graph);
        make_file(at("m.onnx"), (const char *)file.data, file.size);
        bytes_free(&file);
        if (cases[i].made == NULL) {
            CHECK_INT(generate(&f, NULL, NULL, NULL, &error), EPCTX_ERR_NO_NODES);
            CHECK_STR(listing(), "m.onnx ");
            continue;
        }
        CHECK(generate(&f, NULL, NULL, NULL, &error) == EPCTX_OK, "%s: %s", cases[i].label,
              error.message);
        CHECK(strcmp(f.log, cases[i].log) == 0, "%s: compiled %s, expected %s", cases[i].label,
              f.log, cases[i].log);
        CHECK_INT(epctx_model_open_file(&model, at("m_ctx.onnx"), NULL, NULL), EPCTX_OK);
        CHECK(strcmp(nodes_of(&model), cases[i].made) == 0, "%s: made %s, expected %s",
              cases[i].label, nodes_of(&model), cases[i].made);
        epctx_model_close(&model);
    }
}

TEST(compiled_already) {
    fake f = {0};
    epctx_error error;
    epctx_model model;
    epctx_backend backend = fake_backend(&f);
    f.takes = "Take,Keep";
    clear_root();
    make_source(0);
    CHECK_INT(generate(&f, NULL, NULL, NULL, &error), EPCTX_OK);
    CHECK_INT(epctx_model_open_file(&model, at("m_ctx.onnx"), NULL, NULL), EPCTX_OK);
    CHECK_INT(epctx_generate(&model, &backend, NULL, NULL, &error), EPCTX_ERR_GRAPH);
    CHECK_HAS(error.message, "compiled already");
    CHECK_HAS(error.message, "m_ctx.onnx");
    epctx_model_close(&model);
}

/* A copy that protobuf cannot read: a field of 2 GiB, which is a hole in the file. */
TEST(two_gigabytes) {
    static const uint8_t field[] = {0xa2, 0x06, 0x80, 0x80, 0x80, 0x80, 0x08}; /* 100: 2^31 bytes */
    fake f = {0};
    epctx_backend backend = fake_backend(&f);
    epctx_gen_opts opts = {0};
    epctx_model model;
    epctx_error error;
    epctx_status status;
    bytes b = source(0);
    opts.no_nodes = EPCTX_NO_NODES_COPY;
    f.takes = "Nothing";
    bytes_add(&b, field, sizeof field);
    clear_root();
    make_file(at("m.onnx"), b.data, b.size);
    CHECK_INT(truncate(at("m.onnx"), (off_t)b.size + INT64_C(0x80000000)), 0);
    status = epctx_model_open_file(&model, at("m.onnx"), NULL, &error);
    if (status == EPCTX_OK) status = epctx_generate(&model, &backend, &opts, NULL, &error);
    epctx_model_close(&model);
    CHECK_INT(status, EPCTX_ERR_LIMIT);
    CHECK_HAS(error.message, sizeof(size_t) < 8 ? "is larger than the address space"
                                                : "give initializers a file of their own");
    CHECK_TRUE(access(at("m_ctx.onnx"), F_OK) != 0);
    CHECK_INT(f.alive, 0);
    bytes_free(&b);
}

/* A model that can be read, but not edited. */
TEST(singular_field_twice) {
    fake f = {0};
    bytes b = source(0);
    epctx_error error;
    put_data(&b, 7, "", 0);
    clear_root();
    save_bytes("m.onnx", &b);
    CHECK_INT(generate(&f, NULL, NULL, NULL, &error), EPCTX_ERR_GRAPH);
    CHECK_HAS(error.message, "the model is read-only");
}

TEST(failing_backend) {
    static const fake_step steps[] = {FAKE_CAPABILITY, FAKE_BEGIN, FAKE_COMPILE, FAKE_FINISH};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        for (int after = 0; after < 2; after++) {
            for (int embed = 0; embed < 2; embed++) {
                fake f = {0};
                epctx_gen_opts opts = {0};
                epctx_error error;
                if (after == 1 && steps[i] != FAKE_COMPILE) continue;
                f.fail = steps[i];
                f.fail_after = after;
                opts.embed = embed;
                clear_root();
                make_source(0);
                CHECK(generate(&f, &opts, NULL, NULL, &error) == EPCTX_ERR_BACKEND, "step %d: %s",
                      (int)steps[i], error.message);
                CHECK_HAS(error.message, "the fake fails as told");
                CHECK_HAS(error.message, at("m.onnx"));
                if (steps[i] == FAKE_COMPILE) {
                    CHECK_HAS(error.message, after == 0 ? "_0': the fake" : "_1': the fake");
                    CHECK_HAS(error.message, "partition 'FakeEP_");
                }
                CHECK_STR(listing(), "m.onnx ");
                CHECK_INT(f.alive, 0);
            }
        }
    }
}

static epctx_status finish_nothing(void *self, void *build, epctx_buffer *out, epctx_error *error) {
    (void)out, (void)error;
    fake_discard(self, build);
    return EPCTX_OK;
}

/* A backend that forgot to write, alone and in a group. */
TEST(empty_binary) {
    for (int group = 0; group < 2; group++) {
        fake f = {0};
        epctx_backend backend = fake_backend(&f);
        epctx_gen_opts opts = {0};
        epctx_error error;
        epctx_model model;
        backend.finish_fn = finish_nothing;
        clear_root();
        make_source(0);
        CHECK_OK(epctx_model_open_file(&model, at("m.onnx"), NULL, &error), error);
        if (group == 1) CHECK_OK(epctx_workspace_open(&opts.workspace, NULL, &error), error);
        opts.stop = group == 1;
        CHECK_INT(epctx_generate(&model, &backend, &opts, NULL, &error), EPCTX_ERR_BACKEND);
        CHECK_HAS(error.message, "finish_fn of FakeEP makes an empty binary");
        CHECK_HAS(error.message, "m.onnx");
        CHECK_STR(listing(), "m.onnx ");
        CHECK_INT(f.alive, 0);
        epctx_model_close(&model);
        if (group == 1) epctx_workspace_close(opts.workspace);
    }
}

/* A model of IR 3 lists its initializers among the inputs. Those that go into the partitions must
 * leave both lists: an input without its value would be asked of the user. */
TEST(initializers_as_inputs) {
    static const int64_t dims[] = {2, -1};
    static const float weights[2] = {1, 2};
    bytes graph = {0}, model_bytes = {0};
    fake f = {0};
    epctx_error error;
    epctx_model model;
    epctx_graph record;
    clear_root();
    add_node(&graph, "Take", "n0", "x,w", "y");
    put_str(&graph, 2, "main");
    add_value(&graph, GRAPH_INPUT, "x", EPCTX_ONNX_FLOAT, dims);
    add_value(&graph, GRAPH_INPUT, "w", EPCTX_ONNX_FLOAT, dims);
    add_value(&graph, GRAPH_OUTPUT, "y", EPCTX_ONNX_FLOAT, dims);
    add_floats(&graph, "w", weights, 2);
    put_int(&model_bytes, 1, 3);
    add_opset(&model_bytes, "", 7);
    put_child(&model_bytes, 7, &graph);
    save_bytes("m.onnx", &model_bytes);
    CHECK_OK(generate(&f, NULL, NULL, NULL, &error), error);
    CHECK_STR(f.log, "x->y;");
    CHECK_INT(epctx_model_open_file(&model, at("m_ctx.onnx"), NULL, NULL), EPCTX_OK);
    CHECK_STR(nodes_of(&model), "EPContext:x,->y,;");
    CHECK_INT(epctx_model_load_graph(&model, &record, &error), EPCTX_OK);
    CHECK_UINT(record.input_count, 1);
    CHECK_UINT(record.initializer_count, 0);
    epctx_model_close(&model);
}

/* From IR version 4 on an initializer among the inputs is only a default. The input stays, used or
 * not, and so does the default: without it callers would have to give a value. */
TEST(optional_inputs) {
    static const int64_t dims[] = {2, -1};
    static const float weights[2] = {1, 2};
    static const char *const optional[] = {"w", "unused"};
    bytes graph = {0};
    fake f = {0};
    epctx_error error;
    epctx_model model;
    epctx_tensor_view tensor;
    epctx_value_view value;
    epctx_cursor it;
    clear_root();
    add_node(&graph, "Take", "n0", "x,w,c", "y");
    add_x_and_y(&graph);
    for (size_t i = 0; i < 2; i++) {
        add_value(&graph, GRAPH_INPUT, optional[i], EPCTX_ONNX_FLOAT, dims);
        add_floats(&graph, optional[i], weights, 2);
    }
    add_floats(&graph, "c", weights, 2);
    save_model("m.onnx", &graph);
    CHECK_OK(generate(&f, NULL, NULL, NULL, &error), error);
    CHECK_STR(f.log, "x,w->y;");
    CHECK_INT(epctx_model_open_file(&model, at("m_ctx.onnx"), NULL, NULL), EPCTX_OK);
    it = epctx_view_graph_initializers(epctx_model_graph(&model));
    for (size_t i = 0; i < 2; i++) {
        CHECK_TRUE(epctx_next_tensor(&it, &tensor));
        CHECK(epctx_str_is(tensor.name, optional[i]), "the default of %s is lost", optional[i]);
    }
    CHECK_TRUE(!epctx_next_tensor(&it, &tensor));
    it = epctx_view_graph_inputs(epctx_model_graph(&model));
    CHECK_TRUE(epctx_next_value(&it, &value) && epctx_str_is(value.name, "x"));
    CHECK_TRUE(epctx_next_value(&it, &value) && epctx_str_is(value.name, "w"));
    CHECK_TRUE(epctx_next_value(&it, &value) && epctx_str_is(value.name, "unused"));
    CHECK_TRUE(!epctx_next_value(&it, &value));
    epctx_model_close(&model);
}

/* Every call of the io fails once: afterwards there is the old pair, the new pair, or a binary
 * without a model; never a model with a binary of another generation, and no other file. */
static bool failing_io(bool embed, bool old_pair) {
    for (int n = 1; n < 200; n++) {
        fake f = {0}, loader = {0};
        flaky io_state = {0};
        epctx_io io = flaky_io(&io_state);
        epctx_gen_opts opts = {0};
        epctx_error error;
        epctx_status status;
        const char *list;
        opts.embed = embed;
        opts.overwrite = old_pair;
        clear_root();
        make_source(0);
        if (old_pair && generate(&f, &opts, NULL, NULL, &error) != EPCTX_OK) return false;
        make_source(1);
        io_state.fail_at = n;
        status = generate(&f, &opts, NULL, &io, &error);
        if (status == EPCTX_OK && io_state.calls < n) return n > 5;
        if (status == EPCTX_OK) continue; /* a failure that does not matter */
        list = listing();
        if (strstr(error.message, "the injected failure") == NULL) {
            printf("call %d: %s\n", n, error.message);
            return false;
        }
        if (io_state.opens != 0 || io_state.maps != 0 || f.alive != 0) {
            printf("call %d: %d files, %d mappings, %d objects are left\n", n, io_state.opens,
                   io_state.maps, f.alive);
            return false;
        }
        if (strcmp(list, "m.onnx ") == 0 || strcmp(list, "m.onnx m_fake.bin ") == 0) continue;
        if (strcmp(list, "m.onnx m_ctx.onnx m_fake.bin ") != 0 &&
            strcmp(list, "m.onnx m_ctx.onnx ") != 0) {
            printf("call %d leaves %s\n", n, list);
            return false;
        }
        if (load(&loader, at("m_ctx.onnx"), &error) != EPCTX_OK) {
            printf("call %d leaves a pair that does not load: %s\n", n, error.message);
            return false;
        }
    }
    return false;
}

TEST(failing_io_fresh) {
    CHECK_TRUE(failing_io(false, false));
    CHECK_TRUE(failing_io(true, false));
}

TEST(failing_io_replace) {
    CHECK_TRUE(failing_io(false, true));
    CHECK_TRUE(failing_io(true, true));
}

/* The allocator for the binary fails. */
TEST(allocator_fails) {
    for (size_t n = 1; n < 100; n++) {
        fake f = {0};
        counting c = {0};
        epctx_allocator allocator = counting_allocator(&c);
        epctx_gen_opts opts = {0};
        epctx_error error;
        epctx_status status;
        opts.allocator = &allocator;
        c.fail_at = n;
        clear_root();
        make_source(0);
        status = generate(&f, &opts, NULL, NULL, &error);
        CHECK_UINT(c.alive, 0);
        CHECK_INT(f.alive, 0);
        if (status == EPCTX_OK) return;
        CHECK_INT(status, EPCTX_ERR_NOMEM);
        CHECK_STR(listing(), "m.onnx ");
    }
    FAIL("the generation never succeeded");
}

/* -- loading what is wrong -- */

/* A context model made by hand. */
static void make_context(int64_t main_context, int64_t embed, const char *src, const char *part,
                         const char *cache) {
    bytes graph = {0};
    add_epnode(&graph, "ctx_node", "x", "y", main_context, embed, src, part, cache,
               cache != NULL ? strlen(cache) : 0);
    save_model("h_ctx.onnx", &graph);
}

static const char good_binary[] = "FAKE\001\n1\npart\n0\n1\nx\n1\ny\n";

TEST(load_by_hand) {
    fake f = {0};
    epctx_error error;
    clear_root();
    make_file(at("h.bin"), good_binary, sizeof good_binary - 1);
    make_context(1, 0, "FakeEP", "part", "h.bin");
    CHECK_OK(load(&f, at("h_ctx.onnx"), &error), error);
    make_context(-1, -1, "FakeEP", "part", good_binary); /* defaults: main context, embedded */
    CHECK_OK(load(&f, at("h_ctx.onnx"), &error), error);
    CHECK_INT(f.alive, 0);
    /* Another EP's node is not ours. */
    f.loads = 0;
    make_context(1, 0, "OtherEP", "part", "missing.bin");
    CHECK_OK(load(&f, at("h_ctx.onnx"), &error), error);
    CHECK_INT(f.loads, 0);
}

/* What is wrong with another EP's node is that EP's business: it is counted and left alone. The
 * same fault in a node of ours ends the loading. */
TEST(load_malformed_node_of_another) {
    static const char *const owners[] = {"OtherEP", "", "FakeEP"}; /* "": no source at all */
    clear_root();
    make_file(at("h.bin"), good_binary, sizeof good_binary - 1);
    for (size_t fault = 0; fault < 2; fault++)
        for (size_t i = 0; i < 3; i++) {
            fake f = {0};
            bytes graph = {0}, bad;
            epctx_backend backend = fake_backend(&f);
            epctx_model model;
            epctx_loaded loaded;
            epctx_error error;
            epctx_status got;
            bool ours = strcmp(owners[i], "FakeEP") == 0;
            add_epnode(&graph, "good", "x", "y", 1, 0, "FakeEP", "part", "h.bin", 5);
            bad = new_node(EPCTX_OP_TYPE, EPCTX_DOMAIN, "bad", "y", "z");
            if (owners[i][0] != '\0') add_attr_str(&bad, "source", owners[i], strlen(owners[i]));
            if (fault == 0)
                add_attr_int(&bad, "main_context", 7); /* a value that has no meaning */
            else
                add_attr_str(&bad, "embed_mode", "0", 1); /* a wrong type */
            put_child(&graph, 1, &bad);
            save_model("h_ctx.onnx", &graph);
            CHECK_INT(epctx_model_open_file(&model, at("h_ctx.onnx"), NULL, NULL), EPCTX_OK);
            got = epctx_load(&loaded, &model, &backend, NULL, &error);
            CHECK_INT(got, ours ? EPCTX_ERR_GRAPH : EPCTX_OK);
            if (ours) {
                CHECK_HAS(error.message, "bad");
                CHECK_HAS(error.message, fault == 0 ? "main_context" : "embed_mode");
            } else {
                CHECK_UINT(loaded.bound_count, 1);
                CHECK_UINT(loaded.other_nodes, 1);
                CHECK_TRUE(epctx_str_is(loaded.bound[0].node.name, "good"));
            }
            epctx_unload(&loaded);
            epctx_model_close(&model);
            CHECK_INT(f.alive, 0);
        }
}

/* Every path that must not be opened, and every file that is not a binary: INVALID_GRAPH, and the
 * message names the model, the node and the reason. */
TEST(load_refused) {
    static const struct {
        const char *cache, *word;
        epctx_status want;
    } cases[] = {{"", "ep_cache_context", EPCTX_ERR_PATH},
                 {"none.bin", "none.bin", EPCTX_ERR_CONTEXT},
                 {"../secret.bin", "..", EPCTX_ERR_PATH},
                 {"/etc/passwd", "/etc/passwd", EPCTX_ERR_PATH},
                 {"escape.bin", "escape.bin", EPCTX_ERR_PATH},
                 {"C:\\x.bin", "C:", EPCTX_ERR_PATH},
                 {"folder", "folder", EPCTX_ERR_PATH},
                 {"empty.bin", "empty.bin", EPCTX_ERR_PATH},
                 {"magic.bin", "magic", EPCTX_ERR_CONTEXT},
                 {"other_graph.bin", "part", EPCTX_ERR_CONTEXT}};
    static const char other[] = "FAKE\001\n1\nanother\n0\n1\nx\n1\ny\n";
    fake f = {0};
    clear_root();
    make_file(at("empty.bin"), "", 0);
    make_file(at("magic.bin"), "ELF", 3);
    make_file(at("other_graph.bin"), other, sizeof other - 1);
    CHECK_TRUE(mkdir(at("folder"), 0777) == 0 && symlink("/etc/passwd", at("escape.bin")) == 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        epctx_error error;
        epctx_status got;
        make_context(1, 0, "FakeEP", "part", cases[i].cache);
        got = load(&f, at("h_ctx.onnx"), &error);
        CHECK(epctx_status_to_ort(got) == 10, "'%s': %s, %s", cases[i].cache,
              epctx_status_name(got), error.message);
        if (strcmp(cases[i].cache, "folder") != 0)
            CHECK(got == cases[i].want, "'%s': %s, %s", cases[i].cache, epctx_status_name(got),
                  error.message);
        CHECK_INT(error.status, got);
        CHECK_HAS(error.message, "h_ctx.onnx");
        CHECK_HAS(error.message, "ctx_node");
        CHECK_HAS(error.message, cases[i].word);
        CHECK_STR(error.node, "ctx_node");
        CHECK_INT(f.alive, 0);
    }
    rmdir(at("folder"));
}

TEST(load_embedded_empty) {
    fake f = {0};
    epctx_error error;
    clear_root();
    make_context(1, 1, "FakeEP", "part", "");
    CHECK_INT(epctx_status_to_ort(load(&f, at("h_ctx.onnx"), &error)), 10);
    CHECK_HAS(error.message, "ctx_node");
    make_context(1, 1, "FakeEP", "part", NULL); /* the attribute is not there at all */
    CHECK_INT(epctx_status_to_ort(load(&f, at("h_ctx.onnx"), &error)), 10);
    CHECK_HAS(error.message, "ep_cache_context");
}

TEST(load_lonely_secondary) {
    fake f = {0};
    epctx_error error;
    clear_root();
    make_context(0, 0, "FakeEP", "part", NULL);
    CHECK_INT(epctx_status_to_ort(load(&f, at("h_ctx.onnx"), &error)), 10);
    CHECK_HAS(error.message, "main_context");
    CHECK_HAS(error.message, "ctx_node");
}

/* From memory an external binary needs ep.context_file_path. */
TEST(load_from_memory) {
    fake f = {0};
    epctx_backend backend = fake_backend(&f);
    epctx_load_opts opts = {0};
    epctx_model model;
    epctx_loaded loaded;
    epctx_error error;
    bytes b;
    clear_root();
    make_file(at("h.bin"), good_binary, sizeof good_binary - 1);
    make_context(1, 0, "FakeEP", "part", "h.bin");
    b = read_file(at("h_ctx.onnx"));
    CHECK_INT(epctx_model_open_memory(&model, b.data, b.size, NULL, NULL), EPCTX_OK);
    CHECK_INT(epctx_load(&loaded, &model, &backend, NULL, &error), EPCTX_ERR_PATH);
    CHECK_HAS(error.message, "ep.context_file_path");
    opts.context_file_path = at("whatever.onnx");
    CHECK_OK(epctx_load(&loaded, &model, &backend, &opts, &error), error);
    epctx_unload(&loaded);
    epctx_model_close(&model);
    bytes_free(&b);
    CHECK_INT(f.alive, 0);
}

/* The same path when a model from memory is loaded, its files are listed, and its context is
 * embedded: all look in the same folder. */
TEST(folder_as_path_of_a_model) {
    static const struct {
        const char *path;
        bool found[2]; /* by an EP that does not look, and by one that does */
    } rows[] = {
        {"out", {false, true}},         {"out/", {true, true}},   {"out/.", {false, true}},
        {"out/none.x", {true, true}},   {"none", {false, false}}, {"none/", {false, false}},
        {"h_ctx.onnx", {false, false}},
    };
    for (size_t i = 0; i < 2 * (sizeof rows / sizeof rows[0]); i++) {
        const char *const ep = i % 2 ? "TensorrtExecutionProvider" : "FakeEP";
        const bool found = rows[i / 2].found[i % 2];
        fake f = {0};
        epctx_backend backend = fake_backend(&f);
        epctx_load_opts load_opts = {0};
        epctx_check_opts check_opts = {0};
        epctx_convert_opts convert_opts = {0};
        epctx_dependency *files = NULL;
        epctx_model model;
        epctx_loaded loaded;
        epctx_arena arena;
        epctx_error error;
        epctx_status status;
        size_t count = 0;
        char given[4096];
        bytes b;
        clear_root();
        CHECK_TRUE(mkdir(at("out"), 0777) == 0);
        make_file(at("out/h.bin"), good_binary, sizeof good_binary - 1);
        make_context(1, 0, ep, "part", "h.bin");
        b = read_file(at("h_ctx.onnx"));
        snprintf(given, sizeof given, "%s", at(rows[i / 2].path));
        backend.source = ep;
        load_opts.context_file_path = check_opts.context_file_path = given;
        convert_opts.context_file_path = given;
        epctx_arena_init(&arena, NULL);
        CHECK_INT(epctx_model_open_memory(&model, b.data, b.size, NULL, NULL), EPCTX_OK);
        status = epctx_load(&loaded, &model, &backend, &load_opts, &error);
        CHECK((status == EPCTX_OK) == found, "'%s' for %s: %s", rows[i / 2].path, ep,
              error.message);
        epctx_unload(&loaded);
        CHECK_OK(epctx_model_files(&model, &check_opts, &arena, &files, &count, &error), error);
        CHECK(count >= 1 && (files[0].status == EPCTX_OK) == found, "'%s' for %s: %s",
              rows[i / 2].path, ep, count > 0 ? files[0].problem : "no file");
        status = epctx_edit_embed(&model, &convert_opts, NULL, &error);
        CHECK((status == EPCTX_OK) == found, "'%s' for %s: %s", rows[i / 2].path, ep,
              error.message);
        epctx_model_close(&model);
        epctx_arena_free(&arena);
        bytes_free(&b);
        CHECK_INT(f.alive, 0);
        CHECK_TRUE(remove(at("out/h.bin")) == 0 && rmdir(at("out")) == 0);
    }
}

TEST(load_other_generation) {
    fake f = {0};
    epctx_gen_opts opts = {0};
    epctx_error error;
    bytes old_binary, new_binary;
    opts.overwrite = true;
    clear_root();
    make_source(0);
    CHECK_INT(generate(&f, &opts, NULL, NULL, &error), EPCTX_OK);
    old_binary = read_file(at("m_fake.bin"));
    make_source(1);
    CHECK_INT(generate(&f, &opts, NULL, NULL, &error), EPCTX_OK);
    new_binary = read_file(at("m_fake.bin"));
    CHECK_TRUE(!bytes_equal(&old_binary, new_binary.data, new_binary.size));
    make_file(at("m_fake.bin"), old_binary.data, old_binary.size);
    CHECK_INT(epctx_status_to_ort(load(&f, at("m_ctx.onnx"), &error)), 10);
    CHECK_HAS(error.message, "m_ctx.onnx");
    CHECK_INT(f.alive, 0);
    bytes_free(&old_binary);
    bytes_free(&new_binary);
}

/* A node with a body that was compiled from another body is of another generation. */
TEST(load_other_body) {
    bytes binaries[2];
    epctx_error error;
    fake f = {0};
    epctx_gen_opts opts = {0};
    f.takes = "If";
    opts.overwrite = true;
    clear_root();
    for (int i = 0; i < 2; i++) {
        bytes graph = {0}, body = {0}, model, node = new_node("If", "", "if", "x", "y");
        add_node(&body, i == 0 ? "Relu" : "Floor", "inner", "x", "b");
        add_value(&body, GRAPH_OUTPUT, "b", EPCTX_ONNX_FLOAT, NULL);
        add_attr_graph(&node, "then_branch", &body);
        put_child(&graph, 1, &node);
        add_x_and_y(&graph);
        model = new_model(&graph);
        make_file(at("m.onnx"), model.data, model.size);
        bytes_free(&model);
        CHECK_OK(generate(&f, &opts, NULL, NULL, &error), error);
        binaries[i] = read_file(at("m_fake.bin"));
    }
    CHECK_OK(load(&f, at("m_ctx.onnx"), &error), error);
    make_file(at("m_fake.bin"), binaries[0].data, binaries[0].size);
    CHECK_INT(epctx_status_to_ort(load(&f, at("m_ctx.onnx"), &error)), 10);
    CHECK_INT(f.alive, 0);
    bytes_free(&binaries[0]);
    bytes_free(&binaries[1]);
}

/* -- how many graphs a binary holds: where the EP finds them by the node's name -- */

/* A prefix for the nodes of a model as it is now. */
static epctx_status try_prefix(epctx_model *model, bool one_graph, epctx_error *error) {
    epctx_prefix_opts opts = {0};
    size_t mark = epctx_edit_mark(model);
    epctx_status status;
    opts.one_graph = one_graph;
    status = epctx_edit_prefix(model, epctx_str_of("p_"), &opts, NULL, error);
    epctx_edit_undo(model, mark);
    return status;
}

typedef enum route { AS_IT_IS, EMBEDDED, EXTRACTED, SPLIT, SPLIT_EMBEDDED } route;

/* The same for the model of a file, after another operation. */
static epctx_status prefix_after(const char *name, route how, bool one_graph, epctx_error *error) {
    static const int64_t dims[] = {2};
    epctx_split_opts cut = {0};
    epctx_model model;
    epctx_status status = epctx_model_open_file(&model, at(name), NULL, error);
    if (status != EPCTX_OK) return status;
    if (how == EMBEDDED) status = epctx_edit_embed(&model, NULL, NULL, error);
    if (how == EXTRACTED) status = epctx_edit_extract(&model, NULL, NULL, error);
    if (how == SPLIT || how == SPLIT_EMBEDDED) {
        /* At what the node in the middle makes: the second graph is left. */
        epctx_value inputs[2];
        memset(inputs, 0, sizeof inputs);
        inputs[0].name = epctx_str_of("c");
        inputs[1].name = epctx_str_of("b2");
        inputs[0].elem_type = inputs[1].elem_type = EPCTX_ONNX_FLOAT;
        inputs[0].rank = inputs[1].rank = 1;
        inputs[0].dims = inputs[1].dims = dims;
        cut.inputs = inputs;
        cut.input_count = 2;
        status = epctx_split(&model, &cut, NULL, error);
    }
    if (status == EPCTX_OK && how == SPLIT_EMBEDDED)
        status = epctx_edit_embed(&model, NULL, NULL, error);
    if (status == EPCTX_OK) status = try_prefix(&model, one_graph, error);
    epctx_model_close(&model);
    return status;
}

static epctx_status generate_for_qnn(fake *f, const epctx_gen_opts *opts, epctx_error *error) {
    epctx_backend backend = fake_backend(f);
    backend.source = "QNNExecutionProvider";
    return generate_one(at("m.onnx"), &backend, opts, NULL, NULL, error);
}

#define KEEPS_NAMES(how) \
    do { \
        CHECK(prefix_after("m_ctx.onnx", how, false, &error) == EPCTX_ERR_UNSUPPORTED, "%s", \
              error.message); \
        CHECK_HAS(error.message, "by the node's name"); \
    } while (0)

/* Embedded contexts without a stamp: the caller may know that each holds one graph. */
TEST(names_without_a_stamp) {
    for (int64_t embed = 1; embed <= 7; embed += 6) {
        bytes graph = {0}, b;
        epctx_model model;
        epctx_error error;
        add_epnode(&graph, "one", "x", "t", 1, 1, "QNN", NULL, "1", 1);
        add_epnode(&graph, "two", "t", "y", 1, embed, "QNN", NULL, "2", 1);
        add_x_and_y(&graph);
        b = new_model(&graph);
        CHECK_INT(epctx_model_open_memory(&model, b.data, b.size, NULL, &error), EPCTX_OK);
        if (embed == 1) {
            CHECK_INT(try_prefix(&model, false, &error), EPCTX_ERR_UNSUPPORTED);
            CHECK_HAS(error.message, "node 'one'");
            CHECK_OK(try_prefix(&model, true, &error), error);
        } else {
            CHECK_INT(try_prefix(&model, true, &error), EPCTX_ERR_GRAPH);
            CHECK_HAS(error.message, "node 'two'");
            CHECK_HAS(error.message, "must be 0 or 1");
        }
        epctx_model_close(&model);
        bytes_free(&b);
    }
}

TEST(names_in_a_binary_of_one_graph) {
    fake f = {0};
    epctx_gen_opts opts = {0};
    epctx_error error;
    bytes binary;
    f.takes = "Take,Keep";
    opts.overwrite = true;
    clear_root();
    make_source(0);
    CHECK_OK(generate_for_qnn(&f, &opts, &error), error);
    CHECK_OK(prefix_after("m_ctx.onnx", AS_IT_IS, false, &error), error);
    CHECK_OK(prefix_after("m_ctx.onnx", EMBEDDED, false, &error), error);
    /* What the stamp says is about that binary, not about whatever has its name, or nothing. */
    binary = read_file(at("m_fake.bin"));
    binary.data[binary.size - 1] ^= 1;
    make_file(at("m_fake.bin"), binary.data, binary.size);
    KEEPS_NAMES(AS_IT_IS);
    CHECK_OK(prefix_after("m_ctx.onnx", AS_IT_IS, true, &error), error);
    remove(at("m_fake.bin"));
    KEEPS_NAMES(AS_IT_IS);
    bytes_free(&binary);
    opts.embed = true;
    CHECK_OK(generate_for_qnn(&f, &opts, &error), error);
    CHECK_OK(prefix_after("m_ctx.onnx", AS_IT_IS, false, &error), error);
    /* The file is not there before it is written. */
    KEEPS_NAMES(EXTRACTED);
}

TEST(names_in_a_binary_of_two_graphs) {
    fake f = {0};
    epctx_gen_opts opts = {0};
    epctx_error error;
    opts.overwrite = true;
    for (int embed = 0; embed < 2; embed++) {
        opts.embed = embed;
        clear_root();
        make_source(0);
        CHECK_OK(generate_for_qnn(&f, &opts, &error), error);
        KEEPS_NAMES(AS_IT_IS);
        KEEPS_NAMES(embed ? EXTRACTED : SPLIT_EMBEDDED);
        KEEPS_NAMES(SPLIT);
        CHECK_HAS(error.message, "one_graph");
        CHECK_OK(prefix_after("m_ctx.onnx", SPLIT, true, &error), error);
    }
}

/* Each model of a group has one node; the binary that they share has two graphs. */
TEST(names_in_a_shared_binary) {
    fake f = {0};
    epctx_backend backend = fake_backend(&f);
    epctx_gen_opts opts = {0};
    epctx_workspace *w;
    epctx_error error;
    f.takes = "Take,Keep";
    backend.source = "QNNExecutionProvider";
    clear_root();
    CHECK_INT(epctx_workspace_open(&w, NULL, &error), EPCTX_OK);
    for (int i = 0; i < 2; i++) {
        epctx_model model;
        make_named(i == 0 ? "n.onnx" : "m.onnx", (float)i);
        CHECK_INT(epctx_model_open_file(&model, at(i == 0 ? "n.onnx" : "m.onnx"), NULL, &error),
                  EPCTX_OK);
        opts.workspace = w;
        opts.stop = i == 1;
        CHECK_OK(epctx_generate(&model, &backend, &opts, NULL, &error), error);
        epctx_model_close(&model);
    }
    epctx_workspace_close(w);
    KEEPS_NAMES(AS_IT_IS);
    KEEPS_NAMES(EMBEDDED);
    CHECK_OK(prefix_after("m_ctx.onnx", EMBEDDED, true, &error), error);
}

/* What a vendor's tool wrote: it may hold other graphs beside this one. */
TEST(names_in_a_wrapped_binary) {
    static const epctx_span binary = {(const uint8_t *)"two graphs", 10};
    epctx_wrap_value out = {0};
    epctx_wrap_opts opts = {0};
    epctx_error error;
    out.value.name = epctx_str_of("y");
    out.value.elem_type = EPCTX_ONNX_FLOAT;
    out.value.rank = 0;
    opts.profile = epctx_profile_find(epctx_str_of("qnn"));
    opts.name = "g";
    opts.binary_name = "b.bin";
    opts.outputs = &out;
    opts.output_count = 1;
    for (int embed = 0; embed < 2; embed++) {
        epctx_model model;
        opts.embed = embed;
        CHECK_OK(epctx_wrap(&model, binary, &opts, NULL, NULL, &error), error);
        CHECK_INT(try_prefix(&model, false, &error), EPCTX_ERR_UNSUPPORTED);
        CHECK_HAS(error.message, "one_graph");
        CHECK_OK(try_prefix(&model, true, &error), error);
        epctx_model_close(&model);
    }
}

TEST(load_failing_backend) {
    static const fake_step steps[] = {FAKE_LOAD, FAKE_FIND, FAKE_INFO};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        for (int after = 0; after < 2; after++) {
            fake f = {0};
            epctx_error error;
            clear_root();
            make_source(0);
            CHECK_INT(generate(&f, NULL, NULL, NULL, &error), EPCTX_OK);
            f.fail = steps[i];
            f.fail_after = after;
            if (after == 1 && steps[i] == FAKE_LOAD) continue; /* there is one load only */
            CHECK(epctx_status_to_ort(load(&f, at("m_ctx.onnx"), &error)) == 10, "step %d: %s",
                  (int)steps[i], error.message);
            CHECK_HAS(error.message, "the fake fails as told");
            CHECK_INT(f.alive, 0);
        }
    }
}

TEST(load_allocator_fails) {
    for (size_t n = 1; n < 50; n++) {
        fake f = {0};
        epctx_backend backend = fake_backend(&f);
        counting c = {0};
        epctx_allocator allocator = counting_allocator(&c);
        epctx_load_opts opts = {0};
        epctx_model model;
        epctx_loaded loaded;
        epctx_error error;
        epctx_status status;
        if (n == 1) {
            clear_root();
            make_source(0);
            CHECK_INT(generate(&f, NULL, NULL, NULL, &error), EPCTX_OK);
        }
        opts.allocator = &allocator;
        c.fail_at = n;
        CHECK_INT(epctx_model_open_file(&model, at("m_ctx.onnx"), NULL, NULL), EPCTX_OK);
        status = epctx_load(&loaded, &model, &backend, &opts, &error);
        epctx_unload(&loaded);
        epctx_model_close(&model);
        CHECK_UINT(c.alive, 0);
        CHECK_INT(f.alive, 0);
        if (status == EPCTX_OK) return;
        CHECK_INT(status, EPCTX_ERR_NOMEM);
    }
    FAIL("loading never succeeded");
}

/* -- several EPs -- */

/* A second EP compiles what the first one left; both load their own. */
TEST(two_eps) {
    fake f = {0}, g = {0};
    epctx_backend one = fake_backend(&f), two = fake_backend(&g);
    epctx_gen_opts opts = {0};
    epctx_gen_report report;
    epctx_model model;
    epctx_loaded loaded;
    epctx_error error;
    epctx_str value;
    g.takes = "Keep,EPContext"; /* a backend that claims too much */
    two.source = "OtherEP";
    two.short_name = "other";
    clear_root();
    make_source(0);
    CHECK_INT(generate(&f, NULL, NULL, NULL, &error), EPCTX_OK);
    CHECK_INT(epctx_model_open_file(&model, at("m_ctx.onnx"), NULL, NULL), EPCTX_OK);
    opts.context_file_path = at("both_ctx.onnx");
    CHECK_OK(epctx_generate(&model, &two, &opts, &report, &error), error);
    epctx_model_close(&model);
    CHECK_STR(listing(), "both_ctx.onnx both_other.bin m.onnx m_ctx.onnx m_fake.bin ");
    CHECK_STR(g.log, "b->c;");
    CHECK_UINT(report.other_nodes, 2);
    CHECK_UINT(report.cpu_nodes, 0);
    CHECK_INT(epctx_model_open_file(&model, at("both_ctx.onnx"), NULL, NULL), EPCTX_OK);
    CHECK_STR(nodes_of(&model), "EPContext:x,x2,->b,b2,;EPContext:b,->c,;EPContext:c,b2,->y,;");
    /* Each EP has its compatibility string and its stamp. */
    CHECK_TRUE(epctx_model_metadata(&model, epctx_str_of("ep_compatibility_info.FakeEP"), &value));
    CHECK_TRUE(epctx_model_metadata(&model, epctx_str_of("ep_compatibility_info.OtherEP"), &value));
    CHECK_TRUE(epctx_model_metadata(&model, epctx_str_of("epctx.build.FakeEP"), &value));
    CHECK_TRUE(epctx_model_metadata(&model, epctx_str_of("epctx.build.OtherEP"), &value));
    CHECK_OK(epctx_load(&loaded, &model, &one, NULL, &error), error);
    CHECK_UINT(loaded.bound_count, 2);
    CHECK_UINT(loaded.other_nodes, 1);
    epctx_unload(&loaded);
    CHECK_OK(epctx_load(&loaded, &model, &two, NULL, &error), error);
    CHECK_UINT(loaded.bound_count, 1);
    epctx_unload(&loaded);
    epctx_model_close(&model);
}

/* The other EP's binary has to stay reachable, and is not overwritten. */
TEST(two_eps_files) {
    fake f = {0}, g = {0};
    epctx_backend two = fake_backend(&g);
    epctx_gen_opts opts = {0};
    epctx_model model;
    epctx_error error;
    g.takes = "Keep";
    two.source = "OtherEP";
    clear_root();
    make_source(0);
    CHECK_INT(generate(&f, NULL, NULL, NULL, &error), EPCTX_OK);
    CHECK_TRUE(mkdir(at("sub"), 0777) == 0);
    CHECK_INT(epctx_model_open_file(&model, at("m_ctx.onnx"), NULL, NULL), EPCTX_OK);
    opts.overwrite = true;
    opts.context_file_path = at("sub/m_ctx.onnx");
    CHECK_INT(epctx_generate(&model, &two, &opts, NULL, &error), EPCTX_ERR_PATH);
    CHECK_HAS(error.message, "m_fake.bin");
    CHECK_HAS(error.message, "into the folder of the source");
    opts.context_file_path = at("new_ctx.onnx");
    opts.binary = "m_fake.bin";
    CHECK_INT(epctx_generate(&model, &two, &opts, NULL, &error), EPCTX_ERR_PATH);
    CHECK_HAS(error.message, "m_fake.bin");
    opts.binary = NULL;
    opts.context_file_path = at("m_ctx.onnx"); /* its own source */
    CHECK_INT(epctx_generate(&model, &two, &opts, NULL, &error), EPCTX_ERR_PATH);
    CHECK_INT(g.compiled, 0);
    epctx_model_close(&model);
    rmdir(at("sub"));
    CHECK_STR(listing(), "m.onnx m_ctx.onnx m_fake.bin ");
}

/* -- bodies, functions, external data -- */

/* x -> Take -> m -> If(c) -> y; the bodies read m, which nothing else does, an initializer of the
 * main graph, one of their own, and one in a file. A function has a constant in a file, too. */
static void make_bodies(void) {
    static const int64_t dims[] = {2, -1};
    static const float inside[2] = {3, 4}, outside[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    bytes graph = {0}, model, branch = {0}, node, function = {0};
    make_file(at("w.data"), outside, sizeof outside);
    add_node(&graph, "Take", "n0", "x,gone", "m");
    add_node(&branch, "Add", "b0", "m,kept", "t0");
    add_node(&branch, "Add", "b1", "t0,own", "t1");
    add_node(&branch, "Add", "b2", "t1,far", "t2");
    add_floats(&branch, "own", inside, 2);
    add_external(&branch, "far", 2, "w.data", "8", "8");
    add_value(&branch, GRAPH_OUTPUT, "t2", EPCTX_ONNX_FLOAT, dims);
    node = new_node("If", "", "n1", "c", "y");
    add_attr_graph(&node, "then_branch", &branch);
    put_child(&graph, 1, &node);
    add_value(&graph, GRAPH_INPUT, "x", EPCTX_ONNX_FLOAT, dims);
    add_value(&graph, GRAPH_INPUT, "c", EPCTX_ONNX_BOOL, NULL);
    add_value(&graph, GRAPH_OUTPUT, "y", EPCTX_ONNX_FLOAT, dims);
    add_value(&graph, GRAPH_VALUE, "m", EPCTX_ONNX_FLOAT, dims);
    add_external(&graph, "gone", 2, "w.data", "0", "8");
    add_external(&graph, "kept", 2, "w.data", "16", "8");
    model = new_model(&graph);
    {
        bytes constant = new_node("Constant", "", "k", "", "kv"), t = {0}, a = {0};
        static const char *const pairs[3][2] = {
            {"location", "w.data"}, {"offset", "24"}, {"length", "8"}};
        put_int(&t, 1, 2);
        put_int(&t, 2, EPCTX_ONNX_FLOAT);
        for (int i = 0; i < 3; i++) put_pair(&t, 13, pairs[i][0], pairs[i][1]);
        put_int(&t, 14, 1);
        put_str(&a, 1, "value");
        put_child(&a, 5, &t);
        put_int(&a, 20, EPCTX_ATTR_TENSOR);
        put_child(&constant, 5, &a);
        put_str(&function, 1, "my_function");
        put_child(&function, 7, &constant);
    }
    put_child(&model, 25, &function);
    put_str(&model, 2, "the producer");
    put_str(&model, 3, "9.9");
    save_bytes("m.onnx", &model);
}

static size_t occurrences(const bytes *b, const char *text) {
    size_t count = 0, size = strlen(text);
    for (size_t i = 0; i + size <= b->size; i++) count += memcmp(b->data + i, text, size) == 0;
    return count;
}

TEST(bodies) {
    static const float own[2] = {3, 4}, far[2] = {3, 4}, kept[2] = {5, 6}, constant[2] = {7, 8};
    fake f = {0};
    epctx_error error;
    epctx_model model;
    epctx_cursor it;
    epctx_tensor_view tensor;
    epctx_value_view value;
    bytes file;
    clear_root();
    make_bodies();
    CHECK_OK(generate(&f, NULL, NULL, NULL, &error), error);
    CHECK_STR(f.log, "x->m;"); /* what only a body reads leaves the partition */
    file = read_file(at("m_ctx.onnx"));
    CHECK_UINT(occurrences(&file, "w.data") - 1, 0); /* the build stamp alone still names it */
    CHECK_TRUE(bytes_contain(&file, own, 8) && bytes_contain(&file, far, 8));
    CHECK_TRUE(bytes_contain(&file, kept, 8) && bytes_contain(&file, constant, 8));
    CHECK_UINT(occurrences(&file, "the producer"), 1);
    CHECK_UINT(occurrences(&file, "9.9"), 1);
    bytes_free(&file);
    CHECK_INT(epctx_model_open_file(&model, at("m_ctx.onnx"), NULL, NULL), EPCTX_OK);
    it = epctx_view_graph_initializers(epctx_model_graph(&model));
    CHECK_TRUE(epctx_next_tensor(&it, &tensor) && epctx_str_is(tensor.name, "kept"));
    CHECK_TRUE(tensor.has_raw && !tensor.external && tensor.raw.size == 8);
    CHECK_TRUE(!epctx_next_tensor(&it, &tensor));
    it = epctx_view_graph_values(epctx_model_graph(&model));
    CHECK_TRUE(epctx_next_value(&it, &value) && epctx_str_is(value.name, "m"));
    epctx_model_close(&model);
    /* It needs no file of the source. */
    remove(at("m.onnx"));
    remove(at("w.data"));
    CHECK_OK(load(&f, at("m_ctx.onnx"), &error), error);
}

/* ep.context_model_external_initializers_file_name: initializers of bodies, too, go out. */
TEST(initializers_file) {
    static const struct {
        uint64_t least;
        const char *names;
        uint64_t size;
    } cases[] = {{0, "m.onnx m_ctx.onnx m_fake.bin rest.data w.data ", 136},
                 {9, "m.onnx m_ctx.onnx m_fake.bin w.data ", 0}};
    for (size_t i = 0; i < 2; i++) {
        fake f = {0};
        epctx_gen_opts opts = {0};
        epctx_gen_report report;
        epctx_error error;
        epctx_model model;
        epctx_cursor it;
        epctx_tensor_view tensor;
        bytes file;
        opts.initializers_file_name = "rest.data";
        opts.initializers_min_size = cases[i].least;
        clear_root();
        make_bodies();
        CHECK_OK(generate(&f, &opts, &report, NULL, &error), error);
        CHECK_STR(listing(), cases[i].names);
        CHECK_UINT(report.initializers_size, cases[i].size);
        file = read_file(at("m_ctx.onnx"));
        CHECK_UINT(occurrences(&file, "rest.data"), i == 0 ? 3 : 0);
        bytes_free(&file);
        if (i == 1) continue;
        CHECK_STR(report.initializers_path, at("rest.data"));
        /* In the order of the model: the bodies are in a node, which stands first. */
        {
            static const float want[3][2] = {{3, 4}, {3, 4}, {5, 6}};
            file = read_file(at("rest.data"));
            CHECK_UINT(file.size, 136);
            for (size_t k = 0; k < 3; k++) CHECK_TRUE(memcmp(file.data + 64 * k, want[k], 8) == 0);
            bytes_free(&file);
        }
        CHECK_INT(epctx_model_open_file(&model, at("m_ctx.onnx"), NULL, NULL), EPCTX_OK);
        it = epctx_view_graph_initializers(epctx_model_graph(&model));
        CHECK_TRUE(epctx_next_tensor(&it, &tensor) && tensor.external && !tensor.has_raw);
        CHECK_TRUE(epctx_str_is(tensor.location, "rest.data"));
        CHECK_UINT(tensor.offset, 128);
        CHECK_UINT(tensor.length, 8);
        epctx_model_close(&model);
    }
}

/* -- names of outputs -- */

TEST(subfolder) {
    static const char *const bad[] = {"../up.bin", "/abs.bin", "a/../../b.bin"};
    fake f = {0};
    epctx_gen_opts opts = {0};
    epctx_gen_report report;
    epctx_error error;
    clear_root();
    make_source(0);
    CHECK_TRUE(mkdir(at("sub"), 0777) == 0);
    opts.binary = "sub/deep.bin";
    CHECK_OK(generate(&f, &opts, &report, NULL, &error), error);
    CHECK_STR(report.binary_path, at("sub/deep.bin"));
    CHECK_OK(load(&f, at("m_ctx.onnx"), &error), error);
    opts.overwrite = true;
    for (size_t i = 0; i < 3; i++) {
        opts.binary = bad[i];
        CHECK_INT(generate(&f, &opts, NULL, NULL, &error), EPCTX_ERR_PATH);
    }
    opts.binary = "none/deep.bin";
    CHECK_INT(generate(&f, &opts, NULL, NULL, &error), EPCTX_ERR_NOT_FOUND);
    opts.binary = "m_ctx.onnx";
    CHECK_INT(generate(&f, &opts, NULL, NULL, &error), EPCTX_ERR_PATH);
    CHECK_HAS(error.message, "two outputs");
    opts.binary = NULL;
    opts.initializers_file_name = "m_fake.bin";
    CHECK_INT(generate(&f, &opts, NULL, NULL, &error), EPCTX_ERR_PATH);
    opts.initializers_file_name = "m.onnx";
    CHECK_INT(generate(&f, &opts, NULL, NULL, &error), EPCTX_ERR_PATH);
    remove(at("sub/deep.bin"));
    rmdir(at("sub"));
}

/* Model, its external data and the result, each in a folder of its own: the result needs neither of
 * the other two. */
TEST(three_folders) {
    static const char *const folders[] = {"model", "data", "out"};
    static const float values[4] = {0, 0, 3, 4};
    fake f = {0};
    epctx_backend backend = fake_backend(&f);
    epctx_open_opts open_opts = {0};
    epctx_gen_opts opts = {0};
    epctx_model model;
    epctx_loaded loaded;
    epctx_graph g;
    epctx_error error;
    bytes graph = {0};
    clear_root();
    for (size_t i = 0; i < 3; i++) CHECK_TRUE(mkdir(at(folders[i]), 0777) == 0);
    add_node(&graph, "Take", "n0", "x,w", "a");
    add_node(&graph, "Keep", "n1", "a,k", "y");
    add_x_and_y(&graph);
    add_external(&graph, "w", 2, "w.data", "0", "8");
    add_external(&graph, "k", 2, "w.data", "8", "8");
    save_model("model/m.onnx", &graph);
    make_file(at("data/w.data"), values, sizeof values);
    open_opts.external_folder = at("data");
    opts.context_file_path = at("out/m_ctx.onnx");
    CHECK_INT(epctx_model_open_file(&model, at("model/m.onnx"), &open_opts, &error), EPCTX_OK);
    CHECK_OK(epctx_generate(&model, &backend, &opts, NULL, &error), error);
    epctx_model_close(&model);
    remove(at("model/m.onnx"));
    remove(at("data/w.data"));
    CHECK_INT(epctx_model_open_file(&model, at("out/m_ctx.onnx"), NULL, &error), EPCTX_OK);
    CHECK_OK(epctx_model_load_graph(&model, &g, &error), error);
    CHECK_UINT(g.initializer_count, 1);
    CHECK_TRUE(epctx_str_is(g.initializers[0].name, "k"));
    CHECK_MEM(g.initializers[0].data, g.initializers[0].size, &values[2], 8);
    CHECK_OK(epctx_load(&loaded, &model, &backend, NULL, &error), error);
    CHECK_UINT(loaded.bound_count, 1);
    epctx_unload(&loaded);
    epctx_model_close(&model);
    remove(at("out/m_ctx.onnx"));
    remove(at("out/m_fake.bin"));
    for (size_t i = 0; i < 3; i++) rmdir(at(folders[i]));
}

/* What to do when nothing compiles is said, never guessed. */
TEST(no_nodes_policy) {
    fake f = {0};
    epctx_gen_opts opts = {0};
    epctx_gen_report report;
    epctx_error error;
    epctx_model model;
    bytes source_file, copy;
    f.takes = "Nothing";
    clear_root();
    make_source(0);
    opts.no_nodes = EPCTX_NO_NODES_NOTHING;
    CHECK_INT(epctx_model_open_file(&model, at("m.onnx"), NULL, NULL), EPCTX_OK);
    {
        epctx_backend backend = fake_backend(&f);
        CHECK_INT(epctx_generate(&model, &backend, &opts, &report, &error), EPCTX_OK);
    }
    epctx_model_close(&model);
    CHECK_UINT(report.partition_count, 0);
    CHECK_STR(report.context_path, "");
    CHECK_STR(report.binary_path, "");
    CHECK_STR(listing(), "m.onnx ");
    opts.no_nodes = EPCTX_NO_NODES_COPY;
    CHECK_OK(generate(&f, &opts, &report, NULL, &error), error);
    CHECK_STR(listing(), "m.onnx m_ctx.onnx ");
    source_file = read_file(at("m.onnx"));
    copy = read_file(at("m_ctx.onnx"));
    CHECK_MEM(copy.data, copy.size, source_file.data, source_file.size);
    bytes_free(&source_file);
    bytes_free(&copy);
    CHECK_INT(f.compiled, 0);
}

/* -- metadata -- */

/* Compatibility info and stamps of EPs without a node go; what is not ours stays. */
TEST(stale_metadata) {
    static const char *const keys[] = {"ep_compatibility_info.GoneEP", "epctx.build.GoneEP",
                                       "ep_compatibility_info.FakeEP", "mine",
                                       "ep_compatibility_info"};
    fake f = {0};
    epctx_error error;
    epctx_model model;
    epctx_str value;
    bytes b = source(0);
    clear_root();
    for (size_t i = 0; i < 5; i++) add_metadata(&b, keys[i], "old");
    save_bytes("m.onnx", &b);
    CHECK_OK(generate(&f, NULL, NULL, NULL, &error), error);
    CHECK_INT(epctx_model_open_file(&model, at("m_ctx.onnx"), NULL, NULL), EPCTX_OK);
    CHECK_TRUE(!epctx_model_metadata(&model, epctx_str_of(keys[0]), &value));
    CHECK_TRUE(!epctx_model_metadata(&model, epctx_str_of(keys[1]), &value));
    CHECK_TRUE(epctx_model_metadata(&model, epctx_str_of(keys[2]), &value));
    CHECK_TRUE(epctx_str_is(value, "epctx=1;source=FakeEP;sdk=1.0;arch=paper"));
    CHECK_TRUE(epctx_model_metadata(&model, epctx_str_of(keys[3]), &value));
    CHECK_TRUE(epctx_str_is(value, "old"));
    CHECK_TRUE(epctx_model_metadata(&model, epctx_str_of(keys[4]), &value));
    epctx_model_close(&model);
}

/* The stamp is text that a script can read, without a time: twice the same. */
TEST(stamp) {
    fake f = {0};
    epctx_gen_opts opts = {0};
    epctx_error error;
    epctx_model model;
    epctx_str value;
    char text[400];
    bytes b;
    clear_root();
    make_bodies();
    CHECK_INT(generate(&f, &opts, NULL, NULL, &error), EPCTX_OK);
    CHECK_INT(epctx_model_open_file(&model, at("m_ctx.onnx"), NULL, NULL), EPCTX_OK);
    CHECK_TRUE(epctx_model_metadata(&model, epctx_str_of("epctx.build.FakeEP"), &value));
    snprintf(text, sizeof text, "%.*s", (int)value.size, value.data);
    b = read_file(at("m.onnx"));
    {
        char want[100];
        snprintf(want, sizeof want, "epctx 2\nsource %zu %016" PRIx64 " m.onnx\ndata 32 ", b.size,
                 epctx_hash(b.data, b.size, 0));
        CHECK_HAS(text, want);
        CHECK_HAS(text, " w.data\noptions ");
        CHECK_HAS(text, "\nsdk 1.0\narch paper");
        bytes_free(&b);
        b = read_file(at("m_fake.bin"));
        snprintf(want, sizeof want, "\nbinary %zu %016" PRIx64, b.size,
                 epctx_hash(b.data, b.size, 0));
        CHECK_HAS(text, want);
    }
    bytes_free(&b);
    CHECK_INT(epctx_model_check_fresh(&model, "FakeEP", NULL, NULL, &error), EPCTX_FRESH);
    CHECK_INT(epctx_model_check_fresh(&model, "OtherEP", NULL, NULL, &error), EPCTX_FRESH_UNKNOWN);
    CHECK_HAS(error.message, "no build stamp");
    {
        epctx_fresh_opts fresh = {0};
        fresh.gen = &opts;
        CHECK_INT(epctx_model_check_fresh(&model, "FakeEP", NULL, &fresh, &error), EPCTX_FRESH);
        opts.build_options = "speed=3";
        CHECK_INT(epctx_model_check_fresh(&model, "FakeEP", NULL, &fresh, &error), EPCTX_STALE);
    }
    epctx_model_close(&model);
}

/* A stamp is as hostile as its model. */
TEST(hostile_stamp) {
    static const struct {
        const char *stamp;
        epctx_freshness want;
    } cases[] = {{"", EPCTX_FRESH_UNKNOWN},
                 {"source", EPCTX_FRESH_UNKNOWN},
                 {"source 1 0 ../../etc/passwd", EPCTX_FRESH_UNKNOWN},
                 {"source 1 0 /etc/passwd", EPCTX_FRESH_UNKNOWN},
                 {"source 99999999999999999999999999 zzzz m_ctx.onnx", EPCTX_STALE},
                 {"data 1 1 ../x\n", EPCTX_FRESH_UNKNOWN},
                 {"source 3 0 x%", EPCTX_FRESH_UNKNOWN},
                 {"\n\n\n", EPCTX_FRESH_UNKNOWN},
                 {"options", EPCTX_FRESH_UNKNOWN},
                 {"binary", EPCTX_FRESH_UNKNOWN},
                 {"future word\nsource 0", EPCTX_FRESH_UNKNOWN},
                 {"epctx", EPCTX_FRESH_UNKNOWN},
                 {"epctx 2", EPCTX_FRESH_UNKNOWN},
                 {"epctx 3\nbinary 1 0123456789abcdef", EPCTX_FRESH_UNKNOWN},
                 {"epctx 99999999999999999999999\nbinary 1 0", EPCTX_FRESH_UNKNOWN},
                 {"epctx 2\nbinary", EPCTX_FRESH_UNKNOWN},
                 {"epctx 2\nbinary 18446744073709551616 x\ngraphs -1", EPCTX_FRESH_UNKNOWN},
                 {"epctx 2\nbeside\ngraphs 1", EPCTX_FRESH_UNKNOWN}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bytes b = source(0);
        epctx_model model;
        epctx_error error;
        clear_root();
        add_metadata(&b, "epctx.build.FakeEP", cases[i].stamp);
        save_bytes("m_ctx.onnx", &b);
        CHECK_INT(epctx_model_open_file(&model, at("m_ctx.onnx"), NULL, NULL), EPCTX_OK);
        CHECK(epctx_model_check_fresh(&model, "FakeEP", NULL, NULL, &error) == cases[i].want,
              "case %zu: %s", i, error.message);
        CHECK_TRUE(error.message[0] != '\0');
        epctx_model_close(&model);
    }
}

/* Annotations of values that are gone go with them; the parameters of others stay. */
TEST(annotations) {
    static const float one[1] = {1};
    fake f = {0};
    epctx_error error;
    epctx_model model;
    epctx_cursor it;
    epctx_annotation_view annotation;
    epctx_tensor_view tensor;
    bytes graph = {0};
    static const char *const values[] = {"a", "b"}, *const scales[] = {"sa", "sb"};
    clear_root();
    add_node(&graph, "Take", "n0", "x", "a");
    add_node(&graph, "Take", "n1", "a", "b");
    add_node(&graph, "Keep", "n2", "b", "y");
    add_x_and_y(&graph);
    for (int i = 0; i < 2; i++) {
        add_floats(&graph, scales[i], one, 1);
        add_scale(&graph, values[i], scales[i]);
    }
    save_model("m.onnx", &graph);
    CHECK_OK(generate(&f, NULL, NULL, NULL, &error), error);
    CHECK_INT(epctx_model_open_file(&model, at("m_ctx.onnx"), NULL, NULL), EPCTX_OK);
    it = epctx_graph_annotations(epctx_model_graph(&model));
    CHECK_TRUE(epctx_next_annotation(&it, &annotation) &&
               epctx_str_is(annotation.tensor_name, "b"));
    CHECK_TRUE(!epctx_next_annotation(&it, &annotation));
    it = epctx_view_graph_initializers(epctx_model_graph(&model));
    CHECK_TRUE(epctx_next_tensor(&it, &tensor) && epctx_str_is(tensor.name, "sb"));
    CHECK_TRUE(!epctx_next_tensor(&it, &tensor));
    epctx_model_close(&model);
}

/* -- hooks, and what the backend is told -- */

typedef struct told {
    int compile, write, cancels, cancel_at;
    uint64_t last, total;
    bool prepare_only;
    int setups;
} told;

static void told_progress(void *user, const char *work, uint64_t done, uint64_t total) {
    told *t = (told *)user;
    t->compile += strcmp(work, "compile") == 0;
    t->write += strcmp(work, "write") == 0;
    t->last = done;
    t->total = total;
}

static bool told_cancel(void *user) {
    told *t = (told *)user;
    return ++t->cancels == t->cancel_at;
}

static told *setup_target;

static epctx_status told_setup(void *self, void *build, const epctx_build_opts *opts,
                               epctx_error *error) {
    (void)self, (void)build, (void)error;
    setup_target->setups++;
    setup_target->prepare_only = opts->prepare_only;
    return opts->hooks != NULL ? EPCTX_OK : EPCTX_ERR_BACKEND;
}

/* Cancelled at every place where that is asked: nothing is left, nothing is replaced. */
TEST(hooks) {
    int n;
    for (n = 0; n < 50; n++) {
        fake f = {0};
        told t = {0};
        epctx_backend backend = fake_backend(&f);
        epctx_hooks hooks = {0};
        epctx_gen_opts opts = {0};
        epctx_model model;
        epctx_error error;
        epctx_status status;
        hooks.user = &t;
        hooks.progress_fn = told_progress;
        hooks.cancel_fn = told_cancel;
        t.cancel_at = n;
        backend.setup_fn = told_setup;
        setup_target = &t;
        opts.hooks = &hooks;
        opts.prepare_only = true;
        clear_root();
        make_source(0);
        CHECK_INT(epctx_model_open_file(&model, at("m.onnx"), NULL, NULL), EPCTX_OK);
        status = epctx_generate(&model, &backend, &opts, NULL, &error);
        epctx_model_close(&model);
        CHECK_INT(f.alive, 0);
        if (status == EPCTX_OK) {
            CHECK_INT(t.compile, 2);
            CHECK_INT(t.write, 2);
            CHECK_UINT(t.last, t.total);
            CHECK_INT(t.setups, 1);
            CHECK_TRUE(t.prepare_only);
            if (n > t.cancels) break;
            CHECK_INT(n, 0);
            continue;
        }
        CHECK_INT(status, EPCTX_ERR_CANCELLED);
        CHECK_STR(listing(), "m.onnx ");
    }
    CHECK(n > 3 && n < 50, "asked %d times", n);
}

/* `verify` finds a binary that its own backend does not load, before it is written. */
TEST(verify) {
    static const fake_step steps[] = {FAKE_LOAD, FAKE_FIND};
    for (size_t i = 0; i < 2; i++) {
        fake f = {0};
        epctx_gen_opts opts = {0};
        epctx_error error;
        f.fail = steps[i];
        opts.verify = true;
        clear_root();
        make_source(0);
        CHECK_INT(generate(&f, &opts, NULL, NULL, &error), EPCTX_ERR_BACKEND);
        CHECK_STR(listing(), "m.onnx ");
        CHECK_INT(f.alive, 0);
        f.fail = FAKE_NONE;
        CHECK_OK(generate(&f, &opts, NULL, NULL, &error), error);
        CHECK_INT(f.alive, 0);
    }
}

/* GetEpContextNodes: an EP without model bytes makes nodes and binary from plain records. */
TEST(context_nodes) {
    fake f = {0};
    epctx_backend backend = fake_backend(&f);
    epctx_ep_opts opts = {0};
    epctx_ep ep = {0};
    epctx_arena arena = {0};
    epctx_error error;
    epctx_graph piece = {0};
    epctx_value in, out;
    epctx_epnode node;
    const epctx_node *nodes;
    size_t count = 9;
    memset(&in, 0, sizeof in);
    epctx_ep_end(&ep);
    in.name = epctx_str_of("x");
    out = in;
    out.name = epctx_str_of("y");
    piece.inputs = &in;
    piece.input_count = 1;
    piece.outputs = &out;
    piece.output_count = 1;
    opts.binary = "m_fake.bin";
    opts.name_prefix = "p_";
    epctx_arena_init(&arena, NULL);
    CHECK_OK(epctx_ep_begin(&ep, &backend, &opts, 2, &arena, &error), error);
    CHECK_INT(epctx_ep_compile(&ep, &piece, &error), EPCTX_OK);
    CHECK_INT(epctx_ep_compile(&ep, &piece, &error), EPCTX_OK);
    CHECK_INT(epctx_ep_compile(&ep, &piece, &error), EPCTX_ERR_ARG); /* room for two */
    CHECK_HAS(error.message, "room for 2 pieces");
    nodes = epctx_ep_context_nodes(&ep, &count);
    CHECK_UINT(count, 0);
    CHECK_INT(epctx_ep_finish(&ep, &error), EPCTX_OK);
    CHECK_INT(epctx_ep_finish(&ep, &error), EPCTX_ERR_ARG); /* once */
    CHECK_INT(epctx_ep_compile(&ep, &piece, &error), EPCTX_ERR_ARG);
    CHECK_HAS(error.message, "no context under construction");
    nodes = epctx_ep_context_nodes(&ep, &count);
    CHECK_UINT(count, 2);
    CHECK_TRUE(epctx_ep_binary(&ep).size > 0);
    for (size_t i = 0; i < count; i++) {
        CHECK_INT(epctx_epnode_from_record(&nodes[i], &node, &error), EPCTX_OK);
        CHECK_INT(node.main_context, i == 0);
        CHECK_INT(node.embed_mode, 0);
        CHECK_TRUE(epctx_str_eq(node.name, node.partition_name));
        CHECK_TRUE(node.name.size > 2 && memcmp(node.name.data, "p_FakeEP_", 9) == 0);
        CHECK_TRUE(epctx_str_is(node.ep_cache_context, i == 0 ? "m_fake.bin" : ""));
        CHECK_TRUE(epctx_str_is(nodes[i].inputs[0], "x") && nodes[i].input_count == 1);
    }
    epctx_ep_end(&ep);
    epctx_ep_end(&ep);
    /* One that is given up is discarded. */
    CHECK_INT(epctx_ep_begin(&ep, &backend, &opts, 1, &arena, &error), EPCTX_OK);
    epctx_ep_end(&ep);
    CHECK_INT(f.alive, 0);
    /* What could not begin can be ended. */
    backend.version = 99;
    memset(&ep, 0xff, sizeof ep);
    CHECK_INT(epctx_ep_begin(&ep, &backend, &opts, 1, &arena, &error), EPCTX_ERR_ARG);
    epctx_ep_end(&ep);
    epctx_arena_free(&arena);
}

TEST(bad_arguments) {
    fake f = {0};
    epctx_backend backend = fake_backend(&f);
    epctx_loaded loaded = {0};
    epctx_model model = {0};
    epctx_error error;
    epctx_unload(&loaded);
    epctx_unload(NULL);
    CHECK_INT(epctx_generate(NULL, &backend, NULL, NULL, &error), EPCTX_ERR_ARG);
    CHECK_INT(epctx_generate(&model, &backend, NULL, NULL, &error), EPCTX_ERR_ARG);
    CHECK_INT(epctx_load(&loaded, &model, &backend, NULL, &error), EPCTX_ERR_ARG);
    backend.find_fn = NULL;
    CHECK_INT(epctx_load_nodes(&loaded, NULL, 0, &backend, NULL, &error), EPCTX_ERR_ARG);
    CHECK_HAS(error.message, "the backend has no find_fn");
    backend.version = 99;
    CHECK_INT(epctx_load(&loaded, &model, &backend, NULL, &error), EPCTX_ERR_ARG);
}

/* -- the contract with the backend -- */

static const int64_t typed_dims[] = {2};
static size_t typed_count;
static int64_t typed_size;
static epctx_status typed_status, sized_status, setup_status;

static epctx_status typed_fn(void *self, void *build, epctx_str name, const epctx_value **outputs,
                             size_t *count, epctx_error *error) {
    static epctx_value values[4];
    (void)self, (void)build, (void)name;
    memset(values, 0, sizeof values);
    for (size_t i = 0; i < 4; i++) {
        values[i].elem_type = EPCTX_ONNX_FLOAT;
        values[i].rank = i < 1; /* a vector, then scalars */
        values[i].dims = typed_dims;
    }
    *outputs = values;
    *count = typed_count;
    return typed_status == EPCTX_OK ? EPCTX_OK
                                    : epctx_fail(error, typed_status, "types_fn fails as told");
}

static epctx_status sized_fn(void *self, void *build, epctx_str name, int64_t *size,
                             epctx_error *error) {
    (void)self, (void)build, (void)name;
    *size = typed_size;
    return sized_status == EPCTX_OK ? EPCTX_OK
                                    : epctx_fail(error, sized_status, "max_size_fn fails as told");
}

static epctx_status setup_fn(void *self, void *build, const epctx_build_opts *opts,
                             epctx_error *error) {
    (void)self, (void)build, (void)opts;
    return setup_status == EPCTX_OK ? EPCTX_OK
                                    : epctx_fail(error, setup_status, "setup_fn fails as told");
}

/* A backend with every member that may be NULL. */
static epctx_backend full_backend(fake *f) {
    epctx_backend backend = fake_backend(f);
    backend.types_fn = typed_fn;
    backend.max_size_fn = sized_fn;
    backend.setup_fn = setup_fn;
    backend.weights_fn = fake_any_weights;
    backend.weightless = EPCTX_WEIGHTLESS_ALL;
    typed_count = 1;
    typed_size = 64;
    typed_status = sized_status = setup_status = EPCTX_OK;
    return backend;
}

/* x -> y, which is a vector. */
static epctx_graph small_piece(void) {
    static epctx_value in, out;
    epctx_graph piece = {0};
    memset(&in, 0, sizeof in);
    in.name = epctx_str_of("x");
    out = in;
    out.name = epctx_str_of("y");
    piece.inputs = &in;
    piece.input_count = 1;
    piece.outputs = &out;
    piece.output_count = 1;
    return piece;
}

static epctx_status compile_piece(const epctx_backend *backend, const epctx_ep_opts *opts,
                                  epctx_error *error) {
    epctx_graph piece = small_piece();
    epctx_arena arena;
    epctx_ep ep = {0};
    epctx_status status;
    epctx_arena_init(&arena, NULL);
    status = epctx_ep_begin(&ep, backend, opts, 1, &arena, error);
    if (status == EPCTX_OK) status = epctx_ep_compile(&ep, &piece, error);
    if (status == EPCTX_OK) status = epctx_ep_finish(&ep, error);
    epctx_ep_end(&ep);
    epctx_arena_free(&arena);
    return status;
}

/* The node has max_size if the backend has max_size_fn, also one of 0 bytes. */
TEST(max_size_of_a_node) {
    static const int64_t sizes[] = {64, 0, -1}; /* -1: the backend tells none */
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        fake f = {0};
        epctx_ep_opts opts = {0};
        epctx_error error;
        epctx_backend backend = full_backend(&f);
        epctx_graph piece = small_piece();
        epctx_arena arena;
        epctx_ep ep = {0};
        const epctx_node *nodes;
        const epctx_attr *attr;
        size_t count;
        opts.binary = "b.bin";
        typed_size = sizes[i];
        if (sizes[i] < 0) backend.max_size_fn = NULL;
        epctx_arena_init(&arena, NULL);
        CHECK_OK(epctx_ep_begin(&ep, &backend, &opts, 1, &arena, &error), error);
        CHECK_OK(epctx_ep_compile(&ep, &piece, &error), error);
        CHECK_OK(epctx_ep_finish(&ep, &error), error);
        nodes = epctx_ep_context_nodes(&ep, &count);
        CHECK_UINT(count, 1);
        attr = epctx_node_attr(&nodes[0], "max_size");
        CHECK((attr != NULL) == (sizes[i] >= 0), "max_size_fn %s", sizes[i] < 0 ? "none" : "given");
        if (attr != NULL) CHECK_INT(attr->i, sizes[i]);
        CHECK(epctx_node_attr(&nodes[0], "onnx_model_filename") == NULL, "without weights");
        epctx_ep_end(&ep);
        epctx_arena_free(&arena);
    }
}

TEST(backend_contract) {
    fake f = {0};
    epctx_hooks silent = {0};
    epctx_ep_opts opts = {0};
    epctx_error error;
    epctx_backend backend = full_backend(&f);
    opts.binary = "b.bin";
    opts.hooks = &silent; /* tells and asks nothing */
    CHECK_OK(compile_piece(&backend, &opts, &error), error);
    CHECK_INT(compile_piece(NULL, &opts, &error), EPCTX_ERR_ARG);
    backend.version++;
    CHECK_INT(compile_piece(&backend, &opts, &error), EPCTX_ERR_ARG);
    CHECK_HAS(error.message, "a backend of version");
    backend = full_backend(&f);
    backend.load_fn = NULL; /* only loading needs it */
    CHECK_OK(compile_piece(&backend, &opts, &error), error);
    backend.sdk_version = NULL;
    CHECK_INT(compile_piece(&backend, &opts, &error), EPCTX_ERR_ARG);
    CHECK_HAS(error.message, "the backend has no sdk_version");
    backend = full_backend(&f);
    typed_count = 2;
    CHECK_INT(compile_piece(&backend, &opts, &error), EPCTX_ERR_BACKEND);
    CHECK_HAS(error.message, "types_fn gave 2 outputs, expected 1");
    backend = full_backend(&f);
    typed_status = EPCTX_ERR_UNSUPPORTED;
    CHECK_INT(compile_piece(&backend, &opts, &error), EPCTX_ERR_UNSUPPORTED);
    backend = full_backend(&f);
    typed_size = -5;
    CHECK_INT(compile_piece(&backend, &opts, &error), EPCTX_ERR_BACKEND);
    CHECK_HAS(error.message, "max_size_fn gave -5 bytes");
    backend = full_backend(&f);
    sized_status = EPCTX_ERR_UNSUPPORTED;
    CHECK_INT(compile_piece(&backend, &opts, &error), EPCTX_ERR_UNSUPPORTED);
    backend = full_backend(&f);
    setup_status = EPCTX_ERR_UNSUPPORTED;
    CHECK_INT(compile_piece(&backend, &opts, &error), EPCTX_ERR_UNSUPPORTED);
    CHECK_HAS(error.message, "setup_fn fails as told");
    backend = fake_backend(&f);
    {
        epctx_graph piece = small_piece();
        epctx_arena arena;
        epctx_ep ep;
        epctx_arena_init(&arena, NULL);
        CHECK_INT(epctx_ep_begin(&ep, &backend, &opts, 2, &arena, &error), EPCTX_OK);
        CHECK_INT(epctx_ep_compile(&ep, &piece, &error), EPCTX_OK);
        CHECK_INT(epctx_ep_finish(&ep, &error), EPCTX_OK);
        CHECK_INT(epctx_ep_compile(&ep, &piece, &error), EPCTX_ERR_ARG); /* it is finished */
        epctx_ep_end(&ep);
        epctx_arena_free(&arena);
    }
    opts.weightless = EPCTX_WEIGHTLESS_ALL;
    CHECK_INT(compile_piece(&backend, &opts, &error), EPCTX_ERR_UNSUPPORTED);
    CHECK_INT(f.alive, 0);
}

/* Whatever a node's attribute holds is in the hash of the graph. */
TEST(hash_of_attributes) {
    static const int64_t ints[] = {1, 2};
    static const float floats[] = {1, 2};
    const epctx_str strings[] = {{"a", 1}, {"b", 1}};
    static const uint8_t raw[] = {1, 2, 3, 4};
    const uint64_t none = epctx_graph_hash(&(epctx_graph){0});
    uint64_t seen[6];
    for (size_t i = 0; i < 6; i++) {
        epctx_tensor tensor = {0};
        epctx_attr attr = {0};
        epctx_node node = {0};
        epctx_graph graph = {0};
        tensor.data = i == 5 ? raw : NULL;
        tensor.size = sizeof raw;
        attr.name = epctx_str_of("a");
        attr.type = i == 1   ? EPCTX_ATTR_INTS
                    : i == 2 ? EPCTX_ATTR_FLOATS
                    : i == 3 ? EPCTX_ATTR_STRINGS
                             : EPCTX_ATTR_TENSOR;
        attr.ints = ints;
        attr.floats = floats;
        attr.strings = strings;
        attr.count = i <= 3 ? 2 : 0; /* of a tensor it means nothing */
        attr.t = i >= 4 ? &tensor : NULL;
        node.attrs = &attr;
        node.attr_count = 1;
        graph.nodes = &node;
        graph.node_count = 1;
        seen[i] = epctx_graph_hash(&graph);
        CHECK_TRUE(seen[i] != none);
        for (size_t k = 0; k < i; k++)
            CHECK(seen[k] != seen[i], "attributes %zu and %zu have one hash", k, i);
    }
}

TEST(hash_in_notes) {
    CHECK_UINT(epctx_notes_hash(epctx_str_of("graph_hash=00000000000000ff")), 255);
    CHECK_UINT(epctx_notes_hash(epctx_str_of("graph_hash=00000000000000f")), 0);
    CHECK_UINT(epctx_notes_hash(epctx_str_of("other_hash=00000000000000ff")), 0);
    CHECK_UINT(epctx_notes_hash(epctx_str_of("graph_hash=00000000000000 f")), 0);
    CHECK_UINT(epctx_notes_hash(epctx_str_of("graph_hash=00000000000000gf")), 0);
    CHECK_UINT(epctx_notes_hash(epctx_str_of("graph_hash=00000000000000Ff")), 0);
}

/* -- nodes of other EPs, and nothing to compile -- */

/* Nodes x -> "other" -> Keep -> y, the first an EPContext node of another EP. */
static void make_foreign(const char *domain, int64_t main_context, int64_t embed, const char *cache,
                         bool keep) {
    bytes graph = {0}, node = new_node("EPContext", domain, "o", "x", keep ? "a" : "y"), b;
    add_attr_int(&node, "main_context", main_context);
    add_attr_int(&node, "embed_mode", embed);
    if (cache != NULL) add_attr_str(&node, "ep_cache_context", cache, strlen(cache));
    add_attr_str(&node, "source", "OtherEP", 7);
    put_child(&graph, 1, &node);
    if (keep) add_node(&graph, "Keep", "n1", "a", "y");
    add_x_and_y(&graph);
    b = new_model(&graph);
    add_opset(&b, domain, 1);
    save_bytes("m.onnx", &b);
}

static epctx_status keeps_fn(void *self, const epctx_graph *graph, size_t index,
                             epctx_error *error) {
    (void)self, (void)graph;
    return epctx_fail(error, EPCTX_ERR_UNSUPPORTED, "node %u is kept on purpose", (uint64_t)index);
}

TEST(why_nothing) {
    fake f = {0};
    epctx_backend backend = fake_backend(&f);
    epctx_gen_opts opts = {0};
    epctx_model model;
    epctx_error error;
    clear_root();
    /* The first node that could be compiled is blamed, with the backend's reason. */
    backend.explain_fn = keeps_fn;
    make_foreign("com.microsoft", 1, 1, "payload", true);
    CHECK_INT(epctx_model_open_file(&model, at("m.onnx"), NULL, NULL), EPCTX_OK);
    CHECK_INT(epctx_generate(&model, &backend, &opts, NULL, &error), EPCTX_ERR_NO_NODES);
    CHECK_HAS(error.message, "none of the 2 nodes: ");
    CHECK_HAS(error.message, "node 1 is kept on purpose");
    opts.require_all = true;
    CHECK_INT(epctx_generate(&model, &backend, &opts, NULL, &error), EPCTX_ERR_UNSUPPORTED);
    CHECK_HAS(error.message, "node 1 is kept on purpose");
    opts.require_all = false;
    epctx_model_close(&model);
    make_foreign("com.microsoft", 1, 1, "payload", false);
    CHECK_INT(epctx_model_open_file(&model, at("m.onnx"), NULL, NULL), EPCTX_OK);
    CHECK_INT(epctx_generate(&model, &backend, &opts, NULL, &error), EPCTX_ERR_NO_NODES);
    CHECK_HAS(error.message, "FakeEP compiles none of the 1 nodes");
    epctx_model_close(&model);
    make_foreign("org.example", 1, 1, "payload", false);
    CHECK_INT(generate(&f, &opts, NULL, NULL, &error), EPCTX_ERR_GRAPH);
    CHECK_HAS(error.message, "domain 'org.example', expected com.microsoft");
}

/* Another EP's binary has to be where the new model looks for it. */
TEST(foreign_binary) {
    fake f = {0};
    epctx_backend backend = fake_backend(&f);
    epctx_open_opts open = {0};
    epctx_gen_opts opts = {0};
    epctx_gen_report report;
    epctx_model model;
    epctx_error error;
    bytes b;
    char out[400], other[400];
    f.takes = "Keep";
    opts.overwrite = true;
    open.io = epctx_io_files();
    clear_root();
    CHECK_INT(mkdir(at("sub"), 0777), 0);
    /* A secondary node names no binary. */
    make_foreign("com.microsoft", 0, 0, NULL, true);
    CHECK_OK(generate(&f, &opts, &report, NULL, &error), error);
    make_foreign("com.microsoft", 1, 2, "o.bin", true);
    CHECK_INT(generate(&f, &opts, NULL, NULL, &error), EPCTX_ERR_GRAPH);
    CHECK_HAS(error.message, "must be 0 or 1");
    make_foreign("com.microsoft", 1, 0, "o.bin", true);
    CHECK_INT(generate(&f, &opts, NULL, NULL, &error), EPCTX_ERR_NOT_FOUND);
    make_file(at("o.bin"), "binary", 6);
    CHECK_OK(generate(&f, &opts, &report, NULL, &error), error);
    snprintf(out, sizeof out, "%s", at("sub/m_ctx.onnx"));
    opts.context_file_path = out;
    CHECK_INT(generate(&f, &opts, NULL, NULL, &error), EPCTX_ERR_PATH);
    CHECK_HAS(error.message, "needs 'o.bin' beside the model, which another EP made");
    /* A model from memory has no folder: what counts is the new model's. */
    b = read_file(at("m.onnx"));
    CHECK_INT(epctx_model_open_memory(&model, b.data, b.size, &open, NULL), EPCTX_OK);
    CHECK_INT(epctx_generate(&model, &backend, &opts, NULL, &error), EPCTX_ERR_NOT_FOUND);
    snprintf(other, sizeof other, "%s", at("sub/o.bin"));
    make_file(other, "binary", 6);
    CHECK_OK(epctx_generate(&model, &backend, &opts, &report, &error), error);
    CHECK_STR(report.context_path, out);
    epctx_model_close(&model);
    bytes_free(&b);
    remove(out);
    remove(other);
    remove(at("sub/m_ctx_fake.bin"));
    remove(at("sub/m_fake.bin"));
    CHECK_INT(rmdir(at("sub")), 0);
}

/* -- every allocation -- */

static void put_note(bytes *graph, const char *value, const char *scale) {
    static const float one[1] = {1};
    add_floats(graph, scale, one, 1);
    add_scale(graph, value, scale);
}

static void put_sparse(bytes *graph, const char *name) {
    static const float one[1] = {1};
    bytes sparse = {0}, values = {0}, indices = {0};
    const uint8_t zero[8] = {0};
    put_int(&values, 1, 1);
    put_int(&values, 2, EPCTX_ONNX_FLOAT);
    put_str(&values, 8, name);
    put_data(&values, 9, one, sizeof one);
    put_child(&sparse, 1, &values);
    put_int(&indices, 1, 1);
    put_int(&indices, 2, EPCTX_ONNX_INT64);
    put_data(&indices, 9, zero, sizeof zero);
    put_child(&sparse, 2, &indices);
    put_int(&sparse, 3, 2);
    put_child(graph, 15, &sparse);
}

/* Everything that generation rewrites: nodes that go, stay and move, weights in and out of files,
 * sparse ones, annotations, types, metadata, another EP's node, a body. */
static void make_everything(void) {
    static const int64_t dims[] = {2, -1};
    static const float two[2] = {1, 2}, outside[4] = {1, 2, 3, 4};
    bytes graph = {0}, model, other;
    make_file(at("w.data"), outside, sizeof outside);
    add_node(&graph, "Constant", "k", "", "kc");
    add_node(&graph, "Take", "n0", "x,w,kc", "a");
    add_node(&graph, "Keep", "n1", "a,kept,s1", "b");
    add_node(&graph, "Take", "n2", "a,far", "c");
    add_node(&graph, "Keep", "n3", "b,,c", "d");
    other = new_node("EPContext", "com.microsoft", "o", "d", "y");
    add_attr_int(&other, "main_context", 1);
    add_attr_int(&other, "embed_mode", 1);
    add_attr_str(&other, "ep_cache_context", "payload", 7);
    add_attr_str(&other, "source", "OtherEP", 7);
    put_child(&graph, 1, &other);
    put_str(&graph, 2, "main");
    add_floats(&graph, "w", two, 2);
    add_external(&graph, "kept", 2, "w.data", "8", "8");
    add_external(&graph, "far", 2, "w.data", "0", "8");
    put_sparse(&graph, "s0");
    put_sparse(&graph, "s1");
    add_value(&graph, GRAPH_INPUT, "x", EPCTX_ONNX_FLOAT, dims);
    add_value(&graph, GRAPH_INPUT, "w", EPCTX_ONNX_FLOAT, dims);
    add_value(&graph, GRAPH_OUTPUT, "y", EPCTX_ONNX_FLOAT, dims);
    add_value(&graph, GRAPH_VALUE, "b", EPCTX_ONNX_FLOAT, dims);
    add_value(&graph, GRAPH_VALUE, "far", EPCTX_ONNX_FLOAT, dims);
    put_note(&graph, "a", "sa");
    put_note(&graph, "far", "sf");
    model = new_model(&graph);
    add_metadata(&model, "epctx.build.GoneEP", "old");
    add_metadata(&model, "ep_compatibility_info.OtherEP", "new");
    add_opset(&model, "com.microsoft", 1);
    save_bytes("a%b=c.onnx", &model);
}

/* Allocation `n` fails, alone or with all that follow. Sees that the outcome is one of two:
 * everything is there (*whole, made by a run without `n`), or nothing has changed. */
static const char *starved(size_t n, bool once, const epctx_gen_opts *how, bytes *whole,
                           bool *done) {
    static char text[3000];
    fake f = {0};
    counting c = {0};
    epctx_allocator allocator = counting_allocator(&c);
    epctx_backend backend = full_backend(&f);
    epctx_open_opts open = {0};
    epctx_gen_opts opts = *how;
    epctx_error error;
    epctx_model model;
    epctx_status status;
    bytes before, after;
    bool same, right;
    open.allocator = opts.allocator = &allocator;
    f.takes = "Take,Constant";
    typed_count = 2;
    if (epctx_model_open_file(&model, at("a%b=c.onnx"), &open, NULL) != EPCTX_OK)
        return "the model cannot be opened";
    before = written(&model);
    c.fail_at = n > 0 ? c.calls + n : 0;
    c.once = once;
    status = epctx_generate(&model, &backend, &opts, NULL, &error);
    *done = c.calls < c.fail_at;
    c.fail_at = 0;
    after = written(&model);
    same = bytes_equal(&after, before.data, before.size);
    right = n == 0 || bytes_equal(&after, whole->data, whole->size);
    bytes_free(&before);
    epctx_model_close(&model);
    if (n == 0)
        *whole = after;
    else
        bytes_free(&after);
    if (c.alive != 0 || f.alive != 0) return "something is left";
    if (status == EPCTX_OK && !right) {
        snprintf(text, sizeof text, "allocation %zu%s: a success with another model", n,
                 once ? " alone" : "");
        return text;
    }
    if (status == EPCTX_OK) return same ? "nothing was generated" : NULL;
    if (status == EPCTX_ERR_NOMEM && same && strcmp(listing(), "a%b=c.onnx w.data ") == 0)
        return NULL;
    snprintf(text, sizeof text, "allocation %zu: %s, %s, files %s", n, error.message,
             same ? "the model is as before" : "the model has changed", listing());
    return text;
}

TEST(every_allocation) {
    for (int kind = 0; kind < 6; kind++) {
        epctx_gen_opts opts = {0};
        const char *wrong = NULL;
        bool done = false;
        bytes whole = {0};
        size_t n = 0;
        opts.overwrite = true;
        opts.initializers_file_name = kind % 3 > 0 ? "rest.data" : NULL;
        opts.weightless = kind % 3 == 1 ? EPCTX_WEIGHTLESS_ALL : EPCTX_WEIGHTLESS_NONE;
        opts.embed = kind % 3 == 1;
        for (; wrong == NULL && (n < 2 || !done) && n < 5000; n++) {
            clear_root();
            make_everything();
            wrong = starved(n, kind < 3, &opts, &whole, &done);
        }
        bytes_free(&whole);
        CHECK(wrong == NULL, "kind %d: %s", kind, wrong);
        CHECK(done && n > 3, "kind %d: %zu allocations", kind, n);
    }
}

/* What generation made of that model. */
TEST(everything) {
    fake f = {0};
    epctx_backend backend = full_backend(&f);
    epctx_model model;
    epctx_error error;
    epctx_cursor it;
    epctx_tensor_view tensor;
    epctx_str value;
    size_t sparse = 0;
    bytes file;
    f.takes = "Take,Constant";
    typed_count = 2;
    clear_root();
    make_everything();
    CHECK_INT(epctx_model_open_file(&model, at("a%b=c.onnx"), NULL, NULL), EPCTX_OK);
    CHECK_OK(epctx_generate(&model, &backend, NULL, NULL, &error), error);
    CHECK_STR(nodes_of(&model), "EPContext:x,w,->a,c,;Keep:a,kept,s1,->b,;Keep:b,,c,->d,;"
                                "EPContext:d,->y,;");
    it = epctx_view_graph_initializers(epctx_model_graph(&model));
    CHECK_TRUE(epctx_next_tensor(&it, &tensor) && epctx_str_is(tensor.name, "w"));
    CHECK_TRUE(epctx_next_tensor(&it, &tensor) && epctx_str_is(tensor.name, "kept"));
    CHECK_TRUE(epctx_next_tensor(&it, &tensor) && epctx_str_is(tensor.name, "sa"));
    CHECK_TRUE(!epctx_next_tensor(&it, &tensor));
    file = written(&model);
    sparse = occurrences(&file, "s0") * 10 + (size_t)bytes_contain(&file, "s1", 2);
    bytes_free(&file);
    CHECK_UINT(sparse, 1);
    CHECK_TRUE(!epctx_model_metadata(&model, epctx_str_of("epctx.build.GoneEP"), &value));
    CHECK_TRUE(epctx_model_metadata(&model, epctx_str_of("ep_compatibility_info.OtherEP"), &value));
    CHECK_TRUE(epctx_model_metadata(&model, epctx_str_of("epctx.build.FakeEP"), &value));
    CHECK_TRUE(memchr(value.data, '%', value.size) != NULL);
    epctx_model_close(&model);
    CHECK_INT(epctx_model_open_file(&model, at("a%b=c_ctx.onnx"), NULL, NULL), EPCTX_OK);
    CHECK(epctx_model_check_fresh(&model, "FakeEP", &backend, NULL, &error) == EPCTX_FRESH, "%s",
          error.message);
    backend.sdk_version = "2.0%\n";
    CHECK_INT(epctx_model_check_fresh(&model, "FakeEP", &backend, NULL, &error), EPCTX_STALE);
    epctx_model_close(&model);
}

/* A model as other writers make them: the name first, fields of an odd wire type, tensors of text
 * and of no elements. What is not understood stays. */
TEST(odd_model) {
    static const float two[2] = {1, 2};
    fake f = {0};
    epctx_gen_opts opts = {0};
    epctx_gen_report report;
    epctx_error error;
    bytes graph = {0}, model, text = {0}, file;
    put_str(&graph, 2, "the name comes first");
    add_node(&graph, "Take", "n0", "x,w", "a");
    add_node(&graph, "Keep", "n1", "a,words,none,kept", "y");
    add_floats(&graph, "w", two, 2);
    add_floats(&graph, "kept", two, 2);
    add_floats(&graph, "none", two, 0);
    put_int(&text, 1, 1);
    put_int(&text, 2, EPCTX_ONNX_STRING);
    put_str(&text, 6, "a word");
    put_str(&text, 8, "words");
    put_child(&graph, 5, &text);
    add_x_and_y(&graph);
    model = new_model(&graph);
    clear_root();
    save_bytes("m.onnx", &model);
    opts.initializers_file_name = "rest.data";
    CHECK_OK(generate(&f, &opts, &report, NULL, &error), error);
    CHECK_UINT(report.initializers_size, 8); /* "kept" alone */
    file = read_file(at("m_ctx.onnx"));
    CHECK_TRUE(bytes_contain(&file, "the name comes first", 20));
    CHECK_TRUE(bytes_contain(&file, "a word", 6));
    CHECK_UINT(occurrences(&file, "rest.data"), 1);
    bytes_free(&file);
}

/* An EP is known under several names: its metadata stays as long as one of its nodes does. */
TEST(metadata_of_a_known_ep) {
    static const char *const keys[] = {"ep_compatibility_info.QNN",
                                       "ep_compatibility_info.OpenVINO"};
    fake f = {0};
    epctx_error error;
    epctx_model model;
    epctx_str value;
    bytes graph = {0}, b;
    add_node(&graph, "Take", "n0", "x", "a");
    add_epnode(&graph, "o", "a", "y", 1, 1, "QNNExecutionProvider", "p", "payload", 7);
    add_x_and_y(&graph);
    b = new_model(&graph);
    add_opset(&b, "com.microsoft", 1);
    for (size_t i = 0; i < 2; i++) add_metadata(&b, keys[i], "info");
    clear_root();
    save_bytes("m.onnx", &b);
    CHECK_OK(generate(&f, NULL, NULL, NULL, &error), error);
    CHECK_INT(epctx_model_open_file(&model, at("m_ctx.onnx"), NULL, NULL), EPCTX_OK);
    CHECK_TRUE(epctx_model_metadata(&model, epctx_str_of(keys[0]), &value));
    CHECK_TRUE(!epctx_model_metadata(&model, epctx_str_of(keys[1]), &value));
    epctx_model_close(&model);
}

TEST(stamps_at_their_limits) {
    static const struct {
        size_t fill;
        const char *start, *message;
    } cases[] = {{EPCTX_PATH_MAX, "source 3 0 ", "too long"},
                 {3, "source 1/2 0 ", "is not there to compare with"},
                 {3, "source 1:2 0 ", "is not there to compare with"},
                 {0, "sdk 1", "SDK 1,"},
                 {0, "arch pap", "for pap,"},
                 {0, "arch papyrus", "for papyrus,"}};
    char name[400];
    epctx_error error;
    epctx_model model;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fake f = {0};
        epctx_backend backend = fake_backend(&f);
        bytes b = source(0), pair = {0}, stamp = {0};
        bytes_add(&stamp, cases[i].start, strlen(cases[i].start));
        for (size_t k = 0; k < cases[i].fill; k++) bytes_add(&stamp, "n", 1);
        put_str(&pair, 1, "epctx.build.FakeEP");
        put_child(&pair, 2, &stamp);
        put_child(&b, 14, &pair);
        clear_root();
        save_bytes("m_ctx.onnx", &b);
        CHECK_INT(epctx_model_open_file(&model, at("m_ctx.onnx"), NULL, NULL), EPCTX_OK);
        CHECK_TRUE(epctx_model_check_fresh(&model, "FakeEP", &backend, NULL, &error) !=
                   EPCTX_FRESH);
        CHECK_HAS(error.message, cases[i].message);
        if (i == 0) {
            memset(name, 'e', sizeof name);
            name[sizeof name - 1] = '\0';
            CHECK_INT(epctx_model_check_fresh(&model, name, &backend, NULL, &error),
                      EPCTX_FRESH_UNKNOWN);
        }
        epctx_model_close(&model);
    }
}

/* A source of another size is told from one with other bytes, and not read. */
static int maps_counted; /* of the source */

static epctx_status counting_map(void *user, const char *folder, const char *name, bool copy,
                                 epctx_mapping *out, epctx_error *error) {
    maps_counted += strcmp(name, at("m.onnx")) == 0;
    return epctx_io_files()->map_fn(user, folder, name, copy, out, error);
}

/* The model was written after the source was changed, or before. */
static uint64_t source_changed;

static epctx_status told_times(void *user, const char *path, epctx_file_info *info,
                               epctx_error *error) {
    epctx_status status = epctx_io_files()->stat_fn(user, path, info, error);
    info->written = strstr(path, "_ctx") != NULL ? 100 : 1;
    info->changed = strstr(path, "_ctx") != NULL ? 100 : source_changed;
    return status;
}

TEST(fresh_by_size_and_time) {
    static const struct {
        bool fast;
        uint64_t changed;
        int maps;
    } cases[] = {{false, 99, 1}, {true, 99, 0}, {true, 100, 1}, {true, 101, 1}, {true, 0, 1}};
    fake f = {0};
    epctx_io io = *epctx_io_files();
    epctx_open_opts open = {0};
    epctx_model model;
    epctx_error error;
    bytes b;
    clear_root();
    make_source(0);
    CHECK_INT(generate(&f, NULL, NULL, NULL, &error), EPCTX_OK);
    io.map_fn = counting_map;
    io.stat_fn = told_times;
    open.io = &io;
    CHECK_INT(epctx_model_open_file(&model, at("m_ctx.onnx"), &open, NULL), EPCTX_OK);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        epctx_fresh_opts opts = {0};
        opts.fast = cases[i].fast;
        source_changed = cases[i].changed;
        maps_counted = 0;
        CHECK(epctx_model_check_fresh(&model, "FakeEP", NULL, &opts, &error) == EPCTX_FRESH, "%s",
              error.message);
        CHECK(maps_counted == cases[i].maps, "case %zu: the source was mapped %d times", i,
              maps_counted);
    }
    {
        static char path[EPCTX_PATH_MAX + 1];
        epctx_fresh_opts opts = {0};
        memset(path, 'p', EPCTX_PATH_MAX);
        opts.source_path = path;
        CHECK_INT(epctx_model_check_fresh(&model, "FakeEP", NULL, &opts, &error),
                  EPCTX_FRESH_UNKNOWN);
        CHECK_HAS(error.message, "a path is longer than");
    }
    b = read_file(at("m.onnx"));
    put_str(&b, 6, "a longer source");
    make_file(at("m.onnx"), b.data, b.size);
    maps_counted = 0;
    CHECK_INT(epctx_model_check_fresh(&model, "FakeEP", NULL, NULL, &error), EPCTX_STALE);
    CHECK_HAS(error.message, "it was compiled from");
    CHECK_INT(maps_counted, 0);
    epctx_model_close(&model);
    bytes_free(&b);
}

/* What the messages of the loader say that its status does not. */
TEST(load_says_what_is_missing) {
    fake f = {0};
    epctx_backend backend = fake_backend(&f);
    epctx_model model;
    epctx_loaded loaded;
    epctx_error error;
    bytes graph = {0}, node, b;
    clear_root();
    make_context(1, 1, "FakeEP", "part", "");
    CHECK_INT(epctx_status_to_ort(load(&f, at("h_ctx.onnx"), &error)), 10);
    CHECK_HAS(error.message, "is empty: main_context 1");
    make_context(0, 0, "FakeEP", "part", NULL);
    CHECK_INT(epctx_status_to_ort(load(&f, at("h_ctx.onnx"), &error)), 10);
    CHECK_HAS(error.message, "no node of source 'FakeEP'");
    /* An attribute "source" makes no EPContext node. */
    make_file(at("h.bin"), good_binary, sizeof good_binary - 1);
    add_epnode(&graph, "good", "x", "y", 1, 0, "FakeEP", "part", "h.bin", 5);
    node = new_node("Keep", "", "kept", "y", "z");
    add_attr_str(&node, "source", "FakeEP", 6);
    put_child(&graph, 1, &node);
    b = new_model(&graph);
    make_file(at("h_ctx.onnx"), b.data, b.size);
    CHECK_INT(epctx_model_open_file(&model, at("h_ctx.onnx"), NULL, NULL), EPCTX_OK);
    CHECK_OK(epctx_load(&loaded, &model, &backend, NULL, &error), error);
    CHECK_UINT(loaded.bound_count, 1);
    epctx_unload(&loaded);
    epctx_model_close(&model);
    bytes_free(&b);
}

TEST(generate_arguments) {
    fake f = {0};
    epctx_backend backend = fake_backend(&f);
    epctx_model model;
    epctx_error error;
    bytes graph = {0}, b;
    clear_root();
    add_epnode(&graph, "o", "x", "y", 1, 1, NULL, "p", "payload", 7);
    add_x_and_y(&graph);
    b = new_model(&graph);
    add_opset(&b, "com.microsoft", 1);
    save_bytes("m.onnx", &b);
    /* A node that names no EP may be this one's. */
    CHECK_INT(generate(&f, NULL, NULL, NULL, &error), EPCTX_ERR_GRAPH);
    CHECK_HAS(error.message, "is compiled already");
    CHECK_INT(epctx_model_open_file(&model, at("m.onnx"), NULL, NULL), EPCTX_OK);
    CHECK_INT(epctx_generate(&model, NULL, NULL, NULL, NULL), EPCTX_ERR_ARG);
    backend.version++;
    CHECK_INT(epctx_generate(&model, &backend, NULL, NULL, &error), EPCTX_ERR_ARG);
    CHECK_HAS(error.message, "a backend of version");
    epctx_model_close(&model);
}

/* A graph output without a type, as ONNX allows it: ORT cannot infer it behind an EPContext
 * node. */
TEST(untyped_output) {
    static const int64_t dims[] = {2, -1};
    fake f = {0};
    epctx_backend backend = full_backend(&f);
    epctx_gen_opts opts = {0};
    epctx_error error;
    epctx_model model;
    epctx_cursor values;
    epctx_value_view value;
    struct stat info;
    bytes graph = {0}, output = {0};
    clear_root();
    add_node(&graph, "Take", "n0", "x", "y");
    put_str(&graph, 2, "main");
    add_value(&graph, GRAPH_INPUT, "x", EPCTX_ONNX_FLOAT, dims);
    put_str(&output, 1, "y");
    put_child(&graph, GRAPH_OUTPUT, &output);
    save_model("m.onnx", &graph);
    CHECK_INT(epctx_model_open_file(&model, at("m.onnx"), NULL, NULL), EPCTX_OK);
    CHECK_OK(epctx_generate(&model, &backend, &opts, NULL, &error), error);
    values = epctx_view_graph_values(epctx_model_graph(&model));
    CHECK_TRUE(epctx_next_value(&values, &value));
    CHECK_TRUE(epctx_str_is(value.name, "y"));
    CHECK_INT(value.elem_type, EPCTX_ONNX_FLOAT);
    epctx_model_close(&model);
    /* Without a type from the backend ORT would refuse the model. */
    remove(at("m_ctx.onnx"));
    backend.types_fn = NULL;
    opts.overwrite = true;
    CHECK_INT(epctx_model_open_file(&model, at("m.onnx"), NULL, NULL), EPCTX_OK);
    CHECK_INT(epctx_generate(&model, &backend, &opts, NULL, &error), EPCTX_ERR_UNSUPPORTED);
    CHECK_HAS(error.message, "output 'y' of a partition has no type");
    CHECK_TRUE(lstat(at("m_ctx.onnx"), &info) != 0);
    epctx_model_close(&model);
}

/* A group without its workspace would be an ordinary model; a backend without a member, a crash. */
TEST(generate_without) {
    fake f = {0};
    epctx_backend backend = full_backend(&f);
    epctx_gen_opts opts = {0};
    epctx_error error;
    epctx_model model;
    make_bodies();
    CHECK_INT(epctx_model_open_file(&model, at("m.onnx"), NULL, NULL), EPCTX_OK);
    opts.stop = true;
    CHECK_INT(epctx_generate(&model, &backend, &opts, NULL, &error), EPCTX_ERR_ARG);
    CHECK_HAS(error.message, "need a `workspace`");
    opts.stop = false;
    opts.group = "g";
    CHECK_INT(epctx_generate(&model, &backend, &opts, NULL, &error), EPCTX_ERR_ARG);
    CHECK_HAS(error.message, "need a `workspace`");
    opts.group = NULL;
    opts.verify = true;
    backend.unload_fn = NULL;
    CHECK_INT(epctx_generate(&model, &backend, &opts, NULL, &error), EPCTX_ERR_ARG);
    CHECK_HAS(error.message, "the backend has no unload_fn");
    backend.compile_fn = NULL;
    CHECK_INT(epctx_generate(&model, &backend, &opts, NULL, &error), EPCTX_ERR_ARG);
    CHECK_HAS(error.message, "the backend has no compile_fn");
    epctx_model_close(&model);
}

typedef struct refusals {
    fake fake; /* first: what the backend knows itself by */
    int asked, told, others, in_its_words, beside;
} refusals;

static epctx_status explains_node(void *self, const epctx_graph *graph, size_t index,
                                  epctx_error *error) {
    refusals *r = self;
    r->asked++;
    return epctx_fail(error, EPCTX_ERR_UNSUPPORTED, "no unit for '%S'", &graph->nodes[index].name);
}

static void hears_refusal(void *user, const epctx_node *node, const epctx_error *why) {
    refusals *r = user;
    r->told += epctx_str_is(node->op_type, "Keep");
    r->others += !epctx_str_is(node->op_type, "Keep");
    r->in_its_words += strstr(why->message, "no unit for 'k") != NULL;
    r->beside += strstr(why->message, "has only constant inputs") != NULL;
}

/* Every node that stays is told; the backend is not asked without end. */
TEST(tells_why_nodes_stay) {
    refusals r = {0};
    epctx_backend backend = full_backend(&r.fake);
    epctx_gen_opts opts = {0};
    epctx_hooks hooks = {0};
    epctx_error error;
    epctx_model model;
    bytes graph = {0};
    char text[3][16];
    backend.explain_fn = explains_node;
    hooks.user = &r;
    hooks.refused_fn = hears_refusal;
    opts.hooks = &hooks;
    clear_root();
    add_node(&graph, "Take", "n0", "x", "v0");
    for (int i = 0; i < 300; i++) {
        snprintf(text[0], sizeof text[0], "k%d", i);
        snprintf(text[1], sizeof text[1], "v%d", i);
        snprintf(text[2], sizeof text[2], i < 299 ? "v%d" : "y", i + 1);
        add_node(&graph, "Keep", text[0], text[1], text[2]);
    }
    add_epnode(&graph, "done", "x", "z", 1, 1, "QNNExecutionProvider", "p", "context", 7);
    add_x_and_y(&graph);
    save_model("m.onnx", &graph);
    CHECK_INT(epctx_model_open_file(&model, at("m.onnx"), NULL, NULL), EPCTX_OK);
    CHECK_OK(epctx_generate(&model, &backend, &opts, NULL, &error), error);
    CHECK_INT(r.told, 300);
    CHECK_INT(r.others, 0);
    CHECK_INT(r.asked, 200);
    CHECK_INT(r.in_its_words, 200);
    epctx_model_close(&model);
}

/* Constants: one that the graph gives out is compiled, one that a node reads that stays, too, stays
 * beside it. What is told is what stays. */
TEST(constants_given_out) {
    static const float two[2] = {1, 2};
    refusals r = {0};
    epctx_backend backend = fake_backend(&r.fake);
    epctx_gen_opts opts = {0};
    epctx_gen_report report;
    epctx_hooks hooks = {0};
    epctx_error error;
    epctx_model model;
    for (int round = 0; round < 3; round++) {
        bytes graph = {0};
        memset(&r, 0, sizeof r);
        hooks.user = &r;
        hooks.refused_fn = hears_refusal;
        opts.hooks = &hooks;
        clear_root();
        add_node(&graph, "Take", "c0", "k", round < 2 ? "y" : "c");
        if (round > 0) add_node(&graph, "Take", "n1", round == 1 ? "x,y" : "x,c", "a");
        if (round == 2) add_node(&graph, "Take", "c2", "c", "c2");
        if (round == 2) add_node(&graph, "Keep", "n3", "a,c2", "y");
        add_x_and_y(&graph);
        if (round == 1) add_value(&graph, GRAPH_OUTPUT, "a", EPCTX_ONNX_FLOAT, NULL);
        if (round == 2) add_value(&graph, GRAPH_OUTPUT, "c", EPCTX_ONNX_FLOAT, NULL);
        add_floats(&graph, "k", two, 2);
        save_model("m.onnx", &graph);
        CHECK_INT(epctx_model_open_file(&model, at("m.onnx"), NULL, NULL), EPCTX_OK);
        CHECK_OK(epctx_generate(&model, &backend, &opts, &report, &error), error);
        CHECK_STR(r.fake.log, round == 0 ? "->y;" : round == 1 ? "x->y,a;" : "x->a;");
        CHECK_UINT(report.cpu_nodes, round < 2 ? 0 : 3);
        CHECK_UINT((size_t)(r.told + r.others), report.cpu_nodes);
        CHECK_INT(r.beside, round < 2 ? 0 : 2);
        CHECK_UINT(report.compiled_nodes, round < 2 ? (size_t)round + 1 : 1);
        epctx_model_close(&model);
    }
}

static epctx_status infers_b(void *self, const epctx_graph *graph, epctx_arena *arena,
                             epctx_value **values, size_t *count, epctx_error *error) {
    static const int64_t dims[1] = {5};
    fake *f = self;
    (void)graph;
    *count = 1;
    *values = epctx_arena_array(arena, 1, sizeof **values);
    if (*values == NULL) return epctx_fail(error, EPCTX_ERR_NOMEM, "no memory for a type");
    if (fake_fails(f, FAKE_CAPABILITY)) return fake_failure(error);
    (*values)[0].name = epctx_str_of("b");
    (*values)[0].elem_type = EPCTX_ONNX_FLOAT;
    (*values)[0].rank = 1;
    (*values)[0].dims = dims;
    return EPCTX_OK;
}

static epctx_status takes_behind_b(void *self, const epctx_graph *graph, uint8_t *take,
                                   epctx_error *error) {
    bool known = false;
    for (size_t i = 0; i < graph->value_count; i++)
        known = known || (epctx_str_is(graph->values[i].name, "b") && graph->values[i].rank == 1);
    (void)self;
    (void)error;
    take[1] = known;
    return EPCTX_OK;
}

/* What the backend infers is the graph's when it is asked what it takes. */
TEST(infers_types) {
    fake f = {0};
    epctx_backend backend = fake_backend(&f);
    epctx_gen_opts opts = {0};
    epctx_gen_report report;
    epctx_error error;
    epctx_model model;
    bytes graph = {0};
    opts.overwrite = true;
    backend.infer_fn = infers_b;
    backend.capability_fn = takes_behind_b;
    clear_root();
    add_node(&graph, "Keep", "n0", "x", "b");
    add_node(&graph, "Take", "n1", "b", "y");
    add_x_and_y(&graph);
    save_model("m.onnx", &graph);
    CHECK_INT(epctx_model_open_file(&model, at("m.onnx"), NULL, NULL), EPCTX_OK);
    CHECK_OK(epctx_generate(&model, &backend, NULL, &report, &error), error);
    CHECK_UINT(report.compiled_nodes, 1);
    epctx_model_close(&model);
    for (size_t n = 1; n < 100; n++) {
        counting c = {0};
        epctx_allocator allocator = counting_allocator(&c);
        epctx_status status;
        opts.allocator = &allocator;
        c.fail_at = n;
        CHECK_INT(epctx_model_open_file(&model, at("m.onnx"), NULL, NULL), EPCTX_OK);
        status = epctx_generate(&model, &backend, &opts, NULL, &error);
        epctx_model_close(&model);
        CHECK_UINT(c.alive, 0);
        if (status == EPCTX_OK) break;
        CHECK_INT(status, EPCTX_ERR_NOMEM);
    }
    opts.allocator = NULL;
    f.fail = FAKE_CAPABILITY;
    CHECK_INT(epctx_model_open_file(&model, at("m.onnx"), NULL, NULL), EPCTX_OK);
    CHECK_INT(epctx_generate(&model, &backend, &opts, NULL, &error), EPCTX_ERR_BACKEND);
    epctx_model_close(&model);
}

int main(int argc, char **argv) {
    if (!make_root()) return 1;
    RUN(tells_why_nodes_stay);
    RUN(constants_given_out);
    RUN(infers_types);
    RUN(two_partitions);
    RUN(loads_again);
    RUN(embedded);
    RUN(load_after_generate);
    RUN(names_and_prefix);
    RUN(preflight);
    RUN(folder_as_path);
    RUN(binary_over_source);
    RUN(overwrite);
    RUN(linked_output);
    RUN(new_node_moves);
    RUN(nothing_to_compile);
    RUN(unread_results);
    RUN(compiled_already);
    RUN(singular_field_twice);
    RUN(two_gigabytes);
    RUN(failing_backend);
    RUN(empty_binary);
    RUN(initializers_as_inputs);
    RUN(optional_inputs);
    RUN(failing_io_fresh);
    RUN(failing_io_replace);
    RUN(allocator_fails);
    RUN(load_by_hand);
    RUN(load_malformed_node_of_another);
    RUN(load_refused);
    RUN(load_embedded_empty);
    RUN(load_lonely_secondary);
    RUN(load_from_memory);
    RUN(folder_as_path_of_a_model);
    RUN(load_other_generation);
    RUN(load_other_body);
    RUN(names_without_a_stamp);
    RUN(names_in_a_binary_of_one_graph);
    RUN(names_in_a_binary_of_two_graphs);
    RUN(names_in_a_shared_binary);
    RUN(names_in_a_wrapped_binary);
    RUN(load_failing_backend);
    RUN(load_allocator_fails);
    RUN(two_eps);
    RUN(two_eps_files);
    RUN(bodies);
    RUN(initializers_file);
    RUN(subfolder);
    RUN(three_folders);
    RUN(no_nodes_policy);
    RUN(stale_metadata);
    RUN(stamp);
    RUN(hostile_stamp);
    RUN(annotations);
    RUN(hooks);
    RUN(verify);
    RUN(context_nodes);
    RUN(bad_arguments);
    RUN(backend_contract);
    RUN(max_size_of_a_node);
    RUN(hash_of_attributes);
    RUN(hash_in_notes);
    RUN(why_nothing);
    RUN(foreign_binary);
    RUN(every_allocation);
    RUN(everything);
    RUN(odd_model);
    RUN(metadata_of_a_known_ep);
    RUN(stamps_at_their_limits);
    RUN(fresh_by_size_and_time);
    RUN(load_says_what_is_missing);
    RUN(generate_arguments);
    RUN(untyped_output);
    RUN(generate_without);
    remove_root();
    return test_end();
}
