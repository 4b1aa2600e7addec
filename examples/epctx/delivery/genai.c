/* genai.c - a folder of ORT GenAI: genai_config.json, its models and everything that they name. */
#include "delivery_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_STAGES = 256 };

/* A model that the configuration names. */
typedef struct part {
    epctx_str name; /* of the stage, else of the role */
    const json *object;
    epctx_str filename;
    const json *options; /* session_options of its own, or NULL */
    const json *outer;   /* those that apply without, or that are inherited; NULL: none */
    bool stage;          /* of decoder.pipeline */
    bool prompt, token, lm_head;
    const delivery_paths *paths;
    bool open;
    delivery_model model;
    epctx_map made; /* of a stage: the name that later stages know -> position in model.outputs */
} part;

typedef struct genai {
    delivery *d;
    const json *root, *model, *decoder;
    epctx_str type;
    part *parts; /* the stages first, in their order */
    size_t count, stage_count;
    epctx_str nothing;
} genai;

/* -- the configuration -- */

static int64_t number_of(const json *object, const char *key) {
    const json *member = json_get(object, key);
    if (member == NULL || member->kind != JSON_NUMBER || !(member->number > -1e15) ||
        !(member->number < 1e15))
        return 0;
    return (int64_t)member->number;
}

static bool truth_of(const json *object, const char *key, bool otherwise) {
    const json *member = json_get(object, key);
    return member != NULL && member->kind == JSON_BOOL ? member->truth : otherwise;
}

/* Whether text of the file, not a value, has a \u escape. */
static void check_escapes(genai *g, epctx_str text) {
    unsigned line = 1;
    size_t i;
    for (i = 0; i + 1 < text.size; i++) {
        line += text.data[i] == '\n';
        if (text.data[i] != '\\') continue;
        i++;
        if (text.data[i] != 'u') continue;
        g->d->line = line;
        delivery_say(g->d, DELIVERY_G_CONFIG, g->nothing,
                     "has an escape of the form \\uXXXX, which ORT GenAI does not read");
        g->d->line = 0;
        return;
    }
}

static part *add_part(genai *g, epctx_str name, const json *object, const json *outer) {
    part *p = &g->parts[g->count++];
    p->name = name;
    p->object = object;
    p->filename = delivery_text(object, "filename");
    p->options = json_get(object, "session_options");
    p->outer = outer;
    p->prompt = p->token = true;
    return p;
}

static bool is_full(const genai *g) {
    return g->count >= MOST_STAGES;
}

/* The stages in one object, or in several in a list. */
static void add_stages(genai *g, const json *pipeline, const json *outer, bool stage) {
    const json *object = pipeline, *one;
    if (pipeline == NULL) return;
    if (pipeline->kind == JSON_LIST) object = pipeline->first;
    for (; object != NULL; object = pipeline->kind == JSON_LIST ? object->next : NULL) {
        for (one = object->kind == JSON_OBJECT ? object->first : NULL; one != NULL;
             one = one->next) {
            part *p;
            if (is_full(g)) return;
            p = add_part(g, one->key, one, outer);
            p->stage = stage;
            if (!stage) continue;
            p->prompt = truth_of(one, "run_on_prompt", true);
            p->token = truth_of(one, "run_on_token_gen", true);
            p->lm_head = truth_of(one, "is_lm_head", false);
            g->stage_count++;
        }
    }
}

static bool find_parts(genai *g) {
    static const char *const roles[] = {"encoder", "embedding", "speech",  "joiner", "vad",
                                        "draft",   "mtp",       "dflash2", "dspark", "vision"};
    const json *options = json_get(g->decoder, "session_options"), *vision;
    size_t i;
    g->parts = (part *)delivery_alloc(g->d, MOST_STAGES, sizeof *g->parts);
    if (g->parts == NULL) return false;
    add_stages(g, json_get(g->decoder, "pipeline"), options, true);
    if (g->stage_count == 0 && g->decoder != NULL && json_get(g->decoder, "filename") != NULL)
        add_part(g, epctx_str_of("decoder"), g->decoder, NULL);
    for (i = 0; i < sizeof roles / sizeof roles[0] && !is_full(g); i++) {
        const json *role = json_get(g->model, roles[i]);
        if (role != NULL && json_get(role, "filename") != NULL)
            add_part(g, epctx_str_of(roles[i]), role, options);
    }
    vision = json_get(g->model, "vision");
    add_stages(g, json_get(vision, "pipeline"), json_get(vision, "session_options"), false);
    if (is_full(g))
        delivery_say(g->d, DELIVERY_G_STAGES, g->nothing,
                     "has %d models or more; the others are not judged", (int64_t)MOST_STAGES);
    return true;
}

/* G2: the Qwen-VL types and Fara use the pipeline when there is one. */
static bool takes_pipeline(epctx_str type) {
    size_t i;
    if (epctx_str_is(type, "decoder-pipeline") || epctx_str_starts(type, "fara")) return true;
    for (i = 0; i + 1 < type.size; i++)
        if (memcmp(type.data + i, "vl", 2) == 0) return epctx_str_starts(type, "qwen");
    return false;
}

static void check_length(genai *g) {
    const json *length = json_get(g->model, "context_length");
    if (length != NULL &&
        (genai_refuses("model", length) || number_of(g->model, "context_length") > 0))
        return;
    delivery_say(g->d, DELIVERY_G_TYPE, g->nothing,
                 "model.context_length is missing or not above 0");
}

static void check_type(genai *g) {
    const bool pipeline = epctx_str_is(g->type, "decoder-pipeline");
    if (g->model == NULL) {
        delivery_say(g->d, DELIVERY_G_TYPE, g->nothing, "has no object 'model'");
        return;
    }
    if (g->stage_count > 0 && !takes_pipeline(g->type))
        delivery_say(g->d, DELIVERY_G_TYPE, g->nothing,
                     "model.type is '%S', which ignores the %u stages and opens the folder as a "
                     "model",
                     &g->type, (uint64_t)g->stage_count);
    if (pipeline && g->stage_count == 0)
        delivery_say(g->d, DELIVERY_G_TYPE, g->nothing,
                     "model.type is 'decoder-pipeline', but decoder.pipeline has no stage");
    check_length(g);
}

/* -- models -- */

/* Whether the decoder's options apply, too. */
static bool inherits(const part *p) {
    return p->options == NULL || truth_of(p->object, "inherit_session_options", false);
}

/* A session option that is a path relative to the folder; NULL: not given. */
static const char *session_path(genai *g, const part *p, const char *key) {
    epctx_str name = delivery_text(p->options, key);
    if (name.size == 0 && inherits(p)) name = delivery_text(p->outer, key);
    if (name.size == 0 || delivery_is_absolute(name)) return NULL;
    return delivery_join(g->d, g->d->files->folder, name);
}

static void note_paths(genai *g, part *p) {
    const char *context = session_path(g, p, "ep.context_file_path");
    const char *external =
        session_path(g, p, "session.model_external_initializers_file_folder_path");
    const char *model = delivery_join(g->d, g->d->files->folder, p->filename);
    if (model != NULL && (context != NULL || external != NULL))
        p->paths = delivery_add_paths(g->d, model, context, external);
}

/* "sha256:HEX/FILE" in the shared assets of a model package; NULL: no such. */
static const char *find_asset(genai *g, epctx_str name) {
    char *text;
    if (g->d->assets == NULL || name.size < 8 || delivery_climbs(name)) return NULL;
    text = epctx_arena_copy(g->d->arena, name);
    if (text == NULL) return NULL;
    text[6] = '-';
    return delivery_join(g->d, g->d->assets, epctx_str_of(text));
}

static void open_part(genai *g, part *p) {
    const epctx_str name = p->filename;
    const char *path;
    epctx_error error;
    const tree_entry *entry;
    if (name.size == 0) {
        delivery_say(g->d, DELIVERY_G_FILE, p->name, "has no filename");
        return;
    }
    if (epctx_str_starts(name, "sha256:")) {
        path = find_asset(g, name);
        if (path == NULL)
            delivery_say(g->d, DELIVERY_G_FILE, p->name, "filename '%S' is in no model package",
                         &name);
        if (path != NULL && delivery_open(g->d, path, p->paths, &p->model, &error) != EPCTX_OK)
            delivery_say(g->d, DELIVERY_G_FILE, p->name, "%s", error.message);
        else
            p->open = path != NULL;
        return;
    }
    if (delivery_is_absolute(name) || delivery_climbs(name) ||
        memchr(name.data, '\0', name.size) != NULL) {
        delivery_say(g->d, DELIVERY_G_FILE, p->name,
                     "filename '%S' is absolute or has a '..': ORT GenAI rejects it", &name);
        return;
    }
    entry = tree_find(g->d->files, name);
    if (entry == NULL || entry->kind != TREE_FILE) {
        delivery_say(g->d, DELIVERY_G_FILE, p->name, "filename '%S' is no file in the folder",
                     &name);
        return;
    }
    path = delivery_join(g->d, g->d->files->folder, name);
    if (path == NULL) return;
    if (delivery_open(g->d, path, p->paths, &p->model, &error) != EPCTX_OK) {
        delivery_say(g->d, DELIVERY_G_FILE, p->name, "%s", error.message);
        return;
    }
    p->open = true;
}

