#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Install the packages in a clean chroot of Debian, and test them there with autopkgtest.
# Then install a lower version, upgrade it, and remove and purge the packages.

. "$(dirname -- "$0")/../lib.sh"
. "$HT_TOP/scripts/build/debian.sh"

[ $# -ge 2 ] && [ "$1" != --help ] || {
    echo "usage: scripts/check/package-tests.sh SUITE DIR [AUTOPKGTEST OPTIONS]" >&2
    echo "Tests the packages in DIR in a chroot of Debian SUITE; needs root." >&2
    exit 2
}
suite=$1
packages=$(CDPATH='' cd -- "$2" && pwd -P)
shift 2
ht_paths ""
ht_tree_init
have autopkgtest || die "autopkgtest is not installed"
. "$HT_TOP/scripts/build/chroot.sh"
make_chroot "$suite"
results=$HT_TREE/package-tests
rm -rf "$results"

status=0
step "testing the packages in Debian $suite ($results)"
with_chroot autopkgtest --output-dir "$results" --apt-upgrade --no-built-binaries \
    "$@" "$packages"/*.deb "$packages"/*.dsc -- chroot "$chroot" \
    >"$HT_TREE/log/autopkgtest.log" 2>&1 </dev/null || status=$?
[ ! -f "$results/summary" ] || cat "$results/summary" >&2
# autopkgtest's status 2 means that no test failed and that at least one was skipped,
# such as virtme-ng if its package cannot be installed.
[ "$status" -eq 0 ] || [ "$status" -eq 2 ] ||
    die "tests of the packages failed (log: $HT_TREE/log/autopkgtest.log)"

# older DIR: copy the packages to DIR, with a version that is lower than that of
# the original packages
older() {
    mkdir -p "$1"
    for deb in "$chroot/packages/new"/*.deb; do
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

mkdir -p "$chroot/packages/new"
for deb in "$packages"/*.deb; do
    case $deb in *-dbgsym_*) ;; *) cp "$deb" "$chroot/packages/new/" ;; esac
done
cp -r "$HT_TOP/debian/tests" "$chroot/packages/tests"
cp "$HT_TOP/scripts/check/package-upgrade.sh" "$chroot/packages/"
older "$chroot/packages/old"
logged package-upgrade "upgrading, removing and purging the packages" in_chroot / \
    sh /packages/package-upgrade.sh /packages/old /packages/new \
    /packages/tests
step "an upgrade keeps settings and recordings; nothing is left after a purge"
