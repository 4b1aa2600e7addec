/* epctx extract: contexts from the model into files. */
#include "convert.h"

static int run(int argc, char **argv)
{
    return convert_contexts(&cli_extract, argc, argv, epctx_extract);
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
