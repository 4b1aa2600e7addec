/* The child process in which ONNX Runtime and the EP work, and its folders. */
#define _GNU_SOURCE
#include "anyep.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/prctl.h>
#endif

/* LOG_KEPT: of the end of what is printed, in bytes, at least. */
enum { LOG_SHOWN = 2000, LOG_KEPT = 8 << 20, LOG_BLOCK = 512 };

static bool refuse(const char *text, const char *what) {
    cli_misuse("%s%s", text, what);
    return false;
}

/* ---------------------------------------------------------------- folders */

bool anyep_folder(const char *parent, char *out, size_t size) {
    const char *tmp = getenv("TMPDIR");
    if (parent == NULL) parent = tmp != NULL && tmp[0] != '\0' ? tmp : "/tmp";
    if ((size_t)snprintf(out, size, "%s/.epctx-XXXXXX", parent) >= size)
        return refuse("the path is too long: ", parent);
    cli_signals_keep(true);
    if (mkdtemp(out) != NULL) return true;
    cli_signals_keep(false);
    cli_fail_text("%s: cannot make a temporary folder here: %s", parent, strerror(errno));
    return false;
}

void anyep_remove(const char *folder) {
    cli_remove_tree(folder);
    cli_signals_keep(false);
}

bool anyep_own_folder(const char *path) {
    cli_remove_tree(path);
    cli_signals_keep(true);
    if (mkdir(path, 0700) == 0) return true;
    cli_signals_keep(false);
    cli_fail_text("%s: cannot make a temporary folder here: %s", path, strerror(errno));
    return false;
}

bool anyep_context_path(const char *folder, const char *name, const char *model, char *out,
                        size_t size) {
    char context[EPCTX_PATH_MAX];
    const char *file;
    epctx_error error;
    if (epctx_path_context_model(epctx_str_of(model), context, sizeof context, &error) !=
        EPCTX_OK) {
        cli_fail(&error);
        return false;
    }
    file = context + epctx_path_folder(epctx_str_of(context)).size;
    if ((size_t)snprintf(out, size, "%s/%s", folder, name) >= size || mkdir(out, 0777) != 0 ||
        (size_t)snprintf(out, size, "%s/%s/%s", folder, name, file) >= size)
        return refuse("cannot make a folder in ", folder);
    return true;
}

/* ---------------------------------------------------------------- the child */

static void log_path(const anyep_job *job, char *out, size_t size) {
    snprintf(out, size, "%s/log", job->folder);
}

/* What anybody in the child prints goes into the log; ends with it. */
static void begin_child(const anyep_job *job, pid_t parent) {
    /* What ends a process, whoever has caught it so far. */
    static const int usual[] = {SIGALRM, SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGABRT};
    const struct rlimit no_core = {0, 0};
    char path[PATH_MAX];
    size_t i;
    int log, nothing;
    setpgid(0, 0); /* the EP may have children of its own: they end with it */
#if defined(__linux__)
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
#endif
    (void)parent;
    cli_signals_forget();
    for (i = 0; i < sizeof usual / sizeof usual[0]; i++) signal(usual[i], SIG_DFL);
    log_path(job, path, sizeof path);
    log = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
    if (log < 0) log = open("/dev/null", O_WRONLY | O_CLOEXEC);
    setrlimit(RLIMIT_CORE, &no_core);
    nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (nothing >= 0) dup2(nothing, STDIN_FILENO);
    if (log < 0 || dup2(log, STDOUT_FILENO) < 0 || dup2(log, STDERR_FILENO) < 0) _exit(1);
}

/* An EP may print without end: of a long log only the end stays on the disk. */
static void cut_log(const anyep_job *job) {
#if defined(__linux__)
    char path[PATH_MAX];
    struct stat st;
    int log;
    log_path(job, path, sizeof path);
    if (stat(path, &st) != 0 || st.st_blocks < 2 * LOG_KEPT / LOG_BLOCK) return;
    log = open(path, O_WRONLY | O_CLOEXEC);
    if (log < 0) return;
    /* A file system without holes keeps all of it. */
    (void)!fallocate(log, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, st.st_size - LOG_KEPT);
    close(log);
#else
    (void)job;
#endif
}

