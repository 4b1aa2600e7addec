#!/usr/bin/python3
"""Puts faults into the sources, one at a time, and expects a test to notice.

    tests/mutants.py [--sample N | --all] [--seed S] [--files GLOB...] [--tests GLOB...]
                     [--kinds KIND...] [--seconds N] [--again FILE] [--sanitized]
    tests/mutants.py --rules [RULE...] [--tests GLOB...]
    tests/mutants.py --check

Faults are placed by the syntax tree (mutants_place.py, which lists their kinds), each behind a
switch that the environment turns on, so everything is compiled once, in a copy of the tree. A first
run of every test case writes down which faults it reaches; a fault is only tried with these cases,
the quickest first, until one fails, crashes or does not end. A case is one of a test program, a
seed of a fuzzer, or a whole script. What none notices is a "survivor": a test is missing, or the
code is not needed. "Explained" is one whose reason to stay stands in mutants_known.txt, or, where
no case goes, behind "not taken:" beside it (see coverage.py). "Handed on" is a check that only
hands on what a call has found ("!call()", "pointer == NULL"): it strikes, and nothing goes wrong
without it, since the call has kept its error, and what follows finds it again.

--sample takes N of all faults (100), by a seed, --all every one; --files and --tests less of the
sources and tests (epctx.h, or a section or function of it, epctx.h:wire:*), --again what survived
in the output of an earlier run. --seconds tries a fault no longer than cases of so many seconds
(they are the quickest), --sanitized what survives once more under ASan and UBSan.

--rules tries those that prove the rules of ONNX Runtime's documents: a line of mutations.txt has a
rule, a file, a function of it and a test (a program test_x, or a script test_x.sh). One of the
function's faults at least has to turn red a case that the rule's row in rules.txt names, or of a
script a line FAIL with its words. PLUGIN stands for rules without a number, and for all cases.
In place of a function there may be a row of a table, NAME[WORD]: of the macro or variable NAME the
row with this word. Its strings, numbers and names are changed one at a time, which takes a build.
--check only looks whether all of these exist, and what mutants_known.txt explains.
"""
import argparse
import contextlib
import filecmp
import functools
import glob
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatch
from threading import Lock

import mutants_place as places
from coverage import reason
from mutants_place import read, write

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
WORK = os.path.join(ROOT, "build/mutants")
TREE = os.path.join(WORK, "tree")
BUILD = "build/quick"
SANITIZED = "build/quick/asan"
# Of the cases that reach it an explained fault is tried with so many seconds of the quickest, and a
# survivor sanitized, which takes ten times as long.
FEW_SECONDS = 1
SOURCES = ["epctx.h", "epctx_npu.h", "examples/epctx/**/*.c", "examples/plugin_ep/*.c",
           "examples/conformance/*.c"]
ASAN = "detect_leaks=0:hard_rss_limit_mb=1500:max_allocation_size_mb=1500"
PLUGINS = ["libepctx_ep.so", "libfive_ep.so", "libtoy_ep.so", "libtoy_oom_ep.so",
           "libmistaken_ep.so", "libbad_ep.so"]
# Programs that only run the same again, and scripts that build something else than what is here.
LEFT_OUT = {"test_npu_kernels_avx2", "test_npu_kernels_portable", "test_wire_mismatch"} | {
    f"test_{name}.sh" for name in (
        "api", "build", "deps", "docs", "embed_in_ep", "files", "firmware", "fuzz", "guides",
        "headers", "install", "judge", "mutants", "package", "platforms", "readme", "rules", "run",
        "web")}


