#!/usr/bin/python3
"""Bad input for the epctx tool: a clear error, and nothing else.

    tests/judge/bad_input.py EPCTX FOLDER

EPCTX should be the sanitized build. Every refusal has to end with an exit code
that is neither 0 nor the sanitizers', to say something on standard error that
names the file, and to leave the folder as it was. Prints the lines that
tests/run reads.
"""
import gzip
import os
import random
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import make_model  # noqa: E402
import onnx_schema  # noqa: E402

SANITIZER_EXIT = 99
OPTIONS = f"exitcode={SANITIZER_EXIT}"
FLIPS = 150
READERS = ("info", "ls", "lint", "check", "dot", "compile", "run")


def write(path, data):
    with open(path, "wb") as out:
        out.write(data)


def read(path):
    with open(path, "rb") as source:
        return source.read()


class Tool:
    def __init__(self, epctx, folder):
        self.epctx, self.folder = os.path.abspath(epctx), folder
        self.failed = False

    def run(self, *arguments):
        env = dict(os.environ, ASAN_OPTIONS=OPTIONS, UBSAN_OPTIONS=OPTIONS, LSAN_OPTIONS=OPTIONS)
        done = subprocess.run([self.epctx, *arguments], cwd=self.folder, env=env, timeout=120,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, check=False)
        # What lint cannot read is a finding, and those are its output.
        told = done.stdout if arguments[0] == "lint" and not done.stderr else done.stderr
        return done.returncode, told.decode("utf-8", "backslashreplace").strip()

    def listing(self):
        found = {}
        for base, _, names in os.walk(self.folder):
            for name in names:
                path = os.path.join(base, name)
                found[path] = read(path) if os.path.isfile(path) else None
        return found

    def verdict(self, name, problem):
        print(f"FAIL {name}: {problem}" if problem else f"ok {name}")
        self.failed = self.failed or bool(problem)

    def refuses(self, name, arguments, *words):
        """One of the words in each group "a|b" has to be in the message."""
        before = self.listing()
        code, message = self.run(*arguments)
        lower = message.lower()
        missing = [w for w in words if not any(x.lower() in lower for x in w.split("|"))]
        if code < 0 or code >= SANITIZER_EXIT:
            problem = f"crashed with {code}: {message[-300:]}"
        elif code == 0:
            problem = "expected a refusal, found exit code 0"
        elif missing:
            problem = f"expected {missing} in the message, found {message!r}"
        elif self.listing() != before:
            changed = sorted(set(self.listing().items()) ^ set(before.items()))
            problem = f"left files behind or changed them: {sorted({c[0] for c in changed})}"
        else:
            problem = None
        self.verdict(name, problem)

    def survives(self, name, path, damaged, arguments):
        """Many damaged forms of a file: right or refused, never a crash."""
        sound, problem, count = read(path), None, 0
        for data in damaged(sound):
            write(path, data)
            code, message = self.run(*arguments)
            count += 1
            if code < 0 or code >= SANITIZER_EXIT or (code > 0 and not message):
                kept = os.path.join("build", "failures", name.replace(" ", "-"))
                os.makedirs(os.path.dirname(kept), exist_ok=True)
                write(kept, data)
                problem = f"exit code {code} for the form kept in {kept}: {message[-300:]}"
                break
        write(path, sound)
        self.verdict(f"{name}, {count} forms", problem)


def flips(data):
    generator = random.Random(len(data))
    for _ in range(FLIPS):
        copy = bytearray(data)
        # The front is where headers are.
        limit = len(copy) if generator.random() < 0.5 else min(len(copy), 256)
        copy[generator.randrange(limit)] ^= 1 << generator.randrange(8)
        yield bytes(copy)


def truncations(data):
    generator = random.Random(len(data))
    sizes = set(range(0, min(len(data), 40)))
    sizes |= {generator.randrange(len(data)) for _ in range(30)} | {len(data) - 1}
    for size in sorted(sizes):
        yield data[:size]


