/* >>load: contexts from files, nodes and the application; and the EPContext model as a cache that
 * many processes use at once. What is refused while loading is tested in test_gen. */
#define _XOPEN_SOURCE 700
#include "examples/epctx/ops/cache.h"
#include "examples/epctx/ops/merge.h"
#include "examples/epctx/ops/split.h"
#include "examples/epctx/ops/wrap.h"
#include "fake.h"
#include "files.h"
#include "flaky.h"
#include "sessions.h"
#include "test.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

static const char two_graphs[] = "FAKE\001\n2\nmore\n0\n1\nx\n1\ny\nleft\n0\n1\nx\n1\ny\n";
static const char binary_one[] = "FAKE\001\n1\npart\n0\n1\nx\n1\ny\n";

/* -- binaries from the application -- */

typedef struct store {
    const char *name; /* the only binary */
    const char *data;
    int reads, alive;
    bool fails;
} store;

static epctx_status store_read(void *user, const char *name, void **data, size_t *size,
                               epctx_error *error) {
    store *s = (store *)user;
    s->reads++;
    if (s->fails || strcmp(name, s->name) != 0)
        return epctx_fail(error, EPCTX_ERR_NOT_FOUND, "the store has no '%s'", name);
    *size = strlen(s->data);
    *data = strdup(s->data);
    s->alive++;
    return EPCTX_OK;
}

static void store_free(void *user, void *data, size_t size) {
    store *s = (store *)user;
    s->alive -= strlen((const char *)data) == size;
    free(data);
}

/* An application with that one binary, and options that load from it. */
typedef struct vault {
    store s;
    epctx_buffer_io buffers;
    epctx_io io;
    epctx_load_opts opts;
} vault;

static void open_vault(vault *v, const char *name, const char *data) {
    memset(v, 0, sizeof *v);
    v->s.name = name;
    v->s.data = data;
    v->buffers.user = &v->s;
    v->buffers.read_fn = store_read;
    v->buffers.free_fn = store_free;
    v->io = epctx_io_buffers(&v->buffers);
    v->opts.io = &v->io;
}

static epctx_status load_bytes(const bytes *b, fake *f, const epctx_load_opts *opts, size_t *bound,
                               epctx_error *error) {
    epctx_backend backend = fake_backend(f);
    return load_one(b, NULL, &backend, NULL, opts, bound, error);
}

/* What is surely no context is refused by its name, before the EP's own code sees it. */
TEST(foreign) {
    static const char lfs[] = "version https://git-lfs.github.com/spec/v1\noid sha256:12\nsize 3\n";
    static const char html[] = "<!DOCTYPE html>\n<html></html>\n";
    static const char zeros[64] = "";
    static const char json[] = "{\"a\": 1}";
    static const struct {
        const char *data;
        size_t size;
        const char *profile; /* NULL: an EP of which nothing is known */
        const char *said;    /* NULL: it comes before the EP */
    } cases[] = {
        {lfs, sizeof lfs - 1, NULL, "is a Git LFS pointer, no context binary: run 'git lfs pull'"},
        {html, sizeof html - 1, NULL, "is an HTML page, no context binary: download the file"},
        {html, sizeof html - 1, "npu", "is an HTML page, no context binary"},
        {zeros, sizeof zeros, "npu", "is a file of one repeated byte, no context binary"},
        {json, sizeof json - 1, "npu", "is a JSON document, no context binary"},
        {zeros, sizeof zeros, NULL, NULL}, /* it may be its format */
        {json, sizeof json - 1, NULL, NULL},
    };
    size_t i;
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *source = cases[i].profile != NULL ? "EpctxNpuExecutionProvider" : "FakeEP";
        epctx_load_opts opts = {0};
        fake f = {0};
        bytes graph = {0}, model;
        epctx_error error;
        size_t bound = 0;
        if (cases[i].profile != NULL)
            opts.profile = epctx_profile_find(epctx_str_of(cases[i].profile));
        add_epnode(&graph, "one", "x", "y", 1, 1, source, "part", cases[i].data, cases[i].size);
        model = new_model(&graph);
        CHECK_INT(load_bytes(&model, &f, &opts, &bound, &error), EPCTX_ERR_CONTEXT);
        CHECK_INT(epctx_status_to_ort(EPCTX_ERR_CONTEXT), 10);
        if (cases[i].said != NULL) CHECK_HAS(error.message, cases[i].said);
        CHECK_HAS(error.message, "node 'one'");
        CHECK_INT(f.loads, cases[i].said == NULL);
        bytes_free(&model);
        bytes_free(&graph);
    }
}

/* A path where embed_mode is 1, or absent: the opposite of what a payload as a path is told. */
TEST(path_as_payload) {
    static const struct {
        const char *payload;
        bool hint;
    } rows[] = {
        {"m_fake.bin", true}, {"sub/\xc3\xbf.bin", true}, {"FAKE\001", false}, {"\xff\xfe", false}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (int shared = 0; shared < 2; shared++) {
            epctx_load_opts opts = {0};
            fake f = {0};
            bytes graph = {0}, model;
            epctx_error error;
            size_t bound = 0;
            if (shared) CHECK_OK(epctx_workspace_open(&opts.workspace, NULL, &error), error);
            add_epnode(&graph, "one", "x", "y", 1, 1, "FakeEP", "part", rows[i].payload,
                       strlen(rows[i].payload));
            model = new_model(&graph);
            CHECK_INT(load_bytes(&model, &f, &opts, &bound, &error), EPCTX_ERR_CONTEXT);
            CHECK_STR(error.attribute, "ep_cache_context");
            CHECK(rows[i].hint == (strstr(error.message, "embed_mode must be 0") != NULL), "%s",
                  error.message);
            bytes_free(&model);
            bytes_free(&graph);
            epctx_workspace_close(opts.workspace);
        }
    }
}

/* Which attribute names a graph that is not there; a backend tells which are (fail_no_graph). */
TEST(no_such_graph) {
    for (int shared = 0; shared < 2; shared++) {
        epctx_load_opts opts = {0};
        fake f = {0};
        bytes graph = {0}, model;
        epctx_error error;
        size_t bound = 0;
        if (shared) CHECK_OK(epctx_workspace_open(&opts.workspace, NULL, &error), error);
        add_epnode(&graph, "one", "x", "y", 1, 1, "FakeEP", "more", two_graphs,
                   sizeof two_graphs - 1);
        add_epnode(&graph, "two", "x", "z", 0, 1, "FakeEP", "nope", "", 0);
        model = new_model(&graph);
        CHECK_INT(load_bytes(&model, &f, &opts, &bound, &error), EPCTX_ERR_CONTEXT);
        CHECK_HAS(error.message, "node 'two': attribute 'partition_name': context binary: "
                                 "expected graph 'nope', found 'more', 'left'");
        bytes_free(&model);
        bytes_free(&graph);
        epctx_workspace_close(opts.workspace);
    }
}

static epctx_str numbered(const void *graphs, size_t index) {
    return ((const epctx_str *)graphs)[index];
}

/* As many names as there is room for. */
TEST(fail_no_graph) {
    static char word[1000];
    epctx_str names[64];
    epctx_error error;
    for (size_t i = 0; i < 64; i++) names[i] = epctx_str_of("graph");
    epctx_error_clear(&error);
    CHECK_INT(epctx_fail_no_graph(&error, epctx_str_of("x"), names, 0, numbered),
              EPCTX_ERR_CONTEXT);
    CHECK_HAS(error.message, "expected graph 'x', found none");
    epctx_error_clear(&error);
    epctx_fail_no_graph(&error, epctx_str_of("x"), names, 2, numbered);
    CHECK_HAS(error.message, "found 'graph', 'graph'");
    epctx_error_clear(&error);
    epctx_fail_no_graph(&error, epctx_str_of("x"), names, 64, numbered);
    CHECK_HAS(error.message, "'graph', ...");
    CHECK(strlen(error.message) < 300, "%zu", strlen(error.message));
    memset(word, 'w', sizeof word - 1);
    names[0] = epctx_str_of(word);
    epctx_error_clear(&error);
    epctx_fail_no_graph(&error, epctx_str_of("x"), names, 2, numbered);
    CHECK_HAS(error.message, "found 'wwwwwwww");
    CHECK_HAS(error.message, "w...', ...");
    CHECK_INT(epctx_fail_no_graph(NULL, epctx_str_of("x"), names, 64, numbered), EPCTX_ERR_CONTEXT);
}

/* Weights are named by text, or not at all: with another type the graph would run without. */
TEST(weights_of_another_type) {
    fake f = {0};
    epctx_backend backend = fake_backend(&f);
    bytes graph = {0}, node, model;
    epctx_error error;
    epctx_loaded loaded;
    epctx_node record = {0};
    epctx_attr attrs[3];
    size_t bound = 0;
    node = new_node("EPContext", "com.microsoft", "one", "x", "y");
    add_attr_str(&node, "source", "FakeEP", 6);
    add_attr_str(&node, "ep_cache_context", two_graphs, sizeof two_graphs - 1);
    add_attr_str(&node, "partition_name", "more", 4);
    add_attr_int(&node, EPCTX_WEIGHTS_ATTR, 1);
    put_child(&graph, 1, &node);
    model = new_model(&graph);
    CHECK_INT(load_bytes(&model, &f, NULL, &bound, &error), EPCTX_ERR_GRAPH);
    CHECK_HAS(error.message, "node 'one': attribute 'epctx_weights': has attribute type 2 (INT)");
    memset(attrs, 0, sizeof attrs);
    attrs[0].name = epctx_str_of("source");
    attrs[0].type = EPCTX_ATTR_STRING;
    attrs[0].s = epctx_str_of("FakeEP");
    attrs[1].name = epctx_str_of(EPCTX_WEIGHTS_ATTR);
    attrs[1].type = EPCTX_ATTR_INT;
    attrs[2].name = epctx_str_of("ep_cache_context");
    attrs[2].type = EPCTX_ATTR_STRING;
    attrs[2].s = epctx_str_of(two_graphs);
    record.name = epctx_str_of("one");
    record.op_type = epctx_str_of(EPCTX_OP_TYPE);
    record.domain = epctx_str_of(EPCTX_DOMAIN);
    record.attrs = attrs;
    record.attr_count = 3;
    CHECK_INT(epctx_load_nodes(&loaded, &record, 1, &backend, NULL, &error), EPCTX_ERR_GRAPH);
    CHECK_HAS(error.message, "attribute 'epctx_weights': has attribute type 2 (INT), expected");
    bytes_free(&model);
    bytes_free(&graph);
    CHECK_INT(f.alive, 0);
}

TEST(buffers) {
    fake f = {0};
    vault v;
    epctx_error error;
    bytes graph = {0}, model;
    size_t bound = 0;
    open_vault(&v, "sub/h.bin", binary_one);
    add_epnode(&graph, "one", "x", "y", 1, 0, "FakeEP", "part", "sub/h.bin", 9);
    add_epnode(&graph, "two", "x", "z", 1, 0, "FakeEP", "part", "sub/h.bin", 9);
    model = new_model(&graph);
    /* No folder is needed, and each binary is asked for once. */
    CHECK_OK(load_bytes(&model, &f, &v.opts, &bound, &error), error);
    CHECK_UINT(bound, 2);
    CHECK_INT(v.s.reads, 1);
    CHECK_INT(f.loads, 1);
    CHECK_INT(v.s.alive, 0);
    v.s.data = "no binary";
    CHECK_INT(epctx_status_to_ort(load_bytes(&model, &f, &v.opts, &bound, &error)), 10);
    CHECK_INT(v.s.alive, 0);
    v.s.data = "";
    CHECK_INT(epctx_status_to_ort(load_bytes(&model, &f, &v.opts, &bound, &error)), 10);
    CHECK_HAS(error.message, "is empty");
    CHECK_INT(v.s.alive, 0);
    v.s.fails = true;
    CHECK_INT(epctx_status_to_ort(load_bytes(&model, &f, &v.opts, &bound, &error)), 10);
    CHECK_HAS(error.message, "the store has no 'sub/h.bin'");
    CHECK_HAS(error.message, "one");
    bytes_free(&model);
}

