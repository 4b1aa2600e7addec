#!/usr/bin/python3
"""Makes a small language model the way such models are exported: one graph for
a prompt, one for the next token, one file of weights for both.

    tests/judge/transformer.py FOLDER [--layers N] [--width N] [--vocabulary N]

Writes prefill.onnx, decode.onnx and weights.bin. Shapes are static: the cache
of keys and values has room for CAPACITY positions.

    prefill   input_ids [1, PROMPT]
              -> logits [1, PROMPT, V], present_key_i, present_value_i
    decode    input_ids [1, 1], position [1], past_key_i, past_value_i
              -> logits [1, 1, V], present_key_i, present_value_i

The cache tensors are [1, HEADS, CAPACITY, width / HEADS]. Rotary positions;
the first norm of a layer is the operator LayerNormalization, the second a root
mean square made of its parts, as exporters write it. The same call makes the
same bytes.
"""
import argparse
import array
import math
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from onnx_schema import ModelProto, TensorProto  # noqa: E402

FLOAT, INT64, BOOL = 1, 7, 9
HEADS, PROMPT, CAPACITY = 4, 16, 32


class Weights:
    """The one file: both graphs ask for the same names."""

    def __init__(self):
        self.data, self.places, self.state = bytearray(), {}, 1

    def random(self):
        self.state = (self.state * 1664525 + 1013904223) & 0xffffffff
        return (self.state >> 8) / 8388608 - 1

    def place(self, name, dims, scale, offset):
        if name not in self.places:
            numbers = array.array("f", (self.random() * scale + offset
                                        for _ in range(math.prod(dims))))
            if sys.byteorder == "big":
                numbers.byteswap()
            self.data.extend(bytes(-len(self.data) % 64))
            self.places[name] = len(self.data), len(numbers) * 4
            self.data.extend(numbers.tobytes())
        return self.places[name]


class Graph:
    """A graph under construction; values are called by name."""

    def __init__(self, name, weights):
        self.model = ModelProto(ir_version=8, producer_name="epctx tests")
        self.model.opset_import.add(domain="", version=17)
        self.graph, self.weights, self.count = self.model.graph, weights, 0
        self.graph.name = name

    def value(self, infos, name, elem_type, dims):
        tensor = infos.add(name=name).type.tensor_type
        tensor.elem_type = elem_type
        for dim in dims:
            tensor.shape.dim.add(dim_value=dim)
        return name

    def input(self, name, elem_type, *dims):
        return self.value(self.graph.input, name, elem_type, dims)

    def output(self, name, value, *dims):
        self.graph.node.add(op_type="Identity", name=name, input=[value], output=[name])
        self.value(self.graph.output, name, FLOAT, dims)

    def op(self, op_type, *inputs, outputs=1, **attributes):
        self.count += 1
        names = [f"v{self.count}_{i}" for i in range(outputs)]
        node = self.graph.node.add(op_type=op_type, name=f"{op_type}_{self.count}", input=inputs,
                                   output=names)
        for key, item in attributes.items():
            if isinstance(item, int):
                node.attribute.add(name=key, type=2, i=item)
            elif isinstance(item, float):
                node.attribute.add(name=key, type=1, f=item)
            else:
                node.attribute.add(name=key, type=7, ints=item)
        return names[0] if outputs == 1 else names

    def weight(self, name, *dims, scale=None, offset=0.0):
        if not any(tensor.name == name for tensor in self.graph.initializer):
            at, size = self.weights.place(name, dims, scale or dims[0] ** -0.5, offset)
            tensor = self.graph.initializer.add(name=name, data_type=FLOAT, dims=dims,
                                                data_location=TensorProto.EXTERNAL)
            for key, text in (("location", "weights.bin"), ("offset", at), ("length", size)):
                tensor.external_data.add(key=key, value=str(text))
        return name

    def ints(self, *numbers):
        name = "i" + "_".join(map(str, numbers)).replace("-", "m")
        if not any(tensor.name == name for tensor in self.graph.initializer):
            self.graph.initializer.add(name=name, data_type=INT64, dims=[len(numbers)],
                                       int64_data=numbers)
        return name

    def floats(self, name, numbers, *dims):
        if not any(tensor.name == name for tensor in self.graph.initializer):
            self.graph.initializer.add(name=name, data_type=FLOAT, dims=dims, float_data=numbers)
        return name


