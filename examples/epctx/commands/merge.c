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

static bool read_metadata(merge_wish *w) {
    static const char *const words[] = {"refuse", "first", "prefix", NULL};
    size_t number = 0;
    if (w->metadata != NULL && !cli_choose("--metadata", w->metadata, words, &number)) return false;
    if (number > 0) w->opts.metadata = number == 1 ? EPCTX_METADATA_FIRST : EPCTX_METADATA_PREFIX;
    return true;
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
    if (w->out.path != NULL && !w->out.to_stdout) w->opts.output_path = w->out.path;
    if (epctx_merge(w->parts, w->count, &w->opts, &combined, &error) != EPCTX_OK)
        return w->opts.allow_stale ? cli_fail(&error) : cli_fail_stale(&error, "--allow-stale");
    tell_steps(&w->out, &combined, w->count);
    return write_combined(&w->out, &w->models[0], &combined);
}

static int run(int argc, char **argv) {
    const char **files = (const char **)calloc((size_t)argc + 1, sizeof *files);
    merge_wish w;
    int code = CLI_USAGE;
    int given = 0;
    size_t i;
    memset(&w, 0, sizeof w);
    output_init(&w.out);
    const cli_option options[] = {
        OUTPUT_OPTIONS(w.out),
        {"--chain", NULL, &w.opts.chain},
        {"--connect", &w.connect, NULL},
        {"--prefix", &w.prefix, NULL},
        {"--keep-outputs", NULL, &w.opts.keep_outputs},
        {"--share-inputs", NULL, &w.opts.share_inputs},
        {"--metadata", &w.metadata, NULL},
        {"--force-opset", NULL, &w.opts.force_opset},
        {"--allow-stale", NULL, &w.opts.allow_stale},
        {NULL, NULL, NULL},
    };
    if (files == NULL) return cli_fail_text("out of memory");
    if ((given = cli_parse_some(&cli_merge, argc, argv, options, files, 2, argc)) >= 0 &&
        output_check(&w.out, files[0])) {
        w.count = (size_t)given;
        w.parts = (epctx_part *)calloc(w.count, sizeof *w.parts);
        w.models = (epctx_model *)calloc(w.count, sizeof *w.models);
        if (w.parts == NULL || w.models == NULL)
            code = cli_fail_text("out of memory");
        else if (read_connections(&w) && read_prefixes(&w) && read_metadata(&w))
            code = merge(&w, files);
    }
    for (i = 0; i < w.count && w.models != NULL; i++) epctx_model_close(&w.models[i]);
    output_free(&w.out);
    free(w.models);
    free(w.parts);
    free(files);
    return code;
}

const cli_command cli_merge = {
    "merge",
    "[--chain] [--connect OUTPUT=INPUT,...] [--prefix P1,P2...]\n"
    "             [--keep-outputs] [--share-inputs] [--metadata POLICY]\n"
    "             [--force-opset] [--allow-stale]" OUTPUT_USAGE "MODEL MODEL...",
    "merge several models, side by side or connected",
    "Combines the inputs, outputs, nodes and weights of all models, and copies\n"
    "context binaries and data files to the folder of OUT. Names that clash get a\n"
    "prefix (m2_ in the second model), except those by which an EP finds something in\n"
    "a binary. Operator sets must have the same version unless a model does not use\n"
    "them; the IR version is the newest. A binary must match the build stamp of its\n"
    "model because the result has no stamp. --in-place replaces the first model.\n\n"
    "  --chain              connect each input to an earlier output of the same name\n"
    "  --connect LIST       connect an output of an earlier model to an input of a\n"
    "                       later one: OUTPUT=INPUT, separated by commas; 1:y is y of\n"
    "                       the first model\n"
    "  --prefix LIST        prefix for all names of each model, separated by commas;\n"
    "                       - adds a prefix only to names that clash; with an empty\n"
    "                       LIST, clashes in the first model are errors\n"
    "  --keep-outputs       keep outputs that are connected to an input\n"
    "  --share-inputs       combine inputs of the same name and type\n"
    "  --metadata POLICY    if values of a key differ: refuse (default), first\n"
    "                       or prefix\n"
    "  --force-opset        use the newer of two versions of an operator set for all\n"
    "                       nodes\n"
    "  --allow-stale        accept binaries that do not match their build stamps\n" OUTPUT_HELP
    "\nExample: epctx merge --chain encoder_ctx.onnx decoder_ctx.onnx -o both.onnx\n",
    run,
};
