// SPDX-License-Identifier: GPL-2.0
/*
 * hypertrace-sources: start of the array of events
 *
 * The linker places it before the objects that are made with events-header.h.
 * It has a file of its own so that the compiler does not see, in the file that
 * uses it, that the array is empty.
 */
#include "events.h"

struct hte_event *const hte_events_begin[0] HTE_SECTION;