class Fault:
    """One of the faults that mutants_place.py has placed."""

    def __init__(self, file, fields):
        self.file = file
        (self.number, self.start, self.end, self.kind, self.function, self.changed, self.line,
         self.original) = fields
        self.cases = []
        self.key = file, self.function, self.kind, " ".join(self.original.split())

    def __str__(self):
        return f"{self.file}:{self.line}: {self.words()}"

    def words(self):
        """What it does, wherever its line is now."""
        was, now = (" ".join(t.split()) for t in (self.original, self.changed))
        now = {"drop": "nothing", "check": "never"}.get(self.kind, f"'{now[:100]}'")
        return f"{self.function}: {self.kind}: '{was[:100]}' -> {now}"

    def is_in(self, glob):
        """FILE, or FILE:SECTION:FUNCTION"""
        return fnmatch(self.file, glob) or fnmatch(
            f"{self.file}:{section_at(self.file, self.line)}:{self.function}", glob)

    def marked(self):
        """Why nothing goes there, or None."""
        text = [""] + read(self.file).split("\n")
        last = self.line + self.original.count("\n") + 1
        return next(filter(None, (reason(text, n + 1) for n in range(self.line, last + 1))), None)

    def hands_on(self):
        """Whether it is a check of what a call has found, and the function fails then."""
        if self.kind != "check":
            return False
        behind = "\n".join(read(self.file).split("\n")[self.line - 1:])
        behind = behind[behind.find(self.original) + len(self.original):]
        called = all(map(CALLED.fullmatch, findings(self.original)))
        return called and FAILS.match(behind) is not None


# What is true when a call has failed, but for those that only ask; and a failure that is returned.
CALLED = re.compile(r"!(?!(\w*_)?(is|has|eq|starts|ends)\w*\()\w+\(.*\)|!\*?(good|ok)"
                    r"|[\w.>-]*_memory|.*\) != EPCTX_OK|status != EPCTX_OK"
                    r"|[\w>.-]+(\(.*\))? == NULL", re.S)
FAILS = re.compile(r"\)\s*(\{[^{}]*)?\breturn (false|NULL|-1|0|status|[^;]*EPCTX_ERR_\w+|[^;]*nomem"
                   r"\([^;]*);")


def split(text, mark):
    """Parts between marks outside of brackets."""
    parts, depth = [""], 0
    for word in re.findall(r"\|\||&&|.", text, re.S):
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(word, 0)
        if depth == 0 and word == mark:
            parts.append("")
        else:
            parts[-1] += word
    return [p.strip() for p in parts]


def findings(condition):
    """What makes a condition true in the end: of each alternative the last part."""
    ways = split(condition, "||")
    if len(ways) > 1:
        return [f for way in ways for f in findings(way)]
    last = split(condition, "&&")[-1]
    if last.startswith("(") and places.closing(last, 0) == len(last):
        return findings(last[1:-1])
    return [last]


@functools.cache
def banners(file):
    """(line, name) of each section of a header's implementation."""
    lines_of = list(enumerate(read(file).split("\n"), 1))
    begin = next((n for n, line in lines_of if line == " * >>implementation"), 0)
    return [(n, line[5:]) for n, line in lines_of if n >= begin and line.startswith(" * >>")]


def section_at(file, line):
    return next((name for n, name in reversed(banners(file)) if n <= line), "")


