/* epctx weightless: weights of EPContext nodes in the source model, or in the model itself. */
#include "core/convert.h"
#include "ops/weightless.h"

#include <string.h>

static int run(int argc, char **argv) {
    const char *file = NULL;
    bool self_contained = false;
    epctx_convert_opts opts;
    output out;
    int code = CLI_USAGE;
    memset(&opts, 0, sizeof opts);
    output_init(&out);
    const cli_option options[] = {
        OUTPUT_OPTIONS(out),
        {"--node", &opts.node, NULL},
        {"--source", &opts.source, NULL},
        {"--self-contained", NULL, &self_contained},
        {NULL, NULL, NULL},
    };
    if (cli_parse(&cli_weightless, argc, argv, options, &file, 1) && output_check(&out, file)) {
        if (self_contained && opts.source != NULL)
            cli_fail_text(
                "--source and --self-contained cannot be combined: the model names its source");
        else
            code = convert_file(&out, file, &opts,
                                self_contained ? epctx_self_contained : epctx_weightless);
    }
    output_free(&out);
    return code;
}

const cli_command cli_weightless = {
    "weightless",
    "[--self-contained] [--node NAME] [--source MODEL]" OUTPUT_USAGE "FILE",
    "read weights from the source model, or store them in the model",
    "EPContext nodes of a weightless compilation (ep.enable_weightless) take their\n"
    "weights as inputs, and the model may contain copies of them. Replaces each copy\n"
    "that equals a weight of the source model with a reference to that model or its\n"
    "data file. Cannot change weights inside a context binary: only the EP can leave\n"
    "them out.\n\n"
    "  --self-contained     the reverse: store the weights in the model\n"
    "  --node NAME          only the weights of this node\n"
    "  --source MODEL       the source model, relative to FILE's folder; default: the\n"
    "                       onnx_model_filename of the nodes\n" OUTPUT_HELP
    "\nExample: epctx weightless --source model.onnx model_ctx.onnx --in-place\n",
    run,
};
