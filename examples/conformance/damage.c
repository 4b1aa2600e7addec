/* damage.c - what an EP must refuse: damaged binaries, paths out of the folder, foreign nodes. */
#define _GNU_SOURCE
#include "conformance.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

/* out/m_ctx.onnx with its binary (a copy is ref/good.bin), ref/m.onnx; the name of the binary. */
typedef struct bench {
    char binary[PATH_MAX], name[PATH_MAX];
    uint8_t *good;
    size_t size;
} bench;

static bool prepare(trial *t, bench *b) {
    ort_contexts c;
    size_t i;
    memset(b, 0, sizeof *b);
    make_folder("ref");
    if (!open_ep(t) || !make_model(t, MODEL_CHAIN, in_folder(t, "ref/m.onnx")) ||
        !generate(t, in_folder(t, "ref/m.onnx"), in_folder(t, "out/m_ctx.onnx"), false) ||
        !binary_of("out/m_ctx.onnx", "out", b->binary, sizeof b->binary))
        return give_up(t, "%s", *ort_text ? ort_text : "no node names a file");
    if (ort_read_contexts("out/m_ctx.onnx", &c)) {
        for (i = 0; i < c.count; i++)
            if (c.list[i].main_context == 1)
                snprintf(b->name, sizeof b->name, "%.*s", STR(c.list[i].ep_cache_context));
    }
    epctx_model_close(&c.model);
    b->good = read_file(b->binary, &b->size);
    return b->good && b->size > 0 ? true : give_up(t, "the binary cannot be read");
}

/* A failure must say which file, node or value: a code without words helps nobody. */
static void judge_message(trial *t, const char *what) {
    size_t words = 0;
    const char *c;
    for (c = ort_text; *c; c++) words += *c == ' ';
    if (words < 4) remark(t, "EPC-110", "%s: the message tells little: '%.200s'", what, ort_text);
}

/* The model `path` must not load. `ids`: the rules about this damage. */
static void must_refuse(trial *t, const char *ids, const char *path, const char *what) {
    ort_spec spec = spec_of(t, path);
    fate f;
    char first[16];
    snprintf(first, sizeof first, "%.7s", ids);
    judging(t, first, "%s", what);
    f = fate_of(&spec, in_folder(t, "ref/m.onnx"));
    if (f == FATE_RIGHT || f == FATE_WRONG) {
        judge(t, ids, false, "%s: expected INVALID_GRAPH, found a session%s", what,
              f == FATE_WRONG ? " with wrong outputs" : "");
        return;
    }
    holds(t, ids);
    judge(t, "EPC-110", f == FATE_INVALID_GRAPH, "%s: expected INVALID_GRAPH (10), found %.300s",
          what, t->answer);
    judge_message(t, what);
}

/* Of a load that may go well: a refusal has the right code. */
static fate load_odd(trial *t, const char *id, const ort_spec *spec, const char *what) {
    fate f;
    judging(t, id, "%s", what);
    f = fate_of(spec, in_folder(t, "ref/m.onnx"));
    if (f == FATE_OTHER_CODE)
        judge(t, "EPC-110", false, "%s: expected INVALID_GRAPH (10), found %.300s", what,
              t->answer);
    return f;
}

/* No document wants a checksum in the binary, or its source's name: wrong numbers without a word
 * are the worst all the same. A crash is a failure. */
static void may_pass(trial *t, const char *id, const ort_spec *spec, const char *what,
                     const char *hint) {
    if (load_odd(t, id, spec, what) == FATE_WRONG)
        remark(t, id, "%s: loads and gives wrong outputs: %s", what, hint);
    else
        holds(t, id);
}

static void must_not_lie(trial *t, const char *id, const ort_spec *spec, const char *what) {
    judge(t, id, load_odd(t, id, spec, what) != FATE_WRONG,
          "%s: expected an error or the right outputs, found a session: %.300s", what, ort_text);
}

static void damaged_as(trial *t, const bench *b, const void *data, size_t size, const char *what) {
    write_file(b->binary, data, size);
    must_refuse(t, "EPC-114 EPC-115", in_folder(t, "out/m_ctx.onnx"), what);
}

