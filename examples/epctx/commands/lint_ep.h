/* lint_ep.h - epctx lint --ep: the EP itself loads each model, in a child process. */
#ifndef EPCTX_CLI_LINT_EP_H
#define EPCTX_CLI_LINT_EP_H

#include "ort/anyep.h"

#include "core/findings.h"

typedef struct lint_ep {
    bool asked;  /* --ep was given */
    bool failed; /* no model can be asked about any more; why was printed */
    anyep_settings set;
    epctx_arena arena;
} lint_ep;

/* What --ep and its options say; `args` NULL: it was not given. False: what is wrong was printed;
 * the command ends with `code`. */
bool lint_ep_begin(lint_ep *judge, const cli_args *args, int *code);
void lint_ep_end(lint_ep *judge);

/* The EP's verdict on `file`, which is under way in `out`, beside that of the rules: `errors` names
 * those that found an error; "": none. The paths are options of the session; NULL: none. */
void lint_ep_ask(lint_ep *judge, findings *out, const char *file, const char *context_path,
                 const char *external_folder, const char *errors);

#endif
