/* Which kinds of facts there are, their keys and what those hold; and whether facts keep to it. */
#include "facts_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void facts_problem(facts_read *r, const char *file, uint32_t line, const char *format, ...) {
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    r->problems++;
    if (r->say != NULL) r->say(r->user, file, line, text);
}

/* What a value is. */
typedef enum holds {
    TEXT,
    NUMBER,   /* decimal or 0x..., at most `most` */
    NUMBERS,  /* a list of them */
    WORD,     /* one of `words` */
    WORDS,    /* a list of them */
    NAMES,    /* a list of any */
    SOURCES,  /* a list of at most four */
    PATTERN,  /* the name of a file */
    PATTERNS, /* at most four */
    PROFILES, /* a list of names of facts "profile" */
    TRAITS,
    ATTRIBUTES,
    GENAI,    /* types of genai.facts */
    LIMIT,    /* "-1", "0.5" */
    PAIR,     /* the name of an attribute and a value of it */
    COMPARED, /* a built-in profile with a rule for its compatibility strings */
    ELEMENT,  /* an element type of ONNX */
    DATE,
    VERSIONS /* "ort 1.24, qnn 2.6" */
} holds;

typedef struct key_rule {
    const char *kind; /* NULL: of every kind but the head */
    const char *key;
    holds what;
    bool needed;
    uint32_t most;
    const char *words;
} key_rule;

#define YES true
#define NO  false

