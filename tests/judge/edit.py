#!/usr/bin/python3
"""Edits of the tool, judged by libprotobuf: the same message except the change.

    tests/judge/edit.py EPCTX FOLDER MODEL...
    tests/judge/edit.py EPCTX FOLDER --ort MODEL...

Does every edit to every model with the tool, does the same to the parsed
message here, and compares. Then the edit is taken back by its inverse: on
models as libprotobuf writes them that restores the bytes. With --ort the edited
models run in ONNX Runtime with the outputs they had. Prints the lines that
tests/run reads.
"""
import array
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import make_model  # noqa: E402
import onnx_schema  # noqa: E402

INT, STRING = 2, 3


def label(path):
    """The file's name, or its folder's where all files are called alike."""
    name = os.path.basename(path)
    return name if name != "model.onnx" else os.path.basename(os.path.dirname(path))


def canonical(model):
    return model.SerializeToString(deterministic=True)


# ------------------------------------------------- the same edits, on messages

def subgraphs(node):
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def all_nodes(model):
    def below(nodes):
        for node in nodes:
            yield node
            for graph in subgraphs(node):
                yield from below(graph.node)
    yield from below(model.graph.node)
    for function in model.functions:
        yield from below(function.node)
    for training in model.training_info:
        yield from below(training.initialization.node)
        yield from below(training.algorithm.node)


def defined(graph):
    names = {v.name for v in graph.input} | {t.name for t in graph.initializer}
    names |= {s.values.name for s in graph.sparse_initializer}
    for node in graph.node:
        names |= set(node.output)
    return names - {""}


def rename_in_graph(graph, names):
    for node in graph.node:
        for field in (node.input, node.output):
            for i, name in enumerate(field):
                if name in names:
                    field[i] = names[name]
        for inner in subgraphs(node):
            own = defined(inner)
            rename_in_graph(inner, {k: v for k, v in names.items() if k not in own})
        for device in node.device_configurations:
            for spec in device.sharding_spec:
                spec.tensor_name = names.get(spec.tensor_name, spec.tensor_name)
    values = [*graph.input, *graph.output, *graph.value_info, *graph.initializer]
    values += [s.values for s in graph.sparse_initializer]
    for value in values:
        if value.name in names:
            value.name = names[value.name]
    for note in graph.quantization_annotation:
        if note.tensor_name in names:
            note.tensor_name = names[note.tensor_name]
        for pair in note.quant_parameter_tensor_names:
            if pair.value in names:
                pair.value = names[pair.value]


# ------------------------------------------------------------------- the cases

