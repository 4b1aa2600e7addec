#!/bin/sh
# epctx-conformance: every rule holds for the reference NPU, the toy, the device of five operators,
# also where it takes less, and the EP of the afternoon guide; each fault of tests/faults.txt,
# planted in tests/ort/bad_ep.c, is found, and the rule that it breaks is named. A quick run tries
# one EP and a sample of the faults.
# runs: once
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
start conformance
out=$work/out err=$work/err
program=$build/epctx-conformance
if ! [ -x "$program" ] || ! [ -e "$build/libtoy_ep.so" ]; then
    echo "skip conformance: $program is not built"
    exit 0
fi
EPCTX_TOY_EP=$build/libtoy_ep.so
export EPCTX_TOY_EP

# ---------------------------------------------------------------- good EPs

# files_are_right NAME: of the last run, $work/report.xml and $work/badge.json.
files_are_right() {
    if "$python" -B tests/judge/junit.py "$work/report.xml" "$work/badge.json" "$code" \
        >"$work/log" 2>&1; then
        ok "conformance JUnit and badge of $1"
    else
        fail "conformance JUnit and badge of $1" "$(head -n 3 "$work/log")"
    fi
    rm -f "$work/report.xml" "$work/badge.json"
}
into_files="--junit $work/report.xml --badge $work/badge.json"

# passes NAME LIBRARY COUNT ARGUMENT...: nothing fails, and at least so many rules apply.
passes() {
    ep=$1 library=$2 least=$3
    shift 3
    # shellcheck disable=SC2086 # options
    "$program" "$library" --json $into_files "$@" >"$out" 2>"$err"
    code=$?
    files_are_right "$ep"
    passed=$(sed -n 's/.*"passed": \([0-9]*\).*/\1/p' "$out")
    if [ $code -eq 0 ] && [ "${passed:-0}" -ge "$least" ]; then
        ok "conformance $ep: $passed rules hold"
    else
        fail "conformance $ep" "exit code $code, $passed rules hold, expected at least $least: $(
            grep -m 1 '"failed", ' "$out")"
    fi
}

passes toy "$build/libtoy_ep.so" 200
judged=$(grep -c '"verdict": ' "$out")
if [ "$judged" -eq "$("$program" --rules | wc -l)" ]; then
    ok "conformance every rule has a verdict"
else
    fail "conformance every rule has a verdict" "$judged verdicts"
fi
if "$python" -c "
import json, sys
json.load(open(sys.argv[1]))" "$out" >"$work/log" 2>&1; then
    ok "conformance the report as JSON can be read"
else
    fail "conformance the report as JSON can be read" "$(tail -n 1 "$work/log")"
fi
if ! quick; then
    headers=$(sh tests/deps.sh where ort-headers)
    mkdir -p "$work/my_ep"
    # shellcheck disable=SC2046 # a list of files
    if ! ${CC:-gcc} -shared -fPIC -fvisibility=hidden -DEPCTX_NO_WIRE -I. -Iexamples/plugin_ep \
        -isystem "$headers" examples/my_ep/device_mine.c \
        $(find examples/plugin_ep -name '*.c' ! -name 'device_*') -o "$work/my_ep/libmine_ep.so" \
        >"$out" 2>"$err"; then
        fail "conformance my_ep" "it does not build"
    fi
    passes my_ep "$work/my_ep/libmine_ep.so" 170
    [ ! -e "$build/libepctx_ep.so" ] || passes npu "$build/libepctx_ep.so" 205
    [ ! -e "$build/libfive_ep.so" ] || passes five "$build/libfive_ep.so" 200
fi

# EPs that take little: of int8, one node of a graph, nothing but a model of the user. Most rules
# are judged, and an EP whose every output is wrong fails. With nothing to try it with, none is.
"$python" - "$work/mine.onnx" <<'EOF' || fail "conformance mine.onnx" "it cannot be made"
import sys
from onnx import TensorProto, helper, save

def weight(name, *dims):
    count = 1
    for dim in dims:
        count *= dim
    return helper.make_tensor(name, TensorProto.FLOAT, dims,
                              [(i * 7 % 17 - 8) / 16 for i in range(count)])

def end(name, *dims):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)

