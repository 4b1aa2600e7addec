/* >>blob and >>exec: loading context binaries: what is damaged, foreign or truncated gives a clear
 * error, and what is accepted runs without leaving its memory (the sanitized build watches). */
/* runs: once */
#include "test.h"

#include "npu_blob.h"
#include "npu_graph.h"

/* A blob with a packed, a gathered, a moved and a broadcast operand. x [1,2,4,4], y [1,3]. */
static epctx_buffer small_blob(void) {
    static const int64_t x[4] = {1, 2, 4, 4}, w[4] = {3, 2, 3, 3}, m[2] = {3, 3}, c[1] = {3};
    static const int64_t pads[4] = {1, 1, 1, 1};
    graph_builder b;
    epctx_buffer blob;
    epctx_error error;
    float data[64];
    gb_randomize(data, 64, 5);
    gb_init(&b);
    gb_input(&b, "x", 1, 4, x);
    gb_floats(&b, "w", 4, w, data);
    gb_floats(&b, "m", 2, m, data + 8);
    gb_floats(&b, "c", 1, c, data + 20);
    gb_node(&b, "Conv", 11, "x,w,c", "a");
    gb_attr_ints(&b, "pads", 4, pads);
    gb_node(&b, "Relu", 14, "a", "r");
    gb_node(&b, "GlobalAveragePool", 1, "r", "g");
    gb_node(&b, "Flatten", 13, "g", "f");
    gb_node(&b, "MatMul", 13, "f,m", "t");
    gb_node(&b, "Sub", 14, "t,c", "u");
    gb_node(&b, "Softmax", 13, "u", "y");
    gb_output(&b, "y");
    epctx_error_clear(&error);
    if (gb_compile(&b, NULL, &blob, &error) != EPCTX_OK) {
        fprintf(stderr, "%s\n", error.message);
        abort();
    }
    gb_free(&b);
    return blob;
}

/* Runs a graph of one input and one output twice, in memory of other bytes: results come from the
 * input alone. */
static epctx_status run_twice(const epctx_npu_graph *graph, epctx_span input, epctx_memory output,
                              epctx_error *error) {
    const size_t size = graph->info.scratch_size;
    uint8_t *scratch = (uint8_t *)gb_aligned(size), *first = (uint8_t *)malloc(output.size);
    epctx_status status = EPCTX_OK;
    for (int round = 0; round < 2 && status == EPCTX_OK; round++) {
        memset(scratch, round == 0 ? 0x7f : 0x21, size);
        memset(output.data, round == 0 ? 0x7f : 0x21, output.size);
        status = epctx_npu_run(graph, &input, &output, scratch, size, error);
        if (round == 0) memcpy(first, output.data, output.size);
    }
    if (status == EPCTX_OK && memcmp(first, output.data, output.size) != 0) {
        fprintf(stderr, "the result depends on what the memory held before\n");
        abort();
    }
    free(first);
    free(scratch);
    return status;
}

static epctx_status try_blob(const uint8_t *data, size_t size, epctx_error *error) {
    float x[32], y[3];
    uint8_t *copy = (uint8_t *)malloc(size + 1); /* exact, for the sanitizer */
    epctx_npu_context context;
    epctx_span span;
    epctx_status status;
    void *memory;
    size_t need;
    memcpy(copy, data, size);
    span.data = copy;
    span.size = size;
    gb_randomize(x, 32, 1);
    status = epctx_npu_load_size(span, &need, error);
    if (status == EPCTX_OK) {
        memory = malloc(need + 1);
        status = epctx_npu_load(&context, span, memory, need, error);
        /* run only what kept its boundary; more is the fuzzer's work */
        if (status == EPCTX_OK && context.graph_count == 1 &&
            context.graphs[0].info.input_count == 1 && context.graphs[0].info.output_count == 1 &&
            context.graphs[0].info.scratch_size < 1 << 20) {
            epctx_span input = {(const uint8_t *)x, sizeof x};
            epctx_memory output = {y, sizeof y};
            status = run_twice(&context.graphs[0], input, output, error);
        }
        free(memory);
    }
    free(copy);
    return status;
}

/* The checksum is made right first. */
static epctx_status try_damaged(const epctx_buffer *blob, epctx_error *error) {
    correct_sum(blob->data, blob->size);
    return try_blob(blob->data, blob->size, error);
}

TEST(runs) {
    epctx_buffer blob = small_blob();
    epctx_error error;
    CHECK_OK(try_blob(blob.data, blob.size, &error), error);
    CHECK(blob.size < 4096, "the small blob has %zu bytes", blob.size);
    epctx_buffer_free(&blob);
}

TEST(truncated) {
    epctx_buffer blob = small_blob();
    epctx_error error;
    size_t size;
    for (size = 0; size < blob.size; size++) {
        epctx_status status = try_blob(blob.data, size, &error);
        CHECK(status == EPCTX_ERR_CONTEXT, "%zu bytes: status %d, %s", size, (int)status,
              error.message);
        CHECK_HAS(error.message, size < EPCTX_NPU_HEADER_SIZE ? "header" : "truncated");
    }
    epctx_buffer_free(&blob);
}

/* Every byte outside the weights is under a checksum or compared by itself. */
TEST(flipped) {
    epctx_buffer blob = small_blob();
    const size_t weights = (size_t)u64(blob.data + 88);
    const size_t end = (size_t)(u64(blob.data + 72) + u64(blob.data + 80));
    epctx_error error;
    size_t i;
    int bit;
    for (i = 0; i < end; i++) {
        for (bit = 0; bit < 8; bit++) {
            epctx_status status;
            if (i >= 120 && i < 128) continue; /* checksum of the weights: looked at on demand */
            blob.data[i] = (uint8_t)(blob.data[i] ^ 1 << bit);
            status = try_blob(blob.data, blob.size, &error);
            blob.data[i] = (uint8_t)(blob.data[i] ^ 1 << bit);
            CHECK(status == EPCTX_ERR_CONTEXT || status == EPCTX_ERR_VERSION,
                  "byte %zu, bit %d: status %d, %s", i, bit, (int)status, error.message);
        }
    }
    CHECK_TRUE(weights >= end);
    epctx_buffer_free(&blob);
}

/* The same behind a corrected checksum: refused with a message, or run. */
TEST(forged) {
    epctx_buffer blob = small_blob();
    uint8_t *copy = (uint8_t *)malloc(blob.size);
    const uint8_t values[4] = {0x00, 0x7f, 0x80, 0xff};
    epctx_error error;
    size_t i, j;
    for (i = 0; i < blob.size; i++) {
        for (j = 0; j < 12; j++) {
            epctx_status status;
            memcpy(copy, blob.data, blob.size);
            if (j < 8)
                copy[i] = (uint8_t)(copy[i] ^ 1 << j);
            else
                copy[i] = values[j - 8];
            correct_sum(copy, blob.size);
            epctx_error_clear(&error);
            status = try_blob(copy, blob.size, &error);
            CHECK(status == EPCTX_OK || error.message[0] != '\0', "byte %zu: no message", i);
        }
    }
    free(copy);
    epctx_buffer_free(&blob);
}

