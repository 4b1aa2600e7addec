/* epctx lint: judges a model by the rules of ORT, of the design document and of each EP. */
#include "rules.h"

#include <inttypes.h>
#include <string.h>

typedef struct lint_output {
    const char *file;
    bool json, hints, colour, first;
} lint_output;

static const char *const severities[EPCTX_SEVERITY_COUNT] = {"error", "warning", "hint"};

static void put_json(const lint_output *out, const epctx_finding *finding) {
    printf("%s\n  {\"id\": \"%s\", \"rule\": \"%s\", \"severity\": \"%s\", \"node\": ",
           out->first ? "" : ",", finding->info.id, finding->info.name,
           severities[finding->info.severity]);
    cli_put_json(stdout, finding->node);
    fputs(", \"graph\": ", stdout);
    cli_put_json(stdout, finding->graph);
    fputs(", \"attribute\": ", stdout);
    cli_put_json(stdout, epctx_str_of(finding->attribute));
    fputs(", \"message\": ", stdout);
    cli_put_json(stdout, epctx_str_of(finding->message));
    fputs(", \"fix\": ", stdout);
    cli_put_json(stdout, epctx_str_of(finding->info.fix));
    putchar('}');
}

static void put_text(const lint_output *out, const epctx_finding *finding) {
    static const char *const colours[EPCTX_SEVERITY_COUNT] = {"\033[31m", "\033[33m", "\033[36m"};
    epctx_severity severity = finding->info.severity;
    printf("%s: %s%s %s%s %s: ", out->file, out->colour ? colours[severity] : "",
           severities[severity], finding->info.id, out->colour ? "\033[0m" : "",
           finding->info.name);
    if (finding->graph.size > 0) {
        fputs("in '", stdout);
        cli_put(stdout, finding->graph);
        fputs("': ", stdout);
    }
    if (finding->node.size > 0) {
        putchar('\'');
        cli_put(stdout, finding->node);
        fputs("': ", stdout);
    }
    if (finding->attribute[0] != '\0') {
        cli_put(stdout, epctx_str_of(finding->attribute));
        putchar(' ');
    }
    cli_put(stdout, epctx_str_of(finding->message));
    printf("\n    fix: %s\n", finding->info.fix);
}

static void found(void *user, const epctx_finding *finding) {
    lint_output *out = (lint_output *)user;
    if (finding->info.severity == EPCTX_SEVERITY_HINT && !out->hints) return;
    cli_progress_hide();
    if (out->json)
        put_json(out, finding);
    else
        put_text(out, finding);
    out->first = false;
    cli_progress_add(0);
}

static void list_rules(bool json) {
    int i;
    if (json) putchar('[');
    for (i = 0; i < RULE_COUNT; i++) {
        epctx_rule_info rule = rule_info(i);
        if (json)
            printf(
                "%s\n  {\"id\": \"%s\", \"rule\": \"%s\", \"severity\": \"%s\", \"text\": \"%s\", "
                "\"fix\": \"%s\"}",
                i > 0 ? "," : "", rule.id, rule.name, severities[rule.severity], rule.text,
                rule.fix);
        else
            printf("%s %-26s %s\n", rule.id, rule.name, rule.text);
    }
    if (json) puts("\n]");
}

