#!/bin/sh
# The README's C quick start, exactly as printed (judge/guide.py takes it out): its
# first program, and the commands below it, with a model of the test's own under
# the .onnx name that they use. The last one has to say something. Then the quick
# starts in the headers' manuals, each as the body of a main function.
# And the number of lint's rules.
# runs: once for each user
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
if ! [ -e README.md ]; then
    echo "skip quick start: there is no README.md"
    exit 0
fi
start readme

model=$("$python" tests/judge/guide.py quick README.md "$work" 2>&1) || {
    echo "FAIL quick start: $model"
    exit 1
}
rules=$("$plain" lint --rules --json | grep -c '"id":')
told=$(grep -oE '[0-9]+ rules' README.md | sort -u)
if [ "$told" = "$rules rules" ]; then echo "ok number of rules"
else echo "FAIL number of rules: README.md says $(echo $told), lint has $rules"; fi
cd "$work" || exit 1
cp "$top"/epctx*.h .
"$python" "$top/tests/judge/make_model.py" plain plain.onnx &&
    "$plain" compile plain.onnx -o "$model" || {
    echo "FAIL quick start: the model for it could not be made"
    exit 1
}
if sh -e commands >log 2>&1 && [ -s log ]; then
    echo "ok quick start"
else
    echo "FAIL quick start: expected its commands to run and print, found: $(tail -n 1 log)"
    cat log
    exit 1
fi

# -- the manuals --

# Both headers once in each language, for all the manuals' programs; $1 is the standard.
languages="c99 c++17"
printf '#define EPCTX_IMPLEMENTATION\n#define EPCTX_NPU_IMPLEMENTATION\n#include "epctx_npu.h"\n' \
    >headers.c
compile() {
    case $1 in
    c99) compiler="${CC:-gcc} -std=c99" ;;
    *) compiler="${CXX:-g++} -x c++ -std=$1" ;;
    esac
    # shellcheck disable=SC2046,SC2086 # lists of words
    $compiler -Wall -Wextra -Werror $(rounds -O1 -O0) \
        ${NANOPB_CFLAGS-} -c -o "$2.$1.o" "$2.c" >log 2>&1
}
for standard in $languages; do
    compile $standard headers && continue
    echo "FAIL quick starts: the headers do not compile as $standard"
    cat log
    exit 1
done

# manual NAME HEADER TITLE EXPECTED [DECLARATION]: the code below "QUICK START: TITLE" compiles,
# as C99 and C++17, and what it prints has EXPECTED in it. DECLARATION: what it takes for granted.
manual() {
    {
        printf '#include "epctx_npu.h"\n#include <stdio.h>\n#include <stdlib.h>\n'
        printf '#include <string.h>\nint main(void)\n{\n%s\n' "${5-}"
        awk -v title=" * QUICK START: $3" 'index($0, title) == 1 { on = 1; next }
            on && !/^ \*       / { exit } on { print substr($0, 9) }' "$top/$2"
        printf 'return 0;\n}\n'
    } >manual.c
    [ "$(grep -c . manual.c)" -gt 12 ] || {
        echo "FAIL quick start of $1: $2 has no 'QUICK START: $3'"
        status=1
        return
    }
    for standard in $languages; do
        # shellcheck disable=SC2086 # a list of words
        if compile $standard manual &&
            ${CXX:-g++} -o manual manual.$standard.o headers.$standard.o \
                ${NANOPB_LIBS:--lprotobuf-nanopb} -lm >>log 2>&1 &&
            rm -f prefill_* decode_* && ./manual >out 2>>log && [ ! -s log ] &&
            grep -q "$4" out; then
            echo "ok quick start of $1 ($standard)"
        else
            echo "FAIL quick start of $1 ($standard): expected '$4'"
            cat log out
            status=1
        fi
    done
}

cp plain.onnx m.onnx
cp plain.onnx prefill.onnx
cp plain.onnx decode.onnx
manual npu epctx_npu.h "compile, load and run" "^[-0-9.e]* [-0-9.e]*$"
manual epctx epctx.h "print the EPContext nodes" "^EpctxNpuExecutionProvider$"
backend="epctx_npu npu; epctx_backend backend; epctx_npu_init(&npu, NULL, &backend, NULL);"
manual compile epctx.h "compile a model" "^m_ctx.onnx and m_npu.bin$" "$backend"
manual load epctx.h "load it again" "^node 0 has a graph of EpctxNpuExecutionProvider$" "$backend"
manual share epctx.h "two models compiled" "^1 and 1 nodes share" \
    "$backend"
exit $status
