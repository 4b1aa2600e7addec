#!/bin/sh
# --qnn-system: Qualcomm's own library tells what is in a context binary of QNN. Libraries that lie,
# crash or do not come back (tests/ort/qnn_fake.c) cost a message, never the tool.
# runs: once
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
one_form
start test_qnn_system
out=$work/stdout err=$work/stderr
mkdir "$work/tmp" "$work/in"
TMPDIR=$work/tmp
export TMPDIR
unset EPCTX_QNN_SYSTEM
fake=$work/libQnnSystem.so
flags="-std=c11 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wcast-qual -Wstrict-prototypes"
# shellcheck disable=SC2086 # a list of flags
${CC:-gcc} $flags -Werror -shared -fPIC tests/ort/qnn_fake.c -o "$fake" || {
    echo "FAIL library: tests/ort/qnn_fake.c is not built"
    exit 1
}
cd "$work/in" || exit 1

# A file that looks like a binary of QNN; what the fake library tells of it is its own.
"$python" -c 'import sys
head = bytes([0, 0, 0, 2, 0, 0, 0, 3]) + bytes(24)
text = b"v2.51.0.260929181845\0x;soc_type=SM8750;min_arch=79;"
sys.stdout.buffer.write(head + text + bytes(4000))
' >a.bin
size=$(wc -c <a.bin | tr -d ' ')
# told LIE TEXT...: `info` asks the library, which is asked for a lie; exit code 0 and each text
told() {
    lie=$1 name="a library that tells: $1"
    shift
    EPCTX_QNN_FAKE=$lie "$plain" info --qnn-system "$fake" a.bin >"$out" 2>"$err"
    code=$?
    [ "$code" -eq 0 ] || fail "$name" "exit code $code: $(cat "$err")"
    for text; do
        if ! grep -qF -- "$text" "$out"; then
            fail "$name" "no '$text' in: $(cat "$out" "$err")"
            return
        fi
    done
    if [ -s "$err" ]; then fail "$name" "$(cat "$err")"; else ok "$name"; fi
}
# warned LIE TEXT: the same; it is warned of, and the file alone tells
warned() {
    name="a library that lies: $1"
    EPCTX_QNN_FAKE=$1 "$plain" info --qnn-system "$fake" a.bin >"$out" 2>"$err"
    code=$?
    if [ "$code" -ne 0 ]; then fail "$name" "exit code $code: $(cat "$err")"
    elif ! grep -qF "warning: a binary of $size bytes: asking $fake: $2" "$err"; then
        fail "$name" "no '$2' in: $(cat "$err")"
    elif ! grep -qF "not told by the file" "$out"; then fail "$name" "$(cat "$out")"
    else ok "$name"; fi
}

# It takes the ten seconds that it may take: beside the rest.
(
    EPCTX_QNN_FAKE=hang "$plain" info --qnn-system "$fake" a.bin
    echo "exit code $?"
) >"$work/hang.out" 2>"$work/hang.err" &
hanging=$!

epctx info a.bin
said "a binary of QNN, without the library" 0 "not told by the file"

# -- what it tells --

told "the truth" "version        4.5.6" "SDK            v9.8.7" \
    "backend        HTP, API 1.2.3, core API 1.2.3" "SM8750" "graph          'one', inputs: 2" \
    "input          'a' float16[3,4]" "input          'b' uint16[?,4]" \
    "output         'c' 0x0777[3,4]" "graph          'two'"
told "version 1" "SDK            v2.0" "backend        GPU" "graph          'two'"
told "version 2" "SDK            v2.0" "backend        GPU" "graph          'two'"
told "graph version" "not told by libQnnSystem.so (system API 1.15.0)"
told "tensor version" "graph          'one', inputs and outputs are not told"
told "empty" "version        4.5.6"
told "no names" "graph          ''" "input          '' float16[3,4]"
told "odd name" "graph          '\\x1b[31mred\\x0a'"
told "no shape" "output         'c' 0x0777, no shape"
told "unknown chip" "65000"
told "prints" "graph          'one'"
EPCTX_QNN_FAKE=truth epctx info --qnn-system "$fake" --json a.bin
json "in JSON" 'j["told_by"] == "libQnnSystem.so (system API 1.15.0)" and
    [v["elem_type"] for g in j["graphs"] for v in g["input_values"]] == 2 * [10, 4] and
    j["graphs"][0]["input_values"][1]["type"] == "UFIXED_POINT_16" and
    j["backend"] == "HTP" and j["core_api"] == "1.2.3" and j["chips"] == ["SM8750"]'

