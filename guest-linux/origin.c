// SPDX-License-Identifier: GPL-2.0
/*
 * hypertrace: origins, reserved names and quotas
 *
 * The driver stamps each class and stream with its origin, the kernel or a
 * user, so that programs cannot pretend to be the kernel or another user.
 * Programs cannot register classes with the names of the kernel's events.
 * Users other than root have quotas, which leave classes and streams for the
 * kernel and limit the share of a single user.
 */
#include <linux/cpumask.h>
#include <linux/cred.h>
#include <linux/hashtable.h>
#include <linux/moduleparam.h>
#include <linux/once.h>
#include <linux/pid_namespace.h>
#include <linux/sched.h>
#include <linux/siphash.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/stringhash.h>
#include <linux/tracepoint.h>
#include <linux/uidgid.h>
#include <linux/user_namespace.h>
#include <linux/vmalloc.h>

#include "htk.h"

static unsigned int kernel_streams;
module_param(kernel_streams, uint, 0444);
MODULE_PARM_DESC(kernel_streams,
		 "streams for kernel events; 0: three quarters of the device's");

struct htk_name {
	struct hlist_node node;
	char name[];
};

/* Names that only classes of the kernel may have; kept until module unload */
static DEFINE_HASHTABLE(htk_names, 10);
static DEFINE_MUTEX(htk_names_mutex);

static bool htk_name_find(const char *name, unsigned int len, u32 hash)
{
	struct htk_name *n;

	hash_for_each_possible(htk_names, n, node, hash) {
		if (!strncmp(n->name, name, len) && !n->name[len])
			return true;
	}
	return false;
}

/**
 * htk_origin_reserve() - reserve the name of a class for the kernel
 * @name: the name, NUL-terminated
 *
 * If there is no memory, the name is not reserved.
 *
 * Context: may sleep
 */
void htk_origin_reserve(const char *name)
{
	size_t len = strlen(name);
	u32 hash = full_name_hash(NULL, name, len);
	struct htk_name *n;

	mutex_lock(&htk_names_mutex);
	if (!htk_name_find(name, len, hash)) {
		n = kmalloc(struct_size(n, name, len + 1), GFP_KERNEL);
		if (n) {
			memcpy(n->name, name, len + 1);
			hash_add(htk_names, &n->node, hash);
		}
	}
	mutex_unlock(&htk_names_mutex);
}

static void htk_origin_tracepoint(struct tracepoint *tp, void *unused)
{
	htk_origin_reserve(tp->name);
}

static bool htk_name_reserved(const char *name, unsigned int len)
{
	static const char *const prefixes[] = {
		"sys_enter_", "sys_exit_", "lttng_statedump_", "function_",
	};
	unsigned int i;
	bool found;

	for (i = 0; i < ARRAY_SIZE(prefixes); i++) {
		unsigned int n = strlen(prefixes[i]);

		if (len > n && !strncmp(name, prefixes[i], n))
			return true;
	}
	mutex_lock(&htk_names_mutex);
	found = htk_name_find(name, len, full_name_hash(NULL, name, len));
	mutex_unlock(&htk_names_mutex);
	return found;
}

void htk_origin_init(void)
{
	if (IS_ENABLED(CONFIG_TRACEPOINTS))
		for_each_kernel_tracepoint(htk_origin_tracepoint, NULL);
}

void htk_origin_exit(void)
{
	struct hlist_node *next;
	struct htk_name *n;
	unsigned int i;

	hash_for_each_safe(htk_names, i, next, n, node) {
		hash_del(&n->node);
		kfree(n);
	}
}

/**
 * htk_origin_kernel_streams() - get the maximum number of streams that the
 *                               kernel may have
 * @h: the device
 *
 * Context: any
 */
unsigned int htk_origin_kernel_streams(const struct htk *h)
{
	unsigned int streams = h->core.caps.streams;

	if (kernel_streams)
		return min(kernel_streams, streams);
	return max(streams * 3 / 4, 1u);
}

static bool htk_origin_limited(const struct htk *h,
			       const struct htk_owner *owner)
{
	return owner != &h->kernel && !uid_eq(owner->uid, GLOBAL_ROOT_UID);
}

/**
 * htk_origin_may_open() - check whether an owner may open one more stream
 * @h: the device
 * @owner: the owner
 *
 * The answer for the kernel and for root is always true.  One stream for each
 * possible CPU is reserved for the kernel, but not more than
 * htk_origin_kernel_streams(), and never all streams of the device.  All users
 * other than root together may have as many streams as are not reserved.  Each
 * of these users may have at most half of that number, or one stream if half is
 * less than one.
 *
 * Context: h->control held
 */
