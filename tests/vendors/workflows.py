"""What is not about one context model: options at load, several models, two EPs in one model, EPs
that write no contexts."""
import os
import shutil

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

from outputs import near, same


def stem(path):
    return os.path.splitext(os.path.basename(path))[0]


def parts_model(path):
    """Two halves with an operator between that NPUs leave to the CPU."""
    random = numpy.random.default_rng(2)

    def weight(name, *dims):
        return numpy_helper.from_array(random.uniform(-1, 1, dims).astype("float32"), name)

    nodes = [helper.make_node("MatMul", ["x", "w1"], ["a"]), helper.make_node("Relu", ["a"], ["b"]),
             helper.make_node("Reshape", ["b", "s1"], ["c"]), helper.make_node("Det", ["c"], ["d"]),
             helper.make_node("MatMul", ["d", "w2"], ["e"]), helper.make_node("Relu", ["e"], ["y"])]
    graph = helper.make_graph(
        nodes, "parts", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 16])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 8])],
        [weight("w1", 16, 64), weight("w2", 4, 8),
         numpy_helper.from_array(numpy.array([1, 4, 4, 4], "int64"), "s1")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)],
                                ir_version=8), path)


# -- options at load --

SESSION = [("ep.share_ep_contexts", "1"), ("ep.context_enable", "1"),
           ("ep.context_embed_mode", "1"), ("ep.context_file_path", "/nowhere/else_ctx.onnx"),
           ("ep.context_node_name_prefix", "p_"), ("session.disable_cpu_ep_fallback", "1"),
           ("session.no_such_key", "1"), ("session.use_env_allocators", "1")]


def loads(bench, ep, context):
    """Under each option the tool's `run` ends as the application does."""
    for i, (key, value) in enumerate(SESSION + ep.wrong):
        if i < len(SESSION):
            job, session = ep.job(), {key: value}
            words = [*ep.words(), "--option", f"{key}={value}"]
        else:
            job, session, words = ep.job(**{key: value}), {}, ep.words(**{key: value})
        place = os.path.join(os.path.dirname(context), f"load{i}")
        here = bench.copied(context, place)
        said, _ = bench.app([job], here, session=session)
        here = bench.copied(context, place)  # what was written meanwhile is gone
        code, text = bench.epctx("run", *words, here)
        shutil.rmtree(place)
        bench.verdict(ep.id, "options at load", f"{stem(context)} load with {key}={value}",
                      (code == 0) == said["ok"], "the application: " +
                      f"{said.get('text', 'runs')[-200:]}; the tool: {text[-300:]}")


# -- several models --

def several(bench, ep, models, folder):
    """Compiled together, with and without sharing; the last is loaded after the others."""
    for words, name in ([], "sharing"), (["--no-share"], "no sharing"):
        place = os.path.join(folder, name)
        os.makedirs(place)
        for model in models:
            shutil.copy(model, place)
        inputs = [os.path.join(place, os.path.basename(m)) for m in models]
        code, text = bench.epctx("compile", *ep.words(), *words, *inputs)
        made = [os.path.join(place, stem(m) + "_ctx.onnx") for m in models]
        case = f"{len(models)} models, {name}"
        if code != 0:
            # What the EP cannot have must be told, with what to do.
            bench.verdict(ep.id, "several models", case,
                          code != 2 and "--no-share" in text and not words,
                          f"refused: {text[-300:]}")
            continue
        said, got = bench.app(ep, made[-1], first=made[:-1],
                              session={} if words else {"ep.share_ep_contexts": "1"})
        _, alone = bench.app(ep, inputs[-1])
        bench.verdict(ep.id, "several models", case, near(got, alone),
                      said.get("text", "other numbers than the model itself")[-300:])


# -- two EPs --

def two_eps(bench, one, other, folder):
    """Merged from (EP, context model, its outputs) of each; both EPs load their own node."""
    os.makedirs(folder)
    parts = []
    for i, (_, context, _) in enumerate((one, other)):
        parts.append(bench.copied(context, os.path.join(folder, str(i))))
    made = os.path.join(folder, "made_ctx.onnx")
    code, text = bench.epctx("merge", *parts, "--prefix", "a_,b_", "-o", made)
    case = f"{one[0].id} and {other[0].id}"
    if code != 0:
        bench.verdict("two EPs", "merge", case, False, f"refused: {text[-300:]}")
        return
    groups = [len(onnx.load(p, load_external_data=False).graph.input) for p in parts]
    said, got = bench.app([one[0].job(), other[0].job()], made, groups=groups)
    bench.verdict("two EPs", "merge", case, same(got, one[2] + other[2]),
                  said.get("text", "other bits")[-300:])
    code, text = bench.epctx("lint", made)
    bench.verdict("two EPs", "lint", case + " lint", code == 0, text[-300:])
    code, text = bench.epctx("run", *one[0].words(), *other[0].words(), made)
    bench.verdict("two EPs", "run", case + " run", code == 0, text[-300:])


# -- EPs that write no contexts --

def writes_none(bench, ep, models):
    for model in models:
        made = os.path.join(bench.work, f"{ep.id}_{stem(model)}_ctx.onnx")
        said, _ = bench.app(ep, model, compile=made + ".ort", embed=False, folder=bench.work)
        code, text = bench.epctx("compile", model, *ep.words(), "-o", made)
        nodes = onnx.load(made + ".ort", load_external_data=False).graph.node if said["ok"] else []
        bench.verdict(ep.id, "compile", f"{stem(model)} refused",
                      code != 0 and not os.path.exists(made) and
                      all(n.op_type != "EPContext" for n in nodes), text[-300:])
        _, got = bench.app(ep, model, folder=bench.work)
        code, text = bench.epctx("run", *ep.words(), model)
        bench.verdict(ep.id, "run", f"{stem(model)} run", (code == 0) == (got is not None),
                      text[-300:])
