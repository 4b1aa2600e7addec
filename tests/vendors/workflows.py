"""What is not about one context model: options at load, several models, two EPs in one model, EPs
that write no contexts."""
import json
import os
import re
import shutil
import subprocess
import sys

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
    """Compiled together, with and without sharing, and with weights in files, to which an EP may
    refer; the last is loaded after the others."""
    for words, name in ([], "sharing"), (["--no-share"], "no sharing"), ([], "sharing, data"):
        place = os.path.join(folder, name)
        os.makedirs(place)
        for model in models:
            shutil.copy(model, place)
        inputs = [os.path.join(place, os.path.basename(m)) for m in models]
        for model in inputs if "data" in name else []:
            bench.epctx("init", "--external", "--name", stem(model) + ".data", "--in-place", model)
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


# -- compiled when needed, and many --

FLEET = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "fleet",
                     "fleet.py")


def loads_equal(bench, ep, column, case, made, outputs):
    """The plain application gets the bits of what the tool's `compile` wrote."""
    said, got = bench.app(ep, made) if os.path.exists(made) else ({"text": "no model"}, None)
    bench.verdict(ep.id, column, case, same(got, outputs), said.get("text", "other bits")[-300:])


def needed(bench, ep, contexts, folder):
    """compile --if-needed: once, then not again, and again when the model changes."""
    for model, _, outputs in contexts:
        place = os.path.join(folder, stem(model))
        os.makedirs(place)
        here = shutil.copy(model, place)
        made = os.path.join(place, stem(model) + "_ctx.onnx")
        words = ["compile", "--if-needed", *ep.words(), here]
        for want in ("compiled: there is no", "up to date"):
            code, text = bench.epctx(*words)
            bench.verdict(ep.id, "if needed", f"{stem(model)} {want.split(':')[0]}",
                          code == 0 and want in text, text[-300:])
        loads_equal(bench, ep, "if needed", f"{stem(model)} if needed", made, outputs)
        bench.epctx("set", "--in-place", here, "model:producer_version=other")
        code, text = bench.epctx(*words)
        bench.verdict(ep.id, "if needed", f"{stem(model)} compiled again",
                      code == 0 and "compiled again: " in text, text[-300:])
        loads_equal(bench, ep, "if needed", f"{stem(model)} again", made, outputs)


def fleet(bench, ep, models, contexts, folder):
    """All models by examples/fleet: what `compile` makes it makes, of others it says why not."""
    def run(*words):
        return subprocess.run([sys.executable, "-B", FLEET, *words], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600,
                              check=False).stdout.decode("utf-8", "replace")
    os.makedirs(folder)
    words = ep.words()
    manifest = os.path.join(folder, "fleet.toml")
    with open(manifest, "w", encoding="utf-8") as out:
        out.write(f"epctx = {json.dumps(bench.tool)}\n")
        out.write("".join(f"[[model]]\npath = {json.dumps(m)}\n" for m in models))
        out.write(f"[[ep]]\nname = \"it\"\nlibrary = {json.dumps(words[1])}\n"
                  f"ort = {json.dumps(os.environ.get('EPCTX_ORT_LIBRARY', ''))}\n"
                  f"options = {json.dumps(words[2:])}\n")
    plan = os.path.join(folder, "plan")
    text = run("plan", manifest, "-o", plan)
    for number in range(len(models)):
        text += run("job", plan, str(number))
    try:
        rows = json.loads(run("report", plan, "--json"))["jobs"]
    except ValueError:
        bench.verdict(ep.id, "fleet", "report", False, text[-300:])
        return
    outputs = {stem(c[0]): c[2] for c in contexts}
    for row in rows:
        name = row["name"].split("/", 1)[1]
        if name not in outputs:
            bench.verdict(ep.id, "fleet", f"{name} fleet", row["state"] == "failed" and
                          bool(row["why"]), f"{row['state']}, which `compile` refuses")
            continue
        made = os.path.join(plan, "out", row["name"], f"{name}_ctx.onnx")
        loads_equal(bench, ep, "fleet", f"{name} fleet", made, outputs[name])


