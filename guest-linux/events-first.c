// SPDX-License-Identifier: GPL-2.0
/*
 * hypertrace-events: linked before what events-header.h makes
 *
 * Who uses the array must not know that it is empty here.
 */
#include "events.h"

struct hte_event *const hte_events_begin[0] HTE_SECTION;
