# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Sourced after lib.sh: functions that download packages of a Debian suite with apt lists
# of their own, so that the system's configuration of apt does not change.

ht_keyring=/usr/share/keyrings/debian-archive-keyring.gpg

# debian_mirrors WHAT: set ht_mirror to $HYPERTRACE_DEBIAN_MIRROR or, if that is empty,
# to the Debian mirror of this system's apt. Set ht_mirror_security to the mirror for
# security updates of this system's apt, if it has one. WHAT is for messages: that which is
# fetched.
debian_mirrors() {
    have apt-get && have dpkg-source ||
        die "fetching $1 needs Debian's apt and dpkg-dev; on other systems" \
            "give a QEMU 10.0+ source tree with --qemu DIR"
    [ -r "$ht_keyring" ] || die "fetching $1 needs $ht_keyring;" \
        "install the package debian-archive-keyring"
    uris=$(apt-get --print-uris update 2>/dev/null) || uris=
    names='buster|bullseye|bookworm|trixie|forky|sid|stable|oldstable|testing'
    ht_mirror=${HYPERTRACE_DEBIAN_MIRROR:-$(printf '%s\n' "$uris" |
        sed -nE "s,^'(.*)/dists/($names)/main/.*,\\1,p" | head -n 1)}
    ht_mirror_security=$(printf '%s\n' "$uris" |
        sed -nE "s,^'(.*)/dists/($names)-security/main/.*,\\1,p" | head -n 1)
    [ -n "$ht_mirror" ] || die "no Debian mirror in this system's apt" \
        "sources; set HYPERTRACE_DEBIAN_MIRROR to the address of one"
}

ht_offline="see that the network and the mirror answer, then run it again"

# Folder of private_apt's package lists; if empty, $HT_CACHE/apt, and the script
# must hold the cache's lock
ht_apt=

# Architecture of the packages; if empty, this system's. It may be another one, because
# packages are downloaded and unpacked, but not installed.
ht_arch=

# private_apt SUITE COMMAND...: run a command of apt, such as apt-cache show, with the
# package lists that debian_lists keeps for SUITE
private_apt() {
    (
        root=${ht_apt:-$HT_CACHE/apt}/$1${ht_arch:+-$ht_arch}
        tool=$2
        shift 2
        [ -z "$ht_arch" ] ||
            set -- -o APT::Architecture="$ht_arch" \
                -o APT::Architectures="$ht_arch" "$@"
        exec "$tool" \
            -o Dir::Etc::sourcelist="$root/sources.list" \
            -o Dir::Etc::sourceparts=- \
            -o Dir::Etc::preferences="$root/status" -o Dir::Etc::preferencesparts="$root/cache" \
            -o Dir::State="$root" -o Dir::State::lists="$root/lists" \
            -o Dir::State::status="$root/status" \
            -o Dir::Cache="$root/cache" -o APT::Sandbox::User=root \
            -o APT::Default-Release= -o Acquire::Languages=none \
            -o Acquire::Retries=3 -q "$@"
    )
}

# debian_lists SUITE WHAT: fetch a suite's package lists, unless this run of the script
# has fetched them before; WHAT is for messages, as for debian_mirrors
debian_lists() {
    root=${ht_apt:-$HT_CACHE/apt}/$1${ht_arch:+-$ht_arch}
    [ -f "$root/fresh.$$" ] && return 0
    debian_mirrors "Debian's $2"
    rm -rf "$root"
    mkdir -p "$root/lists/partial" "$root/cache/archives/partial"
    : >"$root/status"
    list=
    for kind in deb deb-src; do
        list="$list$kind [signed-by=$ht_keyring] $ht_mirror $1 main
"
        # Suites such as bookworm-backports, and sid, have no security archive
        # of their own.
        case $1 in *-*|sid) continue ;; esac
        [ -z "$ht_mirror_security" ] ||
            list="$list$kind [signed-by=$ht_keyring] $ht_mirror_security $1-security main
"
    done
    write_file "$root/sources.list" "$list"
    ht_hint=$ht_offline
    logged "apt-$1" "fetching the package lists of Debian $1" \
        private_apt "$1" apt-get --error-on=any update
    ht_hint=
    : >"$root/fresh.$$"
}

# debian_debs SUITE DIR PACKAGE...: download packages into DIR
debian_debs() {
    suite=$1
    into=$2
    shift 2
    mkdir -p "$into"
    debian_lists "$suite" "packages"
    (
        cd "$into" || die "cannot enter $into"
        # shellcheck disable=SC2034 # read by logged
        ht_hint=$ht_offline
        logged "download-$1" "downloading $*" \
            private_apt "$suite" apt-get download "$@"
    )
}

# debian_depends SUITE PACKAGE PATTERN: of the packages on which the newest version of
# PACKAGE depends, print the first that matches PATTERN of grep, or nothing
debian_depends() {
    private_apt "$1" apt-cache show --no-all-versions "$2" |
        sed -n 's/^Depends: //p' | tr ',' '\n' |
        sed -n 's/^ *\([^ ]*\).*/\1/p' | grep "$3" | head -n 1
}

# debian_kernel SUITE META NEW DEBS PACKAGE...: download the kernel that the package META
# depends on, and each PACKAGE, to the folder DEBS. Unpack them into the folder NEW, where
# the kernel is then the file vmlinuz, without the kernel's modules.
debian_kernel() {
    from=$1
    meta=$2
    unpacked=$3
    packages=$4
    shift 4
    debian_lists "$from" "kernels"
    image=$(debian_depends "$from" "$meta" '^linux-image-[0-9]')
    [ -n "$image" ] || die "Debian $from has no $meta"
    # The image of newer kernels is in a package linux-binary-*, on which
    # linux-image-* depends.
    binary=$(debian_depends "$from" "$image" '^linux-binary-' || :)
    debian_debs "$from" "$packages" "${binary:-$image}" "$@"
    for deb in "$packages"/*.deb; do
        dpkg -x "$deb" "$unpacked" || die "cannot unpack $deb (disk full?)"
    done
    found=$(find "$unpacked" -type f -name 'vmlinuz*')
    [ -f "$found" ] || die "${binary:-$image} has no kernel"
    mv "$found" "$unpacked/vmlinuz"
    rm -rf "${unpacked:?}/usr/share" "$unpacked/lib/modules" "$unpacked/usr/lib/modules"
}
