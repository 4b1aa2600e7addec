/* What all ways of judging a compiled model print. */
#include "check.h"
#include "core/json.h"
#include "facts/facts.h"

#include <string.h>

static void put_pair(epctx_str key, epctx_str value) {
    fputs("    ", stdout);
    cli_put(stdout, key);
    fputs(value.data != NULL ? " = " : "", stdout);
    cli_put(stdout, value);
    putchar('\n');
}

/* False: it is no object of JSON. */
static bool put_members(epctx_str text) {
    epctx_arena arena;
    const json *object, *member;
    size_t at;
    bool is_object;
    epctx_arena_init(&arena, NULL);
    object = json_read(text, &arena, &at);
    is_object = object != NULL && object->kind == JSON_OBJECT;
    for (member = is_object ? object->first : NULL; member != NULL; member = member->next)
        put_pair(member->key, member->text);
    epctx_arena_free(&arena);
    return is_object;
}

static void put_parts(const epctx_profile *profile, epctx_str text) {
    const fact *layout = facts_layout(profile->name, text);
    if (layout != NULL &&
        epctx_compat_compare(profile, text, text, NULL) != EPCTX_COMPAT_NOT_APPLICABLE) {
        epctx_str names = epctx_str_of(fact_get(layout, "fields")), name;
        while (fact_next_word(&names, &name)) {
            const epctx_str field = epctx_str_cut(&text, *fact_get(layout, "between"));
            printf("    %-14.*s %.*s\n", (int)name.size, name.data, (int)field.size, field.data);
        }
        return;
    }
    if (put_members(text)) return;
    while (text.size > 0) {
        epctx_str value = epctx_str_cut(&text, ';');
        const epctx_str key = epctx_str_cut(&value, '=');
        put_pair(key, value);
    }
}

void check_put_entry(const check_work *work, const epctx_compat_entry *entry) {
    if (work->json) {
        json_object(work->out, NULL, JSON_INLINE);
        json_str(work->out, "ep", entry->ep);
        json_str(work->out, "value", entry->value);
        json_end(work->out);
        return;
    }
    cli_put(stdout, entry->ep);
    fputs(": ", stdout);
    cli_put(stdout, entry->value);
    putchar('\n');
    put_parts(epctx_profile_of(entry->ep), entry->value);
}

/* As in onnxruntime_c_api.h. */
const char *check_compat_name(epctx_compat compat) {
    static const char *const names[] = {"EP_NOT_APPLICABLE", "EP_SUPPORTED_OPTIMAL",
                                        "EP_SUPPORTED_PREFER_RECOMPILATION", "EP_UNSUPPORTED"};
    return names[compat];
}

int check_code_of(const check_work *work, epctx_compat compat) {
    static const int codes[] = {CHECK_UNKNOWN, CHECK_FITS, CHECK_RECOMPILE, CHECK_UNSUPPORTED};
    return work->ort_code ? (int)compat : codes[compat];
}

void check_begin_json(check_work *work) {
    work->out = info_begin(&work->where);
    json_text(work->out, "file", work->file);
}

void check_json_compat(json_writer *w, epctx_compat compat) {
    json_int(w, "compatibility", (int)compat);
    json_text(w, "meaning", check_compat_name(compat));
}
