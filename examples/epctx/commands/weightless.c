/* epctx weightless: weights of EPContext nodes in the source model, or in the model itself. */
#include "convert.h"
#include "ops/weightless.h"

#include <string.h>

static int run(const cli_args *args) {
    const char *file = args->operands[0];
    ops_convert_opts opts;
    output out;
    int code = CLI_USAGE;
    memset(&opts, 0, sizeof opts);
    opts.common.node = args->node;
    opts.source = args->source;
    if (output_begin(&out, args, file)) {
        if (args->self_contained && opts.source != NULL)
            cli_fail_text(
                "--source and --self-contained cannot be combined: the model names its source");
        else
            code = convert_file(&out, file, &opts,
                                args->self_contained ? epctx_self_contained : epctx_weightless);
    }
    output_free(&out);
    return code;
}

const cli_command cli_weightless = {
    .name = "weightless",
    .group = CLI_CHANGE,
    .operands = "FILE",
    .least = 1,
    .most = 1,
    .summary = "read weights from the source model, or store them in the model",
    .about = "EPContext nodes of a weightless compilation (ep.enable_weightless) take their\n"
             "weights as inputs, and the model may contain copies of them. Replaces each copy\n"
             "that equals a weight of the source model with a reference to that model or its\n"
             "data file. Cannot change weights inside a context binary: only the EP can leave\n"
             "them out.\n",
    .more = "Example: epctx weightless --source model.onnx model_ctx.onnx --in-place\n",
    .run = run,
};
