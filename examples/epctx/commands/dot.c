/* epctx dot: the graph as a picture for graphviz, partitions coloured by the EP they are for. */
#include "core/options.h"

#include <inttypes.h>
#include <string.h>

/* Labels stand between double quotes, where only the quote and the backslash mean something. */
static void put_label(epctx_str text) {
    uint32_t code, before = 0;
    size_t i, size, count = 0;
    for (i = 0; i < text.size; i += size, before = code, count++) {
        code = epctx_str_char(text, i, &size);
        if (count == 60) {
            fputs("...", stdout);
            return;
        }
        if (code == '"' || code == '\\') putchar('\\');
        if (epctx_char_is_shown(code, before))
            fwrite(text.data + i, 1, size, stdout);
        else
            putchar('?');
    }
}

static void put_size(uint64_t bytes) {
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    uint64_t whole = bytes;
    int unit = 0;
    while (whole >= 10240 && unit < 4) {
        whole /= 1024;
        unit++;
    }
    printf("%" PRIu64 " %s", whole, units[unit]);
}

/* The same source gets the same colour in every picture. */
static const char *colour_of(epctx_str source) {
    static const char *const colours[] = {"#a6cee3", "#b2df8a", "#fdbf6f", "#cab2d6",
                                          "#fb9a99", "#ffff99", "#8dd3c7", "#fccde5"};
    return colours[epctx_hash(source.data, source.size, 0) % 8];
}

/* A graph: who makes its values, and the graph around it. */
typedef struct scope {
    epctx_map makers; /* value -> node */
    const struct scope *outer;
} scope;

/* A line to draw once all nodes are known: a line that stands inside of a cluster would draw its
 * two nodes there. */
typedef struct line {
    epctx_str name;     /* of the value that is read */
    const scope *where; /* by a node of this graph; NULL: from the node `from` to a body */
    uint32_t from, to;
    uint32_t cluster;
} line;

typedef struct picture {
    const char *file;
    epctx_arena arena;
    line *lines;
    size_t line_count, line_room;
    uint32_t next;
    bool short_of_memory;
} picture;

static void add_line(picture *p, const line *one) {
    if (p->line_count == p->line_room) {
        size_t room = p->line_room * 2 + 64;
        line *more = (line *)epctx_arena_array(&p->arena, room, sizeof *more);
        if (more == NULL) {
            p->short_of_memory = true;
            return;
        }
        if (p->line_count > 0) memcpy(more, p->lines, p->line_count * sizeof *more);
        p->lines = more;
        p->line_room = room;
    }
    p->lines[p->line_count++] = *one;
}

static void add_read(picture *p, const scope *where, epctx_str name, uint32_t to) {
    line one;
    memset(&one, 0, sizeof one);
    one.name = name;
    one.where = where;
    one.to = to;
    if (name.size > 0) add_line(p, &one);
}

static void put_lines(const picture *p) {
    size_t i;
    for (i = 0; i < p->line_count; i++) {
        const line *one = &p->lines[i];
        const scope *s = one->where;
        uint32_t from = EPCTX_MAP_NONE;
        if (s == NULL) {
            printf("  n%" PRIu32 " -> n%" PRIu32 " [style=dashed lhead=cluster_%" PRIu32 "];\n",
                   one->from, one->to, one->cluster);
            continue;
        }
        for (; s != NULL && from == EPCTX_MAP_NONE; s = s->outer)
            from = epctx_map_get(&s->makers, one->name);
        if (from == EPCTX_MAP_NONE) continue;
        printf("  n%" PRIu32 " -> n%" PRIu32 " [label=\"", from, one->to);
        put_label(one->name);
        puts("\"];");
    }
}

static scope *new_scope(picture *p, const scope *outer) {
    scope *s = (scope *)epctx_arena_alloc(&p->arena, sizeof *s);
    if (s == NULL) {
        p->short_of_memory = true;
        return NULL;
    }
    memset(s, 0, sizeof *s);
    s->outer = outer;
    epctx_map_init(&s->makers, &p->arena);
    return s;
}

/* Size of a context binary, when it can be used. */
static void put_file_size(const picture *p, epctx_str name) {
    const epctx_io *io = epctx_io_files();
    char path[EPCTX_PATH_MAX];
    epctx_file_info info;
    if (epctx_path_find(io, epctx_path_folder(epctx_str_of(p->file)), name, cli_path_flags(), path,
                        sizeof path, NULL) != EPCTX_OK ||
        io->stat_fn(io->user, path, &info, NULL) != EPCTX_OK) {
        fputs(", not found", stdout);
        return;
    }
    fputs(", ", stdout);
    put_size(info.size);
}

static void put_epnode(const picture *p, const epctx_node_view *view, uint32_t id) {
    epctx_epnode node;
    bool readable = epctx_view_read_epnode(view, &node, NULL) == EPCTX_OK;
    printf("  n%" PRIu32 " [shape=box3d style=filled fillcolor=\"%s\" label=\"EPContext", id,
           readable ? colour_of(node.source) : "#ff0000");
    fputs("\\n", stdout);
    put_label(view->name);
    if (readable) {
        fputs("\\n", stdout);
        put_label(node.source);
        fputs("\\n", stdout);
        if (node.embed_mode == 1 && node.ep_cache_context.size > 0) {
            fputs("embedded, ", stdout);
            put_size(node.ep_cache_context.size);
        } else if (node.ep_cache_context.size > 0) {
            put_label(node.ep_cache_context);
            put_file_size(p, node.ep_cache_context);
        } else
            fputs("secondary", stdout);
    }
    puts("\"];");
}

