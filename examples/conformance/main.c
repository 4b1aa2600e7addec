/* main.c - epctx-conformance: the command line, and a process for each experiment. */
#define _GNU_SOURCE
#include "conformance.h"

#include "ort/ep_library.h"
#include "ort/places.h"

#include <errno.h>
#include <fcntl.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TIME_LIMIT = 120, LONGEST_LIMIT = 86400 };          /* seconds: slow compilers are no hang */
enum { SOME_FAILED = 1, NO_RUN = 2, SOME_NOT_JUDGED = 4 }; /* exit codes; 4 is check's, too */
enum { LOG_SHOWN = 2000, LOG_MOST = 1 << 24 };

static const experiment *const all[] = {
    factory_experiments,    registration_experiments, session_experiments, identity_experiments,
    context_experiments,    loading_experiments,      damage_experiments,  buffer_experiments,
    weightless_experiments, sharing_experiments,      model_experiments};

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

/* Why the EP shows no device; NULL: it does. Another machine may have one. */
static const char *missing_device(const trial *t, unsigned needs) {
    if (!(needs & NEEDS_DEVICE) || t->board->ep.device) return NULL;
    if (*t->board->ep.no_device) return t->board->ep.no_device;
    return t->board->hung ? "the EP could not be opened: it hung" : "the EP could not be opened";
}

static const char unprobed[] = "the probe, which asks what the EP claims, failed";

/* Nothing to try it with: what it does with models is not known. */
static const char *missing_claim(const trial *t, unsigned needs) {
    if (!(needs & NEEDS_CLAIM) || claims_any(&t->board->ep)) return NULL;
    if (!t->board->probed) return unprobed;
    return t->board->ep.no_claim;
}

static const char *missing_callback(const ep_facts *ep, unsigned needs) {
    const bool reads = (needs & NEEDS_READS) && !ep->reads;
    if (!reads && (!(needs & NEEDS_WRITES) || ep->writes)) return NULL;
    if (*ep->no_callbacks) return ep->no_callbacks;
    return reads ? "the EP does not declare that it uses a read callback for context data"
                 : "the EP does not declare that it uses a write callback for context data";
}

