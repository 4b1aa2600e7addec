/* >>gen and >>load: a model becomes an EPContext model and is loaded again, with a backend that
 * only writes down what it is asked. */
#define _XOPEN_SOURCE 700
#include "fake.h"
#include "flaky.h"
#include "test.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[64];

static const char *at(const char *name)
{
    static char path[32][400]; /* a name lives for the next 31 calls */
    static int turn;
    turn = (turn + 1) % 32;
    snprintf(path[turn], sizeof path[turn], "%s/%s", root, name);
    return path[turn];
}

static void make_file(const char *path, const void *data, size_t size)
{
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(data, 1, size, file) != size || fclose(file) != 0) abort();
}

static bytes read_file(const char *path)
{
    bytes b = {0};
    char block[4096];
    size_t size;
    FILE *file = fopen(path, "rb");
    while (file != NULL && (size = fread(block, 1, sizeof block, file)) > 0)
        bytes_add(&b, block, size);
    if (file != NULL) fclose(file);
    return b;
}

/* Names in the root folder, sorted, each with a blank behind it. */
static const char *listing(void)
{
    static char text[2000];
    struct dirent **entries;
    int count = scandir(root, &entries, NULL, alphasort);
    text[0] = '\0';
    for (int i = 0; i < count; i++) {
        if (entries[i]->d_name[0] != '.' || strlen(entries[i]->d_name) > 2) {
            strcat(text, entries[i]->d_name);
            strcat(text, " ");
        }
        free(entries[i]);
    }
    if (count >= 0) free(entries);
    return text;
}

static void clear_root(void)
{
    struct dirent **entries;
    int count = scandir(root, &entries, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        remove(at(entries[i]->d_name));
        free(entries[i]);
    }
    if (count >= 0) free(entries);
}

/* x -> Take -> Take -> Keep -> Take -> y: two partitions around a node that stays; `first` makes
 * one generation differ from another. */
static bytes source(float first)
{
    static const int64_t dims[] = {2, -1};
    bytes graph = {0}, model, function = {0};
    float weights[2] = {0, 1};
    weights[0] = first;
    add_node(&graph, "Take", "n0", "x,w", "a");
    add_node(&graph, "Take", "n1", "a,x2", "b,b2");
    add_node(&graph, "Keep", "n2", "b,k", "c");
    add_node(&graph, "Take", "n3", "c,b2,w", "y");
    put_str(&graph, 2, "main");
    add_value(&graph, GRAPH_INPUT, "x", EPCTX_ONNX_FLOAT, dims);
    add_value(&graph, GRAPH_INPUT, "x2", EPCTX_ONNX_FLOAT, dims);
    add_value(&graph, GRAPH_OUTPUT, "y", EPCTX_ONNX_FLOAT, dims);
    add_value(&graph, GRAPH_VALUE, "a", EPCTX_ONNX_FLOAT, dims);
    add_value(&graph, GRAPH_VALUE, "b", EPCTX_ONNX_FLOAT, dims);
    add_floats(&graph, "w", weights, 2);
    add_floats(&graph, "k", weights, 2);
    put_str(&graph, 1001, "unknown in the graph");
    model = new_model(&graph);
    put_str(&model, 6, "doc of the model");
    put_str(&function, 1, "my_function");
    put_child(&model, 25, &function);
    return model;
}

static void make_source(float first)
{
    bytes b = source(first);
    make_file(at("m.onnx"), b.data, b.size);
    bytes_free(&b);
}

