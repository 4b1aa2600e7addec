/* >>partition: groups of nodes that can each become one node. */
#include "build.h"
#include "test.h"
#include <time.h>

enum { MOST = 16, MOST_INPUTS = 4 };

/* A graph as plain records, made by the tests. */
typedef struct plain {
    char names[64][8];
    size_t name_count;
    epctx_str node_inputs[MOST][MOST_INPUTS];
    epctx_str node_outputs[MOST][2];
    epctx_str captures[MOST][1];
    epctx_node nodes[MOST];
    epctx_value inputs[3], outputs[4];
    epctx_tensor initializers[2];
    epctx_graph graph;
    uint8_t take[MOST];
} plain;

static epctx_str name_of(plain *p, const char *prefix, size_t number) {
    char *name = p->names[p->name_count++];
    snprintf(name, sizeof p->names[0], "%.2s%zu", prefix, number % 1000);
    return epctx_str_of(name);
}

/* Why the graph is refused; NULL: it is not. */
static const char *refusal(const plain *p) {
    static epctx_error error;
    epctx_arena arena;
    epctx_partition *parts;
    size_t count;
    epctx_status status;
    epctx_arena_init(&arena, NULL);
    status = epctx_graph_partition(&p->graph, p->take, &arena, &parts, &count, &error);
    epctx_arena_free(&arena);
    return status == EPCTX_ERR_GRAPH ? error.message : NULL;
}

/* One of: an input, an initializer, an output of a node before `index`. */
static epctx_str random_source(plain *p, size_t index, uint32_t *random) {
    uint32_t pick = random_below(random, (uint32_t)(index * 3 + 5));
    if (pick < 2) return p->inputs[pick].name;
    if (pick < 4) return p->initializers[pick - 2].name;
    if (pick == 4 || index == 0) return p->inputs[2].name;
    pick = random_below(random, (uint32_t)index);
    return p->node_outputs[pick][random_below(random, (uint32_t)p->nodes[pick].output_count)];
}

/* Taken nodes are of at most `classes` that must not share a partition. */
static void random_graph(plain *p, uint32_t classes, uint32_t *random) {
    size_t count = 1 + random_below(random, MOST);
    memset(p, 0, sizeof *p);
    for (size_t i = 0; i < 3; i++) {
        p->inputs[i].name = name_of(p, "x", i);
        p->inputs[i].rank = -1;
    }
    for (size_t i = 0; i < 2; i++) p->initializers[i].name = name_of(p, "w", i);
    for (size_t i = 0; i < MOST; i++) {
        p->nodes[i].inputs = p->node_inputs[i];
        p->nodes[i].outputs = p->node_outputs[i];
        p->nodes[i].captures = p->captures[i];
        p->nodes[i].op_type = epctx_str_of("Op");
        p->nodes[i].id = (uint32_t)i;
    }
    for (size_t i = 0; i < count; i++) {
        epctx_node *node = &p->nodes[i];
        node->name = name_of(p, "n", i);
        node->input_count = random_below(random, MOST_INPUTS + 1);
        for (size_t k = 0; k < node->input_count; k++)
            p->node_inputs[i][k] =
                random_below(random, 8) == 0 ? epctx_str_of("") : random_source(p, i, random);
        node->capture_count = random_below(random, 8) == 0;
        if (node->capture_count > 0) p->captures[i][0] = random_source(p, i, random);
        p->node_outputs[i][0] = name_of(p, "a", i);
        node->output_count = 1 + (random_below(random, 4) == 0);
        if (node->output_count > 1) p->node_outputs[i][1] = name_of(p, "b", i);
        p->take[i] = random_below(random, 3) != 0;
        if (p->take[i] && classes > 1) p->take[i] = (uint8_t)(1 + random_below(random, classes));
    }
    p->graph.nodes = p->nodes;
    p->graph.node_count = count;
    p->graph.inputs = p->inputs;
    p->graph.input_count = 3;
    p->graph.initializers = p->initializers;
    p->graph.initializer_count = 2;
    p->graph.outputs = p->outputs;
    for (size_t i = 0; i < 4 && i < count; i++) {
        p->outputs[i].name = p->node_outputs[count - 1 - i][0];
        p->graph.output_count++;
    }
}

static epctx_str reads(const epctx_node *node, size_t k) {
    return k < node->input_count ? node->inputs[k] : node->captures[k - node->input_count];
}

static size_t read_count(const epctx_node *node) {
    return node->input_count + node->capture_count;
}

/* The node that makes a value, or -1. */
static int maker(const plain *p, epctx_str name) {
    for (size_t i = 0; i < p->graph.node_count; i++)
        for (size_t k = 0; k < p->nodes[i].output_count; k++)
            if (name.size > 0 && epctx_str_eq(p->node_outputs[i][k], name)) return (int)i;
    return -1;
}

static bool is_initializer(const plain *p, epctx_str name) {
    return epctx_str_eq(name, p->initializers[0].name) ||
           epctx_str_eq(name, p->initializers[1].name);
}

