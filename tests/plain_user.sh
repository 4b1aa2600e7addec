#!/bin/sh
# `make test` as a plain user with umask 077, who is made for it and removed afterwards: in a copy
# of this tree, with what is built there and with its cache, so that nothing is compiled or
# downloaded again. For root, after `make test` or `make test-programs`.
#
#   tests/plain_user.sh [COMMAND...]     runs COMMAND there instead of `make test`
#
# Where no such user can be made COMMAND runs here, and the first line tells why.
set -u
cd "$(dirname "$0")/.." || exit 1
[ $# -gt 0 ] || set -- make --no-print-directory test
cache=${EPCTX_CACHE:-build/deps}
models=${EPCTX_TEST_MODELS:-}
user=epctx$$
folder=

# here WHY COMMAND...
here() {
    echo "no plain user is made, $1: what follows runs as $(id -un)"
    shift
    exec "$@"
}
[ "$(id -u)" -eq 0 ] || here "only root can make one" "$@"
command -v useradd >/dev/null && command -v runuser >/dev/null ||
    here "there is no useradd or no runuser" "$@"

clean() {
    [ -z "$folder" ] || rm -rf "$folder"
    userdel -r "$user" 2>/dev/null
}
trap clean EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
for place in "${TMPDIR:-/tmp}" /tmp; do
    folder=$(mktemp -d -p "$place") || exit 1
    chmod 711 "$folder"
    runuser -u nobody -- test -x "$folder" && break
    rm -rf "$folder"
    folder=
done
[ -n "$folder" ] || here "others cannot enter ${TMPDIR:-/tmp}, nor /tmp" "$@"
useradd -d "$folder/home" -m -s /bin/sh "$user" 2>/dev/null || {
    rm -rf "$folder"
    here "useradd makes none" "$@"
}
as_user() { runuser -u "$user" -- "$@"; }

# Of other builds nothing is looked at. Archives are there, too: tests/test_deps.sh unpacks them.
mkdir "$folder/tree" "$folder/cache"
tar -cf - --exclude=./build --exclude=./.git . | tar -xf - -C "$folder/tree"
mkdir "$folder/tree/build"
cp -a build/quick "$folder/tree/build/" || exit 1
for file in build/*; do [ ! -f "$file" ] || cp -a "$file" "$folder/tree/build/"; done
for name in $(cd "$cache" && ls); do
    cp -a "$cache/$name" "$folder/cache/" || exit 1
done
[ ! -e build/fuzz/onnx.desc ] || {
    mkdir "$folder/tree/build/fuzz"
    cp -a build/fuzz/onnx.desc "$folder/tree/build/fuzz/"
}
# Models outside the tree may be read by root only.
if [ -n "$models" ] && ! as_user find "$models/" -type f ! -readable >"$folder/home/unread" 2>&1 ||
    [ -s "$folder/home/unread" ]; then
    cp -rL "$models" "$folder/models" || exit 1
    [ ! -d "$models/../cases" ] || cp -rL "$models/../cases" "$folder/cases" || exit 1
    models=$folder/models
    chown -R "$user" "$folder"/models "$folder"/cases* 2>/dev/null
fi
tally=$folder/home/tally
chown -R "$user" "$folder/tree" "$folder/cache" "$folder/home"
chmod -R go= "$folder/tree" "$folder/cache"

echo "as a plain user with umask 077: $*"
as_user env -u CCACHE_DIR -u TMPDIR -u PYTHON HOME="$folder/home" USER="$user" LOGNAME="$user" \
    EPCTX_CACHE="$folder/cache" EPCTX_TEST_MODELS="$models" EPCTX_OFFLINE=1 \
    EPCTX_TEST_OTHER_USER=1 EPCTX_TEST_TALLY="$tally" \
    sh -c 'umask 077; cd "$1" && shift && exec "$@"' sh "$folder/tree" "$@"
code=$?
[ -z "${EPCTX_TEST_TALLY:-}" ] || cat "$tally" >>"$EPCTX_TEST_TALLY" 2>/dev/null
exit $code
