/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hypertrace: whether this QEMU is about to end
 */
#include "qemu/osdep.h"
#include "qemu/module.h"
#include "qemu/notify.h"
#include "system/runstate-action.h"
#include "system/runstate.h"
#include "system/system.h"
#include "ending.h"

static bool ends;

/* The VM may also be left as it is, with -no-shutdown. */
static void on_shutdown(Notifier *n, void *data)
{
    ends = shutdown_action != SHUTDOWN_ACTION_PAUSE;
}

static Notifier shutdown_notifier = { .notify = on_shutdown };

bool ht_qemu_ends(void)
{
    return ends;
}

static void ending_init(void)
{
    qemu_register_shutdown_notifier(&shutdown_notifier);
}

type_init(ending_init)