static void expect(const epctx_buffer *blob, size_t at, const char *bytes, size_t size,
                   epctx_error *error, epctx_status *status) {
    uint8_t *copy = (uint8_t *)malloc(blob->size);
    memcpy(copy, blob->data, blob->size);
    memcpy(copy + at, bytes, size);
    correct_sum(copy, blob->size);
    *status = try_blob(copy, blob->size, error);
    free(copy);
}

TEST(foreign) {
    static const char *const versions[] = {
        "9.8.7",  "",          "0",       "0.1",    "0.1.",
        "0.1.1",  "0.1.9",     "0.0.0",   "0.2.0",  "1.1.0",
        "9.1.0",  "10.1.0",    "00.1.0",  " 0.1.0", "0.1.0 ",
        "0.1.00", "0.1.0-rc1", "0.1.0.1", "0,1,0",  EPCTX_NPU_SDK_VERSION "+",
    };
    epctx_buffer blob = small_blob();
    epctx_error error;
    epctx_status status;
    expect(&blob, 0, "GIF89a..", 8, &error, &status);
    CHECK_INT(status, EPCTX_ERR_CONTEXT);
    CHECK_HAS(error.message, "EPCTXNPU");
    CHECK_HAS(error.message, "GIF89a");
    expect(&blob, 8, "\x01\0\0\0", 4, &error, &status);
    CHECK_INT(status, EPCTX_ERR_VERSION);
    CHECK_HAS(error.message, "expected format version 3, found 1");
    /* The version as a whole: near ones, shorter and longer ones, older and newer ones. */
    for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
        char field[16] = {0};
        memcpy(field, versions[i], strlen(versions[i]));
        expect(&blob, 16, field, sizeof field, &error, &status);
        CHECK(status == EPCTX_ERR_VERSION, "SDK version \"%s\": status %d", versions[i], status);
        CHECK_HAS(error.message, versions[i]);
        CHECK_HAS(error.message, "expected SDK version " EPCTX_NPU_SDK_VERSION ",");
    }
    expect(&blob, 32, "x86-64-v4", 10, &error, &status);
    CHECK_INT(status, EPCTX_ERR_VERSION);
    CHECK_HAS(error.message, "x86-64-v4");
    CHECK_HAS(error.message, "generic");
    epctx_buffer_free(&blob);
}

/* Names of graphs, tensors and commands that lie outside the strings, at word `at` of the section
 * of words, and command lists that are too short. */
TEST(forged_words) {
    epctx_buffer blob = small_blob();
    const uint8_t *words = blob.data + EPCTX_NPU_HEADER_SIZE;
    const uint32_t bytes = (uint32_t)u64(blob.data + 80);
    const uint32_t table = (uint32_t)u64(words + 6 * 4), commands = (uint32_t)u64(words + 9 * 4);
    const uint32_t names[] = {0, table, table + 12, commands + 2};
    epctx_error error;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const uint32_t at = names[i] * 4 + EPCTX_NPU_HEADER_SIZE;
        const uint32_t forged[][2] = {{0, bytes + 1}, {bytes, 1}, {1, UINT32_MAX}, {UINT32_MAX, 1}};
        uint8_t saved[8];
        memcpy(saved, blob.data + at, 8);
        for (size_t j = 0; j < sizeof forged / sizeof forged[0]; j++) {
            for (size_t k = 0; k < 8; k++)
                blob.data[at + k] = (uint8_t)(forged[j][k / 4] >> 8 * (k % 4));
            CHECK(try_damaged(&blob, &error) == EPCTX_ERR_CONTEXT,
                  "name %zu, bytes %u from %u of %u: accepted", i, forged[j][1], forged[j][0],
                  bytes);
            CHECK_HAS(error.message, "bytes of strings");
        }
        memcpy(blob.data + at, saved, 8);
    }
    blob.data[EPCTX_NPU_HEADER_SIZE + 11 * 4]--;
    CHECK_INT(try_damaged(&blob, &error), EPCTX_ERR_CONTEXT);
    CHECK_HAS(error.message, "words of commands");
    /* As many weights as the section has room for, but they do not start at its first word. */
    blob.data[EPCTX_NPU_HEADER_SIZE + 11 * 4]++;
    blob.data[108] = (uint8_t)(u64(blob.data + 64) / 6);
    blob.data[109] = (uint8_t)(u64(blob.data + 64) / 6 >> 8);
    CHECK_INT(try_damaged(&blob, &error), EPCTX_ERR_CONTEXT);
    epctx_buffer_free(&blob);
}

static void set32(uint8_t *words, uint32_t at, uint32_t value) {
    for (int i = 0; i < 4; i++) words[at * 4 + (uint32_t)i] = (uint8_t)(value >> 8 * i);
}

/* A command that writes where it reads: kernels may rely on it that they do not. */
TEST(forged_overlap) {
    static const int64_t x[2] = {1, 3}, m[2] = {3, 3};
    float data[9];
    graph_builder b;
    epctx_buffer blob;
    epctx_error error;
    uint8_t *words;
    uint32_t at;
    gb_randomize(data, 9, 5);
    gb_init(&b);
    gb_input(&b, "x", 1, 2, x);
    gb_floats(&b, "m", 2, m, data);
    gb_node(&b, "MatMul", 13, "x,m", "t");
    gb_node(&b, "Softmax", 13, "t", "u");
    gb_node(&b, "MatMul", 13, "u,m", "y");
    gb_output(&b, "y");
    CHECK_INT(gb_compile(&b, NULL, &blob, &error), EPCTX_OK);
    words = blob.data + EPCTX_NPU_HEADER_SIZE;
    at = (uint32_t)u64(words + 9 * 4);           /* the first command */
    at += (uint32_t)(u64(words + at * 4) >> 32); /* Softmax: 4 words, then 4 for each operand */
    CHECK_UINT(u64(words + (at + 4) * 4), u64(words + (at + 8) * 4)); /* both in the scratch */
    memcpy(words + (at + 10) * 4, words + (at + 6) * 4, 8);
    CHECK_INT(try_damaged(&blob, &error), EPCTX_ERR_CONTEXT);
    CHECK_HAS(error.message, "invalid operands");
    epctx_buffer_free(&blob);
    gb_free(&b);
}

/* Words of the operands of command `index` in a blob of one graph. */
static uint32_t operands_of(const uint8_t *words, int index) {
    uint32_t at = (uint32_t)u64(words + 9 * 4);
    while (index-- > 0) at += (uint32_t)(u64(words + at * 4) >> 32);
    return at + 4;
}

/* Operands that a blob reads, and outputs, without having written all of them: it would hand out
 * what its memory held before. x -> MatMul t[1,3] -> Softmax u -> MatMul y. */
