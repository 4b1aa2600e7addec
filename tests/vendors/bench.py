#!/usr/bin/python3
"""Real vendors' EPs judge what the tool does and says.

    tests/vendors/bench.py EPCTX WORK MODEL... [--ep ID...] [--report FILE]

WORK/said.log gets what EPs and ONNX Runtime said where something failed; unexplained.py reads it.

For each EP that runs here (eps.py) and each model: compiled by `epctx compile --ep` and by ONNX
Runtime's own ModelCompiler, in both embed modes; loaded by a plain application (app.py), equal
bits, and near to the CPU EP. Then every editing command, loaded again, equal bits. Then damage:
what lint says beside what the EP does; and workflows.py. Disagreements must stand in known.txt, and
what stands there must be seen. Prints lines of a test script.
"""
import argparse
import concurrent.futures
import datetime
import fnmatch
import json
import os
import re
import shutil
import subprocess
import sys
import threading

import numpy
import onnx
import onnxruntime

import damages
import edits
import eps
import workflows
from outputs import near, same

HERE = os.path.dirname(os.path.abspath(__file__))
APP = os.path.join(HERE, "app.py")
LIMIT = 600  # seconds, of the compilation of a large model beside other work
# Beside a context model, of its copies.
FOLDERS = ("payloads", "edits", "damage", "unstamped", "load*")