/* Without the zeros at its end, which may be padding that nobody reads. */
static size_t used_size(const bench *b) {
    size_t size = b->size;
    while (size > 1 && b->good[size - 1] == 0) size--;
    return size;
}

static void cut_binaries(trial *t, const bench *b) {
    const size_t used = used_size(b);
    static const uint8_t zeros[1 << 16];
    uint8_t *changed = (uint8_t *)malloc(b->size + sizeof zeros);
    char what[80];
    int i;
    remove(b->binary);
    must_refuse(t, "EPC-114 EPC-115", in_folder(t, "out/m_ctx.onnx"), "a missing binary");
    damaged_as(t, b, "", 0, "an empty binary");
    damaged_as(t, b, b->good, 1, "a binary of one byte");
    for (i = 1; i < 4; i++) {
        snprintf(what, sizeof what, "a binary cut at %d/4", i);
        damaged_as(t, b, b->good, used * (size_t)i / 4, what);
    }
    damaged_as(t, b, zeros, sizeof zeros, "a binary of zeros");
    if (!changed) return;
    for (i = 0; (size_t)i < b->size; i++) changed[i] = b->good[i] ^ 0xff;
    damaged_as(t, b, changed, b->size, "a binary with all bits flipped");
    free(changed);
}

static void damaged(trial *t) {
    bench b;
    uint8_t *changed;
    ort_spec spec;
    size_t i, flips;
    if (!prepare(t, &b)) return;
    cut_binaries(t, &b);
    flips = affordable(t->board->ep.session, 8, 64);
    changed = (uint8_t *)malloc(b.size);
    if (!changed) return;
    spec = spec_of(t, in_folder(t, "out/m_ctx.onnx"));
    for (i = 0; i < flips; i++) {
        const size_t at = b.size * i / flips;
        char what[80];
        memcpy(changed, b.good, b.size);
        changed[at] ^= (uint8_t)(1u << (i % 8));
        write_file(b.binary, changed, b.size);
        snprintf(what, sizeof what, "a binary with bit %d of byte %zu flipped", (int)(i % 8), at);
        may_pass(t, "EPC-114", &spec, what, "is there no checksum?");
    }
    free(changed);
    write_file(b.binary, b.good, b.size - 1);
    may_pass(t, "EPC-114", &spec, "a binary without its last byte", "is there no checksum?");
    write_file(b.binary, b.good, b.size);
    judging(t, "EPC-113", "the good binary, put back");
    judge(t, "EPC-113", runs_as(&spec, in_folder(t, "ref/m.onnx")), "the good binary, put back: %s",
          t->answer);
}

static void other_binary(trial *t) {
    char other[PATH_MAX];
    bench b;
    ort_spec spec;
    if (!prepare(t, &b)) return;
    make_folder("else");
    if (!make_model(t, MODEL_OTHER, in_folder(t, "else/m.onnx")) ||
        !generate(t, in_folder(t, "else/m.onnx"), in_folder(t, "else/m_ctx.onnx"), false) ||
        !binary_of("else/m_ctx.onnx", "else", other, sizeof other)) {
        give_up(t, "%s", ort_text);
        return;
    }
    copy_file(other, b.binary);
    spec = spec_of(t, in_folder(t, "out/m_ctx.onnx"));
    may_pass(t, "EPC-114", &spec, "the binary of another model, under the name of this one's",
             "does nothing in it tell whose it is?");
}

