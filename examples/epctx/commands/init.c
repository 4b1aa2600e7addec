/* epctx init: initializers into the model, into a file, or away. */
#include "core/convert.h"
#include "ops/init.h"

#include <string.h>

typedef struct init_args {
    bool inline_all, external, prune;
    const char *threshold, *align;
} init_args;

static bool read_numbers(const init_args *args, epctx_convert_opts *opts) {
    if (args->external) opts->threshold = CLI_SMALL_INITIALIZER;
    return (args->threshold == NULL ||
            cli_number("--threshold", args->threshold, 0, INT64_MAX, &opts->threshold)) &&
           (args->align == NULL ||
            cli_number("--align", args->align, 1, 1u << 30, &opts->alignment));
}

static int init(output *out, const char *file, const init_args *args, epctx_convert_opts *opts) {
    bool options = args->threshold != NULL || args->align != NULL || opts->name != NULL;
    if (args->inline_all + args->external + args->prune != 1)
        return cli_fail_text("choose one of --inline, --external and --prune"), CLI_USAGE;
    if (options && !args->external)
        return cli_fail_text("--threshold, --align and --name require --external"), CLI_USAGE;
    if (!read_numbers(args, opts)) return CLI_USAGE;
    return convert_file(out, file, opts,
                        args->prune      ? epctx_init_prune
                        : args->external ? epctx_init_external
                                         : epctx_init_inline);
}

static int run(int argc, char **argv) {
    const char *file = NULL;
    epctx_convert_opts opts;
    init_args args;
    output out;
    int code = CLI_USAGE;
    memset(&opts, 0, sizeof opts);
    memset(&args, 0, sizeof args);
    output_init(&out);
    const cli_option options[] = {
        OUTPUT_OPTIONS(out),
        {"--inline", NULL, &args.inline_all},
        {"--external", NULL, &args.external},
        {"--prune", NULL, &args.prune},
        {"--threshold", &args.threshold, NULL},
        {"--align", &args.align, NULL},
        {"--name", &opts.name, NULL},
        {NULL, NULL, NULL},
    };
    if (cli_parse(&cli_init, argc, argv, options, &file, 1) && output_check(&out, file))
        code = init(&out, file, &args, &opts);
    output_free(&out);
    return code;
}

const cli_command cli_init = {
    "init",
    "(--inline | --external | --prune) [--threshold N] [--align N]\n"
    "             [--name FILE]" OUTPUT_USAGE "FILE",
    "move initializers into the model or into a file, or remove them",
    "  --inline             move external initializers into the model\n"
    "  --external           move initializers into one file beside the model\n"
    "  --threshold N        leave initializers of fewer bytes in the model; default\n"
    "                       1024\n"
    "  --align N            align each to a multiple of N, a power of two; default\n"
    "                       4096\n"
    "  --name FILE          name of the file, relative to the model; default\n"
    "                       {file}.data\n"
    "  --prune              remove initializers that nothing reads\n" OUTPUT_HELP
    "\nExample: epctx init --external model.onnx -o small.onnx\n",
    run,
};