nodes = [helper.make_node("Gemm", ["x", "w", "b"], ["a"], "mine0"),
         helper.make_node("Relu", ["a"], ["r"], "mine1"),
         helper.make_node("MatMul", ["r", "v"], ["m"], "mine2"),
         helper.make_node("Sigmoid", ["m"], ["y"], "mine3")]
graph = helper.make_graph(nodes, "g", [end("x", 2, 16)], [end("y", 2, 8)],
                          [weight("w", 16, 12), weight("b", 12), weight("v", 12, 8)])
save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]),
     sys.argv[1])
EOF
# narrow NAME PASSED ARGUMENT...
narrow() {
    EPCTX_FIVE_TAKES=$1 least=$2
    export EPCTX_FIVE_TAKES
    shift 2
    quick || passes "$EPCTX_FIVE_TAKES" "$build/libfive_ep.so" "$least" "$@"
    EPCTX_TOY_EP=$build/libfive_ep.so EPCTX_BAD_EP=all_wrong "$program" "$build/libbad_ep.so" \
        --only PLG-009 "$@" >"$out" 2>"$err"
    code=$?
    said "conformance $EPCTX_FIVE_TAKES: wrong outputs are found" 1 "differ from the CPU EP's"
}
if [ -e "$build/libfive_ep.so" ]; then
    narrow int8_conv 190
    narrow one_mul 185
    narrow named 185 --model "$work/mine.onnx"
    "$program" "$build/libfive_ep.so" --junit "$work/nothing.xml" --badge "$work/badge.json" \
        --json >"$out" 2>"$err"
    code=$?
    cp "$work/nothing.xml" "$work/report.xml"
    files_are_right "an EP that is not judged"
    if "$python" - "$out" "$work/nothing.xml" $code >"$work/log" 2>&1 <<'EOF'
import json, sys, xml.dom.minidom
report = json.load(open(sys.argv[1]))
open_ones = [r for r in report["rules"] if r["verdict"] == "not_judged"]
assert sys.argv[3] == "4", f"expected exit code 4, found {sys.argv[3]}"
assert report["failed"] == 0 and report["not_judged"] == len(open_ones) > 150, report["not_judged"]
assert "--model" in open_ones[0]["text"], open_ones[0]
skipped = xml.dom.minidom.parse(sys.argv[2]).getElementsByTagName("skipped")
marked = [s for s in skipped if s.getAttribute("message").startswith("not judged: ")]
assert len(marked) == len(open_ones), f"JUnit: {len(marked)} of {len(open_ones)} are not judged"
EOF
    then ok "conformance an EP that nothing is known to try with is not judged"; else
        fail "conformance an EP that nothing is known to try with" "$(tail -n 1 "$work/log")"
    fi
    unset EPCTX_FIVE_TAKES
else
    echo "skip conformance of EPs that take little: libfive_ep.so is not built"
fi

# ------------------------------------------------------------ the command line

# command NAME CODE TEXT ARGUMENT...
command_line() {
    name="conformance $1" want=$2 text=$3
    shift 3
    "$program" "$@" >"$out" 2>"$err"
    code=$?
    said "$name" "$want" "$text"
}
command_line "no library" 2 "usage"
command_line "a library that is not there" 2 "No such file" "$work/none.so"
command_line "an unknown option" 2 "usage" "$EPCTX_TOY_EP" --nothing
command_line "an option without its value" 2 "--junit: a value is missing" "$EPCTX_TOY_EP" \
    --junit
command_line "an EP option without a value" 2 "expected --ep-opt KEY=VALUE" "$EPCTX_TOY_EP" \
    --ep-opt nonsense
# shellcheck disable=SC2046 # many words
command_line "too many EP options" 2 "more than 255 --ep-opt" "$EPCTX_TOY_EP" \
    $(seq -f '--ep-opt k%.0f=1' 256)
command_line "a time limit that is none" 2 "expected --timeout SECONDS" "$EPCTX_TOY_EP" --timeout 0
command_line "a tolerance that is none" 2 "expected --tolerance PART" "$EPCTX_TOY_EP" --tolerance 1
command_line "a report in no folder" 2 "its folder does not exist" "$EPCTX_TOY_EP" \
    --junit "$work/none/x.xml"
