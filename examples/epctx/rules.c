/* The rules of lint, with the one that only this tool can judge. */
#include "rules.h"

#include <stdio.h>
#include <string.h>

epctx_rule_info rule_info(int rule) {
    static const epctx_rule_info loads = {"E900", "context-loads",
                                          "the reference NPU cannot load its own context",
                                          "compile the source model again", EPCTX_SEVERITY_ERROR};
    return rule < EPCTX_RULE_COUNT ? epctx_rule_of((epctx_rule)rule) : loads;
}

int rule_find(epctx_str text) {
    int rule = 0;
    while (rule < RULE_COUNT && !epctx_str_is(text, rule_info(rule).id) &&
           !epctx_str_is(text, rule_info(rule).name))
        rule++;
    return rule;
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
    return true;
}