TEST(forged_order) {
    enum { NEVER, PARTLY, LATER, BEHIND, OUTPUT, OUTPUT_PARTLY, KINDS };
    static const char *const texts[KINDS] = {
        "command 1 of graph 'main' (Softmax, node 'Softmax_01'), operand 0: expected 12 bytes that "
        "commands before it write, found 0",
        "operand 0: expected 12 bytes that commands before it write, found 8",
        "operand 0: expected 12 bytes that commands before it write, found 0",
        "operand 0: expected 12 bytes that commands before it write, found 4",
        "output 'y' of graph 'main': expected 12 bytes that commands write, found 0",
        "output 'y' of graph 'main': expected 16 bytes that commands write, found 12",
    };
    static const int64_t x[2] = {1, 32}, m[2] = {32, 3}, n[2] = {3, 3};
    float data[96];
    graph_builder b;
    epctx_buffer blob;
    epctx_error error;
    gb_randomize(data, 96, 5);
    gb_init(&b);
    gb_input(&b, "x", 1, 2, x);
    gb_floats(&b, "m", 2, m, data);
    gb_floats(&b, "n", 2, n, data);
    gb_node(&b, "MatMul", 13, "x,m", "t");
    gb_node(&b, "Softmax", 13, "t", "u");
    gb_node(&b, "MatMul", 13, "u,n", "y");
    gb_output(&b, "y");
    for (int kind = 0; kind < KINDS; kind++) {
        uint8_t *words;
        uint32_t first, softmax, last, room;
        CHECK_INT(gb_compile(&b, NULL, &blob, &error), EPCTX_OK);
        words = blob.data + EPCTX_NPU_HEADER_SIZE;
        room = (uint32_t)u64(words + 4 * 4);
        set32(words, 4, room + 256); /* bytes that nothing writes */
        first = operands_of(words, 0);
        softmax = operands_of(words, 1);
        last = operands_of(words, 2);
        CHECK_UINT(u64(words + softmax * 4), 1); /* in the scratch */
        if (kind == NEVER) set32(words, softmax + 2, room);
        if (kind == PARTLY) set32(words, softmax + 2, (uint32_t)u64(words + softmax * 4 + 8) + 4);
        if (kind == LATER) set32(words, softmax, 3); /* the output */
        if (kind == BEHIND) {                        /* t ends where the room begins */
            set32(words, first + 3 * 4 + 2, room);
            set32(words, softmax + 2, room + 8);
        }
        if (kind == OUTPUT) {
            set32(words, last + 3 * 4, 1);
            set32(words, last + 3 * 4 + 2, room);
        }
        if (kind == OUTPUT_PARTLY) /* [1, 4]; the product writes 3 */
            set32(words, (uint32_t)u64(words + 6 * 4) + 12 + 5, 4);
#ifdef __OPTIMIZE_SIZE__ /* accepted, and the same result twice, if outputs keep their sizes */
        CHECK((try_damaged(&blob, &error) == EPCTX_OK) == (kind != OUTPUT_PARTLY), "kind %d: %s",
              kind, error.message);
        (void)texts;
#else
        CHECK(try_damaged(&blob, &error) == EPCTX_ERR_CONTEXT, "kind %d: accepted", kind);
        CHECK_HAS(error.message, texts[kind]);
#endif
        epctx_buffer_free(&blob);
    }
    gb_free(&b);
}

/* Parameters that do not fit although every operand has the size that they ask for. */
TEST(forged_parameters) {
    static const int64_t x[2] = {1, 3};
    graph_builder b;
    epctx_buffer blob;
    epctx_error error;
    uint8_t *words;
    uint32_t at;
    gb_init(&b);
    gb_input(&b, "x", 1, 2, x);
    gb_node(&b, "Relu", 14, "x", "y");
    gb_output(&b, "y");
    CHECK_INT(gb_compile(&b, NULL, &blob, &error), EPCTX_OK);
    words = blob.data + EPCTX_NPU_HEADER_SIZE;
    at = (uint32_t)u64(words + 9 * 4) + 4 + 2 * 4; /* behind the two operands of the one command */
    CHECK_UINT((uint32_t)u64(words + at * 4), 3);  /* elements; then the activation */
    set32(words, at + 1, 1000);
    CHECK_INT(try_damaged(&blob, &error), EPCTX_ERR_CONTEXT);
    CHECK_HAS(error.message, "invalid operands");
    epctx_buffer_free(&blob);
    gb_free(&b);
}

/* Tensors at the boundary that no command looks at are checked all the same. */
TEST(forged_boundary) {
    static const int64_t x[2] = {1, 3};
    graph_builder b;
    epctx_buffer blob;
    epctx_error error;
    epctx_span span;
    uint8_t *words;
    uint32_t value;
    size_t need;
    gb_init(&b);
    gb_input(&b, "unused", 1, 2, x);
    gb_input(&b, "x", 1, 2, x);
    gb_node(&b, "Softmax", 13, "x", "y");
    gb_output(&b, "y");
    CHECK_INT(gb_compile(&b, NULL, &blob, &error), EPCTX_OK);
    span.data = blob.data;
    span.size = blob.size;
    words = blob.data + EPCTX_NPU_HEADER_SIZE;
    value = (uint32_t)u64(words + 6 * 4) & UINT32_MAX;
    for (int i = 0; i < 3; i++) {
        /* a rank, a dimension, a name */
        static const uint32_t word[] = {3, 4, 0}, forged[] = {9, 0, 0x7fffffff};
        uint32_t saved = (uint32_t)u64(words + (value + word[i]) * 4);
        epctx_npu_context context;
        void *memory;
        epctx_status status;
        set32(words, value + word[i], forged[i]);
        correct_sum(blob.data, blob.size);
        CHECK_INT(epctx_npu_load_size(span, &need, &error), EPCTX_OK);
        memory = calloc(1, need);
        status = epctx_npu_load(&context, span, memory, need, &error);
        free(memory);
        CHECK(status == EPCTX_ERR_CONTEXT, "forged word %d: %s", i, epctx_status_name(status));
        set32(words, value + word[i], saved);
    }
    epctx_buffer_free(&blob);
    gb_free(&b);
}

TEST(weights_checksum) {
    epctx_buffer blob = small_blob();
    epctx_npu_context context;
    epctx_error error;
    epctx_span span;
    size_t need;
    uint32_t elem;
    void *memory;
    span.data = blob.data;
    span.size = blob.size;
    CHECK_INT(epctx_npu_load_size(span, &need, &error), EPCTX_OK);
    memory = malloc(need);
    CHECK_INT(epctx_npu_load(&context, span, memory, need, &error), EPCTX_OK);
    CHECK_INT(epctx_npu_check_weights(&context, &error), EPCTX_OK);
    CHECK_TRUE(epctx_npu_weight_at(&context, context.weight_count - 1, &span, &elem));
    CHECK_TRUE(span.size > 0 && elem > 0);
    CHECK_TRUE(!epctx_npu_weight_at(&context, context.weight_count, &span, &elem));
    blob.data[blob.size - 1] ^= 1;
    CHECK_INT(epctx_npu_check_weights(&context, &error), EPCTX_ERR_CONTEXT);
    CHECK_HAS(error.message, "checksum");
    free(memory);
    epctx_buffer_free(&blob);
}

/* Embedded in a model, a binary starts at any address. */
TEST(any_address) {
    epctx_buffer blob = small_blob();
    uint8_t *copy = (uint8_t *)gb_aligned(blob.size + 64);
    float x[32], first[3], y[3];
    const void *in[1];
    void *out[1];
    epctx_error error;
    epctx_span span;
    size_t at;
    gb_randomize(x, 32, 1);
    in[0] = x;
    span.size = blob.size;
    for (at = 0; at < 64; at++) {
        memcpy(copy + at, blob.data, blob.size);
        span.data = copy + at;
        out[0] = at ? y : first;
        memset(out[0], 0xff, sizeof y); /* what the run before left is no result */
        CHECK(gb_run_blob(span, in, out, &error) == EPCTX_OK, "at %zu: %s", at, error.message);
        if (at) CHECK_MEM(y, sizeof y, first, sizeof first);
    }
    free(copy);
    epctx_buffer_free(&blob);
}

