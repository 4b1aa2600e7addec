/* Options of --ort, and the child process in which ONNX Runtime and the EP work. */
#define _GNU_SOURCE
#include "anyep.h"
#include "facts/facts.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
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

enum { LONGEST_LIMIT = 30 * 86400, LOG_SHOWN = 2000 };

/* ---------------------------------------------------------------- options */

bool anyep_asked(const anyep_settings *set) {
    return set->ort != NULL || set->ep != NULL || set->has_ep_opt || set->has_option ||
           set->device != NULL || set->timeout != NULL;
}

static bool refuse(const char *text, const char *what) {
    cli_misuse("%s%s", text, what);
    return false;
}

static char *absolute(const char *path, epctx_arena *arena) {
    char real[PATH_MAX];
    return realpath(path, real) != NULL ? epctx_arena_copy(arena, epctx_str_of(real)) : NULL;
}

/* ORT's library: its path, or a name that the system's linker finds. */
static bool read_ort(anyep_settings *set) {
    const char *real;
    if (set->ort == NULL) set->ort = getenv("EPCTX_ORT_LIBRARY");
    if (set->ort == NULL || set->ort[0] == '\0')
        return refuse("which ONNX Runtime? Give its library with --ort, e.g. --ort "
                      "/usr/lib/libonnxruntime.so.1, or in EPCTX_ORT_LIBRARY",
                      "");
    real = absolute(set->ort, set->arena);
    if (real == NULL && strchr(set->ort, '/') != NULL) {
        cli_misuse("--ort %s: %s", set->ort, strerror(errno));
        return false;
    }
    if (real != NULL) set->ort = real;
    return true;
}

/* LIBRARY[:NAME], or the name of an EP that ORT has itself. */
static bool read_ep(anyep_settings *set) {
    char *text = epctx_arena_copy(set->arena, epctx_str_of(set->ep));
    char *colon = text != NULL ? strrchr(text, ':') : NULL;
    if (text == NULL) return refuse("out of memory", "");
    set->library = absolute(text, set->arena);
    if (set->library == NULL && colon != NULL) {
        *colon = '\0';
        set->name = colon + 1;
        set->library = absolute(text, set->arena);
    }
    if (set->library != NULL && set->name != NULL && set->name[0] == '\0')
        return refuse("--ep: a name is missing behind the colon: ", set->ep);
    if (set->library != NULL) return true;
    if (strchr(text, '/') != NULL || strstr(text, ".so") != NULL || colon != NULL) {
        cli_misuse("--ep %s: %s", text, strerror(ENOENT));
        return false;
    }
    set->name = text;
    return true;
}

bool anyep_add(anyep_settings *set, const char ***list, const char *key, const char *value) {
    const char **more;
    size_t count = 0;
    for (; *list != NULL && (*list)[count] != NULL; count += 2) {
        if (strcmp((*list)[count], key) != 0) continue;
        return strcmp((*list)[count + 1], value) == 0 ||
               refuse("a command-line option contradicts this one: ", key);
    }
    more = (const char **)epctx_arena_array(set->arena, count + 3, sizeof *more);
    if (more == NULL) return refuse("out of memory", "");
    if (count > 0) memcpy(more, *list, count * sizeof *more);
    more[count] = key;
    more[count + 1] = value;
    more[count + 2] = NULL;
    *list = more;
    return true;
}

bool anyep_is_option(const char *option, const char *key) {
    cli_guess guess = cli_guess_of(epctx_str_of(key));
    size_t at = 0;
    const fact *f;
    while ((f = facts_next("option", &at)) != NULL) {
        if (strcmp(f->name, key) == 0) return true;
        cli_guess_word(&guess, f->name);
    }
    if (guess.best == NULL && strncmp(key, "ep.context_", 11) != 0) return true;
    cli_misuse("%s: ONNX Runtime has no session option '%s'%s", option, key,
               cli_guess_hint(&guess));
    return false;
}

/* K=V of --ep-opt and --option. */
static bool read_pairs(anyep_settings *set, const char *option, const char **given,
                       const char ***list) {
    const char *text;
    size_t i;
    for (i = 0; (text = cli_listed(given, i)) != NULL; i++) {
        char *copy = epctx_arena_copy(set->arena, epctx_str_of(text));
        char *equals = copy != NULL ? strchr(copy, '=') : NULL;
        if (equals == NULL || equals == copy) {
            cli_misuse("%s: '%s' is not KEY=VALUE", option, text);
            return false;
        }
        *equals = '\0';
        if (given == &set->ep_opt && strncmp(copy, "ep.context_", 11) == 0)
            return refuse("--ep-opt: this is an option of the session, EPs do not read it here: "
                          "use --option ",
                          text);
        if (given == &set->option && !anyep_is_option(option, copy)) return false;
        if (!anyep_add(set, list, copy, equals + 1)) return false;
    }
    return true;
}

