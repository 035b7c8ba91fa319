/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: the module that delivers to LTTng-UST
 */
#include "hypertrace/base.h"
#include "record/lttng-module.h"

const HtUstOps ht_ust_ops = {
    .prepare = ht_ust_events_prepare,
    .get = ht_ust_event_get,
    .discarded = ht_ust_discarded_get,
    .tell = ht_ust_tell_discarded,
    .deliver = ht_ust_deliver,
    .timed_out = ht_ust_timed_out,
};
