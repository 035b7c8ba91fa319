/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace record: the module hypertrace-lttng-ust.so, which delivers events
 * to LTTng-UST
 */
#include "hypertrace/base.h"
#include "lttng/lttng-module.h"

const HtUstOps ht_ust_ops = {
    .create = ht_ust_session_new,
    .destroy = ht_ust_session_free,
    .expect = ht_ust_session_expect,
    .learn = ht_ust_session_learn,
    .wants = ht_ust_session_wants,
    .deliver = ht_ust_session_deliver,
};
