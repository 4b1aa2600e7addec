/* epctx stamp: a build stamp for a model that another compiler wrote. */
#include "core/output.h"

#include <string.h>

typedef struct stamp_work {
    const char *file, *ep, *source, *options;
    cli_number graphs;
    output out;
    epctx_model model, from;
    epctx_error error;
} stamp_work;

enum { EPS_MOST = 16 }; /* as many stamps as are compared */

/* The EPs that are asked for, each once. `nameless`: nodes whose source is none, or too long; one
 * EP more than EPS_MOST is only counted. */
static size_t find_eps(const stamp_work *work, char eps[EPS_MOST][256], size_t *nameless) {
    epctx_walk walk;
    epctx_node_view view;
    epctx_epnode node;
    size_t count = 0, i;
    *nameless = 0;
    epctx_walk_begin(&walk, &work->model);
    while (count <= EPS_MOST && epctx_walk_epnode(&walk, &view)) {
        if (epctx_epnode_read(&view, &node, NULL) != EPCTX_OK) continue;
        if (node.source.size == 0 || node.source.size >= sizeof eps[0]) {
            ++*nameless;
            continue;
        }
        if (!cli_is_ep(node.source, work->ep)) continue;
        for (i = 0; i < count && !epctx_str_is(node.source, eps[i]); i++) {
        }
        if (i < count) continue;
        if (count == EPS_MOST) return count + 1;
        memcpy(eps[count], node.source.data, node.source.size);
        eps[count++][node.source.size] = '\0';
    }
    return count;
}

static epctx_status stamp_all(stamp_work *work, char eps[EPS_MOST][256], size_t count) {
    epctx_stamp_opts opts;
    epctx_status status = EPCTX_OK;
    size_t i;
    memset(&opts, 0, sizeof opts);
    opts.source = work->source != NULL ? &work->from : NULL;
    opts.options = work->options;
    opts.graphs = work->graphs.value;
    opts.keep = true;
    for (i = 0; i < count && status == EPCTX_OK; i++) {
        char key[sizeof EPCTX_BUILD_PREFIX + 256];
        output_item what;
        snprintf(key, sizeof key, "%s%.255s", EPCTX_BUILD_PREFIX, eps[i]);
        what = output_item_of("set", "metadata", epctx_str_of(key));
        (void)epctx_model_metadata(&work->model, what.name, &what.before);
        status = epctx_model_stamp(&work->model, eps[i], &opts, &work->error);
        if (status == EPCTX_OK) (void)epctx_model_metadata(&work->model, what.name, &what.after);
        if (status != EPCTX_OK || !epctx_str_eq(what.before, what.after))
            output_change(&work->out, &what, "build stamp of %s", eps[i]);
    }
    return status;
}

static int stamp(stamp_work *work) {
    static char eps[EPS_MOST][256];
    size_t count, nameless;
    int code;
    if (output_open(&work->out, &work->model, work->file, &work->error) != EPCTX_OK)
        return cli_fail(&work->error);
    count = find_eps(work, eps, &nameless);
    if (count > EPS_MOST)
        code = cli_fail_text("%s: there are nodes of more than %d EPs: select one with --ep",
                             work->file, EPS_MOST);
    else if (stamp_all(work, eps, count) != EPCTX_OK)
        code = cli_fail(&work->error);
    else if (count == 0 && nameless > 0)
        code = cli_fail_text("%s: EPContext nodes do not say of which EP they are: epctx repair "
                             "--profile NAME sets their source",
                             work->file);
    else if (count == 0)
        code = cli_fail_text("%s: there is no EPContext node%s%s", work->file,
                             work->ep != NULL ? " of " : "", work->ep != NULL ? work->ep : "");
    else
        code = output_model(&work->out, &work->model);
    epctx_model_close(&work->model);
    return code;
}

static int run(const cli_args *args) {
    const epctx_profile *profile = NULL;
    stamp_work work;
    int code = CLI_USAGE;
    memset(&work, 0, sizeof work);
    work.file = args->operands[0];
    work.ep = args->ep != NULL ? args->ep : args->profile;
    work.source = args->source;
    work.options = args->options;
    work.graphs = args->graphs;
    if (args->ep != NULL && args->profile != NULL) {
        cli_misuse("--ep and --profile cannot be combined");
        return CLI_USAGE;
    }
    if (output_begin(&work.out, args, work.file) && cli_profile(args->profile, &profile)) {
        if (work.source != NULL && !output_spares(work.out.path, work.source)) {
            code = CLI_FAILED;
        } else if (work.source != NULL &&
                   cli_open(&work.from, work.source, &work.error) != EPCTX_OK) {
            code = cli_fail(&work.error);
        } else {
            code = stamp(&work);
            if (work.source != NULL) epctx_model_close(&work.from);
        }
    }
    output_free(&work.out);
    return code;
}

const cli_command cli_stamp = {
    .name = "stamp",
    .group = CLI_CHANGE,
    .operands = "FILE",
    .least = 1,
    .most = 1,
    .summary = "note what a model of any EP was compiled from",
    .about = "Adds the build stamp that 'epctx compile' writes to a model that ONNX Runtime or\n"
             "a vendor's tool compiled: size and hash of the source, of its data files, of\n"
             "each context binary and of the .bin beside an OpenVINO .xml. Afterwards\n"
             "'epctx check --fresh' tells whether one of them changed, and lint and the\n"
             "commands that move a binary notice a wrong one. Of a stamp that is there,\n"
             "source and options stay unless they are given; the new one notes its hash.\n",
    .more = "Example: epctx stamp model_ctx.onnx --source model.onnx --in-place\n",
    .run = run,
};
