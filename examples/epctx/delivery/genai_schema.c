/* genai_schema.c - what ORT GenAI's parser accepts, by the facts "genai". */
#include "delivery_internal.h"
#include "core/session_keys.h"
#include "facts/facts.h"

#include <string.h>

static bool holds(const json *value, json_kind kind) {
    const json *child;
    if (value->kind != JSON_LIST) return false;
    for (child = value->first; child != NULL; child = child->next)
        if (child->kind != kind) return false;
    return true;
}

/* What a key holds, in the words of the facts and in those of messages; {x} is an object. */
static const struct {
    const char *word, *text;
    json_kind kind;
    bool list;
} words[] = {
    {"text", "text", JSON_STRING, false},
    {"number", "a number", JSON_NUMBER, false},
    {"boolean", "true or false", JSON_BOOL, false},
    {"texts", "a list of texts", JSON_STRING, true},
    {"numbers", "a list of numbers", JSON_NUMBER, true},
    {"{", "an object", JSON_OBJECT, false},
    {"[", "a list of objects", JSON_OBJECT, true},
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

static bool fits(const json *value, epctx_str what) {
    const size_t word = word_of(what);
    if (word == WORD_COUNT) return true;
    return words[word].list ? holds(value, words[word].kind) : value->kind == words[word].kind;
}

/* What a key may hold, the one that fits if there are several; false: the key is not known, or
 * `later` has the fact of a version that is not judged for. */
static bool find_key(epctx_str object, const json *member, epctx_str *what, const fact **later) {
    size_t at = 0;
    bool found = false;
    const fact *f;
    *later = NULL;
    while ((f = facts_next("genai", &at)) != NULL) {
        epctx_str key = epctx_str_of(f->name), rest, word;
        const epctx_str owner = epctx_str_cut(&key, '.');
        if (!epctx_str_eq(owner, object) ||
            (!epctx_str_eq(key, member->key) && !(epctx_str_is(key, "*") && !found)))
            continue;
        if (!facts_hold(f, NULL)) {
            *later = f;
            continue;
        }
        rest = epctx_str_of(fact_get(f, "holds"));
        while (fact_next_word(&rest, &word)) {
            *what = word;
            found = true;
            if (fits(member, word)) return true;
        }
    }
    return found;
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
        if (!epctx_str_starts(epctx_str_of(f->name), start)) continue;
        if (epctx_str_is(key, known)) return true;
        cli_guess_word(guess, known);
        if (guess->best != known) continue;
        *near = known;
        return false;
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

static void check_member(delivery *d, const json *member, epctx_str name, const place *at) {
    const int rule = is_option(name) ? DELIVERY_G_OPTIONS : DELIVERY_G_CONFIG;
    const epctx_str nothing = epctx_str_of("");
    char path[300];
    epctx_text text = epctx_text_of(path, sizeof path);
    epctx_str what;
    const json *child;
    const fact *later;
    const place here = {at, member->key};
    put_place(&text, at);
    if (epctx_str_is(name, "session")) check_session_key(d, member->key, path);
    if (!find_key(name, member, &what, &later)) {
        /* A scalar at the top is passed over. */
        if (epctx_str_is(name, "root") && member->kind <= JSON_STRING) return;
        if (later != NULL)
            delivery_say_later(d, rule, nothing, path, member->key, later);
        else if (epctx_str_is(member->key, "ep_context") ||
                 epctx_str_is(member->key, "compile_options"))
            delivery_say(
                d, rule, nothing,
                "'%s%S' was proposed for ORT GenAI but is in no version: name the compiled "
                "model in filename",
                path, &member->key);
        else
            delivery_say(d, rule, nothing, "'%s%S' is no key that ORT GenAI knows", path,
                         &member->key);
    } else if (!fits(member, what)) {
        delivery_say(d, rule, nothing, "'%s%S' is not %s", path, &member->key,
                     words[word_of(what)].text);
    } else if (*what.data == '{' || *what.data == '[') {
        what.data++;
        what.size -= 2;
        if (member->kind == JSON_OBJECT)
            check_object(d, member, what, &here);
        else
            for (child = member->first; child != NULL; child = child->next)
                check_object(d, child, what, &here);
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

const char *genai_provider(epctx_str name) {
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
        if (epctx_str_eq_nocase(name, epctx_str_of(f->name))) return f->name;
    return NULL;
}

const char *genai_provider_of(epctx_str source) {
    const epctx_str profile = epctx_str_of(epctx_profile_of(source)->name);
    size_t at = 0;
    const fact *f;
    while ((f = facts_next("provider", &at)) != NULL)
        if (fact_has(f, "profiles", profile)) return f->name;
    return genai_provider(source);
}
