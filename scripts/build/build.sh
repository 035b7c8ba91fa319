#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Install the prerequisites; build QEMU, the project's own programs, the guest's image and
# its modules, or only the parts that --only names.

. "$(dirname -- "$0")/../lib.sh"

usage() {
    cat <<EOF
usage: ./run build [--qemu DIR] [--flavour NAME] [--only PART]...

Builds everything that demo, check and guest need:
  qemu    QEMU with the device, from Debian's source or --qemu DIR
  own     the guest library, tools and unit tests (meson)
  guest   the guest's kernel, initrd and hypertrace.ko
  qtest   QEMU's test programs for the device
--only builds only that part. --flavour asan builds a QEMU with sanitizers;
--flavour ust builds a QEMU whose own trace events LTTng can record.
EOF
}

parts=
flavour=plain
while [ $# -gt 0 ]; do
    if common_option "$@"; then shift "$shift_by"; continue; fi
    case $1 in
    --only) parts="$parts ${2:?--only needs a part}"; shift 2 ;;
    --flavour) flavour=${2:?--flavour needs a name}; shift 2 ;;
    -h|--help) usage; exit 0 ;;
    *) die "./run build: unknown argument '$1'; see --help" ;;
    esac
done
for part in $parts; do
    case $part in
    qemu|own|guest|qtest) ;;
    *) die "./run build: unknown part '$part'" ;;
    esac
done
[ -n "$parts" ] || parts="qemu own guest"
ht_paths "$qemu_arg" "$flavour"
ht_tree_init
tree_lock

wanted() {
    case " $parts " in *" $1 "*) ;; *) return 1 ;; esac
}

# The guest has no libc: collect the programs ht-* that are statically linked in the folder
# guest-bin of the build.
guest_programs() {
    rm -rf "$HT_BUILD/guest-bin"
    mkdir -p "$HT_BUILD/guest-bin"
    find "$HT_BUILD" -type f -name 'ht-*' -perm -u+x | while IFS= read -r file; do
        readelf -lW "$file" 2>/dev/null | grep -q 'Program Headers' || continue
        readelf -lW "$file" | grep -q INTERP || ln -f "$file" "$HT_BUILD/guest-bin/"
    done
}

# Services that apt starts must not inherit the lock of the build tree.
"$HT_TOP/scripts/build/prerequisites.sh" --qemu="$qemu_arg" 9>&-
have "${CC:-gcc}" || die "no C compiler '${CC:-gcc}': install gcc, or set CC"
set -- --qemu="$qemu_arg"
wanted qemu || wanted qtest || set -- "$@" --meson-only
"$HT_TOP/qemu/fetch.sh" "$@"
ht_paths "$qemu_arg" "$flavour"

if wanted qemu || wanted qtest; then
    "$HT_TOP/qemu/graft.sh" --qemu="$qemu_arg"
    set -- --qemu="$qemu_arg" --flavour "$flavour"
    ! wanted qtest || set -- "$@" --target qtests
    "$HT_TOP/qemu/build.sh" "$@"
fi

if wanted own; then
    [ -f "$HT_BUILD/build.ninja" ] || {
        rm -rf "$HT_BUILD"
        logged meson "configuring the library and the tools" \
            env CC="${CC:-gcc}" "$HT_MESON" setup "$HT_BUILD" "$HT_TOP"
    }
    logged own "building the library and the tools" ninja -C "$HT_BUILD"
    guest_programs
fi

if wanted guest; then
    "$HT_TOP/scripts/build/guest-image.sh" --qemu="$qemu_arg"
    "$HT_TOP/scripts/build/guest-module.sh" --qemu="$qemu_arg"
fi
