/* lint_file.c - the files that a model needs. */
#include "lint_internal.h"

#include "around.h"
#include "needs.h"

/* Whether ".." is the only problem of a name; `stays` gets whether it lexically stays inside its
 * folder. */
static epctx_status lint_only_dots(linter *l, epctx_str name, bool *only, bool *stays) {
    epctx_str rest = name;
    char *copy = epctx_arena_copy(&l->arena, name);
    int64_t depth = 0;
    size_t i = 0;
    *only = false;
    *stays = true;
    if (copy == NULL) return ops_nomem(&l->arena, l->error);
    while (i <= name.size) {
        size_t start = i;
        while (i < name.size && name.data[i] != '/' && name.data[i] != '\\') i++;
        if (i - start == 2 && memcmp(name.data + start, "..", 2) == 0) {
            depth--;
            *only = true;
            memcpy(copy + start, "up", 2);
        } else if (i > start && !(i - start == 1 && name.data[start] == '.')) {
            depth++;
        }
        *stays = *stays && depth >= 0;
        i++;
    }
    rest.data = copy;
    *only = *only && epctx_path_check(rest, NULL) == EPCTX_OK;
    return EPCTX_OK;
}

/* ORT accepts a location with '..' if it leads back into the folder. */
static epctx_status lint_detour(linter *l, epctx_dependency *file) {
    const epctx_io *io = epctx_model_io(l->model);
    uint32_t flags = l->model->path_flags | (l->opts != NULL ? l->opts->path_flags : 0);
    char path[EPCTX_PATH_MAX];
    epctx_file_info info;
    bool only;
    bool stays;
    OPS_TRY(lint_only_dots(l, file->name, &only, &stays));
    if (!only) return EPCTX_OK;
    if (io == NULL || (l->opts != NULL && l->opts->no_files)) {
        file->status = stays ? EPCTX_OK : EPCTX_ERR_PATH;
    } else if (epctx_path_find(io, epctx_str_of(file->folder), file->name,
                               flags | EPCTX_PATH_DETOURS, path, sizeof path, NULL) == EPCTX_OK &&
               io->stat_fn(io->user, path, &info, NULL) == EPCTX_OK) {
        file->path = epctx_arena_copy(&l->arena, epctx_str_of(path));
        file->size = info.size;
        file->status = EPCTX_OK;
    }
    return EPCTX_OK;
}

/* Lists the files of the model. */
epctx_status lint_list_files(linter *l) {
    size_t i;
    OPS_TRY((l->no_payloads ? epctx_model_files : needs_of_model)(
        l->model, l->opts, &l->arena, &l->files, &l->file_count, l->error));
    for (i = 0; i < l->file_count; i++) {
        epctx_dependency *file = &l->files[i];
        if (file->use == EPCTX_USE_INITIALIZERS) {
            OPS_TRY(lint_set(l, &l->external_files, file->name, (uint32_t)i));
            if (file->status == EPCTX_ERR_PATH && file->folder != NULL)
                OPS_TRY(lint_detour(l, file));
        }
    }
    return EPCTX_OK;
}

static void lint_join_path(char out[EPCTX_PATH_MAX], epctx_str folder, epctx_str name) {
    epctx_text text = epctx_text_of(out, EPCTX_PATH_MAX);
    char end = folder.size > 0 ? folder.data[folder.size - 1] : '/';
    epctx_text_put(&text, folder);
    if (end != '/' && end != '\\') epctx_text_put_char(&text, '/');
    epctx_text_put(&text, name);
}

/* The rule that an unusable file breaks. */
static epctx_rule lint_file_rule(const linter *l, const epctx_dependency *file) {
    const epctx_io *io = epctx_model_io(l->model);
    epctx_str tag = epctx_str_of("*/");
    if (file->name.size >= tag.size && memcmp(file->name.data, tag.data, tag.size) == 0)
        return EPCTX_RULE_MEMORY_LOCATION;
    if (epctx_path_check(file->name, NULL) != EPCTX_OK) return EPCTX_RULE_PATH_UNSAFE;
    if (file->folder == NULL) return EPCTX_RULE_NO_BASE;
    if (file->status == EPCTX_ERR_CONTEXT) return EPCTX_RULE_EXTERNAL_RANGE;
    if (file->status == EPCTX_ERR_NOT_FOUND) return EPCTX_RULE_FILE_MISSING;
    if (file->status == EPCTX_ERR_PATH) { /* no safe name gets it without an io */
        epctx_file_info info;
        char path[EPCTX_PATH_MAX];
        lint_join_path(path, epctx_str_of(file->folder), file->name);
        if (io->stat_fn(io->user, path, &info, NULL) == EPCTX_OK && info.kind == EPCTX_FILE_REGULAR)
            return info.size == 0 ? EPCTX_RULE_FILE_EMPTY : EPCTX_RULE_PATH_LINK;
    }
    return EPCTX_RULE_FILE_IRREGULAR;
}

/* Of a missing file, behind what is said of it: where it may be. */
static const char *lint_around(linter *l, const epctx_dependency *file) {
    enum { MOST_LOOKS = 16 }; /* each lists a folder */
    static const char *const words[] = {"%s", "%s; '%s' is there, in other letters",
                                        "%s; '%s' is there",
                                        "%s; '%s' is there: a download that did not end"};
    char found[EPCTX_PATH_MAX], text[EPCTX_PATH_MAX + 256];
    epctx_text out = epctx_text_of(text, sizeof text);
    around_kind kind;
    const char *all;
    if (l->looked++ >= MOST_LOOKS) return file->problem;
    kind = around_find(epctx_model_io(l->model), file->folder, file->name, l->model->path_flags,
                       found);
    if (kind == AROUND_NOWHERE) return file->problem;
    epctx_text_put_format(&out, words[kind], file->problem, found);
    all = epctx_arena_copy(&l->arena, epctx_text_str(&out));
    return all != NULL ? all : file->problem;
}

