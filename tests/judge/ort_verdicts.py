#!/usr/bin/python3
"""Compares lint with ONNX Runtime: is an error exactly what ONNX Runtime refuses?

    tests/judge/ort_verdicts.py EPCTX VERDICTS ANY_EP FOLDER COUNT SEED MODEL...

The models: every *.onnx that is in FOLDER already, and COUNT that are made there out of the MODELs
and of some made here, each changed in one or two places with libprotobuf. ONNX Runtime loads them
(tests/ort/verdicts.c), `epctx lint` judges them.

ONNX Runtime refuses a file when no session comes about, for any reason but these: an operator or an
EP is not there, or an operator is not used as its own schema wants (number of inputs, attributes,
types, shapes). That takes the table of all operators, which lint does not have; the texts of such
refusals are listed below as OPERATOR. An error of lint counts unless its rule is in
tests/lint_known.txt: those are rules of EPs, of which ONNX Runtime itself knows nothing.
"""
import collections
import json
import os
import random
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from make_model import make, unknown  # noqa: E402
from onnx_schema import ModelProto  # noqa: E402

ORT = "1.31"
FLOAT, INT64, STRING_TYPE, BOOL, DOUBLE = 1, 7, 8, 9, 11
A_FLOAT, A_INT, A_STRING, A_TENSOR, A_GRAPH, A_INTS = 1, 2, 3, 4, 5, 7


# -- models made here --

def value(infos, name, elem_type=FLOAT, dims=(1, 4)):
    info = infos.add(name=name)
    info.type.tensor_type.elem_type = elem_type
    for dim in dims:
        info.type.tensor_type.shape.dim.add(dim_value=dim)
    return info


def tensor(tensors, name, numbers, elem_type=FLOAT, dims=None):
    t = tensors.add(name=name, data_type=elem_type, dims=(len(numbers),) if dims is None else dims)
    (t.float_data if elem_type == FLOAT else t.int64_data).extend(numbers)
    return t


def chain(graph, *ops):
    """Nodes (op, name, inputs, outputs) with spaces between names."""
    for op, name, inputs, outputs in ops:
        graph.node.add(op_type=op, name=name, input=inputs.split(), output=outputs.split())


def new(ir=10, opset=17, name="main"):
    model = ModelProto(ir_version=ir, producer_name="epctx tests")
    model.opset_import.add(domain="", version=opset)
    model.graph.name = name
    return model


def simple():
    """Without weights, and with two outputs."""
    model = new(ir=8, opset=13)
    value(model.graph.input, "x"), value(model.graph.output, "y"), value(model.graph.output, "z")
    value(model.graph.value_info, "a"), value(model.graph.value_info, "b")
    chain(model.graph, ("Relu", "n0", "x", "a"), ("Neg", "n1", "a", "b"), ("Add", "n2", "a b", "y"),
          ("Mul", "n3", "b x", "z"))
    return model


def weights():
    """Initializers in every form, two of them in a file."""
    model = new()
    graph = model.graph
    value(graph.input, "x"), value(graph.output, "y")
    tensor(graph.initializer, "floats", (1, 2, 3, 4))
    graph.initializer.add(name="raw", data_type=FLOAT, dims=(4,), raw_data=b"\0\0\x80\x3f" * 4)
    tensor(graph.initializer, "unused", (1, 2))
    graph.initializer.add(name="shape", data_type=INT64, dims=(2,), int64_data=(1, 4))
    for i in range(2):
        t = graph.initializer.add(name=f"file{i}", data_type=FLOAT, dims=(4,), data_location=1)
        for key, text in (("location", "weights.bin"), ("offset", str(16 * i)), ("length", "16")):
            t.external_data.add(key=key, value=text)
    constant = graph.node.add(op_type="Constant", name="c", output=["constant"])
    attr = constant.attribute.add(name="value", type=A_TENSOR)
    attr.t.data_type = FLOAT
    attr.t.dims.append(4)
    attr.t.float_data.extend((1, 1, 1, 1))
    last = "x"
    for i, name in enumerate(("floats", "raw", "file0", "file1", "constant")):
        chain(graph, ("Add", f"add{i}", f"{last} {name}", f"s{i}"))
        last = f"s{i}"
    chain(graph, ("Reshape", "reshape", f"{last} shape", "y"))
    return model


def bodies():
    """If with two branches that read outer values, and a Loop in one of them."""
    model = new()
    graph = model.graph
    value(graph.input, "x"), value(graph.input, "cond", BOOL, ()), value(graph.output, "y")
    tensor(graph.initializer, "w", (1, 2, 3, 4)), tensor(graph.initializer, "trip", (3,), INT64, ())
    chain(graph, ("Relu", "before", "x", "a"))
    node = graph.node.add(op_type="If", name="if", input=["cond"], output=["b"])
    for name in ("then_branch", "else_branch"):
        attr = node.attribute.add(name=name, type=A_GRAPH)
        attr.g.name = name
        value(attr.g.output, f"{name}_out")
        chain(attr.g, ("Mul", f"{name}_mul", "a w", f"{name}_m"),
              ("Neg", f"{name}_neg", f"{name}_m", f"{name}_out"))
        tensor(attr.g.initializer, f"{name}_w", (1,))
    loop = graph.node.add(op_type="Loop", name="loop", input=["trip", "", "b"], output=["l"])
    body = loop.attribute.add(name="body", type=A_GRAPH).g
    body.name = "body"
    value(body.input, "i", INT64, ()), value(body.input, "go", BOOL, ()), value(body.input, "v")
    value(body.output, "go_out", BOOL, ()), value(body.output, "v_out")
    chain(body, ("Identity", "same", "go", "go_out"), ("Add", "sum", "v a", "v_out"))
    chain(graph, ("Relu", "after", "l", "y"))
    return model


