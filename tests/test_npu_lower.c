/* >>lower and >>backend: what the compiler cannot compile it refuses, operator by operator: status,
 * node and reason; capability does not take such a node. And operators in forms that ONNX's own
 * test cases do not have. */
/* runs: once */
#include "npu_graph.h"

#include "test.h"

#include <stdio.h>

/*
 * A graph of one node, as text:
 *     inputs  "x:f[1,2] w:l[2]=1,2 ones:f[3]=*"   NAME:TYPE[DIMS], with =VALUES a constant
 *     node    "Op/13 x,w axis:i=1 pads:l=0,1"     OPERATOR/OPSET INPUTS ATTRIBUTES
 * Types: f float32, u uint8, c int8, i int32, l int64, b bool, d float64. Attributes: i, f, s,
 * lists l (integers), n (floats) and S (strings), t a tensor "TYPE[DIMS]=VALUES".
 * The output is y; "->a,b" as the third word gives other ones.
 */
static int32_t type_of(char c) {
    return c == 'f'   ? EPCTX_ONNX_FLOAT
           : c == 'u' ? EPCTX_ONNX_UINT8
           : c == 'c' ? EPCTX_ONNX_INT8
           : c == 'i' ? EPCTX_ONNX_INT32
           : c == 'l' ? EPCTX_ONNX_INT64
           : c == 'b' ? EPCTX_ONNX_BOOL
                      : 14 /* complex64 */;
}

/* "[1,2]" or "1,2": the numbers, and where they end. */
static const char *read_numbers(const char *text, double *out, size_t most, size_t *count) {
    char *end;
    *count = 0;
    if (*text == '[') text++;
    while (*text && *text != ']' && *text != ' ' && *count < most) {
        out[(*count)++] = strtod(text, &end);
        if (end == text) abort();
        text = *end == ',' ? end + 1 : end;
    }
    return *text == ']' ? text + 1 : text;
}

/* "TYPE[DIMS]=VALUES" into memory of the type's width. */
static const char *read_constant(const char *text, int32_t *elem, int64_t *dims, int *rank,
                                 uint8_t *data) {
    double numbers[400];
    size_t count, i, total;
    *elem = type_of(*text);
    text = read_numbers(text + 1, numbers, 16, &count);
    *rank = (int)count;
    for (i = 0; i < count; i++) dims[i] = (int64_t)numbers[i];
    if (*text != '=') return text;
    total = gb_count(*rank, dims);
    if (total > 400) abort();
    if (text[1] == '*') {
        for (i = 0; i < total; i++) numbers[i] = 1;
        text += 2;
    } else {
        text = read_numbers(text + 1, numbers, 400, &count);
        if (count != total) abort();
    }
    for (i = 0; i < total; i++) {
        float f = (float)numbers[i];
        int64_t wide = *elem == EPCTX_ONNX_FLOAT ? 0 : (int64_t)numbers[i];
        int32_t narrow = (int32_t)wide;
        int8_t byte = (int8_t)wide;
        switch (epctx_elem_size(*elem)) {
        case 1: data[i] = (uint8_t)byte; break;
        case 4:
            memcpy(data + i * 4, *elem == EPCTX_ONNX_FLOAT ? (const void *)&f : &narrow, 4);
            break;
        default:
            memcpy(data + i * 8, *elem == 11 /* float64 */ ? (const void *)&numbers[i] : &wide, 8);
        }
    }
    return text;
}

static const char *read_word(const char *text, char *out, size_t room, const char *ends) {
    size_t size = strcspn(text, ends);
    if (size >= room) abort();
    memcpy(out, text, size);
    out[size] = '\0';
    return text + size;
}

static const char *add_attr(graph_builder *b, const char *name, const char *text) {
    static uint8_t data[3200];
    double numbers[40];
    char word[200];
    int64_t dims[16];
    size_t count, i;
    epctx_attr *a;
    const char kind = *text;
    text += 2; /* behind "=" */
    switch (kind) {
    case 's':
        text = read_word(text, word, sizeof word, " ");
        gb_attr_text(b, name, word);
        return text;
    case 'S':
        text = read_word(text, word, sizeof word, " ");
        a = gb_attr(b, name, EPCTX_ATTR_STRINGS);
        a->strings = gb_names(b, word, &a->count);
        return text;
    case 't': {
        int32_t elem;
        int rank;
        text = read_constant(text, &elem, dims, &rank, data);
        gb_constant(b, "of the attribute", elem, rank, dims, data);
        b->graph.initializer_count--; /* it is in the attribute only */
        a = gb_attr(b, name, EPCTX_ATTR_TENSOR);
        a->t = (epctx_tensor *)gb_alloc(b, sizeof *a->t);
        memcpy((void *)(uintptr_t)a->t, &b->constants[b->graph.initializer_count], sizeof *a->t);
        return text;
    }
    default: text = read_numbers(text, numbers, 40, &count);
    }
    a = gb_attr(b, name,
                kind == 'i'   ? EPCTX_ATTR_INT
                : kind == 'f' ? EPCTX_ATTR_FLOAT
                : kind == 'l' ? EPCTX_ATTR_INTS
                              : EPCTX_ATTR_FLOATS);
    a->i = (int64_t)numbers[0];
    a->f = (float)numbers[0];
    if (kind == 'l' || kind == 'n') {
        int64_t *ints = (int64_t *)gb_alloc(b, 40 * sizeof *ints);
        float *floats = (float *)gb_alloc(b, 40 * sizeof *floats);
        for (i = 0; i < count; i++) {
            ints[i] = (int64_t)numbers[i];
            floats[i] = (float)numbers[i];
        }
        a->count = count;
        if (kind == 'l') a->ints = ints;
        if (kind == 'n') a->floats = floats;
    }
    return text;
}

static void read_graph(graph_builder *b, const char *inputs, const char *node) {
    static uint8_t data[3200];
    char op[64], in[200], out[100] = "y", name[64];
    int version;
    gb_init(b);
    while (*inputs) {
        int64_t dims[16];
        int32_t elem;
        int rank;
        const char *after;
        inputs = read_word(inputs, name, sizeof name, ":") + 1;
        after = read_constant(inputs, &elem, dims, &rank, data);
        if (memchr(inputs, '=', (size_t)(after - inputs)))
            gb_constant(b, name, elem, rank, dims, data);
        else
            gb_input(b, name, elem, rank, dims);
        inputs = after + (*after == ' ');
    }
    node = read_word(node, op, sizeof op, "/");
    version = (int)strtol(node + 1, NULL, 10);
    node += strcspn(node, " ");
    node = read_word(node + (*node == ' '), in, sizeof in, " ");
    node += *node == ' ';
    if (node[0] == '-' && node[1] == '>') node = read_word(node + 2, out, sizeof out, " ");
    node += *node == ' ';
    gb_node(b, op, version, in, out);
    while (*node) {
        node = read_word(node, name, sizeof name, ":") + 1;
        node = add_attr(b, name, node);
        node += *node == ' ';
    }
    {
        size_t i;
        for (i = 0; i < b->nodes[0].output_count; i++) {
            char text[64];
            snprintf(text, sizeof text, "%.*s", (int)b->nodes[0].outputs[i].size,
                     b->nodes[0].outputs[i].data);
            if (text[0]) gb_output(b, text);
        }
    }
}

/* -- refusals -- */

#define G     EPCTX_ERR_GRAPH
#define U     EPCTX_ERR_UNSUPPORTED
#define IMAGE "x:f[1,2,6,6]"