TEST(memory) {
    epctx_buffer blob = small_blob();
    epctx_npu_context context;
    epctx_error error;
    epctx_span span;
    size_t need, size;
    span.data = blob.data;
    span.size = blob.size;
    CHECK_INT(epctx_npu_load_size(span, &need, &error), EPCTX_OK);
    for (size = 0; size < need; size += 97) {
        void *memory = malloc(size + 1);
        CHECK_INT(epctx_npu_load(&context, span, memory, size, &error), EPCTX_ERR_NOMEM);
        CHECK_TRUE(context.graph_count == 0);
        free(memory);
    }
    CHECK_INT(epctx_npu_load(&context, span, NULL, need, &error), EPCTX_ERR_ARG);
    {
        uint8_t *memory = (uint8_t *)malloc(need + 4);
        CHECK_INT(epctx_npu_load(&context, span, memory + 4, need, &error), EPCTX_ERR_ARG);
        CHECK_HAS(error.message, "aligned to 8");
        free(memory);
    }
    epctx_buffer_free(&blob);
}

TEST(arguments) {
    epctx_buffer blob = small_blob();
    epctx_npu_context context;
    const epctx_npu_graph *graph;
    epctx_error error;
    epctx_span span, input;
    epctx_memory output;
    float x[40], y[3];
    size_t need;
    void *memory, *scratch;
    span.data = blob.data;
    span.size = blob.size;
    CHECK_INT(epctx_npu_load_size(span, &need, &error), EPCTX_OK);
    memory = malloc(need);
    CHECK_INT(epctx_npu_load(&context, span, memory, need, &error), EPCTX_OK);
    CHECK_INT(epctx_npu_find(&context, epctx_str_of("other"), 0, &graph, &error),
              EPCTX_ERR_CONTEXT);
    CHECK_HAS(error.message, "other");
    CHECK_INT(epctx_npu_find(&context, epctx_str_of("main"), 8, &graph, &error), EPCTX_ERR_VERSION);
    CHECK_INT(epctx_npu_find(&context, epctx_str_of("main"), 7, &graph, &error), EPCTX_OK);
    scratch = gb_aligned(graph->info.scratch_size);
    gb_randomize(x, 40, 1);
    input.data = (const uint8_t *)x;
    input.size = 124;
    output.data = y;
    output.size = sizeof y;
    CHECK_INT(epctx_npu_run(graph, &input, &output, scratch, graph->info.scratch_size, &error),
              EPCTX_ERR_ARG);
    CHECK_HAS(error.message, "expected 128 bytes, found 124");
    input.size = 128;
    input.data += 2;
    CHECK_INT(epctx_npu_run(graph, &input, &output, scratch, graph->info.scratch_size, &error),
              EPCTX_ERR_ARG);
    input.data += 2;
    CHECK_INT(epctx_npu_run(graph, &input, &output, scratch, graph->info.scratch_size, &error),
              EPCTX_OK);
    CHECK_INT(epctx_npu_run(graph, &input, &output, scratch, graph->info.scratch_size - 1, &error),
              EPCTX_ERR_ARG);
    CHECK_INT(epctx_npu_run(graph, &input, &output, (uint8_t *)scratch + 4,
                            graph->info.scratch_size, &error),
              EPCTX_ERR_ARG);
    free(scratch);
    free(memory);
    epctx_buffer_free(&blob);
}

/* Dimensions whose product wraps round to the size that the tensor had: 2^62 + 1 squared, times
 * three floats. */
TEST(forged_products) {
    static const uint32_t dims[] = {0x80000001, 0x7fffffff, 0x80000001, 0x7fffffff, 3};
    static const int64_t x[2] = {1, 3};
    graph_builder b;
    epctx_buffer blob;
    epctx_error error;
    epctx_span span;
    uint8_t *words;
    uint32_t value;
    size_t need;
    epctx_npu_context context;
    void *memory;
    gb_init(&b);
    gb_input(&b, "unused", 1, 2, x);
    gb_input(&b, "x", 1, 2, x);
    gb_node(&b, "Softmax", 13, "x", "y");
    gb_output(&b, "y");
    CHECK_INT(gb_compile(&b, NULL, &blob, &error), EPCTX_OK);
    words = blob.data + EPCTX_NPU_HEADER_SIZE;
    value = (uint32_t)u64(words + 6 * 4) & UINT32_MAX;
    set32(words, value + 3, 5);
    for (uint32_t i = 0; i < 5; i++) set32(words, value + 4 + i, dims[i]);
    correct_sum(blob.data, blob.size);
    span.data = blob.data;
    span.size = blob.size;
    CHECK_INT(epctx_npu_load_size(span, &need, &error), EPCTX_OK);
    memory = calloc(1, need);
    CHECK_INT(epctx_npu_load(&context, span, memory, need, &error), EPCTX_ERR_CONTEXT);
    CHECK_HAS(error.message, "invalid type or shape");
    free(memory);
    epctx_buffer_free(&blob);
    gb_free(&b);
}

/* Two graphs in a context; the names are not terminated. */
static bool compile_two(epctx_buffer *blob, epctx_str first, epctx_str second) {
    static const int64_t x[2] = {1, 3};
    graph_builder b;
    epctx_npu npu;
    epctx_backend backend;
    void *build;
    bool good;
    gb_init(&b);
    gb_input(&b, "x", 1, 2, x);
    gb_node(&b, "Softmax", 13, "x", "y");
    gb_output(&b, "y");
    epctx_buffer_init(blob, NULL);
    good = epctx_npu_init(&npu, NULL, &backend, NULL) == EPCTX_OK &&
           backend.begin_fn(backend.self, &build, NULL) == EPCTX_OK &&
           backend.compile_fn(backend.self, build, &b.graph, first, 1, NULL) == EPCTX_OK &&
           backend.compile_fn(backend.self, build, &b.graph, second, 2, NULL) == EPCTX_OK &&
           backend.finish_fn(backend.self, build, blob, NULL) == EPCTX_OK;
    gb_free(&b);
    return good;
}

static epctx_status load_forged(epctx_buffer *blob, epctx_npu_context *context, void **memory,
                                epctx_error *error) {
    epctx_span span;
    size_t need;
    epctx_status status;
    correct_sum(blob->data, blob->size);
    span.data = blob->data;
    span.size = blob->size;
    *memory = NULL;
    status = epctx_npu_load_size(span, &need, error);
    if (status != EPCTX_OK) return status;
    *memory = calloc(1, need);
    return epctx_npu_load(context, span, *memory, need, error);
}

/* Words 12 and 13 of a graph: which graph makes its weights, counted from 1, and whether it makes
 * those of others, which stand behind the ordinary ones. */
