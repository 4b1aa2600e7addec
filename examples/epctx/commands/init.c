/* epctx init: initializers into the model, into a file, or away. */
#include "convert.h"
#include "ops/init.h"

#include <string.h>

static bool read_options(const cli_args *args, ops_convert_opts *opts) {
    const bool given = args->threshold.given || args->align.given || args->name != NULL;
    if (args->inline_all + args->external + args->prune + args->no_inputs != 1) {
        cli_misuse("choose one of --inline, --external, --prune and --no-inputs");
        return false;
    }
    if (given && !args->external) {
        cli_misuse("--threshold, --align and --name require --external");
        return false;
    }
    if (args->external) opts->threshold = cli_number_or(args->threshold, CLI_SMALL_INITIALIZER);
    opts->gather = given;
    opts->bring_in = args->threshold.given;
    opts->alignment = args->align.value;
    opts->common.name = args->name;
    return true;
}

static int run(const cli_args *args) {
    const char *file = args->operands[0];
    ops_convert_opts opts;
    output out;
    int code = CLI_USAGE;
    memset(&opts, 0, sizeof opts);
    if (output_begin(&out, args, file) && read_options(args, &opts))
        code = convert_file(&out, file, &opts,
                            args->prune       ? epctx_init_prune
                            : args->external  ? epctx_init_external
                            : args->no_inputs ? epctx_init_fix
                                              : epctx_init_inline);
    output_free(&out);
    return code;
}

const cli_command cli_init = {
    .name = "init",
    .group = CLI_CHANGE,
    .operands = "FILE",
    .least = 1,
    .most = 1,
    .summary = "move initializers into the model or into a file, remove them, make them constants",
    .about = "\n",
    .more = "Example: epctx init --external model.onnx -o small.onnx\n",
    .run = run,
};
