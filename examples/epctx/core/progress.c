/* Progress on a terminal. A timer draws it, so that it lives also while the work cannot report, in
 * a compiler or in a read from a slow pipe; what it draws is prepared outside of the handler. */
#define _XOPEN_SOURCE 700

#include "cli.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

enum { TICK_MS = 100, BAR = 24 };

static struct {
    bool forbidden, on;
    char what[24];
    uint64_t done, total;
    /* For the handler. */
    volatile sig_atomic_t percent; /* -1: the total is unknown */
    volatile sig_atomic_t mebibytes;
    volatile sig_atomic_t ticks;
    volatile sig_atomic_t drawn, hidden;
} state;

static size_t put(char *line, size_t at, const char *text) {
    size_t size = strlen(text);
    memcpy(line + at, text, size);
    return at + size;
}

static size_t put_number(char *line, size_t at, int number) {
    char digits[12];
    size_t first = sizeof digits;
    do {
        digits[--first] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    memcpy(line + at, digits + first, sizeof digits - first);
    return at + sizeof digits - first;
}

/* A signal handler: nothing but write(2) and what is above. */
static void draw(int signal) {
    char line[160];
    size_t at = put(line, 0, "\repctx: ");
    int saved = errno;
    int percent = (int)state.percent, i;
    (void)signal;
    state.ticks++;
    if (state.hidden) return;
    at = put(line, at, state.what);
    if (percent >= 0) {
        at = put(line, at, " [");
        for (i = 0; i < BAR; i++) line[at++] = i * 100 < percent * BAR ? '#' : '.';
        at = put(line, at, "] ");
        at = put_number(line, at, percent);
        at = put(line, at, " %");
    } else if (state.mebibytes > 0) {
        at = put(line, at, ", ");
        at = put_number(line, at, (int)state.mebibytes);
        at = put(line, at, " MiB");
    }
    at = put(line, at, ", ");
    at = put_number(line, at, 1 + (int)state.ticks * TICK_MS / 1000);
    at = put(line, at, " s\033[K");
    if (write(STDERR_FILENO, line, at) > 0) state.drawn = 1;
    errno = saved;
}

static void erase(void) {
    if (state.drawn && write(STDERR_FILENO, "\r\033[K", 4) < 0) state.forbidden = true;
    state.drawn = 0;
}

static void tick(long first_ms, long then_ms) {
    struct itimerval timer;
    timer.it_value.tv_sec = first_ms / 1000;
    timer.it_value.tv_usec = first_ms % 1000 * 1000;
    timer.it_interval.tv_sec = then_ms / 1000;
    timer.it_interval.tv_usec = then_ms % 1000 * 1000;
    setitimer(ITIMER_REAL, &timer, NULL);
}

static bool wanted(void) {
    const char *term = getenv("TERM");
    return !state.forbidden && isatty(STDERR_FILENO) && (term == NULL || strcmp(term, "dumb") != 0);
}

void cli_progress_begin(const char *what, uint64_t total) {
    struct sigaction action;
    cli_progress_end();
    if (!wanted()) return;
    state.done = 0;
    state.total = total;
    state.percent = total > 0 ? 0 : -1;
    state.mebibytes = state.ticks = state.drawn = state.hidden = 0;
    state.what[0] = '\0';
    strncat(state.what, what, sizeof state.what - 1);
    memset(&action, 0, sizeof action);
    action.sa_handler = draw;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    state.on = sigaction(SIGALRM, &action, NULL) == 0;
    if (state.on) tick(1000, TICK_MS);
}

void cli_progress_set(uint64_t done) {
    uint64_t percent;
    if (!state.on) return;
    state.done = done;
    state.hidden = 0;
    if (state.total == 0) {
        state.mebibytes = (sig_atomic_t)(done >> 20 & 0x7fffffff);
        return;
    }
    percent = done < state.total ? (uint64_t)((double)done * 100.0 / (double)state.total) : 100;
    state.percent = (sig_atomic_t)percent;
}

void cli_progress_add(uint64_t done) {
    if (state.on) cli_progress_set(state.done + done);
}

void cli_progress_hide(void) {
    if (!state.on) return;
    state.hidden = 1;
    erase();
}

void cli_progress_end(void) {
    if (!state.on) return;
    tick(0, 0);
    state.on = false;
    erase();
}

void cli_progress_forbid(void) {
    state.forbidden = true;
}

/* -- files -- */

uint64_t cli_file_size(const char *file) {
    const epctx_io *io = epctx_io_files();
    epctx_file_info info;
    return io->stat_fn(io->user, file, &info, NULL) == EPCTX_OK ? info.size : 0;
}
