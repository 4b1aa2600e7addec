#!/usr/bin/python3
"""Takes the checks out of the headers one at a time, and expects a test or a fuzz seed to notice.

    tests/guards.py [--jobs N] [--only TEXT] [--again FILE] [--plain] [HEADER [SECTION...]]

A check is an `if` whose block reports an error or returns a failure, or that leaves because of a
size or of NULL. Taken out, its condition is still evaluated, but its block is never entered.
SECTION is a banner of the implementation ("wire", "arch"); --only takes the checks with
TEXT in their function or condition, --again those that survived in the output of an earlier run,
--plain does without sanitizers.

Each check has a switch, so everything is compiled once. A first run of every test case and fuzz
seed writes down which checks strike in it; a check is then only tried with the cases where it
strikes, the quickest first, until one of them fails. When none does they run once more under ASan
and UBSan. What nobody misses is a "survivor": a test is missing, or the check is not needed.
"Explained" is one whose reason to stay stands in tests/guards_known.txt, or, when it never strikes,
behind "not taken:" beside it (see coverage.py). "Handed on" is one that only hands on what a call
below has found ("!call()", "pointer == NULL"), strikes in a test, sanitized too, and nothing goes
wrong without it: the call has kept its error, and what follows finds it again. The exit code is 1
when there are survivors, or explanations of what is not there.
"""
import argparse
import contextlib
import glob
import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Lock

HEADERS = {"epctx.h": "EPCTX", "epctx_npu.h": "EPCTX_NPU"}
# What `make guards` takes; the kernels and operators of the reference NPU are not guards.
SECTIONS = {
    "epctx.h": ("basics", "path", "io", "wire", "onnx", "reads", "record", "epnode", "profile",
                "option", "state", "scan", "edit", "commit", "stamp", "payload", "partition",
                "weights", "ep", "preflight", "share", "gen", "load"),
    "epctx_npu.h": ("blob: words, sizes, header", "arch", "exec: loading and running"),
}
ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
WORK = os.path.join(ROOT, "build/guards")
SANITIZED = os.path.join(WORK, "asan")
# Plain time of the cases that an explained check is tried with, and any check once more sanitized,
# which takes ten times as long.
SECONDS = 1
CC = os.environ.get("GUARDS_CC", "clang").split()
# Every piece of an arena is an allocation of its own: each fails in its turn.
FLAGS = ["-std=c11", "-O1", "-DEPCTX_ARENA_BLOCK=0", "-Werror=implicit-function-declaration",
         *os.environ.get("NANOPB_CFLAGS", "").split()]
SANITIZE = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
LIBS = os.environ.get("NANOPB_LIBS", "-lprotobuf-nanopb").split() + ["-lm", "-pthread"]
MARK = re.compile(r"/\* not taken: (.*?) \*/")
# Programs that do not run a header's checks, or only the same ones again.
LEFT_OUT = {"bench_models", "test_npu_kernels_avx2", "test_npu_kernels_portable", "test_threads"}
SWITCH = """#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
/* EPCTX_GUARD: the check that is out. EPCTX_GUARD_LOG: the file to write down which ones strike. */
static __attribute__((unused)) int NAME(int number)
{
    static unsigned char seen[LAST];
    static int off = -2;
    if (off == -2) off = getenv("EPCTX_GUARD") != NULL ? atoi(getenv("EPCTX_GUARD")) : -1;
    if (off == -1 && !seen[number] && getenv("EPCTX_GUARD_LOG") != NULL) {
        char text[16];
        int size = snprintf(text, sizeof text, "%d\\n", number);
        int file = open(getenv("EPCTX_GUARD_LOG"), O_WRONLY | O_APPEND);
        seen[number] = file >= 0 && write(file, text, (size_t)size) == size;
        close(file); /* a test may have used up all files: written at the next strike */
    }
    return off != number;
}
"""


def read(path):
    with open(path, encoding="utf-8") as source:
        return source.read()


