/* buffers.c - context binaries from and to the application's callbacks instead of files: an EP
 * declares which it uses (OrtEp::GetEpContextDataSupport, ONNX Runtime 1.31), and does so. */
#define _GNU_SOURCE
#include "conformance.h"

#include "examples/plugin_ep/ort131.h"

/* -------------------------------------------------------------------- steps */

/* src/m.onnx and ref/m.onnx. False: the experiment gives up. */
static bool prepare(trial *t, store *s) {
    memset(s, 0, sizeof *s);
    if (!open_ep(t) || !make_model(t, MODEL_CHAIN, in_folder(t, "src/m.onnx")))
        return give_up(t, "%s", ort_text);
    keep_reference(t);
    return ort_version >= ORT131_API ||
           give_up(t, "callbacks for context data came with ONNX Runtime 1.31");
}

/* out/m_ctx.onnx of src/m.onnx, the context to the callback. */
static bool compile_to(trial *t, store *s, bool embed) {
    ort_spec spec = spec_of(t, in_folder(t, "src/m.onnx"));
    ort_output to;
    memset(&to, 0, sizeof to);
    to.path = in_folder(t, "out/m_ctx.onnx");
    to.embed = embed;
    to.more = set_writer;
    to.user = s;
    return ort_compile_model(&spec, &to);
}

static ort_spec reading(trial *t, store *s, const char *path) {
    ort_spec spec = spec_of(t, path);
    spec.more = set_reader;
    spec.user = s;
    return spec;
}

/* What a file in one folder may be called, on any system. */
static bool is_file_name(const char *key) {
    return *key && !strpbrk(key, "/\\:") && strcmp(key, ".") != 0 && strcmp(key, "..") != 0 &&
           strlen(key) < 256;
}

/* Each entry as a file beside the context model; `flip`: of other bytes. False: a key is no file's
 * name. */
static bool put_files(const store *s, bool flip) {
    char path[KEY + 8];
    bool all = true;
    size_t i, k;
    for (i = 0; i < s->count; i++) {
        const stored_data *from = &s->list[i];
        uint8_t *copy = (uint8_t *)malloc(from->size + 1);
        all = all && copy && is_file_name(from->key);
        for (k = 0; all && k < from->size; k++) copy[k] = from->data[k] ^ (flip ? 0xff : 0);
        snprintf(path, sizeof path, "out/%s", from->key);
        all = all && write_file(path, copy, from->size);
        free(copy);
    }
    return all;
}

/* Context binaries in files go into the store. */
static bool take_files(const char *model, store *s) {
    ort_contexts c;
    bool ok = ort_read_contexts(model, &c);
    size_t i;
    for (i = 0; ok && i < c.count; i++) {
        const epctx_str name = c.list[i].ep_cache_context;
        char key[KEY], path[KEY + 8];
        uint8_t *data;
        size_t size;
        if (c.list[i].main_context != 1 || c.list[i].embed_mode != 0) continue;
        snprintf(key, sizeof key, "%.*s", STR(name));
        snprintf(path, sizeof path, "out/%s", key);
        data = read_file(path, &size);
        ok = data && store_keep(s, key, data, size);
        free(data);
        remove(path);
    }
    epctx_model_close(&c.model);
    return ok;
}

/* Whether all contexts that nodes name are in the store. */
static bool is_complete(const char *model, store *s) {
    ort_contexts c;
    bool ok = ort_read_contexts(model, &c);
    size_t i;
    for (i = 0; ok && i < c.count; i++) {
        const epctx_str name = c.list[i].ep_cache_context;
        if (c.list[i].main_context == 1) ok = store_find(s, name.data, name.size) != NULL;
    }
    epctx_model_close(&c.model);
    return ok;
}

/* out/m_ctx.onnx, its contexts in the store and in no file. False: what is in the way, at a rule of
 * its own, is reported there. */
static bool fill_store(trial *t, store *s) {
    const bool ok = t->board->ep.writes ? compile_to(t, s, false)
                                        : generate(t, in_folder(t, "src/m.onnx"),
                                                   in_folder(t, "out/m_ctx.onnx"), false) &&
                                              take_files("out/m_ctx.onnx", s);
    if (ok && s->count > 0 && is_complete("out/m_ctx.onnx", s)) return true;
    cannot_judge(t, "API-004 API-005 API-007 API-010", "no context to read: %s",
                 ok ? "what nodes name was not written" : ort_text);
    return false;
}

/* --------------------------------------------------------------- statuses */

typedef struct saying {
    OrtErrorCode code;
    const char *text;
} saying;

