/* package_lint.c - a model package of ONNX Runtime: manifest.json, its components and variants, and
 * the assets that they share (model_package/README.md in ORT's tree). */
#include "delivery_internal.h"
#include "core/session_keys.h"
#include "facts/facts.h"

#ifndef EPCTX_CLI_NO_PACKAGE
#include <sodium.h>
#endif
#include <string.h>

enum { MOST_VARIANTS = 1024, HASH_DIGITS = 64 };

/* A set of files in shared_assets, or where the manifest says. */
typedef struct asset {
    epctx_str hex;
    const char *path;
    bool used;
} asset;

typedef struct variant {
    epctx_str component, name;
    epctx_str where; /* COMPONENT/NAME */
    const json *body;
    const char *folder;
    bool exists;
    epctx_str ep, device, compatibility;
    bool genai;            /* has a genai_config.json */
    bool compiled;         /* has EPContext nodes */
    bool named;            /* by a node of it: its EP has this name */
    delivery_model opened; /* `model`, where `open` */
    bool open;
    bool disagree;               /* its models store different strings */
    epctx_str found;             /* the string that a model stores */
    const char *model;           /* model_file, or NULL */
    const delivery_paths *paths; /* of `model` */
} variant;

typedef struct package {
    delivery *d;
    const char *root;
    bool portable;
    asset *assets;
    size_t asset_count;
    variant *variants;
    size_t count;
    size_t components;
    epctx_str nothing;
} package;

static bool is_there(const char *path, epctx_file_kind kind) {
    const epctx_io *io = epctx_io_files();
    epctx_file_info info;
    return path != NULL && io->stat_fn(io->user, path, &info, NULL) == EPCTX_OK &&
           info.kind == kind;
}

/* -- keys and types -- */

/* "key:s key:o ...": s text, o an object, - anything. */
static void check_keys(package *p, const json *object, const char *keys, epctx_str where,
                       const char *what) {
    const json *member;
    for (member = object->first; member != NULL; member = member->next) {
        epctx_str rest = epctx_str_of(keys), kind = epctx_str_of(NULL);
        bool known = false;
        while (!known && rest.data != NULL && rest.size > 0) {
            kind = epctx_str_cut(&rest, ' ');
            known = epctx_str_eq(epctx_str_cut(&kind, ':'), member->key);
        }
        if (!known)
            delivery_say(p->d, DELIVERY_P_SCHEMA, where, "%s has the unknown key '%S'", what,
                         &member->key);
        else if ((kind.data[0] == 's' && member->kind != JSON_STRING) ||
                 (kind.data[0] == 'o' && member->kind != JSON_OBJECT))
            delivery_say(p->d, DELIVERY_P_SCHEMA, where, "%s: '%S' is not %s", what, &member->key,
                         kind.data[0] == 's' ? "text" : "an object");
    }
}

/* "1.0", or 1 as a number. */
static void check_version(package *p, const json *root) {
    const json *version = json_get(root, "schema_version");
    epctx_str rest, major;
    uint64_t number = 0;
    if (version == NULL) {
        delivery_say(p->d, DELIVERY_P_SCHEMA, p->nothing, "schema_version is missing");
        return;
    }
    rest = version->text;
    major = epctx_str_cut(&rest, '.');
    if ((version->kind != JSON_STRING && version->kind != JSON_NUMBER) ||
        !epctx_str_number(major, &number) || (rest.data != NULL && rest.size == 0))
        delivery_say(p->d, DELIVERY_P_SCHEMA, p->nothing,
                     "schema_version is not of the form \"1.0\"");
    else if (number != 1)
        delivery_say(p->d, DELIVERY_P_SCHEMA, p->nothing,
                     "schema_version is %u, of which ORT 1.31 knows only 1", number);
}

/* -- paths -- */

/* Whether a name is a reference to an asset: "sha256:HEX" or "sha256:HEX/FILE". */
static bool is_reference(epctx_str name) {
    return epctx_str_starts(name, "sha256:");
}

static bool is_hex(epctx_str text) {
    size_t i;
    for (i = 0; i < text.size; i++)
        if (strchr("0123456789abcdef", text.data[i]) == NULL || text.data[i] == '\0') return false;
    return text.size == HASH_DIGITS;
}

