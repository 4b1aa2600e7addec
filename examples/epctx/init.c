/* epctx init: initializers into the model, into a file, or away. */
#include "convert.h"
#include "ops/init.h"

#include <string.h>

typedef struct init_args {
    bool inline_all, external, prune;
    const char *threshold, *align;
} init_args;

static bool read_numbers(const init_args *args, epctx_convert_opts *opts)
{
    opts->threshold = 1024;
    return (args->threshold == NULL ||
            cli_number("--threshold", args->threshold, 0, INT64_MAX, &opts->threshold)) &&
           (args->align == NULL ||
            cli_number("--align", args->align, 1, 1u << 30, &opts->alignment));
}

static int init(output *out, const char *file, const init_args *args, epctx_convert_opts *opts)
{
    bool options = args->threshold != NULL || args->align != NULL || opts->name != NULL;
    if (args->inline_all + args->external + args->prune != 1)
        return cli_fail_text("choose one of --inline, --external and --prune"),
               CLI_USAGE;
    if (options && !args->external)
        return cli_fail_text("--threshold, --align and --name go with --external"), CLI_USAGE;
    if (!read_numbers(args, opts)) return CLI_USAGE;
    return convert_file(out, file, opts,
                        args->prune      ? epctx_init_prune
                        : args->external ? epctx_init_external
                                         : epctx_init_inline);
}

static int run(int argc, char **argv)
{
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
    "(--inline | --external | --prune) [--threshold N] [--align N] [--name FILE] " OUTPUT_USAGE
    " FILE",
    "put initializers into the model, into a file, or away",
    "  --inline             initializers in files come into the model\n"
    "  --external           initializers go into one file beside the model\n"
    "  --threshold N        those of fewer bytes stay; default 1024\n"
    "  --align N            each starts at a multiple of N, a power of two; default 4096\n"
    "  --name FILE          name of the file, relative to the model; default {file}.data\n"
    "  --prune              initializers that nothing reads go\n" OUTPUT_HELP,
    run,
};
