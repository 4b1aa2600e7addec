#!/usr/bin/python3
"""Lint of whole deliveries: folders of ORT GenAI and model packages.

    tests/judge/delivery.py EPCTX FOLDER

Each case changes a folder that has no finding; lint must report the rules that this breaks, and no
others. Every rule for deliveries needs a case. Prints the lines that tests/run reads.
"""
import copy
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import lint  # noqa: E402
from make_model import value  # noqa: E402
from onnx_schema import ModelProto  # noqa: E402

EPCTX, FOLDER = os.path.abspath(sys.argv[1]), sys.argv[2]
FLOAT, UINT8, INT64, HALF = 1, 2, 7, 10
WINDOW, HIDDEN, HEADS, SIZE, CACHE = 64, 8, 2, 4, 16
HOSTILE = "a\x1b[31m<b>\u202e'\n::error::"
seen = {}


def new_model(name):
    model = ModelProto(ir_version=8, producer_name="epctx tests")
    model.opset_import.add(domain="", version=13)
    model.graph.name = name
    return model


def ordinary(name, op_type, inputs, outputs):
    """A model of one node; inputs and outputs are (name, type, dims)."""
    model = new_model(name)
    for one in inputs:
        value(model.graph.input, *one)
    for one in outputs:
        value(model.graph.output, *one)
    model.graph.node.add(op_type=op_type, name=name + "_node", input=[one[0] for one in inputs],
                         output=[one[0] for one in outputs])
    return model


def compiled(name, inputs, outputs, binary, source="QNNExecutionProvider"):
    """A model of one EPContext node."""
    model = new_model(name)
    model.opset_import.add(domain="com.microsoft", version=1)
    for one in inputs:
        value(model.graph.input, *one)
    for one in outputs:
        value(model.graph.output, *one)
    node = model.graph.node.add(op_type="EPContext", domain="com.microsoft", name=name + "_graph",
                                input=[one[0] for one in inputs],
                                output=[one[0] for one in outputs])
    for key, text in (("main_context", 1), ("embed_mode", 0), ("source", source),
                      ("ep_sdk_version", "2.40"), ("ep_cache_context", binary)):
        lint.put(node, key, text)
    return model


def caches(kind, length):
    return [("%s_%s_%d" % (kind, what, layer), UINT8, (1, HEADS, length, SIZE))
            for layer in range(2) for what in ("keys", "values")]


def transformer(name, length):
    inputs = [("embeds", FLOAT, (1, length, HIDDEN)), ("past_seq_len", INT64, (1, 1))]
    return compiled(name, inputs + caches("past", CACHE),
                    [("hidden", FLOAT, (1, length, HIDDEN))] + caches("present", length),
                    "shared_qnn.bin")


