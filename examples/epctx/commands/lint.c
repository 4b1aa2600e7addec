/* epctx lint: judges models and deliveries by the rules of ORT, of the design document, of each EP
 * and of ORT GenAI. */
#include "lint_ep.h"
#include "delivery/delivery.h"
#include "core/asker.h"
#include "core/findings.h"
#include "delivery/tree.h"
#include "core/options.h"
#include "facts/facts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct lint_work {
    findings out;
    epctx_check_opts opts;
    bool failed;          /* something could not be judged, and the reason was printed */
    binary_asker library; /* of what only a vendor's library reads */
    binary_asker asker;   /* the same, counting what it does not tell */
    uint64_t unread;      /* context binaries that nobody looked into */
    lint_ep judge;
    char errors[160]; /* "E012, E041": rules that found an error in the model */
} lint_work;

static bool ask(void *user, epctx_span file, epctx_arena *arena, binary_facts *facts) {
    lint_work *work = (lint_work *)user;
    if (work->library.ask_fn(work->library.user, file, arena, facts)) return true;
    work->unread++;
    return false;
}

/* "0 errors" must not sound as if what only a vendor's library reads were sound. */
static void tell_unread(const lint_work *work) {
    if (work->unread > 0 && work->out.format == FINDINGS_TEXT)
        printf("note: what is inside %" PRIu64 " context binar%s was not judged: --qnn-system "
               "LIBRARY reads those of QNN\n",
               work->unread, work->unread == 1 ? "y" : "ies");
}

/* Once each, the first ones. */
static void note_error(lint_work *work, int rule) {
    const epctx_rule_info info = rule_info(rule);
    const size_t used = strlen(work->errors);
    if (info.severity != EPCTX_SEVERITY_ERROR || strstr(work->errors, info.id) != NULL) return;
    snprintf(work->errors + used, sizeof work->errors - used, "%s%s", used > 0 ? ", " : "",
             info.id);
}

static void add_finding(lint_work *work, const finding *what) {
    const uint64_t before = work->out.counts[EPCTX_SEVERITY_ERROR];
    findings_add(&work->out, what);
    if (work->out.counts[EPCTX_SEVERITY_ERROR] > before) note_error(work, what->rule);
}

static void found(void *user, const epctx_finding *what) {
    finding one = {(int)what->rule, what->node, what->graph, what->attribute,
                   what->message,   0,          what->since, what->until};
    add_finding((lint_work *)user, &one);
}

static void json_rule(json_writer *w, const epctx_rule_info *rule) {
    const fact *versions = facts_rule(rule->id, NULL);
    json_object(w, NULL, JSON_INLINE);
    json_text(w, "id", rule->id);
    json_text(w, "rule", rule->name);
    json_text(w, "severity",
              rule->severity == EPCTX_SEVERITY_ERROR     ? "error"
              : rule->severity == EPCTX_SEVERITY_WARNING ? "warning"
                                                         : "hint");
    json_text(w, "text", rule->text);
    json_text(w, "fix", rule->fix);
    if (versions != NULL && fact_get(versions, "since") != NULL)
        json_text(w, "since", fact_get(versions, "since"));
    if (versions != NULL && fact_get(versions, "until") != NULL)
        json_text(w, "until", fact_get(versions, "until"));
    json_end(w);
}

static void list_rule(const epctx_rule_info *rule) {
    char holds[RULE_VERSIONS];
    rule_versions(rule, holds);
    printf("%s %-26s %s%s\n", rule->id, rule->name, rule->text, holds);
}

static void list_rules(bool json) {
    json_writer *w = json ? cli_json_begin(stdout) : NULL;
    int i;
    if (json) json_array(w, "rules", JSON_LINES);
    for (i = 0; i < RULE_COUNT; i++) {
        const epctx_rule_info rule = rule_info(i);
        if (json)
            json_rule(w, &rule);
        else
            list_rule(&rule);
    }
    if (json) json_end(w);
    if (json) cli_json_end();
}

/* What is wrong with a file that is no model, as a finding like any other. */
static void unreadable(lint_work *work, const char *file, const epctx_error *error) {
    const char *message = error->message;
    size_t size = strlen(file);
    /* A program finds it where all failures are, too. */
    if (work->out.format == FINDINGS_JSON) {
        cli_fail(error);
        cli_fail_file(file);
    }
    if (strncmp(message, file, size) == 0 && strncmp(message + size, ": ", 2) == 0)
        message += size + 2;
    findings_alone(&work->out, file, RULE_UNREADABLE, message);
}

/* The delivery around a model may say where its files are; the command line comes first. */
static void use_paths(epctx_check_opts *opts, const char *file, const delivery_paths *paths) {
    const epctx_io *io = epctx_io_files();
    char path[EPCTX_PATH_MAX];
    if (paths == NULL || io->canonical_fn(io->user, file, path, sizeof path, NULL) != EPCTX_OK)
        return;
    while (paths != NULL && strcmp(paths->model, path) != 0) paths = paths->next;
    if (paths == NULL) return;
    if (opts->context_file_path == NULL) opts->context_file_path = paths->context;
    if (opts->external_folder == NULL) opts->external_folder = paths->external;
}

