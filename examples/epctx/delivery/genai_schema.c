/* genai_schema.c - what ORT GenAI's parser accepts, by the facts "genai". */
#include "delivery_internal.h"
#include "core/session_keys.h"
#include "facts/facts.h"

#include <stdlib.h>
#include <string.h>

static bool is_integer(const json *value) {
    return value->kind == JSON_NUMBER && value->number >= INT32_MIN && value->number <= INT32_MAX &&
           value->number == (double)(int32_t)value->number;
}

/* What a key holds, in the words of the facts and in those of messages; {x} is an object. */
static const struct {
    const char *word, *text;
    json_kind kind;
    bool list, integer;
} words[] = {
    {"text", "text", JSON_STRING, false, false},
    {"number", "a number", JSON_NUMBER, false, false},
    {"integer", "a whole number of 32 bits", JSON_NUMBER, false, true},
    {"boolean", "true or false", JSON_BOOL, false, false},
    {"texts", "a list of texts", JSON_STRING, true, false},
    {"numbers", "a list of numbers", JSON_NUMBER, true, false},
    {"integers", "a list of whole numbers of 32 bits", JSON_NUMBER, true, true},
    {"{", "an object", JSON_OBJECT, false, false},
    {"[", "a list of objects", JSON_OBJECT, true, false},
};
enum { WORD_COUNT = sizeof words / sizeof words[0] };

/* WORD_COUNT: anything. */
static size_t word_of(epctx_str what) {
    size_t i = 0;
    const epctx_str first = {what.data, what.size > 0};
    while (i < WORD_COUNT && !epctx_str_is(what, words[i].word) &&
           !epctx_str_is(first, words[i].word))
        i++;
    return i;
}

static bool is_of_kind(const json *value, size_t word) {
    return value->kind == words[word].kind && (!words[word].integer || is_integer(value));
}

/* A value that is neither list nor object fits "anything". */
static bool fits(const json *value, epctx_str what) {
    const size_t word = word_of(what);
    const json *child;
    if (word == WORD_COUNT) return value->kind <= JSON_STRING;
    if (!words[word].list) return is_of_kind(value, word);
    if (value->kind != JSON_LIST) return false;
    for (child = value->first; child != NULL; child = child->next)
        if (!is_of_kind(child, word)) return false;
    return true;
}

/* What a key may hold. */
typedef struct key_fact {
    epctx_str what;    /* of several the one that fits */
    const fact *f;     /* NULL: the key is not known */
    const fact *later; /* a fact of a version that is not judged for */
} key_fact;

/* Among the facts of one key, or of "*". */
static key_fact find_named(epctx_str object, epctx_str wanted, const json *member) {
    key_fact found = {{NULL, 0}, NULL, NULL};
    size_t at = 0;
    const fact *f;
    while ((f = facts_next("genai", &at)) != NULL) {
        epctx_str name = epctx_str_of(f->name), rest, word;
        const epctx_str owner = epctx_str_cut(&name, '.');
        const epctx_str key = epctx_str_cut(&name, ' '); /* behind it, the end of an older form */
        if (!epctx_str_eq(owner, object) || !epctx_str_eq(key, wanted)) continue;
        if (!facts_hold(f, NULL)) {
            found.later = f;
            continue;
        }
        rest = epctx_str_of(fact_get(f, "holds"));
        while (fact_next_word(&rest, &word)) {
            found.what = word;
            found.f = f;
            if (fits(member, word)) return found;
        }
    }
    return found;
}

static key_fact find_key(epctx_str object, const json *member) {
    const key_fact own = find_named(object, member->key, member);
    key_fact any;
    if (own.f != NULL) return own;
    any = find_named(object, epctx_str_of("*"), member);
    if (any.f == NULL) any.later = own.later;
    return any;
}

static bool is_word(const char *list, epctx_str text) {
    epctx_str rest = epctx_str_of(list), word;
    while (fact_next_word(&rest, &word))
        if (epctx_str_eq_nocase(word, text)) return true;
    return false;
}

/* Whether a value is outside the limits of its fact; `text` gets what is expected. */
static bool breaks_limits(const fact *f, const json *value, epctx_text *text) {
    static const char *const keys[] = {"above", "least", "most"};
    static const char *const says[] = {"above", "at least", "at most"};
    const char *taken = fact_get(f, "words");
    size_t i;
    for (i = 0; i < 3 && value->kind == JSON_NUMBER; i++) {
        const char *limit = fact_get(f, keys[i]);
        const double bound = limit != NULL ? strtod(limit, NULL) : 0;
        if (limit == NULL || (i == 0   ? value->number > bound
                              : i == 1 ? value->number >= bound
                                       : value->number <= bound))
            continue;
        epctx_text_put_format(text, "%s %s", says[i], limit);
        return true;
    }
    if (taken == NULL || value->kind != JSON_STRING || is_word(taken, value->text)) return false;
    epctx_text_put_format(text, "one of %s", taken);
    return true;
}

bool genai_refuses(const char *object, const json *member) {
    char expected[200];
    epctx_text text = epctx_text_of(expected, sizeof expected);
    const key_fact found = find_key(epctx_str_of(object), member);
    return found.f == NULL || !fits(member, found.what) || breaks_limits(found.f, member, &text);
}

/* Objects below that are options of sessions and providers have a rule of their own. */
static bool is_option(epctx_str object) {
    return epctx_str_is(object, "session") || epctx_str_is(object, "providers") ||
           epctx_str_is(object, "provider") || epctx_str_is(object, "filter");
}