static asset *find_asset(package *p, epctx_str hex) {
    size_t i;
    for (i = 0; i < p->asset_count; i++)
        if (epctx_str_eq(p->assets[i].hex, hex)) return &p->assets[i];
    return NULL;
}

/* The path that a reference leads to; NULL after a finding. */
static const char *follow(package *p, epctx_str name, epctx_str where) {
    epctx_str rest = name, hex;
    asset *found;
    rest.data += 7;
    rest.size -= 7;
    hex = epctx_str_cut(&rest, '/');
    found = is_hex(hex) ? find_asset(p, hex) : NULL;
    if (found == NULL) {
        delivery_say(p->d, DELIVERY_P_ASSET, where,
                     is_hex(hex) ? "'%S' is no asset of the package"
                                 : "'%S' is not sha256: and 64 lower-case digits",
                     &name);
        return NULL;
    }
    found->used = true;
    return rest.size > 0 ? delivery_join(p->d, found->path, rest) : found->path;
}

/* A path in a JSON file, against the folder `base`; NULL after a finding that it has none. Outside
 * of a portable package is a finding, too. */
static const char *resolve(package *p, const char *base, epctx_str name, epctx_str where) {
    if (is_reference(name)) return follow(p, name, where);
    if (p->portable && (delivery_is_absolute(name) || delivery_climbs(name)))
        delivery_say(p->d, DELIVERY_P_PORTABLE, where,
                     "the path '%S' is absolute or has a '..', but the layout is portable", &name);
    return name.size > 0 && name.data[0] == '/' ? epctx_arena_copy(p->d->arena, name)
                                                : delivery_join(p->d, base, name);
}

/* -- the manifest and its components -- */

static epctx_str join_names(package *p, epctx_str a, epctx_str b) {
    char *folder = epctx_arena_copy(p->d->arena, a);
    return epctx_str_of(folder != NULL ? delivery_join(p->d, folder, b) : NULL);
}

static void add_variant(package *p, epctx_str component, const json *body, const char *folder) {
    const json *given = json_get(body, "variant_directory");
    variant *v;
    if (p->count == MOST_VARIANTS) return;
    v = &p->variants[p->count];
    v->component = component;
    v->name = body->key;
    v->where = join_names(p, component, body->key);
    v->body = body;
    if (body->kind != JSON_OBJECT) {
        delivery_say(p->d, DELIVERY_P_SCHEMA, v->where, "is not an object");
        return;
    }
    p->count++;
    check_keys(p, body,
               "variant_directory:s ep:s device:s compatibility_string:s executor_info:o "
               "additional_metadata:-",
               v->where, "the variant");
    v->folder = resolve(
        p, folder, given != NULL && given->kind == JSON_STRING ? given->text : v->name, v->where);
    v->exists = is_there(v->folder, EPCTX_FILE_FOLDER);
    if (!v->exists)
        delivery_say(p->d, DELIVERY_P_FOLDER, v->where, "its folder%s does not exist",
                     given == NULL ? ", which has its name because variant_directory is not given,"
                                   : "");
    v->genai =
        v->exists && is_there(delivery_join(p->d, v->folder, epctx_str_of("genai_config.json")),
                              EPCTX_FILE_REGULAR);
    v->ep = delivery_text(body, "ep");
    v->device = delivery_text(body, "device");
    v->compatibility = delivery_text(body, "compatibility_string");
}

