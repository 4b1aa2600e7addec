#!/usr/bin/python3
"""ONNX's backend tests through `epctx compile --require-all` and `epctx run`.

    tests/judge/backend_nodes.py EPCTX DATA_FOLDER UNSUPPORTED_LIST

Takes every test of the folder with tensors of floats, integers or bool and
static, non-empty shapes, but for operators that OUTSIDE names. The tests hand even
weights, shapes and axes over at run time; real models hold them as constants.
So each test becomes up to two cases:

    NAME constants   the inputs named in PARAMETERS turned into initializers
    NAME inputs      as it stands, unless it hands over a shape or axes
                     (SHAPES), which would make its own shapes dynamic

A case passes when the model compiles with no node left behind and the outputs
agree: integers are equal, floats to |d| <= 1e-5 + 1e-3 * |reference|.

UNSUPPORTED_LIST names cases that may be refused: "PATTERN<tab>reason" on each
line, with shell wildcards. A refusal has to come with a message. A wrong
output is never excused; neither is a line none of whose cases is refused any
more.

Prints the lines that tests/run reads.
"""
import array
import concurrent.futures
import fnmatch
import glob
import math
import os
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import onnx_schema  # noqa: E402

# What cannot run with static shapes: sequences, results whose size depends on data, chance,
# training, text.
OUTSIDE = set("""
    Adagrad Adam Bernoulli Compress ConcatFromSequence Gradient Momentum NonMaxSuppression
    NonZero OptionalGetElement OptionalHasElement RandomNormalLike RandomUniformLike
    SequenceAt SequenceConstruct SequenceEmpty SequenceErase SequenceInsert SequenceLength
    SequenceMap SplitToSequence StringNormalizer TfIdfVectorizer Unique""".split())

# Expected outputs that a later ONNX corrected; ONNX Runtime gives the corrected ones.
SUPERSEDED = {"test_resize_downsample_scales_cubic_align_corners",
              "test_resize_downsample_scales_linear_align_corners",
              # bfloat16 cut off instead of rounded, or held as float32
              "test_cast_FLOAT_to_BFLOAT16", "test_castlike_BFLOAT16_to_FLOAT",
              "test_castlike_BFLOAT16_to_FLOAT_expanded", "test_castlike_FLOAT_to_BFLOAT16",
              "test_castlike_FLOAT_to_BFLOAT16_expanded"}

# Input positions that hold parameters.
PARAMETERS = {
    "BatchNormalization": (1, 2, 3, 4), "Clip": (1, 2), "ConstantOfShape": (0,), "Conv": (1, 2),
    "ConvTranspose": (1, 2), "DFT": (1, 2), "Loop": (0, 1), "STFT": (1, 3),
    "ConvInteger": (1, 2, 3), "DequantizeLinear": (1, 2), "Dropout": (1, 2), "Expand": (1,),
    "GRU": (1, 2, 3), "Gemm": (1, 2),
    "BlackmanWindow": (0,), "HammingWindow": (0,), "HannWindow": (0,),
    "LSTM": (1, 2, 3), "LayerNormalization": (1, 2), "MatMul": (1,), "CumSum": (1,),
    "MelWeightMatrix": (0, 1, 2, 3, 4),
    "MatMulInteger": (1, 2, 3), "MaxUnpool": (2,),
    "OneHot": (1, 2),
    "Pad": (1, 2, 3), "QLinearConv": (1, 2, 3, 4, 5, 6, 7, 8),
    "QLinearMatMul": (1, 2, 3, 4, 5, 6, 7), "QuantizeLinear": (1, 2), "RNN": (1, 2, 3),
    "Range": (0, 1, 2),
    "ReduceL1": (1,), "ReduceL2": (1,), "ReduceLogSum": (1,), "ReduceLogSumExp": (1,),
    "ReduceMax": (1,), "ReduceMean": (1,), "ReduceMin": (1,), "ReduceProd": (1,),
    "ReduceSum": (1,), "ReduceSumSquare": (1,), "Reshape": (1,), "Resize": (1, 2, 3),
    "Slice": (1, 2, 3, 4), "Split": (1,), "Squeeze": (1,), "Tile": (1,), "TopK": (1,),
    "Trilu": (1,), "Unsqueeze": (1,), "Upsample": (1,),
}
# Those of them that decide about shapes: at run time they would make the results dynamic.
SHAPES = {
    "BlackmanWindow": (0,), "HammingWindow": (0,), "HannWindow": (0,),
    "ConstantOfShape": (0,), "CumSum": (1,), "DFT": (1, 2), "Loop": (0, 1), "STFT": (1, 3),
    "Expand": (1,), "MaxUnpool": (2,), "MelWeightMatrix": (0, 1, 2, 3, 4), "OneHot": (1,),
    "Pad": (1, 3), "Range": (0, 1, 2),
    "ReduceL1": (1,), "ReduceL2": (1,), "ReduceLogSum": (1,), "ReduceLogSumExp": (1,),
    "ReduceMax": (1,), "ReduceMean": (1,), "ReduceMin": (1,), "ReduceProd": (1,),
    "ReduceSum": (1,), "ReduceSumSquare": (1,), "Reshape": (1,), "Resize": (1, 2, 3),
    "Slice": (1, 2, 3, 4), "Split": (1,), "Squeeze": (1,), "Tile": (1,), "TopK": (1,),
    "Trilu": (1,), "Unsqueeze": (1,), "Upsample": (1,),
}

