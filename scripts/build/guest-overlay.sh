#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Make an archive of DIR that can be appended to the guest's initrd: the files
# of DIR appear in the guest's / (so DIR/ht/job.sh is the job).

set -eu

case ${1-} in
-h|--help)
    echo "usage: scripts/build/guest-overlay.sh OUT.cpio DIR"
    echo "Then: cat \$HT_INITRD OUT.cpio > initrd, for qemu's -initrd."
    exit 0
    ;;
esac
[ $# -eq 2 ] && [ -d "$2" ] || {
    echo "usage: scripts/build/guest-overlay.sh OUT.cpio DIR" >&2
    exit 2
}
out=$(CDPATH='' cd -- "$(dirname -- "$1")" && pwd)/$(basename -- "$1")
status=$(mktemp)
trap 'rm -f "$status"' EXIT
{
    # -L: copy the files to which links point, because the guest does not have
    # the paths of the build trees.
    (cd "$2" && find . ! -path . | LC_ALL=C sort |
     cpio -o -L -H newc -R 0:0 --quiet) || echo failed >"$status"
} >"$out.new"
if [ -s "$status" ]; then
    rm -f "$out.new"
    echo "error: cannot archive $2 (disk full?)" >&2
    exit 1
fi
mv -f "$out.new" "$out"
