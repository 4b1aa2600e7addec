/* epctx copy: a model read and written again, the same bytes. */
#include "cli.h"

#include <string.h>

static int copy(const char *from, const char *to, bool rebuild)
{
    epctx_open_opts opts;
    epctx_model model;
    epctx_error error;
    epctx_write_opts write;
    epctx_status status;
    memset(&opts, 0, sizeof opts);
    memset(&write, 0, sizeof write);
    write.allow_huge = true; /* it was that big before */
    opts.io = cli_progress_io();
    cli_progress_begin("copy", cli_file_size(from));
    status = epctx_model_open_file(&model, from, &opts, &error);
    if (status != EPCTX_OK) return cli_fail(&error);
    if (rebuild) status = epctx_rebuild(&model, &error);
    if (status == EPCTX_OK) status = epctx_model_write_file(&model, to, &write, &error);
    epctx_model_close(&model);
    cli_progress_end();
    return status == EPCTX_OK ? CLI_OK : cli_fail(&error);
}

static int run(int argc, char **argv)
{
    bool rebuild = false;
    const char *files[2];
    const cli_option options[] = {{"--rebuild", NULL, &rebuild}, {NULL, NULL, NULL}};
    if (!cli_parse(&cli_copy, argc, argv, options, files, 2)) return CLI_USAGE;
    return copy(files[0], files[1], rebuild);
}

const cli_command cli_copy = {
    "copy",
    "[--rebuild] IN OUT",
    "write a model again, byte for byte",
    "Reads a model, checks it, and writes it to OUT: the same bytes, whatever is in them.\n"
    "OUT is replaced in one step, or stays as it was when something goes wrong.\n\n"
    "  --rebuild   take every message apart and put it together again first\n",
    run,
};
