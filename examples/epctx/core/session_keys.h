/* session_keys.h - the names of ONNX Runtime's session options: ORT ignores one that it does not
 * know, so a misspelled one has no effect. */
#ifndef EPCTX_CLI_SESSION_KEYS_H
#define EPCTX_CLI_SESSION_KEYS_H

#include "cli.h"
#include "facts/facts.h"

/* The fact "option" of a key of ORT's, or NULL. */
const fact *session_key_find(epctx_str key);

typedef enum session_key_kind {
    SESSION_KEY_KNOWN = 0,
    SESSION_KEY_FOREIGN,    /* of an EP or an application: nothing is known about it */
    SESSION_KEY_LATER,      /* of a newer ORT than the one that is judged for, or of older ones */
    SESSION_KEY_UNKNOWN,    /* named like one of ORT's, which no release up to 1.31 has */
    SESSION_KEY_MISSPELLED, /* and nearly one of them */
} session_key_kind;

/* `guess` gets the nearest key, if one is near (cli_guess_hint). */
session_key_kind session_key_judge(epctx_str key, cli_guess *guess);

#endif
