"""READMEs and guides as pages of the reference.

Their Markdown stays as it is, but for what Doxygen would read otherwise: a heading gets the id that
a repository's page gives it, a link to another page leads to that page of the reference, a link to
any other file becomes its name, and names of the library become links.
"""
import html
import os
import re
import shutil

FIRST = ("README.md", "examples/README.md")
MESSAGES, FACTS = "examples/guides/messages.md", "examples/epctx/facts/messages.facts"
FENCE = re.compile(r"^\s*(```+|~~~+)\s*(\w*)")
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+(?:\([^()]*\))?)\)", re.S)
LANGUAGES = {"c": ".c", "cpp": ".cpp", "json": ".unparsed", "python": ".py", "py": ".py"}


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def list_pages(root):
    """Paths of the pages, in reading order: the READMEs, then the guides, then the rest."""
    guides = guides_of(root)
    others = []
    for folder, folders, names in os.walk(root):
        inside = os.path.relpath(folder, root)
        folders[:] = sorted(f for f in folders if not (f in ("build", ".git") or
                                                       f.startswith("wt-")))
        for name in sorted(names):
            path = os.path.normpath(os.path.join(inside, name))
            if name == "README.md" and path not in FIRST and path not in guides:
                others.append(path)
    others += [f".github/{name}" for name in ("CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")]
    return [p for p in [*FIRST, *guides, *others] if os.path.exists(os.path.join(root, p))]


def guides_of(root):
    """examples/guides/*.md: in the order in which its README names them, then the others."""
    folder = os.path.join(root, "examples/guides")
    names = sorted(n for n in os.listdir(folder) if n.endswith(".md"))
    if "README.md" in names:
        order = re.findall(r"\b([\w-]+\.md)\b", read(os.path.join(folder, "README.md")))
        names.sort(key=lambda n: (n != "README.md",
                                  order.index(n) if n in order else len(order)))
    return [f"examples/guides/{n}" for n in names]


def messages_of(root):
    """A page of the messages that `epctx explain` knows, from the table that it is made of."""
    rows = []
    for block in re.sub(r"\n +", " ", read(os.path.join(root, FACTS))).split("\n\n"):
        fact = dict(re.findall(r"^(\w+): (.*)$", block, re.M))
        if "message" in fact:
            rows.append([fact.get(k, "") for k in ("message", "cause", "cure")])
    cells = [[plain(c).replace("|", "\\|").replace("`", "").replace("_", "\\_") for c in row]
             for row in rows]
    return "\n".join([
        "# What messages mean", "",
        "Each fits a line of a log that has every part between dots, one of those between bars. "
        "`epctx explain` finds them in a whole log.", "",
        "| message | cause | cure |", "|---|---|---|",
        *("| " + " | ".join(row) + " |" for row in sorted(cells))])


def slug(title):
    """The id that a repository's page gives to a heading."""
    return re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-")


def page_name(path):
    return "page_" + re.sub(r"\W+", "_", path[:-3].strip(".")).strip("_").lower()


