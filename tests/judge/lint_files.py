#!/usr/bin/python3
"""Lint of several files and folders.

    tests/judge/lint_files.py EPCTX FOLDER

Prints the lines that tests/run reads.
"""
import json
import os
import re
import subprocess
import sys
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import json_schema  # noqa: E402
import lint  # noqa: E402
from make_model import make  # noqa: E402

EPCTX, FOLDER = os.path.abspath(sys.argv[1]), sys.argv[2]
HOSTILE = "evil\x1b[31m, 100%: \u202e'\n::error::x"
# What SARIF 2.1.0 allows in the objects that lint writes; the first of each pair is required.
SARIF = {
    "": ({"version", "runs"}, {"$schema"}),
    "runs": ({"tool"}, {"results", "columnKind"}),
    "driver": ({"name"}, {"version", "rules"}),
    "rules": ({"id"}, {"name", "shortDescription", "help", "defaultConfiguration"}),
    "results": ({"message"}, {"ruleId", "ruleIndex", "level", "locations", "suppressions",
                              "partialFingerprints",
                              "properties"}),
    "locations": (set(), {"physicalLocation", "logicalLocations"}),
    "physicalLocation": (set(), {"artifactLocation", "region"}),
    "artifactLocation": (set(), {"uri"}),
    "region": (set(), {"startLine"}),
    "logicalLocations": (set(), {"name", "fullyQualifiedName"}),
    "suppressions": ({"kind"}, {"justification"}),
    "message": (set(), {"text"}),
    "shortDescription": ({"text"}, set()),
    "help": ({"text"}, set()),
}
failed = False


def run(*arguments, status=None):
    done = subprocess.run((EPCTX,) + arguments, cwd=FOLDER, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=60, check=False)
    out = done.stdout.decode("utf-8", "surrogateescape")
    err = done.stderr.decode("utf-8", "surrogateescape")
    if status is not None and done.returncode != status:
        raise AssertionError("%r: exit code %d, expected %d: %s%s" %
                             (arguments, done.returncode, status, out[-500:], err[-500:]))
    return done.returncode, out, err


def path(name):
    return os.path.join(FOLDER, name)


def write(name, data):
    os.makedirs(os.path.dirname(path(name)) or ".", exist_ok=True)
    with open(path(name), "wb") as out:
        out.write(data)


def model(name, change=None):
    """A QNN model of two partitions and one binary that has no errors and no warnings."""
    made = make("plain")
    made.opset_import.add(domain="com.microsoft", version=1)
    del made.graph.node[:]
    del made.graph.initializer[:]
    for at, (source, target) in enumerate((("x", "a"), ("a", "y"))):
        node = made.graph.node.add(op_type="EPContext", domain="com.microsoft", name="part%d" % at,
                                   input=[source], output=[target])
        for key, value in (("main_context", 1 - at), ("embed_mode", 0),
                           ("source", "QNNExecutionProvider"), ("ep_sdk_version", "2.30")):
            lint.put(node, key, value)
    lint.put(made.graph.node[0], "ep_cache_context", "model_qnn.bin")
    lint.value(made.graph.value_info, "a", 1, (1, 2))
    if change is not None:
        change(made)
    write(name, made.SerializeToString())
    write(os.path.join(os.path.dirname(name), "model_qnn.bin"), b"context bytes")


def no_import(made):
    del made.opset_import[1:]


def embedded(made):
    lint.put(made.graph.node[0], "embed_mode", 1)
    lint.put(made.graph.node[1], "embed_mode", 1)
    lint.put(made.graph.node[0], "ep_cache_context", b"context bytes")


def hostile(made):
    made.graph.node[0].name = HOSTILE
    lint.put(made.graph.node[0], "main_context", 2)


# As QNN's plugin EP was before 2.7: a rule with a cure that `repair` runs.
OLD_QNN = b"""facts: 1

rule: E014 qnn_plugin; who: Qualcomm; seen: bench; from: before 2.7; date: 2026-11-28
"""


