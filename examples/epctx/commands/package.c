/* epctx package: EPContext models and their source as a model package of ONNX Runtime, schema 1.0
 * (model_package/README.md and core/session/model_package/README.md in ORT's tree):
 *
 *     manifest.json                        the components: here one
 *     COMPONENT/component.json             its variants: EP, device, compatibility string
 *     COMPONENT/VARIANT/ort_info.json      what ORT needs to make a session of it
 *     COMPONENT/VARIANT/...                the model and the files that it alone needs
 *     shared_assets/sha256-HEX/...         sets of files that several variants need, once
 *
 * The folder is made under another name and renamed when all of it is durable. */
#define _GNU_SOURCE /* copy_file_range */

#include "delivery/delivery_internal.h"
#include "core/judge.h"
#include "core/options.h"
#include "binary/context.h"
#include "ops/needs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_VARIANTS = 64, MOST_NAME = 199 /* bytes of a name of a folder */ };

/* A file that is read, once, however many variants need it. */
typedef struct packed_file {
    const char *path; /* NULL: made here */
    epctx_mapping bytes;
    struct stat id; /* of the file that `bytes` are of */
    char hash[65];  /* empty until file_hash is asked */
} packed_file;

/* Where it goes. */
typedef struct piece {
    const char *name; /* relative to its folder, without "." parts */
    packed_file *file;
} piece;

/* Files that only make sense together in one folder. */
typedef struct piece_set {
    piece *pieces; /* sorted by name when all are in it */
    size_t count, room;
    epctx_map names; /* while they are added: name -> 1 */
    char hash[65];   /* of an asset with these files; empty until set_hash is asked */
    bool shared;     /* in shared_assets, else in the variant's folder */
    bool written;
} piece_set;

typedef struct variant {
    const char *name;
    const char *file;
    const char *model_name; /* file name of the model in the package */
    const char *ep;
    const char *compatibility; /* NULL: none */
    epctx_model model;
    piece_set own, contexts, initializers, source;
    bool is_source; /* the model of --source: for the CPU, and an asset as a whole */
} variant;

/* A file that was written. */
typedef struct report_line {
    struct report_line *next;
    const char *name;
    size_t size;
} report_line;

typedef struct package {
    const char *path, *name, *version, *component, *device, *ep, *source;
    const epctx_profile *profile; /* NULL: of each node's EP */
    bool dry_run, json, allow_stale;
    bool refused; /* by ORT */
    variant variants[MOST_VARIANTS];
    size_t count;
    epctx_arena arena;
    epctx_map paths; /* path -> index in `inputs` */
    packed_file **inputs;
    size_t input_count, input_room;
    char folder[EPCTX_PATH_MAX]; /* where it is being made */
    report_line *first, *last;   /* in the order of writing */
    uint64_t size;
    size_t files;
    epctx_error error;
} package;

static bool no_memory(package *p) {
    return cli_no_memory(&p->error) == EPCTX_OK;
}

/* -- what goes in -- */

/* "a/./b//c" as "a/b/c". */
static const char *plain_name(package *p, epctx_str name) {
    char *out = (char *)epctx_arena_alloc(&p->arena, name.size + 1);
    size_t used = 0, i = 0;
    while (out != NULL && i < name.size) {
        size_t size = 0;
        while (i + size < name.size && name.data[i + size] != '/') size++;
        if (size > 0 && !(size == 1 && name.data[i] == '.')) {
            if (used > 0) out[used++] = '/';
            memcpy(out + used, name.data + i, size);
            used += size;
        }
        i += size + 1;
    }
    return out;
}

/* SHA-256, which names the shared assets, in 64 lower-case digits. */
static void put_hash(const void *data, size_t size, char out[65]) {
    unsigned char hash[crypto_hash_sha256_BYTES];
    crypto_hash_sha256(hash, (const unsigned char *)data, size);
    sodium_bin2hex(out, 65, hash, sizeof hash);
}

/* The list with room for one more, in the arena; NULL: no memory. */
static void *grow(package *p, void *list, size_t count, size_t *room, size_t size) {
    void *more = list;
    if (count == *room) {
        *room = *room * 2 + 16;
        more = epctx_arena_array(&p->arena, *room, size);
        if (more != NULL && count > 0) memcpy(more, list, count * size);
    }
    if (more == NULL) no_memory(p);
    return more;
}

/* Maps a file that none of the pieces has yet. */
static packed_file *open_file(package *p, const char *path) {
    const epctx_io *io = epctx_io_files();
    packed_file **list =
        (packed_file **)grow(p, p->inputs, p->input_count, &p->input_room, sizeof *p->inputs);
    packed_file *file = (packed_file *)epctx_arena_array(&p->arena, 1, sizeof *file);
    if (list != NULL) p->inputs = list;
    if (list == NULL || file == NULL) return NULL;
    memset(file, 0, sizeof *file);
    file->path = epctx_arena_copy(&p->arena, epctx_str_of(path));
    if (file->path == NULL ||
        epctx_map_put(&p->paths, epctx_str_of(file->path), (uint32_t)p->input_count) != EPCTX_OK) {
        no_memory(p);
        return NULL;
    }
    list[p->input_count++] = file;
    if (io->map_fn(io->user, NULL, path, false, &file->bytes, &p->error) != EPCTX_OK) return NULL;
    if (stat(path, &file->id) != 0) memset(&file->id, 0, sizeof file->id);
    return file;
}

