/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: serve the socket of a flight recorder, for "hypertrace
 * snapshot"
 *
 * A connection requests a recording. The reply is one line of JSON: an object
 * with the members "directory", "events" and "cause", or the member "error".
 */
#ifndef HYPERTRACE_FLIGHT_CONTROL_H
#define HYPERTRACE_FLIGHT_CONTROL_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/* Name of the socket in the recorder's folder */
#define HT_FLIGHT_SOCKET    ".control"

typedef struct HtFlightControl HtFlightControl;

/**
 * ht_flight_control_new() - create the socket
 * @dir: descriptor of the recorder's folder, which this recorder has locked; it
 *       must stay open until ht_flight_control_free()
 * @error: set on failure
 */
HtFlightControl *ht_flight_control_new(int dir, GError **error);

/** ht_flight_control_free() - remove the socket; requests get no reply */
void ht_flight_control_free(HtFlightControl *c);

/**
 * ht_flight_control_poll() - accept new requests without waiting
 * @c: the socket
 *
 * Return: true if a request waits for its reply
 */
bool ht_flight_control_poll(HtFlightControl *c);

/**
 * ht_flight_control_wait() - wait for a request or the end of a process
 * @c: the socket
 * @pidfd: the process; -1: none
 * @ns: maximum time in nanoseconds, rounded up to milliseconds
 *
 * Return: true if the time passed; false if anything else, such as a signal,
 * ended the wait
 */
bool ht_flight_control_wait(HtFlightControl *c, int pidfd, uint64_t ns);

/**
 * ht_flight_control_reply() - answer and close all accepted requests
 * @c: the socket
 * @line: reply without the newline; NULL: do not reply, but close this
 *        process's copies of the sockets, for example because another process
 *        replies
 */
void ht_flight_control_reply(HtFlightControl *c, const char *line);

/**
 * ht_flight_control_connect() - request a recording from a folder's recorder
 * @path: the folder
 * @error: set on failure, for example if no recorder uses the folder
 *
 * Return: a socket that receives the reply; -1 on failure
 */
int ht_flight_control_connect(const char *path, GError **error);

#endif
