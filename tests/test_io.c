/* >>io: what the file back-end does when the file system refuses, and when a call of the system
 * fails, is interrupted, does half of its work, or meets a file that changes under it. The status,
 * the message, and what is left: no descriptor, no mapping, no temporary file, and the file of
 * before or the new one. */
#define _XOPEN_SOURCE     700
#define _FILE_OFFSET_BITS 64
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* -- the system, with one thing that goes wrong -- */

enum {
    SHORT = -1, /* half of what was asked for */
    NOTHING = -2,
    OTHER_SIZE = -3, /* of the file that is examined */
    OTHER_TIME = -4,
    OTHER_FILE = -5,
    OTHER_DEVICE = -6,
    OTHER_OWNER = -7,
    OTHER_GROUP = -8
};

typedef struct sys_fault {
    const char *call; /* NULL: all goes well */
    int at;           /* its call number, from 1 */
    int what;         /* an errno, or one of the above */
    int times;        /* how often; 0: once */
} sys_fault;

static sys_fault sys_plan;
static int sys_seen; /* calls of it */
static int sys_maps; /* alive */
static int sys_renamed;
static int sys_opens;
static bool all_named; /* no file without a name */
static bool one_name;  /* and no second one */

/* What is to go wrong in this call, or 0. An errno is set. */
static int sys_wrong(const char *call) {
    int what = sys_plan.what;
    if (sys_plan.call == NULL || strcmp(sys_plan.call, call) != 0) return 0;
    sys_seen++;
    if (sys_seen < sys_plan.at) return 0;
    if (sys_seen >= sys_plan.at + (sys_plan.times > 0 ? sys_plan.times : 1)) return 0;
    if (what > 0) errno = what;
    return what;
}

static void distort(int what, struct stat *info) {
    if (what == OTHER_SIZE) info->st_size++;
    if (what == OTHER_TIME) info->st_mtim.tv_nsec ^= 1;
    if (what == OTHER_FILE) info->st_ino++;
    if (what == OTHER_DEVICE) info->st_dev++;
    if (what == OTHER_OWNER) info->st_uid++;
    if (what == OTHER_GROUP) info->st_gid++;
}

static int sys_fstat(int fd, struct stat *info) {
    int what = sys_wrong("fstat"), result = what > 0 ? -1 : fstat(fd, info);
    distort(what, info);
    return result;
}

static int sys_stat(const char *path, struct stat *info) {
    int what = sys_wrong("stat"), result = what > 0 ? -1 : stat(path, info);
    distort(what, info);
    return result;
}

static int sys_open(const char *path, int flags, ...) {
    va_list args;
    int mode = 0;
    va_start(args, flags);
    if ((flags & O_CREAT) != 0) mode = va_arg(args, int);
    va_end(args);
    return sys_wrong("open") != 0 ? -1 : open(path, flags, mode);
}

#if defined(__O_TMPFILE)
#define UNNAMED __O_TMPFILE
#elif defined(O_TMPFILE) /* musl */
#define UNNAMED (O_TMPFILE & ~O_DIRECTORY)
#else
#define UNNAMED 0
#endif

static int sys_openat(int fd, const char *path, int flags, ...) {
    va_list args;
    mode_t mode = 0;
    va_start(args, flags);
    if ((flags & (O_CREAT | UNNAMED)) != 0) mode = (mode_t)va_arg(args, int);
    va_end(args);
    if ((flags & UNNAMED) != 0 && (all_named || one_name)) {
        errno = EOPNOTSUPP;
        return -1;
    }
    sys_opens++;
    return sys_wrong((flags & UNNAMED) != 0 ? "tmpfile" : "openat") != 0
               ? -1
               : openat(fd, path, flags, mode);
}

static int sys_fstatat(int fd, const char *path, struct stat *info, int flags) {
    int what = sys_wrong("fstatat"), result = what > 0 ? -1 : fstatat(fd, path, info, flags);
    distort(what, info);
    return result;
}

static int sys_access(const char *path, int mode) {
    return sys_wrong("access") != 0 ? -1 : access(path, mode);
}

static ssize_t sys_pread(int fd, void *out, size_t size, off_t at) {
    int what = sys_wrong("pread");
    if (what == NOTHING) return 0;
    return what > 0 ? -1 : pread(fd, out, what == SHORT && size > 1 ? size / 2 : size, at);
}

static ssize_t sys_write(int fd, const void *data, size_t size) {
    int what = sys_wrong("write");
    if (what == NOTHING) return 0;
    return what > 0 ? -1 : write(fd, data, what == SHORT && size > 1 ? size / 2 : size);
}

static void *sys_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset) {
    void *data = MAP_FAILED;
    if (sys_wrong("mmap") == 0) data = mmap(at, size, protection, flags, fd, offset);
    sys_maps += data != MAP_FAILED;
    return data;
}

static int sys_munmap(void *data, size_t size) {
    sys_maps--;
    return munmap(data, size);
}

static char *sys_realpath(const char *path, char *out) {
    return sys_wrong("realpath") != 0 ? NULL : realpath(path, out);
}

static int sys_renameat(int a, const char *from, int b, const char *to) {
    int result = sys_wrong("renameat") != 0 ? -1 : renameat(a, from, b, to);
    sys_renamed += result == 0;
    return result;
}

/* As without root's rights: to a group of ours only. */
static int sys_fchown(int fd, uid_t owner, gid_t group) {
    return group != getegid() ? -1 : fchown(fd, owner, group);
}

static int sys_fchmod(int fd, mode_t mode) {
    return sys_wrong("fchmod") != 0 ? -1 : fchmod(fd, mode);
}

static int sys_fsync(int fd) {
    return sys_wrong("fsync") != 0 ? -1 : fsync(fd);
}

static int sys_unlinkat(int fd, const char *path, int flags) {
    return sys_wrong("unlinkat") != 0 ? -1 : unlinkat(fd, path, flags);
}

/* "name" gives a file without a name one, "linkat" a file a second one. */
static int sys_linkat(int a, const char *from, int b, const char *to, int flags) {
    if (one_name) errno = EPERM;
    return one_name || sys_wrong(flags != 0 ? "name" : "linkat") != 0
               ? -1
               : linkat(a, from, b, to, flags);
}

