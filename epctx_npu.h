/* epctx_npu.h - the reference NPU of epctx: a compiler from ONNX subgraphs to a context binary, and
 * an executor that runs it without heap. Version 0.1.0
 *
 * Single header, C99 and C++17, on top of epctx.h. MIT licence, text in LICENSE.
 * Search for ">>" to jump from section to section.
 */

/* ================================================================================================
 * >>manual
 * ================================================================================================
 *
 * WHAT IT IS
 *   An epctx_backend that really compiles and really runs: static shapes, constant folding, fusion,
 *   packed weights, a static memory plan and a command stream, all in one self-contained context
 *   binary ("blob"). It stands where an EP's vendor SDK would stand, and is small enough to read.
 *
 * DO THIS
 *   In ONE file of your program:
 *       #define EPCTX_NPU_IMPLEMENTATION
 *       #include "epctx_npu.h"
 *   The functions of epctx.h are needed too: define EPCTX_IMPLEMENTATION before the same include,
 *   or in another file.
 *
 * QUICK START: compile and load through epctx.h
 *       epctx_npu npu;
 *       epctx_backend backend;
 *       epctx_npu_init(&npu, NULL, &backend, &err);
 *       epctx_generate(&model, &backend, NULL, NULL, &err);
 *
 * QUICK START: run a blob in flash, no heap (firmware, EPCTX_NPU_NO_COMPILER)
 *       static uint64_t memory[512], scratch[3000];
 *       epctx_npu_context context;
 *       const epctx_npu_graph *graph;
 *       epctx_span blob = {flash, flash_size}, in[1] = {{input, input_size}};
 *       epctx_memory out[1] = {{output, output_size}};
 *       epctx_npu_load(&context, blob, memory, sizeof memory, &err);
 *       epctx_npu_find(&context, epctx_str_of("main"), 0, &graph, &err);
 *       epctx_npu_run(graph, in, out, scratch, sizeof scratch, &err);
 *
 * OPTIONS (macros)                effect                                    scope
 *   EPCTX_NPU_IMPLEMENTATION      emits the function bodies                 one file
 *   EPCTX_NPU_NO_COMPILER         executor only; compiling through the
 *                                 backend is EPCTX_ERR_UNSUPPORTED          implementation file
 *   EPCTX_STATIC, EPCTX_NO_MALLOC, EPCTX_NO_WIRE: as in epctx.h.
 *
 * WHAT IS COMPILED
 *   ai.onnx operators up to opset 21 on float32 with fixed shapes of rank <= 8: Add AveragePool
 *   BatchNormalization Cast Clip Concat Constant ConstantOfShape Conv DepthToSpace Div Dropout Exp
 *   Expand Flatten Gather Gemm GlobalAveragePool GlobalMaxPool HardSigmoid HardSwish Identity
 *   LeakyRelu Log LogSoftmax MatMul Max MaxPool Min Mul Neg Abs PRelu Pad ReduceMax ReduceMean
 *   ReduceMin ReduceSum Relu Reshape Shape Sigmoid Slice Softmax Split Sqrt Squeeze Sub Sum Tanh
 *   Transpose Unsqueeze Elu. int32 and int64 tensors move (Reshape, Concat, Gather ...) and are
 *   computed with only where they are constant. Everything else is left to others; an error says
 *   which node and why.
 *
 * MEMORY
 *   Compiling and the load of the backend use the allocator. epctx_npu_load uses only the caller's
 *   memory, epctx_npu_load_size tells how much: some kilobytes, plus the weights when they cannot
 *   be used in place (big-endian host, or a blob that is not aligned to 8 bytes). The blob stays
 *   borrowed. Running needs scratch_size bytes aligned to 64 and nothing else; inputs and outputs
 *   are read and written where the caller has them, aligned to their element size.
 *
 * THREADS
 *   No global state. A loaded context is never written: any number of threads may run one graph,
 *   each with scratch and outputs of its own. A context under construction belongs to one thread.
 *
 * TRUST
 *   A blob is hostile. Loading copies everything but the weights and verifies the copy: every
 *   offset, size, shape and operand. A file that changes later can change results, never an
 *   address. Indices that come from data (Gather) are checked while running. Weights are only ever
 *   used as numbers; epctx_npu_check_weights compares their checksum.
 *
 * DETERMINISM
 *   The same graph gives the same bytes from C and C++, on every word size, byte order and
 *   compiler: no libm, one rounding per operation. -ffast-math stops the build.
 *
 * BLOB FORMAT 1 (all numbers little-endian; u64 = two words, low first; [n] = bytes)
 *   header, 128 bytes                          | word section, graphs first, 20 words each
 *     0 magic "EPCTXNPU"                       |   0 name: offset, bytes (in the strings)
 *     8 u32 format version                     |   2 u64 graph hash
 *    12 u32 header bytes (128)                 |   4 u64 scratch bytes
 *    16 [16] SDK version, zero-padded          |   6 first word of the I/O table, inputs, outputs
 *    32 [24] architecture, zero-padded         |   9 first command word, words, commands
 *    56 u64 file bytes                         |  12 .. 19 zero
 *    64 u64 words: offset 128, then count/u32  | I/O table, 12 words a tensor: name offset, bytes,
 *    72 u64 strings: offset                    |   ONNX element type, rank, 8 dimensions
 *    80 u64 strings: bytes                     | weight table, 6 words a blob: u64 offset in the
 *    88 u64 weights: offset (64-aligned)       |   section (64-aligned), u64 bytes, element bytes,
 *    96 u64 weights: bytes                     |   zero
 *   104 u32 graphs, u32 weight blobs           | command: opcode, words, name offset, name bytes,
 *   112 u64 XXH64 of header (this field 0),    |   operands (4 words each: place, index, u64 byte
 *       words and strings                      |   offset), parameters (struct of the opcode)
 *   120 u64 XXH64 of the weights               | strings: names, not terminated
 *
 * CONTENTS
 *   >>config >>blob >>arch >>exec >>compile >>backend >>implementation
 */

#ifndef EPCTX_NPU_H
#define EPCTX_NPU_H

/* ================================================================================================
 * >>config
 * ============================================================================================== */

#include "epctx.h"

#if EPCTX_VERSION_MAJOR != 0 || EPCTX_VERSION_MINOR != 1 || EPCTX_VERSION_PATCH != 0
#error "epctx_npu.h 0.1.0 needs epctx.h 0.1.0: take both headers from one release"
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define EPCTX_NPU_SOURCE      "EpctxNpuExecutionProvider"
#define EPCTX_NPU_SHORT_NAME  "npu"
#define EPCTX_NPU_SDK_VERSION "0.1.0"
#define EPCTX_NPU_MAX_RANK    8
#define EPCTX_NPU_ALIGN       64 /* of weight blobs, scratch and places in scratch */

/* ================================================================================================
 * >>blob: the context binary
 * ============================================================================================== */

#define EPCTX_NPU_FORMAT      1
#define EPCTX_NPU_HEADER_SIZE 128

/* What the header of a blob says. Strings are terminated. */
typedef struct epctx_npu_blob {
    uint32_t format;
    uint32_t graph_count;
    uint32_t weight_count; /* distinct weight blobs */
    uint64_t size;         /* bytes of the whole blob */
    uint64_t weight_size;  /* bytes of the weight section */
    char sdk_version[17];
    char architecture[25];
} epctx_npu_blob;

/* Reads a header, also of another SDK version or architecture, so that a tool can tell what a file
 * is. EPCTX_ERR_CONTEXT: not a blob; EPCTX_ERR_VERSION: another format version. */
EPCTX_API epctx_status epctx_npu_peek(epctx_span blob, epctx_npu_blob *out, epctx_error *error);

/* ================================================================================================
 * >>arch: what a blob is made for
 * ============================================================================================== */

/* An architecture is data: how weights are packed. Blobs of one do not run on another. */
typedef struct epctx_npu_arch {
    const char *name;
    uint32_t rows;    /* output channels per block of convolution weights */
    uint32_t columns; /* columns per block of matrix weights */
    bool runnable;    /* kernels for this packing exist in this build */
} epctx_npu_arch;

/* All architectures, `generic` first. */
EPCTX_API const epctx_npu_arch *epctx_npu_arch_list(size_t *count);
/* NULL when there is none of that name. */
EPCTX_API const epctx_npu_arch *epctx_npu_arch_find(epctx_str name);

/* ================================================================================================
 * >>exec: load and run
 * ============================================================================================== */

struct epctx_npu_context;

/* One graph of a loaded context. Members other than `info` are private. */
typedef struct epctx_npu_graph {
    epctx_graph_info info;
    uint64_t hash; /* as given to compile */
    const struct epctx_npu_context *context;
    const uint32_t *commands;
    uint32_t command_count;
} epctx_npu_graph;

/* A loaded blob. Members are private but for `graphs`. */
typedef struct epctx_npu_context {
    const epctx_npu_graph *graphs;
    size_t graph_count;
    epctx_span blob;
    const uint8_t *weights; /* in the blob, or the copy */
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
 * context is used) and verifies the copy. Nothing needs to be released.
 * EPCTX_ERR_CONTEXT: damaged or truncated; EPCTX_ERR_VERSION: other format, SDK or architecture;
 * EPCTX_ERR_NOMEM: `memory_size` is too small. */
EPCTX_API epctx_status epctx_npu_load(epctx_npu_context *context, epctx_span blob, void *memory,
                                      size_t memory_size, epctx_error *error);
/* Compares the checksum of the weights: reads all of them. EPCTX_ERR_CONTEXT. */
EPCTX_API epctx_status epctx_npu_check_weights(const epctx_npu_context *context,
                                               epctx_error *error);
/* The graph called `name`, EPCTX_ERR_CONTEXT when there is none. `hash` 0 is not compared, else a
 * difference is EPCTX_ERR_VERSION: the blob comes from another generation than the model. */
EPCTX_API epctx_status epctx_npu_find(const epctx_npu_context *context, epctx_str name,
                                      uint64_t hash, const epctx_npu_graph **graph,
                                      epctx_error *error);
/* Runs a graph. `inputs` and `outputs` in the order of graph->info, of exactly the tensors' sizes,
 * aligned to their element size; outputs overlap nothing. `scratch` is aligned to 64.
 * EPCTX_ERR_ARG: a size or an alignment is wrong, or an index in the data is out of range (the
 * outputs are then undefined). */
EPCTX_API epctx_status epctx_npu_run(const epctx_npu_graph *graph, const epctx_span *inputs,
                                     const epctx_memory *outputs, void *scratch,
                                     size_t scratch_size, epctx_error *error);

/* One command of a graph, for tools. */
typedef struct epctx_npu_command {
    const char *op; /* "Conv", "Gemm" ...: the executor's name, static */
    epctx_str name; /* of the ONNX node it comes from */
} epctx_npu_command;

/* Steps through the commands: start with *position 0; false at the end. */
EPCTX_API bool epctx_npu_next_command(const epctx_npu_graph *graph, uint32_t *position,
                                      epctx_npu_command *command);

/* ================================================================================================
 * >>compile: options, and what a compilation came to
 * ============================================================================================== */

typedef struct epctx_npu_opts {
    const char *architecture;         /* default "generic" */
    const epctx_allocator *allocator; /* default malloc; copied */
    bool check_weights;               /* loading also reads all weights and compares their checksum;
                                         default off: damage there changes results, nothing else */
} epctx_npu_opts;

/* Figures of the graph compiled last. */
typedef struct epctx_npu_stats {
    size_t nodes;          /* ONNX nodes in */
    size_t commands;       /* out */
    size_t folded;         /* computed while compiling */
    size_t fused;          /* merged into another command */
    uint64_t scratch_size; /* bytes of the memory plan */
    uint64_t scratch_live; /* largest sum of bytes live at once: no plan can be smaller */
    uint64_t weight_size;  /* bytes this graph added to the weights */
    uint64_t weight_saved; /* bytes found in the blob already */
} epctx_npu_stats;

/* ================================================================================================
 * >>backend: the binding to epctx.h
 * ============================================================================================== */

/* State of the backend. Members are private but for `stats`. */
typedef struct epctx_npu {
    epctx_npu_stats stats;
    epctx_allocator allocator;
    const epctx_npu_arch *arch;
    bool check_weights;
} epctx_npu;

/* Fills `backend`; `npu` is borrowed while the backend and its contexts are used, and needs no
 * release. `opts` NULL means defaults. EPCTX_ERR_ARG: unknown architecture, or no allocator under
 * EPCTX_NO_MALLOC. EPCTX_ERR_UNSUPPORTED: the architecture has no kernels in this build. */
EPCTX_API epctx_status epctx_npu_init(epctx_npu *npu, const epctx_npu_opts *opts,
                                      epctx_backend *backend, epctx_error *error);

#ifdef __cplusplus
}
#endif

#endif /* EPCTX_NPU_H: end of the declarations. Stop here if you only use the library. */

/* ================================================================================================
 * >>implementation
 * ============================================================================================== */

#if defined(EPCTX_NPU_IMPLEMENTATION) && !defined(EPCTX_NPU_IMPLEMENTED)
#define EPCTX_NPU_IMPLEMENTED

#include <float.h>
#include <string.h>

#if defined(__FAST_MATH__)
#error "epctx_npu.h: -ffast-math breaks NaN handling and the reproducible compiler: leave it out"
#endif
#if defined(FLT_EVAL_METHOD) && (FLT_EVAL_METHOD < 0 || FLT_EVAL_METHOD > 2)
#error "epctx_npu.h: floating-point evaluation must be fixed (FLT_EVAL_METHOD 0, 1 or 2)"
#endif
#if FLT_RADIX != 2 || FLT_MANT_DIG != 24 || FLT_MAX_EXP != 128
#error "epctx_npu.h: float must be IEEE 754 binary32"
#endif

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__) || defined(__clang__)
#define EPCTX_NPU__UNUSED   __attribute__((unused))
#define EPCTX_NPU__RESTRICT __restrict
#elif defined(_MSC_VER)
#define EPCTX_NPU__UNUSED
#define EPCTX_NPU__RESTRICT __restrict
#else
#define EPCTX_NPU__UNUSED
#define EPCTX_NPU__RESTRICT
#endif

/* Register tiles stay in registers only when their loops are unrolled completely; gcc at -O2 does
 * not do that by itself. */
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 8 && !defined(__OPTIMIZE_SIZE__)
#define EPCTX_NPU__UNROLL _Pragma("GCC unroll 16")
#else
#define EPCTX_NPU__UNROLL
#endif

/* ================================================================================================
 * >>blob: words, sizes, header
 * ============================================================================================== */

#define EPCTX_NPU__MAX_BYTES     INT32_MAX /* of one tensor: kernels may index with 32 bits */
#define EPCTX_NPU__GRAPH_WORDS   20
#define EPCTX_NPU__IO_WORDS      12
#define EPCTX_NPU__WEIGHT_WORDS  6
#define EPCTX_NPU__OPERAND_WORDS 4
#define EPCTX_NPU__COMMAND_WORDS 4 /* before the operands */

/* Offsets of header fields, see the manual. */
#define EPCTX_NPU__H_FORMAT   8
#define EPCTX_NPU__H_HEADER   12
#define EPCTX_NPU__H_SDK      16
#define EPCTX_NPU__H_ARCH     32
#define EPCTX_NPU__H_SIZE     56
#define EPCTX_NPU__H_WORDS    64
#define EPCTX_NPU__H_STRINGS  72
#define EPCTX_NPU__H_STRBYTES 80
#define EPCTX_NPU__H_WEIGHTS  88
#define EPCTX_NPU__H_WBYTES   96
#define EPCTX_NPU__H_GRAPHS   104
#define EPCTX_NPU__H_WCOUNT   108
#define EPCTX_NPU__H_META_SUM 112
#define EPCTX_NPU__H_DATA_SUM 120

static const char epctx_npu__magic[9] = "EPCTXNPU";

static uint32_t epctx_npu__get32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint64_t epctx_npu__get64(const uint8_t *p)
{
    return epctx_npu__get32(p) | (uint64_t)epctx_npu__get32(p + 4) << 32;
}

/* A u64 kept as two native words, low first. */
static uint64_t epctx_npu__pair(const uint32_t *words)
{
    return words[0] | (uint64_t)words[1] << 32;
}

static bool epctx_npu__big_endian(void)
{
    const uint32_t one = 1;
    uint8_t first;
    memcpy(&first, &one, 1);
    return first == 0;
}

/* Products of sizes. Saturates far above every limit, so a chain of calls needs one comparison. */
static uint64_t epctx_npu__mul(uint64_t a, uint64_t b)
{
    const uint64_t top = UINT64_MAX / 4;
    if (a != 0 && b > top / a) {
        return top;
    }
    return a * b;
}

static uint64_t epctx_npu__mul3(uint64_t a, uint64_t b, uint64_t c)
{
    return epctx_npu__mul(epctx_npu__mul(a, b), c);
}

static uint64_t epctx_npu__mul4(uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    return epctx_npu__mul(epctx_npu__mul3(a, b, c), d);
}

/* What the header says, checked against the size of the blob. */
typedef struct epctx_npu__layout {
    uint64_t words;   /* of the word section */
    uint64_t strings; /* offset */
    uint64_t string_bytes;
    uint64_t weights; /* offset */
    uint64_t weight_bytes;
    uint32_t graphs;
    uint32_t weight_count;
} epctx_npu__layout;

static void epctx_npu__copy_name(char *out, const uint8_t *data, size_t size)
{
    size_t i;
    for (i = 0; i < size && data[i] != 0; i++) {
        out[i] = data[i] < 0x20 || data[i] > 0x7e ? '?' : (char)data[i];
    }
    out[i] = '\0';
}

static epctx_status epctx_npu__peek(epctx_span blob, epctx_npu_blob *out, epctx_error *error)
{
    const uint8_t *h = blob.data;
    memset(out, 0, sizeof *out);
    if (h == NULL || blob.size < EPCTX_NPU_HEADER_SIZE) {
        return epctx_fail(error, EPCTX_ERR_CONTEXT,
                          "context binary: expected a header of %u bytes, found %u bytes",
                          (uint64_t)EPCTX_NPU_HEADER_SIZE, (uint64_t)blob.size);
    }
    if (memcmp(h, epctx_npu__magic, 8) != 0) {
        char found[9];
        epctx_npu__copy_name(found, h, 8);
        return epctx_fail(error, EPCTX_ERR_CONTEXT,
                          "context binary: expected magic \"%s\", found \"%s\"", epctx_npu__magic,
                          found);
    }
    out->format = epctx_npu__get32(h + EPCTX_NPU__H_FORMAT);
    if (out->format != EPCTX_NPU_FORMAT) {
        return epctx_fail(error, EPCTX_ERR_VERSION,
                          "context binary: expected format version %u, found %u",
                          (uint64_t)EPCTX_NPU_FORMAT, (uint64_t)out->format);
    }
    out->size = epctx_npu__get64(h + EPCTX_NPU__H_SIZE);
    out->weight_size = epctx_npu__get64(h + EPCTX_NPU__H_WBYTES);
    out->graph_count = epctx_npu__get32(h + EPCTX_NPU__H_GRAPHS);
    out->weight_count = epctx_npu__get32(h + EPCTX_NPU__H_WCOUNT);
    epctx_npu__copy_name(out->sdk_version, h + EPCTX_NPU__H_SDK, 16);
    epctx_npu__copy_name(out->architecture, h + EPCTX_NPU__H_ARCH, 24);
    return EPCTX_OK;
}

EPCTX_API epctx_status epctx_npu_peek(epctx_span blob, epctx_npu_blob *out, epctx_error *error)
{
    epctx_error_clear(error);
    return epctx_npu__peek(blob, out, error);
}

/* ================================================================================================
 * >>arch
 * ============================================================================================== */

#define EPCTX_NPU__ROWS    4 /* of the register tile that this build has */
#define EPCTX_NPU__COLUMNS 16

static const epctx_npu_arch epctx_npu__archs[4] = {
    {"generic", 4, 16, true},
    {"x86-64-v3", 6, 16, false},
    {"x86-64-v4", 8, 32, false},
    {"armv7e-m", 2, 4, false},
};

EPCTX_API const epctx_npu_arch *epctx_npu_arch_list(size_t *count)
{
    *count = sizeof epctx_npu__archs / sizeof epctx_npu__archs[0];
    return epctx_npu__archs;
}

EPCTX_API const epctx_npu_arch *epctx_npu_arch_find(epctx_str name)
{
    size_t i;
    for (i = 0; i < sizeof epctx_npu__archs / sizeof epctx_npu__archs[0]; i++) {
        if (epctx_str_is(name, epctx_npu__archs[i].name)) {
            return &epctx_npu__archs[i];
        }
    }
    return NULL;
}

/* ================================================================================================
 * >>exec: arithmetic
 * ============================================================================================== */

static float epctx_npu__float_of(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, 4);
    return f;
}

static uint32_t epctx_npu__bits_of(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, 4);
    return bits;
}

/* e^r - 1 for |r| <= ln(2)/2: the power series; the first term left out is below 2^-27 of r. */
static float epctx_npu__expm1_core(float r)
{
    float p = 1.0f / 5040.0f;
    p = p * r + 1.0f / 720.0f;
    p = p * r + 1.0f / 120.0f;
    p = p * r + 1.0f / 24.0f;
    p = p * r + 1.0f / 6.0f;
    p = p * r + 0.5f;
    return r + r * r * p;
}

/* x = n ln(2) + r. ln(2) in two parts, the first short enough that n times it is exact. */
static int32_t epctx_npu__exp_split(float x, float *r)
{
    const float high = 0.693359375f, low = -2.12194440e-4f;
    int32_t n = (int32_t)(x * 1.44269504f + (x < 0.0f ? -0.5f : 0.5f));
    float t = x - (float)n * high;
    *r = t - (float)n * low;
    return n;
}

/* 2^n for n in -126..127 */
static float epctx_npu__pow2(int32_t n)
{
    return epctx_npu__float_of((uint32_t)(n + 127) << 23);
}

static float epctx_npu__exp(float x)
{
    float r, y;
    float c = x > -104.0f ? x : -104.0f; /* also takes NaN out of the conversion below */
    int32_t n, half;
    c = c < 89.0f ? c : 89.0f;
    n = epctx_npu__exp_split(c, &r);
    half = n / 2;
    y = (1.0f + epctx_npu__expm1_core(r)) * epctx_npu__pow2(half) * epctx_npu__pow2(n - half);
    return x != x ? x : y;
}

/* tanh(x) = e / (e + 2) with e = exp(2|x|) - 1, formed without cancellation. */
static float epctx_npu__tanh(float x)
{
    float a = x < 0.0f ? -x : x;
    float c = a < 10.0f ? a : 10.0f;
    float r, e, y;
    int32_t n = epctx_npu__exp_split(2.0f * c, &r);
    float scale = epctx_npu__pow2(n);
    e = scale * epctx_npu__expm1_core(r) + (scale - 1.0f);
    y = e / (e + 2.0f);
    y = x < 0.0f ? -y : y;
    return x != x || x == 0.0f ? x : y;
}

static float epctx_npu__sigmoid(float x)
{
    return 1.0f / (1.0f + epctx_npu__exp(-x));
}

/* log(m 2^n) = n ln(2) + 2 artanh((m-1)/(m+1)), m in sqrt(1/2)..sqrt(2) */
static float epctx_npu__log(float x)
{
    const float high = 0.693359375f, low = -2.12194440e-4f;
    float m = x, s, z, p;
    uint32_t bits;
    int32_t n = 0;
    if (!(x > 0.0f)) {
        return epctx_npu__float_of(x == 0.0f ? 0xff800000u : 0x7fc00000u);
    }
    if (x > FLT_MAX) {
        return x;
    }
    if (x < FLT_MIN) {
        m = x * 8388608.0f;
        n = -23;
    }
    bits = epctx_npu__bits_of(m);
    n += (int32_t)(bits >> 23) - 127;
    m = epctx_npu__float_of((bits & 0x7fffffu) | 0x3f800000u);
    if (m > 1.41421356f) {
        m *= 0.5f;
        n++;
    }
    s = (m - 1.0f) / (m + 1.0f);
    z = s * s;
    p = 1.0f / 9.0f;
    p = p * z + 1.0f / 7.0f;
    p = p * z + 1.0f / 5.0f;
    p = p * z + 1.0f / 3.0f;
    p = 2.0f * s + 2.0f * s * z * p;
    return ((float)n * low + p) + (float)n * high;
}

/* Correctly rounded: the compiler uses it too. One bit of the root at a time, in integers. */
static float epctx_npu__sqrt(float x)
{
    uint32_t bits = epctx_npu__bits_of(x), root = 0, bit;
    int32_t exponent;
    uint64_t m, rest;
    if (!(x > 0.0f) || bits >= 0x7f800000u) {
        return x < 0.0f ? epctx_npu__float_of(0x7fc00000u) : x;
    }
    exponent = (int32_t)(bits >> 23);
    m = bits & 0x7fffffu;
    if (exponent == 0) {
        for (exponent = 1; (m & 0x800000u) == 0; exponent--) {
            m <<= 1;
        }
    } else {
        m |= 0x800000u;
    }
    exponent -= 127 + 23; /* x = m 2^exponent */
    m <<= 25;             /* 48 or 49 bits: a root of 24 or 25 bits, one more than needed */
    exponent -= 25;
    if (exponent % 2 != 0) {
        m <<= 1;
        exponent--;
    }
    rest = m;
    for (bit = 1u << 25; bit != 0; bit >>= 1) {
        uint64_t step = ((uint64_t)root << 1 | bit) * bit;
        if (step <= rest) {
            rest -= step;
            root |= bit;
        }
    }
    /* root has 25 bits: the last one decides the rounding, and no root of a float is a tie */
    root = (root + 1) >> 1;
    exponent = exponent / 2 + 1;
    return (float)root * epctx_npu__pow2(exponent);
}

/* A loop over `count` elements, first in chunks of a constant length: compilers vectorise those
 * where they hesitate over an unknown count (gcc at -O2). `statement` sees the index as `at`. */
#ifdef __OPTIMIZE_SIZE__
#define EPCTX_NPU__EACH(at, count, statement)                                                      \
    do {                                                                                           \
        size_t at;                                                                                 \
        for (at = 0; at < (count); at++) {                                                         \
            statement                                                                              \
        }                                                                                          \
    } while (0)
#else
#define EPCTX_NPU__EACH(at, count, statement)                                                      \
    do {                                                                                           \
        size_t epctx_npu__i = 0, epctx_npu__j;                                                     \
        for (; (count)-epctx_npu__i >= 16; epctx_npu__i += 16) {                                   \
            for (epctx_npu__j = 0; epctx_npu__j < 16; epctx_npu__j++) {                            \
                const size_t at = epctx_npu__i + epctx_npu__j;                                     \
                statement                                                                          \
            }                                                                                      \
        }                                                                                          \
        for (; epctx_npu__i < (count); epctx_npu__i++) {                                           \
            const size_t at = epctx_npu__i;                                                        \
            statement                                                                              \
        }                                                                                          \
    } while (0)
#endif

/* -- activations: functions of one value, alone or behind another kernel -- */

#define EPCTX_NPU_ACT_LIST(X)                                                                      \
    X(RELU, v < 0.0f ? 0.0f : v)                                                                   \
    X(CLIP, v < a ? a : (v > b ? b : v))                                                           \
    X(LEAKY, v < 0.0f ? v * a : v)                                                                 \
    X(SIGMOID, epctx_npu__sigmoid(v))                                                              \
    X(TANH, epctx_npu__tanh(v))                                                                    \
    X(EXP, epctx_npu__exp(v))                                                                      \
    X(LOG, epctx_npu__log(v))                                                                      \
    X(SQRT, epctx_npu__sqrt(v))                                                                    \
    X(ABS, v < 0.0f ? -v : v)                                                                      \
    X(NEG, -v)                                                                                     \
    X(HARD_SIGMOID, epctx_npu__unit(a *v + b))                                                     \
    X(HARD_SWISH, v *epctx_npu__unit(a *v + b))                                                    \
    X(ELU, v < 0.0f ? a * (epctx_npu__exp(v) - 1.0f) : v)

typedef enum epctx_npu__act_kind {
    EPCTX_NPU__ACT_NONE = 0,
#define EPCTX_NPU__ACT_ENUM(name, value) EPCTX_NPU__ACT_##name,
    EPCTX_NPU_ACT_LIST(EPCTX_NPU__ACT_ENUM)
#undef EPCTX_NPU__ACT_ENUM
        EPCTX_NPU__ACT_COUNT
} epctx_npu__act_kind;

typedef struct epctx_npu__act {
    uint32_t kind;
    float a, b;
} epctx_npu__act;

static float epctx_npu__unit(float v)
{
    return v < 0.0f ? 0.0f : (v > 1.0f ? 1.0f : v);
}

static void epctx_npu__activate(float *y, size_t count, const epctx_npu__act *act)
{
    const float a = act->a, b = act->b;
    (void)a;
    (void)b;
    switch (act->kind) {
    case EPCTX_NPU__ACT_NONE:
        break;
#define EPCTX_NPU__ACT_CASE(name, value)                                                           \
    case EPCTX_NPU__ACT_##name:                                                                    \
        EPCTX_NPU__EACH(i, count, const float v = y[i]; y[i] = value;);                            \
        break;
        EPCTX_NPU_ACT_LIST(EPCTX_NPU__ACT_CASE)
#undef EPCTX_NPU__ACT_CASE
    default:
        break;
    }
}

/* ================================================================================================
 * >>exec: kernels
 *
 * An opcode has a parameter struct (members of four bytes only: it is copied from and to words), a
 * check that gives the bytes each operand must have, and a kernel that never leaves those bytes.
 * ============================================================================================== */

#define EPCTX_NPU__MAX_IN  3
#define EPCTX_NPU__MAX_OUT 2

/* Bytes that a kernel may touch, and their alignment. */
typedef struct epctx_npu__extent {
    uint64_t bytes;
    uint32_t align;
} epctx_npu__extent;

typedef struct epctx_npu__needs {
    epctx_npu__extent in[EPCTX_NPU__MAX_IN];
    epctx_npu__extent out[EPCTX_NPU__MAX_OUT];
} epctx_npu__needs;

/* Where the operands are. An omitted operand is NULL. */
typedef struct epctx_npu__args {
    const void *in[EPCTX_NPU__MAX_IN];
    void *out[EPCTX_NPU__MAX_OUT];
} epctx_npu__args;

static epctx_npu__extent epctx_npu__floats(uint64_t count)
{
    epctx_npu__extent e;
    e.bytes = epctx_npu__mul(count, 4);
    e.align = 4;
    return e;
}

static epctx_npu__extent epctx_npu__items(uint64_t count, uint32_t elem)
{
    epctx_npu__extent e;
    e.bytes = epctx_npu__mul(count, elem);
    e.align = elem;
    return e;
}

static bool epctx_npu__act_ok(const epctx_npu__act *act)
{
    return act->kind < EPCTX_NPU__ACT_COUNT;
}

/* -- Move: strided copy; Transpose, Slice, Concat, Expand, Pad ... -- */

typedef struct epctx_npu__move {
    uint32_t elem;                 /* bytes, 4 or 8 */
    uint32_t rank;                 /* 1..8 */
    uint32_t from_start, to_start; /* elements */
    uint32_t dims[EPCTX_NPU_MAX_RANK];
    int32_t from[EPCTX_NPU_MAX_RANK]; /* strides in elements */
    int32_t to[EPCTX_NPU_MAX_RANK];
} epctx_npu__move;

/* Elements spanned by a strided walk from `start`; false when it goes below zero. */
static bool epctx_npu__span(const uint32_t *dims, const int32_t *strides, uint32_t rank,
                            uint64_t start, uint64_t *count)
{
    uint64_t low = 0, high = 0;
    uint32_t i;
    for (i = 0; i < rank; i++) {
        uint64_t steps = dims[i] - 1u;
        if (dims[i] == 0) {
            return false;
        }
        if (strides[i] < 0) {
            low += epctx_npu__mul(steps, 0u - (uint64_t)(int64_t)strides[i]);
        } else {
            high += epctx_npu__mul(steps, (uint64_t)strides[i]);
        }
        if (low > EPCTX_NPU__MAX_BYTES || high > EPCTX_NPU__MAX_BYTES) {
            return false;
        }
    }
    *count = start + high + 1;
    return low <= start;
}

static bool epctx_npu__check_move(const void *params, epctx_npu__needs *needs)
{
    const epctx_npu__move *p = (const epctx_npu__move *)params;
    uint64_t from, to, count = 1;
    uint32_t i;
    if ((p->elem != 4 && p->elem != 8) || p->rank < 1 || p->rank > EPCTX_NPU_MAX_RANK ||
        !epctx_npu__span(p->dims, p->from, p->rank, p->from_start, &from) ||
        !epctx_npu__span(p->dims, p->to, p->rank, p->to_start, &to)) {
        return false;
    }
    for (i = 0; i < p->rank; i++) {
        count = epctx_npu__mul(count, p->dims[i]);
    }
    needs->in[0] = epctx_npu__items(from, p->elem);
    needs->out[0] = epctx_npu__items(to, p->elem);
    return count <= to; /* a walk that writes places twice could take forever */
}

static void epctx_npu__move_row(uint8_t *to, const uint8_t *from, size_t count, ptrdiff_t to_step,
                                ptrdiff_t from_step, size_t elem)
{
    size_t i;
    if (to_step == 1 && from_step == 1) {
        memcpy(to, from, count * elem);
    } else if (elem == 4) {
        for (i = 0; i < count; i++) {
            memcpy(to + (ptrdiff_t)i * to_step * 4, from + (ptrdiff_t)i * from_step * 4, 4);
        }
    } else {
        for (i = 0; i < count; i++) {
            memcpy(to + (ptrdiff_t)i * to_step * 8, from + (ptrdiff_t)i * from_step * 8, 8);
        }
    }
}

static epctx_status epctx_npu__run_move(const void *params, const epctx_npu__args *args,
                                        epctx_error *error)
{
    const epctx_npu__move *p = (const epctx_npu__move *)params;
    const uint32_t last = p->rank - 1;
    const ptrdiff_t elem = (ptrdiff_t)p->elem;
    const uint8_t *from = (const uint8_t *)args->in[0] + (size_t)p->from_start * p->elem;
    uint8_t *to = (uint8_t *)args->out[0] + (size_t)p->to_start * p->elem;
    uint32_t at[EPCTX_NPU_MAX_RANK] = {0}, i;
    (void)error;
    for (;;) {
        epctx_npu__move_row(to, from, p->dims[last], p->to[last], p->from[last], p->elem);
        for (i = last; i > 0; i--) { /* odometer over the outer dimensions */
            uint32_t d = i - 1;
            from += p->from[d] * elem;
            to += p->to[d] * elem;
            if (++at[d] < p->dims[d]) {
                break;
            }
            at[d] = 0;
            from -= (ptrdiff_t)p->dims[d] * p->from[d] * elem;
            to -= (ptrdiff_t)p->dims[d] * p->to[d] * elem;
        }
        if (i == 0) {
            return EPCTX_OK;
        }
    }
}

/* -- Fill -- */

typedef struct epctx_npu__fill {
    uint32_t count; /* of elements */
    uint32_t elem;  /* 4 or 8 bytes */
    uint32_t low, high;
} epctx_npu__fill;

static bool epctx_npu__check_fill(const void *params, epctx_npu__needs *needs)
{
    const epctx_npu__fill *p = (const epctx_npu__fill *)params;
    needs->out[0] = epctx_npu__items(p->count, p->elem);
    return p->elem == 4 || p->elem == 8;
}

static epctx_status epctx_npu__run_fill(const void *params, const epctx_npu__args *args,
                                        epctx_error *error)
{
    const epctx_npu__fill *p = (const epctx_npu__fill *)params;
    uint8_t *to = (uint8_t *)args->out[0];
    const uint64_t wide = p->low | (uint64_t)p->high << 32;
    size_t i;
    (void)error;
    for (i = 0; i < p->count; i++) {
        if (p->elem == 4) {
            memcpy(to + i * 4, &p->low, 4);
        } else {
            memcpy(to + i * 8, &wide, 8);
        }
    }
    return EPCTX_OK;
}

/* -- Unary: an activation on its own -- */

typedef struct epctx_npu__unary {
    uint32_t count;
    epctx_npu__act act;
} epctx_npu__unary;

static bool epctx_npu__check_unary(const void *params, epctx_npu__needs *needs)
{
    const epctx_npu__unary *p = (const epctx_npu__unary *)params;
    needs->in[0] = needs->out[0] = epctx_npu__floats(p->count);
    return epctx_npu__act_ok(&p->act);
}

static epctx_status epctx_npu__run_unary(const void *params, const epctx_npu__args *args,
                                         epctx_error *error)
{
    const epctx_npu__unary *p = (const epctx_npu__unary *)params;
    (void)error;
    memcpy(args->out[0], args->in[0], (size_t)p->count * sizeof(float));
    epctx_npu__activate((float *)args->out[0], p->count, &p->act);
    return EPCTX_OK;
}

/* -- Binary: element by element with broadcasting -- */

#define EPCTX_NPU_BINARY_LIST(X)                                                                   \
    X(ADD, a + b)                                                                                  \
    X(SUB, a - b)                                                                                  \
    X(MUL, a *b)                                                                                   \
    X(DIV, a / b)                                                                                  \
    X(MIN, a != a || a < b ? a : b)                                                                \
    X(MAX, a != a || a > b ? a : b)                                                                \
    X(PRELU, a < 0.0f ? a * b : a)

typedef enum epctx_npu__binary_kind {
#define EPCTX_NPU__BINARY_ENUM(name, value) EPCTX_NPU__BINARY_##name,
    EPCTX_NPU_BINARY_LIST(EPCTX_NPU__BINARY_ENUM)
#undef EPCTX_NPU__BINARY_ENUM
        EPCTX_NPU__BINARY_COUNT
} epctx_npu__binary_kind;

