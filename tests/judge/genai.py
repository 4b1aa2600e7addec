#!/usr/bin/python3
"""Whether lint and ORT GenAI itself agree about folders: two that generate, and changes of them.

    tests/judge/genai.py EPCTX PACKAGE FOLDER

PACKAGE is an unpacked wheel. Each changed folder is opened and made to generate, in a process of
its own; lint must find an error where that fails, and none where it works. Prints the lines that
tests/run reads.
"""
import copy
import json
import multiprocessing
import os
import shutil
import subprocess
import sys

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

EPCTX, PACKAGE, FOLDER = sys.argv[1:4]
WORDS, HEADS, SIZE, HIDDEN, WINDOW = 32, 2, 8, 8, 8
FLOAT, HALF, INT64 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.INT64

# -- models --


def table(name, *shape):
    return numpy_helper.from_array(numpy.ones(shape, "f"), name)


def model(name, nodes, inputs, outputs, initializers):
    values = [[helper.make_tensor_value_info(*one) for one in side] for side in (inputs, outputs)]
    return helper.make_model(helper.make_graph(nodes, name, *values, initializers), ir_version=9,
                             opset_imports=[helper.make_opsetid("", 17)])


def caches(past, present):
    """Inputs, outputs and nodes of a key and a value cache, which get "step" behind them."""
    shapes = ("b", HEADS, "p", SIZE), ("b", HEADS, "t", SIZE)
    return ([(name, FLOAT, shapes[0]) for name in past],
            [(name, FLOAT, shapes[1]) for name in present],
            [helper.make_node("Concat", [one, "step"], [other], axis=2)
             for one, other in zip(past, present)])


def step(rows):
    """What a cache grows by, of "rows"."""
    return [helper.make_node("Reshape", [rows, "shape"], ["step4"]),
            helper.make_node("Transpose", ["step4"], ["step"], perm=[0, 2, 1, 3])]


SHAPE = numpy_helper.from_array(numpy.array([0, 0, HEADS, SIZE], "q"), "shape")


def decoder():
    inputs, outputs, nodes = caches(["past_key_values.0." + one for one in ("key", "value")],
                                    ["present.0." + one for one in ("key", "value")])
    return model("decoder", [helper.make_node("Gather", ["words", "input_ids"], ["logits"]),
                             helper.make_node("Gather", ["grow", "input_ids"], ["rows"])] +
                 step("rows") + nodes,
                 [("input_ids", INT64, ("b", "s")), ("attention_mask", INT64, ("b", "t"))] + inputs,
                 [("logits", FLOAT, ("b", "s", WORDS))] + outputs,
                 [table("words", WORDS, WORDS), table("grow", WORDS, HEADS * SIZE), SHAPE])


def embeddings():
    return model("embeddings", [helper.make_node("Gather", ["words", "input_ids"], ["embeds"])],
                 [("input_ids", INT64, (1, "s"))], [("embeds", FLOAT, (1, "s", HIDDEN))],
                 [table("words", WORDS, HIDDEN)])


PAST, PRESENT = ["past_keys_0", "past_values_0"], ["present_keys_0", "present_values_0"]


def transformer(name, length):
    inputs, outputs, nodes = caches(PAST, PRESENT)
    return model(name, [helper.make_node("MatMul", ["embeds", "w"], ["hidden"]),
                        helper.make_node("MatMul", ["embeds", "grow"], ["rows"])] +
                 step("rows") + nodes,
                 [("embeds", FLOAT, (1, length, HIDDEN))] + inputs,
                 [("hidden", FLOAT, (1, length, HIDDEN))] + outputs,
                 [table("w", HIDDEN, HIDDEN), table("grow", HIDDEN, HEADS * SIZE), SHAPE])


