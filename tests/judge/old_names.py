#!/usr/bin/python3
"""Prints where a name stands that a version renamed: the tables of .github/CHANGELOG.md have them,
and nothing but them.

    tests/judge/old_names.py CHANGELOG FILE...
"""
import re
import sys

ROW = re.compile(r"^\| `(\w+)` \| (.*) \|$", re.M)


def main():
    changelog, *files = sys.argv[1:]
    with open(changelog, encoding="utf-8") as file:
        text = file.read()
    newest = text.split("\n## ")[1]  # older ones name functions that are taken since
    old = {name: now for name, now in ROW.findall(newest)}
    if not old:
        print(f"{changelog}: the newest version has no table of names")
    for path in files:
        if path == changelog:
            continue
        with open(path, "rb") as file:
            words = file.read().decode("utf-8", "replace")
        for number, line in enumerate(words.split("\n"), 1):
            for word in re.findall(r"\w+", line):
                if word in old:
                    print(f"{path}:{number}: {word} is {old[word]} now")


if __name__ == "__main__":
    main()
