#!/usr/bin/python3
"""Prints the index of an ONNX model, as libprotobuf reads it.

    tests/judge/dump.py [--values] FILE

One record per line, fields separated by tabs, in this order:

    model       ir=<ir_version>  producer=<producer_name>  functions=<count>
                opsets=<domain:version,...>
    graph       <path>  <name>             the main graph, if the model has one
    input       <name>  <type>
    output      <name>  <type>
    value       <name>  <type>             value_info
    init        <name>  <data_type>  [<d0>,<d1>,...]
    sparse      <name>                     sparse_initializer (its values' name)
    node        <index>  <domain>  <op_type>  <name>  in=<a,b,...>  out=<c,...>
    attr        <name>  <type>             after its node, type as a number
    graph ...                              each subgraph, see below
    function    <domain>  <name>           then its node and attr lines

The path of the main graph is "/", of a subgraph its parent's path followed by
"<node index>.<attribute name>/", or "<node index>.<attribute name>[<k>]/" for
the k-th of a `graphs` attribute. A graph's subgraphs follow when the whole of
it is printed, each with its own subgraphs right behind it, in the order of
nodes and attributes (`g` before `graphs`; a graph counts when it is there,
whatever the attribute's type says). Graphs inside functions are not printed.

<type> is "<elem_type>:[<d0>,<d1>,...]" for a tensor, with a number, the
dim_param or "?" for each dimension; "<elem_type>:-" for a tensor without a
shape; "other" for any other type or none. A field that is not set reads as
its default (0, empty). Bytes below 0x21, from 0x7f on and the backslash are
written as \\xHH.

With --values everything else is printed too, except the device configurations
and the segments of tensors, which nobody uses:

    model, function, attr, init and sparse have more fields (see below), `other`
    types are spelled out, graphs in functions are printed (their path starts
    with "function[<k>]/"), and there are these records more:

    more        <name>  <text>             producer_version, domain, doc_string,
                                           overload, when it is not empty
    meta        <key>  <text>              metadata_props of the record above
    tensor      <name>  <data_type>  [..]  <data>   of an attribute or a sparse tensor
    type        <type>                     of an attribute
    annotation  <tensor_name>, then pair <key> <text>
    opset       <domain>  <version>        of a function, then its value and attr lines
    training    <k>, then initialize and update <key> <text>, then its graphs
                ("initialization[<k>]/", "algorithm[<k>]/")

An attribute's value is by its type: a number; a float with nine digits; a
text; or a list of them, [a,b,...]. Before it stands ref=<ref_attr_name>, when
there is one. <text> is "=" and the text, or its <sum> when it is longer than
200 bytes; a list of more than 32 is a <sum> too, of 8-byte integers, 4-byte
floats, or strings with their length in 8 bytes before them. <data> is
"external:<location>:<offset>:<length>" ("-": not told, or no number), else the
<sum> of the elements as raw_data would have them, strings as in lists. <sum> is
"$" and up to 64 bytes in hex, or "#<size>:<CRC-32>". All numbers are
little-endian.
"""
import math
import os
import re
import struct
import sys
import zlib

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import onnx_schema  # noqa: E402

UNSAFE = re.compile(rb"[\x00-\x20\x7f-\xff\\]")


def raw(value):
    """A string field's bytes: Python gives bytes when they are no UTF-8."""
    return value if isinstance(value, bytes) else value.encode("utf-8", "surrogateescape")


def esc(value):
    return UNSAFE.sub(lambda m: b"\\x%02x" % m.group()[0], raw(value)).decode("ascii")


def dims(values):
    return "[" + ",".join(values) + "]"


# -- types --

def elements(tensor):
    if not tensor.HasField("shape"):
        return f"{tensor.elem_type}:-"
    shape = []
    for dim in tensor.shape.dim:
        kind = dim.WhichOneof("value")
        shape.append(str(dim.dim_value) if kind == "dim_value"
                     else esc(dim.dim_param) if kind == "dim_param" else "?")
    return f"{tensor.elem_type}:{dims(shape)}"


def whole_type(info):
    which = info.WhichOneof("value")
    if which is None:
        text = "none"
    elif which == "tensor_type":
        text = elements(info.tensor_type)
    elif which == "sparse_tensor_type":
        text = f"sparse({elements(info.sparse_tensor_type)})"
    elif which == "map_type":
        text = f"map({info.map_type.key_type},{whole_type(info.map_type.value_type)})"
    elif which == "opaque_type":
        text = f"opaque({esc(info.opaque_type.domain)},{esc(info.opaque_type.name)})"
    else:
        text = f"{which[:-5]}({whole_type(getattr(info, which).elem_type)})"
    return text + ("@" + esc(info.denotation) if info.denotation else "")


def type_text(info, values):
    if values:
        return whole_type(info.type)
    which = info.type.WhichOneof("value") if info.HasField("type") else None
    return elements(info.type.tensor_type) if which == "tensor_type" else "other"