TEST(forged_makers) {
    static const struct {
        uint32_t maker[2], makes[2];
        const char *text; /* NULL: good */
    } cases[] = {
        {{0, 0}, {0, 0}, NULL},
        {{2, 0}, {0, 1}, NULL},
        {{0, 0}, {1, 0}, "graphs that make weights last"},
        {{1, 0}, {0, 1}, "makes none"}, /* by itself */
        {{2, 0}, {0, 0}, "makes none"}, /* by an ordinary one */
        {{3, 0}, {0, 1}, "makes none"}, /* by one that is not there */
        {{UINT32_MAX, 0}, {0, 1}, "makes none"},
        {{0, 2}, {0, 1}, "makes none"}, /* a maker has no maker */
    };
    epctx_buffer blob;
    uint8_t *words;
    CHECK_TRUE(compile_two(&blob, epctx_str_of("a"), epctx_str_of("b")));
    words = blob.data + EPCTX_NPU_HEADER_SIZE;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        epctx_npu_context context;
        epctx_error error;
        void *memory;
        epctx_status status;
        for (uint32_t g = 0; g < 2; g++) {
            set32(words, g * 20 + 12, cases[i].maker[g]);
            set32(words, g * 20 + 13, cases[i].makes[g]);
        }
        status = load_forged(&blob, &context, &memory, &error);
        free(memory);
        CHECK(status == (cases[i].text == NULL ? EPCTX_OK : EPCTX_ERR_CONTEXT), "case %zu: %s %s",
              i, epctx_status_name(status), error.message);
        if (cases[i].text != NULL) CHECK_HAS(error.message, cases[i].text);
    }
    epctx_buffer_free(&blob);
}

/* Scratch of the graph that makes the weights: half of all there is, and more than that together
 * with its inputs. */
TEST(forged_scratch_of_a_maker) {
    epctx_buffer blob;
    epctx_npu_context context;
    epctx_error error;
    void *memory;
    size_t kept, temporary;
    uint8_t *words;
    uint64_t scratch = SIZE_MAX / 2;
    CHECK_TRUE(compile_two(&blob, epctx_str_of("a"), epctx_str_of("b")));
    words = blob.data + EPCTX_NPU_HEADER_SIZE;
    set32(words, 12, 2);
    set32(words, 20 + 13, 1);
    set32(words, 20 + 4, (uint32_t)(scratch & UINT32_MAX));
    set32(words, 20 + 5, (uint32_t)(scratch >> 32));
    CHECK_OK(load_forged(&blob, &context, &memory, &error), error);
    CHECK_INT(epctx_npu_weights_size(&context.graphs[0], &kept, &temporary, &error),
              EPCTX_ERR_NOMEM);
    CHECK_HAS(error.message, "too large for this machine");
    CHECK_TRUE(kept == 0 && temporary == 0);
    free(memory);
    epctx_buffer_free(&blob);
}

/* The message that lists the graphs has room for some names only. */
TEST(long_names_of_graphs) {
    static char first[400], second[400];
    memset(first, 'a', sizeof first);
    memset(second, 'b', sizeof second);
    for (size_t size = 80; size <= 400; size++) {
        epctx_buffer blob;
        epctx_npu_context context;
        const epctx_npu_graph *graph;
        epctx_error error;
        void *memory;
        epctx_str a = {first, size}, b = {second, size};
        CHECK_TRUE(compile_two(&blob, a, b));
        CHECK_OK(load_forged(&blob, &context, &memory, &error), error);
        CHECK_INT(epctx_npu_find(&context, epctx_str_of("c"), 0, &graph, &error),
                  EPCTX_ERR_CONTEXT);
        CHECK_HAS(error.message, "found 'a");
        CHECK_HAS(error.message, size <= 93 ? "bb'" : "...");
        free(memory);
        epctx_buffer_free(&blob);
        if (size == 100) size = 180;
        if (size == 200) size = 390;
    }
}

/* Two graphs in one context share equal weights; names must differ. */
TEST(two_graphs) {
    static const int64_t x[2] = {1, 20}, w[2] = {20, 30};
    float data[600];
    graph_builder b;
    epctx_npu npu;
    epctx_backend backend;
    epctx_buffer blob;
    epctx_error error;
    epctx_npu_blob info;
    epctx_span span;
    void *build, *context, *graph;
    size_t first;
    gb_randomize(data, 600, 3);
    gb_init(&b);
    gb_input(&b, "x", 1, 2, x);
    gb_floats(&b, "w", 2, w, data);
    gb_node(&b, "MatMul", 13, "x,w", "y");
    gb_output(&b, "y");
    CHECK_INT(epctx_npu_init(&npu, NULL, &backend, &error), EPCTX_OK);
    CHECK_INT(backend.begin_fn(backend.self, &build, &error), EPCTX_OK);
    CHECK_INT(backend.compile_fn(backend.self, build, &b.graph, epctx_str_of("a"), 1, &error),
              EPCTX_OK);
    first = (size_t)npu.stats.weight_size;
    CHECK_TRUE(first >= 2400);
    CHECK_INT(backend.compile_fn(backend.self, build, &b.graph, epctx_str_of("a"), 1, &error),
              EPCTX_ERR_ARG);
    CHECK_INT(backend.compile_fn(backend.self, build, &b.graph, epctx_str_of("b"), 2, &error),
              EPCTX_OK);
    CHECK_UINT(npu.stats.weight_size, 0);
    CHECK_UINT(npu.stats.weight_saved, first);
    epctx_buffer_init(&blob, NULL);
    CHECK_INT(backend.finish_fn(backend.self, build, &blob, &error), EPCTX_OK);
    span.data = blob.data;
    span.size = blob.size;
    CHECK_INT(epctx_npu_peek(span, &info, &error), EPCTX_OK);
    CHECK_INT(info.graph_count, 2);
    CHECK_INT(info.weight_count, 1);
    CHECK_STR(info.architecture, "generic");
    CHECK_INT(backend.load_fn(backend.self, &(epctx_load_in){.binary = span}, &context, &error),
              EPCTX_OK);
    for (first = 0; first < 2; first++) {
        const char *name = first == 0 ? "a" : "b";
        epctx_graph_info found;
        CHECK_INT(
            backend.find_fn(backend.self, context, epctx_str_of(name), first + 1, &graph, &error),
            EPCTX_OK);
        CHECK_INT(backend.info_fn(backend.self, graph, &found, &error), EPCTX_OK);
        CHECK(epctx_str_is(found.name, name), "instead of %s: %.*s", name, (int)found.name.size,
              found.name.data);
    }
    CHECK_INT(backend.find_fn(backend.self, context, epctx_str_of("b"), 1, &graph, &error),
              EPCTX_ERR_VERSION);
    backend.unload_fn(backend.self, context);
    /* the second name made equal to the first */
    {
        const uint64_t strings = u64(blob.data + 72);
        size_t i;
        for (i = 0; i < u64(blob.data + 80); i++)
            if (blob.data[strings + i] == 'b') blob.data[strings + i] = 'a';
        correct_sum(blob.data, blob.size);
        CHECK_INT(backend.load_fn(backend.self, &(epctx_load_in){.binary = span}, &context, &error),
                  EPCTX_ERR_CONTEXT);
        CHECK_HAS(error.message, "occurs twice");
    }
    epctx_buffer_free(&blob);
    gb_free(&b);
}