def build():
    write("old.facts", OLD_QNN)
    os.environ["EPCTX_FACTS"] = os.path.abspath(path("old.facts"))
    model("d/a_ctx.onnx")
    model("d/below/b_ctx.onnx", no_import)  # W001
    model("d/below/c_ctx.onnx", embedded)  # E014
    model("d/z_ctx.onnx")
    model("clean/a_ctx.onnx")
    write("d/text.txt", b"no model")
    write("d/below/broken.ONNX", b"version https://git-lfs.github.com/spec/v1\n")
    os.symlink("a_ctx.onnx", path("d/link_in.onnx"))
    os.symlink("../clean/a_ctx.onnx", path("d/link_out.onnx"))
    os.symlink("nothing", path("d/link_broken.onnx"))
    os.symlink(".", path("d/loop"))
    os.mkfifo(path("d/pipe.onnx"))
    os.makedirs(path("empty/none"))


def walk():
    """Every model of a folder in order; links, pipes and files that are no models."""
    code, out, _ = run("lint", "--json", "d")
    report = json.loads(out)
    names = [one["file"] for one in report["files"]]
    want = ["d/a_ctx.onnx", "d/below/b_ctx.onnx", "d/below/broken.ONNX", "d/below/c_ctx.onnx",
            "d/link_broken.onnx", "d/link_in.onnx", "d/link_out.onnx", "d/pipe.onnx",
            "d/z_ctx.onnx"]
    assert names == want, names
    found = {one["file"]: [f["id"] for f in one["findings"]] for one in report["files"]}
    assert found["d/below/b_ctx.onnx"] == ["W001"], found
    assert found["d/below/c_ctx.onnx"] == ["E014"], found
    assert found["d/below/broken.ONNX"] == ["E901"] == found["d/pipe.onnx"], found
    assert found["d/link_out.onnx"] == ["W902"] == found["d/link_broken.onnx"], found
    assert found["d/link_in.onnx"] == [], found
    assert code == 1 and report["errors"] == 3 and report["warnings"] == 3, report
    assert run("lint", "d/")[1].replace("d//", "d/") == run("lint", "d")[1]


def several():
    _, out, _ = run("lint", "d/a_ctx.onnx", "clean", "d/below/b_ctx.onnx", status=0)
    assert "3 files: 0 errors, 1 warning," in out, out
    run("lint", "d/a_ctx.onnx", "gone.onnx", status=1)
    _, out, _ = run("lint", "gone.onnx", "d/below/c_ctx.onnx", status=1)
    assert "E901" in out and "E014" in out, out  # one bad file does not stop the others
    # What cannot be read is told alike, alone or among others, in every format.
    write("page.onnx", b"<!DOCTYPE html>\n<html></html>")
    for more in ([], ["clean"]):
        for form in ("text", "json", "sarif", "github"):
            _, out, err = run("lint", "--format", form, "page.onnx", *more, status=1)
            assert "E901" in out and "this is an HTML page" in out, (form, out)
            assert "0 files" not in out and bool(err) == (form == "json"), (form, out, err)
    _, out, _ = run("lint", "empty", status=1)
    assert "no .onnx file" in out, out
    run("lint", status=2)


def one_file():
    """The JSON of one file is an object without a list of files."""
    _, out, _ = run("lint", "--json", "d/below/b_ctx.onnx", status=0)
    report = json.loads(out)
    json_schema.judge(report)
    assert list(report)[2:] == ["file", "findings", "errors", "warnings", "hints"], report
    assert list(report["findings"][0]) == ["id", "rule", "severity", "node", "graph", "attribute",
                                           "message", "fix", "command"], report
    assert out == run("lint", "--format", "json", "d/below/b_ctx.onnx")[1]


def strict():
    run("lint", "d/below/b_ctx.onnx", status=0)
    run("lint", "--strict", "d/below/b_ctx.onnx", status=1)
    run("lint", "--strict", "clean", status=0)


