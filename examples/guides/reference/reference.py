#!/usr/bin/python3
"""Writes what Doxygen makes the reference from.

    reference.py [--root FOLDER] OUTPUT

OUTPUT/input gets the public declarations of the headers, each with its comment as a Doxygen
comment; the manuals, READMEs and guides as pages; and the main page. OUTPUT/files gets the pictures
of the pages. A declaration without a description is an error.

What the headers leave to the reader of a name stands in words.txt; see there.
"""
import os
import re
import shutil
import sys

from header import Comment, Declaration, Reader, Wrong
import pages

HEADERS = ("epctx.h", "epctx_npu.h")
OPS = "examples/epctx/ops"
NAME = re.compile(r"\bepctx_\w+(?:(?:\.|::)[a-z]\w*)?(?:\(\))?|\bEPCTX_\w+|>>\w+|`[^`]+`|"
                  r"\b\w+\.h\b")
SPECIAL = re.compile(r"--+|[\\@#%\"&<>*\[\]_~`$|]")
ROW = re.compile(r"^(\S.*?) {2,}(\S.*)$")  # of a table: a word, and what it means
HERE = os.path.dirname(os.path.abspath(__file__))


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def escaped(text):
    """Plain text for Doxygen: nothing in it is a command, HTML or Markdown."""
    def one(match):
        found = match.group()
        if found.startswith("--"):
            return "\\-" * len(found)
        if found in "_~|":
            return found
        if found == "`":
            return "&lsquo;"
        return "\\" + found
    return SPECIAL.sub(one, text)


class Names:
    """Where the words of a text lead."""

    def __init__(self):
        self.targets = {}   # public name -> what \ref takes
        self.sections = {}  # header -> {section -> group}
        self.headers = {}   # "cache.h" -> group
        self.options = {}   # EPCTX_NO_EDIT -> section of a manual

    def link(self, word, header, as_code=False):
        target = self.target(word, header)
        if target is None:
            return None
        shown = escaped(word if not word.startswith(">>") else word[2:])
        link = f'\\ref {target} "{shown}"'
        return f"<tt>{link}</tt>" if as_code else link

    def target(self, word, header):
        if word.startswith(">>"):
            known = [header] if header else self.sections
            return next((self.sections[h][word[2:]] for h in known
                         if word[2:] in self.sections.get(h, {})), None)
        bare = word[:-2] if word.endswith("()") else word
        return (self.targets.get(bare.replace("::", ".")) or self.headers.get(bare)
                or self.options.get(bare))


class Writer:
    """Text of comments for Doxygen."""

    def __init__(self, names, header):
        self.names, self.header = names, header

    def inline(self, text):
        made, at = [], 0
        for match in NAME.finditer(text):
            made.append(escaped(text[at:match.start()]))
            made.append(self.word(match.group()))
            at = match.end()
        return "".join(made) + escaped(text[at:])

    def word(self, word):
        if word.startswith("`"):
            inside = word[1:-1]
            link = self.names.link(inside, self.header, True)
            return link or f"<tt>{escaped(inside)}</tt>"
        link = self.names.link(word, self.header)
        if link is None and "." in word and not word.endswith(".h"):
            first, rest = word.split(".", 1)  # a sentence's end, or a member not listed
            return self.word(first) + "." + escaped(rest)
        return link or escaped(word if not word.startswith(">>") else word[2:])

    def blocks(self, lines):
        """The parts of a comment: paragraphs, code, tables, lists; each ready for Doxygen."""
        made = []
        for block in split_blocks(lines):
            made += self.block(block)
        return made

    def block(self, lines):
        base = min(indent(t) for t in lines)
        lines = [t[base:] for t in lines]
        if any(" | " in t or len(re.findall(r"\S {3,}(?=\S)", t.strip())) > 1 for t in lines) and \
                sum(indent(t) < 4 for t in lines) > 1 or is_art(lines):
            return [verbatim(lines)]
        if is_table(lines):
            end = next((i for i, t in enumerate(lines) if not indent(t) and not ROW.match(t)),
                       len(lines))
            return [self.table(lines[:end])] + (self.block(lines[end:]) if lines[end:] else [])
        made, kind, part = [], None, []
        for line in lines:
            depth = indent(line)
            now = "code" if depth >= 4 and kind != "item" else "item" if depth else "text"
            if now != kind:
                made += self.part(kind, part)
                kind, part = now, []
            part.append(line)
        return made + self.part(kind, part)

    def part(self, kind, lines):
        if not lines:
            return []
        if kind == "code":
            return [code(lines)]
        if kind == "text":
            return [self.inline(" ".join(t.strip() for t in lines))]
        items = []
        for line in (t.strip() for t in lines):
            if not items or re.match(r"\d+\. ", line) or items[-1].endswith("."):
                items.append(re.sub(r"^\d+\. ", "", line))
            else:
                items[-1] += " " + line
        tag = "ol" if re.match(r"\s*\d+\. ", lines[0]) else "ul"
        return [f"<{tag}>" + "".join(f"<li>{self.inline(t)}</li>" for t in items) + f"</{tag}>"]

    def table(self, lines):
        rows = []
        for line in lines:
            if indent(line):
                rows[-1][1] += " " + line.strip()
            else:
                rows.append(list(ROW.match(line).groups()))
        cells = "".join(f"<tr><td>{self.inline(a)}</td><td>{self.inline(b)}</td></tr>"
                        for a, b in rows)
        return f'<table class="words">{cells}</table>'


