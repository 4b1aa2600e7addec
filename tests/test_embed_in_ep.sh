#!/bin/sh
# examples/embed_in_ep: an EP in C++17 with epctx.h inside, by both compilers, and run. No ONNX
# Runtime and no nanopb are needed.
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
start embed_in_ep
sanitize="-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all"
quick && sanitize=-O0
flags="-std=c++17 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wcast-qual -Werror"
for cxx in g++ clang++; do
    command -v $cxx >/dev/null || { echo "skip embed_in_ep $cxx: not installed"; continue; }
    # shellcheck disable=SC2086 # a list of words
    if $cxx $flags -DEPCTX_NO_WIRE -fsyntax-only -I. examples/embed_in_ep/acme_ep.cc \
        >$work/log 2>&1; then
        echo "ok embed_in_ep $cxx with EPCTX_NO_WIRE on the command line"
    else
        echo "FAIL embed_in_ep $cxx with EPCTX_NO_WIRE on the command line: $(head -n 1 $work/log)"
        status=1
    fi
    # shellcheck disable=SC2086 # a list of words
    if $cxx $flags $sanitize -I. \
        examples/embed_in_ep/acme_ep.cc -o $work/acme_$cxx >$work/log 2>&1; then
        echo "ok embed_in_ep $cxx compiles"
        $work/acme_$cxx | sed "s/ embed_in_ep / embed_in_ep $cxx /" >$work/out
        cat $work/out
        grep -q '^ok' $work/out || { echo "FAIL embed_in_ep $cxx: reported nothing"; status=1; }
        ! grep -q '^FAIL' $work/out || status=1
    else
        echo "FAIL embed_in_ep $cxx compiles: $(grep -m 1 error $work/log)"
        cat $work/log
        status=1
    fi
done
exit $status
