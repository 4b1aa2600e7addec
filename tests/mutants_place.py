#!/usr/bin/python3
"""Places faults in C and C++ sources, by clang's syntax tree: the compiler of mutants.py.

    tests/mutants_place.py FOLDER COMPILER ARGUMENT...

FOLDER/sources names the files that are to have faults, one a line. What the arguments compile of
them is first written to FOLDER/src with a switch at each place: while the environment names the
number of a fault, that fault is in, otherwise everything is as it was. FOLDER/src/FILE.json lists
them. In function bodies only, not where a constant is asked for, and not inside a macro.

    boundary  < and <=, > and >=, == and !=         value    another enumerator, false for true
    logic     && and ||                             drop     a statement is left out
    number    a constant, and one more              check    an `if` without else is not taken
    swap      the branches of an `if` or of a ?: change places
    return    0, false or NULL instead of what is returned
"""
import hashlib
import json
import os
import re
import subprocess
import sys

# ccache knows no syntax trees, and may answer with another source's.
ITSELF = dict(os.environ, CCACHE_DISABLE="1")
BITS = 15  # numbers of a file's faults: its place in FOLDER/sources, and these
OTHER = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||", "||": "&&"}
FUNCTIONS = {"FunctionDecl", "CXXMethodDecl", "CXXConstructorDecl", "CXXDestructorDecl"}
# Constants are asked for, or nothing is run.
CONSTANT = {"ConstantExpr", "UnaryExprOrTypeTraitExpr", "OffsetOfExpr", "StaticAssertDecl",
            "GenericSelectionExpr", "EnumDecl"}
# Where the statements among the children begin.
STATEMENTS = {"CompoundStmt": 0, "IfStmt": 1, "ForStmt": -1, "WhileStmt": -1, "CaseStmt": -1,
              "DefaultStmt": -1, "LabelStmt": -1}
DROPPED = {"CallExpr", "CXXMemberCallExpr", "CXXOperatorCallExpr", "CompoundAssignOperator",
           "BreakStmt", "ContinueStmt", "GotoStmt", "ExprWithCleanups", "DoStmt"}
SCALAR = re.compile(r"(const )?(enum \w+|bool|_Bool|float|double|(unsigned )?(char|short|int|long)|"
                    r"u?int\d+_t|size_t|epctx_status)")
SWITCH = """#ifndef EPM
#define EPM
#ifdef __cplusplus
extern "C" {
#endif
/* By other names: what a source declares, and with what, is its own affair. */
extern char *epm_getenv(const char *) __asm__("getenv");
extern int epm_atoi(const char *) __asm__("atoi");
extern int epm_open(const char *, int, ...) __asm__("open");
extern int epm_close(int) __asm__("close");
extern void *epm_mmap(void *, unsigned long, int, int, int, long) __asm__("mmap");
#define EPM_ONE __attribute__((weak, visibility("hidden")))
EPM_ONE int __epm_on = -1;
EPM_ONE int __epm_ready = 0;
/* A file in memory outlives a crash, and a child process has its own look at it. */
EPM_ONE unsigned char *__epm_seen = 0;
__attribute__((constructor, unused)) static void epm_start(void) {
    const char *on = epm_getenv("EPCTX_FAULT"), *log = epm_getenv("EPCTX_FAULT_LOG");
    int file;
    if (__epm_ready) return;
    __epm_ready = 1;
    if (on) __epm_on = epm_atoi(on);
    if (!log || (file = epm_open(log, 2)) < 0) return;
    __epm_seen = (unsigned char *)epm_mmap(0, LASTul, 3, 1, file, 0);
    if (__epm_seen == (unsigned char *)-1l) __epm_seen = 0;
    epm_close(file);
}
__attribute__((unused)) static inline int epm(int number) {
    if (__epm_seen) __epm_seen[number] = 1;
    return number == __epm_on;
}
#ifdef __cplusplus
}
#endif
#endif
"""


def read(path):
    with open(path, encoding="utf-8") as source:
        return source.read()


