/* verdicts.c - what ONNX Runtime says to models, one path per line of standard input.
 *
 *     verdicts ANY_EP [KEY VALUE]...
 *
 * Prints one line for each: "PATH <tab> CODE <tab> MESSAGE", CODE 0 when a session came about. The
 * session has the CPU EP and ANY_EP (any_ep.c), for the EPContext nodes, and the session options.
 */
#define _GNU_SOURCE
#include <onnxruntime_c_api.h>

#include "examples/epctx/ort/driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_line(const char *path) {
    char *c;
    for (c = ort_text; *c; c++)
        if ((unsigned char)*c < 0x20) *c = ' ';
    printf("%s\t%d\t%s\n", path, ort_code, ort_text);
    fflush(stdout);
}

int main(int argc, char **argv) {
    char path[4096];
    ort_spec spec;
    OrtSession *session;
    if (argc < 2 || argc % 2 != 0 || !ort_open(false) ||
        !ort_ok(ort->RegisterExecutionProviderLibrary(ort_env, "any", argv[1]))) {
        fprintf(stderr, "verdicts: %s\n",
                argc < 2 || argc % 2 != 0 ? "usage: verdicts ANY_EP [KEY VALUE]..." : ort_text);
        return 2;
    }
    memset(&spec, 0, sizeof spec);
    spec.ep = "AnyEP";
    spec.allow_cpu = true;
    spec.path = path;
    spec.config = (const char *const *)(argv + 2);
    while (fgets(path, sizeof path, stdin)) {
        path[strcspn(path, "\n")] = '\0';
        if (ort_session(&spec, &session)) ort->ReleaseSession(session);
        print_line(path);
    }
    fflush(stdout);
    _Exit(0); /* what ORT releases at the end takes longer than a model */
}
