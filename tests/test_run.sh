#!/bin/sh
# The runner, in a tree of its own: programs that hang, leave processes behind or are not there, and
# signals, end without a process or a folder that stays. A tree of any name is one word to scripts.
# runs: once for each user
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
start run
tree=$work/tree out=$work/out err=$work/err
mkdir -p "$tree/tests" "$work/tmp"
cp tests/run "$tree/tests/run"
# What the runner of this test says to its tests is not for those of that runner.
unset EPCTX_TEST_FOLDER EPCTX_TEST_COMPLETE EPCTX_TEST_TALLY EPCTX_TEST_KEEP TEST_TIMEOUT \
    EPCTX_TEST_BOTH EPCTX_TEST_QUICK EPCTX_TEST_OTHER_USER EPCTX_CACHE PYTHON

# program NAME LINES: a test of that runner; "$pids" takes the processes that have to end.
program() { printf 'pids=%s\n%s\n' "$work/pids" "$2" >"$work/$1.sh"; }
program good 'echo ok fine'
line='# runs: once' # at no line's begin: it is not meant for this script
program once "
$line
echo ok fine"
program user "
$line for each user
echo ok fine"
program child 'sleep 60 >/dev/null 2>&1 & echo $! >>"$pids"; echo ok fine'
program group '"'"$python"'" -c "import os, time
os.setpgid(0, 0)
time.sleep(60)" & echo $! >>"$pids"; wait'
program session 'setsid sleep 7 & sleep 60'
program long 'touch "$TMPDIR/file"; sleep 60 & echo $! >>"$pids"; echo $$ >>"$pids"; wait'

runner() {
    (cd "$work" && TMPDIR=$work/tmp timeout 30 "$tree/tests/run" "$@") >"$out" 2>"$err"
    code=$?
}

# ended: whether the processes of $work/pids have ended; the kernel may take a moment.
ended() {
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        alive=
        while read -r pid; do
            grep -q '^State:[[:space:]]*[^ZX[:space:]]' "/proc/$pid/status" 2>/dev/null &&
                alive=$pid
        done <"$work/pids"
        [ -n "$alive" ] || return 0
        sleep 0.2
    done
    return 1
}

# leaves_nothing NAME
leaves_nothing() {
    left=$(find "$tree/build" "$work/tmp" -mindepth 1)
    if [ -n "$left" ]; then fail "$1" "folders stay: $left"
    elif [ -e "$work/pids" ] && ! ended; then fail "$1" "process $alive stays"
    else ok "$1: nothing is left"; fi
    rm -rf "$work/pids" "$tree/build" "$work/tmp"
    mkdir "$work/tmp"
}

