#!/usr/bin/python3
"""Makes the models that `epctx view` is tried with.

    tests/judge/view_models.py FOLDER

many.onnx     20,000 nodes: residual blocks with branches, as in big networks
wide.onnx     20,000 nodes side by side
dense.onnx    20,000 nodes that each read the eight before
folds.onnx    If in Loop, a function in a function, both used twice
changed.onnx  the same with a node renamed, one added, one removed and an attribute changed
hostile.onnx  names full of markup, script, control characters and RTL marks, and huge ones
found.onnx    2,000 nodes with the same error, errors in a body and in a function, names twice
bad.onnx      no valid model: a cycle, values that nobody makes, a function that calls itself
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from make_model import FLOAT, INT, STRING, node, value, weights  # noqa: E402
from onnx_schema import ModelProto  # noqa: E402

FLOATS, GRAPH, TENSOR = 6, 5, 4
HOSTILE = (
    "</script><script>window.hacked = 1</script>", "<img src=x onerror=window.hacked=1>",
    "<!--<script>", "]]>", "\u202eevil\u202c", "\u2066rtl\u2069\u200f", "a\0b\x1b[31mred\r\n",
    "\u2028line\u2029", "&lt;b&gt;&amp;", "'\"`\\ ${alert(1)} {{x}}", "javascript:alert(1)",
    "__proto__", "constructor", "\U000e0041\U000e0042", "x" * 100000,
    "\u0645\u0631\u062d\u0628\u0627",
)


def begin(name):
    model = ModelProto(ir_version=9, producer_name="epctx tests")
    model.opset_import.add(domain="", version=17)
    model.graph.name = name
    return model, model.graph


def many(nodes):
    model, graph = begin("many")
    value(graph.input, "x", FLOAT, (1, 64))
    value(graph.output, "y", FLOAT, (1, 64))
    weights(graph, "w", FLOAT, (64, 64))
    last, skip = "x", "x"
    for i in range(nodes // 10):
        path = f"/model/layers.{i}/"
        steps = [("MatMul", "q", (last, "w")), ("Relu", "q_act", ("q",)),
                 ("MatMul", "k", (last, "w")), ("Sigmoid", "k_act", ("k",)),
                 ("Mul", "gate", ("q_act", "k_act")),
                 ("MatMul", "v", (last, "w")), ("Tanh", "v_act", ("v",)),
                 ("Add", "mix", ("gate", "v_act")), ("Add", "residual", ("mix", skip)),
                 ("LeakyRelu", "out", ("residual",))]
        local = {name for _, name, _ in steps}
        for op, name, inputs in steps:
            output = "y" if i == nodes // 10 - 1 and name == "out" else path + name + "_output_0"
            node(graph, op, path + name,
                 [path + v + "_output_0" if v in local else v for v in inputs], (output,))
        skip, last = (last if i % 7 == 0 else path + "mix_output_0"), path + "out_output_0"
    return model


def wide(nodes):
    model, graph = begin("wide")
    value(graph.input, "x", FLOAT, (1,))
    value(graph.output, "y", FLOAT, (1,))
    for i in range(nodes):
        node(graph, "Relu", f"r{i}", ("x",), (f"v{i}",))
    node(graph, "Sum", "all", [f"v{i}" for i in range(nodes)], ("y",))
    return model


def dense(nodes):
    model, graph = begin("dense")
    value(graph.input, "x", FLOAT, (1,))
    value(graph.output, f"v{nodes - 1}", FLOAT, (1,))
    made = ["x"]
    for i in range(nodes):
        node(graph, "Sum", f"s{i}", made[-8:], (f"v{i}",))
        made.append(f"v{i}")
    return model


def body(graph, name, outer, depth):
    """A body that reads a value of the graph around it."""
    graph.name = name
    node(graph, "Neg", name + " neg", (outer,), (name + "_n",))
    if depth > 0:
        fold(graph, name + " inner", name + "_n", name + "_o", depth - 1)
    else:
        node(graph, "Exp", name + " exp", (name + "_n",), (name + "_o",))
    value(graph.output, name + "_o", FLOAT, (1,))


def fold(graph, name, outer, output, depth):
    weights(graph, name + "_c", FLOAT, (1,))
    made = node(graph, "If", name, (name + "_c",), (output,))
    for branch in ("then_branch", "else_branch"):
        attr = made.attribute.add(name=branch, type=GRAPH)
        body(attr.g, f"{name}/{branch}", outer, depth)


def function(model, name, inner):
    made = model.functions.add(name=name, domain="test.fun", input=["a"], output=["b"])
    made.opset_import.add(domain="", version=17)
    if inner:
        made.opset_import.add(domain="test.fun", version=1)
        step = node(made, inner, name + " call", ("a",), ("m",))
        step.domain = "test.fun"
    else:
        node(made, "Abs", name + " abs", ("a",), ("m",))
    node(made, "Sqrt", name + " sqrt", ("m",), ("b",))


def folds(changed):
    model, graph = begin("folds")
    model.opset_import.add(domain="test.fun", version=1)
    function(model, "Outer", "Inner")
    function(model, "Inner", None)
    value(graph.input, "x", FLOAT, (1,))
    value(graph.output, "y", FLOAT, (1,))
    relu = node(graph, "LeakyRelu", "first", ("x",), ("a",))
    relu.attribute.add(name="alpha", type=1, f=0.5 if changed else 0.25)
    fold(graph, "choice", "a", "b", 1)
    for i, (source, target) in enumerate((("b", "c"), ("c", "d"))):
        node(graph, "Outer", "changed name" if changed and i else f"call {i}", (source,),
             (target,)).domain = "test.fun"
    last = ("Floor", "new node") if changed else ("Ceil", "old node")
    node(graph, *last, ("d",), ("y",))
    if changed:
        node(graph, "Round", "extra", ("a",), ("unused",))
    constant = node(graph, "Constant", "constant", (), ("seven",))
    tensor = constant.attribute.add(name="value", type=TENSOR).t
    tensor.data_type = FLOAT
    tensor.float_data.append(7)
    node(graph, "Mul", "by seven", ("d", "seven"), ("unread",))
    model.metadata_props.add(key="owner", value="somebody")
    return model


def hostile():
    model, graph = begin(HOSTILE[0])
    value(graph.input, "x", FLOAT, (1, HOSTILE[1]))
    last = "x"
    for i, text in enumerate(HOSTILE):
        made = node(graph, text, text, (last,), (f"{i}{text}",))
        made.domain = text
        made.doc_string = text
        made.attribute.add(name=text, type=STRING, s=text.encode())
        value(graph.value_info, f"{i}{text}", FLOAT, (text[:300],))
        last = f"{i}{text}"
        model.metadata_props.add(key=text, value=text)
        weights(graph, f"w{text}", FLOAT, (2,))
        fun = model.functions.add(name=text, domain=text, input=[text], output=[text])
        node(fun, text, text, (text,), (f"out{text}",)).domain = text
    ep = node(graph, "EPContext", HOSTILE[0], (last,), ("y",))
    ep.domain = "com.microsoft"
    for name, text in (("source", HOSTILE[1]), ("ep_cache_context", HOSTILE[0]),
                       ("notes", HOSTILE[4]), ("ep_sdk_version", HOSTILE[6])):
        ep.attribute.add(name=name, type=STRING, s=text.encode())
    for name in ("main_context", "embed_mode"):
        ep.attribute.add(name=name, type=INT, i=1)
    ep.attribute.add(name="\u202e" + HOSTILE[0], type=FLOATS, floats=[float("nan"), float("inf")])
    value(graph.output, "y", FLOAT, (1,))
    return model


def bad():
    model, graph = begin("bad")
    value(graph.output, "y", FLOAT, (1,))
    node(graph, "Add", "left", ("r", "nobody"), ("l",))
    node(graph, "Add", "right", ("l", "l"), ("r",))
    node(graph, "Add", "self", ("s", ""), ("s",))
    node(graph, "Again", "recursive", ("l",), ("y",)).domain = "test.fun"
    node(graph, "Relu", "twice", ("l",), ("y",))
    made = model.functions.add(name="Again", domain="test.fun", input=["a"], output=["b"])
    node(made, "Again", "once more", ("a",), ("m",)).domain = "test.fun"
    node(made, "Again", "and again", ("m",), ("b",)).domain = "test.fun"
    for _ in range(2):  # a finding with a command that cures it
        model.metadata_props.add(key="twice", value="the same")
    return model


def found():
    model, graph = begin("found")
    model.opset_import.add(domain="test.fun", version=1)
    function(model, "Clean", None)
    function(model, "Caller", "Broken")
    function(model, "Broken", None)
    model.functions[-1].node[0].input[0] = "nobody"
    value(graph.input, "x", FLOAT, (1, 3, 224))
    value(graph.output, "y", FLOAT, (1,))
    fold(graph, "choice", "x", "b", 1)
    inner = graph.node[-1].attribute[1].g.node[-1].attribute[0].g
    inner.node[0].name = "deep"
    inner.node[0].input[0] = "nobody"
    for branch in graph.node[-1].attribute:  # a name that is used in the main graph, too
        branch.g.node[0].name = "sums"
    node(graph, "Caller", "call", ("b",), ("c",)).domain = "test.fun"
    node(graph, "Clean", "clean call", ("c",), ("d",)).domain = "test.fun"
    value(graph.value_info, "d", FLOAT, (1, "batch"))
    node(graph, "Relu", "sums", ("d",), ("y",))
    for i in range(2000):
        node(graph, "Neg", f"lost {i}", (f"nobody {i}",), (f"lost_{i}",))
    return model


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for name, model in (("many", many(20000)), ("wide", wide(20000)), ("dense", dense(20000)),
                        ("folds", folds(False)), ("changed", folds(True)), ("hostile", hostile()),
                        ("found", found()), ("bad", bad())):
        with open(os.path.join(sys.argv[1], name + ".onnx"), "wb") as out:
            out.write(model.SerializeToString())


if __name__ == "__main__":
    main()
