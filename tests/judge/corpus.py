#!/usr/bin/python3
"""Holds the epctx tool against libprotobuf, model by model.

    tests/judge/corpus.py whole EPCTX FILE...
        Each file through `EPCTX copy` and `EPCTX copy --rebuild`: the same
        bytes again. `EPCTX dump`, without and with --values: the same text as
        dump.py's, so every name, attribute and tensor. One case a file.

    tests/judge/corpus.py damaged EPCTX SEED COUNT FILE...
        COUNT damaged copies of the files: `EPCTX copy` must refuse exactly
        those that libprotobuf refuses and then write nothing; of the others
        the copy, the rebuilt copy and the dump must be right. Four cases,
        each for all the files; what goes wrong is kept in build/failures/.

    tests/judge/corpus.py refused EPCTX SEED COUNT FILE...
        Only the verdicts: for a sanitized EPCTX, which is slow.

Prints the lines that tests/run reads.
"""
import concurrent.futures
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import dump  # noqa: E402
import onnx_schema  # noqa: E402
import parse  # noqa: E402

# Told apart from a refusal, see the sanitizers' options below.
SANITIZER_EXIT = 99
OPTIONS = f"exitcode={SANITIZER_EXIT}"
KEEP = os.path.join("build", "failures")


def run(epctx, *arguments):
    env = dict(os.environ, ASAN_OPTIONS=OPTIONS, UBSAN_OPTIONS=OPTIONS, LSAN_OPTIONS=OPTIONS)
    done = subprocess.run([epctx, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, env=env, check=False)
    if done.returncode < 0 or done.returncode >= SANITIZER_EXIT:
        return done.returncode, done.stdout, "crashed: " + last_line(done.stderr, "ERROR")
    return done.returncode, done.stdout, last_line(done.stderr)


def last_line(data, word=""):
    lines = data.decode("utf-8", "backslashreplace").strip().splitlines()
    named = [line for line in lines if word in line]
    return (named or lines or ["(no message)"])[-1]


def copy_problem(epctx, data, path, out, rebuild=False):
    """What is wrong with a copy of a model that is to be accepted; or None."""
    what = "copy --rebuild" if rebuild else "copy"
    code, _, message = run(epctx, "copy", "-f", *(["--rebuild"] if rebuild else []), path, out)
    if code != 0:
        return f"{what}: expected a copy, found exit code {code}: {message}"
    if not os.path.exists(out):
        return f"{what}: exit code 0, but no file was written"
    got = read(out)
    os.remove(out)
    if got == data:
        return None
    at = next((i for i, (a, b) in enumerate(zip(got, data)) if a != b), min(len(got), len(data)))
    return f"{what}: differs from byte {at} on ({len(got)} bytes, expected {len(data)})"


def both_dumps(model):
    """By the options of `EPCTX dump`."""
    return {(): dump.dump(model), ("--values",): dump.dump(model, True)}


def dump_problem(epctx, wanted, path):
    for options, want in wanted.items():
        what = " ".join(("dump", *options))
        code, got, message = run(epctx, "dump", *options, path)
        if code != 0:
            return f"{what}: expected a dump, found exit code {code}: {message}"
        got = got.decode("utf-8", "backslashreplace")
        if got == want:
            continue
        ours, theirs = got.splitlines(), want.splitlines()
        for number, (a, b) in enumerate(zip(ours, theirs), 1):
            if a != b:
                return f"{what}: line {number} is {a[:200]!r}, expected {b[:200]!r}"
        return f"{what}: {len(ours)} lines, expected {len(theirs)}"
    return None


def refusal_problem(epctx, path, out):
    code, _, message = run(epctx, "copy", "-f", path, out)
    if code == 0:
        return "copy: accepted, libprotobuf refuses it"
    if code < 0 or code >= SANITIZER_EXIT:
        return f"copy: {message}"
    if os.path.exists(out):
        return "copy: refused, but an output file was left behind"
    return None


def read(path):
    with open(path, "rb") as source:
        return source.read()


def in_parallel(function, items):
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        return list(pool.map(function, items))


def whole(epctx, files, folder):
    """Corpus files are sound: libprotobuf has to take every one."""

    def check(job):
        index, path = job
        data = read(path)
        out = os.path.join(folder, f"{index}.onnx")
        return [copy_problem(epctx, data, path, out), copy_problem(epctx, data, path, out, True),
                dump_problem(epctx, wanted[index], path)]

    wanted = []
    for path in files:
        model = onnx_schema.parse(read(path))
        if model is None:
            sys.exit(f"{path}: libprotobuf refuses it, the corpus is not what it should be")
        wanted.append(both_dumps(model))
    failed = False
    for path, problems in zip(files, in_parallel(check, enumerate(files))):
        name = "/".join(path.split("/")[-3:])
        problems = [p for p in problems if p]
        print(f"FAIL {name}: {'; '.join(problems)}" if problems else f"ok {name}")
        failed = failed or bool(problems)
    return failed


def judge(name, problems, paths):
    """One case out of many files: the first problem and how many there are."""
    wrong = [(path, problem) for path, problem in zip(paths, problems) if problem]
    if not wrong:
        print(f"ok {name}: {len(paths)} files")
        return False
    os.makedirs(KEEP, exist_ok=True)
    for path, _ in wrong[:20]:
        with open(os.path.join(KEEP, os.path.basename(path)), "wb") as kept:
            kept.write(read(path))
    print(f"FAIL {name}: {len(wrong)} of {len(paths)} files, the first 20 of them kept in {KEEP}")
    for path, problem in wrong[:20]:
        print(f"  {os.path.basename(path)}: {problem}")
    return True


def damaged(epctx, seed, count, files, folder, only_verdicts):
    good, bad, wanted = [], [], {}
    # libprotobuf remarks on every string that is no UTF-8, though it takes it.
    errors, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    sources = [read(path) for path in files]
    for i, data in enumerate(parse.make_damaged(sources, seed, count)):
        path = os.path.join(folder, f"seed{seed}-{i:05}.onnx")
        with open(path, "wb") as out:
            out.write(data)
        model = onnx_schema.parse(data)
        (bad if model is None else good).append(path)
        if model is not None:
            wanted[path] = both_dumps(model)
    os.dup2(errors, 2)

    def accepted(path):
        return copy_problem(epctx, read(path), path, path + ".out")

    def rebuilt(path):
        return copy_problem(epctx, read(path), path, path + ".out", True)

    label = f"damaged with seed {seed}"
    failed = judge(f"{label} refused", in_parallel(
        lambda path: refusal_problem(epctx, path, path + ".out"), bad), bad)
    failed |= judge(f"{label} accepted", in_parallel(accepted, good), good)
    if not only_verdicts:
        failed |= judge(f"{label} rebuilt", in_parallel(rebuilt, good), good)
        failed |= judge(f"{label} dumped", in_parallel(
            lambda path: dump_problem(epctx, wanted[path], path), good), good)
    return failed


def main():
    if len(sys.argv) < 4 or sys.argv[1] not in ("whole", "damaged", "refused"):
        sys.exit(__doc__)
    mode, epctx = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as folder:
        if mode == "whole":
            failed = whole(epctx, sys.argv[3:], folder)
        else:
            failed = damaged(epctx, int(sys.argv[3]), int(sys.argv[4]), sys.argv[5:], folder,
                             mode == "refused")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
