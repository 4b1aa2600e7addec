/* >>payload: contexts and weights into the model and out of it, files written as a group, binaries
 * renamed with their models. */
#define _XOPEN_SOURCE 700
#include "examples/epctx/ops/contexts.h"
#include "examples/epctx/ops/init.h"
#include "examples/epctx/ops/weightless.h"
#include "examples/epctx/ops/lint.h"
#include "examples/epctx/ops/move.h"
#include "files.h"
#include "flaky.h"

#include <fcntl.h>

static const char ov_source[] = "OpenVINOExecutionProvider";

static const epctx_write_opts judge = {.dry_run = true};

static void make_text(const char *name, const char *text) {
    make_file(at(name), text, strlen(text));
}

static bool file_is(const char *name, const char *text) {
    bytes b = read_file(at(name));
    bool same = bytes_equal(&b, text, strlen(text));
    bytes_free(&b);
    return same;
}

/* -- models -- */

typedef struct part {
    const char *name;
    int64_t main_context, embed_mode; /* -1: absent */
    const char *source, *cache;       /* NULL: absent */
} part;

/* Nodes in a row, written to "m.onnx". */
static void make_parts(const part *parts, size_t count) {
    static const int64_t dims[] = {1, -1};
    bytes graph = {0}, model;
    char in[32] = "x", out[32];
    for (size_t i = 0; i < count; i++) {
        const part *p = &parts[i];
        snprintf(out, sizeof out, "v%zu", i);
        add_epnode(&graph, p->name, in, out, p->main_context, p->embed_mode, p->source, p->name,
                   p->cache, p->cache != NULL ? strlen(p->cache) : 0);
        add_value(&graph, i + 1 < count ? GRAPH_VALUE : GRAPH_OUTPUT, out, EPCTX_ONNX_FLOAT, dims);
        strcpy(in, out);
    }
    put_str(&graph, 2, "main");
    add_value(&graph, GRAPH_INPUT, "x", EPCTX_ONNX_FLOAT, dims);
    model = new_model(&graph);
    add_opset(&model, "com.microsoft", 1);
    save_bytes("m.onnx", &model);
}

typedef epctx_status (*convert_fn)(epctx_model *model, const ops_convert_opts *opts,
                                   ops_changes *changes, epctx_error *error);

/* What the last conversion told, e.g. "embedded a; skipped b: why; ". */
static char told[2000];

static void tell(const ops_changes *changes) {
    told[0] = '\0';
    for (size_t i = 0; i < changes->count; i++) {
        const ops_change *c = &changes->items[i];
        size_t used = strlen(told);
        snprintf(told + used, sizeof told - used, "%s %.*s%s%s; ", ops_change_name(c->kind),
                 (int)c->name.size, c->name.data, c->reason != NULL ? ": " : "",
                 c->reason != NULL ? c->reason : "");
    }
}

/* Every allocation of a conversion fails once and leaves the model as it was; what is wrong, or
 * NULL. */
static const char *starve(convert_fn function, const char *from, const ops_convert_opts *opts) {
    static uint64_t memory[HUNGRY_BUFFER / 8];
    size_t room = 0, rounds;
    for (rounds = 0; rounds < 5000; rounds++) {
        static epctx_error error;
        ops_changes changes;
        epctx_model model;
        epctx_status status;
        bytes before = {0}, after = {0};
        size_t missing;
        bool same;
        if (open_hungry(&model, at(from), NULL, memory, SIZE_MAX, &error) != EPCTX_OK) return NULL;
        before = written(&model);
        if (room < model.arena.left) model.arena.left = room;
        status = function(&model, opts, &changes, &error);
        missing = model.arena.missing;
        model.arena.left += 4096; /* for writing */
        if (status != EPCTX_OK) after = written(&model);
        same = status == EPCTX_OK || bytes_equal(&after, before.data, before.size);
        bytes_free(&before);
        bytes_free(&after);
        epctx_model_close(&model);
        if (!same) return "a failure left an edit";
        if (status != EPCTX_ERR_NOMEM) return NULL;
        if (missing == 0) return "a failure without a request";
        room += missing;
    }
    return "it never ends";
}

/* Converts one file into another. */
static epctx_status convert(convert_fn function, const char *from, const char *to,
                            const ops_convert_opts *opts, const epctx_io *io, epctx_error *error) {
    ops_convert_opts own = {0};
    epctx_open_opts open = {0};
    ops_changes changes;
    epctx_model model;
    epctx_status status;
    bytes before, after;
    char path[400];
    open.io = io;
    if (opts != NULL) own = *opts;
    snprintf(path, sizeof path, "%s", at(to)); /* at() is called often here */
    own.common.output_path = path;
    if (io == NULL) {
        const char *problem = starve(function, from, &own);
        if (problem != NULL) {
            printf("starved: %s\n", problem);
            return EPCTX_STATUS_COUNT;
        }
    }
    status = epctx_model_open_file(&model, at(from), &open, error);
    if (status != EPCTX_OK) return status;
    before = written(&model);
    status = function(&model, &own, &changes, error);
    if (status == EPCTX_OK) {
        tell(&changes);
        status = epctx_model_write_group(&model, at(to), NULL, changes.files, changes.file_count,
                                         EPCTX_OVERWRITE_FAIL, error);
    } else {
        after = written(&model);
        if (!bytes_equal(&after, before.data, before.size)) status = EPCTX_OK; /* must not be */
        bytes_free(&after);
    }
    bytes_free(&before);
    epctx_model_close(&model);
    return status;
}

static bool same_files(const char *a, const char *b) {
    bytes x = read_file(at(a)), y = read_file(at(b));
    bool same = x.size > 0 && bytes_equal(&x, y.data, y.size);
    bytes_free(&x);
    bytes_free(&y);
    return same;
}

/* main_context/embed_mode/cache of every node: "1/0/a.bin 0/0/- ". */
static const char *nodes_of(const char *name) {
    static char text[1000];
    epctx_model model;
    epctx_walk walk;
    epctx_node_view view;
    epctx_epnode node;
    text[0] = '\0';
    if (epctx_model_open_file(&model, at(name), NULL, NULL) != EPCTX_OK) return "unreadable";
    epctx_walk_begin(&walk, &model);
    while (epctx_walk_epnode(&walk, &view)) {
        size_t used = strlen(text);
        if (epctx_view_read_epnode(&view, &node, NULL) != EPCTX_OK) return "broken";
        bool there = (node.present & 1u << EPCTX_EPNODE_EP_CACHE_CONTEXT) != 0;
        snprintf(text + used, sizeof text - used, "%d/%d/%.*s ", (int)node.main_context,
                 (int)node.embed_mode, there ? (int)node.ep_cache_context.size : 1,
                 there ? node.ep_cache_context.data : "-");
    }
    epctx_model_close(&model);
    return text;
}

static void count_errors(void *user, const epctx_finding *finding) {
    if (finding->info.severity != EPCTX_SEVERITY_ERROR) return;
    printf("lint: %s %s\n", finding->info.id, finding->message);
    ++*(int *)user;
}

static bool lint_clean(const char *name) {
    epctx_model model;
    int errors = 0;
    if (epctx_model_open_file(&model, at(name), NULL, NULL) != EPCTX_OK) return false;
    if (epctx_lint(&model, NULL, count_errors, &errors, NULL, NULL) != EPCTX_OK) errors++;
    epctx_model_close(&model);
    return errors == 0;
}

/* -- embed and extract -- */

TEST(embed_and_back) {
    static const part parts[] = {{"a", 1, 0, "FakeEP", "m_fakeep.bin"},
                                 {"b", 0, 0, "FakeEP", NULL},
                                 {"c", 0, -1, "FakeEP", NULL}};
    epctx_error error;
    clear_root();
    make_parts(parts, 3);
    make_text("m_fakeep.bin", "binary");
    CHECK_OK(convert(ops_embed, "m.onnx", "e.onnx", NULL, NULL, &error), error);
    CHECK_STR(told, "embedded a; followed b; ");
    CHECK_STR(nodes_of("e.onnx"), "1/1/binary 0/1/- 0/1/- ");
    CHECK_TRUE(lint_clean("e.onnx"));
    remove(at("m.onnx"));
    CHECK_OK(convert(ops_extract, "e.onnx", "m.onnx", NULL, NULL, &error), error);
    CHECK_STR(nodes_of("m.onnx"), "1/0/m_fakeep.bin 0/0/- 0/1/- ");
    CHECK_STR(listing(), "e.onnx m.onnx m_fakeep.bin ");
    CHECK_TRUE(lint_clean("m.onnx"));
    CHECK_INT(convert(ops_embed, "m.onnx", "e2.onnx", NULL, NULL, &error), EPCTX_OK);
    CHECK_TRUE(same_files("e.onnx", "e2.onnx"));
    CHECK_INT(convert(ops_extract, "e2.onnx", "m.onnx", NULL, NULL, &error), EPCTX_OK);
    make_parts(parts, 3);
    CHECK_INT(convert(ops_embed, "m.onnx", "e3.onnx", NULL, NULL, &error), EPCTX_OK);
    CHECK_TRUE(same_files("e.onnx", "e3.onnx"));
}

/* On our own output the way back gives the first bytes again, lengths of lengths included. */
TEST(inverse_restores_bytes) {
    static const part parts[] = {{"a", 1, 0, "FakeEP", "m_fakeep.bin"},
                                 {"b", 0, 0, "FakeEP", NULL}};
    epctx_error error;
    bytes big = {0};
    for (size_t size = 100; size < 3000000; size *= 13) {
        clear_root();
        make_parts(parts, 2);
        bytes_free(&big);
        while (big.size < size) bytes_add(&big, "0123456789", 10);
        make_file(at("m_fakeep.bin"), big.data, big.size);
        rename(at("m.onnx"), at("first.onnx"));
        CHECK_INT(convert(ops_embed, "first.onnx", "e.onnx", NULL, NULL, &error), EPCTX_OK);
        CHECK_INT(convert(ops_extract, "e.onnx", "m.onnx", NULL, NULL, &error), EPCTX_OK);
        CHECK(same_files("first.onnx", "m.onnx"), "%zu bytes: the model differs", big.size);
    }
    bytes_free(&big);
}

/* Embedded by hand, contexts of 1 to 3 nodes, some equal. */
TEST(equal_contexts_are_one_file) {
    static const part parts[] = {{"a", 1, 1, "MIGraphXExecutionProvider", "same"},
                                 {"b", 1, 1, "MIGraphXExecutionProvider", "else"},
                                 {"c", 1, 1, "MIGraphXExecutionProvider", "same"}};
    epctx_error error;
    clear_root();
    make_parts(parts, 3);
    CHECK_OK(convert(ops_extract, "m.onnx", "o.onnx", NULL, NULL, &error), error);
    CHECK_STR(nodes_of("o.onnx"), "1/0/a.mxr 1/0/b.mxr 1/0/a.mxr ");
    CHECK_STR(listing(), "a.mxr b.mxr m.onnx o.onnx ");
    CHECK_INT(convert(ops_embed, "o.onnx", "back.onnx", NULL, NULL, &error), EPCTX_OK);
    CHECK_TRUE(same_files("back.onnx", "m.onnx"));
}

