#!/usr/bin/python3
"""Prints where a header is not built as its CONTENTS say: a public function that one section
declares and another defines, sections of the implementation in another order than among the
declarations, and what calls a function of a section further down.

    tests/judge/sections.py HEADER API [FUNCTION...]

Each FUNCTION may be called from above: a recursion goes through it.
"""
import re
import sys

BANNER = re.compile(r"^/\* =+\n \* >>(\w+)", re.M)
CONTENTS = re.compile(r"^ \* CONTENTS\n((?: \* .*\n)+)", re.M)
CODE = re.compile(r'/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.S)
# A definition begins in the first column; its parameters may be pointers to functions.
FUNCTION = re.compile(r"^[A-Za-z_][\w \t*()]*?\b(\w+)\((?:[^;{}()]|\([^()]*\))*\)\s*([;{])", re.M)


def blank(match):
    """A comment or a string without its words, which are no code, but with its lines."""
    return re.sub(r"[^\n]", " ", match.group())


class Header:
    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        banners = [(match.start(), match.group(1)) for match in BANNER.finditer(text)]
        self.contents = re.findall(r">>(\w+)", "".join(CONTENTS.findall(text)))
        self.sections = [name for _, name in banners]
        self.middle = self.sections.index("implementation")
        self.code = CODE.sub(blank, text)
        self.starts = [start for start, _ in banners] + [len(text)]

    def parts(self):
        """Each section by its number in the file, with its code."""
        for number in range(len(self.sections)):
            yield number, self.code[self.starts[number]:self.starts[number + 1]]

    def declarations(self, api):
        return {name: number for number, code in self.parts() if number < self.middle
                for name, end in functions(code, api) if end == ";"}

    def definitions(self):
        return {name: number for number, code in self.parts() if number > self.middle
                for name, end in functions(code) if end == "{"}


def functions(code, start=""):
    return [match.groups() for match in FUNCTION.finditer(code)
            if match.group().startswith(start)]


def order(header):
    """What CONTENTS list before and after >>implementation stands in that order in both parts."""
    listed = header.contents
    middle = listed.index("implementation")
    declared = [name for name in header.sections[:header.middle] if name != "manual"]
    defined = header.sections[header.middle + 1:]
    added = [name for name in defined if name not in declared]
    common = [name for name in declared if name in defined]
    if (listed[:middle], listed[middle + 1:]) != (declared, added):
        yield (f"CONTENTS are {' '.join(listed)}, the sections {' '.join(declared)}, "
               f"in the implementation also {' '.join(added)}")
    if common != [name for name in defined if name in declared]:
        yield f"the sections of the implementation are not in the order {' '.join(common)}"


def homes(header, api):
    defined = header.definitions()
    for name, number in header.declarations(api).items():
        declares, defines = header.sections[number], header.sections[defined.get(name, number)]
        if declares != defines:
            yield f"{name} is declared in >>{declares} and defined in >>{defines}"


def upward(header, allowed):
    defined = header.definitions()
    met = set()
    for number, code in header.parts():
        names = set(re.findall(r"\b\w+(?=\()", code)) if number > header.middle else ()
        for name in sorted(name for name in names if defined.get(name, 0) > number):
            met.add(name)
            if name not in allowed:
                yield (f">>{header.sections[number]} calls {name} of >>"
                       f"{header.sections[defined[name]]}, which stands further down")
    for name in sorted(set(allowed) - met):
        yield f"{name} is not called from above: take it off the list"


def main():
    path, api, *allowed = sys.argv[1:]
    header = Header(path)
    for problem in (*order(header), *homes(header, api), *upward(header, allowed)):
        print(f"{path}: {problem}")
    if not header.declarations(api) or not header.definitions():
        print(f"{path}: no function was found")


if __name__ == "__main__":
    main()