/* The name of a buffer is the application's key, as with ORT's callbacks: nobody else reads it. */
TEST(buffer_names) {
    static const char *const names[] = {
        "../h.bin",     "/h.bin",  "C:\\h.bin", "a/../h.bin",
        "vault://k//1", "a//./b/", "..",        "*/_ORT_MEM_ADDR_/x",
        "\\\\?\\x:y",   " ",       "\xff\xfe",  "."};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        fake f = {0};
        vault v;
        epctx_error error;
        bytes graph = {0}, model;
        size_t bound;
        open_vault(&v, names[i], binary_one);
        add_epnode(&graph, "one", "x", "y", 1, 0, "FakeEP", "part", names[i], strlen(names[i]));
        model = new_model(&graph);
        CHECK(load_bytes(&model, &f, &v.opts, &bound, &error) == EPCTX_OK, "'%s': %s", names[i],
              error.message);
        CHECK_INT(v.s.reads, 1);
        CHECK_INT(v.s.alive, 0);
        v.s.fails = true;
        CHECK_INT(epctx_status_to_ort(load_bytes(&model, &f, &v.opts, &bound, &error)), 10);
        CHECK_HAS(error.message, "the store has no '");
        bytes_free(&model);
    }
}

/* ... but not where it would be a path. */
TEST(buffer_names_are_paths) {
    static const char *const names[] = {"../h.bin", "/h.bin", "C:\\h.bin", "a/../h.bin", ".."};
    for (size_t i = 0; i < 2 * sizeof names / sizeof names[0]; i++) {
        const char *name = names[i / 2];
        fake f = {0};
        epctx_io io = i % 2 == 0 ? *epctx_io_files() : *epctx_io_private();
        epctx_load_opts opts = {0};
        epctx_error error;
        bytes graph = {0}, model;
        size_t bound;
        opts.io = &io;
        add_epnode(&graph, "one", "x", "y", 1, 0, "FakeEP", "part", name, strlen(name));
        model = new_model(&graph);
        CHECK(load_bytes(&model, &f, &opts, &bound, &error) == EPCTX_ERR_PATH, "'%s': %s", name,
              error.message);
        bytes_free(&model);
    }
}

/* What no C string can tell is refused before the application is asked. */
TEST(buffer_names_that_end) {
    static const epctx_str names[] = {{"", 0}, {"a\0b", 3}, {"\0", 1}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        fake f = {0};
        vault v;
        epctx_error error;
        bytes graph = {0}, model;
        size_t bound;
        open_vault(&v, "h.bin", binary_one);
        add_epnode(&graph, "one", "x", "y", 1, 0, "FakeEP", "part", names[i].data, names[i].size);
        model = new_model(&graph);
        CHECK(load_bytes(&model, &f, &v.opts, &bound, &error) == EPCTX_ERR_PATH, "'%s': %s",
              names[i].data, error.message);
        CHECK_INT(v.s.reads, 0);
        bytes_free(&model);
    }
}

/* -- what a backend gets -- */

/* Writes down what load_fn gets. */
typedef struct noter {
    fake f; /* first: `self` points to both */
    char log[1000];
} noter;

static void note(noter *n, const char *format, ...) {
    size_t used = strlen(n->log);
    va_list args;
    va_start(args, format);
    vsnprintf(n->log + used, sizeof n->log - used, format, args);
    va_end(args);
}

static void note_attr(noter *n, const epctx_attr *attr) {
    static const char *const known[] = {"ep_cache_context", "embed_mode", "main_context", "source",
                                        "partition_name"};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (epctx_str_is(attr->name, known[i])) return;
    note(n, " %.*s:%d", (int)attr->name.size, attr->name.data, (int)attr->type);
    if (attr->type == EPCTX_ATTR_INT) note(n, "=%d", (int)attr->i);
    if (attr->type == EPCTX_ATTR_FLOAT) note(n, "=%g", (double)attr->f);
    if (attr->type == EPCTX_ATTR_STRING) note(n, "=%.*s", (int)attr->s.size, attr->s.data);
    for (size_t i = 0; i < attr->count; i++) {
        if (attr->ints != NULL) note(n, ",%d", (int)attr->ints[i]);
        if (attr->floats != NULL) note(n, ",%g", (double)attr->floats[i]);
        if (attr->strings != NULL)
            note(n, ",%.*s", (int)attr->strings[i].size, attr->strings[i].data);
    }
    if (attr->t != NULL || attr->g != NULL) note(n, "=read");
}

/* The path without the folder of the test. */
static const char *below_root(const char *path) {
    char full[EPCTX_PATH_MAX];
    const epctx_io *io = epctx_io_files();
    if (io->canonical_fn(io->user, root, full, sizeof full, NULL) != EPCTX_OK) return path;
    return strncmp(path, full, strlen(full)) == 0 ? path + strlen(full) : path;
}

static epctx_status note_load(void *self, const epctx_load_in *in, void **context,
                              epctx_error *error) {
    noter *n = (noter *)self;
    note(n, "%s%.*s path=%s bytes=%zu file=%d first=%d inputs=%zu", n->log[0] != '\0' ? "; " : "",
         (int)in->node->name.size, in->node->name.data, below_root(in->path), in->binary.size,
         in->file.size == sizeof binary_one - 1 && in->file.inode != 0, in->first,
         in->record->input_count);
    for (size_t i = 0; i < in->record->attr_count; i++) note_attr(n, &in->record->attrs[i]);
    return fake_load(&n->f, in, context, error);
}

static epctx_backend noting_backend(noter *n) {
    epctx_backend backend = fake_backend(&n->f);
    backend.load_fn = note_load;
    return backend;
}

/* A node of "FakeEP" that is not in a graph yet: there is room for further attributes. */
static bytes noted_node(const char *name, int embed, const char *cache) {
    bytes node = new_node("EPContext", "com.microsoft", name, "x", name);
    add_attr_int(&node, "embed_mode", embed);
    add_attr_str(&node, "ep_cache_context", cache, strlen(cache));
    add_attr_str(&node, "source", "FakeEP", 6);
    add_attr_str(&node, "partition_name", "part", 4);
    return node;
}

enum { FROM_FILES, FROM_PRIVATE, FROM_APPLICATION, FROM_OUTPUT };

/* The path is there where the backend could open it, too. */
TEST(load_in) {
    static const struct {
        int from, embed;
        const char *location, *log;
    } rows[] = {
        {FROM_FILES, 0, "a.bin", "one path=/a.bin bytes=23 file=1 first=1 inputs=1"},
        {FROM_FILES, 0, "sub/l", "one path=/a.bin bytes=23 file=1 first=1 inputs=1"},
        {FROM_FILES, 1, binary_one, "one path= bytes=23 file=0 first=1 inputs=1"},
        {FROM_PRIVATE, 0, "a.bin", "one path=/a.bin bytes=23 file=1 first=1 inputs=1"},
        {FROM_APPLICATION, 0, "a.bin", "one path= bytes=23 file=0 first=1 inputs=1"},
        {FROM_APPLICATION, 0, "k://a", "one path= bytes=23 file=0 first=1 inputs=1"},
        {FROM_OUTPUT, 0, "b.bin", "one path=/out/b.bin bytes=23 file=1 first=1 inputs=1"},
    };
    clear_root();
    CHECK_TRUE(mkdir(at("out"), 0777) == 0 && mkdir(at("sub"), 0777) == 0);
    make_file(at("a.bin"), binary_one, sizeof binary_one - 1);
    make_file(at("out/b.bin"), binary_one, sizeof binary_one - 1);
    CHECK_INT(symlink("../a.bin", at("sub/l")), 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        noter n = {0};
        epctx_backend backend = noting_backend(&n);
        epctx_open_opts open = {0};
        epctx_load_opts load = {0};
        vault v;
        epctx_error error;
        epctx_status status;
        bytes graph = {0}, node = noted_node("one", rows[i].embed, rows[i].location);
        put_child(&graph, 1, &node);
        save_model("m_ctx.onnx", &graph);
        open_vault(&v, rows[i].location, binary_one);
        if (rows[i].from == FROM_PRIVATE) open.io = epctx_io_private();
        if (rows[i].from == FROM_APPLICATION) load = v.opts;
        if (rows[i].from == FROM_OUTPUT) load.context_file_path = at("out/x.onnx");
        status = load_one(NULL, at("m_ctx.onnx"), &backend, &open, &load, NULL, &error);
        CHECK(status == EPCTX_OK, "row %zu: %s", i, error.message);
        CHECK(strcmp(n.log, rows[i].log) == 0, "row %zu: found %s", i, n.log);
        CHECK_INT(n.f.alive, 0);
    }
    CHECK_TRUE(remove(at("sub/l")) == 0 && remove(at("sub")) == 0);
    CHECK_TRUE(remove(at("out/b.bin")) == 0 && remove(at("out")) == 0);
}

/* Attributes of every kind, as vendors add their own. */
static bytes adorned_node(const char *name) {
    bytes node = noted_node(name, 1, binary_one), attr, child = {0};
    add_attr_str(&node, "note", "hello", 5);
    add_attr_int(&node, "depth", -7);
    attr = (bytes){0};
    put_float(&attr, 2, 0.5f);
    end_attr(&node, "scale", EPCTX_ATTR_FLOAT, &attr);
    attr = (bytes){0};
    put_int(&attr, 8, 1);
    put_int(&attr, 8, -2);
    end_attr(&node, "list", EPCTX_ATTR_INTS, &attr);
    attr = (bytes){0};
    put_float(&attr, 7, 0.25f);
    put_float(&attr, 7, 2);
    end_attr(&node, "scales", EPCTX_ATTR_FLOATS, &attr);
    attr = (bytes){0};
    put_str(&attr, 9, "a");
    put_str(&attr, 9, "");
    put_str(&attr, 9, "b");
    end_attr(&node, "names", EPCTX_ATTR_STRINGS, &attr);
    attr = (bytes){0};
    put_int(&child, 1, 1);
    put_int(&child, 2, EPCTX_ONNX_UINT8);
    put_data(&child, 9, "x", 1);
    put_child(&attr, 5, &child);
    end_attr(&node, "table", EPCTX_ATTR_TENSOR, &attr);
    add_node(&child, "Relu", "inner", "x", "inner_y");
    add_attr_graph(&node, "body", &child);
    return node;
}