/* Taken, and nothing it reads depends on an input of the graph. */
static bool is_constant(const plain *p, size_t index) {
    const epctx_node *node = &p->nodes[index];
    if (!p->take[index] || node->capture_count > 0) return false;
    for (size_t k = 0; k < node->input_count; k++) {
        int from = maker(p, node->inputs[k]);
        if (node->inputs[k].size == 0 || is_initializer(p, node->inputs[k])) continue;
        if (from < 0 || !is_constant(p, (size_t)from)) return false;
    }
    return true;
}

/* The partition of a node, or -1 - index when it is in none. */
static int unit_of(const epctx_partition *parts, size_t count, size_t node) {
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < parts[i].node_count; k++)
            if (parts[i].nodes[k] == node) return (int)i;
    return -1 - (int)node;
}

/* Whether the units, joined by their values, have a cycle: repeatedly takes away what waits for
 * nothing. */
static bool has_cycle(const plain *p, const epctx_partition *parts, size_t count) {
    bool gone[MOST] = {false};
    size_t n = p->graph.node_count;
    for (size_t round = 0; round <= n; round++) {
        bool any = false;
        for (size_t i = 0; i < n; i++) {
            int unit = unit_of(parts, count, i);
            bool waits = false;
            if (gone[i]) continue;
            for (size_t j = 0; j < n; j++) {
                if (unit_of(parts, count, j) != unit) continue;
                for (size_t k = 0; k < read_count(&p->nodes[j]); k++) {
                    int from = maker(p, reads(&p->nodes[j], k));
                    waits = waits || (from >= 0 && !gone[from] &&
                                      unit_of(parts, count, (size_t)from) != unit);
                }
            }
            if (waits) continue;
            for (size_t j = 0; j < n; j++) gone[j] = gone[j] || unit_of(parts, count, j) == unit;
            any = true;
        }
        if (!any) break;
    }
    for (size_t i = 0; i < n; i++)
        if (!gone[i]) return true;
    return false;
}

/* Names of a list as "a,b,". */
typedef struct names {
    char text[400];
} names;

static void add_name(names *list, epctx_str name) {
    char with_comma[20];
    snprintf(with_comma, sizeof with_comma, "%.*s,", (int)name.size, name.data);
    strcat(list->text, with_comma);
}

static bool has_name(const names *list, epctx_str name) {
    char with_comma[21], all[402];
    snprintf(with_comma, sizeof with_comma, ",%.*s,", (int)name.size, name.data);
    snprintf(all, sizeof all, ",%s", list->text);
    return strstr(all, with_comma) != NULL;
}

static names names_of(const epctx_value *values, size_t count) {
    names list = {""};
    for (size_t i = 0; i < count; i++) add_name(&list, values[i].name);
    return list;
}

/* The boundary of a partition, worked out from the graph. */
static void boundary(const plain *p, const epctx_partition *parts, size_t count, size_t at,
                     names *in, names *out) {
    const epctx_partition *part = &parts[at];
    memset(in, 0, sizeof *in);
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < part->node_count; i++) {
        const epctx_node *node = &p->nodes[part->nodes[i]];
        for (size_t k = 0; k < read_count(node); k++) {
            epctx_str name = reads(node, k);
            int from = maker(p, name);
            if (name.size == 0 || is_initializer(p, name) || has_name(in, name)) continue;
            if (from >= 0 &&
                (is_constant(p, (size_t)from) || unit_of(parts, count, (size_t)from) == (int)at))
                continue;
            add_name(in, name);
        }
    }
    for (size_t i = 0; i < part->node_count; i++) {
        const epctx_node *node = &p->nodes[part->nodes[i]];
        for (size_t k = 0; k < node->output_count; k++) {
            bool wanted = false;
            for (size_t j = 0; j < p->graph.node_count; j++)
                for (size_t m = 0; m < read_count(&p->nodes[j]); m++)
                    wanted = wanted || (unit_of(parts, count, j) != (int)at &&
                                        epctx_str_eq(reads(&p->nodes[j], m), node->outputs[k]));
            for (size_t j = 0; j < p->graph.output_count; j++)
                wanted = wanted || epctx_str_eq(p->outputs[j].name, node->outputs[k]);
            if (wanted) add_name(out, node->outputs[k]);
        }
    }
}

/* In a piece everything that is read is an input, an initializer, or made before. */
static bool is_closed(const epctx_graph *graph) {
    names known = names_of(graph->inputs, graph->input_count);
    for (size_t i = 0; i < graph->initializer_count; i++)
        add_name(&known, graph->initializers[i].name);
    for (size_t i = 0; i < graph->node_count; i++) {
        const epctx_node *node = &graph->nodes[i];
        for (size_t k = 0; k < read_count(node); k++)
            if (reads(node, k).size > 0 && !has_name(&known, reads(node, k))) return false;
        for (size_t k = 0; k < node->output_count; k++)
            if (!has_name(&known, node->outputs[k])) add_name(&known, node->outputs[k]);
    }
    return true;
}

/* Is a constant read by a node that is not taken, or by a constant that stays for one? */
static bool stays(const plain *p, size_t index) {
    for (size_t j = index + 1; j < p->graph.node_count; j++)
        for (size_t k = 0; k < read_count(&p->nodes[j]); k++)
            if (maker(p, reads(&p->nodes[j], k)) == (int)index &&
                (!p->take[j] || (is_constant(p, j) && stays(p, j))))
                return true;
    return false;
}