command_line "a badge in no folder" 2 "its folder does not exist" "$EPCTX_TOY_EP" \
    --badge "$work/none/x.json"
command_line "an unknown rule" 2 "no rule 'EPC-999'" "$EPCTX_TOY_EP" --only EPC-999
command_line "no ONNX Runtime" 2 "cannot open shared object" "$EPCTX_TOY_EP" --ort "$work/none.so"
command_line "a folder without ONNX Runtime" 2 "it holds no libonnxruntime.so.1" \
    "$EPCTX_TOY_EP" --ort "$work"
command_line "the folder of ONNX Runtime" 0 "" "$EPCTX_TOY_EP" --only PLG-001 \
    --ort "$(dirname "$(sh tests/deps.sh where ort)")"
whole=$(cd "$(dirname "$program")" && pwd)/$(basename "$program")
# outside CACHE: what it says without the source tree.
outside() {
    (cd "$work" && unset EPCTX_ORT_LIBRARY && EPCTX_CACHE=$1 "$whole" "$EPCTX_TOY_EP" \
        --only PLG-001) >"$out" 2>"$err"
    code=$?
}
outside "$work/none"
said "conformance no ONNX Runtime outside the source tree" 2 \
    "there is none in $work/none; name it with --ort"
if [ "$(wc -l <"$err")" -eq 1 ]; then ok "conformance nothing else is said of it"; else
    fail "conformance nothing else is said of it" "$(cat "$err")"
fi
mkdir "$work/fetched"
ln -s "$(dirname "$(sh tests/deps.sh where ort)")" "$work/fetched/onnxruntime-1.99.0-$(uname -m)"
outside "$work/fetched"
said "conformance the fetched ONNX Runtime outside the source tree" 0 ""
command_line "no name behind the colon" 2 "a name is missing behind the colon" "$EPCTX_TOY_EP:"
command_line "an EP that the library has not" 4 "lists no device here of Other" \
    "$EPCTX_TOY_EP" Other --only PLG-050
command_line "an EP option that the EP refuses" 1 "has no option 'nonsense'" \
    "$EPCTX_TOY_EP" --ep-opt nonsense=1 --only PLG-032
${CC:-gcc} -shared -x c /dev/null -o "$work/libempty.so"
command_line "no plugin" 1 "CreateEpFactories is not exported" "$work/libempty.so" --only PLG-001
echo '#include <stdlib.h>
__attribute__((constructor)) static void leave(void) { exit(0); }' >"$work/leaves.c"
${CC:-gcc} -shared -fPIC "$work/leaves.c" -o "$work/libleaves.so"
command_line "a library that ends the process" 1 "ended with exit code 0" "$work/libleaves.so" \
    --only PLG-001
echo '#include <unistd.h>
__attribute__((constructor)) static void hang(void) { sleep(60); }' >"$work/hangs.c"
${CC:-gcc} -shared -fPIC "$work/hangs.c" -o "$work/libhangs.so"
mkdir "$work/tmp"
# ended WORD...: in its second second, by SIGTERM, wherever it is then.
ended() {
    TMPDIR=$work/tmp timeout 2 "$program" "$@" --only PLG-001 >"$out" 2>"$err"
    code=$?
    tries=0
    while [ $tries -lt 50 ] && pgrep -f "$work/libhangs.so" >/dev/null; do
        sleep 0.1
        tries=$((tries + 1))
    done
    if [ $code -ne 124 ] || [ -n "$(ls -A "$work/tmp")" ] || [ $tries -eq 50 ]; then
        fail "conformance SIGTERM" "exit code $code, a folder or a process stays"
    else ok "conformance SIGTERM: nothing is left of $*"; fi
}
ended "$work/libhangs.so"
ended "$EPCTX_TOY_EP" --ort "$work/libhangs.so"
command_line "an ONNX Runtime that does not load" 2 "it did not load within 1 seconds" \
    "$EPCTX_TOY_EP" --timeout 1 --ort "$work/libhangs.so"