/* One row a key. */
static const key_rule rules[] = {
    {NULL, "who", TEXT, YES, 0, NULL}, /* whose product it is about */
    {NULL, "seen", WORD, YES, 0, "bench, source, document"},
    {NULL, "from", TEXT, YES, 0, NULL},
    {NULL, "date", DATE, YES, 0, NULL},
    {NULL, "since", VERSIONS, NO, 0, NULL},
    {NULL, "until", VERSIONS, NO, 0, NULL},
    {"facts", "replace", NAMES, NO, 0, NULL},
    {"product", "is", TEXT, YES, 0, NULL},
    {"product", "newest", TEXT, NO, 0, NULL},
    {"ep", "profiles", PROFILES, YES, 0, NULL},
    {"ep", "registers", TEXT, NO, 0, NULL},
    {"ep", "library", TEXT, NO, 0, NULL},
    {"ep", "dll", TEXT, NO, 0, NULL},
    {"ep", "packages", TEXT, NO, 0, NULL},
    {"ep", "needs", TEXT, NO, 0, NULL},
    {"ep", "offline", TEXT, NO, 0, NULL},
    {"ep", "mind", TEXT, NO, 0, NULL},
    {"ep", "load", NAMES, NO, 0, NULL},
    {"ep", "options", NAMES, NO, 0, NULL},
    {"ep", "device", WORDS, NO, 0, "cpu, gpu, npu"},
    {"ep", "architecture", WORD, NO, 0, "htp, compute_capability"},
    {"ep", "chip_options", NAMES, NO, 0, NULL},
    {"ep", "binaries_of", PROFILES, NO, 0, NULL},
    {"plain", "also", NAMES, NO, 0, NULL},
    {"plain", "instead", TEXT, YES, 0, NULL},
    {"other", NULL, TEXT, NO, 0, NULL},
    {"provider", "profiles", PROFILES, NO, 0, NULL},
    {"provider", "no_options", WORD, NO, 0, "yes"},
    {"provider", "fixed_shapes", WORD, NO, 0, "yes"},
    {"provider", "shares", WORD, NO, 0, "yes"},
    {"provider", "graph_gib", LIMIT, NO, 0, NULL},
    {"provider", "process_gib", LIMIT, NO, 0, NULL},
    {"provider", "paths", NAMES, NO, 0, NULL},
    {"provider", "caches", NAMES, NO, 0, NULL},
    {"provider", "libraries", NAMES, NO, 0, NULL},
    {"provider", "hides_cache", TEXT, NO, 0, NULL},
    {"provider", "device_option", TEXT, NO, 0, NULL},
    {"provider", "config", TEXT, NO, 0, NULL},
    {"provider", "prompt_length", TEXT, NO, 0, NULL},
    {"provider", "response_length", TEXT, NO, 0, NULL},
    {"provider", "dlc_option", TEXT, NO, 0, NULL},
    {"provider", "dlc_files", PATTERN, NO, 0, NULL},
    {"provider", "tokenizer", TEXT, NO, 0, NULL},
    {"origin", "is", TEXT, YES, 0, NULL},
    {"profile", "sources", SOURCES, NO, 0, NULL},
    {"profile", "traits", TRAITS, NO, 0, NULL},
    {"profile", "key", WORD, YES, 0, "none, node_name, partition_name"},
    {"profile", "required", ATTRIBUTES, NO, 0, NULL},
    {"profile", "binary", PATTERN, NO, 0, NULL},
    {"profile", "sidecars", PATTERNS, NO, 0, NULL},
    {"profile", "attribute", TEXT, NO, 0, NULL},
    {"profile", "compat_starts", TEXT, NO, 0, NULL},
    {"profile", "compat_rule", COMPARED, NO, 0, NULL},
    {"profile", "registers", TEXT, NO, 0, NULL},
    {"profile", "library", TEXT, NO, 0, NULL},
    {"profile", "dll", TEXT, NO, 0, NULL},
    {"profile", "packages", TEXT, NO, 0, NULL},
    {"profile", "needs", TEXT, NO, 0, NULL},
    {"profile", "offline", TEXT, NO, 0, NULL},
    {"profile", "mind", TEXT, NO, 0, NULL},
    {"profile", "load", NAMES, NO, 0, NULL},
    {"profile", "options", NAMES, NO, 0, NULL},
    {"profile", "device", WORDS, NO, 0, "cpu, gpu, npu"},
    {"profile", "architecture", WORD, NO, 0, "htp, compute_capability"},
    {"profile", "chip_options", NAMES, NO, 0, NULL},
    {"profile", "binaries_of", PROFILES, NO, 0, NULL},
    {"attribute", "profiles", PROFILES, YES, 0, NULL},
    {"attribute", "source", TEXT, NO, 0, NULL},
    {"attribute", "when", PAIR, NO, 0, NULL},
    {"attribute", "why", TEXT, NO, 0, NULL},
    {"attribute", "words", NAMES, NO, 0, NULL},
    {"attribute", "renames", TEXT, NO, 0, NULL},
    {"code", "meaning", TEXT, YES, 0, NULL},
    {"code", "cure", TEXT, NO, 0, NULL},
    {"code", "names", NAMES, NO, 0, NULL},
    {"range", "about", TEXT, YES, 0, NULL},
    {"chip", "soc_model", NUMBER, YES, 65535, NULL},
    {"chip", "htp", NUMBER, YES, 255, NULL},
    {"chip", "vtcm", NUMBER, NO, 255, NULL},
    {"brand", NULL, TEXT, NO, 0, NULL},
    {"chip", "also", NAMES, NO, 0, NULL},
    {"chip", "soc_id", NUMBERS, NO, 65535, NULL},
    {"message", "cause", TEXT, YES, 0, NULL},
    {"message", "cure", TEXT, YES, 0, NULL},
    {"message", "general", WORD, NO, 0, "yes"},
    {"harmless", NULL, TEXT, NO, 0, NULL},
    {"option", "also", NAMES, NO, 0, NULL},
    {"option", "id", TEXT, NO, 0, NULL},
    {"option", "constant", TEXT, NO, 0, NULL},
    {"option", "type", WORD, NO, 0, "switch, text, file, folder, name, number, choice"},
    {"option", "default", TEXT, NO, 0, NULL},
    {"option", "phase", WORD, NO, 0, "none, generate, load, both"},
    {"option", "text", TEXT, NO, 0, NULL},
    {"genai", "holds", GENAI, YES, 0, NULL},
    {"genai", "least", LIMIT, NO, 0, NULL},
    {"genai", "above", LIMIT, NO, 0, NULL},
    {"genai", "most", LIMIT, NO, 0, NULL},
    {"genai", "words", NAMES, NO, 0, NULL},
    {"opset", NULL, TEXT, NO, 0, NULL},
    {"ir", NULL, TEXT, NO, 0, NULL},
    {"rule", NULL, TEXT, NO, 0, NULL},
    {"shape", "reads", NUMBERS, YES, 31, NULL},
    {"shape", "sure", NUMBERS, NO, 31, NULL},
    {"shape", "always", WORD, NO, 0, "yes"},
    {"compat", "profiles", PROFILES, YES, 0, NULL},
    {"compat", "starts", TEXT, NO, 0, NULL},
    {"compat", "between", TEXT, YES, 0, NULL},
    {"compat", "fields", NAMES, YES, 0, NULL},
    {"datatype", "number", NUMBER, YES, 65535, NULL},
    {"datatype", "onnx", ELEMENT, YES, 0, NULL},
    {"datatype", "quantized", WORD, NO, 0, "yes"},
};
#define RULE_COUNT (sizeof rules / sizeof rules[0])

