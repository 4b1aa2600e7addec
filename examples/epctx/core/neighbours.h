/* neighbours.h - may this file be written, and who needs it? Whatever replaces or moves files asks
 * here before it writes anything, so that no -f breaks another model. Models are looked for beside
 * what is written and beside the file that is there, and in the two folders above these. */
#ifndef EPCTX_CLI_NEIGHBOURS_H
#define EPCTX_CLI_NEIGHBOURS_H

#include "cli.h"

/* What is about to happen. */
typedef struct neighbours_plan {
    const epctx_output_file *files; /* new files; one that is there with the same bytes stays. */
    size_t file_count;              /* Without parts it is not compared */
    const char *const *models;      /* models that are written: what they need now may go */
    size_t model_count;
    const char *source;  /* that is read, changed and may be replaced by the result; may be NULL */
    bool contexts_apart; /* which model beside it has its context in one of `files` is asked for
                            elsewhere: here it counts only if it needs that in another way; */
    const char *const *apart; /* so do these, in whatever folder */
    size_t apart_count;
    const char *cure; /* what to do instead; default: another name */
} neighbours_plan;

/* EPCTX_ERR_PATH with the name of a model that needs one of the files, if there is one beside or
 * above the models or that file. */
epctx_status neighbours_allow(const neighbours_plan *plan, epctx_error *error);
/* The same for one file that is no model. */
epctx_status neighbours_allow_file(const char *path, epctx_error *error);

#endif
