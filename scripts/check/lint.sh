#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Check the sources with QEMU's checkpatch and shellcheck, and by the project's own rules.
# Check that Python files parse.

. "$(dirname -- "$0")/../lib.sh"

case ${1-} in
'') ;;
-h|--help)
    echo "usage: ./run lint"
    echo "Checks style; prints one line for each finding."
    exit 0
    ;;
*) die "./run lint: unknown argument '$1'" ;;
esac
ht_paths ""
ht_tree_init
"$HT_TOP/scripts/build/prerequisites.sh"
cd "$HT_TOP"
failed=$HT_TREE/lint-failed
rm -f "$failed"

# complain WHAT RULE: if standard input has findings, print them with the text
# WHAT, and note that RULE has failed
complain() {
    findings=$(cat)
    [ -n "$findings" ] || return 0
    printf '%s\n' "$findings" | sed 's/^/   /'
    echo "   ^ $1"
    printf ' %s' "$2" >>"$failed"
}

# List the files in the given folders that git tracks or does not ignore, without links
# and without fuzz corpora.
# shellcheck disable=SC2016 # the inner shell expands them
files() {
    git ls-files --cached --others --exclude-standard -- "$@" | sort -u |
    grep -v '^tests/fuzz/corpus/' | tr '\n' '\0' |
    xargs -0 -r -n 2000 sh -c '
        for file; do
            [ ! -f "$file" ] || [ -L "$file" ] || printf "%s\n" "$file"
        done' sh
}

have git && git rev-parse --git-dir >/dev/null 2>&1 ||
    die "lint needs git and a git checkout"

step "checkpatch"
"$HT_TOP/qemu/fetch.sh"
# Ignore findings that do not apply. The guest library has the MIT license, and has code
# for single architectures on purpose. Programs outside QEMU have neither its utilities
# nor its accessors of device registers. The macros of event.h expand to declarations.
# guest-linux is left out: QEMU's checkpatch refuses tabs, and Linux's checkpatch is not
# in the kernel's header packages.
files hw backends host-lib include guest-lib tools tests | grep '\.[ch]$' |
    tr '\n' '\0' |
    xargs -0 -r -n 20 perl "$HT_CACHE/qemu-source/scripts/checkpatch.pl" \
        --no-tree --terse --no-summary -f 2>&1 |
    grep -E '(ERROR|WARNING):' |
    grep -vE "Saw acceptable license 'MIT|architecture specific defines" |
    grep -vE "^(guest-lib|tools|tests)/.*(qemu_strto|Use of volatile)" |
    grep -vE "^guest-lib/include/hypertrace/event.h:.*ERROR: Macros with" |
    complain "does not follow QEMU's style" checkpatch

step "shellcheck"
if have shellcheck; then
    {
        files . | grep '\.sh$'
        files . | tr '\n' '\0' | xargs -0 grep -lE '^#!/bin/(da|ba)?sh' 2>/dev/null
    } | grep -v '\.\(c\|py\|patch\|md\|rst\)$' | sort -u | tr '\n' '\0' |
        xargs -0 -r shellcheck -x -f gcc |
        complain "shellcheck" shellcheck
else
    note "shellcheck is not installed: scripts are not checked"
fi

step "python"
files . | grep '\.py$' | tr '\n' '\0' | xargs -0 -r "$HT_PYTHON" -B -c '
import ast, sys
for name in sys.argv[1:]:
    try:
        ast.parse(open(name).read())
    except SyntaxError as e:
        print(name, e, sep=": ")' |
    complain "does not parse" python

step "the project's rules"
# No file may name a package host, because scripts take mirrors from the user's system.
# debian/copyright is left out, because it must name its format by an address. No file
# may name a path of one machine, because scripts take paths from the environment.
files . | grep -v -e '^LICENSES/' -e '^debian/copyright$' | tr '\n' '\0' | xargs -0 -r grep -nIE \
    '(https?|ftp)://[a-z0-9.-]*(debian|ubuntu|pypi|pythonhosted)|[a-z]\.(debian|ubuntu)\.[a-z]' |
    complain "names a package host" hosts
files . | grep -v '^LICENSES/' | tr '\n' '\0' | xargs -0 -r grep -nIE \
    '(^|[^A-Za-z0-9_.$}/*-])/(root|work|home)/' |
    complain "names a path of one machine" paths
files . | grep -v '^LICENSES/' | tr '\n' '\0' | xargs -0 -r grep -nIwE \
    'TO[D]O|FIX[M]E|X[X]X' |
    complain "is unfinished" unfinished
files . | grep -v '\.patch$' | grep -v '^LICENSES/' | tr '\n' '\0' |
    xargs -0 -r grep -nIE '[[:space:]]+$' |
    complain "has white space at the end of a line" whitespace
files . | grep -E '\.(c|h|S|ld|sh|py|rst)$|meson\.build$|meson_options\.txt$|Kconfig$|Kbuild$|Makefile$|trace-events$|^run$' |
    tr '\n' '\0' | xargs -0 -r awk '
        FNR == 1 && last { print last; last = "" }
        FNR == 1 { last = FILENAME }
        FNR <= 5 && /SPDX-License-Identifier:/ { last = "" }
        FNR > 5 { nextfile }
        END { if (last) print last }' |
    complain "has no SPDX line at its top" spdx
files . | grep -vE '^LICENSES/|\.svg$' | tr '\n' '\0' | xargs -0 -r wc -l |
    awk '$1 > 1000 && $2 != "total" { print $2 ": " $1 " lines" }' |
    complain "is too long: one subject a file, at most 1,000 lines" length
files . | sed -n 's,/[^/]*$,,p' | sort | uniq -c |
    awk '$1 > 40 { print $2 ": " $1 " files" }' |
    complain "has more than 40 files: group them by subject" folders

step "plain English"
words=scripts/check/plain-words
rules=$(grep -v '^[#=]' "$words" | cut -f 1 | paste -sd '|')
files . | grep -vE "^(LICENSES/|$words)|\.(patch|svg)$" | tr '\n' '\0' |
    xargs -0 -r grep -noHE -e "$rules" |
    awk -F: -v words="$words" '
        BEGIN {
            while ((getline line < words) > 0)
                if (split(line, part, " ") == 3 && part[1] == "=")
                    most[part[2]] = part[3]
        }
        { folder = $1; sub("/.*", "", folder); n[folder]++; last[folder] = $0 }
        END {
            for (f in n)
                if (n[f] > most[f])
                    print f ": " n[f] " hard constructions, at most " \
                        most[f] + 0 "; for example " last[f]
        }' |
    complain "is hard to read: $words has plain alternatives" words

added=$(cat qemu/patches/*.patch | grep -c '^+\([^+]\|$\)')
[ "$added" -le 60 ] || echo "$added lines" |
    complain "added by qemu/patches: at most 60 keep the series a set of hooks" patches

[ ! -f "$failed" ] || die "lint failed:$(cat "$failed")"
step "lint: clean"
