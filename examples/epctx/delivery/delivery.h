/* delivery.h - whole deliveries: does everything in a folder fit together? */
#ifndef EPCTX_CLI_DELIVERY_H
#define EPCTX_CLI_DELIVERY_H

#include "core/findings.h"
#include "tree.h"

/* Where the files of a model are searched, if its delivery has options that say so. */
typedef struct delivery_paths {
    struct delivery_paths *next;
    const char *model;    /* canonical */
    const char *context;  /* ep.context_file_path, or NULL */
    const char *external; /* session.model_external_initializers_file_folder_path, or NULL */
} delivery_paths;

/* Those of all deliveries in a folder, in memory of the arena. */
delivery_paths *delivery_read_paths(const tree *files, epctx_arena *arena);
/* The folder of the delivery that a file belongs to, which is no model; NULL: there is none. */
const char *delivery_around(const char *file, epctx_arena *arena);
/* Judges the folders of ORT GenAI and the model packages in a folder, each as a whole; a finding's
 * file is the JSON file that it starts at. False: there are none. */
bool delivery_lint(findings *out, const tree *files);

#endif
