#!/usr/bin/python3
"""What the epctx tool prints for programs, and how it behaves on a terminal.

    tests/judge/cli.py EPCTX FOLDER

Every --json is parsed and its values are compared with what the models were
made of; the tool runs on a pseudo-terminal, in a pipe, with a full disk, with
closed streams and in a locale with a decimal comma. Prints the lines that
tests/run reads; models and the like are left in FOLDER.
"""
import base64
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from make_model import make, value  # noqa: E402
import json_schema  # noqa: E402
import lint  # noqa: E402

COMPAT = "6:2.30.0:2.20.0:3.3.3:73:0"
BINARY = b"context bytes"
# A name that is no UTF-8, what JSON escapes, and a letter beyond ASCII.
NAME = b'bad\xff"\\\n\xc3\xa4'
NAME_JSON = 'bad\ufffd"\\\n\u00e4'


def save(message, path):
    with open(path, "wb") as out:
        out.write(message.SerializeToString())


def text_field(number, data):
    """A length-delimited field, for strings that Python would refuse."""
    return bytes((number << 3 | 2, len(data))) + data


def context_model(source="QNNExecutionProvider"):
    model = make("plain")
    model.opset_import.add(domain="com.microsoft", version=1)
    del model.graph.node[:]
    del model.graph.initializer[:]
    for at, (read, made) in enumerate((("x", "a"), ("a", "y"))):
        node = model.graph.node.add(op_type="EPContext", domain="com.microsoft", name=f"part{at}",
                                    input=[read], output=[made])
        for key, what in (("main_context", 1 - at), ("embed_mode", 0), ("source", source),
                          ("ep_sdk_version", "2.30")):
            lint.put(node, key, what)
    lint.put(model.graph.node[0], "ep_cache_context", "model_qnn.bin")
    value(model.graph.value_info, "a", 1, (1, 2))
    model.metadata_props.add(key="ep_compatibility_info.QNNExecutionProvider", value=COMPAT)
    return model


class Case:
    """Makes a failed assertion or anything else that goes wrong a FAIL line."""
    failed = False

    def __init__(self, name):
        self.name = name

    def __enter__(self):
        return self

    def __exit__(self, kind, problem, trace):
        if kind is None:
            print(f"ok {self.name}")
            return True
        while trace.tb_next is not None:
            trace = trace.tb_next
        text = str(problem).replace("\n", " ") or kind.__name__
        print(f"FAIL {self.name}: line {trace.tb_lineno}: {text[:500]}")
        Case.failed = True
        return issubclass(kind, Exception)


def equal(found, expected):
    assert found == expected, f"expected {expected!r}, found {found!r}"


class Tool:
    def __init__(self, path):
        self.path = path

    def run(self, *arguments, code=0, **how):
        done = subprocess.run([self.path, *arguments], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, stdin=how.pop("stdin", subprocess.DEVNULL),
                              check=False, **how)
        assert done.returncode == code, (f"{arguments}: exit code {done.returncode}, expected "
                                         f"{code}: {done.stderr.decode(errors='replace')}")
        return done.stdout, done.stderr

    def json(self, *arguments, code=0, **how):
        out, _ = self.run(*arguments, code=code, **how)
        answer = json_schema.read(out)
        json_schema.judge(answer)
        return answer

    def terminal(self, *arguments, feed=(), out_too=False, env=None):
        """Runs with a terminal as standard error (and output); what came there. `feed`: bytes for
        standard input, and numbers for seconds to wait."""
        ours, theirs = pty.openpty()
        seen = []
        environ = {**os.environ, "TERM": "xterm", **(env or {})}
        if "NO_COLOR" not in (env or {}):
            environ.pop("NO_COLOR", None)
        process = subprocess.Popen([self.path, *arguments], stdin=subprocess.PIPE,
                                   stdout=theirs if out_too else subprocess.DEVNULL,
                                   stderr=theirs, env=environ)
        os.close(theirs)

        def read():
            try:
                while True:
                    data = os.read(ours, 65536)
                    if not data:
                        return
                    seen.append(data)
            except OSError:  # Linux: the other end is closed
                pass

        reader = threading.Thread(target=read)
        reader.start()
        try:
            for piece in feed:
                if isinstance(piece, bytes):
                    process.stdin.write(piece)
                    process.stdin.flush()
                else:
                    time.sleep(piece)
            process.stdin.close()
        except BrokenPipeError:
            pass
        code = process.wait()
        reader.join()
        os.close(ours)
        return code, b"".join(seen)


