/* main.c - epctx-conformance: the command line, and a process for each experiment. */
#define _GNU_SOURCE
#include "conformance.h"

#include <errno.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TIME_LIMIT = 120, LONGEST_LIMIT = 86400 }; /* seconds: slow compilers are no hang */

board *now;
const char step_load[] = "loading the library";
const char step_register[] = "registration";
char ort_answer[4200];
request wanted;

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

const char *experiment_name(size_t index) {
    const experiment *e = experiment_at(index);
    return e ? e->name : "";
}

/* -------------------------------------------------------------------- board */

/* The command line, or an experiment, names a rule that there is not: nothing to go on with. */
static size_t rule_index(const char *id, size_t length) {
    size_t i;
    for (i = 0; i < rule_count; i++)
        if (strlen(rules[i].id) == length && memcmp(rules[i].id, id, length) == 0) return i;
    fprintf(stderr, "epctx-conformance: no rule '%.*s'\n", (int)length, id);
    exit(2);
}

/* The next of a list with blanks between; false at the end. */
static bool next_id(const char **list, size_t *index) {
    size_t length;
    *list += strspn(*list, " ");
    length = strcspn(*list, " ");
    if (length == 0) return false;
    *index = rule_index(*list, length);
    *list += length;
    return true;
}

static void put_finding(size_t index, verdict v, const char *text) {
    finding *f = &now->findings[now->count];
    if (now->count == MAX_FINDINGS) return;
    f->rule = index;
    f->experiment = now->experiment;
    f->verdict = v;
    snprintf(f->text, sizeof f->text, "%s", text);
    now->count++;
}

static void put_findings(const char *ids, verdict v, const char *format, va_list args) {
    char text[sizeof now->findings[0].text];
    size_t index, i;
    snprintf(ort_answer, sizeof ort_answer, "%d: %s", ort_code, ort_text);
    if (ort_code == 0) snprintf(ort_answer, sizeof ort_answer, "%s", ort_text);
    vsnprintf(text, sizeof text, format, args);
    for (i = 0; text[i]; i++)
        if (text[i] == '\n') text[i] = ' ';
    while (next_id(&ids, &index)) put_finding(index, v, text);
}

void judging(const char *rule_id, const char *format, ...) {
    va_list args;
    snprintf(now->judging, sizeof now->judging, "%s", rule_id);
    va_start(args, format);
    vsnprintf(now->doing, sizeof now->doing, format, args);
    va_end(args);
}

void holds(const char *ids) {
    size_t index;
    while (next_id(&ids, &index)) put_finding(index, PASSED, "");
}

bool judge(const char *ids, bool ok, const char *format, ...) {
    va_list args;
    va_start(args, format);
    if (ok)
        holds(ids);
    else
        put_findings(ids, FAILED, format, args);
    va_end(args);
    return ok;
}

void remark(const char *ids, const char *format, ...) {
    va_list args;
    va_start(args, format);
    put_findings(ids, PASSED, format, args);
    va_end(args);
}

void does_not_apply(const char *ids, const char *format, ...) {
    va_list args;
    va_start(args, format);
    put_findings(ids, NOT_APPLICABLE, format, args);
    va_end(args);
}

bool give_up(const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(now->gave_up, sizeof now->gave_up, format, args);
    va_end(args);
    return false;
}

void tell_fact(const char *name, const char *format, ...) {
    fact *f = &now->facts[now->fact_count];
    va_list args;
    if (now->fact_count == MAX_FACTS) return;
    now->fact_count++;
    snprintf(f->name, sizeof f->name, "%s", name);
    va_start(args, format);
    vsnprintf(f->text, sizeof f->text, format, args);
    va_end(args);
}

static bool is_judged(size_t index, size_t from) {
    size_t i;
    for (i = from; i < now->count; i++)
        if (now->findings[i].rule == index) return true;
    return false;
}

/* Of an experiment that is over: what it did not come to, since finding `from`. */
static void put_rest(const experiment *e, size_t from, const char *why) {
    const char *ids = e->rules;
    size_t index;
    while (next_id(&ids, &index))
        if (!is_judged(index, from)) put_finding(index, NOT_APPLICABLE, why);
}

/* ---------------------------------------------------------------- processes */

