#!/bin/sh
# What users of EPContext models complain about, one by one: a user with this symptom finds the
# command, and ends with a working model or a certain diagnosis.
# runs: once
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
one_form
start explain
make_models plain dynamic
cd "$work" || exit 1

expect() {
    name=$1 want=$2 text=$3
    shift 3
    epctx "$@"
    said "$name" "$want" ${text:+"$text"}
}

# judge NAME CODE TEXT ARGUMENT...: `check` with an exit code of its own, and with ONNX Runtime's.
judge() {
    name=$1 ort=$2 text=$3
    shift 3
    case $ort in 0) want=4 ;; 1) want=0 ;; 2) want=1 ;; *) want=3 ;; esac
    epctx check "$@"
    said "$name" "$want" ${text:+"$text"}
    epctx check --ort-code "$@"
    said "$name, ONNX Runtime's number" "$ort"
}

{ printf 'a context\001' && head -c 4990 /dev/zero | tr '\0' v; } >v.bin
wrap() { # OUT INPUT OUTPUT [OPTION...]: a model of QNN
    model=$1 from=$2 to=$3
    shift 3
    "$epctx" wrap v.bin --profile qnn --inputs "$from:float32[1,4]" --outputs "$to:float32[1,4]" \
        --name "g$to" -o "$model" "$@" >made 2>&1 || { cat made; exit 1; }
}
wrap a_ctx.onnx x h
wrap b_ctx.onnx h y

# -- was it made for this chip? --
string() { # NAME STRING
    "$epctx" set a_ctx.onnx "metadata:ep_compatibility_info.QNNExecutionProvider=$2" -o "$1" -f \
        >made 2>&1 || { cat made; exit 1; }
}
while IFS='|' read -r code chip made text; do
    string chip_ctx.onnx "$made"
    judge "chip $chip, $made" "$code" "$text" --chip "$chip" chip_ctx.onnx