/* -- words -- */

static const struct {
    const char *name;
    uint32_t bit;
} traits[] = {
    {"any_case", EPCTX_TRAIT_ANY_CASE},
    {"no_source", EPCTX_TRAIT_NO_SOURCE},
    {"own_source", EPCTX_TRAIT_OWN_SOURCE},
    {"static_shapes", EPCTX_TRAIT_STATIC_SHAPES},
    {"static_outputs", EPCTX_TRAIT_STATIC_OUTPUTS},
    {"one_node", EPCTX_TRAIT_ONE_NODE},
    {"no_mix", EPCTX_TRAIT_NO_MIX},
    {"one_primary", EPCTX_TRAIT_ONE_PRIMARY},
    {"secondary_context", EPCTX_TRAIT_SECONDARY_CONTEXT},
    {"no_dots", EPCTX_TRAIT_NO_DOTS},
    {"embed_one", EPCTX_TRAIT_EMBED_ONE},
    {"only_embedded", EPCTX_TRAIT_ONLY_EMBEDDED},
    {"io_names", EPCTX_TRAIT_IO_NAMES},
    {"io_overrides", EPCTX_TRAIT_IO_OVERRIDES},
    {"all_name", EPCTX_TRAIT_ALL_NAME},
    {"any_ep", EPCTX_TRAIT_ANY_EP},
    {"xml_pair", EPCTX_TRAIT_XML_PAIR},
    {"stripped_engine", EPCTX_TRAIT_STRIPPED_ENGINE},
    {"each_context", EPCTX_TRAIT_EACH_CONTEXT},
    {"embeds", EPCTX_TRAIT_EMBEDS},
    {"any_main", EPCTX_TRAIT_ANY_MAIN},
    {"one_context", EPCTX_TRAIT_ONE_CONTEXT},
    {"context_folder", EPCTX_TRAIT_CONTEXT_FOLDER},
};

bool facts_traits(epctx_str list, uint32_t *bits, epctx_str *bad) {
    *bits = 0;
    while (fact_next_word(&list, bad)) {
        size_t i = 0;
        while (i < sizeof traits / sizeof traits[0] && !epctx_str_is(*bad, traits[i].name)) i++;
        if (i == sizeof traits / sizeof traits[0]) return false;
        *bits |= traits[i].bit;
    }
    return true;
}

bool facts_attributes(epctx_str list, uint32_t *bits, epctx_str *bad) {
    static const char *const names[EPCTX_EPNODE_ATTR_COUNT] = {
#define NAME_OF(id, name, type, member) name,
        EPCTX_EPNODE_ATTR_LIST(NAME_OF)
#undef NAME_OF
    };
    *bits = 0;
    while (fact_next_word(&list, bad)) {
        uint32_t i = 0;
        while (i < EPCTX_EPNODE_ATTR_COUNT && !epctx_str_is(*bad, names[i])) i++;
        if (i == EPCTX_EPNODE_ATTR_COUNT) return false;
        *bits |= UINT32_C(1) << i;
    }
    return true;
}

bool facts_key(epctx_str word, epctx_key *key) {
    static const char *const names[] = {"none", "node_name", "partition_name"};
    size_t i = 0;
    while (i < 3 && !epctx_str_is(word, names[i])) i++;
    *key = (epctx_key)i;
    return i < 3;
}

const epctx_profile *facts_compared_as(epctx_str word) {
    size_t count, i;
    const epctx_profile *all = epctx_profiles_built_in(&count);
    for (i = 0; i < count; i++)
        if (all[i].compat_fn != NULL && epctx_str_is(word, all[i].name)) return &all[i];
    return NULL;
}

/* -- values -- */

static bool is_number(epctx_str text, uint32_t most) {
    char digits[16], *end;
    unsigned long number;
    if (text.size == 0 || text.size >= sizeof digits) return false;
    memcpy(digits, text.data, text.size);
    digits[text.size] = '\0';
    if (digits[0] < '0' || digits[0] > '9') return false;
    if (digits[0] == '0' && digits[1] != '\0' && digits[1] != 'x') return false;
    number = strtoul(digits, &end, 0);
    return *end == '\0' && number <= most;
}