class Judge:
    def __init__(self, epctx, folder):
        self.epctx = epctx
        self.folder = folder
        self.model = ""
        self.failed = False
        self.edits = 0

    def fail(self, name, text):
        print(f"FAIL {self.model}{name}: {text}")
        self.failed = True

    def tool(self, *arguments):
        done = subprocess.run([self.epctx, *arguments], stdin=subprocess.DEVNULL, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.returncode, done.stdout.decode("utf-8", "backslashreplace").strip()

    def edit(self, name, source, command, arguments, change, inverse=None):
        """One edit: `command` with its options, `change` does the same here, `inverse` is the
        command and the arguments that take it back."""
        out = os.path.join(self.folder, "out.onnx")
        code, text = self.tool(*command, source, "-o", out, "-f", "--json", "--", *arguments)
        if code != 0:
            return self.fail(name, f"exit code {code}: {text}")
        size = json.loads(text)["size"]
        with open(source, "rb") as file:
            before = file.read()
        with open(out, "rb") as file:
            after = file.read()
        expected = onnx_schema.parse(before)
        change(expected)
        found = onnx_schema.parse(after)
        self.edits += 1
        if found is None:
            return self.fail(name, "libprotobuf refuses the result")
        if canonical(found) != canonical(expected):
            return self.fail(name, "the result is not the same message with the change")
        if size != len(after):
            return self.fail(name, f"reported {size} bytes, wrote {len(after)}")
        if inverse is not None:
            back, again = (os.path.join(self.folder, n) for n in ("back.onnx", "again.onnx"))
            code, text = self.tool(*inverse[0], out, "-o", back, "-f", "--", *inverse[1])
            if code != 0:
                return self.fail(name, f"its inverse: exit code {code}: {text}")
            code, text = self.tool(*command, back, "-o", again, "-f", "--", *arguments)
            with open(back, "rb") as file:
                restored = file.read()
            with open(again, "rb") as file:
                repeated = file.read()
            if restored != before and before == onnx_schema.parse(before).SerializeToString():
                return self.fail(name, "its inverse does not restore the bytes")
            if code != 0 or repeated != after:
                return self.fail(name, "edit, inverse, edit is not the edit")
        return None


MOST = 2000  # names on one command line


def attribute_cases(judge, path, model):
    names = [n.name for n in all_nodes(model)]
    found = [i for i, n in enumerate(model.graph.node)
             if n.name and names.count(n.name) == 1 and n.op_type != "EPContext"]
    if not found:
        return
    at = found[len(found) // 2]
    node = model.graph.node[at]
    on_node = ("--node", node.name)

    def add(m):
        m.graph.node[at].attribute.add(name="judge_new", type=INT, i=-5)
    judge.edit("set a new attribute", path, ("set", *on_node), ["judge_new:int=-5"], add,
               (("unset", *on_node), ["judge_new"]))

    for kind, value, text in ((INT, "i", "77"), (STRING, "s", "judge")):
        old = [i for i, a in enumerate(node.attribute) if a.type == kind]
        if not old:
            continue
        attribute = node.attribute[old[0]]

        def change(m):
            new = int(text) if kind == INT else text.encode()
            setattr(m.graph.node[at].attribute[old[0]], value, new)
        judge.edit(f"change an attribute of type {kind}", path, ("set", *on_node),
                   [f"{attribute.name}={text}"], change)

    if node.attribute:
        def remove(m):
            del m.graph.node[at].attribute[0]
        judge.edit("unset an attribute", path, ("unset", *on_node), [node.attribute[0].name],
                   remove)


def model_cases(judge, path, model):
    def add(m):
        m.metadata_props.add(key="judge", value="a value")
        m.opset_import.add(domain="judge.domain", version=3)
    judge.edit("set metadata and an opset", path, ("set",),
               ["metadata:judge=a value", "opset:judge.domain=3"], add,
               (("unset",), ["metadata:judge", "opset:judge.domain"]))

    def fields(m):
        m.producer_name = "judge"
        m.model_version = -3
        m.graph.doc_string = "judged"
    judge.edit("set fields", path, ("set",),
               ["model:producer_name=judge", "model:model_version=-3", "graph:doc_string=judged"],
               fields)

    if model.HasField("producer_name"):
        judge.edit("unset a field", path, ("unset",), ["model:producer_name"],
                   lambda m: m.ClearField("producer_name"))


def name_cases(judge, path, model):
    names = {name: name + "_renamed_by_the_judge" for name in sorted(defined(model.graph))[:MOST]}
    pairs = [word for pair in names.items() for word in pair]
    back = [word for pair in names.items() for word in reversed(pair)]
    if names:
        judge.edit("rename values", path, ("rename",), pairs,
                   lambda m: rename_in_graph(m.graph, names), (("rename",), back))

    def prefix(m):
        for node in all_nodes(m):
            if node.name:
                node.name = "judge_" + node.name
    if any(n.name for n in all_nodes(model)):
        judge.edit("prefix", path, ("prefix", "--all-nodes", "--one-graph"), ["judge_"], prefix)


# ------------------------------------------------------- the same in ONNX Runtime

def inputs_of(model):
    constant = {t.name for t in model.graph.initializer}
    return [v for v in model.graph.input if v.name not in constant]


def shape_of(value):
    tensor = value.type.tensor_type
    return [d.dim_value if d.dim_value > 0 else 1 for d in tensor.shape.dim]


def feeds_of(ort_run, model, names):
    """The same numbers for every model with these inputs."""
    feeds = {}
    for value in inputs_of(model):
        kind, dims = value.type.tensor_type.elem_type, shape_of(value)
        count = ort_run.count_of(dims)
        if kind == 1:
            data = array.array("f", [((j * 37) % 101 - 50) / 50 for j in range(count)]).tobytes()
        else:
            data = b"\0" * (count * ort_run.TYPES[kind][1])
        feeds[names.get(value.name, value.name)] = ort_run.Tensor(kind, dims, data)
    return feeds


def outputs(path, model, names):
    """Every output in ONNX Runtime, by the names in `model`, or None and why."""
    import ort_run  # only here: the other edits need none
    try:
        results = ort_run.run(ort_run.session(path), feeds_of(ort_run, model, names))
        found = {v.name: results.pop(names.get(v.name, v.name)) for v in model.graph.output}
    except Exception as error:  # ONNX Runtime's have no other base
        return None, f"{type(error).__name__}: {error}"[-300:]
    return (None, f"there are further outputs: {sorted(results)}") if results else (found, "")


def ort_case(judge, path):
    """Everything at once: values and nodes renamed, outputs turned round, metadata set."""
    name = f"{label(path)} in ONNX Runtime"
    with open(path, "rb") as file:
        model = onnx_schema.parse(file.read())
    names = {n: "ort/" + n + ":0" for n in sorted(defined(model.graph))[:MOST]}
    pairs = [word for pair in names.items() for word in pair]
    order = ",".join(names[v.name] for v in reversed(model.graph.output))
    steps = [("rename", "--", *pairs),
             ("set", "--", "metadata:judge=1", "graph:name=judged", "graph:outputs=" + order)]
    if any(n.name for n in all_nodes(model)):
        steps.append(("prefix", "--all-nodes", "--", "judge_"))
    source = path
    for i, (command, *rest) in enumerate(steps):
        out = os.path.join(judge.folder, f"step{i}.onnx")
        code, text = judge.tool(command, source, "-o", out, "-f", *rest)
        if code != 0:
            return judge.fail(name, f"{command}: exit code {code}: {text}")
        source = out
    before, why = outputs(path, model, {})
    if before is None:
        return judge.fail(name, f"the source does not run: {why}")
    after, why = outputs(source, model, names)
    if after is None:
        return judge.fail(name, f"the edited model does not run: {why}")
    if not before or before != after:
        return judge.fail(name, "the outputs are not the same")
    return print(f"ok {name}")


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    judge = Judge(sys.argv[1], sys.argv[2])
    os.makedirs(judge.folder, exist_ok=True)
    if sys.argv[3] == "--ort":
        for path in sys.argv[4:]:
            ort_case(judge, path)
        sys.exit(1 if judge.failed else 0)
    paths = sys.argv[3:]
    for kind in make_model.KINDS:
        paths.append(os.path.join(judge.folder, kind + ".onnx"))
        with open(paths[-1], "wb") as out:
            out.write(make_model.make(kind).SerializeToString())
    for path in paths:
        with open(path, "rb") as file:
            model = onnx_schema.parse(file.read())
        judge.model = label(path) + ": "
        attribute_cases(judge, path, model)
        model_cases(judge, path, model)
        name_cases(judge, path, model)
    if not judge.failed:
        print(f"ok {len(paths)} models: each edit is the change and nothing else")
        print(f"note {judge.edits} edits judged")
    sys.exit(1 if judge.failed or judge.edits < len(paths) else 0)


if __name__ == "__main__":
    main()