static const struct {
    const char *inputs, *node;
    epctx_status status;
    const char *message;
} refusals[] = {
    /* what most operators ask */
    {"x:f[2]", "Add/14 x", G, "expected input 1, found 1 inputs"},
    {"x:l[2]", "Sigmoid/13 x", U, "input 'x': expected float32, found int64"},
    {"x:f[2,4]", "Split/13 x ->y,y", G, "output 'y' occurs twice"},
    /* where ONNX and ONNX Runtime give different results */
    {"x:f[1,4,8]", "MaxPool/12 x kernel_shape:l=2 strides:l=2 dilations:l=2 auto_pad:s=SAME_LOWER",
     G, "no SAME with dilations"},
    {"x:f[1,4] s:f[2]=1,1.2", "Resize/13 x,,s mode:s=linear", U, "keeps its 4 elements"},
    {"x:f[1,4] r:f[4]=0,0.5,1,1 s:l[2]=2,4",
     "Resize/13 x,r,,s coordinate_transformation_mode:s=tf_crop_and_resize", U, "keeps its 4"},
    {IMAGE " w:f[3,2,3,3]=*", "Conv/11 x,w strides:l=1", G, "expected 2 integers, found 1"},
    {IMAGE " w:f[3,2,3,3]=*", "Conv/11 x,w strides:i=1", G,
     "attribute 'strides': expected 2 integers"},
    {"x:f[2,3] s:f[2]=3,2", "Reshape/14 x,s", G, "expected at most 16 integers, found 2 of type"},
    {"x:f[2,3] s:l[20]=*", "Reshape/14 x,s", G, "expected at most"},
    {"x:f[2,3] s:l[1,1]=6", "Reshape/14 x,s", G, "shape 's': expected rank 1 to 1, found 2"},
    {"x:f[2,3] s:l[]=1", "ReduceSum/13 x,s", G, "axes 's': expected rank 1 to 1, found 0"},
    {"x:f[2,3]", "Reshape/1 x shape:i=6", G,
     "attribute 'shape': expected a list of at most 16 integers"},
    {"x:f[2,3] a:f[2]=*", "Clip/13 x,a", G, "min 'a': expected one number, found 2"},
    {"x:f[2,3]", "Flatten/13 x axis:i=4", G, "axis: expected -2..2, found 4"},
    {"x:f[2,3]", "Concat/13 x,x axis:i=2", G, "axis: expected -2..1, found 2"},
    {"x:f[2,3]", "Concat/13 x,x axis:i=-3", G, "axis: expected -2..1, found -3"},
    {"x:l[2] z:i[2]", "Add/14 x,z", G, "inputs of one type, found int64 and int32"},
    {"x:f[2] z:f[2] c:f[2]", "Where/16 c,x,z", G, "expected a bool condition"},
    {"x:f[2] z:l[2] c:b[2]", "Where/16 c,x,z", G, "two inputs of one type"},
    /* shapes */
    {"x:f[2,3]", "Det/11 x", U, "square matrices of 1 to 6 rows"},
    {"x:f[7,7]", "Det/11 x", U, "square matrices of 1 to 6 rows"},
    {"x:f[1,1,2,2] r:f[1,4] b:l[1]", "RoiAlign/16 x,r,b", U, "sampling_ratio 1 to 1024"},
    {"x:f[1,1,2,2] r:f[1,4] b:l[2]", "RoiAlign/16 x,r,b sampling_ratio:i=1", U, "batch_indices"},
    {"x:f[1,1,2,2] r:f[1,4] b:l[1]", "RoiAlign/16 x,r,b sampling_ratio:i=1 mode:s=max", G, "mode"},
    {"n:l[]", "HannWindow/17 n", U, "expected a constant"},
    {"x:f[1] n:l[]=0", "HannWindow/17 n", U, "size: found 0"},
    {"x:f[1] n:l[]=0 m:l[]=8 l:f[]=0 u:f[]=4", "MelWeightMatrix/17 n,m,m,l,u", U,
     "num_mel_bins: found 0"},
    {"x:f[1] n:l[]=2 m:l[]=8 l:f[]=4 u:f[]=0", "MelWeightMatrix/17 n,m,m,l,u", U,
     "edges: expected rising ones, at most half of sample_rate"},
    {"x:f[1] n:l[]=2 m:l[]=8 l:f[]=0 u:f[]=5", "MelWeightMatrix/17 n,m,m,l,u", U,
     "edges: expected rising ones, at most half of sample_rate"},
    {"x:f[2] r:f[]=0.5 t:b[]=1", "Dropout/13 x,r,t", U, "training mode, which drops elements"},
    {"x:f[2] r:f[]=0.5 t:f[]=0", "Dropout/13 x,r,t", G,
     "expected one number, found 1 of type float32"},
    {"x:f[2] r:f[]=0.5 t:b[2]=0,0", "Dropout/13 x,r,t", G,
     "expected one number, found 2 of type bool"},
    {"x:f[2]", "Dropout/6 x", U, "training mode, which drops elements"},
    {"x:f[2,3] s:l[10]=*", "Reshape/14 x,s", U, "found 10"},
    {"x:f[2,3]", "Reshape/1 x", U, "shape: expected at most"},
    {"x:f[2,3] s:l[3]=2,3,0", "Reshape/14 x,s", G, "shape: 0 in dimension 2"},
    {"x:f[2,3] s:l[2]=-1,-1", "Reshape/14 x,s", G, "shape: invalid -1 in dimension 1"},
    {"x:f[2,3] s:l[2]=2,-3", "Reshape/14 x,s", G, "shape: invalid -3 in dimension 1"},
    {"x:f[2,3] s:l[2]=4,-1", "Reshape/14 x,s", G, "6 elements are not a multiple of 4"},
    {"x:f[2,3] s:l[2]=0,-1", "Reshape/14 x,s allowzero:i=1", G, "are not a multiple of 0"},
    {"x:f[1,3] a:l[1]=1", "Squeeze/13 x,a", G, "axis 1: expected dimension 1, found 3"},
    {"x:f[1,3]", "Unsqueeze/13 x", U, "axes: expected a result of rank <= 8"},
    {"x:f[1,1,1,1,1,1] a:l[4]=0,1,2,3", "Unsqueeze/13 x,a", U,
     "axes: expected a result of rank <= 8"},
    {"x:f[1,3] a:l[2]=0,0", "Unsqueeze/13 x,a", G, "occurs twice"},
    /* constants */
    {"x:f[1]", "Constant/13 ", G, "expected one attribute, found 0"},
    {"x:f[1]", "Constant/13  value_int:i=1 value_float:f=1", G, "expected one attribute, found 2"},
    {"x:f[1]", "Constant/13  value:t=d[1]=1", U, "found complex64"},
    {"x:f[1]", "Constant/13  value_string:s=text", U, "attribute 'value_string': expected numbers"},
    {"s:l[2]=0,4", "ConstantOfShape/9 s", U, "graph output 'y' has no elements"},
    {"a:f[]=1", "Range/11 a,a,a", U, "graph output 'y' has no elements"},
    {"x:f[2,3]", "Shape/15 x start:i=2", U, "graph output 'y' has no elements"},
    {"a:f[0,4]=", "Relu/14 a", U, "graph output 'y' has no elements"},
    {"s:l[1]=2", "ConstantOfShape/9 s value:i=1", G, "attribute 'value': expected a tensor"},
    {"s:l[1]=2", "ConstantOfShape/9 s value:t=f[2]=1,2", G, "one element of a supported type"},
    {"s:l[1]=2", "ConstantOfShape/9 s value:t=d[1]=1", G, "one element of a supported type"},
    {"s:l[1]=-2", "ConstantOfShape/9 s", G, "dimension 0: expected >= 0, found -2"},
    {"s:l[9]=*", "ConstantOfShape/9 s", G, "expected at most"},
    {"a:f[]=0 b:i[]=1 d:i[]=1", "Range/11 a,b,d", U, "expected float32"},
    {"a:l[]=0 b:l[]=1 d:l[]=0", "Range/11 a,b,d", U, "start 0, limit 1, delta 0"},
    {"a:l[]=0 b:l[]=9e18 d:l[]=1", "Range/11 a,b,d", U, "start 0, limit 9"},
    {"a:l[]=-9e18 b:l[]=1 d:l[]=1", "Range/11 a,b,d", U, "start -9"},
    {"a:l[]=9e18 b:l[]=1 d:l[]=1", "Range/11 a,b,d", U, "start 9"},
    {"a:l[]=1 b:l[]=-9e18 d:l[]=1", "Range/11 a,b,d", U, "start 1, limit -9"},
    {"a:l[]=1 b:l[]=1 d:l[]=9e18", "Range/11 a,b,d", U, "limit 1, delta 9"},
    {"a:l[]=1 b:l[]=1 d:l[]=-9e18", "Range/11 a,b,d", U, "limit 1, delta -9"},
    {"a:f[]=0 b:f[]=2e9 d:f[]=1", "Range/11 a,b,d", U, "too many steps"},
    {"a:f[]=0 b:f[]=nan d:f[]=1", "Range/11 a,b,d", U, "too many steps"},
    {"a:f[]=0 b:f[]=-1 d:f[]=0", "Range/11 a,b,d", U, "step 0"},
    {"x:f[1,1000] s:l[2]=9e18,1", "Resize/18 x,,,s keep_aspect_ratio_policy:s=not_smaller", G,
     "expected scale > 0"},
    {"x:f[2,3,4]", "EyeLike/9 x", U, "expected rank 2, |k| <= 1000000"},
    {"x:f[2,3]", "EyeLike/9 x dtype:i=14", U, "expected rank 2, |k| <= 1000000"},
    {"x:f[2,3]", "EyeLike/9 x k:i=2000000", U, "expected rank 2, |k| <= 1000000"},
    {"x:f[2,3]", "EyeLike/9 x k:i=-2000000", U, "expected rank 2, |k| <= 1000000"},
    /* composed */
    {"x:f[2,3]", "Gelu/20 x approximate:s=", G, "attribute 'approximate': expected one of"},
    {"x:f[3,4] t:l[3]", "NegativeLogLikelihoodLoss/13 x,t reduction:s=", G,
     "attribute 'reduction': expected one of"},
    {"x:f[1,4] s:f[2]=1,0.5", "Resize/18 x,,s nearest_mode:s=", G,
     "attribute 'nearest_mode': expected one of"},
    {"x:u[1,1,3,3] w:u[1,1,2,2]=*", "ConvInteger/10 x,w auto_pad:s=", G,
     "attribute 'auto_pad': expected one of"},
    {"x:f[2,3]", "BitwiseNot/18 x", G, "expected integers"},
    {"x:b[2,3]", "BitwiseNot/18 x", G, "expected integers"},
    {"x:f[2,3]", "LpNormalization/22 x p:i=0", G, "attribute 'p': expected 1 to 64"},
    {"x:f[2,3]", "GlobalLpPool/2 x p:i=65", G, "attribute 'p': expected 1 to 64"},
    {"x:f[2,3] a:l[]=2", "CumSum/14 x,a", G, "found 2"},
    {"x:f[2,3] a:l[0]=", "CumSum/14 x,a", G, "axis"},
    {"x:f[2,3] s:l[1]=2", "CenterCropPad/18 x,s", G, "a size for each axis"},
    {"x:f[2,3] s:l[2]=2,0", "CenterCropPad/18 x,s", U, "shape: expected 1.."},
    {"x:f[2,3] s:l[2]=2,9e18", "CenterCropPad/18 x,s", U, "expected 1.."},
    {"x:f[1,2,4]", "Attention/23 x,x,x", G, "rank 3 and a number of heads that divides it"},
    {"x:f[1,2,4]", "Attention/23 x,x,x q_num_heads:i=3 kv_num_heads:i=3", G, "that divides it"},
    {"x:f[1,2,4,4]", "Attention/23 x,x,x qk_matmul_output_mode:i=4", G, "expected 0 to 3"},
    {"x:f[1,2,4,4] n:l[1]", "Attention/24 x,x,x,,,,n", U, "nonpad_kv_seqlen"},
    {"x:f[1,2,4,4] p:f[1,2,3,5]", "Attention/23 x,x,x,,p,p", G,
     "input 'x': expected type and shape of the first one"},
    {"x:f[1,3,4,4] k:f[1,2,4,4]", "Attention/23 x,k,k", G, "2 heads do not serve 3"},
    {"x:f[2,2,4,4] k:f[1,2,4,4]", "Attention/23 x,k,k", G, "and one batch and heads"},
    {"x:f[1,2,4,4] k:f[1,1,4,4]", "Attention/23 x,k,x", G, "and one batch and heads"},
    {"x:f[1,2,4,4] k:f[1,2,1,4]", "Attention/23 x,k,x", G,
     "expected keys and values of one length"},
    {"x:f[1,2,4,4] m:f[3,1,4,4]", "Attention/23 x,x,x,m", G, "the mask does not fit the scores"},
    {"x:f[2,2,3,4] a:f[5,2] p:l[1,3]", "RotaryEmbedding/23 x,a,a,p", G,
     "cosines and sines do not fit"},
    {"x:f[1,2,4]", "RotaryEmbedding/23 x,x,x", G, "attribute 'num_heads': expected a divisor"},
    {"x:f[1,2,3,4] a:f[1,3,2]", "RotaryEmbedding/23 x,a,a rotary_embedding_dim:i=3", G,
     "attribute 'rotary_embedding_dim': expected an even part"},
    {"x:f[1,2,3,4] a:f[3,2]", "RotaryEmbedding/23 x,a,a", G, "input 'a' of rank 2 does not fit"},
    {"x:f[1,2,3,4] a:f[2,3,2]", "RotaryEmbedding/23 x,a,a", G, "cosines and sines do not fit"},
    /* element-wise */
    {"x:f[2,3] a:f[2]", "Clip/13 x,a", G, "min and max: expected scalars"},
    {"x:f[2,3] a:f[1,1]", "Clip/13 x,a", G, "min 'a': expected rank 0 to 1, found 2"},
    {"x:i[2,3] a:i[3]", "Clip/13 x,a", G, "min and max: expected scalars"},
    {"x:f[2,3] z:f[3]", "Max/7 x,z", G, "before opset 8: expected inputs of one shape"},
    {"x:f[2,3] z:f[3]", "Add/6 x,z broadcast:i=1 axis:i=5", G, "found 5"},
    {"x:f[2,3] z:f[2,3]", "Add/6 x,z broadcast:i=1 axis:i=1", G,
     "attribute 'axis': expected an axis from which the second input fits"},
    {"x:f[2,1] s:f[3]=*", "PRelu/16 x,s", G, "slope: cannot broadcast to the input"},
    {"x:f[2]", "Cast/13 x to:i=14", U, "found complex64"},
    /* movement */
    {"x:f[2,3] z:f[2,3,1]", "Concat/13 x,z axis:i=0", G,
     "input 'z': expected type and shape of the first"},
    {"x:f[2,3] z:f[2,4]", "Concat/13 x,z axis:i=0", G,
     "input 'z': expected type and shape of the first"},
    {"x:f[2,3] z:l[2,3]", "Concat/13 x,z axis:i=0", G,
     "input 'z': expected type and shape of the first"},
    {"x:f[2,3] s:l[2]=0,0 e:l[1]=1", "Slice/13 x,s,e", G, "expected one length"},
    {"x:f[2,3] s:l[3]=0,0,0 e:l[3]=1,1,1", "Slice/13 x,s,e", G, "expected one length"},
    {"x:f[2,3] s:l[1]=0 e:l[1]=1 a:l[2]=0,1", "Slice/13 x,s,e,a", G, "expected one length"},
    {"x:f[2,3] s:l[1]=0 e:l[1]=1 a:l[1]=0 t:l[2]=1,1", "Slice/13 x,s,e,a,t", G,
     "expected one length"},
    {"x:f[2,3] s:l[1]=0 e:l[1]=1 a:l[1]=0 t:l[1]=0", "Slice/13 x,s,e,a,t", G,
     "axis 0: expected once, with a step other than 0"},
    {"x:f[2,3] s:l[2]=0,0 e:l[2]=1,1 a:l[2]=0,-2", "Slice/13 x,s,e,a", G, "axis 0: expected once"},
    {"x:f[2,3] s:l[3]=1,1,0", "Split/13 x,s ->a,b", G, "each of 2 outputs, found 3"},
    {"x:f[2,3] s:l[2]=1,0", "Split/13 x,s ->a,b", G, "part 1 of 0 elements, 1 remain"},
    {"x:f[2,3] s:l[2]=3,1", "Split/13 x,s ->a,b", G, "part 0 of 3 elements, 2 remain"},
    {"x:f[3,3] s:l[2]=1,1", "Split/13 x,s ->a,b", G, "part 1 of 1 elements, 2 remain"},
    {"x:f[2,3] p:l[3]=0,0,0", "Pad/13 x,p", G, "pads: expected 4 integers, found 3"},
    {"x:f[2,3]", "Pad/1 x", G, "paddings: expected 4 integers, found 0"},
    {"x:f[2] p:l[6]=0,0,0,0,0,0 a:l[3]=0,0,0", "Pad/18 x,p,,a", G, "axis 0 occurs twice"},
    {"x:f[2,3] p:l[4]=0,0,0,0 a:l[2]=0,0", "Pad/18 x,p,,a", G, "occurs twice"},
    {"x:f[2,3] p:l[4]=-3,0,0,0", "Pad/13 x,p", U, "invalid -3 and 0 for dimension 0 of 2 elements"},
    {"x:f[2,3] p:l[4]=0,0,-3,0", "Pad/13 x,p", U, "invalid 0 and -3 for dimension 0"},
    {"x:f[2,3] p:l[4]=-1,0,-2,0", "Pad/13 x,p", U, "invalid -1 and -2 for dimension 0"},
    {"x:f[2,3] p:l[4]=2,0,0,0", "Pad/13 x,p mode:s=reflect", U, "invalid 2 and 0"},
    {"x:f[2,3] p:l[4]=0,0,2,0", "Pad/13 x,p mode:s=reflect", U, "invalid 0 and 2"},
    {"x:f[2,3] p:l[4]=0,0,0,0", "Pad/19 x,p mode:s=wrap", U, "'wrap' is not"},
    {"x:f[2,3] p:l[4]=0,0,0,0 v:f[2]=*", "Pad/13 x,p,v", G, "expected one element of type float32"},
    {"x:f[2,3] p:l[4]=0,0,0,0 v:l[]=1", "Pad/13 x,p,v", G, "expected one element of type float32"},
    {"x:f[2,3] i:f[1]=0", "Gather/13 x,i", U, "expected integer indices"},
    {"x:f[1,1,1,1,1,1] i:l[1,1,1,1]=0", "Gather/13 x,i", U, "a result of rank <="},
    {"x:f[2,3] i:l[1]=2", "Gather/13 x,i", G, "index: expected -2..1, found 2"},
    {"x:f[2,3] i:l[1]=-3", "Gather/13 x,i", G, "index: expected -2..1, found -3"},
    {"x:f[2,3] r:l[1]=2", "Tile/13 x,r", G, "repeats: expected 2 integers, found 1"},
    {"x:f[2,3] r:l[2]=-1,1", "Tile/13 x,r", U, "repeats: -1 of dimension 0"},
    {"x:f[2,3] r:l[2]=1,9e12", "Tile/13 x,r", U, "of dimension 1 is not supported"},
    {"x:f[2,2,2,2,2] r:l[5]=2,2,2,2,2", "Tile/13 x,r", U, "repeats: 2 of dimension"},
    {"x:f[2]", "Trilu/14 x", G, "expected rank >= 2, found 1"},
    {"x:f[2,3]", "SpaceToDepth/13 x blocksize:i=2", G, "expected rank 4"},
    {IMAGE, "SpaceToDepth/13 x", G, "blocksize 0"},
    {IMAGE, "SpaceToDepth/13 x blocksize:i=40000", G, "blocksize 40000"},
    {IMAGE, "SpaceToDepth/13 x blocksize:i=4", G, "a plane divisible by blocksize 4"},
    {"x:f[1,1,4,6]", "SpaceToDepth/13 x blocksize:i=4", G, "a plane divisible by blocksize 4"},
    {"x:f[2,3]", "DepthToSpace/13 x blocksize:i=2", G, "expected rank 4"},
    {IMAGE, "DepthToSpace/13 x", G, "blocksize 0"},
    {IMAGE, "DepthToSpace/13 x blocksize:i=40000", G, "blocksize 40000"},
    {IMAGE, "DepthToSpace/13 x blocksize:i=2", G, "divisible by the square of blocksize 2"},
    {"x:f[2,3] i:f[2,3]", "GatherElements/13 x,i", G, "expected int32 or int64, found float32"},
    {"x:f[2,3] i:i[1,1]", "GatherND/13 x,i", G, "expected int64, found int32"},
    {"x:f[2,3] i:l[2]", "GatherElements/13 x,i", G, "data, indices and updates: ranks"},
    {"x:f[2,3] i:l[2,3] u:f[2,2]", "ScatterElements/18 x,i,u", G, "shapes or types do not match"},
    {"x:f[2,3] i:l[2,3] u:l[2,3]", "ScatterElements/18 x,i,u", G, "shapes or types do not match"},
    {"x:f[2,3] i:l[2,3] u:f[2,3]", "ScatterElements/18 x,i,u reduction:s=xor", G,
     "attribute 'reduction': expected one of: none add mul min max; found 'xor'"},
    {"x:f[2,3] i:l[3,3]", "GatherElements/13 x,i axis:i=1", G,
     "dimension 0 is larger than that of data"},
    {"x:f[2,3] i:l[1,3]", "GatherND/13 x,i", G, "tuples of 3 do not fit data of rank 2"},
    {"x:f[2,3] i:l[2,1]", "GatherND/13 x,i batch_dims:i=2", G, "tuples of 1 do not fit"},
    {"x:f[2,3,4] i:l[2]", "GatherND/13 x,i batch_dims:i=1", G, "tuples of 2 do not fit"},
    {"x:f[1,1,1,1,1,1] i:l[1,1,1,1,1]", "GatherND/13 x,i", G,
     "tuples of 1 do not fit data of rank 6"},
    {"x:f[2,3] i:l[3,1]", "GatherND/13 x,i batch_dims:i=1", G, "batch dimension 0 differs"},
    {"x:f[2,3] i:l[2,1]", "GatherND/13 x,i batch_dims:i=-1", G,
     "attribute 'batch_dims': expected a number"},
    {"x:f[2,3] i:l[2,1]", "GatherND/13 x,i batch_dims:i=90", G,
     "attribute 'batch_dims': expected a number"},
    {"x:f[2,3] i:l[1,1] u:f[1,2]", "ScatterND/18 x,i,u", G, "updates: type or shape"},
    {"x:f[2,3] i:l[1,1] u:l[1,3]", "ScatterND/18 x,i,u", G, "updates: type or shape"},
    {"i:l[3] d:l[]=0 v:f[2]=0,1", "OneHot/11 i,d,v", G, "found depth 0 and 2 values"},
    {"i:l[3] d:l[]=9e12 v:f[2]=0,1", "OneHot/11 i,d,v", G, "and 2 values"},
    {"i:l[3] d:l[]=4 v:f[3]=0,1,2", "OneHot/11 i,d,v", G, "found depth 4 and 3 values"},
    {"i:l[3] d:f[]=-4 v:f[2]=0,1", "OneHot/11 i,d,v", G, "found depth 0 and 2 values"},
    /* windows */
    {IMAGE, "MaxPool/12 x", G, "attribute 'kernel_shape': expected a value"},
    {IMAGE, "MaxPool/12 x kernel_shape:l=0,1", U, "kernel 0, stride 1"},
    {IMAGE, "MaxPool/12 x kernel_shape:l=1,1 strides:l=0,1", U, "stride 0"},
    {IMAGE, "MaxPool/12 x kernel_shape:l=1,1 dilations:l=0,1", U, "dilation 0"},
    {IMAGE, "MaxPool/12 x kernel_shape:l=9e9,1", U, "kernel 9000000000"},
    {IMAGE, "MaxPool/12 x kernel_shape:l=1,1 strides:l=9e9,1", U, "stride 9000000000"},
    {IMAGE, "MaxPool/12 x kernel_shape:l=1,1 dilations:l=9e9,1", U, "dilation 9000000000"},
    {IMAGE, "MaxPool/12 x kernel_shape:l=1,1 pads:l=-1,0,0,0", U, "pads -1 and 0"},
    {IMAGE, "MaxPool/12 x kernel_shape:l=1,1 pads:l=0,0,-1,0", U, "pads 0 and -1"},
    {IMAGE, "MaxPool/12 x kernel_shape:l=1,1 pads:l=9e9,0,0,0", U, "pads 9000000000 and 0"},
    {IMAGE, "MaxPool/12 x kernel_shape:l=1,1 pads:l=0,0,9e9,0", U, "pads 0 and 9000000000"},
    {IMAGE, "MaxPool/12 x kernel_shape:l=200000,1 dilations:l=200000,1", U, "dilation 200000"},
    {IMAGE, "MaxPool/12 x kernel_shape:l=7,1", G, "kernel of extent 7 exceeds 6 elements"},
    {IMAGE " w:f[3,2,3]=*", "Conv/11 x,w", G, "weights 'w' of shape [3, 2, ...]"},
    {IMAGE " w:f[3,3,3,3]=*", "Conv/11 x,w", G, "do not fit 2 channels in 1 groups"},
    {IMAGE " w:f[3,2,3,3]=*", "Conv/11 x,w group:i=0", G, "in 0 groups"},
    {IMAGE " w:f[3,1,3,3]=*", "Conv/11 x,w group:i=2", G, "in 2 groups"},
    {IMAGE " w:f[3,1,3,3]=*", "Conv/11 x,w group:i=3", G, "in 3 groups"},
    {IMAGE " w:f[3,2,3,3]=*", "Conv/11 x,w kernel_shape:l=3,2", G, "the shape of the weights"},
    {IMAGE " w:f[3,2,3,3]=*", "Conv/11 x,w kernel_shape:l=2,3", G, "the shape of the weights"},
    {IMAGE " w:f[3,2,3,3]=* b:f[2]=*", "Conv/11 x,w,b", G,
     "bias 'b': expected 3 elements, found 2"},
    {IMAGE " w:f[2,3,3]=*", "ConvTranspose/11 x,w", G, "weights 'w' do not fit 2 channels"},
    {IMAGE " w:f[3,3,3,3]=*", "ConvTranspose/11 x,w", G, "weights 'w' do not fit 2 channels"},
    {IMAGE " w:f[2,3,3,3]=*", "ConvTranspose/11 x,w group:i=0", G, "do not fit 2 channels"},
    {IMAGE " w:f[2,3,3,3]=*", "ConvTranspose/11 x,w group:i=3", G, "do not fit 2 channels"},
    {IMAGE " w:f[2,3,3,3]=*", "ConvTranspose/11 x,w strides:l=0,1", U, "stride 0"},
    {IMAGE " w:f[2,3,3,3]=*", "ConvTranspose/11 x,w strides:l=5000,1", U, "stride 5000"},
    {IMAGE " w:f[2,3,3,3]=*", "ConvTranspose/11 x,w dilations:l=0,1", U, "dilation 0"},
    {IMAGE " w:f[2,3,3,3]=*", "ConvTranspose/11 x,w dilations:l=5000,1", U, "dilation 5000"},
    {IMAGE " w:f[2,3,3,3]=*", "ConvTranspose/11 x,w output_padding:l=-1,0", U, "kernel 3"},
    {IMAGE " w:f[2,3,3,3]=*", "ConvTranspose/11 x,w output_padding:l=5000,0", U, "kernel 3"},
    {IMAGE " w:f[2,3,3,3]=*", "ConvTranspose/11 x,w pads:l=-1,0,0,0", U, "kernel 3"},
    {IMAGE " w:f[2,3,3,3]=*", "ConvTranspose/11 x,w pads:l=0,0,-1,0", U, "kernel 3"},
    {IMAGE " w:f[2,3,3,3]=*", "ConvTranspose/11 x,w pads:l=9e9,0,0,0", U, "kernel 3"},
    {IMAGE " w:f[2,3,3,3]=*", "ConvTranspose/11 x,w pads:l=0,0,9e9,0", U, "kernel 3"},
    {IMAGE " w:f[2,3,3,3]=*", "ConvTranspose/11 x,w output_shape:l=-1,0", U, "kernel 3"},
    {IMAGE " w:f[2,3,3,3]=*", "ConvTranspose/11 x,w pads:l=4,0,4,0", U, "pads 4 and 4"},
    {IMAGE " w:f[2,3,3,3]=*", "ConvTranspose/11 x,w pads:l=3,0,0,0", U, "pads 3 and 0"},
    {IMAGE " w:f[2,3,3,3]=*", "ConvTranspose/11 x,w pads:l=0,0,3,0", U, "pads 0 and 3"},
    {IMAGE " w:f[2,3,3,3]=*", "ConvTranspose/11 x,w kernel_shape:l=3,2", G,
     "attribute 'kernel_shape': expected the shape of the weights"},
    {IMAGE " w:f[2,3,3,3]=*", "ConvTranspose/11 x,w output_padding:l=1,1", U,
     "output_padding 1 or output_shape 0: too large for stride 1"},
    {IMAGE " w:f[3,2,3,3]=* b:f[3,1]=*", "Conv/11 x,w,b", G,
     "bias 'b': expected rank 1 to 1, found 2"},
    {"x:f[1,2]", "GlobalMaxPool/1 x", G, "expected rank >= 3, found 2"},
    {"x:f[1,2] w:f[2,2]=*", "Conv/11 x,w", G, "of one rank, 3 or more"},
    /* sums and matrices */
    {"x:f[1,2,3,4]", "MeanVarianceNormalization/13 x axes:i=1", G,
     "attribute 'axes': expected a list"},
    {"x:f[2,3] w:f[2,3]=*", "Gemm/13 x,w", G, "expected matrices with matching dimensions"},
    {"x:f[2,3,4] w:f[4,3]=*", "Gemm/13 x,w", G, "found ranks 3 and 2"},
    {"x:f[2,3] w:f[3]=*", "Gemm/13 x,w", G, "found ranks 2 and 1"},
    {"x:f[2,3] w:f[3,4]=* c:f[5,2,4]=*", "Gemm/13 x,w,c", G, "C: cannot broadcast to [2, 4]"},
    {"x:f[2,3] w:f[2,3]=*", "MatMul/13 x,w", G, "expected matching inner dimensions"},
    {"x:f[2,3] w:f[]=1", "MatMul/13 x,w", G, "found ranks 2 and 0"},
    /* normalizations */
    {"x:f[2] s:f[2]=*", "BatchNormalization/15 x,s,s,s,s", U, "rank >= 2"},
    {"x:f[2,2] s:f[2]=*", "BatchNormalization/6 x,s,s,s,s", U, "expected statistics"},
    {"x:f[2,2] s:f[2]=*", "BatchNormalization/7 x,s,s,s,s spatial:i=0", U,
     "statistics per channel"},
    {"x:f[2,2] s:f[3]=*", "BatchNormalization/15 x,s,s,s,s", G,
     "input 's': expected 2 elements, found 3"},
    {"x:f[2,2] s:f[2,1]=*", "LayerNormalization/17 x,s", G, "the dimensions from axis 1 on"},
    {"x:f[2,2] s:f[3]=*", "LayerNormalization/17 x,s", U, "expected 2 elements, found 3"},
    {"x:f[2,2] s:f[2]=*", "InstanceNormalization/6 x,s,s", G, "expected rank >= 3"},
    {"x:f[1,2,3] s:f[1]=*", "GroupNormalization/21 x,s,s num_groups:i=0", G, "by 0 groups"},
    {"x:f[1,3,3] s:f[3]=*", "GroupNormalization/21 x,s,s num_groups:i=2", G,
     "divisible by 2 groups"},
    {"x:f[1,2,3]", "LRN/13 x", G, "attribute 'size': expected 1 to 4096 channels"},
    {"x:f[1,2,3]", "LRN/13 x size:i=5000", G, "attribute 'size': expected 1 to 4096 channels"},
    {"x:f[1,2]", "LRN/13 x size:i=3", G, "attribute 'size': expected 1 to 4096 channels"},
    /* quantization */
    {"x:u[2,3] s:f[2]=*", "DequantizeLinear/13 x,s", U, "scale: expected 1 or 3 elements, found 2"},
    {"x:u[2,3] s:f[1,3]=*", "DequantizeLinear/13 x,s", U, "scale: expected 1 or 3 elements"},
    {"x:u[2,3] s:f[1,1]=1", "DequantizeLinear/13 x,s", G, "scale 's': expected rank 0 to 1"},
    {"x:l[2,3] s:f[]=1", "DequantizeLinear/13 x,s", U, "expected int8 or uint8, found int64"},
    {"x:u[2,3] s:f[]=1 z:c[]=0", "DequantizeLinear/13 x,s,z", G, "zero point: expected the type"},
    {"x:u[2,3] s:f[]=1 z:u[2]=0,0", "DequantizeLinear/13 x,s,z", G,
     "zero point: expected the type"},
    {"x:u[2,3] s:f[]=1", "DequantizeLinear/21 x,s block_size:i=2", U,
     "blocked quantization is not supported"},
    {"x:f[2,3] s:f[]=1", "QuantizeLinear/21 x,s block_size:i=2", U,
     "blocked quantization is not supported"},
    {"x:f[2,3] s:f[]=1", "QuantizeLinear/21 x,s output_dtype:i=7", U, "found int64"},
    /* losses */
    {"x:f[3] t:l[3]", "NegativeLogLikelihoodLoss/13 x,t", G, "found ranks 1 (scores) and 1"},
    {"x:f[3,4] t:l[3,4]", "NegativeLogLikelihoodLoss/13 x,t", G, "found ranks 2 (scores) and 2"},
    {"x:f[3,4] t:l[3]", "NegativeLogLikelihoodLoss/13 x,t ignore_index:i=2000000", G,
     "attribute 'ignore_index': expected -1000000..1000000"},
    {"x:f[3,4] t:l[3]", "NegativeLogLikelihoodLoss/13 x,t ignore_index:i=-2000000", G,
     "attribute 'ignore_index': expected -1000000..1000000"},
    {"x:f[3] t:l[3]", "SoftmaxCrossEntropyLoss/13 x,t", G,
     "expected targets of one rank less, found ranks 1 (scores) and 1"},
/* recurrent */
#define RNN "x:f[2,1,3] w:f[1,4,3]=* r:f[1,4,4]=* "
    {RNN, "RNN/14 x,w,r direction:s=sideways", G, "attribute 'direction': expected one of"},
    {RNN, "RNN/14 x,w,r activations:S=Softsign", U, "found 'Softsign'"},
    {RNN, "RNN/14 x,w,r activations:S=Tanh,Tanh", G, "attribute 'activations': expected names"},
    {RNN, "RNN/14 x,w,r activations:s=Tanh", G, "attribute 'activations': expected names"},
    {RNN, "RNN/14 x,w,r clip:f=1", U, "no clip, activation_alpha or input_forget"},
    {RNN, "RNN/14 x,w,r activation_alpha:n=1", U, "no clip, activation_alpha or input_forget"},
    {RNN, "RNN/14 x,w,r input_forget:i=1", U, "no clip, activation_alpha or input_forget"},
    {RNN, "RNN/14 x,w,r hidden_size:i=0", U, "expected X of rank 3"},
    {RNN, "RNN/14 x,w,r hidden_size:i=70000", U, "expected X of rank 3"},
    {RNN, "RNN/14 x,w,r hidden_size:i=5", G, "input 'w': expected shape [1, 5, 3]"},
    {RNN "b:f[2,8]=*", "RNN/14 x,w,r,b", G, "input 'b': expected shape [1, 8, 0]"},
    {RNN "b:f[8]=*", "RNN/14 x,w,r,b", G, "input 'b': expected shape"},
    {RNN "l:l[1]=1", "RNN/14 x,w,r,,l", G, "sequence_lens: expected 1 int32 elements"},
    {RNN "l:i[2]=1,1", "RNN/14 x,w,r,,l", G, "sequence_lens: expected 1 int32 elements"},
    {RNN "h:f[1,1,3]=*", "RNN/14 x,w,r,,,h", G, "input 'h': expected shape [1, 1, 4]"},
    {"x:f[2,3] w:f[1,4,3]=* r:f[1,4,4]=*", "RNN/14 x,w,r", U, "expected X of rank 3"},
};