static void read_component(package *p, const json *value) {
    const epctx_str name = value->key;
    const char *folder = p->root, *path;
    const json *body = value, *variants, *one;
    if (value->kind == JSON_STRING) {
        path = resolve(p, p->root, value->text, name);
        if (is_there(path, EPCTX_FILE_FOLDER)) {
            folder = path;
            path = delivery_join(p->d, folder, epctx_str_of("component.json"));
        } else if (path != NULL) {
            epctx_str parent = epctx_path_folder(epctx_str_of(path));
            folder = epctx_arena_copy(p->d->arena, parent);
        }
        if (!is_there(path, EPCTX_FILE_REGULAR)) {
            delivery_say(p->d, DELIVERY_P_FOLDER, name,
                         "'%S' is neither a folder with component.json nor a file", &value->text);
            return;
        }
        body = delivery_read_json(p->d, path, DELIVERY_P_SCHEMA, NULL, NULL);
        if (body == NULL) return;
    } else if (value->kind != JSON_OBJECT) {
        delivery_say(p->d, DELIVERY_P_SCHEMA, name,
                     "the component is neither a path nor an object");
        return;
    }
    check_keys(p, body, "component_name:s variants:o additional_metadata:-", name, "the component");
    variants = json_get(body, "variants");
    if (variants == NULL) {
        delivery_say(p->d, DELIVERY_P_SCHEMA, name, "the component has no variants");
        return;
    }
    for (one = variants->kind == JSON_OBJECT ? variants->first : NULL; one != NULL; one = one->next)
        add_variant(p, name, one, folder);
}

static void add_asset(package *p, epctx_str hex, const char *path) {
    if (path == NULL || find_asset(p, hex) != NULL) return;
    p->assets[p->asset_count].hex = hex;
    p->assets[p->asset_count++].path = path;
}

/* Those of the manifest, then those in shared_assets. */
static bool read_assets(package *p, const json *root) {
    const json *given = json_get(root, "shared_assets"), *one;
    const tree *files = p->d->files;
    const epctx_str start = epctx_str_of("shared_assets/sha256-");
    size_t room = files->count + 1, i;
    for (one = given != NULL ? given->first : NULL; one != NULL; one = one->next) room++;
    p->assets = (asset *)delivery_alloc(p->d, room, sizeof *p->assets);
    if (p->assets == NULL) return false;
    for (one = given != NULL && given->kind == JSON_OBJECT ? given->first : NULL; one != NULL;
         one = one->next) {
        epctx_str hex = one->key;
        if (is_reference(hex)) {
            hex.data += 7;
            hex.size -= 7;
        }
        if (!is_reference(one->key) || !is_hex(hex) || one->kind != JSON_STRING)
            delivery_say(p->d, DELIVERY_P_SCHEMA, p->nothing,
                         "shared_assets: '%S' is not sha256: and 64 digits, with a path",
                         &one->key);
        else
            add_asset(p, hex, resolve(p, p->root, one->text, p->nothing));
    }
    for (i = 0; i < files->count; i++) {
        epctx_str name = epctx_str_of(files->entries[i].name);
        if (files->entries[i].kind != TREE_FOLDER || !epctx_str_starts(name, start.data)) continue;
        name.data += start.size;
        name.size -= start.size;
        if (is_hex(name)) add_asset(p, name, files->entries[i].path);
    }
    return true;
}

/* -- variants -- */

static bool is_known(const char *name, epctx_str ep, bool exact) {
    if (name == NULL) return false;
    return exact ? epctx_str_is(ep, name) : epctx_str_eq_nocase(ep, epctx_str_of(name));
}

/* Whether an EP registers under this name, or `exact` false: one in other letters. */
static bool is_ep(epctx_str ep, bool exact) {
    /* Facts that have names of EPs: as their own, or as the value of a key. */
    static const char *const kinds[][2] = {{"plain", NULL}, {"other", NULL}, {"ep", "registers"}};
    size_t count, i;
    const epctx_profile *all = epctx_profiles(&count);
    for (i = 0; i < count; i++)
        if (is_known(all[i].sources[0], ep, exact)) return true;
    for (i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        size_t at = 0;
        const fact *f;
        while ((f = facts_next(kinds[i][0], &at)) != NULL)
            if (is_known(kinds[i][1] != NULL ? fact_get(f, kinds[i][1]) : f->name, ep, exact))
                return true;
    }
    return false;
}

