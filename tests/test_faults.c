/* Every public operation that allocates or touches files, with the Nth allocation failing for every
 * N, then with the Nth call of the io failing, reading too little or reading wrong bytes for every
 * N. A clean error or the right result; nothing leaks; a model that could not be edited is as
 * before; every file on the disk is the old one or the new one. */
/* runs: once */
#define _XOPEN_SOURCE 700
#define EPCTX_IMPLEMENTATION
#define EPCTX_PTHREAD_LOCK
#include "examples/epctx/ops/cache.h"
#include "examples/epctx/ops/contexts.h"
#include "examples/epctx/ops/dims.h"
#include "examples/epctx/ops/merge.h"
#include "examples/epctx/ops/split.h"
#include "examples/epctx/ops/state.h"
#include "examples/epctx/ops/wrap.h"
#include "epctx.h"
#include "epctx_npu.h"
#include "examples/epctx/ops/repair.h"

#include "examples/epctx/ops/init.h"
#include "examples/epctx/ops/rename.h"
#include "examples/epctx/ops/weightless.h"

#include "disk.h"
#include "examples/epctx/ops/lint.h"
#include "examples/epctx/ops/move.h"
#include "fake.h"
#include "files.h"

#define MOST_CALLS 3000 /* an operation that goes on longer never ends */
#define PLACES     6    /* wrong bytes tried for each read */

typedef struct stage {
    disk disk;
    epctx_io io;
    counting memory;
    epctx_allocator allocator;
    epctx_open_opts open;
    epctx_model model, second;
    fake fake;
    epctx_backend backend;
} stage;

static disk original; /* files that every operation finds */

typedef epctx_status (*operation_fn)(stage *s, epctx_error *error);

typedef struct operation {
    const char *name;
    operation_fn run;
    const char *model, *second; /* opened before; NULL: none */
    bool edits;                 /* on failure the model is as before */
} operation;

/* -- models -- */

static const int64_t pair_dims[] = {2, -1};
static const float pair_data[] = {1, 2};

/* An initializer in w.bin, and one that nothing reads. */
static bytes external_model(void) {
    bytes graph = {0};
    add_node(&graph, "Take", "n0", "x,w", "y");
    add_external(&graph, "w", 2, "w.bin", "0", "8");
    add_floats(&graph, "unused", pair_data, 2);
    add_value(&graph, GRAPH_INPUT, "x", EPCTX_ONNX_FLOAT, pair_dims);
    add_value(&graph, GRAPH_OUTPUT, "y", EPCTX_ONNX_FLOAT, pair_dims);
    put_str(&graph, 2, "g");
    return new_model(&graph);
}

/* An EPContext node that takes its weights as an input; they are in s.onnx, too. */
static bytes weightless_model(void) {
    bytes graph = {0}, node = new_node("EPContext", "com.microsoft", "p", "x,w", "y"), model;
    add_attr_int(&node, "main_context", 1);
    add_attr_int(&node, "embed_mode", 1);
    add_attr_str(&node, "ep_cache_context", "payload", 7);
    add_attr_str(&node, "source", "FakeEP", 6);
    add_attr_str(&node, "onnx_model_filename", "s.onnx", 6);
    put_child(&graph, 1, &node);
    add_floats(&graph, "w", pair_data, 2);
    add_value(&graph, GRAPH_INPUT, "x", EPCTX_ONNX_FLOAT, pair_dims);
    add_value(&graph, GRAPH_OUTPUT, "y", EPCTX_ONNX_FLOAT, pair_dims);
    put_str(&graph, 2, "g");
    model = new_model(&graph);
    add_opset(&model, "com.microsoft", 1);
    return model;
}

/* What a repair has to do: no opset, no types, no defaults, a metadata entry without an EP. */
static bytes broken_model(void) {
    bytes graph = {0}, model;
    add_epnode(&graph, "n0", "x", "t", 1, -1, "FakeEP", "p0", "payload", 7);
    add_epnode(&graph, "n1", "t", "y", 0, 1, "FakeEP", "p1", NULL, 0);
    add_node(&graph, "Add", "a", "y,w", "z");
    add_floats(&graph, "w", pair_data, 2);
    add_value(&graph, GRAPH_INPUT, "x", EPCTX_ONNX_FLOAT, pair_dims);
    add_value(&graph, GRAPH_OUTPUT, "z", EPCTX_ONNX_FLOAT, pair_dims);
    put_str(&graph, 2, "g");
    model = new_model(&graph);
    add_metadata(&model, "ep_compatibility_info.none", "x");
    return model;
}

static void put_model(disk *d, const char *path, bytes b) {
    disk_put(d, path, b.data, b.size);
    bytes_free(&b);
}

/* Two dimensions of one name. */
static bytes named_dims(void) {
    bytes graph = {0};
    for (uint32_t number = GRAPH_INPUT; number <= GRAPH_OUTPUT; number++) {
        bytes shape = {0}, dim = {0};
        put_str(&dim, 2, "N");
        put_child(&shape, 1, &dim);
        add_shaped(&graph, number, number == GRAPH_INPUT ? "x" : "y", EPCTX_ONNX_FLOAT, &shape);
    }
    add_node(&graph, "Relu", "n", "x", "y");
    return new_model(&graph);
}

/* Its graph is in two parts. */
static bytes doubled_model(void) {
    bytes model = external_model(), more = {0};
    add_node(&more, "Relu", "more", "y", "z");
    put_str(&more, 2, "again");
    put_child(&model, 7, &more);
    return model;
}

/* The reference NPU can compile it. */
static bytes npu_model(void) {
    bytes graph = {0};
    add_node(&graph, "Add", "add", "x,w", "t");
    add_node(&graph, "Relu", "relu", "t", "y");
    add_floats(&graph, "w", pair_data, 2);
    add_value(&graph, GRAPH_INPUT, "x", EPCTX_ONNX_FLOAT, pair_dims);
    add_value(&graph, GRAPH_OUTPUT, "y", EPCTX_ONNX_FLOAT, pair_dims);
    put_str(&graph, 2, "g");
    return new_model(&graph);
}

/* -- models for generation: tables that grow and nodes that move -- */

/* A list "<name>0,<name>1,..." of `count` names. */
static const char *names_of(const char *name, int count) {
    static char text[4][400];
    static int turn;
    char *out = text[turn = (turn + 1) % 4];
    size_t used = 0;
    out[0] = '\0';
    for (int i = 0; i < count; i++)
        used +=
            (size_t)snprintf(out + used, sizeof text[0] - used, i > 0 ? ",%s%d" : "%s%d", name, i);
    return out;
}

/* One node that is taken, with `outputs` outputs, and `rest` nodes that stay; annotations, types,
 * inputs and initializers of everything, and as many of what nobody reads. Outputs from the 14th on
 * are read by the nodes that stay; the others are outputs of the graph, without a type (`!typed`)
 * also those of these nodes. */