TEST(refused) {
    size_t i, failures = 0;
    for (i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        static graph_builder b;
        epctx_buffer blob;
        epctx_npu npu;
        epctx_backend backend;
        epctx_error error;
        epctx_status status;
        uint8_t take[1] = {0};
        char name[80];
        bool good;
        read_graph(&b, refusals[i].inputs, refusals[i].node);
        snprintf(name, sizeof name, "%.*s", (int)b.nodes[0].name.size, b.nodes[0].name.data);
        epctx_error_clear(&error);
        status = gb_compile(&b, NULL, &blob, &error);
        good = status == refusals[i].status && strstr(error.message, refusals[i].message) &&
               strstr(error.message, name) && blob.size == 0;
        epctx_buffer_free(&blob);
        if (!good) {
            printf("note %s: %s, \"%s\"; expected %s, \"%s\"\n", refusals[i].node,
                   epctx_status_name(status), error.message, epctx_status_name(refusals[i].status),
                   refusals[i].message);
            failures++;
        }
        /* What is refused is not taken to begin with; a graph that is none fails as such. */
        epctx_error_clear(&error);
        CHECK_INT(epctx_npu_init(&npu, NULL, &backend, &error), EPCTX_OK);
        status = backend.capability_fn(backend.self, &b.graph, take, &error);
        if ((status != EPCTX_OK && status != G) || take[0] != 0) {
            printf("note %s: capability %s, %s\n", refusals[i].node, take[0] ? "takes it" : "fails",
                   error.message);
            failures++;
        }
        gb_free(&b);
    }
    CHECK(failures == 0, "%zu of %zu cases fail, see the notes", failures, i);
}

