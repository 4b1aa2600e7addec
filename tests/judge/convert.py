#!/usr/bin/python3
"""What a conversion must leave as it was, judged by libprotobuf.

    tests/judge/convert.py contexts|weights BEFORE AFTER
    tests/judge/convert.py generations|refer|weightless|spoil ONE TWO

contexts: the models differ in ep_cache_context, embed_mode and main_context of
EPContext nodes alone; weights: in where initializers have their data.
generations writes two models with embedded contexts that differ; refer writes
TWO, whose raw initializers are references into the model ONE; weightless TWO,
whose only node is an EPContext node that takes the initializers of ONE; spoil
TWO, which is ONE with a change in every initializer.
Says what else differs and exits with 1.
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import onnx_schema  # noqa: E402

CONTEXT = ("ep_cache_context", "embed_mode", "main_context")
STORAGE = ("raw_data", "external_data", "data_location")


def skeleton(path, kind):
    with open(path, "rb") as source:
        model = onnx_schema.parse(source.read())
    if kind == "contexts":
        for node in model.graph.node:
            if node.op_type == "EPContext":
                kept = [a for a in node.attribute if a.name not in CONTEXT]
                del node.attribute[:]
                node.attribute.extend(kept)
    else:
        for tensor in model.graph.initializer:
            for field in STORAGE + ("float_data", "int64_data", "int32_data"):
                tensor.ClearField(field)
    return model


def generation(path, text):
    model = onnx_schema.ModelProto(ir_version=8)
    model.opset_import.add(domain="com.microsoft", version=1)
    model.graph.name = text.decode().strip()
    node = model.graph.node.add(op_type="EPContext", domain="com.microsoft", name="n",
                                input=("x",), output=("y",))
    node.attribute.add(name="embed_mode", type=2, i=1)
    node.attribute.add(name="ep_cache_context", type=3, s=text * 5000)
    node.attribute.add(name="source", type=3, s=b"FakeEP")
    with open(path, "wb") as out:
        out.write(model.SerializeToString())
    with open(path + ".context", "wb") as out:
        out.write(text * 5000)


def refer(source, path):
    with open(source, "rb") as data:
        text = data.read()
    model = onnx_schema.parse(text)
    for tensor in model.graph.initializer:
        raw = tensor.raw_data
        if len(raw) < 64:
            continue
        for key, value in (("location", os.path.basename(source)), ("offset", text.index(raw)),
                           ("length", len(raw))):
            tensor.external_data.add(key=key, value=str(value))
        tensor.data_location = 1
        tensor.ClearField("raw_data")
    with open(path, "wb") as out:
        out.write(model.SerializeToString())


def weightless(source, path):
    with open(source, "rb") as data:
        theirs = onnx_schema.parse(data.read())
    model = onnx_schema.ModelProto(ir_version=8)
    model.opset_import.add(domain="com.microsoft", version=1)
    model.graph.name = "weightless"
    model.graph.initializer.extend(theirs.graph.initializer)
    model.graph.output.extend(theirs.graph.output)
    node = model.graph.node.add(op_type="EPContext", domain="com.microsoft", name="n",
                                input=[t.name for t in theirs.graph.initializer],
                                output=[v.name for v in theirs.graph.output])
    node.attribute.add(name="ep_cache_context", type=3, s=b"context")
    node.attribute.add(name="source", type=3, s=b"MyEP")
    with open(path, "wb") as out:
        out.write(model.SerializeToString())


def spoil(source, path):
    with open(source, "rb") as data:
        model = onnx_schema.parse(data.read())
    for tensor in model.graph.initializer:
        raw = bytearray(tensor.raw_data)
        for i in range(min(1, len(raw))):
            raw[i] ^= 1
        tensor.raw_data = bytes(raw)
    with open(path, "wb") as out:
        out.write(model.SerializeToString())


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    kind, before, after = sys.argv[1:]
    if kind == "generations":
        generation(before, b"one ")
        generation(after, b"two ")
        return
    writers = {"refer": refer, "weightless": weightless, "spoil": spoil}
    if kind in writers:
        writers[kind](before, after)
        return
    a, b = skeleton(before, kind), skeleton(after, kind)
    if a.SerializeToString(deterministic=True) != b.SerializeToString(deterministic=True):
        sys.exit(f"{before} and {after} differ in more than {kind}:\n{a}\n{b}")


if __name__ == "__main__":
    main()
