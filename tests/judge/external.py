"""Tensors in files, judged by ONNX Runtime.

  external.py rows EPCTX FACTS      each row of shapes.facts: what it says is what ORT does; lint
                                    says the same, `repair` and `init --external` cure it
  external.py cases FACTS           the node tests of the onnx package: no input is missing in FACTS
  external.py numbers EPCTX         offset and length of external data
  external.py models EPCTX MODEL... real models with everything in a file
Run in an empty folder. Prints a line for each check; exit code 1 if one failed.
"""
import os
import subprocess
import sys
import warnings

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

warnings.simplefilter("ignore")
onnxruntime.set_default_logger_severity(4)
FLOAT, INT64, INT32 = TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT32
MICROSOFT = "com.microsoft"
failed = False


def check(name, good, seen=""):
    global failed
    failed = failed or not good
    print(f"ok   {name}" if good else f"FAIL {name}: {seen}")


def load(path, optimize=True):
    """What ORT says against a model; empty: nothing."""
    options = onnxruntime.SessionOptions()
    if not optimize:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        return ""
    except Exception as error:  # of many types
        return str(error)


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def outside(tensor, name, **entries):
    """Its bytes go into a file."""
    data = tensor.raw_data
    with open(name, "wb") as file:
        file.write(data or b"\0")
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": name, **(entries or {"length": str(len(data))})}.items():
        tensor.external_data.add(key=key, value=value)
    return tensor


def rows_of(path):
    rows = {}
    for line in open(path, encoding="utf-8"):
        if not line.startswith("shape: "):
            continue
        keys = dict(pair.split(": ") for pair in line.strip().split("; "))
        domain, name = keys["shape"].split()
        reads = [int(word) for word in keys["reads"].split(", ")]
        sure = [int(word) for word in keys["sure"].split(", ")] if "sure" in keys else reads
        rows["" if domain == "ai.onnx" else domain, name] = reads, sure, "always" in keys
    return rows


def i64(*values):
    return np.array(values, np.int64)


def f32(*values):
    return np.array(values, np.float32)


# An input is a constant, a shape of floats (a tuple), a type with a shape (a list), or left out.
X = (2, 3, 4)
IMAGE = (1, 3, 4, 4)
SCALES = f32(1, 1, 2, 2)
PADS = i64(0, 0, 1, 0, 0, 1)
REDUCE = ["ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean",
          "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare"]


def decoder():
    value = helper.make_tensor_value_info
    return helper.make_graph([helper.make_node("Identity", ["a"], ["b"])], "decoder",
                             [value("a", INT32, ["B", "S"])], [value("b", FLOAT, ["B", "S", "V"])])


def search(scores, numbers):
    last = [np.array([2], np.int32) for _ in range(numbers)] + [f32(1)]
    return dict(domain=MICROSOFT, inputs=[scores] + last, fails=True,
                attrs=dict(decoder=decoder(), eos_token_id=1, pad_token_id=1))