static const char *missing_need(const trial *t, unsigned needs) {
    const ep_facts *ep = &t->board->ep;
    if ((needs & NEEDS_RUNS) && !ep->runs) return ep->no_runs;
    if ((needs & NEEDS_CONTEXTS) && !ep->contexts) return ep->no_contexts;
    if ((needs & NEEDS_FILES) && !ep->files) return "the EP writes no context binaries in files";
    if ((needs & NEEDS_EMBEDDING) && !ep->embeds) return "the EP embeds no contexts";
    if ((needs & NEEDS_PARTS) && ep->parts == 1)
        return "the EP takes one part of a model, and no other";
    if ((needs & (NEEDS_FOREIGN | NEEDS_PARTS)) && !*ep->foreign)
        return "the EP claims every operator that was tried: nothing is left to the CPU";
    if ((needs & NEEDS_SHARING) && !ep->shares) return "the EP does not share contexts";
    return missing_callback(ep, needs);
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

/* In the child: what anybody prints goes into the log, not into the report. */
static void print_into(const char *log) {
    const int to = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    const int from = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (from < 0 || dup2(from, STDIN_FILENO) < 0 || to < 0 || dup2(to, STDOUT_FILENO) < 0 ||
        dup2(to, STDERR_FILENO) < 0)
        _exit(NO_RUN);
}

/* In the child. */
static void run_experiment(trial *t, const experiment *e, const char *log) {
    const struct rlimit no_core = {0, 0};
    setpgid(0, 0); /* it may have children of its own: they end with it */
    hold_signals(SIG_UNBLOCK);
    setrlimit(RLIMIT_CORE, &no_core);
    print_into(log);
#if defined(__GLIBC__) /* who uses memory that was given back, or never written, sees it */
    mallopt(M_PERTURB, 0xa5);
#endif
    if (chdir(t->folder) != 0) _exit(3);
    make_folder("src");
    make_folder("out");
    e->run(t);
    t->board->returned = true;
    fflush(NULL);
    _exit(0); /* whether an orderly end works is an experiment of its own */
}

/* An EP that prints without end fills no disk: of the log only the end is of use. */
static void shorten(const char *log) {
    struct stat st;
    if (stat(log, &st) == 0 && st.st_size > LOG_MOST && truncate(log, 0) != 0)
        fprintf(stderr, "epctx-conformance: %s: %s\n", log, strerror(errno));
}

/* The child's wait status; false: it took too long. */
static bool wait_for(const trial *t, pid_t child, const char *log, int *status) {
    const double start = seconds_now();
    pid_t ended = 0;
    while (ended == 0 && !is_stopped() && seconds_now() - start < t->wanted.time_limit) {
        ended = waitpid(child, status, WNOHANG);
        if (ended == 0) usleep(2000);
        shorten(log);
    }
    kill(-child, SIGKILL); /* it and what it left behind */
    if (ended == 0) waitpid(child, status, 0);
    return ended == child;
}

/* An experiment did not come to its end: its last words, beside the report. */
static void print_log(const experiment *e, const char *log) {
    size_t size, at;
    uint8_t *text = read_file(log, &size);
    bool begins = true;
    if (size > 0) fprintf(stderr, "epctx-conformance: %s: the last words\n", e->name);
    for (at = size > LOG_SHOWN ? size - LOG_SHOWN : 0; at < size; at++) {
        if (begins) fputs("  | ", stderr);
        begins = text[at] == '\n';
        fputc(begins || (text[at] >= 0x20 && text[at] < 0x7f) ? text[at] : '?', stderr);
    }
    if (!begins) fputc('\n', stderr);
    free(text);
}

/* What ended an experiment before its time breaks the rule at hand; if the EP has said before that
 * this machine cannot do what it was asked, it was that. */
static void judge_break(trial *t, const experiment *e, const char *why, size_t from) {
    char text[sizeof t->board->findings[0].text];
    const char *id = *t->board->judging ? t->board->judging : e->rules;
    size_t index;
    snprintf(text, sizeof text, "%.250s: %.280s; expected a result or a status", t->board->doing,
             why);
    if (next_id(&id, &index)) put_finding(t, index, t->board->platform ? NOT_JUDGED : FAILED, text);
    t->board->blocked = t->board->probing && !t->board->platform;
    snprintf(text, sizeof text, "not reached: %s", why);
    put_rest(t, e->rules, from, NOT_JUDGED, text);
}

static bool is_opening(const board *b) {
    return b->step == step_load || b->step == step_register;
}

/* In which call the process was, as far as that is known. */
static void put_step(const board *b, char why[], size_t size) {
    const size_t length = strlen(why);
    if (b->step)
        snprintf(why + length, size - length, is_opening(b) ? " during %s" : " while %s", b->step);
}

static void judge_end(trial *t, const experiment *e, bool ended, int status, size_t from) {
    char why[400];
    if (!ended) {
        snprintf(why, sizeof why, "did not return within %g seconds", t->wanted.time_limit);
        if (is_opening(t->board) && !t->board->hung) {
            t->board->hung = t->board->step;
            t->board->hung_in = t->board->experiment;
        }
    } else if (WIFSIGNALED(status)) {
        snprintf(why, sizeof why, "the process was ended by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    } else if (WEXITSTATUS(status) != 0 || !t->board->returned) {
        snprintf(why, sizeof why, "the process ended with exit code %d", WEXITSTATUS(status));
    } else {
        t->board->probed |= t->board->probing;
        put_rest(t, e->rules, from, NOT_APPLICABLE,
                 *t->board->gave_up ? t->board->gave_up : "the experiment did not come to it");
        return;
    }
    put_step(t->board, why, sizeof why);
    judge_break(t, e, why, from);
}

/* Every experiment begins with the step that hung: one was worth the wait. "exports" only loads the
 * library. */
static bool is_hopeless(const trial *t, const experiment *e) {
    return t->board->hung && (t->board->hung == step_load || !(e->needs & ONLY_LOADS));
}

/* False: nothing is to be tried, and that was reported. */
static bool is_possible(trial *t, const experiment *e, size_t from) {
    const char *device = missing_device(t, e->needs);
    const char *nothing = device ? device : missing_claim(t, e->needs);
    const char *missing = nothing ? nothing : missing_need(t, e->needs);
    char why[200];
    if (missing && !nothing && !t->board->probed) nothing = missing = unprobed;
    t->board->blocked = nothing && t->board->blocker;
    if (missing) {
        put_rest(t, e->rules, from, nothing ? NOT_JUDGED : NOT_APPLICABLE, missing);
        return false;
    }
    if (!is_hopeless(t, e)) return true;
    snprintf(why, sizeof why, "not tried: %s hung in the experiment '%s'", t->board->hung,
             t->board->hung_in);
    judge(t, t->board->hung == step_load ? "PLG-001" : "PLG-041", false, "%s", why);
    t->board->blocked = t->board->blocker != NULL;
    put_rest(t, e->rules, from, NOT_JUDGED, why);
    return false;
}

static void begin_experiment(board *b, const experiment *e, int model) {
    b->probing = e == session_experiments; /* the first of them */
    b->experiment = e->name;
    b->model = model;
    b->returned = b->platform = b->blocked = false;
    b->registered[0] = b->judging[0] = b->gave_up[0] = '\0';
    b->sessions = 0;
    memset(&b->last, 0, sizeof b->last);
    b->last.more = "";
    b->step = b->beside = NULL;
    snprintf(b->doing, sizeof b->doing, "%s", e->name);
}

static void try_experiment(trial *t, const experiment *e, int model, const char *base) {
    const size_t from = t->board->count;
    char log[PATH_MAX + 24];
    int status = 0;
    bool ended;
    pid_t child;
    begin_experiment(t->board, e, model);
    if (!is_possible(t, e, from)) return;
    snprintf(t->folder, sizeof t->folder, "%s/work", base);
    snprintf(log, sizeof log, "%s/log", base);
    make_folder(t->folder);
    forget_sessions(t);
    fflush(NULL);
    child = fork();
    if (child == 0) run_experiment(t, e, log);
    ended = child > 0 && wait_for(t, child, log, &status);
    judge_end(t, e, ended, status, from);
    if (!t->board->returned) print_log(e, log);
    remove(log);
    remove_tree(t->folder);
    forget_sessions(t);
}

/* Each model of the user has a process, and a verdict, of its own. */
static void try_models(trial *t, const experiment *e, const char *base) {
    size_t i;
    for (i = 0; i < t->wanted.model_count && !is_stopped(); i++) try_experiment(t, e, (int)i, base);
    if (i == 0) try_experiment(t, e, NO_MODEL, base);
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

static void try_all(trial *t, const char *only, const char *base) {
    const experiment *e;
    size_t i;
    for (i = 0; (e = experiment_at(i)) != NULL && !is_stopped(); i++) {
        if (!is_wanted(e, only)) continue;
        if (e->needs & EACH_MODEL)
            try_models(t, e, base);
        else
            try_experiment(t, e, NO_MODEL, base);
    }
}

/* ------------------------------------------------------------- command line */

static void usage(void) {
    fputs(
        "usage: epctx-conformance LIBRARY[:NAME] [--ep-opt KEY=VALUE]... [--model FILE]...\n"
        "                         [--json] [--junit FILE] [--badge FILE] [--keep FOLDER]\n"
        "                         [--ort LIBRARY] [--only RULES] [--timeout SECONDS]\n"
        "                         [--tolerance PART]\n"
        "       epctx-conformance --rules\n"
        "Tries the plugin EP in LIBRARY in ONNX Runtime, by the rules of its documents. NAME, "
        "also\n"
        "as a word of its own: which EP, if there are several, and what applications register the\n"
        "library as, unless that is known. Exit code 0: no rule failed, 1: some did, 2: wrong\n"
        "command line, or no ONNX Runtime, 4: none failed, but some could not be judged here.\n",
        stderr);
}

/* Reports that go into files. */
typedef void (*report_fn)(const trial *t, FILE *out);
static const struct {
    const char *option;
    report_fn put;
} files[] = {{"--junit", report_junit}, {"--badge", report_badge}};
enum { FILES = sizeof files / sizeof files[0] };

typedef struct command {
    bool json;
    const char *files[FILES], *only;
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

static bool read_tolerance(trial *t, const char *text) {
    char *end = NULL;
    t->wanted.tolerance = strtod(text, &end);
    if (end != text && !*end && t->wanted.tolerance > 0 && t->wanted.tolerance < 1) return true;
    return refuse(text, "expected --tolerance PART of an output's largest number, more than 0 and "
                        "less than 1");
}

static bool read_model(trial *t, const char *path) {
    char why[80];
    if (t->wanted.model_count == MAX_MODELS) {
        snprintf(why, sizeof why, "more than %d --model", MAX_MODELS);
        return refuse(path, why);
    }
    t->wanted.words[t->wanted.model_count] = path;
    t->wanted.models[t->wanted.model_count] = realpath(path, NULL);
    return t->wanted.models[t->wanted.model_count++] || refuse(path, strerror(errno));
}

static bool read_library(trial *t, const char *word, epctx_arena *arena) {
    ep_library ep;
    if (!ep_library_read(word, arena, &ep)) return refuse(word, "out of memory");
    if (!ep.path) return refuse(ep.text, strerror(ENOENT));
    if (ep.name && !*ep.name) return refuse(word, "a name is missing behind the colon");
    t->wanted.library = ep.path;
    t->wanted.name = ep.name;
    t->wanted.registration = ep.registration;
    return true;
}

static bool read_argument(trial *t, const char *name, char *value, command *c) {
    size_t i;
    if (!value) return refuse(name, "a value is missing, or there is no such option");
    if (strcmp(name, "--timeout") == 0) return read_timeout(t, value);
    if (strcmp(name, "--tolerance") == 0) return read_tolerance(t, value);
    if (strcmp(name, "--model") == 0) return read_model(t, value);
    if (strcmp(name, "--ep-opt") == 0)
        return ort_read_option(value, &t->wanted.options) || refuse(value, ort_text);
    for (i = 0; i < FILES; i++)
        if (strcmp(name, files[i].option) == 0) return (c->files[i] = value) != NULL;
    if (strcmp(name, "--keep") == 0) return (t->wanted.keep = value) != NULL;
    if (strcmp(name, "--only") == 0) return (c->only = value) != NULL;
    if (strcmp(name, "--ort") == 0) return setenv("EPCTX_ORT_LIBRARY", value, 1) == 0;
    return refuse(name, "no such option");
}

static bool read_command(trial *t, int argc, char **argv, command *c, epctx_arena *arena) {
    int i;
    for (i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            c->json = true;
        } else if (strncmp(argv[i], "--", 2) == 0) {
            if (!read_argument(t, argv[i], argv[i + 1], c)) return false; /* argv ends with NULL */
            i++;
        } else if (!t->wanted.library) {
            if (!read_library(t, argv[i], arena)) return false;
        } else if (!t->wanted.name) {
            t->wanted.name = t->wanted.registration = argv[i];
        } else {
            return refuse(argv[i], "one word too many");
        }
    }
    return t->wanted.library || refuse("LIBRARY", "which plugin?");
}

/* ORT as it is named, in the source tree what was fetched for it, and elsewhere the newest one of
 * that. */
static bool find_ort(char *out, size_t size) {
    char cache[PATH_MAX], why[PATH_MAX + 200];
    ort_cached list[ORT_MOST_CACHED + 1];
    const bool has_cache = ort_places_cache(cache, sizeof cache);
    if (ort_library(out, size)) return true;
    if (has_cache && ort_places_cached(cache, list) > 0)
        return (size_t)snprintf(out, size, "%s/%s", cache, list[0].name) < size;
    snprintf(why, sizeof why,
             "EPCTX_ORT_LIBRARY is not set, and there is none in %s; name it with --ort FOLDER or "
             "--ort LIBRARY, or tests/deps.sh demo fetches it",
             has_cache ? cache : "the folder of EPCTX_CACHE, which is not set");
    return refuse("no ONNX Runtime found", why);
}

/* Without ORT nothing can be said about the EP. */
static bool has_ort(const trial *t) {
    char path[PATH_MAX], inside[2 * PATH_MAX], real[PATH_MAX], why[80];
    const char *given = path;
    struct stat there;
    int status = 0;
    pid_t child;
    if (!find_ort(path, sizeof path)) return false;
    if (stat(path, &there) == 0 && S_ISDIR(there.st_mode)) {
        if (!ort_places_find(path, inside, sizeof inside))
            return refuse(path, "it holds no " ORT_PLACES);
        given = inside;
    }
    /* The experiments have a current folder of their own. */
    if (realpath(given, real)) setenv("EPCTX_ORT_LIBRARY", real, 1);
    fflush(NULL);
    child = fork();
    if (child == 0) {
        const bool ok = setpgid(0, 0) == 0 && ort_open(false) && ort_version >= 24;
        if (!ok) {
            fprintf(stderr, "epctx-conformance: %s\n",
                    *ort_text ? ort_text : "needs ONNX Runtime 1.24 or newer");
        }
        fflush(NULL);
        _exit(ok ? 0 : 2);
    }
    if (child > 0 && wait_for(t, child, "", &status)) return status == 0;
    snprintf(why, sizeof why, "it did not load within %g seconds", t->wanted.time_limit);
    return !is_stopped() && refuse(given, why);
}

/* What stands there stays until the report is complete. Only tries, without `data`: a run is too
 * long to find out at its end that nothing can be written. */
static bool write_report(const char *option, const char *path, const char *data, size_t size) {
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
    return status == EPCTX_OK || refuse(option, error.message);
}

static bool put_file(const trial *t, size_t which, const char *path) {
    char *data = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&data, &size);
    bool ok = out != NULL;
    if (out) files[which].put(t, out);
    ok = out && fclose(out) == 0 && write_report(files[which].option, path, data, size);
    free(data);
    return ok;
}

/* Of a rule, or of a model. */
static bool is_any(const trial *t, verdict v) {
    size_t i;
    for (i = 0; i < rule_count; i++)
        if (outcome_of(t, i).verdict == v) return true;
    for (i = 0; i < t->wanted.model_count; i++)
        if (verdict_of_model(t, i) == v) return true;
    return false;
}

/* Prints the reports. */
static int report(const trial *t, const command *c) {
    size_t i;
    if (c->json)
        report_json(t, stdout);
    else
        report_text(t, stdout);
    for (i = 0; i < FILES; i++)
        if (c->files[i] && !put_file(t, i, c->files[i])) return NO_RUN;
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "epctx-conformance: the report: %s\n", strerror(errno));
        return NO_RUN;
    }
    if (is_any(t, FAILED)) return SOME_FAILED;
    return is_any(t, NOT_JUDGED) ? SOME_NOT_JUDGED : 0;
}

