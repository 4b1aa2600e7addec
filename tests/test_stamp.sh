#!/bin/sh
# `epctx stamp`: models that the project did not compile know what they were made from.
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
one_form
start stamp
make_models plain
cd "$work" || exit 1

expect() {
    name=$1 want=$2 text=$3
    shift 3
    epctx "$@"
    said "$name" "$want" "$text"
}

# -- a vendor's binary and the model that it was compiled from --
{ printf '\001v\377'; head -c 4997 /dev/zero | tr '\0' v; } >vendor.bin
cp plain.onnx model.onnx
expect "a model for a vendor's binary" 0 "" wrap vendor.bin --profile qnn \
    --inputs 'x:float32[1,1,6,6]' --outputs 'y:float32[1,2,1,1]' -o model_ctx.onnx
expect "it has no stamp" 4 "no build stamp" check --fresh model_ctx.onnx
expect "a model that is not compiled" 4 "not compiled: there is no EPContext" \
    check --fresh plain.onnx
expect "has nothing to compare" 4 "not compiled: there is no EPContext node" check plain.onnx
expect "gets one" 0 "build stamp of QNNExecutionProvider" stamp model_ctx.onnx \
    --source model.onnx --graphs 1 --options "htp, O3" --in-place
expect "fresh" 0 "QNNExecutionProvider: fresh" check --fresh model_ctx.onnx
cp model_ctx.onnx first.onnx
expect "again" 0 "" stamp model_ctx.onnx --source model.onnx --graphs 1 --options "htp, O3" \
    --in-place
if cmp -s first.onnx model_ctx.onnx; then ok "the same bytes"
else fail "the same bytes" "they differ"; fi
# What is not given again stays.
expect "without anything" 0 "" stamp model_ctx.onnx --in-place
same "keeps source, options and graphs" first.onnx model_ctx.onnx
expect "with other options" 0 "" stamp model_ctx.onnx --options O2 -o other_ctx.onnx
expect "has these" 0 ": fresh" check --fresh --options O2 other_ctx.onnx
expect "and only these" 1 "other options" check --fresh --options "htp, O3" other_ctx.onnx
expect "with another source" 0 "" stamp model_ctx.onnx --source plain.onnx -o other_ctx.onnx -f
expect "has its name" 0 "plain.onnx" get other_ctx.onnx metadata:epctx.build.QNNExecutionProvider
lacks "and no other" 0 model.onnx
expect "the options stay" 0 ": fresh" check --fresh --options "htp, O3" other_ctx.onnx
cp vendor.bin saved.bin
printf x >>vendor.bin
expect "for another binary" 0 "" stamp model_ctx.onnx -o other_ctx.onnx -f
expect "the source stays" 0 ": fresh" check --fresh other_ctx.onnx
expect "the number of graphs does not" 0 "binary 5001" get other_ctx.onnx \
    metadata:epctx.build.QNNExecutionProvider
lacks "graphs of another binary" 0 graphs
mv saved.bin vendor.bin
rm other_ctx.onnx
expect "embedded" 0 "" embed model_ctx.onnx -o embedded.onnx
expect "fresh when embedded" 0 ": fresh" check --fresh embedded.onnx
expect "renamed" 0 "" mv vendor.bin other.bin
expect "fresh when renamed" 0 ": fresh" check --fresh model_ctx.onnx
printf x >>other.bin
expect "another binary is noticed" 1 "5001 bytes" check --fresh model_ctx.onnx
expect "lint notices it, too" 1 "E069 binary-stale: 'EPContext': ep_cache_context context " \
    lint model_ctx.onnx
expect "and tells why" 1 "'other.bin' has 5001 bytes, the model was compiled with one of 5000:" \
    lint model_ctx.onnx
expect "wherever it is" 1 "(compile all that share it together)" lint \
    "$PWD/./././././././././././././././././././././././././././././././././././model_ctx.onnx"
expect "unless it is told not to look" 0 "" lint --no-files model_ctx.onnx
cp other.bin saved.bin
head -c 5000 saved.bin | tr v w >other.bin
expect "as many other bytes" 1 "E069 binary-stale" lint model_ctx.onnx
mv saved.bin other.bin
expect "so do commands that move it" 1 "5001 bytes" embed model_ctx.onnx -o no.onnx
head -c 5000 other.bin >o && mv o other.bin
printf x >>model.onnx
expect "another source is noticed" 1 "model.onnx" check --fresh model_ctx.onnx