def closing(text, at, pair):
    """Behind the bracket that closes the one in front of `at`."""
    depth = 1
    while depth:
        depth += {pair[0]: 1, pair[1]: -1}.get(text[at], 0)
        at += 1
    return at


def statement(text, at):
    """What a condition guards, whose closing bracket is in front of `at`."""
    if text[at:at + 2] == " {":
        return text[at + 2:closing(text, at + 2, "{}") - 1]
    return text[at:text.index(";", at) + 1]


def guards(text, section):
    """(start, end) of the condition of every check in a section of the implementation."""
    begin = text.index(" * >>implementation")
    match = re.search(r"^ \* >>" + re.escape(section) + r"$", text[begin:], re.M)
    if not match:
        sys.exit(f"no section {section}")
    begin += match.end()
    after = re.search(r"^ \* >>", text[begin:], re.M)
    end = begin + after.start() if after else len(text)
    for match in re.finditer(r"\bif \(", text[begin:end]):
        start = begin + match.end()
        at = closing(text, start, "()")
        if elsewhere(text, start) or text.startswith("EPCTX__NEVER(", start):
            continue
        block = statement(text, at)
        kind = kind_of(" ".join(text[start:at - 1].split()), " ".join(block.split()))
        if "{" not in block and kind:
            yield start, at - 1, kind


def split(text, marks):
    """Parts between marks outside of brackets."""
    parts, depth = [""], 0
    for word in re.findall(r"\|\||&&|.", text):
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(word, 0)
        if depth == 0 and word in marks:
            parts.append("")
        else:
            parts[-1] += word
    return [p.strip() for p in parts]


def findings(condition):
    """What makes a condition true in the end: of each alternative the last part."""
    condition = condition.strip()
    if condition[0] == "(" and closing(condition, 1, "()") == len(condition):
        return findings(condition[1:-1])
    cases = split(condition, ("?", ":"))
    if len(cases) == 3:
        return findings(cases[1]) + findings(cases[2])
    ways = split(condition, ("||",))
    if len(ways) > 1:
        return [f for way in ways for f in findings(way)]
    last = split(condition, ("&&",))[-1]
    return [last] if last == condition else findings(last)


PREDICATE = r"\w*_(is|has|eq|starts|ends)\w*\("
FAILED = (rf"!(?!{PREDICATE})\w+\(.*\)|!\*?(good|ok)|!\(.*\)|[\w.>-]*_memory"
          r"|.*\) != EPCTX_OK|status != EPCTX_OK|\w+\(.*\) == NULL|[\w>.-]+ == NULL")
REPORT = r"(fail\w*|EPCTX__BLOB|\w*refuse\w*|\w*_error|\w*_deep|\w*_cut)\("
FAILURE = (r"\breturn (false|NULL|-1|0|status|[^;]*EPCTX_ERR_\w+|[^;]*nomem\([^;]*);$"
           r"|short_of_memory")


def kind_of(condition, block):
    """"own": it finds something itself. "handed": what a call has found. None: it is no check."""
    if re.search(REPORT, block):
        return "own"
    leaves = re.search(r"\b(return|break|continue)\b[^;]*;$", block)
    if all(re.fullmatch(FAILED, f) for f in findings(condition)):
        return "handed" if re.search(FAILURE, block) else "own" if leaves and (
            "== NULL" in condition) else None
    return "own" if re.search(FAILURE, block) or leaves and re.search(
        r"(?<![->])[<>]=? ", condition) else None


def elsewhere(text, at):
    """Whether a line is for another system only: nothing of it is compiled here."""
    depth = []
    for line in re.findall(r"^#(?:if|el|endif).*$", text[:at], re.M):
        line = re.sub(r"\s+", "", line)
        other = re.search(r"defined\(_WIN32\)|#ifdef_WIN32|#ifdefEPCTX_NO_|EPCTX_WIN32_LOCK", line)
        if line.startswith("#if"):
            depth.append(bool(other) and "!defined" not in line)
        elif line.startswith("#elif"):
            depth[-1] = bool(other)
        elif line.startswith("#else"):
            depth[-1] = False
        else:
            depth.pop()
    return any(depth)