def write(path, text):
    """What has not changed keeps its date."""
    if os.path.exists(path) and read(path) == text:
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(f"{path}.{os.getpid()}", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(file.name, path)


def placed(folder, source):
    """Where the source with its faults is. A header keeps its name; a source gets another, since
    one that includes another looks beside itself first, and would find no headers there."""
    name = source if source.endswith(".h") else f"{source}.faults{os.path.splitext(source)[1]}"
    return f"{folder}/src/{name}"


def closing(text, at):
    """Behind the bracket that closes the one at `at`; strings and comments count as one."""
    depth = 0
    for token in re.finditer(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])+\'|[()]',
                             text[at:], re.S):
        depth += {"(": 1, ")": -1}.get(token.group(), 0)
        if depth == 0 and token.group() == ")":
            return at + token.end()
    return None


def trees(command):
    """(file at its start, text) of each declaration of a program; the system's are left out."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=ITSELF, text=True,
                          encoding="utf-8") as clang:
        lines, before, here, ours, last = [], "", "", False, ""
        for line in clang.stdout:
            word = line.strip()
            if word.startswith('"file": ') and last != '"includedFrom": {':
                here = json.loads(word.rstrip(",")[8:])
                ours = ours or not here.startswith("/usr/")
            last = word
            lines.append(line)
            if line in ("    {\n", "    {"):
                lines, before, ours = [line], here, not here.startswith("/usr/")
            elif line.startswith("    }") and lines[0].startswith("    {"):
                if ours:
                    yield before, "".join(lines).rstrip().rstrip(",")
                lines = [""]
    if clang.returncode != 0:
        sys.exit(f"{' '.join(command)}: no syntax tree")


class Places:
    """The faults of one source: (start, end, kind, function, the text with the fault)."""

    def __init__(self, name, text, command):
        # Offsets are of bytes.
        self.name, self.text, self.file = name, text, ""
        self.found, self.enums, self.stack, self.function = {}, {}, [], None
        sys.setrecursionlimit(20000)
        for self.file, tree in trees(command):
            self.visit(json.loads(tree), None, 0)

    def spot(self, where, end):
        """Offset of a begin, or behind an end; -1 in what a macro is given, or elsewhere."""
        for part in (where.get("spellingLoc"), where.get("expansionLoc", where)):
            self.file = (part or {}).get("file", self.file)
        macro = where.get("expansionLoc")
        place = macro or where
        if "offset" not in place or self.file != self.name or (
                macro and macro.get("isMacroArgExpansion")):
            return -1
        if not end:
            return place["offset"]
        after = place["offset"] + place.get("tokLen", 0)
        if macro and self.text[after:after + 1] == "(":
            return closing(self.text, after) or -1
        return after

    def span(self, node):
        if "loc" in node:
            self.spot(node["loc"], False)
        place = node.get("range", {})
        start, end = place.get("begin", {}), place.get("end", {})
        first, last = self.spot(start, False), self.spot(end, True)
        # All of it is in one macro: its text is the macro's.
        whole = "expansionLoc" in start and "expansionLoc" in end and (
            start["expansionLoc"].get("offset") == end["expansionLoc"].get("offset"))
        return first, last, whole

    def add(self, start, end, kind, changed):
        if 0 <= start < end:
            self.found.setdefault((start, end, kind), (self.function, changed))

    def visit(self, node, parent, index, asleep=False):
        kind, children = node.get("kind"), node.get("inner", ())
        start, end, whole = self.span(node)
        around, quiet = self.function, asleep
        if kind in FUNCTIONS:
            body = any(c.get("kind") == "CompoundStmt" for c in children)
            self.function = node.get("name") if body and self.file == self.name else None
            quiet = bool(node.get("constexpr"))
        elif kind == "EnumDecl":
            values = [c.get("name") for c in children if c.get("kind") == "EnumConstantDecl"]
            for child, follower in zip((c for c in children if c.get("kind") == "EnumConstantDecl"),
                                       values[1:] + values[:1]):
                self.enums[child["id"]] = follower
        if kind in CONSTANT or kind == "VarDecl" and (node.get("storageClass") == "static"
                                                      or node.get("constexpr")):
            quiet = True
        if self.function and not quiet and start >= 0 and end > start:
            self.fault(node, parent, index, (start, end, whole))
        self.stack.append(node)
        for number, child in enumerate(children):
            self.visit(child, node, number, quiet)
        self.stack.pop()
        self.function = around

    def fault(self, node, parent, index, span):
        start, end, whole = span
        kind, text = node["kind"], self.text
        if parent and self.is_statement(parent, index):
            self.statement(node, span)
        if whole:
            word = text[start:end]
            if kind == "IntegerLiteral" and word in ("true", "false"):
                self.add(start, end, "value", "false" if word == "true" else "true")
        elif kind == "BinaryOperator" and node["opcode"] in OTHER:
            self.operator(node, start, end)
        elif kind == "IfStmt":
            self.branch(node, start)
        elif kind == "ReturnStmt" and node.get("inner"):
            self.result(node["inner"][0])
        elif kind == "ConditionalOperator":
            begin, stop = (node["inner"][0]["range"][k] for k in ("begin", "end"))
            if "offset" in begin and "offset" in stop:
                first, last = begin["offset"], stop["offset"] + stop["tokLen"]
                self.add(first, last, "swap", f"!({text[first:last]})")
        elif kind in ("IntegerLiteral", "FloatingLiteral", "CharacterLiteral"):
            calls = (n["range"]["begin"] for n in self.stack[-3:] if n["kind"] == "CallExpr")
            if parent.get("castKind") != "NullToPointer" and not any(
                    text.startswith("__builtin", c.get("offset", 0)) for c in calls):
                self.add(start, end, "number", f"{text[start:end]} + 1")
        elif kind == "CXXBoolLiteralExpr":
            self.add(start, end, "value", "false" if text[start:end] == "true" else "true")
        elif kind == "DeclRefExpr" and node["referencedDecl"]["id"] in self.enums:
            other = self.enums[node["referencedDecl"]["id"]]
            if other != text[start:end] == node["referencedDecl"]["name"]:
                self.add(start, end, "value", other)

    def operator(self, node, start, end):
        second = node["inner"][1]["range"]["begin"]
        behind = second.get("expansionLoc", second).get("offset")
        head = self.text[start:behind or start].rstrip()
        if behind and head.endswith(node["opcode"]):
            kind = "logic" if node["opcode"] in ("&&", "||") else "boundary"
            self.add(start, end, kind, head[:-len(node["opcode"])] + OTHER[node["opcode"]] + " " +
                     self.text[behind:end])

    def result(self, node):
        start, end, _ = self.span(node)
        kind = node.get("type", {}).get("qualType", "")
        nothing = self.text[start:end] in ("", "0", "NULL", "nullptr", "false", "true", "EPCTX_OK")
        if not nothing and (kind.endswith("*") or SCALAR.fullmatch(kind)):
            self.add(start, end, "return", "0")

    def branch(self, node, start):
        match = re.compile(r"if \(").match(self.text, start)
        if match and not node.get("hasVar") and not node.get("hasInit"):
            first, last = match.end(), closing(self.text, match.end() - 1) - 1
            # EPCTX__NEVER: a check that nothing fails, see coverage.py.
            if not self.text.startswith("EPCTX__NEVER(", first):
                kind = "swap" if node.get("hasElse") else "check"
                self.add(first, last, kind, f"!({self.text[first:last]})" if kind == "swap" else "")

    @staticmethod
    def is_statement(parent, index):
        count, first = len(parent.get("inner", ())), STATEMENTS.get(parent["kind"])
        if first is None:
            return False
        return index >= first if first >= 0 else index == count - 1

    def statement(self, node, span):
        start, end, whole = span
        kind = node["kind"]
        if not (kind in DROPPED or kind in ("BinaryOperator", "UnaryOperator") and
                node["opcode"] in ("=", "++", "--")) or kind == "DoStmt" and not whole:
            return
        stop = re.compile(r"\s*;").match(self.text, end)
        if stop:
            self.add(start, stop.end(), "drop", "")


def render(text, faults, base):
    """The source with its switches: innermost first, each inside those around it."""
    out, at, open_ends = [], 0, []

    def until(place):
        nonlocal at
        while open_ends and open_ends[-1][0] <= place:
            end, tail = open_ends.pop()
            out.append(text[at:end] + tail)
            at = end
        out.append(text[at:place])
        at = place

    for number, (start, end, kind, _, changed) in faults:
        until(start)
        if kind == "drop":
            head, tail = f"{{ if (!epm({base + number})) ", " }"
        elif kind == "check":
            head, tail = "(", f") && !epm({base + number})"
        else:
            head, tail = f"(epm({base + number}) ? ({changed}) : (", "))"
        out.append(head)
        open_ends.append((end, tail))
    until(len(text))
    return "".join(out)


def nested(places):
    """Faults in the order of their places, outer ones first; one that overlaps another is left."""
    ends, kept = [], []
    order = {"drop": 0, "check": 1, "return": 2, "swap": 3, "logic": 4, "boundary": 5}
    for (start, end, kind), (function, changed) in sorted(
            places.items(), key=lambda p: (p[0][0], -p[0][1], order.get(p[0][2], 6))):
        while ends and ends[-1] <= start:
            ends.pop()
        if ends and end > ends[-1]:
            continue
        ends.append(end)
        kept.append((start, end, kind, function, changed))
    return kept


def place(folder, source, compiler, arguments):
    """FOLDER/src/SOURCE with switches."""
    names = read(f"{folder}/sources").split()
    base = names.index(source) << BITS
    out = placed(folder, source)
    data = read(source)
    declarations = read("epctx.h").split(" * >>implementation", 1)[0]
    arguments = [a for a in arguments if not a.startswith(("-M", "-ffile-prefix"))]
    key = hashlib.sha256("\0".join([data, declarations, read(__file__), str(base),
                                    *arguments]).encode()).hexdigest()
    listed = f"{folder}/src/{source}.json"
    if os.path.exists(listed) and json.loads(read(listed))["key"] == key:
        return
    # A letter of more than a byte would move what is behind it: clang counts bytes.
    text = data.encode().decode("latin-1")
    found = Places(source, text, [*compiler, *arguments, "-w", "-fsyntax-only", "-Xclang",
                                  "-ast-dump=json", source]).found
    faults = list(enumerate(nested(found)))[:1 << BITS]
    out_text, left = without_errors(folder, source, (text, faults, base), compiler + arguments)
    write(out, out_text.encode("latin-1").decode())
    write(listed, json.dumps({"key": key, "base": base, "faults": [
        [base + n, start, end, kind, function, changed.encode("latin-1").decode(),
         text.count("\n", 0, start) + 1, text[start:end].encode("latin-1").decode()]
        for n, (start, end, kind, function, changed) in left]}))


def without_errors(folder, source, what, command):
    """The text that compiles, and the faults in it: a constant may be asked for in more places."""
    text, faults, base = what
    trial = f"{placed(folder, source)}.trial{os.path.splitext(source)[1]}"
    for _ in range(10):
        # The switch includes nothing, so it may come first.
        head = f'#include "{folder}/epm.h"\n#line 1 "{source}"\n'
        body = render(text, faults, base)
        write(trial, (head.replace("#line 1", "//") + body).encode("latin-1").decode())
        done = subprocess.run([*command, "-iquote", os.path.dirname(source) or ".", "-w",
                               "-ferror-limit=0", "-fsyntax-only", trial],
                              capture_output=True, text=True, check=False, env=ITSELF)
        os.unlink(trial)
        if done.returncode == 0:
            return head + body, faults
        lines, wrong = body.split("\n"), set()
        for line, column in re.findall(re.escape(trial) + r":(\d+):(\d+): error", done.stderr):
            before = "\n".join(lines[:int(line) - 3] + [lines[int(line) - 3][:int(column) + 8]])
            numbers = re.findall(r"\bepm\((\d+)\)", before)
            wrong.update(int(n) - base for n in numbers[-1:])
        if not wrong:
            break
        faults = [f for f in faults if f[0] not in wrong]
    sys.exit(f"{source}: cannot be compiled with its faults\n{done.stderr[:2000]}")


def main():
    folder, compiler, arguments = sys.argv[1], [sys.argv[2]], sys.argv[3:]
    sources = [a for a in arguments if a.endswith((".c", ".cc", ".h"))]
    if "-c" in arguments and sources:
        source = sources[0]
        if source in read(f"{folder}/sources").split():
            at, out = arguments.index(source), arguments.index("-o")
            flags = [a for i, a in enumerate(arguments)
                     if i not in (at, out, out + 1) and a != "-c"]
            if not os.environ.get("MUTANTS_AS_IT_IS"):
                place(folder, source, compiler, flags)
            arguments[at] = placed(folder, source)
            arguments[:0] = ["-iquote", os.path.dirname(source) or ".", "-w"]
        arguments[:0] = ["-iquote", f"{folder}/src"]
    os.execvp(compiler[0], compiler + arguments)


if __name__ == "__main__":
    main()
