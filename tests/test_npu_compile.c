/* >>compile, >>import, >>plan and >>emit: folding, fusion, memory plan, determinism, refusals.
 * Includes the implementation to look into the plan. */
/* runs: once */
#define EPCTX_NPU_IMPLEMENTATION
#include "npu_graph.h"

#include "test.h"

/* Compiles; the result of the case is in `stats`, `error`. */
static epctx_status compile(const graph_builder *b, epctx_npu_stats *stats, epctx_error *error) {
    epctx_buffer blob;
    epctx_status status;
    epctx_error_clear(error);
    status = gb_compile(b, stats, &blob, error);
    epctx_buffer_free(&blob);
    return status;
}

static const int64_t image[4] = {1, 2, 6, 6}, weights[4] = {3, 2, 3, 3}, three[1] = {3};
static float numbers[8192];

/* x -> Conv -> t */
static void add_conv(graph_builder *b) {
    gb_init(b);
    gb_input(b, "x", 1, 4, image);
    gb_floats(b, "w", 4, weights, numbers);
    gb_floats(b, "c", 1, three, numbers + 100);
    gb_node(b, "Conv", 11, "x,w", "t");
}

/* -- folding -- */

TEST(folds_shape_arithmetic) {
    /* the usual exporter's Flatten: Shape, Gather, Unsqueeze, Concat, Reshape */
    const int64_t zero[1] = {0}, minus[1] = {-1};
    graph_builder b;
    epctx_npu_stats stats;
    epctx_error error;
    add_conv(&b);
    gb_constant(&b, "i0", EPCTX_ONNX_INT64, 0, NULL, zero);
    gb_ints(&b, "zero", 1, zero);
    gb_ints(&b, "minus", 1, minus);
    gb_node(&b, "Shape", 15, "t", "s");
    gb_node(&b, "Gather", 13, "s,i0", "n");
    gb_node(&b, "Unsqueeze", 13, "n,zero", "u");
    gb_node(&b, "Concat", 13, "u,minus", "d");
    gb_attr_int(&b, "axis", 0);
    gb_node(&b, "Reshape", 14, "t,d", "y");
    gb_output(&b, "y");
    CHECK_OK(compile(&b, &stats, &error), error);
    CHECK_INT(stats.commands, 3); /* the convolution between two transposes */
    CHECK_INT(stats.nodes, 6);
    gb_free(&b);
}

TEST(folds_constants) {
    const float a[3] = {1, 2, 3}, c[3] = {0.5f, 0.25f, 8};
    const float want[3] = {sqrtf(1.5f), sqrtf(2.25f), sqrtf(11)};
    float x[3] = {0, 0, 0}, y[3];
    const void *in[1];
    void *out[1];
    graph_builder b;
    epctx_npu_stats stats;
    epctx_error error;
    gb_init(&b);
    gb_input(&b, "x", 1, 1, three);
    gb_floats(&b, "a", 1, three, a);
    gb_floats(&b, "b", 1, three, c);
    gb_node(&b, "Add", 14, "a,b", "s");
    gb_node(&b, "Sqrt", 13, "s", "q");
    gb_node(&b, "Add", 14, "x,q", "y");
    gb_output(&b, "y");
    CHECK_OK(compile(&b, &stats, &error), error);
    CHECK_INT(stats.commands, 1);
    CHECK_INT(stats.folded, 2);
    in[0] = x;
    out[0] = y;
    CHECK_OK(gb_run(&b, in, out, &error), error);
    CHECK_MEM(y, sizeof y, want, sizeof want);
    gb_free(&b);
}

TEST(folds_integers) {
    const int64_t a[2] = {7, -7}, c[1] = {2}, dims[1] = {2};
    const int64_t want[8] = {9, -5, 5, -9, 14, -14, 3, -3};
    int64_t y[8];
    float x[1] = {0}, z[1];
    const int64_t one[1] = {1};
    const void *in[1];
    void *out[2];
    graph_builder b;
    epctx_error error;
    gb_init(&b);
    gb_input(&b, "x", 1, 1, one);
    gb_constant(&b, "a", EPCTX_ONNX_INT64, 1, dims, a);
    gb_constant(&b, "c", EPCTX_ONNX_INT64, 0, NULL, c);
    gb_node(&b, "Add", 14, "a,c", "p");
    gb_node(&b, "Sub", 14, "a,c", "q");
    gb_node(&b, "Mul", 14, "a,c", "r");
    gb_node(&b, "Div", 14, "a,c", "s");
    gb_node(&b, "Concat", 13, "p,q,r,s", "y");
    gb_attr_int(&b, "axis", 0);
    gb_node(&b, "Neg", 13, "x", "z");
    gb_output(&b, "y");
    gb_output(&b, "z");
    in[0] = x;
    out[0] = y;
    out[1] = z;
    CHECK_OK(gb_run(&b, in, out, &error), error);
    CHECK_MEM(y, sizeof y, want, sizeof want);
    gb_free(&b);
}

/* -- fusion -- */

/* Steps whose operands are constant are folded also where the node reads other values: whether the
 * bound of Clip is a number is known of the one that is constant. */
TEST(folds_beside_other_values) {
    static const int64_t one[1] = {1};
    static const float six[1] = {6};
    int constant;
    for (constant = 0; constant < 2; constant++) {
        graph_builder b;
        epctx_npu_stats stats;
        epctx_error error;
        gb_init(&b);
        gb_input(&b, "x", 1, 4, image);
        gb_input(&b, "low", 1, 0, one);
        if (constant)
            gb_floats(&b, "high", 0, one, six);
        else
            gb_input(&b, "high", 1, 0, one);
        gb_node(&b, "Clip", 13, "x,low,high", "y");
        gb_output(&b, "y");
        CHECK_OK(compile(&b, &stats, &error), error);
        CHECK_INT(stats.commands, constant ? 4 : 6); /* Equal, Where and Max or Min each */
        gb_free(&b);
    }
}

TEST(fuses_conv_norm_relu) {
    graph_builder b;
    epctx_npu_stats stats;
    epctx_error error;
    add_conv(&b);
    gb_node(&b, "BatchNormalization", 15, "t,c,c,c,v", "n");
    gb_floats(&b, "v", 1, three, numbers + 200);
    gb_node(&b, "Relu", 14, "n", "y");
    gb_output(&b, "y");
    CHECK_OK(compile(&b, &stats, &error), error);
    CHECK_INT(stats.commands, 3); /* the convolution between two transposes */
    CHECK_INT(stats.fused, 2);
    gb_free(&b);
}

TEST(fuses_matmul_bias_activation) {
    const int64_t x[3] = {2, 3, 8}, w[2] = {8, 5}, c[1] = {5};
    graph_builder b;
    epctx_npu_stats stats;
    epctx_error error;
    gb_init(&b);
    gb_input(&b, "x", 1, 3, x);
    gb_floats(&b, "w", 2, w, numbers);
    gb_floats(&b, "c", 1, c, numbers + 50);
    gb_node(&b, "MatMul", 13, "x,w", "t");
    gb_node(&b, "Add", 14, "c,t", "u");
    gb_node(&b, "Sigmoid", 13, "u", "y");
    gb_output(&b, "y");
    CHECK_OK(compile(&b, &stats, &error), error);
    CHECK_INT(stats.commands, 1);
    gb_free(&b);
}

/* A sum with something that is there before the convolution is the convolution's business; what
 * comes later is not, and weights must not be scaled behind it. Besides: each image that a
 * convolution reads is transposed, and so is its result. */