class Case:
    """A case of a test program, a seed of a fuzzer, or a script."""

    def __init__(self, test, name, targets, build_folder=BUILD):
        self.test, self.case, self.targets, self.build = test, name, targets, build_folder
        self.name = f"{test}:{name.replace('/', '.')}" if name else test
        self.seconds = self.good = None
        self.lock = Lock()

    def passes(self):
        """Whether it does without a fault."""
        with self.lock:
            if self.good is None:
                self.good = self.run() is None
        return self.good

    def sanitized(self):
        """The same case of a sanitized program, which takes ten times as long."""
        case = Case(self.test, self.case, (), SANITIZED)
        case.seconds = self.seconds
        return case

    def command(self):
        if self.test.endswith(".sh"):
            return ["sh", f"tests/{self.test}"]
        return [program(self.build, self.test), self.case]

    def run(self, wanted="", **environment):
        """How it fails, or None. A fault may want all memory, never end, or leave files and
        children behind. Of a script a line FAIL with the wanted words counts."""
        script = self.test.endswith(".sh")
        limit = 10 + 20 * self.seconds * (10 if self.build == SANITIZED else 1) if (
            self.good and self.seconds is not None) else 600
        # ASan's shadow is larger than any memory; it has a limit of its own.
        memory = [] if self.build == SANITIZED else ["prlimit", "--data=6000000000", "--core=0"]
        with tempfile.TemporaryDirectory() as scratch, open(f"{scratch}/said", "w+b") as said, \
                subprocess.Popen(
                    memory + self.command(), cwd=TREE, stdout=said, stderr=subprocess.STDOUT,
                    stdin=subprocess.DEVNULL, start_new_session=True,
                    env=dict(os.environ, EPCTX_BUILD=BUILD, EPCTX_TEST_QUICK="1", ASAN_OPTIONS=ASAN,
                             TMPDIR=scratch, EPCTX_TEST_FOLDER=scratch, **environment)) as running:
            os.chmod(scratch, 0o755)  # for cases that change the user
            try:
                code = running.wait(limit)
            except subprocess.TimeoutExpired:
                return "no end"
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(running.pid, signal.SIGKILL)
            said.seek(0)
            lines = said.read().decode(errors="replace").split("\n")
        failed = [line for line in lines if line.startswith("FAIL ")]
        if script and wanted:
            failed = [line for line in failed if wanted in line]
            return failed[0] if failed else None
        return failed[0] if failed else f"exit code {code}" if code else None

    def reaches(self):
        """Numbers of the faults that it reaches, and how long it takes; kept while both stay."""
        files = [f"{TREE}/{t}" for t in self.targets] + [f"{TREE}/tests/{self.test}"]
        stamp = [os.path.getmtime(f) for f in files if os.path.exists(f)]
        kept = f"{WORK}/reached/{self.name}"
        if os.path.exists(kept):
            old = json.loads(read(kept))
            if old["stamp"] == stamp:
                self.seconds, self.good = old["seconds"], True
                return old["reached"]
        with tempfile.NamedTemporaryFile() as log:
            log.truncate(len(read(f"{WORK}/sources").split()) << places.BITS)
            begin = time.monotonic()
            wrong = self.run(EPCTX_FAULT_LOG=log.name)
            seconds = time.monotonic() - begin
            reached = [m.start() for m in re.finditer(b"\1", log.read())]
        if wrong:
            print(f"note {self.name} fails without a fault and is not asked: {wrong}", flush=True)
            return []
        self.seconds, self.good = seconds, True
        write(kept, json.dumps({"stamp": stamp, "seconds": seconds, "reached": reached}))
        return reached


def program(folder, test):
    return f"{folder}/{'fuzz' if test.startswith('fuzz_') else 'tests'}/{test}"


def targets_of(test):
    """What `make` has to build for a test."""
    name = test.removesuffix(".sh")
    programs = [program(BUILD, test)] if name == test else [f"{BUILD}/epctx"]
    if name != test or name.startswith("test_plugin"):
        programs += [f"{BUILD}/{p}" for p in PLUGINS]
    if name != test and name.startswith("test_plugin"):
        programs += [f"{BUILD}/tests/test_plugin", f"{BUILD}/tests/test_plugin_share"]
    if name != test:
        programs += [f"{BUILD}/epctx-conformance", f"{BUILD}/guide_tables"]
    return programs


def all_tests():
    files = sorted(glob.glob("tests/test_*.c") + glob.glob("fuzz/fuzz_*.c") +
                   glob.glob("tests/test_*.sh"))
    names = [os.path.basename(f).removesuffix(".c") for f in files]
    return [n for n in names if n not in LEFT_OUT]


def cases_of(test):
    if test.endswith(".sh"):
        return [Case(test, "", targets_of(test))]
    if test.startswith("fuzz_"):
        return [Case(test, seed, targets_of(test)) for seed in seeds(test[5:])]
    return [Case(test, name, targets_of(test))
            for name in re.findall(r"^TEST\((\w+)\)", read(f"tests/{test}.c"), re.M)]


def seeds(fuzzer):
    folders = [f"fuzz/regressions/{fuzzer}", f"fuzz/corpus/{fuzzer}"]
    folders += ["fuzz/corpus/open"] if fuzzer not in ("blob", "path", "option", "open") else []
    return [name for f in folders for name in sorted(glob.glob(f"{f}/*"))]


# ---------------------------------------------------------------- one build of everything

