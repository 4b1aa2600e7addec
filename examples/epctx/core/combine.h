/* Lists on the command line: names with types, dimensions; plan and files of merge, split, wrap and
 * repair. */
#ifndef EPCTX_CLI_COMBINE_H
#define EPCTX_CLI_COMBINE_H

#include "ops/ops.h"
#include "output.h"

/* A value as the user writes it: NAME[:TYPE[DIMS]][/SCALE[/ZERO_POINT]]. */
typedef struct value_spec {
    epctx_value value; /* elem_type 0: no type given */
    bool quantized;
    float scale;
    int64_t zero_point;
} value_spec;

/* Reads values separated by commas into `arena`; says what is wrong otherwise. "" gives none.
 * `option` is for the message, `typed` wants a type everywhere. */
bool read_values(const char *option, const char *text, bool typed, epctx_arena *arena,
                 value_spec **values, size_t *count);
/* The element type called `name` ("float32", "uint8" ...), or 0. */
int32_t elem_type_of(epctx_str name);
/* The rest of a comma-separated list: the next part, or false at its end. A comma with a backslash
 * in front belongs to the part, and so does everything inside of []. */
bool next_part(const char **rest, epctx_arena *arena, epctx_str *part);

/* NAME=N of --dim, where NAME may be INPUT[AXIS]. */
typedef struct dim_spec {
    epctx_str name; /* ends with a zero byte */
    int64_t value;
} dim_spec;

/* All lists of --dim, a name once; says what is wrong otherwise, as of a name with two numbers. */
bool read_dim_lists(const cli_list *lists, epctx_arena *arena, dim_spec **dims, size_t *count);

/* Steps into the plan. With `parts` > 1 they say which model they are about. */
void tell_steps(output *out, const epctx_combined *combined, size_t parts);
/* Writes the model and its files where `out` says, or checks that it could; returns the exit
 * code. */
int write_combined(output *out, epctx_model *model, epctx_combined *combined);

#endif
