/* As much of the C interface of Qualcomm's QNN System library (libQnnSystem.so) as it takes to ask
 * what is in a context binary: declarations of our own, made from facts of Qualcomm's public API
 * reference (docs.qualcomm.com, 80-63442-10, "QNN API": QnnSystemInterface.h, QnnSystemContext.h,
 * QnnTypes.h) and of the Python declarations that Qualcomm publishes under BSD-3-Clause-Clear. Seen
 * at work with QAIRT 2.51, system API 1.15; tests/ort/qnn_api.c compares them with the headers of
 * an SDK. Versions of structures that are not here are not told. */
#ifndef EPCTX_CLI_QNN_API_H
#define EPCTX_CLI_QNN_API_H

#include <stdint.h>

/* Error codes: 0 is success. */
enum { QNN_MALFORMED_BINARY = 30010 };

/* Backends by number. */
enum { QNN_CPU = 3, QNN_GPU = 4, QNN_DSP = 5, QNN_HTP = 6 };

typedef struct qnn_version {
    uint32_t major, minor, patch;
} qnn_version;

/* -- a tensor: two versions, of which the second has more members at its end -- */

typedef struct qnn_tensor {
    uint32_t version; /* 1 or 2 */
    struct {
        uint32_t id;
        const char *name;
        uint32_t kind, format, type;
        struct {
            uint32_t definition, encoding;
            struct { /* the largest member of a union */
                uint32_t bit_width;
                int32_t axis;
                uint32_t count;
                const void *scales, *offsets;
            } values;
        } quantization;
        uint32_t rank;
        const uint32_t *dims;
        uint32_t memory_kind;
        struct {
            void *data;
            uint32_t size;
        } memory;
        /* version 2: */
        const uint8_t *dynamic; /* for each axis, or NULL */
        uint32_t sparse[3];
        uint8_t produced;
    } v;
} qnn_tensor;

/* What elements are: in the low byte their bits, in the high one their kind. */
enum {
    QNN_INT_8 = 0x0008,
    QNN_INT_16 = 0x0016,
    QNN_INT_32 = 0x0032,
    QNN_INT_64 = 0x0064,
    QNN_UINT_8 = 0x0108,
    QNN_UINT_16 = 0x0116,
    QNN_UINT_32 = 0x0132,
    QNN_UINT_64 = 0x0164,
    QNN_FLOAT_16 = 0x0216,
    QNN_FLOAT_32 = 0x0232,
    QNN_FLOAT_64 = 0x0264,
    QNN_SFIXED_8 = 0x0308, /* quantized */
    QNN_SFIXED_16 = 0x0316,
    QNN_SFIXED_32 = 0x0332,
    QNN_UFIXED_8 = 0x0408,
    QNN_UFIXED_16 = 0x0416,
    QNN_UFIXED_32 = 0x0432,
    QNN_BOOL_8 = 0x0508
};

/* -- a graph: three versions, each with more members at its end -- */

typedef struct qnn_graph {
    uint32_t version; /* 1 to 3 */
    struct {
        const char *name;
        uint32_t input_count;
        const qnn_tensor *inputs;
        uint32_t output_count;
        const qnn_tensor *outputs;
        /* version 2: */
        uint32_t updateable_count;
        const qnn_tensor *updateables;
        /* version 3: */
        uint32_t info_size;
        const void *info;
        uint32_t first_op, last_op;
    } v;
} qnn_graph;

/* -- a binary: the third version has no hardware info -- */

typedef struct qnn_binary_1 {
    uint32_t backend;
    const char *build;
    qnn_version core_api, backend_api;
    const char *soc;
    qnn_version hardware_info_version, blob_version;
    uint32_t hardware_info_size;
    const void *hardware_info;
    uint64_t blob_size;
    uint32_t tensor_count;
    const qnn_tensor *tensors;
    uint32_t graph_count;
    const qnn_graph *graphs;
    const void *platform; /* version 2 */
} qnn_binary_1;

typedef struct qnn_binary_3 {
    uint32_t backend;
    const char *build;
    qnn_version core_api, backend_api;
    const char *soc;
    qnn_version blob_version;
    uint64_t blob_size;
    uint32_t tensor_count;
    const qnn_tensor *tensors;
    uint32_t graph_count;
    const qnn_graph *graphs;
    const void *platform;
    uint32_t metadata_size;
    const void *metadata;
    uint32_t soc_model;
} qnn_binary_3;

typedef struct qnn_binary {
    uint32_t version; /* 1 to 3 */
    union {
        qnn_binary_1 v1; /* and 2 */
        qnn_binary_3 v3;
    } v;
} qnn_binary;

/* -- the library -- */

typedef uint64_t qnn_error;

/* One version of the interface; later ones have more functions at their end. What is told lives
 * until the context is freed. */
typedef struct qnn_system {
    uint32_t backend;
    const char *name;
    qnn_version api; /* of the library; these functions are those of 1.1 and later 1.x */
    qnn_error (*create_fn)(void **context);
    void (*deprecated_fn)(void); /* what metadata_fn does, in a way that may write to the binary */
    qnn_error (*metadata_fn)(void *context, const void *binary, uint64_t size,
                             const qnn_binary **info);
    qnn_error (*free_fn)(void *context);
} qnn_system;

/* The symbol QnnSystemInterface_getProviders. */
typedef qnn_error (*qnn_providers_fn)(const qnn_system ***systems, uint32_t *count);

#endif
