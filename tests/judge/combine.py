#!/usr/bin/python3
"""What merge, split, wrap and repair write, judged by libprotobuf and the real ONNX Runtime.

    tests/judge/combine.py EPCTX FOLDER MODEL...

MODEL are ordinary models; without one only the small ones that are made here. Prints the lines that
tests/run reads.
"""
import json
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import ort_combine  # noqa: E402
from onnx_schema import ModelProto  # noqa: E402

EPCTX, FOLDER = sys.argv[1], sys.argv[2]
FAILED = False


def say(name, problem):
    global FAILED
    FAILED = FAILED or bool(problem)
    print(f"FAIL {name}: {problem}" if problem else f"ok {name}", flush=True)


def load(path):
    with open(path, "rb") as source:
        return ModelProto.FromString(source.read())


def store(path, model):
    with open(path, "wb") as out:
        out.write(model.SerializeToString(deterministic=True))


def epctx(*args):
    done = subprocess.run([EPCTX, *args], capture_output=True, text=True, errors="replace")
    return done.returncode, done.stdout, done.stderr


def plan(*args):
    """Runs with --json; the report, or raises with the message."""
    code, out, err = epctx(*args, "--json")
    if code not in (0, 3):
        raise RuntimeError(err.strip() or f"exit code {code}")
    return json.loads(out)


def lint(path):
    code, out, _ = epctx("lint", "--json", path)
    counts = json.loads(out)
    return [f["id"] + " " + f["message"] for f in counts["findings"] if f["severity"] == "error"]


def bodies(node):
    for attr in node.attribute:
        if attr.HasField("g"):
            yield attr.g
        yield from attr.graphs


def rename(graph, names, nodes):
    """Renames values (of one namespace) and, at the top, nodes."""
    for node in graph.node:
        if nodes is not None and node.name in nodes:
            node.name = nodes[node.name]
        for ends in (node.input, node.output):
            for i, name in enumerate(ends):
                ends[i] = names.get(name, name)
        for body in bodies(node):
            rename(body, names, None)
    for part in (graph.input, graph.output, graph.value_info, graph.initializer):
        for entry in part:
            entry.name = names.get(entry.name, entry.name)
    for entry in graph.sparse_initializer:
        entry.values.name = names.get(entry.values.name, entry.values.name)
    for entry in graph.quantization_annotation:
        entry.tensor_name = names.get(entry.tensor_name, entry.tensor_name)
        for pair in entry.quant_parameter_tensor_names:
            pair.value = names.get(pair.value, pair.value)


def renames(report, number, kind):
    """new -> old, from the plan; it cuts names of more than 200 letters, they lose their prefix."""
    class Names(dict):
        def __contains__(self, name):
            return dict.__contains__(self, name) or len(name) > 197

        def __missing__(self, name):
            return self.get(name, name)

        def get(self, name, other=None):
            if not dict.__contains__(self, name) and len(name) > 197:
                return name.removeprefix(f"m{number}_")
            return dict.get(self, name, other)

        def __or__(self, more):
            both = Names(self)
            both.update(more)
            return both
    out = Names()
    for change in report["changes"]:
        if change["action"] == "rename" and (change.get("model"), change["kind"]) == (number, kind):
            if "of a body" not in change["text"]:
                out[change["after"]] = change["before"]
    return out


def judge_merge(merged, parts, report):
    """Each part stands in the result as it was, but for the names in the plan."""
    at = {field: 0 for field in ("node", "initializer", "input", "output", "value_info",
                                 "sparse_initializer", "quantization_annotation")}
    for number, part in enumerate(parts, 1):
        got = ModelProto().graph.__class__()
        for field in at:
            count = len(getattr(part.graph, field))
            rows = getattr(merged.graph, field)[at[field]:at[field] + count]
            getattr(got, field).extend(rows)
            at[field] += count
        rename(got, renames(report, number, "value") | renames(report, number, "value of a body"),
               renames(report, number, "node"))
        for field in at:
            if list(getattr(got, field)) != list(getattr(part.graph, field)):
                return f"{field} of model {number} differ"
    for field, count in at.items():
        if len(getattr(merged.graph, field)) != count:
            return f"there are {len(getattr(merged.graph, field))} {field}, expected {count}"
    if merged.ir_version != max(p.ir_version for p in parts):
        return f"IR version {merged.ir_version}"
    return None