/* P4 */
static void check_ep(package *p, const variant *v) {
    const char end[] = "ExecutionProvider";
    const size_t size = sizeof end - 1;
    if (v->ep.size == 0) {
        delivery_say(p->d, DELIVERY_P_EP, v->where, "has no ep: ORT never selects it");
        return;
    }
    if (is_ep(v->ep, true)) return;
    if (is_ep(v->ep, false))
        delivery_say(p->d, DELIVERY_P_EP_CASE, v->where, "ep is '%S', which no EP spells so",
                     &v->ep);
    else if (v->named)
        return; /* a plugin EP may have any name */
    else if (v->ep.size <= size || memcmp(v->ep.data + v->ep.size - size, end, size) != 0)
        delivery_say(p->d, DELIVERY_P_EP, v->where, "ep is '%S', which is not the name of an EP",
                     &v->ep);
}

static bool is_device(epctx_str text) {
    return epctx_str_is(text, "cpu") || epctx_str_is(text, "gpu") || epctx_str_is(text, "npu");
}

static void check_device(package *p, const variant *v) {
    if (v->device.size > 0 && !is_device(v->device))
        delivery_say(p->d, DELIVERY_P_DEVICE, v->where, "device is '%S'", &v->device);
    /* ORT's CPU EP has no devices to compare with. */
    if (v->device.size == 0 && !epctx_str_is(v->ep, "CPUExecutionProvider"))
        delivery_say(p->d, DELIVERY_P_NO_DEVICE, v->where, "has no device");
}

/* P5: whether the contexts are for another device, if theirs is certain. */
static bool is_contrary(const variant *v, const epctx_profile *profile) {
    const char *devices = facts_of_ep(profile->name, "device");
    epctx_str rest = epctx_str_of(devices), device;
    if (!is_device(v->device) || devices == NULL) return false;
    while (fact_next_word(&rest, &device))
        if (epctx_str_eq(device, v->device)) return false;
    return true;
}

/* Whether the EP of the variant takes a node, in any of its versions, which have a profile each. */
static bool takes(const variant *v, const epctx_epnode *node) {
    const epctx_profile *profile = epctx_profile_of(v->ep);
    size_t count, i;
    const epctx_profile *all = epctx_profiles(&count);
    if ((profile->traits & EPCTX_TRAIT_ANY_EP) != 0)
        return node->source.size == 0 || epctx_str_eq(node->source, v->ep);
    for (i = 0; i < count; i++)
        if (facts_same_ep(profile->name, all[i].name) &&
            epctx_profile_claims(&all[i], node) != EPCTX_CLAIM_NO)
            return true;
    return false;
}

/* The string that a model stores for the EP; empty: none. */
static epctx_str stored_string(package *p, const epctx_model *model, epctx_str ep) {
    epctx_str key, value = epctx_str_of("");
    char *text = (char *)epctx_arena_alloc(p->d->arena, sizeof EPCTX_COMPAT_PREFIX + ep.size);
    if (text == NULL) return value;
    memcpy(text, EPCTX_COMPAT_PREFIX, sizeof EPCTX_COMPAT_PREFIX - 1);
    if (ep.size > 0) memcpy(text + sizeof EPCTX_COMPAT_PREFIX - 1, ep.data, ep.size);
    key = epctx_str_of(text);
    if (!epctx_model_metadata(model, key, &value)) return epctx_str_of("");
    value.data = epctx_arena_copy(p->d->arena, value);
    return value.data != NULL ? value : epctx_str_of("");
}

/* P10: the binaries of a model are in or below its folder, or that of ep.context_file_path. */
static void check_reach(package *p, const variant *v, const char *path, const delivery_node *node) {
    const epctx_str name = node->node.ep_cache_context;
    if (node->node.embed_mode != 0 || name.size == 0) return;
    if (v->paths != NULL && v->paths->context != NULL && strcmp(v->model, path) == 0)
        path = v->paths->context;
    if (delivery_is_absolute(name) || delivery_climbs(name))
        delivery_say(p->d, DELIVERY_P_REACH, v->where,
                     "the context binary '%S' is not in or below the folder of '%s'", &name, path);
}

