/* epctx repair: what lint finds and a program can put right. */
#include "binary/binary.h"
#include "core/asker.h"
#include "core/combine.h"
#include "convert.h"
#include "ops/repair.h"
#include "core/rules.h"

#include <string.h>

enum { LEFT = 3 }; /* exit code: written, but findings are left */

typedef struct repair_list {
    output *out;
    epctx_repair_opts opts;
    binary_asker asker;
    epctx_rule rules[EPCTX_RULE_COUNT];
    uint64_t moved; /* findings that moving contexts to files may cure */
} repair_list;

static output_item item_of(const char *action, const epctx_rule_info *rule, epctx_str name) {
    output_item item = output_item_of(action, "item", name);
    item.rule = rule->id;
    return item;
}

static void tell(void *user, const epctx_repair_note *note) {
    repair_list *list = (repair_list *)user;
    output_item what;
    const bool nameless = !note->done && note->rule == EPCTX_RULE_SOURCE_ABSENT;
    if (!note->done && rule_wants_extract((int)note->rule)) {
        list->moved++;
        return;
    }
    what = item_of(note->done ? "repair" : "keep", &note->info, note->name);
    output_change(list->out, &what, "%s %s%s%.*s%s: %s%s", note->done ? "repaired" : "left",
                  note->info.id, note->name.size > 0 ? " '" : "", (int)note->name.size,
                  note->name.size > 0 ? note->name.data : "", note->name.size > 0 ? "'" : "",
                  note->text, nameless ? "; --profile NAME sets it" : "");
}

static bool read_list(repair_list *list, const char *rest) {
    epctx_str part;
    while (next_part(&rest, &list->out->arena, &part)) {
        int rule = rule_find(part);
        if (rule == RULE_COUNT || list->opts.rule_count == EPCTX_RULE_COUNT) {
            rule_unknown("--rules", part);
            return false;
        }
        if (rule >= EPCTX_RULE_COUNT ||
            (!epctx_can_repair((epctx_rule)rule) && !rule_wants_extract(rule))) {
            cli_misuse("--rules: %s cannot be repaired automatically: %s", rule_info(rule).id,
                       rule_info(rule).fix);
            return false;
        }
        list->rules[list->opts.rule_count++] = (epctx_rule)rule;
    }
    return true;
}

static bool read_rules(repair_list *list, const cli_list *given) {
    size_t i;
    list->opts.rules = list->rules;
    for (i = 0; i < given->count; i++)
        if (!read_list(list, given->items[i])) return false;
    return true;
}

/* What only this tool can judge remains, too: the context binary is not the model's. */
static void tell_loads(repair_list *list, const epctx_model *model, const char *file,
                       size_t *left) {
    epctx_finding finding;
    epctx_error error;
    output_item what;
    if (*left > 0 || list->opts.rule_count > 0 ||
        !rule_loads_fails(model, file, NULL, &finding, &error))
        return;
    what = item_of("keep", &finding.info, finding.node);
    output_change(list->out, &what, "left %s '%.*s': %s (%s)", finding.info.id,
                  (int)finding.node.size, finding.node.data, finding.message, finding.info.fix);
    ++*left;
}

static void left_by_extract(void *user, const epctx_finding *what) {
    repair_list *list = (repair_list *)user;
    output_item item;
    if (!rule_wants_extract((int)what->rule)) return;
    item = item_of("keep", &what->info, what->node);
    item.attribute = epctx_str_of(what->attribute);
    output_change(list->out, &item, "left %s '%.*s': %s %s", what->info.id, (int)what->node.size,
                  what->node.data, what->attribute, what->message);
    list->moved++;
}

/* What `epctx extract` cures: the contexts go to files. Findings that are left count. */
static void extract(repair_list *list, epctx_model *model, epctx_combined *files, size_t *left) {
    epctx_check_opts check = list->opts.check;
    ops_convert_opts opts;
    ops_changes changes;
    epctx_error error;
    const size_t found = (size_t)list->moved;
    size_t i;
    memset(&opts, 0, sizeof opts);
    opts.common.profile = check.profile;
    if (list->out->path != NULL && !list->out->to_stdout) opts.common.output_path = list->out->path;
    if (ops_extract(model, &opts, &changes, &error) != EPCTX_OK) {
        output_item what = output_item_of("keep", "node", epctx_str_of(NULL));
        what.count = found;
        output_change(list->out, &what, "left %zu finding%s: contexts cannot be moved to files: %s",
                      found, cli_plural(found), error.message);
        return;
    }
    for (i = 0; i < changes.count; i++) convert_tell(list->out, &changes.items[i]);
    files->files = changes.files;
    files->file_count = changes.file_count;
    check.no_files = true; /* the files are not there yet */
    list->moved = 0;
    if (epctx_lint(model, &check, left_by_extract, list, NULL, &error) != EPCTX_OK) return;
    *left = *left - found + (size_t)list->moved;
}

static int repair(repair_list *list, const char *file, const char *source_file) {
    epctx_model model, source;
    epctx_error error;
    epctx_combined none;
    size_t left = 0;
    int code = CLI_FAILED;
    memset(&source, 0, sizeof source);
    memset(&none, 0, sizeof none);
    if (output_open(list->out, &model, file, &error) != EPCTX_OK) return cli_fail(&error);
    if (source_file != NULL && cli_open(&source, source_file, &error) != EPCTX_OK) {
        cli_fail(&error);
    } else {
        if (source_file != NULL) list->opts.source = &source;
        if (epctx_repair(&model, &list->opts, tell, list, NULL, &left, &error) != EPCTX_OK)
            cli_fail(&error);
        else {
            if (list->moved > 0) extract(list, &model, &none, &left);
            tell_loads(list, &model, file, &left);
            code = write_combined(list->out, &model, &none);
        }
        if (code == CLI_OK && left > 0) code = LEFT;
    }
    epctx_model_close(&model);
    epctx_model_close(&source);
    return code;
}

static int run(const cli_args *args) {
    repair_list list;
    output out;
    int code = CLI_USAGE;
    memset(&list, 0, sizeof list);
    list.out = &out;
    if (output_begin(&out, args, args->operands[0]) && read_rules(&list, &args->rules) &&
        cli_profile(args->profile, &list.opts.check.profile) &&
        cli_binary_asker(args, &list.asker)) {
        list.opts.asker = &list.asker;
        code = repair(&list, args->operands[0], args->source);
    }
    output_free(&out);
    return code;
}

const cli_command cli_repair = {
    .name = "repair",
    .group = CLI_CHANGE,
    .operands = "FILE",
    .least = 1,
    .most = 1,
    .summary = "fix what lint finds",
    .about = "Fixes findings that have exactly one right fix, with data from the model, from\n"
             "the files beside it, or from the source model; moves contexts to files where an\n"
             "EP needs that (E014, E015, E033). A missing context binary is looked for by what\n"
             "is inside of the files beside the model: it is the only one with the graphs,\n"
             "inputs and outputs of the nodes. Prints what was fixed, what remains, and why.\n"
             "The exit code is 3 if the model was written but findings remain.\n",
    .more = "Example: epctx repair model_ctx.onnx --in-place\n",
    .run = run,
};
