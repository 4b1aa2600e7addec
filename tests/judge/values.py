#!/usr/bin/python3
"""Makes models that say the same in different ways, to compare values with.

    tests/judge/values.py FOLDER

    FOLDER/raw.onnx        a tensor of every element type, attributes of every type
    FOLDER/typed.onnx      the same tensors in the typed fields; opset imports,
                           metadata, attributes and initializers in another order;
                           the default domain by its other name
    FOLDER/external.onnx   as raw.onnx, with the tensors in FOLDER/tensors.bin
    FOLDER/other.onnx      as typed.onnx, the last element of every tensor is another
"""
import os
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from onnx_schema import ModelProto  # noqa: E402

# Element type: bytes of one number of the typed field, and the field.
TYPES = {1: (4, "float_data"), 14: (4, "float_data"), 11: (8, "double_data"),
         15: (8, "double_data"), 7: (8, "int64_data"), 12: (4, "uint64_data"),
         13: (8, "uint64_data"), 6: (4, "int32_data"), 10: (2, "int32_data"),
         16: (2, "int32_data"), 4: (2, "int32_data"), 5: (2, "int32_data"),
         2: (1, "int32_data"), 3: (1, "int32_data"), 9: (1, "int32_data"),
         **{kind: (1, "int32_data") for kind in range(17, 27)}}
# Elements of which several stand in a byte.
SMALL = {21: 2, 22: 2, 23: 2, 25: 4, 26: 4}
BYTES = 16  # of every tensor


def raw_bytes(kind, changed):
    """Bytes that are numbers of every type, without a float that is not one."""
    if kind == 9:
        data = [i & 1 for i in range(BYTES)]
    else:
        data = [(kind * 7 + i * 5) & 0x3f for i in range(BYTES)]
    data[-1] ^= changed
    return bytes(data)


def put(tensor, kind, way, changed):
    data = raw_bytes(kind, changed)
    size, field = TYPES[kind]
    tensor.data_type = kind
    per_element = 2 * size if kind in (14, 15) else size
    tensor.dims.extend((BYTES // per_element * SMALL.get(kind, 1),))
    if way == "raw":
        tensor.raw_data = data
        return
    code = {"float_data": "f", "double_data": "d", "int64_data": "q"}.get(field)
    if code is None:
        # Signed types are stored with their sign.
        code = {1: "B", 2: "H", 4: "I", 8: "Q"}[size]
        code = code.lower() if kind in (3, 5, 6) else code
    getattr(tensor, field).extend(struct.unpack(f"<{BYTES // size}{code}", data))


def attributes(node, way, changed):
    add = node.attribute.add
    todo = [
        lambda: add(name="f", type=1, f=1.5),
        lambda: add(name="i", type=2, i=-7),
        lambda: add(name="s", type=3, s=b"text\0\xff"),
        lambda: put(add(name="t", type=4).t, 1, way, changed),
        lambda: add(name="floats", type=6, floats=[0.1 * i for i in range(40)]),
        lambda: add(name="ints", type=7, ints=(1, -2, 3)),
        lambda: add(name="strings", type=8, strings=(b"a", b"")),
        lambda: put(add(name="tensors", type=9).tensors.add(), 22, way, changed),
        lambda: sparse(add(name="sparse", type=11).sparse_tensor, way, changed),
        lambda: sparse(add(name="sparses", type=12).sparse_tensors.add(), way, changed),
        lambda: types(add(name="tp", type=13).tp),
        lambda: types(add(name="tps", type=14).type_protos.add()),
    ]
    for do in todo if way == "raw" else reversed(todo):
        do()


def sparse(message, way, changed):
    message.dims.extend((3, 9))
    put(message.values, 6, way, changed)
    put(message.indices, 7, way, 0)


def types(message):
    message.map_type.key_type = 8
    message.map_type.value_type.sequence_type.elem_type.sparse_tensor_type.elem_type = 10
    message.denotation = "WORDS"


def body(graph, way, changed):
    node = graph.node.add(op_type="Constant", domain="", name="in the body", output=["b"])
    put(node.attribute.add(name="value", type=4).t, 16, way, changed)
    graph.output.add(name="b")


def make(way, changed=0):
    model = ModelProto(ir_version=13, producer_name="epctx tests")
    default = "" if way == "raw" else "ai.onnx"
    imports = [(default, 21), ("test.domain", 1)]
    pairs = [("first", "1"), ("second", "2")]
    for domain, version in imports if way == "raw" else reversed(imports):
        model.opset_import.add(domain=domain, version=version)
    for key, value in pairs if way == "raw" else reversed(pairs):
        model.metadata_props.add(key=key, value=value)
    graph = model.graph
    graph.name = "values"
    kinds = sorted(TYPES)
    for kind in kinds if way == "raw" else reversed(kinds):
        put(graph.initializer.add(name=f"of type {kind}"), kind, way, changed)
    strings = graph.initializer.add(name="of type 8", data_type=8, dims=(2,))
    strings.string_data.extend((b"one", b"another" if changed else b"two"))
    sparse(graph.sparse_initializer.add(), way, changed)
    graph.sparse_initializer[0].values.name = "sparse"
    everything = graph.node.add(op_type="Everything", domain="test.domain", name="all",
                                output=["o"])
    attributes(everything, way, changed)
    body(everything.attribute.add(name="g", type=5).g, way, changed)
    body(everything.attribute.add(name="graphs", type=10).graphs.add(), way, changed)
    graph.output.add(name="o")
    function = model.functions.add(name="Own", domain="test.domain", output=["b"])
    function.opset_import.add(domain="", version=21)
    node = function.node.add(op_type="Constant", output=["b"])
    put(node.attribute.add(name="value", type=4).t, 11, way, changed)
    training = model.training_info.add()
    body(training.algorithm, way, changed)
    training.update_binding.add(key="w", value="b")
    return model


def move_out(model, folder):
    """Puts the initializers into a file."""
    data = b""
    for tensor in model.graph.initializer:
        if not tensor.HasField("raw_data"):
            continue
        for key, value in (("location", "tensors.bin"), ("offset", str(len(data))),
                           ("length", str(len(tensor.raw_data)))):
            tensor.external_data.add(key=key, value=value)
        data += tensor.raw_data
        tensor.data_location = 1
        tensor.ClearField("raw_data")
    with open(os.path.join(folder, "tensors.bin"), "wb") as out:
        out.write(data)
    return model


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = sys.argv[1]
    models = {"raw": make("raw"), "typed": make("typed"), "other": make("typed", 1),
              "external": move_out(make("raw"), folder)}
    for name, model in models.items():
        with open(os.path.join(folder, name + ".onnx"), "wb") as out:
            out.write(model.SerializeToString())


if __name__ == "__main__":
    main()
