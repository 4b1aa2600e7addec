#!/usr/bin/python3
"""Prints what is wrong with the list of callers: every public function of the headers has to be
called by an execution provider, such as epctx_npu.h, an application or a firmware. What only the
tool calls belongs to the tool. So does a member of an options struct that the header never reads,
as far as its name tells.

    tests/judge/callers.py HEADER...

A row of tests/callers.txt is a function and a file that calls it, in the order of the declarations.
Of a guide the programs count, which test_guides.sh compiles, not what they quote.
"""
import os
import re
import sys

LIST = "tests/callers.txt"
NOT = ("examples/epctx/", "examples/guides/tables.c")  # the tool and the maker of its tables
COMMENTS = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
HEAD = re.compile(r"^EPCTX_API [\w\s*]*?\b\w+\(", re.M)  # of a declaration or a definition
OPTIONS = re.compile(r"^typedef struct (\w+_(?:opts|in)) \{\n(.*?)^\} \1;", re.M | re.S)
PROGRAM = re.compile(r"^<!-- (?!from )\S+ -->\n```c\w*\n(.*?)^```$", re.M | re.S)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def declared(header):
    text = COMMENTS.sub("", read(header))
    found = re.findall(r"^EPCTX_API [\w\s*]*?\b(\w+)\([^;{}]*\);", text, re.M)
    return list(dict.fromkeys(found))


def code(path):
    text = read(path)
    if path.endswith(".md"):
        text = "".join(PROGRAM.findall(text))
    text = COMMENTS.sub("", text)
    return HEAD.sub("", text)


def unread(header):
    """Members of options structs of which the implementation reads none of that name."""
    text = COMMENTS.sub("", read(header))
    implementation = text[text.index("_IMPLEMENTED"):]
    for struct, body in OPTIONS.findall(text):
        members = []
        for one in body.split(";"):
            function = re.search(r"\(\*(\w+)\)", one)
            members += [function.group(1)] if function else \
                re.findall(r"(\w+)(?:\[\w*\])?\s*(?:,|$)", one.rstrip())
        for member in members:
            if not re.search(r"(?:->|\.)%s\b" % member, implementation):
                yield f"{header}: {struct}.{member} is never read"


def may_call(path):
    """Whether a file may be named. epctx_npu.h is an EP on top of its own functions, too."""
    return path == "epctx_npu.h" or path.startswith("examples/") and not path.startswith(NOT)


class Callers:
    """What files call, each read once."""

    def __init__(self):
        self.calls = {}

    def __call__(self, path, function):
        if path not in self.calls:
            self.calls[path] = set(re.findall(r"\b(\w+)\s*\(", code(path)))
        return function in self.calls[path]


def candidates(function, calls):
    for folder, _, names in sorted(os.walk("examples")):
        for name in sorted(names):
            path = os.path.join(folder, name)
            if name.endswith((".c", ".h", ".cc", ".hpp", ".md")) and may_call(path) and \
                    calls(path, function):
                yield path
    if calls("epctx_npu.h", function):
        yield "epctx_npu.h"


def main():
    headers = sys.argv[1:]
    of = {function: header for header in headers for function in declared(header)}
    calls = Callers()
    rows = [line.split() for line in read(LIST).split("\n") if line and not line.startswith("#")]
    seen = []
    for row in rows:
        function, path = row if len(row) == 2 else (row[0], "")
        if function not in of:
            print(f"{LIST}: {function} is no public function of {' or '.join(headers)}")
        elif function in seen:
            print(f"{LIST}: {function} has two rows")
        elif not may_call(path):
            print(f"{LIST}: {function}: '{path}' is no execution provider, application or firmware")
        elif not os.path.exists(path):
            print(f"{LIST}: {function}: there is no {path}")
        elif not calls(path, function):
            print(f"{LIST}: {function} is not called in {path}")
        seen.append(function)
    for function, header in of.items():
        if function not in seen:
            found = list(candidates(function, calls))
            print(f"{LIST}: {function} of {header} has no row; "
                  f"{'called in ' + found[0] if found else 'nothing but the tool calls it'}")
    ordered = [function for function in of if function in seen]
    if ordered != [function for function in seen if function in of]:
        wrong = next(a for a, b in zip(seen, ordered) if a != b)
        print(f"{LIST}: {wrong} is not where its declaration is among the others")
    for header in headers:
        for line in unread(header):
            print(line)
    if not of or not OPTIONS.search(read(headers[0])):
        print("no declaration was found")


if __name__ == "__main__":
    main()
