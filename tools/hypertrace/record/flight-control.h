/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: the socket by which "hypertrace snapshot" asks a flight
 * recorder for a recording
 *
 * A connection is the request.  The reply is one line of JSON: an object with
 * the members "directory", "events" and "cause", or the member "error".
 */
#ifndef HYPERTRACE_FLIGHT_CONTROL_H
#define HYPERTRACE_FLIGHT_CONTROL_H

#include <glib.h>
#include <stdbool.h>

/* Name of the socket in the recorder's folder */
#define HT_FLIGHT_SOCKET    ".control"

typedef struct HtFlightControl HtFlightControl;

/**
 * ht_flight_control_new() - make the socket
 * @dir: descriptor of the recorder's folder, which this recorder has locked
 * @error: set on failure
 */
HtFlightControl *ht_flight_control_new(int dir, GError **error);

/** ht_flight_control_free() - remove the socket; requests get no reply */
void ht_flight_control_free(HtFlightControl *c);

/**
 * ht_flight_control_poll() - take new requests; never waits
 *
 * Return: true if a request waits for its reply
 */
bool ht_flight_control_poll(HtFlightControl *c);

/**
 * ht_flight_control_reply() - answer all requests
 * @line: reply without the newline; NULL: another process answers them
 */
void ht_flight_control_reply(HtFlightControl *c, const char *line);

/**
 * ht_flight_control_connect() - ask the recorder of a folder
 * @path: the folder
 * @error: set if no recorder uses it
 *
 * Return: a socket, on which the reply arrives; -1 on failure
 */
int ht_flight_control_connect(const char *path, GError **error);

#endif
