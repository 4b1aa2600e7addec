/* epctx split: a part of a model, cut out at values. */
#include "core/combine.h"
#include "ops/split.h"

#include <string.h>

static bool plain_values(const char *option, const char *text, epctx_arena *arena,
                         const epctx_value **out, size_t *count) {
    value_spec *specs;
    epctx_value *values;
    size_t i;
    if (!read_values(option, text, false, arena, &specs, count)) return false;
    values = (epctx_value *)epctx_arena_array(arena, *count, sizeof *values);
    for (i = 0; i < *count && values != NULL; i++) {
        values[i] = specs[i].value;
        if (specs[i].quantized) {
            cli_misuse("%s: a scale is not allowed here", option);
            return false;
        }
    }
    *out = values;
    return values != NULL;
}

static int split(output *out, const char *file, epctx_split_opts *opts) {
    epctx_combined combined;
    epctx_model model;
    epctx_error error;
    int code;
    if (output_open(out, &model, file, &error) != EPCTX_OK) return cli_fail(&error);
    if (out->path != NULL && !out->to_stdout) opts->output_path = out->path;
    if (epctx_split(&model, opts, &combined, &error) != EPCTX_OK) {
        code = cli_fail(&error);
    } else {
        tell_steps(out, &combined, 1);
        code = write_combined(out, &model, &combined);
    }
    epctx_model_close(&model);
    return code;
}

static int run(const cli_args *args) {
    const char *file = args->operands[0];
    epctx_split_opts opts;
    output out;
    int code = CLI_USAGE;
    memset(&opts, 0, sizeof opts);
    if (output_begin(&out, args, file) &&
        plain_values("--inputs", args->inputs, &out.arena, &opts.inputs, &opts.input_count) &&
        plain_values("--outputs", args->outputs, &out.arena, &opts.outputs, &opts.output_count)) {
        if (args->inputs == NULL && args->outputs == NULL)
            cli_misuse("specify --inputs, --outputs or both");
        else
            code = split(&out, file, &opts);
    }
    output_free(&out);
    return code;
}

const cli_command cli_split = {
    .name = "split",
    .group = CLI_CHANGE,
    .operands = "FILE",
    .least = 1,
    .most = 1,
    .summary = "extract a part of a model",
    .about = "Extracts everything between the inputs and the outputs as a model, with the\n"
             "weights, functions and files that it needs.\n",
    .more = "Example: epctx split --outputs features model.onnx -o front.onnx\n",
    .run = run,
};
