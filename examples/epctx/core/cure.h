/* cure.h - the command that cures a finding. It is told only where it was tried, in memory: the
 * finding is gone then, nothing new is found, and no context, reference or metadata is lost.
 *
 *     cures list;
 *     cures_begin(&list, file, &opts, &files);
 *     ... for each finding of the file: cures_command(&list, rule, node, &text) ...
 */
#ifndef EPCTX_CLI_CURE_H
#define EPCTX_CLI_CURE_H

#include "rules.h"

/* What is known of the cures of one file. */
typedef struct cures {
    const char *file;
    const epctx_check_opts *opts; /* by which it is judged; NULL: defaults */
    struct beside *files;         /* ops/beside.h: shared by all files of a command */
    /* private */
    struct {
        bool tried, helps, source; /* source: with the source model */
    } rules[RULE_COUNT];
    char source[EPCTX_PATH_MAX]; /* the source model; "": it is not known, or not there */
    const char *profile;         /* of the EP of nodes that do not name theirs; NULL: not known */
    bool looked;                 /* for these two */
} cures;

void cures_begin(cures *list, const char *file, const epctx_check_opts *opts, struct beside *files);
/* The command that cures a finding of `rule`, with the names quoted for a shell; false: none that
 * is known to help. */
bool cures_command(cures *list, int rule, epctx_str node, epctx_buffer *out);

#endif
