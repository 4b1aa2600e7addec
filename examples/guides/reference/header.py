"""Reads the public declarations of a header together with their comments.

The headers are written for readers of the header: plain comments, before a declaration or behind
it. What belongs to what follows from the layout:

    a comment before a declaration     that one and, for functions and macros, those directly below
                                       it, up to the next comment or empty line
    a comment behind a declaration     what is declared on that line
    a comment before or behind a member, or an enumerator: that one
    a banner with >>name               a section, with the text below its first line
    -- words -- and the text below it  a heading inside a section
"""
import re

TOKEN = re.compile(r"""
    (?P<comment>/\*.*?\*/) | (?P<line>//[^\n]*) | (?P<string>"(?:\\.|[^"\\])*") |
    (?P<char>'(?:\\.|[^'\\])*') | (?P<directive>^[ \t]*\#(?:/\*.*?\*/|\\\n|[^\n/]|/(?!\*))*) |
    (?P<blank>\n[ \t]*(?=\n)) | (?P<space>\s+) | (?P<word>\w+) | (?P<mark>.)
    """, re.X | re.S | re.M)
# `const char *a, b[2];`: the type, and the members
MEMBERS = re.compile(r"^(.*?)((?:\*\s*|\*const\s*)*\w+(?:\[.*?\])*(?:, .*)?);$")


class Wrong(Exception):
    """Something in a header that the reference cannot be made from."""


class Comment:
    """The text of a comment: `lines` without the decoration, indented as they stand there."""

    def __init__(self, source, line):
        self.line = line
        body = source[2:-2].strip("\n")
        first, *rest = body.split("\n")
        # Lines of a comment go on below its first word or behind " * ".
        stripped = [re.sub(r"^\s*\* ?", "", text) if re.match(r"^\s*\*", text) else text.strip()
                    for text in rest]
        self.lines = [first.strip()] + [text.rstrip() for text in stripped]
        while self.lines and not self.lines[-1].strip():
            self.lines.pop()

    def text(self):
        return "\n".join(self.lines)


class Declaration:
    """A function, macro, type, member or enumerator; `kind` says which."""

    def __init__(self, kind, name, code, line):
        self.kind, self.name, self.code, self.line = kind, name, code, line
        self.comments = []   # of its own, in order
        self.shared = None   # the declaration whose comment goes on here
        self.members = []    # of a struct or an enum
        self.private = False # a member that only the implementation uses
        self.heading = None  # the comment above a run of members
        self.without = []    # options that leave it out
        self.text = ""       # a description that is no comment: of an X-macro's entry


class Section:
    def __init__(self, name, title, comment, line):
        self.name, self.title, self.comment, self.line = name, title, comment, line
        self.parts = []      # declarations, and comments with headings


def tokens(source):
    line = 1
    for match in TOKEN.finditer(source):
        yield match.lastgroup, match.group(), line
        line += match.group().count("\n")


def is_banner(text):
    return text.startswith("/* ====")


def is_heading(text):
    return text.startswith("/* -- ")


