/* epctx view: models as one page to look at, click on and search. */
#define _POSIX_C_SOURCE 200809L

#include "build/view_page.h"
#include "output.h"
#include "report.h"
#include "rules.h"
#include "view.h"

#include <stdlib.h>
#include <string.h>

/* -- findings -- */

typedef struct finding_list {
    FILE *out;
    bool first;
} finding_list;

static void put_finding(void *user, const epctx_finding *finding) {
    static const char *const severities[EPCTX_SEVERITY_COUNT] = {"error", "warning", "hint"};
    finding_list *list = (finding_list *)user;
    FILE *out = list->out;
    fprintf(out, "%s\n{\"id\": \"%s\", \"severity\": \"%s\", ", list->first ? "" : ",",
            finding->info.id, severities[finding->info.severity]);
    list->first = false;
    cli_put_member(out, "rule", epctx_str_of(finding->info.name), ", ");
    cli_put_member(out, "node", finding->node, ", ");
    cli_put_member(out, "graph", finding->graph, ", ");
    cli_put_member(out, "attribute", epctx_str_of(finding->attribute), ", ");
    cli_put_member(out, "message", epctx_str_of(finding->message), ", ");
    cli_put_member(out, "fix", epctx_str_of(finding->info.fix), "}");
}

epctx_status view_put_findings(FILE *out, const epctx_model *model, const char *file,
                               epctx_error *error) {
    finding_list list = {out, true};
    epctx_check_opts opts;
    epctx_finding finding;
    epctx_error reason;
    epctx_status status;
    uint64_t counts[EPCTX_SEVERITY_COUNT];
    memset(&opts, 0, sizeof opts);
    fputc('[', out);
    status = epctx_lint(model, &opts, put_finding, &list, counts, error);
    if (status == EPCTX_OK && counts[0] == 0 &&
        rule_loads_fails(model, file, NULL, &finding, &reason))
        put_finding(&list, &finding);
    fputc(']', out);
    return status;
}

/* -- the page -- */

static epctx_status put_info(FILE *out, const epctx_model *model, const char *file,
                             epctx_error *error) {
    report all;
    epctx_state state;
    epctx_status status = report_make(&all, model, file, error);
    if (status == EPCTX_OK) status = epctx_model_state(model, &all.arena, &state, error);
    if (status == EPCTX_OK) report_put_json(out, &all, &state);
    report_free(&all);
    return status;
}

static epctx_status put_model(FILE *out, const char *file, epctx_error *error) {
    epctx_model model;
    epctx_status status = cli_open(&model, file, error);
    if (status != EPCTX_OK) return status;
    fputs("{\"info\": ", out);
    status = put_info(out, &model, file, error);
    fputs(", \"findings\": ", out);
    if (status == EPCTX_OK) status = view_put_findings(out, &model, file, error);
    fputs(", \"graphs\": ", out);
    if (status == EPCTX_OK && !view_put_graphs(out, &model))
        status = epctx_fail(error, EPCTX_ERR_NOMEM, "out of memory");
    fputs("}", out);
    epctx_model_close(&model);
    return status;
}

/* JSON between the tags of a script element: nothing in it can end the element or begin another. */
static void put_escaped(FILE *out, const char *text, size_t size) {
    size_t from = 0, i;
    for (i = 0; i < size; i++) {
        if (text[i] != '<' && text[i] != '>' && text[i] != '&') continue;
        fwrite(text + from, 1, i - from, out);
        fprintf(out, "\\u%04x", (unsigned)text[i]);
        from = i + 1;
    }
    fwrite(text + from, 1, size - from, out);
}

static epctx_status make_data(FILE *out, const char *const *files, int count, epctx_error *error) {
    epctx_status status = EPCTX_OK;
    int i;
    fprintf(out, "{\"version\": 1, \"tool\": \"%s\", \"models\": [", EPCTX_VERSION_STRING);
    for (i = 0; i < count && status == EPCTX_OK; i++) {
        fputs(i > 0 ? ",\n" : "", out);
        status = put_model(out, files[i], error);
    }
    fputs("]}", out);
    return status;
}

