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
# Of the same EP whose device wants the weights as inputs of its nodes.
weights_cases="jit jit_partitions generate_embedded partitions_in_one_binary
    prefix reload_from_memory concurrent_runs"
rows_cases="own_node own_option named_buffers named_buffers_fail named_buffers_names
    what_comes_with_the_bytes own_attribute_of_another_type"

# The ways in which plugin EPs include ORT's headers: NAME, then the lines of a source. FOLDER: the
# headers are found only by a longer name. ADAPTER: the adapter's place; by default it is the last.
cat >"$work/styles" <<'END'
idiom       |#define ORT_API_MANUAL_INIT|#include <onnxruntime_cxx_api.h>|#undef ORT_API_MANUAL_INIT
kept        |#define ORT_API_MANUAL_INIT|#include <onnxruntime_cxx_api.h>
linked      |#include <onnxruntime_cxx_api.h>
afterwards  |#include <onnxruntime_cxx_api.h>|#define ORT_API_MANUAL_INIT
c_first     |#include <onnxruntime_c_api.h>|#include <cstdint>
adapter_only|
adapter_first|ADAPTER|#define ORT_API_MANUAL_INIT|#include <onnxruntime_cxx_api.h>|#undef ORT_API_MANUAL_INIT
session     |FOLDER|#define ORT_API_MANUAL_INIT|#include "onnxruntime/core/session/onnxruntime_cxx_api.h"
core        |FOLDER|#include "core/session/onnxruntime_c_api.h"|#include "core/session/onnxruntime_cxx_api.h"
using       |#include <onnxruntime_cxx_api.h>|ADAPTER|using namespace Ort;|using namespace epctx;
precompiled |PRECOMPILED
END
# What an EP then does with it, with members of the names that ORT's example EPs have.
cat >"$work/use.inc" <<'END'
#include <type_traits>
static_assert(std::is_base_of<Ort::Exception, epctx::Failure>::value, "one kind of exception");
namespace onnxruntime { namespace my_ep {
struct Ep : ort131_ep {
    explicit Ep(const OrtEpApi &api) : ort131_ep{}, ep_api(api) { epctx::Buffers::Announce(this); }
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
} }
END
for folder in onnxruntime/core/session core/session; do
    mkdir -p "$work/tree/${folder%/*}"
    ln -s "$headers" "$work/tree/$folder"
done
adapter='#include "epctx_ort.hpp"'
precompiled="$(sed -n 's/^idiom *|//p' "$work/styles" | tr '|' '\n')"

# compile_style COMPILER WORDS: $style.cc
compile_style() {
    find="-isystem $headers"
    ! grep -q '^FOLDER' "$work/styles.$style" || find="-isystem $work/tree"
    before=
    if [ $style = precompiled ]; then
        printf '%s\n' "$precompiled" >"$work/pch.h"
        # shellcheck disable=SC2086 # lists of words
        $1 $flags $2 $find -x c++-header "$work/pch.h" -o "$work/pch.h.$1" || return 1
        before="-include $work/pch.h"
        case $1 in clang*) before="-include-pch $work/pch.h.$1" ;; *)
            cp "$work/pch.h.$1" "$work/pch.h.gch" && before="$before -Winvalid-pch" ;;
        esac
    fi
    # shellcheck disable=SC2086
    $1 $flags $2 $before -DEPCTX_NO_WIRE -fsyntax-only -I. -Iexamples/plugin_ep \
        -Iexamples/embed_in_ep $find "$work/$style.cc"
}

cut -d '|' -f 1 "$work/styles" | tr -d ' ' >"$work/names"
turn=0
while read -r style; do
    sed -n "s/^$style *|//p" "$work/styles" | tr '|' '\n' >"$work/styles.$style"
    grep -q '^ADAPTER' "$work/styles.$style" || echo ADAPTER >>"$work/styles.$style"
    { sed -e "s/^ADAPTER/$(echo "$adapter" | sed 's/[/&]/\\&/g')/" -e '/^FOLDER/d' \
        -e '/^PRECOMPILED/d' "$work/styles.$style"; cat "$work/use.inc"; } >"$work/$style.cc"
    turn=$((turn + 1))
    for cxx in g++ clang++; do
        # A quick run gives each way to one of the compilers, every third without exceptions.
        quick && [ $cxx = "$([ $((turn % 2)) -eq 0 ] && echo g++ || echo clang++)" ] && continue
        command -v $cxx >/dev/null ||
            { echo "skip embed_in_ep $cxx $style: not installed"; continue; }
        for words in "" "-fno-exceptions -fno-rtti -DORT_NO_EXCEPTIONS"; do
            [ -z "$words" ] || ! quick || [ $((turn % 3)) -eq 0 ] || continue
            if compile_style $cxx "$words" >"$work/log" 2>&1; then
                ok "embed_in_ep $cxx style $style $words"
            else fail "embed_in_ep $cxx style $style $words" \
                "$(grep -m 1 -E 'error|warning' "$work/log")"; fi
        done
    done
done <"$work/names"

# The C half with ORT's headers as they were in older releases: those of API 29 without what their
# comments say came later (held against the real ones of API 26: the same tables). And by a longer
# name only, as above.
cat >"$work/older.awk" <<'END'
/\/\*\*/ { since = 0 }
match($0, /[\\@]since Version 1\.[0-9]+/) { since = substr($0, RSTART + 17, RLENGTH - 17) + 0 }
/\*\// && !dropping { print; ended = 1; next }
ended && since > api && !dropping && NF { dropping = 1; depth = 0 }
NF { ended = 0 }
dropping {
    sub(/\/\/.*/, "")
    depth += gsub(/[({]/, "") - gsub(/[)}]/, "")
    if (/;/ && depth <= 0) dropping = since = 0
    next
}
/FLOAT8E8M0|DATA_TYPE_U?INT2,/ { next }
/#define ORT_API_VERSION/ { print "#define ORT_API_VERSION " api; next }
{ print }
END
c_flags="-std=c99 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wcast-qual -Wstrict-prototypes
    -Werror -DEPCTX_NO_WIRE -fsyntax-only -I. -Iexamples/plugin_ep"
