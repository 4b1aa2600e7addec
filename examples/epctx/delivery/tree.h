/* tree.h - what is in a folder and in those below it. */
#ifndef EPCTX_CLI_TREE_H
#define EPCTX_CLI_TREE_H

#include "core/cli.h"

typedef enum tree_kind {
    TREE_FILE,      /* a regular file, or a link to one in the folder */
    TREE_FOLDER,    /* its entries are in the list, too */
    TREE_LINK,      /* a link to a folder or out of the folder, or a broken one; not followed */
    TREE_OTHER,     /* a pipe, a device ... */
    TREE_UNREADABLE /* a folder that cannot be listed */
} tree_kind;

typedef struct tree_entry {
    const char *path; /* with the folder in front */
    const char *name; /* relative to the folder */
    tree_kind kind;
    bool link; /* a file that is reached by a link */
    uint64_t size;
} tree_entry;

typedef struct tree {
    const char *folder;
    tree_entry *entries; /* sorted by name */
    size_t count;
} tree;

/* Lists a folder. Fails when it cannot be read at all. */
epctx_status tree_read(tree *out, const char *folder, epctx_arena *arena, epctx_error *error);
/* The entry of a name relative to the folder, "./" and doubled slashes ignored; NULL: none. */
const tree_entry *tree_find(const tree *t, epctx_str name);
/* Whether a path is a folder, reached by a link or not. */
bool tree_is_folder(const char *path);
/* Whether a name ends so, e.g. with ".onnx", in any case. */
bool tree_ends(const char *name, const char *end);

#endif