def indent(line):
    return len(line) - len(line.lstrip())


def split_blocks(lines):
    block = []
    for line in lines + [""]:
        if line.strip():
            block.append(line)
        elif block and indent(block[-1]) >= 6 and line is not lines[-1:]:
            block.append(line)  # an empty line inside of code
        elif block:
            yield [t for t in block]
            block = []
    if block:
        while block and not block[-1].strip():
            block.pop()
        yield block


def is_table(lines):
    first = re.match(r"^\S.*?\S( {3,})\S", lines[0])
    return bool(first) and all(indent(t) == 0 or indent(t) > 8 for t in lines)


def is_art(lines):
    return sum(t.count(" | ") for t in lines) > 2


def code(lines):
    base = min(indent(t) for t in lines if t.strip())
    text = "\n".join(t[base:] for t in lines)
    kind = ".c" if re.search(r"[;{]\s*(//.*)?$|^#", text, re.M) else ".unparsed"
    return f"\\code{{{kind}}}\n{text}\n\\endcode"


def verbatim(lines):
    return "\\code{.unparsed}\n" + "\n".join(lines) + "\n\\endcode"


def comment(parts, first=()):
    """A Doxygen comment of ready parts."""
    body = "\n\n".join([*first, *parts])
    return "/**\n" + body.replace("*/", "&lowast;/") + "\n*/\n"


SENTENCE = re.compile(r"(?<!e\.g)(?<!i\.e)(?<!\bvs)\.(?=\s+[A-Z\\<\"(])")


def with_brief(parts):
    """The first sentence as the brief description."""
    if not parts:
        return parts
    first = parts[0]
    if re.match(r"[a-z]+[ ,;]", first):
        first = first[0].upper() + first[1:]  # of a comment behind its name
    if first.startswith(("\\code", "<table", "<ol", "<ul")):
        return parts
    match = SENTENCE.search(first)
    brief, rest = (first[:match.end()], first[match.end():].strip()) if match else (first, "")
    return [f"\\brief {brief}"] + ([rest] if rest else []) + parts[1:]


class Words:
    """words.txt: descriptions of names that have no comment."""

    def __init__(self, path):
        self.path, self.texts, self.used = path, {}, set()
        self.runs = {}  # name -> the one whose comment it shares
        for number, line in enumerate(read(path).split("\n"), 1):
            if not line.strip() or line.startswith("#"):
                continue
            match = re.match(r"^(\w+) = (\S.*)$", line)
            if match:
                for name in match.group(2).split():
                    self.runs[name] = (match.group(1), number)
                continue
            match = re.match(r"^(\S+)\s+(\S.*)$", line)
            if not match or match.group(1) in self.texts:
                raise Wrong(f"{path}:{number}: a name and its description are expected, once")
            self.texts[match.group(1)] = (match.group(2), number)

    def of(self, *names):
        for name in names:
            if name in self.texts:
                self.used.add(name)
                return self.texts[name][0]
        return None

    def shares(self, declaration):
        """Whether it shares the comment above, which stands before another one."""
        if declaration.name not in self.runs:
            return False
        self.used.add(declaration.name)
        return declaration.shared is not None and \
            declaration.shared.name == self.runs[declaration.name][0]

    def runs_of(self, section):
        """Name -> the names that share its comment."""
        runs = {}
        for part in section.parts:
            if isinstance(part, Declaration) and part.name in self.runs:
                first = self.runs[part.name][0]
                runs.setdefault(first, [first]).append(part.name)
        return {name: run for run in list(runs.values()) for name in run}

    def unused(self):
        lines = [(name, line) for name, (_, line) in [*self.texts.items(), *self.runs.items()]]
        return [f"{self.path}:{line}: {name}: no such name without a comment"
                for name, line in lines if name not in self.used]


