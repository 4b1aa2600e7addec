#!/bin/sh
# Every real model there is, whole and damaged, judged by libprotobuf:
# byte-identical copies, equal dumps of all names and values, equal verdicts on
# damaged files.
# runs: once
set -eu
cd "$(dirname "$0")/.."
. tests/script.sh
judge=tests/judge/corpus.py
data=/usr/share/libonnx-testdata/data

# Models with every element type and attribute type, raw and typed: no corpus has them all.
start onnx_corpus
made=$work
"$python" tests/judge/values.py $made
"$python" $judge whole "$plain" $made/*.onnx || status=1

small=
if [ -d $data ]; then
    find $data -name '*.onnx' | LC_ALL=C sort | tr '\n' '\0' |
        xargs -0 "$python" $judge whole "$plain" || status=1
    # Small models of many kinds, every one of them hit often.
    small=$(find $data -name '*.onnx' -size -6k | LC_ALL=C sort | awk 'NR % 30 == 0')
else
    echo "skip corpus of libonnx-testdata: $data is not there"
fi

models=${EPCTX_TEST_MODELS:-}
if [ -n "$models" ]; then
    find "$models" -name '*.onnx' | LC_ALL=C sort | tr '\n' '\0' |
        xargs -0 "$python" $judge whole "$plain" || status=1
    small="$small $(find "$models"/epcontext -name '*.onnx' -size -30k | LC_ALL=C sort)"
else
    echo "skip corpus of EPCTX_TEST_MODELS: the variable is not set"
fi

small="$small $made/raw.onnx $made/typed.onnx"
# shellcheck disable=SC2086 # a list of names without blanks
{
    for seed in $(rounds "1 2 3" 1); do
        "$python" $judge damaged "$plain" $seed 1000 $small || status=1
    done
    # Fewer for the sanitized tool: it takes ten times as long to start.
    "$python" $judge refused "$epctx" 4 "$(rounds 400 100)" $small || status=1
}
exit $status
