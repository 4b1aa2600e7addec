/* A model in OpenVINO's XML, of an IR or of a blob: which inputs and outputs it has.
 *
 *     <net> <layers> <layer id="0" name="x" type="Parameter"> <output> <port names="x"
 *         precision="FP32"> <dim>1</dim> ...
 *                    <layer id="9" type="Result" output_names="y"> <input> <port> ...
 *           <edges> <edge from-layer="8" from-port="2" to-layer="9" to-port="0"/> ...
 *
 * Versions before 2024 have no output_names: there an output has the names of the port that it
 * comes from, for which the text is read a second time. Bodies of loops are nets in layers, so only
 * what lies at the right depth counts. */
#include "reader.h"

enum {
    LAYER_DEPTH = 3, /* <net> is at 1 */
    PORT_DEPTH = 5,
    DIM_DEPTH = 6,
    MOST_DEPTH = 256,
    MOST_TAG = 8192
};

/* One tag, and the text before it. */
typedef struct xml_tag {
    char text[MOST_TAG];
    size_t size;
    epctx_str name;
    bool closes, empty; /* </a>; <a/> */
    char last;
    char before[24];
    size_t before_size;
} xml_tag;

typedef struct xml {
    epctx_span text;
    const uint8_t *mask;
    size_t at;
    uint32_t turn; /* at % 12 */
} xml;

static int next_char(xml *in) {
    uint8_t c;
    if (in->at >= in->text.size) return -1;
    c = (uint8_t)(in->text.data[in->at++] ^ in->mask[in->turn]);
    in->turn = in->turn == 11 ? 0 : in->turn + 1;
    return c;
}

static void name_tag(xml_tag *tag) {
    const char *p = tag->text;
    tag->closes = tag->size > 0 && p[0] == '/';
    tag->name.data = p + tag->closes;
    for (tag->name.size = 0; tag->name.size + tag->closes < tag->size; tag->name.size++) {
        const char c = tag->name.data[tag->name.size];
        if (c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '/') break;
    }
    tag->empty = tag->last == '/' && !tag->closes;
}

/* False: the text ends. Of a very long tag only the beginning is kept. */
static bool next_tag(xml *in, xml_tag *tag) {
    int c;
    char quote = 0;
    tag->size = tag->before_size = 0;
    tag->last = '\0';
    while ((c = next_char(in)) >= 0 && c != '<')
        if (tag->before_size < sizeof tag->before) tag->before[tag->before_size++] = (char)c;
    while ((c = next_char(in)) >= 0 && (c != '>' || quote != 0)) {
        if (tag->size < MOST_TAG) tag->text[tag->size++] = (char)c;
        tag->last = (char)c;
        if (quote != 0)
            quote = c == quote ? 0 : quote;
        else if (c == '"' || c == '\'')
            quote = (char)c;
    }
    name_tag(tag);
    return c == '>';
}

/* -- attributes -- */

/* The value of an attribute as it stands there; false, and empty: the tag has none of that name. */
static bool attribute(const xml_tag *tag, const char *name, epctx_str *out) {
    const size_t size = strlen(name);
    size_t at = tag->name.size, end;
    *out = epctx_str_of(NULL);
    while (at < tag->size) {
        const char *p = tag->text + at;
        const char *equals = (const char *)memchr(p, '=', tag->size - at);
        const char *close;
        if (equals == NULL || (size_t)(equals - tag->text) + 1 >= tag->size) return false;
        end = (size_t)(equals - tag->text);
        close = (const char *)memchr(equals + 2, equals[1],
                                     tag->size - end >= 2 ? tag->size - end - 2 : 0);
        if (close == NULL || (equals[1] != '"' && equals[1] != '\'')) return false;
        while (end > at && tag->text[end - 1] == ' ') end--;
        if (end - at >= size && memcmp(tag->text + end - size, name, size) == 0 &&
            (end - size == at || tag->text[end - size - 1] <= ' ')) {
            out->data = equals + 2;
            out->size = (size_t)(close - equals) - 2;
            return true;
        }
        at = (size_t)(close - tag->text) + 1;
    }
    return false;
}

/* "&lt;" becomes "<". */
static size_t entity(epctx_str text, char *out) {
    static const struct {
        const char *text;
        char c;
    } known[] = {{"&lt;", '<'}, {"&gt;", '>'}, {"&amp;", '&'}, {"&quot;", '"'}, {"&apos;", '\''}};
    size_t i;
    for (i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (!epctx_str_starts(text, known[i].text)) continue;
        *out = known[i].c;
        return strlen(known[i].text);
    }
    *out = text.data[0];
    return 1;
}

/* Names in a list, separated by commas; "\," is one in a name. The first goes to `first`, what is
 * behind it, as it is, to `rest`. */
