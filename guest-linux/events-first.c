// SPDX-License-Identifier: GPL-2.0
/*
 * hypertrace-sources: start of the array of events
 *
 * The linker places this file's object before the objects that are made with
 * events-header.h.  If events-main.c, which uses hte_events_begin, defined this
 * array, the compiler would see an array without elements.
 */
#include "events.h"

struct hte_event *const hte_events_begin[0] HTE_SECTION;