done <<'END'
0|SM8550|1:2.31.0:2.20.0:3.3.0:73:0|the options as given, not the binary
0|sm8550|1:2.31.0:2.20.0:3.3.0:73:0|cannot be told
0|43|1:2.31.0:2.20.0:3.3.0:73:0|SM8550
0|519|1:2.31.0:2.20.0:3.3.0:73:0|SM8550
0|v73|1:2.31.0:2.20.0:3.3.0:73:0|VTCM not known
0|Snapdragon 8 Gen 2|1:2.31.0:2.20.0:3.3.0:73:0|SM8550
3|SM8550|1:2.31.0:2.20.0:3.3.0:79:0|newer HTP architecture
2|SM8750|1:2.31.0:2.20.0:3.3.0:73:0|compile again for speed
0|SM8750|v2:6:2.47.0:2.37.0:73,79:43,69:8,8:0|the options as given, not the binary
0|v79|v2:6:2.47.0:2.37.0:73,79:43,69:8,8:0|cannot be told
2|SM8750|v2:6:2.51.0:2.37.0:0:69:0:0|does not tell the HTP architecture
3|SM8750|v2:6:2.51.0:2.37.0:68:69:8:0|the options as given, not the binary
3|SM8350|v2:6:2.47.0:2.37.0:73,79:43,69:8,8:0|does not fit
3|SXR1230P|v2:6:2.47.0:2.37.0:73:43:8:0|does not fit
2|SM8550|v2:6:2.47.0:2.37.0:73:45:2:0|older or smaller
0|8 Elite for Galaxy|v2:6:2.47.0:2.37.0:73,79:43,69:8,8:0|cannot be told
0|SM4450|1:2.31.0:2.20.0:3.3.0:68:0|VTCM not known
0|v73|1:2.31.0:2.20.0:3.3.0:73:0|VTCM is not known
0|X2 Elite|v2:6:2.47.0:2.37.0:81:87:8:0|cannot be told
0|SM8550|nonsense|cannot be told
0|SM8550|1:2.31.0:2.20.0:3.3.0:73|cannot be told
0|SM0000|1:2.31.0:2.20.0:3.3.0:73:0|profiles --chips
0|12|1:2.31.0:2.20.0:3.3.0:73:0|no known chip
0|x73|1:2.31.0:2.20.0:3.3.0:73:0|no known chip
0|v53|1:2.31.0:2.20.0:3.3.0:73:0|no known chip
0|v7x|1:2.31.0:2.20.0:3.3.0:73:0|no known chip
0|HTP Q73|1:2.31.0:2.20.0:3.3.0:73:0|no known chip
0|abcv73|1:2.31.0:2.20.0:3.3.0:73:0|no known chip
0|SM8551|1:2.31.0:2.20.0:3.3.0:73:0|; near are SM8550, SM8475, SM8635 (
END
long=$(head -c 600 /dev/zero | tr '\0' 1)
string chip_ctx.onnx "1:2.31.0:2.20.0:3.3.0:73:$long"
expect "a string that is too long" 4 "cannot be told" check --chip SM8550 chip_ctx.onnx

while IFS='|' read -r code chip architecture text; do
    wrap arch_ctx.onnx x y --arch "$architecture" -f
    judge "chip $chip, made for $architecture" "$code" "$text" --chip "$chip" arch_ctx.onnx
done <<'END'
1|SM8550|v73|fits
1|SM8550|HTP_V73|fits
1|SM8550|73|fits
1|SM8550|SM8550|fits
1|SC8380XP|60|fits
1|SM8550|60|fits
3|SM8550|v79|does not fit
2|SM8750|43|compile again
0|SM8750|69|can be HTP v69 or soc_model 69
0|QCS8550|66|can be HTP v66 or soc_model 66
1|SM7635|73|fits
0|SM8550|abacus|cannot be told
0|SM8550|98|neither an HTP architecture nor
3|45|43|does not fit
END
# What the node says decides where the options fit, and does not help where the EP refuses by them.
"$epctx" wrap v.bin --profile qnn --inputs 'x:float32[1,4]' --outputs 'h:float32[1,4]' --name gh \
    --arch SM8750 -o a_ctx.onnx -f >made 2>&1 || cat made
string both_ctx.onnx v2:6:2.51.0:2.37.0:79:69:8:0
judge "options and a node that fit" 1 "fits" --chip SM8750 both_ctx.onnx
string both_ctx.onnx v2:6:2.51.0:2.37.0:68:69:8:0
judge "options that are refused" 3 "by its string" --chip SM8750 both_ctx.onnx
wrap a_ctx.onnx x h -f

# The binary decides, where it tells, whatever the model says.
bound() { # TEXT [OPTION...]: bound_ctx.onnx, whose binary of QNN has TEXT
    made=$1
    shift
    # shellcheck disable=SC2059 # the bytes are escapes
    { printf '\0\0\0\2\0\0\0\3' && printf "$made"; } >bound.bin
    "$epctx" wrap bound.bin --profile qnn --inputs 'x:float32[1,4]' --outputs 'y:float32[1,4]' \
        -o bound_ctx.onnx -f "$@" >made 2>&1 || { cat made; exit 1; }
}
while IFS='|' read -r code chip soc arch vtcm text; do
    bound ";soc_type=$soc;min_arch=$arch;vtcm_size=$vtcm;"
    judge "chip $chip, a binary for $soc" "$code" "$text" --chip "$chip" bound_ctx.onnx
done <<'END'
1|SM8750|SM8750|79|8388608|(by the binary, as the file tells)
3|SM8550|SM8750|79|8388608|made for SM8750, HTP v79, 8 MiB of VTCM: made for another
2|SM8750|SM8550|73|8388608|made for SM8550, HTP v73, 8 MiB of VTCM: made for an older
1|SM8750|UNKNOWN_SDM|79|8388608|made for HTP v79, 8 MiB of VTCM
3|SM8550|UNKNOWN_SDM|79|8388608|does not fit
1|v79|SM8750|79|8388608|VTCM is not known
2|SM8750|SM8750|79|4194304|made for SM8750, HTP v79, 4 MiB of VTCM
3|SM8750|SM8850|81|8388608|made for SM8850, HTP v81
1|SM8750|SM8750|none|8388608|made for SM8750, HTP v79
0|SM8750|CHIP|none|8388608|made for CHIP, 8 MiB of VTCM, whose architecture is not known
0|SM9999|SM8750|79|8388608|near are SM8975, SM8950
0|MI300X|SM8750|79|8388608|is no known chip of Qualcomm (
END
made=';soc_type=SM8750;min_arch=79;vtcm_size=8388608;'
bound "$made" --arch SM8550
judge "an attribute contradicts" 1 "contradiction: hardware_architecture names SM8550, HTP v73, \
the binary is for SM8750, HTP v79, 8 MiB of VTCM" --chip SM8750 bound_ctx.onnx
judge "and does not decide" 3 "does not fit" --chip SM8550 bound_ctx.onnx
bound "$made" --arch v79
judge "one that agrees" 1 "fits" --chip SM8750 bound_ctx.onnx
if grep -q contradiction out; then fail "agrees" "expected no contradiction"; else ok "agrees"; fi
for string in 'v2:6:2.51.0:2.37.0:68:69:8:0|SM8750, HTP v68, 8 MiB of VTCM' \
    'v2:6:2.51.0:2.37.0:0:43:0:0|SM8550' '1:2.31.0:2.20.0:3.3.0:73:0|HTP v73' \
    'v2:6:2.51.0:2.37.0:79:69:4:0|SM8750, HTP v79, 4 MiB of VTCM' \
    'v2:6:2.51.0:2.37.0:0:65000:0:0|soc_model 65000'; do
    "$epctx" set bound_ctx.onnx -o told_ctx.onnx -f \
        "metadata:ep_compatibility_info.QNNExecutionProvider=${string%|*}" >made 2>&1 || cat made
    judge "the string contradicts: $string" 1 "contradiction: \
ep_compatibility_info.QNNExecutionProvider names ${string#*|}, the binary is for SM8750, HTP v79" \
        --chip SM8750 told_ctx.onnx
done
"$epctx" set bound_ctx.onnx -o told_ctx.onnx -f >made 2>&1 \
    metadata:ep_compatibility_info.QNNExecutionProvider=v2:6:2.51.0:2.37.0:73,79:43,69:8,8:0
judge "a string with this chip among others" 1 "fits" --chip SM8750 told_ctx.onnx
if grep -q contradiction out; then fail "among others" "expected no contradiction"
else ok "among others"; fi
bound "$made" --arch SM8550
epctx check --json --chip SM8750 bound_ctx.onnx
json "by what, in JSON" '[(v["by"], v["told_by"], v["contradiction"][:40])
    for v in j["verdicts"]] == [("binary", "the file", "hardware_architecture names SM8550, HTP ")]'
wrap arch_ctx.onnx x y --arch SM8750 -f
epctx check --json --chip SM8750 arch_ctx.onnx
json "only by the attribute, in JSON" '[(v["by"], v["told_by"], v["contradiction"])
    for v in j["verdicts"]] == [("hardware_architecture", None, None)]'
