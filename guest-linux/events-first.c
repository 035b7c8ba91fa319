// SPDX-License-Identifier: GPL-2.0
/*
 * hypertrace-sources: start of the array of events; linked before the objects
 * made with events-header.h
 *
 * In a file of its own, so that the compiler of its user does not know that the
 * array is empty here.
 */
#include "events.h"

struct hte_event *const hte_events_begin[0] HTE_SECTION;
