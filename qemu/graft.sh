#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Make this checkout's own copy of a QEMU tree, apply the patch series, and
# link the checkout's files into it. After an edit of a linked file, ninja alone updates the build.

. "$(dirname -- "$0")/../scripts/lib.sh"

usage() {
    echo "usage: qemu/graft.sh [--qemu DIR]"
    echo "Prepares the QEMU source tree that qemu/build.sh builds."
}

while [ $# -gt 0 ]; do
    if common_option "$@"; then shift "$shift_by"; continue; fi
    case $1 in
    -h|--help) usage; exit 0 ;;
    *) die "qemu/graft.sh: unknown argument $1" ;;
    esac
done
ht_paths "$qemu_arg"
ht_tree_init

check_tree() {
    for part in VERSION configure hw/virtio/virtio.c qapi/qom.json; do
        [ -f "$1/$part" ] ||
            die "$1 is not a QEMU source tree: it has no $part"
    done
    version=$(head -n 1 "$1/VERSION")
    case ${version%%.*} in
    ''|*[!0-9]*) die "$1/VERSION holds no version: $version" ;;
    esac
    [ "${version%%.*}" -ge 10 ] ||
        die "$1 is QEMU $version; hypertrace needs 10.0 or newer"
}

# List the files of a user's tree. In a git tree, leave out the files in folders of roms/,
# and files that git ignores, except subprojects. In another tree, leave out .git, and
# what is named build* at the top.
user_files() {
    cd "$1"
    if [ -e .git ] && have git; then
        {
            git ls-files -z --recurse-submodules
            git ls-files -z --others --exclude-standard
        } | tr '\0' '\n' | grep -v '^roms/.*/'
        # Also list the subprojects that QEMU's configure has fetched: git
        # ignores them.
        find subprojects -mindepth 2 ! -type d -print
    else
        find . \( -name .git -o -path './build*' \) -prune -o ! -type d -print
    fi | sort -u | while IFS= read -r file; do
        [ ! -e "$file" ] && [ ! -L "$file" ] || printf '%s\n' "$file"
    done
}

copy_tree() {
    rm -rf "$HT_QEMU_SRC.new"
    if [ -z "$HT_USER_QEMU" ]; then
        # Copy by hard links, which need little time and space. They are safe: this
        # script replaces files, and never writes to a file in place.
        cp -al "$base" "$HT_QEMU_SRC.new" ||
            cp -a "$base" "$HT_QEMU_SRC.new" ||
            die "cannot copy $base (disk full?)"
        return
    fi
    step "copying $base"
    mkdir -p "$HT_QEMU_SRC.new"
    (cd "$base" && cpio -pdm --quiet "$HT_QEMU_SRC.new") \
        <"$HT_TREE/files" || die "cannot copy $base (disk full?)"
}

# Break hard links to the pristine files before changing them.
own_files() {
    sed -n 's,^+++ b/,,p' "$1" | while IFS= read -r file; do
        cp -p "$HT_QEMU_SRC.new/$file" "$HT_QEMU_SRC.new/$file.own" &&
            mv -f "$HT_QEMU_SRC.new/$file.own" "$HT_QEMU_SRC.new/$file"
    done
}

apply_patch() {
    patch=$1
    shift
    patch -d "$HT_QEMU_SRC.new" -p1 -s -F2 --forward --no-backup-if-mismatch \
        "$@" <"$patch" >"$HT_TREE/log/patch.log" 2>&1
}

