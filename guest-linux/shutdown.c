// SPDX-License-Identifier: GPL-2.0
/*
 * hypertrace: flush streams at an oops and a panic
 *
 * An oops is flushed although the kernel may go on: with a crash kernel loaded
 * the next one is started before the panic notifiers are called.  Reboots are
 * main.c's, with the device's .shutdown.
 */
#include <linux/kdebug.h>
#include <linux/notifier.h>
#include <linux/panic_notifier.h>
#include <linux/spinlock.h>

#include "htk.h"

static LIST_HEAD(htk_devices);
static DEFINE_RAW_SPINLOCK(htk_devices_lock);

void htk_shutdown_add(struct htk *h)
{
	raw_spin_lock_irq(&htk_devices_lock);
	list_add_tail(&h->entry, &htk_devices);
	raw_spin_unlock_irq(&htk_devices_lock);
}

void htk_shutdown_remove(struct htk *h)
{
	raw_spin_lock_irq(&htk_devices_lock);
	list_del_init(&h->entry);
	raw_spin_unlock_irq(&htk_devices_lock);
}

/*
 * Claims are read without their lock, which a CPU that was stopped may hold.
 * The worst outcome is a look at a stream that is just being opened or closed.
 */
static void htk_flush_all(void)
{
	unsigned long flags;
	struct htk *h;
	u32 i;

	if (!raw_spin_trylock_irqsave(&htk_devices_lock, flags))
		return;
	list_for_each_entry(h, &htk_devices, entry) {
		for (i = 0; i < h->core.caps.streams; i++) {
			if (!READ_ONCE(h->gone) &&
			    READ_ONCE(h->claims[i].owner))
				h->transport->last(h, i);
		}
	}
	raw_spin_unlock_irqrestore(&htk_devices_lock, flags);
}

static int htk_on_panic(struct notifier_block *nb, unsigned long action,
			void *data)
{
	htk_flush_all();
	return NOTIFY_DONE;
}

static int htk_on_die(struct notifier_block *nb, unsigned long action,
		      void *data)
{
	if (action == DIE_OOPS)
		htk_flush_all();
	return NOTIFY_DONE;
}

static struct notifier_block htk_panic_nb = { .notifier_call = htk_on_panic };
static struct notifier_block htk_die_nb = { .notifier_call = htk_on_die };

int htk_shutdown_init(void)
{
	int ret = register_die_notifier(&htk_die_nb);

	if (ret)
		return ret;
	ret = atomic_notifier_chain_register(&panic_notifier_list,
					     &htk_panic_nb);
	if (ret)
		unregister_die_notifier(&htk_die_nb);
	return ret;
}

void htk_shutdown_exit(void)
{
	atomic_notifier_chain_unregister(&panic_notifier_list, &htk_panic_nb);
	unregister_die_notifier(&htk_die_nb);
}
