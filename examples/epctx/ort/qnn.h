/* Qualcomm's own library, which tells what is in a context binary of QNN: it is asked in a child
 * process, and what it tells comes back as bytes that are read like any hostile input. */
#ifndef EPCTX_CLI_QNN_H
#define EPCTX_CLI_QNN_H

#include "anyep.h"

#include "binary/binary.h"

/* QNN_TOLD_MOST: bytes that a child may tell. QNN_NAME_MOST: of a name. */
enum { QNN_TOLD_MOST = 16 << 20, QNN_NAME_MOST = 4096 };

/* What one child is to ask, and where it puts the answer: memory that it shares with the tool. */
typedef struct qnn_question {
    const char *library; /* path */
    epctx_span binary;
    uint64_t error; /* of the library; 0: none */
    uint32_t api[3];
    uint32_t used; /* of `told` */
    uint8_t told[QNN_TOLD_MOST];
} qnn_question;

/* In the child: fills in the question `user`. */
bool qnn_ask(void *user, anyep_board *board);

/* Reads what was told into `facts`; false, with nothing changed: it is no answer, or there is no
 * memory. */
bool qnn_read(epctx_span told, epctx_arena *arena, binary_facts *facts);

#endif
