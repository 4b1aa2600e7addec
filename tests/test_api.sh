#!/bin/sh
# Examples and fuzzers use the public API: nobody could copy what reaches into the headers. Tests do
# so only where they say that they test the insides.
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
for folder in examples fuzz; do
    found=$(grep -rnE 'epctx_(npu)?__|EPCTX_(NPU)?__' "$folder" --include='*.c' --include='*.h' \
        --include='*.cc' --include='*.md')
    if [ -z "$found" ]; then
        echo "ok nothing private of the headers in $folder"
    else
        echo "FAIL $folder uses what is private to the headers: $(echo "$found" | head -n 1)"
        status=1
    fi
done

# A C++ program links what each header of an operation declares.
start api
out=$work/log
{
    for header in examples/epctx/ops/*.h; do
        case $header in *_internal.h) ;; *) echo "#include \"$header\"" ;; esac
    done
    echo 'const void *const used[] = {'
    sed -n '/^epctx_status epctx_[a-z_]*(/s/^epctx_status \([a-z_]*\)(.*/    (const void *)\1,/p' \
        examples/epctx/ops/*.h
    echo '};'
    echo 'int main() { return used[0] == nullptr; }'
} >"$work/all.cc"
archives="${plain%/epctx}/libepctx_ops.a ${plain%/epctx}/libepctx.a"
# shellcheck disable=SC2086 # lists
if ${CXX:-g++} -std=c++17 -Wall -Wextra -Werror -I. ${NANOPB_CFLAGS:-} "$work/all.cc" $archives \
    ${NANOPB_LIBS:--lprotobuf-nanopb} -lm -o "$work/all" >"$out" 2>&1 && "$work/all"; then
    ok "C++ links every operation"
else
    fail "C++ links every operation" "expected no message"
fi
exit $status