static void check_stages(genai *g) {
    bool prompt = false, token = false;
    size_t i, k;
    if (g->stage_count == 0) return;
    for (i = 0; i < g->stage_count; i++) {
        const part *p = &g->parts[i];
        prompt = prompt || p->prompt;
        token = token || p->token;
        for (k = 0; k < i && !epctx_str_eq(g->parts[k].name, p->name); k++) continue;
        if (k < i) delivery_say(g->d, DELIVERY_G_STAGES, p->name, "two stages have this name");
    }
    if (!prompt || !token)
        delivery_say(g->d, DELIVERY_G_STAGES, g->nothing, "no stage runs on %s",
                     !prompt ? "the prompt" : "token generation");
}

/* -- options -- */

/* Calls back for each provider that applies to a part: its own, then those of the decoder that it
 * inherits. */
typedef void (*provider_fn)(genai *g, const part *p, const json *provider, void *user);

static void each_in(genai *g, const part *p, const json *options, provider_fn fn, void *user) {
    const json *list = json_get(options, "provider_options"), *object, *one;
    if (list == NULL || list->kind != JSON_LIST) return;
    for (object = list->first; object != NULL; object = object->next)
        for (one = object->kind == JSON_OBJECT ? object->first : NULL; one != NULL; one = one->next)
            fn(g, p, one, user);
}

static void each_provider(genai *g, const part *p, provider_fn fn, void *user) {
    each_in(g, p, p->options, fn, user);
    if (inherits(p)) each_in(g, p, p->outer, fn, user);
}

typedef struct wanted_provider {
    const fact *provider;
    const json *first; /* its options */
} wanted_provider;

static void match_provider(genai *g, const part *p, const json *provider, void *user) {
    wanted_provider *wanted = (wanted_provider *)user;
    (void)g;
    (void)p;
    if (wanted->first == NULL && genai_provider(provider->key) == wanted->provider)
        wanted->first = provider;
}

/* The options of a provider that apply to a part; NULL: it does not have this provider. */
static const json *provider_for(genai *g, const part *p, const fact *provider) {
    wanted_provider wanted = {provider, NULL};
    each_provider(g, p, match_provider, &wanted);
    return wanted.first;
}

/* An option of a provider of a part, own ones first. */
typedef struct wanted_option {
    const fact *provider;
    const char *key;
    epctx_str value;
    bool found;
} wanted_option;

static void match_option(genai *g, const part *p, const json *provider, void *user) {
    wanted_option *wanted = (wanted_option *)user;
    const json *value;
    (void)g;
    (void)p;
    if (wanted->found || genai_provider(provider->key) != wanted->provider) return;
    value = json_get(provider, wanted->key);
    if (value == NULL) return;
    wanted->found = true;
    wanted->value = value->kind == JSON_STRING ? value->text : epctx_str_of("");
}

/* False also where `key` is NULL: the facts name no such option of the provider. */
static bool option_for(genai *g, const part *p, const fact *provider, const char *key,
                       epctx_str *value) {
    wanted_option wanted;
    *value = epctx_str_of("");
    if (key == NULL) return false;
    memset(&wanted, 0, sizeof wanted);
    wanted.provider = provider;
    wanted.key = key;
    wanted.value = epctx_str_of("");
    each_provider(g, p, match_option, &wanted);
    *value = wanted.value;
    return wanted.found;
}

/* Whether the part has a provider whose EP reads the nodes of this source. */
static bool has_provider(genai *g, const part *p, epctx_str source) {
    const epctx_str profile = epctx_str_of(epctx_profile_of(source)->name);
    const fact *own = genai_provider_of(source), *f;
    size_t at = 0;
    if (own != NULL && provider_for(g, p, own) != NULL) return true;
    while ((f = facts_next("provider", &at)) != NULL)
        if (fact_has(f, "profiles", profile) && provider_for(g, p, f) != NULL) return true;
    return false;
}

/* G5 */
static void check_providers(genai *g, const part *p) {
    size_t i;
    for (i = 0; i < p->model.node_count; i++) {
        const epctx_str source = p->model.nodes[i].node.source;
        const fact *provider = genai_provider_of(source);
        if (source.size == 0 || has_provider(g, p, source)) continue;
        if (provider == NULL)
            delivery_say(g->d, DELIVERY_G_PROVIDER, p->name,
                         "has EPContext nodes of '%S', for which ORT GenAI has no provider",
                         &source);
        else
            delivery_say(g->d, DELIVERY_G_PROVIDER, p->name,
                         "has EPContext nodes of '%S', but its %s have no provider %s", &source,
                         p->options == NULL ? "session options, those of the decoder,"
                         : inherits(p)      ? "session options and those of the decoder"
                                       : "own session options, which replace those of the decoder,",
                         provider->name);
        return;
    }
}

static bool is_one_of(epctx_str text, const char *const *words) {
    for (; *words != NULL; words++)
        if (epctx_str_is(text, *words)) return true;
    return false;
}

/* A provider that has a word in a list. Options have one meaning, whoever's they are: ORT GenAI
 * hands them on, and EPs have them from each other. */
static const fact *provider_with(const char *key, epctx_str word) {
    const fact *f;
    size_t at = 0;
    while ((f = facts_next("provider", &at)) != NULL && !fact_has(f, key, word)) continue;
    return f;
}

/* G6, G19, G25: one provider with its options. */
static void check_provider(genai *g, const part *p, const json *provider, void *user) {
    const fact *known = genai_provider(provider->key);
    const json *one;
    (void)user;
    if (known == NULL)
        delivery_say(g->d, DELIVERY_G_OPTIONS, p->name, "ORT GenAI knows no provider '%S'",
                     &provider->key);
    if (known != NULL && fact_get(known, "no_options") != NULL && provider->first != NULL)
        delivery_say(g->d, DELIVERY_G_OPTIONS, p->name, "the provider %s takes no options",
                     known->name);
    for (one = provider->kind == JSON_OBJECT ? provider->first : NULL; one != NULL;
         one = one->next) {
        if (one->kind != JSON_STRING) continue;
        if (provider_with("paths", one->key) != NULL && delivery_is_absolute(one->text))
            delivery_say(g->d, DELIVERY_G_BACKEND_PATH, p->name,
                         "option %S is the absolute path '%S'", &one->key, &one->text);
        if (provider_with("caches", one->key) != NULL && one->text.size > 0)
            delivery_say(g->d, DELIVERY_G_LEFTOVER, p->name,
                         "option %S is '%S': the EP writes files at the user's", &one->key,
                         &one->text);
        if (provider_with("libraries", one->key) != NULL) {
            const char *text = epctx_arena_copy(g->d->arena, one->text);
            const bool windows = text != NULL && tree_ends(text, ".dll");
            if (windows || (text != NULL && tree_ends(text, ".so")))
                delivery_say(g->d, DELIVERY_G_BACKEND_OS, p->name, "%S is '%S', a name of %s only",
                             &one->key, &one->text, windows ? "Windows" : "Linux and Android");
        }
    }
}

static void check_session(genai *g, const part *p, const json *options) {
    static const char *const levels[] = {"ORT_DISABLE_ALL", "ORT_ENABLE_BASIC",
                                         "ORT_ENABLE_EXTENDED", "ORT_ENABLE_ALL", NULL};
    static const char *const paths[] = {"custom_ops_library", "ep.context_file_path",
                                        "session.model_external_initializers_file_folder_path",
                                        NULL};
    const epctx_str level = delivery_text(options, "graph_optimization_level");
    const epctx_str library = delivery_text(options, "custom_ops_library");
    const json *one;
    if (options == NULL || options->kind != JSON_OBJECT) return;
    if (level.size > 0 && !is_one_of(level, levels))
        delivery_say(g->d, DELIVERY_G_OPTIONS, p->name,
                     "graph_optimization_level is '%S': ORT_DISABLE_ALL, ORT_ENABLE_BASIC, "
                     "ORT_ENABLE_EXTENDED or ORT_ENABLE_ALL is expected",
                     &level);
    for (one = options->first; one != NULL; one = one->next)
        if (one->kind == JSON_STRING && is_one_of(one->key, paths) &&
            delivery_is_absolute(one->text))
            delivery_say(g->d, DELIVERY_G_BACKEND_PATH, p->name,
                         "option %S is the absolute path '%S'", &one->key, &one->text);
    if (epctx_str_is(delivery_text(options, "ep.context_enable"), "1"))
        delivery_say(g->d, DELIVERY_G_LEFTOVER, p->name,
                     "option ep.context_enable is 1: the model is compiled again at the user's");
    if (library.size > 0 && !delivery_is_absolute(library) &&
        tree_find(g->d->files, library) == NULL)
        delivery_say(g->d, DELIVERY_G_TOKENIZER, p->name,
                     "custom_ops_library '%S' is not in the folder", &library);
    each_in(g, p, options, check_provider, NULL);
}

