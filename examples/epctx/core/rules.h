/* rules.h - the rules of lint as this tool knows them: those of ops/lint.h for a model, those of
 * delivery_rules.h for a folder, and its own. */
#ifndef EPCTX_CLI_RULES_H
#define EPCTX_CLI_RULES_H

#include "cli.h"
#include "delivery/delivery_rules.h"
#include "ops/lint.h"

/* Those that are no epctx_rule. */
enum {
    RULE_LOADS = EPCTX_RULE_COUNT, /* the reference NPU cannot load its own context */
    RULE_UNREADABLE,
    RULE_IGNORE_UNUSED,
    RULE_LINK,
    RULE_EP_REFUSES, /* what the EP of --ep says */
    RULE_EP_LOADS,
    RULE_EP_DEVICE,
    RULE_DELIVERY, /* the first of delivery_rules.h */
    RULE_COUNT = RULE_DELIVERY + DELIVERY_RULE_COUNT
};

/* Of a rule below RULE_COUNT. */
epctx_rule_info rule_info(int rule);
/* " (since ort 1.31)" of a rule that does not hold for every version, or "". */
enum { RULE_VERSIONS = 120 };
void rule_versions(const epctx_rule_info *rule, char out[RULE_VERSIONS]);
/* A rule by id or name; RULE_COUNT when there is none. */
int rule_find(epctx_str text);
/* Says that there is no such rule, and which one may be meant; `where` it stands. */
void rule_unknown(const char *where, epctx_str text);
/* Reads a list of rules, by id or name, with commas between: `wanted` has RULE_COUNT elements.
 * Prints what is wrong otherwise. */
bool rule_list(const char *text, bool *wanted);
/* Whether `epctx repair` moves contexts to files for findings of this rule. */
bool rule_wants_extract(int rule);
/* Judges by RULE_LOADS. Returns true when it finds something; `finding` points into `error`.
 * `file` is the model's name in messages. */
bool rule_loads_fails(const epctx_model *model, const char *file, const char *context_file_path,
                      epctx_finding *finding, epctx_error *error);

#endif