/* The model's folder is not where the application is. */
static void current_folder(trial *t) {
    char other[PATH_MAX];
    bench b;
    ort_spec spec;
    if (!prepare(t, &b)) return;
    make_folder("else");
    if (strchr(b.name, '/') || !make_model(t, MODEL_OTHER, in_folder(t, "else/m.onnx")) ||
        !generate(t, in_folder(t, "else/m.onnx"), in_folder(t, "else/m_ctx.onnx"), false) ||
        !binary_of("else/m_ctx.onnx", "else", other, sizeof other)) {
        give_up(t, "%s", ort_text);
        return;
    }
    copy_file(other, b.name);
    spec = spec_of(t, in_folder(t, "out/m_ctx.onnx"));
    judging(t, "EPC-102", "another model's binary of the same name in the current folder");
    judge(t, "EPC-102 EPC-104", runs_as(&spec, in_folder(t, "ref/m.onnx")),
          "another model's binary of the same name is in the current folder: expected that beside "
          "the model to be loaded, found %s",
          t->answer);
    rename(b.binary, b.name);
    must_refuse(t, "EPC-102 EPC-104", in_folder(t, "out/m_ctx.onnx"),
                "a binary that is only in the current folder");
}

/* -------------------------------------------------------------------- paths */

static bool set_path(const char *name, size_t size) {
    return change_attr("out/m_ctx.onnx", "out/bad_ctx.onnx", "ep_cache_context", name, size);
}

static void bad_path(trial *t, const char *name, const char *what) {
    if (set_path(name, strlen(name)))
        must_refuse(t, "EPC-019", in_folder(t, "out/bad_ctx.onnx"), what);
}

/* A pipe in the binary's place, and a thread beside it. */
typedef struct pipe_end {
    const char *path;
    atomic_bool done, waited;
} pipe_end;

/* Who still reads the pipe after a second waits for somebody to write: it goes on with nothing. */
static void *end_wait(void *pipe) {
    pipe_end *end = (pipe_end *)pipe;
    int i, writer;
    for (i = 0; i < 10 && !atomic_load(&end->done); i++) usleep(100000);
    while (!atomic_load(&end->done)) {
        writer = open(end->path, O_WRONLY | O_NONBLOCK);
        if (writer >= 0) {
            atomic_store(&end->waited, true);
            close(writer);
        }
        usleep(10000);
    }
    return NULL;
}

/* No document speaks of it; what was read from the pipe is no good binary. */
static void pipe_path(trial *t) {
    pipe_end end = {"out/fifo.bin", false, false};
    ort_spec spec = spec_of(t, in_folder(t, "out/bad_ctx.onnx"));
    pthread_t helper;
    if (mkfifo(end.path, 0600) != 0 || !set_path("fifo.bin", 8) ||
        pthread_create(&helper, NULL, end_wait, &end) != 0)
        return;
    must_not_lie(t, "EPC-114", &spec, "a path of a pipe");
    atomic_store(&end.done, true);
    pthread_join(helper, NULL);
    if (atomic_load(&end.waited))
        remark(t, "EPC-019", "a path of a pipe: the EP waits for somebody to write into it");
}

/* No document speaks of links: who delivers a model may have made them. But a model from elsewhere
 * may come with them as well. */
static void linked_path(trial *t, const char *name, const char *what) {
    const ort_spec spec = spec_of(t, in_folder(t, "out/bad_ctx.onnx"));
    if (!set_path(name, strlen(name))) return;
    judging(t, "EPC-019", "%s", what);
    if (fate_of(&spec, in_folder(t, "ref/m.onnx")) == FATE_RIGHT)
        remark(t, "EPC-019", "%s is followed", what);
    else
        must_refuse(t, "EPC-019", in_folder(t, "out/bad_ctx.onnx"), what);
}