def captured(node):
    """Outer names that the bodies of a node read."""
    out = []
    for body in bodies(node):
        own = {i.name for i in body.input} | {t.name for t in body.initializer}
        own |= {o for n in body.node for o in n.output}
        for inner in body.node:
            out += [n for n in list(inner.input) + captured(inner) if n and n not in own]
        out += [o.name for o in body.output if o.name not in own]
    return out


def judge_split(part, model, inputs, outputs):
    made = {o: i for i, n in enumerate(model.graph.node) for o in n.output if o}
    need, names, stack = set(), set(), list(outputs)
    while stack:
        name = stack.pop()
        if name in names:
            continue
        names.add(name)
        if name in inputs or name not in made:
            continue
        node = model.graph.node[made[name]]
        if made[name] not in need:
            need.add(made[name])
            stack += [n for n in list(node.input) + captured(node) if n]
    want = [model.graph.node[i] for i in sorted(need)]
    if list(part.graph.node) != want:
        return f"{len(part.graph.node)} nodes, expected {len(want)} or others"
    weights = [t for t in model.graph.initializer if t.name in names and t.name not in inputs]
    if list(part.graph.initializer) != weights:
        return f"{len(part.graph.initializer)} initializers, expected {len(weights)}"
    constant = {t.name for t in model.graph.initializer}
    got = [i.name for i in part.graph.input if i.name not in constant or i.name in inputs]
    if sorted(got) != sorted(inputs):
        return f"inputs {got}, expected {inputs}"
    if [o.name for o in part.graph.output] != list(outputs):
        return f"outputs {[o.name for o in part.graph.output]}"
    a, b = ModelProto(), ModelProto()
    a.CopyFrom(part)
    b.CopyFrom(model)
    for m in (a, b):
        m.ClearField("graph")
        del m.functions[:]
    return None if a == b else "another field of the model changed"


def info(entries, name, elem, dims):
    entry = entries.add(name=name)
    entry.type.tensor_type.elem_type = elem
    entry.type.tensor_type.shape.SetInParent()
    for d in dims:
        entry.type.tensor_type.shape.dim.add(dim_value=d)


def small(shift, depth=3):
    """x -> Mul, Add, Relu ... -> y, every value typed; an If reads a value from outside."""
    model = ModelProto(ir_version=8, producer_name="judge")
    model.opset_import.add(version=13)
    graph = model.graph
    graph.name = "small"
    info(graph.input, "x", 1, [1, 4])
    info(graph.output, "y", 1, [1, 4])
    for name, value in (("a", [1, 2, 3, 4]), ("b", [shift] * 4)):
        tensor = graph.initializer.add(name=name, data_type=1, dims=[4])
        tensor.float_data.extend(value)
    choice = graph.initializer.add(name="choice", data_type=9)
    choice.int32_data.append(1)
    last = "x"
    for i in range(depth):
        name = f"t{i}"
        graph.node.add(op_type=("Mul", "Add", "Sub")[i % 3], name=f"n{i}",
                       input=[last, "ab"[i % 2]], output=[name])
        info(graph.value_info, name, 1, [1, 4])
        last = name
    fork = graph.node.add(op_type="If", name="fork", input=["choice"], output=["y"])
    for branch, op in (("then_branch", "Add"), ("else_branch", "Sub")):
        attr = fork.attribute.add(name=branch, type=5)
        attr.g.name = branch
        attr.g.node.add(op_type=op, input=[last, "t0"], output=[f"inner_{branch}"])
        info(attr.g.output, f"inner_{branch}", 1, [1, 4])
    return model


def check(name, function, *args):
    try:
        problem = function(*args)
    except (RuntimeError, OSError, ValueError, KeyError) as error:
        problem = str(error) or repr(error)
    say(name, problem)


def path(*parts):
    return os.path.join(FOLDER, *parts)


