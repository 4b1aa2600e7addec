#!/usr/bin/python3
"""Takes the checks out of a header one at a time, and expects a test or a fuzz seed to notice.

Each check gets a switch, so that all is compiled once.

    tests/guards.py [--jobs N] [--step N] [--from N] HEADER SECTION...

A check is an `if` that returns or breaks. SECTION is a banner of the implementation ("wire",
"exec: loading"); step 5 takes every fifth check. Everything runs under ASan + UBSan. A check that
nobody misses is printed as "survivor" with its line: a test is missing, or the check is not needed.
Why a check may stay although no test can miss it stands in tests/guards_known.txt; such a one is
printed as "explained". The exit code is 1 when there are survivors.
"""
import argparse
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

# Who is asked, the most likely first: tests, then fuzzers with their corpora.
WITNESSES = {
    "wire": ("wire", "onnx", "edit", "basics", "fuzz_open", "fuzz_check"),
    "scan": ("scan", "fuzz_check"),
    "record": ("onnx", "epnode", "edit", "gen", "fuzz_open"),
    "epnode": ("epnode", "check", "edit", "fuzz_open", "fuzz_check"),
    "path": ("paths", "fuzz_path", "load", "options", "check", "gen"),
    "io": ("io", "changed", "buffers", "paths", "faults", "gen", "load", "convert"),
    "edit": ("edit", "onnx", "faults", "fuzz_open", "gen", "convert", "combine", "fuzz_convert"),
    "exec: loading": ("npu_blob", "fuzz_blob", "weightless"),
}
OTHERS = ("basics", "onnx", "edit", "check", "fuzz_open")
FLAGS = ["-std=c11", "-O0", "-Werror=implicit-function-declaration", "-I.", "-fsanitize=address,undefined",
         "-fno-sanitize-recover=all", *os.environ.get("NANOPB_CFLAGS", "").split()]
LIBS = os.environ.get("NANOPB_LIBS", "-lprotobuf-nanopb").split() + ["-lm", "-pthread"]
CC = os.environ.get("CC", "gcc").split()
WORK = "build/guards"
HEADERS = {"epctx.h": "EPCTX", "epctx_npu.h": "EPCTX_NPU"}


def guards(text, section):
    """(start, end) of the condition of every check in a section of the implementation."""
    begin = text.index(" * >>implementation")
    match = re.search(r"^ \* >>" + re.escape(section) + r"\b", text[begin:], re.M)
    if not match:
        sys.exit(f"no section {section}")
    begin += match.end()
    after = re.search(r"^ \* >>", text[begin:], re.M)
    end = begin + after.start() if after else len(text)
    for match in re.finditer(r"\bif \(", text[begin:end]):
        start = begin + match.end()
        at, depth = start, 1
        while depth:
            depth += {"(": 1, ")": -1}.get(text[at], 0)
            at += 1
        if re.match(r" \{\s*(return|break)\b", text[at:]) and not windows(text, start):
            yield start, at - 1


def windows(text, at):
    """Whether a line is for Windows only: nothing of it is compiled here."""
    depth = []
    for line in text[:at].split("\n"):
        line = re.sub(r"\s+", "", line)
        if line.startswith("#if"):
            depth.append("defined(_WIN32)" in line and "!defined" not in line
                         or line == "#ifdef_WIN32" or "EPCTX_NO_STDIO" in line
                         and line.startswith("#ifdef"))
        elif line.startswith("#elif"):
            depth[-1] = "defined(_WIN32)" in line
        elif line.startswith("#else"):
            depth[-1] = False
        elif line.startswith("#endif"):
            depth.pop()
    return any(depth)


def function_at(text, at):
    """Name of the function around a place."""
    begin = text.rindex("\n{", 0, at)
    return re.search(r"(\w+)\(", text[text.rindex("\n\n", 0, begin):begin]).group(1)


def known():
    """{(header, function, condition): reason}"""
    reasons = {}
    with open("tests/guards_known.txt", encoding="utf-8") as source:
        for line in source:
            if not line.startswith("#") and line.strip():
                *key, reason = line.rstrip("\n").split("\t")
                reasons[tuple(key)] = reason
    return reasons


def run(command, limit=120, environment=None):
    # Without its checks a program may ask for all the memory there is.
    options = "detect_leaks=0:hard_rss_limit_mb=1500:max_allocation_size_mb=1500"
    try:
        return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              stdin=subprocess.DEVNULL, timeout=limit, check=False,
                              env=dict(os.environ, ASAN_OPTIONS=options,
                                       **environment or {})).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def compile_to(out, *arguments):
    if not run(CC + FLAGS + ["-c", *arguments, "-o", out], 900):
        sys.exit(f"{out}: cannot be compiled")


def seeds_of(name, header):
    folders = [f"fuzz/regressions/{name}", f"fuzz/corpus/{name}"]
    folders += ["fuzz/corpus/open"] if header == "epctx.h" and name != "path" else []
    return [os.path.join(f, n) for f in folders if os.path.isdir(f) for n in sorted(os.listdir(f))]


