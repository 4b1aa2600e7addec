/* epctx.c - the implementation of epctx.h for this library. ORT reads and writes the models, so the
 * part that does (and nanopb with it) is left out: build with EPCTX_NO_WIRE everywhere. The lock is
 * for the workspace that sharing sessions have in common. */
#if defined(_WIN32)
#define EPCTX_WIN32_LOCK
#else
#define EPCTX_PTHREAD_LOCK
#endif
#define EPCTX_IMPLEMENTATION
#include "epctx.h"
