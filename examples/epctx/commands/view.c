/* epctx view: models as one page to look at, click on and search. */
#define _POSIX_C_SOURCE 200809L

#include "build/view_page.h"
#include "diff.h"
#include "core/findings.h"
#include "core/neighbours.h"
#include "core/output.h"
#include "core/report.h"
#include "view/view.h"

#include <stdlib.h>
#include <string.h>

/* -- findings -- */

typedef struct finding_list {
    json_writer *w;
    cures cures;
    beside files;
    epctx_buffer text;
} finding_list;

static void put_finding(finding_list *list, int rule, const epctx_finding *found) {
    const finding one = {rule,           found->node, found->graph, found->attribute,
                         found->message, 0,           found->since, found->until};
    findings_put(list->w, &one, &list->cures, &list->text);
}

static void add_finding(void *user, const epctx_finding *found) {
    put_finding((finding_list *)user, (int)found->rule, found);
}

static epctx_status put_findings(json_writer *w, const epctx_model *model, const char *file,
                                 epctx_error *error) {
    finding_list list;
    epctx_check_opts opts;
    epctx_finding loads;
    epctx_error reason;
    epctx_status status;
    uint64_t counts[EPCTX_SEVERITY_COUNT];
    memset(&opts, 0, sizeof opts);
    memset(&list, 0, sizeof list);
    list.w = w;
    beside_init(&list.files, NULL);
    cures_begin(&list.cures, file, &opts, &list.files);
    epctx_buffer_init(&list.text, NULL);
    json_array(w, "findings", JSON_HANGING);
    status = epctx_lint(model, &opts, add_finding, &list, counts, error);
    if (status == EPCTX_OK && counts[0] == 0 &&
        rule_loads_fails(model, file, NULL, &loads, &reason))
        put_finding(&list, RULE_LOADS, &loads);
    json_end(w);
    epctx_buffer_free(&list.text);
    beside_free(&list.files);
    return status;
}

/* -- the page -- */

static epctx_status put_info(json_writer *w, const epctx_model *model, const char *file,
                             epctx_error *error) {
    report all;
    epctx_state state;
    epctx_status status = report_make(&all, model, file, NULL, error);
    if (status == EPCTX_OK) status = epctx_model_state(model, &all.arena, &state, error);
    json_object(w, "info", JSON_HANGING);
    if (status == EPCTX_OK) report_put_json(w, &all, &state);
    json_end(w);
    report_free(&all);
    return status;
}

static epctx_status put_npu(json_writer *w, const epctx_model *model, const char *file, bool npu,
                            epctx_error *error) {
    epctx_node_view node;
    if (view_has_npu(model) || (npu && !cli_first_epnode(model, &node)))
        return view_put_npu(w, file, error);
    json_null(w, "npu");
    return EPCTX_OK;
}

static epctx_status put_model(json_writer *w, const char *file, bool npu, epctx_error *error) {
    epctx_model model;
    epctx_status status = cli_open(&model, file, error);
    if (status != EPCTX_OK) return status;
    json_object(w, NULL, JSON_INLINE);
    status = put_info(w, &model, file, error);
    if (status == EPCTX_OK) status = put_findings(w, &model, file, error);
    if (status == EPCTX_OK && !view_put_graphs(w, &model))
        status = epctx_fail(error, EPCTX_ERR_NOMEM, "out of memory");
    if (status == EPCTX_OK) status = put_npu(w, &model, file, npu, error);
    json_end(w);
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

static int make_data(json_writer *w, const char *const *files, int count, bool npu) {
    epctx_error error;
    int code = CLI_OK, i;
    json_indent(w, 0, 0);
    json_object(w, NULL, JSON_INLINE);
    json_uint(w, "version", 1);
    json_text(w, "tool", EPCTX_VERSION_STRING);
    json_array(w, "models", JSON_HANGING);
    for (i = 0; i < count && code == CLI_OK; i++)
        if (put_model(w, files[i], npu, &error) != EPCTX_OK) code = cli_fail(&error);
    json_end(w);
    if (code == CLI_OK && count == 2) {
        code = diff_put_json(w, files[0], files[1]);
    } else {
        json_array(w, "changes", JSON_INLINE);
        json_end(w);
    }
    json_end(w);
    return code;
}

/* The page in memory that the caller frees. */
static int make_page(const char *const *files, int count, bool npu, char **page, size_t *size) {
    epctx_buffer data;
    json_writer w;
    FILE *out;
    int code;
    *page = NULL;
    *size = 0;
    epctx_buffer_init(&data, NULL);
    json_to_buffer(&w, &data);
    code = make_data(&w, files, count, npu);
    if (code == CLI_OK && !json_is_whole(&w)) code = cli_fail_text("out of memory");
    out = code == CLI_OK ? open_memstream(page, size) : NULL;
    if (out != NULL) {
        fwrite(view_page_before, 1, sizeof view_page_before, out);
        put_escaped(out, (const char *)data.data, data.size);
        fwrite(view_page_after, 1, sizeof view_page_after, out);
    }
    if (code == CLI_OK && (out == NULL || fclose(out) != 0)) code = cli_fail_text("out of memory");
    epctx_buffer_free(&data);
    return code;
}

static int write_page(const char *path, epctx_overwrite policy, const char *page, size_t size) {
    epctx_write_opts opts;
    epctx_error error;
    memset(&opts, 0, sizeof opts);
    opts.overwrite = policy;
    if (policy != EPCTX_OVERWRITE_FAIL && neighbours_allow_file(path, &error) != EPCTX_OK)
        return cli_fail(&error);
    if (epctx_write_bytes(cli_io(), path, page, size, &opts, &error) == EPCTX_OK) {
        cli_wrote_files();
        return CLI_OK;
    }
    if (error.status == EPCTX_ERR_EXISTS)
        return cli_fail_cure(&error, "-f replaces it, --overwrite backup keeps it as %s~", path);
    return cli_fail(&error);
}

static int run(const cli_args *args) {
    const char *path = args->output;
    epctx_overwrite policy = EPCTX_OVERWRITE_FAIL;
    char *page = NULL;
    size_t size = 0;
    int code, i;
    if (!output_policy(args, &policy)) return CLI_USAGE;
    if (path == NULL) {
        cli_misuse("specify the page: -o PAGE.html; - is standard output");
        return CLI_USAGE;
    }
    for (i = 0; i < args->count; i++)
        if (!output_spares(path, args->operands[i])) return CLI_FAILED;
    cli_progress_begin("view", 0);
    code = make_page(args->operands, args->count, args->npu, &page, &size);
    cli_progress_end();
    if (code == CLI_OK && strcmp(path, "-") == 0)
        fwrite(page, 1, size, stdout);
    else if (code == CLI_OK)
        code = write_page(path, policy, page, size);
    free(page);
    return code;
}

const cli_command cli_view = {
    .name = "view",
    .group = CLI_LOOK,
    .operands = "MODEL [MODEL]",
    .least = 1,
    .most = 2,
    .summary = "make a page that shows a model, or two side by side",
    .about = "Writes one HTML page that needs no network and no server: the graph to pan, zoom\n"
             "and search, with bodies and functions to unfold and nodes coloured by EP; for\n"
             "each node its attributes, types and sizes; partitions, files, findings of lint,\n"
             "build stamp and metadata. Of two models it also shows what 'epctx diff' finds.\n"
             "Works for ordinary models, too. For those of the reference NPU there are its\n"
             "commands and the memory plan. The page holds names and short values, no weights.\n",
    .more = "Example: epctx view model_ctx.onnx -o model.html\n",
    .run = run,
};
