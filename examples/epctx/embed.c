/* epctx embed: contexts from files into the model. */
#include "convert.h"

#include <string.h>

static int run(int argc, char **argv)
{
    const char *file = NULL;
    const char *ep = NULL;
    epctx_convert_opts opts;
    output out;
    int code = CLI_USAGE;
    memset(&opts, 0, sizeof opts);
    output_init(&out);
    const cli_option options[] = {
        OUTPUT_OPTIONS(out),
        {"--node", &opts.node, NULL},
        {"--ep", &ep, NULL},
        {"--context-path", &opts.context_file_path, NULL},
        {NULL, NULL, NULL},
    };
    if (cli_parse(&cli_embed, argc, argv, options, &file, 1) && output_check(&out, file) &&
        (ep == NULL || cli_profile(ep, &opts.profile)))
        code = convert_file(&out, file, &opts, epctx_embed);
    output_free(&out);
    return code;
}

const cli_command cli_embed = {
    "embed",
    "[--node NAME] [--ep NAME] [--context-path FILE] " OUTPUT_USAGE " FILE",
    "put context binaries into the model",
    "Every EPContext node that names a context binary gets its bytes (embed_mode 1). The binaries\n"
    "stay where they are: other models may need them. What the node's EP could not load is\n"
    "refused.\n\n"
    "  --node NAME          this node only\n"
    "  --ep NAME            the rules of this EP; default: each node by its source\n"
    "  --context-path FILE  ep.context_file_path: the binaries are in its folder\n" OUTPUT_HELP,
    run,
};