def head(kind=FLOAT):
    words = numpy_helper.from_array(numpy.ones((HIDDEN, WORDS), "f" if kind == FLOAT else "e"), "w")
    return model("lm_head", [helper.make_node("MatMul", ["last", "w"], ["logits"])],
                 [("last", kind, (1, "s", HIDDEN))], [("logits", kind, (1, "s", WORDS))], [words])


# -- folders: files by name --


def common(kind, inside):
    return {"model": {"type": kind, "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 0,
                      "vocab_size": WORDS, "context_length": 64,
                      "decoder": dict(inside, head_size=SIZE, hidden_size=HEADS * SIZE,
                                      num_attention_heads=HEADS, num_hidden_layers=1,
                                      num_key_value_heads=HEADS,
                                      session_options={"log_id": "x", "provider_options": []})},
            "search": {"max_length": 32, "do_sample": False}}


def one_model():
    return {"decoder.onnx": decoder(), "genai_config.json": common("llama", {
        "filename": "decoder.onnx",
        "inputs": {"input_ids": "input_ids", "attention_mask": "attention_mask",
                   "past_key_names": "past_key_values.%d.key",
                   "past_value_names": "past_key_values.%d.value"},
        "outputs": {"logits": "logits", "present_key_names": "present.%d.key",
                    "present_value_names": "present.%d.value"}})}


def pipeline():
    def stage(name, inputs, outputs, **more):
        return dict(filename=name + ".onnx", inputs=inputs, outputs=outputs, **more)

    steps = ["embeds"] + PAST, ["hidden"] + PRESENT
    stages = {
        "embeddings": stage("embeddings", ["input_ids"], ["embeds"]),
        "context": stage("context", *steps, run_on_token_gen=False,
                         output_names_forwarder={"hidden": "last"}),
        "iterator": stage("iterator", *steps, run_on_prompt=False,
                          output_names_forwarder={"hidden": "last"}),
        "lm_head": stage("lm_head", ["last"], ["logits"], is_lm_head=True)}
    return {"embeddings.onnx": embeddings(), "context.onnx": transformer("context", WINDOW),
            "iterator.onnx": transformer("iterator", 1), "lm_head.onnx": head(),
            "genai_config.json": common("decoder-pipeline", {
                "sliding_window": {"window_size": WINDOW, "pad_value": 0, "alignment": "left",
                                   "slide_key_value_cache": False},
                "inputs": {"input_ids": "input_ids", "past_key_names": "past_keys_%d",
                           "past_value_names": "past_values_%d"},
                "outputs": {"logits": "logits", "present_key_names": "present_keys_%d",
                            "present_value_names": "present_values_%d"},
                "pipeline": [copy.deepcopy(stages)]})}


# -- changes --

ALL = lambda f: f["genai_config.json"]  # noqa: E731
MODEL = lambda f: ALL(f)["model"]  # noqa: E731
DECODER = lambda f: MODEL(f)["decoder"]  # noqa: E731
INPUTS = lambda f: DECODER(f)["inputs"]  # noqa: E731
OUTPUTS = lambda f: DECODER(f)["outputs"]  # noqa: E731
OPTIONS = lambda f: DECODER(f)["session_options"]  # noqa: E731
SEARCH = lambda f: ALL(f)["search"]  # noqa: E731
WINDOWS = lambda f: DECODER(f)["sliding_window"]  # noqa: E731
STAGES = lambda f: DECODER(f)["pipeline"][0]  # noqa: E731


def stage_of(name):
    return lambda f: STAGES(f)[name]


def put(get, key, new):
    """None takes it out."""
    def change(folder):
        if new is None:
            del get(folder)[key]
        else:
            get(folder)[key] = new
    return change


def both(*changes):
    return lambda folder: [change(folder) for change in changes] and None


def file(name, new):
    return put(lambda folder: folder, name, new)


def text(change):
    """Another text of the configuration."""
    return lambda f: f.update({"genai_config.json": change(json.dumps(ALL(f))).encode()})


