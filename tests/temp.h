/* Folders that tests may fill. The program defines _XOPEN_SOURCE 700 first. */
#ifndef EPCTX_TEST_TEMP_H
#define EPCTX_TEST_TEMP_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEST_TEMP = 120 }; /* bytes of a folder's path */

/* Makes an empty folder of its own in $TMPDIR, else in /tmp. tests/run gives every program a TMPDIR
 * and removes it, so that nothing stays behind however the program ends. */
static inline bool test_temp(char folder[TEST_TEMP]) {
    const char *in = getenv("TMPDIR");
    if (in == NULL || in[0] == '\0' || strlen(in) > TEST_TEMP - 20) in = "/tmp";
    snprintf(folder, TEST_TEMP, "%s/epctx_XXXXXX", in);
    return mkdtemp(folder) != NULL;
}

#endif