/* False: it took too long, or the tool has to end. */
static bool wait_for(pid_t child, const anyep_job *job, const anyep_board *board, int *status) {
    const double start = cli_now();
    pid_t ended = 0;
    useconds_t pause = 500;
    while (ended == 0 && !cli_signals_waiting() &&
           cli_now() - start < job->set->time_limit * 1000) {
        ended = waitpid(child, status, WNOHANG);
        if (ended == 0) usleep(pause);
        if (pause < 20000) pause += pause / 4;
        if (job->count > 1) cli_progress_set(board->compiled);
        cut_log(job);
    }
    kill(-child, SIGKILL); /* it and what it left behind */
    if (ended == 0) {
        kill(child, SIGKILL);
        waitpid(child, status, 0);
    }
    return ended == child;
}

/* Texts of the child: it may have been overwritten by anything. */
static void end_texts(anyep_board *board) {
    size_t i;
#define END(text) (text)[sizeof(text) - 1] = '\0'
    END(board->doing), END(board->text), END(board->ort_version), END(board->ort_path);
    END(board->libraries);
    for (i = 0; i < ANYEP_MOST_EPS; i++) {
        anyep_used *used = &board->eps[i];
        END(used->ep), END(used->vendor), END(used->version), END(used->device);
        END(used->driver);
    }
    for (i = 0; i < ANYEP_MOST_DEVICES; i++) END(board->inside[i]);
    for (i = 0; i < ANYEP_MOST_DEVICES; i++) {
        anyep_device *d = &board->devices[i];
        END(d->ep), END(d->vendor), END(d->version), END(d->type), END(d->hardware_vendor);
        END(d->metadata), END(d->options), END(d->hardware), END(d->problem);
    }
    for (i = 0; i < sizeof board->verdicts / sizeof board->verdicts[0]; i++)
        END(board->verdicts[i].text);
    for (i = 0; i < ANYEP_MOST_WARNINGS; i++) END(board->warnings[i]);
#undef END
    if (board->device_count > ANYEP_MOST_DEVICES) board->device_count = ANYEP_MOST_DEVICES;
    if (board->warning_count > ANYEP_MOST_WARNINGS) board->warning_count = ANYEP_MOST_WARNINGS;
    if (board->inside_count > ANYEP_MOST_DEVICES) board->inside_count = ANYEP_MOST_DEVICES;
    if (board->ep_count > ANYEP_MOST_EPS) board->ep_count = ANYEP_MOST_EPS;
    if (board->compiled > ANYEP_MOST_MODELS) board->compiled = ANYEP_MOST_MODELS;
}

static void put_words(const anyep_job *job, anyep_result *out) {
    const anyep_board *board = out->board;
    char *to = out->words;
    const size_t size = sizeof out->words;
    switch (out->end) {
    case ANYEP_OK: to[0] = '\0'; break;
    case ANYEP_REFUSED:
        if (board->code != 0)
            snprintf(to, size, "%s: error %d: %s", board->doing, board->code, board->text);
        else
            snprintf(to, size, "%s: %s", board->doing, board->text);
        break;
    case ANYEP_CRASHED:
        snprintf(to, size, "%s: the process was ended by signal %d (%s) after %.1f s", board->doing,
                 out->number, strsignal(out->number), out->seconds);
        break;
    case ANYEP_EXITED:
        snprintf(to, size, "%s: the process was ended with exit code %d after %.1f s, by a library",
                 board->doing, out->number, out->seconds);
        break;
    case ANYEP_HUNG:
        snprintf(to, size, "%s: no end after %.0f s, the process was killed%s", board->doing,
                 out->seconds, job->work == ANYEP_CALL ? "" : " (--timeout sets the limit)");
        break;
    case ANYEP_STOPPED: snprintf(to, size, "%s: stopped by a signal", board->doing); break;
    case ANYEP_NO_CHILD:
        snprintf(to, size, "no process for %s: %s",
                 job->work == ANYEP_CALL ? "a library" : "ONNX Runtime", strerror(errno));
    }
}