def renamed(name, side, old, new):
    def change(folder):
        graph = folder[name].graph
        for value in getattr(graph, side):
            value.name = new if value.name == old else value.name
        for node in graph.node:
            for names in (node.input, node.output):
                names[:] = [new if one == old else one for one in names]
    return change


def fixed(name, side, value, at, new):
    def change(folder):
        one, = (one for one in getattr(folder[name].graph, side) if one.name == value)
        dim = one.type.tensor_type.shape.dim[at]
        dim.Clear()
        if isinstance(new, int):
            dim.dim_value = new
        else:
            dim.dim_param = new
    return change


def one_stage(length):
    """A single stage for the prompt and for tokens."""
    def change(folder):
        del STAGES(folder)["iterator"], STAGES(folder)["context"]["run_on_token_gen"]
        folder["context.onnx"] = transformer("context", length)
    return change


def second_head(folder):
    DECODER(folder)["pipeline"].append({"lm_head": copy.deepcopy(STAGES(folder)["lm_head"])})
    del STAGES(folder)["lm_head"]["is_lm_head"]


def phase(key):
    return lambda f: [one.update({key: False}) for one in STAGES(f).values()] and None


def providers(*new):
    return put(OPTIONS, "provider_options", list(new))


def listed(stage, side, new):
    return lambda f: STAGES(f)[stage][side].append(new)


def unlisted(stage, side, old):
    return lambda f: STAGES(f)[stage][side].remove(old)


KEYS = (
    ("model.audio_output", put(MODEL, "audio_output", {})),
    ("model.moonshine", put(MODEL, "moonshine", {})),
    ("search.audio_top_k", put(SEARCH, "audio_top_k", 1)),
    ("vision.max_num_patches", put(MODEL, "vision", {"max_num_patches": 1})),
    ("mtp.enabled", put(MODEL, "mtp", {"enabled": False})),
    ("prefix_caching", put(ALL, "engine", {"dynamic_batching": {"prefix_caching": True}})),
    ("prefix_caching as an object",
     put(ALL, "engine", {"dynamic_batching": {"prefix_caching": {}}})),
    ("inputs.logits_indices", put(INPUTS, "logits_indices", "x")),
    ("speech.inputs.audio_lengths", put(MODEL, "speech", {"inputs": {"audio_lengths": "x"}})),
    ("ple_token_pad_id", put(DECODER, "ple_token_pad_id", 1)),
    ("past_indexer_names", put(INPUTS, "past_indexer_names", "x")),
    ("pos_embed_indices", put(MODEL, "vision", {"inputs": {"pos_embed_indices": "x"}})),
    ("an unknown key", put(MODEL, "surprise", 1)),
    ("an unknown scalar at the top", put(ALL, "surprise", 1)),
    ("an unknown object at the top", put(ALL, "surprise", {})),
    ("ep_context", put(MODEL, "ep_context", {})),
    ("context_length 64.5", put(MODEL, "context_length", 64.5)),
    ("context_length 1e12", put(MODEL, "context_length", 1e12)),
    ("context_length as text", put(MODEL, "context_length", "+64")),
    ("context_length +64", text(lambda t: t.replace('_length": 64', '_length": +64'))),
    ("context_length 0", put(MODEL, "context_length", 0)),
    ("no context_length", put(MODEL, "context_length", None)),
    ("vocab_size as text", put(MODEL, "vocab_size", "32")),
    ("no vocab_size", put(MODEL, "vocab_size", None)),
    ("vocab_size too small", put(MODEL, "vocab_size", WORDS - 1)),
    ("vocab_size too large", put(MODEL, "vocab_size", WORDS + 1)),
    ("do_sample 1", put(SEARCH, "do_sample", 1)),
    ("num_beams 0", put(SEARCH, "num_beams", 0)),
    ("a kind of state that is none", put(DECODER, "state_groups", [{"kind": "nonsense"}])),
    ("text behind the end", text(lambda t: t + " x")),
    ("a comma too much", text(lambda t: t[:-1] + ",}")),
    ("a comment", text(lambda t: "// c\n" + t)),
    ("an escape", text(lambda t: t.replace('"log_id": "x"', '"log_id": "\\u0078"'))),
    ("an option that is a number", providers({"QNN": {"vtcm_mb": 8}})),
    ("an unknown provider", providers({"Acme": {}})),
    ("options of the CPU", providers({"CPU": {"x": "y"}})),
    ("threads as text", put(OPTIONS, "intra_op_num_threads", "2")),
    ("a session option that is a number", put(OPTIONS, "session.x", 1)),
    ("a level that is none", put(OPTIONS, "graph_optimization_level", "ALL")),
    ("another head_size", put(DECODER, "head_size", 5)),
    ("more heads of caches", put(DECODER, "num_key_value_heads", 3)),
    ("more layers", put(DECODER, "num_hidden_layers", 2)),
    ("no layers", put(DECODER, "num_hidden_layers", None)),
    ("logits of another name", put(OUTPUTS, "logits", "nothere")),
    ("tokens of another name", put(INPUTS, "input_ids", "nothere")),
    ("caches of another name", put(INPUTS, "past_key_names", "nothere.%d")),
    ("caches without a layer", put(INPUTS, "past_key_names", "past_keys_0")),
)