/* Adds a file to a set; one of a name that is in it already is not added again. */
static bool add_piece(package *p, piece_set *set, const char *from, epctx_str name) {
    const char *plain = plain_name(p, name);
    const uint32_t known = epctx_map_get(&p->paths, epctx_str_of(from));
    piece *pieces;
    if (plain == NULL) return no_memory(p);
    if (set->count == 0) epctx_map_init(&set->names, &p->arena);
    if (epctx_map_get(&set->names, epctx_str_of(plain)) != EPCTX_MAP_NONE) return true;
    if (epctx_map_put(&set->names, epctx_str_of(plain), 1) != EPCTX_OK) return no_memory(p);
    pieces = (piece *)grow(p, set->pieces, set->count, &set->room, sizeof *pieces);
    if (pieces == NULL) return false;
    set->pieces = pieces;
    pieces[set->count].name = plain;
    pieces[set->count].file = known != EPCTX_MAP_NONE ? p->inputs[known] : open_file(p, from);
    return pieces[set->count++].file != NULL;
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const piece *)a)->name, ((const piece *)b)->name);
}

static void sort_pieces(piece_set *set) {
    if (set->count > 0) qsort(set->pieces, set->count, sizeof *set->pieces, by_name);
}

/* The one of that name, or NULL. */
static const piece *find_piece(const piece_set *set, const char *name) {
    piece wanted;
    if (set->count == 0) return NULL;
    wanted.name = name;
    return (const piece *)bsearch(&wanted, set->pieces, set->count, sizeof wanted, by_name);
}

/* Hashing takes longer than copying: only what has to be known is hashed, and once. */
static const char *file_hash(packed_file *file) {
    if (file->hash[0] == '\0') put_hash(file->bytes.data, file->bytes.size, file->hash);
    return file->hash;
}

static bool can_be_equal(const piece *a, const piece *b) {
    return a->file->bytes.size == b->file->bytes.size && strcmp(a->name, b->name) == 0;
}

static bool same_piece(const piece *a, const piece *b) {
    return can_be_equal(a, b) &&
           (a->file == b->file || strcmp(file_hash(a->file), file_hash(b->file)) == 0);
}

/* ORT's hash of a folder: of "<hash of the file>  <path>\n", sorted by path. */
static bool set_hash(package *p, piece_set *set) {
    epctx_buffer text;
    epctx_status status = EPCTX_OK;
    size_t i;
    if (set->hash[0] != '\0') return true;
    epctx_buffer_init(&text, NULL);
    for (i = 0; i < set->count && status == EPCTX_OK; i++) {
        status = epctx_buffer_append(&text, file_hash(set->pieces[i].file), 64);
        if (status == EPCTX_OK) status = epctx_buffer_append(&text, "  ", 2);
        if (status == EPCTX_OK)
            status = epctx_buffer_append(&text, set->pieces[i].name, strlen(set->pieces[i].name));
        if (status == EPCTX_OK) status = epctx_buffer_append(&text, "\n", 1);
    }
    if (status == EPCTX_OK) put_hash(text.data, text.size, set->hash);
    epctx_buffer_free(&text);
    return status == EPCTX_OK || no_memory(p);
}

static bool has_piece(const piece_set *set, const piece *wanted) {
    const piece *found = find_piece(set, wanted->name);
    return found != NULL && same_piece(found, wanted);
}

/* Nothing is packed that ORT refuses; what an EP refuses may be meant for another version of it. */
static bool is_loadable(package *p, const epctx_model *model, const epctx_profile *profile) {
    epctx_error ep;
    if (judge_given(model, profile, &ep, &p->error) != EPCTX_OK) {
        p->refused = p->error.status == EPCTX_ERR_GRAPH;
        return false;
    }
    if (ep.message[0] != '\0') cli_say("epctx: warning: %s; epctx lint tells more\n", ep.message);
    return true;
}

/* A model, which ORT `runs` itself or which its EP reads, and the files that it names; its own
 * source model is not followed further. */
static bool add_model(package *p, piece_set *set, const char *file, bool runs) {
    epctx_dependency *files = NULL;
    size_t count = 0, i;
    epctx_model model;
    bool good = cli_open(&model, file, &p->error) == EPCTX_OK &&
                (!runs || is_loadable(p, &model, NULL)) &&
                needs_of_model(&model, NULL, &p->arena, &files, &count, &p->error) == EPCTX_OK &&
                add_piece(p, set, file, epctx_path_file(epctx_str_of(file)));
    for (i = 0; i < count && good; i++) {
        if (files[i].path != NULL) {
            good = add_piece(p, set, files[i].path, files[i].name);
        } else if (files[i].required) {
            epctx_fail(&p->error, EPCTX_ERR_NOT_FOUND, "needs '%S': %s", &files[i].name,
                       files[i].problem);
            epctx_blame(&p->error, file, NULL, NULL);
            good = false;
        }
    }
    epctx_model_close(&model);
    return good;
}

static bool add_dependency(package *p, variant *v, const epctx_dependency *file) {
    if (file->path == NULL && !file->required) return true;
    if (file->path == NULL) {
        epctx_fail(&p->error, EPCTX_ERR_NOT_FOUND, "needs '%S': %s", &file->name, file->problem);
        epctx_blame(&p->error, v->file, NULL, NULL);
        return false;
    }
    if (file->use == EPCTX_USE_SOURCE_MODEL) return add_model(p, &v->source, file->path, false);
    if (strcmp(file->attribute, "onnx_model_filename") == 0) return true; /* with the source */
    if (strcmp(file->attribute, NEEDS_WEIGHTS) == 0)
        return add_piece(p, &v->own, file->path, file->name);
    return add_piece(p, file->use == EPCTX_USE_INITIALIZERS ? &v->initializers : &v->contexts,
                     file->path, file->name);
}