/* Does the graph give out what a node makes? */
static bool given_out(const plain *p, size_t index) {
    for (size_t k = 0; k < p->nodes[index].output_count; k++)
        for (size_t j = 0; j < p->graph.output_count; j++)
            if (epctx_str_eq(p->outputs[j].name, p->nodes[index].outputs[k])) return true;
    return false;
}

/* Is a node left out whose values are read by none but taken nodes that are left out, too? */
static bool is_dead(const plain *p, const epctx_partition *parts, size_t count, size_t index) {
    if (unit_of(parts, count, index) >= 0 || given_out(p, index)) return false;
    for (size_t j = index + 1; j < p->graph.node_count; j++)
        for (size_t k = 0; k < read_count(&p->nodes[j]); k++)
            if (maker(p, reads(&p->nodes[j], k)) == (int)index &&
                (!p->take[j] || !is_dead(p, parts, count, j)))
                return false;
    return true;
}

/* The partition that may claim a node: that of all its readers, which are no output. */
static int claimer(const plain *p, const epctx_partition *parts, size_t count, size_t index) {
    int owner = unit_of(parts, count, index);
    if (owner >= 0 || !is_constant(p, index)) return owner < 0 ? -1 : owner;
    if (given_out(p, index)) return -1;
    for (size_t j = index + 1; j < p->graph.node_count; j++) {
        for (size_t k = 0; k < read_count(&p->nodes[j]); k++) {
            int reader;
            if (maker(p, reads(&p->nodes[j], k)) != (int)index) continue;
            reader = claimer(p, parts, count, j);
            if (reader < 0 || (owner >= 0 && reader != owner)) return -1;
            owner = reader;
        }
    }
    return owner < 0 ? -1 : owner;
}

static bool claims(const epctx_partition *part, size_t index) {
    for (size_t k = 0; k < part->claim_count; k++)
        if (part->claims[k] == index) return true;
    return false;
}

TEST(random_graphs) {
    static plain p;
    uint32_t random = 2463534242u;
    for (int round = 0; round < 20000; round++) {
        epctx_arena arena;
        epctx_partition *parts;
        epctx_error error;
        size_t count;
        random_graph(&p, 1 + (uint32_t)round % 3, &random);
        epctx_arena_init(&arena, NULL);
        CHECK(epctx_graph_partition(&p.graph, p.take, &arena, &parts, &count, &error) == EPCTX_OK,
              "round %d: %s", round, error.message);
        for (size_t i = 0; i < count; i++) {
            size_t first = 0;
            while (first < parts[i].node_count && is_constant(&p, parts[i].nodes[first])) first++;
            for (size_t k = first; k < parts[i].node_count; k++)
                CHECK(is_constant(&p, parts[i].nodes[k]) ||
                          p.take[parts[i].nodes[k]] == p.take[parts[i].nodes[first]],
                      "round %d: partition %zu has two classes", round, i);
            for (size_t k = 0; k < p.graph.node_count; k++)
                CHECK(claims(&parts[i], k) == (claimer(&p, parts, count, k) == (int)i),
                      "round %d: partition %zu and node %zu: claimed %d", round, i, k,
                      claims(&parts[i], k));
            for (size_t k = 1; k < parts[i].claim_count; k++)
                CHECK(parts[i].claims[k - 1] < parts[i].claims[k], "round %d: order", round);
        }
        for (size_t i = 0; i < p.graph.node_count; i++) {
            bool inside = unit_of(parts, count, i) >= 0;
            bool member = !is_constant(&p, i) || (given_out(&p, i) && !stays(&p, i));
            CHECK(inside == (p.take[i] && member && !is_dead(&p, parts, count, i)),
                  "round %d: node %zu is %s", round, i, inside ? "in a partition" : "left out");
        }
        CHECK(!has_cycle(&p, parts, count), "round %d: a cycle", round);
        for (size_t i = 0; i < count; i++) {
            const epctx_graph *piece = &parts[i].graph;
            names in, out, got;
            CHECK(parts[i].node_count > 0, "round %d: partition %zu is empty", round, i);
            CHECK(piece->output_count > 0, "round %d: partition %zu has no output", round, i);
            for (size_t k = 1; k < parts[i].node_count; k++)
                CHECK(parts[i].nodes[k - 1] < parts[i].nodes[k], "round %d: order", round);
            boundary(&p, parts, count, i, &in, &out);
            got = names_of(piece->inputs, piece->input_count);
            CHECK(strcmp(got.text, in.text) == 0, "round %d, partition %zu: inputs %s, expected %s",
                  round, i, got.text, in.text);
            got = names_of(piece->outputs, piece->output_count);
            CHECK(strcmp(got.text, out.text) == 0,
                  "round %d, partition %zu: outputs %s, expected %s", round, i, got.text, out.text);
            CHECK(is_closed(piece), "round %d, partition %zu: something is missing", round, i);
        }
        epctx_arena_free(&arena);
    }
}

/* -- rules of a backend: units, and a limit -- */

static uint32_t rule_units[MOST];

static epctx_status give_units(void *self, const epctx_graph *graph, const uint8_t *take,
                               uint32_t *units, epctx_error *error) {
    (void)self, (void)take, (void)error;
    for (size_t i = 0; i < graph->node_count; i++) {
        if (units[i] != 0) return EPCTX_ERR_ARG; /* they begin with 0 */
        units[i] = rule_units[i];
    }
    return EPCTX_OK;
}

