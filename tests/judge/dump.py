#!/usr/bin/python3
"""Prints the index of an ONNX model, as libprotobuf reads it.

    tests/judge/dump.py FILE

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
"""
import os
import re
import sys

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


def type_text(info):
    which = info.type.WhichOneof("value") if info.HasField("type") else None
    if which != "tensor_type":
        return "other"
    tensor = info.type.tensor_type
    if not tensor.HasField("shape"):
        return f"{tensor.elem_type}:-"
    shape = []
    for dim in tensor.shape.dim:
        kind = dim.WhichOneof("value")
        shape.append(str(dim.dim_value) if kind == "dim_value"
                     else esc(dim.dim_param) if kind == "dim_param" else "?")
    return f"{tensor.elem_type}:{dims(shape)}"


def node_lines(nodes, out):
    for index, node in enumerate(nodes):
        out.append("\t".join(("node", str(index), esc(node.domain), esc(node.op_type),
                              esc(node.name), "in=" + ",".join(map(esc, node.input)),
                              "out=" + ",".join(map(esc, node.output)))))
        for attribute in node.attribute:
            out.append(f"attr\t{esc(attribute.name)}\t{attribute.type}")


def graph_lines(graph, path, out):
    out.append(f"graph\t{path}\t{esc(graph.name)}")
    for word, infos in (("input", graph.input), ("output", graph.output),
                        ("value", graph.value_info)):
        for info in infos:
            out.append(f"{word}\t{esc(info.name)}\t{type_text(info)}")
    for tensor in graph.initializer:
        out.append(f"init\t{esc(tensor.name)}\t{tensor.data_type}\t{dims(map(str, tensor.dims))}")
    for sparse in graph.sparse_initializer:
        out.append(f"sparse\t{esc(sparse.values.name)}")
    node_lines(graph.node, out)
    for index, node in enumerate(graph.node):
        for attribute in node.attribute:
            base = f"{path}{index}.{esc(attribute.name)}"
            if attribute.HasField("g"):
                graph_lines(attribute.g, base + "/", out)
            for k, sub in enumerate(attribute.graphs):
                graph_lines(sub, f"{base}[{k}]/", out)


def dump(model):
    opsets = ",".join(f"{esc(o.domain)}:{o.version}" for o in model.opset_import)
    out = [f"model\tir={model.ir_version}\tproducer={esc(model.producer_name)}"
           f"\tfunctions={len(model.functions)}\topsets={opsets}"]
    if model.HasField("graph"):
        graph_lines(model.graph, "/", out)
    for function in model.functions:
        out.append(f"function\t{esc(function.domain)}\t{esc(function.name)}")
        node_lines(function.node, out)
    return "\n".join(out) + "\n"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with open(sys.argv[1], "rb") as source:
        model = onnx_schema.parse(source.read())
    if model is None:
        sys.exit(f"{sys.argv[1]}: libprotobuf refuses it")
    sys.stdout.write(dump(model))


if __name__ == "__main__":
    main()
