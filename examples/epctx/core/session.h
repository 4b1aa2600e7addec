/* A model loaded and ready to run on the reference NPU: the EPContext nodes in order, and memory
 * for the values that go from one to the next. */
#ifndef EPCTX_CLI_SESSION_H
#define EPCTX_CLI_SESSION_H

#include "cli.h"

/* A tensor of fixed size that flows through the main graph. */
typedef struct session_value {
    epctx_value type;
    uint8_t *data;
    size_t size;
    bool made; /* by an input, an initializer or a node; while the order is checked */
} session_value;

/* One EPContext node with its arguments. */
typedef struct session_step {
    const epctx_bound *bound;
    epctx_str *names; /* of its inputs */
    epctx_span *inputs;
    epctx_memory *outputs;
} session_step;

typedef struct session {
    epctx_arena arena; /* owns everything below but model and loaded */
    epctx_backend backend;
    epctx_model model;
    epctx_loaded loaded;
    epctx_map names; /* of values */
    session_value *values;
    size_t value_count;
    session_step *steps;
    session_value **inputs; /* of the model, without initializers */
    size_t input_count;
    session_value **outputs;
    size_t output_count;
    void *scratch;
    size_t scratch_size;
    bool compiled; /* the file was an ordinary model, compiled in memory */
} session;

/* Opens an EPContext model, or an ordinary model and compiles it without writing anything. `source`
 * (may be NULL) is the model that a weightless one takes its weights from. Close it also after a
 * failure. */
epctx_status session_open(session *out, const char *file, const char *source, epctx_error *error);
epctx_status session_run(session *s, epctx_error *error);
void session_close(session *s);

#endif