def functions():
    model = new()
    model.opset_import.add(domain="mine", version=1)
    value(model.graph.input, "x"), value(model.graph.output, "y")
    for name, inner in (("Twice", ("Add", "")), ("Four", ("Twice", "mine"))):
        f = model.functions.add(name=name, domain="mine", input=["p"], output=["q"])
        f.opset_import.add(domain="", version=17)
        if inner[1]:
            f.opset_import.add(domain="mine", version=1)
        inputs = ["p", "p"] if not inner[1] else ["p"]
        f.node.add(op_type=inner[0], domain=inner[1], name="f0", input=inputs, output=["m"])
        f.node.add(op_type="Relu", name="f1", input=["m"], output=["q"])
    model.graph.node.add(op_type="Twice", domain="mine", name="n0", input=["x"], output=["a"])
    model.graph.node.add(op_type="Four", domain="mine", name="n1", input=["a"], output=["y"])
    return model


def compiled():
    """An EPContext node between two others."""
    model = new()
    model.opset_import.add(domain="com.microsoft", version=1)
    value(model.graph.input, "x"), value(model.graph.output, "y")
    value(model.graph.value_info, "a"), value(model.graph.value_info, "b")
    tensor(model.graph.initializer, "w", (1, 2, 3, 4))
    chain(model.graph, ("Relu", "n0", "x", "a"))
    for i, (source, target) in enumerate((("a", "b"), ("b", "c"))):
        node = model.graph.node.add(op_type="EPContext", domain="com.microsoft", name=f"part{i}",
                                    input=[source], output=[target])
        for key, text in (("main_context", 1), ("embed_mode", 1), ("source", b"SomeEP"),
                          ("ep_cache_context", b"\0payload"), ("partition_name", b"p%d" % i)):
            attr = node.attribute.add(name=key, type=A_INT if isinstance(text, int) else A_STRING)
            if isinstance(text, int):
                attr.i = text
            else:
                attr.s = text
    value(model.graph.value_info, "c")
    chain(model.graph, ("Add", "n1", "c w", "y"))
    return model


def sparse():
    model = new(opset=13)
    graph = model.graph
    value(graph.input, "x"), value(graph.output, "y")
    s = graph.sparse_initializer.add(dims=(4,))
    s.values.name, s.values.data_type = "w", FLOAT
    s.values.dims.append(2), s.values.float_data.extend((1, 2))
    s.indices.data_type = INT64
    s.indices.dims.append(2), s.indices.int64_data.extend((0, 3))
    chain(graph, ("Add", "n0", "x w", "y"))
    return model


def old():
    """IR 3: every initializer is a graph input too."""
    model = new(ir=3, opset=8)
    value(model.graph.input, "x"), value(model.graph.input, "w", FLOAT, (4,))
    value(model.graph.output, "y")
    tensor(model.graph.initializer, "w", (1, 2, 3, 4))
    chain(model.graph, ("Add", "n0", "x w", "a"), ("Relu", "n1", "a", "y"))
    return model


MADE = [simple, weights, bodies, functions, compiled, sparse, old, lambda: make("extras"),
        lambda: make("plain")]


# -- changes: each takes a source of random numbers and a model, False when there is nothing to
# change --

def graphs(graph, above=()):
    """Every graph, with those around it."""
    yield graph, above
    for node in graph.node:
        for attr in node.attribute:
            for inner in ([attr.g] if attr.HasField("g") else []) + list(attr.graphs):
                yield from graphs(inner, (*above, graph))


def any_graph(rng, model, want=lambda g: True):
    found = [g for g, _ in graphs(model.graph) if want(g)]
    return rng.choice(found) if found else None


def all_nodes(model):
    found = [n for g, _ in graphs(model.graph) for n in g.node]
    return found + [n for f in model.functions for n in f.node]


def any_node(rng, model, want=lambda n: True):
    found = [n for n in all_nodes(model) if want(n)]
    return rng.choice(found) if found else None


def any_initializer(rng, model, want=lambda t: True):
    found = [t for g, _ in graphs(model.graph) for t in g.initializer if want(t)]
    return rng.choice(found) if found else None


def names_of(graph):
    names = [i.name for i in graph.input] + [t.name for t in graph.initializer]
    return names + [o for n in graph.node for o in n.output if o]


def pick(items, rng):
    return rng.randrange(len(items)) if len(items) else None


def swap(items, a, b):
    keep = [type(i).FromString(i.SerializePartialToString()) for i in items]
    keep[a], keep[b] = keep[b], keep[a]
    del items[:]
    items.extend(keep)


def ir_version(rng, m):
    m.ir_version = rng.choice((-1, 0, 1, 2, 3, 4, 9, 10, 11, 12, 13, 14, 15, 99, 2 ** 31, 2 ** 40))


def no_ir_version(rng, m): m.ClearField("ir_version")


def opset_version(rng, m):
    if not m.opset_import: return False
    rng.choice(m.opset_import).version = rng.choice(
        (-1, 0, 1, 2, 3, 5, 6, 7, 13, 20, 24, 25, 26, 27, 28, 29, 99, 2 ** 31, 2 ** 40))


def opset_no_version(rng, m):
    if not m.opset_import: return False
    rng.choice(m.opset_import).ClearField("version")


def opset_drop(rng, m):
    if not m.opset_import: return False
    del m.opset_import[pick(m.opset_import, rng)]


def opset_all_gone(rng, m): del m.opset_import[:]


def opset_again(rng, m):
    if not m.opset_import: return False
    old = rng.choice(m.opset_import)
    m.opset_import.add(domain=old.domain, version=old.version + rng.choice((0, 0, 1, -1)))


def opset_alias(rng, m):
    m.opset_import.add(domain="ai.onnx", version=rng.choice((11, 13, 17)))


def opset_alias_only(rng, m):
    for o in m.opset_import:
        if o.domain == "": o.domain = "ai.onnx"