static bytes wide_model(int outputs, int rest, bool typed) {
    const int32_t elem = typed ? EPCTX_ONNX_FLOAT : 0;
    bytes graph = {0};
    add_node(&graph, "Take", "n", "x0", names_of("y", outputs));
    for (int i = 0; i < rest; i++) {
        char in[64], out[24], kept[24];
        int used = snprintf(in, sizeof in, "x%d,c%d", i % 15, i);
        if (i + 13 < outputs) snprintf(in + used, sizeof in - (size_t)used, ",y%d", i + 13);
        snprintf(out, sizeof out, "z%d", i);
        snprintf(kept, sizeof kept, "k%d", i);
        add_node(&graph, "Keep", kept, in, out);
    }
    put_str(&graph, 2, "wide");
    for (int i = 0; i < 15; i++) {
        char name[24];
        snprintf(name, sizeof name, "x%d", i);
        add_value(&graph, GRAPH_INPUT, name, EPCTX_ONNX_FLOAT, pair_dims);
        snprintf(name, sizeof name, "y%d", i);
        if (i < outputs && i < 13) add_value(&graph, GRAPH_OUTPUT, name, elem, pair_dims);
    }
    for (int i = 0; i < rest; i++) {
        char name[24], scale[24], gone[24];
        snprintf(name, sizeof name, "z%d", i);
        snprintf(scale, sizeof scale, "s%d", i);
        snprintf(gone, sizeof gone, "c%d", i);
        add_value(&graph, typed ? GRAPH_VALUE : GRAPH_OUTPUT, name, elem, pair_dims);
        add_floats(&graph, scale, pair_data, 2);
        add_floats(&graph, gone, pair_data, 2);
        add_scale(&graph, name, scale);
        snprintf(gone, sizeof gone, "gone%d", i);
        add_value(&graph, GRAPH_VALUE, gone, EPCTX_ONNX_FLOAT, pair_dims);
        add_floats(&graph, gone, pair_data, 2);
    }
    add_floats(&graph, "s", pair_data, 2);
    add_scale(&graph, "y0", "s");
    return new_model(&graph);
}

/* Nodes out of order, one of another EP whose binary is a file, a constant that stays and one of it
 * that does not, metadata of EPs without a node, and weights in files: of the graph, of a body, of
 * a function and of training. */
static bytes mixed_model(void) {
    bytes graph = {0}, body = {0}, attr = {0}, function = {0}, training = {0}, model;
    bytes node = new_node("Keep", "", "with a body", "a,o", "b");
    add_node(&graph, "Take", "first", "k", "c1");
    add_node(&graph, "Take", "second", "c1", "c2");
    add_node(&graph, "Take", "late", "b,w,c2", "y");
    add_node(&graph, "Keep", "early", "x,k,c1", "a");
    add_epnode(&graph, "other", "x", "o", 1, 0, "QNN", "p", "w.bin", 5);
    add_node(&body, "Keep", "inner", "wi", "bi");
    put_str(&body, 2, "body");
    add_external(&body, "wi", 2, "w.bin", "0", "8");
    {
        bytes sparse = {0}, values = {0}, indices = {0};
        add_external(&values, "sp", 2, "w.bin", "0", "8"); /* in field 5: taken out of it */
        put_data(&sparse, 1, values.data + 2, values.size - 2);
        bytes_free(&values);
        put_int(&indices, 1, 2);
        put_int(&indices, 2, EPCTX_ONNX_INT64);
        put_int(&indices, 7, 1);
        put_int(&indices, 7, 2);
        put_child(&sparse, 2, &indices);
        put_int(&sparse, 3, 9);
        put_child(&body, 15, &sparse);
    }
    add_value(&body, GRAPH_OUTPUT, "bi", EPCTX_ONNX_FLOAT, pair_dims);
    add_attr_graph(&node, "body", &body);
    put_child(&graph, 1, &node);
    add_external(&graph, "k", 2, "w.bin", "0", "8");
    add_floats(&graph, "w", pair_data, 2);
    add_floats(&graph, "unread", pair_data, 2);
    add_value(&graph, GRAPH_INPUT, "x", EPCTX_ONNX_FLOAT, pair_dims);
    add_value(&graph, GRAPH_INPUT, "w", EPCTX_ONNX_FLOAT, pair_dims);
    add_value(&graph, GRAPH_INPUT, "unread", EPCTX_ONNX_FLOAT, pair_dims);
    add_value(&graph, GRAPH_OUTPUT, "y", EPCTX_ONNX_FLOAT, pair_dims);
    put_str(&graph, 2, "g");
    model = new_model(&graph);
    put_int(&model, 1, 3); /* so old that every initializer is an input, too */
    node = new_node("Constant", "", "", "", "c");
    put_str(&attr, 1, "value");
    add_external(&body, "", 2, "w.bin", "0", "8"); /* as field 5, which it is here, too */
    bytes_add(&attr, body.data, body.size);
    bytes_free(&body);
    put_int(&attr, 20, EPCTX_ATTR_TENSOR);
    put_child(&node, 5, &attr);
    put_str(&function, 1, "F");
    put_str(&function, 5, "c");
    put_child(&function, 7, &node);
    put_str(&function, 10, "mine");
    put_child(&model, 25, &function);
    add_external(&body, "t", 2, "w.bin", "0", "8");
    put_child(&training, 2, &body);
    put_child(&model, 20, &training);
    add_opset(&model, "com.microsoft", 1);
    add_opset(&model, "mine", 1);
    add_metadata(&model, "ep_compatibility_info.Gone", "1");
    add_metadata(&model, "ep_compatibility_info.QNN", "1");
    add_metadata(&model, "author", "me");
    return model;
}

/* -- operations -- */

static epctx_gen_opts gen_opts(const stage *s) {
    epctx_gen_opts opts = {0};
    opts.overwrite = true;
    opts.allocator = &s->allocator;
    return opts;
}

static epctx_status op_open_file(stage *s, epctx_error *error) {
    epctx_model model;
    epctx_status status = epctx_model_open_file(&model, "/d/m.onnx", &s->open, error);
    epctx_model_close(&model);
    return status;
}

static epctx_status op_new(stage *s, epctx_error *error) {
    epctx_model model;
    epctx_status status = epctx_model_new(&model, 8, &s->open, error);
    epctx_model_close(&model);
    return status;
}

static epctx_status op_graph_load(stage *s, epctx_error *error) {
    epctx_graph graph;
    return epctx_model_load_graph(&s->model, &graph, error);
}

static void ignore_finding(void *user, const epctx_finding *finding) {
    (void)user;
    (void)finding;
}

static epctx_check_opts check_opts(const stage *s) {
    epctx_check_opts opts = {0};
    opts.allocator = &s->allocator;
    return opts;
}

static epctx_status op_lint(stage *s, epctx_error *error) {
    epctx_check_opts opts = check_opts(s);
    return epctx_lint(&s->model, &opts, ignore_finding, NULL, NULL, error);
}

static epctx_status op_files(stage *s, epctx_error *error) {
    epctx_check_opts opts = check_opts(s);
    epctx_arena arena;
    epctx_dependency *files;
    size_t count;
    epctx_status status;
    epctx_arena_init(&arena, &s->allocator);
    status = epctx_model_files(&s->model, &opts, &arena, &files, &count, error);
    epctx_arena_free(&arena);
    return status;
}

static epctx_status op_state(stage *s, epctx_error *error) {
    epctx_arena arena;
    epctx_state state;
    epctx_status status;
    epctx_arena_init(&arena, &s->allocator);
    status = epctx_model_state(&s->model, &arena, &state, error);
    epctx_arena_free(&arena);
    return status;
}

/* Options in every form, and the preflight. */
static epctx_status op_options(stage *s, epctx_error *error) {
    epctx_arena arena;
    epctx_options options;
    epctx_preflight_in in = {0};
    epctx_outputs out;
    epctx_status status;
    epctx_arena_init(&arena, &s->allocator);
    epctx_options_init(&options, &arena);
    in.io = &s->io;
    in.model_path = "/d/m.onnx";
    in.short_name = "fake";
    status = epctx_options_set_list(&options, "ep.context_enable|1 epctx.overwrite|1", error);
    if (status == EPCTX_OK)
        status = epctx_options_set_list(&options, "ep.context_node_name_prefix|p", error);
    if (status == EPCTX_OK)
        status = epctx_options_set(&options,
                                   epctx_str_of("ep.context_model_external_initializers_file_name"),
                                   epctx_str_of("i.data"), error);
    if (status == EPCTX_OK) status = epctx_preflight(&options, &in, &arena, &out, error);
    epctx_arena_free(&arena);
    return status;
}