static int lint(const char *file, const epctx_check_opts *opts, lint_output *out) {
    uint64_t counts[EPCTX_SEVERITY_COUNT];
    epctx_model model;
    epctx_finding finding;
    epctx_error error;
    epctx_status status;
    cli_progress_begin("lint", 0);
    status = cli_open(&model, file, &error);
    if (status != EPCTX_OK) return cli_fail(&error);
    if (out->json) {
        fputs("{\n\"file\": ", stdout);
        cli_put_json(stdout, epctx_str_of(file));
        fputs(",\n\"findings\": [", stdout);
    }
    status = epctx_lint(&model, opts, found, out, counts, &error);
    if (status == EPCTX_OK && counts[0] == 0 && !opts->no_files &&
        rule_loads_fails(&model, file, opts->context_file_path, &finding, &error)) {
        found(out, &finding);
        counts[0]++;
    }
    epctx_model_close(&model);
    cli_progress_end();
    if (status != EPCTX_OK) return cli_fail(&error);
    if (out->json)
        printf("],\n\"errors\": %" PRIu64 ",\n\"warnings\": %" PRIu64 ",\n\"hints\": %" PRIu64
               "\n}\n",
               counts[0], counts[1], counts[2]);
    else
        printf("%s: %" PRIu64 " error%s, %" PRIu64 " warning%s, %" PRIu64 " hint%s%s\n", file,
               counts[0], cli_plural(counts[0]), counts[1], cli_plural(counts[1]), counts[2],
               cli_plural(counts[2]), counts[2] > 0 && !out->hints ? " (--hints shows them)" : "");
    return counts[0] > 0 ? CLI_FAILED : CLI_OK;
}

static bool has_option(int argc, char **argv, const char *name) {
    int i;
    for (i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], name) == 0) return true;
    return false;
}

static int run(int argc, char **argv) {
    bool rules = false, no_files = false;
    const char *profile = NULL, *file = NULL;
    epctx_check_opts opts;
    lint_output out = {NULL, false, false, false, true};
    memset(&opts, 0, sizeof opts);
    const cli_option options[] = {
        {"--json", NULL, &out.json},
        {"--hints", NULL, &out.hints},
        {"--rules", NULL, &rules},
        {"--no-files", NULL, &no_files},
        {"--ep", &profile, NULL},
        {"--context-path", &opts.context_file_path, NULL},
        {"--external-folder", &opts.external_folder, NULL},
        {NULL, NULL, NULL},
    };
    /* --rules needs no file. */
    if (!cli_parse(&cli_lint, argc, argv, options, &file,
                   has_option(argc, argv, "--rules") ? 0 : 1))
        return CLI_USAGE;
    if (rules) {
        list_rules(out.json);
        return CLI_OK;
    }
    if (profile != NULL && !cli_profile(profile, &opts.profile)) return CLI_USAGE;
    opts.no_files = no_files;
    out.file = file;
    out.colour = !out.json && cli_colour(stdout);
    return lint(file, &opts, &out);
}

const cli_command cli_lint = {
    "lint",
    "[--ep NAME] [--hints] [--json] [--no-files] [--hugging-face]\n"
    "             [--context-path FILE] [--external-folder FOLDER] FILE\n"
    "       epctx lint --rules [--json]",
    "report errors in a model, by the rules of ONNX Runtime and its EP",
    "Checks the model, its EPContext nodes, the files that they name and the\n"
    "compatibility info. An error (E...) is something that ONNX Runtime 1.30 or the\n"
    "EP rejects. Lint does not check whether operators exist or match their schemas.\n"
    "The rules for a node are those of the EP in its source, or those of --ep. The\n"
    "exit code is 1 if there is an error; warnings (W...) and hints (I...) do not\n"
    "affect it.\n\n"
    "  --ep NAME                 the EP that will load the model: its name, in any\n"
    "                            case, or one of qnn, qnn_plugin, openvino,\n"
    "                            tensorrt, nv_tensorrt_rtx, migraphx, vitisai,\n"
    "                            telum, example, npu, generic\n"
    "  --hints                   print hints, too\n"
    "  --json                    print one JSON object\n"
    "  --rules                   list all rules\n"
    "  --no-files                do not look at files or into context binaries\n"
    "  --hugging-face            accept links into the blobs folder of a Hugging\n"
    "                            Face cache\n"
    "  --context-path FILE       ep.context_file_path: binaries are in its folder\n"
    "  --external-folder FOLDER  session.model_external_initializers_file_folder_path\n"
    "\nExample: epctx lint --ep qnn model_ctx.onnx\n",
    run,
};