# -- lies --

warned "binary version" "it tells in a structure of version 4"
warned "many graphs" "it tells 4294967295 graphs"
warned "no graphs" "it tells 2 graphs, and does not show them"
warned "many inputs" "it tells 4294967295 inputs or outputs of a graph"
warned "no inputs" "it tells 2 inputs or outputs, and does not show them"
warned "many values" "its answer cannot be read"
warned "long name" "it tells a name of more than 4096 bytes"
warned "rank" "it tells a tensor of 4294967295 dimensions"
warned "much" "it tells too much"
warned "bad pointer" "the process was ended by signal"
warned "nothing" "it tells nothing"
warned "no context" "it refuses the binary: error 30001"
warned "another error" "it refuses the binary: error 30002"
warned "crash" "the process was ended by signal"
warned "abort" "the process was ended by signal"
warned "exit" "the process was ended with exit code 0"
warned "no interface" "it offers no interface (error 1)"
warned "no systems" "it offers no interface"
warned "interface version" "its interface of version 2.0 is not known here"
EPCTX_QNN_FAKE=malformed epctx info --qnn-system "$fake" a.bin
result "a damaged binary" 1 "is refused by libQnnSystem.so (system API 1.15.0) with error 30010"

# -- a model around it --

EPCTX_QNN_FAKE=truth epctx wrap a.bin --profile qnn --qnn-system "$fake" -o a_ctx.onnx
result "several graphs" 2 "several graphs, select one with --graph"
EPCTX_QNN_FAKE=truth epctx wrap a.bin --profile qnn --qnn-system "$fake" --graph no -o a_ctx.onnx
result "no such graph" 2 "no graph of the name of --graph: in the binary are:"
EPCTX_QNN_FAKE=truth epctx wrap a.bin --profile qnn --qnn-system "$fake" --graph two -o a_ctx.onnx
result "a type that ONNX has not" 2 "does not tell name, type and shape of each"
EPCTX_QNN_FAKE="all is known" epctx wrap a.bin --profile qnn --qnn-system "$fake" --graph two \
    -o a_ctx.onnx
result "all of it from the binary" 0 "2 inputs, 1 outputs"
epctx info a_ctx.onnx
said "names and shapes" 0 "input          'b' uint16[3,4]"
said "the graph's name" 0 "  #1 'two', 2 inputs, 1 output"
said "its SDK" 0 "SDK version          v9.8.7"
# judged NAME CODE TEXT OVERRIDES MODEL: lint asks the library, whatever the attribute says.
judged() {
    rm -f set_ctx.onnx
    epctx set "$5" io_name_overrides:string="$4" -o set_ctx.onnx
    EPCTX_QNN_FAKE="all is known" epctx lint --qnn-system "$fake" set_ctx.onnx
    said "$1" "$2" "$3"
}
epctx rename --any-io a_ctx.onnx a z b y c x -o z_ctx.onnx
judged "a pair of nobody's, as QNN's EP writes it" 0 "0 errors, 0 warnings" "gone=c;" a_ctx.onnx
judged "a pair whose second name is nobody's" 0 "0 errors" "a=gone;" a_ctx.onnx
judged "renamed, each with its pair" 0 "0 errors" "z=a;y=b;x=c;" z_ctx.onnx
judged "renamed, one without its pair" 1 "input 'y' is not in the binary" "z=a;x=c;" z_ctx.onnx
judged "renamed, and a pair of another" 1 "input 'z' is not in the binary" "gone=b" z_ctx.onnx
judged "renamed, no pair at all: by position" 0 "0 errors" "z=;=b;;gone" z_ctx.onnx
EPCTX_QNN_FAKE=malformed epctx wrap a.bin --profile qnn --qnn-system "$fake" -f -o a_ctx.onnx
result "a damaged binary is not wrapped" 1 "a.bin: is a QNN context binary that is refused by"
epctx wrap a.bin --profile qnn -f -o a_ctx.onnx
result "without the library" 2 "libQnnSystem.so tells them: --qnn-system"