static int sys_flock(int fd, int how) {
    return sys_wrong("flock") != 0 ? -1 : flock(fd, how);
}

static DIR *sys_opendir(const char *path) {
    return sys_wrong("opendir") != 0 ? NULL : opendir(path);
}

#define fstat(fd, info)             sys_fstat(fd, info)
#define stat(path, info)            sys_stat(path, info)
#define open(...)                   sys_open(__VA_ARGS__)
#define openat(...)                 sys_openat(__VA_ARGS__)
#define fstatat(fd, path, info, f)  sys_fstatat(fd, path, info, f)
#define access(path, mode)          sys_access(path, mode)
#define pread(fd, out, size, at)    sys_pread(fd, out, size, at)
#define write(fd, data, size)       sys_write(fd, data, size)
#define mmap(a, size, p, f, fd, at) sys_mmap(a, size, p, f, fd, at)
#define munmap(data, size)          sys_munmap(data, size)
#define realpath(path, out)         sys_realpath(path, out)
#define renameat(a, from, b, to)    sys_renameat(a, from, b, to)
#define fchown(fd, owner, group)    sys_fchown(fd, owner, group)
#define fchmod(fd, mode)            sys_fchmod(fd, mode)
#define fsync(fd)                   sys_fsync(fd)
#define unlinkat(fd, path, flags)   sys_unlinkat(fd, path, flags)
#define linkat(a, from, b, to, f)   sys_linkat(a, from, b, to, f)
#define flock(fd, how)              sys_flock(fd, how)
#define opendir(path)               sys_opendir(path)

#define EPCTX_IMPLEMENTATION
#include "epctx.h"

#undef fstat
#undef stat
#undef open
#undef openat
#undef fstatat
#undef access
#undef pread
#undef write
#undef mmap
#undef munmap
#undef realpath
#undef renameat
#undef fchown
#undef fchmod
#undef fsync
#undef unlinkat
#undef linkat
#undef flock
#undef opendir

#include "files.h"

/* -- what is done with it -- */

static epctx_error error;

static epctx_status taken(epctx_status status, const epctx_io *io, epctx_mapping *m) {
    if (status != EPCTX_OK) return m->handle == NULL ? status : EPCTX_ERR_CONFIG;
    if (m->size != 4 || memcmp(m->data, "text", 4) != 0) status = EPCTX_ERR_CONFIG;
    io->unmap_fn(io->user, m);
    return status;
}

static epctx_status map(void) {
    const epctx_io *io = epctx_io_files();
    epctx_mapping m;
    epctx_status status = io->map_fn(io->user, NULL, at("file"), false, &m, &error);
    return taken(status, io, &m);
}

static epctx_status read_all(void) {
    const epctx_io *io = epctx_io_private();
    epctx_mapping m;
    epctx_status status = io->map_fn(io->user, NULL, at("file"), false, &m, &error);
    return taken(status, io, &m);
}

static epctx_status map_inside(void) {
    const epctx_io *io = epctx_io_files();
    epctx_mapping m;
    epctx_status status = io->map_fn(io->user, root, "file", false, &m, &error);
    return taken(status, io, &m);
}

static epctx_status examine(void) {
    const epctx_io *io = epctx_io_files();
    epctx_file_info info;
    epctx_status status = io->stat_fn(io->user, at("file"), &info, &error);
    return status == EPCTX_OK && info.size != 4 ? EPCTX_ERR_CONFIG : status;
}

/* With the way back, which is taken after a failure. */
static epctx_status put_file(const char *folder, const char *name, bool second,
                             epctx_overwrite overwrite) {
    static epctx_io_file file;
    const epctx_io *io = epctx_io_files();
    epctx_status status = io->create_fn(io->user, folder, name, &file, &error);
    if (status != EPCTX_OK) return status;
    status = io->write_fn(io->user, &file, "new text", 8, &error);
    if (status == EPCTX_OK) status = io->sync_fn(io->user, &file, &error);
    if (status == EPCTX_OK && second) status = io->second_fn(io->user, &file, "second", &error);
    if (status == EPCTX_OK) status = io->commit_fn(io->user, &file, overwrite, &error);
    if (status != EPCTX_OK) io->back_fn(io->user, &file);
    io->close_fn(io->user, &file);
    return status;
}

static epctx_status replace_file(const char *path) {
    return put_file(NULL, path, false, EPCTX_OVERWRITE_REPLACE);
}

static epctx_status swap_file(const char *name, epctx_overwrite overwrite) {
    return put_file(root, name, true, overwrite);
}

/* What is there goes first. */
static epctx_status clear(void) {
    static epctx_io_file file;
    const epctx_io *io = epctx_io_files();
    epctx_status status = io->create_fn(io->user, root, "file", &file, &error);
    if (status != EPCTX_OK) return status;
    status = io->write_fn(io->user, &file, "new text", 8, &error);
    if (status == EPCTX_OK) status = io->clear_fn(io->user, &file, EPCTX_OVERWRITE_REPLACE, &error);
    if (status == EPCTX_OK && strcmp(listing(), "file.old ") != 0) status = EPCTX_ERR_CONFIG;
    if (status == EPCTX_OK)
        status = io->commit_fn(io->user, &file, EPCTX_OVERWRITE_REPLACE, &error);
    if (status != EPCTX_OK) io->back_fn(io->user, &file);
    io->close_fn(io->user, &file);
    return status;
}

static epctx_status replace(void) {
    return replace_file(at("file"));
}

static epctx_status create(void) {
    return replace_file(at("made"));
}

static epctx_status replace_named(void) {
    epctx_status status;
    all_named = true;
    status = replace_file(at("file"));
    all_named = false;
    return status;
}

static epctx_status swap(void) {
    return swap_file("file", EPCTX_OVERWRITE_REPLACE);
}

static epctx_status swap_named(void) {
    epctx_status status;
    all_named = true;
    status = swap();
    all_named = false;
    return status;
}

static epctx_status swap_backup(void) {
    return swap_file("file", EPCTX_OVERWRITE_BACKUP);
}