judge "only by the attribute" 1 "(only by hardware_architecture)" --chip SM8750 arch_ctx.onnx
string chip_ctx.onnx 1:2.31.0:2.20.0:3.3.0:79:0
judge "only by the string" 3 "(only by ep_compatibility_info.QNNExecutionProvider)" --chip SM8550 \
    chip_ctx.onnx
cp "$top/fuzz/corpus/binary/dlc" several.bin
"$epctx" wrap several.bin --profile qnn --inputs 'x:float32[1,4]' --outputs 'y:float32[1,4]' \
    -o several_ctx.onnx -f >made 2>&1 || cat made
judge "a DLC for several chips, this one" 1 "made for SM8750" --chip SM8750 several_ctx.onnx
judge "none for this one" 0 "for 2 chips, none for this one; whether" --chip SM8550 several_ctx.onnx
judge "none that could be" 3 "for 2 chips, none for this one" --chip SM8350 several_ctx.onnx
epctx info several_ctx.onnx; said "info of a DLC" 0 "made for           SM8750, SC8380XP, v79,v73"

# A file that is no context at all is refused by name, by every way of judging.
cp bound_ctx.onnx lfs_ctx.onnx
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:12\nsize 3\n' >bound.bin
lfs="is a Git LFS pointer, no context binary: run 'git lfs pull'"
judge "a pointer of Git LFS" 3 "attribute 'ep_cache_context': $lfs" --chip SM8750 lfs_ctx.onnx
said_last="cannot be used on any chip"
if grep -qF "$said_last" out; then ok "$said_last"; else fail "$said_last" "$(cat out)"; fi
judge "and a string" 3 "$lfs" --against 1:2.31.0:2.20.0:3.3.0:79:0 lfs_ctx.onnx
judge "and neither" 3 "$lfs" lfs_ctx.onnx
epctx info lfs_ctx.onnx; said "info of it" 1 "the binary is        a Git LFS pointer"
cp "$top/fuzz/corpus/binary/container" bound.bin
judge "another EP's binary" 3 "is a container of OpenVINO blobs, but the node is for EP 'qnn'" \
    --chip SM8750 lfs_ctx.onnx
head -c 1500 "$top/fuzz/corpus/binary/dlc" >bound.bin
judge "a binary that is cut" 3 "a QNN DLC that is cut off" --chip SM8750 lfs_ctx.onnx
rm bound.bin
judge "no binary, but an attribute" 1 "(only by hardware_architecture)" --chip SM8550 lfs_ctx.onnx
wrap arch_ctx.onnx x y --arch SM8750 -f

# Names that nobody knows are no "does not fit".
amd() { # CODE CHIP TEXT [ARCHITECTURE]
    "$epctx" wrap v.bin --profile migraphx --inputs 'x:float32[1,4]' \
        --outputs 'y:float32[1,4]' --arch "${4:-gfx942}" -o amd_ctx.onnx -f >made 2>&1 || cat made
    judge "${4:-gfx942} on $2" "$1" "$3" --chip "$2" amd_ctx.onnx
}
amd 1 gfx942 fits
amd 3 gfx1100 "made for architecture 'gfx942'"
amd 0 MI300X "what 'MI300X' is to it is not known"
amd 0 "Strix Point" "cannot be told"
amd 0 1100 "what '1100' is to it is not known" 942

# Nodes of several EPs, each by its own.
"$epctx" wrap v.bin --profile openvino --inputs 'p:float32[1,4]' --outputs 'q:float32[1,4]' \
    -o intel_ctx.onnx -f >made 2>&1 || cat made
wrap arch_ctx.onnx x y --arch SM8750 -f
"$epctx" merge arch_ctx.onnx intel_ctx.onnx -o mixed_ctx.onnx -f >made 2>&1 || cat made
judge "two EPs, the chip of one" 1 "OpenVINOExecutionProvider: EP_NOT_APPLICABLE: not judged" \
    --chip SM8750 mixed_ctx.onnx
judge "two EPs, another chip" 3 "does not fit" --chip SM8550 mixed_ctx.onnx
judge "two EPs, none with such a chip" 0 "cannot be told" --chip gfx1100 mixed_ctx.onnx
judge "the EP without such chips alone" 0 "hardware_architecture is stored" --chip SM8750 \
    --profile openvino mixed_ctx.onnx
epctx check --json --chip SM8750 mixed_ctx.onnx
if "$python" -c '
import json, sys
print([v["ep"] + str(v["compatibility"]) for v in json.load(sys.stdin)["verdicts"]])' <out >told &&
    grep -q "QNNExecutionProvider1.*OpenVINOExecutionProvider0" told
then ok "each EP in JSON"; else fail "each EP in JSON" "$(cat out told)"; fi