/* The options of every part once, and those of the decoder for all that have none. */
static void check_options(genai *g) {
    const json *decoder = json_get(g->decoder, "session_options");
    bool decoder_seen = false;
    part whole;
    size_t i;
    for (i = 0; i < g->count; i++) {
        check_session(g, &g->parts[i], g->parts[i].options);
        decoder_seen = decoder_seen || g->parts[i].options == decoder;
    }
    if (decoder == NULL || decoder_seen) return;
    memset(&whole, 0, sizeof whole);
    whole.name = epctx_str_of("decoder");
    check_session(g, &whole, decoder);
}

/* -- names and types -- */

static bool fits_pattern(epctx_str pattern, epctx_str name, uint64_t *number) {
    size_t head = 0, tail;
    epctx_str middle;
    while (head + 1 < pattern.size && memcmp(pattern.data + head, "%d", 2) != 0) head++;
    if (head + 1 >= pattern.size) return false;
    tail = pattern.size - head - 2;
    if (name.size < head + tail + 1 || memcmp(name.data, pattern.data, head) != 0 ||
        memcmp(name.data + name.size - tail, pattern.data + head + 2, tail) != 0)
        return false;
    middle.data = name.data + head;
    middle.size = name.size - head - tail;
    return epctx_str_number(middle, number);
}

/* A name of the decoder's values: as configured, or ORT GenAI's own. */
static epctx_str decoder_name(const genai *g, const char *side, const char *key,
                              const char *otherwise) {
    epctx_str given = delivery_text(json_get(g->decoder, side), key);
    return given.size > 0 ? given : epctx_str_of(otherwise);
}

typedef enum cache_kind {
    PAST_KEY,
    PAST_VALUE,
    PRESENT_KEY,
    PRESENT_VALUE,
    CACHE_KINDS
} cache_kind;

static epctx_str cache_pattern(const genai *g, cache_kind kind) {
    static const char *const words[CACHE_KINDS][3] = {
        {"inputs", "past_key_names", "past_key_values.%d.key"},
        {"inputs", "past_value_names", "past_key_values.%d.value"},
        {"outputs", "present_key_names", "present.%d.key"},
        {"outputs", "present_value_names", "present.%d.value"}};
    return decoder_name(g, words[kind][0], words[kind][1], words[kind][2]);
}

/* The number of the layer whose cache a value is. */
static bool is_cache(const genai *g, epctx_str name, bool input, uint64_t *layer) {
    const cache_kind first = input ? PAST_KEY : PRESENT_KEY;
    return fits_pattern(cache_pattern(g, first), name, layer) ||
           fits_pattern(cache_pattern(g, (cache_kind)(first + 1)), name, layer);
}

/* Whether ORT GenAI itself feeds an input of this name. */
static bool is_managed(const genai *g, epctx_str name) {
    static const char *const own[] = {"input_ids",
                                      "attention_mask",
                                      "position_ids",
                                      "past_seq_len",
                                      "total_seq_len",
                                      "past_sequence_length",
                                      "current_sequence_length",
                                      "total_sequence_length",
                                      "past_key_values_length",
                                      "cache_indirection",
                                      "encoder_hidden_states",
                                      "encoder_attention_mask",
                                      "rnn_states_prev",
                                      NULL};
    const json *inputs = json_get(g->decoder, "inputs"), *one;
    uint64_t layer;
    if (is_one_of(name, own) || is_cache(g, name, true, &layer)) return true;
    for (one = inputs != NULL ? inputs->first : NULL; one != NULL; one = one->next) {
        if (one->kind != JSON_STRING || epctx_str_is(one->key, "inputs_embeds")) continue;
        if (epctx_str_eq(one->text, name) || fits_pattern(one->text, name, &layer)) return true;
    }
    /* With pictures or speech the embeddings come from elsewhere. */
    return !epctx_str_is(g->type, "decoder-pipeline") &&
           epctx_str_eq(name, decoder_name(g, "inputs", "inputs_embeds", "inputs_embeds"));
}

/* Notes what a stage makes: the outputs that it lists, under the names that later stages see. */
static void note_made(genai *g, part *p) {
    const json *list = json_get(p->object, "outputs"), *one;
    const json *names = json_get(p->object, "output_names_forwarder");
    const bool listed = list != NULL && list->kind == JSON_LIST;
    epctx_map others;
    epctx_map_init(&p->made, g->d->arena);
    epctx_map_init(&others, g->d->arena); /* outputs with another name */
    for (one = names != NULL ? names->first : NULL; one != NULL; one = one->next) {
        uint32_t at = epctx_map_get(&p->model.outputs.places, one->key);
        if (one->kind != JSON_STRING || at == EPCTX_MAP_NONE) continue;
        if (epctx_map_put(&others, one->key, 1) != EPCTX_OK ||
            epctx_map_put(&p->made, one->text, at) != EPCTX_OK)
            return;
    }
    for (one = listed ? list->first : NULL; one != NULL; one = one->next) {
        uint32_t at = epctx_map_get(&p->model.outputs.places, one->text);
        if (one->kind == JSON_STRING && at != EPCTX_MAP_NONE &&
            epctx_map_get(&others, one->text) == EPCTX_MAP_NONE)
            (void)epctx_map_put(&p->made, one->text, at);
    }
}

/* What a stage before `at` makes under this name in a phase; NULL: none does. */
static const delivery_value *find_output(const genai *g, size_t at, bool prompt, epctx_str name,
                                         const part **maker) {
    size_t i;
    for (i = at; i-- > 0;) {
        const part *p = &g->parts[i];
        uint32_t place;
        if (!p->open || !(prompt ? p->prompt : p->token)) continue;
        place = epctx_map_get(&p->made, name);
        if (place == EPCTX_MAP_NONE) continue;
        *maker = p;
        return &p->model.outputs.items[place];
    }
    return NULL;
}

/* What is wrong with a name that a stage lists and its graph does not have. ORT refuses outputs of
 * this kind, and inputs that there is a value for. */
static void say_listed(genai *g, size_t at, bool input, epctx_str name) {
    const part *p = &g->parts[at], *maker;
    const char *key = input ? "inputs" : "outputs";
    const bool refused = !input || is_managed(g, name) ||
                         (p->prompt && find_output(g, at, true, name, &maker) != NULL) ||
                         (p->token && find_output(g, at, false, name, &maker) != NULL);
    delivery_say(g->d, refused ? DELIVERY_G_NAMES : DELIVERY_G_UNUSED, p->name,
                 "%s has '%S', which is not one of its graph", key, &name);
}

/* G7: the inputs or outputs that a stage lists against the graph, which gets those inputs only. */
static void check_list(genai *g, size_t at, bool input) {
    const part *p = &g->parts[at];
    const delivery_values *values = input ? &p->model.inputs : &p->model.outputs;
    const json *list = json_get(p->object, input ? "inputs" : "outputs"), *one;
    epctx_map listed;
    size_t i;
    if (list != NULL && list->kind != JSON_LIST) return;
    epctx_map_init(&listed, g->d->arena);
    for (one = list != NULL ? list->first : NULL; one != NULL; one = one->next) {
        if (one->kind != JSON_STRING) continue;
        if (epctx_map_put(&listed, one->text, 1) != EPCTX_OK) return;
        if (delivery_find(values, one->text) == NULL) say_listed(g, at, input, one->text);
    }
    for (i = 0; input && list != NULL && i < values->count; i++)
        if (epctx_map_get(&listed, values->items[i].name) == EPCTX_MAP_NONE)
            delivery_say(g->d, DELIVERY_G_NAMES, p->name,
                         "inputs lacks '%S', which its graph needs", &values->items[i].name);
    if (values->count > 0 && (list == NULL || (!input && list->first == NULL)))
        delivery_say(g->d, DELIVERY_G_NAMES, p->name,
                     input ? "has no inputs: the graph then gets none"
                           : "has no outputs: ORT then refuses to run it");
}

/* The first dimension that is fixed at both ends and not the same; -1: none. */
static int32_t differing_dim(const delivery_value *a, const delivery_value *b) {
    int32_t i;
    if (a->rank < 0 || b->rank < 0) return -1;
    if (a->rank != b->rank) return 0;
    for (i = 0; i < a->rank; i++)
        if (a->dims[i] >= 0 && b->dims[i] >= 0 && a->dims[i] != b->dims[i]) return i;
    return -1;
}

