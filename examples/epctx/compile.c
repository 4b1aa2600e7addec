/* epctx compile: an ordinary model becomes an EPContext model of the reference NPU. */
#include "cli.h"

#include <inttypes.h>
#include <string.h>

typedef struct settings {
    epctx_gen_opts gen;
    const char *arch;
    bool json;
} settings;

static void print_report(const epctx_gen_report *report, const epctx_backend *backend,
                         double milliseconds)
{
    printf("partitions     %zu\n", report->partition_count);
    printf("nodes          %zu compiled for %s (%s), %zu left to the CPU\n", report->compiled_nodes,
           backend->source, backend->hardware_architecture, report->cpu_nodes);
    if (report->binary_path[0] != '\0')
        printf("binary         %s, %" PRIu64 " bytes\n", report->binary_path, report->binary_size);
    else
        printf("binary         embedded, %" PRIu64 " bytes\n", report->binary_size);
    printf("model          %s\n", report->context_path);
    printf("time           %.1f ms\n", milliseconds);
}

static void print_json(const char *file, const epctx_gen_report *report,
                       const epctx_backend *backend, size_t optional, double milliseconds)
{
    putchar('{');
    cli_json_str("source_model", epctx_str_of(file), ",\n");
    cli_json_str("model", epctx_str_of(report->context_path), ",\n\"binary\": ");
    if (report->binary_path[0] != '\0')
        cli_put_json(stdout, epctx_str_of(report->binary_path));
    else
        fputs("null", stdout);
    printf(",\n\"binary_size\": %" PRIu64 ",\n\"partitions\": %zu,\n\"compiled_nodes\": %zu,\n"
           "\"cpu_nodes\": %zu,\n\"overridable_inputs\": %zu,\n",
           report->binary_size, report->partition_count, report->compiled_nodes, report->cpu_nodes,
           optional);
    cli_json_str("source", epctx_str_of(backend->source), ",\n");
    cli_json_str("hardware_architecture", epctx_str_of(backend->hardware_architecture), ",\n");
    printf("\"milliseconds\": %.3f}\n", milliseconds);
}

static int compile(const char *file, const settings *set)
{
    static epctx_gen_report report; /* two paths: too big for a small stack */
    double start = cli_now();
    epctx_backend backend;
    epctx_model model;
    epctx_error error;
    epctx_open_opts opts;
    size_t optional;
    epctx_status status = cli_backend(set->arch, &backend, &error);
    if (status != EPCTX_OK) return cli_fail(&error);
    memset(&opts, 0, sizeof opts);
    opts.io = cli_progress_io();
    cli_progress_begin("compile", 0);
    status = epctx_model_open_file(&model, file, &opts, &error);
    if (status != EPCTX_OK) return cli_fail(&error);
    status = cli_optional_inputs(&model, false, &optional, &error);
    /* From IR version 4 on such an initializer is only a default; before, it is the constant. */
    if (epctx_model_read(&model).ir_version < 4) optional = 0;
    if (status == EPCTX_OK) status = epctx_generate(&model, &backend, &set->gen, &report, &error);
    epctx_model_close(&model);
    cli_progress_end();
    if (status == EPCTX_ERR_EXISTS && !set->gen.overwrite)
        return cli_fail_text("%s (-f replaces it)", error.message);
    if (status != EPCTX_OK) return cli_fail(&error);
    if (set->json) {
        print_json(file, &report, &backend, optional, cli_now() - start);
        return CLI_OK;
    }
    print_report(&report, &backend, cli_now() - start);
    if (optional > 0)
        printf("note           %zu input%s with an initializer that callers may override: no\n"
               "               constant%s, outside of the binary\n",
               optional, cli_plural(optional), cli_plural(optional));
    return CLI_OK;
}

static int run(int argc, char **argv)
{
    settings set;
    const char *file;
    memset(&set, 0, sizeof set);
    {
        const cli_option options[] = {{"-o", &set.gen.context_file_path, NULL},
                                      {"--embed", NULL, &set.gen.embed},
                                      {"--prefix", &set.gen.name_prefix, NULL},
                                      {"--overwrite", NULL, &set.gen.overwrite},
                                      {"-f", NULL, &set.gen.overwrite},
                                      {"--require-all", NULL, &set.gen.require_all},
                                      {"--arch", &set.arch, NULL},
                                      {"--json", NULL, &set.json},
                                      {NULL, NULL, NULL}};
        if (!cli_parse(&cli_compile, argc, argv, options, &file, 1)) return CLI_USAGE;
    }
    return compile(file, &set);
}

const cli_command cli_compile = {
    "compile",
    "[-o OUT] [--embed] [--prefix P] [-f] [--require-all] [--arch A] [--json] MODEL",
    "compile a model for the reference NPU to an EPContext model",
    "Replaces what the reference NPU can compute by EPContext nodes. MODEL.onnx becomes\n"
    "MODEL_ctx.onnx with the compiled code in MODEL_npu.bin beside it. Everything else in the\n"
    "model stays as it is; nodes that the NPU does not take stay ordinary nodes.\n\n"
    "  -o OUT            name of the EPContext model\n"
    "  --embed           put the compiled code into the model instead of a file\n"
    "  --prefix P        put P before the names of the EPContext nodes\n"
    "  -f, --overwrite   replace outputs that exist\n"
    "  --require-all     fail when a node would be left to the CPU\n"
    "  --arch A          architecture to compile for\n"
    "  --json            print the report as one JSON object\n",
    run,
};
