#!/usr/bin/python3
"""Runs models in ONNX Runtime, on one thread of its CPU EP; for the other judges also a module.

    tests/judge/ort_run.py [--exact] MODEL IN_DIR OUT_DIR
    tests/judge/ort_run.py cases [--plain] FOLDER...

IN_DIR holds what `epctx run --dump` writes: io.txt with a line for each input and output,

    input  <i> <ONNX element type> <d0,d1,... or -> <name>
    output <i> <ONNX element type> <d0,d1,... or -> <name>

and input_<i>.bin, the elements in row order, little-endian. OUT_DIR gets output_<i>.bin of the same
kind, and io.txt with the types and shapes found. --exact: QDQ models sum exactly on processors
without VNNI, too, where products of bytes saturate.

`cases` runs many small models: each FOLDER holds model.onnx, io.txt and input_<i>.bin, and gets
ort_<i>.bin and ort_<i>.dims for every output, or ort_error.txt when session or run fails. --plain:
plain_... instead, of the model as it is, without optimizations. Products between int8 are joined as
those between uint8, as is the default on ARM64.
"""
import collections
import ctypes
import os
import re
import sys

import numpy

os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # before the library is loaded
import onnxruntime  # noqa: E402

# ONNX element type -> the name that ONNX Runtime gives it, bytes of an element. Strings and
# elements of less than a byte have no file.
TYPES = {1: ("float", 4), 2: ("uint8", 1), 3: ("int8", 1), 4: ("uint16", 2), 5: ("int16", 2),
         6: ("int32", 4), 7: ("int64", 8), 9: ("bool", 1), 10: ("float16", 2), 11: ("double", 8),
         12: ("uint32", 4), 13: ("uint64", 8), 16: ("bfloat16", 2)}
WORDS = {1: numpy.uint8, 2: numpy.uint16, 4: numpy.uint32, 8: numpy.uint64}
LINE = re.compile(r"(input|output) (\d+) (\d+) (-|\d+(?:,\d+)*) (.*)")

Row = collections.namedtuple("Row", "what index elem_type dims name")
Tensor = collections.namedtuple("Tensor", "elem_type dims data")  # data: bytes


class Failure(Exception):
    """What cannot be read or run here, and why."""


def dims_text(dims):
    return ",".join(map(str, dims)) or "-"


def count_of(dims):
    count = 1
    for dim in dims:
        count *= dim
    return count


def read(path):
    with open(path, "rb") as source:
        return source.read()


def write(path, data):
    with open(path, "wb") as out:
        out.write(data)


# ---------------------------------------------------------------- ONNX Runtime

def session(path, exact=False, plain=False, severity=3, int8=False):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = severity
    options.add_session_config_entry("session.x64quantprecision", str(int(exact)))
    if int8:
        options.add_session_config_entry("session.qdqisint8allowed", "1")
    if plain:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    made = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    made.disable_fallback()
    return made


def inputs_of(made):
    """Name, element type and dimensions of each input, those that are open as 1."""
    numbers = {f"tensor({name})": number for number, (name, _) in TYPES.items()}
    for value in made.get_inputs():
        if value.type not in numbers:
            raise Failure(f"input '{value.name}': {value.type} is not supported here")
        yield value.name, numbers[value.type], [
            dim if isinstance(dim, int) and dim >= 0 else 1 for dim in value.shape]


def to_ort(name, tensor):
    if tensor.elem_type not in TYPES:
        raise Failure(f"input '{name}': element type {tensor.elem_type} is not supported here")
    size = TYPES[tensor.elem_type][1]
    if len(tensor.data) != count_of(tensor.dims) * size:
        raise Failure(f"input '{name}': {len(tensor.data)} bytes, "
                      f"expected {count_of(tensor.dims) * size}")
    # A copy with an alignment of its own, which the value keeps.
    words = numpy.frombuffer(tensor.data, WORDS[size]).reshape(tensor.dims).copy()
    return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(words, tensor.elem_type)


def from_ort(name, value):
    if not value.has_value() or not value.is_tensor():
        raise Failure(f"output '{name}' is no tensor")
    if value.element_type() not in TYPES:
        raise Failure(f"output '{name}': {value.data_type()} is not supported here")
    return Tensor(value.element_type(), list(value.shape()),
                  ctypes.string_at(value.data_ptr(), value.tensor_size_in_bytes()))


def run(made, feeds):
    """All outputs of a session, by name. `feeds`: name -> Tensor."""
    names = [output.name for output in made.get_outputs()]
    results = made.run_with_ort_values(names, {name: to_ort(name, feeds[name]) for name in feeds})
    return {name: from_ort(name, value) for name, value in zip(names, results)}


# ---------------------------------------------------------------------- files

def read_io(folder):
    path = os.path.join(folder, "io.txt")
    for line in read(path).decode().split("\n"):
        found = LINE.fullmatch(line)
        if found:
            what, index, elem_type, dims, name = found.groups()
            yield Row(what, int(index), int(elem_type),
                      [] if dims == "-" else [int(dim) for dim in dims.split(",")], name)
        elif line:
            raise Failure(f"{path}: cannot read the line '{line}'")


def run_folder(made, folder):
    """Rows and tensors of the outputs for the inputs of a folder."""
    rows = list(read_io(folder))
    results = run(made, {row.name: Tensor(row.elem_type, row.dims, read(
        os.path.join(folder, f"input_{row.index}.bin"))) for row in rows if row.what == "input"})
    outputs = [row for row in rows if row.what == "output"]
    if sorted(row.name for row in outputs) != sorted(results):
        raise Failure(f"{folder}/io.txt lists the outputs {[row.name for row in outputs]}, "
                      f"the model has {sorted(results)}")
    return [(row, results[row.name]) for row in outputs]


def run_model(path, folder, out, exact):
    lines = []
    os.makedirs(out, exist_ok=True)
    for row, tensor in run_folder(session(path, exact), folder):
        write(os.path.join(out, f"output_{row.index}.bin"), tensor.data)
        lines.append(f"output {row.index} {tensor.elem_type} {dims_text(tensor.dims)} {row.name}\n")
    write(os.path.join(out, "io.txt"), "".join(lines).encode())


def run_case(folder, stem):
    made = session(os.path.join(folder, "model.onnx"), plain=stem == "plain", severity=4,
                   int8=True)
    for row, tensor in run_folder(made, folder):
        write(os.path.join(folder, f"{stem}_{row.index}.dims"), dims_text(tensor.dims).encode())
        write(os.path.join(folder, f"{stem}_{row.index}.bin"), tensor.data)


def run_cases(folders, stem):
    for folder in folders:
        try:
            run_case(folder, stem)
        except Exception as error:  # ONNX Runtime's have no other base
            write(os.path.join(folder, f"{stem}_error.txt"), str(error).encode())


def main():
    words = sys.argv[1:]
    options = [word for word in words if word.startswith("--")]
    words = [word for word in words if word not in options]
    if words[:1] == ["cases"] and options in ([], ["--plain"]):
        return run_cases(words[1:], "plain" if options else "ort")
    if len(words) != 3 or options not in ([], ["--exact"]):
        sys.exit(__doc__)
    try:
        return run_model(*words, bool(options))
    except Exception as error:
        sys.exit(f"ort_run: {error}")


if __name__ == "__main__":
    main()