# -- values --

def checksum(data):
    return "$" + data.hex() if len(data) <= 64 else f"#{len(data)}:{zlib.crc32(data):08x}"


def text(value):
    return "=" + esc(value) if len(raw(value)) <= 200 else checksum(raw(value))


def counted(strings):
    return b"".join(struct.pack("<Q", len(raw(s))) + raw(s) for s in strings)


def wire_bytes(message, name):
    """The elements of a repeated fixed32 or fixed64 field as they are: through
    Python's floats some of the values that are not numbers would change."""
    alone = type(message)()
    alone.CopyFrom(message)
    for field, _ in alone.ListFields():
        if field.name != name:
            alone.ClearField(field.name)
    alone.DiscardUnknownFields()
    field = message.DESCRIPTOR.fields_by_name[name]
    data = alone.SerializeToString()
    size = 4 if field.cpp_type == field.CPPTYPE_FLOAT else 8
    count = len(getattr(message, name))
    if not count:
        return b""
    if field.GetOptions().packed:
        return data[-count * size:]
    assert len(data) == count * (size + 1), "one byte of tag"
    return b"".join(data[i + 1:i + 1 + size] for i in range(0, len(data), size + 1))


INT32_SIZES = {2: 1, 3: 1, 4: 2, 5: 2, 6: 4, 9: 1, 10: 2, 16: 2, **dict.fromkeys(range(17, 27), 1)}


def tensor_bytes(tensor):
    kind = tensor.data_type
    if kind == 8:
        return counted(tensor.string_data)
    if tensor.HasField("raw_data"):
        return tensor.raw_data
    if kind in (1, 14):
        return wire_bytes(tensor, "float_data")
    if kind in (11, 15):
        return wire_bytes(tensor, "double_data")
    if kind == 7:
        return struct.pack(f"<{len(tensor.int64_data)}q", *tensor.int64_data)
    if kind == 12:
        return b"".join(struct.pack("<I", v & 0xffffffff) for v in tensor.uint64_data)
    if kind == 13:
        return struct.pack(f"<{len(tensor.uint64_data)}Q", *tensor.uint64_data)
    size = INT32_SIZES.get(kind)
    return b"" if size is None else b"".join(
        (v & (1 << 8 * size) - 1).to_bytes(size, "little") for v in tensor.int32_data)


def decimal(value):
    number = int(value) if re.fullmatch(r"[0-9]+", value, re.ASCII) else -1
    return number if 0 <= number < 1 << 64 else (1 << 64) - 1


def data_text(tensor):
    if tensor.data_location != 1:
        return checksum(tensor_bytes(tensor))
    found = {"location": "", "offset": 0, "length": (1 << 64) - 1}
    for entry in tensor.external_data:
        if raw(entry.key) == b"location":
            found["location"] = entry.value
        elif raw(entry.key) in (b"offset", b"length"):
            found[entry.key] = decimal(raw(entry.value).decode("latin-1"))
    told = ("-" if found[key] == (1 << 64) - 1 else found[key] for key in ("offset", "length"))
    return ":".join(("external", esc(found["location"]), *map(str, told)))


def float_text(value):
    return "nan" if math.isnan(value) else "%.9g" % value


def attr_value(attribute):
    """The fields of an attribute's record behind its type."""
    ref = ["ref=" + esc(attribute.ref_attr_name)] if attribute.ref_attr_name else []
    kind = attribute.type
    if kind == 1:
        return ref + [float_text(attribute.f)]
    if kind == 2:
        return ref + [str(attribute.i)]
    if kind == 3:
        return ref + [text(attribute.s)]
    if kind == 6:
        return ref + [checksum(wire_bytes(attribute, "floats")) if len(attribute.floats) > 32
                      else dims(map(float_text, attribute.floats))]
    if kind == 7:
        return ref + [checksum(struct.pack(f"<{len(attribute.ints)}q", *attribute.ints))
                      if len(attribute.ints) > 32 else dims(map(str, attribute.ints))]
    if kind == 8:
        return ref + [checksum(counted(attribute.strings)) if len(attribute.strings) > 32
                      else dims(map(text, attribute.strings))]
    return ref


# -- records --