# ONNX element type: array code. Of bfloat16 and float16 (H): their bits.
CODES = {1: "f", 2: "B", 3: "b", 4: "H", 5: "h", 6: "i", 7: "q", 9: "B", 10: "H", 11: "d", 12: "I",
         13: "Q", 16: "H"}
FLOAT, INT64, FLOAT16, DOUBLE, BFLOAT16 = 1, 7, 10, 11, 16
RELATIVE, ABSOLUTE = 1e-3, 1e-5


def read(path):
    with open(path, "rb") as source:
        return source.read()


def values(tensor):
    """A TensorProto's elements."""
    result = array.array(CODES[tensor.data_type])
    if tensor.raw_data:
        result.frombytes(tensor.raw_data)
    else:
        result.extend({FLOAT: tensor.float_data, INT64: tensor.int64_data,
                       DOUBLE: tensor.double_data, 12: tensor.uint64_data,
                       13: tensor.uint64_data}.get(tensor.data_type, tensor.int32_data))
    return result


def numbers(elem_type, values):
    """Those of bits."""
    if elem_type == FLOAT16:
        return struct.unpack(f"<{len(values)}e", values.tobytes())
    if elem_type == BFLOAT16:
        return [struct.unpack("<f", struct.pack("<I", bits << 16))[0] for bits in values]
    return values


def used_as(graph, table):
    """Names of the values that nodes take at the positions of a table."""
    return {node.input[i] for node in graph.node for i in table.get(node.op_type, ())
            if i < len(node.input) and node.input[i]}


def usable(info):
    """Whether a value is a static, non-empty tensor of a type taken here."""
    if info.type.WhichOneof("value") != "tensor_type":
        return False
    tensor = info.type.tensor_type
    return tensor.elem_type in CODES and tensor.HasField("shape") and all(
        dim.WhichOneof("value") == "dim_value" and dim.dim_value > 0 for dim in tensor.shape.dim)


class Case:
    """inputs and outputs: (name, TensorProto) in the model's order."""

    def __init__(self, name, model, inputs, outputs):
        self.name, self.model, self.inputs, self.outputs = name, model, inputs, outputs


def cases_of(folder):
    """The cases that one test folder gives; none when it is not selected."""
    model = onnx_schema.parse(read(os.path.join(folder, "model.onnx")))
    graph = model.graph
    if (os.path.basename(folder) in SUPERSEDED or not graph.node
            or any(n.op_type in OUTSIDE or n.domain for n in graph.node)):
        return
    if not all(map(usable, list(graph.input) + list(graph.output))):
        return
    data = os.path.join(folder, "test_data_set_0")

    def tensors(kind):
        count = len(glob.glob(os.path.join(data, kind + "_*.pb")))
        return [onnx_schema.parse(read(os.path.join(data, f"{kind}_{i}.pb")),
                                  onnx_schema.TensorProto) for i in range(count)]

    constant = {tensor.name for tensor in graph.initializer}
    given = [info for info in graph.input if info.name not in constant]
    inputs, outputs = tensors("input"), tensors("output")
    if len(inputs) != len(given) or len(outputs) != len(graph.output):
        sys.exit(f"{folder}: its data do not fit its inputs and outputs")
    inputs = list(zip([info.name for info in given], inputs))
    outputs = list(zip([info.name for info in graph.output], outputs))
    name = os.path.basename(folder)
    names = {info.name for info in given}
    if inputs and not names & used_as(graph, SHAPES):
        yield Case(name + " inputs", model.SerializeToString(), inputs, outputs)

    parameters = names & used_as(graph, PARAMETERS)
    if not parameters:
        return
    left = []
    for input_name, tensor in inputs:
        if input_name in parameters:
            new = graph.initializer.add()
            new.CopyFrom(tensor)
            new.name = input_name
        else:
            left.append((input_name, tensor))
    # Before IR 4 every initializer was to be listed as an input as well.
    if model.ir_version >= 4:
        kept = [info for info in graph.input if info.name not in parameters]
        del graph.input[:]
        graph.input.extend(kept)
    yield Case(name + " constants", model.SerializeToString(), left, outputs)