def merge_case(name, files, options=()):
    out = path(f"{name}.onnx")
    report = plan("merge", *files, "-o", out, "-f", *options)
    parts = [load(f) for f in files]
    problem = judge_merge(load(out), parts, report) or "; ".join(lint(out))
    if problem:
        return problem
    again = path(f"{name}_again.onnx")
    plan("merge", *files, "-o", again, "-f", *options)
    with open(out, "rb") as a, open(again, "rb") as b:
        if a.read() != b.read():
            return "the same call again writes other bytes"
    ort_combine.side_by_side(out, files)
    return None


def split_case(file, stem):
    """Cuts at the middle-most value that works, and chains the halves."""
    model = load(file)
    constant = {t.name for t in model.graph.initializer}
    values = [o for n in model.graph.node for o in n.output if o]
    first, second, whole = (path(f"{stem}_{x}.onnx") for x in ("first", "second", "whole"))
    ends = [o.name for o in model.graph.output]
    known = {v.name for v in model.graph.value_info if v.type.tensor_type.elem_type}
    for step in range(2 * len(values)):
        at = len(values) // 2 + (step + 1) // 2 * (1 if step % 2 else -1)
        if not 0 <= at < len(values) or values[at] in ends:
            continue
        cut = values[at]
        code, _, _ = epctx("split", file, "--outputs", cut.replace(",", "\\,"), "-o", first, "-f")
        if code:
            continue
        spec = cut if cut in known else ort_combine.shape_of(first, cut)
        code, _, _ = epctx("split", file, "--inputs", spec, "-o", second, "-f")
        if code == 0:
            break
    else:
        return "no value cuts the model in two"
    need = [i.name for i in load(first).graph.input if i.name not in constant]
    problem = judge_split(load(first), model, need, [cut]) or \
        judge_split(load(second), model, [cut], ends)
    if problem:
        return f"at '{cut}': {problem}"
    plan("merge", "--chain", first, second, "-o", whole, "-f")
    problem = "; ".join(lint(first) + lint(second) + lint(whole))
    if problem:
        return problem
    chained = load(whole)
    if [o.name for o in chained.graph.output] != ends:
        return f"outputs of the chain: {[o.name for o in chained.graph.output]}"
    ort_combine.halves(file, first, second, whole)
    return None


def check_small():
    store(path("a.onnx"), small(1))
    store(path("b.onnx"), small(2, 5))
    a, b = path("a.onnx"), path("b.onnx")
    check("merge small", merge_case, "ab", [a, b])
    check("merge with itself", merge_case, "aa", [a, a])
    check("merge of three", merge_case, "aba", [a, b, a])
    check("split small", split_case, a, "small")
    check("chain by map", chain_case, a, b)
    check("functions", function_case)
    check("names that ONNX Runtime gives", inlined_case)


def chain_case(a, b):
    """y of a feeds x of b; the value of both parts in a row."""
    out = path("chain.onnx")
    plan("merge", a, b, "--connect", "y=x", "-o", out, "-f")
    model = load(out)
    if [i.name for i in model.graph.input] != ["x"] or len(model.graph.output) != 1:
        return f"inputs {[i.name for i in model.graph.input]}"
    if lint(out):
        return "; ".join(lint(out))
    third = path("chain3.onnx")
    plan("merge", a, b, a, "--connect", "1:y=2:x,2:y=3:x", "-o", third, "-f")
    if [i.name for i in load(third).graph.input] != ["x"]:
        return "the third is not connected"
    ort_combine.in_a_row(third, [a, b, a])
    return None