TEST(fuses_residual) {
    const int64_t out[4] = {1, 3, 4, 4};
    graph_builder b;
    epctx_npu_stats stats;
    epctx_error error;
    int i;
    for (i = 0; i < 4; i++) {
        add_conv(&b);
        gb_input(&b, "r", 1, 4, out);
        gb_floats(&b, "v", 1, three, numbers + 200);
        if (i < 2) {
            gb_node(&b, "Add", 14, i == 0 ? "t,r" : "r,t", "s");
            gb_node(&b, "Relu", 14, "s", "y");
        } else if (i == 2) {
            gb_node(&b, "Add", 14, "t,r", "s");
            gb_node(&b, "BatchNormalization", 15, "s,c,c,c,v", "y");
        } else {
            gb_node(&b, "Sigmoid", 13, "r", "late");
            gb_node(&b, "Add", 14, "t,late", "y");
        }
        gb_output(&b, "y");
        CHECK_OK(compile(&b, &stats, &error), error);
        CHECK(stats.commands == (i < 2 ? 4u : 5u), "case %d: %zu commands", i, stats.commands);
        gb_free(&b);
    }
}

/* Conv and MaxPool at the peak of memory go band by band: 8 channels of 24x24 floats are never
 * there at once. A single output pixel becomes a Gemm without workspace. */
TEST(bounds_workspace) {
    const int64_t picture[4] = {1, 1, 24, 24}, w[4] = {8, 1, 3, 3}, pads[4] = {1, 1, 1, 1};
    const int64_t two[2] = {2, 2}, deep[4] = {1, 1, 200, 200}, one[4] = {1, 64, 3, 3};
    const int64_t all[4] = {8, 64, 3, 3};
    graph_builder b;
    epctx_npu_stats stats;
    epctx_error error;
    gb_init(&b);
    gb_input(&b, "x", 1, 4, picture);
    gb_floats(&b, "w", 4, w, numbers);
    gb_node(&b, "Conv", 11, "x,w", "t");
    gb_attr_ints(&b, "pads", 4, pads);
    gb_node(&b, "MaxPool", 12, "t", "y");
    gb_attr_ints(&b, "kernel_shape", 2, two);
    gb_attr_ints(&b, "strides", 2, two);
    gb_output(&b, "y");
    CHECK_OK(compile(&b, &stats, &error), error);
    CHECK_INT(stats.commands, 7); /* three bands and a transpose */
    CHECK(stats.scratch_size <= 4 * 24 * 24 * 4 + 8 * 12 * 12 * 4 + 4096, "%u bytes of scratch",
          (unsigned)stats.scratch_size);
    gb_free(&b);
    gb_init(&b);
    gb_input(&b, "x", 1, 4, deep);
    gb_floats(&b, "w", 4, w, numbers);
    gb_node(&b, "Conv", 11, "x,w", "y");
    gb_output(&b, "y");
    CHECK_OK(compile(&b, &stats, &error), error);
    CHECK(stats.scratch_size <= 8 * 198 * 198 * 4 + 4096, "%u bytes of scratch",
          (unsigned)stats.scratch_size); /* the result, before its transpose */
    gb_free(&b);
    gb_init(&b);
    gb_input(&b, "x", 1, 4, one);
    gb_floats(&b, "w", 4, all, numbers);
    gb_node(&b, "Conv", 11, "x,w", "y");
    gb_output(&b, "y");
    CHECK_OK(compile(&b, &stats, &error), error);
    CHECK_INT(stats.commands, 1);
    CHECK_INT(stats.scratch_size, 0);
    gb_free(&b);
}

/* A convolution and its pool take turns only where nobody else reads what is between them. */
TEST(pools_of_what_others_read) {
    const int64_t picture[4] = {1, 1, 24, 24}, w[4] = {8, 1, 3, 3}, pads[4] = {1, 1, 1, 1};
    const int64_t two[2] = {2, 2};
    static float x[24 * 24], pooled[8 * 12 * 12], negative[8 * 24 * 24];
    const void *in[1] = {x};
    void *out[2] = {pooled, negative};
    graph_builder b;
    epctx_error error;
    gb_init(&b);
    gb_input(&b, "x", 1, 4, picture);
    gb_floats(&b, "w", 4, w, numbers);
    gb_node(&b, "Conv", 11, "x,w", "t");
    gb_attr_ints(&b, "pads", 4, pads);
    gb_node(&b, "MaxPool", 12, "t", "y");
    gb_attr_ints(&b, "kernel_shape", 2, two);
    gb_attr_ints(&b, "strides", 2, two);
    gb_node(&b, "Neg", 13, "t", "z");
    gb_output(&b, "y");
    gb_output(&b, "z");
    gb_randomize(x, 24 * 24, 3);
    CHECK_OK(gb_run(&b, in, out, &error), error);
    for (int i = 0; i < 8 * 12 * 12; i++) {
        const float *corner = negative + i / 12 * 48 + i % 12 * 2;
        float most = -corner[0];
        for (int k = 1; k < 4; k++)
            most = -corner[k / 2 * 24 + k % 2] > most ? -corner[k / 2 * 24 + k % 2] : most;
        CHECK(pooled[i] == most, "element %d is %g, expected %g", i, (double)pooled[i],
              (double)most);
    }
    gb_free(&b);
}

/* The square of a number is a list of one when its exponent is one. */
TEST(powers_keep_ranks) {
    static const float two = 2, nine = 9;
    const int64_t one[1] = {1};
    float x = 3, y[2];
    const void *in[1] = {&x};
    void *out[1] = {y};
    graph_builder b;
    epctx_error error;
    gb_init(&b);
    gb_input(&b, "x", 1, 0, NULL);
    gb_floats(&b, "e", 1, one, &two);
    gb_floats(&b, "n", 1, one, &nine);
    gb_node(&b, "Pow", 13, "x,e", "t");
    gb_node(&b, "Concat", 13, "t,n", "y");
    gb_attr_int(&b, "axis", 0);
    gb_output(&b, "y");
    CHECK_OK(gb_run(&b, in, out, &error), error);
    CHECK_TRUE(y[0] == 9 && y[1] == 9);
    gb_free(&b);
}

/* A value that somebody else sees must stay what it is. */
TEST(keeps_values_with_other_uses) {
    int other_output;
    for (other_output = 0; other_output < 2; other_output++) {
        float x[72], t[48], y[48];
        const void *in[1];
        void *out[2];
        graph_builder b;
        epctx_npu_stats stats;
        epctx_error error;
        int i;
        add_conv(&b);
        gb_node(&b, "Relu", 14, "t", "r");
        if (other_output) {
            gb_node(&b, "Identity", 14, "r", "y");
            gb_output(&b, "t");
        } else {
            gb_node(&b, "Sub", 14, "r,t", "y");
        }
        gb_output(&b, "y");
        CHECK_OK(compile(&b, &stats, &error), error);
        CHECK_INT(stats.fused, 0);
        gb_randomize(x, 72, 9);
        in[0] = x;
        out[0] = other_output ? t : y;
        out[1] = y;
        CHECK_OK(gb_run(&b, in, out, &error), error);
        for (i = 0; i < 48; i++)
            if (other_output)
                CHECK_TRUE(y[i] == (t[i] < 0 ? 0 : t[i]));
            else
                CHECK_TRUE(y[i] >= 0);
        gb_free(&b);
    }
}

/* -- boundaries -- */

/* Nothing computes with int16; a single one has no strides that say where its second byte lies. */
TEST(values_of_two_bytes_pass_whole) {
    int rank;
    for (rank = 0; rank < 2; rank++) {
        const int64_t one[1] = {1};
        const int16_t x = -12345;
        int16_t y = 0;
        const void *in[1];
        void *out[1];
        graph_builder b;
        epctx_error error;
        gb_init(&b);
        gb_input(&b, "x", EPCTX_ONNX_INT16, rank, one);
        gb_node(&b, "Identity", 14, "x", "y");
        gb_output(&b, "y");
        in[0] = &x;
        out[0] = &y;
        CHECK_OK(gb_run(&b, in, out, &error), error);
        CHECK_INT(y, x);
        gb_free(&b);
    }
}

