/* Conversions (embed, extract, move, initializers, weightless): without memory, with tables that
 * grow at every place, and with files that are there already; what the models of the other tests do
 * not have. */
#define _XOPEN_SOURCE 700
#include "examples/epctx/ops/contexts.h"
#include "examples/epctx/ops/init.h"
#include "examples/epctx/ops/move.h"
#include "examples/epctx/ops/weightless.h"
#include "disk.h"
#include "edit.h"
#include "starve.h"

static const epctx_write_opts judge = {.dry_run = true};

static void add_tensor(bytes *graph, uint32_t number, const char *name, int32_t elem,
                       const int64_t *dims, size_t size) {
    static const uint8_t data[64] = {1};
    bytes tensor = {0};
    for (; dims != NULL && *dims >= 0; dims++) put_int(&tensor, 1, *dims);
    put_int(&tensor, 2, elem);
    put_str(&tensor, 8, name);
    if (elem == EPCTX_ONNX_STRING)
        put_str(&tensor, 6, "text");
    else
        put_data(&tensor, 9, data, size);
    put_child(graph, number, &tensor);
}

static void add_sparse(bytes *graph, const char *name) {
    bytes sparse = {0};
    add_tensor(&sparse, 1, name, EPCTX_ONNX_FLOAT, vector, 16);
    put_child(graph, 15, &sparse);
}

/* A node that takes its weights as inputs: a list of names. */
static void add_weightless(bytes *graph, const char *name, const char *inputs, const char *source) {
    bytes node = new_node("EPContext", "com.microsoft", name, inputs, name);
    add_attr_int(&node, "main_context", 1);
    add_attr_int(&node, "embed_mode", 1);
    add_attr_str(&node, "ep_cache_context", "payload", 7);
    add_attr_str(&node, "source", "FakeEP", 6);
    if (source != NULL) add_attr_str(&node, "onnx_model_filename", source, strlen(source));
    put_child(graph, 1, &node);
}

/* -- a disk and a model on it -- */

typedef struct drive {
    disk disk;
    epctx_io io;
    epctx_model model;
    bytes data; /* as it was */
    ops_convert_opts opts;
    ops_changes changes;
    epctx_error error;
} drive;

static void drive_begin(drive *d) {
    memset(d, 0, sizeof *d);
    d->io = disk_io(&d->disk);
    d->io.link_fn = NULL;
}

/* Takes the bytes over. */
static void drive_put(drive *d, const char *path, bytes data) {
    disk_put(&d->disk, path, data.data, data.size);
    bytes_free(&data);
}

static bool drive_open(drive *d, bytes data) {
    epctx_open_opts open = {0};
    drive_put(d, "/d/m.onnx", data);
    open.io = &d->io;
    if (epctx_model_open_file(&d->model, "/d/m.onnx", &open, &d->error) != EPCTX_OK) return false;
    d->data = written(&d->model);
    return true;
}

static void drive_close(drive *d) {
    epctx_model_close(&d->model);
    bytes_free(&d->data);
    disk_free(&d->disk);
}

/* -- weights in the source model -- */

