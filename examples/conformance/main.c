/* main.c - epctx-conformance: the command line, and a process for each experiment. */
#define _GNU_SOURCE
#include "conformance.h"

#include <errno.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TIME_LIMIT = 120, LONGEST_LIMIT = 86400 }; /* seconds: slow compilers are no hang */

static const experiment *const all[] = {
    factory_experiments, registration_experiments, session_experiments, identity_experiments,
    context_experiments, damage_experiments,       sharing_experiments, model_experiments};

/* Experiment `index` of all; NULL at the end. */
static const experiment *experiment_at(size_t index) {
    size_t i, k;
    for (i = 0; i < sizeof all / sizeof all[0]; i++) {
        for (k = 0; all[i][k].name; k++)
            if (index-- == 0) return &all[i][k];
    }
    return NULL;
}

/* ---------------------------------------------------------------- processes */

static const char *missing_need(const trial *t, unsigned needs) {
    const ep_facts *ep = &t->board->ep;
    if ((needs & NEEDS_DEVICE) && !ep->device) {
        if (*ep->no_device) return ep->no_device;
        return t->board->hung ? "the EP could not be opened: it hung"
                              : "the EP could not be opened";
    }
    if ((needs & NEEDS_CLAIM) && !*ep->unary && !*ep->weighted)
        return t->board->probed ? ep->no_claim : "the probe, which asks what the EP claims, failed";
    if ((needs & NEEDS_RUNS) && !ep->runs) return ep->no_runs;
    if ((needs & NEEDS_CONTEXTS) && !ep->contexts) return ep->no_contexts;
    if ((needs & NEEDS_FILES) && !ep->files) return "the EP writes no context binaries in files";
    if ((needs & NEEDS_EMBEDDING) && !ep->embeds) return "the EP embeds no contexts";
    if ((needs & NEEDS_FOREIGN) && !*ep->foreign)
        return "the EP claims every operator that was tried: nothing is left to the CPU";
    if ((needs & NEEDS_SHARING) && !ep->shares) return "the EP does not share contexts";
    return NULL;
}

static const int ending[] = {SIGINT, SIGTERM, SIGHUP};
enum { ENDING = sizeof ending / sizeof ending[0] };

/* What ends this program waits until nothing is left behind; ignored signals (nohup) stay so.
 * `how`: SIG_BLOCK, SIG_UNBLOCK. */
