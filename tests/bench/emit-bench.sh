#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Run emit-bench with a recording LTTng session of a private session daemon.
# LTTng allows root only one daemon, so root runs the daemon and emit-bench as
# another user.
#
# usage: emit-bench.sh PATH-OF-EMIT-BENCH [ARGUMENTS]

set -eu

bench=$1
shift
home=$(mktemp -d)
as=

lttng_quiet() {
    $as lttng --no-sessiond "$@" >>"$home/log" 2>&1 || {
        cat "$home/log" >&2
        echo "emit-bench.sh: lttng $1 failed" >&2
        exit 1
    }
}

end() {
    pid=$(cat "$home/.lttng/lttng-sessiond.pid" 2>/dev/null || :)
    if [ -n "$pid" ]; then
        $as lttng --no-sessiond destroy --all >/dev/null 2>&1 || :
        kill "$pid" 2>/dev/null || :
        while kill -0 "$pid" 2>/dev/null; do
            sleep 0.1
        done
    fi
    rm -rf "$home"
}
trap end EXIT
trap 'exit 1' INT TERM HUP

cp "$bench" "$home/emit-bench"
if [ "$(id -u)" = 0 ]; then
    chown -R 65534:65534 "$home"
    as="setpriv --reuid=65534 --regid=65534 --clear-groups"
fi
export HOME="$home" LTTNG_HOME="$home" LTTNG_UST_REGISTER_TIMEOUT=5000

# An LTTng flight recorder without a reader. Its buffer of each CPU is as large as emit-bench's
# ring.
$as lttng-sessiond --background --no-kernel >"$home/log" 2>&1
lttng_quiet create emit-bench --snapshot --output="$home/trace"
lttng_quiet enable-channel --userspace --subbuf-size=256K --num-subbuf=4 ring
lttng_quiet enable-event --userspace --channel=ring emit_bench:event_32
lttng_quiet start

# shellcheck disable=SC2086 # words
"$(dirname "$0")/usdt.sh" "$home/emit-bench" $as "$home/emit-bench" "$@"

# If LTTng recorded fewer than 1000 events, the row lttng-ust is wrong.
lttng_quiet snapshot record
n=$(babeltrace2 "$home/trace" 2>/dev/null | grep -c 'emit_bench:event_32' ||
    :)
if [ "$n" -lt 1000 ]; then
    echo "emit-bench.sh: LTTng recorded only $n events" >&2
    exit 1
fi
echo "emit-bench.sh: LTTng's flight recorder held $n events" >&2
