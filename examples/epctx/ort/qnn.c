/* Asks Qualcomm's library about binaries, each in a child process of its own. */
#define _GNU_SOURCE
#include "qnn.h"
#include "ep_library.h"
#include "qnn_api.h"

#include "core/asker.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Seconds for one binary; a library needs milliseconds. */
enum { QNN_LIMIT = 10 };

/* The library of this command line; "": there is none, or no more use in asking it. */
static char asked[EPCTX_PATH_MAX];

/* ---------------------------------------------------------------- asking */

/* Damage, as the library sees it. It is the one by which the EP beside it reads binaries. */
static bool put_damage(epctx_arena *arena, binary_facts *facts) {
    char text[512];
    snprintf(text, sizeof text,
             "is refused by %s with error %d: cut off or damaged, or made by a newer SDK",
             facts->told_by, (int)QNN_MALFORMED_BINARY);
    facts->damage = epctx_arena_copy(arena, epctx_str_of(text));
    return facts->damage != NULL;
}

/* "libQnnSystem.so (system API 1.15.0)" */
static const char *teller(const qnn_question *q, epctx_arena *arena) {
    const epctx_str file = epctx_path_file(epctx_str_of(asked));
    char text[320];
    snprintf(text, sizeof text, "%.*s (system API %u.%u.%u)",
             (int)(file.size < 200 ? file.size : 200), file.data, (unsigned)q->api[0],
             (unsigned)q->api[1], (unsigned)q->api[2]);
    return epctx_arena_copy(arena, epctx_str_of(text));
}

/* A copy: what is left of the child's children may still write there. */
static bool take_answer(const qnn_question *q, epctx_arena *arena, binary_facts *facts) {
    const uint32_t used = q->used;
    epctx_span told = {NULL, used};
    uint8_t *copy;
    if (used > sizeof q->told) return false;
    copy = (uint8_t *)epctx_arena_array(arena, used, 1);
    if (copy == NULL) return false;
    memcpy(copy, q->told, used);
    told.data = copy;
    return qnn_read(told, arena, facts);
}

static bool take_result(const qnn_question *q, const anyep_result *result, epctx_span binary,
                        epctx_arena *arena, binary_facts *facts) {
    binary_facts out = *facts;
    char unread[EPCTX_PATH_MAX + 64];
    out.told_by = teller(q, arena);
    if (out.told_by != NULL && result->end == ANYEP_OK && take_answer(q, arena, &out)) {
        *facts = out;
        return true;
    }
    if (out.told_by != NULL && result->end == ANYEP_REFUSED && q->error == QNN_MALFORMED_BINARY &&
        put_damage(arena, &out)) {
        *facts = out;
        return true;
    }
    if (result->end == ANYEP_OK)
        snprintf(unread, sizeof unread, "asking %s: its answer cannot be read", asked);
    if (result->end != ANYEP_STOPPED)
        cli_say("epctx: warning: a binary of %llu bytes: %s\n", (unsigned long long)binary.size,
                result->end == ANYEP_OK ? unread : result->words);
    if (result->end == ANYEP_HUNG) asked[0] = '\0';
    return false;
}

static bool ask_in(const char *folder, qnn_question *q, epctx_span binary, epctx_arena *arena,
                   binary_facts *facts) {
    anyep_settings set;
    anyep_result result;
    anyep_job job;
    bool answered;
    memset(&set, 0, sizeof set);
    memset(&job, 0, sizeof job);
    set.time_limit = QNN_LIMIT;
    job.set = &set;
    job.work = ANYEP_CALL;
    job.folder = folder;
#if !defined(EPCTX_CLI_NO_ORT)
    job.call_fn = qnn_ask;
#endif
    job.user = q;
    q->library = asked;
    q->binary = binary;
    anyep_do(&job, &result);
    answered = take_result(q, &result, binary, arena, facts);
    anyep_free(&result);
    return answered;
}

static bool ask(void *user, epctx_span binary, epctx_arena *arena, binary_facts *facts) {
    char folder[EPCTX_PATH_MAX];
    qnn_question *q;
    bool answered = false;
    (void)user;
    if (asked[0] == '\0' || facts->id.kind != EPCTX_BINARY_QNN) return false;
    q = (qnn_question *)anyep_share(sizeof *q);
    if (q == NULL) return false;
    if (anyep_folder(NULL, folder, sizeof folder)) {
        answered = ask_in(folder, q, binary, arena, facts);
        anyep_remove(folder);
    }
    anyep_unshare(q, sizeof *q);
    return answered;
}

/* ---------------------------------------------------------------- which library */

#if defined(EPCTX_CLI_NO_ORT)

static bool find_library(const char *word, const char *beside) {
    (void)word, (void)beside;
    return false;
}

static bool no_library(const char *from, const char *word) {
    cli_misuse("%s %s: this build of epctx is a static program, which cannot open libraries: build "
               "it with the libraries of its system (make build/epctx)",
               from, word);
    return false;
}

#else

/* `word` as an absolute path, or what is called `beside` in its folder; false: there is no such
 * file. */
static bool find_library(const char *word, const char *beside) {
    epctx_arena arena;
    ep_library library;
    bool found;
    epctx_arena_init(&arena, NULL);
    found = ep_library_read(word, &arena, &library) && library.path != NULL;
    if (found) {
        const size_t folder = epctx_path_folder(epctx_str_of(library.path)).size;
        const int kept = (int)(beside != NULL ? folder : strlen(library.path));
        found = (size_t)snprintf(asked, sizeof asked, "%.*s%s", kept, library.path,
                                 beside != NULL ? beside : "") < sizeof asked &&
                access(asked, F_OK) == 0;
    }
    epctx_arena_free(&arena);
    if (!found) asked[0] = '\0';
    return found;
}

static bool no_library(const char *from, const char *word) {
    cli_misuse("%s: there is no library %s", from, word);
    return false;
}

#endif

bool cli_binary_asker(const cli_args *args, binary_asker *asker) {
    const char *word = args->qnn_system, *from = "--qnn-system";
    /* --ep of names has no folder: a file of that name in this one is not meant. */
    const char *one = args->ep != NULL && strchr(args->ep, '/') != NULL ? args->ep : NULL;
    const char *ep = args->eps.count > 0 ? args->eps.items[0] : one;
    memset(asker, 0, sizeof *asker);
    asked[0] = '\0';
    if (word == NULL) {
        word = getenv("EPCTX_QNN_SYSTEM");
        from = "EPCTX_QNN_SYSTEM";
    }
    if (word != NULL && word[0] != '\0' && !find_library(word, NULL)) return no_library(from, word);
    if (asked[0] == '\0' && ep != NULL) find_library(ep, "libQnnSystem.so");
    asker->ask_fn = ask;
    return true;
}
