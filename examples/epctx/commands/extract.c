/* epctx extract: contexts from the model into files. */
#include "convert.h"

static int run(const cli_args *args) {
    return convert_contexts(args, ops_extract);
}

const cli_command cli_extract = {
    .name = "extract",
    .group = CLI_CHANGE,
    .operands = "FILE...",
    .least = 1,
    .summary = "move embedded contexts to files",
    .about = "Writes each embedded context to a file beside the model (embed_mode 0); equal\n"
             "contexts share a file. An existing file with the same bytes is kept. Fails if\n"
             "the EP of a node does not support context files, or if a context does not match\n"
             "the build stamp of the model.\n"
             "Several files, and the EPContext models of folders, are changed in their places:\n"
             "--in-place.\n",
    .more = "Example: epctx extract single.onnx -o model_ctx.onnx\n",
    .run = run,
};
