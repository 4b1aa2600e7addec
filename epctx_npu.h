/* epctx_npu.h - the reference NPU of epctx: a compiler from ONNX subgraphs to a context binary, and
 * an executor that runs it without a heap. Version 0.3.0
 *
 * Single header, C99 and C++17, on top of epctx.h. MIT licence, text in LICENSE.
 * Search for ">>" to jump from section to section.
 */

/* ============================================================
 * >>manual
 * ============================================================
 *
 * WHAT IT IS
 *   A complete epctx_backend: static shapes, constant folding, fusion, packed weights, a static
 *   memory plan and a command stream, all in one self-contained context binary ("blob"). It takes
 *   the place of an EP's vendor SDK and is small enough to read.
 *
 * DO THIS
 *   In ONE file of your program:
 *       #define EPCTX_NPU_IMPLEMENTATION
 *       #include "epctx_npu.h"
 *   It needs the functions of epctx.h: define EPCTX_IMPLEMENTATION before the same include or in
 *   another file.
 *
 * QUICK START: compile, load and run through epctx.h (a model of one partition, x[36] -> y[2])
 *       epctx_npu npu;
 *       epctx_backend backend;
 *       epctx_model model;
 *       epctx_loaded loaded;
 *       epctx_gen_opts opts; // writes m_ctx.onnx and m_npu.bin
 *       epctx_error err;
 *       float x[36] = {0}, y[2];
 *       epctx_span in[1] = {{(const uint8_t *)x, sizeof x}};
 *       epctx_memory out[1] = {{y, sizeof y}};
 *       memset(&model, 0, sizeof model); // then they may be closed in any case
 *       memset(&loaded, 0, sizeof loaded);
 *       memset(&opts, 0, sizeof opts);
 *       opts.overwrite = true;
 *       bool good = epctx_npu_init(&npu, NULL, &backend, &err) == EPCTX_OK &&
 *                   epctx_model_open_file(&model, "m.onnx", NULL, &err) == EPCTX_OK &&
 *                   epctx_generate(&model, &backend, &opts, NULL, &err) == EPCTX_OK &&
 *                   epctx_load(&loaded, &model, &backend, NULL, &err) == EPCTX_OK;
 *       char *memory = good ? (char *)malloc(loaded.bound[0].info.scratch_size + 64) : NULL;
 *       if (memory != NULL) {
 *           void *scratch = memory + (64 - (uintptr_t)memory % 64); // aligned to 64
 *           good = backend.run_fn(backend.self, loaded.bound[0].graph, in, out, scratch,
 *                                 loaded.bound[0].info.scratch_size, &err) == EPCTX_OK;
 *       }
 *       if (good && memory != NULL) {
 *           printf("%g %g\n", y[0], y[1]);
 *       } else {
 *           fprintf(stderr, "%s\n", good ? "no memory" : err.message); // e.g. other shapes
 *       }
 *       free(memory);
 *       epctx_unload(&loaded);
 *       epctx_model_close(&model);
 *
 * QUICK START: run a blob from flash without a heap (firmware, EPCTX_NPU_NO_COMPILER)
 *       static uint64_t memory[512], words[3008];
 *       char *scratch = (char *)words + (64 - (uintptr_t)words % 64); // aligned to 64
 *       epctx_npu_context context; // flash, input, output, name and err are yours
 *       const epctx_npu_graph *graph;
 *       epctx_span blob = {flash, flash_size}, in[1] = {{input, input_size}};
 *       epctx_memory out[1] = {{output, output_size}};
 *       if (epctx_npu_load(&context, blob, memory, sizeof memory, &err) != EPCTX_OK ||
 *           epctx_npu_find(&context, name, 0, &graph, &err) != EPCTX_OK || // a partition_name
 *           epctx_npu_run(graph, in, out, scratch, sizeof words - 64, &err) != EPCTX_OK) {
 *           return 1; // err.message says why
 *       }
 *
 * OPTIONS (macros)                effect                                    scope
 *   EPCTX_NPU_IMPLEMENTATION      emits the function bodies                 one file
 *   EPCTX_NPU_NO_COMPILER         executor only; the backend's compile
 *                                 functions return EPCTX_ERR_UNSUPPORTED    implementation file
 *   EPCTX_NPU_NO_SIMD             portable kernels only; by default x86-64
 *                                 uses AVX2 or AVX-512 if available, ARM
 *                                 its DSP instructions on bytes             implementation file
 *   EPCTX_NPU_NO_AVX512           at most AVX2                              implementation file
 *   EPCTX_NPU_SELECT              includes only these kernels, e.g.
 *                                 EPCTX_NPU_OP(CONV) | EPCTX_NPU_OP(GEMM)   implementation file
 *   EPCTX_NPU_FEW_ACTIVATIONS     includes only the unary functions Relu,
 *                                 Clip and LeakyRelu, alone or fused        implementation file
 *   EPCTX_NPU_FIXED_POINT         portable kernels requantize and add bytes
 *                                 without floats, to the same bits: for
 *                                 targets without floating-point hardware   implementation file
 *   EPCTX_STATIC, EPCTX_NO_MALLOC, EPCTX_NO_WIRE: as in epctx.h.
 *
 * WHAT IS COMPILED
 *   ai.onnx operators up to opset 26, with fixed shapes of rank <= 8 and floats, integers or bool
 *   where ONNX allows them (float16 and bfloat16 are computed in float32, other integers in int32
 *   or int64; float64 is moved, added, multiplied, compared and cast): Abs Acos Acosh Add
 *   AffineGrid And ArgMax ArgMin Asin Asinh Atan Atanh Attention AveragePool BatchNormalization
 *   BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor BlackmanWindow Cast CastLike Ceil Celu
 *   CenterCropPad Clip Col2Im Concat Constant ConstantOfShape Conv ConvInteger ConvTranspose Cos
 *   Cosh CumSum DFT DeformConv DepthToSpace DequantizeLinear Det Div Dropout DynamicQuantizeLinear
 *   Elu Equal Erf Exp Expand EyeLike Flatten Floor GRU Gather GatherElements GatherND Gelu Gemm
 *   GlobalAveragePool GlobalLpPool GlobalMaxPool Greater GreaterOrEqual GridSample
 *   GroupNormalization HammingWindow HannWindow HardSigmoid HardSwish Hardmax Identity If
 *   InstanceNormalization IsInf IsNaN LRN LSTM LayerNormalization LeakyRelu Less LessOrEqual Log
 *   LogSoftmax Loop LpNormalization LpPool MatMul MatMulInteger Max MaxPool MaxUnpool Mean
 *   MeanVarianceNormalization MelWeightMatrix Min Mish Mod Mul Neg NegativeLogLikelihoodLoss Not
 *   OneHot Or PRelu Pad Pow QLinearConv QLinearMatMul QuantizeLinear RMSNormalization RNN Range
 *   Reciprocal ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin
 *   ReduceProd ReduceSum ReduceSumSquare Relu Reshape Resize ReverseSequence RoiAlign
 *   RotaryEmbedding Round STFT Scan Scatter ScatterElements ScatterND Selu Shape Shrink Sigmoid
 *   Sign SimplifiedLayerNormalization Sin Sinh Size Slice Softmax SoftmaxCrossEntropyLoss Softplus
 *   Softsign SpaceToDepth Split Sqrt Squeeze Sub Sum Swish Tan Tanh TensorScatter ThresholdedRelu
 *   Tile TopK Transpose Trilu Unsqueeze Upsample Where Xor; of com.microsoft Gelu QGemm and QLinear
 *   with Add AveragePool Concat GlobalAveragePool LeakyRelu Mul ReduceMean Sigmoid Softmax Where.
 *   Shapes, axes and sizes must be constant or follow from constants. Loop and Scan are unrolled if
 *   their rounds are known while compiling: at most 64, with 10,000 nodes. If the condition of If
 *   is known, one branch is compiled, else both, which must give the same types and shapes and
 *   check no indices. Between DequantizeLinear and QuantizeLinear of one scale, Conv, MatMul, Add,
 *   Sub, Mul, average pools, functions of one value and moves are computed on the bytes, the rest
 *   in float32. Other nodes are left to other EPs; an error names the node and the reason.
 *
 * MEMORY
 *   The compiler and the backend's load function use the allocator. epctx_npu_load uses only the
 *   caller's memory; epctx_npu_load_size returns its size: some kilobytes, plus the weights if they
 *   cannot be used in place (big-endian host, or a blob not aligned to 8 bytes). The blob stays
 *   borrowed. A run needs only scratch_size bytes aligned to 64; it reads inputs and writes outputs
 *   in the caller's memory, aligned to their element size.
 *
 *   Weightless (ep.enable_weightless): the blob contains no initializer of 256 bytes or more, only
 *   the commands that fold and pack them. These run when the graph gets its weights and need memory
 *   for the packed weights.
 *
 * THREADS
 *   No global state. Runs do not change a loaded context: many threads may run one graph, each with
 *   its own scratch and outputs. A context under construction belongs to one thread. A run starts
 *   no threads; it can share its commands among the caller's, tell the time of each, and be
 *   cancelled, also within long ones: epctx_npu_run_opts.
 *
 * TRUST
 *   Blobs are hostile. Loading copies everything except the weights and verifies the copy: every
 *   offset, size, shape and operand, and that all that is read or returned was written before, as
 *   memory may hold others' data (optimized for size, a run clears its memory instead). A file that
 *   changes later can change results, never an address. Indices from data (Gather) are checked at
 *   run time. Weights are used only as numbers; epctx_npu_check_weights verifies their checksum.
 *
 * DETERMINISM
 *   The same graph compiles to the same bytes in C and C++, on every word size, byte order and
 *   compiler: no libm, one rounding per operation. -ffast-math stops the build. Where a compiler
 *   fuses by itself (seen: g++ for s390x in its default mode), tables of HardSwish over bytes may
 *   differ: -ffp-contract=off prevents it. Results of a run are bit-identical on one machine; other
 *   machines may order and round sums differently and give functions such as Exp other last bits (a
 *   fused multiplication and addition rounds once).
 *   ReduceMax and ReduceMin of a NaN are NaN, as in NumPy: what ONNX Runtime gives depends on the
 *   shape, on the axes and on where the NaN is.
 *   Most convolutions of 3 x 3 taps become Winograd: a quarter of the products, more scratch, an
 *   error of up to 1e-5 of the largest result (where that is not finite, it is computed again, one
 *   product after the other); epctx_npu_opts.direct prevents it.
 *
 * BLOB FORMAT 3 (all numbers little-endian; u64 = two words, low first; [n] = bytes)
 *   header, 128 bytes                          | word section, graphs first, 20 words each
 *     0 magic "EPCTXNPU"                       |   0 name: offset, bytes (in the strings)
 *     8 u32 format version                     |   2 u64 graph hash
 *    12 u32 header bytes (128)                 |   4 u64 scratch bytes
 *    16 [16] SDK version, zero-padded          |   6 first word of the I/O table, inputs, outputs
 *    32 [24] architecture, zero-padded         |   9 first command word, words, commands
 *    56 u64 file bytes                         |  12 graph that makes its weights, from 1; 0: none
 *    64 u64 words: offset 128, then count/u32  |  13 1: it makes weights (after all others)
 *    72 u64 strings: offset                    |  14 .. 19 zero
 *    80 u64 strings: bytes                     | I/O table, 12 words a tensor: name offset, bytes,
 *    88 u64 weights: offset (64-aligned)       |   ONNX element type, rank, 8 dimensions
 *    96 u64 weights: bytes                     | weight table, 6 words per blob: u64 offset in the
 *   104 u32 graphs, u32 weight blobs           |   section (64-aligned), u64 bytes, element bytes,
 *   112 u64 XXH64 of header (this field 0),    |   zero
 *       words and strings                      | command: opcode, words, name offset, name bytes,
 *   120 u64 XXH64 of the weights               |   operands (4 words each: place, index, u64 byte
 *                                              |   offset), parameters (struct of the opcode)
 *                                              | strings: names, not terminated
 *
 * CONTENTS
 *   >>config >>blob >>arch >>exec >>compile >>backend >>implementation, which adds >>numbers
 *   >>kernels and, for compiling, >>graph >>steps >>node >>lower >>import >>bodies >>fuse
 *   >>layout >>plan >>refine >>integers >>passes >>emit
 */

#ifndef EPCTX_NPU_H
#define EPCTX_NPU_H

/* ============================================================
 * >>config
 * ============================================================ */

#include "epctx.h"

#if EPCTX_VERSION_MAJOR != 0 || EPCTX_VERSION_MINOR != 3 || EPCTX_VERSION_PATCH != 0
#error "epctx_npu.h 0.3.0 needs epctx.h 0.3.0: take both headers from one release"
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define EPCTX_NPU_SOURCE      "EpctxNpuExecutionProvider"
#define EPCTX_NPU_SHORT_NAME  "npu"
#define EPCTX_NPU_SDK_VERSION "0.1.0"
#define EPCTX_NPU_MAX_RANK    8
#define EPCTX_NPU_ALIGN       64 /* of weight blobs, scratch and places in scratch */

/* ============================================================
 * >>blob: the context binary
 * ============================================================ */

#define EPCTX_NPU_FORMAT      3
#define EPCTX_NPU_HEADER_SIZE 128

/* The header of a blob. Strings are terminated. */
typedef struct epctx_npu_blob {
    uint32_t format;
    uint32_t graph_count;
    uint32_t weight_count; /* distinct weight blobs */
    uint64_t size;         /* bytes of the whole blob */
    uint64_t weight_size;  /* bytes of the weight section */
    char sdk_version[17];
    char architecture[25];
} epctx_npu_blob;

/* Reads a header, also one of another SDK version or architecture, so that tools can identify a
 * file. EPCTX_ERR_CONTEXT: not a blob; EPCTX_ERR_VERSION: another format version. */
EPCTX_API epctx_status epctx_npu_peek(epctx_span blob, epctx_npu_blob *out, epctx_error *error);

/* ============================================================
 * >>arch: target architectures
 * ============================================================ */

/* An architecture defines how weights are packed. A blob runs only on its own architecture. */
typedef struct epctx_npu_arch {
    const char *name;
    uint32_t rows;    /* output channels per block of convolution weights */
    uint32_t columns; /* columns per block of matrix weights */
    bool runnable;    /* this build has kernels for this packing */
} epctx_npu_arch;

/* All architectures, `generic` first. */
EPCTX_API const epctx_npu_arch *epctx_npu_arch_list(size_t *count);
/* NULL: the name is unknown. */
EPCTX_API const epctx_npu_arch *epctx_npu_arch_find(epctx_str name);

/* ============================================================
 * >>exec: load and run
 * ============================================================ */

struct epctx_npu_context;

/* One graph of a loaded context. Members other than `info` and `work` are private. */
typedef struct epctx_npu_graph {
    epctx_graph_info info;
    uint64_t work; /* upper bound for one run: products and sums, bytes read and written */
    uint64_t hash; /* as passed to compile */
    const struct epctx_npu_context *context;
    const uint32_t *commands;
    uint32_t command_count, command_words;
    const struct epctx_npu_graph *maker; /* computes its weights; NULL: they are in the blob */
    const epctx_memory **made;           /* the outputs of `maker`; *made NULL: not computed yet */
} epctx_npu_graph;

/* A loaded blob. Members other than `graphs` and `graph_count` are private. */
typedef struct epctx_npu_context {
    const epctx_npu_graph *graphs;
    size_t graph_count;
    size_t total_count; /* including the graphs after them that make weights */
    epctx_span blob;
    const uint8_t *weights; /* in the blob or the copy */
    const uint32_t *weight_table;
    uint32_t weight_count;
    uint64_t weight_size;
    uint64_t weight_offset;
    uint64_t weight_checksum;
    const char *strings;
} epctx_npu_context;

/* Bytes that epctx_npu_load needs for this blob at this address. Errors as for epctx_npu_load. */
EPCTX_API epctx_status epctx_npu_load_size(epctx_span blob, size_t *size, epctx_error *error);
/* Copies header, directory and commands to `memory` (aligned to 8, borrowed like `blob` while the
 * context is in use) and verifies the copy. Nothing needs to be released.
 * EPCTX_ERR_CONTEXT: damaged or truncated; EPCTX_ERR_VERSION: other format, SDK or architecture;
 * EPCTX_ERR_NOMEM: `memory_size` is too small. */
EPCTX_API epctx_status epctx_npu_load(epctx_npu_context *context, epctx_span blob, void *memory,
                                      size_t memory_size, epctx_error *error);
/* Verifies the checksum of the weights; reads all of them. EPCTX_ERR_CONTEXT: it differs. */
EPCTX_API epctx_status epctx_npu_check_weights(const epctx_npu_context *context,
                                               epctx_error *error);
/* For tools: weight `index` as stored, and the bytes of one element; false: no such index. */
EPCTX_API bool epctx_npu_weight_at(const epctx_npu_context *context, uint32_t index,
                                   epctx_span *bytes, uint32_t *elem);
/* Finds the graph `name`; EPCTX_ERR_CONTEXT: not found. A `hash` other than 0 must equal the
 * graph's; EPCTX_ERR_VERSION: the blob was compiled from another version of the model. */
EPCTX_API epctx_status epctx_npu_find(const epctx_npu_context *context, epctx_str name,
                                      uint64_t hash, const epctx_npu_graph **graph,
                                      epctx_error *error);
/* A weightless blob contains commands that make the weights of a graph from the initializers of the
 * source model. Returns the bytes they need: `kept` as long as the graph runs, `temporary` only
 * during epctx_npu_make_weights; both 0 if the blob contains the weights. EPCTX_ERR_NOMEM: more
 * than this machine can address. */
EPCTX_API epctx_status epctx_npu_weights_size(const epctx_npu_graph *graph, size_t *kept,
                                              size_t *temporary, epctx_error *error);
/* Makes the weights, before the first run. `weights` are found by name and used only during the
 * call; `kept` and `temporary` must be aligned to 8. `count` 0: the graph drops its weights and no
 * longer uses `kept`. EPCTX_ERR_CONTEXT: a weight is missing, or its size or type differs. */
EPCTX_API epctx_status epctx_npu_make_weights(const epctx_npu_graph *graph,
                                              const epctx_tensor *weights, size_t count, void *kept,
                                              void *temporary, epctx_error *error);
/* Runs a graph. `inputs` and `outputs` must follow the order of graph->info, have exactly the
 * tensors' sizes and be aligned to their element size; outputs must overlap nothing. `scratch` must
 * be aligned to 64. EPCTX_ERR_ARG: a size or an alignment is wrong, an index in the data is out of
 * range (the outputs are then undefined), or the weights of a weightless graph are missing. */
EPCTX_API epctx_status epctx_npu_run(const epctx_npu_graph *graph, const epctx_span *inputs,
                                     const epctx_memory *outputs, void *scratch,
                                     size_t scratch_size, epctx_error *error);

/* A range of scratch. */
typedef struct epctx_npu_range {
    uint64_t offset; /* in bytes */
    uint64_t bytes;  /* 0: none */
} epctx_npu_range;

/* Operands that a command reads, at most. */
#define EPCTX_NPU_MAX_READS 7

/* One command of a graph, for tools. */
typedef struct epctx_npu_command {
    const char *op;     /* "Conv", "Gemm" ...: the executor's name, static */
    epctx_str name;     /* of the ONNX node it comes from */
    uint64_t products;  /* products and sums; 0: no more than elements */
    uint64_t elements;  /* of the result */
    uint64_t bytes;     /* read and written */
    uint64_t temporary; /* bytes of workspace, on each thread */
    epctx_npu_range reads[EPCTX_NPU_MAX_READS]; /* what it reads in scratch */
    epctx_npu_range result;                     /* what it writes there */
} epctx_npu_command;

/* Iterates over the commands: set *position to 0 before the first call only; false at the end. */
EPCTX_API bool epctx_npu_next_command(const epctx_npu_graph *graph, uint32_t *position,
                                      epctx_npu_command *command);

/* What a run may use of its caller. All zero: nothing. */
typedef struct epctx_npu_run_opts {
    const epctx_hooks *hooks; /* borrowed; may be NULL. Uses only cancel_fn: called before each
                                 command of a run and within long ones, on the thread of the run;
                                 true ends the run with EPCTX_ERR_CANCELLED and undefined outputs */
    void *user;
    /* Calls work_fn(work, i) for each i below `count`, in any order, at once or not, and returns
     * when all calls have returned. NULL: the run uses its own thread only. */
    void (*parallel_fn)(void *user, uint32_t count, void (*work_fn)(void *work, uint32_t i),
                        void *work);
    uint32_t threads;   /* the largest `count`, up to 64 */
    uint64_t part_work; /* products and bytes of a part: at least this, at most 1,024 times as much
                           if the run can be cancelled. 0: 131,072, some microseconds */
    uint64_t (*clock_fn)(void *user); /* in any unit; for profile_fn: both or none */
    /* After each command, with the time it took. */
    void (*profile_fn)(void *user, const epctx_npu_command *command, uint64_t time);
} epctx_npu_run_opts;

/* Bytes of scratch with which that many threads share every command that can be cut; with less,
 * down to graph->info.scratch_size, fewer threads share convolutions. */
EPCTX_API size_t epctx_npu_scratch_size(const epctx_npu_graph *graph, uint32_t threads);
/* epctx_npu_run with options (NULL: none). Results have the same bits with any number of threads.
 * Long commands and those that threads share run in parts: rows, channels or ranges of elements. */
EPCTX_API epctx_status epctx_npu_run_with(const epctx_npu_graph *graph, const epctx_span *inputs,
                                          const epctx_memory *outputs, void *scratch,
                                          size_t scratch_size, const epctx_npu_run_opts *opts,
                                          epctx_error *error);

/* ============================================================
 * >>compile: options and statistics
 * ============================================================ */

/* Whether loading verifies the checksum of the weights: damaged ones only change results. */
typedef enum epctx_npu_check {
    EPCTX_NPU_CHECK_AUTO = 0,   /* up to 16 MiB, which takes some ms */
    EPCTX_NPU_CHECK_ALWAYS = 1, /* any size */
    EPCTX_NPU_CHECK_NEVER = 2   /* those of a model are trusted */
} epctx_npu_check;

/* A command under compilation. Values have numbers; UINT32_MAX: omitted. */
typedef struct epctx_npu_step {
    const char *pass; /* that has just run: "lower", "integers" ... "plan" */
    size_t index;     /* 0: the first after this pass */
    const char *op;   /* as in epctx_npu_command */
    epctx_str node;   /* as in epctx_npu_command */
    uint32_t in_count;
    uint32_t in[7];     /* numbers of the operands */
    uint32_t out;       /* number of the result */
    uint32_t constants; /* bit i: in[i] is known while compiling */
    epctx_value result; /* name: empty if the compiler made the value */
    uint32_t memory;    /* values of one number share it */
    uint64_t offset;    /* after the last pass: in scratch, unless in the graph's outputs */
} epctx_npu_step;

typedef struct epctx_npu_opts {
    const char *architecture;         /* default "generic" */
    const epctx_allocator *allocator; /* default malloc; copied */
    epctx_npu_check check_weights;    /* when a context is loaded */
    uint64_t max_work; /* loading refuses graphs with more `work`: a hostile binary of some
                                 megabytes can run for hours. Default: no limit */
    const epctx_npu_run_opts *run; /* of all runs; borrowed; may be NULL. A graph's scratch_size is
                                      then that of epctx_npu_scratch_size */
    /* Called while compiling for each command that there is after each pass. */
    void (*trace_fn)(void *user, const epctx_npu_step *step);
    void *trace_user; /* for trace_fn */
    bool direct;      /* no Winograd: convolutions need less scratch and round less */
} epctx_npu_opts;

/* Statistics of the graph compiled last. */
typedef struct epctx_npu_stats {
    size_t nodes;          /* ONNX nodes in */
    size_t commands;       /* out */
    size_t folded;         /* computed while compiling */
    size_t fused;          /* merged into another command */
    uint64_t scratch_size; /* bytes of the memory plan */
    uint64_t scratch_live; /* peak of bytes live at once: no plan can be smaller */
    uint64_t weight_size;  /* bytes this graph added to the weights */
    uint64_t weight_saved; /* bytes that the blob already had */
} epctx_npu_stats;

/* ============================================================
 * >>backend: the binding to epctx.h
 * ============================================================ */

/* State of the backend. Members other than `stats` are private. */
typedef struct epctx_npu {
    epctx_npu_stats stats;
    epctx_npu_opts opts;
    epctx_allocator allocator;
    const epctx_npu_arch *arch;
} epctx_npu;

/* Fills `backend`; `npu` is borrowed while the backend and its contexts are in use and needs no
 * release. `opts` NULL: defaults. EPCTX_ERR_ARG: unknown architecture or check_weights, or no
 * allocator with EPCTX_NO_MALLOC. EPCTX_ERR_UNSUPPORTED: this build has no kernels for the
 * architecture. */
EPCTX_API epctx_status epctx_npu_init(epctx_npu *npu, const epctx_npu_opts *opts,
                                      epctx_backend *backend, epctx_error *error);

#ifdef __cplusplus
}
#endif

#endif /* EPCTX_NPU_H: end of the declarations. Stop here if you only use the library. */

/* ============================================================
 * >>implementation
 * ============================================================ */

#if defined(EPCTX_NPU_IMPLEMENTATION) && !defined(EPCTX_NPU_IMPLEMENTED)
#define EPCTX_NPU_IMPLEMENTED

#include <float.h>
#include <string.h>

#if defined(__FAST_MATH__)
#error "epctx_npu.h: -ffast-math breaks NaN handling and reproducible output: remove it"
#endif
#if defined(FLT_EVAL_METHOD) && FLT_EVAL_METHOD < 0 /* 16: gcc for machines with AVX512-FP16 */
#error "epctx_npu.h: floating-point evaluation must be fixed (FLT_EVAL_METHOD is negative)"
#endif
#if FLT_RADIX != 2 || FLT_MANT_DIG != 24 || FLT_MAX_EXP != 128
#error "epctx_npu.h: float must be IEEE 754 binary32"
#endif

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__) || defined(__clang__) || defined(_MSC_VER)
#define EPCTX__RESTRICT __restrict
#else
#define EPCTX__RESTRICT
#endif
#if defined(__GNUC__) || defined(__clang__)
#define EPCTX__APART __attribute__((noinline)) /* as in epctx.h */
#else
#define EPCTX__APART
#endif

/* Register tiles need fully unrolled loops; -O2 does not unroll them by itself, or too late. */
#if defined(__clang__) && defined(__OPTIMIZE__) && !defined(__OPTIMIZE_SIZE__)
#define EPCTX__UNROLL _Pragma("clang loop unroll(full)")
#elif defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 8 && !defined(__OPTIMIZE_SIZE__)
#define EPCTX__UNROLL _Pragma("GCC unroll 16")
#else
#define EPCTX__UNROLL
#endif

/* The elements of the next loop do not depend on each other. Other compilers test that at run
 * time. */
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 8
#define EPCTX__INDEPENDENT _Pragma("GCC ivdep")
#else
#define EPCTX__INDEPENDENT
#endif

/* Hints for clang. MANY_ARRAYS: the next loop uses more arrays than clang compares at run time; all
 * are independent. SHORT_STEP: a step of the loop is one vector, because rows are often too short
 * for the four that clang prefers. LONG_STEP: a step is 16 elements, as with gcc: where types of
 * different sizes meet, one vector of the largest leaves most of the others empty, and a long sum
 * in one vector waits for itself. With sanitizers or little optimization clang cannot follow the
 * hints and would warn at the caller. */
#if defined(__clang__)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wpass-failed"
#endif
#if defined(__clang__) && defined(__SSE2__) && defined(__OPTIMIZE__) && !defined(__OPTIMIZE_SIZE__)
#define EPCTX__MANY_ARRAYS _Pragma("clang loop vectorize(assume_safety)")
#define EPCTX__SHORT_STEP  _Pragma("clang loop interleave_count(1)")
#define EPCTX__LONG_STEP   _Pragma("clang loop vectorize_width(16) interleave_count(1)")
#else
#define EPCTX__MANY_ARRAYS
#define EPCTX__SHORT_STEP
#define EPCTX__LONG_STEP
#endif

/* At the start of a function: no product is fused with a sum. Where fusing is allowed, clang treats
 * both as one call, even for processors that lack the instruction, and keeps vectors of them in
 * memory. */
#if defined(__clang__) && defined(__SSE2__) && !defined(__FMA__)
#define EPCTX__UNFUSED _Pragma("STDC FP_CONTRACT OFF")
#else
#define EPCTX__UNFUSED
#endif

/* Faster variants of the innermost loops, selected at run time by processor features. */
#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__)) && \
    !defined(__OPTIMIZE_SIZE__) && !defined(EPCTX_NPU_NO_SIMD)
#if !defined(__clang__) /* gcc 12 warns about its own undefined vectors in C++ */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#if !defined(__clang__)
#pragma GCC diagnostic pop
#endif
#define EPCTX__AVX2
#define EPCTX__TARGET __attribute__((target("avx2,fma")))
#define EPCTX__WIDE   __attribute__((target("avx512f")))
/* For functions into which all that they call is inlined, if it can be. clang aligns the stack only
 * where it knows beforehand that a vector will not find a register. */
#if defined(__clang__)
#define EPCTX__FLAT __attribute__((flatten, force_align_arg_pointer))
#else
#define EPCTX__FLAT __attribute__((flatten))
#endif
/* For functions in which a fused multiplication and addition may round once; clang's default. */
#if defined(__clang__)
#define EPCTX__FUSED
#else
#define EPCTX__FUSED __attribute__((optimize("fp-contract=fast")))
#endif
#endif
/* Forced, so that functions with another target attribute compile the body for that target. */
#if defined(EPCTX__AVX2) && defined(__OPTIMIZE__)
#define EPCTX__INLINE inline __attribute__((always_inline))
#else
#define EPCTX__INLINE
#endif

/* ARM's instructions for pairs of 16 bits. */
#if defined(__ARM_FEATURE_SIMD32) && defined(__ARMEL__) && !defined(EPCTX_NPU_NO_SIMD)
#include <arm_acle.h>
#define EPCTX__SIMD32
#define EPCTX__SIMD32_INLINE inline __attribute__((always_inline)) /* for size, too */
#else
#define EPCTX__SIMD32_INLINE EPCTX__INLINE
#endif

/* 1: spend code and stack on speed. Integer kernels then loop over arrays, which compilers
 * vectorize, and moves choose among several forms. */
#if defined(EPCTX__SIMD32) || defined(__OPTIMIZE_SIZE__)
#define EPCTX__LOOPS 0
#else
#define EPCTX__LOOPS 1
#endif

/* How a run is kept from handing out what its memory held before. 1: it clears the memory. 0:
 * loading refuses a graph that reads or returns a byte which it has not written; the check takes 2
 * KB of code. */
#ifdef __OPTIMIZE_SIZE__
#define EPCTX__CLEARS 1
#else
#define EPCTX__CLEARS 0
#endif

/* ============================================================
 * >>blob: words, sizes, header
 * ============================================================ */

#define EPCTX__MAX_BYTES     INT32_MAX /* of one tensor: kernels may index with 32 bits */
#define EPCTX__OPERAND_WORDS 4
#define EPCTX__COMMAND_WORDS 4   /* before the operands */
#define EPCTX__OUTSIDE       256 /* bytes: smaller initializers stay in the blob */

/* The records of the file, as the manual lists them. Numbers of 64 bits within the word section are
 * two words: the copy of that section is put into the host's order word by word. */
typedef struct epctx__header {
    char magic[8];
    uint32_t format, header_bytes;
    char sdk_version[16], architecture[24];
    uint64_t size, words, strings, string_bytes, weights, weight_bytes;
    uint32_t graphs, weight_count;
    uint64_t meta_sum, weight_sum;
} epctx__header;

typedef struct epctx__graph_record {
    uint32_t name[2], hash[2], scratch[2];
    uint32_t io_at, inputs, outputs, commands_at, command_words, commands, maker, makes, zero[6];
} epctx__graph_record;

typedef struct epctx__value_record {
    uint32_t name[2], elem_type, rank, dims[EPCTX_NPU_MAX_RANK];
} epctx__value_record;

typedef struct epctx__weight_record {
    uint32_t offset[2], size[2], elem, zero;
} epctx__weight_record;

#define EPCTX__WORDS(record) (sizeof(record) / 4)

static const char epctx__magic[9] = "EPCTXNPU";

static uint32_t epctx__get32(const uint8_t *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* A u64 kept as two native words, low first. */
static uint64_t epctx__pair(const uint32_t *words) {
    return words[0] | (uint64_t)words[1] << 32;
}

static bool epctx__big_endian(void) {
    const uint32_t one = 1;
    uint8_t first;
    memcpy(&first, &one, 1);
    return first == 0;
}

/* Converts words of `bytes` each between little-endian and host order, in place. */
static void epctx__to_host(void *data, uint64_t size, uint32_t bytes) {
    uint8_t *p = (uint8_t *)data;
    uint64_t i;
    uint32_t j;
    if (!epctx__big_endian()) return;
    for (i = 0; i + bytes <= size; i += bytes) {
        for (j = 0; j < bytes / 2; j++) {
            const uint8_t t = p[i + j];
            p[i + j] = p[i + bytes - 1 - j];
            p[i + bytes - 1 - j] = t;
        }
    }
}

static void epctx__header_to_host(epctx__header *h) {
    epctx__to_host(&h->format, 8, 4);
    epctx__to_host(&h->size, 48, 8);
    epctx__to_host(&h->graphs, 8, 4);
    epctx__to_host(&h->meta_sum, 16, 8);
}

/* Saturating product of sizes: far above every limit, so a chain of calls needs one comparison. */
static uint64_t epctx__mul(uint64_t a, uint64_t b) {
    const uint64_t top = UINT64_MAX / 4;
    const uint64_t low = (a & UINT32_MAX) * (b & UINT32_MAX); /* divisions are large and slow */
    uint64_t high;
    if ((a >> 32) != 0 && (b >> 32) != 0) return top;
    high = (a >> 32) * (b & UINT32_MAX) + (b >> 32) * (a & UINT32_MAX);
    return high > top >> 32 || low > top - (high << 32) ? top : (high << 32) + low;
}

static uint64_t epctx__mul3(uint64_t a, uint64_t b, uint64_t c) {
    return epctx__mul(epctx__mul(a, b), c);
}

static uint64_t epctx__mul4(uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
    return epctx__mul(epctx__mul3(a, b, c), d);
}

/* A context binary that is not as expected. */
#define EPCTX__BLOB(error, status, ...) \
    epctx_fail(error, EPCTX_ERR_##status, "context binary: " __VA_ARGS__)

static void epctx__copy_name(char *out, const char *data, size_t size) {
    size_t i;
    for (i = 0; i < size && data[i] != 0; i++)
        out[i] = data[i] < 0x20 || data[i] > 0x7e ? '?' : data[i];
    out[i] = '\0';
}

static epctx_status epctx__peek(epctx_span blob, epctx__header *h, epctx_npu_blob *out,
                                epctx_error *error) {
    memset(out, 0, sizeof *out);
    if (blob.data == NULL || blob.size < EPCTX_NPU_HEADER_SIZE)
        return EPCTX__BLOB(error, CONTEXT, "expected a header of %u bytes, found %u bytes",
                           (uint64_t)EPCTX_NPU_HEADER_SIZE, (uint64_t)blob.size);
    memcpy(h, blob.data, sizeof *h);
    epctx__header_to_host(h);
    if (memcmp(h->magic, epctx__magic, 8) != 0) {
        char found[9];
        epctx__copy_name(found, h->magic, 8);
        return EPCTX__BLOB(error, CONTEXT, "expected magic \"%s\", found \"%s\"", epctx__magic,
                           found);
    }
    out->format = h->format;
    if (h->format != EPCTX_NPU_FORMAT)
        return EPCTX__BLOB(error, VERSION, "expected format version %u, found %u",
                           (uint64_t)EPCTX_NPU_FORMAT, (uint64_t)h->format);
    out->size = h->size;
    out->weight_size = h->weight_bytes;
    out->graph_count = h->graphs;
    out->weight_count = h->weight_count;
    epctx__copy_name(out->sdk_version, h->sdk_version, sizeof h->sdk_version);
    epctx__copy_name(out->architecture, h->architecture, sizeof h->architecture);
    return EPCTX_OK;
}

EPCTX_API epctx_status epctx_npu_peek(epctx_span blob, epctx_npu_blob *out, epctx_error *error) {
    epctx__header header;
    epctx_error_clear(error);
    return epctx__peek(blob, &header, out, error);
}

/* ============================================================
 * >>arch
 * ============================================================ */

#define EPCTX__ROWS    4 /* of the register tile of this build */
#define EPCTX__COLUMNS 16

static const epctx_npu_arch epctx__archs[4] = {
    {"generic", 4, 16, true},
    {"x86-64-v3", 6, 16, false},
    {"x86-64-v4", 8, 32, false},
    {"armv7e-m", 2, 4, false},
};

EPCTX_API const epctx_npu_arch *epctx_npu_arch_list(size_t *count) {
    *count = sizeof epctx__archs / sizeof epctx__archs[0];
    return epctx__archs;
}

EPCTX_API const epctx_npu_arch *epctx_npu_arch_find(epctx_str name) {
    size_t i;
    for (i = 0; i < sizeof epctx__archs / sizeof epctx__archs[0]; i++)
        if (epctx_str_is(name, epctx__archs[i].name)) return &epctx__archs[i];
    return NULL;
}

static bool epctx__runnable(epctx_str name) {
    const epctx_npu_arch *arch = epctx_npu_arch_find(name);
    return arch != NULL && arch->runnable;
}

/* ============================================================
 * >>numbers: arithmetic without libm, bit-identical in the portable form
 * ============================================================ */

/* x rounded to float. The registers of an x87 hold more digits; clang keeps them across
 * assignments, as does gcc without -std=cNN. */
static EPCTX__INLINE float epctx__rounded(float x) {
#if defined(FLT_EVAL_METHOD) && FLT_EVAL_METHOD == 0
    return x;
#else
    volatile float y = x;
    return y;
#endif
}

static EPCTX__INLINE float epctx__float_of(uint32_t bits) {
    float f;
    memcpy(&f, &bits, 4);
    return f;
}

/* Rounds first, so that epctx__float_of gives back the same number. */
static EPCTX__INLINE uint32_t epctx__bits_of(float f) {
    uint32_t bits;
    f = epctx__rounded(f);
    memcpy(&bits, &f, 4);
    return bits;
}

/* condition ? a : b, always from both: no branch, so that loops vectorize. */
static EPCTX__INLINE float epctx__choose(bool condition, float a, float b) {
#ifdef __OPTIMIZE_SIZE__ /* then none does */
    return condition ? a : b;
#else
    const uint32_t mask = 0u - (uint32_t)condition;
    return epctx__float_of((epctx__bits_of(a) & mask) | (epctx__bits_of(b) & ~mask));
#endif
}

/* x within low..high; low for NaN. */
static EPCTX__INLINE float epctx__within(float x, float low, float high) {
    const float c = epctx__choose(x > low, x, low);
    return epctx__choose(c < high, c, high);
}

/* x within low..high; NaN for NaN. */
static EPCTX__INLINE float epctx__clip(float x, float low, float high) {
    const float c = epctx__choose(x < low, low, x);
    return epctx__choose(c > high, high, c);
}

static EPCTX__INLINE float epctx__abs(float x) {
    return epctx__float_of(epctx__bits_of(x) & 0x7fffffffu);
}

/* `y` with the sign of x. */
static EPCTX__INLINE float epctx__signed(float y, float x) {
    return epctx__float_of((epctx__bits_of(y) & 0x7fffffffu) | (epctx__bits_of(x) & 0x80000000u));
}

/* e^r - 1 for |r| <= ln(2)/2: interpolated at Chebyshev nodes, to 2^-25 of the result. */
static EPCTX__INLINE float epctx__expm1_core(float r) {
    const float z = r * r, p = 1.39263256e-3f * z + (8.36329275e-3f * r + 4.16665538e-2f);
    return r + z * (z * p + (0.166665763f * r + 0.5f)); /* in pairs: a short dependency chain */
}

#define EPCTX__FAR 12582912.0f /* 1.5 * 2^23: a sum with it is rounded to an integer */

/* x = n ln(2) + r. ln(2) is split into two parts, the first short enough for exact multiples. For a
 * NaN, r is a NaN and n unspecified. */
static EPCTX__INLINE int32_t epctx__exp_split(float x, float *r) {
    const float high = 0.693359375f, low = -2.12194440e-4f;
    const uint32_t bits = epctx__bits_of(x * 1.44269504f + EPCTX__FAR);
    const float n = epctx__float_of(bits) - EPCTX__FAR;
    *r = (x - n * high) - n * low;
    return (int32_t)(bits - epctx__bits_of(EPCTX__FAR));
}

/* 2^n for n in -126..127; 0 for -127, infinity for 128 */
static EPCTX__INLINE float epctx__pow2(int32_t n) {
    return epctx__float_of((uint32_t)(n + 127) << 23);
}

static EPCTX__INLINE float epctx__exp(float x) {
    float r;
    const uint32_t n = (uint32_t)(epctx__exp_split(epctx__clip(x, -104.0f, 89.0f), &r) + 254);
    const uint32_t half = n >> 1; /* the two powers are floats, 2^n may not be */
    const float y = 1.0f + epctx__expm1_core(r);
    return y * epctx__float_of(half << 23) * epctx__float_of((n - half) << 23);
}

/* e^x; 0 and infinity instead of numbers that are not normal. */
static EPCTX__INLINE float epctx__exp_normal(float x) {
    float r;
    const int32_t n = epctx__exp_split(epctx__clip(x, -88.0f, 89.0f), &r);
    return (1.0f + epctx__expm1_core(r)) * epctx__pow2(n);
}

/* tanh(x) = e / (e + 2) with e = exp(2|x|) - 1, formed without cancellation. Where ln(2) counts n
 * times, e is large, so that it need not be in two parts. */
static EPCTX__INLINE float epctx__tanh(float x) {
    const uint32_t sign = epctx__bits_of(x) & 0x80000000u;
    const float a = epctx__abs(x), c = epctx__choose(a > 10.0f, 10.0f, a);
    const uint32_t bits = epctx__bits_of(c * 2.88539008f + EPCTX__FAR);
    const float scale = epctx__pow2((int32_t)(bits - epctx__bits_of(EPCTX__FAR)));
    const float e =
        scale * epctx__expm1_core(2.0f * c - (epctx__float_of(bits) - EPCTX__FAR) * 0.693147181f);
    return epctx__float_of(epctx__bits_of((e + (scale - 1.0f)) / (e + (scale + 1.0f))) | sign);
}

static EPCTX__INLINE float epctx__sigmoid(float x) {
    return 1.0f / (1.0f + epctx__exp_normal(-x));
}

/* e^x - 1, at full precision for small x; 2^n is halved, as 2^128 has no float. */
static EPCTX__INLINE float epctx__expm1(float x) {
    float r;
    const float half = epctx__pow2(epctx__exp_split(epctx__clip(x, -20.0f, 89.0f), &r) - 1);
    r = 2.0f * (half * epctx__expm1_core(r) + (half - 0.5f));
    return epctx__choose(x == 0.0f, x, r);
}

/* |x| = m 2^n, m in sqrt(1/2)..sqrt(2); unspecified for 0, infinities and NaN. */
static EPCTX__INLINE int32_t epctx__log_split(float x, float *m) {
    const int32_t tiny = epctx__abs(x) < FLT_MIN;
    const uint32_t bits = epctx__bits_of(epctx__choose(tiny != 0, x * 8388608.0f, x));
    const float f = epctx__float_of((bits & 0x7fffffu) | 0x3f800000u);
    const int32_t more = f > 1.41421356f;
    *m = epctx__choose(more != 0, f * 0.5f, f);
    return (int32_t)(bits >> 23 & 0xff) - 127 - 23 * tiny + more;
}

/* log(m 2^n) = n ln(2) + 2 artanh((m-1)/(m+1)) */
static EPCTX__INLINE float epctx__log(float x) {
    const float high = 0.693359375f, low = -2.12194440e-4f;
    float m, p;
    const float n = (float)epctx__log_split(x, &m), s = (m - 1.0f) / (m + 1.0f), z = s * s;
    p = ((1.0f / 9.0f * z + 1.0f / 7.0f) * z + 1.0f / 5.0f) * z + 1.0f / 3.0f;
    p = 2.0f * s + 2.0f * s * z * p;
    p = (n * low + p) + n * high;
    p = epctx__choose(x > FLT_MAX, x, p);
    p = epctx__choose(x > 0.0f, p, epctx__float_of(0x7fc00000u));
    return epctx__choose(x == 0.0f, epctx__float_of(0xff800000u), p);
}

/* Correctly rounded, as the compiler uses it too: the instruction, else bit by bit, in integers. */
static float epctx__sqrt(float x) {
#ifndef EPCTX__AVX2
    const int32_t tiny = x < FLT_MIN;
    const uint32_t bits = epctx__bits_of(tiny ? x * 16777216.0f : x);
    const int32_t exponent = (int32_t)(bits >> 23) - 127 - 24 * tiny, odd = exponent & 1;
    uint64_t rest = (uint64_t)((bits & 0x7fffffu) | 0x800000u) << (25 + odd);
    uint32_t root = 0, bit; /* the root has 25 bits, one more than needed */
#endif
    if (!(x > 0.0f) || x > FLT_MAX) return x < 0.0f ? epctx__float_of(0x7fc00000u) : x;
#ifdef EPCTX__AVX2
    return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x)));
#else
    for (bit = 1u << 25; bit != 0; bit >>= 1) {
        const uint64_t step = ((uint64_t)root << 1 | bit) * bit;
        if (step <= rest) {
            rest -= step;
            root |= bit;
        }
    }
    /* the last bit decides the rounding; the root of a float is never a tie */
    return (float)((root + 1) >> 1) * epctx__pow2((exponent - odd) / 2 - 23);
#endif
}

/* erf: x times a polynomial, interpolated at Chebyshev nodes of x^2 below 3.92^2; 1 from there. */
static EPCTX__INLINE float epctx__erf(float x) {
    const float t = x * x * (2.0f / (3.92f * 3.92f)) - 1.0f;
    float p = 2.12785811e-3f - 9.39271937e-4f * t;
    p = (p * t - 1.04527792e-3f) * t + 1.82033039e-3f;
    p = (p * t - 8.17048363e-3f) * t + 1.43435020e-2f;
    p = (p * t - 1.96174905e-2f) * t + 2.96092122e-2f;
    p = (p * t - 4.35857326e-2f) * t + 5.84258288e-2f;
    p = (p * t - 7.39898905e-2f) * t + 9.05922130e-2f;
    p = (p * t - 0.109181851f) * t + 0.134084836f;
    p = (p * t - 0.180108562f) * t + 0.360736817f;
    return epctx__choose(epctx__abs(x) >= 3.92f, epctx__signed(1.0f, x), x * p);
}

/* Rounds towards zero; floats from 2^23 on are integers. */
static EPCTX__INLINE float epctx__trunc(float x) {
    const bool small = epctx__abs(x) < 8388608.0f;
    const float t = (float)(int32_t)epctx__choose(small, x, 0.0f);
    return epctx__choose(small, epctx__signed(t, x), x);
}

static EPCTX__INLINE float epctx__floor(float x) {
    const float t = epctx__trunc(x);
    return epctx__choose(t > x, t - 1.0f, t);
}

/* Rounds to the nearest integer, ties to even. */
static EPCTX__INLINE float epctx__round(float x) {
    const bool small = epctx__abs(x) < 8388608.0f;
    const int32_t n = (int32_t)epctx__choose(small, x, 0.0f);
    const float t = epctx__signed((float)n, x), rest = x - t; /* exact */
    const float size = epctx__abs(rest), y = t + epctx__signed(1.0f, rest);
    const float tie = epctx__float_of(0x3effffffu + ((uint32_t)~n & 1)); /* 0.5 if even */
    return epctx__choose(small, epctx__choose(size > tie, y, t), x);
}

/* sin(x + shift * pi) for |x| < 2^20, shift 0, 0.5 (a cosine), 1 ... Subtracts a multiple of pi,
 * which is split into two parts, the first short enough for exact multiples. */
static EPCTX__INLINE float epctx__sine_near(double x, double shift) {
    const double turns = x * 0.31830988618379067154 + shift;
    const int32_t whole = (int32_t)(turns + (double)epctx__signed(0.5f, (float)turns));
    const double n = (double)whole - shift;
    const double r = x - n * 3.1415926534682512 - n * 1.2154201013012384e-10, z = r * r;
    double p = 1.0 / 362880 - z * (1.0 / 39916800 - z * (1.0 / 6227020800));
    p = r * (1.0 - z * (1.0 / 6 - z * (1.0 / 120 - z * (1.0 / 5040 - z * p))));
    return epctx__float_of(epctx__bits_of((float)p) ^ ((uint32_t)whole & 1) << 31);
}

/* sin(x), or cos(x), at any distance. x is m 2^e; in integers, m times the fraction bits of
 * 2^(e-2) 2/pi gives the last two bits of the quarter turns and 62 bits of their fraction. */
static float epctx__sine(float x, bool cosine) {
    static const uint32_t two_over_pi[8] = {/* 32 zeros, then the fraction */
                                            0u,          0xA2F9836Eu, 0x4E441529u, 0xFC2757D1u,
                                            0xF534DDC0u, 0xDB629599u, 0x3C439041u, 0xFE5163ABu};
    const uint32_t bits = epctx__bits_of(x) & 0x7fffffffu;
    uint32_t quarter = cosine ? 1 : 0;
    double r = (double)x;
    if (bits >= 0x7f800000u) return x - x; /* NaN */
    if (bits >= 147u << 23) {              /* 2^20 */
        const uint32_t skip = (bits >> 23) - 120, s = skip % 32, *w = two_over_pi + skip / 32;
        const uint64_t m = (bits & 0x7fffffu) | 0x800000u, middle = (uint64_t)w[2] << 32 | w[3];
        uint64_t rest = ((uint64_t)w[0] << 32 | w[1]) << s | ((uint64_t)w[2] << s >> 32), n;
        rest = m * rest + (m * (middle << s >> 32) >> 32);
        n = (rest + ((uint64_t)1 << 61)) >> 62;
        rest -= n << 62;
        r = (rest >> 63 != 0 ? -(double)(0 - rest) : (double)rest) *
            (1.57079632679489661923 / 4611686018427387904.0);
        r = x < 0.0f ? -r : r;
        quarter += (uint32_t)(x < 0.0f ? 4 - n : n) % 4;
    }
    return epctx__sine_near(r, 0.5 * (double)quarter);
}

/* -- in double, to ten digits or more: powers, and functions that would cancel in float -- */

/* 2^n for n in -1022..1023 */
static double epctx__pow2_wide(int32_t n) {
    const uint64_t bits = (uint64_t)(n + 1023) << 52;
    double d;
    memcpy(&d, &bits, 8);
    return d;
}

/* The root of x in 0..FLT_MAX. */
static double epctx__sqrt_wide(double x) {
    const double root = (double)epctx__sqrt((float)x);
    return root > 0.0 ? 0.5 * (root + x / root) : root;
}

/* log(m) for m in sqrt(1/2)..sqrt(2) */
static EPCTX__INLINE double epctx__log_core(double m) {
    const double s = (m - 1.0) / (m + 1.0), z = s * s;
    const double p = 1.0 / 9 + z * (1.0 / 11 + z * (1.0 / 13));
    return 2.0 * (s + s * z * (1.0 / 3 + z * (1.0 / 5 + z * (1.0 / 7 + z * p))));
}

/* log(x) of a positive number. */
static double epctx__log_wide(double x) {
    uint64_t bits;
    double m;
    int32_t n;
    memcpy(&bits, &x, 8);
    n = (int32_t)(bits >> 52) - 1023;
    bits = (bits & 0xfffffffffffffu) | (uint64_t)1023 << 52;
    memcpy(&m, &bits, 8);
    if (m > 1.4142135) {
        m *= 0.5;
        n++;
    }
    return (double)n * 0.69314718055994530942 + epctx__log_core(m);
}

/* e^x, x at most 110 and rounded `c`: tiny results turn to 0 and huge ones to infinity. */
static EPCTX__INLINE double epctx__exp_core(double x, float c) {
    const int32_t n = (int32_t)(c * 1.44269504f + epctx__signed(0.5f, c));
    const double r = x - (double)n * 0.69314718055994530942;
    double p = 1.0 / 720 + r * (1.0 / 5040 + r * (1.0 / 40320 + r * (1.0 / 362880)));
    p = 0.5 + r * (1.0 / 6 + r * (1.0 / 24 + r * (1.0 / 120 + r * p)));
    return (1.0 + r * (1.0 + r * p)) * epctx__pow2_wide(n);
}

static double epctx__exp_wide(double x) {
    x = x < -110.0 ? -110.0 : (x > 110.0 ? 110.0 : x);
    return epctx__exp_core(x, (float)x);
}

/* Computes the power of |x| first, then the cases that differ. Has no branches, so that loops
 * vectorize. */
static EPCTX__INLINE float epctx__pow(float x, float y) {
    const float infinite = epctx__float_of(0x7f800000u), a = epctx__abs(x);
    const bool whole = y == epctx__trunc(y);
    const float half = y * 0.5f;
    const bool odd = (int)whole & (int)(half != epctx__trunc(half));
    float m;
    const int32_t n = epctx__log_split(a, &m);
    const double log = (double)n * 0.69314718055994530942 + epctx__log_core((double)m);
    const double e = (double)y * log;
    const float f = (float)e;
    float r = (float)epctx__exp_core(e, epctx__within(f, -110.0f, 110.0f));
    r = epctx__choose(f > 110.0f, infinite, epctx__choose(f < -110.0f, 0.0f, r));
    r = epctx__choose((a == 0.0f) | (a > FLT_MAX),
                      epctx__choose((a == 0.0f) == (y < 0.0f), infinite, 0.0f), r);
    r = epctx__choose(odd, epctx__signed(r, x), r);
    r = epctx__choose((x != x) | (y != y) | ((x < 0.0f) & (a <= FLT_MAX) & !whole),
                      epctx__float_of(0x7fc00000u), r);
    return epctx__choose((y == 0.0f) | (x == 1.0f) | ((a == 1.0f) & (epctx__abs(y) > FLT_MAX)),
                         1.0f, r);
}

/* The remainder, with the sign of the dividend: exact, by long division. */
static float epctx__fmod(float x, float y) {
    const uint32_t a = epctx__bits_of(x) & 0x7fffffffu, b = epctx__bits_of(y) & 0x7fffffffu;
    const uint64_t m = (b & 0x7fffffu) | (b >> 23 != 0 ? 0x800000u : 0);
    uint64_t rest = (a & 0x7fffffu) | (a >> 23 != 0 ? 0x800000u : 0);
    const int32_t low = b >> 23 != 0 ? (int32_t)(b >> 23) : 1;
    int32_t left = (a >> 23 != 0 ? (int32_t)(a >> 23) : 1) - low, step;
    if (b == 0 || a >= 0x7f800000u || b > 0x7f800000u) return epctx__float_of(0x7fc00000u);
    if (a < b) return x;
    for (rest %= m; left > 0; left -= step) {
        step = left < 40 ? left : 40;
        rest = (rest << step) % m;
    }
    return epctx__signed((float)((double)rest * epctx__pow2_wide(low - 150)), x);
}

/* atan(x): by differences of angles to 0, 45 or 90 degrees, of tangents up to tan(pi/8). */
static EPCTX__INLINE float epctx__atan(float x) {
    const float a = epctx__abs(x);
    const bool middle = a > 0.41421356f, far = a > 2.41421356f;
    const float above = epctx__choose(middle, a - 1.0f, a);
    const float below = epctx__choose(middle, a + 1.0f, 1.0f);
    const float u = epctx__choose(far, -1.0f, above) / epctx__choose(far, a, below);
    const float z = u * u;
    const float base = epctx__choose(middle, 0.785398163f, 0.0f);
    float p = -0.142445496f + z * (0.106004943f - z * 0.0609358775f);
    p = -0.333333164f + z * (0.199985340f + z * p);
    p = epctx__choose(far, 1.57079633f, base) + (u + u * z * p);
    return epctx__choose(x != x, x, epctx__signed(p, x));
}

/* asin(x), or acos(x) by the half angle: neither cancels near 1. NaN for |x| > 1. */
static float epctx__arc(float x, bool cosine) {
    const double a = (double)epctx__abs(x), below = 1.0 - a, above = 1.0 + a;
    float y;
    if (!(below >= 0.0)) return epctx__float_of(0x7fc00000u);
    if (!cosine)
        return epctx__signed(
            epctx__atan(below > 0.0 ? (float)(a / epctx__sqrt_wide(below * above)) : FLT_MAX), x);
    y = 2.0f * epctx__atan((float)epctx__sqrt_wide(below / above));
    return x < 0.0f ? 3.14159265f - y : y;
}

/* sinh(x) or cosh(x) */
static float epctx__hyperbolic(float x, bool cosine) {
    const double a = (double)x, z = a * a;
    double e;
    if (x != x || (cosine && epctx__abs(x) > FLT_MAX)) return x * x;
    e = epctx__exp_wide((double)epctx__abs(x));
    if (cosine) return (float)(0.5 * (e + 1.0 / e));
    return z < 0.1 ? (float)(a + a * z * (1.0 / 6 + z * (1.0 / 120 + z / 5040)))
                   : epctx__signed((float)(0.5 * (e - 1.0 / e)), x);
}

static float epctx__asinh(float x) {
    const double a = (double)epctx__abs(x), z = a * a;
    if (!(a <= FLT_MAX)) return x;
    return epctx__signed(
        (float)(a < 0.03 ? a - a * z * (1.0 / 6 - z * (3.0 / 40))
                         : epctx__log_wide(a > 1e9 ? 2.0 * a : a + epctx__sqrt_wide(z + 1.0))),
        x);
}

static float epctx__acosh(float x) {
    const double a = (double)x;
    if (!(x >= 1.0f && x <= FLT_MAX)) return x > 1.0f ? x : epctx__float_of(0x7fc00000u);
    return (float)epctx__log_wide(a > 1e9 ? 2.0 * a : a + epctx__sqrt_wide((a - 1.0) * (a + 1.0)));
}

static float epctx__atanh(float x) {
    const double a = (double)epctx__abs(x), z = a * a;
    if (!(a < 1.0)) return epctx__signed(epctx__float_of(a == 1.0 ? 0x7f800000u : 0x7fc00000u), x);
    return epctx__signed((float)(a < 0.03 ? a + a * z * (1.0 / 3 + z * (1.0 / 5))
                                          : 0.5 * epctx__log_wide((1.0 + a) / (1.0 - a))),
                         x);
}

static EPCTX__INLINE float epctx__softplus(float x) {
    const float e = epctx__exp(-epctx__abs(x));
    const float u = epctx__rounded(1.0f + e);
    const float d = u - 1.0f; /* log(1 + e), corrected for the rounding of 1 + e */
    const float tail = epctx__choose(d == 0.0f, e, epctx__log(u) * (e / d));
    return epctx__choose(x > 0.0f, x + tail, tail);
}

static EPCTX__INLINE float epctx__elu(float x, float width, float height) {
    return epctx__choose(x < 0.0f, height * epctx__expm1(x / width), x);
}

/* A loop over `count` elements, first in chunks of constant length: gcc -O2 vectorizes those, but
 * not an unknown count; clang does the opposite: it unrolls those first. `statement` sees the
 * index as `at`. */
#if defined(__OPTIMIZE_SIZE__) || defined(__clang__)
#define EPCTX__CHUNKS 0
#else
#define EPCTX__CHUNKS 1
#endif
#define EPCTX__EACH(at, count, statement) EPCTX__EACH_HINT(EPCTX__SHORT_STEP, at, count, statement)
#define EPCTX__EACH_HINT(hint, at, count, statement) \
    do { \
        size_t epctx__i = 0, epctx__j; \
        for (; EPCTX__CHUNKS && (count)-epctx__i >= 16; epctx__i += 16) { \
            EPCTX__INDEPENDENT \
            for (epctx__j = 0; epctx__j < 16; epctx__j++) { \
                const size_t at = epctx__i + epctx__j; \
                statement \
            } \
        } \
        hint for (; epctx__i < (count); epctx__i++) { \
            const size_t at = epctx__i; \
            statement \
        } \
    } while (0)

/* Calls `statement` for strips of `width` (16, the last one fewer) of `count`, from `at`. */
#define EPCTX__STRIPS(at, count, width, statement) \
    do { \
        size_t at; \
        for (at = 0; (count)-at >= 16; at += 16) { \
            const size_t width = 16; \
            statement \
        } \
        if (at < (count)) { \
            const size_t width = (count)-at; \
            statement \
        } \
    } while (0)

/* -- activations: unary functions, alone or fused into another kernel -- */

/* A row for each: name, ONNX operator (looked up after those that have their own lowering function)
 * and the opset that has it first, 1 if the result has the same bits on every machine, value. */
/* clang-format off */
#define EPCTX_NPU_ACT_LIST(X) \
    X(RELU, "Relu", 1, 1, v < 0.0f ? 0.0f : v) \
    X(CLIP, "Clip", 1, 1, epctx__choose(v < a, a, v > b ? b : v)) \
    X(LEAKY, "LeakyRelu", 1, 1, epctx__choose(v < 0.0f, v * a, v)) \
    X(SIGMOID, "Sigmoid", 1, 0, epctx__sigmoid(v)) \
    X(TANH, "Tanh", 1, 0, epctx__tanh(v)) \
    X(EXP, "Exp", 1, 0, epctx__exp(v)) \
    X(LOG, "Log", 1, 0, epctx__log(v)) \
    X(SQRT, "Sqrt", 1, 1, epctx__sqrt(v)) \
    X(ABS, "Abs", 1, 1, epctx__abs(v)) \
    X(NEG, "Neg", 1, 1, -v) \
    X(HARD_SIGMOID, "HardSigmoid", 1, 0, epctx__unit(epctx__rounded(a * v) + b)) \
    X(HARD_SWISH, "HardSwish", 14, 0, v * epctx__unit(epctx__rounded(a * v) + b)) \
    X(ELU, "Elu", 1, 0, epctx__elu(v, 1.0f, a)) \
    X(CELU, "Celu", 12, 0, epctx__elu(v, a, a)) \
    X(SELU, "Selu", 1, 0, b * epctx__elu(v, 1.0f, a)) \
    X(RECIPROCAL, "Reciprocal", 1, 1, 1.0f / v) \
    X(ERF, "Erf", 9, 0, epctx__erf(v)) \
    X(GELU, "Gelu", 20, 0, 0.5f * v * (1.0f + epctx__erf(v * 0.70710678f))) \
    X(GELU_TANH, "Gelu", 20, 0, \
      0.5f * v * (1.0f + epctx__tanh(0.79788456f * (v + 0.044715f * v * v * v)))) \
    X(SWISH, "Swish", 24, 0, v * epctx__sigmoid(a * v)) \
    X(MISH, "Mish", 18, 0, v * epctx__tanh(epctx__softplus(v))) \
    X(SOFTPLUS, "Softplus", 1, 0, epctx__softplus(v)) \
    X(SOFTSIGN, "Softsign", 1, 0, v / (1.0f + epctx__abs(v))) \
    X(THRESHOLD, "ThresholdedRelu", 1, 0, v > a ? v : 0.0f) \
    X(SHRINK, "Shrink", 9, 0, epctx__choose(v < -a, v + b, epctx__choose(v > a, v - b, 0.0f))) \
    X(SIGN, "Sign", 9, 1, epctx__choose(v > 0.0f, 1.0f, v < 0.0f ? -1.0f : v)) \
    X(FLOOR, "Floor", 1, 1, epctx__floor(v)) \
    X(CEIL, "Ceil", 1, 1, -epctx__floor(-v)) \
    X(ROUND, "Round", 11, 1, epctx__round(v)) \
    X(SIN, "Sin", 7, 0, epctx__sine(v, false)) \
    X(COS, "Cos", 7, 0, epctx__sine(v, true)) \
    X(TAN, "Tan", 7, 0, epctx__sine(v, false) / epctx__sine(v, true)) \
    X(ASIN, "Asin", 7, 0, epctx__arc(v, false)) \
    X(ACOS, "Acos", 7, 0, epctx__arc(v, true)) \
    X(ATAN, "Atan", 7, 0, epctx__atan(v)) \
    X(SINH, "Sinh", 9, 0, epctx__hyperbolic(v, false)) \
    X(COSH, "Cosh", 9, 0, epctx__hyperbolic(v, true)) \
    X(ASINH, "Asinh", 9, 0, epctx__asinh(v)) \
    X(ACOSH, "Acosh", 9, 0, epctx__acosh(v)) \
    X(ATANH, "Atanh", 9, 0, epctx__atanh(v)) \
    X(CUBE, "Pow", 1, 0, v * v * v)
/* clang-format on */

typedef enum epctx__act_kind {
    EPCTX__ACT_NONE = 0,
#define EPCTX__ACT_ENUM(name, op_type, since, same, value) EPCTX__ACT_##name,
    EPCTX_NPU_ACT_LIST(EPCTX__ACT_ENUM)
#undef EPCTX__ACT_ENUM
        EPCTX__ACT_COUNT
} epctx__act_kind;

/* The last activation of this build. */
#ifdef EPCTX_NPU_FEW_ACTIVATIONS
#define EPCTX__ACT_LAST EPCTX__ACT_LEAKY
#else
#define EPCTX__ACT_LAST EPCTX__ACT_CUBE
#endif

typedef struct epctx__act {
    uint32_t kind;
    float a, b;
} epctx__act;

static EPCTX__INLINE float epctx__unit(float v) {
    return epctx__choose(v<0.0f, 0.0f, v> 1.0f ? 1.0f : v);
}

/* ============================================================
 * >>kernels
 *
 * An opcode has a parameter struct (only members of four bytes, as it is copied from and to words),
 * a check that returns the bytes each operand must have, and a kernel that stays within them.
 * ============================================================ */

#define EPCTX__MAX_IN  EPCTX_NPU_MAX_READS
#define EPCTX__MAX_OUT 2

/* Bytes that a kernel may touch, and their alignment. */
typedef struct epctx__extent {
    uint64_t bytes;
    uint32_t align;
} epctx__extent;

typedef struct epctx__needs {
    epctx__extent in[EPCTX__MAX_IN];
    epctx__extent out[EPCTX__MAX_OUT];
    uint64_t work; /* products and sums, if they can exceed the bytes */
} epctx__needs;

/* Instruction sets beyond the portable kernels. */
typedef enum epctx__level {
    EPCTX__PORTABLE = 0,
    EPCTX__LEVEL_AVX2,  /* and FMA */
    EPCTX__LEVEL_AVX512 /* and AVX2 */
} epctx__level;

/* Addresses of the operands; NULL: omitted. */
typedef struct epctx__args {
    const void *in[EPCTX__MAX_IN];
    void *out[EPCTX__MAX_OUT];
    epctx__level fast;
    epctx_error *error; /* or NULL */
} epctx__args;

/* Defines `name`, which calls name_body, compiled for each instruction set, by the level `fast`. */
#ifdef EPCTX__AVX2
#define EPCTX__FORMS(fast, name, parameters, arguments) \
    EPCTX__FUSED EPCTX__TARGET static void name##_avx2 parameters { \
        name##_body arguments; \
    } \
    EPCTX__FUSED EPCTX__WIDE static void name##_wide parameters { \
        name##_body arguments; \
    } \
    static void name parameters { \
        if ((fast) == EPCTX__LEVEL_AVX512) \
            name##_wide arguments; \
        else if ((fast) == EPCTX__LEVEL_AVX2) \
            name##_avx2 arguments; \
        else \
            name##_body arguments; \
    }
#else
#define EPCTX__FORMS(fast, name, parameters, arguments) \
    static void name parameters { \
        name##_body arguments; \
    }
#endif

/* Defines epctx__run_name, from epctx__all_name_body(p, args). */
#define EPCTX__RUN(name, type) \
    EPCTX__FORMS(args->fast, epctx__all_##name, (const type *p, const epctx__args *args), \
                 (p, args)) \
    static epctx_status epctx__run_##name(const type *p, const epctx__args *args) { \
        epctx__all_##name(p, args); \
        return EPCTX_OK; \
    }

/* The type in which kernels compute a type: the type itself, or the one to which Convert takes it;
 * 0: none. Only moves and Exact take double. */
static int32_t epctx__computed_type(int64_t type) {
    /* float16 (10) and bfloat16 (16) turn to float (1), uint16 (4) and int16 (5) to int32 (6),
     * uint32 (12) and uint64 (13) to int64 (7) */
    static const uint8_t computed[17] = {0, 1, 2, 3, 6, 6, 6, 7, 0, 9, 1, 11, 7, 7, 0, 0, 1};
    return type >= 0 && type < (int64_t)sizeof computed ? computed[type] : 0;
}

/* Bytes of an element of an input, output or constant; 0: unsupported type. */
static uint32_t epctx__stored_size(int64_t type) {
    return epctx__computed_type(type) != 0 ? (uint32_t)epctx_elem_size((int32_t)type) : 0;
}

/* Bytes of an element of a run-time tensor; 0: unsupported type. */
static uint32_t epctx__elem_size(int64_t type) {
    return type != EPCTX_ONNX_DOUBLE && epctx__computed_type(type) == type
               ? epctx__stored_size(type)
               : 0;
}

static bool epctx__elem_ok(uint32_t elem) {
    return elem == 1 || elem == 4 || elem == 8;
}

static epctx__extent epctx__items(uint64_t count, uint32_t elem) {
    epctx__extent e;
    e.bytes = epctx__mul(count, elem);
    e.align = elem;
    return e;
}

static epctx__extent epctx__floats(uint64_t count) {
    return epctx__items(count, 4);
}

/* Index `i`, of 4 or 8 bytes. */
static int64_t epctx__index(const uint8_t *data, size_t i, uint32_t elem) {
    int32_t narrow;
    int64_t wide;
    if (elem == 4) {
        memcpy(&narrow, data + i * 4, 4);
        return narrow;
    }
    memcpy(&wide, data + i * 8, 8);
    return wide;
}

/* Element `i` of a tensor of integers or booleans; the bits of a half. */
static int64_t epctx__load_int(const uint8_t *data, size_t i, uint32_t type) {
    uint16_t half;
    switch (type) {
    case EPCTX_ONNX_INT64:
    case EPCTX_ONNX_UINT64: return epctx__index(data, i, 8);
    case EPCTX_ONNX_INT32: return epctx__index(data, i, 4);
    case EPCTX_ONNX_UINT32: return epctx__index(data, i, 4) & UINT32_MAX;
    case EPCTX_ONNX_INT8: return data[i] < 128 ? data[i] : (int64_t)data[i] - 256;
    case EPCTX_ONNX_UINT8:
    case EPCTX_ONNX_BOOL: return data[i];
    default:
        memcpy(&half, data + i * 2, 2);
        return type == EPCTX_ONNX_INT16 && half >= 0x8000u ? (int64_t)half - 65536 : half;
    }
}

/* Truncates to the low bits. */
static void epctx__store_int(uint8_t *data, size_t i, uint32_t type, int64_t value) {
    const uint32_t low = (uint32_t)((uint64_t)value & UINT32_MAX);
    const uint16_t half = (uint16_t)(low & 0xffffu);
    switch (type) {
    case EPCTX_ONNX_INT64:
    case EPCTX_ONNX_UINT64: memcpy(data + i * 8, &value, 8); break;
    case EPCTX_ONNX_INT32:
    case EPCTX_ONNX_UINT32: memcpy(data + i * 4, &low, 4); break;
    case EPCTX_ONNX_INT8:
    case EPCTX_ONNX_UINT8:
    case EPCTX_ONNX_BOOL: data[i] = (uint8_t)(low & 0xff); break;
    default: memcpy(data + i * 2, &half, 2); break;
    }
}

static bool epctx__act_ok(const epctx__act *act) {
    return act->kind <= EPCTX__ACT_LAST;
}

/* -- Move: strided copy; Transpose, Slice, Concat, Expand, Pad ... -- */

typedef struct epctx__move {
    uint32_t elem;                 /* bytes */
    uint32_t rank;                 /* 1..8 */
    uint32_t from_start, to_start; /* elements */
    uint32_t dims[EPCTX_NPU_MAX_RANK];
    int32_t from[EPCTX_NPU_MAX_RANK]; /* strides in elements */
    int32_t to[EPCTX_NPU_MAX_RANK];
} epctx__move;

/* Elements spanned by a strided walk from `start`; false if it goes below zero. */
static bool epctx__span_of(const uint32_t *dims, const int32_t *strides, uint32_t rank,
                           uint64_t start, uint64_t *count) {
    uint64_t low = 0, high = 0;
    uint32_t i;
    for (i = 0; i < rank; i++) {
        uint64_t steps = dims[i] - 1u;
        if (dims[i] == 0) return false;
        if (strides[i] < 0)
            low += epctx__mul(steps, 0u - (uint64_t)(int64_t)strides[i]);
        else
            high += epctx__mul(steps, (uint64_t)strides[i]);
        if (low > EPCTX__MAX_BYTES || high > EPCTX__MAX_BYTES) return false;
    }
    *count = start + high + 1;
    return low <= start;
}

/* Elements of a walk with a dense result; 0: invalid rank or dimensions. */
static uint64_t epctx__walk_count(const uint32_t *dims, uint32_t rank) {
    uint64_t count = 1;
    uint32_t i;
    for (i = 0; i < rank && rank <= EPCTX_NPU_MAX_RANK; i++) count = epctx__mul(count, dims[i]);
    return rank >= 1 && rank <= EPCTX_NPU_MAX_RANK ? count : 0;
}

static bool epctx__check_move(const epctx__move *p, epctx__needs *needs) {
    const uint64_t count = epctx__walk_count(p->dims, p->rank);
    uint64_t from, to;
    if (!epctx__elem_ok(p->elem) || count == 0 ||
        !epctx__span_of(p->dims, p->from, p->rank, p->from_start, &from) ||
        !epctx__span_of(p->dims, p->to, p->rank, p->to_start, &to))
        return false;
    needs->in[0] = epctx__items(from, p->elem);
    needs->out[0] = epctx__items(to, p->elem);
    return count <= to; /* bounds the time of a walk that writes elements twice */
}

/* Interleaves the elements of two rows, of 4 bytes each. */
static void epctx__move_pairs(uint8_t *to, const uint8_t *first, const uint8_t *second,
                              size_t count) {
    size_t i = 0;
#ifdef EPCTX__AVX2
    for (; count - i >= 4; i += 4) {
        const __m128 a = _mm_loadu_ps((const float *)(const void *)(first + 4 * i));
        const __m128 b = _mm_loadu_ps((const float *)(const void *)(second + 4 * i));
        _mm_storeu_ps((float *)(void *)(to + 8 * i), _mm_unpacklo_ps(a, b));
        _mm_storeu_ps((float *)(void *)(to + 8 * i + 16), _mm_unpackhi_ps(a, b));
    }
#endif
    EPCTX__EACH(j, count - i, memcpy(to + 8 * (i + j), first + 4 * (i + j), 4);
                memcpy(to + 8 * (i + j) + 4, second + 4 * (i + j), 4););
}

/* Copies `part` bytes at each end; the two pieces overlap or meet. */
static EPCTX__INLINE void epctx__move_ends(uint8_t *to, const uint8_t *from, size_t size,
                                           size_t part) {
    memcpy(to, from, part);
    memcpy(to + size - part, from + size - part, part);
}

/* Copies short runs without a call or a loop. */
static EPCTX__INLINE void epctx__move_run(uint8_t *to, const uint8_t *from, size_t size) {
    if (size < 16 || size > 128)
        memcpy(to, from, size);
    else if (size <= 32)
        epctx__move_ends(to, from, size, 16);
    else if (size <= 64)
        epctx__move_ends(to, from, size, 32);
    else
        epctx__move_ends(to, from, size, 64);
}

/* Fills `size` bytes with one element of up to 4096, in copies of doubling length. */
static void epctx__repeat(uint8_t *to, const uint8_t *element, size_t size, size_t elem) {
    size_t done = elem, n;
    memcpy(to, element, elem);
    for (; done < size; done += n) {
        n = size - done < done ? size - done : done;
        n = n < 4096 ? n : 4096 - 4096 % elem; /* from the cache */
        memcpy(to + done, to, n);
    }
}

static void epctx__move_row(uint8_t *to, const uint8_t *from, size_t count, ptrdiff_t to_step,
                            ptrdiff_t from_step, size_t elem) {
    size_t i;
    if (EPCTX__LOOPS && to_step == 1 && from_step == 0)
        epctx__repeat(to, from, count * elem, elem);
    else if (EPCTX__LOOPS && elem == 4 && to_step == 1 && from_step == 2)
        EPCTX__EACH(j, count, memcpy(to + j * 4, from + j * 8, 4););
    else if (elem == 4)
        for (i = 0; i < count; i++)
            memcpy(to + (ptrdiff_t)i * to_step * 4, from + (ptrdiff_t)i * from_step * 4, 4);
    else if (elem == 1)
        for (i = 0; i < count; i++) to[(ptrdiff_t)i * to_step] = from[(ptrdiff_t)i * from_step];
    else
        for (i = 0; i < count; i++)
            memcpy(to + (ptrdiff_t)i * to_step * 8, from + (ptrdiff_t)i * from_step * 8, 8);
}

#ifdef EPCTX__AVX2
/* 4 rows of 4 columns; x holds the columns, each of 4 adjacent elements. `columns` 3: the last
 * one is 0. */
static EPCTX__INLINE void epctx__transform_tile(const float *x, ptrdiff_t from_step, size_t columns,
                                                float *y, ptrdiff_t to_step) {
    __m128 v0 = _mm_loadu_ps(x), v1 = _mm_loadu_ps(x + from_step);
    __m128 v2 = _mm_loadu_ps(x + 2 * from_step), v3 = _mm_setzero_ps();
    if (columns == 4) v3 = _mm_loadu_ps(x + 3 * from_step);
    _MM_TRANSPOSE4_PS(v0, v1, v2, v3);
    _mm_storeu_ps(y, v0);
    _mm_storeu_ps(y + to_step, v1);
    _mm_storeu_ps(y + 2 * to_step, v2);
    _mm_storeu_ps(y + 3 * to_step, v3);
}

/* to[r * to_step + c] = from[c * from_step + r], elements of 4 bytes, at least 4 rows, 3 columns.
 * Tiles of 4 by 4, the last ones overlap; strips of 32 columns stay in the cache. */
static void epctx__transform_matrix(float *to, const float *from, size_t rows, size_t columns,
                                    ptrdiff_t to_step, ptrdiff_t from_step) {
    size_t first, r, c;
    for (r = 0; columns == 3; r += 4) { /* a store writes one element of the row behind, too */
        if (r + 4 >= rows || to_step != 3) {
            for (; r < rows; r++)
                for (c = 0; c < 3; c++)
                    to[(ptrdiff_t)r * to_step + (ptrdiff_t)c] =
                        from[(ptrdiff_t)c * from_step + (ptrdiff_t)r];
            return;
        }
        epctx__transform_tile(from + r, from_step, 3, to + (ptrdiff_t)r * 3, 3);
    }
    for (first = 0; first < columns; first += 32) {
        for (r = 0; r < rows; r += 4) {
            const size_t row = r + 4 <= rows ? r : rows - 4;
            for (c = first; c < columns && c < first + 32; c += 4) {
                const size_t column = c + 4 <= columns ? c : columns - 4;
                epctx__transform_tile(from + (ptrdiff_t)column * from_step + row, from_step, 4,
                                      to + (ptrdiff_t)row * to_step + column, to_step);
            }
        }
    }
}
#endif

/* Advances a walk over several tensors: odometer and positions. False at the end. */
static bool epctx__advance(const uint32_t *dims, uint32_t rank, uint32_t *at,
                           const int32_t *const *strides, ptrdiff_t *position, uint32_t count) {
    uint32_t i, j;
    for (i = rank; i > 0; i--) {
        const uint32_t d = i - 1;
        if (++at[d] < dims[d]) {
            for (j = 0; j < count; j++) position[j] += strides[j][d];
            return true;
        }
        at[d] = 0;
        for (j = 0; j < count; j++) /* a step past the end may overflow */
            position[j] -= (ptrdiff_t)(dims[d] - 1) * strides[j][d];
    }
    return false;
}

static void epctx__swap_axes(epctx__move *p, uint32_t i, uint32_t j) {
    const uint32_t dim = p->dims[i];
    const int32_t from = p->from[i], to = p->to[i];
    p->dims[i] = p->dims[j];
    p->from[i] = p->from[j];
    p->to[i] = p->to[j];
    p->dims[j] = dim;
    p->from[j] = from;
    p->to[j] = to;
}

/* Merges 4 or 8 bytes that are adjacent in source and destination into one element. */
static void epctx__widen(epctx__move *p) {
    const uint32_t last = p->rank - 1, n = p->dims[last];
    uint32_t i, size = p->elem, bits = p->from_start | p->to_start;
    for (i = 0; i < last; i++) bits |= (uint32_t)p->from[i] | (uint32_t)p->to[i];
    if (last == 0 || p->from[last] != 1 || p->to[last] != 1 || n > 8 || size * n > 8 ||
        !epctx__elem_ok(size * n) || bits % n != 0)
        return;
    for (i = 0; i < last; i++) {
        p->from[i] /= (int32_t)n;
        p->to[i] /= (int32_t)n;
    }
    p->from_start /= n;
    p->to_start /= n;
    p->elem *= n;
    p->rank = last;
}

/* Copies the innermost rows. If `rows` is not 0, each of them is a transposed plane of that many
 * rows, `step` apart. */
static void epctx__move_lines(const epctx__move *p, uint8_t *to, const uint8_t *from, size_t rows,
                              ptrdiff_t step) {
    const uint32_t last = p->rank - 1, above = last > 0 ? last - 1 : 0;
    const size_t count = p->dims[last], lines = EPCTX__LOOPS && last > 0 ? p->dims[above] : 1;
    const ptrdiff_t elem = (ptrdiff_t)p->elem, from_step = p->from[last], to_step = p->to[last];
    size_t i;
    for (i = 0; i < lines; i++) {
        const uint8_t *x = from + (ptrdiff_t)i * p->from[above] * elem; /* one line: any step */
        uint8_t *y = to + (ptrdiff_t)i * p->to[above] * elem;
#ifdef EPCTX__AVX2
        if (rows != 0)
            epctx__transform_matrix((float *)(void *)y, (const float *)(const void *)x, rows, count,
                                    step, from_step);
#endif
        if (from_step == 1 && to_step == 1)
            epctx__move_run(y, x, count * p->elem);
        else if (rows == 0)
            epctx__move_row(y, x, count, to_step, from_step, p->elem);
    }
    (void)step;
}

static epctx_status epctx__run_move(const epctx__move *params, const epctx__args *args) {
    epctx__move walk = *params, *p = &walk;
    const int32_t *const strides[2] = {p->from, p->to};
    ptrdiff_t position[2] = {0}, step = 0;
    uint32_t at[EPCTX_NPU_MAX_RANK] = {0}, rows = 0, i = 0, last, above, block, copies = 1;
    bool pairs;
    if (EPCTX__LOOPS) epctx__widen(p);
    last = p->rank - 1;
    above = last > 0 ? last - 1 : 0;
    position[0] = (ptrdiff_t)p->from_start;
    position[1] = (ptrdiff_t)p->to_start;
#ifdef EPCTX__AVX2
    for (; i < last && rows == 0 && p->elem == 4 && p->to[last] == 1 && p->dims[last] >= 3; i++) {
        if (p->from[i] == 1 && p->from[last] != 1 && p->from[last] != 0 && p->dims[i] >= 4) {
            rows = p->dims[i];
            step = p->to[i];
            p->dims[i] = 1;
        }
    }
#endif
    pairs = EPCTX__LOOPS && last > 0 && p->elem == 4 && p->dims[last] == 2 && p->to[last] == 1 &&
            p->to[above] == 2 && p->from[above] == 1;
    if (EPCTX__LOOPS && rows == 0 && !pairs && last > 0 && p->dims[last] < 8 &&
        p->dims[above] > p->dims[last])
        epctx__swap_axes(p, above, last); /* rows are long enough to pay for a call */
    block = pairs ? 2 * p->dims[above] : p->dims[last];
    i = pairs ? above : last; /* dimensions around the block */
    if (EPCTX__LOOPS && i > 0 &&
        (pairs || (p->from[last] == 1 && p->to[last] == 1 && p->dims[above] >= 8)) &&
        p->from[i - 1] == 0 && p->to[i - 1] == (int32_t)block && block <= 512) {
        copies = p->dims[i - 1];
        p->dims[i - 1] = 1;
    }
    block *= p->elem;
    do {
        const uint8_t *from = (const uint8_t *)args->in[0] + position[0] * (ptrdiff_t)p->elem;
        uint8_t *to = (uint8_t *)args->out[0] + position[1] * (ptrdiff_t)p->elem;
        if (pairs)
            epctx__move_pairs(to, from, from + p->from[last] * 4, p->dims[above]);
        else
            epctx__move_lines(p, to, from, rows, step);
        if (copies > 1) epctx__repeat(to + block, to, (size_t)(copies - 1) * block, block);
    } while (epctx__advance(p->dims, EPCTX__LOOPS ? above : last, at, strides, position, 2));
    return EPCTX_OK;
}

/* -- Fill -- */

typedef struct epctx__fill {
    uint32_t count; /* of elements */
    uint32_t elem;  /* bytes */
    uint32_t low, high;
} epctx__fill;

static bool epctx__check_fill(const epctx__fill *p, epctx__needs *needs) {
    needs->out[0] = epctx__items(p->count, p->elem);
    return epctx__elem_ok(p->elem);
}

static epctx_status epctx__run_fill(const epctx__fill *p, const epctx__args *args) {
    const uint64_t wide = p->low | (uint64_t)p->high << 32;
    const uint8_t byte = (uint8_t)(p->low & 0xff);
    const void *element =
        p->elem == 8 ? (const void *)&wide : (p->elem == 4 ? (const void *)&p->low : &byte);
    if (p->count > 0)
        epctx__repeat((uint8_t *)args->out[0], (const uint8_t *)element, (size_t)p->count * p->elem,
                      p->elem);
    return EPCTX_OK;
}

/* -- Unary: an activation on its own -- */

typedef struct epctx__unary {
    uint32_t count;
    epctx__act act;
} epctx__unary;

static bool epctx__check_unary(const epctx__unary *p, epctx__needs *needs) {
    needs->in[0] = needs->out[0] = epctx__floats(p->count);
    return epctx__act_ok(&p->act) && p->act.kind != EPCTX__ACT_NONE;
}

/* True if every magnitude |x[i]| is below 2^exponent. */
static EPCTX__INLINE bool epctx__all_near(const float *x, size_t count, uint32_t exponent) {
    const int32_t limit = (int32_t)(exponent + 127) << 23;
    uint32_t large = 0;
    EPCTX__EACH(i, count, large |= (int32_t)(epctx__bits_of(x[i]) & 0x7fffffffu) < limit ? 0 : 1;);
    return large == 0;
}

/* Computes sines, cosines and tangents. False: another function, or a magnitude of 2^20 or more. */
static EPCTX__INLINE bool epctx__waves_each(const float *x, float *y, size_t count, uint32_t kind) {
    const double shift = kind == EPCTX__ACT_COS ? 0.5 : 0.0;
    if (EPCTX__ACT_SIN > EPCTX__ACT_LAST || kind < EPCTX__ACT_SIN || kind > EPCTX__ACT_TAN ||
        !epctx__all_near(x, count, 20))
        return false;
    if (kind == EPCTX__ACT_TAN)
        EPCTX__EACH_HINT(EPCTX__LONG_STEP, i, count, const double v = (double)x[i];
                         y[i] = epctx__sine_near(v, 0.0) / epctx__sine_near(v, 0.5););
    else
        EPCTX__EACH_HINT(EPCTX__LONG_STEP, i, count, y[i] = epctx__sine_near((double)x[i], shift););
    return true;
}

/* x and y are the same array or do not overlap. */
static EPCTX__INLINE void epctx__act_each_body(epctx__level fast, const float *x, float *y,
                                               size_t count, const epctx__act *act) {
    const float a = act->a, b = act->b;
    (void)fast;
    (void)a;
    (void)b;
    if (epctx__waves_each(x, y, count, act->kind)) return;
    switch (act->kind) {
#define EPCTX__ACT_CASE(name, op_type, since, same, value) \
    case EPCTX__ACT_##name: \
        if (EPCTX__ACT_##name <= EPCTX__ACT_LAST) \
            EPCTX__EACH(i, count, const float v = x[i]; y[i] = value;); \
        break;
        EPCTX_NPU_ACT_LIST(EPCTX__ACT_CASE)
#undef EPCTX__ACT_CASE
    default: break;
    }
}

EPCTX__FORMS(fast, epctx__act_each,
             (epctx__level fast, const float *x, float *y, size_t count, const epctx__act *act),
             (fast, x, y, count, act))

#ifdef EPCTX__AVX2
/* `count` is a multiple of 8. The instruction alone would give other NaNs than epctx__sqrt. */
EPCTX__TARGET static void epctx__sqrt_avx2(const float *x, float *y, size_t count) {
    size_t i;
    for (i = 0; i < count; i += 8) {
        const __m256 v = _mm256_loadu_ps(x + i);
        const __m256 below = _mm256_cmp_ps(v, _mm256_setzero_ps(), _CMP_LT_OQ);
        __m256 r = _mm256_blendv_ps(_mm256_sqrt_ps(v), v, _mm256_cmp_ps(v, v, _CMP_UNORD_Q));
        r = _mm256_blendv_ps(r, _mm256_set1_ps(epctx__float_of(0x7fc00000u)), below);
        _mm256_storeu_ps(y + i, r);
    }
}
#endif

/* `count` is a multiple of 16 unless `fast` is EPCTX__PORTABLE. */
static void epctx__act_whole(epctx__level fast, const float *x, float *y, size_t count,
                             const epctx__act *act) {
#ifdef EPCTX__AVX2
    if (act->kind == EPCTX__ACT_SQRT && fast != EPCTX__PORTABLE) {
        epctx__sqrt_avx2(x, y, count);
        return;
    }
#endif
    epctx__act_each(fast, x, y, count, act);
}

static void epctx__act_row(epctx__level fast, const float *x, float *y, size_t count,
                           const epctx__act *act) {
    const size_t rest = fast != EPCTX__PORTABLE ? count % 16 : 0;
    float last[16] = {0.0f};
    epctx__act_whole(fast, x, y, count - rest, act);
    if (rest > 0) { /* a whole vector at once */
        memcpy(last, x + count - rest, rest * sizeof *y);
        epctx__act_whole(fast, last, last, 16, act);
        memcpy(y + count - rest, last, rest * sizeof *y);
    }
}

static void epctx__activate(epctx__level fast, float *y, size_t count, const epctx__act *act) {
    if (act->kind != EPCTX__ACT_NONE) epctx__act_row(fast, y, y, count, act);
}

static epctx_status epctx__run_unary(const epctx__unary *p, const epctx__args *args) {
    const float *x = (const float *)args->in[0];
    float *y = (float *)args->out[0];
    size_t i;
    for (i = 0; i < p->count; i += 2048) /* what is read twice is in the cache */
        epctx__act_row(args->fast, x + i, y + i, p->count - i < 2048 ? p->count - i : 2048,
                       &p->act);
    return EPCTX_OK;
}

/* -- walks over operands that are broadcast: Binary, Exact and Where -- */

#define EPCTX__WALKED 3 /* operands at most */

/* Operands of a walk with a dense result; strides in elements, 0: broadcast. */
typedef struct epctx__rows {
    const uint32_t *dims;
    uint32_t rank, inputs;
    const int32_t *strides[EPCTX__WALKED];
    uint32_t elem[EPCTX__WALKED], out_elem; /* bytes */
} epctx__rows;

/* Some elements, the operands side by side. */
typedef struct epctx__row {
    epctx__level fast;
    bool fails; /* a divisor is 0 */
    const void *params;
    const void *in[EPCTX__WALKED];
    void *out;
    size_t count;
} epctx__row;

static bool epctx__check_rows(const epctx__rows *w, epctx__needs *needs) {
    const uint64_t count = epctx__walk_count(w->dims, w->rank);
    uint64_t span;
    uint32_t k;
    for (k = 0; k < w->inputs; k++) {
        if (count == 0 || !epctx__span_of(w->dims, w->strides[k], w->rank, 0, &span)) return false;
        needs->in[k] = epctx__items(span, w->elem[k]);
    }
    needs->out[0] = epctx__items(count, w->out_elem);
    return true;
}

/* Calls `row_fn` for every row, for a block of it where operands do not lie side by side and are
 * copied. */
static epctx_status epctx__walk_rows(const epctx__rows *w, const epctx__args *args,
                                     const void *params, void (*row_fn)(epctx__row *r)) {
    const uint32_t last = w->rank - 1;
    const size_t count = w->dims[last];
    uint64_t room[EPCTX__WALKED][128];
    epctx__row r = {args->fast, false, params, {NULL}, NULL, 0};
    ptrdiff_t position[EPCTX__WALKED] = {0};
    uint32_t at[EPCTX_NPU_MAX_RANK] = {0}, k;
    uint8_t *y = (uint8_t *)args->out[0];
    size_t block = count, i;
    for (k = 0; k < w->inputs; k++) {
        const size_t most = w->strides[k][last] != 1 ? sizeof room[k] / w->elem[k] : count;
        block = block < most ? block : most;
    }
    do {
        for (i = 0; i < count; i += r.count) {
            r.count = count - i < block ? count - i : block;
            for (k = 0; k < w->inputs; k++) {
                const ptrdiff_t step = w->strides[k][last], elem = (ptrdiff_t)w->elem[k];
                const uint8_t *x =
                    (const uint8_t *)args->in[k] + (position[k] + (ptrdiff_t)i * step) * elem;
                if (step != 1 && (step != 0 || i == 0)) /* the first block is the longest */
                    epctx__move_row((uint8_t *)room[k], x, r.count, 1, step, w->elem[k]);
                r.in[k] = step == 1 ? (const void *)x : room[k];
            }
            r.out = y;
            row_fn(&r);
            if (r.fails) return epctx_fail(args->error, EPCTX_ERR_ARG, "division by 0");
            y += r.count * w->out_elem;
        }
    } while (epctx__advance(w->dims, last, at, w->strides, position, w->inputs));
    return EPCTX_OK;
}

/* Defines epctx__run_name, from epctx__rows_name(p) and epctx__name_row_body(r). */
#define EPCTX__RUN_ROWS(name) \
    EPCTX__FORMS(r->fast, epctx__##name##_row, (epctx__row * r), (r)) \
    static epctx_status epctx__run_##name(const epctx__##name *p, const epctx__args *args) { \
        const epctx__rows w = epctx__rows_##name(p); \
        return epctx__walk_rows(&w, args, p, epctx__##name##_row); \
    }

/* -- Binary: element-wise, with broadcasting -- */

#define EPCTX_NPU_BINARY_LIST(X) \
    X(ADD, a + b) \
    X(SUB, a - b) \
    X(MUL, a *b) \
    X(DIV, a / b) \
    X(MIN, a != a || a < b ? a : b) \
    X(MAX, a != a || a > b ? a : b) \
    X(PRELU, epctx__choose(a < 0.0f, a * b, a)) \
    X(POW, epctx__pow(a, b)) \
    X(FMOD, epctx__fmod(a, b))

typedef enum epctx__binary_kind {
#define EPCTX__BINARY_ENUM(name, value) EPCTX__BINARY_##name,
    EPCTX_NPU_BINARY_LIST(EPCTX__BINARY_ENUM)
#undef EPCTX__BINARY_ENUM
        EPCTX__BINARY_COUNT
} epctx__binary_kind;

typedef struct epctx__binary {
    uint32_t kind;
    uint32_t rank;
    uint32_t dims[EPCTX_NPU_MAX_RANK];
    int32_t a[EPCTX_NPU_MAX_RANK]; /* strides in elements, 0: broadcast; the result is dense */
    int32_t b[EPCTX_NPU_MAX_RANK];
    epctx__act act;
} epctx__binary;

static epctx__rows epctx__rows_binary(const epctx__binary *p) {
    const epctx__rows w = {p->dims, p->rank, 2, {p->a, p->b}, {4, 4}, 4};
    return w;
}

static bool epctx__check_binary(const epctx__binary *p, epctx__needs *needs) {
    const epctx__rows w = epctx__rows_binary(p);
    return p->kind < EPCTX__BINARY_COUNT && epctx__act_ok(&p->act) && epctx__check_rows(&w, needs);
}

static EPCTX__INLINE void epctx__binary_row_body(epctx__row *r) {
    const epctx__binary *p = (const epctx__binary *)r->params;
    const float *x = (const float *)r->in[0], *z = (const float *)r->in[1];
    const size_t count = r->count;
    float *y = (float *)r->out;
    switch (p->kind) {
#define EPCTX__BINARY_CASE(name, value) \
    case EPCTX__BINARY_##name: \
        EPCTX__EACH(i, count, const float a = x[i]; const float b = z[i]; y[i] = value;); \
        break;
        EPCTX_NPU_BINARY_LIST(EPCTX__BINARY_CASE)
#undef EPCTX__BINARY_CASE
    default: break;
    }
    epctx__activate(r->fast, y, count, &p->act);
}

EPCTX__RUN_ROWS(binary)

/* -- Affine: y = x * scale[channel] + shift[channel]; BatchNormalization -- */

typedef struct epctx__affine {
    uint32_t outer, channels, inner;
    epctx__act act;
} epctx__affine;

static bool epctx__check_affine(const epctx__affine *p, epctx__needs *needs) {
    needs->in[0] = needs->out[0] = epctx__floats(epctx__mul3(p->outer, p->channels, p->inner));
    needs->in[1] = needs->in[2] = epctx__floats(p->channels);
    return epctx__act_ok(&p->act);
}

static EPCTX__INLINE void epctx__all_affine_body(const epctx__affine *p, const epctx__args *args) {
    const float *x = (const float *)args->in[0];
    const float *scale = (const float *)args->in[1], *shift = (const float *)args->in[2];
    float *y = (float *)args->out[0];
    size_t o, c;
    for (o = 0; o < p->outer && p->inner == 1; o++) { /* channels last */
        EPCTX__EACH(j, p->channels, y[j] = x[j] * scale[j] + shift[j];);
        epctx__activate(args->fast, y, p->channels, &p->act);
        x += p->channels;
        y += p->channels;
    }
    for (; o < p->outer; o++) {
        for (c = 0; c < p->channels; c++) {
            const float f = scale[c], g = shift[c];
            EPCTX__EACH(i, p->inner, y[i] = x[i] * f + g;);
            epctx__activate(args->fast, y, p->inner, &p->act);
            x += p->inner;
            y += p->inner;
        }
    }
}

EPCTX__RUN(affine, epctx__affine)

/* -- Pack: a matrix in blocks of rows, [batch][row block][k][row in block], zero-padded -- */

typedef struct epctx__pack {
    uint32_t batch, rows, depth, block;
    uint32_t batch_stride, row_stride, depth_stride;
    uint32_t inner, inner_stride; /* k / inner steps of depth_stride and k % inner of the other */
} epctx__pack;

static uint64_t epctx__packed(uint64_t batch, uint64_t rows, uint64_t depth, uint64_t block) {
    return epctx__mul4(batch, (rows + block - 1) / block, block, depth);
}

/* Elements up to the last element of a walk with three strides. */
static uint64_t epctx__reach(uint64_t n1, uint64_t s1, uint64_t n2, uint64_t s2, uint64_t n3,
                             uint64_t s3) {
    if (n1 == 0 || n2 == 0 || n3 == 0) return 0;
    return epctx__mul(n1 - 1, s1) + epctx__mul(n2 - 1, s2) + epctx__mul(n3 - 1, s3) + 1;
}

static bool epctx__check_pack(const epctx__pack *p, epctx__needs *needs) {
    if (p->block == 0 || p->block > 64 || p->inner == 0 || p->depth % p->inner != 0) return false;
    needs->in[0] = epctx__floats(epctx__reach(p->batch, p->batch_stride, p->rows, p->row_stride,
                                              p->depth / p->inner, p->depth_stride) +
                                 epctx__mul(p->inner - 1u, p->inner_stride));
    needs->out[0] = epctx__floats(epctx__packed(p->batch, p->rows, p->depth, p->block));
    return true;
}

/* When the compiler packs, the floats lie in the model and may be unaligned. */
static epctx_status epctx__run_pack(const epctx__pack *p, const epctx__args *args) {
    float *y = (float *)args->out[0];
    size_t g, r, k, i, j;
    for (g = 0; g < p->batch; g++) {
        const uint8_t *x = (const uint8_t *)args->in[0] + g * p->batch_stride * sizeof *y;
        for (r = 0; r < p->rows; r += p->block) {
            const size_t rows = p->rows - r < p->block ? p->rows - r : p->block;
            for (k = 0; k < p->depth / p->inner; k++) {
                for (i = 0; i < p->inner; i++) {
                    const uint8_t *from =
                        x +
                        (r * p->row_stride + k * p->depth_stride + i * p->inner_stride) * sizeof *y;
                    for (j = 0; j < p->block; j++, y++) {
                        *y = 0.0f;
                        if (j < rows) memcpy(y, from + j * p->row_stride * sizeof *y, sizeof *y);
                    }
                }
            }
        }
    }
    return EPCTX_OK;
}

/* -- the register tile that Conv and Gemm share -- */

#if defined(__AVX__)
#define EPCTX__WIDTH 16
#else
#define EPCTX__WIDTH 8
#endif
#define EPCTX__MOST_ROWS 12 /* of a tile on any machine */

/* The left operand: for each run, the addresses of EPCTX__MOST_ROWS rows, of which the tile
 * reads `count` elements `step` apart. */
typedef struct epctx__left {
    const float *const *at;
    size_t runs, count, step;
} epctx__left;

/* Epilogue of a sum: y = sum * scale + bias + add, clamped to low..high. */
typedef struct epctx__epilogue {
    float *y;          /* rows every `row` elements */
    const float *bias; /* one number per column, or NULL */
    const float *add;  /* laid out like y, or NULL */
    size_t row;
    size_t rows, columns; /* valid ones of the tile */
    float scale, low, high;
    epctx__level fast; /* of the tile */
} epctx__epilogue;

/* Limits replace activations up to EPCTX__ACT_CLIP. */
static epctx__epilogue epctx__epilogue_for(epctx__level fast, const epctx__act *act) {
    epctx__epilogue f;
    memset(&f, 0, sizeof f);
    f.fast = fast;
    f.scale = 1.0f;
    f.low = epctx__float_of(0xff800000u);
    f.high = epctx__float_of(0x7f800000u);
    if (act->kind == EPCTX__ACT_RELU) f.low = 0.0f;
    if (act->kind == EPCTX__ACT_CLIP) f.low = act->a;
    if (act->kind == EPCTX__ACT_CLIP) f.high = act->b;
    return f;
}

static EPCTX__INLINE void epctx__epilogue_row(const epctx__epilogue *f, const float *sums, size_t r,
                                              size_t columns) {
    const float scale = f->scale, low = f->low, high = f->high;
    float *y = f->y + r * f->row, t[EPCTX__COLUMNS];
    size_t j;
    for (j = 0; j < EPCTX__COLUMNS; j++) t[j] = sums[j] * scale;
    for (j = 0; j < columns && f->bias != NULL; j++) t[j] += f->bias[j];
    for (j = 0; j < columns && f->add != NULL; j++) t[j] += f->add[r * f->row + j];
    for (j = 0; j < EPCTX__COLUMNS; j++) {
        const float v = t[j];
        t[j] = v < low ? low : (v > high ? high : v);
    }
    for (j = 0; j < columns; j++) y[j] = t[j];
}

static EPCTX__INLINE void epctx__epilogue_tile(const epctx__epilogue *f, const float *tile) {
    size_t r;
    for (r = 0; r < f->rows; r++)
        if (f->columns == EPCTX__COLUMNS)
            epctx__epilogue_row(f, tile + r * EPCTX__COLUMNS, r, EPCTX__COLUMNS);
        else
            epctx__epilogue_row(f, tile + r * EPCTX__COLUMNS, r, f->columns);
}

/* tile[r][j] = sum over k of a[r][k] * b[k][j] for EPCTX__ROWS rows and EPCTX__WIDTH columns; b and
 * the tile have rows of EPCTX__COLUMNS. */
static void epctx__tile_part(const epctx__left *a, const float *b, float *tile) {
    EPCTX__UNFUSED
    const float *const *at = a->at;
    float c[EPCTX__ROWS][EPCTX__WIDTH];
    size_t t, k, r, j;
    EPCTX__UNROLL
    for (r = 0; r < EPCTX__ROWS; r++)
        for (j = 0; j < EPCTX__WIDTH; j++) c[r][j] = 0.0f;
    for (t = 0; t < a->runs; t++, at += EPCTX__MOST_ROWS) {
        for (k = 0; k < a->count; k++, b += EPCTX__COLUMNS) {
            EPCTX__UNROLL
            for (r = 0; r < EPCTX__ROWS; r++) {
                const float x = at[r][k * a->step];
                for (j = 0; j < EPCTX__WIDTH; j++) c[r][j] += x * b[j];
            }
        }
    }
    EPCTX__UNROLL
    for (r = 0; r < EPCTX__ROWS; r++)
        for (j = 0; j < EPCTX__WIDTH; j++) tile[r * EPCTX__COLUMNS + j] = c[r][j];
}

#ifdef EPCTX__AVX2

/* -- vectors: what the kernels below do with one, a function for each width -- */

/* 256 or 512 bits. */
typedef union epctx__vector {
    __m256 f256;
    __m512 f512;
    __m256i i256; /* integers of any size */
    __m512i i512;
} epctx__vector;

/* Which elements of a vector are there. */
typedef union epctx__lanes {
    __m256i m256;
    __mmask16 m512;
} epctx__lanes;

/* Calls the form of `name` for vectors of `bits`. A kernel is one function for both widths. Where
 * it is inlined, `bits` is a constant and the other form is gone. It is compiled for every
 * processor, so it passes vectors by address. */
#define EPCTX__BY_WIDTH(bits, name, arguments) \
    ((bits) == 512 ? name##_512 arguments : name##_256 arguments)

EPCTX__TARGET static inline void epctx__zero_256(epctx__vector *v) {
    v->f256 = _mm256_setzero_ps();
}

EPCTX__WIDE static inline void epctx__zero_512(epctx__vector *v) {
    v->f512 = _mm512_setzero_ps();
}

/* One number in every lane. */
EPCTX__TARGET static inline void epctx__splat_256(epctx__vector *v, float x) {
    v->f256 = _mm256_set1_ps(x);
}

EPCTX__WIDE static inline void epctx__splat_512(epctx__vector *v, float x) {
    v->f512 = _mm512_set1_ps(x);
}

EPCTX__TARGET static inline void epctx__load_256(epctx__vector *v, const float *x) {
    v->f256 = _mm256_loadu_ps(x);
}

EPCTX__WIDE static inline void epctx__load_512(epctx__vector *v, const float *x) {
    v->f512 = _mm512_loadu_ps(x);
}

EPCTX__TARGET static inline void epctx__add_256(epctx__vector *v, const epctx__vector *x) {
    v->f256 = _mm256_add_ps(v->f256, x->f256);
}

EPCTX__WIDE static inline void epctx__add_512(epctx__vector *v, const epctx__vector *x) {
    v->f512 = _mm512_add_ps(v->f512, x->f512);
}

EPCTX__TARGET static inline void epctx__multiply_256(epctx__vector *v, const epctx__vector *x) {
    v->f256 = _mm256_mul_ps(v->f256, x->f256);
}

EPCTX__WIDE static inline void epctx__multiply_512(epctx__vector *v, const epctx__vector *x) {
    v->f512 = _mm512_mul_ps(v->f512, x->f512);
}

EPCTX__TARGET static inline void epctx__divide_256(epctx__vector *v, const epctx__vector *x) {
    v->f256 = _mm256_div_ps(v->f256, x->f256);
}

EPCTX__WIDE static inline void epctx__divide_512(epctx__vector *v, const epctx__vector *x) {
    v->f512 = _mm512_div_ps(v->f512, x->f512);
}

/* Adds x * y, rounded once. */
EPCTX__TARGET static inline void epctx__fused_256(epctx__vector *v, const epctx__vector *x,
                                                  const epctx__vector *y) {
    v->f256 = _mm256_fmadd_ps(x->f256, y->f256, v->f256);
}

EPCTX__WIDE static inline void epctx__fused_512(epctx__vector *v, const epctx__vector *x,
                                                const epctx__vector *y) {
    v->f512 = _mm512_fmadd_ps(x->f512, y->f512, v->f512);
}

/* The greater number; x if one of both is NaN. */
EPCTX__TARGET static inline void epctx__greater_256(epctx__vector *v, const epctx__vector *x) {
    v->f256 = _mm256_max_ps(v->f256, x->f256);
}

EPCTX__WIDE static inline void epctx__greater_512(epctx__vector *v, const epctx__vector *x) {
    v->f512 = _mm512_max_ps(v->f512, x->f512);
}

/* Limits the numbers; NaN stays NaN. */
EPCTX__TARGET static inline void epctx__limit_256(epctx__vector *v, float low, float high) {
    v->f256 = _mm256_min_ps(_mm256_set1_ps(high), v->f256);
    v->f256 = _mm256_max_ps(_mm256_set1_ps(low), v->f256);
}

EPCTX__WIDE static inline void epctx__limit_512(epctx__vector *v, float low, float high) {
    v->f512 = _mm512_min_ps(_mm512_set1_ps(high), v->f512);
    v->f512 = _mm512_max_ps(_mm512_set1_ps(low), v->f512);
}

/* The first `count` lanes, or all. */
EPCTX__TARGET static inline void epctx__first_256(epctx__lanes *mask, size_t count) {
    mask->m256 = _mm256_cmpgt_epi32(_mm256_set1_epi32((int32_t)(count < 8 ? count : 8)),
                                    _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

EPCTX__WIDE static inline void epctx__first_512(epctx__lanes *mask, size_t count) {
    mask->m512 = (__mmask16)(count >= 16 ? 0xffffu : (1u << count) - 1);
}

/* The numbers in the lanes of the mask, 0 in the others. */
EPCTX__TARGET static inline void epctx__load_some_256(epctx__vector *v, const epctx__lanes *mask,
                                                      const float *x) {
    v->f256 = _mm256_maskload_ps(x, mask->m256);
}

EPCTX__WIDE static inline void epctx__load_some_512(epctx__vector *v, const epctx__lanes *mask,
                                                    const float *x) {
    v->f512 = _mm512_maskz_loadu_ps(mask->m512, x);
}

/* Writes the lanes of the mask, which is that of the first `count`. */
EPCTX__TARGET static inline void
epctx__store_some_256(const epctx__vector *v, const epctx__lanes *mask, size_t count, float *y) {
    if (count >= 8) /* stores with a mask are slow */
        _mm256_storeu_ps(y, v->f256);
    else
        _mm256_maskstore_ps(y, mask->m256, v->f256);
}

EPCTX__WIDE static inline void
epctx__store_some_512(const epctx__vector *v, const epctx__lanes *mask, size_t count, float *y) {
    (void)count;
    _mm512_mask_storeu_ps(y, mask->m512, v->f512);
}

/* The epilogue of a vector of columns of row `r`. */
static EPCTX__INLINE void epctx__epilogue_vector(size_t bits, const epctx__epilogue *f, size_t r,
                                                 size_t column, epctx__vector *v) {
    const size_t count = f->columns > column ? f->columns - column : 0;
    const size_t at = r * f->row + column;
    epctx__lanes mask;
    epctx__vector x;
    EPCTX__BY_WIDTH(bits, epctx__first, (&mask, count));
    EPCTX__BY_WIDTH(bits, epctx__splat, (&x, f->scale));
    EPCTX__BY_WIDTH(bits, epctx__multiply, (v, &x));
    if (f->bias != NULL) {
        EPCTX__BY_WIDTH(bits, epctx__load_some, (&x, &mask, f->bias + column));
        EPCTX__BY_WIDTH(bits, epctx__add, (v, &x));
    }
    if (f->add != NULL) {
        EPCTX__BY_WIDTH(bits, epctx__load_some, (&x, &mask, f->add + at));
        EPCTX__BY_WIDTH(bits, epctx__add, (v, &x));
    }
    EPCTX__BY_WIDTH(bits, epctx__limit, (v, f->low, f->high));
    EPCTX__BY_WIDTH(bits, epctx__store_some, (v, &mask, count, f->y + at));
}

/* Adds the products of element `from` of `rows` rows and of the vectors at b, b + next and so
 * on. */
static EPCTX__INLINE void epctx__products_step(size_t bits, const float *const *at, size_t from,
                                               const float *b, size_t next, size_t rows,
                                               size_t vectors, epctx__vector (*sum)[4]) {
    const size_t lanes = bits / 32;
    epctx__vector x, y[4];
    size_t r, j;
    EPCTX__UNROLL
    for (j = 0; j < 4; j++)
        if (j < vectors)
            EPCTX__BY_WIDTH(bits, epctx__load, (&y[j], b + j * lanes / 16 * next + j * lanes % 16));
    EPCTX__UNROLL
    for (r = 0; r < EPCTX__MOST_ROWS; r++) {
        if (r < rows) {
            EPCTX__BY_WIDTH(bits, epctx__splat, (&x, at[r][from]));
            EPCTX__UNROLL
            for (j = 0; j < 4; j++)
                if (j < vectors) EPCTX__BY_WIDTH(bits, epctx__fused, (&sum[r][j], &x, &y[j]));
        }
    }
}

/* `rows` rows by `vectors` vectors of columns. */
static EPCTX__INLINE void epctx__products(size_t bits, const epctx__left *a, const float *b,
                                          const epctx__epilogue *f, size_t rows, size_t vectors) {
    const epctx__epilogue end = *f; /* stores cannot change a copy */
    const float *const *at = a->at;
    const size_t next = a->runs * a->count * EPCTX__COLUMNS, lanes = bits / 32;
    epctx__vector sum[EPCTX__MOST_ROWS][4];
    size_t t, k, from, r, j;
    EPCTX__UNROLL
    for (r = 0; r < EPCTX__MOST_ROWS; r++) {
        EPCTX__UNROLL
        for (j = 0; j < 4; j++) EPCTX__BY_WIDTH(bits, epctx__zero, (&sum[r][j]));
    }
    for (t = 0; t < a->runs; t++, at += EPCTX__MOST_ROWS)
        for (from = 0, k = 0; k < a->count; k++, from += a->step, b += EPCTX__COLUMNS)
            epctx__products_step(bits, at, from, b, next, rows, vectors, sum);
    EPCTX__UNROLL
    for (r = 0; r < EPCTX__MOST_ROWS; r++) {
        if (r < rows && r < end.rows) {
            EPCTX__UNROLL
            for (j = 0; j < 4; j++)
                if (j < vectors && (bits == 512 || j == 0 || j * lanes < end.columns))
                    epctx__epilogue_vector(bits, &end, r, j * lanes, &sum[r][j]);
        }
    }
}

EPCTX__TARGET EPCTX__FLAT static void epctx__tile_avx2(const epctx__left *a, const float *b,
                                                       const epctx__epilogue *f) {
    epctx__products(256, a, b, f, 6, 2);
}

EPCTX__WIDE EPCTX__FLAT static void epctx__tile_wide(const epctx__left *a, const float *b,
                                                     const epctx__epilogue *f) {
    if (f->columns > 3 * EPCTX__COLUMNS)
        epctx__products(512, a, b, f, 6, 4);
    else if (f->columns > 2 * EPCTX__COLUMNS)
        epctx__products(512, a, b, f, 8, 3);
    else if (f->columns > EPCTX__COLUMNS && f->rows > 6)
        epctx__products(512, a, b, f, 12, 2);
    else if (f->columns > EPCTX__COLUMNS)
        epctx__products(512, a, b, f, 6, 2);
    else
        epctx__products(512, a, b, f, 12, 1);
}

#endif /* EPCTX__AVX2 */

/* Columns and rows that epctx__tile takes at once; fewer columns leave registers for rows. */
static size_t epctx__most_columns(epctx__level fast) {
    return fast == EPCTX__LEVEL_AVX512 ? 4 * EPCTX__COLUMNS : EPCTX__COLUMNS;
}

static size_t epctx__most_rows(epctx__level fast, size_t columns) {
    if (fast != EPCTX__LEVEL_AVX512) return fast == EPCTX__PORTABLE ? EPCTX__ROWS : 6;
    return columns > 3 * EPCTX__COLUMNS ? 6 : columns > 2 * EPCTX__COLUMNS ? 8 : EPCTX__MOST_ROWS;
}

/* Applies f to the products of f->rows rows and f->columns columns, in consecutive blocks. The
 * addresses of rows beyond f->rows must be readable, too. */
static void epctx__tile(const epctx__left *a, const float *b, const epctx__epilogue *f) {
    float tile[EPCTX__ROWS * EPCTX__COLUMNS];
    size_t c;
#ifdef EPCTX__AVX2
    if (f->fast == EPCTX__LEVEL_AVX512) {
        epctx__tile_wide(a, b, f);
        return;
    }
    if (f->fast != EPCTX__PORTABLE) {
        epctx__tile_avx2(a, b, f);
        return;
    }
#endif
    for (c = 0; c < EPCTX__COLUMNS; c += EPCTX__WIDTH) epctx__tile_part(a, b + c, tile + c);
    epctx__epilogue_tile(f, tile);
}

/* One row by one block of columns. Eight partial sums, each of every eighth step, hide the latency
 * of the additions. */
static EPCTX__INLINE void epctx__tile_row_body(const float *a, size_t step, const float *b,
                                               size_t depth, const epctx__epilogue *f) {
    float c[8][EPCTX__COLUMNS];
    size_t k, j, u;
    EPCTX__UNROLL
    for (u = 0; u < 8; u++)
        for (j = 0; j < EPCTX__COLUMNS; j++) c[u][j] = 0.0f;
    for (k = 0; depth - k >= 8; k += 8) {
        EPCTX__UNROLL
        for (u = 0; u < 8; u++) {
            const float x = a[(k + u) * step];
            for (j = 0; j < EPCTX__COLUMNS; j++) c[u][j] += x * b[(k + u) * EPCTX__COLUMNS + j];
        }
    }
    for (; k < depth; k++)
        for (j = 0; j < EPCTX__COLUMNS; j++) c[0][j] += a[k * step] * b[k * EPCTX__COLUMNS + j];
    for (j = 0; j < EPCTX__COLUMNS; j++)
        c[0][j] = ((c[0][j] + c[1][j]) + (c[2][j] + c[3][j])) +
                  ((c[4][j] + c[5][j]) + (c[6][j] + c[7][j]));
    epctx__epilogue_tile(f, c[0]);
}

EPCTX__FORMS(f->fast, epctx__tile_row,
             (const float *a, size_t step, const float *b, size_t depth, const epctx__epilogue *f),
             (a, step, b, depth, f))

/* -- Conv: 2-D convolution, channels last -- */

/* A sliding window over a plane, for Conv, Depthwise and Pool. */
typedef struct epctx__window {
    uint32_t in_h, in_w, out_h, out_w;
    uint32_t kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w;
    uint32_t top, left, bottom, right; /* padding */
} epctx__window;

/* All positions fit in 31 bits; windows exceed the padding by less than a stride (ceil_mode). */
static bool epctx__axis_ok(uint64_t in, uint64_t out, uint64_t kernel, uint64_t stride,
                           uint64_t dilation, uint64_t before, uint64_t after) {
    const uint64_t top = INT32_MAX / 4;
    uint64_t reach;
    if (in < 1 || out < 1 || kernel < 1 || stride < 1 || dilation < 1 || in > top || out > top ||
        kernel > top || stride > top || dilation > top || before > top || after > top)
        return false;
    reach = (out - 1) * stride + (kernel - 1) * dilation + 1;
    return reach <= top && reach < in + before + after + stride;
}

static bool epctx__window_ok(const epctx__window *w) {
    return epctx__axis_ok(w->in_h, w->out_h, w->kernel_h, w->stride_h, w->dilation_h, w->top,
                          w->bottom) &&
           epctx__axis_ok(w->in_w, w->out_w, w->kernel_w, w->stride_w, w->dilation_w, w->left,
                          w->right);
}

/* Indices i in low..high-1 of `count` for which start + i * step is in 0..size-1. */
static void epctx__inside(int32_t start, int32_t step, int32_t count, int32_t size, int32_t *low,
                          int32_t *high) {
    int32_t first = start < 0 ? -start : 0, end = start < size ? size - start : 0;
    if (step != 1) { /* divisions are slow */
        first = (first + step - 1) / step;
        end = (end + step - 1) / step;
    }
    *high = end < count ? end : count;
    *low = first < *high ? first : *high;
}

typedef struct epctx__conv {
    uint32_t batch, groups, in_channels, out_channels; /* channels of one group */
    epctx__window window;
    epctx__act act;
} epctx__conv;

/* Positions of an axis that the windows cover, padding included. */
static uint64_t epctx__covered(uint64_t out, uint64_t kernel, uint64_t stride, uint64_t dilation) {
    return (out - 1) * stride + (kernel - 1) * dilation + 1;
}

/* The workspace of a convolution: addresses of the rows of a tile, then, if windows reach outside
 * of the image, a ring of those of its padded rows that the windows of a tile need. */
typedef struct epctx__conv_space {
    bool copies;
    uint64_t runs;         /* of adjacent taps of a window */
    uint64_t slots, width; /* rows that the windows read, pixels of each */
    uint64_t addresses, bytes;
} epctx__conv_space;

static epctx__conv_space epctx__conv_needs(const epctx__conv *p) {
    const epctx__window *w = &p->window;
    const uint32_t lines = EPCTX__MOST_ROWS / w->out_w + 2; /* that a tile touches */
    epctx__conv_space s;
    s.slots = epctx__covered(w->out_h, w->kernel_h, w->stride_h, w->dilation_h);
    s.width = epctx__covered(w->out_w, w->kernel_w, w->stride_w, w->dilation_w);
    s.copies = w->top + w->left != 0 || s.slots > w->in_h || s.width > w->in_w;
    s.runs = w->kernel_h;
    s.runs *= w->dilation_w == 1 && (p->groups == 1 || s.copies) ? 1 : w->kernel_w;
    s.addresses = s.bytes = epctx__mul3(s.runs, EPCTX__MOST_ROWS, 8);
    if (!s.copies) {
        s.slots = w->in_h;
        s.width = w->in_w;
        return s;
    }
    if (lines < w->out_h) s.slots = epctx__covered(lines, w->kernel_h, w->stride_h, w->dilation_h);
    s.bytes += epctx__mul4(s.slots, s.width, p->in_channels, 4);
    return s;
}

static bool epctx__check_conv(const epctx__conv *p, epctx__needs *needs) {
    const epctx__window *w = &p->window;
    uint64_t planes = epctx__mul(p->batch, p->groups);
    uint64_t depth = epctx__mul3(p->in_channels, w->kernel_h, w->kernel_w);
    if (!epctx__window_ok(w)) return false;
    needs->in[0] = epctx__floats(epctx__mul4(planes, p->in_channels, w->in_h, w->in_w));
    needs->in[1] = epctx__floats(epctx__packed(p->groups, p->out_channels, depth, EPCTX__COLUMNS));
    needs->in[2] = epctx__floats(epctx__mul(p->groups, p->out_channels));
    needs->in[3] = needs->out[0] =
        epctx__floats(epctx__mul4(planes, p->out_channels, w->out_h, w->out_w));
    needs->out[1] = epctx__items(epctx__conv_needs(p).bytes, 1);
    needs->out[1].align = 8;
    needs->work = epctx__mul3(epctx__mul3(planes, p->out_channels, depth), w->out_h, w->out_w);
    return epctx__act_ok(&p->act);
}

/* One group of one image. */
typedef struct epctx__conv_part {
    const epctx__conv *p;
    epctx__level fast;
    const float *x;    /* first channel of the group */
    size_t pixel;      /* floats from pixel to pixel of x */
    float *ring;       /* copied rows of the image, row y at y % slots; NULL: none */
    const float *from; /* what the windows read: the ring or x */
    size_t slots;      /* rows of it */
    size_t width;      /* pixels of such a row */
    size_t step;       /* floats from pixel to pixel of it */
    const float **at;
    epctx__left rows;
    const float *weights, *bias, *add;
    float *y;
} epctx__conv_part;

/* Copies row `row` of the padded image to the ring. */
static void epctx__conv_copy(const epctx__conv_part *c, size_t row) {
    const epctx__window *w = &c->p->window;
    float *y = c->ring + row % c->slots * c->width * c->step;
    const float *x = c->x;
    int32_t low = 0, high = 0, i;
    if (row >= w->top && row - w->top < w->in_h) {
        epctx__inside(-(int32_t)w->left, 1, (int32_t)c->width, (int32_t)w->in_w, &low, &high);
        x += (row - w->top) * w->in_w * c->pixel;
        x += low > (int32_t)w->left ? (size_t)(low - (int32_t)w->left) * c->pixel : 0;
    }
    memset(y, 0, (size_t)low * c->step * sizeof *y);
    y += (size_t)low * c->step;
    if (c->pixel == c->step) {
        memcpy(y, x, (size_t)(high - low) * c->step * sizeof *y);
        y += (size_t)(high - low) * c->step;
    } else {
        for (i = low; i < high; i++) {
            memcpy(y, x, c->step * sizeof *y);
            x += c->pixel;
            y += c->step;
        }
    }
    memset(y, 0, (c->width - (size_t)high) * c->step * sizeof *y);
}

/* The next output pixel; `slot`: of the first row of its window. */
typedef struct epctx__conv_pixel {
    uint32_t oy, ox;
    size_t slot;
} epctx__conv_pixel;

/* Addresses of the taps of `count` output pixels of a line: rows of a tile. */
static void epctx__conv_line(const epctx__conv_part *c, const epctx__conv_pixel *at, size_t count,
                             const float **to) {
    const epctx__window *w = &c->p->window;
    const uint32_t columns = (uint32_t)(c->rows.runs / w->kernel_h);
    const size_t right = w->dilation_w * c->step, next = w->stride_w * c->step;
    size_t slot = at->slot, r;
    uint32_t ky, kx;
    for (ky = 0; ky < w->kernel_h; ky++) {
        const float *from = c->from + slot * c->width * c->step + at->ox * next;
        for (kx = 0; kx < columns; kx++) {
            for (r = 0; r < count; r++) to[r] = from + r * next;
            from += right;
            to += EPCTX__MOST_ROWS;
        }
        slot += w->dilation_h;
        slot -= slot >= c->slots ? c->slots : 0;
    }
}

/* Addresses of the taps of `rows` output pixels, the rows of a tile. */
static void epctx__conv_points(const epctx__conv_part *c, epctx__conv_pixel *at, size_t rows) {
    const epctx__window *w = &c->p->window;
    size_t r = 0, count;
    for (; r < rows; r += count) {
        count = rows - r < w->out_w - at->ox ? rows - r : w->out_w - at->ox;
        epctx__conv_line(c, at, count, c->at + r);
        at->ox += (uint32_t)count;
        if (at->ox < w->out_w) continue;
        at->ox = 0;
        at->slot = ++at->oy * (size_t)w->stride_h % c->slots;
    }
}

/* All pixels by `columns` output channels from `first` on. */
static void epctx__conv_pass(const epctx__conv_part *c, size_t first, size_t columns) {
    const epctx__conv *p = c->p;
    const size_t most = epctx__most_columns(c->fast), depth = c->rows.runs * c->rows.count;
    const size_t rows = epctx__most_rows(c->fast, columns);
    const size_t pixels = (size_t)p->window.out_h * p->window.out_w;
    const size_t height = (size_t)epctx__covered(1, p->window.kernel_h, 1, p->window.dilation_h);
    epctx__conv_pixel at = {0, 0, 0};
    epctx__epilogue f = epctx__epilogue_for(c->fast, &p->act);
    size_t pixel, n, r, copied = 0, end;
    f.row = (size_t)p->groups * p->out_channels;
    for (pixel = 0; pixel < pixels; pixel += rows) {
        f.rows = pixels - pixel < rows ? pixels - pixel : rows;
        end = (pixel + f.rows - 1) / p->window.out_w * p->window.stride_h + height;
        while (c->ring != NULL && copied < end) epctx__conv_copy(c, copied++);
        epctx__conv_points(c, &at, f.rows);
        for (r = f.rows; r < rows; r++) /* the last tile: any address */
            for (n = 0; n < c->rows.runs; n++)
                c->at[n * EPCTX__MOST_ROWS + r] = c->at[n * EPCTX__MOST_ROWS];
        for (n = first; n < first + columns; n += most) {
            f.columns = first + columns - n < most ? first + columns - n : most;
            f.bias = c->bias != NULL ? c->bias + n : NULL;
            f.add = c->add != NULL ? c->add + pixel * f.row + n : NULL;
            f.y = c->y + pixel * f.row + n;
            epctx__tile(&c->rows, c->weights + n * depth, &f);
        }
        for (r = 0; p->act.kind > EPCTX__ACT_CLIP && r < f.rows; r++)
            epctx__activate(c->fast, c->y + (pixel + r) * f.row + first, columns, &p->act);
    }
}

/* Whole tiles of columns first, as many as keep their weights in the cache; then the rest. */
static void epctx__conv_group(const epctx__conv_part *c) {
    const size_t most = epctx__most_columns(c->fast), all = c->p->out_channels;
    const size_t depth = c->rows.runs * c->rows.count;
    size_t step = ((size_t)1 << 18) / depth / most * most, n;
    step = step < most ? most : step;
    for (n = 0; n + most <= all; n += step) {
        const size_t left = (all - n) / most * most;
        epctx__conv_pass(c, n, left < step ? left : step);
    }
    n = all / most * most;
    if (n < all) epctx__conv_pass(c, n, all - n);
}

static epctx_status epctx__run_conv(const epctx__conv *p, const epctx__args *args) {
    const epctx__window *w = &p->window;
    const epctx__conv_space space = epctx__conv_needs(p);
    const size_t depth = (size_t)p->in_channels * w->kernel_h * w->kernel_w;
    const size_t blocks = (p->out_channels + EPCTX__COLUMNS - 1) / EPCTX__COLUMNS;
    const size_t out_pixel = (size_t)p->groups * p->out_channels;
    const size_t in_size = (size_t)w->in_h * w->in_w * p->groups * p->in_channels;
    epctx__conv_part c;
    size_t n, g;
    memset(&c, 0, sizeof c);
    c.p = p;
    c.fast = args->fast;
    c.at = (const float **)args->out[1];
    c.rows.at = c.at;
    c.rows.step = 1;
    c.rows.runs = (size_t)space.runs;
    c.rows.count = depth / c.rows.runs;
    c.pixel = (size_t)p->groups * p->in_channels;
    if (space.copies) c.ring = (float *)(void *)((uint8_t *)args->out[1] + space.addresses);
    c.step = space.copies ? p->in_channels : c.pixel;
    c.slots = (size_t)space.slots;
    c.width = (size_t)space.width;
    for (n = 0; n < p->batch; n++) {
        const size_t out_at = n * w->out_h * w->out_w * out_pixel;
        for (g = 0; g < p->groups; g++) {
            const size_t first = g * p->out_channels;
            c.x = (const float *)args->in[0] + n * in_size + g * p->in_channels;
            c.from = space.copies ? c.ring : c.x;
            c.weights = (const float *)args->in[1] + g * blocks * EPCTX__COLUMNS * depth;
            c.bias = args->in[2] != NULL ? (const float *)args->in[2] + first : NULL;
            c.add = args->in[3] != NULL ? (const float *)args->in[3] + out_at + first : NULL;
            c.y = (float *)args->out[0] + out_at + first;
            epctx__conv_group(&c);
        }
    }
    return EPCTX_OK;
}

/* -- a sliding window over the channels of an image: Depthwise and Pool -- */

typedef enum epctx__slide_kind {
    EPCTX__SLIDE_MAX = 0, /* NaN wins */
    EPCTX__SLIDE_AVERAGE, /* of the taps inside the image */
    EPCTX__SLIDE_MEAN,    /* their sum divided by the number of all taps */
    EPCTX__SLIDE_PRODUCTS /* sum of taps times weights */
} epctx__slide_kind;

/* One image, channels last. */
typedef struct epctx__slides {
    const epctx__window *window;
    epctx__slide_kind kind;
    size_t channels; /* floats of a pixel of x */
    size_t row;      /* floats from pixel to pixel of y */
    const float *x, *weights, *bias;
    float *y;
    epctx__act act;
} epctx__slides;

/* The taps of a pixel: the first one, and the ky and kx inside the plane. */
typedef struct epctx__tap_range {
    int32_t y, x;
    int32_t ky_low, ky_high, kx_low, kx_high;
} epctx__tap_range;

static void epctx__tap_columns(const epctx__window *w, uint32_t ox, epctx__tap_range *t) {
    t->x = (int32_t)(ox * w->stride_w) - (int32_t)w->left;
    epctx__inside(t->x, (int32_t)w->dilation_w, (int32_t)w->kernel_w, (int32_t)w->in_w, &t->kx_low,
                  &t->kx_high);
}

/* What an average divides a sum by. */
static float epctx__slide_divisor(const epctx__slides *s, const epctx__tap_range *t) {
    const int32_t inside = (t->ky_high - t->ky_low) * (t->kx_high - t->kx_low);
    return s->kind == EPCTX__SLIDE_MEAN ? (float)s->window->kernel_h * (float)s->window->kernel_w
                                        : (float)(inside > 0 ? inside : 1);
}

/* Before the first tap of a maximum; of no taps at all it is the lowest finite number, as in ONNX
 * Runtime. */
static float epctx__slide_least(const epctx__tap_range *t) {
    const bool any = t->ky_low < t->ky_high && t->kx_low < t->kx_high;
    return any ? epctx__float_of(0xff800000u) : -FLT_MAX;
}

/* `count` (at most 16) output channels of one pixel from channel `c` on. */
static EPCTX__INLINE void epctx__slide_pixel(const epctx__slides *s, epctx__slide_kind kind,
                                             const epctx__tap_range *t, size_t c, size_t count,
                                             float *y) {
    const epctx__window *w = s->window;
    const size_t taps = (size_t)w->kernel_h * w->kernel_w;
    const float *k = kind == EPCTX__SLIDE_PRODUCTS ? s->weights + c * taps : NULL;
    const bool averages = kind == EPCTX__SLIDE_AVERAGE || kind == EPCTX__SLIDE_MEAN;
    float sum[EPCTX__COLUMNS];
    const float divisor = epctx__slide_divisor(s, t);
    int32_t ky, kx;
    size_t j;
    for (j = 0; j < count; j++)
        sum[j] = kind == EPCTX__SLIDE_MAX ? epctx__slide_least(t)
                                          : (s->bias != NULL ? s->bias[c + j] : 0.0f);
    for (ky = t->ky_low; ky < t->ky_high; ky++) {
        const size_t row = (size_t)(t->y + ky * (int32_t)w->dilation_h) * w->in_w;
        for (kx = t->kx_low; kx < t->kx_high; kx++) {
            const size_t pixel = row + (size_t)(t->x + kx * (int32_t)w->dilation_w);
            const float *from = s->x + pixel * s->channels;
            if (kind == EPCTX__SLIDE_MAX) {
                for (j = 0; j < count; j++) sum[j] = sum[j] >= from[c + j] ? sum[j] : from[c + j];
            } else if (kind != EPCTX__SLIDE_PRODUCTS) {
                for (j = 0; j < count; j++) sum[j] += from[c + j];
            } else {
                const float *tap = k + ((size_t)ky * w->kernel_w + (size_t)kx) * EPCTX__COLUMNS;
                for (j = 0; j < count; j++) sum[j] += tap[j] * from[c + j];
            }
        }
    }
    for (j = 0; j < count; j++) y[c + j] = averages ? sum[j] / divisor : sum[j];
}

/* Output columns ox .. end - 1 of row t. */
static EPCTX__INLINE void epctx__slide_columns(const epctx__slides *s, epctx__slide_kind kind,
                                               epctx__tap_range *t, uint32_t ox, uint32_t end,
                                               float *y) {
    size_t c;
    for (; ox < end; ox++) {
        epctx__tap_columns(s->window, ox, t);
        for (c = 0; c < s->channels; c += EPCTX__COLUMNS)
            if (s->channels - c >= EPCTX__COLUMNS)
                epctx__slide_pixel(s, kind, t, c, EPCTX__COLUMNS, y + ox * s->row);
            else
                epctx__slide_pixel(s, kind, t, c, s->channels - c, y + ox * s->row);
    }
}

static void epctx__slide_kinds(const epctx__slides *s, epctx__tap_range *t, uint32_t ox,
                               uint32_t end, float *y) {
    if (s->kind == EPCTX__SLIDE_MAX)
        epctx__slide_columns(s, EPCTX__SLIDE_MAX, t, ox, end, y);
    else if (s->kind != EPCTX__SLIDE_PRODUCTS)
        epctx__slide_columns(s, EPCTX__SLIDE_AVERAGE, t, ox, end, y);
    else
        epctx__slide_columns(s, EPCTX__SLIDE_PRODUCTS, t, ox, end, y);
}

#ifdef EPCTX__AVX2

/* Steps in floats, the same for all pixels of a row of the output. */
typedef struct epctx__slide_steps {
    size_t pixel, right, out; /* from pixel to pixel of x, from tap to tap, from result to result */
    size_t down, tap_row;     /* from row to row of taps, of weights */
    size_t first, first_tap;  /* the first tap in x and in the weights of 16 channels */
    int32_t rows, columns;    /* of taps */
} epctx__slide_steps;

static EPCTX__INLINE epctx__slide_steps epctx__slide_steps_of(const epctx__slides *s,
                                                              const epctx__tap_range *t) {
    const epctx__window *w = s->window;
    const int32_t rows = t->ky_high - t->ky_low, columns = t->kx_high - t->kx_low;
    epctx__slide_steps steps;
    memset(&steps, 0, sizeof steps);
    steps.pixel = w->stride_w * s->channels;
    steps.right = w->dilation_w * s->channels;
    steps.out = s->row;
    steps.down = (size_t)w->dilation_h * w->in_w * s->channels;
    steps.tap_row = (size_t)w->kernel_w * 16;
    if (rows <= 0 || columns <= 0) return steps;
    steps.rows = rows;
    steps.columns = columns;
    steps.first = ((size_t)(t->y + t->ky_low * (int32_t)w->dilation_h) * w->in_w +
                   (size_t)(t->x + t->kx_low * (int32_t)w->dilation_w)) *
                  s->channels;
    steps.first_tap = ((size_t)t->ky_low * w->kernel_w + (size_t)t->kx_low) * 16;
    return steps;
}

/* Adds `n` (3 or 5) adjacent taps of a row for 8 adjacent pixels; reads each element once. */
static EPCTX__INLINE void epctx__slide_dense(size_t bits, const float *x, size_t pixel,
                                             const float *taps, size_t n, const epctx__lanes *mask,
                                             epctx__vector *sum) {
    epctx__vector k[5], v;
    size_t i, t;
    EPCTX__UNROLL
    for (t = 0; t < 5; t++)
        if (t < n) EPCTX__BY_WIDTH(bits, epctx__load, (&k[t], taps + 16 * t));
    EPCTX__UNROLL
    for (i = 0; i < 12; i++) {
        if (i < 7 + n) {
            EPCTX__BY_WIDTH(bits, epctx__load_some, (&v, mask, x));
            EPCTX__UNROLL
            for (t = 0; t < 5; t++)
                if (t < n && t <= i && i - t < 8)
                    EPCTX__BY_WIDTH(bits, epctx__fused, (&sum[i - t], &k[t], &v));
            x += pixel;
        }
    }
}

/* Adds a tap for 1 or 8 pixels, or takes the maximum. */
static EPCTX__INLINE void epctx__slide_tap(size_t bits, epctx__slide_kind kind, const float *x,
                                           size_t pixel, const float *tap, const epctx__lanes *mask,
                                           size_t pixels, epctx__vector *sum) {
    epctx__vector weight, v;
    size_t i;
    if (kind == EPCTX__SLIDE_PRODUCTS) EPCTX__BY_WIDTH(bits, epctx__load, (&weight, tap));
    EPCTX__UNROLL
    for (i = 0; i < 8; i++) {
        if (i < pixels) {
            EPCTX__BY_WIDTH(bits, epctx__load_some, (&v, mask, x + i * pixel));
            if (kind == EPCTX__SLIDE_MAX)
                EPCTX__BY_WIDTH(bits, epctx__greater, (&sum[i], &v));
            else if (kind == EPCTX__SLIDE_PRODUCTS)
                EPCTX__BY_WIDTH(bits, epctx__fused, (&sum[i], &weight, &v));
            else
                EPCTX__BY_WIDTH(bits, epctx__add, (&sum[i], &v));
        }
    }
}

/* The sums of 1 or 8 pixels, whose first tap is at x; `dense`: 0, or as many taps as
 * epctx__slide_dense takes. */
static EPCTX__INLINE void epctx__slide_sums(size_t bits, epctx__slide_kind kind,
                                            const epctx__slide_steps *p, const float *x,
                                            const float *tap, const epctx__lanes *mask,
                                            size_t pixels, size_t dense, epctx__vector *sum) {
    int32_t ky, kx;
    for (ky = 0; ky < p->rows; ky++) {
        if (dense == 3)
            epctx__slide_dense(bits, x, p->pixel, tap, 3, mask, sum);
        else if (dense == 5)
            epctx__slide_dense(bits, x, p->pixel, tap, 5, mask, sum);
        for (kx = 0; kx < p->columns && dense == 0; kx++)
            epctx__slide_tap(bits, kind, x + (size_t)kx * p->right, p->pixel,
                             kind == EPCTX__SLIDE_PRODUCTS ? tap + kx * 16 : NULL, mask, pixels,
                             sum);
        x += p->down;
        if (kind == EPCTX__SLIDE_PRODUCTS) tap += p->tap_row;
    }
}

/* `groups` times 1 pixel, or 8 adjacent ones whose windows all lie within the columns of the
 * image. */
static EPCTX__INLINE void epctx__slide_groups(size_t bits, const epctx__slides *s,
                                              epctx__slide_kind kind, const epctx__tap_range *t,
                                              size_t pixels, size_t groups, float *y) {
    const epctx__window *w = s->window;
    const epctx__slide_steps p = epctx__slide_steps_of(s, t);
    const size_t taps = (size_t)w->kernel_h * w->kernel_w;
    const size_t channels = s->channels; /* stores cannot change a copy */
    const size_t dense = kind == EPCTX__SLIDE_PRODUCTS && pixels == 8 && w->dilation_w == 1 &&
                                 w->stride_w == 1 && (w->kernel_w == 3 || w->kernel_w == 5)
                             ? w->kernel_w
                             : 0;
    epctx__vector sum[8], start, divisor;
    epctx__lanes mask;
    size_t c, g, i;
    EPCTX__BY_WIDTH(bits, epctx__splat, (&divisor, epctx__slide_divisor(s, t)));
    for (c = 0; c < channels; c += bits / 32) {
        const float *x = s->x + p.first + c, *tap = NULL;
        EPCTX__BY_WIDTH(bits, epctx__first, (&mask, channels - c));
        EPCTX__BY_WIDTH(bits, epctx__zero, (&start));
        if (s->bias != NULL) EPCTX__BY_WIDTH(bits, epctx__load_some, (&start, &mask, s->bias + c));
        if (kind == EPCTX__SLIDE_MAX)
            EPCTX__BY_WIDTH(bits, epctx__splat, (&start, epctx__slide_least(t)));
        if (kind == EPCTX__SLIDE_PRODUCTS)
            tap = s->weights + c / 16 * 16 * taps + c % 16 + p.first_tap;
        for (g = 0; g < groups; g++, x += pixels * p.pixel) {
            EPCTX__UNROLL
            for (i = 0; i < 8; i++) sum[i] = start;
            epctx__slide_sums(bits, kind, &p, x, tap, &mask, pixels, dense, sum);
            EPCTX__UNROLL
            for (i = 0; i < 8; i++) {
                if (i < pixels) {
                    if (kind == EPCTX__SLIDE_AVERAGE)
                        EPCTX__BY_WIDTH(bits, epctx__divide, (&sum[i], &divisor));
                    EPCTX__BY_WIDTH(
                        bits, epctx__store_some,
                        (&sum[i], &mask, channels - c, y + (g * pixels + i) * p.out + c));
                }
            }
        }
    }
}

/* `eights` times 8 pixels; 0: one pixel. */
static EPCTX__INLINE void epctx__slide_vectors(size_t bits, const epctx__slides *s,
                                               const epctx__tap_range *t, size_t eights, float *y) {
    const size_t pixels = eights > 0 ? 8 : 1, groups = eights > 0 ? eights : 1;
    if (s->kind == EPCTX__SLIDE_MAX)
        epctx__slide_groups(bits, s, EPCTX__SLIDE_MAX, t, pixels, groups, y);
    else if (s->kind != EPCTX__SLIDE_PRODUCTS)
        epctx__slide_groups(bits, s, EPCTX__SLIDE_AVERAGE, t, pixels, groups, y);
    else if (eights > 0)
        epctx__slide_groups(bits, s, EPCTX__SLIDE_PRODUCTS, t, 8, eights, y);
    else
        epctx__slide_groups(bits, s, EPCTX__SLIDE_PRODUCTS, t, 1, 1, y);
}

EPCTX__TARGET EPCTX__FLAT static void
epctx__slide_avx2(const epctx__slides *s, const epctx__tap_range *t, size_t eights, float *y) {
    epctx__slide_vectors(256, s, t, eights, y);
}

EPCTX__WIDE EPCTX__FLAT static void
epctx__slide_wide(const epctx__slides *s, const epctx__tap_range *t, size_t eights, float *y) {
    epctx__slide_vectors(512, s, t, eights, y);
}

static void epctx__slide_run(epctx__level fast, const epctx__slides *s, const epctx__tap_range *t,
                             size_t eights, float *y) {
    if (fast == EPCTX__LEVEL_AVX512)
        epctx__slide_wide(s, t, eights, y);
    else
        epctx__slide_avx2(s, t, eights, y);
}
#endif

/* The pixels of row t from ox on that one call computes; returns the next ox. */
static uint32_t epctx__slide_some(epctx__level fast, const epctx__slides *s, epctx__tap_range *t,
                                  uint32_t ox, float *y) {
    const epctx__window *w = s->window;
#ifdef EPCTX__AVX2
    epctx__tap_columns(w, ox, t);
    if (fast != EPCTX__PORTABLE) {
        const int32_t room =
            (int32_t)w->in_w - 1 - t->x - (int32_t)((w->kernel_w - 1) * w->dilation_w);
        const uint32_t left = w->out_w - ox;
        uint32_t whole = 1;
        if (t->kx_low == 0 && t->kx_high == (int32_t)w->kernel_w) {
            whole = (uint32_t)room / w->stride_w + 1;
            whole = whole < left ? whole : left;
        }
        epctx__slide_run(fast, s, t, whole / 8, y + ox * s->row);
        if (whole > 8 && whole % 8 != 0) { /* the last eight overlap those before */
            epctx__tap_columns(w, ox + whole - 8, t);
            epctx__slide_run(fast, s, t, 1, y + (ox + whole - 8) * s->row);
        }
        return ox + (whole >= 8 ? whole : 1);
    }
#endif
    (void)fast;
    epctx__slide_kinds(s, t, ox, w->out_w, y);
    return w->out_w;
}

/* For every output pixel of each image, the maximum of the taps, or the bias plus their sum. */
static epctx_status epctx__slide(const epctx__args *args, uint32_t batch, epctx__slides *s) {
    const epctx__window *w = s->window;
    const size_t line = w->out_w * s->row;
    epctx__tap_range t;
    uint32_t n, oy, ox;
    s->x = (const float *)args->in[0];
    s->y = (float *)args->out[0];
    for (n = 0; n < batch; n++) {
        for (oy = 0; oy < w->out_h; oy++, s->y += line) {
            t.y = (int32_t)(oy * w->stride_h) - (int32_t)w->top;
            epctx__inside(t.y, (int32_t)w->dilation_h, (int32_t)w->kernel_h, (int32_t)w->in_h,
                          &t.ky_low, &t.ky_high);
            for (ox = 0; ox < w->out_w;) ox = epctx__slide_some(args->fast, s, &t, ox, s->y);
            epctx__activate(args->fast, s->y, line, &s->act);
        }
        s->x += (size_t)w->in_h * w->in_w * s->channels;
    }
    return EPCTX_OK;
}

/* -- Depthwise: a convolution in which every channel of the output reads that of the input -- */

typedef struct epctx__depthwise {
    uint32_t batch, channels;
    epctx__window window;
    epctx__act act;
} epctx__depthwise;

static bool epctx__check_depthwise(const epctx__depthwise *p, epctx__needs *needs) {
    const epctx__window *w = &p->window;
    const uint64_t taps = epctx__mul(w->kernel_h, w->kernel_w);
    const uint64_t results = epctx__mul4(p->batch, p->channels, w->out_h, w->out_w);
    needs->in[0] = epctx__floats(epctx__mul4(p->batch, p->channels, w->in_h, w->in_w));
    needs->in[1] = epctx__floats(epctx__packed(1, p->channels, taps, EPCTX__COLUMNS));
    needs->in[2] = epctx__floats(p->channels);
    needs->out[0] = epctx__floats(results);
    needs->work = epctx__mul(results, taps);
    return epctx__window_ok(w) && epctx__act_ok(&p->act);
}

static epctx_status epctx__run_depthwise(const epctx__depthwise *p, const epctx__args *args) {
    const float *weights = (const float *)args->in[1], *bias = (const float *)args->in[2];
    epctx__slides s = {
        &p->window, EPCTX__SLIDE_PRODUCTS, p->channels, p->channels, NULL, weights, bias, NULL,
        p->act};
    return epctx__slide(args, p->batch, &s);
}

/* -- Gemm: y = act(alpha * a b + bias), b packed -- */

typedef struct epctx__gemm {
    uint32_t batch, m, n, k;
    uint32_t a_batch, a_row, a_step; /* strides of a in elements */
    uint32_t b_shared;               /* 1: one b for the whole batch */
    float alpha;
    epctx__act act;
} epctx__gemm;

static bool epctx__check_gemm(const epctx__gemm *p, epctx__needs *needs) {
    needs->in[0] =
        epctx__floats(epctx__reach(p->batch, p->a_batch, p->m, p->a_row, p->k, p->a_step));
    needs->in[1] =
        epctx__floats(epctx__packed(p->b_shared != 0 ? 1 : p->batch, p->n, p->k, EPCTX__COLUMNS));
    needs->in[2] = epctx__floats(p->n);
    needs->out[0] = epctx__floats(epctx__mul3(p->batch, p->m, p->n));
    needs->work = epctx__mul4(p->batch, p->m, p->n, p->k);
    return p->b_shared <= 1 && epctx__act_ok(&p->act);
}

/* One tile of columns, for all rows. */
static void epctx__gemm_block(epctx__level fast, const epctx__gemm *p, const float *a,
                              const float *b, const float *bias, float *y, size_t columns) {
    const size_t most = epctx__most_rows(fast, columns);
    const float *at[EPCTX__MOST_ROWS];
    epctx__left rows = {NULL, 1, 0, 0};
    epctx__epilogue f = epctx__epilogue_for(fast, &p->act);
    size_t m, r, n;
    rows.at = at;
    rows.count = p->k;
    rows.step = p->a_step;
    f.row = p->n;
    f.scale = p->alpha;
    for (m = 0; m < p->m; m += f.rows) {
        const float *row = a + m * p->a_row;
        f.rows = p->m - m < most ? p->m - m : most;
        f.y = y + m * p->n;
        f.bias = bias;
        f.columns = columns;
        if (f.rows == 1) {
            for (n = 0; n < columns; n += EPCTX__COLUMNS) {
                f.columns = columns - n < EPCTX__COLUMNS ? columns - n : EPCTX__COLUMNS;
                epctx__tile_row(row, p->a_step, b + n * p->k, p->k, &f);
                f.y += EPCTX__COLUMNS;
                f.bias = f.bias != NULL ? f.bias + EPCTX__COLUMNS : NULL;
            }
        } else {
            for (r = 0; r < EPCTX__MOST_ROWS; r++) at[r] = row + (r < f.rows ? r : 0) * p->a_row;
            epctx__tile(&rows, b, &f);
        }
        for (r = 0; p->act.kind > EPCTX__ACT_CLIP && r < f.rows; r++)
            epctx__activate(fast, y + (m + r) * p->n, columns, &p->act);
    }
}

static epctx_status epctx__run_gemm(const epctx__gemm *p, const epctx__args *args) {
    const size_t most = epctx__most_columns(args->fast);
    const float *b = (const float *)args->in[1], *bias = (const float *)args->in[2];
    const size_t b_size = (size_t)epctx__packed(1, p->n, p->k, EPCTX__COLUMNS);
    float *y = (float *)args->out[0];
    size_t g, n;
    for (g = 0; g < p->batch; g++) {
        const float *a = (const float *)args->in[0] + g * p->a_batch;
        for (n = 0; n < p->n; n += most) {
            size_t columns = p->n - n < most ? p->n - n : most;
            epctx__gemm_block(args->fast, p, a, b + n * p->k, bias != NULL ? bias + n : NULL, y + n,
                              columns);
        }
        b += p->b_shared != 0 ? 0 : b_size;
        y += (size_t)p->m * p->n;
    }
    return EPCTX_OK;
}

/* -- Winograd: Conv of 3 x 3 taps and stride 1 with a quarter of the products -- */

/* Tiles of 6 x 6 pixels and the taps turn into 36 matrices each, whose products turn into tiles of
 * 4 x 4 results; sums round more. The workspace, in floats: `band`, a strip of pixels or taps;
 * `input`, the tiles of some lines; `taps` of some output channels; their `products`. */
typedef struct epctx__winograd {
    uint64_t across, down;   /* tiles of a line, and lines, in all */
    uint64_t lines;          /* lines at once */
    uint64_t strip;          /* tiles of a line at once */
    uint64_t tiles, columns; /* tiles (even: one row has its own kernel) and channels at once */
    uint64_t matrix;         /* from matrix to matrix of tiles */
    uint64_t band, input, taps, products;
} epctx__winograd;

static epctx__winograd epctx__winograd_needs(const epctx__conv *p) {
    const uint64_t channels = p->in_channels, most = epctx__packed(1, p->out_channels, 1, 16);
    epctx__winograd s;
    s.across = (p->window.out_w + 3u) / 4;
    s.down = (p->window.out_h + 3u) / 4;
    s.lines = ((uint64_t)1 << 18) / epctx__mul3(36, s.across, channels); /* second cache */
    s.lines = 64 / s.across < s.lines ? 64 / s.across : s.lines;
    s.lines = s.lines < 1 ? 1 : (s.lines < s.down ? s.lines : s.down);
    s.strip = 340 / channels < s.across ? 340 / channels : s.across; /* first cache */
    s.strip = s.strip < 1 ? 1 : s.strip;
    s.tiles = (s.lines * s.across + 1) / 2 * 2;
    s.columns = channels > 112 ? 32 : 64;
    s.columns = s.columns < most ? s.columns : most;
    s.matrix = epctx__mul(s.tiles, channels) + 16; /* + 16: not at one place of all pages */
    s.band = 6 * epctx__mul(s.strip * 4 + 2, channels < 128 ? 128 : channels);
    s.input = epctx__mul(36, s.matrix);
    s.taps = epctx__mul3(36, channels, s.columns);
    s.products = epctx__mul3(36, s.tiles, s.columns);
    return s;
}

static bool epctx__check_winograd(const epctx__conv *p, epctx__needs *needs) {
    const epctx__window *w = &p->window;
    uint64_t in = p->in_channels, out = p->out_channels, tiles, groups;
    epctx__winograd s;
    if (in == 0 || p->groups != 1 || w->kernel_h != 3 || w->kernel_w != 3 || w->stride_h != 1 ||
        w->stride_w != 1 || w->dilation_h != 1 || w->dilation_w != 1 ||
        !epctx__check_conv(p, needs))
        return false;
    s = epctx__winograd_needs(p);
    needs->out[1] = epctx__floats(s.band + s.input + s.taps + s.products);
    tiles = s.down * s.across;
    groups = (s.down + s.lines - 1) / s.lines;
    needs->work =
        epctx__mul3(p->batch, 36, /* turning takes as long as 12 and 8 products */
                    epctx__mul3(tiles + 12 * groups, in, out) + epctx__mul3(8, tiles, in + out));
    return true;
}

typedef enum epctx__transform_kind {
    EPCTX__TURN_TAPS, /* 3 to 6 */
    EPCTX__TURN_IN,   /* 6 to 6 */
    EPCTX__TURN_OUT   /* 6 to 4 */
} epctx__transform_kind;

/* Turns `count` tiles along one axis, whose elements are x_step and `step` apart. x may be y. */
static EPCTX__INLINE void epctx__transform_axis(epctx__transform_kind kind, const float *x,
                                                size_t x_step, float *y, size_t step,
                                                size_t count) {
    const size_t more = kind != EPCTX__TURN_TAPS ? x_step : 0; /* those have only three */
    const float *x1 = x + x_step, *x2 = x1 + x_step;
    const float *x3 = x2 + more, *x4 = x3 + more, *x5 = x4 + more;
    if (kind == EPCTX__TURN_TAPS)
        EPCTX__EACH_HINT(EPCTX__MANY_ARRAYS, i, count, const float a = x[i]; const float b = x1[i];
                         const float c = x2[i]; const float s = (a + c) * (-1.0f / 6.0f);
                         const float t = b * (-1.0f / 6.0f);
                         const float u = a * (1.0f / 24.0f) + c * (1.0f / 6.0f);
                         const float v = b * (1.0f / 12.0f); y[i] = a * 0.25f; y[i + step] = s + t;
                         y[i + 2 * step] = s - t; y[i + 3 * step] = u + v; y[i + 4 * step] = u - v;
                         y[i + 5 * step] = c;);
    else if (kind == EPCTX__TURN_IN)
        EPCTX__EACH_HINT(EPCTX__MANY_ARRAYS, i, count, const float a = x[i]; const float b = x1[i];
                         const float c = x2[i]; const float d = x3[i]; const float e = x4[i];
                         const float f = x5[i]; const float p = e - c * 4.0f;
                         const float q = d - b * 4.0f; const float r = e - c;
                         const float s = (d - b) * 2.0f; y[i] = a * 4.0f - c * 5.0f + e;
                         y[i + step] = p + q; y[i + 2 * step] = p - q; y[i + 3 * step] = r + s;
                         y[i + 4 * step] = r - s; y[i + 5 * step] = b * 4.0f - d * 5.0f + f;);
    else
        EPCTX__EACH_HINT(EPCTX__MANY_ARRAYS, i, count, const float a = x[i]; const float f = x5[i];
                         const float s = x1[i] + x2[i]; const float d = x1[i] - x2[i];
                         const float u = x3[i] + x4[i]; const float v = x3[i] - x4[i];
                         y[i] = a + s + u; y[i + step] = d + v * 2.0f;
                         y[i + 2 * step] = s + u * 4.0f; y[i + 3 * step] = d + v * 8.0f + f;);
}

/* The run of a command; of the lines of tiles from `first` on. */
typedef struct epctx__winograd_run {
    const epctx__conv *p;
    epctx__winograd s;
    const float *x, *weights, *bias, *add;
    float *y, *band, *input, *taps, *products;
    size_t first;
} epctx__winograd_run;

/* From x[block][ky][kx][channel][16] to [36][block][channel][16], `matrix` elements in each of the
 * 36. */
static EPCTX__INLINE void epctx__transform_taps(const epctx__winograd_run *c, const float *x,
                                                size_t matrix) {
    const size_t tap = (size_t)c->p->in_channels * EPCTX__COLUMNS, most = 256;
    size_t n, i, k, count;
    for (n = 0; n < matrix; n += tap, x += 9 * tap) {
        for (i = 0; i < tap; i += count) {
            count = tap - i < most ? tap - i : most;
            for (k = 0; k < 3; k++)
                epctx__transform_axis(EPCTX__TURN_TAPS, x + i + k * tap, 3 * tap,
                                      c->band + k * count, 3 * count, count);
            for (k = 0; k < 6; k++)
                epctx__transform_axis(EPCTX__TURN_TAPS, c->band + 3 * k * count, count,
                                      c->taps + n + i + 6 * k * matrix, matrix, count);
        }
    }
}

/* `count` tiles of line `line` at once, from `tile` on. */
static EPCTX__INLINE void epctx__transform_strip(const epctx__winograd_run *c, size_t line,
                                                 size_t tile, size_t count) {
    const epctx__window *w = &c->p->window;
    const size_t channels = c->p->in_channels, row = (4 * count + 2) * channels;
    const int32_t start = (int32_t)(4 * tile) - (int32_t)w->left;
    const size_t matrix = (size_t)c->s.matrix;
    float *to = c->band, *y = c->input + (line * (size_t)c->s.across + tile) * channels;
    int32_t low, high;
    size_t i, n;
    epctx__inside(start, 1, (int32_t)(4 * count + 2), (int32_t)w->in_w, &low, &high);
    for (i = 0; i < 6; i++, to += row) {
        const size_t at = 4 * (c->first + line) + i, size = (size_t)(high - low) * channels;
        memset(to, 0, row * sizeof *to);
        if (at >= w->top && at - w->top < w->in_h && at < (size_t)w->out_h + 2 && size > 0)
            memcpy(to + (size_t)low * channels,
                   c->x + ((at - w->top) * w->in_w + (size_t)(start + low)) * channels,
                   size * sizeof *to);
    }
    epctx__transform_axis(EPCTX__TURN_IN, c->band, row, c->band, row, row);
    for (i = 0; i < 6; i++)
        for (n = 0; n < count; n++)
            epctx__transform_axis(EPCTX__TURN_IN, c->band + i * row + 4 * n * channels, channels,
                                  y + 6 * i * matrix + n * channels, matrix, channels);
}

/* Adds up the results of a tile, to know whether all are finite. */
static EPCTX__INLINE void epctx__tile_sum(const float *sums, size_t matrix, size_t columns,
                                          float *total) {
    size_t i, n;
    for (n = 0; n < columns; n += EPCTX__COLUMNS)
        for (i = 0; i < 16; i++)
            EPCTX__EACH(j, EPCTX__COLUMNS, total[j] += sums[(i / 4 * 6 + i % 4) * matrix + n + j];);
}

static bool epctx__sum_finite(const float *total) {
    float all = 0.0f;
    size_t j;
    for (j = 0; j < EPCTX__COLUMNS; j++) all += total[j];
    return epctx__abs(all) <= FLT_MAX;
}

/* A tile, one product after the other: infinities and numbers near the largest have to meet
 * only those that the convolution adds to them. */
EPCTX__APART static void epctx__direct_tile(const epctx__winograd_run *c, size_t tile, float *sums,
                                            size_t matrix, size_t first, size_t columns) {
    const epctx__window *w = &c->p->window;
    const size_t oy = 4 * (c->first + tile / (size_t)c->s.across);
    const size_t ox = 4 * (tile % (size_t)c->s.across);
    const size_t channels = c->p->in_channels;
    size_t i, n, tap, k, j;
    for (i = 0; i < 16; i++) {
        for (n = 0; n < columns; n += EPCTX__COLUMNS) {
            const float *taps = c->weights + (first + n) * 9 * channels;
            float *to = sums + (i / 4 * 6 + i % 4) * matrix + n;
            memset(to, 0, EPCTX__COLUMNS * sizeof *to);
            for (tap = 0; tap < 9; tap++, taps += channels * EPCTX__COLUMNS) {
                const size_t y = oy + i / 4 + tap / 3, x = ox + i % 4 + tap % 3;
                const float *from = c->x;
                if (y < w->top || y - w->top >= w->in_h || x < w->left || x - w->left >= w->in_w)
                    continue;
                from += ((y - w->top) * w->in_w + x - w->left) * channels;
                for (k = 0; k < channels; k++)
                    for (j = 0; j < EPCTX__COLUMNS; j++)
                        to[j] += from[k] * taps[k * EPCTX__COLUMNS + j];
            }
        }
    }
}

/* Stores `columns` output channels from `first` on of tile `tile`. */
static EPCTX__INLINE void epctx__store_tile(const epctx__winograd_run *c, size_t tile,
                                            const float *sums, size_t matrix, size_t first,
                                            size_t columns) {
    const epctx__window *w = &c->p->window;
    const size_t oy = 4 * (c->first + tile / (size_t)c->s.across);
    const size_t ox = 4 * (tile % (size_t)c->s.across);
    epctx__epilogue f = epctx__epilogue_for(EPCTX__PORTABLE, &c->p->act);
    size_t i, n;
    f.rows = 1;
    for (i = 0; i < 16; i++) {
        const size_t pixel = (oy + i / 4) * w->out_w + ox + i % 4;
        for (n = 0; n < columns && oy + i / 4 < w->out_h && ox + i % 4 < w->out_w; n += 16) {
            const size_t at = pixel * c->p->out_channels + first + n;
            f.columns = columns - n < 16 ? columns - n : 16;
            f.y = c->y + at;
            f.add = c->add != NULL ? c->add + at : NULL;
            f.bias = c->bias != NULL ? c->bias + first + n : NULL;
            epctx__epilogue_tile(&f, sums + (i / 4 * 6 + i % 4) * matrix + n);
        }
    }
}

/* Computes again those of the `tiles` in c->products, `row` elements each, that are not finite. */
EPCTX__APART static void epctx__store_again(const epctx__winograd_run *c, size_t tiles,
                                            size_t matrix, size_t first, size_t columns,
                                            size_t row) {
    size_t n;
    for (n = 0; n < tiles; n++) {
        float total[EPCTX__COLUMNS] = {0.0f}, *sums = c->products + n * row;
        epctx__tile_sum(sums, matrix, columns, total);
        if (epctx__sum_finite(total)) continue;
        epctx__direct_tile(c, n, sums, matrix, first, columns);
        epctx__store_tile(c, n, sums, matrix, first, columns);
    }
}

/* `columns` output channels from `first` on of the `tiles` in c->input. */
static EPCTX__INLINE void epctx__transform_products(const epctx__winograd_run *c, epctx__level fast,
                                                    size_t tiles, size_t first, size_t columns) {
    const uint32_t row = (uint32_t)(columns + 15) / 16 * 16, even = (uint32_t)(tiles + 1) / 2 * 2;
    const uint32_t depth = c->p->in_channels, step = (uint32_t)c->s.matrix;
    const epctx__gemm gemm = {36, even, row, depth, step, depth, 1, 0, 1.0f, {0, 0, 0}};
    const epctx__args args = {{c->input, c->taps}, {c->products}, fast, NULL};
    const size_t matrix = (size_t)even * row;
    float total[EPCTX__COLUMNS] = {0.0f};
    size_t n, k;
    (void)epctx__run_gemm(&gemm, &args); /* it cannot fail */
    for (n = 0; n < tiles; n++) {
        float *sums = c->products + n * row;
        for (k = 0; k < 6; k++)
            epctx__transform_axis(EPCTX__TURN_OUT, sums + 6 * k * matrix, matrix,
                                  sums + 6 * k * matrix, matrix, row);
        for (k = 0; k < 4; k++)
            epctx__transform_axis(EPCTX__TURN_OUT, sums + k * matrix, 6 * matrix, sums + k * matrix,
                                  6 * matrix, row);
        epctx__tile_sum(sums, matrix, columns, total);
        epctx__store_tile(c, n, sums, matrix, first, columns);
    }
    if (!epctx__sum_finite(total)) epctx__store_again(c, tiles, matrix, first, columns, row);
}

static EPCTX__INLINE void epctx__all_winograd_body(const epctx__conv *p, const epctx__args *args) {
    const size_t row = (size_t)p->window.out_w * p->out_channels, channels = p->in_channels;
    const size_t size = p->window.out_h * row;
    epctx__winograd_run c;
    size_t image, n, i, left, tiles, count;
    c.p = p;
    c.s = epctx__winograd_needs(p);
    c.weights = (const float *)args->in[1];
    c.bias = (const float *)args->in[2];
    c.band = (float *)args->out[1];
    c.input = c.band + c.s.band;
    c.taps = c.input + c.s.input;
    c.products = c.taps + c.s.taps;
    for (image = 0; image < p->batch; image++) {
        c.x = (const float *)args->in[0] + image * p->window.in_h * p->window.in_w * channels;
        c.add = args->in[3] != NULL ? (const float *)args->in[3] + image * size : NULL;
        c.y = (float *)args->out[0] + image * size;
        for (c.first = 0; c.first < c.s.down; c.first += (size_t)c.s.lines) {
            left = (size_t)c.s.down - c.first;
            tiles = (size_t)c.s.across * (left < c.s.lines ? left : (size_t)c.s.lines);
            for (i = 0; i < tiles; i += count) {
                left = (size_t)c.s.across - i % (size_t)c.s.across;
                count = left < c.s.strip ? left : (size_t)c.s.strip;
                epctx__transform_strip(&c, i / (size_t)c.s.across, i % (size_t)c.s.across, count);
            }
            for (i = 0; i < 36 && tiles % 2 != 0; i++)
                memset(c.input + i * c.s.matrix + tiles * channels, 0, channels * sizeof *c.input);
            for (n = 0; n < p->out_channels; n += count) {
                left = p->out_channels - n;
                count = left < c.s.columns ? left : (size_t)c.s.columns;
                /* transformed taps of all channels stay in the workspace */
                if (image + c.first == 0 || count < p->out_channels)
                    epctx__transform_taps(&c, (const float *)args->in[1] + n * 9 * channels,
                                          (count + 15) / 16 * 16 * channels);
                epctx__transform_products(&c, args->fast, tiles, n, count);
            }
        }
        epctx__activate(args->fast, c.y, p->act.kind > EPCTX__ACT_CLIP ? size : 0, &p->act);
    }
}

EPCTX__RUN(winograd, epctx__conv)

/* -- Pool: channels last -- */

typedef struct epctx__pool {
    uint32_t batch, channels;
    uint32_t row;  /* elements from pixel to pixel of the result: `channels` or more */
    uint32_t kind; /* a slide kind, but for products */
    epctx__window window;
} epctx__pool;

static bool epctx__check_pool(const epctx__pool *p, epctx__needs *needs) {
    const epctx__window *w = &p->window;
    const uint64_t pixels = epctx__mul3(p->batch, w->out_h, w->out_w);
    needs->in[0] = epctx__floats(epctx__mul4(p->batch, p->channels, w->in_h, w->in_w));
    needs->out[0] = epctx__floats(epctx__reach(pixels, p->row, p->channels, 1, 1, 0));
    needs->work = epctx__mul4(pixels, p->channels, w->kernel_h, w->kernel_w);
    return p->kind < EPCTX__SLIDE_PRODUCTS && p->row >= p->channels && epctx__window_ok(w);
}

static epctx_status epctx__run_pool(const epctx__pool *p, const epctx__args *args) {
    epctx__slides s = {
        &p->window, (epctx__slide_kind)p->kind, p->channels, p->row, NULL, NULL, NULL, NULL,
        {0, 0, 0}};
    return epctx__slide(args, p->batch, &s);
}

/* -- Reduce: over the middle of [outer][count][inner] -- */

typedef enum epctx__reduce_kind {
    EPCTX__REDUCE_SUM = 0,
    EPCTX__REDUCE_MEAN,
    EPCTX__REDUCE_MAX,
    EPCTX__REDUCE_MIN,
    EPCTX__REDUCE_PROD,
    EPCTX__REDUCE_COUNT
} epctx__reduce_kind;

typedef struct epctx__reduce {
    uint32_t kind, type, outer, count, inner;
} epctx__reduce;

static bool epctx__check_reduce(const epctx__reduce *p, epctx__needs *needs) {
    const uint32_t elem = epctx__elem_size(p->type);
    needs->in[0] = epctx__items(epctx__mul3(p->outer, p->count, p->inner), elem);
    needs->out[0] = epctx__items(epctx__mul(p->outer, p->inner), elem);
    return elem != 0 && p->kind < EPCTX__REDUCE_COUNT && p->count >= 1;
}

/* Combines element v with `best`; NaN wins. */
static EPCTX__INLINE float epctx__reduce_step(uint32_t kind, float best, float v) {
    const bool better = kind == EPCTX__REDUCE_MAX ? v > best : v < best;
    return epctx__choose(better | (v != v), v, best);
}

/* Up to 16 results, `step` apart in x and adjacent in y. Sums in double: long means would lose
 * digits in float. Float sums are never folded. */
static EPCTX__INLINE void epctx__reduce_strip(uint32_t kind, const float *x, size_t count,
                                              size_t step, size_t width, double divisor, float *y) {
    double sum[16];
    float best[16];
    size_t i, j;
    for (j = 0; j < width; j++) {
        best[j] = x[j];
        sum[j] = (double)x[j];
    }
    for (i = 1; i < count; i++) {
        x += step;
        for (j = 0; j < width; j++)
            if (kind <= EPCTX__REDUCE_MEAN)
                sum[j] += (double)x[j];
            else if (kind == EPCTX__REDUCE_PROD)
                sum[j] *= (double)x[j];
            else
                best[j] = epctx__reduce_step(kind, best[j], x[j]);
    }
    for (j = 0; j < width; j++)
        y[j] = kind == EPCTX__REDUCE_MAX || kind == EPCTX__REDUCE_MIN ? best[j]
                                                                      : (float)(sum[j] / divisor);
}

/* Combines 8 elements into the first one: `statement` takes in element j + half. Loops of constant
 * length vectorize, those of 8 in registers. */
#define EPCTX__FOLD(j, half, statement) \
    do { \
        EPCTX__FOLD_ONCE(j, half, 4, statement) \
        EPCTX__FOLD_ONCE(j, half, 2, statement) \
        EPCTX__FOLD_ONCE(j, half, 1, statement) \
    } while (0)
#define EPCTX__FOLD_ONCE(j, half, length, statement) \
    for (j = 0; j < length; j++) { \
        const size_t half = length; \
        statement \
    }

/* The sum of (x - mean), or of its square. */
static EPCTX__INLINE double epctx__row_sum(const float *x, size_t count, float mean, bool square) {
    double sum[8] = {0.0};
    size_t i, j;
    for (i = 0; count - i >= 8; i += 8)
        for (j = 0; j < 8; j++) {
            const double d = (double)(x[i + j] - mean);
            sum[j] += square ? d * d : d;
        }
    for (; i < count; i++) {
        const double d = (double)(x[i] - mean);
        sum[i % 8] += square ? d * d : d;
    }
    EPCTX__FOLD(j, half, sum[j] += sum[j + half];);
    return sum[0];
}

static EPCTX__INLINE float epctx__row_product(const float *x, size_t count) {
    double product[8];
    size_t i, j;
    for (j = 0; j < 8; j++) product[j] = 1.0;
    for (i = 0; count - i >= 8; i += 8)
        for (j = 0; j < 8; j++) product[j] *= (double)x[i + j];
    for (; i < count; i++) product[i % 8] *= (double)x[i];
    EPCTX__FOLD(j, half, product[j] *= product[j + half];);
    return (float)product[0];
}

static EPCTX__INLINE float epctx__row_few(uint32_t kind, const float *x, size_t count) {
    float best = x[0];
    size_t j;
    for (j = 1; j < count; j++) best = epctx__reduce_step(kind, best, x[j]);
    return best;
}

/* The maximum or minimum; the last 8 elements overlap those before. What tells of NaN is a flag or,
 * as clang vectorizes nothing beside flags, the NaN itself in a loop of its own. Then the lanes
 * need not mind it. */
static EPCTX__INLINE float epctx__row_best(uint32_t kind, const float *x, size_t count) {
    const bool max = kind == EPCTX__REDUCE_MAX;
    const bool flags = EPCTX__CHUNKS || !EPCTX__LOOPS;
    uint32_t nan[8] = {0};
    float best[8], bad[8] = {0.0f};
    size_t i, j;
    if (count < 8) return epctx__row_few(kind, x, count);
    for (j = 0; j < 8; j++) best[j] = x[0];
    for (i = 0; i < count; i += 8) {
        const float *at = x + (count - i < 8 ? count - 8 : i);
        for (j = 0; j < 8; j++) {
            best[j] = (max ? at[j] > best[j] : at[j] < best[j]) ? at[j] : best[j];
            if (flags) nan[j] |= at[j] != at[j];
        }
        for (j = 0; j < 8 && !flags; j++) bad[j] = at[j] == at[j] ? bad[j] : at[j];
    }
    EPCTX__FOLD(j, half, const float v = best[j + half];
                best[j] = (max ? v > best[j] : v < best[j]) ? v : best[j];
                nan[j] |= nan[j + half];);
    for (j = 0; j < 8 && !flags; j++) nan[0] |= bad[j] != bad[j];
    return nan[0] != 0 ? epctx__float_of(0x7fc00000u) : best[0];
}

static EPCTX__INLINE void epctx__reduce_kind_of(uint32_t kind, const epctx__reduce *p,
                                                const float *x, float *y) {
    const double divisor = p->kind == EPCTX__REDUCE_MEAN ? (double)p->count : 1.0;
    const size_t inner = p->inner;
    size_t o;
    for (o = 0; o < p->outer; o++) {
        if (inner == 1 && kind <= EPCTX__REDUCE_MEAN) {
            *y = (float)(epctx__row_sum(x, p->count, 0.0f, false) / divisor);
        } else if (inner == 1 && kind <= EPCTX__REDUCE_MIN) {
            *y = epctx__row_best(kind, x, p->count);
        } else if (inner == 1) {
            *y = epctx__row_product(x, p->count);
        } else {
            EPCTX__STRIPS(
                i, inner, width,
                epctx__reduce_strip(kind, x + i, p->count, inner, width, divisor, y + i););
        }
        x += p->count * inner;
        y += inner;
    }
}

static int64_t epctx__reduce_ints(const epctx__reduce *p, const uint8_t *x, size_t first) {
    int64_t result = epctx__load_int(x, first, p->type);
    size_t i;
    for (i = 1; i < p->count; i++) {
        const int64_t v = epctx__load_int(x, first + i * p->inner, p->type);
        switch (p->kind) {
        case EPCTX__REDUCE_MAX: result = v > result ? v : result; break;
        case EPCTX__REDUCE_MIN: result = v < result ? v : result; break;
        case EPCTX__REDUCE_PROD: result = (int64_t)((uint64_t)result * (uint64_t)v); break;
        default: result = (int64_t)((uint64_t)result + (uint64_t)v); break;
        }
    }
    return p->kind == EPCTX__REDUCE_MEAN ? result / (int64_t)p->count : result;
}

static EPCTX__INLINE void epctx__all_reduce_body(const epctx__reduce *p, const epctx__args *args) {
    const float *x = (const float *)args->in[0];
    float *y = (float *)args->out[0];
    size_t i;
    if (p->type != EPCTX_ONNX_FLOAT) {
        for (i = 0; i < (size_t)p->outer * p->inner; i++)
            epctx__store_int((uint8_t *)args->out[0], i, p->type,
                             epctx__reduce_ints(p, (const uint8_t *)args->in[0],
                                                i / p->inner * p->count * p->inner + i % p->inner));
    } else if (p->kind <= EPCTX__REDUCE_MEAN) { /* constants, so that the loops vectorize */
        epctx__reduce_kind_of(EPCTX__REDUCE_SUM, p, x, y);
    } else if (p->kind == EPCTX__REDUCE_MAX) {
        epctx__reduce_kind_of(EPCTX__REDUCE_MAX, p, x, y);
    } else if (p->kind == EPCTX__REDUCE_MIN) {
        epctx__reduce_kind_of(EPCTX__REDUCE_MIN, p, x, y);
    } else {
        epctx__reduce_kind_of(EPCTX__REDUCE_PROD, p, x, y);
    }
}

EPCTX__RUN(reduce, epctx__reduce)

/* -- Softmax over the middle of [outer][count][inner] -- */

typedef struct epctx__softmax {
    uint32_t log, outer, count, inner;
} epctx__softmax;

static bool epctx__check_softmax(const epctx__softmax *p, epctx__needs *needs) {
    needs->in[0] = needs->out[0] = epctx__floats(epctx__mul3(p->outer, p->count, p->inner));
    needs->work = epctx__mul4(32, p->outer, p->count, p->inner); /* an exponential each */
    return p->log <= 1 && p->count >= 1;
}

/* y = e^(x - top), added to sum. */
static EPCTX__INLINE void epctx__softmax_part(const float *EPCTX__RESTRICT x,
                                              const float *EPCTX__RESTRICT top, size_t width,
                                              float *EPCTX__RESTRICT sum,
                                              float *EPCTX__RESTRICT y) {
    size_t j;
    for (j = 0; j < width; j++) {
        y[j] = epctx__exp_normal(x[j] - top[j]);
        sum[j] += y[j];
    }
}

/* Up to 16 columns, `step` elements from row to row. */
static EPCTX__INLINE void epctx__softmax_strip(const float *x, float *y, size_t count, size_t step,
                                               size_t width, bool log) {
    float top[16], sum[16] = {0.0f};
    size_t i, j;
    for (j = 0; j < width; j++) top[j] = x[j];
    for (i = 1; i < count; i++)
        for (j = 0; j < width; j++) top[j] = x[i * step + j] > top[j] ? x[i * step + j] : top[j];
    for (i = 0; i < count; i++) epctx__softmax_part(x + i * step, top, width, sum, y + i * step);
    for (j = 0; j < width; j++) sum[j] = log ? epctx__log(sum[j]) : 1.0f / sum[j];
    for (i = 0; i < count; i++) {
        float v[16];
        for (j = 0; j < width; j++)
            v[j] = log ? x[i * step + j] - top[j] - sum[j] : y[i * step + j] * sum[j];
        for (j = 0; j < width; j++) y[i * step + j] = v[j];
    }
}

static EPCTX__INLINE void epctx__softmax_exps(const float *EPCTX__RESTRICT x, float top,
                                              float *EPCTX__RESTRICT y) {
    size_t j;
    for (j = 0; j < 16; j++) y[j] = epctx__exp_normal(x[j] - top);
}

/* 16 adjacent elements or more. Where the maximum is NaN or infinite, all results are NaN. */
static EPCTX__INLINE void epctx__softmax_row(const float *x, float *y, size_t count, bool log) {
    const float best = epctx__row_best(EPCTX__REDUCE_MAX, x, count);
    float scale, sum;
    size_t i, j;
    for (i = 0; i < count; i += 16) { /* the last 16 overlap those before */
        const size_t at = count - i < 16 ? count - 16 : i;
        epctx__softmax_exps(x + at, best, y + at);
    }
    sum = (float)epctx__row_sum(y, count, 0.0f, false);
    scale = log ? epctx__log(sum) : 1.0f / sum;
    if (log) {
        memcpy(y, x, count * sizeof *y);
        EPCTX__EACH(at, count, y[at] = y[at] - best - scale;);
    } else {
        for (i = 0; count - i >= 8; i += 8)
            for (j = 0; j < 8; j++) y[i + j] *= scale;
        for (; i < count; i++) y[i] *= scale;
    }
}

/* Up to 16 rows of fewer than 16 adjacent elements, side by side. */
static EPCTX__INLINE void epctx__softmax_short(const float *x, float *y, size_t count, size_t rows,
                                               bool log) {
    float in[15 * 16] = {0.0f}, out[15 * 16];
    size_t i, j;
    for (j = 0; j < rows; j++)
        for (i = 0; i < count; i++) in[i * 16 + j] = x[j * count + i];
    epctx__softmax_strip(in, out, count, 16, rows, log);
    for (j = 0; j < rows; j++)
        for (i = 0; i < count; i++) y[j * count + i] = out[i * 16 + j];
}

static EPCTX__INLINE void epctx__all_softmax_body(const epctx__softmax *p,
                                                  const epctx__args *args) {
    const float *x = (const float *)args->in[0];
    float *y = (float *)args->out[0];
    size_t o;
    if (p->inner == 1 && p->count < 16) {
        EPCTX__STRIPS(i, p->outer, width,
                      epctx__softmax_short(x + i * p->count, y + i * p->count, p->count, width,
                                           p->log != 0););
        return;
    }
    for (o = 0; o < p->outer; o++) {
        if (p->inner == 1) {
            epctx__softmax_row(x, y, p->count, p->log != 0);
        } else {
            EPCTX__STRIPS(
                i, p->inner, width,
                epctx__softmax_strip(x + i, y + i, p->count, p->inner, width, p->log != 0););
        }
        x += (size_t)p->count * p->inner;
        y += (size_t)p->count * p->inner;
    }
}

EPCTX__RUN(softmax, epctx__softmax)

/* -- CumSum: sums of what came before, over the middle of [outer][count][inner] -- */

typedef struct epctx__cum_sum {
    uint32_t type, outer, count, inner;
    uint32_t exclusive; /* 1: a sum leaves the element itself out */
    uint32_t reverse;   /* 1: sums start at the last element */
} epctx__cum_sum;

static bool epctx__check_cum_sum(const epctx__cum_sum *p, epctx__needs *needs) {
    needs->in[0] = needs->out[0] =
        epctx__items(epctx__mul3(p->outer, p->count, p->inner), epctx__stored_size(p->type));
    return p->count >= 1 && p->exclusive <= 1 && p->reverse <= 1 &&
           (p->type == EPCTX_ONNX_FLOAT || p->type == EPCTX_ONNX_DOUBLE ||
            p->type == EPCTX_ONNX_INT32 || p->type == EPCTX_ONNX_INT64);
}

/* Sums of two rows; integers are added without sign, as they wrap around. */
#define EPCTX__ROW_SUMS(T) \
    static EPCTX__INLINE void epctx__row_sums_##T(const T *a, const T *b, T *y, size_t count) { \
        EPCTX__EACH(j, count, y[j] = (T)(a[j] + b[j]);); \
    }

/* Sums along `rows` rows. Each waits for the one before: four rows at a time take clang half the
 * time. */
#define EPCTX__SUMS_ALONG(T) \
    static EPCTX__INLINE void epctx__sums_along_##T(const epctx__cum_sum *p, size_t rows, \
                                                    const T *x, T *y) { \
        const size_t count = p->count; \
        T sum[4] = {0}; \
        size_t i, j; \
        for (i = 0; i < count; i++) { \
            const size_t at = p->reverse != 0 ? count - 1 - i : i; \
            for (j = 0; j < rows; j++) { \
                const T next = (T)(sum[j] + x[j * count + at]); \
                y[j * count + at] = p->exclusive != 0 ? sum[j] : next; \
                sum[j] = next; \
            } \
        } \
    }

EPCTX__ROW_SUMS(float)
EPCTX__ROW_SUMS(double)
EPCTX__ROW_SUMS(uint32_t)
EPCTX__ROW_SUMS(uint64_t)
EPCTX__SUMS_ALONG(float)
EPCTX__SUMS_ALONG(double)
EPCTX__SUMS_ALONG(uint32_t)
EPCTX__SUMS_ALONG(uint64_t)

/* Sums of two rows of `type`, which is a constant where this is inlined. */
static EPCTX__INLINE void epctx__row_sums(uint32_t type, const void *a, const void *b, void *y,
                                          size_t count) {
    switch (type) {
    case EPCTX_ONNX_FLOAT:
        epctx__row_sums_float((const float *)a, (const float *)b, (float *)y, count);
        break;
    case EPCTX_ONNX_DOUBLE:
        epctx__row_sums_double((const double *)a, (const double *)b, (double *)y, count);
        break;
    case EPCTX_ONNX_INT32:
        epctx__row_sums_uint32_t((const uint32_t *)a, (const uint32_t *)b, (uint32_t *)y, count);
        break;
    default:
        epctx__row_sums_uint64_t((const uint64_t *)a, (const uint64_t *)b, (uint64_t *)y, count);
    }
}

static EPCTX__INLINE void epctx__sums_along(const epctx__cum_sum *p, uint32_t type, size_t rows,
                                            const void *x, void *y) {
    switch (type) {
    case EPCTX_ONNX_FLOAT: epctx__sums_along_float(p, rows, (const float *)x, (float *)y); break;
    case EPCTX_ONNX_DOUBLE:
        epctx__sums_along_double(p, rows, (const double *)x, (double *)y);
        break;
    case EPCTX_ONNX_INT32:
        epctx__sums_along_uint32_t(p, rows, (const uint32_t *)x, (uint32_t *)y);
        break;
    default: epctx__sums_along_uint64_t(p, rows, (const uint64_t *)x, (uint64_t *)y);
    }
}

/* Sums over one [count][inner]: every row is the one before plus one of x. */
static EPCTX__INLINE void epctx__sums_across(const epctx__cum_sum *p, uint32_t type, uint32_t size,
                                             const uint8_t *x, uint8_t *y) {
    const size_t inner = p->inner, count = p->count, row = inner * size;
    const size_t step = p->reverse != 0 ? 0 - row : row; /* modulo 2^64, or 2^32 */
    const size_t first = p->reverse != 0 ? (count - 1) * row : 0;
    const size_t shift = p->exclusive != 0 ? step : 0;
    size_t i, at = first + step;
    if (p->exclusive != 0)
        memset(y + first, 0, row);
    else
        memcpy(y + first, x + first, row);
    for (i = 1; i < count; i++, at += step)
        epctx__row_sums(type, y + (at - step), x + (at - shift), y + at, inner);
}

static EPCTX__INLINE void epctx__cum_sum_of(const epctx__cum_sum *p, uint32_t type, uint32_t size,
                                            const epctx__args *args) {
    const size_t all = (size_t)p->count * p->inner * size, rows = p->inner == 1 ? p->outer : 0;
    const uint8_t *x = (const uint8_t *)args->in[0];
    uint8_t *y = (uint8_t *)args->out[0];
    size_t o = 0;
    for (; rows - o >= 4; o += 4) epctx__sums_along(p, type, 4, x + o * all, y + o * all);
    for (; o < rows; o++) epctx__sums_along(p, type, 1, x + o * all, y + o * all);
    for (; o < p->outer; o++) epctx__sums_across(p, type, size, x + o * all, y + o * all);
}

static EPCTX__INLINE void epctx__all_cum_sum_body(const epctx__cum_sum *p,
                                                  const epctx__args *args) {
    switch (p->type) {
    case EPCTX_ONNX_FLOAT: epctx__cum_sum_of(p, EPCTX_ONNX_FLOAT, 4, args); break;
    case EPCTX_ONNX_DOUBLE: epctx__cum_sum_of(p, EPCTX_ONNX_DOUBLE, 8, args); break;
    case EPCTX_ONNX_INT32: epctx__cum_sum_of(p, EPCTX_ONNX_INT32, 4, args); break;
    default: epctx__cum_sum_of(p, EPCTX_ONNX_INT64, 8, args); break;
    }
}

EPCTX__RUN(cum_sum, epctx__cum_sum)

/* Index `i` of in[1], below `size`; negative ones count from the end. It is read once: the caller's
 * memory may change between the check and the use. */
static EPCTX__INLINE epctx_status epctx__checked(const epctx__args *args, size_t i, uint32_t elem,
                                                 uint32_t size, size_t *out) {
    const int64_t index = epctx__index((const uint8_t *)args->in[1], i, elem);
    *out = 0;
    if (index < -(int64_t)size || index >= (int64_t)size)
        return epctx_fail(args->error, EPCTX_ERR_ARG, "index %u: expected %d..%d, found %d",
                          (uint64_t)i, -(int64_t)size, (int64_t)size - 1, index);
    *out = (size_t)(index < 0 ? index + (int64_t)size : index);
    return EPCTX_OK;
}

/* -- Gather: rows of `inner` elements by an index from data -- */

typedef struct epctx__gather_params {
    uint32_t elem;       /* bytes of an element */
    uint32_t index_elem; /* bytes of an index: 4 or 8 */
    uint32_t outer, axis, count, inner;
} epctx__gather_params;

static bool epctx__check_gather(const epctx__gather_params *p, epctx__needs *needs) {
    needs->in[0] = epctx__items(epctx__mul3(p->outer, p->axis, p->inner), p->elem);
    needs->in[1] = epctx__items(p->count, p->index_elem);
    needs->out[0] = epctx__items(epctx__mul3(p->outer, p->count, p->inner), p->elem);
    return epctx__elem_ok(p->elem) && (p->index_elem == 4 || p->index_elem == 8);
}

static epctx_status epctx__run_gather(const epctx__gather_params *p, const epctx__args *args) {
    const size_t row = (size_t)p->inner * p->elem;
    const uint8_t *x = (const uint8_t *)args->in[0];
    uint8_t *y = (uint8_t *)args->out[0];
    size_t o, i, index;
    for (o = 0; o < p->outer; o++) {
        for (i = 0; i < p->count; i++) {
            EPCTX__TRY(epctx__checked(args, i, p->index_elem, p->axis, &index));
            memcpy(y, x + index * row, row);
            y += row;
        }
        x += (size_t)p->axis * row;
    }
    return EPCTX_OK;
}

/* -- Cast -- */

typedef struct epctx__cast {
    uint32_t count;
    uint32_t from, to; /* ONNX element types */
} epctx__cast;

static bool epctx__check_cast(const epctx__cast *p, epctx__needs *needs) {
    uint32_t from = epctx__elem_size(p->from), to = epctx__elem_size(p->to);
    needs->in[0] = epctx__items(p->count, from);
    needs->out[0] = epctx__items(p->count, to);
    return from != 0 && to != 0;
}

/* Truncates; out of range gives the smallest integer, as on x86. */
static EPCTX__INLINE int64_t epctx__to_wide(float f) {
    const float limit = 9223372036854775808.0f;
    return f >= -limit && f < limit ? (int64_t)f : INT64_MIN;
}

static EPCTX__INLINE int32_t epctx__to_narrow(float f) {
    const float limit = 2147483648.0f;
    const bool inside = (f >= -limit) & (f < limit);
    const int32_t t = (int32_t)epctx__choose(inside, f, 0.0f);
    return inside ? t : INT32_MIN;
}

/* Defines a function that casts from T, whose integer is `wide` as int64, `narrow` as int32. */
#define EPCTX__CAST_FROM(name, T, wide, narrow) \
    static EPCTX__INLINE void epctx__cast_##name(uint32_t to, const T *x, void *y, size_t count) { \
        if (to == EPCTX_ONNX_FLOAT) \
            EPCTX__EACH_HINT(EPCTX__LONG_STEP, i, count, ((float *)y)[i] = (float)x[i];); \
        else if (to == EPCTX_ONNX_INT64) \
            EPCTX__EACH_HINT(EPCTX__LONG_STEP, i, count, ((int64_t *)y)[i] = wide;); \
        else if (to == EPCTX_ONNX_INT32) \
            EPCTX__EACH_HINT(EPCTX__LONG_STEP, i, count, ((int32_t *)y)[i] = narrow;); \
        else if (to == EPCTX_ONNX_BOOL) \
            EPCTX__EACH_HINT(EPCTX__LONG_STEP, i, count, ((uint8_t *)y)[i] = x[i] != 0;); \
        else /* int8, uint8 */ \
            EPCTX__EACH_HINT(EPCTX__LONG_STEP, i, count, \
                             ((uint8_t *)y)[i] = (uint8_t)((narrow)&0xff);); \
    }

EPCTX__CAST_FROM(float, float, epctx__to_wide(x[i]), epctx__to_narrow(x[i]))
EPCTX__CAST_FROM(near, float, (int32_t)x[i], (int32_t)x[i])
EPCTX__CAST_FROM(int64, int64_t, x[i], (int32_t)(uint32_t)((uint64_t)x[i] & UINT32_MAX))
EPCTX__CAST_FROM(int32, int32_t, x[i], x[i])
EPCTX__CAST_FROM(int8, int8_t, x[i], x[i])
EPCTX__CAST_FROM(uint8, uint8_t, x[i], x[i])

/* True if every number is in -2^30 .. 2^30 - 1. */
static EPCTX__INLINE bool epctx__all_narrow(const int64_t *x, size_t count) {
    uint64_t high = 0;
    EPCTX__EACH(i, count, high |= ((uint64_t)x[i] + (1u << 30)) >> 31;);
    return high == 0;
}

static EPCTX__INLINE void epctx__all_cast_body(const epctx__cast *p, const epctx__args *args) {
    const void *x = args->in[0];
    const size_t count = p->count;
    void *y = args->out[0];
    size_t i;
    switch (p->from) {
    case EPCTX_ONNX_FLOAT:
        for (i = 0; i < count; i += 2048) {
            const size_t part = count - i < 2048 ? count - i : 2048;
            const float *f = (const float *)x + i;
            void *to = (uint8_t *)y + i * epctx__elem_size(p->to);
            if (p->to != EPCTX_ONNX_BOOL && p->to != EPCTX_ONNX_INT32 &&
                epctx__all_near(f, part, 31))
                epctx__cast_near(p->to, f, to, part);
            else
                epctx__cast_float(p->to, f, to, part);
        }
        break;
    case EPCTX_ONNX_INT64:
        if (p->to == EPCTX_ONNX_FLOAT && epctx__all_narrow((const int64_t *)x, count))
            EPCTX__EACH(j, count, ((float *)y)[j] = (float)(int32_t)((const int64_t *)x)[j];);
        else
            epctx__cast_int64(p->to, (const int64_t *)x, y, count);
        break;
    case EPCTX_ONNX_INT32: epctx__cast_int32(p->to, (const int32_t *)x, y, count); break;
    case EPCTX_ONNX_INT8: epctx__cast_int8(p->to, (const int8_t *)x, y, count); break;
    default: epctx__cast_uint8(p->to, (const uint8_t *)x, y, count); break;
    }
}

EPCTX__RUN(cast, epctx__cast)

/* -- Convert: types that are only stored to those that are computed, and back -- */

/* A stored type and that in which it is computed, or double and float or int64. */
static bool epctx__converts(uint32_t stored, uint32_t computed) {
    if (stored == EPCTX_ONNX_DOUBLE)
        return computed == EPCTX_ONNX_FLOAT || computed == EPCTX_ONNX_INT64;
    return stored != computed && epctx__computed_type(stored) == (int32_t)computed;
}

static bool epctx__check_convert(const epctx__cast *p, epctx__needs *needs) {
    needs->in[0] = epctx__items(p->count, epctx__stored_size(p->from));
    needs->out[0] = epctx__items(p->count, epctx__stored_size(p->to));
    return epctx__converts(p->from, p->to) || epctx__converts(p->to, p->from);
}

static float epctx__from_half(uint32_t h) {
    const uint32_t sign = (h & 0x8000u) << 16, rest = h & 0x7fffu;
    if (rest >= 0x7c00u) return epctx__float_of(sign | 0x7f800000u | (rest & 0x3ffu) << 13);
    if (rest >= 0x400u) return epctx__float_of(sign | ((rest << 13) + (112u << 23)));
    return epctx__signed((float)rest * (1.0f / 16777216.0f), epctx__float_of(sign));
}

/* The high bits of a float, rounded to even; `low` are dropped. */
static uint32_t epctx__round_off(uint32_t bits, uint32_t low) {
    return (bits + (1u << (low - 1)) - 1 + (bits >> low & 1)) >> low;
}

static uint32_t epctx__to_half(float f) {
    const uint32_t bits = epctx__bits_of(f), sign = bits >> 16 & 0x8000u;
    const uint32_t rest = bits & 0x7fffffffu;
    if (rest > 0x7f800000u) return sign | 0x7e00u;
    if (rest >= 0x47800000u) return sign | 0x7c00u; /* 65536 or more */
    if (rest >= 0x38800000u) return sign | epctx__round_off(rest - (112u << 23), 13);
    return sign | (uint32_t)epctx__round(epctx__float_of(rest) * 16777216.0f);
}

/* Element `i`, by way of a float, a double or an integer (or the bits of a half). */
static void epctx__convert_one(const epctx__cast *p, const uint8_t *x, size_t i, uint8_t *y) {
    const bool real = p->from == EPCTX_ONNX_FLOAT || p->from == EPCTX_ONNX_DOUBLE;
    int64_t v = real ? 0 : epctx__load_int(x, i, p->from);
    double d = (double)v;
    uint32_t bits = (uint32_t)(v & 0xffff);
    float f = p->from == EPCTX_ONNX_FLOAT16 ? epctx__from_half(bits) : epctx__float_of(bits << 16);
    if (p->from == EPCTX_ONNX_FLOAT) {
        memcpy(&f, x + i * 4, 4);
        d = (double)f;
        bits = epctx__bits_of(f);
        v = p->to == EPCTX_ONNX_FLOAT16          ? epctx__to_half(f)
            : (bits & 0x7fffffffu) > 0x7f800000u ? (bits >> 16 | 0x40u)
                                                 : epctx__round_off(bits, 16);
    } else if (p->from == EPCTX_ONNX_DOUBLE) {
        memcpy(&d, x + i * 8, 8);
        f = (float)d;
        v = d >= -9223372036854775808.0 && d < 9223372036854775808.0 ? (int64_t)d : INT64_MIN;
    }
    if (p->to == EPCTX_ONNX_FLOAT)
        memcpy(y + i * 4, &f, 4);
    else if (p->to == EPCTX_ONNX_DOUBLE)
        memcpy(y + i * 8, &d, 8);
    else
        epctx__store_int(y, i, p->to, v);
}

static epctx_status epctx__run_convert(const epctx__cast *p, const epctx__args *args) {
    const uint8_t *x = (const uint8_t *)args->in[0];
    uint8_t *y = (uint8_t *)args->out[0];
    size_t i;
    for (i = 0; i < p->count; i++) epctx__convert_one(p, x, i, y);
    return EPCTX_OK;
}

/* -- Exact: integers and booleans, and comparisons of floats -- */

typedef enum epctx__exact_kind {
    EPCTX__EXACT_ADD = 0,
    EPCTX__EXACT_SUB,
    EPCTX__EXACT_MUL,
    EPCTX__EXACT_DIV, /* towards zero */
    EPCTX__EXACT_MIN,
    EPCTX__EXACT_MAX,
    EPCTX__EXACT_MOD,  /* sign of the divisor */
    EPCTX__EXACT_FMOD, /* sign of the dividend */
    EPCTX__EXACT_AND,
    EPCTX__EXACT_OR,
    EPCTX__EXACT_XOR,
    EPCTX__EXACT_LEFT,
    EPCTX__EXACT_RIGHT,
    EPCTX__EXACT_EQUAL, /* from here on the result is a boolean */
    EPCTX__EXACT_LESS,
    EPCTX__EXACT_LESS_EQUAL,
    EPCTX__EXACT_COUNT
} epctx__exact_kind;

typedef struct epctx__exact {
    uint32_t kind, type; /* of both inputs; float only for comparisons */
    uint32_t rank;
    uint32_t dims[EPCTX_NPU_MAX_RANK];
    int32_t a[EPCTX_NPU_MAX_RANK]; /* strides in elements, 0: broadcast; the result is dense */
    int32_t b[EPCTX_NPU_MAX_RANK];
} epctx__exact;

static uint32_t epctx__exact_type(uint32_t kind, uint32_t type) {
    return kind >= EPCTX__EXACT_EQUAL ? (uint32_t)EPCTX_ONNX_BOOL : type;
}

static epctx__rows epctx__rows_exact(const epctx__exact *p) {
    const uint32_t elem = epctx__stored_size(p->type);
    const uint32_t out_elem = epctx__stored_size(epctx__exact_type(p->kind, p->type));
    const epctx__rows w = {p->dims, p->rank, 2, {p->a, p->b}, {elem, elem}, out_elem};
    return w;
}

static bool epctx__check_exact(const epctx__exact *p, epctx__needs *needs) {
    const epctx__rows w = epctx__rows_exact(p);
    return p->kind < EPCTX__EXACT_COUNT && w.elem[0] != 0 &&
           epctx__computed_type(p->type) == (int32_t)p->type &&
           (p->type != EPCTX_ONNX_FLOAT || p->kind >= EPCTX__EXACT_EQUAL) &&
           (p->type != EPCTX_ONNX_DOUBLE || p->kind <= EPCTX__EXACT_MAX ||
            p->kind >= EPCTX__EXACT_EQUAL) &&
           epctx__check_rows(&w, needs);
}

/* The kinds that have vector forms; `value` is of type R, U is the unsigned counterpart of T. */
#define EPCTX_NPU_EXACT_ARITHMETIC(X, T, U) \
    X(ADD, T, T, (T)((U)a + (U)b)) \
    X(SUB, T, T, (T)((U)a - (U)b)) \
    X(MUL, T, T, (T)((U)a * (U)b)) \
    X(MIN, T, T, a < b ? a : b) \
    X(MAX, T, T, a > b ? a : b) \
    X(AND, T, T, (T)(a & b)) \
    X(OR, T, T, (T)(a | b)) \
    X(XOR, T, T, (T)(a ^ b))

#define EPCTX_NPU_EXACT_DOUBLES(X) \
    X(ADD, double, double, a + b) \
    X(SUB, double, double, a - b) \
    X(MUL, double, double, a *b) \
    X(DIV, double, double, a / b) \
    X(MIN, double, double, a < b || a != a ? a : b) \
    X(MAX, double, double, a > b || a != a ? a : b)

#define EPCTX_NPU_EXACT_COMPARISONS(X, T) \
    X(EQUAL, T, uint8_t, a == b) \
    X(LESS, T, uint8_t, a < b) \
    X(LESS_EQUAL, T, uint8_t, a <= b)

#define EPCTX__EXACT_CASE(name, T, R, value) \
    case EPCTX__EXACT_##name: \
        EPCTX__EACH(i, count, const T a = x[i]; const T b = z[i]; ((R *)y)[i] = (R)(value);); \
        return true;

/* Defines the function of a type, which returns false if the kind has no vector form. */
#define EPCTX__EXACT_FAST(T, list) \
    static EPCTX__INLINE bool epctx__exact_##T(uint32_t kind, const epctx__row *r) { \
        const T *const x = (const T *)r->in[0], *const z = (const T *)r->in[1]; \
        const size_t count = r->count; \
        void *const y = r->out; \
        switch (kind) { list default : return false; } \
    }
#define EPCTX__EXACT_INTEGERS(T, U) \
    EPCTX__EXACT_FAST(T, EPCTX_NPU_EXACT_ARITHMETIC(EPCTX__EXACT_CASE, T, U) \
                             EPCTX_NPU_EXACT_COMPARISONS(EPCTX__EXACT_CASE, T))

EPCTX__EXACT_INTEGERS(int64_t, uint64_t)
EPCTX__EXACT_INTEGERS(int32_t, uint32_t)
EPCTX__EXACT_INTEGERS(int8_t, uint8_t)
EPCTX__EXACT_INTEGERS(uint8_t, uint8_t)
EPCTX__EXACT_FAST(float, EPCTX_NPU_EXACT_COMPARISONS(EPCTX__EXACT_CASE, float))
EPCTX__EXACT_FAST(double, EPCTX_NPU_EXACT_DOUBLES(EPCTX__EXACT_CASE)
                              EPCTX_NPU_EXACT_COMPARISONS(EPCTX__EXACT_CASE, double))

/* Integers, every kind but the comparisons. Overflow wraps around. The divisor is not 0. */
static int64_t epctx__exact_int(uint32_t kind, int64_t a, int64_t b) {
    const uint64_t x = (uint64_t)a, y = (uint64_t)b;
    int64_t rest;
    switch (kind) {
#define EPCTX__EXACT_VALUE(name, T, R, value) \
    case EPCTX__EXACT_##name: return value;
        EPCTX_NPU_EXACT_ARITHMETIC(EPCTX__EXACT_VALUE, int64_t, uint64_t)
#undef EPCTX__EXACT_VALUE
    case EPCTX__EXACT_DIV: return b == -1 ? (int64_t)(0 - x) : a / b;
    case EPCTX__EXACT_MOD:
        rest = b == -1 ? 0 : a % b;
        return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
    case EPCTX__EXACT_FMOD: return b == -1 ? 0 : a % b;
    case EPCTX__EXACT_LEFT: return y < 64 ? (int64_t)(x << y) : 0;
    default: return y < 64 ? (int64_t)(x >> y) : 0;
    }
}

/* Computes the kinds that have no vector form. False: a divisor is 0. */
static bool epctx__exact_each(const epctx__exact *p, const epctx__row *r) {
    const bool divides =
        p->kind == EPCTX__EXACT_DIV || p->kind == EPCTX__EXACT_MOD || p->kind == EPCTX__EXACT_FMOD;
    const int64_t *const x = (const int64_t *)r->in[0], *const z = (const int64_t *)r->in[1];
    size_t i;
    for (i = 0; i < r->count && p->type == EPCTX_ONNX_INT64; i++) {
        if (divides && z[i] == 0) return false;
        ((int64_t *)r->out)[i] = epctx__exact_int(p->kind, x[i], z[i]);
    }
    for (; i < r->count; i++) {
        const int64_t a = epctx__load_int((const uint8_t *)r->in[0], i, p->type);
        const int64_t b = epctx__load_int((const uint8_t *)r->in[1], i, p->type);
        if (divides && b == 0) return false;
        epctx__store_int((uint8_t *)r->out, i, p->type, epctx__exact_int(p->kind, a, b));
    }
    return true;
}

/* Whether no divisor is 0 and all numbers of two rows are from -2^30 to 2^30 - 1. */
#define EPCTX__DIVIDES(T, U) \
    static EPCTX__INLINE bool epctx__divides_##T(const T *x, const T *z, size_t count) { \
        const U half = (U)1 << 30; \
        U bad = 0; \
        EPCTX__EACH(i, count, bad |= (((U)x[i] + half) | ((U)z[i] + half)) >> 31; \
                    bad |= z[i] == 0 ? 1u : 0u;); \
        return bad == 0; \
    }

/* Quotients of such numbers, by way of double, which is exact. */
#define EPCTX__QUOTIENTS(T) \
    static EPCTX__INLINE void epctx__quotients_##T(const T *x, const T *z, T *y, size_t count) { \
        EPCTX__EACH_HINT(EPCTX__LONG_STEP, i, count, \
                         y[i] = (int32_t)((double)(int32_t)x[i] / (double)(int32_t)z[i]);); \
    }

/* Remainders, with the sign of x, or (`floors` -1) of the divisor. */
#define EPCTX__REMAINDERS(T) \
    static EPCTX__INLINE void epctx__remainders_##T(const T *x, const T *z, T *y, size_t count, \
                                                    int32_t floors) { \
        EPCTX__EACH_HINT(EPCTX__LONG_STEP, i, count, const int32_t a = (int32_t)x[i]; \
                         const int32_t b = (int32_t)z[i]; \
                         const int32_t rest = a - (int32_t)((double)a / (double)b) * b; \
                         y[i] = rest + (rest != 0 && (rest ^ b) < 0 ? b & floors : 0);); \
    }

/* Quotients or remainders of a row. False: another kind, or numbers that have another function. */
#define EPCTX__DIVISION(T) \
    static EPCTX__INLINE bool epctx__division_##T(uint32_t kind, const epctx__row *r) { \
        const T *const x = (const T *)r->in[0], *const z = (const T *)r->in[1]; \
        T *const y = (T *)r->out; \
        if ((kind != EPCTX__EXACT_DIV && kind != EPCTX__EXACT_MOD && kind != EPCTX__EXACT_FMOD) || \
            !epctx__divides_##T(x, z, r->count)) \
            return false; \
        if (kind == EPCTX__EXACT_DIV) \
            epctx__quotients_##T(x, z, y, r->count); \
        else \
            epctx__remainders_##T(x, z, y, r->count, kind == EPCTX__EXACT_MOD ? -1 : 0); \
        return true; \
    }

EPCTX__DIVIDES(int64_t, uint64_t)
EPCTX__DIVIDES(int32_t, uint32_t)
EPCTX__QUOTIENTS(int64_t)
EPCTX__QUOTIENTS(int32_t)
EPCTX__REMAINDERS(int64_t)
EPCTX__REMAINDERS(int32_t)
EPCTX__DIVISION(int64_t)
EPCTX__DIVISION(int32_t)

static EPCTX__INLINE void epctx__exact_row_body(epctx__row *r) {
    const epctx__exact *p = (const epctx__exact *)r->params;
    bool done;
    switch (p->type) {
    case EPCTX_ONNX_FLOAT: done = epctx__exact_float(p->kind, r); break;
    case EPCTX_ONNX_DOUBLE: done = epctx__exact_double(p->kind, r); break;
    case EPCTX_ONNX_INT64:
        done = epctx__exact_int64_t(p->kind, r) || epctx__division_int64_t(p->kind, r);
        break;
    case EPCTX_ONNX_INT32:
        done = epctx__exact_int32_t(p->kind, r) || epctx__division_int32_t(p->kind, r);
        break;
    case EPCTX_ONNX_INT8: done = epctx__exact_int8_t(p->kind, r); break;
    default: done = epctx__exact_uint8_t(p->kind, r); break;
    }
    r->fails = !done && !epctx__exact_each(p, r);
}

EPCTX__RUN_ROWS(exact)

/* -- Where: selects one of two by a condition -- */

typedef struct epctx__where {
    uint32_t elem, rank;
    uint32_t dims[EPCTX_NPU_MAX_RANK];
    int32_t condition[EPCTX_NPU_MAX_RANK]; /* strides */
    int32_t a[EPCTX_NPU_MAX_RANK];
    int32_t b[EPCTX_NPU_MAX_RANK];
} epctx__where;

static epctx__rows epctx__rows_where(const epctx__where *p) {
    const uint32_t elem = p->elem;
    const epctx__rows w = {p->dims, p->rank, 3, {p->condition, p->a, p->b}, {1, elem, elem}, elem};
    return w;
}

static bool epctx__check_where(const epctx__where *p, epctx__needs *needs) {
    const epctx__rows w = epctx__rows_where(p);
    return epctx__elem_ok(p->elem) && epctx__check_rows(&w, needs);
}

#define EPCTX__WHERE_CASE(T) \
    EPCTX__EACH_HINT(EPCTX__LONG_STEP, i, count, const T a = ((const T *)x)[i]; \
                     const T b = ((const T *)z)[i]; ((T *)y)[i] = c[i] != 0 ? a : b;);

static EPCTX__INLINE void epctx__where_row_body(epctx__row *r) {
    const uint32_t elem = ((const epctx__where *)r->params)->elem;
    const uint8_t *const c = (const uint8_t *)r->in[0];
    const void *const x = r->in[1], *const z = r->in[2];
    const size_t count = r->count;
    void *const y = r->out;
    if (elem == 1)
        EPCTX__WHERE_CASE(uint8_t)
    else if (elem == 4)
        EPCTX__WHERE_CASE(uint32_t)
    else
        EPCTX__WHERE_CASE(uint64_t)
}

EPCTX__RUN_ROWS(where)

/* -- Norm: rows of mean 0 and variance 1, then scale and shift -- */

typedef struct epctx__norm {
    uint32_t rows, count;     /* elements of a row */
    uint32_t centred;         /* 0: only divides by the root mean square */
    uint32_t inner, channels; /* element i of the tensor takes scale[i / inner % channels] */
    float epsilon;
} epctx__norm;

static bool epctx__check_norm(const epctx__norm *p, epctx__needs *needs) {
    needs->in[0] = needs->out[0] = epctx__floats(epctx__mul(p->rows, p->count));
    needs->in[1] = needs->in[2] = epctx__floats(p->channels);
    return p->centred <= 1 && p->inner >= 1 && p->channels >= 1 && p->count >= 1;
}

static EPCTX__INLINE void epctx__norm_runs(const epctx__norm *p, const float *x, float mean,
                                           float factor, const float *scale, const float *shift,
                                           size_t first, float *y) {
    size_t i, left = p->inner - first % p->inner, c = first / p->inner % p->channels;
    for (i = 0; i < p->count; i += left) {
        const float f = scale != NULL ? scale[c] : 1.0f, g = shift != NULL ? shift[c] : 0.0f;
        const float *from = x + i;
        float *to = y + i;
        left = i == 0 ? left : p->inner;
        left = p->count - i < left ? p->count - i : left;
        EPCTX__EACH(at, left, to[at] = (from[at] - mean) * factor * f + g;);
        c = c + 1 < p->channels ? c + 1 : 0;
    }
}

/* 16 or fewer elements; `scale` and `shift` may be NULL. */
static EPCTX__INLINE void epctx__norm_part(const float *EPCTX__RESTRICT x, float mean, float factor,
                                           const float *scale, const float *shift, size_t width,
                                           float *EPCTX__RESTRICT y) {
    size_t j;
    for (j = 0; j < width; j++) y[j] = (x[j] - mean) * factor;
    for (j = 0; scale != NULL && j < width; j++) y[j] *= scale[j];
    for (j = 0; shift != NULL && j < width; j++) y[j] += shift[j];
}

/* y = (x - mean) / sqrt(variance + epsilon). Sums in double. Never folded. */
static EPCTX__INLINE void epctx__all_norm_body(const epctx__norm *p, const epctx__args *args) {
    const bool own = p->inner == 1 && p->channels == p->count; /* factors for each element */
    const float *scale = (const float *)args->in[1], *shift = (const float *)args->in[2];
    const double all = (double)p->count;
    size_t r;
    for (r = 0; r < p->rows; r++) {
        const size_t first = r * p->count;
        const float *x = (const float *)args->in[0] + first;
        float *y = (float *)args->out[0] + first;
        const float mean =
            p->centred != 0 ? (float)(epctx__row_sum(x, p->count, 0.0f, false) / all) : 0.0f;
        const double square = epctx__row_sum(x, p->count, mean, true) / all;
        const float factor = 1.0f / epctx__sqrt((float)(square + (double)p->epsilon));
        if (own)
            EPCTX__STRIPS(i, p->count, width,
                          epctx__norm_part(x + i, mean, factor, scale != NULL ? scale + i : NULL,
                                           shift != NULL ? shift + i : NULL, width, y + i););
        else
            epctx__norm_runs(p, x, mean, factor, scale, shift, first, y);
    }
}

EPCTX__RUN(norm, epctx__norm)

/* -- Arg: indices of the largest or smallest over the middle of [outer][count][inner] -- */

typedef struct epctx__arg {
    uint32_t smallest; /* 1: of the smallest element, not of the largest */
    uint32_t last;     /* 1: of the last one of equal elements, not of the first */
    uint32_t type;     /* of the input; the output is int64 */
    uint32_t outer, count, inner;
    uint32_t keep; /* indices of a row, the best first: [outer][keep][inner] */
} epctx__arg;

static bool epctx__check_arg(const epctx__arg *p, epctx__needs *needs) {
    const uint32_t elem = epctx__elem_size(p->type);
    needs->in[0] = epctx__items(epctx__mul3(p->outer, p->count, p->inner), elem);
    needs->out[0] = epctx__items(epctx__mul3(p->outer, p->keep, p->inner), 8);
    needs->work = epctx__mul4(p->outer, p->count, p->inner, p->keep);
    return elem != 0 && p->smallest <= 1 && p->last <= 1 && p->keep >= 1 && p->count >= p->keep;
}

/* The elements from `k` on of up to 16 rows, which lie `pitch` apart, their elements `step`. `last`
 * is a constant, so that each compiler vectorizes the loop. A NaN is the best as the
 * first element only, as in ONNX Runtime. */
static EPCTX__INLINE void epctx__arg_part(const float *x, size_t pitch, size_t step, size_t width,
                                          float sign, bool last, size_t k, size_t end, float *best,
                                          int32_t *index) {
    size_t j;
    for (; k < end; k++) {
        for (j = 0; j < width; j++) {
            const float v = sign * x[j * pitch];
            const bool better = last ? v >= best[j] : v > best[j];
            index[j] = better ? (int32_t)k : index[j];
            best[j] = epctx__choose(better, v, best[j]);
        }
        x += step;
    }
}

/* The indices for up to 16 rows. For clang, which does not gather, rows of adjacent elements are
 * first transposed, so that they lie side by side. */
static EPCTX__INLINE void epctx__arg_rows(const epctx__arg *p, const float *x, size_t pitch,
                                          size_t step, size_t width, bool last, int64_t *y) {
    const float sign = p->smallest != 0 ? -1.0f : 1.0f;
    float best[16];
    int32_t index[16] = {0};
    size_t j, k = 0;
    for (j = 0; j < width; j++) best[j] = sign * x[j * pitch];
#ifdef EPCTX__AVX2
    while (!EPCTX__CHUNKS && step == 1 && width == 16 && p->count - k >= 4) {
        const size_t end = p->count - k < 36 ? p->count : k + 32;
        float transposed[36 * 16];
        epctx__transform_matrix(transposed, x + k, end - k, 16, 16, (ptrdiff_t)pitch);
        epctx__arg_part(transposed, 1, 16, 16, sign, last, k, end, best, index);
        k = end;
    }
#endif
    epctx__arg_part(x + k * step, pitch, step, width, sign, last, k, p->count, best, index);
    for (j = 0; j < width; j++) y[j] = index[j];
}

static EPCTX__INLINE void epctx__arg_strip(const epctx__arg *p, const float *x, size_t pitch,
                                           size_t step, size_t width, int64_t *y) {
    if (p->last != 0)
        epctx__arg_rows(p, x, pitch, step, width, true, y);
    else
        epctx__arg_rows(p, x, pitch, step, width, false, y);
}

static int64_t epctx__arg_ints(const epctx__arg *p, const uint8_t *x, size_t first) {
    int64_t best = epctx__load_int(x, first, p->type), index = 0;
    size_t k;
    for (k = 1; k < p->count; k++) {
        const int64_t v = epctx__load_int(x, first + k * p->inner, p->type);
        if (p->smallest != 0 ? v < best : v > best) {
            best = v;
            index = (int64_t)k;
        } else if (v == best && p->last != 0) {
            index = (int64_t)k;
        }
    }
    return index;
}

/* Whether element `a` of the row at `x` comes before `b`, which has the lower index. */
static bool epctx__arg_before(const epctx__arg *p, const uint8_t *x, size_t a, size_t b) {
    const size_t more = (p->smallest != 0 ? b : a) * p->inner;
    const size_t less = (p->smallest != 0 ? a : b) * p->inner;
    const float *v = (const float *)(const void *)x;
    if (p->type == EPCTX_ONNX_FLOAT) return v[more] > v[less];
    return epctx__load_int(x, more, p->type) > epctx__load_int(x, less, p->type);
}

/* The best `keep` of a row, inserted one by one. */
static void epctx__arg_best(const epctx__arg *p, const uint8_t *x, int64_t *y) {
    size_t k, n = 0, at;
    for (k = 0; k < p->count; k++) {
        if (n == p->keep && !epctx__arg_before(p, x, k, (size_t)y[(n - 1) * p->inner])) continue;
        at = n < p->keep ? n++ : n - 1;
        for (; at > 0 && epctx__arg_before(p, x, k, (size_t)y[(at - 1) * p->inner]); at--)
            y[at * p->inner] = y[(at - 1) * p->inner];
        y[at * p->inner] = (int64_t)k;
    }
}

static EPCTX__INLINE void epctx__all_arg_body(const epctx__arg *p, const epctx__args *args) {
    const size_t count = p->count, inner = p->inner;
    const float *x = (const float *)args->in[0];
    int64_t *y = (int64_t *)args->out[0];
    size_t o, i;
    if (p->keep > 1) {
        for (i = 0; i < p->outer * inner; i++)
            epctx__arg_best(p,
                            (const uint8_t *)args->in[0] +
                                (i / inner * count * inner + i % inner) * epctx__elem_size(p->type),
                            y + i / inner * p->keep * inner + i % inner);
    } else if (p->type != EPCTX_ONNX_FLOAT) {
        for (i = 0; i < p->outer * inner; i++)
            y[i] = epctx__arg_ints(p, (const uint8_t *)args->in[0],
                                   i / inner * count * inner + i % inner);
    } else if (inner == 1) {
        EPCTX__STRIPS(n, p->outer, width,
                      epctx__arg_strip(p, x + n * count, count, 1, width, y + n););
    } else {
        for (o = 0; o < p->outer; o++, x += count * inner, y += inner)
            EPCTX__STRIPS(n, inner, width, epctx__arg_strip(p, x + n, 1, inner, width, y + n););
    }
}

EPCTX__RUN(arg, epctx__arg)

/* -- Sample: an image of two or three axes at positions that a tensor holds -- */

typedef enum epctx__outside {
    EPCTX__OUTSIDE_ZEROS = 0,
    EPCTX__OUTSIDE_BORDER,
    EPCTX__OUTSIDE_REFLECTION
} epctx__outside;

/* What positions count: the image spans -1..1 from edge to edge, from center to center, or they are
 * elements. */
typedef enum epctx__positions {
    EPCTX__BY_EDGES = 0,
    EPCTX__BY_CENTERS,
    EPCTX__BY_ELEMENTS
} epctx__positions;

/* x [batch][channels][in], positions [batch][places][rank] (the last axis first), y [batch]
 * [channels][places] */
typedef struct epctx__sample {
    uint32_t taps; /* of an axis: 1 nearest, 2 linear, 4 cubic */
    uint32_t outside, positions, rank;
    uint32_t batch, channels, places, in[3]; /* sizes, 1 for axes that are not there */
} epctx__sample;

static bool epctx__check_sample(const epctx__sample *p, epctx__needs *needs) {
    const uint64_t results = epctx__mul3(p->batch, p->channels, p->places);
    uint32_t i;
    for (i = 0; i < 3; i++)
        if (p->in[i] < 1 || p->in[i] > 1u << 24 || (i + p->rank < 3 && p->in[i] != 1)) return false;
    needs->in[0] =
        epctx__floats(epctx__mul(epctx__mul4(p->batch, p->channels, p->in[0], p->in[1]), p->in[2]));
    needs->in[1] = epctx__floats(epctx__mul3(p->batch, p->places, p->rank));
    needs->out[0] = epctx__floats(results);
    needs->work = epctx__mul4(results, p->taps, p->taps, p->rank == 3 ? p->taps : 1);
    return (p->rank == 2 || p->rank == 3) &&
           (p->taps == 1 || p->taps == 2 || (p->taps == 4 && p->rank == 2)) &&
           p->outside <= EPCTX__OUTSIDE_REFLECTION && p->positions <= EPCTX__BY_ELEMENTS;
}

/* The cubic convolution kernel with a = -0.75. */
static float epctx__cubic(float d) {
    return d <= 1.0f ? (1.25f * d - 2.25f) * d * d + 1.0f
                     : ((-0.75f * d + 3.75f) * d - 6.0f) * d + 3.0f;
}

static float epctx__reflect(float v, float low, float high) {
    const float range = high - low, beyond = v < low ? low - v : v - high;
    const float turns = range > 0.0f ? epctx__floor(beyond / range) : 0.0f;
    const float rest = beyond - turns * range;
    const bool odd = turns * 0.5f != epctx__floor(turns * 0.5f);
    if (v >= low && v <= high) return v;
    return (v < low) != odd ? low + rest : high - rest;
}

/* The elements of an axis around a position, -1 for zeros, and their weights. */
static void epctx__sample_axis(const epctx__sample *p, float v, uint32_t size, int32_t *at,
                               float *weights) {
    const float last = (float)(size - 1), edge = p->positions == EPCTX__BY_CENTERS ? 0.0f : 0.5f;
    float f;
    uint32_t k;
    if (p->positions == EPCTX__BY_CENTERS) v = (v + 1.0f) * 0.5f * last;
    if (p->positions == EPCTX__BY_EDGES) v = ((v + 1.0f) * (float)size - 1.0f) * 0.5f;
    v = v > -1e6f ? v : -1e6f; /* NaN, too */
    v = v < 3e7f ? v : 3e7f;
    if (p->taps == 1) v = epctx__round(v);
    if (p->outside == EPCTX__OUTSIDE_REFLECTION) v = epctx__reflect(v, -edge, last + edge);
    f = v - epctx__floor(v);
    weights[0] = p->taps == 1 ? 1.0f : 1.0f - f;
    weights[1] = f;
    for (k = 0; k < p->taps; k++) {
        if (p->taps == 4) weights[k] = epctx__cubic(epctx__abs(f + 1.0f - (float)k));
        const float at_k = epctx__floor(v) + (float)k - (p->taps == 4 ? 1.0f : 0.0f);
        float in = p->outside == EPCTX__OUTSIDE_REFLECTION
                       ? epctx__reflect(at_k, -edge, last + edge)
                       : at_k;
        if (p->outside != EPCTX__OUTSIDE_ZEROS) in = in < 0.0f ? 0.0f : (in > last ? last : in);
        at[k] = in < 0.0f || in > last ? -1 : (int32_t)in;
    }
}

/* One position: its elements, weighted, for all channels. */
static void epctx__sample_place(const epctx__sample *p, const float *x, const float *position,
                                float *y) {
    const size_t plane = (size_t)p->in[0] * p->in[1] * p->in[2];
    int32_t at[3][4] = {{0}};
    float weights[3][4] = {{1.0f}};
    uint32_t i, j, k, n, deep = p->rank == 3 ? p->taps : 1;
    for (i = 0; i < p->rank; i++)
        epctx__sample_axis(p, position[i], p->in[2 - i], at[2 - i], weights[2 - i]);
    for (n = 0; n < p->channels; n++, x += plane, y += p->places) {
        float sum = 0.0f;
        for (i = 0; i < deep; i++)
            for (j = 0; j < p->taps; j++) {
                float row = 0.0f;
                for (k = 0; k < p->taps; k++)
                    if (at[0][i] >= 0 && at[1][j] >= 0 && at[2][k] >= 0)
                        row += weights[2][k] *
                               x[((size_t)at[0][i] * p->in[1] + (size_t)at[1][j]) * p->in[2] +
                                 (size_t)at[2][k]];
                sum += weights[0][i] * weights[1][j] * row;
            }
        *y = sum;
    }
}

static epctx_status epctx__run_sample(const epctx__sample *p, const epctx__args *args) {
    const size_t image = (size_t)p->channels * p->in[0] * p->in[1] * p->in[2];
    size_t b, i;
    for (b = 0; b < p->batch; b++)
        for (i = 0; i < p->places; i++)
            epctx__sample_place(p, (const float *)args->in[0] + b * image,
                                (const float *)args->in[1] + (b * p->places + i) * p->rank,
                                (float *)args->out[0] + b * p->channels * p->places + i);
    return EPCTX_OK;
}

/* -- how the scattering kernels combine an update with the existing element -- */

typedef enum epctx__joining {
    EPCTX__JOIN_NONE = 0, /* overwrites */
    EPCTX__JOIN_ADD,
    EPCTX__JOIN_MUL,
    EPCTX__JOIN_MIN,
    EPCTX__JOIN_MAX,
    EPCTX__JOIN_COUNT
} epctx__joining;

static void epctx__join_one(uint32_t join, uint32_t type, uint8_t *y, size_t at, const uint8_t *x,
                            size_t from) {
    static const uint8_t kinds[EPCTX__JOIN_COUNT] = {0, EPCTX__EXACT_ADD, EPCTX__EXACT_MUL,
                                                     EPCTX__EXACT_MIN, EPCTX__EXACT_MAX};
    const size_t elem = epctx__elem_size(type);
    if (join == EPCTX__JOIN_NONE) {
        memcpy(y + at * elem, x + from * elem, elem);
    } else if (type == EPCTX_ONNX_FLOAT) {
        float *const a = (float *)(void *)y + at;
        const float b = ((const float *)(const void *)x)[from];
        *a = join == EPCTX__JOIN_ADD   ? *a + b
             : join == EPCTX__JOIN_MUL ? *a * b
             : join == EPCTX__JOIN_MIN ? (b < *a ? b : *a)
                                       : (b > *a ? b : *a);
    } else {
        epctx__store_int(y, at, type,
                         epctx__exact_int(kinds[join], epctx__load_int(y, at, type),
                                          epctx__load_int(x, from, type)));
    }
}

/* -- GatherElements: also ScatterElements; one index per element -- */

typedef struct epctx__gather_elements {
    uint32_t type, index_elem, scatter, join;
    uint32_t rank, axis;
    uint32_t dims[EPCTX_NPU_MAX_RANK];      /* of the indices */
    uint32_t data_dims[EPCTX_NPU_MAX_RANK]; /* of the data */
} epctx__gather_elements;

static bool epctx__check_gather_elements(const epctx__gather_elements *p, epctx__needs *needs) {
    const uint32_t elem = epctx__elem_size(p->type);
    const uint64_t count = epctx__walk_count(p->dims, p->rank);
    const uint64_t data = epctx__walk_count(p->data_dims, p->rank);
    uint32_t i;
    if (count == 0 || data == 0 || elem == 0 || (p->index_elem != 4 && p->index_elem != 8) ||
        p->scatter > 1 || p->join >= EPCTX__JOIN_COUNT || p->axis >= p->rank)
        return false;
    for (i = 0; i < p->rank; i++)
        if (i != p->axis && p->dims[i] > p->data_dims[i]) return false;
    needs->in[0] = epctx__items(data, elem);
    needs->in[1] = epctx__items(count, p->index_elem);
    needs->in[2] = epctx__items(count, elem);
    needs->out[0] = epctx__items(p->scatter != 0 ? data : count, elem);
    return true;
}

static epctx_status epctx__run_gather_elements(const epctx__gather_elements *p,
                                               const epctx__args *args) {
    const size_t elem = epctx__elem_size(p->type);
    const uint8_t *x = (const uint8_t *)args->in[0];
    uint8_t *y = (uint8_t *)args->out[0];
    int32_t dense[EPCTX_NPU_MAX_RANK];
    const int32_t *strides[1];
    uint32_t at[EPCTX_NPU_MAX_RANK] = {0}, i;
    ptrdiff_t position[1] = {0};
    size_t n = 0, size = 1, step, index;
    for (i = p->rank; i > 0; i--) {
        dense[i - 1] = (int32_t)size;
        size *= p->data_dims[i - 1];
    }
    step = (size_t)dense[p->axis];
    dense[p->axis] = 0; /* the indices select along this axis */
    strides[0] = dense;
    if (p->scatter != 0) {
        if (args->in[2] == NULL)
            return epctx_fail(args->error, EPCTX_ERR_ARG, "input 'updates' is missing");
        memcpy(y, x, size * elem);
    }
    do {
        EPCTX__TRY(epctx__checked(args, n, p->index_elem, p->data_dims[p->axis], &index));
        index = (size_t)position[0] + index * step;
        if (p->scatter != 0)
            epctx__join_one(p->join, p->type, y, index, (const uint8_t *)args->in[2], n);
        else
            memcpy(y + n * elem, x + index * elem, elem);
        n++;
    } while (epctx__advance(p->dims, p->rank, at, strides, position, 1));
    return EPCTX_OK;
}

/* -- GatherND: also ScatterND; `depth` indices select a row of `inner` elements -- */

typedef struct epctx__gather_nd {
    uint32_t type, scatter, join;
    uint32_t batch, count, depth, inner; /* count: tuples of one batch */
    uint32_t dims[EPCTX_NPU_MAX_RANK];   /* addressed by the indices */
} epctx__gather_nd;

static bool epctx__check_gather_nd(const epctx__gather_nd *p, epctx__needs *needs) {
    const uint32_t elem = epctx__elem_size(p->type);
    const uint64_t data = epctx__mul3(p->batch, epctx__walk_count(p->dims, p->depth), p->inner);
    const uint64_t rows = epctx__mul(p->batch, p->count);
    needs->in[0] = epctx__items(data, elem);
    needs->in[1] = epctx__items(epctx__mul(rows, p->depth), 8);
    needs->in[2] = epctx__items(epctx__mul(rows, p->inner), elem);
    needs->out[0] = p->scatter != 0 ? needs->in[0] : needs->in[2];
    return data != 0 && elem != 0 && p->scatter <= 1 && p->join < EPCTX__JOIN_COUNT;
}

static epctx_status epctx__run_gather_nd(const epctx__gather_nd *p, const epctx__args *args) {
    const size_t elem = epctx__elem_size(p->type);
    const size_t block = (size_t)epctx__walk_count(p->dims, p->depth) * p->inner;
    const uint8_t *x = (const uint8_t *)args->in[0], *updates = (const uint8_t *)args->in[2];
    uint8_t *y = (uint8_t *)args->out[0];
    const size_t rows = (size_t)p->batch * p->count;
    size_t row, d, i, at, index, base = 0, stop = p->count; /* base: of the batch, to row `stop` */
    size_t start = 0, first = 0, length = 0; /* a run of adjacent rows: where, from which row */
    if (p->scatter != 0) {
        if (updates == NULL)
            return epctx_fail(args->error, EPCTX_ERR_ARG, "input 'updates' is missing");
        memcpy(y, x, p->batch * block * elem);
    }
    for (row = 0; row <= rows; row++) {
        if (row == stop) {
            stop += p->count;
            base += block;
        }
        for (d = 0, at = 0; d < p->depth && row < rows; d++) {
            EPCTX__TRY(epctx__checked(args, row * p->depth + d, 8, p->dims[d], &index));
            at = at * p->dims[d] + index;
        }
        at = base + at * p->inner;
        if (row < rows && length > 0 && at == start + length) {
            length += p->inner;
            continue;
        }
        if (p->scatter == 0)
            memcpy(y + first * elem, x + start * elem, length * elem);
        else if (p->join == EPCTX__JOIN_NONE)
            memcpy(y + start * elem, updates + first * elem, length * elem);
        for (i = 0; i < length && p->scatter != 0 && p->join != EPCTX__JOIN_NONE; i++)
            epctx__join_one(p->join, p->type, y, start + i, updates, first + i);
        start = at;
        first = row * p->inner;
        length = p->inner;
    }
    return EPCTX_OK;
}

/* -- Quantize and Dequantize: one scale and zero point for each of `channels` -- */

typedef struct epctx__quantize {
    uint32_t type; /* of the integers */
    uint32_t outer, channels, inner;
} epctx__quantize;

static bool epctx__check_quantize(const epctx__quantize *p, epctx__needs *needs) {
    const uint64_t count = epctx__mul3(p->outer, p->channels, p->inner);
    const uint32_t elem = epctx__elem_size(p->type);
    needs->in[0] = epctx__floats(count);
    needs->in[1] = epctx__floats(p->channels);
    needs->in[2] = epctx__items(p->channels, elem);
    needs->out[0] = epctx__items(count, elem);
    return p->type == EPCTX_ONNX_INT8 || p->type == EPCTX_ONNX_UINT8;
}

static bool epctx__check_dequantize(const epctx__quantize *p, epctx__needs *needs) {
    const bool bytes = epctx__check_quantize(p, needs);
    const epctx__extent floats = needs->in[0];
    needs->in[0] = needs->out[0];
    needs->out[0] = floats;
    return bytes || p->type == EPCTX_ONNX_INT32;
}

/* v rounded to the nearest integer, ties to even, plus `zero`, in the low byte; NaN gives `least`.
 * The limits are integers, so clamping first is exact; adding EPCTX__FAR then rounds to an integer.
 * Has no branches, so that loops vectorize. */
static EPCTX__INLINE uint32_t epctx__steps(float v, float least, float most, float zero) {
    v = epctx__within(epctx__rounded(v), least, most);
    return epctx__bits_of(v + EPCTX__FAR) - epctx__bits_of(EPCTX__FAR) + (uint32_t)(int32_t)zero;
}

/* 16 or fewer elements; bytes apart from numbers, so that vectors of these are long. */
static EPCTX__INLINE void epctx__quantize_strip(const float *x, float scale, float least,
                                                float most, float zero, size_t width, uint8_t *y) {
    uint32_t steps[16];
    size_t j;
    for (j = 0; j < width; j++) steps[j] = epctx__steps(x[j] / scale, least, most, zero);
    for (j = 0; j < width; j++) y[j] = (uint8_t)(steps[j] & 0xff);
}

static EPCTX__INLINE void epctx__all_quantize_body(const epctx__quantize *p,
                                                   const epctx__args *args) {
    const float low = p->type == EPCTX_ONNX_INT8 ? -128.0f : 0.0f, high = low + 255.0f;
    const float *x = (const float *)args->in[0];
    const uint8_t *zeros = (const uint8_t *)args->in[2];
    uint8_t *y = (uint8_t *)args->out[0];
    size_t o, c;
    for (o = 0; o < p->outer; o++) {
        for (c = 0; c < p->channels; c++) {
            const float scale = ((const float *)args->in[1])[c];
            const float zero = zeros != NULL ? (float)epctx__load_int(zeros, c, p->type) : 0.0f;
            const float least = low - zero, most = high - zero;
            EPCTX__STRIPS(i, p->inner, width,
                          epctx__quantize_strip(x + i, scale, least, most, zero, width, y + i););
            x += p->inner;
            y += p->inner;
        }
    }
}

EPCTX__RUN(quantize, epctx__quantize)

#ifdef EPCTX__AVX2
/* 16 at a time; returns the number converted. */
EPCTX__WIDE static size_t epctx__dequantize_wide(const uint8_t *x, size_t count, float scale,
                                                 int32_t zero, bool is_signed, float *y) {
    const __m512i shift = _mm512_set1_epi32(zero);
    size_t i;
    for (i = 0; i + 16 <= count; i += 16) {
        __m128i bytes;
        __m512i v;
        memcpy(&bytes, x + i, sizeof bytes);
        v = is_signed ? _mm512_cvtepi8_epi32(bytes) : _mm512_cvtepu8_epi32(bytes);
        _mm512_storeu_ps(y + i, _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_sub_epi32(v, shift)),
                                              _mm512_set1_ps(scale)));
    }
    return i;
}
#endif /* EPCTX__AVX2 */

static EPCTX__INLINE void epctx__all_dequantize_body(const epctx__quantize *p,
                                                     const epctx__args *args) {
    const uint8_t *x = (const uint8_t *)args->in[0], *zeros = (const uint8_t *)args->in[2];
    const int32_t flip = p->type == EPCTX_ONNX_INT8 ? 128 : 0;
    const size_t elem = epctx__elem_size(p->type);
    float *y = (float *)args->out[0];
    size_t o, c;
    for (o = 0; o < p->outer; o++) {
        for (c = 0; c < p->channels; c++) {
            const float scale = ((const float *)args->in[1])[c];
            const int64_t zero = zeros != NULL ? epctx__load_int(zeros, c, p->type) : 0;
            const int32_t shift = flip + (int32_t)(elem == 1 ? zero : 0);
            size_t done = 0;
#ifdef EPCTX__AVX2
            if (args->fast == EPCTX__LEVEL_AVX512 && elem == 1)
                done = epctx__dequantize_wide(x, p->inner, scale, (int32_t)zero, flip != 0, y);
#endif
            if (elem == 1)
                EPCTX__EACH(i, p->inner - done,
                            const int32_t v = ((int32_t)x[done + i] ^ flip) - shift;
                            y[done + i] = (float)v * scale;);
            else
                EPCTX__EACH(i, p->inner, const int64_t v = epctx__index(x, i, 4) - zero;
                            y[i] = (float)v * scale;);
            x += p->inner * elem;
            y += p->inner;
        }
    }
}

EPCTX__RUN(dequantize, epctx__quantize)

/* -- Resample: one axis of [outer][in][inner] by a table of taps, for Resize -- */

typedef struct epctx__resample {
    uint32_t outer, in, out, inner, taps;
} epctx__resample;

/* in[1]: int32 positions, in[2]: float weights, [out][taps] each; skips positions outside. */
static bool epctx__check_resample(const epctx__resample *p, epctx__needs *needs) {
    needs->in[0] = epctx__floats(epctx__mul3(p->outer, p->in, p->inner));
    needs->in[1] = needs->in[2] = epctx__floats(epctx__mul(p->out, p->taps));
    needs->out[0] = epctx__floats(epctx__mul3(p->outer, p->out, p->inner));
    needs->work = epctx__mul4(p->outer, p->out, p->inner, p->taps);
    return p->taps >= 1;
}

#ifdef EPCTX__AVX2
/* Computes the strip of epctx__resample_strip. False: its inputs are not within 16 adjacent
 * ones. */
EPCTX__WIDE static bool epctx__resample_wide(const epctx__resample *p, const int32_t *from,
                                             const float *w, bool first, size_t rows, size_t width,
                                             const float *x, float *y) {
    const __mmask16 here = (__mmask16)((1u << width) - 1);
    const __m512i at = _mm512_maskz_loadu_epi32(here, from);
    const __m512 factor = _mm512_maskz_loadu_ps(here, w);
    const __mmask16 used = _mm512_cmp_ps_mask(factor, _mm512_setzero_ps(), _CMP_NEQ_UQ);
    const int32_t low = _mm512_mask_reduce_min_epi32(used, at);
    const int32_t high = _mm512_mask_reduce_max_epi32(used, at);
    const int32_t least = used == 0 ? 0 : low;
    const uint32_t left = p->in - (uint32_t)least; /* of the row, as every input is inside */
    const __mmask16 there = (__mmask16)(left < 16 ? (1u << left) - 1 : 0xffffu);
    const __m512i index = _mm512_sub_epi32(at, _mm512_set1_epi32(least));
    size_t o;
    if (used != 0 && high - low > 15) return false;
    for (o = 0; o < rows; o++) {
        const __m512 v = _mm512_maskz_loadu_ps(there, x + o * p->in + least);
        __m512 r = _mm512_maskz_mul_ps(used, _mm512_permutexvar_ps(index, v), factor);
        if (!first) r = _mm512_add_ps(r, _mm512_maskz_loadu_ps(here, y + o * p->out));
        _mm512_mask_storeu_ps(y + o * p->out, here, r);
    }
    return true;
}

/* As epctx__resample_wide, for the 8 outputs of a vector and 8 adjacent inputs. */
EPCTX__TARGET static bool epctx__resample_half(const epctx__resample *p, const int32_t *from,
                                               const float *w, bool first, size_t rows,
                                               const float *x, float *y) {
    const __m256 factor = _mm256_loadu_ps(w), zero = _mm256_setzero_ps();
    const __m256 used = _mm256_cmp_ps(factor, zero, _CMP_NEQ_UQ);
    const __m256i at = _mm256_loadu_si256((const __m256i *)(const void *)from);
    int32_t low = from[0], high = from[0];
    __m256i index;
    size_t o, j;
    for (j = 1; j < 8; j++) {
        low = from[j] < low ? from[j] : low;
        high = from[j] > high ? from[j] : high;
    }
    if (p->in < 8 || high - low > 7) return false;
    low = low < (int32_t)p->in - 8 ? low : (int32_t)p->in - 8;
    index = _mm256_sub_epi32(at, _mm256_set1_epi32(low));
    for (o = 0; o < rows; o++) {
        const __m256 v = _mm256_permutevar8x32_ps(_mm256_loadu_ps(x + o * p->in + low), index);
        __m256 r = _mm256_and_ps(used, _mm256_mul_ps(v, factor));
        if (!first) r = _mm256_add_ps(r, _mm256_loadu_ps(y + o * p->out));
        _mm256_storeu_ps(y + o * p->out, r);
    }
    return true;
}
#endif

/* Tap t of up to 16 adjacent outputs, from `n`, of `rows`; inner is 1. */
static EPCTX__INLINE void epctx__resample_strip(const epctx__resample *p, const epctx__args *args,
                                                size_t t, size_t rows, size_t n, size_t width,
                                                const float *EPCTX__RESTRICT x,
                                                float *EPCTX__RESTRICT y) {
    int32_t from[16];
    float w[16];
    size_t o, j, done = 0;
    for (j = 0; j < width; j++) {
        const size_t i = (n + j) * p->taps + t;
        const int64_t at = epctx__index((const uint8_t *)args->in[1], i, 4);
        const bool inside = at >= 0 && at < (int64_t)p->in;
        from[j] = inside ? (int32_t)at : 0;
        w[j] = inside ? ((const float *)args->in[2])[i] : 0.0f;
    }
#ifdef EPCTX__AVX2
    if (args->fast == EPCTX__LEVEL_AVX512 &&
        epctx__resample_wide(p, from, w, t == 0, rows, width, x, y))
        return;
    while (args->fast == EPCTX__LEVEL_AVX2 && done + 8 <= width &&
           epctx__resample_half(p, from + done, w + done, t == 0, rows, x, y + done))
        done += 8;
#endif
    for (o = 0; o < rows && done < width; o++) {
        for (j = done; j < width; j++) {
            const float v = epctx__choose(w[j] != 0.0f, x[from[j]] * w[j], 0.0f);
            y[j] = epctx__choose(t == 0, v, y[j] + v);
        }
        x += p->in;
        y += p->out;
    }
}

static EPCTX__INLINE void epctx__resample_row(const float *EPCTX__RESTRICT x, float w, size_t count,
                                              bool first, float *EPCTX__RESTRICT y) {
    if (first && w == 1.0f)
        memcpy(y, x, count * sizeof *y);
    else if (first)
        EPCTX__EACH(i, count, y[i] = x[i] * w;);
    else
        EPCTX__EACH(i, count, y[i] += x[i] * w;);
}

static EPCTX__INLINE void epctx__all_resample_body(const epctx__resample *p,
                                                   const epctx__args *args) {
    const float *x = (const float *)args->in[0];
    float *y = (float *)args->out[0];
    size_t o, n, t;
    for (o = 0; o < p->outer && p->inner == 1; o += 64) { /* rows stay in the cache */
        const size_t rows = p->outer - o < 64 ? p->outer - o : 64;
        const float *from = x + o * p->in;
        float *to = y + o * p->out;
        for (t = 0; t < p->taps; t++) {
            EPCTX__STRIPS(i, p->out, width,
                          epctx__resample_strip(p, args, t, rows, i, width, from, to + i););
        }
    }
    for (o = 0; o < p->outer && p->inner > 1; o++) {
        for (n = 0; n < p->out; n++) {
            bool first = true;
            for (t = n * p->taps; t < (n + 1) * p->taps; t++) {
                const int64_t at = epctx__index((const uint8_t *)args->in[1], t, 4);
                const float w = ((const float *)args->in[2])[t];
                if (at < 0 || at >= (int64_t)p->in) continue;
                epctx__resample_row(x + (size_t)at * p->inner, w, p->inner, first, y);
                first = false;
            }
            if (first) memset(y, 0, p->inner * sizeof *y);
            y += p->inner;
        }
        x += (size_t)p->in * p->inner;
    }
}

EPCTX__RUN(resample, epctx__resample)

/* -- Recurrent: RNN, GRU and LSTM over time; a Gemm has already computed the input products -- */

typedef enum epctx__cell {
    EPCTX__CELL_RNN = 0,
    EPCTX__CELL_GRU,
    EPCTX__CELL_LSTM,
    EPCTX__CELL_COUNT
} epctx__cell;

typedef struct epctx__recurrent {
    uint32_t cell, reverse;
    uint32_t late_reset; /* GRU: the reset gate scales the matrix product (linear_before_reset) */
    uint32_t time, batch, hidden;
    epctx__act f, g, h;
} epctx__recurrent;

static uint32_t epctx__gates(uint32_t cell) {
    return cell == EPCTX__CELL_LSTM ? 4 : (cell == EPCTX__CELL_GRU ? 3 : 1);
}

static uint64_t epctx__padded(uint64_t hidden) {
    return epctx__packed(1, hidden, 1, EPCTX__COLUMNS);
}

/* in: gates from the inputs [time][batch][gate][hidden]; weights packed gate by gate; bias of the
 * last gate [hidden]; peepholes [3][hidden]; first state and cell [batch][hidden]; int32 lengths.
 * out: states [time][batch][hidden], then the last state and cell [batch][hidden]; workspace. */
static bool epctx__check_recurrent(const epctx__recurrent *p, epctx__needs *needs) {
    const uint64_t state = epctx__mul(p->batch, p->hidden);
    uint32_t gates;
    if (p->cell >= EPCTX__CELL_COUNT) return false;
    gates = epctx__gates(p->cell);
    needs->in[0] = epctx__floats(epctx__mul3(p->time, state, gates));
    needs->in[1] = epctx__floats(epctx__packed(gates, p->hidden, p->hidden, EPCTX__COLUMNS));
    needs->in[2] = epctx__floats(p->hidden);
    needs->in[3] = epctx__floats(epctx__mul(p->hidden, 3));
    needs->in[4] = needs->in[5] = epctx__floats(state);
    needs->in[6] = epctx__items(p->batch, 4);
    needs->out[0] = epctx__floats(epctx__mul((uint64_t)p->time + 2, state));
    needs->out[1] = epctx__floats(epctx__mul(epctx__padded(p->hidden), (uint64_t)gates + 1));
    needs->work = epctx__mul4(p->time, state, p->hidden, gates);
    return epctx__act_ok(&p->f) && epctx__act_ok(&p->g) && epctx__act_ok(&p->h);
}

/* y = weights * h + x for one gate; x may be NULL. */
static void epctx__gate(const epctx__recurrent *p, const epctx__args *args, uint32_t gate,
                        const float *h, const float *x, float *y) {
    const size_t size = (size_t)epctx__padded(p->hidden) * p->hidden;
    const float *weights = (const float *)args->in[1] + gate * size;
    const epctx__act none = {EPCTX__ACT_NONE, 0.0f, 0.0f};
    epctx__epilogue f = epctx__epilogue_for(args->fast, &none);
    size_t n;
    f.rows = 1;
    for (n = 0; n < p->hidden; n += EPCTX__COLUMNS) {
        f.columns = p->hidden - n < EPCTX__COLUMNS ? p->hidden - n : EPCTX__COLUMNS;
        f.bias = x != NULL ? x + (size_t)gate * p->hidden + n : NULL;
        f.y = y + n;
        epctx__tile_row(h, 1, weights + n * p->hidden, p->hidden, &f);
    }
}

static void epctx__cell_lstm(const epctx__recurrent *p, const epctx__args *args, const float *x,
                             float *work, float *h, float *c) {
    const size_t n = p->hidden, padded = (size_t)epctx__padded(n);
    float *gi = work, *go = work + padded, *gf = go + padded, *gc = gf + padded, *t = gc + padded;
    const float *peep = (const float *)args->in[3];
    size_t i;
    for (i = 0; i < 4; i++) epctx__gate(p, args, (uint32_t)i, h, x, work + i * padded);
    for (i = 0; i < n && peep != NULL; i++) {
        gi[i] += peep[i] * c[i];
        gf[i] += peep[2 * n + i] * c[i];
    }
    epctx__activate(args->fast, gi, n, &p->f);
    epctx__activate(args->fast, gf, n, &p->f);
    epctx__activate(args->fast, gc, n, &p->g);
    EPCTX__EACH(j, n, c[j] = gf[j] * c[j] + gi[j] * gc[j]; t[j] = c[j];);
    for (i = 0; i < n && peep != NULL; i++) go[i] += peep[n + i] * c[i];
    epctx__activate(args->fast, go, n, &p->f);
    epctx__activate(args->fast, t, n, &p->h);
    EPCTX__EACH(j, n, h[j] = go[j] * t[j];);
}

static void epctx__cell_gru(const epctx__recurrent *p, const epctx__args *args, const float *x,
                            float *work, float *h) {
    const size_t n = p->hidden, padded = (size_t)epctx__padded(n);
    float *z = work, *r = work + padded, *g = r + padded, *t = g + padded;
    const float *bias = (const float *)args->in[2];
    epctx__gate(p, args, 0, h, x, z);
    epctx__gate(p, args, 1, h, x, r);
    epctx__activate(args->fast, z, n, &p->f);
    epctx__activate(args->fast, r, n, &p->f);
    if (p->late_reset != 0) {
        epctx__gate(p, args, 2, h, NULL, g);
        EPCTX__EACH(j, n, g[j] = x[2 * n + j] + r[j] * (g[j] + (bias != NULL ? bias[j] : 0.0f)););
    } else {
        EPCTX__EACH(j, n, t[j] = r[j] * h[j];);
        epctx__gate(p, args, 2, t, x, g);
    }
    epctx__activate(args->fast, g, n, &p->g);
    EPCTX__EACH(j, n, h[j] = (1.0f - z[j]) * g[j] + z[j] * h[j];);
}

static epctx_status epctx__run_recurrent(const epctx__recurrent *p, const epctx__args *args) {
    const size_t n = p->hidden, state = p->batch * n, gates = epctx__gates(p->cell);
    float *y = (float *)args->out[0], *last = y + p->time * state, *cells = last + state;
    float *work = (float *)args->out[1];
    size_t b, s;
    memset(y, 0, (p->time + (size_t)2) * state * sizeof *y);
    if (args->in[4] != NULL) memcpy(last, args->in[4], state * sizeof *last);
    if (args->in[5] != NULL) memcpy(cells, args->in[5], state * sizeof *cells);
    for (b = 0; b < p->batch; b++) {
        const int64_t length = args->in[6] != NULL
                                   ? epctx__index((const uint8_t *)args->in[6], b, 4)
                                   : (int64_t)p->time;
        float *h = last + b * n;
        if (length < 0 || length > (int64_t)p->time)
            return epctx_fail(args->error, EPCTX_ERR_ARG, "sequence_lens: expected 0..%u, found %d",
                              (uint64_t)p->time, length);
        if (length == 0) { /* ONNX Runtime: not the first state */
            memset(h, 0, n * sizeof *h);
            memset(cells + b * n, 0, n * sizeof *cells);
        }
        for (s = 0; s < (size_t)length; s++) {
            const size_t t = p->reverse != 0 ? (size_t)length - 1 - s : s;
            const float *x = (const float *)args->in[0] + (t * p->batch + b) * gates * n;
            if (p->cell == EPCTX__CELL_LSTM) {
                epctx__cell_lstm(p, args, x, work, h, cells + b * n);
            } else if (p->cell == EPCTX__CELL_GRU) {
                epctx__cell_gru(p, args, x, work, h);
            } else {
                epctx__gate(p, args, 0, h, x, work);
                memcpy(h, work, n * sizeof *h);
                epctx__activate(args->fast, h, n, &p->f);
            }
            memcpy(y + (t * p->batch + b) * n, h, n * sizeof *y);
        }
    }
    return EPCTX_OK;
}

/* -- Integers: products of bytes, added in 32 bits and requantized, [batch][row][column][channel].
 * int8 values are read as uint8, 128 higher (their top bit flipped), like their zero points. -- */

/* The result: round(v) + zero, ties to even, within low..high. */
typedef struct epctx__requant {
    uint32_t type;
    int32_t zero, low, high;
} epctx__requant;

/* IntegerConv, and IntegerDepthwise with as many outputs as inputs. Bias and scales are padded like
 * the weights; the bias contains minus the zero point times the weights. */
typedef struct epctx__integer_conv {
    uint32_t batch, in_channels, out_channels;
    uint32_t flip; /* 0x80: x is int8; else 0 */
    uint32_t fill; /* the byte of padding: x's zero point */
    epctx__window window;
    epctx__requant y;
} epctx__integer_conv;

#define EPCTX__DOT_ROWS 6  /* pixels of a tile */
#define EPCTX__DOT_LANE 16 /* channels of a block of weights: [block][k / 4][channel][k % 4] */

static bool epctx__requant_ok(const epctx__requant *s) {
    const int32_t least = s->type == EPCTX_ONNX_INT8 ? -128 : 0;
    return (s->type == EPCTX_ONNX_INT8 || s->type == EPCTX_ONNX_UINT8) && s->low >= least &&
           s->high >= s->low && s->high <= least + 255 && s->zero >= least &&
           s->zero <= least + 255;
}

static uint64_t epctx__up(uint64_t count, uint64_t unit) {
    return (count + unit - 1) / unit * unit;
}

/* Whether the taps of all pixels lie side by side in the input, in whole groups of four. */
static bool epctx__in_place(const epctx__integer_conv *p) {
    const epctx__window *w = &p->window;
    return p->in_channels % 4 == 0 && w->kernel_h == 1 && w->kernel_w == 1 && w->stride_h == 1 &&
           w->stride_w == 1 && w->in_h == w->out_h && w->in_w == w->out_w && w->top == 0 &&
           w->left == 0;
}

/* Bytes of the copied taps of a tile; a byte if there is nothing to copy. */
static uint64_t epctx__integer_temporary(const epctx__integer_conv *p) {
    const epctx__window *w = &p->window;
    const uint64_t pixels = epctx__mul3(p->batch, w->out_h, w->out_w);
    const uint64_t taps = epctx__mul3(p->in_channels, w->kernel_h, w->kernel_w);
    return epctx__in_place(p) ? 1
                              : epctx__mul(epctx__up(taps, 4),
                                           pixels < EPCTX__DOT_ROWS ? pixels : EPCTX__DOT_ROWS);
}

static bool epctx__integer_needs(const epctx__integer_conv *p, uint64_t depth, uint64_t block,
                                 epctx__needs *needs) {
    const epctx__window *w = &p->window;
    const uint64_t channels = epctx__up(p->out_channels, block);
    needs->in[0] = epctx__items(epctx__mul4(p->batch, w->in_h, w->in_w, p->in_channels), 1);
    needs->in[1] = epctx__items(epctx__mul(channels, epctx__up(depth, 4)), 1);
    needs->in[2] = needs->in[3] = epctx__floats(channels);
    needs->out[0] = epctx__items(epctx__mul4(p->batch, w->out_h, w->out_w, p->out_channels), 1);
    needs->work = epctx__mul3(needs->out[0].bytes, depth, 1);
    return (p->flip == 0 || p->flip == 0x80) && p->fill <= 255 && epctx__window_ok(w) &&
           epctx__requant_ok(&p->y);
}

static bool epctx__check_integer_conv(const epctx__integer_conv *p, epctx__needs *needs) {
    needs->out[1] = epctx__items(epctx__integer_temporary(p), 1);
    return epctx__integer_needs(p,
                                epctx__mul3(p->in_channels, p->window.kernel_h, p->window.kernel_w),
                                EPCTX__DOT_LANE, needs);
}

/* Copies short runs, of which there are many, without a call. */
static EPCTX__INLINE void epctx__copy_run(uint8_t *to, const uint8_t *from, size_t count) {
    size_t i;
    if (count >= 16) {
        for (i = 0; i + 16 < count; i += 16) memcpy(to + i, from + i, 16);
        memcpy(to + count - 16, from + count - 16, 16);
    } else if (count >= 8) {
        memcpy(to, from, 8);
        memcpy(to + count - 8, from + count - 8, 8);
    } else if (count >= 4) {
        memcpy(to, from, 4);
        memcpy(to + count - 4, from + count - 4, 4);
    } else {
        while (count-- > 0) to[count] = from[count];
    }
}

/* Copies the taps of a pixel, in runs where they lie side by side; pads to `size`. */
static void epctx__patch(const epctx__integer_conv *p, const uint8_t *x, uint32_t oy, uint32_t ox,
                         uint8_t *patch, size_t size) {
    const epctx__window w = p->window; /* a copy: bytes may alias all else */
    const size_t c = p->in_channels, run = w.kernel_w * c;
    const size_t step = w.dilation_w * c, line = (size_t)w.dilation_h * w.in_w * c;
    const int32_t start = (int32_t)(ox * w.stride_w) - (int32_t)w.left;
    const int32_t top = (int32_t)(oy * w.stride_h) - (int32_t)w.top;
    uint32_t iy = (uint32_t)top;
    uint8_t *to = patch, *end = patch + w.kernel_h * run;
    int32_t low, high;
    size_t before, length, piece, at, i;
    epctx__inside(start, (int32_t)w.dilation_w, (int32_t)w.kernel_w, (int32_t)w.in_w, &low, &high);
    before = (size_t)low * c;
    length = (size_t)(high - low) * c;
    piece = w.dilation_w == 1 ? length : c;
    at = ((size_t)top * w.in_w + (size_t)start) * c + (size_t)low * step; /* modulo its size */
    if (length == run && piece == run && iy < w.in_h &&
        iy + (w.kernel_h - 1) * w.dilation_h < w.in_h) /* no padding */
        for (; to < end; to += run, at += line) epctx__copy_run(to, x + at, run);
    if (to < end) memset(to, (uint8_t)p->fill, w.kernel_h * run);
    for (; to < end; to += run, at += line, iy += w.dilation_h)
        for (i = 0; iy < w.in_h && i < length; i += piece)
            epctx__copy_run(to + before + i, x + at + i * w.dilation_w, piece);
    while (to < patch + size) *to++ = 0;
}

#ifdef EPCTX_NPU_FIXED_POINT

/* Floats in integers, to the same bits within a float's range: m * 2^-shift. */
typedef struct epctx__fixed {
    int32_t m, shift; /* m: 2^23 .. 2^24 without its sign, or 0 */
} epctx__fixed;

/* v * 2^-shift rounded to 24 bits, ties to even; |v| < 2^63 */
static epctx__fixed epctx__fixed_of(int64_t v, int32_t shift) {
    uint64_t m = (uint64_t)(v < 0 ? -v : v);
    epctx__fixed f = {0, 1000};
    if (m == 0) return f;
    for (; m >> 55 == 0; shift += 8) m <<= 8;
    for (; m >> 62 == 0; shift++) m <<= 1;
    f.m = (int32_t)((m + (m >> 39 & 1) + ((UINT64_C(1) << 38) - 1)) >> 39) * (v < 0 ? -1 : 1);
    f.shift = shift - 39;
    return f;
}

static epctx__fixed epctx__fixed_float(float v) {
    epctx__fixed f;
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    f.shift = 150 - (int32_t)(bits >> 23 & 255);
    f.m = f.shift < 150 ? (int32_t)(0x800000u | (bits & 0x7fffffu)) : 0;
    f.m = bits >> 31 != 0 ? -f.m : f.m;
    return f;
}

static epctx__fixed epctx__fixed_times(epctx__fixed a, epctx__fixed b) {
    return epctx__fixed_of((int64_t)a.m * b.m, a.shift + b.shift);
}

static epctx__fixed epctx__fixed_scaled(int32_t v, float scale) {
    epctx__fixed f = {v, 0};
    if (v / (1 << 24) != 0) f = epctx__fixed_of(v, 0);
    return epctx__fixed_times(f, epctx__fixed_float(scale));
}

static epctx__fixed epctx__fixed_sum(epctx__fixed a, epctx__fixed b) {
    const int32_t beyond = b.shift - a.shift;
    if (beyond < 0) return epctx__fixed_sum(b, a);
    return beyond > 38 ? a : epctx__fixed_of(a.m * (INT64_C(1) << beyond) + b.m, b.shift);
}

/* a / b; the lowest bit tells of a remainder. */
static epctx__fixed epctx__fixed_ratio(epctx__fixed a, epctx__fixed b) {
    const int64_t v = a.m * (INT64_C(1) << 38), by = b.m != 0 ? b.m : 1;
    const int64_t rest = v % by != 0 ? 1 : 0;
    return epctx__fixed_of(v / by * 2 + ((v < 0) == (by < 0) ? rest : -rest),
                           a.shift + 39 - b.shift);
}

/* As epctx__steps. */
static uint8_t epctx__fixed_step(const epctx__requant *s, epctx__fixed f) {
    const uint32_t m = (uint32_t)(f.m < 0 ? -f.m : f.m);
    int32_t v = f.shift > 30 ? 0 : 512; /* beyond all limits */
    if (f.shift > 14 && f.shift <= 30)
        v = (int32_t)((m + (m >> f.shift & 1) + ((1u << (f.shift - 1)) - 1)) >> f.shift);
    v = s->zero + (f.m < 0 ? -v : v);
    v = v > s->low ? v : s->low;
    return (uint8_t)((v < s->high ? v : s->high) & 0xff);
}

#endif

/* A sum of products, modulo 2^32, to its quantized result. */
static uint8_t epctx__requantize(const epctx__requant *s, uint32_t sum, float scale) {
    int32_t v;
    memcpy(&v, &sum, sizeof v);
#ifdef EPCTX_NPU_FIXED_POINT
    return epctx__fixed_step(s, epctx__fixed_scaled(v, scale));
#else
    return (uint8_t)(epctx__steps(epctx__rounded((float)v) * scale, (float)(s->low - s->zero),
                                  (float)(s->high - s->zero), (float)s->zero) &
                     0xff);
#endif
}

/* Pixels of a tile and the operands of a block of channels. */
typedef struct epctx__dots {
    const uint8_t *rows[EPCTX__DOT_ROWS];
    uint8_t *y; /* of the first pixel */
    const int8_t *w;
    const int32_t *bias;
    const float *scale;
    size_t count;   /* pixels */
    size_t fours;   /* groups of four products */
    size_t columns; /* channels */
    size_t pitch;   /* bytes from pixel to pixel of y */
    uint32_t flip;  /* of each byte */
    const epctx__requant *steps;
} epctx__dots;

#define EPCTX__TAPS 64 /* a multiple of 4 */

/* `count` results, up to 64: channels of a pixel, or several pixels. */
typedef struct epctx__channels {
    const epctx__integer_conv *p;
    const uint8_t *taps[EPCTX__TAPS]; /* to a multiple of 4; the weights beyond are 0 */
    size_t count, tap_count;
    const int8_t *w;
    const float *scale;
    const int32_t *from; /* the sums so far, interleaved */
    int32_t sum[64];
    bool last; /* no more taps follow: writes y, else sum */
    uint8_t *y;
#if EPCTX__LOOPS
    const int8_t *widened; /* the weights that `wide` holds in another order, or NULL */
    int16_t wide[EPCTX__TAPS * 64];
#endif
} epctx__channels;

#if EPCTX__LOOPS

/* Takes chunks of 32 products per channel: many processors have an instruction that adds products
 * of 16 bits, and gcc -O2 vectorizes loops of known length. */
static void epctx__dot_rows(const epctx__dots *d, const int8_t *from, size_t left,
                            uint32_t (*sum)[EPCTX__DOT_LANE]) {
    const size_t depth = d->fours * 4;
    const uint8_t flip = (uint8_t)d->flip;
    int16_t w[EPCTX__DOT_LANE][32], x[32], wide[4 * EPCTX__DOT_LANE];
    uint8_t bytes[32] = {0};
    size_t k, r, i, j;
    for (k = 0; k < depth; k += 32) {
        const size_t count = depth - k < 32 ? depth - k : 32;
        if (count < 32) memset(w, 0, sizeof w);
        for (i = 0; i < count; i += 4, from += 4 * EPCTX__DOT_LANE) {
            for (j = 0; j < 4 * EPCTX__DOT_LANE; j++) wide[j] = from[j];
            for (j = 0; j < EPCTX__DOT_LANE; j++) memcpy(w[j] + i, wide + 4 * j, 8);
        }
        for (r = 0; r < d->count; r++) {
            if (count < 32)
                memcpy(bytes, d->rows[r] + k, count);
            else
                memcpy(bytes, d->rows[r] + k, 32);
            for (i = 0; i < 32; i++) x[i] = (int16_t)(bytes[i] ^ flip);
            for (j = 0; j < left; j++) {
                int32_t dot = 0;
                for (i = 0; i < 32; i++) dot += (int32_t)x[i] * w[j][i];
                sum[r][j] += (uint32_t)dot;
            }
        }
    }
}

#else

/* Four bytes, the first one lowest. */
static EPCTX__SIMD32_INLINE uint32_t epctx__four(const uint8_t *bytes) {
#ifdef EPCTX__SIMD32
    uint32_t word;
    memcpy(&word, bytes, sizeof word);
    return word;
#else
    return epctx__get32(bytes);
#endif
}

/* Adds the products of four bytes of x and of w. */
static EPCTX__SIMD32_INLINE uint32_t epctx__dot(uint32_t sum, uint32_t x, const int8_t *w) {
#ifdef EPCTX__SIMD32
    const uint32_t four = epctx__four((const uint8_t *)w);
    int16x2_t odd; /* bytes 1 and 3; the intrinsic cannot rotate */
    __asm__("sxtb16 %0, %1, ror #8" : "=r"(odd) : "r"(four));
    sum = (uint32_t)__smlad((int16x2_t)(x & 0xff00ffu), __sxtb16((int8x4_t)four), (int32_t)sum);
    return (uint32_t)__smlad((int16x2_t)(x >> 8 & 0xff00ffu), odd, (int32_t)sum);
#else
    return sum + (uint32_t)((int32_t)(x & 255) * w[0] + (int32_t)(x >> 8 & 255) * w[1] +
                            (int32_t)(x >> 16 & 255) * w[2] + (int32_t)(x >> 24) * w[3]);
#endif
}

/* Adds to four sums, those of adjacent channels. A function of its own keeps the four in
 * registers. */
static EPCTX__APART void epctx__dot_row(const uint8_t *x, const int8_t *w, size_t fours,
                                        uint32_t flip, uint32_t *sum) {
    uint32_t a = sum[0], b = sum[1], c = sum[2], d = sum[3];
    const uint8_t *end = x + 4 * fours;
    for (; x < end; x += 4, w += 4 * EPCTX__DOT_LANE) {
        const uint32_t four = epctx__four(x) ^ flip;
        a = epctx__dot(a, four, w);
        b = epctx__dot(b, four, w + 4);
        c = epctx__dot(c, four, w + 8);
        d = epctx__dot(d, four, w + 12);
    }
    sum[0] = a;
    sum[1] = b;
    sum[2] = c;
    sum[3] = d;
}

static void epctx__dot_rows(const epctx__dots *d, const int8_t *w, size_t left,
                            uint32_t (*sum)[EPCTX__DOT_LANE]) {
    size_t r, j;
    for (r = 0; r < d->count; r++)
        for (j = 0; j < left; j += 4)
            epctx__dot_row(d->rows[r], w + 4 * j, d->fours, d->flip * 0x1010101u, sum[r] + j);
}

#endif

/* Sums to `count` results, up to 16; bytes apart from numbers, so that vectors are long. */
static void epctx__requantize_strip(const epctx__requant *s, const uint32_t *sum,
                                    const float *scale, size_t count, uint8_t *y) {
    const size_t all = EPCTX__LOOPS ? 16 : count; /* known to the compiler */
    uint32_t steps[16];
    uint8_t bytes[16];
    size_t j;
    for (j = 0; j < all; j++) steps[j] = epctx__requantize(s, sum[j], scale[j]);
    for (j = 0; j < all; j++) bytes[j] = (uint8_t)(steps[j] & 0xff);
    memcpy(y, bytes, count);
}

static void epctx__dots_portable(const epctx__dots *d) {
    uint32_t sum[EPCTX__DOT_ROWS][EPCTX__DOT_LANE];
    size_t n, r;
    for (n = 0; n < d->columns; n += EPCTX__DOT_LANE) {
        const size_t left = d->columns - n < EPCTX__DOT_LANE ? d->columns - n : EPCTX__DOT_LANE;
        for (r = 0; r < d->count; r++) memcpy(sum[r], d->bias + n, sizeof sum[r]);
        epctx__dot_rows(d, d->w + n * d->fours * 4, left, sum);
        for (r = 0; r < d->count; r++)
            epctx__requantize_strip(d->steps, sum[r], d->scale + n, left, d->y + r * d->pitch + n);
    }
}

#ifdef EPCTX__AVX2

#define EPCTX__VNNI __attribute__((target("avx512f,avx512bw,avx512vnni")))

static bool epctx__has_vnni(epctx__level fast) {
    return fast == EPCTX__LEVEL_AVX512 && __builtin_cpu_supports("avx512vnni") &&
           __builtin_cpu_supports("avx512bw");
}

/* -- vectors of integers -- */

/* A whole vector of integers, from or to any address. */
EPCTX__TARGET static inline void epctx__get_256(epctx__vector *v, const void *from) {
    v->i256 = _mm256_loadu_si256((const __m256i *)from);
}

EPCTX__VNNI static inline void epctx__get_512(epctx__vector *v, const void *from) {
    v->i512 = _mm512_loadu_si512(from);
}

EPCTX__TARGET static inline void epctx__put_256(const epctx__vector *v, void *to) {
    _mm256_storeu_si256((__m256i *)to, v->i256);
}

EPCTX__VNNI static inline void epctx__put_512(const epctx__vector *v, void *to) {
    _mm512_storeu_si512(to, v->i512);
}

/* The first `count` bytes, 0 beyond. */
EPCTX__TARGET static inline void epctx__get_some_256(epctx__vector *v, const uint8_t *x,
                                                     size_t count) {
    uint8_t bytes[32] = {0};
    if (count == 16) {
        v->i256 = _mm256_zextsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)x));
    } else if (count == 8) {
        v->i256 = _mm256_zextsi128_si256(_mm_loadl_epi64((const __m128i *)(const void *)x));
    } else {
        if (count < 32) epctx__copy_run(bytes, x, count);
        v->i256 = _mm256_loadu_si256((const __m256i *)(const void *)(count < 32 ? bytes : x));
    }
}

EPCTX__VNNI static inline void epctx__get_some_512(epctx__vector *v, const uint8_t *x,
                                                   size_t count) {
    v->i512 = _mm512_maskz_loadu_epi8(count < 64 ? UINT64_MAX >> (64 - count) : UINT64_MAX, x);
}

/* Fills each lane of 32 bits with the four bytes at `bytes`. */
EPCTX__TARGET static inline void epctx__splat_four_256(epctx__vector *v, const void *bytes) {
    int32_t four;
    memcpy(&four, bytes, sizeof four);
    v->i256 = _mm256_set1_epi32(four);
}

EPCTX__VNNI static inline void epctx__splat_four_512(epctx__vector *v, const void *bytes) {
    int32_t four;
    memcpy(&four, bytes, sizeof four);
    v->i512 = _mm512_set1_epi32(four);
}

/* Flips the bits that `flip` has in every byte. */
EPCTX__TARGET static inline void epctx__flip_256(epctx__vector *v, uint32_t flip) {
    v->i256 = _mm256_xor_si256(v->i256, _mm256_set1_epi8((char)flip));
}

EPCTX__VNNI static inline void epctx__flip_512(epctx__vector *v, uint32_t flip) {
    v->i512 = _mm512_xor_si512(v->i512, _mm512_set1_epi8((char)flip));
}

/* The bytes 0, 2 and so on of x, or 1, 3 and so on, as 16 bits: without a sign, then with one. */
EPCTX__TARGET static inline void epctx__unsigned_half_256(epctx__vector *v, const epctx__vector *x,
                                                          bool odd) {
    v->i256 =
        odd ? _mm256_srli_epi16(x->i256, 8) : _mm256_and_si256(x->i256, _mm256_set1_epi16(0xff));
}

EPCTX__VNNI static inline void epctx__unsigned_half_512(epctx__vector *v, const epctx__vector *x,
                                                        bool odd) {
    v->i512 =
        odd ? _mm512_srli_epi16(x->i512, 8) : _mm512_and_si512(x->i512, _mm512_set1_epi16(0xff));
}

EPCTX__TARGET static inline void epctx__signed_half_256(epctx__vector *v, const epctx__vector *x,
                                                        bool odd) {
    v->i256 = _mm256_srai_epi16(odd ? x->i256 : _mm256_slli_epi16(x->i256, 8), 8);
}

EPCTX__VNNI static inline void epctx__signed_half_512(epctx__vector *v, const epctx__vector *x,
                                                      bool odd) {
    v->i512 = _mm512_srai_epi16(odd ? x->i512 : _mm512_slli_epi16(x->i512, 8), 8);
}

/* Adds to each number of `sum` four products of unsigned and signed bytes, or without AVX-VNNI two
 * products of 16 bits. Assembly, because gcc 12 copies the sum before it uses the intrinsic. */
EPCTX__TARGET static inline void epctx__dot_256(epctx__vector *sum, const epctx__vector *x,
                                                const epctx__vector *w, bool vnni) {
    __m256i both;
    if (vnni)
        __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum->i256) : "x"(x->i256), "x"(w->i256));
    else
        __asm__("vpmaddwd %3, %2, %1\n\tvpaddd %1, %0, %0"
                : "+x"(sum->i256), "=&x"(both)
                : "x"(x->i256), "x"(w->i256));
}

EPCTX__VNNI static inline void epctx__dot_512(epctx__vector *sum, const epctx__vector *x,
                                              const epctx__vector *w, bool vnni) {
    (void)vnni;
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum->i512) : "v"(x->i512), "v"(w->i512));
}

/* Four vectors of bytes, to lanes of four bytes, one of each. The lanes are in the order that
 * epctx__interleaved tells. */
EPCTX__TARGET static inline void epctx__interleave_256(epctx__vector *x) {
    const __m256i low = _mm256_unpacklo_epi8(x[0].i256, x[1].i256);
    const __m256i high = _mm256_unpackhi_epi8(x[0].i256, x[1].i256);
    const __m256i low2 = _mm256_unpacklo_epi8(x[2].i256, x[3].i256);
    const __m256i high2 = _mm256_unpackhi_epi8(x[2].i256, x[3].i256);
    x[0].i256 = _mm256_unpacklo_epi16(low, low2);
    x[1].i256 = _mm256_unpackhi_epi16(low, low2);
    x[2].i256 = _mm256_unpacklo_epi16(high, high2);
    x[3].i256 = _mm256_unpackhi_epi16(high, high2);
}

EPCTX__VNNI static inline void epctx__interleave_512(epctx__vector *x) {
    const __m512i low = _mm512_unpacklo_epi8(x[0].i512, x[1].i512);
    const __m512i high = _mm512_unpackhi_epi8(x[0].i512, x[1].i512);
    const __m512i low2 = _mm512_unpacklo_epi8(x[2].i512, x[3].i512);
    const __m512i high2 = _mm512_unpackhi_epi8(x[2].i512, x[3].i512);
    x[0].i512 = _mm512_unpacklo_epi16(low, low2);
    x[1].i512 = _mm512_unpackhi_epi16(low, low2);
    x[2].i512 = _mm512_unpacklo_epi16(high, high2);
    x[3].i512 = _mm512_unpackhi_epi16(high, high2);
}

/* Sums times scales, rounded with ties to even, within the limits; NaN gives the lower one. */
EPCTX__TARGET static inline void epctx__requantize_256(epctx__vector *v, const float *scale,
                                                       const epctx__requant *s) {
    __m256 x = _mm256_mul_ps(_mm256_cvtepi32_ps(v->i256), _mm256_loadu_ps(scale));
    x = _mm256_max_ps(x, _mm256_set1_ps((float)(s->low - s->zero))); /* NaN: the second operand */
    x = _mm256_min_ps(x, _mm256_set1_ps((float)(s->high - s->zero)));
    x = _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    v->i256 = _mm256_add_epi32(_mm256_cvttps_epi32(x), _mm256_set1_epi32(s->zero));
}

EPCTX__VNNI static inline void epctx__requantize_512(epctx__vector *v, const float *scale,
                                                     const epctx__requant *s) {
    __m512 x = _mm512_mul_ps(_mm512_cvtepi32_ps(v->i512), _mm512_loadu_ps(scale));
    x = _mm512_max_ps(x, _mm512_set1_ps((float)(s->low - s->zero))); /* NaN: the second operand */
    x = _mm512_min_ps(x, _mm512_set1_ps((float)(s->high - s->zero)));
    v->i512 =
        _mm512_add_epi32(_mm512_cvt_roundps_epi32(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC),
                         _mm512_set1_epi32(s->zero));
}

/* Stores the low bytes of the numbers, as far as they are columns; the first one is column `at`. */
EPCTX__TARGET static inline void epctx__put_bytes_256(const epctx__vector *v, uint8_t *y, size_t at,
                                                      size_t columns) {
    const __m256i low = _mm256_shuffle_epi8(v->i256, _mm256_set1_epi32(0x0c080400));
    const __m128i both =
        _mm_unpacklo_epi32(_mm256_castsi256_si128(low), _mm256_extracti128_si256(low, 1));
    uint64_t bytes;
    _mm_storel_epi64((__m128i *)(void *)(at + 8 <= columns ? y : (uint8_t *)&bytes), both);
    if (at < columns && at + 8 > columns) memcpy(y, &bytes, columns - at);
}

EPCTX__VNNI static inline void epctx__put_bytes_512(const epctx__vector *v, uint8_t *y, size_t at,
                                                    size_t columns) {
    epctx__lanes mask;
    epctx__first_512(&mask, columns > at ? columns - at : 0);
    _mm512_mask_cvtepi32_storeu_epi8(y, mask.m512, v->i512);
}

/* Undoes the order of epctx__interleave_: stores the first `count` bytes of four vectors of
 * numbers. */
EPCTX__TARGET static inline void epctx__put_interleaved_256(const epctx__vector *v, uint32_t type,
                                                            uint8_t *y, size_t count) {
    const __m256i low = _mm256_packs_epi32(v[0].i256, v[1].i256);
    const __m256i high = _mm256_packs_epi32(v[2].i256, v[3].i256);
    uint8_t bytes[32];
    _mm256_storeu_si256((__m256i *)(void *)(count < 32 ? bytes : y),
                        type == EPCTX_ONNX_INT8 ? _mm256_packs_epi16(low, high)
                                                : _mm256_packus_epi16(low, high));
    if (count < 32) epctx__copy_run(y, bytes, count);
}

EPCTX__VNNI static inline void epctx__put_interleaved_512(const epctx__vector *v, uint32_t type,
                                                          uint8_t *y, size_t count) {
    const __m512i low = _mm512_packs_epi32(v[0].i512, v[1].i512);
    const __m512i high = _mm512_packs_epi32(v[2].i512, v[3].i512);
    _mm512_mask_storeu_epi8(y, count < 64 ? UINT64_MAX >> (64 - count) : UINT64_MAX,
                            type == EPCTX_ONNX_INT8 ? _mm512_packs_epi16(low, high)
                                                    : _mm512_packus_epi16(low, high));
}

/* The weights of one group of four products for `wide` vectors of channels, whose blocks of 16
 * channels are `block` apart; as 16 bits, if there is no VNNI. */
static EPCTX__INLINE void epctx__dots_weights(size_t bits, const int8_t *w, size_t block,
                                              size_t wide, bool vnni, bool odd,
                                              epctx__vector *weights) {
    const size_t lanes = bits / 32;
    epctx__vector bytes;
    size_t v;
    EPCTX__UNROLL
    for (v = 0; v < wide; v++) {
        EPCTX__BY_WIDTH(bits, epctx__get,
                        (&bytes, w + v * lanes / 16 * block + v * lanes % 16 * 4));
        if (vnni)
            weights[v] = bytes;
        else
            EPCTX__BY_WIDTH(bits, epctx__signed_half, (&weights[v], &bytes, odd));
    }
}

/* The bytes of a pixel that meet these weights. `ahead`: they are 16 bits already. */
static EPCTX__INLINE void epctx__dots_pixel(size_t bits, const uint8_t *four, uint32_t flip,
                                            bool vnni, bool odd, bool ahead, epctx__vector *x) {
    EPCTX__BY_WIDTH(bits, epctx__splat_four, (x, four));
    if (!ahead) EPCTX__BY_WIDTH(bits, epctx__flip, (x, flip));
    if (!ahead && !vnni) EPCTX__BY_WIDTH(bits, epctx__unsigned_half, (x, x, odd));
}

/* Computes `rows` pixels from `first` on and `wide` vectors of channels from `n` on; each argument
 * but d, n and first is a constant where this is inlined. Without VNNI each group has two parts:
 * its even bytes and its odd ones. */
static EPCTX__INLINE void epctx__dots_tile(size_t bits, const epctx__dots *d, size_t n,
                                           size_t first, size_t rows, size_t wide, bool vnni,
                                           bool ahead) {
    const size_t lanes = bits / 32, block = d->fours * 4 * EPCTX__DOT_LANE, parts = vnni ? 1 : 2;
    const epctx__requant steps = *d->steps; /* stores cannot change copies */
    const uint32_t flip = d->flip;
    const int8_t *w = d->w + n * d->fours * 4;
    epctx__vector sum[EPCTX__DOT_ROWS][4], weights[4], x;
    size_t r, v, k, part;
    EPCTX__UNROLL
    for (r = 0; r < rows; r++) {
        EPCTX__UNROLL
        for (v = 0; v < wide; v++)
            EPCTX__BY_WIDTH(bits, epctx__get, (&sum[r][v], d->bias + n + v * lanes));
    }
    for (k = 0; k < d->fours; k++, w += 4 * EPCTX__DOT_LANE) {
        EPCTX__UNROLL
        for (part = 0; part < parts; part++) {
            epctx__dots_weights(bits, w, block, wide, vnni, part == 1, weights);
            EPCTX__UNROLL
            for (r = 0; r < rows; r++) {
                const uint8_t *pixel = d->rows[first + r];
                epctx__dots_pixel(bits, pixel + 4 * (ahead ? 2 * k + part : k), flip, vnni,
                                  part == 1, ahead, &x);
                EPCTX__UNROLL
                for (v = 0; v < wide; v++)
                    EPCTX__BY_WIDTH(bits, epctx__dot, (&sum[r][v], &x, &weights[v], vnni));
            }
        }
    }
    EPCTX__UNROLL
    for (r = 0; r < rows; r++) {
        uint8_t *y = d->y + (first + r) * d->pitch + n;
        EPCTX__UNROLL
        for (v = 0; v < wide; v++) {
            if (first + r < d->count) {
                const float *scale = d->scale + n + v * lanes;
                EPCTX__BY_WIDTH(bits, epctx__requantize, (&sum[r][v], scale, &steps));
                EPCTX__BY_WIDTH(bits, epctx__put_bytes,
                                (&sum[r][v], y + v * lanes, n + v * lanes, d->columns));
            }
        }
    }
}

/* Adds the products of four taps, interleaved, and their weights at w. */
static EPCTX__INLINE void epctx__channels_dot(size_t bits, const epctx__channels *l,
                                              const int8_t *w, const epctx__vector *x, bool vnni,
                                              epctx__vector *sum) {
    const int16_t *wide = l->wide + (w - l->w);
    epctx__vector weights, half;
    if (vnni) {
        EPCTX__BY_WIDTH(bits, epctx__get, (&weights, w));
        EPCTX__BY_WIDTH(bits, epctx__dot, (sum, x, &weights, true));
    } else {
        EPCTX__BY_WIDTH(bits, epctx__unsigned_half, (&half, x, false));
        EPCTX__BY_WIDTH(bits, epctx__get, (&weights, wide));
        EPCTX__BY_WIDTH(bits, epctx__dot, (sum, &half, &weights, false));
        EPCTX__BY_WIDTH(bits, epctx__unsigned_half, (&half, x, true));
        EPCTX__BY_WIDTH(bits, epctx__get, (&weights, wide + bits / 16));
        EPCTX__BY_WIDTH(bits, epctx__dot, (sum, &half, &weights, false));
    }
}

/* Computes the results of one vector of bytes, the one at `part`. */
static EPCTX__INLINE void epctx__channels_part(size_t bits, epctx__channels *l, size_t part,
                                               bool vnni) {
    const size_t at = part * (bits / 8), left = l->count - at;
    const size_t count = left < bits / 8 ? left : bits / 8;
    const epctx__requant steps = l->p->y; /* stores cannot change copies */
    const uint32_t flip = l->p->flip;
    const int8_t *w = l->w + at;
    epctx__vector sum[4], x[4];
    size_t t, i;
    EPCTX__UNROLL
    for (i = 0; i < 4; i++) EPCTX__BY_WIDTH(bits, epctx__get, (&sum[i], l->from + 16 * i + at / 4));
    for (t = 0; t < l->tap_count; t += 4, w += 256) {
        EPCTX__UNROLL
        for (i = 0; i < 4; i++) {
            EPCTX__BY_WIDTH(bits, epctx__get_some, (&x[i], l->taps[t + i] + at, count));
            EPCTX__BY_WIDTH(bits, epctx__flip, (&x[i], flip));
        }
        EPCTX__BY_WIDTH(bits, epctx__interleave, (x));
        EPCTX__UNROLL
        for (i = 0; i < 4; i++) epctx__channels_dot(bits, l, w + 64 * i, &x[i], vnni, &sum[i]);
    }
    if (l->last) {
        EPCTX__UNROLL
        for (i = 0; i < 4; i++)
            EPCTX__BY_WIDTH(bits, epctx__requantize, (&sum[i], l->scale + 16 * i + at / 4, &steps));
        EPCTX__BY_WIDTH(bits, epctx__put_interleaved, (sum, steps.type, l->y + at, count));
    } else {
        EPCTX__UNROLL
        for (i = 0; i < 4; i++)
            EPCTX__BY_WIDTH(bits, epctx__put, (&sum[i], l->sum + 16 * i + at / 4));
    }
}

EPCTX__VNNI EPCTX__FLAT static void epctx__dots_wide(const epctx__dots *d) {
    size_t n, wide;
    for (n = 0; n < d->columns; n += 16 * wide) {
        wide = d->columns - n > 48 ? 4 : (d->columns - n > 16 ? 2 : 1);
        if (d->count == 1 && wide == 4)
            epctx__dots_tile(512, d, n, 0, 1, 4, true, false);
        else if (d->count == 1)
            epctx__dots_tile(512, d, n, 0, 1, wide = 1, true, false);
        else if (wide == 4)
            epctx__dots_tile(512, d, n, 0, EPCTX__DOT_ROWS, 4, true, false);
        else if (wide == 2)
            epctx__dots_tile(512, d, n, 0, EPCTX__DOT_ROWS, 2, true, false);
        else
            epctx__dots_tile(512, d, n, 0, EPCTX__DOT_ROWS, 1, true, false);
    }
}

#define EPCTX__WIDENED 288 /* groups of four products of a pixel that are widened ahead */

/* 12 sums and their operands just fit into 16 registers. */
EPCTX__TARGET EPCTX__FLAT static void epctx__dots_avx2(const epctx__dots *d, bool vnni) {
    const __m128i flip = _mm_set1_epi8((char)d->flip);
    const bool ahead = !vnni && d->count > 1 && d->fours >= 2 && d->fours <= EPCTX__WIDENED;
    const size_t rows = vnni ? 3 : (ahead ? EPCTX__DOT_ROWS : 1);
    uint32_t x[EPCTX__DOT_ROWS][2 * EPCTX__WIDENED]; /* bytes 0 and 2, bytes 1 and 3, and so on */
    epctx__dots wide = *d;
    size_t n, r, k;
    for (r = 0; ahead && r < EPCTX__DOT_ROWS; r++) {
        for (k = 0; k < d->fours; k += 2) { /* the last ones overlap */
            const size_t at = k + 2 <= d->fours ? k : k - 1;
            const __m128i four = _mm_xor_si128(
                _mm_loadl_epi64((const __m128i *)(const void *)(d->rows[r] + 4 * at)), flip);
            _mm_storeu_si128((__m128i *)(void *)(x[r] + 2 * at),
                             _mm_unpacklo_epi32(_mm_and_si128(four, _mm_set1_epi16(0xff)),
                                                _mm_srli_epi16(four, 8)));
        }
        wide.rows[r] = (const uint8_t *)x[r];
    }
    for (n = 0; n < d->columns; n += EPCTX__DOT_LANE) {
        for (r = 0; r < d->count; r += rows)
            if (vnni)
                epctx__dots_tile(256, &wide, n, r, 3, 2, true, false);
            else if (!ahead)
                epctx__dots_tile(256, &wide, n, r, 1, 2, false, false);
            else if (d->columns - n <= 8)
                epctx__dots_tile(256, &wide, n, 0, EPCTX__DOT_ROWS, 1, false, true);
            else
                epctx__dots_tile(256, &wide, n, 0, EPCTX__DOT_ROWS, 2, false, true);
    }
}

EPCTX__VNNI EPCTX__FLAT static void epctx__channels_wide(epctx__channels *l) {
    epctx__channels_part(512, l, 0, true);
}

EPCTX__TARGET EPCTX__FLAT static void epctx__channels_avx2(epctx__channels *l, bool vnni) {
    epctx__vector bytes, half;
    size_t i;
    for (i = 0; !vnni && l->widened != l->w && i < (l->tap_count + 3) / 4 * 256; i += 32) {
        epctx__get_256(&bytes, l->w + i);
        epctx__signed_half_256(&half, &bytes, false);
        epctx__put_256(&half, l->wide + i);
        epctx__signed_half_256(&half, &bytes, true);
        epctx__put_256(&half, l->wide + i + 16);
    }
    l->widened = l->w;
    for (i = 0; 32 * i < l->count; i++)
        if (vnni)
            epctx__channels_part(256, l, i, true);
        else
            epctx__channels_part(256, l, i, false);
}

static bool epctx__has_avx_vnni(void) {
#if defined(EPCTX_NPU_NO_AVX512) || defined(__clang__) || __GNUC__ < 11 /* unknown there */
    return false;
#else
    return __builtin_cpu_supports("avxvnni");
#endif
}

#endif /* EPCTX__AVX2 */

static epctx_status epctx__run_integer_conv(const epctx__integer_conv *p, const epctx__args *args) {
    const epctx__window *w = &p->window;
    const size_t depth = (size_t)w->kernel_h * w->kernel_w * p->in_channels;
    const size_t pixels = (size_t)p->batch * w->out_h * w->out_w;
    const size_t image = (size_t)w->in_h * w->in_w * p->in_channels;
    const uint8_t *x = (const uint8_t *)args->in[0];
    const bool in_place = epctx__in_place(p);
    const size_t size = (depth + 3) / 4 * 4;
    uint8_t *patch = (uint8_t *)args->out[1];
    const uint8_t *taps;
    epctx__dots d;
    uint32_t oy = 0, ox = 0;
    size_t at, r;
    memset(&d, 0, sizeof d);
    d.w = (const int8_t *)args->in[1];
    d.bias = (const int32_t *)args->in[2];
    d.scale = (const float *)args->in[3];
    d.fours = size / 4;
    d.columns = d.pitch = p->out_channels;
    d.steps = &p->y;
    d.flip = p->flip;
    for (at = 0; at < pixels; at += d.count) {
        d.count = pixels - at < EPCTX__DOT_ROWS ? pixels - at : EPCTX__DOT_ROWS;
        d.y = (uint8_t *)args->out[0] + at * d.pitch;
        for (r = 0; r < d.count && !in_place; r++) {
            epctx__patch(p, x, oy, ox, patch + r * size, size);
            ox = ox + 1 < w->out_w ? ox + 1 : 0;
            oy += ox == 0 ? 1 : 0;
            if (oy == w->out_h) {
                x += image;
                oy = 0;
            }
        }
        taps = in_place ? x + at * depth : patch;
        for (r = 0; r < EPCTX__DOT_ROWS; r++) /* rows beyond repeat the first */
            d.rows[r] = taps + (r < d.count ? r : 0) * size;
#ifdef EPCTX__AVX2
        if (epctx__has_vnni(args->fast))
            epctx__dots_wide(&d);
        else if (args->fast != EPCTX__PORTABLE)
            epctx__dots_avx2(&d, epctx__has_avx_vnni());
        else
#endif
            epctx__dots_portable(&d);
    }
    return EPCTX_OK;
}

/* -- IntegerDepthwise: weights [channel / 64][tap / 4][64][tap % 4]; the 64 channels are in the
 * order that interleaving leaves them in, bias and scales, too. If 64 is a multiple of the number
 * of channels they repeat, so that 64 bytes may be several pixels -- */

static bool epctx__check_integer_depthwise(const epctx__integer_conv *p, epctx__needs *needs) {
    return epctx__integer_needs(p, epctx__mul(p->window.kernel_h, p->window.kernel_w), 64, needs) &&
           p->in_channels == p->out_channels;
}

static size_t epctx__interleaved(size_t channel) {
    const size_t at = channel % 64;
    return channel - at + at % 16 / 4 * 16 + at / 16 * 4 + at % 4;
}

#if EPCTX__LOOPS

/* The weights turn to [tap][64]. */
static void epctx__channels_portable(epctx__channels *l) {
    const uint8_t flip = (uint8_t)l->p->flip;
    uint8_t x[64] = {0}, y[64];
    int16_t wide[64];
    uint32_t sum[64];
    size_t i, t;
    for (t = 0; l->widened != l->w && t < l->tap_count; t++)
        for (i = 0; i < 64; i++) l->wide[64 * t + i] = l->w[64 * (t - t % 4) + 4 * i + t % 4];
    l->widened = l->w;
    memcpy(sum, l->from, sizeof sum);
    for (t = 0; t < l->tap_count; t++) {
        const int16_t *w = l->wide + 64 * t;
        for (i = 0; i + 4 <= l->count; i += 4) memcpy(x + epctx__interleaved(i), l->taps[t] + i, 4);
        for (; i < l->count; i++) x[epctx__interleaved(i)] = l->taps[t][i];
        for (i = 0; i < 64; i++) wide[i] = (int16_t)(x[i] ^ flip);
        for (i = 0; i < 64; i++) sum[i] += (uint32_t)((int32_t)wide[i] * w[i]);
    }
    memcpy(l->sum, sum, sizeof sum);
    for (i = 0; i < 64 && l->last; i += 16)
        epctx__requantize_strip(&l->p->y, sum + i, l->scale + i, 16, y + i);
    for (i = 0; i < l->count && l->last; i++) l->y[i] = y[epctx__interleaved(i)];
}

#else

static void epctx__channels_portable(epctx__channels *l) {
    const uint32_t flip = l->p->flip * 0x1010101u;
    size_t i, t;
    for (i = 0; i < l->count; i++) {
        const size_t at = epctx__interleaved(i);
        uint32_t sum = (uint32_t)l->from[at];
        for (t = 0; t < l->tap_count; t += 4) {
            const uint8_t *const *taps = l->taps + t;
            const uint32_t x = (uint32_t)taps[0][i] | (uint32_t)taps[1][i] << 8 |
                               (uint32_t)taps[2][i] << 16 | (uint32_t)taps[3][i] << 24;
            sum = epctx__dot(sum, x ^ flip, l->w + 64 * t + 4 * at);
        }
        memcpy(l->sum + at, &sum, sizeof sum);
        if (l->last) l->y[i] = epctx__requantize(&l->p->y, sum, l->scale[at]);
    }
}

#endif

/* The taps from `done` on, of the pixel whose first one is at `top` and `first`. */
static EPCTX__APART void epctx__find_taps(epctx__channels *l, const uint8_t *image, uint32_t top,
                                          uint32_t first, size_t done, const uint8_t *fill) {
    const epctx__window w = l->p->window;
    const size_t channels = l->p->out_channels;
    uint32_t ky = done == 0 ? 0 : (uint32_t)(done / w.kernel_w);
    uint32_t kx = (uint32_t)(done - (size_t)ky * w.kernel_w);
    size_t t = 0;
    for (; t < l->tap_count; ky++, kx = 0) {
        const uint32_t iy = top + ky * w.dilation_h, width = iy < w.in_h ? w.in_w : 0;
        const uint8_t *line = image + (width != 0 ? (size_t)iy * width * channels : 0);
        for (; kx < w.kernel_w && t < l->tap_count; kx++) {
            const uint32_t ix = first + kx * w.dilation_w;
            l->taps[t++] = ix < width ? line + ix * channels : fill;
        }
    }
    for (; t % 4 != 0; t++) l->taps[t] = fill;
}

/* A row of results of channels from `c` on, in `y` and in the weights. */
static void epctx__depthwise_row(epctx__channels *l, const epctx__args *args, size_t c,
                                 const uint8_t *image, uint32_t oy, uint8_t *y) {
    const epctx__integer_conv *p = l->p;
    const epctx__window *w = &p->window;
    const size_t channels = p->out_channels, count = (size_t)w->kernel_h * w->kernel_w;
    const uint32_t beside =
        w->stride_w == 1 && channels < 64 && 64 % channels == 0 ? (uint32_t)(64 / channels) : 1;
    const uint32_t reach = (w->kernel_w - 1) * w->dilation_w;
    uint32_t ox, pixels;
    uint8_t fill[64];
    size_t done;
    memset(fill, (int)p->fill, sizeof fill);
    l->scale = (const float *)args->in[3] + c;
    for (ox = 0; ox < w->out_w; ox += pixels) {
        const uint32_t first = ox * w->stride_w - w->left; /* wraps in the padding */
        const bool inside = first < w->in_w && first + reach < w->in_w;
        const uint32_t room = inside ? w->in_w - first - reach : 1, left = w->out_w - ox;
        pixels = beside < room ? beside : room;
        pixels = pixels < left ? pixels : left;
        l->count = channels * pixels - c < 64 ? channels * pixels - c : 64;
        l->w = (const int8_t *)args->in[1] + c * ((count + 3) / 4 * 4);
        l->from = (const int32_t *)args->in[2] + c;
        l->y = y + ox * channels + c;
        for (done = 0; done < count; done += l->tap_count) {
            l->tap_count = count - done < EPCTX__TAPS ? count - done : EPCTX__TAPS;
            l->last = done + l->tap_count == count;
            epctx__find_taps(l, image + c, oy * w->stride_h - w->top, first, done, fill);
#ifdef EPCTX__AVX2
            if (epctx__has_vnni(args->fast))
                epctx__channels_wide(l);
            else if (args->fast != EPCTX__PORTABLE)
                epctx__channels_avx2(l, epctx__has_avx_vnni());
            else
#endif
                epctx__channels_portable(l);
            l->w += EPCTX__TAPS * 64;
            l->from = l->sum;
        }
    }
}

static epctx_status epctx__run_integer_depthwise(const epctx__integer_conv *p,
                                                 const epctx__args *args) {
    const epctx__window *w = &p->window;
    const size_t image = (size_t)w->in_h * w->in_w * p->in_channels;
    const size_t row = (size_t)w->out_w * p->out_channels;
    const uint8_t *x = (const uint8_t *)args->in[0];
    uint8_t *y = (uint8_t *)args->out[0];
    size_t n, c;
    epctx__channels l;
    l.p = p;
#if EPCTX__LOOPS
    l.widened = NULL;
#endif
    for (c = 0; c < p->out_channels; c += 64) {
        for (n = 0; n < (size_t)p->batch * w->out_h; n++)
            epctx__depthwise_row(&l, args, c, x + n / w->out_h * image, (uint32_t)(n % w->out_h),
                                 y + n * row);
    }
    return EPCTX_OK;
}

/* -- IntegerAdd: sums or products of bytes of two scales -- */

typedef struct epctx__integer_add {
    uint32_t count, product, a_flip, b_flip;
    int32_t a_zero, b_zero; /* of the flipped bytes */
    float a_scale, b_scale, y_scale;
    epctx__requant y;
} epctx__integer_add;

static bool epctx__check_integer_add(const epctx__integer_add *p, epctx__needs *needs) {
    needs->in[0] = needs->in[1] = needs->out[0] = epctx__items(p->count, 1);
    return (p->a_flip == 0 || p->a_flip == 0x80) && (p->b_flip == 0 || p->b_flip == 0x80) &&
           p->a_zero >= 0 && p->a_zero <= 255 && p->b_zero >= 0 && p->b_zero <= 255 &&
           epctx__requant_ok(&p->y);
}

/* The quantized sum, or product, of two bytes, in the low byte. */
static EPCTX__INLINE uint32_t epctx__combined(const epctx__integer_add *p, uint8_t x, uint8_t y) {
    const int32_t a = (int32_t)(x ^ p->a_flip) - p->a_zero;
    const int32_t b = (int32_t)(y ^ p->b_flip) - p->b_zero;
#ifdef EPCTX_NPU_FIXED_POINT
    const epctx__fixed one = epctx__fixed_scaled(a, p->a_scale);
    const epctx__fixed two = epctx__fixed_scaled(b, p->b_scale);
    const epctx__fixed both =
        p->product != 0 ? epctx__fixed_times(one, two) : epctx__fixed_sum(one, two);
    return epctx__fixed_step(&p->y, epctx__fixed_ratio(both, epctx__fixed_float(p->y_scale)));
#else /* products chosen among two, so that no compiler fuses them with the sum */
    const float one = epctx__rounded(epctx__choose(p->count != 0, (float)a * p->a_scale, 0.0f));
    const float two = epctx__rounded(epctx__choose(p->count != 0, (float)b * p->b_scale, 0.0f));
    const float both = epctx__rounded(epctx__choose(p->product != 0, one * two, one + two));
    return epctx__steps(both / p->y_scale, (float)(p->y.low - p->y.zero),
                        (float)(p->y.high - p->y.zero), (float)p->y.zero);
#endif
}

static EPCTX__INLINE void epctx__combined_strip(const epctx__integer_add *p, const uint8_t *a,
                                                const uint8_t *b, size_t width, uint8_t *y) {
    uint32_t steps[16];
    size_t j;
    for (j = 0; j < width; j++) steps[j] = epctx__combined(p, a[j], b[j]);
    for (j = 0; j < width; j++) y[j] = (uint8_t)(steps[j] & 0xff);
}

static EPCTX__INLINE void epctx__all_integer_add_body(const epctx__integer_add *params,
                                                      const epctx__args *args) {
    const epctx__integer_add p = *params;
    const uint8_t *a = (const uint8_t *)args->in[0], *b = (const uint8_t *)args->in[1];
    uint8_t *y = (uint8_t *)args->out[0];
    EPCTX__STRIPS(i, p.count, width, epctx__combined_strip(&p, a + i, b + i, width, y + i););
}

EPCTX__RUN(integer_add, epctx__integer_add)

/* -- Lookup: a function of a byte -- */

typedef struct epctx__lookup {
    uint32_t count;
} epctx__lookup;

static bool epctx__check_lookup(const void *params, epctx__needs *needs) {
    needs->in[0] = needs->out[0] = epctx__items(((const epctx__lookup *)params)->count, 1);
    needs->in[1] = epctx__items(256, 1);
    return true;
}

static epctx_status epctx__run_lookup(const void *params, const epctx__args *args) {
    const uint8_t *x = (const uint8_t *)args->in[0], *table = (const uint8_t *)args->in[1];
    uint8_t *y = (uint8_t *)args->out[0];
    EPCTX__EACH(i, ((const epctx__lookup *)params)->count, y[i] = table[x[i]];);
    return EPCTX_OK;
}

/* -- the table of opcodes -- */

/* A parameter along which a command can be cut: it counts independent results that are adjacent in
 * memory. */
typedef struct epctx__counter {
    uint8_t unit;    /* parts are multiples of it; 0: there is no such parameter */
    uint8_t words;   /* the first above 1 counts, among this member and those after it */
    uint8_t window;  /* its offset in epctx__window: counts rows; 0: not of a window */
    uint16_t offset; /* in the parameters */
} epctx__counter;

#define EPCTX__COUNTERS 3 /* at most, of an opcode */

/* clang-format off */
#define EPCTX__BY(type, member, unit, words) {unit, words, 0, offsetof(type, member)}
#define EPCTX__BY_whole(type, unit)    {0, 0, 0, 0}
#define EPCTX__BY_dims(type, unit)     EPCTX__BY(type, dims, unit, EPCTX_NPU_MAX_RANK)
#define EPCTX__BY_count(type, unit)    EPCTX__BY(type, count, unit, 1)
#define EPCTX__BY_outer(type, unit)    EPCTX__BY(type, outer, unit, 1)
#define EPCTX__BY_channels(type, unit) EPCTX__BY(type, outer, unit, 3) /* or channels, or inner */
#define EPCTX__BY_images(type, unit) \
    EPCTX__BY(type, batch, 1, 1), {unit, 1, 8, offsetof(type, window.out_h)}
#define EPCTX__BY_places(type, unit) EPCTX__BY(type, outer, unit, 1), EPCTX__BY(type, out, unit, 1)
#define EPCTX__BY_tiles(type, unit) /* 24: a multiple of the rows of all tiles */ \
    EPCTX__BY(type, batch, 1, 1), EPCTX__BY(type, m, 24, 1), EPCTX__BY(type, n, 64, 1)

/* Two lines for each opcode. The first is for whoever runs it: enumerator, name, inputs, outputs,
 * required inputs (bits), parameter struct, name of check and kernel. The second tells what else
 * there is to know about it; words are ends of names:
 *   - EPCTX__BY_: the parameters along which threads share it, and a unit: parts end where vectors
 *     and tiles end, so that each result is computed as in the whole (>>exec)
 *   - epctx__fails_: the operand whose values can make it fail
 *   - epctx__folds_: whether its result has the same bits on every machine (>>steps)
 *   - EPCTX__SLOT_: where its parameters hold a fused activation
 *   - bits of the operands that lie channels last where its result does
 *   - epctx__follow_: whether it can write its result channels last (>>layout)
 *   - epctx__lay_: how else it adapts to that order
 *   - epctx__bytes_: what it becomes between Dequantize and Quantize (>>integers)
 *   - epctx__product_: how it is a product of integers */
#define EPCTX_NPU_OP_LIST(X) \
    X(MOVE, "Move", 1, 1, 1, epctx__move, move, \
      dims,     1,  never,    always,  none,      0, move,     move,   move,    none) \
    X(FILL, "Fill", 0, 1, 0, epctx__fill, fill, \
      whole,    0,  never,    always,  none,      1, fill,     usual,  none,    none) \
    X(UNARY, "Unary", 1, 1, 1, epctx__unary, unary, \
      count,    64, never,    unary,   none,      1, same,     usual,  lookup,  none) \
    X(BINARY, "Binary", 2, 1, 3, epctx__binary, binary, \
      dims,     1,  never,    binary,  binary,    1, ranks,    binary, binary,  none) \
    X(AFFINE, "Affine", 3, 1, 7, epctx__affine, affine, \
      channels, 1,  never,    never,   affine,    1, channels, usual,  none,    none) \
    X(PACK, "Pack", 1, 1, 1, epctx__pack, pack, \
      whole,    0,  never,    always,  none,      1, never,    usual,  none,    none) \
    X(CONV, "Conv", 4, 2, 3, epctx__conv, conv, \
      images,   1,  never,    never,   conv,      9, never,    usual,  product, conv) \
    X(DEPTHWISE, "Depthwise", 3, 1, 3, epctx__depthwise, depthwise, \
      images,   1,  never,    never,   depthwise, 1, never,    usual,  product, depthwise) \
    X(GEMM, "Gemm", 3, 1, 3, epctx__gemm, gemm, \
      tiles,    0,  never,    never,   gemm,      1, never,    gemm,   product, gemm) \
    X(POOL, "Pool", 1, 1, 1, epctx__pool, pool, \
      images,   1,  never,    never,   none,      1, never,    usual,  product, pool) \
    X(REDUCE, "Reduce", 1, 1, 1, epctx__reduce, reduce, \
      outer,    16, never,    reduce,  none,      1, never,    reduce, product, reduce) \
    X(SOFTMAX, "Softmax", 1, 1, 1, epctx__softmax, softmax, \
      outer,    16, never,    never,   none,      1, never,    usual,  none,    none) \
    X(GATHER, "Gather", 2, 1, 3, epctx__gather_params, gather, \
      whole,    0,  index,    always,  none,      1, never,    usual,  none,    none) \
    X(CAST, "Cast", 1, 1, 1, epctx__cast, cast, \
      count,    64, never,    always,  none,      1, same,     usual,  none,    none) \
    X(EXACT, "Exact", 2, 1, 3, epctx__exact, exact, \
      dims,     1,  division, always,  none,      1, never,    usual,  none,    none) \
    X(WHERE, "Where", 3, 1, 7, epctx__where, where, \
      dims,     1,  never,    always,  none,      1, never,    usual,  none,    none) \
    X(NORM, "Norm", 3, 1, 1, epctx__norm, norm, \
      whole,    0,  never,    never,   none,      1, never,    usual,  none,    none) \
    X(ARG, "Arg", 1, 1, 1, epctx__arg, arg, \
      whole,    0,  never,    always,  none,      1, never,    usual,  none,    none) \
    X(GATHER_ELEMENTS, "GatherElements", 3, 1, 3, epctx__gather_elements, gather_elements, \
      whole,    0,  index,    always,  none,      1, never,    usual,  none,    none) \
    X(GATHER_ND, "GatherND", 3, 1, 3, epctx__gather_nd, gather_nd, \
      whole,    0,  index,    always,  none,      1, never,    usual,  none,    none) \
    X(QUANTIZE, "Quantize", 3, 1, 3, epctx__quantize, quantize, \
      channels, 1,  never,    never,   none,      1, grid,     usual,  none,    none) \
    X(DEQUANTIZE, "Dequantize", 3, 1, 3, epctx__quantize, dequantize, \
      channels, 1,  never,    always,  none,      1, grid,     usual,  lookup,  none) \
    X(RESAMPLE, "Resample", 3, 1, 7, epctx__resample, resample, \
      places,   0,  never,    never,   none,      1, planes,   usual,  none,    none) \
    X(RECURRENT, "Recurrent", 7, 2, 3, epctx__recurrent, recurrent, \
      whole,    0,  length,   never,   none,      1, never,    usual,  none,    none) \
    X(INTEGER_CONV, "IntegerConv", 4, 2, 15, epctx__integer_conv, integer_conv, \
      images,   1,  never,    never,   none,      1, never,    usual,  none,    none) \
    X(INTEGER_DEPTHWISE, "IntegerDepthwise", 4, 1, 15, epctx__integer_conv, integer_depthwise, \
      images,   1,  never,    never,   none,      1, never,    usual,  none,    none) \
    X(INTEGER_ADD, "IntegerAdd", 2, 1, 3, epctx__integer_add, integer_add, \
      count,    64, never,    never,   none,      3, pair,     usual,  none,    none) \
    X(LOOKUP, "Lookup", 2, 1, 3, epctx__lookup, lookup, \
      count,    64, never,    never,   none,      1, same,     usual,  none,    none) \
    X(SAMPLE, "Sample", 2, 1, 3, epctx__sample, sample, \
      whole,    0,  never,    never,   none,      1, never,    usual,  none,    none) \
    X(CONVERT, "Convert", 1, 1, 1, epctx__cast, convert, \
      whole,    0,  never,    always,  none,      1, never,    usual,  none,    none) \
    X(WINOGRAD, "Winograd", 4, 2, 3, epctx__conv, winograd, \
      images,   4,  never,    never,   none,      9, never,    usual,  none,    none) \
    X(CUM_SUM, "CumSum", 1, 1, 1, epctx__cum_sum, cum_sum, \
      whole,    0,  never,    cum_sum, none,      1, never,    usual,  none,    none)
/* clang-format on */

typedef enum epctx__opcode {
#define EPCTX__OP_ENUM(id, text, ins, outs, required, type, name, ...) EPCTX__OP_##id,
    EPCTX_NPU_OP_LIST(EPCTX__OP_ENUM)
#undef EPCTX__OP_ENUM
        EPCTX__OP_COUNT
} epctx__opcode;

#define EPCTX_NPU_OP(id) (UINT64_C(1) << EPCTX__OP_##id)
#ifndef EPCTX_NPU_SELECT
#define EPCTX_NPU_SELECT UINT64_MAX
#endif

/* Any parameter struct; words are copied into it, which avoids aliasing. */
typedef union epctx__params {
#define EPCTX__OP_MEMBER(id, text, ins, outs, required, type, name, ...) type name;
    EPCTX_NPU_OP_LIST(EPCTX__OP_MEMBER)
#undef EPCTX__OP_MEMBER
} epctx__params;

typedef struct epctx__op_info {
    const char *name;
    uint8_t in_count, out_count, required, param_words;
    bool (*check_fn)(const void *params, epctx__needs *needs);
    epctx_status (*run_fn)(const void *params, const epctx__args *args);
} epctx__op_info;

/* Words of a command. */
static uint32_t epctx__command_size(const epctx__op_info *op) {
    const uint32_t operands = (uint32_t)(op->in_count + op->out_count);
    return EPCTX__COMMAND_WORDS + operands * EPCTX__OPERAND_WORDS + op->param_words;
}

/* The instruction sets of this processor. */
static epctx__level epctx__level_here(void) {
#ifdef EPCTX__AVX2
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
#ifndef EPCTX_NPU_NO_AVX512
        if (__builtin_cpu_supports("avx512f")) return EPCTX__LEVEL_AVX512;
#endif
        return EPCTX__LEVEL_AVX2;
    }
#endif
    return EPCTX__PORTABLE;
}

/* Each check and kernel takes the struct of its parameters. */
#define EPCTX__OP_CALLS(id, text, ins, outs, required, type, name, ...) \
    static bool epctx__check_op_##name(const void *params, epctx__needs *needs) { \
        return epctx__check_##name((const type *)params, needs); \
    } \
    static epctx_status epctx__run_op_##name(const void *params, const epctx__args *args) { \
        return epctx__run_##name((const type *)params, args); \
    }
EPCTX_NPU_OP_LIST(EPCTX__OP_CALLS)
#undef EPCTX__OP_CALLS

static const epctx__op_info epctx__ops[EPCTX__OP_COUNT] = {
#define EPCTX__OP_ROW(id, text, ins, outs, required, type, name, ...) \
    {text, \
     ins, \
     outs, \
     required, \
     sizeof(type) / 4, \
     (EPCTX_NPU_OP(id) & (EPCTX_NPU_SELECT)) != 0 ? epctx__check_op_##name : NULL, \
     (EPCTX_NPU_OP(id) & (EPCTX_NPU_SELECT)) != 0 ? epctx__run_op_##name : NULL},
    EPCTX_NPU_OP_LIST(EPCTX__OP_ROW)
#undef EPCTX__OP_ROW
};

/* ============================================================
 * >>exec: loading and running
 *
 * Loading verifies everything once, so that running need not: a blob is hostile, a loaded context
 * is not. epctx__survey checks the header and adds up the memory that the context needs.
 * epctx__load_copy copies directory, commands and strings into the caller's memory and checks only
 * that copy, so a file that changes later cannot move an address. The weights stay in the blob if
 * alignment and byte order allow.
 *
 * Safety rests on epctx__command_ok: the check of the opcode turns the parameters into the bytes
 * that the kernel may touch in each operand (epctx__needs), and each operand must have them,
 * aligned, within its memory; a result must lie in scratch or an output and overlap no other
 * operand. Kernels stay within those bytes. epctx__check_written then follows the commands in order
 * and refuses a command that reads, or a graph that returns, a byte that no earlier command wrote:
 * it would show what the memory held before. A build for size clears the memory instead
 * (EPCTX__CLEARS). Loading stays quick, since commands, weights and graph names that overlap so
 * much that their sizes add up to more than their section are refused; the `work` of a graph bounds
 * the time of its run.
 *
 * epctx__execute checks the caller's sizes and alignments, then decodes one command after the other
 * (epctx__decode) and calls its run_fn from epctx__ops; it takes no memory. epctx_npu_run_with adds
 * threads, cancelling and timing: epctx__run_cut cuts a command along one of epctx__counters into
 * parts that compute each result as the whole command would, so the bits do not depend on the
 * number of threads. A weightless graph names a `maker`, an ordinary graph of the same blob, which
 * epctx_npu_make_weights runs once from the initializers to the packed weights.
 * ============================================================ */

typedef enum epctx__storage {
    EPCTX__NOWHERE = 0, /* an omitted operand */
    EPCTX__SCRATCH,
    EPCTX__IN_INPUT,
    EPCTX__OUTPUT,
    EPCTX__WEIGHT,
    EPCTX__IN_MADE /* an output of the graph that makes weights */
} epctx__storage;

typedef struct epctx__operand {
    uint32_t place, index;
    uint64_t offset; /* bytes */
} epctx__operand;

/* Operand `i` of a command. */
static epctx__operand epctx__operand_at(const uint32_t *command, uint32_t i) {
    const uint32_t *words = command + EPCTX__COMMAND_WORDS + i * EPCTX__OPERAND_WORDS;
    epctx__operand o;
    o.place = words[0];
    o.index = words[1];
    o.offset = epctx__pair(words + 2);
    return o;
}

/* A context under construction: the memory that it needs, and the state of its verification. */
typedef struct epctx__blob_loader {
    epctx_span blob;
    epctx__header h;
    uint64_t size, value_count; /* bytes of memory, inputs and outputs */
    uint64_t most_commands;     /* of a graph */
    epctx_npu_context *context;
    epctx_npu_graph *graphs;
    const epctx_memory **made;
    epctx_value *values;
    int64_t *dims;
    uint32_t *words;
    char *strings;
    uint8_t *weights; /* NULL: used in place */
    uint64_t *ends;   /* for epctx__written */
    uint32_t *next;
    uint64_t values_used;
    uint64_t command_words; /* of the graphs so far; limits repeated verification of shared words */
    epctx_error *error;
} epctx__blob_loader;

static bool epctx__fits(uint64_t at, uint64_t size, uint64_t whole) {
    return size <= whole && at <= whole - size;
}

/* Checks the header against the size of the blob, and whether this build can load it. */
static epctx_status epctx__check_header(const epctx__blob_loader *l, const epctx_npu_blob *info) {
    const epctx__header *h = &l->h;
    if (!epctx_str_is(epctx_str_of(info->sdk_version), EPCTX_NPU_SDK_VERSION))
        return EPCTX__BLOB(l->error, VERSION, "expected SDK version %s, found \"%s\": recompile",
                           EPCTX_NPU_SDK_VERSION, info->sdk_version);
    if (h->size != l->blob.size)
        return EPCTX__BLOB(l->error, CONTEXT,
                           "expected %u bytes, found %u: truncated or overwritten", h->size,
                           (uint64_t)l->blob.size);
    if (h->header_bytes != EPCTX_NPU_HEADER_SIZE || h->words > h->size / 4 ||
        h->strings != EPCTX_NPU_HEADER_SIZE + h->words * 4 ||
        !epctx__fits(h->strings, h->string_bytes, h->size) || h->weights % EPCTX_NPU_ALIGN != 0 ||
        h->weights < h->strings + h->string_bytes || h->weights > h->size ||
        h->weight_bytes != h->size - h->weights ||
        h->graphs > h->words / EPCTX__WORDS(epctx__graph_record) ||
        h->weight_count > h->words / EPCTX__WORDS(epctx__weight_record))
        return EPCTX__BLOB(l->error, CONTEXT, "a section exceeds the file");
    if (!epctx__runnable(epctx_str_of(info->architecture)))
        return EPCTX__BLOB(l->error, VERSION, "expected hardware architecture %s, found \"%s\"",
                           epctx__archs[0].name, info->architecture);
    return EPCTX_OK;
}

/* The next part of a context in the caller's memory, aligned to 8; NULL without memory. */
static void *epctx__part(epctx__blob_loader *l, uint8_t *memory, uint64_t size) {
    void *part = memory != NULL ? memory + l->size : NULL;
    l->size += (size + 7) & ~(uint64_t)7;
    return part;
}

/* Lays the parts of the context into `memory`; NULL: only adds up their size. */
static void epctx__lay_parts(epctx__blob_loader *l, uint8_t *memory) {
    const epctx__header *h = &l->h;
    /* weights are used in place unless byte order or alignment forbids it */
    const bool copies =
        epctx__big_endian() || ((uintptr_t)l->blob.data + (uintptr_t)h->weights) % 8 != 0;
    const uint64_t ends = 2 * l->most_commands;
    l->size = 0;
    l->graphs = (epctx_npu_graph *)epctx__part(l, memory, h->graphs * sizeof *l->graphs);
    l->values = (epctx_value *)epctx__part(l, memory, l->value_count * sizeof *l->values);
    l->dims =
        (int64_t *)epctx__part(l, memory, l->value_count * EPCTX_NPU_MAX_RANK * sizeof *l->dims);
    l->made = (const epctx_memory **)epctx__part(l, memory, h->graphs * sizeof *l->made);
    l->words = (uint32_t *)epctx__part(l, memory, h->words * 4);
    l->strings = (char *)epctx__part(l, memory, h->string_bytes);
    l->weights = copies ? (uint8_t *)epctx__part(l, memory, h->weight_bytes) : NULL;
    if (EPCTX__CLEARS) return;
    l->ends = (uint64_t *)epctx__part(l, memory, ends * sizeof *l->ends);
    l->next = (uint32_t *)epctx__part(l, memory, ends * sizeof *l->next);
}

/* Begins to load: checks that this build can, by the header, and adds up the memory needed. */
static epctx_status epctx__survey(epctx__blob_loader *l, epctx_span blob, epctx_error *error) {
    epctx_npu_blob info;
    const uint8_t *record;
    uint32_t g;
    epctx_error_clear(error);
    memset(l, 0, sizeof *l);
    l->blob = blob;
    l->error = error;
    EPCTX__TRY(epctx__peek(blob, &l->h, &info, error));
    EPCTX__TRY(epctx__check_header(l, &info));
    record = blob.data + EPCTX_NPU_HEADER_SIZE;
    for (g = 0; g < l->h.graphs; g++, record += sizeof(epctx__graph_record)) {
        const uint32_t commands = epctx__get32(record + offsetof(epctx__graph_record, commands));
        l->value_count += (uint64_t)epctx__get32(record + offsetof(epctx__graph_record, inputs)) +
                          epctx__get32(record + offsetof(epctx__graph_record, outputs));
        l->most_commands = commands > l->most_commands ? commands : l->most_commands;
    }
    if (l->value_count > l->h.words / EPCTX__WORDS(epctx__value_record))
        return EPCTX__BLOB(error, CONTEXT, "%u inputs and outputs exceed its I/O tables",
                           l->value_count);
    if (!EPCTX__CLEARS &&
        (l->most_commands > l->h.words / (EPCTX__COMMAND_WORDS + EPCTX__OPERAND_WORDS) ||
         l->most_commands > INT32_MAX))
        return EPCTX__BLOB(error, CONTEXT, "%u commands of a graph exceed the file",
                           l->most_commands);
    epctx__lay_parts(l, NULL);
    if (l->size > SIZE_MAX / 2) return EPCTX__BLOB(error, NOMEM, "too large for this machine");
    return EPCTX_OK;
}

EPCTX_API epctx_status epctx_npu_load_size(epctx_span blob, size_t *size, epctx_error *error) {
    epctx__blob_loader l;
    *size = 0;
    EPCTX__TRY(epctx__survey(&l, blob, error));
    *size = (size_t)l.size;
    return EPCTX_OK;
}

static epctx_status epctx__load_str(const epctx__blob_loader *l, const uint32_t *name,
                                    epctx_str *out) {
    if (!epctx__fits(name[0], name[1], l->h.string_bytes))
        return EPCTX__BLOB(l->error, CONTEXT,
                           "name at %u of %u bytes exceeds the %u bytes of strings",
                           (uint64_t)name[0], (uint64_t)name[1], l->h.string_bytes);
    out->data = l->strings + name[0];
    out->size = name[1];
    return EPCTX_OK;
}

/* Bytes of a tensor; 0: invalid type or dimension. */
static uint64_t epctx__value_bytes(const epctx_value *value) {
    uint64_t bytes = epctx__stored_size(value->elem_type);
    int32_t i;
    for (i = 0; i < value->rank; i++)
        bytes = value->dims[i] > 0 ? epctx__mul(bytes, (uint64_t)value->dims[i]) : 0;
    return bytes <= EPCTX__MAX_BYTES ? bytes : 0;
}

static epctx_status epctx__load_value(epctx__blob_loader *l, const epctx__value_record *r,
                                      epctx_value *out, int64_t *dims) {
    uint32_t i;
    EPCTX__TRY(epctx__load_str(l, r->name, &out->name));
    out->elem_type = r->elem_type <= 64 ? (int32_t)r->elem_type : 0;
    out->rank = r->rank <= EPCTX_NPU_MAX_RANK ? (int32_t)r->rank : 0;
    out->dims = dims;
    for (i = 0; i < EPCTX_NPU_MAX_RANK; i++) dims[i] = r->dims[i];
    if (r->rank > EPCTX_NPU_MAX_RANK || epctx__value_bytes(out) == 0)
        return EPCTX__BLOB(l->error, CONTEXT, "tensor '%S' has an invalid type or shape",
                           &out->name);
    return EPCTX_OK;
}

static const epctx__weight_record *epctx__weight_at(const epctx_npu_context *c, uint32_t index) {
    return (const epctx__weight_record *)(const void *)c->weight_table + index;
}

static epctx_status epctx__check_weight_table(const epctx__blob_loader *l) {
    const epctx_npu_context *c = l->context;
    uint64_t left = c->weight_size; /* no overlaps: they could make copying take very long */
    uint32_t i;
    for (i = 0; i < c->weight_count; i++) {
        const epctx__weight_record *w = epctx__weight_at(c, i);
        const uint64_t offset = epctx__pair(w->offset), size = epctx__pair(w->size);
        if (size > left || offset > c->weight_size - size || offset % EPCTX_NPU_ALIGN != 0 ||
            !(epctx__elem_ok(w->elem) || w->elem == 2) || size % w->elem != 0)
            return EPCTX__BLOB(l->error, CONTEXT,
                               "weight %u at %u of %u bytes is misaligned or "
                               "exceeds its section of %u",
                               (uint64_t)i, offset, size, c->weight_size);
        left -= size;
    }
    return EPCTX_OK;
}

/* Bytes from an operand to the end of its memory, and the alignment of that memory: the caller's
 * tensors are aligned to their elements only. False: no such memory. */
static bool epctx__room(const epctx_npu_graph *graph, const epctx__operand *o, uint64_t *room,
                        uint32_t *align) {
    const bool made = o->place == EPCTX__IN_MADE && graph->maker != NULL;
    const bool input = o->place == EPCTX__IN_INPUT;
    const epctx_graph_info *info = made ? &graph->maker->info : &graph->info;
    const epctx_value *values = input ? info->inputs : info->outputs;
    uint64_t size;
    *align = EPCTX_NPU_ALIGN;
    if (o->place == EPCTX__SCRATCH) {
        size = info->scratch_size;
    } else if (o->place == EPCTX__WEIGHT) {
        if (o->index >= graph->context->weight_count) return false;
        size = epctx__pair(epctx__weight_at(graph->context, o->index)->size);
    } else {
        if ((!made && !input && o->place != EPCTX__OUTPUT) ||
            o->index >= (input ? info->input_count : info->output_count))
            return false;
        size = epctx__value_bytes(&values[o->index]);
        if (!made) *align = epctx__stored_size(values[o->index].elem_type);
    }
    *room = o->offset <= size ? size - o->offset : 0;
    return o->offset <= size;
}

static bool epctx__overlap(const epctx__operand *a, uint64_t a_bytes, const epctx__operand *b,
                           uint64_t b_bytes) {
    return a->place == b->place && (a->place == EPCTX__SCRATCH || a->index == b->index) &&
           a->place != EPCTX__NOWHERE && a->offset < b->offset + b_bytes &&
           b->offset < a->offset + a_bytes;
}

/* Checks one operand against the bytes that its kernel may touch. */
static bool epctx__operand_ok(const epctx_npu_graph *graph, const epctx__operand *o,
                              const epctx__extent *need, bool written, bool required) {
    uint64_t room = 0; /* some compilers do not see that epctx__room sets them */
    uint32_t align = 0;
    if (o->place == EPCTX__NOWHERE) return !required;
    return epctx__room(graph, o, &room, &align) && need->bytes > 0 && need->bytes <= room &&
           need->bytes <= EPCTX__MAX_BYTES && need->align <= align &&
           o->offset % need->align == 0 &&
           (!written || o->place == EPCTX__SCRATCH || o->place == EPCTX__OUTPUT);
}

/* Adds the work of a command; saturates like epctx__mul. */
static void epctx__add_work(epctx_npu_graph *graph, uint64_t work) {
    const uint64_t top = UINT64_MAX / 4;
    graph->work = work < top - graph->work ? graph->work + work : top;
}

/* Reads and checks the parameters of a command. */
static bool epctx__needs_of(const uint32_t *words, epctx__params *params, epctx__needs *needs) {
    const epctx__op_info *op = &epctx__ops[words[0]];
    const uint32_t count = op->in_count + op->out_count;
    memset(needs, 0, sizeof *needs);
    memset(params, 0, sizeof *params);
    memcpy(params, words + EPCTX__COMMAND_WORDS + count * EPCTX__OPERAND_WORDS,
           (size_t)op->param_words * 4);
    return op->check_fn(params, needs);
}

static bool epctx__command_ok(epctx_npu_graph *graph, const uint32_t *words) {
    const epctx__op_info *op = &epctx__ops[words[0]];
    const uint32_t count = op->in_count + op->out_count;
    epctx__operand operands[EPCTX__MAX_IN + EPCTX__MAX_OUT];
    epctx__extent need[EPCTX__MAX_IN + EPCTX__MAX_OUT];
    epctx__needs needs;
    epctx__params params;
    uint32_t i, j;
    if (!epctx__needs_of(words, &params, &needs)) return false;
    epctx__add_work(graph, needs.work);
    for (i = 0; i < count; i++) {
        bool written = i >= op->in_count;
        operands[i] = epctx__operand_at(words, i);
        need[i] = written ? needs.out[i - op->in_count] : needs.in[i];
        epctx__add_work(graph, need[i].bytes);
        if (!epctx__operand_ok(graph, &operands[i], &need[i], written,
                               written || (op->required >> i & 1) != 0))
            return false;
    }
    for (i = op->in_count; i < count; i++) { /* kernels read and write disjoint memory */
        for (j = 0; j < i; j++)
            if (epctx__overlap(&operands[i], need[i].bytes, &operands[j], need[j].bytes))
                return false;
    }
    return true;
}

/* -- whether a graph reads and returns only what it has written --
 *
 * Else it would hand out what its memory held before. Bytes have numbers: those of the scratch from
 * 0 on, those of output i from 2^63 + i * 2^31 on. Between the ends of all that commands write lie
 * cells, which are written as a whole or not at all. */

/* Bytes that a command writes: `run` of them at `start`, and again `count` times every `step` bytes
 * on each level, the smallest steps first. */
typedef struct epctx__writing {
    uint64_t start, run;
    uint64_t step[EPCTX_NPU_MAX_RANK], count[EPCTX_NPU_MAX_RANK];
    uint32_t levels;
} epctx__writing;

/* What a command has written with gaps: the run so far, and again on its levels from `level` on. */
typedef struct epctx__slice {
    uint64_t start, run;
    const uint32_t *command;
    uint32_t level;
} epctx__slice;

/* How many values may be incomplete at one time: Pad and Concat complete one after the other. */
#define EPCTX__SLICES 16

typedef struct epctx__written {
    uint64_t *ends; /* in order; cell i is from ends[i] to before ends[i + 1] */
    uint32_t *next; /* the first cell from i on that is not written, or one before it */
    uint32_t count, piece_count;
    epctx__slice pieces[EPCTX__SLICES]; /* the oldest first */
} epctx__written;

static uint64_t epctx__number_of(uint32_t place, uint32_t index, uint64_t offset) {
    return place == EPCTX__OUTPUT ? (UINT64_C(1) << 63) + ((uint64_t)index << 31) + offset : offset;
}

static void epctx__add_level(epctx__writing *w, uint64_t step, uint64_t count) {
    uint32_t i;
    if (count < 2) return;
    for (i = w->levels++; i > 0 && w->step[i - 1] > step; i--) {
        w->step[i] = w->step[i - 1];
        w->count[i] = w->count[i - 1];
    }
    w->step[i] = step;
    w->count[i] = count;
}

/* Joins levels that continue one another. */
static void epctx__join_levels(epctx__writing *w) {
    const uint32_t levels = w->levels;
    uint32_t i;
    w->levels = 0;
    for (i = 0; i < levels; i++) {
        const uint64_t step = w->step[i], count = w->count[i];
        const uint32_t last = w->levels - 1;
        if (w->levels == 0 && step <= w->run)
            w->run += step * (count - 1);
        else if (w->levels > 0 && step == w->step[last] * w->count[last])
            w->count[last] *= count;
        else
            epctx__add_level(w, step, count);
    }
}

/* What a verified command writes. All but Move and Pool write every byte that they may touch. */
static void epctx__writing_of(const uint32_t *command, epctx__writing *w) {
    const epctx__operand out = epctx__operand_at(command, epctx__ops[command[0]].in_count);
    epctx__needs needs;
    epctx__params params;
    const epctx__move *move = &params.move;
    const epctx__pool *pool = &params.pool;
    uint32_t i;
    (void)epctx__needs_of(command, &params, &needs);
    memset(w, 0, sizeof *w);
    w->start = epctx__number_of(out.place, out.index, out.offset);
    w->run = needs.out[0].bytes;
    if (command[0] == EPCTX__OP_POOL) {
        w->run = (uint64_t)pool->channels * 4;
        epctx__add_level(w, (uint64_t)pool->row * 4,
                         (uint64_t)pool->batch * pool->window.out_h * pool->window.out_w);
    } else if (command[0] == EPCTX__OP_MOVE) {
        w->run = move->elem;
        w->start += (uint64_t)move->to_start * move->elem;
        for (i = 0; i < move->rank; i++) {
            const uint64_t size = (uint64_t)(move->to[i] < 0 ? -(int64_t)move->to[i] : move->to[i]);
            if (move->to[i] < 0) w->start -= size * move->elem * (move->dims[i] - 1);
            epctx__add_level(w, size * move->elem, move->dims[i]);
        }
    }
    epctx__join_levels(w);
}

/* The number behind the last byte that it writes. */
static uint64_t epctx__end_of(const epctx__writing *w) {
    uint64_t end = w->start + w->run;
    uint32_t i;
    for (i = 0; i < w->levels; i++) end += w->step[i] * (w->count[i] - 1);
    return end;
}

/* The first cell that ends behind `number`; the last one, `count` - 1, has no end. */
static uint32_t epctx__cell_of(const epctx__written *d, uint64_t number) {
    uint32_t low = 0, high = d->count - 1;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (d->ends[middle + 1] > number)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* The first cell from `cell` on that is not written: the last one never is. */
static uint32_t epctx__not_written(const epctx__written *d, uint32_t cell) {
    while (d->next[cell] != cell) {
        d->next[cell] = d->next[d->next[cell]];
        cell = d->next[cell];
    }
    return cell;
}

/* The first byte from `start` to before `end` that is not written; `end`: all are. */
static uint64_t epctx__hole(const epctx__written *d, uint64_t start, uint64_t end) {
    uint32_t cell;
    uint64_t at;
    if (d->count == 0 || start < d->ends[0]) return start;
    cell = epctx__not_written(d, epctx__cell_of(d, start));
    at = d->ends[cell] > start ? d->ends[cell] : start;
    return at < end ? at : end;
}

/* Marks the cells from `start` to `end` as written; both numbers are among d->ends. */
static void epctx__fill_cells(epctx__written *d, uint64_t start, uint64_t end) {
    uint32_t cell = epctx__not_written(d, epctx__cell_of(d, start));
    for (; cell + 1 < d->count && d->ends[cell + 1] <= end; cell = epctx__not_written(d, cell))
        d->next[cell] = cell + 1;
}

/* Removes the piece that continues `w` from its level `level` on, and joins it. */
static bool epctx__take_piece(epctx__written *d, epctx__writing *w, uint32_t level) {
    const uint64_t end = w->start + w->run;
    epctx__writing other;
    uint32_t i, j;
    for (i = 0; i < d->piece_count; i++) {
        const epctx__slice p = d->pieces[i];
        if (p.start > end || w->start > p.start + p.run) continue;
        epctx__writing_of(p.command, &other);
        for (j = 0; level + j < w->levels && p.level + j < other.levels &&
                    w->step[level + j] == other.step[p.level + j] &&
                    w->count[level + j] == other.count[p.level + j];)
            j++;
        if (level + j < w->levels || p.level + j < other.levels) continue;
        w->start = p.start < w->start ? p.start : w->start;
        w->run = (p.start + p.run > end ? p.start + p.run : end) - w->start;
        d->piece_count--;
        memmove(&d->pieces[i], &d->pieces[i + 1], (d->piece_count - i) * sizeof p);
        return true;
    }
    return false;
}

/* Notes what a command writes. */
static void epctx__write_cells(epctx__written *d, const uint32_t *command) {
    epctx__writing w;
    epctx__slice *last = &d->pieces[EPCTX__SLICES - 1];
    uint32_t level = 0;
    epctx__writing_of(command, &w);
    do { /* pieces of a row make it whole, then rows a plane */
        for (; level < w.levels && w.step[level] <= w.run; level++)
            w.run += w.step[level] * (w.count[level] - 1);
    } while (level < w.levels && epctx__take_piece(d, &w, level));
    if (level == w.levels) {
        epctx__fill_cells(d, w.start, w.start + w.run);
        return;
    }
    if (d->piece_count == EPCTX__SLICES)
        memmove(d->pieces, d->pieces + 1, sizeof d->pieces - sizeof *last);
    else
        last = &d->pieces[d->piece_count++];
    last->start = w.start;
    last->run = w.run;
    last->command = command;
    last->level = level;
}

static void epctx__sift_end(uint64_t *heap, uint32_t count, uint32_t at) {
    for (;;) {
        uint32_t child = 2 * at + 1;
        const uint64_t end = heap[at];
        if (child >= count) return;
        child += child + 1 < count && heap[child + 1] > heap[child];
        if (heap[child] <= end) return;
        heap[at] = heap[child];
        heap[child] = end;
        at = child;
    }
}

/* Makes the cells, none of them written. */
static void epctx__make_cells(epctx__written *d, const epctx_npu_graph *graph) {
    const uint32_t *command = graph->commands;
    epctx__writing w;
    uint32_t i;
    for (i = 0; i < graph->command_count; i++, command += command[1]) {
        epctx__writing_of(command, &w);
        d->ends[d->count++] = w.start;
        d->ends[d->count++] = epctx__end_of(&w);
    }
    for (i = d->count / 2; i > 0; i--) epctx__sift_end(d->ends, d->count, i - 1);
    for (i = d->count; i > 1; i--) {
        const uint64_t end = d->ends[0];
        d->ends[0] = d->ends[i - 1];
        d->ends[i - 1] = end;
        epctx__sift_end(d->ends, i - 1, 0);
    }
    for (i = 0; i < d->count; i++) d->next[i] = i;
}

static epctx_status epctx__check_reads(const epctx__blob_loader *l, const epctx_npu_graph *graph,
                                       const epctx__written *d, uint32_t index,
                                       const uint32_t *command) {
    const epctx__op_info *op = &epctx__ops[command[0]];
    epctx__needs needs;
    epctx__params params;
    epctx_str name;
    uint32_t i;
    (void)epctx__needs_of(command, &params, &needs);
    for (i = 0; i < op->in_count; i++) {
        const epctx__operand o = epctx__operand_at(command, i);
        const uint64_t start = epctx__number_of(o.place, o.index, o.offset);
        const uint64_t hole = epctx__hole(d, start, start + needs.in[i].bytes) - start;
        if ((o.place != EPCTX__SCRATCH && o.place != EPCTX__OUTPUT) || hole == needs.in[i].bytes)
            continue;
        EPCTX__TRY(epctx__load_str(l, command + 2, &name));
        return EPCTX__BLOB(
            l->error, CONTEXT,
            "command %u of graph '%S' (%s, node '%S'), operand %u: expected %u bytes "
            "that commands before it write, found %u",
            (uint64_t)index, &graph->info.name, op->name, &name, (uint64_t)i, needs.in[i].bytes,
            hole);
    }
    return EPCTX_OK;
}

/* Every operand is written before it is read, and every output is written. */
static epctx_status epctx__check_written(const epctx__blob_loader *l,
                                         const epctx_npu_graph *graph) {
    const uint32_t *command = graph->commands;
    epctx__written d;
    uint32_t i;
    memset(&d, 0, sizeof d);
    d.ends = l->ends;
    d.next = l->next;
    epctx__make_cells(&d, graph);
    for (i = 0; i < graph->command_count; i++, command += command[1]) {
        EPCTX__TRY(epctx__check_reads(l, graph, &d, i, command));
        epctx__write_cells(&d, command);
    }
    for (i = 0; i < graph->info.output_count; i++) {
        const epctx_value *value = &graph->info.outputs[i];
        const uint64_t start = epctx__number_of(EPCTX__OUTPUT, i, 0);
        const uint64_t bytes = epctx__value_bytes(value);
        const uint64_t hole = epctx__hole(&d, start, start + bytes) - start;
        if (hole != bytes)
            return EPCTX__BLOB(l->error, CONTEXT,
                               "output '%S' of graph '%S': expected %u bytes that commands write, "
                               "found %u",
                               &value->name, &graph->info.name, bytes, hole);
    }
    return EPCTX_OK;
}

static epctx_status epctx__load_commands(epctx__blob_loader *l, epctx_npu_graph *graph,
                                         uint64_t first, uint64_t size) {
    uint64_t at = 0;
    uint32_t i;
    if (!epctx__fits(first, size, l->h.words) || size > l->h.words - l->command_words ||
        (!EPCTX__CLEARS && graph->command_count > l->most_commands))
        return EPCTX__BLOB(l->error, CONTEXT, "the commands of graph '%S' exceed the file",
                           &graph->info.name);
    l->command_words += size;
    graph->commands = l->words + first;
    graph->command_words = (uint32_t)size;
    for (i = 0; i < graph->command_count; i++) {
        const uint32_t *w = graph->commands + at;
        const epctx__op_info *op;
        epctx_str name;
        if (size - at < EPCTX__COMMAND_WORDS || w[0] >= EPCTX__OP_COUNT || w[1] > size - at)
            return EPCTX__BLOB(l->error, CONTEXT, "command %u of graph '%S' is invalid",
                               (uint64_t)i, &graph->info.name);
        op = &epctx__ops[w[0]];
        EPCTX__TRY(epctx__load_str(l, w + 2, &name));
        if (op->check_fn == NULL)
            return EPCTX__BLOB(l->error, UNSUPPORTED,
                               "node '%S' of graph '%S' needs kernel %s, which "
                               "EPCTX_NPU_SELECT excludes",
                               &name, &graph->info.name, op->name);
        if (w[1] != epctx__command_size(op) || !epctx__command_ok(graph, w))
            return EPCTX__BLOB(l->error, CONTEXT,
                               "command %u of graph '%S' (%s, node '%S') has "
                               "invalid operands or parameters",
                               (uint64_t)i, &graph->info.name, op->name, &name);
        at += w[1];
    }
    if (at != size)
        return EPCTX__BLOB(l->error, CONTEXT, "graph '%S': expected %u words of commands, found %u",
                           &graph->info.name, at, size);
    return EPCTX__CLEARS ? EPCTX_OK : epctx__check_written(l, graph);
}

static const epctx__graph_record *epctx__record_of(const epctx__blob_loader *l, uint32_t index) {
    return (const epctx__graph_record *)(const void *)l->words + index;
}

static epctx_status epctx__load_one(epctx__blob_loader *l, uint32_t index) {
    const epctx__graph_record *r = epctx__record_of(l, index);
    epctx_npu_graph *graph = &l->graphs[index];
    const uint64_t values = (uint64_t)r->inputs + r->outputs, scratch = epctx__pair(r->scratch);
    const epctx__value_record *from;
    epctx_value *first = l->values + l->values_used;
    uint64_t i;
    EPCTX__TRY(epctx__load_str(l, r->name, &graph->info.name));
    if (scratch > SIZE_MAX / 2 || values > l->value_count - l->values_used ||
        !epctx__fits(r->io_at, values * EPCTX__WORDS(*from), l->h.words))
        return EPCTX__BLOB(l->error, CONTEXT,
                           "inputs, outputs or scratch of graph '%S' are too large",
                           &graph->info.name);
    from = (const epctx__value_record *)(const void *)(l->words + r->io_at);
    for (i = 0; i < values; i++)
        EPCTX__TRY(epctx__load_value(l, &from[i], &first[i],
                                     l->dims + (l->values_used + i) * EPCTX_NPU_MAX_RANK));
    l->values_used += values;
    graph->hash = epctx__pair(r->hash);
    graph->context = l->context;
    graph->info.inputs = first;
    graph->info.input_count = r->inputs;
    graph->info.outputs = first + r->inputs;
    graph->info.output_count = r->outputs;
    graph->info.scratch_size = (size_t)scratch;
    graph->command_count = r->commands;
    if (r->maker != 0) {
        if (r->makes != 0 || r->maker > l->context->total_count ||
            r->maker <= l->context->graph_count)
            return EPCTX__BLOB(l->error, CONTEXT,
                               "graph '%S' gets its weights from graph %u, which makes none",
                               &graph->info.name, (uint64_t)r->maker);
        graph->maker = &l->graphs[r->maker - 1];
        graph->made = &l->made[index];
    }
    return epctx__load_commands(l, graph, r->commands_at, r->command_words);
}

/* The order of graphs in a blob, by name: negative if a comes before b. Shorter names come first,
 * so that partition 10 of a model follows partition 9. */
static int epctx__name_order(epctx_str a, epctx_str b) {
    if (a.size != b.size) return a.size < b.size ? -1 : 1;
    return a.size == 0 ? 0 : memcmp(a.data, b.data, a.size);
}

/* Graphs that make weights follow the others but are loaded first. */
static epctx_status epctx__load_graphs(epctx__blob_loader *l) {
    const uint32_t total = l->h.graphs;
    uint64_t bytes = 0;
    uint32_t ordinary = 0, i;
    int order;
    for (i = 0; i < total; i++) {
        if (epctx__record_of(l, i)->makes != 0) continue;
        if (i != ordinary++)
            return EPCTX__BLOB(l->error, CONTEXT, "expected graphs that make weights last");
    }
    l->context->graph_count = ordinary;
    l->context->total_count = total;
    for (i = ordinary; i < total; i++) EPCTX__TRY(epctx__load_one(l, i));
    for (i = 0; i < ordinary; i++) {
        const epctx_str *name = &l->graphs[i].info.name;
        EPCTX__TRY(epctx__load_one(l, i));
        if (i == 0) continue;
        bytes += name->size; /* overlapping names could make comparing take very long */
        if (bytes > l->h.string_bytes) return EPCTX__BLOB(l->error, CONTEXT, "graph names overlap");
        order = epctx__name_order(l->graphs[i - 1].info.name, *name);
        if (order == 0) return EPCTX__BLOB(l->error, CONTEXT, "graph '%S' occurs twice", name);
        if (order > 0) return EPCTX__BLOB(l->error, CONTEXT, "graph '%S' is out of order", name);
    }
    return EPCTX_OK;
}

/* Checksum of everything except the weights: header (with this field 0), words, strings. */
static uint64_t epctx__meta_sum(const epctx__header *header, const void *words,
                                const void *strings) {
    epctx__header h = *header;
    uint64_t sum;
    h.meta_sum = 0;
    epctx__header_to_host(&h);
    sum = epctx_hash(&h, sizeof h, 0);
    sum = epctx_hash(words, (size_t)header->words * 4, sum);
    return epctx_hash(strings, (size_t)header->string_bytes, sum);
}

static void epctx__copy_weights(epctx_npu_context *context, uint8_t *to) {
    uint32_t i;
    memcpy(to, context->weights, (size_t)context->weight_size);
    context->weights = to;
    if (!epctx__big_endian()) return;
    for (i = 0; i < context->weight_count; i++) {
        const epctx__weight_record *w = epctx__weight_at(context, i);
        epctx__to_host(to + epctx__pair(w->offset), epctx__pair(w->size), w->elem);
    }
}

/* Copies first, then verifies only the copy. */
static epctx_status epctx__load_copy(epctx__blob_loader *l, epctx_npu_context *context,
                                     uint8_t *memory) {
    const epctx__header *h = &l->h;
    const uint8_t *data = l->blob.data;
    uint64_t sum;
    epctx__lay_parts(l, memory);
    memset(memory, 0, (size_t)((uint8_t *)l->words - memory));
    memcpy(l->words, data + EPCTX_NPU_HEADER_SIZE, (size_t)h->words * 4);
    memcpy(l->strings, data + h->strings, (size_t)h->string_bytes);
    sum = epctx__meta_sum(h, l->words, l->strings);
    if (sum != h->meta_sum)
        return EPCTX__BLOB(l->error, CONTEXT, "expected checksum %x, found %x: damaged",
                           h->meta_sum, sum);
    epctx__to_host(l->words, h->words * 4, 4);
    l->context = context;
    context->graphs = l->graphs;
    context->blob = l->blob;
    context->strings = l->strings;
    context->weights = data + h->weights;
    context->weight_count = h->weight_count;
    context->weight_size = h->weight_bytes;
    context->weight_offset = h->weights;
    context->weight_checksum = h->weight_sum;
    context->weight_table = /* it ends the words */
        l->words + h->words - h->weight_count * EPCTX__WORDS(epctx__weight_record);
    EPCTX__TRY(epctx__check_weight_table(l));
    EPCTX__TRY(epctx__load_graphs(l));
    if (l->weights != NULL) epctx__copy_weights(context, l->weights);
    return EPCTX_OK;
}

EPCTX_API epctx_status epctx_npu_load(epctx_npu_context *context, epctx_span blob, void *memory,
                                      size_t memory_size, epctx_error *error) {
    epctx__blob_loader l;
    epctx_status status;
    memset(context, 0, sizeof *context);
    EPCTX__TRY(epctx__survey(&l, blob, error));
    if (memory == NULL || (uintptr_t)memory % 8 != 0)
        return epctx_fail(error, EPCTX_ERR_ARG, "context memory must be aligned to 8 bytes");
    if (memory_size < l.size)
        return EPCTX__BLOB(error, NOMEM, "expected %u bytes of memory, found %u", l.size,
                           (uint64_t)memory_size);
    status = epctx__load_copy(&l, context, (uint8_t *)memory);
    if (status != EPCTX_OK) memset(context, 0, sizeof *context);
    return status;
}

EPCTX_API epctx_status epctx_npu_check_weights(const epctx_npu_context *context,
                                               epctx_error *error) {
    uint64_t sum;
    epctx_error_clear(error);
    sum = epctx_hash(context->blob.data + context->weight_offset, (size_t)context->weight_size, 0);
    if (sum != context->weight_checksum)
        return EPCTX__BLOB(error, CONTEXT, "expected weight checksum %x, found %x: damaged",
                           context->weight_checksum, sum);
    return EPCTX_OK;
}

EPCTX_API bool epctx_npu_weight_at(const epctx_npu_context *context, uint32_t index,
                                   epctx_span *bytes, uint32_t *elem) {
    const epctx__weight_record *w = epctx__weight_at(context, index);
    if (index >= context->weight_count) return false;
    bytes->data = context->blob.data + context->weight_offset + epctx__pair(w->offset);
    bytes->size = (size_t)epctx__pair(w->size);
    *elem = w->elem;
    return true;
}

static epctx_str epctx__graph_name(const void *graphs, size_t index) {
    return ((const epctx_npu_graph *)graphs)[index].info.name;
}

EPCTX_API epctx_status epctx_npu_find(const epctx_npu_context *context, epctx_str name,
                                      uint64_t hash, const epctx_npu_graph **graph,
                                      epctx_error *error) {
    size_t first = 0, end = context->graph_count;
    epctx_error_clear(error);
    *graph = NULL;
    while (first < end) {
        const size_t at = first + (end - first) / 2;
        const epctx_npu_graph *g = &context->graphs[at];
        const int order = epctx__name_order(g->info.name, name);
        if (order != 0) {
            first = order < 0 ? at + 1 : first;
            end = order < 0 ? end : at;
            continue;
        }
        if (hash != 0 && hash != g->hash)
            return EPCTX__BLOB(error, VERSION,
                               "graph '%S': expected hash %x, found %x: compiled "
                               "from another version of the model",
                               &name, hash, g->hash);
        *graph = g;
        return EPCTX_OK;
    }
    return epctx_fail_no_graph(error, name, context->graphs, context->graph_count,
                               epctx__graph_name);
}

/* -- running -- */

static epctx_status epctx__check_memory(const epctx_value *value, const char *what,
                                        const void *data, size_t size, epctx_error *error) {
    const uint64_t bytes = epctx__value_bytes(value);
    if (size != bytes)
        return epctx_fail(error, EPCTX_ERR_ARG, "%s '%S': expected %u bytes, found %u", what,
                          &value->name, bytes, (uint64_t)size);
    if (data == NULL || (uintptr_t)data % epctx__stored_size(value->elem_type) != 0)
        return epctx_fail(error, EPCTX_ERR_ARG,
                          "%s '%S': memory must be aligned to the element size", what,
                          &value->name);
    return EPCTX_OK;
}

static uint64_t epctx__aligned(uint64_t size) {
    return (size + EPCTX_NPU_ALIGN - 1) & ~(uint64_t)(EPCTX_NPU_ALIGN - 1);
}

/* The first offset of `memory` from `at` on whose address is aligned. */
static uint64_t epctx__aligned_in(const void *memory, uint64_t at) {
    const uint64_t past = ((uintptr_t)memory + at) % EPCTX_NPU_ALIGN;
    return past != 0 ? at + EPCTX_NPU_ALIGN - past : at;
}

/* A run under way. */
typedef struct epctx__call {
    const epctx_npu_graph *graph;
    const epctx_span *inputs;
    const epctx_memory *outputs;
    uint8_t *scratch;
    size_t scratch_size;
    epctx__level fast;
    const epctx_npu_run_opts *opts;
    /* runs a command; a linker drops the one that a program does not use */
    epctx_status (*command_fn)(const struct epctx__call *call, const uint32_t *words,
                               epctx_error *error);
} epctx__call;

static epctx_status epctx__check_call(const epctx__call *call, epctx_error *error) {
    const epctx_npu_graph *graph = call->graph;
    const epctx_graph_info *info = &graph->info;
    const epctx_span *inputs = call->inputs;
    const epctx_memory *outputs = call->outputs;
    size_t i;
    if (graph->maker != NULL && *graph->made == NULL)
        return epctx_fail(error, EPCTX_ERR_ARG,
                          "graph '%S' is weightless: pass its weights before running", &info->name);
    for (i = 0; i < info->input_count; i++)
        EPCTX__TRY(
            epctx__check_memory(&info->inputs[i], "input", inputs[i].data, inputs[i].size, error));
    for (i = 0; i < info->output_count; i++)
        EPCTX__TRY(epctx__check_memory(&info->outputs[i], "output", outputs[i].data,
                                       outputs[i].size, error));
    if (call->scratch_size < info->scratch_size)
        return epctx_fail(error, EPCTX_ERR_ARG,
                          "graph '%S': expected %u bytes of scratch, found %u", &info->name,
                          (uint64_t)info->scratch_size, (uint64_t)call->scratch_size);
    if (info->scratch_size > 0 &&
        (call->scratch == NULL || (uintptr_t)call->scratch % EPCTX_NPU_ALIGN != 0))
        return epctx_fail(error, EPCTX_ERR_ARG, "graph '%S': scratch must be aligned to %u bytes",
                          &info->name, (uint64_t)EPCTX_NPU_ALIGN);
    return EPCTX_OK;
}

static void epctx__clear(const epctx__call *call) {
    const epctx_graph_info *info = &call->graph->info;
    size_t i;
    if (info->scratch_size > 0) memset(call->scratch, 0, info->scratch_size);
    for (i = 0; i < info->output_count; i++)
        memset(call->outputs[i].data, 0, call->outputs[i].size);
}

/* Address of an input operand. Loading has verified the offsets. */
static const void *epctx__source(const epctx__call *call, const epctx__operand *o) {
    const epctx_npu_context *c = call->graph->context;
    switch (o->place) {
    case EPCTX__SCRATCH: return call->scratch + o->offset;
    case EPCTX__IN_INPUT: return call->inputs[o->index].data + o->offset;
    case EPCTX__OUTPUT: return (const uint8_t *)call->outputs[o->index].data + o->offset;
    case EPCTX__WEIGHT:
        return c->weights + epctx__pair(epctx__weight_at(c, o->index)->offset) + o->offset;
    case EPCTX__IN_MADE: return (const uint8_t *)(*call->graph->made)[o->index].data + o->offset;
    default: return NULL;
    }
}

/* The operands and parameters of a command. */
static void epctx__decode(const epctx__call *call, const uint32_t *words, epctx__params *params,
                          epctx__args *args) {
    const epctx__op_info *op = &epctx__ops[words[0]];
    const uint32_t count = op->in_count + op->out_count;
    uint32_t i;
    memset(args, 0, sizeof *args);
    for (i = 0; i < count; i++) {
        const epctx__operand o = epctx__operand_at(words, i);
        if (i < op->in_count)
            args->in[i] = epctx__source(call, &o);
        else if (o.place == EPCTX__SCRATCH)
            args->out[i - op->in_count] = call->scratch + o.offset;
        else
            args->out[i - op->in_count] = (uint8_t *)call->outputs[o.index].data + o.offset;
    }
    memcpy(params, words + EPCTX__COMMAND_WORDS + count * EPCTX__OPERAND_WORDS,
           (size_t)op->param_words * 4);
    args->fast = call->fast;
}

static epctx_status epctx__run_whole(const epctx__call *call, const uint32_t *words,
                                     epctx_error *error) {
    epctx__params params;
    epctx__args args;
    epctx__decode(call, words, &params, &args);
    args.error = error;
    return epctx__ops[words[0]].run_fn(&params, &args);
}

static epctx_status epctx__execute(const epctx__call *call, epctx_error *error) {
    const epctx_npu_graph *graph = call->graph;
    const uint32_t *words = graph->commands;
    epctx_status status;
    uint32_t i;
    epctx_error_clear(error);
    status = epctx__check_call(call, error);
    if (EPCTX__CLEARS && status == EPCTX_OK) epctx__clear(call);
    for (i = 0; status == EPCTX_OK && i < graph->command_count; i++) {
        status = call->command_fn(call, words, error);
        if (status != EPCTX_OK) {
            epctx_str name;
            name.data = graph->context->strings + words[2];
            name.size = words[3];
            epctx_blame(error, NULL, &name, NULL);
        }
        words += words[1];
    }
    return status;
}

EPCTX_API epctx_status epctx_npu_run(const epctx_npu_graph *graph, const epctx_span *inputs,
                                     const epctx_memory *outputs, void *scratch,
                                     size_t scratch_size, epctx_error *error) {
    const epctx__call call = {
        graph, inputs,          outputs, (uint8_t *)scratch, scratch_size, epctx__level_here(),
        NULL,  epctx__run_whole};
    return epctx__execute(&call, error);
}

/* What tools and threads need to know of a command; loading has verified it. */
static epctx_npu_command epctx__describe(const epctx_npu_graph *graph, const uint32_t *words,
                                         epctx__needs *needs) {
    const epctx__op_info *op = &epctx__ops[words[0]];
    epctx_npu_command command;
    epctx__params params;
    uint32_t i;
    (void)epctx__needs_of(words, &params, needs);
    memset(&command, 0, sizeof command);
    command.op = op->name;
    command.name.data = graph->context->strings + words[2];
    command.name.size = words[3];
    command.products = needs->work;
    command.temporary = op->out_count > 1 ? needs->out[1].bytes : 0;
    for (i = 0; i <= op->in_count; i++) {
        const epctx__operand o = epctx__operand_at(words, i);
        const uint64_t bytes = i < op->in_count ? needs->in[i].bytes : needs->out[0].bytes;
        epctx_npu_range *range = i < op->in_count ? &command.reads[i] : &command.result;
        if (o.place != EPCTX__NOWHERE) command.bytes += bytes;
        if (o.place != EPCTX__SCRATCH) continue;
        range->offset = o.offset;
        range->bytes = bytes;
    }
    command.elements = needs->out[0].bytes / needs->out[0].align;
    return command;
}

/* -- running in parts: on several threads, and cancelled in between -- */

#define EPCTX__THREADS 64

/* What each opcode can be cut along. The first counter above 1 splits its command. */
static const epctx__counter epctx__counters[EPCTX__OP_COUNT][EPCTX__COUNTERS] = {
#define EPCTX__OP_CUT(id, text, ins, outs, required, type, name, cut, unit, ...) \
    {EPCTX__BY_##cut(type, unit)},
    EPCTX_NPU_OP_LIST(EPCTX__OP_CUT)
#undef EPCTX__OP_CUT
};

/* A command in parts. */
typedef struct epctx__cut {
    uint32_t opcode, unit, whole;    /* of the counter */
    uint32_t parts, first;           /* in all, and the first of this round */
    size_t counter, window;          /* offsets in the parameters; window 0: none */
    uint64_t in[EPCTX__MAX_IN], out; /* bytes from unit to unit */
    uint64_t in_row;                 /* bytes of a row of the image */
    uint64_t temporary;              /* bytes from thread to thread, in `more` from the second on */
    uint8_t *more;
    bool failed[EPCTX__THREADS]; /* of a round */
    epctx__params params;        /* of the whole command */
    epctx__args args;
} epctx__cut;

static uint32_t *epctx__word_at(epctx__params *p, size_t offset) {
    return (uint32_t *)(void *)((uint8_t *)p + offset);
}

/* Chooses the counter of c->params. */
static bool epctx__cut_by(epctx__cut *c) {
    size_t i, j;
    for (i = 0; i < EPCTX__COUNTERS; i++) {
        const epctx__counter *by = &epctx__counters[c->opcode][i];
        for (j = 0; j < by->words; j++) {
            c->counter = by->offset + 4 * j;
            c->whole = *epctx__word_at(&c->params, c->counter);
            c->unit = by->unit;
            c->window = by->window != 0 ? by->offset - (size_t)by->window : 0;
            if (c->whole > 1) return c->whole / 2 >= c->unit;
        }
    }
    return false;
}

/* Bytes from unit to unit follow from what the check demands for one and for two of them. False:
 * the command cannot be cut. */
static bool epctx__cut_of(epctx__cut *c, const epctx__needs *needs) {
    const epctx__op_info *op = &epctx__ops[c->opcode];
    epctx__params params = c->params;
    epctx__needs two[2];
    uint32_t i;
    if (!epctx__cut_by(c)) return false;
    if (c->window != 0) { /* the last row of windows begins in the image */
        epctx__window *w = (epctx__window *)(void *)epctx__word_at(&params, c->window);
        if ((uint64_t)(c->whole - 1) * w->stride_h >= (uint64_t)w->in_h + w->top) return false;
        c->in_row = needs->in[0].bytes / w->in_h;
        w->top = 0; /* parts inside of the image must not need more workspace */
    }
    memset(two, 0, sizeof two);
    for (i = 0; i < 2; i++) {
        *epctx__word_at(&params, c->counter) = (i + 1) * c->unit;
        if (!op->check_fn(&params, &two[i]) || two[i].out[1].bytes > needs->out[1].bytes)
            return false;
    }
    for (i = 0; i < op->in_count; i++) c->in[i] = two[1].in[i].bytes - two[0].in[i].bytes;
    c->out = two[1].out[0].bytes - two[0].out[0].bytes;
    c->temporary = epctx__aligned(needs->out[1].bytes);
    return c->out > 0;
}

/* Lets windows begin at their row `start`. */
static const uint8_t *epctx__cut_rows(epctx__window *w, uint64_t start, uint64_t row,
                                      const uint8_t *x) {
    const uint64_t reach =
        (uint64_t)(w->out_h - 1) * w->stride_h + (uint64_t)(w->kernel_h - 1) * w->dilation_h + 1;
    const uint64_t at = start * w->stride_h;
    const uint32_t skipped = at > w->top ? (uint32_t)(at - w->top) : 0;
    w->top = at > w->top ? 0 : w->top - (uint32_t)at;
    w->in_h -= skipped;
    if (reach > w->top && reach - w->top < w->in_h) w->in_h = (uint32_t)(reach - w->top);
    return x + skipped * row;
}

/* Runs part `index` of a round. */
static epctx_status epctx__one_part(const epctx__cut *c, uint32_t index, epctx_error *error) {
    const uint64_t units = (c->whole + (uint64_t)c->unit - 1) / c->unit, part = c->first + index;
    const uint64_t start = part * units / c->parts, end = (part + 1) * units / c->parts;
    const uint64_t left = c->whole - start * c->unit, most = (end - start) * c->unit;
    epctx__params params = c->params;
    epctx__args args = c->args;
    uint32_t i;
    *epctx__word_at(&params, c->counter) = (uint32_t)(most < left ? most : left);
    if (c->opcode == EPCTX__OP_MOVE) { /* strides may be negative */
        const size_t axis = (c->counter - offsetof(epctx__params, move.dims)) / 4;
        params.move.from_start += (uint32_t)start * (uint32_t)params.move.from[axis];
        params.move.to_start += (uint32_t)start * (uint32_t)params.move.to[axis];
    } else {
        for (i = 0; i < EPCTX__MAX_IN; i++)
            args.in[i] = args.in[i] != NULL ? (const uint8_t *)args.in[i] + start * c->in[i] : NULL;
        args.out[0] = (uint8_t *)args.out[0] + start * c->out;
    }
    if (c->window != 0)
        args.in[0] = epctx__cut_rows((epctx__window *)(void *)epctx__word_at(&params, c->window),
                                     start * c->unit, c->in_row, (const uint8_t *)args.in[0]);
    if (index > 0 && args.out[1] != NULL) args.out[1] = c->more + (index - 1) * c->temporary;
    args.error = error;
    return epctx__ops[c->opcode].run_fn(&params, &args);
}

/* May run on any thread, so it leaves the error message to epctx__round_status. */
static void epctx__run_part(void *work, uint32_t index) {
    epctx__cut *c = (epctx__cut *)work;
    c->failed[index] = epctx__one_part(c, index, NULL) != EPCTX_OK;
}

/* The first part of a round that failed runs again, for its message. */
static epctx_status epctx__round_status(const epctx__cut *c, uint64_t count, epctx_error *error) {
    uint32_t i;
    for (i = 0; i < count; i++)
        if (c->failed[i]) return epctx__one_part(c, i, error);
    return EPCTX_OK;
}

/* Runs a command of this `work` in rounds of as many parts as there are threads, or all of it. */
static epctx_status epctx__run_cut(const epctx__call *call, const uint32_t *words,
                                   const epctx__needs *needs, uint64_t work, epctx_error *error) {
    const epctx_npu_run_opts *opts = call->opts;
    const bool cancels = opts->hooks != NULL && opts->hooks->cancel_fn != NULL;
    const uint64_t planned = epctx__aligned(call->graph->info.scratch_size);
    const uint64_t least = opts->part_work > 0 ? opts->part_work : 1 << 17;
    uint64_t threads = opts->parallel_fn != NULL ? opts->threads : 1, parts, most;
    epctx__cut c;
    threads = threads < 1 ? 1 : threads < EPCTX__THREADS ? threads : EPCTX__THREADS;
    parts = work / least < threads ? work / least : threads;
    if (cancels && work / least / 1024 >= parts)
        parts = (work / least / 1024 / threads + 1) * threads;
    memset(&c, 0, sizeof c);
    c.opcode = words[0];
    epctx__decode(call, words, &c.params, &c.args);
    if (parts < 2 || !epctx__cut_of(&c, needs)) {
        EPCTX__TRY(epctx_cancelled(opts->hooks, error));
        c.args.error = error;
        return epctx__ops[c.opcode].run_fn(&c.params, &c.args);
    }
    if (c.temporary > 0) {
        most = call->scratch_size > planned ? (call->scratch_size - planned) / c.temporary + 1 : 1;
        threads = threads < most ? threads : most;
        c.more = call->scratch + planned;
    }
    most = (c.whole + (uint64_t)c.unit - 1) / c.unit;
    c.parts = (uint32_t)(parts < most ? parts : most);
    for (; c.first < c.parts; c.first += (uint32_t)threads) {
        const uint64_t count = c.parts - c.first < threads ? c.parts - c.first : threads;
        EPCTX__TRY(epctx_cancelled(opts->hooks, error));
        if (count > 1)
            opts->parallel_fn(opts->user, (uint32_t)count, epctx__run_part, &c);
        else
            epctx__run_part(&c, 0);
        EPCTX__TRY(epctx__round_status(&c, count, error));
    }
    return EPCTX_OK;
}

static epctx_status epctx__run_timed(const epctx__call *call, const uint32_t *words,
                                     epctx_error *error) {
    const epctx_npu_run_opts *opts = call->opts;
    const bool timed = opts->clock_fn != NULL && opts->profile_fn != NULL;
    const uint64_t start = timed ? opts->clock_fn(opts->user) : 0;
    epctx__needs needs;
    const epctx_npu_command command = epctx__describe(call->graph, words, &needs);
    EPCTX__TRY(epctx__run_cut(call, words, &needs, command.products + command.bytes, error));
    if (timed) opts->profile_fn(opts->user, &command, opts->clock_fn(opts->user) - start);
    return EPCTX_OK;
}

EPCTX_API epctx_status epctx_npu_run_with(const epctx_npu_graph *graph, const epctx_span *inputs,
                                          const epctx_memory *outputs, void *scratch,
                                          size_t scratch_size, const epctx_npu_run_opts *opts,
                                          epctx_error *error) {
    const epctx__call call = {graph,        inputs,
                              outputs,      (uint8_t *)scratch,
                              scratch_size, epctx__level_here(),
                              opts,         opts != NULL ? epctx__run_timed : epctx__run_whole};
    return epctx__execute(&call, error);
}

EPCTX_API size_t epctx_npu_scratch_size(const epctx_npu_graph *graph, uint32_t threads) {
    uint64_t most = 0, size = epctx__aligned(graph->info.scratch_size);
    uint32_t position = 0;
    epctx_npu_command command;
    while (epctx_npu_next_command(graph, &position, &command))
        most = command.temporary > most ? command.temporary : most;
    threads = threads < EPCTX__THREADS ? threads : EPCTX__THREADS;
    size += threads > 1 ? (threads - 1) * epctx__aligned(most) : 0;
    return most > 0 && threads > 1 && size <= SIZE_MAX / 2 ? (size_t)size
                                                           : graph->info.scratch_size;
}

/* -- weights of weightless graphs -- */

/* Bytes of `count` tensors, each aligned. */
static uint64_t epctx__values_bytes(const epctx_value *values, size_t count) {
    uint64_t total = 0;
    size_t i;
    for (i = 0; i < count; i++) total += epctx__aligned(epctx__value_bytes(&values[i]));
    return total;
}

EPCTX_API epctx_status epctx_npu_weights_size(const epctx_npu_graph *graph, size_t *kept,
                                              size_t *temporary, epctx_error *error) {
    uint64_t keep, spare;
    epctx_error_clear(error);
    *kept = 0;
    *temporary = 0;
    if (graph->maker != NULL) {
        const epctx_graph_info *info = &graph->maker->info;
        keep = info->output_count * sizeof(epctx_memory) + EPCTX_NPU_ALIGN +
               epctx__values_bytes(info->outputs, info->output_count);
        spare = info->input_count * sizeof(epctx_span) +
                epctx__values_bytes(info->inputs, info->input_count) + info->scratch_size;
        spare += spare > 0 ? EPCTX_NPU_ALIGN : 0;
        if (keep > SIZE_MAX / 2 || spare > SIZE_MAX / 2)
            return epctx_fail(error, EPCTX_ERR_NOMEM,
                              "weights of graph '%S': too large for this machine",
                              &graph->info.name);
        *kept = (size_t)keep;
        *temporary = (size_t)spare;
    }
    return EPCTX_OK;
}

/* An initializer as input of the maker: in place, or a copy, aligned and in host order. */
static epctx_status epctx__weight_input(const epctx_value *want, const epctx_tensor *weights,
                                        size_t count, uint8_t *temporary, uint64_t *spare,
                                        epctx_span *out, epctx_error *error) {
    const uint64_t bytes = epctx__value_bytes(want);
    const uint32_t elem = epctx__stored_size(want->elem_type);
    size_t i = 0;
    while (i < count && !epctx_str_eq(weights[i].name, want->name)) i++;
    if (i == count || weights[i].data == NULL || weights[i].size != bytes ||
        weights[i].elem_type != want->elem_type)
        return epctx_fail(error, EPCTX_ERR_CONTEXT,
                          "weight '%S': expected %u bytes of ONNX type %d, found %u of type %d",
                          &want->name, bytes, (int64_t)want->elem_type,
                          (uint64_t)(i < count ? weights[i].size : 0),
                          (int64_t)(i < count ? weights[i].elem_type : 0));
    out->data = weights[i].data;
    out->size = (size_t)bytes;
    if (epctx__big_endian() || (uintptr_t)out->data % elem != 0) {
        memcpy(temporary + *spare, out->data, out->size);
        epctx__to_host(temporary + *spare, bytes, elem);
        out->data = temporary + *spare;
        *spare += epctx__aligned(bytes);
    }
    return EPCTX_OK;
}

EPCTX_API epctx_status epctx_npu_make_weights(const epctx_npu_graph *graph,
                                              const epctx_tensor *weights, size_t count, void *kept,
                                              void *temporary, epctx_error *error) {
    const epctx_graph_info *info;
    epctx_memory *outputs = (epctx_memory *)kept;
    epctx_span *inputs = (epctx_span *)temporary;
    uint8_t *scratch;
    uint64_t at, spare; /* offsets, as empty memory may be NULL */
    size_t i;
    epctx_error_clear(error);
    if (graph->maker == NULL) return EPCTX_OK;
    *graph->made = NULL;
    if (count == 0) return EPCTX_OK;
    info = &graph->maker->info;
    at = epctx__aligned_in(kept, info->output_count * sizeof *outputs);
    for (i = 0; i < info->output_count; i++) {
        outputs[i].data = (uint8_t *)kept + at;
        outputs[i].size = (size_t)epctx__value_bytes(&info->outputs[i]);
        at += epctx__aligned(outputs[i].size);
    }
    spare = epctx__aligned_in(temporary, info->input_count * sizeof *inputs);
    scratch = info->scratch_size > 0 ? (uint8_t *)temporary + spare : NULL;
    spare += info->scratch_size;
    for (i = 0; i < info->input_count; i++)
        EPCTX__TRY(epctx__weight_input(&info->inputs[i], weights, count, (uint8_t *)temporary,
                                       &spare, &inputs[i], error));
    EPCTX__TRY(epctx_npu_run(graph->maker, inputs, outputs, scratch, info->scratch_size, error));
    *graph->made = outputs;
    return EPCTX_OK;
}

EPCTX_API bool epctx_npu_next_command(const epctx_npu_graph *graph, uint32_t *position,
                                      epctx_npu_command *command) {
    const uint32_t *words;
    epctx__needs needs;
    if (*position >= graph->command_words) return false;
    words = graph->commands + *position;
    *command = epctx__describe(graph, words, &needs);
    *position += words[1];
    return true;
}

#ifndef EPCTX_NPU_NO_COMPILER

/* ============================================================
 * >>graph: the graph under compilation
 * ============================================================ */

#define EPCTX__NONE      UINT32_MAX
#define EPCTX__MAX_OPSET 26

typedef struct epctx__shape {
    uint32_t rank;
    int64_t dims[EPCTX_NPU_MAX_RANK];
} epctx__shape;

static epctx__shape epctx__shape4(int64_t a, int64_t b, int64_t c, int64_t d) {
    const epctx__shape shape = {4, {a, b, c, d}};
    return shape;
}

/* A value: constant (raw or data set) or computed at run time (buffer set). elem 0: unknown. */
typedef struct epctx__tensor {
    epctx_str name;
    int32_t elem;
    epctx__shape shape;
    uint64_t count; /* of elements */
    bool constant;
    const uint8_t *raw; /* little-endian bytes of the model, possibly unaligned */
    const void *data;   /* in host order, aligned */
    uint32_t buffer;
    uint64_t offset;   /* bytes in the buffer: reshaped and sliced values share one */
    uint32_t writer;   /* the only step that writes it, or NONE */
    uint32_t uses;     /* by nodes and as graph output */
    bool outside;      /* a weightless blob does not contain this constant */
    uint32_t whole;    /* if outside: the initializer or folded tensor that contains it */
    uint64_t at;       /* byte offset in `whole` */
    epctx_value known; /* elem 0: type and shape from the graph, as far as known */
    bool stored;       /* an initializer */
    const struct epctx__step *dequantized; /* the folded step that made it from integers */
    const struct epctx__step *moved;       /* the folded Move that made all of it */
    uint32_t viewed;                       /* the tensor whose elements it shows; its own number */
    bool given;                            /* an input of the graph */
} epctx__tensor;

/* Memory of one or more tensors at run time. */
typedef struct epctx__buffer {
    uint64_t bytes;
    epctx__storage place;
    uint32_t index;       /* of the graph input or output */
    uint32_t first, last; /* the first and the last step that use it; NONE: no step does */
    uint64_t peak;        /* peak of live bytes during its lifetime, itself included */
    uint64_t offset;      /* in scratch */
    uint32_t position;    /* among the scratch buffers in the order of `first` */
    bool needed;
    bool fixed;               /* keeps ONNX's order */
    bool wanted_last;         /* has readers that prefer channels last */
    uint32_t channels, plane; /* of an image that lies channels last, else 0 */
    uint32_t reordered;       /* buffer with the same values in the other order, or NONE */
} epctx__buffer;

/* A command before it is written. */
typedef struct epctx__step {
    epctx__opcode op;
    epctx__params params;
    uint32_t in[EPCTX__MAX_IN]; /* tensors, or NONE */
    uint32_t out;
    uint32_t temporary; /* buffer, or NONE */
    bool packs;         /* in[1] is constant and not packed yet */
    bool images;        /* in[0], in[3] and out are images, channels last (>>layout) */
    bool exact;         /* holds integers in floats: no step that rounds may replace it */
    bool joins;         /* may become part of the step that computes its operand (>>fuse) */
    epctx__pack pack;
    epctx_str name;
    const struct epctx__factors *factors; /* its result is their product; NULL: unknown */
} epctx__step;

typedef enum epctx__product_kind {
    EPCTX__PRODUCT_CONV,
    EPCTX__PRODUCT_MATMUL,
    EPCTX__PRODUCT_GEMM
} epctx__product_kind;

/* Dequantized bytes that a node on floats multiplies. */
typedef struct epctx__factor {
    uint32_t floats;  /* the operand */
    epctx__step from; /* the Dequantize */
    bool moves;       /* what that makes was moved */
    epctx__step move;
} epctx__factor;

/* What a node on floats multiplies, if that is dequantized bytes (epctx__exact_product). */
typedef struct epctx__factors {
    epctx__product_kind kind;
    epctx_node node; /* for its attributes */
    epctx__factor of[2];
    uint32_t bias; /* int32 in the unit of the sums, or NONE */
} epctx__factors;

/* Names within one graph; its bodies see them, too. */
typedef struct epctx__name_scope {
    epctx_map names; /* value -> tensor */
    epctx_map uses;  /* value -> number of uses */
    epctx_map types; /* value -> declared type, of those that are not inputs */
    const struct epctx__name_scope *outer;
} epctx__name_scope;

typedef struct epctx__compiler {
    const epctx_graph *graph; /* or body */
    const epctx_npu_arch *arch;
    epctx_arena *arena;
    epctx_error *error;
    epctx__tensor *tensors;
    epctx__buffer *buffers;
    epctx__step *steps;
    size_t tensor_count, tensor_room, buffer_count, buffer_room, step_count, step_room;
    epctx__name_scope scope;
    uint32_t depth;  /* of bodies */
    size_t unrolled; /* nodes lowered in bodies of one node of the graph */
    const epctx_node *node;
    uint32_t variant;      /* of the operator being lowered (epctx__lowering) */
    uint32_t in[8], y;     /* its inputs; its output 0, NONE: assigned already */
    const uint32_t *given; /* its inputs and result within a quantized one; NULL: the node's */
    uint32_t *result;
    bool stored;               /* the operator takes types that are only stored (>>node) */
    int32_t narrow;            /* the stored type of its first input; 0: it is computed */
    bool exact;                /* of the steps that are emitted */
    bool lowering;             /* steps may be folded; later passes count on those that there are */
    const epctx_map *declared; /* values of the whole graph (epctx__value_at); NULL: unknown */
    const epctx_graph *whole;
    epctx_weightless_support weightless;
    epctx__step *makes; /* weightless: folded steps, in order */
    size_t make_count, make_room;
    uint32_t *outputs;   /* weightless: tensor -> output of their graph, or NONE; there: tensors */
    const uint32_t *ios; /* tensors of the graph's inputs and outputs; NULL: found by name */
    epctx_npu_stats stats;
    const epctx_npu *npu; /* whose trace_fn is called; NULL: none */
} epctx__compiler;

/* Failures: the compiler lacks what the model asks for; the model breaks ONNX's rules. */
#define EPCTX__REFUSE(c, ...)  epctx_fail((c)->error, EPCTX_ERR_UNSUPPORTED, __VA_ARGS__)
#define EPCTX__INVALID(c, ...) epctx_fail((c)->error, EPCTX_ERR_GRAPH, __VA_ARGS__)

/* The tensor of a name, in this scope or an outer one; NONE: the name is unknown. */
static uint32_t epctx__named(const epctx__compiler *c, epctx_str name) {
    const epctx__name_scope *scope = &c->scope;
    uint32_t id = epctx_map_get(&scope->names, name);
    for (scope = scope->outer; id == EPCTX_MAP_NONE && scope != NULL; scope = scope->outer)
        id = epctx_map_get(&scope->names, name);
    return id;
}

static epctx_status epctx__no_memory(epctx__compiler *c, uint64_t size) {
    return epctx_fail(c->error, EPCTX_ERR_NOMEM, "out of memory: compiling needs %u more bytes",
                      size);
}

/* Zeroed arena memory, at least one byte; NULL: the error is set. */
static void *epctx__new(epctx__compiler *c, uint64_t count, size_t size) {
    void *memory =
        count <= SIZE_MAX / 2 ? epctx_arena_array(c->arena, (size_t)count + 1, size) : NULL;
    if (memory == NULL) epctx__no_memory(c, epctx__mul(count, size));
    return memory;
}

/* Sets `to` to zeroed arena memory for `count` elements, or returns the failure. */
#define EPCTX__MAKE(c, to, type, count) \
    do { \
        (to) = (type *)epctx__new(c, count, sizeof *(to)); \
        if ((to) == NULL) return EPCTX_ERR_NOMEM; \
    } while (0)

static epctx_status epctx__put_name(epctx__compiler *c, epctx_map *map, epctx_str name,
                                    uint32_t value) {
    return epctx_map_put(map, name, value) == EPCTX_OK ? EPCTX_OK
                                                       : epctx__no_memory(c, c->arena->missing);
}

/* Makes room for one more element of an array in the arena, `array` points to it; doubles. */
static epctx_status epctx__grow(epctx__compiler *c, void *array, size_t count, size_t *room,
                                size_t size) {
    const size_t wanted = *room == 0 ? 16 : *room * 2;
    void *bigger, *old;
    if (count < *room) return EPCTX_OK;
    bigger = epctx__new(c, wanted, size);
    if (bigger == NULL) return EPCTX_ERR_NOMEM;
    memcpy(&old, array, sizeof old);
    if (count > 0) memcpy(bigger, old, count * size);
    memcpy(array, &bigger, sizeof bigger);
    *room = wanted;
    return EPCTX_OK;
}

/* The number of elements. An empty tensor has 0, or too many if its other dimensions exceed the
 * limit. */
static uint64_t epctx__count(const epctx__shape *shape) {
    uint64_t count = 1;
    bool empty = false;
    uint32_t i;
    for (i = 0; i < shape->rank; i++) {
        empty = empty || shape->dims[i] < 1;
        if (shape->dims[i] > 1) count = epctx__mul(count, (uint64_t)shape->dims[i]);
    }
    return empty && count <= EPCTX__MAX_BYTES ? 0 : count;
}

static uint64_t epctx__product(const epctx__shape *shape, uint32_t first, uint32_t end) {
    uint64_t count = 1;
    uint32_t i;
    for (i = first; i < end; i++) count = epctx__mul(count, (uint64_t)shape->dims[i]);
    return count;
}

/* Products of the dimensions before `axis`, from there to `end`, and behind. */
static void epctx__dims_around(const epctx__shape *shape, uint32_t axis, uint32_t end,
                               uint32_t *outer, uint32_t *count, uint32_t *inner) {
    *outer = (uint32_t)epctx__product(shape, 0, axis);
    *count = (uint32_t)epctx__product(shape, axis, end);
    *inner = (uint32_t)epctx__product(shape, end, shape->rank);
}

static bool epctx__same_shape(const epctx__shape *a, const epctx__shape *b) {
    return a->rank == b->rank && memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) == 0;
}

static epctx_status epctx__add_tensor(epctx__compiler *c, int32_t elem, const epctx__shape *shape,
                                      uint32_t *id) {
    epctx__tensor *t;
    EPCTX__TRY(epctx__grow(c, &c->tensors, c->tensor_count, &c->tensor_room, sizeof *c->tensors));
    t = &c->tensors[c->tensor_count];
    memset(t, 0, sizeof *t);
    t->elem = elem;
    t->shape = *shape;
    t->count = epctx__count(shape);
    t->buffer = EPCTX__NONE;
    t->writer = EPCTX__NONE;
    t->uses = 1;
    t->viewed = *id = (uint32_t)c->tensor_count++;
    return EPCTX_OK;
}

static epctx_status epctx__add_buffer(epctx__compiler *c, uint64_t bytes, uint32_t *id) {
    epctx__buffer *b;
    EPCTX__TRY(epctx__grow(c, &c->buffers, c->buffer_count, &c->buffer_room, sizeof *c->buffers));
    b = &c->buffers[c->buffer_count];
    memset(b, 0, sizeof *b);
    b->bytes = bytes;
    b->place = EPCTX__SCRATCH;
    b->reordered = EPCTX__NONE;
    *id = (uint32_t)c->buffer_count++;
    return EPCTX_OK;
}

static epctx_status epctx__bad_result(epctx__compiler *c, uint64_t bytes) {
    return EPCTX__REFUSE(c, "result: expected 1..%u bytes, found %u", (uint64_t)EPCTX__MAX_BYTES,
                         bytes);
}

/* A value that steps will write. It may be empty if they are folded. */
static epctx_status epctx__new_tensor(epctx__compiler *c, int32_t elem, const epctx__shape *shape,
                                      uint32_t *id) {
    uint64_t bytes = epctx__mul(epctx__count(shape), epctx__stored_size(elem));
    if (bytes > EPCTX__MAX_BYTES) return epctx__bad_result(c, bytes);
    return epctx__add_tensor(c, elem, shape, id);
}

/* A tensor of another shape that shows the elements of `source` from `start` on. */
static epctx_status epctx__alias(epctx__compiler *c, uint32_t source, const epctx__shape *shape,
                                 uint64_t start, uint32_t *id) {
    const epctx__tensor from = c->tensors[source];
    const uint64_t bytes = start * epctx__stored_size(from.elem);
    epctx__tensor *t;
    EPCTX__TRY(epctx__add_tensor(c, from.elem, shape, id));
    t = &c->tensors[*id];
    t->constant = from.constant;
    t->raw = from.raw != NULL ? from.raw + bytes : NULL;
    t->data = from.data != NULL ? (const uint8_t *)from.data + bytes : NULL;
    t->buffer = from.buffer;
    t->offset = from.offset + bytes;
    t->outside = from.outside;
    t->whole = from.whole;
    t->at = from.at + bytes;
    t->dequantized = t->count == from.count ? from.dequantized : NULL;
    t->moved = t->count == from.count ? from.moved : NULL;
    t->viewed = t->count == from.count ? from.viewed : t->viewed;
    return EPCTX_OK;
}

/* A tensor as an image. With one channel or one pixel both orders are the same. */
typedef struct epctx__view {
    uint64_t batch, channels, plane;
} epctx__view;

static epctx__view epctx__tensor_view(const epctx__tensor *t) {
    epctx__view v;
    const bool image = t->shape.rank >= 3;
    v.batch = image ? (uint64_t)t->shape.dims[0] : t->count;
    v.channels = image ? (uint64_t)t->shape.dims[1] : 1;
    v.plane = image ? epctx__product(&t->shape, 2, t->shape.rank) : 1;
    return v;
}

static bool epctx__is_whole(const epctx__compiler *c, const epctx__tensor *t) {
    return !t->constant && t->offset == 0 &&
           c->buffers[t->buffer].bytes == t->count * epctx__stored_size(t->elem);
}

/* Data of a constant in host order. */
static epctx_status epctx__data(epctx__compiler *c, uint32_t id, const void **data) {
    epctx__tensor *t = &c->tensors[id];
    const uint32_t elem = epctx__stored_size(t->elem);
    void *copy;
    if (t->data == NULL && !epctx__big_endian() && (uintptr_t)t->raw % elem == 0) t->data = t->raw;
    if (t->data == NULL) {
        copy = epctx__new(c, t->count, elem);
        if (copy == NULL) return EPCTX_ERR_NOMEM;
        if (t->count > 0) memcpy(copy, t->raw, (size_t)t->count * elem);
        epctx__to_host(copy, t->count * elem, elem);
        t->data = copy;
    }
    *data = t->data;
    return EPCTX_OK;
}

/* A constant of zeros for the caller to fill; `data` points to the pointer to them. */
static epctx_status epctx__add_constant(epctx__compiler *c, int32_t elem, const epctx__shape *shape,
                                        void *data, uint32_t *id) {
    const uint64_t count = epctx__count(shape);
    void *memory;
    if (epctx__mul(count, epctx__stored_size(elem)) > EPCTX__MAX_BYTES)
        return EPCTX__REFUSE(c, "constant too large: %u elements", count);
    memory = epctx__new(c, count, epctx__stored_size(elem));
    if (memory == NULL) return EPCTX_ERR_NOMEM;
    memcpy(data, &memory, sizeof memory);
    EPCTX__TRY(epctx__add_tensor(c, elem, shape, id));
    c->tensors[*id].constant = true;
    c->tensors[*id].data = memory;
    return EPCTX_OK;
}

/* A constant vector of float zeros for the caller to fill. */
static epctx_status epctx__add_floats(epctx__compiler *c, uint64_t count, float **data,
                                      uint32_t *id) {
    const epctx__shape shape = {1, {(int64_t)count}};
    return epctx__add_constant(c, EPCTX_ONNX_FLOAT, &shape, data, id);
}

/* ============================================================
 * >>steps
 * ============================================================ */

/* -- columns of the table of opcodes: what can be folded, and what fails -- */

static bool epctx__folds_never(const epctx__params *p) {
    (void)p;
    return false;
}

/* Of kernels that move, compare, or round once. */
static bool epctx__folds_always(const epctx__params *p) {
    (void)p;
    return true;
}

static bool epctx__folds_unary(const epctx__params *p) {
    static const bool same[EPCTX__ACT_COUNT] = {false, /* EPCTX__ACT_NONE */
#define EPCTX__ACT_SAME(name, op_type, since, same, value) same != 0,
                                                EPCTX_NPU_ACT_LIST(EPCTX__ACT_SAME)
#undef EPCTX__ACT_SAME
    };
    return same[p->unary.act.kind];
}

static bool epctx__folds_binary(const epctx__params *p) {
    return p->binary.kind < EPCTX__BINARY_POW;
}

/* Sums of floats depend on the order in which a machine adds them. */
static bool epctx__folds_reduce(const epctx__params *p) {
    return p->reduce.type != EPCTX_ONNX_FLOAT || p->reduce.kind == EPCTX__REDUCE_MAX ||
           p->reduce.kind == EPCTX__REDUCE_MIN;
}

static bool epctx__folds_cum_sum(const epctx__params *p) {
    return p->cum_sum.type == EPCTX_ONNX_INT32 || p->cum_sum.type == EPCTX_ONNX_INT64;
}

static bool epctx__foldable(const epctx__step *s) {
    static bool (*const folds[EPCTX__OP_COUNT])(const epctx__params *p) = {
#define EPCTX__OP_FOLDS(id, text, ins, outs, required, type, name, cut, unit, fails, folds, ...) \
    epctx__folds_##folds,
        EPCTX_NPU_OP_LIST(EPCTX__OP_FOLDS)
#undef EPCTX__OP_FOLDS
    };
    return folds[s->op](&s->params);
}

static uint32_t epctx__fails_never(const epctx__params *p) {
    (void)p;
    return 0;
}

static uint32_t epctx__fails_index(const epctx__params *p) {
    (void)p;
    return 1;
}

static uint32_t epctx__fails_length(const epctx__params *p) {
    (void)p;
    return 6;
}

/* Integers are not divided by 0. */
static uint32_t epctx__fails_division(const epctx__params *p) {
    return p->exact.type != EPCTX_ONNX_FLOAT && p->exact.kind >= EPCTX__EXACT_DIV &&
                   p->exact.kind <= EPCTX__EXACT_FMOD
               ? 1
               : 0;
}

/* Whether data can make a step fail; such a step must not run where ONNX would not run it. */
static bool epctx__may_fail(const epctx__compiler *c, const epctx__step *s) {
    static uint32_t (*const fails[EPCTX__OP_COUNT])(const epctx__params *p) = {
#define EPCTX__OP_FAILS(id, text, ins, outs, required, type, name, cut, unit, fails, ...) \
    epctx__fails_##fails,
        EPCTX_NPU_OP_LIST(EPCTX__OP_FAILS)
#undef EPCTX__OP_FAILS
    };
    const uint32_t at = fails[s->op](&s->params);
    return at != 0 && s->in[at] != EPCTX__NONE && !c->tensors[s->in[at]].constant;
}

/* Offsets of fused activations in the parameters. */
enum {
    EPCTX__SLOT_none = 0,
    EPCTX__SLOT_conv = offsetof(epctx__conv, act),
    EPCTX__SLOT_depthwise = offsetof(epctx__depthwise, act),
    EPCTX__SLOT_gemm = offsetof(epctx__gemm, act),
    EPCTX__SLOT_binary = offsetof(epctx__binary, act),
    EPCTX__SLOT_affine = offsetof(epctx__affine, act)
};

/* Where a step stores a fused activation; NULL: nowhere. */
static epctx__act *epctx__act_of(epctx__step *s) {
    static const uint16_t slots[EPCTX__OP_COUNT] = {
#define EPCTX__OP_SLOT(id, text, ins, outs, required, type, name, cut, unit, fails, folds, slot, \
                       ...) \
    EPCTX__SLOT_##slot,
        EPCTX_NPU_OP_LIST(EPCTX__OP_SLOT)
#undef EPCTX__OP_SLOT
    };
    const size_t at = slots[s->op];
    return at != 0 ? (epctx__act *)(void *)epctx__word_at(&s->params, at) : NULL;
}

/* Records a folded step. If it reads constants outside the blob, its result stays outside too, and
 * the step runs again when the weights are available. */
static epctx_status epctx__record(epctx__compiler *c, const epctx__step *s) {
    epctx__tensor *out = &c->tensors[s->out];
    uint32_t i;
    for (i = 0; i < EPCTX__MAX_IN; i++)
        if (s->in[i] != EPCTX__NONE && c->tensors[s->in[i]].outside) out->outside = true;
    out->whole = s->out;
    EPCTX__TRY(epctx__grow(c, &c->makes, c->make_count, &c->make_room, sizeof *c->makes));
    c->makes[c->make_count++] = *s;
    return EPCTX_OK;
}

/* Whether a step moves what was dequantized with one scale, and fills all of its result with it. */
static bool epctx__moves_bytes(const epctx__compiler *c, const epctx__step *s) {
    const epctx__move *p = &s->params.move;
    uint64_t count = 1;
    uint32_t i;
    if (s->op != EPCTX__OP_MOVE || c->tensors[s->in[0]].dequantized == NULL) return false;
    for (i = 0; i < p->rank; i++) count *= p->dims[i];
    return count == c->tensors[s->out].count;
}

/* Runs a step now, in the portable form, whose bits are the same everywhere. Several steps may fill
 * one result. */
static epctx_status epctx__fold_step(epctx__compiler *c, const epctx__step *s) {
    const epctx__op_info *op = &epctx__ops[s->op];
    epctx__tensor *out = &c->tensors[s->out];
    const bool first = out->data == NULL;
    epctx__args args;
    epctx__step *kept;
    uint32_t i;
    memset(&args, 0, sizeof args);
    if (first) {
        out->data = epctx__new(c, out->count, epctx__stored_size(out->elem));
        if (out->data == NULL) return EPCTX_ERR_NOMEM;
        out->constant = true;
    }
    if (out->count == 0) return EPCTX_OK;
    if (c->weightless != EPCTX_WEIGHTLESS_NONE) EPCTX__TRY(epctx__record(c, s));
    for (i = 0; i < op->in_count; i++)
        if (s->in[i] != EPCTX__NONE) EPCTX__TRY(epctx__data(c, s->in[i], &args.in[i]));
    out->moved = NULL;
    if (s->op == EPCTX__OP_DEQUANTIZE || (first && epctx__moves_bytes(c, s))) {
        EPCTX__MAKE(c, kept, epctx__step, 1);
        *kept = *s;
        *(s->op == EPCTX__OP_MOVE ? &out->moved : &out->dequantized) = kept;
    }
    /* writable: this step or an earlier one of the same node allocated the tensor above */
    memcpy(&args.out[0], &out->data, sizeof(void *));
    args.error = c->error;
    c->stats.folded++;
    return op->run_fn(&s->params, &args);
}

static epctx__step epctx__new_step(epctx__opcode op, uint32_t a, uint32_t b, uint32_t out) {
    epctx__step s;
    uint32_t i;
    memset(&s, 0, sizeof s);
    s.op = op;
    for (i = 2; i < EPCTX__MAX_IN; i++) s.in[i] = EPCTX__NONE;
    s.in[0] = a;
    s.in[1] = b;
    s.out = out;
    s.temporary = EPCTX__NONE;
    return s;
}

static epctx_status epctx__push_step(epctx__compiler *c, const epctx__step *s) {
    EPCTX__TRY(epctx__grow(c, &c->steps, c->step_count, &c->step_room, sizeof *c->steps));
    c->steps[c->step_count++] = *s;
    return EPCTX_OK;
}

/* Whether tensor `id` has as many bytes as a command reads or writes. */
static bool epctx__has_bytes(const epctx__compiler *c, uint32_t id, uint64_t bytes) {
    const epctx__tensor *t = &c->tensors[id];
    const bool own = t->constant || t->buffer == EPCTX__NONE;
    return own ? bytes <= epctx__mul(t->count, epctx__stored_size(t->elem))
               : epctx__fits(t->offset, bytes, c->buffers[t->buffer].bytes);
}

/* Asks what whoever loads the command will ask: whether its parameters are right and its operands
 * large enough. Operand 1 of a step that `packs` gets its size later. */
static epctx_status epctx__check_step(epctx__compiler *c, const epctx__step *s,
                                      epctx__needs *needs) {
    const epctx__op_info *op = &epctx__ops[s->op];
    bool good, wide = false;
    uint32_t i;
    memset(needs, 0, sizeof *needs);
    good = op->check_fn(&s->params, needs) && needs->out[1].bytes <= EPCTX__MAX_BYTES &&
           epctx__has_bytes(c, s->out, needs->out[0].bytes);
    for (i = 0; i < op->in_count; i++) {
        if (s->in[i] == EPCTX__NONE) continue;
        wide = wide || c->tensors[s->in[i]].elem == EPCTX_ONNX_DOUBLE;
        good = good && ((i == 1 && s->packs) || epctx__has_bytes(c, s->in[i], needs->in[i].bytes));
    }
    if (!good && wide)
        return EPCTX__REFUSE(c, "float64 is moved, added, multiplied, compared and cast only");
    if (!good) return EPCTX__REFUSE(c, "the sizes or attributes are beyond those of its command");
    return EPCTX_OK;
}

/* Gives a step the workspace that its check demands. */
static epctx_status epctx__add_workspace(epctx__compiler *c, epctx__step *s,
                                         const epctx__needs *needs) {
    if (needs->out[1].bytes == 0 || s->temporary != EPCTX__NONE) return EPCTX_OK;
    return epctx__add_buffer(c, needs->out[1].bytes, &s->temporary);
}

/* Whether a step is computed while compiling: its operands are constant, its bits are the same on
 * every machine, and no part of its result has to wait for the run. A step without operands folds
 * where the caller says. */
static bool epctx__folds(const epctx__compiler *c, const epctx__step *s) {
    bool operands = false;
    uint32_t i;
    if (!c->lowering || c->tensors[s->out].buffer != EPCTX__NONE || !epctx__foldable(s))
        return false;
    for (i = 0; i < EPCTX__MAX_IN; i++) {
        if (s->in[i] == EPCTX__NONE) continue;
        if (!c->tensors[s->in[i]].constant) return false;
        operands = true;
    }
    return operands;
}

/* Adds a step to the list, or (`fold`) computes it at once. */
static epctx_status epctx__emit_or_fold(epctx__compiler *c, const epctx__step *given, bool fold) {
    const bool again = c->tensors[given->out].buffer != EPCTX__NONE;
    epctx__tensor *out = &c->tensors[given->out];
    epctx__step s = *given;
    epctx__needs needs;
    if (out->count == 0 && !fold) return epctx__bad_result(c, 0);
    EPCTX__TRY(epctx__check_step(c, &s, &needs));
    if (fold) return epctx__fold_step(c, &s);
    EPCTX__TRY(epctx__add_workspace(c, &s, &needs));
    if (!again)
        EPCTX__TRY(epctx__add_buffer(c, out->count * epctx__stored_size(out->elem), &out->buffer));
    out->writer = again ? EPCTX__NONE : (uint32_t)c->step_count;
    s.exact = s.exact || c->exact;
    if (c->node != NULL) s.name = c->node->name;
    return epctx__push_step(c, &s);
}

static epctx_status epctx__emit(epctx__compiler *c, const epctx__step *s) {
    return epctx__emit_or_fold(c, s, epctx__folds(c, s));
}

/* Emits a step whose result is a new tensor. */
static epctx_status epctx__emit_new(epctx__compiler *c, epctx__step *s, int32_t elem,
                                    const epctx__shape *shape, uint32_t *y) {
    EPCTX__TRY(epctx__new_tensor(c, elem, shape, y));
    s->out = *y;
    return epctx__emit(c, s);
}

/* Lets the step that was emitted last become part of the one that computes its operand. */
static void epctx__may_join(epctx__compiler *c, size_t before) {
    if (c->step_count > before) c->steps[c->step_count - 1].joins = true;
}

/* Merges dimensions that `count` operands traverse as one; returns the new rank. */
static uint32_t epctx__collapse(int64_t *dims, uint32_t rank,
                                int64_t (*strides)[EPCTX_NPU_MAX_RANK], uint32_t count) {
    uint32_t i, j, n = 0;
    for (i = 0; i < rank; i++) {
        const int64_t dim = dims[i];
        bool merge = n > 0;
        if (dim == 1) continue;
        for (j = 0; merge && j < count; j++) merge = strides[j][n - 1] == strides[j][i] * dim;
        if (merge)
            dims[n - 1] *= dim;
        else
            dims[n++] = dim;
        for (j = 0; j < count; j++) strides[j][n - 1] = strides[j][i];
    }
    if (n == 0) {
        dims[0] = 1;
        for (j = 0; j < count; j++) strides[j][0] = 0;
        n = 1;
    }
    return n;
}

/* Strides of a dense tensor. */
static void epctx__dense(const epctx__shape *shape, int64_t *strides) {
    int64_t step = 1;
    uint32_t i;
    for (i = shape->rank; i > 0; i--) {
        strides[i - 1] = step;
        step *= shape->dims[i - 1];
    }
}

/* A walk over two operands, of a move those that it reads and writes: strides, and dimensions. */
typedef int64_t epctx__strided[3][EPCTX_NPU_MAX_RANK];

/* Sets `rank` dimensions of a command; they fit, as sizes are below the limit. */
static void epctx__set_walk(uint32_t rank, epctx__strided w, int32_t *a, int32_t *b,
                            uint32_t *dims) {
    uint32_t i;
    for (i = 0; i < EPCTX_NPU_MAX_RANK; i++) {
        a[i] = i < rank ? (int32_t)w[0][i] : 0;
        b[i] = i < rank ? (int32_t)w[1][i] : 0;
        dims[i] = i < rank ? (uint32_t)w[2][i] : 0;
    }
}

/* Strided copy; strides in elements, NULL: those of a dense walk. */
static epctx_status epctx__emit_move(epctx__compiler *c, uint32_t from, uint32_t to,
                                     const epctx__shape *walk, uint64_t from_start,
                                     uint64_t to_start, const int64_t *from_strides,
                                     const int64_t *to_strides) {
    epctx__step s = epctx__new_step(EPCTX__OP_MOVE, from, EPCTX__NONE, to);
    epctx__move *p = &s.params.move;
    int64_t dense[EPCTX_NPU_MAX_RANK];
    epctx__strided w;
    uint32_t i;
    if (epctx__count(walk) == 0 && epctx__folds(c, &s)) { /* the result must exist, if empty */
        s = epctx__new_step(EPCTX__OP_FILL, EPCTX__NONE, EPCTX__NONE, to);
        s.params.fill.elem = epctx__stored_size(c->tensors[to].elem);
        return epctx__emit_or_fold(c, &s, true);
    }
    memset(w, 0, sizeof w);
    epctx__dense(walk, dense);
    for (i = 0; i < walk->rank; i++) {
        w[0][i] = from_strides != NULL ? from_strides[i] : dense[i];
        w[1][i] = to_strides != NULL ? to_strides[i] : dense[i];
        w[2][i] = walk->dims[i];
    }
    p->elem = epctx__stored_size(c->tensors[from].elem);
    p->from_start = (uint32_t)from_start;
    p->to_start = (uint32_t)to_start;
    p->rank = epctx__collapse(w[2], walk->rank, w, 2);
    if (p->elem == 2) { /* elements that are only stored are copied whole, as bytes */
        p->elem = 1;
        w[2][0] *= 2;
        w[0][0] = w[1][0] = 1; /* the two of a single element, too */
    }
    epctx__set_walk(p->rank, w, p->from, p->to, p->dims);
    return epctx__emit(c, &s);
}

/* A new tensor from elements of `x`: from `start` on, by these strides. */
static epctx_status epctx__emit_strided(epctx__compiler *c, uint32_t x, const epctx__shape *shape,
                                        uint64_t start, const int64_t *from, uint32_t *y) {
    EPCTX__TRY(epctx__new_tensor(c, c->tensors[x].elem, shape, y));
    return epctx__emit_move(c, x, *y, shape, start, 0, from, NULL);
}

/* Copies all of `from` in order. */
static epctx_status epctx__emit_copy(epctx__compiler *c, uint32_t from, uint32_t to) {
    const epctx__shape shape = c->tensors[from].shape;
    return epctx__emit_move(c, from, to, &shape, 0, 0, NULL, NULL);
}

/* Multidirectional (NumPy) broadcasting of two shapes. */
static epctx_status epctx__broadcast(epctx__compiler *c, const epctx__shape *a,
                                     const epctx__shape *b, epctx__shape *out) {
    uint32_t i;
    memset(out, 0, sizeof *out);
    out->rank = a->rank > b->rank ? a->rank : b->rank;
    for (i = 0; i < out->rank; i++) {
        uint32_t back = out->rank - i;
        int64_t x = back <= a->rank ? a->dims[a->rank - back] : 1;
        int64_t y = back <= b->rank ? b->dims[b->rank - back] : 1;
        if (x != y && x != 1 && y != 1)
            return EPCTX__INVALID(c, "dimension %u: cannot broadcast %d and %d", (uint64_t)i, x, y);
        out->dims[i] = x == 1 ? y : x;
    }
    return EPCTX_OK;
}

/* Strides of a dense tensor of shape `in` broadcast to `out`: 0 where it repeats. */
static void epctx__broadcast_strides(const epctx__shape *in, const epctx__shape *out,
                                     int64_t *strides) {
    int64_t dense[EPCTX_NPU_MAX_RANK];
    uint32_t i;
    epctx__dense(in, dense);
    for (i = 0; i < out->rank; i++) {
        uint32_t back = out->rank - i;
        uint32_t at = in->rank - back;
        strides[i] = back > in->rank || in->dims[at] == 1 ? 0 : dense[at];
    }
}

/* Emits an element-wise step whose first `count` inputs are broadcast. The arrays of its parameters
 * are zero: the rank, the dimensions, and the strides of each input. */
static epctx_status epctx__emit_broadcast(epctx__compiler *c, epctx__step *s, uint32_t count,
                                          int32_t elem, uint32_t *rank, uint32_t *dims,
                                          int32_t *const *out, uint32_t *y) {
    int64_t strides[3][EPCTX_NPU_MAX_RANK], wide[EPCTX_NPU_MAX_RANK];
    epctx__shape shape = {0, {0}}, part;
    uint32_t i, j;
    for (j = count; j-- > 0;) {
        part = shape;
        EPCTX__TRY(epctx__broadcast(c, &c->tensors[s->in[j]].shape, &part, &shape));
    }
    memset(strides, 0, sizeof strides);
    memcpy(wide, shape.dims, sizeof wide);
    for (j = 0; j < count; j++)
        epctx__broadcast_strides(&c->tensors[s->in[j]].shape, &shape, strides[j]);
    *rank = epctx__collapse(wide, shape.rank, strides, count);
    for (i = 0; i < *rank; i++) {
        dims[i] = (uint32_t)wide[i];
        for (j = 0; j < count; j++) out[j][i] = (int32_t)strides[j][i];
    }
    return epctx__emit_new(c, s, elem, &shape, y);
}

static epctx_status epctx__emit_binary(epctx__compiler *c, epctx__binary_kind kind, uint32_t a,
                                       uint32_t b, uint32_t *out) {
    epctx__step s = epctx__new_step(EPCTX__OP_BINARY, a, b, 0);
    epctx__binary *p = &s.params.binary;
    int32_t *const strides[2] = {p->a, p->b};
    p->kind = (uint32_t)kind;
    return epctx__emit_broadcast(c, &s, 2, EPCTX_ONNX_FLOAT, &p->rank, p->dims, strides, out);
}

/* A new tensor of equal elements: a constant, or (`later`) filled by a command, which takes less
 * room and can be overwritten in part. */
static epctx_status epctx__emit_filled(epctx__compiler *c, int32_t elem, const epctx__shape *shape,
                                       uint64_t bits, bool later, uint32_t *y) {
    epctx__step s = epctx__new_step(EPCTX__OP_FILL, EPCTX__NONE, EPCTX__NONE, 0);
    s.params.fill.count = (uint32_t)epctx__count(shape);
    s.params.fill.elem = epctx__stored_size(elem);
    s.params.fill.low = (uint32_t)(bits & UINT32_MAX);
    s.params.fill.high = (uint32_t)(bits >> 32);
    EPCTX__TRY(epctx__new_tensor(c, elem, shape, y));
    s.out = *y;
    return epctx__emit_or_fold(c, &s, !later);
}

/* One command: Cast, or Convert where a type is only stored. */
static epctx_status epctx__emit_cast_once(epctx__compiler *c, uint32_t x, int32_t to, uint32_t *y) {
    epctx__step s = epctx__new_step(EPCTX__OP_CAST, x, EPCTX__NONE, 0);
    epctx__shape shape = c->tensors[x].shape;
    const int32_t from = c->tensors[x].elem;
    *y = x;
    if (from == to) return EPCTX_OK;
    s.params.cast.count = (uint32_t)c->tensors[x].count;
    s.params.cast.from = (uint32_t)from;
    s.params.cast.to = (uint32_t)to;
    if (epctx__converts((uint32_t)from, (uint32_t)to) ||
        epctx__converts((uint32_t)to, (uint32_t)from))
        s.op = EPCTX__OP_CONVERT; /* with the same parameters */
    return epctx__emit_new(c, &s, to, &shape, y);
}

/* uint64 is computed as int64, which gives the same bits for sums, products and bitwise
 * operators. */
static epctx_status epctx__no_uint64(epctx__compiler *c, bool used) {
    return !used ? EPCTX_OK
                 : EPCTX__REFUSE(c, "uint64 is not ordered, divided or converted to floats");
}

/* From any type to any other, by way of the types that are computed. Integers of double have 64
 * bits. */
static epctx_status epctx__emit_cast(epctx__compiler *c, uint32_t x, int32_t to, uint32_t *y) {
    const int32_t type = c->tensors[x].elem;
    int32_t from = epctx__computed_type(type), last = epctx__computed_type(to);
    *y = x;
    if (type == to) return EPCTX_OK;
    EPCTX__TRY(epctx__no_uint64(
        c,
        (type == EPCTX_ONNX_UINT64 && (last == EPCTX_ONNX_FLOAT || to == EPCTX_ONNX_DOUBLE)) ||
            (to == EPCTX_ONNX_UINT64 && (from == EPCTX_ONNX_FLOAT || type == EPCTX_ONNX_DOUBLE))));
    if (type == EPCTX_ONNX_DOUBLE && to == EPCTX_ONNX_BOOL)
        return EPCTX__REFUSE(c, "float64 to bool is not supported");
    if (type == EPCTX_ONNX_DOUBLE)
        from = last == EPCTX_ONNX_FLOAT ? EPCTX_ONNX_FLOAT : EPCTX_ONNX_INT64;
    if (to == EPCTX_ONNX_DOUBLE)
        last = from == EPCTX_ONNX_FLOAT ? EPCTX_ONNX_FLOAT : EPCTX_ONNX_INT64;
    EPCTX__TRY(epctx__emit_cast_once(c, x, from, y));
    EPCTX__TRY(epctx__emit_cast_once(c, *y, last, y));
    return epctx__emit_cast_once(c, *y, to, y);
}

/* ============================================================
 * >>node: inputs, attributes and outputs of a node
 * ============================================================ */

static bool epctx__has_input(const epctx_node *node, size_t i) {
    return i < node->input_count && node->inputs[i].size > 0;
}

#define EPCTX__TYPES "floats of 16 to 64 bits, integers or bool"

/* Reports why no node that reads this value compiles. */
static epctx_status epctx__refuse_value(epctx__compiler *c, const epctx__tensor *t,
                                        epctx_str name) {
    const epctx_value *value = &t->known;
    const char *type = epctx_elem_name(value->elem_type);
    const uint64_t most = EPCTX_NPU_MAX_RANK;
    const int64_t rank = value->rank;
    int64_t i = 0;
    if (t->stored)
        return EPCTX__REFUSE(c,
                             "constant '%S': expected " EPCTX__TYPES " of rank <= %u, with data, "
                             "found %s of rank %d",
                             &name, most, type, rank);
    if (value->elem_type != 0 && epctx__stored_size(value->elem_type) == 0)
        return EPCTX__REFUSE(c, "input '%S': expected " EPCTX__TYPES ", found %s", &name, type);
    while (i < rank && value->dims[i] > 0) i++;
    if (rank > EPCTX_NPU_MAX_RANK)
        return EPCTX__REFUSE(c, "input '%S': expected rank <= %u, found %d", &name, most, rank);
    if (i < rank)
        return EPCTX__REFUSE(c, "input '%S': expected a fixed shape, dimension %d is not above 0",
                             &name, i);
    if (t->given && (value->elem_type == 0 || rank < 0))
        return EPCTX__REFUSE(c, "graph input '%S' has no %s in the model", &name,
                             value->elem_type == 0 ? "type" : "shape");
    if (value->elem_type == 0 || rank < 0)
        return EPCTX__REFUSE(c,
                             "input '%S': unknown type or shape; the model does not declare "
                             "them and the node that computes it does not compile",
                             &name);
    return EPCTX__REFUSE(c, "input '%S': expected at most %u bytes", &name,
                         (uint64_t)EPCTX__MAX_BYTES);
}

/* Tensor of input `i`; NONE: omitted. */
static epctx_status epctx__optional(epctx__compiler *c, size_t i, uint32_t *id) {
    const epctx_node *node = c->node;
    const epctx__tensor *t;
    *id = EPCTX__NONE;
    if (!epctx__has_input(node, i)) return EPCTX_OK;
    *id = c->given != NULL ? c->given[i] : epctx__named(c, node->inputs[i]);
    if (*id == EPCTX_MAP_NONE)
        return EPCTX__INVALID(c,
                              "input '%S' is neither a constant nor the output of an earlier node",
                              &node->inputs[i]);
    t = &c->tensors[*id];
    if (t->elem == 0) return epctx__refuse_value(c, t, node->inputs[i]);
    if (!c->stored && epctx__computed_type(t->elem) != t->elem) {
        c->narrow = c->narrow == 0 ? t->elem : c->narrow;
        return epctx__emit_cast(c, *id, epctx__computed_type(t->elem), id);
    }
    if (c->narrow == 0 && t->elem == EPCTX_ONNX_FLOAT) c->narrow = EPCTX_ONNX_FLOAT;
    return EPCTX_OK;
}

static epctx_status epctx__input(epctx__compiler *c, size_t i, uint32_t *id) {
    EPCTX__TRY(epctx__optional(c, i, id));
    if (*id == EPCTX__NONE)
        return EPCTX__INVALID(c, "expected input %u, found %u inputs", (uint64_t)i,
                              (uint64_t)c->node->input_count);
    return EPCTX_OK;
}

static epctx_status epctx__want_type(epctx__compiler *c, uint32_t id, int32_t type) {
    const epctx__tensor *t = &c->tensors[id];
    if (t->elem != type)
        return EPCTX__REFUSE(c, "input '%S': expected %s, found %s", &t->name,
                             epctx_elem_name(type), epctx_elem_name(t->elem));
    return EPCTX_OK;
}

static epctx_status epctx__want_float(epctx__compiler *c, uint32_t id) {
    return epctx__want_type(c, id, EPCTX_ONNX_FLOAT);
}

static epctx_status epctx__float_input(epctx__compiler *c, size_t i, uint32_t *id) {
    EPCTX__TRY(epctx__input(c, i, id));
    return epctx__want_float(c, *id);
}

static epctx_status epctx__want_constant(epctx__compiler *c, uint32_t id, const char *what) {
    const epctx__tensor *t = &c->tensors[id];
    if (!t->constant)
        return EPCTX__REFUSE(c, "%s '%S': expected a constant, found a run-time value", what,
                             &t->name);
    return EPCTX_OK;
}

/* Assigns node output `i` to a tensor. */
static epctx_status epctx__set_output(epctx__compiler *c, size_t i, uint32_t id) {
    const epctx_node *node = c->node;
    uint32_t uses;
    if (c->result != NULL) {
        *c->result = id;
        return EPCTX_OK;
    }
    if (i >= node->output_count || node->outputs[i].size == 0) return EPCTX_OK;
    if (c->narrow != 0 && c->narrow != EPCTX_ONNX_FLOAT &&
        c->tensors[id].elem == epctx__computed_type(c->narrow))
        EPCTX__TRY(epctx__emit_cast(c, id, c->narrow, &id));
    if (epctx_map_get(&c->scope.names, node->outputs[i]) != EPCTX_MAP_NONE &&
        !epctx_str_is(node->op_type, "Constant")) /* the last Constant counts */
        return EPCTX__INVALID(c, "output '%S' occurs twice", &node->outputs[i]);
    uses = epctx_map_get(&c->scope.uses, node->outputs[i]);
    c->tensors[id].name = node->outputs[i];
    c->tensors[id].uses = uses == EPCTX_MAP_NONE ? 0 : uses;
    return epctx__put_name(c, &c->scope.names, node->outputs[i], id);
}

/* Fails if an output from `first` on is used: the kernels do not compute it. */
static epctx_status epctx__unused_outputs(epctx__compiler *c, size_t first) {
    size_t i;
    for (i = first; i < c->node->output_count; i++)
        if (c->node->outputs[i].size > 0 &&
            epctx_map_get(&c->scope.uses, c->node->outputs[i]) != EPCTX_MAP_NONE)
            return EPCTX__REFUSE(c, "output '%S' is not supported", &c->node->outputs[i]);
    return EPCTX_OK;
}

/* Adds an attribute's name to the error just set. */
static epctx_status epctx__in_attr(epctx__compiler *c, const char *name, epctx_status s) {
    epctx_blame(c->error, NULL, NULL, name);
    return s;
}

static epctx_status epctx__bad_attr(epctx__compiler *c, const char *name, const char *why) {
    return epctx__in_attr(c, name, EPCTX__INVALID(c, "expected %s", why));
}

/* Attribute of `count` integers; absent: `fallback` for each. */
static epctx_status epctx__ints(epctx__compiler *c, const char *name, size_t count,
                                int64_t fallback, int64_t *out) {
    const epctx_attr *attr = epctx_node_attr(c->node, name);
    size_t i;
    if (attr != NULL && (attr->type != EPCTX_ATTR_INTS || attr->count != count))
        return epctx__in_attr(c, name,
                              EPCTX__INVALID(c, "expected %u integers, found %u", (uint64_t)count,
                                             (uint64_t)attr->count));
    for (i = 0; i < count; i++) out[i] = attr != NULL ? attr->ints[i] : fallback;
    return EPCTX_OK;
}

/* Refuses an operand of another rank than `first` to `last`; NONE passes. */
static epctx_status epctx__want_rank(epctx__compiler *c, uint32_t id, const char *what,
                                     uint32_t first, uint32_t last) {
    const epctx__tensor *t = id != EPCTX__NONE ? &c->tensors[id] : NULL;
    if (t == NULL || (t->shape.rank >= first && t->shape.rank <= last)) return EPCTX_OK;
    return EPCTX__INVALID(c, "%s '%S': expected rank %u to %u, found %u", what, &t->name,
                          (uint64_t)first, (uint64_t)last, (uint64_t)t->shape.rank);
}

/* A constant of integers, a list if it may be several, of which Unsqueeze takes a number, too;
 * `count` may be NULL. */
static epctx_status epctx__const_ints(epctx__compiler *c, uint32_t id, const char *what,
                                      size_t most, int64_t *out, size_t *count) {
    const bool number = most == 1 || epctx_str_is(c->node->op_type, "Unsqueeze");
    const epctx__tensor *t = &c->tensors[id];
    const void *data;
    size_t i;
    EPCTX__TRY(epctx__want_constant(c, id, what));
    if ((t->elem != EPCTX_ONNX_INT64 && t->elem != EPCTX_ONNX_INT32) || t->count > most)
        return EPCTX__INVALID(c, "%s '%S': expected at most %u integers, found %u of type %s", what,
                              &t->name, (uint64_t)most, t->count, epctx_elem_name(t->elem));
    EPCTX__TRY(epctx__want_rank(c, id, what, number ? 0 : 1, 1));
    EPCTX__TRY(epctx__data(c, id, &data));
    if (count != NULL) *count = (size_t)t->count;
    for (i = 0; i < t->count; i++)
        out[i] = epctx__index((const uint8_t *)data, i, epctx__stored_size(t->elem));
    return EPCTX_OK;
}

/* Integers of an attribute or an input. */
typedef struct epctx__list {
    int64_t v[2 * EPCTX_NPU_MAX_RANK];
    size_t count;
    bool found;
} epctx__list;

/* Integers: an attribute in old opsets, a constant input in new ones. `found` false: neither. */
static epctx_status epctx__ints_of(epctx__compiler *c, const char *name, size_t input,
                                   int64_t since, epctx__list *out) {
    const epctx_attr *attr = epctx_node_attr(c->node, name);
    uint32_t id;
    memset(out, 0, sizeof *out);
    if (c->node->version < since) {
        if (attr == NULL) return EPCTX_OK;
        if (attr->type != EPCTX_ATTR_INTS || attr->count > 2 * EPCTX_NPU_MAX_RANK)
            return epctx__bad_attr(c, name, "a list of at most 16 integers");
        memcpy(out->v, attr->ints, attr->count * sizeof *out->v);
        out->count = attr->count;
        out->found = true;
        return EPCTX_OK;
    }
    EPCTX__TRY(epctx__optional(c, input, &id));
    out->found = id != EPCTX__NONE;
    return out->found ? epctx__const_ints(c, id, name, 2 * EPCTX_NPU_MAX_RANK, out->v, &out->count)
                      : EPCTX_OK;
}

/* A constant of one element of this type. */
static epctx_status epctx__const_one(epctx__compiler *c, uint32_t id, const char *what,
                                     int32_t elem, void *out) {
    const void *data;
    EPCTX__TRY(epctx__want_constant(c, id, what));
    if (c->tensors[id].elem != elem || c->tensors[id].count != 1)
        return EPCTX__INVALID(c, "%s '%S': expected one number, found %u of type %s", what,
                              &c->tensors[id].name, c->tensors[id].count,
                              epctx_elem_name(c->tensors[id].elem));
    EPCTX__TRY(epctx__want_rank(c, id, what, 0, 1));
    EPCTX__TRY(epctx__data(c, id, &data));
    memcpy(out, data, epctx__stored_size(elem));
    return EPCTX_OK;
}

static epctx_status epctx__const_float(epctx__compiler *c, uint32_t id, const char *what,
                                       float *out) {
    EPCTX__TRY(epctx__want_float(c, id));
    return epctx__const_one(c, id, what, EPCTX_ONNX_FLOAT, out);
}

static epctx_status epctx__const_bool(epctx__compiler *c, uint32_t id, const char *what,
                                      bool *out) {
    uint8_t byte = 0;
    EPCTX__TRY(epctx__const_one(c, id, what, EPCTX_ONNX_BOOL, &byte));
    *out = byte != 0;
    return EPCTX_OK;
}

/* Whether a word is one of some, and which. */
static bool epctx__among(epctx_str word, const char *words, uint32_t *which) {
    epctx_str rest = epctx_str_of(words);
    for (*which = 0; rest.size > 0; ++*which)
        if (epctx_str_eq(word, epctx_str_cut(&rest, ' '))) return true;
    return false;
}

/* Which of some words an attribute holds; absent: the first. */
static epctx_status epctx__choice(epctx__compiler *c, const char *name, const char *words,
                                  uint32_t *which) {
    const epctx_attr *attr = epctx_node_attr(c->node, name);
    *which = 0;
    if (attr == NULL || epctx__among(attr->s, words, which)) return EPCTX_OK;
    return epctx__in_attr(c, name,
                          EPCTX__INVALID(c, "expected one of: %s; found '%S'", words, &attr->s));
}

/* Normalizes an axis in -rank..rank-1 to 0..rank-1 (`extra` 1: up to rank). */
static epctx_status epctx__axis(epctx__compiler *c, int64_t axis, uint32_t rank, uint32_t extra,
                                uint32_t *out) {
    *out = 0;
    if (axis < -(int64_t)rank || axis >= (int64_t)rank + extra)
        return EPCTX__INVALID(c, "axis: expected %d..%d, found %d", -(int64_t)rank,
                              (int64_t)rank + extra - 1, axis);
    *out = (uint32_t)(axis < 0 ? axis + (int64_t)rank : axis);
    return EPCTX_OK;
}

/* Attribute `axis`. */
static epctx_status epctx__axis_attr(epctx__compiler *c, int64_t fallback, uint32_t rank,
                                     uint32_t extra, uint32_t *out) {
    return epctx__axis(c, epctx_node_int(c->node, "axis", fallback), rank, extra, out);
}

/* One rounding each, also where the C compiler contracts or keeps excess precision. */
#define EPCTX__ROUNDED(name, op) \
    static float epctx__f_##name(float a, float b) { \
        volatile float r = a op b; \
        return r; \
    }
EPCTX__ROUNDED(mul, *)
EPCTX__ROUNDED(add, +)
EPCTX__ROUNDED(div, /)

/* -- single steps, from which composite operators are built -- */

static epctx_status epctx__emit_act(epctx__compiler *c, uint32_t x, epctx__act_kind kind, float a,
                                    float b, uint32_t *y) {
    epctx__step s = epctx__new_step(EPCTX__OP_UNARY, x, EPCTX__NONE, 0);
    epctx__shape shape = c->tensors[x].shape;
    s.params.unary.count = (uint32_t)c->tensors[x].count;
    s.params.unary.act.kind = (uint32_t)kind;
    s.params.unary.act.a = a;
    s.params.unary.act.b = b;
    return epctx__emit_new(c, &s, EPCTX_ONNX_FLOAT, &shape, y);
}

/* A constant scalar of any type with a small integer value. */
static epctx_status epctx__scalar(epctx__compiler *c, int32_t elem, int32_t value, uint32_t *id) {
    epctx__shape shape = {0, {0}};
    const float f = (float)value;
    const double d = (double)value;
    void *data;
    EPCTX__TRY(epctx__add_constant(c, elem, &shape, &data, id));
    if (elem == EPCTX_ONNX_FLOAT)
        memcpy(data, &f, sizeof f);
    else if (elem == EPCTX_ONNX_DOUBLE)
        memcpy(data, &d, sizeof d);
    else
        epctx__store_int((uint8_t *)data, 0, (uint32_t)elem, value);
    return EPCTX_OK;
}

/* A constant number. */
static epctx_status epctx__scalar_float(epctx__compiler *c, float number, uint32_t *id) {
    float *data;
    EPCTX__TRY(epctx__add_floats(c, 1, &data, id));
    *data = number;
    c->tensors[*id].shape.rank = 0;
    return EPCTX_OK;
}

/* 0, 1, 2 ... n-1 along `axis` of a shape of `rank` dimensions. */
static epctx_status epctx__ramp(epctx__compiler *c, int64_t n, uint32_t rank, uint32_t axis,
                                uint32_t *id) {
    epctx__shape shape = {0, {0}};
    int64_t *data, i;
    shape.rank = rank;
    for (i = 0; i < (int64_t)rank; i++) shape.dims[i] = i == (int64_t)axis ? n : 1;
    EPCTX__TRY(epctx__add_constant(c, EPCTX_ONNX_INT64, &shape, &data, id));
    for (i = 0; i < n; i++) data[i] = i;
    return EPCTX_OK;
}

static epctx_status epctx__emit_exact(epctx__compiler *c, epctx__exact_kind kind, uint32_t a,
                                      uint32_t b, uint32_t *out) {
    epctx__step s = epctx__new_step(EPCTX__OP_EXACT, a, b, 0);
    epctx__exact *p = &s.params.exact;
    const int32_t type = c->tensors[a].elem;
    int32_t *const strides[2] = {p->a, p->b};
    if (c->tensors[b].elem != type)
        return EPCTX__INVALID(c, "expected inputs of one type, found %s and %s",
                              epctx_elem_name(type), epctx_elem_name(c->tensors[b].elem));
    if (kind < EPCTX__EXACT_EQUAL && type == EPCTX_ONNX_FLOAT)
        return EPCTX__INVALID(c, "expected integers or bool, found float32");
    EPCTX__TRY(epctx__no_uint64(c, c->narrow == EPCTX_ONNX_UINT64 &&
                                       ((kind >= EPCTX__EXACT_DIV && kind <= EPCTX__EXACT_FMOD) ||
                                        kind > EPCTX__EXACT_EQUAL)));
    p->kind = (uint32_t)kind;
    p->type = (uint32_t)type;
    return epctx__emit_broadcast(c, &s, 2, (int32_t)epctx__exact_type(p->kind, p->type), &p->rank,
                                 p->dims, strides, out);
}

static epctx_status epctx__emit_where(epctx__compiler *c, uint32_t condition, uint32_t a,
                                      uint32_t b, uint32_t *out) {
    epctx__step s = epctx__new_step(EPCTX__OP_WHERE, condition, a, 0);
    epctx__where *p = &s.params.where;
    const int32_t type = c->tensors[a].elem;
    int32_t *const strides[3] = {p->condition, p->a, p->b};
    if (c->tensors[condition].elem != EPCTX_ONNX_BOOL || c->tensors[b].elem != type)
        return EPCTX__INVALID(c, "expected a bool condition and two inputs of one type");
    s.in[2] = b;
    p->elem = epctx__stored_size(type);
    return epctx__emit_broadcast(c, &s, 3, type, &p->rank, p->dims, strides, out);
}

/* x combined with one small integer of its type. */
static epctx_status epctx__emit_integer(epctx__compiler *c, epctx__exact_kind kind, uint32_t x,
                                        int32_t number, uint32_t *y) {
    uint32_t id;
    EPCTX__TRY(epctx__scalar(c, c->tensors[x].elem, number, &id));
    return epctx__emit_exact(c, kind, x, id, y);
}

/* One operation for all types: Binary for floats, Exact for integers. */
static epctx_status epctx__emit_any(epctx__compiler *c, epctx__binary_kind kind, uint32_t a,
                                    uint32_t b, uint32_t *out) {
    static const struct {
        epctx__binary_kind floats;
        epctx__exact_kind integers;
    } kinds[] = {
        {EPCTX__BINARY_ADD, EPCTX__EXACT_ADD},   {EPCTX__BINARY_SUB, EPCTX__EXACT_SUB},
        {EPCTX__BINARY_MUL, EPCTX__EXACT_MUL},   {EPCTX__BINARY_DIV, EPCTX__EXACT_DIV},
        {EPCTX__BINARY_MIN, EPCTX__EXACT_MIN},   {EPCTX__BINARY_MAX, EPCTX__EXACT_MAX},
        {EPCTX__BINARY_FMOD, EPCTX__EXACT_FMOD},
    };
    size_t i;
    if (c->tensors[a].elem == EPCTX_ONNX_FLOAT && c->tensors[b].elem == EPCTX_ONNX_FLOAT)
        return epctx__emit_binary(c, kind, a, b, out);
    for (i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (kinds[i].floats == kind) return epctx__emit_exact(c, kinds[i].integers, a, b, out);
    return EPCTX__REFUSE(c, "integer inputs are not supported");
}

/* -- formulas: operators that consist of simpler ones --
 *
 * A formula is a list of assignments to values, which are small letters: "d = x - m; y = d / n".
 * Operators bind as in C, @ is MatMul, ^ Pow; epctx__functions lists them and the functions.
 * Numbers are whole and take the type of the operand beside them; #a is the number of a size.
 *
 * x[ab(cd)>bac1] is x, of shape [a, b, c * d], as [b, a, c, 1]: reshaped, and transposed if need
 * be; sizes only on the right repeat it, those only on the left are 1, and x[aa>a] is the diagonal.
 * The size * is the product of the dimensions that are left; one other size of each dimension may
 * be unknown. Formulas of one epctx__formula share values and sizes. */

typedef struct epctx__formula {
    struct {
        uint32_t a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z;
    } v; /* values */
    struct {
        int64_t a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, rest;
    } n;              /* sizes; 0: not known yet */
    const bool *axes; /* those over which sum, mean and highest reduce: they become 1 */
    const char *at;   /* what comes next */
} epctx__formula;

static epctx__formula epctx__formula_of(uint32_t x) {
    epctx__formula r;
    memset(&r, 0, sizeof r);
    r.v.x = x;
    return r;
}

/* Emits the steps of a formula. */
static epctx_status epctx__evaluate(epctx__compiler *c, epctx__formula *r, const char *text);

/* Emits the steps of a formula whose y is output 0 of the node. */
static epctx_status epctx__evaluate_y(epctx__compiler *c, epctx__formula *r, const char *text) {
    EPCTX__TRY(epctx__evaluate(c, r, text));
    c->y = r->v.y;
    return EPCTX_OK;
}

/* ============================================================
 * >>lower: operators
 *
 * Lowering turns the nodes, in the order of the graph, into steps (epctx__step): commands of the
 * executor whose operands are still numbers of tensors. A row of epctx__lowers names an operator,
 * the inputs that epctx__lower_by fetches for it, and its function. That function checks the node,
 * infers the shape of the result, emits steps and leaves its first result in c->y. A row of
 * epctx__quantizeds runs such a function between Dequantize and Quantize. Operators that consist of
 * simpler ones are short formulas, which epctx__evaluate reads.
 *
 * Everything rests on fixed shapes of limited size: epctx__new_tensor refuses a tensor of more than
 * EPCTX__MAX_BYTES, and the products that give its size saturate, so a count of elements fits the
 * 32 bits of a parameter. Whatever the attributes say, epctx__emit asks the check of the opcode
 * about each step, as a loader will, and fails where the check does. EPCTX__REFUSE reports what the
 * kernels cannot do, EPCTX__INVALID what breaks ONNX's rules. epctx__judge runs the same functions
 * to find the nodes that this EP takes, so that its verdict and the compiler agree.
 *
 * Two things keep the list of steps short. Reshape and its kin emit nothing: epctx__alias gives
 * their memory another shape. A step is computed at once, by the portable kernel, if its inputs are
 * constant and its bits are equal on every machine (epctx__folds). Joining steps is left to a pass
 * of its own (>>fuse), for which lowering marks those that may (`joins`).
 * ============================================================ */

/* -- shape operators: the same data with another shape -- */

static epctx_status epctx__lower_alias(epctx__compiler *c, uint32_t x, const epctx__shape *shape) {
    if (epctx__count(shape) != c->tensors[x].count)
        return EPCTX__INVALID(c, "shape: expected %u elements, found %u", c->tensors[x].count,
                              epctx__count(shape));
    return epctx__alias(c, x, shape, 0, &c->y);
}

static epctx_status epctx__lower_identity(epctx__compiler *c) {
    const epctx__shape shape = c->tensors[c->in[0]].shape;
    return epctx__lower_alias(c, c->in[0], &shape);
}

/* The identity, as nothing is dropped; the mask is all true. */
static epctx_status epctx__lower_dropout(epctx__compiler *c) {
    const epctx__shape shape = c->tensors[c->in[0]].shape;
    uint32_t rate = c->in[1], mode = c->in[2], mask;
    float ratio = 0.5f;
    bool training = false;
    if (mode != EPCTX__NONE) EPCTX__TRY(epctx__const_bool(c, mode, "training_mode", &training));
    if (training && rate != EPCTX__NONE) EPCTX__TRY(epctx__const_float(c, rate, "ratio", &ratio));
    EPCTX__TRY(epctx__want_rank(c, rate, "ratio", 0, 0));
    EPCTX__TRY(epctx__want_rank(c, mode, "training_mode", 0, 0));
    if ((training && ratio != 0.0f) ||
        (c->node->version < 7 && epctx_node_int(c->node, "is_test", 0) == 0))
        return EPCTX__REFUSE(c, "training mode, which drops elements, is not supported");
    if (c->node->version < 12) {
        EPCTX__TRY(epctx__unused_outputs(c, 1));
    } else if (c->node->output_count > 1) {
        EPCTX__TRY(epctx__emit_filled(c, EPCTX_ONNX_BOOL, &shape, 1, !c->tensors[c->in[0]].constant,
                                      &mask));
        EPCTX__TRY(epctx__set_output(c, 1, mask));
    }
    return epctx__lower_identity(c);
}

static epctx_status epctx__lower_reshape(epctx__compiler *c) {
    const bool allow_zero = epctx_node_int(c->node, "allowzero", 0) != 0;
    const epctx__shape in = c->tensors[c->in[0]].shape;
    const uint64_t all = c->tensors[c->in[0]].count;
    epctx__shape shape = {0, {0}};
    epctx__list wanted;
    uint64_t known = 1;
    uint32_t free_dim = EPCTX__NONE, i;
    EPCTX__TRY(epctx__ints_of(c, "shape", 1, 5, &wanted));
    if (!wanted.found || wanted.count > EPCTX_NPU_MAX_RANK)
        return EPCTX__REFUSE(c, "shape: expected at most %u dimensions, found %u",
                             (uint64_t)EPCTX_NPU_MAX_RANK, (uint64_t)wanted.count);
    shape.rank = (uint32_t)wanted.count;
    for (i = 0; i < shape.rank; i++) {
        int64_t d = wanted.v[i];
        if (d == 0 && !allow_zero) {
            if (i >= in.rank)
                return EPCTX__INVALID(c, "shape: 0 in dimension %u, which the input does not have",
                                      (uint64_t)i);
            d = in.dims[i];
        }
        if (d < -1 || (d == -1 && free_dim != EPCTX__NONE))
            return EPCTX__INVALID(c, "shape: invalid %d in dimension %u", d, (uint64_t)i);
        if (d == -1)
            free_dim = i;
        else
            known = epctx__mul(known, (uint64_t)d);
        shape.dims[i] = d;
    }
    if (free_dim != EPCTX__NONE) {
        if (known == 0 || all % known != 0)
            return EPCTX__INVALID(c, "shape: cannot infer -1, %u elements are not a multiple of %u",
                                  all, known);
        shape.dims[free_dim] = (int64_t)(all / known);
    }
    return epctx__lower_alias(c, c->in[0], &shape);
}

/* [outer][inner], the latter from an axis on. */
static epctx__shape epctx__flat(const epctx__shape *shape, uint32_t axis) {
    const epctx__shape flat = {2,
                               {(int64_t)epctx__product(shape, 0, axis),
                                (int64_t)epctx__product(shape, axis, shape->rank)}};
    return flat;
}

static epctx_status epctx__lower_flatten(epctx__compiler *c) {
    epctx__shape shape = c->tensors[c->in[0]].shape;
    uint32_t axis;
    EPCTX__TRY(epctx__axis_attr(c, 1, shape.rank, 1, &axis));
    shape = epctx__flat(&shape, axis);
    return epctx__lower_alias(c, c->in[0], &shape);
}

/* Marks the axes of a list; EPCTX_ERR_GRAPH: one is out of range or occurs twice. */
static epctx_status epctx__mark_axes(epctx__compiler *c, const int64_t *axes, size_t count,
                                     uint32_t rank, bool *marked) {
    size_t i;
    for (i = 0; i < count; i++) {
        uint32_t axis;
        EPCTX__TRY(epctx__axis(c, axes[i], rank, 0, &axis));
        if (marked[axis]) return EPCTX__INVALID(c, "axis %u occurs twice", (uint64_t)axis);
        marked[axis] = true;
    }
    return EPCTX_OK;
}

/* The axes of an attribute or input (epctx__ints_of), from 0 on, each once; default: all. */
static epctx_status epctx__all_axes(epctx__compiler *c, uint32_t rank, size_t input, int64_t since,
                                    epctx__list *axes) {
    bool marked[EPCTX_NPU_MAX_RANK] = {false};
    uint32_t axis, i;
    EPCTX__TRY(epctx__ints_of(c, "axes", input, since, axes));
    for (i = 0; i < rank && !axes->found; i++) axes->v[axes->count++] = (int64_t)i;
    for (i = 0; i < axes->count; i++) {
        EPCTX__TRY(epctx__axis(c, axes->v[i], rank, 0, &axis));
        axes->v[i] = (int64_t)axis;
    }
    return epctx__mark_axes(c, axes->v, axes->count, rank, marked);
}

static epctx_status epctx__lower_squeeze(epctx__compiler *c) {
    const epctx__shape in = c->tensors[c->in[0]].shape;
    bool marked[EPCTX_NPU_MAX_RANK] = {false};
    epctx__shape shape = {0, {0}};
    epctx__list axes;
    uint32_t i;
    EPCTX__TRY(epctx__ints_of(c, "axes", 1, 13, &axes));
    EPCTX__TRY(epctx__mark_axes(c, axes.v, axes.count, in.rank, marked));
    for (i = 0; i < in.rank; i++) {
        if (marked[i] && in.dims[i] != 1)
            return EPCTX__INVALID(c, "axis %u: expected dimension 1, found %d", (uint64_t)i,
                                  in.dims[i]);
        if (axes.count > 0 ? !marked[i] : in.dims[i] != 1) /* none: as ONNX Runtime, all of 1 */
            shape.dims[shape.rank++] = in.dims[i];
    }
    return epctx__lower_alias(c, c->in[0], &shape);
}

static epctx_status epctx__lower_unsqueeze(epctx__compiler *c) {
    const epctx__shape in = c->tensors[c->in[0]].shape;
    bool marked[EPCTX_NPU_MAX_RANK] = {false};
    epctx__shape shape = in;
    epctx__list axes;
    uint32_t i, from = 0;
    EPCTX__TRY(epctx__ints_of(c, "axes", 1, 13, &axes));
    if (!axes.found || in.rank + axes.count > EPCTX_NPU_MAX_RANK)
        return EPCTX__REFUSE(c, "axes: expected a result of rank <= %u",
                             (uint64_t)EPCTX_NPU_MAX_RANK);
    shape.rank += (uint32_t)axes.count;
    EPCTX__TRY(epctx__mark_axes(c, axes.v, axes.count, shape.rank, marked));
    for (i = 0; i < shape.rank; i++) shape.dims[i] = marked[i] ? 1 : in.dims[from++];
    return epctx__lower_alias(c, c->in[0], &shape);
}

/* -- constants -- */

static epctx_status epctx__import_tensor(epctx__compiler *c, const epctx_tensor *from,
                                         uint32_t *id);

static epctx_status epctx__lower_constant(epctx__compiler *c) {
    const epctx_node *node = c->node;
    const epctx_attr *a = node->attr_count == 1 ? &node->attrs[0] : NULL;
    epctx__shape shape = {0, {0}};
    const void *from;
    void *data;
    bool ints;
    if (a == NULL)
        return EPCTX__INVALID(c, "expected one attribute, found %u", (uint64_t)node->attr_count);
    if (a->type == EPCTX_ATTR_TENSOR && a->t != NULL) {
        EPCTX__TRY(epctx__import_tensor(c, a->t, &c->y));
        if (c->tensors[c->y].elem == 0)
            return EPCTX__REFUSE(c, "expected " EPCTX__TYPES ", found %s",
                                 epctx_elem_name(a->t->elem_type));
        return EPCTX_OK;
    }
    ints = a->type == EPCTX_ATTR_INT || a->type == EPCTX_ATTR_INTS;
    if (a->type == EPCTX_ATTR_INTS || a->type == EPCTX_ATTR_FLOATS) {
        shape.rank = 1;
        shape.dims[0] = (int64_t)a->count;
        from = ints ? (const void *)a->ints : a->floats;
    } else if (a->type == EPCTX_ATTR_INT || a->type == EPCTX_ATTR_FLOAT) {
        from = ints ? (const void *)&a->i : &a->f;
    } else {
        return EPCTX__REFUSE(c, "attribute '%S': expected numbers", &a->name);
    }
    EPCTX__TRY(
        epctx__add_constant(c, ints ? EPCTX_ONNX_INT64 : EPCTX_ONNX_FLOAT, &shape, &data, &c->y));
    if (from != NULL) memcpy(data, from, (size_t)c->tensors[c->y].count * (ints ? 8 : 4));
    return EPCTX_OK;
}

static epctx_status epctx__shape_from(epctx__compiler *c, const int64_t *dims, size_t count,
                                      epctx__shape *shape) {
    size_t i;
    memset(shape, 0, sizeof *shape);
    if (count > EPCTX_NPU_MAX_RANK)
        return EPCTX__REFUSE(c, "expected rank <= %u, found %u", (uint64_t)EPCTX_NPU_MAX_RANK,
                             (uint64_t)count);
    shape->rank = (uint32_t)count;
    for (i = 0; i < count; i++) {
        if (dims[i] < 0)
            return EPCTX__INVALID(c, "dimension %u: expected >= 0, found %d", (uint64_t)i, dims[i]);
        shape->dims[i] = dims[i];
    }
    return EPCTX_OK;
}

/* Reads a shape from a constant. */
static epctx_status epctx__const_shape(epctx__compiler *c, uint32_t id, const char *what,
                                       epctx__shape *shape) {
    int64_t dims[EPCTX_NPU_MAX_RANK];
    size_t count;
    EPCTX__TRY(epctx__const_ints(c, id, what, EPCTX_NPU_MAX_RANK, dims, &count));
    return epctx__shape_from(c, dims, count, shape);
}

/* The bits of a constant of one element. */
static epctx_status epctx__const_bits(epctx__compiler *c, uint32_t id, uint64_t *bits) {
    const uint32_t size = epctx__stored_size(c->tensors[id].elem);
    const void *data;
    EPCTX__TRY(epctx__data(c, id, &data));
    *bits = size == 8   ? *(const uint64_t *)data
            : size == 4 ? *(const uint32_t *)data
                        : *(const uint8_t *)data;
    return EPCTX_OK;
}

static epctx_status epctx__lower_constant_of_shape(epctx__compiler *c) {
    const epctx_attr *value = epctx_node_attr(c->node, "value");
    epctx__shape shape;
    int32_t elem = EPCTX_ONNX_FLOAT;
    uint64_t bits = 0;
    uint32_t id;
    EPCTX__TRY(epctx__const_shape(c, c->in[0], "shape", &shape));
    if (value != NULL) {
        if (value->type != EPCTX_ATTR_TENSOR || value->t == NULL)
            return epctx__bad_attr(c, "value", "a tensor");
        EPCTX__TRY(epctx__import_tensor(c, value->t, &id));
        elem = c->tensors[id].elem;
        if (epctx__elem_size(elem) == 0 || c->tensors[id].count != 1)
            return epctx__bad_attr(c, "value", "one element of a supported type");
        EPCTX__TRY(epctx__const_bits(c, id, &bits));
    }
    return epctx__emit_filled(c, elem, &shape, bits, false, &c->y);
}

/* -- element-wise -- */

/* Neg, Abs and Relu of integers. */
static epctx_status epctx__lower_int_act(epctx__compiler *c, epctx__act_kind kind) {
    epctx__formula r = epctx__formula_of(c->in[0]);
    if (kind == EPCTX__ACT_NEG) return epctx__evaluate_y(c, &r, "y = 0 - x");
    if (kind == EPCTX__ACT_ABS &&
        (c->tensors[r.v.x].elem == EPCTX_ONNX_UINT8 || c->narrow == EPCTX_ONNX_UINT64))
        return epctx__lower_identity(c);
    if (kind == EPCTX__ACT_ABS) return epctx__evaluate_y(c, &r, "y = max(x, 0 - x)");
    if (kind == EPCTX__ACT_RELU) return epctx__evaluate_y(c, &r, "y = max(0, x)");
    return epctx__want_float(c, c->in[0]);
}

static epctx_status epctx__lower_act_of(epctx__compiler *c, epctx__act_kind kind, float a,
                                        float b) {
    const size_t before = c->step_count;
    if (c->tensors[c->in[0]].elem != EPCTX_ONNX_FLOAT) return epctx__lower_int_act(c, kind);
    EPCTX__TRY(epctx__emit_act(c, c->in[0], kind, a, b, &c->y));
    epctx__may_join(c, before);
    return EPCTX_OK;
}

/* Activations with parameters: attributes ("": a constant) and their defaults. */
static const struct {
    epctx__act_kind kind;
    const char *a_name;
    float a;
    const char *b_name;
    float b;
} epctx__numbered_acts[] = {
    {EPCTX__ACT_LEAKY, "alpha", 0.01f, "", 0.0f},
    {EPCTX__ACT_ELU, "alpha", 1.0f, "", 0.0f},
    {EPCTX__ACT_CELU, "alpha", 1.0f, "", 0.0f},
    {EPCTX__ACT_SELU, "alpha", 1.67326319f, "gamma", 1.05070102f},
    {EPCTX__ACT_SWISH, "alpha", 1.0f, "", 0.0f},
    {EPCTX__ACT_THRESHOLD, "alpha", 1.0f, "", 0.0f},
    {EPCTX__ACT_SHRINK, "lambd", 0.5f, "bias", 0.0f},
    {EPCTX__ACT_HARD_SIGMOID, "alpha", 0.2f, "beta", 0.5f},
    {EPCTX__ACT_HARD_SWISH, "", 1.0f / 6.0f, "", 0.5f},
};

static epctx_status epctx__lower_act(epctx__compiler *c) {
    const epctx__act_kind kind = (epctx__act_kind)c->variant;
    float a = 0.0f, b = 0.0f;
    size_t i;
    for (i = 0; i < sizeof epctx__numbered_acts / sizeof epctx__numbered_acts[0]; i++) {
        if (epctx__numbered_acts[i].kind != kind) continue;
        a = epctx_node_float(c->node, epctx__numbered_acts[i].a_name, epctx__numbered_acts[i].a);
        b = epctx_node_float(c->node, epctx__numbered_acts[i].b_name, epctx__numbered_acts[i].b);
    }
    return epctx__lower_act_of(c, kind, a, b);
}

static epctx_status epctx__lower_gelu(epctx__compiler *c) {
    uint32_t form;
    EPCTX__TRY(epctx__choice(c, "approximate", "none tanh", &form));
    return epctx__lower_act_of(c, form == 0 ? EPCTX__ACT_GELU : EPCTX__ACT_GELU_TANH, 0.0f, 0.0f);
}

/* The extreme number of a float type, which ONNX Runtime takes for a missing bound. Integers need
 * no bound: *id stays as it is. */
static epctx_status epctx__clip_end(epctx__compiler *c, int32_t elem, bool top, uint32_t *id) {
    const epctx__shape scalar = {0, {0}};
    const bool wide = elem == EPCTX_ONNX_DOUBLE;
    const uint64_t bits = wide ? UINT64_C(0x7fefffffffffffff) : 0x7f7fffff;
    const uint64_t sign = wide ? UINT64_C(1) << 63 : 0x80000000;
    if (!wide && elem != EPCTX_ONNX_FLOAT) return EPCTX_OK;
    return epctx__emit_filled(c, elem, &scalar, top ? bits : bits | sign, false, id);
}

/* A bound that is known only at run time. A NaN does not limit, as in ONNX Runtime. */
static epctx_status epctx__clip_bound(epctx__compiler *c, int32_t elem, bool top, uint32_t *id) {
    uint32_t number, end = EPCTX__NONE;
    EPCTX__TRY(epctx__clip_end(c, elem, top, &end));
    if (*id == EPCTX__NONE) *id = end;
    if (*id == end || end == EPCTX__NONE) return EPCTX_OK;
    EPCTX__TRY(epctx__emit_exact(c, EPCTX__EXACT_EQUAL, *id, *id, &number));
    return epctx__emit_where(c, number, *id, end, id);
}

static epctx_status epctx__lower_clip(epctx__compiler *c) {
    static const char *const names[2] = {"min", "max"};
    const int32_t elem = c->tensors[c->in[0]].elem;
    const bool floats = elem == EPCTX_ONNX_FLOAT;
    float limits[2] = {-FLT_MAX, FLT_MAX};
    uint32_t ids[2] = {EPCTX__NONE, EPCTX__NONE}, y = c->in[0], i;
    bool constant = floats;
    if (!floats && c->node->version < 11)
        return EPCTX__REFUSE(c, "before version 11: expected floats of up to 32 bits");
    for (i = 0; i < 2; i++) {
        if (floats && c->node->version < 11)
            limits[i] = epctx_node_float(c->node, names[i], limits[i]);
        else
            EPCTX__TRY(epctx__optional(c, i + 1, &ids[i]));
        EPCTX__TRY(epctx__want_rank(c, ids[i], names[i], 0, 1));
        constant = constant && (ids[i] == EPCTX__NONE || c->tensors[ids[i]].constant);
    }
    for (i = 0; i < 2; i++) {
        if (ids[i] != EPCTX__NONE && floats) EPCTX__TRY(epctx__want_float(c, ids[i]));
        if (!constant) EPCTX__TRY(epctx__clip_bound(c, elem, i == 1, &ids[i]));
        if (ids[i] == EPCTX__NONE) continue;
        if (constant) {
            EPCTX__TRY(epctx__const_float(c, ids[i], names[i], &limits[i]));
            continue;
        }
        if (c->tensors[ids[i]].count != 1)
            return EPCTX__INVALID(c, "min and max: expected scalars");
        EPCTX__TRY(
            epctx__emit_any(c, i == 0 ? EPCTX__BINARY_MAX : EPCTX__BINARY_MIN, y, ids[i], &y));
    }
    if (y == c->in[0] && !floats) return epctx__lower_identity(c);
    c->y = y;
    if (!constant) return EPCTX_OK;
    if (limits[1] < limits[0]) /* ONNX: every element becomes max */
        limits[0] = limits[1];
    return epctx__lower_act_of(c, EPCTX__ACT_CLIP, limits[0], limits[1]);
}

/* Opsets before 7 broadcast only with attribute `broadcast`, the second input from `axis` on. */
static epctx_status epctx__old_broadcast(epctx__compiler *c, uint32_t a, uint32_t *b) {
    epctx__shape shape = {0, {0}};
    const epctx_attr *attr = epctx_node_attr(c->node, "axis");
    uint32_t axis, rank = c->tensors[a].shape.rank, i;
    if (c->node->version >= 7 || epctx_node_int(c->node, "broadcast", 0) == 0 || attr == NULL ||
        c->tensors[*b].shape.rank > rank)
        return EPCTX_OK;
    EPCTX__TRY(epctx__axis(c, attr->i, rank, 0, &axis));
    if (axis + c->tensors[*b].shape.rank > rank)
        return epctx__bad_attr(c, "axis", "an axis from which the second input fits");
    shape.rank = rank - axis;
    for (i = 0; i < shape.rank; i++)
        shape.dims[i] = i < c->tensors[*b].shape.rank ? c->tensors[*b].shape.dims[i] : 1;
    return epctx__alias(c, *b, &shape, 0, b);
}

/* Combines two operands by a step that may join the one that computes either. */
static epctx_status epctx__emit_joining(epctx__compiler *c, epctx__binary_kind kind, uint32_t a,
                                        uint32_t b, uint32_t *y) {
    const size_t before = c->step_count;
    EPCTX__TRY(epctx__emit_any(c, kind, a, b, y));
    epctx__may_join(c, before);
    return EPCTX_OK;
}

static epctx_status epctx__lower_binary(epctx__compiler *c) {
    EPCTX__TRY(epctx__old_broadcast(c, c->in[0], &c->in[1]));
    return epctx__emit_joining(c, (epctx__binary_kind)c->variant, c->in[0], c->in[1], &c->y);
}

/* A vector along an axis of a tensor of `rank`. */
static epctx_status epctx__along_axis(epctx__compiler *c, uint32_t *x, uint32_t rank,
                                      uint32_t axis) {
    epctx__shape shape = {0, {1, 1, 1, 1, 1, 1, 1, 1}};
    shape.rank = rank;
    shape.dims[axis] = (int64_t)c->tensors[*x].count;
    return epctx__alias(c, *x, &shape, 0, x);
}

static epctx_status epctx__lower_prelu(epctx__compiler *c) {
    const uint32_t rank = c->tensors[c->in[0]].shape.rank;
    uint32_t slope = c->in[1];
    if (c->node->version < 7 && c->tensors[slope].shape.rank == 1 && rank > 2)
        EPCTX__TRY(epctx__along_axis(c, &slope, rank - 1, 0)); /* old opsets: one per channel */
    EPCTX__TRY(epctx__emit_binary(c, EPCTX__BINARY_PRELU, c->in[0], slope, &c->y));
    return epctx__same_shape(&c->tensors[c->in[0]].shape, &c->tensors[c->y].shape)
               ? EPCTX_OK
               : EPCTX__INVALID(c, "slope: cannot broadcast to the input");
}

/* Sum, Min, Max, Mean (DIV): any number of inputs, left to right. */
static epctx_status epctx__lower_many(epctx__compiler *c) {
    const bool mean = c->variant == EPCTX__BINARY_DIV;
    const epctx__binary_kind kind = mean ? EPCTX__BINARY_ADD : (epctx__binary_kind)c->variant;
    uint32_t b;
    size_t i;
    if (c->node->input_count == 1 && !mean) return epctx__lower_identity(c);
    c->y = c->in[0];
    for (i = 1; i < c->node->input_count; i++) {
        EPCTX__TRY(epctx__input(c, i, &b));
        if (c->node->version < 8 &&
            !epctx__same_shape(&c->tensors[b].shape, &c->tensors[c->in[0]].shape))
            return EPCTX__INVALID(c, "before opset 8: expected inputs of one shape");
        EPCTX__TRY(epctx__emit_joining(c, kind, c->y, b, &c->y));
    }
    if (!mean) return EPCTX_OK;
    EPCTX__TRY(epctx__scalar_float(c, (float)c->node->input_count, &b));
    return epctx__emit_binary(c, EPCTX__BINARY_DIV, c->y, b, &c->y);
}

static epctx_status epctx__lower_cast(epctx__compiler *c) {
    int64_t to = epctx_node_int(c->node, "to", 0);
    const uint32_t x = c->in[0];
    if (c->variant != 0) to = c->tensors[c->in[1]].elem; /* CastLike */
    if (epctx__stored_size(to) == 0)
        return epctx__in_attr(
            c, "to",
            EPCTX__REFUSE(c, "expected " EPCTX__TYPES ", found %s", epctx_elem_name((int32_t)to)));
    if (to == c->tensors[x].elem) return epctx__lower_identity(c);
    return epctx__emit_cast(c, x, (int32_t)to, &c->y);
}

/* -- comparisons, logic, selection -- */

#define EPCTX__SWAPPED 0x100u /* swaps the operands */

static epctx_status epctx__lower_exact(epctx__compiler *c) {
    const epctx__exact_kind kind = (epctx__exact_kind)(c->variant % EPCTX__SWAPPED);
    const uint32_t swap = c->variant / EPCTX__SWAPPED;
    if (swap == 0) EPCTX__TRY(epctx__old_broadcast(c, c->in[0], &c->in[1]));
    return epctx__emit_exact(c, kind, c->in[swap], c->in[1 - swap], &c->y);
}

static epctx_status epctx__lower_bit_shift(epctx__compiler *c) {
    uint32_t right;
    EPCTX__TRY(epctx__choice(c, "direction", "LEFT RIGHT", &right));
    c->variant = right != 0 ? EPCTX__EXACT_RIGHT : EPCTX__EXACT_LEFT;
    return epctx__lower_exact(c);
}

static epctx_status epctx__lower_not(epctx__compiler *c) {
    uint32_t one;
    EPCTX__TRY(epctx__scalar(c, EPCTX_ONNX_BOOL, 1, &one)); /* x may be of another type */
    return epctx__emit_exact(c, EPCTX__EXACT_XOR, c->in[0], one, &c->y);
}

/* Only NaN does not equal itself. */
static epctx_status epctx__lower_is_nan(epctx__compiler *c) {
    EPCTX__TRY(epctx__emit_exact(c, EPCTX__EXACT_EQUAL, c->in[0], c->in[0], &c->y));
    return epctx__emit_integer(c, EPCTX__EXACT_XOR, c->y, 1, &c->y);
}

/* Compares with both infinities, or with NaN, which equals nothing. */
static epctx_status epctx__lower_is_inf(epctx__compiler *c) {
    const uint32_t never = 0x7fc00000u;
    const bool low = epctx_node_int(c->node, "detect_negative", 1) != 0;
    const bool high = epctx_node_int(c->node, "detect_positive", 1) != 0;
    epctx__formula r = epctx__formula_of(c->in[0]);
    EPCTX__TRY(epctx__scalar_float(c, epctx__float_of(low ? 0xff800000u : never), &r.v.a));
    EPCTX__TRY(epctx__scalar_float(c, epctx__float_of(high ? 0x7f800000u : never), &r.v.b));
    return epctx__evaluate_y(c, &r, "y = x == a | x == b");
}

static epctx_status epctx__lower_where(epctx__compiler *c) {
    return epctx__emit_where(c, c->in[0], c->in[1], c->in[2], &c->y);
}

static epctx_status epctx__lower_mod(epctx__compiler *c) {
    return epctx_node_int(c->node, "fmod", 0) != 0
               ? epctx__emit_any(c, EPCTX__BINARY_FMOD, c->in[0], c->in[1], &c->y)
               : epctx__emit_exact(c, EPCTX__EXACT_MOD, c->in[0], c->in[1], &c->y);
}

/* Common constant exponents become cheaper steps. */
static epctx_status epctx__lower_pow(epctx__compiler *c) {
    const int32_t type = c->tensors[c->in[0]].elem;
    uint32_t x, e, y;
    float exponent;
    if (type != EPCTX_ONNX_FLOAT)
        return EPCTX__REFUSE(c, "expected floats of up to 32 bits: others have no exact power");
    EPCTX__TRY(epctx__emit_cast(c, c->in[0], EPCTX_ONNX_FLOAT, &x));
    EPCTX__TRY(epctx__emit_cast(c, c->in[1], EPCTX_ONNX_FLOAT, &e));
    if (c->tensors[e].constant && c->tensors[e].count == 1 && c->tensors[e].shape.rank <= 1 &&
        c->tensors[x].shape.rank >= c->tensors[e].shape.rank) {
        EPCTX__TRY(epctx__const_float(c, e, "exponent", &exponent));
        if (exponent == 2.0f) return epctx__emit_binary(c, EPCTX__BINARY_MUL, x, x, &c->y);
        if (exponent == -1.0f || exponent == 3.0f) /* no root for 0.5: of -inf that is NaN */
            return epctx__emit_act(c, x, exponent == 3.0f ? EPCTX__ACT_CUBE : EPCTX__ACT_RECIPROCAL,
                                   0.0f, 0.0f, &c->y);
    }
    EPCTX__TRY(epctx__emit_binary(c, EPCTX__BINARY_POW, x, e, &y));
    c->y = y;
    return EPCTX_OK;
}

/* -- moving data -- */

/* Axis i of the result is axis perm[i] of `x`. */
static epctx_status epctx__emit_transpose(epctx__compiler *c, uint32_t x, const int64_t *perm,
                                          uint32_t *y) {
    int64_t dense[EPCTX_NPU_MAX_RANK], from[EPCTX_NPU_MAX_RANK];
    epctx__shape shape = c->tensors[x].shape;
    uint32_t i, last = 0;
    bool moves = false;
    epctx__dense(&c->tensors[x].shape, dense);
    for (i = 0; i < shape.rank; i++) {
        const uint32_t axis = (uint32_t)(perm[i] < 0 ? perm[i] + (int64_t)shape.rank : perm[i]);
        shape.dims[i] = c->tensors[x].shape.dims[axis];
        from[i] = dense[axis];
        if (shape.dims[i] != 1) { /* permuting dimensions of 1 moves no data */
            moves = moves || axis < last;
            last = axis;
        }
    }
    return moves ? epctx__emit_strided(c, x, &shape, 0, from, y) : epctx__alias(c, x, &shape, 0, y);
}

static epctx_status epctx__lower_transpose(epctx__compiler *c) {
    int64_t perm[EPCTX_NPU_MAX_RANK];
    bool marked[EPCTX_NPU_MAX_RANK] = {false};
    uint32_t x = c->in[0], i, rank;
    rank = c->tensors[x].shape.rank;
    EPCTX__TRY(epctx__ints(c, "perm", rank, 0, perm));
    for (i = 0; i < rank && epctx_node_attr(c->node, "perm") == NULL; i++)
        perm[i] = (int64_t)(rank - 1 - i);
    EPCTX__TRY(epctx__mark_axes(c, perm, rank, rank, marked));
    return epctx__emit_transpose(c, x, perm, &c->y);
}

/* Copies `x` into `y`, from place `at` of an axis on. */
static epctx_status epctx__put_part(epctx__compiler *c, uint32_t x, uint32_t y, uint32_t axis,
                                    int64_t at) {
    const epctx__shape part = c->tensors[x].shape;
    int64_t to[EPCTX_NPU_MAX_RANK];
    epctx__dense(&c->tensors[y].shape, to);
    return epctx__emit_move(c, x, y, &part, 0, (uint64_t)(at * to[axis]), NULL, to);
}

/* Gives a tensor its memory before steps write parts of it, so that none of them is folded. */
static epctx_status epctx__at_run_time(epctx__compiler *c, uint32_t id) {
    const epctx__tensor *t = &c->tensors[id];
    return epctx__add_buffer(c, t->count * epctx__stored_size(t->elem), &c->tensors[id].buffer);
}

static epctx_status epctx__emit_concat(epctx__compiler *c, const uint32_t *ids, size_t count,
                                       uint32_t axis, uint32_t *y) {
    epctx__shape shape = c->tensors[ids[0]].shape;
    size_t constants = 0, i;
    int64_t at = 0;
    uint32_t j;
    shape.dims[axis] = 0;
    for (i = 0; i < count; i++) {
        const epctx__tensor *t = &c->tensors[ids[i]];
        for (j = 0; j < shape.rank && t->shape.rank == shape.rank; j++)
            if (j != axis && t->shape.dims[j] != shape.dims[j]) break;
        if (j != shape.rank || t->elem != c->tensors[ids[0]].elem)
            return EPCTX__INVALID(c, "input '%S': expected type and shape of the first one",
                                  &t->name);
        shape.dims[axis] += t->shape.dims[axis];
        constants += t->constant;
    }
    EPCTX__TRY(epctx__new_tensor(c, c->tensors[ids[0]].elem, &shape, y));
    if (constants > 0 && constants < count) EPCTX__TRY(epctx__at_run_time(c, *y));
    for (i = 0; i < count; i++) {
        if (c->tensors[ids[i]].count > 0 || constants == count)
            EPCTX__TRY(epctx__put_part(c, ids[i], *y, axis, at));
        at += c->tensors[ids[i]].shape.dims[axis];
    }
    return EPCTX_OK;
}

static epctx_status epctx__lower_concat(epctx__compiler *c) {
    uint32_t *ids, axis;
    size_t i;
    EPCTX__MAKE(c, ids, uint32_t, c->node->input_count);
    EPCTX__TRY(epctx__input(c, 0, &ids[0]));
    EPCTX__TRY(
        epctx__axis_attr(c, c->node->version < 4 ? 1 : 0, c->tensors[ids[0]].shape.rank, 0, &axis));
    for (i = 1; i < c->node->input_count; i++) EPCTX__TRY(epctx__input(c, i, &ids[i]));
    return epctx__emit_concat(c, ids, c->node->input_count, axis, &c->y);
}

/* A strided box of a tensor. A box that is contiguous in memory is not copied. */
static epctx_status epctx__take_box(epctx__compiler *c, uint32_t x, const epctx__shape *box,
                                    const int64_t *start, const int64_t *step, uint32_t *y) {
    int64_t dense[EPCTX_NPU_MAX_RANK], from[EPCTX_NPU_MAX_RANK];
    const epctx__shape in = c->tensors[x].shape;
    uint64_t first = 0;
    bool whole = epctx__count(box) > 0, inner_full = true;
    uint32_t d;
    epctx__dense(&in, dense);
    for (d = in.rank; d-- > 0;) {
        from[d] = dense[d] * step[d];
        first += (uint64_t)(start[d] * dense[d]);
        if (box->dims[d] > 1 && (step[d] != 1 || !inner_full)) whole = false;
        inner_full = inner_full && box->dims[d] == in.dims[d];
    }
    if (whole) return epctx__alias(c, x, box, first, y);
    return epctx__emit_strided(c, x, box, first, from, y);
}

/* Elements `index` to `index` + `count` of an axis. */
static epctx_status epctx__take_one(epctx__compiler *c, uint32_t x, uint32_t axis, int64_t index,
                                    int64_t count, uint32_t *y) {
    int64_t start[EPCTX_NPU_MAX_RANK] = {0};
    const int64_t step[EPCTX_NPU_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1};
    epctx__shape box = c->tensors[x].shape;
    start[axis] = index;
    box.dims[axis] = count;
    return epctx__take_box(c, x, &box, start, step, y);
}

/* One axis of Slice, by ONNX rules: negative values count from the end, then all are clamped. */
static void epctx__slice_axis(int64_t size, int64_t start, int64_t end, int64_t step,
                              int64_t *first, int64_t *count) {
    const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
    uint64_t span, stride = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;
    start = start < 0 ? start + size : start;
    end = end < 0 ? end + size : end;
    start = start < 0 ? 0 : start;
    start = start > high ? high : start;
    end = end < low ? low : (end > high ? high : end);
    span = step > 0 ? (end > start ? (uint64_t)(end - start) : 0)
                    : (start > end ? (uint64_t)(start - end) : 0);
    *first = start < 0 ? 0 : start;
    *count = (int64_t)((span + stride - 1) / stride);
}

static epctx_status epctx__lower_shape(epctx__compiler *c) {
    const epctx__shape in = c->tensors[c->in[0]].shape;
    const int64_t rank = (int64_t)in.rank, start = epctx_node_int(c->node, "start", 0);
    epctx__shape shape = {1, {0}};
    int64_t first;
    void *data;
    epctx__slice_axis(rank, start, epctx_node_int(c->node, "end", rank), 1, &first, shape.dims);
    EPCTX__TRY(epctx__add_constant(c, EPCTX_ONNX_INT64, &shape, &data, &c->y));
    memcpy(data, in.dims + first, (size_t)shape.dims[0] * sizeof *in.dims);
    return EPCTX_OK;
}

static epctx_status epctx__lower_slice(epctx__compiler *c) {
    int64_t first[EPCTX_NPU_MAX_RANK] = {0}, step[EPCTX_NPU_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1};
    bool marked[EPCTX_NPU_MAX_RANK] = {false};
    epctx__list starts, ends, axes, steps;
    epctx__shape box = c->tensors[c->in[0]].shape;
    uint32_t axis;
    size_t i;
    EPCTX__TRY(epctx__ints_of(c, "starts", 1, 10, &starts));
    EPCTX__TRY(epctx__ints_of(c, "ends", 2, 10, &ends));
    EPCTX__TRY(epctx__ints_of(c, "axes", 3, 10, &axes));
    EPCTX__TRY(epctx__ints_of(c, "steps", 4, 10, &steps));
    if (starts.count != ends.count || (!axes.found && starts.count > box.rank) ||
        (axes.found && axes.count != starts.count) || (steps.found && steps.count != starts.count))
        return EPCTX__INVALID(c, "starts, ends, axes and steps: expected one length");
    for (i = 0; i < starts.count; i++) {
        int64_t s = steps.found ? steps.v[i] : 1;
        EPCTX__TRY(epctx__axis(c, axes.found ? axes.v[i] : (int64_t)i, box.rank, 0, &axis));
        if (s == 0 || marked[axis])
            return EPCTX__INVALID(c,
                                  "axis %u: expected once, with a step other than 0, found step %d",
                                  (uint64_t)axis, s);
        marked[axis] = true;
        epctx__slice_axis(box.dims[axis], starts.v[i], ends.v[i], s, &first[axis], &box.dims[axis]);
        step[axis] = box.dims[axis] > 1 ? s : 1;
    }
    return epctx__take_box(c, c->in[0], &box, first, step, &c->y);
}

static epctx_status epctx__lower_split(epctx__compiler *c) {
    const size_t parts = c->node->output_count;
    epctx__list sizes;
    int64_t first = 0, total, even;
    uint32_t y, axis;
    size_t i;
    EPCTX__TRY(epctx__axis_attr(c, 0, c->tensors[c->in[0]].shape.rank, 0, &axis));
    EPCTX__TRY(epctx__ints_of(c, "split", 1, 13, &sizes));
    total = c->tensors[c->in[0]].shape.dims[axis];
    if (parts == 0 || (sizes.found && sizes.count != parts))
        return EPCTX__INVALID(c, "split: expected a size for each of %u outputs, found %u",
                              (uint64_t)parts, (uint64_t)sizes.count);
    even = (total + (int64_t)parts - 1) / (int64_t)parts; /* the last part may be smaller */
    for (i = 0; i < parts; i++) {
        int64_t left = total - first;
        int64_t size = sizes.found ? sizes.v[i] : (even < left ? even : left);
        if (size < 1 || size > left || (i + 1 == parts && size != left))
            return EPCTX__INVALID(c, "split: part %u of %d elements, %d remain", (uint64_t)i, size,
                                  left);
        EPCTX__TRY(epctx__take_one(c, c->in[0], axis, first, size, &y));
        EPCTX__TRY(epctx__set_output(c, i, y));
        first += size;
    }
    return EPCTX_OK;
}

static epctx_status epctx__expand_to(epctx__compiler *c, uint32_t x, const epctx__shape *shape,
                                     uint32_t *y) {
    int64_t from[EPCTX_NPU_MAX_RANK];
    epctx__broadcast_strides(&c->tensors[x].shape, shape, from);
    return epctx__emit_strided(c, x, shape, 0, from, y);
}

static epctx_status epctx__lower_expand(epctx__compiler *c) {
    epctx__shape wanted, shape;
    EPCTX__TRY(epctx__const_shape(c, c->in[1], "shape", &wanted));
    EPCTX__TRY(epctx__broadcast(c, &c->tensors[c->in[0]].shape, &wanted, &shape));
    return epctx__expand_to(c, c->in[0], &shape, &c->y);
}

typedef enum epctx__pad_mode {
    EPCTX__PAD_CONSTANT = 0,
    EPCTX__PAD_REFLECT,
    EPCTX__PAD_EDGE
} epctx__pad_mode;

/* Reflect and edge: borders are copies with stride -1 or 0; each combination of parts is a box. */
static epctx_status epctx__pad_boxes(epctx__compiler *c, epctx__pad_mode mode, uint32_t x,
                                     uint32_t y, const int64_t *pads) {
    const epctx__shape in = c->tensors[x].shape, out = c->tensors[y].shape;
    const int64_t border = mode == EPCTX__PAD_REFLECT ? -1 : 0;
    int64_t dense_in[EPCTX_NPU_MAX_RANK], dense_out[EPCTX_NPU_MAX_RANK];
    uint32_t part[EPCTX_NPU_MAX_RANK] = {0}, i;
    epctx__dense(&in, dense_in);
    epctx__dense(&out, dense_out);
    for (i = 0; i < in.rank; i++) part[i] = mode == EPCTX__PAD_CONSTANT ? 1 : 0;
    for (;;) {
        int64_t strides[EPCTX_NPU_MAX_RANK], from_start = 0, to_start = 0;
        epctx__shape box = in;
        bool empty = false;
        for (i = 0; i < in.rank; i++) {
            const int64_t size = in.dims[i], before = pads[i], after = pads[in.rank + i];
            const int64_t cut = before < 0 ? -before : 0;
            const int64_t parts[3][4] = {
                /* size, first element read and written, step */
                {before, -border * before, 0, border},
                {size - cut + (after < 0 ? after : 0), cut, before > 0 ? before : 0, 1},
                {after, size - 1 + border, before + size, border}};
            const int64_t *p = parts[part[i]];
            box.dims[i] = p[0];
            empty = empty || p[0] <= 0;
            from_start += p[1] * dense_in[i];
            to_start += p[2] * dense_out[i];
            strides[i] = p[3] * dense_in[i];
        }
        if (!empty)
            EPCTX__TRY(epctx__emit_move(c, x, y, &box, (uint64_t)from_start, (uint64_t)to_start,
                                        strides, dense_out));
        if (mode == EPCTX__PAD_CONSTANT) return EPCTX_OK;
        for (i = in.rank; i > 0 && ++part[i - 1] == 3; i--) part[i - 1] = 0;
        if (i == 0) return EPCTX_OK;
    }
}

/* The pads of Pad: attribute, or constant input with optional axes. */
static epctx_status epctx__pads(epctx__compiler *c, uint32_t rank, int64_t *pads) {
    const char *name = c->node->version < 2 ? "paddings" : "pads";
    epctx__list list, axes;
    size_t i;
    EPCTX__TRY(epctx__ints_of(c, name, 1, 11, &list));
    EPCTX__TRY(epctx__all_axes(c, rank, 3, 18, &axes));
    if (!list.found || list.count != 2 * axes.count)
        return EPCTX__INVALID(c, "%s: expected %u integers, found %u", name,
                              (uint64_t)(2 * axes.count), (uint64_t)list.count);
    memset(pads, 0, 2 * EPCTX_NPU_MAX_RANK * sizeof *pads);
    for (i = 0; i < axes.count; i++) {
        pads[axes.v[i]] = list.v[i];
        pads[rank + (uint64_t)axes.v[i]] = list.v[axes.count + i];
    }
    return EPCTX_OK;
}

/* Pads by a constant of these bits, or as `mode` says; negative pads remove elements. */
static epctx_status epctx__emit_pad(epctx__compiler *c, epctx__pad_mode mode, uint32_t x,
                                    const int64_t *pads, uint64_t bits, uint32_t *y) {
    const int64_t top = EPCTX__MAX_BYTES;
    epctx__shape shape = c->tensors[x].shape;
    uint32_t i;
    for (i = 0; i < shape.rank; i++) {
        int64_t before = pads[i], after = pads[shape.rank + i], size = shape.dims[i];
        int64_t most = mode == EPCTX__PAD_CONSTANT ? top
                       : mode == EPCTX__PAD_EDGE   ? (size > 0 ? top : 0)
                                                   : size - 1;
        int64_t least = mode == EPCTX__PAD_CONSTANT ? -size : 0;
        if (before < least || after < least || before > most || after > most ||
            size + (before < 0 ? before : 0) + (after < 0 ? after : 0) < 0)
            return EPCTX__REFUSE(c, "pads: invalid %d and %d for dimension %u of %d elements",
                                 before, after, (uint64_t)i, size);
        shape.dims[i] = size + before + after;
    }
    EPCTX__TRY(mode == EPCTX__PAD_CONSTANT ? epctx__emit_filled(c, c->tensors[x].elem, &shape, bits,
                                                                !c->tensors[x].constant, y)
                                           : epctx__new_tensor(c, c->tensors[x].elem, &shape, y));
    return epctx__pad_boxes(c, mode, x, *y, pads);
}

/* More elements of these bits at the end of an axis. */
static epctx_status epctx__pad_axis(epctx__compiler *c, uint32_t x, uint32_t axis, int64_t more,
                                    uint64_t bits, uint32_t *y) {
    int64_t pads[2 * EPCTX_NPU_MAX_RANK] = {0};
    pads[c->tensors[x].shape.rank + axis] = more;
    return epctx__emit_pad(c, EPCTX__PAD_CONSTANT, x, pads, bits, y);
}

static epctx_status epctx__lower_pad(epctx__compiler *c) {
    const int32_t type = c->tensors[c->in[0]].elem;
    int64_t pads[2 * EPCTX_NPU_MAX_RANK];
    const uint32_t rank = c->tensors[c->in[0]].shape.rank;
    const float fill = epctx_node_float(c->node, "value", 0.0f);
    const double wide = (double)fill;
    uint64_t value = epctx__bits_of(fill);
    bool none = true;
    uint32_t mode, id, i;
    EPCTX__TRY(epctx__choice(c, "mode", "constant reflect edge wrap", &mode));
    if (mode > EPCTX__PAD_EDGE)
        return epctx__in_attr(c, "mode", EPCTX__REFUSE(c, "'wrap' is not supported"));
    EPCTX__TRY(epctx__pads(c, rank, pads));
    if (type == EPCTX_ONNX_DOUBLE) memcpy(&value, &wide, sizeof value);
    if (c->node->version >= 11) {
        value = 0;
        EPCTX__TRY(epctx__optional(c, 2, &id));
        if (id != EPCTX__NONE) {
            EPCTX__TRY(epctx__want_constant(c, id, "constant_value"));
            if (c->tensors[id].count != 1 || c->tensors[id].elem != type)
                return EPCTX__INVALID(c, "constant_value '%S': expected one element of type %s",
                                      &c->tensors[id].name, epctx_elem_name(type));
            EPCTX__TRY(epctx__const_bits(c, id, &value));
        }
    }
    for (i = 0; i < 2 * rank; i++) none = none && pads[i] == 0;
    if (none) return epctx__lower_identity(c);
    return epctx__emit_pad(c, (epctx__pad_mode)mode, c->in[0], pads, value, &c->y);
}

static epctx_status epctx__emit_gather(epctx__compiler *c, uint32_t x, uint32_t indices,
                                       uint32_t axis, uint32_t *y) {
    const epctx__shape in = c->tensors[x].shape, index = c->tensors[indices].shape;
    epctx__shape shape = in;
    epctx__step s = epctx__new_step(EPCTX__OP_GATHER, x, indices, 0);
    epctx__gather_params *p = &s.params.gather;
    uint32_t i;
    if (c->tensors[indices].elem == EPCTX_ONNX_FLOAT ||
        in.rank + index.rank - 1 > EPCTX_NPU_MAX_RANK || c->tensors[x].count == 0)
        return EPCTX__REFUSE(c, "expected integer indices and a result of rank <= %u",
                             (uint64_t)EPCTX_NPU_MAX_RANK);
    shape.rank = in.rank + index.rank - 1;
    for (i = axis; i < shape.rank; i++)
        shape.dims[i] = i - axis < index.rank ? index.dims[i - axis] : in.dims[i + 1 - index.rank];
    p->elem = epctx__stored_size(c->tensors[x].elem);
    p->index_elem = epctx__stored_size(c->tensors[indices].elem);
    epctx__dims_around(&in, axis, axis + 1, &p->outer, &p->axis, &p->inner);
    p->count = (uint32_t)c->tensors[indices].count;
    if (c->tensors[indices].constant) { /* checks constants now, not at run time */
        const void *data;
        int64_t v = 0;
        EPCTX__TRY(epctx__data(c, indices, &data));
        for (i = 0; i < p->count; i++) {
            v = epctx__index((const uint8_t *)data, i, p->index_elem);
            if (v < -(int64_t)p->axis || v >= (int64_t)p->axis)
                return EPCTX__INVALID(c, "index: expected %d..%d, found %d", -(int64_t)p->axis,
                                      (int64_t)p->axis - 1, v);
        }
        if (p->count == 1) { /* a part of the tensor */
            EPCTX__TRY(epctx__take_one(c, x, axis, v < 0 ? v + (int64_t)p->axis : v, 1, y));
            return epctx__alias(c, *y, &shape, 0, y);
        }
    }
    return epctx__emit_new(c, &s, c->tensors[x].elem, &shape, y);
}

static epctx_status epctx__lower_gather(epctx__compiler *c) {
    uint32_t axis;
    EPCTX__TRY(epctx__axis_attr(c, 0, c->tensors[c->in[0]].shape.rank, 0, &axis));
    return epctx__emit_gather(c, c->in[0], c->in[1], axis, &c->y);
}

/* -- more data movement -- */

static epctx_status epctx__lower_tile(epctx__compiler *c) {
    int64_t repeats[EPCTX_NPU_MAX_RANK], dense[EPCTX_NPU_MAX_RANK], from[EPCTX_NPU_MAX_RANK];
    const epctx__shape in = c->tensors[c->in[0]].shape;
    epctx__shape shape = in, walk = {0, {0}};
    uint32_t i;
    size_t count;
    EPCTX__TRY(epctx__const_ints(c, c->in[1], "repeats", EPCTX_NPU_MAX_RANK, repeats, &count));
    if (count != in.rank)
        return EPCTX__INVALID(c, "repeats: expected %u integers, found %u", (uint64_t)in.rank,
                              (uint64_t)count);
    /* [n] repeated r times is a walk over [r][n]; if n or r is 1, one dimension is enough */
    epctx__dense(&in, dense);
    for (i = 0; i < in.rank; i++) {
        const bool both = repeats[i] != 1 && in.dims[i] != 1;
        if (repeats[i] < 0 || repeats[i] > EPCTX__MAX_BYTES ||
            walk.rank + (both ? 2u : 1u) > EPCTX_NPU_MAX_RANK)
            return EPCTX__REFUSE(c, "repeats: %d of dimension %u is not supported", repeats[i],
                                 (uint64_t)i);
        shape.dims[i] *= repeats[i];
        if (both || in.dims[i] == 1) {
            from[walk.rank] = 0;
            walk.dims[walk.rank++] = repeats[i];
        }
        if (both || in.dims[i] != 1) {
            from[walk.rank] = dense[i];
            walk.dims[walk.rank++] = in.dims[i];
        }
    }
    EPCTX__TRY(epctx__emit_strided(c, c->in[0], &walk, 0, from, &c->y));
    c->tensors[c->y].shape = shape;
    return EPCTX_OK;
}

/* Selects with a constant triangular mask. */
static epctx_status epctx__lower_trilu(epctx__compiler *c) {
    const bool upper = epctx_node_int(c->node, "upper", 1) != 0;
    const epctx__shape shape = c->tensors[c->in[0]].shape;
    epctx__formula r = epctx__formula_of(c->in[0]);
    if (c->in[1] != EPCTX__NONE) EPCTX__TRY(epctx__const_ints(c, c->in[1], "k", 1, &r.n.k, NULL));
    if (shape.rank < 2 || r.n.k > EPCTX__MAX_BYTES || r.n.k < -(int64_t)EPCTX__MAX_BYTES)
        return EPCTX__INVALID(c, "expected rank >= 2, found %u with k %d", (uint64_t)shape.rank,
                              r.n.k);
    r.n.i = shape.dims[shape.rank - 2];
    r.n.j = shape.dims[shape.rank - 1];
    EPCTX__TRY(epctx__evaluate(c, &r, "i = range(#i)[i>i1] + #k; j = range(#j)[j>1j]"));
    return epctx__evaluate_y(c, &r, upper ? "y = where(i <= j, x, 0)" : "y = where(j <= i, x, 0)");
}

static epctx_status epctx__lower_range(epctx__compiler *c) {
    epctx__shape shape = {1, {0}};
    int64_t v[3] = {0}, n, i;
    float f[3] = {0};
    uint32_t id, j;
    int32_t type = 0;
    void *data;
    for (j = 0; j < 3; j++) {
        EPCTX__TRY(epctx__input(c, j, &id));
        if (j == 0) type = c->tensors[id].elem;
        if (type == EPCTX_ONNX_FLOAT)
            EPCTX__TRY(epctx__const_float(c, id, "limit", &f[j]));
        else
            EPCTX__TRY(epctx__const_ints(c, id, "limit", 1, &v[j], NULL));
        EPCTX__TRY(epctx__want_rank(c, id, "limit", 0, 0));
    }
    if (type == EPCTX_ONNX_FLOAT) {
        const double span = (double)epctx__f_add(f[1], -f[0]) / (double)f[2];
        if (!(span < 1e9) || f[2] == 0.0f) return EPCTX__REFUSE(c, "step 0, NaN or too many steps");
        n = span > 0.0 ? (int64_t)span : 0;
        n += (double)n < span ? 1 : 0;
    } else {
        const int64_t top = INT64_MAX / 4;
        for (j = 0; j < 3; j++)
            if (v[2] == 0 || v[j] > top || v[j] < -top)
                return EPCTX__REFUSE(c, "start %d, limit %d, delta %d: too large, or delta 0", v[0],
                                     v[1], v[2]);
        n = (v[1] - v[0] + v[2] - (v[2] > 0 ? 1 : -1)) / v[2];
    }
    shape.dims[0] = n > 0 ? n : 0;
    EPCTX__TRY(epctx__add_constant(c, type, &shape, &data, &c->y));
    for (i = 0; i < n; i++)
        if (type == EPCTX_ONNX_FLOAT)
            ((float *)data)[i] = epctx__f_add(f[0], epctx__f_mul((float)i, f[2]));
        else
            epctx__store_int((uint8_t *)data, (size_t)i, (uint32_t)type, v[0] + i * v[2]);
    return EPCTX_OK;
}

static epctx_status epctx__lower_eye_like(epctx__compiler *c) {
    const epctx__shape shape = c->tensors[c->in[0]].shape;
    const int32_t type = (int32_t)epctx_node_int(c->node, "dtype", c->tensors[c->in[0]].elem);
    epctx__formula r = epctx__formula_of(EPCTX__NONE);
    r.n.k = epctx_node_int(c->node, "k", 0);
    if (shape.rank != 2 || r.n.k > 1000000 || r.n.k < -1000000 || epctx__stored_size(type) == 0)
        return EPCTX__REFUSE(c,
                             "expected rank 2, |k| <= 1000000 and a type that the kernels support");
    r.n.i = shape.dims[0];
    r.n.j = shape.dims[1];
    EPCTX__TRY(epctx__evaluate(c, &r, "y = range(#i)[i>i1] + #k == range(#j)[j>1j]"));
    return epctx__emit_cast(c, r.v.y, type, &c->y);
}

static epctx_status epctx__lower_size(epctx__compiler *c) {
    const epctx__shape scalar = {0, {0}};
    void *data;
    EPCTX__TRY(epctx__add_constant(c, EPCTX_ONNX_INT64, &scalar, &data, &c->y));
    memcpy(data, &c->tensors[c->in[0]].count, 8);
    return EPCTX_OK;
}

/* Blocks of the plane to channels (SpaceToDepth) or back. */
static epctx_status epctx__lower_blocks(epctx__compiler *c) {
    static const char *const texts[3] = {"y = x[n(ijc)hw>nc(hi)(wj)]", "y = x[n(cij)hw>nc(hi)(wj)]",
                                         "y = x[nc(hi)(wj)>n(ijc)hw]"};
    const int64_t b = epctx_node_int(c->node, "blocksize", 0);
    const bool to_depth = c->variant != 0;
    const epctx__shape shape = c->tensors[c->in[0]].shape;
    epctx__formula r = epctx__formula_of(c->in[0]);
    uint32_t form = 2;
    if (!to_depth) EPCTX__TRY(epctx__choice(c, "mode", "DCR CRD", &form));
    if (shape.rank != 4 || b < 1 || b > 32768 ||
        (to_depth ? shape.dims[2] % b + shape.dims[3] % b : shape.dims[1] % (b * b)) != 0)
        return EPCTX__INVALID(
            c, "expected rank 4 and %s blocksize %d",
            to_depth ? "a plane divisible by" : "channels divisible by the square of", b);
    r.n.i = r.n.j = b;
    return epctx__evaluate_y(c, &r, texts[form]);
}

/* -- indices from data -- */

static epctx_status epctx__want_indices(epctx__compiler *c, uint32_t id, bool wide) {
    const int32_t type = c->tensors[id].elem;
    if (type != EPCTX_ONNX_INT64 && (wide || type != EPCTX_ONNX_INT32))
        return EPCTX__INVALID(c, "indices '%S': expected %s, found %s", &c->tensors[id].name,
                              wide ? "int64" : "int32 or int64", epctx_elem_name(type));
    return EPCTX_OK;
}

#define EPCTX__JOINS "none add mul min max" /* attribute reduction of the scattering operators */

/* GatherElements; with `updates`, ScatterElements. */
static epctx_status epctx__emit_elements(epctx__compiler *c, uint32_t x, uint32_t indices,
                                         uint32_t updates, int64_t axis, uint32_t join,
                                         uint32_t *y) {
    const epctx__shape xs = c->tensors[x].shape, is = c->tensors[indices].shape;
    const bool scatter = updates != EPCTX__NONE;
    epctx__step s = epctx__new_step(EPCTX__OP_GATHER_ELEMENTS, x, indices, 0);
    epctx__gather_elements *p = &s.params.gather_elements;
    uint32_t i;
    EPCTX__TRY(epctx__want_indices(c, indices, false));
    EPCTX__TRY(epctx__axis(c, axis, xs.rank, 0, &p->axis));
    if (is.rank != xs.rank || (scatter && (!epctx__same_shape(&is, &c->tensors[updates].shape) ||
                                           c->tensors[updates].elem != c->tensors[x].elem)))
        return EPCTX__INVALID(c, "data, indices and updates: ranks, shapes or types do not match");
    s.in[2] = updates;
    p->type = (uint32_t)c->tensors[x].elem;
    p->index_elem = epctx__stored_size(c->tensors[indices].elem);
    p->scatter = scatter;
    p->join = join;
    p->rank = xs.rank;
    for (i = 0; i < xs.rank; i++) {
        if (i != p->axis && is.dims[i] > xs.dims[i])
            return EPCTX__INVALID(c, "indices: dimension %u is larger than that of data",
                                  (uint64_t)i);
        p->dims[i] = (uint32_t)is.dims[i];
        p->data_dims[i] = (uint32_t)xs.dims[i];
    }
    return epctx__emit_new(c, &s, c->tensors[x].elem, scatter ? &xs : &is, y);
}

/* GatherElements, or ScatterElements with updates. */
static epctx_status epctx__lower_elements(epctx__compiler *c) {
    uint32_t join;
    EPCTX__TRY(epctx__choice(c, "reduction", EPCTX__JOINS, &join));
    EPCTX__TRY(epctx__no_uint64(c, c->narrow == EPCTX_ONNX_UINT64 && join >= EPCTX__JOIN_MIN));
    return epctx__emit_elements(c, c->in[0], c->in[1], c->variant != 0 ? c->in[2] : EPCTX__NONE,
                                epctx_node_int(c->node, "axis", 0), join, &c->y);
}

static epctx_status epctx__emit_slices(epctx__compiler *c, uint32_t x, uint32_t indices,
                                       uint32_t updates, uint32_t batch_dims, uint32_t join,
                                       uint32_t *y) {
    const epctx__shape xs = c->tensors[x].shape, is = c->tensors[indices].shape;
    const bool scatter = updates != EPCTX__NONE;
    const int64_t depth = is.rank > 0 ? is.dims[is.rank - 1] : 0;
    epctx__shape rows = is;
    epctx__step s = epctx__new_step(EPCTX__OP_GATHER_ND, x, indices, 0);
    epctx__gather_nd *p = &s.params.gather_nd;
    uint32_t i;
    EPCTX__TRY(epctx__want_indices(c, indices, true));
    if (depth < 1 || batch_dims + depth > xs.rank || batch_dims >= is.rank ||
        is.rank - 1 + xs.rank - batch_dims - (uint32_t)depth > EPCTX_NPU_MAX_RANK ||
        c->tensors[x].count == 0)
        return EPCTX__INVALID(c, "indices: tuples of %d do not fit data of rank %u", depth,
                              (uint64_t)xs.rank);
    s.in[2] = updates;
    p->type = (uint32_t)c->tensors[x].elem;
    p->scatter = scatter;
    p->join = join;
    p->batch = (uint32_t)epctx__product(&is, 0, batch_dims);
    p->count = (uint32_t)epctx__product(&is, batch_dims, is.rank - 1);
    p->depth = (uint32_t)depth;
    p->inner = (uint32_t)epctx__product(&xs, batch_dims + (uint32_t)depth, xs.rank);
    rows.rank = is.rank - 1;
    for (i = 0; i < batch_dims; i++)
        if (xs.dims[i] != is.dims[i])
            return EPCTX__INVALID(c, "batch dimension %u differs", (uint64_t)i);
    for (i = 0; i < p->depth; i++) p->dims[i] = (uint32_t)xs.dims[batch_dims + i];
    for (i += batch_dims; i < xs.rank; i++) rows.dims[rows.rank++] = xs.dims[i];
    if (scatter && (!epctx__same_shape(&rows, &c->tensors[updates].shape) ||
                    c->tensors[updates].elem != c->tensors[x].elem))
        return EPCTX__INVALID(c, "updates: type or shape does not match");
    return epctx__emit_new(c, &s, c->tensors[x].elem, scatter ? &xs : &rows, y);
}

/* GatherND, or ScatterND with updates. */
static epctx_status epctx__lower_nd(epctx__compiler *c) {
    const int64_t batch_dims = epctx_node_int(c->node, "batch_dims", 0);
    uint32_t join;
    if (batch_dims < 0 || batch_dims >= EPCTX_NPU_MAX_RANK)
        return epctx__bad_attr(c, "batch_dims", "a number in 0..7");
    EPCTX__TRY(epctx__choice(c, "reduction", EPCTX__JOINS, &join));
    EPCTX__TRY(epctx__no_uint64(c, c->narrow == EPCTX_ONNX_UINT64 && join >= EPCTX__JOIN_MIN));
    return epctx__emit_slices(c, c->in[0], c->in[1], c->variant != 0 ? c->in[2] : EPCTX__NONE,
                              (uint32_t)batch_dims, join, &c->y);
}

/* Equal to a ramp, then one of two values. */
static epctx_status epctx__lower_one_hot(epctx__compiler *c) {
    epctx__shape shape = c->tensors[c->in[0]].shape, part = {0, {0}};
    int64_t depth = 0;
    float number;
    epctx__formula r = epctx__formula_of(c->in[0]);
    uint32_t id = c->in[1], values = c->in[2], axis;
    if (c->tensors[id].elem == EPCTX_ONNX_FLOAT) {
        EPCTX__TRY(epctx__const_float(c, id, "depth", &number));
        depth = number >= 1.0f && number < 1e9f ? (int64_t)number : 0;
    } else {
        EPCTX__TRY(epctx__const_ints(c, id, "depth", 1, &depth, NULL));
    }
    EPCTX__TRY(epctx__axis_attr(c, -1, shape.rank + 1, 0, &axis));
    EPCTX__TRY(epctx__want_rank(c, values, "values", 1, 1));
    if (depth < 1 || depth > EPCTX__MAX_BYTES / 8 || c->tensors[values].count != 2 ||
        shape.rank == EPCTX_NPU_MAX_RANK)
        return EPCTX__INVALID(c, "expected depth >= 1 and 2 values, found depth %d and %u values",
                              depth, c->tensors[values].count);
    memmove(shape.dims + axis + 1, shape.dims + axis, (shape.rank++ - axis) * sizeof *shape.dims);
    shape.dims[axis] = 1;
    EPCTX__TRY(epctx__alias(c, r.v.x, &shape, 0, &r.v.x));
    EPCTX__TRY(epctx__ramp(c, depth, shape.rank, axis, &r.v.t));
    EPCTX__TRY(epctx__alias(c, values, &part, 1, &r.v.a));
    EPCTX__TRY(epctx__alias(c, values, &part, 0, &r.v.b));
    r.n.n = depth; /* -1 is the last index; indices out of range stay off */
    return epctx__evaluate_y(c, &r, "x = int(x); y = where(x + #n == t | x == t, a, b)");
}

/* -- sliding windows: Conv and pools -- */

typedef enum epctx__auto_padding {
    EPCTX__PAD_GIVEN = 0,
    EPCTX__PAD_VALID,
    EPCTX__PAD_UPPER, /* of odd padding the larger half comes last; LOWER: first */
    EPCTX__PAD_LOWER
} epctx__auto_padding;

/* Windows over an image of `points` elements: `places`, each of `taps`. Arrays: spatial axes. */
typedef struct epctx__geometry {
    uint32_t rank, auto_pad;
    int64_t in[EPCTX_NPU_MAX_RANK], out[EPCTX_NPU_MAX_RANK], kernel[EPCTX_NPU_MAX_RANK];
    int64_t stride[EPCTX_NPU_MAX_RANK], dilation[EPCTX_NPU_MAX_RANK], before[EPCTX_NPU_MAX_RANK];
    int64_t after[EPCTX_NPU_MAX_RANK], points, places, taps;
} epctx__geometry;

/* `weights`: their shape, which is that of the kernel, or NULL. */
static void epctx__geometry_image(epctx__geometry *g, const epctx__shape *shape,
                                  const epctx__shape *weights) {
    memset(g, 0, sizeof *g);
    g->rank = shape->rank - 2;
    memcpy(g->in, shape->dims + 2, g->rank * sizeof *g->in);
    if (weights != NULL) memcpy(g->kernel, weights->dims + 2, g->rank * sizeof *g->kernel);
}

/* Reads strides, dilations, pads and auto_pad; the caller has set rank, in and kernel. */
static epctx_status epctx__geometry_attrs(epctx__compiler *c, epctx__geometry *g) {
    int64_t pads[2 * EPCTX_NPU_MAX_RANK];
    EPCTX__TRY(epctx__ints(c, "strides", g->rank, 1, g->stride));
    EPCTX__TRY(epctx__ints(c, "dilations", g->rank, 1, g->dilation));
    EPCTX__TRY(epctx__ints(c, "pads", (size_t)2 * g->rank, 0, pads));
    EPCTX__TRY(epctx__choice(c, "auto_pad", "NOTSET VALID SAME_UPPER SAME_LOWER", &g->auto_pad));
    if (g->auto_pad == EPCTX__PAD_VALID) return EPCTX_OK;
    memcpy(g->before, pads, g->rank * sizeof *pads);
    memcpy(g->after, pads + g->rank, g->rank * sizeof *pads);
    return EPCTX_OK;
}

/* Halves the padding of one axis; negative: the missing elements are added at the end. */
static void epctx__halve_pads(epctx__geometry *g, uint32_t i, int64_t total) {
    g->before[i] = g->auto_pad == EPCTX__PAD_UPPER ? total / 2 : total - total / 2;
    g->before[i] = total < 0 ? 0 : g->before[i];
    g->after[i] = total - g->before[i];
}

/* Reads the attributes and ceil_mode; computes the places and the padding that remains. */
static epctx_status epctx__geometry_axes(epctx__compiler *c, epctx__geometry *g) {
    const int64_t top = INT32_MAX / 8, ceil = epctx_node_int(c->node, "ceil_mode", 0);
    uint32_t i;
    EPCTX__TRY(epctx__geometry_attrs(c, g));
    for (i = 0; i < g->rank; i++) {
        const int64_t in = g->in[i], kernel = g->kernel[i], stride = g->stride[i];
        const int64_t dilation = g->dilation[i], before = g->before[i], after = g->after[i];
        int64_t reach, room;
        if (kernel < 1 || stride < 1 || dilation < 1 || kernel > top || stride > top ||
            dilation > top || before < 0 || after < 0 || before > top || after > top || in > top ||
            (reach = (kernel - 1) * dilation + 1) > top)
            return EPCTX__REFUSE(c, "invalid kernel %d, stride %d, dilation %d, pads %d and %d",
                                 kernel, stride, dilation, before, after);
        if (g->auto_pad >= EPCTX__PAD_UPPER) {
            g->out[i] = (in + stride - 1) / stride;
            room = (g->out[i] - 1) * stride + reach - in;
            epctx__halve_pads(g, i, room > 0 ? room : 0);
            continue;
        }
        room = in + before + after - reach;
        if (room < 0)
            return EPCTX__INVALID(c, "kernel of extent %d exceeds %d elements with pads %d and %d",
                                  reach, in, before, after);
        g->out[i] = room / stride + 1;
        if (ceil != 0 && room % stride != 0 && g->out[i] * stride < in + before)
            g->out[i]++; /* one more window if it starts inside the input or its left padding */
    }
    return EPCTX_OK;
}

/* 1-D windows become 2-D with height 1. */
static void epctx__geometry_plane(epctx__geometry *g) {
    int64_t *const axes[7] = {g->in,       g->out,    g->kernel, g->stride,
                              g->dilation, g->before, g->after};
    uint32_t i;
    for (i = 0; g->rank == 1 && i < 7; i++) {
        axes[i][1] = axes[i][0];
        axes[i][0] = i < 5 ? 1 : 0;
    }
    g->rank = 2;
}

/* The windows `g` over a plane, as commands have them. */
static epctx_status epctx__plane_window(epctx__compiler *c, const epctx__geometry *g,
                                        epctx__window *w) {
    const epctx__window window = {
        (uint32_t)g->in[0],       (uint32_t)g->in[1],     (uint32_t)g->out[0],
        (uint32_t)g->out[1],      (uint32_t)g->kernel[0], (uint32_t)g->kernel[1],
        (uint32_t)g->stride[0],   (uint32_t)g->stride[1], (uint32_t)g->dilation[0],
        (uint32_t)g->dilation[1], (uint32_t)g->before[0], (uint32_t)g->before[1],
        (uint32_t)g->after[0],    (uint32_t)g->after[1]};
    *w = window;
    if (!epctx__window_ok(w))
        return EPCTX__REFUSE(c, "window %dx%d over %dx%d is too large", g->kernel[0], g->kernel[1],
                             g->in[0], g->in[1]);
    return EPCTX_OK;
}

/* Packs input 1 of `s`: constants later, as fusion may still change them, others at run time. */
static epctx_status epctx__emit_packed(epctx__compiler *c, epctx__step *s,
                                       const epctx__pack *pack) {
    epctx__shape shape = {1, {0}};
    epctx__step p;
    s->pack = *pack;
    s->packs = c->tensors[s->in[1]].constant;
    if (!s->packs) {
        shape.dims[0] = (int64_t)epctx__packed(pack->batch, pack->rows, pack->depth, pack->block);
        p = epctx__new_step(EPCTX__OP_PACK, s->in[1], EPCTX__NONE, 0);
        p.params.pack = *pack;
        EPCTX__TRY(epctx__emit_new(c, &p, EPCTX_ONNX_FLOAT, &shape, &s->in[1]));
    }
    return epctx__emit(c, s);
}

/* `shape`: of the node's input. */
static epctx_status epctx__emit_conv(epctx__compiler *c, uint32_t x, uint32_t weights,
                                     uint32_t bias, const epctx__shape *shape, const epctx__conv *p,
                                     uint32_t *y) {
    const uint64_t taps = epctx__mul(p->window.kernel_h, p->window.kernel_w);
    const uint64_t depth = epctx__mul(p->in_channels, taps);
    const uint32_t block = c->arch->columns;
    /* [group][output][channel][tap] to [group][block][tap][channel] */
    const epctx__pack pack = {p->groups,
                              p->out_channels,
                              (uint32_t)depth,
                              block,
                              (uint32_t)(p->out_channels * depth),
                              (uint32_t)depth,
                              1,
                              p->in_channels,
                              (uint32_t)taps};
    /* [channel][tap] to [block][tap] */
    const epctx__pack flat = {1, p->groups, (uint32_t)taps, block, 0, (uint32_t)taps, 1, 1, 0};
    epctx__step s = epctx__new_step(EPCTX__OP_CONV, x, weights, EPCTX__NONE);
    epctx__shape ys = *shape;
    ys.dims[1] = (int64_t)p->groups * p->out_channels;
    if (ys.rank == 4) ys.dims[2] = (int64_t)p->window.out_h;
    ys.dims[ys.rank - 1] = (int64_t)p->window.out_w;
    EPCTX__TRY(epctx__new_tensor(c, EPCTX_ONNX_FLOAT, &ys, y));
    s.out = *y;
    s.in[2] = bias;
    s.images = true;
    if (p->in_channels == 1 && p->out_channels == 1 && p->groups > 1) {
        s.op = EPCTX__OP_DEPTHWISE;
        s.params.depthwise.batch = p->batch;
        s.params.depthwise.channels = p->groups;
        s.params.depthwise.window = p->window;
        return epctx__emit_packed(c, &s, &flat);
    }
    s.params.conv = *p;
    return epctx__emit_packed(c, &s, &pack);
}

static epctx_status epctx__check_bias(epctx__compiler *c, int64_t channels, int32_t type,
                                      uint32_t bias) {
    if (bias == EPCTX__NONE) return EPCTX_OK;
    EPCTX__TRY(epctx__want_type(c, bias, type));
    if (c->tensors[bias].count != (uint64_t)channels)
        return EPCTX__INVALID(c, "bias '%S': expected %d elements, found %u",
                              &c->tensors[bias].name, channels, c->tensors[bias].count);
    return epctx__want_rank(c, bias, "bias", 1, 1);
}

/* An attribute kernel_shape repeats the shape of the weights. */
static epctx_status epctx__check_kernel(epctx__compiler *c, const epctx__geometry *g) {
    int64_t kernel[EPCTX_NPU_MAX_RANK];
    if (epctx_node_attr(c->node, "kernel_shape") == NULL) return EPCTX_OK;
    EPCTX__TRY(epctx__ints(c, "kernel_shape", g->rank, 1, kernel));
    return memcmp(kernel, g->kernel, g->rank * sizeof *kernel) == 0
               ? EPCTX_OK
               : epctx__bad_attr(c, "kernel_shape", "the shape of the weights");
}

static epctx_status epctx__conv_of(epctx__compiler *c, uint32_t x, uint32_t w, uint32_t bias,
                                   uint32_t *y) {
    const epctx__shape xs = c->tensors[x].shape, ws = c->tensors[w].shape;
    int64_t groups = epctx_node_int(c->node, "group", 1);
    epctx__geometry g;
    epctx__conv p;
    if (xs.rank != 3 && xs.rank != 4)
        return EPCTX__REFUSE(c, "input '%S': expected rank 3 or 4, found %u", &c->tensors[x].name,
                             (uint64_t)xs.rank);
    if (ws.rank != xs.rank || groups < 1 || ws.dims[0] < 1 || ws.dims[0] % groups != 0 ||
        ws.dims[1] < 1 || xs.dims[1] % groups != 0 || ws.dims[1] != xs.dims[1] / groups ||
        c->tensors[w].count == 0)
        return EPCTX__INVALID(
            c, "weights '%S' of shape [%d, %d, ...] do not fit %d channels in %d groups",
            &c->tensors[w].name, ws.rank > 0 ? ws.dims[0] : 0, ws.rank > 1 ? ws.dims[1] : 0,
            xs.dims[1], groups);
    epctx__geometry_image(&g, &xs, &ws);
    EPCTX__TRY(epctx__check_kernel(c, &g));
    EPCTX__TRY(epctx__check_bias(c, ws.dims[0], EPCTX_ONNX_FLOAT, bias));
    EPCTX__TRY(epctx__geometry_axes(c, &g));
    memset(&p, 0, sizeof p);
    epctx__geometry_plane(&g);
    EPCTX__TRY(epctx__plane_window(c, &g, &p.window));
    if (ws.dims[1] == 1 && groups > 1 && ws.dims[0] > groups) {
        epctx__shape wide = xs; /* each channel as often as it is read: Depthwise */
        epctx__formula r = epctx__formula_of(x);
        r.n.r = ws.dims[0] / groups;
        wide.dims[1] = groups = ws.dims[0];
        EPCTX__TRY(epctx__evaluate(c, &r, "x = x[nc*>ncr*]"));
        EPCTX__TRY(epctx__alias(c, r.v.x, &wide, 0, &x));
    }
    p.batch = (uint32_t)xs.dims[0];
    p.groups = (uint32_t)groups;
    p.in_channels = (uint32_t)ws.dims[1];
    p.out_channels = (uint32_t)(ws.dims[0] / groups);
    return epctx__emit_conv(c, x, w, bias, &xs, &p, y);
}

/* -- ConvTranspose: one Conv yields a channel per sub-pixel phase, a Move interleaves them -- */

/* Parameters of a transposed convolution; arrays: the two spatial axes. */
typedef struct epctx__transposed {
    int64_t groups, channels, outputs; /* of one group */
    epctx__geometry g;                 /* of the plane: `in` and `out` as those of the node */
    int64_t phases[2];
    epctx__geometry v; /* of the Conv: a phase's taps over the input with its zeros in between */
} epctx__transposed;

/* Weights [group][channel][output][ky][kx] to [group][output][phases][channel][taps], flipped. */
static epctx_status epctx__flip_weights(epctx__compiler *c, const epctx__transposed *p, uint32_t w,
                                        uint32_t *transposed) {
    const int64_t ty = p->v.kernel[0], tx = p->v.kernel[1], sy = p->phases[0], sx = p->phases[1];
    const int64_t area = ty * sy * tx * sx, filters = p->groups * p->channels * p->outputs;
    const epctx__shape given = {3, {filters, p->g.kernel[0], p->g.kernel[1]}};
    const epctx__shape all = {3, {filters, ty * sy, tx * sx}};
    const epctx__shape out = {7, {p->groups, p->outputs, sy, sx, p->channels, ty, tx}};
    const int64_t from[7] = {
        p->channels * p->outputs * area, area, tx * sx, 1, p->outputs * area, -sy * tx * sx, -sx};
    if (!epctx__same_shape(&given, &all)) {
        EPCTX__TRY(epctx__alias(c, w, &given, 0, transposed));
        EPCTX__TRY(epctx__emit_filled(c, EPCTX_ONNX_FLOAT, &all, 0,
                                      !c->tensors[*transposed].constant, &w));
        EPCTX__TRY(epctx__put_part(c, *transposed, w, 0, 0));
    }
    return epctx__emit_strided(c, w, &out, (uint64_t)((ty - 1) * sy * tx * sx + (tx - 1) * sx),
                               from, transposed);
}

/* Images [plane][phases][row][column] to [plane][out]: each phase's points are a stride apart. */
static epctx_status epctx__interleave(epctx__compiler *c, const epctx__transposed *p,
                                      const epctx__shape *ys, uint32_t x, uint32_t *y) {
    const int64_t sy = p->phases[0], sx = p->phases[1], rows = p->v.out[0], columns = p->v.out[1];
    const int64_t planes = ys->dims[0] * ys->dims[1], width = columns * sx, area = rows * columns;
    const epctx__shape all = {5, {planes, rows, sy, columns, sx}};
    const epctx__shape crop = {3, {planes, p->g.out[0], p->g.out[1]}};
    const int64_t from[5] = {area * sy * sx, columns, area * sx, 1, area};
    const int64_t wide[3] = {area * sy * sx, width, 1};
    *y = x;
    if (sy * sx > 1) EPCTX__TRY(epctx__emit_strided(c, x, &all, 0, from, y));
    if (rows * sy == p->g.out[0] && width == p->g.out[1]) return epctx__alias(c, *y, ys, 0, y);
    EPCTX__TRY(epctx__emit_strided(
        c, *y, &crop, (uint64_t)(p->g.before[0] % sy * width + p->g.before[1] % sx), wide, y));
    c->tensors[*y].shape = *ys;
    return EPCTX_OK;
}

/* Inserts zeros between the elements of the input where phases do not do it. */
static epctx_status epctx__spread(epctx__compiler *c, const epctx__transposed *p, uint32_t x,
                                  int64_t batch, uint32_t *y) {
    const int64_t channels = p->groups * p->channels, *in = p->g.in, *out = p->v.in;
    const int64_t gaps[2] = {p->g.stride[0] / p->phases[0], p->g.stride[1] / p->phases[1]};
    const epctx__shape walk = {3, {batch * channels, in[0], in[1]}};
    const epctx__shape image = {4, {batch, channels, out[0], out[1]}};
    const int64_t to[3] = {out[0] * out[1], gaps[0] * out[1], gaps[1]};
    *y = x;
    if (gaps[0] == 1 && gaps[1] == 1) return EPCTX_OK;
    EPCTX__TRY(epctx__emit_filled(c, EPCTX_ONNX_FLOAT, &image, 0, !c->tensors[x].constant, y));
    return epctx__emit_move(c, x, *y, &walk, 0, 0, NULL, to);
}

/* Reads the attributes; the caller has set rank, in and kernel. Pads of the result: negative where
 * it grows. */
static epctx_status epctx__transposed_axes(epctx__compiler *c, epctx__geometry *g) {
    int64_t extras[EPCTX_NPU_MAX_RANK], sizes[EPCTX_NPU_MAX_RANK];
    const int64_t top = INT32_MAX / 8;
    uint32_t i;
    EPCTX__TRY(epctx__check_kernel(c, g));
    EPCTX__TRY(epctx__geometry_attrs(c, g));
    EPCTX__TRY(epctx__ints(c, "output_padding", g->rank, 0, extras));
    EPCTX__TRY(epctx__ints(c, "output_shape", g->rank, 0, sizes));
    for (i = 0; i < g->rank; i++) {
        const int64_t in = g->in[i], kernel = g->kernel[i], stride = g->stride[i];
        const int64_t dilation = g->dilation[i], extra = extras[i], wanted = sizes[i];
        int64_t reach, full;
        if (kernel < 1 || stride < 1 || dilation < 1 || kernel > 4096 || stride > 4096 ||
            dilation > 4096 || in > top / 4096 || extra < 0 || extra > 4096 || g->before[i] < 0 ||
            g->after[i] < 0 || g->before[i] > top || g->after[i] > top || wanted < 0 ||
            wanted > top)
            return EPCTX__REFUSE(
                c, "kernel %d, stride %d, dilation %d, their pads or output: out of range", kernel,
                stride, dilation);
        reach = (kernel - 1) * dilation + 1;
        full = (in - 1) * stride + reach + extra;
        if (extra >= stride || wanted - full >= stride)
            return EPCTX__REFUSE(c, "output_padding %d or output_shape %d: too large for stride %d",
                                 extra, wanted, stride);
        if (wanted > 0 || g->auto_pad >= EPCTX__PAD_UPPER)
            epctx__halve_pads(g, i,
                              wanted > 0 || full > in * stride
                                  ? full - (wanted > 0 ? wanted : in * stride)
                                  : 0); /* ONNX Runtime grows only towards output_shape */
        g->out[i] = full - g->before[i] - g->after[i];
        g->after[i] -= extra;
        if (g->out[i] < 1 || g->before[i] > reach - 1 || g->after[i] > reach - 1)
            return EPCTX__REFUSE(c, "pads %d and %d: invalid for a kernel of %d", g->before[i],
                                 g->after[i], reach);
    }
    return EPCTX_OK;
}

static epctx_status epctx__transposed_of(epctx__compiler *c, const epctx__shape *xs,
                                         const epctx__shape *ws, epctx__transposed *p) {
    epctx__geometry *g = &p->g, *v = &p->v;
    bool spread;
    uint32_t i;
    epctx__geometry_image(g, xs, ws);
    EPCTX__TRY(epctx__transposed_axes(c, g));
    epctx__geometry_plane(g);
    *v = *g;
    spread = p->groups > 1 && p->channels == 1 && p->outputs == 1 && g->stride[0] <= 2 &&
             g->stride[1] <= 2; /* Depthwise pays for a zero less than for a phase */
    for (i = 0; i < 2; i++) {   /* few zeros among the taps, and each phase has its own */
        const int64_t phases =
            g->dilation[i] == 1 && g->stride[i] <= g->kernel[i] && !spread ? g->stride[i] : 1;
        const int64_t places = (g->before[i] % phases + g->out[i] + phases - 1) / phases;
        int64_t reach;
        p->phases[i] = phases;
        v->stride[i] = 1;
        v->kernel[i] = (g->kernel[i] + phases - 1) / phases;
        reach = (v->kernel[i] - 1) * g->dilation[i];
        v->in[i] = (g->in[i] - 1) * (g->stride[i] / phases) + 1;
        v->before[i] = reach - g->before[i] / phases;
        v->out[i] = v->in[i] + v->before[i] - reach; /* as many as the phases need, or more */
        v->after[i] = places > v->out[i] ? places - v->out[i] : 0;
        v->out[i] += v->after[i];
    }
    return EPCTX_OK;
}

/* Weights fit the channels. */
static epctx_status epctx__plane_transposed(epctx__compiler *c, int64_t groups) {
    const epctx__shape xs = c->tensors[c->in[0]].shape, ws = c->tensors[c->in[1]].shape;
    epctx__shape ys = xs;
    const int64_t repeated[2] = {1, 0};
    int64_t phases;
    epctx__transposed p;
    epctx__conv conv;
    uint32_t x, weights, bias, y;
    p.groups = groups;
    p.channels = xs.dims[1] / p.groups;
    p.outputs = ws.dims[1];
    EPCTX__TRY(epctx__transposed_of(c, &xs, &ws, &p));
    phases = p.phases[0] * p.phases[1];
    memset(&conv, 0, sizeof conv);
    EPCTX__TRY(epctx__plane_window(c, &p.v, &conv.window));
    EPCTX__TRY(epctx__optional(c, 2, &bias));
    EPCTX__TRY(epctx__check_bias(c, p.outputs * p.groups, EPCTX_ONNX_FLOAT, bias));
    EPCTX__TRY(epctx__flip_weights(c, &p, c->in[1], &weights));
    EPCTX__TRY(epctx__spread(c, &p, c->in[0], xs.dims[0], &x));
    if (bias != EPCTX__NONE && phases > 1) { /* one for each phase */
        const epctx__shape each = {2, {p.outputs * p.groups, phases}};
        EPCTX__TRY(epctx__emit_strided(c, bias, &each, 0, repeated, &bias));
    }
    conv.batch = (uint32_t)xs.dims[0];
    conv.groups = (uint32_t)p.groups;
    conv.in_channels = (uint32_t)p.channels;
    conv.out_channels = (uint32_t)(p.outputs * phases);
    EPCTX__TRY(epctx__emit_conv(c, x, weights, bias, &xs, &conv, &y));
    ys.dims[1] = p.outputs * p.groups;
    memcpy(ys.dims + 2, p.g.out + 4 - xs.rank, (xs.rank - 2) * sizeof *p.g.out);
    return epctx__interleave(c, &p, &ys, y, &c->y);
}

/* Zeros around an image instead of the padding of its windows. */
static epctx_status epctx__pad_image(epctx__compiler *c, uint32_t *x, epctx__geometry *g) {
    int64_t pads[2 * EPCTX_NPU_MAX_RANK] = {0}, all = 0;
    uint32_t i;
    for (i = 0; i < g->rank; i++) {
        all += g->before[i] + g->after[i];
        g->in[i] += g->before[i] + g->after[i];
        pads[2 + i] = g->before[i];
        pads[g->rank + 4 + i] = g->after[i];
        g->before[i] = g->after[i] = 0;
    }
    return all == 0 ? EPCTX_OK : epctx__emit_pad(c, EPCTX__PAD_CONSTANT, *x, pads, 0, x);
}

typedef enum epctx__pool_form {
    EPCTX__POOL_MAX = 0,
    EPCTX__POOL_AVERAGE,
    EPCTX__POOL_LP
} epctx__pool_form;

/* Largest or average values of windows of one or two axes; `shape`: of the result. */
static epctx_status epctx__emit_pool(epctx__compiler *c, uint32_t x, bool average,
                                     epctx__geometry *g, const epctx__shape *shape, uint32_t *y) {
    epctx__step s = epctx__new_step(EPCTX__OP_POOL, x, EPCTX__NONE, 0);
    epctx__pool *p = &s.params.pool;
    if (average && epctx_node_int(c->node, "count_include_pad", 0) != 0)
        EPCTX__TRY(epctx__pad_image(c, &s.in[0], g));
    epctx__geometry_plane(g);
    EPCTX__TRY(epctx__plane_window(c, g, &p->window));
    p->batch = (uint32_t)shape->dims[0];
    p->channels = p->row = (uint32_t)shape->dims[1];
    p->kind = average ? EPCTX__SLIDE_AVERAGE : EPCTX__SLIDE_MAX;
    s.images = true;
    return epctx__emit_new(c, &s, EPCTX_ONNX_FLOAT, shape, y);
}

/* -- reductions -- */

/* Over axes `axis` to `end`. */
static epctx_status epctx__emit_reduce(epctx__compiler *c, epctx__reduce_kind kind, uint32_t x,
                                       uint32_t axis, uint32_t end, const epctx__shape *shape,
                                       uint32_t *y) {
    epctx__step s = epctx__new_step(EPCTX__OP_REDUCE, x, EPCTX__NONE, 0);
    epctx__reduce *p = &s.params.reduce;
    EPCTX__TRY(epctx__no_uint64(c, c->narrow == EPCTX_ONNX_UINT64));
    p->kind = (uint32_t)kind;
    p->type = (uint32_t)c->tensors[x].elem;
    epctx__dims_around(&c->tensors[x].shape, axis, end, &p->outer, &p->count, &p->inner);
    return epctx__emit_new(c, &s, c->tensors[x].elem, shape, y);
}

/* Leaves out the reduced axes, unless they are to be kept. */
static epctx_status epctx__drop_axes(epctx__compiler *c, uint32_t x, const bool *marked, bool keep,
                                     uint32_t *y) {
    epctx__shape shape = c->tensors[x].shape;
    const uint32_t rank = shape.rank;
    uint32_t i;
    for (i = shape.rank = 0; i < rank; i++)
        if (keep || !marked[i]) shape.dims[shape.rank++] = shape.dims[i];
    return epctx__alias(c, x, &shape, 0, y);
}

/* Adjacent reduced axes take one pass, others one each (a mean of means of equal parts). */
static epctx_status epctx__reduce_over(epctx__compiler *c, epctx__reduce_kind kind, uint32_t x,
                                       const bool *marked, bool keep, uint32_t *y) {
    epctx__shape shape = c->tensors[x].shape;
    const int32_t type = c->tensors[x].elem;
    uint64_t total = 1;
    uint32_t i, first, end, runs = 0;
    bool divide;
    for (i = 0; i < shape.rank; i++) {
        total = epctx__mul(total, marked[i] ? (uint64_t)shape.dims[i] : 1);
        runs += marked[i] && (i == 0 || !marked[i - 1]);
    }
    /* an integer mean of means would round twice */
    divide = kind == EPCTX__REDUCE_MEAN && type != EPCTX_ONNX_FLOAT && runs > 1;
    if (divide && (epctx__stored_size(type) == 1 || total > INT32_MAX))
        return EPCTX__REFUSE(c, "mean of %u %s is not supported", total, epctx_elem_name(type));
    kind = divide ? EPCTX__REDUCE_SUM : kind;
    for (end = shape.rank; end > 0; end = first) {
        for (first = end; first > 0 && marked[first - 1]; first--) shape.dims[first - 1] = 1;
        if (first < end)
            EPCTX__TRY(epctx__emit_reduce(c, kind, x, first, end, &shape, &x));
        else
            first--;
    }
    if (divide) EPCTX__TRY(epctx__emit_integer(c, EPCTX__EXACT_DIV, x, (int32_t)total, &x));
    return epctx__drop_axes(c, x, marked, keep, y);
}

/* The axes of a reduction. */
static epctx_status epctx__reduce_axes(epctx__compiler *c, int64_t since, bool *marked) {
    const uint32_t rank = c->tensors[c->in[0]].shape.rank;
    epctx__list axes;
    bool all;
    uint32_t i;
    EPCTX__TRY(epctx__ints_of(c, "axes", 1, since, &axes));
    all = axes.count == 0 && epctx_node_int(c->node, "noop_with_empty_axes", 0) == 0;
    for (i = 0; i < EPCTX_NPU_MAX_RANK; i++) marked[i] = all && i < rank;
    return epctx__mark_axes(c, axes.v, axes.count, rank, marked);
}

static epctx_status epctx__lower_reduce(epctx__compiler *c) {
    const epctx__reduce_kind kind = (epctx__reduce_kind)c->variant;
    const bool keep = epctx_node_int(c->node, "keepdims", 1) != 0;
    bool marked[EPCTX_NPU_MAX_RANK];
    EPCTX__TRY(epctx__reduce_axes(c, kind == EPCTX__REDUCE_SUM ? 13 : 18, marked));
    return epctx__reduce_over(c, kind, c->in[0], marked, keep, &c->y);
}

static epctx_status epctx__emit_arg(epctx__compiler *c, uint32_t x, uint32_t axis, bool smallest,
                                    bool last, int64_t keep, uint32_t *y) {
    epctx__shape shape = c->tensors[x].shape;
    epctx__step s = epctx__new_step(EPCTX__OP_ARG, x, EPCTX__NONE, 0);
    epctx__arg *p = &s.params.arg;
    EPCTX__TRY(epctx__no_uint64(c, c->narrow == EPCTX_ONNX_UINT64));
    p->smallest = smallest;
    p->last = last;
    p->type = (uint32_t)c->tensors[x].elem;
    epctx__dims_around(&shape, axis, axis + 1, &p->outer, &p->count, &p->inner);
    p->keep = (uint32_t)keep;
    shape.dims[axis] = keep;
    return epctx__emit_new(c, &s, EPCTX_ONNX_INT64, &shape, y);
}

static epctx_status epctx__lower_arg(epctx__compiler *c) {
    const bool last = epctx_node_int(c->node, "select_last_index", 0) != 0;
    bool marked[EPCTX_NPU_MAX_RANK] = {false};
    uint32_t axis;
    EPCTX__TRY(epctx__axis_attr(c, 0, c->tensors[c->in[0]].shape.rank, 0, &axis));
    EPCTX__TRY(epctx__emit_arg(c, c->in[0], axis, c->variant != 0, last, 1, &c->y));
    if (epctx_node_int(c->node, "keepdims", 1) != 0) return EPCTX_OK;
    marked[axis] = true;
    return epctx__drop_axes(c, c->y, marked, false, &c->y);
}

/* 1 at the first maximum, else 0. */
static epctx_status epctx__lower_hardmax(epctx__compiler *c) {
    const bool old = c->node->version < 13;
    const epctx__shape shape = c->tensors[c->in[0]].shape;
    epctx__formula r = epctx__formula_of(EPCTX__NONE);
    epctx__shape flat = shape;
    uint32_t x = c->in[0], axis;
    EPCTX__TRY(epctx__axis_attr(c, old ? 1 : -1, shape.rank, 0, &axis));
    if (old) {
        flat = epctx__flat(&shape, axis);
        axis = 1;
        EPCTX__TRY(epctx__alias(c, x, &flat, 0, &x));
    }
    EPCTX__TRY(epctx__emit_arg(c, x, axis, false, false, 1, &r.v.x));
    EPCTX__TRY(epctx__ramp(c, flat.dims[axis], flat.rank, axis, &r.v.t));
    EPCTX__TRY(epctx__evaluate(c, &r, "y = float(x == t)"));
    return epctx__lower_alias(c, r.v.y, &shape);
}

static epctx_status epctx__lower_global_pool(epctx__compiler *c) {
    static const bool image[EPCTX_NPU_MAX_RANK] = {false, false, true, true,
                                                   true,  true,  true, true};
    const uint32_t rank = c->tensors[c->in[0]].shape.rank;
    if (rank < 3) return EPCTX__INVALID(c, "expected rank >= 3, found %u", (uint64_t)rank);
    return epctx__reduce_over(c, (epctx__reduce_kind)c->variant, c->in[0], image, true, &c->y);
}

/* Over axes `axis` to `end`. */
static epctx_status epctx__emit_softmax(epctx__compiler *c, uint32_t x, uint32_t axis, uint32_t end,
                                        bool log, uint32_t *y) {
    const epctx__shape shape = c->tensors[x].shape;
    epctx__step s = epctx__new_step(EPCTX__OP_SOFTMAX, x, EPCTX__NONE, 0);
    epctx__softmax *p = &s.params.softmax;
    p->log = log;
    epctx__dims_around(&shape, axis, end, &p->outer, &p->count, &p->inner);
    return epctx__emit_new(c, &s, EPCTX_ONNX_FLOAT, &shape, y);
}

static epctx_status epctx__lower_softmax(epctx__compiler *c) {
    const bool old = c->node->version < 13; /* flattens from the axis on */
    const uint32_t rank = c->tensors[c->in[0]].shape.rank;
    uint32_t axis;
    EPCTX__TRY(epctx__axis_attr(c, old ? 1 : -1, rank, old ? 1 : 0, &axis));
    return epctx__emit_softmax(c, c->in[0], axis, old ? rank : axis + 1, c->variant != 0, &c->y);
}

/* -- products of bytes: noted, so that >>integers can compute them from those -- */

/* The step that alone made all of a tensor, or its elements in another shape; of constants only a
 * Dequantize or Move. NULL: there is none. */
static const epctx__step *epctx__made_by(const epctx__compiler *c, uint32_t id) {
    const epctx__tensor *t = &c->tensors[id];
    const uint32_t writer = c->tensors[t->viewed].writer;
    if (t->constant) return t->dequantized != NULL ? t->dequantized : t->moved;
    return writer != EPCTX__NONE ? &c->steps[writer] : NULL;
}

/* The Dequantize that made a tensor of floats; NULL: another step did. */
static const epctx__step *epctx__dequantize_of(const epctx__compiler *c, uint32_t floats) {
    const epctx__step *s = epctx__made_by(c, floats);
    return s != NULL && s->op == EPCTX__OP_DEQUANTIZE ? s : NULL;
}

/* Whether dequantized values have one scale, or one for each index of `axis` (negative: from the
 * last on), so that sums along the other axes have one. */
static bool epctx__scaled_along(const epctx__compiler *c, uint32_t floats, const epctx__step *s,
                                int32_t axis) {
    const epctx__quantize *q = &s->params.quantize;
    const epctx__shape *shape = &c->tensors[floats].shape;
    const int64_t at = axis < 0 ? (int64_t)shape->rank + axis : axis;
    return q->channels == 1 ||
           (at >= 0 && at < (int64_t)shape->rank && q->channels == (uint64_t)shape->dims[at] &&
            q->inner == epctx__product(shape, (uint32_t)at + 1, shape->rank));
}

/* The constant scales of a Dequantize. */
typedef struct epctx__scales {
    const float *data; /* NULL: they are not known, or not in the blob */
    uint32_t step;     /* from channel to channel; 0: one for all */
} epctx__scales;

static epctx_status epctx__scales_of(epctx__compiler *c, const epctx__step *s, epctx__scales *out) {
    const epctx__tensor *t = &c->tensors[s->in[1]];
    const void *data;
    memset(out, 0, sizeof *out);
    if (!t->constant || t->outside) return EPCTX_OK;
    EPCTX__TRY(epctx__data(c, s->in[1], &data));
    out->data = (const float *)data;
    out->step = s->params.quantize.channels != 1 ? 1 : 0;
    return EPCTX_OK;
}

/* Whether a bias counts in the unit of the sums of `count` channels: `x` times that of weights. */
static bool epctx__same_units(float x, const epctx__scales *weights, const epctx__scales *bias,
                              uint32_t count) {
    uint32_t n;
    for (n = 0; n < count; n++) {
        const float its = bias->data[n * bias->step];
        const float unit = epctx__f_mul(x, weights->data[n * weights->step]);
        if (!(its >= epctx__f_mul(unit, 0.99999f) && its <= epctx__f_mul(unit, 1.00001f)))
            return false;
    }
    return true;
}

/* Sets the bias of `f` to the integers behind `floats`, if those can be added to its sums: they
 * belong to an operator on quantized tensors, or count in the same unit. */
static epctx_status epctx__note_bias(epctx__compiler *c, epctx__factors *f, uint32_t floats) {
    const float alpha = epctx_node_float(c->node, "alpha", 1.0f);
    const epctx__shape shape = c->tensors[floats].shape;
    const epctx__step *s = epctx__dequantize_of(c, floats);
    const uint32_t channels = f->of[1].from.params.quantize.channels;
    epctx__scales x, weights, bias;
    uint32_t count;
    if (s == NULL || s->params.quantize.type != EPCTX_ONNX_INT32 || s->in[2] != EPCTX__NONE)
        return EPCTX_OK;
    count = s->params.quantize.channels;
    EPCTX__TRY(epctx__scales_of(c, &f->of[0].from, &x));
    EPCTX__TRY(epctx__scales_of(c, &f->of[1].from, &weights));
    EPCTX__TRY(epctx__scales_of(c, s, &bias));
    if (c->given == NULL &&
        (x.data == NULL || x.step != 0 || weights.data == NULL || bias.data == NULL ||
         (count != 1 && channels != 1 && count != channels) ||
         !epctx__scaled_along(c, floats, s, -1) ||
         epctx_node_float(c->node, "beta", 1.0f) != 1.0f ||
         !epctx__same_units(epctx__f_mul(alpha, *x.data), &weights, &bias,
                            count > channels ? count : channels)))
        return EPCTX_OK;
    return epctx__alias(c, s->in[0], &shape, 0, &f->bias);
}

/* Describes an operand as dequantized bytes that have one scale, or one along `axis` and were not
 * moved; false: it is none. */
static bool epctx__factor_of(const epctx__compiler *c, uint32_t floats, int32_t axis,
                             epctx__factor *f) {
    const epctx__step *s = epctx__made_by(c, floats), *from = s;
    f->floats = floats;
    f->moves = s != NULL && s->op == EPCTX__OP_MOVE;
    if (f->moves) {
        f->move = *s;
        from = epctx__made_by(c, s->in[0]);
    }
    if (from == NULL || from->op != EPCTX__OP_DEQUANTIZE ||
        from->params.quantize.type == EPCTX_ONNX_INT32)
        return false;
    f->from = *from;
    return from->params.quantize.channels == 1 || (!f->moves && c->tensors[floats].shape.rank > 1 &&
                                                   epctx__scaled_along(c, floats, from, axis));
}

/* Notes at the step emitted last that it computes the product of c->in[0] and c->in[1], plus `bias`
 * (NONE: nothing), if those are dequantized and the scales can be applied to sums of the bytes. */
static epctx_status epctx__note_product(epctx__compiler *c, epctx__product_kind kind,
                                        uint32_t bias) {
    const bool conv = kind == EPCTX__PRODUCT_CONV;
    const bool trans_a = epctx_node_int(c->node, "transA", 0) != 0;
    const bool trans_b = epctx_node_int(c->node, "transB", 0) != 0;
    const int32_t a_axis = conv ? EPCTX_NPU_MAX_RANK : (trans_a ? -1 : -2);
    const int32_t b_axis = conv ? 0 : (trans_b ? -2 : -1);
    epctx__factors *f;
    if (epctx__made_by(c, c->in[0]) == NULL || epctx__made_by(c, c->in[1]) == NULL) return EPCTX_OK;
    EPCTX__MAKE(c, f, epctx__factors, 1);
    f->kind = kind;
    f->node = *c->node;
    f->bias = EPCTX__NONE;
    if (!epctx__factor_of(c, c->in[0], a_axis, &f->of[0]) ||
        !epctx__factor_of(c, c->in[1], b_axis, &f->of[1]))
        return EPCTX_OK;
    if (bias != EPCTX__NONE) EPCTX__TRY(epctx__note_bias(c, f, bias));
    if (bias == EPCTX__NONE || f->bias != EPCTX__NONE) c->steps[c->step_count - 1].factors = f;
    return EPCTX_OK;
}

/* -- matrices -- */

/* Packs [batch][rows][depth], or `transposed` [batch][depth][rows]. */
static epctx__pack epctx__matrix_pack(const epctx__compiler *c, uint32_t batch, uint32_t rows,
                                      uint32_t depth, bool transposed) {
    epctx__pack pack;
    pack.batch = batch;
    pack.rows = rows;
    pack.depth = depth;
    pack.block = c->arch->columns;
    pack.batch_stride = (uint32_t)epctx__mul(rows, depth);
    pack.row_stride = transposed ? 1 : depth;
    pack.depth_stride = transposed ? rows : 1;
    pack.inner = 1;
    pack.inner_stride = 0;
    return pack;
}

/* One product: [m][k] times [k][n]. */
static epctx__gemm epctx__gemm_of(int64_t m, int64_t n, int64_t k) {
    epctx__gemm p;
    memset(&p, 0, sizeof p);
    p.batch = p.b_shared = 1;
    p.m = (uint32_t)m;
    p.n = (uint32_t)n;
    p.k = p.a_row = (uint32_t)k;
    p.a_step = 1;
    p.alpha = 1.0f;
    return p;
}

/* y[batch][m][n]; b is not packed yet. */
static epctx_status epctx__emit_gemm(epctx__compiler *c, const epctx__gemm *params, uint32_t a,
                                     uint32_t b, bool b_transposed, uint32_t bias, uint32_t y) {
    epctx__pack pack = epctx__matrix_pack(c, params->b_shared != 0 ? 1 : params->batch, params->n,
                                          params->k, !b_transposed);
    epctx__step s = epctx__new_step(EPCTX__OP_GEMM, a, b, y);
    s.in[2] = bias;
    s.params.gemm = *params;
    return epctx__emit_packed(c, &s, &pack);
}

/* C is the command's bias if it is one row, or one constant number; else a later step adds it. */
static epctx_status epctx__lower_gemm(epctx__compiler *c) {
    const bool trans_a = epctx_node_int(c->node, "transA", 0) != 0;
    const bool trans_b = epctx_node_int(c->node, "transB", 0) != 0;
    const float beta = epctx_node_float(c->node, "beta", 1.0f);
    const uint32_t a = c->in[0], b = c->in[1];
    const epctx__shape as = c->tensors[a].shape, bs = c->tensors[b].shape;
    epctx__formula r = epctx__formula_of(a);
    epctx__shape ys = {2, {0}}, both;
    epctx__gemm p;
    uint32_t bias = EPCTX__NONE;
    float *factors;
    int64_t m, n, k, i;
    if (as.rank != 2 || bs.rank != 2 || as.dims[trans_a ? 0 : 1] != bs.dims[trans_b ? 1 : 0] ||
        c->tensors[b].count == 0)
        return EPCTX__INVALID(c,
                              "expected matrices with matching dimensions, found ranks %u and %u",
                              (uint64_t)as.rank, (uint64_t)bs.rank);
    ys.dims[0] = m = as.dims[trans_a ? 1 : 0];
    ys.dims[1] = n = bs.dims[trans_b ? 0 : 1];
    k = as.dims[trans_a ? 0 : 1];
    p = epctx__gemm_of(m, n, k);
    if (trans_a) {
        p.a_row = 1;
        p.a_step = p.m;
    }
    p.alpha = epctx_node_float(c->node, "alpha", 1.0f);
    r.v.c = beta != 0.0f ? c->in[2] : EPCTX__NONE;
    if (r.v.c != EPCTX__NONE) {
        const epctx__tensor *t;
        bool row;
        EPCTX__TRY(epctx__want_float(c, r.v.c));
        EPCTX__TRY(epctx__old_broadcast(c, a, &r.v.c));
        t = &c->tensors[r.v.c];
        EPCTX__TRY(epctx__broadcast(c, &t->shape, &ys, &both));
        if (!epctx__same_shape(&both, &ys))
            return EPCTX__INVALID(c, "C: cannot broadcast to [%d, %d]", m, n);
        row = t->shape.rank > 0 && t->shape.dims[t->shape.rank - 1] == n && t->count == (uint64_t)n;
        if (row && beta == 1.0f) {
            bias = r.v.c;
        } else if (t->constant && (row || t->count == 1)) {
            EPCTX__TRY(epctx__add_floats(c, (uint64_t)n, &factors, &r.v.b));
            for (i = 0; i < n; i++) factors[i] = beta;
            EPCTX__TRY(epctx__evaluate(c, &r, "c = c * b"));
            bias = r.v.c;
        }
    }
    EPCTX__TRY(epctx__new_tensor(c, EPCTX_ONNX_FLOAT, &ys, &r.v.y));
    EPCTX__TRY(epctx__emit_gemm(c, &p, a, b, trans_b, bias, r.v.y));
    if (r.v.c != bias) {
        EPCTX__TRY(epctx__scalar_float(c, beta, &r.v.b));
        EPCTX__TRY(epctx__evaluate(c, &r, beta == 1.0f ? "y = y + c" : "y = y + c * b"));
    }
    c->y = r.v.y;
    return epctx__note_product(c, EPCTX__PRODUCT_GEMM, beta != 0.0f ? c->in[2] : EPCTX__NONE);
}

/* Broadcasts the batch dimensions of an operand to those of the result if they differ. */
static epctx_status epctx__matmul_expand(epctx__compiler *c, uint32_t *id,
                                         const epctx__shape *batch) {
    epctx__shape shape = *batch;
    const epctx__shape *in = &c->tensors[*id].shape;
    shape.rank += 2;
    shape.dims[shape.rank - 2] = in->dims[in->rank - 2];
    shape.dims[shape.rank - 1] = in->dims[in->rank - 1];
    if (epctx__count(&shape) == c->tensors[*id].count) return EPCTX_OK;
    return epctx__expand_to(c, *id, &shape, id);
}

static epctx_status epctx__matmul_of(epctx__compiler *c, uint32_t a, uint32_t b, uint32_t *y) {
    epctx__shape as, bs, a_batch, b_batch, batch, ys;
    epctx__gemm p;
    const bool row = c->tensors[a].shape.rank == 1, column = c->tensors[b].shape.rank == 1;
    /* vectors become matrices; the result drops that */
    if (row) EPCTX__TRY(epctx__along_axis(c, &a, 2, 1));
    if (column) EPCTX__TRY(epctx__along_axis(c, &b, 2, 0));
    as = c->tensors[a].shape;
    bs = c->tensors[b].shape;
    if (as.rank < 2 || bs.rank < 2 || as.dims[as.rank - 1] != bs.dims[bs.rank - 2] ||
        c->tensors[a].count == 0 || c->tensors[b].count == 0)
        return EPCTX__INVALID(c, "expected matching inner dimensions, found ranks %u and %u",
                              (uint64_t)as.rank, (uint64_t)bs.rank);
    a_batch = as;
    a_batch.rank -= 2;
    b_batch = bs;
    b_batch.rank -= 2;
    EPCTX__TRY(epctx__broadcast(c, &a_batch, &b_batch, &batch));
    p = epctx__gemm_of(as.dims[as.rank - 2], bs.dims[bs.rank - 1], as.dims[as.rank - 1]);
    if (epctx__count(&b_batch) == 1) { /* one b: the batch becomes rows of a */
        p.m *= (uint32_t)epctx__count(&batch);
    } else {
        p.b_shared = 0;
        p.batch = (uint32_t)epctx__count(&batch);
        EPCTX__TRY(epctx__matmul_expand(c, &b, &batch));
        if (epctx__count(&a_batch) != 1) {
            EPCTX__TRY(epctx__matmul_expand(c, &a, &batch));
            p.a_batch = p.m * p.k;
        }
    }
    ys = batch;
    if (!row) ys.dims[ys.rank++] = as.dims[as.rank - 2];
    if (!column) ys.dims[ys.rank++] = bs.dims[bs.rank - 1];
    EPCTX__TRY(epctx__new_tensor(c, EPCTX_ONNX_FLOAT, &ys, y));
    return epctx__emit_gemm(c, &p, a, b, false, EPCTX__NONE, *y);
}

static epctx_status epctx__lower_matmul(epctx__compiler *c) {
    EPCTX__TRY(epctx__matmul_of(c, c->in[0], c->in[1], &c->y));
    return epctx__note_product(c, EPCTX__PRODUCT_MATMUL, EPCTX__NONE);
}

/* -- formulas: how they are read (above >>lower) -- */

/* A value, or a number as long as v is NONE. */
typedef struct epctx__term {
    uint32_t v;
    int32_t number;
} epctx__term;

typedef struct epctx__function {
    const char *text;
    uint32_t level; /* of an operator: how tight it binds; 0: a function */
    char form;      /* for epctx__apply */
    int32_t kind;
} epctx__function;

static const epctx__function epctx__functions[] = {
    {"&", 1, 'e', EPCTX__EXACT_AND},
    {"|", 1, 'e', EPCTX__EXACT_OR},
    {"==", 2, 'e', EPCTX__EXACT_EQUAL},
    {"<=", 2, 'e', EPCTX__EXACT_LESS_EQUAL},
    {"<", 2, 'e', EPCTX__EXACT_LESS},
    {"+", 3, 'b', EPCTX__BINARY_ADD},
    {"-", 3, 'b', EPCTX__BINARY_SUB},
    {"*", 4, 'b', EPCTX__BINARY_MUL},
    {"/", 4, 'b', EPCTX__BINARY_DIV},
    {"@", 4, '@', 0},
    {"^", 5, 'b', EPCTX__BINARY_POW},
    {"min(", 0, 'b', EPCTX__BINARY_MIN},
    {"max(", 0, 'b', EPCTX__BINARY_MAX},
    {"mod(", 0, 'e', EPCTX__EXACT_MOD},
    {"abs(", 0, 'u', EPCTX__ACT_ABS},
    {"byte(", 0, '8', 0},
    {"exp(", 0, 'u', EPCTX__ACT_EXP},
    {"finite(", 0, 'f', 0},
    {"inverse(", 0, 'u', EPCTX__ACT_RECIPROCAL},
    {"log(", 0, 'u', EPCTX__ACT_LOG},
    {"neg(", 0, 'u', EPCTX__ACT_NEG},
    {"round(", 0, 'u', EPCTX__ACT_ROUND},
    {"sqrt(", 0, 'u', EPCTX__ACT_SQRT},
    {"tanh(", 0, 'u', EPCTX__ACT_TANH},
    {"sum(", 0, 'r', EPCTX__REDUCE_SUM},
    {"mean(", 0, 'r', EPCTX__REDUCE_MEAN},
    {"highest(", 0, 'r', EPCTX__REDUCE_MAX},
    {"all_sum(", 0, 't', EPCTX__REDUCE_SUM},
    {"all_mean(", 0, 't', EPCTX__REDUCE_MEAN},
    {"all_max(", 0, 't', EPCTX__REDUCE_MAX},
    {"all_min(", 0, 't', EPCTX__REDUCE_MIN},
    {"float(", 0, 'c', EPCTX_ONNX_FLOAT},
    {"int(", 0, 'c', EPCTX_ONNX_INT64},
    {"uint8(", 0, 'c', EPCTX_ONNX_UINT8},
    {"where(", 0, 'w', 0},
    {"take(", 0, 'g', 0},
    {"range(", 0, 'n', 0},
    {"part(", 0, 'p', 0}, /* of x along an axis: from an element on, so many */
    {"join(", 0, 'j', 0}, /* two along an axis */
};

/* The operator or function that comes next, or NULL. */
static const epctx__function *epctx__next_function(epctx__formula *r, bool function) {
    size_t i;
    while (*r->at == ' ') r->at++;
    for (i = 0; i < sizeof epctx__functions / sizeof epctx__functions[0]; i++) {
        const epctx__function *f = &epctx__functions[i];
        if ((f->level == 0) == function && strncmp(r->at, f->text, strlen(f->text)) == 0) {
            r->at += strlen(f->text);
            return f;
        }
    }
    return NULL;
}

/* An operator or a function. */
static epctx_status epctx__apply_to(epctx__compiler *c, const epctx__formula *r,
                                    const epctx__function *f, const epctx__term *in, uint32_t *y) {
    const epctx__shape scalar = {0, {0}};
    const uint32_t a = in[0].v, b = in[1].v, both[2] = {a, b};
    switch (f->form) {
    case 'e': return epctx__emit_exact(c, (epctx__exact_kind)f->kind, a, b, y);
    case 'u':
        EPCTX__TRY(epctx__want_float(c, a));
        return epctx__emit_act(c, a, (epctx__act_kind)f->kind, 0.0f, 0.0f, y);
    case '8': return epctx__emit_act(c, a, EPCTX__ACT_CLIP, 0.0f, 255.0f, y);
    case 'f': return epctx__emit_act(c, a, EPCTX__ACT_CLIP, -FLT_MAX, FLT_MAX, y);
    case 'r': return epctx__reduce_over(c, (epctx__reduce_kind)f->kind, a, r->axes, true, y);
    case 't':
        return epctx__emit_reduce(c, (epctx__reduce_kind)f->kind, a, 0, c->tensors[a].shape.rank,
                                  &scalar, y);
    case 'c': return epctx__emit_cast(c, a, f->kind, y);
    case '@': return epctx__matmul_of(c, a, b, y);
    case 'w': return epctx__emit_where(c, a, b, in[2].v, y);
    case 'g': return epctx__emit_gather(c, a, b, 0, y);
    case 'n': return epctx__ramp(c, in[0].number, 1, 0, y);
    case 'p': return epctx__take_one(c, a, (uint32_t)in[1].number, in[2].number, in[3].number, y);
    case 'j': return epctx__emit_concat(c, both, 2, (uint32_t)in[2].number, y);
    default: return epctx__emit_any(c, (epctx__binary_kind)f->kind, a, b, y);
    }
}

/* Applies an operator or function to values and numbers. A number that is an operand gets the type
 * of the values beside it. */
static epctx_status epctx__apply(epctx__compiler *c, const epctx__formula *r,
                                 const epctx__function *f, epctx__term *in, uint32_t count,
                                 uint32_t *y) {
    const uint32_t first = f->form == 'w' ? 1 : 0;
    const bool operands = f->form != 'n' && f->form != 'p' && f->form != 'j';
    int32_t elem = EPCTX_ONNX_FLOAT;
    uint32_t i;
    for (i = count; i-- > first;)
        if (in[i].v != EPCTX__NONE) elem = c->tensors[in[i].v].elem;
    for (i = first; i < count && operands; i++)
        if (in[i].v == EPCTX__NONE) EPCTX__TRY(epctx__scalar(c, elem, in[i].number, &in[i].v));
    return epctx__apply_to(c, r, f, in, y);
}

/* Dimensions up to a character `end`: the sizes in them, flattened, by their index in formula.n,
 * and how many each has. Returns the rank. */
static uint32_t epctx__read_dims(epctx__formula *r, char end, uint8_t *sizes, uint8_t *counts) {
    uint32_t rank = 0;
    bool inside = false;
    for (r->at++; *r->at != end; r->at++) {
        if (!inside && *r->at != ')') counts[rank++] = 0;
        if (*r->at == '(' || *r->at == ')') {
            inside = *r->at == '(';
        } else {
            counts[rank - 1]++;
            *sizes++ = (uint8_t)(*r->at == '*' ? 26 : *r->at == '1' ? 27 : *r->at - 'a');
        }
    }
    return rank;
}

/* x[..>..] */
static epctx_status epctx__rearrange(epctx__compiler *c, epctx__formula *r, uint32_t *x) {
    const epctx__shape in = c->tensors[*x].shape;
    const char *text = r->at;
    int64_t n[28], step[28] = {0}, from[2 * EPCTX_NPU_MAX_RANK], dense = 1;
    uint8_t sizes[2 * EPCTX_NPU_MAX_RANK], counts[2 * EPCTX_NPU_MAX_RANK];
    epctx__shape walk = {0, {0}}, shape = {0, {0}};
    uint32_t i, j, at = 0, first = 0, end, rank = epctx__read_dims(r, '>', sizes, counts);
    const bool rest = memchr(text, '*', (size_t)(r->at - text)) != NULL;
    bool fits = rank == in.rank || (rest && in.rank + 1 >= rank);
    memcpy(n, &r->n, sizeof r->n);
    n[26] = rest ? 0 : n[26];
    n[27] = 1;
    for (i = 0; i < rank && fits; i++, first = end) {
        int64_t left, *open = NULL;
        end = first + (sizes[at] == 26 ? in.rank + 1 - rank : 1);
        left = (int64_t)epctx__product(&in, first, end);
        for (j = 0; j < counts[i]; j++, at++) {
            int64_t *size = &n[sizes[at]];
            fits = fits && (*size != 0 ? *size > 0 && left % *size == 0 : open == NULL);
            open = *size == 0 ? size : open;
            left /= fits && *size != 0 ? *size : 1;
        }
        if (open != NULL) *open = left;
        fits = fits && (open != NULL || left == 1);
    }
    if (!fits)
        return EPCTX__INVALID(c, "input '%S' of rank %u does not fit %s", &c->tensors[*x].name,
                              (uint64_t)in.rank, text);
    for (; at-- > 0; dense *= n[sizes[at]]) step[sizes[at]] += dense;
    rank = epctx__read_dims(r, ']', sizes, counts);
    for (i = 0, at = 0; i < rank; i++) {
        shape.dims[shape.rank++] = 1;
        for (j = 0; j < counts[i]; j++, at++) {
            shape.dims[i] *= n[sizes[at]];
            walk.dims[walk.rank] = n[sizes[at]];
            from[walk.rank++] = step[sizes[at]];
        }
    }
    for (i = walk.rank, dense = 1, fits = true; i-- > 0; dense *= walk.dims[i])
        fits = fits && (walk.dims[i] == 1 || from[i] == dense);
    memcpy(&r->n, n, sizeof r->n);
    r->at++;
    if (!fits) EPCTX__TRY(epctx__emit_strided(c, *x, &walk, 0, from, x));
    return !fits && walk.rank == rank ? EPCTX_OK : epctx__alias(c, *x, &shape, 0, x);
}

static epctx_status epctx__evaluate_level(epctx__compiler *c, epctx__formula *r, uint32_t level,
                                          epctx__term *y);

/* A value, number, function or what is in parentheses. */
static epctx_status epctx__evaluate_operand(epctx__compiler *c, epctx__formula *r, epctx__term *y) {
    const epctx__function *f = epctx__next_function(r, true);
    epctx__term in[4] = {{0, 0}, {0, 0}, {0, 0}, {0, 0}};
    uint32_t count = 0;
    int64_t size;
    y->v = EPCTX__NONE;
    y->number = 0;
    if (f != NULL || *r->at == '(') {
        r->at -= f != NULL;
        do {
            r->at++;
            EPCTX__TRY(epctx__evaluate_level(c, r, 1, &in[count++]));
        } while (*r->at == ',');
        r->at++;
        *y = in[0];
        if (f != NULL) EPCTX__TRY(epctx__apply(c, r, f, in, count, &y->v));
    } else if (*r->at == '#') {
        memcpy(&size, (const int64_t *)(const void *)&r->n + (r->at[1] - 'a'), sizeof size);
        y->number = (int32_t)size;
        r->at += 2;
    } else if (*r->at >= 'a') {
        memcpy(&y->v, (const uint32_t *)(const void *)&r->v + (*r->at++ - 'a'), sizeof y->v);
    } else {
        const int32_t sign = *r->at == '-' ? -1 : 1;
        for (r->at += *r->at == '-'; *r->at >= '0' && *r->at <= '9'; r->at++)
            y->number = y->number * 10 + sign * (*r->at - '0');
    }
    while (*r->at == '[') EPCTX__TRY(epctx__rearrange(c, r, &y->v));
    return EPCTX_OK;
}

/* Operators of this level and of those that bind tighter. */
static epctx_status epctx__evaluate_level(epctx__compiler *c, epctx__formula *r, uint32_t level,
                                          epctx__term *y) {
    EPCTX__TRY(epctx__evaluate_operand(c, r, y));
    for (;;) {
        const char *before = r->at;
        const epctx__function *f = epctx__next_function(r, false);
        epctx__term in[3] = {*y, {0, 0}, {0, 0}};
        if (f == NULL) return EPCTX_OK;
        if (f->level < level) {
            r->at = before;
            return EPCTX_OK;
        }
        EPCTX__TRY(epctx__evaluate_level(c, r, f->level + 1, &in[1]));
        EPCTX__TRY(epctx__apply(c, r, f, in, 2, &y->v));
    }
}

static epctx_status epctx__evaluate(epctx__compiler *c, epctx__formula *r, const char *text) {
    epctx__term y;
    size_t at;
    for (r->at = text; *r->at != '\0'; r->at += *r->at == ';') {
        while (*r->at == ' ') r->at++;
        at = (size_t)(*r->at - 'a');
        r->at += 3; /* "y =" */
        EPCTX__TRY(epctx__evaluate_level(c, r, 1, &y));
        memcpy((uint32_t *)(void *)&r->v + at, &y.v, sizeof y.v);
    }
    return EPCTX_OK;
}

/* -- reductions made of several steps -- */

static epctx_status epctx__lower_reduce_form(epctx__compiler *c) {
    static const char *const forms[5][2] = {
        {"ReduceL1", "y = sum(max(x, 0 - x))"},
        {"ReduceL2", "y = sqrt(sum(x * x))"},
        {"ReduceSumSquare", "y = sum(x * x)"},
        {"ReduceLogSum", "y = log(sum(x))"},
        {"ReduceLogSumExp", "m = finite(highest(x)); y = log(sum(exp(x - m))) + m"}};
    epctx__formula r = epctx__formula_of(c->in[0]);
    bool marked[EPCTX_NPU_MAX_RANK];
    size_t i = 0;
    EPCTX__TRY(epctx__reduce_axes(c, 18, marked));
    r.axes = marked;
    while (!epctx_str_is(c->node->op_type, forms[i][0])) i++;
    EPCTX__TRY(epctx__evaluate(c, &r, forms[i][1]));
    return epctx__drop_axes(c, r.v.y, marked, epctx_node_int(c->node, "keepdims", 1) != 0, &c->y);
}

static epctx_status epctx__lower_mean_variance(epctx__compiler *c) {
    static const int64_t usual[3] = {0, 2, 3};
    bool marked[EPCTX_NPU_MAX_RANK] = {false};
    epctx__formula r = epctx__formula_of(c->in[0]);
    epctx__list axes;
    EPCTX__TRY(epctx__ints_of(c, "axes", 0, INT64_MAX, &axes));
    EPCTX__TRY(epctx__mark_axes(c, axes.found ? axes.v : usual, axes.found ? axes.count : 3,
                                c->tensors[r.v.x].shape.rank, marked));
    r.axes = marked;
    EPCTX__TRY(epctx__scalar_float(c, 1e-9f, &r.v.e));
    return epctx__evaluate_y(c, &r, "d = x - mean(x); y = d / (sqrt(mean(d * d)) + e)");
}

/* -- BatchNormalization: y = x * f + g, f = s / sqrt(v + e), g = b - m * f -- */

static epctx_status epctx__lower_batch_norm(epctx__compiler *c) {
    const float momentum = epctx_node_float(c->node, "momentum", 0.9f);
    const bool training = epctx_node_int(c->node, "training_mode", 0) != 0;
    const bool apart[EPCTX_NPU_MAX_RANK] = {true, false, true, true, true, true, true, true};
    const epctx__shape shape = c->tensors[c->in[0]].shape;
    const uint32_t rank = shape.rank;
    epctx__formula r = epctx__formula_of(c->in[0]);
    epctx__step s;
    uint32_t *const ids[4] = {&r.v.s, &r.v.b, &r.v.m, &r.v.v}, i;
    bool constant = !training;
    size_t before;
    uint64_t channels;
    if (!training) EPCTX__TRY(epctx__unused_outputs(c, 1));
    if ((c->node->version < 7 && epctx_node_int(c->node, "is_test", 0) == 0) ||
        epctx_node_int(c->node, "spatial", 1) == 0 || rank < 2)
        return EPCTX__REFUSE(c, "expected statistics per channel, of inference or as of opset 14, "
                                "and rank >= 2");
    channels = (uint64_t)shape.dims[1];
    for (i = 0; i < 4; i++) {
        EPCTX__TRY(epctx__float_input(c, i + 1, ids[i]));
        if (c->tensors[*ids[i]].count != channels)
            return EPCTX__INVALID(c, "input '%S': expected %u elements, found %u",
                                  &c->tensors[*ids[i]].name, channels, c->tensors[*ids[i]].count);
        EPCTX__TRY(epctx__want_rank(c, *ids[i], "input", 1, 1));
        constant = constant && c->tensors[*ids[i]].constant;
    }
    EPCTX__TRY(epctx__scalar_float(c, epctx_node_float(c->node, "epsilon", 1e-5f), &r.v.e));
    if (training) { /* outputs 1 and 2: smoothed statistics */
        r.axes = apart;
        EPCTX__TRY(epctx__scalar_float(c, momentum, &r.v.p));
        EPCTX__TRY(epctx__scalar_float(c, 1.0f - momentum, &r.v.q));
        EPCTX__TRY(epctx__evaluate(c, &r,
                                   "n = mean(x); d = x - n; w = mean(d * d);"
                                   "n = n[1c*>c]; i = m * p + n * q; m = n;"
                                   "w = w[1c*>c]; j = v * p + w * q; v = w"));
        EPCTX__TRY(epctx__set_output(c, 1, r.v.i));
        EPCTX__TRY(epctx__set_output(c, 2, r.v.j));
    }
    if (!constant) {
        for (i = 0; i < 4; i++) EPCTX__TRY(epctx__along_axis(c, ids[i], rank - 1, 0));
        return epctx__evaluate_y(c, &r, "d = sqrt(v + e); y = (x - m) / d * s + b");
    }
    EPCTX__TRY(epctx__evaluate(c, &r, "f = s / sqrt(v + e); g = b - m * f"));
    s = epctx__new_step(EPCTX__OP_AFFINE, r.v.x, r.v.f, 0);
    s.in[2] = r.v.g;
    epctx__dims_around(&shape, 1, 2, &s.params.affine.outer, &s.params.affine.channels,
                       &s.params.affine.inner);
    before = c->step_count;
    EPCTX__TRY(epctx__emit_new(c, &s, EPCTX_ONNX_FLOAT, &shape, &c->y));
    epctx__may_join(c, before);
    return EPCTX_OK;
}

/* -- normalizations -- */

static epctx_status epctx__emit_rows(epctx__compiler *c, uint32_t x, uint32_t scale, uint32_t shift,
                                     const epctx__norm *n, uint32_t *y) {
    epctx__shape shape = c->tensors[x].shape;
    epctx__step s = epctx__new_step(EPCTX__OP_NORM, x, scale, 0);
    uint32_t i;
    s.in[2] = shift;
    s.params.norm = *n;
    for (i = 1; i < 3; i++) {
        if (s.in[i] == EPCTX__NONE) continue;
        EPCTX__TRY(epctx__want_float(c, s.in[i]));
        if (c->tensors[s.in[i]].count != n->channels)
            return EPCTX__REFUSE(c, "scale and bias: expected %u elements, found %u",
                                 (uint64_t)n->channels, c->tensors[s.in[i]].count);
        EPCTX__TRY(epctx__want_rank(c, s.in[i], "scale or bias", 0, shape.rank));
    }
    return epctx__emit_new(c, &s, EPCTX_ONNX_FLOAT, &shape, y);
}

/* Whether an optional operand has the dimensions of x from `axis` on. */
static bool epctx__like_end(const epctx__compiler *c, uint32_t id, const epctx__shape *x,
                            uint32_t axis) {
    const epctx__shape *shape = id != EPCTX__NONE ? &c->tensors[id].shape : x;
    uint32_t i;
    for (i = 1; i <= shape->rank && id != EPCTX__NONE; i++)
        if (shape->dims[shape->rank - i] != (i <= x->rank - axis ? x->dims[x->rank - i] : 1))
            return false;
    return true;
}

/* Optional outputs of LayerNormalization: mean and inverse standard deviation. */
static epctx_status epctx__lower_layer_norm(epctx__compiler *c) {
    const bool centred = c->variant != 0;
    const bool more = centred && epctx__unused_outputs(c, 1) != EPCTX_OK;
    const epctx__shape shape = c->tensors[c->in[0]].shape;
    bool inner[EPCTX_NPU_MAX_RANK];
    epctx__formula r = epctx__formula_of(c->in[0]);
    epctx__norm n;
    uint32_t shift = EPCTX__NONE, axis, i;
    epctx_error_clear(c->error);
    if (centred)
        EPCTX__TRY(epctx__optional(c, 2, &shift));
    else
        EPCTX__TRY(epctx__unused_outputs(c, 1));
    EPCTX__TRY(epctx__axis_attr(c, -1, shape.rank, 0, &axis));
    n.rows = (uint32_t)epctx__product(&shape, 0, axis);
    n.count = n.channels = (uint32_t)epctx__product(&shape, axis, shape.rank);
    n.inner = 1;
    n.centred = centred;
    n.epsilon = epctx_node_float(c->node, "epsilon", 1e-5f);
    EPCTX__TRY(epctx__emit_rows(c, r.v.x, c->in[1], shift, &n, &r.v.y));
    if (!epctx__like_end(c, c->in[1], &shape, axis) || !epctx__like_end(c, shift, &shape, axis))
        return EPCTX__INVALID(c, "scale and bias: expected the dimensions from axis %u on",
                              (uint64_t)axis);
    EPCTX__TRY(epctx__set_output(c, 0, r.v.y));
    if (!more) return EPCTX_OK;
    for (i = 0; i < EPCTX_NPU_MAX_RANK; i++) inner[i] = i >= axis;
    r.axes = inner;
    EPCTX__TRY(epctx__scalar_float(c, n.epsilon, &r.v.e));
    EPCTX__TRY(
        epctx__evaluate(c, &r, "m = mean(x); d = x - m; s = inverse(sqrt(mean(d * d) + e))"));
    EPCTX__TRY(epctx__set_output(c, 1, r.v.m));
    return epctx__set_output(c, 2, r.v.s);
}

/* One row per sample and channel, or group of channels. */
static epctx_status epctx__lower_channel_norm(epctx__compiler *c) {
    const bool grouped = c->variant != 0;
    const int64_t groups = epctx_node_int(c->node, "num_groups", 1);
    const bool by_group = grouped && c->node->version < 21; /* scale and bias */
    const epctx__shape shape = c->tensors[c->in[0]].shape;
    epctx__norm n;
    uint32_t plane, channels;
    if (shape.rank < 3 || groups < 1 || shape.dims[1] % groups != 0)
        return EPCTX__INVALID(c, "expected rank >= 3 and channels divisible by %d groups", groups);
    channels = (uint32_t)shape.dims[1];
    plane = (uint32_t)epctx__product(&shape, 2, shape.rank);
    n.rows = (uint32_t)shape.dims[0] * (grouped ? (uint32_t)groups : channels);
    n.count = plane * (grouped ? channels / (uint32_t)groups : 1);
    n.channels = by_group ? (uint32_t)groups : channels;
    n.inner = by_group ? n.count : plane;
    n.centred = 1;
    n.epsilon = epctx_node_float(c->node, "epsilon", 1e-5f);
    EPCTX__TRY(epctx__want_rank(c, c->in[1], "scale", 1, 1));
    EPCTX__TRY(epctx__want_rank(c, c->in[2], "bias", 1, 1));
    return epctx__emit_rows(c, c->in[0], c->in[1], c->in[2], &n, &c->y);
}

/* x / (bias + alpha * mean square of nearby channels) ^ beta; the mean is a pool over channels. */
static epctx_status epctx__lower_lrn(epctx__compiler *c) {
    const int64_t size = epctx_node_int(c->node, "size", 0);
    const epctx__shape shape = c->tensors[c->in[0]].shape;
    const uint32_t channels = (uint32_t)shape.dims[1], top = (uint32_t)(size - 1) / 2;
    const epctx__window w = {channels, 1, channels, 1, (uint32_t)size,           1, 1, 1,
                             1,        1, top,      0, (uint32_t)size - 1 - top, 0};
    epctx__step s;
    epctx__formula r = epctx__formula_of(c->in[0]);
    if (shape.rank < 3 || size < 1 || size > 4096)
        return epctx__bad_attr(c, "size", "1 to 4096 channels and an input of rank >= 3");
    EPCTX__TRY(epctx__evaluate(c, &r, "s = x * x"));
    s = epctx__new_step(EPCTX__OP_POOL, r.v.s, EPCTX__NONE, 0);
    s.params.pool.batch = (uint32_t)shape.dims[0];
    s.params.pool.channels = s.params.pool.row = (uint32_t)epctx__product(&shape, 2, shape.rank);
    s.params.pool.kind = EPCTX__SLIDE_MEAN;
    s.params.pool.window = w;
    if (!epctx__window_ok(&w)) return EPCTX__REFUSE(c, "window of %d channels is too large", size);
    EPCTX__TRY(epctx__emit_new(c, &s, EPCTX_ONNX_FLOAT, &shape, &r.v.m));
    EPCTX__TRY(epctx__scalar_float(c, epctx_node_float(c->node, "alpha", 1e-4f), &r.v.a));
    EPCTX__TRY(epctx__scalar_float(c, epctx_node_float(c->node, "bias", 1.0f), &r.v.k));
    EPCTX__TRY(epctx__scalar_float(c, epctx_node_float(c->node, "beta", 0.75f), &r.v.b));
    return epctx__evaluate_y(c, &r, "y = x / (m * a + k) ^ b");
}

/* -- quantization -- */

/* Drops a constant zero point of zeros, which means the same as none. */
static epctx_status epctx__drop_zeros(epctx__compiler *c, uint32_t *zero) {
    const epctx__tensor *t;
    const void *data;
    uint64_t i;
    if (*zero == EPCTX__NONE) return EPCTX_OK;
    t = &c->tensors[*zero];
    if (!t->constant || t->outside) return EPCTX_OK;
    EPCTX__TRY(epctx__data(c, *zero, &data));
    for (i = 0; i < t->count; i++)
        if (epctx__load_int((const uint8_t *)data, (size_t)i, (uint32_t)t->elem) != 0)
            return EPCTX_OK;
    *zero = EPCTX__NONE;
    return EPCTX_OK;
}

/* Per-tensor or per-axis scale and zero point. */
static epctx_status epctx__emit_quantize(epctx__compiler *c, epctx__opcode op, uint32_t x,
                                         uint32_t scale, uint32_t zero, int64_t axis_or,
                                         int32_t type, uint32_t *y) {
    const bool to_float = op == EPCTX__OP_DEQUANTIZE;
    epctx__shape shape = c->tensors[x].shape;
    const uint64_t channels = c->tensors[scale].count;
    epctx__step s = epctx__new_step(op, x, scale, 0);
    epctx__quantize *p = &s.params.quantize;
    uint32_t axis = 0;
    p->type = (uint32_t)type;
    p->outer = p->channels = 1;
    p->inner = (uint32_t)c->tensors[x].count;
    if (channels != 1) {
        EPCTX__TRY(epctx__axis(c, axis_or, shape.rank, 0, &axis));
        if (channels != (uint64_t)shape.dims[axis] || c->tensors[scale].shape.rank != 1)
            return EPCTX__REFUSE(c, "scale: expected 1 or %d elements, found %u", shape.dims[axis],
                                 channels);
        epctx__dims_around(&shape, axis, axis + 1, &p->outer, &p->channels, &p->inner);
    }
    if (type != EPCTX_ONNX_INT8 && type != EPCTX_ONNX_UINT8 &&
        !(to_float && type == EPCTX_ONNX_INT32))
        return EPCTX__REFUSE(c, "expected int8 or uint8, found %s", epctx_elem_name(type));
    EPCTX__TRY(epctx__want_float(c, scale));
    EPCTX__TRY(epctx__want_rank(c, scale, "scale", 0, 1));
    EPCTX__TRY(epctx__want_rank(c, zero, "zero point", 0, 1));
    if (zero != EPCTX__NONE &&
        (c->tensors[zero].elem != type || c->tensors[zero].count != channels))
        return EPCTX__INVALID(
            c, "zero point: expected the type of the tensor and the size of the scale");
    EPCTX__TRY(epctx__drop_zeros(c, &zero));
    s.in[2] = zero;
    return epctx__emit_new(c, &s, to_float ? EPCTX_ONNX_FLOAT : type, &shape, y);
}

/* QuantizeLinear, or DequantizeLinear. */
static epctx_status epctx__lower_quantize(epctx__compiler *c) {
    const bool back = c->variant != 0;
    const int64_t given = epctx_node_int(c->node, "output_dtype", 0);
    const int32_t type = back                      ? c->tensors[c->in[0]].elem
                         : c->in[2] != EPCTX__NONE ? c->tensors[c->in[2]].elem
                         : given != 0              ? (int32_t)given
                                                   : EPCTX_ONNX_UINT8;
    if (epctx_node_int(c->node, "block_size", 0) != 0)
        return EPCTX__REFUSE(c, "blocked quantization is not supported");
    return epctx__emit_quantize(c, back ? EPCTX__OP_DEQUANTIZE : EPCTX__OP_QUANTIZE, c->in[0],
                                c->in[1], c->in[2], epctx_node_int(c->node, "axis", 1), type,
                                &c->y);
}

/* Outputs: quantized data, scale and zero point, from the range of the input. */
static epctx_status epctx__lower_dynamic_quantize(epctx__compiler *c) {
    epctx__formula r = epctx__formula_of(c->in[0]);
    EPCTX__TRY(epctx__evaluate(c, &r,
                               "l = all_min(x); h = all_max(x); l = min(l, 0); h = max(h, 0);"
                               "s = where(h == l, 1, (h - l) / 255);" /* of zeros alone */
                               "z = uint8(byte(round(neg(l / s))))"));
    EPCTX__TRY(epctx__set_output(c, 1, r.v.s));
    EPCTX__TRY(epctx__set_output(c, 2, r.v.z));
    return epctx__emit_quantize(c, EPCTX__OP_QUANTIZE, r.v.x, r.v.s, r.v.z, 0, EPCTX_ONNX_UINT8,
                                &c->y);
}

/* -- losses: minus the selected element, weighted; some exported models contain them -- */

static epctx_status epctx__lower_loss(epctx__compiler *c) {
    static const char *const results[3][2] = {
        {"y = all_mean(y)", "y = all_sum(y * w) / all_sum(w)"},
        {"y = all_sum(y)", "y = all_sum(y * w)"},
        {"y = y", "y = y * w"}};
    const epctx_attr *ignore = epctx_node_attr(c->node, "ignore_index");
    epctx__formula r = epctx__formula_of(c->in[0]);
    const epctx__shape xs = c->tensors[r.v.x].shape, ts = c->tensors[c->in[1]].shape;
    const bool weighted = c->in[2] != EPCTX__NONE || ignore != NULL;
    uint32_t reduction, at;
    r.v.t = c->in[1];
    r.v.w = c->in[2];
    EPCTX__TRY(epctx__choice(c, "reduction", "mean sum none", &reduction));
    EPCTX__TRY(epctx__want_indices(c, r.v.t, false));
    if (xs.rank < 2 || ts.rank + 1 != xs.rank)
        return EPCTX__INVALID(c,
                              "expected targets of one rank less, found ranks %u (scores) and %u",
                              (uint64_t)xs.rank, (uint64_t)ts.rank);
    if (c->variant != 0) { /* cross entropy: output 1 are the logarithms of a softmax */
        EPCTX__TRY(epctx__emit_softmax(c, r.v.x, 1, 2, true, &r.v.x));
        EPCTX__TRY(epctx__set_output(c, 1, r.v.x));
    }
    EPCTX__TRY(epctx__evaluate(c, &r, "t = int(t)"));
    if (ignore != NULL) {
        if (ignore->i > 1000000 || ignore->i < -1000000)
            return epctx__bad_attr(c, "ignore_index", "-1000000..1000000");
        r.n.i = ignore->i;
        EPCTX__TRY(epctx__evaluate(c, &r, "i = t == #i; t = where(i, 0, t)"));
    }
    EPCTX__TRY(epctx__evaluate(c, &r, "x = x[nc*>nc*]; u = t[n*>n1*]"));
    EPCTX__TRY(epctx__emit_elements(c, r.v.x, r.v.u, EPCTX__NONE, 1, 0, &r.v.y));
    EPCTX__TRY(epctx__alias(c, r.v.y, &ts, 0, &r.v.y));
    EPCTX__TRY(epctx__evaluate(c, &r, ignore != NULL ? "y = where(i, 0, neg(y))" : "y = neg(y)"));
    if (r.v.w != EPCTX__NONE) {
        EPCTX__TRY(epctx__want_float(c, r.v.w));
        EPCTX__TRY(epctx__axis(c, 0, c->tensors[r.v.w].shape.rank, 0, &at));
        EPCTX__TRY(epctx__evaluate(
            c, &r, ignore != NULL ? "w = where(i, 0, take(w, t))" : "w = take(w, t)"));
    } else if (weighted) {
        EPCTX__TRY(epctx__evaluate(c, &r, "w = where(i, 0, 1)"));
    }
    return epctx__evaluate_y(c, &r, results[reduction][weighted]);
}

/* -- recurrent networks -- */

/* Common state of the operators RNN, GRU and LSTM. */
typedef struct epctx__rnn {
    epctx__recurrent p;
    uint32_t x, w, r, b, lengths, first, cell, peep; /* tensors */
    uint32_t directions, gates, inputs;
    bool batch_first;
    uint32_t results[2]; /* of each direction */
} epctx__rnn;

/* The activations of direction `d`. */
static epctx_status epctx__rnn_acts(epctx__compiler *c, epctx__rnn *n, uint32_t d) {
    static const struct {
        const char *name;
        epctx__act_kind kind;
    } known[3] = {
        {"Sigmoid", EPCTX__ACT_SIGMOID}, {"Tanh", EPCTX__ACT_TANH}, {"Relu", EPCTX__ACT_RELU}};
    const epctx_attr *attr = epctx_node_attr(c->node, "activations");
    const uint32_t count = n->p.cell + 1; /* RNN 1, GRU 2, LSTM 3 */
    epctx__act *const acts[3] = {&n->p.f, &n->p.g, &n->p.h};
    uint32_t i, k;
    if (attr != NULL && (attr->type != EPCTX_ATTR_STRINGS || attr->count != count * n->directions))
        return epctx__bad_attr(c, "activations", "names for every direction");
    for (i = 0; i < count; i++) {
        const epctx_str name = attr != NULL ? attr->strings[d * count + i]
                                            : epctx_str_of(known[i > 0 || count == 1].name);
        for (k = 0; k < 3 && !epctx_str_is(name, known[k].name); k++) {
        }
        if (k == 3)
            return epctx__in_attr(
                c, "activations",
                EPCTX__REFUSE(c, "expected Sigmoid, Tanh or Relu, found '%S'", &name));
        acts[i]->kind = (uint32_t)known[k].kind;
    }
    return EPCTX_OK;
}

static epctx_status epctx__rnn_inputs(epctx__compiler *c, epctx__rnn *n) {
    static const int64_t swapped[3] = {1, 0, 2};
    uint32_t *const ids[8] = {&n->x,       &n->w,     &n->r,    &n->b,
                              &n->lengths, &n->first, &n->cell, &n->peep};
    const int64_t d = n->directions;
    int64_t hidden;
    uint32_t i;
    for (i = 0; i < 8; i++)
        EPCTX__TRY(i < 3 ? epctx__float_input(c, i, ids[i]) : epctx__optional(c, i, ids[i]));
    n->batch_first = epctx_node_int(c->node, "layout", 0) != 0;
    hidden = epctx_node_int(c->node, "hidden_size",
                            c->tensors[n->r].shape.rank == 3 ? c->tensors[n->r].shape.dims[2] : 0);
    if (c->tensors[n->x].shape.rank != 3 || hidden < 1 || hidden > 65536 ||
        epctx_node_attr(c->node, "clip") != NULL ||
        epctx_node_attr(c->node, "activation_alpha") != NULL ||
        epctx_node_int(c->node, "input_forget", 0) != 0)
        return EPCTX__REFUSE(c,
                             "expected X of rank 3 and no clip, activation_alpha or input_forget");
    if (n->batch_first) EPCTX__TRY(epctx__emit_transpose(c, n->x, swapped, &n->x));
    const epctx__shape x = c->tensors[n->x].shape;
    const int64_t batch = x.dims[1], rows = n->gates * hidden;
    const epctx__shape state = {3,
                                {n->batch_first ? batch : d, n->batch_first ? d : batch, hidden}};
    const epctx__shape shapes[8] = {x,
                                    {3, {d, rows, x.dims[2]}},
                                    {3, {d, rows, hidden}},
                                    {2, {d, 2 * rows}},
                                    {1, {batch}},
                                    state,
                                    state,
                                    {2, {d, 3 * hidden}}};
    n->p.time = (uint32_t)x.dims[0];
    n->p.batch = (uint32_t)batch;
    n->p.hidden = (uint32_t)hidden;
    n->inputs = (uint32_t)x.dims[2];
    if (n->lengths != EPCTX__NONE && (c->tensors[n->lengths].elem != EPCTX_ONNX_INT32 ||
                                      c->tensors[n->lengths].count != n->p.batch))
        return EPCTX__INVALID(c, "sequence_lens: expected %u int32 elements", (uint64_t)n->p.batch);
    for (i = 1; i < 8; i++) {
        if (*ids[i] == EPCTX__NONE) continue;
        if (!epctx__same_shape(&c->tensors[*ids[i]].shape, &shapes[i]))
            return EPCTX__INVALID(c, "input '%S': expected shape [%d, %d, %d]",
                                  &c->tensors[*ids[i]].name, shapes[i].dims[0], shapes[i].dims[1],
                                  shapes[i].dims[2]);
        if (ids[i] != &n->lengths) EPCTX__TRY(epctx__want_float(c, *ids[i]));
    }
    return EPCTX_OK;
}

/* The bias of direction `d`: the sum of both halves, except the last gate of a late-reset GRU. */
static epctx_status epctx__rnn_bias(epctx__compiler *c, const epctx__rnn *n, int64_t d,
                                    uint32_t *bias, uint32_t *late) {
    epctx__formula r = epctx__formula_of(n->b);
    *bias = *late = EPCTX__NONE;
    if (n->b == EPCTX__NONE) return EPCTX_OK;
    r.n.d = d;
    r.n.h = n->p.hidden;
    r.n.t = 2 * r.n.h;
    r.n.g = n->gates * r.n.h;
    EPCTX__TRY(
        epctx__evaluate(c, &r,
                        "x = part(x, 0, #d, 1); i = part(x, 1, 0, #g); s = part(x, 1, #g, #g);"
                        "y = i + s"));
    if (n->p.late_reset != 0)
        EPCTX__TRY(epctx__evaluate(c, &r,
                                   "y = join(part(y, 1, 0, #t), part(i, 1, #t, #h), 1);"
                                   "l = part(s, 1, #t, #h)"));
    *bias = r.v.y;
    if (n->p.late_reset != 0) *late = r.v.l;
    return EPCTX_OK;
}

static epctx_status epctx__rnn_direction(epctx__compiler *c, epctx__rnn *n, uint32_t d) {
    const uint32_t rows = n->gates * n->p.hidden, by_batch = n->batch_first ? 1u : 0u;
    const int64_t state = (int64_t)n->p.batch * n->p.hidden;
    const epctx__shape all = {2, {(int64_t)n->p.time * n->p.batch, rows}};
    const epctx__shape states = {1, {((int64_t)n->p.time + 2) * state}};
    const epctx__gemm gemm = epctx__gemm_of(all.dims[0], rows, n->inputs);
    epctx__pack pack;
    epctx__step s;
    const uint32_t parts[3] = {n->peep, n->first, n->cell};
    uint32_t w, r, bias, late, gates, i;
    EPCTX__TRY(epctx__rnn_acts(c, n, d));
    EPCTX__TRY(epctx__rnn_bias(c, n, d, &bias, &late));
    EPCTX__TRY(epctx__take_one(c, n->w, 0, d, 1, &w));
    EPCTX__TRY(epctx__take_one(c, n->r, 0, d, 1, &r));
    EPCTX__TRY(epctx__new_tensor(c, EPCTX_ONNX_FLOAT, &all, &gates));
    EPCTX__TRY(epctx__emit_gemm(c, &gemm, n->x, w, true, bias, gates));
    s = epctx__new_step(EPCTX__OP_RECURRENT, gates, r, 0);
    s.in[2] = late;
    for (i = 0; i < 3; i++)
        if (parts[i] != EPCTX__NONE)
            EPCTX__TRY(epctx__take_one(c, parts[i], i > 0 ? by_batch : 0, d, 1, &s.in[3 + i]));
    s.in[6] = n->lengths;
    s.params.recurrent = n->p;
    s.params.recurrent.reverse = n->p.reverse != 0 || d == 1;
    EPCTX__TRY(epctx__new_tensor(c, EPCTX_ONNX_FLOAT, &states, &n->results[d]));
    s.out = n->results[d];
    pack = epctx__matrix_pack(c, n->gates, n->p.hidden, n->p.hidden, false);
    return epctx__emit_packed(c, &s, &pack);
}

/* Output `i` from the results of the directions: `steps` steps, from element `start` on. */
static epctx_status epctx__rnn_output(epctx__compiler *c, const epctx__rnn *n, size_t i,
                                      uint64_t start, uint32_t steps) {
    static const char *const orders[2][2] = {{"y = x[tbh>t1bh]", "y = x[tbh>bt1h]"},
                                             {"y = x[tbh>tbh]", "y = x[tbh>bth]"}};
    const epctx__shape shape = {3, {steps, n->p.batch, n->p.hidden}};
    uint32_t parts[2] = {EPCTX__NONE, EPCTX__NONE}, y, d;
    if (i >= c->node->output_count || c->node->outputs[i].size == 0) return EPCTX_OK;
    for (d = 0; d < n->directions; d++) {
        epctx__formula r = epctx__formula_of(0);
        EPCTX__TRY(epctx__alias(c, n->results[d], &shape, start, &r.v.x));
        EPCTX__TRY(epctx__evaluate(c, &r, orders[i > 0][n->batch_first]));
        parts[d] = r.v.y;
    }
    d = (n->batch_first ? 1u : 0u) + (i == 0 ? 1u : 0u);
    y = parts[0];
    if (n->directions == 2) EPCTX__TRY(epctx__emit_concat(c, parts, 2, d, &y));
    return epctx__set_output(c, i, y);
}

static epctx_status epctx__lower_cell(epctx__compiler *c) {
    const epctx__cell cell = (epctx__cell)c->variant;
    epctx__rnn n;
    uint64_t state;
    uint32_t direction, d;
    memset(&n, 0, sizeof n);
    n.p.cell = (uint32_t)cell;
    n.gates = epctx__gates(n.p.cell);
    EPCTX__TRY(epctx__choice(c, "direction", "forward reverse bidirectional", &direction));
    n.p.reverse = direction == 1;
    n.directions = direction == 2 ? 2 : 1;
    n.p.late_reset =
        cell == EPCTX__CELL_GRU && epctx_node_int(c->node, "linear_before_reset", 0) != 0;
    EPCTX__TRY(epctx__rnn_inputs(c, &n));
    for (d = 0; d < n.directions; d++) EPCTX__TRY(epctx__rnn_direction(c, &n, d));
    state = (uint64_t)n.p.batch * n.p.hidden;
    EPCTX__TRY(epctx__rnn_output(c, &n, 0, 0, n.p.time));
    EPCTX__TRY(epctx__rnn_output(c, &n, 1, n.p.time * state, 1));
    return epctx__rnn_output(c, &n, 2, (n.p.time + (uint64_t)1) * state, 1);
}

/* -- Resize: axis by axis, with tables of positions and weights built here -- */

typedef enum epctx__filter { EPCTX__NEAREST = 0, EPCTX__LINEAR, EPCTX__CUBIC } epctx__filter;

/* coordinate_transformation_mode and nearest_mode, in the order of the words (epctx__choice) */
#define EPCTX__TRANSFORMS \
    "half_pixel pytorch_half_pixel align_corners asymmetric tf_crop_and_resize" \
    " half_pixel_symmetric tf_half_pixel_for_nn"
typedef enum epctx__transform {
    EPCTX__AT_HALF = 0,
    EPCTX__AT_HALF_OF_MANY,
    EPCTX__AT_CORNERS,
    EPCTX__AT_EDGE,
    EPCTX__AT_CROP,
    EPCTX__AT_SYMMETRIC,
    EPCTX__AT_NEXT
} epctx__transform;

#define EPCTX__NEARESTS "round_prefer_floor round_prefer_ceil floor ceil"
typedef enum epctx__nearest_form {
    EPCTX__TO_FLOOR = 0,
    EPCTX__TO_CEIL,
    EPCTX__FLOOR,
    EPCTX__CEIL,
    EPCTX__CEIL_IF_SMALLER /* before opset 11 */
} epctx__nearest_form;

/* How one axis is resized. */
typedef struct epctx__axis_plan {
    int64_t in, out;
    float scale;
    uint32_t transform, nearest, filter;
    float cubic;
    bool exclude, antialias;
    float start, end; /* of the region of tf_crop_and_resize */
    float outside;    /* the value where epctx__beyond */
} epctx__axis_plan;

/* Input coordinate of output position `i`. */
static float epctx__source_of(const epctx__axis_plan *p, int64_t i) {
    const float at = (float)i, in = (float)p->in, out = (float)p->out, last = in - 1.0f;
    const float half = epctx__f_add(epctx__f_div(epctx__f_add(at, 0.5f), p->scale), -0.5f);
    const float size = epctx__f_add(p->end, -p->start);
    const float ratio = epctx__f_div(out, epctx__f_mul(p->scale, in));
    volatile double x = ((double)at + 0.5) / (double)p->scale;
    switch ((epctx__transform)p->transform) {
    case EPCTX__AT_HALF_OF_MANY: return p->out > 1 ? half : 0.0f;
    case EPCTX__AT_CORNERS:
        return p->out == 1 ? 0.0f : epctx__f_div(epctx__f_mul(at, last), out - 1.0f);
    case EPCTX__AT_EDGE: return epctx__f_div(at, p->scale);
    case EPCTX__AT_NEXT: return epctx__f_div(epctx__f_add(at, 0.5f), p->scale);
    case EPCTX__AT_SYMMETRIC: /* float, as in ORT: decides ties */
        x = (double)epctx__f_mul(in * 0.5f, epctx__f_add(1.0f, -ratio)) + x;
        return (float)(x - 0.5);
    case EPCTX__AT_CROP:
        if (p->out <= 1) return epctx__f_mul(0.5f * epctx__f_add(p->start, p->end), last);
        return epctx__f_add(epctx__f_mul(p->start, last),
                            epctx__f_div(epctx__f_mul(epctx__f_mul(at, size), last), out - 1.0f));
    default: return half;
    }
}

static float epctx__nearest(const epctx__axis_plan *p, float x) {
    const float down = epctx__floor(x), rest = epctx__f_add(x, -down);
    switch ((epctx__nearest_form)p->nearest) { /* as in ONNX Runtime, near ties count as ties */
    case EPCTX__TO_FLOOR: return rest > 0.500001f ? down + 1.0f : down;
    case EPCTX__TO_CEIL: return rest > 0.499999f ? down + 1.0f : down;
    case EPCTX__FLOOR: return down;
    case EPCTX__CEIL: return rest > 0.0f ? down + 1.0f : down;
    default: return rest > 0.0f && p->scale < 1.0f ? down + 1.0f : down;
    }
}

/* Weight of a tap at distance d >= 0. */
static float epctx__tap(const epctx__axis_plan *p, float d) {
    const float a = p->cubic;
    float v;
    if (p->filter == EPCTX__LINEAR) return d < 1.0f ? epctx__f_add(1.0f, -d) : 0.0f;
    if (d >= 2.0f) return 0.0f;
    if (d <= 1.0f) { /* ((a + 2) d - (a + 3)) d^2 + 1 */
        v = epctx__f_add(epctx__f_mul(epctx__f_add(a, 2.0f), d), -epctx__f_add(a, 3.0f));
        return epctx__f_add(epctx__f_mul(epctx__f_mul(v, d), d), 1.0f);
    }
    v = epctx__f_add(epctx__f_mul(a, d), -epctx__f_mul(5.0f, a));
    v = epctx__f_add(epctx__f_mul(v, d), epctx__f_mul(8.0f, a));
    return epctx__f_add(epctx__f_mul(v, d), -epctx__f_mul(4.0f, a));
}

/* Of the region of tf_crop_and_resize, input coordinate x is not in the input. */
static bool epctx__beyond(const epctx__axis_plan *p, float x) {
    return p->transform == EPCTX__AT_CROP && !(x >= 0.0f && x <= (float)(p->in - 1));
}

/* Fills the taps of one output position; those that count for nothing have position -1. */
static void epctx__taps(const epctx__axis_plan *p, int64_t i, int64_t taps, int32_t *positions,
                        float *weights) {
    const bool wide = p->antialias && p->scale < 1.0f;
    const float x = epctx__source_of(p, i), top = (float)(p->in - 1);
    float first, sum = 0.0f;
    int64_t t;
    if (epctx__beyond(p, x)) {
        for (t = 0; t < taps; t++) positions[t] = -1;
        return;
    }
    first = p->filter == EPCTX__NEAREST ? epctx__nearest(p, x) : epctx__floor(x);
    first = epctx__f_add(first, -(float)((taps - 1) / 2));
    for (t = 0; t < taps; t++) {
        float at = first + (float)t, d = epctx__f_add(x, -at);
        const bool outside = at < 0.0f || at > top;
        d = d < 0.0f ? -d : d;
        weights[t] = p->filter == EPCTX__NEAREST
                         ? 1.0f
                         : epctx__tap(p, wide ? epctx__f_mul(d, p->scale) : d);
        if (outside && p->exclude && p->filter != EPCTX__NEAREST) weights[t] = 0.0f;
        sum = epctx__f_add(sum, weights[t]);
        at = at < 0.0f ? 0.0f : (at > top ? top : at);
        positions[t] = weights[t] == 0.0f ? -1 : (int32_t)at;
    }
    for (t = 0; t < taps && sum != 0.0f && (p->exclude || p->antialias); t++)
        weights[t] = epctx__f_div(weights[t], sum);
}

static epctx_status epctx__resize_axis(epctx__compiler *c, uint32_t x, uint32_t axis,
                                       const epctx__axis_plan *p, uint32_t *y) {
    epctx__shape shape = c->tensors[x].shape, table = {1, {0}};
    int64_t taps = p->filter == EPCTX__NEAREST ? 1 : p->filter == EPCTX__LINEAR ? 2 : 4;
    const int64_t outer = (int64_t)epctx__product(&shape, 0, axis);
    const int64_t inner = (int64_t)epctx__product(&shape, axis + 1, shape.rank);
    bool repeats = p->filter == EPCTX__NEAREST && p->out > 0 && p->out % p->in == 0;
    epctx__step s;
    uint32_t positions, weights, id;
    int32_t *at;
    float *w, *outside;
    int64_t i;
    if (p->antialias && p->scale < 1.0f && p->out > 0 && p->filter != EPCTX__NEAREST) {
        taps = (int64_t)epctx__f_div((float)taps, p->scale) + 2;
        taps += taps % 2; /* as many before as after */
    }
    table.dims[0] = p->out * taps;
    if (p->out < 1 || p->out > EPCTX__MAX_BYTES || taps > EPCTX__MAX_BYTES)
        return EPCTX__REFUSE(c,
                             "resized axis: expected 1..%u elements and taps, found %d of %d taps",
                             (uint64_t)EPCTX__MAX_BYTES, p->out, taps);
    EPCTX__TRY(epctx__add_constant(c, EPCTX_ONNX_INT32, &table, &at, &positions));
    EPCTX__TRY(epctx__add_floats(c, (uint64_t)table.dims[0], &w, &weights));
    for (i = 0; i < p->out; i++) {
        epctx__taps(p, i, taps, at + i * taps, w + i * taps);
        repeats = repeats && at[i] == i / (p->out / p->in);
    }
    if (repeats) { /* every element a whole number of times */
        const epctx__shape walk = {3, {outer * p->in, p->out / p->in, inner}};
        const int64_t strides[3] = {inner, 0, 1};
        shape.dims[axis] = p->out;
        EPCTX__TRY(epctx__new_tensor(c, EPCTX_ONNX_FLOAT, &shape, y));
        return epctx__emit_move(c, x, *y, &walk, 0, 0, strides, NULL);
    }
    s = epctx__new_step(EPCTX__OP_RESAMPLE, x, positions, 0);
    s.in[2] = weights;
    s.params.resample.outer = (uint32_t)outer;
    s.params.resample.in = (uint32_t)p->in;
    s.params.resample.out = (uint32_t)p->out;
    s.params.resample.inner = (uint32_t)inner;
    s.params.resample.taps = (uint32_t)taps;
    shape.dims[axis] = p->out;
    EPCTX__TRY(epctx__emit_new(c, &s, EPCTX_ONNX_FLOAT, &shape, y));
    if (p->outside == 0.0f || p->transform != EPCTX__AT_CROP) return EPCTX_OK;
    table.rank = shape.rank - axis;
    for (i = 0; i < table.rank; i++) table.dims[i] = i == 0 ? p->out : 1;
    EPCTX__TRY(epctx__add_constant(c, EPCTX_ONNX_FLOAT, &table, &outside, &id));
    for (i = 0; i < p->out; i++)
        outside[i] = epctx__beyond(p, epctx__source_of(p, i)) ? p->outside : 0.0f;
    return epctx__emit_binary(c, EPCTX__BINARY_ADD, *y, id, y);
}

/* Floats of an optional constant input; an empty one counts as absent. */
static epctx_status epctx__const_floats(epctx__compiler *c, size_t input, const char *what,
                                        size_t most, float *out, size_t *count) {
    const void *data;
    uint32_t id;
    *count = 0;
    EPCTX__TRY(epctx__optional(c, input, &id));
    if (id == EPCTX__NONE || c->tensors[id].count == 0) return EPCTX_OK;
    EPCTX__TRY(epctx__want_float(c, id));
    EPCTX__TRY(epctx__want_constant(c, id, what));
    if (c->tensors[id].count > most)
        return EPCTX__INVALID(c, "%s: expected at most %u numbers, found %u", what, (uint64_t)most,
                              c->tensors[id].count);
    EPCTX__TRY(epctx__data(c, id, &data));
    *count = (size_t)c->tensors[id].count;
    memcpy(out, data, *count * sizeof *out);
    return EPCTX_OK;
}

/* Upsample, and Resize before opset 11: scales only; positions truncate, or round up when
 * downsampling. */
static epctx_status epctx__resize_old(epctx__compiler *c, epctx__axis_plan *p, float *scales,
                                      size_t *count) {
    const epctx_attr *attr = epctx_node_attr(c->node, "scales");
    p->transform = EPCTX__AT_EDGE;
    p->nearest = EPCTX__CEIL_IF_SMALLER;
    if (c->node->version >= 9)
        return epctx__const_floats(c, 1, "scales", EPCTX_NPU_MAX_RANK, scales, count);
    if (attr == NULL || attr->type != EPCTX_ATTR_FLOATS || attr->count > EPCTX_NPU_MAX_RANK)
        return epctx__bad_attr(c, "scales", "one number per dimension");
    memcpy(scales, attr->floats, attr->count * sizeof *scales);
    *count = attr->count;
    return EPCTX_OK;
}

static epctx_status epctx__resize_attrs(epctx__compiler *c, epctx__axis_plan *p) {
    memset(p, 0, sizeof *p);
    EPCTX__TRY(epctx__choice(
        c, "mode", c->node->version < 11 ? "nearest linear bilinear" : "nearest linear cubic",
        &p->filter));
    if (c->node->version < 11 && p->filter == EPCTX__CUBIC) p->filter = EPCTX__LINEAR;
    EPCTX__TRY(
        epctx__choice(c, "coordinate_transformation_mode", EPCTX__TRANSFORMS, &p->transform));
    EPCTX__TRY(epctx__choice(c, "nearest_mode", EPCTX__NEARESTS, &p->nearest));
    p->cubic = epctx_node_float(c->node, "cubic_coeff_a", -0.75f);
    p->exclude = epctx_node_int(c->node, "exclude_outside", 0) != 0;
    p->antialias = epctx_node_int(c->node, "antialias", 0) != 0;
    p->end = 1.0f;
    p->outside = epctx_node_float(c->node, "extrapolation_value", 0.0f);
    return EPCTX_OK;
}

/* With keep_aspect_ratio_policy all axes have one scale. */
static epctx_status epctx__resize_policy(epctx__compiler *c, const epctx__shape *shape,
                                         const epctx__list *axes, int64_t *sizes, float *scales) {
    float scale = 0.0f;
    uint32_t policy;
    size_t i;
    EPCTX__TRY(
        epctx__choice(c, "keep_aspect_ratio_policy", "stretch not_larger not_smaller", &policy));
    for (i = 0; i < axes->count; i++) {
        const float s = epctx__f_div((float)sizes[i], (float)shape->dims[axes->v[i]]);
        scales[i] = s;
        scale = i == 0 || (policy == 2 ? s > scale : s < scale) ? s : scale;
    }
    for (i = 0; policy != 0 && i < axes->count; i++) {
        const float size = epctx__f_mul(scale, (float)shape->dims[axes->v[i]]);
        scales[i] = scale;
        sizes[i] = epctx__to_wide(epctx__floor(epctx__f_add(size, 0.5f)));
    }
    return EPCTX_OK;
}

static epctx_status epctx__lower_resize(epctx__compiler *c) {
    int64_t sizes[2 * EPCTX_NPU_MAX_RANK];
    float scales[2 * EPCTX_NPU_MAX_RANK], roi[2 * EPCTX_NPU_MAX_RANK];
    bool by_size, moved, larger;
    size_t count = 0, size_count = 0, roi_count = 0, n;
    epctx__list axes;
    epctx__axis_plan p;
    epctx__shape shape = c->tensors[c->in[0]].shape;
    uint32_t x = c->in[0], id;
    EPCTX__TRY(epctx__resize_attrs(c, &p));
    EPCTX__TRY(epctx__all_axes(c, shape.rank, 0, INT64_MAX, &axes));
    if (epctx_str_is(c->node->op_type, "Upsample") || c->node->version < 11) {
        EPCTX__TRY(epctx__resize_old(c, &p, scales, &count));
    } else {
        EPCTX__TRY(epctx__const_floats(c, 1, "roi", 2 * EPCTX_NPU_MAX_RANK, roi, &roi_count));
        EPCTX__TRY(epctx__const_floats(c, 2, "scales", EPCTX_NPU_MAX_RANK, scales, &count));
        EPCTX__TRY(epctx__optional(c, 3, &id));
        if (id != EPCTX__NONE)
            EPCTX__TRY(epctx__const_ints(c, id, "sizes", EPCTX_NPU_MAX_RANK, sizes, &size_count));
    }
    by_size = size_count > 0;
    if ((by_size ? size_count : count) != axes.count || (by_size && count != 0) ||
        (roi_count != 0 && roi_count != 2 * axes.count) || c->tensors[x].count == 0)
        return EPCTX__INVALID(c, "found %u scales, %u sizes and %u roi values for %u axes",
                              (uint64_t)count, (uint64_t)size_count, (uint64_t)roi_count,
                              (uint64_t)axes.count);
    if (by_size) EPCTX__TRY(epctx__resize_policy(c, &shape, &axes, sizes, scales));
    larger = axes.count > 0 && scales[axes.count - 1] > 1.0f;
    for (n = 0; n < axes.count; n++) { /* the fewest elements in between: larger rows come first */
        const bool crop = p.transform == EPCTX__AT_CROP;
        const size_t i = larger ? axes.count - 1 - n : n;
        const float size = epctx__f_mul((float)shape.dims[axes.v[i]], scales[i]);
        p.in = shape.dims[axes.v[i]];
        p.scale = scales[i];
        p.start = crop && roi_count > 0 ? roi[i] : 0.0f;
        p.end = crop && roi_count > 0 ? roi[axes.count + i] : 1.0f;
        if (!(p.scale > 0.0f && p.scale < 1e6f))
            return EPCTX__INVALID(c, "axis %d: expected scale > 0 and < 1e6", axes.v[i]);
        p.out = by_size ? sizes[i] : (int64_t)epctx__floor(size);
        moved = p.scale != 1.0f || p.start != 0.0f || p.end != 1.0f;
        if (p.out == p.in && moved && (crop || p.in != 1))
            return EPCTX__REFUSE(c,
                                 "axis %d keeps its %d elements but shifts them: runtimes differ",
                                 axes.v[i], p.in);
        if (p.out == p.in) continue;
        EPCTX__TRY(epctx__resize_axis(c, x, (uint32_t)axes.v[i], &p, &x));
    }
    return x == c->in[0] ? epctx__lower_identity(c) : epctx__set_output(c, 0, x);
}

/* -- operators composed of others -- */

static epctx_status epctx__lower_bitwise_not(epctx__compiler *c) {
    const int32_t type = c->tensors[c->in[0]].elem;
    if (type == EPCTX_ONNX_FLOAT || type == EPCTX_ONNX_BOOL)
        return EPCTX__INVALID(c, "expected integers");
    return epctx__emit_integer(c, EPCTX__EXACT_XOR, c->in[0], -1, &c->y);
}

/* y = |x|^p, with attribute p, or y^(1/p) (`root`). */
static epctx_status epctx__power(epctx__compiler *c, epctx__formula *r, bool root) {
    static const char *const texts[3][2] = {
        {"y = abs(x)", "y = y"}, {"y = x * x", "y = sqrt(y)"}, {"y = abs(x) ^ p", "y = y ^ q"}};
    const int64_t p = epctx_node_int(c->node, "p", 2);
    if (p < 1 || p > 64) return epctx__bad_attr(c, "p", "1 to 64");
    EPCTX__TRY(epctx__scalar_float(c, (float)p, &r->v.p));
    EPCTX__TRY(epctx__scalar_float(c, epctx__f_div(1.0f, (float)p), &r->v.q));
    return epctx__evaluate(c, r, texts[p < 3 ? p - 1 : 2][root]);
}

/* LpNormalization, GlobalLpPool: the p-norms of an axis or of images. */
static epctx_status epctx__lower_lp(epctx__compiler *c) {
    const bool pool = c->variant != 0;
    bool marked[EPCTX_NPU_MAX_RANK];
    epctx__formula r = epctx__formula_of(c->in[0]);
    uint32_t axis = 0, i;
    if (!pool) EPCTX__TRY(epctx__axis_attr(c, -1, c->tensors[r.v.x].shape.rank, 0, &axis));
    for (i = 0; i < EPCTX_NPU_MAX_RANK; i++) marked[i] = pool ? i >= 2 : i == axis;
    r.axes = marked;
    EPCTX__TRY(epctx__power(c, &r, false));
    EPCTX__TRY(epctx__evaluate(c, &r, "y = sum(y)"));
    EPCTX__TRY(epctx__power(c, &r, true));
    EPCTX__TRY(epctx__scalar_float(c, FLT_MIN, &r.v.t)); /* zeros stay zeros */
    return epctx__evaluate_y(c, &r, pool ? "y = y" : "y = x / max(y, t)");
}

static epctx_status epctx__lower_cumsum(epctx__compiler *c) {
    const epctx__shape shape = c->tensors[c->in[0]].shape;
    const int32_t type = c->tensors[c->in[0]].elem;
    int64_t at = INT64_MAX;
    uint32_t axis;
    epctx__step s = epctx__new_step(EPCTX__OP_CUM_SUM, c->in[0], EPCTX__NONE, 0);
    epctx__cum_sum *p = &s.params.cum_sum;
    EPCTX__TRY(epctx__const_ints(c, c->in[1], "axis", 1, &at, NULL));
    EPCTX__TRY(epctx__axis(c, at, shape.rank, 0, &axis));
    p->type = (uint32_t)type;
    epctx__dims_around(&shape, axis, axis + 1, &p->outer, &p->count, &p->inner);
    p->exclusive = epctx_node_int(c->node, "exclusive", 0) != 0;
    p->reverse = epctx_node_int(c->node, "reverse", 0) != 0;
    return epctx__emit_new(c, &s, type, &shape, &c->y);
}

static epctx_status epctx__lower_center_crop_pad(epctx__compiler *c) {
    int64_t sizes[2 * EPCTX_NPU_MAX_RANK], pads[2 * EPCTX_NPU_MAX_RANK] = {0};
    const epctx__shape shape = c->tensors[c->in[0]].shape;
    epctx__list axes;
    size_t count, i;
    EPCTX__TRY(epctx__const_ints(c, c->in[1], "shape", EPCTX_NPU_MAX_RANK, sizes, &count));
    EPCTX__TRY(epctx__all_axes(c, shape.rank, 0, INT64_MAX, &axes));
    if (count != axes.count) return EPCTX__INVALID(c, "shape: expected a size for each axis");
    for (i = 0; i < count; i++) {
        const int64_t axis = axes.v[i];
        if (sizes[i] < 1 || sizes[i] > EPCTX__MAX_BYTES)
            return EPCTX__REFUSE(c, "shape: expected 1..%u, found %d", (uint64_t)EPCTX__MAX_BYTES,
                                 sizes[i]);
        pads[axis] = (sizes[i] - shape.dims[axis]) / 2;
        pads[shape.rank + axis] = sizes[i] - shape.dims[axis] - pads[axis];
    }
    return epctx__emit_pad(c, EPCTX__PAD_CONSTANT, c->in[0], pads, 0, &c->y);
}

/* -- Attention: values of shape b(atch), h(eads), l(ength), w(idth) -- */

/* From [b, l, heads * w] if x has rank 3. */
static epctx_status epctx__heads(epctx__compiler *c, uint32_t x, const char *attr, uint32_t *y) {
    const epctx__shape *shape = &c->tensors[x].shape;
    const bool flat = shape->rank != 4;
    epctx__formula r = epctx__formula_of(x);
    r.n.h = flat ? epctx_node_int(c->node, attr, 0) : 0;
    if (flat && (shape->rank != 3 || r.n.h < 1 || shape->dims[2] % r.n.h != 0))
        return EPCTX__INVALID(c,
                              "expected rank 4, or rank 3 and a number of heads that divides it");
    EPCTX__TRY(epctx__evaluate(c, &r, flat ? "y = x[bl(hw)>bhlw]" : "y = x[bhlw>bhlw]"));
    *y = r.v.y;
    return EPCTX_OK;
}

/* Keys or values: behind those of the past, which are input `past`; given back as output `present`.
 * Each of their heads serves `group` heads of the queries. */
static epctx_status epctx__history(epctx__compiler *c, size_t input, size_t past, size_t present,
                                   int64_t queries, uint32_t *y) {
    epctx__formula r = epctx__formula_of(EPCTX__NONE);
    EPCTX__TRY(epctx__float_input(c, input, &r.v.x));
    EPCTX__TRY(epctx__heads(c, r.v.x, "kv_num_heads", &r.v.x));
    EPCTX__TRY(epctx__optional(c, past, &r.v.p));
    c->tensors[r.v.x].name = c->node->inputs[input];
    if (r.v.p != EPCTX__NONE) {
        EPCTX__TRY(epctx__want_float(c, r.v.p));
        EPCTX__TRY(epctx__evaluate(c, &r, "x = join(p, x, 2)"));
    }
    /* an alias, so that naming the output does not rename the input */
    EPCTX__TRY(epctx__evaluate(c, &r, "y = x[bhlw>bhlw]"));
    EPCTX__TRY(epctx__set_output(c, present, r.v.y));
    if (r.n.h == 0 || queries % r.n.h != 0)
        return EPCTX__INVALID(c, "%d heads do not serve %d", r.n.h, queries);
    r.n.r = queries / r.n.h;
    if (r.n.r > 1) EPCTX__TRY(epctx__evaluate(c, &r, "x = x[bhlw>b(hr)lw]"));
    *y = r.v.x;
    return EPCTX_OK;
}

/* Input 3, a bool or float mask; positions of a shorter one behind its end are masked. Of a bool
 * mask, with the causal one in `t`, `d` is 0 where it leaves a query nothing to see. */
static epctx_status epctx__attention_mask(epctx__compiler *c, epctx__formula *r, int64_t total) {
    const epctx__shape *shape;
    bool last[EPCTX_NPU_MAX_RANK] = {false}, sees;
    EPCTX__TRY(epctx__optional(c, 3, &r->v.m));
    if (r->v.m == EPCTX__NONE) return EPCTX_OK;
    sees = c->tensors[r->v.m].elem == EPCTX_ONNX_BOOL;
    if (!sees) EPCTX__TRY(epctx__want_float(c, r->v.m));
    shape = &c->tensors[r->v.m].shape;
    if (shape->rank > 0 && shape->dims[shape->rank - 1] < total && shape->dims[shape->rank - 1] > 1)
        EPCTX__TRY(epctx__pad_axis(c, r->v.m, shape->rank - 1, total - shape->dims[shape->rank - 1],
                                   sees ? 0 : epctx__bits_of(-FLT_MAX), &r->v.m));
    if (sees && r->v.t != EPCTX__NONE) EPCTX__TRY(epctx__evaluate(c, r, "t = t & m"));
    if (sees) {
        if (r->v.t == EPCTX__NONE) r->v.t = r->v.m;
        if (c->tensors[r->v.t].shape.rank > 0) last[c->tensors[r->v.t].shape.rank - 1] = true;
        r->axes = last;
        EPCTX__TRY(epctx__evaluate(c, r, "d = highest(float(t)); m = where(m, 0, l)"));
        r->axes = NULL;
    } else if (r->v.t != EPCTX__NONE) { /* also where it is hidden by an infinity */
        EPCTX__TRY(epctx__evaluate(c, r, "m = where(t, m, 0)"));
    }
    return epctx__evaluate(c, r, "s = s + m");
}

/* Whether the first `count` dimensions of two tensors are the same. */
static bool epctx__same_start(const epctx__compiler *c, uint32_t a, uint32_t b, uint32_t count) {
    return memcmp(c->tensors[a].shape.dims, c->tensors[b].shape.dims, count * sizeof(int64_t)) == 0;
}

static epctx_status epctx__lower_attention(epctx__compiler *c) {
    const float cap = epctx_node_float(c->node, "softcap", 0.0f);
    const int64_t mode = epctx_node_int(c->node, "qk_matmul_output_mode", 0);
    const bool flat = c->tensors[c->in[0]].shape.rank == 3;
    epctx__formula r = epctx__formula_of(c->in[0]);
    epctx__shape scores;
    uint32_t past = c->in[4], keys, values, shown[4];
    int64_t heads, before;
    r.v.t = r.v.d = EPCTX__NONE;
    EPCTX__TRY(epctx__unused_outputs(c, 4));
    if (c->node->input_count > 6 && c->node->inputs[6].size > 0)
        return EPCTX__REFUSE(c, "nonpad_kv_seqlen is not supported");
    if (epctx_node_int(c->node, "left_window_size", -1) != -1 ||
        epctx_node_int(c->node, "right_window_size", -1) != -1)
        return EPCTX__REFUSE(c, "a window of the keys is not supported");
    if (mode < 0 || mode > 3) return epctx__bad_attr(c, "qk_matmul_output_mode", "0 to 3");
    EPCTX__TRY(epctx__heads(c, r.v.x, "q_num_heads", &r.v.q));
    scores = c->tensors[r.v.q].shape;
    heads = scores.dims[1];
    EPCTX__TRY(epctx__scalar_float(
        c, epctx_node_float(c->node, "scale", 1.0f / epctx__sqrt((float)scores.dims[3])), &r.v.f));
    EPCTX__TRY(epctx__history(c, 1, 4, 1, heads, &r.v.k));
    EPCTX__TRY(epctx__history(c, 2, 5, 2, heads, &r.v.v));
    EPCTX__TRY(epctx__evaluate(c, &r, "s = q * f @ k[bhlw>bhwl]"));
    shown[0] = r.v.s;
    EPCTX__TRY(epctx__input(c, 1, &keys));
    EPCTX__TRY(epctx__input(c, 2, &values));
    if (!epctx__same_start(c, keys, values, c->tensors[keys].shape.rank - 1) ||
        !epctx__same_start(c, r.v.k, r.v.v, 3) || !epctx__same_start(c, r.v.k, r.v.q, 2))
        return EPCTX__INVALID(c, "expected keys and values of one length, and one batch and heads");
    scores = c->tensors[r.v.s].shape;
    EPCTX__TRY(epctx__scalar_float(c, cap, &r.v.c));
    EPCTX__TRY(epctx__scalar_float(c, -FLT_MAX, &r.v.l));
    if (cap > 0.0f) EPCTX__TRY(epctx__evaluate(c, &r, "s = tanh(s / c) * c"));
    shown[1] = r.v.s;
    before = past != EPCTX__NONE ? c->tensors[past].shape.dims[2] : 0;
    if (epctx_node_int(c->node, "is_causal", 0) != 0 &&
        (before == 0 || scores.dims[2] > 1)) { /* else the only query sees all, as in ORT */
        r.n.i = scores.dims[2];
        r.n.j = scores.dims[3];
        r.n.p = before;
        EPCTX__TRY(
            epctx__evaluate(c, &r,
                            "t = range(#j)[j>1j] <= range(#i)[i>i1] + #p;" /* it sees these */
                            "s = s + where(t, 0, l)"));
    }
    EPCTX__TRY(epctx__attention_mask(c, &r, scores.dims[3]));
    if (!epctx__same_shape(&c->tensors[r.v.s].shape, &scores))
        return EPCTX__INVALID(c, "the mask does not fit the scores");
    if (r.v.s != shown[1]) /* a softmax of scores that two masks took to -infinity is NaN */
        EPCTX__TRY(epctx__evaluate(c, &r, "s = finite(s)"));
    shown[2] = r.v.s;
    EPCTX__TRY(epctx__emit_softmax(c, r.v.s, 3, 4, false, &r.v.s));
    if (r.v.d != EPCTX__NONE) EPCTX__TRY(epctx__evaluate(c, &r, "s = s * d"));
    shown[3] = r.v.s;
    if (c->node->output_count > 3) {
        EPCTX__TRY(epctx__alias(c, shown[mode], &scores, 0, &shown[mode]));
        EPCTX__TRY(epctx__set_output(c, 3, shown[mode]));
    }
    return epctx__evaluate_y(c, &r, flat ? "y = (s @ v)[bhqv>bq(hv)]" : "y = s @ v");
}

/* -- RotaryEmbedding -- */

/* Cosines or sines, input `i`, where heads come before the length or behind it (`flat`). */
static epctx_status epctx__angles(epctx__compiler *c, size_t i, bool flat, uint32_t *y) {
    epctx__formula r = epctx__formula_of(EPCTX__NONE);
    EPCTX__TRY(epctx__float_input(c, i, &r.v.x));
    EPCTX__TRY(epctx__optional(c, 3, &r.v.p));
    r.n.n = c->tensors[r.v.x].shape.dims[0]; /* a negative position is none: nor is this one */
    if (r.v.p != EPCTX__NONE)
        EPCTX__TRY(epctx__evaluate(c, &r, "x = take(x, where(p < 0, #n, p))"));
    EPCTX__TRY(epctx__evaluate(c, &r, flat ? "y = x[blw>bl1w]" : "y = x[blw>b1lw]"));
    *y = r.v.y;
    return EPCTX_OK;
}

static epctx_status epctx__lower_rotary(epctx__compiler *c) {
    const bool interleaved = epctx_node_int(c->node, "interleaved", 0) != 0;
    const epctx__shape given = c->tensors[c->in[0]].shape;
    const bool flat = given.rank != 4;
    epctx__formula r = epctx__formula_of(c->in[0]);
    uint64_t angles;
    int64_t width;
    r.n.j = flat ? epctx_node_int(c->node, "num_heads", 0) : 0;
    if (flat && (given.rank != 3 || r.n.j < 1 || given.dims[2] % r.n.j != 0))
        return epctx__bad_attr(c, "num_heads", "a divisor of the last dimension");
    EPCTX__TRY(epctx__evaluate(c, &r, flat ? "x = x[hi(jk)>hijk]" : "x = x[hijk>hijk]"));
    width = epctx_node_int(c->node, "rotary_embedding_dim", 0);
    width = width == 0 ? r.n.k : width;
    if (width < 2 || width % 2 != 0 || width > r.n.k)
        return epctx__bad_attr(c, "rotary_embedding_dim", "an even part of the width");
    EPCTX__TRY(epctx__angles(c, 1, flat, &r.v.c));
    EPCTX__TRY(epctx__angles(c, 2, flat, &r.v.s));
    r.n.p = 2;
    r.n.l = width;
    r.n.r = r.n.k - width;
    EPCTX__TRY(epctx__evaluate(c, &r,
                               interleaved ? "y = part(x, 3, 0, #l)[hij(wp)>phijw]"
                                           : "y = part(x, 3, 0, #l)[hij(pw)>phijw]"));
    EPCTX__TRY(epctx__evaluate(c, &r,
                               "a = part(y, 0, 0, 1); b = part(y, 0, 1, 1);"
                               "y = a * c - b * s; z = a * s + b * c"));
    angles = (uint64_t)given.dims[0] * (uint64_t)given.dims[flat ? 1 : 2] * (uint64_t)width / 2;
    if (!epctx__same_shape(&c->tensors[r.v.y].shape, &c->tensors[r.v.a].shape) ||
        c->tensors[r.v.c].count != angles || c->tensors[r.v.s].count != angles)
        return EPCTX__INVALID(c, "cosines and sines do not fit the input's batch and length");
    EPCTX__TRY(epctx__evaluate(c, &r,
                               interleaved ? "y = join(y, z, 0)[phijw>hij(wp)]"
                                           : "y = join(y, z, 0)[phijw>hij(pw)]"));
    if (r.n.r > 0) /* the others stay */
        EPCTX__TRY(epctx__evaluate(c, &r, "y = join(y, part(x, 3, #l, #r), 3)"));
    return epctx__lower_alias(c, r.v.y, &given);
}

/* -- windows of any rank: their elements are taken, or added up, by constant indices -- */

/* Sizes from the axes. */
static epctx_status epctx__geometry_sizes(epctx__compiler *c, epctx__geometry *g) {
    uint64_t points = 1, places = 1, taps = 1;
    uint32_t i;
    for (i = 0; i < g->rank; i++) {
        points = epctx__mul(points, (uint64_t)g->in[i]);
        places = epctx__mul(places, (uint64_t)g->out[i]);
        taps = epctx__mul(taps, (uint64_t)g->kernel[i]);
    }
    if (epctx__mul3(places, taps, sizeof(int64_t)) > EPCTX__MAX_BYTES)
        return EPCTX__REFUSE(c, "%u windows of %u: too large", places, taps);
    g->points = (int64_t)points;
    g->places = (int64_t)places;
    g->taps = (int64_t)taps;
    return EPCTX_OK;
}

static epctx_status epctx__geometry_of(epctx__compiler *c, epctx__geometry *g) {
    EPCTX__TRY(epctx__geometry_axes(c, g));
    return epctx__geometry_sizes(c, g);
}

/* The point of a tap, by rows or by columns; `points`: it lies outside. */
static int64_t epctx__point_of(const epctx__geometry *g, int64_t place, int64_t tap, bool columns) {
    int64_t point = 0, rows = 1, of_columns = g->points;
    uint32_t i;
    for (i = g->rank; i-- > 0;) {
        const int64_t at =
            place % g->out[i] * g->stride[i] + tap % g->kernel[i] * g->dilation[i] - g->before[i];
        if (at < 0 || at >= g->in[i]) return g->points;
        place /= g->out[i];
        tap /= g->kernel[i];
        of_columns /= g->in[i];
        point += at * (columns ? of_columns : rows);
        rows *= g->in[i];
    }
    return point;
}

/* The points of all taps: [place][tap], or [tap][place]. */
static epctx_status epctx__points(epctx__compiler *c, const epctx__geometry *g, bool by_tap,
                                  bool columns, uint32_t *id) {
    const int64_t n = by_tap ? g->taps : g->places, m = by_tap ? g->places : g->taps;
    const epctx__shape shape = {2, {n, m}};
    int64_t *point, i, j;
    EPCTX__TRY(epctx__add_constant(c, EPCTX_ONNX_INT64, &shape, &point, id));
    for (i = 0; i < n; i++)
        for (j = 0; j < m; j++)
            *point++ = epctx__point_of(g, by_tap ? j : i, by_tap ? i : j, columns);
    return EPCTX_OK;
}

/* [rows][places][taps] of images `x`, `outside` where there is no point. */
static epctx_status epctx__take_windows(epctx__compiler *c, uint32_t x, const epctx__geometry *g,
                                        float outside, uint32_t *y) {
    const epctx__shape rows = {2, {(int64_t)c->tensors[x].count / g->points, g->points}};
    uint32_t wide, points;
    EPCTX__TRY(epctx__alias(c, x, &rows, 0, &x));
    EPCTX__TRY(epctx__pad_axis(c, x, 1, 1, epctx__bits_of(outside), &wide));
    EPCTX__TRY(epctx__points(c, g, false, false, &points));
    return epctx__emit_gather(c, wide, points, 1, y);
}

/* The reverse: images of the sums of `x`, [n][channels][taps][places]. */
static epctx_status epctx__add_windows(epctx__compiler *c, uint32_t x, int64_t n, int64_t channels,
                                       const epctx__geometry *g, uint32_t *y) {
    const epctx__shape windows = epctx__shape4(n, channels, g->taps, g->places);
    const epctx__shape images = {2, {g->points + 1, n * channels}};
    epctx__formula r = epctx__formula_of(x);
    EPCTX__TRY(epctx__alias(c, x, &windows, 0, &r.v.x));
    EPCTX__TRY(epctx__points(c, g, true, false, &r.v.i));
    EPCTX__TRY(epctx__evaluate(c, &r, "x = x[nctp>(tp)(nc)]; i = i[tp>(tp)1]"));
    EPCTX__TRY(
        epctx__emit_filled(c, EPCTX_ONNX_FLOAT, &images, 0, !c->tensors[r.v.x].constant, &r.v.y));
    EPCTX__TRY(epctx__emit_slices(c, r.v.y, r.v.i, r.v.x, 0, EPCTX__JOIN_ADD, &r.v.y));
    EPCTX__TRY(epctx__take_one(c, r.v.y, 0, 0, g->points, &r.v.y));
    EPCTX__TRY(epctx__evaluate(c, &r, "y = y[ij>ji]"));
    *y = r.v.y;
    return EPCTX_OK;
}

/* Taps of a place inside the image, with its padding or without. */
static float epctx__tap_count(const epctx__geometry *g, int64_t place, bool padding) {
    int64_t count = 1, inside, k;
    uint32_t i;
    for (i = g->rank; i-- > 0; place /= g->out[i], count *= inside) {
        const int64_t first = place % g->out[i] * g->stride[i] - g->before[i];
        const int64_t end = g->in[i] + (padding ? g->after[i] : 0);
        for (k = inside = 0; k < g->kernel[i]; k++)
            inside +=
                (padding || first + k * g->dilation[i] >= 0) && first + k * g->dilation[i] < end;
    }
    return (float)count;
}

static epctx_status epctx__divide_by_taps(epctx__compiler *c, const epctx__geometry *g,
                                          uint32_t sums, uint32_t *y) {
    const bool padding = epctx_node_int(c->node, "count_include_pad", 0) != 0;
    float *data;
    uint32_t counts;
    int64_t i;
    EPCTX__TRY(epctx__add_floats(c, (uint64_t)g->places, &data, &counts));
    for (i = 0; i < g->places; i++) data[i] = epctx__tap_count(g, i, padding);
    return epctx__emit_binary(c, EPCTX__BINARY_DIV, sums, counts, y);
}

/* Output 1 of MaxPool: the indices of the maxima in the whole input. */
static epctx_status epctx__pool_indices(epctx__compiler *c, const epctx__geometry *g,
                                        uint32_t windows, const epctx__shape *shape) {
    const bool columns = epctx_node_int(c->node, "storage_order", 0) != 0;
    epctx__formula r = epctx__formula_of(windows);
    r.n.r = c->tensors[windows].shape.dims[0];
    r.n.n = g->points;
    EPCTX__TRY(epctx__points(c, g, false, columns, &r.v.i));
    EPCTX__TRY(epctx__emit_arg(c, windows, 2, false, false, 1, &r.v.a));
    EPCTX__TRY(epctx__evaluate(c, &r,
                               "i = i[pt>(pt)]; a = a + range(#p)[p>1p1] * #t;"
                               "y = take(i, a) + range(#r)[r>r11] * #n"));
    EPCTX__TRY(epctx__alias(c, r.v.y, shape, 0, &r.v.y));
    return epctx__set_output(c, 1, r.v.y);
}

static epctx_status epctx__lower_pool(epctx__compiler *c) {
    const bool max = c->variant == EPCTX__POOL_MAX, lp = c->variant == EPCTX__POOL_LP;
    const bool indices = max && epctx__unused_outputs(c, 1) != EPCTX_OK;
    const int32_t type = c->tensors[c->in[0]].elem;
    bool marked[EPCTX_NPU_MAX_RANK] = {false, false, true}, plain;
    epctx__shape shape = c->tensors[c->in[0]].shape;
    epctx__geometry g;
    epctx__formula r = epctx__formula_of(c->in[0]);
    uint32_t x = c->in[0], windows, y, i;
    epctx_error_clear(c->error);
    if (max && epctx__stored_size(type) == 1) /* float represents bytes exactly */
        EPCTX__TRY(epctx__emit_cast(c, x, EPCTX_ONNX_FLOAT, &x));
    EPCTX__TRY(epctx__want_float(c, x));
    if (shape.rank < 3 || epctx_node_attr(c->node, "kernel_shape") == NULL)
        return epctx__bad_attr(c, "kernel_shape", "a value, and an input of rank >= 3");
    epctx__geometry_image(&g, &shape, NULL);
    EPCTX__TRY(epctx__ints(c, "kernel_shape", g.rank, 1, g.kernel));
    EPCTX__TRY(epctx__geometry_axes(c, &g));
    plain = !indices && !lp && g.rank <= 2; /* what the command computes */
    for (i = 0; i < g.rank; i++)
        if (g.auto_pad >= EPCTX__PAD_UPPER &&
            (g.dilation[i] != 1 || (g.stride[i] > g.kernel[i] && !(plain && max))))
            return epctx__bad_attr(c, "auto_pad",
                                   "no SAME with dilations or windows apart: runtimes differ");
    memcpy(shape.dims + 2, g.out, g.rank * sizeof *g.out);
    if (plain) {
        EPCTX__TRY(epctx__emit_pool(c, x, !max, &g, &shape, &y));
        return epctx__emit_cast(c, y, type, &c->y);
    }
    EPCTX__TRY(epctx__geometry_sizes(c, &g));
    if (lp) EPCTX__TRY(epctx__power(c, &r, false));
    EPCTX__TRY(epctx__take_windows(c, lp ? r.v.y : x, &g, max ? epctx__float_of(0xff800000u) : 0.0f,
                                   &windows));
    EPCTX__TRY(epctx__reduce_over(c, max ? EPCTX__REDUCE_MAX : EPCTX__REDUCE_SUM, windows, marked,
                                  false, &r.v.y));
    if (lp) EPCTX__TRY(epctx__power(c, &r, true));
    if (!lp && !max) EPCTX__TRY(epctx__divide_by_taps(c, &g, r.v.y, &r.v.y));
    EPCTX__TRY(epctx__emit_cast(c, r.v.y, type, &y));
    if (indices) EPCTX__TRY(epctx__pool_indices(c, &g, windows, &shape));
    return epctx__lower_alias(c, y, &shape);
}

/* Adds the bias to images: output 0. */
static epctx_status epctx__biased(epctx__compiler *c, uint32_t y, size_t bias_input,
                                  const epctx__shape *shape) {
    uint32_t bias;
    EPCTX__TRY(epctx__alias(c, y, shape, 0, &y));
    EPCTX__TRY(epctx__optional(c, bias_input, &bias));
    EPCTX__TRY(epctx__check_bias(c, shape->dims[1], EPCTX_ONNX_FLOAT, bias));
    if (bias == EPCTX__NONE) return epctx__set_output(c, 0, y);
    EPCTX__TRY(epctx__along_axis(c, &bias, shape->rank - 1, 0));
    EPCTX__TRY(epctx__emit_binary(c, EPCTX__BINARY_ADD, y, bias, &y));
    return epctx__set_output(c, 0, y);
}

/* Weights and windows `x`, [n][channels][taps][places], as factors of a matrix product; `shape`: of
 * its result as images. */
static epctx_status epctx__window_factors(epctx__compiler *c, uint32_t x, uint32_t weights,
                                          const epctx__geometry *g, uint32_t *a, uint32_t *b,
                                          epctx__shape *shape) {
    const int64_t groups = epctx_node_int(c->node, "group", 1);
    const epctx__shape ws = c->tensors[weights].shape;
    epctx__formula r = epctx__formula_of(x);
    *shape = c->tensors[x].shape;
    if (ws.rank != g->rank + 2 || groups < 1 || ws.dims[0] % groups != 0 ||
        shape->dims[1] % groups != 0 || ws.dims[1] != shape->dims[1] / groups ||
        c->tensors[weights].count == 0)
        return EPCTX__INVALID(c, "weights '%S' do not fit %d channels in %d groups",
                              &c->tensors[weights].name, shape->dims[1], groups);
    r.v.w = weights;
    r.n.g = groups;
    EPCTX__TRY(epctx__evaluate(c, &r, "w = w[(gm)*>gm*]; x = x[n(gc)tp>ng(ct)p]"));
    *a = r.v.w;
    *b = r.v.x;
    shape->rank = g->rank + 2;
    shape->dims[1] = ws.dims[0];
    memcpy(shape->dims + 2, g->out, g->rank * sizeof *g->out);
    return EPCTX_OK;
}

/* Weights and input of a convolution of any rank as factors of a matrix product. */
static epctx_status epctx__volume_factors(epctx__compiler *c, uint32_t x, uint32_t weights,
                                          uint32_t *a, uint32_t *b, epctx__shape *shape) {
    const epctx__shape xs = c->tensors[x].shape, ws = c->tensors[weights].shape;
    epctx__formula r = epctx__formula_of(x);
    epctx__geometry g;
    if (xs.rank < 3 || ws.rank != xs.rank)
        return EPCTX__INVALID(c, "expected input and weights of one rank, 3 or more");
    epctx__geometry_image(&g, &xs, &ws);
    EPCTX__TRY(epctx__check_kernel(c, &g));
    EPCTX__TRY(epctx__geometry_of(c, &g));
    EPCTX__TRY(epctx__take_windows(c, r.v.x, &g, 0.0f, &r.v.x));
    r.n.n = xs.dims[0];
    EPCTX__TRY(epctx__evaluate(c, &r, "x = x[(nc)pt>nctp]"));
    return epctx__window_factors(c, r.v.x, weights, &g, a, b, shape);
}

static bool epctx__is_image(const epctx__compiler *c, uint32_t x) {
    return c->tensors[x].shape.rank == 3 || c->tensors[x].shape.rank == 4;
}

static epctx_status epctx__lower_any_conv(epctx__compiler *c) {
    epctx__shape shape;
    uint32_t a, b, y;
    if (epctx__is_image(c, c->in[0])) {
        EPCTX__TRY(epctx__conv_of(c, c->in[0], c->in[1], c->in[2], &c->y));
    } else {
        EPCTX__TRY(epctx__volume_factors(c, c->in[0], c->in[1], &a, &b, &shape));
        EPCTX__TRY(epctx__matmul_of(c, a, b, &y));
        EPCTX__TRY(epctx__biased(c, y, 2, &shape));
    }
    return epctx__note_product(c, EPCTX__PRODUCT_CONV, c->in[2]);
}

/* -- integer products in float, exact below 2^24 -- */

static epctx_status epctx__ones(epctx__compiler *c, uint64_t count, uint32_t *id) {
    float *data;
    uint64_t i;
    EPCTX__TRY(epctx__add_floats(c, count, &data, id));
    for (i = 0; i < count; i++) data[i] = 1.0f;
    return EPCTX_OK;
}

/* Input `i` minus input `zero_at` times `scale`, NONE: 1. Folded if all are constant. */
static epctx_status epctx__floats_of(epctx__compiler *c, size_t i, uint32_t scale, size_t zero_at,
                                     int64_t axis, uint32_t *y) {
    uint32_t x, zero;
    EPCTX__TRY(epctx__input(c, i, &x));
    EPCTX__TRY(epctx__optional(c, zero_at, &zero));
    if (scale == EPCTX__NONE)
        EPCTX__TRY(epctx__ones(c, zero != EPCTX__NONE ? c->tensors[zero].count : 1, &scale));
    return epctx__emit_quantize(c, EPCTX__OP_DEQUANTIZE, x, scale, zero, axis, c->tensors[x].elem,
                                y);
}

/* The weights `first` to `first` + `count` of every output channel; the others are 0. */
static epctx_status epctx__mask(epctx__compiler *c, uint32_t w, uint64_t first, uint64_t count,
                                uint32_t *y) {
    epctx__shape shape = c->tensors[w].shape;
    float *data;
    uint64_t i;
    uint32_t ones;
    shape.dims[0] = 1;
    EPCTX__TRY(epctx__add_constant(c, EPCTX_ONNX_FLOAT, &shape, &data, &ones));
    for (i = 0; i < epctx__count(&shape); i++) data[i] = i - first < count ? 1.0f : 0.0f;
    return epctx__emit_binary(c, EPCTX__BINARY_MUL, w, ones, y);
}

/* The largest magnitude that bytes minus zero points can have. */
static epctx_status epctx__byte_reach(epctx__compiler *c, uint32_t factor, uint64_t *reach) {
    const epctx__step *s = epctx__dequantize_of(c, factor);
    const uint32_t zero = s != NULL ? s->in[2] : EPCTX__NONE;
    const epctx__tensor *t = zero != EPCTX__NONE ? &c->tensors[zero] : NULL;
    int64_t low, most = 0, z = 0;
    const void *zeros = NULL;
    uint64_t i;
    *reach = 255;
    if (s == NULL || (t != NULL && (!t->constant || t->outside))) return EPCTX_OK;
    low = s->params.quantize.type == EPCTX_ONNX_INT8 ? -128 : 0;
    if (t != NULL) EPCTX__TRY(epctx__data(c, zero, &zeros));
    for (i = 0; i < (t != NULL ? t->count : 1); i++) {
        if (t != NULL) z = epctx__load_int((const uint8_t *)zeros, (size_t)i, (uint32_t)t->elem);
        most = z - low > most ? z - low : most;
        most = low + 255 - z > most ? low + 255 - z : most;
    }
    *reach = (uint64_t)most;
    return EPCTX_OK;
}

/* How many products of two factors a float adds up exactly. */
static epctx_status epctx__exact_depth(epctx__compiler *c, uint32_t a, uint32_t b, uint64_t *most) {
    uint64_t reach_a, reach_b;
    EPCTX__TRY(epctx__byte_reach(c, a, &reach_a));
    EPCTX__TRY(epctx__byte_reach(c, b, &reach_b));
    *most = (1u << 24) / (reach_a * reach_b);
    return EPCTX_OK;
}

/* Sums of matrices or images: whole numbers, as floats where those are exact, else partial sums of
 * such added as int32. */
static epctx_status epctx__plain_sums(epctx__compiler *c, bool conv, uint32_t a, uint32_t b,
                                      uint32_t *y) {
    const epctx__shape as = c->tensors[a].shape, bs = c->tensors[b].shape;
    const uint32_t along = bs.rank > 1 && !conv ? bs.rank - 2 : (conv ? 1 : 0);
    const uint64_t taps = conv && bs.rank > 2 ? epctx__product(&bs, 2, bs.rank) : 1;
    const uint64_t depth = bs.rank > along ? (uint64_t)bs.dims[along] : 0;
    uint64_t most, at = 0, whole, block;
    uint32_t sum;
    bool slice;
    EPCTX__TRY(epctx__exact_depth(c, a, b, &most));
    slice = taps <= most && (!conv || epctx_node_int(c->node, "group", 1) == 1);
    whole = slice ? depth : epctx__mul(depth, taps);
    block = slice ? most / taps : most;
    if (as.rank == 0 || (conv ? as.rank : bs.rank) <= along ||
        (slice && as.dims[conv ? 1 : as.rank - 1] != (int64_t)depth))
        return EPCTX__INVALID(c, "the shapes of the inputs do not match");
    do {
        const uint64_t count = whole - at < block ? whole - at : block;
        uint32_t part_a = a, part_b = b;
        if (whole > block && slice) {
            EPCTX__TRY(epctx__take_one(c, a, conv ? 1 : as.rank - 1, (int64_t)at, (int64_t)count,
                                       &part_a));
            EPCTX__TRY(epctx__take_one(c, b, along, (int64_t)at, (int64_t)count, &part_b));
        } else if (whole > block) {
            EPCTX__TRY(epctx__mask(c, b, at, count, &part_b));
        }
        c->exact = true;
        EPCTX__TRY(conv ? epctx__conv_of(c, part_a, part_b, EPCTX__NONE, &sum)
                        : epctx__matmul_of(c, part_a, part_b, &sum));
        c->exact = false;
        if (whole > block) EPCTX__TRY(epctx__emit_cast(c, sum, EPCTX_ONNX_INT32, &sum));
        if (at > 0) EPCTX__TRY(epctx__emit_exact(c, EPCTX__EXACT_ADD, *y, sum, &sum));
        *y = sum;
        at += block;
    } while (at < whole);
    return EPCTX_OK;
}

/* Sums of products of bytes minus zero points, of matrices or a convolution of any rank: whole
 * numbers, as floats or int32. */
static epctx_status epctx__integer_sums(epctx__compiler *c, bool conv, uint32_t a, uint32_t b,
                                        uint32_t *y) {
    epctx__shape shape;
    uint32_t left, right;
    if (!conv || epctx__is_image(c, a)) return epctx__plain_sums(c, conv, a, b, y);
    EPCTX__TRY(epctx__volume_factors(c, a, b, &left, &right, &shape));
    EPCTX__TRY(epctx__plain_sums(c, false, left, right, y));
    return epctx__alias(c, *y, &shape, 0, y);
}

/* A factor with scale 1: its bytes minus their zero points. */
static epctx_status epctx__unscaled(epctx__compiler *c, const epctx__factor *f, uint32_t *y) {
    const epctx__shape shape = c->tensors[f->floats].shape;
    const epctx__shape before = c->tensors[f->moves ? f->move.in[0] : f->floats].shape;
    epctx__step s = f->from, move = f->move;
    EPCTX__TRY(epctx__alias(c, s.in[0], &before, 0, &s.in[0]));
    EPCTX__TRY(epctx__ones(c, s.params.quantize.channels, &s.in[1]));
    EPCTX__TRY(epctx__emit_new(c, &s, EPCTX_ONNX_FLOAT, &before, y));
    if (!f->moves) return EPCTX_OK;
    move.in[0] = *y;
    return epctx__emit_new(c, &move, EPCTX_ONNX_FLOAT, &shape, y);
}

/* The noted product from its bytes: exact sums, bias included, times one factor, the scales of both
 * operands over that of the result (NONE: 1). So does ONNX Runtime; sums of floats would round to
 * the other side of a tie. */
static epctx_status epctx__exact_product(epctx__compiler *c, const epctx__factors *f,
                                         uint32_t y_scale, uint32_t *y) {
    const bool conv = f->kind == EPCTX__PRODUCT_CONV;
    epctx__formula r = epctx__formula_of(EPCTX__NONE);
    uint32_t bias = f->bias, rank;
    c->node = &f->node;
    r.v.a = f->of[0].from.in[1];
    r.v.b = f->of[1].from.in[1];
    r.v.s = y_scale;
    EPCTX__TRY(epctx__unscaled(c, &f->of[0], &r.v.x));
    EPCTX__TRY(epctx__unscaled(c, &f->of[1], &r.v.w));
    if (f->kind == EPCTX__PRODUCT_GEMM) {
        EPCTX__TRY(epctx__scalar_float(c, epctx_node_float(c->node, "alpha", 1.0f), &r.v.f));
        EPCTX__TRY(epctx__evaluate(c, &r, "a = f * a"));
        if (epctx_node_int(c->node, "transA", 0) != 0)
            EPCTX__TRY(epctx__evaluate(c, &r, "x = x[km>mk]"));
        if (epctx_node_int(c->node, "transB", 0) != 0)
            EPCTX__TRY(epctx__evaluate(c, &r, "w = w[nk>kn]"));
    }
    EPCTX__TRY(epctx__integer_sums(c, conv, r.v.x, r.v.w, &r.v.y));
    rank = c->tensors[r.v.y].shape.rank;
    if (bias != EPCTX__NONE) {
        if (conv) EPCTX__TRY(epctx__along_axis(c, &bias, rank - 1, 0));
        EPCTX__TRY(epctx__emit_cast(c, r.v.y, EPCTX_ONNX_INT32, &r.v.y));
        EPCTX__TRY(epctx__emit_exact(c, EPCTX__EXACT_ADD, r.v.y, bias, &r.v.y));
    }
    if (conv && c->tensors[r.v.b].count > 1) EPCTX__TRY(epctx__along_axis(c, &r.v.b, rank - 1, 0));
    if (!conv && c->tensors[r.v.a].count > 1) { /* by a vector, rows are the last axis */
        rank = c->tensors[f->of[1].floats].shape.rank > 1 ? 2 : 1;
        EPCTX__TRY(epctx__along_axis(c, &r.v.a, rank, 0));
    }
    EPCTX__TRY(epctx__emit_cast(c, r.v.y, EPCTX_ONNX_FLOAT, &r.v.y));
    EPCTX__TRY(
        epctx__evaluate(c, &r, y_scale == EPCTX__NONE ? "y = y * (a * b)" : "y = y * (a * b / s)"));
    *y = r.v.y;
    return EPCTX_OK;
}

/* ConvInteger and MatMulInteger. */
static epctx_status epctx__lower_integer(epctx__compiler *c) {
    const bool conv = c->variant != 0;
    uint32_t a, b = EPCTX__NONE;
    EPCTX__TRY(epctx__floats_of(c, 0, EPCTX__NONE, 2, conv ? 0 : -2, &a));
    EPCTX__TRY(epctx__floats_of(c, 1, EPCTX__NONE, 3, conv ? 0 : -1, &b));
    EPCTX__TRY(epctx__integer_sums(c, conv, a, b, &c->y));
    return epctx__emit_cast(c, c->y, EPCTX_ONNX_INT32, &c->y);
}

/* Transposed ones: the products of all places are added up. */
static epctx_status epctx__lower_any_conv_transpose(epctx__compiler *c) {
    const int64_t groups = epctx_node_int(c->node, "group", 1);
    epctx__formula r = epctx__formula_of(c->in[0]);
    epctx__shape xs = c->tensors[c->in[0]].shape, ws = c->tensors[c->in[1]].shape;
    epctx__geometry g;
    r.v.w = c->in[1];
    if (xs.rank < 3 || ws.rank != xs.rank || groups < 1 || xs.dims[1] % groups != 0 ||
        ws.dims[0] != xs.dims[1] || c->tensors[r.v.w].count == 0)
        return EPCTX__INVALID(c, "weights '%S' do not fit %d channels", &c->tensors[r.v.w].name,
                              xs.rank < 3 ? 0 : xs.dims[1]);
    if (xs.rank <= 4) return epctx__plane_transposed(c, groups);
    epctx__geometry_image(&g, &xs, &ws);
    EPCTX__TRY(epctx__transposed_axes(c, &g));
    memcpy(g.in, g.out, sizeof g.in); /* windows over the result: its places are x's points */
    memcpy(g.out, xs.dims + 2, g.rank * sizeof *g.out);
    EPCTX__TRY(epctx__geometry_sizes(c, &g));
    r.n.g = groups;
    EPCTX__TRY(epctx__evaluate(c, &r, "y = w[(gc)*>g*c] @ x[n(gc)*>ngc*]"));
    xs.dims[1] = groups * ws.dims[1];
    EPCTX__TRY(epctx__add_windows(c, r.v.y, xs.dims[0], xs.dims[1], &g, &r.v.y));
    memcpy(xs.dims + 2, g.in, g.rank * sizeof *g.in);
    return epctx__biased(c, r.v.y, 2, &xs);
}

/* Places the columns of [n][channels * taps][places] in an image. */
static epctx_status epctx__lower_col2im(epctx__compiler *c) {
    int64_t channels;
    epctx__shape shape = c->tensors[c->in[0]].shape;
    epctx__geometry g;
    uint32_t x = c->in[0], id = c->in[1], y;
    size_t count, kernel_count;
    memset(&g, 0, sizeof g);
    EPCTX__TRY(epctx__const_ints(c, id, "image_shape", EPCTX_NPU_MAX_RANK - 2, g.in, &count));
    EPCTX__TRY(epctx__input(c, 2, &id));
    EPCTX__TRY(
        epctx__const_ints(c, id, "block_shape", EPCTX_NPU_MAX_RANK - 2, g.kernel, &kernel_count));
    g.rank = (uint32_t)count;
    if (shape.rank != 3 || count != kernel_count)
        return EPCTX__INVALID(c,
                              "expected rank 3 and blocks of the image's rank, found %u, %u and %u",
                              (uint64_t)shape.rank, (uint64_t)kernel_count, (uint64_t)count);
    EPCTX__TRY(epctx__geometry_of(c, &g));
    if (shape.dims[2] != g.places || shape.dims[1] % g.taps != 0)
        return EPCTX__INVALID(c, "expected %d blocks of %d elements, found %d", g.places, g.taps,
                              shape.dims[2]);
    channels = shape.dims[1] / g.taps;
    EPCTX__TRY(epctx__add_windows(c, x, shape.dims[0], channels, &g, &y));
    shape.rank = g.rank + 2;
    shape.dims[1] = channels;
    memcpy(shape.dims + 2, g.in, g.rank * sizeof *g.in);
    return epctx__lower_alias(c, y, &shape);
}

/* Zeros but at the indices that MaxPool gave. */
static epctx_status epctx__lower_max_unpool(epctx__compiler *c) {
    int64_t pads[2 * EPCTX_NPU_MAX_RANK] = {0};
    epctx__shape shape = c->tensors[c->in[0]].shape, flat = {1, {0}}, wide;
    epctx__formula r = epctx__formula_of(c->in[0]);
    epctx__geometry g;
    uint32_t i;
    r.v.i = c->in[1];
    if (shape.rank < 3) return EPCTX__INVALID(c, "expected rank >= 3");
    epctx__geometry_image(&g, &shape, NULL);
    EPCTX__TRY(epctx__ints(c, "kernel_shape", g.rank, 1, g.kernel));
    EPCTX__TRY(epctx__geometry_attrs(c, &g));
    for (i = 0; i < g.rank; i++)
        shape.dims[2 + i] = (g.in[i] - 1) * g.stride[i] + g.kernel[i] - g.before[i] - g.after[i];
    EPCTX__TRY(epctx__shape_from(c, shape.dims, shape.rank, &wide));
    flat.dims[0] = (int64_t)epctx__count(&shape);
    r.n.n = flat.dims[0]; /* a negative index is none: nor is this one */
    EPCTX__TRY(epctx__evaluate(c, &r, "x = x[*>*]; i = i[*>*]; i = where(i < 0, #n, i)"));
    EPCTX__TRY(epctx__emit_filled(c, EPCTX_ONNX_FLOAT, &flat, 0,
                                  !c->tensors[r.v.x].constant || !c->tensors[r.v.i].constant,
                                  &r.v.y));
    EPCTX__TRY(epctx__emit_elements(c, r.v.y, r.v.i, r.v.x, 0, EPCTX__JOIN_NONE, &r.v.y));
    if (c->in[2] == EPCTX__NONE) return epctx__lower_alias(c, r.v.y, &shape);
    EPCTX__TRY(epctx__const_shape(c, c->in[2], "output_shape", &wide));
    for (i = 0; i < shape.rank; i++) {
        if (wide.rank != shape.rank || wide.dims[i] < shape.dims[i])
            return epctx__bad_attr(c, "output_shape", "at least the size without it");
        pads[shape.rank + i] = wide.dims[i] - shape.dims[i];
    }
    EPCTX__TRY(epctx__alias(c, r.v.y, &shape, 0, &r.v.y));
    return epctx__emit_pad(c, EPCTX__PAD_CONSTANT, r.v.y, pads, 0, &c->y);
}

/* -- positions along an axis, computed at run time -- */

/* Reverses the first `lengths[b]` elements of each sequence. */
static epctx_status epctx__lower_reverse_sequence(epctx__compiler *c) {
    const int64_t time = epctx_node_int(c->node, "time_axis", 0);
    const int64_t batch = epctx_node_int(c->node, "batch_axis", 1);
    const epctx__shape shape = c->tensors[c->in[0]].shape;
    epctx__formula r = epctx__formula_of(c->in[0]);
    r.v.l = c->in[1];
    if (shape.rank < 2 || time + batch != 1 || time < 0 || batch < 0 ||
        c->tensors[r.v.l].count != (uint64_t)shape.dims[batch])
        return EPCTX__INVALID(c, "expected axes 0 and 1, and a length for each sequence");
    EPCTX__TRY(epctx__along_axis(c, &r.v.l, 2, (uint32_t)batch));
    EPCTX__TRY(epctx__ramp(c, shape.dims[time], 2, (uint32_t)time, &r.v.t));
    r.n.n = shape.dims[time] + 1; /* a negative length is none: nor is this one */
    EPCTX__TRY(
        epctx__evaluate(c, &r,
                        "l = int(l); l = where(l < 0, #n, l); i = where(t < l, l - 1 - t, t);"
                        "x = x[ij*>ij*]; i = i[ij>ij*]"));
    EPCTX__TRY(epctx__emit_elements(c, r.v.x, r.v.i, EPCTX__NONE, time, 0, &r.v.y));
    return epctx__lower_alias(c, r.v.y, &shape);
}

/* A cache, overwritten from write_indices[b] on. */
static epctx_status epctx__lower_tensor_scatter(epctx__compiler *c) {
    const epctx__shape shape = c->tensors[c->in[1]].shape, cache = c->tensors[c->in[0]].shape;
    epctx__formula r = epctx__formula_of(c->in[2]);
    uint32_t circular, axis;
    EPCTX__TRY(epctx__choice(c, "mode", "linear circular", &circular));
    EPCTX__TRY(epctx__axis_attr(c, -2, shape.rank, 0, &axis));
    EPCTX__TRY(epctx__ramp(c, shape.dims[axis], shape.rank, axis, &r.v.t));
    r.n.n = cache.rank > axis ? cache.dims[axis] : 1;
    if (r.v.x != EPCTX__NONE) { /* a negative index is none: nor is the end of the axis */
        if (c->tensors[r.v.x].count != (uint64_t)shape.dims[0])
            return EPCTX__INVALID(c, "expected %d write_indices", shape.dims[0]);
        EPCTX__TRY(epctx__along_axis(c, &r.v.x, shape.rank, 0));
        EPCTX__TRY(epctx__evaluate(c, &r,
                                   circular != 0 ? "t = where(x < 0, #n, mod(mod(x, #n) + t, #n))"
                                                 : "t = where(x < 0, #n, x + t)"));
    } else if (circular != 0) {
        EPCTX__TRY(epctx__evaluate(c, &r, "t = mod(t, #n)"));
    }
    EPCTX__TRY(epctx__expand_to(c, r.v.t, &shape, &r.v.t));
    return epctx__emit_elements(c, c->in[0], r.v.t, c->in[1], (int64_t)axis, EPCTX__JOIN_NONE,
                                &c->y);
}

/* The grid of GridSample for affine transformations: positions in -1..1 times theta. */
static epctx_status epctx__lower_affine_grid(epctx__compiler *c) {
    epctx__formula r = epctx__formula_of(c->in[0]);
    const bool align = epctx_node_int(c->node, "align_corners", 0) != 0;
    int64_t n, at, rest;
    epctx__shape sizes, shape;
    uint32_t i, rank;
    float *v;
    EPCTX__TRY(epctx__const_shape(c, c->in[1], "size", &sizes));
    if (sizes.rank < 4 || sizes.rank > 5 || c->tensors[r.v.x].shape.rank != 3)
        return EPCTX__INVALID(c, "expected size of 4 or 5, theta of rank 3");
    rank = sizes.rank - 2;
    n = (int64_t)epctx__product(&sizes, 2, sizes.rank);
    shape = epctx__shape4(n, rank + 1, 1, 1);
    shape.rank = 2;
    EPCTX__TRY(epctx__add_constant(c, EPCTX_ONNX_FLOAT, &shape, &v, &r.v.b));
    for (at = 0; at < n; at++) {
        for (i = 0, rest = at; i < rank; i++) {
            const int64_t size = sizes.dims[rank + 1 - i], p = rest % size;
            *v++ = align ? (size > 1 ? epctx__f_div((float)(2 * p - size + 1), (float)(size - 1))
                                     : 1.0f)
                         : epctx__f_div((float)(2 * p + 1 - size), (float)size);
            rest /= size;
        }
        *v++ = 1.0f;
    }
    EPCTX__TRY(epctx__evaluate(c, &r, "y = b @ x[nij>nji]"));
    for (i = 0; i < rank; i++) shape.dims[1 + i] = sizes.dims[2 + i];
    shape.dims[0] = sizes.dims[0];
    shape.dims[rank + 1] = rank;
    shape.rank = rank + 2;
    return epctx__lower_alias(c, r.v.y, &shape);
}

/* -- images at given positions -- */

/* `x` [batch][channels][in of g], positions [batch * .. * g's rank]: y [batch][channels][places] */
static epctx_status epctx__emit_sample(epctx__compiler *c, uint32_t x, uint32_t positions,
                                       uint32_t taps, uint32_t outside, uint32_t by, uint32_t *y) {
    const epctx__shape in = c->tensors[x].shape;
    epctx__shape shape = epctx__shape4(in.dims[0], in.dims[1], 0, 0);
    epctx__step s = epctx__new_step(EPCTX__OP_SAMPLE, x, positions, 0);
    epctx__sample *p = &s.params.sample;
    uint32_t i;
    p->taps = taps;
    p->outside = outside;
    p->positions = by;
    p->rank = in.rank - 2;
    p->batch = (uint32_t)in.dims[0];
    p->channels = (uint32_t)in.dims[1];
    p->places = (uint32_t)(c->tensors[positions].count / ((uint64_t)p->batch * p->rank));
    for (i = 0; i < 3; i++) p->in[i] = i + p->rank < 3 ? 1 : (uint32_t)in.dims[2 + i + p->rank - 3];
    shape.rank = 3;
    shape.dims[2] = p->places;
    return epctx__emit_new(c, &s, EPCTX_ONNX_FLOAT, &shape, y);
}

static epctx_status epctx__lower_grid_sample(epctx__compiler *c) {
    static const uint32_t taps[5] = {2, 2, 1, 4, 4};
    const epctx__shape gs = c->tensors[c->in[1]].shape;
    const bool align = epctx_node_int(c->node, "align_corners", 0) != 0;
    epctx__shape xs = c->tensors[c->in[0]].shape;
    uint32_t mode, outside, y, i;
    EPCTX__TRY(epctx__choice(c, "mode", "linear bilinear nearest bicubic cubic", &mode));
    EPCTX__TRY(epctx__choice(c, "padding_mode", "zeros border reflection", &outside));
    if (xs.rank < 4 || xs.rank > 5 || gs.rank != xs.rank || gs.dims[gs.rank - 1] != xs.rank - 2 ||
        gs.dims[0] != xs.dims[0] || (taps[mode] == 4 && xs.rank != 4))
        return EPCTX__REFUSE(c, "expected images of rank 4 or 5 (cubic: 4) and a grid that fits");
    EPCTX__TRY(epctx__emit_sample(c, c->in[0], c->in[1], taps[mode], outside,
                                  align ? EPCTX__BY_CENTERS : EPCTX__BY_EDGES, &y));
    for (i = 2; i < xs.rank; i++) xs.dims[i] = gs.dims[i - 1];
    return epctx__lower_alias(c, y, &xs);
}

/* One coordinate of the points that RoiAlign samples, `grid` to each of `bins` of a region:
 * y[region][bins * grid], between the regions' ends l and h of shape [region][1]. n: whether a
 * point lies at most one element outside of an axis of n elements, 1 or 0. */
static epctx_status epctx__region_points(epctx__compiler *c, epctx__formula *r, int64_t bins,
                                         int64_t grid, bool half) {
    float *data;
    int64_t i;
    EPCTX__TRY(epctx__add_floats(c, (uint64_t)(bins * grid), &data, &r->v.t));
    for (i = 0; i < bins * grid; i++)
        data[i] = epctx__f_div((float)(2 * i + 1), (float)(2 * bins * grid));
    EPCTX__TRY(epctx__scalar_float(c, epctx_node_float(c->node, "spatial_scale", 1.0f), &r->v.f));
    EPCTX__TRY(epctx__scalar_float(c, 0.5f, &r->v.e));
    EPCTX__TRY(epctx__evaluate(c, r, "l = l * f; h = h * f; d = h - l"));
    EPCTX__TRY(epctx__evaluate(c, r, half ? "l = l - e" : "d = max(d, 1)"));
    return epctx__evaluate(c, r, "y = d * t + l; n = float(-1 <= y & y <= #n)");
}

/* Means of bilinear samples of the regions of images. */
static epctx_status epctx__lower_roi_align(epctx__compiler *c) {
    static const bool samples[EPCTX_NPU_MAX_RANK] = {false, false, false, true, false, true};
    const int64_t grid = epctx_node_int(c->node, "sampling_ratio", 0);
    const int64_t bins[2] = {epctx_node_int(c->node, "output_height", 1),
                             epctx_node_int(c->node, "output_width", 1)};
    const epctx__shape xs = c->tensors[c->in[0]].shape, rois = c->tensors[c->in[1]].shape;
    epctx__formula r = epctx__formula_of(c->in[0]), axes[2];
    uint32_t whole, mode, i;
    const bool old = c->node->version < 16;
    EPCTX__TRY(epctx__choice(c, "coordinate_transformation_mode",
                             old ? "output_half_pixel half_pixel" : "half_pixel output_half_pixel",
                             &whole));
    EPCTX__TRY(epctx__choice(c, "mode", "avg", &mode));
    if (xs.rank != 4 || rois.rank != 2 || rois.dims[1] != 4 || grid < 1 || grid > 1024 ||
        bins[0] < 1 || bins[1] < 1 || bins[0] > 65536 || bins[1] > 65536 ||
        c->tensors[c->in[2]].count != (uint64_t)rois.dims[0])
        return EPCTX__REFUSE(c, "expected images of rank 4, regions [n][4], n batch_indices, "
                                "and sampling_ratio 1 to 1024");
    for (i = 0; i < 2; i++) {
        axes[i] = r;
        axes[i].n.n = xs.dims[2 + i];
        EPCTX__TRY(epctx__take_one(c, c->in[1], 1, 1 - i, 1, &axes[i].v.l));
        EPCTX__TRY(epctx__take_one(c, c->in[1], 1, 3 - i, 1, &axes[i].v.h));
        EPCTX__TRY(epctx__region_points(c, &axes[i], bins[i], grid, (whole == 0) != old));
    }
    r.v.a = axes[0].v.y;
    r.v.b = axes[1].v.y;
    r.v.m = axes[0].v.n;
    r.v.n = axes[1].v.n;
    r.v.i = c->in[2];
    r.n.a = bins[0] * grid;
    r.n.b = bins[1] * grid;
    EPCTX__TRY(
        epctx__evaluate(c, &r, /* the column first */
                        "a = a[ra>rab1]; b = b[rb>rab1]; x = take(x, i); y = join(b, a, 3)"));
    EPCTX__TRY(
        epctx__emit_sample(c, r.v.x, r.v.y, 2, EPCTX__OUTSIDE_BORDER, EPCTX__BY_ELEMENTS, &r.v.y));
    r.axes = samples;
    r.n.g = r.n.h = grid;
    return epctx__evaluate_y(c, &r,
                             "y = y[rc(ab)>rcab] * m[ra>r1a1] * n[rb>r11b];"
                             "y = mean(y[rc(ig)(jh)>rcigjh])[rci1j1>rcij]");
}

/* The sum of the signed products of all permutations. */
static epctx_status epctx__lower_det(epctx__compiler *c) {
    epctx__shape shape = c->tensors[c->in[0]].shape, flat = {2, {0}}, table = {2, {1, 0}};
    const bool square = shape.rank >= 2 && shape.dims[shape.rank - 1] == shape.dims[shape.rank - 2];
    const int64_t n = square ? shape.dims[shape.rank - 1] : 0;
    int64_t *index, digit, rest, used, k, i, j;
    uint32_t x, indices, signs, y;
    float *sign;
    if (n < 1 || n > 6) return EPCTX__REFUSE(c, "expected square matrices of 1 to 6 rows");
    for (table.dims[1] = i = n; i > 0; i--) table.dims[0] *= i;
    shape.rank -= 2;
    flat.dims[0] = (int64_t)epctx__count(&shape);
    flat.dims[1] = n * n;
    EPCTX__TRY(epctx__alias(c, c->in[0], &flat, 0, &x));
    EPCTX__TRY(epctx__add_constant(c, EPCTX_ONNX_INT64, &table, &index, &indices));
    EPCTX__TRY(epctx__add_floats(c, (uint64_t)table.dims[0], &sign, &signs));
    for (k = 0; k < table.dims[0]; k++) { /* the digits of k select columns that are left */
        sign[k] = 1.0f;
        for (i = 0, rest = k, used = 0; i < n; i++, rest /= n - i + 1) {
            for (digit = rest % (n - i), j = 0; digit > 0 || (used >> j & 1) != 0; j++)
                digit -= (used >> j & 1) == 0 ? 1 : 0;
            used |= (int64_t)1 << j;
            *index++ = i * n + j;
            sign[k] = rest % (n - i) % 2 != 0 ? -sign[k] : sign[k];
        }
    }
    EPCTX__TRY(epctx__emit_gather(c, x, indices, 1, &x));
    table.dims[1] = table.dims[0];
    table.dims[0] = flat.dims[0];
    EPCTX__TRY(epctx__emit_reduce(c, EPCTX__REDUCE_PROD, x, 2, 3, &table, &y));
    EPCTX__TRY(epctx__emit_binary(c, EPCTX__BINARY_MUL, y, signs, &y));
    return epctx__emit_reduce(c, EPCTX__REDUCE_SUM, y, 1, 2, &shape, &c->y);
}

/* Positions of all taps without offsets: [tap][place][2], the column first. */
static epctx_status epctx__tap_positions(epctx__compiler *c, const epctx__geometry *g,
                                         uint32_t *id) {
    const epctx__shape shape = epctx__shape4(1, g->taps, g->places, 2);
    int64_t tap, place;
    float *v;
    EPCTX__TRY(epctx__add_constant(c, EPCTX_ONNX_FLOAT, &shape, &v, id));
    for (tap = 0; tap < g->taps; tap++) {
        for (place = 0; place < g->places; place++) {
            *v++ = (float)(place % g->out[1] * g->stride[1] + tap % g->kernel[1] * g->dilation[1] -
                           g->before[1]);
            *v++ = (float)(place / g->out[1] * g->stride[0] + tap / g->kernel[1] * g->dilation[0] -
                           g->before[0]);
        }
    }
    return EPCTX_OK;
}

/* A convolution whose taps are moved by offsets and weighted by a mask. */
static epctx_status epctx__lower_deform_conv(epctx__compiler *c) {
    static const int64_t first[EPCTX_NPU_MAX_RANK] = {0, 0, 0, 1};
    static const int64_t step[EPCTX_NPU_MAX_RANK] = {1, 1, 1, -1};
    const int64_t groups = epctx_node_int(c->node, "offset_group", 1);
    const epctx__shape xs = c->tensors[c->in[0]].shape;
    epctx__formula r = epctx__formula_of(c->in[0]);
    epctx__shape order;
    epctx__geometry g;
    r.v.w = c->in[1];
    r.v.o = c->in[2];
    r.v.m = c->in[4];
    if (xs.rank != 4 || c->tensors[r.v.w].shape.rank != 4 || groups < 1 || xs.dims[1] % groups != 0)
        return EPCTX__INVALID(c, "expected images and weights of rank 4 and channels for %d groups",
                              groups);
    epctx__geometry_image(&g, &xs, &c->tensors[r.v.w].shape);
    EPCTX__TRY(epctx__check_kernel(c, &g));
    EPCTX__TRY(epctx__geometry_of(c, &g));
    if (c->tensors[r.v.o].count != (uint64_t)(xs.dims[0] * groups * g.taps * g.places * 2) ||
        (r.v.m != EPCTX__NONE && c->tensors[r.v.m].count * 2 != c->tensors[r.v.o].count))
        return EPCTX__INVALID(c, "offsets or mask do not fit %d windows of %d", g.places, g.taps);
    r.n.g = groups;
    r.n.t = g.taps;
    r.n.d = 2;
    EPCTX__TRY(epctx__evaluate(c, &r, "o = o[n(gtd)*>(ng)t*d]; x = x[n(gc)hw>(ng)chw]"));
    order = c->tensors[r.v.o].shape; /* the column first */
    EPCTX__TRY(epctx__take_box(c, r.v.o, &order, first, step, &r.v.o));
    EPCTX__TRY(epctx__tap_positions(c, &g, &r.v.p));
    EPCTX__TRY(epctx__evaluate(c, &r, "o = o + p"));
    EPCTX__TRY(
        epctx__emit_sample(c, r.v.x, r.v.o, 2, EPCTX__OUTSIDE_ZEROS, EPCTX__BY_ELEMENTS, &r.v.x));
    if (r.v.m != EPCTX__NONE) {
        EPCTX__TRY(epctx__want_float(c, r.v.m));
        EPCTX__TRY(epctx__evaluate(c, &r, "x = x * m[n(gt)*>(ng)1(t*)]"));
    }
    EPCTX__TRY(epctx__evaluate(c, &r, "x = x[(ng)c(tp)>n(gc)tp]"));
    EPCTX__TRY(epctx__window_factors(c, r.v.x, r.v.w, &g, &r.v.a, &r.v.b, &order));
    EPCTX__TRY(epctx__matmul_of(c, r.v.a, r.v.b, &r.v.y));
    return epctx__biased(c, r.v.y, 3, &order);
}

/* -- the largest elements -- */

static epctx_status epctx__lower_topk(epctx__compiler *c) {
    const bool smallest = epctx_node_int(c->node, "largest", 1) == 0;
    int64_t k = epctx_node_int(c->node, "k", 0);
    uint32_t x = c->in[0], id, axis;
    if (c->node->version >= 10) {
        EPCTX__TRY(epctx__input(c, 1, &id));
        EPCTX__TRY(epctx__const_ints(c, id, "k", 1, &k, NULL));
        EPCTX__TRY(epctx__want_rank(c, id, "k", 1, 1));
    }
    EPCTX__TRY(epctx__axis_attr(c, -1, c->tensors[x].shape.rank, 0, &axis));
    if (k < 1 || k > c->tensors[x].shape.dims[axis])
        return EPCTX__REFUSE(c, "k: expected 1..%d, found %d", c->tensors[x].shape.dims[axis], k);
    EPCTX__TRY(epctx__emit_arg(c, x, axis, smallest, false, k, &id));
    EPCTX__TRY(epctx__emit_elements(c, x, id, EPCTX__NONE, (int64_t)axis, 0, &c->y));
    return epctx__set_output(c, 1, id);
}

/* -- signals: Fourier transforms are products with constant matrices -- */

/* Cosine or sine of m/n turns, from integers: the same bits everywhere. */
static float epctx__wave(uint64_t m, uint64_t n, bool sine) {
    const uint64_t turn = m % n * 4, quarter = turn / n + (sine ? 3 : 0);
    const int64_t one = (int64_t)1 << 30, odd = (int64_t)(quarter & 1);
    const uint64_t a = (((turn % n) << 32) / n * 3373259426u) >> 32; /* radians, 31 bits behind 1 */
    const int64_t z = (int64_t)((a * a) >> 32);
    int64_t p = one, k;
    for (k = 14 + odd; k > 1; k -= 2) p = one - z * p / one / (k * (k - 1));
    p = odd != 0 ? (int64_t)a * p / (2 * one) : p;
    return epctx__f_mul((float)(((quarter + 1) & 2) != 0 ? -p : p), 1.0f / 1073741824.0f);
}

typedef enum epctx__window_form {
    EPCTX__WINDOW_HANN = 0,
    EPCTX__WINDOW_HAMMING,
    EPCTX__WINDOW_BLACKMAN
} epctx__window_form;

/* Sums of cosines. */
static epctx_status epctx__lower_window(epctx__compiler *c) {
    static const float terms[3][3] = {
        {0.5f, 0.5f, 0.0f}, {25.0f / 46.0f, 21.0f / 46.0f, 0.0f}, {0.42f, 0.5f, 0.08f}};
    const float *const a = terms[c->variant];
    const bool periodic = epctx_node_int(c->node, "periodic", 1) != 0;
    int64_t size = 0;
    uint64_t i, period;
    uint32_t y;
    float *w;
    EPCTX__TRY(epctx__const_ints(c, c->in[0], "size", 1, &size, NULL));
    EPCTX__TRY(epctx__want_rank(c, c->in[0], "size", 0, 0));
    if (size < 1 || size > EPCTX__MAX_BYTES / 4) return EPCTX__REFUSE(c, "size: found %d", size);
    EPCTX__TRY(epctx__add_floats(c, (uint64_t)size, &w, &y));
    period = (uint64_t)size - (periodic || size == 1 ? 0 : 1);
    for (i = 0; i < (uint64_t)size; i++)
        w[i] = epctx__f_add(epctx__f_add(a[0], -epctx__f_mul(a[1], epctx__wave(i, period, false))),
                            epctx__f_mul(a[2], epctx__wave(2 * i, period, false)));
    return epctx__emit_cast(
        c, y, (int32_t)epctx_node_int(c->node, "output_datatype", EPCTX_ONNX_FLOAT), &c->y);
}

/* Triangles that overlap by half, one for each mel band: [bins][bands]. */
static epctx_status epctx__lower_mel(epctx__compiler *c) {
    static const char *const names[3] = {"num_mel_bins", "dft_length", "sample_rate"};
    const double near = 1e-7; /* an edge at a bin is there however a machine rounds */
    epctx__shape shape = {2, {0}};
    int64_t sizes[3] = {0}, at[3] = {0}, bins, i, j;
    double low, high, each;
    float edges[2] = {0}, *w;
    uint32_t y;
    for (i = 0; i < 3; i++)
        EPCTX__TRY(epctx__const_ints(c, c->in[i], names[i], 1, &sizes[i], NULL));
    EPCTX__TRY(epctx__const_float(c, c->in[3], "lower_edge_hertz", &edges[0]));
    EPCTX__TRY(epctx__const_float(c, c->in[4], "upper_edge_hertz", &edges[1]));
    for (i = 0; i < 3; i++)
        if (sizes[i] < 1 || sizes[i] > 1 << 24)
            return EPCTX__REFUSE(c, "%s: found %d", names[i], sizes[i]);
    bins = sizes[1] / 2 + 1;
    each = (double)(sizes[1] + 1) / (double)sizes[2];
    if (!(edges[0] >= 0.0f && edges[1] >= edges[0] && (double)edges[1] * each < (double)bins))
        return EPCTX__REFUSE(c, "edges: expected rising ones, at most half of sample_rate");
    low = epctx__log_wide(1.0 + (double)edges[0] / 700.0);
    high = epctx__log_wide(1.0 + (double)edges[1] / 700.0);
    shape.dims[0] = bins;
    shape.dims[1] = sizes[0];
    EPCTX__TRY(epctx__add_constant(c, EPCTX_ONNX_FLOAT, &shape, &w, &y));
    memset(w, 0, (size_t)(bins * sizes[0]) * sizeof *w);
    for (i = -2; i < sizes[0]; i++) { /* a band from the bins before, at and behind its centre */
        const double part = (double)(i + 2) / (double)(sizes[0] + 2);
        at[0] = at[1];
        at[1] = at[2];
        at[2] = (int64_t)(700.0 * (epctx__exp_wide(low + (high - low) * part) - 1.0) * each + near);
        if (at[2] >= bins) at[2] = bins - 1; /* rounding could lift it */
        if (i < 0) continue;
        for (j = at[0]; j < at[2]; j++)
            w[j * sizes[0] + i] = j < at[1]
                                      ? epctx__f_div((float)(j - at[0]), (float)(at[1] - at[0]))
                                      : epctx__f_div((float)(at[2] - j), (float)(at[2] - at[1]));
        w[at[1] * sizes[0] + i] = 1.0f;
    }
    return epctx__emit_cast(
        c, y, (int32_t)epctx_node_int(c->node, "output_datatype", EPCTX_ONNX_FLOAT), &c->y);
}

/* Samples of the transform: an input, or the default. */
static epctx_status epctx__wave_size(epctx__compiler *c, size_t input, int64_t *size) {
    uint32_t id;
    EPCTX__TRY(epctx__optional(c, input, &id));
    if (id != EPCTX__NONE) EPCTX__TRY(epctx__const_ints(c, id, "size", 1, size, NULL));
    return *size > 0 && *size <= EPCTX__MAX_BYTES / 16 ? EPCTX_OK
                                                       : EPCTX__REFUSE(c, "size: found %d", *size);
}

/* The transform, `size` long, of x[..][rows][parts], where 2 parts are complex: `shape` is that of
 * x with the bins in place of the rows, and becomes the result's. `window`: NONE or a factor for
 * each row; it becomes part of the matrix. */
static epctx_status epctx__emit_waves(epctx__compiler *c, uint32_t x, int64_t rows, uint64_t size,
                                      bool inverse, uint32_t window, epctx__shape *shape,
                                      uint32_t *y) {
    const uint64_t bins = (uint64_t)shape->dims[shape->rank - 2];
    const uint64_t parts = (uint64_t)shape->dims[shape->rank - 1];
    const float scale = inverse ? epctx__f_div(1.0f, (float)size) : 1.0f;
    const epctx__shape flat = {2, {rows, (int64_t)epctx__mul3(parts, bins, 2)}};
    epctx__formula r = epctx__formula_of(x);
    float *w, *roots;
    uint64_t i, k;
    r.v.f = window;
    EPCTX__TRY(epctx__add_constant(c, EPCTX_ONNX_FLOAT, &flat, &w, &r.v.w));
    EPCTX__MAKE(c, roots, float, 2 * size);
    for (i = 0; i < size; i++) {
        roots[2 * i] = epctx__f_mul(epctx__wave(i, size, false), scale);
        roots[2 * i + 1] = epctx__f_mul(epctx__wave(i, size, true), inverse ? scale : -1.0f);
    }
    for (i = 0; i < (uint64_t)rows * parts; i++) { /* rows behind the transform stay 0 */
        for (k = 0; k < bins && i / parts < size; k++) {
            const float *t = roots + i / parts * k % size * 2;
            w[2 * (i * bins + k)] = i % parts == 0 ? t[0] : -t[1];
            w[2 * (i * bins + k) + 1] = t[1 - i % parts];
        }
    }
    if (window != EPCTX__NONE) {
        EPCTX__TRY(epctx__want_float(c, window));
        EPCTX__TRY(epctx__evaluate(c, &r, "w = w * f[*>*1]"));
    }
    r.n.p = (int64_t)parts;
    EPCTX__TRY(epctx__evaluate(c, &r, "y = x[*rp>*(rp)] @ w[r(pb)>(rp)b]"));
    shape->dims[shape->rank - 1] = 2;
    return epctx__alias(c, r.v.y, shape, 0, y);
}

static epctx_status epctx__lower_dft(epctx__compiler *c) {
    const bool inverse = epctx_node_int(c->node, "inverse", 0) != 0;
    const bool half = epctx_node_int(c->node, "onesided", 0) != 0;
    int64_t at = c->node->version < 20 ? epctx_node_int(c->node, "axis", 1) : -2, size, rows;
    int64_t swapped[EPCTX_NPU_MAX_RANK];
    epctx__shape shape = c->tensors[c->in[0]].shape;
    uint32_t x = c->in[0], y, axis, id = c->in[2], last = shape.rank - 1, i;
    if (id != EPCTX__NONE) EPCTX__TRY(epctx__const_ints(c, id, "axis", 1, &at, NULL));
    EPCTX__TRY(epctx__want_rank(c, id, "axis", 0, 0));
    EPCTX__TRY(epctx__axis(c, at, shape.rank, 0, &axis));
    if (axis == last || c->tensors[x].count == 0 || shape.dims[last] > 2 || (inverse && half))
        return EPCTX__REFUSE(c, "expected real or complex numbers, and not inverse with onesided");
    rows = size = shape.dims[axis];
    EPCTX__TRY(epctx__wave_size(c, 1, &size));
    for (i = 0; i <= last; i++) swapped[i] = (int64_t)i; /* swaps the axis with the last but one */
    swapped[axis] = (int64_t)last - 1;
    swapped[last - 1] = (int64_t)axis;
    EPCTX__TRY(epctx__emit_transpose(c, x, swapped, &x));
    shape = c->tensors[x].shape;
    shape.dims[last - 1] = half ? size / 2 + 1 : size;
    EPCTX__TRY(epctx__emit_waves(c, x, rows, (uint64_t)size, inverse, EPCTX__NONE, &shape, &y));
    return epctx__emit_transpose(c, y, swapped, &c->y);
}

/* Frames that overlap are moved side by side. */
static epctx_status epctx__lower_stft(epctx__compiler *c) {
    int64_t step = 0, size = 0, from[4] = {0, 0, 0, 1};
    epctx__shape shape = c->tensors[c->in[0]].shape;
    uint32_t x = c->in[0], y, window = c->in[2];
    EPCTX__TRY(epctx__wave_size(c, 1, &step));
    size = window != EPCTX__NONE ? (int64_t)c->tensors[window].count : 0;
    EPCTX__TRY(epctx__wave_size(c, 3, &size));
    if (shape.rank == 2) shape.dims[shape.rank++] = 1;
    if (shape.rank != 3 || size > shape.dims[1] || shape.dims[2] < 1 || shape.dims[2] > 2 ||
        (window != EPCTX__NONE && c->tensors[window].count != (uint64_t)size))
        return EPCTX__REFUSE(
            c, "expected [batch][samples][1 or 2] and a window of the frame's length");
    shape.rank = 4;
    shape.dims[3] = shape.dims[2];
    from[2] = shape.dims[3];
    from[1] = step * from[2];
    from[0] = shape.dims[1] * from[2];
    shape.dims[1] = (shape.dims[1] - size) / step + 1;
    shape.dims[2] = size;
    EPCTX__TRY(epctx__emit_strided(c, x, &shape, 0, from, &y));
    if (epctx_node_int(c->node, "onesided", 1) != 0) shape.dims[2] = size / 2 + 1;
    return epctx__emit_waves(c, y, size, (uint64_t)size, false, window, &shape, &c->y);
}

/* -- the table of operators -- */

static epctx_status epctx__lower_if(epctx__compiler *c); /* (>>bodies) */
static epctx_status epctx__lower_loop(epctx__compiler *c);

typedef struct epctx__lowering {
    const char *op_type;
    uint8_t since; /* the first opset that has it */
    /* A letter for each input to fetch:
     * x: of any type
     * f: of floats
     * X: of any type, optional
     * -: not fetched
     * A * at the end: inputs of types that are only stored stay; otherwise they are converted. */
    const char *inputs;
    epctx_status (*lower_fn)(epctx__compiler *c);
    uint32_t variant; /* for lower_fn: the operator among those it lowers */
} epctx__lowering;

static const epctx__lowering epctx__lowers[] = {
    {"Add", 1, "xx", epctx__lower_binary, EPCTX__BINARY_ADD},
    {"AffineGrid", 20, "fx", epctx__lower_affine_grid, 0},
    {"And", 1, "xx", epctx__lower_exact, EPCTX__EXACT_AND},
    {"ArgMax", 1, "x", epctx__lower_arg, false},
    {"ArgMin", 1, "x", epctx__lower_arg, true},
    {"Attention", 23, "f---X", epctx__lower_attention, 0},
    {"AveragePool", 1, "x", epctx__lower_pool, EPCTX__POOL_AVERAGE},
    {"BatchNormalization", 1, "f", epctx__lower_batch_norm, 0},
    {"BitShift", 11, "xx", epctx__lower_bit_shift, 0},
    {"BitwiseAnd", 18, "xx", epctx__lower_exact, EPCTX__EXACT_AND},
    {"BitwiseNot", 18, "x", epctx__lower_bitwise_not, 0},
    {"BitwiseOr", 18, "xx", epctx__lower_exact, EPCTX__EXACT_OR},
    {"BitwiseXor", 18, "xx", epctx__lower_exact, EPCTX__EXACT_XOR},
    {"BlackmanWindow", 17, "x", epctx__lower_window, EPCTX__WINDOW_BLACKMAN},
    {"Cast", 1, "x*", epctx__lower_cast, false},
    {"CastLike", 15, "xx*", epctx__lower_cast, true},
    {"CenterCropPad", 18, "xx", epctx__lower_center_crop_pad, 0},
    {"Clip", 1, "x", epctx__lower_clip, 0},
    {"Col2Im", 18, "fx", epctx__lower_col2im, 0},
    {"Concat", 1, "", epctx__lower_concat, 0},
    {"Constant", 1, "", epctx__lower_constant, 0},
    {"ConstantOfShape", 9, "x", epctx__lower_constant_of_shape, 0},
    {"Conv", 1, "ffX", epctx__lower_any_conv, 0},
    {"ConvInteger", 10, "", epctx__lower_integer, true},
    {"ConvTranspose", 1, "ff", epctx__lower_any_conv_transpose, 0},
    {"CumSum", 11, "xx", epctx__lower_cumsum, 0},
    {"DFT", 17, "f-X", epctx__lower_dft, 0},
    {"DeformConv", 19, "fff-X", epctx__lower_deform_conv, 0},
    {"DepthToSpace", 1, "x", epctx__lower_blocks, false},
    {"DequantizeLinear", 10, "xxX", epctx__lower_quantize, true},
    {"Det", 11, "f", epctx__lower_det, 0},
    {"Div", 1, "xx", epctx__lower_binary, EPCTX__BINARY_DIV},
    {"Dropout", 1, "xXX", epctx__lower_dropout, 0},
    {"DynamicQuantizeLinear", 11, "f", epctx__lower_dynamic_quantize, 0},
    {"Equal", 1, "xx", epctx__lower_exact, EPCTX__EXACT_EQUAL},
    {"Expand", 8, "xx", epctx__lower_expand, 0},
    {"EyeLike", 9, "x*", epctx__lower_eye_like, 0},
    {"Flatten", 1, "x*", epctx__lower_flatten, 0},
    {"GRU", 1, "", epctx__lower_cell, EPCTX__CELL_GRU},
    {"Gather", 1, "xx", epctx__lower_gather, 0},
    {"GatherElements", 11, "xx", epctx__lower_elements, false},
    {"GatherND", 11, "xx", epctx__lower_nd, false},
    {"Gelu", 20, "x", epctx__lower_gelu, 0},
    {"Gemm", 1, "ffX", epctx__lower_gemm, 0},
    {"GlobalAveragePool", 1, "f", epctx__lower_global_pool, EPCTX__REDUCE_MEAN},
    {"GlobalLpPool", 1, "f", epctx__lower_lp, true},
    {"GlobalMaxPool", 1, "f", epctx__lower_global_pool, EPCTX__REDUCE_MAX},
    {"Greater", 1, "xx", epctx__lower_exact, EPCTX__EXACT_LESS | EPCTX__SWAPPED},
    {"GreaterOrEqual", 12, "xx", epctx__lower_exact, EPCTX__EXACT_LESS_EQUAL | EPCTX__SWAPPED},
    {"GridSample", 16, "ff", epctx__lower_grid_sample, 0},
    {"GroupNormalization", 18, "fff", epctx__lower_channel_norm, true},
    {"HammingWindow", 17, "x", epctx__lower_window, EPCTX__WINDOW_HAMMING},
    {"HannWindow", 17, "x", epctx__lower_window, EPCTX__WINDOW_HANN},
    {"Hardmax", 1, "f", epctx__lower_hardmax, 0},
    {"Identity", 1, "x*", epctx__lower_identity, 0},
    {"If", 1, "x*", epctx__lower_if, 0},
    {"InstanceNormalization", 1, "fff", epctx__lower_channel_norm, false},
    {"IsInf", 10, "f", epctx__lower_is_inf, 0},
    {"IsNaN", 9, "f", epctx__lower_is_nan, 0},
    {"LRN", 1, "f", epctx__lower_lrn, 0},
    {"LSTM", 1, "", epctx__lower_cell, EPCTX__CELL_LSTM},
    {"LayerNormalization", 1, "ff", epctx__lower_layer_norm, true},
    {"Less", 1, "xx", epctx__lower_exact, EPCTX__EXACT_LESS},
    {"LessOrEqual", 12, "xx", epctx__lower_exact, EPCTX__EXACT_LESS_EQUAL},
    {"LogSoftmax", 1, "f", epctx__lower_softmax, true},
    {"Loop", 1, "X*", epctx__lower_loop, false},
    {"LpNormalization", 1, "f", epctx__lower_lp, false},
    {"LpPool", 1, "x", epctx__lower_pool, EPCTX__POOL_LP},
    {"MatMul", 1, "ff", epctx__lower_matmul, 0},
    {"MatMulInteger", 10, "", epctx__lower_integer, false},
    {"Max", 1, "x", epctx__lower_many, EPCTX__BINARY_MAX},
    {"MaxPool", 1, "x", epctx__lower_pool, EPCTX__POOL_MAX},
    {"MaxUnpool", 9, "fxX", epctx__lower_max_unpool, 0},
    {"Mean", 1, "f", epctx__lower_many, EPCTX__BINARY_DIV},
    {"MeanVarianceNormalization", 1, "f", epctx__lower_mean_variance, 0},
    {"MelWeightMatrix", 17, "xxxxx", epctx__lower_mel, 0},
    {"Min", 1, "x", epctx__lower_many, EPCTX__BINARY_MIN},
    {"Mod", 10, "xx", epctx__lower_mod, 0},
    {"Mul", 1, "xx", epctx__lower_binary, EPCTX__BINARY_MUL},
    {"NegativeLogLikelihoodLoss", 12, "fxX", epctx__lower_loss, false},
    {"Not", 1, "x", epctx__lower_not, 0},
    {"OneHot", 9, "xxx", epctx__lower_one_hot, 0},
    {"Or", 1, "xx", epctx__lower_exact, EPCTX__EXACT_OR},
    {"PRelu", 1, "ff", epctx__lower_prelu, 0},
    {"Pad", 1, "x", epctx__lower_pad, 0},
    {"Pow", 1, "xx", epctx__lower_pow, 0},
    {"QuantizeLinear", 10, "ffX", epctx__lower_quantize, false},
    {"RMSNormalization", 23, "ff", epctx__lower_layer_norm, false},
    {"RNN", 1, "", epctx__lower_cell, EPCTX__CELL_RNN},
    {"Range", 11, "", epctx__lower_range, 0},
    {"ReduceL1", 1, "x", epctx__lower_reduce_form, 0},
    {"ReduceL2", 1, "x", epctx__lower_reduce_form, 0},
    {"ReduceLogSum", 1, "x", epctx__lower_reduce_form, 0},
    {"ReduceLogSumExp", 1, "x", epctx__lower_reduce_form, 0},
    {"ReduceMax", 1, "x", epctx__lower_reduce, EPCTX__REDUCE_MAX},
    {"ReduceMean", 1, "x", epctx__lower_reduce, EPCTX__REDUCE_MEAN},
    {"ReduceMin", 1, "x", epctx__lower_reduce, EPCTX__REDUCE_MIN},
    {"ReduceProd", 1, "x", epctx__lower_reduce, EPCTX__REDUCE_PROD},
    {"ReduceSum", 1, "x", epctx__lower_reduce, EPCTX__REDUCE_SUM},
    {"ReduceSumSquare", 1, "x", epctx__lower_reduce_form, 0},
    {"Reshape", 1, "x*", epctx__lower_reshape, 0},
    {"Resize", 10, "f", epctx__lower_resize, 0},
    {"RoiAlign", 10, "ffx", epctx__lower_roi_align, 0},
    {"ReverseSequence", 10, "xx", epctx__lower_reverse_sequence, 0},
    {"RotaryEmbedding", 23, "f", epctx__lower_rotary, 0},
    {"STFT", 17, "f-X", epctx__lower_stft, 0},
    {"Scan", 8, "X*", epctx__lower_loop, true},
    {"Scatter", 9, "xxx", epctx__lower_elements, true},
    {"ScatterElements", 11, "xxx", epctx__lower_elements, true},
    {"ScatterND", 11, "xxx", epctx__lower_nd, true},
    {"Shape", 1, "x*", epctx__lower_shape, 0},
    {"SimplifiedLayerNormalization", 1, "ff", epctx__lower_layer_norm, false},
    {"Size", 1, "x*", epctx__lower_size, 0},
    {"Slice", 1, "x", epctx__lower_slice, 0},
    {"Softmax", 1, "f", epctx__lower_softmax, false},
    {"SoftmaxCrossEntropyLoss", 12, "fxX", epctx__lower_loss, true},
    {"SpaceToDepth", 1, "x", epctx__lower_blocks, true},
    {"Split", 1, "x", epctx__lower_split, 0},
    {"Squeeze", 1, "x*", epctx__lower_squeeze, 0},
    {"Sub", 1, "xx", epctx__lower_binary, EPCTX__BINARY_SUB},
    {"Sum", 1, "x", epctx__lower_many, EPCTX__BINARY_ADD},
    {"TensorScatter", 24, "xxX", epctx__lower_tensor_scatter, 0},
    {"Tile", 1, "xx", epctx__lower_tile, 0},
    {"TopK", 1, "x", epctx__lower_topk, 0},
    {"Transpose", 1, "x", epctx__lower_transpose, 0},
    {"Trilu", 14, "xX", epctx__lower_trilu, 0},
    {"Unsqueeze", 1, "x*", epctx__lower_unsqueeze, 0},
    {"Upsample", 1, "f", epctx__lower_resize, 0},
    {"Where", 9, "xxx", epctx__lower_where, 0},
    {"Xor", 1, "xx", epctx__lower_exact, EPCTX__EXACT_XOR},
#define EPCTX__ACT_ROW(name, op_type, since, same, value) \
    {op_type, since, "x", epctx__lower_act, EPCTX__ACT_##name},
    EPCTX_NPU_ACT_LIST(EPCTX__ACT_ROW)
#undef EPCTX__ACT_ROW
};

/* An operator on quantized tensors: that of floats between Dequantize and Quantize. */
typedef struct epctx__quantized {
    epctx__lowering floats; /* op_type: of the quantized operator */
    uint8_t first;          /* the first input of the triples of data, scale and zero point */
    uint8_t count;          /* triples; 0: all inputs that follow */
    uint8_t bias;           /* the input of int32 that is added; 0: none */
    uint8_t result; /* the input that is the result's scale; the next one is its zero point */
} epctx__quantized;

static const epctx__quantized epctx__quantizeds[] = {
    {{"QGemm", 1, "ffX", epctx__lower_gemm, 0}, 0, 2, 6, 7},
    {{"QLinearAdd", 1, "xx", epctx__lower_binary, EPCTX__BINARY_ADD}, 0, 2, 0, 6},
    {{"QLinearAveragePool", 1, "x", epctx__lower_pool, EPCTX__POOL_AVERAGE}, 0, 1, 0, 3},
    {{"QLinearConcat", 1, "", epctx__lower_concat, 0}, 2, 0, 0, 0},
    {{"QLinearConv", 1, "ffX", epctx__lower_any_conv, 0}, 0, 2, 8, 6},
    {{"QLinearGlobalAveragePool", 1, "f", epctx__lower_global_pool, EPCTX__REDUCE_MEAN},
     0,
     1,
     0,
     3},
    {{"QLinearLeakyRelu", 1, "x", epctx__lower_act, EPCTX__ACT_LEAKY}, 0, 1, 0, 3},
    {{"QLinearMatMul", 1, "ff", epctx__lower_matmul, 0}, 0, 2, 0, 6},
    {{"QLinearMul", 1, "xx", epctx__lower_binary, EPCTX__BINARY_MUL}, 0, 2, 0, 6},
    {{"QLinearReduceMean", 1, "x", epctx__lower_reduce, EPCTX__REDUCE_MEAN}, 0, 1, 0, 3},
    {{"QLinearSigmoid", 1, "x", epctx__lower_act, EPCTX__ACT_SIGMOID}, 0, 1, 0, 3},
    {{"QLinearSoftmax", 1, "f", epctx__lower_softmax, false}, 0, 1, 0, 3},
    {{"QLinearWhere", 1, "xxx", epctx__lower_where, 0}, 1, 2, 0, 7},
};

/* The bias of a product counts in the product of both scales. */
static epctx_status epctx__floats_of_bias(epctx__compiler *c, size_t i, uint32_t *y) {
    const float alpha = epctx_node_float(c->node, "alpha", 1.0f);
    epctx__formula r = epctx__formula_of(EPCTX__NONE);
    EPCTX__TRY(epctx__input(c, i, &r.v.x));
    EPCTX__TRY(epctx__float_input(c, 1, &r.v.a));
    EPCTX__TRY(epctx__float_input(c, 4, &r.v.b));
    EPCTX__TRY(epctx__scalar_float(c, alpha, &r.v.f));
    EPCTX__TRY(epctx__evaluate(c, &r, alpha == 1.0f ? "s = a * b" : "s = a * b * f"));
    return epctx__floats_of(c, i, r.v.s, SIZE_MAX, c->tensors[r.v.x].shape.rank > 0 ? -1 : 0, y);
}

/* Fetches the inputs into c->in and calls the function; c->y is output 0, unless it is set. */
static epctx_status epctx__lower_by(epctx__compiler *c, const epctx__lowering *lower) {
    uint32_t y;
    size_t i;
    c->stored = memchr(lower->inputs, '*', strlen(lower->inputs)) != NULL;
    for (i = 0; lower->inputs[i] != '\0'; i++) {
        if (lower->inputs[i] == 'X')
            EPCTX__TRY(epctx__optional(c, i, &c->in[i]));
        else if (lower->inputs[i] == 'x' || lower->inputs[i] == 'f')
            EPCTX__TRY(epctx__input(c, i, &c->in[i]));
        if (lower->inputs[i] == 'f') EPCTX__TRY(epctx__want_float(c, c->in[i]));
    }
    c->y = EPCTX__NONE;
    c->variant = lower->variant;
    EPCTX__TRY(lower->lower_fn(c));
    y = c->y;
    c->y = EPCTX__NONE; /* of the node whose body this one is in */
    return y != EPCTX__NONE ? epctx__set_output(c, 0, y) : EPCTX_OK;
}

static epctx_status epctx__lower_quantized(epctx__compiler *c, const epctx__quantized *q) {
    const epctx_node *node = c->node;
    const bool conv = epctx_str_is(node->op_type, "QLinearConv");
    const size_t rest = node->input_count > q->first ? (node->input_count - q->first) / 3 : 0;
    const size_t count = q->count != 0 ? q->count : rest,
                 passed = q->result < q->first ? 0 : q->first;
    epctx_node inner = *node;
    uint32_t *given, scale, zero, y;
    epctx_str *names;
    epctx_status status;
    size_t i;
    if (epctx_node_int(node, "channels_last", 0) != 0 ||
        (epctx_node_int(node, "ceil_mode", 0) != 0 &&
         epctx_node_int(node, "count_include_pad", 0) != 0)) /* ORT counts more than the padding */
        return EPCTX__REFUSE(c,
                             "expected channels_last 0, and not ceil_mode with count_include_pad");
    EPCTX__MAKE(c, given, uint32_t, count + 2);
    EPCTX__MAKE(c, names, epctx_str, count + 2);
    inner.input_count = 0;
    for (i = 0; i < passed; i++) {
        EPCTX__TRY(epctx__input(c, i, &given[inner.input_count]));
        names[inner.input_count++] = node->inputs[i];
    }
    for (i = 0; i < count; i++) { /* by rows of a, columns of b; by output channels of weights */
        const bool transposed = epctx_node_int(node, i == 0 ? "transA" : "transB", 0) != 0;
        const int64_t axis = conv ? 0 : (i == 0) != transposed ? -2 : -1;
        EPCTX__TRY(epctx__float_input(c, q->first + 3 * i + 1, &scale));
        EPCTX__TRY(epctx__floats_of(c, q->first + 3 * i, scale, q->first + 3 * i + 2, axis,
                                    &given[inner.input_count]));
        names[inner.input_count++] = node->inputs[q->first + 3 * i];
    }
    if (q->bias != 0 && epctx__has_input(node, q->bias)) {
        EPCTX__TRY(epctx__floats_of_bias(c, q->bias, &given[inner.input_count]));
        names[inner.input_count++] = node->inputs[q->bias];
    }
    inner.inputs = names;
    inner.version = epctx_node_int(node, "opset", 13); /* of QLinearSoftmax */
    c->node = &inner;
    c->given = given;
    c->result = &y;
    status = epctx__lower_by(c, &q->floats);
    c->node = node;
    c->given = NULL;
    c->result = NULL;
    EPCTX__TRY(status);
    EPCTX__TRY(epctx__optional(c, q->result, &scale));
    EPCTX__TRY(epctx__optional(c, q->result + 1u, &zero));
    if (scale == EPCTX__NONE) { /* floats, which >>integers leaves alone */
        const epctx__factors *f = c->steps[c->step_count - 1].factors;
        if (f != NULL) EPCTX__TRY(epctx__exact_product(c, f, EPCTX__NONE, &y));
        c->node = node;
    } else {
        EPCTX__TRY(epctx__input(c, q->first, &given[0]));
        EPCTX__TRY(epctx__emit_quantize(c, EPCTX__OP_QUANTIZE, y, scale, zero, 1,
                                        c->tensors[zero != EPCTX__NONE ? zero : given[0]].elem,
                                        &y));
    }
    return epctx__set_output(c, 0, y);
}

/* ============================================================
 * >>import
 * ============================================================ */

/* Type and shape; false: not of those that the compiler takes. */
static bool epctx__shape_of(int32_t elem, int32_t rank, const int64_t *dims, epctx__shape *shape) {
    const bool good = epctx__stored_size(elem) != 0 && rank >= 0 && rank <= EPCTX_NPU_MAX_RANK;
    memset(shape, 0, sizeof *shape);
    shape->rank = good ? (uint32_t)rank : 0;
    if (shape->rank > 0) memcpy(shape->dims, dims, shape->rank * sizeof *dims);
    return good;
}

static epctx_status epctx__import_tensor(epctx__compiler *c, const epctx_tensor *from,
                                         uint32_t *id) {
    epctx__shape shape;
    uint64_t bytes;
    int32_t i;
    if (!epctx__shape_of(from->elem_type, from->rank, from->dims, &shape) || from->data == NULL) {
        shape.rank = 0; /* only nodes that use it fail */
        return epctx__add_tensor(c, 0, &shape, id);
    }
    for (i = 0; i < from->rank; i++)
        if (from->dims[i] < 0)
            return EPCTX__INVALID(c, "constant '%S': expected dimensions >= 0, found %d",
                                  &from->name, from->dims[i]);
    bytes = epctx__mul(epctx__count(&shape), epctx__stored_size(from->elem_type));
    if (bytes != from->size || bytes > EPCTX__MAX_BYTES)
        return EPCTX__INVALID(c, "constant '%S': expected %u bytes for its shape, found %u",
                              &from->name, bytes, (uint64_t)from->size);
    EPCTX__TRY(epctx__add_tensor(c, from->elem_type, &shape, id));
    c->tensors[*id].name = from->name;
    c->tensors[*id].constant = true;
    c->tensors[*id].raw = from->data;
    c->tensors[*id].whole = *id;
    return EPCTX_OK;
}

static bool epctx__value_usable(const epctx_value *value, epctx__shape *shape) {
    uint32_t i;
    if (!epctx__shape_of(value->elem_type, value->rank, value->dims, shape)) return false;
    for (i = 0; i < shape->rank; i++)
        if (shape->dims[i] < 1) return false;
    return epctx__mul(epctx__count(shape), epctx__stored_size(value->elem_type)) <=
           EPCTX__MAX_BYTES;
}

/* A value from outside the graph; if type or shape is unknown, nodes that read it fail. */
static epctx_status epctx__import_value(epctx__compiler *c, const epctx_value *value,
                                        epctx__storage place, uint32_t index) {
    epctx__shape shape;
    const bool usable = epctx__value_usable(value, &shape);
    epctx__tensor *t;
    uint32_t id, buffer;
    if (epctx_map_get(&c->scope.names, value->name) != EPCTX_MAP_NONE) return EPCTX_OK;
    EPCTX__TRY(epctx__add_tensor(c, usable ? value->elem_type : 0, &shape, &id));
    t = &c->tensors[id];
    t->name = value->name;
    t->known = *value;
    EPCTX__TRY(epctx__add_buffer(c, usable ? t->count * epctx__stored_size(t->elem) : 0, &buffer));
    t->buffer = buffer;
    c->buffers[buffer].place = place;
    c->buffers[buffer].index = index;
    return epctx__put_name(c, &c->scope.names, value->name, id);
}

static epctx_status epctx__count_use(epctx__compiler *c, epctx_str name) {
    uint32_t uses = epctx_map_get(&c->scope.uses, name);
    if (name.size == 0) return EPCTX_OK;
    return epctx__put_name(c, &c->scope.uses, name, uses == EPCTX_MAP_NONE ? 1 : uses + 1);
}

static epctx_value epctx__value_at(const epctx_graph *graph, size_t i) {
    return i < graph->value_count ? graph->values[i] : graph->outputs[i - graph->value_count];
}

/* Notes declared types, 0 where there is none. Outside of bodies only outputs are noted. */
static epctx_status epctx__note_types(epctx__compiler *c, const epctx_value *values, size_t count) {
    size_t i;
    for (i = 0; i < count; i++) {
        const int32_t type = values[i].elem_type;
        if (values[i].name.size == 0 ||
            (type <= 0 && epctx_map_get(&c->scope.types, values[i].name) != EPCTX_MAP_NONE))
            continue;
        EPCTX__TRY(
            epctx__put_name(c, &c->scope.types, values[i].name, type > 0 ? (uint32_t)type : 0));
    }
    return EPCTX_OK;
}

/* Imports constants and inputs, and counts the uses of every value. */
static epctx_status epctx__import(epctx__compiler *c) {
    const epctx_graph *g = c->graph;
    size_t i, j;
    /* A partition has the values of the whole graph: too many to be listed for each. */
    if (c->depth > 0) EPCTX__TRY(epctx__note_types(c, g->values, g->value_count));
    EPCTX__TRY(epctx__note_types(c, g->outputs, g->output_count));
    for (i = 0; i < g->node_count; i++) {
        for (j = 0; j < g->nodes[i].input_count; j++)
            EPCTX__TRY(epctx__count_use(c, g->nodes[i].inputs[j]));
        for (j = 0; j < g->nodes[i].capture_count; j++)
            EPCTX__TRY(epctx__count_use(c, g->nodes[i].captures[j]));
    }
    for (i = 0; i < g->output_count; i++) { /* counts twice, which prevents fusing */
        EPCTX__TRY(epctx__count_use(c, g->outputs[i].name));
        EPCTX__TRY(epctx__count_use(c, g->outputs[i].name));
    }
    for (i = 0; i < g->initializer_count; i++) {
        uint32_t id;
        const epctx_tensor *from = &g->initializers[i];
        EPCTX__TRY(epctx__import_tensor(c, from, &id));
        c->tensors[id].stored = true;
        c->tensors[id].known.elem_type = from->elem_type;
        c->tensors[id].known.rank = from->rank;
        c->tensors[id].outside =
            c->tensors[id].constant && from->size >= EPCTX__OUTSIDE && c->depth == 0 &&
            (c->weightless == EPCTX_WEIGHTLESS_ALL ||
             (c->weightless == EPCTX_WEIGHTLESS_EXTERNAL_ONLY && from->location.size > 0));
        EPCTX__TRY(epctx__put_name(c, &c->scope.names, g->initializers[i].name, id));
    }
    for (i = 0; i < g->input_count; i++) {
        const size_t id = c->tensor_count;
        EPCTX__TRY(epctx__import_value(c, &g->inputs[i], EPCTX__IN_INPUT, (uint32_t)i));
        if (c->tensor_count > id) c->tensors[id].given = true;
    }
    return EPCTX_OK;
}

/* The element type that the model declares for a value; 0: none. */
static int32_t epctx__type_of(const epctx__compiler *c, epctx_str name) {
    const uint32_t type = epctx_map_get(&c->scope.types, name);
    const uint32_t at =
        c->depth == 0 && c->declared != NULL ? epctx_map_get(c->declared, name) : EPCTX_MAP_NONE;
    if (type != EPCTX_MAP_NONE && type != 0) return (int32_t)type;
    return at != EPCTX_MAP_NONE ? epctx__value_at(c->whole, at).elem_type : 0;
}

/* Refuses a node whose output has another type than the model declares: one of them is wrong. And
 * one that computes an output of the graph without elements, which has no buffer. */
static epctx_status epctx__check_types(epctx__compiler *c, const epctx_node *node) {
    size_t i;
    for (i = 0; i < node->output_count; i++) {
        const uint32_t id = epctx_map_get(&c->scope.names, node->outputs[i]);
        const int32_t type = epctx__type_of(c, node->outputs[i]);
        if (id != EPCTX_MAP_NONE && type > 0 && c->tensors[id].elem != 0 &&
            c->tensors[id].elem != type)
            return EPCTX__REFUSE(c, "output '%S' would be %s, the model declares %s",
                                 &node->outputs[i], epctx_elem_name(c->tensors[id].elem),
                                 epctx_elem_name(type));
        if (id != EPCTX_MAP_NONE && c->tensors[id].count == 0 && c->depth == 0 &&
            epctx_map_get(&c->scope.types, node->outputs[i]) != EPCTX_MAP_NONE)
            return EPCTX__REFUSE(c, "graph output '%S' has no elements", &node->outputs[i]);
    }
    return EPCTX_OK;
}

/* Attributes that are read as 0 or not 0. */
#define EPCTX__FLAGS \
    "align_corners allowzero antialias broadcast ceil_mode channels_last count_include_pad " \
    "detect_negative detect_positive exclude_outside exclusive fmod input_forget interleaved " \
    "inverse is_causal is_test keepdims largest layout linear_before_reset " \
    "noop_with_empty_axes onesided periodic reverse select_last_index sorted spatial " \
    "storage_order training_mode transA transB upper"

/* Refuses flags other than 0 and 1, of which each runtime makes something else. */
static epctx_status epctx__check_flags(epctx__compiler *c) {
    const epctx_attr *attr = c->node->attrs, *const end = attr + c->node->attr_count;
    for (; attr < end; attr++) {
        uint32_t which;
        if (attr->type == EPCTX_ATTR_INT && attr->i != 0 && attr->i != 1 &&
            epctx__among(attr->name, EPCTX__FLAGS, &which))
            return EPCTX__REFUSE(c, "attribute '%S': expected 0 or 1, found %d", &attr->name,
                                 attr->i);
    }
    return EPCTX_OK;
}

static epctx_status epctx__lower_node(epctx__compiler *c, const epctx_node *node) {
    const size_t count = sizeof epctx__lowers / sizeof epctx__lowers[0];
    const size_t more = sizeof epctx__quantizeds / sizeof epctx__quantizeds[0];
    const bool standard = node->domain.size == 0 || epctx_str_is(node->domain, "ai.onnx");
    const epctx_str none = epctx_str_of("");
    const bool gelu = !standard && epctx_str_is(node->op_type, "Gelu") &&
                      epctx_str_is(node->domain, "com.microsoft");
    size_t i = standard || gelu ? 0 : count, j = 0;
    int64_t first;
    while (i < count && !epctx_str_is(node->op_type, epctx__lowers[i].op_type)) i++;
    while (j < more && !epctx_str_is(node->op_type, epctx__quantizeds[j].floats.op_type)) j++;
    if (i == count && (j == more || (!standard && !epctx_str_is(node->domain, "com.microsoft"))))
        return EPCTX__REFUSE(c, "operator %S%s%S is not supported", &node->op_type,
                             standard ? "" : " of domain ", standard ? &none : &node->domain);
    first = i == count || gelu ? 1 : epctx__lowers[i].since;
    if (node->version < first || node->version > EPCTX__MAX_OPSET)
        return EPCTX__REFUSE(c, "operator %S: expected opset %d..%d, found %d", &node->op_type,
                             first, (int64_t)EPCTX__MAX_OPSET, node->version);
    c->node = node;
    c->lowering = true;
    c->narrow = 0;
    c->stored = c->exact = false;
    EPCTX__TRY(epctx__check_flags(c));
    EPCTX__TRY(i == count ? epctx__lower_quantized(c, &epctx__quantizeds[j])
                          : epctx__lower_by(c, &epctx__lowers[i]));
    return epctx__check_types(c, node);
}

/* Adds the node's name, or else its first output, to the error just set. */
static void epctx__blame(const epctx__compiler *c, const epctx_node *node) {
    const epctx_str *name = &node->name;
    if (name->size == 0 && node->output_count > 0) name = &node->outputs[0];
    epctx_blame(c->error, NULL, name, NULL);
}

static epctx_status epctx__lower_nodes(epctx__compiler *c) {
    size_t i;
    for (i = 0; i < c->graph->node_count; i++) {
        epctx_status status = epctx__lower_node(c, &c->graph->nodes[i]);
        if (status != EPCTX_OK) {
            epctx__blame(c, &c->graph->nodes[i]);
            return status;
        }
    }
    return EPCTX_OK;
}

static epctx__compiler epctx__compiler_of(const epctx_graph *graph, const epctx_npu_arch *arch,
                                          epctx_arena *arena, epctx_error *error) {
    epctx__compiler c;
    memset(&c, 0, sizeof c);
    c.graph = graph;
    c.arch = arch;
    c.arena = arena;
    c.error = error;
    epctx_map_init(&c.scope.names, arena);
    epctx_map_init(&c.scope.uses, arena);
    epctx_map_init(&c.scope.types, arena);
    return c;
}

/* ============================================================
 * >>bodies: graphs of nodes, lowered in place
 *
 * A branch of If, or one round of Loop and Scan: a scope of its own, within that of the node.
 * ============================================================ */

/* An alias of a tensor: no later step is fused into the one that computes it. */
static epctx_status epctx__again(epctx__compiler *c, uint32_t x, uint32_t *y) {
    const epctx__shape shape = c->tensors[x].shape;
    return epctx__alias(c, x, &shape, 0, y);
}

#define EPCTX__MAX_DEPTH    8
#define EPCTX__MAX_ROUNDS   64
#define EPCTX__MAX_VALUES   64    /* into a body or out of it */
#define EPCTX__MAX_UNROLLED 10000 /* nodes in all branches and rounds of one node */

/* A body of the node. The values that it captures get more uses, so that no step is fused into
 * theirs. */
static epctx_status epctx__body(epctx__compiler *c, const char *name, const epctx_graph **body) {
    const epctx_attr *attr = epctx_node_attr(c->node, name);
    size_t i;
    *body = attr != NULL ? attr->g : NULL;
    if (*body == NULL || c->depth >= EPCTX__MAX_DEPTH || (*body)->input_count > EPCTX__MAX_VALUES ||
        (*body)->output_count > EPCTX__MAX_VALUES)
        return EPCTX__REFUSE(
            c, "%s: expected a graph in at most %u others, with at most %u inputs and outputs",
            name, (uint64_t)EPCTX__MAX_DEPTH, (uint64_t)EPCTX__MAX_VALUES);
    for (i = 0; i < c->node->capture_count; i++) {
        const uint32_t id = epctx__named(c, c->node->captures[i]);
        if (id == EPCTX_MAP_NONE) continue; /* fails where it is read */
        if (c->tensors[id].elem == 0)
            return epctx__refuse_value(c, &c->tensors[id], c->node->captures[i]);
        c->tensors[id].uses += 2;
    }
    c->unrolled = c->depth == 0 ? 0 : c->unrolled;
    return EPCTX_OK;
}

/* In the scope of the body, which is c->graph. */
static epctx_status epctx__lower_inside(epctx__compiler *c, const uint32_t *in, uint32_t *out) {
    const epctx_graph *body = c->graph;
    uint32_t id;
    size_t i;
    c->unrolled += body->node_count + 1;
    if (c->unrolled > EPCTX__MAX_UNROLLED)
        return EPCTX__REFUSE(c, "expected at most %u nodes in bodies",
                             (uint64_t)EPCTX__MAX_UNROLLED);
    for (i = 0; i < body->input_count; i++) {
        EPCTX__TRY(epctx__again(c, in[i], &id));
        c->tensors[id].name = body->inputs[i].name;
        EPCTX__TRY(epctx__put_name(c, &c->scope.names, body->inputs[i].name, id));
    }
    EPCTX__TRY(epctx__import(c));
    EPCTX__TRY(epctx__lower_nodes(c));
    for (i = 0; i < body->output_count; i++) {
        id = epctx__named(c, body->outputs[i].name);
        if (id == EPCTX_MAP_NONE || c->tensors[id].elem == 0)
            return EPCTX__REFUSE(c, "'%S' is not computed", &body->outputs[i].name);
        EPCTX__TRY(epctx__again(c, id, &out[i]));
    }
    return EPCTX_OK;
}

/* Sets out[i] to the tensors of the body's outputs; in[i]: those of its inputs. */
static epctx_status epctx__lower_body(epctx__compiler *c, const epctx_graph *body,
                                      const uint32_t *in, uint32_t *out) {
    const epctx_graph *graph = c->graph;
    const epctx__name_scope scope = c->scope;
    const epctx_node *node = c->node;
    epctx_status status;
    c->graph = body;
    c->scope.outer = &scope;
    epctx_map_init(&c->scope.names, c->arena);
    epctx_map_init(&c->scope.uses, c->arena);
    epctx_map_init(&c->scope.types, c->arena);
    c->depth++;
    status = epctx__lower_inside(c, in, out);
    c->depth--;
    c->scope = scope;
    c->graph = graph;
    c->node = node;
    c->stored = true;
    c->narrow = 0;
    return status;
}

/* a or b, by a condition known only at run time. */
static epctx_status epctx__emit_choice(epctx__compiler *c, uint32_t condition, uint32_t a,
                                       uint32_t b, uint32_t *y) {
    const int32_t type = c->tensors[a].elem;
    if (type != c->tensors[b].elem ||
        !epctx__same_shape(&c->tensors[a].shape, &c->tensors[b].shape))
        return EPCTX__REFUSE(c, "expected a constant condition, or branches of one type and shape");
    EPCTX__TRY(epctx__emit_cast(c, a, epctx__computed_type(type), &a));
    EPCTX__TRY(epctx__emit_cast(c, b, epctx__computed_type(type), &b));
    EPCTX__TRY(epctx__emit_where(c, condition, a, b, y));
    return epctx__emit_cast(c, *y, type, y);
}

/* One branch if the condition is known, else both: they have no effects but their results. */
static epctx_status epctx__lower_if(epctx__compiler *c) {
    const size_t count = c->node->output_count, start = c->step_count;
    const epctx__shape scalar = {0, {0}};
    uint32_t condition = c->in[0], out[2][EPCTX__MAX_VALUES], y, i;
    const bool known = c->tensors[condition].constant;
    const epctx_graph *body;
    bool value = false;
    size_t j;
    if (known) EPCTX__TRY(epctx__const_bool(c, condition, "condition", &value));
    if (c->tensors[condition].count != 1) return EPCTX__INVALID(c, "condition: expected one bool");
    EPCTX__TRY(epctx__alias(c, condition, &scalar, 0, &condition));
    for (i = known && value; i < (known && !value ? 1u : 2u); i++) {
        EPCTX__TRY(epctx__body(c, i != 0 ? "then_branch" : "else_branch", &body));
        if (body->input_count != 0 || body->output_count != count)
            return EPCTX__INVALID(c, "expected branches with its outputs");
        EPCTX__TRY(epctx__lower_body(c, body, NULL, out[i]));
    }
    for (j = start; !known && j < c->step_count; j++)
        if (epctx__may_fail(c, &c->steps[j]))
            return EPCTX__REFUSE(c, "expected a constant condition: a branch checks its indices");
    for (j = 0; j < count; j++) {
        y = out[value][j];
        if (!known) EPCTX__TRY(epctx__emit_choice(c, condition, out[1][j], out[0][j], &y));
        EPCTX__TRY(epctx__set_output(c, j, y));
    }
    return EPCTX_OK;
}

/* Tensors of one type and shape side by side along a new axis. */
static epctx_status epctx__emit_stack(epctx__compiler *c, uint32_t *parts, size_t count, int64_t at,
                                      uint32_t *y) {
    uint32_t axis, i;
    size_t k;
    EPCTX__TRY(epctx__axis(c, at, c->tensors[parts[0]].shape.rank + 1, 0, &axis));
    for (k = 0; k < count; k++) {
        epctx__shape shape = c->tensors[parts[k]].shape;
        if (shape.rank == EPCTX_NPU_MAX_RANK || shape.rank < axis)
            return EPCTX__REFUSE(c, "expected parts of one rank below %u",
                                 (uint64_t)EPCTX_NPU_MAX_RANK);
        for (i = shape.rank++; i > axis; i--) shape.dims[i] = shape.dims[i - 1];
        shape.dims[axis] = 1;
        EPCTX__TRY(epctx__alias(c, parts[k], &shape, 0, &parts[k]));
    }
    return epctx__emit_concat(c, parts, count, axis, y);
}

/* Loop or Scan under unrolling. */
typedef struct epctx__rounds {
    const epctx_graph *body;
    size_t lead, first;    /* inputs and outputs of Loop's body before those carried */
    size_t carried;        /* values, from one round to the next */
    size_t slices, stacks; /* inputs cut and results joined, a part for each round */
    int64_t count;
    int64_t axes[2 * EPCTX__MAX_VALUES], backwards[2 * EPCTX__MAX_VALUES]; /* of both */
    uint32_t whole[EPCTX__MAX_VALUES];                      /* slices before they are cut */
    uint32_t in[EPCTX__MAX_VALUES], out[EPCTX__MAX_VALUES]; /* of one round */
    uint32_t parts[EPCTX__MAX_VALUES][EPCTX__MAX_ROUNDS];   /* of stacks */
} epctx__rounds;

static epctx_status epctx__begin_rounds(epctx__compiler *c, epctx__rounds *r) {
    const epctx_node *node = c->node;
    const bool scan = c->variant != 0;
    size_t inputs, outputs, i;
    int64_t *back;
    uint32_t axis;
    EPCTX__TRY(epctx__body(c, "body", &r->body));
    inputs = r->body->input_count;
    outputs = r->body->output_count;
    r->lead = scan ? 0 : 2;
    r->first = scan ? 0 : 1;
    r->slices = scan ? (size_t)epctx_node_int(node, "num_scan_inputs", 0) : 0;
    r->carried = inputs - r->lead - r->slices;
    r->stacks = outputs - r->first - r->carried;
    if ((scan && (node->version < 9 || r->slices == 0)) || r->slices > inputs ||
        r->carried > inputs || node->input_count > inputs || r->stacks > outputs ||
        node->output_count > outputs - r->first)
        return epctx__bad_attr(c, "body", "a graph with inputs and outputs of its node");
    back = r->backwards + r->slices;
    EPCTX__TRY(epctx__ints(c, "scan_input_axes", r->slices, 0, r->axes));
    EPCTX__TRY(epctx__ints(c, "scan_input_directions", r->slices, 0, r->backwards));
    EPCTX__TRY(epctx__ints(c, "scan_output_axes", r->stacks, 0, r->axes + r->slices));
    EPCTX__TRY(epctx__ints(c, "scan_output_directions", r->stacks, 0, back));
    for (i = r->lead; i < r->lead + r->carried; i++) EPCTX__TRY(epctx__input(c, i, &r->in[i]));
    for (i = 0; i < r->slices; i++) {
        EPCTX__TRY(epctx__input(c, r->carried + i, &r->whole[i]));
        EPCTX__TRY(epctx__axis(c, r->axes[i], c->tensors[r->whole[i]].shape.rank, 0, &axis));
        r->axes[i] = (int64_t)axis;
        if (i > 0 && c->tensors[r->whole[i]].shape.dims[axis] != r->count)
            return EPCTX__INVALID(c, "expected scan inputs of one length");
        r->count = c->tensors[r->whole[i]].shape.dims[axis];
    }
    return EPCTX_OK;
}

static epctx_status epctx__lower_round(epctx__compiler *c, epctx__rounds *r, size_t n,
                                       bool *going) {
    uint32_t axis, y;
    size_t i;
    if (n == EPCTX__MAX_ROUNDS || (r->slices > 0 && r->count > EPCTX__MAX_ROUNDS))
        return EPCTX__REFUSE(c, "expected at most %u rounds", (uint64_t)EPCTX__MAX_ROUNDS);
    if (r->lead != 0) { /* Loop */
        EPCTX__TRY(epctx__scalar(c, EPCTX_ONNX_INT64, (int32_t)n, &r->in[0]));
        EPCTX__TRY(epctx__scalar(c, EPCTX_ONNX_BOOL, 1, &r->in[1]));
    }
    for (i = 0; i < r->slices; i++) {
        const int64_t at = r->backwards[i] != 0 ? r->count - 1 - (int64_t)n : (int64_t)n;
        const uint32_t x = r->whole[i];
        epctx__shape shape = c->tensors[x].shape;
        axis = (uint32_t)r->axes[i];
        EPCTX__TRY(epctx__take_one(c, x, axis, at, 1, &y));
        for (shape.rank--; axis < shape.rank; axis++) shape.dims[axis] = shape.dims[axis + 1];
        EPCTX__TRY(epctx__alias(c, y, &shape, 0, &r->in[r->carried + i]));
    }
    EPCTX__TRY(epctx__lower_body(c, r->body, r->in, r->out));
    if (r->lead != 0) EPCTX__TRY(epctx__const_bool(c, r->out[0], "condition", going));
    for (i = 0; i < r->carried; i++) r->in[r->lead + i] = r->out[r->first + i];
    for (i = 0; i < r->stacks; i++) {
        const bool back = r->slices > 0 && r->backwards[r->slices + i] != 0;
        r->parts[i][back ? (size_t)r->count - 1 - n : n] = r->out[r->first + r->carried + i];
    }
    return EPCTX_OK;
}

/* A known number of rounds, one after the other; Loop ends earlier by a condition that is known. */
static epctx_status epctx__lower_loop(epctx__compiler *c) {
    epctx__rounds *r;
    uint32_t y = c->in[0];
    bool going = true;
    size_t i, n;
    EPCTX__MAKE(c, r, epctx__rounds, 1);
    r->count = INT64_MAX;
    EPCTX__TRY(epctx__begin_rounds(c, r));
    if (r->lead != 0 && y != EPCTX__NONE) /* Loop */
        EPCTX__TRY(epctx__const_ints(c, y, "trip count", 1, &r->count, &n));
    EPCTX__TRY(epctx__optional(c, 1, &y));
    if (r->lead != 0 && y != EPCTX__NONE) EPCTX__TRY(epctx__const_bool(c, y, "condition", &going));
    for (n = 0; going && (int64_t)n < r->count; n++)
        EPCTX__TRY(epctx__lower_round(c, r, n, &going));
    if (n == 0) return EPCTX__REFUSE(c, "expected at least one round");
    for (i = 0; i < r->carried; i++) EPCTX__TRY(epctx__set_output(c, i, r->in[r->lead + i]));
    for (i = 0; i < r->stacks; i++) {
        EPCTX__TRY(epctx__emit_stack(c, r->parts[i], n, r->axes[r->slices + i], &y));
        EPCTX__TRY(epctx__set_output(c, r->carried + i, y));
    }
    return EPCTX_OK;
}

/* ============================================================
 * >>fuse: steps that become part of others
 *
 * An activation, a bias, a sum or a normalization costs little where the result of the step before
 * it is still in registers, and a pass over memory elsewhere. Lowering emits each operator by
 * itself and marks the steps that may join (`joins`). This pass goes over the list once, in order,
 * and holds each such step against the rows of epctx__patterns: the opcode of the step, the operand
 * that another step computes, the opcodes of that one, and the function that joins both. The first
 * row whose function succeeds wins.
 *
 * A step joins only if nothing else reads what it joins: a tensor counts its uses by nodes, and a
 * graph output counts as two, so that it always keeps its own value (epctx__import). The joined
 * step then writes the result of the one that it took in, in its own memory.
 *
 * After that the list is complete: epctx__bind_outputs puts results into the graph's outputs, and
 * epctx__drop_dead removes what nobody reads.
 * ============================================================ */

/* The step that computes `tensor`, if it may still change: nothing else reads its result. */
static epctx__step *epctx__writer_of(epctx__compiler *c, uint32_t tensor) {
    const epctx__tensor *t = &c->tensors[tensor];
    if (t->constant || t->writer == EPCTX__NONE || t->uses != 1) return NULL;
    return &c->steps[t->writer];
}

/* A normalization with constants after a convolution: scales its weights and bias by f and adds g
 * to the bias. */
static epctx_status epctx__join_norm(epctx__compiler *c, epctx__step *to, const epctx__step *s,
                                     uint32_t at, bool *done) {
    epctx__formula r = epctx__formula_of(EPCTX__NONE);
    (void)at;
    if (epctx__act_of(to)->kind != EPCTX__ACT_NONE ||
        (to->op == EPCTX__OP_CONV && (!to->packs || to->in[3] != EPCTX__NONE)) ||
        !c->tensors[to->in[1]].constant ||
        (to->in[2] != EPCTX__NONE && !c->tensors[to->in[2]].constant))
        return EPCTX_OK;
    r.v.f = s->in[1];
    r.v.g = s->in[2];
    r.v.w = to->in[1];
    r.v.o = to->in[2];
    EPCTX__TRY(epctx__evaluate(c, &r, "f = f[o>o]; w = w[*>*]; w = w[(on)>on] * f[o>o1]"));
    EPCTX__TRY(epctx__evaluate(c, &r, r.v.o == EPCTX__NONE ? "o = g" : "o = o * f + g"));
    to->in[1] = r.v.w;
    to->in[2] = r.v.o;
    *done = true;
    return EPCTX_OK;
}

/* A function of what a step with room for an activation computes. */
static epctx_status epctx__join_act(epctx__compiler *c, epctx__step *to, const epctx__step *s,
                                    uint32_t at, bool *done) {
    epctx__act *slot = epctx__act_of(to);
    (void)c, (void)at;
    if (slot == NULL || slot->kind != EPCTX__ACT_NONE) return EPCTX_OK;
    *slot = s->params.unary.act;
    *done = true;
    return EPCTX_OK;
}

/* x + constant after a product without bias: the constant becomes the bias, if it has one element
 * for each channel, in that dimension. */
static epctx_status epctx__join_bias(epctx__compiler *c, epctx__step *to, const epctx__step *s,
                                     uint32_t at, bool *done) {
    const uint32_t bias = s->in[1 - at];
    const epctx__shape *xs = &c->tensors[s->in[at]].shape, *bs = &c->tensors[bias].shape;
    epctx__shape flat = {1, {0}};
    uint32_t axis = 1;
    if (s->params.binary.kind != EPCTX__BINARY_ADD || !c->tensors[bias].constant || xs->rank == 0 ||
        bs->rank > xs->rank)
        return EPCTX_OK;
    if (to->op == EPCTX__OP_GEMM) {
        axis = xs->rank - 1;
        if (to->params.gemm.n != (uint32_t)xs->dims[axis]) return EPCTX_OK;
    }
    flat.dims[0] = xs->dims[axis];
    if (to->in[2] != EPCTX__NONE || epctx__act_of(to)->kind != EPCTX__ACT_NONE ||
        flat.dims[0] == 1 || c->tensors[bias].count != (uint64_t)flat.dims[0] ||
        axis + bs->rank < xs->rank || bs->dims[axis + bs->rank - xs->rank] != flat.dims[0])
        return EPCTX_OK;
    *done = true;
    return epctx__alias(c, bias, &flat, 0, &to->in[2]);
}

/* x + other after a convolution, which adds `other` if that is computed before. */
static epctx_status epctx__join_sum(epctx__compiler *c, epctx__step *to, const epctx__step *s,
                                    uint32_t at, bool *done) {
    const uint32_t x = s->in[at], other = s->in[1 - at];
    const epctx__tensor *t = &c->tensors[other];
    if (s->params.binary.kind != EPCTX__BINARY_ADD || to->in[3] != EPCTX__NONE ||
        to->params.conv.act.kind != EPCTX__ACT_NONE || x == other || t->constant ||
        !epctx__same_shape(&t->shape, &c->tensors[x].shape))
        return EPCTX_OK;
    if (c->buffers[t->buffer].place != EPCTX__IN_INPUT &&
        (t->writer == EPCTX__NONE || t->writer >= c->tensors[x].writer))
        return EPCTX_OK;
    to->in[3] = other;
    *done = true;
    return EPCTX_OK;
}

#define EPCTX__PRODUCTS (EPCTX_NPU_OP(CONV) | EPCTX_NPU_OP(DEPTHWISE) | EPCTX_NPU_OP(GEMM))

/* What may join: a step with opcode `op` the one that computes its operand `at`, which has one of
 * the opcodes `into` (bits). */
static const struct {
    epctx__opcode op;
    uint32_t at;
    uint64_t into;
    epctx_status (*join_fn)(epctx__compiler *c, epctx__step *to, const epctx__step *s, uint32_t at,
                            bool *done);
} epctx__patterns[] = {
    {EPCTX__OP_AFFINE, 0, EPCTX_NPU_OP(CONV) | EPCTX_NPU_OP(DEPTHWISE), epctx__join_norm},
    {EPCTX__OP_UNARY, 0, UINT64_MAX, epctx__join_act},
    {EPCTX__OP_BINARY, 0, EPCTX__PRODUCTS, epctx__join_bias},
    {EPCTX__OP_BINARY, 0, EPCTX_NPU_OP(CONV), epctx__join_sum},
    {EPCTX__OP_BINARY, 1, EPCTX__PRODUCTS, epctx__join_bias},
    {EPCTX__OP_BINARY, 1, EPCTX_NPU_OP(CONV), epctx__join_sum},
};

/* Lets a step become part of another one. `moved` maps its buffer to that of the other. */
static epctx_status epctx__join_step(epctx__compiler *c, const epctx__step *s, uint32_t *moved,
                                     bool *done) {
    epctx__tensor *out, *before;
    epctx__step *to = NULL;
    size_t i;
    for (i = 0; i < sizeof epctx__patterns / sizeof epctx__patterns[0] && !*done; i++) {
        if (epctx__patterns[i].op != s->op) continue;
        to = epctx__writer_of(c, s->in[epctx__patterns[i].at]);
        if (to != NULL && (epctx__patterns[i].into >> to->op & 1) != 0)
            EPCTX__TRY(epctx__patterns[i].join_fn(c, to, s, epctx__patterns[i].at, done));
    }
    if (!*done) return EPCTX_OK;
    out = &c->tensors[s->out];
    before = &c->tensors[to->out];
    moved[out->buffer] = before->buffer;
    out->buffer = before->buffer;
    out->writer = before->writer;
    to->out = s->out;
    if (s->op != EPCTX__OP_UNARY) to->factors = s->factors; /* what joins changes the product */
    c->stats.fused++;
    return EPCTX_OK;
}

/* Drops steps whose results nobody reads (dead-code elimination). */
static void epctx__drop_dead(epctx__compiler *c) {
    size_t i, first = c->step_count;
    uint32_t j;
    for (i = 0; i < c->buffer_count; i++)
        c->buffers[i].needed = c->buffers[i].place == EPCTX__OUTPUT;
    for (i = c->step_count; i-- > 0;) {
        const epctx__step *s = &c->steps[i];
        if (!c->buffers[c->tensors[s->out].buffer].needed) continue;
        for (j = 0; j < EPCTX__MAX_IN; j++)
            if (s->in[j] != EPCTX__NONE && !c->tensors[s->in[j]].constant)
                c->buffers[c->tensors[s->in[j]].buffer].needed = true;
        c->steps[--first] = *s;
    }
    if (first == 0) return; /* there may be no steps at all */
    c->steps += first;
    c->step_count -= first;
    c->step_room -= first;
}

/* Copies outputs without own memory: constants, inputs, parts of buffers, repeated outputs. */
static epctx_status epctx__bind_outputs(epctx__compiler *c) {
    const epctx_graph *g = c->graph;
    size_t i;
    for (i = 0; i < g->output_count; i++) {
        uint32_t id = epctx_map_get(&c->scope.names, g->outputs[i].name), copy;
        epctx__tensor *t = id == EPCTX_MAP_NONE ? NULL : &c->tensors[id];
        if (t == NULL || t->elem == 0 || t->count == 0)
            return EPCTX__INVALID(
                c, "graph output '%S': no node computes it, or its shape is not fixed",
                &g->outputs[i].name);
        if (!epctx__is_whole(c, t) || c->buffers[t->buffer].place != EPCTX__SCRATCH) {
            EPCTX__TRY(epctx__new_tensor(c, t->elem, &c->tensors[id].shape, &copy));
            EPCTX__TRY(epctx__emit_copy(c, id, copy));
            t = &c->tensors[copy];
        }
        c->buffers[t->buffer].place = EPCTX__OUTPUT;
        c->buffers[t->buffer].index = (uint32_t)i;
    }
    return EPCTX_OK;
}

/* Joins steps; those that remain keep their order. */
static epctx_status epctx__fuse(epctx__compiler *c) {
    const size_t count = c->step_count, buffers = c->buffer_count;
    uint32_t *moved;
    uint8_t *joined;
    size_t i;
    EPCTX__MAKE(c, moved, uint32_t, buffers);
    EPCTX__MAKE(c, joined, uint8_t, count);
    c->node = NULL;
    for (i = 0; i < buffers; i++) moved[i] = (uint32_t)i;
    for (i = 0; i < count; i++) {
        const epctx__step s = c->steps[i];
        bool done = false;
        if (s.joins) EPCTX__TRY(epctx__join_step(c, &s, moved, &done));
        joined[i] = done;
    }
    for (i = c->step_count = 0; i < count; i++)
        if (joined[i] == 0) c->steps[c->step_count++] = c->steps[i];
    for (i = 0; i < c->tensor_count; i++) { /* parts and other shapes of results, too */
        epctx__tensor *t = &c->tensors[i];
        if (t->buffer != EPCTX__NONE) t->buffer = moved[t->buffer];
    }
    c->lowering = false;
    EPCTX__TRY(epctx__bind_outputs(c));
    epctx__drop_dead(c);
    return EPCTX_OK;
}

/* ============================================================
 * >>layout: channels last
 *
 * The kernels of convolutions and pools compute adjacent channels of a pixel as one vector, so
 * images between them lie in memory as [N][plane][channels]; everything else keeps ONNX's order.
 * The order belongs to the buffer: its `channels` and `plane` are those of the image, or 0 for
 * ONNX's order. All tensors in a buffer have that order, and every step that reads or writes it
 * must agree. With one channel or one pixel both orders are the same.
 *
 * First the pass `moves` (epctx__join_moves) shortens chains of moves: one that reads the result of
 * another reads the source of that one instead. Then comes the pass `layout` (epctx__lay_out). A
 * convolution whose window covers the whole image becomes a matrix product (epctx__conv_to_gemm).
 * Going backwards over the steps, epctx__choose_orders marks the buffers that must keep ONNX's
 * order (`fixed`: the graph's outputs, and results of steps that cannot write them channels last)
 * and those whose readers prefer channels last (`wanted_last`). Going forwards, it gives channels
 * last to the results of steps that set `images`, of moves into a `wanted_last` buffer, and of
 * steps that have an operand in that order. Last, epctx__lay_step emits each step again. Steps that
 * set `images` read in[0], a convolution also in[3], channels last. Moves, fills, element-wise
 * steps and resampling adapt by new strides and counts (epctx__follow, epctx__lay). For any other
 * operand in the wrong order epctx__in_order emits one move that transposes it; the buffer
 * remembers the copy in `reordered`, so that later readers share it.
 *
 * A step adapts only if its parameters can express the new order exactly; otherwise its result
 * keeps ONNX's order, and a move transposes. The pass changes where elements lie, never which of
 * them a step combines. It pays because a chain of convolutions transposes only at its two ends.
 * ============================================================ */

static bool epctx__is_last(const epctx__compiler *c, uint32_t id) {
    return id != EPCTX__NONE && !c->tensors[id].constant &&
           c->buffers[c->tensors[id].buffer].channels != 0;
}

/* Where the elements of a dense tensor are elsewhere: digits of their index, the outermost first,
 * with the strides here and there. */
typedef struct epctx__digits {
    uint32_t count;
    int64_t extent[EPCTX_NPU_MAX_RANK], old[EPCTX_NPU_MAX_RANK], wanted[EPCTX_NPU_MAX_RANK];
} epctx__digits;

/* Turns the walk `which` over a tensor into one over its elements elsewhere; splits dimensions that
 * run over several digits. False: that walk has no such form. */
static bool epctx__relay(const epctx__digits *g, int64_t *start, uint32_t *rank, epctx__strided w,
                         uint32_t which) {
    int64_t first[EPCTX_NPU_MAX_RANK], last[EPCTX_NPU_MAX_RANK], *dims = w[2];
    uint32_t i, j, k, a;
    for (a = 0; a < g->count; a++) first[a] = last[a] = *start / g->old[a] % g->extent[a];
    for (i = 0; i < *rank;) {
        int64_t step = w[which][i], period;
        if (step < 0) return false;
        for (a = 0; a + 1 < g->count && step % g->old[a] != 0;) a++;
        step /= g->old[a];
        if (last[a] + step * (dims[i] - 1) < g->extent[a]) {
            last[a] += step * (dims[i] - 1);
            w[which][i++] = step * g->wanted[a];
            continue;
        }
        period = g->extent[a] / step;
        if (*rank == EPCTX_NPU_MAX_RANK || g->extent[a] % step != 0 || first[a] >= step ||
            dims[i] % period != 0 || dims[i] == period)
            return false;
        for (j = (*rank)++; j > i; j--)
            for (k = 0; k < 3; k++) w[k][j] = w[k][j - 1];
        dims[i + 1] = period;
        dims[i] /= period;
        w[0][i] *= period;
        w[1][i] *= period;
    }
    for (*start = 0, a = 0; a < g->count; a++) *start += first[a] * g->wanted[a];
    return true;
}

/* Sorts the dimensions of a walk by the strides that write. */
static void epctx__sort_walk(uint32_t rank, epctx__strided w) {
    uint32_t i, j, k;
    for (i = 1; i < rank; i++) {
        for (j = i; j > 0 && w[1][j - 1] < w[1][j]; j--) {
            for (k = 0; k < 3; k++) {
                const int64_t swap = w[k][j];
                w[k][j] = w[k][j - 1];
                w[k][j - 1] = swap;
            }
        }
    }
}

static void epctx__walk_of(const epctx__move *p, epctx__strided w) {
    uint32_t i;
    for (i = 0; i < EPCTX_NPU_MAX_RANK; i++) {
        w[0][i] = p->from[i];
        w[1][i] = p->to[i];
        w[2][i] = p->dims[i];
    }
}

/* Lets a move read from (`ends[0]`) or write (`ends[1]`) elsewhere; NULL: as before. */
static bool epctx__rewalk(epctx__move *p, const epctx__digits *const *ends) {
    epctx__strided w;
    int64_t start[2];
    uint32_t rank = p->rank, i;
    start[0] = p->from_start;
    start[1] = p->to_start;
    epctx__walk_of(p, w);
    for (i = 0; i < 2; i++)
        if (ends[i] != NULL && !epctx__relay(ends[i], &start[i], &rank, w, i)) return false;
    epctx__sort_walk(rank, w); /* writes in order of addresses */
    p->rank = epctx__collapse(w[2], rank, w, 2);
    p->from_start = (uint32_t)start[0];
    p->to_start = (uint32_t)start[1];
    epctx__set_walk(p->rank, w, p->from, p->to, p->dims);
    return true;
}

/* An image in ONNX's order that lies channels last. */
static epctx__digits epctx__image_digits(int64_t channels, int64_t plane) {
    const epctx__digits g = {3,
                             {INT64_MAX / 4, channels, plane},
                             {channels * plane, plane, 1},
                             {channels * plane, 1, channels}};
    return g;
}

/* The walks of a move, relaid where an end is (`from`, `to`) channels last. */
static bool epctx__relay_move(const epctx__compiler *c, epctx__step *s, bool from, bool to) {
    const epctx__buffer *b = from ? &c->buffers[c->tensors[s->in[0]].buffer] : NULL;
    const epctx__view v = epctx__tensor_view(&c->tensors[s->out]);
    const epctx__digits target = epctx__image_digits((int64_t)v.channels, (int64_t)v.plane);
    /* a reshaped image is still the image of its buffer */
    const epctx__digits source = epctx__image_digits(from ? b->channels : 1, from ? b->plane : 1);
    const epctx__digits *ends[2] = {NULL, NULL};
    if (from) ends[0] = &source;
    if (to) ends[1] = &target;
    return epctx__rewalk(&s->params.move, ends);
}

/* -- columns of the table of opcodes: steps whose result is channels last --
 *
 * epctx__follow_NAME gives a step the parameters that read operand 0 and write the result, an image
 * `v`, channels last. False: no such parameters exist. */

static bool epctx__follow_never(const epctx__compiler *c, epctx__step *s, epctx__view v) {
    (void)c, (void)s, (void)v;
    return false;
}

static bool epctx__follow_move(const epctx__compiler *c, epctx__step *s, epctx__view v) {
    (void)v;
    return epctx__relay_move(c, s, false, true);
}

static bool epctx__follow_fill(const epctx__compiler *c, epctx__step *s, epctx__view v) {
    (void)v;
    return s->params.fill.count == c->tensors[s->out].count;
}

/* One result for each element of operand 0, wherever it lies. */
static bool epctx__follow_same(const epctx__compiler *c, epctx__step *s, epctx__view v) {
    (void)v;
    return epctx__same_shape(&c->tensors[s->in[0]].shape, &c->tensors[s->out].shape);
}

static bool epctx__follow_pair(const epctx__compiler *c, epctx__step *s, epctx__view v) {
    return epctx__follow_same(c, s, v) &&
           epctx__same_shape(&c->tensors[s->in[1]].shape, &c->tensors[s->out].shape);
}

/* epctx__follow_binary sets the parameters, as it also sees to the operands. */
static bool epctx__follow_ranks(const epctx__compiler *c, epctx__step *s, epctx__view v) {
    const uint32_t rank = c->tensors[s->out].shape.rank;
    (void)v;
    return c->tensors[s->in[0]].shape.rank <= rank && c->tensors[s->in[1]].shape.rank <= rank;
}

static bool epctx__follow_grid(const epctx__compiler *c, epctx__step *s, epctx__view v) {
    epctx__quantize *p = &s->params.quantize;
    if (!epctx__follow_same(c, s, v)) return false;
    if (p->channels == 1) return true;
    if (p->outer != v.batch || p->channels != v.channels || p->inner != v.plane) return false;
    p->outer *= p->inner;
    p->inner = 1;
    return true;
}

static bool epctx__follow_channels(const epctx__compiler *c, epctx__step *s, epctx__view v) {
    epctx__affine *p = &s->params.affine;
    (void)c;
    if (p->outer != v.batch || p->channels != v.channels || p->inner != v.plane) return false;
    p->outer *= p->inner;
    p->inner = 1;
    return true;
}

static bool epctx__follow_planes(const epctx__compiler *c, epctx__step *s, epctx__view v) {
    const epctx__shape *x = &c->tensors[s->in[0]].shape, *y = &c->tensors[s->out].shape;
    epctx__resample *p = &s->params.resample;
    if (p->outer % (v.batch * v.channels) != 0 || x->rank != y->rank || x->dims[1] != y->dims[1])
        return false;
    p->outer /= (uint32_t)v.channels;
    p->inner *= (uint32_t)v.channels;
    return true;
}

static bool epctx__follow(const epctx__compiler *c, epctx__step *s) {
    static bool (*const follows[EPCTX__OP_COUNT])(const epctx__compiler *c, epctx__step *s,
                                                  epctx__view v) = {
#define EPCTX__OP_FOLLOW(id, text, ins, outs, required, type, name, cut, unit, fails, folds, slot, \
                         images, follow, ...) \
    epctx__follow_##follow,
        EPCTX_NPU_OP_LIST(EPCTX__OP_FOLLOW)
#undef EPCTX__OP_FOLLOW
    };
    const epctx__view v = epctx__tensor_view(&c->tensors[s->out]);
    return epctx__is_whole(c, &c->tensors[s->out]) && v.channels != 1 && v.plane != 1 &&
           follows[s->op](c, s, v);
}

/* Bits of the operands that a step reads channels last if its result lies so. */
static uint32_t epctx__images_of(const epctx__step *s) {
    static const uint8_t bits[EPCTX__OP_COUNT] = {
#define EPCTX__OP_IMAGES(id, text, ins, outs, required, type, name, cut, unit, fails, folds, slot, \
                         images, ...) \
    images,
        EPCTX_NPU_OP_LIST(EPCTX__OP_IMAGES)
#undef EPCTX__OP_IMAGES
    };
    return bits[s->op];
}

/* Copies an image from the other order; `last`: to channels last. */
static epctx_status epctx__emit_transposed(epctx__compiler *c, uint32_t from, uint32_t to,
                                           bool last, epctx_str name) {
    const epctx__view v = epctx__tensor_view(&c->tensors[to]);
    const int64_t outer = (int64_t)(last ? v.plane : v.channels);
    const int64_t inner = (int64_t)(last ? v.channels : v.plane);
    const epctx__shape walk = {3, {(int64_t)v.batch, outer, inner}};
    const int64_t strides[3] = {outer * inner, 1, outer};
    EPCTX__TRY(epctx__emit_move(c, from, to, &walk, 0, 0, strides, NULL));
    c->steps[c->step_count - 1].name = name;
    return EPCTX_OK;
}

/* A copy of an image in the other order. */
static epctx_status epctx__transpose_image(epctx__compiler *c, uint32_t from, bool last,
                                           epctx_str name, uint32_t *out) {
    const epctx__view v = epctx__tensor_view(&c->tensors[from]);
    const epctx__shape shape = c->tensors[from].shape;
    epctx__buffer *b;
    EPCTX__TRY(epctx__new_tensor(c, c->tensors[from].elem, &shape, out));
    EPCTX__TRY(epctx__emit_transposed(c, from, *out, last, name));
    b = &c->buffers[c->tensors[*out].buffer];
    b->channels = last ? (uint32_t)v.channels : 0;
    b->plane = last ? (uint32_t)v.plane : 0;
    return EPCTX_OK;
}

/* Replaces *id by a tensor of its shape in another buffer. */
static epctx_status epctx__rebase(epctx__compiler *c, uint32_t *id, uint32_t buffer) {
    const epctx__tensor t = c->tensors[*id];
    EPCTX__TRY(epctx__add_tensor(c, t.elem, &t.shape, id));
    c->tensors[*id].buffer = buffer;
    c->tensors[*id].offset = t.offset;
    return EPCTX_OK;
}

/* Replaces an operand by one in ONNX's order or channels last; transposes once for all readers. */
static epctx_status epctx__in_order(epctx__compiler *c, uint32_t *id, bool last, epctx_str name) {
    epctx__shape shape = {3, {0}};
    epctx__view v;
    epctx__buffer *b;
    uint32_t buffer, all, made;
    if (*id == EPCTX__NONE) return EPCTX_OK;
    v = epctx__tensor_view(&c->tensors[*id]);
    if (epctx__is_last(c, *id)) {
        buffer = c->tensors[*id].buffer;
        b = &c->buffers[buffer];
        if (last && epctx__is_whole(c, &c->tensors[*id]) && b->channels == v.channels &&
            b->plane == v.plane)
            return EPCTX_OK;
        if (b->reordered == EPCTX__NONE) {
            const uint32_t elem = epctx__stored_size(c->tensors[*id].elem);
            shape.dims[1] = b->channels;
            shape.dims[2] = b->plane;
            shape.dims[0] = (int64_t)(b->bytes / elem) / (shape.dims[1] * shape.dims[2]);
            EPCTX__TRY(epctx__add_tensor(c, c->tensors[*id].elem, &shape, &all));
            c->tensors[all].buffer = buffer;
            EPCTX__TRY(epctx__transpose_image(c, all, false, name, &made));
            c->buffers[buffer].reordered = c->tensors[made].buffer;
        }
        EPCTX__TRY(epctx__rebase(c, id, c->buffers[buffer].reordered));
    }
    if (!last || v.channels == 1 || v.plane == 1) return EPCTX_OK;
    if (c->tensors[*id].constant || !epctx__is_whole(c, &c->tensors[*id]))
        return epctx__transpose_image(c, *id, true, name, id);
    buffer = c->tensors[*id].buffer;
    b = &c->buffers[buffer];
    if (b->reordered == EPCTX__NONE || c->buffers[b->reordered].channels != v.channels ||
        c->buffers[b->reordered].plane != v.plane) {
        EPCTX__TRY(epctx__transpose_image(c, *id, true, name, id));
        c->buffers[buffer].reordered = c->tensors[*id].buffer;
        return EPCTX_OK;
    }
    return epctx__rebase(c, id, b->reordered);
}

/* The walk of a binary step whose result is channels last. */
static epctx_status epctx__follow_binary(epctx__compiler *c, epctx__step *s) {
    epctx__binary *p = &s->params.binary;
    const epctx__shape shape = c->tensors[s->out].shape;
    const epctx__view v = epctx__tensor_view(&c->tensors[s->out]);
    epctx__strided w, given;
    uint32_t i, j;
    for (j = 0; j < 2; j++) {
        const bool same = epctx__same_shape(&c->tensors[s->in[j]].shape, &shape);
        const bool last = same && !c->tensors[s->in[j]].constant;
        EPCTX__TRY(epctx__in_order(c, &s->in[j], last, s->name));
        epctx__broadcast_strides(&c->tensors[s->in[j]].shape, &shape, given[j]);
        for (i = 1; last && i < shape.rank; i++)
            given[j][i] = i == 1 ? 1 : given[j][i] * (int64_t)v.channels;
    }
    memcpy(given[2], shape.dims, sizeof given[2]);
    for (i = 0; i < shape.rank; i++) /* N, the plane, the channels */
        for (j = 0; j < 3; j++) w[j][i] = given[j][i == 0 ? 0 : (i + 1 < shape.rank ? i + 1 : 1)];
    p->rank = epctx__collapse(w[2], shape.rank, w, 2);
    epctx__set_walk(p->rank, w, p->a, p->b, p->dims);
    return EPCTX_OK;
}

/* -- columns of the table of opcodes: how steps that set no `images` are laid --
 *
 * epctx__lay_NAME adapts a step whose result is channels last (`last`) or not. `kept` gets the bits
 * of the operands that it then reads as they lie. */

static epctx_status epctx__lay_usual(epctx__compiler *c, epctx__step *s, bool last,
                                     uint32_t *kept) {
    *kept = 0;
    if (last) (void)epctx__follow(c, s);
    return EPCTX_OK;
}

static epctx_status epctx__lay_move(epctx__compiler *c, epctx__step *s, bool last, uint32_t *kept) {
    const bool from = epctx__is_last(c, s->in[0]) && epctx__is_whole(c, &c->tensors[s->in[0]]);
    *kept = from && epctx__relay_move(c, s, true, last);
    if (*kept == 0) (void)epctx__relay_move(c, s, false, last);
    return EPCTX_OK;
}

static epctx_status epctx__lay_binary(epctx__compiler *c, epctx__step *s, bool last,
                                      uint32_t *kept) {
    *kept = last ? 1 | 2 : 0;
    return last ? epctx__follow_binary(c, s) : EPCTX_OK;
}

/* The buffer of operand 0 if all of it is an image that lies channels last, else NULL. */
static const epctx__buffer *epctx__image_of(const epctx__compiler *c, const epctx__step *s) {
    const epctx__tensor *x = &c->tensors[s->in[0]];
    return epctx__is_last(c, s->in[0]) && epctx__is_whole(c, x) ? &c->buffers[x->buffer] : NULL;
}

/* Means and sums over the plane of an image read it in either order. */
static epctx_status epctx__lay_reduce(epctx__compiler *c, epctx__step *s, bool last,
                                      uint32_t *kept) {
    const epctx__buffer *b = epctx__image_of(c, s);
    epctx__reduce *p = &s->params.reduce;
    *kept = 0;
    if (last || b == NULL || p->count != b->plane || p->inner != 1 || p->outer % b->channels != 0)
        return EPCTX_OK;
    p->outer /= b->channels;
    p->inner = b->channels;
    *kept = 1;
    return EPCTX_OK;
}

/* A matrix product of a flattened image reads it in either order: its weights get that order. */
static epctx_status epctx__lay_gemm(epctx__compiler *c, epctx__step *s, bool last, uint32_t *kept) {
    const epctx__buffer *b = epctx__image_of(c, s);
    const epctx__gemm *p = &s->params.gemm;
    *kept = 0;
    if (last || b == NULL || !s->packs || s->pack.inner != 1 || p->batch != 1 || p->a_step != 1 ||
        p->a_row != p->k || p->k != (uint64_t)b->channels * b->plane)
        return EPCTX_OK;
    s->pack.inner = b->channels;
    s->pack.inner_stride = s->pack.depth_stride * b->plane;
    *kept = 1;
    return EPCTX_OK;
}

static epctx_status epctx__lay(epctx__compiler *c, epctx__step *s, bool last, uint32_t *kept) {
    static epctx_status (*const lays[EPCTX__OP_COUNT])(epctx__compiler * c, epctx__step * s,
                                                       bool last, uint32_t *kept) = {
#define EPCTX__OP_LAY(id, text, ins, outs, required, type, name, cut, unit, fails, folds, slot, \
                      images, follow, lay, ...) \
    epctx__lay_##lay,
        EPCTX_NPU_OP_LIST(EPCTX__OP_LAY)
#undef EPCTX__OP_LAY
    };
    return lays[s->op](c, s, last, kept);
}

/* Adds a step with the moves that its operands need. */
static epctx_status epctx__lay_step(epctx__compiler *c, const epctx__step *given) {
    epctx__step s = *given;
    const bool last = epctx__is_last(c, s.out);
    const epctx__view v = epctx__tensor_view(&c->tensors[s.out]);
    const epctx__shape shape = c->tensors[s.out].shape;
    const uint32_t wanted = s.out;
    uint32_t images = 0, kept = 0, i; /* bits: operands read channels last, or as they lie */
    if (s.images) {
        images = epctx__images_of(&s);
        if (!last && v.channels != 1 && v.plane != 1)
            EPCTX__TRY(epctx__new_tensor(c, c->tensors[s.out].elem, &shape, &s.out));
    } else {
        EPCTX__TRY(epctx__lay(c, &s, last, &kept));
        images = last ? epctx__images_of(&s) : 0;
    }
    for (i = 0; i < EPCTX__MAX_IN; i++)
        if ((kept >> i & 1) == 0)
            EPCTX__TRY(epctx__in_order(c, &s.in[i], (images >> i & 1) != 0, s.name));
    EPCTX__TRY(epctx__emit(c, &s));
    c->buffers[c->tensors[wanted].buffer].reordered = EPCTX__NONE;
    return s.out == wanted ? EPCTX_OK : epctx__emit_transposed(c, s.out, wanted, false, s.name);
}

/* Chooses the order of every buffer: convolutions want channels last, others follow their first
 * such operand, and moves also their readers, as they can write in any order. */
static void epctx__choose_orders(epctx__compiler *c) {
    size_t i;
    uint32_t j;
    for (i = c->step_count; i > 0; i--) {
        const epctx__step *s = &c->steps[i - 1];
        epctx__buffer *out = &c->buffers[c->tensors[s->out].buffer];
        epctx__step copy = *s;
        out->fixed =
            out->fixed || out->place != EPCTX__SCRATCH ||
            !(s->images ? epctx__is_whole(c, &c->tensors[s->out]) : epctx__follow(c, &copy));
        for (j = 0; j < EPCTX__MAX_IN; j++)
            if (s->in[j] != EPCTX__NONE && !c->tensors[s->in[j]].constant &&
                (s->images ? (epctx__images_of(s) >> j & 1) != 0 : out->wanted_last && !out->fixed))
                c->buffers[c->tensors[s->in[j]].buffer].wanted_last = true;
    }
    for (i = 0; i < c->step_count; i++) {
        const epctx__step *s = &c->steps[i];
        epctx__buffer *out = &c->buffers[c->tensors[s->out].buffer];
        const epctx__view v = epctx__tensor_view(&c->tensors[s->out]);
        bool wants = s->images || (s->op == EPCTX__OP_MOVE && out->wanted_last);
        for (j = 0; j < EPCTX__MAX_IN && !wants; j++) wants = epctx__is_last(c, s->in[j]);
        if (wants && !out->fixed && v.channels != 1 && v.plane != 1) {
            out->channels = (uint32_t)v.channels;
            out->plane = (uint32_t)v.plane;
        }
    }
}

/* Where a move that writes every element of a dense tensor, once, took them from. */
static bool epctx__digits_of(const epctx__move *p, uint64_t count, epctx__digits *g) {
    epctx__strided w;
    int64_t step = 1;
    uint32_t i;
    epctx__walk_of(p, w);
    epctx__sort_walk(p->rank, w);
    g->count = p->rank;
    for (i = p->rank; i-- > 0; step *= w[2][i]) {
        if (w[1][i] != step) return false;
        g->extent[i] = w[2][i];
        g->old[i] = step;
        g->wanted[i] = w[0][i];
    }
    return p->to_start == 0 && step == (int64_t)count;
}

/* What is known of a buffer: steps that write it, the last one; reads, and those by other steps
 * than moves. */
typedef struct epctx__traffic {
    uint32_t writers, last, reads, others;
} epctx__traffic;

static epctx_status epctx__traffic_of(epctx__compiler *c, epctx__traffic **out) {
    epctx__traffic *traffic;
    uint32_t i, j;
    EPCTX__MAKE(c, traffic, epctx__traffic, c->buffer_count);
    for (i = 0; i < c->step_count; i++) {
        const epctx__step *s = &c->steps[i];
        traffic[c->tensors[s->out].buffer].writers++;
        traffic[c->tensors[s->out].buffer].last = i;
        for (j = 0; j < EPCTX__MAX_IN; j++) {
            if (s->in[j] == EPCTX__NONE || c->tensors[s->in[j]].constant) continue;
            traffic[c->tensors[s->in[j]].buffer].reads++;
            traffic[c->tensors[s->in[j]].buffer].others += s->op != EPCTX__OP_MOVE;
        }
    }
    *out = traffic;
    return EPCTX_OK;
}

/* Lets a move that reads what another move has written read from where that took it. */
static void epctx__join_move(epctx__compiler *c, size_t at, const epctx__traffic *traffic) {
    epctx__step *s = &c->steps[at];
    const epctx__tensor *x = &c->tensors[s->in[0]], *source;
    const epctx__traffic *t = &traffic[x->constant ? 0 : x->buffer];
    const epctx__step *a = &c->steps[t->last];
    epctx__move walk = s->params.move;
    const uint64_t count = epctx__walk_count(a->params.move.dims, a->params.move.rank);
    epctx__digits g;
    const epctx__digits *ends[2] = {&g, NULL};
    if (x->constant || t->writers != 1 || t->others != 0 || a->op != EPCTX__OP_MOVE ||
        c->buffers[x->buffer].place != EPCTX__SCRATCH)
        return;
    source = &c->tensors[a->in[0]];
    if (source->constant || a->params.move.elem != walk.elem || c->tensors[a->out].offset != 0 ||
        traffic[source->buffer].last > t->last ||
        (epctx__walk_count(walk.dims, walk.rank) > count && count <= source->count) ||
        !epctx__digits_of(&a->params.move, c->buffers[x->buffer].bytes / walk.elem, &g))
        return;
    walk.from_start += (uint32_t)(x->offset / walk.elem);
    if (!epctx__rewalk(&walk, ends)) return;
    walk.from_start += a->params.move.from_start;
    s->params.move = walk;
    s->in[0] = a->in[0];
}

/* Copies parts of tensors that convolutions read: moves that can be joined, and write in any order.
 */
static epctx_status epctx__copy_parts(epctx__compiler *c) {
    const epctx__step *steps = c->steps;
    const size_t count = c->step_count, tensors = c->tensor_count;
    uint32_t *copies, j;
    size_t i;
    EPCTX__MAKE(c, copies, uint32_t, tensors); /* 0: none, or one more than the tensor */
    c->steps = NULL;
    c->step_count = c->step_room = 0;
    for (i = 0; i < count; i++) {
        epctx__step s = steps[i];
        for (j = 0; j < 4 && s.images; j += 3) {
            const uint32_t id = s.in[j];
            epctx__shape shape;
            uint32_t copy;
            if (id == EPCTX__NONE || c->tensors[id].constant || epctx__is_whole(c, &c->tensors[id]))
                continue;
            shape = c->tensors[id].shape;
            if (copies[id] == 0) {
                EPCTX__TRY(epctx__new_tensor(c, c->tensors[id].elem, &shape, &copy));
                EPCTX__TRY(epctx__emit_copy(c, id, copy));
                c->steps[c->step_count - 1].name = s.name;
                copies[id] = copy + 1;
            }
            s.in[j] = copies[id] - 1;
        }
        EPCTX__TRY(epctx__emit(c, &s));
    }
    return EPCTX_OK;
}

/* Joins moves of moves: Reshape, Transpose and Split of one tensor copy it once. */
static epctx_status epctx__join_moves(epctx__compiler *c) {
    epctx__traffic *traffic;
    size_t i;
    EPCTX__TRY(epctx__copy_parts(c));
    EPCTX__TRY(epctx__traffic_of(c, &traffic));
    for (i = 0; i < c->step_count; i++)
        if (c->steps[i].op == EPCTX__OP_MOVE) epctx__join_move(c, i, traffic);
    epctx__drop_dead(c);
    return EPCTX_OK;
}

/* A convolution whose only output pixel covers the whole image is a matrix product. */
static void epctx__conv_to_gemm(epctx__step *s) {
    const epctx__conv p = s->params.conv;
    const epctx__window *w = &p.window;
    epctx__gemm *g = &s->params.gemm;
    if (s->op != EPCTX__OP_CONV || !s->packs || p.groups != 1 || s->in[3] != EPCTX__NONE ||
        w->kernel_h != w->in_h || w->kernel_w != w->in_w || w->out_h != 1 || w->out_w != 1 ||
        w->top + w->left + w->bottom + w->right != 0)
        return;
    s->op = EPCTX__OP_GEMM;
    s->temporary = EPCTX__NONE;
    memset(&s->params, 0, sizeof s->params);
    *g = epctx__gemm_of(p.batch, p.out_channels, s->pack.depth);
    g->act = p.act;
    s->pack.inner = 1; /* the whole image, in ONNX's order */
    s->pack.inner_stride = 0;
    s->images = false;
}

/* Lays images channels last around convolutions. */
static epctx_status epctx__lay_out(epctx__compiler *c) {
    const epctx__step *steps = c->steps;
    const size_t count = c->step_count;
    size_t i;
    for (i = 0; i < count; i++) epctx__conv_to_gemm(&c->steps[i]);
    epctx__choose_orders(c);
    c->steps = NULL;
    c->step_count = c->step_room = 0;
    for (i = 0; i < count; i++) EPCTX__TRY(epctx__lay_step(c, &steps[i]));
    return EPCTX_OK;
}

/* ============================================================
 * >>plan: memory
 *
 * epctx__plan gives each buffer its place in scratch. A buffer lives from the first step that uses
 * it to the last, both included (epctx__lifetimes), and two buffers that are alive in one step
 * never overlap. Hence a step never overwrites another buffer that it reads; the loader checks this
 * again. Sizes are rounded up to 64 bytes and added in 64 bits. The peak of live bytes
 * (epctx__live_peaks) is a lower bound: a plan that reaches it is optimal and ends the search.
 *
 * The search is greedy. epctx__place_buffer puts a buffer into the lowest gap between the placed
 * ones that live at the same time; the result depends on the order alone, so epctx__plan tries the
 * four of epctx__order, repeats each up to three times with the buffer that ended highest moved to
 * the front, and keeps the smallest plan. Every comparison ends at the number of the buffer, so
 * each machine gets the same plan. A segment tree (epctx__tree) finds those that live at the same
 * time, and EPCTX__PLAN_PAIRS limits how many of them one order looks at: past that limit, buffers
 * are stacked on top, so that huge graphs compile soon.
 * ============================================================ */

static void epctx__touch_buffer(epctx__compiler *c, uint32_t buffer, size_t step) {
    epctx__buffer *b = &c->buffers[buffer];
    if (b->first == EPCTX__NONE) b->first = (uint32_t)step;
    b->last = (uint32_t)step;
}

static void epctx__lifetimes(epctx__compiler *c) {
    size_t i;
    uint32_t j;
    for (i = 0; i < c->buffer_count; i++) c->buffers[i].first = EPCTX__NONE;
    for (i = 0; i < c->step_count; i++) {
        const epctx__step *s = &c->steps[i];
        for (j = 0; j < EPCTX__MAX_IN; j++)
            if (s->in[j] != EPCTX__NONE && !c->tensors[s->in[j]].constant)
                epctx__touch_buffer(c, c->tensors[s->in[j]].buffer, i);
        epctx__touch_buffer(c, c->tensors[s->out].buffer, i);
        if (s->temporary != EPCTX__NONE) epctx__touch_buffer(c, s->temporary, i);
    }
}

static bool epctx__in_scratch(const epctx__buffer *b) {
    return b->place == EPCTX__SCRATCH && b->first != EPCTX__NONE;
}

/* Max segment tree: max[1] is the largest number, number i is at max[leaves + i]. */
typedef struct epctx__tree {
    uint64_t *max;
    size_t leaves;
} epctx__tree;

static epctx_status epctx__new_tree(epctx__compiler *c, size_t count, epctx__tree *tree) {
    tree->leaves = 1;
    while (tree->leaves < count) tree->leaves *= 2;
    EPCTX__MAKE(c, tree->max, uint64_t, 2 * tree->leaves);
    return EPCTX_OK;
}

static void epctx__raise(const epctx__tree *tree, size_t at) {
    const uint64_t *pair = &tree->max[2 * at];
    tree->max[at] = pair[0] > pair[1] ? pair[0] : pair[1];
}

static void epctx__set(const epctx__tree *tree, size_t i, uint64_t value) {
    size_t at = tree->leaves + i;
    tree->max[at] = value;
    while ((at /= 2) > 0) epctx__raise(tree, at);
}

/* The largest of the numbers first .. last. */
static uint64_t epctx__largest(const epctx__tree *tree, size_t first, size_t last) {
    size_t at = tree->leaves + first, end = tree->leaves + last + 1;
    uint64_t most = 0;
    for (; at < end; at /= 2, end /= 2) {
        if (at % 2 != 0) {
            most = tree->max[at] > most ? tree->max[at] : most;
            at++;
        }
        if (end % 2 != 0) {
            end--;
            most = tree->max[end] > most ? tree->max[end] : most;
        }
    }
    return most;
}

/* Index of the first number from i on that is larger than `value`; `leaves`: none is. */
static size_t epctx__next_above(const epctx__tree *tree, size_t i, uint64_t value) {
    size_t at = tree->leaves + i;
    if (i >= tree->leaves) return tree->leaves;
    while (tree->max[at] <= value) {
        while (at % 2 != 0) at /= 2;
        if (at == 0) return tree->leaves;
        at++;
    }
    while (at < tree->leaves) at = tree->max[2 * at] > value ? 2 * at : 2 * at + 1;
    return at - tree->leaves;
}

/* Live bytes at every step: their peak, and for every buffer the peak during its lifetime. */
static epctx_status epctx__live_peaks(epctx__compiler *c) {
    epctx__tree tree;
    uint64_t *live;
    size_t i;
    EPCTX__TRY(epctx__new_tree(c, c->step_count + 1, &tree));
    live = tree.max + tree.leaves; /* first the differences, modulo 2^64 */
    for (i = 0; i < c->buffer_count; i++) {
        const epctx__buffer *b = &c->buffers[i];
        if (epctx__in_scratch(b)) {
            live[b->first] += epctx__aligned(b->bytes);
            live[b->last + 1] -= epctx__aligned(b->bytes);
        }
    }
    for (i = 1; i <= c->step_count; i++) live[i] += live[i - 1];
    for (i = tree.leaves - 1; i > 0; i--) epctx__raise(&tree, i);
    c->stats.scratch_live = epctx__largest(&tree, 0, c->step_count);
    for (i = 0; i < c->buffer_count; i++) {
        epctx__buffer *b = &c->buffers[i];
        b->peak = epctx__in_scratch(b) ? epctx__largest(&tree, b->first, b->last) : 0;
    }
    return EPCTX_OK;
}

/* A buffer in a list to sort. */
typedef struct epctx__item {
    uint64_t key, bytes;
    uint32_t buffer;
} epctx__item;

/* By larger key, larger size, older buffer: a total order, so that every sort gives one plan. */
static bool epctx__before(const epctx__item *x, const epctx__item *y) {
    if (x->key != y->key) return x->key > y->key;
    return x->bytes != y->bytes ? x->bytes > y->bytes : x->buffer < y->buffer;
}

static void epctx__sift(epctx__item *heap, size_t count, size_t at) {
    for (;;) {
        size_t child = 2 * at + 1;
        epctx__item item;
        if (child >= count) return;
        if (child + 1 < count && epctx__before(&heap[child], &heap[child + 1])) child++;
        if (!epctx__before(&heap[at], &heap[child])) return;
        item = heap[at];
        heap[at] = heap[child];
        heap[child] = item;
        at = child;
    }
}

/* Builds a heap with the last item of the order on top. */
static void epctx__heap(epctx__item *list, size_t count) {
    size_t i;
    for (i = count / 2; i > 0; i--) epctx__sift(list, count, i - 1);
}

/* Heap sort: no worst case, no recursion. */
static void epctx__sort(epctx__item *list, size_t count) {
    size_t i;
    epctx__heap(list, count);
    for (i = count; i > 1; i--) {
        epctx__item item = list[0];
        list[0] = list[i - 1];
        list[i - 1] = item;
        epctx__sift(list, i - 1, 0);
    }
}

typedef enum epctx__order {
    EPCTX__BY_SIZE = 0, /* largest first: near the optimum for most networks */
    EPCTX__BY_CROWD,    /* live at the peak first: better for long skip connections */
    EPCTX__BY_AREA,     /* bytes times steps */
    EPCTX__BY_TIME,     /* in order of use */
    EPCTX__ORDER_COUNT
} epctx__order;

/* Limit of pairs of simultaneously live buffers that an order examines: enough for 10,000 buffers,
 * 400 of them live at once. Remaining buffers are placed above all others. */
#define EPCTX__PLAN_PAIRS ((size_t)1 << 22)

/* Placement of the buffers in scratch. */
typedef struct epctx__planner {
    epctx__item *list;    /* in order of placement */
    epctx__item *by_time; /* in order of first use */
    epctx__item *beside;  /* heap of those live at the same time, lowest offset on top */
    epctx__item *best;    /* the list that needed least */
    epctx__tree placed;   /* over by_time: the step after the last use, 0: not placed */
    size_t count, pairs;  /* pairs: how many may still be examined */
    size_t top;           /* in the list: the buffer that ends highest */
    uint64_t size;        /* bytes of scratch */
} epctx__planner;

static void epctx__put_in_order(const epctx__compiler *c, epctx__item *list, size_t count,
                                epctx__order order) {
    size_t i;
    for (i = 0; i < count; i++) {
        const epctx__buffer *b = &c->buffers[list[i].buffer];
        const uint64_t keys[EPCTX__ORDER_COUNT] = {
            b->bytes, b->peak, epctx__mul(b->bytes, (uint64_t)b->last - b->first + 1),
            UINT32_MAX - b->first};
        list[i].key = keys[order];
    }
    epctx__sort(list, count);
}

/* Collects the placed buffers live at the same time as b; returns their count, 0: no pairs left. */
static size_t epctx__collect(const epctx__compiler *c, epctx__planner *p, const epctx__buffer *b) {
    size_t i, count = 0;
    for (i = epctx__next_above(&p->placed, 0, b->first); i < p->placed.leaves;
         i = epctx__next_above(&p->placed, i + 1, b->first)) {
        const epctx__buffer *other = &c->buffers[p->by_time[i].buffer];
        if (other->first > b->last || p->pairs == 0) break;
        p->pairs--;
        p->beside[count] = p->by_time[i];
        p->beside[count].key = other->offset;
        count++;
    }
    return p->pairs > 0 ? count : 0;
}

/* Places one buffer in the lowest gap between the buffers live at the same time. */
static void epctx__place_buffer(const epctx__compiler *c, epctx__planner *p, epctx__buffer *b) {
    const uint64_t size = epctx__aligned(b->bytes);
    size_t count = epctx__collect(c, p, b);
    b->offset = p->pairs > 0 ? 0 : p->size;
    epctx__heap(p->beside, count);
    while (count > 0) {
        const epctx__item *other = &p->beside[0];
        const uint64_t end = other->key + epctx__aligned(other->bytes);
        if (other->key >= b->offset && other->key - b->offset >= size) break;
        b->offset = end > b->offset ? end : b->offset;
        p->beside[0] = p->beside[--count];
        epctx__sift(p->beside, count, 0);
    }
    epctx__set(&p->placed, b->position, (uint64_t)b->last + 1);
    p->size = b->offset + size > p->size ? b->offset + size : p->size;
}

/* Places all buffers in the order of the list. */
static void epctx__place_all(epctx__compiler *c, epctx__planner *p) {
    size_t i;
    memset(p->placed.max, 0, 2 * p->placed.leaves * sizeof *p->placed.max);
    p->pairs = EPCTX__PLAN_PAIRS;
    p->size = p->top = 0;
    for (i = 0; i < p->count; i++) {
        const uint64_t before = p->size;
        epctx__place_buffer(c, p, &c->buffers[p->list[i].buffer]);
        if (p->size > before) p->top = i;
    }
}

static epctx_status epctx__new_planner(epctx__compiler *c, epctx__planner *p) {
    size_t i;
    EPCTX__MAKE(c, p->list, epctx__item, 4 * c->buffer_count);
    p->by_time = p->list + c->buffer_count;
    p->beside = p->by_time + c->buffer_count;
    p->best = p->beside + c->buffer_count;
    p->count = 0;
    for (i = 0; i < c->buffer_count; i++) {
        if (epctx__in_scratch(&c->buffers[i])) {
            p->list[p->count].bytes = c->buffers[i].bytes;
            p->list[p->count++].buffer = (uint32_t)i;
        }
    }
    memcpy(p->by_time, p->list, p->count * sizeof *p->list);
    epctx__put_in_order(c, p->by_time, p->count, EPCTX__BY_TIME);
    for (i = 0; i < p->count; i++) c->buffers[p->by_time[i].buffer].position = (uint32_t)i;
    return epctx__new_tree(c, p->count, &p->placed);
}

/* Offsets in scratch: the best of several orders, each tried again with the buffer that ended
 * highest in front. The peak of live bytes is a lower bound. */
static epctx_status epctx__plan(epctx__compiler *c) {
    epctx__planner p;
    int order, tries;
    epctx__lifetimes(c);
    EPCTX__TRY(epctx__live_peaks(c));
    EPCTX__TRY(epctx__new_planner(c, &p));
    c->stats.scratch_size = UINT64_MAX;
    for (order = 0; order < EPCTX__ORDER_COUNT; order++) {
        epctx__put_in_order(c, p.list, p.count, (epctx__order)order);
        for (tries = 0; tries < 4 && c->stats.scratch_size > c->stats.scratch_live; tries++) {
            if (tries > 0) {
                const epctx__item item = p.list[p.top];
                memmove(p.list + 1, p.list, p.top * sizeof item);
                p.list[0] = item;
            }
            epctx__place_all(c, &p);
            if (p.size < c->stats.scratch_size) {
                c->stats.scratch_size = p.size;
                memcpy(p.best, p.list, p.count * sizeof *p.list);
            }
            if (p.pairs == 0) break; /* costs enough */
        }
    }
    if (p.size > c->stats.scratch_size) {
        memcpy(p.list, p.best, p.count * sizeof *p.list);
        epctx__place_all(c, &p);
    }
    return EPCTX_OK;
}

/* ============================================================
 * >>refine: changes that need to know what is live when
 *
 * epctx__pack_weights makes packing a recorded step where a weightless blob lacks the weights.
 * epctx__refine then makes two changes. A convolution at the peak of live bytes, followed by a
 * pool, alternates with that pool over bands of lines (epctx__split), so that never more than a
 * band of the image between them is live. And a 3 x 3 convolution becomes Winograd where that saves
 * a tenth of the work (epctx__to_tiles), never where floats hold exact integers (`exact`).
 * ============================================================ */

/* Weights outside the blob are packed when the graph gets them, others when they are written
 * (epctx__write_weight): one at a time in memory. */
static epctx_status epctx__pack_weights(epctx__compiler *c) {
    size_t i;
    for (i = 0; i < c->step_count; i++) {
        epctx__step *s = &c->steps[i], pack;
        const epctx__pack *p = &s->pack;
        epctx__shape shape = {1, {0}};
        if (!s->packs || !c->tensors[s->in[1]].outside) continue;
        shape.dims[0] = (int64_t)epctx__packed(p->batch, p->rows, p->depth, p->block);
        pack = epctx__new_step(EPCTX__OP_PACK, s->in[1], EPCTX__NONE, 0);
        pack.params.pack = *p;
        pack.name = s->name;
        EPCTX__TRY(epctx__add_tensor(c, EPCTX_ONNX_FLOAT, &shape, &pack.out));
        c->tensors[pack.out].constant = true;
        EPCTX__TRY(epctx__record(c, &pack));
        s->in[1] = pack.out;
        s->packs = false;
    }
    return EPCTX_OK;
}

/* Whether step `at` of `count` is a convolution at the peak of live bytes and the next one a pool,
 * the only reader of its result. */
static bool epctx__pool_behind(const epctx__compiler *c, const epctx__step *s, size_t at,
                               size_t count) {
    const epctx__conv *p = &s->params.conv;
    const epctx__buffer *b = &c->buffers[c->tensors[s->out].buffer];
    return s->op == EPCTX__OP_CONV && p->batch == 1 && s->in[3] == EPCTX__NONE && at + 1 < count &&
           s[1].op == EPCTX__OP_POOL &&
           c->tensors[s[1].in[0]].buffer == c->tensors[s->out].buffer &&
           b->place == EPCTX__SCRATCH && b->first == at && b->last == at + 1 &&
           b->peak == c->stats.scratch_live;
}

/* Lines of a pool for which the convolution fits into 8 KB and computes few lines twice. */
static uint32_t epctx__pool_lines(const epctx__conv *conv, const epctx__window *pool) {
    const uint64_t line = epctx__mul4(pool->stride_h, conv->window.out_w, conv->out_channels, 4);
    const uint64_t reach = epctx__covered(1, pool->kernel_h, 1, pool->dilation_h);
    const uint64_t twice = reach > pool->stride_h ? reach - pool->stride_h : 0;
    const uint64_t least = 8 * twice / pool->stride_h, fit = 8192 / line;
    const uint64_t lines = fit > least ? fit : least;
    return lines == 0 ? 1 : (lines < pool->out_h ? (uint32_t)lines : pool->out_h);
}

/* Narrows a window to the output lines from `first` to before `end`; `start` is the first line of
 * the input that they need. False: they lie in the padding alone. */
static bool epctx__band(epctx__window *w, uint32_t first, uint32_t end, uint32_t *start) {
    const int64_t from = (int64_t)first * w->stride_h - w->top, in = w->in_h;
    const int64_t to =
        from + (int64_t)epctx__covered(end - first, w->kernel_h, w->stride_h, w->dilation_h);
    const int64_t low = from > 0 ? from : 0, high = to < in ? to : in;
    if (low >= high) return false;
    *start = (uint32_t)low;
    w->top = (uint32_t)(low - from);
    if (to <= in)
        w->bottom = 0;
    else if (end < w->out_h && to - in < w->bottom)
        w->bottom = (uint32_t)(to - in);
    w->in_h = (uint32_t)(high - low);
    w->out_h = end - first;
    return true;
}

/* The lines of an image from `first` on, `line` elements each. */
static epctx_status epctx__lines_of(epctx__compiler *c, uint32_t first, uint32_t count,
                                    uint64_t line, uint32_t *id) {
    epctx__shape shape = {1, {0}};
    shape.dims[0] = (int64_t)(count * line);
    return epctx__alias(c, *id, &shape, first * line, id);
}

/* Alternates convolution and pool over bands of lines: only a band of the image is live. */
static epctx_status epctx__split(epctx__compiler *c, const epctx__step *conv,
                                 const epctx__step *pool, uint32_t lines) {
    const size_t before = c->step_count;
    uint32_t first, end, start, buffer;
    for (first = 0; first < pool->params.pool.window.out_h; first = end) {
        epctx__step one = *conv, two = *pool;
        epctx__needs needs;
        epctx__conv *p = &one.params.conv;
        epctx__window *w = &two.params.pool.window;
        const uint64_t line = (uint64_t)w->out_w * two.params.pool.row;
        end = w->out_h - first < lines ? w->out_h : first + lines;
        EPCTX__TRY(epctx__lines_of(c, first, end - first, line, &two.out));
        if (!epctx__band(w, first, end, &start)) break;
        EPCTX__TRY(epctx__lines_of(
            c, 0, w->in_h, (uint64_t)p->window.out_w * p->out_channels * p->groups, &two.in[0]));
        EPCTX__TRY(epctx__add_buffer(c, c->tensors[two.in[0]].count * 4, &buffer));
        c->tensors[two.in[0]].buffer = buffer;
        one.out = two.in[0];
        if (!epctx__band(&p->window, start, start + w->in_h, &start)) break;
        EPCTX__TRY(epctx__lines_of(c, start, p->window.in_h,
                                   (uint64_t)p->window.in_w * p->in_channels * p->groups,
                                   &one.in[0]));
        EPCTX__TRY(epctx__check_step(c, &one, &needs));
        one.temporary = EPCTX__NONE;
        EPCTX__TRY(epctx__add_workspace(c, &one, &needs));
        EPCTX__TRY(epctx__push_step(c, &one));
        EPCTX__TRY(epctx__push_step(c, &two));
    }
    if (first < pool->params.pool.window.out_h)
        c->step_count = before; /* a line of padding alone */
    return EPCTX_OK;
}

/* Splits convolutions followed by a pool at the peak of live bytes. */
static epctx_status epctx__split_pools(epctx__compiler *c) {
    const epctx__step *steps = c->steps;
    const size_t count = c->step_count;
    size_t i, before;
    c->steps = NULL;
    c->step_count = c->step_room = 0;
    for (i = 0; i < count; i++) {
        const epctx__step *s = &steps[i];
        before = c->step_count;
        if (epctx__pool_behind(c, s, i, count)) {
            const epctx__window *pool = &s[1].params.pool.window;
            const uint32_t lines = epctx__pool_lines(&s->params.conv, pool);
            if (lines < pool->out_h) EPCTX__TRY(epctx__split(c, s, &s[1], lines));
        }
        if (c->step_count == before)
            EPCTX__TRY(epctx__push_step(c, s));
        else
            i++;
    }
    return EPCTX_OK;
}

/* Turns a convolution into products of tiles if that saves a tenth. */
static epctx_status epctx__to_tiles(epctx__compiler *c, epctx__step *s) {
    epctx__needs direct, tiled;
    memset(&direct, 0, sizeof direct);
    memset(&tiled, 0, sizeof tiled);
    if (s->op != EPCTX__OP_CONV || s->exact || s->params.conv.in_channels < 16 ||
        s->params.conv.out_channels < 16 || !epctx__check_conv(&s->params.conv, &direct) ||
        !epctx__check_winograd(&s->params.winograd, &tiled) || tiled.work >= direct.work / 10 * 9 ||
        tiled.out[1].bytes > EPCTX__MAX_BYTES)
        return EPCTX_OK;
    s->op = EPCTX__OP_WINOGRAD;
    s->temporary = EPCTX__NONE;
    return epctx__add_workspace(c, s, &tiled);
}

/* Transformations that need all steps. */
static epctx_status epctx__refine(epctx__compiler *c) {
    size_t i;
    epctx__lifetimes(c);
    EPCTX__TRY(epctx__live_peaks(c));
    EPCTX__TRY(epctx__split_pools(c));
    for (i = 0; i < c->step_count && !(c->npu != NULL && c->npu->opts.direct); i++)
        EPCTX__TRY(epctx__to_tiles(c, &c->steps[i]));
    return EPCTX_OK;
}

/* ============================================================
 * >>integers: steps between DequantizeLinear and QuantizeLinear, computed on the bytes
 *
 * A quantized model (QDQ) says that bytes are dequantized, an operator computes in floats, and its
 * result is quantized. This pass computes the result from the bytes instead: with a quarter of the
 * memory, and with integer dot products. epctx__to_integers visits every Quantize, finds the step
 * that computes its operand (epctx__maker) and the Dequantize steps behind that one, and replaces
 * the Quantize by one step on bytes (epctx__integer_step). It runs before the layout, which then
 * treats the new steps like convolutions of floats, and epctx__drop_dead removes what nobody reads
 * any more.
 *
 *  - epctx__bytes_product: convolutions, matrix products, average pools and means.
 *  - epctx__bytes_sum: a sum, difference or product of two tensors of one shape.
 *  - epctx__bytes_lookup: functions of one byte, also several in a row, as a table of 256 results.
 *  - epctx__bytes_move: a move whose source and result have one scale and zero point.
 *
 * A step is replaced only if both ends have a grid (epctx__grid): int8 or uint8 with one constant
 * positive scale and one zero point. Weights may have a scale per channel and must fit int8 without
 * their zero point. Nothing but the Quantize may read the floats that it rounds. Where a condition
 * fails, the steps on floats remain, but for a product of dequantized bytes, which lowering notes
 * (epctx__note_product): epctx__sum_exactly lowers that node once more, to sums of integers
 * (epctx__exact_product), and the Quantize only rounds them. So a product between Dequantize and
 * Quantize has exact sums on either way. It is noted only if the sums have one scale, or one for
 * each channel, and if its bias counts in their unit. ONNX Runtime adds floats in some forms that
 * it does not fuse (several readers, int8 by uint8): there, next to ties, it may be one step off.
 *
 * Products of bytes add up exactly: 65,536 of them, the most that one sum has, of up to 255 * 128
 * each stay below 2^31. epctx__integer_operands folds what is constant into the weights, a bias of
 * 32 bits (the model's bias minus the zero point times the weights) and one factor per channel, the
 * scales of input and weight over that of the result. The sum itself is exact, unlike that of
 * floats, so results can differ from those of the steps on floats where a value lies next to a tie.
 * ReLU and Clip become limits of the byte (epctx__requant_of).
 * ============================================================ */

/* A per-tensor scale and zero point. */
typedef struct epctx__grid {
    int32_t type;
    float scale;
    int32_t zero;
} epctx__grid;

/* State of the pass. */
typedef struct epctx__integers {
    epctx__compiler *c;
    const epctx__step *steps;
    epctx__traffic *traffic; /* of the first `buffers` buffers */
    size_t buffers;
} epctx__integers;

static uint32_t epctx__flip_of(int32_t type) {
    return type == EPCTX_ONNX_INT8 ? 0x80u : 0;
}

/* The grid of a Quantize or Dequantize. Without one constant scale, the scale of the grid is 0. */
static epctx_status epctx__grid_of(epctx__compiler *c, const epctx__step *s, epctx__grid *g) {
    const void *scale, *zero = NULL;
    const bool has_zero = s->in[2] != EPCTX__NONE;
    g->scale = 0.0f;
    if ((s->params.quantize.type != EPCTX_ONNX_INT8 &&
         s->params.quantize.type != EPCTX_ONNX_UINT8) ||
        s->params.quantize.channels != 1 || !c->tensors[s->in[1]].constant ||
        c->tensors[s->in[1]].outside ||
        (has_zero && (!c->tensors[s->in[2]].constant || c->tensors[s->in[2]].outside)))
        return EPCTX_OK;
    EPCTX__TRY(epctx__data(c, s->in[1], &scale));
    if (has_zero) EPCTX__TRY(epctx__data(c, s->in[2], &zero));
    g->type = (int32_t)s->params.quantize.type;
    g->scale = *(const float *)scale;
    g->zero = has_zero ? (int32_t)epctx__load_int((const uint8_t *)zero, 0, (uint32_t)g->type) : 0;
    return EPCTX_OK;
}

/* The only step that writes the tensor, if the tensor is all of its buffer. */
static const epctx__step *epctx__maker(const epctx__integers *w, uint32_t tensor) {
    const epctx__tensor *t = &w->c->tensors[tensor];
    return t->constant || t->buffer >= w->buffers || w->traffic[t->buffer].writers != 1 ||
                   !epctx__is_whole(w->c, t)
               ? NULL
               : &w->steps[w->traffic[t->buffer].last];
}

/* The Dequantize that computes a tensor of floats, with its grid; NULL: another step does. */
static epctx_status epctx__dequantized(const epctx__integers *w, uint32_t tensor,
                                       const epctx__step **s, epctx__grid *g) {
    g->scale = 0.0f;
    *s = tensor != EPCTX__NONE ? epctx__maker(w, tensor) : NULL;
    if (tensor != EPCTX__NONE && w->c->tensors[tensor].constant && !w->c->tensors[tensor].outside &&
        w->c->tensors[tensor].shape.rank < 3)
        *s = w->c->tensors[tensor].dequantized; /* too few dimensions for an image */
    if (*s != NULL && (*s)->op == EPCTX__OP_DEQUANTIZE) EPCTX__TRY(epctx__grid_of(w->c, *s, g));
    if (!(g->scale > 0.0f)) *s = NULL;
    return EPCTX_OK;
}

/* Turns an activation into limits of the result; false: it does more than limit. */
static bool epctx__requant_of(const epctx__grid *g, const epctx__act *act, epctx__requant *out) {
    const int32_t least = g->type == EPCTX_ONNX_INT8 ? -128 : 0, zero = g->zero;
    const float low = (float)(least - zero), high = (float)(least + 255 - zero);
    out->type = (uint32_t)g->type;
    out->zero = zero;
    out->low = least;
    out->high = least + 255;
    if (act->kind == EPCTX__ACT_RELU) {
        out->low = zero;
    } else if (act->kind == EPCTX__ACT_CLIP) {
        const int32_t flip = g->type == EPCTX_ONNX_INT8 ? 128 : 0; /* bytes to numbers */
        out->low =
            ((int32_t)(epctx__steps(act->a / g->scale, low, high, (float)zero) & 0xff) ^ flip) -
            flip;
        out->high =
            ((int32_t)(epctx__steps(act->b / g->scale, low, high, (float)zero) & 0xff) ^ flip) -
            flip;
    } else if (act->kind != EPCTX__ACT_NONE) {
        return false;
    }
    return out->low <= out->high;
}

/* The bytes from which a tensor of floats is dequantized; moved, if the floats are. NONE: it is not
 * dequantized. */
static epctx_status epctx__bytes_behind(epctx__integers *w, uint32_t tensor, uint32_t *bytes,
                                        epctx__grid *g) {
    epctx__compiler *c = w->c;
    const epctx__step *move = epctx__maker(w, tensor), *from;
    epctx__shape shape;
    epctx__step to;
    EPCTX__TRY(epctx__dequantized(w, tensor, &from, g));
    *bytes = from != NULL ? from->in[0] : EPCTX__NONE;
    if (from != NULL || move == NULL || move->op != EPCTX__OP_MOVE) return EPCTX_OK;
    EPCTX__TRY(epctx__dequantized(w, move->in[0], &from, g));
    if (from == NULL) return EPCTX_OK;
    to = *move;
    to.in[0] = from->in[0];
    to.params.move.elem = 1;
    shape = c->tensors[tensor].shape;
    EPCTX__TRY(epctx__new_tensor(c, g->type, &shape, bytes));
    to.out = *bytes;
    return epctx__emit(c, &to);
}

/* Gives a tensor the shape of another one, by an alias. */
static epctx_status epctx__shaped(epctx__compiler *c, uint32_t like, uint32_t *id) {
    const epctx__shape shape = c->tensors[like].shape;
    return epctx__same_shape(&shape, &c->tensors[*id].shape) ? EPCTX_OK
                                                             : epctx__alias(c, *id, &shape, 0, id);
}

/* What an integer product is made from. */
typedef struct epctx__product_of {
    epctx__integer_conv p;
    bool depthwise, ones;   /* ones: a sum of the taps */
    uint32_t weights, bias; /* tensors of floats, or NONE */
    uint32_t taps;
    float scale;        /* of a sum: one over the number of taps */
    uint32_t row, step; /* strides of the weights: by output channel and along it */
} epctx__product_of;

/* The weights minus their zero point; `known` is true if all of them fit int8. */
static epctx_status epctx__bytes_of(epctx__compiler *c, const epctx__product_of *o,
                                    epctx__scales *scales, int32_t **values, bool *known) {
    const epctx__tensor *t = &c->tensors[o->weights];
    const epctx__step *s = t->dequantized;
    const epctx__quantize *q;
    const void *data, *zeros = NULL;
    uint64_t i;
    *known = false;
    if (s == NULL || t->outside) return EPCTX_OK;
    q = &s->params.quantize;
    if (q->type == EPCTX_ONNX_INT32 ||
        (q->channels != 1 && (q->channels != o->p.out_channels || q->inner != o->row)))
        return EPCTX_OK;
    EPCTX__TRY(epctx__data(c, s->in[0], &data));
    EPCTX__TRY(epctx__scales_of(c, s, scales));
    if (scales->data == NULL) return EPCTX_OK;
    if (s->in[2] != EPCTX__NONE) EPCTX__TRY(epctx__data(c, s->in[2], &zeros));
    EPCTX__MAKE(c, *values, int32_t, t->count);
    for (i = 0; i < t->count; i++) {
        const int64_t zero = zeros == NULL
                                 ? 0
                                 : epctx__load_int((const uint8_t *)zeros,
                                                   (size_t)(i / q->inner % q->channels), q->type);
        (*values)[i] = (int32_t)(epctx__load_int((const uint8_t *)data, (size_t)i, q->type) - zero);
        if ((*values)[i] < -128 || (*values)[i] > 127) return EPCTX_OK;
    }
    *known = true;
    return EPCTX_OK;
}

/* Packs weights, bias and scales of a product as operands 1 to 3 of `s`. */
static epctx_status epctx__integer_operands(epctx__compiler *c, const epctx__product_of *o,
                                            const epctx__grid *x, const epctx__grid *y,
                                            epctx__step *s, bool *known) {
    const uint32_t channels = o->p.out_channels, inputs = o->depthwise ? 1 : o->p.in_channels;
    const uint32_t block = o->depthwise ? 64 : EPCTX__DOT_LANE, depth = inputs * o->taps;
    const uint32_t padded = (uint32_t)epctx__up(channels, block), fours = (depth + 3) / 4;
    epctx__shape shape = {1, {0}};
    epctx__scales scales = {NULL, 0}, units;
    const epctx__step *bias = NULL;
    const void *biases = NULL;
    int32_t *values = NULL, *sums;
    uint32_t n, i, copy;
    float *factors, unit;
    int8_t *packed;
    *known = true;
    if (!o->ones) EPCTX__TRY(epctx__bytes_of(c, o, &scales, &values, known));
    if (o->bias != EPCTX__NONE) {
        bias = c->tensors[o->bias].dequantized;
        *known = *known && bias != NULL && bias->params.quantize.type == EPCTX_ONNX_INT32 &&
                 !c->tensors[o->bias].outside && c->tensors[o->bias].count == channels;
    }
    if (!*known || depth > 65536) {
        *known = false;
        return EPCTX_OK;
    }
    if (bias != NULL) {
        EPCTX__TRY(epctx__data(c, bias->in[0], &biases));
        EPCTX__TRY(epctx__scales_of(c, bias, &units));
        *known = bias->in[2] == EPCTX__NONE && units.data != NULL &&
                 epctx__same_units(x->scale, &scales, &units, channels);
        if (!*known) return EPCTX_OK;
    }
    shape.dims[0] = (int64_t)padded * fours * 4; /* new constants are zero */
    EPCTX__TRY(epctx__add_constant(c, EPCTX_ONNX_INT8, &shape, &packed, &s->in[1]));
    shape.dims[0] = padded;
    EPCTX__TRY(epctx__add_constant(c, EPCTX_ONNX_INT32, &shape, &sums, &s->in[2]));
    EPCTX__TRY(epctx__add_floats(c, padded, &factors, &s->in[3]));
    for (copy = 0; copy < (o->depthwise && 64 % channels == 0 ? padded : channels); copy++) {
        const size_t at = o->depthwise ? epctx__interleaved(copy) : copy, lane = at % block;
        int64_t sum = 0;
        n = copy % channels;
        for (i = 0; i < depth; i++) { /* taps outside, channels inside */
            const size_t from =
                (size_t)n * o->row + (size_t)(i % inputs * o->taps + i / inputs) * o->step;
            const int32_t v = o->ones ? 1 : values[from];
            packed[((at - lane) * fours + i / 4 * block + lane) * 4 + i % 4] = (int8_t)v;
            sum += v;
        }
        sum *= -(int64_t)(x->zero + (int32_t)o->p.flip);
        sum += biases != NULL ? epctx__index((const uint8_t *)biases, n, 4) : 0;
        epctx__store_int((uint8_t *)sums, at, EPCTX_ONNX_INT32, sum); /* modulo 2^32 */
        unit = epctx__f_mul(x->scale, o->ones ? o->scale : scales.data[n * scales.step]);
        factors[at] = epctx__f_div(unit, y->scale);
    }
    return EPCTX_OK;
}

static void epctx__set_product(epctx__product_of *o, uint32_t batch, uint32_t in, uint32_t out,
                               const epctx__window *window) {
    o->p.batch = batch;
    o->p.in_channels = in;
    o->p.out_channels = out;
    o->p.window = *window;
    o->taps = window->kernel_h * window->kernel_w;
}

/* -- columns of the table of opcodes: steps as products of integers --
 *
 * epctx__product_NAME describes a step as a product of integers and what is done with its result.
 * False: it has no such form. */

static bool epctx__product_none(const epctx__compiler *c, const epctx__step *s,
                                epctx__product_of *o, epctx__act *act) {
    (void)c, (void)s, (void)o, (void)act;
    return false;
}

static bool epctx__product_conv(const epctx__compiler *c, const epctx__step *s,
                                epctx__product_of *o, epctx__act *act) {
    const epctx__conv *p = &s->params.conv;
    (void)c;
    epctx__set_product(o, p->batch, p->in_channels, p->out_channels, &p->window);
    *act = p->act;
    o->row = o->taps * p->in_channels;
    return s->packs && p->groups == 1 && s->in[3] == EPCTX__NONE;
}

static bool epctx__product_depthwise(const epctx__compiler *c, const epctx__step *s,
                                     epctx__product_of *o, epctx__act *act) {
    const epctx__depthwise *p = &s->params.depthwise;
    (void)c;
    epctx__set_product(o, p->batch, p->channels, p->channels, &p->window);
    *act = p->act;
    o->depthwise = true;
    return true;
}

static bool epctx__product_gemm(const epctx__compiler *c, const epctx__step *s,
                                epctx__product_of *o, epctx__act *act) {
    const epctx__gemm *p = &s->params.gemm;
    epctx__window row = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0};
    (void)c;
    row.in_w = row.out_w = p->m;
    epctx__set_product(o, 1, p->k, p->n, &row);
    *act = p->act;
    o->step = s->pack.depth_stride;
    o->row = s->pack.row_stride;
    return s->packs && p->batch == 1 && p->alpha == 1.0f && p->a_row == p->k && p->a_step == 1;
}

static bool epctx__product_pool(const epctx__compiler *c, const epctx__step *s,
                                epctx__product_of *o, epctx__act *act) {
    const epctx__pool *p = &s->params.pool;
    const epctx__window *w = &p->window;
    (void)c, (void)act;
    epctx__set_product(o, p->batch, p->channels, p->channels, w);
    o->ones = true;
    return p->kind != EPCTX__SLIDE_MAX && w->top + w->left + w->bottom + w->right == 0 &&
           epctx__covered(w->out_h, w->kernel_h, w->stride_h, w->dilation_h) <= w->in_h &&
           epctx__covered(w->out_w, w->kernel_w, w->stride_w, w->dilation_w) <= w->in_w;
}

/* The mean of each plane of an image. */
static bool epctx__product_reduce(const epctx__compiler *c, const epctx__step *s,
                                  epctx__product_of *o, epctx__act *act) {
    const epctx__reduce *p = &s->params.reduce;
    const epctx__view v = epctx__tensor_view(&c->tensors[s->in[0]]);
    epctx__window row = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0};
    (void)act;
    row.in_w = row.kernel_w = p->count;
    epctx__set_product(o, (uint32_t)v.batch, (uint32_t)v.channels, (uint32_t)v.channels, &row);
    o->ones = true;
    return p->kind == EPCTX__REDUCE_MEAN && p->type == EPCTX_ONNX_FLOAT && p->inner == 1 &&
           p->count == v.plane;
}

/* A convolution, matrix product or average as a product of integers; false: it has no such form. */
static bool epctx__as_product(const epctx__compiler *c, const epctx__step *s, epctx__product_of *o,
                              epctx__act *act) {
    static bool (*const products[EPCTX__OP_COUNT])(const epctx__compiler *c, const epctx__step *s,
                                                   epctx__product_of *o, epctx__act *act) = {
#define EPCTX__OP_PRODUCT(id, text, ins, outs, required, type, name, cut, unit, fails, folds, \
                          slot, images, follow, lay, bytes, product) \
    epctx__product_##product,
        EPCTX_NPU_OP_LIST(EPCTX__OP_PRODUCT)
#undef EPCTX__OP_PRODUCT
    };
    const epctx__window *w = &o->p.window;
    memset(o, 0, sizeof *o);
    memset(act, 0, sizeof *act);
    o->weights = s->in[1];
    o->bias = s->in[2];
    o->step = 1;
    if (!products[s->op](c, s, o, act) || (uint64_t)w->kernel_h * w->kernel_w > 65536) return false;
    if (o->ones) {
        o->depthwise = true;
        o->weights = o->bias = EPCTX__NONE;
        o->scale = 1.0f / (float)o->taps;
    }
    o->row = o->depthwise ? o->taps : o->row;
    return true;
}

/* -- columns of the table of opcodes: what becomes of a step between Dequantize and Quantize --
 *
 * epctx__bytes_NAME replaces a step `s` and the Quantize `q` behind it, whose grid is `y`, by one
 * step `to` on bytes and sets `done`, if there is such a form. */

static epctx_status epctx__bytes_none(epctx__integers *w, const epctx__step *s,
                                      const epctx__step *q, const epctx__grid *y, epctx__step *to,
                                      bool *done) {
    (void)w, (void)s, (void)q, (void)y, (void)to, (void)done;
    return EPCTX_OK;
}

static epctx_status epctx__bytes_product(epctx__integers *w, const epctx__step *s,
                                         const epctx__step *q, const epctx__grid *y,
                                         epctx__step *to, bool *done) {
    epctx__compiler *c = w->c;
    const uint32_t out = to->out;
    epctx__product_of o;
    epctx__grid x;
    epctx__act act;
    uint32_t from;
    (void)q;
    if (!epctx__as_product(c, s, &o, &act) || (!o.ones && !c->tensors[o.weights].constant) ||
        !epctx__requant_of(y, &act, &o.p.y))
        return EPCTX_OK;
    EPCTX__TRY(epctx__bytes_behind(w, s->in[0], &from, &x));
    if (from == EPCTX__NONE) return EPCTX_OK;
    o.p.flip = epctx__flip_of(x.type);
    o.p.fill = (uint32_t)x.zero & 0xffu;
    *to = epctx__new_step(o.depthwise ? EPCTX__OP_INTEGER_DEPTHWISE : EPCTX__OP_INTEGER_CONV, from,
                          EPCTX__NONE, out);
    EPCTX__TRY(epctx__integer_operands(c, &o, &x, y, to, done));
    if (!*done) return EPCTX_OK;
    to->params.integer_conv = o.p;
    to->images = s->op != EPCTX__OP_GEMM;
    if (to->images) {
        EPCTX__TRY(epctx__shaped(c, s->in[0], &to->in[0]));
        EPCTX__TRY(epctx__shaped(c, s->out, &to->out));
    }
    return EPCTX_OK;
}

/* A sum, difference or product of two tensors of one shape. */
static epctx_status epctx__bytes_sum(epctx__integers *w, const epctx__step *s, const epctx__grid *y,
                                     epctx__step *to, bool *done) {
    epctx__compiler *c = w->c;
    const epctx__step *from[2];
    epctx__integer_add *p = &to->params.integer_add;
    epctx__requant fit;
    epctx__grid a, b;
    EPCTX__TRY(epctx__dequantized(w, s->in[0], &from[0], &a));
    EPCTX__TRY(epctx__dequantized(w, s->in[1], &from[1], &b));
    if (from[0] == NULL || from[1] == NULL || s->params.binary.kind > EPCTX__BINARY_MUL ||
        !epctx__same_shape(&c->tensors[s->in[0]].shape, &c->tensors[s->in[1]].shape) ||
        !epctx__requant_of(y, &s->params.binary.act, &fit))
        return EPCTX_OK;
    *to = epctx__new_step(EPCTX__OP_INTEGER_ADD, from[0]->in[0], from[1]->in[0], to->out);
    EPCTX__TRY(epctx__shaped(c, s->out, &to->in[0]));
    EPCTX__TRY(epctx__shaped(c, s->out, &to->in[1]));
    EPCTX__TRY(epctx__shaped(c, s->out, &to->out));
    p->y = fit;
    p->product = s->params.binary.kind == EPCTX__BINARY_MUL ? 1 : 0;
    p->count = (uint32_t)c->tensors[to->out].count;
    p->a_flip = epctx__flip_of(a.type);
    p->b_flip = epctx__flip_of(b.type);
    p->a_zero = a.zero + (int32_t)p->a_flip;
    p->b_zero = b.zero + (int32_t)p->b_flip;
    p->a_scale = a.scale;
    p->b_scale = s->params.binary.kind == EPCTX__BINARY_SUB ? -b.scale : b.scale;
    p->y_scale = y->scale;
    *done = true;
    return EPCTX_OK;
}

/* The values of `tensor` for all bytes, if the steps behind it compute each element from one that
 * the Dequantize `from` reads, and from constants; else NONE. */
static epctx_status epctx__for_bytes(epctx__integers *w, uint32_t tensor, uint32_t depth,
                                     const epctx__step **from, uint32_t *values) {
    epctx__compiler *c = w->c;
    const epctx__step *s = epctx__maker(w, tensor);
    const epctx__shape shape = {1, {256}};
    epctx__step to;
    epctx__grid g;
    uint32_t i, count;
    uint8_t *bytes;
    *values = EPCTX__NONE;
    if (c->tensors[tensor].constant && c->tensors[tensor].count == 1 && !c->tensors[tensor].outside)
        *values = tensor;
    if (s == NULL || depth == 0) return EPCTX_OK;
    to = *s;
    if (s->op == EPCTX__OP_DEQUANTIZE) {
        EPCTX__TRY(epctx__dequantized(w, tensor, &s, &g));
        if (s == NULL || (*from != NULL && (*from)->in[0] != s->in[0])) return EPCTX_OK;
        *from = s;
        EPCTX__TRY(epctx__add_constant(c, g.type, &shape, &bytes, &to.in[0]));
        for (i = 0; i < 256; i++) bytes[i] = (uint8_t)i;
        to.params.quantize.inner = 256;
    } else if (s->op == EPCTX__OP_UNARY || s->op == EPCTX__OP_BINARY) {
        count = s->op == EPCTX__OP_BINARY ? 2 : 1;
        for (i = 0; i < count; i++) {
            EPCTX__TRY(epctx__for_bytes(w, s->in[i], depth - 1, from, &to.in[i]));
            if (to.in[i] == EPCTX__NONE) return EPCTX_OK;
        }
        if (*from == NULL || c->tensors[(*from)->in[0]].count != c->tensors[tensor].count)
            return EPCTX_OK; /* one spreads over the other */
        if (count == 1) {
            to.params.unary.count = 256;
        } else {
            epctx__binary *p = &to.params.binary;
            p->rank = 1;
            p->dims[0] = 256;
            p->a[0] = c->tensors[to.in[0]].count != 1 ? 1 : 0;
            p->b[0] = c->tensors[to.in[1]].count != 1 ? 1 : 0;
        }
    } else {
        return EPCTX_OK;
    }
    EPCTX__TRY(epctx__new_tensor(c, EPCTX_ONNX_FLOAT, &shape, &to.out));
    *values = to.out;
    return epctx__fold_step(c, &to);
}

/* A function of one tensor's bytes, if only to another grid, as a table. */
static epctx_status epctx__bytes_lookup(epctx__integers *w, const epctx__step *s,
                                        const epctx__step *q, const epctx__grid *y, epctx__step *to,
                                        bool *done) {
    epctx__compiler *c = w->c;
    const epctx__shape shape = {1, {256}};
    const epctx_weightless_support weightless = c->weightless;
    const epctx__step *from = NULL;
    epctx__step round = *q;
    (void)s, (void)y;
    c->weightless = EPCTX_WEIGHTLESS_NONE; /* all is known now */
    EPCTX__TRY(epctx__for_bytes(w, q->in[0], 6, &from, &round.in[0]));
    if (round.in[0] != EPCTX__NONE && from != NULL &&
        c->tensors[from->in[0]].count == c->tensors[q->out].count) {
        round.params.quantize.inner = 256;
        EPCTX__TRY(epctx__new_tensor(c, c->tensors[q->out].elem, &shape, &round.out));
        EPCTX__TRY(epctx__fold_step(c, &round));
        *to = epctx__new_step(EPCTX__OP_LOOKUP, from->in[0], round.out, q->out);
        to->params.lookup.count = (uint32_t)c->tensors[q->out].count;
        EPCTX__TRY(epctx__shaped(c, q->out, &to->in[0]));
        *done = true;
    }
    c->weightless = weightless;
    return EPCTX_OK;
}

/* A function of one tensor's bytes, or a sum or product of those of two. */
static epctx_status epctx__bytes_binary(epctx__integers *w, const epctx__step *s,
                                        const epctx__step *q, const epctx__grid *y, epctx__step *to,
                                        bool *done) {
    EPCTX__TRY(epctx__bytes_lookup(w, s, q, y, to, done));
    return *done ? EPCTX_OK : epctx__bytes_sum(w, s, y, to, done);
}

/* A move of bytes between equal grids. */
static epctx_status epctx__bytes_move(epctx__integers *w, const epctx__step *s,
                                      const epctx__step *q, const epctx__grid *y, epctx__step *to,
                                      bool *done) {
    const epctx__step *from;
    const uint32_t out = to->out;
    epctx__grid x;
    (void)q;
    EPCTX__TRY(epctx__dequantized(w, s->in[0], &from, &x));
    *done = from != NULL && x.type == y->type && x.zero == y->zero && x.scale >= y->scale &&
            x.scale <= y->scale;
    if (*done) {
        *to = *s;
        to->in[0] = from->in[0];
        to->out = out;
        to->params.move.elem = 1;
    }
    return EPCTX_OK;
}

/* Whether one step alone reads the result of `s`. */
static bool epctx__read_once(const epctx__integers *w, const epctx__step *s) {
    const uint32_t out = w->c->tensors[s->out].buffer;
    return w->traffic[out].reads == 1 && w->c->buffers[out].place == EPCTX__SCRATCH;
}

/* Lets `s` be the step that computes its operand, if nothing else reads that; NULL: it is no such
 * step. */
static void epctx__step_before(const epctx__integers *w, const epctx__step **s) {
    *s = epctx__maker(w, (*s)->in[0]);
    if (*s != NULL && !epctx__read_once(w, *s)) *s = NULL;
}

/* What no integer step takes: exact sums of a noted product, which `s` computes, or a step
 * before if that is an activation, a Move, or one of the other. The Quantize `to` rounds them. */
static epctx_status epctx__sum_exactly(epctx__integers *w, const epctx__step *s,
                                       const epctx__grid *y, epctx__step *to, bool *done) {
    epctx__compiler *c = w->c;
    epctx__act act = {EPCTX__ACT_NONE, 0.0f, 0.0f};
    const epctx__shape shape = c->tensors[to->in[0]].shape;
    const epctx__step *move = NULL;
    epctx__step made;
    epctx__requant fit;
    uint32_t sums;
    memset(&fit, 0, sizeof fit);
    if (s->op == EPCTX__OP_UNARY) {
        act = s->params.unary.act;
        epctx__step_before(w, &s);
    }
    if (s != NULL && s->op == EPCTX__OP_MOVE) {
        move = s;
        epctx__step_before(w, &s);
    }
    if (s == NULL || s->factors == NULL || to->params.quantize.channels != 1) return EPCTX_OK;
    made = *s;
    if (epctx__act_of(&made)->kind != EPCTX__ACT_NONE) {
        if (act.kind != EPCTX__ACT_NONE) return EPCTX_OK;
        act = *epctx__act_of(&made);
    }
    if (act.kind != EPCTX__ACT_NONE && (!(y->scale > 0.0f) || !epctx__requant_of(y, &act, &fit)))
        return EPCTX_OK;
    c->lowering = true; /* factors and weights are folded */
    EPCTX__TRY(epctx__exact_product(c, s->factors, to->in[1], &sums));
    if (move != NULL) {
        made = *move;
        made.in[0] = sums;
        EPCTX__TRY(epctx__emit_new(c, &made, EPCTX_ONNX_FLOAT, &shape, &sums));
    }
    if (act.kind != EPCTX__ACT_NONE)
        EPCTX__TRY(epctx__emit_act(c, sums, EPCTX__ACT_CLIP, (float)(fit.low - fit.zero),
                                   (float)(fit.high - fit.zero), &sums));
    c->lowering = false;
    c->node = NULL;
    EPCTX__TRY(epctx__alias(c, sums, &shape, 0, &to->in[0]));
    EPCTX__TRY(epctx__scalar_float(c, 1.0f, &to->in[1]));
    *done = true;
    return EPCTX_OK;
}

/* Emits the step that replaces a Quantize, on bytes or exact sums; `done` false: it has no such
 * form. */
static epctx_status epctx__integer_step(epctx__integers *w, const epctx__step *q, bool *done) {
    static epctx_status (*const bytes[EPCTX__OP_COUNT])(epctx__integers * w, const epctx__step *s,
                                                        const epctx__step *q, const epctx__grid *y,
                                                        epctx__step *to, bool *done) = {
#define EPCTX__OP_BYTES(id, text, ins, outs, required, type, name, cut, unit, fails, folds, slot, \
                        images, follow, lay, bytes, product) \
    epctx__bytes_##bytes,
        EPCTX_NPU_OP_LIST(EPCTX__OP_BYTES)
#undef EPCTX__OP_BYTES
    };
    const epctx__step *s = epctx__maker(w, q->in[0]);
    epctx__step to = *q;
    epctx__grid y;
    if (s == NULL || (s->op != EPCTX__OP_DEQUANTIZE && !epctx__read_once(w, s))) return EPCTX_OK;
    EPCTX__TRY(epctx__grid_of(w->c, q, &y));
    if (y.scale > 0.0f) EPCTX__TRY(bytes[s->op](w, s, q, &y, &to, done));
    if (!*done) {
        to = *q;
        EPCTX__TRY(epctx__sum_exactly(w, s, &y, &to, done));
    }
    to.name = to.op == EPCTX__OP_LOOKUP || to.op == EPCTX__OP_QUANTIZE ? q->name : s->name;
    return *done ? epctx__emit(w->c, &to) : EPCTX_OK;
}

/* Replaces steps between Dequantize and Quantize by integer steps. The replaced steps remain,
 * without readers, until epctx__drop_dead removes them. */
static epctx_status epctx__to_integers(epctx__compiler *c) {
    const size_t count = c->step_count;
    epctx__integers w;
    size_t i;
    memset(&w, 0, sizeof w);
    w.c = c;
    c->node = NULL;
    w.steps = c->steps;
    w.buffers = c->buffer_count;
    EPCTX__TRY(epctx__traffic_of(c, &w.traffic));
    c->steps = NULL;
    c->step_count = c->step_room = 0;
    for (i = 0; i < count; i++) {
        const epctx__step *s = &w.steps[i];
        bool done = false;
        if (s->op == EPCTX__OP_QUANTIZE) EPCTX__TRY(epctx__integer_step(&w, s, &done));
        if (!done) EPCTX__TRY(epctx__emit(c, s));
    }
    epctx__drop_dead(c);
    return EPCTX_OK;
}

/* ============================================================
 * >>passes: from a graph to the steps of a plan
 * ============================================================ */

/* From nodes to steps. */
static epctx_status epctx__lower_graph(epctx__compiler *c) {
    size_t i;
    for (i = 0; i < c->graph->input_count; i++) {
        uint32_t id = epctx_map_get(&c->scope.names, c->graph->inputs[i].name);
        if (id == EPCTX_MAP_NONE || c->tensors[id].elem == 0 || c->tensors[id].constant)
            return EPCTX__REFUSE(c,
                                 "graph input '%S': expected floats of 16 to 64 bits, integers "
                                 "or bool of fixed shape and rank <= %u, found %s",
                                 &c->graph->inputs[i].name, (uint64_t)EPCTX_NPU_MAX_RANK,
                                 epctx_elem_name(c->graph->inputs[i].elem_type));
    }
    return epctx__lower_nodes(c);
}

/* Tells the caller what a pass left. */
static void epctx__trace(const epctx__compiler *c, const char *pass) {
    epctx_npu_step out;
    size_t i, j;
    memset(&out, 0, sizeof out);
    out.pass = pass;
    for (i = 0; i < c->step_count; i++) {
        const epctx__step *s = &c->steps[i];
        const epctx__tensor *t = &c->tensors[s->out];
        out.op = epctx__ops[s->op].name;
        out.node = s->name;
        out.in_count = epctx__ops[s->op].in_count;
        memcpy(out.in, s->in, sizeof out.in);
        out.out = s->out;
        out.constants = 0;
        for (j = 0; j < out.in_count; j++) {
            const bool known = s->in[j] != EPCTX__NONE && c->tensors[s->in[j]].constant;
            out.constants |= known ? 1u << j : 0;
        }
        out.result.name = t->name;
        out.result.elem_type = t->elem;
        out.result.rank = (int32_t)t->shape.rank;
        out.result.dims = t->shape.dims;
        out.memory = t->buffer;
        out.offset = t->offset + c->buffers[t->buffer].offset;
        c->npu->opts.trace_fn(c->npu->opts.trace_user, &out);
        out.index++;
    }
}

static epctx_status epctx__compile_graph(epctx__compiler *c) {
    static const struct {
        const char *name;
        epctx_status (*pass_fn)(epctx__compiler *c);
    } passes[] = {
        {"import", epctx__import},        {"lower", epctx__lower_graph}, {"fuse", epctx__fuse},
        {"integers", epctx__to_integers}, {"moves", epctx__join_moves},  {"layout", epctx__lay_out},
        {"pack", epctx__pack_weights},    {"refine", epctx__refine},     {"plan", epctx__plan}};
    size_t i;
    for (i = 0; i < sizeof passes / sizeof passes[0]; i++) {
        EPCTX__TRY(passes[i].pass_fn(c));
        if (c->npu != NULL && c->npu->opts.trace_fn != NULL) epctx__trace(c, passes[i].name);
    }
    return EPCTX_OK;
}

/* ============================================================
 * >>emit: writing the blob
 *
 * All graphs of a context share one epctx__build: buffers of records (the directory), words,
 * strings and weights, which grow side by side. For each graph epctx__write_graph appends names,
 * the I/O table and the commands. epctx__write_step writes a command: opcode, operands as place and
 * offset, then the parameter struct word by word. When the last graph is there, epctx__put_sections
 * joins the buffers, epctx__put_binary appends the weights, and epctx__put_header writes sizes and
 * checksums.
 *
 * Positions count from the end of the records until the number of graphs is known;
 * epctx__put_sections then adds the size of the records to each. Neither words nor strings may
 * exceed 4 GiB, so that each position fits 32 bits. The bytes are little-endian (epctx__to_host),
 * hold no time and no address, and the backend keeps the records in the order of their names, so
 * the same graphs give the same blob on every machine.
 *
 * Weights are most of the blob, so epctx__write_weight makes each of them where it stays, packed or
 * copied straight from the model: epctx__reserve_weights has made room, once for a graph. The
 * weight table of epctx.h then looks for equal bytes. If it knows them, the command refers to the
 * older ones and the new bytes are not counted, so the next weight overwrites them. If the caller's
 * buffer is empty, epctx__put_binary moves the weights up within their own memory and hands that
 * over: the weights exist once.
 *
 * In a weightless context the folded steps (epctx__record) become a graph as well:
 * epctx__write_maker gives it the initializers as inputs and the missing weights as outputs, plans
 * its memory and writes it like any other graph.
 * ============================================================ */

/* A context under construction. Records and words are in the host's order; their positions count
 * from the end of the records, and makers from 1, until all graphs are there. */
typedef struct epctx__build {
    epctx_allocator allocator;
    epctx_weightless_support weightless;
    const epctx_hooks *hooks;     /* or NULL */
    epctx_buffer records, makers; /* of graphs, and of those that make their weights */
    epctx_buffer words, strings;
    epctx_weights table;  /* kind is the size of an element */
    epctx_buffer weights; /* the bytes of the places in `table` */
    epctx_arena arena;    /* the results of types_fn */
} epctx__build;

static epctx_status epctx__append(epctx__compiler *c, epctx_buffer *to, const void *data,
                                  size_t size) {
    return epctx_buffer_append(to, data, size) == EPCTX_OK ? EPCTX_OK : epctx__no_memory(c, size);
}

/* Adds a name to the strings; `to` gets its place. */
static epctx_status epctx__name(epctx__compiler *c, epctx__build *b, epctx_str name, uint32_t *to) {
    to[0] = (uint32_t)b->strings.size;
    to[1] = (uint32_t)name.size;
    return name.size > 0 ? epctx__append(c, &b->strings, name.data, name.size) : EPCTX_OK;
}

static epctx_str epctx__string(const epctx__build *b, const uint32_t *name) {
    epctx_str out;
    out.data = (const char *)b->strings.data + name[0];
    out.size = name[1];
    return out;
}

/* The fetch_fn of the weight table. */
static epctx_status epctx__fetch(void *user, uint64_t offset, size_t size, const uint8_t **data,
                                 epctx_error *error) {
    (void)size, (void)error;
    *data = ((const epctx__build *)user)->weights.data + (size_t)offset;
    return EPCTX_OK;
}

/* Memory for `more` bytes, which epctx_buffer_append would double and copy time and again. */
static epctx_status epctx__reserve(epctx__compiler *c, epctx_buffer *out, uint64_t more) {
    epctx_buffer room = *out;
    if (more <= out->capacity - out->size) return EPCTX_OK;
    room.capacity = more < SIZE_MAX - out->size ? out->size + (size_t)more : SIZE_MAX;
    room.data = (uint8_t *)out->allocator.alloc_fn(out->allocator.user, room.capacity);
    if (room.data == NULL) return epctx__no_memory(c, more);
    if (out->size > 0) memcpy(room.data, out->data, out->size);
    epctx_buffer_free(out);
    *out = room;
    return EPCTX_OK;
}

static bool epctx__is_weight(const epctx__compiler *c, const epctx__step *s, uint32_t at) {
    const uint32_t id = s->in[at];
    return id != EPCTX__NONE && c->tensors[id].constant && !c->tensors[id].outside;
}

/* Bytes of operand `at` of `s`, a weight, as the context holds it. */
static uint64_t epctx__weight_size(const epctx__compiler *c, const epctx__step *s, uint32_t at) {
    const epctx__tensor *t = &c->tensors[s->in[at]];
    const epctx__pack *p = &s->pack;
    return at == 1 && s->packs
               ? epctx__mul(epctx__packed(p->batch, p->rows, p->depth, p->block), sizeof(float))
               : t->count * epctx__stored_size(t->elem);
}

/* Memory for what the steps add to the context, so that each weight is written once, where it
 * stays. A weight of several steps counts once. */
static epctx_status epctx__reserve_weights(epctx__compiler *c, epctx__build *b) {
    uint64_t more = 4096; /* header and names of the graph */
    uint8_t *counted;
    size_t i;
    uint32_t j;
    EPCTX__MAKE(c, counted, uint8_t, c->tensor_count);
    for (i = 0; i < c->step_count; i++) {
        const epctx__step *s = &c->steps[i];
        more += epctx__command_size(&epctx__ops[s->op]) * 4 + s->name.size;
        for (j = 0; j < EPCTX__MAX_IN; j++) {
            if (epctx__is_weight(c, s, j) && !counted[s->in[j]]) {
                counted[s->in[j]] = 1;
                more += sizeof(epctx__weight_record) + epctx__aligned(epctx__weight_size(c, s, j));
            }
        }
    }
    return epctx__reserve(c, &b->weights, more);
}

/* Writes operand `at` of `s`, a weight, behind the others, where it stays if its bytes are new. */
static epctx_status epctx__write_weight(epctx__compiler *c, epctx__build *b, const epctx__step *s,
                                        uint32_t at, uint32_t *index) {
    const size_t size = (size_t)epctx__weight_size(c, s, at);
    const size_t pad = (size_t)epctx__aligned(b->weights.size) - b->weights.size;
    const epctx__tensor *t = &c->tensors[s->in[at]];
    const uint32_t elem = epctx__stored_size(t->elem);
    epctx_weight place;
    epctx__args args;
    uint8_t *weight;
    memset(&args, 0, sizeof args);
    EPCTX__TRY(epctx__reserve(c, &b->weights, size < SIZE_MAX - pad ? pad + size : SIZE_MAX));
    weight = b->weights.data + b->weights.size + pad;
    args.out[0] = weight;
    args.in[0] = t->raw; /* it may be unaligned: nothing is copied */
    if (t->data != NULL || epctx__big_endian()) EPCTX__TRY(epctx__data(c, s->in[at], &args.in[0]));
    if (at == 1 && s->packs)
        (void)epctx__run_pack(&s->pack, &args); /* it cannot fail */
    else if (size > 0)
        memcpy(weight, args.in[0], size);
    if (b->hooks != NULL && b->hooks->spent_fn != NULL && args.in[0] == t->raw)
        b->hooks->spent_fn(b->hooks->user, args.in[0], (size_t)t->count * elem);
    epctx__to_host(weight, size, elem);
    EPCTX__TRY(epctx_weights_add(&b->table, weight, size, EPCTX_NPU_ALIGN, elem, &place, c->error));
    if (place.fresh) {
        memset(b->weights.data + b->weights.size, 0, (size_t)place.offset - b->weights.size);
        b->weights.size = (size_t)place.offset + size;
        c->stats.weight_size += size;
    } else {
        c->stats.weight_saved += size;
    }
    *index = place.index;
    return EPCTX_OK;
}

/* Where tensor `id` is, unless it is a weight. */
static epctx__operand epctx__operand_of(const epctx__compiler *c, uint32_t id) {
    epctx__operand o = {EPCTX__NOWHERE, 0, 0};
    if (id != EPCTX__NONE && c->tensors[id].outside) {
        o.place = EPCTX__IN_MADE;
        o.index = c->outputs[c->tensors[id].whole];
        o.offset = c->tensors[id].at;
    } else if (id != EPCTX__NONE) {
        const epctx__buffer *buffer = &c->buffers[c->tensors[id].buffer];
        o.place = (uint32_t)buffer->place;
        o.index = buffer->index;
        o.offset = c->tensors[id].offset + buffer->offset;
    }
    return o;
}

static void epctx__set_pair(uint32_t *words, uint64_t value) {
    words[0] = (uint32_t)(value & UINT32_MAX);
    words[1] = (uint32_t)(value >> 32);
}

static epctx_status epctx__write_step(epctx__compiler *c, epctx__build *b, const epctx__step *s) {
    const epctx__op_info *op = &epctx__ops[s->op];
    const uint32_t count = op->in_count + op->out_count, size = epctx__command_size(op);
    uint32_t words[EPCTX__COMMAND_WORDS + (EPCTX__MAX_IN + EPCTX__MAX_OUT) * EPCTX__OPERAND_WORDS +
                   EPCTX__WORDS(epctx__params)];
    uint32_t *to = words + EPCTX__COMMAND_WORDS, i;
    words[0] = (uint32_t)s->op;
    words[1] = size;
    EPCTX__TRY(epctx__name(c, b, s->name, words + 2));
    for (i = 0; i < count; i++, to += EPCTX__OPERAND_WORDS) {
        epctx__operand o = {EPCTX__WEIGHT, 0, 0};
        if (i < op->in_count && epctx__is_weight(c, s, i)) {
            EPCTX__TRY(epctx__write_weight(c, b, s, i, &o.index));
        } else if (i <= op->in_count) {
            o = epctx__operand_of(c, i < op->in_count ? s->in[i] : s->out);
        } else {
            o.place = EPCTX__SCRATCH;
            o.offset = c->buffers[s->temporary].offset;
        }
        to[0] = o.place;
        to[1] = o.index;
        epctx__set_pair(to + 2, o.offset);
    }
    memcpy(to, &s->params, op->param_words * sizeof *to);
    return epctx__append(c, &b->words, words, size * sizeof *words);
}

/* Writes input or output `at`; outputs follow the inputs. */
static epctx_status epctx__write_value(epctx__compiler *c, epctx__build *b, epctx_str name,
                                       size_t at) {
    const epctx__tensor *t =
        &c->tensors[c->ios != NULL ? c->ios[at] : epctx_map_get(&c->scope.names, name)];
    epctx__value_record r;
    uint32_t i;
    memset(&r, 0, sizeof r);
    EPCTX__TRY(epctx__name(c, b, name, r.name));
    r.elem_type = (uint32_t)t->elem;
    r.rank = t->shape.rank;
    for (i = 0; i < r.rank; i++) r.dims[i] = (uint32_t)t->shape.dims[i];
    return epctx__append(c, &b->words, &r, sizeof r);
}

/* Appends the compiled graph to the context and its record to `records`. */
static epctx_status epctx__write_graph(epctx__compiler *c, epctx__build *b, epctx_buffer *records,
                                       epctx_str name, uint64_t hash, uint32_t maker) {
    epctx__graph_record r;
    size_t i;
    memset(&r, 0, sizeof r);
    EPCTX__TRY(epctx__name(c, b, name, r.name));
    epctx__set_pair(r.hash, hash);
    epctx__set_pair(r.scratch, c->stats.scratch_size);
    r.maker = maker;
    r.makes = records == &b->makers;
    r.io_at = (uint32_t)(b->words.size / 4);
    r.inputs = (uint32_t)c->graph->input_count;
    r.outputs = (uint32_t)c->graph->output_count;
    for (i = 0; i < c->graph->input_count; i++)
        EPCTX__TRY(epctx__write_value(c, b, c->graph->inputs[i].name, i));
    for (i = 0; i < c->graph->output_count; i++)
        EPCTX__TRY(epctx__write_value(c, b, c->graph->outputs[i].name, c->graph->input_count + i));
    r.commands_at = (uint32_t)(b->words.size / 4);
    EPCTX__TRY(epctx__reserve_weights(c, b));
    for (i = 0; i < c->step_count; i++) EPCTX__TRY(epctx__write_step(c, b, &c->steps[i]));
    r.commands = (uint32_t)c->step_count;
    r.command_words = (uint32_t)(b->words.size / 4) - r.commands_at;
    c->stats.commands = r.commands;
    if (b->words.size > UINT32_MAX || b->strings.size > UINT32_MAX)
        return epctx_fail(c->error, EPCTX_ERR_LIMIT, "commands or names of a context exceed 4 GiB");
    return epctx__append(c, records, &r, sizeof r);
}

/* -- weightless: the folded steps, as a graph from initializers to weights -- */

/* Numbers the constants outside the blob that steps read: they become the maker's outputs. */
static epctx_status epctx__number_outputs(epctx__compiler *c, uint32_t *count) {
    size_t i;
    uint32_t j;
    EPCTX__MAKE(c, c->outputs, uint32_t, c->tensor_count);
    *count = 0;
    for (i = 0; i < c->tensor_count; i++) c->outputs[i] = EPCTX__NONE;
    for (i = 0; i < c->step_count; i++) {
        for (j = 0; j < EPCTX__MAX_IN; j++) {
            uint32_t id = c->steps[i].in[j];
            if (id != EPCTX__NONE && c->tensors[id].outside &&
                c->outputs[c->tensors[id].whole] == EPCTX__NONE)
                c->outputs[c->tensors[id].whole] = (*count)++;
        }
    }
    return EPCTX_OK;
}

/* Tensors outside the blob, constants of `from`, are computed in the maker: initializers are its
 * inputs, what `from` reads its outputs; unchanged initializers are copied. */
static epctx_status epctx__making_steps(epctx__compiler *m, const epctx__compiler *from) {
    const uint32_t given = (uint32_t)from->graph->initializer_count;
    const uint32_t count = (uint32_t)from->tensor_count;
    uint32_t i, id;
    EPCTX__MAKE(m, m->tensors, epctx__tensor, count);
    EPCTX__MAKE(m, m->steps, epctx__step, from->make_count);
    memcpy(m->tensors, from->tensors, count * sizeof *m->tensors);
    m->tensor_count = m->tensor_room = count;
    m->step_room = from->make_count;
    for (i = 0; i < from->make_count; i++)
        if (from->tensors[from->makes[i].out].outside) m->steps[m->step_count++] = from->makes[i];
    for (i = 0; i < count; i++) {
        epctx__tensor *t = &m->tensors[i];
        if (!t->outside) continue;
        if (t->whole == i) {
            EPCTX__TRY(epctx__add_buffer(m, t->count * epctx__stored_size(t->elem), &t->buffer));
            if (i < given) m->buffers[t->buffer].place = EPCTX__IN_INPUT;
        }
        t->outside = t->constant = false;
        t->buffer = m->tensors[t->whole].buffer;
        t->offset = t->at;
    }
    for (i = 0; i < count; i++) {
        if (from->outputs[i] == EPCTX__NONE) continue;
        id = i;
        if (i < given) {
            const epctx__shape shape = m->tensors[i].shape;
            EPCTX__TRY(epctx__add_tensor(m, m->tensors[i].elem, &shape, &id));
            EPCTX__TRY(epctx__emit_copy(m, i, id));
        }
        m->outputs[from->outputs[i]] = id;
        m->buffers[m->tensors[id].buffer].place = EPCTX__OUTPUT;
        m->buffers[m->tensors[id].buffer].index = from->outputs[i];
    }
    epctx__drop_dead(m);
    return EPCTX_OK;
}

/* Writes the graph that makes the weights of `from`; `maker` 0: it needs none. */
static epctx_status epctx__write_maker(epctx__compiler *from, epctx__build *b, uint32_t *maker) {
    const size_t given = from->graph->initializer_count;
    epctx_graph graph;
    epctx__compiler m;
    epctx_value *values; /* names of the inputs; outputs are unnamed */
    uint32_t count, *ios;
    size_t i;
    *maker = 0;
    EPCTX__TRY(epctx__number_outputs(from, &count));
    if (count == 0) return EPCTX_OK;
    memset(&graph, 0, sizeof graph);
    m = epctx__compiler_of(&graph, from->arch, from->arena, from->error);
    EPCTX__MAKE(from, ios, uint32_t, given + count);
    EPCTX__MAKE(from, values, epctx_value, given + count);
    EPCTX__MAKE(from, m.outputs, uint32_t, count);
    EPCTX__TRY(epctx__making_steps(&m, from));
    for (i = 0; i < given; i++) {
        const uint32_t buffer = m.tensors[i].buffer;
        if (!from->tensors[i].outside || !m.buffers[buffer].needed) continue;
        m.buffers[buffer].index = (uint32_t)graph.input_count;
        values[graph.input_count].name = from->tensors[i].name;
        ios[graph.input_count++] = (uint32_t)i;
    }
    memcpy(ios + graph.input_count, m.outputs, count * sizeof *ios);
    m.ios = ios;
    graph.inputs = values;
    graph.outputs = values + graph.input_count;
    graph.output_count = count;
    EPCTX__TRY(epctx__plan(&m));
    *maker = (uint32_t)(b->makers.size / sizeof(epctx__graph_record)) + 1;
    return epctx__write_graph(&m, b, &b->makers, epctx_str_of(NULL), 0, 0);
}

/* Appends all sections but the weights; epctx__put_header fills the header later. */
static epctx_status epctx__put_sections(epctx__compiler *c, epctx__build *b, epctx_buffer *out) {
    const size_t size = b->records.size + b->makers.size;
    epctx_weight w;
    uint32_t index;
    size_t i;
    EPCTX__TRY(epctx__append(c, out, NULL, EPCTX_NPU_HEADER_SIZE));
    EPCTX__TRY(epctx__append(c, out, b->records.data, b->records.size));
    EPCTX__TRY(epctx__append(c, out, b->makers.data, b->makers.size));
    for (i = 0; i < size; i += sizeof(epctx__graph_record)) {
        epctx__graph_record *r =
            (epctx__graph_record *)(void *)(out->data + EPCTX_NPU_HEADER_SIZE + i);
        r->io_at += (uint32_t)(size / 4);
        r->commands_at += (uint32_t)(size / 4);
        if (r->maker != 0) r->maker += (uint32_t)(b->records.size / sizeof *r);
    }
    EPCTX__TRY(epctx__append(c, out, b->words.data, b->words.size));
    for (index = 0; epctx_weights_at(&b->table, index, &w); index++) {
        epctx__weight_record r = {{0, 0}, {0, 0}, w.kind, 0};
        epctx__set_pair(r.offset, w.offset);
        epctx__set_pair(r.size, w.size);
        EPCTX__TRY(epctx__append(c, out, &r, sizeof r));
    }
    epctx__to_host(out->data + EPCTX_NPU_HEADER_SIZE, out->size - EPCTX_NPU_HEADER_SIZE, 4);
    EPCTX__TRY(epctx__append(c, out, b->strings.data, b->strings.size));
    return epctx__append(c, out, NULL, (size_t)(epctx__aligned(out->size) - out->size));
}

/* Appends the binary: `head`, then the weights, in the weights' own memory where `out` is empty. */
static epctx_status epctx__put_binary(epctx__compiler *c, epctx__build *b, const epctx_buffer *head,
                                      epctx_buffer *out) {
    epctx_buffer *weights = &b->weights;
    if (out->size == 0 && out->allocator.alloc_fn == weights->allocator.alloc_fn &&
        out->allocator.user == weights->allocator.user) {
        EPCTX__TRY(epctx__reserve(c, weights, head->size));
        memmove(weights->data + head->size, weights->data, weights->size);
        memcpy(weights->data, head->data, head->size);
        weights->size += head->size;
        epctx_buffer_free(out);
        *out = *weights;
        epctx_buffer_init(weights, &b->allocator);
        return EPCTX_OK;
    }
    EPCTX__TRY(epctx__reserve(c, out, head->size + weights->size));
    EPCTX__TRY(epctx__append(c, out, head->data, head->size));
    return epctx__append(c, out, weights->data, weights->size);
}

static void epctx__put_header(const epctx__build *b, const epctx_npu_arch *arch, uint8_t *to,
                              size_t size) {
    const size_t records = b->records.size + b->makers.size;
    const uint8_t *words = to + EPCTX_NPU_HEADER_SIZE;
    epctx__header h;
    memset(&h, 0, sizeof h);
    memcpy(h.magic, epctx__magic, sizeof h.magic);
    h.format = EPCTX_NPU_FORMAT;
    h.header_bytes = EPCTX_NPU_HEADER_SIZE;
    memcpy(h.sdk_version, EPCTX_NPU_SDK_VERSION, sizeof EPCTX_NPU_SDK_VERSION - 1);
    memcpy(h.architecture, arch->name, strlen(arch->name));
    h.graphs = (uint32_t)(records / sizeof(epctx__graph_record));
    h.weight_count = (uint32_t)b->table.stats.stored;
    h.size = size;
    h.words = (records + b->words.size) / 4 + h.weight_count * EPCTX__WORDS(epctx__weight_record);
    h.strings = EPCTX_NPU_HEADER_SIZE + h.words * 4;
    h.string_bytes = b->strings.size;
    h.weight_bytes = b->table.stats.stored_bytes + b->table.stats.padding;
    h.weights = size - h.weight_bytes;
    h.weight_sum = epctx_hash(to + h.weights, (size_t)h.weight_bytes, 0);
    h.meta_sum = epctx__meta_sum(&h, words, to + h.strings);
    epctx__header_to_host(&h);
    memcpy(to, &h, sizeof h);
}

#endif /* EPCTX_NPU_NO_COMPILER */

/* ============================================================
 * >>backend
 * ============================================================ */

#ifndef EPCTX_NPU_NO_COMPILER

/* The type of output `j` of an If that is not taken: that of both branches if they agree. */
static void epctx__guess(const epctx_node *node, size_t j, epctx_value *value) {
    const epctx_attr *a = epctx_node_attr(node, "then_branch");
    const epctx_attr *b = epctx_node_attr(node, "else_branch");
    epctx__shape shape, other;
    const epctx_str name = value->name;
    if (epctx_str_is(node->op_type, "If") && !epctx__value_usable(value, &shape) && a != NULL &&
        b != NULL && a->g != NULL && b->g != NULL && j < a->g->output_count &&
        j < b->g->output_count && a->g->outputs[j].elem_type == b->g->outputs[j].elem_type &&
        epctx__value_usable(&a->g->outputs[j], &shape) &&
        epctx__value_usable(&b->g->outputs[j], &other) && epctx__same_shape(&shape, &other)) {
        *value = a->g->outputs[j];
        value->name = name;
    }
}

/* Determines which nodes of a graph compile; the result is in its arena. */
typedef struct epctx__judging {
    epctx_npu *npu;
    const epctx_graph *graph;
    epctx_map declared; /* position among its values, followed by its outputs */
    epctx_arena arena;
    uint8_t *taken;     /* one for each node of the graph or of a partition */
    epctx_error reason; /* why the last such node does not compile */
    epctx_error *error;
} epctx__judging;

static epctx_status epctx__no_analysis(epctx_error *error) {
    return epctx_fail(error, EPCTX_ERR_NOMEM, "out of memory: graph analysis");
}

/* The declared type of a value, also of one in a partition. */
static epctx_value epctx__declared(const epctx__judging *j, epctx_str name) {
    const uint32_t i = epctx_map_get(&j->declared, name);
    epctx_value value;
    if (i != EPCTX_MAP_NONE) return epctx__value_at(j->graph, i);
    memset(&value, 0, sizeof value);
    value.name = name;
    value.rank = -1;
    return value;
}

static epctx_status epctx__judging_begin(epctx__judging *j, void *self, const epctx_graph *graph,
                                         epctx_error *error) {
    size_t i;
    epctx_error_clear(error);
    memset(j, 0, sizeof *j);
    j->npu = (epctx_npu *)self;
    j->graph = graph;
    j->error = error;
    epctx_arena_init(&j->arena, &j->npu->allocator);
    epctx_map_init(&j->declared, &j->arena);
    j->taken = (uint8_t *)epctx_arena_alloc(&j->arena, graph->node_count + 1);
    if (j->taken == NULL) return epctx__no_analysis(error);
    for (i = graph->value_count + graph->output_count; i-- > 0;) /* the first of a name stays */
        if (epctx_map_put(&j->declared, epctx__value_at(graph, i).name, (uint32_t)i) != EPCTX_OK)
            return epctx__no_analysis(error);
    return EPCTX_OK;
}

/* Sets taken[i] for the first `count` nodes of the graph or a partition: whether node i compiles if
 * others run the nodes before it that do not. `end` (may be NULL) gets the compiler. */
static epctx_status epctx__judge(epctx__judging *judging, const epctx_graph *graph, size_t count,
                                 epctx__compiler *end) {
    epctx__compiler c =
        epctx__compiler_of(graph, judging->npu->arch, &judging->arena, judging->error);
    size_t i, j;
    c.declared = &judging->declared;
    c.whole = judging->graph;
    EPCTX__TRY(epctx__import(&c));
    for (i = 0; i < count; i++) {
        const epctx_node *node = &graph->nodes[i];
        const size_t steps = c.step_count;
        epctx_status status;
        epctx_error_clear(&judging->reason);
        c.error = &judging->reason;
        status = epctx__lower_node(&c, node);
        if (status != EPCTX_OK) epctx__blame(&c, node);
        c.error = judging->error;
        judging->taken[i] = status == EPCTX_OK;
        if (status == EPCTX_ERR_NOMEM) return epctx__no_memory(&c, judging->arena.missing);
        c.step_count = status == EPCTX_OK ? c.step_count : steps;
        for (j = 0; status != EPCTX_OK && j < node->output_count; j++) {
            epctx_value value = epctx__declared(judging, node->outputs[j]);
            if (value.name.size > 0) {
                epctx__guess(node, j, &value);
                EPCTX__TRY(epctx__import_value(&c, &value, EPCTX__IN_INPUT, 0));
            }
        }
    }
    if (end != NULL) *end = c;
    return EPCTX_OK;
}

/* Types inferred by lowering, not declared in the graph. */
static epctx_status epctx__infer_types(epctx__judging *judging, epctx_arena *arena,
                                       epctx_value **inferred, size_t *count) {
    const epctx_graph *graph = judging->graph;
    epctx__compiler c;
    epctx__shape shape;
    size_t i, j, most = 1;
    memset(&c, 0, sizeof c);
    for (i = 0; i < graph->node_count; i++) most += graph->nodes[i].output_count;
    *inferred = (epctx_value *)epctx_arena_array(arena, most, sizeof **inferred);
    if (*inferred == NULL) return epctx__no_analysis(judging->error);
    EPCTX__TRY(epctx__judge(judging, graph, graph->node_count, &c));
    for (i = 0; i < graph->node_count; i++) {
        for (j = 0; j < graph->nodes[i].output_count; j++) {
            epctx_value value = epctx__declared(judging, graph->nodes[i].outputs[j]);
            const uint32_t id = epctx_map_get(&c.scope.names, value.name);
            const epctx__tensor *t = id != EPCTX_MAP_NONE ? &c.tensors[id] : NULL;
            int64_t *dims;
            if (t == NULL || t->elem == 0 || epctx__value_usable(&value, &shape)) continue;
            dims = (int64_t *)epctx_arena_alloc(arena, sizeof t->shape.dims);
            if (dims == NULL) return epctx__no_analysis(judging->error);
            memcpy(dims, t->shape.dims, sizeof t->shape.dims);
            value.elem_type = t->elem;
            value.rank = (int32_t)t->shape.rank;
            value.dims = dims;
            (*inferred)[(*count)++] = value;
        }
    }
    return EPCTX_OK;
}

static epctx_status epctx__infer(void *self, const epctx_graph *graph, epctx_arena *arena,
                                 epctx_value **inferred, size_t *inferred_count,
                                 epctx_error *error) {
    epctx__judging judging;
    epctx_status status = epctx__judging_begin(&judging, self, graph, error);
    *inferred_count = 0;
    if (status == EPCTX_OK) status = epctx__infer_types(&judging, arena, inferred, inferred_count);
    epctx_arena_free(&judging.arena);
    return status;
}

/* Checks every partition by itself and releases the nodes that do not compile in it. */
static epctx_status epctx__judge_parts(epctx__judging *judging, uint8_t *take, bool *changed) {
    const epctx_graph *graph = judging->graph;
    epctx_partition *parts;
    uint8_t *given; /* nodes released, by id */
    size_t count, i, j;
    given = (uint8_t *)epctx_arena_alloc(&judging->arena, graph->node_count + 1);
    if (given == NULL) return epctx__no_analysis(judging->error);
    EPCTX__TRY(epctx_graph_partition(graph, take, &judging->arena, &parts, &count, judging->error));
    for (i = 0; i < count; i++) {
        const epctx_graph *part = &parts[i].graph;
        EPCTX__TRY(epctx__judge(judging, part, part->node_count, NULL));
        for (j = 0; j < part->node_count; j++) given[part->nodes[j].id] = !judging->taken[j];
    }
    *changed = false;
    for (i = 0; i < graph->node_count; i++) {
        *changed = *changed || (take[i] != 0 && given[graph->nodes[i].id] != 0);
        take[i] = given[graph->nodes[i].id] != 0 ? 0 : take[i];
    }
    return EPCTX_OK;
}

/* Rounds before all nodes are released; usually one is enough. */
#define EPCTX__ROUNDS 50

/* A partition knows less than the whole graph: shapes computed in others may be missing at its
 * boundary. Releases nodes that no longer compile until every partition compiles. */
static epctx_status epctx__capability(void *self, const epctx_graph *graph, uint8_t *take,
                                      epctx_error *error) {
    epctx__judging judging;
    epctx_status status = epctx__judging_begin(&judging, self, graph, error);
    bool changed = true;
    int round;
    if (status == EPCTX_OK) status = epctx__judge(&judging, graph, graph->node_count, NULL);
    if (status == EPCTX_OK) memcpy(take, judging.taken, graph->node_count);
    for (round = 0; status == EPCTX_OK && changed && round < EPCTX__ROUNDS; round++) {
        epctx_arena_free(&judging.arena); /* memory of the previous round */
        status = epctx__judging_begin(&judging, self, graph, error);
        if (status == EPCTX_OK) status = epctx__judge_parts(&judging, take, &changed);
    }
    if (changed) memset(take, 0, graph->node_count);
    epctx_arena_free(&judging.arena);
    return status;
}

/* Why node `index` is not compiled: refused by the first pass, or its partition cannot compile. */
static epctx_status epctx__explain(void *self, const epctx_graph *graph, size_t index,
                                   epctx_error *error) {
    epctx__judging judging;
    epctx_status status = epctx__judging_begin(&judging, self, graph, error);
    if (status == EPCTX_OK) status = epctx__judge(&judging, graph, index + 1, NULL);
    if (status == EPCTX_OK && judging.taken[index]) {
        status = epctx_fail(error, EPCTX_ERR_UNSUPPORTED,
                            "its partition reads a value whose shape the model does not declare: "
                            "run shape inference on the model");
        epctx_blame(error, NULL, &graph->nodes[index].name, NULL);
    } else if (status == EPCTX_OK) {
        status = judging.reason.status;
        if (error != NULL) *error = judging.reason;
    }
    epctx_arena_free(&judging.arena);
    return status;
}

static void epctx__discard(void *self, void *build) {
    epctx__build *b = (epctx__build *)build;
    (void)self;
    if (b == NULL) return;
    epctx_buffer_free(&b->records);
    epctx_buffer_free(&b->makers);
    epctx_buffer_free(&b->words);
    epctx_buffer_free(&b->strings);
    epctx_buffer_free(&b->weights);
    epctx_weights_free(&b->table);
    epctx_arena_free(&b->arena);
    b->allocator.free_fn(b->allocator.user, b);
}

static epctx_status epctx__begin(void *self, void **build, epctx_error *error) {
    const epctx_npu *npu = (const epctx_npu *)self;
    epctx_weights_opts opts;
    epctx__build *b;
    epctx_error_clear(error);
    b = (epctx__build *)npu->allocator.alloc_fn(npu->allocator.user, sizeof *b);
    *build = b;
    if (b == NULL)
        return epctx_fail(error, EPCTX_ERR_NOMEM, "out of memory: %u bytes", (uint64_t)sizeof *b);
    memset(b, 0, sizeof *b);
    b->allocator = npu->allocator;
    epctx_buffer_init(&b->records, &npu->allocator);
    epctx_buffer_init(&b->makers, &npu->allocator);
    epctx_buffer_init(&b->words, &npu->allocator);
    epctx_buffer_init(&b->strings, &npu->allocator);
    epctx_buffer_init(&b->weights, &npu->allocator);
    epctx_arena_init(&b->arena, &npu->allocator);
    memset(&opts, 0, sizeof opts);
    opts.allocator = &npu->allocator;
    opts.fetch_fn = epctx__fetch;
    opts.user = b;
    return epctx_weights_init(&b->table, &opts, error);
}

/* The records of the graphs, in name order. */
static epctx__graph_record *epctx__records(const epctx__build *b) {
    return (epctx__graph_record *)(void *)b->records.data;
}

/* Position of the record of graph `name`, or where to insert it; true: it exists. */
static bool epctx__find_record(const epctx__build *b, epctx_str name, size_t *at) {
    size_t end = b->records.size / sizeof(epctx__graph_record);
    *at = 0;
    while (*at < end) {
        const size_t middle = *at + (end - *at) / 2;
        const int order = epctx__name_order(epctx__string(b, epctx__records(b)[middle].name), name);
        if (order == 0) {
            *at = middle;
            return true;
        }
        *at = order < 0 ? middle + 1 : *at;
        end = order < 0 ? end : middle;
    }
    return false;
}

static epctx_status epctx__get_record(const epctx__build *b, epctx_str name,
                                      const epctx__graph_record **r, epctx_error *error) {
    size_t at;
    epctx_error_clear(error);
    *r = NULL; /* gcc does not see that a failure returns no EPCTX_OK */
    if (!epctx__find_record(b, name, &at))
        return epctx_fail(error, EPCTX_ERR_ARG, "graph '%S' is not in this context", &name);
    *r = &epctx__records(b)[at];
    return EPCTX_OK;
}

static epctx_status epctx__setup(void *self, void *build, const epctx_build_opts *opts,
                                 epctx_error *error) {
    (void)self;
    epctx_error_clear(error);
    ((epctx__build *)build)->weightless = opts->weightless;
    ((epctx__build *)build)->hooks = opts->hooks;
    return EPCTX_OK;
}

static epctx_status epctx__compile(void *self, void *build, const epctx_graph *graph,
                                   epctx_str name, uint64_t hash, epctx_error *error) {
    epctx_npu *npu = (epctx_npu *)self;
    epctx__build *b = (epctx__build *)build;
    epctx__compiler c;
    epctx_arena arena;
    epctx_status status;
    size_t at;
    uint32_t maker = 0;
    epctx_error_clear(error);
    if (epctx__find_record(b, name, &at))
        return epctx_fail(error, EPCTX_ERR_ARG, "graph '%S' is already in this context", &name);
    epctx_arena_init(&arena, &npu->allocator);
    c = epctx__compiler_of(graph, npu->arch, &arena, error);
    c.stats.nodes = graph->node_count;
    c.weightless = b->weightless;
    c.npu = npu;
    status = epctx__compile_graph(&c);
    if (status == EPCTX_OK && b->weightless != EPCTX_WEIGHTLESS_NONE)
        status = epctx__write_maker(&c, b, &maker);
    if (status == EPCTX_OK) status = epctx__write_graph(&c, b, &b->records, name, hash, maker);
    if (status == EPCTX_OK) { /* moves the new record from the end to its position */
        epctx__graph_record *records = epctx__records(b);
        const size_t last = b->records.size / sizeof *records - 1;
        const epctx__graph_record r = records[last];
        memmove(&records[at + 1], &records[at], (last - at) * sizeof r);
        records[at] = r;
    }
    npu->stats = c.stats;
    epctx_arena_free(&arena);
    return status;
}

/* Reads one entry of the I/O table. */
static bool epctx__read_value(epctx__build *b, size_t word, epctx_value *value) {
    int64_t *dims =
        (int64_t *)epctx_arena_array(&b->arena, EPCTX_NPU_MAX_RANK, sizeof *value->dims);
    epctx__value_record r;
    uint32_t i;
    memcpy(&r, b->words.data + word * 4, sizeof r);
    value->name = epctx__string(b, r.name);
    value->name.data = epctx_arena_copy(&b->arena, value->name); /* `strings` may move */
    value->elem_type = (int32_t)r.elem_type;
    value->rank = (int32_t)r.rank;
    value->dims = dims;
    for (i = 0; dims != NULL && i < r.rank; i++) dims[i] = r.dims[i];
    return dims != NULL && value->name.data != NULL;
}

static epctx_status epctx__types(void *self, void *build, epctx_str name,
                                 const epctx_value **outputs, size_t *count, epctx_error *error) {
    epctx__build *b = (epctx__build *)build;
    const epctx__graph_record *r = NULL;
    epctx_value *values;
    uint32_t i;
    (void)self;
    EPCTX__TRY(epctx__get_record(b, name, &r, error));
    values = (epctx_value *)epctx_arena_array(&b->arena, r->outputs, sizeof *values);
    for (i = 0; values != NULL && i < r->outputs; i++)
        if (!epctx__read_value(b, r->io_at + (r->inputs + i) * EPCTX__WORDS(epctx__value_record),
                               &values[i]))
            values = NULL;
    *outputs = values;
    *count = r->outputs;
    return values != NULL ? EPCTX_OK
                          : epctx_fail(error, EPCTX_ERR_NOMEM, "out of memory: %u types",
                                       (uint64_t)r->outputs);
}

/* Scratch size: a caller that runs graphs one after the other can use one buffer of the largest. */
static epctx_status epctx__max_size(void *self, void *build, epctx_str name, int64_t *bytes,
                                    epctx_error *error) {
    const epctx__graph_record *r = NULL;
    (void)self;
    EPCTX__TRY(epctx__get_record((const epctx__build *)build, name, &r, error));
    *bytes = (int64_t)epctx__pair(r->scratch);
    return EPCTX_OK;
}

static epctx_status epctx__finish(void *self, void *build, epctx_buffer *out, epctx_error *error) {
    const epctx_npu *npu = (const epctx_npu *)self;
    epctx__build *b = (epctx__build *)build;
    const size_t start = out->size;
    epctx__compiler c;
    epctx_buffer head;
    epctx_status status;
    epctx_error_clear(error);
    memset(&c, 0, sizeof c);
    c.error = error;
    epctx_buffer_init(&head, &npu->allocator);
    status = epctx__put_sections(&c, b, &head);
    if (status == EPCTX_OK) status = epctx__put_binary(&c, b, &head, out);
    if (status == EPCTX_OK)
        epctx__put_header(b, npu->arch, out->data + start, out->size - start);
    else
        out->size = start;
    epctx_buffer_free(&head);
    epctx__discard(self, build);
    return status;
}

#else

static epctx_status epctx__capability(void *self, const epctx_graph *graph, uint8_t *take,
                                      epctx_error *error) {
    (void)self;
    (void)graph;
    (void)take;
    return epctx_fail(error, EPCTX_ERR_UNSUPPORTED,
                      "this build has no compiler (EPCTX_NPU_NO_COMPILER)");
}

static epctx_status epctx__begin(void *self, void **build, epctx_error *error) {
    *build = NULL;
    return epctx__capability(self, NULL, NULL, error);
}

#endif /* EPCTX_NPU_NO_COMPILER */

static epctx_status epctx__load(void *self, const epctx_load_in *in, void **context,
                                epctx_error *error) {
    const epctx_npu *npu = (const epctx_npu *)self;
    const uint64_t most[] = {16 << 20, UINT64_MAX, 0}; /* bytes of weights that are verified */
    const size_t head = (sizeof(epctx_npu_context) + 15) & ~(size_t)15;
    const epctx_npu_graph *graph;
    epctx_npu_context *loaded;
    uint8_t *memory;
    size_t size, i;
    epctx_status status;
    *context = NULL;
    EPCTX__TRY(epctx_npu_load_size(in->binary, &size, error));
    memory = (uint8_t *)npu->allocator.alloc_fn(npu->allocator.user, head + size);
    if (memory == NULL)
        return epctx_fail(error, EPCTX_ERR_NOMEM, "out of memory: %u bytes",
                          (uint64_t)(head + size));
    loaded = (epctx_npu_context *)(void *)memory;
    status = epctx_npu_load(loaded, in->binary, memory + head, size, error);
    /* with the graphs that make weights, as they run too */
    for (i = 0; status == EPCTX_OK && npu->opts.max_work > 0 && i < loaded->total_count; i++) {
        graph = &loaded->graphs[i];
        if (graph->work > npu->opts.max_work)
            status = EPCTX__BLOB(error, LIMIT,
                                 "graph '%S': expected at most %u operations per run (max_work), "
                                 "found %u",
                                 &graph->info.name, npu->opts.max_work, graph->work);
    }
    if (status == EPCTX_OK && loaded->weight_size <= most[npu->opts.check_weights])
        status = epctx_npu_check_weights(loaded, error);
    if (status != EPCTX_OK) {
        npu->allocator.free_fn(npu->allocator.user, memory);
        return status;
    }
    *context = memory;
    return EPCTX_OK;
}

static void epctx__unload(void *self, void *context) {
    const epctx_npu *npu = (const epctx_npu *)self;
    if (context != NULL) npu->allocator.free_fn(npu->allocator.user, context);
}

static epctx_status epctx__find(void *self, void *context, epctx_str name, uint64_t hash,
                                void **graph, epctx_error *error) {
    const epctx_npu_graph *found;
    epctx_npu_context *c = (epctx_npu_context *)context;
    epctx_status status = epctx_npu_find(c, name, hash, &found, error);
    (void)self;
    *graph = NULL;
    if (status == EPCTX_OK) /* the backend's handles are not const */
        memcpy(graph, &found, sizeof found);
    return status;
}

static epctx_status epctx__info(void *self, void *graph, epctx_graph_info *info,
                                epctx_error *error) {
    const epctx_npu_run_opts *run = ((const epctx_npu *)self)->opts.run;
    epctx_error_clear(error);
    *info = ((const epctx_npu_graph *)graph)->info;
    if (run != NULL && run->parallel_fn != NULL)
        info->scratch_size = epctx_npu_scratch_size((const epctx_npu_graph *)graph, run->threads);
    return EPCTX_OK;
}

static epctx_status epctx__weights(void *self, void *graph, const epctx_tensor *weights,
                                   size_t count, epctx_error *error) {
    const epctx_allocator *a = &((const epctx_npu *)self)->allocator;
    const epctx_npu_graph *g = (const epctx_npu_graph *)graph;
    void *kept = NULL, *temporary;
    size_t keep, spare;
    epctx_status status;
    if (g->maker != NULL) memcpy(&kept, g->made, sizeof kept); /* of the weights so far */
    status = epctx_npu_make_weights(g, NULL, 0, NULL, NULL, error);
    if (kept != NULL) a->free_fn(a->user, kept);
    if (count == 0 || g->maker == NULL) return status;
    EPCTX__TRY(epctx_npu_weights_size(g, &keep, &spare, error));
    kept = a->alloc_fn(a->user, keep);
    temporary = kept != NULL ? a->alloc_fn(a->user, spare + 1) : NULL; /* it may be none */
    status = temporary != NULL
                 ? epctx_npu_make_weights(g, weights, count, kept, temporary, error)
                 : epctx_fail(error, EPCTX_ERR_NOMEM, "out of memory: %u bytes of weights",
                              (uint64_t)keep + spare);
    if (temporary != NULL) a->free_fn(a->user, temporary);
    if (status != EPCTX_OK && kept != NULL) a->free_fn(a->user, kept);
    return status;
}

static epctx_status epctx__run(void *self, void *graph, const epctx_span *inputs,
                               const epctx_memory *outputs, void *scratch, size_t scratch_size,
                               epctx_error *error) {
    return epctx_npu_run_with((const epctx_npu_graph *)graph, inputs, outputs, scratch,
                              scratch_size, ((const epctx_npu *)self)->opts.run, error);
}

/* Checks the node's attribute; loading checks the binary itself. */
static epctx_status epctx__check_node(void *self, const epctx_epnode *node, epctx_error *error) {
    const epctx_npu *npu = (const epctx_npu *)self;
    epctx_error_clear(error);
    if (node->hardware_architecture.size > 0 && !epctx__runnable(node->hardware_architecture))
        return epctx_fail(error, EPCTX_ERR_VERSION,
                          "hardware architecture: expected '%s', found '%S'", npu->arch->name,
                          &node->hardware_architecture);
    return EPCTX_OK;
}

EPCTX_API epctx_status epctx_npu_init(epctx_npu *npu, const epctx_npu_opts *opts,
                                      epctx_backend *backend, epctx_error *error) {
    epctx_arena arena;
    const char *wanted = epctx__archs[0].name;
    epctx_error_clear(error);
    memset(npu, 0, sizeof *npu);
    memset(backend, 0, sizeof *backend);
    if (opts != NULL) npu->opts = *opts;
    if (npu->opts.architecture != NULL) wanted = npu->opts.architecture;
    npu->arch = epctx_npu_arch_find(epctx_str_of(wanted));
    if (npu->arch == NULL)
        return epctx_fail(error, EPCTX_ERR_ARG, "unknown hardware architecture '%s'", wanted);
    if ((unsigned)npu->opts.check_weights > EPCTX_NPU_CHECK_NEVER)
        return epctx_fail(error, EPCTX_ERR_ARG, "check_weights: expected an epctx_npu_check");
    if (!npu->arch->runnable)
        return epctx_fail(error, EPCTX_ERR_UNSUPPORTED,
                          "hardware architecture: this build has kernels for '%s', not for '%s'",
                          epctx__archs[0].name, wanted);
    epctx_arena_init(&arena, npu->opts.allocator); /* selects the default */
    npu->allocator = arena.allocator;
    epctx_arena_free(&arena);
    if (npu->allocator.alloc_fn == NULL || npu->allocator.free_fn == NULL)
        return epctx_fail(error, EPCTX_ERR_ARG, "expected an allocator (EPCTX_NO_MALLOC)");
    backend->version = EPCTX_BACKEND_VERSION;
    backend->self = npu;
    backend->source = EPCTX_NPU_SOURCE;
    backend->short_name = EPCTX_NPU_SHORT_NAME;
    backend->sdk_version = EPCTX_NPU_SDK_VERSION;
    backend->hardware_architecture = npu->arch->name;
    backend->capability_fn = epctx__capability;
    backend->begin_fn = epctx__begin;
#ifndef EPCTX_NPU_NO_COMPILER /* otherwise begin_fn fails, and the others are never called */
    backend->infer_fn = epctx__infer;
    backend->explain_fn = epctx__explain;
    backend->setup_fn = epctx__setup;
    backend->compile_fn = epctx__compile;
    backend->types_fn = epctx__types;
    backend->max_size_fn = epctx__max_size;
    backend->finish_fn = epctx__finish;
    backend->discard_fn = epctx__discard;
#endif
    backend->load_fn = epctx__load;
    backend->unload_fn = epctx__unload;
    backend->find_fn = epctx__find;
    backend->info_fn = epctx__info;
    backend->run_fn = epctx__run;
    backend->check_fn = epctx__check_node;
    backend->weightless = EPCTX_WEIGHTLESS_ALL;
    backend->weights_fn = epctx__weights;
    return EPCTX_OK;
}

#if defined(__clang__)
#pragma clang diagnostic pop
#endif
#ifdef __cplusplus
}
#endif

#endif /* EPCTX_NPU_IMPLEMENTATION */
