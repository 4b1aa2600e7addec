#!/bin/sh
# Which ONNX Runtime the tool takes without --ort: each place alone, their order, what is passed
# over and told; files that are none; and that nothing of the current folder is run.
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
one_form
start test_ort_find
out=$work/stdout err=$work/stderr
real=${EPCTX_ORT_LIBRARY:-$(sh tests/deps.sh where ort)} || {
    echo "FAIL ort: ONNX Runtime is not there"
    exit 1
}
unset EPCTX_ORT_LIBRARY
machine=$(uname -m)
base=$(PATH=/usr/local/bin:/usr/bin:/bin command -v python3) || {
    echo "FAIL python: there is no python3"
    exit 1
}

# library FILE [VERSION]: the real one under another name, or one that says it is of this version.
library() {
    mkdir -p "$(dirname "$1")"
    if [ $# -eq 1 ]; then
        ln -L "$real" "$1" 2>/dev/null || cp "$real" "$1"
    else
        ${CC:-gcc} -shared -fPIC -DVERSION="\"$2\"" "$work/old.c" -o "$1"
    fi
}
cat >"$work/old.c" <<'END'
static const void *get_api(unsigned version) { return version == 0 ? "" : (void *)0; }
static const char *get_version(void) { return VERSION; }
static const struct { const void *(*api)(unsigned); const char *(*version)(void); } base = {
    get_api, get_version};
const void *OrtGetApiBase(void) { return &base; }
END

# The places: a package of each kind of Python, a folder of the loader, a cache, a build tree.
"$base" -I -m venv --without-pip "$work/venv" || echo "FAIL venv: python3 -m venv"
package=$("$work/venv/bin/python3" -I -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
library "$package/onnxruntime/capi/libonnxruntime.so.1.31.1"
echo "open('$work/imported', 'w')" >"$package/onnxruntime/__init__.py"
touch "$package/onnxruntime/capi/libonnxruntime_providers_shared.so"
user=$(HOME=$work/home "$base" -c 'import site; print(site.getusersitepackages())')
library "$user/onnxruntime/capi/libonnxruntime.so.1.31.1"
echo "open('$work/imported', 'w')" >"$user/onnxruntime/__init__.py"
library "$work/lib/libonnxruntime.so.1"
library "$work/dev/libonnxruntime.so"
library "$work/cache/onnxruntime-1.31.1-$machine/libonnxruntime.so.1"
library "$work/build/deps/onnxruntime-1.31.1-$machine/libonnxruntime.so.1"
library "$work/own/any.so"
mkdir -p "$work/none" "$work/tmp" "$work/in" "$work/build/quick/asan"
ln -s "$base" "$work/none/python3" # without a package
cp "$plain" "$work/build/quick/asan/epctx"

# Here: modules that Python would take from the current folder.
cd "$work/in" || exit 1
mkdir -p onnxruntime/capi
for module in site os sys importlib onnxruntime/__init__ sitecustomize usercustomize encodings; do
    echo "open('$work/hijacked', 'w')" >$module.py
done
library onnxruntime/capi/libonnxruntime.so.1
library libonnxruntime.so.1
printf '#!/bin/sh\ntouch %s/hijacked\n' "$work" >python3
chmod +x python3

# devices VARIABLE=VALUE...: `epctx devices --json` in an empty environment, but for these.
devices() {
    env -i TMPDIR="$work/tmp" EPCTX_CACHE="$work/none" PATH=/nowhere HOME=/nowhere "$@" \
        "$epctx" devices --json >"$out" 2>"$err"
    code=$?
    as_named
}
epctx() {
    "$epctx" "$@" >"$out" 2>"$err"
    code=$?
    as_named
}
# takes NAME PLACE FILE: what the last command took
takes() {
    as_named
    if [ $code -eq 0 ] && [ ! -s "$err" ] && grep -qx "\"found_by\": \"$2\"," "$out" &&
        grep -qxF "\"library\": \"$3\"," "$out"; then ok "$1"
    else fail "$1" "exit code $code, expected $3, found by $2"; fi
}
# tells NAME TEXT: the last command said so of a place before
tells() {
    if grep '^"not_taken"' "$out" | grep -qF -e "$2"; then ok "$1"; else fail "$1" "no '$2'"; fi
}

# -- each place alone --

"$epctx" devices --json --ort "$work/own/any.so" >"$out" 2>"$err"; code=$?
takes "--ort" option "$work/own/any.so"
devices EPCTX_ORT_LIBRARY="$work/own/any.so"
takes "EPCTX_ORT_LIBRARY" environment "$work/own/any.so"
devices PATH="$work/venv/bin"
takes "the Python of a virtual environment" python \
    "$package/onnxruntime/capi/libonnxruntime.so.1.31.1"
tells "and that the variable is not set" "EPCTX_ORT_LIBRARY: it is not set"
devices PATH="$work/none" HOME="$work/home"
takes "a package of the user's own" python "$user/onnxruntime/capi/libonnxruntime.so.1.31.1"
if [ -e "$work/imported" ]; then fail "no package is imported" "one is"; else
    ok "no package is imported"
fi
devices LD_LIBRARY_PATH="$work/lib"
takes "the loader" loader "$work/lib/libonnxruntime.so.1"
tells "and that there is no Python" "python3: there is none in PATH"
devices LD_LIBRARY_PATH="$work/dev"
takes "the loader, the name for developers" loader "$work/dev/libonnxruntime.so"
system=$(ldconfig -p 2>/dev/null || /sbin/ldconfig -p 2>/dev/null)
case $system in
*libonnxruntime.so*) echo "skip the cache and nothing at all: the system has an ONNX Runtime" ;;
*)
    devices EPCTX_CACHE="$work/cache"
    takes "the cache" cache "$work/cache/onnxruntime-1.31.1-$machine/libonnxruntime.so.1"
    tells "and what the loader said" "libonnxruntime.so.1: cannot open"
    env -i TMPDIR="$work/tmp" PATH=/nowhere "$work/build/quick/asan/epctx" devices --json \
        >"$out" 2>"$err"
    code=$?
    takes "the cache of the build tree" cache \
        "$work/build/deps/onnxruntime-1.31.1-$machine/libonnxruntime.so.1"
    devices
    result "nothing at all" 1 "no ONNX Runtime is here"
    for place in "EPCTX_ORT_LIBRARY: it is not set" "python3: there is none in PATH" \
        "libonnxruntime.so.1: " "libonnxruntime.so: " "$work/none: there is no"; do
        result "what was tried is told: $place" 1 "$place"
    done
    cp "$plain" "$work/own/epctx" # in no build folder, as an installed one
    env -i TMPDIR="$work/tmp" EPCTX_CACHE=cache PATH=/nowhere HOME=/nowhere \
        "$work/own/epctx" devices --json >"$out" 2>"$err"
    code=$?
    result "a relative cache is not searched" 1 "EPCTX_CACHE: cache is no absolute path" ;;
