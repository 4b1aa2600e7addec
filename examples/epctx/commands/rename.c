/* epctx rename: other names for values or nodes. */
#include "ops/rename.h"
#include "ops/views.h"
#include "core/output.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { VALUE_NAME = 1, TENSOR_NAME = 8 }; /* onnx.proto */

typedef struct rename_work {
    const char *file;
    bool nodes;
    epctx_name_opts opts;
    output out;
    epctx_model model;
    epctx_arena arena;
    epctx_error error;
} rename_work;

/* -- values -- */

static bool add_names(epctx_map *map, epctx_cursor it, uint32_t number) {
    epctx_field field;
    while (epctx_next_field(&it, &field))
        if (field.wire == EPCTX_WIRE_LEN &&
            epctx_map_put(map, ops_last_str(field.body, number), 1) != EPCTX_OK)
            return false;
    return true;
}

/* The values that the main graph defines. */
static bool value_names(const epctx_model *model, epctx_map *map) {
    epctx_graph_view graph = epctx_model_graph(model);
    epctx_cursor it = epctx_view_graph_nodes(graph);
    epctx_cursor sparse = epctx_graph_sparse(graph);
    epctx_sparse_view tensor;
    epctx_node_view node;
    while (epctx_next_node(&it, &node)) {
        epctx_cursor outputs = epctx_view_node_outputs(&node);
        epctx_str name;
        while (epctx_next_str(&outputs, &name))
            if (epctx_map_put(map, name, 1) != EPCTX_OK) return false;
    }
    while (epctx_next_sparse(&sparse, &tensor))
        if (epctx_map_put(map, tensor.values.name, 1) != EPCTX_OK) return false;
    return add_names(map, epctx_view_graph_inputs(graph), VALUE_NAME) &&
           add_names(map, epctx_view_graph_initializers(graph), TENSOR_NAME);
}

static void tell(rename_work *work, const char *kind, const char *from, const char *to) {
    output_item what = output_item_of("rename", kind, epctx_str_of(from));
    what.before = what.name;
    what.after = epctx_str_of(to);
    output_change(&work->out, &what, "%s '%s': now '%s'", kind, from, to);
}

static int list_values(rename_work *work) {
    epctx_graph_view graph = epctx_model_graph(&work->model);
    epctx_cursor lists[2];
    epctx_value_view value;
    size_t i;
    lists[0] = epctx_view_graph_inputs(graph);
    lists[1] = epctx_view_graph_outputs(graph);
    for (i = 0; i < 2; i++) {
        fputs(i == 0 ? "inputs:" : "outputs:", stderr);
        while (epctx_next_value(&lists[i], &value)) {
            fputs(" '", stderr);
            cli_put(stderr, value.name);
            fputc('\'', stderr);
        }
        fputs(i == 0 ? "; " : "\n", stderr);
    }
    return CLI_FAILED;
}

static int rename_values(rename_work *work, const char *const *names, size_t count) {
    epctx_view main_graph = epctx_model_graph(&work->model).view;
    epctx_str *from = (epctx_str *)epctx_arena_array(&work->arena, count, sizeof *from);
    epctx_str *to = (epctx_str *)epctx_arena_array(&work->arena, count, sizeof *to);
    epctx_map known;
    output_item what;
    size_t uses, i;
    epctx_map_init(&known, &work->arena);
    if (from == NULL || to == NULL || !value_names(&work->model, &known))
        return cli_fail_text("out of memory");
    for (i = 0; i < count; i++) {
        from[i] = epctx_str_of(names[2 * i]);
        to[i] = epctx_str_of(names[2 * i + 1]);
        if (epctx_map_get(&known, from[i]) == EPCTX_MAP_NONE) {
            cli_fail_text("%s: the main graph has no value '%s'", work->file, names[2 * i]);
            return list_values(work);
        }
        tell(work, "value", names[2 * i], names[2 * i + 1]);
    }
    if (epctx_rename_values(&work->model, main_graph, from, to, count, &work->opts, &uses,
                            &work->error) != EPCTX_OK) {
        if (work->error.status == EPCTX_ERR_UNSUPPORTED)
            return cli_fail_cure(&work->error, "--any-io renames it anyway");
        return cli_fail(&work->error);
    }
    what = output_item_of("rename", "occurrences", epctx_str_of(NULL));
    what.count = uses;
    output_change(&work->out, &what, "%zu occurrences in total", uses);
    return CLI_OK;
}

/* -- nodes -- */

static int rename_node(rename_work *work, const char *from, const char *to) {
    epctx_walk walk;
    epctx_node_view node, found;
    size_t count = 0;
    epctx_walk_begin(&walk, &work->model);
    while (epctx_walk_next(&walk, &node))
        if (epctx_str_is(node.name, from) && count++ == 0) found = node;
    if (count != 1) return cli_fail_text("%s: %zu nodes are named '%s'", work->file, count, from);
    if (epctx_node_rename(&work->model, found.view, epctx_str_of(to), &work->opts, &work->error) !=
        EPCTX_OK) {
        if (strstr(work->error.message, "one_graph") != NULL)
            return cli_fail_graph_key(&work->error, "");
        return cli_fail(&work->error);
    }
    tell(work, "node", from, to);
    return CLI_OK;
}

static int rename_all(rename_work *work, const char *const *names, size_t count) {
    int code = CLI_OK;
    size_t i;
    if (output_open(&work->out, &work->model, work->file, &work->error) != EPCTX_OK)
        return cli_fail(&work->error);
    if (!work->nodes) code = rename_values(work, names, count);
    for (i = 0; work->nodes && i < count && code == CLI_OK; i++)
        code = rename_node(work, names[2 * i], names[2 * i + 1]);
    if (code == CLI_OK) code = output_model(&work->out, &work->model);
    epctx_model_close(&work->model);
    return code;
}

static int run(const cli_args *args) {
    const char *const *names = args->operands + 1;
    rename_work work;
    int code = CLI_USAGE, i;
    memset(&work, 0, sizeof work);
    epctx_arena_init(&work.arena, NULL);
    work.file = args->operands[0];
    work.nodes = args->nodes;
    work.opts.one_graph = args->one_graph;
    work.opts.any_io = args->any_io;
    for (i = 2; i < args->count; i += 2)
        if (!cli_may_stand("new name", args->operands[i])) return code;
    if (output_begin(&work.out, args, work.file) &&
        cli_profile(args->profile, &work.opts.profile)) {
        if (args->count % 2 == 0)
            cli_misuse("missing new name for '%s'", args->operands[args->count - 1]);
        else
            code = rename_all(&work, names, (size_t)(args->count - 1) / 2);
    }
    epctx_arena_free(&work.arena);
    output_free(&work.out);
    return code;
}

const cli_command cli_rename = {
    .name = "rename",
    .group = CLI_CHANGE,
    .operands = "MODEL OLD NEW...",
    .least = 3,
    .summary = "rename values or nodes",
    .about = "Renames values of the main graph wherever they are used: in nodes, inputs,\n"
             "outputs, initializers, value_info, quantization annotations, training info, and\n"
             "subgraphs. A new name must not be in use, but two values may swap names. Some\n"
             "EPs find the inputs and outputs of an EPContext node in the binary by name:\n"
             "these values cannot be renamed.\n",
    .more = "Example: epctx rename model.onnx input_1 image -o renamed.onnx\n",
    .run = run,
};
