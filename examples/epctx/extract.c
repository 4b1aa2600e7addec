/* epctx extract: contexts from the model into files. */
#include "convert.h"

static int run(int argc, char **argv)
{
    return convert_contexts(&cli_extract, argc, argv, epctx_model_extract);
}

const cli_command cli_extract = {
    "extract",
    "[--node NAME] [--ep NAME] [--name FILE] [--allow-stale]\n"
    "                     " OUTPUT_USAGE " FILE",
    "put embedded contexts into files",
    "Every embedded context becomes a file beside the model (embed_mode 0), equal ones the same\n"
    "file. A file that is there with the same bytes is kept. A context that is not the one of the\n"
    "model's build stamp is refused.\n\n"
    "  --node NAME          this node only\n"
    "  --ep NAME            the rules of this EP; default: each node by its source\n"
    "  --name FILE          name of the file, relative to the model, with {stem} {model} {file}\n"
    "                       for the model's name and {node} for the node's; default the EP's own\n"
    CONVERT_STALE_HELP OUTPUT_HELP,
    run,
};
