/* compile --if-needed: the EPContext model that is there stays when compiling would give the same.
 * Otherwise one process compiles, the others wait for it. */
#define _POSIX_C_SOURCE 200809L
#include "compile.h"
#include "core/given.h"
#include "core/neighbours.h"
#include "ops/needs.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define OTHER_OPTIONS "it was compiled with other options"

enum { NEXT_TRY = 50 }; /* milliseconds until the lock is tried again */

/* ---------------------------------------------------------------- what is there */

/* The stamp of the reference NPU. */
static epctx_freshness judge_npu(compile_needed *n, const epctx_model *model) {
    epctx_fresh_opts opts;
    memset(&opts, 0, sizeof opts);
    opts.source_path = n->source;
    opts.gen = n->gen;
    return epctx_cache_judge(model, n->backend->source, n->backend, &opts, &n->why);
}

/* A stamp of another EP, by all that is known without it. */
static epctx_freshness judge_stamp(compile_needed *n, const epctx_model *model, const char *ep,
                                   epctx_str stamp, epctx_arena *arena) {
    epctx_fresh_opts opts;
    epctx_stamp_opts now;
    epctx_freshness verdict;
    const char *names = identity_names(stamp, arena);
    const char *changes;
    memset(&opts, 0, sizeof opts);
    memset(&now, 0, sizeof now);
    if (names != NULL) now.libraries = identity_libraries(n->any, names, arena);
    now.options = n->options;
    now.machine = n->machine;
    opts.source_path = n->source;
    opts.now = &now;
    if (now.libraries == NULL || n->options == NULL) {
        epctx_fail(&n->why, EPCTX_ERR_NOMEM, "out of memory");
        return EPCTX_FRESH_UNKNOWN;
    }
    verdict = epctx_cache_judge(model, ep, NULL, &opts, &n->why);
    if (verdict != EPCTX_STALE || strstr(n->why.message, OTHER_OPTIONS) == NULL) return verdict;
    changes = given_changes(model, ep, n->any->eps[0].options, n->session, arena);
    if (changes == NULL) return verdict;
    epctx_error_clear(&n->why);
    epctx_fail(&n->why, EPCTX_ERR_VERSION, "%s: " OTHER_OPTIONS ": %s", n->path, changes);
    return verdict;
}

/* The stamps of a model: the first that is not fresh decides. */
static epctx_freshness judge_stamps(compile_needed *n, const epctx_model *model) {
    const size_t prefix = sizeof EPCTX_BUILD_PREFIX - 1;
    epctx_cursor it =
        epctx_view_fields(epctx_model_read(model).view, EPCTX_FIELD_MODEL_METADATA_PROPS);
    epctx_freshness verdict = EPCTX_FRESH_UNKNOWN;
    epctx_arena arena;
    epctx_pair pair;
    epctx_arena_init(&arena, NULL);
    epctx_fail(&n->why, EPCTX_ERR_NOT_FOUND, "%s has no build stamp", n->path);
    while (epctx_next_pair(&it, &pair)) {
        const char *ep;
        if (!epctx_str_starts(pair.key, EPCTX_BUILD_PREFIX)) continue;
        pair.key.data += prefix;
        pair.key.size -= prefix;
        ep = epctx_arena_copy(&arena, pair.key);
        epctx_error_clear(&n->why);
        verdict = ep != NULL ? judge_stamp(n, model, ep, pair.value, &arena) : EPCTX_FRESH_UNKNOWN;
        if (verdict != EPCTX_FRESH) break;
    }
    epctx_arena_free(&arena);
    return verdict;
}

/* Whether the model at `path` is what compiling would give; else `why` says why not. */
static bool is_current(compile_needed *n) {
    const epctx_io *io = epctx_io_files();
    epctx_file_info info;
    epctx_model model;
    bool is;
    epctx_error_clear(&n->why);
    n->existed =
        io->stat_fn(io->user, n->path, &info, &n->why) == EPCTX_OK && info.kind != EPCTX_FILE_NONE;
    if (!n->existed) {
        epctx_error_clear(&n->why);
        epctx_fail(&n->why, EPCTX_ERR_NOT_FOUND, "there is no %s", n->path);
        return false;
    }
    if (cli_open(&model, n->path, &n->why) != EPCTX_OK) return false;
    is = (n->any != NULL ? judge_stamps(n, &model) : judge_npu(n, &model)) == EPCTX_FRESH;
    n->generation = epctx_generation_of(&model, n->path);
    epctx_model_close(&model);
    return is;
}