TEST(names_of_binaries) {
    static const struct {
        const char *source, *name, *want; /* name NULL: the EP's own; want NULL: refused */
    } cases[] = {
        {"QNNExecutionProvider", NULL, "net_ctx_qnn.bin"},
        {"OpenVINOExecutionProvider", NULL, "net_ctx_OpenVINOExecutionProvider.bin"},
        {"TensorrtExecutionProvider", NULL, "n_1_.engine"},
        {"VitisAIExecutionProvider", NULL, "net_ctx.onnx_MORPHIZEN.bin"},
        {"EpctxNpuExecutionProvider", NULL, "net_npu.bin"},
        {"FooExecutionProvider", NULL, "net_foo.bin"},
        {"My/EP", NULL, "net_my_ep.bin"},
        {"My", "{stem}-{node}.ctx", "net_ctx-n_1_.ctx"},
        {"My", "{model}{file}{", "netnet_ctx.onnx{"},
        {"My", "*.bin", "*.bin"},
        {"My", "{model}{what}", NULL},
        {"My", "folder/", NULL},
        {"My", "a..b.bin", "a..b.bin"},
        {"My", "../evil.bin", NULL},
        {"My", "/evil.bin", NULL},
        {"My", "C:evil.bin", NULL},
        {"My", "", NULL},
        {"My", "no/such/folder.bin", NULL},
        {"My", "net_ctx.onnx", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        part p = {"n/1*", 1, 1, NULL, "bytes"};
        ops_convert_opts opts = {0};
        epctx_error error;
        char want[100];
        epctx_status status;
        clear_root();
        p.source = cases[i].source;
        opts.common.name = cases[i].name;
        make_parts(&p, 1);
        status = convert(ops_extract, "m.onnx", "net_ctx.onnx", &opts, NULL, &error);
        if (cases[i].want == NULL) {
            CHECK(status != EPCTX_OK, "%s was taken", cases[i].name);
            CHECK_STR(listing(), "m.onnx ");
            continue;
        }
        CHECK(status == EPCTX_OK, "%s: %s", cases[i].want, error.message);
        snprintf(want, sizeof want, "1/0/%s ", cases[i].want);
        CHECK_STR(nodes_of("net_ctx.onnx"), want);
        CHECK(file_is(cases[i].want, "bytes"), "%s has other bytes", cases[i].want);
    }
}

/* What an EP could not load is refused with reason and cure, and the model is as before. */
TEST(profiles_forbid) {
    static const struct {
        convert_fn function;
        const char *node; /* opts.node */
        part parts[2];
        const char *text;
    } cases[] = {
        {ops_embed, NULL, {{"a", 1, 0, "QNN", "a.bin"}, {"b", 0, 0, "QNN", NULL}}, "31977"},
        {ops_embed, NULL, {{"a", 1, 0, "OpenVINOExecutionProvider", "a.xml"}}, "OpenVINO IR"},
        {ops_embed,
         NULL,
         {{"a", 1, 0, "TensorrtExecutionProvider", "a.stripped.engine"}},
         "engine without weights"},
        {ops_embed,
         NULL,
         {{"a", 1, 0, "OpenVINOExecutionProvider", "a.bin"},
          {"b", 1, 0, "OpenVINOExecutionProvider", "b.bin"}},
         "several binaries"},
        {ops_embed,
         "a",
         {{"a", 1, 0, "OpenVINOExecutionProvider", "a.bin"},
          {"b", 1, 0, "OpenVINOExecutionProvider", "a.bin"}},
         "convert all"},
        {ops_embed, "z", {{"a", 1, 0, "X", "a.bin"}}, "no EPContext node 'z'"},
        {ops_embed, NULL, {{"a", 1, 0, "X", "../a.bin"}}, "'..'"},
        {ops_embed, NULL, {{"a", 1, 0, "X", "/a.bin"}}, "absolute"},
        {ops_embed, NULL, {{"a", 1, 0, "X", "missing.bin"}}, "does not exist"},
        {ops_embed, NULL, {{"a", 1, 0, "X", "empty.bin"}}, "empty"},
        {ops_embed, NULL, {{"a", 1, 0, "X", NULL}}, "is empty"},
        {ops_extract, NULL, {{"a", 1, 1, "telum", "text"}}, "embedded contexts only"},
        {ops_extract, NULL, {{"a", 1, 1, "X", NULL}}, "compile the model again"},
        {ops_extract, NULL, {{"a", 1, 1, "X", ""}}, "compile the model again"},
        {ops_embed, NULL, {{"a", 1, 2, "X", "a.bin"}}, "embed_mode"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ops_convert_opts opts = {0};
        epctx_error error;
        char before[1000];
        clear_root();
        make_text("a.bin", "a");
        make_text("b.bin", "b");
        make_text("a.xml", "a");
        make_text("a.stripped.engine", "a");
        make_text("empty.bin", "");
        make_parts(cases[i].parts, cases[i].parts[1].name != NULL ? 2 : 1);
        strcpy(before, listing());
        opts.common.node = cases[i].node;
        CHECK(convert(cases[i].function, "m.onnx", "o.onnx", &opts, NULL, &error) != EPCTX_OK,
              "case %zu was taken", i);
        CHECK_HAS(error.message, cases[i].text);
        CHECK_STR(listing(), before);
    }
}

/* OpenVINO: external nodes all name the container, embedded it stands in the first one. */
TEST(openvino_shares_one_container) {
    static const part parts[] = {
        {"a", 1, 0, "OpenVINOExecutionProvider", "m_OpenVINOExecutionProvider.bin"},
        {"b", 1, 0, "OpenVINOExecutionProvider", "m_OpenVINOExecutionProvider.bin"}};
    epctx_error error;
    clear_root();
    make_parts(parts, 2);
    make_text("m_OpenVINOExecutionProvider.bin", "container");
    rename(at("m.onnx"), at("first.onnx"));
    CHECK_OK(convert(ops_embed, "first.onnx", "e.onnx", NULL, NULL, &error), error);
    CHECK_STR(nodes_of("e.onnx"), "1/1/container 0/1/ ");
    CHECK_TRUE(lint_clean("e.onnx"));
    CHECK_OK(convert(ops_extract, "e.onnx", "m.onnx", NULL, NULL, &error), error);
    CHECK_TRUE(same_files("first.onnx", "m.onnx"));
}

/* -- every EP's rule for the nodes that share a context -- */

/* "main_context/embed_mode/context" of the first node and of the others, "@" before what is in a
 * file; "#" in it is the number of the node. */
typedef struct sharing_rule {
    const char *profile, *source;
    const char *file[2], *embedded[2];
    size_t most_embedded;              /* nodes; more are refused */
    const char *no_embed, *no_extract; /* NULL: none is */
} sharing_rule;

static const sharing_rule sharing_rules[] = {
    {"qnn", "QNN", {"1/0/@c", "0/0/-"}, {"1/1/c", "0/1/-"}, 1, "only in a file", NULL},
    {"qnn_plugin", "QNN", {"1/0/@c", "0/0/-"}, {"1/1/c", "0/1/-"}, 3, NULL, NULL},
    {"openvino", ov_source, {"1/0/@c", "1/0/@c"}, {"1/1/c", "0/1/"}, 3, NULL, NULL},
    {"openvino_plugin", ov_source, {"1/0/@c", "1/0/@c"}, {"1/1/c", "0/1/-"}, 3, NULL, NULL},
    {"tensorrt",
     "TensorrtExecutionProvider",
     {"1/0/@c#", "1/0/@c#"},
     {"1/1/c#", "1/1/c#"},
     3,
     NULL,
     NULL},
    {"nv_tensorrt_rtx",
     "NvTensorRTRTXExecutionProvider",
     {"0/0/@c#", "0/0/@c#"},
     {"0/1/c#", "0/1/c#"},
     3,
     NULL,
     NULL},
    {"migraphx",
     "MIGraphXExecutionProvider",
     {"1/0/@c#", "1/0/@c#"},
     {"1/1/c#", "1/1/c#"},
     3,
     NULL,
     NULL},
    {"vitisai", "VitisAIExecutionProvider", {"1/0/@c", "0/0/-"}, {"1/1/c", "0/1/-"}, 3, NULL, NULL},
    {"telum", "telum", {NULL, NULL}, {"1/1/c#", "1/1/c#"}, 3, NULL, "reads embedded contexts only"},
    {"npu", "EpctxNpuExecutionProvider", {"1/0/@c", "0/0/-"}, {"1/1/c", "0/1/-"}, 3, NULL, NULL},
    {"example", "example_ep", {"1/0/@c#", "1/0/@c#"}, {"1/1/c#", "1/1/c#"}, 3, NULL, NULL},
    {"generic", "FakeEP", {"1/0/@c", "0/0/-"}, {"1/1/c", "0/1/-"}, 3, NULL, NULL}};

/* What the rule says of so many nodes, "#" replaced. */
static const char *sharing_of(const char *const rule[2], size_t count) {
    static char text[200];
    size_t used = 0, i;
    for (i = 0; i < count; i++) {
        const char *p;
        for (p = rule[i > 0]; *p != '\0'; p++) text[used++] = *p == '#' ? (char)('0' + i) : *p;
        text[used++] = ' ';
    }
    text[used] = '\0';
    return text;
}

/* The model of a rule, with its files. */
static void make_shared(const sharing_rule *rule, const char *const nodes[2], size_t count) {
    static const char *const names[] = {"n0", "n1", "n2"};
    static char caches[3][16];
    part parts[3];
    size_t i;
    for (i = 0; i < count; i++) {
        const char *text = nodes[i > 0], *context = text + 4;
        const bool file = context[0] == '@';
        parts[i].name = names[i];
        parts[i].main_context = text[0] - '0';
        parts[i].embed_mode = text[2] - '0';
        parts[i].source = rule->source;
        char content[4] = "c";
        if (strchr(context, '#') != NULL) content[1] = (char)('0' + i);
        snprintf(caches[i], sizeof caches[i], "%s%s", content, file ? ".bin" : "");
        parts[i].cache = context[0] == '-' ? NULL : context[0] == '\0' ? "" : caches[i];
        if (file) make_text(caches[i], content);
    }
    make_parts(parts, count);
}

/* As nodes_of, with what is in a file for its name. */
static const char *sharing_in(const char *name) {
    static char text[1000];
    const char *nodes = nodes_of(name);
    size_t used = 0;
    while (*nodes != '\0') {
        const size_t size = strcspn(nodes, " ");
        char file[64];
        if (size > 4 && strncmp(nodes + 1, "/0/", 3) == 0 && nodes[4] != '-') {
            bytes b;
            snprintf(file, sizeof file, "%.*s", (int)(size - 4), nodes + 4);
            b = read_file(at(file));
            used += (size_t)snprintf(text + used, sizeof text - used, "%.4s@%.*s ", nodes,
                                     (int)b.size, (const char *)b.data);
            bytes_free(&b);
        } else {
            used += (size_t)snprintf(text + used, sizeof text - used, "%.*s ", (int)size, nodes);
        }
        nodes += size + (nodes[size] == ' ');
    }
    text[used] = '\0';
    return text;
}

/* Each EP x number of nodes x {embed, extract} and back. */
TEST(sharing_by_ep) {
    ops_convert_opts opts = {0};
    const epctx_io *io = epctx_io_files();
    epctx_error error;
    size_t i, count;
    for (i = 0; i < sizeof sharing_rules / sizeof sharing_rules[0]; i++) {
        const sharing_rule *rule = &sharing_rules[i];
        opts.common.profile = epctx_profile_find(epctx_str_of(rule->profile));
        for (count = 1; count <= 3; count++) {
            epctx_status status;
            clear_root();
            make_shared(rule, rule->embedded, count);
            status = convert(ops_extract, "m.onnx", "x.onnx", &opts, io, &error);
            if (rule->no_extract != NULL) {
                CHECK_INT(status, EPCTX_ERR_UNSUPPORTED);
                CHECK_HAS(error.message, rule->no_extract);
                continue;
            }
            CHECK_OK(status, error);
            CHECK(strcmp(sharing_in("x.onnx"), sharing_of(rule->file, count)) == 0,
                  "%s, %zu nodes extracted: %s", rule->profile, count, sharing_in("x.onnx"));
            make_shared(rule, rule->file, count);
            CHECK_STR(sharing_in("m.onnx"), sharing_of(rule->file, count));
            status = convert(ops_embed, "m.onnx", "e.onnx", &opts, io, &error);
            if (count > rule->most_embedded) {
                CHECK_INT(status, EPCTX_ERR_UNSUPPORTED);
                CHECK_HAS(error.message, rule->no_embed);
                continue;
            }
            CHECK_OK(status, error);
            CHECK(strcmp(sharing_in("e.onnx"), sharing_of(rule->embedded, count)) == 0,
                  "%s, %zu nodes embedded: %s", rule->profile, count, sharing_in("e.onnx"));
            CHECK_OK(convert(ops_embed, "x.onnx", "y.onnx", &opts, io, &error), error);
            CHECK_STR(sharing_in("y.onnx"), sharing_of(rule->embedded, count));
            CHECK_OK(convert(ops_extract, "e.onnx", "z.onnx", &opts, io, &error), error);
            CHECK_STR(sharing_in("z.onnx"), sharing_of(rule->file, count));
        }
    }
}

/* The node that ONNX Runtime gives the EP first has the context: here the last one. */
TEST(embedded_in_the_first) {
    static const int64_t dims[] = {1, -1};
    bytes graph = {0}, model;
    epctx_error error;
    clear_root();
    add_epnode(&graph, "a", "x", "y", 1, 0, ov_source, "a", "c.bin", 5);
    add_epnode(&graph, "b", "x", "t", 1, 0, ov_source, "b", "c.bin", 5);
    add_epnode(&graph, "c", "t", "z", 1, 0, ov_source, "c", "c.bin", 5);
    put_str(&graph, 2, "main");
    add_value(&graph, GRAPH_INPUT, "x", EPCTX_ONNX_FLOAT, dims);
    add_value(&graph, GRAPH_OUTPUT, "y", EPCTX_ONNX_FLOAT, dims);
    add_value(&graph, GRAPH_OUTPUT, "z", EPCTX_ONNX_FLOAT, dims);
    model = new_model(&graph);
    add_opset(&model, "com.microsoft", 1);
    save_bytes("m.onnx", &model);
    make_text("c.bin", "container");
    CHECK_OK(convert(ops_embed, "m.onnx", "e.onnx", NULL, NULL, &error), error);
    CHECK_STR(nodes_of("e.onnx"), "0/1/ 1/1/container 0/1/ ");
    CHECK_OK(convert(ops_extract, "e.onnx", "o.onnx", NULL, NULL, &error), error);
    CHECK_HAS(nodes_of("o.onnx"), "1/0/o_OpenVINOExecutionProvider.bin 1/0/o_");
}

/* Two primary nodes of QNN with contexts of their own are fine in both modes. */
TEST(qnn_of_two_contexts) {
    static const part parts[] = {{"a", 1, 1, "Qnn", "one"}, {"b", 1, 1, "Qnn", "two"}};
    ops_convert_opts opts = {0};
    epctx_error error;
    clear_root();
    make_parts(parts, 2);
    CHECK_OK(convert(ops_extract, "m.onnx", "o.onnx", NULL, NULL, &error), error);
    CHECK_STR(nodes_of("o.onnx"), "1/0/o_qnn.bin 1/0/o_qnn_1.bin ");
    CHECK_INT(convert(ops_embed, "o.onnx", "back.onnx", NULL, NULL, &error), EPCTX_OK);
    CHECK_TRUE(same_files("m.onnx", "back.onnx"));
    opts.common.name = "one.bin";
    CHECK_INT(convert(ops_extract, "m.onnx", "p.onnx", &opts, NULL, &error), EPCTX_ERR_PATH);
    CHECK_HAS(error.message, "{node}");
    opts.common.node = "b";
    CHECK_INT(convert(ops_extract, "m.onnx", "p.onnx", &opts, NULL, &error), EPCTX_OK);
    CHECK_STR(nodes_of("p.onnx"), "1/1/one 1/0/one.bin ");
    CHECK_TRUE(file_is("one.bin", "two"));
}

/* A node inside of a body, and a model from memory. */
TEST(bodies_and_memory) {
    bytes body = {0}, node, graph = {0}, model_bytes, out;
    ops_convert_opts opts = {0};
    ops_changes changes;
    epctx_model model;
    epctx_error error;
    clear_root();
    add_epnode(&body, "inner", "x", "y", 1, 1, "FakeEP", "p", "ctx", 3);
    node = new_node("If", "", "if", "c", "y");
    add_attr_graph(&node, "then_branch", &body);
    put_child(&graph, 1, &node);
    model_bytes = new_model(&graph);
    CHECK_INT(epctx_model_open_memory(&model, model_bytes.data, model_bytes.size, NULL, &error),
              EPCTX_OK);
    CHECK_INT(ops_extract(&model, NULL, &changes, &error), EPCTX_ERR_PATH);
    CHECK_HAS(error.message, "memory");
    opts.common.output_path = at("m.onnx");
    CHECK_OK(ops_extract(&model, &opts, &changes, &error), error);
    CHECK_UINT(changes.file_count, 1);
    CHECK_STR(changes.files[0].name, "m_fakeep.bin");
    CHECK_INT(epctx_model_write_group(&model, at("m.onnx"), NULL, changes.files, 1,
                                      EPCTX_OVERWRITE_FAIL, &error),
              EPCTX_OK);
    CHECK_STR(nodes_of("m.onnx"), "1/0/m_fakeep.bin ");
    epctx_edit_undo(&model, 0);
    out = written(&model);
    CHECK_MEM(out.data, out.size, model_bytes.data, model_bytes.size);
    bytes_free(&out);
    epctx_model_close(&model);
    bytes_free(&model_bytes);
}

/* -- initializers -- */

static void add_typed(bytes *graph, const char *name, int32_t elem, uint32_t field,
                      const char *text) {
    bytes tensor = {0};
    put_int(&tensor, 1, 1);
    put_int(&tensor, 2, elem);
    put_str(&tensor, field, text);
    put_str(&tensor, 8, name);
    put_child(graph, 5, &tensor);
}

/* w (8 floats) raw, s (2 floats), t typed, text, and a body with an initializer of its own that
 * also captures `s`; `free` is read by nobody, `opt` makes an input optional. */
static void make_weights(void) {
    static const int64_t dims[] = {1, -1};
    static const float data[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    bytes body = {0}, attr = {0}, node, graph = {0}, model, tensor = {0};
    add_node(&body, "Add", "inner", "s,own", "y");
    add_floats(&body, "own", data, 8);
    add_floats(&body, "idle", data, 4);
    node = new_node("If", "", "if", "x", "y");
    add_attr_graph(&node, "then_branch", &body);
    put_child(&graph, 1, &node);
    add_node(&graph, "Use", "use", "w,t,text", "z");
    node = new_node("Constant", "", "const", "", "k");
    memset(&attr, 0, sizeof attr);
    put_int(&tensor, 1, 8);
    put_int(&tensor, 2, EPCTX_ONNX_FLOAT);
    put_data(&tensor, 9, data, sizeof data);
    put_str(&attr, 1, "value");
    put_child(&attr, 5, &tensor);
    put_int(&attr, 20, EPCTX_ATTR_TENSOR);
    put_child(&node, 5, &attr);
    put_child(&graph, 1, &node);
    put_str(&graph, 2, "main");
    add_floats(&graph, "w", data, 8);
    add_floats(&graph, "s", data + 2, 2);
    add_typed(&graph, "t", EPCTX_ONNX_INT64, 7, "\x05"); /* packed */
    add_typed(&graph, "text", EPCTX_ONNX_STRING, 6, "words");
    add_floats(&graph, "free", data, 3);
    add_floats(&graph, "opt", data, 1);
    add_value(&graph, GRAPH_INPUT, "x", EPCTX_ONNX_FLOAT, dims);
    add_value(&graph, GRAPH_INPUT, "opt", EPCTX_ONNX_FLOAT, dims);
    add_value(&graph, GRAPH_OUTPUT, "y", EPCTX_ONNX_FLOAT, dims);
    model = new_model(&graph);
    save_bytes("m.onnx", &model);
}

TEST(weights_out_and_in) {
    ops_convert_opts opts = {0};
    epctx_error error;
    bytes data;
    float first;
    clear_root();
    make_weights();
    opts.threshold = 8;
    opts.alignment = 64;
    CHECK_OK(convert(epctx_init_external, "m.onnx", "x.onnx", &opts, NULL, &error), error);
    CHECK_HAS(told, "external w; external s; external t; skipped text: strings");
    CHECK_HAS(told, "external own; external idle; ");
    CHECK_HAS(told, "external k; ");
    CHECK_TRUE(strstr(told, "external opt") == NULL);
    CHECK_STR(listing(), "m.onnx x.onnx x.onnx.data ");
    data = read_file(at("x.onnx.data"));
    CHECK_UINT(data.size, 64 * 6 + 32);
    memcpy(&first, data.data + 64, sizeof first);
    CHECK_NEAR(first, 3, 0);
    bytes_free(&data);
    CHECK_OK(convert(epctx_init_inline, "x.onnx", "i.onnx", NULL, NULL, &error), error);
    CHECK_INT(convert(epctx_init_external, "i.onnx", "x2.onnx", &opts, NULL, &error), EPCTX_OK);
    CHECK_TRUE(same_files("x.onnx.data", "x2.onnx.data"));
    opts.common.name = "x.onnx.data";
    CHECK_OK(convert(epctx_init_external, "i.onnx", "x3.onnx", &opts, NULL, &error), error);
    CHECK_TRUE(same_files("x.onnx", "x3.onnx"));
    /* Again: nothing is left to do, the file in use is no obstacle. */
    CHECK_INT(convert(epctx_init_external, "x.onnx", "x4.onnx", &opts, NULL, &error), EPCTX_OK);
    CHECK_TRUE(same_files("x.onnx", "x4.onnx"));
    opts.threshold = 1;
    CHECK_INT(convert(epctx_init_external, "x.onnx", "x5.onnx", &opts, NULL, &error),
              EPCTX_ERR_PATH);
    CHECK_HAS(error.message, "already contains weights");
    opts.alignment = 48;
    CHECK_INT(convert(epctx_init_external, "m.onnx", "x6.onnx", &opts, NULL, &error),
              EPCTX_ERR_ARG);
}

/* Raw data in field order: the way back gives the first bytes. */
TEST(weights_inverse_restores_bytes) {
    static const float data[300] = {1, 2, 3};
    ops_convert_opts opts = {0};
    bytes graph = {0}, model;
    epctx_error error;
    clear_root();
    add_node(&graph, "Use", "use", "a,b", "z");
    add_floats(&graph, "a", data, 300);
    add_floats(&graph, "b", data, 20);
    model = new_model(&graph);
    save_bytes("m.onnx", &model);
    CHECK_INT(convert(epctx_init_external, "m.onnx", "x.onnx", &opts, NULL, &error), EPCTX_OK);
    CHECK_INT(convert(epctx_init_inline, "x.onnx", "i.onnx", NULL, NULL, &error), EPCTX_OK);
    CHECK_TRUE(same_files("m.onnx", "i.onnx"));
}

TEST(weights_damaged_files) {
    static const char *const ends[][3] = {
        {"short.data", "0", "800"}, {"missing.data", "0", "8"}, {"../up.data", "0", "8"},
        {"short.data", "90", "8"},  {"short.data", "0", "4"},
    };
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        bytes graph = {0}, model;
        epctx_error error;
        clear_root();
        add_node(&graph, "Use", "use", "a", "z");
        add_external(&graph, "a", 2, ends[i][0], ends[i][1], ends[i][2]);
        model = new_model(&graph);
        save_bytes("m.onnx", &model);
        make_text("short.data", "01234567");
        CHECK(convert(epctx_init_inline, "m.onnx", "o.onnx", NULL, NULL, &error) != EPCTX_OK,
              "case %zu was taken", i);
        CHECK_STR(listing(), "m.onnx short.data ");
    }
}

TEST(prune_what_nobody_reads) {
    epctx_error error;
    clear_root();
    make_weights();
    CHECK_OK(convert(epctx_init_prune, "m.onnx", "o.onnx", NULL, NULL, &error), error);
    CHECK_STR(told, "pruned free; pruned idle; ");
    CHECK_INT(convert(epctx_init_prune, "o.onnx", "p.onnx", NULL, NULL, &error), EPCTX_OK);
    CHECK_STR(told, "");
    CHECK_TRUE(same_files("o.onnx", "p.onnx"));
}

TEST(prune_spares_training_and_quantization) {
    static const float data[2] = {1, 2};
    bytes graph = {0}, model, training = {0}, algorithm = {0};
    epctx_error error;
    clear_root();
    add_node(&graph, "Op", "op", "x", "y");
    add_floats(&graph, "in_algorithm", data, 2);
    add_floats(&graph, "bound", data, 2);
    add_floats(&graph, "scale", data, 2);
    add_floats(&graph, "free", data, 2);
    add_scale(&graph, "x", "scale");
    model = new_model(&graph);
    add_node(&algorithm, "Op", "step", "in_algorithm", "new");
    put_child(&training, 2, &algorithm);
    put_pair(&training, 4, "bound", "new");
    put_child(&model, 20, &training);
    save_bytes("m.onnx", &model);
    CHECK_OK(convert(epctx_init_prune, "m.onnx", "o.onnx", NULL, NULL, &error), error);
    CHECK_STR(told, "pruned free; ");
}

/* -- weightless -- */

static void make_weightless(const char *name, const float *w, size_t count, bool source) {
    bytes graph = {0}, model;
    if (source)
        add_node(&graph, "Op", "op", "x,w", "y");
    else
        add_epnode(&graph, "n", "x,w", "y", 1, 1, "MyEP", "n", "ctx", 3);
    add_floats(&graph, "w", w, count);
    add_floats(&graph, "other", w, 1);
    model = new_model(&graph);
    save_bytes(name, &model);
}

TEST(weightless_and_back) {
    static const float data[64] = {3, 1, 4, 1, 5}, wrong[64] = {2};
    ops_convert_opts opts = {0};
    epctx_error error;
    epctx_model model;
    epctx_graph graph;
    bytes size, empty, graph_of_none = {0};
    clear_root();
    make_weightless("m.onnx", data, 64, false);
    make_weightless("source.onnx", data, 64, true);
    CHECK_INT(convert(epctx_weightless, "m.onnx", "w.onnx", NULL, NULL, &error), EPCTX_ERR_ARG);
    CHECK_HAS(error.message, "specify the source model");
    opts.source = "source.onnx";
    CHECK_OK(convert(epctx_weightless, "m.onnx", "w.onnx", &opts, NULL, &error), error);
    CHECK_STR(told, "external w; source n; ");
    size = read_file(at("w.onnx"));
    CHECK(size.size < 64 * 4 + 200, "the weights are still inside: %zu bytes", size.size);
    bytes_free(&size);
    CHECK_INT(epctx_model_open_file(&model, at("w.onnx"), NULL, &error), EPCTX_OK);
    CHECK_OK(epctx_model_load_graph(&model, &graph, &error), error);
    CHECK_MEM(graph.initializers[0].data, graph.initializers[0].size, data, sizeof data);
    epctx_model_close(&model);
    CHECK_INT(convert(epctx_self_contained, "w.onnx", "s.onnx", NULL, NULL, &error), EPCTX_OK);
    CHECK_TRUE(same_files("s.onnx", "m.onnx"));
    CHECK_INT(convert(epctx_weightless, "s.onnx", "w2.onnx", &opts, NULL, &error), EPCTX_OK);
    CHECK_TRUE(same_files("w.onnx", "w2.onnx"));
    make_weightless("source.onnx", wrong, 64, true);
    CHECK_INT(convert(epctx_weightless, "m.onnx", "w3.onnx", &opts, NULL, &error),
              EPCTX_ERR_VERSION);
    CHECK_HAS(error.message, "initializer 'w'");
    CHECK_HAS(error.message, "'source.onnx', found another tensor");
    empty = new_model(&graph_of_none);
    save_bytes("source.onnx", &empty);
    CHECK_INT(convert(epctx_weightless, "m.onnx", "w3.onnx", &opts, NULL, &error),
              EPCTX_ERR_VERSION);
    CHECK_HAS(error.message, "'source.onnx', found none");
}

/* The source model is named by the model: what the caller allows one counts for the other. */
TEST(weightless_within_limits) {
    static float data[4096] = {3, 1, 4};
    ops_convert_opts opts = {0};
    epctx_open_opts open = {0};
    epctx_model model;
    epctx_error error;
    clear_root();
    make_weightless("m.onnx", data, 64, false);
    make_weightless("source.onnx", data, 4096, true);
    opts.source = "source.onnx";
    open.limits.max_size = 4096;
    CHECK_INT(epctx_model_open_file(&model, at("m.onnx"), &open, &error), EPCTX_OK);
    CHECK_INT(epctx_weightless(&model, &opts, NULL, &error), EPCTX_ERR_LIMIT);
    CHECK_HAS(error.message, "epctx_limits.max_size allows 4096");
    epctx_model_close(&model);
}

TEST(weightless_needs_the_ep) {
    static const part plain[] = {{"a", 1, 0, "X", "a.bin"}};
    static const part stripped[] = {{"a", 1, 0, "TensorrtExecutionProvider", "a.stripped.engine"}};
    epctx_error error;
    clear_root();
    make_parts(plain, 1);
    CHECK_INT(convert(epctx_weightless, "m.onnx", "o.onnx", NULL, NULL, &error),
              EPCTX_ERR_UNSUPPORTED);
    CHECK_HAS(error.message, "ep.enable_weightless");
    make_parts(stripped, 1);
    CHECK_INT(convert(epctx_self_contained, "m.onnx", "o.onnx", NULL, NULL, &error),
              EPCTX_ERR_UNSUPPORTED);
    CHECK_HAS(error.message, "compile again");
}

/* -- groups of files -- */

TEST(group_keeps_and_refuses) {
    static const part parts[] = {{"a", 1, 1, "X", "context"}};
    epctx_error error;
    ops_changes changes;
    ops_convert_opts opts = {0};
    epctx_model model;
    struct stat before, after;
    clear_root();
    make_parts(parts, 1);
    make_text("m_x.bin", "another");
    CHECK_INT(epctx_model_open_file(&model, at("m.onnx"), NULL, &error), EPCTX_OK);
    opts.common.output_path = at("m.onnx");
    CHECK_INT(ops_extract(&model, &opts, &changes, &error), EPCTX_OK);
    CHECK_INT(epctx_model_write_group(&model, at("m.onnx"), &judge, changes.files,
                                      changes.file_count, EPCTX_OVERWRITE_FAIL, &error),
              EPCTX_ERR_EXISTS);
    CHECK_INT(epctx_model_write_group(&model, at("m.onnx"), NULL, changes.files, changes.file_count,
                                      EPCTX_OVERWRITE_FAIL, &error),
              EPCTX_ERR_EXISTS);
    CHECK_HAS(error.message, "other bytes");
    CHECK_TRUE(file_is("m_x.bin", "another"));
    CHECK_STR(nodes_of("m.onnx"), "1/1/context ");
    CHECK_INT(epctx_model_write_group(&model, at("m.onnx"), NULL, changes.files, changes.file_count,
                                      EPCTX_OVERWRITE_BACKUP, &error),
              EPCTX_OK);
    CHECK_TRUE(file_is("m_x.bin", "context"));
    CHECK_TRUE(file_is("m_x.bin~", "another"));
    CHECK_STR(nodes_of("m.onnx"), "1/0/m_x.bin ");
    CHECK_INT(stat(at("m_x.bin"), &before), 0);
    CHECK_INT(epctx_model_write_group(&model, at("n.onnx"), NULL, changes.files, changes.file_count,
                                      EPCTX_OVERWRITE_FAIL, &error),
              EPCTX_OK);
    CHECK_TRUE(changes.files[0].kept);
    CHECK_INT(stat(at("m_x.bin"), &after), 0);
    CHECK(before.st_ino == after.st_ino, "a file with the same bytes was replaced");
    epctx_model_close(&model);
    CHECK_STR(listing(), "m.onnx m_x.bin m_x.bin~ n.onnx ");
}

/* A file that the model itself is read from is never written over. */
TEST(group_spares_its_sources) {
    static const part parts[] = {{"a", 1, 1, "X", "one"}, {"b", 1, 0, "Y", "m_x.bin"}};
    ops_convert_opts opts = {0};
    epctx_error error;
    clear_root();
    make_parts(parts, 2);
    make_text("m_x.bin", "other");
    opts.common.output_path = at("m.onnx");
    CHECK_OK(convert(ops_extract, "m.onnx", "o.onnx", NULL, NULL, &error), error);
    CHECK_STR(nodes_of("o.onnx"), "1/0/o_x.bin 1/0/m_x.bin ");
    opts.common.name = "m_x.bin";
    CHECK_INT(convert(ops_extract, "m.onnx", "o.onnx", &opts, NULL, &error), EPCTX_ERR_PATH);
    opts.common.name = "m.onnx";
    CHECK_INT(convert(ops_extract, "m.onnx", "o.onnx", &opts, NULL, &error), EPCTX_ERR_EXISTS);
    CHECK_TRUE(file_is("m_x.bin", "other"));
}

typedef enum flaky_kind {
    EMBED,
    EXTRACT,
    EXTRACT_OVER,
    EXTRACT_BACKUP,
    EXTERNAL,
    KINDS
} flaky_kind;

static epctx_status flaky_convert(flaky_kind kind, const epctx_io *io, epctx_error *error) {
    static const convert_fn functions[KINDS] = {ops_embed, ops_extract, ops_extract, ops_extract,
                                                epctx_init_external};
    ops_convert_opts opts = {0};
    epctx_open_opts open = {0};
    ops_changes changes;
    epctx_write_opts write = {0};
    epctx_overwrite overwrite = EPCTX_OVERWRITE_FAIL;
    epctx_model model;
    epctx_status status;
    char backup[400];
    if (kind == EXTRACT_OVER) overwrite = EPCTX_OVERWRITE_REPLACE;
    if (kind == EXTRACT_BACKUP) write.overwrite = overwrite = EPCTX_OVERWRITE_BACKUP;
    write.backup = backup;
    write.backup_capacity = sizeof backup;
    open.io = io;
    opts.common.output_path = at("m.onnx");
    status = epctx_model_open_file(&model, at("m.onnx"), &open, error);
    if (status != EPCTX_OK) return status;
    status = functions[kind](&model, &opts, &changes, error);
    if (status == EPCTX_OK)
        status = epctx_model_write_group(&model, at("m.onnx"), &write, changes.files,
                                         changes.file_count, overwrite, error);
    epctx_model_close(&model);
    return status;
}

/* Before and after, as listing, nodes and bytes of the binary. */
static void flaky_setup(flaky_kind kind) {
    static const part inside[] = {{"a", 1, 1, "X", "context"}};
    static const part outside[] = {{"a", 1, 0, "X", "m_x.bin"}};
    static const float data[300] = {1};
    bytes graph = {0}, model;
    clear_root();
    if (kind == EXTERNAL) {
        add_node(&graph, "Use", "use", "a", "z");
        add_floats(&graph, "a", data, 300);
        model = new_model(&graph);
        save_bytes("m.onnx", &model);
        return;
    }
    make_parts(kind == EMBED ? outside : inside, 1);
    if (kind != EXTRACT) make_text("m_x.bin", kind == EMBED ? "context" : "old");
}

/* The state of the folder in words; a model must go with its files. */
static const char *flaky_state(flaky_kind kind) {
    static char text[2200];
    bytes binary = read_file(at(kind == EXTERNAL ? "m.onnx.data" : "m_x.bin"));
    bytes model = read_file(at("m.onnx"));
    snprintf(text, sizeof text, "%s| %s| %.*s %zu", listing(), nodes_of("m.onnx"),
             kind == EXTERNAL ? 0 : (int)binary.size, (const char *)binary.data, model.size);
    bytes_free(&binary);
    bytes_free(&model);
    return text;
}

/* Every call of the io fails once: what is left is what was, or what was to be. */
TEST(failing_io) {
    for (int kind = 0; kind < KINDS; kind++) {
        char old[2200], new[2200];
        epctx_error error;
        int n;
        flaky_setup((flaky_kind)kind);
        strcpy(old, flaky_state((flaky_kind)kind));
        CHECK_OK(flaky_convert((flaky_kind)kind, NULL, &error), error);
        strcpy(new, flaky_state((flaky_kind)kind));
        for (n = 1; n < 200; n++) {
            flaky io_state = {0};
            epctx_io io = flaky_io(&io_state);
            epctx_status status;
            const char *left;
            flaky_setup((flaky_kind)kind);
            io_state.fail_at = n;
            status = flaky_convert((flaky_kind)kind, &io, &error);
            left = flaky_state((flaky_kind)kind);
            CHECK(io_state.opens == 0 && io_state.maps == 0,
                  "kind %d, call %d: %d files and %d mappings are left", kind, n, io_state.opens,
                  io_state.maps);
            if (status == EPCTX_OK && io_state.calls < n) break;
            if (status != EPCTX_OK) CHECK_HAS(error.message, "the injected failure");
            CHECK(strcmp(left, old) == 0 || strcmp(left, new) == 0,
                  "kind %d, call %d leaves %s (was %s)", kind, n, left, old);
        }
        CHECK(n > 8 && n < 200, "kind %d: %d calls", kind, n);
    }
}

static epctx_status second_exists(void *user, epctx_io_file *file, const char *name,
                                  epctx_error *error) {
    (void)user, (void)file;
    return epctx_fail(error, EPCTX_ERR_EXISTS, "'%s' exists", name);
}

static epctx_status second_unknown(void *user, epctx_io_file *file, const char *name,
                                   epctx_error *error) {
    (void)user, (void)file;
    return epctx_fail(error, EPCTX_ERR_UNSUPPORTED, "no '%s' here", name);
}

/* A model and the binary that it names are replaced together, on file systems without second names,
 * and on one where every such name is taken: then both stay. */
TEST(second_names) {
    static const part parts[] = {{"a", 1, 0, "X", "m_x.bin"}};
    const epctx_span fresh = {(const uint8_t *)"new", 3};
    for (int kind = 0; kind < 3; kind++) {
        bool taken = kind == 2;
        epctx_io io = *epctx_io_files();
        epctx_open_opts open = {0};
        epctx_write_opts write = {0};
        epctx_output_file file = {0};
        epctx_model model;
        epctx_error error;
        bytes b;
        clear_root();
        make_parts(parts, 1);
        make_text("m_x.bin", "old");
        b = read_file(at("m.onnx"));
        io.second_fn = kind == 0 ? NULL : taken ? second_exists : second_unknown;
        open.io = &io;
        write.overwrite = EPCTX_OVERWRITE_REPLACE;
        file.path = at("m_x.bin");
        file.parts = &fresh;
        file.part_count = 1;
        file.size = fresh.size;
        CHECK_OK(epctx_model_open_memory(&model, b.data, b.size, &open, &error), error);
        CHECK_INT(epctx_model_write_group(&model, at("m.onnx"), &write, &file, 1,
                                          EPCTX_OVERWRITE_REPLACE, &error),
                  taken ? EPCTX_ERR_EXISTS : EPCTX_OK);
        if (taken) CHECK_HAS(error.message, "m_x.bin.new999");
        CHECK_TRUE(file_is("m_x.bin", taken ? "old" : "new"));
        CHECK_STR(nodes_of("m.onnx"), "1/0/m_x.bin ");
        CHECK_STR(listing(), "m.onnx m_x.bin ");
        epctx_model_close(&model);
        bytes_free(&b);
    }
}

/* A model, its binary (a link into the blobs of a cache) and the source that it names are replaced
 * together: the source and what lies elsewhere have no second name in the model. */
TEST(group_with_source_and_blob) {
    static const char *const names[] = {"snapshots/1/s.onnx", "blobs/abc"};
    const epctx_span fresh = {(const uint8_t *)"new", 3};
    epctx_output_file files[2];
    epctx_write_opts write = {0};
    bytes node = new_node("EPContext", "com.microsoft", "a", "x", "y"), graph = {0}, b;
    char paths[2][400], command[400];
    epctx_model model;
    epctx_error error;
    clear_root();
    add_attr_int(&node, "main_context", 1);
    add_attr_int(&node, "embed_mode", 0);
    add_attr_str(&node, "ep_cache_context", "c.bin", 5);
    add_attr_str(&node, "onnx_model_filename", "s.onnx", 6);
    add_attr_str(&node, "source", "X", 1);
    put_child(&graph, 1, &node);
    b = end_model(&graph);
    snprintf(command, sizeof command,
             "cd %s && mkdir -p snapshots/1 blobs && ln -s ../../blobs/abc snapshots/1/c.bin",
             root);
    CHECK_TRUE(system(command) == 0);
    memset(files, 0, sizeof files);
    for (int i = 0; i < 2; i++) {
        snprintf(paths[i], sizeof paths[i], "%s", at(names[i]));
        make_text(names[i], "old");
        files[i].path = paths[i];
        files[i].parts = &fresh;
        files[i].part_count = 1;
        files[i].size = fresh.size;
    }
    make_file(at("snapshots/1/m.onnx"), b.data, b.size);
    write.overwrite = EPCTX_OVERWRITE_REPLACE;
    CHECK_OK(epctx_model_open_memory(&model, b.data, b.size, NULL, &error), error);
    CHECK_OK(epctx_model_write_group(&model, at("snapshots/1/m.onnx"), &write, files, 2,
                                     EPCTX_OVERWRITE_REPLACE, &error),
             error);
    CHECK_TRUE(file_is("snapshots/1/s.onnx", "new") && file_is("blobs/abc", "new"));
    CHECK_STR(nodes_of("snapshots/1/m.onnx"), "1/0/c.bin ");
    epctx_model_close(&model);
    bytes_free(&b);
    snprintf(command, sizeof command, "cd %s && rm -r snapshots blobs", root);
    CHECK_TRUE(system(command) == 0);
}

/* -- mv -- */

static const char *const mv_models[] = {"m.onnx", "n.onnx", "other.onnx"};

static void mv_setup(void) {
    static const part two[] = {{"a", 1, 0, "X", "b.bin"}, {"b", 1, 0, "X", "./b.bin"}};
    static const part one[] = {{"a", 1, 0, "X", "b.bin"}};
    static const part none[] = {{"a", 1, 1, "X", "b.bin"}};
    clear_root();
    make_parts(two, 2);
    rename(at("m.onnx"), at("n.onnx"));
    make_parts(none, 1);
    rename(at("m.onnx"), at("other.onnx"));
    make_parts(one, 1);
    make_text("b.bin", "context");
}

static epctx_status mv(const char *from, const char *to, const epctx_io *io, bool dry_run,
                       epctx_move_report *report, epctx_error *error) {
    epctx_move_opts opts = {0};
    const char *paths[3];
    for (int i = 0; i < 3; i++) paths[i] = at(mv_models[i]);
    opts.io = io;
    opts.dry_run = dry_run;
    return epctx_move_binary(at(from), at(to), paths, 3, &opts, report, error);
}

TEST(mv_with_every_model) {
    epctx_move_report report;
    epctx_error error;
    mv_setup();
    CHECK_OK(mv("b.bin", "c.bin", NULL, true, &report, &error), error);
    CHECK_STR(listing(), "b.bin m.onnx n.onnx other.onnx ");
    CHECK_INT(mv("b.bin", "c.bin", NULL, false, &report, &error), EPCTX_OK);
    CHECK_UINT(report.model_count, 2);
    CHECK_UINT(report.node_count, 3);
    CHECK_TRUE(report.linked);
    CHECK_STR(listing(), "c.bin m.onnx n.onnx other.onnx ");
    CHECK_STR(nodes_of("m.onnx"), "1/0/c.bin ");
    CHECK_STR(nodes_of("n.onnx"), "1/0/c.bin 1/0/c.bin ");
    CHECK_STR(nodes_of("other.onnx"), "1/1/b.bin ");
    CHECK_INT(mv("c.bin", "b.bin", NULL, false, &report, &error), EPCTX_OK);
    CHECK_STR(nodes_of("m.onnx"), "1/0/b.bin ");
}

TEST(mv_refuses) {
    epctx_error error;
    mv_setup();
    make_text("c.bin", "else");
    CHECK_INT(mv("b.bin", "c.bin", NULL, false, NULL, &error), EPCTX_ERR_EXISTS);
    CHECK_INT(mv("b.bin", "b.bin", NULL, false, NULL, &error), EPCTX_ERR_ARG);
    CHECK_INT(mv("b.bin", "../up.bin", NULL, false, NULL, &error), EPCTX_ERR_PATH);
    CHECK_HAS(error.message, "outside");
    CHECK_INT(mv("b.bin", "no/c.bin", NULL, false, NULL, &error), EPCTX_ERR_NOT_FOUND);
    CHECK_INT(mv("missing.bin", "d.bin", NULL, false, NULL, &error), EPCTX_ERR_NOT_FOUND);
    CHECK_INT(mv("c.bin", "d.bin", NULL, false, NULL, &error), EPCTX_ERR_NOT_FOUND);
    CHECK_HAS(error.message, "nothing is renamed");
    CHECK_STR(nodes_of("n.onnx"), "1/0/b.bin 1/0/./b.bin ");
    CHECK_STR(listing(), "b.bin c.bin m.onnx n.onnx other.onnx ");
}

/* What was interrupted is completed: the new name is there, one model has it. */
TEST(mv_again_completes) {
    static const part half[] = {{"a", 1, 0, "X", "c.bin"}};
    epctx_error error;
    mv_setup();
    make_parts(half, 1);
    CHECK_INT(link(at("b.bin"), at("c.bin")), 0);
    CHECK_OK(mv("b.bin", "c.bin", NULL, false, NULL, &error), error);
    CHECK_STR(listing(), "c.bin m.onnx n.onnx other.onnx ");
    CHECK_STR(nodes_of("n.onnx"), "1/0/c.bin 1/0/c.bin ");
}

/* A second name where the model could never have found it is not what a move left. */
TEST(mv_outside_is_not_left) {
    static const part one[] = {{"a", 1, 0, "X", "c.bin"}};
    const char *model;
    char from[400], to[400], path[400];
    epctx_error error;
    clear_root();
    CHECK_INT(mkdir(at("b"), 0700) | mkdir(at("c"), 0700), 0);
    make_parts(one, 1);
    snprintf(path, sizeof path, "%s", at("b/m.onnx"));
    snprintf(from, sizeof from, "%s", at("c/old.bin"));
    snprintf(to, sizeof to, "%s", at("b/c.bin"));
    model = path;
    make_text("c.bin", "context");
    CHECK_INT(rename(at("m.onnx"), path) | rename(at("c.bin"), to) | link(to, from), 0);
    CHECK_INT(epctx_move_binary(from, to, &model, 1, NULL, NULL, &error), EPCTX_ERR_NOT_FOUND);
    CHECK_HAS(error.message, "nothing is renamed");
    CHECK_INT(access(from, F_OK) | access(to, F_OK), 0);
    CHECK_INT(unlink(from) | unlink(to) | unlink(path), 0);
    CHECK_INT(rmdir(at("b")) | rmdir(at("c")), 0);
}

/* b.bin becomes c.bin, and the Nth call of the io fails, or every one from there on. */
static epctx_status mv_with_failure(flaky *state, bool no_links, int n, bool stays,
                                    epctx_error *error) {
    epctx_io io;
    memset(state, 0, sizeof *state);
    state->no_links = no_links;
    io = flaky_io(state);
    mv_setup();
    state->fail_at = n;
    state->stays = stays;
    return mv("b.bin", "c.bin", &io, false, NULL, error);
}

/* At every failure each model finds its binary, and all is as before but after the last step. */
TEST(mv_failing_io) {
    for (int no_links = 0; no_links < 2; no_links++) {
        int n;
        for (n = 1; n < 300; n++) {
            flaky io_state;
            epctx_error error;
            epctx_status status = mv_with_failure(&io_state, no_links, n, false, &error);
            bool moved;
            CHECK(io_state.opens == 0 && io_state.maps == 0,
                  "call %d: %d files, %d mappings are left", n, io_state.opens, io_state.maps);
            CHECK(lint_clean("m.onnx") && lint_clean("n.onnx"), "call %d leaves %s: %s", n,
                  listing(), error.message);
            moved = strcmp(listing(), "c.bin m.onnx n.onnx other.onnx ") == 0;
            CHECK(moved || strcmp(listing(), "b.bin m.onnx n.onnx other.onnx ") == 0,
                  "call %d leaves %s", n, listing());
            if (status == EPCTX_OK && io_state.calls < n) break;
            if (status != EPCTX_OK) CHECK_HAS(error.message, "the injected failure");
        }
        CHECK(n > 20 && n < 300, "%d calls", n);
    }
}

/* -- memory -- */

TEST(out_of_memory) {
    static const part parts[] = {{"a", 1, 0, "FakeEP", "m_fakeep.bin"},
                                 {"b", 0, 0, "FakeEP", NULL}};
    static const convert_fn functions[] = {ops_embed, epctx_init_prune, epctx_init_external};
    clear_root();
    make_text("m_fakeep.bin", "binary");
    for (size_t f = 0; f < 3; f++) {
        size_t n;
        for (n = 1; n < 5000; n++) {
            counting c = {0};
            epctx_allocator allocator = counting_allocator(&c);
            ops_convert_opts opts = {0};
            epctx_open_opts open = {0};
            epctx_model model;
            epctx_status status;
            if (f == 0)
                make_parts(parts, 2);
            else
                make_weights();
            c.fail_at = n;
            open.allocator = &allocator;
            opts.common.output_path = at("o.onnx");
            status = epctx_model_open_file(&model, at("m.onnx"), &open, NULL);
            if (status == EPCTX_OK) {
                status = functions[f](&model, &opts, NULL, NULL);
                epctx_model_close(&model);
            }
            CHECK(c.alive == 0, "%zu allocations are left", c.alive);
            if (status == EPCTX_OK) break;
            CHECK_INT(status, EPCTX_ERR_NOMEM);
        }
        CHECK(n < 5000, "function %zu never succeeds", f);
    }
}

/* Edges of the conversions of contexts. */
TEST(contexts_at_the_edge) {
    static const part all_name[] = {{"a", 1, 1, "OpenVINOExecutionProvider", "one"},
                                    {"b", 1, 1, "OpenVINOExecutionProvider", "two"},
                                    {"c", 0, 1, "OpenVINOExecutionProvider", NULL}};
    static const part lone[] = {{"a", 1, 1, "X", "one"},
                                {"b", 0, 1, "OpenVINOExecutionProvider", NULL}};
    static const part mixed[] = {{"a", 1, 1, "X", "one"},
                                 {"b", 1, 1, "X", "two"},
                                 {"c", 0, 1, "X", NULL},
                                 {"d", 0, -1, "X", NULL},
                                 {"e", 0, 0, "X", NULL}};
    static const part engine[] = {{"a", 1, 0, "TensorrtExecutionProvider", "a.engine"}};
    static const part huge[] = {{"a", 1, 0, "X", "a.bin"}, {"b", 1, 0, "X", "b.bin"}};
    static char long_path[EPCTX_PATH_MAX + 10];
    static epctx_profile own;
    ops_convert_opts opts = {0};
    epctx_error error;
    epctx_model model;
    bytes data, second = {0};
    clear_root();
    make_parts(all_name, 3);
    CHECK_INT(convert(ops_extract, "m.onnx", "o.onnx", NULL, NULL, &error), EPCTX_ERR_UNSUPPORTED);
    CHECK_HAS(error.message, "1 nodes do not tell which of several it is");
    make_parts(lone, 2);
    CHECK_INT(convert(ops_extract, "m.onnx", "o.onnx", NULL, NULL, &error), EPCTX_OK);
    CHECK_STR(nodes_of("o.onnx"), "1/0/o_x.bin 0/1/- ");
    clear_root();
    make_parts(mixed, 5);
    opts.common.node = "a"; /* the other context stays inside, so secondary nodes keep their mode */
    CHECK_INT(convert(ops_extract, "m.onnx", "o.onnx", &opts, NULL, &error), EPCTX_OK);
    CHECK_STR(nodes_of("o.onnx"), "1/0/o_x.bin 1/1/two 0/1/- 0/1/- 0/0/- ");
    CHECK_INT(convert(ops_extract, "m.onnx", "p.onnx", NULL, NULL, &error), EPCTX_OK);
    CHECK_STR(nodes_of("p.onnx"), "1/0/p_x.bin 1/0/p_x_1.bin 0/0/- 0/1/- 0/0/- ");
    opts.common.node = NULL;
    own = *epctx_profile_find(epctx_str_of("npu"));
    own.traits |= EPCTX_TRAIT_SECONDARY_CONTEXT;
    opts.common.profile = &own;
    CHECK_INT(convert(ops_extract, "p.onnx", "q.onnx", &opts, NULL, &error), EPCTX_ERR_GRAPH);
    opts.common.profile = NULL;
    clear_root();
    make_parts(engine, 1);
    make_text("a.engine", "engine");
    CHECK_INT(convert(ops_embed, "m.onnx", "o.onnx", NULL, NULL, &error), EPCTX_OK);
    data = read_file(at("m.onnx"));
    CHECK_INT(epctx_model_open_memory(&model, data.data, data.size, NULL, &error), EPCTX_OK);
    CHECK_INT(ops_embed(&model, NULL, NULL, &error), EPCTX_ERR_PATH);
    CHECK_INT(ops_embed(&model, NULL, NULL, NULL), EPCTX_ERR_PATH);
    CHECK_INT(epctx_init_external(&model, NULL, NULL, &error), EPCTX_ERR_PATH);
    CHECK_HAS(error.message, "set output_path");
    epctx_model_close(&model);
    put_child(&data, 7, &second);
    CHECK_INT(epctx_model_open_memory(&model, data.data, data.size, NULL, &error), EPCTX_OK);
    CHECK_INT(ops_embed(&model, NULL, NULL, &error), EPCTX_ERR_GRAPH);
    epctx_model_close(&model);
    bytes_free(&data);
    /* Numbers make a name too long. */
    make_parts(mixed, 2);
    memset(long_path, 'p', sizeof long_path);
    strcpy(long_path + EPCTX_PATH_MAX - 1 - 7, ".onnx");
    opts.common.output_path = long_path;
    CHECK_INT(epctx_model_open_file(&model, at("m.onnx"), NULL, &error), EPCTX_OK);
    CHECK_INT(ops_extract(&model, &opts, NULL, &error), EPCTX_ERR_LIMIT);
    CHECK_HAS(error.message, "a path is longer");
    epctx_model_close(&model);
    opts.common.output_path = NULL;
    if (sizeof(size_t) > 4) {
        make_parts(huge, 2);
        make_text("a.bin", "a");
        make_text("b.bin", "b");
        CHECK_INT(truncate(at("a.bin"), INT64_C(0x70000000)), 0);
        CHECK_INT(truncate(at("b.bin"), INT64_C(0x60000000)), 0);
        CHECK_INT(epctx_model_open_file(&model, at("m.onnx"), NULL, &error), EPCTX_OK);
        CHECK_INT(ops_embed(&model, NULL, NULL, &error), EPCTX_ERR_LIMIT);
        CHECK_HAS(error.message, "keep contexts in files");
        CHECK_INT(truncate(at("a.bin"), INT64_C(0x80000000)), 0);
        epctx_model_close(&model);
        CHECK_INT(epctx_model_open_file(&model, at("m.onnx"), NULL, &error), EPCTX_OK);
        CHECK_INT(ops_embed(&model, NULL, NULL, &error), EPCTX_ERR_LIMIT);
        CHECK_HAS(error.message, "keep the binary");
        epctx_model_close(&model);
    }
    clear_root();
}

/* Edges of the conversions of weights: odd storage, odd options. */
TEST(weights_at_the_edge) {
    static const float data[4] = {1, 2, 3, 4};
    bytes graph = {0}, model, tensor = {0}, sparse = {0}, body = {0}, attr = {0}, node, pair = {0};
    ops_convert_opts opts = {0};
    epctx_error error;
    clear_root();
    node = new_node("Loop", "", "loop", "w", "z");
    add_node(&body, "Relu", "inner", "w", "");
    put_str(&attr, 1, "bodies");
    put_child(&attr, 11, &body);
    put_int(&attr, 20, EPCTX_ATTR_GRAPHS);
    put_child(&node, 5, &attr);
    put_child(&graph, 1, &node);
    put_int(&tensor, 1, 2);
    put_int(&tensor, 2, 22); /* int4 in a typed field */
    put_int(&tensor, 5, 0x21);
    put_str(&tensor, 8, "four");
    put_child(&graph, 5, &tensor);
    put_int(&tensor, 1, 1);
    put_int(&tensor, 2, 13); /* uint64, and fields behind the data */
    put_str(&tensor, 8, "wide");
    put_int(&tensor, 11, 7);
    put_str(&tensor, 12, "doc");
    put_str(&pair, 1, "key");
    put_child(&tensor, 16, &pair);
    put_child(&graph, 5, &tensor);
    put_int(&tensor, 1, 1);
    put_int(&tensor, 2, 11); /* double */
    put_str(&tensor, 8, "double");
    put_data(&tensor, 10, data, 8);
    put_child(&graph, 5, &tensor);
    put_int(&tensor, 2, 22);
    put_int(&tensor, 1, 2);
    put_data(&tensor, 9, "!", 1);
    put_str(&tensor, 8, "raw4");
    put_child(&graph, 5, &tensor);
    add_floats(&graph, "w", data, 4);
    put_str(&tensor, 8, "sparse");
    put_child(&sparse, 1, &tensor);
    put_child(&graph, 15, &sparse);
    model = new_model(&graph);
    save_bytes("m.onnx", &model);
    CHECK_OK(convert(epctx_init_external, "m.onnx", "o.onnx", &opts, NULL, &error), error);
    CHECK_STR(told, "skipped four: its data is in fields of a packed type and cannot be moved; "
                    "external wide; external double; external raw4; external w; "
                    "skipped sparse: sparse initializers stay in the model; ");
    CHECK_OK(convert(epctx_init_inline, "o.onnx", "i.onnx", NULL, NULL, &error), error);
    CHECK_STR(told, "inlined wide; inlined double; inlined raw4; inlined w; ");
    opts.alignment = UINT64_C(1) << 31;
    CHECK_INT(convert(epctx_init_external, "m.onnx", "p.onnx", &opts, NULL, &error), EPCTX_ERR_ARG);
    opts.alignment = 0;
    opts.common.name = "{node}";
    CHECK_INT(convert(epctx_init_external, "m.onnx", "p.onnx", &opts, NULL, &error), EPCTX_ERR_ARG);
    CHECK_HAS(error.message, "must be one of {stem} {model} {file}");
    opts.common.name = "p.onnx";
    CHECK_INT(convert(epctx_init_external, "m.onnx", "p.onnx", &opts, NULL, &error),
              EPCTX_ERR_PATH);
    /* Strings in a file: nobody can read them. */
    put_int(&tensor, 2, EPCTX_ONNX_STRING);
    put_str(&tensor, 8, "text");
    put_pair(&tensor, 13, "location", "text.bin");
    put_int(&tensor, 14, 1);
    put_child(&graph, 5, &tensor);
    model = new_model(&graph);
    make_file(at("m.onnx"), model.data, model.size);
    make_text("text.bin", "words");
    bytes_free(&model);
    CHECK_INT(convert(epctx_init_inline, "m.onnx", "p.onnx", NULL, NULL, &error), EPCTX_ERR_GRAPH);
    CHECK_HAS(error.message, "strings cannot be external");
}

/* A file that the model is read from, under whatever name, is not written over. */
TEST(groups_spare_what_is_open) {
    static const uint8_t other[1] = {9};
    static const char *const names[] = {"w.bin", "m.onnx", "out.onnx", "f.bin"};
    epctx_span span = {other, 1};
    epctx_output_file file = {0};
    ops_changes changes;
    epctx_model model;
    epctx_error error;
    bytes graph = {0}, data;
    char path[400], out[400];
    clear_root();
    add_node(&graph, "Use", "use", "w", "y");
    add_external(&graph, "w", 4, "w.bin", "0", "16");
    data = new_model(&graph);
    make_file(at("m.onnx"), data.data, data.size);
    make_file(at("out.onnx"), data.data, data.size);
    make_file(at("w.bin"), "0123456789abcdef", 16);
    make_text("f.bin", "f");
    CHECK_INT(epctx_model_open_file(&model, at("m.onnx"), NULL, &error), EPCTX_OK);
    CHECK_INT(epctx_init_inline(&model, NULL, &changes, &error), EPCTX_OK);
    snprintf(out, sizeof out, "%s", at("out.onnx"));
    file.path = path;
    file.parts = &span;
    file.part_count = 1;
    file.size = 1;
    for (size_t i = 0; i < 4; i++) {
        epctx_status status;
        snprintf(path, sizeof path, "%s", at(names[i]));
        status =
            epctx_model_write_group(&model, out, &judge, &file, 1, EPCTX_OVERWRITE_REPLACE, &error);
        CHECK(status == (i < 3 ? EPCTX_ERR_PATH : EPCTX_OK), "%s: %s", names[i], error.message);
        if (i < 3) CHECK_HAS(error.message, "a file of the converted model");
    }
    epctx_model_close(&model);
    CHECK_INT(epctx_model_open_memory(&model, data.data, data.size, NULL, &error), EPCTX_OK);
    CHECK_INT(
        epctx_model_write_group(&model, out, &judge, &file, 1, EPCTX_OVERWRITE_REPLACE, &error),
        EPCTX_OK);
    epctx_model_close(&model);
    bytes_free(&data);
}

/* Every file that an external node names is there. */
static bool names_hold(const char *const *models, size_t count) {
    for (size_t i = 0; i < count; i++) {
        char nodes[1000], *one;
        snprintf(nodes, sizeof nodes, "%s", nodes_of(models[i]));
        for (one = strtok(nodes, " "); one != NULL; one = strtok(NULL, " "))
            if (strncmp(one, "1/0/", 4) == 0 && access(at(one + 4), F_OK) != 0) return false;
    }
    return true;
}

/* From some call on everything fails: what cannot be taken back still loads. */
TEST(mv_broken_disk) {
    for (int links = 0; links < 2; links++) {
        int n;
        for (n = 1; n < 300; n++) {
            flaky io_state;
            epctx_error error;
            epctx_status status = mv_with_failure(&io_state, links == 1, n, true, &error);
            CHECK(io_state.opens == 0 && io_state.maps == 0, "call %d: %d files, %d mappings", n,
                  io_state.opens, io_state.maps);
            CHECK(names_hold(mv_models, 3), "call %d: a model names a file that is gone: %s", n,
                  listing());
            if (status == EPCTX_OK) break;
        }
        CHECK(n > 10 && n < 300, "%d calls", n);
    }
}

static void mv_heard(void *user, const char *model, size_t nodes) {
    *(size_t *)user += nodes + strlen(model);
}

/* Names without a folder, a target in "/", a model that is broken in its nodes. */
TEST(mv_in_this_folder) {
    const char *models[] = {"m.onnx", "n.onnx", "odd.onnx"};
    bytes graph = {0}, data, node;
    epctx_move_opts opts = {0};
    epctx_error error;
    char before[400];
    size_t heard = 0;
    mv_setup();
    node = new_node("EPContext", "elsewhere", "a", "x", "y");
    put_child(&graph, 1, &node);
    node = new_node("EPContext", "com.microsoft", "b", "x", "z");
    add_attr_int(&node, "embed_mode", 7);
    put_child(&graph, 1, &node);
    add_epnode(&graph, "c", "x", "u", 1, 0, "X", "p", "../up.bin", 9);
    add_epnode(&graph, "d", "x", "v", 1, 0, "X", "p", "gone.bin", 8);
    add_epnode(&graph, "e", "x", "w", 1, 0, "X", "p", "m.onnx", 6);
    data = new_model(&graph);
    save_bytes("odd.onnx", &data);
    CHECK_TRUE(getcwd(before, sizeof before) != NULL && chdir(root) == 0);
    opts.dry_run = true;
    CHECK_INT(epctx_move_binary("b.bin", "/x.bin", models, 3, &opts, NULL, &error), EPCTX_ERR_PATH);
    CHECK_HAS(error.message, "outside of the model's folder");
    CHECK_INT(epctx_move_binary("b.bin", "a\\..\\c.bin", models, 3, &opts, NULL, &error),
              EPCTX_ERR_PATH);
    opts.dry_run = false;
    opts.moved_fn = mv_heard;
    opts.user = &heard;
    CHECK_INT(epctx_move_binary("b.bin", "c.bin", models, 3, &opts, NULL, NULL), EPCTX_OK);
    CHECK_UINT(heard, 3 + 2 * strlen("m.onnx"));
    CHECK_INT(chdir(before), 0);
    CHECK_STR(nodes_of("m.onnx"), "1/0/c.bin ");
}

/* -- corners -- */

/* A name from what the node has, and what EPs refuse. */
TEST(names_of_nodes) {
    static char longest[EPCTX_PATH_MAX + 10];
    static const struct {
        const char *profile, *node, *partition, *source, *name, *want;
    } cases[] = {
        {"migraphx", "node", "part.1..x", "s", NULL, "part.1._x.mxr"},
        {"migraphx", ".node", NULL, "s", NULL, "_node.mxr"},
        {"migraphx", "", NULL, "s", NULL, "context.mxr"},
        {"generic", "n", "p", "SomethingQuiteLongWithoutIt", NULL,
         "o_somethingquitelongwithoutit.bin"},
        {"generic", "n", "p", "", NULL, "o_ctx.bin"},
        {"qnn_plugin", "n", "p", "QNN", "a.b.bin", "a.b.bin"},
        {"qnn_plugin", "n", "p", "QNN", "a..b.bin", "!refuses '..'"},
        {"generic", "n", "p", "s", "folder/", "!is a folder"},
        {"generic", "n", "p", "s", "{nothing}", "!must be one of {stem} {model} {file} {node}"},
        {"generic", "n", "p", "s", longest, "!too long"},
        {"generic", "n", "p", "s", longest + 20, "!a path is longer"},
    };
    memset(longest, 'n', sizeof longest - 1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ops_convert_opts opts = {0};
        epctx_error error;
        epctx_status status;
        bytes graph = {0}, model;
        char want[100];
        clear_root();
        add_epnode(&graph, cases[i].node, "x", "y", 1, 1, cases[i].source, cases[i].partition, "c",
                   1);
        model = new_model(&graph);
        save_bytes("m.onnx", &model);
        opts.common.profile = epctx_profile_find(epctx_str_of(cases[i].profile));
        opts.common.name = cases[i].name;
        status = convert(ops_extract, "m.onnx", "o.onnx", &opts, NULL, &error);
        if (cases[i].want[0] == '!') {
            CHECK(status != EPCTX_OK, "case %zu was taken", i);
            CHECK_HAS(error.message, cases[i].want + 1);
            continue;
        }
        CHECK(status == EPCTX_OK, "case %zu: %s", i, error.message);
        snprintf(want, sizeof want, "1/0/%s ", cases[i].want);
        CHECK_STR(nodes_of("o.onnx"), want);
    }
}

/* The name of a model is used as it is, however long. */
TEST(long_names_of_models) {
    static const part one = {"a", 1, 1, "My", "bytes"};
    epctx_error error;
    char name[300], want[300];
    clear_root();
    memset(name, 'm', 231);
    strcpy(name + 231, ".onnx");
    make_parts(&one, 1);
    CHECK_OK(convert(ops_extract, "m.onnx", name, NULL, NULL, &error), error);
    snprintf(want, sizeof want, "1/0/%.231s_my.bin ", name);
    CHECK_STR(nodes_of(name), want);
}

/* What a conversion leaves alone, and why. */
TEST(left_alone) {
    static const part parts[] = {{"a", 1, 0, "X", "m.bin"},
                                 {"b", 0, 0, "X", NULL},
                                 {"c", 0, 0, "X", "m.bin"},
                                 {"d", 1, 1, "X", "m"}};
    static const struct {
        const char *node, *want;
    } cases[] = {{"b", "skipped b: is secondary: the context is in its primary node; "},
                 {"c", "skipped c: is secondary: its EP does not read this context; "},
                 {"d", "skipped d: is embedded already; "},
                 {"dlc", "skipped dlc: wraps a DLC, not a context; "}};
    bytes graph = {0}, model, node;
    epctx_error error;
    clear_root();
    make_text("m.bin", "context");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ops_convert_opts opts = {0};
        opts.common.node = cases[i].node;
        make_parts(parts, 4);
        if (i == 3) {
            node = new_node("EPContext", "com.microsoft", "dlc", "x", "y");
            add_attr_str(&node, "ep_dlc_context", "m.dlc", 5);
            put_child(&graph, 1, &node);
            node = new_node("EPContext", "elsewhere", "other", "x", "z");
            put_child(&graph, 1, &node);
            model = new_model(&graph);
            save_bytes("m.onnx", &model);
        }
        CHECK_OK(convert(ops_embed, "m.onnx", "o.onnx", &opts, NULL, &error), error);
        CHECK_STR(told, cases[i].want);
        remove(at("o.onnx"));
    }
    CHECK_STR(ops_change_name(OPS_CHANGE_COUNT), "unknown");
    make_text("m.onnx", "");
    make_parts(parts, 1);
    CHECK_INT(convert(ops_embed, "m.onnx", "o.onnx", NULL, NULL, &error), EPCTX_OK);
    graph.size = 0;
    add_node(&graph, "Relu", "n", "x", "y");
    model = new_model(&graph);
    save_bytes("m.onnx", &model);
    CHECK_INT(convert(ops_embed, "m.onnx", "p.onnx", NULL, NULL, &error), EPCTX_ERR_NO_NODES);
    CHECK_HAS(error.message, "compile the model first");
}

/* Contexts of one XXH64 hash: x1 and x2 of a lane are chosen so that its state is the same after
 * both. */
static void forge(uint64_t block[8], uint64_t choice) {
    const uint64_t p1 = UINT64_C(0x9E3779B185EBCA87), p2 = UINT64_C(0xC2B2AE3D27D4EB4F);
    uint64_t inverse = p2, first, wanted;
    int i;
    for (i = 0; i < 6; i++) inverse *= 2 - p2 * inverse;
    memset(block, 0, 8 * sizeof *block);
    wanted = p1 + p2;
    wanted = (wanted << 31 | wanted >> 33) * p1;
    first = p1 + p2 + choice * p2;
    first = (first << 31 | first >> 33) * p1;
    block[0] = choice;
    block[4] = (wanted - first) * inverse;
}

TEST(forged_hashes_are_no_equals) {
    enum { FORGED = 20 };
    static uint64_t blocks[FORGED + 1][8];
    bytes graph = {0}, model;
    epctx_error error;
    uint64_t hash = 0;
    char name[16];
    clear_root();
    for (size_t i = 0; i <= FORGED; i++) {
        forge(blocks[i], i % FORGED);
        for (size_t k = 0; k < 8; k++) { /* the hash reads little-endian numbers */
            uint64_t value = blocks[i][k];
            for (size_t b = 0; b < 8; b++)
                ((uint8_t *)&blocks[i][k])[b] = (uint8_t)(value >> 8 * b);
        }
        if (i == 0) hash = epctx_hash(blocks[0], sizeof blocks[0], 0);
        CHECK(epctx_hash(blocks[i], sizeof blocks[i], 0) == hash, "block %zu is not forged", i);
        snprintf(name, sizeof name, "n%zu", i);
        add_epnode(&graph, name, "x", "y", 1, 1, "My", name, blocks[i], sizeof blocks[i]);
    }
    model = new_model(&graph);
    save_bytes("m.onnx", &model);
    CHECK_OK(convert(ops_extract, "m.onnx", "o.onnx", NULL, NULL, &error), error);
    for (size_t i = 0; i < FORGED; i++) {
        bytes got;
        snprintf(name, sizeof name, i == 0 ? "o_my.bin" : "o_my_%zu.bin", i);
        got = read_file(at(name));
        CHECK(bytes_equal(&got, blocks[i], sizeof blocks[i]), "%s has other bytes", name);
        bytes_free(&got);
    }
}

/* Where the weights of the source are, and what cannot be referred to. */
TEST(weightless_sources) {
    static const uint32_t bits[2] = {0x3f80803f, 0x40000040}; /* the same in any byte order */
    float data[2];
    static const struct {
        int source; /* 0: raw, 1: in a file, 2: typed, 3: none, 4: other shape, 5: empty */
        const char *want;
    } cases[] = {{0, "external w; source n; "},
                 {1, "external w; source n; "},
                 {2, "skipped w: the source model stores it in typed fields"},
                 {3, "!found none: it is a different model"},
                 {4, "!another tensor of this name"},
                 {5, "skipped w: has no bytes"}};
    memcpy(data, bits, sizeof data);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ops_convert_opts opts = {0};
        bytes graph = {0}, source = {0}, model, tensor = {0};
        epctx_error error;
        size_t k;
        clear_root();
        make_file(at("w.bin"), data, sizeof data);
        add_epnode(&graph, "n", "x,w", "y", 1, 1, "MyEP", "n", "ctx", 3);
        add_epnode(&graph, "m", "x", "z", 1, 1, "MyEP", "n", "ctx", 3);
        add_floats(&graph, "w", data, cases[i].source == 5 ? 0 : 2);
        add_node(&source, "Op", "op", "x,w", "y");
        put_int(&tensor, 2, EPCTX_ONNX_FLOAT);
        put_str(&tensor, 8, "w");
        switch (cases[i].source) {
        case 0: add_floats(&source, "w", data, 2); break;
        case 1: add_external(&source, "w", 2, "w.bin", "0", "8"); break;
        case 2:
            put_int(&tensor, 1, 2);
            for (k = 0; k < 2; k++) put_float(&tensor, 4, data[k]);
            put_child(&source, 5, &tensor);
            break;
        case 4:
            put_int(&tensor, 1, 1);
            put_int(&tensor, 1, 2);
            put_data(&tensor, 9, data, sizeof data);
            put_child(&source, 5, &tensor);
            break;
        case 5: add_floats(&source, "w", data, 0); break;
        default: break;
        }
        bytes_free(&tensor);
        model = new_model(&graph);
        save_bytes("m.onnx", &model);
        model = new_model(&source);
        save_bytes("s.onnx", &model);
        opts.source = "s.onnx";
        if (cases[i].want[0] == '!') {
            CHECK_INT(convert(epctx_weightless, "m.onnx", "o.onnx", &opts, NULL, &error),
                      EPCTX_ERR_VERSION);
            CHECK_HAS(error.message, cases[i].want + 1);
        } else {
            CHECK_OK(convert(epctx_weightless, "m.onnx", "o.onnx", &opts, NULL, &error), error);
            CHECK_HAS(told, cases[i].want);
        }
        opts.source = "gone.onnx";
        CHECK_INT(convert(epctx_weightless, "m.onnx", "p.onnx", &opts, NULL, &error),
                  EPCTX_ERR_NOT_FOUND);
    }
}

