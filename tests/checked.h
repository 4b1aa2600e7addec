/* Models with one or two EPContext nodes, and a disk that is not there: for lint, files and
 * state. */
#ifndef TESTS_CHECKED_H
#define TESTS_CHECKED_H

#include "build.h"
#include "test.h"

/* -- a disk that is not there -- */

typedef struct fake_file {
    const char *path;
    epctx_file_kind kind;
    uint64_t size;
    const char *canonical; /* NULL: the path itself */
} fake_file;

static const fake_file fake_files[] = {
    {"/m/", EPCTX_FILE_FOLDER, 0, "/m"},
    {"/m/good.bin", EPCTX_FILE_REGULAR, 40, NULL},
    {"/m/model_npu.bin", EPCTX_FILE_REGULAR, 40, NULL},
    {"/m/sub/../good.bin", EPCTX_FILE_REGULAR, 40, "/m/good.bin"},
    {"/m/a..b.bin", EPCTX_FILE_REGULAR, 40, NULL},
    {"/m/sub\\x.bin", EPCTX_FILE_REGULAR, 40, NULL},
    {"/m/empty.bin", EPCTX_FILE_REGULAR, 0, NULL},
    {"/m/folder.bin", EPCTX_FILE_FOLDER, 0, NULL},
    {"/m/link.bin", EPCTX_FILE_REGULAR, 40, "/elsewhere/secret"},
    {"/m/tmpB.json", EPCTX_FILE_REGULAR, 3, NULL},
    {"/m/tmpA.json", EPCTX_FILE_REGULAR, 2, NULL},
    {"/m/tmpLink.json", EPCTX_FILE_REGULAR, 2, "/elsewhere/secret"},
    {"/m/net_schematic.bin", EPCTX_FILE_REGULAR, 4, NULL},
    {"/m/model_ctx.json", EPCTX_FILE_REGULAR, 4, NULL},
};

static const fake_file *fake_find(const char *path) {
    size_t i;
    for (i = 0; i < sizeof fake_files / sizeof fake_files[0]; i++)
        if (strcmp(fake_files[i].path, path) == 0) return &fake_files[i];
    return NULL;
}

static epctx_status fake_stat(void *user, const char *path, epctx_file_info *info,
                              epctx_error *error) {
    const fake_file *file = fake_find(path);
    (void)user;
    memset(info, 0, sizeof *info);
    if (strstr(path, "unreadable") != NULL)
        return epctx_fail(error, EPCTX_ERR_IO, "the disk is broken");
    info->kind = file != NULL ? file->kind : EPCTX_FILE_NONE;
    info->size = file != NULL ? file->size : 0;
    return EPCTX_OK;
}

static epctx_status fake_list(void *user, const char *folder,
                              bool (*name_fn)(void *state, const char *name), void *state,
                              epctx_error *error) {
    size_t i;
    (void)user;
    if (strcmp(folder, "/m/") != 0) return epctx_fail(error, EPCTX_ERR_NOT_FOUND, "no such folder");
    for (i = 1; i < sizeof fake_files / sizeof fake_files[0]; i++)
        if (!name_fn(state, fake_files[i].path + 3)) break;
    return EPCTX_OK;
}

static epctx_status fake_canonical(void *user, const char *path, char *out, size_t capacity,
                                   epctx_error *error) {
    const fake_file *file = fake_find(path);
    (void)user;
    if (file == NULL) return epctx_fail(error, EPCTX_ERR_NOT_FOUND, "no such file");
    snprintf(out, capacity, "%s", file->canonical != NULL ? file->canonical : file->path);
    return EPCTX_OK;
}

/* -- models -- */

static const char ABSENT[] = "-";

/* One EPContext node; NULL members have working defaults, ABSENT leaves the attribute out. */
typedef struct part {
    const char *op, *domain, *name, *inputs, *outputs;
    const char *main, *embed, *cache, *source, *partition, *sdk, *made_from;
} part;

typedef struct spec {
    part first, second;
    bool two;       /* x -> first -> a -> second -> y */
    int32_t elem;   /* of x; default float */
    bool dynamic;   /* x has a dimension without a number */
    bool no_info;   /* no value_info for a */
    bool no_import; /* com.microsoft is not imported */
    bool no_base;   /* the folder of the model is not known */
    bool no_title;  /* the graph has no name */
    void (*node_fn)(bytes *node);
    void (*graph_fn)(bytes *graph);
    void (*model_fn)(bytes *model);
} spec;

