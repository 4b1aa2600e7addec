#!/usr/bin/python3
"""All that epctx prints with --json, judged by examples/epctx/schema.

    tests/judge/schema.py EPCTX FOLDER

Runs every command that has --json, on models that are good, broken or have hostile names, and so
that it fails in every way. Each output is one object of its schema; a failure comes with an object
that tells what standard error tells. What needs ONNX Runtime is judged in tests/test_ort.sh.
"""
import json
import os
import re
import shutil
import struct
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cli  # noqa: E402
import json_schema  # noqa: E402
import json_values  # noqa: E402
import lint  # noqa: E402
from cli import Case, equal, save  # noqa: E402
import make_model  # noqa: E402
from make_model import make  # noqa: E402

WITH_ORT = {"verify", "bench", "devices"}
# Names that a terminal, a page or a reader of JSON could take for something else.
HOSTILE = ("\x1b[31mred\x07", 'q"uo\\te', "<script>\u2028\u202e", "line\nline\ttab",
           "\u00e4\U0001f600", "x" * 3000)
READERS = (("info",), ("ls",), ("lint",), ("lint", "--hints"), ("scan",), ("check",),
           ("check", "--fresh"), ("check", "--chip", "SM8550"), ("dump",), ("dump", "--values"),
           ("get", "--node", "#1", None, "context"))


