/* Profiles from facts. */
#include "facts_internal.h"

#include <string.h>

/* The words of a list, at most four, as texts of their own; false: no memory. */
static bool take_words(epctx_arena *arena, const char *list, const char *out[4]) {
    epctx_str rest = epctx_str_of(list), word;
    size_t i;
    for (i = 0; i < 4 && fact_next_word(&rest, &word); i++) {
        out[i] = epctx_arena_copy(arena, word);
        if (out[i] == NULL) return false;
    }
    return true;
}

epctx_profile *facts_make_profiles(epctx_arena *arena, const fact *const *facts, size_t count) {
    epctx_profile *all = (epctx_profile *)epctx_arena_array(arena, count, sizeof *all);
    epctx_str bad;
    size_t i;
    for (i = 0; all != NULL && i < count; i++) {
        const fact *f = facts[i];
        epctx_profile *p = &all[i];
        const epctx_profile *as = facts_compared_as(epctx_str_of(fact_get(f, "compat_rule")));
        p->name = f->name;
        p->binary = fact_get(f, "binary") != NULL ? fact_get(f, "binary") : "";
        p->attribute = fact_get(f, "attribute");
        p->compat_fn = as != NULL ? as->compat_fn : NULL;
        (void)facts_traits(epctx_str_of(fact_get(f, "traits")), &p->traits, &bad);
        (void)facts_attributes(epctx_str_of(fact_get(f, "required")), &p->required, &bad);
        (void)facts_key(epctx_str_of(fact_get(f, "key")), &p->key);
        if (!take_words(arena, fact_get(f, "sources"), p->sources) ||
            !take_words(arena, fact_get(f, "sidecars"), p->sidecars))
            return NULL;
    }
    return all;
}