class Refused(Exception):
    """epctx does not take the model, and says so."""


class Wrong(Exception):
    """Anything else that keeps a case from passing."""


def run(*command):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, check=False)
    return done.returncode, done.stderr.decode("utf-8", "backslashreplace").strip()


def dims_text(tensor):
    return ",".join(map(str, tensor.dims)) or "-"


def check(epctx, case, folder):
    """Raises when the case does not pass."""
    source, compiled = os.path.join(folder, "model.onnx"), os.path.join(folder, "model_ctx.onnx")
    with open(source, "wb") as out:
        out.write(case.model)
    code, message = run(epctx, "compile", "--require-all", source, "-o", compiled)
    if code < 0:
        raise Wrong(f"compile was killed by signal {-code}")
    if code > 0:
        if not message:
            raise Wrong("compile refused it without a word")
        raise Refused(message.splitlines()[-1])
    with open(os.path.join(folder, "io.txt"), "w", encoding="utf-8") as out:
        for word, tensors in (("input", case.inputs), ("output", case.outputs)):
            for i, (name, tensor) in enumerate(tensors):
                out.write(f"{word} {i} {tensor.data_type} {dims_text(tensor)} {name}\n")
    for i, (_, tensor) in enumerate(case.inputs):
        with open(os.path.join(folder, f"input_{i}.bin"), "wb") as out:
            values(tensor).tofile(out)
    results = os.path.join(folder, "out")
    os.mkdir(results)
    code, message = run(epctx, "run", compiled, "--input-dir", folder, "--output-dir", results)
    if code != 0:
        raise Wrong(f"run ended with exit code {code}: {(message.splitlines() or [''])[-1]}")
    for i, (_, tensor) in enumerate(case.outputs):
        compare(i, read(os.path.join(results, f"output_{i}.bin")), values(tensor),
                tensor.data_type)


def compare(index, data, want, elem_type):
    if len(data) != len(want) * want.itemsize or not want:
        raise Wrong(f"output {index} has {len(data)} bytes, expected {len(want) * want.itemsize}")
    got = array.array(want.typecode)
    got.frombytes(data)
    relative = RELATIVE * {FLOAT16: 2, BFLOAT16: 8}.get(elem_type, 1)
    for at, (g, w) in enumerate(zip(numbers(elem_type, got), numbers(elem_type, want))):
        if g == w or (math.isnan(g) and math.isnan(w)):
            continue
        if not isinstance(g, float) or math.isinf(w) or \
                not abs(g - w) <= ABSOLUTE + relative * abs(w):
            raise Wrong(f"output {index}, element {at} of {len(want)} is {g!r}, expected {w!r}")


def verdict(epctx, case):
    """("ok" | "refused" | "wrong", text)"""
    with tempfile.TemporaryDirectory() as folder:
        try:
            check(epctx, case, folder)
        except Refused as refusal:
            return "refused", str(refusal)
        except (Wrong, OSError) as problem:
            return "wrong", str(problem)
    return "ok", ""


def unsupported(path):
    rows = []
    for line in read(path).decode().splitlines():
        if line and not line.startswith("#"):
            pattern, reason = line.split("\t", 1)
            rows.append((pattern, reason))
    return rows


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    epctx, data, excuses = sys.argv[1], sys.argv[2], unsupported(sys.argv[3])
    folders = sorted(glob.glob(os.path.join(data, "*", "test_*")))
    cases = [case for folder in folders if os.path.exists(os.path.join(folder, "model.onnx"))
             for case in cases_of(folder)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        verdicts = list(pool.map(lambda case: verdict(epctx, case), cases))

    failed = False
    needed = set()
    refused = 0
    for case, (word, text) in zip(cases, verdicts):
        excuse = next((e for e in excuses if fnmatch.fnmatchcase(case.name, e[0])), None)
        if word == "refused" and excuse:
            needed.add(excuse)
            refused += 1
        elif word == "ok":
            print(f"ok {case.name}")
        else:
            failed = True
            print(f"FAIL {case.name}: expected the right outputs, found: {text}")
    for pattern, _ in [e for e in excuses if e not in needed]:
        failed = True
        print(f"FAIL unsupported list: {pattern!r} excuses nothing any more, remove it")
    print(f"note {len(cases)} cases of {len(folders)} backend tests selected, {refused} refused "
          "for a reason on the list")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