/* The EP's name as ORT registers it. A variant is for one EP. */
static bool find_ep(package *p, variant *v) {
    epctx_cursor it = epctx_view_graph_nodes(epctx_model_graph(&v->model));
    epctx_node_view node;
    epctx_epnode ep;
    const char *first = NULL;
    char key[300];
    epctx_str value;
    v->ep = p->ep;
    while (epctx_next_node(&it, &node)) {
        const epctx_profile *profile;
        const char *name;
        epctx_str source;
        if (!epctx_view_is_epnode(&node)) continue;
        if (epctx_view_read_epnode(&node, &ep, &p->error) != EPCTX_OK) return false;
        profile = epctx_profile_of(ep.source);
        source = ep.source;
        if (profile->sources[0] != NULL) source = epctx_str_of(profile->sources[0]);
        name = epctx_arena_copy(&p->arena, source);
        if (name == NULL) return no_memory(p);
        if (v->ep == NULL) v->ep = name;
        if (first == NULL) first = name;
        if (strcmp(first, name) != 0) {
            epctx_fail(&p->error, EPCTX_ERR_GRAPH,
                       "has nodes of %s and %s, but a variant is for one EP: compile it for one",
                       first, name);
            epctx_blame(&p->error, v->file, NULL, NULL);
            return false;
        }
    }
    if (v->ep == NULL || v->ep[0] == '\0') {
        epctx_fail(&p->error, EPCTX_ERR_NO_NODES,
                   "no EPContext node names its EP: use --ep, or --source for the model "
                   "that was compiled");
        epctx_blame(&p->error, v->file, NULL, NULL);
        return false;
    }
    snprintf(key, sizeof key, EPCTX_COMPAT_PREFIX "%s", v->ep);
    if (epctx_model_metadata(&v->model, epctx_str_of(key), &value)) {
        v->compatibility = epctx_arena_copy(&p->arena, value);
        if (v->compatibility == NULL) return no_memory(p);
    }
    return true;
}

static bool read_variant(package *p, variant *v) {
    epctx_dependency *files = NULL;
    size_t count = 0, i;
    epctx_str name = epctx_path_file(epctx_str_of(v->file));
    if (cli_open(&v->model, v->file, &p->error) != EPCTX_OK || !find_ep(p, v) ||
        !is_loadable(p, &v->model, p->profile) ||
        binary_check_contexts(&v->model, NULL, &p->error) != EPCTX_OK ||
        (!p->allow_stale && epctx_model_check_binary(&v->model, NULL, &p->error) != EPCTX_OK) ||
        needs_of_model(&v->model, NULL, &p->arena, &files, &count, &p->error) != EPCTX_OK)
        return false;
    v->model_name = epctx_arena_copy(&p->arena, name);
    if (v->model_name == NULL) return no_memory(p);
    for (i = 0; i < count; i++)
        if (!add_dependency(p, v, &files[i])) return false;
    return add_piece(p, &v->own, v->file, name);
}

static bool read_source(package *p, variant *v) {
    v->model_name = epctx_arena_copy(&p->arena, epctx_path_file(epctx_str_of(v->file)));
    v->ep = "CPUExecutionProvider";
    return v->model_name != NULL ? add_model(p, &v->source, v->file, true) : no_memory(p);
}

static bool read_files(package *p, variant *v) {
    const bool good = v->is_source ? read_source(p, v) : read_variant(p, v);
    sort_pieces(&v->own);
    sort_pieces(&v->contexts);
    sort_pieces(&v->initializers);
    sort_pieces(&v->source);
    return good;
}

/* -- what fits together -- */

/* A line of a build stamp, and the file of that use in the source's set. */
static bool is_stamped(const piece_set *set, const char *model_name, const epctx_stamp_line *line) {
    const bool whole = epctx_str_is(line->word, "source");
    size_t i;
    if (!whole && !epctx_str_is(line->word, "data")) return true;
    for (i = 0; i < set->count; i++) {
        const piece *one = &set->pieces[i];
        if (whole ? strcmp(one->name, model_name) != 0 : !epctx_str_is(line->text, one->name))
            continue;
        return line->size == one->file->bytes.size &&
               line->hash == epctx_hash(one->file->bytes.data, one->file->bytes.size, 0);
    }
    return true; /* a name that the stamp has escaped, or that is written in another way */
}

/* The model of --source is the one that the stamps of a variant name, if they name one. */
static bool is_source_of(package *p, const variant *source, const variant *v) {
    epctx_cursor it =
        epctx_view_fields(epctx_model_read(&v->model).view, EPCTX_FIELD_MODEL_METADATA_PROPS);
    epctx_pair pair;
    epctx_stamp_line line;
    while (epctx_next_pair(&it, &pair)) {
        if (!epctx_str_starts(pair.key, EPCTX_BUILD_PREFIX)) continue;
        while (epctx_stamp_next_line(&pair.value, &line)) {
            if (is_stamped(&source->source, source->model_name, &line)) continue;
            epctx_fail(&p->error, EPCTX_ERR_GRAPH,
                       "its build stamp names another source than %s: compile it again, or give "
                       "its own source (--allow-stale accepts this one)",
                       source->file);
            epctx_blame(&p->error, v->file, NULL, NULL);
            return false;
        }
    }
    return true;
}

/* A dimension that a variant fixes, by "input 'x' 0". */
typedef struct fixed_dim {
    int64_t value;
    const char *file;
} fixed_dim;

typedef struct fixed_dims {
    epctx_map places;
    fixed_dim *list;
    size_t count, room;
} fixed_dims;