bool htk_origin_may_open(const struct htk *h, const struct htk_owner *owner)
{
	unsigned int streams = h->core.caps.streams, all = 0, own = 0, most, i;

	if (!htk_origin_limited(h, owner))
		return true;
	most = streams - min3(htk_origin_kernel_streams(h),
			      num_possible_cpus(), streams - 1);
	for (i = 0; i < streams; i++) {
		const struct htk_owner *o = h->claims[i].owner;

		if (!o || !htk_origin_limited(h, o))
			continue;
		all++;
		own += uid_eq(o->uid, owner->uid);
	}
	return all < most && own < max(most / 2, 1u);
}

/**
 * htk_origin_name() - stamp a stream with its origin
 * @owner: the owner of the stream
 * @m: the message that opens the stream; the stream's name in @m becomes
 *     COMM/TID/UID, with COMM and TID of the calling thread, and UID of the
 *     user who opened the file
 *
 * Streams of the kernel are named kernel/CPU.  No stream of a program can have
 * such a name, since its name has two slashes at least.
 *
 * Context: process that opens the stream
 */
void htk_origin_name(const struct htk_owner *owner, struct ht_msg_open *m)
{
	char comm[TASK_COMM_LEN], ids[HT_STREAM_NAME_MAX];
	char *name = (char *)m->name;
	unsigned int i, len, room;

	len = scnprintf(ids, sizeof(ids), "/%d/%u",
			task_pid_nr_ns(current, &init_pid_ns),
			from_kuid_munged(&init_user_ns, owner->uid));
	get_task_comm(comm, current);
	room = HT_STREAM_NAME_MAX - len;
	memset(name, 0, HT_STREAM_NAME_MAX);
	for (i = 0; i < room && comm[i]; i++)
		name[i] = comm[i] >= ' ' && comm[i] <= '~' ? comm[i] : '?';
	memcpy(name + i, ids, len);
}

struct htk_user {
	struct hlist_node node;
	kuid_t uid;
	unsigned int classes;
};

/* Number of slots of the hash table h->known, which uses open addressing */
#define HTK_KNOWN	(2 * HT_CLASSES_MAX)

static siphash_key_t htk_class_key;

static u64 htk_class_hash(const struct ht_msg_class *m)
{
	/* A hash of 0 marks an empty slot, so set a bit of each hash. */
	return siphash(m->data, m->h.size - sizeof(*m), &htk_class_key) | 1;
}

/*
 * Find the slot of a class in h->known.  If the class is not known, find the
 * empty slot for it.
 *
 * Context: h->control held
 */
static u64 *htk_class_slot(struct htk *h, u64 hash)
{
	u32 i = hash >> 8;

	while (h->known[i % HTK_KNOWN] && h->known[i % HTK_KNOWN] != hash)
		i++;
	return &h->known[i % HTK_KNOWN];
}

/* Context: h->control held */
static struct htk_user *htk_user_get(struct htk *h, kuid_t uid)
{
	struct htk_user *u;

	hlist_for_each_entry(u, &h->users, node) {
		if (uid_eq(u->uid, uid))
			return u;
	}
	u = kzalloc(sizeof(*u), GFP_KERNEL);
	if (!u)
		return NULL;
	u->uid = uid;
	hlist_add_head(&u->node, &h->users);
	return u;
}

/*
 * Get the number of parts of a quota that a class takes.  The default limit of
 * a QEMU device, 1 MiB for all classes, is 128 bytes for each of HT_CLASSES_MAX
 * classes.  So a larger class counts as several, or large classes would use up
 * this memory before they use up the quota.
 */
static unsigned int htk_class_parts(const struct ht_msg_class *m)
{
	return DIV_ROUND_UP(m->h.size, 128);
}

/*
 * Check whether a user other than root may add classes that take @more parts,
 * see htk_class_parts().  The classes of one such user may take at most an
 * eighth of the maximum number of classes, and those of all such users together
 * at most one half.
 *
 * Context: h->control held
 */
static bool htk_user_may(const struct htk *h, const struct htk_user *user,
			 unsigned int more)
{
	unsigned int most = min(h->core.caps.max_classes, HT_CLASSES_MAX);

	return user && user->classes + more <= most / 8 &&
	       h->user_classes + more <= most / 2;
}

/*
 * Add a class to h->known if the host has registered it, and count it in the
 * quota of @user unless @user is NULL.  If the host has not replied, do so as
 * well, since the host may have registered the class.  m->h.size is the size of
 * the request.
 *
 * Context: h->control held
 */
static void htk_class_note(struct htk *h, struct htk_user *user,
			   const struct ht_msg_class *m, bool replied)
{
	u64 hash = htk_class_hash(m), *slot = htk_class_slot(h, hash);

	if ((replied && m->h.status != HT_STATUS_OK) || *slot ||
	    h->nr_known == HT_CLASSES_MAX)
		return;
	*slot = hash;
	h->nr_known++;
	if (user) {
		user->classes += htk_class_parts(m);
		h->user_classes += htk_class_parts(m);
	}
}

/* Context: h->control held */
static int htk_register_one(struct htk *h, const struct htk_owner *owner,
			    struct htk_user *user, struct ht_msg_class *m)
{
	bool known = *htk_class_slot(h, htk_class_hash(m));
	u32 size = m->h.size;
	int ret;