typedef struct epctx_npu__binary {
    uint32_t kind;
    uint32_t rank;
    uint32_t dims[EPCTX_NPU_MAX_RANK];
    int32_t a[EPCTX_NPU_MAX_RANK]; /* strides in elements, 0 where broadcast; the result is dense */
    int32_t b[EPCTX_NPU_MAX_RANK];
    epctx_npu__act act;
} epctx_npu__binary;

static bool epctx_npu__check_binary(const void *params, epctx_npu__needs *needs)
{
    const epctx_npu__binary *p = (const epctx_npu__binary *)params;
    uint64_t a, b, count = 1;
    uint32_t i;
    if (p->kind >= EPCTX_NPU__BINARY_COUNT || p->rank < 1 || p->rank > EPCTX_NPU_MAX_RANK ||
        !epctx_npu__span(p->dims, p->a, p->rank, 0, &a) ||
        !epctx_npu__span(p->dims, p->b, p->rank, 0, &b)) {
        return false;
    }
    for (i = 0; i < p->rank; i++) {
        count = epctx_npu__mul(count, p->dims[i]);
    }
    needs->in[0] = epctx_npu__floats(a);
    needs->in[1] = epctx_npu__floats(b);
    needs->out[0] = epctx_npu__floats(count);
    return epctx_npu__act_ok(&p->act);
}

static void epctx_npu__binary_row(uint32_t kind, float *EPCTX_NPU__RESTRICT y, const float *x,
                                  const float *z, size_t count, ptrdiff_t xs, ptrdiff_t zs)
{
    switch (kind) {
#define EPCTX_NPU__BINARY_CASE(name, value)                                                        \
    case EPCTX_NPU__BINARY_##name:                                                                 \
        if (xs == 1 && zs == 1) {                                                                  \
            EPCTX_NPU__EACH(i, count, const float a = x[i]; const float b = z[i]; y[i] = value;);  \
        } else if (xs == 1 && zs == 0) {                                                           \
            const float b = z[0];                                                                  \
            EPCTX_NPU__EACH(i, count, const float a = x[i]; y[i] = value;);                        \
        } else {                                                                                   \
            ptrdiff_t i;                                                                           \
            for (i = 0; i < (ptrdiff_t)count; i++) {                                               \
                const float a = x[i * xs], b = z[i * zs];                                          \
                y[i] = value;                                                                      \
            }                                                                                      \
        }                                                                                          \
        break;
        EPCTX_NPU_BINARY_LIST(EPCTX_NPU__BINARY_CASE)
#undef EPCTX_NPU__BINARY_CASE
    default:
        break;
    }
}

static epctx_status epctx_npu__run_binary(const void *params, const epctx_npu__args *args,
                                          epctx_error *error)
{
    const epctx_npu__binary *p = (const epctx_npu__binary *)params;
    const uint32_t last = p->rank - 1;
    const size_t count = p->dims[last];
    const float *a = (const float *)args->in[0], *b = (const float *)args->in[1];
    float *y = (float *)args->out[0];
    uint32_t at[EPCTX_NPU_MAX_RANK] = {0}, i;
    (void)error;
    for (;;) {
        epctx_npu__binary_row(p->kind, y, a, b, count, p->a[last], p->b[last]);
        epctx_npu__activate(y, count, &p->act);
        y += count;
        for (i = last; i > 0; i--) {
            uint32_t d = i - 1;
            a += p->a[d];
            b += p->b[d];
            if (++at[d] < p->dims[d]) {
                break;
            }
            at[d] = 0;
            a -= (ptrdiff_t)p->dims[d] * p->a[d];
            b -= (ptrdiff_t)p->dims[d] * p->b[d];
        }
        if (i == 0) {
            return EPCTX_OK;
        }
    }
}

/* -- Affine: y = x * scale[channel] + shift[channel]; BatchNormalization -- */

typedef struct epctx_npu__affine {
    uint32_t outer, channels, inner;
    epctx_npu__act act;
} epctx_npu__affine;

static bool epctx_npu__check_affine(const void *params, epctx_npu__needs *needs)
{
    const epctx_npu__affine *p = (const epctx_npu__affine *)params;
    needs->in[0] = needs->out[0] =
        epctx_npu__floats(epctx_npu__mul3(p->outer, p->channels, p->inner));
    needs->in[1] = needs->in[2] = epctx_npu__floats(p->channels);
    return epctx_npu__act_ok(&p->act);
}

static epctx_status epctx_npu__run_affine(const void *params, const epctx_npu__args *args,
                                          epctx_error *error)
{
    const epctx_npu__affine *p = (const epctx_npu__affine *)params;
    const float *x = (const float *)args->in[0];
    const float *scale = (const float *)args->in[1], *shift = (const float *)args->in[2];
    float *y = (float *)args->out[0];
    size_t o, c, i;
    (void)error;
    for (o = 0; o < p->outer; o++) {
        for (c = 0; c < p->channels; c++) {
            for (i = 0; i < p->inner; i++) {
                y[i] = x[i] * scale[c] + shift[c];
            }
            epctx_npu__activate(y, p->inner, &p->act);
            x += p->inner;
            y += p->inner;
        }
    }
    return EPCTX_OK;
}

/* -- Pack: a matrix in blocks of rows, [batch][row block][k][row in block], zero-padded -- */

typedef struct epctx_npu__pack {
    uint32_t batch, rows, depth, block;
    uint32_t batch_stride, row_stride, depth_stride;
} epctx_npu__pack;

static uint64_t epctx_npu__packed(uint64_t batch, uint64_t rows, uint64_t depth, uint64_t block)
{
    return epctx_npu__mul4(batch, (rows + block - 1) / block, block, depth);
}

/* Elements up to the last one of a walk with three strides. */
static uint64_t epctx_npu__reach(uint64_t n1, uint64_t s1, uint64_t n2, uint64_t s2, uint64_t n3,
                                 uint64_t s3)
{
    if (n1 == 0 || n2 == 0 || n3 == 0) {
        return 0;
    }
    return epctx_npu__mul(n1 - 1, s1) + epctx_npu__mul(n2 - 1, s2) + epctx_npu__mul(n3 - 1, s3) + 1;
}

static bool epctx_npu__check_pack(const void *params, epctx_npu__needs *needs)
{
    const epctx_npu__pack *p = (const epctx_npu__pack *)params;
    if (p->block == 0 || p->block > 64) {
        return false;
    }
    needs->in[0] = epctx_npu__floats(epctx_npu__reach(p->batch, p->batch_stride, p->rows,
                                                      p->row_stride, p->depth, p->depth_stride));
    needs->out[0] = epctx_npu__floats(epctx_npu__packed(p->batch, p->rows, p->depth, p->block));
    return true;
}

static epctx_status epctx_npu__run_pack(const void *params, const epctx_npu__args *args,
                                        epctx_error *error)
{
    const epctx_npu__pack *p = (const epctx_npu__pack *)params;
    float *y = (float *)args->out[0];
    size_t g, r, k, j;
    (void)error;
    for (g = 0; g < p->batch; g++) {
        const float *x = (const float *)args->in[0] + g * p->batch_stride;
        for (r = 0; r < p->rows; r += p->block) {
            size_t rows = p->rows - r < p->block ? p->rows - r : p->block;
            for (k = 0; k < p->depth; k++) {
                for (j = 0; j < p->block; j++) {
                    *y++ = j < rows ? x[(r + j) * p->row_stride + k * p->depth_stride] : 0.0f;
                }
            }
        }
    }
    return EPCTX_OK;
}

/* -- the register tile that Conv and Gemm share -- */

#if defined(__AVX__)
#define EPCTX_NPU__WIDTH 16
#else
#define EPCTX_NPU__WIDTH 8
#endif
#define EPCTX_NPU__TILE (EPCTX_NPU__ROWS * EPCTX_NPU__COLUMNS)

/* tile[r][j] = sum over k of a[r][k * step] * b[k][j] for 4 rows and EPCTX_NPU__WIDTH columns; b
 * and the tile have rows of EPCTX_NPU__COLUMNS. */
static void epctx_npu__tile_part(const float *const *a, size_t step, const float *b, size_t depth,
                                 float *tile)
{
    const float *a0 = a[0], *a1 = a[1], *a2 = a[2], *a3 = a[3];
    float c0[EPCTX_NPU__WIDTH], c1[EPCTX_NPU__WIDTH], c2[EPCTX_NPU__WIDTH], c3[EPCTX_NPU__WIDTH];
    size_t k, j;
    EPCTX_NPU__UNROLL
    for (j = 0; j < EPCTX_NPU__WIDTH; j++) {
        c0[j] = c1[j] = c2[j] = c3[j] = 0.0f;
    }
    for (k = 0; k < depth; k++) {
        const float x0 = a0[k * step], x1 = a1[k * step], x2 = a2[k * step], x3 = a3[k * step];
        EPCTX_NPU__UNROLL
        for (j = 0; j < EPCTX_NPU__WIDTH; j++) {
            const float y = b[j];
            c0[j] += x0 * y;
            c1[j] += x1 * y;
            c2[j] += x2 * y;
            c3[j] += x3 * y;
        }
        b += EPCTX_NPU__COLUMNS;
    }
    EPCTX_NPU__UNROLL
    for (j = 0; j < EPCTX_NPU__WIDTH; j++) {
        tile[j] = c0[j];
        tile[j + EPCTX_NPU__COLUMNS] = c1[j];
        tile[j + 2 * EPCTX_NPU__COLUMNS] = c2[j];
        tile[j + 3 * EPCTX_NPU__COLUMNS] = c3[j];
    }
}

static void epctx_npu__tile(const float *const *a, size_t step, const float *b, size_t depth,
                            float *tile)
{
    size_t c;
    for (c = 0; c < EPCTX_NPU__COLUMNS; c += EPCTX_NPU__WIDTH) {
        epctx_npu__tile_part(a, step, b + c, depth, tile + c);
    }
}

/* One row of the same. */
static void epctx_npu__tile_row(const float *a, size_t step, const float *b, size_t depth,
                                float *tile)
{
    float c[EPCTX_NPU__COLUMNS];
    size_t k, j;
    EPCTX_NPU__UNROLL
    for (j = 0; j < EPCTX_NPU__COLUMNS; j++) {
        c[j] = 0.0f;
    }
    for (k = 0; k < depth; k++) {
        const float x = a[k * step];
        EPCTX_NPU__UNROLL
        for (j = 0; j < EPCTX_NPU__COLUMNS; j++) {
            c[j] += x * b[j];
        }
        b += EPCTX_NPU__COLUMNS;
    }
    EPCTX_NPU__UNROLL
    for (j = 0; j < EPCTX_NPU__COLUMNS; j++) {
        tile[j] = c[j];
    }
}

/* -- Conv: 2-D convolution, NCHW -- */

/* A sliding window over a plane; Conv, Depthwise and Pool. */
typedef struct epctx_npu__window {
    uint32_t in_h, in_w, out_h, out_w;
    uint32_t kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w;
    uint32_t top, left, bottom, right; /* padding */
} epctx_npu__window;

/* Every position the kernels compute fits 31 bits; the output does not reach past the padding by a
 * whole stride (ceil_mode lets the last window reach past it by less). */
static bool epctx_npu__axis_ok(uint64_t in, uint64_t out, uint64_t kernel, uint64_t stride,
                               uint64_t dilation, uint64_t before, uint64_t after)
{
    const uint64_t top = INT32_MAX / 4;
    uint64_t reach;
    if (in < 1 || out < 1 || kernel < 1 || stride < 1 || dilation < 1 || in > top || out > top ||
        kernel > top || stride > top || dilation > top || before > top || after > top) {
        return false;
    }
    reach = (out - 1) * stride + (kernel - 1) * dilation + 1;
    return reach <= top && reach < in + before + after + stride;
}

static bool epctx_npu__window_ok(const epctx_npu__window *w)
{
    return epctx_npu__axis_ok(w->in_h, w->out_h, w->kernel_h, w->stride_h, w->dilation_h, w->top,
                              w->bottom) &&
           epctx_npu__axis_ok(w->in_w, w->out_w, w->kernel_w, w->stride_w, w->dilation_w, w->left,
                              w->right);
}

/* Indices i in low..high-1 of `count` for which start + i * step is in 0..size-1. */
static void epctx_npu__inside(int32_t start, int32_t step, int32_t count, int32_t size,
                              int32_t *low, int32_t *high)
{
    int32_t first = start < 0 ? (-start + step - 1) / step : 0;
    int32_t end = start < size ? (size - start + step - 1) / step : 0;
    *high = end < count ? end : count;
    *low = first < *high ? first : *high;
}

typedef struct epctx_npu__conv {
    uint32_t batch, groups, in_channels, out_channels; /* channels of one group */
    uint32_t tiles; /* of EPCTX_NPU__COLUMNS pixels that are gathered together */
    epctx_npu__window window;
    epctx_npu__act act;
} epctx_npu__conv;

static bool epctx_npu__check_conv(const void *params, epctx_npu__needs *needs)
{
    const epctx_npu__conv *p = (const epctx_npu__conv *)params;
    const epctx_npu__window *w = &p->window;
    uint64_t planes = epctx_npu__mul(p->batch, p->groups);
    uint64_t depth = epctx_npu__mul3(p->in_channels, w->kernel_h, w->kernel_w);
    needs->in[0] = epctx_npu__floats(epctx_npu__mul4(planes, p->in_channels, w->in_h, w->in_w));
    needs->in[1] =
        epctx_npu__floats(epctx_npu__packed(p->groups, p->out_channels, depth, EPCTX_NPU__ROWS));
    needs->in[2] = epctx_npu__floats(epctx_npu__mul(p->groups, p->out_channels));
    needs->out[0] = epctx_npu__floats(epctx_npu__mul4(planes, p->out_channels, w->out_h, w->out_w));
    needs->out[1] = epctx_npu__floats(epctx_npu__mul3(p->tiles, depth, EPCTX_NPU__COLUMNS));
    return p->tiles >= 1 && epctx_npu__window_ok(w) && epctx_npu__act_ok(&p->act);
}

/* Copies what the kernel sees at `count` pixels of output row `oy` from column `ox` to the columns
 * of `patch` ([channel][ky][kx][EPCTX_NPU__COLUMNS]), zero where it is padding. */
static void epctx_npu__gather_row(const epctx_npu__conv *p, const float *x, uint32_t oy,
                                  uint32_t ox, uint32_t count, float *patch)
{
    const epctx_npu__window *w = &p->window;
    const size_t plane = (size_t)w->in_h * w->in_w;
    const size_t jump = (size_t)w->kernel_h * w->kernel_w * EPCTX_NPU__COLUMNS;
    const int32_t step = (int32_t)w->stride_w;
    uint32_t ky, kx, c;
    for (ky = 0; ky < w->kernel_h; ky++) {
        const int32_t iy = (int32_t)(oy * w->stride_h + ky * w->dilation_h) - (int32_t)w->top;
        for (kx = 0; kx < w->kernel_w; kx++) {
            const int32_t ix = (int32_t)(ox * w->stride_w + kx * w->dilation_w) - (int32_t)w->left;
            float *to = patch + (size_t)(ky * w->kernel_w + kx) * EPCTX_NPU__COLUMNS;
            int32_t low = 0, high = 0, i;
            const float *from = x;
            if (iy >= 0 && iy < (int32_t)w->in_h) {
                epctx_npu__inside(ix, step, (int32_t)count, (int32_t)w->in_w, &low, &high);
                from += (size_t)iy * w->in_w;
            }
            for (c = 0; c < p->in_channels; c++) {
                for (i = 0; i < low; i++) {
                    to[i] = 0.0f;
                }
                if (step == 1) {
                    for (; i < high; i++) {
                        to[i] = from[ix + i];
                    }
                } else {
                    for (; i < high; i++) {
                        to[i] = from[ix + i * step];
                    }
                }
                for (; i < (int32_t)count; i++) {
                    to[i] = 0.0f;
                }
                to += jump;
                from += plane;
            }
        }
    }
}

/* Gathers the pixels first .. first+count-1 of the output plane; a tile may span several rows. */
static void epctx_npu__gather(const epctx_npu__conv *p, const float *x, size_t first, size_t count,
                              float *patch)
{
    const uint32_t width = p->window.out_w;
    uint32_t oy = (uint32_t)(first / width), ox = (uint32_t)(first % width), done = 0;
    while (done < count) {
        uint32_t left = (uint32_t)count - done;
        uint32_t part = width - ox < left ? width - ox : left;
        epctx_npu__gather_row(p, x, oy, ox, part, patch + done);
        done += part;
        ox = 0;
        oy++;
    }
}

static void epctx_npu__conv_store(float *y, size_t plane, const float *bias, size_t rows,
                                  size_t columns, float *tile, const epctx_npu__act *act)
{
    size_t r, j;
    if (bias != NULL) {
        for (r = 0; r < rows; r++) {
            for (j = 0; j < EPCTX_NPU__COLUMNS; j++) {
                tile[r * EPCTX_NPU__COLUMNS + j] += bias[r];
            }
        }
    }
    epctx_npu__activate(tile, rows * EPCTX_NPU__COLUMNS, act);
    for (r = 0; r < rows; r++) {
        memcpy(y + r * plane, tile + r * EPCTX_NPU__COLUMNS, columns * sizeof(float));
    }
}

/* All output channels of one group for `count` gathered pixels. */
static void epctx_npu__conv_block(const epctx_npu__conv *p, const float *patch, const float *w,
                                  const float *bias, float *y, size_t count)
{
    const size_t depth = (size_t)p->in_channels * p->window.kernel_h * p->window.kernel_w;
    const size_t plane = (size_t)p->window.out_h * p->window.out_w;
    float tile[EPCTX_NPU__TILE];
    size_t oc, t;
    for (oc = 0; oc < p->out_channels; oc += EPCTX_NPU__ROWS) {
        const float *rows[EPCTX_NPU__ROWS];
        size_t left = p->out_channels - oc;
        size_t valid = left < EPCTX_NPU__ROWS ? left : EPCTX_NPU__ROWS;
        rows[0] = w + oc * depth;
        rows[1] = rows[0] + 1;
        rows[2] = rows[0] + 2;
        rows[3] = rows[0] + 3;
        for (t = 0; t < count; t += EPCTX_NPU__COLUMNS) {
            size_t columns = count - t < EPCTX_NPU__COLUMNS ? count - t : EPCTX_NPU__COLUMNS;
            epctx_npu__tile(rows, EPCTX_NPU__ROWS, patch + t * depth, depth, tile);
            epctx_npu__conv_store(y + oc * plane + t, plane, bias != NULL ? bias + oc : NULL, valid,
                                  columns, tile, &p->act);
        }
    }
}

static epctx_status epctx_npu__run_conv(const void *params, const epctx_npu__args *args,
                                        epctx_error *error)
{
    const epctx_npu__conv *p = (const epctx_npu__conv *)params;
    const epctx_npu__window *w = &p->window;
    const size_t depth = (size_t)p->in_channels * w->kernel_h * w->kernel_w;
    const size_t in_size = (size_t)p->in_channels * w->in_h * w->in_w;
    const size_t plane = (size_t)w->out_h * w->out_w;
    const size_t blocks = (p->out_channels + EPCTX_NPU__ROWS - 1) / EPCTX_NPU__ROWS;
    const size_t step = (size_t)p->tiles * EPCTX_NPU__COLUMNS;
    const float *x = (const float *)args->in[0], *bias = (const float *)args->in[2];
    float *y = (float *)args->out[0], *patch = (float *)args->out[1];
    size_t n, g, first, t;
    (void)error;
    if (plane % EPCTX_NPU__COLUMNS != 0) { /* columns beyond the plane are computed, not kept */
        memset(patch, 0, (size_t)p->tiles * depth * EPCTX_NPU__COLUMNS * sizeof(float));
    }
    for (n = 0; n < p->batch; n++) {
        for (g = 0; g < p->groups; g++) {
            const float *weights =
                (const float *)args->in[1] + g * blocks * EPCTX_NPU__ROWS * depth;
            for (first = 0; first < plane; first += step) {
                size_t count = plane - first < step ? plane - first : step;
                for (t = 0; t < count; t += EPCTX_NPU__COLUMNS) {
                    epctx_npu__gather(p, x, first + t,
                                      count - t < EPCTX_NPU__COLUMNS ? count - t
                                                                     : EPCTX_NPU__COLUMNS,
                                      patch + t * depth);
                }
                epctx_npu__conv_block(p, patch, weights,
                                      bias != NULL ? bias + g * p->out_channels : NULL, y + first,
                                      count);
            }
            x += in_size;
            y += (size_t)p->out_channels * plane;
        }
    }
    return EPCTX_OK;
}

/* -- Depthwise: a convolution whose output channels read one input channel each -- */

typedef struct epctx_npu__depthwise {
    uint32_t batch, channels, multiplier; /* output channels per input channel */
    epctx_npu__window window;
    epctx_npu__act act;
} epctx_npu__depthwise;

static bool epctx_npu__check_depthwise(const void *params, epctx_npu__needs *needs)
{
    const epctx_npu__depthwise *p = (const epctx_npu__depthwise *)params;
    const epctx_npu__window *w = &p->window;
    uint64_t outputs = epctx_npu__mul(p->channels, p->multiplier);
    needs->in[0] = epctx_npu__floats(epctx_npu__mul4(p->batch, p->channels, w->in_h, w->in_w));
    needs->in[1] = epctx_npu__floats(epctx_npu__mul3(outputs, w->kernel_h, w->kernel_w));
    needs->in[2] = epctx_npu__floats(outputs);
    needs->out[0] = epctx_npu__floats(epctx_npu__mul4(p->batch, outputs, w->out_h, w->out_w));
    return epctx_npu__window_ok(w) && epctx_npu__act_ok(&p->act);
}

/* y[i] += k * x[start + i * step] wherever that is inside the row */
static void epctx_npu__add_row(float *EPCTX_NPU__RESTRICT y, const float *EPCTX_NPU__RESTRICT x,
                               float k, int32_t start, int32_t step, int32_t count, int32_t size)
{
    int32_t low, high;
    size_t length;
    epctx_npu__inside(start, step, count, size, &low, &high);
    length = (size_t)(high - low);
    y += low;
    x += length > 0 ? start + low * step : 0;
    if (step == 1) {
        EPCTX_NPU__EACH(i, length, y[i] += k * x[i];);
    } else if (step == 2) {
        EPCTX_NPU__EACH(i, length, y[i] += k * x[2 * i];);
    } else {
        EPCTX_NPU__EACH(i, length, y[i] += k * x[i * (size_t)step];);
    }
}

static void epctx_npu__depthwise_plane(const epctx_npu__window *w, const float *x, const float *k,
                                       float bias, float *y)
{
    uint32_t oy, ky, kx, i;
    for (oy = 0; oy < w->out_h; oy++) {
        for (i = 0; i < w->out_w; i++) {
            y[i] = bias;
        }
        for (ky = 0; ky < w->kernel_h; ky++) {
            int32_t iy = (int32_t)(oy * w->stride_h + ky * w->dilation_h) - (int32_t)w->top;
            if (iy < 0 || iy >= (int32_t)w->in_h) {
                continue;
            }
            for (kx = 0; kx < w->kernel_w; kx++) {
                epctx_npu__add_row(y, x + (size_t)iy * w->in_w, k[ky * w->kernel_w + kx],
                                   (int32_t)(kx * w->dilation_w) - (int32_t)w->left,
                                   (int32_t)w->stride_w, (int32_t)w->out_w, (int32_t)w->in_w);
            }
        }
        y += w->out_w;
    }
}

static epctx_status epctx_npu__run_depthwise(const void *params, const epctx_npu__args *args,
                                             epctx_error *error)
{
    const epctx_npu__depthwise *p = (const epctx_npu__depthwise *)params;
    const epctx_npu__window *w = &p->window;
    const size_t in_plane = (size_t)w->in_h * w->in_w, out_plane = (size_t)w->out_h * w->out_w;
    const float *x = (const float *)args->in[0], *bias = (const float *)args->in[2];
    float *y = (float *)args->out[0];
    size_t n, c, m;
    (void)error;
    for (n = 0; n < p->batch; n++) {
        const float *k = (const float *)args->in[1];
        for (c = 0; c < p->channels; c++) {
            for (m = 0; m < p->multiplier; m++) {
                epctx_npu__depthwise_plane(w, x, k,
                                           bias != NULL ? bias[c * p->multiplier + m] : 0.0f, y);
                epctx_npu__activate(y, out_plane, &p->act);
                k += (size_t)w->kernel_h * w->kernel_w;
                y += out_plane;
            }
            x += in_plane;
        }
    }
    return EPCTX_OK;
}

/* -- Gemm: y = act(alpha * a b + bias), b packed -- */

typedef struct epctx_npu__gemm {
    uint32_t batch, m, n, k;
    uint32_t a_batch, a_row, a_step; /* strides of a in elements */
    uint32_t b_shared;               /* 1: one b for the whole batch */
    float alpha;
    epctx_npu__act act;
} epctx_npu__gemm;

static bool epctx_npu__check_gemm(const void *params, epctx_npu__needs *needs)
{
    const epctx_npu__gemm *p = (const epctx_npu__gemm *)params;
    needs->in[0] =
        epctx_npu__floats(epctx_npu__reach(p->batch, p->a_batch, p->m, p->a_row, p->k, p->a_step));
    needs->in[1] = epctx_npu__floats(
        epctx_npu__packed(p->b_shared != 0 ? 1 : p->batch, p->n, p->k, EPCTX_NPU__COLUMNS));
    needs->in[2] = epctx_npu__floats(p->n);
    needs->out[0] = epctx_npu__floats(epctx_npu__mul3(p->batch, p->m, p->n));
    return p->b_shared <= 1 && epctx_npu__act_ok(&p->act);
}

static void epctx_npu__gemm_store(const epctx_npu__gemm *p, float *tile, const float *bias,
                                  size_t rows, size_t columns, float *y)
{
    size_t r, j;
    for (r = 0; r < rows; r++) {
        float *t = tile + r * EPCTX_NPU__COLUMNS;
        if (p->alpha != 1.0f) {
            for (j = 0; j < columns; j++) {
                t[j] *= p->alpha;
            }
        }
        if (bias != NULL) {
            for (j = 0; j < columns; j++) {
                t[j] += bias[j];
            }
        }
    }
    epctx_npu__activate(tile, rows * EPCTX_NPU__COLUMNS, &p->act);
    for (r = 0; r < rows; r++) {
        memcpy(y + r * p->n, tile + r * EPCTX_NPU__COLUMNS, columns * sizeof(float));
    }
}

/* One block of columns. */
static void epctx_npu__gemm_block(const epctx_npu__gemm *p, const float *a, const float *b,
                                  const float *bias, float *y, size_t columns)
{
    float tile[EPCTX_NPU__TILE];
    size_t m;
    for (m = 0; m < p->m;) {
        const float *row = a + m * p->a_row;
        size_t left = p->m - m, valid = left < EPCTX_NPU__ROWS ? left : EPCTX_NPU__ROWS;
        if (valid == 1) {
            epctx_npu__tile_row(row, p->a_step, b, p->k, tile);
        } else {
            const float *rows[EPCTX_NPU__ROWS];
            rows[0] = row;
            rows[1] = row + p->a_row;
            rows[2] = valid > 2 ? rows[1] + p->a_row : row;
            rows[3] = valid > 3 ? rows[2] + p->a_row : row;
            epctx_npu__tile(rows, p->a_step, b, p->k, tile);
        }
        epctx_npu__gemm_store(p, tile, bias, valid, columns, y + m * p->n);
        m += valid;
    }
}

static epctx_status epctx_npu__run_gemm(const void *params, const epctx_npu__args *args,
                                        epctx_error *error)
{
    const epctx_npu__gemm *p = (const epctx_npu__gemm *)params;
    const float *a = (const float *)args->in[0], *b = (const float *)args->in[1];
    const float *bias = (const float *)args->in[2];
    const size_t b_size = (size_t)epctx_npu__packed(1, p->n, p->k, EPCTX_NPU__COLUMNS);
    float *y = (float *)args->out[0];
    size_t g, n;
    (void)error;
    for (g = 0; g < p->batch; g++) {
        for (n = 0; n < p->n; n += EPCTX_NPU__COLUMNS) {
            size_t columns = p->n - n < EPCTX_NPU__COLUMNS ? p->n - n : EPCTX_NPU__COLUMNS;
            epctx_npu__gemm_block(p, a, b + n * p->k, bias != NULL ? bias + n : NULL, y + n,
                                  columns);
        }
        a += p->a_batch;
        b += p->b_shared != 0 ? 0 : b_size;
        y += (size_t)p->m * p->n;
    }
    return EPCTX_OK;
}

/* -- Pool -- */

typedef struct epctx_npu__pool {
    uint32_t planes;
    uint32_t average;       /* 0: maximum */
    uint32_t count_padding; /* the average divides by padded positions too */
    epctx_npu__window window;
} epctx_npu__pool;

static bool epctx_npu__check_pool(const void *params, epctx_npu__needs *needs)
{
    const epctx_npu__pool *p = (const epctx_npu__pool *)params;
    const epctx_npu__window *w = &p->window;
    needs->in[0] = epctx_npu__floats(epctx_npu__mul3(p->planes, w->in_h, w->in_w));
    needs->out[0] = epctx_npu__floats(epctx_npu__mul3(p->planes, w->out_h, w->out_w));
    return epctx_npu__window_ok(w);
}

/* Positions of one window of an axis that the average counts. */
static int32_t epctx_npu__counted(uint32_t out, uint32_t stride, uint32_t kernel, uint32_t dilation,
                                  uint32_t in, uint32_t before, uint32_t after, bool count_padding)
{
    const int32_t start = (int32_t)(out * stride) - (int32_t)before;
    int32_t low, high;
    if (count_padding) { /* the window may reach past the padding (ceil_mode): not counted */
        epctx_npu__inside(start + (int32_t)before, (int32_t)dilation, (int32_t)kernel,
                          (int32_t)(in + before + after), &low, &high);
    } else {
        epctx_npu__inside(start, (int32_t)dilation, (int32_t)kernel, (int32_t)in, &low, &high);
    }
    return high - low;
}

/* y[i] = max(y[i], x[start + i * step]) wherever that is inside the row; NaN wins */
static void epctx_npu__max_row(float *EPCTX_NPU__RESTRICT y, const float *EPCTX_NPU__RESTRICT x,
                               int32_t start, int32_t step, int32_t count, int32_t size)
{
    int32_t low, high;
    size_t length;
    epctx_npu__inside(start, step, count, size, &low, &high);
    length = (size_t)(high - low);
    y += low;
    x += length > 0 ? start + low * step : 0;
    if (step == 1) {
        EPCTX_NPU__EACH(i, length, y[i] = y[i] >= x[i] ? y[i] : x[i];);
    } else if (step == 2) {
        EPCTX_NPU__EACH(i, length, y[i] = y[i] >= x[2 * i] ? y[i] : x[2 * i];);
    } else {
        EPCTX_NPU__EACH(i, length, const float v = x[i * (size_t)step];
                        y[i] = y[i] >= v ? y[i] : v;);
    }
}

/* One output row: the window's rows and columns are laid over it one after the other. */
static void epctx_npu__pool_row(const epctx_npu__pool *p, const float *x, uint32_t oy, float *y)
{
    const epctx_npu__window *w = &p->window;
    const int32_t start = (int32_t)(oy * w->stride_h) - (int32_t)w->top;
    const float first = p->average != 0 ? 0.0f : epctx_npu__float_of(0xff800000u);
    int32_t low, high, first_kx, last_kx, ky;
    uint32_t kx, i;
    for (i = 0; i < w->out_w; i++) {
        y[i] = first;
    }
    /* columns left of this one see only padding, even at the last output */
    epctx_npu__inside((int32_t)((w->out_w - 1) * w->stride_w) - (int32_t)w->left,
                      (int32_t)w->dilation_w, (int32_t)w->kernel_w, INT32_MAX / 2, &first_kx,
                      &last_kx);
    epctx_npu__inside(start, (int32_t)w->dilation_h, (int32_t)w->kernel_h, (int32_t)w->in_h, &low,
                      &high);
    for (ky = low; ky < high; ky++) {
        const float *row = x + (size_t)(start + ky * (int32_t)w->dilation_h) * w->in_w;
        for (kx = (uint32_t)first_kx; kx < w->kernel_w; kx++) {
            const int32_t from = (int32_t)(kx * w->dilation_w) - (int32_t)w->left;
            if (from >= (int32_t)w->in_w) {
                break;
            }
            if (p->average != 0) {
                epctx_npu__add_row(y, row, 1.0f, from, (int32_t)w->stride_w, (int32_t)w->out_w,
                                   (int32_t)w->in_w);
            } else {
                epctx_npu__max_row(y, row, from, (int32_t)w->stride_w, (int32_t)w->out_w,
                                   (int32_t)w->in_w);
            }
        }
    }
}

static void epctx_npu__average_row(const epctx_npu__pool *p, uint32_t oy, float *y)
{
    const epctx_npu__window *w = &p->window;
    const bool padded = p->count_padding != 0;
    const int32_t rows = epctx_npu__counted(oy, w->stride_h, w->kernel_h, w->dilation_h, w->in_h,
                                            w->top, w->bottom, padded);
    uint32_t ox;
    for (ox = 0; ox < w->out_w; ox++) {
        const float count =
            (float)rows * (float)epctx_npu__counted(ox, w->stride_w, w->kernel_w, w->dilation_w,
                                                    w->in_w, w->left, w->right, padded);
        y[ox] = count > 0.0f ? y[ox] / count : 0.0f;
    }
}

static epctx_status epctx_npu__run_pool(const void *params, const epctx_npu__args *args,
                                        epctx_error *error)
{
    const epctx_npu__pool *p = (const epctx_npu__pool *)params;
    const epctx_npu__window *w = &p->window;
    const float *x = (const float *)args->in[0];
    float *y = (float *)args->out[0];
    uint32_t plane, oy;
    (void)error;
    for (plane = 0; plane < p->planes; plane++) {
        for (oy = 0; oy < w->out_h; oy++) {
            epctx_npu__pool_row(p, x, oy, y);
            if (p->average != 0) {
                epctx_npu__average_row(p, oy, y);
            }
            y += w->out_w;
        }
        x += (size_t)w->in_h * w->in_w;
    }
    return EPCTX_OK;
}

/* -- Reduce: over the middle of [outer][count][inner] -- */

typedef enum epctx_npu__reduce_kind {
    EPCTX_NPU__REDUCE_SUM = 0,
    EPCTX_NPU__REDUCE_MEAN,
    EPCTX_NPU__REDUCE_MAX,
    EPCTX_NPU__REDUCE_MIN,
    EPCTX_NPU__REDUCE_COUNT
} epctx_npu__reduce_kind;

typedef struct epctx_npu__reduce {
    uint32_t kind, outer, count, inner;
} epctx_npu__reduce;

static bool epctx_npu__check_reduce(const void *params, epctx_npu__needs *needs)
{
    const epctx_npu__reduce *p = (const epctx_npu__reduce *)params;
    needs->in[0] = epctx_npu__floats(epctx_npu__mul3(p->outer, p->count, p->inner));
    needs->out[0] = epctx_npu__floats(epctx_npu__mul(p->outer, p->inner));
    return p->kind < EPCTX_NPU__REDUCE_COUNT && p->count >= 1;
}

/* Sums in double: long means of floats lose digits otherwise, and nothing here is compile time. */
static float epctx_npu__reduce_one(const epctx_npu__reduce *p, const float *x)
{
    float best = x[0];
    double sum = 0.0;
    size_t i;
    if (p->kind <= EPCTX_NPU__REDUCE_MEAN) {
        for (i = 0; i < p->count; i++) {
            sum += (double)x[i * p->inner];
        }
        return (float)(p->kind == EPCTX_NPU__REDUCE_MEAN ? sum / (double)p->count : sum);
    }
    for (i = 1; i < p->count; i++) {
        const float v = x[i * p->inner];
        if (p->kind == EPCTX_NPU__REDUCE_MAX ? v > best || v != v : v < best || v != v) {
            best = v;
        }
    }
    return best;
}

static epctx_status epctx_npu__run_reduce(const void *params, const epctx_npu__args *args,
                                          epctx_error *error)
{
    const epctx_npu__reduce *p = (const epctx_npu__reduce *)params;
    const float *x = (const float *)args->in[0];
    float *y = (float *)args->out[0];
    size_t o, i;
    (void)error;
    for (o = 0; o < p->outer; o++) {
        for (i = 0; i < p->inner; i++) {
            *y++ = epctx_npu__reduce_one(p, x + i);
        }
        x += (size_t)p->count * p->inner;
    }
    return EPCTX_OK;
}

/* -- Softmax over the middle of [outer][count][inner] -- */

typedef struct epctx_npu__softmax {
    uint32_t log, outer, count, inner;
} epctx_npu__softmax;

static bool epctx_npu__check_softmax(const void *params, epctx_npu__needs *needs)
{
    const epctx_npu__softmax *p = (const epctx_npu__softmax *)params;
    needs->in[0] = needs->out[0] = epctx_npu__floats(epctx_npu__mul3(p->outer, p->count, p->inner));
    return p->log <= 1 && p->count >= 1;
}

static void epctx_npu__softmax_one(const float *x, float *y, size_t count, size_t step, bool log)
{
    float top = x[0], sum = 0.0f, scale;
    size_t i;
    for (i = 1; i < count; i++) {
        top = x[i * step] > top ? x[i * step] : top;
    }
    for (i = 0; i < count; i++) {
        const float e = epctx_npu__exp(x[i * step] - top);
        sum += e;
        y[i * step] = e;
    }
    if (log) {
        scale = epctx_npu__log(sum);
        for (i = 0; i < count; i++) {
            y[i * step] = (x[i * step] - top) - scale;
        }
        return;
    }
    scale = 1.0f / sum;
    for (i = 0; i < count; i++) {
        y[i * step] *= scale;
    }
}