/* A folder that is there already may hold another run's. */
static bool open_keep(trial *t) {
    char *real;
    if (!t->wanted.keep) return true;
    if (mkdir(t->wanted.keep, 0777) != 0 || !(real = realpath(t->wanted.keep, NULL)))
        return refuse(t->wanted.keep, strerror(errno));
    t->wanted.keep = real;
    t->seen = note_session;
    t->done = note_end;
    t->ran = note_run;
    t->failed = keep_failure;
    return true;
}

/* Tries what was asked for, in a folder of its own. */
static int try_and_report(trial *t, const command *c) {
    const char *tmp = getenv("TMPDIR");
    char base[PATH_MAX];
    bool found;
    snprintf(base, sizeof base, "%s/epctx_conformance_XXXXXX", tmp && *tmp ? tmp : "/tmp");
    t->board = (board *)mmap(NULL, sizeof *t->board, PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    hold_signals(SIG_BLOCK); /* before there is anything to leave behind */
    if (t->board == MAP_FAILED || !mkdtemp(base)) {
        fprintf(stderr, "epctx-conformance: %s: %s\n", base, strerror(errno));
        return NO_RUN;
    }
    found = has_ort(t);
    if (found) try_all(t, c->only, base);
    remove_tree(base);
    hold_signals(SIG_UNBLOCK); /* the end, if one of them waits */
    return found ? report(t, c) : NO_RUN;
}

static bool can_write(const command *c) {
    size_t i;
    for (i = 0; i < FILES; i++)
        if (c->files[i] && !write_report(files[i].option, c->files[i], NULL, 0)) return false;
    return true;
}

int main(int argc, char **argv) {
    const char *ids;
    epctx_arena arena;
    command c;
    trial t;
    size_t i;
    int code = NO_RUN;
    memset(&c, 0, sizeof c);
    memset(&t, 0, sizeof t);
    t.wanted.time_limit = TIME_LIMIT;
    if (argc == 2 && strcmp(argv[1], "--rules") == 0) {
        report_rules(stdout);
        return 0;
    }
    epctx_arena_init(&arena, NULL);
    if (!read_command(&t, argc, argv, &c, &arena)) {
        usage();
    } else {
        for (ids = c.only; ids && next_id(&ids, &i);) {
        }
        if (can_write(&c) && open_keep(&t)) code = try_and_report(&t, &c);
    }
    epctx_arena_free(&arena);
    return code;
}
