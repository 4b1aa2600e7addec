/* What vendors do, as data: names, numbers, messages, options, formats. The facts come from *.facts
 * beside this file, of which `make` makes a table (facts.awk), and at run time from files of the
 * same format, which replace and extend them. README.md tells the format.
 *
 * A fact is a record of a kind and a name with pairs of key and value, all text; what a kind may
 * have is in facts_check.c. Whoever needs a fact asks for it here and nowhere else. */
#ifndef EPCTX_FACTS_H
#define EPCTX_FACTS_H

#include "epctx.h"

enum { FACTS_RELEASE = 24 };

typedef struct fact_pair {
    const char *key, *value;
} fact_pair;

typedef struct fact {
    const char *kind, *name;
    const fact_pair *pairs;
    uint32_t count;
    const struct fact *defaults; /* the default block above it, or NULL */
    const char *file;
    uint32_t line;
} fact;

/* -- asking -- */

/* The facts of a kind, one after the other; `*at` starts with 0. NULL: no more. */
const fact *facts_next(const char *kind, size_t *at);
/* By kind and name, or NULL. */
const fact *facts_find(const char *kind, const char *name);
/* The value of a key; NULL: it has none. */
const char *fact_get(const fact *f, const char *key);
/* The same, of a number; 0: it has none. */
uint32_t fact_number(const fact *f, const char *key);
/* The next of "one, two, three"; false: no more. */
bool fact_next_word(epctx_str *rest, epctx_str *word);
/* Whether such a list has this word; NULL: an empty one. */
bool fact_list_has(const char *list, epctx_str word);
/* Whether the list of the fact's `key` has this word. */
bool fact_has(const fact *f, const char *key, epctx_str word);
/* The element type of ONNX of this name (epctx_elem_name); 0: none. */
int32_t facts_element(epctx_str name);

/* -- versions -- */

/* Below 0, 0, above 0: `a` is before, equal to, behind `b`. Numbers are compared as numbers, one
 * that is missing is 0, and a version with a word behind a '-' is before the one without. */
int facts_compare_versions(epctx_str a, epctx_str b);
/* Whether the fact holds for these products, "ort=1.29,qnn=2.6": `since` is the first version with
 * it, `until` the first without. A product that is not named: the newest version that was looked at
 * (fact "product"), or a newer one than all. NULL: the versions of facts_set_versions. */
bool facts_hold(const fact *f, const char *versions);
/* Whether these versions have come to its `since`. */
bool facts_begun(const fact *f, const char *versions);
/* From then on facts are asked for these, borrowed; NULL, as at first: the newest of each. */
void facts_set_versions(const char *versions);
/* The version of a product for which facts are asked; empty: newer than all. */
epctx_str facts_version(const char *product);
/* Its release: "1.31" of "1.31.1". */
void facts_release(const char *product, char out[FACTS_RELEASE]);
/* Whether a text is such a list of versions, each product once; `error` says what is wrong,
 * `product` (may be NULL) gets a name that is no product. ARG */
epctx_status facts_check_versions(const char *versions, epctx_str *product, epctx_error *error);
/* The fact "rule" of a rule of lint, for a profile (may be NULL) or for all; NULL: it always
 * holds. */
const fact *facts_rule(const char *id, const char *profile);

/* -- other facts -- */

enum {
    FACTS_MOST = 5000,          /* facts of all files read at run time */
    FACTS_MOST_BYTES = 1 << 21, /* of a file */
    FACTS_MOST_FILES = 64,      /* of a folder */
    FACTS_MOST_PAIRS = 32,      /* of a fact */
    FACTS_MOST_VALUE = 4000,    /* bytes of a value */
    FACTS_MOST_NAME = 500,
    FACTS_MOST_PROFILES = 64,
    FACTS_MOST_LOADS = 8 /* calls of facts_load */
};

/* Reads a file, or *.facts of a folder, and puts its facts in the place of those of the same kind
 * and name, or behind those of the kind. On failure everything stays as it is, and the message
 * names file and line. */
epctx_status facts_load(const char *path, epctx_error *error);
/* The same from other files, in other memory, which stays until facts_unload. NULL: the file
 * system, malloc(). */
epctx_status facts_load_from(const epctx_io *io, const epctx_allocator *allocator, const char *path,
                             epctx_error *error);
/* The built-in facts again. */
void facts_unload(void);

/* Judges a file or folder without using it. `say` gets each problem; returns how many there were.
 * `count` gets the number of facts. */
typedef void (*facts_say_fn)(void *user, const char *file, uint32_t line, const char *problem);
size_t facts_judge(const char *path, facts_say_fn say, void *user, size_t *count);

/* -- profiles -- */

/* For epctx_profiles (EPCTX_PROFILES): those of the facts. */
const epctx_profile *facts_profiles(size_t *count);
/* The facts about the EP of a profile: its own block has the key, or a block `ep` that names it;
 * NULL: nobody knows. */
const char *facts_of_ep(const char *profile, const char *key);
/* Whether these facts have this word in the list of a key. */
bool facts_ep_has(const char *profile, const char *key, const char *word);
/* The layout of the compatibility strings of a profile's EP that begin as this one; NULL: pairs. */
const fact *facts_layout(const char *profile, epctx_str text);
/* Whether two profiles are of one EP: equal, or named by one block `ep`. */
bool facts_same_ep(const char *profile, const char *other);

#endif
