/* Input and output tensors of `epctx run`: made, read, written, summed up. */
#ifndef EPCTX_CLI_TENSORS_H
#define EPCTX_CLI_TENSORS_H

#include "session.h"

/* Fills input number `index` with pseudo-random elements; the same seed gives the same bytes. */
void tensors_fill(const session_value *value, uint64_t seed, size_t index);
/* Reads DIR/input_<i>.bin into every input. */
epctx_status tensors_read(const session *s, const char *folder, epctx_error *error);
/* Writes io.txt and output_<i>.bin, and input_<i>.bin when asked; makes the folder. */
epctx_status tensors_write(const session *s, const char *folder, bool inputs, epctx_error *error);
/* One line: type, smallest, largest, mean, first elements. */
void tensors_print(const session_value *value, size_t index);
void tensors_print_json(const session_value *value);

#endif