def opset_more(rng, m):
    m.opset_import.add(domain=rng.choice(("com.microsoft", "nobody.knows", "ai.onnx.ml", "local",
                                          "ai.onnx.training", "com.ms.internal.nhwc", "ai.onnx.foo",
                                          "com.microsoft.nchwc", "com.microsoft.experimental",
                                          "ai.onnx.preview.training", "ai.onnx.preview",
                                          "org.pytorch.aten", "com.microsoft.dml")),
                       version=rng.choice((0, 1, 1, 1, 2, 3, 4, 5, 6, 99)))


def opset_rename(rng, m):
    if not m.opset_import: return False
    rng.choice(m.opset_import).domain = rng.choice(("gone", "com.microsoft", "ai.onnx", "Ai.onnx"))


def no_graph(rng, m): m.ClearField("graph")
def empty_graph(rng, m): m.graph.Clear()


def no_graph_name(rng, m):
    any_graph(rng, m).ClearField("name")


def node_drop(rng, m):
    g = any_graph(rng, m, lambda g: g.node)
    if g is None: return False
    del g.node[pick(g.node, rng)]


def node_again(rng, m):
    g = any_graph(rng, m, lambda g: g.node)
    if g is None: return False
    copy = g.node.add()
    copy.CopyFrom(g.node[pick(g.node, rng) if len(g.node) > 1 else 0])


def node_again_other_outputs(rng, m):
    g = any_graph(rng, m, lambda g: g.node)
    if g is None: return False
    source = rng.choice(g.node)
    copy = g.node.add()
    copy.CopyFrom(source)
    for i, name in enumerate(copy.output):
        copy.output[i] = name + "_again" if name else ""


def node_same_name(rng, m):
    g = any_graph(rng, m, lambda g: len(g.node) > 1)
    if g is None: return False
    a, b = rng.sample(list(g.node), 2)
    a.name = b.name = b.name or "same"


def node_name_of_value(rng, m):
    g = any_graph(rng, m, lambda g: g.node)
    if g is None: return False
    rng.choice(g.node).name = rng.choice(names_of(g))


def node_no_name(rng, m):
    node = any_node(rng, m)
    if node is None: return False
    node.ClearField("name")


def node_swap(rng, m):
    g = any_graph(rng, m, lambda g: len(g.node) > 1)
    if g is None: return False
    swap(g.node, *rng.sample(range(len(g.node)), 2))


def node_reverse(rng, m):
    g = any_graph(rng, m, lambda g: len(g.node) > 1)
    if g is None: return False
    keep = [type(n).FromString(n.SerializePartialToString()) for n in reversed(g.node)]
    del g.node[:]
    g.node.extend(keep)


def node_domain(rng, m):
    node = any_node(rng, m)
    if node is None: return False
    node.domain = rng.choice(("nobody.knows", "ai.onnx", "com.microsoft", "ai.onnx.ml", "mine"))


def node_type(rng, m):
    node = any_node(rng, m)
    if node is None: return False
    node.op_type = rng.choice(("NoSuchOperator", "", "Relu", "Identity"))


def cycle(rng, m):
    g = any_graph(rng, m, lambda g: len(g.node) > 1)
    if g is None: return False
    at = rng.randrange(len(g.node) - 1)
    later = [n for n in list(g.node)[at:] if n.output and n.output[0]]
    if not later or not g.node[at].input: return False
    g.node[at].input[pick(g.node[at].input, rng)] = rng.choice(later).output[0]


def self_loop(rng, m):
    node = any_node(rng, m, lambda n: n.input and n.output)
    if node is None: return False
    node.input[pick(node.input, rng)] = node.output[0]


def input_ghost(rng, m):
    node = any_node(rng, m, lambda n: n.input)
    if node is None: return False
    node.input[pick(node.input, rng)] = "ghost"


def input_other(rng, m):
    g = any_graph(rng, m, lambda g: any(n.input for n in g.node))
    if g is None: return False
    node = rng.choice([n for n in g.node if n.input])
    node.input[pick(node.input, rng)] = rng.choice(names_of(g))


def input_empty(rng, m):
    node = any_node(rng, m, lambda n: n.input)
    if node is None: return False
    node.input[pick(node.input, rng)] = ""


def input_drop(rng, m):
    node = any_node(rng, m, lambda n: n.input)
    if node is None: return False
    del node.input[pick(node.input, rng)]


def input_more(rng, m):
    node = any_node(rng, m, lambda n: n.input)
    if node is None: return False
    node.input.append(rng.choice((node.input[0], "", "ghost")))


def output_rename(rng, m):
    node = any_node(rng, m, lambda n: n.output)
    if node is None: return False
    node.output[pick(node.output, rng)] = "renamed"


def output_of_other(rng, m):
    g = any_graph(rng, m, lambda g: any(n.output for n in g.node))
    if g is None: return False
    node = rng.choice([n for n in g.node if n.output])
    node.output[pick(node.output, rng)] = rng.choice(names_of(g))


def output_drop(rng, m):
    node = any_node(rng, m, lambda n: n.output)
    if node is None: return False
    del node.output[pick(node.output, rng)]


def output_none(rng, m):
    node = any_node(rng, m, lambda n: n.output)
    if node is None: return False
    del node.output[:]


def output_empty(rng, m):
    node = any_node(rng, m, lambda n: n.output)
    if node is None: return False
    node.output[pick(node.output, rng)] = ""


def output_outer(rng, m):
    """A body defines a name of a graph around it."""
    found = [(g, above) for g, above in graphs(m.graph) if above and g.node]
    if not found: return False
    g, above = rng.choice(found)
    kind = rng.randrange(4)
    name = rng.choice(names_of(rng.choice(above)))
    if kind == 0:
        rng.choice(g.node).output[0] = name
    elif kind == 1:
        tensor(g.initializer, name, (1, 2, 3, 4))
    elif kind == 2 and g.input:
        rng.choice(g.input).name = name
    else:
        g.node.add(op_type="Identity", input=[rng.choice(names_of(g))], output=[name])


