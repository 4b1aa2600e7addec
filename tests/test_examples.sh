#!/bin/sh
# examples/README.md as a new user would try it: its commands, in order, from the top of the tree.
set -u
cd "$(dirname "$0")/.."
work=build/examples_test
rm -rf $work build/my_ep
mkdir -p $work
if ! [ -e build/libepctx_ep.so ] || ! [ -e build/tests/test_plugin ]; then
    echo "skip examples README: the plugin is not built"
    exit 0
fi
MODEL=$(find "$(sh tests/deps.sh where blazeface)" -name '*front*.onnx' 2>/dev/null | head -n 1)
if [ -z "$MODEL" ]; then
    echo "skip examples README: the demo's model is not there"
    exit 0
fi
export MODEL
# What `make` would build is built: only the test's own make may run make.
awk '/^```sh$/ { on = 1; next } /^```$/ { on = 0 } on' examples/README.md |
    sed 's/^make .*/:/' >$work/commands.sh
if ! sh -e $work/commands.sh >$work/log 2>&1; then
    echo "FAIL examples README runs: $(tail -n 1 $work/log)"
    cat $work/log
    exit 1
fi
echo "ok examples README runs"
count=$(grep -c 'outputs as on the CPU' $work/log)
if [ "$count" -eq 6 ]; then
    echo "ok examples README: template and own device, three runs each"
else
    echo "FAIL examples README: expected 6 good runs, found $count"
    cat $work/log
    exit 1
fi
for cc in gcc clang; do
    command -v $cc >/dev/null || { echo "skip examples $cc: not installed"; continue; }
    if $cc -std=c11 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wcast-qual \
        -Wstrict-prototypes -Werror -fsyntax-only -DEPCTX_NO_WIRE -I. -Iexamples/plugin_ep \
        examples/my_ep/device_mine.c >$work/log 2>&1; then
        echo "ok examples $cc my_ep"
    else
        echo "FAIL examples $cc my_ep: $(grep -m 1 error $work/log)"
        exit 1
    fi
done