class Reader:
    """Declarations of `source`, a header; `path` is for messages."""

    def __init__(self, path, source, prefix):
        self.path, self.prefix = path, prefix
        self.sections, self.manual, self.intro = [], None, None
        self.lists = {}      # X-macros: name -> entries
        self.pending = None  # the comment before the next declaration
        self.run = None      # the declaration whose comment is continued by those below
        self.last = []       # what the line just read declares
        self.last_line = 0
        self.words = []      # of the declaration being read: (text, line)
        self.depth = 0
        self.pattern = None  # how an enum makes enumerators from an X-macro
        self.conditions = [] # options that leave out what follows
        self.read(source)

    # ------------------------------------------------------------ top level

    def read(self, source):
        for kind, text, line in tokens(source):
            if self.words:
                if self.inside(kind, text, line):
                    self.statement(line)
            elif kind == "comment":
                if is_banner(text) and re.search(r"^ \* >>implementation$", text, re.M):
                    return
                self.comment(text, line)
            elif kind == "directive":
                self.directive(text, line)
            elif kind == "blank":
                self.pending = self.run = None
            elif kind in ("word", "mark") and text not in "{};":
                self.words = [(kind, text, line)]

    def comment(self, text, line):
        if is_banner(text):
            self.banner(text, line)
        elif line == self.last_line:
            for declaration in self.last:
                declaration.comments.append(Comment(text, line))
        elif self.intro is None:
            self.intro = Comment(text, line)
        elif is_heading(text):
            self.section().parts.append(Comment(text, line))
            self.pending = self.run = None
        else:
            self.pending = Comment(text, line)
            self.run = None

    def banner(self, text, line):
        comment = Comment(text, line)
        lines = [t for t in comment.lines if not re.match(r"^=+$", t.strip())]
        match = re.match(r"^>>(\w+)(?:: (.*))?$", lines[0].strip())
        if match is None:
            raise Wrong(f"{self.path}:{line}: a banner without >>name")
        comment.lines = lines[1:]
        while comment.lines and not comment.lines[0].strip():
            comment.lines.pop(0)
        if match.group(1) == "manual":
            self.manual = comment
        else:
            self.sections.append(Section(match.group(1), match.group(2) or "", comment, line))
        self.pending = self.run = None

    def section(self):
        if not self.sections:
            self.sections.append(Section("", "", None, 1))
        return self.sections[-1]

    def add(self, declaration):
        declaration.without = [c for c in self.conditions if c]
        if "__" in declaration.name or not declaration.name.lower().startswith("epctx_"):
            self.last, self.pending, self.run = [], None, None
            return
        if self.pending is not None:
            declaration.comments.append(self.pending)
            self.run = declaration
        elif self.run is not None:
            declaration.shared = self.run
        self.pending = None
        self.section().parts.append(declaration)
        self.last, self.last_line = [declaration], declaration.end

    # ----------------------------------------------------------- directives

    def directive(self, text, line):
        match = re.match(r"\s*#\s*define\s+(\w+)(\([^)]*\))?[ \t]*(.*)", text, re.S)
        end = line + text.count("\n")
        if match is None:
            self.condition(text)
            return
        name, parameters, body = match.groups()
        if not re.match(self.prefix + r"_[A-Z0-9]", name) or name.endswith("_H"):
            return
        inner = re.findall(r"/\*.*?\*/", body, re.S)
        code = re.sub(r"/\*.*?\*/", "", body, flags=re.S).strip()
        if not code:
            return  # an option that follows from another
        if parameters and re.match(r"\((X|ONE, MANY)\)", parameters):
            self.lists[name] = entries(body)
        known = [p for s in self.sections for p in s.parts
                 if isinstance(p, Declaration) and p.name == name]
        if known:
            return
        declaration = Declaration("macro", name, (parameters or "", code), line)
        declaration.end = end
        self.add(declaration)
        declaration.comments += [Comment(c, line) for c in inner]

    def condition(self, text):
        word = re.match(r"\s*#\s*(\w+)", text).group(1)
        if word in ("if", "ifdef", "ifndef"):
            match = re.match(r"\s*#\s*ifndef\s+(\w+_NO_\w+)", text)
            self.conditions.append(match.group(1) if match else None)
        elif word in ("else", "elif"):
            self.conditions[-1] = None
        elif word == "endif":
            self.conditions.pop()

    # ----------------------------------------------------------- statements

    def inside(self, kind, text, line):
        """One more token of a declaration; true when it is complete."""
        self.words.append((kind, text, line))
        if text in ("(", "{"):
            self.depth += 1
        elif text in (")", "}"):
            self.depth -= 1
            # `extern "C" {` is open for long, an inline function's body ends it.
            if text == "}" and self.depth == 0 and self.is_function_body():
                return True
        if kind == "mark" and text == "{" and self.depth == 1 and self.starts("extern") and \
                len([w for w in self.words if w[0] in ("word", "string")]) == 2:
            self.words, self.depth = [], 0
            return False
        return text == ";" and self.depth == 0

    def starts(self, word):
        return self.words[0][1] == word

    def is_function_body(self):
        plain = [w[1] for w in self.words if w[0] in ("word", "mark")]
        return plain.index("{") > 0 and plain[plain.index("{") - 1] == ")"

    def statement(self, line):
        words, self.words, self.depth = self.words, [], 0
        plain = [w[1] for w in words if w[0] not in ("comment", "space", "blank", "directive")]
        start = words[0][2]
        code = join(words)
        if plain[0] == "static":
            match = re.match(r"static inline ([^{=]*\)) ?\{", code)
            if match is None:
                self.pending, self.run, self.last = None, None, []
                return
            code, plain = match.group(1) + ";", ["inline"]
        if "{" in plain and plain[0] in ("typedef", "struct", "enum"):
            declaration = self.compound(words, start)
        elif plain[0] == "typedef":
            match = re.search(r"\(\*(\w+)\)\(", code) or re.search(r"(\w+)\s*;$", code)
            declaration = Declaration("typedef", match.group(1), code, start)
        elif plain[0] == "struct" and len(plain) == 3:
            return  # a forward declaration
        else:
            match = re.match(r"[\w\s*]*?\b(\w+)\s*\(", code)
            if match is None:
                raise Wrong(f"{self.path}:{start}: not understood: {code}")
            if not match.group(1).startswith("epctx_"):
                self.pending = self.run = None
                self.last = []
                return
            declaration = Declaration("function", match.group(1),
                                      re.sub(r"^EPCTX_API ", "", code), start)
        declaration.end = line
        self.add(declaration)

    def compound(self, words, start):
        kind = "enum" if any(w[1] == "enum" for w in words[:4]) else "struct"
        open_at = next(i for i, w in enumerate(words) if w[1] == "{")
        close_at = max(i for i, w in enumerate(words) if w[1] == "}")
        names = [w[1] for w in words[:open_at] if w[0] == "word"]
        declaration = Declaration(kind, names[-1], names[0] == "typedef", start)
        behind = [w for w in words[open_at + 1:close_at]]
        opening = words[open_at][2]
        while behind and behind[0][0] == "space":
            behind.pop(0)
        if behind and behind[0][0] == "comment" and behind[0][2] == opening:
            declaration.comments.append(Comment(behind.pop(0)[1], opening))
        if kind == "enum":
            self.enumerators(declaration, behind)
        else:
            self.struct_members(declaration, behind)
        return declaration

    def struct_members(self, declaration, words):
        pending, last, last_line, code, level = None, [], 0, [], 0
        private, heading = False, None
        for kind, text, line in words:
            if kind == "comment":
                comment = Comment(text, line)
                if code:
                    code.append(("comment", comment, line))
                elif line == last_line:
                    for member in last:
                        member.comments.append(comment)
                elif comment.text().lower().startswith("private"):
                    private = True
                elif comment.text().endswith(":"):
                    heading = comment
                else:
                    pending = comment
            elif kind == "blank":
                pending = None if not code else pending
            elif kind == "directive" or (kind == "space" and not code):
                continue
            else:
                level += (text in "({[") - (text in ")}]") if kind == "mark" else 0
                code.append((kind, text, line))
                if text == ";" and level == 0:
                    last = members_of(declaration, code, private)
                    for member in last:
                        member.comments += [c for k, c, _ in code if k == "comment"]
                        if pending is not None:
                            member.comments.insert(0, pending)
                        member.heading = heading
                        if any(c.text().lower().startswith("private") for c in member.comments):
                            member.private = True
                    pending, code, last_line = None, [], line
        hide_private(declaration, self.pending)

    def enumerators(self, declaration, words):
        pending, last, last_line, code = None, None, 0, []

        def flush(line):
            nonlocal pending, last, last_line, code
            name = next((t for k, t in code if k == "word"), None)
            if name is not None and "__" not in name:
                last = Declaration("enumerator", name, "".join(t for _, t in code), line)
                if pending is not None:
                    last.comments.append(pending)
                declaration.members.append(last)
                last_line = line
            elif name is not None:
                self.from_list(declaration, "".join(t for _, t in code), line)
            pending, code = None, []

        at = 0
        for kind, text, line in words:
            if kind == "comment":
                if code and line == at:
                    flush(at)  # the last one, without a comma
                if last is not None and line == last_line:
                    last.comments.append(Comment(text, line))
                else:
                    pending = Comment(text, line)
            elif kind == "directive":
                match = re.match(r"\s*#\s*define\s+(\w+)\(([^)]*)\)\s+(\S+)( = (\w+))?,", text)
                self.pattern = match or self.pattern
            elif text == "," and not any(t == "(" for _, t in code):
                flush(line)
            elif kind in ("word", "mark", "string", "space"):
                if code or kind != "space":
                    code.append((kind, text if kind != "space" else " "))
                    if kind != "space":
                        at = line
                if text == ")" and any(t.startswith("EPCTX") and t.endswith("_LIST")
                                       for _, t in code[:1]):
                    self.from_list(declaration, "".join(t for _, t in code), line)
                    code = []
        if code:
            flush(at)

    def from_list(self, declaration, code, line):
        name = re.match(r"\w+", code).group()
        if name not in self.lists or self.pattern is None:
            raise Wrong(f"{self.path}:{line}: not understood: {code}")
        parameters = [p.strip() for p in self.pattern.group(2).split(",")]
        for values in self.lists[name]:
            given = dict(zip(parameters, values))
            made = re.sub(r"##", "", re.sub(r"\w+(?=##)|(?<=##)\w+",
                                            lambda m: given.get(m.group(), m.group()),
                                            self.pattern.group(3)))
            member = Declaration("enumerator", made, made, line)
            if self.pattern.group(5):
                member.code = f"{made} = {given[self.pattern.group(5)]}"
            member.text = described(values, given)
            declaration.members.append(member)