# -- what it tells decides --

EPCTX_QNN_FAKE="all is known" epctx check --chip SM8750 --qnn-system "$fake" a_ctx.onnx
said "check --chip" 0 "(by the binary, as libQnnSystem.so (system API 1.15.0) tells)"
EPCTX_QNN_FAKE="unknown chip" epctx check --chip SM8550 --qnn-system "$fake" a_ctx.onnx
said "a chip without a name" 3 "made for 65000, HTP v79"
EPCTX_QNN_FAKE=malformed epctx check --chip SM8750 --qnn-system "$fake" a_ctx.onnx
said "a damaged one fits no chip" 3 "that is refused by libQnnSystem.so"
epctx check --chip SM8750 a_ctx.onnx
said "without it" 0 "(by the binary, as the file tells)"
EPCTX_QNN_FAKE="all is known" epctx info --json --qnn-system "$fake" a_ctx.onnx
json "info of the model" '[p["binary"]["sdk_version"] for p in j["partitions"]] == ["v9.8.7"] and
    j["partitions"][0]["binary"]["chips"] == ["SM8750"] and
    j["partitions"][0]["binary"]["told_by"] == "libQnnSystem.so (system API 1.15.0)"'

# -- which library --

EPCTX_QNN_FAKE=truth EPCTX_QNN_SYSTEM=$fake epctx info a.bin
said "by the environment" 0 "graph          'one'"
EPCTX_QNN_FAKE=truth EPCTX_QNN_SYSTEM=/nowhere epctx info --qnn-system "$fake" a.bin
said "the option is first" 0 "graph          'one'"
EPCTX_QNN_SYSTEM=/nowhere epctx info a.bin
result "none there" 2 "EPCTX_QNN_SYSTEM: there is no library /nowhere"
epctx info --qnn-system ./nowhere.so a.bin
result "none there either" 2 "--qnn-system: there is no library ./nowhere.so"
: >"$work/libonnxruntime_providers_qnn.so"
EPCTX_QNN_FAKE=truth epctx info --ep "$work/libonnxruntime_providers_qnn.so" a.bin
said "beside the EP's" 0 "graph          'one'"
mkdir elsewhere
: >elsewhere/libep.so
epctx info --ep elsewhere/libep.so a.bin
said "an EP without one" 0 "not told by the file"
: >not.so
epctx info --qnn-system not.so a.bin
said "no library" 0 "not told by the file"
grep -q "file too short" "$err" && ok "and why" || fail "and why" "$(cat "$err")"
printf 'OVEP_BIN' >other.bin
EPCTX_QNN_FAKE=crash epctx info --qnn-system "$fake" other.bin
grep -q "asking" "$err" && fail "another EP's binary" "$(cat "$err")" || ok "another EP's binary"

# -- Qualcomm's --

cd "$top" || exit 1
if [ -z "${QNN_SDK_INCLUDE:-}" ]; then
    echo "skip headers: QNN_SDK_INCLUDE is not set to the include folder of a QNN SDK"
elif ${CC:-gcc} -std=c11 -I"$QNN_SDK_INCLUDE" -fsyntax-only tests/ort/qnn_api.c 2>"$err"; then
    ok "every declaration is that of the SDK"
else
    fail "every declaration is that of the SDK" "$(cat "$err")"
fi
qnn=$(sh tests/deps.sh where ep-onnxruntime-qnn 2>/dev/null)/onnxruntime_qnn
ort=ort${EPCTX_TEST_ORT:+-$EPCTX_TEST_ORT}
library=${EPCTX_ORT_LIBRARY:-$(sh tests/deps.sh where "$ort" 2>/dev/null)}
if [ ! -e "$qnn/libQnnSystem.so" ]; then
    echo "skip QNN: the package onnxruntime-qnn is not there (tests/deps.sh vendors)"
elif [ -z "$library" ]; then
    echo "skip QNN: ONNX Runtime is not there"