static bool all_open_before(const genai *g, size_t at) {
    size_t i;
    for (i = 0; i < at; i++)
        if (!g->parts[i].open) return false;
    return true;
}

/* G8: where an input of a stage comes from. */
static void check_wire(genai *g, size_t at, const delivery_value *input) {
    const part *p = &g->parts[at], *maker = NULL;
    const delivery_value *made;
    int phase;
    if (is_managed(g, input->name)) return;
    for (phase = 0; phase < 2; phase++) {
        int32_t dim;
        if (!(phase == 0 ? p->prompt : p->token)) continue;
        made = find_output(g, at, phase == 0, input->name, &maker);
        if (made == NULL) {
            if (!all_open_before(g, at)) return;
            delivery_say(
                g->d, DELIVERY_G_WIRING, p->name,
                "input '%S' is not one of ORT GenAI's, and no earlier stage that runs on %s "
                "makes it",
                &input->name, phase == 0 ? "the prompt" : "token generation");
            return;
        }
        dim = differing_dim(made, input);
        if (made->elem_type != input->elem_type || dim >= 0) {
            delivery_say(g->d, DELIVERY_G_WIRING, p->name,
                         made->elem_type != input->elem_type
                             ? "input '%S' has another element type than in stage '%S'"
                             : "input '%S' has another shape than in stage '%S', which makes it",
                         &input->name, &maker->name);
            return;
        }
    }
}

/* -- the window and the caches -- */

static bool is_prefill(const part *p) {
    return p->stage && p->open && p->prompt && !p->token;
}

static bool is_decode(const part *p) {
    return p->stage && p->open && p->token && !p->prompt;
}

static bool is_decoder(const genai *g, const part *p) {
    return p->open && (p->stage || p->object == g->decoder);
}

/* A part of a fact as a text of its own; NULL: it is empty, or there is no memory. */
static const char *text_of(genai *g, epctx_str part_of_fact) {
    return part_of_fact.size > 0 ? epctx_arena_copy(g->d->arena, part_of_fact) : NULL;
}

/* Whether the EP keeps the cache itself. */
static bool hides_cache(genai *g, const part *p) {
    const fact *f;
    size_t i, at = 0;
    for (i = 0; i < p->model.node_count; i++)
        if (p->model.nodes[i].dlc.size > 0) return true;
    while ((f = facts_next("provider", &at)) != NULL) {
        epctx_str expected = epctx_str_of(fact_get(f, "hides_cache")), value;
        const epctx_str option = epctx_str_cut(&expected, '=');
        if (option_for(g, p, f, text_of(g, option), &value) &&
            (expected.size == 0 || epctx_str_eq_nocase(value, expected)))
            return true;
    }
    return false;
}

/* G9: the length of the sequence in the values that have one; `expected` 0: any, but not fixed. */
static void check_sequence(genai *g, size_t at, bool prompt, int64_t expected, const char *what) {
    const part *p = &g->parts[at], *maker = NULL;
    const epctx_str embeddings = decoder_name(g, "inputs", "inputs_embeds", "inputs_embeds");
    const epctx_str ids = decoder_name(g, "inputs", "input_ids", "input_ids");
    const epctx_str positions = decoder_name(g, "inputs", "position_ids", "position_ids");
    size_t i;
    for (i = 0; i < p->model.inputs.count; i++) {
        const delivery_value *value = &p->model.inputs.items[i];
        const bool known = value->rank == 2 &&
                           (epctx_str_eq(value->name, ids) || epctx_str_eq(value->name, positions));
        const bool made = value->rank == 3 && (epctx_str_eq(value->name, embeddings) ||
                                               (p->stage && !is_managed(g, value->name) &&
                                                find_output(g, at, prompt, value->name, &maker)));
        if ((!known && !made) || value->dims[1] < 0 || value->dims[1] == expected) continue;
        if (expected == 0)
            delivery_say(g->d, DELIVERY_G_WINDOW, p->name,
                         "input '%S' has a sequence of %d, but %s", &value->name, value->dims[1],
                         what);
        else
            delivery_say(g->d, DELIVERY_G_WINDOW, p->name,
                         "input '%S' has a sequence of %d, but %s is %d", &value->name,
                         value->dims[1], what, expected);
        return;
    }
}

static void check_window(genai *g) {
    const json *window = json_get(g->decoder, "sliding_window");
    const int64_t size = number_of(window, "window_size");
    const int64_t length = number_of(g->model, "context_length");
    size_t i;
    if (window != NULL && size <= 0)
        delivery_say(g->d, DELIVERY_G_WINDOW, g->nothing,
                     "sliding_window.window_size is missing or not above 0");
    if (size > 0 && length > 0 && size > length)
        delivery_say(g->d, DELIVERY_G_WINDOW, g->nothing,
                     "sliding_window.window_size is %d, more than context_length, %d", size,
                     length);
    for (i = 0; i < g->count; i++) {
        const part *p = &g->parts[i];
        if (!is_decoder(g, p) || hides_cache(g, p)) continue;
        if (p->prompt && p->token)
            check_sequence(g, i, true, 0, "it runs on the prompt and on single tokens");
        else if (p->token)
            check_sequence(g, i, false, 1, "what a token needs");
        else if (p->prompt && (window == NULL || !truth_of(window, "slide_inputs", true)))
            check_sequence(g, i, true, 0, "without a sliding window a prompt comes as it is");
        else if (p->prompt && size > 0)
            check_sequence(g, i, true, size, "window_size");
    }
}

static const delivery_values *values_of(const part *p, cache_kind kind) {
    return kind <= PAST_VALUE ? &p->model.inputs : &p->model.outputs;
}

/* The name of a cache of one layer. */
static epctx_str cache_name(genai *g, cache_kind kind, uint64_t layer) {
    const epctx_str pattern = cache_pattern(g, kind);
    char *name = (char *)delivery_alloc(g->d, pattern.size + 24, 1);
    epctx_text text = epctx_text_of(name, name != NULL ? pattern.size + 24 : 0);
    size_t head = 0;
    epctx_str part_of = pattern;
    while (head + 1 < pattern.size && memcmp(pattern.data + head, "%d", 2) != 0) head++;
    if (name == NULL || head + 1 >= pattern.size) return pattern;
    part_of.size = head;
    epctx_text_put(&text, part_of);
    epctx_text_put_format(&text, "%u", layer);
    part_of.data = pattern.data + head + 2;
    part_of.size = pattern.size - head - 2;
    epctx_text_put(&text, part_of);
    return epctx_text_str(&text);
}

/* G10: a layer that has one of its caches has all four. Which layers have any is the model's
 * matter: there are others that keep a state of another kind, or none. */
static void check_layers_whole(genai *g, const part *p) {
    size_t i;
    for (i = 0; i < p->model.inputs.count; i++) {
        uint64_t layer;
        int kind;
        if (!is_cache(g, p->model.inputs.items[i].name, true, &layer)) continue;
        for (kind = 0; kind < CACHE_KINDS; kind++) {
            const epctx_str name = cache_name(g, (cache_kind)kind, layer);
            if (delivery_find(values_of(p, (cache_kind)kind), name) != NULL) continue;
            delivery_say(g->d, DELIVERY_G_CACHE_SHAPE, p->name,
                         "has the cache '%S', but no %s '%S'", &p->model.inputs.items[i].name,
                         kind <= PAST_VALUE ? "input" : "output", &name);
            return;
        }
    }
}

/* One cache: kv heads in front. head_size is not judged: of transposed keys it is elsewhere. */
static bool fits_heads(const genai *g, const delivery_value *value) {
    const int64_t heads = number_of(g->decoder, "num_key_value_heads");
    return heads <= 0 || value->rank != 4 || value->dims[0] < 0 || value->dims[0] == heads ||
           value->dims[1] < 0 || value->dims[1] == heads;
}

static void check_cache_sizes(genai *g, const part *p, bool input) {
    const delivery_values *values = input ? &p->model.inputs : &p->model.outputs;
    uint64_t layer;
    size_t i;
    for (i = 0; i < values->count; i++) {
        const delivery_value *value = &values->items[i];
        if (!is_cache(g, value->name, input, &layer) || fits_heads(g, value)) continue;
        delivery_say(g->d, DELIVERY_G_CACHE_SIZE, p->name,
                     "'%S' does not have the shape of num_key_value_heads %d", &value->name,
                     number_of(g->decoder, "num_key_value_heads"));
        return;
    }
}

/* What looks like a cache, and has a name that nobody gives a value. */
static void check_unfed(genai *g, const part *p) {
    size_t i;
    for (i = 0; i < p->model.inputs.count; i++) {
        const delivery_value *value = &p->model.inputs.items[i];
        if (value->rank != 4 || is_managed(g, value->name)) continue;
        delivery_say(g->d, DELIVERY_G_CACHE_SHAPE, p->name,
                     "input '%S' looks like a cache, but decoder.inputs has no name that fits",
                     &value->name);
        return;
    }
}

