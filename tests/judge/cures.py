#!/usr/bin/python3
"""Every command that lint prints as a cure, executed on a copy.

    tests/judge/cures.py EPCTX FOLDER [MODEL...]

Fixtures are models made here and by the reference NPU, and MODELS, each changed in one place by
lint.py's mutations and more; EPCTX_ALL_CURES=1 takes all of them, not a sample. Of each command: it
ends with 0, the finding is gone, nothing new appears, and no payload, reference or metadata that
was right is lost. Prints the lines that tests/run reads.
"""
import collections
import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import lint  # noqa: E402
from lint import attr, drop, epnodes, put  # noqa: E402
from make_model import make  # noqa: E402
from onnx_schema import ModelProto  # noqa: E402

ALL = os.environ.get("EPCTX_ALL_CURES") == "1"
SAMPLE = 4  # of each so many cases one is tried
# Rules with a command that cures some of their findings.
PROVED = set("""E003 E007 E014 E015 E017 E020 E021 E027 E028 E038 E041 E047 E070 I001 I006
W001 W002 W003 W004 W007 W008 W009 W010 W011 W012 W019 W025 W026""".split())
# Changes that only few fixtures fit.
ALWAYS = {"mixed_modes", "same_payload", "moved_file", "lost_type", "no_opset", "in_memory",
          "misspelled", "qnn-31977"}
COMPAT = "ep_compatibility_info."


# -- fixtures --

def context_model(source, count=2, embed=False, name="m_ctx.onnx"):
    """A model of `count` EPContext nodes, the first with the context of all."""
    model = make("plain")
    model.opset_import.add(domain="com.microsoft", version=1)
    del model.graph.node[:], model.graph.initializer[:]
    values = ["x"] + [f"v{i}" for i in range(1, count)] + ["y"]
    for at in range(count):
        node = model.graph.node.add(op_type="EPContext", domain="com.microsoft", name=f"part{at}",
                                    input=[values[at]], output=[values[at + 1]])
        for key, text in (("main_context", int(at == 0)), ("embed_mode", int(embed)),
                          ("source", source), ("ep_sdk_version", "2.30"),
                          ("partition_name", f"part{at}")):
            put(node, key, text)
        if at > 0:
            lint.value(model.graph.value_info, values[at], 1, (1, 2))
    put(model.graph.node[0], "ep_cache_context", b"context bytes" if embed else "m_qnn.bin")
    model.metadata_props.add(key=COMPAT + source, value="6:2.30.0:2.20.0:3.3:73:0")
    return model


# A change gets the model, and the folder around it for files.

def own_payload(m, folder):
    """A secondary node with a context that nobody else has."""
    put(epnodes(m)[-1], "main_context", 0)
    put(epnodes(m)[-1], "embed_mode", 1)
    put(epnodes(m)[-1], "ep_cache_context", b"the only copy")


def own_file(m, folder):
    put(epnodes(m)[-1], "main_context", 0)
    put(epnodes(m)[-1], "embed_mode", 0)
    put(epnodes(m)[-1], "ep_cache_context", "only.bin")
    with open(os.path.join(folder, "only.bin"), "wb") as out:
        out.write(b"the only reference")


def same_payload(m, folder):
    first, last = epnodes(m)[0], epnodes(m)[-1]
    put(last, "main_context", 0)
    put(last, "embed_mode", attr(first, "embed_mode").i)
    put(last, "ep_cache_context", bytes(attr(first, "ep_cache_context").s))


def misspelled(m, folder):
    """The entry of the compatibility is that of the right name."""
    for node in epnodes(m):
        text = attr(node, "source").s.decode()
        put(node, "source", text[:3] + text[4:])


def lower_case(m, folder):
    for node in epnodes(m):
        put(node, "source", attr(node, "source").s.decode().lower())


def no_sources(m, folder):
    for node in epnodes(m):
        drop(node, "source")


def empty_sources(m, folder):
    for node in epnodes(m):
        put(node, "source", "")


def moved_file(m, folder):
    name = attr(epnodes(m)[0], "ep_cache_context").s.decode()
    os.makedirs(os.path.join(folder, "sub"))
    os.rename(os.path.join(folder, name), os.path.join(folder, "sub", name))
    put(epnodes(m)[0], "ep_cache_context", "sub\\" + name)


def build_machine(m, folder):
    put(epnodes(m)[0], "ep_cache_context",
        "C:\\build\\" + attr(epnodes(m)[0], "ep_cache_context").s.decode())


def absolute(m, folder):
    put(epnodes(m)[0], "ep_cache_context",
        "/build/" + attr(epnodes(m)[0], "ep_cache_context").s.decode())


