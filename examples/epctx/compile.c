/* epctx compile: an ordinary model becomes an EPContext model of the reference NPU. */
#include "cli.h"

#include <inttypes.h>
#include <string.h>

typedef struct settings {
    epctx_gen_opts gen;
    const char *arch;
    bool dry_run;
} settings;

/* The session options of ORT, as this command knows them. */
static void list_options(void)
{
    static const char *const phases[] = {"-", "generate", "load", "both"};
    static const char *const types[] = {"switch", "text",   "file",  "folder",
                                        "name",   "number", "choice"};
    size_t count, i;
    const epctx_option_info *list = epctx_option_list(&count);
    for (i = 0; i < count; i++)
        printf("%s\t%s\t\"%s\"\t%s\t%s%s\t%s\n", list[i].key, types[list[i].type],
               list[i].fallback, phases[list[i].phases], list[i].ort[0] ? "kOrtSessionOption" : "-",
               list[i].ort, list[i].text);
}

static epctx_status outputs_of(const epctx_model *model, const char *file, const settings *set,
                               const epctx_backend *backend, epctx_arena *arena, epctx_outputs *out,
                               epctx_error *error)
{
    epctx_dependency *files;
    epctx_preflight_in in;
    epctx_options options;
    const char **inputs;
    size_t count, i;
    epctx_status status = epctx_model_files(model, NULL, arena, &files, &count, error);
    if (status != EPCTX_OK) return status;
    epctx_options_init(&options, arena);
    options.values[EPCTX_OPTION_CONTEXT_FILE_PATH] = set->gen.context_file_path;
    options.values[EPCTX_OPTION_CONTEXT_EMBED_MODE] = set->gen.embed ? "1" : "0";
    options.values[EPCTX_OPTION_OVERWRITE] = set->gen.overwrite ? "1" : "0";
    memset(&in, 0, sizeof in);
    in.model_path = file;
    in.eps = &backend->short_name;
    in.ep_count = 1;
    inputs = epctx_arena_array(arena, count, sizeof *inputs);
    if (inputs == NULL) return epctx_fail(error, EPCTX_ERR_NOMEM, "out of memory");
    for (i = 0; i < count; i++)
        if (files[i].path != NULL) inputs[in.input_count++] = files[i].path;
    in.inputs = inputs;
    return epctx_preflight(&options, &in, arena, out, error);
}

/* Says what would be written, or why it would fail before anything is compiled. */
static int dry_run(const epctx_model *model, const char *file, const settings *set,
                   const epctx_backend *backend)
{
    epctx_outputs out;
    epctx_arena arena;
    epctx_error error;
    epctx_status status;
    epctx_arena_init(&arena, NULL);
    status = outputs_of(model, file, set, backend, &arena, &out, &error);
    if (status == EPCTX_OK) {
        printf("model          %s\n", out.model);
        printf("binary         %s\n", out.binary_count > 0 ? out.binaries[0] : "embedded");
        puts("note           a dry run: nothing was compiled, nothing was written");
    }
    epctx_arena_free(&arena);
    if (status == EPCTX_ERR_EXISTS) return cli_fail_text("%s (-f replaces it)", error.message);
    return status == EPCTX_OK ? CLI_OK : cli_fail(&error);
}

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

static int compile(const char *file, const settings *set)
{
    static epctx_gen_report report; /* two paths: too big for a small stack */
    double start = cli_now();
    epctx_backend backend;
    epctx_model model;
    epctx_error error;
    size_t optional;
    epctx_status status = cli_backend(set->arch, &backend, &error);
    if (status != EPCTX_OK) return cli_fail(&error);
    status = epctx_model_open_file(&model, file, NULL, &error);
    if (status != EPCTX_OK) return cli_fail(&error);
    if (set->dry_run) {
        int code = dry_run(&model, file, set, &backend);
        epctx_model_close(&model);
        return code;
    }
    status = cli_optional_inputs(&model, false, &optional, &error);
    /* From IR version 4 on such an initializer is only a default; before, it is the constant. */
    if (epctx_model_read(&model).ir_version < 4) optional = 0;
    if (status == EPCTX_OK) status = epctx_generate(&model, &backend, &set->gen, &report, &error);
    epctx_model_close(&model);
    if (status == EPCTX_ERR_EXISTS && !set->gen.overwrite)
        return cli_fail_text("%s (-f replaces it)", error.message);
    if (status != EPCTX_OK) return cli_fail(&error);
    print_report(&report, &backend, cli_now() - start);
    if (optional > 0)
        printf(
            "note           %zu inputs have an initializer that callers may override: they are no\n"
            "               constants and stay outside the binary\n",
            optional);
    return CLI_OK;
}

static int run(int argc, char **argv)
{
    settings set;
    const char *file;
    bool list = false;
    memset(&set, 0, sizeof set);
    /* --options needs no file. */
    if (argc == 1 && strcmp(argv[0], "--options") == 0) {
        list_options();
        return CLI_OK;
    }
    {
        const cli_option options[] = {{"-o", &set.gen.context_file_path, NULL},
                                      {"--embed", NULL, &set.gen.embed},
                                      {"--prefix", &set.gen.name_prefix, NULL},
                                      {"--overwrite", NULL, &set.gen.overwrite},
                                      {"-f", NULL, &set.gen.overwrite},
                                      {"--require-all", NULL, &set.gen.require_all},
                                      {"--arch", &set.arch, NULL},
                                      {"--dry-run", NULL, &set.dry_run},
                                      {"--options", NULL, &list},
                                      {NULL, NULL, NULL}};
        if (!cli_parse(&cli_compile, argc, argv, options, &file, 1)) return CLI_USAGE;
    }
    return compile(file, &set);
}

const cli_command cli_compile = {
    "compile",
    "[-o OUT] [--embed] [--prefix P] [-f] [--require-all] [--arch A] [--dry-run]\n"
    "                     MODEL | --options",
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
    "  --dry-run         only check the names of the outputs and whether they can be written\n"
    "  --options         list ONNX Runtime's session options instead: key, type, default, phase,\n"
    "                    ORT's constant, meaning, separated by tabs\n",
    run,
};