static void lint_model(lint_work *work, const char *file, const delivery_paths *paths) {
    epctx_check_opts opts = work->opts;
    uint64_t counts[EPCTX_SEVERITY_COUNT];
    epctx_model model;
    epctx_finding loads;
    epctx_error error;
    epctx_status status;
    cli_progress_begin("lint", 0);
    status = cli_open(&model, file, &error);
    if (status != EPCTX_OK) {
        cli_progress_end();
        unreadable(work, file, &error);
        return;
    }
    use_paths(&opts, file, paths);
    findings_file(&work->out, file);
    work->errors[0] = '\0';
    work->out.cures.opts = &opts;
    status = epctx_lint_asking(&model, &opts, &work->asker, found, work, counts, &error);
    if (status == EPCTX_OK && counts[0] == 0 && !opts.no_files &&
        rule_loads_fails(&model, file, opts.context_file_path, &loads, &error)) {
        finding one = {RULE_LOADS,    loads.node, loads.graph, loads.attribute,
                       loads.message, 0,          NULL,        NULL};
        add_finding(work, &one);
    }
    epctx_model_close(&model);
    cli_progress_end();
    lint_ep_ask(&work->judge, &work->out, file, opts.context_file_path, opts.external_folder,
                work->errors);
    findings_file_end(&work->out);
    if (status != EPCTX_OK) {
        cli_fail(&error);
        work->failed = true;
    }
}

/* Each model in the folder, in order of names, and then the deliveries. */
static void lint_folder(lint_work *work, const char *folder) {
    epctx_arena arena;
    epctx_error error;
    tree files;
    const delivery_paths *paths;
    size_t models = 0, i;
    epctx_arena_init(&arena, NULL);
    if (tree_read(&files, folder, &arena, &error) != EPCTX_OK) {
        unreadable(work, folder, &error);
        epctx_arena_free(&arena);
        return;
    }
    paths = work->opts.no_files ? NULL : delivery_read_paths(&files, &arena);
    for (i = 0; i < files.count; i++) {
        const tree_entry *entry = &files.entries[i];
        const bool model = tree_ends(entry->name, ".onnx");
        models += model;
        if (entry->kind == TREE_UNREADABLE)
            findings_alone(&work->out, entry->path, RULE_UNREADABLE, "cannot be read");
        else if (model && entry->kind == TREE_LINK)
            findings_alone(&work->out, entry->path, RULE_LINK,
                           "a link that leads to no file in the folder");
        else if (model && entry->kind == TREE_OTHER)
            findings_alone(&work->out, entry->path, RULE_UNREADABLE, "is not a regular file");
        else if (model && entry->kind == TREE_FILE)
            lint_model(work, entry->path, paths);
    }
    if (!work->opts.no_files && delivery_lint(&work->out, &files)) models++;
    if (models == 0) {
        epctx_fail(&error, EPCTX_ERR_NOT_FOUND, "%s: there is no .onnx file in this folder",
                   folder);
        unreadable(work, folder, &error);
    }
    epctx_arena_free(&arena);
}

/* Whether `what` is what an earlier one of the operands has led to. */
static bool is_judged(const char *const *targets, int count, const char *what) {
    int i;
    for (i = 0; i < count; i++)
        if (strcmp(targets[i], what) == 0) return true;
    return false;
}

/* A file of a delivery that is no model stands for the whole of it, as hooks hand over files. */
static int lint_all(lint_work *work, const char *const *files, int count) {
    epctx_arena arena;
    const char **targets;
    int code, i;
    epctx_arena_init(&arena, NULL);
    targets = (const char **)epctx_arena_array(&arena, (size_t)count, sizeof *targets);
    if (targets == NULL) {
        cli_fail_text("out of memory");
        epctx_arena_free(&arena);
        return CLI_FAILED;
    }
    for (i = 0; i < count; i++) {
        const char *around = tree_is_folder(files[i]) ? NULL : delivery_around(files[i], &arena);
        targets[i] = around != NULL ? around : files[i];
        work->out.several = work->out.several || tree_is_folder(targets[i]);
    }
    findings_begin(&work->out);
    for (i = 0; i < count; i++) {
        if (targets[i] != files[i] && is_judged(targets, i, targets[i])) continue;
        if (tree_is_folder(targets[i]))
            lint_folder(work, targets[i]);
        else
            lint_model(work, targets[i], NULL);
    }
    code = findings_end(&work->out);
    epctx_arena_free(&arena);
    return work->failed || work->judge.failed ? CLI_FAILED : code;
}

/* What is newer than anything that was looked at is judged as the newest known. */
static void tell_newer(void) {
    const fact *f;
    size_t at = 0;
    while ((f = facts_next("product", &at)) != NULL) {
        const epctx_str asked = facts_version(f->name);
        const char *newest = fact_get(f, "newest");
        if (newest == NULL || facts_compare_versions(asked, epctx_str_of(newest)) <= 0) continue;
        cli_say("epctx: warning: --against: %s %.*s is newer than all that is known of; rules are "
                "those of %s\n",
                f->name, (int)asked.size, asked.data, newest);
    }
}