class Judge:
    def __init__(self, tool):
        self.tool = os.path.abspath(tool)
        self.done = {}  # command -> whether it ever printed an object of its own
        self.members = {}  # schema -> names that were seen

    def note(self, schema, answer):
        seen = self.members.setdefault(schema, set())
        if isinstance(answer, dict):
            seen.update(answer)
        for one in answer.values() if isinstance(answer, dict) else answer:
            if isinstance(one, (dict, list)):
                self.note(schema, one)

    def run(self, *arguments, code=None, stream="stdout", **how):
        """Runs a command with --json; its object, which is judged."""
        command = [self.tool, arguments[0], "--json", *arguments[1:]]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              stdin=how.pop("stdin", subprocess.DEVNULL), check=False, **how)
        assert code in (None, done.returncode), (done.returncode, done.stderr)
        assert done.returncode >= 0, f"signal {-done.returncode}"
        out = done.stdout if stream == "stdout" else done.stderr[done.stderr.index(b"{\n"):]
        answer = json_schema.read(out)
        json_schema.judge(answer)
        equal(answer["command"], arguments[0])
        json_values.judge(answer, arguments)
        # What people read is the same.
        text = done.stderr.decode(errors="replace")
        told = [line for line in text.splitlines() if line.startswith("epctx: ") and
                not line.startswith(("epctx: warning: ", "epctx: note: "))]
        assert not told or "failures" in answer, (told, answer)
        for failure in answer.get("failures", ()):
            start = re.split(r"[^ -~]|\\", failure["message"], maxsplit=1)[0]
            assert "epctx: " + start in text, (failure, text)
            assert failure["cure"] is None or failure["cure"][:40] in text, (failure, text)
        if "exit_code" in answer:
            equal(answer["exit_code"], done.returncode)
        else:
            self.done[arguments[0]] = True
            self.note(json_schema.name_of(answer), answer)
            if done.returncode == 0:
                assert "failures" not in answer, answer
        return answer

    def version(self, code, environment):
        done = subprocess.run([self.tool, "--version", "--json"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, env=environment, check=False)
        equal((done.returncode, done.stderr == b""), (code, code == 0))
        answer = json_schema.read(done.stdout)
        json_schema.judge(answer)
        self.note("version.json", answer)
        return answer

    def fails(self, name, code, status, *arguments, has="", cure=None, **members):
        """A command that fails, and what is told of it."""
        with Case(name):
            answer = self.run(*arguments, code=code)
            assert "failures" in answer, answer
            first = answer["failures"][0]
            equal(first["status"], status)
            assert has in first["message"], first
            assert "\n" not in first["message"], first
            if cure is not None:
                assert cure in (first["cure"] or ""), first
            for key, value in members.items():
                equal(first[key], value)


def models():
    """Models by kind; the good ones can be read."""
    cli.make_models()
    good = ["plain.onnx", "model_ctx.onnx", "lost_ctx.onnx", "two_ctx.onnx", "bytes_ctx.onnx",
            "bytes4_ctx.onnx", "floats.onnx"]
    for number, name in enumerate(HOSTILE):
        model = cli.context_model()
        for node in model.graph.node:
            node.name = name + node.name
            for key in "notes", "partition_name", "hardware_architecture", "onnx_model_filename":
                lint.put(node, key, name)
            lint.put(node, "surprise" + name[:200], name)
        lint.put(model.graph.node[0], "ep_cache_context", name + ".bin")
        model.graph.name = model.producer_name = name
        model.metadata_props.add(key=name, value=name)
        save(model, f"hostile{number}_ctx.onnx")
        good.append(f"hostile{number}_ctx.onnx")
    wrong = cli.context_model()
    lint.put(wrong.graph.node[0], "main_context", "text")
    lint.put(wrong.graph.node[1], "embed_mode", 7)
    wrong.graph.node[1].attribute.add(name="real", type=1, f=1.5)
    save(wrong, "wrong_ctx.onnx")
    good.append("wrong_ctx.onnx")
    for kind in "extras", "partly":
        save(make(kind), f"{kind}.onnx")
        good.append(f"{kind}.onnx")
    with open("model_ctx.onnx", "rb") as source:
        data = source.read()
    broken = {"cut.onnx": data[:-40], "empty.onnx": b"", "text.onnx": b"no model\n" * 100,
              "zeros.onnx": bytes(500)}
    for name, content in broken.items():
        with open(name, "wb") as out:
            out.write(content)
    return good, [*broken, "missing.onnx", "folder.onnx"]


def readers(judge, good, broken):
    for command in READERS:
        with Case("read: " + " ".join(one or "MODEL" for one in command)):
            for model in good + broken:
                arguments = [model if one is None else one for one in command]
                if None not in command:
                    arguments.append(model)
                answer = judge.run(*arguments)
                if model in broken and command[0] != "ls":
                    assert answer.get("failures") or answer.get("errors"), (model, answer)
    with Case("diff"):
        for model in good:
            judge.run("diff", model, "plain.onnx")
            judge.run("diff", model, "model_ctx.onnx")
            judge.run("weights", model, "plain.onnx")
    with Case("several files, a folder"):
        os.makedirs("delivery", exist_ok=True)
        for model in good:
            shutil.copy(model, "delivery")
        answer = judge.run("lint", *good, *broken, "delivery")
        assert len(answer["files"]) > 2 * len(good), len(answer["files"])
        equal(sorted(one["file"] for one in answer["failures"]), sorted([*broken]))
        with open("ignored", "w", encoding="utf-8") as out:
            out.write("E004 *_ctx.onnx known\n")
        judge.run("lint", "--ignore", "ignored", "wrong_ctx.onnx")
        with open("unused", "w", encoding="utf-8") as out:
            out.write("E004 nowhere.onnx long gone\n")
        answer = judge.run("lint", "--ignore", "unused", "plain.onnx")
        equal(answer["files"][1]["findings"][0]["line"], 1)
        for command in ("info",), ("check",), ("check", "--fresh"):
            answer = judge.run(*command, *good, "delivery")
            assert len(answer["files"]) > len(good), len(answer["files"])
    with Case("several files are changed"):
        shutil.copy("model_ctx.onnx", "several_ctx.onnx")
        shutil.copytree("delivery", "deliveries", dirs_exist_ok=True)
        for command in "embed", "extract", "stamp":
            answer = judge.run(command, "--dry-run", "several_ctx.onnx", "deliveries")
            assert "several_ctx.onnx" in [one["file"] for one in answer["models"]] or \
                answer["failures"], answer
    with Case("tables"):
        assert judge.run("lint", "--rules", code=0)["rules"]
        with open("until.facts", "w", encoding="utf-8") as out:
            out.write("facts: 1\n\ndefault: all\nwho: W\nseen: bench\nfrom: F\ndate: 2026-11\n\n"
                      "rule: E071; until: ort 99\nopset: ai.onnx 1; since: ort 98\n"
                      "opset: ai.onnx 99; since: ort 98\n")
        rules = judge.run("lint", "--rules", code=0,
                          env={**os.environ, "EPCTX_FACTS": "until.facts"})["rules"]
        assert [one["until"] for one in rules if one["id"] == "E071"] == ["ort 99"]
        judge.run("set", "plain.onnx", "-o", "late.onnx", "opset:=98", code=1)
        judge.run("set", "--facts", "until.facts", "plain.onnx", "-o", "late.onnx", "opset:=98",
                  code=0)
        found = judge.run("lint", "--facts", "until.facts", "late.onnx", code=1)["findings"]
        assert [one["until"] for one in found if one["id"] == "E051"] == ["ort 98"], found
        for option in (), ("--errors",), ("--chips",), ("qnn",):
            judge.run("profiles", *option, code=0)
        with open("bad.facts", "w", encoding="utf-8") as out:
            out.write("facts: 1\n\nchip: A; soc_model: x\n")
        answer = judge.run("profiles", "--check", "bad.facts", code=1)
        equal((answer["facts"], answer["found"], len(answer["problems"])), (1, 6, 6))
    with Case("explain"):
        for text in "E022", "6031", "Context binary does not exist: ", "QNN error 5005":
            judge.run("explain", text, code=0)
        judge.run("explain", "\x1b nothing", code=1)
    with Case("a stream"):
        with open("model_ctx.onnx", "rb") as model:
            judge.run("scan", "-", stdin=model, code=0)
        with open("cut.onnx", "rb") as model:
            judge.run("scan", "-", stdin=model, code=1)


def writers(judge):
    """Each of them in earnest and as a dry run: the same list of changes."""

    def both(*arguments, code=0):
        with Case("changes: " + " ".join(arguments)[:60]):
            planned = judge.run(*arguments, "--dry-run", code=code)
            made = judge.run(*arguments, code=code)
            equal(planned["changes"], made["changes"])
            equal((planned["dry_run"], made["dry_run"]), (True, False))
            for file in made["files"]:
                if file["action"] == "write" and "size" in file:
                    equal(os.path.getsize(file["path"]), file["size"])
            return made["changes"]
        return []

    def has(changes, **members):
        with Case(f"a change: {members}"[:70]):
            found = [one for one in changes
                     if all(one.get(key) == value for key, value in members.items())]
            assert found, changes

    changes = both("set", "--node", "part0", "-o", "set.onnx", "model_ctx.onnx", "source=Other",
                   "notes=\x1b", "new:ints=1,2,3", "metadata:k=v", "opset:ai.test=3",
                   "value:x=float32[1,3]", "model:domain=org", "graph:name=g", "graph:outputs=y")
    has(changes, action="set", kind="node", name="part0", attribute="source",
        before="QNNExecutionProvider", after="Other")
    has(changes, kind="metadata", name="k", after="v")
    has(changes, kind="opset", name="ai.test", after="3")
    has(changes, kind="model", attribute="domain", after="org")
    changes = both("unset", "--node", "part0", "-o", "unset.onnx", "set.onnx", "notes", "new",
                   "metadata:k", "opset:ai.test", "model:domain")
    has(changes, action="remove", kind="node", attribute="notes", before="\x1b")
    has(changes, action="remove", kind="metadata", name="k", before="v")
    has(both("rename", "-o", "renamed.onnx", "plain.onnx", "x", "image"), action="rename",
        kind="value", before="x", after="image")
    has(both("rename", "--nodes", "-o", "nodes.onnx", "plain.onnx", "conv", "\u202ec"),
        action="rename", kind="node", before="conv", after="\u202ec")
    has(both("prefix", "--all-nodes", "-o", "prefixed.onnx", "plain.onnx", "p/"), action="rename",
        kind="node", before="conv", after="p/conv")
    with Case("compile"):
        judge.run("compile", "-f", "plain.onnx", code=0)
        judge.run("compile", "-f", "--embed", "-o", "in_ctx.onnx", "plain.onnx", code=0)
        save(make("partly"), "partly.onnx")
        judge.run("compile", "-f", "partly.onnx", code=0)
        for _ in range(2):
            judge.run("compile", "--if-needed", "-o", "needed_ctx.onnx", "plain.onnx", code=0)
        judge.run("compile", "--if-needed", "--embed", "-o", "needed_ctx.onnx", "plain.onnx",
                  code=0)
        judge.run("info", "plain_npu.bin", code=0)
        seeds = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "fuzz",
                             "corpus", "binary")
        binaries = [os.path.join(seeds, name) for name in sorted(os.listdir(seeds))
                    if name not in ("crlf", "utf8", "onnx",
                                    "npu")]  # the last: a header only, no loader takes it
        for path in binaries:
            equal(judge.run("info", path, code=0)["binary"], path)
            judge.run("ls", path)
        equal(len(judge.run("info", "plain.onnx", *binaries, code=0)["files"]), 1 + len(binaries))
        equal(len(judge.run("info", *binaries, "missing.onnx", code=1)["files"]), len(binaries))
        judge.run("set", "-o", "options.onnx", "plain_ctx.onnx",
                  "metadata:epctx.build.QNNExecutionProvider=epctx 2\ndevice cpu\n"
                  "ep_option backend_path=libQnnHtp.so", code=0)
        builds = judge.run("info", "options.onnx", code=0)["builds"]
        equal([build["options"] for build in builds], [[
            {"of": "ep", "key": "backend_path", "value": "libQnnHtp.so", "load": True}]])
        judge.run("check", "--fresh", "plain_ctx.onnx", code=0)
        judge.run("npu-dump", "plain.onnx", code=0)
        judge.run("run", "plain_ctx.onnx", code=0)
    has(both("embed", "-o", "embedded.onnx", "plain_ctx.onnx"), action="embed", kind="node",
        file="plain_npu.bin", size=os.path.getsize("plain_npu.bin"))
    has(both("extract", "-o", "sub_ctx.onnx", "in_ctx.onnx"), action="extract", kind="node")
    with Case("compile --weightless"):
        judge.run("compile", "-f", "--weightless", "-o", "less_ctx.onnx", "plain.onnx", code=0)
    source = make("partly")
    for tensor in source.graph.initializer:
        tensor.raw_data = struct.pack(f"<{len(tensor.float_data)}f", *tensor.float_data)
        del tensor.float_data[:]
    save(source, "source.onnx")
    with Case("weights that are almost the same"):
        near = make("plain")
        near.graph.initializer[0].float_data[0] += 1
        save(near, "near.onnx")
        answer = judge.run("weights", "plain.onnx", "near.onnx", code=0)
        assert [one["reason"] for one in answer["near"]] == ["bytes"], answer
    save(make_model.takes_weights(source), "takes_ctx.onnx")
    has(both("weightless", "-o", "refs_ctx.onnx", "takes_ctx.onnx"), action="extract",
        kind="initializer", name="w", file="source.onnx", size=72)
    shutil.copy("plain_ctx.onnx", "moved_ctx.onnx")
    shutil.copy("plain_npu.bin", "moved.bin")
    with Case("changes: mv"):
        judge.run("set", "--in-place", "moved_ctx.onnx", "ep_cache_context=moved.bin", code=0)
        planned = judge.run("mv", "--dry-run", "moved.bin", "again.bin", "moved_ctx.onnx", code=0)
        made = judge.run("mv", "moved.bin", "again.bin", "moved_ctx.onnx", code=0)
        equal(planned["changes"], made["changes"])
        equal(made["changes"][0]["count"], 1)
    has(both("merge", "-o", "merged.onnx", "plain.onnx", "plain.onnx"), action="rename",
        kind="node", model=2)
    both("split", "--outputs", "c", "-o", "split.onnx", "plain.onnx")
    has(both("wrap", "--profile", "qnn", "--inputs", "x:float32[1,3]",
             "--outputs", "y:float32[1,2]", "-o", "wrapped_ctx.onnx", "model_qnn.bin"),
        action="add", kind="node")
    has(both("stamp", "-o", "stamped_ctx.onnx", "model_ctx.onnx"), action="set", kind="metadata",
        name="epctx.build.QNNExecutionProvider")
    with Case("changes: repair"):
        made = judge.run("repair", "-o", "repaired_ctx.onnx", "wrong_ctx.onnx")
        assert made["changes"] and all("rule" in one for one in made["changes"]), made
    has(both("init", "--external", "--threshold", "0", "--name", "weights.bin", "-o", "init.onnx",
             "plain.onnx"), action="extract", kind="initializer", file="weights.bin", size=72)
    with Case("dump of data in a file, a function and quantization"):
        model = lint.load("init.onnx")
        function = model.functions.add(name="F", domain="local", input=["p"], output=["q"],
                                       attribute=["a"])
        node = function.node.add(op_type="Relu", input=["p"], output=["q"])
        node.attribute.add(name="b", type=2, ref_attr_name="a")
        pair = model.graph.quantization_annotation.add(tensor_name="c")
        pair.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="w")
        save(model, "function.onnx")
        for command in ("dump",), ("dump", "--values"), ("scan",), ("ls",):
            judge.run(*command, "function.onnx", code=0)
    has(both("init", "--inline", "-o", "inline.onnx", "init.onnx"), action="embed",
        kind="initializer", file="weights.bin", size=8)
    with Case("a package"):
        judge.run("package", "-o", "package", "--ep", "qnn", "stamped_ctx.onnx")
    with Case("a report beside a model on standard output"):
        judge.run("set", "-o", "-", "plain_ctx.onnx", "notes=x", stream="stderr", code=0)
    with Case("long values are told by their size"):
        made = judge.run("set", "-f", "-o", "long.onnx", "plain.onnx",
                         "metadata:long=" + "y" * 5000, code=0)
        equal(made["changes"][0]["after"], {"size": 5000})


