#!/usr/bin/python3
"""Takes the checks out of a header one at a time, and expects a test or a fuzz seed to notice.

    tests/guards.py [--jobs N] [--step N] [--from N] HEADER SECTION...

A check is an `if` that returns or breaks. SECTION is a banner of the implementation ("wire",
"exec: loading"); step 5 takes every fifth check. Everything runs under ASan + UBSan. A check that
nobody misses is printed as "survivor" with its line: a test is missing, or the check is not needed.
Why a check may stay although no test can miss it stands in tests/guards_known.txt; such a one is
printed as "explained". The exit code is 1 when there are survivors.
"""
import argparse
import os
import queue
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
    "exec: loading": ("npu_blob", "fuzz_blob"),
}
OTHERS = ("basics", "onnx", "edit", "check", "fuzz_open")
FLAGS = ["-std=c11", "-O0", "-I.", "-fsanitize=address,undefined",
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


def run(command, limit=120):
    # Without its checks a program may ask for all the memory there is.
    options = "detect_leaks=0:hard_rss_limit_mb=1500:max_allocation_size_mb=1500"
    try:
        return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              stdin=subprocess.DEVNULL, timeout=limit, check=False,
                              env=dict(os.environ, ASAN_OPTIONS=options)).returncode == 0
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
    """A test or a fuzzer with its replay, and what it is linked of."""

    def __init__(self, name, header):
        self.name = name
        self.fuzzer = name.startswith("fuzz_")
        self.source = f"fuzz/{name}.c" if self.fuzzer else f"tests/test_{name}.c"
        self.arguments = seeds_of(name[5:], header) if self.fuzzer else []
        with open(self.source, encoding="utf-8") as source:
            # One that brings the implementation itself is compiled again with every change.
            self.own = "_IMPLEMENTATION\n" in source.read()
        self.objects = [f"{WORK}/{name}.o"] + ([f"{WORK}/replay.o"] if self.fuzzer else [])

    def build(self):
        if not self.own:
            compile_to(self.objects[0], self.source)


class Trial:
    """One folder in which changed headers are compiled and tried."""

    def __init__(self, header, number, witnesses):
        self.header, self.witnesses = header, witnesses
        self.folder = f"{WORK}/{number}"
        os.makedirs(self.folder, exist_ok=True)

    def noticed(self, content):
        """Who notices the changed header, or None."""
        path, changed = f"{self.folder}/{self.header}", f"{self.folder}/changed.o"
        with open(path, "w", encoding="utf-8") as out:
            out.write(content)
        # The changed header stands in front of the include path.
        include = [f"-iquote{self.folder}", f"-I{self.folder}"]
        if not run(CC + include + FLAGS + [f"-D{HEADERS[self.header]}_IMPLEMENTATION", "-x", "c",
                                           "-c", path, "-o", changed], 900):
            return "the compiler"
        rest = [f"{WORK}/{h}.o" for h in HEADERS if h != self.header]
        for witness in self.witnesses:
            program = f"{self.folder}/{witness.name}"
            parts = [witness.source] if witness.own else [*witness.objects, changed]
            if not run(CC + include + FLAGS + parts + rest + LIBS + ["-o", program], 900):
                return "the linker"
            if not run([program, *witness.arguments]):
                return witness.name
        return None


def judge(arguments, section, text, pool_size):
    names = [n for n in WITNESSES.get(section, OTHERS)
             if os.path.exists(f"fuzz/{n}.c") or os.path.exists(f"tests/test_{n}.c")]
    witnesses = [Witness(n, arguments.header) for n in names]
    with ThreadPoolExecutor(pool_size) as pool:
        list(pool.map(Witness.build, witnesses))
    free = queue.Queue()
    for number in range(pool_size):
        free.put(Trial(arguments.header, number, witnesses))
    broken = free.queue[0].noticed(text)
    if broken:
        sys.exit(f"{broken} fails without a change")
    reasons = known()

    def one(guard):
        start, end = guard
        trial = free.get()
        who = trial.noticed(text[:start] + "false && (" + text[start:end] + ")" + text[end:])
        free.put(trial)
        line = text.count("\n", 0, start) + 1
        condition = " ".join(text[start:end].split())
        reason = reasons.get((arguments.header, function_at(text, start), condition))
        verdict = "noticed" if who else "explained" if reason else "survivor"
        print(f"{verdict} {arguments.header}:{line}: {function_at(text, start)}: {condition}"
              + (f" ({who or reason})" if who or reason else ""), flush=True)
        return verdict

    with ThreadPoolExecutor(pool_size) as pool:
        verdicts = list(pool.map(one, list(guards(text, section))[arguments.first::arguments.step]))
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
    compile_to(f"{WORK}/replay.o", "fuzz/replay.c")
    for header, macro in HEADERS.items():
        compile_to(f"{WORK}/{header}.o", f"-D{macro}_IMPLEMENTATION", "-x", "c", header)
    with open(arguments.header, encoding="utf-8") as source:
        text = source.read()
    survivors = sum(judge(arguments, s, text, arguments.jobs) for s in arguments.sections)
    sys.exit(1 if survivors else 0)


main()
