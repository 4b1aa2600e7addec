/* Where the library of ONNX Runtime is in what holds it: for the tool and the conformance suite. */
#ifndef EPCTX_CLI_PLACES_H
#define EPCTX_CLI_PLACES_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* In words, behind "it holds no ". */
#define ORT_PLACES "libonnxruntime.so.1, nor do lib/, lib64/, capi/ and onnxruntime/capi/ in it"

/* The library in a folder; of several the one whose name comes last. */
bool ort_places_in(const char *folder, char *out, size_t size);
/* The library of a folder, an archive, what was installed, a wheel or its package.
 * tests/deps.sh looks for ORT_HOME's in the same places. */
bool ort_places_find(const char *home, char *out, size_t size);

/* What tests/deps.sh has fetched: EPCTX_CACHE, which is no relative path, or build/deps beside a
 * program that runs where it was built, in build or in a folder of it. */
bool ort_places_cache(char *out, size_t size);

enum { ORT_MOST_CACHED = 16 };
typedef struct ort_cached {
    unsigned version[3];
    char name[NAME_MAX + 1]; /* of a folder: onnxruntime-VERSION-MACHINE */
} ort_cached;
/* Those of this machine in `cache`, the newest first. */
size_t ort_places_cached(const char *cache, ort_cached list[ORT_MOST_CACHED + 1]);

#endif