static void hold_signals(int how) {
    struct sigaction old;
    sigset_t set;
    size_t i;
    sigemptyset(&set);
    for (i = 0; i < ENDING; i++)
        if (sigaction(ending[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaddset(&set, ending[i]);
    sigprocmask(how, &set, NULL);
}

/* Whether this program has to end. */
static bool is_stopped(void) {
    sigset_t waiting;
    size_t i;
    if (sigpending(&waiting) != 0) return false;
    for (i = 0; i < ENDING; i++)
        if (sigismember(&waiting, ending[i]) == 1) return true;
    return false;
}

/* In the child. */
static void run_experiment(trial *t, const experiment *e, const char *folder) {
    setpgid(0, 0); /* it may have children of its own: they end with it */
    hold_signals(SIG_UNBLOCK);
#if defined(__GLIBC__) /* who uses memory that was given back, or never written, sees it */
    mallopt(M_PERTURB, 0xa5);
#endif
    if (chdir(folder) != 0) _exit(3);
    make_folder("src");
    make_folder("out");
    e->run(t);
    t->board->returned = true;
    fflush(NULL);
    _exit(0); /* whether an orderly end works is an experiment of its own */
}

/* The child's wait status; false: it took too long. */
static bool wait_for(const trial *t, pid_t child, int *status) {
    const double start = seconds_now();
    pid_t ended = 0;
    while (ended == 0 && !is_stopped() && seconds_now() - start < t->wanted.time_limit) {
        ended = waitpid(child, status, WNOHANG);
        if (ended == 0) usleep(2000);
    }
    kill(-child, SIGKILL); /* it and what it left behind */
    if (ended == 0) waitpid(child, status, 0);
    return ended == child;
}

/* What ended an experiment before its time breaks the rule at hand. */
static void judge_break(trial *t, const experiment *e, const char *why, size_t from) {
    char text[sizeof t->board->findings[0].text];
    const char *id = *t->board->judging ? t->board->judging : e->rules;
    size_t index;
    snprintf(text, sizeof text, "%.250s: %.280s; expected a result or a status", t->board->doing,
             why);
    if (next_id(&id, &index)) put_finding(t, index, FAILED, text);
    snprintf(text, sizeof text, "not reached: %s", why);
    put_rest(t, e->rules, from, text);
}

static void judge_end(trial *t, const experiment *e, bool ended, int status, size_t from) {
    char why[400];
    if (!ended) {
        snprintf(why, sizeof why, "did not return within %g seconds", t->wanted.time_limit);
        if (t->board->step && !t->board->hung) {
            t->board->hung = t->board->step;
            t->board->hung_in = t->board->experiment;
        }
    } else if (WIFSIGNALED(status)) {
        snprintf(why, sizeof why, "the process was ended by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    } else if (WEXITSTATUS(status) != 0 || !t->board->returned) {
        snprintf(why, sizeof why, "the process ended with exit code %d", WEXITSTATUS(status));
    } else {
        put_rest(t, e->rules, from,
                 *t->board->gave_up ? t->board->gave_up : "the experiment did not come to it");
        return;
    }
    judge_break(t, e, why, from);
}

/* Every experiment begins with the step that hung: one was worth the wait. "exports" only loads the
 * library. */
static bool is_hopeless(const trial *t, const experiment *e) {
    return t->board->hung && (t->board->hung == step_load || !(e->needs & ONLY_LOADS));
}

static void try_experiment(trial *t, size_t at, const char *base) {
    const experiment *e = experiment_at(at);
    const char *missing = missing_need(t, e->needs);
    const size_t from = t->board->count;
    char folder[PATH_MAX + 24], why[200];
    int status = 0;
    bool ended;
    pid_t child;
    t->board->experiment = e->name;
    t->board->returned = false;
    t->board->judging[0] = t->board->gave_up[0] = '\0';
    t->board->step = NULL;
    snprintf(t->board->doing, sizeof t->board->doing, "%s", e->name);
    if (missing) {
        put_rest(t, e->rules, from, missing);
        return;
    }
    if (is_hopeless(t, e)) {
        snprintf(why, sizeof why, "not tried: %s hung in the experiment '%s'", t->board->hung,
                 t->board->hung_in);
        judge(t, t->board->hung == step_load ? "PLG-001" : "PLG-041", false, "%s", why);
        put_rest(t, e->rules, from, why);
        return;
    }
    snprintf(folder, sizeof folder, "%s/%zu", base, at);
    make_folder(folder);
    fflush(NULL);
    child = fork();
    if (child == 0) run_experiment(t, e, folder);
    ended = child > 0 && wait_for(t, child, &status);
    judge_end(t, e, ended, status, from);
    remove_tree(folder);
}

/* Does it judge one of the wanted rules? What others rely on runs always. */
static bool is_wanted(const experiment *e, const char *only) {
    const char *ids = only;
    size_t index;
    if (!only || (e->needs & FINDS_FACTS)) return true;
    while (next_id(&ids, &index))
        if (strstr(e->rules, rules[index].id)) return true;
    return false;
}

/* ------------------------------------------------------------- command line */

static int usage(void) {
    fputs(
        "usage: epctx-conformance LIBRARY [NAME] [--ep-opt KEY=VALUE]... [--model FILE]...\n"
        "                         [--json] [--junit FILE] [--ort LIBRARY] [--only RULES]\n"
        "                         [--timeout SECONDS]\n"
        "       epctx-conformance --rules\n"
        "Tries the plugin EP in LIBRARY (NAME: which, if it has several) in ONNX Runtime, by the\n"
        "rules of its documents. Exit code 0: none failed, 1: some failed, 2: wrong command "
        "line.\n",
        stderr);
    return 2;
}

typedef struct command {
    bool json;
    const char *junit, *only;
} command;

/* Returns false. */
static bool refuse(const char *what, const char *why) {
    fprintf(stderr, "epctx-conformance: %s: %s\n", what, why);
    return false;
}

static bool read_timeout(trial *t, const char *text) {
    char *end = NULL;
    t->wanted.time_limit = strtod(text, &end);
    if (end != text && !*end && t->wanted.time_limit > 0 && t->wanted.time_limit <= LONGEST_LIMIT)
        return true;
    return refuse(text, "expected --timeout SECONDS, more than 0 and at most a day");
}

static bool read_model(trial *t, const char *path) {
    char why[80];
    if (t->wanted.model_count == MAX_MODELS) {
        snprintf(why, sizeof why, "more than %d --model", MAX_MODELS);
        return refuse(path, why);
    }
    t->wanted.models[t->wanted.model_count] = realpath(path, NULL);
    return t->wanted.models[t->wanted.model_count++] || refuse(path, strerror(errno));
}

static bool read_argument(trial *t, const char *name, char *value, command *c) {
    if (!value) return refuse(name, "a value is missing, or there is no such option");
    if (strcmp(name, "--timeout") == 0) return read_timeout(t, value);
    if (strcmp(name, "--model") == 0) return read_model(t, value);
    if (strcmp(name, "--ep-opt") == 0)
        return ort_read_option(value, &t->wanted.options) || refuse(value, ort_text);
    if (strcmp(name, "--junit") == 0) return (c->junit = value) != NULL;
    if (strcmp(name, "--only") == 0) return (c->only = value) != NULL;
    if (strcmp(name, "--ort") == 0) return setenv("EPCTX_ORT_LIBRARY", value, 1) == 0;
    return refuse(name, "no such option");
}

static bool read_command(trial *t, int argc, char **argv, command *c) {
    int i;
    for (i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            c->json = true;
        } else if (strncmp(argv[i], "--", 2) == 0) {
            if (!read_argument(t, argv[i], argv[i + 1], c)) return false; /* argv ends with NULL */
            i++;
        } else if (!t->wanted.library) {
            t->wanted.library = realpath(argv[i], NULL);
            if (!t->wanted.library) return refuse(argv[i], strerror(errno));
        } else if (!t->wanted.name) {
            t->wanted.name = argv[i];
        } else {
            return refuse(argv[i], "one word too many");
        }
    }
    return t->wanted.library || refuse("LIBRARY", "which plugin?");
}

/* Without ORT nothing can be said about the EP. */
static bool has_ort(void) {
    char path[PATH_MAX], real[PATH_MAX];
    int status = 0;
    pid_t child;
    /* The experiments have a current folder of their own. */
    if (ort_library(path, sizeof path) && realpath(path, real))
        setenv("EPCTX_ORT_LIBRARY", real, 1);
    fflush(NULL);
    child = fork();
    if (child == 0) {
        const bool ok = ort_open(false) && ort_version >= 24;
        if (!ok) {
            fprintf(stderr, "epctx-conformance: %s\n",
                    *ort_text ? ort_text : "needs ONNX Runtime 1.24 or newer");
        }
        fflush(NULL);
        _exit(ok ? 0 : 2);
    }
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

/* What stands there stays until the report is complete. Only tries, without `data`: a run is too
 * long to find out at its end that nothing can be written. */
static bool write_junit(const char *path, const char *data, size_t size) {
    epctx_span part = {(const uint8_t *)data, size};
    epctx_output_file file;
    epctx_commit commit;
    epctx_error error;
    epctx_arena arena;
    epctx_status status;
    memset(&file, 0, sizeof file);
    memset(&commit, 0, sizeof commit);
    epctx_error_clear(&error);
    file.path = path;
    file.parts = &part;
    file.part_count = 1;
    file.size = size;
    epctx_arena_init(&arena, NULL);
    status = epctx_commit_begin(&commit, NULL, &arena, &error);
    if (status == EPCTX_OK)
        status = epctx_commit_put_file(&commit, &file, EPCTX_OVERWRITE_REPLACE, &error);
    if (status == EPCTX_OK)
        status = data ? epctx_commit_run(&commit, &error) : epctx_commit_fill(&commit, &error);
    epctx_commit_close(&commit);
    epctx_arena_free(&arena);
    return status == EPCTX_OK || refuse("--junit", error.message);
}

static bool put_junit(const trial *t, const char *path) {
    char *data = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&data, &size);
    bool ok = out != NULL;
    if (out) report_junit(t, out);
    ok = out && fclose(out) == 0 && write_junit(path, data, size);
    free(data);
    return ok;
}

static bool has_failed(const trial *t) {
    size_t i;
    for (i = 0; i < rule_count; i++)
        if (outcome_of(t, i).verdict == FAILED) return true;
    return false;
}

int main(int argc, char **argv) {
    const char *tmp = getenv("TMPDIR"), *ids;
    char base[PATH_MAX];
    command c;
    trial t;
    size_t i;
    memset(&c, 0, sizeof c);
    memset(&t, 0, sizeof t);
    t.wanted.time_limit = TIME_LIMIT;
    if (argc == 2 && strcmp(argv[1], "--rules") == 0) {
        report_rules(stdout);
        return 0;
    }
    if (!read_command(&t, argc, argv, &c)) return usage();
    for (ids = c.only; ids && next_id(&ids, &i);) {
    }
    if (c.junit && !write_junit(c.junit, NULL, 0)) return 2;
    snprintf(base, sizeof base, "%s/epctx_conformance_XXXXXX", tmp && *tmp ? tmp : "/tmp");
    t.board = (board *)mmap(NULL, sizeof *t.board, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (t.board == MAP_FAILED || !mkdtemp(base)) {
        fprintf(stderr, "epctx-conformance: %s: %s\n", base, strerror(errno));
        return 2;
    }
    if (!has_ort()) {
        remove_tree(base);
        return 2;
    }
    hold_signals(SIG_BLOCK);
    for (i = 0; experiment_at(i) && !is_stopped(); i++)
        if (is_wanted(experiment_at(i), c.only)) try_experiment(&t, i, base);
    remove_tree(base);
    hold_signals(SIG_UNBLOCK); /* the end, if one of them waits */
    if (c.json)
        report_json(&t, stdout);
    else
        report_text(&t, stdout);
    if (c.junit && !put_junit(&t, c.junit)) return 2;
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "epctx-conformance: the report: %s\n", strerror(errno));
        return 2;
    }
    return has_failed(&t) ? 1 : 0;
}