/* The node comes with every attribute, from a model and from a host. */
TEST(load_in_attributes) {
    static const char attributes[] = " note:3=hello depth:2=-7 scale:1=0.5 list:7,1,-2 "
                                     "scales:6,0.25,2 names:8,a,,b table:4%s body:5%s";
    for (int records = 0; records < 2; records++) {
        noter n = {0};
        epctx_backend backend = noting_backend(&n);
        epctx_model model;
        epctx_loaded loaded;
        epctx_graph as_records;
        epctx_error error;
        char wanted[1000], adorned[300];
        bytes graph = {0}, node = adorned_node("one"), b;
        put_child(&graph, 1, &node);
        node = noted_node("two", 1, binary_one);
        put_child(&graph, 1, &node);
        b = new_model(&graph);
        CHECK_OK(epctx_model_open_memory(&model, b.data, b.size, NULL, &error), error);
        CHECK_OK(epctx_model_load_graph(&model, &as_records, &error), error);
        CHECK_OK(records ? epctx_load_nodes(&loaded, as_records.nodes, as_records.node_count,
                                            &backend, NULL, &error)
                         : epctx_load(&loaded, &model, &backend, NULL, &error),
                 error);
        CHECK_UINT(loaded.bound_count, 2);
        snprintf(adorned, sizeof adorned, attributes, records ? "=read" : "",
                 records ? "=read" : "");
        snprintf(wanted, sizeof wanted,
                 "one path= bytes=23 file=0 first=1 inputs=1%s; "
                 "two path= bytes=23 file=0 first=0 inputs=1",
                 adorned);
        CHECK_STR(n.log, wanted);
        epctx_unload(&loaded);
        epctx_model_close(&model);
        bytes_free(&b);
        CHECK_INT(n.f.alive, 0);
    }
}

static epctx_status load_nothing(void *self, const epctx_load_in *in, void **context,
                                 epctx_error *error) {
    (void)self, (void)in, (void)context, (void)error;
    return EPCTX_OK;
}

static epctx_status load_oddly(void *self, const epctx_load_in *in, void **context,
                               epctx_error *error) {
    (void)self, (void)in, (void)error;
    *context = self; /* must not be released: it failed */
    return (epctx_status)12345;
}

/* What a backend must not do has a status, and names the node. */
TEST(load_fn_lies) {
    static const struct {
        epctx_status (*load_fn)(void *, const epctx_load_in *, void **, epctx_error *);
        const char *said;
    } rows[] = {{load_nothing, "load_fn sets no context"},
                {load_oddly, "the context cannot be loaded"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        fake f = {0};
        epctx_backend backend = fake_backend(&f);
        epctx_error error;
        bytes graph = {0}, node = noted_node("one", 1, binary_one), b;
        put_child(&graph, 1, &node);
        b = new_model(&graph);
        backend.load_fn = rows[i].load_fn;
        CHECK_INT(load_one(&b, NULL, &backend, NULL, NULL, NULL, &error), EPCTX_ERR_CONTEXT);
        CHECK_HAS(error.message, rows[i].said);
        CHECK_HAS(error.message, "node 'one'");
        CHECK_HAS(error.message, "ep_cache_context");
        CHECK_INT(f.alive, 0);
        bytes_free(&b);
    }
}

/* A backend that opens the path, and what may happen to it meanwhile. */
enum { LEAVES, REPLACES, WRITES, REMOVES };

typedef struct opener {
    noter n; /* first: `self` points to both */
    int does;
} opener;

static epctx_status open_load(void *self, const epctx_load_in *in, void **context,
                              epctx_error *error) {
    const opener *o = (const opener *)self;
    epctx_load_in with_bytes = *in;
    char text[sizeof binary_one - 1];
    FILE *file;
    if (in->binary.data != NULL) return note_load(self, in, context, error);
    file = fopen(in->path, "rb");
    if (file == NULL || fread(text, 1, sizeof text, file) != sizeof text) abort();
    fclose(file);
    with_bytes.binary.data = (const uint8_t *)text;
    with_bytes.binary.size = sizeof text;
    if (o->does == REPLACES && rename(at("b.bin"), in->path) != 0) abort();
    if (o->does == WRITES) make_file(in->path, "short", 5);
    if (o->does == REMOVES && remove(in->path) != 0) abort();
    return note_load(self, &with_bytes, context, error);
}

/* The file is checked as if it were read, but neither read nor mapped: nobody has the memory for
 * this one. */
TEST(opens_path) {
    static const struct {
        const char *location;
        int from, does;
        epctx_status status;
        const char *said; /* the message; or, with success, what load_fn got */
    } rows[] = {
        {"a.bin", FROM_FILES, LEAVES, EPCTX_OK, "one path=/a.bin bytes=23 file=0 first=1 inputs=1"},
        {"a.bin", FROM_PRIVATE, LEAVES, EPCTX_OK,
         "one path=/a.bin bytes=23 file=0 first=1 inputs=1"},
        {"k://a", FROM_APPLICATION, LEAVES, EPCTX_OK, "one path= bytes=23 file=0 first=1 inputs=1"},
        {"c.bin", FROM_FILES, LEAVES, EPCTX_ERR_CONTEXT, "file 'c.bin' does not exist"},
        {"../a.bin", FROM_FILES, LEAVES, EPCTX_ERR_PATH, "'../a.bin'"},
        {"l.bin", FROM_FILES, LEAVES, EPCTX_ERR_PATH, "leaves the model's folder through a link"},
        {"a.bin", FROM_FILES, REPLACES, EPCTX_ERR_CONTEXT,
         "/a.bin': changed while it was opened: it had 68719476736 bytes, and has 23"},
        {"a.bin", FROM_FILES, WRITES, EPCTX_ERR_CONTEXT, "it had 68719476736 bytes, and has 5"},
        {"a.bin", FROM_FILES, REMOVES, EPCTX_ERR_CONTEXT, "it had 68719476736 bytes, and has 0"},
    };
    clear_root();
    CHECK_INT(symlink("/etc/passwd", at("l.bin")), 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        opener o = {0};
        epctx_backend backend = noting_backend(&o.n);
        epctx_open_opts open = {0};
        epctx_load_opts load = {0};
        vault v;
        epctx_error error;
        epctx_status status;
        bytes graph = {0}, node = noted_node("one", 0, rows[i].location);
        put_child(&graph, 1, &node);
        save_model("m_ctx.onnx", &graph);
        make_file(at("a.bin"), binary_one, sizeof binary_one - 1);
        CHECK_INT(truncate(at("a.bin"), (off_t)1 << 36), 0);
        make_file(at("b.bin"), binary_one, sizeof binary_one - 1);
        open_vault(&v, rows[i].location, binary_one);
        if (rows[i].from == FROM_PRIVATE) open.io = epctx_io_private();
        if (rows[i].from == FROM_APPLICATION) load = v.opts;
        backend.load_fn = open_load;
        backend.opens_path = true;
        o.does = rows[i].does;
        status = load_one(NULL, at("m_ctx.onnx"), &backend, &open, &load, NULL, &error);
        CHECK(status == rows[i].status, "row %zu: %s", i, error.message);
        if (status == EPCTX_OK) {
            CHECK_STR(o.n.log, rows[i].said);
        } else {
            CHECK_HAS(error.message, rows[i].said);
            CHECK_HAS(error.message, "m_ctx.onnx: node 'one'");
            CHECK_HAS(error.message, "ep_cache_context");
            CHECK_INT(o.n.f.loads, rows[i].does != LEAVES);
        }
        CHECK_INT(o.n.f.alive, 0);
    }
}

/* A file of another size than the build stamp says comes before no load_fn. */
TEST(opens_path_stamped) {
    opener o = {0};
    epctx_backend backend = noting_backend(&o.n);
    epctx_error error;
    clear_root();
    make_source(0);
    CHECK_OK(generate_one(at("m.onnx"), &backend, NULL, NULL, NULL, &error), error);
    backend.load_fn = open_load;
    backend.opens_path = true;
    make_file(at("m_fake.bin"), "short", 5);
    CHECK_INT(load_one(NULL, at("m_ctx.onnx"), &backend, NULL, NULL, NULL, &error),
              EPCTX_ERR_VERSION);
    CHECK_HAS(error.message, "'m_fake.bin' has 5 bytes, the model was compiled with one of");
    CHECK_INT(o.n.f.loads, 0);
}

/* A backend that looks at all nodes first, and wants one context before the others. */
typedef struct planner {
    noter n; /* first: `self` points to both */
    size_t wants;
    epctx_status status;
} planner;

static epctx_status plan_nodes(void *self, const epctx_load_in *nodes, size_t count, size_t *first,
                               epctx_error *error) {
    planner *p = (planner *)self;
    (void)error;
    for (size_t i = 0; i < count; i++) {
        note(&p->n, "%.*s(%s%d%d", (int)nodes[i].node->name.size, nodes[i].node->name.data,
             below_root(nodes[i].path), (int)nodes[i].binary.size, (int)nodes[i].file.size);
        for (size_t k = 0; k < nodes[i].record->attr_count; k++)
            note_attr(&p->n, &nodes[i].record->attrs[k]);
        note(&p->n, ") ");
    }
    note(&p->n, "%d,", (int)(*first - count));
    if (p->wants != 99) *first = p->wants;
    return p->status;
}

static epctx_status plan_load(void *self, const epctx_load_in *in, void **context,
                              epctx_error *error) {
    planner *p = (planner *)self;
    note(&p->n, " %.*s:%d", (int)in->node->name.size, in->node->name.data, in->first);
    return fake_load(&p->n.f, in, context, error);
}

/* plan_fn sees all nodes, primary or not, and every attribute; what it says is checked. */
TEST(plan) {
    static const char seen[] = "one(00) two(/a.bin00 spill:2=7) three(00) four(/b.bin00) 0,";
    static const struct {
        size_t wants; /* 99: leaves it */
        epctx_status status, result;
        const char *rest; /* what is loaded, or the message */
    } rows[] = {
        {99, EPCTX_OK, EPCTX_OK, " one:1 two:0 four:0"},
        {4, EPCTX_OK, EPCTX_OK, " one:1 two:0 four:0"},
        {0, EPCTX_OK, EPCTX_OK, " one:1 two:0 four:0"},
        {1, EPCTX_OK, EPCTX_OK, " two:1 one:0 four:0"},
        {3, EPCTX_OK, EPCTX_OK, " four:1 one:0 two:0"},
        {2, EPCTX_OK, EPCTX_ERR_CONTEXT,
         "plan_fn chooses node 2 of 4, expected one with a context of its own"},
        {5, EPCTX_OK, EPCTX_ERR_CONTEXT, "plan_fn chooses node 5 of 4"},
        {SIZE_MAX, EPCTX_OK, EPCTX_ERR_CONTEXT, "plan_fn chooses node "},
        {0, EPCTX_ERR_ARG, EPCTX_ERR_ARG, "the context cannot be loaded"},
        {0, (epctx_status)-3, EPCTX_ERR_CONTEXT, "the context cannot be loaded"},
    };
    clear_root();
    make_file(at("a.bin"), binary_one, sizeof binary_one - 1);
    make_file(at("b.bin"), binary_one, sizeof binary_one - 1);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        planner p = {0};
        epctx_backend backend = fake_backend(&p.n.f);
        epctx_error error;
        epctx_status status;
        bytes graph = {0}, node = noted_node("one", 1, binary_one);
        put_child(&graph, 1, &node);
        node = noted_node("two", 0, "a.bin");
        add_attr_int(&node, "spill", 7);
        put_child(&graph, 1, &node);
        add_epnode(&graph, "three", "x", "three", 0, 0, "FakeEP", "part", NULL, 0);
        node = noted_node("four", 0, "b.bin");
        put_child(&graph, 1, &node);
        save_model("m_ctx.onnx", &graph);
        backend.plan_fn = plan_nodes;
        backend.load_fn = plan_load;
        p.wants = rows[i].wants;
        p.status = rows[i].status;
        status = load_one(NULL, at("m_ctx.onnx"), &backend, NULL, NULL, NULL, &error);
        CHECK(status == rows[i].result, "row %zu: %s", i, error.message);
        CHECK(strncmp(p.n.log, seen, strlen(seen)) == 0, "row %zu: found %s", i, p.n.log);
        CHECK_STR(p.n.log + strlen(seen), status == EPCTX_OK ? rows[i].rest : "");
        if (status != EPCTX_OK) {
            CHECK_HAS(error.message, rows[i].rest);
            CHECK_HAS(error.message, "m_ctx.onnx");
        }
        CHECK_INT(p.n.f.alive, 0);
    }
}