/* Prune with tables that grow at every place: fillers are read names. */
TEST(prune_in_little_memory) {
    static const float data[2] = {1, 2};
    for (size_t fillers = 0; fillers < 24; fillers++) {
        bytes graph = {0}, model, training = {0}, algorithm = {0}, pair = {0}, note = {0};
        bytes sparse = {0}, values = {0};
        epctx_error error;
        char name[16];
        clear_root();
        for (size_t i = 0; i < fillers; i++) {
            snprintf(name, sizeof name, "f%zu", i);
            add_node(&graph, "Op", "", name, "");
        }
        add_floats(&graph, "free", data, 2);
        put_str(&values, 8, "idle");
        put_child(&sparse, 1, &values);
        put_child(&graph, 15, &sparse);
        put_str(&note, 1, "x");
        for (size_t i = 0; i < 3; i++) {
            snprintf(name, sizeof name, "s%zu", i);
            put_pair(&note, 2, "SCALE_TENSOR", name);
        }
        put_child(&graph, 14, &note);
        model = new_model(&graph);
        add_node(&algorithm, "Op", "step", "in_algorithm", "new");
        put_child(&training, 1, &algorithm);
        add_node(&algorithm, "Op", "step", "in_algorithm2", "new");
        put_child(&training, 2, &algorithm);
        for (uint32_t field = 3; field < 5; field++) {
            snprintf(name, sizeof name, "b%u", (unsigned)field);
            put_str(&pair, 1, name);
            snprintf(name, sizeof name, "c%u", (unsigned)field);
            put_str(&pair, 2, name);
            put_child(&training, field, &pair);
        }
        put_child(&model, 20, &training);
        save_bytes("m.onnx", &model);
        CHECK_OK(convert(epctx_init_prune, "m.onnx", "o.onnx", NULL, NULL, &error), error);
        CHECK_STR(told, "pruned free; pruned idle; ");
    }
}

