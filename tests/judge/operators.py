#!/usr/bin/python3
"""Single operators at random, held against ONNX Runtime.

    tests/judge/operators.py EPCTX [--cases N] [--seed S] [--keep] [OPERATOR... | edges | ties]

Makes models of one node with random shapes, attributes, types and values, runs each by `epctx run`
and by ONNX Runtime (tests/judge/ort_run.py) and compares: shapes and integers are equal, floats to
|d| <= absolute + relative * |reference|.
A case that either side refuses counts as such. The same arguments give the same cases.

Prints the lines that tests/run reads.
"""
import array
import concurrent.futures
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import onnx_schema  # noqa: E402

FLOAT, UINT8, INT8, UINT16, INT16, INT32, INT64, BOOL, DOUBLE, UINT32, UINT64 = (
    1, 2, 3, 4, 5, 6, 7, 9, 11, 12, 13)
GraphProto = type(onnx_schema.ModelProto().graph)
CODES = {FLOAT: "f", UINT8: "B", INT8: "b", UINT16: "H", INT16: "h", INT32: "i", INT64: "q",
         BOOL: "B", DOUBLE: "d", UINT32: "I", UINT64: "Q"}
EXTREMES = [0.0, -0.0, 1e-45, -1e-45, 1e-40, 1.1754944e-38, 1e-30, -1e-20, 1e-8, 0.1, 0.5, -0.5,
            0.9999999, 1.0, -1.0, 1.5, 2.5, -2.5, 3.0, 10.0, -10.0, 17.0, 40.0, 88.0, 88.8, -88.8,
            103.9, -104.0,
            1e4, 65536.0, -8388607.5, 1e10, -1e10, 1e20, -1e30, 3e38, -3e38, math.inf, -math.inf,
            math.nan]


def product(dims):
    return math.prod(dims)


def add_attrs(node, attrs):
    for name, value in attrs.items():
        if value is None:
            continue
        attr = node.attribute.add(name=name)
        if isinstance(value, float):
            attr.type, attr.f = 1, value
        elif isinstance(value, int):
            attr.type, attr.i = 2, value
        elif isinstance(value, str):
            attr.type, attr.s = 3, value.encode()
        elif isinstance(value, GraphProto):
            attr.type = 5
            attr.g.CopyFrom(value)
        elif value and isinstance(value[0], float):
            attr.type = 6
            attr.floats.extend(value)
        elif value and isinstance(value[0], str):
            attr.type = 8
            attr.strings.extend(v.encode() for v in value)
        else:
            attr.type = 7
            attr.ints.extend(value)


def add_node(graph, op, inputs, outputs, domain="", attrs=None):
    node = graph.node.add(op_type=op, domain=domain, input=inputs, output=outputs)
    add_attrs(node, attrs or {})


class Case:
    """One node. inputs: (elem_type, dims, values, constant) or None for one left out."""

    def __init__(self, op, version, inputs, outputs, relative=1e-5, absolute=1e-6, domain="",
                 **attrs):
        self.op, self.version, self.inputs, self.outputs = op, version, inputs, outputs
        self.relative, self.absolute, self.domain, self.attrs = relative, absolute, domain, attrs

    def __str__(self):
        shapes = [i and f"{CODES[i[0]]}{list(i[1])}" + (str(i[2]) if i[3] and len(i[2]) < 20
                                                        else "")
                  for i in self.inputs]
        return f"{self.op}-{self.version} {shapes} {self.attrs}"

    def model(self):
        model = onnx_schema.ModelProto(ir_version=8)
        model.opset_import.add(domain=self.domain, version=self.version)
        graph = model.graph
        graph.name = "one"
        for i, given in enumerate(self.inputs):
            if not given:
                continue
            elem_type, dims, values, constant = given
            if constant:
                graph.initializer.add(name=f"x{i}", data_type=elem_type, dims=dims,
                                      raw_data=array.array(CODES[elem_type], values).tobytes())
            else:
                tensor = graph.input.add(name=f"x{i}").type.tensor_type
                tensor.elem_type = elem_type
                for dim in dims:
                    tensor.shape.dim.add(dim_value=dim)
                tensor.shape.SetInParent()
        for i, elem_type in enumerate(self.outputs):
            graph.output.add(name=f"y{i}").type.tensor_type.elem_type = elem_type
        self.add_nodes(graph)
        return model.SerializeToString()

    def add_nodes(self, graph):
        add_node(graph, self.op, [f"x{i}" if given else "" for i, given in enumerate(self.inputs)],
                 [f"y{i}" for i in range(len(self.outputs))], self.domain, self.attrs)

    def write(self, folder):
        os.mkdir(folder)
        with open(os.path.join(folder, "model.onnx"), "wb") as out:
            out.write(self.model())
        given = [(i, x) for i, x in enumerate(self.inputs) if x and not x[3]]
        with open(os.path.join(folder, "io.txt"), "w", encoding="utf-8") as out:
            for at, (i, (elem_type, dims, _, _)) in enumerate(given):
                out.write(f"input {at} {elem_type} {','.join(map(str, dims)) or '-'} x{i}\n")
            for i, elem_type in enumerate(self.outputs):
                out.write(f"output {i} {elem_type} - y{i}\n")
        for at, (_, (elem_type, _, values, _)) in enumerate(given):
            with open(os.path.join(folder, f"input_{at}.bin"), "wb") as out:
                array.array(CODES[elem_type], values).tofile(out)

    def close(self, got, want):
        """Position of the first difference, or None."""
        if len(got) != len(want):
            return 0
        for at, (g, w) in enumerate(zip(got, want)):
            if g == w or (g != g and w != w):
                continue
            if isinstance(g, int) or math.isinf(w) or \
                    not abs(g - w) <= self.absolute + self.relative * abs(w):
                return at
        return None


class Careful(Case):
    """To be refused if ONNX Runtime refuses it."""


# -- random parts --

def floats(r, dims, constant=False, extreme=0.0, low=-4.0, high=4.0):
    values = [r.choice(EXTREMES) if r.random() < extreme else r.uniform(low, high)
              for _ in range(product(dims))]
    return FLOAT, dims, array.array("f", values).tolist(), constant


def ints(r, elem_type, dims, low, high, constant=False):
    return elem_type, dims, [r.randint(low, high) for _ in range(product(dims))], constant


def whole(values, elem_type=INT64):
    return elem_type, [len(values)], list(values), True


def shape_of(r, low=1, high=4, most=7):
    return [r.randint(1, most) for _ in range(r.randint(low, high))]


def resize(r):
    version = r.choice([10, 11, 13, 18, 18, 19, 19])
    if version == 10:
        dims = [1, 2, r.randint(1, 9), r.randint(1, 9)]
        scales = [1.0, 1.0, r.choice([0.5, 0.75, 1.5, 2.0, 3.0]), r.uniform(0.4, 3.0)]
        return Case("Resize", 10, [floats(r, dims),
                                   (FLOAT, [4], array.array("f", scales).tolist(), True)], [FLOAT],
                    1e-4, 2e-5,
                    mode=r.choice(["nearest", "linear"]))
    mode = r.choice(["nearest", "linear", "linear", "cubic", "cubic"])
    rank = r.choice({"nearest": [1, 2, 3, 4], "linear": [2, 3, 4, 4], "cubic": [2, 4, 4]}[mode])
    dims = [r.randint(1, 9) for _ in range(rank)]
    transforms = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric",
                  "tf_crop_and_resize"]
    transforms += ["tf_half_pixel_for_nn"] if version < 13 else []
    transforms += ["half_pixel_symmetric"] if version >= 19 else []
    transform = r.choice(transforms)
    attrs = {"mode": mode, "coordinate_transformation_mode": transform}
    axes = list(range(rank))
    if r.random() < 0.6 and version >= 18:
        axes = sorted(r.sample(axes, min(rank, 2)))
        r.random() < 0.2 and axes.reverse()
        attrs["axes"] = [a - rank if r.random() < 0.2 else a for a in axes]
    moved = set(r.sample(axes, min(len(axes), 2))) if mode != "nearest" else set(axes)
    if rank == 4 and mode != "nearest":  # ORT has no others
        moved = {2, 3} & set(axes)
    if mode == "nearest":
        attrs["nearest_mode"] = r.choice(["round_prefer_floor", "round_prefer_ceil", "floor",
                                          "ceil"])
    if mode == "cubic":
        attrs["cubic_coeff_a"] = r.choice([None, -0.5, -0.75, -1.0, 0.25])
    if mode != "nearest" and version >= 18 and r.random() < 0.5:
        attrs["antialias"] = 1
    if (mode == "cubic" or attrs.get("antialias")) and r.random() < 0.4:
        attrs["exclude_outside"] = 1
    roi = None
    if transform == "tf_crop_and_resize":
        edge = lambda a, b, still: still if r.random() < 0.2 else r.uniform(a, b)
        first = [edge(-0.2, 0.4, 0.0) if a in moved else 0.0 for a in axes]
        last = [edge(0.6, 1.3, 1.0) if a in moved else 1.0 for a in axes]
        roi = (FLOAT, [2 * len(axes)], array.array("f", first + last).tolist(), True)
        attrs["extrapolation_value"] = r.choice([None, 0.0, 10.0, -2.5])
    scales = sizes = None
    if r.random() < 0.5:
        nice = [0.25, 0.5, 0.6, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0, 1 / 3, 0.2, 4.0]
        chosen = [(r.choice(nice) if r.random() < 0.7 else r.uniform(0.2, 4.0)) if a in moved
                  else 1.0
                  for a in axes]
        scales = (FLOAT, [len(axes)], array.array("f", chosen).tolist(), True)
    else:
        sizes = whole([r.randint(1, 20) if a in moved else dims[a] for a in axes])
        if (version >= 18 and r.random() < 0.3 and transform != "tf_crop_and_resize"
                and min(attrs.get("axes", [0])) >= 0):
            attrs["keep_aspect_ratio_policy"] = r.choice(["not_larger", "not_smaller", "stretch"])
    empty = (FLOAT, [0], [], True)
    none = empty if version == 11 else None
    inputs = [floats(r, dims), roi or none, scales or (empty if sizes else none)]
    return Case("Resize", version, inputs + ([sizes] if sizes else []), [FLOAT], 1e-4, 2e-5,
                **attrs)


# -- element by element --

UNARY = {  # version, attributes by chance, relative, absolute
    "Abs": 13, "Acos": 7, "Acosh": 9, "Asin": 7, "Asinh": 9, "Atan": 7, "Atanh": 9, "Ceil": 13,
    "Celu": 12, "Cos": 7,
    "Cosh": 9, "Elu": 6, "Erf": 13, "Exp": 13, "Floor": 13, "Gelu": 20, "HardSigmoid": 6,
    "HardSwish": 14, "LeakyRelu": 16,
    "Log": 13, "Mish": 18, "Neg": 13, "Reciprocal": 13, "Relu": 14, "Round": 11, "Selu": 6,
    "Sigmoid": 13,
    "Sign": 13, "Sin": 7, "Sinh": 9, "Softplus": 1, "Softsign": 1, "Sqrt": 13, "Tan": 7, "Tanh": 13,
    "ThresholdedRelu": 10, "Shrink": 9, "IsNaN": 13, "IsInf": 10}


def unary(op):
    def make(r):
        dims = shape_of(r)
        attrs = {}
        if op in ("Elu", "Celu", "LeakyRelu", "ThresholdedRelu",
                  "HardSigmoid") and r.random() < 0.5:
            attrs["alpha"] = array.array("f", [r.uniform(0.1, 2)])[0]
        version, domain = UNARY[op], ""
        if op == "Gelu":
            attrs["approximate"] = r.choice(["none", "tanh", None])
            if attrs["approximate"] is None and r.random() < 0.7:
                version, domain = 1, "com.microsoft"
        wide = 10.0 ** r.choice([-3, 0, 0, 0.7, 2, 5])
        return Case(op, version, [floats(r, dims, extreme=0.4, low=-wide, high=wide)],
                    [BOOL if op[:2] == "Is" else FLOAT], 2e-5, 1e-6, domain, **attrs)
    return make


def other_shape(r, dims):
    """One that broadcasts with `dims`."""
    return [1 if r.random() < 0.3 else d for d in dims[r.choice([0, 0, r.randint(0, len(dims))]):]]