/* Every edit, one after the other; the first that fails ends it. */
static epctx_status op_edit(stage *s, epctx_error *error) {
    const epctx_view none = {NULL, NULL, 0};
    const epctx_str from[] = {{"a", 1}}, to[] = {{"aa", 2}};
    epctx_model *m = &s->model;
    epctx_cursor it = epctx_view_graph_nodes(epctx_model_graph(m));
    epctx_view model = epctx_model_read(m).view, placed;
    epctx_node_view view;
    epctx_node node = {0};
    epctx_attr attr = {0};
    epctx_value value = {0};
    epctx_tensor tensor = {0};
    epctx_prefix_opts names = {0};
    size_t mark = epctx_edit_mark(m), count;
    epctx_view input = {NULL, (const uint8_t *)"x2", 2};
    epctx_status status;
    names.all_nodes = true;
    attr.name = epctx_str_of("alpha");
    attr.type = EPCTX_ATTR_INTS;
    attr.ints = pair_dims;
    attr.count = 2;
    node.name = epctx_str_of("new");
    node.op_type = epctx_str_of("Op");
    node.outputs = to;
    node.output_count = 0;
    node.attrs = &attr;
    node.attr_count = 1;
    value.name = tensor.name = epctx_str_of("v");
    value.elem_type = tensor.elem_type = EPCTX_ONNX_FLOAT;
    value.rank = tensor.rank = 1;
    value.dims = tensor.dims = pair_dims;
    tensor.data = (const uint8_t *)pair_data;
    tensor.size = sizeof pair_data;
    if (!epctx_next_node(&it, &view)) abort();
#define STEP(call) \
    do { \
        if (status == EPCTX_OK) status = (call); \
    } while (0)
    status = epctx_edit_set_field_str(m, model, 6, epctx_str_of("another doc"), error);
    STEP(epctx_edit_set_field_int(m, model, 5, 7, error));
    STEP(epctx_edit_put_copy(m, view.view, 1, input, none, NULL, error));
    STEP(epctx_edit_set_attr(m, view.view, &attr, error));
    STEP(epctx_edit_put_node(m, none, &node, none, &placed, error));
    if (status == EPCTX_OK) {
        epctx_node_view seen = epctx_view_as_node(view.view);
        epctx_attr_view first;
        it = epctx_view_node_attrs(&seen);
        if (!epctx_next_attr(&it, &first)) abort();
        status = epctx_edit_copy_attr(m, placed, first.view, error);
    }
    STEP(epctx_edit_remove_attr(m, placed, attr.name, error));
    STEP(epctx_edit_move(m, placed, view.view, &placed, error));
    STEP(epctx_edit_put_copy(m, epctx_model_graph(m).view, 1, view.view, none, &placed, error));
    STEP(epctx_edit_remove(m, placed, error));
    STEP(epctx_edit_put_value(m, none, EPCTX_FIELD_GRAPH_INPUT, &value, none, NULL, error));
    STEP(epctx_edit_put_value(m, none, EPCTX_FIELD_GRAPH_OUTPUT, &value, none, NULL, error));
    STEP(epctx_edit_put_value(m, none, EPCTX_FIELD_GRAPH_VALUE_INFO, &value, none, NULL, error));
    STEP(epctx_edit_put_initializer(m, none, &tensor, none, NULL, error));
    STEP(epctx_edit_put_opset(m, epctx_str_of("d"), 1, error));
    STEP(epctx_edit_set_opset(m, epctx_str_of("d"), 2, error));
    STEP(epctx_edit_remove_opset(m, epctx_str_of("d"), error));
    STEP(epctx_edit_set_pair(m, model, EPCTX_FIELD_MODEL_METADATA_PROPS, epctx_str_of("k"),
                             epctx_str_of("1"), error));
    STEP(epctx_edit_set_metadata(m, epctx_str_of("k"), epctx_str_of("2"), error));
    STEP(epctx_edit_remove_metadata(m, epctx_str_of("k"), error));
    STEP(epctx_rename_values(m, none, from, to, 1, NULL, &count, error));
    STEP(epctx_node_rename(m, view.view, epctx_str_of("renamed"), NULL, error));
    STEP(epctx_edit_prefix(m, epctx_str_of("p_"), &names, &count, error));
    STEP(epctx_edit_remove_field(m, model, 6, error));
    STEP(ops_rebuild(m, error));
#undef STEP
    if (status != EPCTX_OK) epctx_edit_undo(m, mark);
    return status;
}

static epctx_status op_prefix(stage *s, epctx_error *error) {
    epctx_prefix_opts opts = {0};
    opts.one_graph = true;
    return epctx_edit_prefix(&s->model, epctx_str_of("p_"), &opts, NULL, error);
}

static epctx_status write_with(stage *s, epctx_overwrite overwrite, epctx_error *error) {
    char backup[EPCTX_PATH_MAX];
    epctx_write_opts opts = {0};
    opts.overwrite = overwrite;
    opts.backup = backup;
    opts.backup_capacity = sizeof backup;
    return epctx_model_write_file(&s->model, "/d/n.onnx", &opts, error);
}

static epctx_status op_write(stage *s, epctx_error *error) {
    return write_with(s, EPCTX_OVERWRITE_REPLACE, error);
}

static epctx_status op_write_backup(stage *s, epctx_error *error) {
    return write_with(s, EPCTX_OVERWRITE_BACKUP, error);
}

static const epctx_write_opts judge = {.dry_run = true};

/* A conversion and the files that it makes. */
static epctx_status convert(stage *s,
                            epctx_status (*function)(epctx_model *, const ops_convert_opts *,
                                                     ops_changes *, epctx_error *),
                            epctx_error *error) {
    ops_changes changes;
    size_t mark = epctx_edit_mark(&s->model);
    epctx_status status = function(&s->model, NULL, &changes, error);
    if (status == EPCTX_OK)
        status = epctx_model_write_group(&s->model, s->model.path, &judge, changes.files,
                                         changes.file_count, EPCTX_OVERWRITE_REPLACE, error);
    if (status == EPCTX_OK)
        status = epctx_model_write_group(&s->model, s->model.path, NULL, changes.files,
                                         changes.file_count, EPCTX_OVERWRITE_REPLACE, error);
    if (status != EPCTX_OK) epctx_edit_undo(&s->model, mark);
    return status;
}

#define CONVERT(name, function) \
    static epctx_status op_##name(stage *s, epctx_error *error) { \
        return convert(s, function, error); \
    }
CONVERT(embed, ops_embed)
CONVERT(extract, ops_extract)
CONVERT(init_inline, epctx_init_inline)
CONVERT(init_external, epctx_init_external)
CONVERT(init_prune, epctx_init_prune)
CONVERT(weightless, epctx_weightless)
CONVERT(self_contained, epctx_self_contained)

static epctx_status move_with(const epctx_io *io, stage *s, epctx_error *error) {
    const char *models[] = {"/d/m_ctx.onnx", "/d/e.onnx"};
    epctx_move_opts opts = {0};
    epctx_move_report report;
    opts.io = io;
    opts.allocator = &s->allocator;
    return epctx_move_binary("/d/m_fake.bin", "/d/other.bin", models, 2, &opts, &report, error);
}

