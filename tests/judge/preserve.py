#!/usr/bin/python3
"""What a compilation must leave as it was, judged by libprotobuf.

    tests/judge/preserve.py EPCTX FOLDER

Compiles the models of make_model.py that are full of things a rewriting tool
may lose, and looks for every one of them in what was written. Prints the lines
that tests/run reads.
"""
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import make_model  # noqa: E402
import onnx_schema  # noqa: E402

# What a compilation may add to or take from.
GRAPH_CHANGES = ("node", "initializer", "value_info")
MODEL_CHANGES = ("opset_import", "metadata_props")


def attribute(node, name, default=None):
    found = [a for a in node.attribute if a.name == name]
    return found[0] if found else default


class Cases:
    def __init__(self):
        self.failed = False

    def check(self, name, condition, text):
        print(f"ok {name}" if condition else f"FAIL {name}: {text}")
        self.failed = self.failed or not condition


def compile_model(epctx, folder, kind, *options):
    source = os.path.join(folder, kind + ".onnx")
    model = make_model.make(kind)
    with open(source, "wb") as out:
        out.write(model.SerializeToString())
    result = os.path.join(folder, kind + "_ctx.onnx")
    done = subprocess.run([epctx, "compile", source, "-o", result, "-f", *options],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    if done.returncode != 0 or not os.path.exists(result):
        said = done.stdout.decode("utf-8", "backslashreplace").strip()
        return model, None, f"exit code {done.returncode}: {said}"
    with open(result, "rb") as written:
        return model, onnx_schema.parse(written.read()), "no sound model was written"


def skeleton(model):
    """The bytes of a model without what a compilation may change."""
    rest = onnx_schema.ModelProto()
    rest.CopyFrom(model)
    for field in MODEL_CHANGES:
        rest.ClearField(field)
    for field in GRAPH_CHANGES:
        rest.graph.ClearField(field)
    return rest.SerializeToString(deterministic=True)


def lost(before, after):
    """Entries of a repeated field that are not there any more."""
    kept = [entry.SerializeToString(deterministic=True) for entry in after]
    return [str(entry).strip() for entry in before
            if entry.SerializeToString(deterministic=True) not in kept]


def kept_everything(cases, name, before, after):
    cases.check(f"{name}: all else survives", skeleton(before) == skeleton(after),
                f"expected {skeleton(before)!r}, found {skeleton(after)!r}")
    for field in MODEL_CHANGES:
        gone = lost(getattr(before, field), getattr(after, field))
        cases.check(f"{name}: {field} survive", not gone, f"lost {gone}")
    cases.check(f"{name}: com.microsoft is imported",
                any(o.domain == "com.microsoft" for o in after.opset_import),
                f"found {[o.domain for o in after.opset_import]}")


def contexts(model):
    return [n for n in model.graph.node if n.op_type == "EPContext"]


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    epctx, folder = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    cases = Cases()

    for mode, options in (("external", ()), ("embedded", ("--embed",))):
        name = f"whole model, {mode}"
        before, after, problem = compile_model(epctx, folder, "extras", *options)
        cases.check(f"{name}: compiles", after is not None, problem)
        if after is None:
            continue
        kept_everything(cases, name, before, after)
        nodes = [n.op_type for n in after.graph.node]
        cases.check(f"{name}: one EPContext node", nodes == ["EPContext"], f"found {nodes}")
        for node in contexts(after):
            embed = attribute(node, "embed_mode")
            cases.check(f"{name}: embed_mode",
                        (embed.i if embed is not None else 1) == (mode == "embedded"),
                        f"found {embed}")
            cases.check(f"{name}: inputs and outputs",
                        (list(node.input), list(node.output)) == (["x"], ["y"]),
                        f"found {list(node.input)} and {list(node.output)}")
            cases.check(f"{name}: domain", node.domain == "com.microsoft", f"found {node.domain}")
        told = {p.key: p.value for p in after.metadata_props}
        key = "ep_compatibility_info.EpctxNpuExecutionProvider"
        cases.check(f"{name}: compatibility", told.get(key, "").startswith("epctx=1;source="),
                    f"found {told}")
        cases.check(f"{name}: no initializer left", not after.graph.initializer,
                    f"found {[t.name for t in after.graph.initializer]}")

    name = "model with a foreign node"
    before, after, problem = compile_model(epctx, folder, "partly")
    cases.check(f"{name}: compiles", after is not None, problem)
    if after is not None:
        kept_everything(cases, name, before, after)
        own = [n for n in before.graph.node if n.domain == "test.domain"]
        gone = lost(own, after.graph.node)
        cases.check(f"{name}: the node survives", not gone, f"lost {gone}")
        typed = {v.name for v in list(after.graph.value_info) + list(after.graph.output)}
        bare = [o for n in contexts(after) for o in n.output if o not in typed]
        # ORT infers no types for EPContext: without value_info it cannot load the model.
        cases.check(f"{name}: EPContext outputs are typed", not bare, f"found none for {bare}")
        order = [n.op_type for n in after.graph.node]
        cases.check(f"{name}: two partitions in order",
                    order == ["EPContext", "Strange", "EPContext"], f"found {order}")
        primaries = [a.i if a is not None else 1
                 for a in (attribute(n, "main_context") for n in contexts(after))]
        cases.check(f"{name}: one main context", primaries == [1, 0], f"found {primaries}")
        binaries = [f for f in os.listdir(folder) if f.startswith("partly") and f.endswith(".bin")]
        cases.check(f"{name}: one binary", len(binaries) == 1, f"found {sorted(binaries)}")
    sys.exit(1 if cases.failed else 0)


if __name__ == "__main__":
    main()
