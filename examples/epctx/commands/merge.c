/* epctx merge: several models become one, side by side or one behind the other. */
#include "core/combine.h"
#include "ops/merge.h"

#include <stdlib.h>
#include <string.h>

typedef struct merge_wish {
    output out;
    epctx_merge_opts opts;
    const char *connect, *prefix, *metadata;
    epctx_part *parts;
    epctx_model *models;
    size_t count;
} merge_wish;

/* "[N:]NAME", N the number of a model from 1. A value's name may begin like that, too: the number
 * counts when there is such a model. */
static epctx_str read_end(const merge_wish *w, epctx_str text, size_t *part) {
    epctx_str rest = text;
    uint64_t number;
    *part = EPCTX_ANY_PART;
    if (!epctx_str_take_number(&rest, &number) || !epctx_str_starts(rest, ":") || number == 0 ||
        number > w->count)
        return text;
    *part = (size_t)number - 1;
    epctx_str_cut(&rest, ':');
    return rest;
}

static bool read_connections(merge_wish *w) {
    const char *rest = w->connect;
    epctx_connection *list;
    epctx_str part;
    if (rest == NULL) return true;
    list = (epctx_connection *)epctx_arena_array(&w->out.arena, strlen(rest) + 1, sizeof *list);
    w->opts.connections = list;
    while (list != NULL && next_part(&rest, &w->out.arena, &part)) {
        const char *equals = (const char *)memchr(part.data, '=', part.size);
        epctx_connection *link = &list[w->opts.connection_count++];
        epctx_str first = part, second = part;
        if (equals == NULL || equals == part.data || equals + 1 == part.data + part.size) {
            cli_misuse("--connect: '%.*s' is not of the form OUTPUT=INPUT", (int)part.size,
                       part.data);
            return false;
        }
        first.size = (size_t)(equals - part.data);
        second.data = equals + 1;
        second.size = part.size - first.size - 1;
        link->output = read_end(w, first, &link->from);
        link->input = read_end(w, second, &link->to);
    }
    return list != NULL;
}

/* One prefix for each model, from the first on; "-" leaves the choice to the library. */
static bool read_prefixes(merge_wish *w) {
    const char *rest = w->prefix;
    epctx_str part;
    size_t i;
    if (rest == NULL) return true;
    for (i = 0; next_part(&rest, &w->out.arena, &part) || (i == 0 && *rest == '\0'); i++) {
        if (i == w->count) {
            cli_misuse("--prefix: there are more prefixes than models");
            return false;
        }
        if (w->prefix[0] == '\0') part = epctx_str_of("");
        if (!epctx_str_is(part, "-")) w->parts[i].prefix = epctx_arena_copy(&w->out.arena, part);
        if (*rest == '\0') break;
    }
    return true;
}

/* As the table has them. */
static epctx_metadata_policy metadata_of(cli_choice word) {
    return word == 2   ? EPCTX_METADATA_FIRST
           : word == 3 ? EPCTX_METADATA_PREFIX
                       : EPCTX_METADATA_REFUSE;
}

static int merge(merge_wish *w, const char *const *files) {
    epctx_combined combined;
    epctx_error error;
    size_t i;
    for (i = 0; i < w->count; i++) {
        if (output_open(&w->out, &w->models[i], files[i], &error) != EPCTX_OK)
            return cli_fail(&error);
        w->parts[i].model = &w->models[i];
    }
    w->out.sources = files;
    w->out.source_count = w->count;
    if (w->out.path != NULL && !w->out.to_stdout) w->opts.output_path = w->out.path;
    if (epctx_merge(w->parts, w->count, &w->opts, &combined, &error) != EPCTX_OK)
        return w->opts.allow_stale ? cli_fail(&error) : cli_fail_stale(&error, "--allow-stale");
    tell_steps(&w->out, &combined, w->count);
    return write_combined(&w->out, &w->models[0], &combined);
}

static int run(const cli_args *args) {
    merge_wish w;
    int code = CLI_USAGE;
    size_t i;
    memset(&w, 0, sizeof w);
    w.opts.chain = args->chain;
    w.opts.keep_outputs = args->keep_outputs;
    w.opts.share_inputs = args->share_inputs;
    w.opts.force_opset = args->force_opset;
    w.opts.allow_stale = args->allow_stale;
    w.opts.metadata = metadata_of(args->metadata);
    w.connect = args->connect;
    w.prefix = args->prefix;
    if (cli_may_stand("--prefix", w.prefix) && output_begin(&w.out, args, args->operands[0])) {
        w.count = (size_t)args->count;
        w.parts = (epctx_part *)calloc(w.count, sizeof *w.parts);
        w.models = (epctx_model *)calloc(w.count, sizeof *w.models);
        if (w.parts == NULL || w.models == NULL)
            code = cli_fail_text("out of memory");
        else if (read_connections(&w) && read_prefixes(&w))
            code = merge(&w, args->operands);
    }
    for (i = 0; i < w.count && w.models != NULL; i++) epctx_model_close(&w.models[i]);
    output_free(&w.out);
    free(w.models);
    free(w.parts);
    return code;
}

const cli_command cli_merge = {
    .name = "merge",
    .group = CLI_CHANGE,
    .operands = "MODEL...",
    .least = 2,
    .summary = "merge several models, side by side or connected",
    .about = "Combines the inputs, outputs, nodes and weights of all models, and copies\n"
             "context binaries and data files to the folder of OUT. Names that clash get a\n"
             "prefix (m2_ in the second model), except those by which an EP finds something in\n"
             "a binary. Operator sets must have the same version unless a model does not use\n"
             "them; the IR version is the newest. OpenVINO reads one context for a model: its\n"
             "containers become one, with a new name for a partition if both have it; other\n"
             "contexts of an EP that reads one are refused. A binary must match the build\n"
             "stamp of its model because the result has no stamp. --in-place replaces the\n"
             "first model.\n",
    .more = "Example: epctx merge --chain encoder_ctx.onnx decoder_ctx.onnx -o both.onnx\n",
    .run = run,
};