/* "INPUT[AXIS]", which is cut in two; false: it has another form. */
static bool read_place(anyep_settings *set, char *text, int64_t value) {
    char *bracket = strrchr(text, '['), *end = NULL;
    const size_t size = strlen(text);
    unsigned long axis;
    if (bracket == NULL || bracket == text || text[size - 1] != ']' || bracket[1] < '0' ||
        bracket[1] > '9' || set->place_count == ANYEP_MOST_DIMS)
        return false;
    axis = strtoul(bracket + 1, &end, 10);
    if (end != text + size - 1 || axis > 63) return false;
    *bracket = '\0';
    set->places[set->place_count].input = text;
    set->places[set->place_count].axis = (uint32_t)axis;
    set->places[set->place_count++].value = value;
    return true;
}

static bool read_dims(anyep_settings *set) {
    const char *text;
    size_t i;
    for (i = 0; set->dim_list != NULL && (text = cli_listed(set->dim_list, i)) != NULL; i++) {
        char *copy = epctx_arena_copy(set->arena, epctx_str_of(text));
        char *rest = NULL, *part = copy != NULL ? strtok_r(copy, ",", &rest) : NULL;
        for (; part != NULL; part = strtok_r(NULL, ",", &rest)) {
            char *equals = strrchr(part, '=');
            uint64_t value;
            if (equals == NULL || equals == part)
                return refuse("--dim: this is not NAME=VALUE: ", part);
            if (set->dim_count == ANYEP_MOST_DIMS || equals - part > 63)
                return refuse("--dim: too many dimensions, or too long a name: ", part);
            if (!cli_number("--dim", equals + 1, 1, INT32_MAX, &value)) return false;
            *equals = '\0';
            if (read_place(set, part, (int64_t)value)) continue;
            set->dim_names[set->dim_count] = part;
            set->dim_values[set->dim_count++] = (int64_t)value;
        }
    }
    return true;
}

static bool has_dim(const char *file, const char *name) {
    epctx_model model;
    epctx_error error;
    epctx_value_view value;
    epctx_cursor it, dims;
    epctx_dim dim;
    bool found = cli_open(&model, file, &error) != EPCTX_OK;
    if (!found) {
        it = epctx_graph_inputs(epctx_model_graph(&model));
        while (!found && epctx_next_value(&it, &value)) {
            dims = epctx_value_dims(&value);
            while (!found && epctx_next_dim(&dims, &dim))
                found = !dim.known && epctx_str_is(dim.param, name);
        }
    }
    epctx_model_close(&model);
    return found;
}

bool anyep_check_dims(const anyep_settings *set, const char *const *models, size_t count) {
    size_t i, k;
    for (i = 0; i < set->dim_count; i++) {
        for (k = 0; k < count && !has_dim(models[k], set->dim_names[i]); k++) continue;
        if (k < count) continue;
        cli_misuse("--dim: no input%s has a dimension '%s'", count > 1 ? " of the models" : "",
                   set->dim_names[i]);
        return false;
    }
    return true;
}

bool anyep_read(anyep_settings *set, epctx_arena *arena, bool needs_ep, unsigned limit) {
    static const char *const types[] = {"cpu", "gpu", "npu", NULL}; /* OrtHardwareDeviceType */
    uint64_t seconds = limit;
    size_t type;
    set->arena = arena;
#if !defined(EPCTX_CLI_ORT)
    return refuse(
        "this build of epctx cannot use ONNX Runtime: it was made without ONNX Runtime's C "
        "headers; build it again after `make deps-plugin`, or with ORT_INCLUDE=FOLDER",
        "");
#endif
    if (!read_ort(set)) return false;
    if (set->ep == NULL && needs_ep)
        return refuse("which EP? Give its plugin library with --ep LIBRARY[:NAME]", "");
    if (set->ep == NULL && (set->has_ep_opt || set->device != NULL))
        return refuse("--ep-opt and --device are for an EP: give it with --ep LIBRARY[:NAME]", "");
    set->device_type = -1;
    if (set->device != NULL) {
        if (!cli_choose("--device", set->device, types, &type)) return false;
        set->device_type = (int)type;
    }
    if (set->timeout != NULL && !cli_number("--timeout", set->timeout, 1, LONGEST_LIMIT, &seconds))
        return false;
    set->time_limit = (double)seconds;
    return (set->ep == NULL || read_ep(set)) &&
           read_pairs(set, "--ep-opt", &set->ep_opt, &set->ep_options) &&
           read_pairs(set, "--option", &set->option, &set->session) && read_dims(set);
}