static epctx_backend backend_of_rules(size_t most) {
    epctx_backend b;
    memset(&b, 0, sizeof b);
    b.version = EPCTX_BACKEND_VERSION;
    b.source = "RulesEP";
    b.units_fn = give_units;
    b.most_nodes = most;
    return b;
}

/* Does a path of values and units lead from each node to each other? Worked out by repetition. */
static void reach_all(const plain *p, bool reach[MOST][MOST]) {
    size_t n = p->graph.node_count;
    memset(reach, 0, MOST * sizeof *reach);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < read_count(&p->nodes[i]); k++) {
            int from = maker(p, reads(&p->nodes[i], k));
            if (from >= 0 && !is_constant(p, (size_t)from)) reach[from][i] = true;
        }
        for (size_t j = 0; j < n; j++)
            reach[i][j] = reach[i][j] || i == j ||
                          (rule_units[i] != 0 && rule_units[i] == rule_units[j] &&
                           !is_constant(p, i) && !is_constant(p, j));
    }
    for (size_t k = 0; k < n; k++)
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < n; j++)
                reach[i][j] = reach[i][j] || (reach[i][k] && reach[k][j]);
}

/* Can the nodes that must go with `at` be in one partition? */
static bool can_join(const plain *p, bool reach[MOST][MOST], size_t at, size_t most) {
    size_t count = 0;
    for (size_t i = 0; i < p->graph.node_count; i++) {
        if (is_constant(p, i) || !reach[at][i] || !reach[i][at]) continue;
        if (p->take[i] != p->take[at]) return false;
        count++;
    }
    return most == 0 || count <= most;
}

/* All rules hold, and no unit is given up that could be kept. */
TEST(random_rules) {
    static plain p;
    static bool reach[MOST][MOST];
    uint32_t random = 88172645u;
    size_t kept = 0, given_up = 0, cut = 0;
    for (int round = 0; round < 8000; round++) {
        const size_t most = random_below(&random, 6);
        const uint32_t numbers = 1 + random_below(&random, 6);
        epctx_backend backend = backend_of_rules(most);
        epctx_arena arena;
        epctx_partition *parts;
        epctx_error error;
        size_t count;
        random_graph(&p, 1 + (uint32_t)round % 3, &random);
        for (size_t i = 0; i < MOST; i++) {
            rule_units[i] = random_below(&random, 2) == 0 ? random_below(&random, numbers) : 0;
            if (rule_units[i] > p.graph.node_count) rule_units[i] = 0;
        }
        epctx_arena_init(&arena, NULL);
        CHECK(epctx_backend_partition(&backend, &p.graph, p.take, &arena, &parts, &count, &error) ==
                  EPCTX_OK,
              "round %d: %s", round, error.message);
        reach_all(&p, reach);
        for (size_t i = 0; i < p.graph.node_count; i++) {
            const int unit = unit_of(parts, count, i);
            const bool joins = can_join(&p, reach, i, most);
            if (is_constant(&p, i) || !p.take[i] || is_dead(&p, parts, count, i)) continue;
            CHECK((unit >= 0) == (rule_units[i] == 0 || joins), "round %d: node %zu is %s", round,
                  i, unit >= 0 ? "in a partition" : "left out");
            if (rule_units[i] != 0) *(joins ? &kept : &given_up) += 1;
            for (size_t k = 0; k < p.graph.node_count && joins; k++)
                CHECK(!reach[i][k] || !reach[k][i] || is_constant(&p, k) ||
                          unit_of(parts, count, k) == unit,
                      "round %d: nodes %zu and %zu are apart", round, i, k);
        }
        for (size_t i = 0; i < count; i++) {
            size_t members = 0;
            for (size_t k = 0; k < parts[i].node_count; k++)
                members += !is_constant(&p, parts[i].nodes[k]);
            CHECK(most == 0 || members <= most, "round %d: %zu nodes, at most %zu", round, members,
                  most);
            CHECK(parts[i].node_count > 0, "round %d: partition %zu is empty", round, i);
            CHECK(is_closed(&parts[i].graph), "round %d, partition %zu: something is missing",
                  round, i);
            cut += members == most && most > 0;
        }
        CHECK(!has_cycle(&p, parts, count), "round %d: a cycle", round);
        epctx_arena_free(&arena);
    }
    CHECK(kept > 1000 && given_up > 1000 && cut > 1000, "%zu kept, %zu given up, %zu full", kept,
          given_up, cut);
}

/* The first and the last, the second and the last but one ... */
static epctx_status nested_units(void *self, const epctx_graph *graph, const uint8_t *take,
                                 uint32_t *units, epctx_error *error) {
    (void)self, (void)take, (void)error;
    for (size_t i = 0; i < graph->node_count; i++) {
        const size_t other = graph->node_count - 1 - i;
        units[i] = 1 + (uint32_t)(i < other ? i : other);
    }
    return EPCTX_OK;
}