def make(targets, jobs, **more):
    environment = dict(os.environ, EPCTX_CACHE=cache(), EPCTX_OFFLINE="1", **more)
    for name in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "EPCTX_TEST_MODELS"):
        environment.pop(name, None)
    done = subprocess.run(["make", "-s", f"-j{jobs}", f"CC={WORK}/cc", "CFLAGS=", "WERROR=",
                           *targets], cwd=TREE, env=environment, check=False, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        sys.exit(f"cannot be built: {' '.join(targets)}\n{done.stdout[-3000:]}")


def cache():
    return os.path.join(ROOT, os.environ.get("EPCTX_CACHE") or "build/deps")


def prepare():
    """The copy of the tree, and the compiler that puts the faults in."""
    os.makedirs(f"{WORK}/reached", exist_ok=True)
    os.makedirs(TREE, exist_ok=True)
    copy_changed()
    sources = [f for pattern in SOURCES for f in sorted(glob.glob(pattern, recursive=True))]
    write(f"{WORK}/sources", "\n".join(sources) + "\n")
    write(f"{WORK}/epm.h", places.SWITCH.replace("LAST", str(len(sources) << places.BITS)))
    write(f"{WORK}/cc", f"#!/bin/sh\nexec /usr/bin/python3 -B {ROOT}/tests/mutants_place.py {WORK} "
          f"{os.environ.get('MUTANTS_CC', 'clang')} \"$@\"\n")
    os.chmod(f"{WORK}/cc", 0o755)


def files_of(folder):
    """Its sources: what is neither built nor Git's."""
    for top, folders, names in os.walk(folder):
        folders[:] = [f for f in folders if f not in ("build", ".git", "__pycache__")]
        yield from (os.path.relpath(os.path.join(top, n), folder) for n in names)


def copy_changed():
    """What has changed since the last time; a file that has not keeps its date."""
    names = set(files_of("."))
    for name in set(files_of(TREE)) - names:
        os.unlink(f"{TREE}/{name}")
    for name in names:
        there = f"{TREE}/{name}"
        if not os.path.exists(there) or not filecmp.cmp(name, there, shallow=False):
            os.makedirs(os.path.dirname(there), exist_ok=True)
            shutil.copy(name, there)


def build(tests, jobs):
    """The headers first: everything includes them, and finds those with switches."""
    make([f"{BUILD}/obj/header/epctx.o", f"{BUILD}/obj/header/epctx_npu.o"], jobs)
    make(sorted({t for test in tests for t in targets_of(test)}), jobs)


def all_faults():
    found = {}
    for file in read(f"{WORK}/sources").split():
        if os.path.exists(f"{WORK}/src/{file}.json"):
            for fields in json.loads(read(f"{WORK}/src/{file}.json"))["faults"]:
                found[fields[0]] = Fault(file, fields)
    return found


def record(cases, faults, pool):
    """Runs everything once, and notes with each fault the cases that reach it."""
    for case, numbers in zip(cases, pool.map(Case.reaches, cases)):
        for number in numbers:
            if number in faults:
                faults[number].cases.append(case)
    for fault in faults.values():
        fault.cases.sort(key=lambda c: c.seconds)


def noticed_by(fault, cases, wanted="", seconds=float("inf")):
    """The first of the cases that fails with a fault, and how; of long ones fewer are tried."""
    for case in cases:
        seconds -= case.seconds
        if seconds < 0 and case is not cases[0]:
            break
        how = case.passes() and case.run(wanted, EPCTX_FAULT=str(fault.number))
        if how:
            return f"{case.name}: {how}" if not how.startswith("FAIL") else case.name
    return None


# ---------------------------------------------------------------- a sample

def known():
    """{(file, function, kind, text): reason}"""
    rows = (line.split("\t") for line in read("tests/mutants_known.txt").splitlines()
            if line and not line.startswith("#"))
    return {tuple(row[:4]): row[4] for row in rows}


def survived(fault, output):
    """Whether an earlier run says so; its line may have been another one then."""
    return re.search(rf"^(survivor|not reached) {re.escape(fault.file)}:\d+: "
                     rf"{re.escape(fault.words())}( \(|$)", output, re.M) is not None


def sample(arguments, pool):
    tests = [t for t in all_tests() if any(fnmatch(t, g) for g in arguments.tests)]
    build(tests, arguments.jobs)
    faults = all_faults()
    record([c for t in tests for c in cases_of(t)], faults, pool)
    found = [f for f in faults.values() if any(f.is_in(g) for g in arguments.files)
             and (not arguments.kinds or f.kind in arguments.kinds)
             and (arguments.again is None or survived(f, arguments.again))]
    found.sort(key=lambda f: (f.file, f.start, f.kind))
    count = len(found) if arguments.all else min(arguments.sample, len(found))
    taken = random.Random(arguments.seed).sample(found, count)
    reasons, verdicts = known(), []

    def try_plain(fault):
        seconds = FEW_SECONDS if fault.key in reasons else arguments.seconds
        who = noticed_by(fault, fault.cases, seconds=seconds)
        if who or not arguments.sanitized:
            tell(fault, *judge(fault, who, reasons))
        return who

    left = [f for f, who in zip(taken, pool.map(try_plain, taken)) if not who]
    verdicts = ["noticed"] * (len(taken) - len(left))
    if left and arguments.sanitized:
        sanitize(left, arguments.jobs)
        who = list(pool.map(lambda f: noticed_by(f, f.cases, seconds=FEW_SECONDS), left))
    else:
        who = [None] * len(left)
    for fault, name in zip(left, who):
        verdict, remark = judge(fault, name, reasons)
        verdicts.append(verdict)
        if arguments.sanitized:
            tell(fault, verdict, remark)
    print(f"{len(taken)} of {len(found)} faults, seed {arguments.seed}: " + ", ".join(
        f"{verdicts.count(v)} {v}" for v in ("noticed", "handed on", "explained", "survivor",
                                            "not reached")), flush=True)
    return not {"survivor", "not reached"} & set(verdicts)


def judge(fault, who, reasons):
    """A verdict, and what there is to say about it."""
    if who:
        return "noticed", who
    why = reasons.get(fault.key) or (None if fault.cases else fault.marked())
    if why:
        return "explained", why
    if not fault.cases:
        return "not reached", ""
    more = len(fault.cases) - 3
    return "handed on" if fault.hands_on() else "survivor", ", ".join(
        c.name for c in fault.cases[:3]) + (f" and {more} more" if more > 0 else "")


def tell(fault, verdict, remark):
    print(f"{verdict} {fault}" + (f" ({remark})" if remark else ""), flush=True)


def sanitize(faults, jobs):
    """The cases become those of sanitized programs. Scripts and the plugin have none."""
    found = {}
    for fault in faults:
        fault.cases = [found.setdefault(c.name, c.sanitized()) for c in fault.cases
                       if not c.test.endswith(".sh") and not c.test.startswith("test_plugin")]
    # As they were placed: the numbers of the faults stay.
    make([f"{SANITIZED}/obj/header/{h}.o" for h in ("epctx", "epctx_npu")], jobs,
         MUTANTS_AS_IT_IS="1")
    make(sorted({program(SANITIZED, c.test) for c in found.values()}), jobs, MUTANTS_AS_IT_IS="1")


# ---------------------------------------------------------------- the proof of rules

def lines():
    """Rule, file, place and test of each line of mutations.txt."""
    for line in read("tests/mutations.txt").splitlines():
        if line and not line.startswith("#"):
            yield (line.split("\t") + ["", "", ""])[:4]


def rule_tests():
    """The names of tests in each rule's row, FILE:CASE."""
    rows = (line.split("\t") for line in read("tests/rules.txt").splitlines()
            if line and not line.startswith("#"))
    return {r[0]: r[3].split("; ") if len(r) > 3 and ":" in r[3] else [] for r in rows}


def table_row(text, place):
    """(start, end) of the row with a word in a table, a macro or a variable, or None."""
    name, _, word = place.rstrip("]").partition("[")
    found = list(re.finditer(rf"^#define {re.escape(name)}\b(?:[^\n]*\\\n)*[^\n]*\n"
                             rf"|^[^\n]*\b{re.escape(name)}\[\w*\] = {{.*?^}};", text, re.M | re.S))
    if not found:
        return None
    table = found[-1]  # that of Windows comes first
    if not word:
        return table.span()
    key = re.escape(word)
    row = re.compile(rf"\bX\({key}\b|\{{(?:/\*.*?\*/ )?{key}[,}}]")
    match = row.search(text, table.start(), table.end())
    if not match:
        return None
    opening, depth = text.index("(" if text[match.start()] == "X" else "{", match.start()), 0
    for token in re.finditer(r'/\*.*?\*/|"(?:\\.|[^"\\])*"|[(){}]', text[opening:table.end()],
                             re.S):
        depth += {"(": 1, "{": 1, ")": -1, "}": -1}.get(token.group(), 0)
        if depth == 0:
            return match.start(), opening + token.end()
    return None


def table_faults(file, place):
    """(words, the file with the fault) of each string, number and name in a row but its own, and
    those of macros with arguments."""
    text = read(file)
    start, end = table_row(text, place)
    name, _, own = place.rstrip("]").partition("[")
    around = {w for w in re.findall(r"\b[A-Z][A-Z_]+\b", text[slice(*table_row(text, name))])}
    tokens = re.finditer(r'/\*.*?\*/|"((?:\\.|[^"\\])*)"|\b\d+\b|\b[A-Z][A-Z_0-9]+\b',
                         text[start:end], re.S)
    for token in tokens:
        word, call = token.group(), text.startswith("(", start + token.end())
        if word.startswith("/*") or word in (own, name, "X"):
            continue
        if word in OTHER_WORDS:
            others = sorted(OTHER_WORDS[word] & around or OTHER_WORDS[word])
        elif word[0] == '"':
            others = ['"1"' if word in ('""', '"0"') else f'"{word[1:-1]}~"']
        elif word[0].isdigit():
            others = [str(int(word) + 1)]
        else:
            others = ["0"] if (word.startswith("EPCTX_") and not call
                               and "|" in text[start:end]) else []
        for other in others:
            at = start + token.start()
            yield f"{word} -> {other}", text[:at] + other + text[at + len(word):]


# Values of columns of X lists, which no syntax tree knows.
COLUMNS = ({"GENERATE", "LOAD", "BOTH", "NONE"}, {"SWITCH", "TEXT", "NAME", "FILE", "FOLDER"},
           {"STRING", "INT"}, {'"default"', '"hidden"'})
OTHER_WORDS = {word: column - {word} for column in COLUMNS for word in column}


def definition(text, name):
    """Where a function is defined."""
    return re.search(rf"^(?!#)\w[^;{{}}()]*\b{re.escape(name)}\([^;]*?\{{", text, re.M)


def check_known():
    """What is explained, and is not there."""
    for key in known():
        file, function, _, words = key
        text = read(file) if os.path.isfile(file) else ""
        found = definition(text, function)
        body = text[found.start():text.find("\n}\n", found.start())] if found else ""
        if words not in " ".join(body.split()):
            yield "mutants_known.txt: there is no " + " ".join(key)


def check():
    """What is wrong with lines of mutations.txt; quick, part of lint."""
    rules, texts = rule_tests(), {}
    for rule, file, place, test in lines():
        if not os.path.isfile(file):
            yield f"{rule}: there is no file {file}"
            continue
        texts.setdefault(file, read(file))
        if "[" in place or place.isupper() or f"{place}[" in texts[file]:
            there = table_row(texts[file], place)
        else:
            there = definition(texts[file], place)
        source = f"tests/{test}" if test.endswith(".sh") else f"tests/{test}.c"
        if not there:
            yield f"{rule}: {file} has no function or row {place}"
        elif not os.path.isfile(source):
            yield f"{rule}: there is no test {test}"
        elif rule != "PLUGIN" and test not in (t.split(":")[0] for t in rules.get(rule, [])):
            yield f"{rule}: its row in tests/rules.txt does not name {test}"


class Proof:
    """A line of mutations.txt."""

    def __init__(self, line, rules):
        self.rule, self.file, self.place, self.test = line
        named = [t.partition(":")[2] for t in rules.get(self.rule, [])
                 if t.startswith(f"{self.test}:")]
        self.words = named[0] if self.test.endswith(".sh") and named else ""
        self.cases = [c for c in cases_of(self.test) if not named or c.case in named or self.words]
        self.table = "[" in self.place or self.place.isupper()

    def __str__(self):
        return f"{self.rule} {self.file}: {self.place} ({self.test})"


def prove(proof, faults):
    """Whether the test notices one fault of the function: what turns most upside down first."""
    order = ["check", "drop", "swap", "boundary", "logic", "value", "return", "number"]
    mine = sorted((f for f in faults.values() if f.file == proof.file
                   and f.function == proof.place.rpartition("::")[2]),
                  key=lambda f: (order.index(f.kind), f.start))
    mine = [f for f in mine if any(c in f.cases for c in proof.cases)]
    tried = 0
    for fault in mine:
        tried += 1
        who = noticed_by(fault, [c for c in proof.cases if c in fault.cases], proof.words)
        if who:
            print(f"ok mutation {proof}: {who}, {fault.kind} in line {fault.line}", flush=True)
            return True
    print(f"FAIL mutation {proof}: " + (f"none of {tried} faults is noticed" if tried else
                                        "the test reaches none of its faults"), flush=True)
    return False


def prove_rows(proofs, jobs):
    """The same for rows of tables: each change of one is built."""
    verdicts = []
    for file in sorted({p.file for p in proofs}):
        mine = [p for p in proofs if p.file == file]
        place, listed = places.placed(WORK, file), f"{WORK}/src/{file}.json"
        # Interrupted, the next run places the faults again.
        os.rename(listed, f"{listed}.kept")
        instrumented = read(place)
        verdicts += [prove_row(p, place, jobs) for p in mine]
        write_unseen(place, instrumented)
        rebuild(mine, jobs)
        os.rename(f"{listed}.kept", listed)
    return verdicts


def write_unseen(path, text):
    """For make it has its old date: what includes a header stays, but for what is taken away."""
    was = os.stat(path)
    write(path, text)
    os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))