# hangs NAME LIBRARY STEP: one experiment waits, the others know.
hangs() {
    timeout 20 "$program" "$2" --timeout 1 --only "PLG-001 PLG-041 PLG-050" >"$out" 2>"$err"
    code=$?
    said "conformance $1" 1 "$3 hung in the experiment '"
}
hangs "a library that hangs when it is loaded" "$work/libhangs.so" "loading the library"
EPCTX_BAD_EP=registration_hangs hangs "a registration that hangs" "$build/libbad_ep.so" registration
echo keep >"$work/old.xml"
TMPDIR=$work/none "$program" "$EPCTX_TOY_EP" --junit "$work/old.xml" --only PLG-001 >"$out" 2>"$err"
code=$?
said "conformance a run that does not come to its end" 2 "No such file"
if [ "$(cat "$work/old.xml")" = keep ]; then ok "conformance it leaves the old report"; else
    fail "conformance it leaves the old report" "$(cat "$work/old.xml")"
fi
"$program" "$EPCTX_TOY_EP" --only PLG-001 >/dev/full 2>"$err"
code=$?
: >"$out"
said "conformance a report that cannot be written" 2 "the report: "

# ------------------------------------------------------------ the EP's names

# registered NAME WORD...: the library is registered as NAME, which this EP takes for its own.
registered() {
    want=$1
    shift
    EPCTX_BAD_EP=registered_name "$program" "$@" --only PLG-007 >"$out" 2>"$err"
    code=$?
    said "conformance $(basename "$1")${2:+ $2} is registered as $want" "$code" "EP          $want,"
}
mkdir "$work/links"
ln -s "$(cd "$build" && pwd)/libbad_ep.so" "$work/links/libonnxruntime_providers_qnn.so"
registered conformance "$build/libbad_ep.so"
registered AcmeExecutionProvider "$build/libbad_ep.so:AcmeExecutionProvider"
registered AcmeExecutionProvider "$build/libbad_ep.so" AcmeExecutionProvider
registered QNNExecutionProvider "$work/links/libonnxruntime_providers_qnn.so"

# -------------------------------------------------------- what the EP prints

EPCTX_BAD_EP=prints "$program" "$build/libbad_ep.so" --json --only PLG-041 >"$out" 2>"$err"
if "$python" -c "
import json, sys
json.load(sys.stdin)" <"$out" 2>"$work/log" && ! grep -q diary "$out" "$err"; then
    ok "conformance what the EP prints stays out of the report"
else
    fail "conformance what the EP prints stays out of the report" \
        "$(tail -n 1 "$work/log") $(grep -m 1 diary "$out" "$err")"
fi

# ------------------------------------------------------ the models of the user

make_models plain dynamic
echo none >"$work/none.onnx"
"$program" "$EPCTX_TOY_EP" --model "$work/plain.onnx" --model "$work/none.onnx" --json \
    --junit "$work/models.xml" --only EPC-119 >"$out" 2>"$err"
code=$?
if "$python" - "$out" "$work/models.xml" "$code" >"$work/log" 2>&1 <<'EOF'
import json, sys, xml.dom.minidom
report = json.load(open(sys.argv[1]))
verdicts = [(m["model"].split("/")[-1], m["verdict"]) for m in report["models"]]
wanted = [("plain.onnx", "passed"), ("none.onnx", "not_judged")]
assert verdicts == wanted, f"JSON: expected {wanted}, found {verdicts}"
assert any("CPU EP" in f["text"] for f in report["models"][1]["findings"]), report["models"][1]
suite = xml.dom.minidom.parse(sys.argv[2]).documentElement
cases = suite.getElementsByTagName("testcase")
marks = [len(c.getElementsByTagName("skipped")) for c in cases
         if c.getAttribute("classname") == "model"]
assert marks == [0, 1], f"JUnit: expected one model of two skipped, found {marks}"
assert int(suite.getAttribute("tests")) == len(cases), f"JUnit: {len(cases)} cases, not as in tests"
assert sys.argv[3] == "4", f"expected exit code 4, found {sys.argv[3]}"
EOF
then
    ok "conformance each model has a verdict of its own"
else
    fail "conformance each model has a verdict of its own" "$(tail -n 1 "$work/log")"
fi
EPCTX_BAD_EP=fixed_shape "$program" "$build/libbad_ep.so" --model "$work/plain.onnx" \
    --model "$work/dynamic.onnx" --only EPC-119 >"$out" 2>"$err"