def inlined_case():
    """A model gets other names where ORT gives them when it inlines a function of any of them
    (E088): a later one, and the first one."""
    caller, named = small(1), small(1)
    caller.opset_import.add(domain="local", version=1)
    f = caller.functions.add(name="F", domain="local", input=["p"], output=["q"])
    f.opset_import.add(version=13)
    f.node.add(op_type="Relu", name="n", input=["p"], output=["m"])
    f.node.add(op_type="Abs", name="k", input=["m"], output=["q"])
    caller.graph.node[-1].output[0] = "z"
    caller.graph.node.add(op_type="F", domain="local", name="call", input=["z"], output=["y"])
    last = named.graph.node[-1]
    last.name, last.output[0] = "_inlfunc_F_n", "_inlfunc_F_m"
    named.graph.node.add(op_type="Abs", name="_inlfunc_F_k", input=["_inlfunc_F_m"], output=["y"])
    store(path("caller.onnx"), caller)
    store(path("named.onnx"), named)
    caller.graph.node[-1].output[0] = "z2" # names of ORT's second call are of another kind
    caller.graph.node.add(op_type="F", domain="local", name="again", input=["z2"], output=["y"])
    store(path("twice.onnx"), caller)
    ort_combine.inline(path("twice.onnx"), path("inline.onnx"))
    for order in (["twice", "inline"], ["inline", "twice"]):
        problem = merge_case("again", [path(f"{name}.onnx") for name in order])
        if problem:
            return f"{order}: {problem}"
    for place, models in ((2, ["caller", "named"]), (1, ["named", "caller"])):
        problem = merge_case("inlined", [path(f"{name}.onnx") for name in models])
        if problem:
            return f"model {place}: {problem}"
        nodes = [n.name for n in load(path("inlined.onnx")).graph.node]
        if not {f"m{place}__inlfunc_F_n", f"m{place}__inlfunc_F_k"} <= set(nodes):
            return f"model {place}: nodes {nodes}"
    return None


def function_case():
    """Equal functions stand once, different ones are refused; a split keeps what is called."""
    def with_function(op):
        model = small(1)
        model.opset_import.add(domain="local", version=1)
        for name in ("F", "G"):
            f = model.functions.add(name=name, domain="local", input=["p"], output=["q"])
            f.opset_import.add(version=13)
            if name == "F":
                f.opset_import.add(domain="local", version=1)
                f.node.add(op_type="G", domain="local", input=["p"], output=["q"])
            else:
                f.node.add(op_type=op, input=["p"], output=["q"])
        model.functions.add(name="H", domain="local", input=["p"], output=["q"])
        model.graph.node[-1].output[0] = "z"
        model.graph.node.add(op_type="F", domain="local", name="call", input=["z"], output=["y"])
        return model
    store(path("f.onnx"), with_function("Relu"))
    store(path("g.onnx"), with_function("Abs"))
    plan("merge", path("f.onnx"), path("f.onnx"), "-o", path("ff.onnx"), "-f")
    if load(path("ff.onnx")).functions != load(path("f.onnx")).functions:
        return "functions of the merge differ"
    code, _, err = epctx("merge", path("f.onnx"), path("g.onnx"), "-o", path("fg.onnx"))
    if code != 1 or "function 'G'" not in err or os.path.exists(path("fg.onnx")):
        return f"different functions: {err}"
    plan("split", path("f.onnx"), "--inputs", "z:float32[1,4]", "-o", path("fs.onnx"), "-f")
    if [f.name for f in load(path("fs.onnx")).functions] != ["F", "G"]:
        return "the split has not the functions that are called"
    plan("split", path("f.onnx"), "--outputs", "t1", "-o", path("ft.onnx"), "-f")
    if load(path("ft.onnx")).functions:
        return "the split has functions that nothing calls"
    return None


# -- wrap --

def check_wrap():
    with open(path("net.bin"), "wb") as out:
        out.write(bytes(range(256)) * 20)
    check("wrap", wrap_case)
    check("wrap of a QNN description", wrap_json_case)


def attributes(node):
    return {a.name: a.i if a.type == 2 else a.s for a in node.attribute}


