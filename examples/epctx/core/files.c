/* The tool's io: the library's, with progress, and with nothing unfinished left behind when a
 * signal ends the tool. */
#define _DEFAULT_SOURCE
#define _XOPEN_SOURCE 700

#include "cli.h"
#include "neighbours.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const int endings[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
enum { ENDINGS = sizeof endings / sizeof endings[0] };

static struct {
    epctx_io_file *volatile open[256]; /* what may have a name that has to go; more are not noted */
    char lock[EPCTX_PATH_MAX];         /* is being taken; "" none */
    volatile sig_atomic_t late;        /* names change: an ending signal has to wait */
    volatile sig_atomic_t kept;        /* so has it because the caller looks for it */
    volatile sig_atomic_t signal;      /* which one waits */
} state;

enum { OPEN_MOST = sizeof state.open / sizeof state.open[0] };

static const epctx_io *base(void) {
    return epctx_io_files();
}

/* `to` in the place of `from`; one of them is NULL. */
static void note(epctx_io_file *from, epctx_io_file *to) {
    size_t i = 0;
    while (i < OPEN_MOST && state.open[i] != from) i++;
    if (i < OPEN_MOST) state.open[i] = to;
}

/* Around what makes or removes a name and notes it: the two belong together. */
static void block(sigset_t *before) {
    sigset_t all;
    size_t i;
    sigemptyset(&all);
    for (i = 0; i < ENDINGS; i++) sigaddset(&all, endings[i]);
    sigprocmask(SIG_BLOCK, &all, before);
}

static void unblock(const sigset_t *before) {
    sigprocmask(SIG_SETMASK, before, NULL);
}

/* -- mapped files -- */

static struct {
    const uint8_t *data;
    size_t size;
} mapped[64]; /* more are not noted */

enum { MAPPED_MOST = sizeof mapped / sizeof mapped[0] };

static void note_mapping(const uint8_t *from, const epctx_mapping *to) {
    size_t i = 0;
    while (i < MAPPED_MOST && mapped[i].data != from) i++;
    if (i == MAPPED_MOST) return;
    mapped[i].data = to != NULL ? to->data : NULL;
    mapped[i].size = to != NULL ? to->size : 0;
}

static epctx_status map(void *user, const char *root, const char *name, bool copy,
                        epctx_mapping *out, epctx_error *error) {
    const epctx_status status = base()->map_fn(user, root, name, copy, out, error);
    if (status == EPCTX_OK && out->shared) note_mapping(NULL, out);
    return status;
}

static void unmap(void *user, epctx_mapping *mapping) {
    if (mapping->shared) note_mapping(mapping->data, NULL);
    base()->unmap_fn(user, mapping);
}

void cli_spent(void *user, const void *data, size_t size) {
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)data;
    const uintptr_t first = (at + page - 1) / page * page, end = (at + size) / page * page;
    size_t i;
    (void)user;
    for (i = 0; i < MAPPED_MOST; i++) {
        const uintptr_t start = (uintptr_t)mapped[i].data;
        if (first < end && first >= start && end <= start + mapped[i].size)
            (void)madvise((void *)first, end - first, MADV_DONTNEED);
    }
}

/* -- signals -- */

