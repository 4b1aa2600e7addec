/* The rules of lint: those of ops/lint.h, those for deliveries, and the tool's own. */
#include "rules.h"

#include "facts/facts.h"

#include <stdio.h>
#include <string.h>

epctx_rule_info rule_info(int rule) {
    static const epctx_rule_info own[RULE_COUNT - EPCTX_RULE_COUNT] = {
        {"E900", "context-loads", "the reference NPU cannot load its own context",
         "compile the source model again", EPCTX_SEVERITY_ERROR},
        {"E901", "unreadable", "a file or folder that cannot be read as what it should be",
         "see the message", EPCTX_SEVERITY_ERROR},
        {"W901", "ignore-unused", "an entry of --ignore that matches nothing", "remove the entry",
         EPCTX_SEVERITY_WARNING},
        {"W902", "link-not-followed", "a link in a folder that leads out of it, or nowhere",
         "replace the link with the file, or name the file itself", EPCTX_SEVERITY_WARNING},
        {"E902", "ep-refuses", "the EP of --ep does not load the model",
         "see the message; epctx explain tells more of an error's text", EPCTX_SEVERITY_ERROR},
        {"W903", "ep-loads", "the EP of --ep loads a model in which a rule finds an error",
         "cure the error all the same, or let the rule pass with --ignore, for this EP",
         EPCTX_SEVERITY_WARNING},
        {"W904", "ep-needs-device", "the EP of --ep loads the model on its device only",
         "ask on the device", EPCTX_SEVERITY_WARNING},
#define RULE_INFO(symbol, id, name, text, fix) \
    {id, name, text, fix, \
     (id)[0] == 'E'   ? EPCTX_SEVERITY_ERROR \
     : (id)[0] == 'W' ? EPCTX_SEVERITY_WARNING \
                      : EPCTX_SEVERITY_HINT},
        DELIVERY_RULE_LIST(RULE_INFO)
#undef RULE_INFO
    };
    return rule < EPCTX_RULE_COUNT || rule >= RULE_COUNT ? epctx_rule_of((epctx_rule)rule)
                                                         : own[rule - EPCTX_RULE_COUNT];
}

void rule_versions(const epctx_rule_info *rule, char out[RULE_VERSIONS]) {
    const fact *f = facts_rule(rule->id, NULL);
    const char *since = f != NULL ? fact_get(f, "since") : NULL;
    const char *until = f != NULL ? fact_get(f, "until") : NULL;
    out[0] = '\0';
    if (since != NULL && until != NULL)
        snprintf(out, RULE_VERSIONS, " (since %.50s, until %.50s)", since, until);
    else if (since != NULL || until != NULL)
        snprintf(out, RULE_VERSIONS, " (%s %.50s)", since != NULL ? "since" : "until",
                 since != NULL ? since : until);
}

int rule_find(epctx_str text) {
    int rule = 0;
    while (rule < RULE_COUNT && !epctx_str_is(text, rule_info(rule).id) &&
           !epctx_str_is(text, rule_info(rule).name))
        rule++;
    return rule;
}

void rule_unknown(const char *where, epctx_str text) {
    cli_guess guess = cli_guess_of(text);
    int rule;
    for (rule = 0; rule < RULE_COUNT; rule++) {
        cli_guess_word(&guess, rule_info(rule).id);
        cli_guess_word(&guess, rule_info(rule).name);
    }
    cli_misuse("%s: there is no rule '%.*s'%s (epctx lint --rules)", where, (int)text.size,
               text.data, cli_guess_hint(&guess));
}

bool rule_list(const char *text, bool *wanted) {
    epctx_str rest = epctx_str_of(text);
    memset(wanted, 0, RULE_COUNT * sizeof *wanted);
    do {
        epctx_str part = epctx_str_cut(&rest, ',');
        int rule = rule_find(part);
        if (rule == RULE_COUNT) {
            rule_unknown("--rules", part);
            return false;
        }
        wanted[rule] = true;
    } while (rest.data != NULL);
    return true;
}

bool rule_wants_extract(int rule) {
    return rule == EPCTX_RULE_NO_PAYLOAD || rule == EPCTX_RULE_MIXED_MODES ||
           rule == EPCTX_RULE_PAYLOAD_SIZE;
}

/* The message without file, node and attribute, which a finding names on their own. */
static const char *bare_message(const epctx_error *error, const char *file) {
    const char *text = error->message;
    char parts[3][300];
    size_t i, size;
    snprintf(parts[0], sizeof parts[0], "%.250s: ", file);
    snprintf(parts[1], sizeof parts[1], "node '%s': ", error->node);
    snprintf(parts[2], sizeof parts[2], "attribute '%s': ", error->attribute);
    for (i = 0; i < 3; i++) {
        size = strlen(parts[i]);
        if (strncmp(text, parts[i], size) == 0) text += size;
    }
    return text;
}

bool rule_loads_fails(const epctx_model *model, const char *file, const char *context_file_path,
                      epctx_finding *finding, epctx_error *error) {
    epctx_load_opts load;
    epctx_backend backend;
    epctx_loaded loaded;
    memset(&load, 0, sizeof load);
    memset(&loaded, 0, sizeof loaded);
    load.context_file_path = context_file_path;
    if (cli_backend(NULL, &backend, error) != EPCTX_OK ||
        epctx_load(&loaded, model, &backend, &load, error) == EPCTX_OK) {
        epctx_unload(&loaded);
        return false;
    }
    memset(finding, 0, sizeof *finding);
    finding->info = rule_info(RULE_LOADS);
    finding->node = epctx_str_of(error->node);
    finding->attribute = error->attribute;
    finding->message = bare_message(error, file);
    finding->since = finding->until = "";
    return true;
}
