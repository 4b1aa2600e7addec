#!/bin/sh
# `make test` as a plain user with umask 077, who is made for it and removed afterwards: in a copy
# of this tree, with what is built there and with its cache, so that nothing is compiled or
# downloaded again. For root, after `make test`.
#
#   tests/plain_user.sh [COMMAND...]     runs COMMAND there instead of `make test`
#
# What cannot be done here is a skip with its reason, in the output and in EPCTX_TEST_TALLY.
set -u
cd "$(dirname "$0")/.." || exit 1
cache=${EPCTX_CACHE:-build/deps}
user=epctx$$
folder=

skip() {
    echo "      skip plain user: $*"
    [ -z "${EPCTX_TEST_TALLY:-}" ] || echo 0 0 1 >>"$EPCTX_TEST_TALLY"
    exit 0
}
[ "$(id -u)" -eq 0 ] || skip "only root can make one"
command -v useradd >/dev/null && command -v runuser >/dev/null || skip "no useradd or runuser here"

clean() {
    [ -z "$folder" ] || rm -rf "$folder"
    userdel "$user" 2>/dev/null
}
trap clean EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
folder=$(mktemp -d) || exit 1
chmod 711 "$folder"
useradd -d "$folder/home" -m -s /bin/sh "$user" 2>/dev/null || skip "useradd makes none here"

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
tally=$folder/home/tally
chown -R "$user" "$folder/tree" "$folder/cache" "$folder/home"
chmod -R go= "$folder/tree" "$folder/cache"

[ $# -gt 0 ] || set -- make --no-print-directory test
echo "as a plain user with umask 077: $*"
# Models outside the tree may be read by root only.
runuser -u "$user" -- env -u CCACHE_DIR -u TMPDIR -u EPCTX_TEST_COMPLETE -u EPCTX_TEST_MODELS \
    -u PYTHON HOME="$folder/home" USER="$user" LOGNAME="$user" EPCTX_CACHE="$folder/cache" \
    EPCTX_OFFLINE=1 EPCTX_TEST_TALLY="$tally" \
    sh -c 'umask 077; cd "$1" && shift && exec "$@"' sh "$folder/tree" "$@"
code=$?
[ -z "${EPCTX_TEST_TALLY:-}" ] || cat "$tally" >>"$EPCTX_TEST_TALLY" 2>/dev/null
exit $code