/* Which tensors of a source model can be referred to instead of those of the model. */
TEST(weights_by_tensor) {
    static const int64_t none[] = {-1}, zero[] = {0, -1}, two[] = {2, -1}, square[] = {2, 2, -1};
    static const int64_t row[] = {1, 4, -1}, column[] = {4, 1, -1};
    static const struct {
        int32_t elem[2];
        const int64_t *dims[2];
        size_t size[2];
        bool same;
        const char *skipped; /* why it stays, NULL: it does not */
    } cases[] = {
        {{1, 1}, {vector, vector}, {16, 16}, true, NULL},
        {{1, 1}, {none, none}, {4, 4}, true, NULL},
        {{1, 6}, {vector, vector}, {16, 16}, false, NULL},
        {{1, 1}, {vector, square}, {16, 16}, false, NULL},
        {{1, 1}, {row, column}, {16, 16}, false, NULL},
        {{1, 1}, {two, vector}, {8, 16}, false, NULL},
        {{22, 22}, {two, two}, {1, 2}, false, NULL},
        {{1, 1}, {zero, zero}, {0, 0}, true, "has no bytes"},
        {{8, 8}, {vector, vector}, {0, 0}, true, "strings cannot be external"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bytes graphs[2] = {{0}, {0}};
        epctx_status status;
        drive d;
        drive_begin(&d);
        add_epnode(&graphs[0], "first", "x", "y", 1, 1, "FakeEP", "p", "c", 1); /* takes none */
        add_weightless(&graphs[0], "n", "x,w", "s.onnx");
        for (int k = 0; k < 2; k++)
            add_tensor(&graphs[k], 5, "w", cases[i].elem[k], cases[i].dims[k], cases[i].size[k]);
        drive_put(&d, "/d/s.onnx", end_model(&graphs[1]));
        CHECK_TRUE(drive_open(&d, end_model(&graphs[0])));
        status = epctx_weightless(&d.model, NULL, &d.changes, &d.error);
        CHECK((status == EPCTX_OK) == cases[i].same, "case %zu: %s", i, d.error.message);
        if (status != EPCTX_OK) {
            CHECK_HAS(d.error.message, "another tensor of this name");
            CHECK(untouched(&d.model, &d.data), "case %zu: a refusal changes something", i);
        } else {
            CHECK_UINT(d.changes.count, 1);
            CHECK_STR(d.changes.items[0].reason, cases[i].skipped);
        }
        drive_close(&d);
    }
}

/* A source whose file is not there; nodes that nobody asked for. */
TEST(weights_of_some_nodes) {
    bytes graph = {0};
    drive d;
    drive_begin(&d);
    add_external(&graph, "w", 4, "gone.bin", "0", "16");
    drive_put(&d, "/d/s.onnx", end_model(&graph));
    add_weightless(&graph, "n", "x,w", "s.onnx");
    add_floats(&graph, "w", weights, 4);
    CHECK_TRUE(drive_open(&d, end_model(&graph)));
    REFUSES(&d, epctx_weightless(&d.model, NULL, &d.changes, &d.error), EPCTX_ERR_NOT_FOUND,
            "gone.bin");
    drive_close(&d);
    /* Back again: only the weights of the node that is named, and only those that are outside. */
    drive_begin(&d);
    disk_put(&d.disk, "/d/w.bin", weights, sizeof weights);
    add_weightless(&graph, "a", "x,w,in", "s.onnx");
    add_weightless(&graph, "b", "x,v", "s.onnx");
    add_weightless(&graph, "c", "x,w", NULL);
    add_external(&graph, "w", 4, "w.bin", "0", "16");
    add_external(&graph, "v", 4, "w.bin", "0", "16");
    add_floats(&graph, "in", weights, 4);
    CHECK_TRUE(drive_open(&d, end_model(&graph)));
    d.opts.common.node = "a";
    CHECK_OK(epctx_self_contained(&d.model, &d.opts, &d.changes, &d.error), d.error);
    CHECK_UINT(d.changes.count, 2);
    CHECK_INT(d.changes.items[0].kind, OPS_CHANGE_INLINED);
    CHECK_TRUE(epctx_str_is(d.changes.items[0].name, "w"));
    CHECK_TRUE(epctx_str_is(d.changes.items[1].name, "a"));
    epctx_edit_undo(&d.model, 0);
    d.opts.common.node = "c";
    CHECK_INT(epctx_self_contained(&d.model, &d.opts, &d.changes, &d.error), EPCTX_OK);
    CHECK_UINT(d.changes.count, 1); /* it names no source */
    drive_close(&d);
}

/* Contexts that get their weights at load cannot stand alone, however they say so. */
TEST(contexts_without_weights) {
    for (int turn = 0; turn < 3; turn++) {
        bytes graph = {0}, node = new_node("EPContext", "com.microsoft", "n", "x,w", "y");
        const char *cache = turn == 0 ? "e.stripped.engine" : "e.engine";
        drive d;
        drive_begin(&d);
        add_attr_int(&node, "embed_mode", 0);
        add_attr_str(&node, "source", "FakeEP", 6);
        add_attr_str(&node, "ep_cache_context", cache, strlen(cache));
        if (turn == 1) add_attr_str(&node, EPCTX_WEIGHTS_ATTR, "w", 1);
        put_child(&graph, 1, &node);
        add_floats(&graph, "w", weights, 4);
        CHECK_TRUE(drive_open(&d, end_model(&graph)));
        if (turn < 2)
            REFUSES(&d, epctx_self_contained(&d.model, NULL, &d.changes, &d.error),
                    EPCTX_ERR_UNSUPPORTED, "has a context without weights");
        else
            CHECK_OK(epctx_self_contained(&d.model, NULL, &d.changes, &d.error), d.error);
        drive_close(&d);
    }
}

/* -- names and edits -- */

/* {node} keeps what every file system takes. */
TEST(names_from_nodes) {
    bytes graph = {0};
    drive d;
    drive_begin(&d);
    add_epnode(&graph, "a-b_c.1/~", "x", "y", 1, 1, "FakeEP", "p", "payload", 7);
    CHECK_TRUE(drive_open(&d, end_model(&graph)));
    d.opts.common.name = "{node}.bin";
    CHECK_OK(ops_extract(&d.model, &d.opts, &d.changes, &d.error), d.error);
    CHECK_STR(d.changes.files[0].name, "a-b_c.1__.bin");
    drive_close(&d);
}

/* Nodes whose names differ in what no file name takes, or that have none, get numbers. */
TEST(names_from_nodes_that_are_alike) {
    static const char *const names[] = {"a_b.bin", "a_b_1.bin", "context.bin", "context_1.bin"};
    bytes graph = {0};
    drive d;
    size_t i;
    drive_begin(&d);
    add_epnode(&graph, "a_b", "x", "v", 1, 1, "FakeEP", "p", "payload", 7);
    add_epnode(&graph, "a/b", "v", "w", 1, 1, "FakeEP", "q", "another", 7);
    add_epnode(&graph, "", "w", "z", 1, 1, "FakeEP", "r", "a third", 7);
    add_epnode(&graph, "", "z", "y", 1, 1, "FakeEP", "s", "the 4th", 7);
    CHECK_TRUE(drive_open(&d, end_model(&graph)));
    d.opts.common.name = "{node}.bin";
    CHECK_OK(ops_extract(&d.model, &d.opts, &d.changes, &d.error), d.error);
    CHECK_UINT(d.changes.file_count, 4);
    for (i = 0; i < d.changes.file_count; i++) CHECK_STR(d.changes.files[i].name, names[i]);
    epctx_edit_undo(&d.model, 0);
    d.opts.common.name = "{stem}.bin";
    CHECK_INT(ops_extract(&d.model, &d.opts, &d.changes, &d.error), EPCTX_ERR_PATH);
    CHECK_HAS(d.error.message, "choose a node, or a name with {node}");
    drive_close(&d);
}

/* A tensor whose data was edited before; the value of a Constant node. */
TEST(external_after_an_edit) {
    bytes graph = {0}, node = new_node("Constant", "", "c", "", "k"), attr = {0};
    epctx_cursor it;
    epctx_tensor_view tensor;
    epctx_span other = {(const uint8_t *)"0123456789abcdef", 16};
    drive d;
    drive_begin(&d);
    add_floats(&graph, "w", weights, 4);
    add_node(&graph, "Add", "add", "x,w", "y");
    add_tensor(&attr, 5, "", EPCTX_ONNX_FLOAT, vector, 16);
    put_str(&attr, 1, "value");
    put_int(&attr, 20, EPCTX_ATTR_TENSOR);
    put_child(&node, 5, &attr);
    put_child(&graph, 1, &node);
    CHECK_TRUE(drive_open(&d, end_model(&graph)));
    it = epctx_view_graph_initializers(epctx_model_graph(&d.model));
    CHECK_TRUE(epctx_next_tensor(&it, &tensor));
    CHECK_INT(epctx_edit_remove_field(&d.model, tensor.view, 9, &d.error), EPCTX_OK);
    it = epctx_view_graph_initializers(epctx_model_graph(&d.model));
    CHECK_TRUE(epctx_next_tensor(&it, &tensor));
    CHECK_INT(epctx_edit_set_tensor_raw(&d.model, tensor.view, other, &d.error), EPCTX_OK);
    d.opts.threshold = 0;
    CHECK_OK(epctx_init_external(&d.model, &d.opts, &d.changes, &d.error), d.error);
    CHECK_UINT(d.changes.file_count, 1);
    it = epctx_view_graph_initializers(epctx_model_graph(&d.model));
    CHECK_TRUE(epctx_next_tensor(&it, &tensor));
    CHECK_TRUE(tensor.external && !tensor.has_raw && tensor.length == 16);
    CHECK_UINT(d.changes.count, 2);
    CHECK_INT(d.changes.items[1].kind, OPS_CHANGE_EXTERNAL);
    CHECK_TRUE(epctx_str_is(d.changes.items[1].name, "k"));
    epctx_edit_undo(&d.model, 0);
    d.opts.threshold = 16; /* as large as that counts */
    CHECK_OK(epctx_init_external(&d.model, &d.opts, &d.changes, &d.error), d.error);
    CHECK_UINT(d.changes.file_count, 1);
    epctx_edit_undo(&d.model, 0);
    d.opts.threshold = 1000; /* neither is missed */
    CHECK_INT(epctx_init_external(&d.model, &d.opts, &d.changes, &d.error), EPCTX_OK);
    CHECK_UINT(d.changes.count + d.changes.file_count, 0);
    drive_close(&d);
}

TEST(external_is_aligned) {
    bytes graph = {0};
    uint64_t offset = 0;
    epctx_cursor it;
    epctx_tensor_view tensor;
    drive d;
    drive_begin(&d);
    add_floats(&graph, "v", weights, 2);
    add_floats(&graph, "w", weights, 4);
    add_floats(&graph, "u", weights, 1);
    CHECK_TRUE(drive_open(&d, end_model(&graph)));
    d.opts.threshold = 0;
    d.opts.alignment = 64;
    CHECK_OK(epctx_init_external(&d.model, &d.opts, &d.changes, &d.error), d.error);
    it = epctx_view_graph_initializers(epctx_model_graph(&d.model));
    for (; epctx_next_tensor(&it, &tensor); offset += 64) CHECK_UINT(tensor.offset, offset);
    CHECK_UINT(offset, 192);
    CHECK_UINT(d.changes.files[0].size, 132);
    drive_close(&d);
}

/* -- without memory -- */

static bytes source_model(int fill) {
    bytes graph = {0};
    for (int i = 0; i < 3 + fill; i++) {
        char name[32];
        snprintf(name, sizeof name, "w%d", i);
        if (i % 2 == 0)
            add_external(&graph, name, 4, "w.bin", "0", "16");
        else
            add_floats(&graph, name, weights, 4);
    }
    return end_model(&graph);
}

/* Weights in the model, sparse ones, bodies, secondary nodes. */
static bytes large_model(int fill, bool outside) {
    const char *ep = fill % 2 == 0 ? "OpenVINOExecutionProvider" : "EpctxNpuExecutionProvider";
    bytes graph = {0}, node = new_node("EPContext", "com.microsoft", "n", "x", "y"), body = {0};
    char name[32];
    add_attr_int(&node, "main_context", 1);
    add_attr_int(&node, "embed_mode", 1);
    add_attr_str(&node, "ep_cache_context", "payload", 7);
    add_attr_str(&node, "source", ep, strlen(ep));
    for (int i = 0; i < 3 + fill; i++) {
        snprintf(name, sizeof name, "w%d", i);
        put_str(&node, 1, name);
        if (outside)
            add_external(&graph, name, 4, "w.bin", "0", "16");
        else
            add_floats(&graph, name, weights, 4);
        snprintf(name, sizeof name, "sp%d", i);
        add_sparse(&graph, name);
    }
    put_child(&graph, 1, &node);
    for (int i = 0; i < 3 + fill; i++) {
        snprintf(name, sizeof name, "s%d", i);
        add_epnode(&graph, name, "w0", name, 0, 1, ep, name, "", 0);
    }
    add_floats(&body, "own", weights, 4);
    add_sparse(&body, "own sparse");
    put_str(&body, 2, "body");
    node = new_node("If", "", "if", "x", "y2");
    add_attr_graph(&node, "then_branch", &body);
    put_child(&graph, 1, &node);
    return end_model(&graph);
}

/* Tensors of which some end where the next one may begin. */
static bytes uneven_model(int fill) {
    bytes graph = {0};
    for (int i = 0; i < 3 + fill; i++) {
        char name[32];
        snprintf(name, sizeof name, "w%d", i);
        add_floats(&graph, name, weights, i == 0 ? 4 : 1);
    }
    return end_model(&graph);
}

typedef epctx_status (*convert_fn)(epctx_model *, const ops_convert_opts *, ops_changes *,
                                   epctx_error *);
static convert_fn convert_run;
static ops_convert_opts convert_opts;

static epctx_status run_convert(epctx_model *a, epctx_model *b, epctx_error *error) {
    ops_changes changes;
    epctx_status status = convert_run(a, &convert_opts, &changes, error);
    (void)b;
    for (size_t i = 0; status == EPCTX_OK && i < changes.count; i++) {
        const ops_change *c = &changes.items[i];
        starve_say("%d %.*s %.*s %" PRIu64 " %s\n", (int)c->kind, (int)c->name.size, c->name.data,
                   (int)c->file.size, c->file.data, c->size, c->reason != NULL ? c->reason : "");
    }
    return status;
}

TEST(out_of_memory) {
    static const convert_fn functions[] = {
        epctx_init_external, epctx_init_inline, epctx_weightless,   epctx_self_contained,
        ops_extract,         ops_embed,         epctx_init_external};
    size_t runs = 0;
    for (int fill = 0; fill < 15; fill++) {
        for (size_t k = 0; k < sizeof functions / sizeof functions[0]; k++) {
            bytes data = k == 6 ? uneven_model(fill) : large_model(fill, k == 1 || k == 3);
            bytes s = source_model(fill), ext;
            char path[400];
            starve_in in;
            const char *wrong;
            epctx_model model;
            if (k == 5) { /* what extract makes */
                ops_changes changes;
                CHECK_INT(epctx_model_open_memory(&model, data.data, data.size, NULL, NULL),
                          EPCTX_OK);
                CHECK_INT(ops_extract(&model, &convert_opts, &changes, NULL), EPCTX_OK);
                ext = written(&model);
                epctx_model_close(&model);
                bytes_free(&data);
                data = ext;
            }
            CHECK_TRUE(make_root());
            make_file(at("m.onnx"), data.data, data.size);
            make_file(at("s.onnx"), s.data, s.size);
            make_file(at("w.bin"), weights, sizeof weights);
            make_file(at("c.bin"), "payload", 7);
            snprintf(path, sizeof path, "%s", at("m.onnx"));
            memset(&in, 0, sizeof in);
            in.path[0] = path;
            in.data[1] = &s;
            memset(&convert_opts, 0, sizeof convert_opts);
            convert_opts.source = "s.onnx";
            convert_opts.alignment = k == 6 ? 16 : 0;
            convert_opts.common.name = k == 4 ? "c.bin" : NULL;
            convert_run = functions[k];
            wrong = fill == 0 ? starve(run_convert, &in, &runs)
                              : starve_tables(run_convert, &in, &runs);
            memset(&convert_opts, 0, sizeof convert_opts);
            convert_opts.common.name = "c.bin";
            convert_opts.common.output_path = "m.onnx";
            remove_root();
            bytes_free(&data);
            bytes_free(&s);
            CHECK(wrong == NULL, "function %zu, fill %d: %s", k, fill, wrong);
        }
    }
    printf("note %zu runs\n", runs);
}

/* -- groups of files -- */

/* Two files beside a model, which are there already with other bytes; every call of the io fails
 * once. `fresh`: the model is new. */
TEST(groups_that_replace) {
    for (int turn = 0; turn < 4; turn++) {
        bool fresh = turn % 2 == 1;
        for (int at_call = 1;; at_call++) {
            static const epctx_span parts[3] = {
                {(const uint8_t *)"new", 3}, {(const uint8_t *)"", 0}, {NULL, 5}};
            epctx_output_file files[2];
            epctx_write_opts opts = {0};
            bytes graph = {0};
            epctx_status status;
            const char *path = fresh ? "/d/new.onnx" : "/d/m.onnx";
            const disk_file *b;
            epctx_graph record;
            drive d;
            drive_begin(&d);
            disk_put(&d.disk, "/d/a.bin", "old", 3);
            disk_put(&d.disk, "/d/b.bin", "old bbb", 7);
            disk_put(&d.disk, "/d/w.bin", weights, sizeof weights);
            add_epnode(&graph, "n", "x", "y", 1, 1, "FakeEP", "p", "c", 1);
            add_external(&graph, "w", 4, "w.bin", "0", "16");
            CHECK_TRUE(drive_open(&d, end_model(&graph)));
            CHECK_INT(epctx_model_load_graph(&d.model, &record, &d.error), EPCTX_OK);
            memset(files, 0, sizeof files);
            files[0].path = "/d/a.bin";
            files[0].name = "a.bin";
            files[0].parts = parts;
            files[0].part_count = 1;
            files[0].size = 3;
            files[1].path = "/d/b.bin";
            files[1].name = "b.bin";
            files[1].parts = parts;
            files[1].part_count = 3;
            files[1].size = 8;
            opts.overwrite = turn < 2 ? EPCTX_OVERWRITE_REPLACE : EPCTX_OVERWRITE_BACKUP;
            opts.allow_huge = true;
            d.disk.calls = 0;
            d.disk.fail_at = at_call;
            status =
                epctx_model_write_group(&d.model, path, &opts, files, 2, opts.overwrite, &d.error);
            d.disk.fail_at = 0;
            b = disk_find(&d.disk, "/d/b.bin");
            CHECK(b != NULL, "call %d: b.bin is gone", at_call);
            CHECK((b->size == 7 && memcmp(b->data, "old bbb", 7) == 0) ||
                      (b->size == 8 && memcmp(b->data, "new\0\0\0\0\0", 8) == 0),
                  "call %d: b.bin is torn", at_call);
            CHECK(status != EPCTX_OK || (b->size == 8 && disk_find(&d.disk, path) != NULL),
                  "call %d: a success writes nothing", at_call);
            CHECK(status == EPCTX_OK || strstr(d.error.message, "injected") != NULL, "call %d: %s",
                  at_call, d.error.message);
            if (status != EPCTX_OK && fresh)
                CHECK(disk_find(&d.disk, path) == NULL || b->size == 8,
                      "call %d: a model beside files of another generation", at_call);
            CHECK(d.disk.writers == 0, "call %d: an output leaks", at_call);
            status = d.disk.calls < at_call ? EPCTX_OK : EPCTX_ERR_IO;
            drive_close(&d);
            if (status == EPCTX_OK) break;
        }
    }
}

/* A model that no reader takes; the bytes are never touched. */
TEST(too_large) {
    bytes graph = {0};
    epctx_view payload = {NULL, NULL, 0};
    epctx_output_file none = {0};
    drive d;
    drive_begin(&d);
    add_epnode(&graph, "n", "x", "y", 1, 1, "FakeEP", "p", "c", 1);
    CHECK_TRUE(drive_open(&d, end_model(&graph)));
    payload.data = d.data.data;
    payload.size = (size_t)EPCTX_MODEL_MAX;
    CHECK_INT(epctx_edit_put_copy(&d.model, epctx_model_read(&d.model).view, 6, payload,
                                  epctx_view_none(), NULL, NULL),
              EPCTX_OK);
    CHECK_INT(epctx_init_inline(&d.model, NULL, &d.changes, &d.error), EPCTX_ERR_LIMIT);
    CHECK_HAS(d.error.message, "store initializers in a file");
    CHECK_INT(epctx_model_write_group(&d.model, "/d/new.onnx", NULL, &none, 0, EPCTX_OVERWRITE_FAIL,
                                      &d.error),
              EPCTX_ERR_LIMIT);
    CHECK_TRUE(disk_find(&d.disk, "/d/new.onnx") == NULL);
    epctx_edit_undo(&d.model, 0);
    CHECK_TRUE(untouched(&d.model, &d.data));
    drive_close(&d);
}

/* A caller's file whose parts are more than its size is not what stands there. */
TEST(groups_of_wrong_sizes) {
    static const epctx_span part = {(const uint8_t *)"12345678", 8};
    epctx_output_file file = {0};
    bytes graph = {0};
    drive d;
    drive_begin(&d);
    disk_put(&d.disk, "/d/a.bin", "1234", 4);
    add_epnode(&graph, "n", "x", "y", 1, 1, "FakeEP", "p", "c", 1);
    CHECK_TRUE(drive_open(&d, end_model(&graph)));
    file.path = "/d/a.bin";
    file.name = "a.bin";
    file.parts = &part;
    file.part_count = 1;
    file.size = 4;
    CHECK_INT(epctx_model_write_group(&d.model, "/d/m.onnx", &judge, &file, 1, EPCTX_OVERWRITE_FAIL,
                                      &d.error),
              EPCTX_ERR_EXISTS);
    CHECK_TRUE(!file.kept);
    drive_close(&d);
}

/* -- moving a binary -- */

static epctx_status link_meets(void *user, const char *folder, const char *from, const char *to,
                               epctx_error *error) {
    (void)user, (void)folder, (void)from;
    return epctx_fail(error, EPCTX_ERR_EXISTS, "'%s' exists", to);
}

static bytes named_model(const char *cache) {
    bytes graph = {0};
    add_epnode(&graph, "n", "x", "y", 1, 0, "FakeEP", "p", cache, strlen(cache));
    return end_model(&graph);
}

/* The new name is taken, by then or since; every call of the io fails once: every model names a
 * file that is there. */
TEST(moves) {
    static const char *const models[] = {"/d/m.onnx", "/d/n.onnx"};
    static const struct {
        const char *there; /* at the new name */
        bool meets;
        epctx_status status;
    } cases[] = {
        {NULL, false, EPCTX_OK},
        {"binary", false, EPCTX_OK},
        {"BINARY", false, EPCTX_ERR_EXISTS},
        {"other", false, EPCTX_ERR_EXISTS},
        {NULL, true, EPCTX_ERR_EXISTS},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (int at_call = 1;; at_call++) {
            epctx_move_opts opts = {0};
            epctx_move_report report;
            epctx_status status;
            bool reached;
            drive d;
            drive_begin(&d);
            if (cases[i].meets) d.io.link_fn = link_meets;
            disk_put(&d.disk, "/d/c.bin", "binary", 6);
            if (cases[i].there != NULL)
                disk_put(&d.disk, "/d/e.bin", cases[i].there, strlen(cases[i].there));
            drive_put(&d, models[0], named_model("c.bin"));
            drive_put(&d, models[1], named_model("c.bin"));
            opts.io = &d.io;
            d.disk.fail_at = at_call;
            status = epctx_move_binary("/d/c.bin", "/d/e.bin", models, 2, &opts, &report, &d.error);
            reached = d.disk.calls >= at_call;
            CHECK(reached || status == cases[i].status, "case %zu: %s", i, d.error.message);
            CHECK(status == EPCTX_OK || d.error.message[0] != '\0', "case %zu: no message", i);
            CHECK(status == EPCTX_OK || cases[i].status != EPCTX_OK ||
                      strstr(d.error.message, "injected") != NULL,
                  "case %zu, call %d: the failure is not told: %s", i, at_call, d.error.message);
            for (int k = 0; k < 2; k++) {
                const disk_file *f = disk_find(&d.disk, models[k]);
                bytes data = {f->data, f->size, 0};
                const char *name = bytes_contain(&data, "e.bin", 5) ? "/d/e.bin" : "/d/c.bin";
                f = disk_find(&d.disk, name);
                CHECK(f != NULL && f->size == 6 && memcmp(f->data, "binary", 6) == 0,
                      "case %zu, call %d: %s names %s, which is not there", i, at_call, models[k],
                      name);
            }
            CHECK(d.disk.writers == 0 && d.disk.maps == 0, "case %zu, call %d: leaks", i, at_call);
            disk_free(&d.disk);
            if (!reached) break;
        }
    }
}

/* What the caller says of the EP counts, not what the node's source says. */
TEST(moves_by_a_given_profile) {
    static const char *const models[] = {"/d/m.onnx"};
    for (int given = 0; given < 2; given++) {
        epctx_move_opts opts = {0};
        epctx_move_report report;
        epctx_status status;
        drive d;
        drive_begin(&d);
        disk_put(&d.disk, "/d/c.bin", "binary", 6);
        drive_put(&d, models[0], named_model("c.bin"));
        opts.io = &d.io;
        if (given) opts.profile = epctx_profile_find(epctx_str_of("qnn_plugin"));
        status = epctx_move_binary("/d/c.bin", "/d/a..b.bin", models, 1, &opts, &report, &d.error);
        CHECK(status == (given ? EPCTX_ERR_UNSUPPORTED : EPCTX_OK), "given %d: %s, %s", given,
              epctx_status_name(status), d.error.message);
        disk_free(&d.disk);
    }
}

/* Two calls fail: one while the models are written, one while they get their old name back. */
static int commits_left, backs_left;

static epctx_status commit_fails(void *user, epctx_io_file *file, epctx_overwrite overwrite,
                                 epctx_error *error) {
    if (--commits_left != 0) return disk_commit(user, file, overwrite, error);
    return epctx_fail(error, EPCTX_ERR_IO, "the injected failure");
}

static bool back_fails(void *user, epctx_io_file *file) {
    return --backs_left != 0 && disk_back(user, file);
}

TEST(moves_that_fail_twice) {
    static const char *const models[] = {"/d/m.onnx", "/d/n.onnx", "/d/o.onnx"};
    for (int i = 0; i < 6 * 10; i++) {
        epctx_move_opts opts = {0};
        epctx_move_report report;
        epctx_status status;
        drive d;
        drive_begin(&d);
        d.io.commit_fn = commit_fails;
        d.io.back_fn = back_fails;
        disk_put(&d.disk, "/d/c.bin", "binary", 6);
        for (int k = 0; k < 3; k++) drive_put(&d, models[k], named_model("c.bin"));
        opts.io = &d.io;
        commits_left = i / 10 + 1;
        backs_left = i % 10 + 1;
        status = epctx_move_binary("/d/c.bin", "/d/e.bin", models, 3, &opts, &report, &d.error);
        CHECK((status == EPCTX_OK) == (commits_left > 0), "run %d: %s", i, d.error.message);
        for (int k = 0; k < 3; k++) {
            const disk_file *f = disk_find(&d.disk, models[k]);
            bytes data = {f->data, f->size, 0};
            const char *name = bytes_contain(&data, "e.bin", 5) ? "/d/e.bin" : "/d/c.bin";
            CHECK(disk_find(&d.disk, name) != NULL, "run %d: %s names %s, which is not there", i,
                  models[k], name);
        }
        CHECK(d.disk.writers == 0 && d.disk.maps == 0, "run %d: leaks", i);
        disk_free(&d.disk);
    }
}

/* The same for a model and its binary that replace older ones: whatever goes back, and whatever
 * does not, the model has a file of its own generation. */
TEST(groups_that_fail_twice) {
    static const epctx_span part = {(const uint8_t *)"new", 3};
    for (int i = 0; i < 5 * 4; i++) {
        epctx_file_rename rename = {0};
        epctx_output_file file = {0};
        epctx_status status;
        const disk_file *f;
        bytes data = {0};
        bool fresh;
        drive d;
        drive_begin(&d);
        d.io.commit_fn = commit_fails;
        d.io.back_fn = back_fails;
        disk_put(&d.disk, "/d/c.bin", "old", 3);
        drive_put(&d, "/d/x.onnx", named_model("c.bin"));
        CHECK_TRUE(drive_open(&d, named_model("o.bin")));
        rename.from = epctx_str_of("o.bin");
        rename.to = epctx_str_of("c.bin");
        CHECK_OK(epctx_edit_rename_files(&d.model, &rename, 1, &d.error), d.error);
        CHECK_OK(
            epctx_edit_set_metadata(&d.model, epctx_str_of("k"), epctx_str_of("fresh"), &d.error),
            d.error);
        file.path = "/d/c.bin";
        file.name = "c.bin";
        file.parts = &part;
        file.part_count = 1;
        file.size = 3;
        commits_left = i / 4 + 1;
        backs_left = i % 4 + 1;
        status = epctx_model_write_group(&d.model, "/d/x.onnx", NULL, &file, 1,
                                         EPCTX_OVERWRITE_REPLACE, &d.error);
        CHECK((status == EPCTX_OK) == (commits_left > 0), "run %d: %s", i, d.error.message);
        f = disk_find(&d.disk, "/d/x.onnx");
        data.data = f->data;
        data.size = f->size;
        fresh = bytes_contain(&data, "fresh", 5);
        f = disk_find(&d.disk, bytes_contain(&data, "c.bin.new", 9) ? "/d/c.bin.new" : "/d/c.bin");
        CHECK(f != NULL && memcmp(f->data, fresh ? "new" : "old", 3) == 0,
              "run %d: the model has a file of another generation", i);
        CHECK(d.disk.writers == 0 && d.disk.maps == 1, "run %d: leaks", i);
        drive_close(&d);
    }
}

/* A folder is no place for a binary. */
TEST(moves_to_a_folder) {
    static const char *const models[] = {"/d/m.onnx"};
    epctx_move_opts opts = {0};
    epctx_move_report report;
    drive d;
    drive_begin(&d);
    disk_put(&d.disk, "/d/c.bin", "binary", 6);
    drive_put(&d, models[0], named_model("c.bin"));
    opts.io = &d.io;
    CHECK(epctx_move_binary("/d/c.bin", "/d", models, 1, &opts, &report, &d.error) != EPCTX_OK,
          "a binary has the name of its folder");
    CHECK_TRUE(d.error.message[0] != '\0');
    disk_free(&d.disk);
}

int main(int argc, char **argv) {
    RUN(weights_by_tensor);
    RUN(weights_of_some_nodes);
    RUN(contexts_without_weights);
    RUN(names_from_nodes);
    RUN(names_from_nodes_that_are_alike);
    RUN(external_after_an_edit);
    RUN(external_is_aligned);
    RUN(out_of_memory);
    RUN(groups_that_replace);
    RUN(groups_of_wrong_sizes);
    RUN(too_large);
    RUN(moves);
    RUN(moves_by_a_given_profile);
    RUN(moves_that_fail_twice);
    RUN(groups_that_fail_twice);
    RUN(moves_to_a_folder);
    return test_end();
}