/* One model of a variant. */
static void check_model(package *p, variant *v, const char *path) {
    bool contrary = false, foreign = false;
    delivery_model model;
    epctx_error error;
    epctx_str stored;
    size_t i;
    if (delivery_open(p->d, path, NULL, &model, &error) != EPCTX_OK) {
        delivery_close(&model); /* reported for the file itself */
        return;
    }
    for (i = 0; i < model.node_count; i++) {
        const delivery_node *node = &model.nodes[i];
        if (!takes(v, &node->node) && !foreign) {
            foreign = true;
            delivery_say(p->d, DELIVERY_P_SOURCE, v->where,
                         "ep is '%S', but '%s' has contexts of '%S'", &v->ep, path,
                         &node->node.source);
        } else if (is_contrary(v, node->profile) && !contrary) {
            contrary = true;
            delivery_say(p->d, DELIVERY_P_NO_DEVICE, v->where,
                         "device is '%S', but '%s' has contexts of '%S'", &v->device, path,
                         &node->node.source);
        }
        v->named = v->named || epctx_str_eq(node->node.source, v->ep);
        check_reach(p, v, path, node);
    }
    stored = stored_string(p, &model.model, v->ep);
    if (model.node_count > 0) {
        v->compiled = true;
        if (stored.size > 0 && v->found.size == 0) v->found = stored;
        v->disagree = v->disagree || (stored.size > 0 && !epctx_str_eq(stored, v->found));
    }
    delivery_close(&model);
}

/* P6 */
static void check_compatibility(package *p, const variant *v) {
    if (v->disagree)
        delivery_say(p->d, DELIVERY_P_NO_COMPAT, v->where,
                     "its models store different compatibility strings, of which one counts");
    if (v->compatibility.size == 0 && v->compiled)
        delivery_say(p->d, DELIVERY_P_NO_COMPAT, v->where,
                     "has EPContext models but no compatibility_string");
    else if (v->found.size > 0 && !v->disagree && !epctx_str_eq(v->found, v->compatibility))
        delivery_say(p->d, DELIVERY_P_COMPAT, v->where,
                     "compatibility_string is '%S', but its model stores '%S'", &v->compatibility,
                     &v->found);
}

/* P7 */
static void check_doubled(package *p, size_t at) {
    const variant *v = &p->variants[at];
    size_t i;
    for (i = 0; i < at; i++) {
        const variant *other = &p->variants[i];
        if (!epctx_str_eq(other->component, v->component) || !epctx_str_eq(other->ep, v->ep) ||
            !epctx_str_eq(other->device, v->device) ||
            !epctx_str_eq(other->compatibility, v->compatibility))
            continue;
        delivery_say(p->d, DELIVERY_P_DOUBLED, v->where,
                     "has ep, device and compatibility string of '%S', which comes first",
                     &other->name);
        return;
    }
}

/* -- executors -- */

/* All references to assets in a value. */
static void follow_all(package *p, const json *value, epctx_str where) {
    const json *child;
    if (value->kind == JSON_STRING && is_reference(value->text))
        (void)follow(p, value->text, where);
    for (child = value->first; child != NULL; child = child->next) follow_all(p, child, where);
}

static void check_texts(package *p, const variant *v, const json *info, const char *key) {
    const json *options = json_get(info, key), *one;
    if (options == NULL) return;
    if (options->kind != JSON_OBJECT)
        delivery_say(p->d, DELIVERY_P_EXECUTOR, v->where, "%s is not an object", key);
    for (one = options->kind == JSON_OBJECT ? options->first : NULL; one != NULL; one = one->next)
        if (one->kind != JSON_STRING)
            delivery_say(p->d, DELIVERY_P_EXECUTOR, v->where, "'%S' in %s is not text", &one->key,
                         key);
}

static void check_session_keys(package *p, const variant *v, const json *options) {
    const json *one;
    char ort[FACTS_RELEASE];
    facts_release("ort", ort);
    for (one = options != NULL && options->kind == JSON_OBJECT ? options->first : NULL; one != NULL;
         one = one->next) {
        cli_guess guess;
        const session_key_kind kind = session_key_judge(one->key, &guess);
        if (kind == SESSION_KEY_LATER)
            delivery_say_later(p->d, DELIVERY_P_SESSION_KEY, v->where, "", one->key,
                               session_key_find(one->key));
        if (kind == SESSION_KEY_MISSPELLED || kind == SESSION_KEY_UNKNOWN)
            delivery_say(p->d, DELIVERY_P_SESSION_KEY, v->where,
                         "'%S' is no session option of ONNX Runtime up to %s%s", &one->key, ort,
                         cli_guess_hint(&guess));
    }
}

