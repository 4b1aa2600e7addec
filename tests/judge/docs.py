#!/usr/bin/python3
"""Judges the HTML reference from outside: compares it with what a compiler sees in the headers.

    docs.py HTML HEADER...

Prints a case for the names, the descriptions, the links, the internal names, and for what the
search box finds in guides. The compiler is $CC.
"""
import html.parser
import os
import re
import subprocess
import sys
import urllib.parse

CC = os.environ.get("CC", "gcc").split()
INCLUDE = ["-I.", "-Iexamples/epctx/ops", *os.environ.get("NANOPB_CFLAGS", "").split()]
PUBLIC = re.compile(r"(?!\w*__)(?:epctx_|EPCTX_)\w+$")
# Switches and guards: the manual tells what they do.
SWITCH = re.compile(r"EPCTX(?:_\w+)?_H$")
GIVEN_PAGES = "page_"  # READMEs and guides: what they say is theirs


def compiler(arguments, header):
    return subprocess.run([*CC, *INCLUDE, *arguments, "-x", "c", header], check=True,
                          capture_output=True, text=True).stdout


def names_of(header):
    """Public macros, types, enumerators and functions that the compiler finds."""
    names = set()
    for line in compiler(["-E", "-dM"], header).split("\n"):
        match = re.match(r"#define (\w+)", line)
        if match and not SWITCH.match(match.group(1)):
            names.add(match.group(1))
    text = compiler(["-E", "-P"], header)
    names.update(re.findall(r"\b(?:struct|enum) (\w+) \{", text))
    names.update(re.findall(r"\btypedef struct (\w+) \1;", text))
    names.update(re.findall(r"\btypedef [^;{]*\(\*(\w+)\)", text))
    for body in re.findall(r"\benum \w+ \{(.*?)\}", text, re.S):
        names.update(re.findall(r"\b(EPCTX_\w+)", body))
    listed = os.path.join(os.environ.get("TMPDIR", "/tmp"), "functions")
    compiler(["-fsyntax-only", "-aux-info", listed], header)
    with open(listed, encoding="utf-8") as functions:
        for line in functions:
            match = re.match(r"/\* (\S+?):\d+.*\*/ .*?\b(\w+) \(", line)
            if match:
                names.add(match.group(2))
    return {name for name in names if PUBLIC.match(name)}