static bool add_fixed(package *p, fixed_dims *all, epctx_str key, int64_t value, const char *file) {
    const char *kept = epctx_arena_copy(&p->arena, key);
    if (all->count == all->room) {
        const size_t room = all->room * 2 + 16;
        fixed_dim *more = (fixed_dim *)epctx_arena_array(&p->arena, room, sizeof *more);
        if (more == NULL) return no_memory(p);
        if (all->count > 0) memcpy(more, all->list, all->count * sizeof *more);
        all->list = more;
        all->room = room;
    }
    all->list[all->count].value = value;
    all->list[all->count].file = file;
    if (kept == NULL ||
        epctx_map_put(&all->places, epctx_str_of(kept), (uint32_t)all->count++) != EPCTX_OK)
        return no_memory(p);
    return true;
}

/* An application cannot give two fixed shapes at once to whichever variant is chosen. */
static bool same_fixed(package *p, fixed_dims *all, const char *what, epctx_cursor values,
                       const char *file) {
    epctx_value_view value;
    char key[600];
    while (epctx_next_value(&values, &value)) {
        epctx_type_view type = epctx_type_of(value.type);
        epctx_cursor dims = epctx_type_dims(&type);
        epctx_dim dim;
        uint32_t axis = 0, at;
        for (; value.is_tensor && epctx_next_dim(&dims, &dim); axis++) {
            if (!dim.known || value.name.size > 500) continue;
            snprintf(key, sizeof key, "%s %" PRIu32 " %.*s", what, axis, (int)value.name.size,
                     value.name.data);
            at = epctx_map_get(&all->places, epctx_str_of(key));
            if (at == EPCTX_MAP_NONE) {
                if (!add_fixed(p, all, epctx_str_of(key), dim.value, file)) return false;
            } else if (all->list[at].value != dim.value) {
                epctx_fail(&p->error, EPCTX_ERR_GRAPH,
                           "%s '%S' is fixed to %d in dimension %u, in %s to %d: an application "
                           "cannot run both; make a component of each",
                           what, &value.name, dim.value, axis, all->list[at].file,
                           all->list[at].value);
                epctx_blame(&p->error, file, NULL, NULL);
                return false;
            }
        }
    }
    return true;
}

static bool all_fixed(package *p, fixed_dims *all, const epctx_model *model, const char *file) {
    const epctx_graph_view graph = epctx_model_graph(model);
    return same_fixed(p, all, "input", epctx_view_graph_inputs(graph), file) &&
           same_fixed(p, all, "output", epctx_view_graph_outputs(graph), file);
}

/* Any variant may be the one that runs: all have the inputs and outputs of the first. */
static bool fit_together(package *p) {
    delivery d;
    delivery_model first, other;
    fixed_dims fixed;
    const char *why = NULL;
    bool good;
    size_t i;
    memset(&d, 0, sizeof d);
    d.arena = &p->arena;
    memset(&fixed, 0, sizeof fixed);
    epctx_map_init(&fixed.places, &p->arena);
    good = delivery_open(&d, p->variants[0].file, NULL, &first, &p->error) == EPCTX_OK &&
           all_fixed(p, &fixed, &first.model, p->variants[0].file);
    for (i = 1; i < p->count && good; i++) {
        const variant *v = &p->variants[i];
        good = delivery_open(&d, v->file, NULL, &other, &p->error) == EPCTX_OK;
        why = good ? delivery_difference(&d, &first, &other) : NULL;
        good = good && (why != NULL || all_fixed(p, &fixed, &other.model, v->file));
        delivery_close(&other);
        if (why == NULL) continue;
        epctx_fail(&p->error, EPCTX_ERR_GRAPH,
                   "%s, unlike %s: variants of a component must have the same inputs and outputs",
                   why, p->variants[0].file);
        epctx_blame(&p->error, v->file, NULL, NULL);
        good = false;
    }
    delivery_close(&first);
    for (i = 0; i + 1 < p->count && good && p->source != NULL && !p->allow_stale; i++)
        good = is_source_of(p, &p->variants[p->count - 1], &p->variants[i]);
    return good;
}

static bool same_set(const piece_set *a, const piece_set *b) {
    size_t i;
    if (a->count == 0 || a->count != b->count) return false;
    for (i = 0; i < a->count; i++) /* before anything is hashed */
        if (!can_be_equal(&a->pieces[i], &b->pieces[i])) return false;
    for (i = 0; i < a->count; i++)
        if (!same_piece(&a->pieces[i], &b->pieces[i])) return false;
    return true;
}

static bool has_all(const piece_set *set, const piece_set *wanted) {
    size_t i;
    for (i = 0; i < wanted->count; i++)
        if (!has_piece(set, &wanted->pieces[i])) return false;
    return wanted->count > 0;
}

/* What two variants need is an asset, and so is every source model; what an asset holds already is
 * not stored again. */
static bool share(package *p) {
    size_t i, k;
    bool good = true;
    for (i = 0; i < p->count && good; i++) {
        variant *v = &p->variants[i];
        v->source.shared = v->source.count > 0;
        for (k = 0; k < p->count; k++) {
            const variant *other = &p->variants[k];
            if (k == i) continue;
            v->contexts.shared = v->contexts.shared || same_set(&v->contexts, &other->contexts);
            v->initializers.shared =
                v->initializers.shared || same_set(&v->initializers, &other->initializers);
        }
        for (k = 0; k < p->count && good; k++) {
            piece_set *source = &p->variants[k].source;
            if (!has_all(source, &v->initializers)) continue;
            v->initializers.shared = true;
            good = set_hash(p, source);
            memcpy(v->initializers.hash, source->hash, sizeof source->hash);
            break;
        }
        good = good && (!v->source.shared || set_hash(p, &v->source)) &&
               (!v->contexts.shared || set_hash(p, &v->contexts)) &&
               (!v->initializers.shared || set_hash(p, &v->initializers));
    }
    return good;
}