code=$?
said "conformance a good model beside another" 1 "passed          $work/plain.onnx"
said "conformance a failing model behind another" 1 "FAILED          $work/dynamic.onnx"
said "conformance their sums" 1 "models: 1 passed, 1 failed, 0 not applicable"

# ------------------------------------------------------------------ the table

"$program" --rules | tr '\t' '|' | sed 's/^/| /; s/|\([^|]*\)$/ | \1 |/' >"$work/table"
grep -E '^\| (EPC|PLG|API)-' examples/conformance/README.md >"$work/documented"
if cmp -s "$work/table" "$work/documented"; then
    ok "conformance the README has the program's $(wc -l <"$work/table") rules"
else
    fail "conformance the README has the program's rules" \
        "$(diff "$work/table" "$work/documented" | head -n 3)"
fi

# --------------------------------------------------------- the workflow example

# Its YAML is read, and what it runs of this project is here.
"$program" --help >"$out" 2>"$work/usage"
if ! /usr/bin/python3 -c 'import yaml' 2>/dev/null; then
    echo "skip conformance workflow.yml: python3-yaml is not here"
elif /usr/bin/python3 - examples/conformance/workflow.yml "$work/usage" >"$work/log" 2>&1 <<'EOF'
import re, sys, yaml
steps = yaml.safe_load(open(sys.argv[1]))["jobs"]["conformance"]["steps"]
usage, rules = open(sys.argv[2]).read(), open("Makefile").read() + open("tests/build.mk").read()
seen = set()
for step in steps:
    if step.get("working-directory") != "epctx":
        continue
    for line in step["run"].splitlines():
        for goal in re.findall(r"\bmake ([\w-]+)", line):
            assert re.search(rf"^{goal}:", rules, re.M), f"make {goal}"
            seen.add("make")
        for kind in re.findall(r"sh tests/deps.sh (\w+)", line):
            assert f"    {kind})" in open("tests/deps.sh").read(), f"tests/deps.sh {kind}"
            seen.add("deps")
        if "build/epctx-conformance" in line:
            words = re.findall(r"--[\w-]+", line)
            assert words and all(f"[{w} " in usage for w in words), words
            seen.add("program")
assert seen == {"make", "deps", "program"}, seen
assert any("upload-artifact" in step.get("uses", "") for step in steps), "no artifact"
EOF
then ok "conformance workflow.yml runs what there is"; else
    fail "conformance workflow.yml runs what there is" "$(tail -n 1 "$work/log")"
fi

# --------------------------------------------------------------------- faults

callbacks=$("$program" --rules | awk '/^API-/ { print $1 }' | tr '\n' ' ')

# good_for FAULT: the EP to plant it in, which is not the toy where that has nothing to break: no
# constants of lower rank, no weightless contexts.
good_for() {
    case $1 in
    broadcast_by_channel | weight* | source_*) echo "$build/libepctx_ep.so" ;;
    *) echo "$EPCTX_TOY_EP" ;;
    esac
}

# found FAULT RULE: the rule has failed, or is broken by the event of another one that has; with "?"
# it has a remark. What an application's callback or a weightless context is about breaks no other.
found() {
    rule=${2%\?} good=$(good_for "$1") only=${2%\?}
    case $rule in API-*) only=$callbacks ;; esac
    if ! [ -e "$good" ]; then
        echo "skip conformance $1: $good is not built"
        return
    fi
    EPCTX_TOY_EP=$good EPCTX_BAD_EP=$1 "$program" "$build/libbad_ep.so" --only "$only" >"$out" \
        2>"$err"
    failed=$(awk '/^FAILED/ { print $2 }' "$out" | tr '\n' ' ')
    if [ "$only" != "$rule" ] && [ "$failed" != "$rule " ]; then
        fail "conformance $1" "$rule should have failed, and nothing else; failed: $failed"
    elif grep -q "^FAILED  *$rule " "$out"; then
        ok "conformance $1 breaks $rule"
    elif grep -A 1 "^not judged  *$rule " "$out" | grep -q "what is reported at" &&
        grep -q '^FAILED' "$out"; then
        ok "conformance $1 breaks $rule, by an event that another rule reports"
    elif [ "$rule" != "$2" ] && grep -A 1 "^passed  *$rule " "$out" | grep -q '^  '; then
        ok "conformance $1: a remark on $rule"
    else
        fail "conformance $1" "$rule should have failed; failed: $failed"
    fi
}

