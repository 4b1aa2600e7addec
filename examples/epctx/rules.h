/* rules.h - the rules of lint as this tool knows them: those of ops/lint.h, and E900, for which it
 * asks the reference NPU. */
#ifndef EPCTX_CLI_RULES_H
#define EPCTX_CLI_RULES_H

#include "cli.h"
#include "ops/lint.h"

/* E900: the reference NPU cannot load its own context. Not one of epctx_rule. */
enum { RULE_LOADS = EPCTX_RULE_COUNT, RULE_COUNT };

/* Of a rule below RULE_COUNT. */
epctx_rule_info rule_info(int rule);
/* A rule by id or name; RULE_COUNT when there is none. */
int rule_find(epctx_str text);
/* Judges by RULE_LOADS. Returns true when it finds something; `finding` points into `error`.
 * `file` is the model's name in messages. */
bool rule_loads_fails(const epctx_model *model, const char *file, const char *context_file_path,
                      epctx_finding *finding, epctx_error *error);

#endif