static epctx_status generate(fake *f, const epctx_gen_opts *opts, epctx_gen_report *report,
                             const epctx_io *io, epctx_error *error)
{
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

static epctx_status load(fake *f, const char *path, epctx_error *error)
{
    epctx_backend backend = fake_backend(f);
    epctx_model model;
    epctx_loaded loaded;
    epctx_status status = epctx_model_open_file(&model, path, NULL, error);
    if (status != EPCTX_OK) return status;
    status = epctx_load(&loaded, &model, &backend, NULL, error);
    epctx_unload(&loaded);
    epctx_unload(&loaded);
    epctx_model_close(&model);
    return status;
}

/* "name(op):in,in->out,out;" for the nodes of the main graph. */
static const char *nodes_of(const epctx_model *model)
{
    static char text[2000];
    epctx_cursor it = epctx_graph_nodes(epctx_model_graph(model)), names;
    epctx_node_view node;
    epctx_str s;
    text[0] = '\0';
    while (epctx_next_node(&it, &node)) {
        strncat(text, node.op_type.data, node.op_type.size);
        strcat(text, ":");
        names = epctx_node_inputs(&node);
        while (epctx_next_str(&names, &s)) {
            strncat(text, s.data, s.size);
            strcat(text, ",");
        }
        strcat(text, "->");
        names = epctx_node_outputs(&node);
        while (epctx_next_str(&names, &s)) {
            strncat(text, s.data, s.size);
            strcat(text, ",");
        }
        strcat(text, ";");
    }
    return text;
}

TEST(two_partitions)
{
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
    f.takes = "Take";
    clear_root();
    make_source(0);
    CHECK(generate(&f, NULL, &report, NULL, &error) == EPCTX_OK, "%s", error.message);
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
    it = epctx_graph_nodes(epctx_model_graph(&model));
    while (epctx_next_node(&it, &node))
        if (epctx_is_epnode(&node))
            CHECK_INT(epctx_epnode_read(&node, &ep[count++], &error), EPCTX_OK);
    CHECK_UINT(count, 2);
    CHECK_INT(ep[0].main_context, 1);
    CHECK_INT(ep[1].main_context, 0);
    CHECK_INT(ep[0].embed_mode, 0);
    CHECK_TRUE(epctx_str_is(ep[0].ep_cache_context, "m_fake.bin"));
    CHECK_TRUE((ep[1].present & 1u << EPCTX_EP_EP_CACHE_CONTEXT) == 0);
    /* The option defaults to 0, the attribute to 1: it is always written. */
    CHECK_TRUE((ep[0].present & 1u << EPCTX_EP_EMBED_MODE) != 0);
    CHECK_TRUE(epctx_str_is(ep[0].source, "FakeEP") && epctx_str_is(ep[1].source, "FakeEP"));
    CHECK_TRUE(epctx_str_is(ep[0].ep_sdk_version, "1.0"));
    CHECK_TRUE(epctx_str_is(ep[0].hardware_architecture, "paper"));
    CHECK_TRUE(epctx_str_eq(ep[0].partition_name, ep[0].name));
    CHECK_TRUE(!epctx_str_eq(ep[0].name, ep[1].name));
    CHECK_TRUE(epctx_notes_hash(ep[0].notes) != 0);
    CHECK_TRUE(epctx_notes_hash(ep[0].notes) != epctx_notes_hash(ep[1].notes));
    CHECK_INT(epctx_model_opset(&model, epctx_str_of("com.microsoft")), 1);
    /* Only the weight that the remaining node reads is left. */
    it = epctx_graph_initializers(epctx_model_graph(&model));
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

TEST(loads_again)
{
    fake f = {0};
    epctx_backend backend;
    epctx_model model;
    epctx_loaded loaded;
    epctx_error error;
    f.takes = "Take";
    clear_root();
    make_source(0);
    CHECK_INT(generate(&f, NULL, NULL, NULL, &error), EPCTX_OK);
    backend = fake_backend(&f);
    CHECK_INT(epctx_model_open_file(&model, at("m_ctx.onnx"), NULL, NULL), EPCTX_OK);
    CHECK(epctx_load(&loaded, &model, &backend, NULL, &error) == EPCTX_OK, "%s", error.message);
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

TEST(embedded)
{
    fake f = {0};
    epctx_gen_opts opts = {0};
    epctx_gen_report report;
    epctx_error error;
    epctx_model model;
    epctx_node_view node;
    epctx_epnode ep;
    epctx_cursor it;
    bytes b;
    f.takes = "Take";
    opts.embed = true;
    clear_root();
    make_source(0);
    CHECK(generate(&f, &opts, &report, NULL, &error) == EPCTX_OK, "%s", error.message);
    CHECK_STR(listing(), "m.onnx m_ctx.onnx ");
    CHECK_STR(report.binary_path, "");
    /* Also from memory, where there is no folder. */
    b = read_file(at("m_ctx.onnx"));
    CHECK_INT(epctx_model_open_memory(&model, b.data, b.size, NULL, NULL), EPCTX_OK);
    it = epctx_graph_nodes(epctx_model_graph(&model));
    CHECK_TRUE(epctx_next_node(&it, &node));
    CHECK_INT(epctx_epnode_read(&node, &ep, NULL), EPCTX_OK);
    CHECK_INT(ep.embed_mode, 1);
    CHECK_UINT(ep.ep_cache_context.size, report.binary_size);
    CHECK_TRUE(memcmp(ep.ep_cache_context.data, "FAKE1\n2\n", 8) == 0);
    {
        epctx_backend backend = fake_backend(&f);
        epctx_loaded loaded;
        CHECK(epctx_load(&loaded, &model, &backend, NULL, &error) == EPCTX_OK, "%s", error.message);
        epctx_unload(&loaded);
    }
    epctx_model_close(&model);
    bytes_free(&b);
    CHECK_INT(f.alive, 0);
}

/* The model after epctx_generate can be loaded as it is. */
TEST(load_after_generate)
{
    for (int embed = 0; embed < 2; embed++) {
        fake f = {0};
        epctx_backend backend = fake_backend(&f);
        epctx_gen_opts opts = {0};
        epctx_model model;
        epctx_loaded loaded;
        epctx_error error;
        f.takes = "Take";
        opts.embed = embed;
        clear_root();
        make_source(0);
        CHECK_INT(epctx_model_open_file(&model, at("m.onnx"), NULL, NULL), EPCTX_OK);
        CHECK(epctx_generate(&model, &backend, &opts, NULL, &error) == EPCTX_OK, "%s",
              error.message);
        CHECK(epctx_load(&loaded, &model, &backend, NULL, &error) == EPCTX_OK, "%s", error.message);
        CHECK_UINT(loaded.bound_count, 2);
        epctx_unload(&loaded);
        epctx_model_close(&model);
        CHECK_INT(f.alive, 0);
    }
}

TEST(names_and_prefix)
{
    fake f = {0};
    epctx_gen_opts opts = {0};
    epctx_gen_report report;
    epctx_error error;
    epctx_model model;
    epctx_node_view node;
    epctx_cursor it;
    bytes binary;
    f.takes = "Take";
    opts.name_prefix = "modelA_";
    opts.context_file_path = at("other_ctx.onnx");
    clear_root();
    make_source(0);
    CHECK(generate(&f, &opts, &report, NULL, &error) == EPCTX_OK, "%s", error.message);
    CHECK_STR(listing(), "m.onnx other_ctx.onnx other_fake.bin ");
    CHECK_INT(epctx_model_open_file(&model, at("other_ctx.onnx"), NULL, NULL), EPCTX_OK);
    it = epctx_graph_nodes(epctx_model_graph(&model));
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
TEST(preflight)
{
    fake f = {0};
    epctx_gen_opts opts = {0};
    epctx_error error;
    f.takes = "Take";
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
    CHECK(generate(&f, &opts, NULL, NULL, &error) == EPCTX_OK, "%s", error.message);
    f.compiled = 0;
    opts.embed = false;
    opts.context_file_path = at("no/such/folder/m_ctx.onnx");
    CHECK_INT(generate(&f, &opts, NULL, NULL, &error), EPCTX_ERR_NOT_FOUND);
    CHECK_HAS(error.message, "no/such/folder");
    opts.context_file_path = root; /* a folder, and no extension */
    CHECK_INT(generate(&f, &opts, NULL, NULL, &error), EPCTX_ERR_PATH);
    opts.overwrite = true;
    opts.context_file_path = at("m.onnx");
    CHECK_INT(generate(&f, &opts, NULL, NULL, &error), EPCTX_ERR_PATH);
    CHECK_HAS(error.message, "m.onnx");
    opts.context_file_path = NULL;
    remove(at("m_ctx.onnx"));
    CHECK_TRUE(mkdir(at("m_ctx.onnx"), 0777) == 0);
    CHECK_INT(generate(&f, &opts, NULL, NULL, &error), EPCTX_ERR_PATH);
    CHECK_INT(f.compiled, 0);
    CHECK_STR(listing(), "m.onnx m_ctx.onnx m_fake.bin ");
    rmdir(at("m_ctx.onnx"));
}

/* The binary, too, must not replace the model that is being compiled. */
TEST(binary_over_source)
{
    fake f = {0};
    epctx_gen_opts opts = {0};
    epctx_error error;
    epctx_model model;
    epctx_backend backend = fake_backend(&f);
    bytes b = source(0), kept;
    f.takes = "Take";
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

TEST(overwrite)
{
    fake f = {0};
    epctx_gen_opts opts = {0};
    epctx_error error;
    bytes first, second;
    f.takes = "Take";
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

/* The context model's name is a link: what it points to is replaced, the link stays. */
TEST(linked_output)
{
    fake f = {0};
    epctx_gen_opts opts = {0};
    epctx_error error;
    struct stat info;
    bytes old, fresh;
    f.takes = "Take";
    opts.overwrite = true;
    clear_root();
    make_source(0);
    CHECK_INT(generate(&f, &opts, NULL, NULL, &error), EPCTX_OK);
    CHECK_TRUE(rename(at("m_ctx.onnx"), at("real.onnx")) == 0);
    CHECK_TRUE(symlink("real.onnx", at("m_ctx.onnx")) == 0);
    old = read_file(at("real.onnx"));
    make_source(5);
    CHECK(generate(&f, &opts, NULL, NULL, &error) == EPCTX_OK, "%s", error.message);
    CHECK_STR(listing(), "m.onnx m_ctx.onnx m_fake.bin real.onnx ");
    CHECK_TRUE(lstat(at("m_ctx.onnx"), &info) == 0 && S_ISLNK(info.st_mode));
    fresh = read_file(at("real.onnx"));
    CHECK_TRUE(!bytes_equal(&fresh, old.data, old.size));
    CHECK_INT(load(&f, at("m_ctx.onnx"), &error), EPCTX_OK);
    bytes_free(&old);
    bytes_free(&fresh);
}

/* A node that an edit put in and that has to move behind a partition keeps what it holds. */
TEST(new_node_moves)
{
    static const int64_t dims[] = {2, -1};
    const epctx_str a = epctx_str_of("a"), c = epctx_str_of("c");
    fake f = {0};
    epctx_backend backend = fake_backend(&f);
    bytes graph = {0}, b, before, after;
    epctx_model model;
    epctx_node node;
    epctx_error error;
    epctx_cursor it;
    epctx_node_view view;
    f.takes = "Take";
    clear_root();
    add_node(&graph, "Take", "n0", "x", "a");
    add_node(&graph, "Keep", "n1", "x", "b"); /* waits for nothing: stands in front */
    add_node(&graph, "Take", "n3", "a,x", "d");
    add_node(&graph, "Keep", "n4", "b,c,d", "y");
    add_value(&graph, GRAPH_INPUT, "x", EPCTX_ONNX_FLOAT, dims);
    add_value(&graph, GRAPH_OUTPUT, "y", EPCTX_ONNX_FLOAT, dims);
    b = new_model(&graph);
    make_file(at("m.onnx"), b.data, b.size);
    CHECK_INT(epctx_model_open_file(&model, at("m.onnx"), NULL, NULL), EPCTX_OK);
    it = epctx_graph_nodes(epctx_model_graph(&model));
    CHECK_TRUE(epctx_next_node(&it, &view));
    memset(&node, 0, sizeof node);
    node.name = epctx_str_of("n2");
    node.op_type = epctx_str_of("Keep");
    node.inputs = &a;
    node.input_count = 1;
    node.outputs = &c;
    node.output_count = 1;
    CHECK_INT(epctx_put_node(&model, epctx_model_graph(&model).view, &node, view.view, NULL,
                             &error), EPCTX_OK);
    before = written(&model);
    CHECK(epctx_generate(&model, &backend, NULL, NULL, &error) == EPCTX_OK, "%s", error.message);
    CHECK_STR(nodes_of(&model),
              "Keep:x,->b,;EPContext:x,->a,d,;Keep:a,->c,;Keep:b,c,d,->y,;");
    epctx_undo(&model, 1);
    after = written(&model);
    CHECK_MEM(after.data, after.size, before.data, before.size);
    epctx_model_close(&model);
    bytes_free(&b);
    bytes_free(&before);
    bytes_free(&after);
}

TEST(nothing_to_compile)
{
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
    CHECK(generate(&f, &opts, NULL, NULL, &error) == EPCTX_OK, "%s", error.message);
    CHECK_STR(f.log, "x,x2->y;");
}

TEST(compiled_already)
{
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

TEST(failing_backend)
{
    static const fake_step steps[] = {FAKE_CAPABILITY, FAKE_BEGIN, FAKE_COMPILE, FAKE_FINISH};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        for (int after = 0; after < 2; after++) {
            for (int embed = 0; embed < 2; embed++) {
                fake f = {0};
                epctx_gen_opts opts = {0};
                epctx_error error;
                if (after == 1 && steps[i] != FAKE_COMPILE) continue;
                f.takes = "Take";
                f.fail = steps[i];
                f.fail_after = after;
                opts.embed = embed;
                clear_root();
                make_source(0);
                CHECK(generate(&f, &opts, NULL, NULL, &error) == EPCTX_ERR_BACKEND, "step %d: %s",
                      (int)steps[i], error.message);
                CHECK_HAS(error.message, "the fake fails as told");
                CHECK_STR(listing(), "m.onnx ");
                CHECK_INT(f.alive, 0);
            }
        }
    }
}

/* A model of IR 3 lists its initializers among the inputs. Those that go into the partitions must
 * leave both lists: an input without its value would be asked of the user. */
TEST(initializers_as_inputs)
{
    static const int64_t dims[] = {2, -1};
    static const float weights[2] = {1, 2};
    bytes graph = {0}, model_bytes = {0};
    fake f = {0};
    epctx_error error;
    epctx_model model;
    epctx_graph record;
    f.takes = "Take";
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
    make_file(at("m.onnx"), model_bytes.data, model_bytes.size);
    bytes_free(&model_bytes);
    CHECK(generate(&f, NULL, NULL, NULL, &error) == EPCTX_OK, "%s", error.message);
    CHECK_STR(f.log, "x->y;");
    CHECK_INT(epctx_model_open_file(&model, at("m_ctx.onnx"), NULL, NULL), EPCTX_OK);
    CHECK_STR(nodes_of(&model), "EPContext:x,->y,;");
    CHECK_INT(epctx_graph_load(&model, &record, &error), EPCTX_OK);
    CHECK_UINT(record.input_count, 1);
    CHECK_UINT(record.initializer_count, 0);
    epctx_model_close(&model);
}

/* From IR version 4 on an initializer among the inputs is only a default. The input stays, used or
 * not, and so does the default: without it callers would have to give a value. */
TEST(optional_inputs)
{
    static const int64_t dims[] = {2, -1};
    static const float weights[2] = {1, 2};
    static const char *const optional[] = {"w", "unused"};
    bytes graph = {0}, model_bytes;
    fake f = {0};
    epctx_error error;
    epctx_model model;
    epctx_tensor_view tensor;
    epctx_value_view value;
    epctx_cursor it;
    f.takes = "Take";
    clear_root();
    add_node(&graph, "Take", "n0", "x,w,c", "y");
    add_value(&graph, GRAPH_INPUT, "x", EPCTX_ONNX_FLOAT, dims);
    add_value(&graph, GRAPH_OUTPUT, "y", EPCTX_ONNX_FLOAT, dims);
    for (size_t i = 0; i < 2; i++) {
        add_value(&graph, GRAPH_INPUT, optional[i], EPCTX_ONNX_FLOAT, dims);
        add_floats(&graph, optional[i], weights, 2);
    }
    add_floats(&graph, "c", weights, 2);
    model_bytes = new_model(&graph);
    make_file(at("m.onnx"), model_bytes.data, model_bytes.size);
    bytes_free(&model_bytes);
    CHECK(generate(&f, NULL, NULL, NULL, &error) == EPCTX_OK, "%s", error.message);
    CHECK_STR(f.log, "x,w->y;");
    CHECK_INT(epctx_model_open_file(&model, at("m_ctx.onnx"), NULL, NULL), EPCTX_OK);
    it = epctx_graph_initializers(epctx_model_graph(&model));
    for (size_t i = 0; i < 2; i++) {
        CHECK_TRUE(epctx_next_tensor(&it, &tensor));
        CHECK(epctx_str_is(tensor.name, optional[i]), "the default of %s is lost", optional[i]);
    }
    CHECK_TRUE(!epctx_next_tensor(&it, &tensor));
    it = epctx_graph_inputs(epctx_model_graph(&model));
    CHECK_TRUE(epctx_next_value(&it, &value) && epctx_str_is(value.name, "x"));
    CHECK_TRUE(epctx_next_value(&it, &value) && epctx_str_is(value.name, "w"));
    CHECK_TRUE(epctx_next_value(&it, &value) && epctx_str_is(value.name, "unused"));
    CHECK_TRUE(!epctx_next_value(&it, &value));
    epctx_model_close(&model);
}

/* Every call of the io fails once: afterwards there is the old pair, the new pair, or a binary
 * without a model; never a model with a binary of another generation, and no other file. */
static bool failing_io(bool embed, bool old_pair)
{
    for (int n = 1; n < 200; n++) {
        fake f = {0}, loader = {0};
        flaky io_state = {0};
        epctx_io io = flaky_io(&io_state);
        epctx_gen_opts opts = {0};
        epctx_error error;
        epctx_status status;
        const char *list;
        f.takes = "Take";
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

TEST(failing_io_fresh)
{
    CHECK_TRUE(failing_io(false, false));
    CHECK_TRUE(failing_io(true, false));
}

TEST(failing_io_replace)
{
    CHECK_TRUE(failing_io(false, true));
    CHECK_TRUE(failing_io(true, true));
}

/* The allocator for the binary fails. */
TEST(allocator_fails)
{
    for (size_t n = 1; n < 100; n++) {
        fake f = {0};
        counting c = {0};
        epctx_allocator allocator = counting_allocator(&c);
        epctx_gen_opts opts = {0};
        epctx_error error;
        epctx_status status;
        f.takes = "Take";
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
                         const char *cache)
{
    bytes graph = {0}, model;
    add_epnode(&graph, "ctx_node", "x", "y", main_context, embed, src, part, cache,
               cache != NULL ? strlen(cache) : 0);
    model = new_model(&graph);
    make_file(at("h_ctx.onnx"), model.data, model.size);
    bytes_free(&model);
}

static const char good_binary[] = "FAKE1\n1\npart\n0\n1\nx\n1\ny\n";

TEST(load_by_hand)
{
    fake f = {0};
    epctx_error error;
    clear_root();
    make_file(at("h.bin"), good_binary, sizeof good_binary - 1);
    make_context(1, 0, "FakeEP", "part", "h.bin");
    CHECK(load(&f, at("h_ctx.onnx"), &error) == EPCTX_OK, "%s", error.message);
    make_context(-1, -1, "FakeEP", "part", good_binary); /* defaults: main context, embedded */
    CHECK(load(&f, at("h_ctx.onnx"), &error) == EPCTX_OK, "%s", error.message);
    CHECK_INT(f.alive, 0);
    /* Another EP's node is not ours. */
    f.loads = 0;
    make_context(1, 0, "OtherEP", "part", "missing.bin");
    CHECK(load(&f, at("h_ctx.onnx"), &error) == EPCTX_OK, "%s", error.message);
    CHECK_INT(f.loads, 0);
}

/* What is wrong with another EP's node is that EP's business: it is counted and left alone. The
 * same fault in a node of ours ends the loading. */
TEST(load_malformed_node_of_another)
{
    static const char *const owners[] = {"OtherEP", "", "FakeEP"}; /* "": no source at all */
    clear_root();
    make_file(at("h.bin"), good_binary, sizeof good_binary - 1);
    for (size_t fault = 0; fault < 2; fault++)
        for (size_t i = 0; i < 3; i++) {
            fake f = {0};
            bytes graph = {0}, model_bytes, bad;
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
            model_bytes = new_model(&graph);
            make_file(at("h_ctx.onnx"), model_bytes.data, model_bytes.size);
            bytes_free(&model_bytes);
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
TEST(load_refused)
{
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
    static const char other[] = "FAKE1\n1\nanother\n0\n1\nx\n1\ny\n";
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

TEST(load_embedded_empty)
{
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

TEST(load_lonely_secondary)
{
    fake f = {0};
    epctx_error error;
    clear_root();
    make_context(0, 0, "FakeEP", "part", NULL);
    CHECK_INT(epctx_status_to_ort(load(&f, at("h_ctx.onnx"), &error)), 10);
    CHECK_HAS(error.message, "main_context");
    CHECK_HAS(error.message, "ctx_node");
}

/* From memory an external binary needs ep.context_file_path. */
TEST(load_from_memory)
{
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
    CHECK(epctx_load(&loaded, &model, &backend, &opts, &error) == EPCTX_OK, "%s", error.message);
    epctx_unload(&loaded);
    epctx_model_close(&model);
    bytes_free(&b);
    CHECK_INT(f.alive, 0);
}

TEST(load_other_generation)
{
    fake f = {0};
    epctx_gen_opts opts = {0};
    epctx_error error;
    bytes old_binary, new_binary;
    f.takes = "Take";
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

TEST(load_failing_backend)
{
    static const fake_step steps[] = {FAKE_LOAD, FAKE_FIND, FAKE_INFO};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        for (int after = 0; after < 2; after++) {
            fake f = {0};
            epctx_error error;
            f.takes = "Take";
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

TEST(load_allocator_fails)
{
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
        f.takes = "Take";
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

TEST(bad_arguments)
{
    fake f = {0};
    epctx_backend backend = fake_backend(&f);
    epctx_loaded loaded;
    epctx_model model;
    epctx_error error;
    memset(&loaded, 0, sizeof loaded);
    memset(&model, 0, sizeof model);
    epctx_unload(&loaded);
    epctx_unload(NULL);
    CHECK_INT(epctx_generate(NULL, &backend, NULL, NULL, &error), EPCTX_ERR_ARG);
    CHECK_INT(epctx_generate(&model, &backend, NULL, NULL, &error), EPCTX_ERR_ARG);
    CHECK_INT(epctx_load(&loaded, &model, &backend, NULL, &error), EPCTX_ERR_ARG);
    backend.version = 99;
    CHECK_INT(epctx_load(&loaded, &model, &backend, NULL, &error), EPCTX_ERR_ARG);
}

int main(int argc, char **argv)
{
    snprintf(root, sizeof root, "/tmp/epctx_gen_XXXXXX");
    if (mkdtemp(root) == NULL) return 1;
    RUN(two_partitions);
    RUN(loads_again);
    RUN(embedded);
    RUN(load_after_generate);
    RUN(names_and_prefix);
    RUN(preflight);
    RUN(binary_over_source);
    RUN(overwrite);
    RUN(linked_output);
    RUN(new_node_moves);
    RUN(nothing_to_compile);
    RUN(compiled_already);
    RUN(failing_backend);
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
    RUN(load_other_generation);
    RUN(load_failing_backend);
    RUN(load_allocator_fails);
    RUN(bad_arguments);
    clear_root();
    rmdir(root);
    return test_end();
}