def attr_of(rng, m):
    node = any_node(rng, m, lambda n: n.attribute)
    return (None, None) if node is None else (node, pick(node.attribute, rng))


def attr_again(rng, m):
    node, at = attr_of(rng, m)
    if node is None: return False
    node.attribute.add().CopyFrom(node.attribute[at])


def attr_again_other(rng, m):
    node, at = attr_of(rng, m)
    if node is None: return False
    node.attribute.add(name=node.attribute[at].name, type=A_INT, i=5)


def attr_drop(rng, m):
    node, at = attr_of(rng, m)
    if node is None: return False
    del node.attribute[at]


def attr_rename(rng, m):
    node, at = attr_of(rng, m)
    if node is None: return False
    node.attribute[at].name = rng.choice(("", "renamed"))


def attr_type(rng, m):
    node, at = attr_of(rng, m)
    if node is None: return False
    node.attribute[at].type = rng.choice(range(1, 15))


def attr_no_type(rng, m):
    node, at = attr_of(rng, m)
    if node is None: return False
    node.attribute[at].ClearField("type")


def attr_reference(rng, m):
    node, at = attr_of(rng, m)
    if node is None: return False
    node.attribute[at].ref_attr_name = "outer"


def attr_more(rng, m):
    node = any_node(rng, m)
    if node is None: return False
    node.attribute.add(name="more", type=A_STRING, s=b"text")


def values(rng, m, lists=("input", "output", "value_info")):
    found = [getattr(g, k) for g, _ in graphs(m.graph) for k in lists if getattr(g, k)]
    return rng.choice(found) if found else None


def value_drop(rng, m):
    infos = values(rng, m)
    if infos is None: return False
    del infos[pick(infos, rng)]


def value_again(rng, m):
    infos = values(rng, m)
    if infos is None: return False
    infos.add().CopyFrom(rng.choice(infos))


def value_rename(rng, m):
    infos = values(rng, m)
    if infos is None: return False
    rng.choice(infos).name = rng.choice(("renamed", "", infos[0].name))


def value_no_name(rng, m):
    infos = values(rng, m)
    if infos is None: return False
    rng.choice(infos).ClearField("name")


def value_no_type(rng, m):
    infos = values(rng, m)
    if infos is None: return False
    rng.choice(infos).ClearField("type")


def value_empty_type(rng, m):
    infos = values(rng, m)
    if infos is None: return False
    v = rng.choice(infos)
    if rng.randrange(2): v.type.Clear()
    else: v.type.tensor_type.ClearField("elem_type")


def value_elem_type(rng, m):
    infos = values(rng, m)
    if infos is None: return False
    rng.choice(infos).type.tensor_type.elem_type = rng.choice(
        (0, 1, 2, 7, 8, 10, 11, 14, 16, 17, 19, 20, 21, 22, 23, 24, 25, 26, 27, 99, -1))


def value_no_shape(rng, m):
    infos = values(rng, m)
    if infos is None: return False
    rng.choice(infos).type.tensor_type.ClearField("shape")


def value_dim(rng, m):
    infos = values(rng, m)
    if infos is None: return False
    v = rng.choice(infos)
    dims = v.type.tensor_type.shape.dim
    if not dims or not v.type.HasField("tensor_type"): return False
    dim = dims[pick(dims, rng)]
    dim.Clear()
    kind = rng.randrange(5)
    if kind < 3: dim.dim_value = (-1, 0, 7)[kind]
    elif kind == 3: dim.dim_param = "N"


def value_rank(rng, m):
    infos = values(rng, m)
    if infos is None: return False
    v = rng.choice(infos)
    if not v.type.HasField("tensor_type"): return False
    if rng.randrange(2) or not v.type.tensor_type.shape.dim:
        v.type.tensor_type.shape.dim.add(dim_value=1)
    else:
        del v.type.tensor_type.shape.dim[-1]


def value_other_kind(rng, m):
    infos = values(rng, m)
    if infos is None: return False
    t = rng.choice(infos).type
    t.Clear()
    kind = rng.randrange(6)
    if kind == 0: t.sequence_type.elem_type.tensor_type.elem_type = 1
    elif kind == 1: t.map_type.key_type = 7; t.map_type.value_type.tensor_type.elem_type = 1
    elif kind == 2: t.optional_type.elem_type.tensor_type.elem_type = 1
    elif kind == 3: t.sparse_tensor_type.elem_type = 1
    elif kind == 4: t.sequence_type.SetInParent()
    else: t.map_type.SetInParent()


def value_info_for(rng, m):
    g = any_graph(rng, m)
    value(g.value_info, rng.choice(names_of(g) + ["nowhere"]), rng.choice((1, 7)), (1, 4))


def output_initializer(rng, m):
    g = any_graph(rng, m, lambda g: g.initializer)
    if g is None: return False
    value(g.output, rng.choice(g.initializer).name, 1, (4,))


def output_input(rng, m):
    if not m.graph.input: return False
    m.graph.output.add().CopyFrom(m.graph.input[0])


def graph_no_outputs(rng, m):
    g = any_graph(rng, m)
    del g.output[:]


def graph_no_inputs(rng, m):
    g = any_graph(rng, m)
    del g.input[:]


def input_for_initializer(rng, m):
    g = any_graph(rng, m, lambda g: g.initializer)
    if g is None: return False
    t = rng.choice(g.initializer)
    value(g.input, t.name, rng.choice((t.data_type, t.data_type, 7)),
          rng.choice((list(t.dims), list(t.dims), [1], [])))


def init_drop(rng, m):
    g = any_graph(rng, m, lambda g: g.initializer)
    if g is None: return False
    del g.initializer[pick(g.initializer, rng)]


def init_again(rng, m):
    g = any_graph(rng, m, lambda g: g.initializer)
    if g is None: return False
    t = g.initializer.add()
    t.CopyFrom(g.initializer[0 if len(g.initializer) == 1
                             else rng.randrange(len(g.initializer) - 1)])


