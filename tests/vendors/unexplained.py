#!/usr/bin/python3
"""What logs hold and `epctx explain` does not know.

    tests/vendors/unexplained.py EPCTX LOG...

Prints the distinct texts of errors without an explanation, the most frequent first; numbers and
files in them are N and FILE. Ends with 1 where there are any. LOG: what applications printed, such
as WORK/said.log of bench.py.
"""
import json
import re
import subprocess
import sys

ERROR = re.compile(r"\[[EF]:onnxruntime|ONNXRuntimeError|terminate called|what\(\)|\berr(or)?\b|"
                   r"fail|exception|can ?not|unsupported|not supported|mismatch|invalid|does not",
                   re.I)
# A line of a log of ONNX Runtime without its head; a place in a script of Python.
HEAD = re.compile(r"^.*?\[[A-Z]:onnxruntime[^\]]*\]\s*")
PLACE = re.compile(r"^\s*(File \".*\", line \d+|Traceback \(most recent)")
COLOR = re.compile(r"\x1b\[[0-9;]*m")
FILE = re.compile(r"(/[^\s'\":,]+)+|[\w.-]+\.(onnx|bin|so|cc|cpp|h)\b(:\d+)?")
NUMBER = re.compile(r"(?<![A-Za-z])(0x[0-9a-fA-F]+|\d+)")  # not of FP16


def texts_of(path):
    """The lines of a log that tell of an error; where an application printed JSON, of its text."""
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            line = COLOR.sub("", line.rstrip("\n")).replace("\0", " ")
            if line.startswith("{"):
                try:
                    yield from (t for t in json.loads(line).get("text", "").split("\n") if t)
                    continue
                except ValueError:
                    pass
            if ERROR.search(line) and not PLACE.match(line):
                yield HEAD.sub("", line)


def common(text):
    """The same for messages that differ only in files and numbers."""
    return NUMBER.sub("N", FILE.sub("FILE", text)).strip()


def is_explained(epctx, text):
    done = subprocess.run([epctx, "explain", "-"], input=text.encode(), check=False,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return done.returncode == 0


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    seen = {}  # the common form -> [how often, a text]
    for path in sys.argv[2:]:
        for text in texts_of(path):
            seen.setdefault(common(text), [0, text])[0] += 1
    unknown = [(count, form) for form, (count, text) in seen.items()
               if not is_explained(sys.argv[1], text)]
    for count, form in sorted(unknown, key=lambda one: (-one[0], one[1])):
        print(f"{count:5} {form}")
    print(f"{len(seen)} texts, {len(unknown)} without an explanation", file=sys.stderr)
    return 1 if unknown else 0


if __name__ == "__main__":
    sys.exit(main())
