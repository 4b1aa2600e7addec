#!/bin/sh
# `make docs`: the reference is built without a warning, is complete by the compiler's count, has no
# dead link, and a declaration without a comment or a link to nowhere stops the build.
# runs: once
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
if ! command -v doxygen >/dev/null; then
    if quick; then
        echo "skip reference: doxygen is not here (make deps-docs installs it)"
        exit 0
    fi
    echo "FAIL reference: doxygen is not here: make deps-docs"
    exit 1
fi
start test_docs
out=$work/out err=$work/err
build_from() { sh examples/guides/reference/build.sh "$work/$1" "$work/tree"; }

# What the reference is made from; the parts below break it.
tree() {
    rm -rf "$work/tree"
    mkdir -p "$work/tree/tests"
    cp -R epctx.h epctx_npu.h README.md examples .github "$work/tree/"
    cp tests/README.md "$work/tree/tests/"
}
tree
works "the reference is built without a warning" build_from whole
if [ -s "$err" ]; then fail "nothing is complained about" "expected no output"; fi
"$python" -B tests/judge/docs.py "$work/whole/html" epctx.h epctx_npu.h examples/epctx/ops/[!l]*.h \
    examples/epctx/ops/lint.h || fail judge "it ended with an error"
if grep -rq "$work" "$work/whole/html"; then
    fail "no path of the machine" "$(grep -rl "$work" "$work/whole/html" | head -n 3)"
else
    ok "no path of the machine"
fi

# refused NAME TEXT: the broken tree gives no reference, and TEXT says why.
refused() {
    build_from broken >"$out" 2>"$err"
    code=$?
    if [ -e "$work/broken/html" ]; then fail "$1" "a reference was built"; return; fi
    said "$1" 1 "$2"
}
# changed FILE SED: one change of the tree
changed() {
    tree
    sed -i "$2" "$work/tree/$1"
    ! cmp -s "$1" "$work/tree/$1" || fail "$1" "nothing to break: '$2' changes nothing"
}
changed epctx.h '/^\/\* Zeroed, aligned to 16 bytes, until epctx_arena_free/d'
refused "a function without a comment" "function epctx_arena_alloc has no description"
changed epctx.h 's| /\* bytes of a model; default no limit \*/||'
refused "a member without a comment" "member epctx_limits.max_size has no description"
changed epctx.h 's|, /\* nothing there \*/|,|'
refused "an enumerator without a comment" "enumerator EPCTX_FILE_NONE has no description"
changed epctx_npu.h '/^\/\* The header of a blob. Strings are terminated. \*\/$/d'
refused "a struct without a comment" "struct epctx_npu_blob has no description"
changed examples/README.md '1a\
\
[nowhere](../README.md#there-is-no-such-heading)'
refused "a link to no heading" "no such heading"
changed README.md '2a\
@nonsense is no command.\
\
<nonsense>'
build_from broken >"$out" 2>"$err"
if [ -s "$err" ]; then ok "Doxygen's warnings are errors"; else
    fail "Doxygen's warnings are errors" "expected a message"
fi
exit $status