STAGE = (
    ("a type that is none", put(MODEL, "type", "nonsense")),
    ("a type that has no stages", put(MODEL, "type", "llama")),
    ("two stages of one name", second_head),
    ("no stage for tokens", phase("run_on_token_gen")),
    ("no stage for the prompt", phase("run_on_prompt")),
    ("one stage of a fixed length", one_stage(WINDOW)),
    ("one stage of length 1", one_stage(1)),
    ("one stage of any length", one_stage("s")),
    ("one stage of any length, no window",
     both(one_stage("s"), put(DECODER, "sliding_window", None))),
    ("no window", put(DECODER, "sliding_window", None)),
    ("a window that does not slide", put(WINDOWS, "slide_inputs", False)),
    ("a smaller window", put(WINDOWS, "window_size", 4)),
    ("a larger window", put(WINDOWS, "window_size", 16)),
    ("another alignment", put(WINDOWS, "alignment", "up")),
    ("no inputs", put(stage_of("context"), "inputs", None)),
    ("no inputs of the head", put(stage_of("lm_head"), "inputs", None)),
    ("no outputs of the head", put(stage_of("lm_head"), "outputs", None)),
    ("an empty list of outputs", put(stage_of("lm_head"), "outputs", [])),
    ("an input missing", unlisted("context", "inputs", "past_keys_0")),
    ("an output missing", unlisted("iterator", "outputs", "hidden")),
    ("an input too much", listed("lm_head", "inputs", "more")),
    ("an input of another stage", listed("lm_head", "inputs", "embeds")),
    ("an output that is none", put(stage_of("lm_head"), "outputs", ["Logits"])),
    ("logits that no stage has", both(put(stage_of("lm_head"), "outputs", ["x"]),
                                      renamed("lm_head.onnx", "output", "logits", "x"))),
    ("logits by the forwarder", both(put(stage_of("lm_head"), "outputs", ["x"]),
                                     put(stage_of("lm_head"), "output_names_forwarder",
                                         {"x": "logits"}),
                                     renamed("lm_head.onnx", "output", "logits", "x"))),
    ("tokens that no stage has", both(put(stage_of("embeddings"), "inputs", ["tokens"]),
                                      renamed("embeddings.onnx", "input", "input_ids", "tokens"))),
    ("no forwarder", put(stage_of("iterator"), "output_names_forwarder", None)),
    ("a missing model", file("lm_head.onnx", None)),
    ("no filename", put(stage_of("lm_head"), "filename", None)),
    ("a filename outside", put(stage_of("lm_head"), "filename", "../lm_head.onnx")),
    ("no is_lm_head", put(stage_of("lm_head"), "is_lm_head", None)),
    ("a session to reset", put(stage_of("context"), "reset_session_idx", 1)),
    ("a session to reset that is none", put(stage_of("context"), "reset_session_idx", 9)),
    ("several tokens at once", file("iterator.onnx", transformer("iterator", 4))),
    ("a prompt of any length", file("context.onnx", transformer("context", "s"))),
    ("logits of any width", fixed("lm_head.onnx", "output", "logits", 2, "v")),
    ("a head of one token", fixed("lm_head.onnx", "input", "last", 1, 1)),
    ("a head in half", file("lm_head.onnx", head(HALF))),
    ("an empty pipeline", put(DECODER, "pipeline", [])),
)

