# What every again.py begins with (keep.c): it makes sessions and compilations, compares runs with
# the CPU EP, and says whether the failure is seen again, exit code 1 (or a signal), or not, 0, or
# why that cannot be tried here, 2. Any Python will do that has numpy and ONNX Runtime, of the
# version that the suite ran.
import contextlib
import ctypes
import os
import re
import shutil
import sys


def cannot_try(why):
    print("cannot try:", why, flush=True)
    sys.exit(2)


try:
    import numpy
    import onnxruntime
except ImportError as error:
    cannot_try(f"{sys.executable}: {error}: pip install numpy onnxruntime")

KEPT = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(KEPT, "again")
LAST = {}
print(f"{sys.executable}, ONNX Runtime {onnxruntime.__version__}", flush=True)
shutil.rmtree(ROOT, ignore_errors=True)
os.makedirs(ROOT)
os.chdir(ROOT)


def here(path):
    return os.path.join(ROOT, path) if path else ROOT


def bytes_of(how, what):
    """Of a file as it is now, or as the suite had it; None: the EP has not written it."""
    path = here(what) if how == "was" else os.path.join(KEPT, "steps", what)
    if not os.path.isfile(path):
        return None
    with open(path, "rb") as file:
        return file.read()


def files(changes):
    """What the suite did to its files."""
    data = {name: bytes_of(how, what) for name, how, what in changes if how in ("was", "kept")}
    for name, how, what in changes:
        path = here(name)
        if how in ("gone", "link") or name in data:
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path)
            elif os.path.lexists(path):
                os.remove(path)
        if how == "folder":
            os.makedirs(path, exist_ok=True)
        elif how == "link":
            os.symlink(what, path)
        elif how == "pipe" and not os.path.exists(path):
            os.mkfifo(path)
        elif data.get(name) is not None:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(data[name])


def shown(path):
    """A path in this program's folder without that folder; what is no path."""
    if not isinstance(path, str):
        return "memory"
    return os.path.relpath(path, ROOT) if path.startswith(ROOT + os.sep) else path


def named(what, model, config, options, on_cpu):
    return f"{what} of {shown(model)} {({**config, **options})}" + " on the CPU EP" * on_cpu


def attempt(what, make):
    """Whether it is made; else ORT's code and words. A crash ends the line behind `what`."""
    print(what, end=": ", flush=True)
    LAST.update(session=None, run="none", code=0, said="", failure=None, written=[], end="refused")
    try:
        LAST["session"] = make()
        LAST["end"] = "done"
    except Exception as error:
        code = re.search(r"\[ONNXRuntimeError\] : (\d+) :", str(error))
        LAST.update(code=int(code[1]) if code else 0, said=str(error))
        if LAST["code"] == 1 and LAST["failure"]:  # what Python makes of a callback's failure
            LAST["code"] = LAST["failure"]
    print(f'{LAST["end"]} {LAST["said"]}'.split("\n", maxsplit=1)[0].rstrip(), flush=True)


def register(name, library, ep):
    attempt(f"registration of {library} as {name}",
            lambda: onnxruntime.register_execution_provider_library(name, library))
    if LAST["end"] == "refused":
        try:
            ctypes.CDLL(library)
        except OSError as error:
            cannot_try(f"the library {library} does not load: {error}")
    LAST["no_ep"] = LAST["said"] and f"the library {library} is not registered: {LAST['said']}"
    LAST["devices"] = [d for d in onnxruntime.get_ep_devices() if d.ep_name in (ep, name)][:1]


def made_options(config, options, on_cpu, plain, alone, level, reader):
    out = onnxruntime.SessionOptions()
    levels = onnxruntime.GraphOptimizationLevel
    if plain:
        out.graph_optimization_level = levels.ORT_DISABLE_ALL
    if level is not None:
        out.graph_optimization_level = levels(level)
    for key, value in config.items():
        out.add_session_config_entry(key, value)
    if alone:
        out.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    if reader:
        out.set_ep_context_data_read_func(lambda name, to: read(reader, name, to), 1 << 30)
    if not on_cpu:
        out.add_provider_for_devices(LAST["devices"], options)
    return out


