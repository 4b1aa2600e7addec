/* Who is asked what is in a context binary, besides the file itself. */
#ifndef EPCTX_CLI_ASKER_H
#define EPCTX_CLI_ASKER_H

#include "options.h"

#include "binary/binary.h"

/* Of --qnn-system, else of $EPCTX_QNN_SYSTEM, else beside the library of --ep: Qualcomm's library,
 * in a child process (ort/qnn.c). Without one `asker` answers nothing. What cannot be asked is
 * warned of on standard error. False: what is wrong with the command line was printed. */
bool cli_binary_asker(const cli_args *args, binary_asker *asker);

#endif