# Operator, and one node or several of it. fails: it does not load, for another reason.
EXAMPLES = {
    "AffineGrid": [dict(inputs=[(1, 2, 3), i64(1, 1, 4, 4)], opset=20)],
    "BlackmanWindow": [dict(inputs=[np.int64(8)])],
    "CenterCropPad": [dict(inputs=[X, i64(2, 2, 2)], opset=18)],
    "Col2Im": [dict(inputs=[(1, 5, 5), i64(5, 5), i64(1, 5)], opset=18)],
    "ConstantOfShape": [dict(inputs=[i64(2, 2)], opset=9), dict(inputs=[i64(2, 2)], opset=23)],
    "DFT": [dict(inputs=[(1, 8, 1), np.int64(8), np.int64(1)], opset=20),
            dict(inputs=[(1, 8, 1), np.int64(8)], attrs=dict(axis=1))],
    "Expand": [dict(inputs=[X, i64(2, 3, 4)], opset=8)],
    "HammingWindow": [dict(inputs=[np.int64(8)])],
    "HannWindow": [dict(inputs=[np.int64(8)])],
    "MelWeightMatrix": [dict(inputs=[np.int64(8), np.int64(16), np.int64(8192), np.float32(0),
                                     np.float32(4096)])],
    "OneHot": [dict(inputs=[[INT64, (3,)], np.int64(5), i64(0, 1)], opset=11)],
    "Pad": [dict(inputs=[X, PADS, np.float32(0)], opset=11),
            dict(inputs=[X, i64(1, 1), np.float32(0), i64(1)], opset=18)],
    "Range": [dict(inputs=[np.int64(0), np.int64(5), np.int64(1)], opset=11)],
    "Reshape": [dict(inputs=[X, i64(6, 4)], opset=5), dict(inputs=[X, i64(6, 4)], opset=21)],
    "Resize": [dict(inputs=[IMAGE, SCALES], opset=10),
               dict(inputs=[IMAGE, f32(0, 0, 0, 0, 1, 1, 1, 1), SCALES], opset=13,
                    attrs=dict(mode="linear", coordinate_transformation_mode="tf_crop_and_resize")),
               dict(inputs=[IMAGE, None, None, i64(1, 3, 8, 8)], opset=19)],
    "STFT": [dict(inputs=[(1, 64, 1), np.int64(8), f32(*[1] * 16), np.int64(16)])],
    "Slice": [dict(inputs=[X, i64(0), i64(2), i64(1), i64(1)], opset=10),
              dict(inputs=[X, i64(0), i64(2)], opset=13)],
    "Split": [dict(inputs=[X, i64(1, 1)], opset=13, outputs=2)],
    "SplitToSequence": [dict(inputs=[X, i64(1, 1)], opset=11)],
    "Squeeze": [dict(inputs=[(1, 3), i64(0)], opset=13)],
    "Tile": [dict(inputs=[X, i64(1, 1, 2)], opset=6)],
    "TopK": [dict(inputs=[X, i64(2)], opset=10, outputs=2),
             dict(inputs=[X, i64(2)], opset=11, outputs=2)],
    "Unsqueeze": [dict(inputs=[X, i64(0)], opset=13)],
    "Upsample": [dict(inputs=[IMAGE, SCALES], opset=9)],
    "com.microsoft BeamSearch": [search([INT32, (2, 3)], 4)],
    "com.microsoft ConvTransposeWithDynamicPads": [
        dict(inputs=[(1, 1, 4, 4), np.ones((1, 1, 2, 2), np.float32), i64(0, 0, 0, 0)],
             domain=MICROSOFT)],
    "com.microsoft ExpandDims": [dict(inputs=[X, np.int32(1)], domain=MICROSOFT)],
    "com.microsoft GreedySearch": [search([INT32, (2, 3)], 2)],
    "com.microsoft Range": [dict(inputs=[np.int64(0), np.int64(5), np.int64(1)], domain=MICROSOFT)],
    "com.microsoft Sampling": [search([INT32, (2, 3)], 2)],
    "com.microsoft WhisperBeamSearch": [search((2, 3, 4), 4)],
    # Not in the table: their constants may be in a file.
    "Clip": [dict(inputs=[X, np.float32(0), np.float32(1)], opset=13, none=True)],
    "CumSum": [dict(inputs=[X, np.int64(1)], opset=14, none=True)],
    "Gather": [dict(inputs=[X, i64(1)], opset=13, none=True)],
    "MaxUnpool": [dict(inputs=[(1, 1, 2, 2), [INT64, (1, 1, 2, 2)], i64(1, 1, 4, 4)], opset=11,
                       attrs=dict(kernel_shape=[2, 2], strides=[2, 2]), none=True)],
    "NonMaxSuppression": [dict(inputs=[(1, 6, 4), (1, 1, 6), np.int64(3), np.float32(.5)], opset=11,
                               none=True)],
    "com.microsoft Pad": [dict(inputs=[X, PADS, np.float32(0)], domain=MICROSOFT, none=True)],
    **{op: [dict(inputs=[X, i64(1)], opset=13 if op == "ReduceSum" else 18)] for op in REDUCE},
}


def node_model(op, example, at, shaped=True):
    """A model of one node, constant `at` of it in a file; -1: none."""
    inputs, constants, names = [], [], []
    for i, given in enumerate(example["inputs"]):
        name = f"i{i}" if given is not None else ""
        names.append(name)
        if isinstance(given, (tuple, list)):
            kind, dims = (FLOAT, given) if isinstance(given, tuple) else given
            value = helper.make_tensor_value_info(name, kind, dims)
            if not shaped:
                value.type.tensor_type.ClearField("shape")
            inputs.append(value)
        elif given is not None:
            tensor = numpy_helper.from_array(np.asarray(given), name)
            constants.append(outside(tensor, "n.data") if i == at else tensor)
    outputs = [f"o{i}" for i in range(example.get("outputs", 1))]
    domain = example.get("domain", "")
    node = helper.make_node(op, names, outputs, "the_node", domain=domain,
                            **example.get("attrs", {}))
    graph = helper.make_graph([node], "g", inputs,
                              [helper.make_empty_tensor_value_info(name) for name in outputs],
                              constants)
    opsets = [helper.make_opsetid("", example.get("opset", 17))]
    if domain:
        opsets.append(helper.make_opsetid(domain, 1))
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), "n.onnx")


