/* epctx weightless: weights of EPContext nodes in the source model, or in the model itself. */
#include "convert.h"
#include "ops/weightless.h"

#include <string.h>

static int run(int argc, char **argv)
{
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
            cli_fail_text("--source does not go with --self-contained: the model names its source");
        else
            code = convert_file(&out, file, &opts,
                                self_contained ? epctx_self_contained : epctx_weightless);
    }
    output_free(&out);
    return code;
}

const cli_command cli_weightless = {
    "weightless",
    "[--self-contained] [--node NAME] [--source MODEL] " OUTPUT_USAGE " FILE",
    "let weights be read from the source model, or not",
    "EPContext nodes of a weightless compilation (ep.enable_weightless) take their weights as\n"
    "inputs, and the model has copies of them. Each copy that equals the source model's becomes a\n"
    "reference into the source model or its data file. Weights inside of a context binary are out\n"
    "of reach: only the EP can leave them out.\n\n"
    "  --self-contained     the way back: the weights come into the model\n"
    "  --node NAME          the weights of this node only\n"
    "  --source MODEL       the source model, relative to FILE's folder; default what the nodes\n"
    "                       name (onnx_model_filename)\n" OUTPUT_HELP,
    run,
};