/* The page in memory that the caller frees. */
static epctx_status make_page(const char *const *files, int count, char **page, size_t *size,
                              epctx_error *error) {
    char *data = NULL;
    size_t data_size = 0;
    FILE *out = open_memstream(&data, &data_size);
    epctx_status status;
    *page = NULL;
    *size = 0;
    if (out == NULL) return epctx_fail(error, EPCTX_ERR_NOMEM, "out of memory");
    status = make_data(out, files, count, error);
    if (fclose(out) != 0 && status == EPCTX_OK)
        status = epctx_fail(error, EPCTX_ERR_NOMEM, "out of memory");
    out = status == EPCTX_OK ? open_memstream(page, size) : NULL;
    if (out != NULL) {
        fwrite(view_page_before, 1, sizeof view_page_before, out);
        put_escaped(out, data, data_size);
        fwrite(view_page_after, 1, sizeof view_page_after, out);
    }
    if (status == EPCTX_OK && (out == NULL || fclose(out) != 0))
        status = epctx_fail(error, EPCTX_ERR_NOMEM, "out of memory");
    free(data);
    return status;
}

static int write_page(const char *path, epctx_overwrite policy, const char *page, size_t size) {
    epctx_write_opts opts;
    epctx_error error;
    memset(&opts, 0, sizeof opts);
    opts.overwrite = policy;
    if (epctx_write_bytes(cli_io(), path, page, size, &opts, &error) == EPCTX_OK) {
        cli_wrote_files();
        return CLI_OK;
    }
    if (error.status == EPCTX_ERR_EXISTS)
        return cli_fail_text("%s (-f replaces it, --overwrite backup keeps it as %s~)",
                             error.message, path);
    return cli_fail(&error);
}

static int run(int argc, char **argv) {
    const char *files[2] = {NULL, NULL}, *path = NULL, *overwrite = NULL;
    bool force = false;
    epctx_overwrite policy = EPCTX_OVERWRITE_FAIL;
    epctx_error error;
    char *page;
    size_t size;
    int count, code;
    const cli_option options[] = {{"-o", &path, NULL},
                                  {"--output", &path, NULL},
                                  {"-f", NULL, &force},
                                  {"--overwrite", &overwrite, NULL},
                                  {NULL, NULL, NULL}};
    count = cli_parse_some(&cli_view, argc, argv, options, files, 1, 2);
    if (count < 0 || !output_policy(overwrite, force, true, &policy)) return CLI_USAGE;
    if (path == NULL) {
        cli_say("epctx: specify the page: -o PAGE.html; - is standard output\n");
        return CLI_USAGE;
    }
    if (make_page(files, count, &page, &size, &error) != EPCTX_OK) {
        code = cli_fail(&error);
    } else if (strcmp(path, "-") == 0) {
        fwrite(page, 1, size, stdout);
        code = CLI_OK;
    } else {
        code = write_page(path, policy, page, size);
    }
    free(page);
    return code;
}

const cli_command cli_view = {
    "view",
    "-o PAGE [-f | --overwrite POLICY] MODEL [MODEL]",
    "make a page that shows a model, or two side by side",
    "Writes one HTML page that needs no network and no server: the graph to pan, zoom\n"
    "and search, with bodies and functions to unfold and nodes coloured by EP; for\n"
    "each node its attributes, types and sizes; partitions, files, findings of lint,\n"
    "build stamp and metadata. Of two models it also shows what 'epctx diff' finds.\n"
    "Works for ordinary models, too. The page holds names and short values, no\n"
    "weights.\n\n"
    "  -o, --output PAGE      the page; - is standard output\n"
    "  --overwrite POLICY     if PAGE exists: fail (default), replace, or backup\n"
    "                         (keeps it as PAGE~)\n"
    "  -f                     same as --overwrite replace\n\n"
    "Example: epctx view model_ctx.onnx -o model.html\n",
    run,
};
