/* Facts: the built-in table, or what lies over it, and how to ask. */
#include "facts_internal.h"

#include <stdlib.h>
#include <string.h>

#include "build/facts_table.h"

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

/* Instead of the table, when something was loaded. The tool loads before it asks, so that nothing
 * here changes while somebody looks at it. */
static facts_overlay over;

void facts_use(const facts_overlay *overlay) {
    over = *overlay;
}

const fact_kind *facts_kinds(size_t *count) {
    *count = over.facts != NULL ? over.kind_count : COUNT(built_in_kinds);
    return over.facts != NULL ? over.kinds : built_in_kinds;
}

/* -- asking -- */

static const fact_kind *kind_of(const char *name) {
    size_t count, i;
    const fact_kind *kinds = facts_kinds(&count);
    for (i = 0; i < count; i++)
        if (strcmp(kinds[i].name, name) == 0) return &kinds[i];
    return NULL;
}

static const fact *fact_at(size_t at) {
    return over.facts != NULL ? over.facts[at] : &built_in_facts[at];
}

const fact *facts_next(const char *kind, size_t *at) {
    const fact_kind *all = kind_of(kind);
    if (all == NULL || *at >= all->count) return NULL;
    return fact_at(all->first + (*at)++);
}

const fact *facts_find(const char *kind, const char *name) {
    size_t at = 0;
    const fact *f;
    while ((f = facts_next(kind, &at)) != NULL && strcmp(f->name, name) != 0)
        ;
    return f;
}

const char *fact_get(const fact *f, const char *key) {
    uint32_t i;
    for (i = 0; i < f->count; i++)
        if (strcmp(f->pairs[i].key, key) == 0) return f->pairs[i].value;
    return f->defaults != NULL ? fact_get(f->defaults, key) : NULL;
}

uint32_t fact_number(const fact *f, const char *key) {
    const char *text = fact_get(f, key);
    return text != NULL ? (uint32_t)strtoul(text, NULL, 0) : 0;
}

bool fact_next_word(epctx_str *rest, epctx_str *word) {
    if (rest->data == NULL || rest->size == 0) return false;
    *word = epctx_str_cut(rest, ',');
    while (rest->size > 0 && *rest->data == ' ') {
        rest->data++;
        rest->size--;
    }
    return true;
}

bool fact_list_has(const char *list, epctx_str word) {
    epctx_str rest = epctx_str_of(list), one;
    while (fact_next_word(&rest, &one))
        if (epctx_str_eq(one, word)) return true;
    return false;
}

bool fact_has(const fact *f, const char *key, epctx_str word) {
    return fact_list_has(fact_get(f, key), word);
}

int32_t facts_element(epctx_str name) {
    int32_t type = 26;
    while (type > 0 && !epctx_str_is(name, epctx_elem_name(type))) type--;
    return type;
}

const char *facts_of_ep(const char *profile, const char *key) {
    const epctx_str name = epctx_str_of(profile);
    const fact *f = facts_find("profile", profile);
    const char *value = f != NULL ? fact_get(f, key) : NULL;
    size_t at = 0;
    if (value != NULL) return value;
    while ((f = facts_next("ep", &at)) != NULL)
        if (fact_has(f, "profiles", name)) return fact_get(f, key);
    return NULL;
}

bool facts_ep_has(const char *profile, const char *key, const char *word) {
    return fact_list_has(facts_of_ep(profile, key), epctx_str_of(word));
}

const fact *facts_layout(const char *profile, epctx_str text) {
    size_t at = 0;
    const fact *f;
    while ((f = facts_next("compat", &at)) != NULL) {
        const char *starts = fact_get(f, "starts");
        if (fact_has(f, "profiles", epctx_str_of(profile)) &&
            (starts == NULL || epctx_str_starts(text, starts)))
            break;
    }
    return f;
}

bool facts_same_ep(const char *profile, const char *other) {
    const epctx_str a = epctx_str_of(profile), b = epctx_str_of(other);
    size_t at = 0;
    const fact *f;
    if (epctx_str_eq(a, b)) return true;
    while ((f = facts_next("ep", &at)) != NULL)
        if (fact_has(f, "profiles", a) && fact_has(f, "profiles", b)) return true;
    return false;
}

/* -- versions -- */

/* Takes a number off the front; what is no number is 0. */
static uint64_t take_part(epctx_str *version) {
    uint64_t number = 0;
    if (version->size > 0 && !epctx_str_take_number(version, &number)) version->size = 0;
    if (version->size > 0 && *version->data == '.') {
        version->data++;
        version->size--;
    }
    return number;
}

int facts_compare_versions(epctx_str a, epctx_str b) {
    epctx_str word_a = a, word_b = b;
    a = epctx_str_cut(&word_a, '-');
    b = epctx_str_cut(&word_b, '-');
    while (a.size > 0 || b.size > 0) {
        const uint64_t x = take_part(&a), y = take_part(&b);
        if (x != y) return x < y ? -1 : 1;
    }
    return (word_a.size == 0) - (word_b.size == 0);
}