/* "2026-11" or "2026-11-28" */
static bool is_date(const char *text) {
    static const char form[] = "0000-00-00";
    size_t size = strlen(text), i;
    if (size != 7 && size != 10) return false;
    for (i = 0; i < size; i++)
        if (form[i] == '-' ? text[i] != '-' : text[i] < '0' || text[i] > '9') return false;
    return strtoul(text, NULL, 10) >= 2000 && strtoul(text + 5, NULL, 10) - 1 < 12 &&
           (size == 7 || strtoul(text + 8, NULL, 10) - 1 < 31);
}

static bool is_genai(epctx_str word) {
    const bool object = word.size > 2 && (*word.data == '{' || *word.data == '[');
    if (object) return word.data[word.size - 1] == (*word.data == '{' ? '}' : ']');
    return fact_list_has("text, number, integer, boolean, texts, numbers, integers, anything",
                         word);
}

static bool is_limit(epctx_str text) {
    char digits[32], *end;
    if (text.size == 0 || text.size >= sizeof digits) return false;
    memcpy(digits, text.data, text.size);
    digits[text.size] = '\0';
    (void)strtod(digits, &end);
    return *end == '\0';
}

static bool is_version_of(epctx_str word) {
    const epctx_str product = epctx_str_cut(&word, ' ');
    return product.size > 0 && word.size > 0 && *word.data >= '0' && *word.data <= '9' &&
           memchr(word.data, ' ', word.size) == NULL;
}

static bool is_pair(epctx_str value) {
    const epctx_str name = epctx_str_cut(&value, ' ');
    return name.size > 0 && value.size > 0;
}

/* Whether a word of a list, or a value, is what the rule wants. */
static bool fits(const key_rule *rule, epctx_str word) {
    switch (rule->what) {
    case NUMBER:
    case NUMBERS: return is_number(word, rule->most);
    case WORD:
    case WORDS: return fact_list_has(rule->words, word);
    case PATTERN:
    case PATTERNS: return memchr(word.data, '/', word.size) == NULL;
    case GENAI: return is_genai(word);
    case LIMIT: return is_limit(word);
    case PAIR: return is_pair(word);
    case COMPARED: return facts_compared_as(word) != NULL;
    case ELEMENT: return facts_element(word) != 0;
    case VERSIONS: return is_version_of(word);
    default: return true;
    }
}

static const char *expected(const key_rule *rule) {
    switch (rule->what) {
    case NUMBER:
    case NUMBERS: return "a number that is not too large";
    case WORD:
    case WORDS: return rule->words;
    case PATTERN:
    case PATTERNS: return "the name of a file, without a folder";
    case TRAITS: return "a trait";
    case ATTRIBUTES: return "an attribute of EPContext";
    case GENAI:
        return "text, number, integer, boolean, texts, numbers, integers, {object}, [object]";
    case PAIR: return "the name of an attribute and a value";
    case COMPARED: return "a built-in profile with a rule of its own for compatibility strings";
    case LIMIT: return "a number such as -1 or 0.5";
    case ELEMENT: return "an element type of ONNX, such as float32";
    case DATE: return "a date such as 2026-11-28";
    case VERSIONS: return "a product and a version, such as ort 1.24";
    default: return "something else";
    }
}

static bool is_list(holds what) {
    return what != TEXT && what != NUMBER && what != WORD && what != PATTERN && what != DATE &&
           what != ELEMENT && what != LIMIT && what != PAIR && what != TRAITS &&
           what != ATTRIBUTES && what != COMPARED;
}

static void judge_value(facts_read *r, const fact *f, const key_rule *rule, const char *value) {
    epctx_str rest = epctx_str_of(value), word = rest;
    uint32_t bits, words = 0;
    bool good = true;
    if (rest.size > FACTS_MOST_VALUE) {
        facts_problem(r, f->file, f->line, "'%s' has more than %d bytes", rule->key,
                      FACTS_MOST_VALUE);
        return;
    }
    if (rule->what == TRAITS)
        good = facts_traits(rest, &bits, &word);
    else if (rule->what == ATTRIBUTES)
        good = facts_attributes(rest, &bits, &word);
    else if (rule->what == DATE)
        good = is_date(value);
    else if (!is_list(rule->what))
        good = fits(rule, rest);
    else
        while (good && fact_next_word(&rest, &word)) {
            words++;
            good = word.size > 0 && fits(rule, word);
        }
    if (!good)
        facts_problem(r, f->file, f->line, "%s: expected %s, found '%.*s'", rule->key,
                      expected(rule), (int)(word.size < 60 ? word.size : 60), word.data);
    else if (words > 4 && (rule->what == SOURCES || rule->what == PATTERNS))
        facts_problem(r, f->file, f->line, "%s: at most four are possible", rule->key);
}

