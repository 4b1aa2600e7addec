#!/usr/bin/python3
"""Makes the models that tests/test_judge.sh is tried with.

    tests/judge/judge_models.py FOLDER

clash.onnx   a body of If uses a name of the main graph that is made later: a compiled node comes
             before, and ONNX Runtime refuses what was good
unshaped.onnx  the types of values between two partitions are declared, their shapes are not
dead.onnx    one of the nodes that can be compiled has no reader
good.onnx    an If, a Reshape by a constant, an external tensor; newer.onnx: the same, which ONNX
             Runtime refuses, as its IR version is none that it knows
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from make_model import FLOAT, node, value  # noqa: E402
from onnx_schema import ModelProto  # noqa: E402

BOOL, INT64, GRAPH = 9, 7, 5


def begin(name):
    model = ModelProto(ir_version=9, producer_name="epctx tests")
    model.opset_import.add(domain="", version=17)
    model.graph.name = name
    value(model.graph.input, "x", FLOAT, (1, 4))
    value(model.graph.input, "c", BOOL, ())
    return model, model.graph


def choice(graph, name, reads, inner, output):
    made = node(graph, "If", name, ("c",), (output,))
    for branch in ("then_branch", "else_branch"):
        body = made.attribute.add(name=branch, type=GRAPH).g
        body.name = f"{name}/{branch}"
        node(body, "Sin", "", (reads,), (inner,))
        value(body.output, inner, FLOAT, (1, 4))


def clash():
    model, graph = begin("clash")
    node(graph, "Relu", "first", ("x",), ("a",))
    choice(graph, "choice", "a", "late", "b")
    node(graph, "Exp", "middle", ("a",), ("m",))
    node(graph, "Tanh", "last", ("m",), ("late",))
    choice(graph, "again", "b", "inner", "e")
    for name in ("m", "late", "e"):
        value(graph.output, name, FLOAT, (1, 4))
    return model


def unshaped():
    model, graph = begin("unshaped")
    node(graph, "Relu", "first", ("x",), ("a",))
    choice(graph, "choice", "a", "inner", "b")
    node(graph, "Tanh", "middle", ("b",), ("m",))
    choice(graph, "again", "m", "inside", "n")
    node(graph, "Add", "last", ("n", "a"), ("y",))
    for name in ("a", "b", "m", "n"):
        graph.value_info.add(name=name).type.tensor_type.elem_type = FLOAT
    value(graph.output, "y", FLOAT, (1, 4))
    return model


def dead():
    model, graph = begin("dead")
    node(graph, "Relu", "first", ("x",), ("a",))
    choice(graph, "choice", "x", "inner", "b")
    node(graph, "Tanh", "last", ("b",), ("y",))
    value(graph.output, "y", FLOAT, (1, 4))
    return model


def good(ir_version):
    model, graph = begin("good")
    model.ir_version = ir_version
    shape = graph.initializer.add(name="shape", data_type=INT64, dims=(2,))
    shape.raw_data = (2).to_bytes(8, "little") * 2
    weights = graph.initializer.add(name="w", data_type=FLOAT, dims=(2, 2048))
    weights.raw_data = bytes(4 * 4096)
    choice(graph, "choice", "x", "inner", "b")
    node(graph, "Reshape", "reshape", ("b", "shape"), ("d",))
    node(graph, "MatMul", "matmul", ("d", "w"), ("y",))
    value(graph.output, "y", FLOAT, (2, 2048))
    return model


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for name, model in (("clash", clash()), ("dead", dead()), ("unshaped", unshaped()),
                        ("good", good(9)),
                        ("newer", good(99))):
        with open(os.path.join(sys.argv[1], name + ".onnx"), "wb") as out:
            out.write(model.SerializeToString())


if __name__ == "__main__":
    main()
