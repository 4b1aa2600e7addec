#!/usr/bin/python3
"""Prints the lines of the sources that are not as .editorconfig says: longer than 100 columns, with
blanks at the end or tabs, or the last one without an end.

Longer lines are: what nobody can break (a URL, a checksum), rows of tables, in Markdown also what
programs print and what `make guide-tables` writes.
"""
import os
import re

COLUMNS = 100
KINDS = (".c", ".h", ".cc", ".py", ".sh", ".js", ".md", ".yml", ".css")
LEFT_OUT = {"build", ".git", "__pycache__", "corpus", "regressions"}
# "TEXT|TEXT": a row. The bars between commands have blanks around them.
ROW = re.compile(r"^\|.*\|$|^[^#\s].*[^|\s]\|[^|\s]")


def sources():
    for path, folders, files in os.walk("."):
        folders[:] = sorted(name for name in folders if name not in LEFT_OUT)
        for name in sorted(files):
            if name.endswith(KINDS) or path.endswith(".ci") or (path, name) == ("./tests", "run"):
                yield os.path.relpath(os.path.join(path, name))


def breakable(line):
    """Is there a blank in front of the limit, and not just before a URL, a checksum or code?"""
    whole = r"https?://\S+\W*$|^\s*`[^`]+`$|\b[0-9a-f]{64,}\W?$"
    return " " in line.strip()[:COLUMNS] and not re.search(whole, line)


def prose(name, lines):
    """The lines of a page that somebody wrote, with their numbers."""
    fenced = written = False
    for number, line in enumerate(lines, 1):
        fenced ^= line.lstrip().startswith("```")
        written = (written or line.startswith("<!-- table ")) and line != "<!-- end -->"
        if not fenced and not written:
            yield number, line


def wrong(name, text):
    lines = text.split("\n")
    if lines.pop() != "":
        yield len(lines) + 1, "expected a line end at the end of the file, found none"
    for number, line in enumerate(lines, 1):
        if line != line.rstrip():
            yield number, "expected no blank at the end, found some"
        if "\t" in line and not name.endswith(".sh") or line.startswith("\t"):
            yield number, "expected blanks, found a tab"
    for number, line in prose(name, lines) if name.endswith(".md") else enumerate(lines, 1):
        if len(line) > COLUMNS and breakable(line) and not ROW.match(line):
            yield number, f"expected at most {COLUMNS} columns, found {len(line)}"


def main():
    for name in sources():
        with open(name, encoding="utf-8", newline="") as file:
            for number, problem in wrong(name, file.read()):
                print(f"{name}:{number}: {problem}")


if __name__ == "__main__":
    main()