static const char *option_path(package *p, const variant *v, const json *options, const char *key) {
    const epctx_str name = delivery_text(options, key);
    if (name.size == 0) return NULL;
    return is_reference(name) ? follow(p, name, v->where) : delivery_join(p->d, v->folder, name);
}

/* Where the options say that files are. */
static void note_paths(package *p, variant *v, const json *options) {
    const char *context = option_path(p, v, options, "ep.context_file_path");
    const char *external =
        option_path(p, v, options, "session.model_external_initializers_file_folder_path");
    if (v->model != NULL && (context != NULL || external != NULL))
        v->paths = delivery_add_paths(p->d, v->model, context, external);
}

/* What ORT needs for a session. */
static void check_ort(package *p, variant *v, const json *info) {
    const epctx_str model = delivery_text(info, "model_file");
    if (model.size == 0) {
        delivery_say(p->d, DELIVERY_P_EXECUTOR, v->where, "executor_info.ort has no model_file");
    } else if (!is_reference(model) && (delivery_is_absolute(model) || delivery_climbs(model))) {
        delivery_say(p->d, DELIVERY_P_EXECUTOR, v->where,
                     "model_file '%S' is outside of the variant", &model);
    } else {
        v->model = is_reference(model) ? follow(p, model, v->where)
                                       : delivery_join(p->d, v->folder, model);
        if (v->model != NULL && !is_there(v->model, EPCTX_FILE_REGULAR))
            delivery_say(p->d, DELIVERY_P_EXECUTOR, v->where, "model_file '%S' does not exist",
                         &model);
    }
    check_texts(p, v, info, "session_options");
    check_session_keys(p, v, json_get(info, "session_options"));
    check_texts(p, v, info, "provider_options");
    note_paths(p, v, json_get(info, "session_options"));
}

/* P8 */
static void check_executors(package *p, variant *v) {
    const json *infos = json_get(v->body, "executor_info"), *one;
    for (one = infos != NULL && infos->kind == JSON_OBJECT ? infos->first : NULL; one != NULL;
         one = one->next) {
        const json *info = one;
        if (one->kind == JSON_STRING) {
            const char *path = resolve(p, v->folder, one->text, v->where);
            if (path == NULL) continue;
            if (!is_there(path, EPCTX_FILE_REGULAR)) {
                delivery_say(p->d, DELIVERY_P_EXECUTOR, v->where,
                             "executor_info.%S: '%S' does not exist", &one->key, &one->text);
                continue;
            }
            info = delivery_read_json(p->d, path, DELIVERY_P_EXECUTOR, NULL, NULL);
            if (info == NULL) continue;
        } else if (one->kind != JSON_OBJECT) {
            delivery_say(p->d, DELIVERY_P_SCHEMA, v->where,
                         "executor_info.%S is neither a path nor an object", &one->key);
            continue;
        }
        follow_all(p, info, v->where);
        if (epctx_str_is(one->key, "ort")) check_ort(p, v, info);
    }
}

/* The models in the folder of a variant and the one that it names. */
static void check_models(package *p, variant *v) {
    bool seen = false;
    epctx_error error;
    tree files;
    size_t i;
    if (tree_read(&files, v->folder, p->d->arena, &error) != EPCTX_OK) return;
    for (i = 0; i < files.count; i++) {
        const tree_entry *entry = &files.entries[i];
        if (entry->kind != TREE_FILE || !tree_ends(entry->name, ".onnx")) continue;
        seen = seen || (v->model != NULL && strcmp(v->model, entry->path) == 0);
        check_model(p, v, entry->path);
    }
    if (!seen && is_there(v->model, EPCTX_FILE_REGULAR)) check_model(p, v, v->model);
}