static void remove_folder(const char *name) {
    struct dirent **entries;
    char path[300];
    int count = scandir(at(name), &entries, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/%s", name, entries[i]->d_name);
        remove(at(path));
        free(entries[i]);
    }
    if (count >= 0) free(entries);
    remove(at(name));
}

/* A binary that is not beside the output may be beside the model. */
TEST(second_folder) {
    static const struct {
        const char *name, *second;
        const char *log; /* NULL: `said` tells why not */
        const char *said;
    } rows[] = {
        {"first.bin", "two", "one path=/out/first.bin", NULL},
        {"both.bin", "two", "one path=/out/both.bin", NULL},
        {"second.bin", "two", "one path=/two/second.bin", NULL},
        {"second.bin", "two/", "one path=/two/second.bin", NULL},
        {"ÿ.bin", "two", "one path=/two/ÿ.bin", NULL},
        {"second.bin", NULL, NULL, "file 'second.bin' does not exist"},
        {"none.bin", "two", NULL, "file 'none.bin' does not exist"},
        {"none.bin", "two", NULL, "two' either"},
        {"second.bin", "three", NULL, "it is not in the second folder '"},
        {"link.bin", "two", NULL, "leaves the model's folder through a link"},
        {"empty.bin", "two", NULL, "is empty (0 bytes)"},
        {"../two/second.bin", "two", NULL, "'../two/second.bin'"},
        {"away.bin", "two", NULL, "leaves the second folder through a link"},
    };
    clear_root();
    CHECK_TRUE(mkdir(at("out"), 0777) == 0 && mkdir(at("two"), 0777) == 0);
    make_file(at("out/first.bin"), binary_one, sizeof binary_one - 1);
    make_file(at("out/both.bin"), binary_one, sizeof binary_one - 1);
    make_file(at("out/empty.bin"), "", 0);
    make_file(at("two/both.bin"), "none", 4);
    make_file(at("two/link.bin"), binary_one, sizeof binary_one - 1);
    make_file(at("two/empty.bin"), binary_one, sizeof binary_one - 1);
    make_file(at("two/second.bin"), binary_one, sizeof binary_one - 1);
    make_file(at("two/ÿ.bin"), binary_one, sizeof binary_one - 1);
    CHECK_INT(symlink("/etc/passwd", at("out/link.bin")), 0);
    CHECK_INT(symlink("../out/first.bin", at("two/away.bin")), 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        noter n = {0};
        epctx_backend backend = noting_backend(&n);
        epctx_load_opts load = {0};
        epctx_error error;
        epctx_status status;
        bytes graph = {0}, node = noted_node("one", 0, rows[i].name);
        put_child(&graph, 1, &node);
        save_model("m_ctx.onnx", &graph);
        load.context_file_path = at("out/x.onnx");
        if (rows[i].second != NULL) load.second_folder = at(rows[i].second);
        status = load_one(NULL, at("m_ctx.onnx"), &backend, NULL, &load, NULL, &error);
        CHECK((status == EPCTX_OK) == (rows[i].log != NULL), "row %zu: %s", i,
              status == EPCTX_OK ? n.log : error.message);
        if (status == EPCTX_OK) {
            CHECK(strncmp(n.log, rows[i].log, strlen(rows[i].log)) == 0, "row %zu: found %s", i,
                  n.log);
        } else {
            CHECK_INT(epctx_status_to_ort(status), 10);
            CHECK(strstr(error.message, rows[i].said) != NULL, "row %zu: %s", i, error.message);
            CHECK(rows[i].second != NULL || strstr(error.message, "second folder") == NULL,
                  "row %zu: %s", i, error.message);
        }
    }
    remove_folder("out");
    remove_folder("two");
}

/* What the application has is in no folder. */
TEST(second_folder_of_buffers) {
    noter n = {0};
    vault v;
    epctx_backend backend = noting_backend(&n);
    epctx_error error;
    bytes graph = {0}, node = noted_node("one", 0, "away.bin");
    put_child(&graph, 1, &node);
    clear_root();
    save_model("m_ctx.onnx", &graph);
    make_file(at("away.bin"), binary_one, sizeof binary_one - 1);
    open_vault(&v, "b.bin", binary_one);
    v.opts.second_folder = root;
    CHECK_INT(load_one(NULL, at("m_ctx.onnx"), &backend, NULL, &v.opts, NULL, &error),
              EPCTX_ERR_CONTEXT);
    CHECK_HAS(error.message, "away.bin");
    CHECK(strstr(error.message, "second folder") == NULL, "%s", error.message);
    CHECK_INT(n.f.alive, 0);
}

/* Which context a node has is told once, with its place and its size, and whether an earlier
 * session had loaded it. */
static void note_log(void *user, epctx_log level, const char *text) {
    const char *path = strchr(text, '/');
    note((noter *)user, "%d %.*s%s; ", (int)level, path != NULL ? (int)(path - text) : 1000, text,
         path != NULL ? below_root(path) : "");
}

TEST(told) {
    static const struct {
        int embed, from;
        const char *cache, *log;
    } rows[] = {
        {0, FROM_FILES, "a.bin", "0 node 'one' loads its context, 38 bytes from '/a.bin'; "},
        {1, FROM_FILES, two_graphs,
         "0 node 'one' loads its context, 38 bytes in the model; "
         "0 node 'two' loads its context, 38 bytes in the model; "},
        {0, FROM_APPLICATION, "k:a",
         "0 node 'one' loads its context, 38 bytes from the application's buffer "
         "'k:a'; "},
    };
    noter n[2];
    fake f = {0};
    epctx_backend backend = fake_backend(&f);
    epctx_hooks hooks[2] = {{0}, {0}};
    epctx_error error;
    clear_root();
    make_file(at("a.bin"), two_graphs, sizeof two_graphs - 1);
    for (int k = 0; k < 2; k++) {
        hooks[k].user = &n[k];
        hooks[k].log_fn = note_log;
    }
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        epctx_load_opts load = {0};
        epctx_model models[2];
        epctx_loaded loaded[2];
        vault v;
        open_vault(&v, rows[i].cache, two_graphs);
        if (rows[i].from == FROM_APPLICATION) load = v.opts;
        for (int shared = 0; shared < 2; shared++) {
            memset(n, 0, sizeof n);
            if (shared && rows[i].from == FROM_APPLICATION) continue;
            if (shared) CHECK_OK(epctx_workspace_open(&load.workspace, NULL, &error), error);
            for (int k = 0; k < 1 + shared; k++) {
                bytes graph = {0};
                add_epnode(&graph, "one", "x", "y", 1, rows[i].embed, "FakeEP",
                           k == 0 ? "more" : "left", rows[i].cache, strlen(rows[i].cache));
                add_epnode(&graph, "two", "x", "z", 1, rows[i].embed, "FakeEP",
                           k == 0 ? "more" : "left", rows[i].cache, strlen(rows[i].cache));
                save_model(k == 0 ? "m_ctx.onnx" : "n_ctx.onnx", &graph);
                load.hooks = &hooks[k];
                CHECK_OK(epctx_model_open_file(&models[k], at(k == 0 ? "m_ctx.onnx" : "n_ctx.onnx"),
                                               NULL, &error),
                         error);
                CHECK_OK(epctx_load(&loaded[k], &models[k], &backend, &load, &error), error);
            }
            CHECK_STR(n[0].log, rows[i].log);
            if (shared && rows[i].embed == 0)
                CHECK_STR(n[1].log, "0 node 'one' shares its context, 38 bytes from '/a.bin'; ");
            for (int k = 0; k < 1 + shared; k++) {
                epctx_unload(&loaded[k]);
                epctx_model_close(&models[k]);
            }
            epctx_workspace_close(load.workspace);
            load.workspace = NULL;
            CHECK_INT(f.alive, 0);
        }
    }
}

/* Each file is loaded once, however many nodes name it, and by whichever of its names. */
TEST(files_once) {
    static const struct {
        const char *file, *graph;
    } rows[] = {{"a.bin", "part"}, {"b.bin", "more"}, {"l.bin", "part"},
                {"b.bin", "left"}, {"a.bin", "part"}, {"b.bin", "more"}};
    enum { COUNT = sizeof rows / sizeof rows[0] };
    for (int shared = 0; shared < 2; shared++) {
        fake f = {0};
        epctx_backend backend = fake_backend(&f);
        epctx_load_opts load = {0};
        epctx_model model;
        epctx_loaded loaded;
        epctx_error error;
        bytes graph = {0};
        clear_root();
        make_file(at("a.bin"), binary_one, sizeof binary_one - 1);
        make_file(at("b.bin"), two_graphs, sizeof two_graphs - 1);
        CHECK_INT(symlink("a.bin", at("l.bin")), 0);
        for (int i = 0; i < COUNT; i++) {
            char name[] = "n0";
            name[1] = (char)('0' + i);
            add_epnode(&graph, name, "x", name, 1, 0, "FakeEP", rows[i].graph, rows[i].file,
                       strlen(rows[i].file));
        }
        save_model("m_ctx.onnx", &graph);
        if (shared) CHECK_OK(epctx_workspace_open(&load.workspace, NULL, &error), error);
        CHECK_OK(epctx_model_open_file(&model, at("m_ctx.onnx"), NULL, &error), error);
        CHECK_OK(epctx_load(&loaded, &model, &backend, &load, &error), error);
        CHECK_INT(f.loads, 2);
        CHECK_UINT(loaded.bound_count, COUNT);
        for (int i = 0; i < COUNT; i++)
            CHECK_TRUE(epctx_str_is(loaded.bound[i].info.name, rows[i].graph));
        epctx_unload(&loaded);
        epctx_model_close(&model);
        epctx_workspace_close(load.workspace);
        CHECK_INT(f.alive, 0);
    }
}

/* -- profiles -- */

