#!/usr/bin/python3
"""Runs guides: Markdown whose programs are compiled, whose commands are run, and whose output is
compared.

    tests/judge/guide.py run WORK TOOL GUIDE...
    tests/judge/guide.py quick README FOLDER
    tests/judge/guide.py shown README COMMAND OUTPUT

A guide may hold these fenced blocks, and no others:

    behind a line <!-- NAME -->       the file NAME; blocks of one name are joined, in order. Files
                                      are there before the first command runs.
    behind a line <!-- from PATH -->  lines of the repository's file PATH, however indented
    sh                                run with `sh -eu`, in a folder of the guide's own
    text, behind sh                   what that printed, on both outputs; a line "..." stands for
                                      any lines, "..." in a line for any text
    console, text behind it           shown only: what needs root or a network

A line <!-- needs NAME... --> says what the reader has from README.md beside the guide, which is run
first. C files are C99 without one of the project's warnings; a line <!-- C++17 --> says that they
are C++17, too. Links have to lead to a file and a heading of it, and README.md has to list each
guide.

`run` makes WORK/GUIDE for each guide, with TOOL as `epctx` and this interpreter as `python3` on the
path, and the headers' folder in EPCTX. `quick` takes the first program of a README and the commands
below it: it writes that file, named by the commands, and `commands`, and prints the name of the
model that they use. `shown` compares the block behind a line <!-- COMMAND prints --> with OUTPUT, a
file of what the command printed: line by line, except that times differ, and rounding errors by up
to a factor of ROUNDING.
"""
import os
import re
import shutil
import subprocess
import sys

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
FENCE = re.compile(r"^```(\S*)$")
NOTE = re.compile(r"^<!-- (.+) -->$")
LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)")
ANCHOR = re.compile(r"<a id=\"([^\"]+)\">")
WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Wcast-qual",
            "-Wno-missing-field-initializers", "-Werror", "-fsyntax-only")
LANGUAGES = {"C99": ("CC", "gcc", "-std=c99", "-xc", "-Wstrict-prototypes"),
             "C++17": ("CXX", "g++", "-std=c++17", "-xc++")}


class Wrong(Exception):
    """What is wrong with a guide, and in which line."""

    def __init__(self, line, why):
        super().__init__(why)
        self.line = line


class Block:
    """A fenced block; `note` is the comment right above it, `shown` the block above it when only
    blank lines are between, `line` that of the fence."""

    def __init__(self, language, line, note, shown):
        self.language, self.line, self.note, self.shown = language, line, note, shown
        self.lines = []

    def text(self):
        return "".join(line + "\n" for line in self.lines)


class Document:
    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            self.lines = file.read().split("\n")
        self.blocks, self.notes, self.prose = [], [], []
        self.read()

    def read(self):
        block = above = note = None
        for number, line in enumerate(self.lines, 1):
            fence = FENCE.match(line)
            if block and line != "```":
                block.lines.append(line)
            elif block:
                above, note, block = block, None, None
            elif fence:
                block = Block(fence.group(1), number, note, above)
                self.blocks.append(block)
            else:
                found = NOTE.match(line)
                note = found.group(1) if found else None
                above = above if not line.strip() else None
                (self.notes if found else self.prose).append((number, note or line))
        if block:
            raise Wrong(block.line, "expected ``` below this, found the end")

    def links(self):
        """Line, file ("": this one) and anchor of each link that does not leave the repository."""
        return [(number, *target) for number, line in self.prose for target in LINK.findall(line)
                if ":" not in target[0]]

    def anchors(self):
        """What a link may name in this document: headings, as GitHub spells them, and anchors."""
        headings = [line.lstrip("#").strip().lower() for _, line in self.prose
                    if line.startswith("#")]
        return [re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in headings] + \
            [anchor for _, line in self.prose for anchor in ANCHOR.findall(line)]

    def check_links(self, path):
        for number, target, anchor in self.links():
            target = os.path.join(os.path.dirname(path), target) if target else path
            if not os.path.exists(target):
                raise Wrong(number, f"expected a file behind the link, found no {target}")
            if anchor and anchor not in Document(target).anchors():
                raise Wrong(number, f"expected '{anchor}' in {target}")


# ---------------------------------------------------------------- one guide