/* P15: any variant of a component may be the one that runs. */
static void check_interface(package *p, size_t at) {
    variant *v = &p->variants[at];
    const char *why = NULL;
    epctx_error error;
    size_t i;
    if (v->genai || !is_there(v->model, EPCTX_FILE_REGULAR)) return;
    v->open = delivery_open(p->d, v->model, NULL, &v->opened, &error) == EPCTX_OK;
    if (!v->open) delivery_close(&v->opened); /* reported for the file itself */
    for (i = 0; i < at && v->open; i++) {
        const variant *other = &p->variants[i];
        if (!other->open || !epctx_str_eq(other->component, v->component)) continue;
        why = delivery_difference(p->d, &other->opened, &v->opened);
        if (why != NULL)
            delivery_say(p->d, DELIVERY_P_INTERFACE, v->where, "%s, unlike '%S'", why,
                         &other->name);
        return;
    }
}

static void check_variant(package *p, size_t at) {
    variant *v = &p->variants[at];
    check_device(p, v);
    if (v->exists) {
        if (v->genai) {
            const char *path = delivery_join(p->d, v->folder, epctx_str_of("genai_config.json"));
            epctx_str text;
            epctx_error ignored;
            size_t where;
            /* What is wrong with it is said where it is judged itself. */
            if (path != NULL && delivery_read_text(p->d, path, &text, &ignored) == EPCTX_OK) {
                const json *config = json_read(text, p->d->arena, &where);
                if (config != NULL) follow_all(p, config, v->where);
            }
        }
        check_models(p, v);
    }
    check_ep(p, v);
    check_compatibility(p, v);
    check_doubled(p, at);
    check_interface(p, at);
}

/* -- assets -- */

#ifndef EPCTX_CLI_NO_PACKAGE
/* SHA-256 in 64 lower-case digits. */
static void put_hash(const void *data, size_t size, char out[HASH_DIGITS + 1]) {
    unsigned char hash[crypto_hash_sha256_BYTES];
    crypto_hash_sha256(hash, (const unsigned char *)data, size);
    sodium_bin2hex(out, HASH_DIGITS + 1, hash, sizeof hash);
}

/* ORT's hash of a folder: of "<hash of the file>  <path>\n", sorted by path. */
static bool hash_folder(const tree *files, char out[HASH_DIGITS + 1]) {
    const epctx_io *io = epctx_io_files();
    epctx_status status = EPCTX_OK;
    epctx_buffer text;
    size_t i;
    epctx_buffer_init(&text, NULL);
    for (i = 0; i < files->count && status == EPCTX_OK; i++) {
        const tree_entry *entry = &files->entries[i];
        char hash[HASH_DIGITS + 1];
        epctx_mapping bytes;
        if (entry->kind != TREE_FILE) continue;
        status = io->map_fn(io->user, NULL, entry->path, false, &bytes, NULL);
        if (status != EPCTX_OK) break;
        put_hash(bytes.data, bytes.size, hash);
        io->unmap_fn(io->user, &bytes);
        status = epctx_buffer_append(&text, hash, HASH_DIGITS);
        if (status == EPCTX_OK) status = epctx_buffer_append(&text, "  ", 2);
        if (status == EPCTX_OK)
            status = epctx_buffer_append(&text, entry->name, strlen(entry->name));
        if (status == EPCTX_OK) status = epctx_buffer_append(&text, "\n", 1);
    }
    put_hash(text.data, text.size, out);
    epctx_buffer_free(&text);
    return status == EPCTX_OK;
}
#else
static bool hash_folder(const tree *files, char out[HASH_DIGITS + 1]) {
    (void)files;
    out[0] = '\0';
    return false; /* built without the library for it */
}
#endif

/* P11 */
static void check_assets(package *p) {
    size_t i, k;
    for (i = 0; i < p->asset_count; i++) {
        const asset *a = &p->assets[i];
        char hash[HASH_DIGITS + 1];
        bool links = false;
        epctx_error error;
        tree files;
        if (tree_read(&files, a->path, p->d->arena, &error) != EPCTX_OK) {
            delivery_say(p->d, DELIVERY_P_ASSET, p->nothing, "the asset '%s' does not exist",
                         a->path);
            continue;
        }
        for (k = 0; k < files.count; k++)
            links = links || files.entries[k].link || files.entries[k].kind == TREE_LINK;
        if (links)
            delivery_say(p->d, DELIVERY_P_ASSET_REST, p->nothing, "the asset '%s' has a link in it",
                         a->path);
        else if (hash_folder(&files, hash) && !epctx_str_is(a->hex, hash))
            delivery_say(p->d, DELIVERY_P_ASSET, p->nothing,
                         "the asset '%s' has the hash %s: a file or its name has changed", a->path,
                         hash);
        if (!a->used)
            delivery_say(p->d, DELIVERY_P_ASSET_REST, p->nothing, "nothing uses the asset '%s'",
                         a->path);
    }
}

