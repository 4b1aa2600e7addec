/*
 * Sequences of calls on workspaces: sessions that generate and load, alone, in groups and as a
 * cache, graphs taken and given back, while io, allocator and backend fail as the input says and
 * files change. A failure has a message; a graph is in one session only; what was written without
 * outside help loads; and in the end nothing is left.
 *
 * A step of a sequence is two bytes: what is done, and with what.
 */
#define _XOPEN_SOURCE 700
#include "../examples/epctx/ops/cache.h"
#include "../tests/disk.h"
#include "../tests/fake.h"
#include "../tests/files.h"
#include "../tests/take.h"
#include "fuzz.h"

static bool telling; /* EPCTX_FUZZ_TELL in the environment: what is done */

#define SESSIONS   4
#define WORKSPACES 2
#define TAKEN      4

typedef struct session {
    epctx_model model;
    epctx_loaded loaded;
    int workspace; /* -1: none */
    bool open;
} session;

typedef struct world {
    disk disk;
    epctx_io io;
    counting memory;
    epctx_allocator allocator;
    fake fake;
    epctx_backend backend;
    epctx_workspace *workspaces[WORKSPACES]; /* the handle, which can be given back early */
    epctx_workspace *alive[WORKSPACES];      /* sessions may still hold it */
    session sessions[SESSIONS];
    session taken[TAKEN];
    int taken_from[TAKEN]; /* -1: nothing */
    bool grouped;          /* models share a binary; whoever replaces it breaks the others */
    bool spoiled;          /* somebody else changed a file, or a shared binary was replaced */
} world;

static const char *const sources[] = {"/d/a.onnx", "/d/b.onnx", "/d/c.onnx"};
static const char *const contexts[] = {"/d/a_ctx.onnx", "/d/b_ctx.onnx", "/d/c_ctx.onnx"};
static const char *const groups[] = {NULL, "g", "h"};

/* Faults end with the call in which they occurred. */
static void calm(world *w) {
    w->disk.fail_at = 0;
    w->memory.fail_at = 0;
    w->fake.fail = FAKE_NONE;
}

static epctx_status judge(world *w, epctx_status status, const epctx_error *error) {
    require((status == EPCTX_OK) == (error->message[0] == '\0'));
    require(status == EPCTX_OK || error->status == status);
    if (telling) fprintf(stderr, "  %s\n", status == EPCTX_OK ? "ok" : error->message);
    if (status != EPCTX_OK) calm(w);
    w->fake.log[0] = '\0';
    return status;
}

static epctx_open_opts open_opts(const world *w) {
    epctx_open_opts opts;
    memset(&opts, 0, sizeof opts);
    opts.io = &w->io;
    opts.allocator = &w->allocator;
    return opts;
}

/* Files were written. */
static void wrote(world *w, bool group) {
    w->spoiled = w->spoiled || w->grouped;
    w->grouped = w->grouped || group;
}

static void workspace_open(world *w, int at, bool strict) {
    epctx_workspace_opts opts;
    epctx_error error;
    int i;
    if (w->workspaces[at] != NULL) return;
    for (i = 0; i < SESSIONS; i++) /* the one before must be gone, for the bookkeeping here */
        if (w->sessions[i].open && w->sessions[i].workspace == at) return;
    for (i = 0; i < TAKEN; i++)
        if (w->taken_from[i] == at) return;
    memset(&opts, 0, sizeof opts);
    opts.allocator = &w->allocator;
    opts.taken = strict ? EPCTX_TAKEN_ERROR : EPCTX_TAKEN_RELOAD;
    if (judge(w, epctx_workspace_open(&w->workspaces[at], &opts, &error), &error) != EPCTX_OK)
        w->workspaces[at] = NULL;
    w->alive[at] = w->workspaces[at];
}

static void workspace_close(world *w, int at) {
    epctx_workspace_close(w->workspaces[at]);
    w->workspaces[at] = NULL;
}

static void generate(world *w, int at, uint8_t how) {
    epctx_open_opts open = open_opts(w);
    epctx_gen_opts opts;
    epctx_gen_report report;
    epctx_model model;
    epctx_error error;
    epctx_status status;
    memset(&opts, 0, sizeof opts);
    opts.overwrite = (how & 0x40) != 0;
    opts.verify = (how & 0x80) != 0;
    opts.allocator = &w->allocator;
    status = epctx_model_open_file(&model, sources[how % 3], &open, &error);
    if (judge(w, status, &error) == EPCTX_OK) {
        if (at < 0) {
            opts.embed = (how & 0x20) != 0;
        } else {
            opts.workspace = w->workspaces[at];
            opts.group = groups[how / 4 % 3];
            opts.stop = (how & 0x20) != 0;
        }
        status = epctx_generate(&model, &w->backend, &opts, &report, &error);
        if (judge(w, status, &error) == EPCTX_OK && (at < 0 || (how & 0x20) != 0))
            wrote(w, at >= 0);
    }
    epctx_model_close(&model);
}

