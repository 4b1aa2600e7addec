#!/bin/sh
# examples/embed_in_ep, by both C++ compilers: an EP inside ORT's tree with epctx.h inside, run by
# itself; and a plugin EP with ORT's wrapper types (epctx_ort.hpp), run by the real ONNX Runtime: by
# the cases of test_plugin and test_plugin_share that ask nothing special of a device, and by
# epctx-conformance. A quick run tries the plugin of one compiler.
# runs: once
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
start embed_in_ep
out=$work/out err=$work/log
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

# ------------------------------------------------------- a plugin with ORT's wrapper types

headers=$(sh tests/deps.sh where ort-headers)
if ! [ -e "$headers/onnxruntime_cxx_api.h" ]; then
    echo "skip embed_in_ep plugin: $headers has no onnxruntime_cxx_api.h"
    exit $status
fi
# Not among them: a virtual NPU, the EP options of examples/plugin_ep, control flow, the log.
plugin_cases="jit jit_partitions nothing_is_written types_of_values generate_by_options
    generate_embedded partitions_in_one_binary far_folder devices compile_api
    compile_api_without_place prefix external_initializers_in external_initializers_out
    initializers_folder foreign_nodes_left_alone compiled_input_refused reload_from_memory
    binary_changed_while_loaded bad_contexts payload_as_path other_hardware other_generation
    other_shape_than_compiled primaries_and_secondaries bad_options
    options_of_the_other_phase unknown_entry compile_disabled without_the_ep nothing_compiled
    compile_api_external_initializers compatibility shared_constant_node unread_results
    pruned_output attribute_of_a_type constant_nodes concurrent_runs concurrent_sessions"
share_cases="generate_group compiling_session_does_not_run generate_by_compile_api
    generating_session_fails model_not_written no_last_session abandoned_group
    groups_after_each_other group_refuses
    last_session_without_nodes binary_opened_once prefix graph_of_another_generation
    any_order_of_release same_model_twice graphs_come_back bad_binaries threads"
rows_cases="own_node named_buffers named_buffers_fail named_buffers_names what_comes_with_the_bytes"

# The adapter in a source that has ORT's header by ORT's own idiom, and a member of the name that
# ORT's example EPs have; with exceptions and without.
cat >"$work/idiom.cc" <<'END'
#define ORT_API_MANUAL_INIT
#include <onnxruntime_cxx_api.h>
#undef ORT_API_MANUAL_INIT
#include "epctx_ort.hpp"
#include <type_traits>
static_assert(std::is_base_of<Ort::Exception, epctx::Failure>::value, "one kind of exception");
struct Ep : OrtEp {
    explicit Ep(const OrtEpApi &api) : OrtEp{}, ep_api(api) {}
    bool Claims(Ort::ConstNode node) const { return epctx::IsMine(node, "MyExecutionProvider"); }
    OrtStatus *Claim(const OrtGraph *graph)
    {
        return epctx::Guard([&] { epctx::Record record(graph); (void)record.Graph(); });
    }
    const OrtEpApi &ep_api;
};
OrtStatus *Use(const OrtApi &ort_api, const OrtGraph *graph);
OrtStatus *Use(const OrtApi &ort_api, const OrtGraph *graph)
{
    (void)ort_api;
    return Ep(Ort::GetEpApi()).Claim(graph);
}
END
for cxx in g++ clang++; do
    command -v $cxx >/dev/null || { echo "skip embed_in_ep $cxx idiom: not installed"; continue; }
    for words in "" "-fno-exceptions -fno-rtti -DORT_NO_EXCEPTIONS"; do
        # shellcheck disable=SC2086 # lists of words
        if $cxx $flags $words -fsyntax-only -I. -Iexamples/plugin_ep -Iexamples/embed_in_ep \
            -isystem "$headers" "$work/idiom.cc" >"$work/log" 2>&1; then
            ok "embed_in_ep $cxx idiom $words"
        else fail "embed_in_ep $cxx idiom $words" "$(grep -m 1 -E 'error|warning' "$work/log")"; fi
    done
done

# build_plugin COMPILER: $plugin
build_plugin() {
    plugin=$work/$1/libvector_ep.so
    mkdir -p "$work/$1"
    common="-O0 -fPIC -fvisibility=hidden -DEPCTX_NO_WIRE -I. -Iexamples/plugin_ep"
    for file in epctx graph node buffers status; do
        # shellcheck disable=SC2086 # a list of words
        ${CC:-gcc} $common -isystem "$headers" -c examples/plugin_ep/$file.c \
            -o "$work/$1/$file.o" >"$work/log" 2>&1 || return 1
    done
    # shellcheck disable=SC2086 # a list of words
    $1 $flags $common -isystem "$headers" -DORT_API_MANUAL_INIT -shared \
        examples/embed_in_ep/vector_*.cc "$work/$1"/*.o -Wl,-z,defs -pthread -o "$plugin" \
        >"$work/log" 2>&1
}

# try_cases PROGRAM CASE...: none fails, each is run
try_cases() {
    program=$1
    shift
    if ! [ -x "$build/tests/$program" ]; then
        echo "skip embed_in_ep $cxx $program: $build/tests/$program is not built"
        return
    fi
    EPCTX_TEST_EP="vector $plugin VectorExecutionProvider vector" \
        "$build/tests/$program" "$@" >"$work/out" 2>&1
    code=$?
    passed=$(grep -c '^ok vector ' "$work/out")
    if [ $code -eq 0 ] && [ "$passed" -eq $# ]; then
        ok "embed_in_ep $cxx $program: $passed cases"
    else
        fail "embed_in_ep $cxx $program" \
            "exit code $code, $passed cases of $# passed: $(grep -m 1 '^FAIL' "$work/out")"
    fi
}

for cxx in g++ clang++; do
    command -v $cxx >/dev/null || { echo "skip embed_in_ep $cxx plugin: not installed"; continue; }
    if quick && [ $cxx = clang++ ]; then continue; fi
    if ! build_plugin $cxx; then
        fail "embed_in_ep $cxx plugin compiles" "$(grep -m 1 error "$work/log")"
        continue
    fi
    ok "embed_in_ep $cxx plugin compiles"
    # shellcheck disable=SC2086 # lists of cases
    try_cases test_plugin $plugin_cases
    # shellcheck disable=SC2086
    try_cases test_plugin_share $share_cases
    # shellcheck disable=SC2086
    try_cases test_plugin_rows $rows_cases
    if ! [ -x "$build/epctx-conformance" ]; then
        echo "skip embed_in_ep $cxx conformance: $build/epctx-conformance is not built"
        continue
    fi
    "$build/epctx-conformance" "$plugin" >"$work/out" 2>&1
    code=$?
    passed=$(sed -n 's/^\([0-9]*\) passed, .*/\1/p' "$work/out")
    if [ $code -eq 0 ] && [ "${passed:-0}" -ge 185 ]; then
        ok "embed_in_ep $cxx conformance: $passed rules hold"
    else
        fail "embed_in_ep $cxx conformance" \
            "exit code $code, ${passed:-no} rules hold, expected at least 185: $(grep -m 1 -A 1 \
                '^FAILED' "$work/out")"
    fi
done
exit $status