def two_values(m, folder):
    m.metadata_props.add(key="note", value="one")
    m.metadata_props.add(key="note", value="another")


def same_values(m, folder):
    m.metadata_props.add(key="note", value="one")
    m.metadata_props.add(key="note", value="one")


def two_infos(m, folder):
    lint.value(m.graph.value_info, m.graph.input[0].name, 1, (1, 2))
    lint.value(m.graph.value_info, m.graph.input[0].name, 1, (1, 2))


def mixed_modes(m, folder):
    put(epnodes(m)[0], "main_context", 1)
    put(epnodes(m)[-1], "main_context", 1)
    put(epnodes(m)[-1], "embed_mode", 1 - attr(epnodes(m)[0], "embed_mode").i)
    put(epnodes(m)[-1], "ep_cache_context", "m_qnn.bin" if attr(epnodes(m)[0], "embed_mode").i
        else b"second context")


def two_mains(m, folder):
    for node in epnodes(m):
        put(node, "main_context", 1)
        put(node, "ep_cache_context", bytes(attr(epnodes(m)[0], "ep_cache_context").s))


def no_defaults(m, folder):
    for node in epnodes(m):
        drop(node, "main_context")
        drop(node, "embed_mode")


def no_key(m, folder):
    for node in epnodes(m):
        drop(node, "partition_name")
        node.name = ""


def one_name(m, folder):
    for node in epnodes(m):
        node.name = "same"


def not_first(m, folder):
    """Fields of the model twice: what libprotobuf reads is the last."""
    return b"\x12\x05other\x12\x05third"


def plain_names(m, folder):
    lint.relu(m, "same", m.graph.input[0].name, "r1")
    lint.relu(m, "same", m.graph.input[0].name, "r2")


def big_body(m, folder):
    lint.body_node(m, epnodes(m)[0])


def idle(m, folder):
    m.graph.initializer.add(name="nobody", data_type=1, dims=[1], raw_data=b"1234")


def lost_type(m, folder):
    del m.graph.value_info[:]


def no_opset(m, folder):
    """Of what stays on the CPU, with the weights of it."""
    kept = [o for o in m.opset_import if o.domain != "nobody.knows"]
    del m.opset_import[:]
    m.opset_import.extend(kept)


def in_memory(m, folder):
    """An initializer that was in the memory of a process; the source has it."""
    tensor = m.graph.initializer[0]
    for field in ("raw_data", "float_data"):
        tensor.ClearField(field)
    tensor.data_location = 1
    tensor.external_data.add(key="location", value="*/_ORT_MEM_ADDR_/*")
    tensor.external_data.add(key="offset", value="4711")
    tensor.external_data.add(key="length", value="8")


def other_ep_stamp(m, folder):
    m.metadata_props.add(key="ep_compatibility_info.OpenVINOExecutionProvider", value="x")


def function_twice(m, folder):
    for _ in range(2):
        f = m.functions.add(name="f", domain="local", input=["a"], output=["b"])
        f.opset_import.add(domain="", version=13)
        f.node.add(op_type="Relu", input=["a"], output=["b"])
    m.opset_import.add(domain="local", version=1)


MORE = [own_payload, own_file, same_payload, misspelled, lower_case, no_sources, empty_sources,
        moved_file, build_machine, absolute, two_values, same_values, two_infos, mixed_modes,
        two_mains, no_defaults, no_key, one_name, not_first, plain_names, big_body, idle, lost_type,
        other_ep_stamp, function_twice,
        no_opset, in_memory]
SOURCES = ["QNNExecutionProvider", "OpenVINOExecutionProvider", "EpctxNpuExecutionProvider",
           "AcmeExecutionProvider", "MIGraphXExecutionProvider", "NvTensorRTRTXExecutionProvider",
           "VitisAIExecutionProvider", "TelumPluginExecutionProvider", "MiniEP"]


# A rule with a cure that no EP's newest version breaks: as QNN's plugin EP was before 2.7.
FACTS = """facts: 1

rule: E014 qnn_plugin; who: Qualcomm; seen: bench; from: before 2.7; date: 2026-11-28
"""


class Fixture:
    """A folder with a model, and what is changed in it."""

    def __init__(self, name, model, files):
        self.name, self.model, self.files = name, model, files

    def write(self, folder, change=None):
        """The path of the model; None: the change does not fit."""
        os.makedirs(folder)
        for name, data in self.files.items():
            with open(os.path.join(folder, name), "wb") as out:
                out.write(data)
        model = ModelProto.FromString(self.model)
        extra = b""
        if change is not None:
            try:
                extra = change(model, folder)
            except (AttributeError, IndexError, OSError, TypeError, ValueError):
                return None
            if extra is False:
                return None
        path = os.path.join(folder, "m_ctx.onnx")
        with open(path, "wb") as out:
            out.write(model.SerializeToString() + (extra if isinstance(extra, bytes) else b""))
        return path


