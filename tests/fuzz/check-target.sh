#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# check-target.sh PROGRAM NAME: run the committed corpus of the fuzz target NAME, if it has one,
# then a fixed number of inputs that libFuzzer makes from it with a fixed seed. With HT_LONG=1,
# the number is five times as large. If the target fails, print the input as hex bytes.

set -eu
corpus=$(dirname -- "$0")/corpus/$2
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir "$tmp/corpus"
[ ! -d "$corpus" ] || cp -R "$corpus/." "$tmp/corpus/"
case $2 in
class) runs=100 ;;           # an input may register classes up to the limit
ctf|dead) runs=100 ;;
memory) runs=50 ;;           # each input creates a guest memory and a server
image|queue|ftring|ring) runs=400 ;;
*) runs=1000 ;;
esac
[ "${HT_LONG-}" != 1 ] || runs=$((runs * 5))
# libFuzzer first runs one empty input and each input of the corpus. It counts these inputs in
# -runs, so add their number.
for input in "$tmp/corpus/"*; do
    [ ! -f "$input" ] || runs=$((runs + 1))
done
runs=$((runs + 1))
"$1" -seed=1 -runs=$runs -timeout=30 -artifact_prefix="$tmp/" "$tmp/corpus" \
    2>&1 || {
    for input in "$tmp"/crash-* "$tmp"/timeout-* "$tmp"/oom-* "$tmp"/leak-*; do
        [ ! -f "$input" ] || { echo "input: $input"; od -An -v -tx1 "$input"; }
    done
    exit 1
}
