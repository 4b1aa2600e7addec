#!/usr/bin/python3
"""Lets the search box find epctx_model_open_file by "model_open", and what stands in the pages.

    search.py HTML

Doxygen's index has names and the titles of pages, and is searched by how a key begins. Each name
gets a second key without the prefix, as all of ours begin alike; what is shown stays the same.
Headings and rows of tables in READMEs and guides (rules, symptoms, messages, options) are entries,
too, with a key from each word on.
"""
import html
import os
import re
import sys

ENTRY = re.compile(r"^  \['([^']*)_\d+',(\[.*\])\],?$")
PREFIX = re.compile(r"epctx_5f(?:npu_5f)?")


PAGE = "page_"  # how READMEs and guides are called
PLACE = re.compile(r'<h[1-6]><a class="anchor" id="([^"]+)"></a>(.*?)</h[1-6]>|'
                   r"<tr>(\s*)(<td.*?</td>)\s*(<td.*?</td>)?", re.S)
LONGEST_KEY, LONGEST_LABEL = 80, 120


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def plain(text):
    return " ".join(html.unescape(re.sub(r"<[^>]*>", "", text)).split())


def key_of(text):
    """As Doxygen's convertToId: what is no small letter or digit stands as its number."""
    return re.sub(r"[^a-z0-9\u0080-\uffff]", lambda m: f"_{ord(m.group()):02x}", text.lower())


def entries_of(name, label, place, title):
    """A key from each word of the label on, so that any of them finds it."""
    shown = html.escape(label[:LONGEST_LABEL]).replace("\\", "&#92;")
    scope = html.escape(title).replace("\\", "&#92;")
    entry = f"['{shown}',['../{name}{place}',1,'{scope}']]"
    starts = [m.start() for m in re.finditer(r"[a-z0-9]+", label.lower())]
    return [(key_of(label[at:at + LONGEST_KEY]), entry) for at in starts]


def index_page(folder, name):
    """The entries of a page; rows of tables get an id, where they have none."""
    path, rows = os.path.join(folder, name), 0
    text = read(path)
    title = plain(re.search(r'<div class="title">(.*?)</div>', text, re.S).group(1))
    found = entries_of(name, title, "", title)

    def place(match):
        nonlocal rows
        anchor, heading, blank, first, second = match.groups()
        if anchor:
            found.extend(entries_of(name, plain(heading), "#" + anchor, title))
            return match.group()
        label, made = plain(first), match.group()
        known = re.search(r'class="anchor" id="([^"]+)"', first)
        if re.fullmatch(r"[A-Z]\d+", label):  # a rule, whose name is beside
            label += " " + plain(second or "")
        if not known:
            rows += 1
            made = made.replace("<tr>" + blank, f'<tr id="row_{rows}">' + blank, 1)
        at = known.group(1) if known else f"row_{rows}"
        found.extend(entries_of(name, label, "#" + at, title))
        return made

    write(path, PLACE.sub(place, text))
    return found


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

    def double(self, number, more):
        found = [*self.entries(number), *more]
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
    pages = [entry for name in sorted(os.listdir(sys.argv[1]))
             if name.startswith(PAGE) and name.endswith(".html")
             for entry in index_page(sys.argv[1], name)]
    for number, name in index.names.items():
        index.double(number, pages if name in ("all", "pages") else [])
    index.save()


if __name__ == "__main__":
    main()