/* -- facts -- */

bool facts_is_kind(const char *kind) {
    size_t i;
    for (i = 0; i < RULE_COUNT; i++)
        if (rules[i].kind != NULL && strcmp(rules[i].kind, kind) == 0) return true;
    return false;
}

/* The rule for a key; NULL: the kind has none of that name. */
static const key_rule *rule_of(const char *kind, const char *key) {
    const bool head = strcmp(kind, "facts") == 0;
    size_t i;
    for (i = 0; i < RULE_COUNT; i++) {
        if (rules[i].key == NULL || strcmp(rules[i].key, key) != 0) continue;
        if (rules[i].kind == NULL ? !head : strcmp(rules[i].kind, kind) == 0) return &rules[i];
    }
    return NULL;
}

/* Names that are more than names. */
static const char *name_problem(const fact *f) {
    epctx_str name = epctx_str_of(f->name), rest = name;
    uint64_t number = 0;
    size_t i;
    if (name.size > FACTS_MOST_NAME) return "the name is too long";
    if (strcmp(f->kind, "profile") == 0 || strcmp(f->kind, "product") == 0) {
        for (i = 0; i < name.size; i++)
            if ((f->name[i] < 'a' || f->name[i] > 'z') && f->name[i] != '_' &&
                (f->name[i] < '0' || f->name[i] > '9'))
                return "the name may have letters from a to z, digits and '_'";
        return name.size < 32 ? NULL : "the name is too long";
    }
    if (strcmp(f->kind, "code") == 0) {
        (void)epctx_str_cut(&rest, ' ');
        return epctx_str_number(rest, &number) && number <= 65535
                   ? NULL
                   : "expected 'EP NUMBER', up to 65535";
    }
    if (strcmp(f->kind, "range") == 0) {
        (void)epctx_str_cut(&rest, ' ');
        return epctx_str_take_number(&rest, &number) && epctx_str_starts(rest, "-") &&
                       epctx_str_number((epctx_str){rest.data + 1, rest.size - 1}, &number)
                   ? NULL
                   : "expected 'EP FIRST-LAST'";
    }
    if (strcmp(f->kind, "ir") == 0)
        return epctx_str_number(name, &number) && number < 1000 ? NULL : "expected a number";
    if (strcmp(f->kind, "opset") == 0) {
        (void)epctx_str_cut(&rest, ' ');
        return epctx_str_number(rest, &number) && number > 0 && number < 100000
                   ? NULL
                   : "expected 'DOMAIN VERSION'";
    }
    if (strcmp(f->kind, "rule") == 0) {
        const epctx_str id = epctx_str_cut(&rest, ' ');
        return id.size == 4 && strchr("EWI", *id.data) != NULL
                   ? NULL
                   : "expected 'RULE' or 'RULE PROFILE'";
    }
    if (strcmp(f->kind, "attribute") == 0) {
        (void)epctx_str_cut(&rest, ' ');
        return rest.size > 0 ? NULL : "expected 'EP ATTRIBUTE'";
    }
    if (strcmp(f->kind, "genai") == 0)
        return strchr(f->name, '.') != NULL ? NULL : "expected 'OBJECT.KEY'";
    return NULL;
}

/* An option that has a phase, or is in epctx.h, is described; of others the name may be all. */
static void judge_option(facts_read *r, const fact *f) {
    static const char *const keys[] = {"type", "phase", "text"};
    size_t i;
    if (fact_get(f, "id") == NULL && fact_get(f, "phase") == NULL) return;
    for (i = 0; i < 3; i++)
        if (fact_get(f, keys[i]) == NULL)
            facts_problem(r, f->file, f->line, "'option: %.60s' has no '%s'", f->name, keys[i]);
}

