#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# In a chroot of Debian: install packages and use them, upgrade them, remove and
# purge them.
#
# usage: package-upgrade.sh OLD NEW TESTS
#
# OLD has packages with a lower version than NEW. TESTS is a copy of debian/tests.

set -eu
old=$1
new=$2
AUTOPKGTEST_TMP=$(mktemp -d)
export AUTOPKGTEST_TMP DEBIAN_FRONTEND=noninteractive
trap 'rm -rf "$AUTOPKGTEST_TMP" /usr/local/bin/qemu-system-x86_64' EXIT
trap 'exit 130' INT TERM
apt() {
    apt-get -q -y -o Dpkg::Use-Pty=0 --no-install-recommends "$@"
}

fail() {
    echo "error: $*" >&2
    exit 1
}

# debian/tests/guest.sh, which is sourced below, needs these packages.
apt update
apt install busybox-static cpio linux-image-cloud-amd64 procps qemu-system-x86
# shellcheck source=debian/tests/guest.sh
. "$3/guest.sh"

# all_files: list all files and folders of the root file system except those of apt and
# dpkg, logs, caches, temporary files, and the folders of other file systems
all_files() {
    find / -xdev '(' -path /proc -o -path /sys -o -path /dev -o -path /tmp \
        -o -path /run -o -path /var/cache -o -path /var/lib/apt \
        -o -path /var/lib/dpkg -o -path /var/log ')' -prune -o -print | sort
}

# purge: remove this project's packages and their settings; packages on which
# they depend stay. It uses dpkg, because apt does not know the names of
# packages that are removed already.
names=$(for deb in "$new"/*.deb; do dpkg-deb -f "$deb" Package; done)
purge() {
    # shellcheck disable=SC2086
    dpkg --purge $names
}

# versions_are DIR: fail unless each package of DIR is installed in the version
# that DIR has
versions_are() {
    for deb in "$1"/*.deb; do
        name=$(dpkg-deb -f "$deb" Package)
        [ "$(dpkg-query -W -f '${Version}' "$name")" = \
            "$(dpkg-deb -f "$deb" Version)" ] || fail "$name is not of $1"
    done
}

# sums: print the checksum of each file in /etc/hypertrace (settings) and in
# /var/lib/hypertrace (recordings)
sums() {
    find /etc/hypertrace /var/lib/hypertrace -type f | sort |
        xargs -d '\n' sha256sum
}

# boot_once: boot a guest with the program qemu-system-x86_64 in PATH, which is then a link
# to hypertrace; wait for the end of QEMU and of the recorder
boot_once() {
    rm -rf root
    echo 'echo "the guest is up" >/dev/kmsg' | guest_root
    guest env
    while pgrep -x hypertrace >/dev/null || pgrep qemu-system >/dev/null; do
        sleep 0.1
    done
}

# autopkgtest has installed the packages: purge them. Then install them as the
# documentation says, and run debian/tests/record.
purge
apt install "$new"/*.deb
sh "$3/record"
purge
all_files >files-before

apt install "$old"/*.deb
versions_are "$old"
ln -s /usr/bin/hypertrace /usr/local/bin/qemu-system-x86_64
mkdir -p /etc/hypertrace
printf '[emulator]\nkeep=7\nmax-size=64M\n' >/etc/hypertrace/emulator.conf
printf '[vm no-such-machine]\nsize=1M\n' >/etc/hypertrace/watch.conf
boot_once
recording=$(find /var/lib/hypertrace -mindepth 1 -maxdepth 1)
[ -f "$recording/info" ] || fail "there is no recording in /var/lib/hypertrace"
sums >before
hypertrace report "$recording" >report-before

apt install "$new"/*.deb
versions_are "$new"
sums | cmp before - || fail "the upgrade changed settings or recordings"
hypertrace report "$recording" | cmp report-before - ||
    fail "the upgraded program reads the recording differently"
has 'the guest is up' hypertrace log "$recording"
boot_once
[ "$(find /var/lib/hypertrace -mindepth 1 -maxdepth 1 | wc -l)" -eq 2 ] ||
    fail "the upgraded program made no recording by the settings"
sums >before

# shellcheck disable=SC2086
dpkg -L $names | sort -u >installed
# shellcheck disable=SC2086
apt remove $names
[ ! -e /usr/bin/hypertrace ] || fail "a removal left /usr/bin/hypertrace"
sums | cmp before - || fail "the removal changed settings or recordings"
purge
rm /usr/local/bin/qemu-system-x86_64
while read -r file; do
    [ -d "$file" ] || { [ ! -e "$file" ] && [ ! -L "$file" ]; } ||
        fail "a purge left $file"
done <installed
all_files >files-after
diff files-before files-after || fail "a purge left these files"
left=$(grep hypertrace files-after | grep -v "^$new\|^$old" || :)
[ -z "$left" ] || fail "a purge left: $left"