apply_patches() {
    for patch in "$HT_TOP"/qemu/patches/*.patch; do
        own_files "$patch" ||
            die "$base lacks a file that $(basename "$patch") changes"
        apply_patch "$patch" || {
            tail -n 5 "$HT_TREE/log/patch.log" >&2
            die "$(basename "$patch") does not apply to QEMU $version"
        }
    done
    # Apply the fixes of QEMU's own bugs. Skip a fix that does not apply, on the
    # assumption that this QEMU has it already.
    for patch in "$HT_TOP"/qemu/fixes/*.patch; do
        if apply_patch "$patch" --dry-run; then
            own_files "$patch" && apply_patch "$patch" ||
                die "$(basename "$patch") does not apply to QEMU $version"
        fi
    done
    # If a patched file has the same content as before, give it its old time, so
    # that ninja does not compile it again.
    [ -d "$HT_QEMU_SRC" ] || return 0
    sed -n 's,^+++ b/,,p' "$HT_TOP"/qemu/patches/*.patch \
        "$HT_TOP"/qemu/fixes/*.patch |
    while IFS= read -r file; do
        if cmp -s "$HT_QEMU_SRC/$file" "$HT_QEMU_SRC.new/$file"; then
            touch -r "$HT_QEMU_SRC/$file" "$HT_QEMU_SRC.new/$file"
        fi
    done
}

# List the files and folders of the checkout that QEMU's tree gets as links. A path is
# the same in both trees.
grafted() {
    cd "$HT_TOP"
    for path in hw/hypertrace backends/hypertrace include/hypertrace host-lib \
        qapi/hypertrace*.json \
        tests/qtest/hypertrace tests/qtest/hypertrace-*.[ch] \
        tests/qtest/libqos/hypertrace*.[ch] \
        docs/specs/hypertrace*.rst; do
        [ ! -e "$path" ] || printf '%s\n' "$path"
    done
}

link_files() {
    grafted | sort >"$HT_TREE/grafted.new"
    if [ -f "$HT_TREE/grafted" ]; then
        comm -23 "$HT_TREE/grafted" "$HT_TREE/grafted.new" |
        while IFS= read -r path; do
            rm -f "$HT_QEMU_SRC/$path"
        done
    fi
    while IFS= read -r path; do
        [ "$(readlink "$HT_QEMU_SRC/$path")" = "$HT_TOP/$path" ] ||
            { mkdir -p "$HT_QEMU_SRC/$(dirname "$path")" &&
              ln -sfn "$HT_TOP/$path" "$HT_QEMU_SRC/$path"; } ||
            die "cannot link $path into $HT_QEMU_SRC"
    done <"$HT_TREE/grafted.new"
    # tests/qtest/hypertrace/meson.build looks for the programs by name, so
    # meson must run again when a program is added or removed.
    if ! cmp -s "$HT_TREE/grafted" "$HT_TREE/grafted.new"; then
        touch "$HT_QEMU_SRC/tests/qtest/meson.build"
    fi
    mv -f "$HT_TREE/grafted.new" "$HT_TREE/grafted"
}

if [ -n "$HT_USER_QEMU" ]; then
    base=$HT_USER_QEMU
    check_tree "$base"
    user_files "$base" >"$HT_TREE/files"
    # If the key differs from that of the last copy, the tree is copied again. The key
    # of a user's tree depends on the files' names, sizes and times, not on their
    # contents.
    key=$(cd "$base" && tr '\n' '\0' <"$HT_TREE/files" |
          xargs -0 stat -c '%n %s %Y' | sha256sum)
else
    base=$HT_CACHE/qemu-source
    check_tree "$base"
    key=$(head -n 1 "$base/debian/changelog")
fi
key="$key $(cat "$HT_TOP"/qemu/patches/*.patch \
            "$HT_TOP"/qemu/fixes/*.patch | sha256sum)"

if ! stamped "$HT_QEMU_SRC/.hypertrace-graft" "$key"; then
    need_space 1000 "$HT_TREE"
    copy_tree
    apply_patches
    stamp "$HT_QEMU_SRC.new/.hypertrace-graft" "$key"
    rm -rf "$HT_QEMU_SRC" "$HT_TREE/grafted"
    mv "$HT_QEMU_SRC.new" "$HT_QEMU_SRC"
fi
link_files
