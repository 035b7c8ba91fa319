#compdef hypertrace
# SPDX-License-Identifier: GPL-2.0-or-later
# Completion of the command hypertrace in zsh

_hypertrace() {
    local -a commands options
    if (( CURRENT == 2 )); then
        commands=(${(f)"$(hypertrace --help 2>/dev/null |
            sed -n 's/^  \([a-z]\{2,\}\)  *\(.*\)/\1:\2/p')"})
        _describe command commands
        return
    fi
    if [[ $words[2] == record && ${words[(I)--]} -gt 0 ]]; then
        local -i at=${words[(i)--]}
        shift $at words
        (( CURRENT -= at ))
        _normal
        return
    fi
    if [[ $words[2] == help ]]; then
        commands=(${(f)"$(hypertrace --help 2>/dev/null |
            sed -n 's/^  \([a-z]\{2,\}\) .*/\1/p')"})
        compadd -a commands
        return
    fi
    if [[ $words[CURRENT] == -* ]]; then
        options=(${(f)"$(hypertrace $words[2] --help 2>/dev/null |
            grep -oE -- '(^| )--[a-z-]+=?|(^| )-[a-z],' | tr -d ' ,')"})
        compadd -a options
        return
    fi
    _files
}

_hypertrace "$@"