# -- two models of one EP become one --

def ends(model):
    graph = onnx.load(model, load_external_data=False).graph
    return [i.name for i in graph.input], [o.name for o in graph.output]


# What the tool may say to it: of CPU nodes, and of nodes that share one of several contexts.
REFUSED = "convert one of them", "only the EP knows which one"


def judged(bench, ep, case, row, result, made, wanted, groups):
    """What was made runs, gives what its parts gave, and lint has nothing against it."""
    code, text = result
    if code != 0:
        bench.verdict(ep.id, row, case, any(t in text for t in REFUSED),
                      f"refused: {text[-300:]}")
        return False
    said, got = bench.app(ep, made, groups=groups)
    bench.verdict(ep.id, row, case, same(got, wanted), said.get("text", "other bits")[-300:])
    code, text = bench.epctx("lint", *ep.lint, made)
    bench.verdict(ep.id, "lint", case + " lint", code == 0, text[-300:])
    return True


def lose(bench, made, parts):
    """Renames the binaries of a model; where it has one, those of its parts come beside it."""
    _, text = bench.epctx("info", made)
    place, names = os.path.dirname(made), set(re.findall(r"main, in the file '([^']*)'", text))
    for i, name in enumerate(sorted(names)):
        os.rename(os.path.join(place, name), os.path.join(place, f"lost{i}.bin"))
    for i, part in enumerate(parts if len(names) == 1 else []):
        folder = os.path.dirname(part)
        for name in os.listdir(folder):
            if name.endswith(".bin"):
                shutil.copy(os.path.join(folder, name), os.path.join(place, f"of{i}_{name}"))


def joined(bench, ep, contexts, folder):
    """The first context model and the last, (model, context model, outputs), merged: in files and
    embedded; then embedded, extracted, taken apart, and repaired when its binaries have got other
    names and those of the parts lie beside them."""
    pair = sorted((contexts[0], contexts[-1]), key=lambda c: max(ends(c[1])[0]))
    words = [] if "merge" in ep.refused else ["--prefix", "a_,b_"]  # fixed names stay
    groups = [len(ends(c[1])[0]) for c in pair]
    both, second = pair[0][2] + pair[1][2], pair[1][2]
    for mode in "file", "embedded":
        place = os.path.join(folder, mode)
        parts = [bench.copied(c[1], os.path.join(place, str(i)), "ort_ctx*")
                 for i, c in enumerate(pair)]
        for part in parts if mode == "embedded" else []:
            bench.epctx("embed", part, "--in-place")
        made, last = os.path.join(place, "made_ctx.onnx"), os.path.join(place, "last_ctx.onnx")
        case = f"{stem(pair[0][0])} and {stem(pair[1][0])} {mode}"
        if not judged(bench, ep, f"{case} joined", "merge",
                      bench.epctx("merge", *parts, *words, "-o", made), made, both, groups):
            continue
        there = "extract" if mode == "embedded" else "embed"
        judged(bench, ep, f"{case} joined {there}", there,
               bench.epctx(there, made, "-o", last), last, both, groups)
        names = ends(made)[1][-len(second):]
        part = os.path.join(place, "part_ctx.onnx")
        judged(bench, ep, f"{case} joined split", "split",
               bench.epctx("split", made, "--outputs", ",".join(names), "-o", part), part, second,
               [])
        if mode == "file" and not ep.nameless:
            lose(bench, made, parts)
            judged(bench, ep, f"{case} joined repair", "repair",
                   bench.epctx("repair", made, *ep.lint, "--in-place"), made, both, groups)


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
    code, text = bench.epctx("lint", *one[0].lint, *other[0].lint, made)
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
    runs(bench, ep, models)


def runs(bench, ep, models):
    """The models themselves: the tool's `run` ends as the application does, with a free dimension
    of 1."""
    for model in models:
        _, got = bench.app(ep, model, folder=bench.work, sizes=[1])
        code, text = bench.epctx("run", *ep.words(), model)
        bench.verdict(ep.id, "run", f"{stem(model)} run", (code == 0) == (got is not None),
                      text[-300:])