def chosen():
    # What cannot be read cannot be judged: it is told whichever rules are wanted.
    _, out, _ = run("lint", "--rules", "W001,E012", "d", status=1)
    assert "W001" in out and "E014" not in out and "E901" in out, out
    run("lint", "--rules", "payload-missing", "d", status=1)
    _, _, err = run("lint", "--rules", "E999", "d", status=2)
    assert "there is no rule 'E999'" in err, err
    _, out, _ = run("lint", "--rules", "I004", "d/a_ctx.onnx", status=0)
    assert "I004" in out, out  # a hint that is asked for is shown
    _, out, _ = run("lint", "--rules", status=0)
    assert "E022 file-missing" in out
    json.loads(run("lint", "--rules", "--json", status=0)[1])


def ignored():
    write("pass", b"# known\n\nW001 b_ctx.onnx made by the vendor\r\n"
          b"payload-missing below/*:part1  the vendor says so\n")
    _, out, _ = run("lint", "--strict", "--ignore", "pass", "d/below/b_ctx.onnx",
                    "d/below/c_ctx.onnx", status=0)
    assert "2 files: 0 errors, 0 warnings" in out and "2 ignored" in out, out
    _, out, _ = run("lint", "--ignore", "pass", "--json", "d/below/c_ctx.onnx", status=0)
    report = json.loads(out)
    assert report["ignored"] == 1 and report["warnings"] == 1, report
    unused = report["files"][1]["findings"][0]
    assert unused["id"] == "W901" and unused["line"] == 3, unused
    run("lint", "--strict", "--ignore", "pass", "d/below/c_ctx.onnx", status=1)
    for text, word in ((b"W001 b_ctx.onnx\n", "the reason is missing"),
                       (b"\n\nW001\n", "bad:3: "), (b"W999 * because\n", "no rule 'W999'"),
                       (b"\0 * because\n", "no rule"), (b"\x1b[31m x y\n", "\\x1b")):
        write("bad", text)
        _, _, err = run("lint", "--ignore", "bad", "clean", status=2)
        assert word in err and "\x1b" not in err, err
    _, _, err = run("lint", "--ignore", "gone", "clean", status=2)
    assert "gone" in err, err


def keys(name, value):
    """Every object has only the keys that SARIF allows."""
    if isinstance(value, list):
        for one in value:
            keys(name, one)
    elif isinstance(value, dict):
        if name in SARIF:
            needed, more = SARIF[name]
            assert needed <= set(value) <= needed | more, (name, set(value))
        for key, one in value.items():
            if name != "properties":
                keys(key, one)


def sarif():
    write("pass", b"E014 * as it is\n")
    model("hostile/" + "a b%,:\x1b.onnx", hostile)
    _, out, _ = run("lint", "--format", "sarif", "--hints", "--ignore", "pass", "d", "hostile",
                    status=1)
    report = json.loads(out)
    keys("", report)
    assert report["version"] == "2.1.0" and "\x1b" not in out and "\u202e" not in out
    whole = report["runs"][0]
    rules = whole["tool"]["driver"]["rules"]
    assert len({rule["id"] for rule in rules}) == len(rules)
    for rule in rules:
        assert rule["defaultConfiguration"]["level"] in ("error", "warning", "note"), rule
    seen = set()
    for result in whole["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"], result
        assert result["level"] in ("error", "warning", "note"), result
        uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        assert re.fullmatch(r"[A-Za-z0-9._~/%-]+", uri), uri
        assert os.path.lexists(path(urllib.parse.unquote(uri))), uri
        assert ("suppressions" in result) == (result["ruleId"] == "E014"), result
        seen.add(result["ruleId"])
    assert {"W001", "E014", "E005", "E901", "W902", "I004"} <= seen, seen
    whole = os.path.abspath(path("d/below/c_ctx.onnx"))
    report = json.loads(run("lint", "--format", "sarif", whole)[1])
    assert report["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"][
        "uri"] == "file://" + whole
    report = json.loads(run("lint", "--format", "sarif", "gone.onnx", status=1)[1])
    assert report["runs"][0]["results"][0]["ruleId"] == "E901"


