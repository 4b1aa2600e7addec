#!/usr/bin/python3
"""Takes the checks out of a header one at a time, and expects a test or a fuzz seed to notice.

    tests/guards.py HEADER SECTION [FIRST [STEP]]

A check is an `if` that returns or breaks. SECTION is a banner of the implementation ("wire",
"exec: loading"); STEP 5 takes every fifth check. Everything runs under ASan + UBSan. A check that
nobody misses is printed as "survivor" with its line: a test is missing, or the check is not needed.
"""
import os
import re
import subprocess
import sys

TESTS = {"epctx.h": ("basics", "wire", "onnx", "paths", "epnode", "edit", "scan"),
         "epctx_npu.h": ("npu_blob",)}
FUZZERS = {"epctx.h": ("open", "check", "path"), "epctx_npu.h": ("blob",)}
FLAGS = ["-std=c11", "-O0", "-g", "-I.", "-fsanitize=address,undefined",
         "-fno-sanitize-recover=all", *os.environ.get("NANOPB_CFLAGS", "").split()]
LIBS = os.environ.get("NANOPB_LIBS", "-lprotobuf-nanopb").split() + ["-lm", "-pthread"]
CC = os.environ.get("CC", "gcc").split()
WORK = "build/guards"


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
        if re.match(r" \{\s*(return|break)\b", text[at:]):
            yield start, at - 1


def run(command, limit=60):
    # Without its checks a program may ask for all the memory there is.
    options = "detect_leaks=0:hard_rss_limit_mb=1500:max_allocation_size_mb=1500"
    try:
        return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              stdin=subprocess.DEVNULL, timeout=limit, check=False,
                              env=dict(os.environ, ASAN_OPTIONS=options)).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def compile_to(out, *arguments):
    if not run(CC + FLAGS + ["-I" + WORK, "-c", *arguments, "-o", out], 600):
        sys.exit(f"{out}: cannot be compiled")


def build(header):
    """The objects that do not change: tests, and fuzzers with their replay."""
    objects, seeds = {}, {}
    compile_to(f"{WORK}/replay.o", "fuzz/replay.c")
    for name in TESTS[header]:
        # A test that brings the implementation itself is compiled again with every change.
        with open(f"tests/test_{name}.c", encoding="utf-8") as source:
            own = "_IMPLEMENTATION\n" in source.read()
        objects[f"test_{name}"] = None if own else [f"{WORK}/test_{name}.o"]
        if not own:
            compile_to(f"{WORK}/test_{name}.o", f"tests/test_{name}.c")
    for name in FUZZERS[header]:
        compile_to(f"{WORK}/fuzz_{name}.o", f"fuzz/fuzz_{name}.c")
        objects[f"fuzz_{name}"] = [f"{WORK}/fuzz_{name}.o", f"{WORK}/replay.o"]
        folders = [f"fuzz/regressions/{name}", f"fuzz/corpus/{name}"]
        folders += ["fuzz/corpus/open"] if header == "epctx.h" else []
        seeds[f"fuzz_{name}"] = [os.path.join(f, n) for f in folders if os.path.isdir(f)
                                 for n in sorted(os.listdir(f))]
    for other, macro in (("epctx.h", "EPCTX"), ("epctx_npu.h", "EPCTX_NPU")):
        compile_to(f"{WORK}/{other}.o", f"-D{macro}_IMPLEMENTATION", "-x", "c", other)
    return objects, seeds


def noticed(header, path, objects, seeds):
    """Who notices the header in `path`, or None."""
    macro = "EPCTX_NPU" if header == "epctx_npu.h" else "EPCTX"
    changed = f"{WORK}/changed.o"
    if not run(CC + FLAGS + [f"-D{macro}_IMPLEMENTATION", "-x", "c", "-c", path, "-o", changed],
               600):
        return "the compiler"
    for name, own in objects.items():
        program = f"{WORK}/{name}"
        if own is None:
            # The changed header stands in front of the include path.
            link = [f"-iquote{os.path.dirname(path)}", f"-I{os.path.dirname(path)}",
                    f"tests/{name}.c", f"{WORK}/epctx.h.o"]
        else:
            rest = [f"{WORK}/{h}.o" for h in TESTS if h != header]
            link = [*own, changed, *rest]
        if not run(CC + FLAGS + link + LIBS + ["-o", program], 600):
            return "the linker"
        if not run([program, *seeds.get(name, [])]):
            return name
    return None


def main():
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    header, section = sys.argv[1:3]
    first = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    step = int(sys.argv[4]) if len(sys.argv) > 4 else 1
    folder = f"{WORK}/mutant"
    os.makedirs(folder, exist_ok=True)
    with open(header, encoding="utf-8") as source:
        text = source.read()
    objects, seeds = build(header)
    path = f"{folder}/{header}"

    def judge(content):
        with open(path, "w", encoding="utf-8") as out:
            out.write(content)
        return noticed(header, path, objects, seeds)

    broken = judge(text)
    if broken:
        sys.exit(f"{broken} fails without a change")
    survivors = count = 0
    for start, end in list(guards(text, section))[first::step]:
        line = text.count("\n", 0, start) + 1
        condition = " ".join(text[start:end].split())
        who = judge(text[:start] + "false && (" + text[start:end] + ")" + text[end:])
        print(f"{'noticed' if who else 'survivor'} {header}:{line}: {condition}"
              + (f" ({who})" if who else ""), flush=True)
        count += 1
        survivors += not who
    print(f"{section}: {count} checks taken out, {survivors} survivors")


main()
