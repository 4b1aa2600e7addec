#!/usr/bin/python3
"""examples/conformance/verdicts.md against what epctx-conformance finds on the EPs of the bench.

    tests/vendors/verdicts.py EPCTX PROGRAM WORK [EP...]

For each EP that runs here (all of the document's, or these): the rules that fail are those with a
section about it, the sums and the root are the table's, and the Python of each section, which knows
nothing of epctx, says what it is said to say, with the values of NAME, EP and OPTIONS that the
document gives. Prints lines of a test script.
"""
import ast
import json
import os
import re
import subprocess
import sys

import bench
import eps

DOCUMENT = "examples/conformance/verdicts.md"
LIMIT = 900
SECTION = re.compile(r"^### ((?:EPC|PLG|API)-\d+): (.+?)\n(.*?)(?=^##)", re.M | re.S)
CODE = re.compile(r"^```python\n(.*?)^```", re.M | re.S)
VALUES = re.compile(r"^\| ([\w-]+) \| `(\w+)` \| `(\w+)` \| `({.*})` \|$", re.M)
ROW = re.compile(r"^\| ([\w-]+) \|[^|]*\| (\d+) \| (\d+) \| ((?:EPC|PLG|API)-\d+) \|$", re.M)


def report(name, wrong):
    print(f"FAIL {name}: {wrong}" if wrong else f"ok {name}", flush=True)
    return bool(wrong)


def conformance(program, ep, work):
    """The suite's report."""
    words = [program, ep.library, "--json", "--timeout", "300"]
    if ep.tool_name:
        words[1:2] = [ep.library, ep.registers]
    for key, value in ep.options.items():
        words += ["--ep-opt", f"{key}={value}"]
    with open(os.path.join(work, ep.id + ".log"), "w", encoding="utf-8") as log:
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=log, check=False,
                              timeout=LIMIT)
    return json.loads(done.stdout)


def values_of(ep):
    """What the Python gets, as the document tells it: the paths are the reader's."""
    home = os.path.dirname(ep.library)
    return (ep.registers, ep.name, {k: v.replace(home, "/path/to") for k, v in ep.options.items()})


def python_says(ep, code, work):
    """What the lines print, and how they end."""
    os.makedirs(work)
    env = {**os.environ, "LIBRARY": ep.library, "NAME": ep.registers, "EP": ep.name,
           "OPTIONS": repr(ep.options), "ORT_DISABLE_TELEMETRY": "1",
           "GLIBC_TUNABLES": "glibc.malloc.perturb=165"}
    done = subprocess.run([sys.executable, "-B", "-c", code], cwd=work, env=env, check=False,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=LIMIT)
    text = done.stdout.decode("utf-8", "replace")
    return text + (f"\nsignal {-done.returncode}" if done.returncode < 0 else "")


def try_section(ep, prelude, section, work):
    """Whether its Python does not say what it is said to."""
    rule, _, body = section
    code, said = CODE.search(body), re.search(r"^Prints `(.+?)`", body, re.M)
    name = f"verdicts {ep.id} {rule} without the suite"
    if not code or not said:
        return report(name, "no Python, or no 'Prints `...`'")
    text = python_says(ep, prelude + code[1], os.path.join(work, f"{ep.id}-{rule}"))
    return report(name, "" if said[1] in text else f"expected '{said[1]}', found {text[-300:]!r}")


def try_ep(ep, row, values, sections, prelude, program, work):
    """How many cases failed."""
    wrong = "" if values == values_of(ep) else f"expected {values}, found {values_of(ep)}"
    count = report(f"verdicts {ep.id}: NAME, EP and OPTIONS", wrong)
    found = conformance(program, ep, work)
    failed = sorted(r["rule"] for r in found["rules"] if r["verdict"] == "failed")
    argued = sorted(section[0] for section in sections)
    wrong = "" if failed == argued else f"failed {failed}, argued {argued}"
    count += report(f"verdicts {ep.id}: each failure is argued", wrong)
    seen = (str(found["passed"]), str(found["failed"]), found["root"])
    wrong = "" if seen == row else f"expected {row}, found {seen}"
    count += report(f"verdicts {ep.id}: sums and root", wrong)
    return count + sum(try_section(ep, prelude, section, work) for section in sections)


def main():
    tool, program, work, *only = sys.argv[1:]
    with open(DOCUMENT, encoding="utf-8") as file:
        text = file.read()
    rows = {row[0]: row[1:] for row in ROW.findall(text)}
    values = {ident: (name, ep, ast.literal_eval(options))
              for ident, name, ep, options in VALUES.findall(text)}
    sections = SECTION.findall(text)
    prelude = CODE.search(text)[1]
    named = {ident for _, names, _ in sections for ident in names.split(", ")}
    failed = report("verdicts: each EP has a row and a section",
                    "" if named == set(rows) == set(values) else
                    f"{sorted(named)}, {sorted(rows)} and {sorted(values)}")
    os.makedirs(work)
    lab = bench.Bench(tool, work, True)
    for ep in eps.ALL:
        if ep.id not in (only or rows):
            continue
        missing = ep.missing(lab)
        if missing:
            print(f"skip verdicts of {ep.id}: {missing}")
            continue
        about = [s for s in sections if ep.id in s[1].split(", ")]
        failed += try_ep(ep, rows[ep.id], values[ep.id], about, prelude, program, work)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
