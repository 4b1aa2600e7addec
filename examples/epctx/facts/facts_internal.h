/* What the files of facts share. */
#ifndef EPCTX_FACTS_INTERNAL_H
#define EPCTX_FACTS_INTERNAL_H

#include "facts.h"

/* The facts of a kind stand side by side. */
typedef struct fact_kind {
    const char *name;
    uint32_t first, count;
} fact_kind;

/* Facts instead of the built-in ones, with the profiles made of them. */
typedef struct facts_overlay {
    const fact **facts;
    fact_kind *kinds;
    size_t kind_count;
    epctx_profile *profiles;
    size_t profile_count;
} facts_overlay;

/* From then on these are asked, borrowed; a zeroed one: the built-in ones. */
void facts_use(const facts_overlay *overlay);
/* The kinds of the facts that are asked. */
const fact_kind *facts_kinds(size_t *count);

/* What is read: `facts` in the order of the files. Zeroed but for `say` and `io`, with an arena;
 * the texts are of the arena. */
typedef struct facts_read {
    const epctx_io *io; /* of the files */
    epctx_arena arena;
    const char *path; /* as it was given */
    fact **facts;
    size_t count, room;
    const char *replaced[16]; /* kinds of which no older fact stays; "all" */
    size_t replaced_count;
    facts_say_fn say;
    void *user;
    size_t problems;
    bool no_memory;
} facts_read;

/* A problem; `f` says where. */
#if defined(__GNUC__)
__attribute__((format(printf, 4, 5)))
#endif
void facts_problem(facts_read *r, const char *file, uint32_t line, const char *format, ...);

/* Reads a file or a folder and judges each fact by itself; what is wrong is a problem. */
void facts_read_path(facts_read *r, const char *path);
bool facts_is_kind(const char *kind);
/* Judges one fact by the keys and values of its kind. */
void facts_judge_one(facts_read *r, const fact *f);
/* Judges what all facts are together, in their order: lists that end, names that exist. */
void facts_judge_all(facts_read *r, const fact *const *all, const fact_kind *kinds, size_t kinds_n);

/* Makes the profiles of these facts, in the arena; NULL without memory. */
epctx_profile *facts_make_profiles(epctx_arena *arena, const fact *const *facts, size_t count);
/* The bits that a list of such words stands for; false: `*bad` is none of them. */
bool facts_traits(epctx_str list, uint32_t *bits, epctx_str *bad);
bool facts_attributes(epctx_str list, uint32_t *bits, epctx_str *bad);
bool facts_key(epctx_str word, epctx_key *key);
/* The built-in profile of this name, if it has a compat_fn, which is C and no fact; else NULL. */
const epctx_profile *facts_compared_as(epctx_str word);

#endif