# style NAME RULES PASSED: EPs may be so; that many of these rules hold.
style() {
    EPCTX_TOY_EP=$(good_for "$1") EPCTX_BAD_EP=$1 "$program" "$build/libbad_ep.so" --only "$2" \
        >"$out" 2>"$err"
    code=$?
    held=0
    for rule in $2; do
        grep -q "^passed  *$rule " "$out" && held=$((held + 1))
    done
    if [ $code -eq 0 ] && [ $held -eq "$3" ]; then
        ok "conformance an EP that is $1"
    else
        fail "conformance an EP that is $1" "exit code $code, $held of $3 rules hold: $(grep -m 1 \
            -A 1 '^FAILED' "$out")"
    fi
}
style only_embeds "EPC-014 EPC-025 EPC-061 EPC-062 EPC-094 EPC-104" 5
style pads_binary "EPC-114 EPC-115" 2
style count_kept PLG-031 1
style data_flags_0 "$callbacks" 2 # the toy is not weightless either
style data_flags_1 "$callbacks" 7
style data_flags_2 "$callbacks" 6
style data_flags_3 "$callbacks" 10
[ ! -e "$build/libepctx_ep.so" ] || style weights_in_source "$callbacks" 15
style only_virtual "EPC-003 EPC-025 PLG-003 PLG-022 PLG-041" 5

# Results of a few bits are right to who says so, and to nobody else.
coarse() {
    EPCTX_BAD_EP=coarse "$program" "$build/libbad_ep.so" --only PLG-009 "$@" >"$out" 2>"$err"
}
if coarse; then fail "conformance --tolerance" "five bits are enough without it"; else
    if coarse --tolerance 0.1; then ok "conformance --tolerance"; else
        fail "conformance --tolerance" "0.1 is not enough: $(grep -A 1 ^FAILED "$out")"
    fi
fi

# What others follow from is the first in each report.
EPCTX_BAD_EP=all_wrong "$program" "$build/libbad_ep.so" --junit "$work/root.xml" \
    --badge "$work/badge.json" --only "EPC-003 EPC-062 PLG-009" >"$out" 2>"$err"
code=$?
cp "$work/root.xml" "$work/report.xml"
files_are_right "failures"
EPCTX_BAD_EP=all_wrong "$program" "$build/libbad_ep.so" --json >"$work/root.json" 2>"$err" \
    --only "EPC-003 EPC-062 PLG-009"
if "$python" - "$out" "$work/root.json" "$work/root.xml" >"$work/log" 2>&1 <<'EOF'
import json, re, sys, xml.dom.minidom
text = open(sys.argv[1]).read()
rows = re.findall(r"^(?:FAILED|passed|not \w+) +(\S+)", text, re.M)
failed = re.findall(r"^FAILED +(\S+)", text, re.M)
assert rows[0] == "PLG-009" and len(failed) > 2, f"text: {rows[0]} is the first, {failed} fail"
assert "begin here" in text.split("\nFAILED")[1], "text: nothing says where to begin"
report = json.load(open(sys.argv[2]))
assert report["root"] == report["rules"][0]["rule"] == "PLG-009", f"JSON: {report['root']}"
case = xml.dom.minidom.parse(sys.argv[3]).getElementsByTagName("testcase")[0]
assert case.getAttribute("name").startswith("PLG-009"), f"JUnit: {case.getAttribute('name')}"
assert len(rows) == len(set(rows)) == len(report["rules"]), "a rule is there twice, or lacks"
EOF
then ok "conformance the root of many failures comes first"; else
    fail "conformance the root of many failures comes first" "$(tail -n 1 "$work/log")"