def init_same_name(rng, m):
    g = any_graph(rng, m, lambda g: len(g.initializer) > 1)
    if g is None: return False
    a, b = rng.sample(list(g.initializer), 2)
    a.name = b.name


def init_rename(rng, m):
    g = any_graph(rng, m, lambda g: g.initializer)
    if g is None: return False
    rng.choice(g.initializer).name = rng.choice(("renamed", "", *names_of(g)))


def init_raw_size(rng, m):
    t = any_initializer(rng, m, lambda t: t.raw_data)
    if t is None: return False
    t.raw_data = rng.choice((t.raw_data[:-1], t.raw_data[:-4], t.raw_data + b"\0\0\0\0", b""))


def init_typed_size(rng, m):
    t = any_initializer(rng, m, lambda t: t.float_data or t.int64_data or t.int32_data)
    if t is None: return False
    numbers = t.float_data or t.int64_data or t.int32_data
    if rng.randrange(2): numbers.append(1)
    else: del numbers[-1]


def init_no_data(rng, m):
    t = any_initializer(rng, m)
    if t is None: return False
    for field in ("raw_data", "float_data", "int64_data", "int32_data", "double_data"):
        t.ClearField(field)


def init_two_data(rng, m):
    t = any_initializer(rng, m, lambda t: t.raw_data or t.float_data)
    if t is None: return False
    if t.raw_data: t.float_data.append(1)
    else: t.raw_data = b"\0\0\x80\x3f" * max(1, len(t.float_data))


def init_type(rng, m):
    t = any_initializer(rng, m)
    if t is None: return False
    t.data_type = rng.choice((0, 1, 2, 6, 7, 8, 9, 10, 11, 12, 14, 16, 17, 21, 22, 23, 24, 25, 26,
                              27, 99, -1))


def init_no_type(rng, m):
    t = any_initializer(rng, m)
    if t is None: return False
    t.ClearField("data_type")


def init_dims(rng, m):
    t = any_initializer(rng, m)
    if t is None: return False
    kind = rng.randrange(5)
    if kind == 0: t.dims.append(1)
    elif kind == 1: t.dims.append(2)
    elif kind == 2: t.dims.append(0)
    elif kind == 3: t.dims.append(-1)
    else: t.dims.append(2 ** 62)


def init_strings(rng, m):
    t = any_initializer(rng, m, lambda t: t.float_data)
    if t is None: return False
    t.data_type = STRING_TYPE
    n = len(t.float_data)
    t.ClearField("float_data")
    t.string_data.extend([b"a"] * rng.choice((n, n, n + 1, n - 1)))


def init_external(rng, m):
    t = any_initializer(rng, m)
    if t is None: return False
    for field in ("raw_data", "float_data", "int64_data", "int32_data", "double_data"):
        if rng.randrange(4): t.ClearField(field)
    t.data_location = 1
    del t.external_data[:]
    pairs = [("location", rng.choice(("weights.bin", "weights.bin", "weights.bin", "./weights.bin",
                                      "sub/../weights.bin", "sub//w2.bin", "sub/w2.bin",
                                      "../FOLDER/weights.bin", "../weights.bin", "not_there.bin",
                                      "sub/../../weights.bin", "/etc/passwd", "sub", "", ".",
                                      "gone/../weights.bin", "sub\\w2.bin", "empty.bin",
                                      "weights.bin/", "/FULL/weights.bin", "*/_ORT_MEM_ADDR_/*",
                                      "C:\\weights.bin", "link.bin", "out.bin"))),
             ("offset", rng.choice(("0", "0", "4", "16", "100000", "-4", "x", "", "1 ", "+4"))),
             ("length", rng.choice(("16", "16", "16", "4", "0", "-1", "x", "8", "100000")))]
    for key, text in pairs:
        if rng.randrange(8): t.external_data.add(key=key, value=text)
    if rng.randrange(8) == 0: t.external_data.add(key="what", value="x")
    if rng.randrange(8) == 0: t.external_data.add(key="checksum", value="x")
    if rng.randrange(8) == 0: t.external_data.add(key="location", value="weights.bin")


def external_entry(rng, m):
    t = any_initializer(rng, m, lambda t: t.external_data)
    if t is None: return False
    e = rng.choice(t.external_data)
    kind = rng.randrange(5)
    if kind == 0: e.value = rng.choice(("", "x", "-1", "9999999999", "18446744073709551616", "0"))
    elif kind == 1: e.key = "other"
    elif kind == 2: t.external_data.add().CopyFrom(e)
    elif kind == 3: e.ClearField("value")
    else: t.external_data.remove(e)


def external_path(rng, m):
    t = any_initializer(rng, m, lambda t: t.external_data)
    if t is None: return False
    for e in t.external_data:
        if e.key == "location":
            e.value = rng.choice(("./weights.bin", "sub/../weights.bin", "../FOLDER/weights.bin",
                                  "../weights.bin", "not_there.bin", "sub", "sub/w2.bin", "",
                                  "/FULL/weights.bin", "/etc/passwd", "gone/../weights.bin",
                                  "link.bin", "out.bin", "empty.bin", "sub/../../weights.bin"))


def no_location_bit(rng, m):
    t = any_initializer(rng, m, lambda t: t.external_data)
    if t is None: return False
    t.ClearField("data_location")


def location_bit(rng, m):
    t = any_initializer(rng, m, lambda t: not t.external_data)
    if t is None: return False
    t.data_location = rng.choice((1, 2, 7))


def segment(rng, m):
    t = any_initializer(rng, m)
    if t is None: return False
    t.segment.begin, t.segment.end = 0, 1