static epctx_status swap_backup_alone(void) {
    return put_file(root, "file", false, EPCTX_OVERWRITE_BACKUP);
}

static epctx_status swap_new(void) {
    return swap_file("made", EPCTX_OVERWRITE_FAIL);
}

static epctx_status swap_new_named(void) {
    epctx_status status;
    all_named = true;
    status = swap_new();
    all_named = false;
    return status;
}

static epctx_status swap_none(void) {
    return swap_file("file", EPCTX_OVERWRITE_FAIL);
}

static epctx_status link_inside(void) {
    const epctx_io *io = epctx_io_files();
    return io->link_fn(io->user, root, "file", "made", &error);
}

static epctx_status remove_inside(void) {
    const epctx_io *io = epctx_io_files();
    return io->remove_fn(io->user, root, "file", &error);
}

static epctx_status second_name(void) {
    const epctx_io *io = epctx_io_files();
    return io->link_fn(io->user, NULL, at("file"), at("made"), &error);
}

static epctx_status resolve(void) {
    char out[EPCTX_PATH_MAX];
    const epctx_io *io = epctx_io_files();
    return io->canonical_fn(io->user, at("file"), out, sizeof out, &error);
}

static epctx_status take_away(void) {
    const epctx_io *io = epctx_io_files();
    return io->remove_fn(io->user, NULL, at("file"), &error);
}

static bool no_name(void *state, const char *name) {
    (void)state;
    (void)name;
    return true;
}

static epctx_status list(void) {
    const epctx_io *io = epctx_io_files();
    return io->list_fn(io->user, root, no_name, NULL, &error);
}

/* Holds the lock, which a lock of another descriptor shows. */
static epctx_status lock(void) {
    static epctx_io_file held;
    const epctx_io *io = epctx_io_files();
    epctx_status status = io->lock_fn(io->user, NULL, at("lock"), &held, &error);
    int fd;
    if (status != EPCTX_OK) {
        remove(at("lock"));
        return status;
    }
    fd = open(at("lock"), O_RDWR);
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0) status = EPCTX_ERR_CONFIG;
    if (fd >= 0) close(fd);
    io->close_fn(io->user, &held);
    return status;
}

/* -- the cases -- */

