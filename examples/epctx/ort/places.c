/* Where the library of ONNX Runtime is in what holds it. */
#define _GNU_SOURCE
#include "places.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

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
