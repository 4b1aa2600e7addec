/* epctx.c - the implementation of epctx.h for this library. ORT reads and writes the models, so the
 * part that does (and nanopb with it) is left out: build with EPCTX_NO_WIRE everywhere. */
#define EPCTX_IMPLEMENTATION
#include "epctx.h"