BINARY = {"Add": 14, "Sub": 14, "Mul": 14, "Div": 14, "Pow": 15, "Mod": 13, "Min": 13, "Max": 13,
          "PRelu": 16, "Equal": 13,
          "Less": 13, "Greater": 13, "LessOrEqual": 16, "GreaterOrEqual": 16, "And": 7, "Or": 7,
          "Xor": 7, "BitShift": 11,
          "BitwiseAnd": 18}


def binary(op):
    logic = op in ("Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual", "And", "Or", "Xor")

    def make(r):
        dims = shape_of(r)
        second = other_shape(r, dims)
        attrs = {}
        if op in ("And", "Or", "Xor"):
            inputs = [ints(r, BOOL, d, 0, 1) for d in (dims, second)]
        elif op == "BitShift":
            inputs = [ints(r, UINT8, dims, 0, 255), ints(r, UINT8, second, 0, 7)]
            attrs["direction"] = r.choice(["LEFT", "RIGHT"])
        elif op == "BitwiseAnd" or (op != "PRelu" and r.random() < 0.4):
            wide = op in ("Less", "Greater", "Equal", "LessOrEqual", "GreaterOrEqual", "Pow")
            elem_type = r.choice([INT32, INT64] + ([] if wide else [INT8, UINT8]))
            top = {INT32: 2 ** 31 - 1, INT64: 2 ** 63 - 1, INT8: 127, UINT8: 255}[elem_type]
            top = r.choice([top, min(top, 30), 3])
            low = 0 if elem_type == UINT8 else -top
            if op == "Pow":
                inputs = [ints(r, elem_type, dims, -9, 9), ints(r, elem_type, second, 0, 5)]
            else:
                inputs = [ints(r, elem_type, dims, low, top),
                          ints(r, elem_type, second, 1 if op in ("Div", "Mod") else low, top)]
            if op == "Mod":  # the other one of large numbers is inexact in ONNX Runtime: a double
                attrs["fmod"] = 0 if top > 2 ** 53 else r.choice([0, 1])
        else:
            wide = 10.0 ** r.choice([0, 0, 0, 1, 3])
            inputs = [floats(r, d, extreme=0.3, low=-wide, high=wide) for d in (dims, second)]
            if op == "Mod":
                attrs["fmod"] = 1
        if op not in ("PRelu", "Pow", "Mod", "BitShift") and r.random() < 0.3:
            inputs.reverse()
        return Case(op, BINARY[op], inputs, [BOOL if logic else inputs[0][0]], 1e-5, 1e-6, **attrs)
    return make


# -- along axes --

def reduction(op):
    def make(r):
        dims = shape_of(r, 0 if op == "ReduceSum" else 1)
        axes = r.sample(range(len(dims)), r.randint(0, len(dims)))
        version = 13 if op == "ReduceSum" else r.choice([13, 18])
        axes_given = whole([a - len(dims) if r.random() < 0.3 else a
                            for a in axes]) if axes else None
        attrs = {"keepdims": r.choice([0, 1])}
        wide = 10.0 ** r.choice([-2, 0, 0, 2]) if op != "ReduceProd" else 2.0
        extreme = 0
        if op in ("ReduceMax", "ReduceMin", "ReduceLogSumExp", "ReduceL1", "ReduceL2", "ReduceSum",
                  "ReduceMean"):
            extreme = r.choice([0, 0, 0.1])
        low = 0.01 if op == "ReduceLogSum" else -wide
        x = floats(r, dims, extreme=extreme, low=low, high=wide)
        if r.random() < 0.2 and op in ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceMean",
                                       "ReduceProd"):
            low, high = (-1, 1) if op == "ReduceProd" else (-3, 9)
            x = ints(r, r.choice([INT32, INT64]), dims, low, high)
        if extreme:  # overflow within a sum depends on the order
            x = (x[0], x[1], [v if abs(v) < 1e15 or math.isinf(v) else 3.0 for v in x[2]], x[3])
        inputs = [x]
        if axes and (op == "ReduceSum" or version == 18):
            inputs.append(axes_given)
        elif axes:
            attrs["axes"] = axes
        if (op == "ReduceSum" or version == 18) and not axes and r.random() < 0.3:
            attrs["noop_with_empty_axes"] = 1
        if extreme and op in ("ReduceSum", "ReduceMean"):  # large ones may cancel each other out
            wide = max([wide] + [0.1 * abs(v) for v in x[2] if abs(v) < 1e15])
        return Case(op, version, inputs, [x[0]], 1e-5, 1e-5 * max(wide, 0.1), **attrs)
    return make


def softmax(op):
    def make(r):
        dims = shape_of(r)
        attrs = {"axis": r.randint(-len(dims), len(dims) - 1)}
        wide = r.choice([1.0, 5.0, 50.0, 1000.0])
        x = floats(r, dims, extreme=r.choice([0, 0, 0.1]), low=-wide, high=wide)
        if op == "Hardmax":
            x = (x[0], x[1], [v if v == v else 1.0 for v in x[2]], x[3])
        return Case(op, r.choice([11, 13]), [x], [FLOAT], 2e-5, 1e-6, **attrs)
    return make


def norm(op):
    def make(r):
        dims = shape_of(r, 3, 4)
        c = dims[1]
        epsilon = r.choice([1e-5, 1e-3])
        epsilon = array.array("f", [epsilon])[0]
        fixed = r.random() < 0.7
        if op == "BatchNormalization":
            return Case(op, 15, [floats(r, dims)] + [floats(r, [c], fixed) for _ in range(3)] +
                        [floats(r, [c], fixed, low=0.1)], [FLOAT], 1e-4, 1e-4, epsilon=epsilon)
        if op == "InstanceNormalization":
            return Case(op, 6, [floats(r, dims), floats(r, [c], fixed), floats(r, [c], fixed)],
                        [FLOAT], 1e-3, 1e-3, epsilon=epsilon)
        if op == "LRN":
            return Case(op, 13, [floats(r, dims)], [FLOAT], 1e-4, 1e-5, size=r.choice([1, 3, 5, 7]),
                        alpha=epsilon, beta=0.75, bias=1.0)
        if op == "LpNormalization":
            return Case(op, 1, [floats(r, dims)], [FLOAT], 1e-4, 1e-5,
                        axis=r.randint(0, len(dims) - 1), p=r.choice([1, 2]))
        axis = r.randint(-len(dims), len(dims) - 1)
        tail = dims[axis:] if axis < 0 else dims[axis:]
        scale = [floats(r, tail, fixed)] + ([floats(r, tail, fixed)] if r.random() < 0.5
                                            and op == "LayerNormalization" else [])
        return Case(op, 23 if op == "RMSNormalization" else 17, [floats(r, dims)] + scale, [FLOAT],
                    1e-3, 1e-3, axis=axis, epsilon=epsilon)
    return make


# -- products --

def product_shapes(r, deep):
    m, n, k = r.randint(1, 6), r.randint(1, 20), r.choice(deep)
    batch = r.choice([[], [], [2], [2, 3]])
    second = r.choice([[], batch])
    return batch + [m, k], second + [k, n]


DEPTHS = [1, 3, 16, 64, 200, 258, 259, 300, 516, 517, 1000, 2100]


def bytes_of(r, dims, elem_type, constant=False, edge=False, beside=None):
    """Beside uint8, ORT saturates sums of two products on machines without VNNI: small numbers."""
    low, high = (0, 255) if elem_type == UINT8 else (-64, 63) if beside == UINT8 else (-128, 127)
    if edge:
        return ints(r, elem_type, dims, r.choice([low, high - 1]), high, constant)
    return ints(r, elem_type, dims, low, high, constant)


def zero_of(r, elem_type, constant=True, dims=()):
    low, high = (-128, 127) if elem_type == INT8 else (0, 255)
    return ints(r, elem_type, list(dims), r.choice([low, r.randint(low, high), 0]), high,
                constant) if r.random() < 0.7 else \
        (elem_type, list(dims), [0] * product(dims), constant)


def matmul(op):
    def make(r):
        a, b = product_shapes(r, DEPTHS)
        fixed = r.random() < 0.6
        if op == "MatMul":
            return Case(op, 13, [floats(r, a), floats(r, b, fixed)], [FLOAT], 1e-4, 1e-3)
        ta, tb = r.choice([UINT8, UINT8, INT8]), r.choice([UINT8, INT8])
        edge = r.random() < 0.4
        xa, xb = bytes_of(r, a, ta, False, edge), bytes_of(r, b, tb, fixed, edge, ta)
        if op == "MatMulInteger":
            inputs = [xa, xb]
            if r.random() < 0.7:
                column = len(b) == 2 and r.random() < 0.3
                inputs += [zero_of(r, ta), zero_of(r, tb, True, [b[-1]] if column else [])]
            return Case(op, 10, inputs, [INT32])
        scale = lambda low, high: floats(r, [], True, low=low, high=high)
        return Case(op, 10, [xa, scale(0.01, 0.05), zero_of(r, ta), xb, scale(0.01, 0.05),
                             zero_of(r, tb),
                             scale(0.1, 3), zero_of(r, ta)], [ta], 0, 0)
    return make