TEST(outputs_of_every_kind) {
    /* an input, a constant, the same value twice, a reshaped one */
    const int64_t dims[2] = {2, 3}, flat[1] = {6};
    float x[6] = {1, -2, 3, -4, 5, -6}, y[5][6];
    const float want[6] = {1, 0, 3, 0, 5, 0};
    const void *in[1];
    void *out[5];
    graph_builder b;
    epctx_error error;
    int i;
    gb_init(&b);
    gb_input(&b, "x", 1, 2, dims);
    gb_floats(&b, "k", 2, dims, want);
    gb_ints(&b, "flat", 1, flat);
    gb_node(&b, "Relu", 14, "x", "r");
    gb_node(&b, "Identity", 14, "r", "i");
    gb_node(&b, "Reshape", 14, "r,flat", "f");
    gb_output(&b, "x");
    gb_output(&b, "k");
    gb_output(&b, "r");
    gb_output(&b, "i");
    gb_output(&b, "f");
    in[0] = x;
    for (i = 0; i < 5; i++) out[i] = y[i];
    CHECK_OK(gb_run(&b, in, out, &error), error);
    CHECK_MEM(y[0], sizeof x, x, sizeof x);
    for (i = 1; i < 5; i++) CHECK_MEM(y[i], sizeof want, want, sizeof want);
    gb_free(&b);
}

TEST(drops_dead_nodes) {
    graph_builder b;
    epctx_npu_stats stats;
    epctx_error error;
    add_conv(&b);
    gb_node(&b, "Exp", 13, "x", "unused");
    gb_node(&b, "Exp", 13, "unused", "unused_too");
    gb_output(&b, "t");
    CHECK_OK(compile(&b, &stats, &error), error);
    CHECK_INT(stats.commands, 3); /* the convolution between two transposes */
    gb_free(&b);
}

/* -- memory plan -- */

/* Random graphs with long and short lives. */
static void random_graph(graph_builder *b, uint32_t seed, int nodes) {
    static char names[GB_MAX][16];
    static int64_t rows[GB_MAX];
    int count = 1, i;
    const int64_t dims[2] = {8, 16};
    gb_init(b);
    gb_input(b, "x", 1, 2, dims);
    strcpy(names[0], "x");
    rows[0] = 8;
    for (i = 0; i < nodes; i++) {
        char inputs[32];
        int a, c;
        (void)gb_random(&seed);
        a = count - 1 - (int)((seed >> 16) % (uint32_t)(count < 6 ? count : 6));
        (void)gb_random(&seed);
        c = (int)((seed >> 16) % (uint32_t)count);
        snprintf(names[count], sizeof names[0], "v%d", i);
        if (rows[a] == rows[c] && (seed & 0x1000000)) {
            snprintf(inputs, sizeof inputs, "%s,%s", names[a], names[c]);
            gb_node(b, "Mul", 14, inputs, names[count]);
            rows[count] = rows[a];
        } else if (rows[a] + rows[c] < 100) {
            snprintf(inputs, sizeof inputs, "%s,%s", names[a], names[c]);
            gb_node(b, "Concat", 13, inputs, names[count]);
            gb_attr_int(b, "axis", 0);
            rows[count] = rows[a] + rows[c];
        } else {
            gb_node(b, "ReduceMax", 13, names[a], names[count]);
            gb_attr_ints(b, "axes", 1, (const int64_t[]){0});
            rows[count] = 1;
        }
        count++;
    }
    gb_output(b, names[count - 1]);
}

TEST(plan_has_no_overlaps) {
    uint32_t seed;
    size_t i, j, placed = 0;
    for (seed = 1; seed <= 200; seed++) {
        graph_builder b;
        epctx_arena arena = {0};
        epctx_error error;
        epctx__compiler c;
        random_graph(&b, seed, 40);
        epctx_arena_init(&arena, NULL);
        epctx_error_clear(&error);
        c = epctx__compiler_of(&b.graph, epctx_npu_arch_list(&i), &arena, &error);
        CHECK(epctx__compile_graph(&c) == EPCTX_OK, "seed %u: %s", (unsigned)seed, error.message);
        for (i = 0; i < c.buffer_count; i++) {
            const epctx__buffer *x = &c.buffers[i];
            if (!epctx__in_scratch(x)) continue;
            placed++;
            CHECK_TRUE(x->offset % 64 == 0 && x->offset + x->bytes <= c.stats.scratch_size);
            for (j = 0; j < i; j++) {
                const epctx__buffer *y = &c.buffers[j];
                const bool together =
                    epctx__in_scratch(y) && x->first <= y->last && y->first <= x->last;
                CHECK(!together || x->offset + x->bytes <= y->offset ||
                          y->offset + y->bytes <= x->offset,
                      "seed %u: buffers %zu and %zu overlap", (unsigned)seed, i, j);
            }
        }
        CHECK_TRUE(c.stats.scratch_size >= c.stats.scratch_live);
        epctx_arena_free(&arena);
        gb_free(&b);
    }
    CHECK_TRUE(placed > 1000);
}

/* Tools see of a binary where results are: each is in scratch, and what a command reads there has
 * been written before. */
TEST(plan_in_commands) {
    static const int64_t dims[2] = {8, 16};
    graph_builder b;
    epctx_buffer blob;
    epctx_span span;
    epctx_npu_context context;
    epctx_npu_command command;
    epctx_error error;
    void *memory;
    size_t need;
    uint64_t written = 0, reads = 0;
    uint32_t position = 0;
    gb_init(&b);
    gb_input(&b, "x", 1, 2, dims);
    gb_node(&b, "ReduceMax", 13, "x", "a");
    gb_node(&b, "Mul", 14, "x,a", "m");
    gb_node(&b, "Concat", 13, "m,x", "c");
    gb_attr_int(&b, "axis", 0);
    gb_node(&b, "Softmax", 13, "c", "y");
    gb_output(&b, "y");
    CHECK_OK(gb_compile(&b, NULL, &blob, &error), error);
    span.data = blob.data;
    span.size = blob.size;
    CHECK_OK(epctx_npu_load_size(span, &need, &error), error);
    memory = gb_aligned(need);
    CHECK_OK(epctx_npu_load(&context, span, memory, need, &error), error);
    while (epctx_npu_next_command(&context.graphs[0], &position, &command)) {
        const uint64_t end = command.result.offset + command.result.bytes;
        size_t i;
        for (i = 0; i < EPCTX_NPU_MAX_READS; i++) {
            if (command.reads[i].bytes == 0) continue;
            reads++;
            CHECK_TRUE(command.reads[i].offset + command.reads[i].bytes <= written);
        }
        CHECK_TRUE(end <= context.graphs[0].info.scratch_size);
        if (end > written) written = end;
    }
    CHECK_TRUE(reads >= 2 && written > 0);
    free(memory);
    epctx_buffer_free(&blob);
    gb_free(&b);
}

/* Plans `count` buffers of 256 bytes; number i is in use from step i to step i + life. */
static void plan_of_equals(size_t count, uint32_t life, epctx__planner *p, uint64_t **offsets) {
    epctx__compiler c;
    epctx_arena arena;
    size_t i;
    memset(&c, 0, sizeof c);
    memset(&arena, 0, sizeof arena);
    epctx_arena_init(&arena, NULL);
    c.arena = &arena;
    c.buffers = epctx_arena_array(&arena, count, sizeof *c.buffers);
    c.buffer_count = count;
    for (i = 0; i < count; i++) {
        c.buffers[i].place = EPCTX__SCRATCH;
        c.buffers[i].bytes = 256;
        c.buffers[i].first = (uint32_t)i;
        c.buffers[i].last = (uint32_t)i + life;
    }
    CHECK_TRUE(epctx__new_planner(&c, p) == EPCTX_OK);
    epctx__place_all(&c, p);
    *offsets = malloc(count * sizeof **offsets);
    for (i = 0; i < count; i++) (*offsets)[i] = c.buffers[i].offset;
    epctx_arena_free(&arena);
}

TEST(plan_of_a_long_chain) {
    epctx__planner p;
    uint64_t *offsets;
    plan_of_equals(100000, 1, &p, &offsets);
    CHECK_INT(p.size, 2 * 256);
    CHECK(EPCTX__PLAN_PAIRS - p.pairs < 100000, "%zu pairs were looked at for 99,999 neighbours",
          EPCTX__PLAN_PAIRS - p.pairs);
    free(offsets);
}

