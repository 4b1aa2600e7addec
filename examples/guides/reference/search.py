#!/usr/bin/python3
"""Lets the search box find epctx_model_open_file by "model_open", too.

    search.py HTML

Doxygen's index is searched by how a name begins, and all of ours begin alike. Each entry gets a
second key without the prefix; what is shown stays the same.
"""
import os
import re
import sys

ENTRY = re.compile(r"^  \['([^']*)_\d+',(\[.*\])\],?$")
PREFIX = re.compile(r"epctx_5f(?:npu_5f)?")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


class Index:
    def __init__(self, folder):
        self.folder = folder
        self.data = read(os.path.join(folder, "searchdata.js"))
        lists = re.findall(r"=\n\{\n(.*?)\n\};", self.data, re.S)
        self.letters = dict(re.findall(r"  (\d+): \"(.*)\"", lists[0]))
        self.names = dict(re.findall(r"  (\d+): \"(.*)\"", lists[1]))

    def path(self, number, at, end):
        return os.path.join(self.folder, f"{self.names[number]}_{at:x}.{end}")

    def entries(self, number):
        """Key and entry, of all letters of one list."""
        for at in range(len(self.letters[number])):
            for line in read(self.path(number, at, "js")).split("\n"):
                match = ENTRY.match(line)
                if match:
                    yield match.groups()

    def double(self, number):
        found = list(self.entries(number))
        short = [(PREFIX.sub("", key), entry) for key, entry in found if PREFIX.match(key)]
        by_letter = {}
        for key, entry in sorted(found + short):
            by_letter.setdefault(key[0], []).append((key, entry))
        letters = "".join(sorted(by_letter))
        page = read(self.path(number, 0, "html"))
        script = os.path.basename(self.path(number, 0, "js"))
        for at, letter in enumerate(letters):
            lines = ",\n".join(f"  ['{key}_{i}',{entry}]"
                               for i, (key, entry) in enumerate(by_letter[letter]))
            write(self.path(number, at, "js"), f"var searchData=\n[\n{lines}\n];\n")
            write(self.path(number, at, "html"),
                  page.replace(script, os.path.basename(self.path(number, at, "js"))))
        self.data = self.data.replace(f'  {number}: "{self.letters[number]}"',
                                      f'  {number}: "{letters}"', 1)

    def save(self):
        write(os.path.join(self.folder, "searchdata.js"), self.data)


def main():
    index = Index(os.path.join(sys.argv[1], "search"))
    for number in index.names:
        index.double(number)
    index.save()


if __name__ == "__main__":
    main()