static void start(world *w, session *s, int at, uint8_t how) {
    epctx_open_opts open = open_opts(w);
    epctx_load_opts opts;
    epctx_error error;
    epctx_status status;
    if (s->open) return;
    memset(&opts, 0, sizeof opts);
    memset(s, 0, sizeof *s);
    opts.allocator = &w->allocator;
    if (judge(w, epctx_model_open_file(&s->model, contexts[how % 3], &open, &error), &error) !=
        EPCTX_OK)
        return;
    s->workspace = at;
    opts.workspace = at < 0 ? NULL : w->workspaces[at];
    status = epctx_load(&s->loaded, &s->model, &w->backend, &opts, &error);
    s->open = judge(w, status, &error) == EPCTX_OK;
    if (!s->open) epctx_model_close(&s->model);
}

static void stop(session *s) {
    if (!s->open) return;
    epctx_unload(&s->loaded);
    epctx_model_close(&s->model);
    s->open = false;
}

/* Takes one of the graphs that the source models give, of any of the binaries. */
static void take(world *w, int slot, int at, uint8_t how) {
    static const char *const binaries[] = {"a_fake.bin", "b_fake.bin", "c_fake.bin"};
    session *s = &w->taken[slot];
    epctx_open_opts open = open_opts(w);
    epctx_load_opts opts;
    epctx_error error;
    epctx_str key = epctx_str_of("");
    take_node t;
    const disk_file *found;
    char path[40] = "/d/";
    char name[100];
    if (w->taken_from[slot] >= 0) return;
    strcat(path, binaries[how % 3]);
    found = disk_find(&w->disk, path);
    if (found != NULL && (how & 4) != 0) { /* the name of the first graph: the third line */
        epctx_span text = {found->data, found->size};
        int i;
        for (i = 0; i < 3; i++)
            if (!fake_line(&text, name, sizeof name)) name[0] = '\0';
        key = epctx_str_of(name);
    }
    memset(&opts, 0, sizeof opts);
    opts.workspace = w->workspaces[at];
    opts.context_file_path = "/d/t_ctx.onnx";
    opts.allocator = &w->allocator;
    take_node_make(&t, w->backend.source, epctx_str_of(binaries[how % 3]), key, 0);
    if (judge(w, epctx_model_new(&s->model, 8, &open, &error), &error) != EPCTX_OK) return;
    if (judge(w,
              epctx_edit_put_node(&s->model, epctx_view_none(), &t.node, epctx_view_none(), NULL,
                                  &error),
              &error) == EPCTX_OK &&
        judge(w, epctx_load(&s->loaded, &s->model, &w->backend, &opts, &error), &error) == EPCTX_OK)
        w->taken_from[slot] = at;
    else
        epctx_model_close(&s->model);
}

static void give(world *w, int slot) {
    if (w->taken_from[slot] < 0) return;
    epctx_unload(&w->taken[slot].loaded);
    epctx_model_close(&w->taken[slot].model);
    w->taken_from[slot] = -1;
}

static void cache(world *w, uint8_t how) {
    epctx_open_opts open = open_opts(w);
    epctx_cache_opts opts;
    epctx_gen_opts gen;
    epctx_load_opts load;
    epctx_opened opened;
    epctx_error error;
    epctx_status status;
    memset(&opts, 0, sizeof opts);
    memset(&gen, 0, sizeof gen);
    memset(&load, 0, sizeof load);
    gen.embed = (how & 8) != 0;
    gen.allocator = load.allocator = &w->allocator;
    opts.open = &open;
    opts.gen = &gen;
    opts.load = &load;
    opts.no_compile = (how & 16) != 0;
    opts.fast = (how & 32) != 0;
    status = judge(w, epctx_open_or_compile(&opened, sources[how % 3], &w->backend, &opts, &error),
                   &error);
    /* What cannot be loaded may have been written. */
    if (status == EPCTX_OK ? opened.origin == EPCTX_FROM_COMPILER : !opts.no_compile)
        wrote(w, false);
    epctx_opened_close(&opened);
}

static void finish(world *w, int at, uint8_t how) {
    epctx_error error;
    uint64_t size;
    if (judge(w,
              epctx_share_finish(w->workspaces[at], groups[how % 3], "FakeEP", NULL, &size, &error),
              &error) == EPCTX_OK)
        wrote(w, true);
}

/* Somebody else changes a file that the library wrote, or a source. */
static void outside(world *w, uint8_t how) {
    disk_file *f;
    bytes b;
    if (w->disk.count == 0) return;
    f = &w->disk.files[how % w->disk.count];
    switch (how >> 6) {
    case 0:
        b = source((float)(how & 7));
        disk_put(&w->disk, sources[how % 3], b.data, b.size);
        bytes_free(&b);
        break;
    case 1:
        w->spoiled = true;
        f->size /= 2;
        break;
    case 2:
        w->spoiled = true;
        if (f->size > 0) f->data[(size_t)how * 7 % f->size] ^= 4;
        break;
    default:
        w->spoiled = true;
        disk_take_away(&w->disk, f);
        break;
    }
}