fi
# So is what ended the probe, where it is the only failure, too.
# probe_ends FAULT RULE CALL: little of the EP is known then, and nothing that lacks is its choice.
probe_ends() {
    EPCTX_BAD_EP=$1 "$program" "$build/libbad_ep.so" --json >"$work/root.json" 2>"$err"
    EPCTX_BAD_EP=$1 "$program" "$build/libbad_ep.so" >"$out" 2>"$err"
    if "$python" - "$out" "$work/root.json" "$2" "$3" >"$work/log" 2>&1 <<'EOF'
import json, re, sys
text, report, rule, call = open(sys.argv[1]).read(), json.load(open(sys.argv[2])), *sys.argv[3:]
rows = re.findall(r"^(?:FAILED|not judged) .*\n(?: {16}.*\n)*", text, re.M)
assert rows[0].startswith("FAILED          " + rule), f"text: the first is {rows[0]}"
assert f" {call}; expected a result" in rows[0], f"text: not in which call: {rows[0]}"
begin = re.search(r"begin here: (\d+) rules could not be judged because of it", rows[0])
words = ("the probe, which", "the EP could not be opened", "probe: not reached", "not tried: ")
told = sum(any(w in row for w in words) for row in rows[1:] if row.startswith("not judged"))
assert begin and int(begin[1]) == told > 100, f"text: {rows[0]}: {told} rules say so"
assert report["root"] == report["rules"][0]["rule"] == rule, f"JSON: {report['root']}"
EOF
    then ok "conformance $1: the root is what ended the probe"; else
        fail "conformance $1: the root is what ended the probe" "$(tail -n 1 "$work/log")"
    fi
}
probe_ends dies_in_sessions PLG-008 "while ONNX Runtime created the session"
probe_ends dies_at_compile PLG-010 "while ONNX Runtime compiled the model"
probe_ends dies_at_registration PLG-041 "during registration"
# Nothing loads: that it is not found where it is comes before what threads and others see of it.
EPCTX_BAD_EP=needs_current_folder "$program" "$build/libbad_ep.so" --json \
    --only "EPC-002 EPC-003 EPC-104 EPC-119 PLG-032" >"$out" 2>"$err"
code=$?
said "conformance the root where nothing loads" 1 '"root": "EPC-104"'
said "conformance why nothing loads" 1 "it says the same without the binary"
said "conformance no time of what does not load" 1 "no session to take the time of"
# Counted, whenever it would have crashed.
EPCTX_BAD_EP=thread_left "$program" "$build/libbad_ep.so" --only PLG-049 >"$out" 2>"$err"
code=$?
said "conformance a thread that is left" 1 "1 thread more after unregistration"

# What a rule failed on is kept: the program shows it again, without the suite, and a good EP passes
# it. AGAIN=all tries every fault, which takes a quarter of an hour.
mkdir "$work/kept"
kept="all_wrong dies_in_sessions dies_on_scalar claims_relu data_other_name data_read_words"
kept="$kept first_graph early_binary"
quick && kept="all_wrong dies_in_sessions data_read_words first_graph"
[ "${AGAIN:-}" != all ] || kept=
# shellcheck disable=SC2086 # a list of names
"$python" -B tests/judge/again.py "$program" "$build" "$work/kept" $kept || status=1
again=$(find "$work/kept/all_wrong" -path '*PLG-009/again.py')
EPCTX_BAD_EP=all_wrong "$python" -B "$again" >"$out" 2>&1
code=$?
said "conformance a kept program says who runs it" 1 "$("$python" -c '
import sys, onnxruntime
print(f"{sys.executable}, ONNX Runtime {onnxruntime.__version__}")')"
said "conformance a kept program says what is wrong" 1 ": expected 0, found 1"
said "conformance a kept program says what the suite found" 1 "The suite: outputs differ"
said "conformance a kept program says what it does" 1 "session of src/m.onnx {}: done"
/usr/bin/env -i /usr/bin/python3 -S "$again" >"$out" 2>&1
code=$?
said "conformance a kept program without ONNX Runtime" 2 "pip install numpy onnxruntime"
EPCTX_BAD_EP=lazy_creation "$program" "$build/libbad_ep.so" --only PLG-032 \
    --keep "$work/kept/lazy" >"$out" 2>"$err"
code=$?
said "conformance the report says what a kept program cannot show" 1 \
    "PLG-032/again.py (again.py cannot show it: needs threads)"
