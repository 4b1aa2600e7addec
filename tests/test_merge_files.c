/* Merge of models with files: what goes along, under which names, and what is missing. A refusal
 * leaves the models as they were. */
#define _XOPEN_SOURCE 700
#include "binaries.h"
#include "combine.h"

#define CONTAINER "a_OpenVINOExecutionProvider.bin"

/* -- files everywhere in a model -- */

/* A compiled model with its context in `context` and tensors in `data` wherever tensors can be:
 * initializers dense and sparse, of a body, attributes of nodes and of functions. */
static bytes outside_model(const char *x, const char *context, const char *data, const char *more,
                           const char *called) {
    bytes graph = {0}, model, body = {0}, node, function = {0};
    bytes attr = {0}, sparse = {0}, sparse_attr = {0}, opset = {0};
    add_epnode(&graph, "n0", x, "t", 1, 0, "EpctxNpuExecutionProvider", "p0", context,
               strlen(context));
    add_epnode(&graph, "n1", x, "side", 0, 0, "EpctxNpuExecutionProvider", "p1", NULL, 0);
    node = new_node("Use", "mine", "use", "t,w,sp,v", "y");
    put_str(&attr, 1, "value");
    put_outside(&attr, 5, "", data);
    put_int(&attr, 20, EPCTX_ATTR_TENSOR);
    put_child(&node, 5, &attr);
    put_outside(&sparse_attr, 1, "", data);
    put_outside(&sparse_attr, 2, "", data);
    put_str(&attr, 1, "sparse_value");
    put_child(&attr, 22, &sparse_attr);
    put_int(&attr, 20, EPCTX_ATTR_SPARSE_TENSOR);
    put_child(&node, 5, &attr);
    put_child(&graph, 1, &node);
    node = new_node("If", "", "if", "y", "z");
    add_node(&body, "Relu", "inner", "own", "b");
    put_outside(&body, 5, "own", data);
    add_value(&body, GRAPH_OUTPUT, "b", EPCTX_ONNX_FLOAT, vector);
    add_attr_graph(&node, "then_branch", &body);
    put_child(&graph, 1, &node);
    put_outside(&graph, 5, "w", data);
    put_outside(&graph, 5, "v", more);
    put_outside(&sparse, 1, "sp", data);
    put_outside(&sparse, 2, "", data);
    put_int(&sparse, 3, 4);
    put_child(&graph, 15, &sparse);
    add_value(&graph, GRAPH_INPUT, x, EPCTX_ONNX_FLOAT, vector);
    add_value(&graph, GRAPH_OUTPUT, "z", EPCTX_ONNX_FLOAT, vector);
    add_value(&graph, GRAPH_OUTPUT, "side", EPCTX_ONNX_FLOAT, vector);
    add_value(&graph, GRAPH_VALUE, "t", EPCTX_ONNX_FLOAT, vector);
    model = new_model(&graph);
    add_opset(&model, "com.microsoft", 1);
    add_opset(&model, "mine", 1);
    put_str(&function, 1, "Use");
    put_str(&function, 10, "mine");
    node = new_node("Constant", "", "constant", "", "c");
    put_str(&attr, 1, "value");
    put_outside(&attr, 5, "", called);
    put_int(&attr, 20, EPCTX_ATTR_TENSOR);
    put_child(&node, 5, &attr);
    put_child(&function, 7, &node);
    put_int(&opset, 2, 17);
    put_child(&function, 9, &opset);
    put_child(&model, 25, &function);
    return model;
}

/* `called`: what the second model's function has; that of the first has v.bin. */
static void make_outside(const char *called) {
    bytes a = outside_model("x", "c.bin", "w.bin", "v.bin", "v.bin");
    bytes b = outside_model("x", "c.bin", "w.bin", "w_2.bin", called);
    mkdir(at("sub"), 0700);
    make_file(at("a.onnx"), a.data, a.size);
    make_file(at("sub/b.onnx"), b.data, b.size);
    save_sixteen("c.bin", 1);
    save_sixteen("w.bin", 2);
    save_sixteen("v.bin", 3);
    save_sixteen("sub/c.bin", 4);
    save_sixteen("sub/w.bin", 5);
    save_sixteen("sub/w_2.bin", 3); /* what v.bin has */
    bytes_free(&a);
    bytes_free(&b);
}

static void remove_outside(void) {
    static const char *const names[] = {"sub/b.onnx", "sub/c.bin", "sub/w.bin", "sub/w_2.bin"};
    size_t i;
    for (i = 0; i < sizeof names / sizeof names[0]; i++) remove(at(names[i]));
    rmdir(at("sub"));
    clear_root();
}