def function_at(text, at):
    """Name of the function around a place."""
    return re.findall(r"^\w[^;{}()]*?\b(\w+)\(", text[:at], re.M)[-1]


class Check:
    """One check of a header, with its number in all of them."""

    def __init__(self, number, header, section, text, found):
        self.number, self.header, self.section = number, header, section
        start, end, self.kind = found
        self.start, self.end = start, end
        self.line = text.count("\n", 0, start) + 1
        self.condition = " ".join(text[start:end].split())
        self.function = function_at(text, start)
        self.key = header, self.function, self.condition
        before = text.rindex("\n", 0, text.rindex("\n", 0, start))
        after = text.index("\n", self.end + 1 + len(statement(text, self.end + 1)))
        beside = MARK.search(text, before, after)
        self.mark = beside.group(1) if beside else None
        self.cases = []

    def __str__(self):
        return f"{self.header}:{self.line}: {self.function}: {self.condition}"


def all_checks():
    found = []
    for header, sections in SECTIONS.items():
        text = read(header)
        for section in sections:
            for place in guards(text, section):
                found.append(Check(len(found), header, section, text, place))
    return found


def survived(check, output):
    """Whether an earlier run says so; its line may have been another one then."""
    return re.search(rf"^survivor \S+ {re.escape(check.function)}: {re.escape(check.condition)} \(",
                     output, re.M) is not None


def known():
    """{(header, function, condition): reason}"""
    reasons = {}
    for line in read("tests/guards_known.txt").splitlines():
        if line and not line.startswith("#"):
            *key, reason = line.split("\t")
            reasons[tuple(key)] = reason
    return reasons


def write_switchable(header, macro, checks):
    """The header with a switch at each of the checks; an unchanged one keeps its date."""
    text, out, at = read(header), [], 0
    name = f"{macro.lower()}__guard"
    for check in checks:
        if check.header == header:
            out += [text[at:check.start], "(", text[check.start:check.end],
                    f") && {name}({check.number})"]
            at = check.end
    out.append(text[at:])
    mark = f"#define {macro}_IMPLEMENTED\n"
    switch = SWITCH.replace("NAME", name).replace("LAST", str(len(checks)))
    result = "".join(out).replace(mark, mark + switch, 1)
    path = f"{WORK}/{header}"
    if not os.path.exists(path) or read(path) != result:
        with open(path, "w", encoding="utf-8") as file:
            file.write(result)


def included(path, seen):
    """A source and what it includes of tests/ and fuzz/."""
    if os.path.exists(path) and path not in seen:
        seen.add(path)
        if path.endswith((".c", ".h")) and not path.startswith(WORK):
            for name in re.findall(r'^#include "([^"]+)"', read(path), re.M):
                for folder in ("tests", "fuzz", "."):
                    included(os.path.normpath(os.path.join(folder, name)), seen)
    return seen


def compile_to(out, sources, arguments, libraries=()):
    """Compiles what is newer than `out`; the headers with switches come first in the search."""
    around = {f"{WORK}/{h}" for h in HEADERS}
    for source in sources:
        included(source, around)
    around -= set(HEADERS)
    if os.path.exists(out) and os.path.getmtime(out) > max(map(os.path.getmtime, around)):
        return
    done = subprocess.run(CC + [f"-iquote{WORK}", f"-I{WORK}", "-I.", *FLAGS, *arguments, *sources,
                                *libraries, "-o", out], stderr=subprocess.PIPE, check=False,
                          text=True)
    if done.returncode != 0:
        sys.exit(f"{out}: cannot be compiled\n{done.stderr}")


def compile_header(header, folder, sanitize):
    compile_to(f"{folder}/{header}.o", [f"{WORK}/{header}"],
               ["-c", "-x", "c", f"-D{HEADERS[header]}_IMPLEMENTATION", *sanitize])