static epctx_status epctx_npu__run_softmax(const void *params, const epctx_npu__args *args,
                                           epctx_error *error)
{
    const epctx_npu__softmax *p = (const epctx_npu__softmax *)params;
    const float *x = (const float *)args->in[0];
    float *y = (float *)args->out[0];
    const size_t block = (size_t)p->count * p->inner;
    size_t o, i;
    (void)error;
    for (o = 0; o < p->outer; o++) {
        for (i = 0; i < p->inner; i++) {
            epctx_npu__softmax_one(x + o * block + i, y + o * block + i, p->count, p->inner,
                                   p->log != 0);
        }
    }
    return EPCTX_OK;
}

/* -- Gather: rows of `inner` elements by an index from data -- */

typedef struct epctx_npu__gather_params {
    uint32_t elem, index_elem; /* bytes, 4 or 8 */
    uint32_t outer, axis, count, inner;
} epctx_npu__gather_params;

static bool epctx_npu__check_gather(const void *params, epctx_npu__needs *needs)
{
    const epctx_npu__gather_params *p = (const epctx_npu__gather_params *)params;
    needs->in[0] = epctx_npu__items(epctx_npu__mul3(p->outer, p->axis, p->inner), p->elem);
    needs->in[1] = epctx_npu__items(p->count, p->index_elem);
    needs->out[0] = epctx_npu__items(epctx_npu__mul3(p->outer, p->count, p->inner), p->elem);
    return (p->elem == 4 || p->elem == 8) && (p->index_elem == 4 || p->index_elem == 8);
}

static int64_t epctx_npu__index(const uint8_t *data, size_t i, uint32_t elem)
{
    int32_t narrow;
    int64_t wide;
    if (elem == 4) {
        memcpy(&narrow, data + i * 4, 4);
        return narrow;
    }
    memcpy(&wide, data + i * 8, 8);
    return wide;
}

static epctx_status epctx_npu__run_gather(const void *params, const epctx_npu__args *args,
                                          epctx_error *error)
{
    const epctx_npu__gather_params *p = (const epctx_npu__gather_params *)params;
    const size_t row = (size_t)p->inner * p->elem;
    const uint8_t *x = (const uint8_t *)args->in[0];
    uint8_t *y = (uint8_t *)args->out[0];
    size_t o, i;
    for (o = 0; o < p->outer; o++) {
        for (i = 0; i < p->count; i++) {
            /* read once: the caller's memory may change between a check and its use */
            int64_t index = epctx_npu__index((const uint8_t *)args->in[1], i, p->index_elem);
            if (index < -(int64_t)p->axis || index >= (int64_t)p->axis) {
                return epctx_fail(error, EPCTX_ERR_ARG,
                                  "index %d: expected %d..%d (Gather, index number %u)", index,
                                  -(int64_t)p->axis, (int64_t)p->axis - 1, (uint64_t)i);
            }
            index += index < 0 ? (int64_t)p->axis : 0;
            memcpy(y, x + (size_t)index * row, row);
            y += row;
        }
        x += (size_t)p->axis * row;
    }
    return EPCTX_OK;
}

/* -- Cast between float, int32 and int64 -- */

typedef struct epctx_npu__cast {
    uint32_t count;
    uint32_t from, to; /* ONNX element types */
} epctx_npu__cast;

/* Bytes of a type that tensors at run time may have; 0 for others. */
static uint32_t epctx_npu__elem_size(int64_t type)
{
    switch (type) {
    case EPCTX_ONNX_FLOAT:
    case EPCTX_ONNX_INT32:
        return 4;
    case EPCTX_ONNX_INT64:
        return 8;
    default:
        return 0;
    }
}

static bool epctx_npu__check_cast(const void *params, epctx_npu__needs *needs)
{
    const epctx_npu__cast *p = (const epctx_npu__cast *)params;
    uint32_t from = epctx_npu__elem_size(p->from), to = epctx_npu__elem_size(p->to);
    needs->in[0] = epctx_npu__items(p->count, from);
    needs->out[0] = epctx_npu__items(p->count, to);
    return from != 0 && to != 0;
}

/* Truncates; out of range gives the smallest number, as the usual processors do. */
static int64_t epctx_npu__to_int(float f, bool narrow)
{
    const float limit = narrow ? 2147483648.0f : 9223372036854775808.0f;
    if (f >= -limit && f < limit) {
        return (int64_t)f;
    }
    return narrow ? (int64_t)INT32_MIN : INT64_MIN;
}

static epctx_status epctx_npu__run_cast(const void *params, const epctx_npu__args *args,
                                        epctx_error *error)
{
    const epctx_npu__cast *p = (const epctx_npu__cast *)params;
    const uint8_t *x = (const uint8_t *)args->in[0];
    uint8_t *y = (uint8_t *)args->out[0];
    size_t i;
    (void)error;
    for (i = 0; i < p->count; i++) {
        float f = 0.0f;
        int64_t wide = 0;
        int32_t narrow;
        if (p->from == EPCTX_ONNX_FLOAT) {
            memcpy(&f, x + i * 4, 4);
            wide = p->to == EPCTX_ONNX_FLOAT ? 0 : epctx_npu__to_int(f, p->to == EPCTX_ONNX_INT32);
        } else {
            wide = epctx_npu__index(x, i, p->from == EPCTX_ONNX_INT64 ? 8 : 4);
            f = (float)wide;
        }
        if (p->to == EPCTX_ONNX_FLOAT) {
            memcpy(y + i * 4, &f, 4);
        } else if (p->to == EPCTX_ONNX_INT64) {
            memcpy(y + i * 8, &wide, 8);
        } else {
            narrow = (int32_t)(uint32_t)((uint64_t)wide & UINT32_MAX);
            memcpy(y + i * 4, &narrow, 4);
        }
    }
    return EPCTX_OK;
}

/* -- the table of opcodes -- */

/* Enumerator, inputs, outputs, required inputs (bits), parameter struct, name of check and run. */
#define EPCTX_NPU_OP_LIST(X)                                                                       \
    X(MOVE, "Move", 1, 1, 1, epctx_npu__move, move)                                                \
    X(FILL, "Fill", 0, 1, 0, epctx_npu__fill, fill)                                                \
    X(UNARY, "Unary", 1, 1, 1, epctx_npu__unary, unary)                                            \
    X(BINARY, "Binary", 2, 1, 3, epctx_npu__binary, binary)                                        \
    X(AFFINE, "Affine", 3, 1, 7, epctx_npu__affine, affine)                                        \
    X(PACK, "Pack", 1, 1, 1, epctx_npu__pack, pack)                                                \
    X(CONV, "Conv", 3, 2, 3, epctx_npu__conv, conv)                                                \
    X(DEPTHWISE, "Depthwise", 3, 1, 3, epctx_npu__depthwise, depthwise)                            \
    X(GEMM, "Gemm", 3, 1, 3, epctx_npu__gemm, gemm)                                                \
    X(POOL, "Pool", 1, 1, 1, epctx_npu__pool, pool)                                                \
    X(REDUCE, "Reduce", 1, 1, 1, epctx_npu__reduce, reduce)                                        \
    X(SOFTMAX, "Softmax", 1, 1, 1, epctx_npu__softmax, softmax)                                    \
    X(GATHER, "Gather", 2, 1, 3, epctx_npu__gather_params, gather)                                 \
    X(CAST, "Cast", 1, 1, 1, epctx_npu__cast, cast)

typedef enum epctx_npu__opcode {
#define EPCTX_NPU__OP_ENUM(id, text, ins, outs, required, type, name) EPCTX_NPU__OP_##id,
    EPCTX_NPU_OP_LIST(EPCTX_NPU__OP_ENUM)
#undef EPCTX_NPU__OP_ENUM
        EPCTX_NPU__OP_COUNT
} epctx_npu__opcode;

/* Room for any parameter struct, and for turning words into one without aliasing games. */
typedef union epctx_npu__params {
#define EPCTX_NPU__OP_MEMBER(id, text, ins, outs, required, type, name) type name;
    EPCTX_NPU_OP_LIST(EPCTX_NPU__OP_MEMBER)
#undef EPCTX_NPU__OP_MEMBER
} epctx_npu__params;

typedef struct epctx_npu__op_info {
    const char *name;
    uint32_t in_count, out_count, required, param_words;
    bool (*check_fn)(const void *params, epctx_npu__needs *needs);
    epctx_status (*run_fn)(const void *params, const epctx_npu__args *args, epctx_error *error);
} epctx_npu__op_info;