/* The names of caches are patterns with one place for the layer. */
static void check_patterns(genai *g) {
    int kind;
    for (kind = 0; kind < CACHE_KINDS; kind++) {
        const epctx_str pattern = cache_pattern(g, (cache_kind)kind);
        size_t places = 0, others = 0, i;
        for (i = 0; i < pattern.size; i++) {
            if (pattern.data[i] != '%') continue;
            if (i + 1 < pattern.size && pattern.data[i + 1] == 'd')
                places++;
            else
                others++;
        }
        if (places != 1 || others > 0)
            delivery_say(g->d, DELIVERY_G_NAMES, g->nothing,
                         "the name '%S' of caches needs one %%d, the layer, and no other %%",
                         &pattern);
    }
}

/* Models whose layers keep more than keys and values. */
static bool has_other_state(const genai *g) {
    static const char *const keys[] = {"past_names",      "past_conv_names", "past_recurrent_names",
                                       "rnn_states_prev", "block_table",     NULL};
    const json *inputs = json_get(g->decoder, "inputs"), *one;
    if (json_get(g->decoder, "layer_types") != NULL || json_get(g->decoder, "state_groups") != NULL)
        return true;
    for (one = inputs != NULL ? inputs->first : NULL; one != NULL; one = one->next)
        if (is_one_of(one->key, keys)) return true;
    return false;
}

/* A value of this name in a decoder model; NULL: none has it. */
static const delivery_value *find_anywhere(const genai *g, bool input, epctx_str name) {
    const delivery_value *found = NULL;
    size_t i;
    for (i = 0; i < g->count && found == NULL; i++)
        if (is_decoder(g, &g->parts[i]))
            found =
                delivery_find(input ? &g->parts[i].model.inputs : &g->parts[i].model.outputs, name);
    return found;
}

/* Whether the decoder is one that turns tokens into logits, and all its models can be read. */
static bool is_usual(const genai *g) {
    bool any = false;
    size_t i;
    if (json_get(g->model, "joiner") != NULL) return false;
    for (i = 0; i < g->count; i++) {
        const part *p = &g->parts[i];
        if (!p->stage && p->object != g->decoder) continue;
        if (!p->open) return false;
        any = true;
    }
    return any;
}

/* What generating asks of the models: tokens in, logits out, one for each token that there is. */
static void check_ends(genai *g) {
    const epctx_str ids = decoder_name(g, "inputs", "input_ids", "input_ids");
    const epctx_str embeddings = decoder_name(g, "inputs", "inputs_embeds", "inputs_embeds");
    const epctx_str logits = decoder_name(g, "outputs", "logits", "logits");
    const json *count = json_get(g->model, "vocab_size");
    const int64_t size = number_of(g->model, "vocab_size");
    const delivery_value *made;
    if (!is_usual(g)) return;
    if (count == NULL || (size <= 0 && !genai_refuses("model", count)))
        delivery_say(g->d, DELIVERY_G_TYPE, g->nothing,
                     "model.vocab_size is missing or not above 0");
    if (find_anywhere(g, true, ids) == NULL &&
        (g->stage_count > 0 || find_anywhere(g, true, embeddings) == NULL))
        delivery_say(g->d, DELIVERY_G_NAMES, g->nothing, "no decoder model has the input '%S'",
                     &ids);
    made = find_anywhere(g, false, logits);
    if (made == NULL)
        delivery_say(g->d, DELIVERY_G_NAMES, g->nothing, "no decoder model has the output '%S'",
                     &logits);
    else if (made->rank > 0 && size > 0 && made->dims[made->rank - 1] >= 0 &&
             made->dims[made->rank - 1] != size)
        delivery_say(g->d, DELIVERY_G_TYPE, g->nothing,
                     "model.vocab_size is %d, but '%S' has %d elements for each token", size,
                     &logits, made->dims[made->rank - 1]);
}

static void check_caches(genai *g) {
    const int64_t heads = number_of(g->decoder, "num_attention_heads");
    const int64_t size = number_of(g->decoder, "head_size");
    const int64_t hidden = number_of(g->decoder, "hidden_size");
    size_t i;
    if (heads > 0 && size > 0 && hidden > 0 &&
        (size > hidden || heads != hidden / size || hidden % size != 0))
        delivery_say(g->d, DELIVERY_G_HEADS, g->nothing,
                     "head_size %d x num_attention_heads %d is not hidden_size %d", size, heads,
                     hidden);
    if (has_other_state(g)) return;
    check_patterns(g);
    for (i = 0; i < g->count; i++) {
        const part *p = &g->parts[i];
        if (!is_decoder(g, p) || hides_cache(g, p)) continue;
        check_cache_sizes(g, p, true);
        check_cache_sizes(g, p, false);
        if (p->stage) continue;
        check_layers_whole(g, p);
        check_unfed(g, p);
    }
}

/* The cache of this name in a stage of the other phase. */
static const delivery_value *other_cache(const genai *g, bool prefill, bool input, epctx_str name) {
    size_t i;
    for (i = 0; i < g->stage_count; i++) {
        const part *p = &g->parts[i];
        const delivery_value *found;
        if (prefill ? !is_decode(p) : !is_prefill(p)) continue;
        found = delivery_find(input ? &p->model.inputs : &p->model.outputs, name);
        if (found != NULL) return found;
    }
    return NULL;
}

/* G11 */
static void check_phases(genai *g) {
    bool prefill = false, decode = false, types = false;
    size_t i, k;
    int side;
    for (i = 0; i < g->stage_count; i++) {
        prefill = prefill || is_prefill(&g->parts[i]);
        decode = decode || is_decode(&g->parts[i]);
    }
    if (!prefill || !decode) return;
    for (i = 0; i < g->stage_count; i++) {
        const part *p = &g->parts[i];
        if (!is_prefill(p) && !is_decode(p)) continue;
        for (side = 0; side < 2; side++) {
            const delivery_values *values = side == 0 ? &p->model.inputs : &p->model.outputs;
            for (k = 0; k < values->count; k++) {
                const delivery_value *value = &values->items[k], *other;
                uint64_t layer;
                if (!is_cache(g, value->name, side == 0, &layer)) continue;
                other = other_cache(g, is_prefill(p), side == 0, value->name);
                if (other == NULL) {
                    delivery_say(g->d, DELIVERY_G_CACHE_NAMES, p->name,
                                 "has the cache '%S', which no stage for %s has", &value->name,
                                 is_prefill(p) ? "tokens" : "the prompt");
                    return;
                }
                if (other->elem_type == value->elem_type || types) continue;
                types = true;
                delivery_say(g->d, DELIVERY_G_CACHE_TYPES, p->name,
                             "the cache '%S' has element type %d here and %d in the other phase",
                             &value->name, (int64_t)value->elem_type, (int64_t)other->elem_type);
            }
        }
    }
}

/* The layers of which a stage has caches. */
static bool read_layers(genai *g, const part *p, epctx_map *layers, size_t *count) {
    size_t i;
    epctx_map_init(layers, g->d->arena);
    *count = 0;
    for (i = 0; i < p->model.inputs.count; i++) {
        uint64_t layer;
        char *key;
        epctx_str text;
        if (!is_cache(g, p->model.inputs.items[i].name, true, &layer)) continue;
        key = (char *)epctx_arena_alloc(g->d->arena, sizeof layer);
        if (key == NULL) return false;
        memcpy(key, &layer, sizeof layer);
        text.data = key;
        text.size = sizeof layer;
        if (epctx_map_get(layers, text) != EPCTX_MAP_NONE) continue;
        if (epctx_map_put(layers, text, 1) != EPCTX_OK) return false;
        ++*count;
    }
    return true;
}

static size_t common_layers(genai *g, const part *p, const epctx_map *layers) {
    epctx_map seen;
    size_t i, common = 0;
    epctx_map_init(&seen, g->d->arena);
    for (i = 0; i < p->model.inputs.count; i++) {
        uint64_t layer;
        char bytes[sizeof layer], *key;
        epctx_str text = {bytes, sizeof bytes};
        if (!is_cache(g, p->model.inputs.items[i].name, true, &layer)) continue;
        memcpy(bytes, &layer, sizeof layer);
        if (epctx_map_get(layers, text) == EPCTX_MAP_NONE ||
            epctx_map_get(&seen, text) != EPCTX_MAP_NONE)
            continue;
        key = epctx_arena_copy(g->d->arena, text);
        if (key == NULL) return 0;
        text.data = key;
        if (epctx_map_put(&seen, text, 1) != EPCTX_OK) return 0;
        common++;
    }
    return common;
}