/* Any number of primaries, in files and inside, and secondaries that find theirs. */
TEST(primaries) {
    enum { MANY = 40 };
    fake f = {0};
    epctx_backend backend = fake_backend(&f);
    bytes graph = {0};
    epctx_model opened;
    epctx_loaded loaded;
    epctx_error error;
    char name[40], value[40];
    clear_root();
    make_file(at("p.bin"), binary_one, sizeof binary_one - 1);
    make_file(at("q.bin"), two_graphs, sizeof two_graphs - 1);
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "n%d", i);
        snprintf(value, sizeof value, "v%d", i);
        if (i % 2 == 0)
            add_epnode(&graph, name, "x", value, 1, 1, "FakeEP", "part", binary_one,
                       sizeof binary_one - 1);
        else
            add_epnode(&graph, name, "x", value, 1, 0, "FakeEP", "part", "p.bin", 5);
    }
    add_epnode(&graph, "main", "x", "y1", 1, 0, "FakeEP", "more", "q.bin", 5);
    add_epnode(&graph, "second", "x", "y2", 0, 0, "FakeEP", "left", NULL, 0);
    add_epnode(&graph, "foreign", "x", "y3", 1, 0, "OtherEP", "left", "none.bin", 8);
    add_node(&graph, "Relu", "cpu", "y1", "y4");
    save_model("h_ctx.onnx", &graph);
    CHECK_INT(epctx_model_open_file(&opened, at("h_ctx.onnx"), NULL, &error), EPCTX_OK);
    CHECK_OK(epctx_load(&loaded, &opened, &backend, NULL, &error), error);
    CHECK_UINT(loaded.bound_count, MANY + 2);
    CHECK_INT(f.loads, MANY / 2 + 2); /* each embedded one, and each file once */
    /* What is left: for the CPU and for another EP. */
    CHECK_UINT(loaded.other_nodes, 2);
    CHECK_TRUE(epctx_str_is(loaded.bound[MANY + 1].info.name, "left"));
    epctx_unload(&loaded);
    epctx_model_close(&opened);
    CHECK_INT(f.alive, 0);
}

/* The file is the one that the node names: whatever the other nodes name, in whichever folder, and
 * whatever it was called when it was generated. */
TEST(names_of_files) {
    static const char *const files[] = {"b", "some-what.longer_name of a binary.bin", "sub/b",
                                        "sub/folder.x/c.bin"};
    enum { GOOD = 4 };
    fake f = {0};
    epctx_backend backend = fake_backend(&f);
    epctx_model model;
    epctx_loaded loaded;
    epctx_error error;
    bytes graph = {0}, generated;
    size_t found;
    clear_root();
    CHECK_TRUE(mkdir(at("sub"), 0777) == 0 && mkdir(at("sub/folder.x"), 0777) == 0);
    for (int i = 0; i < GOOD; i++) {
        char text[100], key[20];
        snprintf(key, sizeof key, "graph%d", i);
        snprintf(text, sizeof text, "FAKE\001\n1\n%s\n0\n1\nx\n1\ny\n", key);
        make_file(at(files[i]), text, strlen(text));
        add_epnode(&graph, key, "x", key, 1, 0, "FakeEP", key, files[i], strlen(files[i]));
    }
    save_model("h_ctx.onnx", &graph);
    CHECK_OK(epctx_model_open_file(&model, at("h_ctx.onnx"), NULL, &error), error);
    CHECK_OK(epctx_load(&loaded, &model, &backend, NULL, &error), error);
    CHECK_UINT(loaded.bound_count, GOOD);
    CHECK_INT(f.loads, GOOD);
    for (int i = 0; i < GOOD; i++)
        CHECK_TRUE(epctx_str_eq(loaded.bound[i].info.name, loaded.bound[i].node.name));
    epctx_unload(&loaded);
    epctx_model_close(&model);
    for (int i = GOOD - 1; i >= 0; i--) CHECK_INT(remove(at(files[i])), 0);
    CHECK_TRUE(remove(at("sub/folder.x")) == 0 && remove(at("sub")) == 0);
    /* A generated model, whose binary and node have been renamed since. */
    make_source(0);
    CHECK_OK(epctx_model_open_file(&model, at("m.onnx"), NULL, &error), error);
    CHECK_OK(epctx_generate(&model, &backend, NULL, NULL, &error), error);
    epctx_model_close(&model);
    generated = read_file(at("m_ctx.onnx"));
    for (found = 0; memcmp(generated.data + found, "m_fake.bin", 10) != 0; found++)
        CHECK_TRUE(found + 10 < generated.size);
    generated.data[found] = 'n';
    save_bytes("m_ctx.onnx", &generated);
    CHECK_INT(rename(at("m_fake.bin"), at("n_fake.bin")), 0);
    CHECK_OK(epctx_model_open_file(&model, at("m_ctx.onnx"), NULL, &error), error);
    CHECK_OK(epctx_load(&loaded, &model, &backend, NULL, &error), error);
    CHECK_UINT(loaded.bound_count, 2);
    epctx_unload(&loaded);
    epctx_model_close(&model);
    CHECK_INT(f.alive, 0);
}

/* The profile says which node is ours and under which key its graph is found. */
TEST(profile_keys) {
    static const char by_name[] = "FAKE\001\n1\nthe_node\n0\n1\nx\n1\ny\n";
    static const char nameless[] = "FAKE\001\n1\n\n0\n1\nx\n1\ny\n";
    static const struct {
        epctx_key key;
        const char *binary;
        bool good;
    } cases[] = {{EPCTX_KEY_NODE_NAME, by_name, true},    {EPCTX_KEY_NODE_NAME, binary_one, false},
                 {EPCTX_KEY_PARTITION, binary_one, true}, {EPCTX_KEY_PARTITION, by_name, false},
                 {EPCTX_KEY_NONE, nameless, true},        {EPCTX_KEY_NONE, by_name, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fake f = {0};
        epctx_profile profile = *epctx_profile_find(epctx_str_of("generic"));
        epctx_load_opts opts = {0};
        epctx_error error;
        bytes graph = {0}, model;
        size_t bound = 0;
        epctx_status status;
        profile.key = cases[i].key;
        profile.sources[0] = "FakeEP";
        profile.sources[1] = NULL;
        profile.traits = EPCTX_TRAIT_ANY_CASE;
        opts.profile = &profile;
        add_epnode(&graph, "the_node", "x", "y", 1, 1, "fakeep", "part", cases[i].binary,
                   strlen(cases[i].binary));
        model = new_model(&graph);
        status = load_bytes(&model, &f, &opts, &bound, &error);
        CHECK((status == EPCTX_OK) == cases[i].good, "case %zu: %s", i, error.message);
        if (cases[i].good) CHECK_UINT(bound, 1);
        /* Without the profile the source is compared letter by letter. */
        CHECK_INT(load_bytes(&model, &f, NULL, &bound, &error), EPCTX_OK);
        CHECK_UINT(bound, 0);
        bytes_free(&model);
        CHECK_INT(f.alive, 0);
    }
}

static epctx_status check_refuses(void *self, const epctx_epnode *node, epctx_error *error) {
    (void)self;
    return epctx_fail(error, EPCTX_ERR_VERSION, "driver 3 is too old for SDK '%S'",
                      &node->ep_sdk_version);
}

/* check_fn speaks before any binary is touched. */
TEST(mismatch) {
    fake f = {0};
    epctx_backend backend = fake_backend(&f);
    epctx_model model;
    epctx_loaded loaded;
    epctx_error error;
    bytes graph = {0};
    backend.check_fn = check_refuses;
    add_epnode(&graph, "one", "x", "y", 1, 0, "FakeEP", "part", "none.bin", 8);
    save_model("h_ctx.onnx", &graph);
    CHECK_INT(epctx_model_open_file(&model, at("h_ctx.onnx"), NULL, &error), EPCTX_OK);
    CHECK_INT(epctx_load(&loaded, &model, &backend, NULL, &error), EPCTX_ERR_VERSION);
    CHECK_INT(epctx_status_to_ort(error.status), 10);
    CHECK_HAS(error.message, "driver 3");
    CHECK_HAS(error.message, "one");
    CHECK_INT(f.loads, 0);
    epctx_model_close(&model);
}

/* A graph with other inputs or outputs than the node's is not bound. */
TEST(other_values) {
    static const struct {
        const char *graph;
        bool fits;
    } rows[] = {{"1\nx\n1\ny\n", true},
                {"0\n1\ny\n", true}, /* an input may be a weight */
                {"2\nx\nz\n1\ny\n", false},
                {"1\nx\n0\n", false},
                {"1\nx\n2\ny\nz\n", true}}; /* an output may be pruned */
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        fake f = {0};
        epctx_backend backend = fake_backend(&f);
        epctx_model model;
        epctx_loaded loaded;
        epctx_error error;
        epctx_status status;
        bytes graph = {0};
        char context[64];
        snprintf(context, sizeof context, "FAKE\001\n1\npart\n0\n%s", rows[i].graph);
        clear_root();
        make_file(at("a.bin"), context, strlen(context));
        add_epnode(&graph, "one", "x", "y", 1, 0, "FakeEP", "part", "a.bin", 5);
        save_model("v_ctx.onnx", &graph);
        CHECK_OK(epctx_model_open_file(&model, at("v_ctx.onnx"), NULL, &error), error);
        status = epctx_load(&loaded, &model, &backend, NULL, &error);
        CHECK(status == (rows[i].fits ? EPCTX_OK : EPCTX_ERR_CONTEXT), "row %zu: %s", i,
              error.message);
        if (status == EPCTX_OK) {
            epctx_unload(&loaded);
        } else {
            CHECK_HAS(error.message, "v_ctx.onnx: node 'one': the node has 1 inputs and 1 outputs");
            CHECK_HAS(error.message, "'part'");
        }
        CHECK_INT(f.alive, 0);
        epctx_model_close(&model);
    }
}

static epctx_status check_major(void *self, const epctx_epnode *node, epctx_error *error) {
    (void)self;
    return node->ep_sdk_version.size > 0 && node->ep_sdk_version.data[0] == '1'
               ? EPCTX_OK
               : epctx_fail(error, EPCTX_ERR_VERSION, "SDK %S is not 1", &node->ep_sdk_version);
}

/* Another version is no fault by itself: the backend decides which ones it can load. */
TEST(compatible_version) {
    static const char *const versions[] = {"1.0", "1.7", "2.0"};
    for (size_t i = 0; i < 3; i++) {
        fake f = {0};
        epctx_backend backend = fake_backend(&f); /* SDK version 1.0 */
        epctx_model model;
        epctx_loaded loaded;
        epctx_error error;
        bytes graph = {0}, node, b;
        node = new_node("EPContext", "com.microsoft", "one", "x", "y");
        add_attr_str(&node, "ep_cache_context", binary_one, sizeof binary_one - 1);
        add_attr_str(&node, "source", "FakeEP", 6);
        add_attr_str(&node, "partition_name", "part", 4);
        add_attr_str(&node, "ep_sdk_version", versions[i], 3);
        put_child(&graph, 1, &node);
        b = new_model(&graph);
        backend.check_fn = check_major;
        CHECK_INT(epctx_model_open_memory(&model, b.data, b.size, NULL, &error), EPCTX_OK);
        CHECK_INT(epctx_load(&loaded, &model, &backend, NULL, &error),
                  i < 2 ? EPCTX_OK : EPCTX_ERR_VERSION);
        epctx_unload(&loaded);
        backend.check_fn = NULL; /* no opinion: the binary itself tells */
        CHECK_OK(epctx_load(&loaded, &model, &backend, NULL, &error), error);
        epctx_unload(&loaded);
        epctx_model_close(&model);
        bytes_free(&b);
    }
}