# -- the string of OpenVINO, as its EP answered --
# against NAME STRING VERDICT: the model has STRING; $base is the machine's.
against() {
    "$epctx" set intel_ctx.onnx "metadata:ep_compatibility_info.OpenVINOExecutionProvider=$2" \
        -o ov_ctx.onnx -f >made 2>&1 || cat made
    case $3 in
    "not applicable") ort=0 ;;
    optimal) ort=1 ;;
    *) ort=3 ;;
    esac
    judge "OpenVINO, $1" $ort "" --against "$base" ov_ctx.onnx
}
base='{"ovep_compat_ver":"1.0","ovep_bin_ver":"1.1","ov_compat_string":"meta=1.0;ov=7;isa=A"}'
against "the same" "$base" optimal
epctx check --against "$base" ov_ctx.onnx
said "its members are shown" 0 "ov_compat_string = meta=1.0;ov=7;isa=A"
against "another version" "$(echo "$base" | sed 's/ov=7/ov=8/')" unsupported
against "no JSON" "meta=1.0;ov=7;isa=A" unsupported
against "no such member" '{"ovep_compat_ver":"1.0","ovep_bin_ver":"1.1"}' "not applicable"
cases=${EPCTX_TEST_MODELS:-}/../cases/vendors/compat_openvino.tsv
if [ -n "${EPCTX_TEST_MODELS:-}" ] && [ -e "$cases" ]; then
    tab=$(printf '\t')
    base=$(sed -n "s/^base$tab\([^$tab]*\)$tab.*/\1/p" "$cases")
    grep -v '^#' "$cases" >cases
    while IFS= read -r line; do
        against "${line%%"$tab"*}" "$(printf '%s' "$line" | cut -f 2)" "${line##*"$tab"}"
    done <cases
else
    echo "skip OpenVINO's verdicts: no cases/vendors/compat_openvino.tsv beside EPCTX_TEST_MODELS"
fi

expect "no architecture at all" 4 "hardware_architecture is stored" check --chip SM8550 b_ctx.onnx
expect "no EPContext node" 4 "no EPContext node" check --chip SM8550 plain.onnx
expect "none of this EP" 4 "of this EP" check --chip SM8550 --ep openvino a_ctx.onnx
expect "the other modes exclude it" 2 "--chip cannot be" check --chip SM8550 --fresh a_ctx.onnx
expect "nor with a string" 2 "--chip cannot be" check --chip 43 --against x a_ctx.onnx
expect "an empty chip" 2 "empty" check --chip "" a_ctx.onnx
expect "a chip with control characters" 4 'no known chip' \
    check --chip "$(printf '\033[31m\302\2331m')" arch_ctx.onnx
if grep -q "$(printf '\033')" out err; then fail "no control character is shown" "one is"
else ok "no control character is shown"; fi
wrap hostile_ctx.onnx x y --arch "$(printf 'v\033[31m\302\233\342\200\256\"<b>')"
expect "a hostile architecture" 4 "no known chip or HTP" check --chip SM8550 hostile_ctx.onnx
if grep -q "$(printf '\033')" out err; then fail "is shown escaped" "it is not"
else ok "is shown escaped"; fi
expect "to programs" 3 '"why": "made for' check --json --chip 45 arch_ctx.onnx
if "$python" -m json.tool <out >/dev/null; then ok "which can read it"
else fail "which can read it" "no JSON"; fi
gpu() { # CODE EP ARCHITECTURE CHIP TEXT
    "$epctx" wrap v.bin --profile "$2" --inputs 'x:float32[1,4]' --outputs 'y:float32[1,4]' \
        --arch "$3" -o gpu_ctx.onnx -f >made 2>&1 || { cat made; exit 1; }
    judge "$2 for $3 on $4" "$1" "$5" --chip "$4" gpu_ctx.onnx
}
gpu 1 tensorrt 89 8.9 fits
gpu 1 nv_tensorrt_rtx 80+ 12.0 "8.0 and above"
gpu 3 tensorrt 86 sm_89 "made for compute capability 8.6"
gpu 3 nv_tensorrt_rtx 80+ 7.5 "does not fit"
gpu 0 tensorrt 86 RTX "cannot be told"
gpu 1 migraphx gfx1100 GFX1100 fits
gpu 3 migraphx gfx1100 gfx1151 "made for architecture"

# -- types and dimensions by hand --
expect "two contexts in a row" 0 "" merge --chain a_ctx.onnx b_ctx.onnx -o ab.onnx
"$python" - "$top/tests/judge" <<'END' || exit 1
import sys
sys.path.insert(0, sys.argv[1])
from onnx_schema import ModelProto
model = ModelProto()
model.ParseFromString(open("ab.onnx", "rb").read())
del model.graph.value_info[:]
open("untyped.onnx", "wb").write(model.SerializeToString())
END
expect "a value between them has no type" 1 "set value:NAME" lint untyped.onnx
expect "it gets one" 0 "value 'h': float32[1,4]" set untyped.onnx 'value:h=float32[1,4]' \
    -o typed.onnx
expect "then nothing is wrong" 0 "0 errors" lint typed.onnx
expect "as it was" 0 "" diff ab.onnx typed.onnx
expect "another type for input and output" 0 "" set typed.onnx 'value:x=float16[?,4]' \
    'value:y=int8' -o other.onnx
expect "is what the model has" 0 "'x' float16[?,4]" info other.onnx
expect "and the output" 0 "'y' int8, no shape" info other.onnx
expect "a value that does not exist" 1 "no input, output or result" set ab.onnx \
    value:nobody=float32 -o no.onnx
