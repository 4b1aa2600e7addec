/* What the test programs use of POSIX, for Windows: included in front of each of them. */
#ifndef EPCTX_TEST_WINDOWS_H
#define EPCTX_TEST_WINDOWS_H

#include <direct.h>
#include <io.h>
#include <malloc.h>
#include <process.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define aligned_alloc(alignment, size) _aligned_malloc(size, alignment)
#define mkdir(path, mode)              _mkdir(path)

/* Fills the six X. */
static __attribute__((unused)) char *mkdtemp(char *name)
{
    char *end = name + strlen(name) - 6;
    int i;
    for (i = 0; i < 1000; i++) {
        snprintf(end, 7, "%06d", (_getpid() * 31 + i) % 1000000);
        if (_mkdir(name) == 0) return name;
    }
    return NULL;
}

#endif
