/* given.c - see given.h. */
#define _POSIX_C_SOURCE 200809L
#include "given.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "vendors.h"

/* ---------------------------------------------------------------- what may be told */

static bool has_word(const char *text, const char *const *words) {
    for (; *words != NULL; words++) {
        const size_t size = strlen(*words);
        const char *at;
        for (at = text; *at != '\0'; at++) {
            size_t i = 0;
            while (i < size && tolower((unsigned char)at[i]) == (*words)[i]) i++;
            if (i == size) return true;
        }
    }
    return false;
}

/* A stamp goes wherever the model goes: rather a value too few. */
static bool is_secret(const char *key, const char *value) {
    static const char *const words[] = {"secret",  "passw",      "passphrase", "token",
                                        "private", "credential", "-----begin", NULL};
    static const char *const keys[] = {"_key", ".key", "-key", "key_", "apikey", NULL};
    return has_word(key, words) || has_word(key, keys) || strcmp(key, "key") == 0 ||
           has_word(value, words);
}

static bool is_text(const char *text) {
    return strlen(text) <= GIVEN_MOST_VALUE && epctx_str_is_utf8(epctx_str_of(text));
}

/* "C:\x" or "\\server\x" */
static bool is_windows(const char *at) {
    const bool drive = isalpha((unsigned char)at[0]) && at[1] == ':';
    return (drive && (at[2] == '\\' || at[2] == '/')) || (at[0] == '\\' && at[1] == '\\');
}

/* Whether an absolute path begins here: at the beginning, or behind what separates values. */
static bool begins_path(const char *text, size_t at) {
    if (at > 0 && strchr("\"'=:;,| ([{\t\n", text[at - 1]) == NULL) return false;
    return text[at] == '/' || (text[at] == '~' && text[at + 1] == '/') || is_windows(text + at);
}

/* One that is alone may have blanks in it. */
static size_t path_size(const char *text, size_t at) {
    const char *stops =
        at > 0 && strchr(" ([{\t\n", text[at - 1]) != NULL ? "\"';,|:\n )]}\t" : "\"';,|:\n";
    const size_t first = is_windows(text + at) ? 2 : 0;
    return first + strcspn(text + at + first, stops);
}

/* Of each absolute path in `text` the name of the file, into as many bytes at most. */
static void without_folders(const char *text, char *out) {
    size_t at = 0, used = 0;
    while (text[at] != '\0') {
        size_t size, i, name = 0;
        if (!begins_path(text, at)) {
            out[used++] = text[at++];
            continue;
        }
        size = path_size(text, at);
        for (i = 0; i < size; i++)
            if (text[at + i] == '/' || (text[at + i] == '\\' && is_windows(text + at)))
                name = i + 1;
        memcpy(out + used, text + at + name, size - name);
        used += size - name;
        at += size;
    }
    out[used] = '\0';
}

