/* Where the library of ONNX Runtime is in what holds it. */
#define _GNU_SOURCE
#include "places.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

bool ort_places_in(const char *folder, char *out, size_t size) {
    static const char name[] = "libonnxruntime.so";
    const struct dirent *entry;
    DIR *in = opendir(folder);
    out[0] = '\0';
    while (in != NULL && (entry = readdir(in)) != NULL) {
        const char *best = strrchr(out, '/');
        if (strncmp(entry->d_name, name, sizeof name - 1) == 0 &&
            (best == NULL || strcmp(entry->d_name, best + 1) > 0) &&
            (size_t)snprintf(out, size, "%s/%s", folder, entry->d_name) >= size)
            out[0] = '\0';
    }
    if (in != NULL) closedir(in);
    return out[0] != '\0';
}

bool ort_places_find(const char *home, char *out, size_t size) {
    static const char *const places[] = {"", "/lib", "/lib64", "/capi", "/onnxruntime/capi"};
    char folder[PATH_MAX + 32];
    size_t i;
    for (i = 0; i < sizeof places / sizeof places[0]; i++) {
        snprintf(folder, sizeof folder, "%s%s", home, places[i]);
        if (ort_places_in(folder, out, size)) return true;
    }
    return false;
}

/* build/deps beside a tool that runs where it was built, in build or in a folder of it. */
static bool find_build(char *out, size_t size) {
    char own[PATH_MAX];
    int up;
    if (realpath("/proc/self/exe", own) == NULL) return false;
    for (up = 0; up < 4; up++) {
        char *slash = strrchr(own, '/');
        if (slash == NULL) return false;
        *slash = '\0';
        slash = strrchr(own, '/');
        if (slash != NULL && strcmp(slash, "/build") == 0)
            return (size_t)snprintf(out, size, "%s/deps", own) < size;
    }
    return false;
}

bool ort_places_cache(char *out, size_t size) {
    const char *given = getenv("EPCTX_CACHE");
    if (given != NULL && given[0] == '/') return (size_t)snprintf(out, size, "%s", given) < size;
    return find_build(out, size);
}

static int newest_first(const void *a, const void *b) {
    const ort_cached *x = (const ort_cached *)a;
    const ort_cached *y = (const ort_cached *)b;
    size_t i;
    for (i = 0; i < 3; i++)
        if (x->version[i] != y->version[i]) return x->version[i] < y->version[i] ? 1 : -1;
    return strcmp(x->name, y->name);
}

size_t ort_places_cached(const char *cache, ort_cached list[ORT_MOST_CACHED + 1]) {
    struct utsname machine;
    const struct dirent *entry;
    DIR *in = uname(&machine) == 0 ? opendir(cache) : NULL;
    size_t count = 0;
    while (in != NULL && (entry = readdir(in)) != NULL) {
        ort_cached *c = &list[count];
        int end = 0;
        if (sscanf(entry->d_name, "onnxruntime-%u.%u.%u-%n", &c->version[0], &c->version[1],
                   &c->version[2], &end) != 3 ||
            end == 0 || strcmp(entry->d_name + end, machine.machine) != 0)
            continue;
        snprintf(c->name, sizeof c->name, "%s", entry->d_name);
        qsort(list, count + 1, sizeof *list, newest_first);
        if (count < ORT_MOST_CACHED) count++;
    }
    if (in != NULL) closedir(in);
    return count;
}