/* G12 */
static void check_layers(genai *g) {
    epctx_map *layers = (epctx_map *)delivery_alloc(g->d, g->stage_count, sizeof *layers);
    size_t *counts = (size_t *)delivery_alloc(g->d, g->stage_count, sizeof *counts), i, k;
    if (layers == NULL || counts == NULL) return;
    for (i = 0; i < g->stage_count; i++) {
        const part *p = &g->parts[i];
        const json *reset = json_get(p->object, "reset_session_idx");
        const int64_t index = number_of(p->object, "reset_session_idx");
        if (reset != NULL && (index < -1 || index >= (int64_t)g->stage_count))
            delivery_say(g->d, DELIVERY_G_LAYERS, p->name,
                         "reset_session_idx is %d, but the stages are 0 to %u", index,
                         (uint64_t)g->stage_count - 1);
        if (!p->open) continue;
        if (!read_layers(g, p, &layers[i], &counts[i])) return;
        for (k = 0; k < i && counts[i] > 0; k++) {
            size_t common = counts[k] > 0 ? common_layers(g, p, &layers[k]) : 0;
            if (common == 0 || (common == counts[i] && common == counts[k])) continue;
            delivery_say(g->d, DELIVERY_G_LAYERS, p->name,
                         "shares %u layers with stage '%S', but they are not the same %u and %u",
                         (uint64_t)common, &g->parts[k].name, (uint64_t)counts[i],
                         (uint64_t)counts[k]);
            break;
        }
    }
}

/* G13 */
static void check_lm_head(genai *g) {
    size_t heads = 0, last = 0, i;
    for (i = 0; i < g->stage_count; i++) {
        if (!g->parts[i].lm_head) continue;
        heads++;
        last = i;
    }
    if (heads > 1)
        delivery_say(g->d, DELIVERY_G_LM_HEAD, g->nothing, "%u stages have is_lm_head",
                     (uint64_t)heads);
    else if (heads == 1 && last + 1 != g->stage_count)
        delivery_say(g->d, DELIVERY_G_LM_HEAD, g->parts[last].name,
                     "has is_lm_head but is not the last stage");
}

/* -- binaries -- */

static bool ends_with(epctx_str name, const char *end) {
    size_t size = strlen(end);
    epctx_str tail;
    if (name.size < size) return false;
    tail.data = name.data + name.size - size;
    tail.size = size;
    return epctx_str_eq_nocase(tail, epctx_str_of(end));
}

static void check_binaries(genai *g, const part *p) {
    size_t i;
    for (i = 0; i < p->model.file_count; i++) {
        const epctx_dependency *file = &p->model.files[i];
        if (file->use != EPCTX_USE_CONTEXT || !file->required) continue;
        if (file->status != EPCTX_OK)
            delivery_say(g->d,
                         strcmp(file->attribute, "ep_dlc_context") == 0 ? DELIVERY_G_GENIE
                                                                        : DELIVERY_G_BINARY,
                         p->name, "%s", file->problem);
        else if (file->size == 0)
            delivery_say(g->d, DELIVERY_G_BINARY, p->name, "the context binary '%S' is empty",
                         &file->name);
    }
}

/* Notes the paths of the files that a model names, also of those that it cannot use. */
static bool note_files(genai *g, const delivery_model *model, epctx_map *used) {
    const epctx_io *io = epctx_io_files();
    size_t i;
    for (i = 0; i < model->file_count; i++) {
        const epctx_dependency *file = &model->files[i];
        const char *path = file->path;
        if (path == NULL && file->folder != NULL) {
            char found[EPCTX_PATH_MAX];
            path = delivery_join(g->d, file->folder, file->name);
            if (path == NULL ||
                io->canonical_fn(io->user, path, found, sizeof found, NULL) != EPCTX_OK)
                continue;
            path = epctx_arena_copy(g->d->arena, epctx_str_of(found));
        }
        if (path != NULL && epctx_map_put(used, epctx_str_of(path), 1) != EPCTX_OK) return false;
    }
    return true;
}

/* The same for all models in the folder; false: not all can be read. */
static bool note_used(genai *g, epctx_map *used) {
    bool all = true;
    size_t i;
    for (i = 0; i < g->d->files->count; i++) {
        const tree_entry *entry = &g->d->files->entries[i];
        delivery_model model;
        epctx_error error;
        if (entry->kind != TREE_FILE || !tree_ends(entry->name, ".onnx")) continue;
        if (delivery_open(g->d, entry->path, NULL, &model, &error) != EPCTX_OK) all = false;
        all = note_files(g, &model, used) && all;
        delivery_close(&model);
    }
    for (i = 0; i < g->count; i++) all = note_files(g, &g->parts[i].model, used) && all;
    return all;
}

/* The EP that writes such a file beside its models without any model naming it, or NULL. */
static const epctx_profile *maker_of(epctx_str name) {
    size_t count, i, k;
    const epctx_profile *all = epctx_profiles(&count);
    for (i = 0; i < count; i++)
        for (k = 0; k < 4 && all[i].sidecars[k] != NULL; k++)
            if (epctx_profile_name_fits(all[i].sidecars[k], epctx_path_file(name), name))
                return &all[i];
    return NULL;
}

/* G14: binaries that nothing names. The .bin beside an .xml belongs to that. */
static void check_orphans(genai *g) {
    const epctx_io *io = epctx_io_files();
    epctx_map used;
    size_t i;
    epctx_map_init(&used, g->d->arena);
    if (!note_used(g, &used)) return;
    for (i = 0; i < g->d->files->count; i++) {
        const tree_entry *entry = &g->d->files->entries[i];
        const epctx_str name = epctx_str_of(entry->name);
        char path[EPCTX_PATH_MAX];
        const epctx_profile *maker = maker_of(name);
        epctx_file_info info;
        if (entry->kind != TREE_FILE || !ends_with(name, ".bin") ||
            io->canonical_fn(io->user, entry->path, path, sizeof path, NULL) != EPCTX_OK ||
            (maker == NULL && epctx_map_get(&used, epctx_str_of(path)) != EPCTX_MAP_NONE))
            continue;
        if (ends_with(epctx_str_of(path), ".bin")) {
            memcpy(path + strlen(path) - 4, ".xml", 4);
            if (io->stat_fn(io->user, path, &info, NULL) == EPCTX_OK &&
                info.kind == EPCTX_FILE_REGULAR)
                continue;
        }
        if (maker != NULL)
            delivery_say(g->d, DELIVERY_G_ORPHAN, g->nothing,
                         "'%S' is a by-product of EP '%s' that no model names", &name, maker->name);
        else
            delivery_say(g->d, DELIVERY_G_ORPHAN, g->nothing, "no model names '%S'", &name);
    }
}

static bool is_embedded(const part *p) {
    size_t i;
    for (i = 0; i < p->model.node_count; i++)
        if (p->model.nodes[i].node.embed_mode == 1 &&
            p->model.nodes[i].node.ep_cache_context.size > 0)
            return true;
    return false;
}

/* Whether two stages have a binary in common. */
static bool have_common(genai *g, const part *a, const part *b) {
    epctx_map paths;
    size_t i;
    epctx_map_init(&paths, g->d->arena);
    for (i = 0; i < a->model.file_count; i++) {
        const epctx_dependency *file = &a->model.files[i];
        if (file->use == EPCTX_USE_CONTEXT && file->path != NULL &&
            epctx_map_put(&paths, epctx_str_of(file->path), 1) != EPCTX_OK)
            return false;
    }
    for (i = 0; i < b->model.file_count; i++) {
        const epctx_dependency *file = &b->model.files[i];
        if (file->use == EPCTX_USE_CONTEXT && file->path != NULL &&
            epctx_map_get(&paths, epctx_str_of(file->path)) != EPCTX_MAP_NONE)
            return true;
    }
    return false;
}

static bool has_binary(const part *p) {
    size_t i;
    for (i = 0; i < p->model.file_count; i++)
        if (p->model.files[i].use == EPCTX_USE_CONTEXT && p->model.files[i].path != NULL)
            return true;
    return false;
}

/* The first node of a part that is for the EP of a provider, or NULL. */
static const epctx_epnode *node_for(const part *p, const fact *provider) {
    size_t i;
    for (i = 0; p->open && i < p->model.node_count; i++)
        if (genai_provider_of(p->model.nodes[i].node.source) == provider)
            return &p->model.nodes[i].node;
    return NULL;
}

/* G15 */
static void check_sharing(genai *g) {
    const part *prefill = NULL, *decode = NULL;
    bool shared = false;
    size_t i, k;
    for (i = 0; i < g->stage_count; i++) {
        const part *p = &g->parts[i];
        if (is_prefill(p) && has_binary(p)) prefill = p;
        if (is_decode(p) && has_binary(p)) decode = p;
        for (k = 0; k < g->stage_count; k++)
            shared = shared ||
                     (is_prefill(p) && is_decode(&g->parts[k]) && have_common(g, p, &g->parts[k]));
    }
    if (prefill != NULL && decode != NULL && !shared)
        delivery_say(g->d, DELIVERY_G_UNSHARED, g->nothing,
                     "stages '%S' and '%S' have no context binary in common", &prefill->name,
                     &decode->name);
}

