/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Write numbered markers to the kernel's main trace buffer
 *
 * If a process writes a number to the parameter "write", the module writes as
 * many markers, each on the processor on which the process then runs.  A marker
 * is the text "C NNNNNNNN SSSS", three hexadecimal numbers: the processor, the
 * marker's number on it, and a checksum of both.  The parameter "written" lists
 * the last number of each processor.
 */
#include <linux/cpumask.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/sched.h>

#define TEXT 16         /* size of a marker's text, with the newline */

static DEFINE_PER_CPU(u32, number);

static u32 checksum(u32 cpu, u32 n)
{
    u32 x = (n + 1) * 2654435761u + cpu * 40503u;

    return (x ^ x >> 16) & 0xffff;
}

static void put_hex(char *to, u32 value, int digits)
{
    while (digits--) {
        to[digits] = "0123456789abcdef"[value & 15];
        value >>= 4;
    }
}

static void mark(void)
{
    char text[TEXT] = "0 00000000 0000\n";
    u32 cpu = get_cpu(), n = __this_cpu_read(number) + 1;

    put_hex(text, cpu, 1);
    put_hex(text + 2, n, 8);
    put_hex(text + 11, checksum(cpu, n), 4);
    /*
     * Call __trace_puts() itself: trace_puts() would need a text with a final
     * NUL, and may store only the address of the text in the event.
     */
    if (__trace_puts(_THIS_IP_, text, TEXT)) {
        __this_cpu_write(number, n);
    }
    put_cpu();
}

static int set_write(const char *value, const struct kernel_param *param)
{
    u32 n, i;
    int ret = kstrtou32(value, 0, &n);

    for (i = 0; !ret && i < n; i++) {
        mark();
        if (i % 256 == 0) {
            cond_resched();
        }
    }
    return ret;
}

static int get_written(char *buffer, const struct kernel_param *param)
{
    int len = 0, cpu;

    for_each_online_cpu(cpu) {
        len += scnprintf(buffer + len, PAGE_SIZE - len, "%u ",
                         per_cpu(number, cpu));
    }
    return len + scnprintf(buffer + len, PAGE_SIZE - len, "\n");
}

static const struct kernel_param_ops write_ops = { .set = set_write };
static const struct kernel_param_ops written_ops = { .get = get_written };

module_param_cb(write, &write_ops, NULL, 0200);
module_param_cb(written, &written_ops, NULL, 0400);

MODULE_DESCRIPTION("Numbered markers in the main trace buffer");
MODULE_LICENSE("GPL");
