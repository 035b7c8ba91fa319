#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Test the Linux modules in kernels that ./run check does not use. Two kernels with
# checkers and one with PREEMPT_RT are built from Debian's linux-source. Kernel 6.1, the
# oldest that is supported, and Debian's newest are Debian's own, each normal and PREEMPT_RT.

. "$(dirname -- "$0")/../lib.sh"
. "$HT_TOP/scripts/build/debian.sh"
. "$HT_TOP/scripts/build/kernels.sh"

source_suite=bookworm-backports # the suite of the guest's own kernel
built="lockdep kcsan rt"
debians="6.1 6.1-rt newest newest-rt"

# The tests that run by default. They load the modules, so that a kernel with
# checkers checks the modules.
tests="../kernels/test_checkers.py test_linux.py test_linux_kernel.py
 test_linux_functions.py test_linux_churn.py test_enable.py test_trace.py
 test_hotplug.py"

usage() {
    cat <<EOT
usage: scripts/check/kernel-tests.sh [--build] [NAME]... [-- PYTEST ARGS]

Builds or fetches a kernel for the tests' guest, builds the Linux modules for it,
and runs the end-to-end tests of the modules with it. PYTEST ARGS select other
tests. NAME is one of these, built from Debian's source,
  lockdep  PROVE_LOCKING, DEBUG_ATOMIC_SLEEP, DEBUG_OBJECTS, KASAN, UBSAN
  kcsan    KCSAN
  rt       PREEMPT_RT, DEBUG_ATOMIC_SLEEP
or a kernel of Debian's: $debians.
By default all are tested, one after another. --build runs no test. Kernels are
kept in \$HT_CACHE/kernels: 200 MB for each that is built, 1.8 GB for the source.
EOT
}

names=
only_build=
while [ $# -gt 0 ]; do
    case $1 in
    -h|--help) usage; exit 0 ;;
    --build) only_build=yes; shift ;;
    --) shift; break ;;
    *)
        case " $built $debians " in
        *" $1 "*) names="$names $1"; shift ;;
        *) die "scripts/check/kernel-tests.sh: unknown argument $1" ;;
        esac ;;
    esac
done
"$HT_TOP/scripts/build/prerequisites.sh" --for kernels
ht_paths ""
ht_tree_init
ht_run_env
kernels=$HT_CACHE/kernels/debug
source=$kernels/source
jobs=$(nproc 2>/dev/null || echo 1)