static void lint_file(linter *l, const epctx_dependency *file) {
    epctx_str name = file->name;
    /* What a binary refers to is needed by the attribute that has the binary. */
    const char *attribute =
        strcmp(file->attribute, NEEDS_WEIGHTS) == 0 ? "ep_cache_context" : file->attribute;
    if (file->use == EPCTX_USE_SOURCE_MODEL && !file->required) {
        if (memchr(name.data, '/', name.size) != NULL ||
            memchr(name.data, '\\', name.size) != NULL) {
            lint_say(l, EPCTX_RULE_BUILD_PATH, file->node, file->attribute,
                     "is '%S': a folder of the build machine", &name);
        }
    }
    if (file->use == EPCTX_USE_CONTEXT && epctx_lint_is_payload(name)) return; /* told: its node */
    if (!file->required)
        return; /* a sidecar, or a file of a training graph: no session misses it */
    if (file->status != EPCTX_OK) {
        epctx_rule rule = lint_file_rule(l, file);
        /* ORT opens no file for an initializer that nothing reads. */
        bool idle = file->use == EPCTX_USE_INITIALIZERS && rule != EPCTX_RULE_MEMORY_LOCATION &&
                    epctx_map_get(&l->idle_files, name) == file->users &&
                    (rule == EPCTX_RULE_FILE_EMPTY ||
                     epctx_map_get(&l->body_files, name) == EPCTX_MAP_NONE);
        l->demoted = idle ? EPCTX_RULE_IDLE_INITIALIZER : EPCTX_RULE_COUNT;
        lint_say(l, rule, file->node, attribute, "%s",
                 rule == EPCTX_RULE_FILE_MISSING ? lint_around(l, file) : file->problem);
        l->demoted = EPCTX_RULE_COUNT;
    } else if (file->use == EPCTX_USE_INITIALIZERS && ops_has_dots(name) &&
               epctx_path_check(name, NULL) != EPCTX_OK) {
        lint_say(l, EPCTX_RULE_DETOUR, file->node, file->attribute,
                 "is '%S': ORT since 1.30 follows '..' inside the model's folder", &name);
    }
    if (memchr(name.data, '\\', name.size) != NULL) {
        lint_say(l, EPCTX_RULE_BACKSLASH, file->node, file->attribute,
                 "is '%S': a backslash separates folders on Windows only", &name);
    }
}

/* Behind "node '...': attribute '...': ", which a finding names on its own. */
static const char *lint_behind_names(const epctx_error *why) {
    const char *text = why->message;
    const char *const ends[] = {why->node, why->attribute};
    size_t i;
    for (i = 0; i < 2; i++) {
        const char *found = ends[i][0] != '\0' ? strstr(text, ends[i]) : NULL;
        if (found != NULL && strncmp(found + strlen(ends[i]), "': ", 3) == 0)
            text = found + strlen(ends[i]) + 3;
    }
    return text;
}

/* Loading finds this only where an EP's own backend looks at the stamp. */
static void lint_binary(linter *l) {
    const char *given = l->opts != NULL ? l->opts->context_file_path : NULL;
    epctx_model nameless = *l->model; /* so that the message does not begin with a long path */
    epctx_error why;
    if (l->opts != NULL && l->opts->no_files) return;
    epctx_error_clear(&why);
    nameless.path = "";
    if (epctx_model_check_binary(&nameless, given != NULL ? given : l->model->path, &why) ==
        EPCTX_ERR_VERSION)
        lint_say(l, EPCTX_RULE_STALE_BINARY, epctx_str_of(why.node), "ep_cache_context", "%s",
                 lint_behind_names(&why));
}

void lint_files(linter *l) {
    const char *path_given = l->opts != NULL ? l->opts->context_file_path : NULL;
    epctx_str model_file =
        epctx_path_file(epctx_str_of(path_given != NULL ? path_given : l->model->path));
    size_t i;
    for (i = 0; i < l->file_count; i++) {
        /* An empty path or location is reported with the node or initializer. */
        if (l->files[i].name.size > 0) lint_file(l, &l->files[i]);
    }
    for (i = 0; i < l->nodes.count; i++) {
        const lint_judged *judged = lint_judged_at(l, i);
        epctx_str name = judged->node.ep_cache_context;
        bool path = judged->ours && judged->node.embed_mode == 0 && name.size > 0;
        if (path && model_file.size > 0 &&
            !epctx_profile_name_fits(judged->profile->binary, epctx_path_file(name), model_file)) {
            lint_say(l, EPCTX_RULE_BINARY_NAME, judged->node.name, "ep_cache_context",
                     "is '%S', but EP '%s' writes '%s'", &name, judged->profile->name,
                     judged->profile->binary);
        }
        if (path && (judged->profile->traits & EPCTX_TRAIT_NO_DOTS) != 0 && ops_has_dots(name)) {
            lint_say(l, EPCTX_RULE_DOTS, judged->node.name, "ep_cache_context",
                     "is '%S': EP '%s' refuses '..' also inside a name", &name,
                     judged->profile->name);
        }
    }
    lint_binary(l);
}