/* -- writing -- */

static bool fail_system(package *p, const char *path) {
    epctx_fail(&p->error, EPCTX_ERR_IO, "%s", strerror(errno));
    epctx_blame(&p->error, path, NULL, NULL);
    return false;
}

static bool make_folders(package *p, const char *path) {
    char part[EPCTX_PATH_MAX];
    size_t i;
    for (i = 0; path[i] != '\0'; i++) {
        if (path[i] != '/') continue;
        memcpy(part, path, i);
        part[i] = '\0';
        if (mkdir(part, 0777) != 0 && errno != EEXIST) return fail_system(p, part);
    }
    return true;
}

/* Lets the kernel copy what it can, without a way through this process; returns how much. Only of
 * the file that was looked at. */
static size_t copy_by_kernel(const packed_file *one, epctx_io_file *file) {
    size_t done = 0;
#if defined(__linux__)
    enum {
        PART = 8 << 20
    }; /* a signal ends it, and the disk writes one while the next is copied */
    const int from = open(one->path, O_RDONLY | O_CLOEXEC);
    struct stat now;
    if (from < 0) return 0;
    if (fstat(from, &now) == 0 && now.st_dev == one->id.st_dev && now.st_ino == one->id.st_ino &&
        now.st_mtime == one->id.st_mtime && (uint64_t)now.st_size == one->bytes.size)
        while (done < one->bytes.size && !cli_signals_waiting()) {
            const size_t rest = one->bytes.size - done;
            const ssize_t count = copy_file_range(from, NULL, (int)file->descriptor, NULL,
                                                  rest < PART ? rest : PART, 0);
            if (count <= 0) break;
            sync_file_range((int)file->descriptor, (off_t)done, count, SYNC_FILE_RANGE_WRITE);
            done += (size_t)count;
            cli_progress_add((uint64_t)count);
        }
    close(from);
    file->written = done;
#else
    (void)one;
    (void)file;
#endif
    return done;
}

/* Below the folder that is being made, which is the current one: no other process can put a link in
 * its place, as they could into its path, which a commit would resolve again. */
static bool write_here(package *p, const char *name, const packed_file *one) {
    const epctx_io *io = cli_io();
    epctx_io_file file;
    epctx_status status;
    size_t done;
    if (!make_folders(p, name) || io->create_fn(io->user, ".", name, &file, &p->error) != EPCTX_OK)
        return false;
    done = one->path != NULL ? copy_by_kernel(one, &file) : 0;
    status =
        io->write_fn(io->user, &file, one->bytes.data + done, one->bytes.size - done, &p->error);
    if (status == EPCTX_OK) status = io->sync_fn(io->user, &file, &p->error);
    if (status == EPCTX_OK)
        status = io->commit_fn(io->user, &file, EPCTX_OVERWRITE_FAIL, &p->error);
    io->close_fn(io->user, &file);
    return status == EPCTX_OK;
}

/* For the report. */
static bool note_file(package *p, const char *name, size_t size) {
    report_line *line = (report_line *)epctx_arena_alloc(&p->arena, sizeof *line);
    if (line != NULL) line->name = epctx_arena_copy(&p->arena, epctx_str_of(name));
    if (line == NULL || line->name == NULL) return no_memory(p);
    line->size = size;
    line->next = NULL;
    if (p->last != NULL)
        p->last->next = line;
    else
        p->first = line;
    p->last = line;
    p->files++;
    p->size += size;
    return true;
}

static bool write_file(package *p, const char *name, const packed_file *one) {
    return note_file(p, name, one->bytes.size) && (p->dry_run || write_here(p, name, one));
}

/* A set goes where it belongs: an asset once, anything else into the variant's folder. */
static bool write_set(package *p, const variant *v, piece_set *set) {
    char name[EPCTX_PATH_MAX];
    size_t i, k;
    for (i = 0; i < p->count && set->shared; i++) {
        const variant *other = &p->variants[i];
        const piece_set *sets[3];
        sets[0] = &other->source;
        sets[1] = &other->contexts;
        sets[2] = &other->initializers;
        for (k = 0; k < 3; k++)
            if (sets[k]->written && strcmp(sets[k]->hash, set->hash) == 0) return true;
    }
    for (i = 0; i < set->count; i++) {
        /* Beside the model for a binary, and for the model: written already. */
        const bool twice = !set->shared && set != &v->own && has_piece(&v->own, &set->pieces[i]);
        int used = set->shared ? snprintf(name, sizeof name, "shared_assets/sha256-%s/%s",
                                          set->hash, set->pieces[i].name)
                               : snprintf(name, sizeof name, "%s/%s/%s", p->component, v->name,
                                          set->pieces[i].name);
        if (used < 0 || (size_t)used >= sizeof name) {
            epctx_fail(&p->error, EPCTX_ERR_LIMIT, "a path would be too long");
            return false;
        }
        if (!twice && !write_file(p, name, set->pieces[i].file)) return false;
    }
    set->written = set->shared;
    return true;
}

