#!/usr/bin/python3
"""What judges outputs is judged: examples/demo/compare.py and tests/judge/ort_run.py.

    tests/judge/compare.py FOLDER

Pairs of outputs that differ in one way each, on both sides of the limit, and a model of each
element type, whose bytes have to come back. Prints the lines that tests/run reads.
"""
import os
import random
import struct
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import onnx_schema  # noqa: E402
import ort_run  # noqa: E402

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples/demo/compare.py")
NAN, INFINITY = float("nan"), float("inf")
# One letter of Python's struct for each type; None: a bfloat16, the upper half of a float.
LETTERS = {1: "f", 2: "B", 3: "b", 4: "H", 5: "h", 6: "i", 7: "q", 9: "B", 10: "e", 11: "d",
           12: "I", 13: "Q", 16: None}
FAILED = False


def say(name, problem):
    global FAILED
    FAILED = FAILED or bool(problem)
    print(f"FAIL {name}: {problem}" if problem else f"ok {name}")


def packed(elem_type, values):
    if LETTERS[elem_type] is None:
        return b"".join(struct.pack("<f", value)[2:] for value in values)
    return struct.pack(f"<{len(values)}{LETTERS[elem_type]}", *values)


def output(folder, *tensors):
    """Each tensor: element type, dimensions as text, bytes."""
    os.makedirs(folder, exist_ok=True)
    lines = [f"output {i} {tensor[0]} {tensor[1]} y{i}\n" for i, tensor in enumerate(tensors)]
    ort_run.write(os.path.join(folder, "io.txt"), "".join(lines).encode())
    for i, tensor in enumerate(tensors):
        ort_run.write(os.path.join(folder, f"output_{i}.bin"), tensor[2])


def comparison(folder, name, reference, got, expected, *options):
    """`expected`: exit code, and text in what is printed."""
    pair = [os.path.join(folder, name.replace(" ", "_"), side) for side in ("reference", "got")]
    output(pair[0], *reference)
    output(pair[1], *got)
    done = subprocess.run([sys.executable, "-I", SCRIPT, *pair, *options], capture_output=True,
                          text=True, check=False)
    code, text = expected
    said = done.stdout + done.stderr
    say(f"compare: {name}", "" if done.returncode == code and text in said else
        f"expected exit code {code} and '{text}', found {done.returncode} and {said!r}")


def floats(*values, dims=None):
    return 1, dims or str(len(values)), packed(1, values)


