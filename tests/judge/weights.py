#!/usr/bin/python3
"""Judges `epctx weights`: models with known overlaps, and what python counts in them.

    tests/judge/weights.py EPCTX FOLDER

Prints the lines of the test protocol. The models hold the same bytes in different forms (raw, typed
fields, external data, a Constant node) and near misses of every kind.
"""
import json
import os
import struct
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from onnx_schema import ModelProto  # noqa: E402

FLOAT, INT8, INT32, DOUBLE = 1, 3, 6, 11
NAMES = {FLOAT: "float32", INT8: "int8", INT32: "int32", DOUBLE: "float64"}
SIZES = {FLOAT: 4, INT8: 1, INT32: 4, DOUBLE: 8}
EXTERNAL, TENSOR = 1, 4


def floats(count, seed):
    return struct.pack("<%df" % count, *(((i * 37 + seed * 11) % 101 - 50) / 16
                                         for i in range(count)))


def model(path, weights):
    """weights: (name, dtype, dims, bytes, form)"""
    m = ModelProto(ir_version=8)
    m.opset_import.add(domain="", version=13)
    m.graph.name = "weights"
    data = b""
    for name, dtype, dims, content, form in weights:
        if form == "constant":
            node = m.graph.node.add(op_type="Constant", output=[name])
            attr = node.attribute.add(name="value", type=TENSOR)
            tensor = attr.t
        else:
            tensor = m.graph.initializer.add(name=name)
        tensor.data_type = dtype
        tensor.dims.extend(dims)
        if form == "typed":
            tensor.float_data.extend(struct.unpack("<%df" % (len(content) // 4), content))
        elif form == "external":
            tensor.data_location = EXTERNAL
            for key, value in (("location", os.path.basename(path) + ".data"),
                               ("offset", str(len(data))), ("length", str(len(content)))):
                tensor.external_data.add(key=key, value=value)
            data += content
        else:
            tensor.raw_data = content
    with open(path, "wb") as out:
        out.write(m.SerializeToString())
    if data:
        with open(path + ".data", "wb") as out:
            out.write(data)


def flip(content, at):
    return content[:at] + bytes((content[at] ^ 1,)) + content[at + 1:]


failed = False


def case(name, got, want):
    global failed
    if got == want:
        print("ok", name)
    else:
        failed = True
        print("FAIL %s: found %r, expected %r" % (name, got, want))


def run(epctx, *arguments):
    done = subprocess.run((epctx, "weights") + arguments, capture_output=True, check=False)
    if done.returncode != 0:
        print("FAIL epctx weights: exit code %d: %s" % (done.returncode, done.stderr.decode()))
        sys.exit(1)
    return done.stdout.decode()


def main():
    epctx, folder = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    a, b, c = (os.path.join(folder, name) for name in ("a.onnx", "b.onnx", "c.onnx"))
    big = floats(5000, 1)
    models = {
        a: [("shared", FLOAT, (50, 100), big, "raw"),
            ("twice", FLOAT, (50, 100), big, "typed"),
            ("typed", FLOAT, (7,), floats(7, 2), "typed"),
            ("dtype", FLOAT, (2, 2), floats(4, 3), "raw"),
            ("shape", FLOAT, (2, 3), floats(6, 4), "raw"),
            ("byte", FLOAT, (40, 50), floats(2000, 5), "raw"),
            ("nameless_a", FLOAT, (31, 41), floats(1271, 6), "raw"),
            ("kind_a", INT32, (3,), b"abcdefghijkl", "raw"),
            ("retrained", FLOAT, (64,), bytes(range(256)), "raw"),
            ("half", INT8, (8,), b"abcdefgh", "raw"),
            ("lonely", FLOAT, (11,), floats(11, 7), "raw")],
        b: [("other name", FLOAT, (5000,), big, "external"),
            ("typed", FLOAT, (7,), floats(7, 2), "constant"),
            ("dtype", DOUBLE, (2, 2), floats(8, 3), "raw"),
            ("shape", FLOAT, (3, 3), floats(9, 4), "raw"),
            ("byte", FLOAT, (40, 50), flip(floats(2000, 5), 4321), "external"),
            ("nameless_b", FLOAT, (31, 41), flip(floats(1271, 6), 5083), "raw"),
            ("kind_b", INT8, (12,), b"abcdefghijkl", "raw"),
            ("retrained", FLOAT, (64,), bytes(range(255, -1, -1)), "raw"),
            ("half", INT8, (8,), b"xbxdxfxh", "raw"),
            ("far", FLOAT, (11,), floats(11, 8), "raw")],
        c: [("third", FLOAT, (5000,), big, "raw"),
            ("only here", FLOAT, (3,), floats(3, 9), "raw")],
    }
    for path, weights in models.items():
        model(path, weights)
    got = json.loads(run(epctx, "--json", a, b, c))

    where = {}
    for path, weights in models.items():
        for weight in weights:
            where.setdefault(weight[3], set()).add(path)
    every = [weight[3] for weights in models.values() for weight in weights]
    case("weights: all", [got["weights"], got["bytes"]], [len(every), sum(map(len, every))])
    case("weights: stored once", [got["stored_weights"], got["stored_bytes"]],
         [len(where), sum(map(len, where))])
    case("weights: saved", got["saved_bytes"], sum(map(len, every)) - sum(map(len, where)))
    for entry, (path, weights) in zip(got["models"], models.items()):
        want = [path, len(weights), sum(len(w[3]) for w in weights),
                sum(len(w[3]) for w in weights if len(where[w[3]]) > 1)]
        case("weights: model " + os.path.basename(path),
             [entry["file"], entry["weights"], entry["bytes"], entry["shared_bytes"]], want)

    near = {(n["a"]["name"], n["b"]["name"]):
            (n["reason"], n["shared_bytes"], n["differing_bytes"], n["first"]) for n in got["near"]}
    case("weights: near misses", near, {
        ("dtype", "dtype"): ("dtype", False, 0, 0),
        ("shape", "shape"): ("shape", False, 0, 0),
        ("byte", "byte"): ("bytes", False, 1, 4321),
        ("nameless_a", "nameless_b"): ("bytes", False, 1, 5083),
        ("kind_a", "kind_b"): ("dtype", True, 0, 0),
        ("half", "half"): ("bytes", False, 4, 0),
    })
    case("weights: nothing but the name", got["unlike"], 1)
    case("weights: shapes", [n["b"]["shape"] for n in got["near"] if n["reason"] == "shape"],
         [[3, 3]])
    case("weights: dtypes", sorted((n["a"]["dtype"], n["b"]["dtype"]) for n in got["near"]
                                   if n["reason"] == "dtype"),
         [("float32", "float64"), ("int32", "int8")])
    text = run(epctx, a, b, c)
    for part in ("1 weight of the same name, type and shape: most",
                 "1 of 8000 bytes different, the first at 4321", "shape [2, 3] and [3, 3]",
                 "dtype float32 and float64", "stored once: %d bytes" % got["saved_bytes"]):
        case("weights: text has '%s'" % part, part in text, True)
    case("weights: one model", json.loads(run(epctx, "--json", c))["saved_bytes"], 0)
    case("weights: a model twice", json.loads(run(epctx, "--json", c, c))["saved_bytes"],
         sum(len(w[3]) for w in models[c]))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
