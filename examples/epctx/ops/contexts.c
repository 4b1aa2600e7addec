/* contexts.c - epctx_edit_embed and epctx_edit_extract as conversions like the others here. */
#include "contexts.h"

typedef epctx_status (*contexts_fn)(epctx_model *model, const epctx_convert_opts *opts,
                                    epctx_changes *changes, epctx_error *error);

static epctx_status contexts_changes(const epctx_changes *made, ops_changes *changes,
                                     epctx_arena *arena, epctx_error *error) {
    static const ops_change_kind kinds[EPCTX_CHANGE_COUNT] = {
        OPS_CHANGE_EMBEDDED, OPS_CHANGE_EXTRACTED, OPS_CHANGE_FOLLOWED, OPS_CHANGE_SKIPPED};
    size_t i;
    for (i = 0; i < made->count; i++) {
        const epctx_change *from = &made->items[i];
        const ops_change change = {kinds[from->kind], from->name, from->file, from->size,
                                   from->reason};
        OPS_TRY(ops_changes_put(changes, arena, &change, error));
    }
    for (i = 0; i < made->file_count; i++)
        OPS_TRY(ops_changes_put_file(changes, arena, &made->files[i], error));
    return EPCTX_OK;
}

static epctx_status contexts_run(contexts_fn function, epctx_model *model,
                                 const ops_convert_opts *opts, ops_changes *changes,
                                 epctx_error *error) {
    epctx_changes made;
    const size_t mark = epctx_edit_mark(model);
    epctx_status status = function(model, opts != NULL ? &opts->common : NULL, &made, error);
    if (changes == NULL) return status;
    memset(changes, 0, sizeof *changes);
    if (status != EPCTX_OK) return status;
    status = contexts_changes(&made, changes, &model->arena, error);
    if (status != EPCTX_OK) memset(changes, 0, sizeof *changes);
    return ops_end(model, mark, status, error);
}

epctx_status ops_embed(epctx_model *model, const ops_convert_opts *opts, ops_changes *changes,
                       epctx_error *error) {
    return contexts_run(epctx_edit_embed, model, opts, changes, error);
}

epctx_status ops_extract(epctx_model *model, const ops_convert_opts *opts, ops_changes *changes,
                         epctx_error *error) {
    return contexts_run(epctx_edit_extract, model, opts, changes, error);
}