static const char *missing_need(unsigned needs) {
    const ep_facts *ep = &now->ep;
    if ((needs & NEEDS_DEVICE) && !ep->device) {
        if (*ep->no_device) return ep->no_device;
        return now->hung ? "the EP could not be opened: it hung" : "the EP could not be opened";
    }
    if ((needs & NEEDS_CLAIM) && !*ep->unary && !*ep->weighted)
        return now->probed ? ep->no_claim : "the probe, which asks what the EP claims, failed";
    if ((needs & NEEDS_RUNS) && !ep->runs) return ep->no_runs;
    if ((needs & NEEDS_CONTEXTS) && !ep->contexts) return ep->no_contexts;
    if ((needs & NEEDS_FILES) && !ep->files) return "the EP writes no context binaries in files";
    if ((needs & NEEDS_EMBEDDING) && !ep->embeds) return "the EP embeds no contexts";
    if ((needs & NEEDS_FOREIGN) && !*ep->foreign)
        return "the EP claims every operator that was tried: nothing is left to the CPU";
    if ((needs & NEEDS_SHARING) && !ep->shares) return "the EP does not share contexts";
    return NULL;
}

static volatile sig_atomic_t stopped; /* the signal that ends this program */

static void stop(int number) {
    stopped = number;
}

/* What ends this program; ignored signals (nohup) stay so. */
static void on_signals(void (*handler)(int)) {
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    size_t i;
    for (i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (signal(numbers[i], handler) == SIG_IGN) signal(numbers[i], SIG_IGN);
}

/* In the child. */
static void run_experiment(const experiment *e, const char *folder) {
    setpgid(0, 0); /* it may have children of its own: they end with it */
    on_signals(SIG_DFL);
#if defined(__GLIBC__) /* who uses memory that was given back, or never written, sees it */
    mallopt(M_PERTURB, 0xa5);
#endif
    if (chdir(folder) != 0) _exit(3);
    make_folder("src");
    make_folder("out");
    e->run();
    now->returned = true;
    fflush(NULL);
    _exit(0); /* whether an orderly end works is an experiment of its own */
}

/* The child's wait status; false: it took too long. */
static bool wait_for(pid_t child, int *status) {
    const double start = seconds_now();
    pid_t ended = 0;
    while (ended == 0 && !stopped && seconds_now() - start < wanted.time_limit) {
        ended = waitpid(child, status, WNOHANG);
        if (ended == 0) usleep(2000);
    }
    kill(-child, SIGKILL); /* it and what it left behind */
    if (ended == 0) waitpid(child, status, 0);
    return ended == child;
}

/* What ended an experiment before its time breaks the rule at hand. */
static void judge_break(const experiment *e, const char *why, size_t from) {
    char text[sizeof now->findings[0].text];
    const char *id = *now->judging ? now->judging : e->rules;
    size_t index;
    snprintf(text, sizeof text, "%.250s: %.280s; expected a result or a status", now->doing, why);
    if (next_id(&id, &index)) put_finding(index, FAILED, text);
    snprintf(text, sizeof text, "not reached: %s", why);
    put_rest(e, from, text);
}

static void judge_end(const experiment *e, bool ended, int status, size_t from) {
    char why[400];
    if (!ended) {
        snprintf(why, sizeof why, "did not return within %g seconds", wanted.time_limit);
        if (now->step && !now->hung) {
            now->hung = now->step;
            now->hung_in = now->experiment;
        }
    } else if (WIFSIGNALED(status)) {
        snprintf(why, sizeof why, "the process was ended by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    } else if (WEXITSTATUS(status) != 0 || !now->returned) {
        snprintf(why, sizeof why, "the process ended with exit code %d", WEXITSTATUS(status));
    } else {
        put_rest(e, from, *now->gave_up ? now->gave_up : "the experiment did not come to it");
        return;
    }
    judge_break(e, why, from);
}

/* Every experiment begins with the step that hung: one was worth the wait. "exports" only loads the
 * library. */
static bool is_hopeless(const experiment *e) {
    return now->hung && (now->hung == step_load || !(e->needs & ONLY_LOADS));
}

static void try_experiment(size_t at, const char *base) {
    const experiment *e = experiment_at(at);
    const char *missing = missing_need(e->needs);
    const size_t from = now->count;
    char folder[PATH_MAX + 24], why[200];
    int status = 0;
    bool ended;
    pid_t child;
    now->experiment = at;
    now->returned = false;
    now->judging[0] = now->gave_up[0] = '\0';
    now->step = NULL;
    snprintf(now->doing, sizeof now->doing, "%s", e->name);
    if (missing) {
        put_rest(e, from, missing);
        return;
    }
    if (is_hopeless(e)) {
        snprintf(why, sizeof why, "not tried: %s hung in the experiment '%s'", now->hung,
                 experiment_name(now->hung_in));
        judge(now->hung == step_load ? "PLG-001" : "PLG-041", false, "%s", why);
        put_rest(e, from, why);
        return;
    }
    snprintf(folder, sizeof folder, "%s/%zu", base, at);
    make_folder(folder);
    fflush(NULL);
    child = fork();
    if (child == 0) run_experiment(e, folder);
    ended = child > 0 && wait_for(child, &status);
    judge_end(e, ended, status, from);
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

static bool read_timeout(const char *text) {
    char *end = NULL;
    wanted.time_limit = strtod(text, &end);
    if (end != text && !*end && wanted.time_limit > 0 && wanted.time_limit <= LONGEST_LIMIT)
        return true;
    return refuse(text, "expected --timeout SECONDS, more than 0 and at most a day");
}

static bool read_model(const char *path) {
    char why[80];
    if (wanted.model_count == MAX_MODELS) {
        snprintf(why, sizeof why, "more than %d --model", MAX_MODELS);
        return refuse(path, why);
    }
    wanted.models[wanted.model_count] = realpath(path, NULL);
    return wanted.models[wanted.model_count++] || refuse(path, strerror(errno));
}

static bool read_argument(const char *name, char *value, command *c) {
    if (!value) return refuse(name, "a value is missing, or there is no such option");
    if (strcmp(name, "--timeout") == 0) return read_timeout(value);
    if (strcmp(name, "--model") == 0) return read_model(value);
    if (strcmp(name, "--ep-opt") == 0)
        return ort_read_option(value, &wanted.options) || refuse(value, ort_text);
    if (strcmp(name, "--junit") == 0) return (c->junit = value) != NULL;
    if (strcmp(name, "--only") == 0) return (c->only = value) != NULL;
    if (strcmp(name, "--ort") == 0) return setenv("EPCTX_ORT_LIBRARY", value, 1) == 0;
    return refuse(name, "no such option");
}

static bool read_command(int argc, char **argv, command *c) {
    int i;
    for (i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            c->json = true;
        } else if (strncmp(argv[i], "--", 2) == 0) {
            if (!read_argument(argv[i], argv[i + 1], c)) return false; /* argv ends with NULL */
            i++;
        } else if (!wanted.library) {
            wanted.library = realpath(argv[i], NULL);
            if (!wanted.library) return refuse(argv[i], strerror(errno));
        } else if (!wanted.name) {
            wanted.name = argv[i];
        } else {
            return refuse(argv[i], "one word too many");
        }
    }
    return wanted.library || refuse("LIBRARY", "which plugin?");
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

static bool put_junit(const char *path) {
    char *data = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&data, &size);
    bool ok = out != NULL;
    if (out) report_junit(out);
    ok = out && fclose(out) == 0 && write_junit(path, data, size);
    free(data);
    return ok;
}

static bool has_failed(void) {
    size_t i;
    for (i = 0; i < rule_count; i++)
        if (outcome_of(i).verdict == FAILED) return true;
    return false;
}

int main(int argc, char **argv) {
    const char *tmp = getenv("TMPDIR"), *ids;
    char base[PATH_MAX];
    command c;
    size_t i;
    memset(&c, 0, sizeof c);
    wanted.time_limit = TIME_LIMIT;
    if (argc == 2 && strcmp(argv[1], "--rules") == 0) {
        report_rules(stdout);
        return 0;
    }
    if (!read_command(argc, argv, &c)) return usage();
    for (ids = c.only; ids && next_id(&ids, &i);) {
    }
    if (c.junit && !write_junit(c.junit, NULL, 0)) return 2;
    snprintf(base, sizeof base, "%s/epctx_conformance_XXXXXX", tmp && *tmp ? tmp : "/tmp");
    now =
        (board *)mmap(NULL, sizeof *now, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (now == MAP_FAILED || !mkdtemp(base)) {
        fprintf(stderr, "epctx-conformance: %s: %s\n", base, strerror(errno));
        return 2;
    }
    if (!has_ort()) {
        remove_tree(base);
        return 2;
    }
    on_signals(stop);
    for (i = 0; experiment_at(i) && !stopped; i++)
        if (is_wanted(experiment_at(i), c.only)) try_experiment(i, base);
    remove_tree(base);
    if (stopped) {
        on_signals(SIG_DFL);
        raise(stopped);
    }
    if (c.json)
        report_json(stdout);
    else
        report_text(stdout);
    if (c.junit && !put_junit(c.junit)) return 2;
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "epctx-conformance: the report: %s\n", strerror(errno));
        return 2;
    }
    return has_failed() ? 1 : 0;
}
