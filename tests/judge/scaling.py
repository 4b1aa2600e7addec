#!/usr/bin/python3
"""Every command of the epctx tool takes time and memory in proportion to its input.

    tests/judge/scaling.py EPCTX FOLDER

Each command runs on models of N and of 4 N pieces, in shapes that make a search per piece show.
Four times as much is expected; sixteen times would be quadratic. Prints the lines that tests/run
reads.
"""
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from effort import rounds  # noqa: E402
from onnx_schema import ModelProto  # noqa: E402

# Some shapes show what they show, or how they differ from a small one, only in large models.
LARGE = 6000
SMALL, FACTOR = rounds(LARGE, 2000), 4
# Between 4 and 16; times are noisy, so that the best of some tries counts.
MOST_TIME, MOST_MEMORY, TRIES = 9, 6, 4
# What starting a process costs is no part of it.
LEAST_SECONDS, LEAST_BYTES = 0.02, 8 << 20


class Model:
    """A model, and nodes in it that Python cannot hold: their names are no text."""

    def __init__(self):
        self.proto = ModelProto(ir_version=8, producer_name="scaling")
        self.proto.opset_import.add(domain="", version=13)
        self.proto.opset_import.add(domain="other", version=1)
        self.graph = self.proto.graph
        self.graph.name = "g"
        self.raw_nodes = b""

    def __getattr__(self, name):
        return getattr(self.proto, name)

    def bytes(self):
        graph = self.raw_nodes + self.graph.SerializeToString()
        size = b""
        left = len(graph)
        while left > 127:
            size += bytes([left & 127 | 128])
            left >>= 7
        self.proto.ClearField("graph")
        return self.proto.SerializeToString() + b"\x3a" + size + bytes([left]) + graph


def value(values, name, dims=(1, 4)):
    entry = values.add(name=name)
    entry.type.tensor_type.elem_type = 1
    for size in dims:
        entry.type.tensor_type.shape.dim.add(dim_value=size)


def node(model, op_type, inputs, output, domain=""):
    added = model.graph.node.add(op_type=op_type, domain=domain, name=f"node {output}")
    added.input.extend(inputs)
    added.output.append(output)


def initializer(model, name, number):
    tensor = model.graph.initializer.add(name=name, data_type=1, dims=[1, 4])
    tensor.raw_data = number.to_bytes(4, "little") * 4


def chain(model, count):
    """One long piece."""
    for i in range(count):
        node(model, "Neg", [f"v{i}"], f"v{i + 1}")
    return f"v{count}"


def pieces(model, count):
    """Every second node is not the NPU's: as many EPContext nodes as others."""
    for i in range(count):
        node(model, "Neg" if i % 2 else "Mine", [f"v{i}"], f"v{i + 1}", "" if i % 2 else "other")
        value(model.graph.value_info, f"v{i + 1}")
    return f"v{count}"