static epctx_status op_move_binary(stage *s, epctx_error *error) {
    return move_with(&s->io, s, error);
}

/* Not every file system has links. */
static epctx_status op_move_copy(stage *s, epctx_error *error) {
    epctx_io io = s->io;
    io.link_fn = NULL;
    return move_with(&io, s, error);
}

static epctx_status op_merge(stage *s, epctx_error *error) {
    epctx_part parts[2];
    epctx_combined out;
    parts[0].model = &s->model;
    parts[1].model = &s->second;
    parts[0].prefix = parts[1].prefix = NULL;
    return epctx_merge(parts, 2, NULL, &out, error);
}

static epctx_status op_split(stage *s, epctx_error *error) {
    epctx_value value = {0};
    epctx_split_opts opts = {0};
    epctx_combined out;
    value.name = epctx_str_of("b");
    value.rank = -1;
    opts.outputs = &value;
    opts.output_count = 1;
    return epctx_split(&s->model, &opts, &out, error);
}

static epctx_status op_wrap(stage *s, epctx_error *error) {
    epctx_wrap_value values[2];
    epctx_wrap_opts opts = {0};
    epctx_combined out;
    epctx_model model;
    epctx_span binary = {(const uint8_t *)"binary", 6};
    epctx_status status;
    memset(values, 0, sizeof values);
    for (int i = 0; i < 2; i++) {
        values[i].value.name = epctx_str_of(i == 0 ? "x" : "y");
        values[i].value.elem_type = EPCTX_ONNX_UINT8;
        values[i].value.rank = 1;
        values[i].value.dims = pair_dims;
        values[i].quantized = true;
        values[i].scale = 0.5f;
    }
    opts.profile = epctx_profile_find(epctx_str_of("qnn"));
    opts.name = "g";
    opts.binary_name = "b.bin";
    opts.output_path = "/d/w.onnx";
    opts.inputs = &values[0];
    opts.outputs = &values[1];
    opts.input_count = opts.output_count = 1;
    status = epctx_wrap(&model, binary, &opts, &s->open, &out, error);
    if (status == EPCTX_OK)
        status = epctx_model_write_group(&model, "/d/w.onnx", NULL, out.files, out.file_count,
                                         EPCTX_OVERWRITE_REPLACE, error);
    epctx_model_close(&model);
    return status;
}

static epctx_status op_repair(stage *s, epctx_error *error) {
    epctx_repair_opts opts = {0};
    size_t done, left;
    opts.check = check_opts(s);
    opts.source = &s->second;
    return epctx_repair(&s->model, &opts, NULL, NULL, &done, &left, error);
}

static epctx_status op_partition(stage *s, epctx_error *error) {
    epctx_arena arena;
    epctx_graph graph;
    epctx_partition *parts;
    size_t count;
    uint8_t take[6] = {1, 1, 0, 1};
    epctx_status status = epctx_model_load_graph(&s->model, &graph, error);
    epctx_arena_init(&arena, &s->allocator);
    if (status == EPCTX_OK)
        status = epctx_graph_partition(&graph, take, &arena, &parts, &count, error);
    epctx_arena_free(&arena);
    return status;
}

static epctx_status op_weights(stage *s, epctx_error *error) {
    epctx_buffer binary;
    epctx_weights_opts opts = {0};
    epctx_weights weights = {0};
    epctx_weight place;
    epctx_status status;
    epctx_buffer_init(&binary, &s->allocator);
    opts.allocator = &s->allocator;
    opts.binary = &binary;
    status = epctx_weights_init(&weights, &opts, error);
    for (int i = 0; status == EPCTX_OK && i < 40; i++)
        status = epctx_weights_add(&weights, &i, sizeof i, 4, 0, &place, error);
    epctx_weights_free(&weights);
    epctx_buffer_free(&binary);
    return status;
}

/* An EP without models: a record becomes nodes and a binary. */
static epctx_status op_ep(stage *s, epctx_error *error) {
    epctx_arena arena;
    epctx_ep_opts opts = {0};
    epctx_ep ep = {0};
    epctx_graph graph;
    epctx_status status = epctx_model_load_graph(&s->model, &graph, error);
    opts.binary = "b.bin";
    opts.allocator = &s->allocator;
    epctx_arena_init(&arena, &s->allocator);
    if (status == EPCTX_OK) status = epctx_ep_begin(&ep, &s->backend, &opts, 1, &arena, error);
    if (status == EPCTX_OK) status = epctx_ep_compile(&ep, &graph, error);
    if (status == EPCTX_OK) status = epctx_ep_finish(&ep, error);
    epctx_ep_end(&ep);
    epctx_arena_free(&arena);
    return status;
}

static epctx_status op_generate(stage *s, epctx_error *error) {
    epctx_gen_opts opts = gen_opts(s);
    opts.initializers_file_name = "m.data";
    opts.verify = true;
    return epctx_generate(&s->model, &s->backend, &opts, NULL, error);
}

static epctx_status op_generate_embedded(stage *s, epctx_error *error) {
    epctx_gen_opts opts = gen_opts(s);
    opts.embed = true;
    return epctx_generate(&s->model, &s->backend, &opts, NULL, error);
}

static epctx_status any_setup(void *self, void *build, const epctx_build_opts *opts,
                              epctx_error *error) {
    (void)self, (void)build, (void)opts, (void)error;
    return EPCTX_OK;
}

/* What stays moves into a file of its own, too; weights are asked to stay in the source. */
static epctx_status op_generate_aside(stage *s, epctx_error *error) {
    epctx_gen_opts opts = gen_opts(s);
    opts.context_file_path = "/d/aside_ctx.onnx";
    opts.initializers_file_name = "aside.data";
    opts.weightless = s->backend.weightless = EPCTX_WEIGHTLESS_ALL;
    s->backend.setup_fn = any_setup;
    s->backend.weights_fn = fake_any_weights;
    return epctx_generate(&s->model, &s->backend, &opts, NULL, error);
}

/* Nothing is taken, and the model is written all the same. */
static epctx_status op_generate_copy(stage *s, epctx_error *error) {
    epctx_gen_opts opts = gen_opts(s);
    opts.context_file_path = "/d/copy_ctx.onnx";
    opts.no_nodes = EPCTX_NO_NODES_COPY;
    s->fake.takes = "Nothing";
    return epctx_generate(&s->model, &s->backend, &opts, NULL, error);
}

static epctx_status with_workspace(stage *s, epctx_workspace **w, epctx_error *error) {
    epctx_workspace_opts opts = {0};
    epctx_status status;
    opts.allocator = &s->allocator;
    status = epctx_lock_make(&opts.lock, &s->allocator, error);
    if (status != EPCTX_OK) return status;
    status = epctx_workspace_open(w, &opts, error);
    if (status != EPCTX_OK) opts.lock.free_fn(opts.lock.user);
    return status;
}

/* Each graph wants more than those before. */
static epctx_status more_each(void *self, void *build, epctx_str name, int64_t *size,
                              epctx_error *error) {
    (void)build, (void)name, (void)error;
    *size = 100 + ((const fake *)self)->compiled;
    return EPCTX_OK;
}

