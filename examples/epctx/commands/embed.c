/* epctx embed: contexts from files into the model. */
#include "convert.h"

static int run(const cli_args *args) {
    return convert_contexts(args, ops_embed);
}

const cli_command cli_embed = {
    .name = "embed",
    .group = CLI_CHANGE,
    .operands = "FILE...",
    .least = 1,
    .summary = "embed context binaries in the model",
    .about = "Stores the bytes of each context binary in the EPContext node that names it\n"
             "(embed_mode 1). Does not remove the binaries: other models may need them. Fails\n"
             "if the EP of a node does not support embedded contexts, or if the size or hash\n"
             "of a binary does not match the build stamp of the model. The content of a binary\n"
             "is not checked.\n"
             "Several files, and the EPContext models of folders, are changed in their places:\n"
             "--in-place.\n",
    .more = "Example: epctx embed model_ctx.onnx -o single.onnx\n",
    .run = run,
};
