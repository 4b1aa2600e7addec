#!/bin/sh
# What a program in another language needs of the library: version, sizes of structs, constants that
# a binding generator can read.
# runs: once
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
start abi
make_models plain
cc=${CC:-gcc}
version=$(sed -n 's/^#define EPCTX_VERSION_STRING "\(.*\)"$/\1/p' epctx.h)

# The public structs, as they are declared.
structs=$(sed -n 's/^typedef struct \(epctx_[a-z][a-z_0-9]*\) {$/\1/p' epctx.h)
{
    printf '#include "epctx.h"\n#include <stdio.h>\nint main(void)\n{\n'
    for name in $structs; do printf '    printf("%s %%zu\\n", sizeof(%s));\n' "$name" "$name"; done
    printf '    return 0;\n}\n'
} >"$work/sizes.c"

# shellcheck disable=SC2086 # lists of words
if $cc -std=c99 -shared -fPIC -fvisibility=hidden -DEPCTX_IMPLEMENTATION \
    '-DEPCTX_API=__attribute__((visibility("default")))' ${NANOPB_CFLAGS-} -x c epctx.h -x none \
    ${NANOPB_LIBS:--lprotobuf-nanopb} -o "$work/libepctx.so" &&
    $cc -std=c99 -I. ${NANOPB_CFLAGS-} "$work/sizes.c" -o "$work/sizes" &&
    $cc -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror tests/judge/abi.c -ldl -o "$work/abi"; then
    ok "the library and a program without its header"
else
    fail "the library and a program without its header" "they do not compile"
    exit 1
fi
"$work/sizes" >"$work/expected"
bytes=$(wc -c <"$work/plain.onnx")
# shellcheck disable=SC2086 # a list of words
"$work/abi" "$work/libepctx.so" "$work/plain.onnx" "$work/missing.onnx" $structs epctx_nothing \
    >"$work/told"
if [ "$(sed -n 1p "$work/told")" = "version $version" ]; then ok "epctx_version"
else fail "epctx_version" "expected $version, found $(sed -n 1p "$work/told")"; fi
if sed '1d; /^opened\|^failed\|^epctx_nothing/d' "$work/told" | diff "$work/expected" - \
    >"$work/differs"; then
    ok "epctx_struct_size of $(wc -l <"$work/expected") structs"
else
    fail "epctx_struct_size" "of the header (<) and of the library (>):"
    cat "$work/differs"
fi
for line in 'epctx_nothing 0' "opened, $bytes bytes" 'failed, EPCTX_ERR_NOT_FOUND'; do
    if grep -qx "$line" "$work/told"; then ok "$line"; else fail "$line" "$(cat "$work/told")"; fi
done

# A file that leaves parts out works with one that does not: no option but those of a scan changes a
# struct.
{
    printf '#define EPCTX_IMPLEMENTATION\n#include "epctx.h"\n#include <stdio.h>\n'
    printf 'int main(void)\n{\n'
    for name in $structs; do
        printf '    printf("%s %%zu\\n", epctx_struct_size("%s"));\n' "$name" "$name"
    done
    printf '    return 0;\n}\n'
} >"$work/parts.c"
options=$(sed -n 's/^ \*   \(EPCTX_NO_[A-Z]*\) .*/\1/p; /^#define EPCTX_H/q' epctx.h)
[ "$(echo "$options" | wc -l)" -ge 4 ] || fail "options" "expected four, found: $options"
for option in $options; do
    # shellcheck disable=SC2086 # lists of words
    if $cc -std=c99 -D"$option" -I. ${NANOPB_CFLAGS-} "$work/parts.c" \
        ${NANOPB_LIBS:--lprotobuf-nanopb} -o "$work/parts" >"$work/log" 2>&1; then
        "$work/parts" | grep -v ' 0$' >"$work/part"
        if [ -s "$work/part" ] && grep -vxFf "$work/expected" "$work/part" >"$work/differs"; then
            fail "sizes with $option" "$(cat "$work/differs")"
        else ok "sizes of $(wc -l <"$work/part") structs with $option"; fi
    else fail "sizes with $option" "$(grep -m 1 error "$work/log")"; fi
done

# Generators of bindings drop macros that cast.
types='u?int[0-9_t]*|size_t|unsigned|float|double|epctx_[a-z_]+'
casts=$(sed 's:/\*.*::; /^ \* >>implementation$/,$d' epctx.h |
    grep -nE "^ *#define EPCTX_[A-Z0-9_]+ .*\\(($types)( \\*)?\\)")
if [ -z "$casts" ]; then ok "constants"; else fail "constants" "these cast: $casts"; fi
exit $status
