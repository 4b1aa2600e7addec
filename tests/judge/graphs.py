#!/usr/bin/python3
"""Graphs of 4 to 20 operators at random, held against ONNX Runtime.

    tests/judge/graphs.py EPCTX [--cases N] [--seed S] [--keep FOLDER] [KIND...]

KIND: image (convolutions and what stands between them), quantized (the same between QuantizeLinear
and DequantizeLinear), sequence (products, norms, moves). Every value that nothing reads is an
output. A number may differ by 1e-4 of the largest of its output (sums are ordered differently) and
by five times as much as ONNX Runtime with its optimizations differs from itself without: some
graphs enlarge differences. Of quantized graphs one element in twenty may also be more steps off.
The same arguments give the same graphs. Prints the lines that tests/run reads.
"""
import array
import os
import random
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import onnx_schema  # noqa: E402
from operators import (CODES, FLOAT, INT64, INT8, UINT8, add_attrs, batch,  # noqa: E402
                       product)

INT32 = 6


class Graph:
    """A model under construction. Values are names; self.types: name -> (elem_type, dims)."""

    def __init__(self, r, kind):
        self.r, self.kind, self.op = r, kind, kind
        self.types, self.read, self.given, self.log = {}, set(), [], []
        self.proto = onnx_schema.ModelProto(ir_version=8)
        self.proto.opset_import.add(domain="", version=17)
        self.proto.graph.name = "random"

    def __str__(self):
        return "; ".join(self.log)

    def name(self, elem_type, dims, stem="v"):
        name = f"{stem}{len(self.types)}"
        self.types[name] = elem_type, list(dims)
        return name

    def input(self, dims):
        name = self.name(FLOAT, dims, "x")
        tensor = self.proto.graph.input.add(name=name).type.tensor_type
        tensor.elem_type = FLOAT
        for dim in dims:
            tensor.shape.dim.add(dim_value=dim)
        self.given.append((name, [self.r.uniform(-2, 2) for _ in range(product(dims))]))
        return name

    def constant(self, elem_type, dims, values):
        name = self.name(elem_type, dims, "c")
        self.proto.graph.initializer.add(name=name, data_type=elem_type, dims=dims,
                                         raw_data=array.array(CODES[elem_type],
                                                              values).tobytes())
        self.read.add(name)
        return name

    def floats(self, dims, low=-1.0, high=1.0):
        return self.constant(FLOAT, dims, [self.r.uniform(low, high)
                                           for _ in range(product(dims))])

    def ints(self, values):
        return self.constant(INT64, [len(values)], values)

    def node(self, op, inputs, dims, elem_type=FLOAT, **attrs):
        node = self.proto.graph.node.add(op_type=op, name=f"n{len(self.log)}")
        node.input.extend(inputs)
        self.read.update(inputs)
        out = self.name(elem_type, dims)
        node.output.append(out)
        add_attrs(node, attrs)
        self.log.append(f"{out}{list(dims)}={op}({','.join(inputs)} {attrs or ''})")
        return out

    def dims(self, value):
        return self.types[value][1]

    def finish(self):
        self.outputs = []
        self.out_names = [n for n, (t, _) in self.types.items() if n not in self.read]
        for name in self.out_names:
            elem_type, dims = self.types[name]
            tensor = self.proto.graph.output.add(name=name).type.tensor_type
            tensor.elem_type = elem_type
            for dim in dims:
                tensor.shape.dim.add(dim_value=dim)
            self.outputs.append(elem_type)
        self.inputs = [(FLOAT, self.dims(n), v, False) for n, v in self.given]
        return self

    def write(self, folder):
        os.mkdir(folder)
        with open(os.path.join(folder, "model.onnx"), "wb") as out:
            out.write(self.proto.SerializeToString())
        with open(os.path.join(folder, "io.txt"), "w", encoding="utf-8") as out:
            for at, (name, _) in enumerate(self.given):
                dims = ",".join(map(str, self.dims(name))) or "-"
                out.write(f"input {at} {FLOAT} {dims} {name}\n")
            for i, name in enumerate(self.out_names):
                out.write(f"output {i} {self.types[name][0]} - {name}\n")
        for at, (_, values) in enumerate(self.given):
            with open(os.path.join(folder, f"input_{at}.bin"), "wb") as out:
                array.array("f", values).tofile(out)

    def close(self, got, want):
        """Position of the first difference that is too large, or None."""
        return self.between(got, want, want)

    def between(self, got, want, again):
        """The same, where ONNX Runtime has two answers."""
        if not len(got) == len(want) == len(again):
            return 0
        near = 1e-5 + 1e-4 * max((abs(w) for w in want if abs(w) < 3e38), default=0)
        spread = [abs(w - a) for w, a in zip(want, again) if abs(w - a) < 3e38]
        near += 5 * max(spread, default=0)
        far = [at for at, (g, w, a) in enumerate(zip(got, want, again))
               if g not in (w, a) and not (g != g and (w != w or a != a)) and
               not min(abs(g - w), abs(g - a)) <= near]
        if self.kind == "quantized" and len(far) <= 2 + len(want) // 20:
            return None
        return far[0] if far else None


