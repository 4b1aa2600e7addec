#!/bin/sh
# Static analysis of both headers: clang-tidy (.clang-tidy), gcc -fanalyzer, cppcheck, and the stack
# that functions use. Takes minutes, so it is no part of `make check`. Whoever is missing is
# skipped.
#
# A finding fails unless analyze_known.txt has its source line, with the reason. Stack: no function
# may take more than STACK bytes (default 20480; paths of 4096 bytes live there), no chain of calls
# more than STACK_CHAIN (default 102400: models nested as deep as allowed; see stack.py).
set -u
cd "$(dirname "$0")/.."
work=build/analyze
most=${STACK:-20480}
most_chain=${STACK_CHAIN:-102400}
mkdir -p $work

# Analyzers cannot look into a variadic function, and think that epctx_fail might return EPCTX_OK
# although it returns its argument: they are told so, in copies of the headers.
for h in epctx epctx_npu; do
    sed 's/^EPCTX_API epctx_status epctx_fail(/EPCTX_API epctx_status (epctx_fail)(/' $h.h \
        >$work/$h.h
    macro=$(echo $h | tr '[:lower:]' '[:upper:]')_IMPLEMENTATION
    cat >$work/$h.c <<END
#define _XOPEN_SOURCE 700
#include "epctx.h"
#define epctx_fail(error, status, ...) ((void)epctx_fail(error, status, __VA_ARGS__), (status))
#define $macro
#include "$h.h"
END
done

judge() { # NAME LOG
    grep -E '^[^ ]*epctx[^ ]*\.[ch]:[0-9]+:.*(warning|error):' "$2" | sort -u |
        while IFS= read -r line; do
            place=${line#*$work/epctx}
            header=epctx${place%%:*}
            number=$(echo "$place" | cut -d : -f 2)
            text=$(sed -n "${number}p" "$work/${header}" 2>/dev/null)
            grep -v '^#' tests/analyze_known.txt | cut -f 1 |
                grep -qxF -e "$(printf '%s\n' "$text" | sed 's/^ *//')" || printf '%s\n' \
                "FAIL $1 $header:$number: ${line##*: } | $text"
        done >"$2.new"
    if [ -s "$2.new" ]; then
        cat "$2.new"
    else
        echo "ok $1"
    fi
}

analyze() { # HEADER without .h
    h=$1
    log=$work/$h.log
    if command -v clang-tidy >/dev/null; then
        clang-tidy --quiet $work/$h.c -- -std=c99 -I$work ${NANOPB_CFLAGS:-} \
            -Xclang -analyzer-opt-analyze-headers >"$log" 2>&1
        judge "clang-tidy $h.h" "$log"
    else
        echo "skip clang-tidy $h.h: not installed"
    fi
    gcc -std=c99 -O1 -fanalyzer -I$work ${NANOPB_CFLAGS:-} -c $work/$h.c -o $work/$h.o >"$log" 2>&1
    judge "gcc -fanalyzer $h.h" "$log"
    if command -v cppcheck >/dev/null; then
        # One branch of the preprocessor's: without system headers their macros have to be given.
        cppcheck -q --std=c99 --language=c --enable=warning,performance,portability -I$work \
            -DEPCTX_IMPLEMENTATION -DEPCTX_NPU_IMPLEMENTATION -D_XOPEN_SOURCE=700 -D__GNUC__ \
            -D_POSIX_C_SOURCE=200809L -D_POSIX_VERSION=200809L -DFLT_RADIX=2 -DFLT_MANT_DIG=24 \
            -DFLT_MAX_EXP=128 -UEPCTX_STATIC -U_WIN32 --suppress=missingIncludeSystem \
            --suppress=preprocessorErrorDirective $work/$h.h >"$log" 2>&1
        judge "cppcheck $h.h" "$log"
    else
        echo "skip cppcheck $h.h: not installed"
    fi
    # As users build it, but for functions split in two: the graph would miss such calls.
    gcc -std=c99 -O2 -fno-partial-inlining -fstack-usage -fcallgraph-info=su -I$work \
        ${NANOPB_CFLAGS:-} -c $work/$h.c -o $work/$h.o
    sort -t "$(printf '\t')" -k 2 -rn $work/$h.su | head -n 5 |
        awk -F '\t' -v h="$h.h" '{ n = split($1, p, ":"); print "note stack " h ": " p[n] " " $2 }'
    awk -F '\t' -v most="$most" '
        $2 > most || ($3 ~ /dynamic/ && $3 !~ /bounded/) { print $1 " " $2 " " $3; bad = 1 }
        END { exit bad }' $work/$h.su >"$log" && echo "ok stack $h.h: at most $most bytes" ||
        echo "FAIL stack $h.h: expected at most $most bytes, found $(head -n 1 "$log")"
}

# Side by side: each takes minutes.
analyze epctx_npu >$work/epctx_npu.said &
analyze epctx >$work/epctx.said
wait
"${PYTHON:-/usr/bin/python3}" tests/stack.py "$most_chain" $work/epctx.ci $work/epctx_npu.ci \
    >$work/stack.said
cat $work/*.said
! grep -q '^FAIL' $work/*.said
