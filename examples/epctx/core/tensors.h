/* Input and output tensors of `epctx run`: made, read, written, summed up. */
#ifndef EPCTX_CLI_TENSORS_H
#define EPCTX_CLI_TENSORS_H

#include "session.h"

typedef struct tensor_list {
    session_value **values;
    size_t count;
} tensor_list;

/* `count` values without type or data; false: no memory. */
bool tensors_make_list(tensor_list *out, size_t count, epctx_arena *arena);
/* Gives a value name, type and memory, copied or made in `arena`; false: no memory, or dims that no
 * tensor has. */
bool tensors_describe(session_value *value, epctx_str name, int32_t elem_type, const int64_t *dims,
                      size_t rank, epctx_arena *arena);
/* Fills input number `index` with pseudo-random elements; the same seed gives the same bytes. */
void tensors_fill(const session_value *value, uint64_t seed, size_t index);
/* Reads DIR/input_<i>.bin into every input. */
epctx_status tensors_read(const tensor_list *inputs, const char *folder, epctx_error *error);
/* Writes io.txt and output_<i>.bin, and input_<i>.bin when asked; makes the folder. */
epctx_status tensors_write(const tensor_list *inputs, const tensor_list *outputs,
                           const char *folder, bool with_inputs, epctx_error *error);
/* Inputs and outputs in one file, for another process of this machine. */
epctx_status tensors_save(const char *path, const tensor_list *inputs, const tensor_list *outputs,
                          epctx_error *error);
/* The same back, in memory of `arena`. */
epctx_status tensors_restore(const char *path, epctx_arena *arena, tensor_list *inputs,
                             tensor_list *outputs, epctx_error *error);
/* Element `index` as a number; false for types that have none here. */
bool tensors_element(const session_value *value, size_t index, double *out);
/* The same of an integer or a bool, exact: a negative number as its bits. */
bool tensors_integer(const session_value *value, size_t index, uint64_t *out, bool *negative);
/* " float32[1,2]" */
void tensors_print_type(const epctx_value *type);
/* One line: type, smallest, largest, mean, first elements. */
void tensors_print(const session_value *value, size_t index);
/* The same as an element of an array. */
void tensors_put_json(json_writer *w, const session_value *value);

#endif