class Bench:
    """What all have in common: the tool, a folder, what was found."""

    def __init__(self, tool, work, sample):
        self.tool, self.work = tool, work
        self.sample = sample  # one model for damage and edits
        self.failed, self.seen = 0, set()
        self.known = known()
        self.cells = {}  # (ep, column) -> [good, bad]
        self.lock = threading.Lock()  # EPs are tried side by side

    def say(self, line):
        print(line, flush=True)

    def count(self, ep, column, good):
        self.cells.setdefault((ep, column), [0, 0])[0 if good else 1] += 1

    def verdict(self, ep, column, name, good, text=""):
        """A case: `name` is what known.txt calls it."""
        key = f"{ep} {name}"
        with self.lock:
            self.told(ep, column, key, good, text)

    def told(self, ep, column, key, good, text):
        self.count(ep, column, good)
        if good:
            self.say(f"ok {key}")
        elif self.entry(key):
            self.say(f"ok {key} (known: {self.known[self.entry(key)]})")
        else:
            self.failed += 1
            self.say(f"FAIL {key}: {text}")

    def entry(self, key):
        """Its entry in known.txt."""
        for pattern in self.known:
            if fnmatch.fnmatchcase(key, pattern):
                self.seen.add(pattern)
                return pattern
        return None

    def epctx(self, *words):
        """Exit code and what was printed."""
        try:
            done = subprocess.run([self.tool, *words], stdin=subprocess.DEVNULL, timeout=LIMIT,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        except subprocess.TimeoutExpired:
            return -1, f"no end after {LIMIT} s"
        return done.returncode, done.stdout.decode("utf-8", "replace").strip()

    def copied(self, context, place, *without):
        """The context model in a new folder, with the files beside it."""
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(os.path.dirname(context), place, ignore=shutil.ignore_patterns(
            "job*", *FOLDERS, *without))
        return os.path.join(place, os.path.basename(context))

    def app(self, eps_of_it, model, **more):
        """What the plain application saw, and its outputs in order; None: it failed. eps_of_it:
        one of eps.ALL, or jobs of several."""
        folder = more.pop("folder", None) or os.path.dirname(model)
        jobs = eps_of_it if isinstance(eps_of_it, list) else [eps_of_it.job()]
        job = {"eps": jobs, "session": {}, "first": [], "groups": [], "model": model,
               **more}
        stem = os.path.join(folder, f"job{next(COUNTER)}")
        job.setdefault("run", stem + ".npz")
        with open(stem + ".json", "w", encoding="utf-8") as file:
            json.dump(job, file)
        packages = {"PYTHONPATH": jobs[0]["ort"]} if jobs[0]["ort"] else {}
        try:
            done = subprocess.run([sys.executable, "-B", APP, stem + ".json"], timeout=LIMIT,
                                  env={**os.environ, **packages},
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, check=False)
        except subprocess.TimeoutExpired:
            return {"ok": False, "text": f"no end after {LIMIT} s"}, None
        text = done.stdout.decode("utf-8", "replace")
        if "\"ok\": true" not in text:
            with open(os.path.join(self.work, "said.log"), "a", encoding="utf-8") as file:
                file.write(text + "\n")
        last = text.strip().split("\n")[-1]
        if not last.startswith("{"):
            return {"ok": False, "text": f"the application ended with {done.returncode}: "
                                         f"{text[-300:]}"}, None
        said = json.loads(last)
        if not said["ok"] or job.get("compile"):
            return said, None
        with numpy.load(job["run"]) as outputs:
            return said, [outputs[k] for k in sorted(outputs.files)]


def counter():
    at = 0
    while True:
        at += 1
        yield at


COUNTER = counter()


def known():
    """The known disagreements: "EP,EP CASE: why", a line each; * is any model or target."""
    out = {}
    with open(os.path.join(HERE, "known.txt"), encoding="utf-8") as file:
        for line in file:
            line = line.strip()
            if line and not line.startswith("#"):
                key, why = line.split(": ", 1)
                eps_of_it, case = key.split(" ", 1)
                out.update({f"{ep} {case}": why for ep in eps_of_it.split(",")})
    return out


def epnodes(model):
    graph = onnx.load(model, load_external_data=False).graph
    return [n for n in graph.node if n.op_type == "EPContext"]


def compile_both(bench, ep, model, embed, folder):
    """The tool's context model with its outputs, when both compiled and agree."""
    os.makedirs(folder)
    name = os.path.splitext(os.path.basename(model))[0]
    mode = "embedded" if embed else "file"
    ours, theirs = os.path.join(folder, f"{name}_ctx.onnx"), os.path.join(folder, "ort_ctx.onnx")
    code, text = bench.epctx("compile", model, *ep.words(), *(["--embed"] if embed else []),
                             "-o", ours)
    said, _ = bench.app(ep, model, compile=theirs, embed=embed, folder=folder)
    wrote = said["ok"] and bool(epnodes(theirs))  # where it takes no node ORT writes a plain model
    case = f"{name} {mode} compile"
    if code != 0:
        loads, _ = bench.app(ep, theirs) if wrote else ({"ok": False}, None)
        bench.verdict(ep.id, "compile", case, not loads["ok"],
                      f"the tool refused, ONNX Runtime did not: {text[-300:]}")
        return None
    loads, got = bench.app(ep, ours)
    if not loads["ok"]:
        bench.verdict(ep.id, "compile", case, False,
                      f"compiled, but does not load: {loads.get('text', '')[-300:]}")
        return None
    _, reference = bench.app(ep, theirs) if wrote else (None, None)
    if reference is not None and not same(got, reference):
        bench.verdict(ep.id, "compile", case, False, "other bits than ModelCompiler's")
        return None
    bench.verdict(ep.id, "compile", case, True)
    # ORT's own kernels for uint8 times int8 saturate by default on processors without VNNI.
    exact = {"session.x64quantprecision": "1"}
    sizes = [loads["size"]]
    _, cpu = bench.app(eps.CPU, model, folder=folder, sizes=sizes, session=exact)
    if cpu is None:  # with which it refuses some models
        _, cpu = bench.app(eps.CPU, model, folder=folder, sizes=sizes)
    bench.verdict(ep.id, "numbers", f"{name} {mode} beside the CPU",
                  near(got, cpu), "far from the CPU EP")
    code, text = bench.epctx("lint", *ep.lint, ours)
    bench.verdict(ep.id, "lint", f"{name} {mode} lint", code == 0, text[-400:])
    return ours, got


def is_inside(node):
    """Its graph is in a context that another node embeds."""
    number = {a.name: a.i for a in node.attribute}
    return number.get("main_context") == 0 and number.get("embed_mode") == 1


def may_refuse(ep, context, name):
    """What the tool may say of an edit that the EP cannot have of such a model."""
    nodes = epnodes(context)
    if name in ("prefix", "merge") and len(nodes) > 1 and ep.by_node_name:
        return ["graph in it by the node's name", "graph in the binary by this name"]
    if name == "merge" and any(is_inside(n) for n in nodes):
        return ["both would get the same graph"]  # the same model twice
    values = [v for n in nodes for v in (*n.input, *n.output)]
    if name in ("merge", "rename") and any(set(";=") & set(v) for v in values):
        return ["finds the inputs and outputs of a compiled node by name"]
    return []


def edit(bench, ep, model, context, outputs, mode, folder):
    name = os.path.splitext(os.path.basename(model))[0]
    for one in edits.EDITS:
        place = os.path.join(folder, one.__name__)
        here = bench.copied(context, place, "ort_ctx*")
        result = one(bench, ep, model, here, mode)
        if result is None:
            continue
        made, said, wanted = result
        case = f"{name} {mode} {one.__name__}"
        never = one.__name__ in ep.refused
        if made is None or never:
            texts = [ep.refused[one.__name__]] if never else \
                may_refuse(ep, context, one.__name__)
            good = made is None and any(t in said for t in texts)
            bench.verdict(ep.id, one.__name__, case, good,
                          f"{'not ' if made else ''}refused: {said[-300:]}")
            continue
        inputs = len(onnx.load(context, load_external_data=False).graph.input)
        groups = [inputs, inputs] if wanted else []
        loads, got = bench.app(ep, made, folder=place, groups=groups)
        want = wanted(outputs) if wanted else outputs
        bench.verdict(ep.id, one.__name__, case, same(got, want),
                      loads.get("text", "other bits")[-300:])
        shutil.rmtree(place)


def damage(bench, ep, model, context, outputs, other, kind="damage"):
    """Of what the tool compiled; "unstamped": of the binary of what ORT did, which has no stamp;
    "payloads": of contexts in several nodes."""
    name = os.path.splitext(os.path.basename(model))[0]
    folder = os.path.join(os.path.dirname(context), kind)
    kinds = damages.PAYLOADS if kind == "payloads" else \
        [d for d in damages.ALL if kind == "damage" or d.name.startswith("binary ")]

    def judge(one):
        place = os.path.join(folder, one.name)
        here = bench.copied(context, place)
        if not one.apply(here, other):
            shutil.rmtree(place)
            return None
        code, text = bench.epctx("lint", *ep.lint, here)
        loads, got = bench.app(ep, here, folder=place)
        right = same(got, outputs)
        shutil.rmtree(place)
        return one, code, text, right, loads.get("text", "" if got is None else "other bits")

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for result in pool.map(judge, kinds):
            if result is None:
                continue
            one, code, text, right, said = result
            case = f"{name} {kind} {one.name}"
            policy = one.policy
            if right and code != 0 and re.findall(r"error (E\d+)", text) == ["E069"]:
                policy = "other bytes than the stamp's are refused, whatever they are"
            if policy:
                bench.count(ep.id, "policy", True)
                bench.say(f"ok {ep.id} {case} (policy: {policy})")
            elif right and code != 0:
                bench.verdict(ep.id, "false", case, False, f"lint accuses what works: {text[:300]}")
            elif not right and code == 0:
                bench.verdict(ep.id, "missed", case, False, f"lint finds nothing: {said[-200:]}")
            else:
                bench.verdict(ep.id, "agree", case, True)


def one_ep(bench, ep, models):
    """The context models in files: (model, context model, outputs)."""
    contexts = []
    if not ep.writes:
        workflows.writes_none(bench, ep, models)
        return contexts
    for model in models:
        if os.path.basename(model) in ep.leaves:
            bench.say(f"skip {ep.id} {os.path.basename(model)}: the EP takes minutes each time")
            continue
        for embed in (False, True):
            mode = "embedded" if embed else "file"
            folder = os.path.join(bench.work, ep.id, os.path.basename(model), mode)
            made = compile_both(bench, ep, model, embed, folder)
            if made is None:
                continue
            if not ep.brief and (not bench.sample or model == models[0]):
                edit(bench, ep, model, *made, mode, os.path.join(folder, "edits"))
            if not embed:
                contexts.append((model, *made))
            elif os.path.basename(model) == "parts.onnx" and not ep.brief:
                damage(bench, ep, model, *made, None, "payloads")
    if ep.ort:
        workflows.runs(bench, ep, models)
    if ep.brief:
        return contexts
    for i, (model, context, outputs) in enumerate(contexts[:1 if bench.sample else 2]):
        other = contexts[(i + 1) % len(contexts)][1]
        damage(bench, ep, model, context, outputs, other)
        theirs = os.path.join(os.path.dirname(context), "ort_ctx.onnx")
        if os.path.exists(theirs):
            damage(bench, ep, model, theirs, outputs, other, "unstamped")
    if len(contexts) > 1:
        workflows.joined(bench, ep, contexts, os.path.join(bench.work, ep.id, "joined"))
    if contexts:
        workflows.loads(bench, ep, contexts[0][1])
        workflows.several(bench, ep, [c[0] for c in contexts[:2]],
                          os.path.join(bench.work, ep.id, "several"))
        few = contexts[:1 if bench.sample else 5]
        workflows.needed(bench, ep, few, os.path.join(bench.work, ep.id, "needed"))
        few = [m for m in models if os.path.basename(m) not in ep.leaves][:15]
        workflows.fleet(bench, ep, few, contexts, os.path.join(bench.work, ep.id, "fleet"))
    return contexts


VERDICTS = ("agree", "missed", "false", "policy")  # on damage


def cell(bench, ep, row):
    if row not in VERDICTS:
        good, bad = bench.cells.get((ep, row), [0, 0])
        return f"{good} of {good + bad}" if good + bad else "-"
    if not any((ep, r) in bench.cells for r in VERDICTS):
        return "-"
    return str(sum(bench.cells.get((ep, row), [0, 0])))


def report(bench, chosen, models):
    """What was seen, in Markdown."""
    columns, rows = [e.id for e in chosen] + ["two EPs"], []
    for _, row in bench.cells:
        if row not in rows and row not in VERDICTS:
            rows.append(row)
    rows += VERDICTS
    out = [f"Seen on {datetime.date.today()} with ONNX Runtime {onnxruntime.__version__} and "
           f"{len(models)} models.", "", "| EP | version |", "|---|---|"]
    out += [f"| {e.id} | {e.version} |" for e in chosen]
    out += ["", "| | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for row in rows:
        out.append(f"| {row} | " + " | ".join(cell(bench, c, row) for c in columns) + " |")
    return "\n".join(out) + "\n"


def into_guide(path, text):
    with open(path, encoding="utf-8") as file:
        guide = file.read()
    before, rest = guide.split("<!-- bench -->\n", 1)
    after = rest.split("<!-- end -->\n", 1)[1]
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"{before}<!-- bench -->\n\n{text}\n<!-- end -->\n{after}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool")
    parser.add_argument("work")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--ep", action="append")
    parser.add_argument("--report")
    parser.add_argument("--guide", help="the page whose table is replaced")
    parser.add_argument("--sample", action="store_true", help="one model for edits and damage")
    args = parser.parse_args()
    bench = Bench(os.path.abspath(args.tool), os.path.abspath(args.work), args.sample)
    os.makedirs(bench.work, exist_ok=True)
    parts = os.path.join(bench.work, "parts.onnx")
    workflows.parts_model(parts)
    models = [os.path.abspath(m) for m in args.models] + [parts]
    chosen = []
    for ep in eps.ALL:
        if args.ep and ep.id not in args.ep:
            continue
        why = ep.missing(bench)
        if why:
            bench.say(f"skip {ep.id}: {why}")
        else:
            chosen.append(ep)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        made = list(pool.map(lambda ep: one_ep(bench, ep, models), chosen))
    firsts = [(ep, *m[0][1:]) for ep, m in zip(chosen, made) if m and not ep.brief]
    for i, one in enumerate(firsts):
        for other in firsts[:i]:
            workflows.two_eps(bench, one, other, os.path.join(
                bench.work, f"{one[0].id} and {other[0].id}"))
    stems = ["*"] + [workflows.stem(m) for m in models]
    for pattern in sorted(bench.known):
        of_these = pattern.split(" ")[1] in stems and any(
            fnmatch.fnmatchcase(e.id, pattern.split(" ", 1)[0]) for e in chosen)
        if of_these and pattern not in bench.seen:
            bench.say(f"FAIL {pattern}: it stands in known.txt and was not seen: take it off")
            bench.failed += 1
    if args.report:
        with open(args.report, "w", encoding="utf-8") as file:
            file.write(report(bench, chosen, models))
    if args.guide:
        into_guide(args.guide, report(bench, chosen, models))
    return 1 if bench.failed else 0


if __name__ == "__main__":
    sys.exit(main())
