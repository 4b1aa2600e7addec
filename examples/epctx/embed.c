/* epctx embed: contexts from files into the model. */
#include "convert.h"

static int run(int argc, char **argv)
{
    return convert_contexts(&cli_embed, argc, argv, epctx_model_embed);
}

const cli_command cli_embed = {
    "embed",
    "[--node NAME] [--ep NAME] [--context-path FILE] [--allow-stale]\n"
    "                   " OUTPUT_USAGE " FILE",
    "put context binaries into the model",
    "Every EPContext node that names a context binary gets its bytes (embed_mode 1). The binaries\n"
    "stay where they are: other models may need them. A form that the node's EP does not\n"
    "take is refused, and so is a binary that is not the one of the model's build stamp: another\n"
    "size or hash. What is in it only its EP can tell.\n\n"
    "  --node NAME          this node only\n"
    "  --ep NAME            the rules of this EP; default: each node by its source\n"
    "  --context-path FILE  ep.context_file_path: the binaries are in its folder\n"
    CONVERT_STALE_HELP OUTPUT_HELP,
    run,
};