def fail(failure):
    if failure:
        LAST["failure"] = failure[0]
        raise RuntimeError(failure[1])


def read(reader, name, to):
    print("read callback", repr(name), end=", ", flush=True)
    fail(reader[1])
    if name not in reader[0]:
        fail((3, "the store has no such key"))
    data = bytes_of("kept", reader[0][name])
    to.allocate(len(data))
    to.write(data, 0)


def write(writer, name, data):
    print("write callback", repr(name), data.size, "bytes", end=", ", flush=True)
    fail(writer[1])
    LAST["written"].append((name, data.size))


def begin(on_cpu):
    LAST["session"] = None  # the one before ends
    if LAST["no_ep"] and not on_cpu:  # the suite had it
        cannot_try(LAST["no_ep"])


def session(model, config, options, on_cpu=False, plain=True, alone=False, level=None,
            reader=None):
    begin(on_cpu)
    attempt(named("session", model, config, options, on_cpu), lambda: onnxruntime.InferenceSession(
        model, made_options(config, options, on_cpu, plain, alone, level, reader),
        providers=["CPUExecutionProvider"] if on_cpu else None, enable_fallback=0))


def compilation(model, to, config, options, on_cpu=False, plain=True, alone=False, level=None,
                reader=None, embed=False, initializers=None, threshold=1024, flags=0, writer=None):
    def make():
        compiler = onnxruntime.ModelCompiler(
            made_options(config, options, on_cpu, plain, alone, level, reader), model,
            embed_compiled_data_into_model=embed, external_initializers_file_path=initializers,
            external_initializers_size_threshold=threshold, flags=flags)
        if writer:
            compiler.set_ep_context_data_write_func(lambda name, data: write(writer, name, data))
        if to:
            compiler.compile_to_file(to)
        else:
            compiler.compile_to_bytes()
    begin(on_cpu)
    attempt(named("compilation", model, config, options, on_cpu), make)


def fill(count, kind, seed):
    state, out = seed * 2654435761 + 12345, []
    for _ in range(count):
        state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
        out.append((state >> 16) / 32768 - 1 if kind == "float32" else state >> 31
                   if kind == "bool" else state >> 24 if kind.endswith("int8") else state >> 30)
    return numpy.array(out).astype(kind)


def difference(wanted, found, part):
    """The worst number; None: all are near enough."""
    if wanted.shape != found.shape or wanted.dtype != found.dtype:
        return f"expected {wanted.dtype} {wanted.shape}, found {found.dtype} {found.shape}"
    a, b = wanted.ravel().astype(float), found.ravel().astype(float)
    if a.size == 0:
        return None
    room = 1e-5 + 1e-3 * abs(a) + part * max(abs(a)) if wanted.dtype.kind == "f" else \
        max(1, part * 255)
    off = abs(a - b) - room
    bad = ~(off <= 0)
    if bad.sum() * 100 <= bad.size and not (abs(a - b)[bad] > max(abs(a)) / 12).any():
        return None
    at = int(numpy.nanargmax(numpy.where(bad, off, -1)))
    return f"number {at}: expected {a[at]:g}, found {b[at]:g}"


def run(reference, seed, part):
    if LAST["session"] is None:
        return
    kinds = {"tensor(float)": "float32", "tensor(double)": "float64"}
    values = {}
    for i, one in enumerate(LAST["session"].get_inputs()):
        shape = [d if isinstance(d, int) else 1 for d in one.shape]
        kind = kinds.get(one.type, one.type[7:-1])
        values[one.name] = fill(int(numpy.prod(shape)), kind, seed + i).reshape(shape)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    cpu = onnxruntime.InferenceSession(reference, options, providers=["CPUExecutionProvider"])
    print("run:", end=" ", flush=True)
    try:
        pairs = zip(cpu.run(None, values), LAST["session"].run(None, values))
        wrong = [d for d in (difference(a, b, part) for a, b in pairs) if d]
    except Exception as error:
        wrong = [str(error).split("\n")[0]]
    LAST["run"] = "wrong" if wrong else "right"
    print(wrong[0] if wrong else "as on the CPU EP", flush=True)