/* Functions that name files are the same when the bytes of the files are, whatever their names. */
TEST(merge_functions_with_files) {
    static const char *const called[] = {"w_2.bin", "w.bin", "c.bin"};
    for (int i = 0; i < 3; i++) {
        epctx_merge_opts opts = {0};
        epctx_model models[2];
        epctx_part parts[2] = {{NULL, NULL}, {NULL, NULL}};
        epctx_error error;
        epctx_status status;
        char path[400];
        CHECK_TRUE(make_root());
        make_outside(called[i]);
        snprintf(path, sizeof path, "%s", at("out.onnx"));
        opts.output_path = path;
        CHECK_OK(epctx_model_open_file(&models[0], at("a.onnx"), NULL, &error), error);
        CHECK_OK(epctx_model_open_file(&models[1], at("sub/b.onnx"), NULL, &error), error);
        parts[0].model = &models[0];
        parts[1].model = &models[1];
        status = epctx_merge(parts, 2, &opts, NULL, &error);
        CHECK(status == (i == 0 ? EPCTX_OK : EPCTX_ERR_GRAPH), "'%s': %s", called[i],
              error.message);
        if (i > 0) CHECK_HAS(error.message, "function 'Use' of domain 'mine' is different");
        epctx_model_close(&models[0]);
        epctx_model_close(&models[1]);
        remove_outside();
        rmdir(root);
    }
}

/* What the last merge wrote as files: "name=first byte " for each. */
static const char *files_of(const epctx_combined *out) {
    static char text[400];
    size_t i;
    text[0] = '\0';
    for (i = 0; i < out->file_count; i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s=%d ", out->files[i].name,
                 out->files[i].parts[0].data[0]);
    }
    return text;
}

/* Both models name c.bin and w.bin and mean different bytes; the second has what the first calls
 * v.bin under another name. */
TEST(merge_with_files) {
    static uint64_t memory[2][HUNGRY_BUFFER / 8];
    static epctx_error error;
    epctx_merge_opts opts = {0};
    epctx_part parts[2] = {{NULL, NULL}, {NULL, NULL}};
    char path[400];
    int hungry;
    CHECK_TRUE(make_root());
    make_outside("w_2.bin");
    snprintf(path, sizeof path, "%s", at("out.onnx"));
    opts.output_path = path;
    for (hungry = 0; hungry < 2; hungry++) {
        size_t room = 0, rounds;
        for (rounds = 0; rounds < 20000; rounds++) {
            epctx_model models[2];
            epctx_combined out;
            epctx_status status;
            size_t missing;
            char found[400];
            bytes result;
            CHECK_OK(open_hungry(&models[0], at("a.onnx"), NULL, memory[0],
                                 hungry ? SIZE_MAX : room, &error),
                     error);
            CHECK_OK(open_hungry(&models[1], at("sub/b.onnx"), NULL, memory[1],
                                 hungry ? room : SIZE_MAX, &error),
                     error);
            parts[0].model = &models[0];
            parts[1].model = &models[1];
            status = epctx_merge(parts, 2, &opts, &out, &error);
            missing = models[hungry].arena.missing;
            if (status == EPCTX_OK) {
                snprintf(found, sizeof found, "%s", files_of(&out));
                CHECK_STR(found, "c_2.bin=4 w_2.bin=5 ");
                result = written(&models[0]);
                CHECK_TRUE(bytes_contain(&result, "c_2.bin", 7));
                CHECK_TRUE(bytes_contain(&result, "w_2.bin", 7));
                bytes_free(&result);
            } else {
                CHECK(status == EPCTX_ERR_NOMEM, "%s", error.message);
            }
            epctx_model_close(&models[0]);
            epctx_model_close(&models[1]);
            if (status == EPCTX_OK) break;
            CHECK(missing > 0, "a failure without a request");
            room += missing;
        }
        CHECK(rounds > 50 && rounds < 20000, "%zu rounds", rounds);
    }
    remove_outside();
    rmdir(root);
}

/* -- files of EPContext nodes -- */

static void make_model(const char *name, bytes model) {
    save_bytes(name, &model);
}

