#!/usr/bin/python3
"""What epctx-conformance keeps of the faults of tests/faults.txt: for each rule that fails on such
an EP again.py fails, too, and on the EP without the fault it does not.

    tests/judge/again.py PROGRAM BUILD WORK [FAULT...]      default: every fault

tests/again_known.txt has those that the program cannot show, and must say so, as must the report.
Prints lines of a test script, and "note" with how many were shown.
"""
import json
import os
import subprocess
import sys

LIMIT = 120
OTHER = ("broadcast_by_channel", "weight", "source_")  # the toy has nothing to break there


def read(name):
    with open(name, encoding="utf-8") as file:
        rows = [line.split(None, 2) for line in file if not line.startswith("#")]
    if name.endswith("known.txt"):
        return {f"{row[0]} {row[1]}": row[2] for row in rows}
    return {row[0]: row[1] for row in rows}


def run(words, env, **more):
    try:
        done = subprocess.run(words, env=env, stdout=subprocess.PIPE, check=False, timeout=LIMIT,
                              stdin=subprocess.DEVNULL, **more)
    except subprocess.TimeoutExpired:
        return None, "no end"
    return done.returncode, done.stdout.decode("utf-8", "replace")


def wrong_with(rule, name, env, known):
    """What is wrong with one program, or what the report says of it; None: nothing."""
    again, lacks = rule["again"], rule["again_lacks"]
    if bool(lacks) != bool(known and not known.startswith("(unforeseen)")):
        return f"the report says that again.py lacks {lacks!r}"
    if known.startswith("(shown)"):
        known = ""
    words = [sys.executable, "-B", again]
    code, text = run(words, env, stderr=subprocess.STDOUT)
    if known and (code != 0 or "this script cannot show it" not in text):
        return f"known as not shown, but it is: {text[-300:]!r}"
    if not known and code in (0, 2, None):
        return f"the fault is not shown: {text[-300:]!r}"
    if code == 1 and "Seen again." not in text:
        return f"ended before it had seen anything: {text[-300:]!r}"
    code, text = run(words, {**env, "EPCTX_BAD_EP": "none"}, stderr=subprocess.STDOUT)
    if code != 0:
        return f"exit code {code} without the fault: {text[-300:]!r}"
    return None


def main():
    program, build, work, *only = sys.argv[1:]
    faults, known = read("tests/faults.txt"), read("tests/again_known.txt")
    failed = shown = hidden = 0
    for name in only or faults:
        if faults[name].endswith("?"):
            continue
        good = "libepctx_ep.so" if name.startswith(OTHER) else "libtoy_ep.so"
        env = {**os.environ, "EPCTX_TOY_EP": os.path.join(build, good), "EPCTX_BAD_EP": name}
        if not os.path.exists(env["EPCTX_TOY_EP"]):
            print(f"skip again {name}: {good} is not built")
            continue
        _, text = run([program, os.path.join(build, "libbad_ep.so"), "--only", faults[name],
                       "--keep", os.path.join(work, name), "--json"], env,
                      stderr=subprocess.DEVNULL)
        for rule in json.loads(text)["rules"]:
            if rule["verdict"] != "failed":
                continue
            case = f"{name} {rule['rule']}"
            is_known = known.get(case, "")
            wrong = "nothing was kept" if "again" not in rule else \
                wrong_with(rule, name, env, is_known)
            failed, shown, hidden = failed + bool(wrong), shown + (not is_known), \
                hidden + bool(is_known)
            print(f"FAIL again {case}: {wrong}" if wrong else f"ok again {case}", flush=True)
    print(f"note again: {shown} failures are shown without the suite, {hidden} are not")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