def fields(data):
    """Of a protobuf message: number, and integer or bytes."""
    def integer(at):
        value, shift = 0, 0
        while True:
            value |= (data[at] & 127) << shift
            shift, at = shift + 7, at + 1
            if data[at - 1] < 128:
                return value, at
    at = 0
    while at < len(data):
        key, at = integer(at)
        value, size = None, {1: 8, 5: 4}.get(key & 7, 0)
        if key & 7 == 2:
            size, at = integer(at)
            value = data[at:at + size]
        elif key & 7 == 0:
            value, at = integer(at)
        at += size
        yield key >> 3, value


def contexts(data, root):
    """The attributes of the EPContext nodes, without what comes from the model's path."""
    out = []
    for node in [v for k, v in fields(b"".join(v for k, v in fields(data) if k == 7)) if k == 1]:
        if (4, b"EPContext") not in fields(node):
            continue
        attributes = [dict(fields(v)) for k, v in fields(node) if k == 5]
        texts = {a[1].decode(): a.get(3, a.get(4, b"")) for a in attributes}
        for name, value in texts.items():
            if isinstance(value, bytes):
                text = value.decode("utf-8", "replace").replace(root, "here")
                texts[name] = re.sub("[0-9a-f]{6,}", "N", text) if len(value) < 400 else len(value)
        out.append(texts)
    return out


def tree(root, was):
    """The files, and of models the nodes; what was in the folder `was` is here."""
    out = {}
    for folder, _, names in os.walk(root):
        inside = (folder + "/").startswith((ROOT + "/", os.path.join(KEPT, "steps/")))
        for name in names if inside == (root == ROOT) else []:
            path = os.path.join(folder, name)
            if path == os.path.join(KEPT, "again.py") or not os.path.isfile(path):
                continue
            nodes = []
            if name.endswith(".onnx"):
                with open(path, "rb") as file, contextlib.suppress(IndexError, TypeError, KeyError):
                    nodes = contexts(file.read(), was)
            out[os.path.relpath(path, root)] = nodes
    return out


def alike(wanted, found):
    """Messages with other numbers and paths in them."""
    words, there = re.findall(r"[A-Za-z]{3,}", wanted), set(re.findall(r"[A-Za-z]{3,}", found))
    return sum(w in there for w in words) >= 0.7 * len(words)


def finish(end, run, refuse, files, code, said, text, beyond, lacks, folder, sessions):
    print("The suite:", text)
    same = not beyond and (LAST.get("end"), LAST.get("run"), LAST.get("code")) == (end, run, code)
    if same and end == "refused":
        same = alike(said, LAST["said"])
    if same and end == "done" and run != "wrong" and not refuse:
        there, then = tree(ROOT, ROOT), tree(KEPT, folder)
        differs = sorted(n for n in {*there, *then} if there.get(n) != then.get(n))
        for name in differs:
            print(f"{name}: the suite has {then.get(name)}, here is {there.get(name)}")
        named = {node.get("ep_cache_context") for nodes in there.values() for node in nodes}
        if LAST["written"]:
            print("the nodes name", named)
            same = not {name for name, _ in LAST["written"]} <= named
        else:
            same = files and not differs
    if same:
        print("Seen again.")
        sys.exit(1)
    why = f"it needs {lacks}" if lacks else "it needs what was between the sessions (" \
        f"{sessions}), or beside them"
    print(f"Not seen again. If the EP is as it was, this script cannot show it: {why}.")


