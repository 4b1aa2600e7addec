/*
 * Files of any content: what they are, and what the readers of context binaries tell of them. A
 * cut beginning and a cut end, as of a file that is read in two pieces, must give no crash either,
 * nor may a file that is joined with itself.
 *
 *     clang -g -O1 -fsanitize=fuzzer,address,undefined -I. -Iexamples/epctx fuzz/fuzz_binary.c
 *         libepctx_ops.a libepctx.a
 *
 * Checksums are corrected and all is read again, else nothing behind them would ever be tested.
 */
#include "../tests/binaries.h"
#include "fuzz.h"

#include "examples/epctx/binary/join.h"

/* Not even of hostile files: directories of 65,536 entries with long names. */
enum { MOST_MEMORY = 256 << 20 };

static uint64_t sum;

static void touch_text(epctx_str text) {
    if (text.size > 0) sum ^= epctx_hash(text.data, text.size, sum);
}

static void touch_values(const binary_value *values, size_t count) {
    size_t i;
    for (i = 0; i < count; i++) {
        touch_text(values[i].name);
        touch_text(values[i].aliases);
        touch_text(values[i].type);
        require(values[i].rank <= BINARY_MOST_RANK);
        require(values[i].shaped || values[i].rank == 0);
        if (values[i].rank > 0) sum ^= epctx_hash(values[i].dims, values[i].rank * 8, sum);
    }
}

static void touch(const binary_facts *facts) {
    size_t i, values = 0;
    touch_text(facts->format_version);
    touch_text(facts->producer);
    touch_text(facts->sdk);
    touch_text(facts->architecture);
    touch_text(epctx_str_of(facts->damage));
    for (i = 0; i < facts->chip_count; i++) touch_text(facts->chips[i]);
    for (i = 0; i < facts->need_count; i++) touch_text(facts->needs[i].location);
    for (i = 0; i < facts->graph_count; i++) {
        const binary_graph *graph = &facts->graphs[i];
        touch_text(graph->name);
        touch_values(graph->inputs, graph->input_count);
        touch_values(graph->outputs, graph->output_count);
        values += graph->input_count + graph->output_count;
        require(graph->values_known || graph->input_count + graph->output_count == 0);
    }
    require(facts->graph_count <= BINARY_MOST_GRAPHS && values <= 2 * BINARY_MOST_VALUES);
    require(facts->need_count <= BINARY_MOST_NEEDS);
}

static uint64_t read_once(epctx_span file) {
    epctx_arena arena;
    epctx_error error;
    binary_facts facts;
    sum = 0;
    epctx_arena_init(&arena, NULL);
    require(binary_read(file, NULL, &arena, &facts, &error) == EPCTX_OK);
    require(arena.used <= MOST_MEMORY);
    require(facts.id.kind < EPCTX_BINARY_KIND_COUNT && facts.id.name != NULL);
    require(facts.id.damage == NULL || facts.damage != NULL);
    touch(&facts);
    epctx_arena_free(&arena);
    return sum;
}

/* With itself: what can be joined has its graphs once, and is no larger than told. */
static void join_once(epctx_span file) {
    binary_source sources[2];
    binary_joined joined;
    epctx_arena arena;
    epctx_error error;
    uint64_t size = 0;
    size_t i;
    for (i = 0; i < 2; i++) {
        sources[i].bytes = file;
        sources[i].name = epctx_str_of("file");
        sources[i].prefix = epctx_str_of("m2_");
    }
    epctx_arena_init(&arena, NULL);
    if (binary_join(sources, 2, &arena, &joined, &error) == EPCTX_OK) {
        for (i = 0; i < joined.part_count; i++) size += joined.parts[i].size;
        require(size == joined.size && joined.renamed_count == 0);
    } else {
        require(error.message[0] != '\0');
    }
    require(arena.used <= 2 * MOST_MEMORY);
    epctx_arena_free(&arena);
}

/* A third of it at each end, and sizes that lie. */
static void look_at_ends(epctx_span file) {
    size_t part;
    for (part = file.size / 3; part > 0; part /= 64) {
        epctx_span first = {file.data, part}, last = {file.data + (file.size - part), part};
        epctx_binary_id id;
        epctx_binary_identify(first, last, file.size, &id);
        require(id.kind < EPCTX_BINARY_KIND_COUNT);
        epctx_binary_identify(first, last, UINT64_MAX, &id);
        epctx_binary_identify(first, last, part / 2, &id);
    }
}

/* What is done once for every input; the rest for a part of them, which the bytes choose: that
 * nothing depends on chance shows as well in every eighth. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint8_t *copy = (uint8_t *)malloc(size + (size == 0));
    const uint64_t turn = size > 0 ? epctx_hash(data, size, 0) % 8 : 0;
    epctx_span file;
    uint64_t once;
    require(copy != NULL);
    if (size > 0) memcpy(copy, data, size);
    file.data = copy;
    file.size = size;
    once = read_once(file);
    if (turn == 0) require(read_once(file) == once);
    if (turn == 1) look_at_ends(file);
    if (turn == 2) join_once(file);
    if (size > 8 && memcmp(data, "EPCTXNPU", 8) == 0) {
        correct_sum(copy, size);
        read_once(file);
    } else if (size > 8 && memcmp(data, "TOY1", 4) == 0) {
        correct_toy(copy, size);
        read_once(file);
    }
    free(copy);
    return 0;
}