static const epctx_npu__op_info epctx_npu__ops[EPCTX_NPU__OP_COUNT] = {
#define EPCTX_NPU__OP_ROW(id, text, ins, outs, required, type, name)                               \
    {text, ins, outs, required, sizeof(type) / 4, epctx_npu__check_##name, epctx_npu__run_##name},
    EPCTX_NPU_OP_LIST(EPCTX_NPU__OP_ROW)
#undef EPCTX_NPU__OP_ROW
};

/* ================================================================================================
 * >>exec: loading
 * ============================================================================================== */

typedef enum epctx_npu__place {
    EPCTX_NPU__NOWHERE = 0, /* an omitted operand */
    EPCTX_NPU__SCRATCH,
    EPCTX_NPU__INPUT,
    EPCTX_NPU__OUTPUT,
    EPCTX_NPU__WEIGHT,
    EPCTX_NPU__PLACE_COUNT
} epctx_npu__place;

typedef struct epctx_npu__operand {
    uint32_t place, index;
    uint64_t offset; /* bytes */
} epctx_npu__operand;

static epctx_npu__operand epctx_npu__operand_at(const uint32_t *words)
{
    epctx_npu__operand o;
    o.place = words[0];
    o.index = words[1];
    o.offset = epctx_npu__pair(words + 2);
    return o;
}

/* The blob's sections, from its header alone. */
static epctx_status epctx_npu__layout_of(epctx_span blob, epctx_npu__layout *out,
                                         epctx_error *error)
{
    const uint8_t *h = blob.data;
    epctx_npu_blob info;
    epctx_status status = epctx_npu__peek(blob, &info, error);
    memset(out, 0, sizeof *out);
    if (status != EPCTX_OK) {
        return status;
    }
    if (!epctx_str_is(epctx_str_of(info.sdk_version), EPCTX_NPU_SDK_VERSION)) {
        return epctx_fail(error, EPCTX_ERR_VERSION,
                          "context binary: expected SDK version %s, found \"%s\": compile again",
                          EPCTX_NPU_SDK_VERSION, info.sdk_version);
    }
    out->words = epctx_npu__get64(h + EPCTX_NPU__H_WORDS);
    out->strings = epctx_npu__get64(h + EPCTX_NPU__H_STRINGS);
    out->string_bytes = epctx_npu__get64(h + EPCTX_NPU__H_STRBYTES);
    out->weights = epctx_npu__get64(h + EPCTX_NPU__H_WEIGHTS);
    out->weight_bytes = info.weight_size;
    out->graphs = info.graph_count;
    out->weight_count = info.weight_count;
    if (info.size != blob.size) {
        return epctx_fail(error, EPCTX_ERR_CONTEXT,
                          "context binary: expected %u bytes, found %u: truncated or overwritten",
                          info.size, (uint64_t)blob.size);
    }
    if (epctx_npu__get32(h + EPCTX_NPU__H_HEADER) != EPCTX_NPU_HEADER_SIZE ||
        out->words > blob.size / 4 || out->strings != EPCTX_NPU_HEADER_SIZE + out->words * 4 ||
        out->strings > blob.size || out->string_bytes > blob.size - out->strings ||
        out->weights % EPCTX_NPU_ALIGN != 0 || out->weights > blob.size ||
        out->weights < out->strings + out->string_bytes ||
        out->weight_bytes != blob.size - out->weights ||
        epctx_npu__mul(out->graphs, EPCTX_NPU__GRAPH_WORDS) > out->words ||
        epctx_npu__mul(out->weight_count, EPCTX_NPU__WEIGHT_WORDS) > out->words) {
        return epctx_fail(error, EPCTX_ERR_CONTEXT, "context binary: its sections do not fit it");
    }
    return EPCTX_OK;
}

static epctx_status epctx_npu__check_arch(epctx_span blob, epctx_error *error)
{
    epctx_npu_blob info;
    const epctx_npu_arch *arch;
    epctx_status status = epctx_npu__peek(blob, &info, error);
    if (status != EPCTX_OK) {
        return status;
    }
    arch = epctx_npu_arch_find(epctx_str_of(info.architecture));
    if (arch == NULL || !arch->runnable) {
        return epctx_fail(error, EPCTX_ERR_VERSION,
                          "context binary: expected hardware architecture %s, found \"%s\"",
                          epctx_npu__archs[0].name, info.architecture);
    }
    return EPCTX_OK;
}

/* Weights are used where they are unless the host would misread them. */
static bool epctx_npu__copies_weights(epctx_span blob, const epctx_npu__layout *layout)
{
    return layout->weight_bytes > 0 &&
           (epctx_npu__big_endian() || ((uintptr_t)blob.data + (uintptr_t)layout->weights) % 8);
}

/* How a context lies in the caller's memory; offsets in bytes, parts aligned to 8. */
typedef struct epctx_npu__parts {
    uint64_t graphs, values, dims, words, strings, weights, total;
    uint64_t value_count;
} epctx_npu__parts;

static uint64_t epctx_npu__part(uint64_t *total, uint64_t size)
{
    uint64_t at = *total;
    *total += (size + 7) & ~(uint64_t)7;
    return at;
}

static epctx_status epctx_npu__parts_of(epctx_span blob, const epctx_npu__layout *layout,
                                        epctx_npu__parts *out, epctx_error *error)
{
    uint32_t g;
    memset(out, 0, sizeof *out);
    for (g = 0; g < layout->graphs; g++) {
        const uint8_t *record =
            blob.data + EPCTX_NPU_HEADER_SIZE + (size_t)g * EPCTX_NPU__GRAPH_WORDS * 4;
        out->value_count += (uint64_t)epctx_npu__get32(record + 28) + epctx_npu__get32(record + 32);
    }
    if (epctx_npu__mul(out->value_count, EPCTX_NPU__IO_WORDS) > layout->words) {
        return epctx_fail(error, EPCTX_ERR_CONTEXT,
                          "context binary: %u tensors at the boundary do not fit it",
                          out->value_count);
    }
    out->graphs = epctx_npu__part(&out->total, layout->graphs * sizeof(epctx_npu_graph));
    out->values = epctx_npu__part(&out->total, out->value_count * sizeof(epctx_value));
    out->dims = epctx_npu__part(&out->total, out->value_count * 8 * sizeof(int64_t));
    out->words = epctx_npu__part(&out->total, layout->words * 4);
    out->strings = epctx_npu__part(&out->total, layout->string_bytes);
    out->weights = epctx_npu__part(
        &out->total, epctx_npu__copies_weights(blob, layout) ? layout->weight_bytes : 0);
    if (out->total > SIZE_MAX / 2) {
        return epctx_fail(error, EPCTX_ERR_NOMEM, "context binary: too large for this machine");
    }
    return EPCTX_OK;
}

EPCTX_API epctx_status epctx_npu_load_size(epctx_span blob, size_t *size, epctx_error *error)
{
    epctx_npu__layout layout;
    epctx_npu__parts parts;
    epctx_status status;
    epctx_error_clear(error);
    *size = 0;
    status = epctx_npu__layout_of(blob, &layout, error);
    if (status == EPCTX_OK) {
        status = epctx_npu__check_arch(blob, error);
    }
    if (status == EPCTX_OK) {
        status = epctx_npu__parts_of(blob, &layout, &parts, error);
    }
    if (status == EPCTX_OK) {
        *size = (size_t)parts.total;
    }
    return status;
}

/* What verification needs of a context under construction. */
typedef struct epctx_npu__loader {
    epctx_npu_context *context;
    epctx_npu_graph *graphs;
    epctx_value *values;
    int64_t *dims;
    const uint32_t *words;
    uint64_t word_count;
    const char *strings;
    uint64_t string_bytes;
    uint64_t value_count, values_used;
    epctx_error *error;
} epctx_npu__loader;

static epctx_status epctx_npu__load_str(epctx_npu__loader *l, const uint32_t *words, epctx_str *out)
{
    uint64_t offset = words[0], size = words[1];
    if (size > l->string_bytes || offset > l->string_bytes - size) {
        return epctx_fail(l->error, EPCTX_ERR_CONTEXT,
                          "context binary: a name at %u, %u bytes, is outside the strings (%u)",
                          offset, size, l->string_bytes);
    }
    out->data = l->strings + offset;
    out->size = (size_t)size;
    return EPCTX_OK;
}

/* Bytes of a tensor, 0 when the type or a dimension is not allowed. */
static uint64_t epctx_npu__value_bytes(const epctx_value *value)
{
    uint64_t bytes = epctx_npu__elem_size(value->elem_type);
    int32_t i;
    for (i = 0; i < value->rank; i++) {
        bytes = value->dims[i] > 0 ? epctx_npu__mul(bytes, (uint64_t)value->dims[i]) : 0;
    }
    return bytes <= EPCTX_NPU__MAX_BYTES ? bytes : 0;
}

static epctx_status epctx_npu__load_value(epctx_npu__loader *l, const uint32_t *words,
                                          epctx_value *out, int64_t *dims)
{
    epctx_status status = epctx_npu__load_str(l, words, &out->name);
    uint32_t i;
    if (status != EPCTX_OK) {
        return status;
    }
    out->elem_type = words[2] <= 64 ? (int32_t)words[2] : 0;
    out->rank = words[3] <= EPCTX_NPU_MAX_RANK ? (int32_t)words[3] : 0;
    out->dims = dims;
    for (i = 0; i < EPCTX_NPU_MAX_RANK; i++) {
        dims[i] = words[4 + i];
    }
    if (words[3] > EPCTX_NPU_MAX_RANK || epctx_npu__value_bytes(out) == 0) {
        return epctx_fail(l->error, EPCTX_ERR_CONTEXT,
                          "context binary: tensor '%S' has no usable type and shape", &out->name);
    }
    return EPCTX_OK;
}

static epctx_status epctx_npu__load_weights(epctx_npu__loader *l, uint64_t first)
{
    const epctx_npu_context *c = l->context;
    uint32_t i;
    if (first > l->word_count ||
        (uint64_t)c->weight_count * EPCTX_NPU__WEIGHT_WORDS > l->word_count - first) {
        return epctx_fail(l->error, EPCTX_ERR_CONTEXT,
                          "context binary: the weight table does not fit it");
    }
    for (i = 0; i < c->weight_count; i++) {
        const uint32_t *w = l->words + first + (size_t)i * EPCTX_NPU__WEIGHT_WORDS;
        uint64_t offset = epctx_npu__pair(w), size = epctx_npu__pair(w + 2);
        if (size > c->weight_size || offset > c->weight_size - size ||
            offset % EPCTX_NPU_ALIGN != 0 || (w[4] != 4 && w[4] != 8) || size % w[4] != 0) {
            return epctx_fail(l->error, EPCTX_ERR_CONTEXT,
                              "context binary: weight %u at %u, %u bytes, does not fit its "
                              "section of %u bytes",
                              (uint64_t)i, offset, size, c->weight_size);
        }
    }
    return EPCTX_OK;
}

/* Bytes from an operand to the end of what it points into; false when there is no such place. */
static bool epctx_npu__room(const epctx_npu_graph *graph, const epctx_npu__operand *o,
                            uint64_t *room)
{
    uint64_t size;
    switch (o->place) {
    case EPCTX_NPU__SCRATCH:
        size = graph->info.scratch_size;
        break;
    case EPCTX_NPU__INPUT:
        if (o->index >= graph->info.input_count) {
            return false;
        }
        size = epctx_npu__value_bytes(&graph->info.inputs[o->index]);
        break;
    case EPCTX_NPU__OUTPUT:
        if (o->index >= graph->info.output_count) {
            return false;
        }
        size = epctx_npu__value_bytes(&graph->info.outputs[o->index]);
        break;
    case EPCTX_NPU__WEIGHT:
        if (o->index >= graph->context->weight_count) {
            return false;
        }
        size = epctx_npu__pair(graph->context->weight_table +
                               (size_t)o->index * EPCTX_NPU__WEIGHT_WORDS + 2);
        break;
    default:
        return false;
    }
    *room = o->offset <= size ? size - o->offset : 0;
    return o->offset <= size;
}

static bool epctx_npu__overlap(const epctx_npu__operand *a, uint64_t a_bytes,
                               const epctx_npu__operand *b, uint64_t b_bytes)
{
    return a->place == b->place && (a->place == EPCTX_NPU__SCRATCH || a->index == b->index) &&
           a->place != EPCTX_NPU__NOWHERE && a->offset < b->offset + b_bytes &&
           b->offset < a->offset + a_bytes;
}

/* One operand against what its kernel may touch. */
static bool epctx_npu__operand_ok(const epctx_npu_graph *graph, const epctx_npu__operand *o,
                                  const epctx_npu__extent *need, bool written, bool required)
{
    uint64_t room;
    if (o->place == EPCTX_NPU__NOWHERE) {
        return !required;
    }
    return epctx_npu__room(graph, o, &room) && need->bytes > 0 && need->bytes <= room &&
           need->bytes <= EPCTX_NPU__MAX_BYTES && o->offset % need->align == 0 &&
           (!written || o->place == EPCTX_NPU__SCRATCH || o->place == EPCTX_NPU__OUTPUT);
}

static bool epctx_npu__command_ok(const epctx_npu_graph *graph, const uint32_t *words)
{
    const epctx_npu__op_info *op = &epctx_npu__ops[words[0]];
    const uint32_t count = op->in_count + op->out_count;
    epctx_npu__operand operands[EPCTX_NPU__MAX_IN + EPCTX_NPU__MAX_OUT];
    epctx_npu__extent need[EPCTX_NPU__MAX_IN + EPCTX_NPU__MAX_OUT];
    epctx_npu__needs needs;
    epctx_npu__params params;
    uint32_t i, j;
    memset(&needs, 0, sizeof needs);
    memset(&params, 0, sizeof params);
    memcpy(&params, words + EPCTX_NPU__COMMAND_WORDS + count * EPCTX_NPU__OPERAND_WORDS,
           (size_t)op->param_words * 4);
    if (!op->check_fn(&params, &needs)) {
        return false;
    }
    for (i = 0; i < count; i++) {
        bool written = i >= op->in_count;
        operands[i] =
            epctx_npu__operand_at(words + EPCTX_NPU__COMMAND_WORDS + i * EPCTX_NPU__OPERAND_WORDS);
        need[i] = written ? needs.out[i - op->in_count] : needs.in[i];
        if (!epctx_npu__operand_ok(graph, &operands[i], &need[i], written,
                                   written || (op->required >> i & 1) != 0)) {
            return false;
        }
    }
    for (i = op->in_count; i < count; i++) { /* kernels read and write disjoint memory */
        for (j = 0; j < i; j++) {
            if (epctx_npu__overlap(&operands[i], need[i].bytes, &operands[j], need[j].bytes)) {
                return false;
            }
        }
    }
    return true;
}

static epctx_status epctx_npu__load_commands(epctx_npu__loader *l, epctx_npu_graph *graph,
                                             uint64_t first, uint64_t size)
{
    uint64_t at = 0;
    uint32_t i;
    if (first > l->word_count || size > l->word_count - first) {
        return epctx_fail(l->error, EPCTX_ERR_CONTEXT,
                          "context binary: the commands of graph '%S' do not fit it",
                          &graph->info.name);
    }
    graph->commands = l->words + first;
    for (i = 0; i < graph->command_count; i++) {
        const uint32_t *w = l->words + first + at;
        const epctx_npu__op_info *op;
        epctx_str name;
        epctx_status status;
        if (size - at < EPCTX_NPU__COMMAND_WORDS || w[0] >= EPCTX_NPU__OP_COUNT ||
            w[1] > size - at) {
            return epctx_fail(l->error, EPCTX_ERR_CONTEXT,
                              "context binary: command %u of graph '%S' is not a command",
                              (uint64_t)i, &graph->info.name);
        }
        op = &epctx_npu__ops[w[0]];
        status = epctx_npu__load_str(l, w + 2, &name);
        if (status != EPCTX_OK) {
            return status;
        }
        if (w[1] != EPCTX_NPU__COMMAND_WORDS +
                        (op->in_count + op->out_count) * EPCTX_NPU__OPERAND_WORDS +
                        op->param_words ||
            !epctx_npu__command_ok(graph, w)) {
            return epctx_fail(l->error, EPCTX_ERR_CONTEXT,
                              "context binary: command %u of graph '%S' (%s, node '%S') has "
                              "operands or parameters that do not fit",
                              (uint64_t)i, &graph->info.name, op->name, &name);
        }
        at += w[1];
    }
    if (at != size) {
        return epctx_fail(l->error, EPCTX_ERR_CONTEXT,
                          "context binary: graph '%S' has %u words of commands, expected %u",
                          &graph->info.name, size, at);
    }
    return EPCTX_OK;
}

static epctx_status epctx_npu__load_graph(epctx_npu__loader *l, uint32_t index)
{
    const uint32_t *w = l->words + (size_t)index * EPCTX_NPU__GRAPH_WORDS;
    epctx_npu_graph *graph = &l->graphs[index];
    const uint64_t values = (uint64_t)w[7] + w[8], table = w[6];
    epctx_value *first = l->values + l->values_used;
    uint64_t scratch = epctx_npu__pair(w + 4), i;
    epctx_status status = epctx_npu__load_str(l, w, &graph->info.name);
    if (status != EPCTX_OK) {
        return status;
    }
    if (scratch > SIZE_MAX / 2 || values > l->value_count - l->values_used ||
        table > l->word_count || values * EPCTX_NPU__IO_WORDS > l->word_count - table) {
        return epctx_fail(l->error, EPCTX_ERR_CONTEXT,
                          "context binary: inputs, outputs or scratch of graph '%S' do not fit",
                          &graph->info.name);
    }
    for (i = 0; i < values; i++) {
        status = epctx_npu__load_value(l, l->words + table + i * EPCTX_NPU__IO_WORDS, &first[i],
                                       l->dims + (l->values_used + i) * EPCTX_NPU_MAX_RANK);
        if (status != EPCTX_OK) {
            return status;
        }
    }
    l->values_used += values;
    graph->hash = epctx_npu__pair(w + 2);
    graph->context = l->context;
    graph->info.inputs = first;
    graph->info.input_count = w[7];
    graph->info.outputs = first + w[7];
    graph->info.output_count = w[8];
    graph->info.scratch_size = (size_t)scratch;
    graph->command_count = w[11];
    return epctx_npu__load_commands(l, graph, w[9], w[10]);
}

static epctx_status epctx_npu__check_names(const epctx_npu__loader *l)
{
    size_t i, j;
    for (i = 0; i < l->context->graph_count; i++) {
        for (j = 0; j < i; j++) {
            if (epctx_str_eq(l->graphs[i].info.name, l->graphs[j].info.name)) {
                return epctx_fail(l->error, EPCTX_ERR_CONTEXT,
                                  "context binary: two graphs are called '%S'",
                                  &l->graphs[i].info.name);
            }
        }
    }
    return EPCTX_OK;
}

/* Checksum of everything but the weights: header (its own field as 0), words, strings. */
static uint64_t epctx_npu__meta_sum(const uint8_t *header, const uint8_t *words, size_t word_bytes,
                                    const uint8_t *strings, size_t string_bytes)
{
    uint8_t copy[EPCTX_NPU_HEADER_SIZE];
    uint64_t sum;
    memcpy(copy, header, sizeof copy);
    memset(copy + EPCTX_NPU__H_META_SUM, 0, 8);
    sum = epctx_hash(copy, sizeof copy, 0);
    sum = epctx_hash(words, word_bytes, sum);
    return epctx_hash(strings, string_bytes, sum);
}

/* Words of `bytes` each from little-endian to the host's order, in place. */
static void epctx_npu__to_host(uint8_t *data, uint64_t size, uint32_t bytes)
{
    uint64_t i;
    uint32_t j;
    if (!epctx_npu__big_endian()) {
        return;
    }
    for (i = 0; i + bytes <= size; i += bytes) {
        for (j = 0; j < bytes / 2; j++) {
            uint8_t t = data[i + j];
            data[i + j] = data[i + bytes - 1 - j];
            data[i + bytes - 1 - j] = t;
        }
    }
}

static void epctx_npu__copy_weights(epctx_npu_context *context, uint8_t *to)
{
    uint32_t i;
    memcpy(to, context->weights, (size_t)context->weight_size);
    context->weights = to;
    if (!epctx_npu__big_endian()) {
        return;
    }
    for (i = 0; i < context->weight_count; i++) {
        const uint32_t *w = context->weight_table + (size_t)i * EPCTX_NPU__WEIGHT_WORDS;
        epctx_npu__to_host(to + epctx_npu__pair(w), epctx_npu__pair(w + 2), w[4]);
    }
}

/* Copies first, then looks only at the copy. */
static epctx_status epctx_npu__load_copy(epctx_npu_context *context, epctx_span blob,
                                         const uint8_t *header, const epctx_npu__layout *layout,
                                         const epctx_npu__parts *parts, uint8_t *memory,
                                         epctx_error *error)
{
    epctx_npu__loader l;
    const size_t word_bytes = (size_t)layout->words * 4;
    uint8_t *words = memory + parts->words, *strings = memory + parts->strings;
    uint64_t sum, table;
    epctx_status status;
    uint32_t g;
    memset(memory, 0, (size_t)parts->words);
    memcpy(words, blob.data + EPCTX_NPU_HEADER_SIZE, word_bytes);
    memcpy(strings, blob.data + layout->strings, (size_t)layout->string_bytes);
    memset(&l, 0, sizeof l);
    l.context = context;
    l.graphs = (epctx_npu_graph *)(void *)(memory + parts->graphs);
    l.values = (epctx_value *)(void *)(memory + parts->values);
    l.dims = (int64_t *)(void *)(memory + parts->dims);
    l.words = (const uint32_t *)(const void *)words;
    l.word_count = layout->words;
    l.strings = (const char *)strings;
    l.string_bytes = layout->string_bytes;
    l.value_count = parts->value_count;
    l.error = error;
    sum = epctx_npu__meta_sum(header, words, word_bytes, strings, (size_t)layout->string_bytes);
    if (sum != epctx_npu__get64(header + EPCTX_NPU__H_META_SUM)) {
        return epctx_fail(error, EPCTX_ERR_CONTEXT,
                          "context binary: checksum is %x, expected %x: damaged", sum,
                          epctx_npu__get64(header + EPCTX_NPU__H_META_SUM));
    }
    epctx_npu__to_host(words, word_bytes, 4);
    context->graphs = l.graphs;
    context->graph_count = layout->graphs;
    context->blob = blob;
    context->strings = l.strings;
    context->weights = blob.data + layout->weights;
    context->weight_count = layout->weight_count;
    context->weight_size = layout->weight_bytes;
    context->weight_offset = layout->weights;
    context->weight_checksum = epctx_npu__get64(header + EPCTX_NPU__H_DATA_SUM);
    /* the weight table stands at the end of the words */
    table = layout->words - (uint64_t)layout->weight_count * EPCTX_NPU__WEIGHT_WORDS;
    context->weight_table = l.words + table;
    status = epctx_npu__load_weights(&l, table);
    for (g = 0; status == EPCTX_OK && g < layout->graphs; g++) {
        status = epctx_npu__load_graph(&l, g);
    }
    if (status == EPCTX_OK) {
        status = epctx_npu__check_names(&l);
    }
    if (status == EPCTX_OK && epctx_npu__copies_weights(blob, layout)) {
        epctx_npu__copy_weights(context, memory + parts->weights);
    }
    return status;
}

EPCTX_API epctx_status epctx_npu_load(epctx_npu_context *context, epctx_span blob, void *memory,
                                      size_t memory_size, epctx_error *error)
{
    uint8_t header[EPCTX_NPU_HEADER_SIZE];
    epctx_npu__layout layout;
    epctx_npu__parts parts;
    epctx_status status;
    epctx_error_clear(error);
    memset(context, 0, sizeof *context);
    status = epctx_npu__layout_of(blob, &layout, error);
    if (status == EPCTX_OK) {
        status = epctx_npu__check_arch(blob, error);
    }
    if (status == EPCTX_OK) {
        status = epctx_npu__parts_of(blob, &layout, &parts, error);
    }
    if (status != EPCTX_OK) {
        return status;
    }
    if (memory == NULL || (uintptr_t)memory % 8 != 0) {
        return epctx_fail(error, EPCTX_ERR_ARG, "memory for a context must be aligned to 8");
    }
    if (memory_size < parts.total) {
        return epctx_fail(error, EPCTX_ERR_NOMEM,
                          "context binary: needs %u bytes of memory, found %u", parts.total,
                          (uint64_t)memory_size);
    }
    memcpy(header, blob.data, sizeof header);
    status = epctx_npu__load_copy(context, blob, header, &layout, &parts, (uint8_t *)memory, error);
    if (status != EPCTX_OK) {
        memset(context, 0, sizeof *context);
    }
    return status;
}

EPCTX_API epctx_status epctx_npu_check_weights(const epctx_npu_context *context, epctx_error *error)
{
    uint64_t sum;
    epctx_error_clear(error);
    sum = epctx_hash(context->blob.data + context->weight_offset, (size_t)context->weight_size, 0);
    if (sum != context->weight_checksum) {
        return epctx_fail(error, EPCTX_ERR_CONTEXT,
                          "context binary: checksum of the weights is %x, expected %x: damaged",
                          sum, context->weight_checksum);
    }
    return EPCTX_OK;
}

EPCTX_API epctx_status epctx_npu_find(const epctx_npu_context *context, epctx_str name,
                                      uint64_t hash, const epctx_npu_graph **graph,
                                      epctx_error *error)
{
    size_t i;
    epctx_error_clear(error);
    *graph = NULL;
    for (i = 0; i < context->graph_count; i++) {
        const epctx_npu_graph *g = &context->graphs[i];
        if (!epctx_str_eq(g->info.name, name)) {
            continue;
        }
        if (hash != 0 && hash != g->hash) {
            return epctx_fail(error, EPCTX_ERR_VERSION,
                              "context binary: graph '%S' has hash %x, expected %x: it was "
                              "compiled from another version of the model",
                              &name, g->hash, hash);
        }
        *graph = g;
        return EPCTX_OK;
    }
    return epctx_fail(error, EPCTX_ERR_CONTEXT, "context binary: no graph '%S' among its %u graphs",
                      &name, (uint64_t)context->graph_count);
}

/* ================================================================================================
 * >>exec: running
 * ============================================================================================== */

static epctx_status epctx_npu__check_memory(const epctx_value *value, const char *what,
                                            const void *data, size_t size, epctx_error *error)
{
    const uint64_t bytes = epctx_npu__value_bytes(value);
    if (size != bytes) {
        return epctx_fail(error, EPCTX_ERR_ARG, "%s '%S': expected %u bytes, found %u", what,
                          &value->name, bytes, (uint64_t)size);
    }
    if (data == NULL || (uintptr_t)data % epctx_npu__elem_size(value->elem_type) != 0) {
        return epctx_fail(error, EPCTX_ERR_ARG,
                          "%s '%S': its memory must be aligned to its element size", what,
                          &value->name);
    }
    return EPCTX_OK;
}

static epctx_status epctx_npu__check_call(const epctx_npu_graph *graph, const epctx_span *inputs,
                                          const epctx_memory *outputs, const void *scratch,
                                          size_t scratch_size, epctx_error *error)
{
    const epctx_graph_info *info = &graph->info;
    epctx_status status = EPCTX_OK;
    size_t i;
    for (i = 0; status == EPCTX_OK && i < info->input_count; i++) {
        status = epctx_npu__check_memory(&info->inputs[i], "input", inputs[i].data, inputs[i].size,
                                         error);
    }
    for (i = 0; status == EPCTX_OK && i < info->output_count; i++) {
        status = epctx_npu__check_memory(&info->outputs[i], "output", outputs[i].data,
                                         outputs[i].size, error);
    }
    if (status == EPCTX_OK && scratch_size < info->scratch_size) {
        status = epctx_fail(error, EPCTX_ERR_ARG,
                            "graph '%S': expected %u bytes of scratch, found "
                            "%u",
                            &info->name, (uint64_t)info->scratch_size, (uint64_t)scratch_size);
    }
    if (status == EPCTX_OK && info->scratch_size > 0 &&
        (scratch == NULL || (uintptr_t)scratch % EPCTX_NPU_ALIGN != 0)) {
        status = epctx_fail(error, EPCTX_ERR_ARG, "graph '%S': scratch must be aligned to %u",
                            &info->name, (uint64_t)EPCTX_NPU_ALIGN);
    }
    return status;
}

/* Address of an operand that is only read. The offsets were verified when the blob was loaded. */
static const void *epctx_npu__source(const epctx_npu_graph *graph, const epctx_npu__operand *o,
                                     const epctx_span *inputs, const epctx_memory *outputs,
                                     const uint8_t *scratch)
{
    const epctx_npu_context *c = graph->context;
    switch (o->place) {
    case EPCTX_NPU__SCRATCH:
        return scratch + o->offset;
    case EPCTX_NPU__INPUT:
        return inputs[o->index].data + o->offset;
    case EPCTX_NPU__OUTPUT:
        return (const uint8_t *)outputs[o->index].data + o->offset;
    case EPCTX_NPU__WEIGHT:
        return c->weights +
               epctx_npu__pair(c->weight_table + (size_t)o->index * EPCTX_NPU__WEIGHT_WORDS) +
               o->offset;
    default:
        return NULL;
    }
}

static epctx_status epctx_npu__run_command(const epctx_npu_graph *graph, const uint32_t *words,
                                           const epctx_span *inputs, const epctx_memory *outputs,
                                           uint8_t *scratch, epctx_error *error)
{
    const epctx_npu__op_info *op = &epctx_npu__ops[words[0]];
    const uint32_t *w = words + EPCTX_NPU__COMMAND_WORDS;
    epctx_npu__params params;
    epctx_npu__args args;
    uint32_t i;
    memset(&args, 0, sizeof args);
    for (i = 0; i < op->in_count; i++, w += EPCTX_NPU__OPERAND_WORDS) {
        epctx_npu__operand o = epctx_npu__operand_at(w);
        args.in[i] = epctx_npu__source(graph, &o, inputs, outputs, scratch);
    }
    for (i = 0; i < op->out_count; i++, w += EPCTX_NPU__OPERAND_WORDS) {
        epctx_npu__operand o = epctx_npu__operand_at(w);
        args.out[i] =
            (o.place == EPCTX_NPU__SCRATCH ? scratch : (uint8_t *)outputs[o.index].data) + o.offset;
    }
    memcpy(&params, w, (size_t)op->param_words * 4);
    return op->run_fn(&params, &args, error);
}

EPCTX_API epctx_status epctx_npu_run(const epctx_npu_graph *graph, const epctx_span *inputs,
                                     const epctx_memory *outputs, void *scratch,
                                     size_t scratch_size, epctx_error *error)
{
    const uint32_t *words = graph->commands;
    epctx_status status;
    uint32_t i;
    epctx_error_clear(error);
    status = epctx_npu__check_call(graph, inputs, outputs, scratch, scratch_size, error);
    for (i = 0; status == EPCTX_OK && i < graph->command_count; i++) {
        status = epctx_npu__run_command(graph, words, inputs, outputs, (uint8_t *)scratch, error);
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

EPCTX_API bool epctx_npu_next_command(const epctx_npu_graph *graph, uint32_t *position,
                                      epctx_npu_command *command)
{
    const uint32_t *words = graph->commands;
    uint32_t i;
    if (*position >= graph->command_count) {
        return false;
    }
    for (i = 0; i < *position; i++) {
        words += words[1];
    }
    command->op = epctx_npu__ops[words[0]].name;
    command->name.data = graph->context->strings + words[2];
    command->name.size = words[3];
    ++*position;
    return true;
}

#ifndef EPCTX_NPU_NO_COMPILER

/* ================================================================================================
 * >>compile: the graph while it is compiled
 * ============================================================================================== */

#define EPCTX_NPU__NONE      UINT32_MAX
#define EPCTX_NPU__MAX_OPSET 21

#define EPCTX_NPU__TRY(call)                                                                       \
    do {                                                                                           \
        epctx_status epctx_npu__s = (call);                                                        \
        if (epctx_npu__s != EPCTX_OK) {                                                            \
            return epctx_npu__s;                                                                   \
        }                                                                                          \
    } while (0)

typedef struct epctx_npu__shape {
    uint32_t rank;
    int64_t dims[EPCTX_NPU_MAX_RANK];
} epctx_npu__shape;

/* A value: constant (raw or data set) or made at run time (buffer set). elem 0: nothing known. */
typedef struct epctx_npu__tensor {
    epctx_str name;
    int32_t elem;
    epctx_npu__shape shape;
    uint64_t count; /* of elements */
    bool constant;
    const uint8_t *raw; /* little-endian bytes of the model, maybe unaligned */
    const void *data;   /* native numbers, aligned */
    uint32_t buffer;
    uint64_t offset; /* bytes in the buffer: reshaped and sliced values share one */
    uint32_t writer; /* the only step that writes it, or NONE */
    uint32_t uses;   /* by nodes and as graph output */
} epctx_npu__tensor;

/* Memory of one or more tensors at run time. */
typedef struct epctx_npu__buffer {
    uint64_t bytes;
    epctx_npu__place place;
    uint32_t index;       /* of the graph input or output */
    uint32_t first, last; /* steps that touch it; first NONE: nobody does */
    uint64_t crowd;       /* most bytes that live beside it at one step, itself included */
    uint64_t key;         /* order in which the plan places buffers, larger first */
    uint64_t offset;      /* in scratch */
    bool needed;
} epctx_npu__buffer;

/* A command before it is written. */
typedef struct epctx_npu__step {
    epctx_npu__opcode op;
    epctx_npu__params params;
    uint32_t in[EPCTX_NPU__MAX_IN]; /* tensors, or NONE */
    uint32_t out;
    uint32_t temporary; /* buffer, or NONE */
    bool packs;         /* in[1] is constant and still has to be packed */
    epctx_npu__pack pack;
    bool dead;
    epctx_str name;
} epctx_npu__step;

typedef struct epctx_npu__compiler {
    const epctx_graph *graph;
    const epctx_npu_arch *arch;
    epctx_arena *arena;
    epctx_error *error;
    epctx_npu__tensor *tensors;
    epctx_npu__buffer *buffers;
    epctx_npu__step *steps;
    size_t tensor_count, tensor_room, buffer_count, buffer_room, step_count, step_room;
    epctx_map names; /* value -> tensor */
    epctx_map uses;  /* value -> number of uses */
    const epctx_node *node;
    bool folding; /* every input of the node is constant */
    bool judging; /* only whether nodes compile is wanted: weights are not computed */
    epctx_npu_stats stats;
} epctx_npu__compiler;

static epctx_status epctx_npu__nomem(epctx_npu__compiler *c, uint64_t size)
{
    return epctx_fail(c->error, EPCTX_ERR_NOMEM, "compiling needs %u bytes more memory", size);
}

/* Arena memory, at least one byte. */
static epctx_status epctx_npu__alloc(epctx_npu__compiler *c, uint64_t count, size_t size,
                                     void **out)
{
    *out = count <= SIZE_MAX / 2 ? epctx_arena_array(c->arena, (size_t)count + 1, size) : NULL;
    return *out != NULL ? EPCTX_OK : epctx_npu__nomem(c, epctx_npu__mul(count, size));
}

/* Room for one more element of an array in the arena; doubles. */
static epctx_status epctx_npu__grow(epctx_npu__compiler *c, void **array, size_t count,
                                    size_t *room, size_t size)
{
    void *bigger;
    size_t wanted = *room == 0 ? 16 : *room * 2;
    if (count < *room) {
        return EPCTX_OK;
    }
    EPCTX_NPU__TRY(epctx_npu__alloc(c, wanted, size, &bigger));
    if (count > 0) {
        memcpy(bigger, *array, count * size);
    }
    *array = bigger;
    *room = wanted;
    return EPCTX_OK;
}

static uint64_t epctx_npu__count(const epctx_npu__shape *shape)
{
    uint64_t count = 1;
    uint32_t i;
    for (i = 0; i < shape->rank; i++) {
        count = epctx_npu__mul(count, shape->dims[i] > 0 ? (uint64_t)shape->dims[i] : 0);
    }
    return count;
}

static uint64_t epctx_npu__product(const epctx_npu__shape *shape, uint32_t first, uint32_t end)
{
    uint64_t count = 1;
    uint32_t i;
    for (i = first; i < end; i++) {
        count = epctx_npu__mul(count, (uint64_t)shape->dims[i]);
    }
    return count;
}

static bool epctx_npu__same_shape(const epctx_npu__shape *a, const epctx_npu__shape *b)
{
    uint32_t i;
    for (i = 0; i < a->rank && i < b->rank && a->dims[i] == b->dims[i]; i++) {
    }
    return a->rank == b->rank && i == a->rank;
}

static epctx_status epctx_npu__add_tensor(epctx_npu__compiler *c, int32_t elem,
                                          const epctx_npu__shape *shape, uint32_t *id)
{
    epctx_npu__tensor *t;
    void *array = c->tensors;
    EPCTX_NPU__TRY(
        epctx_npu__grow(c, &array, c->tensor_count, &c->tensor_room, sizeof *c->tensors));
    c->tensors = (epctx_npu__tensor *)array;
    t = &c->tensors[c->tensor_count];
    memset(t, 0, sizeof *t);
    t->elem = elem;
    t->shape = *shape;
    t->count = epctx_npu__count(shape);
    t->buffer = EPCTX_NPU__NONE;
    t->writer = EPCTX_NPU__NONE;
    t->uses = 1;
    *id = (uint32_t)c->tensor_count++;
    return EPCTX_OK;
}

static epctx_status epctx_npu__add_buffer(epctx_npu__compiler *c, uint64_t bytes, uint32_t *id)
{
    epctx_npu__buffer *b;
    void *array = c->buffers;
    EPCTX_NPU__TRY(
        epctx_npu__grow(c, &array, c->buffer_count, &c->buffer_room, sizeof *c->buffers));
    c->buffers = (epctx_npu__buffer *)array;
    b = &c->buffers[c->buffer_count];
    memset(b, 0, sizeof *b);
    b->bytes = bytes;
    b->place = EPCTX_NPU__SCRATCH;
    b->first = EPCTX_NPU__NONE;
    *id = (uint32_t)c->buffer_count++;
    return EPCTX_OK;
}

/* A value that steps will write; constant when the node is folded. */
static epctx_status epctx_npu__new_tensor(epctx_npu__compiler *c, int32_t elem,
                                          const epctx_npu__shape *shape, uint32_t *id)
{
    uint64_t bytes = epctx_npu__mul(epctx_npu__count(shape), epctx_npu__elem_size(elem));
    if (bytes > EPCTX_NPU__MAX_BYTES || (bytes == 0 && !c->folding)) {
        return epctx_fail(c->error, EPCTX_ERR_UNSUPPORTED, "a result has %u bytes, expected 1..%u",
                          bytes, (uint64_t)EPCTX_NPU__MAX_BYTES);
    }
    return epctx_npu__add_tensor(c, elem, shape, id);
}

/* The same numbers under another shape, from element `start` on. */
static epctx_status epctx_npu__alias(epctx_npu__compiler *c, uint32_t source,
                                     const epctx_npu__shape *shape, uint64_t start, uint32_t *id)
{
    uint64_t bytes;
    epctx_npu__tensor *t;
    EPCTX_NPU__TRY(epctx_npu__add_tensor(c, c->tensors[source].elem, shape, id));
    t = &c->tensors[*id];
    bytes = start * epctx_npu__elem_size(t->elem);
    t->constant = c->tensors[source].constant;
    t->raw = c->tensors[source].raw;
    t->data = c->tensors[source].data;
    if (t->raw != NULL) {
        t->raw += bytes;
    }
    if (t->data != NULL) {
        t->data = (const uint8_t *)t->data + bytes;
    }
    t->buffer = c->tensors[source].buffer;
    t->offset = c->tensors[source].offset + bytes;
    return EPCTX_OK;
}

/* Numbers of a constant in the host's order. */
static epctx_status epctx_npu__data(epctx_npu__compiler *c, uint32_t id, const void **data)
{
    epctx_npu__tensor *t = &c->tensors[id];
    const uint32_t elem = epctx_npu__elem_size(t->elem);
    void *copy;
    if (t->data == NULL) {
        if (!epctx_npu__big_endian() && (uintptr_t)t->raw % elem == 0) {
            t->data = t->raw;
        } else {
            EPCTX_NPU__TRY(epctx_npu__alloc(c, t->count, elem, &copy));
            if (t->count > 0) {
                memcpy(copy, t->raw, (size_t)t->count * elem);
            }
            epctx_npu__to_host((uint8_t *)copy, t->count * elem, elem);
            t->data = copy;
        }
    }
    *data = t->data;
    return EPCTX_OK;
}

static epctx_status epctx_npu__add_constant(epctx_npu__compiler *c, int32_t elem,
                                            const epctx_npu__shape *shape, void **data,
                                            uint32_t *id)
{
    uint64_t count = epctx_npu__count(shape);
    if (epctx_npu__mul(count, epctx_npu__elem_size(elem)) > EPCTX_NPU__MAX_BYTES) {
        return epctx_fail(c->error, EPCTX_ERR_UNSUPPORTED, "a constant has %u elements", count);
    }
    EPCTX_NPU__TRY(epctx_npu__alloc(c, count, epctx_npu__elem_size(elem), data));
    EPCTX_NPU__TRY(epctx_npu__add_tensor(c, elem, shape, id));
    c->tensors[*id].constant = true;
    c->tensors[*id].data = *data;
    return EPCTX_OK;
}

/* A vector of floats to be filled. */
static epctx_status epctx_npu__add_floats(epctx_npu__compiler *c, uint64_t count, float **data,
                                          uint32_t *id)
{
    epctx_npu__shape shape = {1, {0}};
    void *memory;
    shape.dims[0] = (int64_t)count;
    EPCTX_NPU__TRY(epctx_npu__add_constant(c, EPCTX_ONNX_FLOAT, &shape, &memory, id));
    *data = (float *)memory;
    return EPCTX_OK;
}

/* ================================================================================================
 * >>compile: steps
 * ============================================================================================== */

/* Results of these kernels are the same bits everywhere: they move, compare, or round once. */
static bool epctx_npu__foldable(const epctx_npu__step *s)
{
    switch (s->op) {
    case EPCTX_NPU__OP_MOVE:
    case EPCTX_NPU__OP_FILL:
    case EPCTX_NPU__OP_BINARY:
    case EPCTX_NPU__OP_PACK:
    case EPCTX_NPU__OP_GATHER:
    case EPCTX_NPU__OP_CAST:
        return true;
    case EPCTX_NPU__OP_UNARY:
        return s->params.unary.act.kind == EPCTX_NPU__ACT_RELU ||
               s->params.unary.act.kind == EPCTX_NPU__ACT_CLIP ||
               s->params.unary.act.kind == EPCTX_NPU__ACT_LEAKY ||
               s->params.unary.act.kind == EPCTX_NPU__ACT_SQRT ||
               s->params.unary.act.kind == EPCTX_NPU__ACT_ABS ||
               s->params.unary.act.kind == EPCTX_NPU__ACT_NEG;
    default:
        return false;
    }
}

/* Runs a step now. Several steps may fill one result. */
static epctx_status epctx_npu__fold(epctx_npu__compiler *c, const epctx_npu__step *s)
{
    const epctx_npu__op_info *op = &epctx_npu__ops[s->op];
    epctx_npu__tensor *out = &c->tensors[s->out];
    epctx_npu__args args;
    void *data;
    uint32_t i;
    memset(&args, 0, sizeof args);
    if (out->data == NULL) {
        EPCTX_NPU__TRY(epctx_npu__alloc(c, out->count, epctx_npu__elem_size(out->elem), &data));
        out->data = data;
        out->constant = true;
    }
    if (out->count == 0) {
        return EPCTX_OK;
    }
    for (i = 0; i < op->in_count; i++) {
        if (s->in[i] != EPCTX_NPU__NONE) {
            EPCTX_NPU__TRY(epctx_npu__data(c, s->in[i], &args.in[i]));
        }
    }
    /* this tensor was allocated above, by an earlier fold of the same node: it is ours to write */
    memcpy(&args.out[0], &out->data, sizeof(void *));
    c->stats.folded++;
    return op->run_fn(&s->params, &args, c->error);
}

static bool epctx_npu__all_constant(const epctx_npu__compiler *c, const epctx_npu__step *s)
{
    uint32_t i;
    for (i = 0; i < EPCTX_NPU__MAX_IN; i++) {
        if (s->in[i] != EPCTX_NPU__NONE && !c->tensors[s->in[i]].constant) {
            return false;
        }
    }
    return true;
}

static void epctx_npu__step_init(epctx_npu__step *s, epctx_npu__opcode op, uint32_t a, uint32_t b,
                                 uint32_t out)
{
    memset(s, 0, sizeof *s);
    s->op = op;
    s->in[0] = a;
    s->in[1] = b;
    s->in[2] = EPCTX_NPU__NONE;
    s->out = out;
    s->temporary = EPCTX_NPU__NONE;
}

static epctx_status epctx_npu__emit(epctx_npu__compiler *c, const epctx_npu__step *s)
{
    epctx_npu__tensor *out = &c->tensors[s->out];
    void *array = c->steps;
    const bool again = out->buffer != EPCTX_NPU__NONE;
    if (c->folding && !again && epctx_npu__foldable(s) && epctx_npu__all_constant(c, s)) {
        return epctx_npu__fold(c, s);
    }
    if (out->count == 0) {
        return epctx_fail(c->error, EPCTX_ERR_UNSUPPORTED, "a result is empty");
    }
    if (!again) {
        uint32_t buffer;
        EPCTX_NPU__TRY(
            epctx_npu__add_buffer(c, out->count * epctx_npu__elem_size(out->elem), &buffer));
        out->buffer = buffer;
        out->writer = (uint32_t)c->step_count;
    } else {
        out->writer = EPCTX_NPU__NONE;
    }
    EPCTX_NPU__TRY(epctx_npu__grow(c, &array, c->step_count, &c->step_room, sizeof *c->steps));
    c->steps = (epctx_npu__step *)array;
    c->steps[c->step_count] = *s;
    if (c->node != NULL) {
        c->steps[c->step_count].name = c->node->name;
    }
    c->step_count++;
    return EPCTX_OK;
}

/* The step that made `tensor` and may still be changed, because nobody else sees its result. */
static epctx_npu__step *epctx_npu__producer(epctx_npu__compiler *c, uint32_t tensor)
{
    const epctx_npu__tensor *t = &c->tensors[tensor];
    if (t->constant || t->writer == EPCTX_NPU__NONE || t->uses != 1) {
        return NULL;
    }
    return &c->steps[t->writer];
}

/* Merges dimensions that are walked as one. Strides of `count` operands; returns the new rank. */
static uint32_t epctx_npu__collapse(int64_t *dims, uint32_t rank,
                                    int64_t (*strides)[EPCTX_NPU_MAX_RANK], uint32_t count)
{
    uint32_t i, j, n = 0;
    for (i = 0; i < rank; i++) {
        const int64_t dim = dims[i];
        bool merge = n > 0;
        if (dim == 1) {
            continue;
        }
        for (j = 0; merge && j < count; j++) {
            merge = strides[j][n - 1] == strides[j][i] * dim;
        }
        if (merge) {
            dims[n - 1] *= dim;
        } else {
            dims[n++] = dim;
        }
        for (j = 0; j < count; j++) {
            strides[j][n - 1] = strides[j][i];
        }
    }
    if (n == 0) {
        dims[0] = 1;
        for (j = 0; j < count; j++) {
            strides[j][0] = 0;
        }
        n = 1;
    }
    return n;
}

/* Strides of a dense tensor. */
static void epctx_npu__dense(const epctx_npu__shape *shape, int64_t *strides)
{
    int64_t step = 1;
    uint32_t i;
    for (i = shape->rank; i > 0; i--) {
        strides[i - 1] = step;
        step *= shape->dims[i - 1];
    }
}

/* Strided copy; strides[0] reads, strides[1] writes, both in elements. */
static epctx_status epctx_npu__emit_move(epctx_npu__compiler *c, uint32_t from, uint32_t to,
                                         const epctx_npu__shape *walk, uint64_t from_start,
                                         uint64_t to_start, const int64_t *from_strides,
                                         const int64_t *to_strides)
{
    epctx_npu__step s;
    epctx_npu__move *p = &s.params.move;
    int64_t strides[2][EPCTX_NPU_MAX_RANK], dims[EPCTX_NPU_MAX_RANK];
    uint32_t i;
    epctx_npu__step_init(&s, EPCTX_NPU__OP_MOVE, from, EPCTX_NPU__NONE, to);
    memset(strides, 0, sizeof strides);
    memset(dims, 0, sizeof dims);
    for (i = 0; i < walk->rank; i++) {
        dims[i] = walk->dims[i];
        strides[0][i] = from_strides[i];
        strides[1][i] = to_strides[i];
        if (dims[i] == 0 && c->folding) { /* nothing to copy, but the result must exist */
            epctx_npu__step_init(&s, EPCTX_NPU__OP_FILL, EPCTX_NPU__NONE, EPCTX_NPU__NONE, to);
            s.params.fill.elem = epctx_npu__elem_size(c->tensors[to].elem);
            return epctx_npu__emit(c, &s);
        }
    }
    p->elem = epctx_npu__elem_size(c->tensors[from].elem);
    p->from_start = (uint32_t)from_start;
    p->to_start = (uint32_t)to_start;
    p->rank = epctx_npu__collapse(dims, walk->rank, strides, 2);
    for (i = 0; i < EPCTX_NPU_MAX_RANK; i++) { /* sizes were checked against the limit: they fit */
        p->dims[i] = i < p->rank ? (uint32_t)dims[i] : 0;
        p->from[i] = i < p->rank ? (int32_t)strides[0][i] : 0;
        p->to[i] = i < p->rank ? (int32_t)strides[1][i] : 0;
    }
    return epctx_npu__emit(c, &s);
}

/* Copies all of `from` in order. */
static epctx_status epctx_npu__emit_copy(epctx_npu__compiler *c, uint32_t from, uint32_t to)
{
    int64_t strides[EPCTX_NPU_MAX_RANK];
    epctx_npu__shape shape = c->tensors[from].shape;
    epctx_npu__dense(&shape, strides);
    return epctx_npu__emit_move(c, from, to, &shape, 0, 0, strides, strides);
}

/* Numpy's broadcasting of two shapes. */
static epctx_status epctx_npu__broadcast(epctx_npu__compiler *c, const epctx_npu__shape *a,
                                         const epctx_npu__shape *b, epctx_npu__shape *out)
{
    uint32_t i;
    memset(out, 0, sizeof *out);
    out->rank = a->rank > b->rank ? a->rank : b->rank;
    for (i = 0; i < out->rank; i++) {
        uint32_t back = out->rank - i;
        int64_t x = back <= a->rank ? a->dims[a->rank - back] : 1;
        int64_t y = back <= b->rank ? b->dims[b->rank - back] : 1;
        if (x != y && x != 1 && y != 1) {
            return epctx_fail(c->error, EPCTX_ERR_GRAPH,
                              "shapes cannot be broadcast: %d against %d in dimension %u", x, y,
                              (uint64_t)i);
        }
        out->dims[i] = x == 1 ? y : x;
    }
    return EPCTX_OK;
}

/* Strides that walk a dense tensor of shape `in` over `out`, 0 where it is repeated. */
static void epctx_npu__broadcast_strides(const epctx_npu__shape *in, const epctx_npu__shape *out,
                                         int64_t *strides)
{
    int64_t dense[EPCTX_NPU_MAX_RANK];
    uint32_t i;
    epctx_npu__dense(in, dense);
    for (i = 0; i < out->rank; i++) {
        uint32_t back = out->rank - i;
        uint32_t at = in->rank - back;
        strides[i] = back > in->rank || in->dims[at] == 1 ? 0 : dense[at];
    }
}

static epctx_status epctx_npu__emit_binary(epctx_npu__compiler *c, epctx_npu__binary_kind kind,
                                           uint32_t a, uint32_t b, uint32_t *out)
{
    epctx_npu__step s;
    epctx_npu__binary *p = &s.params.binary;
    int64_t strides[3][EPCTX_NPU_MAX_RANK], dims[EPCTX_NPU_MAX_RANK];
    epctx_npu__shape shape;
    uint32_t i;
    EPCTX_NPU__TRY(epctx_npu__broadcast(c, &c->tensors[a].shape, &c->tensors[b].shape, &shape));
    EPCTX_NPU__TRY(epctx_npu__new_tensor(c, EPCTX_ONNX_FLOAT, &shape, out));
    epctx_npu__step_init(&s, EPCTX_NPU__OP_BINARY, a, b, *out);
    memset(strides, 0, sizeof strides);
    memset(dims, 0, sizeof dims);
    memcpy(dims, shape.dims, sizeof dims);
    epctx_npu__broadcast_strides(&c->tensors[a].shape, &shape, strides[0]);
    epctx_npu__broadcast_strides(&c->tensors[b].shape, &shape, strides[1]);
    p->kind = (uint32_t)kind;
    p->rank = epctx_npu__collapse(dims, shape.rank, strides, 2);
    for (i = 0; i < EPCTX_NPU_MAX_RANK; i++) {
        p->dims[i] = i < p->rank ? (uint32_t)dims[i] : 0;
        p->a[i] = i < p->rank ? (int32_t)strides[0][i] : 0;
        p->b[i] = i < p->rank ? (int32_t)strides[1][i] : 0;
    }
    return epctx_npu__emit(c, &s);
}

static epctx_status epctx_npu__emit_fill(epctx_npu__compiler *c, uint32_t to, uint64_t bits)
{
    epctx_npu__step s;
    epctx_npu__step_init(&s, EPCTX_NPU__OP_FILL, EPCTX_NPU__NONE, EPCTX_NPU__NONE, to);
    s.params.fill.count = (uint32_t)c->tensors[to].count;
    s.params.fill.elem = epctx_npu__elem_size(c->tensors[to].elem);
    s.params.fill.low = (uint32_t)(bits & UINT32_MAX);
    s.params.fill.high = (uint32_t)(bits >> 32);
    return epctx_npu__emit(c, &s);
}

/* ================================================================================================
 * >>compile: inputs, attributes and outputs of a node
 * ============================================================================================== */

static bool epctx_npu__has_input(const epctx_node *node, size_t i)
{
    return i < node->input_count && node->inputs[i].size > 0;
}

/* Tensor of input `i`, NONE when it is omitted. */
static epctx_status epctx_npu__optional(epctx_npu__compiler *c, size_t i, uint32_t *id)
{
    const epctx_node *node = c->node;
    const epctx_npu__tensor *t;
    *id = EPCTX_NPU__NONE;
    if (!epctx_npu__has_input(node, i)) {
        return EPCTX_OK;
    }
    *id = epctx_map_get(&c->names, node->inputs[i]);
    if (*id == EPCTX_MAP_NONE) {
        return epctx_fail(c->error, EPCTX_ERR_GRAPH,
                          "input '%S' is made by no earlier node and is no constant",
                          &node->inputs[i]);
    }
    t = &c->tensors[*id];
    if (t->elem == 0) {
        return epctx_fail(c->error, EPCTX_ERR_UNSUPPORTED,
                          "input '%S' has no fixed shape, or a type other than float32, int32 "
                          "and int64",
                          &node->inputs[i]);
    }
    return EPCTX_OK;
}

static epctx_status epctx_npu__input(epctx_npu__compiler *c, size_t i, uint32_t *id)
{
    EPCTX_NPU__TRY(epctx_npu__optional(c, i, id));
    if (*id == EPCTX_NPU__NONE) {
        return epctx_fail(c->error, EPCTX_ERR_GRAPH, "expected input %u, found %u inputs",
                          (uint64_t)i, (uint64_t)c->node->input_count);
    }
    return EPCTX_OK;
}

static epctx_status epctx_npu__want_float(epctx_npu__compiler *c, uint32_t id)
{
    const epctx_npu__tensor *t = &c->tensors[id];
    if (t->elem != EPCTX_ONNX_FLOAT) {
        return epctx_fail(c->error, EPCTX_ERR_UNSUPPORTED, "input '%S': expected float32, found %s",
                          &t->name, epctx_elem_name(t->elem));
    }
    return EPCTX_OK;
}

static epctx_status epctx_npu__float_input(epctx_npu__compiler *c, size_t i, uint32_t *id)
{
    EPCTX_NPU__TRY(epctx_npu__input(c, i, id));
    return epctx_npu__want_float(c, *id);
}

static epctx_status epctx_npu__want_constant(epctx_npu__compiler *c, uint32_t id, const char *what)
{
    const epctx_npu__tensor *t = &c->tensors[id];
    if (!t->constant) {
        return epctx_fail(c->error, EPCTX_ERR_UNSUPPORTED,
                          "%s '%S' must be a constant, found a value made at run time", what,
                          &t->name);
    }
    return EPCTX_OK;
}

/* Gives node output `i` to a tensor. */
static epctx_status epctx_npu__output(epctx_npu__compiler *c, size_t i, uint32_t id)
{
    const epctx_node *node = c->node;
    uint32_t uses;
    if (i >= node->output_count || node->outputs[i].size == 0) {
        return EPCTX_OK;
    }
    if (epctx_map_get(&c->names, node->outputs[i]) != EPCTX_MAP_NONE) {
        return epctx_fail(c->error, EPCTX_ERR_GRAPH, "output '%S' is made twice",
                          &node->outputs[i]);
    }
    uses = epctx_map_get(&c->uses, node->outputs[i]);
    c->tensors[id].name = node->outputs[i];
    c->tensors[id].uses = uses == EPCTX_MAP_NONE ? 0 : uses;
    if (epctx_map_put(&c->names, node->outputs[i], id) != EPCTX_OK) {
        return epctx_npu__nomem(c, c->arena->missing);
    }
    return EPCTX_OK;
}

/* Outputs from `first` on must not be used: they are not computed. */
static epctx_status epctx_npu__unused_outputs(epctx_npu__compiler *c, size_t first)
{
    size_t i;
    for (i = first; i < c->node->output_count; i++) {
        if (c->node->outputs[i].size > 0 &&
            epctx_map_get(&c->uses, c->node->outputs[i]) != EPCTX_MAP_NONE) {
            return epctx_fail(c->error, EPCTX_ERR_UNSUPPORTED, "output '%S' is not computed",
                              &c->node->outputs[i]);
        }
    }
    return EPCTX_OK;
}

static epctx_status epctx_npu__bad_attr(epctx_npu__compiler *c, const char *name, const char *why)
{
    epctx_status s = epctx_fail(c->error, EPCTX_ERR_GRAPH, "attribute %s: expected %s", name, why);
    epctx_blame(c->error, NULL, NULL, name);
    return s;
}

/* Attribute of `count` integers; `fallback` for each when it is absent. */
static epctx_status epctx_npu__ints(epctx_npu__compiler *c, const char *name, size_t count,
                                    int64_t fallback, int64_t *out)
{
    const epctx_attr *attr = epctx_node_attr(c->node, name);
    size_t i;
    if (attr != NULL && (attr->type != EPCTX_ATTR_INTS || attr->count != count)) {
        epctx_status s =
            epctx_fail(c->error, EPCTX_ERR_GRAPH, "attribute %s: expected %u integers, found %u",
                       name, (uint64_t)count, (uint64_t)attr->count);
        epctx_blame(c->error, NULL, NULL, name);
        return s;
    }
    for (i = 0; i < count; i++) {
        out[i] = attr != NULL ? attr->ints[i] : fallback;
    }
    return EPCTX_OK;
}

/* A constant of integers. */
static epctx_status epctx_npu__const_ints(epctx_npu__compiler *c, uint32_t id, const char *what,
                                          size_t most, int64_t *out, size_t *count)
{
    const epctx_npu__tensor *t = &c->tensors[id];
    const void *data;
    size_t i;
    EPCTX_NPU__TRY(epctx_npu__want_constant(c, id, what));
    if ((t->elem != EPCTX_ONNX_INT64 && t->elem != EPCTX_ONNX_INT32) || t->count > most) {
        return epctx_fail(c->error, EPCTX_ERR_GRAPH,
                          "%s '%S': expected at most %u integers, found %u of type %s", what,
                          &t->name, (uint64_t)most, t->count, epctx_elem_name(t->elem));
    }
    EPCTX_NPU__TRY(epctx_npu__data(c, id, &data));
    *count = (size_t)c->tensors[id].count;
    for (i = 0; i < *count; i++) {
        out[i] = epctx_npu__index((const uint8_t *)data, i, epctx_npu__elem_size(t->elem));
    }
    return EPCTX_OK;
}

/* Integers that are an attribute in old opsets and a constant input in new ones. `found` false when
 * there is neither. */
static epctx_status epctx_npu__ints_of(epctx_npu__compiler *c, const char *name, size_t input,
                                       int64_t since, int64_t *out, size_t *count, bool *found)
{
    const epctx_attr *attr = epctx_node_attr(c->node, name);
    uint32_t id;
    *count = 0;
    *found = false;
    if (c->node->version < since) {
        if (attr == NULL) {
            return EPCTX_OK;
        }
        if (attr->type != EPCTX_ATTR_INTS || attr->count > 2 * EPCTX_NPU_MAX_RANK) {
            return epctx_npu__bad_attr(c, name, "a short list of integers");
        }
        memcpy(out, attr->ints, attr->count * sizeof *out);
        *count = attr->count;
        *found = true;
        return EPCTX_OK;
    }
    EPCTX_NPU__TRY(epctx_npu__optional(c, input, &id));
    *found = id != EPCTX_NPU__NONE;
    return *found ? epctx_npu__const_ints(c, id, name, 2 * EPCTX_NPU_MAX_RANK, out, count)
                  : EPCTX_OK;
}

/* Scalar constant float of an input. */
static epctx_status epctx_npu__const_float(epctx_npu__compiler *c, uint32_t id, const char *what,
                                           float *out)
{
    const void *data;
    EPCTX_NPU__TRY(epctx_npu__want_float(c, id));
    EPCTX_NPU__TRY(epctx_npu__want_constant(c, id, what));
    if (c->tensors[id].count != 1) {
        return epctx_fail(c->error, EPCTX_ERR_GRAPH, "%s '%S': expected one number, found %u", what,
                          &c->tensors[id].name, c->tensors[id].count);
    }
    EPCTX_NPU__TRY(epctx_npu__data(c, id, &data));
    memcpy(out, data, sizeof *out);
    return EPCTX_OK;
}

/* An axis in -rank..rank-1 to 0..rank-1 (`extra` 1: up to rank itself). */
static epctx_status epctx_npu__axis(epctx_npu__compiler *c, int64_t axis, uint32_t rank,
                                    uint32_t extra, uint32_t *out)
{
    *out = 0;
    if (axis < -(int64_t)rank || axis >= (int64_t)rank + extra) {
        return epctx_fail(c->error, EPCTX_ERR_GRAPH, "axis %d: expected %d..%d", axis,
                          -(int64_t)rank, (int64_t)rank + extra - 1);
    }
    *out = (uint32_t)(axis < 0 ? axis + (int64_t)rank : axis);
    return EPCTX_OK;
}

/* One rounding each, whatever the compiler would like to contract or keep in wider registers. */
static float epctx_npu__f_mul(float a, float b)
{
    volatile float r = a * b;
    return r;
}

static float epctx_npu__f_add(float a, float b)
{
    volatile float r = a + b;
    return r;
}

static float epctx_npu__f_div(float a, float b)
{
    volatile float r = a / b;
    return r;
}

/* ================================================================================================
 * >>compile: operators
 *
 * One function per ONNX operator: checks the node, infers the shape, and emits steps, merging into
 * the step before where nobody else sees its result. A node whose inputs are all constant is
 * computed on the spot where the result is the same bits everywhere.
 * ============================================================================================== */

/* -- shape operators: the same numbers under another shape -- */

static epctx_status epctx_npu__lower_alias(epctx_npu__compiler *c, uint32_t x,
                                           const epctx_npu__shape *shape)
{
    uint32_t y;
    if (epctx_npu__count(shape) != c->tensors[x].count) {
        return epctx_fail(c->error, EPCTX_ERR_GRAPH, "expected a shape of %u elements, found %u",
                          c->tensors[x].count, epctx_npu__count(shape));
    }
    EPCTX_NPU__TRY(epctx_npu__alias(c, x, shape, 0, &y));
    return epctx_npu__output(c, 0, y);
}

static epctx_status epctx_npu__lower_identity(epctx_npu__compiler *c)
{
    uint32_t x;
    epctx_npu__shape shape;
    EPCTX_NPU__TRY(epctx_npu__input(c, 0, &x));
    shape = c->tensors[x].shape;
    return epctx_npu__lower_alias(c, x, &shape);
}

static epctx_status epctx_npu__lower_dropout(epctx_npu__compiler *c)
{
    uint32_t mode;
    EPCTX_NPU__TRY(epctx_npu__unused_outputs(c, 1));
    EPCTX_NPU__TRY(epctx_npu__optional(c, 2, &mode));
    if (mode != EPCTX_NPU__NONE ||
        (c->node->version < 7 && epctx_node_int(c->node, "is_test", 0) == 0)) {
        return epctx_fail(c->error, EPCTX_ERR_UNSUPPORTED, "training mode is not supported");
    }
    return epctx_npu__lower_identity(c);
}

static epctx_status epctx_npu__lower_reshape(epctx_npu__compiler *c)
{
    int64_t wanted[2 * EPCTX_NPU_MAX_RANK];
    const bool allow_zero = epctx_node_int(c->node, "allowzero", 0) != 0;
    epctx_npu__shape shape = {0, {0}};
    uint64_t known = 1;
    uint32_t x, free_dim = EPCTX_NPU__NONE, i;
    size_t count;
    bool found;
    EPCTX_NPU__TRY(epctx_npu__input(c, 0, &x));
    EPCTX_NPU__TRY(epctx_npu__ints_of(c, "shape", 1, 5, wanted, &count, &found));
    if (!found || count > EPCTX_NPU_MAX_RANK) {
        return epctx_fail(c->error, EPCTX_ERR_UNSUPPORTED,
                          "expected a shape of at most %u dimensions, found %u",
                          (uint64_t)EPCTX_NPU_MAX_RANK, (uint64_t)count);
    }
    shape.rank = (uint32_t)count;
    for (i = 0; i < count; i++) {
        int64_t d = wanted[i];
        if (d == 0 && !allow_zero) {
            if (i >= c->tensors[x].shape.rank) {
                return epctx_fail(c->error, EPCTX_ERR_GRAPH,
                                  "shape has 0 in dimension %u, which "
                                  "the input does not have",
                                  (uint64_t)i);
            }
            d = c->tensors[x].shape.dims[i];
        }
        if (d < -1 || (d == -1 && free_dim != EPCTX_NPU__NONE)) {
            return epctx_fail(c->error, EPCTX_ERR_GRAPH, "shape has %d in dimension %u", d,
                              (uint64_t)i);
        }
        shape.dims[i] = d == -1 ? 1 : d;
        if (d == -1) {
            free_dim = i;
        } else {
            known = epctx_npu__mul(known, (uint64_t)d);
        }
    }
    if (free_dim != EPCTX_NPU__NONE) {
        if (known == 0 || c->tensors[x].count % known != 0) {
            return epctx_fail(c->error, EPCTX_ERR_GRAPH,
                              "%u elements cannot be reshaped: the other dimensions have %u",
                              c->tensors[x].count, known);
        }
        shape.dims[free_dim] = (int64_t)(c->tensors[x].count / known);
    }
    return epctx_npu__lower_alias(c, x, &shape);
}

static epctx_status epctx_npu__lower_flatten(epctx_npu__compiler *c)
{
    epctx_npu__shape shape = {2, {0}};
    uint32_t x, axis;
    EPCTX_NPU__TRY(epctx_npu__input(c, 0, &x));
    EPCTX_NPU__TRY(
        epctx_npu__axis(c, epctx_node_int(c->node, "axis", 1), c->tensors[x].shape.rank, 1, &axis));
    shape.dims[0] = (int64_t)epctx_npu__product(&c->tensors[x].shape, 0, axis);
    shape.dims[1] =
        (int64_t)epctx_npu__product(&c->tensors[x].shape, axis, c->tensors[x].shape.rank);
    return epctx_npu__lower_alias(c, x, &shape);
}

/* Marks the axes of a list; EPCTX_ERR_GRAPH for one that stands twice or outside. */
static epctx_status epctx_npu__mark_axes(epctx_npu__compiler *c, const int64_t *axes, size_t count,
                                         uint32_t rank, bool *marked)
{
    size_t i;
    for (i = 0; i < count; i++) {
        uint32_t axis;
        EPCTX_NPU__TRY(epctx_npu__axis(c, axes[i], rank, 0, &axis));
        if (marked[axis]) {
            return epctx_fail(c->error, EPCTX_ERR_GRAPH, "axis %u stands twice", (uint64_t)axis);
        }
        marked[axis] = true;
    }
    return EPCTX_OK;
}

static epctx_status epctx_npu__lower_squeeze(epctx_npu__compiler *c)
{
    int64_t axes[2 * EPCTX_NPU_MAX_RANK];
    bool marked[EPCTX_NPU_MAX_RANK] = {false}, found;
    epctx_npu__shape shape = {0, {0}};
    const epctx_npu__shape *in;
    uint32_t x, i;
    size_t count;
    EPCTX_NPU__TRY(epctx_npu__input(c, 0, &x));
    EPCTX_NPU__TRY(epctx_npu__ints_of(c, "axes", 1, 13, axes, &count, &found));
    in = &c->tensors[x].shape;
    EPCTX_NPU__TRY(epctx_npu__mark_axes(c, axes, count, in->rank, marked));
    for (i = 0; i < in->rank; i++) {
        if (found && marked[i] && in->dims[i] != 1) {
            return epctx_fail(c->error, EPCTX_ERR_GRAPH, "axis %u has %d elements, expected 1",
                              (uint64_t)i, in->dims[i]);
        }
        if (found ? !marked[i] : in->dims[i] != 1) {
            shape.dims[shape.rank++] = in->dims[i];
        }
    }
    return epctx_npu__lower_alias(c, x, &shape);
}

static epctx_status epctx_npu__lower_unsqueeze(epctx_npu__compiler *c)
{
    int64_t axes[2 * EPCTX_NPU_MAX_RANK];
    bool marked[EPCTX_NPU_MAX_RANK] = {false}, found;
    epctx_npu__shape shape = {0, {0}};
    uint32_t x, i, from = 0;
    size_t count;
    EPCTX_NPU__TRY(epctx_npu__input(c, 0, &x));
    EPCTX_NPU__TRY(epctx_npu__ints_of(c, "axes", 1, 13, axes, &count, &found));
    if (!found || c->tensors[x].shape.rank + count > EPCTX_NPU_MAX_RANK) {
        return epctx_fail(c->error, EPCTX_ERR_UNSUPPORTED,
                          "expected axes that lead to a rank of at most %u",
                          (uint64_t)EPCTX_NPU_MAX_RANK);
    }
    shape.rank = c->tensors[x].shape.rank + (uint32_t)count;
    EPCTX_NPU__TRY(epctx_npu__mark_axes(c, axes, count, shape.rank, marked));
    for (i = 0; i < shape.rank; i++) {
        shape.dims[i] = marked[i] ? 1 : c->tensors[x].shape.dims[from++];
    }
    return epctx_npu__lower_alias(c, x, &shape);
}

/* -- constants -- */

static epctx_status epctx_npu__import_tensor(epctx_npu__compiler *c, const epctx_tensor *from,
                                             uint32_t *id);

static epctx_status epctx_npu__lower_constant(epctx_npu__compiler *c)
{
    const epctx_node *node = c->node;
    const epctx_attr *a = node->attr_count == 1 ? &node->attrs[0] : NULL;
    epctx_npu__shape shape = {0, {0}};
    void *data;
    uint32_t id;
    if (a == NULL) {
        return epctx_fail(c->error, EPCTX_ERR_GRAPH, "expected one attribute, found %u",
                          (uint64_t)node->attr_count);
    }
    if (a->type == EPCTX_ATTR_TENSOR && a->t != NULL) {
        EPCTX_NPU__TRY(epctx_npu__import_tensor(c, a->t, &id));
        if (c->tensors[id].elem == 0) {
            return epctx_fail(c->error, EPCTX_ERR_UNSUPPORTED,
                              "expected a constant of float32, int32 or int64, found %s",
                              epctx_elem_name(a->t->elem_type));
        }
        return epctx_npu__output(c, 0, id);
    }
    if (a->type == EPCTX_ATTR_INTS || a->type == EPCTX_ATTR_FLOATS) {
        shape.rank = 1;
        shape.dims[0] = (int64_t)a->count;
    } else if (a->type != EPCTX_ATTR_INT && a->type != EPCTX_ATTR_FLOAT) {
        return epctx_fail(c->error, EPCTX_ERR_UNSUPPORTED, "attribute %S: expected numbers",
                          &a->name);
    }
    if (a->type == EPCTX_ATTR_INT || a->type == EPCTX_ATTR_INTS) {
        EPCTX_NPU__TRY(epctx_npu__add_constant(c, EPCTX_ONNX_INT64, &shape, &data, &id));
    } else {
        EPCTX_NPU__TRY(epctx_npu__add_constant(c, EPCTX_ONNX_FLOAT, &shape, &data, &id));
    }
    if (a->type == EPCTX_ATTR_INT) {
        memcpy(data, &a->i, sizeof a->i);
    } else if (a->type == EPCTX_ATTR_FLOAT) {
        memcpy(data, &a->f, sizeof a->f);
    } else if (a->count > 0 && a->type == EPCTX_ATTR_INTS) {
        memcpy(data, a->ints, a->count * sizeof *a->ints);
    } else if (a->count > 0) {
        memcpy(data, a->floats, a->count * sizeof *a->floats);
    }
    return epctx_npu__output(c, 0, id);
}

static epctx_status epctx_npu__shape_from(epctx_npu__compiler *c, const int64_t *dims, size_t count,
                                          epctx_npu__shape *shape)
{
    size_t i;
    memset(shape, 0, sizeof *shape);
    if (count > EPCTX_NPU_MAX_RANK) {
        return epctx_fail(c->error, EPCTX_ERR_UNSUPPORTED,
                          "expected a rank of at most %u, found "
                          "%u",
                          (uint64_t)EPCTX_NPU_MAX_RANK, (uint64_t)count);
    }
    shape->rank = (uint32_t)count;
    for (i = 0; i < count; i++) {
        if (dims[i] < 0) {
            return epctx_fail(c->error, EPCTX_ERR_GRAPH, "dimension %u is %d", (uint64_t)i,
                              dims[i]);
        }
        shape->dims[i] = dims[i];
    }
    return EPCTX_OK;
}

static epctx_status epctx_npu__lower_constant_of_shape(epctx_npu__compiler *c)
{
    const epctx_attr *value = epctx_node_attr(c->node, "value");
    int64_t dims[2 * EPCTX_NPU_MAX_RANK];
    epctx_npu__shape shape;
    int32_t elem = EPCTX_ONNX_FLOAT;
    uint64_t bits = 0;
    uint32_t id;
    size_t count;
    EPCTX_NPU__TRY(epctx_npu__input(c, 0, &id));
    EPCTX_NPU__TRY(epctx_npu__const_ints(c, id, "shape", EPCTX_NPU_MAX_RANK, dims, &count));
    EPCTX_NPU__TRY(epctx_npu__shape_from(c, dims, count, &shape));
    if (value != NULL) {
        if (value->type != EPCTX_ATTR_TENSOR || value->t == NULL) {
            return epctx_npu__bad_attr(c, "value", "a tensor");
        }
        EPCTX_NPU__TRY(epctx_npu__import_tensor(c, value->t, &id));
        elem = c->tensors[id].elem;
        if (elem == 0 || c->tensors[id].count != 1) {
            return epctx_npu__bad_attr(c, "value", "one float32, int32 or int64");
        }
        bits = epctx_npu__elem_size(elem) == 4 ? epctx_npu__get32(c->tensors[id].raw)
                                               : epctx_npu__get64(c->tensors[id].raw);
    }
    EPCTX_NPU__TRY(epctx_npu__new_tensor(c, elem, &shape, &id));
    EPCTX_NPU__TRY(epctx_npu__emit_fill(c, id, bits));
    return epctx_npu__output(c, 0, id);
}

static epctx_status epctx_npu__lower_shape(epctx_npu__compiler *c)
{
    epctx_npu__shape shape = {1, {0}};
    int64_t start = epctx_node_int(c->node, "start", 0), end, i, rank;
    int64_t *dims;
    void *data;
    uint32_t x, id;
    EPCTX_NPU__TRY(epctx_npu__input(c, 0, &x));
    rank = (int64_t)c->tensors[x].shape.rank;
    end = epctx_node_int(c->node, "end", rank);
    start += start < 0 ? rank : 0;
    end += end < 0 ? rank : 0;
    start = start < 0 ? 0 : (start > rank ? rank : start);
    end = end < start ? start : (end > rank ? rank : end);
    shape.dims[0] = end - start;
    EPCTX_NPU__TRY(epctx_npu__add_constant(c, EPCTX_ONNX_INT64, &shape, &data, &id));
    dims = (int64_t *)data;
    for (i = start; i < end; i++) {
        dims[i - start] = c->tensors[x].shape.dims[i];
    }
    return epctx_npu__output(c, 0, id);
}

/* -- element by element -- */

/* Sets the activation of a step; false when this opcode has none or has one already. */
static bool epctx_npu__set_act(epctx_npu__step *s, const epctx_npu__act *act)
{
    epctx_npu__act *slot = NULL;
    switch (s->op) {
    case EPCTX_NPU__OP_CONV:
        slot = &s->params.conv.act;
        break;
    case EPCTX_NPU__OP_DEPTHWISE:
        slot = &s->params.depthwise.act;
        break;
    case EPCTX_NPU__OP_GEMM:
        slot = &s->params.gemm.act;
        break;
    case EPCTX_NPU__OP_BINARY:
        slot = &s->params.binary.act;
        break;
    case EPCTX_NPU__OP_AFFINE:
        slot = &s->params.affine.act;
        break;
    default:
        break;
    }
    if (slot == NULL || slot->kind != EPCTX_NPU__ACT_NONE) {
        return false;
    }
    *slot = *act;
    return true;
}

static epctx_status epctx_npu__lower_act(epctx_npu__compiler *c, epctx_npu__act_kind kind, float a,
                                         float b)
{
    epctx_npu__act act;
    epctx_npu__step s, *before;
    uint32_t x, y;
    EPCTX_NPU__TRY(epctx_npu__float_input(c, 0, &x));
    act.kind = (uint32_t)kind;
    act.a = a;
    act.b = b;
    before = epctx_npu__producer(c, x);
    if (before != NULL && epctx_npu__set_act(before, &act)) {
        c->stats.fused++;
        return epctx_npu__output(c, 0, x);
    }
    EPCTX_NPU__TRY(epctx_npu__new_tensor(c, EPCTX_ONNX_FLOAT, &c->tensors[x].shape, &y));
    epctx_npu__step_init(&s, EPCTX_NPU__OP_UNARY, x, EPCTX_NPU__NONE, y);
    s.params.unary.count = (uint32_t)c->tensors[x].count;
    s.params.unary.act = act;
    EPCTX_NPU__TRY(epctx_npu__emit(c, &s));
    return epctx_npu__output(c, 0, y);
}

#define EPCTX_NPU__LOWER_ACT(name, kind)                                                           \
    static epctx_status epctx_npu__lower_##name(epctx_npu__compiler *c)                            \
    {                                                                                              \
        return epctx_npu__lower_act(c, EPCTX_NPU__ACT_##kind, 0.0f, 0.0f);                         \
    }

EPCTX_NPU__LOWER_ACT(relu, RELU)
EPCTX_NPU__LOWER_ACT(sigmoid, SIGMOID)
EPCTX_NPU__LOWER_ACT(tanh, TANH)
EPCTX_NPU__LOWER_ACT(exp, EXP)
EPCTX_NPU__LOWER_ACT(log, LOG)
EPCTX_NPU__LOWER_ACT(sqrt, SQRT)
EPCTX_NPU__LOWER_ACT(abs, ABS)
EPCTX_NPU__LOWER_ACT(neg, NEG)

static epctx_status epctx_npu__lower_leaky_relu(epctx_npu__compiler *c)
{
    return epctx_npu__lower_act(c, EPCTX_NPU__ACT_LEAKY, epctx_node_float(c->node, "alpha", 0.01f),
                                0.0f);
}

static epctx_status epctx_npu__lower_elu(epctx_npu__compiler *c)
{
    return epctx_npu__lower_act(c, EPCTX_NPU__ACT_ELU, epctx_node_float(c->node, "alpha", 1.0f),
                                0.0f);
}

static epctx_status epctx_npu__lower_hard_sigmoid(epctx_npu__compiler *c)
{
    return epctx_npu__lower_act(c, EPCTX_NPU__ACT_HARD_SIGMOID,
                                epctx_node_float(c->node, "alpha", 0.2f),
                                epctx_node_float(c->node, "beta", 0.5f));
}

static epctx_status epctx_npu__lower_hard_swish(epctx_npu__compiler *c)
{
    return epctx_npu__lower_act(c, EPCTX_NPU__ACT_HARD_SWISH, 1.0f / 6.0f, 0.5f);
}

static epctx_status epctx_npu__lower_clip(epctx_npu__compiler *c)
{
    float limits[2] = {-FLT_MAX, FLT_MAX};
    uint32_t ids[2] = {EPCTX_NPU__NONE, EPCTX_NPU__NONE}, x, i;
    bool constant = true;
    EPCTX_NPU__TRY(epctx_npu__float_input(c, 0, &x));
    if (c->node->version < 11) {
        limits[0] = epctx_node_float(c->node, "min", limits[0]);
        limits[1] = epctx_node_float(c->node, "max", limits[1]);
    } else {
        for (i = 0; i < 2; i++) {
            EPCTX_NPU__TRY(epctx_npu__optional(c, i + 1, &ids[i]));
            constant = constant && (ids[i] == EPCTX_NPU__NONE || c->tensors[ids[i]].constant);
        }
    }
    for (i = 0; i < 2; i++) {
        if (ids[i] != EPCTX_NPU__NONE && constant) {
            EPCTX_NPU__TRY(epctx_npu__const_float(c, ids[i], i == 0 ? "min" : "max", &limits[i]));
        } else if (ids[i] != EPCTX_NPU__NONE) { /* limits from run time: Max, then Min */
            EPCTX_NPU__TRY(epctx_npu__want_float(c, ids[i]));
            if (c->tensors[ids[i]].count != 1 || c->tensors[ids[i]].shape.rank > 1) {
                return epctx_fail(c->error, EPCTX_ERR_GRAPH, "min and max must be scalars");
            }
            EPCTX_NPU__TRY(epctx_npu__emit_binary(
                c, i == 0 ? EPCTX_NPU__BINARY_MAX : EPCTX_NPU__BINARY_MIN, x, ids[i], &x));
        }
    }
    if (!constant) {
        return epctx_npu__output(c, 0, x);
    }
    if (limits[1] < limits[0]) { /* ONNX: every element becomes max */
        limits[0] = limits[1];
    }
    return epctx_npu__lower_act(c, EPCTX_NPU__ACT_CLIP, limits[0], limits[1]);
}

/* Integers are computed only while compiling: shapes. */
static epctx_status epctx_npu__int_op(epctx_npu__compiler *c, epctx_npu__binary_kind kind,
                                      int64_t a, int64_t b, int64_t *out)
{
    const uint64_t x = (uint64_t)a, y = (uint64_t)b; /* wraps like the run-time operators do */
    switch (kind) {
    case EPCTX_NPU__BINARY_ADD:
        *out = (int64_t)(x + y);
        return EPCTX_OK;
    case EPCTX_NPU__BINARY_SUB:
        *out = (int64_t)(x - y);
        return EPCTX_OK;
    case EPCTX_NPU__BINARY_MUL:
        *out = (int64_t)(x * y);
        return EPCTX_OK;
    case EPCTX_NPU__BINARY_MIN:
        *out = a < b ? a : b;
        return EPCTX_OK;
    case EPCTX_NPU__BINARY_MAX:
        *out = a > b ? a : b;
        return EPCTX_OK;
    case EPCTX_NPU__BINARY_DIV:
        if (b == 0 || (a == INT64_MIN && b == -1)) {
            return epctx_fail(c->error, EPCTX_ERR_GRAPH, "%d / %d", a, b);
        }
        *out = a / b;
        return EPCTX_OK;
    default:
        return epctx_fail(c->error, EPCTX_ERR_UNSUPPORTED, "integers are not supported");
    }
}

static epctx_status epctx_npu__fold_ints(epctx_npu__compiler *c, epctx_npu__binary_kind kind,
                                         uint32_t a, uint32_t b, uint32_t *out)
{
    int64_t sa[EPCTX_NPU_MAX_RANK], sb[EPCTX_NPU_MAX_RANK], at[EPCTX_NPU_MAX_RANK] = {0};
    const void *da, *db;
    epctx_npu__shape shape;
    uint32_t elem = epctx_npu__elem_size(c->tensors[a].elem), i;
    uint64_t n, count;
    void *data;
    EPCTX_NPU__TRY(epctx_npu__want_constant(c, a, "integer input"));
    EPCTX_NPU__TRY(epctx_npu__want_constant(c, b, "integer input"));
    EPCTX_NPU__TRY(epctx_npu__broadcast(c, &c->tensors[a].shape, &c->tensors[b].shape, &shape));
    EPCTX_NPU__TRY(epctx_npu__data(c, a, &da));
    EPCTX_NPU__TRY(epctx_npu__data(c, b, &db));
    epctx_npu__broadcast_strides(&c->tensors[a].shape, &shape, sa);
    epctx_npu__broadcast_strides(&c->tensors[b].shape, &shape, sb);
    EPCTX_NPU__TRY(epctx_npu__add_constant(c, c->tensors[a].elem, &shape, &data, out));
    count = c->tensors[*out].count;
    for (n = 0; n < count; n++) {
        int64_t pa = 0, pb = 0, result = 0;
        int32_t narrow;
        for (i = 0; i < shape.rank; i++) {
            pa += at[i] * sa[i];
            pb += at[i] * sb[i];
        }
        EPCTX_NPU__TRY(
            epctx_npu__int_op(c, kind, epctx_npu__index((const uint8_t *)da, (size_t)pa, elem),
                              epctx_npu__index((const uint8_t *)db, (size_t)pb, elem), &result));
        if (elem == 8) {
            memcpy((uint8_t *)data + n * 8, &result, 8);
        } else {
            narrow = (int32_t)(uint32_t)((uint64_t)result & UINT32_MAX);
            memcpy((uint8_t *)data + n * 4, &narrow, 4);
        }
        for (i = shape.rank; i > 0 && ++at[i - 1] == shape.dims[i - 1]; i--) {
            at[i - 1] = 0;
        }
    }
    c->stats.folded++;
    return EPCTX_OK;
}

/* Opsets before 7 broadcast only with attribute `broadcast`, the second input laid along `axis`. */
static epctx_status epctx_npu__old_broadcast(epctx_npu__compiler *c, uint32_t a, uint32_t *b)
{
    epctx_npu__shape shape = {0, {0}};
    const epctx_attr *attr = epctx_node_attr(c->node, "axis");
    uint32_t axis, rank = c->tensors[a].shape.rank, i;
    if (c->node->version >= 7 || epctx_node_int(c->node, "broadcast", 0) == 0 || attr == NULL ||
        c->tensors[*b].shape.rank > rank) {
        return EPCTX_OK;
    }
    EPCTX_NPU__TRY(epctx_npu__axis(c, attr->i, rank, 0, &axis));
    if (axis + c->tensors[*b].shape.rank > rank) {
        return epctx_npu__bad_attr(c, "axis", "a place where the second input fits");
    }
    shape.rank = rank - axis;
    for (i = 0; i < shape.rank; i++) {
        shape.dims[i] = i < c->tensors[*b].shape.rank ? c->tensors[*b].shape.dims[i] : 1;
    }
    return epctx_npu__alias(c, *b, &shape, 0, b);
}

/* x + constant behind a Conv or Gemm without bias: the constant becomes the bias. */
static epctx_status epctx_npu__fuse_bias(epctx_npu__compiler *c, uint32_t x, uint32_t bias,
                                         bool *done)
{
    epctx_npu__step *s = epctx_npu__producer(c, x);
    const epctx_npu__shape *xs = &c->tensors[x].shape, *bs = &c->tensors[bias].shape;
    epctx_npu__shape flat = {1, {0}};
    uint32_t axis, i, act, id;
    *done = false;
    if (s == NULL || !c->tensors[bias].constant || bs->rank > xs->rank) {
        return EPCTX_OK;
    }
    switch (s->op) {
    case EPCTX_NPU__OP_CONV:
        axis = 1;
        act = s->params.conv.act.kind;
        break;
    case EPCTX_NPU__OP_DEPTHWISE:
        axis = 1;
        act = s->params.depthwise.act.kind;
        break;
    case EPCTX_NPU__OP_GEMM:
        if (s->params.gemm.n != (uint32_t)xs->dims[xs->rank - 1]) {
            return EPCTX_OK;
        }
        axis = xs->rank - 1;
        act = s->params.gemm.act.kind;
        break;
    default:
        return EPCTX_OK;
    }
    if (s->in[2] != EPCTX_NPU__NONE || act != EPCTX_NPU__ACT_NONE || xs->dims[axis] == 1) {
        return EPCTX_OK;
    }
    for (i = 0; i < bs->rank; i++) {
        uint32_t at = xs->rank - bs->rank + i;
        if (bs->dims[i] != (at == axis ? xs->dims[axis] : 1)) {
            return EPCTX_OK;
        }
    }
    if (c->tensors[bias].count != (uint64_t)xs->dims[axis]) {
        return EPCTX_OK;
    }
    flat.dims[0] = xs->dims[axis];
    EPCTX_NPU__TRY(epctx_npu__alias(c, bias, &flat, 0, &id));
    c->steps[c->tensors[x].writer].in[2] = id;
    c->stats.fused++;
    *done = true;
    return EPCTX_OK;
}

static epctx_status epctx_npu__lower_binary(epctx_npu__compiler *c, epctx_npu__binary_kind kind)
{
    uint32_t a, b, y;
    bool done = false;
    EPCTX_NPU__TRY(epctx_npu__input(c, 0, &a));
    EPCTX_NPU__TRY(epctx_npu__input(c, 1, &b));
    EPCTX_NPU__TRY(epctx_npu__old_broadcast(c, a, &b));
    if (c->tensors[a].elem != c->tensors[b].elem) {
        return epctx_fail(c->error, EPCTX_ERR_GRAPH, "inputs have types %s and %s",
                          epctx_elem_name(c->tensors[a].elem), epctx_elem_name(c->tensors[b].elem));
    }
    if (c->tensors[a].elem != EPCTX_ONNX_FLOAT) {
        EPCTX_NPU__TRY(epctx_npu__fold_ints(c, kind, a, b, &y));
        return epctx_npu__output(c, 0, y);
    }
    if (kind == EPCTX_NPU__BINARY_ADD) {
        EPCTX_NPU__TRY(epctx_npu__fuse_bias(c, a, b, &done));
        y = a;
        if (!done) {
            EPCTX_NPU__TRY(epctx_npu__fuse_bias(c, b, a, &done));
            y = b;
        }
    }
    if (!done) {
        EPCTX_NPU__TRY(epctx_npu__emit_binary(c, kind, a, b, &y));
    }
    return epctx_npu__output(c, 0, y);
}

#define EPCTX_NPU__LOWER_BINARY(name, kind)                                                        \
    static epctx_status epctx_npu__lower_##name(epctx_npu__compiler *c)                            \
    {                                                                                              \
        return epctx_npu__lower_binary(c, EPCTX_NPU__BINARY_##kind);                               \
    }

EPCTX_NPU__LOWER_BINARY(add, ADD)
EPCTX_NPU__LOWER_BINARY(sub, SUB)
EPCTX_NPU__LOWER_BINARY(mul, MUL)
EPCTX_NPU__LOWER_BINARY(div, DIV)

static epctx_status epctx_npu__lower_prelu(epctx_npu__compiler *c)
{
    epctx_npu__shape shape;
    uint32_t x, slope, y, i;
    EPCTX_NPU__TRY(epctx_npu__float_input(c, 0, &x));
    EPCTX_NPU__TRY(epctx_npu__float_input(c, 1, &slope));
    if (c->node->version < 7 && c->tensors[slope].shape.rank == 1 && c->tensors[x].shape.rank > 2) {
        shape = c->tensors[x].shape; /* old opsets: one slope per channel */
        shape.rank -= 1;
        shape.dims[0] = c->tensors[slope].shape.dims[0];
        for (i = 1; i < shape.rank; i++) {
            shape.dims[i] = 1;
        }
        EPCTX_NPU__TRY(epctx_npu__alias(c, slope, &shape, 0, &slope));
    }
    EPCTX_NPU__TRY(epctx_npu__emit_binary(c, EPCTX_NPU__BINARY_PRELU, x, slope, &y));
    if (!epctx_npu__same_shape(&c->tensors[x].shape, &c->tensors[y].shape)) {
        return epctx_fail(c->error, EPCTX_ERR_GRAPH, "slope does not broadcast to the input");
    }
    return epctx_npu__output(c, 0, y);
}

/* Sum, Min, Max: any number of inputs, left to right. */
static epctx_status epctx_npu__lower_many(epctx_npu__compiler *c, epctx_npu__binary_kind kind)
{
    uint32_t y, b;
    size_t i;
    EPCTX_NPU__TRY(epctx_npu__float_input(c, 0, &y));
    if (c->node->input_count == 1) {
        return epctx_npu__lower_identity(c);
    }
    for (i = 1; i < c->node->input_count; i++) {
        EPCTX_NPU__TRY(epctx_npu__float_input(c, i, &b));
        EPCTX_NPU__TRY(epctx_npu__emit_binary(c, kind, y, b, &y));
    }
    return epctx_npu__output(c, 0, y);
}

static epctx_status epctx_npu__lower_sum(epctx_npu__compiler *c)
{
    return epctx_npu__lower_many(c, EPCTX_NPU__BINARY_ADD);
}

static epctx_status epctx_npu__lower_min(epctx_npu__compiler *c)
{
    return epctx_npu__lower_many(c, EPCTX_NPU__BINARY_MIN);
}

static epctx_status epctx_npu__lower_max(epctx_npu__compiler *c)
{
    return epctx_npu__lower_many(c, EPCTX_NPU__BINARY_MAX);
}

static epctx_status epctx_npu__lower_cast(epctx_npu__compiler *c)
{
    const int64_t to = epctx_node_int(c->node, "to", 0);
    epctx_npu__step s;
    uint32_t x, y;
    EPCTX_NPU__TRY(epctx_npu__input(c, 0, &x));
    if (epctx_npu__elem_size(to) == 0) {
        return epctx_fail(c->error, EPCTX_ERR_UNSUPPORTED,
                          "attribute to: expected float32, int32 or int64, found %d", to);
    }
    if (to == c->tensors[x].elem) {
        return epctx_npu__lower_identity(c);
    }
    EPCTX_NPU__TRY(epctx_npu__new_tensor(c, (int32_t)to, &c->tensors[x].shape, &y));
    epctx_npu__step_init(&s, EPCTX_NPU__OP_CAST, x, EPCTX_NPU__NONE, y);
    s.params.cast.count = (uint32_t)c->tensors[x].count;
    s.params.cast.from = (uint32_t)c->tensors[x].elem;
    s.params.cast.to = (uint32_t)to;
    EPCTX_NPU__TRY(epctx_npu__emit(c, &s));
    return epctx_npu__output(c, 0, y);
}

/* -- moving data -- */

static epctx_status epctx_npu__lower_transpose(epctx_npu__compiler *c)
{
    int64_t perm[EPCTX_NPU_MAX_RANK], dense[EPCTX_NPU_MAX_RANK], from[EPCTX_NPU_MAX_RANK];
    int64_t to[EPCTX_NPU_MAX_RANK];
    bool marked[EPCTX_NPU_MAX_RANK] = {false};
    epctx_npu__shape shape;
    uint32_t x, y, i, rank, last = 0;
    bool moves = false;
    EPCTX_NPU__TRY(epctx_npu__input(c, 0, &x));
    shape = c->tensors[x].shape;
    rank = shape.rank;
    EPCTX_NPU__TRY(epctx_npu__ints(c, "perm", rank, 0, perm));
    for (i = 0; i < rank && epctx_node_attr(c->node, "perm") == NULL; i++) {
        perm[i] = (int64_t)(rank - 1 - i);
    }
    EPCTX_NPU__TRY(epctx_npu__mark_axes(c, perm, rank, rank, marked));
    epctx_npu__dense(&c->tensors[x].shape, dense);
    for (i = 0; i < rank; i++) {
        uint32_t axis = (uint32_t)(perm[i] < 0 ? perm[i] + (int64_t)rank : perm[i]);
        shape.dims[i] = c->tensors[x].shape.dims[axis];
        from[i] = dense[axis];
        if (shape.dims[i] != 1) { /* moving dimensions of 1 moves nothing */
            moves = moves || axis < last;
            last = axis;
        }
    }
    if (!moves) {
        return epctx_npu__lower_alias(c, x, &shape);
    }
    epctx_npu__dense(&shape, to);
    EPCTX_NPU__TRY(epctx_npu__new_tensor(c, c->tensors[x].elem, &shape, &y));
    EPCTX_NPU__TRY(epctx_npu__emit_move(c, x, y, &shape, 0, 0, from, to));
    return epctx_npu__output(c, 0, y);
}

static epctx_status epctx_npu__lower_concat(epctx_npu__compiler *c)
{
    int64_t to[EPCTX_NPU_MAX_RANK], from[EPCTX_NPU_MAX_RANK], at = 0;
    epctx_npu__shape shape;
    uint32_t x, y, axis, j;
    size_t i;
    EPCTX_NPU__TRY(epctx_npu__input(c, 0, &x));
    shape = c->tensors[x].shape;
    EPCTX_NPU__TRY(epctx_npu__axis(c, epctx_node_int(c->node, "axis", c->node->version < 4 ? 1 : 0),
                                   shape.rank, 0, &axis));
    shape.dims[axis] = 0;
    for (i = 0; i < c->node->input_count; i++) {
        uint32_t t;
        EPCTX_NPU__TRY(epctx_npu__input(c, i, &t));
        for (j = 0; j < shape.rank && c->tensors[t].shape.rank == shape.rank; j++) {
            if (j != axis && c->tensors[t].shape.dims[j] != shape.dims[j]) {
                break;
            }
        }
        if (j != shape.rank || c->tensors[t].elem != c->tensors[x].elem) {
            return epctx_fail(c->error, EPCTX_ERR_GRAPH,
                              "input '%S' differs in type or shape from the first one",
                              &c->node->inputs[i]);
        }
        shape.dims[axis] += c->tensors[t].shape.dims[axis];
    }
    EPCTX_NPU__TRY(epctx_npu__new_tensor(c, c->tensors[x].elem, &shape, &y));
    epctx_npu__dense(&shape, to);
    for (i = 0; i < c->node->input_count; i++) {
        epctx_npu__shape part;
        EPCTX_NPU__TRY(epctx_npu__input(c, i, &x));
        part = c->tensors[x].shape;
        if (c->tensors[x].count == 0 && !c->folding) {
            continue;
        }
        epctx_npu__dense(&part, from);
        EPCTX_NPU__TRY(
            epctx_npu__emit_move(c, x, y, &part, 0, (uint64_t)(at * to[axis]), from, to));
        at += part.dims[axis];
    }
    return epctx_npu__output(c, 0, y);
}

/* A box out of a tensor, with steps. A box that is one piece in memory is not copied. */
static epctx_status epctx_npu__take_box(epctx_npu__compiler *c, uint32_t x,
                                        const epctx_npu__shape *box, const int64_t *start,
                                        const int64_t *step, uint32_t *y)
{
    int64_t dense[EPCTX_NPU_MAX_RANK], from[EPCTX_NPU_MAX_RANK], to[EPCTX_NPU_MAX_RANK];
    const epctx_npu__shape in = c->tensors[x].shape;
    uint64_t first = 0;
    bool whole = epctx_npu__count(box) > 0, inner_full = true;
    uint32_t i;
    epctx_npu__dense(&in, dense);
    for (i = in.rank; i > 0; i--) {
        uint32_t d = i - 1;
        from[d] = dense[d] * step[d];
        first += (uint64_t)(start[d] * dense[d]);
        if (box->dims[d] > 1 && (step[d] != 1 || !inner_full)) {
            whole = false;
        }
        inner_full = inner_full && box->dims[d] == in.dims[d];
    }
    if (whole) {
        return epctx_npu__alias(c, x, box, first, y);
    }
    epctx_npu__dense(box, to);
    EPCTX_NPU__TRY(epctx_npu__new_tensor(c, c->tensors[x].elem, box, y));
    return epctx_npu__emit_move(c, x, *y, box, first, 0, from, to);
}

/* One axis of Slice, by the rules of ONNX: negative counts from the end, then clamped. */
static void epctx_npu__slice_axis(int64_t size, int64_t start, int64_t end, int64_t step,
                                  int64_t *first, int64_t *count)
{
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

static epctx_status epctx_npu__lower_slice(epctx_npu__compiler *c)
{
    int64_t starts[2 * EPCTX_NPU_MAX_RANK], ends[2 * EPCTX_NPU_MAX_RANK];
    int64_t axes[2 * EPCTX_NPU_MAX_RANK], steps[2 * EPCTX_NPU_MAX_RANK];
    int64_t first[EPCTX_NPU_MAX_RANK] = {0}, step[EPCTX_NPU_MAX_RANK];
    bool marked[EPCTX_NPU_MAX_RANK] = {false}, found, has_axes, has_steps;
    epctx_npu__shape box;
    size_t count, ends_count, axes_count, steps_count, i;
    uint32_t x, y, axis;
    EPCTX_NPU__TRY(epctx_npu__input(c, 0, &x));
    EPCTX_NPU__TRY(epctx_npu__ints_of(c, "starts", 1, 10, starts, &count, &found));
    EPCTX_NPU__TRY(epctx_npu__ints_of(c, "ends", 2, 10, ends, &ends_count, &found));
    EPCTX_NPU__TRY(epctx_npu__ints_of(c, "axes", 3, 10, axes, &axes_count, &has_axes));
    EPCTX_NPU__TRY(epctx_npu__ints_of(c, "steps", 4, 10, steps, &steps_count, &has_steps));
    box = c->tensors[x].shape;
    if (count != ends_count || (has_axes ? axes_count : box.rank) < count ||
        (has_axes && axes_count != count) || (has_steps && steps_count != count)) {
        return epctx_fail(c->error, EPCTX_ERR_GRAPH,
                          "starts, ends, axes and steps differ in length");
    }
    for (i = 0; i < EPCTX_NPU_MAX_RANK; i++) {
        step[i] = 1;
    }
    for (i = 0; i < count; i++) {
        int64_t s = has_steps ? steps[i] : 1;
        EPCTX_NPU__TRY(epctx_npu__axis(c, has_axes ? axes[i] : (int64_t)i, box.rank, 0, &axis));
        if (s == 0 || marked[axis]) {
            return epctx_fail(c->error, EPCTX_ERR_GRAPH, "axis %u has step %d or stands twice",
                              (uint64_t)axis, s);
        }
        marked[axis] = true;
        epctx_npu__slice_axis(box.dims[axis], starts[i], ends[i], s, &first[axis], &box.dims[axis]);
        step[axis] = box.dims[axis] > 1 ? s : 1;
    }
    EPCTX_NPU__TRY(epctx_npu__take_box(c, x, &box, first, step, &y));
    return epctx_npu__output(c, 0, y);
}

static epctx_status epctx_npu__lower_split(epctx_npu__compiler *c)
{
    const size_t parts = c->node->output_count;
    int64_t sizes[2 * EPCTX_NPU_MAX_RANK], first[EPCTX_NPU_MAX_RANK] = {0};
    int64_t step[EPCTX_NPU_MAX_RANK], total, even;
    size_t count, i;
    uint32_t x, y, axis;
    bool found;
    EPCTX_NPU__TRY(epctx_npu__input(c, 0, &x));
    EPCTX_NPU__TRY(
        epctx_npu__axis(c, epctx_node_int(c->node, "axis", 0), c->tensors[x].shape.rank, 0, &axis));
    EPCTX_NPU__TRY(epctx_npu__ints_of(c, "split", 1, 13, sizes, &count, &found));
    total = c->tensors[x].shape.dims[axis];
    if (parts == 0 || (found && count != parts)) {
        return epctx_fail(c->error, EPCTX_ERR_GRAPH, "%u sizes for %u outputs", (uint64_t)count,
                          (uint64_t)parts);
    }
    even = (total + (int64_t)parts - 1) / (int64_t)parts; /* the last part may be smaller */
    for (i = 0; i < EPCTX_NPU_MAX_RANK; i++) {
        step[i] = 1;
    }
    for (i = 0; i < parts; i++) {
        epctx_npu__shape box = c->tensors[x].shape;
        int64_t left = total - first[axis], size = found ? sizes[i] : (even < left ? even : left);
        if (size < 1 || size > left || (i + 1 == parts && size != left)) {
            return epctx_fail(c->error, EPCTX_ERR_GRAPH, "part %u has %d elements, %d are left",
                              (uint64_t)i, size, left);
        }
        box.dims[axis] = size;
        EPCTX_NPU__TRY(epctx_npu__take_box(c, x, &box, first, step, &y));
        EPCTX_NPU__TRY(epctx_npu__output(c, i, y));
        first[axis] += size;
    }
    return EPCTX_OK;
}

static epctx_status epctx_npu__expand_to(epctx_npu__compiler *c, uint32_t x,
                                         const epctx_npu__shape *shape, uint32_t *y)
{
    int64_t from[EPCTX_NPU_MAX_RANK], to[EPCTX_NPU_MAX_RANK];
    epctx_npu__broadcast_strides(&c->tensors[x].shape, shape, from);
    epctx_npu__dense(shape, to);
    EPCTX_NPU__TRY(epctx_npu__new_tensor(c, c->tensors[x].elem, shape, y));
    return epctx_npu__emit_move(c, x, *y, shape, 0, 0, from, to);
}

static epctx_status epctx_npu__lower_expand(epctx_npu__compiler *c)
{
    int64_t dims[2 * EPCTX_NPU_MAX_RANK];
    epctx_npu__shape wanted, shape;
    uint32_t x, y, id;
    size_t count;
    EPCTX_NPU__TRY(epctx_npu__input(c, 0, &x));
    EPCTX_NPU__TRY(epctx_npu__input(c, 1, &id));
    EPCTX_NPU__TRY(epctx_npu__const_ints(c, id, "shape", EPCTX_NPU_MAX_RANK, dims, &count));
    EPCTX_NPU__TRY(epctx_npu__shape_from(c, dims, count, &wanted));
    EPCTX_NPU__TRY(epctx_npu__broadcast(c, &c->tensors[x].shape, &wanted, &shape));
    EPCTX_NPU__TRY(epctx_npu__expand_to(c, x, &shape, &y));
    return epctx_npu__output(c, 0, y);
}

typedef enum epctx_npu__pad_mode {
    EPCTX_NPU__PAD_CONSTANT = 0,
    EPCTX_NPU__PAD_REFLECT,
    EPCTX_NPU__PAD_EDGE
} epctx_npu__pad_mode;

/* Part 0, 1, 2 of an axis: what lies before, in and behind the input. */
static int64_t epctx_npu__pad_part(epctx_npu__pad_mode mode, uint32_t part, int64_t size,
                                   int64_t before, int64_t after, int64_t *from, int64_t *to,
                                   int64_t *step)
{
    const bool mirror = mode == EPCTX_NPU__PAD_REFLECT;
    if (part == 1) {
        *from = before < 0 ? -before : 0;
        *to = before > 0 ? before : 0;
        *step = 1;
        return size - *from + (after < 0 ? after : 0);
    }
    *step = mirror ? -1 : 0;
    if (part == 0) {
        *from = mirror ? before : 0;
        *to = 0;
        return before;
    }
    *from = mirror ? size - 2 : size - 1;
    *to = before + size;
    return after;
}

/* Reflect and edge: the borders are copies of the input walked backwards or standing still; every
 * combination of parts over the axes is one box. */
static epctx_status epctx_npu__pad_boxes(epctx_npu__compiler *c, epctx_npu__pad_mode mode,
                                         uint32_t x, uint32_t y, const int64_t *pads)
{
    const epctx_npu__shape in = c->tensors[x].shape, out = c->tensors[y].shape;
    int64_t dense_in[EPCTX_NPU_MAX_RANK], dense_out[EPCTX_NPU_MAX_RANK];
    uint32_t part[EPCTX_NPU_MAX_RANK] = {0}, i;
    epctx_npu__dense(&in, dense_in);
    epctx_npu__dense(&out, dense_out);
    for (i = 0; i < in.rank; i++) {
        part[i] = mode == EPCTX_NPU__PAD_CONSTANT ? 1 : 0;
    }
    for (;;) {
        int64_t strides[EPCTX_NPU_MAX_RANK], from_start = 0, to_start = 0;
        epctx_npu__shape box = in;
        bool empty = false;
        for (i = 0; i < in.rank; i++) {
            int64_t from, to, step;
            box.dims[i] = epctx_npu__pad_part(mode, part[i], in.dims[i], pads[i], pads[in.rank + i],
                                              &from, &to, &step);
            empty = empty || box.dims[i] <= 0;
            from_start += from * dense_in[i];
            to_start += to * dense_out[i];
            strides[i] = step * dense_in[i];
        }
        if (!empty) {
            EPCTX_NPU__TRY(epctx_npu__emit_move(c, x, y, &box, (uint64_t)from_start,
                                                (uint64_t)to_start, strides, dense_out));
        }
        if (mode == EPCTX_NPU__PAD_CONSTANT) {
            return EPCTX_OK;
        }
        for (i = in.rank; i > 0 && ++part[i - 1] == 3; i--) {
            part[i - 1] = 0;
        }
        if (i == 0) {
            return EPCTX_OK;
        }
    }
}

/* The pads of Pad: attribute, or constant input with optional axes. */
static epctx_status epctx_npu__pads(epctx_npu__compiler *c, uint32_t rank, int64_t *pads)
{
    int64_t list[2 * EPCTX_NPU_MAX_RANK], axes[2 * EPCTX_NPU_MAX_RANK];
    bool marked[EPCTX_NPU_MAX_RANK] = {false}, found, has_axes = false;
    const char *name = c->node->version < 2 ? "paddings" : "pads";
    size_t count, axes_count = rank, i;
    EPCTX_NPU__TRY(epctx_npu__ints_of(c, name, 1, 11, list, &count, &found));
    if (c->node->version >= 18) {
        EPCTX_NPU__TRY(epctx_npu__ints_of(c, "axes", 3, 18, axes, &axes_count, &has_axes));
    }
    axes_count = has_axes ? axes_count : rank;
    if (!found || axes_count > rank || count != 2 * axes_count) {
        return epctx_fail(c->error, EPCTX_ERR_GRAPH, "%s: expected %u numbers, found %u", name,
                          (uint64_t)(2 * axes_count), (uint64_t)count);
    }
    memset(pads, 0, 2 * EPCTX_NPU_MAX_RANK * sizeof *pads);
    if (has_axes) {
        EPCTX_NPU__TRY(epctx_npu__mark_axes(c, axes, axes_count, rank, marked));
    }
    for (i = 0; i < axes_count; i++) {
        uint32_t axis = (uint32_t)i;
        if (has_axes) {
            EPCTX_NPU__TRY(epctx_npu__axis(c, axes[i], rank, 0, &axis));
        }
        pads[axis] = list[i];
        pads[rank + axis] = list[axes_count + i];
    }
    return EPCTX_OK;
}

static epctx_status epctx_npu__pad_shape(epctx_npu__compiler *c, epctx_npu__pad_mode mode,
                                         const int64_t *pads, epctx_npu__shape *shape)
{
    const int64_t top = EPCTX_NPU__MAX_BYTES;
    uint32_t i;
    for (i = 0; i < shape->rank; i++) {
        int64_t before = pads[i], after = pads[shape->rank + i], size = shape->dims[i];
        int64_t most = mode == EPCTX_NPU__PAD_CONSTANT ? top
                       : mode == EPCTX_NPU__PAD_EDGE   ? (size > 0 ? top : 0)
                                                       : size - 1;
        int64_t least = mode == EPCTX_NPU__PAD_CONSTANT ? -size : 0;
        if (before < least || after < least || before > most || after > most ||
            size + (before < 0 ? before : 0) + (after < 0 ? after : 0) < 0) {
            return epctx_fail(c->error, EPCTX_ERR_UNSUPPORTED,
                              "pads %d and %d in dimension %u of %d elements", before, after,
                              (uint64_t)i, size);
        }
        shape->dims[i] = size + before + after;
    }
    return EPCTX_OK;
}

static epctx_status epctx_npu__lower_pad(epctx_npu__compiler *c)
{
    const epctx_attr *attr = epctx_node_attr(c->node, "mode");
    epctx_npu__pad_mode mode = EPCTX_NPU__PAD_CONSTANT;
    int64_t pads[2 * EPCTX_NPU_MAX_RANK];
    epctx_npu__shape shape;
    float value = epctx_node_float(c->node, "value", 0.0f);
    bool none = true;
    uint32_t x, y, id, i;
    EPCTX_NPU__TRY(epctx_npu__float_input(c, 0, &x));
    if (attr != NULL && epctx_str_is(attr->s, "reflect")) {
        mode = EPCTX_NPU__PAD_REFLECT;
    } else if (attr != NULL && epctx_str_is(attr->s, "edge")) {
        mode = EPCTX_NPU__PAD_EDGE;
    } else if (attr != NULL && !epctx_str_is(attr->s, "constant")) {
        return epctx_fail(c->error, EPCTX_ERR_UNSUPPORTED,
                          "attribute mode: expected constant, reflect or edge, found '%S'",
                          &attr->s);
    }
    shape = c->tensors[x].shape;
    EPCTX_NPU__TRY(epctx_npu__pads(c, shape.rank, pads));
    EPCTX_NPU__TRY(epctx_npu__pad_shape(c, mode, pads, &shape));
    if (c->node->version >= 11) {
        value = 0.0f;
        EPCTX_NPU__TRY(epctx_npu__optional(c, 2, &id));
        if (id != EPCTX_NPU__NONE) {
            EPCTX_NPU__TRY(epctx_npu__const_float(c, id, "constant_value", &value));
        }
    }
    for (i = 0; i < 2 * shape.rank; i++) {
        none = none && pads[i] == 0;
    }
    if (none) {
        return epctx_npu__lower_alias(c, x, &shape);
    }
    EPCTX_NPU__TRY(epctx_npu__new_tensor(c, EPCTX_ONNX_FLOAT, &shape, &y));
    if (mode == EPCTX_NPU__PAD_CONSTANT) {
        EPCTX_NPU__TRY(epctx_npu__emit_fill(c, y, epctx_npu__bits_of(value)));
    }
    EPCTX_NPU__TRY(epctx_npu__pad_boxes(c, mode, x, y, pads));
    return epctx_npu__output(c, 0, y);
}

static epctx_status epctx_npu__lower_gather(epctx_npu__compiler *c)
{
    epctx_npu__shape shape = {0, {0}};
    const epctx_npu__shape *in, *index;
    epctx_npu__step s;
    epctx_npu__gather_params *p = &s.params.gather;
    uint32_t x, indices, y, axis, i;
    EPCTX_NPU__TRY(epctx_npu__input(c, 0, &x));
    EPCTX_NPU__TRY(epctx_npu__input(c, 1, &indices));
    in = &c->tensors[x].shape;
    index = &c->tensors[indices].shape;
    EPCTX_NPU__TRY(epctx_npu__axis(c, epctx_node_int(c->node, "axis", 0), in->rank, 0, &axis));
    if (c->tensors[indices].elem == EPCTX_ONNX_FLOAT ||
        in->rank + index->rank - 1 > EPCTX_NPU_MAX_RANK || c->tensors[x].count == 0) {
        return epctx_fail(c->error, EPCTX_ERR_UNSUPPORTED,
                          "expected integer indices and a result of rank <= %u",
                          (uint64_t)EPCTX_NPU_MAX_RANK);
    }
    for (i = 0; i < in->rank; i++) {
        uint32_t j;
        if (i != axis) {
            shape.dims[shape.rank++] = in->dims[i];
            continue;
        }
        for (j = 0; j < index->rank; j++) {
            shape.dims[shape.rank++] = index->dims[j];
        }
    }
    epctx_npu__step_init(&s, EPCTX_NPU__OP_GATHER, x, indices, 0);
    p->elem = epctx_npu__elem_size(c->tensors[x].elem);
    p->index_elem = epctx_npu__elem_size(c->tensors[indices].elem);
    p->outer = (uint32_t)epctx_npu__product(in, 0, axis);
    p->axis = (uint32_t)in->dims[axis];
    p->inner = (uint32_t)epctx_npu__product(in, axis + 1, in->rank);
    p->count = (uint32_t)c->tensors[indices].count;
    if (c->tensors[indices].constant) { /* wrong constants are found now, not when running */
        const void *data;
        uint64_t n;
        EPCTX_NPU__TRY(epctx_npu__data(c, indices, &data));
        for (n = 0; n < p->count; n++) {
            int64_t v = epctx_npu__index((const uint8_t *)data, (size_t)n, p->index_elem);
            if (v < -(int64_t)p->axis || v >= (int64_t)p->axis) {
                return epctx_fail(c->error, EPCTX_ERR_GRAPH, "index %d: expected %d..%d", v,
                                  -(int64_t)p->axis, (int64_t)p->axis - 1);
            }
        }
    }
    EPCTX_NPU__TRY(epctx_npu__new_tensor(c, c->tensors[x].elem, &shape, &y));
    s.out = y;
    EPCTX_NPU__TRY(epctx_npu__emit(c, &s));
    return epctx_npu__output(c, 0, y);
}

/* Depth to space is a transpose between two reshapes. */
static epctx_status epctx_npu__lower_depth_to_space(epctx_npu__compiler *c)
{
    static const uint8_t dcr[6] = {0, 3, 4, 1, 5, 2}, crd[6] = {0, 1, 4, 2, 5, 3};
    const epctx_attr *mode = epctx_node_attr(c->node, "mode");
    const bool is_crd = mode != NULL && epctx_str_is(mode->s, "CRD");
    const int64_t b = epctx_node_int(c->node, "blocksize", 0);
    int64_t dense[EPCTX_NPU_MAX_RANK], from[EPCTX_NPU_MAX_RANK], to[EPCTX_NPU_MAX_RANK];
    epctx_npu__shape split = {6, {0}}, walk = {6, {0}}, shape;
    uint32_t x, y, i;
    EPCTX_NPU__TRY(epctx_npu__input(c, 0, &x));
    shape = c->tensors[x].shape;
    if (shape.rank != 4 || b < 1 || b > 32768 || shape.dims[1] % (b * b) != 0) {
        return epctx_fail(c->error, EPCTX_ERR_GRAPH,
                          "expected rank 4 and channels that blocksize %d squared divides", b);
    }
    split.dims[0] = shape.dims[0];
    split.dims[is_crd ? 1 : 3] = shape.dims[1] / (b * b);
    split.dims[is_crd ? 2 : 1] = b;
    split.dims[is_crd ? 3 : 2] = b;
    split.dims[4] = shape.dims[2];
    split.dims[5] = shape.dims[3];
    epctx_npu__dense(&split, dense);
    for (i = 0; i < 6; i++) {
        uint8_t axis = is_crd ? crd[i] : dcr[i];
        walk.dims[i] = split.dims[axis];
        from[i] = dense[axis];
    }
    shape.dims[1] /= b * b;
    shape.dims[2] *= b;
    shape.dims[3] *= b;
    epctx_npu__dense(&walk, to);
    EPCTX_NPU__TRY(epctx_npu__new_tensor(c, c->tensors[x].elem, &shape, &y));
    EPCTX_NPU__TRY(epctx_npu__emit_move(c, x, y, &walk, 0, 0, from, to));
    return epctx_npu__output(c, 0, y);
}

/* -- sliding windows: Conv and pools -- */

/* Output extent and padding of one axis. */
static epctx_status epctx_npu__window_axis(epctx_npu__compiler *c, int64_t in, int64_t kernel,
                                           int64_t stride, int64_t dilation, int64_t *before,
                                           int64_t *after, const epctx_str *auto_pad, bool ceil,
                                           int64_t *out)
{
    const int64_t top = INT32_MAX / 8;
    int64_t reach, room;
    if (kernel < 1 || stride < 1 || dilation < 1 || kernel > top || stride > top ||
        dilation > top || *before < 0 || *after < 0 || *before > top || *after > top || in > top ||
        (reach = (kernel - 1) * dilation + 1) > top) {
        return epctx_fail(c->error, EPCTX_ERR_UNSUPPORTED,
                          "kernel %d, stride %d, dilation %d, pads %d and %d", kernel, stride,
                          dilation, *before, *after);
    }
    if (epctx_str_is(*auto_pad, "SAME_UPPER") || epctx_str_is(*auto_pad, "SAME_LOWER")) {
        int64_t total;
        *out = (in + stride - 1) / stride;
        total = (*out - 1) * stride + reach - in;
        total = total > 0 ? total : 0;
        *before = epctx_str_is(*auto_pad, "SAME_UPPER") ? total / 2 : total - total / 2;
        *after = total - *before;
        return EPCTX_OK;
    }
    if (epctx_str_is(*auto_pad, "VALID")) {
        *before = *after = 0;
    } else if (auto_pad->size > 0 && !epctx_str_is(*auto_pad, "NOTSET")) {
        return epctx_npu__bad_attr(c, "auto_pad", "NOTSET, VALID, SAME_UPPER or SAME_LOWER");
    }
    room = in + *before + *after - reach;
    if (room < 0) {
        return epctx_fail(c->error, EPCTX_ERR_GRAPH,
                          "kernel of %d does not fit %d elements with pads %d and %d", reach, in,
                          *before, *after);
    }
    *out = room / stride + 1;
    if (ceil && room % stride != 0 && *out * stride < in + *before) {
        *out += 1; /* one more window, if it starts inside the input or its left padding */
    }
    return EPCTX_OK;
}

/* Reads strides, dilations, pads, auto_pad and ceil_mode. One spatial dimension is two with a
 * height of 1. */
static epctx_status epctx_npu__window_of(epctx_npu__compiler *c, const epctx_npu__shape *in,
                                         const int64_t *kernel, epctx_npu__window *w)
{
    const epctx_attr *mode = epctx_node_attr(c->node, "auto_pad");
    const bool ceil = epctx_node_int(c->node, "ceil_mode", 0) != 0;
    const uint32_t spatial = in->rank - 2, shift = 2 - spatial;
    epctx_str auto_pad = mode != NULL ? mode->s : epctx_str_of(NULL);
    int64_t k[2] = {1, 1}, stride[2] = {1, 1}, dilation[2] = {1, 1}, pads[4] = {0, 0, 0, 0};
    int64_t before[2] = {0, 0}, after[2] = {0, 0}, extent[2] = {1, 1}, out[2];
    uint32_t i;
    EPCTX_NPU__TRY(epctx_npu__ints(c, "strides", spatial, 1, stride + shift));
    EPCTX_NPU__TRY(epctx_npu__ints(c, "dilations", spatial, 1, dilation + shift));
    EPCTX_NPU__TRY(epctx_npu__ints(c, "pads", (size_t)2 * spatial, 0, pads));
    for (i = 0; i < spatial; i++) {
        k[shift + i] = kernel[i];
        before[shift + i] = pads[i];
        after[shift + i] = pads[spatial + i];
        extent[shift + i] = in->dims[2 + i];
    }
    for (i = 0; i < 2; i++) {
        EPCTX_NPU__TRY(epctx_npu__window_axis(c, extent[i], k[i], stride[i], dilation[i],
                                              &before[i], &after[i], &auto_pad, ceil, &out[i]));
    }
    w->in_h = (uint32_t)extent[0];
    w->in_w = (uint32_t)extent[1];
    w->out_h = (uint32_t)out[0];
    w->out_w = (uint32_t)out[1];
    w->kernel_h = (uint32_t)k[0];
    w->kernel_w = (uint32_t)k[1];
    w->stride_h = (uint32_t)stride[0];
    w->stride_w = (uint32_t)stride[1];
    w->dilation_h = (uint32_t)dilation[0];
    w->dilation_w = (uint32_t)dilation[1];
    w->top = (uint32_t)before[0];
    w->left = (uint32_t)before[1];
    w->bottom = (uint32_t)after[0];
    w->right = (uint32_t)after[1];
    if (!epctx_npu__window_ok(w)) {
        return epctx_fail(c->error, EPCTX_ERR_UNSUPPORTED, "window %dx%d over %dx%d", k[0], k[1],
                          extent[0], extent[1]);
    }
    return EPCTX_OK;
}

static epctx_status epctx_npu__want_image(epctx_npu__compiler *c, uint32_t x)
{
    uint32_t rank = c->tensors[x].shape.rank;
    if (rank != 3 && rank != 4) {
        return epctx_fail(c->error, EPCTX_ERR_UNSUPPORTED,
                          "input '%S': expected rank 3 or 4, found %u", &c->tensors[x].name,
                          (uint64_t)rank);
    }
    return EPCTX_OK;
}

/* [N, channels, spatial ...] of the window's output. */
static epctx_npu__shape epctx_npu__image(const epctx_npu__shape *in, int64_t channels,
                                         const epctx_npu__window *w)
{
    epctx_npu__shape out = *in;
    out.dims[1] = channels;
    if (in->rank == 4) {
        out.dims[2] = (int64_t)w->out_h;
    }
    out.dims[in->rank - 1] = (int64_t)w->out_w;
    return out;
}

/* Packs input 1 of `s`: constants when the plan is complete (a later node may still change them),
 * others at run time. */
static epctx_status epctx_npu__emit_packed(epctx_npu__compiler *c, epctx_npu__step *s,
                                           const epctx_npu__pack *pack)
{
    epctx_npu__shape shape = {1, {0}};
    epctx_npu__step p;
    uint32_t id;
    s->pack = *pack;
    if (c->tensors[s->in[1]].constant) {
        s->packs = true;
        return epctx_npu__emit(c, s);
    }
    shape.dims[0] = (int64_t)epctx_npu__packed(pack->batch, pack->rows, pack->depth, pack->block);
    EPCTX_NPU__TRY(epctx_npu__new_tensor(c, EPCTX_ONNX_FLOAT, &shape, &id));
    epctx_npu__step_init(&p, EPCTX_NPU__OP_PACK, s->in[1], EPCTX_NPU__NONE, id);
    p.params.pack = *pack;
    EPCTX_NPU__TRY(epctx_npu__emit(c, &p));
    s->in[1] = id;
    return epctx_npu__emit(c, s);
}

/* Pixels gathered at once: about 64 KiB of them, so that large weights are read less often. */
static uint32_t epctx_npu__conv_tiles(uint64_t depth, const epctx_npu__window *w)
{
    uint64_t all = ((uint64_t)w->out_h * w->out_w + EPCTX_NPU__COLUMNS - 1) / EPCTX_NPU__COLUMNS;
    uint64_t fit = 65536 / epctx_npu__mul(depth, EPCTX_NPU__COLUMNS * 4);
    fit = fit > 0 ? fit : 1;
    return (uint32_t)(fit < all ? fit : all);
}

static epctx_status epctx_npu__emit_conv(epctx_npu__compiler *c, epctx_npu__step *s,
                                         const epctx_npu__window *window)
{
    epctx_npu__conv *p = &s->params.conv;
    const uint64_t depth = epctx_npu__mul3(p->in_channels, window->kernel_h, window->kernel_w);
    epctx_npu__pack pack;
    uint64_t temporary;
    p->window = *window;
    p->tiles = epctx_npu__conv_tiles(depth, window);
    temporary = epctx_npu__mul4(p->tiles, depth, EPCTX_NPU__COLUMNS, 4);
    if (temporary > EPCTX_NPU__MAX_BYTES) {
        return epctx_fail(c->error, EPCTX_ERR_UNSUPPORTED, "a kernel of %u weights", depth);
    }
    EPCTX_NPU__TRY(epctx_npu__add_buffer(c, temporary, &s->temporary));
    pack.batch = p->groups;
    pack.rows = p->out_channels;
    pack.depth = (uint32_t)depth;
    pack.block = c->arch->rows;
    pack.batch_stride = (uint32_t)(p->out_channels * depth);
    pack.row_stride = (uint32_t)depth;
    pack.depth_stride = 1;
    return epctx_npu__emit_packed(c, s, &pack);
}

static epctx_status epctx_npu__conv_bias(epctx_npu__compiler *c, int64_t channels, uint32_t *bias)
{
    EPCTX_NPU__TRY(epctx_npu__optional(c, 2, bias));
    if (*bias == EPCTX_NPU__NONE) {
        return EPCTX_OK;
    }
    EPCTX_NPU__TRY(epctx_npu__want_float(c, *bias));
    if (c->tensors[*bias].count != (uint64_t)channels) {
        return epctx_fail(c->error, EPCTX_ERR_GRAPH, "bias '%S': expected %d elements, found %u",
                          &c->tensors[*bias].name, channels, c->tensors[*bias].count);
    }
    return EPCTX_OK;
}

static epctx_status epctx_npu__lower_conv(epctx_npu__compiler *c)
{
    const int64_t groups = epctx_node_int(c->node, "group", 1);
    epctx_npu__shape xs, ws, ys;
    epctx_npu__window window;
    epctx_npu__step s;
    int64_t kernel[2] = {1, 1};
    uint32_t x, w, bias, y;
    EPCTX_NPU__TRY(epctx_npu__float_input(c, 0, &x));
    EPCTX_NPU__TRY(epctx_npu__float_input(c, 1, &w));
    EPCTX_NPU__TRY(epctx_npu__want_image(c, x));
    xs = c->tensors[x].shape;
    ws = c->tensors[w].shape;
    if (ws.rank != xs.rank || groups < 1 || ws.dims[0] < 1 || ws.dims[0] % groups != 0 ||
        ws.dims[1] < 1 || xs.dims[1] % groups != 0 || ws.dims[1] != xs.dims[1] / groups ||
        c->tensors[w].count == 0) {
        return epctx_fail(c->error, EPCTX_ERR_GRAPH,
                          "weights '%S' [%d, %d, ...] do not fit %d channels in %d groups",
                          &c->tensors[w].name, ws.rank > 0 ? ws.dims[0] : 0,
                          ws.rank > 1 ? ws.dims[1] : 0, xs.dims[1], groups);
    }
    EPCTX_NPU__TRY(epctx_npu__ints(c, "kernel_shape", xs.rank - 2, 1, kernel));
    if (epctx_node_attr(c->node, "kernel_shape") == NULL) {
        memcpy(kernel, ws.dims + 2, (size_t)(xs.rank - 2) * sizeof *kernel);
    }
    if (kernel[0] != ws.dims[2] || (xs.rank == 4 && kernel[1] != ws.dims[3])) {
        return epctx_npu__bad_attr(c, "kernel_shape", "the shape of the weights");
    }
    EPCTX_NPU__TRY(epctx_npu__conv_bias(c, ws.dims[0], &bias));
    EPCTX_NPU__TRY(epctx_npu__window_of(c, &xs, kernel, &window));
    ys = epctx_npu__image(&xs, ws.dims[0], &window);
    EPCTX_NPU__TRY(epctx_npu__new_tensor(c, EPCTX_ONNX_FLOAT, &ys, &y));
    epctx_npu__step_init(&s, EPCTX_NPU__OP_CONV, x, w, y);
    s.in[2] = bias;
    if (ws.dims[1] == 1 && groups > 1) {
        s.op = EPCTX_NPU__OP_DEPTHWISE;
        s.params.depthwise.batch = (uint32_t)xs.dims[0];
        s.params.depthwise.channels = (uint32_t)groups;
        s.params.depthwise.multiplier = (uint32_t)(ws.dims[0] / groups);
        s.params.depthwise.window = window;
        EPCTX_NPU__TRY(epctx_npu__emit(c, &s));
    } else {
        s.params.conv.batch = (uint32_t)xs.dims[0];
        s.params.conv.groups = (uint32_t)groups;
        s.params.conv.in_channels = (uint32_t)ws.dims[1];
        s.params.conv.out_channels = (uint32_t)(ws.dims[0] / groups);
        EPCTX_NPU__TRY(epctx_npu__emit_conv(c, &s, &window));
    }
    return epctx_npu__output(c, 0, y);
}

static epctx_status epctx_npu__lower_pool(epctx_npu__compiler *c, bool average)
{
    epctx_npu__shape xs, ys;
    int64_t kernel[2] = {1, 1};
    epctx_npu__step s;
    epctx_npu__pool *p = &s.params.pool;
    uint32_t x, y;
    EPCTX_NPU__TRY(epctx_npu__unused_outputs(c, 1));
    EPCTX_NPU__TRY(epctx_npu__float_input(c, 0, &x));
    EPCTX_NPU__TRY(epctx_npu__want_image(c, x));
    xs = c->tensors[x].shape;
    if (epctx_node_attr(c->node, "kernel_shape") == NULL) {
        return epctx_npu__bad_attr(c, "kernel_shape", "a value, it is required");
    }
    EPCTX_NPU__TRY(epctx_npu__ints(c, "kernel_shape", xs.rank - 2, 1, kernel));
    epctx_npu__step_init(&s, EPCTX_NPU__OP_POOL, x, EPCTX_NPU__NONE, 0);
    EPCTX_NPU__TRY(epctx_npu__window_of(c, &xs, kernel, &p->window));
    p->planes = (uint32_t)(xs.dims[0] * xs.dims[1]);
    p->average = average;
    p->count_padding = average && epctx_node_int(c->node, "count_include_pad", 0) != 0;
    ys = epctx_npu__image(&xs, xs.dims[1], &p->window);
    EPCTX_NPU__TRY(epctx_npu__new_tensor(c, EPCTX_ONNX_FLOAT, &ys, &y));
    s.out = y;
    EPCTX_NPU__TRY(epctx_npu__emit(c, &s));
    return epctx_npu__output(c, 0, y);
}

static epctx_status epctx_npu__lower_max_pool(epctx_npu__compiler *c)
{
    return epctx_npu__lower_pool(c, false);
}

static epctx_status epctx_npu__lower_average_pool(epctx_npu__compiler *c)
{
    return epctx_npu__lower_pool(c, true);
}

/* -- reductions -- */

static epctx_status epctx_npu__emit_reduce(epctx_npu__compiler *c, epctx_npu__reduce_kind kind,
                                           uint32_t x, uint64_t outer, uint64_t count,
                                           uint64_t inner, const epctx_npu__shape *shape,
                                           uint32_t *y)
{
    epctx_npu__step s;
    EPCTX_NPU__TRY(epctx_npu__new_tensor(c, EPCTX_ONNX_FLOAT, shape, y));
    epctx_npu__step_init(&s, EPCTX_NPU__OP_REDUCE, x, EPCTX_NPU__NONE, *y);
    s.params.reduce.kind = (uint32_t)kind;
    s.params.reduce.outer = (uint32_t)outer;
    s.params.reduce.count = (uint32_t)count;
    s.params.reduce.inner = (uint32_t)inner;
    return epctx_npu__emit(c, &s);
}

/* Reduced axes that are neighbours take one pass; others one pass each (a mean of means over equal
 * parts is the mean). */
static epctx_status epctx_npu__lower_reduce(epctx_npu__compiler *c, epctx_npu__reduce_kind kind)
{
    const int64_t since = kind == EPCTX_NPU__REDUCE_SUM ? 13 : 18;
    const bool keep = epctx_node_int(c->node, "keepdims", 1) != 0;
    int64_t axes[2 * EPCTX_NPU_MAX_RANK];
    bool marked[EPCTX_NPU_MAX_RANK] = {false}, found;
    epctx_npu__shape shape, last = {0, {0}};
    uint32_t x, i, end;
    size_t count;
    EPCTX_NPU__TRY(epctx_npu__float_input(c, 0, &x));
    EPCTX_NPU__TRY(epctx_npu__ints_of(c, "axes", 1, since, axes, &count, &found));
    shape = c->tensors[x].shape;
    EPCTX_NPU__TRY(epctx_npu__mark_axes(c, axes, count, shape.rank, marked));
    if (count == 0 && epctx_node_int(c->node, "noop_with_empty_axes", 0) != 0) {
        return epctx_npu__lower_identity(c);
    }
    for (i = 0; i < shape.rank && count == 0; i++) {
        marked[i] = true;
    }
    for (end = shape.rank; end > 0;) {
        uint32_t first;
        uint64_t outer, n, inner;
        if (!marked[end - 1]) {
            end--;
            continue;
        }
        for (first = end - 1; first > 0 && marked[first - 1]; first--) {
        }
        outer = epctx_npu__product(&shape, 0, first);
        n = epctx_npu__product(&shape, first, end);
        inner = epctx_npu__product(&shape, end, shape.rank);
        for (i = first; i < end; i++) {
            shape.dims[i] = 1;
        }
        EPCTX_NPU__TRY(epctx_npu__emit_reduce(c, kind, x, outer, n, inner, &shape, &x));
        end = first;
    }
    for (i = 0; i < shape.rank; i++) {
        if (keep || !marked[i]) {
            last.dims[last.rank++] = shape.dims[i];
        }
    }
    return epctx_npu__lower_alias(c, x, &last);
}

#define EPCTX_NPU__LOWER_REDUCE(name, kind)                                                        \
    static epctx_status epctx_npu__lower_reduce_##name(epctx_npu__compiler *c)                     \
    {                                                                                              \
        return epctx_npu__lower_reduce(c, EPCTX_NPU__REDUCE_##kind);                               \
    }

EPCTX_NPU__LOWER_REDUCE(sum, SUM)
EPCTX_NPU__LOWER_REDUCE(mean, MEAN)
EPCTX_NPU__LOWER_REDUCE(max, MAX)
EPCTX_NPU__LOWER_REDUCE(min, MIN)

static epctx_status epctx_npu__lower_global_pool(epctx_npu__compiler *c,
                                                 epctx_npu__reduce_kind kind)
{
    epctx_npu__shape shape;
    uint32_t x, y, i;
    EPCTX_NPU__TRY(epctx_npu__float_input(c, 0, &x));
    shape = c->tensors[x].shape;
    if (shape.rank < 3) {
        return epctx_fail(c->error, EPCTX_ERR_GRAPH, "expected rank 3 or more, found %u",
                          (uint64_t)shape.rank);
    }
    for (i = 2; i < shape.rank; i++) {
        shape.dims[i] = 1;
    }
    EPCTX_NPU__TRY(epctx_npu__emit_reduce(c, kind, x, epctx_npu__product(&shape, 0, 2),
                                          epctx_npu__product(&c->tensors[x].shape, 2, shape.rank),
                                          1, &shape, &y));
    return epctx_npu__output(c, 0, y);
}

static epctx_status epctx_npu__lower_global_average(epctx_npu__compiler *c)
{
    return epctx_npu__lower_global_pool(c, EPCTX_NPU__REDUCE_MEAN);
}

static epctx_status epctx_npu__lower_global_max(epctx_npu__compiler *c)
{
    return epctx_npu__lower_global_pool(c, EPCTX_NPU__REDUCE_MAX);
}

static epctx_status epctx_npu__lower_any_softmax(epctx_npu__compiler *c, bool log)
{
    const bool old = c->node->version < 13; /* then everything from the axis on is one row */
    epctx_npu__shape shape;
    epctx_npu__step s;
    uint32_t x, y, axis;
    EPCTX_NPU__TRY(epctx_npu__float_input(c, 0, &x));
    shape = c->tensors[x].shape;
    EPCTX_NPU__TRY(epctx_npu__axis(c, epctx_node_int(c->node, "axis", old ? 1 : -1), shape.rank,
                                   old ? 1 : 0, &axis));
    EPCTX_NPU__TRY(epctx_npu__new_tensor(c, EPCTX_ONNX_FLOAT, &shape, &y));
    epctx_npu__step_init(&s, EPCTX_NPU__OP_SOFTMAX, x, EPCTX_NPU__NONE, y);
    s.params.softmax.log = log;
    s.params.softmax.outer = (uint32_t)epctx_npu__product(&shape, 0, axis);
    s.params.softmax.count =
        (uint32_t)epctx_npu__product(&shape, axis, old ? shape.rank : axis + 1);
    s.params.softmax.inner = (uint32_t)(old ? 1 : epctx_npu__product(&shape, axis + 1, shape.rank));
    EPCTX_NPU__TRY(epctx_npu__emit(c, &s));
    return epctx_npu__output(c, 0, y);
}

static epctx_status epctx_npu__lower_softmax(epctx_npu__compiler *c)
{
    return epctx_npu__lower_any_softmax(c, false);
}

static epctx_status epctx_npu__lower_log_softmax(epctx_npu__compiler *c)
{
    return epctx_npu__lower_any_softmax(c, true);
}

/* -- matrices -- */

/* y[batch][m][n]; b as it is in memory. */
static epctx_status epctx_npu__emit_gemm(epctx_npu__compiler *c, const epctx_npu__gemm *params,
                                         uint32_t a, uint32_t b, bool b_transposed, uint32_t bias,
                                         uint32_t y)
{
    epctx_npu__pack pack;
    epctx_npu__step s;
    epctx_npu__step_init(&s, EPCTX_NPU__OP_GEMM, a, b, y);
    s.in[2] = bias;
    s.params.gemm = *params;
    pack.batch = params->b_shared != 0 ? 1 : params->batch;
    pack.rows = params->n;
    pack.depth = params->k;
    pack.block = c->arch->columns;
    pack.batch_stride = (uint32_t)epctx_npu__mul(params->n, params->k);
    pack.row_stride = b_transposed ? params->k : 1;
    pack.depth_stride = b_transposed ? 1 : params->n;
    return epctx_npu__emit_packed(c, &s, &pack);
}

/* Gemm's C as the bias of the kernel: one constant times beta per column. NONE when it must be
 * added behind it. */
static epctx_status epctx_npu__gemm_bias(epctx_npu__compiler *c, uint32_t id, float beta, int64_t n,
                                         uint32_t *bias)
{
    const epctx_npu__tensor *t = &c->tensors[id];
    const epctx_npu__shape *s = &t->shape;
    const bool row = s->rank > 0 && s->dims[s->rank - 1] == n && t->count == (uint64_t)n;
    const void *data;
    float *out, value;
    int64_t i;
    *bias = EPCTX_NPU__NONE;
    if (row && beta == 1.0f) {
        *bias = id;
        return EPCTX_OK;
    }
    if (!t->constant || (!row && t->count != 1)) {
        return EPCTX_OK;
    }
    EPCTX_NPU__TRY(epctx_npu__data(c, id, &data));
    EPCTX_NPU__TRY(epctx_npu__add_floats(c, (uint64_t)n, &out, bias));
    for (i = 0; i < n; i++) {
        memcpy(&value, (const uint8_t *)data + (row ? i : 0) * 4, 4);
        out[i] = epctx_npu__f_mul(value, beta);
    }
    return EPCTX_OK;
}

static epctx_status epctx_npu__lower_gemm(epctx_npu__compiler *c)
{
    const bool trans_a = epctx_node_int(c->node, "transA", 0) != 0;
    const bool trans_b = epctx_node_int(c->node, "transB", 0) != 0;
    const float beta = epctx_node_float(c->node, "beta", 1.0f);
    epctx_npu__shape ys = {2, {0}};
    const epctx_npu__shape *as, *bs;
    epctx_npu__gemm p;
    uint32_t a, b, extra, bias = EPCTX_NPU__NONE, y;
    int64_t m, n, k;
    EPCTX_NPU__TRY(epctx_npu__float_input(c, 0, &a));
    EPCTX_NPU__TRY(epctx_npu__float_input(c, 1, &b));
    EPCTX_NPU__TRY(epctx_npu__optional(c, 2, &extra));
    as = &c->tensors[a].shape;
    bs = &c->tensors[b].shape;
    if (as->rank != 2 || bs->rank != 2 || as->dims[trans_a ? 0 : 1] != bs->dims[trans_b ? 1 : 0] ||
        c->tensors[b].count == 0) {
        return epctx_fail(c->error, EPCTX_ERR_GRAPH,
                          "expected two matrices that can be multiplied, found ranks %u and %u",
                          (uint64_t)as->rank, (uint64_t)bs->rank);
    }
    m = as->dims[trans_a ? 1 : 0];
    k = as->dims[trans_a ? 0 : 1];
    n = bs->dims[trans_b ? 0 : 1];
    ys.dims[0] = m;
    ys.dims[1] = n;
    memset(&p, 0, sizeof p);
    p.batch = 1;
    p.m = (uint32_t)m;
    p.n = (uint32_t)n;
    p.k = (uint32_t)k;
    p.a_row = trans_a ? 1 : (uint32_t)k;
    p.a_step = trans_a ? (uint32_t)m : 1;
    p.b_shared = 1;
    p.alpha = epctx_node_float(c->node, "alpha", 1.0f);
    if (extra != EPCTX_NPU__NONE && beta != 0.0f) {
        epctx_npu__shape both;
        EPCTX_NPU__TRY(epctx_npu__want_float(c, extra));
        EPCTX_NPU__TRY(epctx_npu__old_broadcast(c, a, &extra));
        EPCTX_NPU__TRY(epctx_npu__broadcast(c, &c->tensors[extra].shape, &ys, &both));
        if (!epctx_npu__same_shape(&both, &ys)) {
            return epctx_fail(c->error, EPCTX_ERR_GRAPH, "C does not broadcast to [%d, %d]", m, n);
        }
        EPCTX_NPU__TRY(epctx_npu__gemm_bias(c, extra, beta, n, &bias));
    }
    EPCTX_NPU__TRY(epctx_npu__new_tensor(c, EPCTX_ONNX_FLOAT, &ys, &y));
    EPCTX_NPU__TRY(epctx_npu__emit_gemm(c, &p, a, b, trans_b, bias, y));
    if (extra != EPCTX_NPU__NONE && beta != 0.0f && bias == EPCTX_NPU__NONE) {
        if (beta != 1.0f) {
            float *factor;
            uint32_t id;
            EPCTX_NPU__TRY(epctx_npu__add_floats(c, 1, &factor, &id));
            *factor = beta;
            EPCTX_NPU__TRY(epctx_npu__emit_binary(c, EPCTX_NPU__BINARY_MUL, extra, id, &extra));
        }
        EPCTX_NPU__TRY(epctx_npu__emit_binary(c, EPCTX_NPU__BINARY_ADD, y, extra, &y));
    }
    return epctx_npu__output(c, 0, y);
}

/* The batch dimensions of an operand repeated to those of the result, when they differ. */
static epctx_status epctx_npu__matmul_expand(epctx_npu__compiler *c, uint32_t *id,
                                             const epctx_npu__shape *batch)
{
    epctx_npu__shape shape = *batch;
    const epctx_npu__shape *in = &c->tensors[*id].shape;
    shape.rank += 2;
    shape.dims[shape.rank - 2] = in->dims[in->rank - 2];
    shape.dims[shape.rank - 1] = in->dims[in->rank - 1];
    if (epctx_npu__count(&shape) == c->tensors[*id].count) {
        return EPCTX_OK;
    }
    return epctx_npu__expand_to(c, *id, &shape, id);
}

static epctx_status epctx_npu__lower_matmul(epctx_npu__compiler *c)
{
    epctx_npu__shape as, bs, a_batch, b_batch, batch, ys;
    epctx_npu__gemm p;
    uint32_t a, b, y;
    bool row, column;
    EPCTX_NPU__TRY(epctx_npu__float_input(c, 0, &a));
    EPCTX_NPU__TRY(epctx_npu__float_input(c, 1, &b));
    as = c->tensors[a].shape;
    bs = c->tensors[b].shape;
    row = as.rank == 1; /* vectors become matrices, and the result loses that dimension again */
    column = bs.rank == 1;
    if (row) {
        as.rank = 2;
        as.dims[1] = as.dims[0];
        as.dims[0] = 1;
        EPCTX_NPU__TRY(epctx_npu__alias(c, a, &as, 0, &a));
    }
    if (column) {
        bs.rank = 2;
        bs.dims[1] = 1;
        EPCTX_NPU__TRY(epctx_npu__alias(c, b, &bs, 0, &b));
    }
    if (as.rank < 2 || bs.rank < 2 || as.dims[as.rank - 1] != bs.dims[bs.rank - 2] ||
        c->tensors[a].count == 0 || c->tensors[b].count == 0) {
        return epctx_fail(c->error, EPCTX_ERR_GRAPH,
                          "expected matrices that can be multiplied, found ranks %u and %u",
                          (uint64_t)as.rank, (uint64_t)bs.rank);
    }
    a_batch = as;
    a_batch.rank -= 2;
    b_batch = bs;
    b_batch.rank -= 2;
    EPCTX_NPU__TRY(epctx_npu__broadcast(c, &a_batch, &b_batch, &batch));
    memset(&p, 0, sizeof p);
    p.m = (uint32_t)as.dims[as.rank - 2];
    p.k = (uint32_t)as.dims[as.rank - 1];
    p.n = (uint32_t)bs.dims[bs.rank - 1];
    p.batch = (uint32_t)epctx_npu__count(&batch);
    p.a_row = p.k;
    p.a_step = 1;
    p.alpha = 1.0f;
    if (epctx_npu__count(&b_batch) == 1) { /* one b: the batch is more rows of a */
        p.m *= p.batch;
        p.batch = 1;
        p.b_shared = 1;
    } else {
        EPCTX_NPU__TRY(epctx_npu__matmul_expand(c, &b, &batch));
        if (epctx_npu__count(&a_batch) != 1) {
            EPCTX_NPU__TRY(epctx_npu__matmul_expand(c, &a, &batch));
            p.a_batch = p.m * p.k;
        }
    }
    ys = batch;
    if (!row) {
        ys.dims[ys.rank++] = as.dims[as.rank - 2];
    }
    if (!column) {
        ys.dims[ys.rank++] = bs.dims[bs.rank - 1];
    }
    EPCTX_NPU__TRY(epctx_npu__new_tensor(c, EPCTX_ONNX_FLOAT, &ys, &y));
    EPCTX_NPU__TRY(epctx_npu__emit_gemm(c, &p, a, b, false, EPCTX_NPU__NONE, y));
    return epctx_npu__output(c, 0, y);
}

/* -- BatchNormalization: y = x * f + g, f = scale / sqrt(var + epsilon), g = shift - mean * f -- */

static epctx_status epctx_npu__norm_factors(epctx_npu__compiler *c, const uint32_t *ids,
                                            uint64_t channels, uint32_t *factor, uint32_t *offset)
{
    const float epsilon = epctx_node_float(c->node, "epsilon", 1e-5f);
    const void *d[4];
    float *f, *g;
    uint64_t i;
    uint32_t j;
    for (j = 0; j < 4; j++) {
        EPCTX_NPU__TRY(epctx_npu__data(c, ids[j], &d[j]));
    }
    EPCTX_NPU__TRY(epctx_npu__add_floats(c, channels, &f, factor));
    EPCTX_NPU__TRY(epctx_npu__add_floats(c, channels, &g, offset));
    for (i = 0; i < channels; i++) {
        const float scale = ((const float *)d[0])[i], shift = ((const float *)d[1])[i];
        const float mean = ((const float *)d[2])[i], var = ((const float *)d[3])[i];
        f[i] = epctx_npu__f_div(scale, epctx_npu__sqrt(epctx_npu__f_add(var, epsilon)));
        g[i] = epctx_npu__f_add(shift, -epctx_npu__f_mul(mean, f[i]));
    }
    return EPCTX_OK;
}

/* Multiplies the weights of the convolution before by `factor`, its bias likewise plus `offset`. */
static epctx_status epctx_npu__fuse_norm(epctx_npu__compiler *c, uint32_t x, uint64_t channels,
                                         uint32_t factor, uint32_t offset, bool *done)
{
    epctx_npu__step *s = epctx_npu__producer(c, x);
    const void *old_w, *f, *g, *old_b = NULL;
    float *w, *b;
    uint32_t w_id, b_id;
    uint64_t i, k, depth;
    *done = false;
    if (s == NULL ||
        !((s->op == EPCTX_NPU__OP_CONV && s->packs &&
           s->params.conv.act.kind == EPCTX_NPU__ACT_NONE) ||
          (s->op == EPCTX_NPU__OP_DEPTHWISE &&
           s->params.depthwise.act.kind == EPCTX_NPU__ACT_NONE)) ||
        !c->tensors[s->in[1]].constant ||
        (s->in[2] != EPCTX_NPU__NONE && !c->tensors[s->in[2]].constant)) {
        return EPCTX_OK;
    }
    EPCTX_NPU__TRY(epctx_npu__data(c, s->in[1], &old_w));
    EPCTX_NPU__TRY(epctx_npu__data(c, factor, &f));
    EPCTX_NPU__TRY(epctx_npu__data(c, offset, &g));
    if (s->in[2] != EPCTX_NPU__NONE) {
        EPCTX_NPU__TRY(epctx_npu__data(c, s->in[2], &old_b));
    }
    depth = c->tensors[s->in[1]].count / channels;
    EPCTX_NPU__TRY(epctx_npu__add_floats(c, channels * depth, &w, &w_id));
    EPCTX_NPU__TRY(epctx_npu__add_floats(c, channels, &b, &b_id));
    for (i = 0; i < channels && !c->judging; i++) {
        const float scale = ((const float *)f)[i], shift = ((const float *)g)[i];
        for (k = 0; k < depth; k++) {
            w[i * depth + k] = epctx_npu__f_mul(((const float *)old_w)[i * depth + k], scale);
        }
        b[i] = old_b == NULL
                   ? shift
                   : epctx_npu__f_add(epctx_npu__f_mul(((const float *)old_b)[i], scale), shift);
    }
    s->in[1] = w_id;
    s->in[2] = b_id;
    c->stats.fused++;
    *done = true;
    return EPCTX_OK;
}

/* With statistics from run time: (x - mean) / sqrt(var + epsilon) * scale + shift, step by step. */
static epctx_status epctx_npu__emit_norm(epctx_npu__compiler *c, uint32_t x, const uint32_t *ids,
                                         uint64_t channels, uint32_t *y)
{
    epctx_npu__shape shape = c->tensors[x].shape;
    epctx_npu__step s;
    uint32_t v[4], id, i;
    float *epsilon;
    shape.rank -= 1;
    shape.dims[0] = (int64_t)channels;
    for (i = 1; i < shape.rank; i++) {
        shape.dims[i] = 1;
    }
    for (i = 0; i < 4; i++) {
        EPCTX_NPU__TRY(epctx_npu__alias(c, ids[i], &shape, 0, &v[i]));
    }
    EPCTX_NPU__TRY(epctx_npu__add_floats(c, 1, &epsilon, &id));
    *epsilon = epctx_node_float(c->node, "epsilon", 1e-5f);
    EPCTX_NPU__TRY(epctx_npu__emit_binary(c, EPCTX_NPU__BINARY_ADD, v[3], id, &v[3]));
    EPCTX_NPU__TRY(epctx_npu__new_tensor(c, EPCTX_ONNX_FLOAT, &shape, &id));
    epctx_npu__step_init(&s, EPCTX_NPU__OP_UNARY, v[3], EPCTX_NPU__NONE, id);
    s.params.unary.count = (uint32_t)channels;
    s.params.unary.act.kind = EPCTX_NPU__ACT_SQRT;
    EPCTX_NPU__TRY(epctx_npu__emit(c, &s));
    EPCTX_NPU__TRY(epctx_npu__emit_binary(c, EPCTX_NPU__BINARY_SUB, x, v[2], &x));
    EPCTX_NPU__TRY(epctx_npu__emit_binary(c, EPCTX_NPU__BINARY_DIV, x, id, &x));
    EPCTX_NPU__TRY(epctx_npu__emit_binary(c, EPCTX_NPU__BINARY_MUL, x, v[0], &x));
    return epctx_npu__emit_binary(c, EPCTX_NPU__BINARY_ADD, x, v[1], y);
}

static epctx_status epctx_npu__emit_affine(epctx_npu__compiler *c, uint32_t x, uint64_t channels,
                                           uint32_t factor, uint32_t offset, uint32_t *y)
{
    const epctx_npu__shape *shape = &c->tensors[x].shape;
    epctx_npu__step s;
    epctx_npu__step_init(&s, EPCTX_NPU__OP_AFFINE, x, factor, 0);
    s.in[2] = offset;
    s.params.affine.outer = (uint32_t)shape->dims[0];
    s.params.affine.channels = (uint32_t)channels;
    s.params.affine.inner = (uint32_t)epctx_npu__product(shape, 2, shape->rank);
    EPCTX_NPU__TRY(epctx_npu__new_tensor(c, EPCTX_ONNX_FLOAT, shape, y));
    s.out = *y;
    return epctx_npu__emit(c, &s);
}

static epctx_status epctx_npu__lower_batch_norm(epctx_npu__compiler *c)
{
    uint32_t x, y, ids[4], i, factor, offset;
    bool constant = true, done = false;
    uint64_t channels;
    EPCTX_NPU__TRY(epctx_npu__unused_outputs(c, 1));
    EPCTX_NPU__TRY(epctx_npu__float_input(c, 0, &x));
    if (epctx_node_int(c->node, "training_mode", 0) != 0 ||
        (c->node->version < 7 && epctx_node_int(c->node, "is_test", 0) == 0) ||
        epctx_node_int(c->node, "spatial", 1) == 0 || c->tensors[x].shape.rank < 2) {
        return epctx_fail(c->error, EPCTX_ERR_UNSUPPORTED,
                          "expected inference mode, one statistic per channel, rank >= 2");
    }
    channels = (uint64_t)c->tensors[x].shape.dims[1];
    for (i = 0; i < 4; i++) {
        EPCTX_NPU__TRY(epctx_npu__float_input(c, i + 1, &ids[i]));
        if (c->tensors[ids[i]].count != channels) {
            return epctx_fail(c->error, EPCTX_ERR_GRAPH,
                              "input '%S': expected %u elements, found %u",
                              &c->tensors[ids[i]].name, channels, c->tensors[ids[i]].count);
        }
        constant = constant && c->tensors[ids[i]].constant;
    }
    if (!constant) {
        EPCTX_NPU__TRY(epctx_npu__emit_norm(c, x, ids, channels, &y));
        return epctx_npu__output(c, 0, y);
    }
    EPCTX_NPU__TRY(epctx_npu__norm_factors(c, ids, channels, &factor, &offset));
    EPCTX_NPU__TRY(epctx_npu__fuse_norm(c, x, channels, factor, offset, &done));
    y = x;
    if (!done) {
        EPCTX_NPU__TRY(epctx_npu__emit_affine(c, x, channels, factor, offset, &y));
    }
    return epctx_npu__output(c, 0, y);
}

/* -- the table of operators -- */

typedef struct epctx_npu__lower {
    const char *op_type;
    epctx_status (*lower_fn)(epctx_npu__compiler *c);
} epctx_npu__lower;

static const epctx_npu__lower epctx_npu__lowers[] = {
    {"Abs", epctx_npu__lower_abs},
    {"Add", epctx_npu__lower_add},
    {"AveragePool", epctx_npu__lower_average_pool},
    {"BatchNormalization", epctx_npu__lower_batch_norm},
    {"Cast", epctx_npu__lower_cast},
    {"Clip", epctx_npu__lower_clip},
    {"Concat", epctx_npu__lower_concat},
    {"Constant", epctx_npu__lower_constant},
    {"ConstantOfShape", epctx_npu__lower_constant_of_shape},
    {"Conv", epctx_npu__lower_conv},
    {"DepthToSpace", epctx_npu__lower_depth_to_space},
    {"Div", epctx_npu__lower_div},
    {"Dropout", epctx_npu__lower_dropout},
    {"Elu", epctx_npu__lower_elu},
    {"Exp", epctx_npu__lower_exp},
    {"Expand", epctx_npu__lower_expand},
    {"Flatten", epctx_npu__lower_flatten},
    {"Gather", epctx_npu__lower_gather},
    {"Gemm", epctx_npu__lower_gemm},
    {"GlobalAveragePool", epctx_npu__lower_global_average},
    {"GlobalMaxPool", epctx_npu__lower_global_max},
    {"HardSigmoid", epctx_npu__lower_hard_sigmoid},
    {"HardSwish", epctx_npu__lower_hard_swish},
    {"Identity", epctx_npu__lower_identity},
    {"LeakyRelu", epctx_npu__lower_leaky_relu},
    {"Log", epctx_npu__lower_log},
    {"LogSoftmax", epctx_npu__lower_log_softmax},
    {"MatMul", epctx_npu__lower_matmul},
    {"Max", epctx_npu__lower_max},
    {"MaxPool", epctx_npu__lower_max_pool},
    {"Min", epctx_npu__lower_min},
    {"Mul", epctx_npu__lower_mul},
    {"Neg", epctx_npu__lower_neg},
    {"PRelu", epctx_npu__lower_prelu},
    {"Pad", epctx_npu__lower_pad},
    {"ReduceMax", epctx_npu__lower_reduce_max},
    {"ReduceMean", epctx_npu__lower_reduce_mean},
    {"ReduceMin", epctx_npu__lower_reduce_min},
    {"ReduceSum", epctx_npu__lower_reduce_sum},
    {"Relu", epctx_npu__lower_relu},
    {"Reshape", epctx_npu__lower_reshape},
    {"Shape", epctx_npu__lower_shape},
    {"Sigmoid", epctx_npu__lower_sigmoid},
    {"Slice", epctx_npu__lower_slice},
    {"Softmax", epctx_npu__lower_softmax},
    {"Split", epctx_npu__lower_split},
    {"Sqrt", epctx_npu__lower_sqrt},
    {"Squeeze", epctx_npu__lower_squeeze},
    {"Sub", epctx_npu__lower_sub},
    {"Sum", epctx_npu__lower_sum},
    {"Tanh", epctx_npu__lower_tanh},
    {"Transpose", epctx_npu__lower_transpose},
    {"Unsqueeze", epctx_npu__lower_unsqueeze},
};

/* ================================================================================================
 * >>compile: import
 * ============================================================================================== */

static epctx_status epctx_npu__import_tensor(epctx_npu__compiler *c, const epctx_tensor *from,
                                             uint32_t *id)
{
    epctx_npu__shape shape = {0, {0}};
    uint64_t bytes;
    int32_t i;
    if (epctx_npu__elem_size(from->elem_type) == 0 || from->rank < 0 ||
        from->rank > EPCTX_NPU_MAX_RANK || from->data == NULL) {
        return epctx_npu__add_tensor(c, 0, &shape, id); /* only a node that uses it fails */
    }
    shape.rank = (uint32_t)from->rank;
    for (i = 0; i < from->rank; i++) {
        shape.dims[i] = from->dims[i];
        if (from->dims[i] < 0) {
            return epctx_fail(c->error, EPCTX_ERR_GRAPH, "constant '%S' has dimension %d",
                              &from->name, from->dims[i]);
        }
    }
    bytes = epctx_npu__mul(epctx_npu__count(&shape), epctx_npu__elem_size(from->elem_type));
    if (bytes != from->size || bytes > EPCTX_NPU__MAX_BYTES) {
        return epctx_fail(c->error, EPCTX_ERR_GRAPH,
                          "constant '%S': its shape needs %u bytes, found %u", &from->name, bytes,
                          (uint64_t)from->size);
    }
    EPCTX_NPU__TRY(epctx_npu__add_tensor(c, from->elem_type, &shape, id));
    c->tensors[*id].name = from->name;
    c->tensors[*id].constant = true;
    c->tensors[*id].raw = from->data;
    return EPCTX_OK;
}

static bool epctx_npu__value_usable(const epctx_value *value, epctx_npu__shape *shape)
{
    uint32_t elem = epctx_npu__elem_size(value->elem_type);
    int32_t i;
    memset(shape, 0, sizeof *shape);
    if (elem == 0 || value->rank < 0 || value->rank > EPCTX_NPU_MAX_RANK) {
        return false;
    }
    shape->rank = (uint32_t)value->rank;
    for (i = 0; i < value->rank; i++) {
        shape->dims[i] = value->dims[i];
        if (value->dims[i] < 1) {
            return false;
        }
    }
    return epctx_npu__mul(epctx_npu__count(shape), elem) <= EPCTX_NPU__MAX_BYTES;
}

/* A value from outside: of known type and shape, or unknown (then nodes that read it fail). */
static epctx_status epctx_npu__import_value(epctx_npu__compiler *c, const epctx_value *value,
                                            epctx_npu__place place, uint32_t index)
{
    epctx_npu__shape shape;
    const bool usable = epctx_npu__value_usable(value, &shape);
    epctx_npu__tensor *t;
    uint32_t id, buffer;
    if (epctx_map_get(&c->names, value->name) != EPCTX_MAP_NONE) {
        return EPCTX_OK;
    }
    EPCTX_NPU__TRY(epctx_npu__add_tensor(c, usable ? value->elem_type : 0, &shape, &id));
    t = &c->tensors[id];
    t->name = value->name;
    EPCTX_NPU__TRY(
        epctx_npu__add_buffer(c, usable ? t->count * epctx_npu__elem_size(t->elem) : 0, &buffer));
    t->buffer = buffer;
    c->buffers[buffer].place = place;
    c->buffers[buffer].index = index;
    return epctx_map_put(&c->names, value->name, id) == EPCTX_OK
               ? EPCTX_OK
               : epctx_npu__nomem(c, c->arena->missing);
}

static epctx_status epctx_npu__count_use(epctx_npu__compiler *c, epctx_str name)
{
    uint32_t uses = epctx_map_get(&c->uses, name);
    if (name.size == 0) {
        return EPCTX_OK;
    }
    return epctx_map_put(&c->uses, name, uses == EPCTX_MAP_NONE ? 1 : uses + 1) == EPCTX_OK
               ? EPCTX_OK
               : epctx_npu__nomem(c, c->arena->missing);
}

/* Constants, inputs, and how often every value is used. */
static epctx_status epctx_npu__import(epctx_npu__compiler *c)
{
    const epctx_graph *g = c->graph;
    size_t i, j;
    for (i = 0; i < g->node_count; i++) {
        for (j = 0; j < g->nodes[i].input_count; j++) {
            EPCTX_NPU__TRY(epctx_npu__count_use(c, g->nodes[i].inputs[j]));
        }
        for (j = 0; j < g->nodes[i].capture_count; j++) {
            EPCTX_NPU__TRY(epctx_npu__count_use(c, g->nodes[i].captures[j]));
        }
    }
    for (i = 0; i < g->output_count; i++) { /* counts twice: nobody may merge with it */
        EPCTX_NPU__TRY(epctx_npu__count_use(c, g->outputs[i].name));
        EPCTX_NPU__TRY(epctx_npu__count_use(c, g->outputs[i].name));
    }
    for (i = 0; i < g->initializer_count; i++) {
        uint32_t id;
        EPCTX_NPU__TRY(epctx_npu__import_tensor(c, &g->initializers[i], &id));
        if (epctx_map_put(&c->names, g->initializers[i].name, id) != EPCTX_OK) {
            return epctx_npu__nomem(c, c->arena->missing);
        }
    }
    for (i = 0; i < g->input_count; i++) {
        EPCTX_NPU__TRY(epctx_npu__import_value(c, &g->inputs[i], EPCTX_NPU__INPUT, (uint32_t)i));
    }
    return EPCTX_OK;
}

static epctx_status epctx_npu__lower_node(epctx_npu__compiler *c, const epctx_node *node)
{
    const size_t count = sizeof epctx_npu__lowers / sizeof epctx_npu__lowers[0];
    size_t i;
    if (node->domain.size != 0 && !epctx_str_is(node->domain, "ai.onnx")) {
        return epctx_fail(c->error, EPCTX_ERR_UNSUPPORTED, "operator %S of domain %S",
                          &node->op_type, &node->domain);
    }
    for (i = 0; i < count && !epctx_str_is(node->op_type, epctx_npu__lowers[i].op_type); i++) {
    }
    if (i == count) {
        return epctx_fail(c->error, EPCTX_ERR_UNSUPPORTED, "operator %S is not supported",
                          &node->op_type);
    }
    if (node->version < 1 || node->version > EPCTX_NPU__MAX_OPSET) {
        return epctx_fail(c->error, EPCTX_ERR_UNSUPPORTED,
                          "operator %S: expected opset 1..%d, found %d", &node->op_type,
                          (int64_t)EPCTX_NPU__MAX_OPSET, node->version);
    }
    c->node = node;
    c->folding = true;
    for (i = 0; i < node->input_count && c->folding; i++) {
        uint32_t id = epctx_map_get(&c->names, node->inputs[i]);
        c->folding = node->inputs[i].size == 0 || (id != EPCTX_MAP_NONE && c->tensors[id].constant);
    }
    for (i = 0; i < count; i++) {
        if (epctx_str_is(node->op_type, epctx_npu__lowers[i].op_type)) {
            return epctx_npu__lowers[i].lower_fn(c);
        }
    }
    return EPCTX_OK;
}

/* Names the node of the error just set: by name, else by its first output. */
static void epctx_npu__blame(const epctx_npu__compiler *c, const epctx_node *node)
{
    const epctx_str *name = &node->name;
    if (name->size == 0 && node->output_count > 0) {
        name = &node->outputs[0];
    }
    epctx_blame(c->error, NULL, name, NULL);
}

static epctx_npu__compiler epctx_npu__compiler_of(const epctx_graph *graph,
                                                  const epctx_npu_arch *arch, epctx_arena *arena,
                                                  epctx_error *error)
{
    epctx_npu__compiler c;
    memset(&c, 0, sizeof c);
    c.graph = graph;
    c.arch = arch;
    c.arena = arena;
    c.error = error;
    epctx_map_init(&c.names, arena);
    epctx_map_init(&c.uses, arena);
    return c;
}

/* ================================================================================================
 * >>compile: memory plan
 * ============================================================================================== */

/* Every output gets its own memory from the caller: a value that is a constant, an input, a part of
 * something or an output already is copied. */
static epctx_status epctx_npu__bind_outputs(epctx_npu__compiler *c)
{
    const epctx_graph *g = c->graph;
    size_t i;
    c->node = NULL;
    c->folding = false;
    for (i = 0; i < g->output_count; i++) {
        uint32_t id = epctx_map_get(&c->names, g->outputs[i].name), copy;
        epctx_npu__tensor *t = id == EPCTX_MAP_NONE ? NULL : &c->tensors[id];
        if (t == NULL || t->elem == 0 || t->count == 0) {
            return epctx_fail(c->error, EPCTX_ERR_GRAPH,
                              "output '%S' is made by no node, or has no fixed shape",
                              &g->outputs[i].name);
        }
        if (t->constant || c->buffers[t->buffer].place != EPCTX_NPU__SCRATCH || t->offset != 0 ||
            c->buffers[t->buffer].bytes != t->count * epctx_npu__elem_size(t->elem)) {
            EPCTX_NPU__TRY(epctx_npu__new_tensor(c, t->elem, &c->tensors[id].shape, &copy));
            EPCTX_NPU__TRY(epctx_npu__emit_copy(c, id, copy));
            t = &c->tensors[copy];
        }
        c->buffers[t->buffer].place = EPCTX_NPU__OUTPUT;
        c->buffers[t->buffer].index = (uint32_t)i;
        c->buffers[t->buffer].needed = true;
    }
    return EPCTX_OK;
}

/* Steps whose result nobody needs are dropped. */
static void epctx_npu__drop_dead(epctx_npu__compiler *c)
{
    size_t i;
    uint32_t j;
    for (i = c->step_count; i > 0; i--) {
        epctx_npu__step *s = &c->steps[i - 1];
        s->dead = !c->buffers[c->tensors[s->out].buffer].needed;
        for (j = 0; j < EPCTX_NPU__MAX_IN && !s->dead; j++) {
            if (s->in[j] != EPCTX_NPU__NONE && !c->tensors[s->in[j]].constant) {
                c->buffers[c->tensors[s->in[j]].buffer].needed = true;
            }
        }
    }
}

static epctx_status epctx_npu__pack_weights(epctx_npu__compiler *c)
{
    size_t i;
    for (i = 0; i < c->step_count; i++) {
        epctx_npu__step *s = &c->steps[i];
        const epctx_npu__pack *p = &s->pack;
        epctx_npu__args args;
        float *packed;
        uint32_t id;
        if (s->dead || !s->packs) {
            continue;
        }
        memset(&args, 0, sizeof args);
        EPCTX_NPU__TRY(epctx_npu__data(c, s->in[1], &args.in[0]));
        EPCTX_NPU__TRY(epctx_npu__add_floats(
            c, epctx_npu__packed(p->batch, p->rows, p->depth, p->block), &packed, &id));
        args.out[0] = packed;
        EPCTX_NPU__TRY(epctx_npu__run_pack(p, &args, c->error));
        s->in[1] = id;
        s->packs = false;
    }
    return EPCTX_OK;
}

static void epctx_npu__touch(epctx_npu__compiler *c, uint32_t buffer, size_t step)
{
    epctx_npu__buffer *b = &c->buffers[buffer];
    if (b->first == EPCTX_NPU__NONE) {
        b->first = (uint32_t)step;
    }
    b->last = (uint32_t)step;
}

static void epctx_npu__lifetimes(epctx_npu__compiler *c)
{
    size_t i;
    uint32_t j;
    for (i = 0; i < c->step_count; i++) {
        const epctx_npu__step *s = &c->steps[i];
        if (s->dead) {
            continue;
        }
        for (j = 0; j < EPCTX_NPU__MAX_IN; j++) {
            if (s->in[j] != EPCTX_NPU__NONE && !c->tensors[s->in[j]].constant) {
                epctx_npu__touch(c, c->tensors[s->in[j]].buffer, i);
            }
        }
        epctx_npu__touch(c, c->tensors[s->out].buffer, i);
        if (s->temporary != EPCTX_NPU__NONE) {
            epctx_npu__touch(c, s->temporary, i);
        }
    }
}

static uint64_t epctx_npu__aligned(uint64_t size)
{
    return (size + EPCTX_NPU_ALIGN - 1) & ~(uint64_t)(EPCTX_NPU_ALIGN - 1);
}

static bool epctx_npu__in_scratch(const epctx_npu__buffer *b)
{
    return b->place == EPCTX_NPU__SCRATCH && b->first != EPCTX_NPU__NONE;
}

/* Bytes that live at every step: the largest, and for every buffer the largest during its life. */
static epctx_status epctx_npu__crowds(epctx_npu__compiler *c)
{
    uint64_t *live;
    void *memory;
    size_t i, j;
    EPCTX_NPU__TRY(epctx_npu__alloc(c, c->step_count + 1, sizeof *live, &memory));
    live = (uint64_t *)memory; /* first the changes, modulo 2^64: a decrease is a large number */
    for (i = 0; i < c->buffer_count; i++) {
        const epctx_npu__buffer *b = &c->buffers[i];
        if (epctx_npu__in_scratch(b)) {
            live[b->first] += epctx_npu__aligned(b->bytes);
            live[b->last + 1] -= epctx_npu__aligned(b->bytes);
        }
    }
    c->stats.scratch_live = 0;
    for (i = 0; i < c->step_count; i++) {
        live[i] += i > 0 ? live[i - 1] : 0;
        c->stats.scratch_live = live[i] > c->stats.scratch_live ? live[i] : c->stats.scratch_live;
    }
    for (i = 0; i < c->buffer_count; i++) {
        epctx_npu__buffer *b = &c->buffers[i];
        for (j = b->first; epctx_npu__in_scratch(b) && j <= b->last; j++) {
            b->crowd = live[j] > b->crowd ? live[j] : b->crowd;
        }
    }
    return EPCTX_OK;
}

/* Larger key first, then larger size, then the older one: the order is total, so that every sort
 * gives the same plan. */
static bool epctx_npu__before(const epctx_npu__compiler *c, uint32_t a, uint32_t b)
{
    const epctx_npu__buffer *x = &c->buffers[a], *y = &c->buffers[b];
    if (x->key != y->key) {
        return x->key > y->key;
    }
    return x->bytes != y->bytes ? x->bytes > y->bytes : a < b;
}

static void epctx_npu__sift(const epctx_npu__compiler *c, uint32_t *heap, size_t count, size_t at)
{
    for (;;) {
        size_t child = 2 * at + 1;
        uint32_t t;
        if (child >= count) {
            return;
        }
        if (child + 1 < count && epctx_npu__before(c, heap[child], heap[child + 1])) {
            child++;
        }
        if (!epctx_npu__before(c, heap[at], heap[child])) {
            return;
        }
        t = heap[at];
        heap[at] = heap[child];
        heap[child] = t;
        at = child;
    }
}

/* Heap sort: no worst case, no recursion. */
static void epctx_npu__sort(const epctx_npu__compiler *c, uint32_t *list, size_t count)
{
    size_t i;
    for (i = count / 2; i > 0; i--) {
        epctx_npu__sift(c, list, count, i - 1);
    }
    for (i = count; i > 1; i--) {
        uint32_t t = list[0];
        list[0] = list[i - 1];
        list[i - 1] = t;
        epctx_npu__sift(c, list, i - 1, 0);
    }
}

/* Places one buffer into the lowest gap between those that live at the same time. `placed` is kept
 * in the order of offsets. */
static uint64_t epctx_npu__place_buffer(epctx_npu__compiler *c, uint32_t id, uint32_t *placed,
                                        size_t count)
{
    epctx_npu__buffer *b = &c->buffers[id];
    const uint64_t size = epctx_npu__aligned(b->bytes);
    uint64_t at = 0;
    size_t i;
    for (i = 0; i < count; i++) {
        const epctx_npu__buffer *other = &c->buffers[placed[i]];
        uint64_t end = other->offset + epctx_npu__aligned(other->bytes);
        if (other->last < b->first || b->last < other->first) {
            continue;
        }
        if (other->offset >= at && other->offset - at >= size) {
            break;
        }
        at = end > at ? end : at;
    }
    b->offset = at;
    for (i = count; i > 0 && c->buffers[placed[i - 1]].offset > at; i--) {
        placed[i] = placed[i - 1];
    }
    placed[i] = id;
    return at + size;
}

typedef enum epctx_npu__order {
    EPCTX_NPU__BY_SIZE = 0, /* largest first: near the optimum for most networks */
    EPCTX_NPU__BY_CROWD,    /* those at the fullest step first: better for long skip connections */
    EPCTX_NPU__BY_AREA,     /* bytes times steps */
    EPCTX_NPU__BY_TIME,     /* in order of use */
    EPCTX_NPU__ORDER_COUNT
} epctx_npu__order;

static uint64_t epctx_npu__key(const epctx_npu__buffer *b, epctx_npu__order order)
{
    switch (order) {
    case EPCTX_NPU__BY_CROWD:
        return b->crowd;
    case EPCTX_NPU__BY_AREA:
        return epctx_npu__mul(b->bytes, (uint64_t)b->last - b->first + 1);
    case EPCTX_NPU__BY_TIME:
        return UINT32_MAX - b->first;
    default:
        return b->bytes;
    }
}

/* Places all buffers in one order; returns the bytes of scratch. */
static uint64_t epctx_npu__try_order(epctx_npu__compiler *c, epctx_npu__order order, uint32_t *list,
                                     uint32_t *placed, size_t count)
{
    uint64_t size = 0, end;
    size_t i;
    for (i = 0; i < count; i++) {
        c->buffers[list[i]].key = epctx_npu__key(&c->buffers[list[i]], order);
    }
    epctx_npu__sort(c, list, count);
    for (i = 0; i < count; i++) {
        end = epctx_npu__place_buffer(c, list[i], placed, i);
        size = end > size ? end : size;
    }
    return size;
}

/* Offsets in scratch: several orders of placing, the best one is kept. No plan can be smaller than
 * the largest sum of bytes that live at once. */
static epctx_status epctx_npu__plan(epctx_npu__compiler *c)
{
    uint32_t *list, *placed;
    void *memory;
    uint64_t size, best_size = UINT64_MAX;
    size_t i, count = 0;
    int order, best = 0;
    epctx_npu__lifetimes(c);
    EPCTX_NPU__TRY(epctx_npu__crowds(c));
    EPCTX_NPU__TRY(epctx_npu__alloc(c, c->buffer_count, 2 * sizeof *list, &memory));
    list = (uint32_t *)memory;
    placed = list + c->buffer_count;
    for (i = 0; i < c->buffer_count; i++) {
        if (epctx_npu__in_scratch(&c->buffers[i])) {
            list[count++] = (uint32_t)i;
        }
    }
    for (order = 0; order < EPCTX_NPU__ORDER_COUNT && best_size > c->stats.scratch_live; order++) {
        size = epctx_npu__try_order(c, (epctx_npu__order)order, list, placed, count);
        if (size < best_size) {
            best_size = size;
            best = order;
        }
    }
    c->stats.scratch_size = epctx_npu__try_order(c, (epctx_npu__order)best, list, placed, count);
    return EPCTX_OK;
}

static epctx_status epctx_npu__compile_graph(epctx_npu__compiler *c)
{
    size_t i;
    EPCTX_NPU__TRY(epctx_npu__import(c));
    for (i = 0; i < c->graph->input_count; i++) {
        uint32_t id = epctx_map_get(&c->names, c->graph->inputs[i].name);
        if (id == EPCTX_MAP_NONE || c->tensors[id].elem == 0 || c->tensors[id].constant) {
            return epctx_fail(c->error, EPCTX_ERR_UNSUPPORTED,
                              "input '%S' must be float32, int32 or int64 of fixed shape, rank "
                              "<= %u",
                              &c->graph->inputs[i].name, (uint64_t)EPCTX_NPU_MAX_RANK);
        }
    }
    for (i = 0; i < c->graph->node_count; i++) {
        epctx_status status = epctx_npu__lower_node(c, &c->graph->nodes[i]);
        if (status != EPCTX_OK) {
            epctx_npu__blame(c, &c->graph->nodes[i]);
            return status;
        }
    }
    EPCTX_NPU__TRY(epctx_npu__bind_outputs(c));
    epctx_npu__drop_dead(c);
    EPCTX_NPU__TRY(epctx_npu__pack_weights(c));
    return epctx_npu__plan(c);
}

/* ================================================================================================
 * >>compile: writing the blob
 * ============================================================================================== */

/* One graph of a context under construction; word positions count from the end of the records. */
typedef struct epctx_npu__record {
    uint32_t name_at, name_size;
    uint64_t hash, scratch;
    uint32_t io_at, inputs, outputs, commands_at, command_words, commands;
} epctx_npu__record;

typedef struct epctx_npu__entry {
    uint64_t hash, offset, size;
    uint32_t elem;
} epctx_npu__entry;

/* A context under construction. `words` are little-endian already. */
typedef struct epctx_npu__build {
    epctx_allocator allocator;
    epctx_buffer records, words, strings, weights;
    epctx_buffer entries; /* epctx_npu__entry */
    epctx_buffer table;   /* u32: hash table of entries, index + 1 */
    epctx_arena arena;    /* what types_fn hands out */
} epctx_npu__build;

static void epctx_npu__put32(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)(v & 0xff);
    p[1] = (uint8_t)(v >> 8 & 0xff);
    p[2] = (uint8_t)(v >> 16 & 0xff);
    p[3] = (uint8_t)(v >> 24);
}

static void epctx_npu__put64(uint8_t *p, uint64_t v)
{
    epctx_npu__put32(p, (uint32_t)(v & UINT32_MAX));
    epctx_npu__put32(p + 4, (uint32_t)(v >> 32));
}

static epctx_status epctx_npu__append(epctx_npu__compiler *c, epctx_buffer *to, const void *data,
                                      size_t size)
{
    return epctx_buffer_append(to, data, size) == EPCTX_OK ? EPCTX_OK : epctx_npu__nomem(c, size);
}

static epctx_status epctx_npu__word(epctx_npu__compiler *c, epctx_buffer *to, uint64_t v)
{
    uint8_t bytes[4];
    epctx_npu__put32(bytes, (uint32_t)v);
    return epctx_npu__append(c, to, bytes, 4);
}

static epctx_status epctx_npu__word64(epctx_npu__compiler *c, epctx_buffer *to, uint64_t v)
{
    EPCTX_NPU__TRY(epctx_npu__word(c, to, v & UINT32_MAX));
    return epctx_npu__word(c, to, v >> 32);
}

/* A name in the strings: two words. */
static epctx_status epctx_npu__name(epctx_npu__compiler *c, epctx_npu__build *b, epctx_str name)
{
    EPCTX_NPU__TRY(epctx_npu__word(c, &b->words, b->strings.size));
    EPCTX_NPU__TRY(epctx_npu__word(c, &b->words, name.size));
    return name.size > 0 ? epctx_npu__append(c, &b->strings, name.data, name.size) : EPCTX_OK;
}

static epctx_status epctx_npu__rehash(epctx_npu__compiler *c, epctx_npu__build *b)
{
    const epctx_npu__entry *entries = (const epctx_npu__entry *)(const void *)b->entries.data;
    const size_t count = b->entries.size / sizeof *entries;
    size_t room = b->table.size / 4, i;
    uint32_t *slots;
    if (2 * (count + 1) <= room) {
        return EPCTX_OK;
    }
    room = room == 0 ? 64 : room * 2;
    b->table.size = 0;
    EPCTX_NPU__TRY(epctx_npu__append(c, &b->table, NULL, room * 4));
    slots = (uint32_t *)(void *)b->table.data;
    for (i = 0; i < count; i++) {
        size_t at = (size_t)(entries[i].hash & (room - 1));
        while (slots[at] != 0) {
            at = (at + 1) & (room - 1);
        }
        slots[at] = (uint32_t)i + 1;
    }
    return EPCTX_OK;
}

/* Index of the blob with exactly these bytes; added when there is none. */
static epctx_status epctx_npu__add_weight(epctx_npu__compiler *c, epctx_npu__build *b,
                                          const uint8_t *data, size_t size, uint32_t elem,
                                          uint32_t *index)
{
    const uint64_t hash = epctx_hash(data, size, elem);
    epctx_npu__entry entry;
    uint32_t *slots;
    size_t room, at;
    EPCTX_NPU__TRY(epctx_npu__rehash(c, b));
    slots = (uint32_t *)(void *)b->table.data;
    room = b->table.size / 4;
    for (at = (size_t)(hash & (room - 1)); slots[at] != 0; at = (at + 1) & (room - 1)) {
        memcpy(&entry, b->entries.data + (size_t)(slots[at] - 1) * sizeof entry, sizeof entry);
        if (entry.hash == hash && entry.size == size && entry.elem == elem &&
            memcmp(b->weights.data + entry.offset, data, size) == 0) {
            *index = slots[at] - 1;
            c->stats.weight_saved += size;
            return EPCTX_OK;
        }
    }
    *index = (uint32_t)(b->entries.size / sizeof entry);
    slots[at] = *index + 1;
    EPCTX_NPU__TRY(epctx_npu__append(
        c, &b->weights, NULL, (size_t)(epctx_npu__aligned(b->weights.size) - b->weights.size)));
    memset(&entry, 0, sizeof entry);
    entry.hash = hash;
    entry.offset = b->weights.size;
    entry.size = size;
    entry.elem = elem;
    EPCTX_NPU__TRY(epctx_npu__append(c, &b->weights, data, size));
    c->stats.weight_size += size;
    return epctx_npu__append(c, &b->entries, &entry, sizeof entry);
}

static epctx_status epctx_npu__add_constant_weight(epctx_npu__compiler *c, epctx_npu__build *b,
                                                   uint32_t id, uint32_t *index)
{
    const epctx_npu__tensor *t = &c->tensors[id];
    const uint32_t elem = epctx_npu__elem_size(t->elem);
    const size_t size = (size_t)t->count * elem;
    const void *data;
    void *copy;
    EPCTX_NPU__TRY(epctx_npu__data(c, id, &data));
    if (epctx_npu__big_endian()) {
        EPCTX_NPU__TRY(epctx_npu__alloc(c, size, 1, &copy));
        memcpy(copy, data, size);
        epctx_npu__to_host((uint8_t *)copy, size, elem);
        data = copy;
    }
    return epctx_npu__add_weight(c, b, (const uint8_t *)data, size, elem, index);
}

static epctx_status epctx_npu__write_operand(epctx_npu__compiler *c, epctx_npu__build *b,
                                             uint32_t id)
{
    uint32_t place = EPCTX_NPU__NOWHERE, index = 0;
    uint64_t offset = 0;
    if (id != EPCTX_NPU__NONE && c->tensors[id].constant) {
        place = EPCTX_NPU__WEIGHT;
        EPCTX_NPU__TRY(epctx_npu__add_constant_weight(c, b, id, &index));
    } else if (id != EPCTX_NPU__NONE) {
        const epctx_npu__buffer *buffer = &c->buffers[c->tensors[id].buffer];
        place = (uint32_t)buffer->place;
        index = buffer->index;
        offset = c->tensors[id].offset + buffer->offset;
    }
    EPCTX_NPU__TRY(epctx_npu__word(c, &b->words, place));
    EPCTX_NPU__TRY(epctx_npu__word(c, &b->words, index));
    return epctx_npu__word64(c, &b->words, offset);
}

static epctx_status epctx_npu__write_step(epctx_npu__compiler *c, epctx_npu__build *b,
                                          const epctx_npu__step *s)
{
    const epctx_npu__op_info *op = &epctx_npu__ops[s->op];
    uint32_t words[sizeof(epctx_npu__params) / 4], i;
    EPCTX_NPU__TRY(epctx_npu__word(c, &b->words, (uint32_t)s->op));
    EPCTX_NPU__TRY(epctx_npu__word(c, &b->words,
                                   EPCTX_NPU__COMMAND_WORDS +
                                       (op->in_count + op->out_count) * EPCTX_NPU__OPERAND_WORDS +
                                       op->param_words));
    EPCTX_NPU__TRY(epctx_npu__name(c, b, s->name));
    for (i = 0; i < op->in_count; i++) {
        EPCTX_NPU__TRY(epctx_npu__write_operand(c, b, s->in[i]));
    }
    EPCTX_NPU__TRY(epctx_npu__write_operand(c, b, s->out));
    if (op->out_count > 1) {
        EPCTX_NPU__TRY(epctx_npu__word(c, &b->words, EPCTX_NPU__SCRATCH));
        EPCTX_NPU__TRY(epctx_npu__word(c, &b->words, 0));
        EPCTX_NPU__TRY(epctx_npu__word64(c, &b->words, c->buffers[s->temporary].offset));
    }
    memcpy(words, &s->params, sizeof words);
    for (i = 0; i < op->param_words; i++) {
        EPCTX_NPU__TRY(epctx_npu__word(c, &b->words, words[i]));
    }
    return EPCTX_OK;
}

static epctx_status epctx_npu__write_value(epctx_npu__compiler *c, epctx_npu__build *b,
                                           epctx_str name)
{
    const epctx_npu__tensor *t = &c->tensors[epctx_map_get(&c->names, name)];
    uint32_t i;
    EPCTX_NPU__TRY(epctx_npu__name(c, b, name));
    EPCTX_NPU__TRY(epctx_npu__word(c, &b->words, (uint32_t)t->elem));
    EPCTX_NPU__TRY(epctx_npu__word(c, &b->words, t->shape.rank));
    for (i = 0; i < EPCTX_NPU_MAX_RANK; i++) {
        EPCTX_NPU__TRY(
            epctx_npu__word(c, &b->words, i < t->shape.rank ? (uint64_t)t->shape.dims[i] : 0));
    }
    return EPCTX_OK;
}

/* Appends the compiled graph to the context. */
static epctx_status epctx_npu__write_graph(epctx_npu__compiler *c, epctx_npu__build *b,
                                           epctx_str name, uint64_t hash)
{
    epctx_npu__record r;
    size_t i;
    memset(&r, 0, sizeof r);
    r.name_at = (uint32_t)b->strings.size;
    r.name_size = (uint32_t)name.size;
    EPCTX_NPU__TRY(epctx_npu__append(c, &b->strings, name.data, name.size));
    r.hash = hash;
    r.scratch = c->stats.scratch_size;
    r.io_at = (uint32_t)(b->words.size / 4);
    r.inputs = (uint32_t)c->graph->input_count;
    r.outputs = (uint32_t)c->graph->output_count;
    for (i = 0; i < c->graph->input_count; i++) {
        EPCTX_NPU__TRY(epctx_npu__write_value(c, b, c->graph->inputs[i].name));
    }
    for (i = 0; i < c->graph->output_count; i++) {
        EPCTX_NPU__TRY(epctx_npu__write_value(c, b, c->graph->outputs[i].name));
    }
    r.commands_at = (uint32_t)(b->words.size / 4);
    for (i = 0; i < c->step_count; i++) {
        if (!c->steps[i].dead) {
            EPCTX_NPU__TRY(epctx_npu__write_step(c, b, &c->steps[i]));
            r.commands++;
        }
    }
    r.command_words = (uint32_t)(b->words.size / 4) - r.commands_at;
    c->stats.commands = r.commands;
    if (b->words.size > UINT32_MAX || b->strings.size > UINT32_MAX) {
        return epctx_fail(c->error, EPCTX_ERR_LIMIT, "a context holds less than 4 GiB of commands");
    }
    return epctx_npu__append(c, &b->records, &r, sizeof r);
}

static epctx_status epctx_npu__put_record(epctx_npu__compiler *c, epctx_buffer *out,
                                          const epctx_npu__record *r, uint64_t base)
{
    uint32_t i;
    EPCTX_NPU__TRY(epctx_npu__word(c, out, r->name_at));
    EPCTX_NPU__TRY(epctx_npu__word(c, out, r->name_size));
    EPCTX_NPU__TRY(epctx_npu__word64(c, out, r->hash));
    EPCTX_NPU__TRY(epctx_npu__word64(c, out, r->scratch));
    EPCTX_NPU__TRY(epctx_npu__word(c, out, r->io_at + base));
    EPCTX_NPU__TRY(epctx_npu__word(c, out, r->inputs));
    EPCTX_NPU__TRY(epctx_npu__word(c, out, r->outputs));
    EPCTX_NPU__TRY(epctx_npu__word(c, out, r->commands_at + base));
    EPCTX_NPU__TRY(epctx_npu__word(c, out, r->command_words));
    EPCTX_NPU__TRY(epctx_npu__word(c, out, r->commands));
    for (i = 12; i < EPCTX_NPU__GRAPH_WORDS; i++) {
        EPCTX_NPU__TRY(epctx_npu__word(c, out, 0));
    }
    return EPCTX_OK;
}

static epctx_status epctx_npu__put_sections(epctx_npu__compiler *c, const epctx_npu__build *b,
                                            epctx_buffer *out, size_t start)
{
    const size_t graphs = b->records.size / sizeof(epctx_npu__record);
    const size_t weights = b->entries.size / sizeof(epctx_npu__entry);
    size_t i, size;
    EPCTX_NPU__TRY(epctx_npu__append(c, out, NULL, EPCTX_NPU_HEADER_SIZE));
    for (i = 0; i < graphs; i++) {
        epctx_npu__record r;
        memcpy(&r, b->records.data + i * sizeof r, sizeof r);
        EPCTX_NPU__TRY(epctx_npu__put_record(c, out, &r, graphs * EPCTX_NPU__GRAPH_WORDS));
    }
    EPCTX_NPU__TRY(epctx_npu__append(c, out, b->words.data, b->words.size));
    for (i = 0; i < weights; i++) {
        epctx_npu__entry e;
        memcpy(&e, b->entries.data + i * sizeof e, sizeof e);
        EPCTX_NPU__TRY(epctx_npu__word64(c, out, e.offset));
        EPCTX_NPU__TRY(epctx_npu__word64(c, out, e.size));
        EPCTX_NPU__TRY(epctx_npu__word(c, out, e.elem));
        EPCTX_NPU__TRY(epctx_npu__word(c, out, 0));
    }
    EPCTX_NPU__TRY(epctx_npu__append(c, out, b->strings.data, b->strings.size));
    size = out->size - start;
    EPCTX_NPU__TRY(epctx_npu__append(c, out, NULL, (size_t)(epctx_npu__aligned(size) - size)));
    return epctx_npu__append(c, out, b->weights.data, b->weights.size);
}

static void epctx_npu__put_header(const epctx_npu__build *b, const epctx_npu_arch *arch, uint8_t *h,
                                  size_t size)
{
    const size_t graphs = b->records.size / sizeof(epctx_npu__record);
    const size_t weights = b->entries.size / sizeof(epctx_npu__entry);
    const uint64_t words = graphs * EPCTX_NPU__GRAPH_WORDS + b->words.size / 4 +
                           weights * (uint64_t)EPCTX_NPU__WEIGHT_WORDS;
    const uint64_t strings = EPCTX_NPU_HEADER_SIZE + words * 4;
    memcpy(h, epctx_npu__magic, 8);
    epctx_npu__put32(h + EPCTX_NPU__H_FORMAT, EPCTX_NPU_FORMAT);
    epctx_npu__put32(h + EPCTX_NPU__H_HEADER, EPCTX_NPU_HEADER_SIZE);
    memcpy(h + EPCTX_NPU__H_SDK, EPCTX_NPU_SDK_VERSION, sizeof EPCTX_NPU_SDK_VERSION - 1);
    memcpy(h + EPCTX_NPU__H_ARCH, arch->name, strlen(arch->name));
    epctx_npu__put64(h + EPCTX_NPU__H_SIZE, size);
    epctx_npu__put64(h + EPCTX_NPU__H_WORDS, words);
    epctx_npu__put64(h + EPCTX_NPU__H_STRINGS, strings);
    epctx_npu__put64(h + EPCTX_NPU__H_STRBYTES, b->strings.size);
    epctx_npu__put64(h + EPCTX_NPU__H_WEIGHTS, size - b->weights.size);
    epctx_npu__put64(h + EPCTX_NPU__H_WBYTES, b->weights.size);
    epctx_npu__put32(h + EPCTX_NPU__H_GRAPHS, (uint32_t)graphs);
    epctx_npu__put32(h + EPCTX_NPU__H_WCOUNT, (uint32_t)weights);
    epctx_npu__put64(h + EPCTX_NPU__H_DATA_SUM,
                     epctx_hash(h + size - b->weights.size, b->weights.size, 0));
    epctx_npu__put64(h + EPCTX_NPU__H_META_SUM,
                     epctx_npu__meta_sum(h, h + EPCTX_NPU_HEADER_SIZE, (size_t)words * 4,
                                         h + strings, b->strings.size));
}

#endif /* EPCTX_NPU_NO_COMPILER */

/* ================================================================================================
 * >>backend
 * ============================================================================================== */

#ifndef EPCTX_NPU_NO_COMPILER

/* The value called `name` with what the source tells about it. */
static epctx_value epctx_npu__known_value(const epctx_graph *graph, const epctx_map *values,
                                          epctx_str name)
{
    uint32_t i = epctx_map_get(values, name);
    epctx_value value;
    if (i != EPCTX_MAP_NONE) {
        return graph->values[i];
    }
    memset(&value, 0, sizeof value);
    value.name = name;
    value.rank = -1;
    return value;
}

/* Sets taken[i] for each of the first `count` nodes that compiles when those before it that do not
 * are left to others. `reason` tells what was wrong with the last one. */
static epctx_status epctx_npu__judge(epctx_npu *npu, const epctx_graph *graph, size_t count,
                                     epctx_arena *arena, uint8_t *taken, epctx_error *reason,
                                     epctx_error *error)
{
    epctx_npu__compiler c = epctx_npu__compiler_of(graph, npu->arch, arena, error);
    epctx_map values;
    size_t i, j;
    c.judging = true;
    epctx_map_init(&values, arena);
    for (i = 0; i < graph->value_count; i++) {
        if (epctx_map_put(&values, graph->values[i].name, (uint32_t)i) != EPCTX_OK) {
            return epctx_npu__nomem(&c, arena->missing);
        }
    }
    EPCTX_NPU__TRY(epctx_npu__import(&c));
    for (i = 0; i < count; i++) {
        const epctx_node *node = &graph->nodes[i];
        const size_t steps = c.step_count;
        epctx_status status;
        epctx_error_clear(reason);
        c.error = reason;
        status = epctx_npu__lower_node(&c, node);
        if (status != EPCTX_OK) {
            epctx_npu__blame(&c, node);
        }
        c.error = error;
        taken[i] = status == EPCTX_OK;
        if (status == EPCTX_ERR_NOMEM) {
            return epctx_npu__nomem(&c, arena->missing);
        }
        if (taken[i]) {
            continue;
        }
        c.step_count = steps;
        for (j = 0; j < node->output_count; j++) {
            epctx_value value = epctx_npu__known_value(graph, &values, node->outputs[j]);
            if (value.name.size > 0) {
                EPCTX_NPU__TRY(epctx_npu__import_value(&c, &value, EPCTX_NPU__INPUT, 0));
            }
        }
    }
    return EPCTX_OK;
}

/* A partition sees less than the whole graph: shapes that other partitions computed may be missing
 * at its boundary. Nodes that no longer compile are given back, until every piece compiles. */
static epctx_status epctx_npu__judge_parts(epctx_npu *npu, const epctx_graph *graph, uint8_t *take,
                                           bool *changed, epctx_error *error)
{
    epctx_partition *parts;
    epctx_arena arena;
    epctx_error reason;
    size_t count = 0, i, j, k;
    epctx_status status;
    *changed = false;
    memset(&arena, 0, sizeof arena);
    epctx_arena_init(&arena, &npu->allocator);
    status = epctx_partition_graph(graph, take, &arena, &parts, &count, error);
    for (i = 0; status == EPCTX_OK && i < count; i++) {
        const epctx_graph *part = &parts[i].graph;
        uint8_t *taken = (uint8_t *)epctx_arena_alloc(&arena, part->node_count + 1);
        if (taken == NULL) {
            status = epctx_fail(error, EPCTX_ERR_NOMEM, "judging needs more memory");
            break;
        }
        status = epctx_npu__judge(npu, part, part->node_count, &arena, taken, &reason, error);
        for (j = 0; status == EPCTX_OK && j < part->node_count; j++) {
            for (k = 0; !taken[j] && k < graph->node_count; k++) {
                if (graph->nodes[k].id == part->nodes[j].id && take[k] != 0) {
                    take[k] = 0;
                    *changed = true;
                }
            }
        }
    }
    epctx_arena_free(&arena);
    return status;
}

static epctx_status epctx_npu__capability(void *self, const epctx_graph *graph, uint8_t *take,
                                          epctx_error *error)
{
    epctx_npu *npu = (epctx_npu *)self;
    epctx_arena arena;
    epctx_error reason;
    epctx_status status;
    bool changed = true;
    epctx_error_clear(error);
    memset(&arena, 0, sizeof arena);
    epctx_arena_init(&arena, &npu->allocator);
    status = epctx_npu__judge(npu, graph, graph->node_count, &arena, take, &reason, error);
    epctx_arena_free(&arena);
    while (status == EPCTX_OK && changed) { /* every round gives back a node or is the last */
        status = epctx_npu__judge_parts(npu, graph, take, &changed, error);
    }
    return status;
}

/* Why node `index` is not taken: what the first pass of capability finds, or else that its piece
 * does not compile by itself. */
static epctx_status epctx_npu__explain(void *self, const epctx_graph *graph, size_t index,
                                       epctx_error *error)
{
    epctx_npu *npu = (epctx_npu *)self;
    epctx_error reason;
    epctx_arena arena;
    epctx_status status;
    uint8_t *taken;
    epctx_error_clear(error);
    epctx_error_clear(&reason);
    memset(&arena, 0, sizeof arena);
    epctx_arena_init(&arena, &npu->allocator);
    taken = (uint8_t *)epctx_arena_alloc(&arena, index + 2);
    if (taken == NULL) {
        status = epctx_fail(error, EPCTX_ERR_NOMEM, "explaining needs more memory");
    } else {
        status = epctx_npu__judge(npu, graph, index + 1, &arena, taken, &reason, error);
    }
    if (status == EPCTX_OK && taken[index]) {
        status = epctx_fail(error, EPCTX_ERR_UNSUPPORTED,
                            "its piece of the graph reads a value whose shape the model does not "
                            "tell: run shape inference on the model");
        epctx_blame(error, NULL, &graph->nodes[index].name, NULL);
    } else if (status == EPCTX_OK) {
        status = reason.status;
        if (error != NULL) {
            *error = reason;
        }
    }
    epctx_arena_free(&arena);
    return status;
}

static void epctx_npu__discard(void *self, void *build)
{
    epctx_npu__build *b = (epctx_npu__build *)build;
    (void)self;
    if (b == NULL) {
        return;
    }
    epctx_buffer_free(&b->records);
    epctx_buffer_free(&b->words);
    epctx_buffer_free(&b->strings);
    epctx_buffer_free(&b->weights);
    epctx_buffer_free(&b->entries);
    epctx_buffer_free(&b->table);
    epctx_arena_free(&b->arena);
    b->allocator.free_fn(b->allocator.user, b);
}

static epctx_status epctx_npu__begin(void *self, void **build, epctx_error *error)
{
    const epctx_npu *npu = (const epctx_npu *)self;
    epctx_npu__build *b;
    epctx_error_clear(error);
    b = (epctx_npu__build *)npu->allocator.alloc_fn(npu->allocator.user, sizeof *b);
    *build = b;
    if (b == NULL) {
        return epctx_fail(error, EPCTX_ERR_NOMEM, "no memory for %u bytes", (uint64_t)sizeof *b);
    }
    memset(b, 0, sizeof *b);
    b->allocator = npu->allocator;
    epctx_buffer_init(&b->records, &npu->allocator);
    epctx_buffer_init(&b->words, &npu->allocator);
    epctx_buffer_init(&b->strings, &npu->allocator);
    epctx_buffer_init(&b->weights, &npu->allocator);
    epctx_buffer_init(&b->entries, &npu->allocator);
    epctx_buffer_init(&b->table, &npu->allocator);
    epctx_arena_init(&b->arena, &npu->allocator);
    return EPCTX_OK;
}

static epctx_status epctx_npu__compile(void *self, void *build, const epctx_graph *graph,
                                       epctx_str name, uint64_t hash, epctx_error *error)
{
    epctx_npu *npu = (epctx_npu *)self;
    epctx_npu__build *b = (epctx_npu__build *)build;
    epctx_npu__compiler c;
    epctx_arena arena;
    epctx_status status;
    size_t i;
    epctx_error_clear(error);
    for (i = 0; i * sizeof(epctx_npu__record) < b->records.size; i++) {
        epctx_npu__record r;
        epctx_str other;
        memcpy(&r, b->records.data + i * sizeof r, sizeof r);
        other.data = (const char *)b->strings.data + r.name_at;
        other.size = r.name_size;
        if (epctx_str_eq(other, name)) {
            return epctx_fail(error, EPCTX_ERR_ARG, "graph '%S' is in this context already", &name);
        }
    }
    memset(&arena, 0, sizeof arena);
    epctx_arena_init(&arena, &npu->allocator);
    c = epctx_npu__compiler_of(graph, npu->arch, &arena, error);
    c.stats.nodes = graph->node_count;
    status = epctx_npu__compile_graph(&c);
    if (status == EPCTX_OK) {
        status = epctx_npu__write_graph(&c, b, name, hash);
    }
    npu->stats = c.stats;
    epctx_arena_free(&arena);
    return status;
}

/* One entry of the I/O table as a value. */
static bool epctx_npu__read_value(epctx_npu__build *b, uint32_t word, epctx_value *value)
{
    const uint8_t *p = b->words.data + (size_t)word * 4;
    epctx_str name;
    int64_t *dims;
    int32_t i;
    name.data = (const char *)b->strings.data + epctx_npu__get32(p);
    name.size = epctx_npu__get32(p + 4);
    value->name.data = epctx_arena_copy(&b->arena, name); /* `strings` moves when it grows */
    value->name.size = name.size;
    value->elem_type = (int32_t)epctx_npu__get32(p + 8);
    value->rank = (int32_t)epctx_npu__get32(p + 12);
    dims = (int64_t *)epctx_arena_array(&b->arena, EPCTX_NPU_MAX_RANK, sizeof *dims);
    for (i = 0; dims != NULL && i < value->rank; i++) {
        dims[i] = epctx_npu__get32(p + 16 + 4 * (size_t)i);
    }
    value->dims = dims;
    return dims != NULL && value->name.data != NULL;
}

static epctx_status epctx_npu__types(void *self, void *build, epctx_str name,
                                     const epctx_value **outputs, size_t *count,
                                     epctx_error *error)
{
    epctx_npu__build *b = (epctx_npu__build *)build;
    size_t at;
    (void)self;
    epctx_error_clear(error);
    for (at = 0; at < b->records.size; at += sizeof(epctx_npu__record)) {
        epctx_npu__record r;
        epctx_value *values;
        epctx_str found;
        uint32_t i;
        memcpy(&r, b->records.data + at, sizeof r);
        found.data = (const char *)b->strings.data + r.name_at;
        found.size = r.name_size;
        if (!epctx_str_eq(found, name)) {
            continue;
        }
        values = (epctx_value *)epctx_arena_array(&b->arena, r.outputs, sizeof *values);
        for (i = 0; values != NULL && i < r.outputs; i++) {
            if (!epctx_npu__read_value(b, r.io_at + (r.inputs + i) * EPCTX_NPU__IO_WORDS,
                                       &values[i])) {
                values = NULL;
            }
        }
        *outputs = values;
        *count = r.outputs;
        return values != NULL ? EPCTX_OK
                              : epctx_fail(error, EPCTX_ERR_NOMEM, "no memory for %u types",
                                           (uint64_t)r.outputs);
    }
    return epctx_fail(error, EPCTX_ERR_ARG, "graph '%S' was not compiled", &name);
}

static epctx_status epctx_npu__finish(void *self, void *build, epctx_buffer *out,
                                      epctx_error *error)
{
    const epctx_npu *npu = (const epctx_npu *)self;
    const size_t start = out->size;
    epctx_npu__compiler c;
    epctx_status status;
    epctx_error_clear(error);
    memset(&c, 0, sizeof c);
    c.error = error;
    status = epctx_npu__put_sections(&c, (const epctx_npu__build *)build, out, start);
    if (status == EPCTX_OK) {
        epctx_npu__put_header((const epctx_npu__build *)build, npu->arch, out->data + start,
                              out->size - start);
    } else {
        out->size = start;
    }
    epctx_npu__discard(self, build);
    return status;
}

#else

static epctx_status epctx_npu__left_out(epctx_error *error)
{
    epctx_error_clear(error);
    return epctx_fail(error, EPCTX_ERR_UNSUPPORTED,
                      "compiling was left out of this build (EPCTX_NPU_NO_COMPILER)");
}

static epctx_status epctx_npu__capability(void *self, const epctx_graph *graph, uint8_t *take,
                                          epctx_error *error)
{
    (void)self;
    (void)graph;
    (void)take;
    return epctx_npu__left_out(error);
}

static epctx_status epctx_npu__explain(void *self, const epctx_graph *graph, size_t index,
                                       epctx_error *error)
{
    (void)self;
    (void)graph;
    (void)index;
    return epctx_npu__left_out(error);
}

static epctx_status epctx_npu__begin(void *self, void **build, epctx_error *error)
{
    (void)self;
    *build = NULL;
    return epctx_npu__left_out(error);
}

static epctx_status epctx_npu__compile(void *self, void *build, const epctx_graph *graph,
                                       epctx_str name, uint64_t hash, epctx_error *error)
{
    (void)self;
    (void)build;
    (void)graph;
    (void)name;
    (void)hash;
    return epctx_npu__left_out(error);
}

static epctx_status epctx_npu__finish(void *self, void *build, epctx_buffer *out,
                                      epctx_error *error)
{
    (void)self;
    (void)build;
    (void)out;
    return epctx_npu__left_out(error);
}

static epctx_status epctx_npu__types(void *self, void *build, epctx_str name,
                                     const epctx_value **outputs, size_t *count,
                                     epctx_error *error)
{
    (void)self;
    (void)build;
    (void)name;
    (void)outputs;
    (void)count;
    return epctx_npu__left_out(error);
}

static void epctx_npu__discard(void *self, void *build)
{
    (void)self;
    (void)build;
}

#endif /* EPCTX_NPU_NO_COMPILER */

static epctx_status epctx_npu__load(void *self, epctx_span binary, void **context,
                                    epctx_error *error)
{
    const epctx_npu *npu = (const epctx_npu *)self;
    const size_t head = (sizeof(epctx_npu_context) + 15) & ~(size_t)15;
    uint8_t *memory;
    size_t size;
    epctx_status status;
    *context = NULL;
    status = epctx_npu_load_size(binary, &size, error);
    if (status != EPCTX_OK) {
        return status;
    }
    memory = (uint8_t *)npu->allocator.alloc_fn(npu->allocator.user, head + size);
    if (memory == NULL) {
        return epctx_fail(error, EPCTX_ERR_NOMEM, "no memory for %u bytes",
                          (uint64_t)(head + size));
    }
    status =
        epctx_npu_load((epctx_npu_context *)(void *)memory, binary, memory + head, size, error);
    if (status == EPCTX_OK && npu->check_weights) {
        status = epctx_npu_check_weights((epctx_npu_context *)(void *)memory, error);
    }
    if (status != EPCTX_OK) {
        npu->allocator.free_fn(npu->allocator.user, memory);
        return status;
    }
    *context = memory;
    return EPCTX_OK;
}

static void epctx_npu__unload(void *self, void *context)
{
    const epctx_npu *npu = (const epctx_npu *)self;
    if (context != NULL) {
        npu->allocator.free_fn(npu->allocator.user, context);
    }
}

static epctx_status epctx_npu__find(void *self, void *context, epctx_str name, uint64_t hash,
                                    void **graph, epctx_error *error)
{
    const epctx_npu_graph *found;
    epctx_npu_context *c = (epctx_npu_context *)context;
    epctx_status status = epctx_npu_find(c, name, hash, &found, error);
    (void)self;
    *graph = NULL;
    if (status == EPCTX_OK) { /* the vtable's handles are not const */
        memcpy(graph, &found, sizeof found);
    }
    return status;
}

static epctx_status epctx_npu__info(void *self, void *graph, epctx_graph_info *info,
                                    epctx_error *error)
{
    (void)self;
    epctx_error_clear(error);
    *info = ((const epctx_npu_graph *)graph)->info;
    return EPCTX_OK;
}

static epctx_status epctx_npu__run(void *self, void *graph, const epctx_span *inputs,
                                   const epctx_memory *outputs, void *scratch, size_t scratch_size,
                                   epctx_error *error)
{
    (void)self;
    return epctx_npu_run((const epctx_npu_graph *)graph, inputs, outputs, scratch, scratch_size,
                         error);
}

/* What a node says about itself; the binary is held to the same when it is loaded. */
static epctx_status epctx_npu__check(void *self, const epctx_epnode *node, epctx_error *error)
{
    const epctx_npu *npu = (const epctx_npu *)self;
    const epctx_npu_arch *arch = epctx_npu_arch_find(node->hardware_architecture);
    epctx_error_clear(error);
    if (node->hardware_architecture.size > 0 && (arch == NULL || !arch->runnable)) {
        return epctx_fail(error, EPCTX_ERR_VERSION,
                          "compiled for hardware architecture '%S', this executor runs '%s'",
                          &node->hardware_architecture, npu->arch->name);
    }
    return EPCTX_OK;
}

EPCTX_API epctx_status epctx_npu_init(epctx_npu *npu, const epctx_npu_opts *opts,
                                      epctx_backend *backend, epctx_error *error)
{
    epctx_arena arena;
    const char *wanted =
        opts != NULL && opts->architecture != NULL ? opts->architecture : epctx_npu__archs[0].name;
    epctx_error_clear(error);
    memset(npu, 0, sizeof *npu);
    memset(backend, 0, sizeof *backend);
    memset(&arena, 0, sizeof arena);
    npu->arch = epctx_npu_arch_find(epctx_str_of(wanted));
    if (npu->arch == NULL) {
        return epctx_fail(error, EPCTX_ERR_ARG, "hardware architecture '%s' is unknown", wanted);
    }
    if (!npu->arch->runnable) {
        return epctx_fail(error, EPCTX_ERR_UNSUPPORTED,
                          "hardware architecture '%s' has no kernels in this build, only %s has",
                          wanted, epctx_npu__archs[0].name);
    }
    epctx_arena_init(&arena, opts != NULL ? opts->allocator : NULL); /* knows the default */
    npu->allocator = arena.allocator;
    epctx_arena_free(&arena);
    if (npu->allocator.alloc_fn == NULL || npu->allocator.free_fn == NULL) {
        return epctx_fail(error, EPCTX_ERR_ARG, "EPCTX_NO_MALLOC: pass an allocator");
    }
    npu->check_weights = opts != NULL && opts->check_weights;
    backend->version = EPCTX_BACKEND_VERSION;
    backend->self = npu;
    backend->source = EPCTX_NPU_SOURCE;
    backend->short_name = EPCTX_NPU_SHORT_NAME;
    backend->sdk_version = EPCTX_NPU_SDK_VERSION;
    backend->hardware_architecture = npu->arch->name;
    backend->capability_fn = epctx_npu__capability;
    backend->begin_fn = epctx_npu__begin;
    backend->compile_fn = epctx_npu__compile;
    backend->types_fn = epctx_npu__types;
    backend->finish_fn = epctx_npu__finish;
    backend->discard_fn = epctx_npu__discard;
    backend->load_fn = epctx_npu__load;
    backend->unload_fn = epctx_npu__unload;
    backend->find_fn = epctx_npu__find;
    backend->info_fn = epctx_npu__info;
    backend->run_fn = epctx_npu__run;
    backend->explain_fn = epctx_npu__explain;
    backend->check_fn = epctx_npu__check;
    return EPCTX_OK;
}

#ifdef __cplusplus
}
#endif

#endif /* EPCTX_NPU_IMPLEMENTATION */
