#!/bin/sh
# build.sh OUT.html: the page with everything in it: style, scripts, and the tool as WebAssembly.
# `make web` installs what it needs.
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
here=$top/examples/web
folder=$top/build/web
nanopb=$(sh "$top/tests/deps.sh" where nanopb-source)
mkdir -p "$folder"
cd "$top"
make -s build/view_page.h build/facts_table.h

# What runs in the page: looking, not changing. What only the commands left out need is dropped when
# it is linked.
commands="commands/convert commands/copy commands/diff commands/diff_partitions
    commands/diff_text commands/explain commands/info commands/info_binary commands/lint
    commands/ls commands/npu_dump commands/scan commands/view core/cli core/cure core/fail
    core/findings core/given core/guess core/json core/json_writer core/judge core/listings
    core/neighbours core/npu core/npu_graph core/options core/output core/report core/rules
    core/session core/session_keys core/target core/tensors core/text core/values core/vendors
    delivery/delivery delivery/each delivery/find delivery/genai delivery/genai_schema
    delivery/package_lint delivery/tree view/view_graph view/view_npu"
emulated="-D_WASI_EMULATED_SIGNAL -D_WASI_EMULATED_MMAN -D_WASI_EMULATED_PROCESS_CLOCKS"
include="-I. -Iexamples/epctx -isystem $nanopb"
flags="--target=wasm32-wasi -Oz -std=c11 -DEPCTX_CLI_NO_PACKAGE $include"
compile() { # NAME FLAG...
    object=$folder/$1.o
    shift
    # shellcheck disable=SC2086 # a list of words
    ${CLANG:-clang} $flags "$@" -c -o "$object"
    objects="$objects $object"
}
objects=
compile epctx -DEPCTX_NO_STDIO -DEPCTX_IMPLEMENTATION -x c epctx.h
compile npu -DEPCTX_NO_STDIO -DEPCTX_NPU_IMPLEMENTATION -x c epctx_npu.h
for part in common decode encode; do compile pb_$part "$nanopb/pb_$part.c"; done
for source in examples/web/web.c examples/epctx/ops/*.c examples/epctx/binary/*.c \
    examples/epctx/facts/facts*.c $commands; do
    case $source in
    *.c) ;;
    *) source=examples/epctx/$source.c ;;
    esac
    # shellcheck disable=SC2086
    compile "$(echo "$source" | tr / _)" $emulated -Depctx_io_files=web_io_files "$source"
done
# Native stacks have megabytes, this one 64 KiB unless told; lint tries cures while it reports.
# shellcheck disable=SC2086
${CLANG:-clang} --target=wasm32-wasi -Oz $objects -Wl,--gc-sections,--strip-all \
    -Wl,-z,stack-size=1048576 \
    -lwasi-emulated-signal -lwasi-emulated-mman -lwasi-emulated-process-clocks \
    -o "$folder/epctx.wasm"

# A script as a JavaScript string; "</" would end the element that it stands in.
quoted() { sed 's/\\/\\\\/g; s/`/\\`/g; s/\${/\\${/g; s|</|<\\/|g' "$1"; }
{
    printf 'const WASM = "'
    base64 -w 0 "$folder/epctx.wasm"
    echo '";'
    cat "$here/worker.js"
} >"$folder/worker.js"
while IFS= read -r line; do
    case $line in
    @STYLE@) echo "<style>" && cat "$here/page.css" && echo "</style>" ;;
    @SCRIPT@)
        echo "<script>"
        printf 'const WORKER = `'
        quoted "$folder/worker.js"
        echo '`;'
        cat "$here/page.js"
        echo "</script>"
        ;;
    *) printf '%s\n' "$line" ;;
    esac
done <"$here/page.html" >"$1"