def refuses_shape(text):
    return "Cannot parse data from external tensors" in text or \
        "Can not get shape initializer data" in text


def judge_input(tool, op, name, example, row, at):
    reads, sure, always = row
    node_model(op, example, at)
    said = load("n.onnx", False)
    want = at in reads and not (name == "Resize" and at == 1 and example["opset"] > 10)
    version = example.get("opset", 17)
    check(f"{name} input {at} of opset {version}", refuses_shape(said) == want, said)
    found = run(tool, "lint", "n.onnx")[1]
    rule = "E085" if want and at in sure else "W037" if at in reads else None
    seen = "E085" if "E085" in found else "W037" if "W037" in found else None
    check(f"{name} input {at}: lint", rule == seen, found)
    if rule is not None:
        run(tool, "repair", "-f", "-o", "r.onnx", "n.onnx")
        said = load("r.onnx", False)
        check(f"{name} input {at}: repair", not refuses_shape(said) and
              (said == "" or example.get("fails")), said)
    if want and isinstance(example["inputs"][0], tuple):
        node_model(op, example, at, shaped=False)
        said = load("n.onnx", False)
        check(f"{name} input {at}: without a shape", refuses_shape(said) == always, said)


def judge_rows(tool, facts):
    rows = rows_of(facts)
    for (domain, op) in rows:
        name = f"{domain} {op}".strip()
        check(f"{name} has an example", name in EXAMPLES, "add one to EXAMPLES")
    for name, examples in EXAMPLES.items():
        op = name.split()[-1]
        for example in examples:
            row = rows.get((example.get("domain", ""), op), ([], [], False))
            if not example.get("none"):
                check(f"{name} is in the table", row[0] != [], facts)
            for at, given in enumerate(example["inputs"]):
                if given is not None and not isinstance(given, (tuple, list)):
                    judge_input(tool, op, name, example, row, at)
            node_model(op, example, -1)
            code, told = run(tool, "init", "--external", "--threshold", "0", "-f", "-o", "x.onnx",
                             "n.onnx")
            said = load("x.onnx", False)
            check(f"{name}: init --external", code == 0 and not refuses_shape(said) and
                  (said == "" or example.get("fails")), told + said)


