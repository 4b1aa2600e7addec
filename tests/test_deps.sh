#!/bin/sh
# What `make demo` and `make test` do first: they tell what they are about to install, want no
# network when everything is there, and end soon with the cure when something cannot be had. Nothing
# is installed or removed here: apt-get and npm are stubs.
# runs: once
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
start deps
out=$work/log err=/dev/null
unset MAKEFLAGS MFLAGS MAKELEVEL ORT_HOME ORT_INCLUDE NANOPB_SOURCE EPCTX_OFFLINE
most=10 # seconds

# stub NAME BODY: a program that notes that it was called
mkdir "$work/bin"
stub() {
    printf '#!/bin/sh\necho "%s $*" >>"%s/calls"\n%s\n' "$1" "$work" "$2" >"$work/bin/$1"
    chmod +x "$work/bin/$1"
}
with_stubs() { PATH="$work/bin:$PATH" timeout 60 "$@" >"$out" 2>&1 </dev/null; }

# ends NAME TEXT...: the command failed in time with each of these words
ends() {
    name=$1
    shift
    if [ "$code" -eq 0 ]; then fail "$name" "it succeeds"; return; fi
    if [ $seconds -gt $most ]; then fail "$name" "it takes $seconds s"; return; fi
    for text; do
        grep -qF -e "$text" "$out" || { fail "$name" "expected '$text'"; return; }
    done
    ok "$name"
}
# runs COMMAND...: sets $code and $seconds
runs() {
    begun=$(date +%s)
    with_stubs "$@"
    code=$?
    seconds=$(($(date +%s) - begun))
}

for name in apt-get npm; do stub $name 'exit 1'; done
stub sudo '"$@"'

# -- everything is there --
if with_stubs sh tests/deps.sh demo test && ! [ -s "$out" ] && ! [ -e "$work/calls" ]; then
    ok "nothing is missing: silence, and no network"
else
    fail "nothing is missing: silence, and no network" "called: $(cat "$work/calls" 2>/dev/null)"
fi

# -- no network wanted --
for missing in "CC=no-such-compiler" "EPCTX_CACHE=$work/cache"; do
    name="EPCTX_OFFLINE, $missing"
    rm -f "$work/calls"
    runs make "$missing" EPCTX_OFFLINE=1 demo
    ends "$name" "deps: missing: " "EPCTX_OFFLINE=1"
    if [ -e "$work/calls" ]; then fail "$name" "called: $(cat "$work/calls")"
    elif grep -q 'to be ' "$out"; then fail "$name" "it tells what it will not do"; fi
done

# -- no network at once --
for goal in demo test; do
    runs make EPCTX_CACHE="$work/cache" $goal
    ends "make $goal without npm" "to be put into $work/cache: ONNX Runtime" "could not download" \
        "or put the file into $work/cache"
    runs make CC=no-such-compiler EPCTX_CACHE="$work/cache" $goal
    ends "make $goal without Debian" "to be installed from Debian: no-such-compiler" \
        "to be put into $work/cache: ONNX Runtime" "apt-get install no-such-compiler"
done

# -- a server that delivers something else --
stub sleep 'exit 0'
stub npm 'case $1 in pack) for name; do :; done; echo other >"${name%@*}-${name##*@}.tgz" ;; esac'
EPCTX_CACHE="$work/cache" runs sh tests/deps.sh demo
ends "a download with another checksum" "has an unexpected sha512" "could not download"
if [ -z "$(ls "$work/cache")" ]; then ok "nothing of it is kept"
else fail "nothing of it is kept" "$(ls "$work/cache")"; fi
rm "$work/bin/sleep"

# -- a server that never answers --
stub npm 'exec sleep 60'
stub apt-get 'case "$*" in *update) exec sleep 60 ;; esac
exit 1'
runs make EPCTX_CACHE="$work/cache" demo
ends "no answer from npm" "could not download" "or put the file into $work/cache"
runs make CC=no-such-compiler test
ends "no answer from Debian" "apt-get install no-such-compiler"

# -- everything is told before anything is done --
cat >"$work/bin/npm" <<'END'
#!/bin/sh
cp "$DEPS_LOG" "$DEPS_LOG.then"
exit 1
END
DEPS_LOG=$out
export DEPS_LOG
EPCTX_CACHE="$work/cache" runs sh tests/deps.sh test
count=$(grep -c 'to be put into' "$out.then")
if [ "$count" -eq 6 ]; then ok "six downloads are told before the first"
else fail "six downloads are told before the first" "$count are"; fi
exit $status
