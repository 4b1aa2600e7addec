/* epctx stamp: a build stamp for a model that another compiler wrote. */
#include "core/output.h"
#include "binary/context.h"
#include "delivery/each.h"
#include "ops/needs.h"

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
        if (epctx_view_read_epnode(&view, &node, NULL) != EPCTX_OK) continue;
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
    opts.source_model = work->source != NULL ? &work->from : NULL;
    opts.options = work->options;
    opts.graphs = work->graphs.value;
    opts.keep = true;
    for (i = 0; i < count && status == EPCTX_OK; i++) {
        char key[sizeof EPCTX_BUILD_PREFIX + 256];
        output_item what;
        snprintf(key, sizeof key, "%s%.255s", EPCTX_BUILD_PREFIX, eps[i]);
        what = output_item_of("set", "metadata", epctx_str_of(key));
        (void)epctx_model_metadata(&work->model, what.name, &what.before);
        status = binary_check_contexts(&work->model, eps[i], &work->error);
        if (status == EPCTX_OK)
            status =
                needs_to_stamp(&work->model, eps[i], &work->out.arena, &opts.needs, &work->error);
        if (status == EPCTX_OK)
            status = epctx_edit_stamp(&work->model, eps[i], &opts, &work->error);
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

static int stamp_file(void *user, const char *file, json_writer *w) {
    const cli_args *args = (const cli_args *)user;
    const epctx_profile *profile = NULL;
    stamp_work work;
    int code = CLI_USAGE;
    memset(&work, 0, sizeof work);
    work.file = file;
    work.ep = args->ep != NULL ? args->ep : args->profile;
    work.source = args->source;
    work.options = args->options;
    work.graphs = args->graphs;
    if (output_begin(&work.out, args, work.file) && cli_profile(args->profile, &profile)) {
        work.out.several = w;
        work.out.of = file;
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

static int run(const cli_args *args) {
    cli_args same = *args;
    if (args->ep != NULL && args->profile != NULL) {
        cli_misuse("--ep and --profile cannot be combined");
        return CLI_USAGE;
    }
    return each_change(args, stamp_file, &same);
}

const cli_command cli_stamp = {
    .name = "stamp",
    .group = CLI_CHANGE,
    .operands = "FILE...",
    .least = 1,
    .summary = "note what a model of any EP was compiled from",
    .about = "Adds the build stamp that 'epctx compile' writes to a model that ONNX Runtime or\n"
             "a vendor's tool compiled: size and hash of the source, of its data files, of\n"
             "each context binary, of the .bin beside an OpenVINO .xml and of the files to\n"
             "which a binary refers. Afterwards 'epctx check --fresh' tells which of them\n"
             "changed, and lint and the commands that move a binary notice a wrong one.\n"
             "Refuses a file that is surely no context binary of the EP. Of a stamp that is\n"
             "there, source and options stay unless they are given; the new one notes its\n"
             "hash.\n"
             "Several files, and the EPContext models of folders, are changed in their places:\n"
             "--in-place.\n",
    .more = "Example: epctx stamp model_ctx.onnx --source model.onnx --in-place\n",
    .run = run,
};
