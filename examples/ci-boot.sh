#!/bin/sh
# SPDX-License-Identifier: MIT
# Record a boot in CI. Fail if it is slower than a limit or, when DIR has at least three
# earlier recordings, slower than those boots.
#
# usage: ci-boot.sh DIR QEMU...
#
# DIR keeps the recordings from one run to the next. A recording of a boot that
# was too slow moves to DIR.failed, so that later boots are not compared with it.
# $MAX is the limit, 60s if it is not set. boot.xml has the results for CI.

set -eu
dir=${1:?usage: ci-boot.sh DIR QEMU...}
shift
new=$dir/$(date -u +%Y%m%dT%H%M%S)
mkdir -p "$dir"
hypertrace record -o "$new" -- "$@"

regression=
set -- "$dir"/*
[ $# -le 3 ] || regression=--regression
status=0
hypertrace boot "--max=${MAX:-60s}" $regression --junit=boot.xml "$@" || status=$?
# Status 4: the boot was too slow. After any other failure, the recording may
# be a good one.
if [ "$status" -eq 4 ]; then
    mkdir -p "$dir.failed"
    mv "$new" "$dir.failed/"
fi
exit "$status"