# -- a source that the result would replace --
expect "the model is not its own source" 1 "belongs to the source model" \
    stamp model_ctx.onnx --source ./model_ctx.onnx --in-place
expect "nor is the result" 1 "belongs to the source model" \
    stamp model_ctx.onnx --source model.onnx -o model.onnx -f

# -- without a source, for one EP, with data files --
expect "no stamp" 0 "" unset model_ctx.onnx metadata:epctx.build.QNNExecutionProvider --in-place
expect "only the binary" 0 "" stamp model_ctx.onnx --in-place
expect "is not enough to be fresh" 4 "names no source" check --fresh model_ctx.onnx
printf x >>other.bin
expect "but a wrong one is stale" 1 "5001 bytes" check --fresh model_ctx.onnx
expect "another EP" 1 "no EPContext node of openvino" stamp model_ctx.onnx --ep openvino --in-place
expect "no EPContext node" 1 "no EPContext node" stamp plain.onnx --in-place
expect "a source with a data file" 0 "" init --external --threshold 1 --name w.data plain.onnx \
    -o external.onnx
expect "data files of the source" 0 "" stamp model_ctx.onnx --ep qnn --source external.onnx \
    -o data_ctx.onnx
expect "are in the stamp" 0 ": fresh" check --fresh data_ctx.onnx
printf x >>w.data
expect "and compared" 1 "w.data" check --fresh data_ctx.onnx

# -- a binary that was renamed by hand --
mkdir renamed && cd renamed || exit 1
cp ../plain.onnx .
expect "a model and its binary" 0 "" compile plain.onnx
mv plain_npu.bin other.bin
head -c 1288 /dev/zero >zero.bin
mkfifo pipe.bin
cp plain_ctx.onnx plain_ctx.saved
expect "is found by its bytes" 0 "is now 'other.bin', which has the bytes of the build stamp" \
    repair --in-place plain_ctx.onnx
expect "and loads" 0 "0 errors" lint plain_ctx.onnx
cp plain_ctx.saved plain_ctx.onnx
cp other.bin again.bin
expect "not when two files have them" 3 "left E022" repair --in-place plain_ctx.onnx
rm again.bin
printf x >>other.bin
expect "nor when none has" 3 "left E022" repair --in-place plain_ctx.onnx
cd ..

# -- nodes that were changed since, and files beside a binary --
make_models partly
mkdir several && cd several || exit 1
cp ../partly.onnx .
expect "a model with two partitions" 0 "" compile --embed partly.onnx
expect "with one binary" 0 ": fresh" check --fresh partly_ctx.onnx
expect "with a second one" 0 "" set --node '#2' partly_ctx.onnx main_context=1 \
    ep_cache_context=x -o two_ctx.onnx
expect "is unknown" 4 "fewer or more context binaries" check --fresh two_ctx.onnx
expect "in JSON, too" 4 '"fresh": "unknown"' check --fresh --json two_ctx.onnx
expect "both get a line" 0 "" stamp two_ctx.onnx --source partly.onnx --in-place
expect "which is compared" 0 ": fresh" check --fresh two_ctx.onnx
printf '<net/>' >w.xml
printf weights >w.bin
expect "an OpenVINO IR" 0 "" wrap w.xml --profile openvino --inputs 'x:float32[1]' \
    --outputs 'y:float32[1]' -o ir_ctx.onnx
expect "gets a stamp" 0 "" stamp ir_ctx.onnx --source partly.onnx --in-place
expect "with its weights" 0 ": fresh" check --fresh ir_ctx.onnx
mv w.xml v.xml && mv w.bin v.bin
expect "renamed with them" 0 "" set ir_ctx.onnx --node '#1' ep_cache_context=v.xml --in-place
expect "still fresh" 0 ": fresh" check --fresh ir_ctx.onnx
printf x >>v.bin
expect "other weights" 1 "'v.bin' has 8 bytes" check --fresh ir_ctx.onnx
expect "are told by lint" 1 "E069" lint ir_ctx.onnx
printf weightS >v.bin
expect "as many other ones, too" 1 "'v.bin' has hash" check --fresh ir_ctx.onnx
printf weights >v.bin
printf x >>v.xml
expect "another .xml" 1 "'v.xml' has 7 bytes" check --fresh ir_ctx.onnx
cd ..