expect "a type that does not exist" 2 "unknown type" set ab.onnx value:h=float31 -o no.onnx
expect "no type" 2 "missing type" set ab.onnx value:h= -o no.onnx
expect "two types" 2 "is not a type" set ab.onnx value:h=float32,y:int8 -o no.onnx
expect "a quantization" 2 "is not a type" set ab.onnx value:h=int8/0.1/3 -o no.onnx
expect "no name" 2 "name is empty" set ab.onnx value:=float32 -o no.onnx
expect "a dimension by name" 0 "dimension 'N': 2 (2 places)" set dynamic.onnx dim:N=2 -o fixed.onnx
expect "compiles" 0 "0 left" compile fixed.onnx
expect "a dimension by place" 0 "(2 places)" set dynamic.onnx 'dim:x[0]=2' -o fixed2.onnx
if cmp -s fixed.onnx fixed2.onnx; then ok "the same bytes"; else fail "the same bytes" "no"; fi
expect "a dimension that does not exist" 1 "'M'" set dynamic.onnx dim:M=2 -o no.onnx
expect "a place that does not exist" 1 "no number 7" set dynamic.onnx 'dim:x[7]=2' -o no.onnx
expect "one that is fixed" 1 "cannot be 3" set fixed.onnx 'dim:x[0]=3' -o no.onnx
for size in 0 -1 x 99999999999; do
    expect "a dimension of $size" 2 "1 or more" set dynamic.onnx "dim:N=$size" -o no.onnx
done
expect "they cannot be removed" 2 "only" unset dynamic.onnx dim:N -o no.onnx
expect "nor a type" 2 "only" unset dynamic.onnx value:x -o no.onnx
if [ -e no.onnx ]; then fail "nothing was written" "a model was"; else ok "nothing was written"; fi

# -- compiled already --
expect "compile of another EP's context" 1 "compiled already, compile the original" \
    compile a_ctx.onnx -o no.onnx
message="Could not find an implementation for EPContext(1) node with name \
'QNNExecutionProvider_QNN_1_0'"
expect "its optimizer's message" 0 "Optimize and quantize the original" explain "$message"
expect "names the EP that is needed" 0 "onnxruntime-qnn" explain "$message"

# -- an engine without weights --
mv v.bin s.stripped.engine
stripped() {
    epctx wrap s.stripped.engine --profile tensorrt --inputs 'x:float32[1,4]' \
        --outputs 'y:float32[1,4]' -o s_ctx.onnx "$@"
}
stripped
said "needs the original model" 1 "E044"
stripped --model plain.onnx
said "gets its name" 0 ""
expect "which is found" 0 "source model" ls s_ctx.onnx
rm s_ctx.onnx
stripped --model ../plain.onnx
said "but not outside" 1 "E020"
mv s.stripped.engine v.bin

# -- a context of other options (winml-cli PR 1081) --
expect "stamped with options" 0 "" stamp a_ctx.onnx --source plain.onnx --options "htp O3" \
    -o stamped.onnx
expect "fresh with the same" 0 ": fresh" check --fresh --options "htp O3" stamped.onnx
expect "stale with others" 1 "compiled with other options" check --fresh --options "htp" \
    stamped.onnx
expect "stamped without" 0 "" stamp a_ctx.onnx --source plain.onnx -o stamped.onnx -f
expect "unknown" 4 "has no options" check --fresh --options "htp O3" stamped.onnx
expect "options of nothing" 2 "require --fresh" check --options x stamped.onnx

# -- EPs without EPContext --
expect "profiles of one" 0 "none: it writes no context model" profiles DirectML
expect "in the list" 0 "ModelCacheDirectory" profiles
expect "explained" 0 "has no EPContext" explain DmlExecutionProvider
expect "by the name of its library" 0 "libamdgpu-ep.so" explain AMDGPUExecutionProvider
expect "in a message" 0 "CUDAExecutionProvider" explain "EPContext node generated by 'x' is not \
compatible with any execution provider. Available: [CUDAExecutionProvider, CPUExecutionProvider]"

# -- several partitions, embedded, and the second without a context (ORT issue 31977) --
"$epctx" set ab.onnx --node '#2' main_context=0 embed_mode=1 ep_cache_context= -o ab1.onnx >made
"$epctx" set ab1.onnx --node '#1' embed_mode=1 ep_cache_context=@v.bin -o bad.onnx >made
expect "several partitions" 1 "epctx extract --in-place bad.onnx" lint --profile qnn bad.onnx
expect "but the plugin EP loads them" 0 "0 errors" lint --profile qnn_plugin bad.onnx
expect "older ones do not" 1 "E014" lint --profile qnn_plugin --against qnn=2.6 bad.onnx
expect "so that nothing is wrong for sure" 0 "0 errors" lint bad.onnx
expect "repaired" 0 "" repair --profile qnn bad.onnx -o good.onnx
expect "it is sound" 0 "0 errors" lint --profile qnn good.onnx

# -- paths (winml-cli issue 751) --
mkdir build_
cp v.bin build_/x.engine
(cd build_ && "$epctx" wrap x.engine --profile tensorrt --inputs 'x:float32[1,4]' \
    --outputs 'y:float32[1,4]' -o t_ctx.onnx) >made
"$epctx" set build_/t_ctx.onnx ep_cache_context=build_/x.engine --in-place >made
expect "a folder named twice" 1 "epctx repair" lint build_/t_ctx.onnx
expect "is dropped" 0 "which exists" repair build_/t_ctx.onnx --in-place
expect "and the engine found" 0 "0 errors" lint build_/t_ctx.onnx
mkdir "f ü 模"
cp a_ctx.onnx v.bin "f ü 模"
expect "folders in any script" 0 "0 errors" lint "f ü 模/a_ctx.onnx"
expect "a binary renamed there" 0 "" mv "f ü 模/v.bin" "f ü 模/ß.bin"
expect "is found" 0 "ß.bin" ls "f ü 模/a_ctx.onnx"

