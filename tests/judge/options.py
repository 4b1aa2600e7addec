"""Whether every command does something with every option that it offers:

    options.py TOOL FOLDER

Each option of `epctx COMMAND --list-options` is given to a command line that works, in a copy of
the same files: exit code, output, messages or files must be others than without it. What ONNX
Runtime is needed for, and what only takes time or memory, is in the test that is named.
"""
import hashlib
import os
import re
import shutil
import struct
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import make_model  # noqa: E402

IO = "--inputs x:float32[1,3] --outputs y:float32[1,2]"
WITH_ORT = ("compile", "run", "verify", "bench", "devices")
# Whose --ep is a library; that of others is a name.
WITH_LIBRARY = WITH_ORT + ("lint", "info")
# Inputs, numbers and models of a session: test_ort.sh has them. The bytes are the same with
# --rebuild, as test_cli.sh shows; --hugging-face is what all commands open models by.
SAME = ("--seed", "--input-dir", "--dim", "--threads", "--repeat", "--sessions", "--rtol", "--atol",
        "--cosine", "--context", "--source", "--embed", "-v")
# What shows elsewhere: which test gives it to which commands.
ELSEWHERE = {
    "test_lint_ep.sh": ["--ep", "--ep-opt", "--option", "--timeout", "-v"],
    "test_qnn_system.sh": ["--qnn-system"],
    "test_ort.sh": ["--ort", "--ep", "--ep-opt", "--option", "--device", "--timeout",
                    "--optimization", "--no-share", "--by-session", "--compatibility",
                    "--verify"],
}


def digest(folder):
    found = {}
    for root, _, files in os.walk(folder):
        for name in files:
            path = os.path.join(root, name)
            with open(path, "rb") as file:
                found[os.path.relpath(path, folder)] = hashlib.sha256(file.read()).hexdigest()
    return found