/* Files of a group that are given by hand. */
TEST(groups_by_hand) {
    static const part parts[] = {{"a", 1, 1, "X", "context"}};
    static const uint8_t bytes_there[4] = {1, 0, 0, 2};
    epctx_span spans[3] = {{bytes_there, 1}, {NULL, 2}, {bytes_there + 3, 1}};
    epctx_output_file file = {0};
    epctx_write_opts write = {0};
    epctx_model model;
    epctx_error error;
    char path[400], out[400], backup[400] = "x";
    size_t room;
    clear_root();
    make_parts(parts, 1);
    snprintf(path, sizeof path, "%s", at("f.bin"));
    snprintf(out, sizeof out, "%s", at("m.onnx"));
    file.path = path;
    file.name = "f.bin";
    file.parts = spans;
    file.part_count = 3;
    file.size = 4;
    CHECK_INT(epctx_model_open_file(&model, out, NULL, &error), EPCTX_OK);
    write.overwrite = EPCTX_OVERWRITE_BACKUP;
    write.backup = backup;
    write.backup_capacity = sizeof backup;
    for (int turn = 0; turn < 5; turn++) {
        /* absent, equal, other zeros, parts of another sum, too small a place for the backup */
        if (turn == 2) make_file(at("f.bin"), "\1\0\1\2", 4);
        if (turn == 3) file.part_count = 2;
        if (turn == 4) write.backup_capacity = 3;
        CHECK_INT(
            epctx_model_write_group(&model, out, &write, &file, 1, EPCTX_OVERWRITE_REPLACE, &error),
            turn == 4 ? EPCTX_ERR_LIMIT : EPCTX_OK);
        CHECK_INT(file.kept, turn == 1 || turn == 4 ? 1 : 0);
        if (turn == 3) {
            bytes got = read_file(at("f.bin"));
            CHECK_UINT(got.size, 3);
            bytes_free(&got);
            file.size = 3;
        }
        if (turn < 4) CHECK_HAS(backup, "m.onnx~");
    }
    write.backup_capacity = 0;
    CHECK_INT(
        epctx_model_write_group(&model, out, &write, &file, 1, EPCTX_OVERWRITE_REPLACE, &error),
        EPCTX_OK);
    epctx_model_close(&model);
    for (room = 0;;) { /* every allocation fails once */
        static uint64_t memory[HUNGRY_BUFFER / 8];
        epctx_status status;
        size_t missing;
        CHECK_INT(open_hungry(&model, out, NULL, memory, room, &error), EPCTX_OK);
        status =
            epctx_model_write_group(&model, out, NULL, &file, 1, EPCTX_OVERWRITE_REPLACE, &error);
        missing = model.arena.missing;
        epctx_model_close(&model);
        if (status == EPCTX_OK) break;
        CHECK(status == EPCTX_ERR_NOMEM, "%s", error.message);
        room += missing;
    }
    CHECK(room > 1000, "the members need no memory");
}

