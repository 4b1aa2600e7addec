# What the test scripts share. A script goes to the top folder and reads this: `. tests/script.sh`.

# shellcheck shell=sh disable=SC2034 # what is set here is used by the scripts
top=$PWD
# The judges' Python. Before anything is fetched there may be none: what needs it says so.
if [ -z "${PYTHON:-}" ] && PYTHON=$(sh tests/deps.sh where python 2>/dev/null); then
    export PYTHON
else
    PYTHON=${PYTHON:-/usr/bin/python3}
fi
python=$PYTHON
build=$top/${EPCTX_BUILD:-build} # what `make test` builds is in build/quick
plain=$build/epctx
epctx=$build/asan/epctx # with sanitizers; a script that cannot have them takes $plain
# For coverage and mutations there is only one.
[ -z "${EPCTX_BUILD:-}" ] || [ -e "$epctx" ] || epctx=$plain
status=0                                    # what the script ends with
out=out err=err                             # what the tool printed

# start NAME: $work is an empty folder.
start() {
    work=${EPCTX_TEST_FOLDER:-$top/build}/$1
    rm -rf "$work"
    mkdir -p "$work"
}

# make_models KIND...: $work/KIND.onnx, of judge/make_model.py
make_models() {
    for kind; do
        "$python" "$top/tests/judge/make_model.py" "$kind" "$work/$kind.onnx" || {
            echo "FAIL models: $kind could not be made"
            exit 1
        }
    done
}

# For judges that run ONNX Runtime, Python's module.
use_ort() {
    "$python" -c 'import onnxruntime' 2>/dev/null || {
        echo "FAIL ort: $python cannot import onnxruntime"
        exit 1
    }
}
ort_run() { "$python" "$top/tests/judge/ort_run.py" "$@"; }
# Of the outputs that two runs wrote into folders: the reference, then the other.
compare() { "$python" "$top/examples/demo/compare.py" "$@"; }

# Runs the tool; $code, $out and $err hold what came of it.
epctx() {
    "$epctx" "$@" >"$out" 2>"$err"
    code=$?
}

# as_named: where $top is a link (tests/run makes one of a path with blanks) and the tool has
# resolved it, what it printed names files as the script does.
as_named() {
    physical=$(cd "$top" && pwd -P)
    [ "$physical" != "$top" ] || return 0
    for printed in "$out" "$err"; do
        FROM=$physical TO=$top LC_ALL=C awk '{
            line = ""
            while (at = index($0, ENVIRON["FROM"])) {
                line = line substr($0, 1, at - 1) ENVIRON["TO"]
                $0 = substr($0, at + length(ENVIRON["FROM"]))
            }
            print line $0
        }' "$printed" >"$printed.named" && mv "$printed.named" "$printed"
    done
}

