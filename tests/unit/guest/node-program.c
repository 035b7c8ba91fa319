/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Guest library tests: functions that node-test.c and node-step-test.c share
 */
#include "hypertrace/base.h"
#include <errno.h>
#include "node-program.h"

unsigned emitted;

void emit(unsigned n)
{
    unsigned i;

    for (i = 0; i < n; i++) {
        errno = 4242;
        ht_trace(step, i, i * 7ull);
        if (errno != 4242) {
            g_error("an event changed errno");
        }
        emitted++;
    }
}

void say_emitted(void)
{
    char text[32];

    snprintf(text, sizeof(text), "emitted-%u", emitted);
    emitted = 0;
    node_command(text);
}

void emit_until_open(void)
{
    while (!ht_thread_stream) {
        ht_trace(probe, 0);
        usleep(1000);
    }
}

int node_child(char **argv, const NodeChild *children)
{
    for (; children->name; children++) {
        if (!strcmp(argv[1], children->name)) {
            children->run(argv[2]);
            return 0;
        }
    }
    return 96;
}

unsigned steps_got(NodeHost *h)
{
    return node_host_got(h, "node.step");
}