/* A number that is none of a unit, and a backend that fails. */
static epctx_status fail_units(void *self, const epctx_graph *graph, const uint8_t *take,
                               uint32_t *units, epctx_error *error) {
    (void)self, (void)graph, (void)take, (void)units;
    return epctx_fail(error, EPCTX_ERR_UNSUPPORTED, "units_fn fails as told");
}

TEST(refused_rules) {
    static plain p;
    uint32_t random = 7;
    epctx_backend backend = backend_of_rules(0);
    epctx_partition *parts;
    epctx_arena arena;
    epctx_error error;
    size_t count;
    do random_graph(&p, 1, &random);
    while (p.graph.node_count < 3);
    memset(rule_units, 0, sizeof rule_units);
    rule_units[2] = (uint32_t)p.graph.node_count + 1;
    epctx_arena_init(&arena, NULL);
    CHECK_INT(epctx_backend_partition(&backend, &p.graph, p.take, &arena, &parts, &count, &error),
              EPCTX_ERR_BACKEND);
    CHECK_HAS(error.message, "units_fn of RulesEP gave unit");
    CHECK_HAS(error.message, "expected a number up to");
    CHECK_HAS(error.node, "n2");
    backend.units_fn = fail_units;
    CHECK_INT(epctx_backend_partition(&backend, &p.graph, p.take, &arena, &parts, &count, &error),
              EPCTX_ERR_UNSUPPORTED);
    CHECK_HAS(error.message, "units_fn fails as told");
    epctx_arena_free(&arena);
}

/* A chain of 100,000 nodes in units of two, each inside the next: linear, without recursion. */
TEST(many_units) {
    enum { COUNT = 100000 };
    static char texts[COUNT + 1][8];
    epctx_node *nodes = (epctx_node *)calloc(COUNT, sizeof *nodes);
    epctx_str *ends = (epctx_str *)calloc(COUNT + 1, sizeof *ends);
    uint8_t *take = (uint8_t *)malloc(COUNT);
    epctx_graph graph = {0};
    epctx_value in, out;
    epctx_arena arena;
    epctx_partition *parts;
    epctx_error error;
    size_t count;
    epctx_arena_init(&arena, NULL);
    memset(&in, 0, sizeof in);
    for (size_t i = 0; i <= COUNT; i++) {
        snprintf(texts[i], sizeof texts[i], "%zu", i % (COUNT + 1));
        ends[i] = epctx_str_of(texts[i]);
    }
    for (size_t i = 0; i < COUNT; i++) {
        nodes[i].inputs = &ends[i];
        nodes[i].outputs = &ends[i + 1];
        nodes[i].input_count = nodes[i].output_count = 1;
        nodes[i].op_type = epctx_str_of("Op");
        take[i] = 1;
    }
    in.name = ends[0];
    out = in;
    out.name = ends[COUNT];
    graph.inputs = &in;
    graph.outputs = &out;
    graph.input_count = graph.output_count = 1;
    graph.nodes = nodes;
    graph.node_count = COUNT;
    for (size_t most = 0; most < 2; most++) {
        epctx_backend backend = backend_of_rules(most == 0 ? 0 : 1000);
        backend.units_fn = nested_units;
        CHECK_OK(epctx_backend_partition(&backend, &graph, take, &arena, &parts, &count, &error),
                 error);
        CHECK_UINT(count, 1 - most); /* all in one component, which is too large for 1000 */
    }
    epctx_arena_free(&arena);
    free(nodes);
    free(ends);
    free(take);
}

/* a -> b -> c with b left out: a and c must not share a partition. */
TEST(classic_cycle) {
    static plain p;
    uint32_t random = 1;
    epctx_arena arena;
    epctx_partition *parts;
    size_t count;
    random_graph(&p, 1, &random);
    p.graph.node_count = 3;
    p.graph.output_count = 1;
    for (size_t i = 0; i < 3; i++) {
        p.nodes[i].input_count = 1;
        p.nodes[i].capture_count = 0;
        p.nodes[i].output_count = 1;
        p.node_outputs[i][0] = name_of(&p, "v", i);
        p.node_inputs[i][0] = i == 0 ? p.inputs[0].name : p.node_outputs[i - 1][0];
        p.take[i] = i != 1;
    }
    p.outputs[0].name = p.node_outputs[2][0];
    epctx_arena_init(&arena, NULL);
    CHECK_INT(epctx_graph_partition(&p.graph, p.take, &arena, &parts, &count, NULL), EPCTX_OK);
    CHECK_UINT(count, 2);
    CHECK_UINT(parts[0].nodes[0], 0);
    CHECK_UINT(parts[1].nodes[0], 2);
    p.take[1] = 1;
    CHECK_INT(epctx_graph_partition(&p.graph, p.take, &arena, &parts, &count, NULL), EPCTX_OK);
    CHECK_UINT(count, 1);
    CHECK_UINT(parts[0].node_count, 3);
    memset(p.take, 0, sizeof p.take);
    CHECK_INT(epctx_graph_partition(&p.graph, p.take, &arena, &parts, &count, NULL), EPCTX_OK);
    CHECK_UINT(count, 0);
    epctx_arena_free(&arena);
}