esac

# -- their order --

all="PATH=$work/venv/bin LD_LIBRARY_PATH=$work/lib EPCTX_CACHE=$work/cache"
# shellcheck disable=SC2086 # a list of variables
devices $all EPCTX_ORT_LIBRARY="$work/own/any.so"
takes "the variable before Python" environment "$work/own/any.so"
# shellcheck disable=SC2086 # a list of variables
devices $all EPCTX_ORT_LIBRARY=
takes "Python before the loader" python "$package/onnxruntime/capi/libonnxruntime.so.1.31.1"
tells "an empty variable is told as such" "EPCTX_ORT_LIBRARY: it is empty"
# shellcheck disable=SC2086 # a list of variables
devices $all PATH=/nowhere
takes "the loader before the cache" loader "$work/lib/libonnxruntime.so.1"

# -- too old, and no ONNX Runtime --

library "$work/old/libonnxruntime.so.1" 1.23.2
library "$work/ancient/libonnxruntime.so.1" 1.9.0
for old in old ancient; do
    epctx devices --ort "$work/$old/libonnxruntime.so.1"
    result "--ort, $old" 1 "$work/$old/libonnxruntime.so.1 is ONNX Runtime 1."
    said "what is needed" 1 "1.24 or newer is needed"
done
# shellcheck disable=SC2086 # a list of variables
devices $all EPCTX_ORT_LIBRARY="$work/old/libonnxruntime.so.1"
result "in the variable, and the next is not tried" 1 "ONNX Runtime 1.23.2"
devices LD_LIBRARY_PATH="$work/old" EPCTX_CACHE="$work/cache"
if [ $code -eq 0 ] && grep -q '"found_by": "cache"' "$out" &&
    grep -q "^epctx: note: $work/old/.*1.23.2.*passed over$" "$err"; then
    ok "passed over with a note"
