/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Payload: lines that the host writes to the serial port
 */
#ifndef PAYLOAD_SERIAL_H
#define PAYLOAD_SERIAL_H

/* Before the host is told that it may write: its FIFO holds what comes */
void serial_init(void);

/**
 * serial_line() - wait for a line
 *
 * Return: the line without its end; valid until the next call
 */
const char *serial_line(void);

#endif /* PAYLOAD_SERIAL_H */