/* For which facts are asked; NULL: the newest. */
static const char *asked_versions;

void facts_set_versions(const char *versions) {
    asked_versions = versions;
}

/* The version of a product in "ort=1.29,qnn=2.6", or its newest; empty: newer than all. */
static epctx_str version_of(const char *versions, epctx_str product) {
    epctx_str rest = epctx_str_of(versions != NULL ? versions : asked_versions), one;
    size_t at = 0;
    const fact *f;
    while (fact_next_word(&rest, &one)) {
        const epctx_str name = epctx_str_cut(&one, '=');
        if (epctx_str_eq(name, product)) return one;
    }
    while ((f = facts_next("product", &at)) != NULL)
        if (epctx_str_is(product, f->name)) return epctx_str_of(fact_get(f, "newest"));
    return epctx_str_of("");
}

epctx_str facts_version(const char *product) {
    return version_of(NULL, epctx_str_of(product));
}

void facts_release(const char *product, char out[FACTS_RELEASE]) {
    epctx_str version = facts_version(product);
    epctx_text text = epctx_text_of(out, FACTS_RELEASE);
    size_t i, dots = 0;
    for (i = 0; i < version.size; i++) {
        dots += version.data[i] == '.';
        if (dots == 2) version.size = i;
    }
    epctx_text_put_shown(&text, version);
}

/* Whether the version asked about is at or behind that of every entry of "ort 1.24, qnn 2.6" (all),
 * or of one of them. */
static bool reached(const char *list, const char *versions, bool all) {
    epctx_str rest = epctx_str_of(list), version;
    while (fact_next_word(&rest, &version)) {
        const epctx_str product = epctx_str_cut(&version, ' ');
        const epctx_str asked = version_of(versions, product);
        const bool here = asked.size == 0 || facts_compare_versions(asked, version) >= 0;
        if (here != all) return here;
    }
    return all;
}

bool facts_begun(const fact *f, const char *versions) {
    return reached(fact_get(f, "since"), versions, true);
}

bool facts_hold(const fact *f, const char *versions) {
    return facts_begun(f, versions) && !reached(fact_get(f, "until"), versions, false);
}

static bool is_version(epctx_str text) {
    uint64_t number;
    epctx_str word = text;
    text = epctx_str_cut(&word, '-');
    while (epctx_str_take_number(&text, &number)) {
        if (text.size == 0) return true;
        if (*text.data != '.') return false;
        text.data++;
        text.size--;
    }
    return false;
}

static bool is_product(epctx_str name) {
    size_t at = 0;
    const fact *f;
    while ((f = facts_next("product", &at)) != NULL)
        if (epctx_str_is(name, f->name)) return true;
    return false;
}

/* Whether the product is named in a list that ends where `end` begins. */
static bool is_named_before(const char *versions, epctx_str end) {
    epctx_str rest = {versions, (size_t)(end.data - versions)}, one;
    while (fact_next_word(&rest, &one))
        if (epctx_str_eq(epctx_str_cut(&one, '='), end)) return true;
    return false;
}

epctx_status facts_check_versions(const char *versions, epctx_str *bad, epctx_error *error) {
    epctx_str rest = epctx_str_of(versions), version;
    epctx_error_clear(error);
    if (bad != NULL) *bad = epctx_str_of("");
    if (rest.size == 0) return epctx_fail(error, EPCTX_ERR_ARG, "expected PRODUCT=VERSION,...");
    while (fact_next_word(&rest, &version)) {
        const epctx_str product = epctx_str_cut(&version, '=');
        if (!is_product(product)) {
            if (bad != NULL) *bad = product;
            return epctx_fail(error, EPCTX_ERR_ARG, "'%S' is no product that the facts know",
                              &product);
        }
        if (is_named_before(versions, product))
            return epctx_fail(error, EPCTX_ERR_ARG, "%S is named twice", &product);
        if (!is_version(version))
            return epctx_fail(error, EPCTX_ERR_ARG, "%S: expected a version such as 1.30.0",
                              &product);
    }
    return EPCTX_OK;
}

/* -- rules of lint -- */

/* The rest of "E014 qnn" is the profile. */
static const fact *rule_for(epctx_str id, epctx_str profile) {
    size_t at = 0;
    const fact *f;
    while ((f = facts_next("rule", &at)) != NULL) {
        epctx_str rest = epctx_str_of(f->name);
        if (epctx_str_eq(epctx_str_cut(&rest, ' '), id) && epctx_str_eq(rest, profile)) break;
    }
    return f;
}

const fact *facts_rule(const char *id, const char *profile) {
    const fact *f = NULL;
    if (profile != NULL) f = rule_for(epctx_str_of(id), epctx_str_of(profile));
    return f != NULL ? f : rule_for(epctx_str_of(id), epctx_str_of(""));
}

const epctx_profile *facts_profiles(size_t *count) {
    if (over.profiles == NULL) return epctx_profiles_built_in(count);
    if (count != NULL) *count = over.profile_count;
    return over.profiles;
}