def conv(op):
    def make(r):
        axes = r.choice([1, 2, 2, 3])
        absolute = 1e-3
        group = r.choice([1, 1, 1, 2, 3])
        channels = group * r.choice([1, 2, 4, 30 if op != "Conv" else 3, 65 if op != "Conv" else 5])
        outs = group * r.choice([1, 2, 3, 8])
        if r.random() < 0.2:
            group = channels = r.choice([2, 5, 8])
            outs = channels * r.choice([1, 2])
        spatial = [r.randint(3, 8) for _ in range(axes)]
        kernel = [r.randint(1, 3) for _ in spatial]
        attrs = {"kernel_shape": kernel, "group": group}
        if r.random() < 0.5:
            attrs["strides"] = [r.randint(1, 2) for _ in spatial]
        if r.random() < 0.5:
            attrs["pads"] = [r.randint(0, k - 1) for k in kernel * 2]
        elif r.random() < 0.5:
            attrs["auto_pad"] = r.choice(["SAME_UPPER", "SAME_LOWER", "VALID"])
        if r.random() < 0.2 and all(s > 2 * k for s, k in zip(spatial, kernel)):
            attrs["dilations"] = [2 for _ in spatial]
        if op == "Conv" and r.random() < 0.1:  # such that the compiler makes Winograd of it
            group, channels, outs = 1, r.randint(16, 70), r.randint(16, 140)
            spatial, kernel = [r.randint(9, 40), r.randint(9, 40)], [3, 3]
            attrs = {"kernel_shape": kernel, "pads": [r.randint(0, 2) for _ in range(4)]}
            absolute = 4e-3  # sums of magnitudes up to 3,000, rounded at 2^-20 of that
        x, w = [r.randint(1, 2), channels] + spatial, [outs, channels // group] + kernel
        if op == "Conv":
            bias = [floats(r, [outs], True)] if r.random() < 0.5 else []
            return Case(op, 11, [floats(r, x), floats(r, w, r.random() < 0.8)] + bias, [FLOAT],
                        1e-4, absolute, **attrs)
        if op == "ConvTranspose":
            attrs.pop("auto_pad", None)
            w = [channels, outs // group] + kernel
            bias = [floats(r, [outs], r.random() < 0.7)] if r.random() < 0.5 else []
            if r.random() < 0.4:
                attrs["output_padding"] = [r.randrange(n) for n in attrs.get("strides", kernel)]
                attrs.setdefault("strides", kernel)
            return Case(op, 11, [floats(r, x), floats(r, w, r.random() < 0.8)] + bias, [FLOAT],
                        1e-4, 1e-3, **attrs)
        tx, edge = UINT8 if op == "ConvInteger" else r.choice([UINT8, INT8]), r.random() < 0.4
        tw = UINT8 if op == "ConvInteger" else r.choice([UINT8, INT8]) if tx == UINT8 else INT8
        xx, xw = bytes_of(r, x, tx, False, edge), bytes_of(r, w, tw, r.random() < 0.7, edge, tx)
        if op == "ConvInteger":
            zeros = []
            if r.random() < 0.7:
                zeros = [zero_of(r, tx)] + ([zero_of(r, tw)] if r.random() < 0.7 else [])
            return Case(op, 10, [xx, xw] + zeros, [INT32], **attrs)
        scale = lambda low, high, dims=(): floats(r, list(dims), True, low=low, high=high)
        channel = [outs] if r.random() < 0.4 else []
        zero = (tw, channel, [0 if tw == INT8 else 128] * product(channel), True)
        bias = [ints(r, INT32, [outs], -3000, 3000, True)] if r.random() < 0.5 else []
        return Case(op, 10, [xx, scale(0.01, 0.05), zero_of(r, tx), xw, scale(0.01, 0.05, channel),
                             zero,
                             scale(0.1, 3), zero_of(r, tx)] + bias, [tx], 0, 0, **attrs)
    return make


def gemm(r):
    m, n, k = r.randint(1, 7), r.randint(1, 20), r.randint(1, 40)
    ta, tb = r.choice([0, 1]), r.choice([0, 1])
    c = [floats(r, r.choice([[], [n], [1, n], [m, 1], [m, n], [1]]),
                r.random() < 0.5)] if r.random() < 0.7 else []
    return Case("Gemm", 13, [floats(r, [k, m] if ta else [m, k]),
                             floats(r, [n, k] if tb else [k, n], r.random() < 0.5)] + c,
                [FLOAT], 1e-4, 1e-4, transA=ta, transB=tb, alpha=r.choice([1.0, 0.5]),
                beta=r.choice([1.0, 0.25, 0.0]))


def pool(op):
    def make(r):
        x = [r.randint(1, 2), r.randint(1, 4)] + [r.randint(3, 9)
                                                 for _ in range(r.choice([1, 2, 2, 3]))]
        if op.startswith("Global"):
            return Case(op, 1, [floats(r, x)], [FLOAT])
        kernel = [r.randint(1, 3) for _ in x[2:]]
        attrs = {"kernel_shape": kernel, "strides": [r.randint(1, 3) for _ in kernel]}
        if r.random() < 0.4:
            attrs["pads"] = [r.randint(0, k - 1) for k in kernel * 2]
        elif r.random() < 0.3:
            attrs["auto_pad"] = r.choice(["SAME_UPPER", "SAME_LOWER", "VALID"])
        if r.random() < 0.4:
            attrs["ceil_mode"] = 1
        if op == "AveragePool" and r.random() < 0.5:
            attrs["count_include_pad"] = 1
        if r.random() < 0.2 and min(x[2:]) > 5:
            attrs["dilations"] = [2] * len(kernel)
        if op == "LpPool":
            return Case(op, 18, [floats(r, x)], [FLOAT], 1e-4, 1e-5, p=r.randint(1, 3), **attrs)
        if op == "MaxPool" and r.random() < 0.3:
            return Case(op, 12, [floats(r, x)], [FLOAT, INT64], storage_order=r.choice([0, 0, 1]),
                        **attrs)
        return Case(op, 19 if op == "AveragePool" else 12, [floats(r, x)], [FLOAT], 1e-5, 1e-5,
                    **attrs)
    return make


# -- quantisation --

def quantize(r):
    dims = shape_of(r, 1, 3)
    elem_type = r.choice([UINT8, INT8])
    wide = r.choice([1.0, 10.0, 300.0])
    x = floats(r, dims, extreme=0.2, low=-wide, high=wide)
    x = (x[0], x[1], [v if v == v else 0.5 for v in x[2]], False)
    axis = r.randint(0, len(dims) - 1)
    per = [dims[axis]] if r.random() < 0.4 else []
    scales = [r.choice([0.5, 0.25, 0.1, 0.013]) for _ in range(product(per))]
    return Case("QuantizeLinear", 13, [x, (FLOAT, per, scales, True),
                                       zero_of(r, elem_type, True, per)], [elem_type], 0, 0,
                                       axis=axis if per else None)


def dequantize(r):
    dims = shape_of(r, 1, 3)
    elem_type = r.choice([UINT8, INT8, INT32])
    axis = r.randint(0, len(dims) - 1)
    per = [dims[axis]] if r.random() < 0.4 else []
    x = ints(r, INT32, dims, -2 ** 31, 2 ** 31 - 1) if elem_type == INT32 else bytes_of(r, dims,
                                                                                        elem_type)
    zero = [] if elem_type == INT32 else [zero_of(r, elem_type, True, per)]
    return Case("DequantizeLinear", 13, [x, floats(r, per, True, low=0.01, high=2.0)] + zero,
                [FLOAT], 1e-7, 0, axis=axis if per else None)


def dynamic_quantize(r):
    wide = r.choice([0.1, 1.0, 100.0])
    return Case("DynamicQuantizeLinear", 11,
                [floats(r, shape_of(r), low=-wide * r.random(), high=wide)], [UINT8, FLOAT, UINT8],
                1e-6, 0)


def with_scale(r, x, low=0.01, high=0.1):
    """A tensor of bytes, its scale and zero point."""
    return [x, floats(r, [], True, low=low, high=high), zero_of(r, x[0])]


class Steps(Case):
    """One step off is not far: ONNX Runtime rounds in the middle, too."""

    off = seen = 0

    def close(self, got, want):
        if len(got) != len(want):
            return 0
        far = [abs(g - w) for g, w in zip(got, want)]
        Steps.off += sum(1 for d in far if d == 1)
        Steps.seen += len(far)
        return next((at for at, d in enumerate(far) if d > 1), None)


def quantized(op):
    def make(r):
        elem_type = r.choice([UINT8, INT8])
        dims = shape_of(r)
        some = lambda d: with_scale(r, bytes_of(r, d, elem_type))
        out = with_scale(r, bytes_of(r, [1], elem_type), 0.02, 0.3)[1:]
        attrs = {}
        if op in ("Add", "Mul"):
            inputs = some(dims) + some(other_shape(r, dims))
        elif op in ("AveragePool", "GlobalAveragePool"):
            plain = pool(op)(r)
            while len(plain.inputs[0][1]) < 4 or plain.attrs.get("dilations"):
                plain = pool(op)(r)
            inputs, attrs = some(plain.inputs[0][1]), plain.attrs
            if op[0] == "G":
                attrs["channels_last"] = 0
        elif op == "Concat":
            attrs["axis"] = r.randrange(len(dims))
            inputs = out + [x for _ in range(r.randint(1, 4)) for x in some(
                dims[:attrs["axis"]] + [r.randint(1, 5)] + dims[attrs["axis"] + 1:])]
            out = []
        elif op == "Where":
            inputs = [ints(r, BOOL, dims, 0, 1)] + some(other_shape(r, dims)) + some(dims)
        elif op == "Softmax":
            # at least two parts: of one alone, ONNX Runtime makes 0 (its table overflows)
            dims = [max(2, n) for n in dims[:3]] + [r.randint(2, 40)]
            attrs = {"axis": r.randint(-1, len(dims) - 1), "opset": r.choice([11, 13])}
            inputs = some(dims)
            out = [(FLOAT, [], [1 / 256], True), (elem_type, [], [-128 * (elem_type == INT8)],
                                                  True)]
        else:
            inputs = some(dims)
            if op == "LeakyRelu":
                attrs["alpha"] = array.array("f", [r.uniform(0.01, 1)])[0]
        return Steps("QLinear" + op, 1, inputs + out, [elem_type], domain="com.microsoft", **attrs)
    return make


def q_gemm(r):
    m, n, k = r.randint(1, 7), r.randint(1, 40), r.randint(1, 70)
    ta, tb = r.choice([0, 1]), r.choice([0, 1])
    elem_type = r.choice([UINT8, INT8])
    a = with_scale(r, bytes_of(r, [k, m] if ta else [m, k], elem_type))
    b = with_scale(r, bytes_of(r, [n, k] if tb else [k, n], INT8, r.random() < 0.8,
                               beside=elem_type))
    if r.random() < 0.3:
        b[1:] = [floats(r, [n], True, low=0.01, high=0.1), zero_of(r, INT8, True, [n])]
    bias = ints(r, INT32, r.choice([[n], [1, n]]), -3000, 3000, True) if r.random() < 0.6 else None
    out = with_scale(r, bytes_of(r, [1], elem_type), 0.1, 2)[1:] if r.random() < 0.8 else []
    case = Steps if out else Case
    return case("QGemm", 1, a + b + [bias] + out, [elem_type if out else FLOAT], 1e-4, 1e-4,
                domain="com.microsoft", transA=ta, transB=tb, alpha=r.choice([1.0, 0.5]))


# -- moves --

def moves(op):
    def make(r):
        dims = shape_of(r, 1, 4)
        rank = len(dims)
        elem_type = r.choice([FLOAT, INT64, INT32, UINT8, INT8])
        x = floats(r, dims, extreme=0.0 if op.startswith("Arg")
                   else 0.05) if elem_type == FLOAT else ints(r, elem_type, dims, 0, 100)
        if op == "Transpose":
            return Case(op, 13, [x], [elem_type], perm=r.sample(range(rank), rank))
        if op == "Slice":
            axes = r.sample(range(rank), r.randint(1, rank))
            return Case(op, 13, [x, whole([r.randint(-9, 8) for _ in axes]),
                                 whole([r.choice([r.randint(-9, 9), 2 ** 63 - 1, -2 ** 63])
                                        for _ in axes]),
                                 whole(axes), whole([r.choice([1, 1, 2, -1, -2]) for _ in axes])],
                                 [elem_type])
        if op == "Pad":
            mode = r.choice(["constant", "reflect", "edge", "wrap"])
            pads = [r.randint(-1 if mode == "constant" else 0, 2) if mode != "reflect"
                    else r.randint(0, min(2, d - 1)) for d in dims * 2]
            fill = [(elem_type, [], [3], True)] if r.random() < 0.5 and mode == "constant" else []
            return Case(op, 19 if mode == "wrap" else 13, [x, whole(pads)] + fill, [elem_type],
                        mode=mode)
        if op in ("Gather", "GatherElements"):
            axis = r.randint(0, rank - 1)
            shape = shape_of(r, 0, 2, 4) if op == "Gather" else [r.randint(1, d) for d in dims]
            index = ints(r, r.choice([INT64, INT32]), shape, -dims[axis], dims[axis] - 1,
                         r.random() < 0.5)
            return Case(op, 13, [x, index], [elem_type], axis=axis)
        if op == "Concat":
            axis = r.randint(-rank, rank - 1)
            more = list(dims)
            more[axis] = r.randint(1, 4)
            y = floats(r, more) if elem_type == FLOAT else ints(r, elem_type, more, 0, 100)
            return Case(op, 13, [x, y, x], [elem_type], axis=axis)
        if op == "Expand":
            wanted = shape_of(r, 1, 2, 3)[:0] + [r.choice([1, d]) if d > 1 else r.randint(1, 4)
                                                 for d in dims]
            return Case(op, 13, [x, whole(wanted)], [elem_type])
        if op == "Tile":
            return Case(op, 13, [x, whole([r.randint(1, 3) for _ in dims])], [elem_type])
        if op in ("ArgMax", "ArgMin"):
            if elem_type in (INT64, UINT8, INT8):
                x = floats(r, dims)
            elif elem_type == INT32:
                x = ints(r, INT32, dims, 0, 3)
            return Case(op, 13, [x], [INT64],
                        axis=r.randint(-rank, rank - 1), keepdims=r.choice([0, 1]),
                        select_last_index=r.choice([0, 1]))
        if op == "Cast":
            to = r.choice([FLOAT, INT64, INT32, UINT8, INT8, BOOL])
            if elem_type == FLOAT:
                x = floats(r, dims, low=0 if to == UINT8 else -100, high=100)
            return Case(op, 13, [x], [to], to=to)
        if op == "Trilu":
            x = floats(r, dims + [3]) if elem_type != INT64 else ints(r, INT64, dims + [3], 0, 9)
            return Case(op, 14, [x, (INT64, [], [r.randint(-3, 3)], True)], [x[0]],
                        upper=r.choice([0, 1]))
        if op == "CumSum":
            return Case(op, 14, [floats(r, dims), (INT64, [], [r.randint(-rank, rank - 1)], True)],
                        [FLOAT], 1e-5, 1e-5,
                        exclusive=r.choice([0, 1]), reverse=r.choice([0, 1]))
        if op == "Where":
            second = other_shape(r, dims)
            return Case(op, 16, [ints(r, BOOL, other_shape(r, dims), 0, 1),
                                 floats(r, dims, extreme=0.1), floats(r, second)], [FLOAT])
        if op == "Clip":
            low = r.uniform(-2, 2)
            bound = lambda v: (FLOAT, [], array.array("f", [v]).tolist(),
                               True) if r.random() < 0.8 else None
            return Case(op, 13, [floats(r, dims, extreme=0.2), bound(low),
                                 bound(low + r.uniform(-0.5, 3))], [FLOAT])
        if op == "DepthToSpace":
            return Case(op, 13, [floats(r, [1, 4 * r.randint(1, 3), 3, 2])], [FLOAT], blocksize=2,
                        mode=r.choice(["DCR", "CRD"]))
        return Case(op, 13, [floats(r, [2, 3, 4, 6])], [FLOAT], blocksize=2)
    return make


def cells(op):
    def make(r):
        length, batch = r.randint(1, 5), r.randint(1, 3)
        size, hidden = r.randint(1, 5), r.randint(1, 5)
        direction = r.choice(["forward", "reverse", "bidirectional"])
        d, gates = 2 if direction == "bidirectional" else 1, {"RNN": 1, "GRU": 3, "LSTM": 4}[op]
        inputs = [floats(r, [length, batch, size]),
                  floats(r, [d, gates * hidden, size], True, low=-1, high=1),
                  floats(r, [d, gates * hidden, hidden], True, low=-1, high=1),
                  floats(r, [d, 2 * gates * hidden], True, low=-1,
                         high=1) if r.random() < 0.7 else None,
                  None, floats(r, [d, batch, hidden]) if r.random() < 0.5 else None]
        attrs = {"hidden_size": hidden, "direction": direction}
        if op == "GRU":
            attrs["linear_before_reset"] = r.choice([0, 1])
        if op == "LSTM":
            inputs.append(floats(r, [d, batch, hidden]) if r.random() < 0.5 else None)
            if r.random() < 0.3:
                inputs.append(floats(r, [d, 3 * hidden], True, low=-1, high=1))
        return Case(op, 14, inputs, [FLOAT] * (3 if op == "LSTM" else 2), 1e-4, 1e-5, **attrs)
    return make


def lp(op):
    def make(r):
        p = r.choice([1, 2, 2, 3])
        if op == "LpNormalization":
            return Case(op, 22, [floats(r, shape_of(r))], [FLOAT], p=p if p < 3 else 2,
                        axis=r.choice([-1, 0]))
        return Case(op, 21, [floats(r, [r.randint(1, 2)] + shape_of(r, 2, 3))], [FLOAT], 1e-4,
                    p=p)
    return make


def cumsum(r):
    dims, x = shape_of(r), None
    x = floats(r, dims) if r.random() < 0.6 else ints(r, r.choice([INT32, INT64]), dims, -50, 50)
    return Case("CumSum", 14, [x, (r.choice([INT32, INT64]), [],
                                   [r.randrange(-len(dims), len(dims))], True)], [x[0]],
                1e-4, 1e-5, exclusive=r.choice([0, 1]), reverse=r.choice([0, 1]))


def bitwise_not(r):
    x = ints(r, r.choice([INT8, INT32, INT64]), shape_of(r), -100, 100)
    return Case("BitwiseNot", 18, [x], [x[0]])


def center(r):
    dims = shape_of(r)
    axes = r.sample(range(len(dims)), r.randint(1, len(dims))) if r.random() < 0.6 else None
    sizes = [max(1, dims[a] + r.randint(-3, 4)) for a in (range(len(dims)) if axes is None
                                                         else axes)]
    return Case("CenterCropPad", 18, [floats(r, dims), whole(sizes)], [FLOAT], axes=axes)


def rotary(r):
    batch, heads, length = r.randint(1, 2), r.randint(1, 4), r.randint(1, 6)
    width = 2 * r.randint(1, 6)
    turned = 2 * r.randint(1, width // 2) if r.random() < 0.3 else 0
    half = (turned or width) // 2
    flat = r.random() < 0.5
    x = floats(r, [batch, length, heads * width] if flat else [batch, heads, length, width])
    inputs = [x]
    if r.random() < 0.5:
        inputs += [floats(r, [10, half]), floats(r, [10, half]),
                   ints(r, INT64, [batch, length], 0, 9)]
    else:
        inputs += [floats(r, [batch, length, half]), floats(r, [batch, length, half])]
    return Case("RotaryEmbedding", 23, inputs, [FLOAT], interleaved=r.choice([0, 1]),
                num_heads=heads if flat or turned else None, rotary_embedding_dim=turned)


def attention(r):
    batch, heads, length, width = (r.randint(1, 2), r.choice([1, 2, 4, 6]), r.randint(1, 6),
                                   r.choice([1, 4, 8]))
    kv_heads = r.choice([h for h in (1, 2, 3, 4, 6) if heads % h == 0])
    keys, value_width = r.choice([length, r.randint(1, 7)]), r.choice([width, 3])
    past = r.choice([0, 0, 3])

    def given(count, n, w):
        return floats(r, [batch, n, count * w] if flat else [batch, count, n, w], low=-1.5,
                      high=1.5)
    flat = r.random() < 0.5
    inputs = [given(heads, length, width), given(kv_heads, keys, width),
              given(kv_heads, keys, value_width), None]
    total = past + keys
    if r.random() < 0.6:
        dims = r.choice([[length, total], [1, 1, length, total], [batch, heads, length, total]])
        inputs[3] = (BOOL, dims, [1 if i % total == 0 else r.randint(0, 1)
                                  for i in range(product(dims))],
                     False) if r.random() < 0.5 else floats(r, dims)
    if past:
        inputs += [floats(r, [batch, kv_heads, past, width]),
                   floats(r, [batch, kv_heads, past, value_width])]
    shown = r.random() < 0.3
    return Case("Attention", 23, inputs, [FLOAT] * (4 if shown else 3 if past else 1), 1e-4, 1e-5,
                qk_matmul_output_mode=r.randint(0, 3) if shown else None,
                is_causal=r.choice([0, 1]), q_num_heads=heads if flat else None,
                kv_num_heads=kv_heads if flat else None,
                scale=r.choice([None, 0.5]), softcap=r.choice([None, None, 2.0]))


def unpool(r):
    dims = [r.randint(1, 2), r.randint(1, 3)] + [r.randint(1, 4) for _ in range(r.randint(1, 3))]
    kernel = [r.randint(1, 3) for _ in dims[2:]]
    whole_size = product(dims[:2]) * product([d * k for d, k in zip(dims[2:], kernel)])
    at = (INT64, dims, r.sample(range(whole_size), product(dims)), False)
    return Case("MaxUnpool", 11, [floats(r, dims), at], [FLOAT], kernel_shape=kernel,
                strides=kernel)


def col2im(r):
    image = [r.randint(3, 7) for _ in range(2)]
    block = [r.randint(1, 3) for _ in image]
    strides, pads = [r.randint(1, 2) for _ in image], [r.randint(0, 1) for _ in image * 2]
    dilations = [r.choice([1, 1, 2]) for _ in image]
    places = product([(i + pads[a] + pads[a + 2] - (block[a] - 1) * dilations[a] - 1) // strides[a]
                      + 1 for a, i in enumerate(image)])
    x = floats(r, [r.randint(1, 2), r.randint(1, 3) * product(block), max(places, 1)])
    return Case("Col2Im", 18, [x, whole(image), whole(block)], [FLOAT], 1e-5, 1e-5,
                strides=strides, pads=pads, dilations=dilations)


def sequence(r):
    time = r.choice([0, 1])
    dims = shape_of(r, 2, 4)
    return Case("ReverseSequence", 10, [floats(r, dims), ints(r, INT64, [dims[1 - time]], 1,
                                                              dims[time])], [FLOAT],
                time_axis=time, batch_axis=1 - time)


def scatter_cache(r):
    batch, heads, most, width = r.randint(1, 3), r.randint(1, 3), r.randint(2, 7), r.randint(1, 4)
    new, circular = r.randint(1, most), r.random() < 0.5
    flat = r.random() < 0.5
    shape = lambda n: [batch, n, width] if flat else [batch, heads, n, width]
    first = ints(r, INT64, [batch], 0, most - 1 if circular else most - new)
    return Case("TensorScatter", 24, [floats(r, shape(most)), floats(r, shape(new))] +
                ([first] if r.random() < 0.8 else []), [FLOAT],
                mode="circular" if circular else r.choice([None, "linear"]))


def affine_grid(r):
    axes = r.choice([2, 3])
    size = [r.randint(1, 3), 2] + [r.randint(2, 6) for _ in range(axes)]
    return Case("AffineGrid", 20, [floats(r, [size[0], axes, axes + 1]), whole(size)], [FLOAT],
                1e-5, 1e-5, align_corners=r.choice([0, 1]))


def grid_sample(r):
    axes = r.choice([2, 2, 3])
    x = [r.randint(1, 2), r.randint(1, 3)] + [r.randint(1, 6) for _ in range(axes)]
    grid = [x[0]] + [r.randint(1, 5) for _ in range(axes)] + [axes]
    mode = r.choice(["linear", "nearest"] + ["cubic"] * (axes == 2))
    edge = r.choice([1.0, 1.5, 4.0])
    return Case("GridSample", 20, [floats(r, x), floats(r, grid, low=-edge, high=edge)], [FLOAT],
                1e-4, 1e-4, mode=mode, align_corners=r.choice([0, 1]),
                padding_mode=r.choice(["zeros", "border", "reflection"]))


def regions(r):
    x = [r.randint(1, 3), r.randint(1, 3), r.randint(1, 9), r.randint(1, 9)]
    count = r.randint(1, 4)
    rois = []
    for _ in range(count):
        left, top = r.uniform(-3, 12), r.uniform(-3, 12)
        rois += [left, top, left + r.uniform(0, 9), top + r.uniform(0, 9)]
    return Case("RoiAlign", 16, [floats(r, x), (FLOAT, [count, 4], rois, False),
                                 ints(r, INT64, [count], 0, x[0] - 1)], [FLOAT], 1e-4, 1e-4,
                coordinate_transformation_mode=r.choice(["half_pixel", "output_half_pixel"]),
                output_height=r.randint(1, 4), output_width=r.randint(1, 4),
                sampling_ratio=r.randint(1, 3), spatial_scale=r.choice([0.5, 1.0, 2.0]))


def det(r):
    n = r.randint(1, 6)
    return Case("Det", 11, [floats(r, shape_of(r, 0, 2) + [n, n], low=-2, high=2)], [FLOAT],
                1e-3, 1e-4)


def window(r):
    return Case(r.choice(["HannWindow", "HammingWindow", "BlackmanWindow"]), 17,
                [(INT64, [], [r.randint(2, 40)], True)], [FLOAT], 1e-5, 1e-5,
                periodic=r.choice([0, 1]))


def mel(r):
    rate = r.choice([8000, 16000, 44100])
    low, high = r.choice([0, r.uniform(1, 400)]), r.uniform(500, rate / 2 - 10)
    return Case("MelWeightMatrix", 17,
                [(INT64, [], [v], True) for v in (r.randint(1, 40), r.randint(2, 400), rate)]
                + [(FLOAT, [], [v], True) for v in (low, high)], [FLOAT], 1e-5, 1e-5)


def training_norm(r):
    x = shape_of(r, 2, 4)
    return Case("BatchNormalization", 15, [floats(r, x)] + [
        floats(r, [x[1]], r.random() < 0.5, low=0.5, high=2) for _ in range(4)], [FLOAT] * 3,
        1e-3, 1e-4, training_mode=1, momentum=r.choice([0.9, 0.5]))


def deform(r):
    group, parts = r.choice([1, 1, 2]), r.choice([1, 1, 2])
    x = [r.randint(1, 2), 2 * r.randint(1, 3)] + [r.randint(3, 6) for _ in range(2)]
    kernel = [r.randint(1, 3) for _ in range(2)]
    strides, pads = [r.randint(1, 2) for _ in kernel], [r.randint(0, 1) for _ in kernel * 2]
    out = [(x[2 + a] + pads[a] + pads[a + 2] - k) // strides[a] + 1 for a, k in enumerate(kernel)]
    outs, taps = group * r.randint(1, 3), product(kernel)
    inputs = [floats(r, x), floats(r, [outs, x[1] // group] + kernel, r.random() < 0.8),
              floats(r, [x[0], parts * taps * 2] + out, low=-2, high=2),
              floats(r, [outs], True) if r.random() < 0.5 else None]
    if r.random() < 0.6:
        inputs.append(floats(r, [x[0], parts * taps] + out, low=0, high=1))
    return Case("DeformConv", 19, inputs, [FLOAT], 1e-4, 1e-3, group=group, offset_group=parts,
                strides=strides, pads=pads, kernel_shape=kernel)


def topk(r):
    dims = shape_of(r, 1, 3, 12)
    axis = r.randrange(-len(dims), len(dims))
    x = floats(r, dims) if r.random() < 0.6 else ints(r, r.choice([INT32, INT64]), dims, -9, 9)
    return Case("TopK", 11, [x, whole([r.randint(1, dims[axis])])], [x[0], INT64], axis=axis,
                largest=r.choice([0, 1]), sorted=1)


# -- signals --

def dft(r):
    version = r.choice([17, 20])
    dims = shape_of(r, 2, 4, 8) + [r.choice([1, 1, 2])]
    axis = r.randrange(len(dims) - 1)
    inverse = dims[-1] == 2 and r.random() < 0.4
    attrs = {"inverse": int(inverse), "onesided": int(dims[-1] == 1 and r.random() < 0.5)}
    length = (INT64, [], [r.randint(1, 10)], True) if r.random() < 0.5 else None
    inputs = [floats(r, dims), length]
    if version == 17:
        attrs["axis"] = axis
    else:
        inputs.append((INT64, [], [axis - r.choice([0, len(dims)])], True))
    return Case("DFT", version, inputs, [FLOAT], 1e-4, 1e-4, **attrs)


def stft(r):
    size, extra = r.randint(2, 16), r.randint(0, 30)
    dims = [r.randint(1, 3), size + extra, 1]
    window = floats(r, [size], r.random() < 0.7) if r.random() < 0.7 else None
    length = (INT64, [], [size], True) if window is None or r.random() < 0.5 else None
    return Case("STFT", 17, [floats(r, dims), (INT64, [], [r.randint(1, 9)], True), window, length],
                [FLOAT], 1e-4, 1e-3, onesided=r.randint(0, 1))


# -- bodies --

class Body:
    """A graph of random steps on values of one shape; `outer`: names it may read."""

    def __init__(self, r, dims, outer=()):
        self.r, self.dims, self.made, self.names = r, dims, 0, list(outer)
        self.graph = GraphProto(name="body")

    def value(self, field, name, elem_type=FLOAT, dims=None):
        tensor = field.add(name=name).type.tensor_type
        tensor.elem_type = elem_type
        for dim in self.dims if dims is None else dims:
            tensor.shape.dim.add(dim_value=dim)
        tensor.shape.SetInParent()
        return name

    def input(self, name, elem_type=FLOAT, dims=None):
        name = self.value(self.graph.input, name, elem_type, dims)
        if elem_type == FLOAT:
            self.names.append(name)
        return name

    def node(self, op, inputs, **attrs):
        name = f"t{self.made}"  # the same in every body
        self.made += 1
        node = self.graph.node.add(op_type=op)
        node.input.extend(inputs)
        node.output.append(name)
        for key, number in attrs.items():
            node.attribute.add(name=key, type=2, i=number)
        return name

    def step(self):
        if self.r.random() < 0.3:
            name = f"k{self.made}"
            tensor = self.graph.initializer.add(name=name, data_type=FLOAT, dims=self.dims)
            tensor.float_data.extend(self.r.uniform(-1, 1) for _ in range(product(self.dims)))
            self.names.append(name)
        if self.r.random() < 0.4:
            name = self.node(self.r.choice(["Tanh", "Sigmoid", "Relu", "Neg", "Identity"]),
                             [self.r.choice(self.names)])
        else:
            name = self.node(self.r.choice(["Add", "Mul", "Sub", "Max"]),
                             [self.r.choice(self.names) for _ in range(2)])
        self.names.append(name)
        return name

    def output(self, name, elem_type=FLOAT, dims=None):
        """A value may be an output only once."""
        copy = self.node("Identity", [name])
        return self.value(self.graph.output, copy, elem_type, dims)


def branches(r):
    """If: the condition is the first input; branches read sums of the others."""
    dims = shape_of(r, 1, 3, 4)
    count = r.randint(1, 3)
    both = []
    for _ in range(2):
        body = Body(r, dims, ["v1", "v2"])
        results = [body.step() for _ in range(r.randint(count, 6))]
        for i in range(count):
            body.output(results[-1 - i])
        both.append(body.graph)
    condition = BOOL, r.choice([[], [1]]), [r.randint(0, 1)], r.random() < 0.4
    case = Bodies("If", 16, [condition, floats(r, dims), floats(r, dims, r.random() < 0.3)],
                  [FLOAT] * count, 1e-4, 1e-5, then_branch=both[0], else_branch=both[1])
    case.taken = 1
    return case


class Bodies(Case):
    """Inputs from `taken` on are not the node's: its bodies read them."""
    taken = None

    def model(self):
        model = onnx_schema.parse(super().model())
        if self.taken is not None:
            del model.graph.node[0].input[self.taken:]
            for i in range(self.taken, len(self.inputs)):  # steps that a body could be fused into
                node = model.graph.node.add(op_type="Add")
                node.input.extend([f"x{i}", f"x{self.taken}"])
                node.output.append(f"v{i}")
            nodes = list(model.graph.node)
            del model.graph.node[:]
            model.graph.node.extend(nodes[1:] + nodes[:1])
        return model.SerializeToString()


def loop(r):
    dims = shape_of(r, 1, 3, 4)
    carried, stacks, rounds = r.randint(0, 3), r.randint(1, 2), r.randint(1, 6)
    body = Body(r, dims)
    body.input("round", INT64, [])
    going = body.input("going", BOOL, [])
    if r.random() < 0.5:  # ends by its condition
        body.graph.initializer.add(name="last", data_type=INT64, int64_data=[r.randint(0, 4)])
        going = body.node("Less", ["round", "last"])
    body.names.append(body.node("Cast", ["round"], to=FLOAT))
    body.names = [body.node("Add", [body.names[0], body.node("Neg", [k])]) for k in [
        body.input(f"c{i}") for i in range(carried)]] or [
            body.node("Expand", [body.names[0], "wide"])]
    body.graph.initializer.add(name="wide", data_type=INT64, dims=[len(dims)], int64_data=dims)
    results = [body.step() for _ in range(carried + stacks + 1)]
    body.output(going, BOOL, [])
    for i in range(carried + stacks):
        body.output(results[i])
    count = INT64, r.choice([[], [1]]), [rounds], True
    condition = (BOOL, [], [1], True) if r.random() < 0.5 else None
    return Case("Loop", 16, [count, condition] + [floats(r, dims) for _ in range(carried)],
                [FLOAT] * (carried + stacks), 1e-4, 1e-5, body=body.graph)


def scan(r):
    dims = shape_of(r, 1, 3, 4)
    carried, slices, stacks = r.randint(0, 2), r.randint(1, 2), r.randint(0, 2)
    stacks += carried + stacks == 0
    length = r.randint(1, 6)
    body = Body(r, dims)
    for i in range(carried + slices):
        body.input(f"c{i}")
    results = [body.step() for _ in range(carried + stacks + 1)]
    for i in range(carried + stacks):
        body.output(results[i])
    axes = [r.randint(0, len(dims)) for _ in range(slices + stacks)]
    attrs = {"scan_input_axes": [a - len(dims) - 1 if r.random() < 0.3 else a
                                 for a in axes[:slices]],
             "scan_input_directions": [r.randint(0, 1) for _ in range(slices)]}
    if stacks:
        attrs.update(scan_output_axes=axes[slices:],
                     scan_output_directions=[r.randint(0, 1) for _ in range(stacks)])
    return Case("Scan", 16, [floats(r, dims) for _ in range(carried)] + [
        floats(r, dims[:a] + [length] + dims[a:], r.random() < 0.2) for a in axes[:slices]],
                [FLOAT] * (carried + stacks), 1e-4, 1e-5, body=body.graph,
                num_scan_inputs=slices, **attrs)


MAKERS = {"DFT": dft, "STFT": stft, "If": branches, "Loop": loop, "Scan": scan,
          "MaxUnpool": unpool, "Col2Im": col2im, "ReverseSequence": sequence, "TopK": topk,
          "TensorScatter": scatter_cache, "AffineGrid": affine_grid, "GridSample": grid_sample,
          "RoiAlign": regions, "Det": det, "Window": window, "MelWeightMatrix": mel,
          "BatchNormalization in training": training_norm,
          "DeformConv": deform, "CumSum": cumsum, "BitwiseNot": bitwise_not,
          "CenterCropPad": center,
          "RotaryEmbedding": rotary, "Attention": attention, "Resize": resize, "Gemm": gemm,
          "QuantizeLinear": quantize, "DequantizeLinear": dequantize,
          "DynamicQuantizeLinear": dynamic_quantize, "QGemm": q_gemm}
for names, maker in (
        (UNARY, unary), (BINARY, binary),
        (["Reduce" + n for n in ("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum",
                                 "LogSumExp", "SumSquare")], reduction),
        (["Softmax", "LogSoftmax", "Hardmax"], softmax),
        (["BatchNormalization", "InstanceNormalization", "LayerNormalization", "RMSNormalization",
          "LRN"], norm),
        (["MatMul", "MatMulInteger", "QLinearMatMul"], matmul),
        (["Conv", "ConvTranspose", "ConvInteger", "QLinearConv"], conv),
        (["MaxPool", "AveragePool", "LpPool", "GlobalAveragePool", "GlobalMaxPool"], pool),
        (["Transpose", "Slice", "Pad", "Gather", "GatherElements", "Concat", "Expand", "Tile",
          "ArgMax", "ArgMin", "Cast", "Trilu",
          "Where", "Clip", "DepthToSpace", "SpaceToDepth"], moves),
        (["LpNormalization", "GlobalLpPool"], lp), (["RNN", "GRU", "LSTM"], cells)):
    MAKERS.update((name, maker(name)) for name in names)
MAKERS.update(("QLinear" + name, quantized(name)) for name in (
    "Add", "Mul", "AveragePool", "GlobalAveragePool", "Concat", "Where", "Softmax", "Sigmoid",
    "LeakyRelu"))


# -- edges: what once was wrong, and its neighbours; the same in every run --

def whole_convolutions(r):
    """Integers stay integers on both sides of what makes a convolution a fast one."""
    for channels in 15, 16, 17, 32:
        for kernel, size in (3, 14), (3, 4), (1, 14), (5, 14):
            yield Case("ConvInteger", 10, [
                ints(r, UINT8, [1, channels, size, size], 0, 255),
                ints(r, INT8, [channels, channels, kernel, kernel], -128, 127, True)], [INT32],
                pads=[kernel // 2] * 4)
    for depth in 63, 64, 258, 259, 260, 1024:  # larger weights saturate in ORT without VNNI
        yield Case("MatMulInteger", 10, [ints(r, UINT8, [5, depth], 0, 255),
                                         ints(r, INT8, [depth, 17], -64, 63, True)], [INT32])


def powers():
    for elem_type, value in (INT32, 12345), (INT64, 1 << 31), (INT32, -3):
        yield Case("Pow", 15, [(elem_type, [2], [value, 7], False), (elem_type, [1], [2], True)],
                   [elem_type])
    for exponent in 0.5, -1.0, 3.0, 2.0, 0.0, 1.0, -0.5:
        yield Case("Pow", 15, [(FLOAT, [8], [-math.inf, -0.0, 0.0, 4.0, -4.0, math.inf, 1e-40,
                                             math.nan], False),
                               (FLOAT, [1], [exponent], True)], [FLOAT])


def types():
    values = {UINT8: [3, 200, 255, 0], UINT16: [3, 65535, 0, 7], UINT32: [3, 1 << 31, 0, 7],
              UINT64: [3, (1 << 63) + 4096, (1 << 64) - 2048, 7], INT8: [-128, 127, -3, 0],
              INT16: [-32768, 3, -3, 0], INT32: [-2147483648, 3, -3, 0],
              INT64: [-(1 << 63), (1 << 53) + 1, -3, 0], BOOL: [1, 0, 1, 1],
              FLOAT: [0.5, -3.25, 1e-45, 0.0], DOUBLE: [1e-50, -3.25, 1e-310, 0.0]}
    for elem_type, given in values.items():
        for to in values:
            fits = to in (FLOAT, DOUBLE, BOOL, elem_type) or \
                (elem_type not in (FLOAT, DOUBLE) and to in (UINT64, INT64) and min(given) >= 0)
            if fits:
                yield Case("Cast", 19, [(elem_type, [4], given, False)], [to], to=to)
        if elem_type not in (BOOL,):
            yield Case("Abs", 13, [(elem_type, [4], given, False)], [elem_type])
        for reduction in "none", "add", "min", "max":
            if elem_type == BOOL:
                continue
            yield Case("ScatterND", 18, [(elem_type, [4], given, False),
                                         (INT64, [2, 1], [1, 2], True),
                                         (elem_type, [2], given[2:], False)], [elem_type],
                       reduction=reduction)
            yield Case("ScatterElements", 18, [(elem_type, [4], given, False),
                                               (INT64, [2], [1, 2], True),
                                               (elem_type, [2], given[2:], False)], [elem_type],
                       reduction=reduction)
    for elem_type in FLOAT, DOUBLE:
        yield Case("Pad", 2, [(elem_type, [2], [1.0, 2.0], False)], [elem_type], pads=[1, 0],
                   value=1.5)
    for divisor in [3, -2, 1, 7], [3, 0, 1, 7]:
        for op in "Div", "Mod":
            yield Case(op, 14, [(INT32, [4], [7, -7, 9, 0], False),
                                (INT32, [4], divisor, False)], [INT32])


def shapes():
    for axes in [], [0], [1], [0, 1]:
        yield Case("Squeeze", 13, [(FLOAT, [1, 1, 2], [1.0, 2.0], False),
                                   (INT64, [len(axes)], axes, True)], [FLOAT])
    for opset in 24, 25, 26:
        for op in "Relu", "Identity", "Transpose", "Flatten":
            yield Case(op, opset, [(FLOAT, [2, 2], [-1.0, 2.0, -3.0, 4.0], False)], [FLOAT])
        yield Case("Cast", opset, [(FLOAT, [2], [-1.0, 2.0], False)], [INT32], to=INT32)


def masks():
    x = (FLOAT, [1, 1, 2, 2], [0.5, -1.0, 1.0, 2.0], False)
    for seen in [0, 0, 1, 1], [0, 0, 0, 0], [0, 1, 1, 0]:
        for causal in 0, 1:
            yield Case("Attention", 23, [x, x, x, (BOOL, [2, 2], seen, False)], [FLOAT],
                       is_causal=causal)
    for hidden in math.inf, -math.inf, math.nan, 3e38, -3e38, 1e30:  # what is_causal hides
        for mode in 0, 2, 3:
            for constant in False, True:
                yield Case("Attention", 23, [
                    x, x, x, (FLOAT, [2, 2], [0.5, hidden, -0.25, 1.0], constant)],
                    [FLOAT] * (4 if mode else 1), is_causal=1,
                    qk_matmul_output_mode=mode or None)
    yield Case("DynamicQuantizeLinear", 11, [(FLOAT, [3], [0.0] * 3, False)], [UINT8, FLOAT, UINT8])
    yield Case("NegativeLogLikelihoodLoss", 13, [
        (FLOAT, [2, 2], [-math.inf, -0.5, -0.25, -math.inf], False),
        (INT64, [2], [0, 0], False)], [FLOAT], ignore_index=0, reduction="none")


def limits():
    """Clip with two bounds, one and none, in every type, beside the ends of the type."""
    for elem_type in CODES:
        if elem_type in (UINT16, INT16, BOOL):
            continue
        fraction = elem_type in (FLOAT, DOUBLE)
        bits = 8 * array.array(CODES[elem_type]).itemsize
        signed = elem_type in (INT8, INT32, INT64)
        top = (1 << (bits - signed)) - 1
        low = -top - 1 if signed else 0
        values = ([math.nan, math.inf, -math.inf, -0.0, 0.0, 1e-45, -3e38, 3e38] if fraction
                  else [low, low + 1, 0, 1, 3, top // 2, top - 1, top])
        ends = [-math.inf, math.inf, 0.0, 1.5] if fraction else [low, top, 3]
        for lower in [None] + ends:
            for upper in [None] + ends:
                if lower is not None and upper is not None and not lower <= upper:
                    continue  # of these, ONNX defines nothing
                for constant in True, False:
                    given = [None if x is None else (elem_type, [], [x], constant)
                             for x in (lower, upper)]
                    if given[1] is None:
                        del given[given[0] is not None:]
                    yield Case("Clip", 13, [(elem_type, [8], values, False)] + given, [elem_type])
    for bounds in {}, {"min": -1.0}, {"max": 2.0}, {"min": -1.0, "max": 2.0}:
        yield Case("Clip", 6, [(FLOAT, [6], [math.nan, math.inf, -math.inf, -2.0, 0.5, 3.0],
                                False)], [FLOAT], **bounds)


def windows(r):
    """Windows that lie in the padding in part and wholly, and strides above the kernel."""
    for channels in 1, 3, 16, 17:
        for dims, kernel, pads, strides, dilations in (
                ([4, 4], [1, 1], [0, 0, 1, 1], [2, 2], [1, 1]),
                ([1, 1], [2, 2], [1, 1, 1, 1], [1, 1], [2, 2]),
                ([2, 2], [2, 2], [1, 1, 1, 1], [1, 1], [3, 3]),
                ([5, 5], [2, 2], [1, 1, 1, 1], [3, 3], [1, 1]),
                ([2, 3], [3, 3], [2, 2, 2, 2], [2, 2], [1, 1]),
                ([2, 3], [3, 3], [2, 2, 2, 2], [1, 1], [2, 2])):
            for op, version in ("MaxPool", 12), ("AveragePool", 19), ("LpPool", 18):
                for ceil in 0, 1:
                    if op == "AveragePool" and channels == 16 and dims in ([1, 1], [2, 2]):
                        continue  # ONNX Runtime gives NaN for windows in the padding here
                    yield Case(op, version, [floats(r, [1, channels] + dims)], [FLOAT],
                               kernel_shape=kernel, pads=pads, strides=strides,
                               dilations=dilations, ceil_mode=ceil)
            yield Case("MaxPool", 12, [ints(r, UINT8, [1, channels] + dims, 0, 255)], [UINT8],
                       kernel_shape=kernel, pads=pads, strides=strides, dilations=dilations)
        if channels != 16:  # of other windows of infinities ONNX Runtime makes lowest numbers
            yield Case("MaxPool", 12, [(FLOAT, [1, channels, 4, 4], [-math.inf] * 16 * channels,
                                        False)], [FLOAT], kernel_shape=[2, 2])


def transposed(r):
    """What SAME means where the stride is above the kernel, with and without a shape."""
    for where in "SAME_UPPER", "SAME_LOWER", "VALID":
        for kernel in 1, 2, 3:
            for stride in 1, 2, 3, 4:
                for extra in None, [0, 0], [stride - 1, 0]:
                    for shape in None, [4 * stride, 5 * stride], [4 * stride + 1, 5 * stride - 1]:
                        if shape and extra:
                            continue
                        yield Careful("ConvTranspose", 11, [
                            floats(r, [1, 2, 4, 5]), floats(r, [2, 3, kernel, kernel], True)],
                            [FLOAT], 1e-4, 1e-4, auto_pad=where, strides=[stride] * 2,
                            output_padding=extra, output_shape=shape)


def lengths(r):
    """Sequences of length 0 beside others, in every direction and order of axes."""
    for op, gates, version in ("RNN", 1, 14), ("GRU", 3, 14), ("LSTM", 4, 14):
        for direction in "forward", "reverse", "bidirectional":
            for given in [0, 3, 1], [0, 0, 0], [3, 0, 2]:
                for start in False, True:
                    both = 1 + (direction == "bidirectional")
                    first = floats(r, [both, 3, 4]) if start else None
                    inputs = [floats(r, [3, 3, 2]), floats(r, [both, 4 * gates, 2], True),
                              floats(r, [both, 4 * gates, 4], True),
                              floats(r, [both, 8 * gates], True),
                              (INT32, [3], given, False), first]
                    if op == "LSTM":
                        inputs.append(first)
                    yield Case(op, version, inputs, [FLOAT] * (3 if op == "LSTM" else 2),
                               hidden_size=4, direction=direction)


def not_numbers():
    """NaN and zeros of both signs, short and long enough for every kernel of vectors."""
    for count in 1, 4, 7, 16, 35:
        for at in {0, 1 % count, count // 2, count - 1}:
            x = [0.5 - i % 5 for i in range(count)]
            x[at] = math.nan
            zeros = [(-1.0) ** i * 0.0 for i in range(count)]
            for elem_type in FLOAT, DOUBLE:
                given, other = ((elem_type, [count], v, False) for v in (x, zeros))
                yield Case("Relu", 14, [given], [elem_type])
                for constant in False, True:
                    for low, high in ([math.nan], [1.0]), ([-1.0], [math.nan]), ([math.nan], None):
                        yield Case("Clip", 13, [given] + [
                            bound and (elem_type, [], bound, constant) for bound in (low, high)],
                                   [elem_type])
                for op in "Max", "Min":
                    for pair in [given, other], [other, given], [given, other, given], [given]:
                        yield Case(op, 13, pair, [elem_type])
                for op in "ReduceMax", "ReduceMin":
                    if at > 0:  # ours is NaN, like NumPy; ONNX Runtime goes by the shape
                        continue
                    yield Case(op, 13, [given], [elem_type], axes=[0])
                for op in "ArgMax", "ArgMin":
                    for last in 0, 1:
                        if last or at == 0:  # else ONNX Runtime goes by the shape
                            yield Case(op, 13, [given], [INT64], axis=0, select_last_index=last)
                        yield Case(op, 13, [other], [INT64], axis=0, select_last_index=last)
                        for axis in 0, 1:
                            dims, many = [count, 18][::1 - 2 * axis], x * 18
                            yield Case(op, 13, [(elem_type, dims, many, False)], [INT64],
                                       axis=axis, select_last_index=last)
                for largest in 0, 1:
                    yield Case("TopK", 11, [(elem_type, [count], zeros, False),
                                            whole([(count + 1) // 2])], [elem_type, INT64],
                               axis=0, largest=largest)


def crops(r):
    """What lies outside of the input, beside taps that count for nothing."""
    for version, modes in (11, [("nearest", None), ("linear", None), ("cubic", None)]), (
            18, [("linear", 0), ("linear", 1), ("cubic", 0), ("cubic", 1)]):
        for mode, antialias in modes:
            for start, end in (0.3, 0.7), (0.0, 1.0), (-0.5, 1.5), (0.0, 1.25):
                for outside in None, 10.0, -3.0:
                    for sizes in [3, 3], [2, 7]:
                        roi = array.array("f", [0, 0, start, start, 1, 1, end, end]).tolist()
                        yield Case("Resize", version, [
                            floats(r, [1, 1, 4, 5]), (FLOAT, [8], roi, True),
                            (FLOAT, [0], [], True) if version == 11 else None,
                            whole([1, 1] + sizes)], [FLOAT], 1e-4, 2e-5, mode=mode,
                            coordinate_transformation_mode="tf_crop_and_resize",
                            antialias=antialias, extrapolation_value=outside)


def positions(r):
    """Indices that are known at run time, around both ends of what they select from."""
    for at in 0, 3, -1, 4, 5, 6, 24, 25, -2, -4, -5, -6, -25, 1 << 40, -(1 << 62), (1 << 63) - 1, \
            -(1 << 63):
        index = lambda dims, rest: (INT64, dims, [at] + rest, False)
        yield Careful("MaxUnpool", 11, [floats(r, [1, 1, 2, 2]), index([1, 1, 2, 2], [7, 11, 15])],
                      [FLOAT], kernel_shape=[2, 2], strides=[2, 3])
        yield Careful("ReverseSequence", 10, [floats(r, [4, 2]), index([2], [2])], [FLOAT])
        yield Careful("RotaryEmbedding", 23, [
            floats(r, [1, 2, 3, 4]), floats(r, [5, 2]), floats(r, [5, 2]), index([1, 3], [1, 2])],
            [FLOAT])
        for op in "Gather", "GatherElements", "GatherND":
            yield Careful(op, 13, [floats(r, [5, 2]), index([1, 2], [1])], [FLOAT])
        yield Careful("ScatterND", 16, [floats(r, [5, 2]), index([1, 2], [1]), floats(r, [1])],
                      [FLOAT])
        yield Careful("ScatterElements", 16, [floats(r, [5, 2]), index([1, 2], [1]),
                                              floats(r, [1, 2])], [FLOAT])
        for mode in "linear", "circular":
            yield Careful("TensorScatter", 24, [
                floats(r, [2, 1, 5, 3]), floats(r, [2, 1, 2, 3]), index([2], [1])], [FLOAT],
                mode=mode)


def operands(r):
    """Operands of other ranks than what is meant: bounds, axes, zero points, biases ..."""
    x, square, image = floats(r, [2, 3]), floats(r, [3, 3]), floats(r, [1, 2, 4, 4])
    bytes_, weights = ints(r, UINT8, [3, 3], 0, 9), floats(r, [2, 2, 2, 2], True)
    pixels, kernel = ints(r, UINT8, [1, 1, 4, 4], 0, 9), ints(r, UINT8, [2, 1, 2, 2], 0, 9, True)
    one = lambda v, elem_type=INT64, constant=True: (elem_type, [], [v], constant)
    many = lambda n: floats(r, [n], True, low=0.5, high=1)
    scale, zero = one(0.5, FLOAT), one(3, UINT8)
    triple = [scale, zero]
    bounds = [[x, one(-1.0, FLOAT, c), one(1.0, FLOAT, c)] for c in (True, False)]
    whole_x = ints(r, INT32, [2, 3], -9, 9)
    rows = [  # operator, version, inputs, results, which inputs, attributes
        ("ReduceSum", 13, [x, whole([1])], [FLOAT], [1], {}),
        ("ReduceMax", 18, [x, whole([1])], [FLOAT], [1], {}),
        ("ReduceL2", 18, [x, whole([1])], [FLOAT], [1], {}),
        ("Slice", 13, [x, whole([0]), whole([1]), whole([1]), whole([1])], [FLOAT], [1, 2, 3, 4],
         {}),
        ("Squeeze", 13, [floats(r, [1, 3]), whole([0])], [FLOAT], [1], {}),
        ("Unsqueeze", 13, [x, whole([0])], [FLOAT], [1], {}),
        ("Reshape", 14, [x, whole([6])], [FLOAT], [1], {}),
        ("Expand", 13, [x, whole([2, 3])], [FLOAT], [1], {}),
        ("Tile", 13, [x, whole([1, 2])], [FLOAT], [1], {}),
        ("Split", 13, [x, whole([1, 1])], [FLOAT] * 2, [1], {}),
        ("Pad", 13, [x, whole([0, 1, 0, 1]), scale], [FLOAT], [1, 2], {}),
        ("TopK", 11, [x, whole([1])], [FLOAT, INT64], [1], {}),
        ("CumSum", 14, [x, one(1)], [FLOAT], [1], {}),
        ("Trilu", 14, [square, one(1)], [FLOAT], [1], {}),
        ("OneHot", 11, [ints(r, INT64, [3], 0, 3), one(4), floats(r, [2])], [FLOAT], [1, 2], {}),
        ("Clip", 13, bounds[0], [FLOAT], [1, 2], {}),
        ("Clip", 13, bounds[1], [FLOAT], [1, 2], {}),
        ("Clip", 13, [whole_x, one(-1, INT32), one(5, INT32)], [INT32], [1, 2], {}),
        ("QuantizeLinear", 13, [x] + triple, [UINT8], [1, 2], {}),
        ("DequantizeLinear", 13, [bytes_] + triple, [FLOAT], [1, 2], {}),
        ("DequantizeLinear", 13, [bytes_, many(3), ints(r, UINT8, [3], 0, 3, True)], [FLOAT],
         [1, 2], {}),
        ("MatMulInteger", 10, [bytes_, bytes_, zero, zero], [INT32], [2, 3], {}),
        ("ConvInteger", 10, [pixels, kernel, zero, zero], [INT32], [2, 3], {}),
        ("QLinearMatMul", 10, [bytes_, *triple, bytes_, *triple, *triple], [UINT8],
         [1, 2, 4, 5, 6, 7], {}),
        ("QLinearConv", 10, [pixels, *triple, kernel, *triple, *triple,
                             ints(r, INT32, [2], 0, 9, True)], [UINT8], [1, 2, 4, 5, 6, 7, 8], {}),
        ("Conv", 11, [image, weights, many(2)], [FLOAT], [2], {}),
        ("ConvTranspose", 11, [image, weights, many(2)], [FLOAT], [2], {}),
        ("DeformConv", 19, [image, weights, floats(r, [1, 8, 3, 3]), many(2)], [FLOAT], [3], {}),
        ("BatchNormalization", 15, [image] + [many(2)] * 4, [FLOAT], [1, 2, 3, 4], {}),
        ("InstanceNormalization", 6, [image] + [many(2)] * 2, [FLOAT], [1, 2], {}),
        ("LayerNormalization", 17, [x] + [many(3)] * 2, [FLOAT], [1, 2], {}),
        ("RMSNormalization", 23, [x, many(3)], [FLOAT], [1], {}),
        ("RMSNormalization", 23, [x, floats(r, [2, 3])], [FLOAT], [1], {"axis": 0}),
        ("Resize", 13, [image, None, (FLOAT, [4], [1.0, 1.0, 2.0, 2.0], True)], [FLOAT], [2], {}),
        ("Resize", 13, [image, None, None, whole([1, 2, 8, 8])], [FLOAT], [3], {}),
        ("CenterCropPad", 18, [x, whole([3, 3])], [FLOAT], [1], {}),
        ("Col2Im", 18, [floats(r, [1, 4, 9]), whole([4, 4]), whole([2, 2])], [FLOAT], [1, 2], {}),
        ("AffineGrid", 20, [floats(r, [1, 2, 3]), whole([1, 1, 2, 2])], [FLOAT], [1], {}),
        ("Dropout", 13, [x, scale, one(0, BOOL)], [FLOAT], [1, 2], {}),
        ("Range", 11, [one(0.0, FLOAT), one(3.0, FLOAT), one(1.0, FLOAT)], [FLOAT], [0, 1, 2], {}),
        ("DFT", 20, [floats(r, [1, 4, 1]), one(4), one(1)], [FLOAT], [2], {}),
        ("STFT", 17, [floats(r, [1, 9, 1]), one(2), None, one(4)], [FLOAT], [1], {}),
        ("HannWindow", 17, [one(5)], [FLOAT], [0], {}),
    ]
    for op, version, inputs, results, which, attrs in rows:
        for at in which:
            elem_type, dims, values, constant = inputs[at]
            count = len(values)
            for changed in [[]] * (count == 1) + [[count], [1, count], [count, 1], [1, 1, count]]:
                given = list(inputs)
                given[at] = (elem_type, changed, values, constant)
                yield Careful(op, version, given, results, 1e-4, 1e-4, **attrs)


def misfits(r):
    """Operands and attributes that contradict each other."""
    def attention(**other):
        dims = {"q": [2, 2, 3, 4], "k": [2, 2, 5, 4], "v": [2, 2, 5, 4], "mask": [3, 5], **other}
        return Careful("Attention", 23, [floats(r, d) for d in dims.values()], [FLOAT], 1e-4, 1e-5)
    yield attention()
    for name, dims in (("q", [1, 2, 3, 4]), ("q", [2, 4, 3, 4]), ("q", [2, 3, 3, 4]),
                       ("q", [2, 1, 3, 4]), ("k", [1, 2, 5, 4]), ("k", [2, 1, 5, 4]),
                       ("k", [2, 2, 4, 4]), ("k", [2, 2, 1, 4]), ("v", [1, 2, 5, 4]),
                       ("v", [2, 1, 5, 4]), ("v", [2, 2, 4, 4]), ("v", [2, 2, 1, 4]),
                       ("v", [2, 2, 5, 1]), ("mask", [3, 6]), ("mask", [4, 5]), ("mask", [2, 3, 5]),
                       ("mask", [3, 3, 5]), ("mask", [1, 2, 3, 5]), ("mask", [3, 1, 3, 5]),
                       ("mask", [2, 2, 3, 5]), ("mask", [1, 1, 1, 3, 5])):
        yield attention(**{name: dims})
    for ids in [2, 3], [1, 3], [2, 1], [3]:
        yield Careful("RotaryEmbedding", 23, [
            floats(r, [2, 2, 3, 4]), floats(r, [5, 2]), floats(r, [5, 2]),
            ints(r, INT64, ids, 0, 4)], [FLOAT])
    for cache in [2, 3, 2], [1, 3, 2], [2, 1, 2], [1, 1, 2]:
        yield Careful("RotaryEmbedding", 23, [floats(r, [2, 2, 3, 4]), floats(r, cache),
                                              floats(r, cache)], [FLOAT])
    image, weights = floats(r, [1, 2, 4, 4]), floats(r, [2, 2, 2, 2], True)
    for kernel in [2, 2], [1, 2], [3, 3], [1, 1]:
        yield Careful("Conv", 11, [image, weights], [FLOAT], 1e-4, 1e-4, kernel_shape=kernel)
        yield Careful("ConvTranspose", 11, [image, weights], [FLOAT], 1e-4, 1e-4,
                      kernel_shape=kernel)
        yield Careful("DeformConv", 19, [image, weights, floats(r, [1, 8, 3, 3])], [FLOAT], 1e-4,
                      1e-4, kernel_shape=kernel)
    for extra in 0, 1, 2, 3:
        for stride, dilation in (1, 1), (2, 1), (3, 1), (1, 2), (1, 3), (2, 3):
            for shape in None, [4 * stride + extra, 5 * stride + 2 * extra]:
                yield Careful("ConvTranspose", 11, [image, weights], [FLOAT], 1e-4, 1e-4,
                              output_padding=None if shape else [extra] * 2,
                              output_shape=shape, strides=[stride] * 2, dilations=[dilation] * 2)
    for version in 6, 7, 8:
        for op in "Min", "Max", "Sum", "Mean":
            for second in [2, 3], [3], [1, 3], [1]:
                yield Careful(op, version, [floats(r, [2, 3]), floats(r, second)], [FLOAT])


class Dequantized(Case):
    """A product of floats between DequantizeLinear and QuantizeLinear, which ONNX Runtime makes one
    on bytes. Inputs as those of QLinearConv; `axes`: of the scales of both operands; `relu`: on its
    result, whose zero point is its lowest byte then, so that ONNX Runtime drops it; `moved`: what
    is turned before (a, b) and after (y), or made a matrix (m), all of which ONNX Runtime moves to
    the bytes."""

    def __init__(self, op, version, inputs, outputs, axes, relu=False, moved="", **attrs):
        super().__init__(op, version, inputs, outputs, 0, 0, **attrs)
        self.axes, self.relu, self.moved = axes, relu, moved
        if relu:
            self.inputs[7] = (outputs[0], [], [-128 * (outputs[0] == INT8)], True)

    def move(self, graph, name, which):
        if which in self.moved:
            add_node(graph, "Transpose", [name], [name + "_turned"])
            return name + "_turned"
        if which == "a" and "m" in self.moved:
            shape = array.array("q", [-1, self.inputs[0][1][-1]]).tobytes()
            graph.initializer.add(name="shape", data_type=INT64, dims=[2], raw_data=shape)
            add_node(graph, "Reshape", [name, "shape"], [name + "_flat"])
            return name + "_flat"
        return name

    def add_nodes(self, graph):
        floats_of = []
        for i, axis, which in zip((0, 3), self.axes, "ab"):
            add_node(graph, "DequantizeLinear", [f"x{i}", f"x{i + 1}", f"x{i + 2}"], [f"f{i}"],
                     attrs={"axis": axis if self.inputs[i + 1][1] else None})
            floats_of.append(self.move(graph, f"f{i}", which))
        if self.inputs[8:]:
            a, b = self.inputs[1][2][0], self.inputs[4][2]
            per = [self.inputs[8][1][-1]] if len(b) > 1 else []
            unit = array.array("f", [a * v for v in b]).tobytes()
            graph.initializer.add(name="unit", data_type=FLOAT, dims=per, raw_data=unit)
            add_node(graph, "DequantizeLinear", ["x8", "unit"], ["f8"],
                     attrs={"axis": 0 if per else None})
            floats_of.append("f8")
        add_node(graph, self.op, floats_of, ["y"], attrs=self.attrs)
        result = self.move(graph, "y", "y")
        if self.relu:
            add_node(graph, "Relu", [result], ["relu"])
            result = "relu"
        add_node(graph, "QuantizeLinear", [result, "x6", "x7"], ["y0"])


# Scales of both operands and of the result: a sum times the first two over the third is next to a
# tie for each second or sixth sum.
TIES = [(0.1, 0.3, 0.06), (0.7, 0.3, 0.42), (0.02, 0.05, 0.002), (0.1, 0.1, 0.06),
        (0.013, 0.07, 0.00182)]


def quantized_factors(r, a, b, types, fixed, channel, wide=False, zeros=False):
    """Inputs of a quantized product whose result lies next to ties. `channel`: shape of the scales
    of b; `wide`: not all of b minus its zero point fits a byte; `zeros`: one for each channel."""
    x, w, y = r.choice(TIES)
    ta, tb = types
    low = lambda t: -128 if t == INT8 else 0
    za, zb = low(ta) + r.randint(4, 240), low(tb) + (r.randint(3, 9) if wide else 128)
    xb = ints(r, tb, b, max(zb - 3, low(tb)), min(zb + 3, low(tb) + 255), fixed)
    if wide:
        xb[2][r.randrange(len(xb[2]))] = low(tb) + 255
    scales = [w * r.choice([1, 3, 5]) for _ in range(product(channel))]
    one = lambda v, dims=(): (FLOAT, list(dims), array.array("f", v).tolist(), True)
    return [ints(r, ta, a, za - 4, za + 5), one([x]), (ta, [], [za], True), xb,
            one(scales, channel),
            (tb, channel, [zb - zeros * r.randint(0, 2) for _ in range(product(channel))], True),
            one([y]),
            (ta, [], [low(ta) + 100], True)]


FACTORS = [  # shapes of matrices and vectors
    ([270], [270, 5]), ([3, 270], [270]), ([3, 270], [270, 5]), ([2, 3, 270], [270, 5]),
    ([2, 3, 90], [2, 90, 5]), ([90], [2, 90, 5]), ([3, 90], [2, 90, 5]),
    ([1, 2, 3, 270], [2, 1, 270, 5]), ([2, 1, 2, 2, 30], [3, 1, 30, 5])]
BYTES = [(UINT8, UINT8), (UINT8, INT8), (INT8, INT8)]


class Alone(Dequantized):
    """A product of two matrices that ONNX Runtime does not have on bytes, int8 times uint8: it adds
    up floats. Expected are whole sums times its factor."""

    def close(self, got, want):
        (_, (m, k), a, _), (_, _, (x,), _), (_, _, (za,), _), (_, (_, n), b, _), (_, _, w, _), (
            _, _, zb, _), (_, _, (y,), _), (_, _, (zy,), _) = self.inputs
        to_float = lambda value: array.array("f", [value])[0]
        scales = [to_float(to_float(x * v) / y) for v in w * (n // len(w))]
        zeros = zb * (n // len(zb))
        sums = [[sum((a[i * k + t] - za) * (b[t * n + j] - zeros[j]) for t in range(k))
                 for j in range(n)] for i in range(m)]
        return super().close(got, [min(max(round(to_float(v * scale)) + zy, -128), 127)
                                   for row in sums for v, scale in zip(row, scales)])


def ties(r):
    """Quantized products next to a tie, in every form: whoever adds up rounded floats gets to the
    other side."""
    for fixed in True, False:
        for channel in [], [5]:
            for wide in True, False:
                yield Alone("MatMul", 13, quantized_factors(r, [3, 270], [270, 5], (INT8, UINT8),
                                                            fixed, channel, wide, True), [INT8],
                            (None, 1))
    for types in BYTES:
        for fixed in True, False:
            for moved, a, b in ("a", [270, 3], [270, 5]), ("b", [3, 270], [5, 270]), (
                    "y", [3, 270], [270, 5]), ("ab", [270, 3], [5, 270]), (
                    "m", [2, 3, 270], [270, 5]):
                yield Dequantized("MatMul", 13, quantized_factors(r, a, b, types, fixed, [], True),
                                  [types[0]], (None, None), r.random() < 0.3, moved)
            for a, b in FACTORS:
                channel = [b[-1]] if len(b) == 2 and r.random() < 0.5 else []
                given = quantized_factors(r, a, b, types, fixed, channel, r.random() < 0.3,
                                          r.random() < 0.5)
                yield Case("QLinearMatMul", 10, given, [types[0]], 0, 0)
                yield Dequantized("MatMul", 13, list(given), [types[0]], (None, 1),
                                  r.random() < 0.3)
            for axes, groups in (1, 1), (1, 3), (2, 1), (2, 2), (2, 4), (3, 1), (3, 2):
                channels, size, kernel = 4 if groups == 4 else 12 * groups, [5] * axes, [3] * axes
                x, outs = [1, channels] + size, 4 * groups
                w = [outs, channels // groups] + kernel
                channel = [outs] if r.random() < 0.5 else []
                bias = [ints(r, INT32, [outs], -50, 50, True)] * r.randint(0, 1)
                given = quantized_factors(r, x, w, types, fixed, channel, r.random() < 0.3) + bias
                pads = r.choice([None, [1] * 2 * axes])
                yield Case("QLinearConv", 10, given, [types[0]], 0, 0, group=groups, pads=pads)
                yield Dequantized("Conv", 13, list(given), [types[0]], (None, 0), r.random() < 0.3,
                                  group=groups, pads=pads)
            for ta, tb in (0, 0), (0, 1), (1, 0), (1, 1):
                m, n, k = 3, 5, 270
                channel = [n] if r.random() < 0.5 else []
                given = quantized_factors(r, [k, m] if ta else [m, k], [n, k] if tb else [k, n],
                                          types, fixed, channel, r.random() < 0.3,
                                          r.random() < 0.5)
                bias = [ints(r, INT32, [n], -50, 50, True)] * r.randint(0, 1)
                attrs = {"transA": ta, "transB": tb}
                alpha = r.choice([1.0, 0.5, 0.3])
                whole_y = r.random() < 0.7
                yield Case("QGemm", 1, given[:6] + (bias or [None]) + given[6:] * whole_y,
                           [types[0] if whole_y else FLOAT], 0, 0, "com.microsoft", alpha=alpha,
                           **attrs)
                yield Dequantized("Gemm", 13, given + bias, [types[0]], (None, 1 - tb),
                                  r.random() < 0.3, **attrs)


def edges(r):
    return [*whole_convolutions(r), *powers(), *types(), *shapes(), *masks(), *limits(),
            *windows(r), *transposed(r), *lengths(r), *not_numbers(), *crops(r), *positions(r),
            *operands(r), *misfits(r), *ties(r)]


# -- both sides --

def read(path):
    with open(path, "rb") as source:
        return source.read()


def ours(epctx, folder):
    done = subprocess.run([epctx, "run", os.path.join(folder, "model.onnx"), "--input-dir", folder,
                           "--output-dir", os.path.join(folder, "out")], stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    return done.returncode, done.stderr.decode("utf-8", "replace").strip()


def verdict(case, folder, result):
    code, message = result
    refused = os.path.exists(os.path.join(folder, "ort_error.txt"))
    if code < 0:
        return "wrong", f"killed by signal {-code}"
    if "context binary: " in message:
        return "wrong", f"compiled, but not loaded: {message}"
    if code > 0:
        return ("both refuse" if refused else "refused"), message
    if refused:
        text = read(os.path.join(folder, "ort_error.txt")).decode()
        return ("wrong", "computed, refused by ONNX Runtime: " + text) if isinstance(
            case, Careful) else ("only ours", text)
    rows = [line.split(" ")[3] for line in read(os.path.join(folder, "out",
                                                             "io.txt")).decode().splitlines()
            if line.startswith("output")]
    for i, elem_type in enumerate(case.outputs):
        dims = read(os.path.join(folder, f"ort_{i}.dims")).decode()
        if rows[i] != dims:
            return "wrong", f"output {i} has shape {rows[i]}, expected {dims}"
        got, want = (array.array(CODES[elem_type], read(os.path.join(folder, name)))
                     for name in (f"out/output_{i}.bin", f"ort_{i}.bin"))
        at = case.close(got, want)
        plain = os.path.join(folder, f"plain_{i}.bin")
        if at is not None and os.path.exists(plain):
            again = array.array(CODES[elem_type], read(plain))
            at = case.between(got, want, again)
        if at is not None:
            x = case.inputs[0][2]
            return "wrong", (f"output {i}, element {at} of {len(want)} is {got[at]!r}, "
                             f"expected {want[at]!r}") + (
                f" of {x[at]!r}" if len(x) == len(want) else "")
    return "ok", ""


def batch(epctx, cases, root, threads, plain=False):
    """`plain`: ONNX Runtime runs every model a second time, without optimizations."""
    folders = [os.path.join(root, str(i)) for i in range(len(cases))]
    for case, folder in zip(cases, folders):
        case.write(folder)
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "ort_run.py")
    with (subprocess.Popen([sys.executable, script, "cases"] + folders) as runtime,
          concurrent.futures.ThreadPoolExecutor(threads) as workers):
        results = list(workers.map(lambda folder: ours(epctx, folder), folders))
    if runtime.returncode == 0 and plain:
        runtime = subprocess.run([sys.executable, script, "cases", "--plain"] + folders,
                                 check=False)
    if runtime.returncode != 0:
        sys.exit(f"ort_run.py ended with exit code {runtime.returncode}")
    return [verdict(*one) for one in zip(cases, folders, results)]


def main():
    words, options = sys.argv[1:], {"--cases": "300", "--seed": "1", "--keep": ""}
    for name in list(options):
        if name in words:
            at = words.index(name)
            options[name] = words[at + 1]
            del words[at:at + 2]
    if not words:
        sys.exit(__doc__)
    operators = words[1:] or sorted(MAKERS)
    r = random.Random(int(options["--seed"]))
    if operators in (["edges"], ["ties"]):
        cases = edges(r) if operators == ["edges"] else list(ties(r))
        operators = sorted({case.op for case in cases})
    else:
        cases = [MAKERS[operators[i % len(operators)]](r) for i in range(int(options["--cases"]))]
    counts, failed = {}, {}
    for first in range(0, len(cases), 500):
        part = cases[first:first + 500]
        root = tempfile.mkdtemp()
        try:
            for i, (case, (word, text)) in enumerate(zip(part,
                                                         batch(words[0], part, root, os.cpu_count()
                                                               or 1))):
                counts[word] = counts.get(word, 0) + 1
                if word == "wrong":
                    failed.setdefault(case.op, []).append(f"case {first + i}, {case}: {text}")
                    if options["--keep"]:
                        shutil.copytree(os.path.join(root, str(i)),
                                        os.path.join(options["--keep"], f"{case.op}_{first + i}"))
                elif options["--keep"] and word in ("refused", "only ours"):
                    print(f"note {word}: {case}: {text}")
        finally:
            shutil.rmtree(root)
    for op in operators:
        if op in failed:
            for text in failed[op][:40 if options["--keep"] else 4]:
                print(f"FAIL operator {op}: expected ONNX Runtime's result, found {text}")
            print(f"note {op}: {len(failed[op])} wrong")
        else:
            print(f"ok operator {op}")
    print("note " + ", ".join(f"{count} {word}" for word, count in sorted(counts.items())))
    if Steps.seen > 0:
        print(f"note {Steps.off} of {Steps.seen} bytes one step off")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