def sparse_break(rng, m):
    found = [s for g, _ in graphs(m.graph) for s in g.sparse_initializer]
    if not found: return False
    s = rng.choice(found)
    kind = rng.randrange(12)
    if kind == 0: s.values.name = ""
    elif kind == 1: s.dims[0] = 2
    elif kind == 2: s.indices.int64_data[1] = 4
    elif kind == 3: s.indices.int64_data[:] = [3, 0]
    elif kind == 4: s.indices.int64_data.append(1)
    elif kind == 5: s.values.float_data.append(1)
    elif kind == 6: s.ClearField("indices")
    elif kind == 7: s.ClearField("values")
    elif kind == 8: del s.dims[:]
    elif kind == 9: s.indices.data_type = FLOAT
    elif kind == 10: s.indices.int64_data[:] = [-1, 0]
    else: m.graph.sparse_initializer.add().CopyFrom(s)


def sparse_more(rng, m):
    t = any_initializer(rng, m, lambda t: t.float_data)
    g = m.graph
    s = g.sparse_initializer.add(dims=(4,))
    s.values.name = rng.choice(("sp", t.name if t is not None else "sp2"))
    s.values.data_type = FLOAT
    s.values.dims.append(1), s.values.float_data.append(1)
    s.indices.data_type = INT64
    s.indices.dims.append(1), s.indices.int64_data.append(2)


def body_output(rng, m):
    found = [g for g, above in graphs(m.graph) if above]
    if not found: return False
    g = rng.choice(found)
    kind = rng.randrange(6)
    if kind == 0: g.output[0].name = "nothing"
    elif kind == 1: g.output[0].name = m.graph.input[0].name
    elif kind == 2: del g.output[0]
    elif kind == 3: g.output.add().CopyFrom(g.output[0])
    elif kind == 4: g.output.add(name="more")
    else: g.output[0].ClearField("type")


def body_reads(rng, m):
    found = [(g, above) for g, above in graphs(m.graph) if above and any(n.input for n in g.node)]
    if not found: return False
    g, above = rng.choice(found)
    node = rng.choice([n for n in g.node if n.input])
    top = above[0]
    node.input[0] = rng.choice(("ghost", top.output[0].name, rng.choice(names_of(top)),
                                rng.choice([o for n in top.node for o in n.output])))


def body_gone(rng, m):
    node = any_node(rng, m, lambda n: any(a.HasField("g") for a in n.attribute))
    if node is None: return False
    attr = rng.choice([a for a in node.attribute if a.HasField("g")])
    kind = rng.randrange(4)
    if kind == 0: attr.ClearField("g")
    elif kind == 1: attr.g.Clear()
    elif kind == 2: attr.graphs.add().CopyFrom(attr.g)
    else: attr.type = 10


def body_graphs(rng, m):
    node = any_node(rng, m, lambda n: not n.domain)
    if node is None: return False
    attr = node.attribute.add(name="extra_body", type=A_GRAPH)
    attr.g.name = "extra"
    attr.g.node.add(op_type="Relu", input=[rng.choice(("ghost", m.graph.input[0].name
                                                       if m.graph.input else "x"))],
                    output=["extra_out"])
    value(attr.g.output, "extra_out")


def function_break(rng, m):
    if not m.functions: return False
    f = rng.choice(m.functions)
    kind = rng.randrange(20)
    if kind == 0: f.ClearField("name")
    elif kind == 1: f.ClearField("domain")
    elif kind == 2: del f.opset_import[:]
    elif kind == 3: f.opset_import[0].version = rng.choice((0, 1, 99, 6))
    elif kind == 4: f.opset_import.add().CopyFrom(f.opset_import[0])
    elif kind == 5: f.input.append(rng.choice((*f.input, "more", "")))
    elif kind == 6: f.output.append(rng.choice((*f.output, "more", "")))
    elif kind == 7: del f.output[:]
    elif kind == 8: del f.input[:]
    elif kind == 9: f.node[0].input[0] = "ghost"
    elif kind == 10: m.functions.add().CopyFrom(f)
    elif kind == 11: f.node.add(op_type=f.name, domain=f.domain, input=f.input, output=["rec"])
    elif kind == 12: f.node.add().CopyFrom(f.node[0])
    elif kind == 13: swap(f.node, 0, 1) if len(f.node) > 1 else None
    elif kind == 14: f.attribute.append("alpha")
    elif kind == 15: f.attribute.extend(("alpha", "alpha"))
    elif kind == 16: f.name = "Relu"; f.domain = ""
    elif kind == 17: f.node[0].name = f.node[-1].name
    elif kind == 18: f.name = "Renamed"
    else: del f.node[:]


def function_more(rng, m):
    """One that nothing calls."""
    f = m.functions.add(name="Extra", domain=rng.choice(("mine", "other", "", "com.microsoft")),
                        input=["p"], output=["q"])
    if rng.randrange(2): f.opset_import.add(domain="", version=rng.choice((13, 17, 99)))
    f.node.add(op_type=rng.choice(("Relu", "Relu", "NoSuch")), name="f",
               input=[rng.choice(("p", "p", "ghost"))], output=[rng.choice(("q", "q", "r"))])


def metadata_again(rng, m):
    for _ in range(2): m.metadata_props.add(key="note", value="x")


def bad_text(number):
    return bytes((number << 3 | 2, 2)) + b"\xff\xfe"


def not_utf8(rng, m):
    kind = rng.randrange(7)
    targets = [(m, (2, 3, 4, 6)), (m.graph, (2, 10)), (any_node(rng, m), (3, 6))]
    if m.graph.input: targets.append((rng.choice(m.graph.input), (3,)))
    message, fields = targets[kind % len(targets)]
    if message is None: return False
    message.MergeFromString(bad_text(rng.choice(fields)))


def unknown_field(rng, m):
    message = rng.choice([m, m.graph, *all_nodes(m), *m.graph.input])
    unknown(message, rng.choice((2500, 3000)), b"text")


def doubled_bytes(rng, m):
    """Singular fields a second time: bytes to append."""
    return rng.choice((b"\x08\x08", b"\x08\x00", b"\x12\x01x\x12\x01y", b"\x3a\x00",
                       b"\x28\x01\x28\x02",
                       b"\x3a\x07\x12\x05twice", b"\x08\x63"))