def version(judge):
    """--version, with and without ONNX Runtime; `help` lists what the tool has."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "epctx.h"),
              encoding="utf-8") as header:
        number = re.search(r'EPCTX_VERSION_STRING "(.*)"', header.read()).group(1)
    with Case("version"):
        listed = subprocess.run([judge.tool, "help"], stdout=subprocess.PIPE, check=True).stdout
        plain = subprocess.run([judge.tool, "--version"], stdout=subprocess.PIPE,
                               check=True).stdout
        # No folder with a program, a library or a cache: nobody has one.
        nowhere = dict(os.environ, PATH="/nonexistent", EPCTX_CACHE="/nonexistent")
        nowhere.pop("EPCTX_ORT_LIBRARY", None)
        answer = judge.version(0, nowhere)
        equal((answer["version"], plain.decode()), (number, f"epctx {number}\n"))
        equal(answer["package"], b"\n  package " in listed)
        if answer["onnxruntime"] is None:
            return
        places = "\n".join(answer["onnxruntime"]["not_taken"])
        for place in "EPCTX_ORT_LIBRARY: ", "python3: ", "/nonexistent: ":
            assert answer["onnxruntime"]["library"] or place in places, answer
        # One that is named must be ONNX Runtime.
        for named in "/nonexistent/lib.so", os.path.realpath(judge.tool):
            answer = judge.version(1, dict(nowhere, EPCTX_ORT_LIBRARY=named))
            equal(answer["onnxruntime"], {"library": None, "found_by": None, "not_taken": []})
            message = answer["failures"][0]["message"]
            assert message.startswith("EPCTX_ORT_LIBRARY") and named in message, message


def texts(judge):
    """The same numbers without --json."""

    def both(*arguments):
        answer = judge.run(*arguments)
        done = subprocess.run([judge.tool, *arguments], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, check=False)
        return answer, done.stdout.decode(errors="replace")

    with Case("text: lint"):
        answer, text = both("lint", "wrong_ctx.onnx", "plain.onnx", "lost_ctx.onnx")
        last = text.splitlines()[-1]
        for key in "errors", "warnings", "hints":
            assert re.search(rf"\b{answer[key]} {key[:-1]}", last), (key, answer[key], last)
        for file in answer["files"]:
            for one in file["findings"]:
                assert f"{one['id']}" in text and one["fix"] in text, one
    with Case("text: lint --rules"):
        answer, text = both("lint", "--rules")
        equal([line.split(maxsplit=2) for line in text.splitlines()],
              [[one["id"], one["rule"], one["text"] +
                "".join(f" ({key} {one[key]})" for key in ("since", "until") if key in one)]
               for one in answer["rules"]])
    with Case("text: diff"):
        answer, text = both("diff", "wrong_ctx.onnx", "model_ctx.onnx")
        sign = {"changed": "~", "removed": "-", "added": "+", "renamed": ">"}
        equal([line[0] for line in text.splitlines()],
              [sign[one["change"]] for one in answer["changes"]])
    with Case("text: scan"):
        answer, text = both("scan", "two_ctx.onnx")
        assert (f"{answer['node_count']} nodes, {answer['ep_node_count']} of them EPContext, "
                f"{answer['size']} bytes") in text, text
    with Case("text: weights"):
        answer, text = both("weights", "plain.onnx", "near.onnx")
        assert re.search(rf"{answer['weights']} +{answer['bytes']} +together", text), text
        assert f"stored once: {answer['saved_bytes']} bytes" in text, text
    with Case("text: dump"):
        answer, text = both("dump", "plain.onnx")
        equal([line.split("\t")[0] for line in text.splitlines()],
              [one["record"] for one in answer["records"]])
    with Case("text: info"):
        answer, text = both("info", "model_ctx.onnx")
        assert re.search(rf"^partitions +{len(answer['partitions'])}$", text, re.M), text
        assert f"{answer['initializers']} initializer" in text, text


def failures(judge):
    fails = judge.fails
    fails("an unknown option", 2, "usage", "info", "--jsno", "plain.onnx", has="--jsno")
    fails("no argument", 2, "usage", "info", has="missing argument")
    fails("too many", 2, "usage", "dump", "a", "b", has="too many")
    fails("a missing value", 2, "usage", "lint", "plain.onnx", "--ep", has="--ep")
    fails("a bad number", 2, "usage", "run", "--repeat", "many", "plain.onnx", has="many")
    fails("an unknown EP", 2, "usage", "lint", "--ep", "nope", "plain.onnx", has="nope")
    fails("an unknown rule", 2, "usage", "lint", "--rules", "E999", "plain.onnx", has="E999")
    fails("an unknown format", 2, "usage", "lint", "--format", "xml", "plain.onnx")
    fails("no place for the output", 2, "usage", "set", "plain.onnx", "model:domain=x", has="-o")
    fails("a field that is none", 2, "usage", "set", "-o", "n.onnx", "plain.onnx", "model:x=1")
    fails("a missing file", 1, "EPCTX_ERR_NOT_FOUND", "info", "missing.onnx", file="missing.onnx")
    fails("a broken file", 1, "EPCTX_ERR_PROTOBUF", "info", "cut.onnx", file="cut.onnx")
    fails("an output that exists", 1, "EPCTX_ERR_EXISTS", "set", "-o", "plain.onnx",
          "floats.onnx", "model:domain=x", cure="-f replaces it")
    fails("compile onto a file", 1, "EPCTX_ERR_EXISTS", "compile", "-o", "plain_ctx.onnx",
          "plain.onnx", cure="-f replaces it")
    fails("a node that is none", 1, None, "get", "--node", "nobody", "model_ctx.onnx", "source")
    fails("a missing binary", 1, "EPCTX_ERR_NOT_FOUND", "get", "--node", "part0",
          "lost_ctx.onnx", "context", node="part0", attribute="ep_cache_context")
    fails("an EP's second entry", 4, None, "check", "--against", "x", "two_ctx.onnx")
    fails("two models of which one is missing", 2, "EPCTX_ERR_NOT_FOUND", "diff", "plain.onnx",
          "missing.onnx", file="missing.onnx")
    with Case("a stale binary"):
        shutil.copy("plain_ctx.onnx", "stale_ctx.onnx")
        os.makedirs("stale", exist_ok=True)
        shutil.copy("plain_ctx.onnx", "stale")
        with open("plain_npu.bin", "rb") as source, open("stale/plain_npu.bin", "wb") as out:
            out.write(source.read() + b"x")
    fails("a stale binary is refused", 1, "EPCTX_ERR_VERSION", "embed", "-o", "x.onnx",
          "stale/plain_ctx.onnx", cure="--allow-stale")
    with Case("a command that there is not"):
        done = subprocess.run([judge.tool, "infoo", "--json"], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, check=False)
        answer = json_schema.read(done.stdout)
        json_schema.judge(answer)
        equal((answer["command"], answer["exit_code"], done.returncode), ("infoo", 2, 2))
    with Case("names of files that are hostile"):
        for number, name in enumerate(HOSTILE[:-1]):
            name = name.replace("/", "|") + ".onnx"
            answer = judge.run("info", name, code=1)
            shown = "".join(c if c.isprintable() else "".join(f"\\x{b:02x}" for b in c.encode())
                            for c in name)
            equal(answer["failures"][0]["file"], shown)
            shutil.copy("plain.onnx", name)
            equal(judge.run("info", name, code=0)["file"], name)
            judge.run("set", "-o", f"n{number}.onnx", name, "model:domain=x", code=0)
            judge.run("lint", name, name)
            judge.run("ls", name, code=0)
    with Case("with -o - the object goes to standard error"):
        done = subprocess.run([judge.tool, "set", "--json", "-o", "-", "missing.onnx", "notes=x"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        equal((done.returncode, done.stdout), (1, b""))
        json_schema.judge(json_schema.read(done.stderr[done.stderr.index(b"{\n"):]))
    with Case("without --json there is none"):
        done = subprocess.run([judge.tool, "info", "missing.onnx"], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, check=False)
        equal((done.returncode, done.stdout), (1, b""))


def sarif(judge, good, broken):
    folder = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(folder, "sarif.json"), encoding="utf-8") as file:
        schemas = {"sarif.json": json_schema.strict(json.load(file))}
    with Case("SARIF"):
        for files in ([*good, *broken], ["plain.onnx"], ["missing.onnx"], ["delivery"],
                      ["--ignore", "ignored", "wrong_ctx.onnx"], [HOSTILE[0] + ".onnx"],
                      [os.path.abspath("wrong_ctx.onnx")]):
            done = subprocess.run([judge.tool, "lint", "--format", "sarif", "--hints", *files],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
            answer = json_schema.read(done.stdout)
            json_schema.judge(answer, "sarif.json", schemas)
            run = answer["runs"][0]
            rules = run["tool"]["driver"]["rules"]
            for result in run["results"]:
                equal(rules[result["ruleIndex"]]["id"], result["ruleId"])


def names_in(schema, found):
    """All members that a schema tells."""
    if isinstance(schema, list):
        for one in schema:
            names_in(one, found)
    elif isinstance(schema, dict):
        if isinstance(schema.get("properties"), dict):
            found.update(schema["properties"])
        for key, one in schema.items():
            names_in(list(one.values()) if key in ("properties", "$defs") else one, found)
    return found


def complete(judge):
    with Case("every command with --json"):
        listed = subprocess.run([judge.tool, "help"], stdout=subprocess.PIPE, check=True).stdout
        commands = re.findall(r"^  ([a-z][a-z-]*) ", listed.decode(), re.M)
        for command in commands:
            text = subprocess.run([judge.tool, "help", command], stdout=subprocess.PIPE,
                                  check=True).stdout
            if b"--json" in text and command not in WITH_ORT:
                assert judge.done.get(command), f"{command} --json was not tried"
            assert command not in judge.done or b"--json" in text, command
    with Case("no member is told that there is not"):
        for name, schema in json_schema.SCHEMAS.items():
            if name[:-5] in WITH_ORT or name in ("common.json", "failed.json"):
                continue
            told = names_in(schema.get("$defs", {}).get("npu", schema), {"failures"})
            if name == "lint.json":  # of --ep, which test_lint_ep.sh has
                told -= {"ep"} | set(schema["$defs"]["ep"]["properties"]) - {"message"}
            missing = told - judge.members.get(name, set()) - {"failures"}
            assert not missing, f"{name}: never printed: {sorted(missing)}"


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    judge = Judge(sys.argv[1])
    os.makedirs(sys.argv[2], exist_ok=True)
    os.chdir(sys.argv[2])
    os.makedirs("folder.onnx", exist_ok=True)
    good, broken = models()
    readers(judge, good, broken)
    writers(judge)
    texts(judge)
    version(judge)
    failures(judge)
    sarif(judge, good, broken)
    complete(judge)
    sys.exit(1 if Case.failed else 0)


if __name__ == "__main__":
    main()