# -- several binaries: a line each, in the order of the nodes --
mkdir lines && cd lines || exit 1
cp ../plain.onnx .
for name in a b c; do
    printf 'binary %s' "$name" >$name.bin
    expect "part $name" 0 "" wrap $name.bin --profile qnn --name part_$name \
        --inputs "x$name:float32[1]" --outputs "y$name:float32[1]" -o ${name}_ctx.onnx
done
expect "three of them" 0 "" merge a_ctx.onnx b_ctx.onnx c_ctx.onnx -o m_ctx.onnx
expect "get a stamp" 0 "" stamp m_ctx.onnx --source plain.onnx --in-place
expect "with three lines" 0 "" get m_ctx.onnx metadata:epctx.build.QNNExecutionProvider
if [ "$(head -n 1 out)" = "epctx 2" ] && [ "$(grep -c '^binary 8 ' out)" -eq 3 ]; then
    ok "of the second format"
else fail "of the second format" "$(cat out)"; fi
expect "fresh with three" 0 ": fresh" check --fresh m_ctx.onnx
cp m_ctx.onnx saved.onnx

# stale NAME: now the model is stale, which everybody sees
stale() {
    expect "$1" 1 "stale: m_ctx.onnx: node" check --fresh m_ctx.onnx
    expect "$1, by lint" 1 "E069" lint m_ctx.onnx
    expect "$1, when it is embedded" 1 "the model was compiled with" embed m_ctx.onnx -o no.onnx
    for name in a b c; do printf 'binary %s' "$name" >$name.bin; done
}
mv a.bin t && mv c.bin a.bin && mv t c.bin
stale "swapped binaries"
cp a.bin b.bin
stale "one in the place of the next"
cp b.bin c.bin
stale "one in the place of the last"
printf 'binary' >b.bin
stale "a cut one"
expect "embedded" 0 "" embed m_ctx.onnx -o e_ctx.onnx
expect "fresh with three inside" 0 ": fresh" check --fresh e_ctx.onnx
expect "extracted again" 0 "" extract e_ctx.onnx -o x_ctx.onnx
expect "fresh with other names" 0 ": fresh" check --fresh x_ctx.onnx
expect "two of them changed places inside" 0 "" set e_ctx.onnx --node '#1' \
    ep_cache_context='binary b' --in-place
expect "are stale" 1 "the embedded context has hash" check --fresh e_ctx.onnx
rm x_ctx*
mv b.bin renamed.bin
expect "one without its file" 1 "b.bin" check --fresh m_ctx.onnx
expect "is found by its line" 0 "'b.bin' is now 'renamed.bin'" repair --in-place m_ctx.onnx
expect "and fresh" 0 ": fresh" check --fresh m_ctx.onnx
cp saved.onnx m_ctx.onnx && mv renamed.bin b.bin

cp b.bin c.bin
expect "the last two alike" 0 "" stamp m_ctx.onnx --in-place
expect "have a line each" 0 "" get m_ctx.onnx metadata:epctx.build.QNNExecutionProvider
if [ "$(grep -c '^binary ' out)" -eq 3 ]; then ok "three lines"; else
    fail "three lines" "$(cat out)"
fi
if grep -q "^replaces [0-9a-f]\{16\}$" out; then ok "and the stamp before"
else fail "and the stamp before" "$(cat out)"; fi
expect "fresh with two" 0 ": fresh" check --fresh m_ctx.onnx
cp m_ctx.onnx first.onnx
expect "stamped once more" 0 "" stamp m_ctx.onnx --in-place
same "nothing changes" first.onnx m_ctx.onnx
printf 'binary d' >c.bin
expect "the last one changed" 1 "'c.bin' has hash" check --fresh m_ctx.onnx
printf 'binary c' >c.bin

# -- stamps of other formats --
# put_stamp TEXT: as the stamp of m_ctx.onnx
put_stamp() {
    cp saved.onnx m_ctx.onnx
    epctx set m_ctx.onnx "metadata:epctx.build.QNNExecutionProvider=$1" --in-place
}
stamp=$(
    "$plain" get saved.onnx metadata:epctx.build.QNNExecutionProvider
    echo x
)
stamp=${stamp%x}
put_stamp "$(printf '%s' "$stamp" | grep -v epctx)"
expect "one of the first format does not say which" 4 "fewer or more context binaries" \
    check --fresh m_ctx.onnx