static const struct io_case {
    epctx_status (*run)(void);
    sys_fault fault;
    epctx_status status;
    const char *message;
} cases[] = {
    {map, {"open", 1, EACCES, 0}, EPCTX_ERR_IO, "cannot open"},
    {map, {"fstat", 1, EIO, 0}, EPCTX_ERR_IO, "cannot examine"},
    {map, {"mmap", 1, ENOMEM, 0}, EPCTX_ERR_IO, "cannot map"},
    {read_all, {"mmap", 1, ENOMEM, 0}, EPCTX_ERR_IO, "cannot find memory for"},
    {read_all, {"pread", 1, EIO, 0}, EPCTX_ERR_IO, "cannot read"},
    {read_all, {"pread", 1, EINTR, 2}, EPCTX_OK, ""},
    {read_all, {"pread", 1, SHORT, 2}, EPCTX_OK, ""},
    {read_all, {"pread", 1, NOTHING, 0}, EPCTX_ERR_IO, "was changed while it was read"},
    {read_all, {"fstat", 2, EIO, 0}, EPCTX_ERR_IO, "was changed while it was read"},
    {read_all, {"fstat", 2, OTHER_SIZE, 0}, EPCTX_ERR_IO, "was changed while it was read"},
    {read_all, {"fstat", 2, OTHER_TIME, 0}, EPCTX_ERR_IO, "was changed while it was read"},
    {map_inside, {"open", 1, EACCES, 0}, EPCTX_ERR_IO, "cannot open"},
    {map_inside, {"openat", 1, EACCES, 0}, EPCTX_ERR_IO, "cannot open"},
    {map_inside, {"openat", 1, ELOOP, 0}, EPCTX_ERR_PATH, "file: is a link or lies"},
    {map_inside, {"openat", 1, ENOTDIR, 0}, EPCTX_ERR_PATH, "file: is a link or lies"},
    {map_inside, {"mmap", 1, ENOMEM, 0}, EPCTX_ERR_IO, "cannot map"},
    {clear, {"linkat", 1, EIO, 0}, EPCTX_ERR_IO, "cannot keep"},
    {clear, {"unlinkat", 1, EIO, 0}, EPCTX_ERR_IO, "cannot remove"},
    {clear, {"fsync", 1, EIO, 0}, EPCTX_ERR_IO, "cannot flush"}, /* of the folder */
    {clear, {"fsync", 2, EIO, 0}, EPCTX_ERR_IO, "cannot flush"},
    {clear, {"name", 1, EIO, 0}, EPCTX_ERR_IO, "cannot replace"},
    {examine, {"stat", 1, EACCES, 0}, EPCTX_ERR_IO, "cannot examine"},
    {resolve, {"realpath", 1, EACCES, 0}, EPCTX_ERR_IO, "cannot resolve"},
    {replace, {"realpath", 1, EACCES, 0}, EPCTX_ERR_IO, "cannot resolve"},
    {replace, {"fchmod", 1, EPERM, 0}, EPCTX_ERR_IO, "cannot set the mode of"},
    {replace, {"open", 1, EACCES, 0}, EPCTX_ERR_IO, "cannot open the folder of"},
    {replace, {"fstat", 1, EIO, 0}, EPCTX_OK, ""}, /* then the group's rights are dropped */
    {replace_named,
     {"openat", 1, ENOSPC, 0},
     EPCTX_ERR_IO,
     "cannot create a temporary file beside it"},
    {replace_named, {"openat", 1, EEXIST, 999}, EPCTX_OK, ""},
    {replace_named,
     {"openat", 1, EEXIST, 1000},
     EPCTX_ERR_IO,
     "cannot create a temporary file beside it"},
    {replace_named, {"fchmod", 1, EPERM, 0}, EPCTX_ERR_IO, "cannot set the mode of"},
    {replace_named, {"renameat", 1, EIO, 0}, EPCTX_ERR_IO, "cannot replace"},
    {replace, {"tmpfile", 1, EOPNOTSUPP, 0}, EPCTX_OK, ""},
    {replace, {"access", 1, ENOENT, 0}, EPCTX_OK, ""}, /* no /proc */
    {replace, {"name", 1, EEXIST, 998}, EPCTX_OK, ""},
    {replace, {"name", 1, EEXIST, 999}, EPCTX_ERR_IO, "cannot replace"},
    {replace, {"name", 1, EIO, 0}, EPCTX_ERR_IO, "cannot replace"},
    {replace, {"name", 1, EPERM, 0}, EPCTX_ERR_IO, "cannot replace"},
    {replace, {"write", 1, EINTR, 3}, EPCTX_OK, ""},
    {replace, {"write", 1, SHORT, 3}, EPCTX_OK, ""},
    {replace, {"write", 1, NOTHING, 0}, EPCTX_ERR_IO, "cannot write"},
    {replace, {"write", 1, ENOSPC, 0}, EPCTX_ERR_IO, "cannot write"},
    {replace, {"fsync", 1, EIO, 0}, EPCTX_ERR_IO, "cannot flush"},
    {replace, {"renameat", 1, EIO, 0}, EPCTX_ERR_IO, "cannot replace"},
    {create, {"name", 1, EIO, 0}, EPCTX_ERR_IO, "cannot replace"},
    {create, {"open", 1, ENOENT, 0}, EPCTX_ERR_NOT_FOUND, "cannot open the folder of"},
    {create, {"open", 1, EACCES, 0}, EPCTX_ERR_IO, "cannot open the folder of"},
    {swap, {"open", 1, ENOENT, 0}, EPCTX_ERR_NOT_FOUND, "cannot open the folder of"},
    {swap, {"open", 1, EACCES, 0}, EPCTX_ERR_IO, "cannot open the folder of"},
    {swap, {"name", 1, EEXIST, 0}, EPCTX_ERR_EXISTS, "its second name is taken"},
    {swap, {"name", 1, EPERM, 0}, EPCTX_ERR_UNSUPPORTED, "cannot have a second name"},
    {swap, {"name", 1, EIO, 0}, EPCTX_ERR_IO, "cannot link"},
    {swap, {"name", 2, EIO, 0}, EPCTX_ERR_IO, "cannot replace"},
    {swap, {"fsync", 2, EIO, 0}, EPCTX_ERR_IO, "cannot flush"}, /* of the folder, */
    {swap, {"fsync", 3, EIO, 0}, EPCTX_ERR_IO, "cannot flush"}, /* when the new file is there */
    {swap, {"fsync", 3, EINVAL, 0}, EPCTX_OK, ""},
    {swap, {"linkat", 1, EEXIST, 998}, EPCTX_OK, ""},
    {swap, {"linkat", 1, EIO, 0}, EPCTX_ERR_IO, "cannot keep"},
    {swap, {"linkat", 1, EPERM, 0}, EPCTX_OK, ""}, /* then it is a copy */
    {swap, {"linkat", 1, EMLINK, 0}, EPCTX_OK, ""},
    {swap, {"linkat", 1, ENOENT, 0}, EPCTX_OK, ""},
    {swap, {"renameat", 1, EIO, 0}, EPCTX_ERR_IO, "cannot replace"},
    {swap_named, {"linkat", 2, EIO, 0}, EPCTX_ERR_IO, "cannot keep"},
    {swap_named, {"renameat", 1, EIO, 0}, EPCTX_ERR_IO, "cannot replace"},
    {swap_backup, {"linkat", 1, EEXIST, 999}, EPCTX_ERR_EXISTS, "has 999 backups"},
    {swap_backup, {"linkat", 1, EOPNOTSUPP, 0}, EPCTX_OK, ""},
    {swap_backup, {"renameat", 1, EIO, 0}, EPCTX_ERR_IO, "cannot replace"},
    {swap_backup, {"fsync", 3, EIO, 0}, EPCTX_ERR_IO, "cannot flush"},
    {swap_new, {"name", 2, EIO, 0}, EPCTX_ERR_IO, "cannot replace"},
    {swap_new, {"name", 2, EEXIST, 99}, EPCTX_OK, ""},
    {swap_new,
     {"name", 2, EEXIST, 100},
     EPCTX_ERR_IO,
     "another process keeps creating and removing"},
    {swap_new, {"fsync", 3, EIO, 0}, EPCTX_ERR_IO, "cannot flush"},
    {swap_new_named, {"linkat", 2, EPERM, 0}, EPCTX_OK, ""},
    {swap_none, {"fstatat", 1, ENOENT, 0}, EPCTX_ERR_EXISTS, "exists already"},
    {link_inside, {"open", 1, EACCES, 0}, EPCTX_ERR_IO, "cannot open the folder of"},
    {link_inside, {"open", 2, EACCES, 0}, EPCTX_ERR_IO, "cannot open the folder of"},
    {link_inside, {"fsync", 1, EIO, 0}, EPCTX_ERR_IO, "cannot flush"},
    {link_inside, {"linkat", 1, EPERM, 0}, EPCTX_ERR_UNSUPPORTED, "cannot have a second name"},
    {link_inside, {"linkat", 1, EEXIST, 0}, EPCTX_ERR_EXISTS, "exists already"},
    {remove_inside, {"unlinkat", 1, EACCES, 0}, EPCTX_ERR_IO, "cannot remove"},
    {take_away, {"unlinkat", 1, EACCES, 0}, EPCTX_ERR_IO, "cannot remove"},
    {second_name, {"linkat", 1, EPERM, 0}, EPCTX_ERR_UNSUPPORTED, "cannot have a second name"},
    {second_name, {"linkat", 1, EMLINK, 0}, EPCTX_ERR_UNSUPPORTED, "cannot have a second name"},
    {second_name, {"linkat", 1, EXDEV, 0}, EPCTX_ERR_UNSUPPORTED, "cannot have a second name"},
    {second_name, {"linkat", 1, ENOSYS, 0}, EPCTX_ERR_UNSUPPORTED, "cannot have a second name"},
    {second_name, {"linkat", 1, EOPNOTSUPP, 0}, EPCTX_ERR_UNSUPPORTED, "cannot have a second name"},
    {second_name, {"linkat", 1, EIO, 0}, EPCTX_ERR_IO, "cannot link"},
    {list, {"opendir", 1, EACCES, 0}, EPCTX_ERR_IO, "cannot list"},
    {lock, {"open", 1, EACCES, 0}, EPCTX_ERR_IO, "cannot open the folder of"},
    {lock, {"openat", 1, EACCES, 0}, EPCTX_ERR_IO, "cannot open the lock"},
    {lock, {"flock", 1, EIO, 0}, EPCTX_ERR_IO, "cannot lock"},
    {lock, {"flock", 1, EINTR, 2}, EPCTX_OK, ""},
    /* Who waited may hold the lock of a file that is gone, or of another one: again. */
    {lock, {"fstat", 1, EIO, 0}, EPCTX_OK, ""},
    {lock, {"fstatat", 1, ENOENT, 2}, EPCTX_OK, ""},
    {lock, {"fstatat", 1, OTHER_FILE, 0}, EPCTX_OK, ""},
    {lock, {"fstatat", 1, OTHER_DEVICE, 0}, EPCTX_OK, ""},
};