dies=$(find "$work/kept/dies_in_sessions" -path '*PLG-008/again.py')
EPCTX_BAD_EP=dies_in_sessions "$python" -B "$dies" >"$out" 2>"$err"
code=$?
: >"$err"
tail -n 2 "$out" >"$work/last"
cp "$work/last" "$out"
said "conformance a kept program that crashes says as what it registered" 134 \
    "libbad_ep.so as conformance: done"
if [ "$(tail -n 1 "$out")" = "session of src/probe.onnx {}: " ]; then
    ok "conformance a kept program that crashes says in which step"
else
    fail "conformance a kept program that crashes says in which step" "$(tail -n 1 "$out")"
fi
mkdir "$work/moved"
sed 's|/libbad_ep\.so|/libmoved_ep.so|' "$again" >"$work/moved/again.py"
"$python" -B "$work/moved/again.py" >"$out" 2>&1
code=$?
said "conformance a kept program whose library is not there" 2 "cannot try: the library "
said "conformance it says why" 2 "/libmoved_ep.so does not load: "
EPCTX_TOY_EP='' EPCTX_BAD_EP=all_wrong "$python" -B "$again" >"$out" 2>&1
code=$?
said "conformance a kept program whose library is refused" 2 "is not registered: "
command_line "a folder for failures that is there" 2 "File exists" "$EPCTX_TOY_EP" \
    --keep "$work/kept"

# not_judged NAME LIBRARY RULE TEXT: this machine is in the way, no rule fails.
not_judged() {
    EPCTX_BAD_EP=$1 "$program" "$2" --only "$3" >"$out" 2>"$err"
    code=$?
    if ! grep -q "^not judged  *$3 " "$out"; then code="$code, and $3 is judged"; fi
    if [ "$code" = 4 ] && grep -qF "$4" "$out"; then ok "conformance $1: $3 is not judged"; else
        fail "conformance $1: $3 is not judged" \
            "expected exit code 4 and '$4', found exit code $code: $(grep -A 1 " $3 " "$out")"
    fi
}
not_judged only_compiles "$build/libbad_ep.so" PLG-010 "CompileModel on the virtual device"
not_judged no_sharing_here "$build/libbad_ep.so" EPC-159 "supported on this platform"
echo 'extern int other(void); int (*needs)(void) = other;' >"$work/needs.c"
echo 'int other(void) { return 0; }' >"$work/other.c"
${CC:-gcc} -shared -fPIC "$work/other.c" -o "$work/libother.so"
${CC:-gcc} -shared -fPIC "$work/needs.c" -L"$work" -lother -o "$work/libneeds.so"
rm "$work/libother.so"
not_judged "a library that lacks another" "$work/libneeds.so" PLG-001 "libother.so: cannot open"
not_judged "a library that lacks another" "$work/libneeds.so" PLG-041 "libother.so: cannot open"
EPCTX_BAD_EP=prefixed_node "$program" "$build/libbad_ep.so" --only EPC-080 >"$out" 2>"$err"
if [ "$(grep -c ^FAILED "$out")" -eq 1 ]; then ok "conformance one event is one failure"; else
    fail "conformance one event is one failure" "$(grep ^FAILED "$out")"
fi
EPCTX_BAD_EP=always_embeds "$program" "$build/libbad_ep.so" --only API-002 >"$out" 2>"$err"
code=$?
said "conformance always_embeds: why no callback is called" 1 \
    "found 0 calls, and the context is in the node although embed mode 0 was asked for"

quick || passes none "$build/libbad_ep.so" 180
sample=" any_source claims_too_much allocator_of_session keeps_nodes follows_paths stale_binary"
sample="$sample data_transfer nan_spreads leak_per_run nan_to_zero file_per_load named_optimal "
sample="$sample file_per_generation data_flags_7 data_name_tidied data_read_code "
sample="$sample weightless_ignored source_buffer_ignored first_graph always_embeds "
grep -v '^#' tests/faults.txt >"$work/faults"
while read -r name rule words; do
    case "$sample" in
    *" $name "*) ;;
    *) ! quick || continue ;;
    esac
    [ -n "$words" ] && found "$name" "$rule"
done <"$work/faults"
exit $status
