/* given.h - the options that a model was compiled with: as its build stamp may tell them, and what
 * the stamp of a model says of them. */
#ifndef EPCTX_CLI_GIVEN_H
#define EPCTX_CLI_GIVEN_H

#include "cli.h"

/* Options (key, value, ..., NULL) as they go into a stamp, in the order of their keys, so that the
 * same options give the same bytes on every machine: of an absolute path only the name of the file
 * stays; a value that may be a secret, is no text or is longer than GIVEN_MOST_VALUE is left out
 * (NULL), and so is an option whose key is no text or longer than that. NULL: no memory. */
enum { GIVEN_MOST_VALUE = 1000 };
const char *const *given_tell(const char *const *options, epctx_arena *arena);

typedef struct given_option {
    bool session;      /* of the session; else of the EP */
    bool needed;       /* again when the model is loaded; false, too, when nobody knows */
    const char *key;   /* as it was given */
    const char *value; /* NULL: it is not told */
} given_option;

/* What the stamp of one EP says. */
typedef struct given_build {
    const char *source, *device; /* device NULL: not told */
    bool known;                  /* it is a fact what this EP needs again */
    given_option *options;
    size_t count, needed; /* needed: of them */
} given_build;

/* The EPs of a model with options or a device in their stamps, the first GIVEN_MOST_BUILDS; false:
 * no memory. */
enum { GIVEN_MOST_BUILDS = 16 };
bool given_read(const epctx_model *model, epctx_arena *arena, given_build **builds, size_t *count);

/* "key=value key=value; session: key=value": all options, or those that are needed again. */
void given_put(FILE *out, const given_build *build, bool only_needed);
/* The member "builds" of a JSON object. */
void given_json(json_writer *w, const given_build *builds, size_t count);

/* The first difference between the options in the stamp of `source` and those given now, as
 * text; NULL: it tells none. */
const char *given_changes(const epctx_model *model, const char *source,
                          const char *const *ep_options, const char *const *session_options,
                          epctx_arena *arena);

/* After the failure to load or run `file`: what its stamps say that it was compiled with, unless
 * the same was given now. */
void given_tell_failed(const char *file, const char *const *ep_options,
                       const char *const *session_options);

#endif