/* More pairs than the plan looks at: the first are placed tightly, the others on top of all. */
TEST(plan_of_a_crowd) {
    const size_t count = 9000, life = 1000;
    epctx__planner p;
    uint64_t *offsets;
    size_t i, j, reused = 0;
    plan_of_equals(count, (uint32_t)life, &p, &offsets);
    CHECK_INT(p.pairs, 0);
    for (i = 0; i < count; i++) {
        reused += offsets[i] < i * 256;
        CHECK_TRUE(offsets[i] + 256 <= p.size);
        for (j = i < life ? 0 : i - life; j < i; j++)
            CHECK(offsets[i] != offsets[j], "buffers %zu and %zu are in one place", j, i);
    }
    CHECK(reused > 2000, "only %zu buffers stand where another one stood", reused);
    CHECK(p.size < count * 256, "nothing was gained: %llu bytes", (unsigned long long)p.size);
    free(offsets);
}

TEST(plan_is_tight) {
    uint64_t scratch = 0, live = 0;
    uint32_t seed;
    for (seed = 1; seed <= 200; seed++) {
        graph_builder b;
        epctx_npu_stats stats;
        epctx_error error;
        random_graph(&b, seed, 40);
        CHECK_OK(compile(&b, &stats, &error), error);
        scratch += stats.scratch_size;
        live += stats.scratch_live;
        gb_free(&b);
    }
    CHECK(scratch <= live + live / 50, "scratch %llu, largest live sets %llu",
          (unsigned long long)scratch, (unsigned long long)live);
}

/* a0 = Relu(x), v0 = Other(a0), and per stage ai = Relu(v[i-1]), vi = Add(a[i-1], ai), where only
 * the shapes of the v are told. With v[i-1] made elsewhere, a[i-1] comes from another piece and has
 * no shape: each round of judging gives back the Add of one more stage. `want` Relus are taken. */
static void check_stages(int stages, int want) {
    static const int64_t dims[2] = {2, 2};
    static epctx_value values[GB_MAX];
    static graph_builder b;
    epctx_npu npu;
    epctx_backend backend;
    epctx_error error;
    uint8_t take[GB_MAX];
    char last[16];
    size_t n;
    int i, taken = 0;
    gb_init(&b);
    gb_input(&b, "x", EPCTX_ONNX_FLOAT, 2, dims);
    snprintf(last, sizeof last, "v%d", stages);
    for (i = 0; i <= stages; i++) {
        char v[2][16], a[2][16], both[40];
        snprintf(v[0], 16, "v%d", i - 1);
        snprintf(v[1], 16, "v%d", i);
        snprintf(a[0], 16, "a%d", i - 1);
        snprintf(a[1], 16, "a%d", i);
        snprintf(both, sizeof both, "%s,%s", a[0], a[1]);
        gb_node(&b, "Relu", 14, i == 0 ? "x" : v[0], a[1]);
        gb_node(&b, i == 0 ? "Other" : "Add", 14, i == 0 ? a[1] : both, v[1]);
        values[i].name = b.nodes[b.graph.node_count - 1].outputs[0];
        values[i].elem_type = EPCTX_ONNX_FLOAT;
        values[i].rank = 2;
        values[i].dims = dims;
    }
    gb_output(&b, last);
    b.graph.values = values;
    b.graph.value_count = (size_t)stages + 1;
    CHECK_OK(epctx_npu_init(&npu, NULL, &backend, &error), error);
    CHECK_OK(backend.capability_fn(backend.self, &b.graph, take, &error), error);
    for (n = 0; n < b.graph.node_count; n++) {
        taken += take[n];
        CHECK(take[n] <= (n % 2 == 0), "node %zu of %d stages is taken", n, stages);
    }
    gb_free(&b);
    CHECK_INT(taken, want);
}

/* A graph that crumbles takes a round for each piece; after 50 the CPU gets it all. */
TEST(pieces_that_crumble) {
    check_stages(1, 2);
    check_stages(EPCTX__ROUNDS - 1, EPCTX__ROUNDS);
    check_stages(EPCTX__ROUNDS, 0);
}

/* -- quantized operators -- */

/* Of images of 0 to 4 dimensions: the windows of many fit into no window of two. */
TEST(quantized_pools_of_any_rank) {
    static const int64_t dims[6] = {1, 1, 2, 2, 2, 2}, one[1] = {1};
    static const float scale[1] = {0.5f};
    static const uint8_t zero[1] = {3};
    for (int rank = 2; rank <= 6; rank++) {
        graph_builder b;
        epctx_buffer blob;
        epctx_error error;
        gb_init(&b);
        gb_input(&b, "x", EPCTX_ONNX_UINT8, rank, dims);
        gb_floats(&b, "s", 0, one, scale);
        gb_constant(&b, "z", EPCTX_ONNX_UINT8, 0, one, zero);
        gb_node(&b, "QLinearAveragePool", 1, "x,s,z,s,z", "y")->domain =
            epctx_str_of("com.microsoft");
        gb_attr_ints(&b, "kernel_shape", (size_t)rank - 2, dims + 2);
        gb_output(&b, "y");
        CHECK_INT(gb_compile(&b, NULL, &blob, &error) == EPCTX_OK, rank > 2);
        epctx_buffer_free(&blob);
        gb_free(&b);
    }
}

/* A zero point of zeros, on input, weights and int32 bias, changes no byte of the binary: the
 * convolution is one of integers with it and without. */
TEST(zero_points_of_zeros) {
    static const int64_t dims[4] = {1, 2, 4, 4}, shape[4] = {4, 2, 1, 1}, four[1] = {4};
    static const float step = 0.5f;
    static const int8_t bytes[8] = {1, -2, 3, -4, 5, -6, 7, -8}, zero = 0;
    static const int32_t biases[4] = {1, -2, 3, -4}, zeros[4] = {0};
    static const float units[4] = {0.25f, 0.25f, 0.25f, 0.25f};
    epctx_buffer blobs[2];
    for (int with = 0; with < 2; with++) {
        graph_builder b;
        epctx_error error;
        epctx_npu_stats stats;
        gb_init(&b);
        gb_input(&b, "x", EPCTX_ONNX_INT8, 4, dims);
        gb_constant(&b, "w", EPCTX_ONNX_INT8, 4, shape, bytes);
        gb_constant(&b, "b", EPCTX_ONNX_INT32, 1, four, biases);
        gb_floats(&b, "s", 0, NULL, &step);
        gb_floats(&b, "u", 1, four, units);
        gb_constant(&b, "z", EPCTX_ONNX_INT8, 0, NULL, &zero);
        gb_constant(&b, "zb", EPCTX_ONNX_INT32, 1, four, zeros);
        gb_node(&b, "DequantizeLinear", 13, with ? "x,s,z" : "x,s", "xf");
        gb_node(&b, "DequantizeLinear", 13, with ? "w,s,z" : "w,s", "wf");
        gb_node(&b, "DequantizeLinear", 13, with ? "b,u,zb" : "b,u", "bf");
        gb_attr_int(&b, "axis", 0);
        gb_node(&b, "Conv", 13, "xf,wf,bf", "c");
        gb_node(&b, "QuantizeLinear", 13, "c,s,z", "y");
        gb_output(&b, "y");
        CHECK_OK(gb_compile(&b, &stats, &blobs[with], &error), error);
        CHECK_INT(stats.commands, 3); /* the convolution between two transposes */
        gb_free(&b);
    }
    CHECK_MEM(blobs[1].data, blobs[1].size, blobs[0].data, blobs[0].size);
    epctx_buffer_free(&blobs[0]);
    epctx_buffer_free(&blobs[1]);
}

/* -- bodies -- */

/* Whether the only node of a graph is taken. */
static bool takes(const epctx_graph *graph) {
    epctx_npu npu;
    epctx_backend backend;
    epctx_error error;
    uint8_t take[GB_MAX];
    return epctx_npu_init(&npu, NULL, &backend, &error) == EPCTX_OK &&
           backend.capability_fn(backend.self, graph, take, &error) == EPCTX_OK && take[0] != 0;
}