# use_eps: for the tool with EPs in ONNX Runtime, which is $library; in a folder of its own with the
# models, and $work/tmp for temporary files.
use_eps() {
    ort=ort${EPCTX_TEST_ORT:+-$EPCTX_TEST_ORT}
    library=${EPCTX_ORT_LIBRARY:-$(sh tests/deps.sh where "$ort")} || {
        echo "FAIL ort: ONNX Runtime is not there"
        exit 1
    }
    toy=$build/libtoy_ep.so bad=$build/libbad_ep.so EPCTX_TOY_EP=$build/libtoy_ep.so
    unset EPCTX_ORT_LIBRARY
    mkdir "$work/tmp" "$work/in"
    TMPDIR=$work/tmp
    export EPCTX_TOY_EP TMPDIR
    cd "$work/in" || exit 1
    mv ../*.onnx .
}

# faulty FAULT COMMAND...: the tool with an EP that has this fault. Signals are seen without a
# sanitizer.
faulty() {
    fault=$1 command=$2
    shift 2
    EPCTX_BAD_EP=$fault "$plain" "$command" --ort "$library" --ep "$bad" "$@" >"$out" 2>"$err"
    code=$?
}

# json NAME EXPRESSION: what was printed is JSON, as its schema says, of which the expression in
# Python (`j`) is true.
json() {
    if "$python" -B "$top/tests/judge/json_schema.py" - <"$out" 2>"$err" &&
        "$python" -c 'import json, sys
j = json.load(open(sys.argv[1]))
sys.exit(not eval("(" + sys.argv[2] + ")"))' "$out" "$2" 2>"$err"; then ok "$1"
    else fail "$1" "not: $2"; fi
}

# quick: is this `make test`? Then fewer rounds of the same cases do.
quick() { [ "${EPCTX_TEST_QUICK:-}" = 1 ]; }

# one_form: for a script that does the same in `make test` and in `make check`. Where both run, the
# first tries the sanitized tool, the second the optimised one.
one_form() { [ "${EPCTX_TEST_BOTH:-}" != 1 ] || quick || epctx=$plain; }

# rounds ALL FEW: the one or the other
rounds() { if quick; then echo "$2"; else echo "$1"; fi; }

ok() { echo "ok $1"; }

# fail NAME WHY: what the tool printed comes below.
fail() {
    echo "FAIL $1: $2"
    cat "$out" "$err" 2>/dev/null | head -n 20 | sed 's/^/  /'
    status=1
}

# said NAME CODE [TEXT]: the last command's exit code, and TEXT in what it printed.
said() {
    if [ "$code" -ne "$2" ]; then
        fail "$1" "exit code $code, expected $2"
    elif [ $# -gt 2 ] && ! cat "$out" "$err" | grep -qF -e "$3"; then
        fail "$1" "expected '$3'"
    else
        ok "$1"
    fi
}

# lacks NAME CODE PATTERN: the last command's exit code, and nothing that it printed is like this.
lacks() {
    if [ "$code" -ne "$2" ]; then fail "$1" "exit code $code, expected $2"
    elif cat "$out" "$err" | grep -q -e "$3"; then fail "$1" "expected nothing like '$3'"
    else ok "$1"; fi
}

# works NAME COMMAND...: passes when the command succeeds; what it printed is in $out and $err.
works() {
    name=$1
    shift
    "$@" >"$out" 2>"$err"
    code=$?
    said "$name" 0
}

# result NAME CODE [TEXT]: as `said`; what went well is silent on standard error, and a refusal is a
# message there, with the tool's name in front.
result() {
    if [ "$code" -eq 0 ] && [ -s "$err" ]; then
        fail "$1" "there is something on standard error"
    elif [ "$code" -ne 0 ] && ! grep -q '^epctx: ' "$err"; then
        fail "$1" "exit code $code and no message on standard error"
    else
        said "$@"
    fi
}

# Names and bytes of everything in this folder.
state() {
    find . -type f -exec cksum {} + | LC_ALL=C sort
    find . ! -type f | LC_ALL=C sort
}

# refused NAME CODE TEXT: `result` of a refusal, and nothing is changed since before=$(state).
refused() {
    if [ "$before" = "$(state)" ]; then result "$@"; else fail "$1" "a file changed"; fi
}

# same NAME FILE FILE
same() { if cmp -s "$2" "$3"; then ok "$1"; else fail "$1" "$2 and $3 differ"; fi; }

# crash NAME SETUP CHECK ARGUMENTS...: the tool is killed at every system call that writes, in the
# folder `crash`, which SETUP fills. CHECK ARGUMENTS... says whether what is left there is sound; in
# the end, with $killed 0, the tool has done its work.
crash() {
    name=$1 setup=$2 check=$3
    shift 3
    kills=0
    # Injections count each call on its own; ? where an architecture does not have it.
    for call in openat write fsync fchmod link linkat rename renameat renameat2 unlink unlinkat; do
        n=1
        while [ $n -lt 100 ]; do
            rm -rf crash
            mkdir crash
            $setup
            strace -qq -o /dev/null -e "trace=?$call" -e "inject=?$call:signal=KILL:when=$n" \
                "$plain" "$@" >out 2>err </dev/null
            killed=$?
            if [ $killed -ne 137 ] && [ $killed -ne 0 ]; then
                fail "$name" "exit code $killed with $call $n"
                return
            fi
            if ! $check "$@"; then
                fail "$name" "exit code $killed at $call $n, which leaves $(ls crash | tr '\n' ' ')"
                return
            fi
            [ $killed -eq 137 ] || break
            kills=$((kills + 1))
            n=$((n + 1))
        done
    done
    if [ $kills -lt 8 ]; then fail "$name" "killed $kills times only"
    else ok "$name ($kills times)"; fi
}

# verdict NAME COMMAND...: passes when the command succeeds; else its last line tells why.
verdict() {
    name=$1
    shift
    if "$@" >"$name.log" 2>&1; then ok "$name"; else
        echo "FAIL $name: $(tail -n 1 "$name.log")"
        status=1
    fi
}
