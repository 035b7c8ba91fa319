/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A shared object with its own classes: tracetest-dynamic (ht-tracetest.c)
 * loads it with dlopen(), or a test preloads it into tracetest-dynamic, where
 * its getppid() emits an event
 */
#include <sys/syscall.h>
#include <unistd.h>

#include <hypertrace.h>

HT_EVENT_NAMED(plugin, "tracetest.plugin", (u32, n));
HT_EVENT_NAMED(call, "tracetest.call", (u32, n));
/* ht-tracetest.c has a different class with this name */
HT_EVENT(open, (text, path));

__attribute__((visibility("default"))) void emit_plugin(unsigned n)
{
    ht_trace(plugin, n);
    ht_trace(open, "plugin");
}

pid_t getppid(void)
{
    static unsigned n;

    ht_trace(call, n++);
    return syscall(SYS_getppid);
}