/* Whether what is there can be used at least: it is an EPContext model, and its files are whole. */
static bool is_usable(const compile_needed *n, epctx_error *why) {
    epctx_dependency *files = NULL;
    epctx_model model;
    epctx_arena arena;
    epctx_walk walk;
    epctx_node_view node;
    size_t count = 0, i;
    bool is;
    if (cli_open(&model, n->path, why) != EPCTX_OK) return false;
    epctx_arena_init(&arena, NULL);
    epctx_walk_begin(&walk, &model);
    is = epctx_walk_epnode(&walk, &node);
    if (!is) epctx_fail(why, EPCTX_ERR_NOT_COMPILED, "there is no EPContext node");
    is = is && needs_of_model(&model, NULL, &arena, &files, &count, why) == EPCTX_OK;
    for (i = 0; is && i < count; i++) {
        if (!files[i].required || files[i].path != NULL) continue;
        epctx_fail(why, files[i].status, "%s", files[i].problem);
        is = false;
    }
    is = is && epctx_model_check_binary(&model, NULL, why) != EPCTX_ERR_VERSION;
    epctx_arena_free(&arena);
    epctx_model_close(&model);
    return is;
}

/* ---------------------------------------------------------------- may it be replaced? */

/* Whether this source was compiled: the stamp has its name, or its size and hash. */
static bool is_source(const compile_needed *n, const epctx_stamp_line *line) {
    const epctx_io *io = epctx_io_files();
    char name[EPCTX_PATH_MAX];
    epctx_mapping mapping;
    bool is;
    if (epctx_stamp_plain(line->text, name, sizeof name) &&
        epctx_str_is(epctx_path_file(epctx_str_of(n->source)), name))
        return true;
    if (io->map_fn(io->user, NULL, n->source, false, &mapping, NULL) != EPCTX_OK) return false;
    is = mapping.size == line->size && epctx_hash(mapping.data, mapping.size, 0) == line->hash;
    io->unmap_fn(io->user, &mapping);
    return is;
}

/* Whether a stamp of the EP says so; NULL: of any. */
static bool is_made_from(const compile_needed *n, const epctx_model *model, const char *ep) {
    epctx_cursor it =
        epctx_view_fields(epctx_model_read(model).view, EPCTX_FIELD_MODEL_METADATA_PROPS);
    epctx_stamp_line line;
    epctx_pair pair;
    while (epctx_next_pair(&it, &pair)) {
        if (!epctx_str_starts(pair.key, EPCTX_BUILD_PREFIX)) continue;
        pair.key.data += sizeof EPCTX_BUILD_PREFIX - 1;
        pair.key.size -= sizeof EPCTX_BUILD_PREFIX - 1;
        if (ep != NULL && !epctx_str_is(pair.key, ep)) continue;
        while (epctx_stamp_next_line(&pair.value, &line))
            if (epctx_str_is(line.word, "source") && is_source(n, &line)) return true;
    }
    return false;
}

epctx_status needed_allow(const compile_needed *n, const char *ep, epctx_error *error) {
    neighbours_plan plan;
    epctx_model model;
    epctx_error ignored;
    epctx_status status = EPCTX_OK;
    bool is;
    if (!n->existed) return EPCTX_OK;
    is = cli_open(&model, n->path, &ignored) == EPCTX_OK && is_made_from(n, &model, ep);
    epctx_model_close(&model);
    if (!is && !n->replaces) {
        status = epctx_fail(error, EPCTX_ERR_EXISTS,
                            "exists already, and is no EPContext model that %s made from '%s'",
                            ep != NULL ? ep : "an EP", n->source);
        epctx_blame(error, n->path, NULL, NULL);
        return status;
    }
    memset(&plan, 0, sizeof plan);
    plan.models = &n->path;
    plan.model_count = 1;
    return neighbours_allow(&plan, error);
}

/* ---------------------------------------------------------------- one process compiles */

/* The number of the process in "FILE.<process>-<number>.tmp"; 0: it is no such name. */
static pid_t process_of(const char *file, const char *name) {
    const size_t size = strlen(file);
    epctx_str rest = epctx_str_of(name);
    uint64_t process, number;
    if (strncmp(name, file, size) != 0 || name[size] != '.') return 0;
    rest.data += size + 1;
    rest.size -= size + 1;
    if (!epctx_str_take_number(&rest, &process) || !epctx_str_starts(rest, "-")) return 0;
    rest.data++;
    rest.size--;
    return epctx_str_take_number(&rest, &number) && epctx_str_is(rest, ".tmp") &&
                   process <= INT32_MAX
               ? (pid_t)process
               : 0;
}

/* Removes an unfinished model of a process that was killed. */
static bool remove_left(void *state, const char *name) {
    const compile_needed *n = (const compile_needed *)state;
    const epctx_str folder = epctx_path_folder(epctx_str_of(n->path));
    const pid_t process = process_of(n->path + folder.size, name);
    char path[EPCTX_PATH_MAX];
    if (process > 0 && kill(process, 0) != 0 && errno == ESRCH &&
        (size_t)snprintf(path, sizeof path, "%.*s%s", (int)folder.size, folder.data, name) <
            sizeof path)
        unlink(path);
    return true;
}