def epcontext_break(rng, m):
    node = any_node(rng, m, lambda n: n.op_type == "EPContext")
    if node is None: return False
    kind = rng.randrange(16)
    attrs = {a.name: a for a in node.attribute}
    if kind == 0: node.domain = rng.choice(("", "ai.onnx", "other"))
    elif kind == 1: node.name = ""
    elif kind == 2:
        for n in all_nodes(m):
            if n.op_type == "EPContext": n.name = "same"
    elif kind == 3: attrs["main_context"].type, attrs["main_context"].s = A_STRING, b"1"
    elif kind == 4: attrs["main_context"].i = rng.choice((2, -1))
    elif kind == 5: node.attribute.add(name="own", type=A_STRING, s=b"x")
    elif kind == 6: node.attribute.add(name="notes", type=A_INT, i=3)
    elif kind == 7: node.attribute.add().CopyFrom(node.attribute[0])
    elif kind == 8: del node.output[:]
    elif kind == 9: del node.input[:]
    elif kind == 10: node.output.append("second"), value(m.graph.value_info, "second")
    elif kind == 11: node.output.append("second")
    elif kind == 12: node.output.append("")
    elif kind == 13: node.input.append("")
    elif kind == 14: node.attribute[0].ref_attr_name = "outer"
    else:
        for infos in (m.graph.value_info, m.graph.output):
            for info in infos:
                if info.name in node.output:
                    info.type.tensor_type.elem_type = rng.choice((8, 14, 17, 22, 0, 23, 16))


def training(rng, m):
    info = m.training_info.add()
    info.algorithm.node.add(op_type="Relu", input=["ghost"], output=["w_new"])


def annotation(rng, m):
    m.graph.quantization_annotation.add(tensor_name="gone")


def doc(rng, m):
    m.doc_string = "words"


CHANGES = [f for f in list(globals().values())
           if callable(f) and getattr(f, "__code__", None) is not None
           and f.__code__.co_varnames[:2] == ("rng", "m") and f.__code__.co_argcount == 2
           and f.__name__ not in ("attr_of", "values")]


# -- verdicts --

# Refusals that are no fault of the file by the definition above: (code, text).
OPERATOR = re.compile("|".join((
    r"is not a registered function/op", r"No Op registered for", r"Type parameter \(",
    r"Unrecognized attribute", r"Required attribute '[^']*' is missing",
    r"has (input|output) size \d+ not in range", r"Too many inputs for op",
    r"Mismatched attribute type", r"ShapeInferenceError", r"TypeInferenceError",
    r"type inference failed", r"Could not find an implementation", r"Failed to find kernel",
    r"Type '.*' of input parameter", r"Type \(.*\) of output arg",
    r"is marked single but has an empty string", r"is expected to have field",
    r"Constant node: .* has no data attributes", r"num_subgraph_outputs",
    r"Could not find OrtValue with name ''")))