def not_a_model(tool, folder):
    plain = make_model.make("plain").SerializeToString()
    files = {
        "nothing.onnx": (b"", "empty"),
        "pointer.onnx": (b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64
                         + b"\nsize 12345\n", "lfs"),
        "flat.onnx": (b"\x28\0\0\0ORTM" + bytes(range(200)), ".ort|ort format"),
        "packed.onnx": (gzip.compress(plain), "gzip"),
        "text.onnx": (b"<!DOCTYPE html><html><body>Not found</body></html>\n", ""),
        "half.onnx": (plain[:len(plain) // 2], ""),
    }
    for name, (data, word) in files.items():
        write(os.path.join(folder, name), data)
        for command in READERS:
            tool.refuses(f"{command} {name}", (command, name), name, word)
        tool.refuses(f"copy {name}", ("copy", name, "never.onnx"), name, word)
    for command in READERS:
        tool.refuses(f"{command} of a missing file", (command, "missing.onnx"), "missing.onnx")
        tool.refuses(f"{command} of a folder", (command, "."))


def not_compilable(tool, folder):
    for kind, word in (("double", "float64|double|type"), ("dynamic", "dynamic|static|shape")):
        write(os.path.join(folder, kind + ".onnx"), make_model.make(kind).SerializeToString())
        tool.refuses(f"compile --require-all of a {kind} model",
                     ("compile", "--require-all", kind + ".onnx"), kind + ".onnx", "conv", word)
    write(os.path.join(folder, "source.onnx"), make_model.make("plain").SerializeToString())
    tool.refuses("compile into a missing folder",
                 ("compile", "source.onnx", "-o", "nowhere/source_ctx.onnx"), "nowhere")


def edited(model, name, data):
    copy = onnx_schema.ModelProto()
    copy.CopyFrom(model)
    for attribute in copy.graph.node[0].attribute:
        if attribute.name == name:
            attribute.s = data
            return copy.SerializeToString()
    return None


def not_loadable(tool, folder):
    write(os.path.join(folder, "good.onnx"), make_model.make("plain").SerializeToString())
    inside = os.path.join(folder, "inside")
    os.makedirs(inside)
    code, message = tool.run("compile", "good.onnx", "-o", "inside/good_ctx.onnx")
    model = None
    if code == 0:
        model = onnx_schema.parse(read(os.path.join(inside, "good_ctx.onnx")))
    binaries = [f for f in os.listdir(inside) if f.endswith(".bin")]
    code_run, message_run = tool.run("run", "inside/good_ctx.onnx")
    if model is None or len(binaries) != 1 or code_run != 0:
        tool.verdict("context model", f"the sound one was not made or does not run: "
                     f"{message} {message_run}")
        return
    blob = os.path.join(inside, binaries[0])
    content = read(blob)
    # A perfectly good binary, just where it must not be read from.
    write(os.path.join(folder, "outside.bin"), content)
    os.symlink("../outside.bin", os.path.join(inside, "link.bin"))
    os.symlink("..", os.path.join(inside, "up"))
    absolute = os.path.join(os.path.abspath(folder), "outside.bin").encode()
    for what, path, word in (
            ("a missing binary", b"absent.bin", "absent.bin"),
            ("an absolute path", absolute, "absolute"),
            ("a path with ..", b"../outside.bin", ".."),
            ("a path with .. inside", b"up/../../outside.bin", ".."),
            ("a symlink that leads out", b"link.bin", "link.bin"),
            ("a folder symlink that leads out", b"up/outside.bin", "up/outside.bin"),
            ("a path with a NUL", binaries[0].encode() + b"\0.bin", ""),
            ("an empty path", b"", "empty")):
        write(os.path.join(inside, "bad_ctx.onnx"), edited(model, "ep_cache_context", path))
        tool.refuses(f"run with {what}", ("run", "inside/bad_ctx.onnx"), "bad_ctx.onnx", word)
    changed = edited(model, "hardware_architecture", b"pdp-11")
    if changed:
        write(os.path.join(inside, "bad_ctx.onnx"), changed)
        tool.refuses("run on another architecture", ("run", "inside/bad_ctx.onnx"), "pdp-11")
    os.remove(os.path.join(inside, "bad_ctx.onnx"))

    ctx = "inside/good_ctx.onnx"
    write(blob, bytes(b ^ 0xff for b in content[:4]) + content[4:])
    tool.refuses("run with a wrong magic", ("run", ctx), "magic|not a")
    write(blob, b"")
    tool.refuses("run with an empty binary", ("run", ctx), binaries[0] + "|empty")
    write(blob, content[:len(content) // 2])
    tool.refuses("run with half a binary", ("run", ctx))
    write(blob, content)
    tool.survives("binary cut", blob, truncations, ("run", ctx))
    tool.survives("binary with flipped bits", blob, flips, ("run", ctx))
    tool.survives("context model with flipped bits", os.path.join(folder, ctx), flips,
                  ("run", ctx))
    tool.survives("source model with flipped bits", os.path.join(folder, "good.onnx"), flips,
                  ("run", "good.onnx"))


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    tool = Tool(sys.argv[1], sys.argv[2])
    os.makedirs(tool.folder)
    not_a_model(tool, tool.folder)
    not_compilable(tool, tool.folder)
    not_loadable(tool, tool.folder)
    sys.exit(1 if tool.failed else 0)


if __name__ == "__main__":
    main()
