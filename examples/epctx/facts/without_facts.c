/* Of libepctx.a, for programs with the library and without facts: the profiles are the built-in
 * ones. In a program with facts, facts.c has this function. */
#include "facts.h"

const epctx_profile *facts_profiles(size_t *count) {
    return epctx_profiles_built_in(count);
}