class Page(html.parser.HTMLParser):
    """Ids, links, visible text, and declarations with and without a description."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.text = set(), [], []
        self.items, self.described = {}, {}
        self.row, self.silent = None, 0
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.ids.update(v for k, v in attrs if k in ("id", "name") and v)
        self.links += [v for k, v in attrs if k == "href" and v]
        self.links += ["load:" + v for k, v in attrs if k == "src" and ":" in v]
        self.links += [v for k, v in attrs if k == "src" and v and ":" not in v]
        self.silent += tag in ("script", "style")
        if tag == "tr":
            match = re.match(r"(memitem|memdesc):(.+)", values.get("class") or "")
            self.row = match.groups() if match else None

    def handle_endtag(self, tag):
        self.silent -= tag in ("script", "style")
        if tag == "tr":
            self.row = None

    def handle_data(self, data):
        if self.silent:
            return
        self.text.append(data)
        if self.row and self.row[0] == "memitem":
            self.items[self.row[1]] = self.items.get(self.row[1], "") + data
        elif self.row and data.strip(" \xa0\n"):
            self.described[self.row[1]] = True


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def read_pages(folder):
    return {name: Page(read(os.path.join(folder, name)))
            for name in sorted(os.listdir(folder)) if name.endswith(".html")}


def searchable(folder):
    """Name -> address, of the search box."""
    found = {}
    for name in sorted(os.listdir(os.path.join(folder, "search"))):
        if name.startswith("all_") and name.endswith(".js"):
            for label, rest in re.findall(r"\['[^']*',\['([^']+)',(.*?)\]\]",
                                          read(os.path.join(folder, "search", name)), re.S):
                found.setdefault(label, []).extend(re.findall(r"'\.\./([^']+)'", rest))
    return found


def convert(words):
    """What the search box compares with the beginnings of keys."""
    return re.sub(r"[^a-z0-9\u0080-\uffff]", lambda m: f"_{ord(m.group()):02x}", words.lower())


def search_keys(folder):
    """Key and addresses, of all entries of the search box."""
    found = []
    for name in sorted(os.listdir(os.path.join(folder, "search"))):
        if name.startswith("all_") and name.endswith(".js"):
            for key, rest in re.findall(r"^  \['([^']*)_\d+',(.*)$",
                                        read(os.path.join(folder, "search", name)), re.M):
                found.append((key, re.findall(r"'\.\./([^'#]+)", rest)))
    return found


def headings_of(text):
    return re.findall(r"^#{1,6} (.*)$", re.sub(r"^```.*?^```", "", text, flags=re.S | re.M), re.M)


def wanted_in_guides():
    """What a reader may type, and the page where it stands."""
    guides = "examples/guides"
    for name in sorted(os.listdir(guides)):
        if name.endswith(".md"):
            page = "page_examples_guides_" + re.sub(r"\W", "_", name[:-3]).lower() + ".html"
            for heading in headings_of(read(os.path.join(guides, name))):
                yield re.sub(r"[`*]", "", heading).split()[-1].strip(",.;:()"), page
    for rule in re.findall(r'X\(\w+, "(\w\d+)", "([^"]+)"', read("examples/epctx/ops/lint.h")):
        yield from ((word, "page_examples_guides_rules.html") for word in rule)
    for message in re.findall(r"^message: (.*)$", read("examples/epctx/facts/messages.facts"),
                              re.M):
        part = re.split(r" \.\.\. | \| ", message)[0]
        yield part.lstrip("".join(c for c in part if not c.isalnum()))[:60], \
            "page_examples_guides_messages.html"


def unfound(folder):
    """What is wanted and not found, and how much is wanted."""
    keys = search_keys(folder)
    wanted = list(wanted_in_guides())
    missed = [f"{words} ({page})" for words, page in wanted
              if not any(key.startswith(convert(words)) and page in pages for key, pages in keys)]
    return missed, len(wanted)


def dead(folder, pages, origin, link):
    """Why a link leads nowhere; None: it leads somewhere, or out."""
    if re.match(r"[a-z]+:", link):
        known = re.match(r"(https?|mailto|javascript|load:javascript):", link)
        return None if known else "not to a page, or loaded from elsewhere"
    path, _, fragment = link.partition("#")
    path = urllib.parse.unquote(path.split("?")[0]) or origin
    if not os.path.exists(os.path.join(folder, path)):
        return "there is no such file"
    if fragment and path in pages and urllib.parse.unquote(fragment) not in pages[path].ids:
        return "the page has no such place"
    return None


def say(name, problems, count):
    if problems or not count:
        print(f"FAIL {name}: {len(problems)} of {count}:", "; ".join(problems[:8]) or "nothing")
    else:
        print(f"ok {name}")
        print(f"note {name}: {count}")


def main():
    folder, headers = sys.argv[1], sys.argv[2:]
    pages = read_pages(folder)
    found = searchable(folder)

    names = set().union(*(names_of(header) for header in headers))
    places = {n: [a for a in found.get(n, []) if not dead(folder, pages, "index.html", a)]
              for n in names}
    say("every public name is found", sorted(n for n in names if not places[n]), len(names))

    say("guides, rules and messages are found", *unfound(folder))

    items = {(p, i): t for p, page in pages.items() for i, t in page.items.items()
             if i and not i.startswith("group__")}  # a section's title says what it is
    say("every declaration is described",
        sorted(" ".join(t.split()) for (p, i), t in items.items() if i not in pages[p].described),
        len(items))

    links = [(origin, link) for origin, page in pages.items() for link in page.links]
    links += [("index.html", address) for addresses in found.values() for address in addresses]
    reasons = [f"{o}: {k}: {why}" for o, k in links for why in [dead(folder, pages, o, k)] if why]
    say("every link leads somewhere", reasons, len(links))

    ours = {p: page for p, page in pages.items() if not p.startswith(GIVEN_PAGES)}
    inner = {f"{p}: {word}" for p, page in ours.items()
             for word in re.findall(r"\bepctx__\w+", "".join(page.text), re.I)}
    inner |= {label for label in found if re.match(r"epctx__", label, re.I)}
    say("no internal name is shown", sorted(inner), len(ours))


if __name__ == "__main__":
    main()