def check_json(tool):
    with Case("json info"):
        info = tool.json("info", "--json", "model_ctx.onnx")
        equal(info["state"], "fully")
        equal(info["opsets"], [{"domain": "", "version": 13},
                               {"domain": "com.microsoft", "version": 1}])
        equal([p["source"] for p in info["partitions"]], ["QNNExecutionProvider"] * 2)
        equal([p["main_context"] for p in info["partitions"]], [1, 0])
        equal(info["compatibility"], {"QNNExecutionProvider": COMPAT})
        equal([(f["name"], f["purpose"], f["required"], f["size"]) for f in info["files"]],
              [("model_qnn.bin", "context binary", True, len(BINARY))])
        equal(info["warnings"], [])
    with Case("json ls"):
        files = tool.json("ls", "--json", "model_ctx.onnx")["files"]
        equal([(f["name"], f["size"], f["users"], f["node"], f["problem"]) for f in files],
              [("model_qnn.bin", len(BINARY), 1, "part0", None)])
        assert os.path.samefile(files[0]["path"], "model_qnn.bin")
    with Case("json ls of a missing file"):
        files = tool.json("ls", "--json", "lost_ctx.onnx", code=1)["files"]
        equal([(f["path"], f["size"], f["required"]) for f in files], [(None, None, True)])
        assert "lost.bin" in files[0]["problem"], files
    with Case("json lint"):
        found = tool.json("lint", "--json", "lost_ctx.onnx", code=1)
        equal(found["errors"], 1)
        equal([(f["id"], f["severity"], f["node"], f["attribute"]) for f in found["findings"]
               if f["severity"] == "error"], [("E022", "error", "part0", "ep_cache_context")])
    with Case("json lint --rules, in both orders"):
        rules = tool.json("lint", "--rules", "--json")
        equal(tool.json("lint", "--json", "--rules"), rules)
        ids = [r["id"] for r in rules["rules"]]
        assert len(ids) == len(set(ids)) > 70 and "E012" in ids, ids
    with Case("json scan"):
        scan = tool.json("scan", "--json", "model_ctx.onnx")
        equal([n["name"] for n in scan["nodes"]], ["part0", "part1"])
        equal(scan["nodes"][0]["ep_cache_context"], "model_qnn.bin")
        equal([(m["key"], m["value"]) for m in scan["metadata"]],
              [("ep_compatibility_info.QNNExecutionProvider", COMPAT)])
        with open("model_ctx.onnx", "rb") as model:
            data = model.read()
        entry = scan["metadata"][0]
        equal(data[entry["offset"]:entry["offset"] + entry["length"]], COMPAT.encode())
        equal((scan["node_count"], scan["ep_node_count"], scan["size"]), (2, 2, len(data)))
        with open("model_ctx.onnx", "rb") as model:
            stream = tool.json("scan", "--json", "-", stdin=model)
        equal((stream["nodes"], stream["metadata"]), (scan["nodes"], None))
    with Case("json check"):
        answer = tool.json("check", "--json", "--against", COMPAT, "model_ctx.onnx", code=0)
        equal((answer["compatibility"], answer["meaning"]), (1, "EP_SUPPORTED_OPTIMAL"))
        equal(answer["entries"], [{"ep": "QNNExecutionProvider", "value": COMPAT}])
        answer = tool.json("check", "--json", "--against", COMPAT, "two_ctx.onnx", code=4)
        assert "--ep" in answer["failures"][0]["message"], answer
    with Case("json diff"):
        equal(tool.json("diff", "--json", "model_ctx.onnx", "model_ctx.onnx")["changes"], [])
        found = tool.json("diff", "--json", "model_ctx.onnx", "other_ctx.onnx", code=1)["changes"]
        equal([(d["change"], d["what"], d["old"], d["new"]) for d in found],
              [("changed", f"node 'part{i}': source", '"QNNExecutionProvider"', '"Other"')
               for i in (0, 1)])
    with Case("json explain"):
        found = tool.json("explain", "--json", "Context binary does not exist: ")["entries"]
        assert len(found) == 1 and "31977" in found[0]["cause"] and found[0]["cure"], found
        answer = tool.json("explain", "--json", "no such thing", code=1)
        equal((answer["entries"], len(answer["failures"])), ([], 1))
    with Case("json get"):
        answer = tool.json("get", "--json", "--node", "part0", "model_ctx.onnx", "source")
        equal((answer["value"], answer["encoding"], answer["size"]),
              ("QNNExecutionProvider", "utf-8", 20))
        answer = tool.json("get", "--json", "--node", "part1", "model_ctx.onnx", "main_context")
        equal(answer["value"], "0")
        for size in range(0, 5):
            answer = tool.json("get", "--json", f"bytes{size}_ctx.onnx", "context")
            equal(answer["size"], size + 2)
            equal(answer["encoding"], "base64")
            equal(base64.b64decode(answer["value"], validate=True), b"\xff\0" + b"abcdef"[:size])
    with Case("json npu-dump"):
        found = tool.json("npu-dump", "--json", "--threads", "2", "plain.onnx")
        passes = [p["pass"] for p in found["passes"]]
        equal((passes[0], passes[-1]), ("lower", "plan"))
        equal(len(set(passes)), len(passes))
        commands = found["graphs"][0]["commands"]
        ops = [(c["op"], c["node"]) for c in commands]
        equal(ops, [(c["op"], c["node"]) for c in found["passes"][-1]["commands"]])
        assert all(c["us"] > 0 and c["bytes"] > 0 and c["elements"] > 0 for c in commands), commands
        assert found["graphs"][0]["work"] > sum(c["products"] for c in commands) > 0, found
    with Case("json dump"):
        records = tool.json("dump", "--json", "--values", "model_ctx.onnx")["records"]
        equal(records[0]["producer_name"], "epctx tests")
        nodes = [r for r in records if r["record"] == "node"]
        equal([(n["index"], n["name"], n["inputs"], n["outputs"]) for n in nodes],
              [(0, "part0", ["x"], ["a"]), (1, "part1", ["a"], ["y"])])
        attrs = {r["name"]: r["value"] for r in records if r["record"] == "attr"}
        equal((attrs["main_context"], attrs["ep_cache_context"]), (0, "model_qnn.bin"))
        equal([r["type"] for r in records if r["record"] == "value"], ["1:[1,2]"])
        plain = tool.json("dump", "--json", "model_ctx.onnx")["records"]
        assert len(plain) < len(records) and not any("value" in r for r in plain)
        weights = [r for r in tool.json("dump", "--json", "--values", "plain.onnx")["records"]
                   if r["record"] == "init"]
        equal([(w["name"], w["dims"]) for w in weights], [("w", [2, 1, 3, 3]), ("b", [2])])
        equal(weights[0]["data"]["size"], 72)
        equal(weights[1]["data"]["hex"], "000020bf0000803e")
    with Case("json compile and run"):
        made = tool.json("compile", "--json", "-f", "plain.onnx")
        equal((made["model"], made["binary"], made["partitions"], made["cpu_nodes"]),
              ("plain_ctx.onnx", "plain_npu.bin", 1, 0))
        equal(made["binary_size"], os.path.getsize("plain_npu.bin"))
        made = tool.json("compile", "--json", "--embed", "-o", "in_ctx.onnx", "plain.onnx")
        equal(made["binary"], None)
        ran = tool.json("run", "--json", "--repeat", "3", "--dump", "dumped", "plain_ctx.onnx")
        equal((ran["runs"], ran["partitions"], ran["compiled_in_memory"]), (3, 1, False))
        output = ran["outputs"][0]
        equal((output["name"], output["elem_type"], output["dims"]), ("y", 1, [1, 2, 1, 1]))
        with open("dumped/output_0.bin", "rb") as dumped:
            numbers = struct.unpack("<2f", dumped.read())
        for found, want in zip(output["first"], numbers):
            assert abs(found - want) <= 1e-7 * abs(want), (found, want)
        assert output["min"] <= output["mean"] <= output["max"], output
    with Case("json of names that are no UTF-8"):
        equal(tool.json("info", "--json", "bytes_ctx.onnx", code=0)["partitions"][0]["name"],
              NAME_JSON)
        equal(tool.json("scan", "--json", "bytes_ctx.onnx")["nodes"][0]["name"], NAME_JSON)
        equal([r["name"] for r in tool.json("dump", "--json", "bytes_ctx.onnx")["records"]
               if r["record"] == "node"], [NAME_JSON])
        # The graph occurs twice: Python does not write such a name.
        found = tool.json("lint", "--json", "bytes_ctx.onnx")["findings"]
        assert any(f["id"] == "W025" for f in found), found
        assert any(f["id"] == "W014" and f["node"] == NAME_JSON for f in found), found
        keys = [d["what"] for d in tool.json("diff", "--json", "bytes_ctx.onnx", "plain.onnx",
                                             code=1)["changes"]]
        assert f"node '{NAME_JSON}'" in keys, keys