/* -- flags: attributes that ONNX defines for 0 and 1 -- */

/* One operator for each flag, and for each way in which an operator reads it. */
static const struct {
    const char *inputs, *node, *flag;
} flags[] = {
    {"x:f[2,3]", "ReduceSum/13 x", "keepdims"},
    {"x:f[2,3]", "ReduceL2/13 x", "keepdims"},
    {"x:f[2,3]", "ArgMax/13 x", "keepdims"},
    {"x:f[2,3]", "ArgMin/13 x", "select_last_index"},
    {"x:f[2,3]", "ReduceMax/18 x", "noop_with_empty_axes"},
    {"x:f[2,3] k:l[1]=1", "TopK/11 x,k ->a,b", "largest"},
    {"x:f[2,3] k:l[1]=1", "TopK/11 x,k ->a,b", "sorted"},
    {"x:f[2,3] a:l[]=1", "CumSum/14 x,a", "exclusive"},
    {"x:f[2,3] a:l[]=1", "CumSum/14 x,a", "reverse"},
    {"x:f[3,3]", "Gemm/13 x,x", "transA"},
    {"x:f[3,3]", "Gemm/13 x,x", "transB"},
    {"x:f[3,3]", "Trilu/14 x", "upper"},
    {"x:f[3,3] s:l[1]=9", "Reshape/14 x,s", "allowzero"},
    {"x:f[3,3]", "Dropout/6 x", "is_test"},
    {"x:f[3,3]", "Mod/13 x,x", "fmod"},
    {"x:f[3,3]", "Add/6 x,x", "broadcast"},
    {"x:f[3,3]", "IsInf/10 x", "detect_negative"},
    {"x:f[3,3]", "IsInf/10 x", "detect_positive"},
    {IMAGE, "AveragePool/19 x kernel_shape:l=2,2", "ceil_mode"},
    {IMAGE, "AveragePool/19 x kernel_shape:l=2,2", "count_include_pad"},
    {IMAGE, "MaxPool/12 x kernel_shape:l=2,2", "ceil_mode"},
    {IMAGE, "MaxPool/12 x kernel_shape:l=2,2", "storage_order"},
    {"x:f[2,3] s:f[3]=*", "BatchNormalization/15 x,s,s,s,s", "training_mode"},
    {"x:f[2,3] s:f[3]=*", "BatchNormalization/7 x,s,s,s,s", "spatial"},
    {"x:f[1,4] s:f[2]=1,0.5", "Resize/18 x,,s mode:s=linear", "antialias"},
    {"x:f[1,4] s:f[2]=1,0.5", "Resize/18 x,,s mode:s=cubic", "exclude_outside"},
    {"x:f[1,2,4,4]", "Attention/23 x,x,x", "is_causal"},
    {"x:f[1,2,3,4] a:f[1,3,2]", "RotaryEmbedding/23 x,a,a", "interleaved"},
    {"x:f[1,1,2,2] g:f[1,1,3,2]", "GridSample/20 x,g", "align_corners"},
    {"t:f[1,2,3] s:l[4]=1,1,2,2", "AffineGrid/20 t,s", "align_corners"},
    {"x:f[3] n:l[]=3", "HannWindow/17 n", "periodic"},
    {"x:f[1,4,2]", "DFT/17 x", "inverse"},
    {"x:f[1,4,1]", "DFT/17 x", "onesided"},
    {"x:f[1,8,1] n:l[]=2 s:l[]=4", "STFT/17 x,n,,s", "onesided"},
    {"x:f[2,1,3] w:f[1,4,3]=* r:f[1,4,4]=*", "RNN/14 x,w,r", "layout"},
    {"x:f[2,1,3] w:f[1,12,3]=* r:f[1,12,4]=*", "GRU/14 x,w,r", "linear_before_reset"},
    {"x:f[2,1,3] w:f[1,16,3]=* r:f[1,16,4]=*", "LSTM/14 x,w,r", "input_forget"},
};