static void paths(trial *t) {
    char huge[5001];
    static const char with_nul[] = "m_ctx\0.bin";
    char dots[PATH_MAX], outside[PATH_MAX];
    bench b;
    if (!prepare(t, &b)) return;
    make_folder("outside"); /* where a good binary lies: it must not be used */
    snprintf(outside, sizeof outside, "%s", in_folder(t, "outside/good.bin"));
    copy_file(b.binary, outside);
    remove(b.binary);
    bad_path(t, outside, "an absolute path of a good binary");
    bad_path(t, "../outside/good.bin", "a path that leaves the folder by ..");
    make_folder("out/deeper");
    snprintf(dots, sizeof dots, "deeper/../../outside/good.bin");
    bad_path(t, dots, "a path that leaves the folder after a subfolder");
    bad_path(t, "..", "the path '..'");
    bad_path(t, "deeper", "the path of a folder");
    if (set_path("", 0))
        must_refuse(t, "EPC-019", in_folder(t, "out/bad_ctx.onnx"), "an empty path");
    bad_path(t, "C:\\x.bin", "a path with a drive letter");
    bad_path(t, "\\\\host\\x.bin", "a path of another computer");
    bad_path(t, "NUL", "the name of a device");
    if (set_path(with_nul, sizeof with_nul - 1))
        must_refuse(t, "EPC-019", in_folder(t, "out/bad_ctx.onnx"), "a path with a zero byte");
    pipe_path(t);
    if (symlink(outside, "out/link.bin") == 0)
        linked_path(t, "link.bin", "a link to a good binary outside the folder");
    if (symlink("../outside", "out/linked") == 0)
        linked_path(t, "linked/good.bin", "a path through a link that leaves the folder");
    /* The last one: it ended the process of an EP (QNN 2.7.0). */
    memset(huge, 'n', sizeof huge - 1);
    huge[sizeof huge - 1] = '\0';
    bad_path(t, huge, "a path of 5000 bytes");
}

/* ------------------------------------------------------------------ sources */

/* Only the first node has another source, or none. */
static bool change_source(const char *from, const char *to, const char *source) {
    ort_contexts c;
    epctx_error error;
    epctx_status status = EPCTX_ERR_GRAPH;
    epctx_error_clear(&error);
    if (ort_read_contexts(from, &c) && c.count > 0) {
        status = source ? epctx_edit_set_attr_str(&c.model, c.views[0].view, "source",
                                                  epctx_str_of(source), &error)
                        : epctx_edit_remove_attr(&c.model, c.views[0].view, epctx_str_of("source"),
                                                 &error);
        if (status == EPCTX_OK) status = epctx_model_write_file(&c.model, to, NULL, &error);
    }
    epctx_model_close(&c.model);
    return status == EPCTX_OK;
}

static void foreign_source(trial *t, const char *source, const char *ids, const char *what) {
    ort_spec spec = spec_of(t, in_folder(t, "out/other_ctx.onnx"));
    bool opens;
    if (!change_source("out/m_ctx.onnx", "out/other_ctx.onnx", source)) return;
    judging(t, "EPC-100", "%s", what);
    opens = session_opens(&spec);
    if (!opens || strstr(ids, "EPC-100")) {
        judge(t, ids, !opens, "%s: expected to be left to another EP, found a session", what);
        return;
    }
    remark(t, ids, "%s: the node is claimed", what);
}

static void sources(trial *t) {
    char longer[NAME + 80], lower[NAME + 80];
    ort_contexts c;
    size_t i;
    bool own_name;
    if (!open_ep(t) || !make_model(t, MODEL_CHAIN, in_folder(t, "src/m.onnx")) ||
        !generate(t, in_folder(t, "src/m.onnx"), in_folder(t, "out/m_ctx.onnx"),
                  !t->board->ep.files)) {
        give_up(t, "%s", ort_text);
        return;
    }
    longer[0] = '\0';
    if (ort_read_contexts("out/m_ctx.onnx", &c) && c.count > 0)
        snprintf(longer, sizeof longer, "%.*sX", STR(c.list[0].source));
    epctx_model_close(&c.model);
    foreign_source(t, "OtherVendorExecutionProvider", "EPC-100 EPC-099 EPC-109 EPC-026",
                   "a node of another EP");
    foreign_source(t, longer, "EPC-100 EPC-026", "a source with one letter more");
    foreign_source(t, NULL, "EPC-025", "a node without source");
    snprintf(lower, sizeof lower, "%.*s", (int)strlen(longer) - 1, longer);
    own_name = strcmp(lower, t->board->ep.name) == 0;
    for (i = 0; lower[i]; i++)
        lower[i] = (char)(lower[i] >= 'A' && lower[i] <= 'Z' ? lower[i] + 32 : lower[i]);
    if (own_name) foreign_source(t, lower, "EPC-026", "the own source in lower case");
    if (!*t->board->ep.foreign || !make_model(t, MODEL_ISLAND, in_folder(t, "src/m.onnx"))) return;
    /* Own nodes beside a foreign one: ORT refuses the session, nothing crashes. */
    if (generate(t, in_folder(t, "src/m.onnx"), in_folder(t, "out/m_ctx.onnx"),
                 !t->board->ep.files)) {
        foreign_source(t, "OtherVendorExecutionProvider", "EPC-100 EPC-109",
                       "a node of another EP beside own ones");
    }
}