def run(tool, folder, fixtures, command, line):
    """All that can be seen of a command: times and their like apart."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(fixtures, folder, symlinks=True)
    done = subprocess.run([tool, command, *line.split()], cwd=folder, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False, stdin=subprocess.DEVNULL)
    text = done.stdout + b"\0" + done.stderr
    return done.returncode, re.sub(rb"[0-9.]+(?= *(ms|us|,|$))", b"N", text), digest(folder)


def varint(number):
    out = b""
    while number > 127:
        out, number = out + bytes((number & 127 | 128,)), number >> 7
    return out + bytes((number,))


def huge(folder):
    """Models with an initializer of 2 GiB, which are holes, so that no disk is needed."""
    out = os.path.join(folder, "..", "huge")
    hole = (1 << 31) + 4096
    os.makedirs(out)
    shutil.copy(os.path.join(folder, "plain_npu.bin"), out)
    tensor = b"\x08" + varint(hole) + b"\x10\x03" + b"\x42\x04huge" + b"\x4a" + varint(hole)
    for name, to in (("plain", "huge"), ("plain_ctx", "huge_ctx"), ("in_ctx", "huge_in_ctx")):
        with open(os.path.join(folder, name + ".onnx"), "rb") as file:
            model = make_model.ModelProto.FromString(file.read())
        if to == "huge":
            model.graph.node.add(op_type="Identity", name="n", input=["huge"], output=["all"])
        graph = model.graph.SerializeToString() + b"\x2a" + varint(len(tensor) + hole) + tensor
        model.ClearField("graph")
        with open(os.path.join(out, to + ".onnx"), "wb") as file:
            file.write(model.SerializeToString() + b"\x3a" + varint(len(graph) + hole) + graph)
            file.truncate(file.tell() + hole)


def fixtures(tool, folder):
    """The files that the lines name."""
    os.makedirs(os.path.join(folder, "linked"))

    def save(model, name):
        with open(os.path.join(folder, name), "wb") as file:
            file.write(model.SerializeToString())

    def epctx(*arguments):
        subprocess.run([tool, *arguments], cwd=folder, check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)

    for kind in "plain", "partly", "dynamic":
        save(make_model.make(kind), kind + ".onnx")
    near = make_model.make("plain")
    near.graph.initializer[0].float_data[0] += 1
    save(near, "near.onnx")
    near.opset_import[0].version = 12
    save(near, "opset.onnx")
    for number in "1", "2":
        model = make_model.make("plain")
        model.metadata_props.add(key="k", value=number)
        save(model, f"meta{number}.onnx")
    twice = make_model.make("plain")
    for _ in range(2):
        function = twice.functions.add(name="F", domain="local", input=["p"], output=["q"])
        function.node.add(op_type="Relu", input=["p"], output=["q"])
    save(twice, "twice.onnx")
    weights = make_model.make("partly")
    for tensor in weights.graph.initializer:
        tensor.raw_data = struct.pack(f"<{len(tensor.float_data)}f", *tensor.float_data)
        del tensor.float_data[:]
    save(weights, "source.onnx")
    save(make_model.takes_weights(weights), "takes_ctx.onnx")
    with open(os.path.join(folder, "v.bin"), "wb") as file:
        file.write(b"vendor" * 99)
    with open(os.path.join(folder, "ignored"), "w", encoding="utf-8") as file:
        file.write("E012 *.onnx known\n")
    epctx("compile", "plain.onnx")
    epctx("set", "--in-place", "plain_ctx.onnx", "notes=old")
    for name in "away", "stale", "away2":
        epctx("compile", "-o", f"{name}_ctx.onnx", *(["--embed"] if name == "stale" else []),
              "plain.onnx")
    epctx("set", "--in-place", "stale_ctx.onnx", "ep_cache_context=other")
    with open(os.path.join(folder, "away_npu.bin"), "ab") as file:
        file.write(b"x")
    os.remove(os.path.join(folder, "away2_npu.bin"))
    epctx("compile", "--embed", "-o", "in_ctx.onnx", "plain.onnx")
    epctx("wrap", "--profile", "qnn", *IO.split(), "--name", "g", "-o", "qnn_ctx.onnx", "v.bin")
    epctx("merge", "-o", "twins_ctx.onnx", "--prefix", "a_,b_", "plain_ctx.onnx", "in_ctx.onnx")
    epctx("split", "--outputs", "c", "-o", "split1.onnx", "plain.onnx")
    epctx("split", "--inputs", "c:float32[1,2,4,4]", "-o", "split2.onnx", "plain.onnx")
    epctx("init", "--external", "--threshold", "0", "-o", "external.onnx", "plain.onnx")
    epctx("unset", "-o", "lost_ctx.onnx", "plain_ctx.onnx", "opset:com.microsoft")
    epctx("unset", "-o", "warned_ctx.onnx", "plain_ctx.onnx", "opset:com.microsoft")
    for name in "there.onnx", "there_ctx.onnx":
        shutil.copy(os.path.join(folder, "v.bin"), os.path.join(folder, name))
    shutil.copy(os.path.join(folder, "v.bin"), os.path.join(folder, "e.stripped.engine"))
    epctx("wrap", "--profile", "generic", "--source", "Mine", *IO.split(), "-o", "engine_ctx.onnx",
          "e.stripped.engine")
    epctx("compile", "partly.onnx")
    epctx("unset", "--all", "-o", "mute_ctx.onnx", "partly_ctx.onnx", "source")
    epctx("unset", "--all", "-o", "mute_in_ctx.onnx", "in_ctx.onnx", "source")
    rest = make_model.make("partly")
    rest.graph.initializer.add(name="rest_in", data_type=1, dims=[1000], raw_data=bytes(4000))
    rest.graph.node.add(op_type="Mine", name="mine", domain="org.example", input=["rest_in"],
                        output=["rest_out"])
    save(rest, "rest.onnx")
    huge(folder)
    blobs = os.path.join(folder, "blobs")
    os.makedirs(blobs)
    os.makedirs(os.path.join(folder, "snapshots", "1"))
    shutil.copy(os.path.join(folder, "plain_npu.bin"), os.path.join(blobs, "b"))
    shutil.copy(os.path.join(folder, "plain_ctx.onnx"), os.path.join(folder, "snapshots", "1"))
    os.symlink("../../blobs/b", os.path.join(folder, "snapshots", "1", "plain_npu.bin"))


def read_lines(path):
    """The lines of options.txt by what is before their first bar."""
    found = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                name, *rest = (part.strip() for part in re.split(r" \|(?: |$)", line.strip()))
                assert name not in found, name
                found[name] = rest
    return found


def lines_of(lines, command, name):
    """The command line with the option, and the one to compare it with."""
    base = lines[command][0]
    given, *without = lines.get(f"{command} {name}", lines.get(name, [name]))
    if not given.startswith("= "):
        return f"{given} {base}", base
    names = {"base": base, "last": base.split()[-1] if base else "",
             "huge": "-o new.onnx " + lines.get(f"huge {command}", [""])[0],
             "there": base.replace("new.onnx", "there.onnx").replace("sub_", "there_")}
    return given[2:].format(**names), (without[0] if without else base).format(**names)


def main():
    tool, work = os.path.abspath(sys.argv[1]), sys.argv[2]
    tests = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    made, folder = os.path.join(work, "fixtures"), os.path.join(work, "one")
    fixtures(tool, made)
    lines = read_lines(os.path.join(tests, "options.txt"))
    failed = count = 0
    known = {name for names in ELSEWHERE.values() for name in names}
    texts = ""
    for script in ELSEWHERE:
        with open(os.path.join(tests, script), encoding="utf-8") as file:
            texts += file.read()
    helped = subprocess.run([tool, "help"], stdout=subprocess.PIPE, check=True).stdout.decode()
    for command in re.findall(r"^  ([a-z][a-z-]+) +[a-z]", helped, re.M):
        listed = subprocess.run([tool, command, "--list-options"], stdout=subprocess.PIPE,
                                check=True).stdout.decode()
        seen = {}
        for row in listed.splitlines():
            name, _, _, text = row.split("\t")
            if name in ("--no-progress", "-h", "--help", "--rebuild") or (
                    command in WITH_ORT[2:] and name in SAME):
                continue
            if name == "--hugging-face" and command not in ("ls", "lint", "embed", "run", "info"):
                continue
            own = f"{command} {name}" in lines
            if name in known and not own and (command in WITH_LIBRARY or name != "--ep"):
                if name not in texts:
                    print(f"FAIL {command} {name}: no test has it")
                    failed += 1
                continue
            line, base = lines_of(lines, command, name if text not in seen else seen[text])
            if text in seen:  # another name of the same option
                line = line.replace(seen[text], name, 1)
            seen.setdefault(text, name)
            count += 1
            seen_with = run(tool, folder, made, command, line)
            if seen_with == run(tool, folder, made, command, base):
                print(f"FAIL {command} {name}: `{line}` does what `{base}` does")
                failed += 1
    print(f"ok {count - failed} options of all commands" if failed == 0 else
          f"FAIL {failed} of {count} options have no effect")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