def case_model(case, at, values):
    """A node test whose inputs but the first are constants, `at` in a file; None: it is no tensor
    of its type."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    graph = model.graph
    names = set()
    for i in range(len(values)):
        if i != at and i == 0:
            continue
        info = graph.input[i]
        value = values[i]
        if not isinstance(value, (np.ndarray, np.generic, TensorProto)):
            return None
        tensor = value if isinstance(value, TensorProto) else numpy_helper.from_array(
            np.asarray(value))
        if tensor.data_type != info.type.tensor_type.elem_type or not tensor.HasField("raw_data"):
            if i == at:
                return None
            continue
        tensor = graph.initializer.add().FromString(tensor.SerializeToString())
        graph.initializer[-1].CopyFrom(tensor)
        graph.initializer[-1].name = info.name
        names.add(info.name)
        if i == at:
            outside(graph.initializer[-1], "c.data")
    kept = [info for info in graph.input if info.name not in names]
    del graph.input[:]
    graph.input.extend(kept)
    onnx.save(model, "c.onnx")
    return graph.input


def judge_cases(facts):
    from onnx.backend.test.case.node import collect_testcases
    rows = rows_of(facts)
    asked, missing, most = {}, [], 2
    for case in collect_testcases(None):
        model = case.model
        if model is None or not case.data_sets or len(model.graph.node) != 1 or \
                model.opset_import[0].version > 26 or model.ir_version > 13:
            continue
        node = model.graph.node[0]
        values = case.data_sets[0][0]
        for at in range(min(len(values), len(model.graph.input))):
            name = model.graph.input[at].name
            places = [i for i, read in enumerate(node.input) if read == name]
            key = node.domain, node.op_type, tuple(places)
            if asked.get(key, 0) >= most or case_model(case, at, values) is None:
                continue
            asked[key] = asked.get(key, 0) + 1
            if refuses_shape(load("c.onnx", False)) and \
                    places[0] not in rows.get((node.domain, node.op_type), ([], [], False))[0]:
                missing.append(f"{node.op_type} {places[0]}")
    check(f"inputs of {len({key[:2] for key in asked})} operators that ORT reads while it infers "
          "shapes", not missing and len(asked) > 300, f"{len(asked)} asked, missing: {missing}")


def judge_number(tool, name, count, entries, only_ort=False):
    tensor = outside(numpy_helper.from_array(np.ones(count, np.float32), "w"), "w.data", **entries)
    with open("w.data", "wb") as file:
        file.write(b"\0" * 64)
    graph = helper.make_graph(
        [helper.make_node("Concat", ["x", "w"], ["y"], axis=0)], "g",
        [helper.make_tensor_value_info("x", FLOAT, [2])],
        [helper.make_tensor_value_info("y", FLOAT, [2 + count])], [tensor])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
              "l.onnx")
    said = load("l.onnx")
    found = run(tool, "lint", "l.onnx")
    check(f"{name}: lint as ORT", (found[0] == 0) == (said == ""), f"{said}\n{found[1]}")
    if only_ort:  # tries to read nothing
        return
    for command in (["init", "--inline", "-f", "-o", "li.onnx"],
                    ["compile", "-f", "-o", "lc.onnx"]):
        code, told = run(tool, *command, "l.onnx")
        made_up = "18446744073709551" in told and "18446744073709551" not in str(entries)
        good = "'w'" in told and not made_up if said else code == 0
        check(f"{name}: {command[0]}", (code == 0) == (said == "") and good, told)
    told = run(tool, "diff", "l.onnx", "l.onnx")
    check(f"{name}: diff", told[0] == 0, told[1])


def judge_numbers(tool):
    for length in ("0", "16", "64.0", "abc", "-1", "16 ", " 16", "18446744073709551616", "1e1",
                   "9223372036854775807", "15", "80"):
        judge_number(tool, f"length '{length}'", 4, {"length": length})
    for offset in ("0", "48", "49", "abc", "-1", "+16", "18446744073709551615"):
        judge_number(tool, f"offset '{offset}'", 4, {"offset": offset, "length": "16"})
    judge_number(tool, "no length", 4, {"offset": "4"})
    judge_number(tool, "no bytes", 0, {"length": "0"})
    judge_number(tool, "no bytes, but an offset", 0, {"offset": "8"}, True)
    judge_number(tool, "no bytes at the end", 0, {"offset": "64", "length": "0"}, True)


def judge_models(tool, models):
    for path in models:
        name = os.path.basename(path)
        model = onnx.load(path)
        for tensor in model.graph.initializer:
            if not tensor.HasField("raw_data") and tensor.data_type != TensorProto.STRING:
                tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor), tensor.name))
        if os.path.exists("m.data"):
            os.remove("m.data")
        onnx.save_model(model, "m.onnx", save_as_external_data=True, location="m.data",
                        size_threshold=0, convert_attribute=True)
        said = load("m.onnx")
        found = run(tool, "lint", "m.onnx")[1]
        check(f"{name}: lint as ORT", refuses_shape(said) == ("E085" in found or "W037" in found) or
              ("E085" not in found and said == ""), said + found[:300])
        run(tool, "repair", "-f", "-o", "r.onnx", "m.onnx")
        check(f"{name}: repaired", load("r.onnx") == "", load("r.onnx"))
        code, told = run(tool, "init", "--external", "--threshold", "0", "-f", "-o", "x.onnx", path)
        check(f"{name}: init --external --threshold 0", code == 0 and load("x.onnx") == "",
              told + load("x.onnx"))
        code, told = run(tool, "init", "--external", "--threshold", "0", "--name", "one.data", "-f",
                         "-o", "y.onnx", "m.onnx")
        check(f"{name}: gathered", code == 0 and load("y.onnx") == "", told + load("y.onnx"))
        code, told = run(tool, "compile", "--initializers", "i.data", "-f", "-o", "c.onnx", path)
        if code == 0 and os.path.exists("c.onnx"):
            found = run(tool, "lint", "c.onnx")[1]
            check(f"{name}: compile --initializers", "E085" not in found and "W037" not in found,
                  found)


def main():
    what, arguments = sys.argv[1], sys.argv[2:]
    if what == "rows":
        judge_rows(*arguments)
    elif what == "cases":
        judge_cases(*arguments)
    elif what == "numbers":
        judge_numbers(*arguments)
    else:
        judge_models(arguments[0], arguments[1:])
    sys.exit(failed)


main()
