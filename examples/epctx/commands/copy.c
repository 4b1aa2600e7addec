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

static int write_copy(output *out, epctx_model *model, const epctx_write_opts *write) {
    epctx_error error;
    const epctx_status status = epctx_model_write_file(model, out->path, write, &error);
    cli_progress_end();
    return status == EPCTX_OK ? output_copied(out, model) : output_refuse(out, &error);
}

static int copy(const char *from, output *out, bool rebuild) {
    epctx_write_opts write;
    epctx_model model;
    epctx_error error;
    epctx_status status;
    int code = CLI_FAILED;
    cli_progress_begin("copy", cli_file_size(from));
    status = output_open(out, &model, from, &error);
    if (status != EPCTX_OK) return cli_fail(&error);
    write = output_options(out);
    write.allow_huge = true; /* it was that big before */
    if (rebuild) status = ops_rebuild(&model, &error);
    if (status == EPCTX_OK && out->to_stdout) return to_stdout(out, &model);
    if (status == EPCTX_OK && output_allowed(out, &model, NULL, 0))
        code = write_copy(out, &model, &write);
    else if (status != EPCTX_OK)
        code = output_refuse(out, &error);
    epctx_model_close(&model);
    return code;
}

static int run(const cli_args *args) {
    cli_args both = *args;
    output out;
    int code = CLI_USAGE;
    both.output = args->operands[1];
    if (output_begin(&out, &both, args->operands[0]))
        code = copy(args->operands[0], &out, args->rebuild);
    output_free(&out);
    return code;
}

const cli_command cli_copy = {
    .name = "copy",
    .group = CLI_CHANGE,
    .operands = "IN OUT",
    .least = 2,
    .most = 2,
    .dash = true,
    .summary = "copy a model, byte for byte",
    .about = "Reads a model, checks it, and writes the same bytes to OUT. Writes OUT in one\n"
             "step; after an error, OUT is unchanged. - is standard output. Copies no other\n"
             "file: if a file that the model needs is not in OUT's folder, a note says so.\n",
    .more = "Example: epctx copy model.onnx copy.onnx\n",
    .run = run,
};