def prove_row(proof, place, jobs):
    tried = 0
    for words, text in table_faults(f"{TREE}/{proof.file}", proof.place):
        tried += 1
        write_unseen(place, text)
        rebuild([proof], jobs)
        said = next(filter(None, (c.run(proof.words) for c in proof.cases)), None)
        if said:
            print(f"ok mutation {proof}: {words}: {said[:80]}", flush=True)
            return True
    print(f"FAIL mutation {proof}: none of {tried} changes of the row is noticed", flush=True)
    return False


def made_of(file, test, build_folder):
    """What has a file inside it: objects of its name (the plugin's epctx.c is one of epctx.h), a
    test that brings it itself, and what is linked of objects and may stay without them
    (.SECONDARY). Who includes a header stays."""
    stem = os.path.splitext(os.path.basename(file))[0]
    return [*glob.glob(f"{build_folder}/**/{stem}.o", recursive=True),
            f"{build_folder}/obj/tests/{test}.o", f"{build_folder}/plugin/toy_oom.o",
            f"{build_folder}/libepctx.a", f"{build_folder}/libepctx_ops.a"]


def rebuild(proofs, jobs):
    """What has changed, and what is made of it."""
    targets = {t for p in proofs for t in targets_of(p.test)}
    stale = {name for p in proofs for name in made_of(p.file, p.test, f"{TREE}/{BUILD}")}
    for name in stale | {f"{TREE}/{t}" for t in targets}:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
    make(sorted(targets), jobs, MUTANTS_AS_IT_IS="1")