def ort_verdicts(program, ep, paths, *options):
    """path -> (code, text). A model that ends the process counts as refused, with code -1."""
    out = {}
    left = list(paths)
    while left:
        done = subprocess.run([program, ep, *options], input="\n".join(left).encode() + b"\n",
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        for line in done.stdout.decode("utf-8", "backslashreplace").split("\n"):
            parts = line.split("\t")
            if len(parts) >= 3:
                text = re.sub(r"/onnxruntime_src/\S+ .*?\) (?=\[ONNX|[^)]*$)", "",
                              "\t".join(parts[2:]))
                text = re.sub(r"^Load model from \S+ failed:", "", text)
                out[parts[0]] = (int(parts[1]), text)
        rest = [p for p in left if p not in out]
        if done.returncode == 0 and not rest:
            break
        if rest == left and done.returncode == 2:
            sys.exit("verdicts: " + done.stderr.decode())
        if rest:
            out[rest[0]] = (-1, f"the process ended with {done.returncode}")
        left = rest[1:]
    return out


# -- how ORT counts inlined nodes --

NODE_LIMIT = "session.function_expansion_node_limit"


def function(m, name, nodes):
    """From x to y; NODES are (op, domain), a chain."""
    f = m.functions.add(name=name, domain="mine", input=["x"], output=["y"])
    for domain, version in (("", 17), ("mine", 1)):
        f.opset_import.add(domain=domain, version=version)
    line(f.node, nodes)


def line(to, nodes):
    for i, (op, domain) in enumerate(nodes):
        to.add(op_type=op, domain=domain, input=[f"t{i}" if i else "x"],
               output=[f"t{i + 1}" if i + 1 < len(nodes) else "y"])


def nested(calls, inner, body):
    """CALLS calls of outer, which calls F INNER times; F has an If when BODY. With the number of
    nodes that ORT makes of it: those of a function each time, and those of bodies."""
    m = new()
    m.opset_import.add(domain="mine", version=1)
    value(m.graph.input, "x", dims=(4,)), value(m.graph.output, "y", dims=(4,))
    line(m.graph.node, [("Outer", "mine")] * calls)
    function(m, "Outer", [("Relu", "")] + [("F", "mine")] * inner)
    function(m, "F", [("Neg", "")] * 3)
    nodes = 3
    if body:
        f = m.functions[-1].node
        f.add(op_type="Greater", input=["x", "x"], output=["many"])
        f.add(op_type="ReduceMax", input=["x"], output=["most"]).attribute.add(
            name="keepdims", type=A_INT, i=0)
        f.add(op_type="Cast", input=["most"], output=["go"]).attribute.add(
            name="to", type=A_INT, i=BOOL)
        node = f.add(op_type="If", input=["go"], output=["unused"])
        for name in ("then_branch", "else_branch"):
            g = node.attribute.add(name=name, type=A_GRAPH).g
            g.name = name
            g.node.add(op_type="Relu", input=["x"], output=[name + "_out"])
            value(g.output, name + "_out", dims=(4,))
        nodes += 6
    return m, calls * (1 + inner + inner * nodes)


def inlining(epctx, program, ep, folder):
    """ORT's limit lets exactly this number through, and of 1,000,000 lint says it."""
    wrong = []
    for calls, inner, body in ((1, 1, False), (3, 2, False), (2, 5, True), (7, 1, True)):
        m, nodes = nested(calls, inner, body)
        path = os.path.join(folder, "inlining.onnx")
        with open(path, "wb") as out: out.write(m.SerializeToString())
        codes = [ort_verdicts(program, ep, [path], NODE_LIMIT, str(n))[path]
                 for n in (nodes, nodes - 1)]
        if codes[0][0] != 0 or "node expansion limit" not in codes[1][1]:
            wrong.append(f"{nodes} nodes: ONNX Runtime says {codes}")
        more = 1000000 // nodes + 1
        m, nodes = nested(calls * more, inner, body)
        with open(path, "wb") as out: out.write(m.SerializeToString())
        about, message = lint(epctx, path)
        if about != ["E071"] or f"at least {nodes} nodes" not in message:
            wrong.append(f"{nodes} nodes: lint says {about} {message}")
        os.unlink(path)
    for text in wrong: print("FAIL inlining: " + text)
    if not wrong: print("ok lint counts inlined nodes as ONNX Runtime does")
    return not wrong


def lint(epctx, path, known=frozenset()):
    done = subprocess.run([epctx, "lint", "--json", path], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False)
    try:
        report = json.loads(done.stdout)
    except ValueError:
        return ["no model"], done.stderr.decode("utf-8", "backslashreplace")
    found = [f for f in report["findings"] if f["severity"] == "error"]
    found = [f for f in found if not known & {f["id"], f["id"] + "/" + f["attribute"],
                                              f["id"] + ("/body" if f["graph"] else "")}]
    return sorted({f["id"] for f in found}), "; ".join(f["message"] for f in found[:3])


def build(folder, count, seed, bases):
    """COUNT changed models, name -> what was done."""
    made = {}
    os.makedirs(os.path.join(folder, "sub"), exist_ok=True)
    for name, size in (("weights.bin", 64), ("sub/w2.bin", 64), ("empty.bin", 0),
                       ("../weights.bin", 64)):
        with open(os.path.join(folder, name), "wb") as out:
            out.write(b"\0\0\x80\x3f" * (size // 4))
    for name, target in (("link.bin", "weights.bin"), ("out.bin", "../weights.bin")):
        link = os.path.join(folder, name)
        if not os.path.islink(link): os.symlink(target, link)
    for i in range(count):
        rng = random.Random(f"{seed} {i}")
        base, data = bases[i % len(bases)] if i < 2 * len(bases) else rng.choice(bases)
        m = ModelProto.FromString(data)
        done, extra = [], b""
        wanted = 1 if rng.randrange(4) else 2
        while len(done) < wanted:
            change = rng.choice(CHANGES)
            try:
                result = change(rng, m)
            except (IndexError, KeyError, ValueError):
                result = False
            if result is False: continue
            if isinstance(result, bytes): extra += result
            done.append(change.__name__)
        data = m.SerializePartialToString() + extra
        full = os.path.abspath(folder).encode()
        for old, new_text in ((b"FOLDER", os.path.basename(full)), (b"/FULL", full)):
            if old in data:  # lengths change, so by way of the message
                m = ModelProto.FromString(data)
                for g, _ in graphs(m.graph):
                    for t in g.initializer:
                        for e in t.external_data:
                            e.value = e.value.replace(old.decode(), new_text.decode())
                data = m.SerializePartialToString()
        path = os.path.join(folder, f"m{i}.onnx")
        with open(path, "wb") as out:
            out.write(data)
        made[path] = f"{base}: {' + '.join(done)}"
    return made


def known_rules():
    """Ids of rules that ONNX Runtime does not check, some for an attribute or in bodies only."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lint_known.txt")
    with open(path, encoding="utf-8") as source:
        return {line.split()[0] for line in source if line.strip() and line[0] != "#"}


def main():
    if len(sys.argv) < 7:
        sys.exit(__doc__)
    epctx, program, ep, folder, count, seed, *models = sys.argv[1:]
    bases = [(f.__name__ if f.__name__ != "<lambda>" else "make", f().SerializeToString())
             for f in MADE]
    for path in models:
        with open(path, "rb") as source:
            bases.append((os.path.basename(path), source.read()))
    os.makedirs(folder, exist_ok=True)
    made = {os.path.join(folder, name): "a fixture of test_state.c"
            for name in sorted(os.listdir(folder)) if name.endswith(".onnx")}
    made.update(build(folder, int(count), seed, bases))
    verdicts = ort_verdicts(program, os.path.abspath(ep), list(made))
    known = known_rules()
    table = collections.Counter()
    wrong = 0
    for path, what in made.items():
        code, text = verdicts[path]
        about, message = lint(epctx, path, known)
        kind = "loads" if code == 0 else "operator" if OPERATOR.search(text) else "refuses"
        table[kind, bool(about)] += 1
        if kind != "operator" and (kind == "refuses") != bool(about):
            wrong += 1
            print(f"FAIL {os.path.basename(path)} ({what}): ONNX Runtime {kind} it, lint finds "
                  f"{', '.join(about) or 'no error'}: {text[:300] or message[:300]}")
    print(f"note lint and ONNX Runtime {ORT}: both refuse {table['refuses', True]} models and both "
          f"take {table['loads', False]}; {table['operator', True] + table['operator', False]} "
          "misuse an operator")
    if not wrong:
        print("ok lint has an error exactly where ONNX Runtime refuses the file")
    right = inlining(epctx, program, os.path.abspath(ep), folder)
    sys.exit(1 if wrong or not right else 0)


if __name__ == "__main__":
    main()