class Guide:
    def __init__(self, path, work):
        self.path = path
        self.folder = os.path.join(work, os.path.basename(path)[:-len(".md")])
        self.document = Document(path)
        self.files, self.commands, self.strict = {}, [], ["C99"]
        self.environment = {**os.environ, "EPCTX": TOP, "LC_ALL": "C.UTF-8",
                            "PATH": os.path.join(work, "bin") + ":" + os.environ["PATH"]}

    def run(self):
        for block in self.document.blocks:
            self.sort(block)
        if not self.commands:
            raise Wrong(1, "expected a sh block, found none: nothing of this guide is tried")
        os.mkdir(self.folder)
        self.follow_notes()
        for name, blocks in self.files.items():
            self.write(name, blocks)
        for block, expected in self.commands:
            self.try_commands(block, expected)
        for name, blocks in self.files.items():  # commands may have made what it includes
            for language in self.strict if name.endswith(".c") else ():
                self.check_program(name, blocks, language)
        self.document.check_links(self.path)

    def sort(self, block):
        """Finds out what a block is."""
        if block.note and block.note.startswith("from "):
            self.check_quote(block, block.note[len("from "):])
        elif block.note and block.language not in ("sh", "text", "console"):
            self.files.setdefault(block.note, []).append(block)
        elif block.language == "sh":
            self.commands.append((block, None))
        elif block.language == "text" and block.shown and block.shown.language == "sh":
            self.commands[-1] = (block.shown, block)
        elif block.language == "text" and not (block.shown and block.shown.language == "console"):
            raise Wrong(block.line, "expected a sh block right above the text block")
        elif block.language not in ("console", "text"):
            raise Wrong(block.line, f"expected <!-- FILE --> or <!-- from FILE --> above the block "
                                    f"of '{block.language}'")

    @staticmethod
    def check_quote(block, path):
        try:
            with open(os.path.join(TOP, path), encoding="utf-8") as file:
                lines = [line.strip() for line in file]
        except OSError as error:
            raise Wrong(block.line, f"{path}: {error.strerror}") from error
        wanted = [line.strip() for line in block.lines]
        if not wanted or not any(lines[i:i + len(wanted)] == wanted for i in range(len(lines))):
            missing = next((line for line in wanted if line not in lines), "that order")
            raise Wrong(block.line, f"expected lines of {path}, which lacks: {missing}")

    def follow_notes(self):
        for number, note in self.document.notes:
            if note == "C++17":
                self.strict.append(note)
            elif note.startswith("needs "):
                for name in note.split()[1:]:
                    self.provide(number, name)

    def provide(self, line, name):
        made = os.path.join(os.path.dirname(self.folder), "README", name)
        if not os.path.exists(made):
            raise Wrong(line, f"expected the commands of README.md to make {name}")
        shutil.copy(made, self.folder)

    def write(self, name, blocks):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            file.write("".join(block.text() for block in blocks))

    def check_program(self, name, blocks, language):
        """Compiles a file with the project's warnings; the messages name lines of the guide."""
        variable, compiler, *flags = LANGUAGES[language]
        source = "".join(f"#line {block.line + 1} \"guide\"\n{block.text()}" for block in blocks)
        done = self.call([*os.environ.get(variable, compiler).split(), *flags, *WARNINGS, "-I.",
                          "-I" + TOP, *os.environ.get("NANOPB_CFLAGS", "").split(), "-"], source)
        if done.returncode != 0:
            found = re.search(r"^guide:(\d+):.*?: (?:error|warning): (.*)$", done.stdout, re.M)
            raise Wrong(int(found.group(1)) if found else blocks[0].line,
                        f"expected {name} to be {language} without a warning, found "
                        f"{found.group(2) if found else done.stdout}")

    def try_commands(self, block, expected):
        done = self.call(["sh", "-euc", block.text()])
        if done.returncode != 0:
            raise Wrong(block.line, f"expected these commands to succeed, found exit code "
                                    f"{done.returncode} and\n{done.stdout}")
        if expected:
            compare(expected, done.stdout.splitlines())

    def call(self, command, text=""):
        return subprocess.run(command, cwd=self.folder, env=self.environment, input=text,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8",
                              errors="backslashreplace", check=False)


def pattern(lines):
    """What output that is shown as these lines may be."""
    chunks = [""]
    for line in lines:
        if line == "...":
            chunks.append("")
        else:
            chunks[-1] += "(?>" + ".*".join(map(re.escape, line.split("..."))) + "\n)"
    # The first place fits where any does, but for the end: no backtracking over many lines.
    between = "".join(rf"(?>(?:.*\n)*?{chunk})" for chunk in chunks[1:-1])
    return chunks[0] + between + (rf"(?:.*\n)*?{chunks[-1]}" if len(chunks) > 1 else "")