/* Names that the EP of a node would not take. */
TEST(mv_asks_the_ep) {
    static const struct {
        const char *profile, *source, *from, *to, *text; /* text NULL: done */
    } cases[] = {
        {NULL, "OpenVINOExecutionProvider", "a.xml", "b.xml", "OpenVINO IR"},
        {NULL, "OpenVINOExecutionProvider", "a.bin", "b.bin", NULL},
        {NULL, "TensorrtExecutionProvider", "a.stripped.engine", "b.engine", ".stripped.engine"},
        {NULL, "TensorrtExecutionProvider", "a.engine", "b.engine", NULL},
        {"qnn_plugin", "QNN", "a.bin", "a..b.bin", "refuses '..'"},
        {NULL, "QNN", "a.bin", "a..b.bin", NULL},
        {NULL, "QNN", "a.bin", "sub/", "is a folder, expected a file name"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        part p = {"n", 1, 0, NULL, NULL};
        epctx_move_opts opts = {0};
        counting memory = {0};
        epctx_allocator allocator = counting_allocator(&memory);
        epctx_error error;
        epctx_status status = EPCTX_ERR_NOMEM;
        char path[400];
        const char *model = path; /* at() is called often here */
        clear_root();
        mkdir(at("sub"), 0700);
        make_text(cases[i].from, "bytes");
        p.source = cases[i].source;
        p.cache = cases[i].from;
        make_parts(&p, 1);
        if (cases[i].profile != NULL)
            opts.profile = epctx_profile_find(epctx_str_of(cases[i].profile));
        opts.allocator = &allocator;
        snprintf(path, sizeof path, "%s", at("m.onnx"));
        for (memory.fail_at = 1; status == EPCTX_ERR_NOMEM && memory.fail_at < 500;
             memory.fail_at++) {
            memory.calls = 0;
            status = epctx_move_binary(at(cases[i].from), at(cases[i].to), &model, 1, &opts, NULL,
                                       &error);
            CHECK(memory.alive == 0, "memory leaks");
        }
        if (cases[i].text == NULL) {
            CHECK_OK(status, error);
        } else {
            CHECK(status != EPCTX_OK, "case %zu was taken", i);
            CHECK_HAS(error.message, cases[i].text);
        }
        rmdir(at("sub"));
    }
    CHECK_INT(epctx_move_binary(at("gone"), at("x"), NULL, 0, NULL, NULL, NULL),
              EPCTX_ERR_NOT_FOUND);
}

/* What a tensor gets stands among its fields by number, not behind them all. */
TEST(external_data_in_field_order) {
    bytes graph = {0}, model, tensor = {0}, pair = {0};
    epctx_error error;
    epctx_model out;
    epctx_cursor it;
    epctx_tensor_view view;
    epctx_field field;
    uint32_t last = 0, fields = 0;
    clear_root();
    put_int(&tensor, 1, 1);
    put_int(&tensor, 2, 13);
    put_str(&tensor, 8, "wide");
    put_int(&tensor, 11, 7);
    put_str(&tensor, 12, "doc");
    put_str(&pair, 1, "key");
    put_child(&tensor, 16, &pair);
    put_child(&graph, 5, &tensor);
    model = new_model(&graph);
    make_file(at("m.onnx"), model.data, model.size);
    CHECK_OK(convert(epctx_init_external, "m.onnx", "o.onnx", NULL, NULL, &error), error);
    CHECK_INT(epctx_model_open_file(&out, at("o.onnx"), NULL, &error), EPCTX_OK);
    it = epctx_view_graph_initializers(epctx_model_graph(&out));
    CHECK_TRUE(epctx_next_tensor(&it, &view) && view.external);
    for (it = epctx_view_fields(view.view, 0); epctx_next_field(&it, &field); fields++) {
        CHECK(field.number >= last, "field %u stands behind field %u", (unsigned)field.number,
              (unsigned)last);
        last = field.number;
    }
    CHECK_UINT(fields, 9);
    CHECK_UINT(last, 16);
    epctx_model_close(&out);
    bytes_free(&model);
}

/* Mappings of their exact size, for sanitizers. */
static epctx_status exact_map(void *user, const char *folder, const char *name, bool copy,
                              epctx_mapping *out, epctx_error *error) {
    bytes b = {0};
    char path[600];
    FILE *file;
    char block[64];
    size_t size;
    (void)user, (void)copy;
    snprintf(path, sizeof path, "%s%s%s", folder != NULL ? folder : "", folder != NULL ? "/" : "",
             name);
    file = fopen(path, "rb");
    memset(out, 0, sizeof *out);
    if (file == NULL) return epctx_fail(error, EPCTX_ERR_NOT_FOUND, "is not there");
    while ((size = fread(block, 1, sizeof block, file)) > 0) bytes_add(&b, block, size);
    fclose(file);
    out->handle = malloc(b.size);
    if (out->handle == NULL || b.size == 0) abort();
    memcpy(out->handle, b.data, b.size);
    out->data = (const uint8_t *)out->handle;
    out->size = b.size;
    bytes_free(&b);
    return EPCTX_OK;
}

static void exact_unmap(void *user, epctx_mapping *mapping) {
    (void)user;
    free(mapping->handle);
}

/* A file in parts that are more than its size says: not the one that is there, and nothing behind
 * that one is read. */
TEST(parts_beyond_a_file) {
    static const uint8_t data[64] = {1};
    static const size_t sizes[][2] = {{16, 48}, {64, 0}, {0, 64}, {17, 0}, {15, 0}};
    bytes graph = {0}, model = new_model(&graph);
    epctx_io io = *epctx_io_files();
    epctx_open_opts open = {0};
    epctx_error error;
    epctx_model m;
    char path[400], out[400];
    clear_root();
    io.map_fn = exact_map;
    io.unmap_fn = exact_unmap;
    open.io = &io;
    make_file(at("f.bin"), data, 16);
    snprintf(path, sizeof path, "%s", at("f.bin"));
    snprintf(out, sizeof out, "%s", at("out.onnx"));
    CHECK_INT(epctx_model_open_memory(&m, model.data, model.size, &open, &error), EPCTX_OK);
    for (int zeros = 0; zeros < 2; zeros++) {
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            epctx_span parts[2];
            epctx_output_file file = {0};
            for (int k = 0; k < 2; k++) {
                parts[k].data = zeros ? NULL : data;
                parts[k].size = sizes[i][k];
            }
            file.path = path;
            file.parts = parts;
            file.part_count = 2;
            file.size = 16;
            CHECK_INT(
                epctx_model_write_group(&m, out, &judge, &file, 1, EPCTX_OVERWRITE_FAIL, &error),
                EPCTX_ERR_EXISTS);
            CHECK_TRUE(!file.kept);
        }
    }
    epctx_model_close(&m);
    bytes_free(&model);
}

