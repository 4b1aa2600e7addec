/* each.h - commands that take several files, and folders for what is in them and below. */
#ifndef EPCTX_CLI_EACH_H
#define EPCTX_CLI_EACH_H

#include "core/options.h"
#include "core/json_writer.h"

/* What of a folder is worth a look; a file that is named itself always is. */
typedef enum each_sort {
    EACH_MODEL_OR_BINARY, /* *.onnx, and context binaries by their bytes */
    EACH_COMPILED         /* *.onnx with an EPContext node, and what cannot be read */
} each_sort;

/* Several results are to be told apart. */
bool each_is_several(const cli_args *args);
/* Calls `fn` for each operand, and for each such file of a folder (`in_folder`). Returns the
 * highest exit code; `failed` is that of a folder without such files, or that cannot be read. */
int each_file(const cli_args *args, each_sort sort, int failed,
              int (*fn)(void *user, const char *file, bool in_folder), void *user);

/* The same for commands that change models, each in its place: one alone goes where the options
 * say, and `w` is NULL; else it is the array "models" of the report as JSON, or NULL. */
int each_change(const cli_args *args, int (*fn)(void *user, const char *file, json_writer *w),
                void *user);

#endif