/* If in If, so many deep; the innermost branches take x. */
static bool takes_nested(size_t depth) {
    static const int64_t one[1] = {1};
    static const epctx_str captures[2] = {{"x", 1}, {"yes", 3}};
    graph_builder *levels = calloc(depth + 1, sizeof *levels);
    bool taken;
    for (size_t i = 0; i <= depth; i++) {
        graph_builder *b = &levels[i];
        gb_init(b);
        gb_node(b, i == 0 ? "Neg" : "If", 13, i == 0 ? "x" : "yes", "y");
        if (i > 0) {
            gb_attr(b, "then_branch", EPCTX_ATTR_GRAPH)->g = &levels[i - 1].graph;
            gb_attr(b, "else_branch", EPCTX_ATTR_GRAPH)->g = &levels[0].graph;
            b->nodes[0].captures = captures;
            b->nodes[0].capture_count = 2;
        }
        gb_output(b, "y");
    }
    gb_input(&levels[depth], "x", 1, 1, one);
    gb_input(&levels[depth], "yes", EPCTX_ONNX_BOOL, 1, one);
    taken = takes(&levels[depth].graph);
    for (size_t i = 0; i <= depth; i++) gb_free(&levels[i]);
    free(levels);
    return taken;
}

/* Loop of `rounds` with a body of `count` nodes, or of that loop. */
static bool takes_rounds(int64_t rounds, size_t count, bool twice) {
    static const int64_t one[1] = {1};
    graph_builder *levels = calloc(3, sizeof *levels);
    bool taken;
    for (int i = 0; i < 3; i++) {
        graph_builder *b = &levels[i];
        gb_init(b);
        if (i < 2) {
            gb_input(b, "round", EPCTX_ONNX_INT64, 0, NULL);
            gb_input(b, "going", EPCTX_ONNX_BOOL, 0, NULL);
            gb_output(b, "going");
        }
        gb_input(b, "x", 1, 1, one);
        for (size_t k = 0; i == 0 && k < count; k++) gb_node(b, "Neg", 13, "x", k == 0 ? "y" : "z");
        if (i > 0) {
            gb_ints(b, "rounds", 1, i == 2 || twice ? &rounds : one);
            gb_node(b, "Loop", 13, "rounds,,x", "y");
            gb_attr(b, "body", EPCTX_ATTR_GRAPH)->g = &levels[i - 1].graph;
        }
        gb_output(b, "y");
    }
    taken = takes(&levels[2].graph);
    for (int i = 0; i < 3; i++) gb_free(&levels[i]);
    free(levels);
    return taken;
}

TEST(bodies_have_limits) {
    CHECK(takes_nested(EPCTX__MAX_DEPTH), "nested as deep as allowed");
    CHECK(!takes_nested(EPCTX__MAX_DEPTH + 1), "nested deeper");
    CHECK(takes_rounds(EPCTX__MAX_ROUNDS, 1, false), "as many rounds as allowed");
    CHECK(!takes_rounds(EPCTX__MAX_ROUNDS + 1, 1, false), "more rounds");
    CHECK(takes_rounds(64, 1, true), "64 * (2 + 64 * 2) nodes");
    CHECK(!takes_rounds(64, 2, true), "64 * (2 + 64 * 3) nodes");
}

/* -- types behind nodes of others -- */

/* x[1,1000] -> STFT -> a -> Abs -> b; If, whose branches compute nothing -> f;
 * Strange -> u (unknown) -> Abs -> v */
TEST(types_behind_others) {
    static const int64_t signal[2] = {1, 1000}, pair[2] = {2, 4}, step[1] = {160};
    static const int64_t frame[1] = {400}, one[1] = {1};
    static const char *const want[] = {"a 1,4,201,2", "b 1,4,201,2", "f 2,4", "u", "v"};
    graph_builder b;
    epctx_graph branch;
    epctx_value inner;
    epctx_value *values;
    epctx_npu npu;
    epctx_backend backend;
    epctx_arena arena;
    epctx_error error;
    uint8_t take[16];
    size_t count, i, k;
    int32_t j;
    memset(&branch, 0, sizeof branch);
    memset(&inner, 0, sizeof inner);
    gb_init(&b);
    gb_input(&b, "x", 1, 2, signal);
    gb_input(&b, "yes", EPCTX_ONNX_BOOL, 1, one);
    gb_ints(&b, "step", 1, step);
    gb_ints(&b, "length", 1, frame);
    gb_node(&b, "STFT", 17, "x,step,,length", "a");
    gb_node(&b, "Abs", 13, "a", "b");
    gb_node(&b, "If", 13, "yes", "f");
    inner.elem_type = EPCTX_ONNX_FLOAT;
    inner.rank = 2;
    inner.dims = pair;
    branch.outputs = &inner;
    branch.output_count = 1;
    gb_attr(&b, "then_branch", EPCTX_ATTR_GRAPH)->g = &branch;
    gb_attr(&b, "else_branch", EPCTX_ATTR_GRAPH)->g = &branch;
    gb_node(&b, "Strange", 1, "x", "u");
    gb_node(&b, "Abs", 13, "u", "v");
    gb_output(&b, "b");
    CHECK_OK(epctx_npu_init(&npu, NULL, &backend, &error), error);
    epctx_arena_init(&arena, NULL);
    CHECK_OK(backend.infer_fn(backend.self, &b.graph, &arena, &values, &count, &error), error);
    for (i = 0; i < sizeof want / sizeof want[0]; i++) {
        char text[60];
        size_t at = (size_t)snprintf(text, sizeof text, "%.1s", want[i]);
        for (k = 0; k < count && !epctx_str_is(values[k].name, text); k++) {
        }
        for (j = 0; k < count && j < values[k].rank; j++)
            at += (size_t)snprintf(text + at, sizeof text - at, "%c%d", j == 0 ? ' ' : ',',
                                   (int)values[k].dims[j]);
        CHECK_STR(text, want[i]);
    }
    b.graph.values = values;
    b.graph.value_count = count;
    CHECK_OK(backend.capability_fn(backend.self, &b.graph, take, &error), error);
    CHECK_INT(take[0], 1);
    CHECK_INT(take[1], 1);
    CHECK_INT(take[2], 0);
    CHECK_INT(take[4], 0);
    epctx_arena_free(&arena);
    gb_free(&b);
}

/* -- determinism -- */

static void everything(graph_builder *b) {
    const int64_t pads[8] = {0, 0, 1, 0, 0, 0, 0, 2}, two[2] = {2, 2}, signal[3] = {1, 37, 2};
    add_conv(b);
    gb_input(b, "samples", 1, 3, signal);
    gb_node(b, "DFT", 17, "samples", "waves");
    gb_attr_int(b, "inverse", 1);
    gb_output(b, "waves");
    gb_floats(b, "v", 1, three, numbers + 200);
    gb_ints(b, "pads", 8, pads);
    gb_node(b, "BatchNormalization", 15, "t,c,c,c,v", "n");
    gb_node(b, "Tanh", 13, "n", "h");
    gb_node(b, "BatchNormalization", 15, "h,c,c,c,v", "m");
    gb_node(b, "Pad", 13, "m,pads", "p");
    gb_node(b, "MaxPool", 12, "p", "q");
    gb_attr_ints(b, "kernel_shape", 2, two);
    gb_node(b, "Transpose", 13, "q", "r");
    gb_node(b, "Div", 14, "c,v", "f");
    gb_node(b, "Sqrt", 13, "v", "g");
    gb_node(b, "Mul", 14, "f,g", "k");
    gb_node(b, "Flatten", 13, "r", "z");
    gb_node(b, "Gemm", 13, "z,z,k1", "y");
    gb_floats(b, "k1", 0, NULL, numbers + 7);
    gb_attr_int(b, "transB", 1);
    gb_attr_float(b, "beta", 0.3f);
    gb_output(b, "y");
    gb_output(b, "k");
}

