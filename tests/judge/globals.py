#!/usr/bin/python3
"""globals.py FOLDER OBJECTS: prints the variables of FOLDER's sources that live as long as the
process and can change, also those of a thread and those inside functions: state belongs to an
object that is passed on. By the sections of the symbols of what was built.

A variable may stand in tests/globals_known.txt, which says why; that list may only shrink: a line
of a variable that is gone is wrong, too.
"""
import re
import subprocess
import sys

from circles import objects

KNOWN = "tests/globals_known.txt"
# .data.rel.ro is constant but for the addresses in it.
CHANGES = re.compile(r"\.(bss|data|tbss|tdata)\b(?!\.rel\.ro)|\*COM\*")


def variables(path):
    listed = subprocess.run(["nm", "-f", "sysv", path], capture_output=True, text=True, check=True)
    rows = [[cell.strip() for cell in line.split("|")] for line in listed.stdout.splitlines()]
    # Those inside functions have a number of the compiler's.
    return {re.sub(r"\.\d+$", "", row[0]) for row in rows
            if len(row) == 7 and CHANGES.match(row[6])}


def known(folder):
    """{(source, variable)}, each line with a reason."""
    found = set()
    with open(KNOWN, encoding="utf-8") as file:
        for line in file:
            words, _, why = line.partition("#")
            source, *names = words.split() or [""]
            if names and not why.strip():
                print(f"{KNOWN}: expected a reason behind #, found {line.strip()}")
            if source.startswith(folder + "/"):
                found |= {(source, name) for name in names}
    return found


def main():
    folder, built = sys.argv[1:]
    built_from = list(objects(folder, built))
    if not built_from:
        sys.exit(f"{folder}: expected objects in {built}, found none")
    found = {(source, name) for path, source in built_from for name in variables(path)}
    listed = known(folder)
    for source, name in sorted(found - listed):
        print(f"{source}: {name} is global and can change: put it into an object")
    for source, name in sorted(listed - found):
        print(f"{KNOWN}: expected a variable that is still there, found {source} {name}")


main()
