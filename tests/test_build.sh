#!/bin/sh
# What the README says about building: which options of nanopb must be the same for the library and
# for epctx.h, which mistakes are reported, and the tool without libsodium.
# runs: once
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
start build
out=$work/log err=/dev/null

# -- the tool --
if make -n EPCTX_NO_PACKAGE=1 CFLAGS=-O0 build/epctx >"$work/log" 2>&1 &&
    ! grep -qE 'sodium|package\.c|package\.o' "$work/log"; then
    ok "make EPCTX_NO_PACKAGE=1"
else
    fail "make EPCTX_NO_PACKAGE=1" "package.c or libsodium is still asked for, see $work/log"
fi

# -- nanopb: a program that opens a model, for each pair of options --
nanopb=$(tests/deps.sh where nanopb-source) || exit 1
cat >"$work/open.c" <<'E2'
#define EPCTX_IMPLEMENTATION
#include "epctx.h"
#include <stdio.h>
int main(void)
{
    static const unsigned char bytes[] = {0x08, 0x0a, 0x3a, 0x03, 0x12, 0x01, 'g'};
    epctx_model model;
    epctx_error error;
    epctx_status status = epctx_model_open_memory(&model, bytes, sizeof bytes, NULL, &error);
    if (status == EPCTX_OK && epctx_model_read(&model).ir_version != 10) status = EPCTX_ERR_GRAPH;
    puts(epctx_status_name(status));
    epctx_model_close(&model);
    return 0;
}
E2
cd "$work" || exit 1
for option in NONE PB_NO_ERRMSG PB_FIELD_32BIT PB_BUFFER_ONLY; do
    mkdir -p $option
    for file in common decode encode; do
        gcc -O0 -D$option -I"$nanopb" -c "$nanopb/pb_$file.c" -o $option/pb_$file.o || exit 1
    done
    gcc -O0 -D$option -DEPCTX_NO_EDIT -I"$nanopb" -I"$top" -c open.c -o $option.o || exit 1
done
# header library what opening gives
while read -r header library want; do
    gcc "$header.o" "$library"/*.o -o opens && found=$(./opens)
    if [ "$found" = "$want" ]; then ok "epctx.h with $header, nanopb with $library"
    else fail "epctx.h with $header, nanopb with $library" "expected $want, found $found"; fi
done <<E2
NONE NONE EPCTX_OK
NONE PB_NO_ERRMSG EPCTX_ERR_CONFIG
PB_NO_ERRMSG NONE EPCTX_ERR_CONFIG
PB_NO_ERRMSG PB_NO_ERRMSG EPCTX_OK
NONE PB_FIELD_32BIT EPCTX_OK
PB_FIELD_32BIT NONE EPCTX_OK
PB_FIELD_32BIT PB_FIELD_32BIT EPCTX_OK
NONE PB_BUFFER_ONLY EPCTX_ERR_CONFIG
PB_BUFFER_ONLY NONE EPCTX_OK
PB_BUFFER_ONLY PB_BUFFER_ONLY EPCTX_OK
E2
gcc -O0 -DPB_BUFFER_ONLY -I"$nanopb" -I"$top" -fsyntax-only open.c >log 2>&1
if grep -q 'define EPCTX_NO_EDIT' log; then ok "PB_BUFFER_ONLY cannot write"
else fail "PB_BUFFER_ONLY cannot write" "nothing says that EPCTX_NO_EDIT is needed"; fi

# -- a reader of models in memory: a fixed buffer, the source of each EPContext node --
cat >reader.c <<'E2'
#include "epctx.h"
#include <stdio.h>
int main(void)
{
    static const unsigned char bytes[] = {0x08, 0x0a, 0x3a, 0x03, 0x12, 0x01, 'g'};
    static unsigned char arena[65536];
    epctx_open_opts opts = {0};
    epctx_model model;
    epctx_walk walk;
    epctx_node_view node;
    epctx_epnode ep;
    epctx_error error;
    opts.buffer = arena;
    opts.buffer_size = sizeof arena;
    if (epctx_model_open_memory(&model, bytes, sizeof bytes, &opts, &error) != EPCTX_OK) return 1;
    epctx_walk_begin(&walk, &model);
    while (epctx_walk_epnode(&walk, &node))
        if (epctx_view_read_epnode(&node, &ep, &error) == EPCTX_OK)
            printf("%.*s\n", (int)ep.source.size, ep.source.data);
    epctx_model_close(&model);
    return 0;
}
E2
small() {
    gcc "$1" -DNDEBUG -ffunction-sections -fdata-sections -I"$nanopb" -I"$top" \
        -DEPCTX_IMPLEMENTATION -x c -c "$top/epctx.h" -o small.o || exit 1
    gcc "$1" -DNDEBUG -ffunction-sections -fdata-sections -I"$nanopb" -I"$top" -c reader.c || exit 1
    for file in common decode encode; do
        gcc "$1" -ffunction-sections -fdata-sections -I"$nanopb" -c "$nanopb/pb_$file.c" \
            -o small_$file.o || exit 1
    done
    gcc -Wl,--gc-sections reader.o small.o small_common.o small_decode.o small_encode.o \
        -o reader || exit 1
    code=$(size -A reader | sed -n 's/^\.text *\([0-9]*\).*/\1/p')
    echo "note reader of memory: $code bytes of code with $1"
}
quick || small -O2
small -Os
if ! ./reader; then fail "reader of memory" "does not read"
elif nm reader | grep -E ' U (open|mmap|rename|stat|fstat|unlink|link|realpath|flock|fsync)'; then
    fail "reader of memory" "these file functions are linked"
elif [ "$(uname -m)" = x86_64 ] && [ "$code" -gt 12288 ]; then
    fail "reader of memory" "has $code bytes of code, at most 12288 are allowed"
else ok "reader of memory"; fi
cd "$top" && rm -rf "$work"
exit $status
