/* epctx copy: a model read and written again, the same bytes. */
#include "ops/ops.h"
#include "core/output.h"

#include <string.h>

static int to_stdout(output *out, epctx_model *model) {
    int code;
    cli_progress_end();
    out->allow_huge = true;
    code = output_model(out, model);
    epctx_model_close(model);
    return code;
}

static int copy(const char *from, output *out, bool rebuild) {
    epctx_write_opts write;
    epctx_model model;
    epctx_error error;
    epctx_status status;
    cli_progress_begin("copy", cli_file_size(from));
    status = output_open(out, &model, from, &error);
    if (status != EPCTX_OK) return cli_fail(&error);
    write = output_options(out);
    write.allow_huge = true; /* it was that big before */
    if (rebuild) status = ops_rebuild(&model, &error);
    if (status == EPCTX_OK && out->to_stdout) return to_stdout(out, &model);
    if (status == EPCTX_OK) status = epctx_model_write_file(&model, out->path, &write, &error);
    epctx_model_close(&model);
    cli_progress_end();
    return status == EPCTX_OK ? output_copied(out) : output_refuse(out, &error);
}

static int run(int argc, char **argv) {
    bool rebuild = false;
    const char *files[2];
    output out;
    int code = CLI_USAGE;
    output_init(&out);
    const cli_option options[] = {{"--rebuild", NULL, &rebuild},
                                  {"--overwrite", &out.overwrite, NULL},
                                  {"-f", NULL, &out.force},
                                  {NULL, NULL, NULL}};
    if (cli_parse_dash(&cli_copy, argc, argv, options, files, 2)) {
        out.path = files[1];
        if (output_check(&out, files[0])) code = copy(files[0], &out, rebuild);
    }
    output_free(&out);
    return code;
}

const cli_command cli_copy = {
    "copy",
    "[--rebuild] [-f | --overwrite POLICY] IN OUT",
    "copy a model, byte for byte",
    "Reads a model, checks it, and writes the same bytes to OUT. Writes OUT in one\n"
    "step; after an error, OUT is unchanged. - is standard output. Copies no other\n"
    "file: if a file that the model needs is not in OUT's folder, a note says so.\n\n"
    "  --rebuild            decode and encode each message again\n"
    "  --overwrite POLICY   if OUT exists: fail (default), replace, or backup (keeps\n"
    "                       it as OUT~)\n"
    "  -f                   same as --overwrite replace\n"
    "\nExample: epctx copy model.onnx copy.onnx\n",
    run,
};
