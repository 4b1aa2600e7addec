#!/bin/sh
# The README's two commands on a really fresh Debian 12, made by debootstrap, with what Debian has
# and with nothing else: as root, and as a plain user with sudo and umask 077 in a path with blanks.
# How much is downloaded, and that nothing is silent for long. Part of `make matrix`; wants root.
#
# Mirror, proxies, certificates and the settings of pip and npm are those of this machine.
#
# Environment: FRESH_USERS  (default "root plain")     FRESH_GOALS  (default "demo test")
#              FRESH_BASE   a folder where the bare system is kept for the next time
#              DEBIAN_MIRROR
set -u
cd "$(dirname "$0")/.." || exit 1
. tests/script.sh
start fresh
out=$work/log err=/dev/null
# shellcheck disable=SC2034 # by their names
most_demo=40 most_test=260 # MB beside Debian's packages
silence=10                 # seconds
path=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

if [ "$(id -u)" -ne 0 ]; then
    echo "skip fresh: debootstrap wants root"
    exit
fi
if ! command -v debootstrap >/dev/null; then
    echo "skip fresh: debootstrap is not here: tests/deps.sh matrix"
    exit
fi
# Everything is mounted in a name space of its own, so nothing stays mounted.
if [ "${FRESH_INSIDE:-}" != 1 ]; then
    if ! unshare -m true 2>/dev/null; then
        echo "skip fresh: no file system can be mounted here"
        exit
    fi
    FRESH_INSIDE=1 exec unshare -m --propagation private sh "$top/tests/fresh.sh"
fi

# -- the bare system --
# shellcheck disable=SC2016 # apt's own names
mirror=${DEBIAN_MIRROR:-$(apt-get indextargets --format '$(SITE)' 'Codename: bookworm' \
    'Created-By: Packages' 'Label: Debian' 2>/dev/null | head -n 1)}
