/* epctx extract: contexts from the model into files. */
#include "core/convert.h"

static int run(int argc, char **argv) {
    return convert_contexts(&cli_extract, argc, argv, epctx_model_extract);
}

const cli_command cli_extract = {
    "extract",
    "[--node NAME] [--ep NAME] [--name FILE] [--allow-stale]" OUTPUT_USAGE "FILE",
    "move embedded contexts to files",
    "Writes each embedded context to a file beside the model (embed_mode 0); equal\n"
    "contexts share a file. An existing file with the same bytes is kept. Fails if\n"
    "the EP of a node does not support context files, or if a context does not match\n"
    "the build stamp of the model.\n\n"
    "  --node NAME          only this node\n"
    "  --ep NAME            apply the rules of this EP; default: each node's source\n"
    "  --name FILE          name of the file, relative to the model; {stem}, {model}\n"
    "                       and {file} stand for the model's name, {node} for the\n"
    "                       node's; the default is the EP's convention\n"
    "  --allow-stale        accept contexts that do not match the build stamp\n" OUTPUT_HELP
    "\nExample: epctx extract single.onnx -o model_ctx.onnx\n",
    run,
};
