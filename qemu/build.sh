#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Configure and build the grafted QEMU tree.

. "$(dirname -- "$0")/../scripts/lib.sh"

usage() {
    cat <<EOF
usage: qemu/build.sh [--qemu DIR] [--flavour NAME] [--target T]... [-- ARGS]

Builds the tree that qemu/graft.sh made. Each flavour has a build folder of
its own; "asan" has the address and undefined behaviour sanitizers, "ust" has
QEMU's own trace events in LTTng, "arm64" emulates arm64; for any other name give
configure's extra arguments after --.
Without --target: the emulator and its modules. --target qtests: the tests
that ./run check runs.
EOF
}

flavour=plain
targets=
while [ $# -gt 0 ]; do
    if common_option "$@"; then shift "$shift_by"; continue; fi
    case $1 in
    --flavour) flavour=${2:?}; shift 2 ;;
    --target) targets="$targets ${2:?}"; shift 2 ;;
    -h|--help) usage; exit 0 ;;
    --) shift; break ;;
    *) die "qemu/build.sh: unknown argument $1" ;;
    esac
done
ht_paths "$qemu_arg" "$flavour"
ht_tree_init
emulator=qemu-system-x86_64
case $flavour in
arm64)
    set -- --target-list=aarch64-softmmu "$@"
    emulator=qemu-system-aarch64
    ;;
asan) set -- --enable-asan --enable-ubsan "$@" ;;
ust) set -- --enable-trace-backends=log,ust "$@" ;;
esac

# Write a script that runs the compiler, with ccache if it is installed. ccache sees
# paths below a tree as relative ones, so that all trees can share its cache.
write_compiler() {
    mkdir -p "$HT_TREE/bin"
    if have ccache; then
        compiler="#!/bin/sh
export CCACHE_DIR='$HT_CACHE/ccache' CCACHE_BASEDIR='$HT_TREE'
export CCACHE_NOHASHDIR=1 CCACHE_MAXSIZE=4G CCACHE_SLOPPINESS=time_macros
exec ccache ${CC:-gcc} \"\$@\""
    else
        compiler="#!/bin/sh
exec ${CC:-gcc} \"\$@\""
    fi
    stamped "$HT_TREE/bin/cc" "$compiler" && return 0
    write_file "$HT_TREE/bin/cc" "$compiler"
    chmod +x "$HT_TREE/bin/cc"
}

configure() {
    download=--disable-download
    # Let QEMU's configure fetch subprojects that a user's git tree lacks.
    [ -z "$HT_USER_QEMU" ] || download=--enable-download
    set -- --python="$HT_PYTHON" --cc="$HT_TREE/bin/cc" \
        --host-cc="$HT_TREE/bin/cc" \
        --target-list=x86_64-softmmu --without-default-features \
        --enable-kvm --enable-tcg --enable-modules --enable-plugins \
        --enable-trace-backends=log --enable-fdt=system \
        --disable-docs --disable-install-blobs $download \
        "$@"
    key="$*"
    if [ -f build.ninja ] && stamped .hypertrace-configure "$key"; then
        return 0
    fi
    rm -f .hypertrace-configure
    logged "configure-$flavour" "configuring QEMU ($flavour)" \
        "$HT_QEMU_SRC/configure" "$@"
    # Write PYTHONPATH to a .pth file of QEMU's Python, so that ninja can run
    # meson again without the variable.
    if [ -n "${PYTHONPATH-}" ]; then
        for site in pyvenv/lib/python3*/site-packages; do
            echo "$PYTHONPATH" >"$site/hypertrace-meson.pth"
        done
    fi
    stamp .hypertrace-configure "$key"
}

# A QEMU run from its build folder looks for firmware below qemu-bundle.
link_firmware() {
    [ -d "$HT_FIRMWARE" ] || return 0
    mkdir -p qemu-bundle/usr/local/share
    ln -sfn "$HT_FIRMWARE" qemu-bundle/usr/local/share/qemu-firmware
}

for part in host-lib/meson.build hw/hypertrace/meson.build hw/hypertrace/Kconfig \
    hw/hypertrace/trace-events backends/hypertrace/meson.build \
    include/hypertrace/abi.h; do
    [ -f "$HT_TOP/$part" ] || die "$part is missing from this checkout"
done

write_compiler
case $HT_MESON in
/*)
    PYTHONPATH=$(dirname "$HT_MESON")/usr/lib/python3/dist-packages
    export PYTHONPATH
    ;;
*)
    unset PYTHONPATH
    ;;
esac
mkdir -p "$HT_QEMU_BUILD"
cd "$HT_QEMU_BUILD"
[ -f "$emulator" ] || need_space 2500 "$HT_TREE"
configure "$@"
link_firmware

[ -n "$targets" ] || targets="$emulator modules"
case " $targets " in
*" qtests "*)
    others=$(cd "$HT_TOP" && find tests/qtest -name 'hypertrace*-test.c' |
             sed 's,\.c$,,')
    targets="qemu-system-x86_64 modules ${targets%%qtests*}${targets#*qtests} $others
        tests/qtest/device-introspect-test tests/qtest/qom-test
        tests/qtest/qmp-cmd-test"
    ;;
esac
# shellcheck disable=SC2086
logged "ninja-$flavour" "building QEMU ($flavour)" ninja $targets
# HT_WERROR, which ./run check sets, makes warnings in our sources errors.  A
# user's compiler may have more warnings.
if [ -n "${HT_WERROR-}" ] &&
    grep -a 'hypertrace[^ ]*:[0-9]*:[0-9]*: warning:' "$log" >&2; then
    find . -name '*hypertrace*.o' -exec rm {} +
    die "warnings in our own sources (log: $log)"
fi