/* ----------------------------------------------------------------- versions */

/* `text` with `was` replaced by `value`, wherever it is. */
static void replace_all(epctx_str text, epctx_str was, const char *value, char *out, size_t size) {
    size_t i = 0, used = 0;
    while (i < text.size && used + 1 < size) {
        const bool here =
            i + was.size <= text.size && memcmp(text.data + i, was.data, was.size) == 0;
        if (here && used + strlen(value) + 1 < size) {
            memcpy(out + used, value, strlen(value));
            used += strlen(value);
            i += was.size;
        } else {
            out[used++] = text.data[i++];
        }
    }
    out[used] = '\0';
}

/* An attribute has another value, also in the EP's compatibility string, which may repeat it: that
 * is `stated`. False: the EP does not write the attribute. */
static bool forge_version(trial *t, const char *attr, const char *value, bool *stated) {
    char key[NAME + 40], changed[4096];
    epctx_attr_view found;
    epctx_error error;
    epctx_str text;
    ort_contexts c;
    bool ok;
    size_t i;
    epctx_error_clear(&error);
    *stated = false;
    ok = ort_read_contexts("out/m_ctx.onnx", &c) && c.count > 0 &&
         epctx_view_node_find_attr(&c.views[0], attr, &found) && found.s.size > 0;
    snprintf(key, sizeof key, "ep_compatibility_info.%s", t->board->ep.name);
    if (ok && epctx_model_metadata(&c.model, epctx_str_of(key), &text)) {
        *stated = memmem(text.data, text.size, found.s.data, found.s.size) != NULL;
        replace_all(text, found.s, value, changed, sizeof changed);
        ok = epctx_edit_set_metadata(&c.model, epctx_str_of(key), epctx_str_of(changed), &error) ==
             EPCTX_OK;
    }
    for (i = 0; ok && i < c.count; i++)
        ok = epctx_edit_set_attr_str(&c.model, c.views[i].view, attr, epctx_str_of(value),
                                     &error) == EPCTX_OK;
    ok = ok && epctx_model_write_file(&c.model, "out/other_ctx.onnx", NULL, &error) == EPCTX_OK;
    epctx_model_close(&c.model);
    return ok;
}

/* What the EP does not state in its compatibility string it may know from the binary alone. */
static void other_version(trial *t, const char *attr, const char *value, const char *id) {
    ort_spec spec = spec_of(t, in_folder(t, "out/other_ctx.onnx"));
    bool stated;
    fate f;
    judging(t, id, "%s changed to '%s'", attr, value);
    if (!forge_version(t, attr, value, &stated)) {
        does_not_apply(t, id, "the EP writes no %s", attr);
        return;
    }
    f = fate_of(&spec, in_folder(t, "ref/m.onnx"));
    if (f == FATE_RIGHT && !stated) {
        remark(t, id, "%s changed to '%s': not noticed", attr, value);
        return;
    }
    judge(t, id, f == FATE_INVALID_GRAPH || f == FATE_OTHER_CODE,
          "%s changed to '%s', in the compatibility string, too: expected INVALID_GRAPH, found a "
          "session",
          attr, value);
}