static void take_names(binary_reading *r, epctx_str list, epctx_str *first, epctx_str *rest) {
    char name[BINARY_MOST_NAME];
    epctx_str text = epctx_str_of(NULL);
    size_t size = 0;
    while (list.size > 0 && size < sizeof name) {
        char c;
        const size_t used = entity(list, &c);
        if (c == ',' && used == 1) break;
        if (c == '\\' && list.size > 1 && list.data[1] == ',') {
            list.data++;
            list.size--;
            c = ',';
        }
        list.data += used;
        list.size -= used;
        name[size++] = c;
    }
    text.data = name;
    text.size = size;
    *first = binary_copy(r, text);
    *rest = list.size > 1 && list.data[0] == ',' ? (list.data++, list.size--, binary_copy(r, list))
                                                 : epctx_str_of(NULL);
}

/* -- ports -- */

static int32_t elem_type_of(epctx_str precision) {
    static const struct {
        const char *name;
        int32_t type;
    } known[] = {{"FP32", EPCTX_ONNX_FLOAT},
                 {"FP16", 10},
                 {"BF16", 16},
                 {"FP64", 11},
                 {"I8", EPCTX_ONNX_INT8},
                 {"U8", EPCTX_ONNX_UINT8},
                 {"I16", 5},
                 {"U16", 4},
                 {"I32", 6},
                 {"U32", 12},
                 {"I64", 7},
                 {"U64", 13},
                 {"BOOL", 9},
                 {"STRING", 8},
                 {"I4", 22},
                 {"U4", 21},
                 {"F8E4M3", 17},
                 {"F8E5M2", 19},
                 {"F4E2M1", 23},
                 {"F8E8M0", 24}};
    size_t i;
    for (i = 0; i < sizeof known / sizeof known[0]; i++)
        if (epctx_str_eq_nocase(precision, epctx_str_of(known[i].name))) return known[i].type;
    return 0;
}

static void take_precision(binary_reading *r, const xml_tag *tag, binary_value *value) {
    epctx_str precision;
    if (!attribute(tag, "precision", &precision) || precision.size > 32) return;
    value->elem_type = elem_type_of(precision);
    value->type = binary_copy(r, precision);
}

/* <dim>3</dim>; -1 and intervals are "any". */
static int64_t dim_of(const xml_tag *tag) {
    epctx_str text = {tag->before, tag->before_size};
    uint64_t number;
    return epctx_str_number(text, &number) && number <= INT64_MAX ? (int64_t)number : -1;
}

/* -- layers -- */

/* Where the reading of a model is. */
typedef struct walk {
    binary_reading *r;
    binary_builder *graph;
    xml in;
    xml_tag *tag;
    size_t depth;
    binary_value *value; /* the port that is read belongs to it */
    bool is_result;
    int64_t dims[BINARY_MOST_RANK];
    size_t rank;
    /* Outputs without a name: by the number of their layer, later by that of the port that they
     * come from. */
    epctx_map unnamed, sources;
    char layer[24];     /* second reading: its number */
    uint64_t constants; /* bytes that the constants need of the .bin */
} walk;

static void begin_layer(walk *w) {
    binary_reading *r = w->r;
    epctx_str type, name, id;
    w->value = NULL;
    w->is_result = attribute(w->tag, "type", &type) && epctx_str_is(type, "Result");
    if (!w->is_result && !epctx_str_is(type, "Parameter")) return;
    w->value = binary_add_value(r, w->is_result ? &w->graph->outputs : &w->graph->inputs);
    if (w->value == NULL) return;
    if (!w->is_result && attribute(w->tag, "name", &name) && name.size <= BINARY_MOST_NAME)
        take_names(r, name, &w->value->name, &w->value->aliases);
    if (!w->is_result) return;
    if (attribute(w->tag, "output_names", &name) && name.size > 0) {
        take_names(r, name, &w->value->name, &w->value->aliases);
    } else if (attribute(w->tag, "id", &id) && id.size <= 20) {
        id = binary_copy(r, id);
        if (!r->no_memory &&
            epctx_map_put(&w->unnamed, id, (uint32_t)(w->graph->outputs.count - 1)) != EPCTX_OK)
            r->no_memory = true;
    }
}

static void begin_port(walk *w) {
    epctx_str names;
    w->rank = 0;
    if (w->value == NULL) return;
    take_precision(w->r, w->tag, w->value);
    if (!w->is_result && attribute(w->tag, "names", &names) && names.size > 0)
        take_names(w->r, names, &w->value->name, &w->value->aliases);
}

/* A scalar and an unknown rank look alike. */
static void end_port(walk *w) {
    int64_t *dims;
    if (w->value == NULL || w->rank == 0 || w->value->shaped) return;
    if (binary_set_rank(w->r, w->value, w->rank, &dims))
        memcpy(dims, w->dims, w->rank * sizeof *dims);
}

static void end_dim(walk *w) {
    if (w->value == NULL) return;
    if (w->rank < BINARY_MOST_RANK)
        w->dims[w->rank++] = dim_of(w->tag);
    else
        binary_damage(w->r, "is damaged: '%S' has more than %u dimensions", &w->value->name,
                      (uint64_t)BINARY_MOST_RANK);
}

