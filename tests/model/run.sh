#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Check each variant of a model exhaustively. Also check that spin refutes each
# mutant of this model in at least one variant: a model that does not detect a
# missing barrier proves nothing. Prints TAP.

dir=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P) || exit 1
for tool in spin gcc; do
    command -v "$tool" >/dev/null 2>&1 || {
        echo "1..0 # SKIP $tool is not installed"
        exit 0
    }
done
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' INT TERM

# Print the options of each variant of a model, one variant per line. The values of
# EVENTS and other sizes are so small that a search needs less memory than the limit
# MEMLIM (1.5 GiB).
variants() {
    case $1 in
    ring)    echo "-DEVENTS=4"
             echo "-DOVERWRITE -DEVENTS=4" ;;
    wake)    echo "-DCOMMITS=3"
             echo "-DTIMER -DCOMMITS=2"
             echo "-DRINGS -DCOMMITS=2" ;;
    control) echo "-DSTEPS=5"
             echo "-DVIRTIO -DSTEPS=5" ;;
    sink)    echo "-DRUNS=4 -DCLASSES=1"
             echo "-DHANG -DRUNS=4 -DCLASSES=1"
             echo "-DTURNS -DRUNS=4 -DCLASSES=1"
             echo "-DTURNS -DHANG -DRUNS=4 -DCLASSES=1" ;;
    mailbox) echo "-DREQUESTS=3" ;;
    esac
}

# explore MODEL OPTION...: check a model; the output of spin's verifier is in
# $scratch/out
explore() {
    model=$1
    shift
    (
        cd "$scratch" && rm -f pan* ./*.trail && cp "$dir"/*.pml . &&
            spin "$@" -a "$model.pml" &&
            gcc -w "$level" -DSAFETY -DCOLLAPSE -DMEMLIM=1536 -o pan pan.c &&
            ./pan -m100000 -w"$slots"
    ) >"$scratch/out" 2>&1
}

# holds: did spin search completely, and find no error?
holds() {
    grep -q 'errors: 0$' "$scratch/out" &&
        ! grep -q 'max search depth too small\|out of memory\|limit' \
            "$scratch/out"
}

# fails: did spin find a violation of a property of the protocol? An overflow of the
# log of stores (LOG in memory.pml) does not count as one.
fails() {
    grep -q 'assertion violated\|invalid end state' "$scratch/out" &&
        ! grep -q 'violated (log_end' "$scratch/out"
}

n=0
bad=0
# The verifier of a complete search is compiled with -O1. That of a mutant is compiled
# with -O0, because its search ends at the first fault, so optimizing takes longer than
# it saves. The verifier's hash table has 2^slots entries, fewer than by default, because
# clearing a large table takes time.
level=-O1
slots=22
report() {
    n=$((n + 1))
    if [ "$1" = ok ]; then
        echo "ok $n - $2"
    else
        bad=1
        echo "not ok $n - $2"
        sed 's/^/# /' "$scratch/out"
    fi
}

model=${1:?usage: run.sh ring|wake|control|sink|mailbox}
variants "$model" >"$scratch/variants"
while read -r options; do
    # shellcheck disable=SC2086 # several options
    explore "$model" $options
    ! holds || result=ok
    report "${result-failed}" "$model $options"
    unset result
done <"$scratch/variants"

# ordered MUTANT: print the variants in the order in which to try them for a mutant.
# The first word of the mutant's name may be an option; print variants with this option
# first. For example, the fault of M_TIMER_STOPS_EARLY is in code for -DTIMER.
ordered() {
    option=${1#M_}
    option=-D${option%%_*}
    grep -we "$option" "$scratch/variants"
    grep -vwe "$option" "$scratch/variants"
}

grep -owE 'M_[A-Z_]+' "$dir/$model.pml" | sort -u >"$scratch/mutants"
level=-O0
slots=18
while read -r mutant; do
    ordered "$mutant" >"$scratch/ordered"
    while read -r options; do
        # shellcheck disable=SC2086
        explore "$model" "-D$mutant" $options
        ! fails || { result=ok; break; }
    done <"$scratch/ordered"
    report "${result-failed}" "$model without ${mutant#M_} is refuted"
    unset result
done <"$scratch/mutants"
echo "1..$n"
exit $bad
