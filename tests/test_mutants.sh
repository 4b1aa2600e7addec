#!/bin/sh
# What mutants.py rests on: a fault of each kind can be put in and changes what a program prints,
# constants and macros are left alone, survivors are judged, and lines of mutations.txt and
# mutants_known.txt that do not fit are told.
# runs: once
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
start mutants
command -v clang >/dev/null || {
    echo "skip mutants: clang is not here"
    exit 0
}

cd "$work" || exit 1
cat >sample.c <<'END'
#include <stdbool.h>
#define TWICE(x) ((x) + (x))
enum { RED = 2, BLUE, GREEN };
int table[] = {1, 2};
int boundary(int a) { return a < 3; }
int logic(int a, int b) { return a && b; }
int value(void) { return BLUE; }
bool truth(void) { return true; }
int drop(int a) { a = 7; return a; }
int check(int a) { if (a) return 1; return 2; }
int swap(int a) { return a ? 4 : 5; }
int branches(int a) { if (a) a = 8; else a = 9; return a; }
const char *text(void) { return "é"; }
int constant(int a) {
    static const int fixed = 6;
    char room[2 + 1];
    switch (a) {
    case 1: return TWICE(a + 1);
    default: return fixed + (int)sizeof room;
    }
}
END
cat >main.c <<'END'
#include <stdbool.h>
#include <stdio.h>
int boundary(int a), logic(int a, int b), value(void), drop(int a), check(int a), swap(int a);
int branches(int a), constant(int a);
bool truth(void);
const char *text(void);
int main(void) {
    for (int a = 0; a < 5; a++)
        printf("%d %d %d %d %d %d %d %d %d %d %d\n", boundary(a), logic(a, 0), logic(a, 1), value(),
               truth(), drop(a), check(a), swap(a), branches(a), constant(a), text() != NULL);
    return 0;
}
END
: >epctx.h
echo sample.c >sources
/usr/bin/python3 -B - "$top/tests" "$work" >found 2>&1 <<'END'
import json, os, subprocess, sys
sys.path.insert(0, sys.argv[1])
import mutants, mutants_place
work = sys.argv[2]
open("epm.h", "w").write(mutants_place.SWITCH.replace("LAST", str(1 << mutants_place.BITS)))
subprocess.run([sys.executable, "-B", sys.argv[1] + "/mutants_place.py", work, "clang", "-std=c11",
                "-c", "sample.c", "-o", "sample.o"], check=True)
subprocess.run(["clang", "-std=c11", "main.c", "sample.o", "-o", "program"], check=True)
def says(**environment):
    return subprocess.run(["./program"], env=dict(os.environ, **environment), check=False,
                          capture_output=True).stdout
with open("log", "wb") as log:
    log.truncate(1 << mutants_place.BITS)
usual, log = says(EPCTX_FAULT_LOG=work + "/log"), open("log", "rb").read()
faults = [mutants.Fault("sample.c", f) for f in json.load(open("src/sample.c.json"))["faults"]]
kinds = {f.kind for f in faults}
for kind in "boundary check drop logic number return swap value".split():
    if kind not in kinds:
        print("no fault of kind", kind)
for fault in faults:
    if not log[fault.number]:
        print("not reached:", fault)
    if says(EPCTX_FAULT=str(fault.number)) == usual:
        print("changes nothing:", fault)
odd = [f for f in faults if f.function in (None, "constant") and f.kind != "return"]
for fault in odd:
    print("of a constant or a macro:", fault)
END
if [ -s found ]; then fail "faults" "$(head -n 1 found)"; else ok "faults of each kind"; fi

cat >judged.c <<'END'
#include <stddef.h>
int judged(int a, const int *p) {
    if (p == NULL) return -1;
    if (!call(a) || (a > 1 && other(p) != EPCTX_OK)) {
        a = 0;
        return 0;
    }
    if (!has_more(a)) return 0;
    if (!call(a)) a = 3;
    if (a < 5) return 0;
    if (a > 9) return 0; /* not taken: nobody has so many */
    return a;
}
END
/usr/bin/python3 -B - "$top/tests" >found 2>&1 <<'END'
import sys
sys.path.insert(0, sys.argv[1])
import mutants
def fault(line, text, kind="check", cases=True):
    made = mutants.Fault("judged.c", [0, 0, 1, kind, "judged", "", line, text])
    made.cases = [mutants.Case("test_x", "one", ())] if cases else []
    return made