expect "nor to lint" 0 "" lint m_ctx.onnx
expect "nor to repair" 0 "" repair --in-place m_ctx.onnx
expect "a new one in its place" 0 "" stamp m_ctx.onnx --in-place
expect "keeps its source" 0 ": fresh" check --fresh m_ctx.onnx
put_stamp "$(printf '%s' "$stamp" | sed 's/^epctx 2/epctx 3/')"
expect "one of a newer format" 4 "newer version" check --fresh m_ctx.onnx
put_stamp "$(printf '%s' "$stamp" | sed '$d')"
expect "a line too few" 4 "fewer or more context binaries" check --fresh m_ctx.onnx
put_stamp "$stamp
binary 8 0123456789abcdef"
expect "a line too many" 4 "fewer or more context binaries" check --fresh m_ctx.onnx
cp b.bin c.bin
expect "is not judged by lint" 0 "" lint m_ctx.onnx
expect "nor by embed" 0 "" embed m_ctx.onnx -o no.onnx
rm no.onnx
printf 'binary c' >c.bin
put_stamp "$(printf '%s' "$stamp" | grep -v binary)"
expect "no line" 4 "were not compared" check --fresh m_ctx.onnx
cd ..

# -- options as text --
mkdir options && cd options || exit 1
printf 'binary a' >a.bin
expect "a model of QNN" 0 "" wrap a.bin --profile qnn --inputs "x:float32[1]" \
    --outputs "y:float32[1]" -o o_ctx.onnx
key=metadata:epctx.build.QNNExecutionProvider
expect "a stamp with options" 0 "" set o_ctx.onnx --in-place "$key=epctx 2
options 0123456789abcdef
ep_option backend_path=libQnnHtp.so
ep_option soc_model=69
ep_option
ep_option secret
ep_option a%3Db%25=%0A=
session_option =%
device cpu
binary 8 0123456789abcdef
later_kind of line"
expect "info tells what loading needs" 0 "load with      backend_path=libQnnHtp.so" info o_ctx.onnx
expect "and all" 0 "compiled with  backend_path=libQnnHtp.so soc_model=69 " info o_ctx.onnx
expect "on which device" 0 "QNNExecutionProvider on cpu" info o_ctx.onnx
expect "as JSON" 0 '{"of": "ep", "key": "a=b%", "value": "\u000a=", "load": false}' info --json \
    o_ctx.onnx
expect "an empty key" 0 '{"of": "session", "key": "", "value": "%", "load": false}' info --json \
    o_ctx.onnx
expect "a value that is not told" 0 '"key": "secret", "value": null' info --json o_ctx.onnx
epctx get o_ctx.onnx $key
grep option out >before
expect "a new stamp" 0 "" stamp o_ctx.onnx --in-place
epctx get o_ctx.onnx $key
grep option out >after
[ -s before ] || fail "keeps the options" "there are none"
same "keeps the options" before after
expect "other options" 0 "" stamp o_ctx.onnx --options O2 --in-place
epctx get o_ctx.onnx $key
lacks "replace them" 0 ep_option
expect "a model of OpenVINO" 0 "" set o_ctx.onnx source=OpenVINOExecutionProvider --in-place
expect "with its options" 0 "" set o_ctx.onnx --in-place \
    'metadata:epctx.build.OpenVINOExecutionProvider=epctx 2
ep_option cache_dir=x
ep_option load_config={"CPU":{"INFERENCE_PRECISION_HINT":"f32"}}
session_option ep.share_ep_contexts=1'
expect "needs some of them" 0 \
    'load with      load_config={"CPU":{"INFERENCE_PRECISION_HINT":"f32"}}; session: ep.share' \
    info o_ctx.onnx
cd ..

# -- whom a stamp is about --
mkdir whom && cd whom || exit 1
cp ../plain.onnx .
for name in a b; do
    printf 'binary %s' "$name" >$name.bin
    expect "node $name" 0 "" wrap $name.bin --profile qnn --name part_$name \
        --inputs "x$name:float32[1]" --outputs "y$name:float32[1]" -o ${name}_ctx.onnx
done
expect "of an EP" 0 "" stamp a_ctx.onnx --source plain.onnx --in-place
expect "that no node has any longer" 0 "" set a_ctx.onnx source=QNN -o s_ctx.onnx
expect "it says nothing" 4 "fewer or more" check --fresh s_ctx.onnx
expect "without a context" 0 "" set a_ctx.onnx main_context=0 -o s_ctx.onnx -f
expect "it says nothing, too" 4 "fewer or more" check --fresh s_ctx.onnx
expect "two EPs" 0 "" merge a_ctx.onnx b_ctx.onnx -o m_ctx.onnx
expect "by another name" 0 "" set m_ctx.onnx --node part_b source=OpenVINOExecutionProvider \
    --in-place
