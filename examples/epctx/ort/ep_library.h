/* LIBRARY[:NAME], by which the tool and the conformance suite are told a plugin EP. */
#ifndef EPCTX_CLI_EP_LIBRARY_H
#define EPCTX_CLI_EP_LIBRARY_H

#include "epctx.h"

typedef struct ep_library {
    const char *path; /* absolute; a link stays one. NULL: there is no such file */
    const char *text; /* the word, without :NAME */
    const char *name; /* behind the colon; NULL: there is none */
    /* What the library is registered as: its own name, or the one that its vendor documents; NULL:
     * nothing is known. */
    const char *registration;
} ep_library;

/* The texts are the arena's. False: no memory. */
bool ep_library_read(const char *word, epctx_arena *arena, ep_library *out);

#endif