/* A node with its context in `cache`, and the model that it was compiled from. */
static bytes file_model(const char *x, const char *y, const char *partition, const char *cache,
                        const char *source) {
    bytes graph = {0}, node = new_node("EPContext", "com.microsoft", partition, x, y), model;
    add_attr_int(&node, "main_context", 1);
    add_attr_int(&node, "embed_mode", 0);
    add_attr_str(&node, "source", npu, strlen(npu));
    add_attr_str(&node, "partition_name", partition, strlen(partition));
    add_attr_str(&node, "ep_cache_context", cache, strlen(cache));
    if (source != NULL) add_attr_str(&node, "onnx_model_filename", source, strlen(source));
    put_child(&graph, 1, &node);
    add_ends(&graph, x, y);
    model = new_model(&graph);
    add_opset(&model, "com.microsoft", 1);
    return model;
}

/* Merges a.onnx with sub/b.onnx (or b.onnx); NULL when that is refused as told, or merges. */
static const char *merge_files(bytes a, const char *second, bytes b, const char *output,
                               epctx_status status, const char *text, size_t files) {
    static char wrong[900];
    char path[400];
    epctx_status found;
    pair p;
    make_model("a.onnx", a);
    make_model(second, b);
    snprintf(path, sizeof path, "%s", at(output));
    wrong[0] = '\0';
    if (!pair_files(&p, at("a.onnx"), at(second))) return "a model cannot be opened";
    p.opts.output_path = path;
    found = pair_merge(&p);
    if (found != status || strstr(p.error.message, text) == NULL)
        snprintf(wrong, sizeof wrong, "%s: %s", epctx_status_name(found), p.error.message);
    else if (found == EPCTX_OK && p.out.file_count != files)
        snprintf(wrong, sizeof wrong, "%zu files", p.out.file_count);
    else if (found != EPCTX_OK && !pair_untouched(&p))
        snprintf(wrong, sizeof wrong, "a refusal changes something");
    pair_close(&p);
    remove(at(second));
    return wrong[0] != '\0' ? wrong : NULL;
}

#define FILES_MERGE(a, second, b, output, status, text, files) \
    do { \
        const char *why_ = merge_files(a, second, b, output, status, text, files); \
        CHECK(why_ == NULL, "expected %s '%s', found %s", epctx_status_name(status), text, why_); \
    } while (0)

static void make_folders(void) {
    mkdir(at("sub"), 0700);
    mkdir(at("out"), 0700);
    save_sixteen("c.bin", 1);
    save_sixteen("d.bin", 2);
    save_sixteen("e.stripped.engine", 3);
    save_sixteen("s.onnx", 4);
    save_sixteen("sub/e.stripped.engine", 3);
    save_sixteen("sub/s.onnx", 5);
}

static void remove_folders(void) {
    remove(at("sub/e.stripped.engine"));
    remove(at("sub/s.onnx"));
    rmdir(at("sub"));
    rmdir(at("out"));
    remove_root();
}

/* -- OpenVINO's containers -- */

/* Two nodes that name a container with their partitions, saved as `file`. */
static void make_container(const char *file, const char *a, const char *b, bool changed) {
    container c = {4096, "1.1.0", {NULL, NULL}, NULL, NULL, false};
    bytes made;
    c.names[0] = a;
    c.names[1] = b;
    c.other = changed;
    made = openvino_container_of(&c);
    save_bytes(file, &made);
}

static void make_contained(const char *model, const char *x, const char *a, const char *b,
                           const char *file) {
    bytes graph = {0}, data;
    char t[32], y[32];
    snprintf(t, sizeof t, "%s_t", x);
    snprintf(y, sizeof y, "%s_y", x);
    add_epnode(&graph, a, x, t, 1, 0, ov, a, file, strlen(file));
    add_epnode(&graph, b, t, y, 1, 0, ov, b, file, strlen(file));
    add_ends(&graph, x, y);
    data = new_model(&graph);
    add_opset(&data, "com.microsoft", 1);
    save_bytes(model, &data);
}