runner "$work/good.sh"
said "a program that passes" 0 "1 passed, 0 failed"
leaves_nothing "a program that passes"
runner "$work/good.sh" "$work/none.sh"
said "a script that is not there" 1 "1 passed, 1 failed"
leaves_nothing "a script that is not there"
(EPCTX_TEST_BOTH=1 EPCTX_TEST_QUICK=1 runner "$work/once.sh" "$work/good.sh"; exit $code)
code=$?
said "a part of what the other run does" 0 "1 passed, 0 failed"
if grep -qx 'left to `make check`: once' "$out"; then ok "what is left out is named"
else fail "what is left out is named" "expected a line for once.sh"; fi
asan=$work/build/quick/asan/tests
mkdir -p "$asan"
printf '#!/bin/sh\necho ok fine\n' >"$asan/test_a"
chmod +x "$asan/test_a"
(EPCTX_TEST_BOTH=1 EPCTX_TEST_QUICK=1 runner "$asan/test_a" "$work/good.sh"; exit $code)
code=$?
said "a program under ASan" 0 "1 passed, 0 failed"
if grep -qx 'left to `make check`: test_a (asan)' "$out"; then ok "the one under ASan is named"
else fail "the one under ASan is named" "expected a line for test_a"; fi
quick=$work/build/quick/tests
mkdir -p "$quick"
cp "$asan/test_a" "$quick/test_a"
printf '/* What it tests. */\n/* runs: once */\n' >"$tree/tests/test_a.c"
(EPCTX_TEST_BOTH=1 EPCTX_TEST_QUICK=1 runner "$quick/test_a" "$work/good.sh"; exit $code)
code=$?
said "a program of one user" 0 "1 passed, 0 failed"
rm "$tree/tests/test_a.c"
(EPCTX_TEST_BOTH=1 EPCTX_TEST_QUICK=1 runner "$quick/test_a" "$work/good.sh"; exit $code)
code=$?
said "a program of any user" 0 "2 passed, 0 failed"
for both in "1 0" "0 1"; do
    (EPCTX_TEST_BOTH=${both% *} EPCTX_TEST_QUICK=${both#* } runner "$work/once.sh" "$work/good.sh"
     exit $code)
    code=$?
    said "nothing is left out ($both)" 0 "2 passed, 0 failed"
done
for user in "0:1 passed:once, user" "1:2 passed:once"; do
    number=${user%%:*} left=${user##*:} passed=${user#*:}
    (EPCTX_TEST_BOTH=1 EPCTX_TEST_QUICK=1 EPCTX_TEST_OTHER_USER=$number \
        runner "$work/once.sh" "$work/user.sh" "$work/good.sh"; exit $code)
    code=$?
    said "once for each user ($number)" 0 "${passed%:*}, 0 failed"
    if grep -qxF "left to \`make check\`: $left" "$out"; then ok "what is left out ($number)"
    else fail "what is left out ($number)" "expected: $left"; fi
done
leaves_nothing "a part"

# -- what a complete run may leave out --
program skips 'echo skip this: not here
echo skip that: no root
echo ok fine'
printf 'skips: this: .*\tAN_EXTRA\tnot everywhere\nskips: that: .*\t+A_USER\tof a user\n' \
    >"$tree/tests/skips_known.txt"
while read -r extra user code_wanted count; do
    (EPCTX_TEST_COMPLETE=1 AN_EXTRA=${extra#-} A_USER=${user#-} runner "$work/skips.sh"
     exit $code)
    code=$?
    said "a complete run ($extra $user)" "$code_wanted" "$count"
done <<'END'
- 1 0 1 passed, 0 failed, 2 skipped
- - 1 1 passed, 1 failed, 1 skipped
1 1 1 1 passed, 1 failed, 1 skipped
1 - 1 1 passed, 2 failed
END
leaves_nothing "a complete run"
runner "$work/child.sh"
said "a child in the background" 0 "1 passed, 0 failed"
leaves_nothing "a child in the background"
TEST_TIMEOUT=1 runner "$work/group.sh"
said "a process group of its own" 1 "did not end within 1 s"
leaves_nothing "a process group of its own"
TEST_TIMEOUT=1 runner "$work/session.sh"
said "a session of its own that holds the output" 1 "did not end within 1 s"
leaves_nothing "a session of its own that holds the output"

for pair in INT:130 TERM:143 HUP:129; do
    name=${pair%:*}
    # Programs in the background of a shell ignore SIGINT, and all those of nohup SIGHUP: not these.
    (cd "$work" && TMPDIR=$work/tmp "$python" -c 'import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])' "$tree/tests/run" "$work/long.sh" "$work/good.sh" \
        "$work/long.sh") >"$out" 2>"$err" &
    for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        [ "$(cat "$work/pids" 2>/dev/null | wc -l)" -ge 2 ] && break
        sleep 0.2
    done
    kill -$name $!
    wait $!
    code=$?
    said "SIG$name" ${pair#*:} "stopped by SIG$name"
    leaves_nothing "SIG$name"
done

# -- names that are not one word: the test sees others for the same folders --
program words 'cd "$(dirname "$0")/.." || exit 1
. tests/where.sh
wrong=0
for name in top EPCTX_TEST_FOLDER EPCTX_CACHE PYTHON TMPDIR HOME; do
    eval "value=\$$name"
    set -- $value
    [ $# -eq 1 ] && [ -e "$1" ] || { wrong=1; echo "FAIL $name: $value"; }
done
touch $top/build/made $EPCTX_CACHE/kept $HOME/mine
"$PYTHON" -c "import sys; sys.exit(sys.prefix == sys.base_prefix)" || echo "FAIL a Python: no venv"
[ $wrong -ne 0 ] || echo "ok words"'
plain_tree=$tree
"$python" -m venv --without-pip "$work/a cache/python" >"$out" 2>&1
mkdir "$work/a home"
for name in "a tree" "it's" "[x]*" "a	tab" "two;words" "comma,and:colon" 'do$lar' "back\\slash"; do
    tree="$work/$name"
    mkdir -p "$tree/tests"
    cp "$plain_tree/tests/run" "$work/words.sh" "$work/long.sh" "$tree/tests/"
    echo 'top=$PWD' >"$tree/tests/where.sh"
    ln -s "$tree" "$work/another $name"
    # What is named by its own folder, and what by another's.
    for cache in "$work/a cache" "$tree/build/my deps"; do
        mkdir -p "$cache"
        (export EPCTX_CACHE="$cache" PYTHON="$work/a cache/python/bin/python" HOME="$work/a home"
         runner tests/words.sh "$tree/tests/words.sh" "$work/another $name/tests/words.sh"
         exit $code)
        code=$?
        said "a tree with the name $name" 0 "3 passed, 0 failed"
        [ -e "$tree/build/made" ] && rm "$cache/kept" "$work/a home/mine" ||
            fail "a tree with the name $name" "files are made elsewhere"
    done
    rm -rf "$tree/build/made" "$tree/build/my deps"
    leaves_nothing "a tree with the name $name"
done
tree="$work/a tree"
(cd "$work" && TMPDIR=$work/tmp exec "$tree/tests/run" "tests/long.sh") >"$out" 2>"$err" &
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    [ "$(cat "$work/pids" 2>/dev/null | wc -l)" -ge 2 ] && break
    sleep 0.2
done
kill -TERM $!
wait $!
code=$?
said "SIGTERM in a tree with blanks" 143 "stopped by SIGTERM"
[ -e "$tree/tests/run" ] || fail "SIGTERM in a tree with blanks" "the tree is gone"
leaves_nothing "SIGTERM in a tree with blanks"
tree=$plain_tree

for variable in TEST_JOBS=0 TEST_JOBS=some TEST_TIMEOUT=-1; do
    (eval "export $variable" && runner "$work/good.sh"; exit $code)
    code=$?
    said "$variable" 1 "expected a whole number above 0, found '${variable#*=}'"
done

# A loop over nothing is no test: a case of a C program has to come to a check.
cat >"$work/checks.c" <<'END'
#include "test.h"
TEST(one) { CHECK_INT(1, 1); }
TEST(none) {
    for (int i = 0; i < 0; i++) CHECK_INT(i, 0);
}
TEST(skipped) { SKIP("nothing is here"); }
int main(int argc, char **argv) {
    RUN(one);
    RUN(none);
    RUN(skipped);
    return test_end();
}
END
if ${CC:-cc} -Itests "$work/checks.c" -o "$work/checks" >"$out" 2>"$err"; then
    runner "$work/checks"
    said "cases without a check" 1 "none: tests/test.h:"
    said "cases with one, and others" 1 "1 passed, 1 failed, 1 skipped"
else fail "cases without a check" "it cannot be compiled"; fi
leaves_nothing "cases without a check"

touch "$tree/build"
runner "$work/good.sh"
said "no folder to work in" 1 "tests/run: "
if grep -q Traceback "$err"; then fail "no folder to work in" "expected a message"; fi
cd "$top" && rm -rf "$work"
exit $status