static void clear_up(compile_needed *n) {
    const epctx_io *io = epctx_io_files();
    const epctx_str part = epctx_path_folder(epctx_str_of(n->path));
    char folder[EPCTX_PATH_MAX];
    snprintf(folder, sizeof folder, "%.*s", (int)part.size, part.data);
    (void)io->list_fn(io->user, folder, remove_left, n, NULL);
}

/* The other processes wait here; with --wait no longer than it says. */
static epctx_status take_lock(compile_needed *n, epctx_error *error) {
    const struct timespec pause = {0, NEXT_TRY * 1000000L};
    const double begin = cli_now();
    epctx_status status;
    if (n->wait < 0) return epctx_file_lock_take(&n->lock, cli_io(), n->path, error);
    for (;;) {
        status = epctx_file_lock_try(&n->lock, cli_io(), n->path, error);
        if (status != EPCTX_ERR_CHANGED || cli_now() - begin >= n->wait * 1000) return status;
        nanosleep(&pause, NULL);
    }
}

/* Another process is at it, and the time to wait for it is over. */
static epctx_status take_older(compile_needed *n, epctx_error *error) {
    epctx_error why;
    epctx_error_clear(&why);
    n->older = n->existed && is_usable(n, &why);
    n->current = n->older;
    if (n->older) return EPCTX_OK;
    epctx_error_clear(error);
    return epctx_fail(error, EPCTX_ERR_CHANGED,
                      "%s: another process is still compiling it after %u s, and there is no older "
                      "result to use%s%s",
                      n->path, (uint64_t)n->wait, n->existed ? ": " : "",
                      n->existed ? why.message : "");
}

static epctx_status begin_locked(compile_needed *n, epctx_error *error) {
    const epctx_status status = take_lock(n, error);
    if (status == EPCTX_ERR_CHANGED && n->wait >= 0) return take_older(n, error);
    OPS_TRY(status);
    n->current = n->waited = is_current(n); /* another process was faster */
    if (n->current) return EPCTX_OK;
    OPS_TRY(needed_allow(n, n->any != NULL ? NULL : n->backend->source, error));
    clear_up(n);
    OPS_TRY(epctx_generation_begin(cli_io(), n->path, &n->next, error));
    n->generation = n->next.number;
    return EPCTX_OK;
}

epctx_status needed_begin(compile_needed *n, bool dry_run, epctx_error *error) {
    epctx_status status;
    epctx_error_clear(error);
    n->current = is_current(n);
    if (n->current) return EPCTX_OK;
    status = dry_run ? needed_allow(n, NULL, error) : begin_locked(n, error);
    if (n->current || status != EPCTX_OK) needed_end(n);
    if (status != EPCTX_OK) cli_fail_text("it must be compiled: %s", n->why.message);
    return status;
}

void needed_end(compile_needed *n) {
    epctx_file_lock_drop(&n->lock);
    epctx_generation_end(&n->next);
}

/* ---------------------------------------------------------------- what was decided */

static const char *decision_of(const compile_needed *n) {
    if (n->older) return "older";
    return n->current ? "up_to_date" : n->existed ? "compiled_again" : "compiled";
}

static const char *reason_of(const compile_needed *n) {
    if (n->waited) return "another process has just compiled it";
    return n->current && !n->older ? NULL : n->why.message;
}

void needed_print(const compile_needed *n) {
    static const char *const words[] = {"compiled", "compiled again", "up to date",
                                        "older result, another process is compiling it again"};
    const char *reason = reason_of(n);
    printf("%-14s ", "decision");
    fputs(words[n->older ? 3 : n->current ? 2 : n->existed], stdout);
    if (reason != NULL) {
        fputs(": ", stdout);
        cli_put(stdout, epctx_str_of(reason));
    }
    putchar('\n');
}

void needed_json(json_writer *w, const compile_needed *n) {
    if (n == NULL) return;
    json_text(w, "decision", decision_of(n));
    json_text(w, "reason", reason_of(n));
    if (n->generation > 0)
        json_uint(w, "generation", n->generation);
    else
        json_null(w, "generation");
}

void needed_report(const compile_needed *n, bool json) {
    if (json) {
        json_writer *w = cli_json_begin(stdout);
        json_text(w, "source_model", n->source);
        json_text(w, "model", n->path);
        needed_json(w, n);
        cli_json_end();
        return;
    }
    needed_print(n);
    compile_print_file(stdout, "model", n->path, NULL);
}