def github():
    _, out, _ = run("lint", "--format", "github", "d/below", "hostile", status=1)
    lines = out.splitlines()
    assert lines[-1].startswith("4 files: "), lines
    for line in lines[:-1]:
        assert re.fullmatch(r"::(error|warning|notice) file=[^,:]*,line=1,"
                            r"title=[EWI]\d{3} [a-z-]+::.*", line), line
        assert "\x1b" not in line and "\u202e" not in line, line
    assert any(line.startswith("::warning file=d/below/b_ctx.onnx,line=1,title=W001 ")
               for line in lines), lines
    evil = [line for line in lines if "hostile/" in line and "E005" in line]
    assert evil and "file=hostile/a b%25%2C%3A\\x1b.onnx," in evil[0], evil
    assert "100%25" in evil[0] and "\\x0a::error::x" in evil[0], evil
    _, _, err = run("lint", "--format", "xml", "d", status=2)
    assert "not 'xml'" in err, err
    run("lint", "--json", "--format", "text", "d", status=2)


def cures():
    """The command of a finding cures it, whatever the file's name."""
    name = "it's $(touch bad) \\ \x1b.onnx"
    for case, rule, change in (("cure1", "W001", no_import), ("cure2", "E014", embedded)):
        # A new file with a backslash in its name would be the next finding, and one with a control
        # character is not written.
        odd = name if rule == "W001" else name.replace("\\ \x1b", "")
        model("%s/%s" % (case, odd), change)
        model("%s/-o.onnx" % case, change)
        for file in (odd, "-o.onnx"):
            _, out, _ = run("lint", "--json", "--", "%s/%s" % (case, file))
            found = json.loads(out)["findings"]
            assert [f["id"] for f in found] == [rule], found
            command = found[0]["command"]
            assert "\x1b" not in command, command
            done = subprocess.run(["bash", "-c", command.replace("epctx ", "'%s' " % EPCTX, 1)],
                                  cwd=FOLDER, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  timeout=60, check=False)
            assert done.returncode == 0, (command, done.stdout)
            run("lint", "--strict", "--rules", rule, "%s/%s" % (case, file), status=0)
    model("cure3/" + name, embedded)
    _, out, _ = run("lint", "--", "cure3/" + name, status=1)
    assert "E014" in out and "run:" not in out, out
    _, out, _ = run("lint", "d/below/c_ctx.onnx", status=1)
    assert "\n    run: epctx extract --in-place d/below/c_ctx.onnx\n" in out, out


def repaired():
    """repair runs the cure of E014: extract."""
    model("repair/c_ctx.onnx", embedded)
    os.unlink(path("repair/model_qnn.bin"))
    _, out, _ = run("repair", "--in-place", "--dry-run", "repair/c_ctx.onnx", status=0)
    assert "extracted 'part0' in c_ctx_qnn.bin" in out, out
    assert os.listdir(path("repair")) == ["c_ctx.onnx"]
    run("repair", "--rules", "W001", "--in-place", "repair/c_ctx.onnx", status=0)
    run("lint", "repair/c_ctx.onnx", status=1)
    run("repair", "--rules", "E014", "--in-place", "repair/c_ctx.onnx", status=0)
    with open(path("repair/c_ctx_qnn.bin"), "rb") as made:
        assert made.read() == b"context bytes"
    run("lint", "--strict", "repair/c_ctx.onnx", status=0)
    # The EP wants a context in each node: that one is not anywhere.

    def migraphx(made):
        embedded(made)
        for node in made.graph.node:
            lint.put(node, "source", "MIGraphXExecutionProvider")
    model("left/m_ctx.onnx", migraphx)
    _, out, _ = run("repair", "--in-place", "left/m_ctx.onnx", status=3)
    assert "left 1 finding: contexts cannot be moved to files" in out, out
    for rule in ("E999", "E022,E024", "E900", "E101", "W901"):
        run("repair", "--rules", rule, "--in-place", "left/m_ctx.onnx", status=2)


def main():
    global failed
    build()
    for case in (walk, several, one_file, strict, chosen, ignored, sarif, github, cures, repaired):
        try:
            case()
            print("ok lint of files: %s" % case.__name__)
        except (AssertionError, KeyError, IndexError, ValueError, OSError,
                subprocess.TimeoutExpired) as error:
            print("FAIL lint of files: %s: %s" % (case.__name__, str(error)[:1500]))
            failed = True
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