static void versions(trial *t) {
    static const char *const optional[] = {
        "ep_sdk_version", "onnx_model_filename", "hardware_architecture", "notes",
        "max_size",       "partition_name"};
    size_t i;
    make_folder("ref");
    if (!open_ep(t) || !make_model(t, MODEL_CHAIN, in_folder(t, "ref/m.onnx")) ||
        !generate(t, in_folder(t, "ref/m.onnx"), in_folder(t, "out/m_ctx.onnx"),
                  !t->board->ep.files)) {
        give_up(t, "%s", ort_text);
        return;
    }
    other_version(t, "hardware_architecture", "another-architecture-9.9", "EPC-111");
    other_version(t, "ep_sdk_version", "999.9.9", "EPC-112");
    for (i = 0; i < sizeof optional / sizeof optional[0]; i++) {
        ort_spec spec = spec_of(t, in_folder(t, "out/less_ctx.onnx"));
        char what[100];
        if (!change_attr("out/m_ctx.onnx", "out/less_ctx.onnx", optional[i], NULL, 0)) continue;
        snprintf(what, sizeof what, "a node without %s", optional[i]);
        judging(t, "EPC-031", "%s", what);
        must_not_lie(t, "EPC-031", &spec, what);
    }
}

/* A damaged payload inside the model. */
static void damaged_payload(trial *t) {
    epctx_error error;
    ort_contexts c;
    size_t i, size;
    uint8_t *payload;
    make_folder("ref");
    if (!open_ep(t) || !make_model(t, MODEL_CHAIN, in_folder(t, "ref/m.onnx")) ||
        !generate(t, in_folder(t, "ref/m.onnx"), in_folder(t, "out/m_ctx.onnx"), true) ||
        !ort_read_contexts("out/m_ctx.onnx", &c) || c.count == 0) {
        give_up(t, "%s", ort_text);
        return;
    }
    epctx_error_clear(&error);
    size = c.list[0].ep_cache_context.size;
    payload = (uint8_t *)malloc(size + 1);
    if (!payload) return;
    memcpy(payload, c.list[0].ep_cache_context.data, size);
    epctx_model_close(&c.model);
    for (i = 0; i < 4; i++) {
        static const char *const what[] = {"an empty payload", "a payload cut in the middle",
                                           "a payload of one byte", "a payload with bits flipped"};
        const size_t sizes[] = {0, size / 2, 1, size};
        size_t k;
        for (k = 0; i == 3 && k < size; k++) payload[k] ^= 0x5a;
        if (change_attr("out/m_ctx.onnx", "out/bad_ctx.onnx", "ep_cache_context",
                        (const char *)payload, sizes[i]))
            must_refuse(t, "EPC-114 EPC-115", in_folder(t, "out/bad_ctx.onnx"), what[i]);
    }
    free(payload);
}

const experiment damage_experiments[] = {
    {"damaged binaries", damaged,
     NEEDS_DEVICE | NEEDS_RUNS | NEEDS_CLAIM | NEEDS_CONTEXTS | NEEDS_FILES,
     "EPC-110 EPC-113 EPC-114 EPC-115"},
    {"another model's binary", other_binary,
     NEEDS_DEVICE | NEEDS_RUNS | NEEDS_CLAIM | NEEDS_CONTEXTS | NEEDS_FILES, "EPC-110 EPC-114"},
    {"the current folder", current_folder,
     NEEDS_DEVICE | NEEDS_RUNS | NEEDS_CLAIM | NEEDS_CONTEXTS | NEEDS_FILES,
     "EPC-102 EPC-104 EPC-110"},
    {"damaged payloads", damaged_payload,
     NEEDS_DEVICE | NEEDS_RUNS | NEEDS_CLAIM | NEEDS_CONTEXTS | NEEDS_EMBEDDING,
     "EPC-110 EPC-114 EPC-115"},
    {"paths in the model", paths,
     NEEDS_DEVICE | NEEDS_RUNS | NEEDS_CLAIM | NEEDS_CONTEXTS | NEEDS_FILES,
     "EPC-019 EPC-110 EPC-114"},
    {"sources", sources, NEEDS_DEVICE | NEEDS_RUNS | NEEDS_CLAIM | NEEDS_CONTEXTS,
     "EPC-025 EPC-026 EPC-099 EPC-100 EPC-109"},
    {"versions", versions, NEEDS_DEVICE | NEEDS_RUNS | NEEDS_CLAIM | NEEDS_CONTEXTS,
     "EPC-031 EPC-110 EPC-111 EPC-112"},
    {NULL, NULL, 0, NULL},
};