# -- messages that users met, and a word of the answer --
while IFS='|' read -r message word; do
    expect "explain: $message" 0 "$word" explain "$message"
done <<'END'
Error code 5005|newer HTP architecture
QNN_DEVICE_ERROR_INVALID_CONFIG: Invalid config values|QNN error 14001
QNN_COMMON_ERROR_PLATFORM_NOT_SUPPORTED|QNN error 1006
createFromBinary: QNN_CONTEXT_ERROR_MEM_ALLOC|QNN error 1002
e022|file-missing
Unable to load backend, error: libQnnHtp.so: cannot open shared object file|backend_path
Specified provider 'VitisAIExecutionProvider' is not in available provider names|hide one another
Error loading xrt_core.dll|driver
OVCore::ImportModel failed|another version of OpenVINO
undefined symbol: CreateEpFactories|no plugin EP
err=0x138d|newer HTP architecture
Failed. status error: 1002|out of memory
Cannot open file: C:\weights\ctx_OpenVINOExecutionProvider.bin|ep.context_file_path
EPContext node generated by '(unknown)' is not compatible with any execution provider|epctx repair --profile
EPContext node generated by 'QNN' is not compatible with any execution provider|onnxruntime-qnn
open ./model_ext_ini.bin failed|ORT 1.23
cannot open migraphx_ep_context_temp.mxr|epctx extract
TensorRT EP failed to call nvinfer1::IExecutionContext::setInputShape() for input 'img'|stripped
engine refit failed|onnx_model_filename
[Errno 2] No such file or directory: 'model_ctx.onnx'|no node
FileNotFoundError: out/a_ctx.onnx|DirectML
filesystem error: Access is denied|ep.context_file_path
std::bad_alloc|epctx extract
onnx.ModelProto exceeded maximum protobuf size of 2GB: 3000000000|epctx init --external
Initializer 'w' references an ORT in-memory address marker, which is not allowed in a model protobuf.|epctx repair --source
The model contains initializers with arbitrary in-memory references.|epctx repair --source
Invalid model. Node input 'w' is not a graph input, initializer, or output of a previous node.|epctx repair --source
Node (g1) Op (EPContext) output arg (h) type inference failed|epctx set MODEL 'value:
Op (Reshape) [ShapeInferenceError] Cannot parse data from external tensors. Please load|epctx repair
Opset 99 is under development and support for this is limited.|epctx set MODEL opset:
No opset import for domain 'com.microsoft'|epctx repair
Some nodes were not assigned to the preferred execution providers|on the CPU
Invalid input name: x|epctx wrap --io
QNN EP does not support dynamic shape|dim:batch=1
Got invalid dimensions for input: x|epctx compile --dim
Segmentation fault (core dumped)|epctx check --fresh
Process finished with exit code -1073741819 (0xC0000005)|epctx check --chip
Invalid HTP architecture: 79|soc_model
soc_model|soc_id of Linux
context decryption failed|encryptionKey
[TensorRT EP] trt_dump_ep_context_model is set|epctx wrap ENGINE
openvino|PyPI onnxruntime-ep-openvino
External data path does not exist: w.bin|epctx ls
Absolute path not allowed for external data location|relative path
OrtModel has no model_path set and no valid output location was specified|ep.context_file_path
The EP reports compiled model is supported but suboptimal.|Compile again
No compiled model compatibility info found for EP QNNExecutionProvider|--chip
the byte limit for embedded initializer data. Use external data|embed_mode 0
Invalid free dimension override.|dim:NAME=N
Creating EPContext models is not supported in this build|full build
Some nodes are not included in the topological sort, graph have a cycle.|E048
Could not determine default backend path|backend_type=htp
Option 'cache_dir' cannot be set when using AppendExecutionProvider_V2|load_config
Device NPU is not available|driver
libQnnHtp.so: cannot open shared object file: No such file or directory|ldd
ep.context_embed_mode|A session option
[VITIS AI EP] cannot open C:/temp/me/vaip/.cache/k/context.json|epctx embed
EP 'MyEP' does not support the registered EPContext data write callback.|SetEpContextDataWriteFunc
EP 'MyEP' does not support the registered EPContext data read callback.|SetEpContextDataReadFunc
EP 'MyEP' returned unknown EPContext data support flags: 4|ort_version_supported 31
EP 'MyEP' was compiled with API version 24, which predates GetWeightlessSupport|before 1.29
EP 'MyEP' does not implement GetWeightlessSupport. |epctx info
inserted was false. Duplicate model-local function identifier: a:b|E070
Function inlining exceeded the configured cumulative node expansion limit while expanding 'my:F'.|E071
Function inlining exceeded the configured cumulative protobuf expansion limit while expanding 'my:F'.|E071
Subgraph input count does not match the number of inputs provided by the parent node '' (OpType: Loop).|E072
This is an invalid model. Error: Duplicate definition of name (c).|ORT_DISABLE_ALL
Invalid positive integer value '0' for session configuration 'session.function_expansion_node_limit'.|above 0
No graph was found in the protobuf.|epctx info
Initializer 'w': data field count (3) does not match expected count from shape (4)|E046
Initializer 'w': raw_data size (3 bytes) does not match expected size from shape and data type (16 bytes)|E046
OrtEpFactory must implement ReleaseAllocator when OrtEp::CreateAllocator or OrtEpFactory::CreateAllocator is implemented.|EP authors
Exit code: -1073740791|crashed
Node(ctx) with schema(com.microsoft::EPContext:1) has input size 0 not in range [min=1, max=2147483647].|E086
Op (Reshape) [ShapeInferenceError] Cannot parse data from external tensors. Please load|lies in a file
END