/* <data offset="0" size="800"/> of a constant: where it is in the .bin of an IR. */
static void take_constant(walk *w) {
    epctx_str text;
    uint64_t at, size;
    if (!attribute(w->tag, "offset", &text) || !epctx_str_number(text, &at) ||
        !attribute(w->tag, "size", &text) || !epctx_str_number(text, &size) ||
        size > UINT64_MAX - at)
        return;
    if (at + size > w->constants) w->constants = at + size;
}

/* "layer:port" that an output without a name comes from. */
static void take_edge(walk *w) {
    epctx_str to, from, port;
    char key[48];
    epctx_text text = epctx_text_of(key, sizeof key);
    uint32_t output;
    if (!attribute(w->tag, "to-layer", &to) || !attribute(w->tag, "from-layer", &from) ||
        !attribute(w->tag, "from-port", &port))
        return;
    output = epctx_map_get(&w->unnamed, to);
    if (output == EPCTX_MAP_NONE) return;
    epctx_text_put(&text, from);
    epctx_text_put_char(&text, ':');
    epctx_text_put(&text, port);
    if (text.cut) return;
    to = binary_copy(w->r, epctx_text_str(&text));
    if (!w->r->no_memory && epctx_map_put(&w->sources, to, output) != EPCTX_OK)
        w->r->no_memory = true;
}

static void first_reading(walk *w) {
    const epctx_str name = w->tag->name;
    if (w->depth == LAYER_DEPTH && epctx_str_is(name, "edge")) take_edge(w);
    if (epctx_str_is(name, "data") && !w->tag->closes) take_constant(w);
    if (w->depth == LAYER_DEPTH && epctx_str_is(name, "layer") && !w->tag->closes) begin_layer(w);
    if (w->depth == PORT_DEPTH && epctx_str_is(name, "port") && !w->tag->closes) begin_port(w);
    if (w->depth == PORT_DEPTH && epctx_str_is(name, "port") && w->tag->closes) end_port(w);
    if (w->depth == DIM_DEPTH && epctx_str_is(name, "dim") && w->tag->closes) end_dim(w);
}

/* Ports of the layers that outputs without a name come from. */
static void second_reading(walk *w) {
    epctx_str text;
    char key[48];
    epctx_text place = epctx_text_of(key, sizeof key);
    uint32_t output;
    binary_value *value;
    if (w->tag->closes) return;
    if (w->depth == LAYER_DEPTH && attribute(w->tag, "id", &text)) {
        epctx_text layer = epctx_text_of(w->layer, sizeof w->layer);
        epctx_text_put(&layer, text);
    }
    if (w->depth != PORT_DEPTH || !epctx_str_is(w->tag->name, "port") ||
        !attribute(w->tag, "id", &text))
        return;
    epctx_text_put(&place, epctx_str_of(w->layer));
    epctx_text_put_char(&place, ':');
    epctx_text_put(&place, text);
    output = epctx_map_get(&w->sources, epctx_text_str(&place));
    if (output == EPCTX_MAP_NONE || !attribute(w->tag, "names", &text)) return;
    value = &((binary_value *)w->graph->outputs.items)[output];
    take_names(w->r, text, &value->name, &value->aliases);
}

/* Calls `visit` for each tag, at its depth. True: the outermost ended. */
static bool read_tags(walk *w, void (*visit)(walk *w)) {
    w->depth = 0;
    w->in.at = w->in.turn = 0;
    while (!w->r->no_memory && next_tag(&w->in, w->tag)) {
        const char first = w->tag->size > 0 ? w->tag->text[0] : '\0';
        if (first == '?' || first == '!') continue;
        if (!w->tag->closes) w->depth++;
        if (w->depth == 1 && !epctx_str_is(w->tag->name, "net")) return false;
        if (w->depth == 0 || w->depth > MOST_DEPTH) return false;
        visit(w);
        if (w->tag->closes || w->tag->empty) w->depth--;
        if (w->depth == 0) return true;
    }
    return false;
}

bool binary_openvino_model(binary_reading *r, epctx_span text, const uint8_t mask[12],
                           binary_builder *graph, uint64_t *constants) {
    walk w;
    bool good;
    memset(&w, 0, sizeof w);
    w.r = r;
    w.graph = graph;
    w.in.text = text;
    w.in.mask = mask;
    if (r->tag == NULL) r->tag = epctx_arena_alloc(r->arena, sizeof *w.tag);
    w.tag = (xml_tag *)r->tag;
    r->no_memory = r->no_memory || w.tag == NULL;
    if (w.tag == NULL) return false;
    epctx_map_init(&w.unnamed, r->arena);
    epctx_map_init(&w.sources, r->arena);
    good = read_tags(&w, first_reading);
    if (good && w.sources.count > 0) good = read_tags(&w, second_reading);
    *constants = w.constants;
    return good;
}