/* The graphs stand in the order of their names, in whatever order they were compiled. */
TEST(graphs_in_order) {
    static const char *const names[] = {"p_9", "p_10", "q", "p_2", "p_11", ""};
    static const char *const sorted[] = {"", "q", "p_2", "p_9", "p_10", "p_11"};
    enum { COUNT = sizeof names / sizeof names[0] };
    static const int64_t dims[1] = {4};
    graph_builder b;
    epctx_npu npu;
    epctx_backend backend;
    epctx_buffer blob;
    epctx_error error;
    epctx_npu_context context;
    epctx_span span;
    void *build, *memory;
    size_t i, size;
    gb_init(&b);
    gb_input(&b, "x", 1, 1, dims);
    gb_node(&b, "Relu", 14, "x", "y");
    gb_output(&b, "y");
    CHECK_INT(epctx_npu_init(&npu, NULL, &backend, &error), EPCTX_OK);
    CHECK_INT(backend.begin_fn(backend.self, &build, &error), EPCTX_OK);
    for (i = 0; i < COUNT; i++)
        CHECK_INT(backend.compile_fn(backend.self, build, &b.graph, epctx_str_of(names[i]), i + 1,
                                     &error),
                  EPCTX_OK);
    epctx_buffer_init(&blob, NULL);
    CHECK_INT(backend.finish_fn(backend.self, build, &blob, &error), EPCTX_OK);
    span.data = blob.data;
    span.size = blob.size;
    CHECK_INT(epctx_npu_load_size(span, &size, &error), EPCTX_OK);
    memory = gb_aligned(size);
    CHECK(epctx_npu_load(&context, span, memory, size, &error) == EPCTX_OK, "%s", error.message);
    for (i = 0; i < COUNT; i++) {
        const epctx_npu_graph *graph = NULL;
        epctx_npu_find(&context, epctx_str_of(names[i]), i + 1, &graph, &error);
        CHECK(graph != NULL, "graph '%s' is not found: %s", names[i], error.message);
        CHECK_TRUE(epctx_str_is(context.graphs[i].info.name, sorted[i]));
    }
    /* "p_2" becomes "p_z", which belongs behind "p_9" */
    {
        const uint64_t strings = u64(blob.data + 72);
        for (i = 0; i < u64(blob.data + 80); i++)
            if (memcmp(blob.data + strings + i, "p_2", 3) == 0) blob.data[strings + i + 2] = 'z';
        correct_sum(blob.data, blob.size);
        CHECK_INT(epctx_npu_load(&context, span, memory, size, &error), EPCTX_ERR_CONTEXT);
        CHECK_HAS(error.message, "graph 'p_9' is out of order");
    }
    free(memory);
    epctx_buffer_free(&blob);
    gb_free(&b);
}

/* A tensor of bytes at the boundary may have any address: no command takes it for floats. */
TEST(forged_alignment) {
    static const int64_t x[2] = {1, 3};
    graph_builder b;
    epctx_buffer blob;
    uint8_t *words;
    uint32_t table;
    gb_init(&b);
    gb_input(&b, "x", EPCTX_ONNX_FLOAT, 2, x);
    gb_node(&b, "Softmax", 13, "x", "y");
    gb_output(&b, "y");
    CHECK_INT(gb_compile(&b, NULL, &blob, NULL), EPCTX_OK);
    words = blob.data + EPCTX_NPU_HEADER_SIZE;
    table = (uint32_t)u64(words + 6 * 4);
    for (uint32_t i = 0; i < 2; i++) { /* the input, the output: twelve bytes still */
        epctx_npu_context context;
        epctx_error error;
        void *memory;
        set32(words, table + i * 12 + 2, EPCTX_ONNX_UINT8);
        set32(words, table + i * 12 + 5, 12);
        CHECK_INT(load_forged(&blob, &context, &memory, &error), EPCTX_ERR_CONTEXT);
        CHECK_HAS(error.message, "invalid operands");
        free(memory);
        set32(words, table + i * 12 + 2, EPCTX_ONNX_FLOAT);
        set32(words, table + i * 12 + 5, 3);
    }
    epctx_buffer_free(&blob);
    gb_free(&b);
}

/* A context binary by hand: words, strings, and so many bytes of weights. */
static epctx_buffer by_hand(const uint32_t *words, size_t count, uint32_t graphs, uint32_t weights,
                            const char *strings, size_t weight_bytes) {
    const size_t at = EPCTX_NPU_HEADER_SIZE + count * 4, text = strlen(strings);
    const size_t start = (at + text + 63) / 64 * 64;
    epctx_buffer blob;
    uint8_t *h;
    epctx_buffer_init(&blob, NULL);
    if (epctx_buffer_append(&blob, NULL, start + weight_bytes) != EPCTX_OK) abort();
    h = blob.data;
    memset(h, 0, blob.size);
    memcpy(h, "EPCTXNPU", 8);
    set32(h, 2, EPCTX_NPU_FORMAT);
    set32(h, 3, EPCTX_NPU_HEADER_SIZE);
    memcpy(h + 16, EPCTX_NPU_SDK_VERSION, strlen(EPCTX_NPU_SDK_VERSION));
    memcpy(h + 32, "generic", 7);
    set32(h, 14, (uint32_t)blob.size);
    set32(h, 16, (uint32_t)count);
    set32(h, 18, (uint32_t)at);
    set32(h, 20, (uint32_t)text);
    set32(h, 22, (uint32_t)start);
    set32(h, 24, (uint32_t)weight_bytes);
    set32(h, 26, graphs);
    set32(h, 27, weights);
    for (size_t i = 0; i < count; i++) set32(h + EPCTX_NPU_HEADER_SIZE, (uint32_t)i, words[i]);
    memcpy(h + at, strings, text);
    return blob;
}

/* Commands that many graphs share would be verified for each of them. */
TEST(forged_sharing) {
    /* one float in the scratch is set to 0 */
    static const uint32_t fill[12] = {1, 12, 0, 0, 1, 0, 0, 0, 1, 4, 0, 0};
    enum { GRAPHS = 3, COMMANDS = 20 };
    uint32_t words[GRAPHS * 20 + COMMANDS * 12];
    for (uint32_t sharing = 1; sharing <= GRAPHS; sharing++) {
        epctx_npu_context context;
        epctx_npu_command command;
        epctx_error error;
        epctx_buffer blob;
        epctx_status status;
        void *memory;
        uint32_t position = 0, count = 0;
        memset(words, 0, sizeof words);
        for (uint32_t g = 0; g < GRAPHS; g++) {
            words[g * 20] = g; /* the name: "a", "b" or "c" */
            words[g * 20 + 1] = 1;
            words[g * 20 + 4] = 64; /* scratch */
            words[g * 20 + 9] = GRAPHS * 20;
            words[g * 20 + 10] = g < sharing ? COMMANDS * 12 : 0;
            words[g * 20 + 11] = g < sharing ? COMMANDS : 0;
        }
        for (uint32_t i = 0; i < COMMANDS; i++)
            memcpy(words + GRAPHS * 20 + i * 12, fill, sizeof fill);
        blob = by_hand(words, sizeof words / 4, GRAPHS, 0, "abc", 0);
        status = load_forged(&blob, &context, &memory, &error);
        CHECK(status == (sharing == 1 ? EPCTX_OK : EPCTX_ERR_CONTEXT), "%u: %s %s", sharing,
              epctx_status_name(status), error.message);
        if (status == EPCTX_OK) {
            while (epctx_npu_next_command(&context.graphs[0], &position, &command)) {
                CHECK_STR(command.op, "Fill");
                CHECK_INT(command.result.offset, 0);
                CHECK_INT(command.result.bytes, 4);
                CHECK_INT(command.reads[0].bytes, 0);
                count++;
            }
            CHECK_INT(count, COMMANDS);
            position = 0;
            CHECK_TRUE(!epctx_npu_next_command(&context.graphs[1], &position, &command));
        } else {
            CHECK_HAS(error.message, "the commands of graph 'b' exceed the file");
        }
        free(memory);
        epctx_buffer_free(&blob);
    }
}

