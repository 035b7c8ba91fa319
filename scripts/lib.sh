# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Sourced by the scripts that ./run starts: messages, paths, logged steps, stamps and locks.

set -eu

# Unless HT_TOP is set, the checkout is the nearest folder above the running script
# that has scripts/lib.sh.
if [ -z "${HT_TOP-}" ]; then
    HT_TOP=$(
        CDPATH='' cd -- "$(dirname -- "$0")"
        until [ -f scripts/lib.sh ] || [ "$(pwd -P)" = / ]; do cd ..; done
        pwd -P
    )
fi
export HT_TOP

# Prefer the system's python: the first one in PATH may lack modules that Debian
# has installed.
HT_PYTHON=/usr/bin/python3
[ -x "$HT_PYTHON" ] || HT_PYTHON=python3
# Set a locale with English messages, because the scripts search the output of
# tools for English words.
export LC_ALL=C.UTF-8 HT_PYTHON

die() {
    echo "error: $*" >&2
    exit 1
}

note() {
    echo "   $*" >&2
}

step() {
    echo "==> $*" >&2
}

# ht_python PACKAGE ARGS...: run a Python package of scripts/ in place of this
# shell
ht_python() {
    exec env PYTHONPATH="$HT_TOP/scripts" "$HT_PYTHON" -B -m "$@"
}

have() {
    command -v "$1" >/dev/null 2>&1
}

# common_option ARGS...: parse --qemu DIR, the option that all building commands have. Sets
# qemu_arg, and shift_by to the number of arguments to drop; returns 1 for other arguments.
#   while common_option "$@"; do shift "$shift_by"; done
# shellcheck disable=SC2034
qemu_arg=
# shellcheck disable=SC2034 # both are for the script that sources this
common_option() {
    case ${1-} in
    --qemu)
        [ $# -ge 2 ] || die "--qemu needs a directory"
        qemu_arg=$2
        shift_by=2
        ;;
    --qemu=*)
        qemu_arg=${1#--qemu=}
        shift_by=1
        ;;
    *)
        return 1
        ;;
    esac
}

# ht_paths QEMU [FLAVOUR]: set the variables HT_... with paths, for the QEMU
# tree QEMU ('' for Debian's source) and a flavour of the build. It creates
# nothing.
ht_paths() {
    HT_CACHE=${HYPERTRACE_CACHE:-${XDG_CACHE_HOME:-${HOME:?set HYPERTRACE_CACHE}/.cache}/hypertrace}
    HT_USER_QEMU=${1-}
    HT_FLAVOUR=${2:-plain}
    if [ -n "$HT_USER_QEMU" ]; then
        HT_USER_QEMU=$(CDPATH='' cd -- "$HT_USER_QEMU" 2>/dev/null && pwd -P) ||
            die "--qemu $1: no such directory"
    fi
    HT_TREE=$HT_CACHE/trees/$(printf '%s\n%s\n' "$HT_TOP" "$HT_USER_QEMU" |
                              sha256sum | cut -c1-12)
    HT_QEMU_SRC=$HT_TREE/src
    HT_QEMU_BUILD=$HT_TREE/qemu-$HT_FLAVOUR
    HT_QEMU=$HT_QEMU_BUILD/qemu-system-x86_64
    HT_BUILD=$HT_TREE/build
    HT_MODULE_DIR=$HT_TREE/module/guest-linux
    HT_FIRMWARE=$HT_CACHE/firmware/all
    HT_GUEST=$HT_CACHE/guest
    HT_KERNEL=$HT_GUEST/vmlinuz
    HT_VMLINUX=$HT_GUEST/vmlinux
    HT_KERNEL_OLD=$HT_CACHE/guest-old/vmlinuz
    # no_timer_check skips a test that fails if a busy host lets the timer be late.
    # nohz=off: if ticks stop on an idle processor, its timers may be lost.
    # rcupdate...: if the kernel measures its clock wrongly, RCU takes a slow boot for
    # a stall, and would report it.
    HT_KERNEL_ARGS='console=ttyS0 panic=-1 no_timer_check nohz=off'
    HT_KERNEL_ARGS="$HT_KERNEL_ARGS rcupdate.rcu_cpu_stall_suppress_at_boot=1"
    HT_KERNEL_ARGS="$HT_KERNEL_ARGS rcupdate.rcu_cpu_stall_timeout=300"
    # If a busy host does not run a vCPU for a while, the kernel reports the vCPU as stuck:
    # raise the threshold from 10 s to 60 s (soft lockups: twice as much).
    HT_KERNEL_ARGS="$HT_KERNEL_ARGS watchdog_thresh=60"
    # Switch off features that take processor time in a boot and that the tests do not need.
    HT_KERNEL_ARGS="$HT_KERNEL_ARGS cryptomgr.notests mitigations=off"
    HT_KERNEL_ARGS="$HT_KERNEL_ARGS ipv6.disable=1"
    HT_KERNEL_ARGS="$HT_KERNEL_ARGS lsm=capability initcall_blacklist=jent_mod_init"
    HT_KERNEL_ARGS="$HT_KERNEL_ARGS,crypto_kdf108_init,init_encrypted"
    HT_KERNEL_ARGS="$HT_KERNEL_ARGS,bpf_tcp_ca_kfunc_init,bpf_dummy_struct_ops_init"
    HT_KERNEL_ARGS="$HT_KERNEL_ARGS,crypto_algapi_init,load_system_certificate_list"
    HT_KHEADERS=$HT_GUEST/kheaders
    HT_LTTNG_MODULES=$HT_CACHE/lttng-modules
    HT_INITRD=$HT_TREE/initrd.cpio
    HT_SCRATCH=$HT_TREE/scratch
    HT_MESON=$HT_CACHE/meson/meson.py
    [ -f "$HT_MESON" ] || HT_MESON=meson
    export HT_CACHE HT_USER_QEMU HT_FLAVOUR HT_TREE HT_QEMU_SRC HT_QEMU_BUILD \
        HT_QEMU HT_BUILD HT_MODULE_DIR HT_FIRMWARE HT_GUEST HT_KERNEL \
        HT_VMLINUX HT_KERNEL_OLD HT_KERNEL_ARGS HT_KHEADERS HT_LTTNG_MODULES HT_INITRD \
        HT_SCRATCH HT_MESON
}