class Program:
    """A test or a fuzzer that replays, plain and sanitized."""

    def __init__(self, source):
        self.source = source
        self.name = os.path.basename(source)[:-2]
        self.fuzzer = self.name.startswith("fuzz_")
        self.cases = seeds(self.name[5:]) if self.fuzzer else re.findall(r"\bRUN\((\w+)\)",
                                                                         read(source))

    def build(self, folder, sanitize):
        # From the archive only comes what a program does not bring itself.
        parts = ["fuzz/replay.c"] if self.fuzzer else []
        parts.append(f"{folder}/headers.a")
        compile_to(f"{folder}/{self.name}", [self.source, *parts], sanitize, LIBS)


class Case:
    """A case of a test, or a seed of a fuzzer."""

    def __init__(self, program, name):
        self.program, self.argument = program, name
        self.name = f"{program.name}:{os.path.basename(name)}"
        self.seconds = {}  # {folder: time without a change}
        self.lock = Lock()

    def run(self, folder, **environment):
        """Exit code. Without its checks a program may want all memory, never end, or leave files
        and children behind."""
        options = "detect_leaks=0:hard_rss_limit_mb=1500:max_allocation_size_mb=1500"
        limit = [] if folder == SANITIZED else ["prlimit", "--data=2000000000", "--core=0"]
        with tempfile.TemporaryDirectory() as scratch, subprocess.Popen(
                limit + [f"{folder}/{self.program.name}", self.argument], cwd=scratch,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
                start_new_session=True,
                env=dict(os.environ, ASAN_OPTIONS=options, **environment)) as running:
            try:
                return running.wait(10 + 20 * self.seconds[folder] if folder in self.seconds
                                    else 600)
            except subprocess.TimeoutExpired:
                return "no end"
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(running.pid, 9)

    def passes(self, folder, **environment):
        """Whether it passes without a change; the first time tells how long it takes."""
        with self.lock:
            if folder not in self.seconds:
                begin = time.monotonic()
                code = self.run(folder, **environment)
                self.seconds[folder] = time.monotonic() - begin if code == 0 else None
                if code != 0:
                    print(f"note {self.name} fails without a change and is not asked", flush=True)
            return self.seconds[folder] is not None

    def notices(self, folder, number):
        """How it fails without a check, or nothing."""
        if not self.passes(folder):
            return None
        code = self.run(folder, EPCTX_GUARD=str(number))
        how = [] if folder == WORK else ["sanitized"]
        how += [code] if isinstance(code, str) else []
        return self.name + (f" ({', '.join(how)})" if how else "") if code != 0 else None

    def strikes(self):
        """Numbers of the checks that strike in it."""
        log = f"{WORK}/log/{self.name}"
        with open(log, "w", encoding="utf-8"):
            pass
        return [int(n) for n in read(log).split()] if self.passes(
            WORK, EPCTX_GUARD_LOG=log) else []


def seeds(name):
    folders = [f"fuzz/regressions/{name}", f"fuzz/corpus/{name}"]
    folders += ["fuzz/corpus/open"] if name not in ("blob", "path", "option", "open") else []
    return [os.path.join(ROOT, f, n) for f in folders if os.path.isdir(f)
            for n in sorted(os.listdir(f))]


def record(programs, pool, checks):
    """Runs everything once, and notes with each check the cases where it strikes."""
    cases = [Case(p, c) for p in programs for c in p.cases]
    for case, numbers in zip(cases, pool.map(Case.strikes, cases)):
        for number in set(numbers):
            checks[number].cases.append(case)
    for check in checks:
        check.cases.sort(key=lambda c: c.seconds[WORK])


def quickest(cases):
    """A check may strike nearly everywhere."""
    left = SECONDS
    for case in cases:
        yield case
        left -= case.seconds[WORK]
        if left < 0:
            return


