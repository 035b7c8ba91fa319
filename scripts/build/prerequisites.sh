#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Install what the build needs and this system lacks. On a system without apt, install
# nothing, and fail if a program or library that QEMU's build needs is missing.

. "$(dirname -- "$0")/../lib.sh"

purpose=
while [ $# -gt 0 ]; do
    if common_option "$@"; then shift "$shift_by"; continue; fi
    case $1 in
    --for) purpose=${2:?--for needs arm64, bench, e2e, fuzz, guests, kernels, modules, package or stock}; shift 2 ;;
    -h|--help)
        echo "usage: scripts/build/prerequisites.sh [--qemu DIR] [--for arm64|bench|e2e|fuzz|guests|kernels|modules|package|stock]"
        echo "Installs missing packages with apt; elsewhere says what to install."
        echo "  --for   also what one kind of tests uses"
        exit 0
        ;;
    *) die "scripts/build/prerequisites.sh: unknown argument $1" ;;
    esac
done
ht_paths "$qemu_arg"
ht_tree_init

needed="gcc libc6-dev make ninja-build pkg-config python3 python3-venv perl
 patch xz-utils zstd cpio libglib2.0-dev libfdt-dev zlib1g-dev dpkg-dev
 debian-archive-keyring util-linux ccache libjson-glib-dev libxml2-dev"
# Optional packages: without one of them, some part is not built or not tested.
wanted="libtraceevent-dev liblttng-ust-dev liblttng-ctl-dev lttng-tools babeltrace2
 libbabeltrace2-dev python3-pytest python3-pytest-xdist python3-pytest-timeout
 python3-bt2 shellcheck gnuplot-nox spin trace-cmd protobuf-compiler
 liblzma-dev libbz2-dev libzstd-dev liblz4-dev liblzo2-dev libbpf-dev"
case $purpose in
'') ;;
bench) wanted="$wanted rt-tests sysbench systemtap-sdt-dev kmod" ;;
e2e) wanted="$wanted chromium qemu-system-x86 busybox-static babeltrace rt-tests
 libkshark-dev libjson-c-dev" ;;
stock) wanted="$wanted qemu-system-x86 busybox-static" ;;
guests) wanted="$wanted qemu-system-x86 qemu-system-arm ovmf busybox-static
 mmdebstrap e2fsprogs fdisk python3-pefile libvirt-daemon libvirt-clients
 libvirt-daemon-driver-qemu kmod" ;;
kernels) needed="$needed bc bison flex libelf-dev" ;;
modules) wanted="$wanted bc gcc-aarch64-linux-gnu dkms" ;;
arm64) needed="$needed bc gcc-aarch64-linux-gnu libc6-dev-arm64-cross" ;;
package)
    # debian/control lists the packages that the build needs.
    needed="$needed $(cd "$HT_TOP" && dpkg-checkbuilddeps 2>&1 |
        sed -n 's/.*Unmet build dependencies: //p' | sed 's/([^)]*)//g')"
    wanted="lintian mmdebstrap autopkgtest rpm rpmlint"
    ;;
fuzz) wanted="$wanted clang llvm libclang-rt-dev" ;;
*) die "scripts/build/prerequisites.sh: --for arm64, bench, e2e, fuzz, guests, kernels, modules, package or stock, not '$purpose'" ;;
esac

missing_packages() {
    for package; do
        dpkg-query -W -f '${Status}\n' "$package" 2>/dev/null |
            grep -q '^install ok installed' || printf ' %s' "$package"
    done
}

install_packages() {
    # Update apt's lists, unless this run of the script has done so before
    # ($updated). If the update fails, use the old lists.
    [ -n "$updated" ] || $as_root apt-get -q update || :
    # Wait up to 600 s for apt's lock: a machine that has just started may
    # update itself.
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y \
        -o DPkg::Lock::Timeout=600 \
        --no-install-recommends install "$@"
}

other_systems() {
    lacking=
    for tool in gcc make ninja pkg-config perl patch cpio flock; do
        have "$tool" || lacking="$lacking $tool"
    done
    "$HT_PYTHON" -c 'import venv, ensurepip' 2>/dev/null ||
        lacking="$lacking python3(venv)"
    "$HT_PYTHON" -c 'import mesonbuild.coredata as c
v = [int(x) for x in c.version.split(".")[:2]]
raise SystemExit(v < [1, 5])' 2>/dev/null || lacking="$lacking meson>=1.5"
    if have pkg-config; then
        for lib in glib-2.0 zlib; do
            pkg-config --exists "$lib" || lacking="$lacking $lib(development)"
        done
    fi
    echo '#include <libfdt.h>' | ${CC:-cc} -E - >/dev/null 2>&1 ||
        lacking="$lacking libfdt(development)"
    [ -z "$lacking" ] ||
        die "this system lacks:$lacking; install them and run it again"
}

if ! have apt-get || ! have dpkg-query; then
    other_systems
    exit 0
fi

# shellcheck disable=SC2086
missing=$(missing_packages $needed)
# shellcheck disable=SC2086
optional=$(missing_packages $wanted)
tried=$HT_CACHE/optional-packages${purpose:+-$purpose}
[ -z "$missing$optional" ] && exit 0
# If only optional packages are missing, and an earlier run already tried to
# install the same ones, end here.
[ -z "$missing" ] && stamped "$tried" "$optional" && exit 0

as_root=
if [ "$(id -u)" -ne 0 ]; then
    if have sudo; then
        as_root=sudo
    elif [ -n "$missing" ]; then
        die "packages are missing and this user cannot install them;" \
            "as root run: apt-get install$missing$optional"
    else
        note "continuing without optional packages:$optional"
        stamp "$tried" "$optional"
        exit 0
    fi
    # Let sudo ask for the password now: later its output goes to a log.
    sudo -n true 2>/dev/null || { [ -t 0 ] && sudo -v; } ||
        die "sudo does not work here; as root run:" \
            "apt-get install$missing$optional"
fi

updated=
# shellcheck disable=SC2086
if [ -n "$missing" ]; then
    logged apt "installing$missing" install_packages $missing
    updated=yes
fi
# shellcheck disable=SC2086
if [ -n "$optional" ] &&
    ! (logged apt-optional "installing$optional" install_packages $optional); then
    updated=yes
    for package in $optional; do
        (logged apt-optional "installing $package" install_packages "$package") ||
            note "$package could not be installed: going on without it"
    done
fi
# shellcheck disable=SC2086
stamp "$tried" "$(missing_packages $wanted)"