/* Each node is asked about, also one that has no context of its own. */
TEST(mismatch_of_one) {
    static const char binary[] = "FAKE\001\n3\ng0\n0\n1\nx\n1\ny\n"
                                 "g1\n0\n1\nx\n1\ny\ng2\n0\n1\nx\n1\ny\n";
    for (int wrong = -1; wrong < 3; wrong++) {
        fake f = {0};
        epctx_backend backend = fake_backend(&f);
        epctx_model model;
        epctx_loaded loaded;
        epctx_error error;
        epctx_status status;
        bytes graph = {0}, b;
        backend.check_fn = check_major;
        for (int i = 0; i < 3; i++) {
            char key[] = "g0";
            bytes node;
            key[1] = (char)('0' + i);
            node = new_node("EPContext", "com.microsoft", key, "x", key);
            add_attr_int(&node, "main_context", i < 2);
            if (i < 2) add_attr_str(&node, "ep_cache_context", binary, sizeof binary - 1);
            add_attr_str(&node, "source", "FakeEP", 6);
            add_attr_str(&node, "partition_name", key, 2);
            add_attr_str(&node, "ep_sdk_version", i == wrong ? "2.0" : "1.0", 3);
            put_child(&graph, 1, &node);
        }
        b = new_model(&graph);
        CHECK_INT(epctx_model_open_memory(&model, b.data, b.size, NULL, &error), EPCTX_OK);
        status = epctx_load(&loaded, &model, &backend, NULL, &error);
        epctx_unload(&loaded);
        epctx_model_close(&model);
        bytes_free(&b);
        CHECK_INT(f.alive, 0);
        CHECK(status == (wrong < 0 ? EPCTX_OK : EPCTX_ERR_VERSION), "node %d: %s", wrong,
              status == EPCTX_OK ? "loaded" : error.message);
    }
}

/* The folder of external data is no place for binaries, not even when one is there. */
TEST(two_folders) {
    static const char wrong[] = "not a binary";
    fake f = {0};
    epctx_backend backend = fake_backend(&f);
    epctx_open_opts opts = {0};
    epctx_load_opts load = {0};
    epctx_model model;
    epctx_loaded loaded;
    epctx_error error;
    bytes graph = {0}, b;
    clear_root();
    CHECK_TRUE(mkdir(at("data"), 0777) == 0);
    add_epnode(&graph, "one", "x", "y", 1, 0, "FakeEP", "part", "h.bin", 5);
    b = new_model(&graph);
    make_file(at("h_ctx.onnx"), b.data, b.size);
    make_file(at("h.bin"), binary_one, sizeof binary_one - 1);
    make_file(at("data/h.bin"), wrong, sizeof wrong - 1);
    opts.external_folder = at("data/");
    CHECK_INT(epctx_model_open_file(&model, at("h_ctx.onnx"), &opts, &error), EPCTX_OK);
    CHECK_OK(epctx_load(&loaded, &model, &backend, NULL, &error), error);
    epctx_unload(&loaded);
    /* And where only the wrong folder has one, there is none. */
    make_file(at("data/h.bin"), binary_one, sizeof binary_one - 1);
    remove(at("h.bin"));
    CHECK_INT(epctx_status_to_ort(epctx_load(&loaded, &model, &backend, NULL, &error)), 10);
    epctx_model_close(&model);
    opts.external_folder = at("data");
    load.context_file_path = at("h_ctx.onnx");
    CHECK_INT(epctx_model_open_memory(&model, b.data, b.size, &opts, &error), EPCTX_OK);
    CHECK_INT(epctx_status_to_ort(epctx_load(&loaded, &model, &backend, &load, &error)), 10);
    make_file(at("h.bin"), binary_one, sizeof binary_one - 1);
    CHECK_OK(epctx_load(&loaded, &model, &backend, &load, &error), error);
    epctx_unload(&loaded);
    epctx_model_close(&model);
    remove(at("data/h.bin"));
    rmdir(at("data"));
    bytes_free(&b);
}

/* Nodes of two models in one, the output of the first the input of the second: each has the graph
 * of its own binary. */
TEST(merged_and_connected) {
    static const char binary_two[] = "FAKE\001\n1\nother\n0\n1\nu\n1\nz\n";
    static const int64_t dims[] = {2, -1};
    fake f = {0};
    epctx_backend backend = fake_backend(&f);
    epctx_model models[2];
    epctx_part parts[2];
    epctx_connection link;
    epctx_merge_opts opts = {0};
    epctx_loaded loaded;
    epctx_error error;
    epctx_cursor it;
    epctx_str name;
    bytes graphs[2] = {{0}, {0}}, b[2], merged;
    add_epnode(&graphs[0], "one", "x", "y", 1, 1, "FakeEP", "part", binary_one,
               sizeof binary_one - 1);
    add_value(&graphs[0], GRAPH_INPUT, "x", EPCTX_ONNX_FLOAT, dims);
    add_value(&graphs[0], GRAPH_OUTPUT, "y", EPCTX_ONNX_FLOAT, dims);
    add_epnode(&graphs[1], "two", "u", "z", 1, 1, "FakeEP", "other", binary_two,
               sizeof binary_two - 1);
    add_value(&graphs[1], GRAPH_INPUT, "u", EPCTX_ONNX_FLOAT, dims);
    add_value(&graphs[1], GRAPH_OUTPUT, "z", EPCTX_ONNX_FLOAT, dims);
    memset(parts, 0, sizeof parts);
    for (size_t i = 0; i < 2; i++) {
        b[i] = new_model(&graphs[i]);
        add_opset(&b[i], "com.microsoft", 1);
        CHECK_INT(epctx_model_open_memory(&models[i], b[i].data, b[i].size, NULL, &error),
                  EPCTX_OK);
        parts[i].model = &models[i];
    }
    link.from = link.to = EPCTX_ANY_PART;
    link.output = epctx_str_of("y");
    link.input = epctx_str_of("u");
    opts.connections = &link;
    opts.connection_count = 1;
    CHECK_OK(epctx_merge(parts, 2, &opts, NULL, &error), error);
    merged = written(&models[0]);
    epctx_model_close(&models[0]);
    epctx_model_close(&models[1]);
    CHECK_INT(epctx_model_open_memory(&models[0], merged.data, merged.size, NULL, &error),
              EPCTX_OK);
    CHECK_OK(epctx_load(&loaded, &models[0], &backend, NULL, &error), error);
    CHECK_UINT(loaded.bound_count, 2);
    CHECK_INT(f.loads, 2);
    CHECK_TRUE(epctx_str_is(loaded.bound[0].info.name, "part"));
    CHECK_TRUE(epctx_str_is(loaded.bound[1].info.name, "other"));
    it = epctx_view_node_inputs(&loaded.bound[1].view);
    CHECK_TRUE(epctx_next_str(&it, &name) && epctx_str_is(name, "y"));
    CHECK_UINT(loaded.other_nodes, 0);
    epctx_unload(&loaded);
    epctx_model_close(&models[0]);
    bytes_free(&merged);
    bytes_free(&b[0]);
    bytes_free(&b[1]);
}

static bool always(void *user) {
    (void)user;
    return true;
}

TEST(cancelled) {
    fake f = {0};
    epctx_hooks hooks = {0};
    epctx_load_opts opts = {0};
    epctx_error error;
    bytes graph = {0}, model;
    size_t bound;
    hooks.cancel_fn = always;
    opts.hooks = &hooks;
    add_epnode(&graph, "one", "x", "y", 1, 1, "FakeEP", "part", binary_one, sizeof binary_one - 1);
    model = new_model(&graph);
    CHECK_INT(load_bytes(&model, &f, &opts, &bound, &error), EPCTX_ERR_CANCELLED);
    CHECK_INT(f.alive, 0);
    bytes_free(&model);
}

/* -- the cache -- */

static void count_one(const char *file) {
    int fd = open(at(file), O_WRONLY | O_CREAT | O_APPEND, 0666);
    if (fd < 0 || write(fd, "c", 1) != 1) abort();
    close(fd);
}

static size_t counted(const char *file) {
    bytes b = read_file(at(file));
    size_t size = b.size;
    bytes_free(&b);
    return size;
}

static size_t racers; /* compiling does not end before so many have come */

/* A backend whose compiles are counted across processes: one byte in a file for each. */
static epctx_status counted_begin(void *self, void **build, epctx_error *error) {
    const struct timespec moment = {0, 10 * 1000 * 1000};
    count_one("compiles");
    while (racers > 0 && counted("racers") < racers) nanosleep(&moment, NULL);
    if (racers > 0) nanosleep(&moment, NULL); /* from its byte to the lock */
    return fake_begin(self, build, error);
}

static size_t compiles(void) {
    return counted("compiles");
}

static epctx_backend counted_backend(fake *f) {
    epctx_backend b = fake_backend(f);
    b.begin_fn = counted_begin;
    return b;
}

TEST(cache) {
    fake f = {0};
    epctx_backend backend = counted_backend(&f);
    epctx_opened opened;
    epctx_cache_opts opts = {0};
    epctx_gen_opts gen = {0};
    epctx_error error;
    clear_root();
    make_source(0);
    CHECK_OK(epctx_open_or_compile(&opened, at("m.onnx"), &backend, NULL, &error), error);
    CHECK_INT(opened.origin, EPCTX_FROM_COMPILER);
    CHECK_INT(opened.reason.status, EPCTX_ERR_NOT_FOUND);
    CHECK_UINT(opened.loaded.bound_count, 2);
    epctx_opened_close(&opened);
    epctx_opened_close(&opened);
    CHECK_STR(listing(), "compiles m.onnx m_ctx.onnx m_fake.bin ");
    CHECK_UINT(compiles(), 1);
    for (int fast = 0; fast < 2; fast++) {
        opts.fast = fast;
        CHECK_INT(epctx_open_or_compile(&opened, at("m.onnx"), &backend, &opts, &error), EPCTX_OK);
        CHECK(opened.origin == EPCTX_FROM_CACHE, "%s", opened.reason.message);
        epctx_opened_close(&opened);
    }
    CHECK_UINT(compiles(), 1);
    /* Another source of the same size, also the fast way. */
    make_source(5);
    CHECK_INT(epctx_open_or_compile(&opened, at("m.onnx"), &backend, &opts, &error), EPCTX_OK);
    CHECK_INT(opened.origin, EPCTX_FROM_COMPILER);
    CHECK_HAS(opened.reason.message, "m.onnx' has changed");
    epctx_opened_close(&opened);
    CHECK_UINT(compiles(), 2);
    /* Other options, another SDK, another architecture. */
    opts.gen = &gen;
    gen.name_prefix = "p_";
    CHECK_INT(epctx_open_or_compile(&opened, at("m.onnx"), &backend, &opts, &error), EPCTX_OK);
    CHECK_HAS(opened.reason.message, "other options");
    epctx_opened_close(&opened);
    backend.sdk_version = "1.1";
    CHECK_INT(epctx_open_or_compile(&opened, at("m.onnx"), &backend, &opts, &error), EPCTX_OK);
    CHECK_HAS(opened.reason.message, "SDK 1.0");
    epctx_opened_close(&opened);
    backend.hardware_architecture = "card\nboard%";
    CHECK_INT(epctx_open_or_compile(&opened, at("m.onnx"), &backend, &opts, &error), EPCTX_OK);
    CHECK_HAS(opened.reason.message, "paper");
    epctx_opened_close(&opened);
    CHECK_UINT(compiles(), 5);
    CHECK_INT(epctx_open_or_compile(&opened, at("m.onnx"), &backend, &opts, &error), EPCTX_OK);
    CHECK(opened.origin == EPCTX_FROM_CACHE, "%s", opened.reason.message);
    epctx_opened_close(&opened);
    /* A damaged or missing binary is compiled again. */
    make_file(at("m_fake.bin"), "junk", 4);
    CHECK_INT(epctx_open_or_compile(&opened, at("m.onnx"), &backend, &opts, &error), EPCTX_OK);
    CHECK_INT(opened.origin, EPCTX_FROM_COMPILER);
    epctx_opened_close(&opened);
    remove(at("m_fake.bin"));
    CHECK_INT(epctx_open_or_compile(&opened, at("m.onnx"), &backend, &opts, &error), EPCTX_OK);
    CHECK_INT(opened.origin, EPCTX_FROM_COMPILER);
    epctx_opened_close(&opened);
    CHECK_UINT(compiles(), 7);
    /* Delivered without its source. */
    remove(at("m.onnx"));
    CHECK_OK(epctx_open_or_compile(&opened, at("m.onnx"), &backend, &opts, &error), error);
    CHECK_INT(opened.origin, EPCTX_FROM_CACHE);
    epctx_opened_close(&opened);
    CHECK_INT(f.alive, 0);
    /* Nothing at all. */
    remove(at("m_ctx.onnx"));
    CHECK_INT(epctx_open_or_compile(&opened, at("m.onnx"), &backend, &opts, &error),
              EPCTX_ERR_NOT_FOUND);
    CHECK_HAS(error.message, "m.onnx");
    epctx_opened_close(&opened);
}

