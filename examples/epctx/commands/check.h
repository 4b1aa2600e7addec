/* check.h - what the ways of judging a compiled model share: `epctx check`. */
#ifndef EPCTX_CLI_CHECK_H
#define EPCTX_CLI_CHECK_H

#include "binary/context.h"
#include "core/chip.h"
#include "core/json_writer.h"
#include "info_binary.h"
#include "ops/state.h"

/* Scripts rely on them; 2 is a wrong command line. */
enum { CHECK_FITS = 0, CHECK_RECOMPILE = 1, CHECK_UNSUPPORTED = 3, CHECK_UNKNOWN = 4 };

typedef struct check_work {
    const char *file;
    const char *ep;      /* only this EP's entry; NULL: the only one there is */
    const char *against; /* the machine's string; NULL: that of our own EP, if it is its entry */
    const epctx_profile *profile;
    const char *source;  /* the source model; NULL: where the build stamp says */
    const char *options; /* what the compiler would be asked for now, for the stamp's hash */
    const char *chip;    /* compare with this chip instead */
    bool fresh;
    bool ort_code; /* ONNX Runtime's number is the exit code */
    bool json;
    json_writer *out; /* with --json */
    info_out where;   /* of one file or several */
    size_t told;      /* files so far */
    binary_asker asker;
    binary_contexts contexts;
} check_work;

/* -- check_put.c -- */

void check_begin_json(check_work *work);
void check_put_entry(const check_work *work, const epctx_compat_entry *entry);
void check_json_compat(json_writer *w, epctx_compat compat);
const char *check_compat_name(epctx_compat compat);
/* The exit code. */
int check_code_of(const check_work *work, epctx_compat compat);

/* -- check_chip.c -- */

/* --chip: was each node made for this one? */
int check_chip(check_work *work, const epctx_model *model, const epctx_state *state);

#endif
