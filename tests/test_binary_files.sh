#!/bin/sh
# epctx info and ls of context binaries, and of files that are none: what is told, exit codes, JSON.
# Files of each kind are the fuzzer's seeds; genuine ones of vendors are in EPCTX_TEST_MODELS and in
# what tests/vendors.sh compiles.
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
start test_binary_files
seeds=$top/fuzz/corpus/binary
cp "$seeds"/* "$work/"
cd "$work" || exit 1
out=$work/stdout err=$work/stderr

# told NAME CODE FILE LINE...: `info FILE` ends with CODE and prints each line.
told() {
    name=$1 code_wanted=$2 file=$3
    shift 3
    epctx info "$file"
    if [ "$code" -ne "$code_wanted" ]; then
        fail "$name" "exit code $code, expected $code_wanted"
        return
    fi
    for line in "$@"; do
        if ! grep -qF -- "$line" "$out"; then
            fail "$name" "no line '$line'"
            return
        fi
    done
    ok "$name"
}

# -- what is inside --
told "a QNN binary" 0 qnn 'kind           a QNN context binary' \
    'SDK            v2.51.0.260929181845' 'made for       SM8750, v79, 8388608 bytes of VTCM' \
    'graphs         not told by the file'
for dlc in dlc dlc_wide; do
    told "a DLC: $dlc" 0 $dlc 'kind           a QNN DLC' 'version        2.3.0' \
        'made for       SM8750, SC8380XP, v79,v73, 8388608 bytes of VTCM'
done
told "a container" 0 container 'version        1.1.0' 'made by        a test' \
    'SDK            2026.4.1' "graph          'm_1', inputs: 1, outputs: 1" \
    "input          'x<1>' float32[1,?], also x\\,2" "output         'y' int8[4]" \
    'needs          weights.bin, 64 bytes from 64 on'
told "a blob" 0 blob 'made for       AVX2' "output         'y' int8[4]"
told "a blob without a magic" 0 blob_bare "output         'y' int8[4]"
told "an IR" 0 ir "output         'y' int8[4]" 'needs          ir.bin, 24 bytes from 0 on'
told "an IR of an older version" 0 ir_unnamed "output         'y' int8[4], also z"
told "the toy's" 0 toy "graph          'toy_0', inputs: 1, outputs: 1" \
    "input          'a' float32[2]"
told "kinds that are only named" 0 tar 'kind           a Vitis AI cache'
make_models plain
"$epctx" compile plain.onnx >"$out" 2>"$err" || fail "compile" "it failed"
told "the reference NPU's" 0 plain_npu.bin "made for       reference NPU 'generic', SDK 0.1.0" \
    'memory' 'scratch memory: ' "input          'x' float32["

# -- the files that it needs --
epctx ls container
result "ls: a missing file" 1 "container: 1 file that it needs cannot be used"
head -c 127 /dev/zero >weights.bin
epctx ls container
result "ls: a file that is too short" 1 \
    "'weights.bin' has 127 bytes, but the context binary needs 128 of it"
head -c 128 /dev/zero >weights.bin
epctx ls container
result "ls: the file" 0 "$work/weights.bin"
epctx ls qnn
result "ls: no file" 0
if [ -s "$out" ]; then
    fail "ls: none is listed" "expected nothing"
else
    ok "ls: none is listed"
fi
epctx ls --json container
result "ls: JSON" 0 '"users": 2, "name": "weights.bin"'

# -- of several, and of folders --
epctx ls container qnn ir
result "ls: one of several has a file that is missing" 1 "ir.bin"
said "ls: the others are told" 1 "container:"
mkdir -p folder/below
cp container folder/below/c.bin
cp weights.bin folder/below
cp qnn onnx folder
"$epctx" compile plain.onnx -o folder/plain_ctx.onnx >"$out" 2>"$err" || fail "compile" "it failed"
epctx ls folder
result "ls: a folder" 0 "$work/folder/below/weights.bin"
said "ls: its model" 0 "folder/plain_ctx.onnx:"
lacks "ls: what needs nothing" 0 "folder/qnn"
epctx ls --json folder
json "ls: JSON of a folder" '[f["file"] for f in j["files"]] == ["folder/below/c.bin",
    "folder/plain_ctx.onnx"] and j["files"][0]["files"][0]["name"] == "weights.bin"'
epctx ls --json folder/below/weights.bin folder/qnn
json "ls: JSON of one that is none" '[f["file"] for f in j["files"]] == ["folder/qnn"]'
epctx ls -0 container folder/plain_ctx.onnx
if [ "$(tr '\0' '\n' <"$out" | wc -l | tr -d ' ')" = 2 ]; then ok "ls: paths of several"
else fail "ls: paths of several" "$(tr '\0' '\n' <"$out")"; fi
mkdir none
epctx ls none
result "ls: an empty folder" 1 "there is no model or context binary in this folder"
mkdir nothing
cp qnn nothing
epctx ls --json nothing
json "ls: a folder that needs nothing" 'j["files"] == []'

# -- damage --
head -c 2000 container >short
told "cut off" 1 short 'warning:       it is cut off: the blob'
said "cut off, on standard error" 1 "a container of OpenVINO blobs is cut off: the blob 'm_0'"
epctx info --json short
result "cut off: JSON" 1 '"damage": "is cut off: the blob'
epctx ls short
result "cut off: ls" 1 "is cut off: the blob 'm_0'"
head -c 1500 dlc >short
told "a DLC without its end" 1 short 'warning:       it is cut off: the directory'

# -- what is neither --
# foreign NAME TEXT: `info FILE` refuses the file in $work/file, and says what it is.
foreign() {
    epctx info file
    result "$1" 1 "$2"
}
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:12\nsize 3\n' >file
foreign "an LFS pointer" "this is a Git LFS pointer, not an ONNX model: run 'git lfs pull'"
printf '<!DOCTYPE html>\n<html></html>\n' >file
foreign "an HTML page" 'this is an HTML page, not an ONNX model: download the file itself'
printf '{"error": "not found"}\n' >file
foreign "a JSON document" 'this is a JSON document'
cp crlf file
foreign "line ends converted" 'this is a binary file whose line ends were converted to CRLF'
cp utf8 file
foreign "converted to UTF-8" 'this is a binary file that was converted to UTF-8'
gzip -c onnx >file
foreign "gzip" 'this is a gzip archive, not an ONNX model: unpack it first'
head -c 4000 /dev/zero >file
foreign "zeros" 'this is a file of one repeated byte'
: >file
foreign "empty" 'empty'

# -- a binary that is not where the model names it --
mkdir around
make_models plain
"$plain" compile -f plain.onnx -o around/m_ctx.onnx >/dev/null
# around NAME FILE TEXT REPAIRS: the binary is FILE, a download a part of it; lint tells TEXT, and
# repair finds it, or not
around() {
    mkdir -p "around/$(dirname "$2")"
    case $2 in
    *.bin.*) head -c 100 around/m_npu.bin >"around/$2" ;;
    *) cp around/m_npu.bin "around/$2" ;;
    esac
    mv around/m_npu.bin kept
    epctx lint around/m_ctx.onnx
    if [ "$code" -eq 1 ] && grep -qF -- "$3" "$out"; then ok "lint: $1"
    else fail "lint: $1" "exit code $code, no '$3'"; fi
    epctx repair around/m_ctx.onnx -o around/again_ctx.onnx -f
    "$plain" lint around/again_ctx.onnx >/dev/null 2>&1
    code=$?
    if [ "$code" -eq "$4" ]; then ok "repair: $1"
    else fail "repair: $1" "lint of the result ends with $code, expected $4"; fi
    rm "around/$2"
    mv kept around/m_npu.bin
}
around "other letters" M_npu.BIN "; 'M_npu.BIN' is there, in other letters" 0
around "the folder bin" bin/m_npu.bin "; 'bin/m_npu.bin' is there" 0
around "a download that did not end" m_npu.bin.crdownload \
    "; 'm_npu.bin.crdownload' is there: a download that did not end" 1
around "another file that did not end" m_npu.bin.part "; 'm_npu.bin.part' is there: a download" 1
around "elsewhere" far/m_npu.bin "file 'm_npu.bin' does not exist" 1

# -- genuine binaries: none may be foreign --
models=${EPCTX_TEST_MODELS:-}
found=0
if [ -n "$models" ] && [ -d "$models/epcontext" ]; then
    for file in "$models"/epcontext/ort_testdata/*; do
        case $file in *.onnx | *ovir.bin) continue ;; esac
        found=$((found + 1))
        told "genuine: $(basename "$file" | cut -c 1-40)" 0 "$file" 'kind           a'
    done
fi
[ $found -gt 0 ] || echo "skip genuine binaries: EPCTX_TEST_MODELS has none"
exit $status
