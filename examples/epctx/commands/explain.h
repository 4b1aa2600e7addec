/* explain.h - the cause of an error, as epctx explain tells it. */
#ifndef EPCTX_CLI_EXPLAIN_H
#define EPCTX_CLI_EXPLAIN_H

#include "facts/facts.h"

/* The first fact "message" that fits the text, but for those that are general; NULL: none. */
const fact *explain_message(const char *text);

#endif