/* P11, P14: what else lies in the folder. */
static void check_rests(package *p) {
    const tree *files = p->d->files;
    size_t i;
    for (i = 0; i < files->count; i++) {
        const tree_entry *entry = &files->entries[i];
        const char *file = epctx_path_file(epctx_str_of(entry->name)).data;
        if (strstr(file, ".tmp.") != NULL)
            delivery_say(p->d, DELIVERY_P_ASSET_REST, p->nothing,
                         "'%s' is a rest of writing the package", entry->name);
        if (p->portable && entry->kind == TREE_LINK &&
            !epctx_str_starts(epctx_str_of(entry->name), "shared_assets/"))
            delivery_say(p->d, DELIVERY_P_PORTABLE, p->nothing,
                         "'%s' is a link out of the package or to a folder, but the layout is "
                         "portable",
                         entry->name);
    }
}

/* P2, P12, P13 */
static void check_genai(package *p) {
    size_t with = 0, i;
    for (i = 0; i < p->count; i++) with += p->variants[i].genai;
    if (tree_find(p->d->files, epctx_str_of("genai_config.json")) != NULL)
        delivery_say(p->d, DELIVERY_P_FLAT, p->nothing,
                     "genai_config.json beside it makes ORT GenAI read the folder without the "
                     "package");
    if (with == 0) return;
    if (p->components != 1)
        delivery_say(p->d, DELIVERY_P_COMPONENTS, p->nothing,
                     "has %u components, but ORT GenAI reads packages of one",
                     (uint64_t)p->components);
    for (i = 0; i < p->count; i++)
        if (!p->variants[i].genai)
            delivery_say(p->d, DELIVERY_P_GENAI, p->variants[i].where, "has no genai_config.json");
}

void package_lint(delivery *d, const char *manifest) {
    const json *root = delivery_read_json(d, manifest, DELIVERY_P_SCHEMA, NULL, NULL), *components,
               *one;
    epctx_str layout;
    package p;
    size_t i;
    if (root == NULL) return;
    memset(&p, 0, sizeof p);
    p.d = d;
    p.root = d->files->folder;
    p.nothing = epctx_str_of("");
    layout = delivery_text(root, "layout");
    p.portable = !epctx_str_is(layout, "installed");
    check_keys(&p, root,
               "schema_version:- package_name:s package_version:s description:s layout:s "
               "components:o shared_assets:o additional_metadata:-",
               p.nothing, "the manifest");
    if (layout.size > 0 && p.portable && !epctx_str_is(layout, "portable"))
        delivery_say(d, DELIVERY_P_SCHEMA, p.nothing, "layout is neither portable nor installed");
    check_version(&p, root);
    p.variants = (variant *)delivery_alloc(d, MOST_VARIANTS, sizeof *p.variants);
    if (p.variants == NULL || !read_assets(&p, root)) return;
    components = json_get(root, "components");
    if (components == NULL)
        delivery_say(d, DELIVERY_P_SCHEMA, p.nothing, "the manifest has no components");
    for (one = components != NULL && components->kind == JSON_OBJECT ? components->first : NULL;
         one != NULL; one = one->next) {
        p.components++;
        read_component(&p, one);
    }
    for (i = 0; i < p.count; i++)
        if (p.variants[i].exists) check_executors(&p, &p.variants[i]);
    if (d->out == NULL) return;
    if (p.count == 0) delivery_say(d, DELIVERY_P_EMPTY, p.nothing, "there is no variant");
    for (i = 0; i < p.count; i++) check_variant(&p, i);
    for (i = 0; i < p.count; i++)
        if (p.variants[i].open) delivery_close(&p.variants[i].opened);
    check_genai(&p);
    check_assets(&p);
    check_rests(&p);
}
