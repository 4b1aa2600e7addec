/* Which word a mistyped one means. */
#ifndef EPCTX_CLI_GUESS_H
#define EPCTX_CLI_GUESS_H

#include "epctx.h"

/* Which of the words that there are a mistyped one means. */
typedef struct cli_guess {
    char text[64];
    const char *best; /* NULL: none is near */
    size_t size, nearest;
    char hint[96];
} cli_guess;
cli_guess cli_guess_of(epctx_str text);
void cli_guess_word(cli_guess *guess, const char *word);
/* ", did you mean 'x'?", or "". */
const char *cli_guess_hint(cli_guess *guess);

#endif