static void judge_end(anyep_result *out, bool ended, int status) {
    if (!ended) {
        out->end = cli_signals_waiting() ? ANYEP_STOPPED : ANYEP_HUNG;
    } else if (WIFSIGNALED(status)) {
        out->end = ANYEP_CRASHED;
        out->number = WTERMSIG(status);
    } else if (!out->board->returned) {
        out->end = ANYEP_EXITED;
        out->number = WEXITSTATUS(status);
    } else {
        out->end = out->board->ok ? ANYEP_OK : ANYEP_REFUSED;
    }
}

void *anyep_share(size_t size) {
    void *memory =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory != MAP_FAILED ? memory : NULL;
}

void anyep_unshare(void *memory, size_t size) {
    munmap(memory, size);
}

/* What is done but for EXEC; ends the child. */
static void work_in_child(const anyep_job *job, anyep_board *board) {
    if (job->work == ANYEP_CALL) {
        board->ok = job->call_fn(job->user, board);
        board->returned = true;
    } else {
#if !defined(EPCTX_CLI_NO_ORT)
        anyep_child(job, board);
#endif
    }
    fflush(NULL);
    _exit(0); /* without the end of libraries, where some EPs crash: the work is done */
}

void anyep_do(const anyep_job *job, anyep_result *out) {
    const pid_t parent = getpid();
    const double start = cli_now();
    int status = 0;
    bool ended;
    pid_t child = -1;
    memset(out, 0, sizeof *out);
    out->end = ANYEP_NO_CHILD;
    out->board = (anyep_board *)anyep_share(sizeof *out->board);
    if (out->board != NULL) {
        snprintf(out->board->doing, sizeof out->board->doing, "beginning");
        fflush(NULL);
        child = fork();
    }
    if (child == 0) {
        begin_child(job, parent);
        setvbuf(stderr, NULL, _IONBF, 0); /* what an EP says before it dies is not lost */
        if (job->work == ANYEP_EXEC) {
            execv(job->words[0], (char *const *)(uintptr_t)job->words);
            _exit(127);
        }
        work_in_child(job, out->board);
    }
    if (child > 0) {
        setpgid(child, child); /* either of the two is first */
        ended = wait_for(child, job, out->board, &status);
        out->seconds = (cli_now() - start) / 1000;
        end_texts(out->board);
        judge_end(out, ended, status);
    }
    put_words(job, out);
}

void anyep_free(anyep_result *result) {
    if (result->board != NULL) anyep_unshare(result->board, sizeof *result->board);
    result->board = NULL;
}

/* The last `most` bytes of the log, from the beginning of a line. */
static void print_log(const anyep_job *job, long most) {
    char path[PATH_MAX], line[1024];
    FILE *in;
    long size;
    log_path(job, path, sizeof path);
    in = fopen(path, "r");
    if (in == NULL) return;
    if (fseek(in, 0, SEEK_END) == 0 && (size = ftell(in)) > most &&
        fseek(in, size - most, SEEK_SET) == 0 && fgets(line, sizeof line, in) != NULL)
        fputs("  | ...\n", stderr);
    else
        rewind(in);
    while (fgets(line, sizeof line, in) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        fputs("  | ", stderr);
        cli_put(stderr, epctx_str_of(line));
        fputc('\n', stderr);
    }
    fclose(in);
}

void anyep_tell(const anyep_job *job, const anyep_result *result, const char *what) {
    cli_progress_hide();
    cli_fail_text("%s: %s", what, result->words);
    if (result->end != ANYEP_STOPPED) print_log(job, job->set->verbose ? LOG_KEPT : LOG_SHOWN);
}

