#!/bin/sh
# What commands that write leave on the disk: with links in their way, files that others replace
# meanwhile, kills, signals, errors, full disks, two at once, long names. judge/files.py tells more.
# runs: once for each user
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
judge=$top/tests/judge/files.py
epctx=$plain

# Thousands of small files that are flushed: in memory where there is a place for it.
mkdir -p "$top/build"
work=$(mktemp -d /dev/shm/epctx-files.XXXXXX 2>/dev/null || mktemp -d "$top/build/files.XXXXXX") ||
    exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

areas() { "$python" -B "$judge" "$epctx" "$work" "$@" || status=1; }

flags="-std=c11 -O1 -I$top ${NANOPB_CFLAGS:-}"
if ${CC:-gcc} $flags -o "$work/opener" "$top/tests/judge/opener.c" \
    "$build/libepctx_ops.a" "$build/libepctx.a" ${NANOPB_LIBS:--lprotobuf-nanopb} -lm -pthread; then
    export FILES_OPENER="$work/opener"
else
    echo "FAIL opener: judge/opener.c does not compile"
    status=1
fi

areas modes links swaps at-once in-place names real
if strace -qq -o /dev/null true 2>/dev/null; then
    areas races kills signals errors pairs
    # Where unfinished files have names; one command of a kind is enough.
    if ${CC:-gcc} -shared -fPIC -o "$work/no_tmpfile.so" "$top/tests/judge/no_tmpfile.c" -ldl; then
        only='^(compile -f|extract --in-place -f|mv|merge|set|get -o|package|run --dump)$'
        FILES_PRELOAD="$work/no_tmpfile.so" FILES_ONLY="$only" areas \
            modes races kills signals errors
    else
        echo "FAIL no_tmpfile: judge/no_tmpfile.c does not compile"
        status=1
    fi
else
    for area in races kills signals errors pairs; do
        echo "skip files, $area: strace cannot trace here"
    done
fi
mkdir -p "$work/mount"
# Of a file system with room for some files more it is mounted again.
if unshare -rm sh -c 'mount -t tmpfs -o size=512k tmpfs "$1" &&
    mount -o remount,nr_inodes=64,size=64k "$1"' sh "$work/mount" 2>/dev/null; then
    unshare -rm "$python" -B "$judge" "$epctx" "$work" full || status=1
else
    echo "skip files, full: no file system can be mounted and made smaller here"
fi
exit $status
