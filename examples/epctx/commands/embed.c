/* epctx embed: contexts from files into the model. */
#include "core/convert.h"

static int run(int argc, char **argv) {
    return convert_contexts(&cli_embed, argc, argv, epctx_model_embed);
}

const cli_command cli_embed = {
    "embed",
    "[--node NAME] [--ep NAME] [--context-path FILE]\n"
    "             [--allow-stale]" OUTPUT_USAGE "FILE",
    "embed context binaries in the model",
    "Stores the bytes of each context binary in the EPContext node that names it\n"
    "(embed_mode 1). Does not remove the binaries: other models may need them. Fails\n"
    "if the EP of a node does not support embedded contexts, or if the size or hash\n"
    "of a binary does not match the build stamp of the model. The content of a binary\n"
    "is not checked.\n\n"
    "  --node NAME          only this node\n"
    "  --ep NAME            apply the rules of this EP; default: each node's source\n"
    "  --context-path FILE  ep.context_file_path: the binaries are in its folder\n"
    "  --allow-stale        accept binaries that do not match the build stamp\n" OUTPUT_HELP
    "\nExample: epctx embed model_ctx.onnx -o single.onnx\n",
    run,
};
