#!/usr/bin/python3
"""Prints names of the library in comments of C and C++ that no code knows: functions that were
renamed or removed, and slips.

    tests/judge/names.py FILE...

The files are all sources: a name is known if it stands in the code of one. "_name", "_NAME", "_x"
and "_" at the end stand for the rest of a name.
"""
import re
import sys

COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.S)
NAME = re.compile(r"\b(?:epctx|EPCTX)_\w+")
PASTED = re.compile(r"\b((?:epctx|EPCTX)_\w+)\s*##")
OPEN = re.compile(r"_x*$|_name\b|_name_|_NAME\b")


def main():
    known, pasted, comments = set(), set(), []
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        code = COMMENT.sub(lambda match: match.group() if match.group()[0] == '"' else " ", text)
        known.update(NAME.findall(code))
        pasted.update(PASTED.findall(code))
        if path.endswith((".h", ".c", ".hpp", ".cc")):
            comments += [(path, text.count("\n", 0, match.start()) + 1, match.group())
                         for match in COMMENT.finditer(text) if match.group()[0] == "/"]
    for path, line, comment in comments:
        for match in NAME.finditer(comment):
            name = match.group()
            if name in known or OPEN.search(name) or name.startswith(tuple(pasted)):
                continue
            print(f"{path}:{line + comment.count(chr(10), 0, match.start())}: there is no {name}")


if __name__ == "__main__":
    main()
