#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Install the packages in a clean chroot of Debian, test them there with
# autopkgtest, and remove them.

. "$(dirname -- "$0")/../lib.sh"
. "$HT_TOP/scripts/build/debian.sh"

[ $# -eq 2 ] && [ "$1" != --help ] || {
    echo "usage: scripts/check/package-tests.sh SUITE DIR" >&2
    echo "Tests the packages in DIR in a chroot of Debian SUITE; needs root." >&2
    exit 2
}
suite=$1
packages=$(CDPATH='' cd -- "$2" && pwd -P)
ht_paths ""
ht_tree_init
[ "$(id -u)" -eq 0 ] || die "a chroot needs root: run it with sudo"
have mmdebstrap && have autopkgtest ||
    die "mmdebstrap and autopkgtest are not installed"
need_space 4000 "$HT_TREE"
# Keep package lists in the build tree: the shared ones need a lock.
ht_apt=$HT_TREE/package-apt
debian_lists "$suite" "packages"
root=$HT_TREE/package-root
results=$HT_TREE/package-tests
sources=$ht_apt/$suite/sources.list
rm -rf "$root" "$results"
trap 'rm -rf "$root"' EXIT
trap 'exit 130' INT TERM

logged mmdebstrap "making a chroot of Debian $suite" \
    mmdebstrap --mode=root --variant=apt --skip=check/empty \
    --dpkgopt=force-unsafe-io \
    --include=apt-utils,ca-certificates,debian-archive-keyring,dpkg-dev \
    "$suite" "$root" "$sources"
# Copy this system's settings for access to the mirrors.
apt-config dump | grep -E '^Acquire::(https?|Retries|tor)' \
    >"$root/etc/apt/apt.conf.d/90host" || :
rm -f "$root/etc/resolv.conf"
cp /etc/resolv.conf "$root/etc/resolv.conf"
cp -r /usr/local/share/ca-certificates "$root/usr/local/share/" 2>/dev/null || :
# No service may start in a chroot.
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
chmod +x "$root/usr/sbin/policy-rc.d"

# in_chroot COMMAND...: with the file systems of a running system, in a mount
# namespace that ends with the command
# shellcheck disable=SC2016 # the inner shell expands them
in_chroot() {
    unshare -m --pid --fork sh -c '
        root=$1
        shift
        mount -t proc proc "$root/proc"
        mount --rbind /sys "$root/sys"
        mount --rbind /dev "$root/dev"
        mount -t tmpfs shm "$root/dev/shm"
        exec "$@"' sh "$root" "$@"
}

status=0
step "testing the packages in Debian $suite ($results)"
in_chroot autopkgtest --output-dir "$results" --apt-upgrade --no-built-binaries \
    "$packages"/*.deb "$packages"/*.dsc -- chroot "$root" \
    >"$HT_TREE/log/autopkgtest.log" 2>&1 </dev/null || status=$?
[ ! -f "$results/summary" ] || cat "$results/summary" >&2
# autopkgtest's status 2: some tests were skipped, such as virtme-ng without
# its package, and all others passed.
[ "$status" -eq 0 ] || [ "$status" -eq 2 ] ||
    die "tests of the packages failed (log: $HT_TREE/log/autopkgtest.log)"

# older DIR: copy the packages to DIR with a lower version
older() {
    mkdir -p "$1"
    for deb in "$root/packages/new"/*.deb; do
        tree=$HT_TREE/package-older
        rm -rf "$tree"
        dpkg-deb -R "$deb" "$tree"
        version=$(dpkg-deb -f "$deb" Version)
        sed -i -e "s/^Version: .*/&~0/" \
            -e "s/(\([<>=]* $version\))/(\1~0)/g" "$tree/DEBIAN/control"
        dpkg-deb -b --root-owner-group "$tree" "$1" >&2
        rm -rf "$tree"
    done
}

mkdir -p "$root/packages/new"
for deb in "$packages"/*.deb; do
    case $deb in *-dbgsym_*) ;; *) cp "$deb" "$root/packages/new/" ;; esac
done
cp -r "$HT_TOP/debian/tests" "$root/packages/tests"
cp "$HT_TOP/scripts/check/package-upgrade.sh" "$root/packages/"
older "$root/packages/old"
logged package-upgrade "upgrading, removing and purging the packages" in_chroot \
    chroot "$root" sh /packages/package-upgrade.sh /packages/old /packages/new \
    /packages/tests
step "an upgrade keeps settings and recordings; nothing is left after a purge"
