#!/usr/bin/python3
"""Judges EPContext models that were generated, as libprotobuf reads them.

    tests/judge/generated.py nodes SOURCE CONTEXT...     see check_nodes
    tests/judge/generated.py binary CONTEXT NAME         see check_binary
    tests/judge/generated.py embedded CONTEXT            see check_embedded
    tests/judge/generated.py group NAME CONTEXT...       see check_group

Exits with 1 and one line that says what is wrong.
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from onnx_schema import ModelProto  # noqa: E402


class Wrong(Exception):
    pass


def check(good, text):
    if not good:
        raise Wrong(text)


def read(path):
    model = ModelProto()
    with open(path, "rb") as file:
        model.ParseFromString(file.read())
    return model


def contexts_of(model):
    return [n for n in model.graph.node if (n.domain, n.op_type) == ("com.microsoft", "EPContext")]


def attributes(node):
    found = {}
    for attr in node.attribute:
        check(attr.name not in found, f"{node.name} has two attributes {attr.name}")
        found[attr.name] = attr.i if attr.type == 2 else attr.s
    return found


def check_nodes(source_path, context_path):
    """The nodes that are left are the source's, byte for byte and in order; the EPContext nodes
    stand for all others: what those read and made for the rest of the model, these do; and each
    value is made before it is read, once."""
    source, context = read(source_path), read(context_path)
    left = [n for n in context.graph.node if n not in contexts_of(context)]
    before = [n.SerializeToString() for n in source.graph.node]
    kept = [n.SerializeToString() for n in left]
    at = -1
    for i, node in enumerate(kept):
        check(node in before[at + 1:],
              f"{left[i].name} is no node of the source, or in another order")
        at = before.index(node, at + 1)
    gone = [n for n in source.graph.node if n.SerializeToString() not in kept]
    check(gone, "nothing was compiled")
    check(contexts_of(context), "no EPContext node stands for the compiled nodes")
    for kind in ("input", "output"):
        check([v.SerializeToString() for v in getattr(source.graph, kind)] ==
              [v.SerializeToString() for v in getattr(context.graph, kind)],
              f"the graph's {kind}s differ")
    constants = {t.name for t in source.graph.initializer}
    made_by_gone = {o for n in gone for o in n.output if o}
    read_by_rest = {i for n in left for i in n.input} | {v.name for v in source.graph.output}
    given = {o for n in contexts_of(context) for o in n.output}
    taken = {i for n in contexts_of(context) for i in n.input}
    check(made_by_gone & read_by_rest <= given,
          f"nobody makes {sorted(made_by_gone & read_by_rest - given)}")
    check(given <= made_by_gone, f"EPContext nodes make {sorted(given - made_by_gone)}")
    check(given <= read_by_rest | taken, f"nobody reads {sorted(given - read_by_rest - taken)}")
    wanted = {i for n in gone for i in n.input if i}
    outside = {v.name for v in source.graph.input} - constants | {o for n in left for o in n.output}
    check(wanted & outside == taken - given,
          f"EPContext nodes read {sorted(taken - given)}, "
          f"the compiled ones {sorted(wanted & outside)}")
    known = {v.name for v in context.graph.input} | {t.name for t in context.graph.initializer}
    for node in context.graph.node:
        check({i for i in node.input if i} <= known, f"{node.name} reads what is not made yet")
        check(not known & set(node.output), f"{node.name} makes a value that is there")
        known |= set(node.output)
    check({v.name for v in context.graph.output} <= known, "an output of the graph is not made")
    # What only compiled nodes read is left out.
    still = {i for n in left for i in n.input}
    check({t.name for t in context.graph.initializer} <= still,
          "weights of compiled nodes are left")


def check_binary(context_path, name):
    """One primary node, which names the binary: a file name that is there beside the model, without
    a folder. The others name none."""
    nodes = [attributes(n) for n in contexts_of(read(context_path))]
    check(nodes, "there is no EPContext node")
    check([a.get("main_context") for a in nodes] == [1] + [0] * (len(nodes) - 1),
          f"main_context is {[a.get('main_context') for a in nodes]}")
    check(all(a.get("embed_mode") == 0 for a in nodes), "embed_mode is not 0")
    check(nodes[0].get("ep_cache_context") == name.encode(),
          f"ep_cache_context is {nodes[0].get('ep_cache_context')}, expected {name}")
    check(not any(a.get("ep_cache_context") for a in nodes[1:]), "a secondary node names a file")
    check(os.path.isfile(os.path.join(os.path.dirname(context_path), name)), f"there is no {name}")


def check_embedded(context_path):
    """The content is in the one primary node, and no file is beside the model."""
    nodes = [attributes(n) for n in contexts_of(read(context_path))]
    check(nodes and all(a.get("embed_mode") == 1 for a in nodes), "embed_mode is not 1")
    check(len(nodes[0]["ep_cache_context"]) > 60, "there is no content in the first node")
    beside = [f for f in os.listdir(os.path.dirname(context_path)) if f.endswith(".bin")]
    check(not beside, f"there is {beside}")


def check_group(name, *context_paths):
    """Each model of a group has a primary node, and all of these name the one binary. Names of
    nodes and graphs are each one's own."""
    keys = []
    for path in context_paths:
        check_binary(path, name)
        keys += [attributes(n)["partition_name"] for n in contexts_of(read(path))]
    folder = os.path.dirname(context_paths[0])
    binaries = [f for f in os.listdir(folder) if f.endswith(".bin")]
    check(binaries == [name], f"binaries: {binaries}")
    check(len(set(keys)) == len(keys), f"two nodes name one graph: {sorted(keys)}")


def main():
    try:
        {"nodes": check_nodes, "binary": check_binary, "embedded": check_embedded,
         "group": check_group}[sys.argv[1]](*sys.argv[2:])
    except Wrong as wrong:
        print(wrong)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
