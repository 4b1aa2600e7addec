/* What the test programs use of POSIX, for Windows: included in front of each of them. Names of
 * files are UTF-8, as long as they want to be. */
#ifndef EPCTX_TEST_WINDOWS_H
#define EPCTX_TEST_WINDOWS_H

#define WIN32_LEAN_AND_MEAN
#define NOMINMAX
#include <windows.h>
#undef TEXT
#undef near
#undef far

#include <direct.h>
#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <limits.h>
#include <malloc.h>
#include <process.h>
#include <pthread_time.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WINDOWS_UNUSED static __attribute__((unused))
enum { WINDOWS_PATH = 4096 };

/* ------------------------------------------------------------------- names */

/* The full path with the prefix that lifts the limit of 260 characters. */
WINDOWS_UNUSED const WCHAR *windows_wide(const char *path) {
    static _Thread_local WCHAR wide[2][WINDOWS_PATH + 8];
    static _Thread_local unsigned next;
    WCHAR given[WINDOWS_PATH], *out = wide[next++ % 2];
    if (MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, given, WINDOWS_PATH) == 0 ||
        GetFullPathNameW(given, WINDOWS_PATH, out + 4, NULL) == 0)
        return L"";
    if (out[4] == L'\\' && out[5] == L'\\') return out + 4;
    memcpy(out, L"\\\\?\\", 4 * sizeof *out);
    return out;
}

WINDOWS_UNUSED void windows_narrow(const WCHAR *wide, char *out, size_t size) {
    if (WideCharToMultiByte(CP_UTF8, 0, wide, -1, out, (int)size, NULL, NULL) == 0) *out = '\0';
    for (; *out; out++)
        if (*out == '\\') *out = '/';
}

WINDOWS_UNUSED bool windows_is_folder(const WCHAR *path) {
    const DWORD attributes = GetFileAttributesW(path);
    return attributes != INVALID_FILE_ATTRIBUTES && (attributes & FILE_ATTRIBUTE_DIRECTORY) != 0;
}

/* The words of the command line in UTF-8. */
WINDOWS_UNUSED char **windows_words(int count) {
    int wide_count = 0, i;
    WCHAR **(WINAPI * split)(const WCHAR *, int *) = NULL;
    const FARPROC found = GetProcAddress(LoadLibraryW(L"shell32.dll"), "CommandLineToArgvW");
    WCHAR **wide;
    char **words = (char **)calloc((size_t)count + 1, sizeof *words);
    memcpy(&split, &found, sizeof split);
    wide = split(GetCommandLineW(), &wide_count);
    for (i = 0; i < count && i < wide_count; i++) {
        const size_t size = 3 * wcslen(wide[i]) + 1;
        words[i] = (char *)malloc(size);
        WideCharToMultiByte(CP_UTF8, 0, wide[i], -1, words[i], (int)size, NULL, NULL);
    }
    return words;
}

/* ------------------------------------------------------------------- files */

WINDOWS_UNUSED FILE *windows_fopen(const char *path, const char *mode) {
    WCHAR wide[8];
    size_t i;
    for (i = 0; i < 7 && mode[i]; i++) wide[i] = (WCHAR)mode[i];
    wide[i] = L'\0';
    return _wfopen(windows_wide(path), wide);
}

WINDOWS_UNUSED int windows_remove(const char *path) {
    const WCHAR *wide = windows_wide(path);
    return (windows_is_folder(wide) ? RemoveDirectoryW(wide) : DeleteFileW(wide)) ? 0 : -1;
}

WINDOWS_UNUSED int windows_rename(const char *from, const char *to) {
    return MoveFileExW(windows_wide(from), windows_wide(to), MOVEFILE_REPLACE_EXISTING) ? 0 : -1;
}

WINDOWS_UNUSED int windows_mkdir(const char *path) {
    if (CreateDirectoryW(windows_wide(path), NULL)) return 0;
    errno = GetLastError() == ERROR_ALREADY_EXISTS ? EEXIST : ENOENT;
    return -1;
}

WINDOWS_UNUSED int windows_stat(const char *path, struct _stat64 *out) {
    return _wstat64(windows_wide(path), out);
}

WINDOWS_UNUSED int windows_access(const char *path) {
    return GetFileAttributesW(windows_wide(path)) == INVALID_FILE_ATTRIBUTES ? -1 : 0;
}

#define fopen(path, mode)     windows_fopen(path, mode)
#define remove(path)          windows_remove(path)
#define rename(from, to)      windows_rename(from, to)
#define mkdir(path, mode)     windows_mkdir(path)
#define _stat64(path, out)    windows_stat(path, out) /* what `stat` is here */
#define access(path, how)     windows_access(path)
#define symlink(target, path) (-1)
#undef PATH_MAX
#define PATH_MAX WINDOWS_PATH

/* Fills the six X. */
WINDOWS_UNUSED char *mkdtemp(char *name) {
    char *end = name + strlen(name) - 6;
    int i;
    for (i = 0; i < 1000; i++) {
        snprintf(end, 7, "%06d", (_getpid() * 31 + i) % 1000000);
        if (windows_mkdir(name) == 0) return name;
    }
    return NULL;
}

