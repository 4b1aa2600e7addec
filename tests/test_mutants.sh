#!/bin/sh
# What mutants.py rests on: a fault of each kind can be put in and changes what a program prints,
# constants and macros are left alone, and lines of mutations.txt that do not fit are told.
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
for line, want in [(good, ""), (row, "")] + bad:
    mutants.lines = lambda: [line]
    found = "; ".join(mutants.check())
    if want not in found or bool(found) != bool(want):
        print(line, "expected:", want, "found:", found)
END
if [ -s "$work/found" ]; then fail "lines" "$(head -n 1 "$work/found")"
else ok "lines of mutations.txt are checked"; fi
exit $status