/* Sessions of a group: each has initializers of its own, the last one changes max_size of all. */
static epctx_status op_share_generate_aside(stage *s, epctx_error *error) {
    epctx_gen_opts opts = gen_opts(s);
    epctx_workspace *w = NULL;
    epctx_status status = with_workspace(s, &w, error);
    s->backend.max_size_fn = more_each;
    opts.verify = true;
    opts.initializers_file_name = "one.data";
    opts.workspace = w;
    opts.group = "g";
    if (status == EPCTX_OK) status = epctx_generate(&s->model, &s->backend, &opts, NULL, error);
    opts.initializers_file_name = "two.data";
    opts.name_prefix = "two_";
    opts.stop = true;
    if (status == EPCTX_OK) status = epctx_generate(&s->second, &s->backend, &opts, NULL, error);
    epctx_workspace_close(w);
    return status;
}

/* The same, where somebody else has the models. */
static epctx_status op_share_compile(stage *s, epctx_error *error) {
    epctx_share_opts opts = {0};
    epctx_workspace *w = NULL;
    epctx_arena arena;
    epctx_graph graph;
    const epctx_graph *pieces[1];
    const epctx_node *nodes;
    epctx_status status = epctx_model_load_graph(&s->model, &graph, error);
    pieces[0] = &graph;
    opts.context_path = "/d/h_ctx.onnx";
    opts.source_model = "m.onnx";
    opts.io = &s->io;
    opts.verify = true;
    epctx_arena_init(&arena, &s->allocator);
    if (status == EPCTX_OK) status = with_workspace(s, &w, error);
    opts.pieces = pieces;
    opts.piece_count = 1;
    if (status == EPCTX_OK)
        status = epctx_share_compile(w, &s->backend, &opts, &arena, &nodes, error);
    if (status == EPCTX_OK)
        status = epctx_share_finish(w, NULL, s->backend.source, NULL, NULL, error);
    epctx_workspace_close(w);
    epctx_arena_free(&arena);
    return status;
}

/* Weights come from the source model: that of the node, and one in memory. */
static epctx_status op_npu_weightless(stage *s, epctx_error *error) {
    epctx_npu_opts npu_opts = {0};
    epctx_npu npu;
    epctx_backend backend;
    epctx_gen_opts opts = gen_opts(s);
    epctx_load_opts load = {0};
    epctx_model model = {0};
    epctx_loaded loaded = {0};
    epctx_status status;
    const disk_file *source = disk_find(&original, "/d/p.onnx");
    npu_opts.allocator = load.allocator = &s->allocator;
    opts.weightless = EPCTX_WEIGHTLESS_ALL;
    status = epctx_npu_init(&npu, &npu_opts, &backend, error);
    if (status == EPCTX_OK) status = epctx_generate(&s->model, &backend, &opts, NULL, error);
    if (status == EPCTX_OK)
        status = epctx_model_open_file(&model, "/d/p_ctx.onnx", &s->open, error);
    for (int i = 0; i < 2; i++) {
        if (status == EPCTX_OK) status = epctx_load(&loaded, &model, &backend, &load, error);
        epctx_unload(&loaded);
        load.source_model.data = source->data;
        load.source_model.size = source->size;
    }
    epctx_model_close(&model);
    return status;
}

/* What cannot be told is not known: no status. */
static epctx_status op_fresh(stage *s, epctx_error *error) {
    epctx_gen_opts gen = gen_opts(s);
    epctx_fresh_opts opts = {0};
    opts.gen = &gen;
    opts.fast = true;
    epctx_error_clear(error);
    (void)epctx_model_check_fresh(&s->model, "FakeEP", &s->backend, &opts, NULL);
    opts.fast = false;
    (void)epctx_model_check_fresh(&s->model, "FakeEP", &s->backend, &opts, NULL);
    return EPCTX_OK;
}

static epctx_status op_load_nodes(stage *s, epctx_error *error) {
    epctx_load_opts opts = {0};
    epctx_loaded loaded;
    epctx_graph graph;
    epctx_status status = epctx_model_load_graph(&s->model, &graph, error);
    if (status != EPCTX_OK) return status;
    opts.allocator = &s->allocator;
    opts.io = &s->io;
    status = epctx_load_nodes(&loaded, graph.nodes, graph.node_count, &s->backend, &opts, error);
    epctx_unload(&loaded);
    return status;
}

static epctx_status op_load(stage *s, epctx_error *error) {
    epctx_load_opts opts = {0};
    epctx_loaded loaded;
    epctx_status status;
    opts.allocator = &s->allocator;
    status = epctx_load(&loaded, &s->model, &s->backend, &opts, error);
    epctx_unload(&loaded);
    return status;
}

static epctx_status open_or_compile(stage *s, const char *path, epctx_error *error) {
    epctx_gen_opts gen = gen_opts(s);
    epctx_load_opts load = {0};
    epctx_cache_opts opts = {0};
    epctx_opened opened;
    epctx_status status;
    load.allocator = &s->allocator;
    opts.open = &s->open;
    opts.gen = &gen;
    opts.load = &load;
    status = epctx_open_or_compile(&opened, path, &s->backend, &opts, error);
    epctx_opened_close(&opened);
    return status;
}

static epctx_status op_cache_hit(stage *s, epctx_error *error) {
    return open_or_compile(s, "/d/m.onnx", error);
}

static epctx_status op_cache_miss(stage *s, epctx_error *error) {
    return open_or_compile(s, "/d/n.onnx", error);
}

static epctx_status op_share_load(stage *s, epctx_error *error) {
    epctx_load_opts opts = {0};
    epctx_loaded loaded = {0};
    epctx_workspace *w = NULL;
    epctx_status status = with_workspace(s, &w, error);
    opts.allocator = &s->allocator;
    opts.workspace = w;
    if (status == EPCTX_OK) status = epctx_load(&loaded, &s->model, &s->backend, &opts, error);
    epctx_unload(&loaded);
    epctx_workspace_close(w);
    return status;
}

/* Two sessions and the end of the group. */
static epctx_status op_share_generate(stage *s, epctx_error *error) {
    epctx_gen_opts opts = gen_opts(s);
    epctx_workspace *w = NULL;
    epctx_status status = with_workspace(s, &w, error);
    opts.workspace = w;
    if (status == EPCTX_OK) status = epctx_generate(&s->model, &s->backend, &opts, NULL, error);
    if (status == EPCTX_OK) status = epctx_generate(&s->second, &s->backend, &opts, NULL, error);
    if (status == EPCTX_OK)
        status = epctx_share_finish(w, NULL, s->backend.source, NULL, NULL, error);
    epctx_workspace_close(w);
    return status;
}

/* The reference NPU: compiles, writes, verifies, and runs from the file. */
static epctx_status op_npu(stage *s, epctx_error *error) {
    epctx_npu_opts npu_opts = {0};
    epctx_npu npu;
    epctx_backend backend;
    epctx_gen_opts opts = gen_opts(s);
    epctx_load_opts load = {0};
    epctx_model model = {0};
    epctx_loaded loaded = {0};
    epctx_status status;
    npu_opts.allocator = load.allocator = &s->allocator;
    opts.verify = true;
    status = epctx_npu_init(&npu, &npu_opts, &backend, error);
    if (status == EPCTX_OK) status = epctx_generate(&s->model, &backend, &opts, NULL, error);
    if (status == EPCTX_OK)
        status = epctx_model_open_file(&model, "/d/p_ctx.onnx", &s->open, error);
    if (status == EPCTX_OK) status = epctx_load(&loaded, &model, &backend, &load, error);
    epctx_unload(&loaded);
    epctx_model_close(&model);
    return status;
}