def wrap_case():
    for mode in ("file", "embed"):
        out = path(mode, "w.onnx")
        os.makedirs(path(mode), exist_ok=True)
        plan("wrap", path("net.bin"), "--ep", "qnn", "--name", "net", "--inputs",
             "img:uint8[1,8,8,3]/0.5/128,k:int32[2]", "--outputs", "out:uint16[1,5]/0.25/7",
             "--sdk", "2.31", *(["--embed"] if mode == "embed" else []), "-o", out, "-f")
        model = load(out)
        if lint(out):
            return "; ".join(lint(out))
        q, ep, dq = model.graph.node
        if (q.op_type, ep.op_type, dq.op_type) != ("QuantizeLinear", "EPContext",
                                                   "DequantizeLinear"):
            return "nodes in another order"
        got = attributes(ep)
        with open(path("net.bin"), "rb") as f:
            data = f.read()
        want = {"main_context": 1, "embed_mode": int(mode == "embed"), "partition_name": b"net",
                "source": b"QNNExecutionProvider", "ep_sdk_version": b"2.31",
                "ep_cache_context": data if mode == "embed" else b"net.bin"}
        if got != want:
            return f"attributes {sorted(got)} or their values"
        if list(ep.input) != ["img", "k"] or list(ep.output) != ["out"] or ep.name != "net":
            return "inputs, outputs or the name of the node"
        if [i.name for i in model.graph.input] != ["img_dq", "k"]:
            return "inputs of the model"
        zero = {t.name: t for t in model.graph.initializer}
        if zero["img_zp"].raw_data != b"\x80" or zero["out_zp"].raw_data != b"\x07\x00":
            return "zero points"
        if {(o.domain, o.version) for o in model.opset_import} != {("", 21), ("com.microsoft", 1)}:
            return "opset imports"
        if mode == "file":
            with open(path("file", "net.bin"), "rb") as f:
                if f.read() != data:
                    return "the binary beside the model"
    return None


def wrap_json_case():
    def tensor(name, kind, dims, scale=None):
        params = {"definition": "QNN_DEFINITION_UNDEFINED"}
        if scale:
            params = {"definition": "QNN_DEFINITION_DEFINED",
                      "quantizationEncoding": "QNN_QUANTIZATION_ENCODING_SCALE_OFFSET",
                      "scaleOffset": {"scale": scale, "offset": -3}}
        return {"info": {"name": name, "dataType": kind, "dimensions": dims,
                         "quantizeParams": params}}
    graphs = [{"info": {"graphName": g, "graphInputs": [
        tensor("in\u00e9", "QNN_DATATYPE_UFIXED_POINT_8", [1, 4], 0.5)], "graphOutputs": [
            tensor("out", "QNN_DATATYPE_FLOAT_32", [1, 2])]}} for g in ("one", "two")]
    with open(path("io.json"), "w", encoding="utf-8") as out:
        json.dump({"info": {"buildId": "v2.40", "graphs": graphs}}, out)
    args = ("wrap", path("net.bin"), "--ep", "qnn", "--io", path("io.json"))
    code, _, err = epctx(*args, "-o", path("j.onnx"))
    if code == 0 or "select one with --graph:\n  one\n  two\n" not in err:
        return f"several graphs: {err}"
    plan(*args, "--graph", "two", "-o", path("j.onnx"), "-f")
    model = load(path("j.onnx"))
    ep = next(n for n in model.graph.node if n.op_type == "EPContext")
    if ep.name != "two" or list(ep.input) != ["in\u00e9"]:
        return f"node {ep.name}, inputs {list(ep.input)}"
    if attributes(ep)["ep_sdk_version"] != b"v2.40" or lint(path("j.onnx")):
        return "SDK version, or lint"
    zero = {t.name: t.raw_data for t in model.graph.initializer}
    if zero["in\u00e9_zp"] != b"\x03":
        return "zero point"
    plan(*args, "--graph", "two", "--quantized-io", "-o", path("k.onnx"), "-f")
    if len(load(path("k.onnx")).graph.node) != 1:
        return "--quantized-io leaves the values as they are"
    tensors = {"b": {"id": 2, "type": 0, "data_type": 0x0232, "dims": [3], "quant_params":
                     {"definition": 0}},
               "a": {"id": 1, "type": 0, "data_type": 0x0408, "dims": [3], "quant_params":
                     {"definition": 1, "encoding": 0, "scale_offset": {"scale": 1, "offset": 0}}},
               "w": {"id": 3, "type": 4, "data_type": 0x0408, "dims": [3]},
               "y": {"id": 4, "type": 1, "data_type": 0x0232, "dims": [3], "quant_params":
                     {"definition": 0}}}
    with open(path("net.json"), "w", encoding="utf-8") as out:
        json.dump({"graph": {"tensors": tensors}}, out)
    plan("wrap", path("net.bin"), "--ep", "qnn", "--io", path("net.json"), "--name", "g", "-o",
         path("c.onnx"), "-f")
    ep = next(n for n in load(path("c.onnx")).graph.node if n.op_type == "EPContext")
    return None if list(ep.input) == ["a", "b"] and list(ep.output) == ["y"] else "converter's file"