static void put_nodes(picture *p, epctx_graph_view graph, scope *where, uint32_t depth);
static void put_values(picture *p, epctx_cursor values, scope *where, bool made);

/* The bodies of a node, each in a box with a line to it. */
static void put_bodies(picture *p, const epctx_node_view *node, uint32_t id, const scope *where,
                       uint32_t depth) {
    epctx_cursor attrs = epctx_view_node_attrs(node);
    epctx_attr_view attr;
    while (depth > 0 && epctx_next_attr(&attrs, &attr)) {
        epctx_cursor fields = epctx_view_fields(attr.view, 0);
        epctx_field field;
        while (epctx_next_field(&fields, &field)) {
            epctx_graph_view body;
            scope *inside;
            line one;
            if (field.wire != EPCTX_WIRE_LEN || (field.number != 6 && field.number != 11)) continue;
            body = epctx_view_as_graph(field.body);
            inside = new_scope(p, where);
            if (inside == NULL) return;
            memset(&one, 0, sizeof one);
            one.from = id;
            one.cluster = p->next++;
            printf("  subgraph cluster_%" PRIu32 " {\n  label=\"", one.cluster);
            put_label(node->name);
            putchar(' ');
            put_label(attr.name);
            puts("\";");
            one.to = p->next;
            put_values(p, epctx_view_graph_inputs(body), inside, true);
            put_nodes(p, body, inside, depth - 1);
            put_values(p, epctx_view_graph_outputs(body), inside, false);
            if (p->next == one.to) printf("  n%" PRIu32 " [shape=point];\n", p->next++);
            puts("  }");
            add_line(p, &one);
        }
    }
}

static void take_values(picture *p, const epctx_node_view *node, uint32_t id, scope *where) {
    epctx_cursor it = epctx_view_node_inputs(node);
    epctx_str name;
    while (epctx_next_str(&it, &name)) add_read(p, where, name, id);
    it = epctx_view_node_outputs(node);
    while (epctx_next_str(&it, &name))
        if (epctx_map_put(&where->makers, name, id) != EPCTX_OK) p->short_of_memory = true;
}

static void put_nodes(picture *p, epctx_graph_view graph, scope *where, uint32_t depth) {
    epctx_cursor it = epctx_view_graph_nodes(graph);
    epctx_node_view node;
    while (epctx_next_node(&it, &node)) {
        uint32_t id = p->next++;
        if (epctx_view_is_epnode(&node)) {
            put_epnode(p, &node, id);
        } else {
            printf("  n%" PRIu32 " [shape=box label=\"", id);
            put_label(node.op_type);
            fputs("\\n", stdout);
            put_label(node.name);
            puts("\"];");
        }
        take_values(p, &node, id, where);
        put_bodies(p, &node, id, where, depth);
    }
}

/* Inputs, which make a value, or outputs, which read one. */
static void put_values(picture *p, epctx_cursor values, scope *where, bool made) {
    epctx_value_view value;
    while (epctx_next_value(&values, &value)) {
        uint32_t id = p->next++;
        printf("  n%" PRIu32 " [shape=ellipse label=\"", id);
        put_label(value.name);
        puts("\"];");
        if (!made)
            add_read(p, where, value.name, id);
        else if (epctx_map_put(&where->makers, value.name, id) != EPCTX_OK)
            p->short_of_memory = true;
    }
}

static int run(const cli_args *args) {
    epctx_graph_view graph;
    epctx_model model;
    epctx_error error;
    picture p;
    scope *where;
    if (cli_open(&model, args->operands[0], &error) != EPCTX_OK) return cli_fail(&error);
    memset(&p, 0, sizeof p);
    p.file = args->operands[0];
    epctx_arena_init(&p.arena, NULL);
    where = new_scope(&p, NULL);
    graph = epctx_model_graph(&model);
    fputs("digraph model {\n  rankdir=TB;\n  compound=true;\n  label=\"", stdout);
    put_label(graph.name);
    puts("\";\n  node [fontname=\"sans-serif\" fontsize=10];\n  edge [fontsize=8];");
    if (where != NULL) {
        put_values(&p, epctx_view_graph_inputs(graph), where, true);
        put_nodes(&p, graph, where, 100);
        put_values(&p, epctx_view_graph_outputs(graph), where, false);
        put_lines(&p);
    }
    puts("}");
    epctx_arena_free(&p.arena);
    epctx_model_close(&model);
    return p.short_of_memory ? cli_fail_text("out of memory") : CLI_OK;
}

const cli_command cli_dot = {
    .name = "dot",
    .group = CLI_LOOK,
    .operands = "FILE",
    .least = 1,
    .most = 1,
    .summary = "print the graph for Graphviz (dot -Tsvg)",
    .about = "Colours EPContext nodes by EP, and shows the size or the file name of their\n"
             "context. The bodies of If, Loop and Scan are boxes, connected with their node by\n"
             "a dashed line.\n"
             "\n"
             "Example: epctx dot model.onnx | dot -Tsvg > model.svg\n",
    .run = run,
};