def compare(block, found):
    text = "".join(line.rstrip() + "\n" for line in found)
    lines = [line.rstrip() for line in block.lines]
    if re.fullmatch(pattern(lines), text):
        return
    wrong = next((i for i in range(len(lines)) if not re.match(pattern(lines[:i + 1]), text)), None)
    if wrong is None:
        raise Wrong(block.line, f"expected the output to end as shown, found\n{text}")
    raise Wrong(block.line + 1 + wrong, f"expected '{lines[wrong]}', found\n{text}")


# ---------------------------------------------------------------- all guides

def attempt(path, action, what=""):
    """Does `action` with a guide and prints what came of it."""
    name = os.path.relpath(path, TOP)
    try:
        action()
    except Wrong as wrong:
        why, _, output = str(wrong).partition("\n")
        first = output.strip().split("\n")[0]
        print(f"FAIL {name}:{wrong.line}: {why}{' ' + first if first else ''}")
        print("".join(f"  {line}\n" for line in output.splitlines()[:40]), end="")
        return False
    print(f"ok {name}{what}")
    return True


def check_list(path, guides):
    listed = [target for _, target, _ in Document(path).links()]
    for guide in guides:
        if os.path.basename(guide) not in listed:
            raise Wrong(1, f"expected a link to every guide, found none to "
                           f"{os.path.basename(guide)}")


def run(work, tool, guides):
    work = os.path.abspath(work)
    programs = os.path.join(work, "bin")
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(programs)
    os.symlink(os.path.abspath(tool), os.path.join(programs, "epctx"))
    os.symlink(sys.executable, os.path.join(programs, "python3"))
    basics = os.path.join(os.path.dirname(guides[0]), "README.md")
    guides = [path for path in guides if path != basics]
    good = attempt(basics, lambda: check_list(basics, guides), " lists them all") and bool(guides)
    for path in [basics, *guides]:
        good &= attempt(path, lambda path=path: Guide(path, work).run())
        sys.stdout.flush()
    return 0 if good else 1


def quick(path, folder):
    blocks = Document(path).blocks
    code = next(i for i, block in enumerate(blocks) if block.language == "c")
    shell = next(block for block in blocks[code:] if block.language in ("sh", "console", "shell"))
    shown = [line[2:] for line in shell.lines if line.startswith("$ ")]
    commands = "".join(line + "\n" for line in shown or shell.lines)
    source, model = (re.search(rf"\S+\.{kind}\b", commands).group(0) for kind in ("c", "onnx"))
    for name, text in ((source, blocks[code].text()), ("commands", commands)):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)
    print(model)


# -- output that is shown --

# Processors round differently: each width of vectors sums in an order of its own.
ROUNDING = 8
TIME = re.compile(r" +[0-9]+\.[0-9]+ ms$")
ERROR = re.compile(r"(?<=max\|d\| )[0-9.]+e[-+][0-9]+|(?<= ratio )[0-9.]+e[-+][0-9]+")


def without_numbers(line):
    return ERROR.sub("N", TIME.sub(" N ms", line.rstrip()))


def errors(line):
    return [float(number) for number in ERROR.findall(line)]


def check_shown(path, command, output):
    block = next((b for b in Document(path).blocks if b.note == command + " prints"), None)
    if block is None:
        raise Wrong(1, f"expected a block behind <!-- {command} prints -->, found none")
    with open(output, encoding="utf-8", errors="backslashreplace") as file:
        found = file.read().splitlines()
    shown, block.lines = block.lines, [without_numbers(line) for line in block.lines]
    compare(block, [without_numbers(line) for line in found])
    for at, line in enumerate(shown):
        for other in found if errors(line) else ():
            if without_numbers(other) == without_numbers(line) and not all(
                    a <= ROUNDING * b and b <= ROUNDING * a
                    for a, b in zip(errors(line), errors(other))):
                raise Wrong(block.line + 1 + at, f"expected '{line.strip()}', found "
                                                 f"'{other.strip()}'")


def main():
    if len(sys.argv) == 5 and sys.argv[1] == "shown":
        path, command, output = sys.argv[2:]
        return 0 if attempt(os.path.abspath(path), lambda: check_shown(path, command, output),
                            f" shows what {command} prints") else 1
    if len(sys.argv) > 4 and sys.argv[1] == "run":
        return run(sys.argv[2], sys.argv[3], sys.argv[4:])
    if len(sys.argv) == 4 and sys.argv[1] == "quick":
        try:
            return quick(sys.argv[2], sys.argv[3])
        except (StopIteration, AttributeError, Wrong):
            sys.exit("expected a c block and a sh block below it that names a .c and a .onnx file")
    sys.exit(__doc__)


if __name__ == "__main__":
    sys.exit(main())