class Dump:
    def __init__(self, values):
        self.values = values
        self.out = []

    def line(self, *fields):
        self.out.append("\t".join(fields))

    def more(self, message, *names):
        """The texts of a message, doc_string always, and its metadata."""
        if not self.values:
            return
        for name in (*names, "doc_string"):
            if getattr(message, name):
                self.line("more", name, text(getattr(message, name)))
        self.pairs("meta", getattr(message, "metadata_props", ()))

    def pairs(self, word, pairs):
        if self.values:
            for pair in pairs:
                self.line(word, esc(pair.key), text(pair.value))

    def tensor(self, word, tensor):
        self.line(word, esc(tensor.name), str(tensor.data_type), dims(map(str, tensor.dims)),
                  *([data_text(tensor)] if self.values else []))
        self.more(tensor)

    def sparse(self, sparse):
        self.line("sparse", esc(sparse.values.name),
                  *([dims(map(str, sparse.dims))] if self.values else []))
        if self.values:
            self.tensor("tensor", sparse.values)
            self.tensor("tensor", sparse.indices)

    def infos(self, word, infos):
        for info in infos:
            self.line(word, esc(info.name), type_text(info, self.values))
            self.more(info)

    def attrs(self, attributes):
        for attribute in attributes:
            self.line("attr", esc(attribute.name), str(attribute.type),
                      *(attr_value(attribute) if self.values else []))
            if not self.values:
                continue
            self.more(attribute)
            kind = attribute.type
            single = {4: "t", 11: "sparse_tensor", 13: "tp"}.get(kind)
            members = ([getattr(attribute, single)] if single and attribute.HasField(single)
                       else attribute.tensors if kind == 9 else attribute.sparse_tensors
                       if kind == 12 else attribute.type_protos if kind == 14 else [])
            for member in members:
                if kind in (4, 9):
                    self.tensor("tensor", member)
                elif kind in (11, 12):
                    self.sparse(member)
                else:
                    self.line("type", whole_type(member))

    def nodes(self, nodes):
        for index, node in enumerate(nodes):
            self.line("node", str(index), esc(node.domain), esc(node.op_type), esc(node.name),
                      "in=" + ",".join(map(esc, node.input)),
                      "out=" + ",".join(map(esc, node.output)))
            self.more(node, "overload")
            self.attrs(node.attribute)

    def bodies(self, nodes, path):
        for index, node in enumerate(nodes):
            for attribute in node.attribute:
                base = f"{path}{index}.{esc(attribute.name)}"
                if attribute.HasField("g"):
                    self.graph(attribute.g, base + "/")
                for k, sub in enumerate(attribute.graphs):
                    self.graph(sub, f"{base}[{k}]/")

    def graph(self, graph, path):
        self.line("graph", path, esc(graph.name))
        self.more(graph)
        self.infos("input", graph.input)
        self.infos("output", graph.output)
        self.infos("value", graph.value_info)
        for tensor in graph.initializer:
            self.tensor("init", tensor)
        for sparse in graph.sparse_initializer:
            self.sparse(sparse)
        for annotation in graph.quantization_annotation if self.values else ():
            self.line("annotation", esc(annotation.tensor_name))
            self.pairs("pair", annotation.quant_parameter_tensor_names)
        self.nodes(graph.node)
        self.bodies(graph.node, path)

    def function(self, function, index):
        more = (["in=" + ",".join(map(esc, function.input)),
                 "out=" + ",".join(map(esc, function.output)),
                 "attrs=" + ",".join(map(esc, function.attribute))] if self.values else [])
        self.line("function", esc(function.domain), esc(function.name), *more)
        self.more(function, "overload")
        if self.values:
            for opset in function.opset_import:
                self.line("opset", esc(opset.domain), str(opset.version))
            self.infos("value", function.value_info)
            self.attrs(function.attribute_proto)
        self.nodes(function.node)
        if self.values:
            self.bodies(function.node, f"function[{index}]/")

    def training(self, training, index):
        self.line("training", str(index))
        self.pairs("initialize", training.initialization_binding)
        self.pairs("update", training.update_binding)
        for name in ("initialization", "algorithm"):
            if training.HasField(name):
                self.graph(getattr(training, name), f"{name}[{index}]/")

    def model(self, model):
        opsets = ",".join(f"{esc(o.domain)}:{o.version}" for o in model.opset_import)
        self.line("model", f"ir={model.ir_version}", "producer=" + esc(model.producer_name),
                  f"functions={len(model.functions)}", f"opsets={opsets}",
                  *([f"version={model.model_version}"] if self.values else []))
        self.more(model, "producer_version", "domain")
        if model.HasField("graph"):
            self.graph(model.graph, "/")
        for index, function in enumerate(model.functions):
            self.function(function, index)
        for index, training in enumerate(model.training_info if self.values else ()):
            self.training(training, index)


def dump(model, values=False):
    made = Dump(values)
    made.model(model)
    return "\n".join(made.out) + "\n"


def main():
    arguments = [a for a in sys.argv[1:] if a != "--values"]
    if len(arguments) != 1:
        sys.exit(__doc__)
    with open(arguments[0], "rb") as source:
        model = onnx_schema.parse(source.read())
    if model is None:
        sys.exit(f"{arguments[0]}: libprotobuf refuses it")
    sys.stdout.write(dump(model, "--values" in sys.argv))


if __name__ == "__main__":
    main()