	if (htk_name_reserved((const char *)m->data, m->name_len)) {
		m->h.status = HT_STATUS_INVAL;
		return 0;
	}
	if (!known && htk_origin_limited(h, owner) &&
	    !htk_user_may(h, user, htk_class_parts(m))) {
		m->h.status = HT_STATUS_LIMIT;
		return 0;
	}
	ret = h->transport->exchange(h, &m->h, size);
	m->h.size = size;
	htk_class_note(h, user, m, !ret);
	return ret;
}

/*
 * Get the CLASS_REGISTER message at offset @pos of an exchange.
 *
 * Return: the message; NULL at the end; an ERR_PTR() if it is malformed.
 */
static struct ht_msg_class *htk_class_at(struct ht_msg *msg, u32 room, u32 pos)
{
	struct ht_msg_class *m = (void *)((u8 *)msg + pos);

	if (pos >= room)
		return NULL;
	if (room - pos < sizeof(*m) || m->h.size < sizeof(*m) ||
	    m->h.size > min(room - pos, HT_MESSAGE_MAX) ||
	    m->h.type != HT_MSG_CLASS_REGISTER ||
	    m->name_len > m->h.size - sizeof(*m))
		return ERR_PTR(-EINVAL);
	return m;
}

#define htk_for_each_class(m, msg, room, pos)				\
	for (pos = 0, m = htk_class_at(msg, room, 0);			\
	     !IS_ERR_OR_NULL(m);					\
	     pos = ALIGN(pos + m->h.size, HT_MESSAGE_ALIGN),		\
	     m = htk_class_at(msg, room, pos))

/**
 * htk_origin_register() - register classes of a program or of the kernel
 * @h: the device
 * @owner: the program's open file, or the kernel
 * @msg: consecutive messages; the replies overwrite them
 * @room: size of @msg in bytes
 *
 * The driver answers a program HT_STATUS_INVAL for a reserved name and
 * HT_STATUS_LIMIT for a class beyond the quota; the other classes are still
 * registered.  If no name is reserved and the quota suffices for all new
 * classes, the driver sends all messages in one exchange; else it sends each
 * message in an exchange of its own.
 *
 * Context: h->control held
 *
 * Return: 0, or a negative errno.
 */
int htk_origin_register(struct htk *h, const struct htk_owner *owner,
			struct ht_msg *msg, u32 room)
{
	bool limited = htk_origin_limited(h, owner), refused = false;
	struct htk_user *user = NULL;
	struct ht_msg_class *m;
	unsigned int more = 0;
	u32 pos;
	int ret;

	if (owner == &h->kernel) {
		htk_for_each_class(m, msg, room, pos)
			m->origin = HT_ORIGIN_KERNEL;
		return h->transport->exchange(h, msg, room);
	}
	htk_for_each_class(m, msg, room, pos) {
		m->origin = from_kuid_munged(&init_user_ns, owner->uid);
		if (!*htk_class_slot(h, htk_class_hash(m)))
			more += htk_class_parts(m);
		refused |= htk_name_reserved((const char *)m->data,
					     m->name_len);
	}
	if (IS_ERR(m))
		return PTR_ERR(m);
	if (limited && more) {
		user = htk_user_get(h, owner->uid);
		refused |= !htk_user_may(h, user, more);
	}
	if (!refused) {
		ret = h->transport->exchange(h, msg, room);
		htk_for_each_class(m, msg, room, pos)
			htk_class_note(h, user, m, !ret);
		return ret;
	}
	htk_for_each_class(m, msg, room, pos) {
		ret = htk_register_one(h, owner, user, m);
		if (ret)
			return ret;
	}
	return 0;
}

/**
 * htk_origin_forget() - forget the classes of a host that has ended
 * @h: the device
 *
 * Context: h->control held
 */
void htk_origin_forget(struct htk *h)
{
	struct htk_user *u;

	memset(h->known, 0, array_size(HTK_KNOWN, sizeof(*h->known)));
	h->nr_known = 0;
	h->user_classes = 0;
	hlist_for_each_entry(u, &h->users, node)
		u->classes = 0;
}

/**
 * htk_origin_new() - allocate the bookkeeping of classes and users of a device
 * @h: the device
 *
 * Context: may sleep
 *
 * Return: 0 or -ENOMEM.
 */
int htk_origin_new(struct htk *h)
{
	INIT_HLIST_HEAD(&h->users);
	get_random_once(&htk_class_key, sizeof(htk_class_key));
	h->known = vzalloc(array_size(HTK_KNOWN, sizeof(*h->known)));
	return h->known ? 0 : -ENOMEM;
}

void htk_origin_free(struct htk *h)
{
	struct hlist_node *next;
	struct htk_user *u;

	hlist_for_each_entry_safe(u, next, &h->users, node)
		kfree(u);
	vfree(h->known);
}