void facts_judge_one(facts_read *r, const fact *f) {
    const bool is_default = strcmp(f->kind, "default") == 0;
    const char *problem;
    uint32_t i;
    if (!is_default && !facts_is_kind(f->kind)) {
        facts_problem(r, f->file, f->line, "there is no kind '%s' of facts", f->kind);
        return;
    }
    problem = name_problem(f);
    if (problem != NULL)
        facts_problem(r, f->file, f->line, "%s: %s, found '%.60s'", f->kind, problem, f->name);
    for (i = 0; i < f->count; i++) {
        const key_rule *rule = rule_of(f->kind, f->pairs[i].key);
        if (rule == NULL)
            facts_problem(r, f->file, f->line, "'%s' has no key '%s'", f->kind, f->pairs[i].key);
        else
            judge_value(r, f, rule, f->pairs[i].value);
    }
    if (strcmp(f->kind, "option") == 0) judge_option(r, f);
    for (i = 0; i < RULE_COUNT && !is_default; i++) {
        if (!rules[i].needed || rule_of(f->kind, rules[i].key) != &rules[i]) continue;
        if (fact_get(f, rules[i].key) == NULL)
            facts_problem(r, f->file, f->line, "'%s: %.60s' has no '%s'", f->kind, f->name,
                          rules[i].key);
    }
}

/* -- all together -- */

static const fact_kind *kind_of(const fact_kind *kinds, size_t count, const char *name) {
    size_t i;
    for (i = 0; i < count; i++)
        if (strcmp(kinds[i].name, name) == 0) return &kinds[i];
    return NULL;
}

static bool is_named(const fact *const *all, const fact_kind *kind, epctx_str name) {
    uint32_t i;
    for (i = 0; kind != NULL && i < kind->count; i++)
        if (epctx_str_is(name, all[kind->first + i]->name)) return true;
    return false;
}

/* Two facts of one name in what was read. */
static void judge_doubles(facts_read *r) {
    size_t i, k;
    for (i = 0; i < r->count; i++)
        for (k = 0; k < i; k++)
            if (strcmp(r->facts[i]->name, r->facts[k]->name) == 0 &&
                strcmp(r->facts[i]->kind, r->facts[k]->kind) == 0)
                facts_problem(r, r->facts[i]->file, r->facts[i]->line,
                              "'%s: %.60s' is in %s:%u, too", r->facts[i]->kind, r->facts[i]->name,
                              r->facts[k]->file, r->facts[k]->line);
}

/* Words that name other facts: profiles, and the products of versions. */
static void judge_names(facts_read *r, const fact *f, const fact *const *all,
                        const fact_kind *kinds, size_t count) {
    static const struct {
        const char *key, *kind;
    } keys[] = {{"profiles", "profile"},
                {"binaries_of", "profile"},
                {"since", "product"},
                {"until", "product"}};
    size_t i;
    for (i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        epctx_str rest = epctx_str_of(fact_get(f, keys[i].key)), word;
        while (fact_next_word(&rest, &word)) {
            word = epctx_str_cut(&word, ' ');
            if (!is_named(all, kind_of(kinds, count, keys[i].kind), word))
                facts_problem(r, f->file, f->line, "%s: there is no %s '%.*s'", keys[i].key,
                              keys[i].kind, (int)(word.size < 60 ? word.size : 60), word.data);
        }
    }
}

static bool is_for_any(const fact *f) {
    return strcmp(f->kind, "profile") == 0 && fact_has(f, "traits", epctx_str_of("any_ep"));
}

/* There is one profile for EPs without one, and not too many others. */
static void judge_profiles(facts_read *r, const fact *const *all, const fact_kind *kind) {
    const char *file = r->path;
    uint32_t i, line = 0, found = 0;
    for (i = 0; kind != NULL && i < kind->count; i++) found += is_for_any(all[kind->first + i]);
    for (i = 0; i < r->count; i++)
        if (is_for_any(r->facts[i])) {
            file = r->facts[i]->file;
            line = r->facts[i]->line;
        }
    if (found != 1)
        facts_problem(r, file, line, "expected one profile with the trait any_ep, found %u",
                      (unsigned)found);
    else if (kind->count > FACTS_MOST_PROFILES)
        facts_problem(r, r->path, 0, "there are more than %d profiles", FACTS_MOST_PROFILES);
}

void facts_judge_all(facts_read *r, const fact *const *all, const fact_kind *kinds,
                     size_t kinds_n) {
    size_t i;
    judge_doubles(r);
    for (i = 0; i < r->count; i++) judge_names(r, r->facts[i], all, kinds, kinds_n);
    judge_profiles(r, all, kind_of(kinds, kinds_n, "profile"));
}
