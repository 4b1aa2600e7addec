/* Runs an operation on two models with every allocation failing in turn: of the first model, which
 * has a fixed buffer, of the second, and of an allocator that both and the lint share; or with
 * every large one of that allocator, which is much quicker and finds tables that grow. The
 * allocator fails from there on, or only this once, when whoever overlooks it gets away and leaves
 * something out: an operation that says it succeeded has to have done what it does with all
 * memory. */
#ifndef EPCTX_TEST_STARVE_H
#define EPCTX_TEST_STARVE_H

#include "build.h"
#include "test.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Which requests fail in turn: all of them, or every third where a run takes many times as long. */
#if defined(__SANITIZE_ADDRESS__) || !(defined(__x86_64__) || defined(__i386__))
#define STARVE_STEP 3
#else
#define STARVE_STEP 1
#endif

/* An operation on two models (the second may be left alone). Whatever it returns, the second one
 * is afterwards as it was. */
typedef epctx_status (*starve_fn)(epctx_model *a, epctx_model *b, epctx_error *error);

/* What the operation reports; it has to be the same with less memory, too. */
static bytes starve_said;

BUILD_UNUSED TEST_PRINTF(1, 2) static void starve_say(const char *format, ...) {
    char line[2000];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    bytes_add(&starve_said, line, strlen(line));
}

typedef struct starve_in {
    const bytes *data[2]; /* the models, */
    const char *path[2];  /* or their files */
} starve_in;

static epctx_status starve_open(const starve_in *in, int which, epctx_model *model,
                                const epctx_open_opts *opts, epctx_error *error) {
    return in->path[which] != NULL ? epctx_model_open_file(model, in->path[which], opts, error)
                                   : epctx_model_open_memory(model, in->data[which]->data,
                                                             in->data[which]->size, opts, error);
}

static bool starve_same(epctx_model *model, const bytes *before) {
    bytes now = written(model);
    bool same = bytes_equal(&now, before->data, before->size);
    bytes_free(&now);
    return same;
}

/* Only requests of so many bytes or more count. */
typedef struct starve_large {
    counting *count;
    size_t least;
} starve_large;

static void *starve_alloc(void *user, size_t size) {
    starve_large *l = (starve_large *)user;
    void *memory;
    if (size >= l->least) return counting_alloc(l->count, size);
    memory = malloc(size > 0 ? size : 1);
    l->count->alive += memory != NULL;
    return memory;
}

static void starve_free(void *user, void *memory) {
    counting_free(((starve_large *)user)->count, memory);
}

/* What the allocator refuses: requests of `least` bytes or more, from number `fail_at` on, or only
 * that one. */
typedef struct starve_at {
    size_t least, fail_at;
    bool once;
} starve_at;

/* What comes of the operation with all memory. */
typedef struct starve_whole {
    bytes model, said;
} starve_whole;

static void starve_forget(starve_whole *whole) {
    bytes_free(&whole->model);
    bytes_free(&whole->said);
    bytes_free(&starve_said);
}

/* One run. `room`: what the models have left, SIZE_MAX: no end. Without it they have an allocator
 * that refuses `at`. `*missing`: what was. `whole`: made by the first run that has it. */
static const char *starve_once(starve_fn run, const starve_in *in, const size_t room[2],
                               starve_at at, starve_whole *whole, epctx_status *status,
                               size_t *missing) {
    static uint64_t buffers[2][HUNGRY_BUFFER / 8];
    static char text[800];
    epctx_model models[2];
    bytes before[2];
    epctx_error error;
    const char *wrong = NULL;
    counting memory = {0, 0, 0, at.once};
    starve_large large = {&memory, at.least};
    epctx_allocator allocator = {&large, starve_alloc, starve_free};
    memset(models, 0, sizeof models);
    for (int i = 0; i < 2; i++) {
        epctx_open_opts opts;
        memset(&opts, 0, sizeof opts);
        if (room != NULL) {
            opts.buffer = buffers[i];
            opts.buffer_size = HUNGRY_BUFFER;
        } else {
            opts.allocator = &allocator;
        }
        if (starve_open(in, i, &models[i], &opts, &error) != EPCTX_OK) return "a model is no model";
        before[i] = written(&models[i]);
        if (room != NULL && room[i] < models[i].arena.left) models[i].arena.left = room[i];
        models[i].arena.missing = 0;
    }
    memory.calls = 0;
    memory.fail_at = at.fail_at;
    epctx_error_clear(&error);
    starve_said.size = 0;
    *status = run(&models[0], &models[1], &error);
    *missing = room != NULL ? models[room[0] == SIZE_MAX].arena.missing
                            : at.fail_at != 0 && memory.calls >= at.fail_at;
    memory.fail_at = 0;
    for (int i = 0; i < 2 && room != NULL; i++) models[i].arena.left += 4096; /* for writing */
    if (*status != EPCTX_OK && (*status != EPCTX_ERR_NOMEM || error.status != EPCTX_ERR_NOMEM ||
                                strstr(error.message, "memory") == NULL)) {
        snprintf(text, sizeof text, "%s: %s", epctx_status_name(*status), error.message);
        wrong = text;
    } else if (*status != EPCTX_OK && !starve_same(&models[0], &before[0])) {
        wrong = "a failure left an edit";
    } else if (*status != EPCTX_OK && *missing == 0) {
        wrong = "a failure without a request";
    } else if (!starve_same(&models[1], &before[1])) {
        wrong = "the second model changed";
    } else if (*status == EPCTX_OK && whole->model.data == NULL) {
        whole->model = written(&models[0]);
        bytes_add(&whole->said, starve_said.data, starve_said.size);
    } else if (*status == EPCTX_OK &&
               !(starve_same(&models[0], &whole->model) &&
                 bytes_equal(&starve_said, whole->said.data, whole->said.size))) {
        snprintf(text, sizeof text,
                 "request %zu failed%s, it says that all went well, and something else came out",
                 at.fail_at, at.once ? " once" : "");
        wrong = text;
    }
    for (int i = 0; i < 2; i++) {
        epctx_edit_undo(&models[i], 0);
        if (wrong == NULL && !starve_same(&models[i], &before[i])) wrong = "undo does not restore";
        epctx_model_close(&models[i]);
        bytes_free(&before[i]);
    }
    if (wrong == NULL && memory.alive != 0) wrong = "memory leaks";
    return wrong;
}

