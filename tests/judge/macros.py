#!/usr/bin/python3
"""Prints macros with code of more than 15 lines.

    tests/judge/macros.py HEADER...

Nobody can step through a macro, and an error in it is reported where it is used. Lists are no code:
their lines are rows, each a call of one of the list's parameters.
"""
import re
import sys

MOST = 15
DEFINE = re.compile(r"[ \t]*#[ \t]*define[ \t]+(\w+)(?:\(([^)]*)\))?")


def macros(text):
    """Line number and lines of every definition."""
    lines = text.split("\n")
    number = 0
    while number < len(lines):
        end = number
        if DEFINE.match(lines[number]):
            while lines[end].endswith("\\") and end + 1 < len(lines):
                end += 1
            yield number + 1, lines[number:end + 1]
        number = end + 1


def is_list(lines):
    """Do all rows call a parameter? The arguments of a row may go on in the next lines."""
    parameters = [name.strip() for name in (DEFINE.match(lines[0])[2] or "").split(",")]
    calls = re.compile(r"(?:%s)\(" % "|".join(re.escape(name) for name in parameters if name))
    text = DEFINE.sub("", " ".join(line.rstrip("\\").strip() for line in lines), 1)
    text = re.sub(r'"(?:[^"\\]|\\.)*"', '""', re.sub(r"/\*.*?\*/", "", text)).strip()
    while text and any(parameters):
        if not calls.match(text):
            return False
        depth, end = 0, text.index("(")
        while end < len(text):
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
            if depth == 0:
                break
        text = text[end:].strip()
    return any(parameters)


def main():
    for name in sys.argv[1:]:
        with open(name, encoding="utf-8") as file:
            for number, lines in macros(file.read()):
                if len(lines) > MOST and not is_list(lines):
                    print(f"{name}:{number}: expected at most {MOST} lines of code in a macro, "
                          f"found {len(lines)}")


if __name__ == "__main__":
    main()