def noticed_by(check, folders, explained):
    """The first case that fails without a check."""
    asked = ((c, f) for f in folders for c in (
        quickest(check.cases) if explained or f == SANITIZED else check.cases))
    return next(filter(None, (c.notices(f, check.number) for c, f in asked)), None)


def judge(check, reasons, folders):
    reason = reasons.get(check.key) or (None if check.cases else check.mark)
    who = noticed_by(check, folders[:1] if reason else folders, reason)
    verdict = "noticed" if who else "explained" if reason else "handed on" if (
        check.kind == "handed" and check.cases) else "survivor"
    remark = who or reason or f"strikes in {len(check.cases)} cases" + (
        ", " + check.cases[0].name if check.cases else "")
    print(f"{verdict} {check} ({remark})", flush=True)
    return verdict


def summary(section, verdicts):
    print(f"{section}: {len(verdicts)} checks taken out, {verdicts.count('noticed')} noticed, "
          f"{verdicts.count('handed on')} handed on, {verdicts.count('explained')} explained, "
          f"{verdicts.count('survivor')} survivors", flush=True)


def build_all(programs, pool, folder, sanitize):
    os.makedirs(folder, exist_ok=True)
    list(pool.map(lambda h: compile_header(h, folder, sanitize), HEADERS))
    subprocess.run(["make", "-s", "build/facts_table.h"], check=True)
    operations = sorted(glob.glob("examples/epctx/ops/*.c") +
                        glob.glob("examples/epctx/binary/*.c") +
                        glob.glob("examples/epctx/facts/facts*.c"))
    objects = [f"{folder}/ops_{os.path.basename(source)[:-2]}.o" for source in operations]
    list(pool.map(lambda pair: compile_to(pair[0], [pair[1]], ["-c", *sanitize]),
                  zip(objects, operations)))
    subprocess.run(["ar", "rcs", f"{folder}/headers.a", *(f"{folder}/{h}.o" for h in HEADERS),
                    *objects], check=True)
    list(pool.map(lambda p: p.build(folder, sanitize), programs))


def main():
    parser = argparse.ArgumentParser(description="Takes checks out, one at a time.")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", default="")
    parser.add_argument("--again", type=read)
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("header", nargs="?", choices=sorted(HEADERS))
    parser.add_argument("sections", nargs="*")
    arguments = parser.parse_args()
    os.chdir(ROOT)
    os.makedirs(f"{WORK}/log", exist_ok=True)
    os.environ.pop("EPCTX_TEST_MODELS", None)
    checks = all_checks()
    for header, macro in HEADERS.items():
        write_switchable(header, macro, checks)
    sources = [f"{d}/{n}" for d, p in (("tests", "test_"), ("fuzz", "fuzz_"))
               for n in sorted(os.listdir(d)) if n.startswith(p) and n.endswith(".c")
               and n[:-2] not in LEFT_OUT and not n.startswith("test_plugin")]
    programs = [Program(s) for s in sources]
    wanted = [c for c in checks if arguments.header in (None, c.header)
              and (not arguments.sections or c.section in arguments.sections)
              and (arguments.only in c.function or arguments.only in c.condition)
              and (not arguments.again or survived(c, arguments.again))]
    reasons, verdicts = known(), {}
    folders = [WORK] if arguments.plain else [WORK, SANITIZED]
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for folder in folders:
            build_all(programs, pool, folder, SANITIZE if folder == SANITIZED else [])
        record(programs, pool, checks)
        for check, verdict in zip(wanted, pool.map(lambda c: judge(c, reasons, folders), wanted)):
            verdicts.setdefault(f"{check.header} {check.section}", []).append(verdict)
    for section, found in verdicts.items():
        summary(section, found)
    total = [v for found in verdicts.values() for v in found]
    summary("all", total)
    gone = [k for k in reasons if k not in {c.key for c in checks}]
    for key in gone:
        print("tests/guards_known.txt: no such check: " + " ".join(key))
    sys.exit(1 if "survivor" in total or gone else 0)


main()