#if !defined(__APPLE__) && !defined(_WIN32) /* whose names are Unicode only */
/* A name in another encoding is a name: generating writes it, loading reads it. */
TEST(names_in_any_encoding) {
    static const char *const names[] = {"a\xff.onnx", "\xe4\xf6", "\xc3.onnx"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        fake f = {0};
        epctx_backend backend = counted_backend(&f);
        epctx_opened opened;
        epctx_error error;
        clear_root();
        make_source(0);
        CHECK_INT(rename(at("m.onnx"), at(names[i])), 0);
        CHECK_OK(epctx_open_or_compile(&opened, at(names[i]), &backend, NULL, &error), error);
        epctx_opened_close(&opened);
        CHECK_OK(epctx_open_or_compile(&opened, at(names[i]), &backend, NULL, &error), error);
        CHECK(opened.origin == EPCTX_FROM_CACHE, "%s", opened.reason.message);
        CHECK_UINT(opened.loaded.bound_count, 2);
        epctx_opened_close(&opened);
    }
}
#endif

/* External data belongs to the source. */
TEST(cache_external) {
    static const float data[2] = {1, 2}, other[2] = {1, 3};
    fake f = {0};
    epctx_backend backend = counted_backend(&f);
    epctx_opened opened;
    epctx_error error;
    bytes graph = {0}, model;
    clear_root();
    add_node(&graph, "Take", "n0", "x,w", "y");
    add_x_and_y(&graph);
    add_external(&graph, "w", 2, "w%1.data", "0", "8");
    model = new_model(&graph);
    make_file(at("m.onnx"), model.data, model.size);
    make_file(at("w%1.data"), data, sizeof data);
    bytes_free(&model);
    for (int round = 0; round < 2; round++) {
        CHECK_OK(epctx_open_or_compile(&opened, at("m.onnx"), &backend, NULL, &error), error);
        CHECK_INT(opened.origin, round == 0 ? EPCTX_FROM_COMPILER : EPCTX_FROM_CACHE);
        epctx_opened_close(&opened);
    }
    make_file(at("w%1.data"), other, sizeof other);
    CHECK_INT(epctx_open_or_compile(&opened, at("m.onnx"), &backend, NULL, &error), EPCTX_OK);
    CHECK_INT(opened.origin, EPCTX_FROM_COMPILER);
    CHECK_HAS(opened.reason.message, "w%1.data");
    epctx_opened_close(&opened);
}

/* Each result has a binary of its own; the libraries that an application names decide, too. */
TEST(cache_generations) {
    static const char *const results[] = {
        "compiles m.onnx m_ctx.onnx m_ctx_gen1.bin ver.so ",
        "compiles m.onnx m_ctx.onnx m_ctx_gen1.bin m_ctx_gen2.bin ver.so ",
        "compiles m.onnx m_ctx.onnx m_ctx_gen1.bin m_ctx_gen2.bin m_ctx_gen3.bin ver.so ",
        "compiles m.onnx m_ctx.onnx m_ctx_gen2.bin m_ctx_gen3.bin m_ctx_gen4.bin ver.so "};
    fake f = {0};
    epctx_backend backend = counted_backend(&f);
    epctx_cache_opts opts = {0};
    epctx_gen_opts gen = {0};
    epctx_stamp_opts tools = {0};
    epctx_opened opened;
    epctx_error error;
    bytes graph = {0}, model;
    char library[EPCTX_PATH_MAX];
    const char *libraries[] = {library, NULL};
    clear_root();
    add_node(&graph, "Take", "n0", "x", "y");
    add_x_and_y(&graph);
    model = new_model(&graph);
    make_file(at("m.onnx"), model.data, model.size);
    bytes_free(&model);
    snprintf(library, sizeof library, "%s", at("ver.so"));
    tools.libraries = libraries;
    tools.machine = "this one";
    gen.tools = &tools;
    opts.gen = &gen;
    opts.generations = true;
    for (size_t i = 0; i < 4; i++) {
        make_file(library, &"1234"[i], 1);
        for (int round = 0; round < 2; round++) {
            CHECK_OK(epctx_open_or_compile(&opened, at("m.onnx"), &backend, &opts, &error), error);
            CHECK_INT(opened.origin, round == 0 ? EPCTX_FROM_COMPILER : EPCTX_FROM_CACHE);
            if (i > 0 && round == 0) CHECK_HAS(opened.reason.message, "ver.so' has changed");
            epctx_opened_close(&opened);
        }
        CHECK_STR(listing(), results[i]);
    }
    tools.machine = "another";
    CHECK_OK(epctx_open_or_compile(&opened, at("m.onnx"), &backend, &opts, &error), error);
    CHECK_HAS(opened.reason.message, "for the machine 'this one', this is 'another'");
    epctx_opened_close(&opened);
    libraries[0] = NULL;
    CHECK_OK(epctx_open_or_compile(&opened, at("m.onnx"), &backend, &opts, &error), error);
    CHECK_HAS(opened.reason.message, "the library 'ver.so', which is not there now");
    epctx_opened_close(&opened);
    libraries[0] = library;
    CHECK_OK(epctx_open_or_compile(&opened, at("m.onnx"), &backend, &opts, &error), error);
    CHECK_HAS(opened.reason.message, "ver.so' is new");
    epctx_opened_close(&opened);
}

typedef struct rescue {
    int calls;
    epctx_status answer;
    char why[700];
} rescue;

static epctx_status rescue_fn(void *user, const char *model_path, const epctx_error *why) {
    rescue *r = (rescue *)user;
    r->calls++;
    snprintf(r->why, sizeof r->why, "%s: %s", model_path, why->message);
    return r->answer;
}

TEST(cache_refused) {
    fake f = {0};
    epctx_backend backend = counted_backend(&f);
    epctx_opened opened;
    epctx_cache_opts opts = {0};
    rescue r = {0};
    epctx_error error;
    opts.no_compile = true;
    clear_root();
    make_source(0);
    CHECK_INT(epctx_open_or_compile(&opened, at("m.onnx"), &backend, &opts, &error),
              EPCTX_ERR_NOT_COMPILED);
    CHECK_INT(epctx_status_to_ort(error.status), 13);
    CHECK_HAS(error.message, "session.disable_model_compile");
    epctx_opened_close(&opened);
    opts.user = &r;
    opts.fallback_fn = rescue_fn;
    CHECK_INT(epctx_open_or_compile(&opened, at("m.onnx"), &backend, &opts, &error), EPCTX_OK);
    CHECK_INT(opened.origin, EPCTX_FROM_FALLBACK);
    CHECK_INT(r.calls, 1);
    CHECK_HAS(r.why, at("m.onnx"));
    CHECK_HAS(r.why, "m_ctx.onnx");
    epctx_opened_close(&opened);
    r.answer = EPCTX_ERR_BACKEND; /* the fallback fails, too */
    CHECK_INT(epctx_open_or_compile(&opened, at("m.onnx"), &backend, &opts, &error),
              EPCTX_ERR_BACKEND);
    epctx_opened_close(&opened);
    CHECK_STR(listing(), "m.onnx ");
    /* Nothing that this EP takes. */
    opts.no_compile = false;
    r.answer = EPCTX_OK;
    f.takes = "Nothing";
    CHECK_INT(epctx_open_or_compile(&opened, at("m.onnx"), &backend, &opts, &error), EPCTX_OK);
    CHECK_INT(opened.origin, EPCTX_FROM_FALLBACK);
    epctx_opened_close(&opened);
    CHECK_STR(listing(), "m.onnx ");
    CHECK_INT(f.alive, 0);
}

/* Eight processes start at once. Exactly one compiles; all get the same two graphs. */
static bool race(int round) {
    enum { PROCESSES = 8 };
    pid_t children[PROCESSES];
    int go[2];
    bool good = true;
    if (pipe(go) != 0) return false;
    fflush(NULL);
    for (int i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            fake f = {0};
            epctx_backend backend = counted_backend(&f);
            epctx_opened opened;
            epctx_error why;
            char byte;
            bool ok;
            close(go[1]);
            if (read(go[0], &byte, 1) < 0) _exit(2); /* ends for all at once */
            alarm(60);
            racers = PROCESSES;
            count_one("racers");
            ok = epctx_open_or_compile(&opened, at("m.onnx"), &backend, NULL, &why) == EPCTX_OK &&
                 opened.origin != EPCTX_FROM_FALLBACK && opened.loaded.bound_count == 2;
            for (int k = 0; ok && k < 2; k++) {
                const epctx_bound *bound = &opened.loaded.bound[k];
                const fake_graph *graph = (const fake_graph *)bound->graph;
                ok = epctx_str_eq(bound->info.name, bound->node.partition_name) &&
                     graph->hash == epctx_notes_hash(bound->node.notes);
            }
            if (!ok) fprintf(stderr, "round %d: %s\n", round, why.message);
            epctx_opened_close(&opened);
            _exit(ok && f.alive == 0 ? 0 : 1);
        }
    }
    close(go[0]);
    close(go[1]);
    for (int i = 0; i < PROCESSES; i++) {
        int status;
        if (children[i] < 0 || waitpid(children[i], &status, 0) < 0 || status != 0) good = false;
    }
    return good;
}

TEST(cache_processes) {
    clear_root();
    for (int round = 0; round < 5; round++) {
        make_source((float)round); /* a new source while the old pair is there */
        unlink(at("racers"));
        CHECK(race(round), "a process of round %d failed", round);
        CHECK_UINT(compiles(), (size_t)round + 1);
        CHECK_STR(listing(), "compiles m.onnx m_ctx.onnx m_fake.bin racers ");
    }
}

