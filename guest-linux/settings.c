// SPDX-License-Identifier: GPL-2.0
/*
 * hypertrace: what the host sets for the modules that emit
 *
 * A device's host may say "functions.entry=vfs_* functions.least_ns=0".  The
 * device interrupts when it says something else; the driver then asks for all
 * of it, and each module is told of the settings that begin with its name.  Of
 * several devices that counts whose host spoke last.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/export.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "hypertrace-kernel.h"
#include "htk.h"

/* Guards what follows, and struct htk's settings; held around calls of set() */
static DEFINE_MUTEX(htk_settings_mutex);
static LIST_HEAD(htk_settings_users);
static char htk_settings[HT_SETTINGS_MAX + 1];

/* Context: htk_settings_mutex held */
static void htk_settings_tell(const struct ht_settings *user)
{
	char *text = kstrdup(htk_settings, GFP_KERNEL), *rest = text, *value;
	size_t owner = strlen(user->owner);

	while (text && (value = strsep(&rest, " "))) {
		const char *name = strsep(&value, "=");
		int ret;

		if (!value || strncmp(name, user->owner, owner) ||
		    name[owner] != '.')
			continue;
		ret = user->set(name + owner + 1, value);
		if (ret)
			pr_err("the host's setting %s=%s: error %d\n", name,
			       value, ret);
	}
	kfree(text);
}

/* A message of its own: that of the core is emit.c's. */
static int htk_settings_read(struct htk *h, struct ht_msg_settings *m)
{
	int ret;

	m->h.type = HT_MSG_SETTINGS;
	m->h.size = sizeof(*m) + HT_SETTINGS_MAX;
	m->count = HT_SETTINGS_MAX;
	ret = htk_control(h, &h->kernel, &m->h, m->h.size);
	if (ret)
		return ret;
	/* Of an older host: it has none. */
	if (m->h.status == HT_STATUS_NOENT)
		m->count = 0;
	else if (m->h.status != HT_STATUS_OK || m->count > HT_SETTINGS_MAX ||
		 m->h.size != sizeof(*m) + m->count)
		return -EIO;
	m->text[m->count] = '\0';
	return 0;
}

static void htk_settings_work(struct work_struct *work)
{
	struct htk *h = container_of(work, struct htk, settings_work);
	const struct ht_settings *user;
	struct ht_msg_settings *m;
	int ret = -ENOMEM;

	m = kzalloc(struct_size(m, text, HT_SETTINGS_MAX + 1), GFP_KERNEL);
	if (m)
		ret = htk_settings_read(h, m);
	if (ret && ret != -ENODEV)
		dev_warn(&h->vdev->dev, "what the host sets: error %d\n", ret);
	mutex_lock(&htk_settings_mutex);
	if (!ret && strcmp(m->text, h->settings)) {
		strscpy(h->settings, m->text, sizeof(h->settings));
		strscpy(htk_settings, m->text, sizeof(htk_settings));
		list_for_each_entry(user, &htk_settings_users, link)
			htk_settings_tell(user);
	}
	mutex_unlock(&htk_settings_mutex);
	kfree(m);
}

void htk_settings_new(struct htk *h)
{
	INIT_WORK(&h->settings_work, htk_settings_work);
}

/* Context: interrupt, or any */
void htk_settings_changed(struct htk *h)
{
	schedule_work(&h->settings_work);
}

/* Context: may sleep; nothing interrupts any more */
void htk_settings_remove(struct htk *h)
{
	cancel_work_sync(&h->settings_work);
}

void ht_kernel_settings_add(struct ht_settings *user)
{
	mutex_lock(&htk_settings_mutex);
	list_add_tail(&user->link, &htk_settings_users);
	htk_settings_tell(user);
	mutex_unlock(&htk_settings_mutex);
}
EXPORT_SYMBOL_GPL(ht_kernel_settings_add);

void ht_kernel_settings_remove(struct ht_settings *user)
{
	mutex_lock(&htk_settings_mutex);
	list_del(&user->link);
	mutex_unlock(&htk_settings_mutex);
}
EXPORT_SYMBOL_GPL(ht_kernel_settings_remove);