class Model:
    """Either graph: `count` tokens at once."""

    def __init__(self, decode, options, weights):
        self.decode, self.count = decode, 1 if decode else PROMPT
        self.width, self.layers, self.vocabulary = options.width, options.layers, options.vocabulary
        self.head = self.width // HEADS
        self.g = Graph("decode" if decode else "prefill", weights)

    def positions(self):
        """The positions of the tokens, and the mask over the cache."""
        g = self.g
        ramp = g.op("Unsqueeze", self.g.op("Range", *(self.scalar(n) for n in (0, CAPACITY, 1))),
                    g.ints(0))
        if self.decode:
            self.at = g.op("Unsqueeze", g.input("position", INT64, 1), g.ints(1))
            seen = g.op("Not", g.op("Greater", ramp, self.at))
        else:
            self.at = g.op("Unsqueeze", g.op("Range", *(self.scalar(n) for n in (0, PROMPT, 1))),
                           g.ints(1))
            ones = g.op("Expand", g.floats("one", [1.0]), g.ints(PROMPT, CAPACITY))
            seen = g.op("Cast", g.op("Trilu", ones, upper=0), to=BOOL)
        self.written = g.op("Unsqueeze", g.op("Equal", g.op("Transpose", ramp), self.at),
                            g.ints(0, 1)) if self.decode else None
        self.mask = g.op("Where", seen, g.floats("zero", [0.0]), g.floats("closed", [-1e9]))

    def scalar(self, number):
        name = f"s{number}"
        if not any(tensor.name == name for tensor in self.g.graph.initializer):
            self.g.graph.initializer.add(name=name, data_type=INT64, int64_data=[number])
        return name

    def angles(self):
        g, half = self.g, self.head // 2
        speed = g.floats("speed", [10000.0 ** (-i / half) for i in range(half)], 1, half)
        angle = g.op("Mul", g.op("Cast", self.at, to=FLOAT), speed)
        angle = g.op("Concat", angle, angle, axis=-1)
        self.cos, self.sin = g.op("Cos", angle), g.op("Sin", angle)

    def rotate(self, x):
        g, half = self.g, self.head // 2
        first = g.op("Slice", x, g.ints(0), g.ints(half), g.ints(3))
        second = g.op("Slice", x, g.ints(half), g.ints(self.head), g.ints(3))
        turned = g.op("Concat", g.op("Neg", second), first, axis=-1)
        return g.op("Add", g.op("Mul", x, self.cos), g.op("Mul", turned, self.sin))

    def heads(self, x):
        g = self.g
        x = g.op("Reshape", x, g.ints(1, self.count, HEADS, self.head))
        return g.op("Transpose", x, perm=[0, 2, 1, 3])

    def cache(self, layer, what, new):
        """The keys or values of all positions: the past ones with the new ones put in."""
        g, dims = self.g, (1, HEADS, CAPACITY, self.head)
        if self.decode:
            past = g.input(f"past_{what}_{layer}", FLOAT, *dims)
            present = g.op("Where", self.written, new, past)
        else:
            present = g.op("Pad", new, g.ints(0, 0, 0, 0, 0, 0, CAPACITY - PROMPT, 0))
        g.output(f"present_{what}_{layer}", present, *dims)
        return present

    def attention(self, layer, x):
        g, d = self.g, self.width
        mixed = g.op("Add", g.op("MatMul", x, g.weight(f"qkv_{layer}", d, 3 * d)),
                     g.weight(f"qkv_bias_{layer}", 3 * d, scale=0.1))
        q, k, v = g.op("Split", mixed, g.ints(d, d, d), outputs=3, axis=-1)
        q, k = self.rotate(self.heads(q)), self.rotate(self.heads(k))
        keys, values = self.cache(layer, "key", k), self.cache(layer, "value", self.heads(v))
        scores = g.op("MatMul", q, g.op("Transpose", keys, perm=[0, 1, 3, 2]))
        scores = g.op("Div", scores, g.floats("root", [math.sqrt(self.head)]))
        weights = g.op("Softmax", g.op("Add", scores, self.mask), axis=-1)
        y = g.op("Transpose", g.op("MatMul", weights, values), perm=[0, 2, 1, 3])
        y = g.op("Reshape", y, g.ints(1, self.count, d))
        return g.op("MatMul", y, g.weight(f"out_{layer}", d, d))

    def square_norm(self, x, name):
        g = self.g
        mean = g.op("ReduceMean", g.op("Pow", x, g.floats("two", [2.0])), axes=[-1])
        root = g.op("Sqrt", g.op("Add", mean, g.floats("tiny", [1e-6])))
        scaled = g.op("Mul", x, g.op("Reciprocal", root))
        return g.op("Mul", scaled, g.weight(name, self.width, scale=0.2, offset=1.0))

    def gelu(self, x):
        g = self.g
        inner = g.op("Erf", g.op("Div", x, g.floats("root_two", [math.sqrt(2.0)])))
        return g.op("Mul", g.op("Mul", x, g.op("Add", inner, g.floats("one", [1.0]))),
                    g.floats("half", [0.5]))

    def make(self):
        g, d = self.g, self.width
        ids = g.input("input_ids", INT64, 1, self.count)
        self.positions()
        self.angles()
        x = g.op("Gather", g.weight("embedding", self.vocabulary, d, scale=1.0), ids)
        for layer in range(self.layers):
            y = g.op("LayerNormalization", x,
                     g.weight(f"norm_{layer}", d, scale=0.2, offset=1.0),
                     g.weight(f"norm_bias_{layer}", d, scale=0.1), axis=-1)
            x = g.op("Add", x, self.attention(layer, y))
            y = self.square_norm(x, f"second_norm_{layer}")
            y = g.op("Add", g.op("MatMul", y, g.weight(f"up_{layer}", d, 4 * d)),
                     g.weight(f"up_bias_{layer}", 4 * d, scale=0.1))
            y = g.op("MatMul", self.gelu(y), g.weight(f"down_{layer}", 4 * d, d))
            x = g.op("Add", x, y)
        x = self.square_norm(x, "last_norm")
        g.output("logits", g.op("MatMul", x, g.weight("head", d, self.vocabulary)), 1, self.count,
                 self.vocabulary)
        return g.model


def main():
    parser = argparse.ArgumentParser(description="a small language model in two graphs")
    parser.add_argument("folder")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--vocabulary", type=int, default=256)
    options = parser.parse_args()
    os.makedirs(options.folder, exist_ok=True)
    weights = Weights()
    models = {"prefill": Model(False, options, weights).make(),
              "decode": Model(True, options, weights).make()}
    for name, model in models.items():
        with open(os.path.join(options.folder, name + ".onnx"), "wb") as out:
            out.write(model.SerializeToString(deterministic=True))
    with open(os.path.join(options.folder, "weights.bin"), "wb") as out:
        out.write(weights.data)


if __name__ == "__main__":
    main()