else fail "passed over with a note" "exit code $code"; fi
tells "and told" "$work/old/libonnxruntime.so.1 is ONNX Runtime 1.23.2"
library "$work/caches/onnxruntime-1.9.9-$machine/libonnxruntime.so.1" 1.9.9
library "$work/caches/onnxruntime-1.31.1-$machine/libonnxruntime.so.1"
library "$work/caches/onnxruntime-1.40.0-other/libonnxruntime.so.1" 1.40.0
mkdir "$work/caches/onnxruntime-1.32.0-$machine" "$work/caches/onnxruntime-node-1.30.0"
for number in $(seq 60); do mkdir "$work/caches/onnxruntime-1.2.$number-$machine"; done
case $system in
*libonnxruntime.so*) ;;
*)
    devices EPCTX_CACHE="$work/caches"
    takes "the newest of this machine that is whole" cache \
        "$work/caches/onnxruntime-1.31.1-$machine/libonnxruntime.so.1"
    tells "the newer one is told" "onnxruntime-1.32.0-$machine/libonnxruntime.so.1: No such file" ;;
esac

# What is wrong with an EP says nothing about ONNX Runtime: the first good one is taken, and the EP
# named with what it did.
bad_ep() {
    name=$1 fault=$2 ep=$3 words=$4
    env -i TMPDIR="$work/tmp" PATH=/nowhere HOME=/nowhere LD_LIBRARY_PATH="$work/lib" \
        EPCTX_CACHE="$work/cache" EPCTX_TOY_EP="$build/libtoy_ep.so" EPCTX_BAD_EP="$fault" \
        "$plain" devices --timeout 2 --ep "$ep" >"$out" 2>"$err"
    code=$?
    result "$name" 1 "$words"
    said "$name: it is named" 1 "${ep##*/}"
    if grep -q "no ONNX Runtime is here" "$err"; then fail "$name" "ONNX Runtime is blamed"; fi
}
bad_ep "an EP that is no library" "" "$work/old.c" registering
bad_ep "an EP that crashes" dies_at_registration "$build/libbad_ep.so" "signal"
bad_ep "an EP that hangs" registration_hangs "$build/libbad_ep.so" "no end after 2 s"

echo 'void OrtGetNothing(void) {}' | ${CC:-gcc} -shared -fPIC -x c - -o "$work/own/other.so"
echo 'void abort(void); __attribute__((constructor)) static void f(void) { abort(); }' |
    ${CC:-gcc} -shared -fPIC -x c - -o "$work/own/crash.so"
cp "$real" "$work/own/cut.so"
truncate -s 4000 "$work/own/cut.so"
library "$work/own/without.so" 1.31.1
echo text >"$work/own/text.so"
# Another processor: the machine's number in the header.
cp "$work/own/other.so" "$work/own/arm.so"
printf '\363' | dd of="$work/own/arm.so" bs=1 seek=18 conv=notrunc status=none
mkfifo "$work/own/pipe.so"
while read -r name words; do
    for way in option variable; do
        if [ $way = option ]; then epctx devices --ort "$work/own/$name"
        else devices EPCTX_ORT_LIBRARY="$work/own/$name"; fi
        result "$name, by $way" 1 "$words"
        said "$name, by $way: named" 1 "$work/own/${name%/}"
    done
done <<'END'
text.so it is no library
arm.so it is a library for another processor
pipe.so it is no regular file
nothing.so No such file or directory
other.so is no ONNX Runtime: it has no OrtGetApiBase
cut.so signal
without.so gives no functions
END
epctx devices --ort "$work/own"
result "a folder without one" 1 "it holds no libonnxruntime.so.1, nor do"
epctx devices --ort ""; result "an empty path" 2 "the value of --ort is empty"
epctx devices --ort libnowhere.so.1; result "a name that the loader does not know" 1 libnowhere.so.1
epctx devices --ort "$work/own/crash.so"; said "one that ends the process" 1 "signal 6"
mkdir "$work/crash"
cp "$work/own/crash.so" "$work/crash/libonnxruntime.so.1"
devices LD_LIBRARY_PATH="$work/crash:$work/dev"
takes "it is passed over" loader "$work/dev/libonnxruntime.so"
tells "and told, too" "signal 6"

# -- Pythons that answer something else --

