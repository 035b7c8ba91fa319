// SPDX-License-Identifier: GPL-2.0
/*
 * hypertrace: a panic or a reboot comes sooner than the next flush, and what
 * was committed shortly before it is what one wants to see
 */
#include <linux/notifier.h>
#include <linux/panic_notifier.h>
#include <linux/reboot.h>
#include <linux/spinlock.h>

#include "htk.h"

static LIST_HEAD(htk_devices);
static DEFINE_SPINLOCK(htk_devices_lock);

void htk_last_add(struct htk *h)
{
	spin_lock_irq(&htk_devices_lock);
	list_add_tail(&h->entry, &htk_devices);
	spin_unlock_irq(&htk_devices_lock);
}

void htk_last_remove(struct htk *h)
{
	spin_lock_irq(&htk_devices_lock);
	list_del(&h->entry);
	spin_unlock_irq(&htk_devices_lock);
}

/*
 * Claims are read without their lock, which a CPU that was stopped may hold.
 * The worst outcome is a look at a stream that is just being opened or closed.
 */
static void htk_last(void)
{
	unsigned long flags;
	struct htk *h;
	u32 i;

	if (!spin_trylock_irqsave(&htk_devices_lock, flags))
		return;
	list_for_each_entry(h, &htk_devices, entry) {
		for (i = 0; i < h->core.caps.streams; i++) {
			if (READ_ONCE(h->claims[i].owner))
				h->transport->last(h, i);
		}
	}
	spin_unlock_irqrestore(&htk_devices_lock, flags);
}

static int htk_on_end(struct notifier_block *nb, unsigned long action,
		      void *data)
{
	htk_last();
	return NOTIFY_DONE;
}

static struct notifier_block htk_panic_nb = { .notifier_call = htk_on_end };
static struct notifier_block htk_reboot_nb = { .notifier_call = htk_on_end };

int htk_last_init(void)
{
	int ret = register_reboot_notifier(&htk_reboot_nb);

	if (ret)
		return ret;
	ret = atomic_notifier_chain_register(&panic_notifier_list,
					     &htk_panic_nb);
	if (ret)
		unregister_reboot_notifier(&htk_reboot_nb);
	return ret;
}

void htk_last_exit(void)
{
	atomic_notifier_chain_unregister(&panic_notifier_list, &htk_panic_nb);
	unregister_reboot_notifier(&htk_reboot_nb);
}