static int by_key(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

const char *const *given_tell(const char *const *options, epctx_arena *arena) {
    size_t count = 0, used = 0, i;
    const char **told;
    while (options != NULL && options[2 * count] != NULL) count++;
    told = (const char **)epctx_arena_array(arena, 2 * count + 1, sizeof *told);
    for (i = 0; told != NULL && i < count; i++) {
        const char *key = options[2 * i], *value = options[2 * i + 1];
        char *copy = NULL;
        if (!is_text(key)) continue;
        if (is_text(value) && !is_secret(key, value)) {
            copy = (char *)epctx_arena_alloc(arena, strlen(value) + 1);
            if (copy == NULL) return NULL;
            without_folders(value, copy);
        }
        told[2 * used] = key;
        told[2 * used++ + 1] = copy;
    }
    if (told != NULL) qsort(told, used, 2 * sizeof *told, by_key);
    return told;
}

/* ---------------------------------------------------------------- what a stamp says */

static const char *plain(epctx_str stored, epctx_arena *arena) {
    char *text = (char *)epctx_arena_alloc(arena, stored.size + 1);
    if (text != NULL) (void)epctx_stamp_plain(stored, text, stored.size + 1);
    return text;
}

static size_t count_options(epctx_str stamp) {
    epctx_stamp_option option;
    size_t count = 0;
    while (epctx_stamp_next_option(&stamp, &option)) count++;
    return count;
}

static bool read_build(epctx_str source, epctx_str stamp, epctx_arena *arena, given_build *build) {
    const char *list = vendor_ep_of(epctx_profile_of(source)->name).load;
    epctx_str rest = stamp;
    epctx_stamp_option option;
    epctx_stamp_line line;
    memset(build, 0, sizeof *build);
    build->known = list != NULL;
    build->source = epctx_arena_copy(arena, source);
    build->options =
        (given_option *)epctx_arena_array(arena, count_options(stamp) + 1, sizeof *build->options);
    if (build->source == NULL || build->options == NULL) return false;
    while (epctx_stamp_next_option(&rest, &option)) {
        given_option *to = &build->options[build->count++];
        to->session = option.session;
        to->key = plain(option.key, arena);
        to->value = option.told ? plain(option.value, arena) : NULL;
        if (to->key == NULL || (option.told && to->value == NULL)) return false;
        /* Keys of the two kinds have different names. */
        to->needed = build->known && fact_list_has(list, epctx_str_of(to->key));
        build->needed += to->needed;
    }
    while (epctx_stamp_next_line(&stamp, &line)) {
        if (!epctx_str_is(line.word, "device")) continue;
        build->device = plain(line.text, arena);
        if (build->device == NULL) return false;
    }
    return true;
}

bool given_read(const epctx_model *model, epctx_arena *arena, given_build **builds, size_t *count) {
    const size_t prefix = sizeof EPCTX_BUILD_PREFIX - 1;
    epctx_cursor it =
        epctx_view_fields(epctx_model_read(model).view, EPCTX_FIELD_MODEL_METADATA_PROPS);
    epctx_pair pair;
    *count = 0;
    *builds = (given_build *)epctx_arena_array(arena, GIVEN_MOST_BUILDS, sizeof **builds);
    if (*builds == NULL) return false;
    while (*count < GIVEN_MOST_BUILDS && epctx_next_pair(&it, &pair)) {
        given_build *build = &(*builds)[*count];
        if (!epctx_str_starts(pair.key, EPCTX_BUILD_PREFIX)) continue;
        pair.key.data += prefix;
        pair.key.size -= prefix;
        if (!read_build(pair.key, pair.value, arena, build)) return false;
        *count += build->count > 0 || build->device != NULL;
    }
    return true;
}

/* -- in words -- */

static void put_option(FILE *out, const given_option *option) {
    const char *value = option->value;
    cli_put(out, epctx_str_of(option->key));
    if (value == NULL) {
        fputs(" (its value is not told)", out);
        return;
    }
    fputs(strchr(value, ' ') != NULL ? "='" : "=", out);
    cli_put(out, epctx_str_of(value));
    if (strchr(value, ' ') != NULL) fputc('\'', out);
}

void given_put(FILE *out, const given_build *build, bool only_needed) {
    bool any = false, session = false;
    size_t i, kind;
    for (kind = 0; kind < 2; kind++)
        for (i = 0; i < build->count; i++) {
            const given_option *option = &build->options[i];
            if (option->session != (kind == 1) || (only_needed && !option->needed)) continue;
            if (kind == 1 && !session)
                fputs(any ? "; session: " : "session: ", out);
            else if (any)
                fputc(' ', out);
            put_option(out, option);
            session = kind == 1;
            any = true;
        }
}

void given_json(json_writer *w, const given_build *builds, size_t count) {
    size_t i, k;
    json_array(w, "builds", JSON_HANGING);
    for (i = 0; i < count; i++) {
        const given_build *build = &builds[i];
        json_object(w, NULL, JSON_INLINE);
        json_text(w, "source", build->source);
        json_text(w, "device", build->device);
        json_array(w, "options", JSON_INLINE);
        for (k = 0; k < build->count; k++) {
            const given_option *option = &build->options[k];
            json_object(w, NULL, JSON_INLINE);
            json_text(w, "of", option->session ? "session" : "ep");
            json_text(w, "key", option->key);
            json_text(w, "value", option->value);
            if (build->known)
                json_bool(w, "load", option->needed);
            else
                json_null(w, "load");
            json_end(w);
        }
        json_end(w);
        json_end(w);
    }
    json_end(w);
}

/* ---------------------------------------------------------------- what is other now */

static const given_option *find_option(const given_build *build, const char *key, bool session) {
    size_t i;
    for (i = 0; i < build->count; i++)
        if (build->options[i].session == session && strcmp(build->options[i].key, key) == 0)
            return &build->options[i];
    return NULL;
}

static const char *shown(const char *value) {
    return value != NULL ? value : "(not told)";
}

/* False: they are the same. */
static bool put_change(epctx_text *text, const given_build *build, const char *const *now,
                       bool session) {
    const char *const *at;
    size_t i;
    for (at = now; at[0] != NULL; at += 2) {
        const given_option *old = find_option(build, at[0], session);
        if (old == NULL)
            epctx_text_put_format(text, "%s=%s is new", at[0], shown(at[1]));
        else if (strcmp(shown(old->value), shown(at[1])) != 0)
            epctx_text_put_format(text, "%s=%s, was %s", at[0], shown(at[1]), shown(old->value));
        if (text->size > 0) return true;
    }
    for (i = 0; i < build->count; i++) {
        const given_option *old = &build->options[i];
        for (at = now; at[0] != NULL && strcmp(at[0], old->key) != 0; at += 2) continue;
        if (at[0] != NULL || old->session != session) continue;
        epctx_text_put_format(text, "%s=%s is not given now", old->key, shown(old->value));
        return true;
    }
    return false;
}

const char *given_changes(const epctx_model *model, const char *source,
                          const char *const *ep_options, const char *const *session_options,
                          epctx_arena *arena) {
    enum { ROOM = 2 * GIVEN_MOST_VALUE };
    const char *const *ep = given_tell(ep_options, arena);
    const char *const *session = given_tell(session_options, arena);
    char *buffer = (char *)epctx_arena_alloc(arena, ROOM);
    given_build *builds, none;
    const given_build *build = &none;
    epctx_text text;
    size_t count, i;
    memset(&none, 0, sizeof none);
    if (ep == NULL || session == NULL || buffer == NULL ||
        !given_read(model, arena, &builds, &count))
        return NULL;
    for (i = 0; i < count; i++)
        if (strcmp(builds[i].source, source) == 0) build = &builds[i];
    text = epctx_text_of(buffer, ROOM);
    return put_change(&text, build, ep, false) || put_change(&text, build, session, true) ? buffer
                                                                                          : NULL;
}

/* ---------------------------------------------------------------- after a failure */

/* Whether options as given_tell has them have this one, with this value. */
static bool is_given(const char *const *told, const given_option *option) {
    for (; told[0] != NULL; told += 2) {
        if (strcmp(told[0], option->key) != 0) continue;
        return told[1] == NULL || option->value == NULL ? told[1] == option->value
                                                        : strcmp(told[1], option->value) == 0;
    }
    return false;
}

/* A session option that only compiling reads. */
static bool is_past(const given_option *option) {
    const fact *f = option->session ? facts_find("option", option->key) : NULL;
    const char *phase = f != NULL ? fact_get(f, "phase") : NULL;
    return phase != NULL && strcmp(phase, "generate") == 0;
}

/* Forgets the options that were given now, too, and those that do not matter any more. */
static void keep_others(given_build *build, const char *const *ep, const char *const *session) {
    size_t i, kept = 0;
    build->needed = 0;
    for (i = 0; i < build->count; i++) {
        const given_option *option = &build->options[i];
        if (is_past(option) || is_given(option->session ? session : ep, option)) continue;
        build->needed += option->needed;
        build->options[kept++] = *option;
    }
    build->count = kept;
}

static void tell_build(const char *file, const given_build *build) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL) return;
    fprintf(out, "%s was compiled with ", file);
    given_put(out, build, false);
    fputs(", not so given now", out);
    if (build->needed > 0) {
        fputs("; load it with ", out);
        given_put(out, build, true);
    }
    if (fclose(out) == 0) cli_fail_with_cure(text);
    free(text);
}

void given_tell_failed(const char *file, const char *const *ep_options,
                       const char *const *session_options) {
    epctx_arena arena;
    epctx_model model;
    epctx_error error;
    given_build *builds;
    size_t count, i;
    epctx_arena_init(&arena, NULL);
    if (cli_open(&model, file, &error) == EPCTX_OK) {
        const char *const *ep = given_tell(ep_options, &arena);
        const char *const *session = given_tell(session_options, &arena);
        const bool ok =
            ep != NULL && session != NULL && given_read(&model, &arena, &builds, &count);
        for (i = 0; ok && i < count; i++) {
            keep_others(&builds[i], ep, session);
            if (builds[i].count > 0) tell_build(file, &builds[i]);
        }
    }
    epctx_model_close(&model);
    epctx_arena_free(&arena);
}