class Folder:
    """What is written: files by name, models and JSON as such."""

    def __init__(self):
        self.files = {}
        self.links = {}
        self.holes = {}  # files of this size, without bytes

    def model(self, name):
        return self.files[name]

    def node(self, name, at=0):
        return [n for n in self.files[name].graph.node if n.op_type == "EPContext"][at]

    def write(self, folder):
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        for name, data in self.files.items():
            path = os.path.join(folder, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            if isinstance(data, ModelProto):
                data = data.SerializeToString()
            elif isinstance(data, dict):
                data = json.dumps(data, ensure_ascii=False).encode()
            if data is not None:
                with open(path, "wb") as out:
                    out.write(data)
        for name, size in self.holes.items():
            os.truncate(os.path.join(folder, name), size)
        for name, target in self.links.items():
            os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
            os.symlink(target, os.path.join(folder, name))


def genai():
    """What Olive writes for QNN: embeddings and lm_head on the CPU, two stages over one binary."""
    folder = Folder()
    names = [one[0] for one in caches("past", CACHE)]
    present = [one[0] for one in caches("present", CACHE)]
    qnn = {"provider_options": [{"QNN": {"backend_type": "htp", "soc_model": "60"}}]}

    def stage(filename, inputs, outputs, **more):
        return dict({"filename": filename, "inputs": inputs, "outputs": outputs}, **more)

    steps = {"inputs": ["embeds", "past_seq_len"] + names, "outputs": ["hidden"] + present,
             "session_options": qnn}
    folder.files = {
        "genai_config.json": {
            "model": {
                "type": "decoder-pipeline", "context_length": 4096, "vocab_size": 100,
                "eos_token_id": [1, 2], "bos_token_id": 1, "pad_token_id": 0,
                "decoder": {
                    "session_options": {"log_id": "x", "provider_options": []},
                    "head_size": SIZE, "hidden_size": HIDDEN, "num_attention_heads": 2,
                    "num_key_value_heads": HEADS, "num_hidden_layers": 2,
                    "inputs": {"input_ids": "input_ids", "past_key_names": "past_keys_%d",
                               "past_value_names": "past_values_%d"},
                    "outputs": {"logits": "logits", "present_key_names": "present_keys_%d",
                                "present_value_names": "present_values_%d"},
                    "sliding_window": {"window_size": WINDOW, "pad_value": 0, "alignment": "left",
                                       "slide_key_value_cache": False},
                    "pipeline": [{
                        "embeddings": stage("embeddings.onnx", ["input_ids"], ["embeds"]),
                        "context": dict(copy.deepcopy(steps), filename="context_ctx.onnx",
                                        run_on_token_gen=False,
                                        output_names_forwarder={"hidden": "last"}),
                        "iterator": dict(copy.deepcopy(steps), filename="iterator_ctx.onnx",
                                         run_on_prompt=False,
                                         output_names_forwarder={"hidden": "last"}),
                        "lm_head": stage("lm_head.onnx", ["last"], ["logits"], is_lm_head=True),
                    }],
                },
            },
            "search": {"max_length": 4096, "do_sample": False, "top_k": 1},
        },
        "embeddings.onnx": ordinary("embeddings", "Strange", [("input_ids", INT64, (1, "s"))],
                                    [("embeds", FLOAT, (1, "s", HIDDEN))]),
        "context_ctx.onnx": transformer("context", WINDOW),
        "iterator_ctx.onnx": transformer("iterator", 1),
        "lm_head.onnx": ordinary("lm_head", "Strange", [("last", FLOAT, (1, "s", HIDDEN))],
                                 [("logits", FLOAT, (1, "s", 100))]),
        "shared_qnn.bin": b"a context binary",
        "tokenizer.json": b"{}",
        "tokenizer_config.json": b"{}",
    }
    return folder


def openvino():
    """OpenVINO's wrapper around an IR, which keeps the cache itself."""
    folder = Folder()
    lengths = json.dumps({"NPU": {"MAX_PROMPT_LEN": 4096, "MIN_RESPONSE_LEN": 128}})
    model = compiled("ov", [("input_ids", INT64, (1, "s"))], [("logits", FLOAT, (1, "s", 100))],
                     "openvino_model.xml", "OpenVINOExecutionProvider")
    folder.files = {
        "genai_config.json": {
            "model": {"type": "qwen2", "context_length": 4224, "vocab_size": 100, "decoder": {
                "filename": "openvino_model.onnx", "num_hidden_layers": 24,
                "num_attention_heads": 14, "hidden_size": 896, "head_size": 64,
                "session_options": {"provider_options": [{"OpenVINO": {
                    "device_type": "NPU", "enable_causallm": "True", "load_config": lengths}}]}}},
            "search": {"max_length": 4224}},
        "openvino_model.onnx": model,
        "openvino_model.xml": b"<net/>",
        "openvino_model.bin": b"weights",
        "openvino_tokenizer.xml": b"<net/>",
        "openvino_tokenizer.bin": b"weights",
    }
    return folder


def plain():
    """A decoder for the CPU in one model."""
    folder = Folder()
    layers = [("past_key_values.0.key", FLOAT, ("b", HEADS, "p", SIZE)),
              ("past_key_values.0.value", FLOAT, ("b", HEADS, "p", SIZE))]
    folder.files = {
        "genai_config.json": {
            "model": {"type": "llama", "context_length": 64, "vocab_size": 100, "decoder": {
                "filename": "model.onnx", "num_hidden_layers": 2, "num_key_value_heads": HEADS,
                "num_attention_heads": 2, "hidden_size": HIDDEN, "head_size": SIZE,
                "session_options": {}}}},
        "model.onnx": ordinary("decoder", "Strange", [("input_ids", INT64, ("b", "s"))] + layers,
                               [("logits", FLOAT, ("b", "s", 100))] +
                               [(name.replace("past_key_values", "present"), kind, shape)
                                for name, kind, shape in layers]),
        "tokenizer.json": b"{}", "tokenizer_config.json": b"{}",
    }
    return folder


def genie():
    """Olive's QAIRT wrapper: a .dlc that Genie runs."""
    folder = Folder()
    model = compiled("dlc", [("input_ids", INT64, (1, 64))], [("logits", FLOAT, (1, 1, 100))], "",
                     "QAIRTExport")
    node = model.graph.node[0]
    lint.drop(node, "ep_cache_context")
    lint.put(node, "ep_context_type", "dlc")
    lint.put(node, "ep_dlc_context", "model.dlc")
    folder.files = {
        "genai_config.json": {
            "model": {"type": "decoder", "context_length": 4096, "vocab_size": 100, "decoder": {
                "filename": "model.onnx", "session_options": {"provider_options": [
                    {"qnn": {"genie_model": "True", "backend_type": "htp"}}]}}},
            "search": {"max_length": 4096}},
        "model.onnx": model, "model.dlc": b"dlc", "tmp1.json": b"{}", "tokenizer.json": b"{}",
        "tokenizer_config.json": b"{}",
    }
    return folder


def config(folder):
    return folder.files["genai_config.json"]


def decoder(folder):
    return config(folder)["model"]["decoder"]


def stages(folder):
    return decoder(folder)["pipeline"][0]


def provider(folder, stage="context"):
    return stages(folder)[stage]["session_options"]["provider_options"][0]["QNN"]


def member(get, key, new):
    """A change: the object that `get` finds gets another member, or loses it."""
    def change(folder):
        if new is None:
            del get(folder)[key]
        else:
            get(folder)[key] = new
    return change


def file(name, new):
    def change(folder):
        if new is None:
            del folder.files[name]
        else:
            folder.files[name] = new
    return change


def attribute(name, key, new):
    def change(folder):
        lint.put(folder.node(name), key, new)
    return change


def both(*changes):
    def change(folder):
        for one in changes:
            one(folder)
    return change


def dims(name, side, at, new, elem_type=None):
    """Another shape of an input or output."""
    def change(folder):
        info = getattr(folder.model(name).graph, side)[at]
        tensor = info.type.tensor_type
        del tensor.shape.dim[:]
        for dim in new:
            tensor.shape.dim.add(**{"dim_value" if isinstance(dim, int) else "dim_param": dim})
        tensor.elem_type = elem_type or tensor.elem_type
    return change


def rename_value(name, side, at, new):
    """Another name of an input or output, in the graph and the stage."""
    def change(folder):
        graph = folder.model(name).graph
        info = getattr(graph, side)[at]
        old = info.name
        for node in graph.node:
            for names in (node.input, node.output):
                for i, one in enumerate(names):
                    if one == old:
                        names[i] = new
        info.name = new
        for stage in stages(folder).values():
            if stage["filename"] == name:
                stage[side + "s"] = [new if one == old else one for one in stage[side + "s"]]
    return change


def second_stage(folder):
    """Two stages of one name, as only a list of objects can have."""
    decoder(folder)["pipeline"].append({"lm_head": copy.deepcopy(stages(folder)["lm_head"])})
    stages(folder)["lm_head"]["is_lm_head"] = False


def own_binaries(folder):
    lint.put(folder.node("iterator_ctx.onnx"), "ep_cache_context", "iterator_qnn.bin")
    folder.files["iterator_qnn.bin"] = b"another"


def same_graph_names(folder):
    folder.node("iterator_ctx.onnx").name = "context_graph"


def two_mains(folder):
    graph = folder.model("context_ctx.onnx").graph
    node = graph.node.add()
    node.CopyFrom(graph.node[0])
    node.name = "second"
    for i, name in enumerate(node.output):
        node.output[i] = name + "_2"


def some_layers(folder):
    """The stage for tokens loses a layer, which the one for the prompt has."""
    graph = folder.model("iterator_ctx.onnx").graph
    for infos, names in ((graph.input, graph.node[0].input), (graph.output, graph.node[0].output)):
        kept = [info for info in infos if not info.name.endswith("_1")]
        del infos[len(kept):]
        for info, one in zip(infos, kept):
            info.CopyFrom(one)
        del names[:]
        names.extend(one.name for one in kept)
    stage = stages(folder)["iterator"]
    for key in ("inputs", "outputs"):
        stage[key] = [name for name in stage[key] if not name.endswith("_1")]


def cache_types(folder):
    for info in folder.model("iterator_ctx.onnx").graph.input:
        if info.name.startswith("past_keys"):
            info.type.tensor_type.elem_type = HALF


def hostile(folder):
    """Names full of escapes and marks, and what follows from them."""
    decoder(folder)["pipeline"].append({HOSTILE: {"filename": HOSTILE + ".onnx", HOSTILE: HOSTILE}})
    provider(folder)[HOSTILE] = 1


def raw(text):
    return file("genai_config.json", text)


def escaped(folder):
    text = json.dumps(config(folder)).replace('"log_id": "x"', '"log_id": "\\u0078"')
    folder.files["genai_config.json"] = text.encode()


def many(folder):
    for i in range(300):
        decoder(folder)["pipeline"].append({"s%d" % i: {"filename": "lm_head.onnx"}})


def huge(folder):
    folder.holes["shared_qnn.bin"] = (7 << 29) + 1


def huge_graph(folder):
    own_binaries(folder)
    folder.holes["iterator_qnn.bin"] = (2 << 30) + 1


def dynamic(folder):
    folder.model("context_ctx.onnx").graph.input[1].type.tensor_type.shape.dim[0].dim_param = "n"


QNN = [{"QNN": {"backend_type": "htp"}}]
CPU_OPTIONS = {"provider_options": [{"CPU": {"x": "y"}}]}
OV = lambda f: decoder(f)["session_options"]["provider_options"][0]["OpenVINO"]  # noqa: E731
GENIE = lambda f: decoder(f)["session_options"]["provider_options"][0]["qnn"]  # noqa: E731


def lengths(prompt, response):
    return json.dumps({"NPU": {"MAX_PROMPT_LEN": prompt, "MIN_RESPONSE_LEN": response}})


MODEL = lambda f: config(f)["model"]  # noqa: E731

# A name, the folder, its change, and the rules that lint must report.
GENAI = (
    ("no JSON", genai, raw(b"{\n\n,"), {"E101"}),
    ("no object", genai, raw(b"[1]"), {"E101"}),
    ("an unknown key", genai, member(MODEL, "surprise", 1), {"E101"}),
    ("an unknown object", genai, member(config, "surprise", {}), {"E101"}),
    ("an unknown scalar at the top", genai, member(config, "surprise", 1), set()),
    ("a wrong type", genai, member(MODEL, "vocab_size", "100"), {"E101"}),
    ("ep_context", genai, member(MODEL, "ep_context", {}), {"E101"}),
    ("compile_options", genai, member(lambda f: stages(f)["context"], "compile_options", {}),
     {"E101"}),
    ("an escape", genai, escaped, {"E101"}),
    ("another type with stages", genai, member(MODEL, "type", "phi3"), {"E102"}),
    ("a type with pictures", genai, member(MODEL, "type", "qwen2_5_vl"), set()),
    ("no context length", genai, member(MODEL, "context_length", None), {"E102"}),
    ("context length 0", genai, member(MODEL, "context_length", 0), {"E101"}),
    ("a pipeline without stages", genai, member(decoder, "pipeline", []), {"E102"}),
    ("a missing model", genai, file("lm_head.onnx", None), {"E103"}),
    ("no filename", genai, member(lambda f: stages(f)["lm_head"], "filename", None), {"E103"}),
    ("a git-lfs pointer", genai,
     file("lm_head.onnx", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"),
     {"E103"}),
    ("no ONNX", genai, file("lm_head.onnx", b"\xff\xff\xff\xff"), {"E103"}),
    ("a filename outside", genai,
     member(lambda f: stages(f)["lm_head"], "filename", "x\\..\\lm_head.onnx"), {"E103"}),
    ("an absolute filename", genai,
     member(lambda f: stages(f)["lm_head"], "filename", "C:/lm_head.onnx"), {"E103"}),
    ("two stages of one name", genai, second_stage, {"W104"}),
    ("no stage for tokens", genai,
     lambda f: [s.update(run_on_token_gen=False) for s in stages(f).values()],
     {"W104"}),
    ("hundreds of stages", genai, many, {"E107", "W104", "W113"}),
    ("a stage without its provider", genai,
     member(lambda f: stages(f)["context"], "session_options", {}), {"E105"}),
    ("options of the decoder", genai,
     both(member(lambda f: stages(f)["context"], "session_options", None),
          member(lambda f: stages(f)["iterator"], "session_options", None),
          member(lambda f: decoder(f)["session_options"], "provider_options", QNN)),
     {"W124"}),
    ("fresh options", genai,
     both(member(lambda f: stages(f)["context"], "session_options", {"log_id": "y"}),
          member(lambda f: decoder(f)["session_options"], "provider_options", QNN)),
     {"E105", "W124"}),
    ("inherited options", genai,
     both(member(lambda f: stages(f)["context"], "session_options", {"log_id": "y"}),
          member(lambda f: stages(f)["context"], "inherit_session_options", True),
          member(lambda f: decoder(f)["session_options"], "provider_options", QNN)),
     {"W124"}),
    ("a node of an unknown EP", genai, attribute("context_ctx.onnx", "source", "Nobody"), {"E105"}),
    ("an option that is a number", genai, member(provider, "vtcm_mb", 8), {"E106"}),
    ("an unknown provider", genai,
     lambda f: stages(f)["context"]["session_options"]["provider_options"].append({"Acme": {}}),
     {"E106"}),
    ("options of the CPU", genai,
     member(lambda f: stages(f)["lm_head"], "session_options", CPU_OPTIONS), {"E106"}),
    ("a level that is none", genai,
     member(lambda f: decoder(f)["session_options"], "graph_optimization_level", "ALL"), {"E106"}),
    ("a level", genai, member(lambda f: decoder(f)["session_options"], "graph_optimization_level",
                              "ORT_ENABLE_ALL"), set()),
    ("a device filter", genai,
     member(provider, "device_filtering_options", {"hardware_device_type": "npu"}), set()),
    ("an input that is none", genai,
     lambda f: stages(f)["lm_head"]["inputs"].append("more"), {"W107"}),
    ("an input that is not listed", genai,
     lambda f: stages(f)["context"]["inputs"].remove("past_keys_0"), {"E107"}),
    ("an output that is none", genai,
     member(lambda f: stages(f)["lm_head"], "outputs", ["Logits"]), {"E107"}),
    ("a value that nobody makes", genai, rename_value("lm_head.onnx", "input", 0, "other"),
     {"E108"}),
    ("a value of a stage of the other phase", genai,
     member(lambda f: stages(f)["iterator"], "output_names_forwarder", {}), {"E108"}),
    ("another element type", genai, dims("lm_head.onnx", "input", 0, (1, "s", HIDDEN), HALF),
     {"E108"}),
    ("another dimension", genai, dims("lm_head.onnx", "input", 0, (1, "s", HIDDEN + 1)), {"E108"}),
    ("another window", genai,
     member(lambda f: decoder(f)["sliding_window"], "window_size", 128), {"E109"}),
    ("a window over the context", genai,
     member(MODEL, "context_length", 32), {"E109"}),
    ("several tokens", genai, dims("iterator_ctx.onnx", "input", 0, (1, 4, HIDDEN)), {"E109"}),
    ("layers without caches", plain, None, set()),
    ("a cache that nobody knows", plain,
     member(decoder, "inputs", {"past_key_names": "past.%d.key"}), {"E110"}),
    ("a cache without an output", plain,
     member(decoder, "outputs", {"present_value_names": "value.%d"}), {"E110"}),
    ("a name without a layer", plain,
     member(decoder, "inputs", {"past_key_names": "past.key"}), {"E107", "E110"}),
    ("no vocabulary", plain, member(MODEL, "vocab_size", None), {"E102"}),
    ("another vocabulary", plain, member(MODEL, "vocab_size", 99), {"E102"}),
    ("a prompt of one length", plain, dims("model.onnx", "input", 0, (1, 8)), {"E109"}),
    ("no tokens", plain, member(decoder, "inputs", {"input_ids": "tokens"}), {"E107"}),
    ("no logits at all", plain, member(decoder, "outputs", {"logits": "x"}), {"E107"}),
    ("a length in halves", genai, member(MODEL, "context_length", 64.5), {"E101"}),
    ("a length above 32 bits", genai, member(MODEL, "context_length", 10**12), {"E101"}),
    ("a kind that is none", genai, member(decoder, "state_groups", [{"kind": "x"}]), {"E101"}),
    ("a number with a plus", genai, lambda f: f.files.update({"genai_config.json": json.dumps(
        config(f)).replace('"context_length": 4096', '"context_length": +4096').encode()}),
     {"E101"}),
    ("text behind the end", genai, lambda f: f.files.update(
        {"genai_config.json": json.dumps(config(f)).encode() + b"\n}"}), {"W102"}),
    ("keys of a later release", genai, member(MODEL, "moonshine", {}), set()),
    ("no inputs of a stage", genai,
     member(lambda f: stages(f)["context"], "inputs", None), {"E107"}),
    ("no outputs of a stage", genai,
     member(lambda f: stages(f)["lm_head"], "outputs", None), {"E107"}),
    ("an input that another stage makes", genai,
     lambda f: stages(f)["lm_head"]["inputs"].append("embeds"), {"E107"}),
    ("no window", genai, member(decoder, "sliding_window", None), {"E109"}),
    ("more layers", genai, member(decoder, "num_hidden_layers", 3), set()),
    ("billions of layers", genai, member(decoder, "num_hidden_layers", 2000000000), set()),
    ("more heads", genai, member(decoder, "num_key_value_heads", 3), set()),
    ("more heads for an older release", genai, member(decoder, "num_key_value_heads", 3),
     {"E113"}, "--against", "genai=0.14"),
    ("another head size", genai, member(decoder, "head_size", 5), {"I110"}),
    ("another cache name", genai, rename_value("iterator_ctx.onnx", "input", 2, "past_keys_7"),
     {"E111", "E112"}),
    ("other cache types", genai, cache_types, {"W111"}),
    ("some layers", genai, some_layers, {"E111", "E112"}),
    ("a session to reset that is none", genai,
     member(lambda f: stages(f)["context"], "reset_session_idx", 4), {"E112"}),
    ("a session to reset", genai,
     member(lambda f: stages(f)["context"], "reset_session_idx", 3), set()),
    ("no lm_head", genai, member(lambda f: stages(f)["lm_head"], "is_lm_head", False), set()),
    ("no logits", genai, both(member(lambda f: stages(f)["lm_head"], "is_lm_head", False),
                              rename_value("lm_head.onnx", "output", 0, "x")), {"E107"}),
    ("two lm_heads", genai, member(lambda f: stages(f)["iterator"], "is_lm_head", True), {"W113"}),
    ("a missing binary", genai, file("shared_qnn.bin", None), {"E114"}),
    ("an empty binary", genai, file("shared_qnn.bin", b""), {"E114"}),
    ("an orphan", genai, file("old_qnn.bin", b"old"), {"W114"}),
    ("a schematic", genai, file("part_schematic.bin", b"old"), {"W114"}),
    ("binaries of their own", genai, own_binaries, {"W115"}),
    ("an embedded context", genai, attribute("context_ctx.onnx", "embed_mode", 1), {"E115"}),
    ("two primary nodes", genai, two_mains, {"E116"}),
    ("graphs of one name", genai, same_graph_names, {"E117"}),
    ("another SDK", genai, attribute("iterator_ctx.onnx", "ep_sdk_version", "2.41"), {"W118"}),
    ("another spelling", genai, attribute("iterator_ctx.onnx", "source", "QNN"), {"W118"}),
    ("another chip", genai, member(lambda f: provider(f, "iterator"), "soc_model", "87"), {"W118"}),
    ("another string", genai, both(*(
        (lambda f, name=name, text=text: f.model(name).metadata_props.add(
            key="ep_compatibility_info.QNNExecutionProvider", value=text))
        for name, text in (("context_ctx.onnx", "6:2.40.0:2.30.0:3.3.3:73:0"),
                           ("iterator_ctx.onnx", "6:2.40.0:2.30.0:3.3.3:75:0")))), {"W118"}),
    ("a library of Windows", genai, member(provider, "backend_path", "QnnHtp.dll"), {"W119"}),
    ("an absolute library", genai, member(provider, "backend_path", "C:\\QnnHtp.dll"),
     {"E119", "W119"}),
    ("large binaries", genai, huge, {"W120"}),
    ("a large graph", genai, huge_graph, {"W115", "W120"}),
    ("OpenVINO", openvino, None, set()),
    ("an .xml without its .bin", openvino, file("openvino_model.bin", None), {"E121"}),
    ("a missing .xml", openvino, file("openvino_model.xml", None), {"E114"}),
    ("no device", openvino, member(OV, "device_type", None), {"W126"}),
    ("no prompt", openvino, member(OV, "load_config", lengths(0, 128)), {"E121"}),
    ("load_config that is no JSON", openvino, member(OV, "load_config", "{"), {"E121"}),
    ("a short response", openvino, member(OV, "load_config", lengths(4096, 1)), {"W121"}),
    ("Genie", genie, None, set()),
    ("a missing .dlc", genie, file("model.dlc", None), {"E122"}),
    ("no tmp*.json", genie, file("tmp1.json", None), {"E122"}),
    ("no genie_model", genie, member(GENIE, "genie_model", None), {"E122"}),
    ("two .dlc", genie, file("more.dlc", b"dlc"), {"W122"}),
    ("no tokenizer", genai, file("tokenizer.json", None), {"W123"}),
    ("a tokenizer elsewhere", genai, both(file("tokenizer.json", None),
                                          file("tok/tokenizer.json", b"{}"),
                                          member(MODEL, "tokenizer_dir", "tok")), set()),
    ("a missing library", genai,
     member(lambda f: decoder(f)["session_options"], "custom_ops_library", "ops.so"), {"W123"}),
    ("a dynamic dimension", genai, dynamic, {"W124"}),
    ("a cache folder", genai, member(provider, "cache_dir", "cache"), {"W125"}),
    ("generation left on", genai,
     member(lambda f: stages(f)["context"]["session_options"], "ep.context_enable", "1"),
     {"W125"}),
    ("other head counts", genai, member(decoder, "num_attention_heads", 3), {"I110"}),
    *((f"the session option {key}", genai,
       member(lambda f: decoder(f)["session_options"], key, "1"), want)
      for key, want in (
          ("session.disable_cpu_ep_fallbak", {"W106"}), ("session.no_such_thing", {"W106"}),
          ("sesion.disable_prepacking", {"W106"}), ("ep.cuda.fpa_intb_gem", {"W106"}),
          ("graph_optimisation_level", {"W106"}), ("log_ids", {"W106"}),
          ("session.function_expansion_node_limit", set()), ("session.disable_prepacking", set()),
          ("ep.share_ep_contexts", set()), ("ep.acme.share_ep_contexts", set()),
          ("acme_mode", set()), ("log_id", set()))),
    ("hostile names", genai, hostile, {"E101", "E103", "E106", "W113"}),
)


# -- model packages --

TEXT = "6:2.40.0:2.30.0:3.3.3:73:0"


def asset(files):
    """ORT's name for a set of files."""
    lines = "".join("%s  %s\n" % (hashlib.sha256(files[name]).hexdigest(), name)
                    for name in sorted(files))
    return hashlib.sha256(lines.encode()).hexdigest()


SHARED = {"net.onnx": ordinary("net", "Strange", [("x", FLOAT, (1, 4))],
                               [("y", FLOAT, (1, 4))]).SerializeToString(), "notes/a.txt": b"text"}
HEX = asset(SHARED)
BINARY = {"net_qnn.bin": b"a context binary"}
BINARY_HEX = asset(BINARY)


def package():
    """A variant for QNN, one whose binary is an asset, and the source model as an asset."""
    folder = Folder()
    model = compiled("net", [("x", FLOAT, (1, 4))], [("y", FLOAT, (1, 4))], "net_qnn.bin")
    model.metadata_props.add(key="ep_compatibility_info.QNNExecutionProvider", value=TEXT)
    second = copy.deepcopy(model)
    second.metadata_props[0].value = TEXT.replace(":73:", ":75:")
    folder.files = {
        "manifest.json": {"schema_version": "1.0", "package_name": "net",
                          "components": {"model": "model"}},
        "model/component.json": {"component_name": "model", "variants": {
            "v73": {"variant_directory": "v73", "ep": "QNNExecutionProvider", "device": "npu",
                    "compatibility_string": TEXT, "executor_info": {"ort": "ort_info.json"}},
            "v75": {"ep": "QNNExecutionProvider", "device": "npu",
                    "compatibility_string": TEXT.replace(":73:", ":75:"),
                    "executor_info": {"ort": {"model_file": "net_ctx.onnx", "session_options": {
                        "ep.context_file_path": "sha256:%s/net_ctx.onnx" % BINARY_HEX}}}},
            "cpu": {"ep": "CPUExecutionProvider",
                    "executor_info": {"ort": {"model_file": "sha256:%s/net.onnx" % HEX}}}}},
        "model/v73/ort_info.json": {"model_file": "net_ctx.onnx"},
        "model/v73/net_ctx.onnx": model,
        "model/v73/net_qnn.bin": b"a context binary",
        "model/v75/net_ctx.onnx": second,
        "model/cpu/readme.txt": b"text",
    }
    for name, data in SHARED.items():
        folder.files["shared_assets/sha256-%s/%s" % (HEX, name)] = data
    for name, data in BINARY.items():
        folder.files["shared_assets/sha256-%s/%s" % (BINARY_HEX, name)] = data
    return folder


def genai_package():
    """Each variant is a folder of ORT GenAI; their tokenizer is an asset."""
    folder = Folder()
    tokenizer = {"tokenizer.json": b"{}", "tokenizer_config.json": b"{}"}
    folder.files = {"manifest.json": {"schema_version": 1, "components": {"model": {"variants": {
        name: {"ep": "QNNExecutionProvider", "device": "npu",
               "compatibility_string": TEXT + name} for name in ("a", "b")}}}}}
    for name in ("a", "b"):
        one = genai()
        for key, data in one.files.items():
            if key not in tokenizer:
                folder.files["%s/%s" % (name, key)] = data
        one.files["genai_config.json"]["model"]["tokenizer_dir"] = "sha256:" + asset(tokenizer)
        for stage in ("context", "iterator"):
            one.files[stage + "_ctx.onnx"].metadata_props.add(
                key="ep_compatibility_info.QNNExecutionProvider", value=TEXT + name)
    for key, data in tokenizer.items():
        folder.files["shared_assets/sha256-%s/%s" % (asset(tokenizer), key)] = data
    return folder


MANIFEST = lambda f: f.files["manifest.json"]  # noqa: E731
COMPONENT = lambda f: f.files["model/component.json"]  # noqa: E731
INFO = lambda f: f.files["model/v73/ort_info.json"]  # noqa: E731


def variant(name):
    return lambda f: COMPONENT(f)["variants"][name]


def info(name):
    return lambda f: variant(name)(f)["executor_info"]["ort"]


def same_strings(folder):
    """Both variants are for one chip, and so are their models."""
    variant("v75")(folder)["compatibility_string"] = TEXT
    folder.model("model/v75/net_ctx.onnx").metadata_props[0].value = TEXT


def several_strings(folder):
    more = copy.deepcopy(folder.model("model/v73/net_ctx.onnx"))
    more.metadata_props[0].value = "6:1:1:1:1:1"
    folder.files["model/v73/more_ctx.onnx"] = more


def no_strings(folder):
    del folder.model("model/v73/net_ctx.onnx").metadata_props[:]
    del variant("v73")(folder)["compatibility_string"]


def other_type(folder):
    tensor = folder.model("model/v75/net_ctx.onnx").graph.input[0].type.tensor_type
    tensor.elem_type = 10 if tensor.elem_type == 1 else 1


def one_more_output(folder):
    graph = folder.model("model/v75/net_ctx.onnx").graph
    graph.output.add().CopyFrom(graph.output[0])
    graph.output[-1].name = "more"


def second_component(folder):
    MANIFEST(folder)["components"]["other"] = {"variants": {}}


def broken_genai(folder):
    folder.files["b/genai_config.json"]["model"]["surprise"] = 1


ASSET = "shared_assets/sha256-%s/" % HEX
PACKAGES = (
    ("a whole package", package, None, set()),
    ("a whole package for GenAI", genai_package, None, set()),
    ("no JSON", package, file("manifest.json", b"{"), {"E201"}),
    ("no version", package, member(MANIFEST, "schema_version", None), {"E201"}),
    ("a newer version", package, member(MANIFEST, "schema_version", "2.0"), {"E201"}),
    ("a later version", package, member(MANIFEST, "schema_version", "1.7"), set()),
    ("no version at all", package, member(MANIFEST, "schema_version", "new"), {"E201"}),
    ("an unknown key", package, member(MANIFEST, "surprise", 1), {"E201"}),
    ("an unknown key of a component", package, member(COMPONENT, "surprise", 1), {"E201"}),
    ("an unknown key of a variant", package, member(variant("cpu"), "surprise", 1), {"E201"}),
    ("an ep that is no text", package, member(variant("v75"), "ep", 1),
     {"E201", "E204", "E209"}),
    ("a layout that is none", package, member(MANIFEST, "layout", "loose"), {"E201"}),
    ("a component without variants", package, member(COMPONENT, "variants", None),
     {"E201", "E202", "W211"}),
    ("no variant", package, member(COMPONENT, "variants", {}), {"E202", "W211"}),
    ("two components for GenAI", genai_package, second_component, {"W202"}),
    ("two components", package, second_component, set()),
    ("a missing folder", package, member(variant("v73"), "variant_directory", "v99"), {"E203"}),
    ("a missing folder of that name", package, file("model/cpu/readme.txt", None),
     {"E203", "W211"}),
    ("a missing component", package, member(MANIFEST, "components", {"model": "gone"}),
     {"E202", "E203", "W211"}),
    ("no ep", package, member(variant("cpu"), "ep", None), {"E204", "W205"}),
    ("a short ep", package, member(variant("v73"), "ep", "QNN"), {"E204"}),
    ("an ep in other letters", package, member(variant("v73"), "ep", "QnnExecutionProvider"),
     {"W204"}),
    ("an ep of the future", package, member(variant("cpu"), "ep", "AcmeExecutionProvider"),
     {"W205"}),
    ("a device that is none", package, member(variant("v73"), "device", "dsp"), {"E205"}),
    ("no device", package, member(variant("v73"), "device", None), {"W205"}),
    ("a contrary device", package, member(variant("v73"), "device", "cpu"), {"W205"}),
    ("another string", package, member(variant("v73"), "compatibility_string", TEXT + "1"),
     {"E206"}),
    ("no string", package, member(variant("v73"), "compatibility_string", None), {"W206"}),
    ("no string anywhere", package, no_strings, {"W206"}),
    ("several strings", package, several_strings, {"W206"}),
    ("two variants for one chip", package, same_strings, {"W207"}),
    ("a missing executor file", package, file("model/v73/ort_info.json", None), {"E208"}),
    ("an executor file that is no JSON", package, file("model/v73/ort_info.json", b"x"),
     {"E208"}),
    ("no model_file", package, member(INFO, "model_file", None), {"E208"}),
    ("a missing model", package, member(INFO, "model_file", "gone.onnx"), {"E208"}),
    ("a model outside", package, member(INFO, "model_file", "../v75/net_ctx.onnx"), {"E208"}),
    ("an option that is a number", package, member(INFO, "provider_options", {"soc_model": 60}),
     {"E208"}),
    ("options that are a list", package, member(INFO, "session_options", []), {"E208"}),
    ("contexts of another EP", package,
     lambda f: lint.put(f.node("model/v73/net_ctx.onnx"), "source", "OpenVINOExecutionProvider"),
     {"E209"}),
    ("a source of another version of the EP", package,
     lambda f: lint.put(f.node("model/v73/net_ctx.onnx"), "source", "QAIRTExport"),
     set()),
    ("contexts of such a version for another EP", package,
     lambda f: (lint.put(f.node("model/v73/net_ctx.onnx"), "source", "QAIRTExport"),
                member(variant("v73"), "ep", "OpenVINOExecutionProvider")(f)), {"E209"}),
    ("a binary outside", package,
     lambda f: lint.put(f.node("model/v73/net_ctx.onnx"), "ep_cache_context", "../net_qnn.bin"),
     {"E210"}),
    ("a binary in an asset, without the option", package,
     member(info("v75"), "session_options", {}), {"W211"}),
    ("another type of an input", package, other_type, {"E215"}),
    ("one output more", package, one_more_output, {"E215"}),
    ("a changed asset", package, file(ASSET + "notes/a.txt", b"other"), {"E211"}),
    ("a renamed file of an asset", package,
     both(file(ASSET + "notes/a.txt", None), file(ASSET + "notes/b.txt", b"text")), {"E211"}),
    ("a missing asset", package,
     member(info("cpu"), "model_file", "sha256:%064d/net.onnx" % 0), {"E211", "W211"}),
    ("a hash that is none", package, member(info("cpu"), "model_file", "sha256:abc/net.onnx"),
     {"E211", "W211"}),
    ("an asset elsewhere", package,
     member(MANIFEST, "shared_assets", {"sha256:%064d" % 0: "gone"}), {"E211"}),
    ("an unused asset", package,
     file("shared_assets/sha256-%s/a" % asset({"a": b"x"}), b"x"), {"W211"}),
    ("a link in an asset", package, lambda f: f.links.update({ASSET + "b.txt": "notes/a.txt"}),
     {"W211"}),
    ("a rest of writing", package, file("shared_assets/x.tmp.123", b""), {"W211"}),
    ("a flat folder", genai_package, file("genai_config.json", b"{"), {"E101", "W212"}),
    ("a variant without its configuration", genai_package, file("a/genai_config.json", None),
     {"E213"}),
    ("a variant with a wrong configuration", genai_package, broken_genai, {"E101"}),
    *((f"the session option {key}", package,
       member(lambda f: info("v75")(f)["session_options"], key, "1"), want)
      for key, want in (
          ("session.disable_cpu_ep_fallbak", {"W208"}), ("session.no_such_thing", {"W208"}),
          ("session.disable_prepacking", set()), ("ep.acme.share_ep_contexts", set()))),
    ("a path with dots", package, member(MANIFEST, "components", {"model": "model/../model"}),
     {"W214"}),
    ("a path with a dot", package, member(MANIFEST, "components", {"model": "./model/."}), set()),
    ("an installed path with dots", package,
     both(member(MANIFEST, "components", {"model": "model/../model"}),
          member(MANIFEST, "layout", "installed")), set()),
    ("a link out of the package", package, lambda f: f.links.update({"model/x": "/tmp"}),
     {"W214"}),
    ("hostile names", package,
     both(member(lambda f: COMPONENT(f)["variants"], HOSTILE, {HOSTILE: HOSTILE}),
          member(MANIFEST, HOSTILE, 1)), {"E201", "E203", "E204", "W205"}),
)


def report(folder, *options):
    done = subprocess.run((EPCTX, "lint", "--hints", "--json", *options, folder),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, check=False)
    text = done.stdout.decode("utf-8", "surrogateescape")
    assert "\x1b" not in text and "\u202e" not in text, "a control character was printed"
    answer = json.loads(text)
    # What cannot be read is a failure, too: one line, as in the answer.
    told = sum(line.startswith(b"epctx: ") for line in done.stderr.splitlines())
    failures = len(answer.get("failures", ()))
    if done.returncode not in (0, 1) or told != failures or (done.stderr and not told):
        raise AssertionError("exit code %d, %d failures: %s" %
                             (done.returncode, failures, done.stderr[-800:]))
    return [(f["id"], f["message"]) for one in answer["files"] for f in one["findings"]]


def judge(kind, cases, rules):
    good = True
    for name, make, change, expected, *options in cases:
        folder = make()
        where = os.path.join(FOLDER, "case")
        try:
            if change is not None:
                change(folder)
            folder.write(where)
            everything = report(where, *options)
            found = [one for one in everything if one[0][1] in "12"]
            ids = {one[0] for one in found}
            if not expected:
                found = [one for one in everything if one[0][0] == "E"]
                assert not found, found
            assert ids == expected, "expected %s, found %s" % (sorted(expected), found)
            for one in expected:
                seen[one] = True
        except (AssertionError, KeyError, ValueError, OSError,
                subprocess.TimeoutExpired) as error:
            print("FAIL %s: %s: %s" % (kind, name, str(error)[:900]))
            good = False
    for rule in rules:
        if rule not in seen:
            print("FAIL %s: no folder breaks %s" % (kind, rule))
            good = False
    if good:
        print("ok %s: %d folders" % (kind, len(cases)))
    return good


# Names of EPs, and others that only the facts of a user tell.
OTHERS = {"QNNExecutionProvider": "ZenithExecutionProvider", "QNN": "Zenith",
          "QAIRTExport": "ZenithTool", "qnn": "zenith", "qnn_plugin": "zenith_plugin",
          "OpenVINOExecutionProvider": "OvoidExecutionProvider", "OpenVINO": "Ovoid",
          "openvino": "ovoid", "openvino_plugin": "ovoid_plugin"}


def other_facts(path):
    """What the built-in facts say of two EPs, under the other names."""
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples/epctx/facts")
    blocks = []
    for name in ("profiles.facts", "eps.facts"):
        with open(os.path.join(folder, name), encoding="utf-8") as text:
            blocks += text.read().split("\n\n")
    with open(path, "w", encoding="utf-8") as out:
        out.write("facts: 1\n\ndefault: all\nwho: W\nseen: bench\nfrom: F\ndate: 2026-11\n")
        for block in blocks:
            kind, _, name = block.split("\n")[0].partition(": ")
            if kind not in ("profile", "ep", "provider") or name not in OTHERS:
                continue
            out.write("\n")
            for line in block.split("\n"):
                key, colon, text = line.partition(": ")
                if key in ("profile", "ep", "provider", "profiles", "sources"):
                    text = ", ".join(OTHERS.get(word, word) for word in text.split(", "))
                out.write(key + colon + text + "\n")


def renamed(folder):
    """The same delivery for EPs with the other names."""
    def keys(value):
        if isinstance(value, dict):
            return {OTHERS.get(key, key): keys(one) for key, one in value.items()}
        return [keys(one) for one in value] if isinstance(value, list) else value

    for name, data in folder.files.items():
        if isinstance(data, dict):
            folder.files[name] = keys(data)
        if isinstance(data, bytes) and name.endswith(".json"):
            for key, other in OTHERS.items():
                data = data.replace(b'"%s"' % key.encode(), b'"%s"' % other.encode())
            folder.files[name] = data
        if not isinstance(data, ModelProto):
            continue
        for node in data.graph.node:
            source = lint.attr(node, "source")
            if source is not None:
                source.s = OTHERS.get(source.s.decode(), source.s.decode()).encode()
        for entry in data.metadata_props:
            prefix, dot, source = entry.key.partition(".")
            entry.key = prefix + dot + OTHERS.get(source, source)


def for_others(cases, path):
    """Cases of EPs that only the facts of a user know: what they break is the same."""
    for name, make, change, expected, *options in cases:
        if make in (genai, openvino, genie):
            changes = both(change, renamed) if change is not None else renamed
            yield (name, make, changes, expected, *options, "--facts", path)


def damaged():
    """Damaged JSON is reported, whatever it says."""
    chance = random.Random(20)
    words = [b"{", b"}", b"[", b"]", b",", b":", b'"', b"\\", b"0", b"-1e999", b"null", b"true",
             b"\x00", b"\xff", b"18446744073709551616", b'"sha256:', b"../", b"%d", b"\\ud800"]
    for make, names in ((genai, ["genai_config.json"]),
                        (package, ["manifest.json", "model/component.json"]),
                        (openvino, ["genai_config.json"]), (genie, ["genai_config.json"])):
        for _ in range(20):
            folder = make()
            for name in names:
                text = json.dumps(folder.files[name]).encode()
                for _ in range(chance.randrange(1, 4)):
                    at = chance.randrange(len(text))
                    text = (text[:at] + chance.choice(words) +
                            text[at + chance.randrange(0, 12):])
                folder.files[name] = text
            folder.write(os.path.join(FOLDER, "damaged"))
            report(os.path.join(FOLDER, "damaged"))
    deep = genai()
    deep.files["genai_config.json"] = b'{"model":' * 100000
    deep.write(os.path.join(FOLDER, "damaged"))
    report(os.path.join(FOLDER, "damaged"))


def main():
    listed = subprocess.run((EPCTX, "lint", "--rules"), stdout=subprocess.PIPE, check=True)
    rules = [line.split()[0] for line in listed.stdout.decode().splitlines()]
    good = judge("GenAI", (("a whole folder", genai, None, set()),) + GENAI,
                 [rule for rule in rules if rule[1] == "1"])
    path = os.path.join(FOLDER, "other.facts")
    other_facts(path)
    good = judge("GenAI with EPs of a user's facts", tuple(for_others(GENAI, path)), ()) and good
    good = judge("packages", PACKAGES, [rule for rule in rules if rule[1] == "2"]) and good
    try:
        damaged()
        print("ok damaged deliveries")
    except (AssertionError, ValueError, subprocess.TimeoutExpired) as error:
        print("FAIL damaged deliveries: %s" % str(error)[:900])
        good = False
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