/* Writes a JSON file that `put` fills. */
static bool write_json(package *p, const char *name, const variant *v,
                       void (*fill)(const package *p, const variant *v, json_writer *w)) {
    epctx_buffer text;
    json_writer w;
    packed_file made;
    bool good;
    epctx_buffer_init(&text, NULL);
    json_to_buffer(&w, &text);
    json_indent(&w, 2, 2);
    json_object(&w, NULL, JSON_LINES);
    fill(p, v, &w);
    json_end(&w);
    good = json_is_whole(&w) && epctx_buffer_append(&text, "\n", 1) == EPCTX_OK;
    memset(&made, 0, sizeof made); /* of no file */
    made.bytes.data = text.data;
    made.bytes.size = text.size;
    good = good ? write_file(p, name, &made) : no_memory(p);
    epctx_buffer_free(&text);
    return good;
}

/* "sha256:HEX/FILE" or, with `file` NULL, the folder of shared assets itself. */
static void put_asset(json_writer *w, const char *key, const piece_set *set, const char *file) {
    char text[EPCTX_PATH_MAX + 80];
    snprintf(text, sizeof text, "sha256:%s%s%s", set->hash, file != NULL ? "/" : "",
             file != NULL ? file : "");
    json_text(w, key, text);
}

static const char *source_name(const piece_set *set, const epctx_model *model) {
    epctx_cursor it = epctx_view_graph_nodes(epctx_model_graph(model));
    epctx_node_view node;
    epctx_epnode ep;
    char name[EPCTX_PATH_MAX];
    while (epctx_next_node(&it, &node)) {
        const piece *found;
        epctx_str file;
        if (!epctx_view_is_epnode(&node) || epctx_view_read_epnode(&node, &ep, NULL) != EPCTX_OK)
            continue;
        file = epctx_path_file(ep.onnx_model_filename);
        if (file.size == 0 || file.size >= sizeof name) continue;
        memcpy(name, file.data, file.size);
        name[file.size] = '\0';
        found = find_piece(set, name);
        if (found != NULL) return found->name;
    }
    return NULL;
}

static void put_ort_info(const package *p, const variant *v, json_writer *w) {
    (void)p;
    if (v->is_source) {
        put_asset(w, "model_file", &v->source, v->model_name);
        return;
    }
    json_text(w, "model_file", v->model_name);
    if (!v->contexts.shared && !v->initializers.shared && !v->source.shared) return;
    json_object(w, "session_options", JSON_LINES); /* their values are paths */
    if (v->contexts.shared) put_asset(w, "ep.context_file_path", &v->contexts, v->model_name);
    if (v->source.shared)
        put_asset(w, "ep.context_source_model_path", &v->source,
                  source_name(&v->source, &v->model));
    if (v->initializers.shared)
        put_asset(w, "session.model_external_initializers_file_folder_path", &v->initializers,
                  NULL);
    json_end(w);
}

static void put_variant(const package *p, const variant *v, json_writer *w) {
    json_key(w, epctx_str_of(v->name));
    json_object(w, NULL, JSON_LINES);
    json_text(w, "variant_directory", v->name);
    json_text(w, "ep", v->ep);
    /* ORT's own CPU EP has no devices to compare with: it would never be chosen. */
    if (!v->is_source && p->device != NULL) json_text(w, "device", p->device);
    if (v->compatibility != NULL) json_text(w, "compatibility_string", v->compatibility);
    json_object(w, "executor_info", JSON_INLINE);
    json_text(w, "ort", "ort_info.json");
    json_end(w);
    json_end(w);
}

static void put_component(const package *p, const variant *v, json_writer *w) {
    size_t i;
    (void)v;
    json_text(w, "component_name", p->component);
    json_object(w, "variants", JSON_LINES);
    for (i = 0; i < p->count; i++) put_variant(p, &p->variants[i], w);
    json_end(w);
}

static void put_manifest(const package *p, const variant *v, json_writer *w) {
    (void)v;
    json_text(w, "schema_version", "1.0");
    if (p->name != NULL) json_text(w, "package_name", p->name);
    if (p->version != NULL) json_text(w, "package_version", p->version);
    json_object(w, "components", JSON_INLINE);
    json_text(w, p->component, p->component);
    json_end(w);
}

static bool write_all(package *p) {
    char name[EPCTX_PATH_MAX];
    size_t i;
    for (i = 0; i < p->count; i++) {
        variant *v = &p->variants[i];
        snprintf(name, sizeof name, "%s/%s/ort_info.json", p->component, v->name);
        if (!write_set(p, v, &v->own) || !write_set(p, v, &v->source) ||
            !write_set(p, v, &v->contexts) || !write_set(p, v, &v->initializers) ||
            !write_json(p, name, v, put_ort_info))
            return false;
    }
    snprintf(name, sizeof name, "%s/component.json", p->component);
    return write_json(p, name, NULL, put_component) &&
           write_json(p, "manifest.json", NULL, put_manifest);
}

static bool stop_at_name(void *state, const char *name) {
    const bool own = strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
    *(bool *)state = own;
    return own;
}

/* The folder that will have the package. */
static bool has_parent(package *p) {
    const epctx_io *io = epctx_io_files();
    epctx_str path = epctx_str_of(p->path);
    epctx_file_info info;
    char folder[EPCTX_PATH_MAX];
    while (path.size > 1 && path.data[path.size - 1] == '/') path.size--;
    if (epctx_path_join(epctx_path_folder(path), epctx_str_of("."), folder, sizeof folder,
                        &p->error) != EPCTX_OK ||
        io->stat_fn(io->user, folder, &info, &p->error) != EPCTX_OK)
        return false;
    if (info.kind == EPCTX_FILE_FOLDER) return true;
    epctx_fail(&p->error, EPCTX_ERR_NOT_FOUND, "its folder does not exist: make it first");
    epctx_blame(&p->error, p->path, NULL, NULL);
    return false;
}