# -- operators: each takes a value and returns a new one, or None where it does not fit --

ACTIVATIONS = ["Relu", "Sigmoid", "Tanh", "HardSwish", "Elu", "LeakyRelu", "Softplus", "Erf",
               "HardSigmoid", "Abs", "Neg"]


def activation(g, x):
    return g.node(g.r.choice(ACTIVATIONS), [x], g.dims(x))


def clip(g, x):
    return g.node("Clip", [x, g.constant(FLOAT, [], [-1.0 * g.r.randint(0, 1)]),
                           g.constant(FLOAT, [], [g.r.choice([1.0, 6.0])])], g.dims(x))


def window(g, x, most=5):
    """kernel, strides, pads, dilations and the dimensions that come out; None: too large."""
    high, wide = g.dims(x)[2:]
    kernel = [g.r.choice([1, 1, 2, 3, 3, most]) for _ in range(2)]
    if g.r.random() < 0.6:
        kernel[1] = kernel[0]
    strides = [g.r.choice([1, 1, 1, 2])] * 2
    dilations = [g.r.choice([1, 1, 1, 1, 2])] * 2
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    pads = [g.r.randint(0, min(2, k // 2)) for k in kernel + kernel]
    if g.r.random() < 0.5:
        pads = [k // 2 for k in kernel + kernel]
    out = [(size + pads[i] + pads[i + 2] - reach[i]) // strides[i] + 1
           for i, size in enumerate((high, wide))]
    return (kernel, strides, pads, dilations, out) if min(out) >= 1 else None


def conv(g, x):
    w = window(g, x)
    if not w:
        return None
    kernel, strides, pads, dilations, out = w
    c = g.dims(x)[1]
    m = g.r.choice([c, 1, 3, 8, 16, 17, 24, 32, 64, 70])
    group = 1
    style = g.r.random()
    if style < 0.25:
        group, m = c, c * g.r.choice([1, 1, 2])
    elif style < 0.35 and c % 2 == 0:
        group, m = 2, m + m % 2
    scale = 1.5 / (c // group * product(kernel)) ** 0.5
    inputs = [x, g.floats([m, c // group] + kernel, -scale, scale)]
    if g.r.random() < 0.8:
        inputs.append(g.floats([m]))
    return g.node("Conv", inputs, [g.dims(x)[0], m] + out, kernel_shape=kernel, strides=strides,
                  pads=pads, dilations=dilations, group=group)


def conv_transpose(g, x):
    n, c, high, wide = g.dims(x)
    m, k = g.r.choice([1, 4, 9]), g.r.choice([2, 3])
    if c * high * wide > 20000:
        return None
    return g.node("ConvTranspose", [x, g.floats([c, m, k, k], -0.3, 0.3)],
                  [n, m, (high - 1) * 2 + k, (wide - 1) * 2 + k], strides=[2, 2])


def pool(g, x):
    w = window(g, x, 3)
    if not w:
        return None
    kernel, strides, pads, dilations, out = w
    pads = [min(p, k - 1) for p, k in zip(pads, kernel + kernel)]
    out = [(size + pads[i] + pads[i + 2] - kernel[i]) // strides[i] + 1
           for i, size in enumerate(g.dims(x)[2:])]
    if min(out) < 1:
        return None
    op = g.r.choice(["MaxPool", "AveragePool"])
    attrs = {} if op == "MaxPool" else {"count_include_pad": g.r.choice([0, 1])}
    return g.node(op, [x], g.dims(x)[:2] + out, kernel_shape=kernel, strides=strides, pads=pads,
                  **attrs)


def global_pool(g, x):
    if g.r.random() < 0.5:
        return None
    return g.node(g.r.choice(["GlobalAveragePool", "GlobalMaxPool"]), [x], g.dims(x)[:2] + [1, 1])


def batch_norm(g, x):
    c = g.dims(x)[1]
    return g.node("BatchNormalization", [x, g.floats([c], 0.5, 1.5), g.floats([c]), g.floats([c]),
                                         g.floats([c], 0.5, 2)], g.dims(x))


def same(g, x):
    """Another value of the same shape, else a constant."""
    like = [v for v, t in g.types.items() if t == g.types[x] and v[0] != "c" and v != x]
    return g.r.choice(like) if like and g.r.random() < 0.8 else g.floats(g.dims(x))


def join(g, x):
    return g.node(g.r.choice(["Add", "Mul", "Sub", "Add"]), [x, same(g, x)], g.dims(x))


def broadcast(g, x):
    dims = [d if g.r.random() < 0.5 else 1 for d in g.dims(x)]
    while dims and g.r.random() < 0.4 and dims[0] == 1:
        dims.pop(0)
    pair = [x, g.floats(dims, 0.5, 2)]
    op = g.r.choice(["Add", "Mul", "Sub", "Div", "Max", "Min"])
    if op != "Div" and g.r.random() < 0.3:
        pair.reverse()
    return g.node(op, pair, g.dims(x))


def gate(g, x):
    """x times a value per channel that comes from x, as in squeeze and excitation."""
    mean = g.node("ReduceMean", [x], g.dims(x)[:2] + [1, 1], axes=[2, 3], keepdims=1)
    return g.node("Mul", [x, g.node("Sigmoid", [mean], g.dims(mean))], g.dims(x))


def resize(g, x):
    n, c, high, wide = g.dims(x)
    if high * wide > 600:
        return None
    linear = g.r.random() < 0.5
    attrs = {"mode": "linear", "coordinate_transformation_mode": g.r.choice(
        ["half_pixel", "align_corners", "asymmetric"])} if linear else {
            "mode": "nearest", "coordinate_transformation_mode": "asymmetric",
            "nearest_mode": "floor"}
    return g.node("Resize", [x, "", g.floats_of([1.0, 1.0, 2.0, 2.0])],
                  [n, c, 2 * high, 2 * wide], **attrs)


def floats_of(self, values):
    return self.constant(FLOAT, [len(values)], values)


Graph.floats_of = floats_of


def concat(g, x):
    rank = len(g.dims(x))
    axis = g.r.choice([1, 1, 1, rank - 1, 0])
    parts = [x] + [same(g, x) for _ in range(g.r.randint(1, 2))]
    if g.r.random() < 0.3:
        parts.reverse()
    dims = g.dims(x)[:]
    if axis >= rank or product(dims) * len(parts) > 60000:
        return None
    dims[axis] *= len(parts)
    return g.node("Concat", parts, dims, axis=axis)


def cut(g, x):
    axis = g.r.randrange(len(g.dims(x)))
    size = g.dims(x)[axis]
    if size < 2:
        return None
    first = g.r.randint(0, size - 2)
    last = g.r.randint(first + 1, size)
    dims = g.dims(x)[:]
    step = g.r.choice([1, 1, 2])
    dims[axis] = (last - first + step - 1) // step
    return g.node("Slice", [x, g.ints([first]), g.ints([last]), g.ints([axis]), g.ints([step])],
                  dims)


def pad(g, x):
    dims = g.dims(x)
    pads = [0, 0] + [g.r.randint(0, 2) for _ in dims[2:]]
    pads += [0, 0] + [g.r.randint(0, 2) for _ in dims[2:]]
    mode = g.r.choice(["constant", "constant", "edge"])
    half = len(dims)
    return g.node("Pad", [x, g.ints(pads)], [d + pads[i] + pads[i + half]
                                             for i, d in enumerate(dims)], mode=mode)


def transpose(g, x):
    perm = list(range(len(g.dims(x))))
    g.r.shuffle(perm)
    if len(perm) == 4 and g.r.random() < 0.5:
        perm = g.r.choice([[0, 2, 3, 1], [0, 3, 1, 2]])
    return g.node("Transpose", [x], [g.dims(x)[p] for p in perm], perm=perm)


def reshape(g, x):
    dims = g.dims(x)[:]
    if len(dims) == 4 and g.r.random() < 0.6:
        dims = [dims[0], dims[1] * dims[2] * dims[3] // dims[3], dims[3]]
    else:
        at = g.r.randrange(len(dims) - 1)
        dims[at:at + 2] = [dims[at] * dims[at + 1]]
    return g.node("Reshape", [x, g.ints(dims)], dims)


def channel_shuffle(g, x):
    """Channels of several groups take turns; then one part of them, or all."""
    n, c, high, wide = g.dims(x)
    groups = g.r.choice([2, 3, 4])
    if c % groups or c == groups:
        return None
    each = c // groups
    y = g.node("Reshape", [x, g.ints([n, groups, each, high * wide])],
               [n, groups, each, high * wide])
    y = g.node("Transpose", [y], [n, each, groups, high * wide], perm=[0, 2, 1, 3])
    form = g.r.randrange(3)
    if form == 0:
        return g.node("Reshape", [y, g.ints([n, c, high, wide])], [n, c, high, wide])
    axis = g.r.choice([1, 2])
    left = [groups if axis == 1 else each, high * wide]
    y = g.node("Gather", [y, g.constant(INT64, [], [g.r.randrange(-1, 2)])], [n] + left, axis=axis)
    y = g.node("Reshape", [y, g.ints([n, left[0], high, wide])], [n, left[0], high, wide])
    return conv(g, y) if form == 1 else y


def shuffle(g, x):
    n, c, high, wide = g.dims(x)
    if c % 4 == 0 and g.r.random() < 0.5:
        return g.node("DepthToSpace", [x], [n, c // 4, 2 * high, 2 * wide], blocksize=2,
                      mode=g.r.choice(["DCR", "CRD"]))
    if high % 2 == 0 and wide % 2 == 0:
        return g.node("SpaceToDepth", [x], [n, 4 * c, high // 2, wide // 2], blocksize=2)
    return None


def product_of(g, x):
    dims = g.dims(x)
    n = g.r.choice([1, 5, 16, 33, 64])
    scale = 1.5 / dims[-1] ** 0.5
    y = g.node("MatMul", [x, g.floats([dims[-1], n], -scale, scale)], dims[:-1] + [n])
    return g.node("Add", [y, g.floats([n])], g.dims(y)) if g.r.random() < 0.6 else y


def gemm(g, x):
    dims = g.dims(x)
    y = g.node("Flatten", [x], [dims[0], product(dims[1:])], axis=1)
    n, k = g.r.choice([1, 7, 32]), product(dims[1:])
    if k > 4000:
        return None
    scale = 1.5 / k ** 0.5
    trans = g.r.choice([0, 1])
    return g.node("Gemm", [y, g.floats([n, k] if trans else [k, n], -scale, scale),
                           g.floats([n])], [dims[0], n], transB=trans)


def attention(g, x):
    n, length, width = g.dims(x)
    q, k, v = (g.node("MatMul", [x, g.floats([width, width], -0.3, 0.3)], g.dims(x))
               for _ in range(3))
    k = g.node("Transpose", [k], [n, width, length], perm=[0, 2, 1])
    scores = g.node("MatMul", [q, k], [n, length, length])
    return g.node("MatMul", [g.node("Softmax", [scores], g.dims(scores), axis=-1), v], g.dims(x))


def softmax(g, x):
    return g.node("Softmax", [x], g.dims(x), axis=g.r.choice([-1, 1]))


def layer_norm(g, x):
    width = g.dims(x)[-1]
    return g.node("LayerNormalization", [x, g.floats([width], 0.5, 1.5), g.floats([width])],
                  g.dims(x), axis=-1, epsilon=0.01)  # of equal values rounding is all there is


def instance_norm(g, x):
    c = g.dims(x)[1]
    if product(g.dims(x)[2:]) < 4:
        return None
    return g.node("InstanceNormalization", [x, g.floats([c], 0.5, 1.5), g.floats([c])], g.dims(x),
                  epsilon=0.01)


def reduce(g, x):
    axis = g.r.randrange(1, len(g.dims(x)))
    dims = g.dims(x)[:]
    dims[axis] = 1
    op = g.r.choice(["ReduceMean", "ReduceMax", "ReduceMin"])
    return g.node(op, [x], dims, axes=[axis], keepdims=1)


def requantize(g, x, scale=None, zero=None, elem_type=None):
    """x between QuantizeLinear and DequantizeLinear."""
    elem_type = elem_type or g.byte
    scale = scale or g.r.uniform(0.012, 0.06)  # odd ones: ties are rare
    zero = g.r.randint(100, 150) - (128 if elem_type == INT8 else 0) if zero is None else zero
    s, z = g.constant(FLOAT, [], [scale]), g.constant(elem_type, [], [zero])
    q = g.node("QuantizeLinear", [x, s, z], g.dims(x), elem_type)
    return g.node("DequantizeLinear", [q, s, z], g.dims(x))


def quantized_weights(g, dims, per_channel):
    scales = [g.r.uniform(0.2, 1) * 1.5 / (product(dims[1:]) ** 0.5 * 127)
              for _ in range(dims[0] if per_channel else 1)]
    w = g.constant(INT8, dims, [g.r.randint(-127, 127) for _ in range(product(dims))])
    attrs = {"axis": 0} if per_channel else {}
    shape = [dims[0]] if per_channel else []
    zero = g.constant(INT8, shape, [0] * len(scales))
    return g.node("DequantizeLinear", [w, g.constant(FLOAT, shape, scales), zero], dims,
                  **attrs), scales


def quantized_conv(g, x):
    w = window(g, x)
    if not w:
        return None
    kernel, strides, pads, dilations, out = w
    c = g.dims(x)[1]
    m = g.r.choice([1, 3, 8, 16, 17, 32, 64])
    group = 1
    if g.r.random() < 0.3:
        group = m = c
    weights, scales = quantized_weights(g, [m, c // group] + kernel, g.r.random() < 0.6)
    inputs = [x, weights]
    if g.r.random() < 0.8:
        bias = g.constant(INT32, [m], [g.r.randint(-2000, 2000) for _ in range(m)])
        steps = [0.02 * s for s in (scales if len(scales) > 1 else scales * m)]
        inputs.append(g.node("DequantizeLinear", [bias, g.constant(FLOAT, [m], steps)], [m],
                             axis=0))
    y = g.node("Conv", inputs, [g.dims(x)[0], m] + out, kernel_shape=kernel, strides=strides,
               pads=pads, dilations=dilations, group=group)
    if g.r.random() < 0.5:
        y = g.node("Relu", [y], g.dims(y))
    return requantize(g, y)


def quantized_gemm(g, x):
    dims = g.dims(x)
    k = product(dims[1:])
    if k > 3000:
        return None
    y = requantize(g, g.node("Flatten", [x], [dims[0], k], axis=1), 0.02, None)
    n = g.r.choice([1, 10, 32])
    weights, _ = quantized_weights(g, [n, k], False)
    return requantize(g, g.node("Gemm", [y, weights], [dims[0], n], transB=1))


def between(maker):
    """The same operator with its result quantized."""
    def make(g, x):
        y = maker(g, x)
        return y and requantize(g, y)
    return make


def gated(g, x):
    """A function of x alone, of several steps."""
    gate = g.node("Sigmoid", [x], g.dims(x))
    if g.r.random() < 0.5:
        gate = g.node("Add", [x, g.constant(FLOAT, [], [3.0])], g.dims(x))
        gate = g.node("Clip", [gate, g.constant(FLOAT, [], [0.0]), g.constant(FLOAT, [], [6.0])],
                      g.dims(x))
        gate = g.node("Mul", [gate, g.constant(FLOAT, [1], [1 / 6])], g.dims(x))
    return g.node("Mul", [x, gate], g.dims(x))


def joined(g, x):
    y = join(g, x)
    return y and g.node("Relu", [y], g.dims(y))


IMAGE = [conv] * 6 + [activation, activation, clip, pool, global_pool, batch_norm, join, join,
                      broadcast, gate, resize, concat, concat, cut, pad, transpose, shuffle,
                      channel_shuffle, channel_shuffle, instance_norm, conv_transpose, reduce,
                      softmax, reshape, gemm]
QUANTIZED = [quantized_conv] * 6 + [between(m) for m in (
    activation, clip, pool, global_pool, join, join, joined, gated, resize, concat, cut, pad,
    transpose, softmax, reduce, reshape)] + [activation, conv, quantized_gemm]
SEQUENCE = [product_of] * 4 + [activation, join, broadcast, concat, cut, transpose, reshape,
                               softmax, layer_norm, layer_norm, reduce, attention, attention]
KINDS = {"image": IMAGE, "quantized": QUANTIZED, "sequence": SEQUENCE}


def make(r, kind):
    g = Graph(r, kind)
    g.byte = r.choice([UINT8, INT8])
    if kind == "sequence":
        x = g.input([r.choice([1, 1, 2]), r.randint(1, 20), r.choice([1, 8, 17, 32, 64])])
    else:
        x = g.input([r.choice([1, 1, 1, 2]), r.choice([1, 3, 3, 8, 16, 20, 32]), r.randint(1, 20),
                     r.randint(1, 20)])
    if kind == "quantized":
        x = requantize(g, x)
    wanted, values, tries = r.randint(4, 20), [x], 0
    while len(g.log) < wanted and tries < 200:
        tries += 1
        x = values[-1] if r.random() < 0.8 else r.choice(values)
        maker = r.choice(KINDS[kind])
        rank = len(g.dims(x))
        if rank != 4 and maker not in SEQUENCE and maker not in (activation, clip):
            continue
        if rank < 2 or (maker in (product_of, attention, layer_norm) and rank != 3):
            continue
        y = maker(g, x)
        if y and product(g.dims(y)) <= 100000:
            values.append(y)
    return g.finish()


def main():
    words, options = sys.argv[1:], {"--cases": "200", "--seed": "1", "--keep": ""}
    for name in list(options):
        if name in words:
            at = words.index(name)
            options[name] = words[at + 1]
            del words[at:at + 2]
    if not words:
        sys.exit(__doc__)
    kinds = words[1:] or sorted(KINDS)
    r = random.Random(int(options["--seed"]))
    counts, failed, total = {}, {}, int(options["--cases"])
    for first in range(0, total, 250):
        cases = [make(r, kinds[i % len(kinds)]) for i in range(first, min(first + 250, total))]
        root = tempfile.mkdtemp()
        try:
            verdicts = batch(words[0], cases, root, os.cpu_count() or 1, True)
            for i, (case, (word, text)) in enumerate(zip(cases, verdicts)):
                counts[word] = counts.get(word, 0) + 1
                if word == "wrong":
                    failed.setdefault(case.kind, []).append(f"graph {first + i}: {text}: {case}")
                if word in ("wrong", "refused") and options["--keep"]:
                    shutil.copytree(os.path.join(root, str(i)),
                                    os.path.join(options["--keep"], f"{word}_{first + i}"))
                if word == "refused" and options["--keep"]:
                    print(f"note refused: graph {first + i}: {text}")
        finally:
            shutil.rmtree(root)
    for kind in kinds:
        for text in failed.get(kind, [])[:4]:
            print(f"FAIL graphs {kind}: expected ONNX Runtime's result, found {text}")
        if kind not in failed:
            print(f"ok graphs {kind}")
    print("note " + ", ".join(f"{count} {word}" for word, count in sorted(counts.items())))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