def wide(model, count):
    """All values live at once."""
    for i in range(count // 2):
        node(model, "Neg", ["v0"], f"w{i}")
    node(model, "Identity", ["v0"], "s0")
    for i in range(count // 2):
        node(model, "Add", [f"s{i}", f"w{count // 2 - 1 - i}"], f"s{i + 1}")
    return f"s{count // 2}"


def weights(model, count):
    """Every node has its own weights."""
    for i in range(count):
        initializer(model, f"w{i}", i)
        node(model, "Add", [f"v{i}", f"w{i}"], f"v{i + 1}")
    return f"v{count}"


def matrices(model, count, side):
    """Weights of some MiB, each another."""
    for i in range(count):
        tensor = model.graph.initializer.add(name=f"w{i}", data_type=1, dims=[side, side])
        tensor.raw_data = (i + 1).to_bytes(4, "little") * (side * side)
        node(model, "MatMul", [f"v{i}", f"w{i}"], f"v{i + 1}")
    return f"v{count}"


def backwards(model, count):
    """Readers stand before what they read."""
    last = chain(model, count)
    nodes = list(model.graph.node)
    del model.graph.node[:]
    model.graph.node.extend(reversed(nodes))
    return last


def many(model, count):
    """Inputs, outputs, metadata, opset imports and functions without end."""
    for i in range(count):
        value(model.graph.input, f"i{i}")
        value(model.graph.output, f"o{i}")
        node(model, "Neg", [f"i{i}"], f"o{i}")
        model.metadata_props.add(key=f"key {i}", value="v")
        model.opset_import.add(domain=f"domain {i}", version=1)
        model.functions.add(name=f"f{i}", domain="other")
    return chain(model, 1)


def same(model, count):
    """Inputs and outputs of one name."""
    for _ in range(count):
        value(model.graph.input, "v0")
        value(model.graph.output, "v1")
    return chain(model, 1)


def symbols(model, count):
    """Open dimensions, each with a name of its own."""
    for i in range(count):
        for values, name in (model.graph.input, f"i{i}"), (model.graph.output, f"o{i}"):
            value(values, name)
            values[-1].type.tensor_type.shape.dim[0].dim_param = f"d{i}"
        node(model, "Neg", [f"i{i}"], f"o{i}")
    return chain(model, 1)


def empty(model, count):
    """Nodes of two bytes: what is kept for a node shows in the memory."""
    model.raw_nodes = b"\x0a\x00" * (32 * count)
    return "v0"


def overlaid(model, count):
    """Tensors that lie over each other in a sparse file, whose size grows with their number."""
    size = count << 13
    for i in range(count // 60):
        tensor = model.graph.initializer.add(name=f"w{i}", data_type=1, dims=[size // 4 - i],
                                             data_location=1)
        for key, text in ("location", f"{count}.data"), ("offset", 4 * i), ("length", size - 4 * i):
            tensor.external_data.add(key=key, value=str(text))
        node(model, "Gather", [f"w{i}", "v0"], f"y{i}")
    return "y0"


def forged(model, count):
    """Nodes whose outputs XXH64 cannot tell apart, with no seed below 2^47 (tests/forged.h)."""
    p1, p2, whole = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 1 << 64
    back, start = pow(p2, -1, whole), (p1 + p2, p2, 0, -p1)
    read = b"v0"
    for i in range(count):
        rest, words = i, [0] * 8
        for lane in range(4):
            rest, part = divmod(rest, 18)
            words[lane] = ((part << 48) - start[lane]) * back % whole
            words[4 + lane] = -(part << 15) * p1 * back % whole
        name = b"".join(word.to_bytes(8, "little") for word in words)
        model.raw_nodes += raw_node(read, name)
        read = name
    model.raw_nodes += raw_node(read, b"end")
    return "end"


def absent(model, count):
    """EPContext nodes whose binaries are not there."""
    for i in range(count):
        node(model, "EPContext", ["v0"], f"a{i}", "com.microsoft")
        made = model.graph.node[-1]
        for name, text in (("ep_cache_context", f"{i}.bin"), ("source", "QNN"),
                           ("partition_name", f"p{i}")):
            made.attribute.add(name=name, type=3, s=text.encode())
        made.attribute.add(name="embed_mode", type=2, i=0)
        made.attribute.add(name="main_context", type=2, i=1)
    model.opset_import.add(domain="com.microsoft", version=1)
    return chain(model, 1)


def keyed(model, count):
    """EPContext nodes that an EP finds by their names, each with a binary of its own."""
    last = absent(model, count)
    for i, made in enumerate(model.graph.node):
        made.name = f"k{i}"
        value(model.graph.value_info, f"a{i}")
    return last


def folder(model, count):
    """One of `count` models in a folder; the binary of every second one is not there."""
    absent(model, 1)
    del model.graph.node[1:]
    made = model.graph.node[0]
    made.name, made.attribute[0].s = "k", b"%04d.bin" % count
    value(model.graph.value_info, "a0")
    return "a0"


def namesakes(model, count):
    """Nodes of one name."""
    last = chain(model, count)
    for made in model.graph.node:
        made.name = "n"
    return last


def raw_node(read, made):
    """A field of a graph: names need not be UTF-8."""
    fields = (b"\x0a" + bytes([len(read)]) + read + b"\x12" + bytes([len(made)]) + made +
              b"\x22\x03Neg\x1a\x03any")
    return b"\x0a" + bytes([len(fields) & 127 | 128, len(fields) >> 7]) + fields


SHAPES = (chain, pieces, wide, weights, backwards, many)
# {m}: the model; {c}: its EPContext model; {e}: that, embedded; {o}, {p}: new ones.
READERS = ("info {m}", "ls {m}", "lint {m}", "diff {m} {m}", "scan {m}", "dot {m}",
           "copy --rebuild --overwrite replace {m} {o}", "dump {m}", "weights {m} {m}")
EDITORS = ("set {m} metadata:key=text -f -o {o}", "rename --any-io {m} v0 new -f -o {o}",
           "prefix --all-nodes {m} p_ -f -o {o}", "init --inline {m} -f -o {o}",
           "init --external --threshold 1 {m} -f -o {o}", "init --prune {m} -f -o {o}",
           "init --no-inputs {m} -f -o {o}",
           "repair --dry-run {m} -f -o {o}", "merge {m} {m} --prefix a_,b_ -f -o {o}",
           "split --inputs v0 {m} -f -o {o}")
CONTEXTS = ("info {c}", "ls {c}", "lint {c}", "check {c}", "check --fresh {c}", "dump {c}",
            "prefix {c} p_ -f -o {o}", "embed -f {c} -o {e}", "extract -f {e} -o {o}",
            "weightless --self-contained {e} -f -o {o}", "merge {c} {c} --prefix a_,b_ -f -o {o}",
            "repair --dry-run {c} -f -o {o}", "package {c} -o {p}")
# Other shapes, for what shows in them alone; with the exit codes that are right.
MORE = ((many, ((0,), "run {m}")), (pieces, ((1,), "run {c}")),
        (same, ((0,), "merge {m} {m} --prefix a_,b_ -f -o {o}")),
        (symbols, ((0,), "compile -f {m} -o {c}"), ((0,), "info {m}")),
        (empty, ((0,), "info {m}"), ((0,), "lint {m}"), ((0,), "diff {m} {m}")),
        (overlaid, ((1,), "weights {m} {m}"), ((1,), "compile -f {m} -o {c}"),
         ((2,), "diff {m} {m}")),
        (absent, ((1,), "lint {m}"), ((3,), "repair --dry-run {m} -f -o {o}"), ((1,), "ls {m}")),
        (keyed, ((1,), "merge {m} {m} -f -o {o}"), ((0,), "package -n {m} -o {p}")),
        (namesakes, ((1,), "lint {m}"), ((0,), "merge {m} {m} -f -o {o}")),
        (folder, ((1,), "lint {d}"), ((1,), "ls {d}"), ((1,), "info {d}")),
        (forged, ((1,), "lint {m}"), ((0,), "run {m}"), ((0,), "diff {m} {m}")))
# Bytes of memory for each byte of a model of empty nodes.
MOST_TIMES = {"info {m}": 60, "lint {m}": 80, "diff {m} {m}": 300}
# Bytes of memory for each byte of weights.
MOST_WEIGHTS = 1.3  # 8 layers; the one that is read counts twice
SMALL_RUN = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)
sys.exit(code)"""
# Commands that tell by their exit code what they have found; one of 1 with a message is a refusal.
JUDGES = ("lint", "check", "repair")


def sizes(shape):
    small = LARGE if shape in (wide, overlaid) else SMALL // 4 if shape is folder else SMALL
    return small, small * FACTOR


class Run:
    """One command: its exit code, whether it gave up, seconds of CPU and bytes of memory."""

    def __init__(self, epctx, words, log):
        child = os.fork()
        if child == 0:
            out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
            os.dup2(out, 1)
            os.dup2(out, 2)
            os.execv(epctx, [epctx, *words])
        _, status, usage = os.wait4(child, 0)
        self.code = os.waitstatus_to_exitcode(status)
        with open(log, "rb") as said:
            self.refused = any(line.startswith(b"epctx: ") for line in said)
        self.seconds = usage.ru_utime + usage.ru_stime
        self.bytes = usage.ru_maxrss * 1024


class Judge:
    def __init__(self, epctx, folder):
        self.epctx, self.folder, self.failed = os.path.abspath(epctx), folder, False

    def files(self, shape, count):
        base = os.path.join(self.folder, f"{shape.__name__}_{count}")
        os.makedirs(base, exist_ok=True)
        return {"m": f"{base}/m.onnx", "c": f"{base}/m_ctx.onnx", "e": f"{base}/e/m_ctx.onnx",
                "o": f"{base}/o/out.onnx", "p": f"{base}/o/package", "d": f"{base}/d"}

    def write(self, shape, count):
        model = Model()
        value(model.graph.input, "v0")
        value(model.graph.output, shape(model, count))
        with open(self.files(shape, count)["m"], "wb") as out:
            out.write(model.bytes())
        base = os.path.dirname(out.name)
        with open(f"{base}/{count}.data", "wb") as data:
            data.truncate(count << 13)
        for i in range(count if shape is keyed else 0):
            with open(f"{base}/{i}.bin", "wb") as data:
                data.write(b"FAKE%d" % i)
        if shape is folder:
            self.write_folder(count)

    def write_folder(self, count):
        place = self.files(folder, count)["d"]
        os.makedirs(place, exist_ok=True)
        for i in range(count):
            model = Model()
            value(model.graph.input, "v0")
            value(model.graph.output, folder(model, i), (1, 4))
            with open(f"{place}/m{i:04}.onnx", "wb") as out:
                out.write(model.bytes())
            if i % 2:
                with open(f"{place}/{i:04}.bin", "wb") as data:
                    data.write(b"FAKE%d" % i)

    def run(self, shape, count, command):
        files = self.files(shape, count)
        for name in "e", "o":
            os.makedirs(os.path.dirname(files[name]), exist_ok=True)
        shutil.rmtree(files["p"], ignore_errors=True)
        return Run(self.epctx, command.format(**files).split(), os.path.join(self.folder, "log"))

    def judge(self, shape, command, codes=None):
        judging = command.startswith(JUDGES)
        codes = codes or ((0, 1, 3) if judging else (0,))
        name = f"{shape.__name__}: {command.replace('{', '').replace('}', '')}"
        seconds, memory = {}, {}
        small, large = sizes(shape)
        for _ in range(TRIES):
            for count in (small, large):
                run = self.run(shape, count, command)
                if run.code not in codes or judging and run.refused:
                    with open(os.path.join(self.folder, "log"), encoding="utf-8") as log:
                        self.fail(name, f"exit code {run.code}: {log.read()[-300:]!r}")
                    return
                seconds[count] = max(min(run.seconds, seconds.get(count, 1e9)), LEAST_SECONDS)
                memory[count] = max(run.bytes, LEAST_BYTES)
            times = seconds[large] / seconds[small]
            more = memory[large] / memory[small]
            if times <= MOST_TIME and more <= MOST_MEMORY:
                self.judge_memory(shape, command, name, run.bytes)
                return
        self.fail(name, f"{FACTOR} times the input takes {times:.1f} times the time "
                        f"({seconds[small]:.2f} s, {seconds[large]:.2f} s) and "
                        f"{more:.1f} times the memory; expected at most {MOST_TIME} and "
                        f"{MOST_MEMORY}: look for a search inside a loop")

    def judge_memory(self, shape, command, name, found):
        """Of the larger model, when it is one of empty nodes."""
        if shape is empty:
            size = os.path.getsize(self.files(shape, sizes(shape)[1])["m"])
            # A process has had the memory of the one that made it.
            least = Run(self.epctx, ["--version"], os.path.join(self.folder, "log")).bytes
            if found > MOST_TIMES[command] * size + least:
                self.fail(name, f"{found} bytes of memory for a model of {size}, expected at most "
                                f"{MOST_TIMES[command]} times as much: what is kept for a node?")
                return
        print(f"ok {name}")

    def judge_weights(self, layers=8, side=2048):
        """Compiling holds the binary in memory, of the source what it reads just now."""
        shape, name = matrices, "compile of a model of 128 MiB of weights"
        model = Model()
        value(model.graph.input, "v0", (1, side))
        value(model.graph.output, matrices(model, layers, side), (1, side))
        files = self.files(shape, layers)
        with open(files["m"], "wb") as out:
            out.write(model.bytes())
        # From a process that is small itself.
        done = subprocess.run([sys.executable, "-c", SMALL_RUN, self.epctx, "compile", "-f",
                               files["m"], "-o", files["c"]], stdout=subprocess.PIPE, check=False)
        times = int(done.stdout or 0) / os.path.getsize(files["m"])
        if done.returncode != 0 or not 0.9 < times <= MOST_WEIGHTS:
            self.fail(name, f"exit code {done.returncode}, {times:.2f} times the weights in "
                            f"memory, expected at most {MOST_WEIGHTS}: does spent_fn release "
                            "what was read?")
        else:
            print(f"ok {name}\nnote compile: {times:.2f} times the weights in memory")

    def fail(self, name, why):
        print(f"FAIL {name}: {why}")
        self.failed = True

    def all(self):
        for shape in SHAPES:
            for count in sizes(shape):
                self.write(shape, count)
            self.judge(shape, "compile -v -f {m} -o {c}")
            commands = READERS + CONTEXTS
            if shape is not many:
                commands += EDITORS
            for command in commands:
                self.judge(shape, command)
        for shape, *commands in MORE:
            if shape not in SHAPES:
                for count in sizes(shape):
                    self.write(shape, count)
            for codes, command in commands:
                self.judge(shape, command, codes)
        self.judge_weights()
        return self.failed


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(Judge(sys.argv[1], sys.argv[2]).all())
