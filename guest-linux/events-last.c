// SPDX-License-Identifier: GPL-2.0
/* hypertrace-sources: end of the array that events-first.c starts */
#include "events.h"

struct hte_event *const hte_events_end[0] HTE_SECTION;