static const saying sayings[] = {{ORT_RUNTIME_EXCEPTION, "the vault is closed until 8:00"},
                                 {ORT_NO_SUCHFILE, "no such key: %s %n 100%"},
                                 {ORT_INVALID_ARGUMENT, "the cl\xc3\xa9 is not allowed"},
                                 {ORT_FAIL, "error 42 of the application"}};
enum { SAYINGS = sizeof sayings / sizeof sayings[0] };

static void fail_with(store *s, const saying *says) {
    s->code = says->code;
    s->text = says->text;
}

static void judge_saying(trial *t, const char *id, const char *what, const saying *says, bool ok) {
    judge(t, id, !ok && ort_code == (int)says->code && strstr(ort_text, says->text),
          "%s said %d: '%s'; expected that code and text, found %s", what, (int)says->code,
          says->text, ok ? "success" : t->answer);
}

/* ----------------------------------------------------------- what it declares */

/* Whether a callback was taken; what ORT refuses before it asks the EP for anything is not. */
static bool is_declared(trial *t, bool ok, const char *which) {
    if (!judge(t, "API-001", ok || !strstr(ort_text, "unknown EPContext data support flags"),
               "GetEpContextDataSupport, asked with a %s callback: expected READ (1) and WRITE (2) "
               "or none, found %s",
               which, t->answer))
        return false;
    return ok || !strstr(ort_text, "does not support the registered EPContext data");
}

static void declared(trial *t) {
    ep_facts *ep = &t->board->ep;
    ort_spec spec;
    store s;
    bool ok;
    if (!prepare(t, &s)) {
        snprintf(ep->no_callbacks, sizeof ep->no_callbacks, "%s", t->board->gave_up);
        return;
    }
    judging(t, "API-001", "CompileModel with a write callback");
    ok = compile_to(t, &s, false);
    ep->writes = is_declared(t, ok, "write");
    ok = ok || generate(t, in_folder(t, "src/m.onnx"), in_folder(t, "out/m_ctx.onnx"), false);
    if (ok) {
        spec = reading(t, &s, in_folder(t, "out/m_ctx.onnx"));
        judging(t, "API-001", "a session with a read callback");
        ep->reads = is_declared(t, session_opens(&spec), "read");
    }
    tell_fact(t, "callbacks for context data", "%s",
              ep->reads && ep->writes ? "read and write"
              : ep->reads             ? "read"
              : ep->writes            ? "write"
                                      : "none");
    store_free(&s);
}

/* ------------------------------------------------------------------ writing */

static void judge_keys(trial *t, store *s) {
    ort_contexts c;
    const bool ok = ort_read_contexts("out/m_ctx.onnx", &c);
    size_t i;
    judge(t, "API-003", ok, "the context model cannot be read: %s", ort_text);
    for (i = 0; ok && i < c.count; i++) {
        const epctx_str name = c.list[i].ep_cache_context;
        if (c.list[i].main_context != 1) continue;
        judge(t, "API-003",
              c.list[i].embed_mode == 0 && name.size > 0 && store_find(s, name.data, name.size),
              "the node has embed_mode %d and names '%.*s', the write callback got '%.200s'",
              (int)c.list[i].embed_mode, STR(name), s->count ? s->list[0].key : "(nothing)");
    }
    epctx_model_close(&c.model);
}

static void failing_writes(trial *t, store *s) {
    char names[4][256];
    size_t i;
    for (i = 0; i < SAYINGS; i++) {
        remove_tree("out");
        make_folder("out");
        fail_with(s, &sayings[i]);
        judging(t, "API-006", "CompileModel with a write callback that fails");
        judge_saying(t, "API-006", "the write callback", &sayings[i], compile_to(t, s, false));
        judge(t, "API-006", list_files("out", names, 4) == 0,
              "the write callback failed, and '%s' was written", names[0]);
    }
    s->code = ORT_OK;
}

static void embedding_writes(trial *t, store *s) {
    s->writes = 0;
    judging(t, "API-008", "CompileModel, embed mode 1, with a write callback");
    judge(t, "API-008", compile_to(t, s, true),
          "CompileModel, embed mode 1, with a write callback: expected success, found %s",
          t->answer);
    judge(t, "API-008", s->writes == 0,
          "embed mode 1: the write callback was called %zu times, expected the context in the "
          "model only",
          s->writes);
}

static bool is_inside(const char *model) {
    ort_contexts c;
    const bool inside = ort_read_contexts(model, &c) && c.count > 0 && c.list[0].embed_mode == 1;
    epctx_model_close(&c.model);
    return inside;
}

