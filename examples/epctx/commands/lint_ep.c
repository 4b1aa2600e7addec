/* epctx lint --ep: where the rules and the EP disagree. */
#include "lint_ep.h"
#include "explain.h"

#include "core/given.h"
#include "facts/facts.h"

#include <string.h>

/* LIMIT: seconds for a model without --timeout. MESSAGE: bytes of a finding's text. */
enum { LIMIT = 600, MESSAGE = 6000 };

/* A name alone may be a mistyped library, or meant for --profile. */
static bool check_names(const anyep_settings *set) {
    size_t i;
    for (i = 0; i < set->ep_count; i++) {
        if (set->eps[i].library != NULL || set->args->ort != NULL) continue;
        cli_misuse("--ep %s: there is no such library; an EP inside ONNX Runtime needs --ort, too",
                   set->eps[i].given);
        return false;
    }
    return true;
}

bool lint_ep_begin(lint_ep *judge, const cli_args *args, int *code) {
    memset(judge, 0, sizeof *judge);
    epctx_arena_init(&judge->arena, NULL);
    *code = CLI_USAGE;
    if (args == NULL) return true;
    anyep_take(&judge->set, args);
    judge->asked = anyep_asked(&judge->set);
    if (!judge->asked) return true;
    if (!anyep_read(&judge->set, &judge->arena, true, LIMIT) || !check_names(&judge->set))
        return false;
    *code = CLI_FAILED;
    return anyep_find_ort(&judge->set);
}

void lint_ep_end(lint_ep *judge) {
    epctx_arena_free(&judge->arena);
}

/* ---------------------------------------------------------------- what is said */

/* As it is: what prints a finding escapes it. */
static void say(epctx_text *text, const char *words) {
    epctx_text_put(text, epctx_str_of(words));
}

/* The name of the EP, or the names of several. */
static void say_eps(epctx_text *text, const anyep_board *board) {
    size_t i;
    for (i = 0; i < board->ep_count; i++) {
        say(text, i > 0 ? ", " : "");
        say(text, board->eps[i].ep);
    }
}

/* The EP's words, and what is known of them. */
static void say_words(epctx_text *text, const anyep_job *job, const anyep_result *result) {
    const fact *known = explain_message(result->words);
    char last[300];
    if (result->end == ANYEP_REFUSED) {
        say(text, ": error ");
        epctx_text_put_number(text, (uint64_t)(uint32_t)result->board->code);
        say(text, ": ");
        say(text, result->board->text);
    } else {
        say(text, ": ");
        say(text, result->words);
        if (anyep_last_words(job, last, sizeof last)) {
            say(text, "; the last words: ");
            say(text, last);
        }
    }
    if (known == NULL) return;
    say(text, " (known: ");
    say(text, fact_get(known, "cause"));
    say(text, ")");
}

static void tell_refused(findings *out, const anyep_job *job, const anyep_result *result,
                         const char *errors) {
    const bool device = anyep_needs_device(job, result);
    char message[MESSAGE];
    epctx_text text = epctx_text_of(message, sizeof message);
    if (!device && errors[0] == '\0') say(&text, "no rule says so, but ");
    say_eps(&text, result->board);
    say(&text, device ? " needs the device to load it" : " does not load it");
    if (!device && errors[0] != '\0') {
        say(&text, ", as ");
        say(&text, errors);
        say(&text, strchr(errors, ',') != NULL ? " say" : " says");
    }
    say_words(&text, job, result);
    findings_say(out, device ? RULE_EP_DEVICE : RULE_EP_REFUSES, message);
}

static void tell_loaded(findings *out, const anyep_result *result, const char *errors) {
    char message[MESSAGE];
    epctx_text text = epctx_text_of(message, sizeof message);
    if (errors[0] == '\0') return;
    say_eps(&text, result->board);
    say(&text, " loads it, although ");
    say(&text, errors);
    say(&text, strchr(errors, ',') != NULL ? " say error" : " says error");
    findings_say(out, RULE_EP_LOADS, message);
}

/* ---------------------------------------------------------------- asking */

/* The settings with options that only this model has; false: no memory, or a contradiction, which
 * is told. */
static bool settings_of(const lint_ep *judge, const char *context_path, const char *folder,
                        anyep_settings *out) {
    *out = judge->set;
    return (context_path == NULL ||
            anyep_add(out, &out->session, "ep.context_file_path", context_path)) &&
           (folder == NULL ||
            anyep_add(out, &out->session, "session.model_external_initializers_file_folder_path",
                      folder));
}

static const char *verdict_word(const anyep_job *job, const anyep_result *result) {
    if (result->end == ANYEP_OK) return "loads";
    return anyep_needs_device(job, result) ? "needs device" : "refuses";
}

/* What went wrong before the model's turn is no word about it. */
static void take_verdict(lint_ep *judge, findings *out, const anyep_job *job,
                         const anyep_result *result, const char *errors) {
    findings_verdict verdict;
    if (result->board == NULL || result->end == ANYEP_STOPPED || !result->board->at_model) {
        anyep_tell(job, result, "--ep");
        judge->failed = true;
        return;
    }
    if (result->end == ANYEP_OK)
        tell_loaded(out, result, errors);
    else
        tell_refused(out, job, result, errors);
    verdict.ep = result->board->eps[0].ep;
    verdict.ep_version = result->board->eps[0].version;
    verdict.ort_version = result->board->ort_version;
    verdict.word = verdict_word(job, result);
    verdict.words = result->words;
    findings_judged(out, &verdict);
    if (job->set->verbose) anyep_print_log(job);
    if (result->end == ANYEP_REFUSED)
        given_tell_failed(job->model, anyep_ep_options(job->set), job->set->session);
}

void lint_ep_ask(lint_ep *judge, findings *out, const char *file, const char *context_path,
                 const char *external_folder, const char *errors) {
    char folder[EPCTX_PATH_MAX];
    anyep_settings set;
    anyep_result result;
    anyep_job job;
    if (!judge->asked || judge->failed) return;
    if (!settings_of(judge, context_path, external_folder, &set) ||
        !anyep_folder(NULL, folder, sizeof folder)) {
        judge->failed = true;
        return;
    }
    memset(&job, 0, sizeof job);
    job.set = &set;
    job.work = ANYEP_RUN;
    job.folder = folder;
    job.model = file;
    job.optimization = job.threads = -1;
    cli_progress_begin("lint: the EP", 0);
    anyep_do(&job, &result);
    cli_progress_end();
    take_verdict(judge, out, &job, &result, errors);
    anyep_free(&result);
    anyep_remove(folder);
}
