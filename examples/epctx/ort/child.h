/* The child process of --ort: the only part of the tool that knows ONNX Runtime's API. */
#ifndef EPCTX_CLI_ORT_CHILD_H
#define EPCTX_CLI_ORT_CHILD_H

#include "anyep.h"
#include "driver.h"

#include <string.h>

typedef struct child {
    const anyep_job *job;
    const anyep_settings *set;
    anyep_board *board;
    /* Of the settings' EPs; ep_count 0: ORT's CPU EP alone. */
    const OrtEpDevice *devices[ANYEP_MOST_EPS]; /* NULL: an EP inside ORT without devices */
    ort_spec specs[ANYEP_MOST_EPS];             /* what a session needs of each */
    size_t ep_count;
} child;

/* For the report, if this should be the last that is heard of the child. */
void child_doing(child *c, const char *format, ...);
/* Both return false: with a text, and with what ORT said last. */
bool child_fail(child *c, const char *format, ...);
bool child_refused(child *c);
/* Opens ONNX Runtime, and the EPs if there are any. */
bool child_open(child *c);
ort_spec child_spec(const child *c);
/* Whether it is no pipe, which ORT would wait for. One that is not there is ORT's to tell. */
bool child_is_file(child *c, const char *file);
/* Makes `file` the spec's model, after its config is complete. */
bool child_model(child *c, const char *file, ort_spec *spec);

/* devices.c */
void child_describe(child *c);
bool child_list(child *c);
/* compile.c */
bool child_compile(child *c);
/* loaded.c: fills board->libraries. */
void child_note_libraries(child *c);
/* run.c */
bool child_run(child *c);

#endif
