/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stddef.h>

#include "console.h"
#include "io.h"
#include "serial.h"

#define COM1            0x3f8
#define COM1_FIFO       (COM1 + 2)
#define COM1_STATUS     (COM1 + 5)
#define FIFO_ENABLE     0x01
#define DATA_READY      0x01

void serial_init(void)
{
    outb(COM1_FIFO, FIFO_ENABLE);
}

const char *serial_line(void)
{
    static char line[256];

    for (size_t n = 0; n < sizeof(line); n++) {
        while (!(inb(COM1_STATUS) & DATA_READY)) {
            asm volatile("pause");
        }
        line[n] = inb(COM1);
        if (line[n] == '\n') {
            line[n] = '\0';
            return line;
        }
    }
    payload_die(PAYLOAD_USAGE, "a line is too long", NULL);
}