# -- repair: each damage is undone to the message that was damaged --

def compiled():
    """A model of two partitions of the reference NPU with a node for the CPU in between."""
    model = ModelProto(ir_version=8)
    model.opset_import.add(version=13)
    model.opset_import.add(domain="com.microsoft", version=1)
    model.metadata_props.add(key="k", value="v")
    graph = model.graph
    graph.name = "g"
    info(graph.input, "x", 1, [1, 4])
    info(graph.output, "y", 1, [1, 4])
    for name in ("t", "u"):
        info(graph.value_info, name, 1, [1, 4])
    weight = graph.initializer.add(name="w", data_type=1, dims=[4])
    weight.raw_data = bytes(16)
    for i, (source, target) in enumerate((("x", "t"), ("u", "y"))):
        node = graph.node.add(op_type="EPContext", domain="com.microsoft", name=f"p{i}",
                              input=[source], output=[target])
        for name, value in (("main_context", int(i == 0)), ("embed_mode", 0),
                            ("source", b"EpctxNpuExecutionProvider"),
                            ("partition_name", f"p{i}".encode()),
                            *([("ep_cache_context", b"r.bin")] if i == 0 else [])):
            attr = node.attribute.add(name=name)
            attr.type = 2 if isinstance(value, int) else 3
            if isinstance(value, int):
                attr.i = value
            else:
                attr.s = value
        if i == 0:
            graph.node.add(op_type="Add", name="cpu", input=["t", "w"], output=["u"])
    return model


def attr_of(model, node, name):
    return next(a for a in model.graph.node[node].attribute if a.name == name)


def drop_attr(model, node, name):
    kept = [a for a in model.graph.node[node].attribute if a.name != name]
    del model.graph.node[node].attribute[:]
    model.graph.node[node].attribute.extend(kept)


DAMAGES = [
    ("E003", "domain", lambda m: setattr(m.graph.node[0], "domain", "")),
    ("W001", "import", lambda m: m.opset_import.pop()),
    ("E006", "attribute twice", lambda m: m.graph.node[0].attribute.append(
        attr_of(m, 0, "source"))),
    ("E017", "spelling", lambda m: setattr(attr_of(m, 0, "source"), "s",
                                           b"epctxNPUexecutionprovider")),
    ("W027", "import twice", lambda m: m.opset_import.append(m.opset_import[0])),
    ("W011", "metadata twice", lambda m: m.metadata_props.append(m.metadata_props[0])),
    ("W012", "value_info twice", lambda m: m.graph.value_info.append(m.graph.value_info[1])),
    ("W026", "initializer twice", lambda m: m.graph.initializer.append(m.graph.initializer[0])),
    ("W004", "stale entry", lambda m: m.metadata_props.add(
        key="ep_compatibility_info.OpenVINOExecutionProvider", value="x")),
    ("E022", "doubled folder", lambda m: setattr(attr_of(m, 0, "ep_cache_context"), "s",
                                                 b"build/r.bin")),
    ("W007", "backslash", lambda m: setattr(attr_of(m, 0, "ep_cache_context"), "s",
                                            b".\\r.bin")),
    ("E020", "absolute path", lambda m: setattr(attr_of(m, 0, "ep_cache_context"), "s",
                                                b"/build/out/r.bin")),
    ("W009", "embed_mode", lambda m: setattr(attr_of(m, 0, "embed_mode"), "i", 1)),
    ("W019", "annotation", lambda m: m.graph.quantization_annotation.add(tensor_name="gone")),
]


