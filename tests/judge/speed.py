#!/usr/bin/python3
"""Runs the benches and holds what they find against the table of speed in README.md.

    tests/judge/speed.py README.md

Prints what the benches print, then a line for each figure of the table: what README.md says, what
was seen. A figure is missed when less than half of it was seen.
"""
import re
import subprocess
import sys

WEIGHTS = r"table/XXH3 ([\d.]+)"
DURABLE = r" ([\d.]+)x cp \+ fsync"
PROTOBUF = r" ([\d.]+)x libprotobuf"
# A line of README.md's table begins with this; for each of its figures the bench's line.
FIGURES = [
    ("open a model, read its EPContext node, 1 MiB", [("EPContext node, 1 MiB", PROTOBUF)]),
    ("the same with 256 MiB", [("EPContext node, 256 MiB", PROTOBUF),
                               ("EPContext node, 1024 MiB", PROTOBUF)]),
    ("open and index 20,000 nodes", [("index 20,000 nodes", PROTOBUF)]),
    ("change an attribute, write 256 MiB", [("change an attribute", PROTOBUF)]),
    ("the same", [("the same", DURABLE)]),
    ("extract, embed 256 MiB", [("extract 256 MiB", DURABLE), ("embed 256 MiB", DURABLE)]),
    ("weight table, distinct", [("distinct, 4096", WEIGHTS), ("distinct, 65536", WEIGHTS)]),
    ("weight table, alike", [("alike but for 8 bytes, 4096", WEIGHTS),
                             ("alike but for 8 bytes, 65536", WEIGHTS),
                             ("alike but for 8 bytes, 1048576", WEIGHTS)]),
    ("reference NPU, 18 float", [("float networks: ", r"lowest ([\d.]+)"), None,
                                 ("float networks: ", r"geometric mean ([\d.]+)")]),
    ("reference NPU, 4 networks", [("integer networks: ", r"lowest ([\d.]+)")]),
]
COMMANDS = [["build/tests/bench_protobuf", "build/bench"], ["build/tests/bench_weights"],
            ["tests/bench_models.sh"]]


def run(command):
    lines = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as bench:
        for line in bench.stdout:
            print(line, end="", flush=True)
            lines.append(line)
    if bench.returncode != 0:
        sys.exit(f"{command[0]} ended with {bench.returncode}")
    return lines


def table(path):
    """{work: its figures} of the rows of the table of speed."""
    rows = {}
    with open(path, encoding="utf-8") as file:
        text = file.read().split("\n## Speed\n")[1].split("\n## ")[0]
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 3:
            numbers = re.findall(r"[\d,]*\d(?:\.\d+)?", cells[2].split(":")[0])
            rows[cells[0]] = [float(number.replace(",", "")) for number in numbers]
    return rows


def main():
    rows = table(sys.argv[1])
    lines = [line for command in COMMANDS for line in run(command)]
    missed = 0
    for work, searches in FIGURES:
        said = rows.get(work) or next((rows[row] for row in rows if row.startswith(work)), [])
        if len(said) < len(searches):
            sys.exit(f"README.md: '{work}' has {len(said)} figures, expected {len(searches)}")
        for number, search in zip(said, searches):
            if not search:
                continue
            seen = next((re.search(search[1], line) for line in lines if search[0] in line), None)
            found = float(seen.group(1)) if seen else 0.0
            missed += found < number / 2
            print(f"{'ok' if found >= number / 2 else 'MISSED':6} {work}, {search[0].strip()}: "
                  f"README.md says {number:g}, seen {found:g}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