fetch_source() {
    [ ! -f "$HT_CACHE/stamps/debug-source" ] || return 0
    ht_apt=$kernels/apt
    need_space 3000 "$HT_CACHE"
    debs=$source.debs
    rm -rf "$source" "$source.new" "$debs"
    mkdir -p "$source.new"
    debian_lists "$source_suite" "kernels"
    package=$(debian_depends "$source_suite" linux-source '^linux-source-[0-9]')
    [ -n "$package" ] || die "Debian $source_suite has no linux-source"
    debian_debs "$source_suite" "$debs" "$package"
    step "unpacking $package"
    # The package contains an archive of the sources: unpack both in one step.
    dpkg --fsys-tarfile "$debs"/*.deb | tar -xO --wildcards '*.tar.xz' |
        tar -xJ -C "$source.new" --strip-components=1
    [ -f "$source.new/Makefile" ] ||
        die "cannot unpack $package (disk full?)"
    version=$(dpkg-deb -f "$debs"/*.deb Version)
    mv "$source.new" "$source"
    rm -rf "$debs"
    stamp "$HT_CACHE/stamps/debug-source" "$version"
}

# kernel_make NAME TARGET...: run make in the build folder of the kernel NAME
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

# check_config WANTED DIR: print the options of the file WANTED that are not in
# DIR/.config: Kconfig drops an option whose dependencies are not met
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

# make_initrd NAME: make an initrd from the guest's initrd and the modules of the kernel
# NAME that are drivers of virtio
make_initrd() {
    root=$HT_TREE/initrd-$1.root
    rm -rf "$root"
    mkdir -p "$root/lib/modules"
    cp "$HT_CACHE/kernels/$1.image/"*.ko "$root/lib/modules/"
    "$HT_TOP/scripts/build/guest-overlay.sh" "$root.cpio" "$root"
    cat "$HT_INITRD" "$root.cpio" >"$HT_TREE/initrd-$1.cpio"
    rm -rf "$root" "$root.cpio"
}

prepare() {
    case " $debians " in
    *" $1 "*)
        shared_lock "$HT_CACHE/kernels"
        kernel_image "$1"
        cache_unlock
        "$HT_TOP/scripts/build/module-kernels.sh" "$1"
        make_initrd "$1"
        return 0 ;;
    esac
    # Take the lock only if the kernel must be built: another process may hold
    # the lock for a build of another kernel.
    if ! is_built "$1"; then
        shared_lock "$kernels"
        fetch_source
        build_kernel "$1"
        cache_unlock
    fi
    build_module "$1"
}

# use_built NAME: set the tests' environment for the kernel NAME, which this
# script has built
use_built() {
    HT_KHEADERS=$kernels/$1
    HT_KERNEL=$HT_KHEADERS/arch/x86/boot/bzImage
    HT_MODULE=$HT_TREE/module-debug-$1/guest-linux/hypertrace.ko
    # Kernels with checkers need more memory and time.
    HT_GUEST_MEMORY=1024
    HT_PATIENCE=8
    HT_KERNEL_ARGS="$HT_KERNEL_ARGS printk.time=1"
    HT_DEBUG_KERNEL=$1
    export HT_GUEST_MEMORY HT_PATIENCE HT_DEBUG_KERNEL
    not=
    if [ "$1" = kcsan ]; then
        HT_KERNEL_ARGS="$HT_KERNEL_ARGS kcsan.early_enable=1"
        HT_KERNEL_ARGS="$HT_KERNEL_ARGS kcsan.skip_watch=300"
        # Skip the tests that suspend the guest: when the kernel kcsan resumes, it
        # resets, also without hypertrace's modules.
        not='suspend or test_churn[1]'
    fi
}

# use_debians NAME: set the tests' environment for the kernel NAME, one of
# Debian's
use_debians() {
    HT_KHEADERS=$HT_CACHE/kernels/$1/kheaders
    HT_KERNEL=$HT_CACHE/kernels/$1.image/kernel
    HT_MODULE=$HT_TREE/module-$1/guest-linux/hypertrace.ko
    HT_INITRD=$HT_TREE/initrd-$1.cpio
    HT_GUEST_MEMORY=768
    HT_PATIENCE=4
    export HT_GUEST_MEMORY HT_PATIENCE HT_INITRD
    not=test_checkers
    # If the UART's handler is a thread, many interrupts can come before the handler
    # runs. noirqdebug keeps the kernel from disabling the interrupt then.
    HT_KERNEL_ARGS="$HT_KERNEL_ARGS noirqdebug"
}

# run_tests NAME PYTEST-ARGS...: run end-to-end tests with the kernel NAME
run_tests() {
    (
        name=$1
        shift
        eval "$("$HT_TOP/scripts/env.sh")"
        HT_VMLINUX=
        case " $built " in
        *" $name "*) use_built "$name" ;;
        *) use_debians "$name" ;;
        esac
        export HT_KERNEL HT_VMLINUX HT_KERNEL_ARGS HT_KHEADERS HT_MODULE
        cd "$HT_TOP/tests/e2e"
        step "testing with the kernel $name"
        "$HT_PYTHON" -B -m pytest -p no:cacheprovider -q --tb=short \
            ${not:+-k "not ($not)"} "$@"
    )
}

status=0
for name in ${names:-$built $debians}; do
    prepare "$name"
    [ -z "$only_build" ] || continue
    # shellcheck disable=SC2086
    [ $# -gt 0 ] || set -- $tests
    run_tests "$name" "$@" || status=1
done
exit "$status"