/* The container of both is a new file: what the models name is left alone. */
TEST(merge_containers) {
    static const struct {
        const char *output, *name;
    } cases[] = {{"out/m.onnx", "m_OpenVINOExecutionProvider.bin"},
                 {"a.onnx", "a_OpenVINOExecutionProvider_2.bin"},
                 {"m.onnx", "m_OpenVINOExecutionProvider.bin"}};
    char path[400], want[400];
    pair p;
    size_t i;
    CHECK_TRUE(make_root());
    make_folders();
    make_container(CONTAINER, "p", "q", false);
    make_container("b.bin", "p", "r", true);
    make_contained("a.onnx", "x", "p", "q", CONTAINER);
    make_contained("b.onnx", "u", "p", "r", "b.bin");
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CHECK_TRUE(pair_files(&p, at("a.onnx"), at("b.onnx")));
        snprintf(path, sizeof path, "%s", at(cases[i].output));
        p.opts.output_path = path;
        MERGES(&p);
        CHECK_UINT(p.out.file_count, 1);
        CHECK_STR(p.out.files[0].name, cases[i].name);
        CHECK_UINT(p.out.files[0].size, 5 * 65536);
        snprintf(want, sizeof want, "p:p:1:0:%s q:q:1:0:%s m2_p:m2_p:1:0:%s r:r:1:0:%s ",
                 cases[i].name, cases[i].name, cases[i].name, cases[i].name);
        CHECK_STR(sharing_of(&p.models[0]), want);
        CHECK(untouched(&p.models[1], &p.data[1]), "the second model changed");
        pair_close(&p);
    }
    remove_folders();
}

/* The result of a mixed pair is what the first one is; equal files stay one; what is missing or
 * damaged is told. */
TEST(merge_containers_that_differ) {
    static const char *const names[2] = {CONTAINER, "b.bin"};
    pair p;
    size_t i;
    CHECK_TRUE(make_root());
    make_folders();
    make_container(CONTAINER, "p", "q", false);
    make_container("b.bin", "v", "w", true);
    make_contained("a.onnx", "x", "p", "q", CONTAINER);
    make_contained("b.onnx", "u", "v", "w", "b.bin");
    for (i = 0; i < 2; i++) {
        CHECK_TRUE(pair_files(&p, at("a.onnx"), at("b.onnx")));
        CHECK_OK(epctx_edit_embed(&p.models[i], NULL, NULL, &p.error), p.error);
        MERGES(&p);
        CHECK_UINT(p.out.file_count, i);
        CHECK_STR(sharing_of(&p.models[0]), i == 0 ? "p:p:0:1: q:q:0:1: v:v:1:1:327680 w:w:0:1: "
                                                   : "p:p:1:0:a_OpenVINOExecutionProvider_2.bin "
                                                     "q:q:1:0:a_OpenVINOExecutionProvider_2.bin "
                                                     "v:v:1:0:a_OpenVINOExecutionProvider_2.bin "
                                                     "w:w:1:0:a_OpenVINOExecutionProvider_2.bin ");
        pair_close(&p);
    }
    for (i = 0; i < 2; i++) {
        make_contained("b.onnx", "u", "v", "w", names[i]);
        if (i == 1) CHECK_TRUE(truncate(at("b.bin"), 70) == 0);
        CHECK_TRUE(pair_files(&p, at("a.onnx"), at("b.onnx")));
        if (i == 0) {
            MERGES(&p);
            CHECK_UINT(p.out.file_count, 0);
        } else {
            REFUSED(&p, EPCTX_ERR_CONTEXT, "b.bin: is a container of OpenVINO blobs that is cut");
        }
        pair_close(&p);
    }
    remove(at("b.bin"));
    CHECK_TRUE(pair_files(&p, at("a.onnx"), at("b.onnx")));
    REFUSED(&p, EPCTX_ERR_NOT_FOUND, "b.bin");
    pair_close(&p);
    make_file(at("b.bin"), "<html>no</html>", 15);
    CHECK_TRUE(pair_files(&p, at("a.onnx"), at("b.onnx")));
    REFUSED(&p, EPCTX_ERR_UNSUPPORTED, "b.bin: is an HTML page");
    pair_close(&p);
    remove_folders();
}

/* The context goes along; the model that it was compiled from does where loading needs it, and
 * cannot get another name. */
