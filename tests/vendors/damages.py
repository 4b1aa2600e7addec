"""Damage of a context model and its binary: each kind changes files of a folder of its own. Whether
the EP still computes what it did is asked, not assumed."""
import gzip
import io
import os
import zipfile

import onnx
from onnx import TensorProto


class Damage:
    """apply(context, other): changes files; False where there is nothing to change. `policy`: why
    lint's word is ours and not the EP's."""

    def __init__(self, name, apply, policy=None):
        self.name, self.apply, self.policy = name, apply, policy


ALL = []


def add(name, apply, policy=None):
    ALL.append(Damage(name, apply, policy))


# -- the binary --

def node_of(model):
    for node in model.graph.node:
        if node.op_type == "EPContext":
            return node
    return None


def attribute(node, name):
    for one in node.attribute:
        if one.name == name:
            return one
    return None


def binary_of(context):
    name = attribute(node_of(onnx.load(context, load_external_data=False)), "ep_cache_context")
    return os.path.join(os.path.dirname(context), name.s.decode())


def on_binary(change):
    def apply(context, other):
        path = binary_of(context)
        with open(path, "rb") as file:
            data = file.read()
        changed = change(data)
        if changed is None or changed == data:
            return False
        with open(path, "wb") as file:
            file.write(changed)
        return True
    return apply


def flipped(data, at):
    return data[:at] + bytes([data[at] ^ 0xff]) + data[at + 1:]


def zipped(data):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        file.writestr("context.bin", data)
    return out.getvalue()


LFS = (b"version https://git-lfs.github.com/spec/v1\n"
       b"oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n")
HTML = b"<!DOCTYPE html>\n<html><head><title>404 Not Found</title></head></html>\n"
XML = b"<?xml version='1.0'?><Error><Code>AccessDenied</Code></Error>\n"

