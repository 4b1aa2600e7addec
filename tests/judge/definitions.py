#!/usr/bin/python3
"""Prints the public functions of a header whose definition grep does not find, or whose definition
names its parameters in another way than the declaration, which is what users read.

    tests/judge/definitions.py HEADER API
"""
import re
import sys


def functions(text, api, end):
    """{name: parameters} of what begins with `api` and ends with `end`."""
    found = {}
    pattern = r"^%s [\w\s*]*?\b(\w+)\(([^;{}]*?)\)\s*%s" % (api, re.escape(end))
    for name, parameters in re.findall(pattern, text, re.M):
        found[name] = [parameter_name(one) for one in split(parameters)]
    return found


def split(parameters):
    """Between the commas that are not inside parentheses."""
    depth, parts = 0, [""]
    for c in parameters:
        depth += (c == "(") - (c == ")")
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    return parts


def parameter_name(parameter):
    pointer = re.search(r"\(\*(\w+)\)", parameter)  # to a function
    words = re.findall(r"\w+", parameter.split("[")[0])
    return pointer.group(1) if pointer else words[-1] if words else ""


def main():
    header, api = sys.argv[1:]
    with open(header, encoding="utf-8") as file:
        text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)
    declared, defined = functions(text, api, ";"), functions(text, api, "{")
    for name, parameters in declared.items():
        if name not in defined:
            print(f"{header}: {name} is declared, and no definition is found")
        elif defined[name] != parameters:
            print(f"{header}: {name}({', '.join(parameters)}) is defined with "
                  f"({', '.join(defined[name])})")
    if not declared:
        print(f"{header}: no declaration begins with {api}")


if __name__ == "__main__":
    main()
