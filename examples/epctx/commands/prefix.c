/* epctx prefix: a prefix in front of the names of nodes. */
#include "ops/ops.h"
#include "core/output.h"

#include <string.h>

typedef struct prefix_work {
    const char *file, *prefix;
    epctx_prefix_opts opts;
    output out;
    epctx_model model;
    epctx_error error;
} prefix_work;

static void report(prefix_work *work) {
    epctx_walk walk;
    epctx_node_view node;
    epctx_walk_begin(&walk, &work->model);
    while (epctx_walk_next(&walk, &node)) {
        output_item what = output_item_of("rename", "node", node.name);
        if (node.name.size == 0 || (!work->opts.all_nodes && !epctx_view_is_epnode(&node)))
            continue;
        what.before = node.name;
        if (ops_join(&work->out.arena, epctx_str_of(work->prefix), node.name, &what.after,
                     &work->error) != EPCTX_OK)
            work->out.no_memory = true;
        output_change(&work->out, &what, "node '%.*s': now '%s%.*s'", (int)node.name.size,
                      node.name.data, work->prefix, (int)node.name.size, node.name.data);
    }
}

static int fail(const prefix_work *work) {
    if (work->error.status == EPCTX_ERR_UNSUPPORTED)
        return cli_fail_graph_key(&work->error, "otherwise compile the source again with a prefix");
    return cli_fail(&work->error);
}

static int prefix(prefix_work *work) {
    size_t count = 0;
    int code;
    if (output_open(&work->out, &work->model, work->file, &work->error) != EPCTX_OK)
        return cli_fail(&work->error);
    report(work);
    if (epctx_edit_prefix(&work->model, epctx_str_of(work->prefix), &work->opts, &count,
                          &work->error) != EPCTX_OK)
        code = fail(work);
    else if (count == 0)
        code = cli_fail_text("%s: there is no %snode with a name", work->file,
                             work->opts.all_nodes ? "" : "EPContext ");
    else
        code = output_model(&work->out, &work->model);
    epctx_model_close(&work->model);
    return code;
}

static int run(const cli_args *args) {
    prefix_work work;
    int code = CLI_USAGE;
    memset(&work, 0, sizeof work);
    work.file = args->operands[0];
    work.prefix = args->operands[1];
    work.opts.all_nodes = args->all_nodes;
    work.opts.one_graph = args->one_graph;
    if (cli_may_stand("prefix", work.prefix) && output_begin(&work.out, args, work.file) &&
        cli_profile(args->profile, &work.opts.profile))
        code = prefix(&work);
    output_free(&work.out);
    return code;
}

const cli_command cli_prefix = {
    .name = "prefix",
    .group = CLI_CHANGE,
    .operands = "MODEL PREFIX",
    .least = 2,
    .most = 2,
    .summary = "add a prefix to the names of EPContext nodes",
    .about = "Prevents name clashes between models that will be merged. Some EPs find a node's\n"
             "graph in the binary by the node's name: such a node cannot be renamed unless the\n"
             "binary contains only its graph. partition_name does not change because such EPs\n"
             "use it as a key, too.\n",
    .more = "Example: epctx prefix model_ctx.onnx left_ -o left_ctx.onnx\n",
    .run = run,
};
