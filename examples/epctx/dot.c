/* epctx dot: the graph as a picture for graphviz, partitions coloured by the EP they are for. */
#include "cli.h"

#include <inttypes.h>
#include <string.h>

/* Labels stand between double quotes, where only the quote and the backslash mean something. */
static void put_label(epctx_str text)
{
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

static void put_size(uint64_t bytes)
{
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
static const char *colour_of(epctx_str source)
{
    static const char *const colours[] = {"#a6cee3", "#b2df8a", "#fdbf6f", "#cab2d6",
                                          "#fb9a99", "#ffff99", "#8dd3c7", "#fccde5"};
    return colours[epctx_hash(source.data, source.size, 0) % 8];
}

typedef struct picture {
    const char *file;
    epctx_arena arena;
    epctx_map makers; /* value -> node */
    uint32_t next;
    bool short_of_memory;
} picture;

/* Size of a context binary, when it can be used. */
static void put_file_size(const picture *p, epctx_str name)
{
    const epctx_io *io = epctx_io_files();
    char path[EPCTX_PATH_MAX];
    epctx_file_kind kind;
    uint64_t size;
    if (epctx_path_find(io, epctx_path_folder(epctx_str_of(p->file)), name, cli_path_flags(), path,
                        sizeof path, NULL) != EPCTX_OK ||
        io->stat_fn(io->user, path, &kind, &size, NULL) != EPCTX_OK) {
        fputs(", not found", stdout);
        return;
    }
    fputs(", ", stdout);
    put_size(size);
}

static void put_epnode(const picture *p, const epctx_node_view *view, uint32_t id)
{
    epctx_epnode node;
    bool readable = epctx_epnode_read(view, &node, NULL) == EPCTX_OK;
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

static void put_nodes(picture *p, epctx_graph_view graph, uint32_t depth);

static void put_bodies(picture *p, const epctx_node_view *node, uint32_t depth)
{
    epctx_cursor attrs = epctx_node_attrs(node);
    epctx_attr_view attr;
    while (depth > 0 && epctx_next_attr(&attrs, &attr)) {
        epctx_cursor fields = epctx_fields(attr.view, 0);
        epctx_field field;
        while (epctx_next_field(&fields, &field)) {
            if (field.wire != EPCTX_WIRE_LEN || (field.number != 6 && field.number != 11)) continue;
            printf("  subgraph cluster_%" PRIu32 " {\n  label=\"", p->next++);
            put_label(node->name);
            putchar(' ');
            put_label(attr.name);
            puts("\";");
            put_nodes(p, epctx_graph_of(field.body), depth - 1);
            puts("  }");
        }
    }
}

static void put_edges(picture *p, const epctx_node_view *node, uint32_t id)
{
    epctx_cursor it = epctx_node_inputs(node);
    epctx_str name;
    while (epctx_next_str(&it, &name)) {
        uint32_t from = epctx_map_get(&p->makers, name);
        if (name.size == 0 || from == EPCTX_MAP_NONE) continue;
        printf("  n%" PRIu32 " -> n%" PRIu32 " [label=\"", from, id);
        put_label(name);
        puts("\"];");
    }
    it = epctx_node_outputs(node);
    while (epctx_next_str(&it, &name))
        if (epctx_map_put(&p->makers, name, id) != EPCTX_OK) p->short_of_memory = true;
}

static void put_nodes(picture *p, epctx_graph_view graph, uint32_t depth)
{
    epctx_cursor it = epctx_graph_nodes(graph);
    epctx_node_view node;
    while (epctx_next_node(&it, &node)) {
        uint32_t id = p->next++;
        if (epctx_is_epnode(&node)) {
            put_epnode(p, &node, id);
        } else {
            printf("  n%" PRIu32 " [shape=box label=\"", id);
            put_label(node.op_type);
            fputs("\\n", stdout);
            put_label(node.name);
            puts("\"];");
        }
        put_edges(p, &node, id);
        put_bodies(p, &node, depth);
    }
}

static void put_values(picture *p, epctx_cursor values, const char *shape)
{
    epctx_value_view value;
    while (epctx_next_value(&values, &value)) {
        uint32_t id = p->next++;
        uint32_t from = epctx_map_get(&p->makers, value.name);
        printf("  n%" PRIu32 " [shape=%s label=\"", id, shape);
        put_label(value.name);
        puts("\"];");
        if (from != EPCTX_MAP_NONE)
            printf("  n%" PRIu32 " -> n%" PRIu32 ";\n", from, id);
        else if (epctx_map_put(&p->makers, value.name, id) != EPCTX_OK)
            p->short_of_memory = true;
    }
}

static int run(int argc, char **argv)
{
    const cli_option options[] = {{NULL, NULL, NULL}};
    const char *file = NULL;
    epctx_graph_view graph;
    epctx_model model;
    epctx_error error;
    picture p;
    if (!cli_parse(&cli_dot, argc, argv, options, &file, 1)) return CLI_USAGE;
    if (cli_open(&model, file, &error) != EPCTX_OK) return cli_fail(&error);
    memset(&p, 0, sizeof p);
    p.file = file;
    epctx_arena_init(&p.arena, NULL);
    epctx_map_init(&p.makers, &p.arena);
    graph = epctx_model_graph(&model);
    fputs("digraph model {\n  rankdir=TB;\n  label=\"", stdout);
    put_label(graph.name);
    puts("\";\n  node [fontname=\"sans-serif\" fontsize=10];\n  edge [fontsize=8];");
    put_values(&p, epctx_graph_inputs(graph), "ellipse");
    put_nodes(&p, graph, 100);
    put_values(&p, epctx_graph_outputs(graph), "ellipse");
    puts("}");
    epctx_arena_free(&p.arena);
    epctx_model_close(&model);
    return p.short_of_memory ? cli_fail_text("out of memory") : CLI_OK;
}

const cli_command cli_dot = {
    "dot",
    "FILE",
    "draw the graph for graphviz (dot -Tsvg)",
    "EPContext nodes are coloured by the EP they are for and show the size of their context or\n"
    "its file; bodies of If, Loop and Scan are boxes.\n",
    run,
};