SLOW = (1.6,)  # a second goes by before the bar is drawn; more than that does no harm


def check_terminal(tool):
    with open("model_ctx.onnx", "rb") as model:
        data = model.read()
    slow = (data[:10], *SLOW, data[10:])
    with Case("progress on a terminal"):
        code, seen = tool.terminal("scan", "-", feed=slow)
        equal(code, 0)
        assert re.search(rb"\repctx: scan, [1-9][0-9]* s\x1b\[K", seen), seen
        assert seen.endswith(b"\r\x1b[K"), seen
    with Case("progress of a known size"):
        # As often as takes two seconds, however fast the machine is.
        repeat, seconds = 50000, 0
        while seconds < 2 and repeat < 10**11:
            start = time.monotonic()
            code, seen = tool.terminal("run", "--repeat", str(repeat), "--json", "plain_ctx.onnx")
            equal(code, 0)
            seconds = time.monotonic() - start
            repeat *= max(2, int(2.5 / max(seconds, 0.01)))
        assert re.search(rb"\repctx: run \[#+\.+\] [0-9]+ %, [1-9][0-9]* s\x1b\[K", seen), \
            seen[:500]
        assert seen.endswith(b"\r\x1b[K"), seen[-80:]
    with Case("no progress of what is fast"):
        for _ in range(20):  # on a busy machine it may not be fast
            start = time.monotonic()
            code, seen = tool.terminal("scan", "-", feed=(data,))
            if time.monotonic() - start < 0.9:
                break
        equal((code, seen), (0, b""))
    with Case("no progress in a pipe"):
        process = subprocess.Popen([tool.path, "scan", "-"], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdin.write(data[:10])
        process.stdin.flush()
        time.sleep(SLOW[0])
        out, err = process.communicate(data[10:])
        equal((process.returncode, err), (0, b""))
        assert b"2 of them EPContext" in out and b"\x1b" not in out, out
    with Case("--no-progress"):
        equal(tool.terminal("scan", "--no-progress", "-", feed=slow), (0, b""))
    with Case("no progress on a terminal without control sequences"):
        equal(tool.terminal("scan", "-", feed=slow, env={"TERM": "dumb"}), (0, b""))
    with Case("progress and results on one terminal"):
        code, seen = tool.terminal("scan", "-", feed=(data[:-4], *SLOW, data[-4:]), out_too=True)
        equal(code, 0)
        # What is left on the screen when the bar was drawn and taken away.
        left = re.sub(rb"\repctx: scan[^\r\n]*\x1b\[K", b"", seen).replace(b"\r\x1b[K", b"")
        equal(left.replace(b"\r\n", b"\n"), tool.run("scan", "model_ctx.onnx")[0])
        assert left != seen, "no bar was drawn"
    with Case("colour on a terminal only"):
        _, seen = tool.terminal("lint", "lost_ctx.onnx", out_too=True)
        assert b"\x1b[31merror E022\x1b[0m" in seen, seen
        _, seen = tool.terminal("lint", "lost_ctx.onnx", out_too=True, env={"NO_COLOR": "1"})
        assert b"error E022" in seen and b"\x1b" not in seen, seen
        _, seen = tool.terminal("lint", "--json", "lost_ctx.onnx", out_too=True)
        assert b"\x1b" not in seen, seen
        out, err = tool.run("lint", "lost_ctx.onnx", code=1)
        assert b"error E022" in out and b"\x1b" not in out + err, out
    with Case("a payload does not go to a terminal as it is"):
        code, seen = tool.terminal("get", "bytes3_ctx.onnx", "context", out_too=True)
        equal((code, seen), (0, b"\\xff\\x00abc\r\n"))


PRINTING = (  # and the exit code when nothing can be printed
    (1, "info", "model_ctx.onnx"), (1, "ls", "model_ctx.onnx"), (1, "lint", "model_ctx.onnx"),
    (1, "lint", "--rules"), (4, "check", "model_ctx.onnx"), (1, "explain", "larger than 2GB"),
    (1, "get", "--node", "part0", "model_ctx.onnx", "source"), (2, "diff", "plain.onnx",
                                                                "model_ctx.onnx"),
    (1, "scan", "model_ctx.onnx"), (1, "dot", "model_ctx.onnx"), (1, "run", "plain_ctx.onnx"),
    (1, "compile", "-f", "plain.onnx"), (1, "dump", "model_ctx.onnx"), (1, "help"),
    (1, "--version"), (1, "info", "--help"))


def check_streams(tool):
    if os.access("/dev/full", os.W_OK):
        with Case("full disk"):
            for code, *arguments in PRINTING:
                with open("/dev/full", "wb") as full:
                    done = subprocess.run([tool.path, *arguments], stdout=full,
                                          stderr=subprocess.PIPE, check=False)
                assert done.returncode == code and done.stderr.startswith(
                    b"epctx: standard output: "), (arguments, done.returncode, done.stderr)
    else:
        print("skip full disk: there is no /dev/full")
    with Case("closed standard output"):
        for code, *arguments in PRINTING:
            done = subprocess.run(["sh", "-c", '"$@" >&-', "sh", tool.path, *arguments],
                                  stderr=subprocess.PIPE, check=False)
            assert done.returncode == code and b"standard output" in done.stderr, (
                arguments, done.returncode, done.stderr)
    with Case("closed standard streams leave outputs whole"):
        tool.run("copy", "plain.onnx", "copy.onnx")
        with open("copy.onnx", "rb") as copy:
            want = copy.read()
        subprocess.run(["sh", "-c", '"$@" <&- >&- 2>&-', "sh", tool.path, "compile", "-f",
                        "copy.onnx"], check=False)
        subprocess.run(["sh", "-c", '"$@" <&- >&- 2>&-', "sh", tool.path, "copy", "-f",
                        "plain.onnx", "copy.onnx"], check=False)
        with open("copy.onnx", "rb") as copy:
            equal(copy.read(), want)
        with open("copy_npu.bin", "rb") as binary, open("plain_npu.bin", "rb") as other:
            equal(binary.read(), other.read())
    with Case("reader that goes away"):
        # More than a pipe holds.
        process = subprocess.Popen([tool.path, "dump", "--values", "long.onnx"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdout.read(1)
        process.stdout.close()
        err = process.stderr.read()
        process.stderr.close()
        equal((process.wait(), err), (-signal.SIGPIPE, b""))


def check_locale(tool):
    folder = os.path.abspath("locale")
    os.makedirs(folder, exist_ok=True)
    made = subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8",
                           os.path.join(folder, "de_DE.UTF-8")], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, check=False) if os.path.exists(
                              "/usr/share/i18n/locales/de_DE") else None
    if made is None or not os.path.exists(os.path.join(folder, "de_DE.UTF-8")):
        print("skip numbers in a locale with a comma: localedef cannot make de_DE")
        return
    german = dict(os.environ, LOCPATH=folder, LC_ALL="de_DE.UTF-8")
    with Case("numbers in a locale with a comma"):
        probe = subprocess.run([sys.executable, "-c", "import locale; locale.setlocale("
                                "locale.LC_ALL, ''); print(locale.str(1.5))"], env=german,
                               stdout=subprocess.PIPE, check=True)
        equal(probe.stdout.strip(), b"1,5")
        for arguments in (("dump", "--values", "floats.onnx"), ("run", "--json", "plain_ctx.onnx"),
                          ("run", "plain_ctx.onnx"), ("diff", "floats.onnx", "plain.onnx")):
            code = 1 if arguments[0] == "diff" else 0
            there, here = (re.sub(rb"[0-9.]+ ms|_ms\": [0-9.]+", b"", tool.run(
                *arguments, code=code, env=env)[0]) for env in (german, dict(os.environ)))
            equal(there, here)
        assert b"1.5" in tool.run("dump", "--values", "floats.onnx", env=german)[0]


def make_models():
    model = context_model()
    save(model, "model_ctx.onnx")
    with open("model_qnn.bin", "wb") as binary:
        binary.write(BINARY)
    save(context_model("Other"), "other_ctx.onnx")
    lint.put(model.graph.node[0], "ep_cache_context", "lost.bin")
    save(model, "lost_ctx.onnx")
    model.metadata_props.add(key="ep_compatibility_info.Another", value="1")
    save(model, "two_ctx.onnx")
    save(make("plain"), "plain.onnx")
    for size in range(0, 5):
        single = context_model()
        del single.graph.node[1:]
        single.graph.output[0].name = "a"
        lint.put(single.graph.node[0], "embed_mode", 1)
        lint.put(single.graph.node[0], "ep_cache_context", b"\xff\0" + b"abcdef"[:size])
        save(single, f"bytes{size}_ctx.onnx")
    # A second graph with the node and its name, which libprotobuf merges with the first.
    node = single.graph.node[0]
    node.ClearField("name")
    raw = node.SerializeToString() + text_field(3, NAME)
    del single.graph.node[:]
    whole = single.SerializeToString() + b"\x3a" + bytes((len(raw) + 3 & 0x7f | 0x80,
                                                          len(raw) + 3 >> 7)) + \
        b"\x0a" + bytes((len(raw) & 0x7f | 0x80, len(raw) >> 7)) + raw
    with open("bytes_ctx.onnx", "wb") as out:
        out.write(whole)
    floats = make("plain")
    floats.graph.node[0].attribute.add(name="alpha", type=1, f=1.5)
    floats.graph.node[0].attribute.add(name="betas", type=6, floats=(2.5, 1e-30))
    save(floats, "floats.onnx")
    long = make("plain")
    for i in range(20000):
        long.graph.node.add(op_type="Relu", name=f"n{i}", input=["y"], output=[f"o{i}"])
    save(long, "long.onnx")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    tool = Tool(os.path.abspath(sys.argv[1]))
    os.makedirs(sys.argv[2], exist_ok=True)
    os.chdir(sys.argv[2])
    make_models()
    check_json(tool)
    check_terminal(tool)
    check_streams(tool)
    check_locale(tool)
    sys.exit(1 if Case.failed else 0)


if __name__ == "__main__":
    main()