/* The value is pinned: every compiler, word size and byte order must give it. */
TEST(same_bytes_everywhere) {
    graph_builder b;
    epctx_buffer first, second;
    epctx_error error;
    uint64_t hash;
    everything(&b);
    CHECK_OK(gb_compile(&b, NULL, &first, &error), error);
    CHECK_OK(gb_compile(&b, NULL, &second, &error), error);
    CHECK_MEM(second.data, second.size, first.data, first.size);
    hash = epctx_hash(first.data, first.size, 0);
    CHECK(hash == UINT64_C(0x410dac7438b437a0), "the blob's hash is %016llx",
          (unsigned long long)hash);
    epctx_buffer_free(&first);
    epctx_buffer_free(&second);
    gb_free(&b);
}

/* -- refusals -- */

/* Compiling fails with `status` and a message that holds both texts; capability says the same. */
static bool refused(graph_builder *b, epctx_status status, const char *node, const char *why,
                    char *text) {
    epctx_npu npu;
    epctx_backend backend;
    epctx_npu_stats stats;
    epctx_error error;
    uint8_t take[GB_MAX];
    epctx_status found = compile(b, &stats, &error);
    size_t taken = 0, i;
    snprintf(text, 1200, "status %d, message \"%s\", expected \"%s\" and \"%s\"", (int)found,
             error.message, node, why);
    if (found != status || !strstr(error.message, node) || !strstr(error.message, why))
        return false;
    epctx_npu_init(&npu, NULL, &backend, &error);
    if (backend.capability_fn(backend.self, &b->graph, take, &error) != EPCTX_OK) {
        snprintf(text, 1200, "capability: %s", error.message);
        return false;
    }
    for (i = 0; i < b->graph.node_count; i++) {
        taken += take[i];
        if (!take[i] && backend.explain_fn(backend.self, &b->graph, i, &error) == EPCTX_OK) {
            snprintf(text, 1200, "node %zu is refused without a reason", i);
            return false;
        }
    }
    snprintf(text, 1200, "capability takes all nodes");
    gb_free(b);
    return taken < b->graph.node_count;
}

TEST(refuses) {
    static const int64_t dynamic[4] = {-1, 2, 6, 6}, five[5] = {1, 2, 3, 3, 3};
    static const int64_t bad_perm[4] = {0, 1, 2, 2}, big[4] = {7, 7, 7, 7};
    graph_builder b;
    char text[1200];
#define REFUSED(status, node, why) CHECK(refused(&b, status, node, why, text), "%s", text)
    add_conv(&b);
    gb_node(&b, "Einsum", 12, "t", "y");
    gb_output(&b, "y");
    REFUSED(EPCTX_ERR_UNSUPPORTED, "Einsum_01", "operator Einsum is not supported");
    add_conv(&b);
    gb_node(&b, "Relu", 99, "t", "y");
    gb_output(&b, "y");
    REFUSED(EPCTX_ERR_UNSUPPORTED, "Relu_01", "opset 1..26, found 99");
    gb_init(&b);
    gb_input(&b, "x", 1, 4, dynamic);
    gb_node(&b, "Relu", 14, "x", "y");
    gb_output(&b, "y");
    REFUSED(EPCTX_ERR_UNSUPPORTED, "'x'", "fixed shape");
    gb_init(&b);
    gb_input(&b, "x", 14, 4, image); /* complex64 */
    gb_node(&b, "Relu", 14, "x", "y");
    gb_output(&b, "y");
    REFUSED(EPCTX_ERR_UNSUPPORTED, "'x'", "found complex64");
    gb_init(&b);
    gb_input(&b, "x", 1, 2, five);
    gb_floats(&b, "w", 2, five, numbers);
    gb_node(&b, "Conv", 11, "x,w", "y");
    gb_output(&b, "y");
    REFUSED(EPCTX_ERR_GRAPH, "Conv_00", "of one rank, 3 or more");
    add_conv(&b);
    gb_node(&b, "Transpose", 13, "t", "y");
    gb_attr_ints(&b, "perm", 4, bad_perm);
    gb_output(&b, "y");
    REFUSED(EPCTX_ERR_GRAPH, "Transpose_01", "axis 2 occurs twice");
    add_conv(&b);
    gb_ints(&b, "s", 4, big);
    gb_node(&b, "Reshape", 14, "t,s", "y");
    gb_output(&b, "y");
    REFUSED(EPCTX_ERR_GRAPH, "Reshape_01", "48 elements, found 2401");
    add_conv(&b);
    gb_node(&b, "Relu", 14, "nothing", "y");
    gb_output(&b, "y");
    REFUSED(EPCTX_ERR_GRAPH, "Relu_01", "'nothing'");
    add_conv(&b);
    gb_node(&b, "BatchNormalization", 6, "t,c,c,c,c", "y");
    gb_output(&b, "y");
    REFUSED(EPCTX_ERR_UNSUPPORTED, "BatchNormalization_01", "inference");
    add_conv(&b);
    gb_node(&b, "Add", 14, "t,c", "y");
    gb_output(&b, "y");
    REFUSED(EPCTX_ERR_GRAPH, "Add_01", "cannot broadcast 4 and 3");
    add_conv(&b);
    gb_input(&b, "s", EPCTX_ONNX_INT64, 1, three);
    gb_node(&b, "Reshape", 14, "t,s", "y");
    gb_output(&b, "y");
    REFUSED(EPCTX_ERR_UNSUPPORTED, "Reshape_01", "expected a constant");
    add_conv(&b);
    gb_node(&b, "Mod", 13, "t,t", "y"); /* without fmod: of integers only */
    gb_output(&b, "y");
    REFUSED(EPCTX_ERR_GRAPH, "Mod_01", "expected integers or bool, found float32");
    add_conv(&b);
    gb_attr_text(&b, "auto_pad", "SOMETIMES");
    gb_output(&b, "t");
    REFUSED(EPCTX_ERR_GRAPH, "Conv_00", "auto_pad");
#undef REFUSED
}

/* A node of an opset that does not have its operator yet: ONNX Runtime refuses such a model. */
TEST(operators_have_a_first_opset) {
    size_t i, later = 0;
    for (i = 0; i < sizeof epctx__lowers / sizeof epctx__lowers[0]; i++) {
        const epctx__lowering *row = &epctx__lowers[i];
        static graph_builder b;
        char text[1200], node[80], why[80];
        if (row->since < 2) continue;
        later++;
        gb_init(&b);
        gb_input(&b, "x", 1, 4, image);
        gb_node(&b, row->op_type, row->since - 1, "x", "y");
        gb_output(&b, "y");
        snprintf(node, sizeof node, "%s_00", row->op_type);
        snprintf(why, sizeof why, "%s: expected opset %d..26, found %d", row->op_type, row->since,
                 row->since - 1);
        CHECK(refused(&b, EPCTX_ERR_UNSUPPORTED, node, why, text), "%s", text);
    }
    CHECK(later > 50, "only %d operators are younger than opset 1", (int)later);
}

TEST(architectures) {
    epctx_npu npu;
    epctx_backend backend;
    epctx_npu_opts opts = {0};
    epctx_error error;
    opts.architecture = "x86-64-v4";
    CHECK_INT(epctx_npu_init(&npu, &opts, &backend, &error), EPCTX_ERR_UNSUPPORTED);
    CHECK_HAS(error.message, "x86-64-v4");
    opts.architecture = "z80";
    CHECK_INT(epctx_npu_init(&npu, &opts, &backend, &error), EPCTX_ERR_ARG);
    CHECK_HAS(error.message, "z80");
    opts.architecture = "generic";
    opts.check_weights = (epctx_npu_check)3;
    CHECK_INT(epctx_npu_init(&npu, &opts, &backend, &error), EPCTX_ERR_ARG);
    CHECK_HAS(error.message, "check_weights");
    opts.check_weights = EPCTX_NPU_CHECK_NEVER;
    CHECK_INT(epctx_npu_init(&npu, &opts, &backend, &error), EPCTX_OK);
    CHECK_STR(backend.hardware_architecture, "generic");
    CHECK_STR(backend.source, "EpctxNpuExecutionProvider");
}

/* -- cancelled runs -- */

static bool count_down(void *user) {
    int *left = (int *)user;
    return (*left)-- == 0;
}