expect "one of them" 0 "" stamp m_ctx.onnx --source plain.onnx --profile qnn --in-place
expect "is fresh" 4 "QNNExecutionProvider: fresh" check --fresh m_ctx.onnx
expect "the other unknown" 4 "OpenVINOExecutionProvider: unknown" check --fresh m_ctx.onnx
expect "unless it is not asked for" 0 ": fresh" check --fresh --profile qnn m_ctx.onnx
expect "the other one, too" 0 "" stamp m_ctx.onnx --source plain.onnx --in-place
expect "both are fresh" 0 "OpenVINOExecutionProvider: fresh" check --fresh m_ctx.onnx
expect "a node without an EP" 0 "" unset a_ctx.onnx source -o s_ctx.onnx -f
expect "gets none" 1 "--profile NAME sets their source" stamp s_ctx.onnx -o no.onnx

# One binary, embedded: the EP's second node follows the first.
expect "nodes of one binary" 0 "" set m_ctx.onnx --node part_a source=OpenVINOExecutionProvider \
    -o o_ctx.onnx
expect "the same one" 0 "" set o_ctx.onnx --node part_b ep_cache_context=a.bin --in-place
expect "stamped" 0 "" stamp o_ctx.onnx --source plain.onnx --profile openvino --in-place
expect "fresh in its file" 0 ": fresh" check --fresh --profile openvino o_ctx.onnx
expect "embedded once" 0 "" embed o_ctx.onnx -o e_ctx.onnx
expect "fresh in the model" 0 ": fresh" check --fresh --profile openvino e_ctx.onnx
expect "stamped there" 0 "" stamp e_ctx.onnx --profile openvino --in-place
expect "extracted" 0 "" extract e_ctx.onnx -o x_ctx.onnx
expect "fresh in a file" 0 ": fresh" check --fresh --profile openvino x_ctx.onnx

# A DLC is compared, and found when it was renamed.
cp a.bin a.dlc
expect "a node of a DLC" 0 "" set b_ctx.onnx ep_dlc_context:string=a.dlc -o d_ctx.onnx
expect "gets a line" 0 "" stamp d_ctx.onnx --source plain.onnx --in-place
expect "a fresh one" 0 ": fresh" check --fresh d_ctx.onnx
printf x >>a.dlc
expect "another DLC" 1 "attribute 'ep_dlc_context': context binary 'a.dlc' has 9 bytes" \
    check --fresh d_ctx.onnx
rm a.dlc x_ctx* && mv a.bin z.dlc
expect "a renamed one" 0 "'a.dlc' is now 'z.dlc'" repair d_ctx.onnx --in-place
expect "fresh again" 0 ": fresh" check --fresh d_ctx.onnx

# A first stamp does not cover a second engine.
printf 'binary a' >a.engine && cp a.engine b.engine
for part in a b; do
    expect "engine $part" 0 "" wrap $part.engine --profile nv_tensorrt_rtx --name part_$part \
        --inputs "x$part:float32[1]" --outputs "y$part:float32[1]" -o ${part}_ctx.onnx -f
done
expect "two engines" 0 "" merge a_ctx.onnx b_ctx.onnx -o t_ctx.onnx
expect "one is secondary" 0 "" set t_ctx.onnx --node part_b main_context=0 --in-place
expect "both" 0 "" stamp t_ctx.onnx --source plain.onnx --in-place
expect "are in the stamp" 0 ": fresh" check --fresh t_ctx.onnx
key=metadata:epctx.build.NvTensorRTRTXExecutionProvider
epctx get t_ctx.onnx $key
expect "a first one" 0 "" set t_ctx.onnx "$key=$(grep -v epctx out | sed '$d')" --in-place
expect "has only one" 4 "no hash of the context binary" check --fresh t_ctx.onnx
cd ..

# -- bad input --
rm other.bin
expect "a missing binary" 1 "other.bin" stamp model_ctx.onnx --in-place
expect "a missing source" 1 "none.onnx" stamp model_ctx.onnx --source none.onnx --in-place
expect "a number that is none" 2 "--graphs" stamp model_ctx.onnx --graphs 0 --in-place
exit $status