/* The process that compiles is killed: the next one is not stopped by what it left. */
TEST(cache_killed) {
    fake f = {0};
    epctx_backend backend = fake_backend(&f);
    epctx_opened opened;
    epctx_error error;
    pid_t child;
    int status, ends[2];
    char locked = 'n';
    clear_root();
    make_source(0);
    fflush(NULL);
    CHECK_INT(pipe(ends), 0);
    child = fork();
    if (child == 0) {
        epctx_io_file lock = {0};
        locked =
            epctx_io_files()->lock_fn(NULL, NULL, at("m_ctx.onnx.lock"), &lock, NULL) == EPCTX_OK
                ? 'y'
                : 'n';
        if (write(ends[1], &locked, 1) == 1) pause();
        _exit(0);
    }
    close(ends[1]);
    /* Nothing comes from a child that is gone. */
    if (read(ends[0], &locked, 1) != 1) locked = '?';
    close(ends[0]);
    kill(child, SIGKILL);
    CHECK_TRUE(waitpid(child, &status, 0) == child);
    CHECK_INT(locked, 'y');
    CHECK_STR(listing(), "m.onnx m_ctx.onnx.lock ");
    CHECK_OK(epctx_open_or_compile(&opened, at("m.onnx"), &backend, NULL, &error), error);
    epctx_opened_close(&opened);
    CHECK_STR(listing(), "m.onnx m_ctx.onnx m_fake.bin ");
}

/* -- the rest of the rules -- */

TEST(load_arguments) {
    fake f = {0};
    epctx_backend backend = fake_backend(&f), old = backend;
    epctx_cache_opts opts = {0};
    epctx_gen_opts gen = {0};
    epctx_open_opts open = {0};
    epctx_opened opened;
    epctx_loaded loaded;
    epctx_model model, closed;
    epctx_error error;
    epctx_lock lock;
    old.version++;
    memset(&closed, 0, sizeof closed);
    clear_root();
    make_source(0);
    CHECK_INT(epctx_model_open_file(&model, at("m.onnx"), NULL, NULL), EPCTX_OK);
    CHECK_INT(epctx_load(NULL, &model, &backend, NULL, NULL), EPCTX_ERR_ARG);
    CHECK_INT(epctx_load(&loaded, NULL, &backend, NULL, NULL), EPCTX_ERR_ARG);
    CHECK_INT(epctx_load(&loaded, &closed, &backend, NULL, NULL), EPCTX_ERR_ARG);
    memset(&loaded, 0x5a, sizeof loaded); /* what stood there does not matter */
    CHECK_INT(epctx_load(&loaded, &closed, &backend, NULL, &error), EPCTX_ERR_ARG);
    CHECK_HAS(error.message, "an open model is expected");
    epctx_unload(&loaded);
    CHECK_INT(epctx_load(&loaded, &model, NULL, NULL, NULL), EPCTX_ERR_ARG);
    CHECK_INT(epctx_load(&loaded, &model, &old, NULL, &error), EPCTX_ERR_ARG);
    CHECK_HAS(error.message, "a backend of version");
    epctx_model_close(&model);
    CHECK_INT(epctx_open_or_compile(&opened, at("m.onnx"), NULL, NULL, NULL), EPCTX_ERR_ARG);
    CHECK_INT(epctx_open_or_compile(&opened, at("m.onnx"), &old, NULL, &error), EPCTX_ERR_ARG);
    CHECK_HAS(error.message, "an io and a backend of version");
    CHECK_OK(epctx_workspace_open(&gen.workspace, NULL, &error), error);
    opts.gen = &gen;
    CHECK_INT(epctx_open_or_compile(&opened, at("m.onnx"), &backend, &opts, &error), EPCTX_ERR_ARG);
    CHECK_HAS(error.message, "no workspace");
    epctx_workspace_close(gen.workspace);
    opts.gen = NULL;
    /* A folder, and options that name no io: the machine's files. */
    opts.open = &open;
    CHECK_INT(epctx_open_or_compile(&opened, at("m.onnx"), &backend, &opts, NULL), EPCTX_OK);
    CHECK_INT(opened.origin, EPCTX_FROM_COMPILER);
    epctx_opened_close(&opened);
    CHECK_INT(epctx_open_or_compile(&opened, at("m.onnx"), NULL, &opts, NULL), EPCTX_ERR_ARG);
    /* The machine's mutex is only there when the implementation was told which. */
    CHECK_INT(epctx_lock_make(&lock, NULL, &error), EPCTX_ERR_UNSUPPORTED);
    CHECK_HAS(error.message, "EPCTX_PTHREAD_LOCK");
    CHECK_TRUE(lock.lock_fn == NULL);
    CHECK_INT(f.alive, 0);
}

/* Paths that are too long. */
TEST(cache_long_path) {
    fake f = {0};
    epctx_backend backend = fake_backend(&f);
    epctx_cache_opts opts = {0};
    epctx_gen_opts gen = {0};
    epctx_opened opened;
    epctx_error error;
    char path[EPCTX_PATH_MAX + 4];
    memset(path, 'p', sizeof path);
    opts.gen = &gen;
    gen.context_file_path = path;
    path[sizeof path - 1] = '\0';
    CHECK_INT(epctx_open_or_compile(&opened, at("m.onnx"), &backend, &opts, &error),
              EPCTX_ERR_LIMIT);
    path[EPCTX_PATH_MAX - 2] = '\0'; /* fits, but no system has such a name */
    CHECK_INT(epctx_open_or_compile(&opened, at("m.onnx"), &backend, &opts, &error), EPCTX_ERR_IO);
}

/* Under which name a graph is looked up, and where a secondary node's context comes from. */
TEST(own_contexts) {
    static const char two[] = "FAKE\001\n1\ntwo\n0\n1\ny\n1\nz\n";
    fake f = {0};
    epctx_profile each = *epctx_profile_find(epctx_str_of("generic"));
    epctx_load_opts opts = {0};
    epctx_error error;
    size_t bound = 0;
    bytes graph = {0}, model;
    add_epnode(&graph, "part", "x", "y", 1, 1, "FakeEP", NULL, binary_one, sizeof binary_one - 1);
    add_epnode(&graph, "two", "y", "z", 0, 1, "FakeEP", NULL, two, sizeof two - 1);
    model = new_model(&graph);
    /* A secondary node's payload counts for nothing, unless the profile says so. */
    CHECK_INT(load_bytes(&model, &f, NULL, &bound, &error), EPCTX_ERR_CONTEXT);
    CHECK_INT(f.loads, 1);
    opts.profile = &each;
    each.key = EPCTX_KEY_PARTITION;
    each.traits |= EPCTX_TRAIT_EACH_CONTEXT;
    CHECK_OK(load_bytes(&model, &f, &opts, &bound, &error), error);
    CHECK_UINT(bound, 2);
    CHECK_INT(f.loads, 3);
    each.traits &= ~EPCTX_TRAIT_EACH_CONTEXT;
    each.traits |= EPCTX_TRAIT_SECONDARY_CONTEXT;
    CHECK_OK(load_bytes(&model, &f, &opts, &bound, &error), error);
    CHECK_INT(f.loads, 5);
    CHECK_INT(f.alive, 0);
    bytes_free(&model);
}

/* An embedded context in a file is copied first; every allocation of it may fail. */
TEST(embedded_no_memory) {
    fake f = {0};
    epctx_backend backend = fake_backend(&f);
    epctx_gen_opts gen = {0};
    epctx_model model;
    epctx_error error;
    bool done = false;
    size_t n;
    gen.embed = true;
    clear_root();
    make_source(0);
    CHECK_INT(epctx_model_open_file(&model, at("m.onnx"), NULL, NULL), EPCTX_OK);
    CHECK_INT(epctx_generate(&model, &backend, &gen, NULL, &error), EPCTX_OK);
    epctx_model_close(&model);
    CHECK_INT(epctx_model_open_file(&model, at("m_ctx.onnx"), NULL, NULL), EPCTX_OK);
    for (n = 2; n < 200 && !done; n++) {
        counting c = {0};
        epctx_allocator allocator = counting_allocator(&c);
        epctx_load_opts opts = {0};
        epctx_loaded loaded;
        epctx_status status;
        opts.allocator = &allocator;
        c.fail_at = n / 2;
        c.once = n % 2 == 1; /* or with all that follow */
        status = epctx_load(&loaded, &model, &backend, &opts, n % 4 < 2 ? &error : NULL);
        CHECK_INT(status, c.calls < c.fail_at ? EPCTX_OK : EPCTX_ERR_NOMEM);
        done = status == EPCTX_OK;
        epctx_unload(&loaded);
        CHECK_UINT(c.alive, 0);
        CHECK_INT(f.alive, 0);
    }
    CHECK(done && n > 4, "%zu allocations", n / 2);
    epctx_model_close(&model);
}

/* An io without locks, files in place, and one call after the other that fails: an answer or a
 * clean error, and nothing is left open. */
TEST(cache_io_fails) {
    bool done = false;
    int n;
    for (n = 0; n < 200 && !done; n++) {
        fake f = {0};
        flaky io_state = {0};
        epctx_io io = flaky_io(&io_state);
        epctx_backend backend = fake_backend(&f);
        epctx_cache_opts opts = {0};
        epctx_open_opts open = {0};
        epctx_load_opts load = {0};
        epctx_opened opened;
        epctx_error error;
        epctx_status status;
        clear_root();
        make_source(0);
        open.io = &io;
        open.path_flags = EPCTX_PATH_IN_PLACE;
        load.source_model_path = at("m.onnx");
        opts.open = &open;
        opts.load = &load;
        status = epctx_open_or_compile(&opened, at("m.onnx"), &backend, &opts, &error);
        CHECK_OK(status, error);
        epctx_opened_close(&opened);
        io_state.calls = 0;
        io_state.fail_at = n;
        status = epctx_open_or_compile(&opened, at("m.onnx"), &backend, &opts, &error);
        CHECK(status == EPCTX_OK || strstr(error.message, "the injected failure") != NULL,
              "call %d: %s", n, error.message);
        if (n == 0) CHECK_INT(opened.origin, EPCTX_FROM_CACHE);
        done = n > 0 && status == EPCTX_OK && io_state.calls < n;
        epctx_opened_close(&opened);
        CHECK_INT(io_state.opens, 0);
        CHECK_INT(io_state.maps, 0);
        CHECK_INT(f.alive, 0);
    }
    CHECK(done && n > 4, "%d calls", n);
}

int main(int argc, char **argv) {
    if (!make_root()) return 1;
    RUN(buffers);
    RUN(foreign);
    RUN(path_as_payload);
    RUN(no_such_graph);
    RUN(fail_no_graph);
    RUN(weights_of_another_type);
    RUN(buffer_names);
    RUN(buffer_names_are_paths);
    RUN(buffer_names_that_end);
#if !defined(__APPLE__) && !defined(_WIN32)
    RUN(names_in_any_encoding);
#endif
    RUN(load_in);
    RUN(load_in_attributes);
    RUN(load_fn_lies);
    RUN(opens_path);
    RUN(opens_path_stamped);
    RUN(plan);
    RUN(second_folder);
    RUN(second_folder_of_buffers);
    RUN(told);
    RUN(files_once);
    RUN(primaries);
    RUN(names_of_files);
    RUN(profile_keys);
    RUN(mismatch);
    RUN(other_values);
    RUN(compatible_version);
    RUN(mismatch_of_one);
    RUN(two_folders);
    RUN(merged_and_connected);
    RUN(cancelled);
    RUN(cache);
    RUN(cache_external);
    RUN(cache_generations);
    RUN(cache_refused);
    RUN(cache_processes);
    RUN(cache_killed);
    RUN(load_arguments);
    RUN(cache_long_path);
    RUN(own_contexts);
    RUN(embedded_no_memory);
    RUN(cache_io_fails);
    remove_root();
    return test_end();
}
