#!/usr/bin/python3
"""Makes small ONNX models to test with.

    tests/judge/make_model.py KIND OUT

    plain      Conv, Relu, GlobalAveragePool: all of it compiles
    extras     the same with everything in it that must survive a compilation:
               fields no schema knows, a function, producer, doc strings, metadata
    partly     as extras, with a node of an unknown domain between Conv and Relu
    dynamic    a batch dimension without a value
    double     float64 throughout
    weightless partly, but its only node is an EPContext node with the weights as inputs
    digits     a small network for pictures of digits: convolutions, pooling, a matrix
    inputless  one EPContext node, which has no input
    bytes      such a network in int8, between DequantizeLinear and QuantizeLinear
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from onnx_schema import ModelProto  # noqa: E402

FLOAT, INT8, INT32, DOUBLE = 1, 3, 6, 11
INT, STRING, INTS = 2, 3, 7


def unknown(message, number, text):
    """Adds a length-delimited field that the schema does not have."""
    key = number << 3 | 2
    encoded = bytes((key & 0x7f | 0x80, key >> 7 & 0x7f | 0x80, key >> 14, len(text))) + text
    message.MergeFromString(encoded)


def value(infos, name, elem_type, dims):
    info = infos.add(name=name)
    tensor = info.type.tensor_type
    tensor.elem_type = elem_type
    for dim in dims:
        if isinstance(dim, str):
            tensor.shape.dim.add(dim_param=dim)
        else:
            tensor.shape.dim.add(dim_value=dim)
    return info


def node(graph, op_type, name, inputs, outputs):
    return graph.node.add(op_type=op_type, name=name, input=inputs, output=outputs)


def weights(graph, name, elem_type, dims):
    tensor = graph.initializer.add(name=name, data_type=elem_type, dims=dims)
    count = 1
    for dim in dims:
        count *= dim
    numbers = [((i * 7) % 11 - 5) / 8 for i in range(count)]
    (tensor.float_data if elem_type == FLOAT else tensor.double_data).extend(numbers)


def make(kind):
    model = ModelProto(ir_version=8, producer_name="epctx tests")
    model.opset_import.add(domain="", version=13)
    elem_type = DOUBLE if kind == "double" else FLOAT
    batch = "N" if kind == "dynamic" else 1
    graph = model.graph
    graph.name = "small"
    value(graph.input, "x", elem_type, (batch, 1, 6, 6))
    value(graph.output, "y", elem_type, (batch, 2, 1, 1))
    weights(graph, "w", elem_type, (2, 1, 3, 3))
    weights(graph, "b", elem_type, (2,))
    conv = node(graph, "Conv", "conv", ("x", "w", "b"), ("c",))
    conv.attribute.add(name="kernel_shape", type=INTS, ints=(3, 3))
    last = "c"
    if kind == "partly":
        custom = node(graph, "Strange", "strange", ("c",), ("s",))
        custom.domain = "test.domain"
        custom.doc_string = "left as it is"
        custom.attribute.add(name="text", type=STRING, s=b"\0\xff bytes")
        unknown(custom, 2500, b"unknown to all in a node")
        model.opset_import.add(domain="test.domain", version=1)
        value(graph.value_info, "s", elem_type, (batch, 2, 4, 4))
        last = "s"
    node(graph, "Relu", "relu", (last,), ("r",))
    node(graph, "GlobalAveragePool", "pool", ("r",), ("y",))
    if kind in ("extras", "partly"):
        model.producer_version = "1.2.3"
        model.domain = "org.example"
        model.model_version = 42
        model.doc_string = "a model\nwith words"
        model.metadata_props.add(key="author", value="somebody")
        graph.doc_string = "a graph with words"
        graph.input[0].doc_string = "the input"
        unknown(model, 2300, b"unknown to all in the model")
        unknown(graph, 2400, b"unknown to all in the graph")
        unknown(graph.input[0], 2450, b"unknown to all in an input")
        function = model.functions.add(name="Twice", domain="org.example")
        function.input.append("a")
        function.output.append("z")
        function.opset_import.add(domain="", version=13)
        function.node.add(op_type="Add", input=("a", "a"), output=("z",))
        unknown(function, 2600, b"unknown to all in a function")
        model.opset_import.add(domain="org.example", version=1)
    return model


def make_digits():
    model = ModelProto(ir_version=8, producer_name="epctx tests")
    model.opset_import.add(domain="", version=13)
    graph = model.graph
    graph.name = "digits"
    value(graph.input, "picture", FLOAT, (1, 1, 28, 28))
    value(graph.output, "scores", FLOAT, (1, 10))
    last, channels = "picture", 1
    for i, (more, pool) in enumerate(((8, 2), (16, 3))):
        weights(graph, f"w{i}", FLOAT, (more, channels, 5, 5))
        weights(graph, f"b{i}", FLOAT, (more,))
        conv = node(graph, "Conv", f"conv{i}", (last, f"w{i}", f"b{i}"), (f"c{i}",))
        conv.attribute.add(name="pads", type=INTS, ints=(2, 2, 2, 2))
        node(graph, "Relu", f"relu{i}", (f"c{i}",), (f"r{i}",))
        maxpool = node(graph, "MaxPool", f"pool{i}", (f"r{i}",), (f"p{i}",))
        maxpool.attribute.add(name="kernel_shape", type=INTS, ints=(pool, pool))
        maxpool.attribute.add(name="strides", type=INTS, ints=(pool, pool))
        last, channels = f"p{i}", more
    node(graph, "Flatten", "flatten", (last,), ("flat",))
    weights(graph, "w", FLOAT, (256, 10))
    weights(graph, "b", FLOAT, (10,))
    node(graph, "Gemm", "gemm", ("flat", "w", "b"), ("scores",))
    return model


class Bytes:
    """A network of int8 under construction, from a picture to ten scores."""

    def __init__(self):
        self.model = ModelProto(ir_version=8, producer_name="epctx tests")
        self.model.opset_import.add(domain="", version=13)
        self.graph = self.model.graph
        self.graph.name = "bytes"
        value(self.graph.input, "picture", INT8, (1, 1, 28, 28))
        value(self.graph.output, "scores", INT8, (1, 10))
        self.last, self.scale = "picture", "1"
        self.number("1", FLOAT, 1 / 64)
        self.number("zero", INT8, -5)
        self.dequantize()

    def number(self, name, elem_type, number):
        tensor = self.graph.initializer.add(name=name, data_type=elem_type)
        (tensor.float_data if elem_type == FLOAT else tensor.int32_data).append(number)

    def dequantize(self):
        node(self.graph, "DequantizeLinear", "", (self.last, self.scale, "zero"),
             (self.last + "_f",))
        self.last += "_f"

    def add(self, op_type, name, inputs, scale, relu=False, **attributes):
        """A node whose result becomes bytes of `scale`."""
        step = node(self.graph, op_type, name, (self.last, *inputs), (name + "_y",))
        for key, ints in attributes.items():
            if isinstance(ints, int):
                step.attribute.add(name=key, type=INT, i=ints)
            else:
                step.attribute.add(name=key, type=INTS, ints=ints)
        self.last = name + "_y"
        if relu:
            node(self.graph, "Relu", "", (self.last,), (name + "_r",))
            self.last = name + "_r"
        self.scale = name + "_scale"
        self.number(self.scale, FLOAT, scale)
        node(self.graph, "QuantizeLinear", "", (self.last, self.scale, "zero"), (name,))
        self.last = name
        if name != "scores":
            self.dequantize()

    def weights(self, name, dims, axis=0):
        """Weights of a scale for each channel of `axis`."""
        count = 1
        for dim in dims:
            count *= dim
        tensor = self.graph.initializer.add(name=name + "_q", data_type=INT8, dims=dims)
        tensor.int32_data.extend((i * i * 31 + i * 7) % 255 - 127 for i in range(count))
        scales = self.graph.initializer.add(name=name + "_s", data_type=FLOAT, dims=dims[axis:][:1])
        scales.float_data.extend((2 + i % 3) / 400 for i in range(dims[axis]))
        step = node(self.graph, "DequantizeLinear", "", (name + "_q", name + "_s"), (name,))
        step.attribute.add(name="axis", type=INT, i=axis)
        return (name,)


def make_bytes():
    b = Bytes()
    b.add("Conv", "first", b.weights("w0", (8, 1, 5, 5)), 1 / 8, relu=True, pads=(2, 2, 2, 2))
    b.add("AveragePool", "half", (), 1 / 10, kernel_shape=(2, 2), strides=(2, 2))
    before = b.last
    b.add("Conv", "depthwise", b.weights("w1", (8, 1, 3, 3)), 1 / 7, pads=(1, 1, 1, 1), group=8)
    b.add("Add", "sum", (before,), 1 / 6, relu=True)
    b.add("Conv", "second", b.weights("w2", (16, 8, 5, 5)), 1 / 2, relu=True, pads=(2, 2, 2, 2))
    b.add("AveragePool", "third", (), 1 / 3, kernel_shape=(3, 3), strides=(3, 3))
    node(b.graph, "Flatten", "flatten", (b.last,), ("flat",))
    b.last = "flat"
    b.add("MatMul", "product", b.weights("w3", (256, 10), 1), 2)
    b.add("LeakyRelu", "scores", (), 2)
    return b.model


def takes_weights(model):
    """An EPContext node that takes all weights as inputs stands for the nodes."""
    weights = [t.name for t in model.graph.initializer]
    inputs = [v.name for v in model.graph.input if v.name not in weights]
    del model.graph.node[:]
    node = model.graph.node.add(op_type="EPContext", domain="com.microsoft", name="w")
    node.input.extend(inputs + weights)
    node.output.extend(v.name for v in model.graph.output)
    for name, value in (("main_context", 1), ("embed_mode", 1)):
        node.attribute.add(name=name, type=INT, i=value)
    for name, value in (("ep_cache_context", b"payload"), ("source", b"Some"),
                        ("onnx_model_filename", b"source.onnx")):
        node.attribute.add(name=name, type=STRING, s=value)
    model.opset_import.add(domain="com.microsoft", version=1)
    return model


def takes_nothing(model):
    """The same without any input."""
    model = takes_weights(model)
    del model.graph.node[0].input[:]
    del model.graph.node[0].attribute[-1]
    return model


SPECIAL = {"digits": make_digits, "bytes": make_bytes,
           "weightless": lambda: takes_weights(make("partly")),
           "inputless": lambda: takes_nothing(make("partly"))}
KINDS = ("plain", "extras", "partly", "dynamic", "double", *SPECIAL)


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in KINDS:
        sys.exit(__doc__)
    with open(sys.argv[2], "wb") as out:
        kind = sys.argv[1]
        out.write((SPECIAL[kind]() if kind in SPECIAL else make(kind)).SerializeToString())


if __name__ == "__main__":
    main()