/* Whether the callback got the context, and nobody else did. */
static bool is_written(trial *t, store *s) {
    static const char ids[] = "API-002 API-003 API-006 API-008";
    char names[4][256];
    const char *found = "no other file";
    size_t files;
    judging(t, "API-002", "CompileModel with a write callback");
    if (!judge(t, ids, compile_to(t, s, false),
               "CompileModel with a write callback, which the EP declares: expected success, found "
               "%s",
               t->answer))
        return false;
    files = list_files("out", names, 4) + list_files("src", names, 4);
    if (files > 2)
        found = "a file beside a model";
    else if (is_inside("out/m_ctx.onnx"))
        found = "the context is in the node although embed mode 0 was asked for";
    return judge(t, ids, s->writes > 0 && files == 2,
                 "expected calls with the context, and no file but the models; found %zu calls, "
                 "and %s",
                 s->writes, found);
}

static void writing(trial *t) {
    ort_spec spec;
    store s;
    if (!prepare(t, &s)) return;
    if (is_written(t, &s)) {
        judge_keys(t, &s);
        if (t->board->ep.files && t->board->ep.runs && put_files(&s, false)) {
            spec = strict_spec(t, in_folder(t, "out/m_ctx.onnx"));
            judge_load(t, "API-002", &spec, "what the write callback got, as a file");
        }
        failing_writes(t, &s);
        if (t->board->ep.embeds) embedding_writes(t, &s);
    }
    store_free(&s);
}

/* ------------------------------------------------------------------ reading */

/* out/n_ctx.onnx: as out/m_ctx.onnx, with `key` for what was called `was`. */
static bool rename_context(const char *was, const char *key) {
    ort_contexts c;
    epctx_error error;
    epctx_status status = EPCTX_OK;
    bool ok = ort_read_contexts("out/m_ctx.onnx", &c);
    size_t i;
    epctx_error_clear(&error);
    for (i = 0; ok && i < c.count && status == EPCTX_OK; i++)
        if (epctx_str_is(c.list[i].ep_cache_context, was))
            status = epctx_edit_set_attr_str(&c.model, c.views[i].view, "ep_cache_context",
                                             epctx_str_of(key), &error);
    if (ok && status == EPCTX_OK)
        status = epctx_model_write_file(&c.model, "out/n_ctx.onnx", NULL, &error);
    if (ok && status != EPCTX_OK) snprintf(ort_text, sizeof ort_text, "%s", error.message);
    epctx_model_close(&c.model);
    return ok && status == EPCTX_OK;
}

/* Keys are the application's own, whatever they look like as paths. */
static void judge_keys_as_they_are(trial *t, store *s) {
    char was[KEY], wide[201];
    const char *const keys[] = {"vault://k//1",
                                "../../x",
                                "/absolute/x",
                                "a\\b",
                                "C:\\x",
                                "./x",
                                "a//b/",
                                "..",
                                " x y ",
                                "x?y=1&z=%2f#0",
                                "\xe5\x90\x8d\xc3\xa9.bin",
                                "~/$HOME/*",
                                wide};
    size_t i;
    memset(wide, 'n', sizeof wide - 1);
    wide[sizeof wide - 1] = '\0';
    snprintf(was, sizeof was, "%s", s->list[0].key);
    for (i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        ort_spec spec = reading(t, s, in_folder(t, "out/n_ctx.onnx"));
        bool ok;
        if (!rename_context(was, keys[i])) {
            give_up(t, "%s", ort_text);
            return;
        }
        snprintf(s->list[0].key, KEY, "%s", keys[i]);
        s->list[0].reads = 0;
        s->asked[0] = '\0';
        judging(t, "API-004", "a session with a read callback, the node names '%s'", keys[i]);
        ok = session_opens(&spec);
        judge(t, "API-004", ok && s->list[0].reads > 0,
              "the node names '%s', the read callback was asked for '%.210s': %.200s", keys[i],
              s->asked, ok ? "a session" : t->answer);
    }
    snprintf(s->list[0].key, KEY, "%s", was);
}

static void failing_reads(trial *t, store *s) {
    const ort_spec spec = reading(t, s, in_folder(t, "out/m_ctx.onnx"));
    const size_t size = s->list[0].size;
    size_t i;
    for (i = 0; i < SAYINGS; i++) {
        fail_with(s, &sayings[i]);
        judging(t, "API-007", "a session with a read callback that fails");
        judge_saying(t, "API-007", "the read callback", &sayings[i], session_opens(&spec));
    }
    s->code = ORT_OK;
    for (i = 0; i < 2; i++) {
        fate f;
        s->list[0].size = i == 0 ? 0 : size / 2;
        judging(t, "API-005", "a read callback that gives %zu of %zu bytes", s->list[0].size, size);
        f = fate_of(&spec, in_folder(t, "ref/m.onnx"));
        judge(t, "API-005", f == FATE_INVALID_GRAPH,
              "the read callback gives %zu of %zu bytes: expected INVALID_GRAPH (10), found %s",
              s->list[0].size, size,
              f == FATE_OTHER_CODE ? t->answer
              : f == FATE_RIGHT    ? "a session with right outputs"
                                   : "a session with wrong outputs");
    }
    s->list[0].size = size;
}