TEST(not_sorted) {
    static plain p;
    uint32_t random = 1;
    random_graph(&p, 1, &random);
    p.graph.node_count = 2;
    p.graph.output_count = 0;
    for (size_t i = 0; i < 2; i++) {
        p.nodes[i].input_count = 1;
        p.nodes[i].capture_count = 0;
        p.take[i] = 1;
    }
    p.node_inputs[0][0] = p.node_outputs[1][0] = epctx_str_of("late");
    p.node_inputs[1][0] = p.inputs[0].name;
    p.nodes[1].output_count = 1;
    CHECK_HAS(refusal(&p), "late");
}

/* Types come from wherever the graph has them, omitted outputs are none, and what has more nodes
 * than can be numbered is refused before anything is read. */
TEST(types_of_boundaries) {
    epctx_str known[4] = {{"x", 1}, {"a", 1}, {"b", 1}, {NULL, 0}};
    epctx_value values[32], ends[2];
    epctx_node nodes[2];
    epctx_str outputs[2][2];
    epctx_graph graph = {0};
    epctx_partition *parts;
    epctx_error error;
    uint8_t take[2] = {1, 0};
    char texts[32][8];
    size_t count, size, i;
    epctx_status status = EPCTX_ERR_NOMEM;
    memset(values, 0, sizeof values);
    memset(ends, 0, sizeof ends);
    memset(nodes, 0, sizeof nodes);
    for (i = 0; i < 32; i++) {
        snprintf(texts[i], sizeof texts[i], "v%zu", i);
        values[i].name = i == 0 ? known[1] : epctx_str_of(texts[i]);
        values[i].elem_type = EPCTX_ONNX_INT8;
    }
    ends[0].name = known[0];
    ends[1].name = known[2];
    for (i = 0; i < 2; i++) {
        outputs[i][0] = known[3]; /* omitted */
        outputs[i][1] = known[i + 1];
        nodes[i].inputs = &known[i];
        nodes[i].input_count = 1;
        nodes[i].outputs = outputs[i];
        nodes[i].output_count = 2;
    }
    graph.nodes = nodes;
    graph.node_count = 2;
    graph.inputs = &ends[0];
    graph.input_count = 1;
    graph.outputs = &ends[1];
    graph.output_count = 1;
    graph.values = values;
    graph.value_count = 32;
    for (size = 0; status == EPCTX_ERR_NOMEM; size += 16) { /* every allocation fails once */
        static uint8_t space[1 << 16];
        epctx_arena arena;
        CHECK_TRUE(size <= sizeof space);
        epctx_arena_init_fixed(&arena, space, size);
        status = epctx_graph_partition(&graph, take, &arena, &parts, &count, &error);
    }
    CHECK_INT(status, EPCTX_OK);
    CHECK_UINT(count, 1);
    CHECK_UINT(parts[0].graph.output_count, 1);
    CHECK_INT(parts[0].graph.outputs[0].elem_type, EPCTX_ONNX_INT8);
    graph.node_count = UINT32_MAX;
    {
        epctx_arena arena;
        epctx_arena_init(&arena, NULL);
        CHECK_INT(epctx_graph_partition(&graph, take, &arena, &parts, &count, &error),
                  EPCTX_ERR_LIMIT);
        epctx_arena_free(&arena);
    }
}

TEST(allocator_fails) {
    static plain p;
    uint32_t random = 99;
    for (int round = 0; round < 100; round++) {
        epctx_status status = EPCTX_ERR_NOMEM;
        random_graph(&p, 1, &random);
        for (size_t size = 0; status != EPCTX_OK; size += 16) {
            static uint8_t space[1 << 16];
            epctx_arena arena;
            epctx_partition *parts;
            epctx_error error;
            size_t count;
            CHECK_TRUE(size <= sizeof space);
            epctx_arena_init_fixed(&arena, space, size);
            status = epctx_graph_partition(&p.graph, p.take, &arena, &parts, &count, &error);
            CHECK(status == EPCTX_OK || status == EPCTX_ERR_NOMEM, "%s", error.message);
        }
    }
}

/* A name that an initializer and a node define: the node behind it is no constant, though its
 * reader looks like one. */
TEST(defined_twice) {
    enum { CHAIN = 6 };
    plain *p = (plain *)calloc(1, sizeof *p);
    for (int loop = 0; loop < 4; loop++) {
        memset(p, 0, sizeof *p);
        p->initializers[0].name = epctx_str_of("w");
        p->inputs[0].name = epctx_str_of("x");
        p->graph.nodes = p->nodes;
        p->graph.initializers = p->initializers;
        p->graph.initializer_count = 1;
        p->graph.inputs = p->inputs;
        p->graph.input_count = 1;
        p->graph.node_count = CHAIN + 2;
        for (size_t i = 0; i < CHAIN + 2; i++) {
            p->nodes[i].inputs = p->node_inputs[i];
            p->nodes[i].outputs = p->node_outputs[i];
            p->nodes[i].input_count = p->nodes[i].output_count = 1;
            p->node_inputs[i][0] = i > 0 ? p->node_outputs[i - 1][0] : p->inputs[0].name;
            p->node_outputs[i][0] = name_of(p, "a", i);
            p->take[i] = 1;
        }
        if (loop == 0) { /* a chain from the graph's input defines w, and goes on from there */
            p->node_outputs[CHAIN - 1][0] = p->node_inputs[CHAIN][0] = p->initializers[0].name;
            p->nodes[CHAIN + 1].input_count = 2;
            p->node_inputs[CHAIN + 1][1] = p->inputs[0].name;
        } else if (loop == 1) { /* two constants that wait for each other, and a reader */
            p->node_inputs[0][0] = p->node_outputs[1][0] = p->initializers[0].name;
            p->node_inputs[2][0] = p->inputs[0].name;
            p->node_inputs[2][1] = p->node_outputs[0][0];
            p->nodes[2].input_count = 2;
        } else if (loop == 3) { /* two nodes of a chain make the same value */
            p->node_outputs[4][0] = p->node_outputs[2][0] = epctx_str_of("w2");
        } else { /* an input of the graph */
            p->node_outputs[3][0] = p->node_inputs[4][0] = p->inputs[0].name;
        }
        CHECK_HAS(refusal(p), loop == 2 ? "'x'" : loop == 3 ? "'w2'" : "'w'");
    }
    free(p);
}