/* Judges for these versions of products; says what is wrong with them otherwise. */
static bool judge_for(const char *versions) {
    epctx_error error;
    epctx_str product;
    cli_guess guess;
    const fact *f;
    size_t at = 0, used = 0;
    char known[400] = "";
    if (facts_check_versions(versions, &product, &error) == EPCTX_OK) {
        facts_set_versions(versions);
        tell_newer();
        return true;
    }
    guess = cli_guess_of(product);
    while ((f = facts_next("product", &at)) != NULL && used < sizeof known) {
        cli_guess_word(&guess, f->name);
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", used > 0 ? ", " : "",
                                 f->name);
    }
    if (product.size > 0)
        cli_misuse("--against: '%.*s' is no product%s; it takes %s", (int)product.size,
                   product.data, cli_guess_hint(&guess), known);
    else
        cli_misuse("--against: %s", error.message);
    return false;
}

/* --ep NAME is how --profile NAME was called: the name of a profile, and no library. With --ort it
 * is an EP inside it. */
static bool is_old_profile(const cli_args *args) {
    return args->eps.count == 1 && args->ort == NULL &&
           cli_profile_of(args->eps.items[0]) != NULL && access(args->eps.items[0], F_OK) != 0;
}

static bool read_profile(lint_work *work, const cli_args *args) {
    if (!is_old_profile(args)) return cli_profile(args->profile, &work->opts.profile);
    if (args->profile != NULL) {
        cli_misuse("given twice (perhaps under two names): --profile");
        return false;
    }
    cli_say("epctx: warning: lint --ep NAME is now called --profile\n");
    return cli_profile(args->eps.items[0], &work->opts.profile);
}

static bool read_options(lint_work *work, const cli_args *args) {
    const bool other = args->format != 0 && (findings_format)(args->format - 1) != FINDINGS_JSON;
    size_t i;
    if (args->json && other) {
        cli_misuse("--json and another --format exclude each other");
        return false;
    }
    work->out.format = args->json          ? FINDINGS_JSON
                       : args->format != 0 ? (findings_format)(args->format - 1) /* as the words */
                                           : FINDINGS_TEXT;
    work->out.strict = args->strict;
    work->out.hints = args->hints;
    work->opts.no_files = args->no_files;
    work->opts.context_file_path = args->context_path;
    work->opts.external_folder = args->external_folder;
    for (i = 0; i < args->rules.count; i++)
        if (!findings_choose(&work->out, args->rules.items[i])) return false;
    return read_profile(work, args) &&
           (args->ignore == NULL || findings_ignore(&work->out, args->ignore)) &&
           (args->against == NULL || judge_for(args->against));
}

/* --rules without a list, or --rules-json. */
static int run_alone(const cli_args *args) {
    if (args->count > 0) {
        cli_misuse("--rules-json, and --rules without a list, take no files");
        return CLI_USAGE;
    }
    list_rules(args->json || args->rules_json);
    return CLI_OK;
}

static int run(const cli_args *args) {
    lint_work work;
    int code = CLI_USAGE;
    if (args->alone) return run_alone(args);
    memset(&work, 0, sizeof work);
    findings_init(&work.out);
    if (read_options(&work, args) && cli_binary_asker(args, &work.library) &&
        lint_ep_begin(&work.judge, is_old_profile(args) ? NULL : args, &code)) {
        work.asker.user = &work;
        work.asker.ask_fn = ask;
        work.out.several = args->count > 1 || args->ignore != NULL;
        code = lint_all(&work, args->operands, args->count);
        tell_unread(&work);
    }
    lint_ep_end(&work.judge);
    findings_free(&work.out);
    return code;
}

const cli_command cli_lint = {
    .name = "lint",
    .group = CLI_JUDGE,
    .operands = "(FILE | FOLDER)...",
    .least = 1,
    .summary = "report errors in models and whole deliveries",
    .about = "Checks models, their EPContext nodes, the files that they name and the\n"
             "compatibility info. An error (E...) is something that ONNX Runtime 1.31 or the\n"
             "EP rejects. Lint does not check whether operators exist or match their schemas.\n"
             "Of a FOLDER, checks every .onnx file in it and below it, by name; links that\n"
             "lead out of it are not followed. If it is a delivery, also checks that all\n"
             "fits together: a folder of ORT GenAI (genai_config.json) or a model package\n"
             "(manifest.json); another file of it than a model stands for the whole. Prints\n"
             "the command that cures a finding where there is one.\n"
             "The rules for a node are those of the EP in its source, or those of --profile.\n"
             "With --ep, the EP itself then loads each model, in a process of its own, and\n"
             "where it and the rules disagree is told: that is the last word, for this\n"
             "version of the EP, on this machine. What it does not load is an error.\n"
             "The exit code is 1 if there is an error; warnings (W...) and hints (I...) do not\n"
             "affect it.\n",
    .more = "Example: epctx lint --strict --format github delivery/\n",
    .run = run,
};
