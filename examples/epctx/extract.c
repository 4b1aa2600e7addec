/* epctx extract: contexts from the model into files. */
#include "convert.h"

#include <string.h>

static int run(int argc, char **argv)
{
    const char *file = NULL;
    const char *ep = NULL;
    epctx_convert_opts opts;
    output out;
    int code = CLI_USAGE;
    memset(&opts, 0, sizeof opts);
    output_init(&out);
    const cli_option options[] = {
        OUTPUT_OPTIONS(out),
        {"--node", &opts.node, NULL},
        {"--ep", &ep, NULL},
        {"--name", &opts.name, NULL},
        {NULL, NULL, NULL},
    };
    if (cli_parse(&cli_extract, argc, argv, options, &file, 1) && output_check(&out, file) &&
        (ep == NULL || cli_profile(ep, &opts.profile)))
        code = convert_file(&out, file, &opts, epctx_extract);
    output_free(&out);
    return code;
}

const cli_command cli_extract = {
    "extract",
    "[--node NAME] [--ep NAME] [--name FILE] " OUTPUT_USAGE " FILE",
    "put embedded contexts into files",
    "Every embedded context becomes a file beside the model (embed_mode 0), equal ones the same\n"
    "file. A file that is there with the same bytes is kept.\n\n"
    "  --node NAME          this node only\n"
    "  --ep NAME            the rules of this EP; default: each node by its source\n"
    "  --name FILE          name of the file, relative to the model, with {stem} {model} {file}\n"
    "                       for the model's name and {node} for the node's; default the EP's own\n"
    OUTPUT_HELP,
    run,
};