/* G15, for the stages of a provider that share contexts. */
static void check_embedded(genai *g, const fact *provider) {
    size_t count = 0, i;
    for (i = 0; i < g->stage_count; i++) count += node_for(&g->parts[i], provider) != NULL;
    for (i = 0; i < g->stage_count && count > 1; i++) {
        const part *p = &g->parts[i];
        if (node_for(p, provider) != NULL && is_embedded(p))
            delivery_say(g->d, DELIVERY_G_EMBEDDED, p->name,
                         "has its context embedded, but ORT GenAI lets all %s stages share "
                         "contexts",
                         provider->name);
    }
}

/* G16: what can be told without reading the vendor's binary. */
static void check_mains(genai *g, const part *p) {
    epctx_map primaries;
    size_t i;
    epctx_map_init(&primaries, g->d->arena);
    for (i = 0; i < p->model.node_count; i++) {
        const delivery_node *node = &p->model.nodes[i];
        const epctx_str binary = node->node.ep_cache_context;
        if (node->node.embed_mode != 0 || node->node.main_context != 1 || binary.size == 0 ||
            (node->profile->traits & (EPCTX_TRAIT_ALL_NAME | EPCTX_TRAIT_EACH_CONTEXT)) != 0)
            continue;
        if (epctx_map_get(&primaries, binary) != EPCTX_MAP_NONE) {
            delivery_say(g->d, DELIVERY_G_PARTITIONS, p->name,
                         "several nodes are primary and name '%S'", &binary);
            return;
        }
        if (epctx_map_put(&primaries, binary, 1) != EPCTX_OK) return;
    }
}

/* G17, for the same stages: a graph is found by its name in all that they share. */
static void check_graph_names(genai *g, const fact *provider) {
    epctx_map names;
    size_t i, k;
    epctx_map_init(&names, g->d->arena);
    for (i = 0; i < g->stage_count; i++) {
        const part *p = &g->parts[i];
        for (k = 0; p->open && k < p->model.node_count; k++) {
            const delivery_node *node = &p->model.nodes[k];
            uint32_t other;
            if (genai_provider_of(node->node.source) != provider || node->dlc.size > 0) continue;
            other = epctx_map_get(&names, node->node.name);
            if (other != EPCTX_MAP_NONE && other != i) {
                delivery_say(g->d, DELIVERY_G_GRAPH_NAMES, p->name,
                             "the %s graph '%S' has the name of one of stage '%S'", provider->name,
                             &node->node.name, &g->parts[other].name);
                break;
            }
            if (epctx_map_put(&names, node->node.name, (uint32_t)i) != EPCTX_OK) return;
        }
    }
}

/* -- what stages were made with -- */

/* A fact about a stage; the first stage of each provider that has it decides. */
typedef struct stage_fact {
    const char *name;
    epctx_str value, stage;
} stage_fact;

static void compare_fact(genai *g, stage_fact *first, const part *p, epctx_str value) {
    if (value.size == 0) return;
    if (first->value.size == 0) {
        first->value = value;
        first->stage = p->name;
    } else if (!epctx_str_eq(first->value, value)) {
        delivery_say(g->d, DELIVERY_G_DISAGREE, p->name, "%s is '%S', but '%S' in stage '%S'",
                     first->name, &value, &first->value, &first->stage);
    }
}

static epctx_str compatibility_of(const part *p, epctx_str source) {
    epctx_buffer key;
    epctx_str value = epctx_str_of("");
    epctx_buffer_init(&key, NULL);
    if (epctx_buffer_append(&key, EPCTX_COMPAT_PREFIX, sizeof EPCTX_COMPAT_PREFIX - 1) ==
            EPCTX_OK &&
        (source.size == 0 || epctx_buffer_append(&key, source.data, source.size) == EPCTX_OK) &&
        !epctx_model_metadata(&p->model.model, (epctx_str){(const char *)key.data, key.size},
                              &value))
        value = epctx_str_of("");
    epctx_buffer_free(&key);
    return value;
}

/* G18 for the options that choose a chip, "OPTION=KEY OF THE CHIP, ...". */
static void check_chip_options(genai *g, const fact *provider) {
    epctx_str profiles = epctx_str_of(fact_get(provider, "profiles")), list, word;
    const char *profile = text_of(g, fact_next_word(&profiles, &word) ? word : epctx_str_of(""));
    list = epctx_str_of(profile != NULL ? facts_of_ep(profile, "chip_options") : NULL);
    while (fact_next_word(&list, &word)) {
        const epctx_str key = epctx_str_cut(&word, '=');
        stage_fact first = {"", {NULL, 0}, {NULL, 0}};
        char name[80];
        size_t i;
        snprintf(name, sizeof name, "the option %.*s", (int)(key.size < 60 ? key.size : 60),
                 key.data);
        first.name = name;
        for (i = 0; i < g->stage_count; i++) {
            const part *p = &g->parts[i];
            epctx_str value;
            if (node_for(p, provider) != NULL &&
                option_for(g, p, provider, text_of(g, key), &value))
                compare_fact(g, &first, p, value);
        }
    }
}

/* G18 for the stages of one provider. */
static void check_agreement(genai *g, const fact *provider) {
    stage_fact facts[] = {{"source", {NULL, 0}, {NULL, 0}},
                          {"ep_sdk_version", {NULL, 0}, {NULL, 0}},
                          {"hardware_architecture", {NULL, 0}, {NULL, 0}},
                          {"ep_compatibility_info", {NULL, 0}, {NULL, 0}}};
    size_t i;
    for (i = 0; i < g->stage_count; i++) {
        const part *p = &g->parts[i];
        const epctx_epnode *node = node_for(p, provider);
        if (node == NULL) continue;
        compare_fact(g, &facts[0], p, node->source);
        compare_fact(g, &facts[1], p, node->ep_sdk_version);
        compare_fact(g, &facts[2], p, node->hardware_architecture);
        compare_fact(g, &facts[3], p, compatibility_of(p, node->source));
    }
}

/* A limit in GiB as bytes; none: as many as there can be. */
static uint64_t bytes_of(const char *gib) {
    const double limit = gib != NULL ? strtod(gib, NULL) : 0;
    return limit > 0 && limit < 1e6 ? (uint64_t)(limit * (1 << 30)) : UINT64_MAX;
}

/* G20, for the binaries of one provider. */
static void check_sizes(genai *g, const fact *provider) {
    const char *graph = fact_get(provider, "graph_gib");
    const char *process = fact_get(provider, "process_gib");
    uint64_t sum = 0;
    epctx_map seen;
    size_t i, k, n;
    epctx_map_init(&seen, g->d->arena);
    for (i = 0; i < g->count; i++) {
        const part *p = &g->parts[i];
        for (k = 0; node_for(p, provider) != NULL && k < p->model.file_count; k++) {
            const epctx_dependency *file = &p->model.files[k];
            size_t users = 0;
            if (file->use != EPCTX_USE_CONTEXT || file->path == NULL ||
                epctx_map_get(&seen, epctx_str_of(file->path)) != EPCTX_MAP_NONE)
                continue;
            if (epctx_map_put(&seen, epctx_str_of(file->path), 1) != EPCTX_OK) return;
            sum += file->size;
            for (n = 0; n < g->count; n++)
                users += g->parts[n].open && (n == i || have_common(g, p, &g->parts[n]));
            if (file->size > bytes_of(graph) && p->model.node_count == 1 && users == 1)
                delivery_say(g->d, DELIVERY_G_SIZE, p->name,
                             "'%S' holds one graph and has %u bytes, more than %s GiB", &file->name,
                             file->size, graph);
        }
    }
    if (sum > bytes_of(process))
        delivery_say(g->d, DELIVERY_G_SIZE, g->nothing,
                     "the %s context binaries have %u bytes together, more than %s GiB",
                     provider->name, sum, process);
}

/* -- what some EPs need -- */

/* A number in a configuration that is the text of an option, by "OBJECT/KEY", as in
 * {"OBJECT": {"KEY": 1 or "1"}}; false: it is not there. */
static bool config_number(genai *g, const json *config, const char *path, int64_t *out) {
    epctx_str key = epctx_str_of(path);
    const char *object = text_of(g, epctx_str_cut(&key, '/')), *name = text_of(g, key);
    const json *where = object != NULL ? json_get(config, object) : NULL;
    const json *value = name != NULL ? json_get(where, name) : NULL;
    uint64_t number = 0;
    *out = 0;
    if (value == NULL) return false;
    if (value->kind == JSON_NUMBER) *out = number_of(where, name);
    if (value->kind == JSON_STRING && epctx_str_number(value->text, &number) && number < INT32_MAX)
        *out = (int64_t)number;
    return true;
}