/* Nothing may be there, or an empty folder: a package is not mixed with what was there before. */
static bool target_free(package *p) {
    const epctx_io *io = epctx_io_files();
    epctx_file_info info;
    bool empty = true;
    if (io->stat_fn(io->user, p->path, &info, &p->error) != EPCTX_OK) return false;
    if (info.kind == EPCTX_FILE_NONE) return has_parent(p);
    if (info.kind == EPCTX_FILE_FOLDER &&
        io->list_fn(io->user, p->path, stop_at_name, &empty, &p->error) != EPCTX_OK)
        return false;
    if (info.kind == EPCTX_FILE_FOLDER && empty) return true;
    epctx_fail(&p->error, EPCTX_ERR_EXISTS,
               "exists already: choose another folder, or remove it first");
    epctx_blame(&p->error, p->path, NULL, NULL);
    return false;
}

/* DIR.part-<process>, where DIR is cut when that would be too long for a name. */
static bool name_folder(package *p) {
    enum { MOST = 200 };
    epctx_str path = epctx_str_of(p->path);
    size_t base;
    while (path.size > 1 && path.data[path.size - 1] == '/') path.size--;
    base = epctx_path_file(path).size;
    if (base > MOST) {
        path.size -= base - MOST;
        while (((unsigned char)path.data[path.size] & 0xc0) == 0x80)
            path.size--; /* whole characters of UTF-8 */
    }
    if (path.size + 40 > sizeof p->folder) {
        epctx_fail(&p->error, EPCTX_ERR_LIMIT, "the path is too long");
        return false;
    }
    snprintf(p->folder, sizeof p->folder, "%.*s.part-%ld", (int)path.size, path.data,
             (long)getpid());
    return true;
}

/* The folder that has the new name, or the current one. */
static bool sync_folder(package *p) {
    char folder[EPCTX_PATH_MAX];
    epctx_str path = epctx_str_of(p->path);
    bool good;
    int fd;
    while (path.size > 1 && path.data[path.size - 1] == '/') path.size--;
    if (epctx_path_join(epctx_path_folder(path), epctx_str_of("."), folder, sizeof folder,
                        &p->error) != EPCTX_OK)
        return false;
    fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    good = fd >= 0 && (fsync(fd) == 0 || errno == EINVAL); /* some file systems cannot */
    if (!good) fail_system(p, p->path);
    if (fd >= 0) close(fd);
    return good;
}

/* The finished folder gets its name, or loses it again when that cannot be made durable. */
static bool name_package(package *p) {
    if (rename(p->folder, p->path) != 0) return fail_system(p, p->path);
    if (sync_folder(p)) return true;
    if (rename(p->path, p->folder) != 0) return fail_system(p, p->path);
    return false;
}

/* `home` and `here`: the current folder, and the one that is made. */
static bool fill_package(package *p, int home, int here) {
    bool good = fchdir(here) == 0 ? write_all(p) : fail_system(p, p->folder);
    if (fchdir(home) != 0) return fail_system(p, ".");
    good = good && name_package(p);
    if (!good && fchdir(here) == 0) {
        cli_remove_tree(".");
        if (fchdir(home) != 0 || rmdir(p->folder) != 0) return false;
    }
    return good;
}