/* -- what holds at any time -- */

static void check_sessions(const world *w) {
    const void *seen[64];
    size_t count = 0, i, k, n;
    for (i = 0; i < SESSIONS; i++) {
        const session *s = &w->sessions[i];
        for (k = 0; s->open && k < s->loaded.bound_count; k++) {
            const epctx_bound *b = &s->loaded.bound[k];
            require(b->graph != NULL && b->info.name.size > 0);
            require(epctx_str_eq(b->info.name, b->node.partition_name.size > 0
                                                   ? b->node.partition_name
                                                   : b->node.name));
            for (n = 0; n < count; n++) require(seen[n] != b->graph);
            if (count < 64) seen[count++] = b->graph;
        }
    }
    for (i = 0; i < TAKEN; i++) {
        const epctx_bound *b = w->taken[i].loaded.bound;
        if (w->taken_from[i] < 0) continue;
        require(b->graph != NULL && b->info.name.size > 0);
        for (n = 0; n < count; n++) require(seen[n] != b->graph);
        if (count < 64) seen[count++] = b->graph;
    }
}

/* Every EPContext model on the disk loads with the binary that is there. */
static void check_files(world *w) {
    int i;
    session s;
    for (i = 0; i < 3; i++) {
        if (w->spoiled || disk_find(&w->disk, contexts[i]) == NULL) continue;
        memset(&s, 0, sizeof s);
        start(w, &s, -1, (uint8_t)i);
        require(s.open);
        stop(&s);
    }
}

static void step(world *w, uint8_t what, uint8_t how) {
    int at = what / 32 % WORKSPACES;
    int shared = w->workspaces[at] != NULL ? at : -1;
    if (telling) fprintf(stderr, "step %d, workspace %d, how 0x%02x\n", what % 16, shared, how);
    switch (what % 16) {
    case 0: workspace_open(w, at, (how & 1) != 0); break;
    case 1: workspace_close(w, at); break;
    case 2: /* a new one in place of the old one, as far as that is not in use */
        workspace_close(w, at);
        workspace_open(w, at, (how & 1) != 0);
        break;
    case 3:
    case 4: generate(w, shared, how); break;
    case 5:
        if (shared >= 0) finish(w, at, how);
        break;
    case 6:
    case 7: start(w, &w->sessions[how / 4 % SESSIONS], shared, how); break;
    case 8: stop(&w->sessions[how % SESSIONS]); break;
    case 9:
        if (shared >= 0) take(w, how / 8 % TAKEN, at, how);
        break;
    case 10: give(w, how % TAKEN); break;
    case 11:
        w->disk.calls = 0;
        w->disk.fail_at = 1 + how % 64;
        w->disk.fault = (how & 0x80) != 0 ? DISK_SHORT : DISK_FAILS;
        break;
    case 12:
        w->memory.calls = 0;
        w->memory.fail_at = 1u + how;
        break;
    case 13:
        w->fake.fail = (fake_step)(how % (FAKE_INFO + 1));
        w->fake.fail_after = how / 8 % 4;
        break;
    case 14: outside(w, how); break;
    default: cache(w, how); break;
    }
    check_sessions(w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static world w;
    bytes b;
    size_t i;
    telling = getenv("EPCTX_FUZZ_TELL") != NULL;
    memset(&w, 0, sizeof w);
    w.io = disk_io(&w.disk);
    w.allocator = counting_allocator(&w.memory);
    w.fake.takes = "Take";
    w.backend = fake_backend(&w.fake);
    for (i = 0; i < TAKEN; i++) w.taken_from[i] = -1;
    for (i = 0; i < 3; i++) {
        b = source((float)i);
        disk_put(&w.disk, sources[i], b.data, b.size);
        bytes_free(&b);
    }
    for (i = 0; i + 1 < size && i < 160; i += 2) step(&w, data[i], data[i + 1]);

    calm(&w);
    check_files(&w);
    /* The input also says what ends first. */
    if (size > 0 && (data[size - 1] & 1) != 0)
        for (i = 0; i < WORKSPACES; i++) workspace_close(&w, (int)i);
    for (i = 0; i < SESSIONS; i++)
        stop(&w.sessions[size > 0 && (data[size - 1] & 2) != 0 ? SESSIONS - 1 - i : i]);
    for (i = 0; i < TAKEN; i++) give(&w, (int)i);
    for (i = 0; i < WORKSPACES; i++) workspace_close(&w, (int)i);
    require(w.memory.alive == 0 && w.fake.alive == 0);
    require(w.disk.maps == 0 && w.disk.writers == 0 && w.disk.locks == 0);
    disk_free(&w.disk);
    return 0;
}
