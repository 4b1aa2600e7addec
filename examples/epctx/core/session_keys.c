/* session_keys.c - see session_keys.h. */
#include "session_keys.h"

#include <stdlib.h>
#include <string.h>

/* The next option that is ORT's; those of the reference NPU are ours. */
static const fact *next_key(size_t *at) {
    const fact *f;
    while ((f = facts_next("option", at)) != NULL && strncmp(f->name, "epctx.", 6) == 0)
        ;
    return f;
}

const fact *session_key_find(epctx_str key) {
    size_t at = 0;
    const fact *f;
    while ((f = next_key(&at)) != NULL && !epctx_str_is(key, f->name))
        ;
    return f;
}

/* The bytes up to the dot with which the name of an EP ends in "ep.NAME.option", or the first word;
 * 0: there is no dot. */
static size_t space_size(epctx_str key) {
    const size_t from = epctx_str_starts(key, "ep.") ? 3 : 0;
    const char *dot =
        (const char *)(key.size > from ? memchr(key.data + from, '.', key.size - from) : NULL);
    return dot != NULL ? (size_t)(dot - key.data) + 1 : from;
}

/* Whether a key begins as `key` does, up to the dot. */
static bool is_beside(const fact *f, epctx_str key) {
    const size_t size = space_size(key);
    return size > 0 && space_size(epctx_str_of(f->name)) == size &&
           memcmp(f->name, key.data, size) == 0;
}

/* The nearest of those keys, by what follows; NULL: none is near. */
static const char *nearest_beside(epctx_str key, size_t count) {
    const size_t size = space_size(key);
    const char **names = (const char **)calloc(count + 1, sizeof *names);
    const char *best = NULL;
    size_t at = 0, used = 0;
    const fact *f;
    if (names == NULL) return NULL;
    while (used < count && (f = next_key(&at)) != NULL)
        if (is_beside(f, key)) names[used++] = f->name + size;
    key.data += size;
    key.size -= size;
    best = epctx_nearest_name(key, names);
    free(names);
    return best != NULL ? best - size : NULL;
}

/* Options "ep.NAME.x" are the EP's own; only those of an EP that ORT has are compared. */
session_key_kind session_key_judge(epctx_str key, cli_guess *guess) {
    const bool of_ep = space_size(key) > 3 && epctx_str_starts(key, "ep.");
    size_t at = 0, count = 0; /* of those that begin in the same way */
    const fact *f;
    *guess = cli_guess_of(key);
    f = session_key_find(key);
    if (f != NULL) return facts_hold(f, NULL) ? SESSION_KEY_KNOWN : SESSION_KEY_LATER;
    while ((f = next_key(&at)) != NULL) {
        const bool same = is_beside(f, key);
        count += same;
        if (same || !of_ep) cli_guess_word(guess, f->name);
    }
    if (guess->best != NULL) return SESSION_KEY_MISSPELLED;
    if (count == 0) return SESSION_KEY_FOREIGN;
    guess->best = nearest_beside(key, count);
    return SESSION_KEY_UNKNOWN;
}