def described(values, given):
    """What an X-macro's entry says about its symbol."""
    texts = [unquoted(v) for v in values if v.startswith('"')]
    if {"message", "symbol", "number"} <= set(given):
        return f"{given['symbol'].lower()} of {given['message']}: {given['kind']}"
    if not texts:
        return ", ".join(values[1:])
    return texts[-1] if len(texts) < 2 else f"{texts[0]}: " + "; ".join(t for t in texts[1:] if t)


def unquoted(text):
    return "".join(re.findall(r'"((?:\\.|[^"\\])*)"', text))


def entries(body):
    """The calls X(...) in the body of a list macro."""
    found, values, value, depth = [], [], "", 0
    for kind, text, _ in tokens(body.replace("\\\n", "\n")):
        if kind in ("comment", "blank"):
            continue
        if kind == "space":
            text = " "
        if depth and not (depth == 1 and text in (",", ")")):
            value += text
        depth += (text == "(") - (text == ")")
        if value and depth <= 1 and text in (",", ")"):
            values.append(value.strip())
            value = ""
        if depth == 0 and text == ")":
            found.append(values)
            values = []
    return found


def join(words):
    text = "".join(w[1] if w[0] not in ("comment", "directive") else " " for w in words)
    return re.sub(r"\s+", " ", text).strip()