static void judge_released(trial *t, store *s) {
    const ort_spec spec = reading(t, s, in_folder(t, "out/m_ctx.onnx"));
    const size_t count = affordable(t->board->ep.session, 9, 30);
    remains left;
    s->spare = SPARE;
    judging(t, "API-010", "%zu sessions with a read callback", count);
    if (judge(t, "API-010", sessions_leave(&spec, true, count, &left),
              "one of %zu sessions with a read callback: expected success, found %s", count,
              t->answer))
        judge(t, "API-010", left.memory < count * SPARE / 4,
              "%zu sessions, each with a buffer of %d bytes from the read callback, leave %zu "
              "bytes",
              2 * count / 3, SPARE, left.memory);
    s->spare = 0;
}

static void embedding_reads(trial *t, store *s) {
    ort_spec spec;
    if (!generate(t, in_folder(t, "src/m.onnx"), in_folder(t, "out/e_ctx.onnx"), true)) return;
    spec = reading(t, s, in_folder(t, "out/e_ctx.onnx"));
    s->reads = 0;
    judge_load(t, "API-008", &spec, "an embedded context, with a read callback");
    judge(t, "API-008", s->reads == 0,
          "embed mode 1: the read callback was asked %zu times, expected the context in the model "
          "to be used",
          s->reads);
}

static void judge_reads(trial *t, store *s) {
    const ort_spec spec = reading(t, s, in_folder(t, "out/m_ctx.onnx"));
    put_files(s, true);
    judging(t, "API-005", "a session with a read callback");
    if (!judge(t, "API-005 API-004 API-007 API-010", runs_as(&spec, in_folder(t, "ref/m.onnx")),
               "a session with a read callback, and beside the model a file of that name with "
               "other bytes: expected the outputs of the source model, found %s; asked were %zu "
               "names, '%.200s' the last",
               t->answer, s->reads, s->asked))
        return;
    judge_keys_as_they_are(t, s);
    failing_reads(t, s);
    judge_released(t, s);
}

static void reads(trial *t) {
    store s;
    if (!prepare(t, &s)) return;
    if (fill_store(t, &s)) {
        judge_reads(t, &s);
        if (t->board->ep.embeds) embedding_reads(t, &s);
    }
    store_free(&s);
}

/* --------------------------------------------- where there is nothing to read */

static void nothing_to_read(trial *t) {
    const char *config[] = {"ep.context_enable",
                            "1",
                            "ep.context_file_path",
                            in_folder(t, "out/m_ctx.onnx"),
                            "ep.context_embed_mode",
                            t->board->ep.files ? "0" : "1",
                            NULL};
    ort_spec spec;
    store s;
    if (!prepare(t, &s)) return;
    spec = reading(t, &s, in_folder(t, "src/m.onnx"));
    judge_load(t, "API-009", &spec, "a session that compiles, with a read callback");
    spec.config = config;
    judging(t, "API-009", "generation by session options, with a read callback");
    if (judge(t, "API-009", session_opens(&spec),
              "generation by session options, with a read callback: expected success, found %s",
              t->answer)) {
        spec = strict_spec(t, in_folder(t, "out/m_ctx.onnx"));
        judge_load(t, "API-009", &spec,
                   "what was generated by session options with a read callback, without one");
    }
    judge(t, "API-009", s.reads == 0,
          "nothing was there to be read, and the read callback was asked for '%.200s'", s.asked);
    store_free(&s);
}

enum { CONTEXTS = NEEDS_DEVICE | NEEDS_CLAIM | NEEDS_CONTEXTS };

const experiment buffer_experiments[] = {
    {"callbacks that it declares", declared, CONTEXTS | FINDS_FACTS, "API-001"},
    {"a write callback", writing, CONTEXTS | NEEDS_WRITES, "API-002 API-003 API-006 API-008"},
    {"a read callback", reads, CONTEXTS | NEEDS_RUNS | NEEDS_READS,
     "API-004 API-005 API-007 API-008 API-010"},
    {"nothing to read", nothing_to_read, CONTEXTS | NEEDS_RUNS, "API-009"},
    {NULL, NULL, 0, NULL},
};