for kind, change in {
        "cut to nothing": lambda d: b"",
        "cut to 16 bytes": lambda d: d[:16],
        "cut to a quarter": lambda d: d[:len(d) // 4],
        "cut to a half": lambda d: d[:len(d) // 2],
        "a byte less": lambda d: d[:-1],
        "4096 bytes less": lambda d: d[:-4096] if len(d) > 8192 else None,
        "without its first 4096 bytes": lambda d: d[4096:] if len(d) > 8192 else None,
        "zeros": lambda d: bytes(len(d)),
        "a tail of zeros": lambda d: d[:len(d) // 2] + bytes(len(d) - len(d) // 2),
        "first byte altered": lambda d: flipped(d, 0),
        "byte 100 altered": lambda d: flipped(d, 100),
        "middle altered": lambda d: flipped(d, len(d) // 2),
        "64 bytes more": lambda d: d + bytes(64),
        "twice": lambda d: d + d,
        "LFS pointer": lambda d: LFS,
        "HTML": lambda d: HTML,
        "XML": lambda d: XML,
        "JSON": lambda d: b'{"error": "not found"}\n',
        "gzip": lambda d: gzip.compress(d, mtime=0),
        "zip": zipped,
        "CRLF": lambda d: d.replace(b"\n", b"\r\n"),
        "UTF-8": lambda d: d.decode("latin-1").encode("utf-8"),
        "text": lambda d: b"context\n"}.items():
    add("binary " + kind, on_binary(change))


def of_other(context, other):
    if other == context:
        return False
    os.remove(binary_of(context))
    with open(binary_of(other), "rb") as source, open(binary_of(context), "wb") as out:
        out.write(source.read())
    return True


def is_source(context, other):
    with open(context, "rb") as source, open(binary_of(context), "wb") as out:
        out.write(source.read())
    return True


def gone(context, other):
    os.remove(binary_of(context))
    return True


def folder(context, other):
    os.remove(binary_of(context))
    os.mkdir(binary_of(context))
    return True


def linked(context, other):
    path = binary_of(context)
    os.rename(path, path + ".real")
    os.symlink(os.path.basename(path) + ".real", path)
    return True


def linked_out(context, other):
    path = binary_of(context)
    out = os.path.join(os.path.dirname(os.path.dirname(context)), "out_" + os.path.basename(path))
    os.replace(path, out)
    os.symlink(out, path)
    return True


add("binary of another model", of_other)
add("binary is the model", is_source)
add("binary gone", gone)
add("binary a folder", folder)
add("binary linked", linked)
add("binary linked outside", linked_out, "links out of the model's folder are refused")


# -- the model --

def on_model(change):
    def apply(context, other):
        model = onnx.load(context, load_external_data=False)
        before = model.SerializeToString(deterministic=True)
        change(model, node_of(model))
        after = model.SerializeToString(deterministic=True)
        if before == after:
            return False
        with open(context, "wb") as file:
            file.write(after)
        return True
    return apply


def put(name, value):
    """An attribute with this value; None: without it."""
    def change(model, node):
        kept = [a for a in node.attribute if a.name != name]
        del node.attribute[:]
        node.attribute.extend(kept)
        if value is not None:
            node.attribute.append(onnx.helper.make_attribute(name, value))
    return change


def put_name(rename):
    def change(model, node):
        one = attribute(node, "ep_cache_context")
        one.s = rename(one.s.decode()).encode()
    return change


for kind, rename in {
        "wrong": lambda n: "no_" + n,
        "absolute": lambda n: "/" + n,
        "above": lambda n: "../" + n,
        "of the folder": lambda n: "./" + n,
        "with a backslash": lambda n: ".\\" + n,
        "empty": lambda n: "",
        "in capitals": lambda n: n.upper(),
        "with a blank behind": lambda n: n + " ",
        "with two dots": lambda n: "a..b.bin"}.items():
    add("name of the binary " + kind, on_model(put_name(rename)))

for key, values in {
        "main_context": [0, 2, None, "1"],
        "embed_mode": [1, 2, None, "0"],
        "ep_cache_context": [None, 1],
        "source": [None, "", "QNN", "qnnexecutionprovider", "OpenVINOExecutionProvider",
                   "NvTensorRTRTXExecutionProvider", "EpctxNpuExecutionProvider", "epctx"],
        "partition_name": [None, "", "another"],
        "ep_sdk_version": [None, "", "v1.0"],
        "max_size": [-1, 1 << 40],
        "hardware_architecture": ["v66"],
        "is_multi_soc_ep_context": [1],
        "onnx_model_filename": ["gone.onnx"],
        "notes": [b"\xff\xfe"],
        "an_unknown_one": ["x"]}.items():
    for value in values:
        add(f"attribute {key} {'absent' if value is None else repr(value)}",
            on_model(put(key, value)))


def io_of(change):
    return on_model(lambda model, node: change(model.graph, node))


def on_value(which, change):
    """change(graph, value): of the first input (output) of the model that an EPContext node reads
    (writes). What the others must be is between ONNX Runtime and its own nodes."""
    def apply(graph, node):
        names = {name for one in graph.node if one.op_type == "EPContext"
                 for name in getattr(one, which)}
        for value in getattr(graph, which):
            if value.name in names:
                change(graph, value)
                return
    return apply


def elem(which, kind):
    def change(graph, value):
        value.type.tensor_type.elem_type = kind
    return on_value(which, change)


def dim(which, at, more):
    def change(graph, value):
        dims = value.type.tensor_type.shape.dim
        if len(dims) > 0:
            dims[at].dim_value = dims[at].dim_value + more
    return on_value(which, change)


def free_dim(which):
    def change(graph, value):
        dims = value.type.tensor_type.shape.dim
        if len(dims) > 0:
            dims[0].dim_param = "batch"
    return on_value(which, change)


def no_shape(which):
    def change(graph, value):
        value.type.tensor_type.ClearField("shape")
    return on_value(which, change)


def more_dims(which):
    def change(graph, value):
        value.type.tensor_type.shape.dim.add().dim_value = 1
    return on_value(which, change)


def renamed(which):
    """The value everywhere: a good model, where the EP does not go by names."""
    def change(graph, value):
        old, value.name = value.name, "renamed"
        for one in graph.node:
            for names in (one.input, one.output):
                for i, name in enumerate(names):
                    if name == old:
                        names[i] = "renamed"
    return on_value(which, change)


for which in ("input", "output"):
    add(f"{which} of float16", io_of(elem(which, TensorProto.FLOAT16)))
    add(f"{which} of int64", io_of(elem(which, TensorProto.INT64)))
    add(f"{which} with a larger last dimension", io_of(dim(which, -1, 1)))
    add(f"{which} with a smaller last dimension", io_of(dim(which, -1, -1)))
    add(f"{which} with a larger first dimension", io_of(dim(which, 0, 1)))
    add(f"{which} with a free dimension", io_of(free_dim(which)))
    add(f"{which} without shape", io_of(no_shape(which)))
    add(f"{which} with one dimension more", io_of(more_dims(which)))
    add(f"{which} renamed", io_of(renamed(which)))


def second_input(graph, node):
    node.input.append(node.input[0])


def no_input(graph, node):
    del node.input[:]


def second_output(graph, node):
    node.output.append("more")


def unknown_input(graph, node):
    node.input[0] = "nobody's"


def optional_input(graph, node):
    node.input[0] = ""


def other_node_name(graph, node):
    node.name = "another"


def no_node_name(graph, node):
    node.name = ""


def other_domain(graph, node):
    node.domain = "com.example"


def default_domain(graph, node):
    node.domain = ""


def other_op(graph, node):
    node.op_type = "EpContext"


def twice(graph, node):
    graph.node.append(node)


add("node with an input twice", io_of(second_input))
add("node without inputs", io_of(no_input))
add("node with an output more", io_of(second_output))
add("node with an input of nobody", io_of(unknown_input))
add("node without its first input", io_of(optional_input))
add("node renamed", io_of(other_node_name))
add("node without a name", io_of(no_node_name))
add("node of another domain", io_of(other_domain))
add("node of the default domain", io_of(default_domain))
add("node of another operator", io_of(other_op))
add("node twice", io_of(twice))


def no_imports(model, node):
    kept = [o for o in model.opset_import if o.domain != "com.microsoft"]
    del model.opset_import[:]
    model.opset_import.extend(kept)


def new_import(model, node):
    for one in model.opset_import:
        if one.domain == "com.microsoft":
            one.version = 99


def no_default_import(model, node):
    kept = [o for o in model.opset_import if o.domain not in ("", "ai.onnx")]
    del model.opset_import[:]
    model.opset_import.extend(kept)


def ir_version(version):
    def change(model, node):
        model.ir_version = version
    return change


def metadata(value):
    def change(model, node):
        for one in model.metadata_props:
            if one.key.startswith("ep_compatibility_info."):
                one.value = value
    return change


add("import of com.microsoft absent", on_model(no_imports))
add("import of com.microsoft 99", on_model(new_import))
add("import of ai.onnx absent", on_model(no_default_import))
add("IR version 2", on_model(ir_version(2)))
add("IR version 99", on_model(ir_version(99)))
add("compatibility empty", on_model(metadata("")))
add("compatibility of nobody", on_model(metadata("garbage")))


def model_cut(context, other):
    with open(context, "rb") as file:
        data = file.read()
    with open(context, "wb") as file:
        file.write(data[:len(data) * 3 // 4])
    return True


def model_lfs(context, other):
    with open(context, "wb") as file:
        file.write(LFS)
    return True


add("model cut", model_cut)
add("model LFS pointer", model_lfs)


# -- what several nodes have inside --

PAYLOADS = []


def on_payloads(name, change):
    """change(payloads): the list of all nodes', None where there is no attribute."""
    def apply(context, other):
        model = onnx.load(context, load_external_data=False)
        nodes = [node for node in model.graph.node if node.op_type == "EPContext"]
        kept = [(attribute(node, "ep_cache_context"), attribute(node, "main_context"))
                for node in nodes]
        before = [payload.s if payload is not None else None for payload, _ in kept]
        after = change(list(before))
        if len(nodes) < 2 or after == before:
            return False
        for node, payload in zip(nodes, after):
            put("ep_cache_context", payload)(model, node)
            if before.count(None) + before.count(b"") > 0:
                put("main_context", int(bool(payload)))(model, node)
        with open(context, "wb") as file:
            file.write(model.SerializeToString(deterministic=True))
        return True
    PAYLOADS.append(Damage("payload " + name, apply))


on_payloads("in the other order", lambda payloads: payloads[::-1])
on_payloads("in the last alone", lambda payloads: [b""] * (len(payloads) - 1) + [payloads[0]])
on_payloads("in no node", lambda payloads: [b"" for _ in payloads])
on_payloads("of the first in all", lambda payloads: [payloads[0] for _ in payloads])
on_payloads("cut", lambda payloads: [p[:len(p) // 2] if p else p for p in payloads])
