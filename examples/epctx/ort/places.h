/* Where the library of ONNX Runtime is in what holds it: for the tool and the conformance suite. */
#ifndef EPCTX_CLI_PLACES_H
#define EPCTX_CLI_PLACES_H

#include <stdbool.h>
#include <stddef.h>

/* In words, behind "it holds no ". */
#define ORT_PLACES "libonnxruntime.so.1, nor do lib/, lib64/, capi/ and onnxruntime/capi/ in it"

/* The library in a folder; of several the one whose name comes last. */
bool ort_places_in(const char *folder, char *out, size_t size);
/* The library of a folder, an archive, what was installed, a wheel or its package.
 * tests/deps.sh looks for ORT_HOME's in the same places. */
bool ort_places_find(const char *home, char *out, size_t size);

#endif