WHOLE = (
    ("a prompt of a fixed length", fixed("decoder.onnx", "input", "input_ids", 1, 8)),
    ("a value cache of another name",
     renamed("decoder.onnx", "input", "past_key_values.0.value", "z")),
    ("a new cache of another name", renamed("decoder.onnx", "output", "present.0.key", "z")),
    ("no mask", put(INPUTS, "attention_mask", None)),
    ("logits of any width", fixed("decoder.onnx", "output", "logits", 2, "v")),
    ("the type decoder", put(MODEL, "type", "decoder")),
)

# -- both judges --


def write(folder, where):
    shutil.rmtree(where, ignore_errors=True)
    os.makedirs(where)
    for name, data in dict(folder, **{"tokenizer.json": {}, "tokenizer_config.json": {}}).items():
        if isinstance(data, dict):
            data = json.dumps(data).encode()
        with open(os.path.join(where, name), "wb") as out:
            out.write(data if isinstance(data, bytes) else data.SerializeToString())


def generate(where, answer):
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    sys.path.insert(0, PACKAGE)
    import onnxruntime_genai  # pylint: disable=import-outside-toplevel
    try:
        params = onnxruntime_genai.GeneratorParams(onnxruntime_genai.Model(where))
        generator = onnxruntime_genai.Generator(onnxruntime_genai.Model(where), params)
        generator.append_tokens(numpy.array([[3, 4, 5]], numpy.int32))
        for _ in range(6):
            if not generator.is_done():
                generator.generate_next_token()
        answer.send("")
    except Exception as error:  # pylint: disable=broad-except
        answer.send(str(error) or "an error")


def package_says(where):
    """Why it does not generate; "" if it does."""
    ours, theirs = multiprocessing.Pipe(False)
    process = multiprocessing.Process(target=generate, args=(where, theirs))
    process.start()
    theirs.close()
    try:
        return ours.recv() if ours.poll(60) else "it does not end"
    except EOFError:
        return "it crashes"
    finally:
        process.kill()
        process.join()


def lint_says(where):
    done = subprocess.run((EPCTX, "lint", "--json", where), stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, timeout=60, check=False)
    return [one["id"] + " " + one["message"] for file in json.loads(done.stdout)["files"]
            for one in file["findings"] if one["severity"] == "error"]


def judge(kind, make, changes):
    agreed = 0
    for name, change in (("the folder itself", lambda f: None),) + changes:
        folder, where = make(), os.path.join(FOLDER, "case")
        change(folder)
        write(folder, where)
        refused, errors = package_says(where), lint_says(where)
        if bool(refused) == bool(errors):
            agreed += 1
        else:
            print("FAIL %s: %s: lint: %s; ORT GenAI: %s" %
                  (kind, name, "; ".join(errors) or "no error", refused[:300] or "it generates"))
    print("%s %s: %d of %d folders judged as by ORT GenAI" %
          ("ok" if agreed == len(changes) + 1 else "FAIL", kind, agreed, len(changes) + 1))
    return agreed == len(changes) + 1


def main():
    onnx.checker.check_model(decoder())
    good = judge("stages", pipeline, KEYS + STAGE)
    good = judge("one model", one_model, KEYS + WHOLE) and good
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