TEST(merge_files_by_use) {
    static const char stripped[] = "e.stripped.engine";
    CHECK_TRUE(make_root());
    make_folders();
    FILES_MERGE(file_model("x", "y", "p", "c.bin", NULL), "b.onnx",
                file_model("u", "v", "q", "c.bin", NULL), "o.onnx", EPCTX_OK, "", 0);
    FILES_MERGE(file_model("x", "y", "p", "c.bin", "gone.onnx"), "b.onnx",
                file_model("u", "v", "q", "d.bin", "gone.onnx"), "out/o.onnx", EPCTX_OK, "", 2);
    FILES_MERGE(file_model("x", "y", "p", stripped, "s.onnx"), "b.onnx",
                file_model("u", "v", "q", stripped, "s.onnx"), "out/o.onnx", EPCTX_OK, "", 2);
    FILES_MERGE(file_model("x", "y", "p", stripped, "s.onnx"), "sub/b.onnx",
                file_model("u", "v", "q", stripped, "s.onnx"), "o.onnx", EPCTX_ERR_EXISTS,
                "source model 's.onnx' of 'q': another file of the result has this name", 0);
    FILES_MERGE(file_model("x", "y", "p", stripped, "sub/s.onnx"), "sub/b.onnx",
                file_model("u", "v", "q", stripped, "s.onnx"), "o.onnx", EPCTX_ERR_EXISTS,
                "source model 's.onnx' of 'q': the same file has another name in the result", 0);
    FILES_MERGE(file_model("x", "y", "p", "c.bin", NULL), "b.onnx",
                file_model("u", "v", "q", "gone.bin", NULL), "o.onnx", EPCTX_ERR_NOT_FOUND,
                "context binary 'gone.bin' of 'q': file 'gone.bin' does not exist", 0);
    FILES_MERGE(file_model("x", "y", "p", "c.bin", NULL), "b.onnx",
                file_model("u", "v", "q", "d.bin", NULL), "out/c.bin", EPCTX_ERR_PATH,
                "new file 'c.bin': it would be the model itself", 0);
    remove_folders();
}

/* Weights that only training reads may be missing. */
TEST(merge_files_of_training) {
    bytes model, training = {0}, step = {0};
    CHECK_TRUE(make_root());
    make_folders();
    model = file_model("x", "y", "p", "c.bin", NULL);
    add_node(&step, "Relu", "step", "far", "far2");
    add_external(&step, "far", 4, "gone.bin", "0", "16");
    put_child(&training, 2, &step);
    put_child(&model, 20, &training);
    FILES_MERGE(model, "b.onnx", file_model("u", "v", "q", "d.bin", NULL), "o.onnx", EPCTX_OK, "",
                0);
    remove_folders();
}

/* A folder in which no file of the result can have a name. */
TEST(merge_into_a_long_path) {
    static char path[2 * EPCTX_PATH_MAX];
    pair p;
    CHECK_TRUE(make_root());
    make_folders();
    make_model("a.onnx", file_model("x", "y", "p", "c.bin", NULL));
    make_model("b.onnx", file_model("u", "v", "q", "d.bin", NULL));
    memset(path, 'd', EPCTX_PATH_MAX - 4);
    strcpy(path + EPCTX_PATH_MAX - 4, "/o.onnx");
    CHECK_TRUE(pair_files(&p, at("a.onnx"), at("b.onnx")));
    p.opts.output_path = path;
    REFUSED(&p, EPCTX_ERR_LIMIT, "a path");
    pair_close(&p);
    remove_folders();
}

/* A file that nobody needs may be missing. */
TEST(merge_without_what_nobody_needs) {
    bytes model[2];
    epctx_model models[2];
    epctx_merge_opts opts = {0};
    epctx_part parts[2] = {{NULL, NULL}, {NULL, NULL}};
    epctx_combined out;
    epctx_error error;
    char path[400];
    CHECK_TRUE(make_root());
    for (int i = 0; i < 2; i++) {
        bytes graph = {0}, node = new_node("EPContext", "com.microsoft", i > 0 ? "b" : "a",
                                           i > 0 ? "p" : "x", i > 0 ? "q" : "y");
        add_attr_int(&node, "main_context", 1);
        add_attr_int(&node, "embed_mode", 1);
        add_attr_str(&node, "ep_cache_context", "payload", 7);
        add_attr_str(&node, "source", "QNN", 3);
        add_attr_str(&node, "onnx_model_filename", "gone.onnx", 9);
        put_child(&graph, 1, &node);
        add_value(&graph, GRAPH_INPUT, i > 0 ? "p" : "x", EPCTX_ONNX_FLOAT, NULL);
        add_value(&graph, GRAPH_OUTPUT, i > 0 ? "q" : "y", EPCTX_ONNX_FLOAT, NULL);
        model[i] = new_model(&graph);
        add_opset(&model[i], "com.microsoft", 1);
        make_file(at(i > 0 ? "b.onnx" : "a.onnx"), model[i].data, model[i].size);
        CHECK_INT(epctx_model_open_file(&models[i], at(i > 0 ? "b.onnx" : "a.onnx"), NULL, &error),
                  EPCTX_OK);
        parts[i].model = &models[i];
    }
    snprintf(path, sizeof path, "%s", at("out.onnx"));
    opts.output_path = path;
    CHECK_OK(epctx_merge(parts, 2, &opts, &out, &error), error);
    CHECK_UINT(out.file_count, 0);
    for (int i = 0; i < 2; i++) {
        epctx_model_close(&models[i]);
        bytes_free(&model[i]);
    }
    remove_root();
}