/* Two Constant nodes that make the same value, of one type: the last one holds. */
TEST(constant_made_again) {
    static const int64_t dims[2][2] = {{2, 1}, {3, 1}};
    for (int round = 0; round < 12; round++) {
        epctx_node nodes[3];
        epctx_tensor tensors[2];
        epctx_attr attrs[2];
        epctx_str values[3] = {epctx_str_of("c"), epctx_str_of("x"), epctx_str_of("y")};
        epctx_value x, outputs[2];
        uint8_t take[3] = {1, 1, 1};
        epctx_graph graph;
        epctx_partition *parts;
        epctx_arena arena;
        epctx_error error;
        epctx_status status;
        size_t count;
        memset(nodes, 0, sizeof nodes);
        memset(tensors, 0, sizeof tensors);
        memset(attrs, 0, sizeof attrs);
        memset(&x, 0, sizeof x);
        memset(outputs, 0, sizeof outputs);
        memset(&graph, 0, sizeof graph);
        for (size_t i = 0; i < 3; i++) {
            nodes[i].op_type = epctx_str_of(i == 2 ? "Add" : "Constant");
            nodes[i].outputs = &values[i == 2 ? 2 : 0];
            nodes[i].output_count = 1;
            nodes[i].id = (uint32_t)i;
        }
        nodes[2].inputs = values;
        nodes[2].input_count = 2;
        for (size_t i = 0; i < 2; i++) {
            tensors[i].elem_type = i == 1 && round == 3 ? EPCTX_ONNX_INT64 : EPCTX_ONNX_FLOAT;
            tensors[i].rank = 1;
            tensors[i].dims = dims[i == 1 && round == 2];
            attrs[i].type = EPCTX_ATTR_TENSOR;
            attrs[i].t = &tensors[i];
            nodes[i].attrs = &attrs[i];
            nodes[i].attr_count = 1;
        }
        x.name = values[1];
        outputs[0].name = values[2];
        outputs[1].name = values[0]; /* in round 1, of the last one that makes it */
        if (round == 4) nodes[0].op_type = epctx_str_of("Other");
        if (round == 5) nodes[0].domain = epctx_str_of("other");
        if (round == 6) nodes[1].op_type = epctx_str_of("Other");
        if (round == 7) nodes[1].domain = epctx_str_of("other");
        if (round == 8) nodes[0].attr_count = 0;
        if (round == 9) nodes[1].attr_count = 0;
        if (round == 10) tensors[1].rank = 2;
        if (round == 11) tensors[0].rank = tensors[1].rank = -1;
        graph.nodes = nodes;
        graph.node_count = 3;
        graph.inputs = &x;
        graph.outputs = outputs;
        graph.input_count = 1;
        graph.output_count = round == 1 ? 2 : 1;
        epctx_arena_init(&arena, NULL);
        status = epctx_graph_partition(&graph, take, &arena, &parts, &count, &error);
        if (round < 2) {
            CHECK_OK(status, error);
            CHECK_UINT(count, 1);
            CHECK_UINT(parts[0].graph.node_count, 2);
            CHECK_UINT(parts[0].graph.nodes[0].id, 1);
        } else {
            CHECK(status == EPCTX_ERR_GRAPH, "round %d: %s", round, epctx_status_name(status));
            CHECK_HAS(error.message, "value 'c' is produced twice");
        }
        epctx_arena_free(&arena);
    }
}

/* A body that captures what a later node makes: no order of the nodes is right. */
TEST(capture_of_later) {
    plain p = {0};
    p.graph.nodes = p.nodes;
    p.graph.node_count = 2;
    p.nodes[0].captures = p.captures[0];
    p.nodes[0].capture_count = 1;
    p.captures[0][0] = epctx_str_of("t");
    for (size_t i = 0; i < 2; i++) {
        p.nodes[i].inputs = p.node_inputs[i];
        p.nodes[i].outputs = p.node_outputs[i];
        p.nodes[i].output_count = 1;
        p.node_outputs[i][0] = epctx_str_of(i == 0 ? "y" : "t");
    }
    p.nodes[1].input_count = 1;
    p.node_inputs[1][0] = epctx_str_of("y");
    p.take[1] = 1;
    CHECK_HAS(refusal(&p), "not sorted");
}