def rules(arguments, pool):
    table = rule_tests()
    proofs = [Proof(line, table) for line in lines() if not arguments.rules
              or line[0] in arguments.rules]
    proofs = [p for p in proofs if any(fnmatch(p.test, g) for g in arguments.tests)]
    build(sorted({p.test for p in proofs}), arguments.jobs)
    faults = all_faults()
    # The same case in several lines is one.
    cases = {}
    for proof in proofs:
        proof.cases = [cases.setdefault(c.name, c) for c in proof.cases]
    record(list(cases.values()), faults, pool)
    for proof in proofs:
        proof.cases = [c for c in proof.cases if c.seconds is not None]
    good = list(pool.map(lambda p: prove(p, faults), (p for p in proofs if not p.table)))
    good += prove_rows([p for p in proofs if p.table], arguments.jobs)
    print(f"note mutations: {good.count(True)} of {len(good)} noticed, "
          f"{len({p.rule for p in proofs} - {'PLUGIN'})} rules", flush=True)
    return all(good)


def main():
    parser = argparse.ArgumentParser(description="Puts faults in, one at a time.")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--sample", type=int, default=100)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--files", nargs="+", default=["*"])
    parser.add_argument("--tests", nargs="+", default=["*"])
    parser.add_argument("--kinds", nargs="+")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--again", type=read)
    parser.add_argument("--sanitized", action="store_true")
    parser.add_argument("--rules", nargs="*")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    os.chdir(ROOT)
    if arguments.check:
        for wrong in (*check(), *check_known()):
            print(wrong)
        return
    os.environ.pop("EPCTX_TEST_MODELS", None)
    prepare()
    with ThreadPoolExecutor(arguments.jobs) as pool:
        good = sample(arguments, pool) if arguments.rules is None else rules(arguments, pool)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