void anyep_print_log(const anyep_job *job) {
    print_log(job, LOG_KEPT);
}

/* Calls line_fn with each line of the last 2000 bytes of the log, until it returns true. */
static bool find_in_log(const anyep_job *job, bool (*line_fn)(const char *line, void *user),
                        void *user) {
    char path[PATH_MAX], line[1024];
    bool found = false;
    FILE *in;
    log_path(job, path, sizeof path);
    in = fopen(path, "r");
    if (in == NULL) return false;
    if (fseek(in, -(long)LOG_SHOWN, SEEK_END) != 0) rewind(in);
    while (!found && fgets(line, sizeof line, in) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        found = line_fn(line, user);
    }
    fclose(in);
    return found;
}

typedef struct last_line {
    char *text;
    size_t size;
} last_line;

static bool keep_line(const char *line, void *user) {
    const last_line *last = (const last_line *)user;
    if (line[0] != '\0') snprintf(last->text, last->size, "%s", line);
    return false; /* the next one may be there, too */
}

bool anyep_last_words(const anyep_job *job, char *out, size_t size) {
    last_line last = {out, size};
    out[0] = '\0';
    find_in_log(job, keep_line, &last);
    return out[0] != '\0';
}

static bool is_about_platform(const char *line, void *user) {
    (void)user;
    return strstr(line, "supported on this platform") != NULL;
}

bool anyep_needs_device(const anyep_job *job, const anyep_result *result) {
    if (result->board == NULL || result->end == ANYEP_OK) return false;
    return result->board->eps[0].is_virtual || is_about_platform(result->words, NULL) ||
           find_in_log(job, is_about_platform, NULL);
}

/* `used` without a name: ONNX Runtime's CPU EP alone. */
static void print_one_ep(const anyep_board *board, const anyep_used *used) {
    const bool cpu = used->ep[0] == '\0';
    printf("%-14s ", "EP");
    cli_put(stdout, epctx_str_of(cpu ? "CPUExecutionProvider" : used->ep));
    if (!cpu && used->device[0] != '\0') {
        putchar(' ');
        cli_put(stdout, epctx_str_of(used->version));
        fputs(" (", stdout);
        cli_put(stdout, epctx_str_of(used->vendor));
        printf("), %s%s", used->is_virtual ? "virtual " : "", used->device);
    }
    fputs(!cpu && used->device[0] == '\0' ? " inside ONNX Runtime " : ", ONNX Runtime ", stdout);
    cli_put(stdout, epctx_str_of(board->ort_version));
    putchar('\n');
}

void anyep_print_ep(const anyep_board *board) {
    size_t i;
    print_one_ep(board, &board->eps[0]);
    for (i = 1; i < board->ep_count; i++) print_one_ep(board, &board->eps[i]);
}

const char *anyep_eps_word(const anyep_board *board) {
    return board->ep_count > 1 ? "the EPs" : "the EP";
}

static void json_one_ep(json_writer *w, const anyep_used *used) {
    const bool cpu = used->ep[0] == '\0';
    json_text(w, "ep", cpu ? "CPUExecutionProvider" : used->ep);
    json_text(w, "ep_version", used->version);
    json_text(w, "ep_vendor", used->vendor);
    json_text(w, "device", cpu ? "cpu" : used->device);
    json_bool(w, "virtual", used->is_virtual);
}

void anyep_json_ep(json_writer *w, const anyep_board *board) {
    size_t i;
    json_one_ep(w, &board->eps[0]);
    json_text(w, "onnxruntime", board->ort_version);
    if (board->ep_count < 2) return;
    json_array(w, "eps", JSON_HANGING);
    for (i = 0; i < board->ep_count; i++) {
        json_object(w, NULL, JSON_INLINE);
        json_one_ep(w, &board->eps[i]);
        json_uint(w, "nodes", board->eps[i].nodes);
        json_end(w);
    }
    json_end(w);
}