/* Cuts a graph in which one node reads `n` constants; `*best` becomes less if that was faster. */
static void cut_many(size_t n, double *best) {
    epctx_node *nodes = (epctx_node *)calloc(n + 2, sizeof *nodes);
    epctx_str *outputs = (epctx_str *)calloc(n + 2, sizeof *outputs);
    char(*texts)[24] = (char(*)[24])calloc(n + 2, sizeof *texts);
    uint8_t *take = (uint8_t *)malloc(n + 2);
    epctx_str inputs[2];
    epctx_value input = {0}, output = {0};
    epctx_graph graph = {0};
    epctx_arena arena;
    epctx_partition *parts;
    epctx_error error;
    double seconds;
    clock_t begin;
    size_t count;
    CHECK_TRUE(nodes != NULL && outputs != NULL && texts != NULL && take != NULL);
    memset(take, 1, n + 2);
    for (size_t i = 0; i < n + 2; i++) {
        snprintf(texts[i], sizeof texts[i], "%zu", i);
        outputs[i] = epctx_str_of(texts[i]);
        nodes[i].outputs = &outputs[i];
        nodes[i].output_count = 1;
    }
    nodes[n].inputs = outputs;
    nodes[n].input_count = n;
    inputs[0] = input.name = epctx_str_of("x");
    inputs[1] = outputs[n];
    nodes[n + 1].inputs = inputs;
    nodes[n + 1].input_count = 2;
    graph.nodes = nodes;
    graph.node_count = n + 2;
    graph.inputs = &input;
    graph.input_count = 1;
    output.name = outputs[n + 1];
    graph.outputs = &output;
    graph.output_count = 1;
    epctx_arena_init(&arena, NULL);
    begin = clock();
    CHECK_OK(epctx_graph_partition(&graph, take, &arena, &parts, &count, &error), error);
    seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
    if (seconds < *best) *best = seconds;
    CHECK_UINT(count, 1);
    CHECK_UINT(parts[0].graph.node_count, n + 2);
    epctx_arena_free(&arena);
    free(nodes);
    free(outputs);
    free(texts);
    free(take);
}

/* One node that reads very many constants takes no more time than that many nodes. */
TEST(many_constants) {
    enum { N = 10000, MORE = 8 };
    double best[2] = {1e9, 1e9};
    for (int round = 0; round < 5; round++) {
        cut_many(N, &best[0]);
        cut_many((size_t)MORE * N, &best[1]);
    }
    /* Caches may cost three times as much; a search for each would cost 64 times as much. */
    CHECK(best[1] < 4 * MORE * best[0] + 0.005, "%d times the constants take %.1f ms, once %.1f ms",
          MORE, best[1] * 1e3, best[0] * 1e3);
}

/* A chain of constants that every partition reads would be copied once for each. */
TEST(constants_times_partitions) {
    enum { N = 6000 };
    epctx_node *nodes = (epctx_node *)calloc(3 * N, sizeof *nodes);
    epctx_str *inputs = (epctx_str *)calloc(6 * N, sizeof *inputs);
    epctx_str *outputs = (epctx_str *)calloc(3 * N, sizeof *outputs);
    char(*texts)[8] = (char(*)[8])calloc(3 * N, sizeof *texts);
    uint8_t *take = (uint8_t *)malloc(3 * N);
    epctx_value input = {0};
    epctx_graph graph = {0};
    epctx_arena arena;
    epctx_partition *parts;
    epctx_error error;
    size_t count;
    CHECK_TRUE(nodes != NULL && inputs != NULL && outputs != NULL && texts != NULL && take != NULL);
    input.name = epctx_str_of("x");
    for (size_t i = 0; i < 3 * N; i++) {
        snprintf(texts[i], sizeof texts[i], "%zu", i);
        outputs[i] = epctx_str_of(texts[i]);
        inputs[2 * i] = i == N ? input.name : outputs[i > 0 ? i - 1 : 0];
        inputs[2 * i + 1] = outputs[N - 1];
        nodes[i].inputs = &inputs[2 * i];
        nodes[i].outputs = &outputs[i];
        nodes[i].input_count = i == 0 ? 0 : i < N ? 1 : 2;
        nodes[i].output_count = 1;
        take[i] = i < N || i % 2 == 0; /* constants, then taken and not taken in turn */
    }
    graph.nodes = nodes;
    graph.node_count = 3 * N;
    graph.inputs = &input;
    graph.input_count = 1;
    epctx_arena_init(&arena, NULL);
    CHECK_INT(epctx_graph_partition(&graph, take, &arena, &parts, &count, &error), EPCTX_ERR_LIMIT);
    CHECK_HAS(error.message, "constant");
    epctx_arena_free(&arena);
    free(nodes);
    free(inputs);
    free(outputs);
    free(texts);
    free(take);
}

int main(int argc, char **argv) {
    RUN(random_graphs);
    RUN(random_rules);
    RUN(refused_rules);
    RUN(many_units);
    RUN(classic_cycle);
    RUN(not_sorted);
    RUN(defined_twice);
    RUN(constant_made_again);
    RUN(capture_of_later);
    RUN(many_constants);
    RUN(constants_times_partitions);
    RUN(types_of_boundaries);
    RUN(allocator_fails);
    return test_end();
}