else
    make_models digits
    cd "$work" || exit 1
    epctx compile --ort "$library" --ep "$qnn/libonnxruntime_providers_qnn.so" \
        --ep-opt backend_path="$qnn/libQnnHtp.so" --ep-opt soc_model=69 --ep-opt htp_arch=79 \
        --ep-opt enable_htp_fp16_precision=1 digits.onnx
    [ "$code" -eq 0 ] || fail "QNN compiles" "$(cat "$err")"
    epctx info --json digits_ctx.onnx
    node=$("$python" -c 'import json; print(json.load(open("'"$out"'"))["partitions"][0]["name"])')
    epctx info --json --qnn-system "$qnn/libQnnSystem.so" digits_ctx_qnn.bin
    json "the node's graph" 'j["graphs"][0]["name"] == "'"$node"'" and len(j["graphs"]) == 1'
    json "its values" 'all(v["elem_type"] == 1 and v["dims"] for g in j["graphs"]
        for v in g["input_values"] + g["output_values"])'
    json "its chip and SDK" 'j["chips"] == ["SM8750"] and j["sdk_version"].startswith("v2.") and
        j["backend"] == "HTP" and j["container_version"].startswith("4.")'
    mkdir wrapped
    cp digits_ctx_qnn.bin wrapped
    with_qnn() {
        epctx "$@" --ort "$library" --ep "$qnn/libonnxruntime_providers_qnn.so" \
            --ep-opt backend_path="$qnn/libQnnHtp.so"
    }
    epctx wrap wrapped/digits_ctx_qnn.bin --profile qnn --qnn-system "$qnn/libQnnSystem.so" \
        -o wrapped/digits_ctx.onnx
    result "wrapped again" 0 "1 inputs, 1 outputs"
    with_qnn run digits_ctx.onnx && grep "^output" "$out" >compiled
    with_qnn run wrapped/digits_ctx.onnx && grep "^output" "$out" >as_wrapped
    if [ -s compiled ]; then same "it computes the same" compiled as_wrapped
    else fail "it computes the same" "$(cat "$err")"; fi
    # A chip's name is enough; that the binary is for it is asked, not believed.
    for_chip() {
        rm -f chip_ctx*
        epctx compile --ort "$library" --ep "$qnn/libonnxruntime_providers_qnn.so" \
            --ep-opt backend_path="$qnn/libQnnHtp.so" --ep-opt enable_htp_fp16_precision=1 \
            -o chip_ctx.onnx "$@" digits.onnx
    }
    for_chip --chip "8 Gen 3"
    said "compile --chip" 0 "made for       SM8650, HTP v75, 8 MiB of VTCM"
    epctx check --chip SM8650 --ep "$qnn/libonnxruntime_providers_qnn.so" chip_ctx.onnx
    said "and check --chip" 0 "(by the binary, as libQnnSystem.so"
    for_chip --json --chip SM8750 --ep-opt soc_model=69
    json "an option that says the same" 'j["models"][0]["made_for"] == "SM8750, HTP v79, \
8 MiB of VTCM"'
    for_chip --chip SM8750 --ep-opt htp_arch=68
    result "an option that contradicts" 2 "needs the EP option htp_arch=79, but htp_arch=68 was"
    for_chip --chip SM9999
    result "no such chip" 2 "near are SM8975, SM8950"
    printf 'facts: 1\n\ndefault: all\nwho: a test\nseen: bench\nfrom: nowhere\n' >wrong.facts
    printf 'date: 2026-11-29\n\nchip: SM8750; soc_model: 69; htp: 73; vtcm: 8\n' >>wrong.facts
    for_chip --facts wrong.facts --chip SM8750
    result "the EP compiles for another chip" 1 "but the binary is for SM8750, HTP v79, 8 MiB"
    [ -e chip_ctx.onnx ] && fail "and nothing is written" "chip_ctx.onnx is there" ||
        ok "and nothing is written"
    head -c 20000 digits_ctx_qnn.bin >cut.bin
    epctx info --ep "$qnn/libonnxruntime_providers_qnn.so" cut.bin
    result "a binary that is cut" 1 "with error 30010"
fi
wait $hanging
if grep -q "^exit code 0" "$work/hang.out" && grep -q "not told by the file" "$work/hang.out" &&
    grep -q "asking .* no end after 10 s, the process was killed" "$work/hang.err"; then
    ok "a library that does not come back"
else
    fail "a library that does not come back" "$(cat "$work/hang.out" "$work/hang.err")"
fi
left=$(find "$work" -name '.epctx-*' | head -n 1)
if [ -z "$left" ]; then ok "nothing is left"; else fail "nothing is left" "left behind: $left"; fi
exit $status