TEST(flags_are_0_or_1) {
    static const char *const values[3] = {"2", "-1", "4294967296"};
    size_t i, k, failures = 0;
    for (i = 0; i < 3 * sizeof flags / sizeof flags[0]; i++) {
        const size_t row = i / 3;
        static graph_builder b;
        epctx_buffer blob;
        epctx_error error;
        char node[200], why[80];
        snprintf(node, sizeof node, "%s %s:i=%s", flags[row].node, flags[row].flag, values[i % 3]);
        snprintf(why, sizeof why, "attribute '%s': expected 0 or 1, found %s", flags[row].flag,
                 values[i % 3]);
        read_graph(&b, flags[row].inputs, node);
        epctx_error_clear(&error);
        if (gb_compile(&b, NULL, &blob, &error) != U || !strstr(error.message, why)) {
            printf("note %s: \"%s\", expected \"%s\"\n", node, error.message, why);
            failures++;
        }
        epctx_buffer_free(&blob);
        gb_free(&b);
        for (k = 0; k < 2; k++) { /* what they are defined for is no reason to refuse */
            snprintf(node, sizeof node, "%s %s:i=%zu", flags[row].node, flags[row].flag, k);
            read_graph(&b, flags[row].inputs, node);
            epctx_error_clear(&error);
            gb_compile(&b, NULL, &blob, &error);
            if (strstr(error.message, "expected 0 or 1")) {
                printf("note %s: \"%s\"\n", node, error.message);
                failures++;
            }
            epctx_buffer_free(&blob);
            gb_free(&b);
        }
    }
    CHECK(failures == 0, "%zu of %zu cases fail, see the notes", failures, i);
}

