/* The tool's io: the library's, with progress, and with nothing unfinished left behind when a signal
 * ends the tool. */
#define _XOPEN_SOURCE 700

#include "cli.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const int endings[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
enum { ENDINGS = sizeof endings / sizeof endings[0] };

static struct {
    epctx_open_files open;       /* what has a name that has to go */
    char lock[EPCTX_PATH_MAX];   /* is being taken; "" none */
    volatile sig_atomic_t late;   /* names change: an ending signal has to wait */
    volatile sig_atomic_t kept;   /* so has it because the caller looks for it */
    volatile sig_atomic_t signal; /* which one waits */
} state;

/* The library's io, with the list. */
static const epctx_io *base(void)
{
    static epctx_io io;
    if (io.create_fn == NULL) io = epctx_io_listed(&state.open);
    return &io;
}

/* Around what makes or removes a name and notes it: the two belong together. */
static void block(sigset_t *before)
{
    sigset_t all;
    size_t i;
    sigemptyset(&all);
    for (i = 0; i < ENDINGS; i++)
        sigaddset(&all, endings[i]);
    sigprocmask(SIG_BLOCK, &all, before);
}

static void unblock(const sigset_t *before)
{
    sigprocmask(SIG_SETMASK, before, NULL);
}

/* -- signals -- */

/* The file of a lock is made before the lock is had: whoever can have it removes the file. */
static void leave_lock(void)
{
    struct stat there, ours;
    long fd, most = sysconf(_SC_OPEN_MAX);
    if (state.lock[0] == '\0' || lstat(state.lock, &there) != 0) return;
    for (fd = 0; fd < most && fd < 65536; fd++)
        if (fstat((int)fd, &ours) == 0 && ours.st_ino == there.st_ino &&
            ours.st_dev == there.st_dev && flock((int)fd, LOCK_EX | LOCK_NB) == 0) {
            unlink(state.lock);
            return;
        }
}

static void stop(int number)
{
    if (state.late || state.kept) {
        state.signal = number;
        return;
    }
    leave_lock();
    epctx_open_files_remove(&state.open);
    signal(number, SIG_DFL);
    raise(number);
}

