/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The payload's platform: read lines that the host writes to the serial port
 */
#ifndef PAYLOAD_SERIAL_H
#define PAYLOAD_SERIAL_H

/* Enable the port's FIFO. Call this before the host writes its first byte. */
void serial_init(void);

/**
 * serial_line() - wait for a line; one of more than 255 bytes ends the payload
 *
 * Return: the line without its newline; valid until the next call
 */
const char *serial_line(void);

#endif /* PAYLOAD_SERIAL_H */