def hide_private(declaration, comment):
    """Obeys what the comment of a struct says about private members."""
    for member in declaration.members:
        if "epctx__" in member.code:
            member.private = True
    for sentence in re.split(r"(?<=\.)\s+", " ".join(comment.lines) if comment else ""):
        if not re.search(r"\b[Pp]rivate\b", sentence):
            continue
        named = re.findall(r"`(\w+)`", sentence)
        names = [member.name for member in declaration.members]
        if re.search(r"\bfrom\b", sentence):
            hidden = names[names.index(named[0]):]
        elif re.search(r"other than|\bbut\b", sentence):
            hidden = [name for name in names if name not in named]
        else:
            hidden = names
        for member in declaration.members:
            member.private = member.private or member.name in hidden


def members_of(declaration, code, private):
    text = re.sub(r"\s+", " ", "".join(t if k != "comment" else " " for k, t, _ in code)).strip()
    line = code[0][2]
    pointer = re.search(r"\(\*(\w+)\)\(", text)
    if pointer:
        found = [(pointer.group(1), text)]
    else:
        base, first = MEMBERS.match(text).groups()
        found = []
        for part in re.split(r",\s*(?![^\[]*\])", first):
            name = re.search(r"\w+", part.replace("*const", "").replace("*", "")).group()
            found.append((name, f"{base}{part};"))
    made = []
    for name, each in found:
        member = Declaration("member", name, each, line)
        member.private = private
        made.append(member)
    declaration.members += made
    return made