def compiled(epctx, place, kind, words):
    """By the reference NPU, with the source, which the stamp names and which knows all types."""
    source, context = os.path.join(place, "m.onnx"), os.path.join(place, "m_ctx.onnx")
    os.makedirs(place)
    model = make(kind)
    model.opset_import.add(domain="nobody.knows", version=3)
    model.graph.node.add(op_type="Odd", domain="nobody.knows", name="odd", output=["odd"],
                         input=[model.graph.input[0].name, "odd weights"])
    model.graph.initializer.add(name="odd weights", data_type=1, dims=[2], raw_data=b"12345678")
    lint.value(model.graph.output, "odd", 1, (1, 2))
    for _ in range(2):
        with open(source, "wb") as out:
            out.write(model.SerializeToString())
        subprocess.run([epctx, "compile", "-f", *words, source], check=True,
                       stdout=subprocess.DEVNULL)
        del model.graph.value_info[:]
        model.graph.value_info.extend(lint.load(context).graph.value_info)
    fixture = read_fixture(f"npu {kind}{words}", context)
    with open(source, "rb") as file:
        fixture.files["m.onnx"] = file.read()
    return fixture


def fixtures(epctx, folder, models):
    for source in SOURCES:
        for embed in (False, True):
            for count in (1, 2):
                model = context_model(source, count, embed)
                yield Fixture(f"{source}, {count} nodes{', embedded' * embed}",
                              model.SerializeToString(),
                              {} if embed else {"m_qnn.bin": b"context bytes"})
    for kind in ("plain", "partly", "digits"):
        for words in ([], ["--embed"]):
            yield compiled(epctx, os.path.join(folder, f"made {kind}{words}"), kind, words)
    for path in models:
        yield read_fixture(os.path.basename(path), path)


def read_fixture(name, path):
    files = {}
    model = lint.load(path)
    for node in epnodes(model):
        context = attr(node, "ep_cache_context")
        mode = attr(node, "embed_mode")
        if context is None or mode is None or mode.i != 0:
            continue
        beside = os.path.join(os.path.dirname(path), os.fsdecode(context.s))
        if os.path.isfile(beside) and os.path.getsize(beside) < 1 << 24:
            with open(beside, "rb") as file:
                files[os.fsdecode(context.s)] = file.read()
    with open(path, "rb") as file:
        data = file.read()
    files = {key: value for key, value in files.items() if "/" not in key and "\\" not in key}
    return Fixture(name, data, files)


def changes():
    """Name and function(model, folder)."""
    yield "as it is", None
    for function in MORE:
        yield function.__name__, function
    for row in lint.EVERY + lint.OF_EP:
        function = row[-1]
        yield row[-3], (lambda m, folder, f=function: f(m))


# -- what a model is worth --

def digest(data):
    return hashlib.sha256(data).hexdigest()


def all_nodes(model):
    todo = [model.graph] + list(model.functions)
    while todo:
        part = todo.pop()
        for node in part.node:
            if node.op_type == "EPContext":
                yield node
            todo += [a.g for a in node.attribute if a.HasField("g")]


def worth(path):
    """Payloads by their hash, references that resolve, and metadata."""
    with open(path, "rb") as file:
        model = ModelProto.FromString(file.read())
    folder = os.path.dirname(path)
    payloads, references = set(), set()
    for node in all_nodes(model):
        for name in ("ep_cache_context", "ep_dlc_context"):
            for context in (a for a in node.attribute if a.name == name):
                data = bytes(context.s)
                beside = os.path.join(folder, os.fsdecode(data).replace("\\", "/"))
                if b"\0" not in data and data and os.path.isfile(beside):
                    with open(beside, "rb") as file:
                        payloads.add(digest(file.read()))
                elif attr(node, "embed_mode") is None or attr(node, "embed_mode").i == 1:
                    payloads.add(digest(data))
                elif data:
                    references.add(os.path.basename(data.replace(b"\\", b"/")))
    metadata = collections.Counter((p.key, p.value) for p in model.metadata_props)
    weights = {t.name: t.SerializeToString() for t in model.graph.initializer}
    sources = {bytes(attr(n, "source").s).decode(errors="replace") if attr(n, "source") else ""
               for n in all_nodes(model)}
    return payloads, references, metadata, weights, sources


def compat_of(metadata):
    return {key[len(COMPAT):] for key, _ in metadata if key.startswith(COMPAT)}