# python BODY: a python3 of this kind in $work/fake, and another place behind it
python() {
    mkdir -p "$work/fake"
    { echo '#!/bin/sh'; cat; } >"$work/fake/python3"
    chmod +x "$work/fake/python3"
    devices PATH="$work/fake:/usr/bin:/bin" LD_LIBRARY_PATH="$work/lib"
}
passed="$work/lib/libonnxruntime.so.1"
echo 'echo "Could not find platform"; exit 3' | python
takes "a Python that fails" loader "$passed"
tells "it is told" "$work/fake/python3: it cannot be asked"
echo 'head -c 100000 /dev/urandom; echo; echo onnxruntime=relative/path' | python
takes "a Python that prints bytes and a relative path" loader "$passed"
tells "it is told" "$work/fake/python3: it has no package"
echo "echo onnxruntime=$work/lib" | python
takes "a Python with a package without the library" loader "$passed"
tells "it is told" "holds no capi/libonnxruntime.so"
echo 'printf onnxruntime=/; head -c 20000 /dev/zero | tr "\0" x; echo' | python
takes "a Python with an endless path" loader "$passed"
echo 'kill -SEGV $$' | python
takes "a Python that crashes" loader "$passed"
echo "echo warning >&2; echo onnxruntime=$package/onnxruntime; echo more" | python
takes "a Python that says more" python "$package/onnxruntime/capi/libonnxruntime.so.1.31.1"
echo 'sleep 1000 & echo $! >'"$work/sleeper"'; wait' | python
if grep -qx "epctx: note: $work/fake/python3: no answer after 3 s: passed over" "$err"; then
    ok "a Python that hangs is told at once"
else fail "a Python that hangs is told at once" "exit code $code"; fi
: >"$err"
takes "a Python that hangs" loader "$passed"
tells "it is told" "no answer after 3 s"
# The kernel may take a moment, above all when others run.
for _ in $(seq 50); do
    kill -0 "$(cat "$work/sleeper")" 2>/dev/null || break
    sleep 0.1
done
if kill -0 "$(cat "$work/sleeper")" 2>/dev/null; then fail "it is ended" "its child is there"; else
    ok "it is ended"
fi

# -- nothing of this folder --

for path in . "" ":/nowhere" ".:$work/none" "in:$work/none"; do
    devices PATH="$path" PYTHONPATH="$work/in" PYTHONSTARTUP="$work/in/site.py" \
        PYTHONHOME="$work/in" LD_LIBRARY_PATH="$work/lib"
    takes "PATH '$path'" loader "$passed"
done
devices PATH="$work/venv/bin" PYTHONPATH="$work/in" LD_LIBRARY_PATH="$work/lib"
takes "Python with a path of its own" python "$package/onnxruntime/capi/libonnxruntime.so.1.31.1"
if [ -e "$work/hijacked" ]; then fail "nothing of the current folder is run" "it is"; else
    ok "nothing of the current folder is run"
fi
if [ -z "$(ls -A "$work/tmp")" ]; then ok "no folder is left"; else
    fail "no folder is left" "$(ls -A "$work/tmp")"
fi

# -- other commands, and no folder for temporary files --

make_models plain
env -i TMPDIR="$work/tmp" PATH="$work/venv/bin" "$epctx" run --ep CPUExecutionProvider \
    "$work/plain.onnx" >"$out" 2>"$err"
code=$?
result "run finds it, too" 0 "output 0"
EPCTX_ORT_LIBRARY=$work/own/any.so "$epctx" --version --json >"$out" 2>"$err"
code=$?
as_named
if [ $code -eq 0 ] && grep -qF "{\"library\": \"$work/own/any.so\", \"found_by\": \"environment\"" \
    "$out"; then ok "--version takes the same"
else fail "--version takes the same" "exit code $code"; fi

# One sentence and one code, but in verify, where 1 is a difference.
for library in nothing.so text.so other.so old/libonnxruntime.so.1 crash.so libnowhere.so.1 ""; do
    case $library in
    "") case $system in *libonnxruntime.so*) continue ;; esac ;; # it is found
    libnowhere.so.1) ;;
    old/*) library=$work/$library ;;
    *) library=$work/own/$library ;;
    esac
    sentence=
    for command in compile run verify bench devices; do
        model=$work/plain.onnx failed=1
        [ $command != devices ] || model=
        [ $command != verify ] || failed=3
        env -i TMPDIR="$work/tmp" EPCTX_ORT_LIBRARY="$library" PATH=/nowhere HOME=/nowhere \
            EPCTX_CACHE="$work/none" "$plain" $command --ep CPUExecutionProvider $model \
            >"$out" 2>"$err"
        code=$?
        if [ $code -ne $failed ]; then
            fail "$command, '$library'" "exit code $code, expected $failed"
        elif [ -s "$out" ] || [ "$(grep -c '^epctx: ' "$err")" -ne 1 ]; then
            fail "$command, '$library'" "expected one sentence"
        elif words=$(sed 's/after [0-9.]* s//' "$err"); [ "$words" != "${sentence:=$words}" ]; then
            fail "$command, '$library'" "expected '$sentence'"
        else ok "$command, '$library'"; fi
    done
done
env -i TMPDIR="$work/absent" PATH="$work/venv/bin" "$epctx" devices >"$out" 2>"$err"
code=$?
result "no folder for temporary files" 1 "$work/absent"
exit $status