/* Names that lie in one another: many long ones would take forever to compare. */
TEST(forged_names) {
    static const char *const strings[] = {"aaabb", "aaabb."};
    for (size_t i = 0; i < 2; i++) {
        uint32_t words[3 * 20] = {0};
        epctx_npu_context context;
        epctx_error error;
        epctx_buffer blob;
        void *memory;
        for (uint32_t g = 0; g < 3; g++) { /* "aaa", "aab", "abb" */
            words[g * 20] = g;
            words[g * 20 + 1] = 3;
        }
        blob = by_hand(words, 3 * 20, 3, 0, strings[i], 0);
        CHECK_INT(load_forged(&blob, &context, &memory, &error),
                  i == 0 ? EPCTX_ERR_CONTEXT : EPCTX_OK);
        if (i == 0) CHECK_HAS(error.message, "graph names overlap");
        free(memory);
        epctx_buffer_free(&blob);
    }
}

/* Weights that overlap: their bytes would be turned round once for each on a big-endian machine. */
TEST(forged_weights) {
    static const uint32_t words[][12] = {{0, 0, 64, 0, 4, 0, 64, 0, 64, 0, 4, 0},
                                         {0, 0, 128, 0, 4, 0, 0, 0, 64, 0, 4, 0}};
    for (size_t i = 0; i < 2; i++) {
        epctx_npu_context context;
        epctx_error error;
        epctx_buffer blob = by_hand(words[i], 12, 0, 2, "", 128);
        void *memory;
        CHECK_INT(load_forged(&blob, &context, &memory, &error),
                  i == 0 ? EPCTX_OK : EPCTX_ERR_CONTEXT);
        if (i == 1) CHECK_HAS(error.message, "weight 1 at 0 of 64 bytes is misaligned or exceeds");
        free(memory);
        epctx_buffer_free(&blob);
    }
}

/* A graph that makes weights out of nothing, without scratch: no temporary memory is needed. */
TEST(forged_maker_without_inputs) {
    uint32_t words[40 + 12 + 12] = {0};
    /* one float of the output is set to 0 */
    static const uint32_t fill[12] = {1, 12, 0, 0, 3, 0, 0, 0, 1, 4, 0, 0};
    epctx_npu_context context;
    epctx_tensor none;
    epctx_error error;
    epctx_buffer blob;
    void *memory, *kept;
    size_t keep, temporary;
    words[12] = 2;
    words[20 + 6] = 40;
    words[20 + 8] = 1;
    words[20 + 9] = 52;
    words[20 + 10] = 12;
    words[20 + 11] = 1;
    words[20 + 13] = 1;
    words[40 + 2] = EPCTX_ONNX_FLOAT;
    memcpy(words + 52, fill, sizeof fill);
    blob = by_hand(words, sizeof words / 4, 2, 0, "", 0);
    CHECK_OK(load_forged(&blob, &context, &memory, &error), error);
    CHECK_OK(epctx_npu_weights_size(&context.graphs[0], &keep, &temporary, &error), error);
    CHECK_UINT(temporary, 0);
    kept = gb_aligned(keep);
    memset(&none, 0, sizeof none);
    CHECK_OK(epctx_npu_make_weights(&context.graphs[0], &none, 1, kept, NULL, &error), error);
    CHECK_OK(epctx_npu_run(&context.graphs[0], NULL, NULL, NULL, 0, &error), error);
    free(kept);
    free(memory);
    epctx_buffer_free(&blob);
}

/* The stride of a dimension of 1 is never taken, however far it would lead. */
TEST(forged_strides) {
    static const uint32_t strides[] = {0x7fffffff, 0x80000000, 0x80000001};
    for (size_t i = 0; i < sizeof strides / sizeof strides[0]; i++) {
        /* Move of 2 by 1 by 3 elements from an input to the scratch */
        uint32_t words[20 + 12 + 12 + 28] = {0}, *params = words + 20 + 12 + 12;
        const uint32_t head[12] = {0, 12 + 28, 0, 0, 2, 0, 0, 0, 1, 0, 64, 0};
        const int64_t given[6] = {1, 2, 3, 4, 5, 6};
        const epctx_span input = {(const uint8_t *)given, sizeof given};
        uint8_t *scratch = (uint8_t *)gb_aligned(128);
        epctx_npu_context context;
        epctx_error error;
        epctx_buffer blob;
        void *memory;
        words[4] = 128;
        words[6] = 20;
        words[7] = 1;
        words[9] = 32;
        words[10] = 12 + 28;
        words[11] = 1;
        words[22] = EPCTX_ONNX_INT64;
        words[23] = 1;
        words[24] = 6;
        memcpy(words + 32, head, sizeof head);
        params[0] = 8;
        params[1] = 3;
        params[4] = 2;
        params[5] = 1;
        params[6] = 3;
        params[12] = params[20] = 3;
        params[13] = params[21] = strides[i];
        params[14] = params[22] = 1;
        blob = by_hand(words, sizeof words / 4, 1, 0, "", 0);
        CHECK_OK(load_forged(&blob, &context, &memory, &error), error);
        CHECK_OK(epctx_npu_run(&context.graphs[0], &input, NULL, scratch, 128, &error), error);
        CHECK_MEM(scratch + 64, 48, given, 48);
        free(scratch);
        free(memory);
        epctx_buffer_free(&blob);
    }
}

/* A Move that writes one element 2^32 times would take seconds. */
TEST(forged_repetition) {
    uint32_t words[20 + 12 + 28] = {0}, *params = words + 20 + 12;
    const uint32_t head[12] = {0, 12 + 28, 0, 0, 1, 0, 0, 0, 1, 0, 64, 0};
    epctx_npu_context context;
    epctx_error error;
    epctx_buffer blob;
    void *memory;
    words[4] = 128;
    words[9] = 20;
    words[10] = 12 + 28;
    words[11] = 1;
    memcpy(words + 20, head, sizeof head);
    params[0] = 4;
    params[1] = 2;
    params[4] = params[5] = 65536;
    blob = by_hand(words, sizeof words / 4, 1, 0, "", 0);
    CHECK_INT(load_forged(&blob, &context, &memory, &error), EPCTX_ERR_CONTEXT);
    CHECK_HAS(error.message, "invalid operands or parameters");
    free(memory);
    epctx_buffer_free(&blob);
}