def lost(rule, before, after):
    """What was there and is no more; "": nothing."""
    if before[0] - after[0]:
        return "a payload is lost"
    gone = before[1] - after[1]
    if gone and not after[0] - before[0]:
        return f"a reference is lost: {gone}"
    for key, text in before[2]:
        if (key, text) in after[2] or key.startswith("epctx.build.") and \
                any(k == key for k, _ in after[2]):
            continue
        if rule == "W004" and key.startswith(COMPAT) and after[4] <= compat_of(after[2]):
            continue
        return f"metadata is lost: {key}={text}"
    if rule not in ("I006", "W026", "W030") and set(before[3]) - set(after[3]):
        return "an initializer is lost"
    return ""


class Cures:
    def __init__(self, epctx, folder):
        self.epctx, self.folder = os.path.abspath(epctx), folder
        self.seen = set()
        self.good, self.bad = collections.Counter(), {}
        self.tried = 0

    def lint(self, path):
        done = subprocess.run([self.epctx, "lint", "--json", "--hints", path], check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=60)
        try:
            return json.loads(done.stdout).get("findings")
        except ValueError:
            return None

    def judge(self, fixture, change, path, found):
        """Each command once, on a copy."""
        for command in dict.fromkeys(f["command"] for f in found if "command" in f):
            about = [f for f in found if f.get("command") == command]
            rule = about[0]["id"]
            self.tried += 1
            why = self.execute(rule, command, about, path, found)
            if why:
                self.bad.setdefault(rule, []).append(
                    f"{fixture.name}, {change}: {command.replace(os.path.dirname(path) + '/', '')}:"
                    f" {why}")
            else:
                self.good[rule] += 1

    def execute(self, rule, command, about, path, found):
        copy = os.path.join(self.folder, "copy")
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(os.path.dirname(path), copy, symlinks=True)
        target = os.path.join(copy, os.path.basename(path))
        words = shlex.split(command.replace(os.path.dirname(path), copy))
        before = worth(target)
        done = subprocess.run([self.epctx, *words[1:]], check=False, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
        if done.returncode != 0:
            return f"exit code {done.returncode}: {done.stdout.decode(errors='replace')[-300:]}"
        after = self.lint(target)
        if after is None:
            return "the result cannot be linted"

        def key(f):
            return f["id"], f["node"], f["attribute"]
        old, new = collections.Counter(map(key, found)), collections.Counter(map(key, after))
        for f in about:
            if new[key(f)] >= old[key(f)]:
                return f"the finding is still there: {f['id']} {f['node']} {f['message'][:200]}"
        more = {k for k in new if k not in old and k[0][0] != "I"}
        # Loading is tried where there is no error, and was not tried before.
        if any(k[0][0] == "E" for k in old):
            more = {k for k in more if k[0] != "E900"}
        # A node that gets a name has its old findings under it.
        kinds = collections.Counter(k[0] for k in old.elements())
        now = collections.Counter(k[0] for k in new.elements())
        more = {k for k in more if now[k[0]] > kinds[k[0]]}
        if more:
            return f"new: {sorted(more)[:3]}"
        return lost(rule, before, worth(target))


def main():
    epctx, folder, models = sys.argv[1], sys.argv[2], sys.argv[3:]
    cures = Cures(epctx, folder)
    with open(os.path.join(folder, "old.facts"), "w", encoding="utf-8") as out:
        out.write(FACTS)
    os.environ["EPCTX_FACTS"] = os.path.abspath(out.name)
    for row, fixture in enumerate(fixtures(cures.epctx, folder, models)):
        for column, (name, change) in enumerate(changes()):
            if not ALL and (row + column) % SAMPLE != 0 and name not in ALWAYS:
                continue
            place = os.path.join(folder, "fixture")
            shutil.rmtree(place, ignore_errors=True)
            path = fixture.write(place, change)
            found = cures.lint(path) if path else None
            if found:
                cures.judge(fixture, name, path, found)
    for rule in sorted(PROVED | set(cures.good) | set(cures.bad)):
        bad = cures.bad.get(rule, [])
        if bad:
            print(f"FAIL cure of {rule}: {len(bad)} of {len(bad) + cures.good[rule]}: {bad[0]}")
        elif not cures.good[rule]:
            print(f"FAIL cure of {rule}: no finding of it has one any more")
        else:
            print(f"ok cure of {rule}")
    print(f"note cures: {sum(cures.good.values())} commands of {len(cures.good)} rules, "
          f"{len(cures.bad)} rules with one that does not cure")
    missing = PROVED - set(cures.good)
    sys.exit(1 if cures.bad or missing else 0)


if __name__ == "__main__":
    main()
