/* To preload: a file system without O_TMPFILE, where unfinished files have names. */
#define _GNU_SOURCE

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/types.h>

#define OPENAT(name) \
    int name(int folder, const char *path, int flags, ...) { \
        int (*real)(int, const char *, int, ...); \
        mode_t mode = 0; \
        va_list args; \
        *(void **)&real = dlsym(RTLD_NEXT, #name); \
        if ((flags & O_TMPFILE) == O_TMPFILE) { \
            errno = EOPNOTSUPP; \
            return -1; \
        } \
        va_start(args, flags); \
        if ((flags & O_CREAT) != 0) mode = va_arg(args, mode_t); \
        va_end(args); \
        return real(folder, path, flags, mode); \
    }

OPENAT(openat)
OPENAT(openat64)
