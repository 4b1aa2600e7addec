"""Judges by value what epctx prints with --json: against libprotobuf's view of the model that it
is about, the files on disk, and itself. judge/schema.py judges the form.
"""

import base64
import collections
import os

import lint
from cli import equal

ATTRIBUTES = ("source", "ep_sdk_version", "hardware_architecture", "partition_name",
              "onnx_model_filename", "notes")


LONGEST = 1000  # of a name that `epctx scan` keeps


def text(value):
    """A string of the model: bytes that are no UTF-8 become U+FFFD."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def texts(values):
    return [text(one) for one in values]


def read(path):
    with open(path, "rb") as file:
        return file.read()


def model_of(path):
    """What libprotobuf reads; None: it is no model."""
    try:
        model = lint.load(path)
    except Exception:  # pylint: disable=broad-except # what is wrong with it is not asked here
        return None
    return model if model.HasField("graph") else None


def bodies(node):
    for attr in node.attribute:
        if attr.HasField("g"):
            yield attr.g
        yield from attr.graphs


def all_nodes(nodes):
    for node in nodes:
        yield node
        for body in bodies(node):
            yield from all_nodes(body.node)


def is_epnode(node):
    return node.op_type == "EPContext" and node.domain == "com.microsoft"


def values_of(values):
    """Names and types of inputs or outputs, as `info` tells them."""
    for value in values:
        tensor = value.type.tensor_type if value.type.HasField("tensor_type") else None
        dims = None
        if tensor is not None and tensor.HasField("shape"):
            dims = [one.dim_value if one.HasField("dim_value") else text(one.dim_param) or None
                    for one in tensor.shape.dim]
        yield {"name": text(value.name), "elem_type": tensor.elem_type if tensor else 0,
               "dims": dims}


def strings_of(node):
    return {text(attr.name): attr.s for attr in node.attribute if attr.type == 3}


def parts(answer, model):
    """The EPContext nodes of info, in the order of the walk."""
    nodes = [node for node in all_nodes(model.graph.node) if is_epnode(node)]
    equal([one["name"] for one in answer["partitions"]], texts(node.name for node in nodes))
    for told, node in zip(answer["partitions"], nodes):
        equal((told["input_names"], told["output_names"]), (texts(node.input), texts(node.output)))
        equal((told["inputs"], told["outputs"]), (len(node.input), len(node.output)))
        if not told["readable"]:
            continue
        strings = strings_of(node)
        for key in ATTRIBUTES:
            equal(told[key], text(strings[key]) if key in strings else None)
        if told["embed_mode"] == 1:
            equal(told["payload_size"], len(strings.get("ep_cache_context", b"")))


def info(answer):
    if "file" not in answer and "binary" not in answer:
        for one in answer["files"]:
            info(one)
        return
    if "binary" in answer:
        equal(answer["bytes"], os.path.getsize(answer["binary"]))
        return
    model = model_of(answer["file"])
    if model is None or model.functions:
        return
    for key in "ir_version", "producer_name", "producer_version":
        equal(answer[key], text(getattr(model, key)))
    equal(answer["opsets"], [{"domain": text(one.domain), "version": one.version}
                             for one in model.opset_import])
    equal((answer["graph"], answer["initializers"]),
          (text(model.graph.name), len(model.graph.initializer)))
    equal(answer["inputs"], list(values_of(model.graph.input)))
    equal(answer["outputs"], list(values_of(model.graph.output)))
    equal(answer["metadata"], {text(one.key): text(one.value) for one in model.metadata_props})
    ops = collections.Counter(
        text(node.op_type) if node.domain in ("", "ai.onnx")
        else f"{text(node.domain)}:{text(node.op_type)}"
        for node in model.graph.node if not is_epnode(node))
    equal(answer["cpu_ops"], dict(ops))
    equal(answer["cpu_nodes"], sum(ops.values()))
    equal(answer["ep_context"], bool(answer["partitions"]))
    parts(answer, model)
    for file in answer["files"]:
        equal(file["path"] is None, file["size"] is None)
        if file["path"] is not None:
            equal(file["size"], os.path.getsize(file["path"]))


def ls(answer):
    for file in answer["files"]:
        equal(file["path"] is None, file["problem"] is not None)
        if file["path"] is not None:
            equal(file["size"], os.path.getsize(file["path"]))


def scan(answer, path):
    """What stands at the offsets."""
    if "node_count" not in answer:
        return
    model, data = model_of(path), read(path)
    equal(answer["size"], len(data))
    equal(answer["ep_node_count"], len(answer["nodes"]))
    if model is None or model.functions:
        return
    nodes = list(all_nodes(model.graph.node))
    equal(answer["node_count"], len(nodes))
    # Bodies end before the node around them does.
    names = sorted(text(node.name) for node in nodes if is_epnode(node))
    if any(len(name) > LONGEST for name in names):
        return
    equal(sorted(one["name"] for one in answer["nodes"]), names)
    for told in answer["nodes"]:
        same = [strings_of(node) for node in nodes
                if is_epnode(node) and text(node.name) == told["name"]]
        for key, value in told.items():
            if isinstance(value, dict):
                stored = data[value["offset"]:value["offset"] + value["length"]]
                assert stored in [strings.get(key) for strings in same], (key, value)
    for told in answer["metadata"] or ():
        stored = data[told["offset"]:told["offset"] + told["length"]]
        assert told["value"] in (None, text(stored)), told
    if answer["metadata"] is not None:
        equal(len(answer["metadata"]), len(model.metadata_props))


def lint_file(answer):
    for key, severity in ("errors", "error"), ("warnings", "warning"):
        equal(answer[key], sum(one["severity"] == severity for one in answer["findings"]))
    assert answer["hints"] >= sum(one["severity"] == "hint" for one in answer["findings"])


def lint_all(answer):
    if "rules" in answer:
        ids = [one["id"] for one in answer["rules"]]
        equal(len(ids), len(set(ids)))
        for one in answer["rules"]:
            equal(one["severity"], {"E": "error", "W": "warning", "I": "hint"}[one["id"][0]])
    elif "files" in answer:
        for one in answer["files"]:
            lint_file(one)
        for key in "errors", "warnings", "hints":
            equal(answer[key], sum(one[key] for one in answer["files"]))
    else:
        lint_file(answer)


def get(answer):
    value = answer["value"]
    data = value.encode() if answer["encoding"] == "utf-8" else base64.b64decode(value)
    equal(len(data), answer["size"])


def dump(answer, path):
    model = model_of(path)
    if model is None or model.functions:
        return
    records = answer["records"]
    equal(records[0]["record"], "model")
    equal([one["name"] for one in records if one["record"] == "node"][:len(model.graph.node)],
          texts(node.name for node in model.graph.node))
    equal(sum(one["record"] == "node" for one in records), len(list(all_nodes(model.graph.node))))
    stored = {text(node.name): node for node in model.graph.node}
    for one in records:
        if one["record"] == "node" and one["name"] in stored and one["name"]:
            equal(one["inputs"], texts(stored[one["name"]].input))


def weights(answer):
    equal(answer["weights"], sum(one["weights"] for one in answer["models"]))
    equal(answer["bytes"], sum(one["bytes"] for one in answer["models"]))
    equal(answer["bytes"] - answer["stored_bytes"], answer["saved_bytes"])


def compiled(answer):
    if answer.get("binary") is not None:
        equal(answer["binary_size"], os.path.getsize(answer["binary"]))


def package(answer):
    equal(answer["size"], sum(one["size"] for one in answer["files"]))


def check(answer):
    if "files" in answer:
        for one in answer["files"]:
            check(one)
        return
    words = ("EP_NOT_APPLICABLE", "EP_SUPPORTED_OPTIMAL", "EP_SUPPORTED_PREFER_RECOMPILATION",
             "EP_UNSUPPORTED")
    if "compatibility" in answer:
        equal(answer["meaning"], words[answer["compatibility"]])
    if "stamps" in answer:
        fresh = [one["fresh"] for one in answer["stamps"]]
        equal(answer["fresh"], bool(fresh) and set(fresh) == {"fresh"})
    model = model_of(answer["file"])
    if model is not None:
        pairs = {text(one.key): text(one.value) for one in model.metadata_props}
        for one in answer.get("entries", ()):
            equal(pairs["ep_compatibility_info." + one["ep"]], one["value"])


BY_ANSWER = {"info": info, "ls": ls, "lint": lint_all, "get": get, "weights": weights,
             "compile": compiled, "package": package, "check": check}
BY_FILE = {"scan": scan, "dump": dump}


def judge(answer, arguments):
    """Raises an AssertionError; `arguments` are those of the command."""
    if "exit_code" in answer:
        return
    if answer["command"] in BY_ANSWER:
        BY_ANSWER[answer["command"]](answer)
    elif answer["command"] in BY_FILE and os.path.isfile(arguments[-1]):
        BY_FILE[answer["command"]](answer, arguments[-1])