/* -- files in memory -- */

/* Files in memory: a model by the name "a.onnx"; every other file is there, with bytes of its own
 * for each io. */
typedef struct shelf {
    const bytes *model;
    uint8_t data[16];
    char real[16];
} shelf;

static epctx_status shelf_map(void *user, const char *folder, const char *name, bool copy,
                              epctx_mapping *out, epctx_error *error) {
    const shelf *s = (const shelf *)user;
    bool model = strcmp(name, "a.onnx") == 0;
    (void)folder, (void)copy, (void)error;
    memset(out, 0, sizeof *out);
    out->data = model ? s->model->data : s->data;
    out->size = model ? s->model->size : sizeof s->data;
    return EPCTX_OK;
}

static void shelf_unmap(void *user, epctx_mapping *mapping) {
    (void)user;
    memset(mapping, 0, sizeof *mapping);
}

static epctx_status shelf_stat(void *user, const char *path, epctx_file_info *info,
                               epctx_error *error) {
    (void)error;
    (void)path;
    memset(info, 0, sizeof *info);
    info->kind = EPCTX_FILE_REGULAR;
    info->size = sizeof((const shelf *)user)->data;
    return EPCTX_OK;
}

static epctx_status shelf_canonical(void *user, const char *path, char *out, size_t capacity,
                                    epctx_error *error) {
    (void)error;
    snprintf(out, capacity, "%s", strlen(path) < 3 ? "/" : ((const shelf *)user)->real);
    return EPCTX_OK;
}

/* Eleven files of one name that is so long that nine more numbers, but not ten, go behind it. */
TEST(merge_of_long_names) {
    enum { MODELS = 11 };
    static char name[EPCTX_PATH_MAX];
    static shelf shelves[MODELS];
    static epctx_model models[MODELS];
    bytes data[MODELS];
    epctx_part parts[MODELS] = {{NULL, NULL}};
    epctx_io io[MODELS];
    epctx_combined out;
    epctx_error error;
    for (size_t i = 0; i < sizeof name - 3; i++) name[i] = i % 100 == 50 ? '/' : 'n';
    for (int i = 0; i < MODELS; i++) {
        epctx_open_opts opts = {0};
        char x[16], y[16];
        snprintf(x, sizeof x, "x%d", i);
        snprintf(y, sizeof y, "y%d", i);
        data[i] = file_model(x, y, x, name, NULL);
        memset(shelves[i].data, i, sizeof shelves[i].data);
        snprintf(shelves[i].real, sizeof shelves[i].real, "/%d", i);
        shelves[i].model = &data[i];
        io[i] = *epctx_io_files();
        io[i].user = &shelves[i];
        io[i].map_fn = shelf_map;
        io[i].unmap_fn = shelf_unmap;
        io[i].stat_fn = shelf_stat;
        io[i].canonical_fn = shelf_canonical;
        opts.io = &io[i];
        parts[i].model = &models[i];
        CHECK_OK(epctx_model_open_file(&models[i], "a.onnx", &opts, &error), error);
    }
    CHECK_OK(epctx_merge(parts, MODELS - 2, NULL, &out, &error), error);
    CHECK_UINT(out.file_count, MODELS - 3); /* the first is where it should be */
    CHECK_UINT(strlen(out.files[MODELS - 4].name), EPCTX_PATH_MAX - 1);
    CHECK_HAS(out.files[MODELS - 4].name, "nnn_9");
    epctx_edit_undo(&models[0], 0);
    CHECK_INT(epctx_merge(parts, MODELS, NULL, NULL, &error), EPCTX_ERR_LIMIT);
    CHECK_HAS(error.message, "a path is longer than 4095 bytes");
    for (int i = 0; i < MODELS; i++) {
        CHECK(untouched(&models[i], &data[i]), "a refusal changes model %d", i);
        epctx_model_close(&models[i]);
        bytes_free(&data[i]);
    }
}

int main(int argc, char **argv) {
    RUN(merge_functions_with_files);
    RUN(merge_with_files);
    RUN(merge_containers);
    RUN(merge_containers_that_differ);
    RUN(merge_files_by_use);
    RUN(merge_files_of_training);
    RUN(merge_into_a_long_path);
    RUN(merge_without_what_nobody_needs);
    RUN(merge_of_long_names);
    return test_end();
}
