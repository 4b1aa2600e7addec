#!/usr/bin/python3
"""Line and branch coverage of the headers, section by section.

    tests/coverage.py FOLDER [LIST]

FOLDER holds objects built with --coverage and what their runs left. A header is compiled into many
programs; a line or a branch counts when any of them went there. LIST gets every line that never ran
and every branch that was never taken.

A branch that nothing can take has its reason beside it, or on a line of its own above it:

    if (size > MOST) { /* not taken: needs 2^31 dimensions */

Such branches count as marked, are printed with their reasons, and may be at most 2 % of a header.
"""
import collections
import json
import os
import re
import subprocess
import sys

HEADERS = ("epctx.h", "epctx_npu.h")
MARK = re.compile(r"/\* not taken: (.*?) \*/")
MOST_MARKED = 2  # of 100


def reports(folder):
    """What gcov says of every object that ran, one JSON document each."""
    found = sorted(os.path.join(base, name) for base, _, names in os.walk(folder)
                   for name in names if name.endswith(".gcda"))
    if not found:
        sys.exit(f"{folder}: nothing in it ran")
    for path in found:
        done = subprocess.run(["gcov", "--json-format", "--stdout", "--branch-probabilities", path],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
        for line in done.stdout.splitlines():
            yield json.loads(line)


def merge(folder):
    """header -> line -> [runs, {number of branches: [taken, ...]}]

    Compilers see a line in more than one way (in a macro, with other options), so the branches of
    a line are only added up where there are as many of them."""
    merged = {name: collections.defaultdict(lambda: [0, {}]) for name in HEADERS}
    for report in reports(folder):
        for source in report["files"]:
            lines = merged.get(os.path.normpath(source["file"]))
            if lines is None:
                continue
            for line in source["lines"]:
                entry = lines[line["line_number"]]
                entry[0] += line["count"]
                taken = [b["count"] for b in line["branches"]]
                before = entry[1].get(len(taken), [0] * len(taken))
                entry[1][len(taken)] = [a + b for a, b in zip(before, taken)]
    return merged


def sections(name):
    """Line number of every banner, from the implementation on, and its title."""
    with open(name, encoding="utf-8") as source:
        text = source.read().splitlines()
    start = next(i for i, line in enumerate(text) if line == " * >>implementation")
    marks = [(i + 1, line[5:].split(",")[0]) for i, line in enumerate(text)
             if i > start and re.match(r" \* >>\w", line)]
    return text, marks


def reason(text, number):
    """Why what is untaken on a line is, or None."""
    here = MARK.search(text[number - 1])
    above = MARK.fullmatch(text[number - 2].strip())
    return (here or above or [None, None])[1]


def main():
    merged = merge(sys.argv[1])
    listing = open(sys.argv[2], "w", encoding="utf-8") if len(sys.argv) > 2 else None
    for name in HEADERS:
        text, marks = sections(name)
        total = [0, 0, 0, 0, 0]
        marks_used = []
        print(f"{name:<44} lines           branches         marked")
        for index, (first, title) in enumerate(marks):
            last = marks[index + 1][0] if index + 1 < len(marks) else len(text) + 1
            figures = [0, 0, 0, 0, 0]
            for number in sorted(n for n in merged[name] if first <= n < last):
                runs, variants = merged[name][number]
                figures[0] += runs > 0
                figures[1] += 1
                taken = max(variants.values(), key=lambda v: sum(c > 0 for c in v), default=[])
                figures[2] += sum(c > 0 for c in taken)
                figures[3] += len(taken)
                why = reason(text, number)
                if why and not all(taken):
                    untaken = sum(c == 0 for c in taken)
                    figures[4] += untaken
                    marks_used.append(f"  {name}:{number}: {untaken} of {len(taken)}: {why}")
                elif listing and (not runs or not all(taken)):
                    what = ("never ran" if not runs else
                            f"{sum(c == 0 for c in taken)} of {len(taken)} branches never taken")
                    listing.write(f"{name}:{number}: [{title}] {what}: "
                                  f"{text[number - 1].strip()}\n")
            total = [a + b for a, b in zip(total, figures)]
            show(title, figures)
        show("all", total)
        if marks_used:
            print("  marked as never to be taken:", *marks_used, sep="\n  ")
        if total[4] * 100 > total[3] * MOST_MARKED:
            sys.exit(f"{name}: {total[4]} of {total[3]} branches are marked, more than "
                     f"{MOST_MARKED} %")


def show(title, figures):
    line, lines, branch, branches, marked = figures
    if lines:
        print(f"  {title:<40} {100 * line / lines:6.2f} % {lines:6}  "
              f"{100 * (branch + marked) / max(branches, 1):6.2f} % {branches:6} {marked:8}")


if __name__ == "__main__":
    main()