/* A file, its removal and a model come into place together. */
static epctx_status op_commit(stage *s, epctx_error *error) {
    epctx_arena arena;
    epctx_commit commit = {0};
    epctx_span parts[2] = {{(const uint8_t *)"new", 3}, {NULL, 70000}};
    epctx_output_file file = {0};
    epctx_status status;
    file.name = "m_fake.bin";
    file.parts = parts;
    file.part_count = 2;
    file.size = parts[0].size + parts[1].size;
    epctx_arena_init(&arena, &s->allocator);
    status = epctx_commit_begin(&commit, &s->io, &arena, error);
    if (status == EPCTX_OK)
        status = epctx_commit_put_model(&commit, &s->model, "/d/m.onnx", NULL, error);
    if (status == EPCTX_OK)
        status = epctx_commit_put_file(&commit, &file, EPCTX_OVERWRITE_REPLACE, error);
    if (status == EPCTX_OK) status = epctx_commit_remove(&commit, "w.bin", error);
    if (status == EPCTX_OK) status = epctx_commit_fill(&commit, error);
    if (status == EPCTX_OK) status = epctx_commit_run(&commit, error);
    epctx_commit_close(&commit);
    epctx_arena_free(&arena);
    return status;
}

static epctx_status op_write_bytes(stage *s, epctx_error *error) {
    char backup[EPCTX_PATH_MAX];
    epctx_write_opts opts = {0};
    opts.overwrite = EPCTX_OVERWRITE_BACKUP;
    opts.backup = backup;
    opts.backup_capacity = sizeof backup;
    opts.allocator = &s->allocator;
    return epctx_write_bytes(&s->io, "/d/w.bin", "other", 5, &opts, error);
}

static epctx_status op_check_binary(stage *s, epctx_error *error) {
    return epctx_model_check_binary(&s->model, NULL, error);
}

/* Names of files, and of dimensions; a doubled field. */
static epctx_status op_rename_files(stage *s, epctx_error *error) {
    epctx_file_rename renames[] = {{EPCTX_USE_INITIALIZERS, {"w.bin", 5}, {"longer/name.bin", 15}},
                                   {EPCTX_USE_CONTEXT, {"w.bin", 5}, {"c.bin", 5}}};
    return epctx_edit_rename_files(&s->model, renames, 2, error);
}

static epctx_status op_fix_dim(stage *s, epctx_error *error) {
    size_t count;
    return epctx_fix_dim(&s->model, epctx_str_of("N"), 4, &count, error);
}

static epctx_status op_merge_doubled(stage *s, epctx_error *error) {
    return epctx_edit_merge_doubled(&s->model, NULL, NULL, error);
}

/* From another folder, with a file of the same name: the result gets a copy under a new name. */
static epctx_status op_merge_far(stage *s, epctx_error *error) {
    epctx_part parts[2] = {{&s->model, NULL}, {&s->second, NULL}};
    epctx_combined out;
    size_t mark = epctx_edit_mark(&s->model);
    epctx_status status = epctx_merge(parts, 2, NULL, &out, error);
    if (status == EPCTX_OK)
        status = epctx_model_write_group(&s->model, "/d/far.onnx", NULL, out.files, out.file_count,
                                         EPCTX_OVERWRITE_REPLACE, error);
    if (status != EPCTX_OK) epctx_edit_undo(&s->model, mark);
    return status;
}

/* Into another folder, with the files that are still needed. */
static epctx_status op_split_far(stage *s, epctx_error *error) {
    epctx_split_opts opts = {0};
    epctx_combined out;
    size_t mark = epctx_edit_mark(&s->model);
    epctx_status status;
    opts.output_path = "/d/split.onnx";
    status = epctx_split(&s->model, &opts, &out, error);
    if (status == EPCTX_OK)
        status = epctx_model_write_group(&s->model, opts.output_path, NULL, out.files,
                                         out.file_count, EPCTX_OVERWRITE_REPLACE, error);
    if (status != EPCTX_OK) epctx_edit_undo(&s->model, mark);
    return status;
}

static epctx_status use_fallback(void *user, const char *path, const epctx_error *why) {
    (void)user, (void)path, (void)why;
    return EPCTX_OK;
}

static epctx_status op_cache_fallback(stage *s, epctx_error *error) {
    epctx_cache_opts opts = {0};
    epctx_opened opened;
    epctx_status status;
    opts.open = &s->open;
    opts.no_compile = true;
    opts.fallback_fn = use_fallback;
    status = epctx_open_or_compile(&opened, "/d/n.onnx", &s->backend, &opts, error);
    epctx_opened_close(&opened);
    return status;
}

static epctx_status op_captures(stage *s, epctx_error *error) {
    epctx_arena arena;
    epctx_walk walk;
    epctx_node_view node;
    const epctx_str *names;
    size_t count;
    epctx_status status = EPCTX_OK;
    epctx_error_clear(error);
    epctx_arena_init(&arena, &s->allocator);
    epctx_walk_begin(&walk, &s->model);
    while (status == EPCTX_OK && epctx_walk_next(&walk, &node))
        status = epctx_view_node_captures(node.view, &arena, &names, &count, error);
    epctx_arena_free(&arena);
    return status;
}

static bool scan_read(void *user, uint64_t offset, void *out, size_t size) {
    stage *s = (stage *)user;
    const disk_file *f = disk_find(&s->disk, "/d/m_ctx.onnx");
    bool now = disk_now(&s->disk);
    if (offset > f->size || size > f->size - offset) abort(); /* beyond the end */
    if (now && s->disk.fault != DISK_CHANGED) return false;
    memcpy(out, f->data + offset, size);
    if (now && size > 0) ((uint8_t *)out)[s->disk.place % size] ^= 1;
    return true;
}

static epctx_status op_scan(stage *s, epctx_error *error) {
    static epctx_scan scan;
    epctx_reader source = {s, scan_read, disk_find(&s->disk, "/d/m_ctx.onnx")->size};
    epctx_scan_event event;
    epctx_scan_begin(&scan, &source);
    do event = epctx_scan_next(&scan, error);
    while (event != EPCTX_SCAN_END && event != EPCTX_SCAN_FAILED);
    return event == EPCTX_SCAN_END ? EPCTX_OK : error->status;
}