class Witness:
    """A test or a fuzzer with its replay."""

    def __init__(self, name, header):
        self.name = name
        self.fuzzer = name.startswith("fuzz_")
        self.source = f"fuzz/{name}.c" if self.fuzzer else f"tests/test_{name}.c"
        self.arguments = seeds_of(name[5:], header) if self.fuzzer else []
        self.program = f"{WORK}/{name}"

    def build(self):
        with open(self.source, encoding="utf-8") as source:
            own = re.findall(r"define (EPCTX\w*)_IMPLEMENTATION\n", source.read())
        parts = [self.source] + (["fuzz/replay.c"] if self.fuzzer else [])
        parts += [f"{WORK}/{h}.o" for h, macro in HEADERS.items() if macro not in own]
        # The headers with their switches stand in front of the include path.
        if not run(CC + [f"-iquote{WORK}", f"-I{WORK}"] + FLAGS + parts + LIBS
                   + ["-o", self.program], 900):
            sys.exit(f"{self.name}: cannot be built")

    def notices(self, number):
        """Whether it fails with check `number` switched off; -1: with none."""
        return not run([self.program, *self.arguments], 120, {"EPCTX_GUARD": str(number)})


def switchable(text, macro, found):
    """The header with a switch at each of the checks found."""
    out, at = [], 0
    for number, (start, end) in enumerate(found):
        out += [text[at:start], f"epctx__guard({number}) && (", text[start:end], ")"]
        at = end
    out.append(text[at:])
    mark = f"#define {macro}_IMPLEMENTED\n"
    switch = """#include <stdlib.h>
static __attribute__((unused)) int epctx__guard(int number)
{
    static int off = -2;
    if (off == -2) off = getenv("EPCTX_GUARD") != NULL ? atoi(getenv("EPCTX_GUARD")) : -1;
    return off != number;
}
""".replace("epctx__guard", f"{macro.lower()}__guard")
    return "".join(out).replace("epctx__guard(", f"{macro.lower()}__guard(").replace(
        mark, mark + switch, 1)


def build(arguments, found):
    """Both headers, compiled; the one that is judged has switches."""
    for header, macro in HEADERS.items():
        with open(header, encoding="utf-8") as source:
            text = source.read()
        with open(f"{WORK}/{header}", "w", encoding="utf-8") as out:
            out.write(switchable(text, macro, found) if header == arguments.header else text)
    with ThreadPoolExecutor(arguments.jobs) as pool:
        list(pool.map(lambda h: compile_to(f"{WORK}/{h}.o", f"-I{WORK}",
                                           f"-D{HEADERS[h]}_IMPLEMENTATION", "-x", "c",
                                           f"{WORK}/{h}"), HEADERS))


def judge(arguments, section, text, numbered, pool):
    names = [n for n in WITNESSES.get(section, OTHERS)
             if os.path.exists(f"fuzz/{n}.c") or os.path.exists(f"tests/test_{n}.c")]
    witnesses = [Witness(n, arguments.header) for n in names]
    list(pool.map(Witness.build, witnesses))
    for witness in witnesses:
        if witness.notices(-1):
            sys.exit(f"{witness.name} fails without a change")
    reasons = known()

    def one(guard):
        number, (start, end) = guard
        who = next((w.name for w in witnesses if w.notices(number)), None)
        line = text.count("\n", 0, start) + 1
        condition = " ".join(text[start:end].split())
        function = function_at(text, start)
        reason = reasons.get((arguments.header, function, condition))
        verdict = "noticed" if who else "explained" if reason else "survivor"
        print(f"{verdict} {arguments.header}:{line}: {function}: {condition}"
              + (f" ({who or reason})" if who or reason else ""), flush=True)
        return verdict

    verdicts = list(pool.map(one, numbered[arguments.first::arguments.step]))
    print(f"{section}: {len(verdicts)} checks taken out, {verdicts.count('noticed')} noticed, "
          f"{verdicts.count('explained')} explained, {verdicts.count('survivor')} survivors",
          flush=True)
    return verdicts.count("survivor")


def main():
    parser = argparse.ArgumentParser(description="Takes checks out, one at a time.")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--step", type=int, default=1)
    parser.add_argument("--from", type=int, default=0, dest="first")
    parser.add_argument("header", choices=sorted(HEADERS))
    parser.add_argument("sections", nargs="+")
    arguments = parser.parse_args()
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    os.makedirs(WORK, exist_ok=True)
    with open(arguments.header, encoding="utf-8") as source:
        text = source.read()
    sections = [list(guards(text, s)) for s in arguments.sections]
    found = sorted(g for s in sections for g in s)
    build(arguments, found)
    survivors = 0
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for name, checks in zip(arguments.sections, sections):
            numbered = [(found.index(g), g) for g in checks]
            survivors += judge(arguments, name, text, numbered, pool)
    sys.exit(1 if survivors else 0)


main()