/* Runs the only graph of a context; before command `left` (from 0) the caller wants to stop. */
static epctx_status run_until(epctx_span blob, int *left, epctx_error *error) {
    epctx_npu npu;
    epctx_backend backend;
    epctx_npu_opts opts;
    epctx_npu_run_opts run;
    epctx_hooks hooks;
    epctx_graph_info info;
    float x[3] = {1, 2, 3}, y[3];
    epctx_span in;
    epctx_memory out;
    void *context = NULL, *graph = NULL, *scratch;
    epctx_status status;
    memset(&opts, 0, sizeof opts);
    memset(&hooks, 0, sizeof hooks);
    memset(&info, 0, sizeof info);
    hooks.user = left;
    hooks.cancel_fn = count_down;
    memset(&run, 0, sizeof run);
    run.hooks = &hooks;
    opts.run = &run;
    in.data = (const uint8_t *)x;
    in.size = sizeof x;
    out.data = y;
    out.size = sizeof y;
    status = epctx_npu_init(&npu, &opts, &backend, error);
    if (status == EPCTX_OK)
        status = backend.load_fn(&npu, &(epctx_load_in){.binary = blob}, &context, error);
    if (status != EPCTX_OK) return status;
    status = backend.find_fn(&npu, context, epctx_str_of("main"), 0, &graph, error);
    if (status == EPCTX_OK) status = backend.info_fn(&npu, graph, &info, error);
    if (status == EPCTX_OK) {
        scratch = gb_aligned(info.scratch_size);
        status = backend.run_fn(&npu, graph, &in, &out, scratch, info.scratch_size, error);
        free(scratch);
    }
    backend.unload_fn(&npu, context);
    return status;
}

/* A run ends before any of its commands, with the name of that. */
TEST(cancelled_between_commands) {
    static const char *const names[] = {"x", "a", "b", "c", "y"};
    epctx_npu_stats stats;
    epctx_buffer blob;
    epctx_error error;
    epctx_span span;
    graph_builder b;
    int i;
    gb_init(&b);
    gb_input(&b, "x", 1, 1, three);
    for (i = 0; i < 4; i++) gb_node(&b, "Softmax", 13, names[i], names[i + 1]);
    gb_output(&b, "y");
    CHECK_OK(gb_compile(&b, &stats, &blob, &error), error);
    CHECK_INT(stats.commands, 4);
    span.data = blob.data;
    span.size = blob.size;
    for (i = 0; i < 6; i++) {
        int left = i;
        const epctx_status status = run_until(span, &left, &error);
        CHECK(status == (i < 4 ? EPCTX_ERR_CANCELLED : EPCTX_OK), "stop %d: status %d, %s", i,
              (int)status, error.message);
        CHECK_INT(left, i < 4 ? -1 : i - 4); /* asked once per command */
    }
    epctx_buffer_free(&blob);
    gb_free(&b);
}

/* -- several graphs in one context -- */

/* A block of a language model for `count` tokens; every call has the same weights. */
static void add_block(graph_builder *b, int64_t count) {
    const int64_t x[3] = {1, count, 64}, d[1] = {64}, mix[2] = {64, 192}, up[2] = {64, 256};
    const int64_t down[2] = {256, 64}, out[2] = {64, 64}, perm[4] = {0, 2, 1, 3};
    const int64_t turn[4] = {0, 2, 3, 1}, heads[4] = {1, count, 4, 16}, flat[3] = {1, count, 64};
    const int64_t parts[3] = {64, 64, 64};
    float *w;
    gb_init(b);
    w = (float *)gb_alloc(b, 49152 * sizeof *w);
    gb_randomize(w, 49152, 5);
    gb_input(b, "x", 1, 3, x);
    gb_floats(b, "scale", 1, d, w);
    gb_floats(b, "mix", 2, mix, w);
    gb_floats(b, "out", 2, out, w + 12288);
    gb_floats(b, "up", 2, up, w + 16384);
    gb_floats(b, "down", 2, down, w + 32768);
    gb_ints(b, "heads", 4, heads);
    gb_ints(b, "flat", 3, flat);
    gb_ints(b, "parts", 3, parts);
    gb_node(b, "LayerNormalization", 17, "x,scale", "n");
    gb_node(b, "MatMul", 13, "n,mix", "m");
    gb_node(b, "Split", 13, "m,parts", "q,k,v");
    gb_attr_int(b, "axis", -1);
    gb_node(b, "Reshape", 14, "q,heads", "q1");
    gb_node(b, "Transpose", 13, "q1", "q2");
    gb_attr_ints(b, "perm", 4, perm);
    gb_node(b, "Reshape", 14, "k,heads", "k1");
    gb_node(b, "Transpose", 13, "k1", "k2");
    gb_attr_ints(b, "perm", 4, turn);
    gb_node(b, "Reshape", 14, "v,heads", "v1");
    gb_node(b, "Transpose", 13, "v1", "v2");
    gb_attr_ints(b, "perm", 4, perm);
    gb_node(b, "MatMul", 13, "q2,k2", "s");
    gb_node(b, "Softmax", 13, "s", "p");
    gb_node(b, "MatMul", 13, "p,v2", "a");
    gb_node(b, "Transpose", 13, "a", "a1");
    gb_attr_ints(b, "perm", 4, perm);
    gb_node(b, "Reshape", 14, "a1,flat", "a2");
    gb_node(b, "MatMul", 13, "a2,out", "o");
    gb_node(b, "Add", 14, "x,o", "r");
    gb_node(b, "MatMul", 13, "r,up", "u");
    gb_node(b, "Gelu", 20, "u", "g");
    gb_node(b, "MatMul", 13, "g,down", "f");
    gb_node(b, "Add", 14, "r,f", "y");
    gb_output(b, "y");
}

/* -- memory -- */

typedef struct counter {
    int until; /* allocations that succeed */
    int live;
    size_t bytes, most;
} counter;

/* Keeps the size in front. */
static void *counted_alloc(void *user, size_t size) {
    counter *c = (counter *)user;
    uint8_t *p;
    if (c->until-- <= 0) return NULL;
    p = (uint8_t *)malloc(size + 16);
    if (p == NULL) return NULL;
    memcpy(p, &size, sizeof size);
    c->live++;
    c->bytes += size;
    c->most = c->bytes > c->most ? c->bytes : c->most;
    return p + 16;
}

static void counted_free(void *user, void *memory) {
    counter *c = (counter *)user;
    size_t size;
    if (memory == NULL) return;
    memcpy(&size, (uint8_t *)memory - 16, sizeof size);
    c->live--;
    c->bytes -= size;
    free((uint8_t *)memory - 16);
}

static epctx_allocator counted(counter *count, int until) {
    const epctx_allocator allocator = {count, counted_alloc, counted_free};
    memset(count, 0, sizeof *count);
    count->until = until;
    return allocator;
}

/* One context of the blocks for `counts` tokens. */
static epctx_status context_of(const int64_t *counts, size_t n, size_t *size, epctx_npu_stats *last,
                               epctx_error *error) {
    static const char *const names[2] = {"first", "second"};
    epctx_npu npu;
    epctx_backend backend;
    epctx_buffer out;
    void *build = NULL;
    size_t i;
    epctx_status status = epctx_npu_init(&npu, NULL, &backend, error);
    epctx_buffer_init(&out, NULL);
    if (status == EPCTX_OK) status = backend.begin_fn(backend.self, &build, error);
    for (i = 0; i < n && status == EPCTX_OK; i++) {
        graph_builder b;
        add_block(&b, counts[i]);
        status =
            backend.compile_fn(backend.self, build, &b.graph, epctx_str_of(names[i]), i + 1, error);
        gb_free(&b);
    }
    *last = npu.stats;
    if (status == EPCTX_OK)
        status = backend.finish_fn(backend.self, build, &out, error);
    else
        backend.discard_fn(backend.self, build);
    *size = out.size;
    epctx_buffer_free(&out);
    return status;
}

