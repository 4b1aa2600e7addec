#!/usr/bin/python3
"""Lays out C and C++ sources as .clang-format says, `make format`, or checks it, `make lint`.

    tests/format.py [--check] [FILE...]      default: every source of the tree

Version 14 of clang-format, Debian 12's, since each lays out a few lines in another way.

What stands between "clang-format off" and "clang-format on" is kept away from clang-format, which
would leave it as it is, but think for minutes about the long lists of macros there.
"""
import concurrent.futures
import difflib
import os
import re
import shutil
import subprocess
import sys

OFF, ON = "/* clang-format off */", "/* clang-format on */"
KEPT = re.compile(r"^[ \t]*/\* clang-format off \*/\n.*?^[ \t]*/\* clang-format on \*/\n",
                  re.M | re.S)
FOLDERS = ("examples", "tests", "fuzz")


def sources():
    """Every source of the tree, without what was built."""
    found = ["epctx.h", "epctx_npu.h"]
    for folder in FOLDERS:
        for path, _, files in os.walk(folder):
            found += [os.path.join(path, name) for name in files]
    return sorted(name for name in found if name.endswith((".c", ".h", ".cc")))


def formatter():
    """The program of the right version, or None."""
    for name in ("clang-format-14", "clang-format"):
        if shutil.which(name):
            said = subprocess.run([name, "--version"], capture_output=True, text=True, check=True)
            if " 14." in said.stdout:
                return name
    return None


def formatted(program, name, text):
    kept = []

    def put_away(match):
        kept.append(match.group(0))
        return "%s\n/* %d */\n%s\n" % (OFF, len(kept) - 1, ON)

    short = KEPT.sub(put_away, text)
    done = subprocess.run([program, "--style=file", "--assume-filename=" + name], input=short,
                          capture_output=True, text=True, check=True).stdout
    return re.sub(r"^[ \t]*%s\n[ \t]*/\* (\d+) \*/\n[ \t]*%s\n" % (re.escape(OFF), re.escape(ON)),
                  lambda match: kept[int(match.group(1))], done, flags=re.M)


def report(name, old, new):
    """What differs, in a line."""
    lines = list(difflib.unified_diff(old.splitlines(), new.splitlines(), n=0))[2:]
    place = re.search(r"-(\d+)", lines[0]).group(1)
    wanted = next((line[1:].strip() for line in lines if line[0] == "+"), "no line")
    print("FAIL format: %s:%s: expected '%s', and %d lines differ; `make format` lays it out" % (
        name, place, wanted, sum(line[0] != "@" for line in lines)))


def main():
    names = sys.argv[1:]
    check = names[:1] == ["--check"]
    names = names[check:] or sources()
    program = formatter()
    if program is None:
        print("%s format: clang-format 14 is not here" % ("skip" if check else "FAIL"))
        sys.exit(not check)
    texts, failed = {}, False
    for name in names:
        with open(name, encoding="utf-8") as file:
            texts[name] = file.read()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, new in zip(names, pool.map(lambda n: formatted(program, n, texts[n]), names)):
            if new == texts[name]:
                continue
            if check:
                report(name, texts[name], new)
                failed = True
            else:
                with open(name, "w", encoding="utf-8") as file:
                    file.write(new)
                print("formatted %s" % name)
    if check and not failed:
        print("ok format")
    sys.exit(failed)


if __name__ == "__main__":
    main()
