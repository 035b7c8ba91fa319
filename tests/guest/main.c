/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The payload: a guest without an operating system, for measurements and tests
 *
 *     qemu-system-x86_64 -accel kvm -cpu host,arch-capabilities=off
 *         -nodefaults -display none -debugcon stdio
 *         -device isa-debug-exit,iobase=0xf4,iosize=1
 *         -object hypertrace-backend-null,id=b
 *         -device hypertrace,channel=shm,backend=b
 *         -kernel hypertrace-payload -append "bench events=1000000"
 *
 * (scripts/vm/payload.py starts QEMU in a similar way).  The functions are
 * probe, exits, bench, selftest, study, soak and hostile, each with its options
 * in its own file.  Results are JSON objects, one per line; a fault of the
 * processor is reported as text.  console.h has the exit status.
 */
#include "boot.h"
#include "cmdline.h"
#include "libc.h"
#include "mm.h"
#include "payload.h"

#define MULTIBOOT_MAGIC         0x2badb002u
#define MULTIBOOT_MEMORY        (1u << 0)
#define MULTIBOOT_CMDLINE       (1u << 2)

struct multiboot_info {
    uint32_t flags;
    uint32_t mem_lower;         /* KiB of memory below 1 MiB */
    /* KiB of memory from 1 MiB on, up to the first hole */
    uint32_t mem_upper;
    uint32_t boot_device;
    uint32_t cmdline;
};

static const char *const names[] = {
    "probe", "exits", "bench", "selftest", "study",
    "soak", "hostile", NULL
};
static payload_function *const functions[] = {
    payload_probe, payload_exits, payload_bench, payload_selftest,
    payload_study, payload_soak, payload_hostile,
};

void payload_main(void)
{
    const struct multiboot_info *info = (void *)(uintptr_t)boot_info;
    const char *cmdline = NULL;
    int function;

    if (boot_magic != MULTIBOOT_MAGIC || !(info->flags & MULTIBOOT_MEMORY)) {
        payload_die(PAYLOAD_USAGE, "not started by a multiboot loader", NULL);
    }
    if (info->flags & MULTIBOOT_CMDLINE) {
        cmdline = (const char *)(uintptr_t)info->cmdline;
    }
    /* Copy the command line before the heap, which may overlap it, is used. */
    function = cmdline_init(cmdline, names);
    mm_init((1024ull + info->mem_upper) << 10);
    if (function < 0) {
        put_str("{\"error\": \"no function named\", \"functions\": [");
        for (int i = 0; names[i]; i++) {
            put_str(i ? ", \"" : "\"");
            put_str(names[i]);
            put_str("\"");
        }
        put_str("]}\n");
        payload_exit(PAYLOAD_USAGE);
    }
    payload_exit(functions[function]());
}

void payload_fault(uint64_t vector, uint64_t error, uint64_t rip, uint64_t cr2)
{
    static bool again;

    if (!again) {
        again = true;
        put_str("\nfault ");
        put_u64(vector);
        put_str(" error ");
        put_hex(error);
        put_str(" rip ");
        put_hex(rip);
        put_str(" cr2 ");
        put_hex(cr2);
        put_char('\n');
    }
    payload_exit(PAYLOAD_FAILED);
}
