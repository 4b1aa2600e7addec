/* Which word a mistyped one means: the nearest of those there are, if it is near. */
#include "guess.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { GUESS_ROOM = sizeof((cli_guess *)0)->text };

/* Two for every letter to add, remove or replace to make one word of the other, one for two
 * neighbours that change places. */
static size_t distance_of(const char *a, const char *b) {
    enum { SWAP = 1, CHANGE = 2 };
    size_t rows[3][GUESS_ROOM];
    size_t width = strlen(b), i, k;
    for (k = 0; k <= width; k++) rows[0][k] = k * CHANGE;
    for (i = 1; i <= strlen(a); i++) {
        size_t *row = rows[i % 3];
        const size_t *last = rows[(i + 2) % 3];
        row[0] = i * CHANGE;
        for (k = 1; k <= width; k++) {
            size_t best = last[k - 1] + (a[i - 1] != b[k - 1] ? CHANGE : 0);
            if (best > last[k] + CHANGE) best = last[k] + CHANGE;
            if (best > row[k - 1] + CHANGE) best = row[k - 1] + CHANGE;
            if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1] &&
                best > rows[(i + 1) % 3][k - 2] + SWAP)
                best = rows[(i + 1) % 3][k - 2] + SWAP;
            row[k] = best;
        }
    }
    return rows[strlen(a) % 3][width];
}

/* Small letters, and one kind of dash. */
static void plain_word(char out[GUESS_ROOM], const char *word) {
    size_t i;
    for (i = 0; word[i] != '\0'; i++)
        out[i] = (char)(word[i] == '_' ? '-' : tolower((unsigned char)word[i]));
    out[i] = '\0';
}

cli_guess cli_guess_of(epctx_str text) {
    cli_guess guess;
    memset(&guess, 0, sizeof guess);
    if (text.size >= sizeof guess.text || text.size == 0) return guess;
    memcpy(guess.text, text.data, text.size);
    guess.size = text.size - (text.size > 2 && text.data[0] == '-' && text.data[1] == '-' ? 2 : 0);
    /* One letter is like every other, and a short word like many. */
    if (guess.size > 1) guess.nearest = guess.size < 4 ? 4 : guess.size < 10 ? 6 : 8;
    return guess;
}

void cli_guess_word(cli_guess *guess, const char *word) {
    char typed[GUESS_ROOM], known[GUESS_ROOM];
    size_t distance;
    if (guess->nearest == 0 || strlen(word) >= sizeof known || strlen(word) < 2) return;
    plain_word(typed, guess->text);
    plain_word(known, word);
    distance = distance_of(typed, known);
    /* A word that was not typed to its end. */
    if (guess->size > 2 && strncmp(known, typed, strlen(typed)) == 0 && distance > 2) distance = 3;
    if (distance >= guess->nearest) return;
    guess->nearest = distance;
    guess->best = word;
}

const char *cli_guess_hint(cli_guess *guess) {
    const char *quote = guess->best != NULL && guess->best[0] == '-' ? "" : "'";
    guess->hint[0] = '\0';
    if (guess->best != NULL)
        snprintf(guess->hint, sizeof guess->hint, ", did you mean %s%s%s?", quote, guess->best,
                 quote);
    return guess->hint;
}