/* -- forms -- */

static const struct {
    const char *inputs, *node; /* run-time inputs hold 1, 2, 3 ... */
    char type;                 /* of the result */
    const char *values;
} forms[] = {
    {"x:f[1]", "Constant/13  value_int:i=7", 'l', "7"},
    {"x:f[1]", "Constant/13  value_ints:l=7,-8", 'l', "7,-8"},
    {"x:f[1]", "Constant/13  value_float:f=1.5", 'f', "1.5"},
    {"x:f[1]", "Constant/13  value_floats:n=1.5,-2", 'f', "1.5,-2"},
    {"x:f[3]", "Swish/24 x", 'f', "0.7310586,1.7615942,2.8577224"},
    {"x:f[3] z:l[1]=0", "CastLike/15 x,z", 'l', "1,2,3"},
    {"x:f[1,2]", "ReduceLogSumExp/13 x axes:l=1", 'f', "2.3132617"},
    {"x:f[2,3] z:f[2]=10,20", "Add/6 x,z broadcast:i=1 axis:i=0", 'f', "11,12,13,24,25,26"},
    {"x:f[2]", "Max/13 x", 'f', "1,2"},
    {"x:f[1] a:f[]=1 b:f[]=2.5 d:f[]=0.5", "Range/11 a,b,d", 'f', "1,1.5,2"},
    {"x:f[1] a:f[]=1 b:f[]=2.6 d:f[]=0.5", "Range/11 a,b,d", 'f', "1,1.5,2,2.5"},
    /* the quotient is a little more than 10, as a float it is 10 */
    {"x:f[1] a:f[]=0 b:f[]=7 d:f[]=0.7", "Range/11 a,b,d", 'f',
     "0,0.7,1.4,2.1,2.8,3.5,4.2,4.9,5.6,6.3,7"},
    {"x:f[3] a:f[]=3 b:f[]=2", "Clip/13 x,a,b", 'f', "2,2,2"},
    /* an alpha below 0: e^(x / alpha) of a great number */
    {"x:f[1] a:f[4]=-1e10,-1,-0.5,2", "Celu/12 a alpha:f=-1", 'f', "-inf,-1.7182818,-0.6487213,2"},
    {"x:f[1,2,2]", "Softmax/1 x", 'f', "0.0320586,0.0871443,0.2368828,0.6439143"},
    {"x:f[1,2,1,2] s:f[2]=* b:f[2]=0,0", "GroupNormalization/21 x,s,b num_groups:i=1", 'f',
     "-1.3416353,-0.4472118,0.4472118,1.3416353"},
    {"x:f[2] e:f[]=0.5", "Pow/13 x,e", 'f', "1,1.4142135"},
    {"x:f[2] e:f[]=-1", "Pow/13 x,e", 'f', "1,0.5"},
    {"x:f[1,1,2] w:f[1,1,2]=* r:f[1,1,1]=*", "RNN/14 x,w,r activations:S=Relu", 'f', "3"},
    /* positions 1, 2, 3 of 0..4; one position in their middle; one that lies outside */
    {"x:f[1,1,1,5] r:f[8]=0,0,0,0.25,1,1,1,0.75 s:l[4]=1,1,1,3",
     "Resize/13 x,r,,s mode:s=linear coordinate_transformation_mode:s=tf_crop_and_resize", 'f',
     "2,3,4"},
    {"x:f[1,1,1,5] r:f[8]=0,0,0,0.25,1,1,1,0.75 s:l[4]=1,1,1,1",
     "Resize/13 x,r,,s mode:s=linear coordinate_transformation_mode:s=tf_crop_and_resize", 'f',
     "3"},
    {"x:f[1,1,1,5] r:f[8]=0,0,0,-0.25,1,1,1,0.25 s:l[4]=1,1,1,3",
     "Resize/13 x,r,,s mode:s=linear coordinate_transformation_mode:s=tf_crop_and_resize", 'f',
     "0,1,2"},
    {"x:f[1,1,1,5] s:f[4]=1,1,1,0.5",
     "Resize/19 x,,s mode:s=linear coordinate_transformation_mode:s=half_pixel_symmetric", 'f',
     "2,4"},
    /* downsampled, the edge stands for what lies outside, but with exclude_outside */
    {"x:f[1,4] s:f[2]=1,0.5", "Resize/18 x,,s mode:s=linear antialias:i=1", 'f', "1.625,3.375"},
    {"x:f[1,4] s:f[2]=1,0.5", "Resize/18 x,,s mode:s=linear antialias:i=1 exclude_outside:i=1", 'f',
     "1.7142857,3.2857143"},
    {"x:f[1,4] s:f[2]=1,0.5", "Resize/18 x,,s mode:s=cubic antialias:i=1", 'f',
     "1.4902344,3.5097656"},
    /* what rounding moves off a tie is one: 2.4999998 of 2.5, as in ONNX Runtime */
    {"x:f[6,1] s:f[2]=2.8439786,1",
     "Resize/19 x,,s nearest_mode:s=round_prefer_ceil "
     "coordinate_transformation_mode:s=half_pixel_symmetric",
     'f', "1,1,1,2,2,2,3,3,4,4,4,5,5,5,6,6,6"},
    {"x:f[7,1] s:l[2]=8,1",
     "Resize/13 x,,,s nearest_mode:s=round_prefer_ceil coordinate_transformation_mode:s=asymmetric",
     'f', "1,2,3,4,5,5,6,7"},
    {"x:f[1,1,3,1] s:f[4]=1,1,0.75,1", "Resize/10 x,s", 'f', "1,3"},
    /* the region does not change the size */
    {"x:f[1,5] r:f[4]=0,0.25,1,0.75 s:f[2]=1,0.6",
     "Resize/13 x,r,s mode:s=linear coordinate_transformation_mode:s=tf_crop_and_resize", 'f',
     "2,3,4"},
    /* a limit that is NaN: all of the region is outside */
    {"x:f[1,5] r:f[4]=0,nan,1,1 s:l[2]=1,2",
     "Resize/13 x,r,,s coordinate_transformation_mode:s=tf_crop_and_resize", 'f', "0,0"},
    {"x:f[1] a:f[2]=1,-2", "Neg/13 a", 'f', "-1,2"},
    {"x:f[4] k:l[1]=2", "TopK/11 x,k", 'f', "4,3"},
    {"x:f[4] k:l[1]=3", "TopK/11 x,k largest:i=0", 'f', "1,2,3"},
    /* between four elements, in their middle, and outside */
    {"x:f[1,1,2,2] g:f[1,1,3,2]=-1,-1,0,0,3,0", "GridSample/20 x,g", 'f', "0.25,2.5,0"},
    {"x:f[1,1,2,2] g:f[1,1,3,2]=-1,-1,0,0,3,0", "GridSample/20 x,g padding_mode:s=reflection", 'f',
     "1,2.5,2"},
    {"x:f[1,1,2,2] g:f[1,1,2,2]=nan,0,inf,1e30", "GridSample/20 x,g padding_mode:s=border", 'f',
     "2,4"},
    {"x:f[1,1,2,2] w:f[1,1,1,1]=1 o:f[1,2,2,2]=0,0,0,0,1,0,0.5,-1 m:f[1,1,2,2]=1,0,0.5,2",
     "DeformConv/19 x,w,o,,m", 'f', "2,0,1.75,6"},
    {"x:f[1,2,2] a:l[2]=1,3 b:l[2]=1,2", "Col2Im/18 x,a,b", 'f', "1,5,4"},
    {"x:f[1,1,1,2,3]", "AveragePool/19 x kernel_shape:l=1,2,2", 'f', "3,4"},
    {"x:f[1,1,1,1,2]", "AveragePool/19 x kernel_shape:l=1,1,2 pads:l=0,0,1,0,0,0", 'f', "1,1.5"},
    {"x:f[1,1,1,2,2] w:f[1,1,1,1,2]=1,10", "Conv/11 x,w", 'f', "21,43"},
    {"x:f[1,1,1,1,2] w:f[1,1,1,1,2]=1,10 b:f[1]=100", "ConvTranspose/11 x,w,b", 'f', "101,112,120"},
    {"x:f[1,1,2]", "LpPool/18 x kernel_shape:l=2 p:i=1", 'f', "3"},
    {"x:f[1,1,2] i:l[1,1,2]=1,2", "MaxUnpool/11 x,i kernel_shape:l=2 strides:l=2", 'f', "0,1,2,0"},
    {"x:f[2,2] n:l[2]=2,1", "ReverseSequence/10 x,n", 'f', "3,2,1,4"},
    {"x:f[2,2]", "Det/11 x", 'f', "-2"},
    {"x:f[1,3,3]=2,0,1,0,3,0,1,0,2 z:f[]", "Det/11 x", 'f', "9"},
    {"x:f[1,1,2,2] r:f[1,4]=0,0,2,2 b:l[1]=0", "RoiAlign/16 x,r,b sampling_ratio:i=1", 'f', "2.5"},
    {"x:f[1,1,2,2] r:f[1,4]=0,0,1,4 b:l[1]=0",
     "RoiAlign/10 x,r,b sampling_ratio:i=1 output_height:i=4", 'f', "2.5,3.5,0,0"},
    {"x:f[2,1] s:f[1]=1 b:f[1]=0 m:f[1]=0 v:f[1]=1",
     "BatchNormalization/15 x,s,b,m,v training_mode:i=1 epsilon:f=0", 'f', "-1,1"},
    {"x:f[2] r:f[]=0 t:b[]=1", "Dropout/13 x,r,t", 'f', "1,2"},
    {"x:f[3] n:l[]=3", "HannWindow/17 n periodic:i=0", 'f', "0,1,0"},
    {"x:f[3] n:l[]=2", "HammingWindow/17 n", 'f', "0.0869565234,1"},
    {"x:f[3] n:l[]=2", "BlackmanWindow/17 n", 'f', "0,1"},
    {"x:f[1] n:l[]=1 m:l[]=20 l:f[]=0 u:f[]=8", "MelWeightMatrix/17 n,m,m,l,u", 'f',
     "0,0.5,1,0.666666687,0.333333343,0,0,0,0,0,0"},
    {"x:f[1] n:l[]=1 m:l[]=20 s:l[]=21 l:f[]=4 u:f[]=10", "MelWeightMatrix/17 n,m,s,l,u", 'f',
     "0,0,0,0,0,1,0.5,0,0,0,0"},
    {"x:f[1] n:l[]=1 m:l[]=20 s:l[]=21 l:f[]=3 u:f[]=9", "MelWeightMatrix/17 n,m,s,l,u", 'f',
     "0,0,0,0,1,0.5,0,0,0,0,0"},
    {"x:f[1,3,1] u:f[1,2,1]=8,9 i:l[1]=2", "TensorScatter/24 x,u,i mode:s=circular", 'f', "9,2,8"},
    {"x:f[1] t:f[1,2,3]=1,0,0,0,1,0 s:l[4]=1,1,1,2", "AffineGrid/20 t,s", 'f', "-0.5,0,0.5,0"},
    /* before opset 4 an axis of its own */
    {"x:f[1,2] z:f[1,1]=9", "Concat/3 x,z", 'f', "1,2,9"},
    /* one result, of a window that begins in the padding */
    {"x:f[1,1,3,3] w:f[1,1,3,3]=*", "Conv/11 x,w pads:l=1,1,1,1 strides:l=5,5", 'f', "12"},
    /* more than 32 bits */
    {"x:f[1] a:l[1]=1 p:l[2]=1,1 v:l[]=1099511627777", "Pad/13 a,p,v", 'l',
     "1099511627777,1,1099511627777"},
    /* 28 / 24: no mean of the means 0, 0, 0 and 2 */
    {"x:f[1] a:l[4,1,6]=1,1,1,1,1,0,1,1,1,1,1,0,1,1,1,1,1,0,3,2,2,2,2,2",
     "ReduceMean/13 a axes:l=2,0 keepdims:i=0", 'l', "1"},
};

