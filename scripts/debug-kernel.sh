#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Kernels that watch what the Linux modules do, and the tests of the modules in
# them. Debian has no such kernels: they are built from its linux-source.

. "$(dirname -- "$0")/lib.sh"
. "$HT_TOP/scripts/debian.sh"

suite=bookworm-backports        # as of the guest's own kernel
all="lockdep kcsan rt"

# What a guest runs that nobody but the kernel can see the inside of
tests="../kernels/test_checkers.py test_linux.py test_linux_kernel.py
 test_linux_ftrace.py test_linux_functions.py test_enable.py test_trace.py
 test_hotplug.py"

usage() {
    cat <<EOT
usage: scripts/debug-kernel.sh [--build] [NAME]... [-- PYTEST ARGS]

Builds a kernel of Debian's source for the tests' guest, the Linux modules for
it, and runs the end-to-end tests of the modules with it; or, with arguments for
pytest, those that they name. NAME is one of
  lockdep  PROVE_LOCKING, DEBUG_ATOMIC_SLEEP, DEBUG_OBJECTS, KASAN, UBSAN
  kcsan    KCSAN
  rt       PREEMPT_RT, DEBUG_ATOMIC_SLEEP
by default each in turn. --build runs no test. Kernels are kept in
\$HT_CACHE/kernels/debug, some 200 MB each, and their source, 1.8 GB.
EOT
}

names=
only_build=
while [ $# -gt 0 ]; do
    case $1 in
    -h|--help) usage; exit 0 ;;
    --build) only_build=yes; shift ;;
    --) shift; break ;;
    lockdep|kcsan|rt) names="$names $1"; shift ;;
    *) die "scripts/debug-kernel.sh: unknown argument $1" ;;
    esac
done
"$HT_TOP/scripts/prerequisites.sh" --for kernels
ht_paths ""
ht_tree_init
ht_run_env
kernels=$HT_CACHE/kernels/debug
ht_apt=$kernels/apt
source=$kernels/source
jobs=$(nproc 2>/dev/null || echo 1)

fetch_source() {
    [ ! -f "$HT_CACHE/stamps/debug-source" ] || return 0
    need_space 3000 "$HT_CACHE"
    debs=$source.debs
    rm -rf "$source" "$source.new" "$debs"
    mkdir -p "$source.new"
    debian_lists "$suite" "kernels"
    package=$(debian_depends "$suite" linux-source '^linux-source-[0-9]')
    [ -n "$package" ] || die "Debian $suite has no linux-source"
    debian_debs "$suite" "$debs" "$package"
    step "unpacking $package"
    # One is in the other; neither is needed on its own.
    dpkg --fsys-tarfile "$debs"/*.deb | tar -xO --wildcards '*.tar.xz' |
        tar -xJ -C "$source.new" --strip-components=1
    [ -f "$source.new/Makefile" ] ||
        die "cannot unpack $package (disk full?)"
    version=$(dpkg-deb -f "$debs"/*.deb Version)
    mv "$source.new" "$source"
    rm -rf "$debs"
    stamp "$HT_CACHE/stamps/debug-source" "$version"
}

# kernel_make NAME TARGET...
# shellcheck disable=SC2317 # logged calls it
kernel_make() {
    objects=$kernels/$1
    shift
    cc=${CC:-gcc}
    ! have ccache || cc="ccache $cc"
    CCACHE_DIR=$HT_CACHE/ccache CCACHE_MAXSIZE=4G \
        make -j "$jobs" -C "$source" O="$objects" CC="$cc" HOSTCC="${CC:-gcc}" \
        "$@"
}

# Options that depend on others are silently dropped.
check_config() {
    grep -h '^CONFIG' "$1" | while IFS= read -r option; do
        grep -qxF "$option" "$2/.config" || printf ' %s' "$option"
    done
}

is_built() {
    [ -f "$HT_CACHE/stamps/debug-source" ] || return 1
    wanted=$(cat "$HT_CACHE/stamps/debug-source" \
        "$HT_TOP/tests/kernels/base.config" "$HT_TOP/tests/kernels/$1.config")
    stamped "$HT_CACHE/stamps/debug-$1" "$wanted"
}

build_kernel() {
    ! is_built "$1" || return 0
    objects=$kernels/$1
    need_space 1500 "$HT_CACHE"
    rm -rf "$objects"
    mkdir -p "$objects"
    printf '%s\n' "$wanted" | grep ^CONFIG >"$objects/wanted.config"
    logged "kernel-$1-config" "configuring the kernel $1" \
        kernel_make "$1" KCONFIG_ALLCONFIG="$objects/wanted.config" allnoconfig
    dropped=$(check_config "$objects/wanted.config" "$objects")
    [ -z "$dropped" ] || die "the kernel $1 does not take$dropped"
    logged "kernel-$1" "building the kernel $1" \
        kernel_make "$1" bzImage modules
    stamp "$HT_CACHE/stamps/debug-$1" "$wanted"
}

build_module() {
    farm=$HT_TREE/module-debug-$1
    module_farm "$farm"
    logged "module-debug-$1" "building hypertrace.ko for the kernel $1" \
        kernel_make "$1" M="$farm/guest-linux" KCFLAGS=-Werror modules
}

# run_tests NAME PYTEST-ARGS...
run_tests() {
    (
        name=$1
        shift
        eval "$("$HT_TOP/scripts/env.sh")"
        HT_KHEADERS=$kernels/$name
        HT_KERNEL=$HT_KHEADERS/arch/x86/boot/bzImage
        HT_VMLINUX=
        HT_MODULE=$HT_TREE/module-debug-$name/guest-linux/hypertrace.ko
        # Such kernels are big, and slow.
        HT_GUEST_MEMORY=1024
        HT_PATIENCE=8
        HT_KERNEL_ARGS="$HT_KERNEL_ARGS printk.time=1"
        # They may delete kprobes sooner than slow kernels learn their types.
        not="accounted or same_as_ftrace or alike"
        if [ "$name" = kcsan ]; then
            HT_KERNEL_ARGS="$HT_KERNEL_ARGS kcsan.early_enable=1"
            HT_KERNEL_ARGS="$HT_KERNEL_ARGS kcsan.skip_watch=300"
            # It is reset while it wakes up, with and without the modules.
            not="$not or suspend"
        fi
        HT_DEBUG_KERNEL=$name
        export HT_KERNEL HT_VMLINUX HT_KERNEL_ARGS HT_KHEADERS HT_MODULE \
            HT_GUEST_MEMORY HT_PATIENCE HT_DEBUG_KERNEL
        cd "$HT_TOP/tests/e2e"
        step "testing with the kernel $name"
        "$HT_PYTHON" -B -m pytest -p no:cacheprovider -q --tb=short \
            -k "not ($not)" "$@"
    )
}

status=0
for name in ${names:-$all}; do
    # Who finds a kernel does not wait for who builds another one.
    if ! is_built "$name"; then
        shared_lock "$kernels"
        fetch_source
        build_kernel "$name"
        cache_unlock
    fi
    build_module "$name"
    [ -z "$only_build" ] || continue
    # shellcheck disable=SC2086
    [ $# -gt 0 ] || set -- $tests
    run_tests "$name" "$@" || status=1
done
exit "$status"