static const operation operations[] = {
    {"model_open_file", op_open_file, NULL, NULL, false},
    {"model_new", op_new, NULL, NULL, false},
    {"graph_load", op_graph_load, "/d/x.onnx", NULL, true},
    {"lint", op_lint, "/d/m_ctx.onnx", NULL, true},
    {"model_files", op_files, "/d/m_ctx.onnx", NULL, true},
    {"model_state", op_state, "/d/m_ctx.onnx", NULL, true},
    {"options and preflight", op_options, NULL, NULL, false},
    {"edits", op_edit, "/d/m.onnx", NULL, true},
    {"write_file", op_write, "/d/m.onnx", NULL, true},
    {"write_file with backup", op_write_backup, "/d/m.onnx", NULL, true},
    {"embed", op_embed, "/d/m_ctx.onnx", NULL, true},
    {"extract", op_extract, "/d/e.onnx", NULL, true},
    {"init_inline", op_init_inline, "/d/x.onnx", NULL, true},
    {"init_external", op_init_external, "/d/m.onnx", NULL, true},
    {"init_prune", op_init_prune, "/d/x.onnx", NULL, true},
    {"weightless", op_weightless, "/d/wl.onnx", NULL, true},
    {"self_contained", op_self_contained, "/d/wl.onnx", NULL, true},
    {"move_binary", op_move_binary, NULL, NULL, false},
    {"move_binary by copying", op_move_copy, NULL, NULL, false},
    {"merge", op_merge, "/d/m.onnx", "/d/x.onnx", true},
    {"split", op_split, "/d/m.onnx", NULL, true},
    {"wrap", op_wrap, NULL, NULL, false},
    {"repair", op_repair, "/d/b.onnx", "/d/m.onnx", true},
    {"partition_graph", op_partition, "/d/m.onnx", NULL, true},
    {"weights", op_weights, NULL, NULL, false},
    {"ep", op_ep, "/d/m.onnx", NULL, true},
    {"generate", op_generate, "/d/m.onnx", NULL, true},
    {"generate embedded", op_generate_embedded, "/d/m.onnx", NULL, true},
    {"generate, many outputs", op_generate_aside, "/d/o.onnx", NULL, true},
    {"generate, many nodes", op_generate_aside, "/d/k.onnx", NULL, true},
    {"generate, mixed", op_generate_aside, "/d/mix.onnx", NULL, true},
    {"generate a copy", op_generate_copy, "/d/mix.onnx", NULL, true},
    {"generate a copy, many", op_generate_copy, "/d/k.onnx", NULL, true},
    {"partition_graph, many", op_partition, "/d/o.onnx", NULL, true},
    {"check_fresh", op_fresh, "/d/m_ctx.onnx", NULL, true},
    {"load", op_load, "/d/m_ctx.onnx", NULL, true},
    {"load embedded", op_load, "/d/e.onnx", NULL, true},
    {"prefix", op_prefix, "/d/mix.onnx", NULL, true},
    {"load_nodes", op_load_nodes, "/d/e.onnx", NULL, true},
    {"open_or_compile, fresh", op_cache_hit, NULL, NULL, false},
    {"open_or_compile, new", op_cache_miss, NULL, NULL, false},
    {"share_load", op_share_load, "/d/m_ctx.onnx", NULL, true},
    {"share_generate", op_share_generate, "/d/m.onnx", "/d/n.onnx", false},
    {"share_generate, files aside", op_share_generate_aside, "/d/m.onnx", "/d/n.onnx", false},
    {"share_compile", op_share_compile, "/d/m.onnx", NULL, false},
    {"npu", op_npu, "/d/p.onnx", NULL, false},
    {"npu, weightless", op_npu_weightless, "/d/p.onnx", NULL, false},
    {"load_nodes from a buffer", op_load_nodes, "/d/m_ctx.onnx", NULL, true},
    {"commit", op_commit, "/d/m.onnx", NULL, true},
    {"write_bytes", op_write_bytes, NULL, NULL, false},
    {"check_binary", op_check_binary, "/d/m_ctx.onnx", NULL, true},
    {"rename_files", op_rename_files, "/d/mix.onnx", NULL, true},
    {"fix_dim", op_fix_dim, "/d/dim.onnx", NULL, true},
    {"merge_doubled", op_merge_doubled, "/d/two.onnx", NULL, true},
    {"merge, another folder", op_merge_far, "/d/x.onnx", "/e/x.onnx", true},
    {"split, another folder", op_split_far, "/e/x.onnx", NULL, true},
    {"open_or_compile, fallback", op_cache_fallback, NULL, NULL, false},
    {"node_captures", op_captures, "/d/mix.onnx", NULL, true},
    {"scan", op_scan, NULL, NULL, false},
};
#define OPERATION_COUNT (sizeof operations / sizeof operations[0])

/* -- the stage -- */

static void copy_disk(disk *to, const disk *from) {
    for (size_t i = 0; i < from->count; i++) {
        disk_put(to, from->files[i].path, from->files[i].data, from->files[i].size);
        disk_find(to, from->files[i].path)->written = from->files[i].written;
    }
    to->clock = from->clock;
}

static void begin(stage *s) {
    memset(s, 0, sizeof *s);
    copy_disk(&s->disk, &original);
    s->io = disk_io(&s->disk);
    s->allocator = counting_allocator(&s->memory);
    s->open.io = &s->io;
    s->open.allocator = &s->allocator;
    s->backend = fake_backend(&s->fake);
}

static bool open_models(stage *s, const operation *op) {
    epctx_open_opts open = s->open;
    open.buffer = NULL;
    return (op->model == NULL ||
            epctx_model_open_file(&s->model, op->model, &s->open, NULL) == EPCTX_OK) &&
           (op->second == NULL ||
            epctx_model_open_file(&s->second, op->second, &open, NULL) == EPCTX_OK);
}

static bool make_original(void) {
    stage s;
    epctx_gen_opts opts;
    bool good;
    put_model(&original, "/d/m.onnx", source(1));
    put_model(&original, "/d/n.onnx", source(2));
    put_model(&original, "/d/s.onnx", source(1)); /* its "w" is 1, 1: see below */
    put_model(&original, "/d/x.onnx", external_model());
    put_model(&original, "/d/wl.onnx", weightless_model());
    put_model(&original, "/d/b.onnx", broken_model());
    put_model(&original, "/d/p.onnx", npu_model());
    put_model(&original, "/d/o.onnx", wide_model(18, 5, true));
    put_model(&original, "/d/k.onnx", wide_model(1, 16, false));
    put_model(&original, "/d/mix.onnx", mixed_model());
    put_model(&original, "/d/s.onnx", npu_model()); /* "w" as in wl.onnx */
    disk_put(&original, "/d/w.bin", pair_data, sizeof pair_data);
    put_model(&original, "/d/dim.onnx", named_dims());
    put_model(&original, "/d/two.onnx", doubled_model());
    put_model(&original, "/e/x.onnx", external_model());
    disk_put(&original, "/e/w.bin", pair_dims, sizeof pair_data);
    begin(&s);
    opts = gen_opts(&s);
    good = epctx_model_open_file(&s.model, "/d/m.onnx", &s.open, NULL) == EPCTX_OK &&
           epctx_generate(&s.model, &s.backend, &opts, NULL, NULL) == EPCTX_OK;
    epctx_model_close(&s.model);
    opts.embed = true;
    opts.context_file_path = "/d/e.onnx";
    good = good && epctx_model_open_file(&s.model, "/d/m.onnx", &s.open, NULL) == EPCTX_OK &&
           epctx_generate(&s.model, &s.backend, &opts, NULL, NULL) == EPCTX_OK;
    epctx_model_close(&s.model);
    disk_free(&original);
    copy_disk(&original, &s.disk);
    if (good) { /* as a buffer, without a folder */
        const disk_file *binary = disk_find(&original, "/d/m_fake.bin");
        disk_put(&original, "m_fake.bin", binary->data, binary->size);
    }
    disk_free(&s.disk);
    return good;
}

/* -- what must hold -- */

static bool same_file(const disk_file *a, const disk_file *b) {
    return a != NULL && b != NULL && a->size == b->size && memcmp(a->data, b->data, a->size) == 0;
}

/* Every file is whole: as it was or as it was to be. With `old`, as it was. */
static const char *torn(disk *now, disk *wanted, bool old) {
    static char text[300];
    for (size_t i = 0; i < now->count; i++) {
        const disk_file *f = &now->files[i];
        char path[200];
        size_t size = strlen(f->path);
        strcpy(path, f->path);
        if (size > 0 && path[size - 1] == '~') path[size - 1] = '\0'; /* a backup */
        if (same_file(f, disk_find(&original, path))) continue;
        if (!old && same_file(f, disk_find(wanted, f->path))) continue;
        snprintf(text, sizeof text, "%s is neither the old file nor the new one", f->path);
        return text;
    }
    for (size_t i = 0; i < original.count; i++) {
        if (disk_find(now, original.files[i].path) != NULL) continue;
        if (!old && disk_find(wanted, original.files[i].path) == NULL) continue;
        snprintf(text, sizeof text, "%s is gone", original.files[i].path);
        return text;
    }
    return NULL;
}