void cli_signals_begin(void)
{
    struct sigaction action, old;
    size_t i;
    memset(&action, 0, sizeof action);
    action.sa_handler = stop;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    for (i = 0; i < ENDINGS; i++)
        sigaddset(&action.sa_mask, endings[i]);
    for (i = 0; i < ENDINGS; i++) /* who ignores one (nohup) wants that the work goes on */
        if (sigaction(endings[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
            sigaction(endings[i], &action, NULL);
    signal(SIGXFSZ, SIG_IGN); /* a file that would be too big is an error of write */
}

void cli_signals_keep(bool keep)
{
    state.kept = keep;
}

void cli_signals_end(void)
{
    if (state.signal == 0) return;
    signal(state.signal, SIG_DFL);
    raise(state.signal);
}

/* -- the io -- */

static epctx_status create(void *user, const char *path, epctx_io_file *file, epctx_error *error)
{
    sigset_t before;
    epctx_status status;
    block(&before);
    status = base()->create_fn(user, path, file, error);
    unblock(&before);
    return status;
}

static epctx_status create_inside(void *user, const char *root, const char *name,
                                  epctx_io_file *file, epctx_error *error)
{
    sigset_t before;
    epctx_status status;
    block(&before);
    status = base()->create_inside_fn(user, root, name, file, error);
    unblock(&before);
    return status;
}

/* In parts: a big write reports nothing while it lasts. */
static epctx_status write_parts(void *user, epctx_io_file *file, const void *data, size_t size,
                                epctx_error *error)
{
    const size_t most = (size_t)1 << 20;
    const char *from = (const char *)data;
    epctx_status status = EPCTX_OK;
    do {
        size_t part = size < most ? size : most;
        if (state.kept && state.signal != 0)
            return epctx_fail(error, EPCTX_ERR_CANCELLED, "stopped by a signal");
        status = base()->write_fn(user, file, from, part, error);
        from = part > 0 ? from + part : from;
        size -= part;
        cli_progress_add(part);
    } while (status == EPCTX_OK && size > 0);
    return status;
}

static void abort_file(void *user, epctx_io_file *file)
{
    sigset_t before;
    block(&before);
    base()->abort_fn(user, file);
    unblock(&before);
}

/* From here on names change, until all of them have changed or are as they were. */
static epctx_status commit(void *user, epctx_io_file *file, epctx_error *error)
{
    state.late = 1;
    return base()->commit_fn(user, file, error);
}

static epctx_status second(void *user, epctx_io_file *file, const char *name, epctx_error *error)
{
    state.late = 1;
    return base()->second_fn(user, file, name, error);
}

static epctx_status swap(void *user, epctx_io_file *file, epctx_overwrite overwrite,
                         epctx_error *error)
{
    state.late = 1;
    return base()->swap_fn(user, file, overwrite, error);
}

static epctx_status remove_file(void *user, const char *path, epctx_error *error)
{
    state.late = 1;
    return base()->remove_fn(user, path, error);
}

static epctx_status remove_inside(void *user, const char *root, const char *name,
                                  epctx_error *error)
{
    state.late = 1;
    return base()->remove_inside_fn(user, root, name, error);
}

static epctx_status link_file(void *user, const char *from, const char *to, epctx_error *error)
{
    state.late = 1;
    return base()->link_fn(user, from, to, error);
}

static epctx_status link_inside(void *user, const char *root, const char *from, const char *to,
                                epctx_error *error)
{
    state.late = 1;
    return base()->link_inside_fn(user, root, from, to, error);
}

/* Waiting for a lock ends with a signal like anything else. */
static epctx_status lock(void *user, const char *path, epctx_io_file *file, epctx_error *error)
{
    epctx_status status;
    if (strlen(path) < sizeof state.lock) strcpy(state.lock, path);
    status = base()->lock_fn(user, path, file, error);
    state.lock[0] = '\0';
    return status;
}

static epctx_status lock_inside(void *user, const char *root, const char *name,
                                epctx_io_file *file, epctx_error *error)
{
    epctx_status status;
    int used = snprintf(state.lock, sizeof state.lock, "%s/%s", root, name);
    if (used < 0 || (size_t)used >= sizeof state.lock) state.lock[0] = '\0';
    status = base()->lock_inside_fn(user, root, name, file, error);
    state.lock[0] = '\0';
    return status;
}

static void unlock(void *user, epctx_io_file *file)
{
    sigset_t before;
    block(&before);
    base()->unlock_fn(user, file);
    unblock(&before);
}

const epctx_io *cli_io(void)
{
    static epctx_io io;
    io = *base();
    io.create_fn = create;
    io.create_inside_fn = create_inside;
    io.second_fn = second;
    io.write_fn = write_parts;
    io.abort_fn = abort_file;
    io.commit_fn = commit;
    io.swap_fn = swap;
    io.remove_fn = remove_file;
    io.remove_inside_fn = remove_inside;
    io.link_fn = link_file;
    io.link_inside_fn = link_inside;
    io.lock_fn = lock;
    io.lock_inside_fn = lock_inside;
    io.unlock_fn = unlock;
    return &io;
}

/* -- files that are no models -- */

/* Complete and durable, but not visible yet. */
static epctx_status prepare(const char *root, const cli_file *from, epctx_io_file *file,
                            epctx_error *error)
{
    const epctx_io *io = cli_io();
    epctx_status status = root != NULL
                              ? io->create_inside_fn(io->user, root, from->name, file, error)
                              : io->create_fn(io->user, from->name, file, error);
    if (status != EPCTX_OK) return status;
    if (from->size > 0) status = io->write_fn(io->user, file, from->data, from->size, error);
    if (status == EPCTX_OK) status = io->sync_fn(io->user, file, error);
    if (status != EPCTX_OK) io->abort_fn(io->user, file);
    return status;
}

/* Visible and durable; `kept` when there is a way back. */
static epctx_status show(const char *path, epctx_io_file *file, bool *kept, epctx_error *error)
{
    const epctx_io *io = cli_io();
    epctx_status status = EPCTX_ERR_UNSUPPORTED;
    if (file->way_back) status = io->swap_fn(io->user, file, EPCTX_OVERWRITE_REPLACE, error);
    *kept = status != EPCTX_ERR_UNSUPPORTED;
    if (*kept) return status;
    epctx_error_clear(error);
    status = io->commit_fn(io->user, file, error);
    return status == EPCTX_OK ? io->sync_folder_fn(io->user, path, error) : status;
}

epctx_status cli_write_files(const char *folder, const cli_file *files, size_t count,
                             epctx_error *error)
{
    const epctx_io *io = cli_io();
    epctx_io_file *made = (epctx_io_file *)calloc(count, sizeof *made);
    bool *kept = (bool *)calloc(count, sizeof *kept);
    static char root[EPCTX_PATH_MAX];
    epctx_status status = EPCTX_OK;
    size_t ready = 0, shown = 0, i;
    epctx_error_clear(error);
    if (made == NULL || kept == NULL)
        status = epctx_fail(error, EPCTX_ERR_NOMEM, "out of memory");
    if (status == EPCTX_OK && folder != NULL)
        status = io->canonical_fn(io->user, folder, root, sizeof root, error);
    while (status == EPCTX_OK && ready < count) {
        status = prepare(folder != NULL ? root : NULL, &files[ready], &made[ready], error);
        ready += status == EPCTX_OK;
    }
    while (status == EPCTX_OK && shown < count) {
        status = show(folder != NULL ? root : files[shown].name, &made[shown], &kept[shown], error);
        shown++;
    }
    for (i = ready; i-- > 0;) {
        if (i < shown && kept[i]) io->settle_fn(io->user, &made[i], status != EPCTX_OK);
        if (i >= shown || kept[i]) io->abort_fn(io->user, &made[i]);
    }
    free(kept);
    free(made);
    return status;
}