/* Something that a case left behind, or NULL. */
static const char *left_behind(bool failed, int first_free) {
    static char text[2100];
    bytes now = read_file(at("file"));
    bool replaced = bytes_equal(&now, "new text", 8), old = bytes_equal(&now, "text", 4);
    int fd = dup(0);
    close(fd);
    bytes_free(&now);
    if (fd != first_free) return "a descriptor is open";
    if (sys_maps != 0) return "a mapping is left";
    if (failed && (!old || strcmp(listing(), "file ") != 0)) {
        snprintf(text, sizeof text, "after a failure there is: %s(%s)", listing(),
                 old ? "file as before" : "file changed");
        return text;
    }
    return old || replaced ? NULL : "the file is neither the old one nor the new one";
}

TEST(system_calls) {
    struct stat info;
    int first_free = dup(0);
    close(first_free);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct io_case *c = &cases[i];
        const char *left;
        epctx_status status;
        clear_root();
        make_file(at("file"), "text", 4);
        CHECK_INT(chmod(at("file"), 0640), 0);
        epctx_error_clear(&error);
        sys_plan = c->fault;
        sys_seen = sys_renamed = sys_opens = 0;
        status = c->run();
        sys_plan.call = NULL;
        CHECK(sys_seen >= c->fault.at, "case %zu: %s is called %d times only", i, c->fault.call,
              sys_seen);
        CHECK(status == c->status, "case %zu, %s: %s (%s), expected %s", i, c->fault.call,
              epctx_status_name(status), error.message, epctx_status_name(c->status));
        CHECK(strstr(error.message, c->message) != NULL &&
                  (status == EPCTX_OK) == (error.message[0] == '\0'),
              "case %zu, %s: the message is \"%s\", expected \"%s\"", i, c->fault.call,
              error.message, c->message);
        if (status != EPCTX_OK && status != EPCTX_ERR_PATH && c->run != map_inside)
            CHECK_HAS(error.message, root); /* which file */
        left = left_behind(status != EPCTX_OK, first_free);
        CHECK(left == NULL, "case %zu, %s: %s", i, c->fault.call, left);
        /* A lock of another file is given up, and the file opened again. */
        if (c->run == lock && status == EPCTX_OK && strstr(c->fault.call, "stat") != NULL)
            CHECK_INT(sys_opens, c->fault.times > 0 ? c->fault.times + 1 : 2);
        if ((c->run == replace || c->run == swap) && status == EPCTX_OK) {
            CHECK_INT(sys_renamed, 1);
            CHECK_INT(stat(at("file"), &info), 0);
            /* The mode is kept, unless the group is not known. */
            CHECK_INT(info.st_mode & 0777, strcmp(c->fault.call, "fstat") == 0 ? 0600 : 0640);
            CHECK_INT(info.st_size, 8);
        }
    }
}

/* Where files have one name only what is replaced is copied: what the copy meets. */
static epctx_status copied(const char *call, int at_call, int what) {
    epctx_status status;
    clear_root();
    make_file(at("file"), "text", 4);
    if (chmod(at("file"), 0640) != 0) return EPCTX_ERR_CONFIG;
    epctx_error_clear(&error);
    one_name = true;
    sys_plan = (sys_fault){call, at_call, what, 0};
    sys_seen = 0;
    status = swap_backup_alone();
    sys_plan.call = NULL;
    one_name = false;
    return status;
}

TEST(copies) {
    static const struct {
        const char *call;
        int at, what;
    } steps[] = {{"openat", 2, EACCES}, {"openat", 3, EACCES}, {"openat", 4, EACCES},
                 {"fstat", 2, EIO},     {"fstat", 3, EIO},     {"fchmod", 2, EPERM},
                 {"write", 2, ENOSPC},  {"fsync", 2, EIO},     {"mmap", 1, ENOMEM}};
    struct stat info;
    CHECK_OK(copied("none", 1, 0), error);
    CHECK_STR(listing(), "file file~ ");
    CHECK_INT(stat(at("file~"), &info), 0);
    CHECK_INT(info.st_mode & 0777, 0640);
    CHECK_INT(info.st_size, 4);
    CHECK_OK(copied("openat", 4, EEXIST), error); /* somebody else's backup */
    CHECK_STR(listing(), "file file~2 ");
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        CHECK(copied(steps[i].call, steps[i].at, steps[i].what) == EPCTX_ERR_IO, "%s: %s",
              steps[i].call, error.message);
        CHECK(strcmp(listing(), "file ") == 0, "%s: there is %s", steps[i].call, listing());
        if (i == 1 || i == 2) CHECK_HAS(error.message, "cannot keep: Permission denied");
        CHECK_INT(sys_maps, 0);
    }
}

