/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * insn-plugin: count the instructions of a piece of a guest's program
 *
 *   qemu-system-x86_64 -accel tcg -plugin insn-plugin.so,out=FILE
 *
 * Instructions of all privilege levels are counted, separately for each vCPU.
 * At each mark (insn-marks.h) a line is written: vCPU, the mark's number,
 * count. Marks are not counted. The plugin does not change what the guest
 * executes.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <qemu-plugin.h>

#include "insn-marks.h"

QEMU_PLUGIN_EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;

static FILE *out;
static qemu_plugin_u64 executed;

/* Runs in the vCPU's thread; stdio locks the file against the other vCPUs. */
static void on_mark(unsigned int vcpu, void *mark)
{
    fprintf(out, "%u %u %" PRIu64 "\n", vcpu, (unsigned)(uintptr_t)mark,
            qemu_plugin_u64_get(executed, vcpu));
}

/*
 * Return the mark's number if the instruction is a mark, else 0.
 */
static unsigned mark_of(const struct qemu_plugin_insn *insn)
{
    static const uint8_t opcode[] = INSN_MARK_OPCODE;
    uint8_t b[INSN_MARK_SIZE];

    if (qemu_plugin_insn_size(insn) != sizeof(b) ||
        qemu_plugin_insn_data(insn, b, sizeof(b)) != sizeof(b) ||
        memcmp(b, opcode, sizeof(opcode)) ||
        (b[6] << 8 | b[5]) != INSN_MARK_HIGH) {
        return 0;
    }
    return b[4] << 8 | b[3];
}

static void on_block(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
    size_t n = qemu_plugin_tb_n_insns(tb), i;

    for (i = 0; i < n; i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        unsigned mark = mark_of(insn);

        if (mark) {
            qemu_plugin_register_vcpu_insn_exec_cb(
                insn, on_mark, QEMU_PLUGIN_CB_NO_REGS,
                (void *)(uintptr_t)mark);
        } else {
            qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(
                insn, QEMU_PLUGIN_INLINE_ADD_U64, executed, 1);
        }
    }
}

static void at_end(qemu_plugin_id_t id, void *data)
{
    fclose(out);
}

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id,
                                           const qemu_info_t *info,
                                           int argc, char **argv)
{
    if (argc != 1 || strncmp(argv[0], "out=", 4)) {
        fprintf(stderr, "insn-plugin: wants out=FILE\n");
        return 1;
    }
    out = fopen(argv[0] + 4, "w");
    if (!out) {
        fprintf(stderr, "insn-plugin: %s: %s\n", argv[0] + 4, strerror(errno));
        return 1;
    }
    executed = qemu_plugin_scoreboard_u64(
        qemu_plugin_scoreboard_new(sizeof(uint64_t)));
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_block);
    qemu_plugin_register_atexit_cb(id, at_end, NULL);
    return 0;
}