typedef enum fault {
    NOTHING,
    NO_MEMORY,
    NO_MEMORY_ONCE,
    NO_ROOM,
    IO_FAILS,
    IO_SHORT,
    IO_CHANGED
} fault;

static const char *const fault_names[] = {"nothing",        "allocation",      "single allocation",
                                          "fixed arena",    "failing io call", "short io call",
                                          "changed io call"};

#define ROOM_STEP 48 /* by which a fixed arena grows from run to run */
static uint8_t room[4 << 20];

typedef struct tally {
    size_t runs, refused;
} tally;

/* What is left of a run without faults. */
typedef struct outcome {
    disk disk;
    bytes model; /* the first one */
} outcome;

static void outcome_free(outcome *o) {
    disk_free(&o->disk);
    bytes_free(&o->model);
}

/* A success in spite of a fault has done all that there was to do. */
static const char *undone(disk *now, const bytes *model, const outcome *wanted) {
    static char text[300];
    for (size_t i = 0; i < wanted->disk.count; i++) {
        const disk_file *f = &wanted->disk.files[i];
        if (same_file(f, disk_find(now, f->path))) continue;
        snprintf(text, sizeof text, "it says that all went well, but %s is not as it should be",
                 f->path);
        return text;
    }
    return bytes_equal(model, wanted->model.data, wanted->model.size)
               ? NULL
               : "it says that all went well, but the model is not as it should be";
}

/* Runs an operation with one fault; returns what is wrong. `*reached`: the fault occurred. */
static const char *one(const operation *op, fault what, int at, uint32_t place, outcome *wanted,
                       bool *reached, tally *all) {
    static char text[1000];
    stage s;
    epctx_error error;
    epctx_status status;
    const char *wrong = NULL;
    bytes before = {0}, after = {0};
    begin(&s);
    if (what == NO_ROOM) {
        s.open.buffer = room;
        s.open.buffer_size = (size_t)at * ROOM_STEP;
    }
    if (!open_models(&s, op)) {
        *reached = what == NO_ROOM && s.open.buffer_size < sizeof room;
        epctx_model_close(&s.model);
        epctx_model_close(&s.second);
        disk_free(&s.disk);
        return *reached ? NULL : "the models cannot be opened";
    }
    s.open.buffer = NULL;
    if (op->model != NULL) before = written(&s.model);
    epctx_error_clear(&error);
    s.disk.calls = 0;
    s.memory.calls = 0;
    s.memory.once = what == NO_MEMORY_ONCE;
    if (what == NO_MEMORY || what == NO_MEMORY_ONCE) s.memory.fail_at = (size_t)at;
    if (what >= IO_FAILS) {
        s.disk.fail_at = at;
        s.disk.fault = (disk_fault)(what - IO_FAILS);
        s.disk.place = place;
    }
    status = op->run(&s, &error);
    *reached = s.memory.fail_at != 0 ? s.memory.calls >= (size_t)at
               : what == NO_ROOM     ? status != EPCTX_OK
                                     : s.disk.calls >= at;
    s.memory.fail_at = 0;
    s.disk.fail_at = 0;
    all->runs++;
    all->refused += status != EPCTX_OK;
    if ((status == EPCTX_OK) != (error.message[0] == '\0'))
        wrong = status == EPCTX_OK ? "a success leaves a message" : "a failure says nothing";
    else if (status != EPCTX_OK && error.status != status)
        wrong = "the error has another status";
    else if (what == NOTHING && status != EPCTX_OK)
        wrong = "it fails without a fault";
    if (op->model != NULL) after = written(&s.model);
    if (wrong == NULL && op->edits && status != EPCTX_OK &&
        !bytes_equal(&after, before.data, before.size))
        wrong = "a failure changes the model";
    if (wrong == NULL && status == EPCTX_OK && what != NOTHING && what < IO_FAILS)
        wrong = undone(&s.disk, &after, wanted);
    /* From wrong bytes comes another model, which may be written before somebody notices. */
    if (wrong == NULL && what != NOTHING && what != IO_CHANGED &&
        (what != IO_SHORT || status != EPCTX_OK))
        wrong = torn(&s.disk, &wanted->disk, false);
    epctx_model_close(&s.model);
    epctx_model_close(&s.second);
    if (wrong == NULL && s.memory.alive != 0) wrong = "memory leaks";
    if (wrong == NULL && s.fake.alive != 0) wrong = "a build or a context of the backend leaks";
    if (wrong == NULL && (s.disk.maps != 0 || s.disk.writers != 0 || s.disk.locks != 0))
        wrong = "a mapping, an output or a lock leaks";
    if (wrong != NULL) {
        snprintf(text, sizeof text, "%s, %s %d: %s (%s: %s)", op->name, fault_names[what], at,
                 wrong, epctx_status_name(status), error.message);
        wrong = text;
    }
    if (what == NOTHING) {
        copy_disk(&wanted->disk, &s.disk);
        wanted->model = after;
        memset(&after, 0, sizeof after);
    }
    bytes_free(&before);
    bytes_free(&after);
    disk_free(&s.disk);
    return wrong;
}

/* One fault at every place, for every operation. */
static const char *everywhere(fault what, tally *all) {
    for (size_t i = 0; i < OPERATION_COUNT; i++) {
        const operation *op = &operations[i];
        outcome wanted = {0};
        bool reached = true;
        tally none = {0, 0};
        const char *wrong;
        wrong = one(op, NOTHING, 1, 0, &wanted, &reached, &none);
        reached = true;
        for (int at = 1; wrong == NULL && reached; at++) {
            uint32_t places = what == IO_CHANGED ? PLACES : 1;
            for (uint32_t k = 0; wrong == NULL && k < places; k++)
                wrong = one(op, what, at, k * 7919u + (uint32_t)at * 31u, &wanted, &reached, all);
            if (at > MOST_CALLS && what != NO_ROOM) wrong = "it does not end";
        }
        outcome_free(&wanted);
        if (wrong != NULL) return wrong;
    }
    return NULL;
}

static const char *report(fault what) {
    tally all = {0, 0};
    const char *wrong = everywhere(what, &all);
    if (wrong == NULL)
        printf("note %s: %zu operations, %zu runs, %zu refused\n", fault_names[what],
               OPERATION_COUNT, all.runs, all.refused);
    return wrong;
}

TEST(allocations) {
    const char *wrong = report(NO_MEMORY);
    CHECK(wrong == NULL, "%s", wrong);
}

/* The next one succeeds again: nobody may overlook it. */
TEST(single_allocations) {
    const char *wrong = report(NO_MEMORY_ONCE);
    CHECK(wrong == NULL, "%s", wrong);
}

TEST(fixed_arena) {
    const char *wrong = report(NO_ROOM);
    CHECK(wrong == NULL, "%s", wrong);
}

TEST(io_fails) {
    const char *wrong = report(IO_FAILS);
    CHECK(wrong == NULL, "%s", wrong);
}

TEST(io_short) {
    const char *wrong = report(IO_SHORT);
    CHECK(wrong == NULL, "%s", wrong);
}

TEST(io_changed) {
    const char *wrong = report(IO_CHANGED);
    CHECK(wrong == NULL, "%s", wrong);
}

int main(int argc, char **argv) {
    if (!make_original()) return 1;
    RUN(allocations);
    RUN(single_allocations);
    RUN(fixed_arena);
    RUN(io_fails);
    RUN(io_short);
    RUN(io_changed);
    disk_free(&original);
    return test_end();
}