/* The rights of a file whose owner or group is not ours. */
TEST(modes) {
    static const struct {
        sys_fault fault;
        unsigned mode; /* of the new file; the old one has 0660 */
    } steps[] = {
        {{"fstat", 1, OTHER_GROUP, 1}, 0660}, /* given to the old group */
        {{"fstat", 1, OTHER_GROUP, 2}, 0600}, /* it is not of that group all the same */
        {{"fstatat", 1, OTHER_GROUP, 1}, 0600},
        {{"fstat", 1, OTHER_OWNER, 1}, 0640},
    };
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        struct stat info;
        clear_root();
        make_file(at("file"), "text", 4);
        CHECK_INT(chmod(at("file"), 0660), 0);
        epctx_error_clear(&error);
        sys_plan = steps[i].fault;
        sys_seen = 0;
        CHECK_OK(replace(), error);
        sys_plan.call = NULL;
        CHECK_INT(stat(at("file"), &info), 0);
        CHECK((info.st_mode & 0777) == steps[i].mode, "case %zu: mode %o, expected %o", i,
              (unsigned)(info.st_mode & 0777), steps[i].mode);
    }
}

static epctx_io_file writer;

/* Writes a new file and takes the old one out of the way. */
static epctx_status begin_writer(const char *name, epctx_overwrite overwrite) {
    const epctx_io *io = epctx_io_files();
    epctx_status status;
    epctx_error_clear(&error);
    status = io->create_fn(io->user, root, name, &writer, &error);
    if (status == EPCTX_OK) status = io->write_fn(io->user, &writer, "new text", 8, &error);
    return status == EPCTX_OK ? io->clear_fn(io->user, &writer, overwrite, &error) : status;
}

static bool file_has(const char *name, const char *text) {
    bytes b = read_file(at(name));
    bool same = bytes_equal(&b, text, strlen(text));
    bytes_free(&b);
    return same;
}

TEST(cleared) {
    const epctx_io *io = epctx_io_files();
    clear_root();
    make_file(at("file"), "text", 4);
    CHECK_INT(begin_writer("file", EPCTX_OVERWRITE_FAIL), EPCTX_ERR_EXISTS);
    io->close_fn(io->user, &writer);
    CHECK_STR(listing(), "file ");
    /* Without a new file the old one stays under its other name. */
    CHECK_OK(begin_writer("file", EPCTX_OVERWRITE_REPLACE), error);
    io->close_fn(io->user, &writer);
    CHECK_STR(listing(), "file.old ");
    /* Nothing to clear. */
    CHECK_OK(begin_writer("file", EPCTX_OVERWRITE_REPLACE), error);
    CHECK_OK(io->commit_fn(io->user, &writer, EPCTX_OVERWRITE_REPLACE, &error), error);
    io->close_fn(io->user, &writer);
    CHECK_STR(listing(), "file file.old ");
    remove(at("file.old"));
    CHECK_OK(begin_writer("file", EPCTX_OVERWRITE_BACKUP), error);
    CHECK_OK(io->commit_fn(io->user, &writer, EPCTX_OVERWRITE_BACKUP, &error), error);
    io->close_fn(io->user, &writer);
    CHECK_STR(listing(), "file file~ ");
    remove(at("file~"));
    /* Somebody else writes the file meanwhile: the way back still leads to the old one. */
    make_file(at("file"), "text", 4);
    CHECK_OK(begin_writer("file", EPCTX_OVERWRITE_REPLACE), error);
    make_file(at("file"), "other", 5);
    CHECK_OK(io->commit_fn(io->user, &writer, EPCTX_OVERWRITE_REPLACE, &error), error);
    CHECK_TRUE(file_has("file", "new text"));
    CHECK_TRUE(io->back_fn(io->user, &writer));
    io->close_fn(io->user, &writer);
    CHECK_TRUE(file_has("file", "text"));
    CHECK_STR(listing(), "file ");
}

/* The caller's link that leads nowhere has no target to replace. */
TEST(dangling_link) {
    struct stat info;
    clear_root();
    CHECK_INT(symlink("none", at("link")), 0);
    epctx_error_clear(&error);
    CHECK_OK(replace_file(at("link")), error);
    CHECK_INT(lstat(at("link"), &info), 0);
    CHECK_TRUE(S_ISREG(info.st_mode) && file_has("link", "new text"));
    CHECK_STR(listing(), "link ");
}

TEST(same_file) {
    static const epctx_file_info file = {EPCTX_FILE_REGULAR, 4, 1, 2, 3, 4, true};
    epctx_file_info other = file;
    CHECK_TRUE(epctx_file_same(&file, &other));
    other.size++;
    CHECK_TRUE(!epctx_file_same(&file, &other));
    other = file;
    other.written++;
    CHECK_TRUE(!epctx_file_same(&file, &other));
    other = file;
    other.inode++;
    CHECK_TRUE(!epctx_file_same(&file, &other));
    other = file;
    other.device++;
    CHECK_TRUE(!epctx_file_same(&file, &other));
    other = file;
    other.device = 0;
    CHECK_TRUE(epctx_file_same(&other, &other));
    other.inode = 0; /* not known: an io of the application */
    CHECK_TRUE(!epctx_file_same(&other, &other));
}

/* -- locks -- */

TEST(lock_without_waiting) {
    static epctx_io_file held, asked;
    const epctx_io *io = epctx_io_files();
    clear_root();
    epctx_error_clear(&error);
    CHECK_OK(io->lock_fn(io->user, NULL, at("lock"), &held, &error), error);
    asked.try_only = true;
    CHECK_INT(io->lock_fn(io->user, NULL, at("lock"), &asked, &error), EPCTX_ERR_CHANGED);
    CHECK_HAS(error.message, "lock: another writer holds the lock");
    io->close_fn(io->user, &held);
    epctx_error_clear(&error);
    asked.try_only = true;
    CHECK_OK(io->lock_fn(io->user, NULL, at("lock"), &asked, &error), error);
    io->close_fn(io->user, &asked);
    CHECK_STR(listing(), "");
}

/* What was there before the lock stays. */
TEST(lock_of_another_kind) {
    clear_root();
    epctx_error_clear(&error);
    CHECK_INT(mkfifo(at("lock"), 0666), 0);
    CHECK_OK(lock(), error);
    CHECK_STR(listing(), "lock ");
    make_file(at("lock.2"), "mine", 4);
    CHECK_INT(rename(at("lock.2"), at("lock")), 0);
    CHECK_OK(lock(), error);
    CHECK_TRUE(file_has("lock", "mine"));
}

