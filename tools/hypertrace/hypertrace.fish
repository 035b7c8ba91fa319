# SPDX-License-Identifier: GPL-2.0-or-later
# Completion of the command hypertrace in fish

function __hypertrace_commands
    hypertrace --help 2>/dev/null |
        string replace -rf '^  ([a-z]{2,}) +(.*)' '$1\t$2'
end

function __hypertrace_options
    set -l words (commandline -opc)
    hypertrace $words[2] --help 2>/dev/null |
        string match -rga '(?:^| )(--[a-z-]+=?|-[a-z](?=,))'
end

complete -c hypertrace -n __fish_use_subcommand -f -a '(__hypertrace_commands)'
complete -c hypertrace -n '__fish_seen_subcommand_from help' -f \
    -a '(__hypertrace_commands)'
complete -c hypertrace -n 'not __fish_use_subcommand' -a '(__hypertrace_options)'
