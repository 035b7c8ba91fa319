// SPDX-License-Identifier: GPL-2.0
/* hypertrace-events: linked behind what events-header.h makes */
#include "events.h"

struct hte_event *const hte_events_end[0] HTE_SECTION;