/* The file of a lock is created before the lock is held; the next owner removes the file. */
static void leave_lock(void) {
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

static void stop(int number) {
    size_t i;
    if (state.late || state.kept) {
        state.signal = number;
        return;
    }
    leave_lock();
    for (i = 0; i < OPEN_MOST; i++)
        if (state.open[i] != NULL && state.open[i]->temp[0] != '\0')
            unlinkat((int)state.open[i]->folder, state.open[i]->temp, 0);
    signal(number, SIG_DFL);
    raise(number);
}

void cli_signals_begin(void) {
    struct sigaction action, old;
    size_t i;
    memset(&action, 0, sizeof action);
    action.sa_handler = stop;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    for (i = 0; i < ENDINGS; i++) sigaddset(&action.sa_mask, endings[i]);
    for (i = 0; i < ENDINGS; i++) /* who ignores one (nohup) wants that the work goes on */
        if (sigaction(endings[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
            sigaction(endings[i], &action, NULL);
    signal(SIGXFSZ, SIG_IGN); /* a file that would be too big is an error of write */
}

void cli_signals_keep(bool keep) {
    state.kept = keep;
}

bool cli_signals_waiting(void) {
    return state.signal != 0;
}

void cli_signals_forget(void) {
    size_t i;
    for (i = 0; i < ENDINGS; i++) {
        struct sigaction old;
        if (sigaction(endings[i], NULL, &old) == 0 && old.sa_handler == stop)
            signal(endings[i], SIG_DFL);
    }
    memset(&state, 0, sizeof state);
}

void cli_signals_end(void) {
    if (state.signal == 0) return;
    signal(state.signal, SIG_DFL);
    raise(state.signal);
}

/* -- the io -- */

static epctx_status create(void *user, const char *root, const char *name, epctx_io_file *file,
                           epctx_error *error) {
    sigset_t before;
    epctx_status status;
    block(&before);
    status = base()->create_fn(user, root, name, file, error);
    if (status == EPCTX_OK) note(NULL, file);
    unblock(&before);
    return status;
}

/* In parts: a big write reports nothing while it lasts. They end where the library's pieces end. */
static epctx_status write_parts(void *user, epctx_io_file *file, const void *data, size_t size,
                                epctx_error *error) {
    const size_t most = (size_t)1 << 20;
    const char *from = (const char *)data;
    epctx_status status = EPCTX_OK;
    do {
        const size_t room = most - (size_t)(file->written % most);
        const size_t part = size < room ? size : room;
        if (state.kept && state.signal != 0)
            return epctx_fail(error, EPCTX_ERR_CANCELLED, "stopped by a signal");
        status = base()->write_fn(user, file, from, part, error);
        from = part > 0 ? from + part : from;
        size -= part;
        cli_progress_add(part);
    } while (status == EPCTX_OK && size > 0);
    return status;
}

static void close_file(void *user, epctx_io_file *file) {
    sigset_t before;
    block(&before);
    note(file, NULL);
    base()->close_fn(user, file);
    unblock(&before);
}

/* From here on names change, until all of them have changed or are as they were. */
static epctx_status commit(void *user, epctx_io_file *file, epctx_overwrite overwrite,
                           epctx_error *error) {
    state.late = 1;
    return base()->commit_fn(user, file, overwrite, error);
}

static epctx_status clear(void *user, epctx_io_file *file, epctx_overwrite overwrite,
                          epctx_error *error) {
    state.late = 1;
    return base()->clear_fn(user, file, overwrite, error);
}

static epctx_status second(void *user, epctx_io_file *file, const char *name, epctx_error *error) {
    state.late = 1;
    return base()->second_fn(user, file, name, error);
}

static epctx_status remove_file(void *user, const char *root, const char *name,
                                epctx_error *error) {
    state.late = 1;
    return base()->remove_fn(user, root, name, error);
}

static epctx_status link_file(void *user, const char *root, const char *from, const char *to,
                              epctx_error *error) {
    state.late = 1;
    return base()->link_fn(user, root, from, to, error);
}

/* Waiting for a lock ends with a signal like anything else. */
static epctx_status lock(void *user, const char *root, const char *name, epctx_io_file *file,
                         epctx_error *error) {
    epctx_status status;
    if (epctx_path_join(epctx_str_of(root), epctx_str_of(name), state.lock, sizeof state.lock,
                        NULL) != EPCTX_OK)
        state.lock[0] = '\0';
    status = base()->lock_fn(user, root, name, file, error);
    if (status == EPCTX_OK) note(NULL, file);
    state.lock[0] = '\0';
    return status;
}

const epctx_io *cli_io(void) {
    static epctx_io io;
    io = *base();
    io.map_fn = map;
    io.unmap_fn = unmap;
    io.create_fn = create;
    io.write_fn = write_parts;
    io.close_fn = close_file;
    io.commit_fn = commit;
    io.clear_fn = clear;
    io.second_fn = second;
    io.remove_fn = remove_file;
    io.link_fn = link_file;
    io.lock_fn = lock;
    return &io;
}

epctx_status cli_writable(const char *path, epctx_error *error) {
    char *real = realpath(path, NULL);
    char folder[EPCTX_PATH_MAX];
    epctx_str place = epctx_str_of(real != NULL ? real : path);
    epctx_status status;
    while (place.size > 1 && place.data[place.size - 1] == '/') place.size--;
    status =
        epctx_path_join(epctx_path_folder(place), epctx_str_of("."), folder, sizeof folder, error);
    free(real);
    if (status == EPCTX_OK && access(folder, W_OK | X_OK) != 0) {
        status = epctx_fail(error, EPCTX_ERR_IO, "nothing can be written into its folder: %s",
                            strerror(errno));
        epctx_blame(error, path, NULL, NULL);
    }
    return status;
}

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *ftw) {
    (void)st, (void)ftw;
    if (kind == FTW_DNR || kind == FTW_D || kind == FTW_DP) chmod(path, 0700);
    return remove(path) != 0 && kind == FTW_D;
}

void cli_remove_tree(const char *path) {
    nftw(path, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

/* -- files that are no models -- */

epctx_status cli_write_files(const char *folder, const cli_file *files, size_t count,
                             epctx_error *error) {
    epctx_arena arena;
    epctx_commit commit;
    epctx_output_file *outputs;
    epctx_span *parts;
    epctx_status status;
    neighbours_plan plan;
    char path[EPCTX_PATH_MAX];
    size_t i;
    memset(&plan, 0, sizeof plan);
    epctx_arena_init(&arena, NULL);
    outputs = (epctx_output_file *)epctx_arena_array(&arena, count, sizeof *outputs);
    parts = (epctx_span *)epctx_arena_array(&arena, count, sizeof *parts);
    status = epctx_commit_begin(&commit, cli_io(), &arena, error);
    if (outputs == NULL || parts == NULL)
        status = epctx_fail(error, EPCTX_ERR_NOMEM, "out of memory");
    if (status == EPCTX_OK) status = epctx_commit_set_folder(&commit, folder, error);
    for (i = 0; status == EPCTX_OK && i < count; i++) {
        parts[i].data = (const uint8_t *)files[i].data;
        parts[i].size = files[i].size;
        outputs[i].path = outputs[i].name = files[i].name;
        outputs[i].parts = &parts[i];
        outputs[i].part_count = 1;
        outputs[i].size = files[i].size;
        status = epctx_commit_put_file(&commit, &outputs[i], EPCTX_OVERWRITE_REPLACE, error);
        if (status == EPCTX_OK)
            status = epctx_path_join(epctx_str_of(folder), epctx_str_of(files[i].name), path,
                                     sizeof path, error);
        outputs[i].path = epctx_arena_copy(&arena, epctx_str_of(path));
        if (status == EPCTX_OK && outputs[i].path == NULL)
            status = epctx_fail(error, EPCTX_ERR_NOMEM, "out of memory");
    }
    plan.files = outputs;
    plan.file_count = count;
    if (status == EPCTX_OK) status = neighbours_allow(&plan, error);
    if (status == EPCTX_OK) status = epctx_commit_run(&commit, error);
    epctx_commit_close(&commit);
    epctx_arena_free(&arena);
    return status;
}