/* With all memory. */
static const char *starve_not(starve_fn run, const starve_in *in, starve_whole *whole) {
    static const starve_at nowhere = {0, 0, false};
    epctx_status status;
    size_t missing;
    const char *wrong = starve_once(run, in, NULL, nowhere, whole, &status, &missing);
    return wrong == NULL && status != EPCTX_OK ? "it fails with all memory" : wrong;
}

static const char *starve_from(starve_fn run, const starve_in *in, size_t least,
                               starve_whole *whole, size_t *runs) {
    const char *wrong = NULL;
    for (int once = 0; once < 2; once++) {
        starve_at at = {least, 1, once != 0};
        size_t missing = 1;
        for (; wrong == NULL && missing > 0 && at.fail_at < 5000; at.fail_at += STARVE_STEP) {
            epctx_status status;
            wrong = starve_once(run, in, NULL, at, whole, &status, &missing);
            ++*runs;
        }
        if (wrong == NULL && missing > 0) wrong = "it never ends";
    }
    return wrong;
}

static const char *starve_buffers(starve_fn run, const starve_in *in, starve_whole *whole,
                                  size_t *runs) {
    static const starve_at nowhere = {0, 0, false};
    const char *wrong = NULL;
    for (int hungry = 0; hungry < 2; hungry++) {
        size_t room[2] = {SIZE_MAX, SIZE_MAX}, missing = 1;
        for (room[hungry] = 0; wrong == NULL && missing > 0; room[hungry] += missing) {
            epctx_status status;
            wrong = starve_once(run, in, room, nowhere, whole, &status, &missing);
            ++*runs;
        }
    }
    return wrong;
}

/* NULL when all is well. `*runs` counts. */
BUILD_UNUSED static const char *starve(starve_fn run, const starve_in *in, size_t *runs) {
    starve_whole whole = {{0}, {0}};
    const char *wrong = starve_not(run, in, &whole);
    if (wrong == NULL) wrong = starve_buffers(run, in, &whole, runs);
    if (wrong == NULL) wrong = starve_from(run, in, 0, &whole, runs);
    starve_forget(&whole);
    return wrong;
}

/* Only by the buffers of the models. */
BUILD_UNUSED static const char *starve_models(starve_fn run, const starve_in *in, size_t *runs) {
    starve_whole whole = {{0}, {0}};
    const char *wrong = starve_not(run, in, &whole);
    if (wrong == NULL) wrong = starve_buffers(run, in, &whole, runs);
    starve_forget(&whole);
    return wrong;
}

/* Only by the allocator. */
BUILD_UNUSED static const char *starve_allocator(starve_fn run, const starve_in *in, size_t *runs) {
    starve_whole whole = {{0}, {0}};
    const char *wrong = starve_not(run, in, &whole);
    if (wrong == NULL) wrong = starve_from(run, in, 0, &whole, runs);
    starve_forget(&whole);
    return wrong;
}

/* The same for large requests: tables that grow. */
BUILD_UNUSED static const char *starve_tables(starve_fn run, const starve_in *in, size_t *runs) {
    starve_whole whole = {{0}, {0}};
    const char *wrong = starve_not(run, in, &whole);
    if (wrong == NULL) wrong = starve_from(run, in, 300, &whole, runs);
    starve_forget(&whole);
    return wrong;
}

#endif