class Header:
    """One header on its way to Doxygen."""

    def __init__(self, root, path, parent):
        self.path, self.short = path, os.path.basename(path)
        self.key = re.sub(r"\W", "_", self.short[:-2])
        self.parent = parent
        self.reader = Reader(path, read(os.path.join(root, path)), "EPCTX")
        self.sections = [s for s in self.reader.sections
                         if any(isinstance(p, Declaration) for p in s.parts)]

    def group(self, section):
        return f"{self.key}_{section.name}" if section.name else f"ops_{self.key}"

    def title(self, section):
        if not section.name:
            return self.short
        return f"{section.name}: {section.title}" if section.title else section.name

    def declarations(self):
        for section in self.sections:
            for part in section.parts:
                if isinstance(part, Declaration):
                    yield section, part


class Reference:
    def __init__(self, root, out):
        self.root, self.out = root, out
        self.words = Words(os.path.join(HERE, "words.txt"))
        self.names, self.wrong = Names(), []
        ops = sorted(n for n in os.listdir(os.path.join(root, OPS)) if n.endswith(".h"))
        ops.sort(key=lambda n: n != "ops.h")
        self.headers = [Header(root, p, "") for p in HEADERS]
        self.headers += [Header(root, f"{OPS}/{n}", "ops") for n in ops]
        self.headers = [h for h in self.headers if h.sections]
        for header in self.headers:
            self.index(header)

    # ---------------------------------------------------------------- names

    def index(self, header):
        sections = self.names.sections.setdefault(header.path, {})
        for section in header.sections:
            sections[section.name] = header.group(section)
        if header.reader.manual:
            sections["manual"] = f"manual_{header.key}"
            self.names.headers[header.short] = f"manual_{header.key}"
            for title, lines in manual_sections(header.reader.manual):
                if title.startswith("OPTIONS"):
                    for name in re.findall(r"\bEPCTX_\w+", "\n".join(lines)):
                        self.names.options.setdefault(name, f"manual_{header.key}_options")
        else:
            self.names.headers[header.short] = header.group(header.sections[0])
            self.names.headers["ops/" + header.short] = header.group(header.sections[0])
            self.names.headers[header.path] = header.group(header.sections[0])
        for _, declaration in header.declarations():
            self.names.targets[declaration.name] = declaration.name
            for member in declaration.members:
                if member.kind == "enumerator":
                    self.names.targets[member.name] = member.name
                elif not member.private:
                    self.names.targets[f"{declaration.name}.{member.name}"] = \
                        f"{declaration.name}::{member.name}"

    # --------------------------------------------------------------- writing

    def write(self):
        folder = os.path.join(self.out, "input")
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        for header in self.headers:
            with open(os.path.join(folder, header.key + ".h"), "w", encoding="utf-8") as out:
                out.write(self.header(header))
        texts = pages.Pages(self.root, self.names.link, self.manuals(), self.main())
        texts.write(folder, os.path.join(self.out, "files"))
        self.wrong += self.words.unused()

    def manuals(self):
        made = {}
        for header in self.headers:
            if header.reader.manual:
                made[f"manual_{header.key}"] = self.manual(header)
        return made

    def manual(self, header):
        writer = Writer(self.names, header.path)
        intro = writer.blocks(header.reader.intro.lines[:-1])
        parts = [f"\\page manual_{header.key} Manual of {header.short}", "\\tableofcontents",
                 *intro]
        seen = {}
        for title, lines in manual_sections(header.reader.manual):
            if title.startswith("CONTENTS"):
                continue
            anchor = re.match(r"[A-Z ]+", title).group().strip().lower().replace(" ", "_")
            seen[anchor] = seen.get(anchor, 0) + 1
            anchor += str(seen[anchor]) if seen[anchor] > 1 else ""
            head, first = title_of(title)
            parts.append(f"\\section manual_{header.key}_{anchor} {escaped(head)}")
            parts += writer.blocks(first + lines)
        return comment(parts)

    def main(self):
        writer = Writer(self.names, "epctx.h")
        parts = ["# epctx {#mainpage}", "@INTRODUCTION@", "@GUIDES@",
                 "<h2>Sections, in reading order</h2>"]
        for header in self.headers[:len(HEADERS)]:
            rows = "".join(self.row(header, section, writer) for section in header.sections)
            manual = f'<tr><td>\\ref manual_{header.key} "manual"</td><td>' \
                     "what it is, what to do, and what holds everywhere</td></tr>"
            parts.append(f"<h3>{header.short}</h3>")
            rows = manual + rows
            parts.append(f'<table class="sections">{rows}</table>')
        rows = "".join(self.row(h, h.sections[0], writer) for h in self.headers[len(HEADERS):])
        parts.append("<h3>Operations on whole models: examples/epctx/ops</h3>")
        parts.append(f'<table class="sections">{rows}</table>')
        return "\n\n".join(parts)

    def row(self, header, section, writer):
        name = section.name or header.short
        title = section.title
        if not section.name:
            title = re.sub(r"^\S+ - ", "", " ".join(header.reader.intro.lines)).split(". ")[0]
        title = title or {"config": "version, build options"}.get(section.name, "")
        return (f'<tr><td>\\ref {header.group(section)} "{escaped(name)}"</td>'
                f"<td>{writer.inline(title.rstrip('.'))}</td></tr>")

    def header(self, header):
        made = []
        for key, title in self.parents(header):
            made.append(f"/** \\defgroup {key} {title} */\n")
        parent = "ops" if header.parent else header.key
        for section in header.sections:
            made.append(self.section(header, section, parent))
        return "\n".join(made)

    def parents(self, header):
        if not header.parent:
            return [(header.key, header.short)]
        first = next(h for h in self.headers if h.parent)
        return [("ops", "Operations (examples/epctx/ops)")] if header is first else []

    def section(self, header, section, parent):
        writer = Writer(self.names, header.path)
        group = header.group(section)
        text = section.comment.lines if section.comment else without_name(header.reader.intro)
        title = re.sub(r">>(\w+)", r"\1", header.title(section)).replace("->", "to")
        opening = [f"\\defgroup {group} {title}",
                   f"\\ingroup {parent}"]
        made = [comment(["\n".join(opening)] + writer.blocks(text) + ["@{"])]
        inside = False
        runs = self.words.runs_of(section)
        for part in section.parts:
            if isinstance(part, Comment):
                made.append("/** @} */\n" if inside else "")
                made.append(heading(writer, part))
                inside = True
            else:
                made.append(self.declaration(header, part, writer, runs))
        made.append("/** @} */\n" if inside else "")
        made.append("/** @} */\n")
        return "\n".join(made)

    # ---------------------------------------------------------- declarations

    def declaration(self, header, declaration, writer, runs):
        parts = self.description(header, declaration, writer)
        together = [n for n in runs.get(declaration.name, ()) if n != declaration.name]
        if together:
            parts.append("\\sa " + ", ".join(f"\\ref {n}" for n in together))
        for option in declaration.without:
            parts.append(f"Left out by {writer.inline(option)}.")
        text = comment(with_brief(parts))
        if declaration.kind == "macro":
            return text + macro(declaration)
        if declaration.kind == "struct":
            members = [self.member(header, declaration, m, writer) for m in declaration.members
                       if not m.private]
            return text + f"struct {declaration.name} {{\n" + "".join(members) + "};\n"
        if declaration.kind == "enum":
            members = [self.member(header, declaration, m, writer) for m in declaration.members]
            return text + f"enum {declaration.name} {{\n" + "".join(members) + "};\n"
        return text + declaration.code + "\n"

    def description(self, header, declaration, writer):
        own = [c for c in declaration.comments]
        word = None if own else self.words.of(declaration.name)
        if word:
            return [writer.inline(word)]
        above = declaration.shared.comments[:1] if declaration.shared else []
        # Of macros a comment above tells what they are for, one behind it which one this is.
        shared = above if own and declaration.kind == "macro" or \
            not own and self.words.shares(declaration) else []
        parts = []
        for each in own + shared:
            parts += writer.blocks(each.lines)
        if not parts:
            self.missing(header, declaration.line, declaration.kind, declaration.name)
        return parts

    def member(self, header, declaration, member, writer):
        parts = []
        if member.heading:
            parts.append(writer.inline(" ".join(member.heading.lines)))
        for each in member.comments:
            parts += writer.blocks(each.lines)
        if not member.comments:
            parts += self.unsaid(header, declaration, member, writer)
        end = "," if member.kind == "enumerator" else ""
        return comment(with_brief(parts)) + member.code.strip() + end + "\n"

    def unsaid(self, header, declaration, member, writer):
        if member.text:
            return [writer.inline(member.text.replace('\\"', '"'))]
        full = member.name if member.kind == "enumerator" else f"{declaration.name}.{member.name}"
        word = self.words.of(full)
        said = None if word else mentioned(declaration, member.name)
        word = word or said or self.words.of("*." + member.name) or counted(declaration, member)
        if word is None:
            self.missing(header, member.line, member.kind, full)
            return []
        return [writer.inline(word)]

    def missing(self, header, line, kind, name):
        self.wrong.append(f"{header.path}:{line}: {kind} {name} has no description: "
                          "write a comment")


