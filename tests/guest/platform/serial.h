/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The payload's platform: read lines that the host writes to the serial port
 */
#ifndef PAYLOAD_SERIAL_H
#define PAYLOAD_SERIAL_H

/* Call before the host may write: from then on the FIFO keeps its bytes */
void serial_init(void);

/**
 * serial_line() - wait for a line
 *
 * Return: the line without its end; valid until the next call
 */
const char *serial_line(void);

#endif /* PAYLOAD_SERIAL_H */