TEST(rare_forms) {
    size_t i, k, failures = 0;
    for (i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        static graph_builder b;
        double want[40];
        float x[40], floats[40];
        int64_t ints[40];
        const void *in[1];
        void *out[1];
        size_t count;
        epctx_error error;
        epctx_status status;
        bool good;
        for (k = 0; k < 40; k++) x[k] = (float)(k + 1);
        read_numbers(forms[i].values, want, 40, &count);
        read_graph(&b, forms[i].inputs, forms[i].node);
        in[0] = x;
        out[0] = forms[i].type == 'l' ? (void *)ints : (void *)floats;
        epctx_error_clear(&error);
        status = gb_run(&b, in, out, &error);
        good = status == EPCTX_OK;
        for (k = 0; good && k < count; k++) {
            const double got = forms[i].type == 'l' ? (double)ints[k] : (double)floats[k];
            good = got == want[k] || fabs(got - want[k]) < 1e-5; /* infinities, too */
            if (!good) printf("note element %zu is %g, expected %g\n", k, got, want[k]);
        }
        if (!good) {
            printf("note %s (%s): %s\n", forms[i].node, forms[i].inputs, error.message);
            failures++;
        }
        gb_free(&b);
    }
    CHECK(failures == 0, "%zu of %zu cases fail, see the notes", failures, i);
}

int main(int argc, char **argv) {
    RUN(refused);
    RUN(flags_are_0_or_1);
    RUN(rare_forms);
    return test_end();
}