def counted(declaration, member):
    """`input_count` beside `inputs`, and the like."""
    match = re.match(r"^(\w+)_(count|capacity|size)$", member.name)
    if not match:
        return None
    stem, what = match.groups()
    names = [m.name for m in declaration.members]
    for name in (stem, stem + "s", stem + "es"):
        if name in names:
            return {"count": f"Number of `{name}`.",
                    "capacity": f"Bytes that `{name}` has room for.",
                    "size": f"Bytes of `{name}`."}[what]
    return None


def mentioned(declaration, name):
    """What the comment of a struct, or of a callback beside it, says in a clause that begins with
    the member."""
    comments = list(declaration.comments)
    if name.endswith("_fn"):
        comments += [c for m in declaration.members for c in m.comments]
    for each in comments:
        for block in split_blocks(each.lines):
            text = " ".join(t.strip() for t in block)
            for clause in re.split(r"(?<=[.;])\s+", text):
                if re.match(rf"`{name}`:? |{name} ", clause):
                    return re.sub(r"^`\w+`: ", "", clause).rstrip(";")
    return None


def macro(declaration):
    parameters, body = declaration.code
    return f"#define {declaration.name}{parameters} {body}\n"


def heading(writer, part):
    """`-- words: more -- text` as the head of a member group."""
    text = "\n".join(part.lines)
    match = re.match(r"--\s*(.*?)\s*--\s*(.*)$", text, re.S)
    title = match.group(1)
    return comment([f"\\name {escaped(title[:1].upper() + title[1:])}"]
                   + writer.blocks(match.group(2).split("\n"))) + "/** @{ */\n"


