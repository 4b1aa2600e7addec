/* wrap.h - creates a model for a context binary of a vendor's tool. */
#ifndef EPCTX_OPS_WRAP_H
#define EPCTX_OPS_WRAP_H

#include "ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One input or output of a binary. */
typedef struct epctx_wrap_value {
    epctx_value value; /* as the binary has it; -1: a dynamic dimension */
    bool quantized; /* the application sees "NAME_dq" of float32: real = (x - zero_point) * scale */
    float scale;
    int64_t zero_point;
} epctx_wrap_value;

typedef struct epctx_wrap_opts {
    const epctx_profile *profile; /* the EP that made the binary; required */
    const char *source;           /* default: what the EP writes */
    const char *name;             /* of the graph in the binary, and of the node; required */
    const char *partition_name;   /* default `name` */
    const char *sdk_version, *hardware_architecture, *notes; /* NULL: not stored */
    const char *source_model; /* onnx_model_filename, relative to output_path; NULL: not stored */
    int64_t max_size;         /* 0: not stored */
    bool embed;
    const char *binary_name; /* how the model names the file; required unless embedded */
    const epctx_wrap_value *inputs;
    size_t input_count;
    const epctx_wrap_value *outputs;
    size_t output_count;
    const char *overrides; /* io_name_overrides: "NAME=NAME IN THE BINARY;..."; NULL: not stored */
    const char *output_path;          /* where the model will be written */
    const struct binary_asker *asker; /* ../binary/binary.h; may be NULL */
} epctx_wrap_opts;

/* Creates a model with one EPContext node for a binary of a vendor's tool, and QuantizeLinear and
 * DequantizeLinear nodes for quantized values. Node and binary must agree, as far as the binary
 * tells. `binary` is borrowed until the model is closed; if it is not embedded, it is the only file
 * of `out`, which may be NULL. `open` is for the new model. Errors: ARG for values, types and
 * shapes that EPContext or the EP does not support, LIMIT for an embedded binary of 2 GiB, CONTEXT
 * for a binary that is none of the EP's, is damaged or is not what the node says, GRAPH for other
 * rules of the EP. */
epctx_status epctx_wrap(epctx_model *model, epctx_span binary, const epctx_wrap_opts *opts,
                        const epctx_open_opts *open, epctx_combined *out, epctx_error *error);

#ifdef __cplusplus
}
#endif

#endif