# -- messages from public threads, each with a word of the right answer --
while IFS='|' read -r message word; do
    expect "explain: $message" 0 "$word" explain "$message"
done <<'END'
Failed to create context from binary. Error code: 5005|newer QNN SDK
QNN graph execute error. Error code: 6001|invalid graph handle
QNN graph execute error. Error code: 6031 at location sequential_executor.cc:572|aborted
Failed to interpret QNN context binary. Error code 30010. Try verifying binary|no context binary
EPCtx blob was exported / is compatible with with OpenVINO SDK version 2024.3|the one that loads is another
[Vitis AI EP] Failed to create runner|of one version
graph_cache.cpp:25: output/pos:0 node not found in graph cache|does not stand alone
Serialization assertion magicTagRead == kMAGIC_TAG failed.Magic tag does not match|E076
INVALID_ARGUMENT: Cannot deserialize with an empty memory buffer.|E024
Metadata from Onnx file: a b c is different with d e f|another model
Failed to finalize QNN graph. at location qnn_model.cc:152 FinalizeGraphs|could not prepare the graph
graph_prepare.cc:204:ERROR:could not create op: q::flat_from_vtcm|no implementation
<E> Failed to finalize graph (id: 1) with err 1002|out of memory
returned while running QNN_1_1 node. Error code: 1100|error while running
QNN SetupBackend failed Failed to create device. Error: 14001|ADSP_LIBRARY_PATH
No translation registered for op type onnx_dynamicquantizelinear.|fixed scales
LLVM ERROR: Failed to infer result type(s).|own passes
MAPPED_INFERENCE_VERSION is NOT compatible with the ELF Expected: 6.1.0|Update driver and firmware
L0 pfnCreate2 result: ZE_RESULT_ERROR_INVALID_ARGUMENT, code 0x78000004|refuses what it was asked
L0 createGraph result: ZE_RESULT_ERROR_UNKNOWN, code 0x7ffffffe|newer NPU driver
Exception while Reading network: invalid external data: ExternalDataInfo(data_full_path: w.pb|epctx init --inline
stdVersionRead == serializationVersion failed.Version tag does not match.|another version of TensorRT
The engine plan file is generated on an incompatible device, expecting compute 8.6|another generation
Error Code 4: Internal Error (Engine deserialization failed.)|a line above
Failed to download or register the following EPs: NvTensorRTRTXExecutionProvider.|Windows ML
Unknown EP bootstrapper name(s): . Call DiscoverEps()|Windows ML
Error: VitisAIExecutionProvider is not available on this system.|its driver is too old
TensorRT EP could not open shared library from|trt_engine_decryption_lib_path
all the dynamic shape inputs with associated profiles if they want to explicitly set|trt_profile_min_shapes
TensorRT EP can't find engine cache: build\build\x.engine|occurs twice
Failed to create GE handle: Error: No compatible xclbin file found|XLNX_VART_FIRMWARE
[UNILOG][FATAL][XCOM_ACGEN_ERROR][instuction generating fail, please contact us.]|could not make instructions
Error No Op registered for EPContext with domain_version of 13|E003
Neural network blob compiled with uncompatible openvino version.|Myriad
Pad node `/Pad` is not supported: base_op_builder.cc:162 ProcessOutputs Failed to add node.|goes to the CPU
[error] deserializeCudaEngine failed|does not take the engine
QnnContextCustomProtocol expected magic number: 0x5678abcd but get: 0x2000000|ExecuTorch
END

# -- messages of real EPs: each has one explanation, and no other's --
while IFS='|' read -r message word; do
    expect "explain: $message" 0 "$word" explain "$message"
    epctx explain --json "$message"
    count=$(grep -c '"cause"' "$out")
    if [ "$count" -eq 1 ]; then ok "nothing else about: $message"
    else fail "nothing else about: $message" "expected 1 explanation, found $count"; fi
done <<'END'
[E:onnxruntime:, m.cc:3 F] Failed to load from EpContext model. Empty cache file encountered.|E024
should set ep_cache_context field with a relative path, but it is an absolute path: /a.bin|E020
Failed to create QNN DLC from binary. Error: no file|is_multi_soc_ep_context
The file path in ep_cache_context does not exist or is not accessible.|E022
The file path in ep_cache_context should not be empty.|embed_mode 1
The file path in ep_cache_context field has '..'. It's not allowed|epctx mv
[ONNXRuntimeError] : 11 : EP_FAIL : g1 context node name not exists in table qnn_models.|the node's name
The count of graph inputs should be at least the count of tensor_wrapper!|--optimization basic
terminate called after throwing an instance of 'Ort::Exception'|outlives the crash
  what():  Input name not found.|io_name_overrides
  what():  Tensor name not found.|io_name_overrides
Shared weights buffer isn't supported on this platform|emulates
OrtGraph should have only one EPContext node.|For EP authors
Contradictory options: prepare_and_load=1 with context_enable=0 means no artifact|keeps nothing
Experimental function OrtEpApi_Any_SinceV28 is not available in this build|no failure
Model compatibility info: v2:6:2.0.0:5.0.0:73:43:0:0|No failure
Status Message: ORT Tensor data size does not match QNN tensor data size.|compile again
Unsupported nodes in QNN EP: { name: s, type: Shape }|enable_htp_fp16_precision
Expecting soc_model and htp_arch having equal number of values in multi-SoC EP context.|same order
FP16 precision mode is enabled but soc_model is not specified.|not names of chips
Only one of 'backend_type' and 'backend_path' should be set.|Leave one
QNN SetupBackend failed Failed to initialize backend (b).|one release
Qnn context cache only works for HTP backend.|no context binaries
Unrecognized soc_model 'SM1'|soc_id of Linux
Request feature arch with value 79 unsupported|newer HTP architecture than the chip
EPContext node generated by '' is not yet known|epctx repair --profile
[OpenVINO-EP] a.cpp:3 - Can not open file a.bin for mapping|beside the model
[OpenVINO-EP] a.cpp:3 - Can not create file mapping for 8, err=No such device|E024
Did not find binary information in ep context nodes.|main_context 1
Blob not found for part_0|partition_name
[OpenVINO-EP] a.cpp:3 - I/O size mismatch between ONNX and OpenVINO for x|shape or type
[OpenVINO-EP] a.cpp:3 - Type mismatch between ONNX and OpenVINO for x|shape or type
Input names mismatch between OpenVINO and ONNX. x doesn't exist in the model|epctx rename --any-io
Multiple embedded native EPContext main contexts are not supported.|Merge the source models
Could not deserialize binary data. This could mean the bin is corrupted|another version of OpenVINO
Check '!implementations.empty()' failed at node.cpp:3|INFERENCE_PRECISION_HINT
No suitable implementations.This may indicate that the provided memory descriptors|other instructions
Weightless mode requires something. Internal-only weightless is not supported.|epctx init --external
EPContext model generation/caching is not supported for OpenVINO meta-devices|Name the device
[OpenVINO-EP] a.cpp:3 - Exception from src/core.cpp:237|OpenVINO itself failed
[OpenVINO-EP] a.cpp:3 - something new|the reason stands behind
This is an invalid model. Error: two nodes with same node name (a).|E047
AddInitializedOrtValue Attempt to replace the existing tensor|ORT_ENABLE_BASIC
No suitable model variant found for the configured execution providers.|package
QNN execution provider is not supported in this build.|Plugin EPs
Invalid MIGraphX EP option: migraphx_any|only this line
Error creating execution provider: FAIL : something new|refuses to start
Load model from a.onnx failed:Node (a) Op (Conv) something new|stands behind 'failed:'
Failed to load from EpContext model. Something new.|made by another SDK
END

# The node's name may be that of another EP than its source.
expect "the EP of the source" 0 "" explain "EPContext node generated by \
'OpenVINOExecutionProvider' is not compatible. EPContext node name: 'QNNExecutionProvider_QNN_1'"
if grep -q PyPI out && ! grep -q onnxruntime-qnn out; then ok "not that of the name"; else
    fail "not that of the name" "expected OpenVINO's package only"
fi

# More of them, if they are here: what EPs of the bench were heard to say.
messages=${EPCTX_TEST_MODELS:+${EPCTX_TEST_MODELS%/*}/cases/vendors/messages.txt}
if [ -f "${messages:-}" ]; then
    sed 1d "$messages" >messages
    while read -r message; do expect "heard: $message" 0 "cause:" explain "$message"; done <messages
else
    echo "skip messages that were heard: EPCTX_TEST_MODELS has no ../cases/vendors/messages.txt"
fi

# What a log holds and explain does not know: told once, however files and numbers differ.
cat >said.log <<'END'
2026-11-29 [E:onnxruntime:, a.cc:1 F] Empty cache file encountered.
2026-11-29 [E:onnxruntime:, a.cc:1 F] A new failure of /a/b.bin with 15
2026-11-29 [E:onnxruntime:, a.cc:2 F] A new failure of /c.bin with 0x1f
all is well
{"ok": false, "text": "another error that is new\nwhat():  Output name not found"}
END
"$python" -B "$top/tests/vendors/unexplained.py" "$epctx" said.log >out 2>err
code=$?
printf '    2 A new failure of FILE with N\n    1 another error that is new\n' >wanted
if [ $code -eq 1 ] && cmp -s out wanted && grep -q '^4 texts, 2 without' err; then
    ok "unexplained texts of a log"
else
    fail "unexplained texts of a log" "expected two, once each"
fi

epctx explain "$(printf 'not found\nloading out/model_ctx.onnx\nsoc_model 43, encryption off')"
said "words of different lines are no message" 1 "nothing is known"
# Exit codes of Windows are none of QNN's, although their lower half may be.
for number in 0xC0000409 0xC0000005 0xC0001389 3221226505; do
    epctx explain "$number"
    if grep -q "QNN error" out; then
        fail "explain $number is no error of QNN" "QNN error"
    else
        ok "explain $number is no error of QNN"
    fi
done
epctx explain "error in line 5005 of the file"
said "a number that is no error" 1 "nothing is known"
epctx explain --json "Error code 5005, Segmentation fault, DmlExecutionProvider"
if [ $code -eq 0 ] && "$python" -c '
import json, sys
found = json.load(sys.stdin)["entries"]
assert [sorted(e) for e in found] == [["cause", "cure", "text"]] * 3, found' <out 2>err; then
    ok "explain --json of three things"
else
    fail "explain --json of three things" "JSON"
fi
exit $status