# Create the folder of this build tree, and remove the build trees of checkouts that no
# longer exist.
ht_tree_init() {
    mkdir -p "$HT_TREE/log" "$HT_SCRATCH" 2>/dev/null ||
        die "cannot write to $HT_CACHE; set HYPERTRACE_CACHE to another place"
    [ -f "$HT_TREE/checkout" ] ||
        write_file "$HT_TREE/checkout" "$HT_TOP" ||
        die "cannot write to $HT_TREE (disk full?)"
    for owner in "$HT_CACHE"/trees/*/checkout; do
        [ -f "$owner" ] || continue
        [ -d "$(cat "$owner")" ] && continue
        dead=$(dirname "$owner")
        note "removing the build tree of $(cat "$owner"), which is gone"
        rm -rf "$dead"
    done
}

# write_file PATH TEXT: write TEXT to a file; if that fails, the file keeps its
# old content
write_file() {
    printf '%s\n' "$2" >"$1.new" && mv -f "$1.new" "$1"
}

# stamped FILE TEXT: succeeds if "stamp FILE TEXT" has recorded that a step is
# complete
stamped() {
    [ -f "$1" ] && [ "$(cat "$1")" = "$2" ]
}

stamp() {
    mkdir -p "$(dirname "$1")"
    write_file "$1" "$2" || die "cannot write $1 (disk full?)"
}

# lock_wait FD NAME: wait for the lock on a descriptor: 9 is the lock of one build tree, 8
# that of the cache or of a folder in it. A process that may outlive the script must not
# inherit a lock: start it with 8>&- 9>&-.
lock_wait() {
    if ! flock -n "$1"; then
        note "waiting for another run that uses $2"
        flock "$1"
    fi
}

tree_lock() {
    mkdir -p "$HT_TREE"
    exec 9>"$HT_TREE/lock"
    lock_wait 9 "$HT_TREE"
}

tree_unlock() {
    exec 9>&-
}

# shared_lock DIR: lock a folder of the cache, on descriptor 8, before a change of files
# there that several build trees share
shared_lock() {
    mkdir -p "$1" 2>/dev/null ||
        die "cannot create $1; set HYPERTRACE_CACHE to another place"
    exec 8>"$1/lock"
    lock_wait 8 "$1"
}

cache_lock() {
    shared_lock "$HT_CACHE"
}

cache_unlock() {
    exec 8>&-
}

# need_space MB DIR: fail if less than MB megabytes are free on DIR's file system
need_space() {
    free_mb=$(df -Pm "$2" | awk 'NR == 2 { print $4 }')
    [ "$free_mb" -ge "$1" ] ||
        die "$2 has $free_mb MB free, $1 MB are needed;" \
            "make room or set HYPERTRACE_CACHE to a place on another disk"
}

# watch_log FILE: show the last line of a growing log whenever it has changed,
# but at most once a second; without a terminal, only every thirtieth change
watch_log() {
    last=
    waited=0
    while kill -0 $$ 2>/dev/null && sleep 1; do
        now=$(tail -n 1 "$1" 2>/dev/null | tr '\r' '\n' | tail -n 1 |
              cut -c1-76) || continue
        [ "$now" = "$last" ] && continue
        if [ -t 2 ]; then
            printf '\r\033[K   %s' "$now" >&2
        else
            waited=$((waited + 1))
            [ $((waited % 30)) -eq 0 ] || continue
            printf '   %s\n' "$now" >&2
        fi
        last=$now
    done
}

# logged NAME WHAT COMMAND...: run a long step, with its output in NAME.log. If the step
# fails, end the script with a message that has the text WHAT and, unless the disk is
# full, the text $ht_hint.
ht_hint=
logged() {
    log=$HT_TREE/log/$1.log
    what=$2
    shift 2
    mkdir -p "$HT_TREE/log"
    step "$what"
    : >"$log" || die "cannot write $log (disk full?)"
    watch_log "$log" 8>&- 9>&- &
    watcher=$!
    status=0
    "$@" >"$log" 2>&1 </dev/null || status=$?
    kill "$watcher" 2>/dev/null || :
    wait "$watcher" 2>/dev/null || :
    [ -t 2 ] && printf '\r\033[K' >&2
    [ "$status" -eq 0 ] && return 0
    tail -n 15 "$log" | cut -c1-160 | sed 's/^/   | /' >&2
    if grep -q 'No space left on device' "$log"; then
        die "$what: the disk is full; make room and run it again"
    fi
    die "$what: failed${ht_hint:+; $ht_hint} (log: $log)"
}

# module_farm DIR: make links in DIR to the sources of the modules, because
# kbuild writes into the folder of the sources
module_farm() {
    mkdir -p "$1"
    for part in guest-linux guest-lib include; do
        [ ! -d "$HT_TOP/$part" ] || cp -rsf "$HT_TOP/$part" "$1/" ||
            die "cannot link the module's sources into $1"
    done
    find "$1" -xtype l -delete
}

# Set the environment of a QEMU with sanitizers. qemu/lsan.supp names functions of QEMU
# that leak memory which they allocate through GLib. GLib has no frame pointers, so
# only the slow unwinder finds these functions on the stack.
ht_sanitizer_env() {
    ASAN_OPTIONS=${ASAN_OPTIONS:-fast_unwind_on_malloc=0}
    LSAN_OPTIONS=suppressions=$HT_TOP/qemu/lsan.supp:print_suppressions=0
    export ASAN_OPTIONS LSAN_OPTIONS
}

# Set the environment of programs that use a finished build; see scripts/env.sh.
ht_run_env() {
    HT_QEMU_L="-L $HT_FIRMWARE"
    QEMU_MODULE_DIR=$HT_QEMU_BUILD
    HT_MODULE=$HT_MODULE_DIR/hypertrace.ko
    [ -f "$HT_MODULE" ] || HT_MODULE=
    HT_GUEST_BIN=$HT_BUILD/guest-bin
    export HT_QEMU_L QEMU_MODULE_DIR HT_MODULE HT_GUEST_BIN
}

# chooses_accel QEMU-ARGS...: return true if the arguments choose an accelerator
chooses_accel() {
    case " $* " in
    *" -accel "*|*" -enable-kvm "*|*accel=*) ;;
    *) return 1 ;;
    esac
}