/* One operator of [1, 8, 16 size, 16 size], or a product of matrices with 64 size rows and
 * columns. */
static epctx_status work_blob(const char *op, int64_t size, epctx_buffer *blob,
                              epctx_error *error) {
    static const int64_t three[2] = {3, 3}, edge[4] = {1, 1, 1, 1};
    const int64_t image[4] = {1, 8, 16 * size, 16 * size}, weights[4] = {8, 8, 3, 3};
    const int64_t each[4] = {8, 1, 3, 3}, matrix[2] = {64 * size, 64 * size};
    const int64_t deep[4] = {1, 16, 16 * size, 16 * size}, taps[4] = {16, 16, 3, 3};
    const int64_t hidden[3] = {1, 32, 8}, cell[3] = {1, 32, 8}, steps[3] = {64 * size, 1, 8};
    bool gemm = strcmp(op, "MatMul") == 0, lstm = strcmp(op, "LSTM") == 0;
    const bool tiles = strcmp(op, "Winograd") == 0;
    static float data[2304];
    graph_builder b;
    epctx_status status;
    gb_randomize(data, 2304, 5);
    gb_init(&b);
    gb_input(&b, "x", 1,
             gemm   ? 2
             : lstm ? 3
                    : 4,
             gemm    ? matrix
             : lstm  ? steps
             : tiles ? deep
                     : image);
    if (gemm) gb_input(&b, "w", 1, 2, matrix);
    if (lstm) gb_floats(&b, "w", 3, hidden, data);
    if (lstm) gb_floats(&b, "r", 3, cell, data);
    if (strcmp(op, "Conv") == 0) gb_floats(&b, "w", 4, weights, data);
    if (strcmp(op, "Depthwise") == 0) gb_floats(&b, "w", 4, each, data);
    if (tiles) gb_floats(&b, "w", 4, taps, data);
    gb_node(&b, strcmp(op, "Depthwise") == 0 || tiles ? "Conv" : op, 14,
            lstm                                                    ? "x,w,r"
            : strstr(op, "Pool") != NULL || strcmp(op, "Relu") == 0 ? "x"
                                                                    : "x,w",
            "y");
    if (strcmp(op, "Depthwise") == 0) gb_attr_int(&b, "group", 8);
    if (strcmp(op, "Depthwise") == 0 || strcmp(op, "Conv") == 0 || tiles)
        gb_attr_ints(&b, "pads", 4, edge);
    if (strstr(op, "Pool") != NULL) gb_attr_ints(&b, "kernel_shape", 2, three);
    if (lstm) gb_attr_int(&b, "hidden_size", 8);
    gb_output(&b, "y");
    epctx_error_clear(error);
    status = gb_compile(&b, NULL, blob, error);
    gb_free(&b);
    return status;
}

/* Loads with `most`; the work of its graph comes back. */
static epctx_status load_limited(const epctx_buffer *blob, uint64_t most, uint64_t *work,
                                 epctx_error *error) {
    epctx_npu npu;
    epctx_backend backend;
    epctx_npu_opts opts;
    epctx_span span;
    void *context;
    epctx_status status;
    memset(&opts, 0, sizeof opts);
    opts.max_work = most;
    span.data = blob->data;
    span.size = blob->size;
    epctx_error_clear(error);
    status = epctx_npu_init(&npu, &opts, &backend, error);
    if (status == EPCTX_OK)
        status = backend.load_fn(backend.self, &(epctx_load_in){.binary = span}, &context, error);
    if (status != EPCTX_OK) return status;
    *work = ((const epctx_npu_context *)context)->graphs[0].work;
    backend.unload_fn(backend.self, context);
    return EPCTX_OK;
}

/* A graph's work is at least its products and sums, grows as they do, and can be limited. */
TEST(work_is_limited) {
    static const struct {
        const char *op;
        uint64_t least; /* products of the small one */
        uint64_t most;  /* times as much, in tenths, with sizes doubled */
    } cases[] = {{"MatMul", 64 * 64 * 64, 80},       {"Conv", 8 * 8 * 9 * 256, 40},
                 {"Depthwise", 8 * 9 * 256, 40},     {"MaxPool", 8 * 9 * 14 * 14, 48},
                 {"LSTM", 64 * 32 * 8, 20},          {"Relu", 8 * 256, 40},
                 {"Winograd", 16 * 16 * 36 * 16, 40}};
    size_t i;
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        epctx_buffer small, large;
        uint64_t work = 0, more = 0;
        epctx_error error;
        CHECK_OK(work_blob(cases[i].op, 1, &small, &error), error);
        CHECK_OK(work_blob(cases[i].op, 2, &large, &error), error);
        CHECK_OK(load_limited(&small, 0, &work, &error), error);
        CHECK_OK(load_limited(&large, 0, &more, &error), error);
        CHECK(work >= cases[i].least && work <= 40 * cases[i].least,
              "%s: work is %" PRIu64 ", it has %" PRIu64 " products", cases[i].op, work,
              cases[i].least);
        CHECK(more * 10 <= work * cases[i].most && more * 14 >= work * cases[i].most / 2,
              "%s: work grows from %" PRIu64 " to %" PRIu64, cases[i].op, work, more);
        CHECK_OK(load_limited(&large, more, &more, &error), error);
        CHECK_INT(load_limited(&large, more - 1, &more, &error), EPCTX_ERR_LIMIT);
        CHECK(strstr(error.message, "max_work") != NULL, "%s", error.message);
        epctx_buffer_free(&small);
        epctx_buffer_free(&large);
    }
}

/* Some hundred bytes that ask for 5 * 10^11 products. */
TEST(work_of_a_small_blob) {
    epctx_buffer blob;
    uint64_t work = 0;
    epctx_error error;
    CHECK_OK(work_blob("MatMul", 128, &blob, &error), error);
    CHECK(blob.size < 1000, "the blob has %zu bytes", blob.size);
    CHECK_INT(load_limited(&blob, UINT64_C(1) << 36, &work, &error), EPCTX_ERR_LIMIT);
    CHECK_OK(load_limited(&blob, UINT64_C(1) << 40, &work, &error), error);
    CHECK_TRUE(work >= UINT64_C(8192) * 8192 * 8192);
    epctx_buffer_free(&blob);
}

int main(int argc, char **argv) {
    RUN(runs);
    RUN(truncated);
    RUN(flipped);
    RUN(forged);
    RUN(foreign);
    RUN(forged_words);
    RUN(forged_overlap);
    RUN(forged_order);
    RUN(forged_parameters);
    RUN(forged_boundary);
    RUN(weights_checksum);
    RUN(any_address);
    RUN(memory);
    RUN(arguments);
    RUN(forged_products);
    RUN(forged_makers);
    RUN(forged_scratch_of_a_maker);
    RUN(long_names_of_graphs);
    RUN(two_graphs);
    RUN(graphs_in_order);
    RUN(forged_alignment);
    RUN(forged_sharing);
    RUN(forged_names);
    RUN(forged_weights);
    RUN(forged_maker_without_inputs);
    RUN(forged_strides);
    RUN(forged_repetition);
    RUN(work_is_limited);
    RUN(work_of_a_small_blob);
    return test_end();
}