/* A name without a whole character has nothing that could stand before ".lock". */
TEST(lock_without_characters) {
    char name[EPCTX_NAME_MAX];
    epctx_file_lock held;
    clear_root();
    memset(name, 0x80, sizeof name - 1);
    name[sizeof name - 1] = '\0';
    epctx_error_clear(&error);
    CHECK_OK(epctx_file_lock_take(&held, NULL, at(name), &error), error);
    CHECK_STR(listing(), ".lock ");
    epctx_file_lock_drop(&held);
    CHECK_STR(listing(), "");
}

TEST(long_lock) {
    static char path[EPCTX_PATH_MAX + 1];
    static epctx_io_file held;
    const epctx_io *io = epctx_io_files();
    memset(path, 'x', sizeof path - 1);
    epctx_error_clear(&error);
    CHECK_INT(io->lock_fn(io->user, NULL, path, &held, &error), EPCTX_ERR_LIMIT);
    CHECK_HAS(error.message, "a path is longer");
}

/* -- what the file system refuses -- */

static void make_tree(void) {
    clear_root();
    make_file(at("file"), "text", 4);
    if (mkdir(at("sub"), 0777) != 0) abort();
    if (mkfifo(at("pipe"), 0666) != 0 || symlink("sub", at("link")) != 0) abort();
}

static void remove_tree(void) {
    static const char *const names[] = {"file", "second", "pipe", "link", "sub/new", "sub"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) remove(at(names[i]));
    if (listing()[0] != '\0') abort(); /* a temporary file was left behind */
}

TEST(reading) {
    static char long_part[400];
    const epctx_io *io = epctx_io_files();
    epctx_mapping m;
    epctx_error e;
    epctx_file_info info;
    char small[4];
    memset(long_part, 'n', sizeof long_part - 1);
    make_tree();
    epctx_error_clear(&e);
    CHECK_INT(io->map_fn(NULL, NULL, at("sub"), false, &m, &e), EPCTX_ERR_IO);
    CHECK_HAS(e.message, "is a folder");
    epctx_error_clear(&e);
    CHECK_INT(io->map_fn(NULL, NULL, at("pipe"), false, &m, &e), EPCTX_ERR_IO);
    CHECK_HAS(e.message, "device or pipe");
    epctx_error_clear(&e);
    CHECK_INT(io->map_fn(NULL, NULL, at("file/below"), false, &m, &e), EPCTX_ERR_NOT_FOUND);
    CHECK_INT(io->map_fn(NULL, NULL, at(long_part), false, &m, NULL), EPCTX_ERR_IO);
    CHECK_INT(io->stat_fn(NULL, at(long_part), &info, NULL), EPCTX_ERR_IO);
    CHECK_INT(io->canonical_fn(NULL, at("file"), small, sizeof small, NULL), EPCTX_ERR_LIMIT);
    /* Below a folder: through no link, and only what is there. */
    CHECK_INT(io->map_fn(NULL, root, "link/new", false, &m, NULL), EPCTX_ERR_PATH);
    CHECK_INT(symlink("file", at("last")), 0);
    CHECK_INT(io->map_fn(NULL, root, "last", false, &m, NULL), EPCTX_ERR_PATH);
    CHECK_INT(unlink(at("last")), 0);
    CHECK_INT(io->map_fn(NULL, root, "sub/new", false, &m, NULL), EPCTX_ERR_NOT_FOUND);
    CHECK_INT(io->map_fn(NULL, at("none"), "file", false, &m, NULL), EPCTX_ERR_NOT_FOUND);
    CHECK_INT(io->map_fn(NULL, root, long_part, false, &m, NULL), EPCTX_ERR_IO);
    CHECK_INT(io->map_fn(NULL, root, "file", false, &m, NULL), EPCTX_OK);
    CHECK_MEM(m.data, m.size, "text", 4);
    io->unmap_fn(NULL, &m);
    io->unmap_fn(NULL, &m); /* twice is fine */
    remove_tree();
}

/* No descriptor left is a failure of the system, not "the file does not exist". */
TEST(no_descriptors) {
    const epctx_io *io = epctx_io_files();
    struct rlimit before, none;
    epctx_status status;
    epctx_mapping m;
    make_tree();
    getrlimit(RLIMIT_NOFILE, &before);
    none = before;
    none.rlim_cur = 0;
    setrlimit(RLIMIT_NOFILE, &none);
    status = io->map_fn(NULL, NULL, at("file"), false, &m, NULL);
    setrlimit(RLIMIT_NOFILE, &before);
    CHECK_INT(status, EPCTX_ERR_IO);
    remove_tree();
}

/* A program may have closed its standard input: a file is number 0 then. */
TEST(no_standard_input) {
    const int kept = dup(0);
    epctx_status status;
    CHECK_TRUE(kept > 0);
    make_tree();
    close(0);
    status = map();
    dup2(kept, 0);
    close(kept);
    CHECK_INT(status, EPCTX_OK);
    remove_tree();
}

/* How many descriptors, or lines about memory, name a file. */
static int named_by_us(const char *file) {
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[4096], link[64];
    int count = 0;
    for (int fd = 0; fd < 64; fd++) {
        ssize_t size;
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        size = readlink(link, line, sizeof line - 1);
        if (size < 0) continue;
        line[size] = '\0';
        count += strstr(line, file) != NULL;
    }
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL)
        count += strstr(line, file) != NULL;
    if (maps != NULL) fclose(maps);
    return count;
}

TEST(mappings_end) {
    const epctx_io *io = epctx_io_files();
    char file[400];
    epctx_mapping m;
    make_tree();
    if (realpath(at("file"), file) == NULL) abort();
    CHECK_INT(io->map_fn(NULL, NULL, file, false, &m, NULL), EPCTX_OK);
    if (named_by_us(file) == 0) {
        io->unmap_fn(NULL, &m);
        remove_tree();
        SKIP("/proc does not tell what is mapped");
    }
    io->unmap_fn(NULL, &m);
    CHECK_INT(named_by_us(file), 0);
    remove_tree();
}