/* -- the build stamp -- */

#define ABC_STAMP "options 0\nbinary 3 44bc2cf5ad770999" /* XXH64 of "abc", as published */

/* Opens "m.onnx" with a stamp of source X, which NULL leaves out. */
static epctx_status open_stamped(epctx_model *model, const char *stamp, epctx_error *error) {
    epctx_status status = epctx_model_open_file(model, at("m.onnx"), NULL, error);
    if (status == EPCTX_OK && stamp != NULL)
        status = epctx_edit_set_metadata(model, epctx_str_of(EPCTX_BUILD_PREFIX "X"),
                                         epctx_str_of(stamp), error);
    return status;
}

/* A binary that is not the one of the stamp goes into no model and out of none, unless it may. */
TEST(binary_of_the_stamp) {
    static const part plain[] = {{"a", 1, 0, "X", "m_x.bin"}, {"b", 0, 0, "X", NULL}};
    static const part several[] = {{"a", 1, 0, "X", "m_x.bin"}, {"b", 1, 0, "X", "n_x.bin"}};
    static const part mixed[] = {{"a", 1, 0, "X", "m_x.bin"}, {"b", 1, 1, "X", "other"}};
    static const part shared[] = {{"a", 1, 0, "X", "m_x.bin"}, {"b", 1, 0, "X", "m_x.bin"}};
    static const part twice[] = {{"b", 1, 0, "Y", "n_x.bin"}, {"a", 1, 0, "X", "m_x.bin"}};
    static const struct {
        const part *parts;
        const char *stamp, *binary;
        epctx_status want;
        const char *file, *embedded; /* what the message says */
    } cases[] = {
        {plain, ABC_STAMP, "abc", EPCTX_OK, "", ""},
        {plain, NULL, "abd", EPCTX_OK, "", ""},
        {plain, "source 3 44bc2cf5ad770999 gone.onnx", "abd", EPCTX_OK, "", ""},
        {plain, "", "abd", EPCTX_OK, "", ""},
        {plain, ABC_STAMP, "abd", EPCTX_ERR_VERSION, "context binary 'm_x.bin' has hash ",
         "the embedded context has hash "},
        {plain, ABC_STAMP, "abcd", EPCTX_ERR_VERSION,
         "context binary 'm_x.bin' has 4 bytes, the model was compiled with one of 3: ",
         "the embedded context has 4 bytes, the model was compiled with one of 3: "},
        {plain, "binary 4 44bc2cf5ad770999", "abc", EPCTX_ERR_VERSION, "has 3 bytes", "3 bytes"},
        {several, ABC_STAMP, "abd", EPCTX_OK, "", ""}, /* of which is it? */
        {mixed, ABC_STAMP, "abd", EPCTX_OK, "", ""},
        {shared, ABC_STAMP, "abc", EPCTX_OK, "", ""},
        {shared, ABC_STAMP, "abd", EPCTX_ERR_VERSION, "'m_x.bin' has hash", "has hash"},
        {twice, ABC_STAMP, "abc", EPCTX_OK, "", ""},
        {twice, ABC_STAMP, "abd", EPCTX_ERR_VERSION, "'m_x.bin' has hash", "has hash"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bool good = cases[i].want == EPCTX_OK;
        for (int allow = 0; allow < 2; allow++) {
            epctx_status want = allow ? EPCTX_OK : cases[i].want;
            epctx_freshness verdict = good ? EPCTX_FRESH_UNKNOWN : EPCTX_STALE;
            ops_convert_opts opts = {0};
            ops_changes changes;
            epctx_error error;
            epctx_model model;
            size_t mark;
            clear_root();
            make_parts(cases[i].parts, 2);
            make_text("m_x.bin", cases[i].binary);
            make_text("n_x.bin", "another");
            CHECK_INT(open_stamped(&model, cases[i].stamp, &error), EPCTX_OK);
            CHECK_INT(epctx_model_check_binary(&model, NULL, &error), cases[i].want);
            CHECK_INT(epctx_model_check_fresh(&model, "X", NULL, NULL, &error), verdict);
            opts.common.allow_stale = allow != 0;
            mark = epctx_edit_mark(&model);
            CHECK(ops_embed(&model, &opts, &changes, &error) == want, "case %zu: %s", i,
                  error.message);
            if (!allow) CHECK_HAS(error.message, cases[i].file);
            if (want != EPCTX_OK) {
                CHECK_HAS(error.message, "m.onnx: node 'a': attribute 'ep_cache_context'");
                CHECK_TRUE(epctx_edit_mark(&model) == mark);
                opts.common.allow_stale = true;
                CHECK_INT(ops_embed(&model, &opts, &changes, &error), EPCTX_OK);
                opts.common.allow_stale = false;
            }
            CHECK_INT(epctx_model_check_binary(&model, NULL, &error), cases[i].want);
            CHECK_INT(epctx_model_check_fresh(&model, "X", NULL, NULL, &error), verdict);
            CHECK(ops_extract(&model, &opts, &changes, &error) == want, "case %zu: %s", i,
                  error.message);
            if (!allow) CHECK_HAS(error.message, cases[i].embedded);
            epctx_model_close(&model);
        }
    }
}

/* Of a model with very many stamps, 16 are compared: one each for as many EPs. */
TEST(binaries_of_many_stamps) {
    static const struct {
        size_t other;
        epctx_status want;
    } cases[] = {{0, EPCTX_ERR_VERSION}, {15, EPCTX_ERR_VERSION}, {16, EPCTX_OK}};
    char names[18][24], files[18][32];
    part parts[18];
    for (size_t i = 0; i < 18; i++) {
        snprintf(names[i], sizeof names[i], "S%zu", i);
        snprintf(files[i], sizeof files[i], "%zu.bin", i);
        parts[i] = (part){names[i], 1, 0, names[i], files[i]};
    }
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        ops_changes changes;
        epctx_error error;
        epctx_model model;
        clear_root();
        make_parts(parts, 18);
        CHECK_INT(epctx_model_open_file(&model, at("m.onnx"), NULL, &error), EPCTX_OK);
        for (size_t i = 0; i < 18; i++) {
            char key[500];
            make_text(files[i], i == cases[c].other ? "abd" : "abc");
            snprintf(key, sizeof key, EPCTX_BUILD_PREFIX "%s", names[i]);
            CHECK_INT(
                epctx_edit_set_metadata(&model, epctx_str_of(key), epctx_str_of(ABC_STAMP), &error),
                EPCTX_OK);
        }
        CHECK_INT(epctx_model_check_binary(&model, NULL, &error), cases[c].want);
        CHECK(ops_embed(&model, NULL, &changes, &error) == cases[c].want, "%s", error.message);
        epctx_model_close(&model);
    }
}

/* A node with main_context 0 may have a context of its own: the stamp is about the others'. */
TEST(binary_beside_the_one_of_the_stamp) {
    static const part parts[] = {{"b", 0, 0, "NvTensorRTRTXExecutionProvider", "b.engine"},
                                 {"a", 1, 0, "NvTensorRTRTXExecutionProvider", "a.engine"}};
    ops_changes changes;
    epctx_error error;
    epctx_model model;
    clear_root();
    make_parts(parts, 2);
    make_text("a.engine", "abc");
    make_text("b.engine", "another");
    CHECK_INT(epctx_model_open_file(&model, at("m.onnx"), NULL, &error), EPCTX_OK);
    CHECK_INT(epctx_edit_set_metadata(
                  &model, epctx_str_of(EPCTX_BUILD_PREFIX "NvTensorRTRTXExecutionProvider"),
                  epctx_str_of(ABC_STAMP), &error),
              EPCTX_OK);
    CHECK_OK(ops_embed(&model, NULL, &changes, &error), error);
    CHECK_UINT(changes.done, 2);
    CHECK_OK(ops_extract(&model, NULL, &changes, &error), error);
    CHECK_UINT(changes.done, 2);
    epctx_model_close(&model);
}

/* An existing folder as ep.context_file_path: that of the binary for an EP that looks, and not for
 * others. */
TEST(binary_in_a_folder) {
    static const struct {
        const char *source, *name; /* of the folder */
        bool looks;
    } rows[] = {{"TensorrtExecutionProvider", "d", true},
                {"TensorrtExecutionProvider", "d/", true},
                {"TensorrtExecutionProvider", "d/none.onnx", true}, /* a file in it, for all */
                {"X", "d/", true},
                {"X", "d", false}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const part one[] = {{"a", 1, 0, rows[i].source, "a.engine"}};
        const epctx_profile *profile = epctx_profile_of(epctx_str_of(rows[i].source));
        char key[80], room[EPCTX_PATH_MAX], path[EPCTX_PATH_MAX];
        epctx_error error;
        epctx_model model;
        epctx_str folder;
        clear_root();
        CHECK_INT(mkdir(at("d"), 0777), 0);
        make_parts(one, 1);
        make_text("a.engine", "abc");
        make_text("d/a.engine", "xyz");
        snprintf(key, sizeof key, "%s%s", EPCTX_BUILD_PREFIX, rows[i].source);
        CHECK_INT(epctx_model_open_file(&model, at("m.onnx"), NULL, &error), EPCTX_OK);
        CHECK_INT(
            epctx_edit_set_metadata(&model, epctx_str_of(key), epctx_str_of(ABC_STAMP), &error),
            EPCTX_OK);
        CHECK_INT(epctx_model_check_binary(&model, at(rows[i].name), &error),
                  rows[i].looks ? EPCTX_ERR_VERSION : EPCTX_OK);
        CHECK_OK(epctx_profile_path_base(profile, epctx_io_files(), epctx_str_of(model.path),
                                         at(rows[i].name), room, &folder, &error),
                 error);
        snprintf(path, sizeof path, "%s", at(rows[i].looks ? "d/" : ""));
        CHECK_MEM(folder.data, folder.size, path, strlen(path));
        CHECK_OK(epctx_profile_path_base(profile, epctx_io_files(), epctx_str_of(model.path), NULL,
                                         room, &folder, &error),
                 error);
        CHECK_MEM(folder.data, folder.size, at(""), strlen(at("")));
        epctx_model_close(&model);
        CHECK_TRUE(remove(at("d/a.engine")) == 0 && remove(at("d")) == 0);
    }
}

