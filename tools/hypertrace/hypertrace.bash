# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# Completion of the command hypertrace

_hypertrace_options() {
    hypertrace "$1" --help 2>/dev/null |
        grep -oE -- '(^| )--[a-z-]+=?|(^| )-[a-z],' | tr -d ' ,'
}

_hypertrace() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}

    # --option=value is three words
    [ "$cur" != = ] || cur=
    [ "$prev" != = ] || prev=${COMP_WORDS[COMP_CWORD-2]}
    if [ "$COMP_CWORD" -eq 1 ]; then
        mapfile -t COMPREPLY < <(compgen -W "--help --version $(
            hypertrace --help 2>/dev/null |
                sed -n 's/^  \([a-z]\{2,\}\) .*/\1/p')" -- "$cur")
        return
    fi
    # After the "--" of record, complete a command
    if [ "${COMP_WORDS[1]}" = record ]; then
        local i
        for ((i = 2; i < COMP_CWORD; i++)); do
            if [ "${COMP_WORDS[i]}" = -- ]; then
                if declare -F _command_offset >/dev/null; then
                    _command_offset $((i + 1))
                elif [ $((i + 1)) -eq "$COMP_CWORD" ]; then
                    mapfile -t COMPREPLY < <(compgen -c -- "$cur")
                else
                    compopt -o filenames
                    mapfile -t COMPREPLY < <(compgen -f -- "$cur")
                fi
                return
            fi
        done
    fi
    case $prev in
    --format|-f)
        mapfile -t COMPREPLY < <(compgen -W "dat perfetto ctf lttng" -- "$cur")
        return
        ;;
    --color)
        mapfile -t COMPREPLY < <(compgen -W "always never auto" -- "$cur")
        return
        ;;
    --clock)
        mapfile -t COMPREPLY < <(compgen -W "guest host" -- "$cur")
        return
        ;;
    --of)
        mapfile -t COMPREPLY < <(compgen -W "functions cpu off-cpu" -- "$cur")
        return
        ;;
    --output|-o|--dir|--config|--svg|--junit|--speedscope|--kernel|--busybox)
        compopt -o filenames
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
        return
        ;;
    --from|--to|--event|--where|--grep|--cpu|--task|--boot|--rows|-n|--slowest|--key|-k|\
    --worst|--log|--device|--function|--depth|-d|-e|--size|-s|--pid|-p|--domain|--poll-us|\
    --max-size|--net|--for|--cpu-hz|--functions|--graph|--flight|--silence|--until|--match|--keep|\
    --wait|--name|--user|--max-memory|--max-disk|--connect|-c)
        return
        ;;
    esac
    case $cur in
    -*)
        mapfile -t COMPREPLY < <(compgen -W "$(
            _hypertrace_options "${COMP_WORDS[1]}")" -- "$cur")
        [[ ${COMPREPLY[0]-} != *= ]] || compopt -o nospace
        ;;
    *)
        local what=-d
        case ${COMP_WORDS[1]} in
        attach|events|formats|recover|status|list|enable|disable|set)
            what=-f ;;
        domain)
            mapfile -t COMPREPLY < <(compgen -W "$(
                virsh list --all --name 2>/dev/null)" -- "$cur")
            return ;;
        esac
        compopt -o filenames
        mapfile -t COMPREPLY < <(compgen "$what" -- "$cur")
        ;;
    esac
}

complete -F _hypertrace hypertrace