TEST(writing) {
    static char long_path[2 * EPCTX_PATH_MAX], nearly[EPCTX_PATH_MAX];
    const epctx_io *io = epctx_io_files();
    static epctx_io_file file;
    epctx_error e;
    make_tree();
    memset(long_path, '/', sizeof long_path - 2);
    memcpy(long_path, root, strlen(root));
    long_path[sizeof long_path - 2] = 'x';
    CHECK_INT(io->create_fn(NULL, NULL, long_path, &file, NULL), EPCTX_ERR_LIMIT);
    /* The path fits; that of a temporary file beside it would not. */
    memset(nearly, '/', sizeof nearly - 2);
    memcpy(nearly, root, strlen(root));
    nearly[sizeof nearly - 2] = 'x';
    CHECK_INT(io->create_fn(NULL, NULL, nearly, &file, NULL), EPCTX_OK);
    io->close_fn(NULL, &file);
    nearly[sizeof nearly - 2] = '/'; /* and of the folder itself neither */
    CHECK_INT(io->remove_fn(NULL, NULL, nearly, NULL), EPCTX_ERR_LIMIT);
    epctx_error_clear(&e);
    CHECK_INT(io->create_fn(NULL, NULL, at("sub"), &file, &e), EPCTX_ERR_IO);
    CHECK_HAS(e.message, "is a folder");
    CHECK_INT(io->create_fn(NULL, NULL, at("pipe"), &file, NULL), EPCTX_ERR_IO);
    CHECK_INT(io->create_fn(NULL, NULL, at("none/new"), &file, NULL), EPCTX_ERR_NOT_FOUND);
    CHECK_INT(io->create_fn(NULL, NULL, at("file/new"), &file, NULL), EPCTX_ERR_NOT_FOUND);
    CHECK_INT(io->remove_fn(NULL, NULL, at("none"), NULL), EPCTX_ERR_NOT_FOUND);
    /* A folder takes the name between write and commit: an error, and no temporary file. */
    CHECK_INT(io->create_fn(NULL, NULL, at("sub/new"), &file, NULL), EPCTX_OK);
    CHECK_INT(io->write_fn(NULL, &file, "x", 1, NULL), EPCTX_OK);
    CHECK_INT(mkdir(at("sub/new"), 0777), 0);
    epctx_error_clear(&e);
    CHECK_INT(io->commit_fn(NULL, &file, EPCTX_OVERWRITE_REPLACE, &e), EPCTX_ERR_IO);
    CHECK_HAS(e.message, "a regular file was expected");
    CHECK_TRUE(io->back_fn(NULL, &file));
    io->close_fn(NULL, &file);
    rmdir(at("sub/new"));
    remove_tree();
}

TEST(second_names) {
    const epctx_io *io = epctx_io_files();
    epctx_error e;
    make_tree();
    CHECK_INT(io->link_fn(NULL, NULL, at("file"), at("second"), NULL), EPCTX_OK);
    CHECK_INT(io->link_fn(NULL, NULL, at("file"), at("second"), NULL), EPCTX_ERR_EXISTS);
    CHECK_INT(io->link_fn(NULL, NULL, at("none"), at("third"), NULL), EPCTX_ERR_NOT_FOUND);
    epctx_error_clear(&e);
    CHECK_INT(io->link_fn(NULL, NULL, at("sub"), at("third"), &e), EPCTX_ERR_UNSUPPORTED);
    CHECK_HAS(e.message, "cannot have a second name");
    remove_tree();
}

/* epctx_read_bytes gives what epctx_write_bytes wrote, appended, or nothing. */
TEST(read_bytes) {
    static const struct {
        size_t size;
        uint64_t most;
        epctx_status status;
    } rows[] = {{0, 0, EPCTX_OK},
                {0, 1, EPCTX_OK},
                {1, 1, EPCTX_OK},
                {2, 1, EPCTX_ERR_LIMIT},
                {70000, 0, EPCTX_OK},
                {70000, 70000, EPCTX_OK},
                {70000, 69999, EPCTX_ERR_LIMIT}};
    static uint8_t data[70000];
    epctx_buffer out;
    for (size_t i = 0; i < sizeof data; i++) data[i] = (uint8_t)(i * 7 + i / 251);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const bool good = rows[i].status == EPCTX_OK;
        epctx_buffer_init(&out, NULL);
        CHECK_INT(epctx_buffer_append(&out, "ab", 2), EPCTX_OK);
        CHECK_OK(epctx_write_bytes(NULL, at("whole"), data, rows[i].size, NULL, &error), error);
        CHECK_INT(epctx_read_bytes(i % 2 ? NULL : epctx_io_private(), at("whole"), rows[i].most,
                                   &out, &error),
                  rows[i].status);
        CHECK_UINT(out.size, good ? 2 + rows[i].size : 2);
        CHECK_TRUE(memcmp(out.data, "ab", 2) == 0);
        CHECK_TRUE(!good || memcmp(out.data + 2, data, rows[i].size) == 0);
        if (!good) CHECK_HAS(error.message, "whole: has ");
        epctx_buffer_free(&out);
    }
    epctx_buffer_init(&out, NULL);
    CHECK_INT(epctx_read_bytes(NULL, at("nowhere"), 1, &out, &error), EPCTX_ERR_NOT_FOUND);
    CHECK_HAS(error.message, "nowhere");
    CHECK_INT(epctx_read_bytes(NULL, root, 1, &out, &error), EPCTX_ERR_IO);
    CHECK_HAS(error.message, "is a folder");
    CHECK_UINT(out.size, 0);
}

int main(int argc, char **argv) {
    if (!make_root()) {
        printf("FAIL test_io: no folder to work in\n");
        return 1;
    }
    RUN(reading);
    RUN(no_descriptors);
    RUN(no_standard_input);
    RUN(mappings_end);
    RUN(writing);
    RUN(second_names);
    RUN(system_calls);
    RUN(copies);
    RUN(modes);
    RUN(cleared);
    RUN(dangling_link);
    RUN(same_file);
    RUN(lock_without_waiting);
    RUN(lock_of_another_kind);
    RUN(lock_without_characters);
    RUN(long_lock);
    RUN(read_bytes);
    remove_root();
    return test_end();
}