/* The stamp says how many graphs are in the binary of the primary node, not in those of others. */
TEST(one_graph_of_the_stamp) {
    static const part parts[] = {
        {"a", 1, 0, "X", "m_x.bin"}, {"b", 0, 0, "X", "n_x.bin"}, {"c", 0, 1, "X", "abc"}};
    epctx_node_view view;
    epctx_epnode node;
    epctx_error error;
    epctx_model model;
    epctx_walk walk;
    clear_root();
    make_parts(parts, 3);
    make_text("m_x.bin", "abc");
    make_text("n_x.bin", "abc");
    CHECK_INT(open_stamped(&model, ABC_STAMP "\ngraphs 1", &error), EPCTX_OK);
    epctx_walk_begin(&walk, &model);
    for (int i = 0; i < 3; i++) {
        CHECK_TRUE(epctx_walk_epnode(&walk, &view));
        CHECK_OK(epctx_view_read_epnode(&view, &node, &error), error);
        CHECK(epctx_model_holds_one_graph(&model, &node) == (i == 0), "node %s", parts[i].name);
    }
    epctx_model_close(&model);
}

/* Where the name of a node is the key: binaries of one graph each leave the names free. */
TEST(names_of_one_graph_each) {
    static const part parts[] = {{"a", 1, 0, "QNNExecutionProvider", "a.bin"},
                                 {"b", 1, 0, "QNNExecutionProvider", "b.bin"}};
    for (uint64_t graphs = 1; graphs <= 2; graphs++) {
        epctx_stamp_opts opts = {0};
        epctx_error error;
        epctx_model model;
        clear_root();
        make_parts(parts, 2);
        make_text("a.bin", "abc");
        make_text("b.bin", "another");
        CHECK_OK(epctx_model_open_file(&model, at("m.onnx"), NULL, &error), error);
        opts.graphs = graphs;
        CHECK_OK(epctx_edit_stamp(&model, "QNNExecutionProvider", &opts, &error), error);
        CHECK_INT(epctx_edit_prefix(&model, epctx_str_of("p_"), NULL, NULL, &error),
                  graphs == 1 ? EPCTX_OK : EPCTX_ERR_UNSUPPORTED);
        if (graphs == 2) CHECK_STR(error.node, "a");
        epctx_edit_undo(&model, 0);
        CHECK_OK(epctx_edit_stamp(&model, "QNNExecutionProvider", &opts, &error), error);
        make_text("b.bin", "changed");
        CHECK_INT(epctx_edit_prefix(&model, epctx_str_of("p_"), NULL, NULL, &error),
                  EPCTX_ERR_UNSUPPORTED);
        CHECK_STR(error.node, graphs == 1 ? "b" : "a");
        epctx_model_close(&model);
    }
}

/* -- a line for each binary -- */

enum { LINES_MOST = 4 };

/* How nodes come to their binaries. */
typedef enum lines_kind { IN_FILES, EMBEDDED, WITH_WEIGHTS, SECONDARY, LINES_KINDS } lines_kind;

/* What the context of a node is, or the weights beside it. */
static const char *lines_text(unsigned pattern, size_t i) {
    return (pattern >> i & 1) != 0 ? "bbb" : "aaa";
}

static void lines_file(lines_kind kind, size_t i, const char *text) {
    char name[32];
    snprintf(name, sizeof name, "%zu.bin", i);
    make_text(name, text);
    snprintf(name, sizeof name, "%zu.xml", i);
    if (kind == WITH_WEIGHTS) make_text(name, "xml");
}

static const char *lines_source(lines_kind kind) {
    return kind == SECONDARY ? "NvTensorRTRTXExecutionProvider" : "X";
}

/* "m.onnx" with a stamp: node i has "aaa" or "bbb" by bit i. */
static void lines_open(epctx_model *model, lines_kind kind, size_t count, unsigned pattern) {
    part parts[LINES_MOST];
    char names[LINES_MOST][24], files[LINES_MOST][32];
    epctx_stamp_opts opts = {0};
    epctx_error error;
    clear_root();
    for (size_t i = 0; i < count; i++) {
        snprintf(names[i], sizeof names[i], "n%zu", i);
        snprintf(files[i], sizeof files[i], "%zu.%s", i, kind == WITH_WEIGHTS ? "xml" : "bin");
        parts[i] = (part){names[i], kind != SECONDARY, kind == EMBEDDED, lines_source(kind),
                          kind == EMBEDDED ? lines_text(pattern, i) : files[i]};
        if (kind != EMBEDDED) lines_file(kind, i, lines_text(pattern, i));
    }
    make_parts(parts, count);
    CHECK_OK(epctx_model_open_file(model, at("m.onnx"), NULL, &error), error);
    CHECK_OK(epctx_edit_stamp(model, lines_source(kind), &opts, &error), error);
}

static size_t lines_found(const epctx_model *model, const char *source, const char *word) {
    epctx_str stamp;
    epctx_stamp_line line;
    size_t count = 0;
    if (!epctx_model_get_stamp(model, epctx_str_of(source), &stamp)) return 0;
    while (epctx_stamp_next_line(&stamp, &line)) count += epctx_str_is(line.word, word);
    return count;
}

/* Which nodes have a context of their own: primary ones, secondary ones if their EP reads a context
 * there, and those that wrap a DLC. */
TEST(contexts_of_nodes) {
    static const struct {
        part second;
        size_t want;
    } cases[] = {{{"b", 1, 0, "X", "b.bin"}, 2},
                 {{"b", 0, 0, "X", "b.bin"}, 1},
                 {{"b", 1, 0, "NvTensorRTRTXExecutionProvider", "b.bin"}, 2},
                 {{"b", 0, 0, "NvTensorRTRTXExecutionProvider", "b.bin"}, 2},
                 {{"b", 0, 0, "NvTensorRTRTXExecutionProvider", NULL}, 1}};
    epctx_stamp_opts opts = {0};
    epctx_error error;
    epctx_model model;
    bytes graph = {0}, b, node;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const part parts[] = {{"a", 1, 0, cases[i].second.source, "a.bin"}, cases[i].second};
        clear_root();
        make_parts(parts, 2);
        make_text("a.bin", "abc");
        make_text("b.bin", "another");
        CHECK_OK(epctx_model_open_file(&model, at("m.onnx"), NULL, &error), error);
        CHECK_OK(epctx_edit_stamp(&model, parts[0].source, &opts, &error), error);
        CHECK(lines_found(&model, parts[0].source, "binary") == cases[i].want,
              "case %zu: expected %zu, found %zu", i, cases[i].want,
              lines_found(&model, parts[0].source, "binary"));
        epctx_model_close(&model);
    }
    node = new_node("EPContext", "com.microsoft", "dlc", "x", "y");
    add_attr_int(&node, "main_context", 0);
    add_attr_str(&node, "source", "X", 1);
    add_attr_str(&node, "ep_dlc_context", "b.bin", 5);
    put_child(&graph, 1, &node);
    b = new_model(&graph);
    save_bytes("m.onnx", &b);
    CHECK_OK(epctx_model_open_file(&model, at("m.onnx"), NULL, &error), error);
    CHECK_OK(epctx_edit_stamp(&model, "X", &opts, &error), error);
    CHECK_UINT(lines_found(&model, "X", "binary"), 1);
    make_text("b.bin", "changed");
    CHECK_INT(epctx_model_check_binary(&model, NULL, &error), EPCTX_ERR_VERSION);
    epctx_model_close(&model);
}

/* The stamp's line of each node is that of its context. */
static void lines_of_nodes(const epctx_model *model, lines_kind kind, unsigned pattern) {
    epctx_cursor it = epctx_view_graph_nodes(epctx_model_graph(model));
    epctx_node_view view;
    for (size_t i = 0; epctx_next_node(&it, &view); i++) {
        const char *text = kind == WITH_WEIGHTS ? "xml" : lines_text(pattern, i);
        epctx_epnode node;
        epctx_stamp_line line;
        CHECK_INT(epctx_view_read_epnode(&view, &node, NULL), EPCTX_OK);
        CHECK_TRUE(epctx_model_stamp_line(model, node.source, node.ep_cache_context, &line));
        /* Equal contexts inside of nodes cannot be told apart; their lines are equal. */
        CHECK(line.size == 3 && line.hash == epctx_hash(text, 3, 0) && line.graphs == 0,
              "node %zu, pattern %u", i, pattern);
    }
}

/* Each node's file changes alone, and each two different ones change places. */
static void lines_changed(const epctx_model *model, lines_kind kind, size_t count,
                          unsigned pattern) {
    epctx_error error;
    char node[40];
    for (size_t i = 0; i < count; i++) {
        snprintf(node, sizeof node, "node 'n%zu'", i);
        lines_file(kind, i, "ccc");
        CHECK_INT(epctx_model_check_binary(model, NULL, &error), EPCTX_ERR_VERSION);
        CHECK_HAS(error.message, node);
        CHECK_INT(epctx_model_check_fresh(model, lines_source(kind), NULL, NULL, &error),
                  EPCTX_STALE);
        lines_file(kind, i, "cc");
        CHECK_INT(epctx_model_check_binary(model, NULL, &error), EPCTX_ERR_VERSION);
        CHECK_HAS(error.message, "has 2 bytes");
        CHECK_HAS(error.message, node);
        lines_file(kind, i, lines_text(pattern, i));
        for (size_t k = 0; k < i; k++) {
            const bool differ = lines_text(pattern, i) != lines_text(pattern, k);
            lines_file(kind, i, lines_text(pattern, k));
            lines_file(kind, k, lines_text(pattern, i));
            CHECK(epctx_model_check_binary(model, NULL, &error) ==
                      (differ ? EPCTX_ERR_VERSION : EPCTX_OK),
                  "pattern %u, %zu and %zu", pattern, i, k);
            lines_file(kind, i, lines_text(pattern, i));
            lines_file(kind, k, lines_text(pattern, k));
        }
    }
    CHECK_INT(epctx_model_check_binary(model, NULL, &error), EPCTX_OK);
}

/* Every pattern of up to four binaries: swapped, other and cut ones are found, by node, and a model
 * that is embedded or extracted is still that of its stamp. */
TEST(a_line_for_each_binary) {
    for (int kind = 0; kind < LINES_KINDS; kind++) {
        for (size_t count = 1; count <= LINES_MOST; count++) {
            for (unsigned pattern = 0; pattern < 1u << count; pattern++) {
                const char *source = lines_source((lines_kind)kind);
                const char *word = kind == WITH_WEIGHTS ? "beside" : "binary";
                ops_changes changes;
                epctx_error error;
                epctx_model model;
                lines_open(&model, (lines_kind)kind, count, pattern);
                CHECK_OK(epctx_model_check_binary(&model, NULL, &error), error);
                CHECK_UINT(lines_found(&model, source, word), count);
                lines_of_nodes(&model, (lines_kind)kind, pattern);
                if (kind != EMBEDDED) lines_changed(&model, (lines_kind)kind, count, pattern);
                if (kind == IN_FILES) {
                    CHECK_OK(ops_embed(&model, NULL, &changes, &error), error);
                    CHECK_UINT(changes.done, count);
                } else if (kind == EMBEDDED) {
                    CHECK_OK(ops_extract(&model, NULL, &changes, &error), error);
                    CHECK_UINT(changes.done, count);
                }
                CHECK_OK(epctx_model_check_binary(&model, NULL, &error), error);
                epctx_model_close(&model);
            }
        }
    }
}

/* A context that another one took the place of does not move, whichever it is. */
TEST(lines_of_contexts_that_move) {
    for (size_t i = 0; i < 3; i++) {
        ops_convert_opts opts = {0};
        ops_changes changes;
        epctx_error error;
        epctx_model model;
        char node[40];
        snprintf(node, sizeof node, "node 'n%zu'", i);
        lines_open(&model, IN_FILES, 3, 2);
        lines_file(IN_FILES, i, i == 1 ? "aaa" : "bbb");
        CHECK_INT(ops_embed(&model, NULL, &changes, &error), EPCTX_ERR_VERSION);
        CHECK_HAS(error.message, node);
        opts.common.node = i == 1 ? "n0" : "n1"; /* the others may */
        CHECK_OK(ops_embed(&model, &opts, &changes, &error), error);
        CHECK_UINT(changes.done, 1);
        epctx_model_close(&model);
    }
}

/* What is not given stays: source and options always, the rest only of the same binaries. */
TEST(lines_that_stay) {
    static const part parts[] = {{"a", 1, 0, "X", "m_x.bin"}};
    epctx_stamp_opts opts = {0};
    epctx_error error;
    epctx_model model;
    epctx_str stamp;
    char text[600], want[600];
    clear_root();
    make_parts(parts, 1);
    make_text("m_x.bin", "abc");
    CHECK_OK(epctx_model_open_file(&model, at("m.onnx"), NULL, &error), error);
    opts.options = "O3";
    opts.ort = "1.31.1";
    opts.ep = "2.7\nx";
    opts.driver = "50%";
    opts.device = "npu";
    opts.graphs = 2;
    CHECK_OK(epctx_edit_stamp(&model, "X", &opts, &error), error);
    CHECK_TRUE(epctx_model_get_stamp(&model, epctx_str_of("X"), &stamp));
    snprintf(text, sizeof text, "%.*s", (int)stamp.size, stamp.data);
    snprintf(want, sizeof want,
             "epctx 2\noptions %016" PRIx64
             "\nort 1.31.1\nep 2.7%%0Ax\ndriver 50%%25\ndevice npu\n",
             epctx_hash("O3", 2, 0));
    CHECK_HAS(text, want);
    CHECK_HAS(text, "\nbinary 3 44bc2cf5ad770999\ngraphs 2");
    memset(&opts, 0, sizeof opts);
    opts.keep = true;
    CHECK_OK(epctx_edit_stamp(&model, "X", &opts, &error), error);
    CHECK_TRUE(epctx_model_get_stamp(&model, epctx_str_of("X"), &stamp));
    CHECK(epctx_str_is(stamp, text), "nothing new: the same stamp");
    make_text("m_x.bin", "abd");
    snprintf(want, sizeof want, "\nreplaces %016" PRIx64, epctx_hash(text, strlen(text), 0));
    CHECK_OK(epctx_edit_stamp(&model, "X", &opts, &error), error);
    CHECK_TRUE(epctx_model_get_stamp(&model, epctx_str_of("X"), &stamp));
    snprintf(text, sizeof text, "%.*s", (int)stamp.size, stamp.data);
    CHECK_HAS(text, want);
    CHECK_HAS(text, "epctx 2\noptions ");
    CHECK(strstr(text, "ort ") == NULL && strstr(text, "device") == NULL &&
              strstr(text, "graphs") == NULL,
          "%s", text);
    opts.keep = false;
    CHECK_OK(epctx_edit_stamp(&model, "X", &opts, &error), error);
    CHECK_TRUE(epctx_model_get_stamp(&model, epctx_str_of("X"), &stamp));
    snprintf(text, sizeof text, "%.*s", (int)stamp.size, stamp.data);
    CHECK(strstr(text, "options") == NULL, "%s", text);
    epctx_model_close(&model);
}

/* SDK and architecture are those of the first node of the EP that has them. */
TEST(lines_of_the_target) {
    static const part parts[] = {
        {"y", 1, 1, "Y", "a"}, {"a", 1, 1, "X", "b"}, {"b", 1, 1, "X", "c"}, {"c", 1, 1, "X", "d"}};
    static const char *const sdks[] = {"9.9", "", "2.1", "2.2"};
    static const char *const chips[] = {"v9", "v73", "", "v75"};
    epctx_stamp_opts opts = {0};
    epctx_error error;
    epctx_model model;
    epctx_node_view view;
    epctx_walk walk;
    epctx_str stamp;
    char text[600];
    clear_root();
    make_parts(parts, 4);
    CHECK_OK(epctx_model_open_file(&model, at("m.onnx"), NULL, &error), error);
    epctx_walk_begin(&walk, &model);
    for (size_t i = 0; epctx_walk_epnode(&walk, &view); i++) {
        CHECK_OK(epctx_edit_set_attr_str(&model, view.view, "ep_sdk_version", epctx_str_of(sdks[i]),
                                         &error),
                 error);
        CHECK_OK(epctx_edit_set_attr_str(&model, view.view, "hardware_architecture",
                                         epctx_str_of(chips[i]), &error),
                 error);
    }
    CHECK_OK(epctx_edit_stamp(&model, "X", &opts, &error), error);
    CHECK_TRUE(epctx_model_get_stamp(&model, epctx_str_of("X"), &stamp));
    snprintf(text, sizeof text, "%.*s", (int)stamp.size, stamp.data);
    CHECK_HAS(text, "\nsdk 2.1\narch v73\n");
    epctx_model_close(&model);
}

typedef struct differences {
    char text[2000];
    size_t count;
} differences;

static void tell_difference(void *user, const epctx_error *why) {
    differences *t = (differences *)user;
    const size_t used = strlen(t->text);
    snprintf(t->text + used, sizeof t->text - used, "%s\n", why->message);
    t->count++;
}