reasons = {("judged.c", "judged", "check", "a < 5"): "that is why"}
for made, who, want in [
        (fault(3, "p == NULL"), None, "handed on"), (fault(3, "p == NULL"), "test_x", "noticed"),
        (fault(3, "p == NULL", cases=False), None, "not reached"),
        (fault(3, "p == NULL", kind="boundary"), None, "survivor"),
        (fault(4, "!call(a) || (a > 1 && other(p) != EPCTX_OK)"), None, "handed on"),
        (fault(8, "!has_more(a)"), None, "survivor"), (fault(9, "!call(a)"), None, "survivor"),
        (fault(10, "a < 5"), None, "explained"), (fault(10, "a < 5", "drop"), None, "survivor"),
        (fault(11, "a > 9", cases=False), None, "explained"),
        (fault(11, "a > 9"), None, "survivor")]:
    found = mutants.judge(made, who, reasons)[0]
    if found != want:
        print(made, "expected:", want, "found:", found)
    if mutants.survived(made, f"{found} judged.c:77: {made.words()} (test_x)") != (
            found in ("survivor", "not reached")):
        print(made, "is tried again, or is not:", found)
END
if [ -s found ]; then fail "verdicts" "$(head -n 1 found)"; else ok "verdicts"; fi

cd "$top" || exit 1
/usr/bin/python3 -B - >"$work/found" 2>&1 <<'END'
import sys
sys.path.insert(0, "tests")
import mutants
good = ("EPC-005", "epctx.h", "epctx_view_is_epnode", "test_epnode")
row = ("EPC-037", "epctx.h", "EPCTX_OPTION_LIST[CONTEXT_ENABLE]", "test_option")
bad = [(good[:1] + ("nothing.h",) + good[2:], "no file"), (good[:2] + ("epctx_nothing",) + good[3:],
       "no function"), (good[:3] + ("test_nothing",), "no test"), (good[:3] + ("test_path",),
       "does not name"), (row[:2] + ("EPCTX_OPTION_LIST[NOTHING]",) + row[3:], "no function")]
calls = {file: mutants.read(file).count(" 0(") for file in ("epctx.h", "epctx_npu.h")}
for file, place in {(p[1], p[2]) for p in mutants.lines() if "[" in p[2] and p[1] in calls}:
    faults = list(mutants.table_faults(file, place))
    if not faults or any(text.count(" 0(") != calls[file] for _, text in faults):
        print(place, "expected: faults that compile, found:", [words for words, _ in faults])
for line, want in [(good, ""), (row, "")] + bad:
    mutants.lines = lambda: [line]
    found = "; ".join(mutants.check())
    if want not in found or bool(found) != bool(want):
        print(line, "expected:", want, "found:", found)
key = ("epctx.h", "epctx__scan_word", "check", "byte < 0")
for row, want in [(key, 0), (("nothing.h",) + key[1:], 1), (key[:1] + ("nothing",) + key[2:], 1),
                  (key[:3] + ("byte < 1",), 1)]:
    mutants.known = lambda: {row: "why"}
    if len(list(mutants.check_known())) != want:
        print(row, "expected:", want, "found:", list(mutants.check_known()))
fault = mutants.Fault("epctx.h", [0, 0, 1, "check", "epctx__scan_word", "", mutants.read(
    "epctx.h").split("static epctx_status epctx__scan_word(")[0].count("\n") + 1, ""])
for glob, want in [("epctx.h", True), ("*", True), ("epctx.h:scan:*", True),
                   ("*:epctx__scan_word", True), ("epctx.h:wire:*", False), ("*.c", False)]:
    if fault.is_in(glob) != want:
        print(glob, "expected:", want)
import os
import tempfile
with tempfile.TemporaryDirectory() as build:
    made = ["obj/header/epctx.o", "plugin/examples/plugin_ep/epctx.o"]
    for name in made + ["obj/header/epctx_npu.o", "plugin/examples/plugin_ep/load.o"]:
        os.makedirs(os.path.dirname(f"{build}/{name}"), exist_ok=True)
        mutants.write(f"{build}/{name}", "")
    gone = [n for n in mutants.made_of("epctx.h", "test_x", build) if os.path.exists(n)]
    if sorted(gone) != sorted(f"{build}/{name}" for name in made):
        print("made of epctx.h, expected:", made, "found:", gone)
END
if [ -s "$work/found" ]; then fail "lines" "$(head -n 1 "$work/found")"
else ok "lines of mutations.txt and mutants_known.txt are checked"; fi
exit $status