/* The key behind "OBJECT/". */
static const char *key_in(const char *path) {
    const char *slash = path != NULL ? strchr(path, '/') : NULL;
    return slash != NULL ? slash + 1 : path;
}

static void check_lengths(genai *g, const part *p, const fact *provider) {
    const int64_t limit = number_of(json_get(g->root, "search"), "max_length");
    const char *option = fact_get(provider, "config");
    const char *prompt_at = fact_get(provider, "prompt_length");
    const char *response_at = fact_get(provider, "response_length");
    const json *config;
    epctx_str text;
    bool prompt_given, response_given;
    int64_t prompt, response;
    size_t at;
    if (!option_for(g, p, provider, option, &text) || ends_with(text, ".json")) return;
    config = json_read(text, g->d->arena, &at);
    if (config == NULL) {
        delivery_say(g->d, DELIVERY_G_OPENVINO, p->name, "%s is not JSON", option);
        return;
    }
    prompt_given = config_number(g, config, prompt_at, &prompt);
    response_given = config_number(g, config, response_at, &response);
    if ((prompt_given && prompt <= 0) || (response_given && response <= 0))
        delivery_say(g->d, DELIVERY_G_OPENVINO, p->name, "%s in %s is not above 0",
                     key_in(prompt_given && prompt <= 0 ? prompt_at : response_at), option);
    else if (prompt_given && response_given && prompt + response < limit)
        delivery_say(g->d, DELIVERY_G_OPENVINO_LENGTHS, p->name,
                     "%s %d and %s %d are less than max_length %d together", key_in(prompt_at),
                     prompt, key_in(response_at), response, limit);
}

/* G21 */
static void check_companions(genai *g, const part *p) {
    size_t i;
    for (i = 0; i < p->model.file_count; i++) {
        const epctx_dependency *file = &p->model.files[i];
        if (file->use == EPCTX_USE_COMPANION && file->status != EPCTX_OK && file->required)
            delivery_say(g->d, DELIVERY_G_OPENVINO, p->name, "%s", file->problem);
    }
}

/* G21: what the EP of a part must be told. */
static void check_told(genai *g, const part *p) {
    const fact *f;
    size_t at = 0;
    while ((f = facts_next("provider", &at)) != NULL) {
        const char *device = fact_get(f, "device_option");
        epctx_str type;
        if (node_for(p, f) == NULL || provider_for(g, p, f) == NULL) continue;
        if (device != NULL && !option_for(g, p, f, device, &type))
            delivery_say(g->d, DELIVERY_G_DEVICE, p->name,
                         "%s has no %s: ORT GenAI then takes the CPU", f->name, device);
        check_lengths(g, p, f);
    }
}

/* The provider of a node with a DLC: of its source, or else the first one that runs such. */
static const fact *dlc_provider(epctx_str source) {
    const fact *f = genai_provider_of(source);
    size_t at = 0;
    if (f != NULL && fact_get(f, "dlc_option") != NULL) return f;
    while ((f = facts_next("provider", &at)) != NULL && fact_get(f, "dlc_option") == NULL) continue;
    return f;
}

/* G22 */
static void check_genie(genai *g, const part *p) {
    const fact *provider = NULL;
    const char *pattern, *option;
    bool found = false;
    size_t count = 0, i;
    epctx_str value;
    for (i = 0; i < p->model.node_count && provider == NULL; i++)
        if (p->model.nodes[i].dlc.size > 0) provider = dlc_provider(p->model.nodes[i].node.source);
    if (provider == NULL) return;
    pattern = fact_get(provider, "dlc_files");
    option = fact_get(provider, "dlc_option");
    for (i = 0; i < g->d->files->count; i++) {
        const epctx_str name = epctx_str_of(g->d->files->entries[i].name);
        count += ends_with(name, ".dlc");
        found = found || pattern == NULL ||
                epctx_profile_name_fits(pattern, epctx_path_file(name), name);
    }
    if (!found)
        delivery_say(g->d, DELIVERY_G_GENIE, p->name, "there is no %s in the folder", pattern);
    if (!option_for(g, p, provider, option, &value))
        delivery_say(g->d, DELIVERY_G_GENIE, p->name, "%s lacks the option %s", provider->name,
                     option);
    if (count > 1)
        delivery_say(g->d, DELIVERY_G_MANY_DLC, p->name,
                     "the folder has %u .dlc files, of which the first is used", (uint64_t)count);
}

/* -- the rest of the folder -- */

/* Whether there is a tokenizer that an EP runs itself. */
static bool has_own_tokenizer(const genai *g) {
    const fact *f;
    size_t at = 0;
    while ((f = facts_next("provider", &at)) != NULL) {
        const char *file = fact_get(f, "tokenizer");
        if (file != NULL && tree_find(g->d->files, epctx_str_of(file)) != NULL) return true;
    }
    return false;
}

/* G23 */
static void check_tokenizer(genai *g) {
    static const char *const names[] = {"tokenizer.json", "tokenizer_config.json"};
    const epctx_str folder = delivery_text(g->model, "tokenizer_dir");
    size_t i;
    if (has_own_tokenizer(g) || epctx_str_starts(folder, "sha256:")) return;
    if (folder.size > 0 && (tree_find(g->d->files, folder) != NULL || delivery_climbs(folder) ||
                            delivery_is_absolute(folder)))
        return; /* shared by several models, and no part of this folder */
    if (folder.size > 0) {
        delivery_say(g->d, DELIVERY_G_TOKENIZER, g->nothing, "tokenizer_dir '%S' does not exist",
                     &folder);
        return;
    }
    for (i = 0; i < 2; i++)
        if (tree_find(g->d->files, epctx_str_of(names[i])) == NULL)
            delivery_say(g->d, DELIVERY_G_TOKENIZER, g->nothing, "there is no %s", names[i]);
}

/* G24 */
static void check_dynamic(genai *g, const part *p) {
    const fact *f;
    size_t i, at = 0;
    while ((f = facts_next("provider", &at)) != NULL &&
           (fact_get(f, "fixed_shapes") == NULL || provider_for(g, p, f) == NULL))
        continue;
    for (i = 0; f != NULL && i < p->model.inputs.count; i++) {
        const delivery_value *value = &p->model.inputs.items[i];
        int32_t k = 0;
        while (k < value->rank && value->dims[k] >= 0) k++;
        if (k >= value->rank) continue;
        delivery_say(g->d, DELIVERY_G_DYNAMIC, p->name,
                     "input '%S' has a dimension that is not fixed, which %s does not take",
                     &value->name, f->name);
        return;
    }
}

static void check_part(genai *g, part *p, size_t at) {
    size_t i;
    open_part(g, p);
    if (!p->open) return;
    check_providers(g, p);
    if (p->stage) {
        note_made(g, p);
        check_list(g, at, true);
        check_list(g, at, false);
        for (i = 0; i < p->model.inputs.count; i++) check_wire(g, at, &p->model.inputs.items[i]);
    }
    check_binaries(g, p);
    check_mains(g, p);
    check_companions(g, p);
    check_told(g, p);
    check_genie(g, p);
    check_dynamic(g, p);
}

/* The stages of one provider together. */
static void check_provided(genai *g, const fact *provider) {
    if (fact_get(provider, "shares") != NULL) {
        check_embedded(g, provider);
        check_graph_names(g, provider);
    }
    check_agreement(g, provider);
    check_chip_options(g, provider);
    check_sizes(g, provider);
}

static void judge(genai *g) {
    const fact *f;
    size_t i, at = 0;
    check_type(g);
    check_stages(g);
    check_options(g);
    for (i = 0; i < g->count; i++) check_part(g, &g->parts[i], i);
    check_window(g);
    check_ends(g);
    check_caches(g);
    check_phases(g);
    check_layers(g);
    check_lm_head(g);
    check_sharing(g);
    while ((f = facts_next("provider", &at)) != NULL) check_provided(g, f);
    check_orphans(g);
    check_tokenizer(g);
    for (i = 0; i < g->count; i++) delivery_close(&g->parts[i].model);
}

void genai_lint(delivery *d, const char *config) {
    genai g;
    epctx_str text;
    unsigned rest;
    size_t i;
    memset(&g, 0, sizeof g);
    g.d = d;
    g.nothing = epctx_str_of("");
    g.root = delivery_read_json(d, config, DELIVERY_G_CONFIG, &text, &rest);
    if (g.root == NULL) return;
    if (rest > 0) {
        d->line = rest;
        delivery_say(d, DELIVERY_G_REST, g.nothing, "has more text behind the end of the object");
        d->line = 0;
    }
    check_escapes(&g, text);
    genai_check_schema(d, g.root);
    g.model = json_get(g.root, "model");
    g.decoder = json_get(g.model, "decoder");
    g.type = delivery_text(g.model, "type");
    if (!find_parts(&g)) return;
    for (i = 0; i < g.count; i++) note_paths(&g, &g.parts[i]);
    if (d->out != NULL) judge(&g);
}