/* Files to which the binaries refer: a line each; all that differ are told, in their order. */
TEST(needs) {
    static const part parts[] = {{"a", 1, 0, "X", "m_x.bin"}, {"b", 1, 0, "X", "m_y.bin"}};
    static const char *const needs[] = {"w%1.bin", "v.bin", NULL};
    static const char *const gone[] = {"gone.bin", NULL};
    epctx_stamp_opts opts = {0};
    epctx_fresh_opts fresh = {0};
    differences all = {0};
    epctx_model model;
    epctx_error error;
    epctx_str stamp;
    char text[600];
    clear_root();
    make_parts(parts, 2);
    make_text("m_x.bin", "abc");
    make_text("m_y.bin", "xyz");
    make_text("w%1.bin", "abc");
    make_text("v.bin", "v");
    CHECK_OK(epctx_model_open_file(&model, at("m.onnx"), NULL, &error), error);
    opts.needs = gone;
    CHECK_INT(epctx_edit_stamp(&model, "X", &opts, &error), EPCTX_ERR_NOT_FOUND);
    CHECK_HAS(error.message, "gone.bin");
    opts.needs = needs;
    CHECK_OK(epctx_edit_stamp(&model, "X", &opts, &error), error);
    CHECK_TRUE(epctx_model_get_stamp(&model, epctx_str_of("X"), &stamp));
    snprintf(text, sizeof text, "%.*s", (int)stamp.size, stamp.data);
    CHECK_HAS(text, "\nneeds 3 44bc2cf5ad770999 w%251.bin\nneeds 1 ");
    opts.needs = NULL;
    opts.keep = true;
    CHECK_OK(epctx_edit_stamp(&model, "X", &opts, &error), error);
    CHECK_TRUE(epctx_model_get_stamp(&model, epctx_str_of("X"), &stamp));
    CHECK(epctx_str_is(stamp, text), "the lines stay: %.*s", (int)stamp.size, stamp.data);
    CHECK_OK(epctx_model_check_binary(&model, NULL, &error), error);
    make_text("w%1.bin", "abd");
    CHECK_INT(epctx_model_check_binary(&model, NULL, &error), EPCTX_ERR_VERSION);
    CHECK_HAS(error.message, "w%1.bin' has changed");
    make_text("v.bin", "");
    make_text("m_x.bin", "ab");
    make_text("m_y.bin", "xyzz");
    CHECK_INT(epctx_model_check_fresh(&model, "X", NULL, &fresh, &error), EPCTX_STALE);
    fresh.differs_fn = tell_difference;
    fresh.user = &all;
    CHECK_INT(epctx_model_check_fresh(&model, "X", NULL, &fresh, &error), EPCTX_STALE);
    CHECK_INT(all.count, 4);
    CHECK_HAS(error.message, "w%1.bin' has changed");
    CHECK(strstr(all.text, "w%1.bin") < strstr(all.text, "v.bin' has 0 bytes") &&
              strstr(all.text, "v.bin") < strstr(all.text, "m_x.bin' has 2 bytes") &&
              strstr(all.text, "m_x.bin") < strstr(all.text, "m_y.bin' has 4 bytes"),
          "%s", all.text);
    epctx_model_close(&model);
}

/* Any option fits on its line, and is read as it was given. */
TEST(options_as_text) {
    static const part parts[] = {{"a", 1, 0, "X", "m_x.bin"}};
    static const char *const ep[] = {"b", "", "a=%", "%0A=\n\r%3D", "secret", NULL, "", "=", NULL};
    static const char *const session[] = {"ep.x", "1", NULL};
    static const char want[] = "epctx 2\nep_option b=\nep_option a%3D%25=%250A=%0A\r%253D\n"
                               "ep_option secret\nep_option ==\nsession_option ep.x=1\n";
    epctx_stamp_opts opts = {0};
    epctx_stamp_option option;
    epctx_error error;
    epctx_model model;
    epctx_str stamp, rest;
    char text[600], key[32], value[32];
    clear_root();
    make_parts(parts, 1);
    make_text("m_x.bin", "abc");
    CHECK_OK(epctx_model_open_file(&model, at("m.onnx"), NULL, &error), error);
    opts.ep_options = ep;
    opts.session_options = session;
    CHECK_OK(epctx_edit_stamp(&model, "X", &opts, &error), error);
    CHECK_TRUE(epctx_model_get_stamp(&model, epctx_str_of("X"), &stamp));
    snprintf(text, sizeof text, "%.*s", (int)stamp.size, stamp.data);
    CHECK_HAS(text, want);
    rest = stamp;
    for (size_t i = 0; i < 8; i += 2) {
        CHECK_TRUE(epctx_stamp_next_option(&rest, &option));
        CHECK_TRUE(epctx_stamp_plain(option.key, key, sizeof key));
        CHECK_TRUE(epctx_stamp_plain(option.value, value, sizeof value));
        CHECK_STR(key, ep[i]);
        CHECK_STR(value, ep[i + 1] != NULL ? ep[i + 1] : "");
        CHECK(option.told == (ep[i + 1] != NULL) && !option.session, "%s", key);
    }
    CHECK_TRUE(epctx_stamp_next_option(&rest, &option));
    CHECK(option.session && epctx_str_is(option.key, "ep.x"), "the last one is the session's");
    CHECK(!epctx_stamp_next_option(&rest, &option), "there is no other");
    CHECK(!epctx_stamp_plain(epctx_str_of("a%0Ab"), value, 3), "no room");
    CHECK_STR(value, "a\n");
    memset(&opts, 0, sizeof opts);
    opts.keep = true;
    CHECK_OK(epctx_edit_stamp(&model, "X", &opts, &error), error);
    CHECK_TRUE(epctx_model_get_stamp(&model, epctx_str_of("X"), &rest));
    CHECK(epctx_str_eq(rest, stamp), "the options stay");
    opts.options = "O2";
    CHECK_OK(epctx_edit_stamp(&model, "X", &opts, &error), error);
    CHECK_TRUE(epctx_model_get_stamp(&model, epctx_str_of("X"), &rest));
    CHECK(!epctx_stamp_next_option(&rest, &option), "others take their place");
    epctx_model_close(&model);
}

/* What cannot be read is not another binary; an empty one is, and what is not there is not
 * judged. */
TEST(binary_that_cannot_be_read) {
    static const part parts[] = {{"a", 1, 0, "X", "m_x.bin"}};
    epctx_error error;
    epctx_model model;
    clear_root();
    make_parts(parts, 1);
    CHECK_INT(open_stamped(&model, ABC_STAMP, &error), EPCTX_OK);
    CHECK_INT(epctx_model_check_binary(&model, NULL, &error), EPCTX_OK);
    CHECK_INT(epctx_model_check_fresh(&model, "X", NULL, NULL, &error), EPCTX_FRESH_UNKNOWN);
    CHECK_HAS(error.message, "names no source");
    make_text("m_x.bin", "");
    CHECK_INT(epctx_model_check_binary(&model, NULL, &error), EPCTX_ERR_PATH);
    CHECK_INT(epctx_model_check_fresh(&model, "X", NULL, NULL, &error), EPCTX_STALE);
    CHECK_HAS(error.message, "is empty (0 bytes)");
    make_text("m_x.bin", "abc");
    CHECK_INT(epctx_model_check_binary(&model, "/nowhere/x_ctx.onnx", &error), EPCTX_OK);
    CHECK_INT(epctx_model_check_binary(&model, at("x_ctx.onnx"), &error), EPCTX_OK);
    make_text("m_x.bin", "abd");
    CHECK_INT(epctx_model_check_binary(&model, at("x_ctx.onnx"), &error), EPCTX_ERR_VERSION);
    epctx_model_close(&model);
}

#if defined(__linux__) && defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__)

/* Anonymous memory of this process in KiB, its heap among it. */
static long anonymous(void) {
    char line[200];
    long kib = -1;
    FILE *file = fopen("/proc/self/status", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "RssAnon:", 8) == 0) kib = strtol(line + 8, NULL, 10);
    if (file != NULL) fclose(file);
    return kib;
}

static long most_anonymous;

/* Looks at every write, counts the bytes, and keeps none. */
static epctx_status watched_write(void *user, epctx_io_file *file, const void *data, size_t size,
                                  epctx_error *error) {
    long now = anonymous();
    (void)file, (void)error;
    if (now > most_anonymous) most_anonymous = now;
    /* Some of what write(2) reads: it is whoever copies that takes memory. */
    for (size_t i = 0; i < size; i += 32 << 20) *(uint64_t *)user += ((const uint8_t *)data)[i];
    now = anonymous();
    if (now > most_anonymous) most_anonymous = now;
    return EPCTX_OK;
}

/* Puts `head` in front of what follows it in the file: a message whose last field is still open. */
static void open_field(bytes *head, uint32_t number, bytes *before, uint64_t rest) {
    bytes all = {0};
    bytes_add(&all, before->data, before->size);
    put_tag(&all, number, 2);
    put_varint(&all, head->size + rest);
    bytes_add(&all, head->data, head->size);
    bytes_free(before);
    bytes_free(head);
    *head = all;
}

/* A model whose last bytes are an embedded context of `size` zeros: a hole in the file. */
static void make_huge(const char *name, uint64_t size) {
    bytes head = {0}, attr = {0}, node, graph = {0}, model = {0};
    put_str(&attr, 1, "ep_cache_context");
    put_int(&attr, 20, EPCTX_ATTR_STRING);
    open_field(&head, 4, &attr, size);
    node = new_node("EPContext", "com.microsoft", "a", "x", "y");
    add_attr_int(&node, "embed_mode", 1);
    add_attr_str(&node, "source", "X", 1);
    open_field(&head, 5, &node, size);
    open_field(&head, 1, &graph, size);
    put_int(&model, 1, 8);
    open_field(&head, 7, &model, size);
    make_file(at(name), head.data, head.size);
    if (truncate(at(name), (off_t)(head.size + size)) != 0) abort();
    bytes_free(&head);
}

/* A stamp with the hash that the refusal of another one tells. */
static void stamp_size(epctx_model *model, convert_fn function, const ops_convert_opts *opts,
                       int64_t size) {
    char stamp[80];
    epctx_error error;
    ops_changes changes;
    snprintf(stamp, sizeof stamp, "binary %lld 0000000000000000", (long long)size);
    for (int i = 0; i < 2; i++) {
        const char *hash;
        if (epctx_edit_set_metadata(model, epctx_str_of(EPCTX_BUILD_PREFIX "X"),
                                    epctx_str_of(stamp), &error) != EPCTX_OK)
            abort();
        if (i == 1) break;
        CHECK_INT(function(model, opts, &changes, &error), EPCTX_ERR_VERSION);
        hash = strstr(error.message, "has hash ");
        CHECK_TRUE(hash != NULL);
        snprintf(stamp, sizeof stamp, "binary %lld %016llx", (long long)size,
                 strtoull(hash + 9, NULL, 16));
    }
}

/* A context of 1 GB goes into a model and out of one, compared with the build stamp, with less than
 * 4 MB of memory of its own. */
TEST(gigabyte_in_constant_memory) {
    static const part parts[] = {{"a", 1, 0, "X", "m_x.bin"}};
    static const convert_fn functions[] = {ops_embed, ops_extract};
    const int64_t size = INT64_C(1000000000);
    uint64_t sum = 0;
    epctx_io io = *epctx_io_files();
    epctx_error error;
    /* The measure itself: memory that is touched shows. */
    long base = anonymous();
    char *touched = (char *)malloc(8 << 20);
    CHECK_TRUE(touched != NULL);
    memset(touched, 1, 8 << 20);
    CHECK(anonymous() - base > 4096, "8 MB of memory show as %ld KiB", anonymous() - base);
    CHECK_TRUE(touched[anonymous() & 0xffff] == 1);
    free(touched);
    clear_root();
    make_parts(parts, 1);
    make_text("m_x.bin", "");
    CHECK_INT(truncate(at("m_x.bin"), (off_t)size), 0);
    make_huge("e.onnx", (uint64_t)size);
    io.user = &sum;
    io.write_fn = watched_write;
    for (int i = 0; i < 2; i++) {
        ops_convert_opts opts = {0};
        epctx_open_opts open_opts = {0};
        ops_changes changes;
        epctx_model model;
        long before = anonymous();
        most_anonymous = before;
        open_opts.io = &io;
        opts.common.output_path = at("o.onnx");
        CHECK_OK(
            epctx_model_open_file(&model, at(i == 0 ? "m.onnx" : "e.onnx"), &open_opts, &error),
            error);
        stamp_size(&model, functions[i], &opts, size);
        CHECK_OK(functions[i](&model, &opts, &changes, &error), error);
        CHECK_UINT(changes.items[0].size, size);
        CHECK_OK(epctx_model_write_group(&model, at("o.onnx"), NULL, changes.files,
                                         changes.file_count, EPCTX_OVERWRITE_REPLACE, &error),
                 error);
        epctx_model_close(&model);
        CHECK(most_anonymous - before < 4096, "%ld KiB of anonymous memory",
              most_anonymous - before);
        printf("note convert: %s of 1 GB takes %ld KiB of anonymous memory\n",
               i == 0 ? "embed" : "extract", most_anonymous - before);
        remove(at("o.onnx"));
        remove(at("o_x.bin"));
    }
}

#else

TEST(gigabyte_in_constant_memory) {
    SKIP("measured on Linux, x86-64, without sanitizers");
}

#endif

/* -- genuine models -- */

static bool copy_file(const char *from, const char *to) {
    bytes b = {0};
    char block[4096];
    size_t size;
    FILE *file = fopen(from, "rb");
    if (file == NULL) return false;
    while ((size = fread(block, 1, sizeof block, file)) > 0) bytes_add(&b, block, size);
    fclose(file);
    save_bytes(to, &b);
    return true;
}

/* Models of ONNX Runtime's own EPs: one way, back, and the same way again; their payloads are what
 * they were. */
TEST(genuine_models) {
    static const struct {
        const char *folder, *model, *binaries[3];
        bool embedded;
    } cases[] = {
        {"ort_testdata", "qnn_multi_ctx_embed.onnx", {NULL}, true},
        {"ort_testdata",
         "qnn_multi_ctx_external.onnx",
         {"add_output_quant.onnx_ctx.onnx_QNNExecutionProvider_QNN_14402433416346871126_1_0.bin",
          "add_add_1_quant.onnx_ctx.onnx_QNNExecutionProvider_QNN_13756297062807309455_1_0.bin"},
         false},
        {"ort_example_ep", "01_embed1_ctx.onnx", {NULL}, true},
        {"ort_example_ep", "02_both_ctx.onnx", {NULL}, true},
        {"ort_example_ep/02",
         "02_embed0_ctx.onnx",
         {"example_ep_example_ep_2270744483024087925_0_0.ctx"},
         false},
        {"multi_partition", "multi_embed1_ctx.onnx", {NULL}, true},
        {"multi_partition",
         "multi_single_embed0_ctx.onnx",
         {"multi_single_embed0_ctx_MiniEP_0.mep"},
         false},
        {"multi_partition/share", "share_b_ctx.onnx", {"share_a_ctx_shared.mep"}, false},
    };
    const char *models = test_models();
    if (models == NULL) SKIP("EPCTX_TEST_MODELS is not set");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        convert_fn there = cases[i].embedded ? ops_extract : ops_embed;
        convert_fn back = cases[i].embedded ? ops_embed : ops_extract;
        char path[600], first[1000];
        epctx_error error;
        clear_root();
        for (int k = -1; k < 3 && (k < 0 || cases[i].binaries[k] != NULL); k++) {
            const char *name = k < 0 ? cases[i].model : cases[i].binaries[k];
            snprintf(path, sizeof path, "%s/epcontext/%s/%s", models, cases[i].folder, name);
            CHECK(copy_file(path, k < 0 ? "m_ctx.onnx" : name), "%s is missing", path);
        }
        snprintf(first, sizeof first, "%s", nodes_of("m_ctx.onnx"));
        CHECK(convert(there, "m_ctx.onnx", "a_ctx.onnx", NULL, NULL, &error) == EPCTX_OK, "%s: %s",
              cases[i].model, error.message);
        CHECK_TRUE(lint_clean("a_ctx.onnx"));
        CHECK(convert(back, "a_ctx.onnx", "b_ctx.onnx", NULL, NULL, &error) == EPCTX_OK, "%s: %s",
              cases[i].model, error.message);
        CHECK_TRUE(lint_clean("b_ctx.onnx"));
        if (cases[i].embedded) CHECK_STR(nodes_of("b_ctx.onnx"), first);
        if (!cases[i].embedded || i < 4) continue;
        CHECK(same_files("b_ctx.onnx", "m_ctx.onnx"), "%s: the way back differs", cases[i].model);
    }
}

int main(int argc, char **argv) {
    if (!test_temp(root)) return 1;
    RUN(embed_and_back);
    RUN(inverse_restores_bytes);
    RUN(equal_contexts_are_one_file);
    RUN(names_of_binaries);
    RUN(profiles_forbid);
    RUN(openvino_shares_one_container);
    RUN(sharing_by_ep);
    RUN(embedded_in_the_first);
    RUN(qnn_of_two_contexts);
    RUN(bodies_and_memory);
    RUN(weights_out_and_in);
    RUN(weights_inverse_restores_bytes);
    RUN(weights_damaged_files);
    RUN(prune_what_nobody_reads);
    RUN(prune_spares_training_and_quantization);
    RUN(weightless_and_back);
    RUN(weightless_within_limits);
    RUN(weightless_needs_the_ep);
    RUN(group_keeps_and_refuses);
    RUN(group_spares_its_sources);
    RUN(failing_io);
    RUN(second_names);
    RUN(group_with_source_and_blob);
    RUN(mv_with_every_model);
    RUN(mv_refuses);
    RUN(mv_again_completes);
    RUN(mv_outside_is_not_left);
    RUN(mv_failing_io);
    RUN(names_of_nodes);
    RUN(long_names_of_models);
    RUN(left_alone);
    RUN(forged_hashes_are_no_equals);
    RUN(weightless_sources);
    RUN(prune_in_little_memory);
    RUN(groups_by_hand);
    RUN(mv_asks_the_ep);
    RUN(contexts_at_the_edge);
    RUN(weights_at_the_edge);
    RUN(groups_spare_what_is_open);
    RUN(mv_broken_disk);
    RUN(mv_in_this_folder);
    RUN(out_of_memory);
    RUN(genuine_models);
    RUN(external_data_in_field_order);
    RUN(parts_beyond_a_file);
    RUN(binary_of_the_stamp);
    RUN(binaries_of_many_stamps);
    RUN(binary_beside_the_one_of_the_stamp);
    RUN(binary_in_a_folder);
    RUN(one_graph_of_the_stamp);
    RUN(names_of_one_graph_each);
    RUN(contexts_of_nodes);
    RUN(a_line_for_each_binary);
    RUN(lines_of_contexts_that_move);
    RUN(lines_that_stay);
    RUN(lines_of_the_target);
    RUN(needs);
    RUN(options_as_text);
    RUN(binary_that_cannot_be_read);
    RUN(gigabyte_in_constant_memory);
    clear_root();
    rmdir(root);
    return test_end();
}