def repair_case(rule, damage):
    model = compiled()
    damage(model)
    store(path("d.onnx"), model)
    with open(path("r.bin"), "wb") as out:
        out.write(b"binary")
    if rule not in epctx("lint", "--json", path("d.onnx"))[1]:
        return f"lint does not find {rule}"
    report = plan("repair", path("d.onnx"), "-o", path("r.onnx"), "-f")
    if not any((c["action"], c.get("rule")) == ("repair", rule) for c in report["changes"]):
        return f"{rule} is not repaired: {report['changes']}"
    got, want = load(path("r.onnx")), compiled()
    for m in (got, want):
        imports = sorted((o.domain, o.version) for o in m.opset_import)
        del m.opset_import[:]
        for domain, version in imports:
            m.opset_import.add(domain=domain, version=version)
    # libprotobuf keeps nothing of a path but the path: "./r.bin" is as good
    name = attr_of(got, 0, "ep_cache_context")
    name.s = name.s[2:] if name.s.startswith(b"./") else name.s
    if got != want:
        return "the repaired model is not the one that was damaged"
    again = plan("repair", path("r.onnx"), "-o", path("r2.onnx"), "-f")
    rest = any(c["action"] == "repair" for c in again["changes"])
    return "not all at once" if rest else None


def repair_source_case():
    """What only the source model knows."""
    source = compiled()
    store(path("source.onnx"), source)
    model = compiled()
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = 1
    for key, value in (("location", "*/_ORT_MEM_ADDR_/*"), ("offset", "140"), ("length", "16")):
        tensor.external_data.add(key=key, value=value)
    model.graph.value_info.pop(0)
    store(path("m.onnx"), model)
    code, out, _ = epctx("repair", path("m.onnx"), "-o", path("m1.onnx"), "-f")
    if code != 3 or "left E021" not in out:
        return f"without the source: exit code {code}"
    plan("repair", path("m.onnx"), "--source", path("source.onnx"), "-o", path("m2.onnx"), "-f")
    got = load(path("m2.onnx"))
    if got.graph.initializer[0] != source.graph.initializer[0]:
        return "the data of the initializer"
    if sorted(v.name for v in got.graph.value_info) != ["t", "u"]:
        return "value_info"
    return None


def repair_doubled_case():
    """Bytes with doubled fields become the message that libprotobuf reads."""
    data = compiled().SerializeToString(deterministic=True)
    second = ModelProto()
    second.graph.name = "other"
    second.graph.node.add(op_type="Relu", name="extra", input=["y"], output=["z"])
    second.producer_name = "late"
    for name, extra in (("scalar", ModelProto(producer_name="a").SerializeToString() +
                         ModelProto(producer_name="b").SerializeToString()),
                        ("graph", second.SerializeToString())):
        with open(path("dd.onnx"), "wb") as out:
            out.write(data + extra)
        want = ModelProto.FromString(data + extra)
        plan("repair", path("dd.onnx"), "--rules", "W025", "-o", path("dr.onnx"), "-f")
        with open(path("dr.onnx"), "rb") as f:
            raw = f.read()
        if ModelProto.FromString(raw) != want:
            return f"{name}: another message than libprotobuf's"
        if "W025" in epctx("lint", "--json", path("dr.onnx"))[1]:
            return f"{name}: doubled fields are left"
    return None


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    os.makedirs(FOLDER)
    check_small()
    for file in sys.argv[3:]:
        stem = os.path.basename(file)[:-5]
        check(f"split and chain {stem}", split_case, file, stem)
        check(f"merge {stem} with itself", merge_case, stem + "_twice", [file, file])
    if len(sys.argv) > 5:
        check("merge of real models", merge_case, "real", sys.argv[3:6], ["--metadata", "first"])
    check_wrap()
    for rule, name, damage in DAMAGES:
        check(f"repair {rule} {name}", repair_case, rule, damage)
    check("repair from the source model", repair_source_case)
    check("repair of doubled fields", repair_doubled_case)
    sys.exit(1 if FAILED else 0)


main()