for api in 24 27 folder; do
    if [ $api = folder ]; then
        find="-isystem $work/tree -include onnxruntime/core/session/onnxruntime_c_api.h"
    else
        find="-isystem $work/api$api"
        mkdir "$work/api$api"
        for file in "$headers"/*.h; do
            awk -v api=$api -f "$work/older.awk" "$file" >"$work/api$api/${file##*/}"
        done
        if ! grep -q 'GetApi' "$work/api$api/onnxruntime_c_api.h" ||
            grep -q -e 'GetExperimentalFunction,' -e 'GetWeightlessSupport,' \
                "$work/api$api"/*_c_api.h; then
            fail "embed_in_ep headers of API $api" "expected neither more nor less than it had"
        fi
    fi
    for file in graph node buffers status; do
        # shellcheck disable=SC2086 # lists of words
        if ${CC:-gcc} $c_flags $find examples/plugin_ep/$file.c >"$work/log" 2>&1; then
            ok "embed_in_ep $file.c with headers of $api"
        else fail "embed_in_ep $file.c with headers of $api" "$(grep -m 1 error "$work/log")"; fi
    done
done
# The whole EP wants newer ones, and says so in one line.
${CC:-gcc} -std=c99 -DEPCTX_NO_WIRE -fsyntax-only -I. -isystem "$work/api24" \
    examples/plugin_ep/load.c >"$work/log" 2>&1
if grep -q '#error "plugin_ep: compile it with .* headers of API 29 or newer' "$work/log"; then
    ok "embed_in_ep plugin_ep with headers of 24"
else fail "embed_in_ep plugin_ep with headers of 24" "$(grep -m 1 error "$work/log")"; fi

# The device of vector_ep.cc, but for one word.
cat >"$work/weights.inc" <<'END'
#include "vector_device.hpp" // which declares PlainBackend, by -D
#undef Backend
namespace vector {
epctx_backend Backend();
epctx_backend Backend()
{
    epctx_backend backend = PlainBackend();
    backend.weight_inputs = true;
    return backend;
}
}
END

# build_plugin COMPILER: $plugin, and $weights, which wants weights as inputs and can be told to
# spoil its nodes
build_plugin() {
    plugin=$work/$1/libvector_ep.so weights=$work/$1/libweights_ep.so
    mkdir -p "$work/$1"
    common="-O0 -fPIC -fvisibility=hidden -DEPCTX_NO_WIRE -I. -Iexamples/plugin_ep"
    for file in epctx graph node buffers status; do
        # shellcheck disable=SC2086 # a list of words
        ${CC:-gcc} $common -isystem "$headers" -c examples/plugin_ep/$file.c \
            -o "$work/$1/$file.o" >"$work/log" 2>&1 || return 1
    done
    # shellcheck disable=SC2086 # a list of words
    ${CC:-gcc} $common -isystem "$headers" -c tests/ort/unloadable.c \
        -o "$work/$1.unloadable.o" >"$work/log" 2>&1 || return 1
    compile="$1 $flags $common -Iexamples/embed_in_ep -isystem $headers -DORT_API_MANUAL_INIT"
    # shellcheck disable=SC2086
    { $compile -c examples/embed_in_ep/vector_ep.cc -o "$work/$1/vector_ep.o" &&
        $compile -shared examples/embed_in_ep/vector_device.cc "$work/$1"/*.o -Wl,-z,defs \
            -pthread -o "$plugin" &&
        $compile -shared -DBackend=PlainBackend examples/embed_in_ep/vector_device.cc \
            -x c++ "$work/weights.inc" -x none "$work/$1"/*.o "$work/$1.unloadable.o" \
            -Wl,--wrap=epctx_epnode_from_record -Wl,--wrap=epctx_ort_context_node_own \
            -Wl,-z,defs -pthread -o "$weights"; } >"$work/log" 2>&1
}

# try_cases LABEL LIBRARY PROGRAM CASE...: none fails, each is run
try_cases() {
    label=$1 library=$2 program=$3
    shift 3
    if ! [ -x "$build/tests/$program" ]; then
        echo "skip embed_in_ep $cxx $label $program: $build/tests/$program is not built"
        return
    fi
    EPCTX_TEST_EP="$label $library VectorExecutionProvider vector" \
        "$build/tests/$program" "$@" >"$work/out" 2>&1
    code=$?
    passed=$(grep -c "^ok $label " "$work/out")
    if [ $code -eq 0 ] && [ "$passed" -eq $# ]; then
        ok "embed_in_ep $cxx $label $program: $passed cases"
    else
        fail "embed_in_ep $cxx $label $program" \
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
    try_cases vector "$plugin" test_plugin $plugin_cases
    # shellcheck disable=SC2086
    try_cases vector "$plugin" test_plugin_share $share_cases
    # shellcheck disable=SC2086
    try_cases vector "$plugin" test_plugin_rows $rows_cases
    # shellcheck disable=SC2086
    try_cases weights "$weights" test_plugin $weights_cases
    try_cases weights "$weights" test_plugin_share generate_group generate_by_compile_api
    try_cases weights "$weights" test_plugin_rows weight_inputs unloadable_nodes
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
