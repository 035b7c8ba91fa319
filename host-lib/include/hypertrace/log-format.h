/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: format events as lines of text
 */
#ifndef HYPERTRACE_LOG_FORMAT_H
#define HYPERTRACE_LOG_FORMAT_H

#include "hypertrace/run.h"

/**
 * ht_log_event: write an event and its fields as one line
 * @f: the output; no other thread may write to it during the call
 * @device: name of the device
 * @stream: the event's stream
 * @ev: the event
 *
 * Text comes from a guest and may go to a terminal: non-printable characters
 * are escaped.
 */
void ht_log_event(FILE *f, const char *device, const HtStreamInfo *stream,
                  const HtEvent *ev);

#endif /* HYPERTRACE_LOG_FORMAT_H */