static void attr_text(bytes *node, const char *name, const char *value, const char *fallback) {
    if (value == ABSENT) return;
    if (value == NULL) value = fallback;
    if (value != NULL) add_attr_str(node, name, value, strlen(value));
}

static void attr_number(bytes *node, const char *name, const char *value, const char *fallback) {
    if (value == ABSENT) return;
    add_attr_int(node, name, atoi(value != NULL ? value : fallback));
}

static const char *or_else(const char *value, const char *fallback) {
    return value != NULL ? value : fallback;
}

static void add_part(bytes *graph, const part *p, const char *name, const char *inputs,
                     const char *outputs, void (*node_fn)(bytes *node)) {
    bytes node =
        new_node(or_else(p->op, "EPContext"), or_else(p->domain, "com.microsoft"),
                 or_else(p->name, name), or_else(p->inputs, inputs), or_else(p->outputs, outputs));
    attr_number(&node, "main_context", p->main, "1");
    attr_number(&node, "embed_mode", p->embed, "1");
    attr_text(&node, "ep_cache_context", p->cache, "payload");
    attr_text(&node, "source", p->source, "MyEP");
    attr_text(&node, "partition_name", p->partition, name);
    attr_text(&node, "ep_sdk_version", p->sdk, "1");
    attr_text(&node, "onnx_model_filename", p->made_from, NULL);
    if (node_fn != NULL) node_fn(&node);
    put_child(graph, 1, &node);
}

static bytes make(const spec *s) {
    static const int64_t dims[] = {1, 4, -1};
    bytes graph = {0}, model;
    if (!s->no_title) put_str(&graph, 2, "g");
    add_part(&graph, &s->first, "n", "x", s->two ? "a" : "y", s->node_fn);
    if (s->two) add_part(&graph, &s->second, "m", "a", "y", NULL);
    add_value(&graph, GRAPH_INPUT, "x", s->elem != 0 ? s->elem : 1, s->dynamic ? NULL : dims);
    add_value(&graph, GRAPH_OUTPUT, "y", 1, dims);
    if (s->two && !s->no_info) add_value(&graph, GRAPH_VALUE, "a", 1, dims);
    if (s->graph_fn != NULL) s->graph_fn(&graph);
    model = new_model(&graph);
    if (!s->no_import) add_opset(&model, "com.microsoft", 1);
    if (s->model_fn != NULL) s->model_fn(&model);
    return model;
}

static void reference(bytes *node) {
    bytes attr = {0};
    put_str(&attr, 1, "notes");
    put_int(&attr, 20, EPCTX_ATTR_STRING);
    put_str(&attr, 21, "outer");
    put_child(node, 5, &attr);
}

static void used_weight(bytes *graph) {
    static const float data[1] = {1};
    add_floats(graph, "w", data, 1);
    add_node(graph, "Relu", "r", "w", "z");
}

static void if_body(bytes *graph, bytes *body) {
    bytes node = new_node("If", "", "if", "x", "z");
    add_attr_graph(&node, "then_branch", body);
    put_child(graph, 1, &node);
}

static void epnode_in_body(bytes *graph) {
    bytes body = {0};
    static const int64_t dims[] = {1, -1};
    add_epnode(&body, "inside", "x", "q", 1, 1, "MyEP", "p", "payload", 7);
    add_value(&body, GRAPH_VALUE, "q", 1, dims);
    if_body(graph, &body);
}

static void metadata(bytes *model, const char *key, const char *value) {
    put_pair(model, 14, key, value);
}

static void compat_mine(bytes *model) {
    metadata(model, "ep_compatibility_info.MyEP", "x");
}

/* -- devices, training, functions -- */

static void function_with_reference(bytes *model) {
    bytes f = {0}, node = new_node("EPContext", "com.microsoft", "c", "a", "b");
    put_str(&f, 1, "F");
    put_str(&f, 4, "a");
    put_str(&f, 5, "b");
    reference(&node);
    put_child(&f, 7, &node);
    put_child(model, 25, &f);
}

/* -- compatibility -- */

static epctx_compat compare(const char *profile, const char *model, const char *runtime) {
    return epctx_compat_compare(epctx_profile_find(epctx_str_of(profile)), epctx_str_of(model),
                                epctx_str_of(runtime), NULL);
}

#endif
