#!/bin/sh
# Session options judged by ONNX Runtime's header; `epctx compile --dry-run`.
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
one_form
start option

# Every key of ours is a string of ORT's header under the constant that we name, and every key of
# ORT's that is about EP contexts is one of ours.
"$epctx" compile --options >"$work/list" || exit 1
header=$(sh tests/deps.sh where ort-headers)/onnxruntime_session_options_config_keys.h
if [ -e "$header" ]; then
    tr '\n' ' ' <"$header" | grep -oE 'kOrt[A-Za-z]+ *= *"[a-z_.]+"' | sed 's/ *= */\t/; s/"//g' \
        >"$work/ort"
    cut -f 1,5 "$work/list" | while IFS="$(printf '\t')" read -r key constant; do
        case $key in epctx.*) continue ;; esac
        grep -qxF "$constant	$key" "$work/ort" ||
            echo "FAIL keys as in ONNX Runtime's header: $key: has no $constant with this value"
    done >"$work/wrong"
    grep -E '	ep\.(context_|share_|stop_share_|enable_weightless)' "$work/ort" |
        while IFS="$(printf '\t')" read -r constant key; do
            cut -f 1 "$work/list" | grep -qxF "$key" ||
                echo "FAIL keys as in ONNX Runtime's header: $key: $constant is not in the table"
        done >>"$work/wrong"
    if [ -s "$work/wrong" ]; then
        cat "$work/wrong"
        status=1
    elif [ "$(wc -l <"$work/list")" -lt 19 ]; then
        echo "FAIL keys as in ONNX Runtime's header: only $(wc -l <"$work/list") are listed"
        status=1
    else
        echo "ok keys as in ONNX Runtime's header"
    fi
else
    echo "skip keys: no header of ONNX Runtime, make deps-plugin gets it"
fi

# The table of all keys against the header and, for later releases, the library: nothing is missing,
# and nothing is there that neither has.
library=${EPCTX_ORT_LIBRARY:-$(sh tests/deps.sh where ort)}
[ ! -d "$library" ] || library=$library/libonnxruntime.so.1
sed -n 's/^option: \([a-z0-9_.]*\).*/\1/p' examples/epctx/facts/options.facts | grep -v '^epctx\.' \
    >"$work/keys"
if [ ! -e "$header" ] || [ ! -e "$library" ]; then
    echo "skip all keys: no header or library of ONNX Runtime"
else
    spaces='(session|ep|optimization|mlas)'
    tr '\n' ' ' <"$header" | grep -oE 'kOrt[A-Za-z0-9_]+ *= *"[^"]+"' | cut -d '"' -f 2 |
        grep -E "^$spaces\." >"$work/named"
    # Strings of the library, whole: others are made of pieces there.
    tr -c '[:print:]' '\n' <"$library" |
        grep -aE "^$spaces\.[a-z0-9_.]{6,}[a-z0-9_]\$" >"$work/strings"
    sort -u "$work/named" "$work/strings" >"$work/both"
    sort -u "$work/keys" >"$work/sorted"
    missing=$(comm -13 "$work/sorted" "$work/both" | tr '\n' ' ')
    surplus=
    for key in $(comm -23 "$work/sorted" "$work/both"); do
        grep -qaF "$key" "$library" || surplus="$surplus $key"
    done
    if [ -n "$missing" ]; then
        fail "all keys of ONNX Runtime" "not in examples/epctx/facts/options.facts: $missing"
    elif grep -qx session.function_expansion_node_limit "$work/strings" && [ -n "$surplus" ]; then
        fail "all keys of ONNX Runtime" "neither in the header nor in the library:$surplus"
    elif [ "$(wc -l <"$work/keys")" -lt 100 ]; then
        fail "all keys of ONNX Runtime" "only $(wc -l <"$work/keys") keys"
    else
        ok "all keys of ONNX Runtime"
    fi
fi

# -- dry run --
"${PYTHON:-/usr/bin/python3}" tests/judge/make_model.py plain "$work/m.onnx" || exit 1
cd "$work" || exit 1

# dry NAME CODE TEXT ARGUMENTS...: exit code, TEXT in what is said, no new file.
dry() {
    name=$1 want=$2 text=$3
    shift 3
    ls >before
    "$epctx" compile --dry-run "$@" >out 2>&1
    code=$?
    ls >after
    if [ $code -ne "$want" ]; then
        echo "FAIL $name: exit code $code, expected $want: $(cat out)"
        status=1
    elif ! grep -qF -e "$text" out; then
        echo "FAIL $name: expected '$text', found: $(cat out)"
        status=1
    elif ! cmp -s before after; then
        echo "FAIL $name: files have changed: $(diff before after | tr '\n' ' ')"
        status=1
    else
        echo "ok $name"
    fi
}
touch before after out
dry "dry run names the binary" 0 "binary         m_npu.bin" m.onnx
dry "dry run names the model" 0 "model          m_ctx.onnx" m.onnx
dry "dry run embedded" 0 "binary         embedded" --embed m.onnx
dry "dry run without a folder" 1 "nowhere/m.onnx: its folder does not exist" \
    -o nowhere/m.onnx m.onnx
dry "dry run onto the source" 1 "belongs to the source model" -f -o m.onnx m.onnx
dry "dry run with a folder as output" 1 "should not point to a folder" -o out.d/ m.onnx
touch m_npu.bin
dry "dry run with an output that exists" 1 "m_npu.bin: exists already" m.onnx
dry "dry run that may replace" 0 "binary         m_npu.bin" -f m.onnx

# -- misspelled keys --
while IFS='|' read -r key text; do
    epctx explain "$key"
    case $text in
    "") said "no word about $key" 1 "nothing is known" ;;
    *) said "explain $key" 0 "$text" ;;
    esac
done <<'END'
session.function_expansion_node_limit|since 1.31
session.function_expansion_byte_limit|1073741824
session.disable_prepacking|A session option of ONNX Runtime.
session.function_expansion_node_limt|did you mean 'session.function_expansion_node_limit'?
session.function_expansion_limit|did you mean 'session.function_expansion_
sesion.disable_prepacking|did you mean 'session.disable_prepacking'?
session.Disable_Prepacking|did you mean 'session.disable_prepacking'?
ep.cuda.fpa_intb_gem|did you mean 'ep.cuda.fpa_intb_gemm'?
ep.context_embedmode|did you mean 'ep.context_embed_mode'?
ep.dynamic.workload_typ|did you mean 'ep.dynamic.workload_type'?
ep.acme.fpa_intb_gemm|
ep.acme.share_ep_contexts|
acme.turbo|
turbo|
END
exit $status