mirror=${mirror:-http://deb.debian.org/debian}
base=${FRESH_BASE:-$work/base}
if [ ! -e "$base/etc/fresh" ]; then
    rm -rf "$base"
    # What a checkout needs; sudo is the plain user's.
    debootstrap --variant=minbase --include=ca-certificates,make,sudo bookworm "$base" "$mirror" \
        >"$out" 2>&1 || {
        fail "debootstrap" "exit code $?"
        exit 1
    }
    touch "$base/etc/fresh"
fi

# settings ROOT HOME: how this machine gets at servers
settings() {
    cp -L /etc/resolv.conf /etc/hosts "$1/etc/" 2>/dev/null
    {
        echo "deb $mirror bookworm main"
        # shellcheck disable=SC2016
        apt-get indextargets --format 'deb $(SITE) $(CODENAME) main' 'Created-By: Packages' \
            'Label: Debian-Security' 'Component: main' 2>/dev/null | grep ' bookworm'
    } | sort -u >"$1/etc/apt/sources.list"
    apt-config dump 2>/dev/null | grep -iE '^Acquire::(https?|ftp|socks)::(Proxy|CA|Verify|SSL)' \
        >"$1/etc/apt/apt.conf.d/90machine"
    # Packages of one user's run serve the next.
    mkdir -p "$work/archives"
    mount --bind "$work/archives" "$1/var/cache/apt/archives"
    if [ -d /usr/local/share/ca-certificates ]; then
        cp -r /usr/local/share/ca-certificates "$1/usr/local/share/"
        chroot "$1" update-ca-certificates >/dev/null 2>&1
    fi
    for file in /etc/pip.conf /etc/npmrc; do [ ! -e $file ] || cp $file "$1/etc/"; done
    for file in .npmrc .pip .config/pip; do
        [ ! -e "$HOME/$file" ] || {
            mkdir -p "$1$2/${file%/*}"
            cp -rL "$HOME/$file" "$1$2/$file"
        }
    done
}

# The variables of clients
clients() {
    names='(https?|no|all)_proxy|pip_[a-z_]*|npm_config_[a-z_]*|debian_mirror'
    certificates='ssl_cert_(file|dir)|requests_ca_bundle|curl_ca_bundle|node_extra_ca_certs'
    env | grep -iE "^($names|$certificates)="
}

# stamped: each line with the second it came in
stamped() { while IFS= read -r line; do printf '%s %s\n' "$(date +%s)" "$line"; done; }

# megabytes FOLDER: what was downloaded from PyPI and npm
megabytes() {
    find "$1" -maxdepth 2 \( -name '*.whl' -o -name '*.tgz' \) -printf '%s\n' |
        awk '{ bytes += $1 } END { printf "%d", (bytes + 999999) / 1000000 }'
}

# told GOAL: the packages' megabytes stand before their installation, and no step is silent
told() {
    if ! grep -q 'deps: to come from Debian: [0-9]* packages, [0-9]* MB' "$out" &&
        grep -q 'deps: to be installed from Debian' "$out"; then
        fail "$1: Debian's megabytes" "are not told"
    else ok "$1: Debian's megabytes"; fi
    awk -v most=$silence '$2 == "deps:" && last && $1 - last > worst { worst = $1 - last }
        { last = $1 } END { exit worst > most }' "$out" ||
        fail "$1: silence" "of more than $silence s while something is installed"
}

for user in ${FRESH_USERS:-root plain}; do
    system=$work/$user
    cp -a "$base" "$system"
    place=epctx mask=022
    if [ "$user" = plain ]; then
        place="a folder/e p c t x" mask=077
        chroot "$system" useradd -m -s /bin/sh plain
        echo 'plain ALL=(ALL) NOPASSWD: ALL' >"$system/etc/sudoers.d/plain"
    fi
    home=$(awk -F : -v user="$user" '$1 == user { print $6 }' "$system/etc/passwd")
    folder=$home/$place
    settings "$system" "$home"
    mkdir -p "$system$folder"
    git ls-files -co --exclude-standard -z | tar --null -T - -cf - | tar -xf - -C "$system$folder"
    [ "$user" = root ] || chroot "$system" chown -R plain:plain "$home"
    [ "$user" = root ] || chmod -R go= "$system$folder"
    mount -t proc proc "$system/proc"
    mount --rbind /dev "$system/dev"
    mount -t tmpfs tmpfs "$system/tmp"
    for goal in ${FRESH_GOALS:-demo test}; do
        clients >"$system/etc/environment.clients"
        cat >"$system/etc/fresh.sh" <<END
set -a
. /etc/environment.sh
set +a
umask $mask
cd "$folder" && make $goal
END
        sed "s/'/'\\\\''/g; s/^\([^=]*\)=\(.*\)/\1='\2'/" "$system/etc/environment.clients" \
            >"$system/etc/environment.sh"
        chmod 644 "$system"/etc/environment.* "$system/etc/fresh.sh"
        {
            chroot "$system" env -i "PATH=$path" su "$user" -c 'sh /etc/fresh.sh' </dev/null 2>&1
            echo "exit code $?"
        } | stamped >"$out"
        cp "$out" "$work/$user.$goal.log"
        if [ "$(tail -n 1 "$out" | cut -d ' ' -f 2-)" = "exit code 0" ]; then ok "$user: make $goal"
        else
            fail "$user: make $goal" "$(tail -n 1 "$out" | cut -d ' ' -f 2-)"
            grep -E 'deps:|Error' "$out" | head -n 40 | cut -d ' ' -f 2- | sed 's/^/  /'
            # Every one: whoever looks into it has no other log.
            grep FAIL "$out" | cut -d ' ' -f 2- | sed 's/^/  /'
            tail -n 20 "$out" | cut -d ' ' -f 2- | sed 's/^/  /'
        fi
        told "$user: make $goal"
        found=$(megabytes "$system$folder/build/deps")
        eval "most=\$most_$goal"
        if [ "$found" -le "$most" ]; then ok "$user: make $goal: at most $most MB beside Debian"
        else fail "$user: make $goal: at most $most MB beside Debian" "$found MB"; fi
        took=$(($(tail -n 1 "$out" | cut -d ' ' -f 1) - $(head -n 1 "$out" | cut -d ' ' -f 1)))
        echo "note $user: make $goal: $took s; $found MB of PyPI and npm; $(grep -o \
            'to come from Debian: .*' "$out" | tr '\n' ' ')$(tail -n 2 "$out" | head -n 1 |
            cut -d ' ' -f 2-)"
    done
    umount -l "$system/dev" "$system/proc" "$system/tmp" "$system/var/cache/apt/archives"
    rm -rf --one-file-system "$system"
done
[ -n "${EPCTX_TEST_KEEP:-}" ] || rm -rf --one-file-system "$work"
exit $status