/* All under another name, durable, and then the name: a crash leaves no half package. */
static bool write_package(package *p) {
    int home, here;
    bool good;
    if (!name_folder(p) || !target_free(p)) return false;
    if (p->dry_run) return cli_writable(p->path, &p->error) == EPCTX_OK && write_all(p);
    cli_signals_keep(true);
    if (mkdir(p->folder, 0777) != 0) return fail_system(p, p->folder);
    home = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    here = open(p->folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    good = home >= 0 && here >= 0;
    if (good)
        good = fill_package(p, home, here);
    else {
        fail_system(p, p->folder);
        rmdir(p->folder);
    }
    if (home >= 0) close(home);
    if (here >= 0) close(here);
    return good;
}

/* -- the command -- */

static bool is_folder_name(const char *text) {
    size_t size = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");
    return size > 0 && text[size] == '\0' && text[0] != '.' && size <= MOST_NAME;
}

static bool refuse_name(const char *what, const char *name) {
    if (strlen(name) > MOST_NAME)
        cli_misuse("%s '%s' has %zu bytes, at most %d fit: it becomes a folder; NAME=FILE names a "
                   "variant",
                   what, name, strlen(name), MOST_NAME);
    else
        cli_misuse("%s '%s': use only letters, digits, '_', '-' and '.', because it becomes "
                   "a folder; NAME=FILE names a variant",
                   what, name);
    return false;
}

/* "NAME=FILE", or FILE with its name up to the last dot. */
static bool name_variant(package *p, const char *text, bool is_source) {
    variant *v = &p->variants[p->count++];
    const char *equals = is_source ? NULL : strchr(text, '=');
    epctx_str name = epctx_path_file(epctx_str_of(text));
    size_t i;
    v->file = text;
    v->is_source = is_source;
    if (equals != NULL) {
        name.data = text;
        name.size = (size_t)(equals - text);
        v->file = equals + 1;
    } else {
        for (i = name.size; i > 1; i--)
            if (name.data[i - 1] == '.') {
                name.size = i - 1;
                break;
            }
    }
    v->name = is_source ? "cpu" : epctx_arena_copy(&p->arena, name);
    if (v->name == NULL || !is_folder_name(v->name))
        return refuse_name("variant", v->name != NULL ? v->name : "");
    for (i = 0; i + 1 < p->count; i++)
        if (strcmp(p->variants[i].name, v->name) == 0) {
            cli_misuse("two variants are named '%s': rename one with NAME=FILE", v->name);
            return false;
        }
    return true;
}

/* As the table has them. */
static const char *device_of(cli_choice word) {
    static const char *const devices[] = {NULL, "cpu", "gpu", "npu"};
    return devices[word];
}

static bool settings_good(package *p) {
    if (p->path == NULL) {
        cli_misuse("specify the output folder: -o DIR");
        return false;
    }
    if (!is_folder_name(p->component) || strcmp(p->component, "shared_assets") == 0 ||
        strcmp(p->component, "manifest.json") == 0)
        return refuse_name("component", p->component);
    return true;
}

static void print_json(const package *p) {
    json_writer *w = cli_json_begin(stdout);
    const report_line *line;
    size_t i;
    json_bool(w, "dry_run", p->dry_run);
    json_uint(w, "size", p->size);
    json_array(w, "variants", JSON_LINES);
    for (i = 0; i < p->count; i++) {
        json_object(w, NULL, JSON_INLINE);
        json_text(w, "name", p->variants[i].name);
        json_text(w, "ep", p->variants[i].ep);
        json_end(w);
    }
    json_end(w);
    json_array(w, "files", JSON_LINES);
    for (line = p->first; line != NULL; line = line->next) {
        json_object(w, NULL, JSON_INLINE);
        json_text(w, "path", line->name);
        json_uint(w, "size", line->size);
        json_end(w);
    }
    json_end(w);
    cli_json_end();
}

static void print_text(const package *p) {
    const report_line *line;
    size_t i;
    for (i = 0; i < p->count; i++) {
        const variant *v = &p->variants[i];
        printf("variant %s: %s, ", v->name, v->ep);
        cli_put(stdout, epctx_str_of(v->compatibility != NULL ? v->compatibility
                                                              : "no compatibility string"));
        putchar('\n');
    }
    for (line = p->first; line != NULL; line = line->next) {
        fputs("write ", stdout);
        cli_put(stdout, epctx_str_of(p->path));
        putchar('/');
        cli_put(stdout, epctx_str_of(line->name));
        printf(", %zu bytes\n", line->size);
    }
    printf("%s%zu files, %" PRIu64 " bytes\n", p->dry_run ? "dry run, nothing was written: " : "",
           p->files, p->size);
}

static int make_package(package *p) {
    bool good = true;
    size_t i;
    if (sodium_init() < 0) return cli_fail_text("cannot initialize libsodium");
    for (i = 0; i < p->count && good; i++) good = read_files(p, &p->variants[i]);
    good = good && fit_together(p);
    good = good && share(p);
    if (good) {
        cli_progress_begin("package", 0);
        good = write_package(p);
        cli_progress_end();
    }
    if (p->refused)
        return cli_fail_cure(&p->error, "ONNX Runtime would refuse the model: nothing was written");
    if (!good) return cli_fail_stale(&p->error, "--allow-stale");
    p->json ? print_json(p) : print_text(p);
    return CLI_OK;
}

static void close_package(package *p) {
    const epctx_io *io = epctx_io_files();
    size_t i;
    for (i = 0; i < p->input_count; i++)
        if (p->inputs[i]->bytes.handle != NULL) io->unmap_fn(io->user, &p->inputs[i]->bytes);
    for (i = 0; i < p->count; i++) epctx_model_close(&p->variants[i].model);
    epctx_arena_free(&p->arena);
}

static int run(const cli_args *args) {
    static package p;
    int code = CLI_USAGE;
    int i;
    bool good = false;
    memset(&p, 0, sizeof p);
    p.path = args->output;
    p.source = args->source;
    p.component = args->component != NULL ? args->component : "model";
    p.name = args->name;
    p.version = args->version;
    p.device = device_of(args->device);
    p.ep = args->ep != NULL ? args->ep : args->profile;
    p.allow_stale = args->allow_stale;
    p.dry_run = args->dry_run;
    p.json = args->json;
    epctx_arena_init(&p.arena, NULL);
    epctx_map_init(&p.paths, &p.arena);
    epctx_error_clear(&p.error);
    if (args->ep != NULL && args->profile != NULL)
        cli_misuse("--ep and --profile cannot be combined");
    else
        good = settings_good(&p) && cli_profile(args->profile, &p.profile);
    if (p.ep != NULL && cli_profile_of(p.ep) != NULL && cli_profile_of(p.ep)->sources[0] != NULL)
        p.ep = cli_profile_of(p.ep)->sources[0];
    for (i = 0; i < args->count && good; i++) good = name_variant(&p, args->operands[i], false);
    if (good && p.source != NULL) good = name_variant(&p, p.source, true);
    if (good) code = make_package(&p);
    close_package(&p);
    return code;
}

const cli_command cli_package = {
    .name = "package",
    .group = CLI_MAKE,
    .operands = "[NAME=]FILE...",
    .least = 1,
    .most = MOST_VARIANTS - 1,
    .summary = "create a model package for ONNX Runtime",
    .about = "Copies EPContext models, each for one EP, and all files that they need to a\n"
             "folder. From such a package, ONNX Runtime (1.29 and newer, OrtModelPackageApi)\n"
             "selects the variant that fits the machine, by EP, device and compatibility\n"
             "string; the first one wins a tie. Files that several variants need are stored\n"
             "once, as shared assets. Models are not changed. Fails if a binary is surely\n"
             "none of its EP, if ONNX Runtime refuses a model, if a binary, a file to which it\n"
             "refers or the source does not match the build stamp of a model, or if inputs and\n"
             "outputs differ. Warns if the EP refuses a model by its rules.\n",
    .more = "Example: epctx package --source model.onnx -o package model_ctx.onnx\n",
    .run = run,
};