/* `where`: names of the objects around, for messages. */
typedef struct place {
    const struct place *outer;
    epctx_str key;
} place;

static void put_place(epctx_text *text, const place *at) {
    if (at == NULL) return;
    put_place(text, at->outer);
    epctx_text_put_shown(text, at->key);
    epctx_text_put_char(text, '.');
}

/* Whether a key without a dot is one of ORT GenAI itself; if not, `near` gets the one that it
 * nearly is. */
static bool is_session_key(epctx_str key, cli_guess *guess, const char **near) {
    static const char start[] = "session.";
    size_t at = 0;
    const fact *f;
    *near = NULL;
    while ((f = facts_next("genai", &at)) != NULL) {
        const char *known = f->name + sizeof start - 1;
        if (!epctx_str_starts(epctx_str_of(f->name), start) || !facts_hold(f, NULL)) continue;
        if (epctx_str_is(key, known)) return true;
        cli_guess_word(guess, known);
        if (guess->best == known) *near = known;
    }
    return false;
}

/* What ORT GenAI does not know itself it passes on to ONNX Runtime. */
static void check_session_key(delivery *d, epctx_str key, const char *path) {
    const epctx_str nothing = epctx_str_of("");
    const char *near = NULL;
    char ort[FACTS_RELEASE];
    cli_guess guess;
    const session_key_kind kind = session_key_judge(key, &guess);
    facts_release("ort", ort);
    if (memchr(key.data, '.', key.size) == NULL && is_session_key(key, &guess, &near)) return;
    if (near != NULL) {
        delivery_say(d, DELIVERY_G_SESSION_KEY, nothing, "'%s%S' is no session option%s", path,
                     &key, cli_guess_hint(&guess));
    } else if (kind == SESSION_KEY_LATER) {
        delivery_say_later(d, DELIVERY_G_SESSION_KEY, nothing, path, key, session_key_find(key));
    } else if (kind == SESSION_KEY_MISSPELLED || kind == SESSION_KEY_UNKNOWN) {
        delivery_say(d, DELIVERY_G_SESSION_KEY, nothing,
                     "'%s%S' is no session option of ONNX Runtime up to %s%s", path, &key, ort,
                     cli_guess_hint(&guess));
    }
}

static void check_object(delivery *d, const json *object, epctx_str name, const place *at);

static void say_unknown(delivery *d, int rule, const char *path, epctx_str key, const fact *later) {
    const epctx_str nothing = epctx_str_of("");
    if (later != NULL)
        delivery_say_later(d, rule, nothing, path, key, later);
    else if (epctx_str_is(key, "ep_context") || epctx_str_is(key, "compile_options"))
        delivery_say(d, rule, nothing,
                     "'%s%S' was proposed for ORT GenAI but is in no version: name the compiled "
                     "model in filename",
                     path, &key);
    else
        delivery_say(d, rule, nothing, "'%s%S' is no key that ORT GenAI knows", path, &key);
}

static void check_member(delivery *d, const json *member, epctx_str name, const place *at) {
    const int rule = is_option(name) ? DELIVERY_G_OPTIONS : DELIVERY_G_CONFIG;
    const epctx_str nothing = epctx_str_of("");
    char path[300];
    epctx_text text = epctx_text_of(path, sizeof path);
    char expected[200];
    epctx_text limits = epctx_text_of(expected, sizeof expected);
    key_fact found;
    const json *child;
    const place here = {at, member->key};
    put_place(&text, at);
    if (epctx_str_is(name, "session")) check_session_key(d, member->key, path);
    found = find_key(name, member);
    if (found.f == NULL) {
        say_unknown(d, rule, path, member->key, found.later);
    } else if (!fits(member, found.what)) {
        const size_t word = word_of(found.what);
        delivery_say(d, rule, nothing, "'%s%S' is not %s", path, &member->key,
                     word < WORD_COUNT ? words[word].text : "a single value");
    } else if (breaks_limits(found.f, member, &limits)) {
        delivery_say(d, rule, nothing, "'%s%S' is %S: %s is expected", path, &member->key,
                     &member->text, expected);
    } else if (*found.what.data == '{' || *found.what.data == '[') {
        found.what.data++;
        found.what.size -= 2;
        if (member->kind == JSON_OBJECT)
            check_object(d, member, found.what, &here);
        else
            for (child = member->first; child != NULL; child = child->next)
                check_object(d, child, found.what, &here);
    }
}

static void check_object(delivery *d, const json *object, epctx_str name, const place *at) {
    const json *member;
    for (member = object->first; member != NULL; member = member->next)
        check_member(d, member, name, at);
}

void genai_check_schema(delivery *d, const json *root) {
    check_object(d, root, epctx_str_of("root"), NULL);
}

/* -- providers -- */

const fact *genai_provider(epctx_str name) {
    const char end[] = "ExecutionProvider";
    const size_t size = sizeof end - 1;
    size_t at = 0;
    const fact *f;
    epctx_str tail;
    if (name.size > size) {
        tail.data = name.data + name.size - size;
        tail.size = size;
        if (epctx_str_eq_nocase(tail, epctx_str_of(end))) name.size -= size;
    }
    while ((f = facts_next("provider", &at)) != NULL)
        if (epctx_str_eq_nocase(name, epctx_str_of(f->name))) return f;
    return NULL;
}

const fact *genai_provider_of(epctx_str source) {
    const epctx_str profile = epctx_str_of(epctx_profile_of(source)->name);
    size_t at = 0;
    const fact *f;
    while ((f = facts_next("provider", &at)) != NULL)
        if (fact_has(f, "profiles", profile)) return f;
    return genai_provider(source);
}