/* ---------------------------------------------------------------- folders */

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *ftw) {
    (void)st, (void)ftw;
    if (kind == FTW_DNR || kind == FTW_D || kind == FTW_DP) chmod(path, 0700);
    return remove(path) != 0 && kind == FTW_D;
}

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
    nftw(folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    cli_signals_keep(false);
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
    END(board->doing), END(board->text), END(board->ort_version), END(board->ep);
    END(board->vendor), END(board->version), END(board->device);
    for (i = 0; i < ANYEP_MOST_DEVICES; i++) {
        anyep_device *d = &board->devices[i];
        END(d->ep), END(d->vendor), END(d->version), END(d->type), END(d->hardware_vendor);
        END(d->metadata), END(d->options), END(d->hardware), END(d->problem);
    }
    for (i = 0; i < sizeof board->verdicts / sizeof board->verdicts[0]; i++)
        END(board->verdicts[i].text);
#undef END
    if (board->device_count > ANYEP_MOST_DEVICES) board->device_count = ANYEP_MOST_DEVICES;
    if (board->compiled > ANYEP_MOST_MODELS) board->compiled = ANYEP_MOST_MODELS;
}

static void put_words(anyep_result *out) {
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
        snprintf(to, size,
                 "%s: no end after %.0f s, the process was killed (--timeout sets the limit)",
                 board->doing, out->seconds);
        break;
    case ANYEP_STOPPED: snprintf(to, size, "%s: stopped by a signal", board->doing); break;
    case ANYEP_NO_CHILD: snprintf(to, size, "no process for ONNX Runtime: %s", strerror(errno));
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

void anyep_do(const anyep_job *job, anyep_result *out) {
    const pid_t parent = getpid();
    const double start = cli_now();
    int status = 0;
    bool ended;
    pid_t child = -1;
    memset(out, 0, sizeof *out);
    out->end = ANYEP_NO_CHILD;
    out->board = (anyep_board *)mmap(NULL, sizeof *out->board, PROT_READ | PROT_WRITE,
                                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (out->board == MAP_FAILED) out->board = NULL;
    if (out->board != NULL) {
        snprintf(out->board->doing, sizeof out->board->doing, "beginning");
        fflush(NULL);
        child = fork();
    }
    if (child == 0) {
        begin_child(job, parent);
#if defined(EPCTX_CLI_ORT)
        anyep_child(job, out->board);
#endif
        fflush(NULL);
        _exit(0); /* without the end of libraries, where some EPs crash: the work is done */
    }
    if (child > 0) {
        setpgid(child, child); /* either of the two is first */
        ended = wait_for(child, job, out->board, &status);
        out->seconds = (cli_now() - start) / 1000;
        end_texts(out->board);
        judge_end(out, ended, status);
    }
    put_words(out);
}

void anyep_free(anyep_result *result) {
    if (result->board != NULL) munmap(result->board, sizeof *result->board);
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
    if (result->end != ANYEP_STOPPED) print_log(job, job->set->verbose ? LONG_MAX : LOG_SHOWN);
}

void anyep_print_log(const anyep_job *job) {
    print_log(job, LONG_MAX);
}

void anyep_print_ep(const anyep_board *board) {
    const bool cpu = board->ep[0] == '\0';
    printf("%-14s ", "EP");
    cli_put(stdout, epctx_str_of(cpu ? "CPUExecutionProvider" : board->ep));
    if (!cpu) {
        putchar(' ');
        cli_put(stdout, epctx_str_of(board->version));
        fputs(" (", stdout);
        cli_put(stdout, epctx_str_of(board->vendor));
        printf("), %s%s", board->is_virtual ? "virtual " : "", board->device);
    }
    fputs(", ONNX Runtime ", stdout);
    cli_put(stdout, epctx_str_of(board->ort_version));
    putchar('\n');
}

void anyep_json_ep(const anyep_board *board) {
    const bool cpu = board->ep[0] == '\0';
    cli_json_str("ep", epctx_str_of(cpu ? "CPUExecutionProvider" : board->ep), ",\n");
    cli_json_str("ep_version", epctx_str_of(board->version), ",\n");
    cli_json_str("ep_vendor", epctx_str_of(board->vendor), ",\n");
    cli_json_str("device", epctx_str_of(cpu ? "cpu" : board->device), ",\n");
    printf("\"virtual\": %s,\n", board->is_virtual ? "true" : "false");
    cli_json_str("onnxruntime", epctx_str_of(board->ort_version), ",\n");
}