/* Of what is there; with "/". */
WINDOWS_UNUSED char *realpath(const char *path, char *out) {
    const WCHAR *wide = windows_wide(path);
    if (GetFileAttributesW(wide) == INVALID_FILE_ATTRIBUTES) return NULL;
    windows_narrow(wide + (wide[2] == L'?' ? 4 : 0), out, PATH_MAX);
    return out;
}

struct FTW {
    int base, level;
};
enum { FTW_DEPTH = 1, FTW_PHYS = 2, FTW_F = 0, FTW_DP = 1 };
typedef int (*windows_walk_fn)(const char *path, const struct _stat64 *st, int kind,
                               struct FTW *ftw);

/* Folders after what is in them. */
WINDOWS_UNUSED int windows_walk(const char *path, windows_walk_fn visit, int level) {
    const bool folder = windows_is_folder(windows_wide(path));
    struct FTW ftw = {0, level};
    struct _stat64 none;
    WIN32_FIND_DATAW entry;
    char below[WINDOWS_PATH], name[WINDOWS_PATH];
    HANDLE search = INVALID_HANDLE_VALUE;
    int stop = 0;
    snprintf(below, sizeof below, "%s/*", path);
    if (folder) search = FindFirstFileW(windows_wide(below), &entry);
    while (search != INVALID_HANDLE_VALUE && !stop) {
        windows_narrow(entry.cFileName, name, sizeof name);
        snprintf(below, sizeof below, "%s/%s", path, name);
        if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0)
            stop = windows_walk(below, visit, level + 1);
        if (!FindNextFileW(search, &entry)) break;
    }
    if (search != INVALID_HANDLE_VALUE) FindClose(search);
    memset(&none, 0, sizeof none);
    return stop ? stop : visit(path, &none, folder ? FTW_DP : FTW_F, &ftw);
}

#define nftw(path, visit, handles, how) windows_walk(path, visit, 0)

/* --------------------------------------------------------------- libraries */

enum { RTLD_NOW = 0, RTLD_LOCAL = 0 };

/* A library's own folder is searched for what it needs. */
WINDOWS_UNUSED void *dlopen(const char *path, int how) {
    (void)how;
    return (void *)LoadLibraryExW(windows_wide(path), NULL, LOAD_WITH_ALTERED_SEARCH_PATH);
}

WINDOWS_UNUSED void *dlsym(void *library, const char *name) {
    const FARPROC found = GetProcAddress((HMODULE)library, name);
    void *symbol;
    memcpy(&symbol, &found, sizeof symbol);
    return symbol;
}

WINDOWS_UNUSED int dlclose(void *library) {
    return FreeLibrary((HMODULE)library) ? 0 : -1;
}

WINDOWS_UNUSED const char *dlerror(void) {
    static char text[40];
    snprintf(text, sizeof text, "error %lu of Windows", GetLastError());
    return text;
}

/* --------------------------------------------------------------- processes */

/* The program with these words, none of which holds a quote: its exit code, -1: it could not be
 * started or ended by an exception. */
WINDOWS_UNUSED int windows_run(char *const *words) {
    STARTUPINFOW start;
    PROCESS_INFORMATION process;
    WCHAR line[WINDOWS_PATH], word[WINDOWS_PATH];
    DWORD code = 0;
    size_t used = 0, i;
    for (i = 0; words[i]; i++) {
        if (MultiByteToWideChar(CP_UTF8, 0, words[i], -1, word, WINDOWS_PATH) == 0 ||
            used + wcslen(word) + 4 > WINDOWS_PATH)
            return -1;
        used += (size_t)swprintf(line + used, WINDOWS_PATH - used, L"\"%ls\" ", word);
    }
    memset(&start, 0, sizeof start);
    start.cb = sizeof start;
    if (!CreateProcessW(NULL, line, NULL, NULL, TRUE, 0, NULL, NULL, &start, &process)) return -1;
    WaitForSingleObject(process.hProcess, INFINITE);
    GetExitCodeProcess(process.hProcess, &code);
    CloseHandle(process.hProcess);
    CloseHandle(process.hThread);
    return code > 255 ? -1 : (int)code;
}

/* Where a function comes from is not told here. */
typedef struct Dl_info {
    const char *dli_fname;
} Dl_info;
#define dladdr(function, info) ((info)->dli_fname = NULL, false)

/* ------------------------------------------------------------------ memory */

#define aligned_alloc(alignment, size) _aligned_malloc(size, alignment)

WINDOWS_UNUSED void *memmem(const void *all, size_t size, const void *part, size_t part_size) {
    const char *at = (const char *)all;
    uintptr_t found = 0; /* as memchr, takes a constant and gives none */
    for (; size >= part_size && found == 0; at++, size--)
        if (memcmp(at, part, part_size) == 0) found = (uintptr_t)at;
    return (void *)found;
}

WINDOWS_UNUSED int setenv(const char *name, const char *value, int replace) {
    (void)replace;
    return _putenv_s(name, value);
}

#define unsetenv(name)    _putenv_s(name, "")
#define chmod(path, mode) 0 /* files have no modes */
/* For cases that are skipped here. */
#define sysconf(what)        0
#define truncate(path, size) (-1)

#endif