class Pages:
    def __init__(self, root, link, manuals, main):
        self.root, self.link, self.manuals, self.main = root, link, manuals, main
        self.paths = list_pages(root)
        self.texts = {p: read(os.path.join(root, p)) for p in self.paths}
        self.texts[MESSAGES] = messages_of(root)
        self.paths.insert(1 + max(i for i, p in enumerate(self.paths)
                                  if p.startswith("examples/guides/")), MESSAGES)
        self.ids = {p: self.headings(t) for p, t in self.texts.items()}
        self.titles = {p: self.title(p) for p in self.paths}
        self.pictures = {}
        self.below = set()

    @staticmethod
    def headings(text):
        """Ids of the headings outside of code, in order."""
        found, fence, seen = [], None, {}
        for line in text.split("\n"):
            match = FENCE.match(line)
            if match and (fence is None or line.strip().startswith(fence)):
                fence = None if fence else match.group(1)
            elif fence is None and re.match(r"^#{1,6} ", line):
                each = slug(re.sub(r"[`*]", "", line.lstrip("#")))
                seen[each] = seen.get(each, -1) + 1
                found.append(each if not seen[each] else f"{each}-{seen[each]}")
        return found

    def title(self, path):
        match = re.search(r"^# (.*)$", self.texts[path], re.M)
        title = match.group(1) if match else path
        if path == "README.md":
            title = "README"
        return title.replace("`", "")

    # --------------------------------------------------------------- writing

    def write(self, folder, files):
        guides = [p for p in self.paths if p.startswith("examples/guides/")]
        for number, path in enumerate(self.paths, 1):
            name = f"{number:02}_{page_name(path)}.md"
            with open(os.path.join(folder, name), "w", encoding="utf-8") as out:
                out.write(self.page(path))
        main = self.main.replace("@GUIDES@", self.contents(guides))
        main = main.replace("@INTRODUCTION@", self.introduction("README.md"))
        # The tree on the left shows pages in the order of the files.
        with open(os.path.join(folder, "00_main.md"), "w", encoding="utf-8") as out:
            out.write(main)
        with open(os.path.join(folder, "00_manuals.dox"), "w", encoding="utf-8") as out:
            out.write("\n".join(self.manuals.values()))
        shutil.rmtree(files, ignore_errors=True)
        os.makedirs(files)
        for path, name in self.pictures.items():
            shutil.copy(os.path.join(self.root, path), os.path.join(files, name))

    def introduction(self, path):
        """A page's text before its first section."""
        return self.page(path).split("\\tableofcontents\n", 1)[1].split("\n## ", 1)[0]

    def contents(self, guides):
        def entry(path):
            return f"<li>\\ref {page_name(path)} \"{plain(self.titles[path])}\"</li>"
        made = []
        if guides:
            made.append("<h2>Guides</h2>")
            made.append("<ul>" + "".join(entry(p) for p in guides) + "</ul>")
        made.append("<h2>Manuals and pages</h2>")
        manuals = "".join(f"<li>\\ref {name}</li>" for name in self.manuals)
        made.append("<ul>" + manuals + "".join(entry(p) for p in self.paths if p not in guides)
                    + "</ul>")
        return "\n\n".join(made)

    def page(self, path):
        name, ids = page_name(path), iter(self.ids[path])
        made, fence, level = [], None, None
        paragraph = []

        def flush():
            if len(paragraph) > 1 and re.match(r"^\s*\|[\s:|-]+\|$", paragraph[1]):
                made.append(self.table(path, paragraph))
            elif paragraph:
                made.append(self.inline(path, "\n".join(paragraph)))
            paragraph.clear()

        for line in self.texts[path].split("\n"):
            match = FENCE.match(line)
            if fence is not None:
                closing = line.strip().startswith(fence) and not line.strip().strip(fence[0])
                made.append("\\endcode" if closing else line)
                fence = None if closing else fence
            elif match:
                flush()
                fence = match.group(1)
                made.append(f"\\code{{{LANGUAGES.get(match.group(2), '.unparsed')}}}")
            elif re.match(r"^#{1,6} ", line):
                flush()
                made.append(self.heading(path, line, next(ids), name, level is None))
                level = level or 1
            elif line.strip() in ("<details>", "</details>"):
                flush()  # Doxygen does not know them: always open
            elif line.startswith("<summary>"):
                flush()
                made.append(f"\n**{re.sub('<.*?>', '', line)}**\n")
            elif not line.strip():
                flush()
                made.append("")
            else:
                paragraph.append(line)
        flush()
        return "\n".join(made)

    def heading(self, path, line, each, name, first):
        hashes, title = line.split(" ", 1)
        title = title.replace("`", "")
        if first:
            return (f"# {self.titles[path]} {{#{name}}}\n\n\\anchor {name}_{mangled(each)}\n\n"
                    "\\tableofcontents\n")
        return f"{hashes} {title} {{#{name}_{mangled(each)}}}"

    def table(self, path, lines):
        """As HTML: Doxygen's Markdown has no bar inside a cell."""
        rows = []
        for line in [lines[0], *lines[2:]]:
            cells = re.split(r"(?<!\\)\|", line.strip().strip("|"))
            tag = "td" if rows else "th"
            made = (self.inline(path, c.strip().replace("\\|", "|")) for c in cells)
            rows.append("<tr>" + "".join(f"<{tag}>{c}</{tag}>" for c in made) + "</tr>")
        return '<table class="doxtable">' + "\n".join(rows) + "</table>"

    # ---------------------------------------------------------------- inline

    def inline(self, path, text):
        """Text outside of code: links lead somewhere, names of the library are links."""
        text = re.sub(r"</?picture>|<source[^>]*>|<!--.*?-->", "", text, flags=re.S)
        text = re.sub(r"!\[([^\]]*)\]\(\w+:[^)]*\)", r"\1", text)  # of another host
        done = []  # links and pictures, of which nothing is to be changed any more

        def keep(made):
            done.append(made)
            return f"\0{len(done) - 1}\0"

        text = re.sub(r"<img\b[^>]*>", lambda m: keep(self.picture_tag(path, m.group())), text)
        text = LINK.sub(lambda m: keep(self.linked(path, m)), text)
        parts = re.split(r"(``.+?``|`[^`]+`)", text, flags=re.S)
        made = "".join(self.code(p) if p.startswith("`") else self.words(p) for p in parts)
        return re.sub(r"\0(\d+)\0", lambda m: done[int(m.group(1))], made)

    def code(self, part):
        inside = re.sub(r"\s+", " ", part.strip("`")).strip()
        return self.link(inside, None, True) or f"<tt>{plain(inside)}</tt>"

    @staticmethod
    def words(part):
        # Text that Doxygen would take for a command or a tag.
        part = re.sub(r"(?<!\\)@(?=\w)|\\(?=[a-z])", lambda m: "\\" + m.group(), part)
        return re.sub(r"--(?=\w)", r"\\--", part)

    def linked(self, path, match):
        picture, shown, to = match.groups()
        if re.match(r"^[a-z]+:", to):
            return match.group()
        file, _, fragment = to.partition("#")
        target = os.path.normpath(os.path.join(os.path.dirname(path), file)) if file else path
        if picture:
            return f'<img src="{self.picture(path, file)}" alt="{html.escape(shown)}"/>'
        if os.path.isdir(os.path.join(self.root, target)):
            target = os.path.join(target, "README.md")
        if target not in self.texts:
            group = self.link(os.path.basename(target), None) if target.endswith(".h") else None
            return group or shown  # its name is all that a reader of the reference needs
        url = page_name(target) + ".html"
        if self.leads_to_guide(path, target) and not fragment:
            return f'\\subpage {page_name(target)} "{plain(shown)}"'
        if fragment:
            if fragment not in self.ids[target]:
                raise OSError(f"{path}: a link to {to}: {target} has no such heading")
            url += f"#{page_name(target)}_{mangled(fragment)}"
        return f'<a href="{url}">{self.shown(shown)}</a>'

    def leads_to_guide(self, path, target):
        """The first link of the guides' README to each: the tree shows it below that page."""
        first = path == "examples/guides/README.md" and path != target and \
            os.path.dirname(path) == os.path.dirname(target) and target not in self.below
        self.below.update([target] if first else [])
        return first

    @staticmethod
    def shown(text):
        return re.sub(r"`([^`]+)`", lambda m: f"<tt>{plain(m.group(1))}</tt>", text)

    def picture(self, path, file):
        source = os.path.normpath(os.path.join(os.path.dirname(path), file))
        if not os.path.exists(os.path.join(self.root, source)):
            raise OSError(f"{path}: there is no picture {file}")
        self.pictures[source] = "picture_" + re.sub(r"[^\w.]", "_", source.strip("."))
        return self.pictures[source]

    def picture_tag(self, path, tag):
        alt = re.search(r'alt="([^"]*)"', tag)
        file = re.search(r'src="([^"]*)"', tag).group(1)
        if re.match(r"^[a-z]+:", file):
            return alt.group(1) if alt else ""  # of another host
        return f'<img src="{self.picture(path, file)}" alt="{alt.group(1) if alt else ""}"/>'


def mangled(each):
    return re.sub(r"\W", "_", each)


def plain(text):
    """Text, for Doxygen: no command, HTML or Markdown."""
    escaped = re.sub(r"[\\@#%\"&<>*_~\[\]]",
                     lambda m: {"_": "_", "~": "~"}.get(m.group(), "\\" + m.group()),
                     text)
    escaped = re.sub(r"-{2,}", lambda m: "\\-" * len(m.group()), escaped)
    escaped = re.sub(r"\b(file|https?|ftp|mailto):", r"%\1:", escaped)  # no link
    return escaped
