#!/usr/bin/python3
"""Checks tests/rules.txt: every number once, names that exist, and for each rule with a test a
line in tests/mutations.txt, which says where a fault breaks it.

    tests/judge/rules.py

Prints the lines of the test protocol.
"""
import glob
import re
import sys

COUNTS = {"EPC": 169, "PLG": 89}


def read(path):
    try:
        with open(path, encoding="utf-8") as text:
            return text.read()
    except OSError:
        return None


def rows():
    """Number, words, functions and tests of each rule."""
    for line in read("tests/rules.txt").splitlines():
        if line and not line.startswith("#"):
            yield (line.split("\t") + ["", "", ""])[:4]


def tests_of(cell):
    """The names in a rule's last column."""
    return cell.split("; ") if ":" in cell and not cell.startswith(("open", "not ours")) else []


def function_exists(name, sources):
    return re.search(r"\b%s\(" % re.escape(name), sources) is not None


def test_exists(test):
    file, _, case = test.partition(":")
    if file.endswith(".sh"):
        text = read("tests/" + file)
        return text is not None and case != "" and case in text
    text = read("tests/%s.c" % file)
    # Defined, and run by RUN, ORT_CASE or in a way of the file's own.
    return text is not None and "\nTEST(%s) {\n" % case in text and len(
        re.findall(r"\b(?:test_case_|[A-Z_]+\((?:\"\w+\", )?)%s\b" % re.escape(case), text)) > 1


def check(cells, sources):
    """What is wrong with a row, or None; and its state."""
    _, words, where, test = cells
    functions, tests = where.split(), tests_of(test)
    if not words:
        return "four columns with words of ours are expected", None
    for name in functions:
        if not function_exists(name, sources):
            return "there is no function %s" % name, None
    if test.startswith("not ours: ") and not functions:
        return None, "not ours"
    if test == "open" or (test.startswith("open: ") and functions):
        return None, "open"
    if not functions or not tests:
        return "a function and a test, 'open' or 'not ours: why' are expected", None
    for name in tests:
        if not test_exists(name):
            return "there is no test %s" % name, None
    return None, "tested"


def tried_rules():
    """The rule of each line of mutations.txt, which mutants.py --check looks through."""
    return [line.split("\t")[0] for line in read("tests/mutations.txt").splitlines()
            if line and not line.startswith("#")]


def main():
    sources = "\n".join(read(path) for path in sorted(
        ["epctx.h", "epctx_npu.h"] + glob.glob("examples/**/*.[ch]", recursive=True) +
        glob.glob("examples/**/*.cc", recursive=True)))
    seen, states, failed = [], {"tested": 0, "open": 0, "not ours": 0}, False
    tests = {}
    for cells in rows():
        wrong, state = check(cells, sources)
        seen.append(cells[0])
        tests[cells[0]] = tests_of(cells[3]) if state == "tested" else []
        if wrong:
            print("FAIL rule %s: %s" % (cells[0], wrong))
            failed = True
        else:
            states[state] += 1
    for kind, count in COUNTS.items():
        want = ["%s-%03d" % (kind, i + 1) for i in range(count)]
        got = [name for name in seen if name.startswith(kind)]
        if got != want:
            odd = sorted(set(want) ^ set(got)) or [n for n in set(got)
                                                   if got.count(n) > 1] or ["order"]
            print("FAIL rules %s: each of 1 to %d once and in order is expected, look at %s" %
                  (kind, count, ", ".join(odd)))
            failed = True
    lines = tried_rules()
    tried = set(lines)
    for name in seen:
        if tests[name] and name not in tried:
            print("FAIL rule %s: no line in tests/mutations.txt says where a fault breaks it, so "
                  "nobody knows whether its test notices" % name)
            failed = True
    if not failed:
        print("ok rules")
    print("note rules: %d with a test (%d of these tried with mutations, %d lines), %d open, "
          "%d not ours" % (states["tested"], len(tried & set(seen)), len(lines), states["open"],
                    states["not ours"]))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
