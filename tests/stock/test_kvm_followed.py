# SPDX-License-Identifier: GPL-2.0-or-later
"""Follow the main trace buffer and the log of a guest under KVM from boot, on its host,
which runs on an emulated AMD processor.

tests/stock/test_any_linux.py does the same with guests that TCG emulates: both files use
the scripts and checks of followed.py.
"""

import followed
import hosts
import stock

FOLLOW = hosts.KVM_SCRIPT + """
hypertrace record -o /run/out/rec --buffer main --kernel /run/job/vmlinuz -- $linux \
    -smp 2 -no-reboot -serial file:/run/out/dmesg -serial file:/run/out/console \
    -append "console=ttyS1 $words" </dev/null >/run/out/log 2>&1
echo "status $?" >>/run/out/log
""" + hosts.END

# Script of the KVM host: reset the guest once. Then, as in test_any_linux.py, let a
# second recorder record the guest, dump the guest's memory, and recover its data from
# the dump.
RESET = hosts.KVM_SCRIPT + """
ready() {
    until [ $(grep -s ^READY /run/out/console | wc -l) -ge $1 ]; do
        kill -0 $recorder || return 1
        sleep 0.2
    done
}
look() {
    hypertrace record -o /run/out/look --pid $(cat /run/pid) &
    looker=$!
    until grep -asqE "boot [0-9a-f-]{36}" /run/out/look/log; do
        kill -0 $looker || return 1
        sleep 0.2
    done
    kill $looker
    wait $looker
}
mkfifo /run/talk.in /run/talk.out /run/monitor.in /run/monitor.out
{
    hypertrace record -o /run/out/rec --buffer main --kernel /run/job/vmlinuz -- $linux \
        -smp 2 -chardev pipe,id=port,path=/run/talk -serial chardev:port \
        -serial file:/run/out/console -chardev pipe,id=monitor,path=/run/monitor \
        -mon monitor -pidfile /run/pid -append "console=ttyS1 $words" </dev/null &
    recorder=$!
    ready 1 && echo "echo b >/proc/sysrq-trigger" >/run/talk.in && ready 2 && look
    status=$?
    printf "dump-guest-memory /run/core\\nquit\\n" >/run/monitor.in
    wait $recorder && hypertrace recover -o /run/out/core /run/core && echo "status $status"
} >/run/out/log 2>&1
""" + hosts.END


def test_followed(tmp_path):
    """Only this test proves for a guest under KVM that each marker in its main buffer is
    recorded, or lies in a reported gap."""
    result = hosts.kvm_linux(tmp_path, followed.INIT, FOLLOW)
    followed.assert_all(result, (result / "log").read_text())


def test_reset(tmp_path):
    """Only this test resets a guest under KVM that a recorder follows. Data of the kernel that
    ran before the reset stays in the memory, and must not be taken for that of the running
    kernel."""
    result = hosts.kvm_linux(tmp_path, followed.BOOTS_INIT, RESET)
    err = (result / "log").read_text()
    boots = followed.ready(stock.console(result))
    assert len(boots) == 2
    followed.assert_each_boot(result / "rec", boots, err)
    followed.assert_living(result / "look", boots, err)
    followed.assert_living(result / "core", boots, err)