def manual_sections(manual):
    title, lines = None, []
    for line in manual.lines:
        if re.match(r"^[A-Z]{2}", line):
            if title:
                yield title, lines
            title, lines = line, []
        elif title:
            lines.append(line)
    yield title, lines


def title_of(title):
    """A heading of a manual: its title, and the lines that it begins the text with.

    MEMORY -> Memory; WORDS (more) -> Words, with a paragraph; WORDS   column -> with a table."""
    upper = re.match(r"^[A-Z ]+", title).group()
    first = []
    if re.search(r" {3,}", title):
        first, title = ["  " + title], upper.strip()
    elif title.endswith(")"):
        title, more = title[:-1].split(" (", 1)
        first = ["  " + more[:1].upper() + more[1:] + ".", ""]
    return upper.capitalize() + title[len(upper):], first


def without_name(intro):
    lines = list(intro.lines)
    lines[0] = re.sub(r"^\S+\.h - ", "", lines[0])
    lines[0] = lines[0][:1].upper() + lines[0][1:]
    return lines


def main():
    arguments = sys.argv[1:]
    root = os.path.join(HERE, "../../..")
    if arguments[:1] == ["--root"]:
        root, arguments = arguments[1], arguments[2:]
    if len(arguments) != 1:
        sys.exit(__doc__)
    try:
        reference = Reference(root, arguments[0])
        reference.write()
    except (Wrong, OSError) as error:
        sys.exit(f"reference: {error}")
    for line in reference.wrong:
        print(line, file=sys.stderr)
    return 1 if reference.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