def comparisons(folder):
    def case(name, reference, got, code, text, *options):
        comparison(folder, name, reference, got, (code, text), *options)

    one = [floats(8, -4)]
    case("equal", one, one, 0, "same   y0               max|d| 0.00e+0  max|ref| 8.00e+0")
    case("just within", one, [floats(8, -4.00079)], 0, "max|d| 7.90e-4  max|ref| 8.00e+0  ratio")
    case("just beyond", one, [floats(8, -4.00081)], 1, "WRONG  y0")
    case("within another tolerance", one, [floats(8, -4.007)], 0, "same", "--tolerance", "1e-3")
    case("beyond another tolerance", one, [floats(8, -4.009)], 1, "WRONG", "--tolerance", "1e-3")
    case("tolerance of nothing", one, one, 0, "same", "--tolerance", "0")
    for bad in ("nan", "-1", "x"):
        case(f"tolerance {bad}", one, one, 2, "--tolerance", f"--tolerance={bad}")
    case("NaN", one, [floats(8, NAN)], 1, "NaN at element 1")
    case("NaN on both sides", [floats(8, NAN)], [floats(8, NAN)], 1, "NaN at element 1")
    case("infinities", [floats(8, -INFINITY)], [floats(8, -INFINITY)], 0, "max|ref| 8.00e+0")
    case("another infinity", [floats(8, -INFINITY)], [floats(8, INFINITY)], 1, "inf at element 1")
    case("beside an infinity", [floats(8, INFINITY)], [floats(7, INFINITY)], 1, "max|d| 1.00e+0")
    case("no infinity", [floats(8, INFINITY)], [floats(8, 4)], 1, "4.0 at element 1, expected inf")
    case("zero throughout", [floats(0, 0)], [floats(0, 0)], 1, "all zero")
    case("zero is allowed", [floats(0, 0)], [floats(0, 0)], 0, "same", "--allow-zero")
    case("no zero", [floats(0, 0)], [floats(0, 1e-30)], 1, "WRONG", "--allow-zero")
    case("empty", [floats(dims="0")], [floats(dims="0")], 1, "empty")
    case("shorter", one, [floats(8, dims="2")], 1, "4 bytes, expected 8")
    case("half an element", [(1, "2", b"abcdef")], [(1, "2", b"abcdef")], 1, "no whole elements")
    case("other dimensions", one, [floats(8, -4, dims="1,2")], 1, "expected type 1, dimensions 2")
    case("another type", one, [(6, "2", one[0][2])], 1, "type 6, dimensions 2, expected type 1")
    case("a type without numbers", [(8, "1", b"x")], [(8, "1", b"x")], 1, "type 8 cannot be")
    case("a second output", one + one, one + [floats(8, -5)], 1, "WRONG  y1")
    case("a missing output", one + one, one, 1, "missing")
    case("a further output", one, one + one, 1, "2 outputs, expected 1")
    case("no outputs", [], [], 1, "0 outputs, expected 0 and at least one")
    for elem_type, (name, _) in ort_run.TYPES.items():
        most = 1 if name == "bool" else 100
        reference, other = ([(elem_type, "2", packed(elem_type, v))] for v in ((most, 1),
                                                                             (most, 0)))
        case(f"{name} is the same", reference, reference, 0, f"max|ref| {most:.2e}"[:-2])
        case(f"{name} differs", reference, other, 1, "max|d| 1.00e+0")


def identity(elem_type, dims):
    model = onnx_schema.ModelProto(ir_version=8)
    model.opset_import.add(domain="", version=16)
    model.graph.name = "identity"
    model.graph.node.add(op_type="Identity", input=["x"], output=["y"])
    for value in (model.graph.input.add(name="x"), model.graph.output.add(name="y")):
        value.type.tensor_type.elem_type = elem_type
        for dim in dims:
            value.type.tensor_type.shape.dim.add(dim_value=dim)
    return model.SerializeToString()


def through_ort(folder, elem_type, dims, data):
    """What ONNX Runtime makes of an input that it copies to the output; a problem, or None."""
    path = os.path.join(folder, "model.onnx")
    ort_run.write(path, identity(elem_type, dims))
    made = ort_run.session(path)
    if list(ort_run.inputs_of(made)) != [("x", elem_type, dims)]:
        return f"inputs {list(ort_run.inputs_of(made))}"
    found = ort_run.run(made, {"x": ort_run.Tensor(elem_type, dims, data)})
    return None if found == {"y": (elem_type, dims, data)} else f"of {data!r} {found}"


def runs(folder):
    r = random.Random(1)
    for elem_type, (name, size) in ort_run.TYPES.items():
        for dims in ([], [2, 3], [0, 2]):
            count = ort_run.count_of(dims) * size
            data = bytes(r.randrange(2 if name == "bool" else 256) for _ in range(count))
            say(f"ONNX Runtime: {name} {dims}", through_ort(folder, elem_type, dims, data))
    for name, elem_type, data, text in (("too few bytes", 1, b"abc", "3 bytes, expected 4"),
                                        ("strings", 8, b"abc", "string) is not supported")):
        try:
            problem = through_ort(folder, elem_type, [1], data) or "no refusal"
        except ort_run.Failure as failure:
            problem = "" if text in str(failure) else str(failure)
        say(f"ONNX Runtime: {name}", problem)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    os.makedirs(sys.argv[1], exist_ok=True)
    comparisons(sys.argv[1])
    runs(sys.argv[1])
    sys.exit(1 if FAILED else 0)


if __name__ == "__main__":
    main()