TEST(graphs_share_weights) {
    const int64_t counts[2] = {16, 1};
    epctx_npu_stats one, two;
    epctx_error error;
    size_t alone, both;
    CHECK_OK(context_of(counts, 1, &alone, &one, &error), error);
    CHECK_OK(context_of(counts, 2, &both, &two, &error), error);
    CHECK(one.weight_size >= 4 * 49152, "%u bytes of weights", (unsigned)one.weight_size);
    CHECK(two.weight_size * 100 <= one.weight_size && two.weight_saved >= 4 * 49152,
          "the second graph adds %u bytes of weights and finds %u, expected all of %u",
          (unsigned)two.weight_size, (unsigned)two.weight_saved, (unsigned)one.weight_size);
    CHECK(both <= one.weight_size * 105 / 100,
          "two graphs take %u bytes (one alone %u), expected at most 1.05 times the weights, %u",
          (unsigned)both, (unsigned)alone, (unsigned)one.weight_size);
}

/* Weights are written once, where they stay: 4 MiB take less than 1.2 times their size, though they
 * lie unaligned in the model and are packed. A big-endian host holds them in its own order, too. */
TEST(weights_are_written_once) {
    enum { N = 1024 };
    const int64_t x[2] = {1, N}, w[2] = {N, N};
    float *data = (float *)malloc(sizeof(float) * N * N);
    graph_builder b;
    counter count;
    const epctx_allocator allocator = counted(&count, INT32_MAX);
    const uint16_t one = 1;
    const bool little = *(const uint8_t *)&one == 1;
    epctx_npu npu;
    epctx_npu_opts opts = {0};
    epctx_backend backend;
    epctx_buffer out;
    epctx_error error;
    void *build = NULL;
    CHECK_TRUE(data != NULL);
    gb_init(&b);
    gb_randomize(data, N * N, 5);
    gb_input(&b, "x", EPCTX_ONNX_FLOAT, 2, x);
    gb_floats(&b, "w", 2, w, data);
    gb_node(&b, "Gemm", 13, "x,w", "y");
    gb_attr_int(&b, "transB", 1);
    gb_output(&b, "y");
    free(data);
    opts.allocator = &allocator;
    CHECK_OK(epctx_npu_init(&npu, &opts, &backend, &error), error);
    epctx_buffer_init(&out, &allocator);
    CHECK_OK(backend.begin_fn(backend.self, &build, &error), error);
    CHECK_OK(backend.compile_fn(backend.self, build, &b.graph, epctx_str_of("m"), 1, &error),
             error);
    CHECK_OK(backend.finish_fn(backend.self, build, &out, &error), error);
    gb_free(&b);
    CHECK(out.size > sizeof(float) * N * N &&
              count.most < (little ? 1 : 2) * out.size + out.size / 5,
          "expected less than %d.2 times the binary's %u bytes of memory, found %u", little ? 1 : 2,
          (unsigned)out.size, (unsigned)count.most);
    epctx_buffer_free(&out);
    CHECK_INT(count.live, 0);
}

TEST(every_allocation_may_fail) {
    int limit;
    for (limit = 0; limit < 10000; limit++) {
        graph_builder b;
        counter count;
        epctx_allocator allocator;
        epctx_npu npu;
        epctx_backend backend;
        epctx_npu_opts opts = {0};
        epctx_buffer out;
        epctx_arena arena;
        epctx_value *values;
        size_t value_count;
        epctx_error error;
        epctx_status status;
        uint8_t take[GB_MAX];
        void *build = NULL, *context = NULL;
        everything(&b);
        allocator = counted(&count, limit);
        opts.allocator = &allocator;
        CHECK_INT(epctx_npu_init(&npu, &opts, &backend, &error), EPCTX_OK);
        epctx_buffer_init(&out, &allocator);
        epctx_arena_init(&arena, &allocator);
        status = backend.infer_fn(backend.self, &b.graph, &arena, &values, &value_count, &error);
        epctx_arena_free(&arena);
        if (status == EPCTX_OK)
            status = backend.capability_fn(backend.self, &b.graph, take, &error);
        if (status == EPCTX_OK) status = backend.begin_fn(backend.self, &build, &error);
        if (status == EPCTX_OK) {
            status =
                backend.compile_fn(backend.self, build, &b.graph, epctx_str_of("m"), 1, &error);
            if (status == EPCTX_OK)
                status = backend.finish_fn(backend.self, build, &out, &error);
            else
                backend.discard_fn(backend.self, build);
        }
        if (status == EPCTX_OK) {
            epctx_span span;
            span.data = out.data;
            span.size = out.size;
            status =
                backend.load_fn(backend.self, &(epctx_load_in){.binary = span}, &context, &error);
            backend.unload_fn(backend.self, context);
        }
        epctx_buffer_free(&out);
        gb_free(&b);
        CHECK(count.live == 0, "%d allocations: %d are left", limit, count.live);
        if (status == EPCTX_OK) break;
        CHECK(status == EPCTX_ERR_NOMEM && error.message[0], "%d allocations: status %d, \"%s\"",
              limit, (int)status, error.message);
    }
    CHECK_TRUE(limit > 5 && limit < 10000);
}

/* max_size of an EPContext node: the scratch memory that its graph runs with. */
TEST(max_size) {
    graph_builder b;
    epctx_npu npu;
    epctx_backend backend;
    epctx_npu_stats stats;
    epctx_error error;
    void *build = NULL;
    int64_t bytes = -1;
    add_conv(&b);
    gb_node(&b, "Softmax", 13, "t", "u");
    gb_node(&b, "Relu", 14, "u", "y");
    gb_output(&b, "y");
    CHECK_INT(epctx_npu_init(&npu, NULL, &backend, &error), EPCTX_OK);
    CHECK_INT(backend.begin_fn(backend.self, &build, &error), EPCTX_OK);
    CHECK_OK(backend.compile_fn(backend.self, build, &b.graph, epctx_str_of("g"), 1, &error),
             error);
    stats = npu.stats;
    CHECK_INT(backend.max_size_fn(backend.self, build, epctx_str_of("g"), &bytes, &error),
              EPCTX_OK);
    CHECK(stats.scratch_size > 0 && (uint64_t)bytes == stats.scratch_size,
          "max_size is %" PRId64 ", scratch %" PRIu64, bytes, stats.scratch_size);
    CHECK_INT(backend.max_size_fn(backend.self, build, epctx_str_of("h"), &bytes, &error),
              EPCTX_ERR_ARG);
    backend.discard_fn(backend.self, build);
    gb_free(&b);
}

int main(int argc, char **argv) {
    uint32_t state = 77;
    size_t i;
    for (i = 0; i < sizeof numbers / sizeof numbers[0]; i++) numbers[i] = gb_random(&state);
    for (i = 200; i < 203; i++) numbers[i] = numbers[i] * 0.5f + 1.0f; /* variances */
    RUN(folds_shape_arithmetic);
    RUN(folds_constants);
    RUN(folds_integers);
    RUN(folds_beside_other_values);
    RUN(fuses_conv_norm_relu);
    RUN(fuses_matmul_bias_activation);
    RUN(fuses_residual);
    RUN(bounds_workspace);
    RUN(pools_of_what_others_read);
    RUN(powers_keep_ranks);
    RUN(keeps_values_with_other_uses);
    RUN(values_of_two_bytes_pass_whole);
    RUN(outputs_of_every_kind);
    RUN(drops_dead_nodes);
    RUN(plan_has_no_overlaps);
    RUN(plan_in_commands);
    RUN(plan_is_tight);
    RUN(plan_of_a_long_chain);
    RUN(plan_of_a_crowd);
    RUN(pieces_that_crumble);
    RUN(quantized_pools_of_any_rank);
    RUN(zero_points_of_zeros);
    RUN(bodies_have_limits);
    RUN(types_behind_others);
    RUN(same_bytes_everywhere);
    RUN(refuses);
    RUN(operators_have_a_first_opset);
    RUN(architectures);
    RUN(cancelled_between_commands);
    RUN(max_size);
    RUN(graphs_share_weights);
    RUN(weights_are_written_once);
    RUN(every_allocation_may_fail);
    return test_end();
}
