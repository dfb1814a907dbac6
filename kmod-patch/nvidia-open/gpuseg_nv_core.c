// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which process owns which GPU channels, and which of them are disabled.
 *
 * State is held against desire: a process is to be held or not, a channel is off or not, and gpuseg_nv_reconcile()
 * issues what is missing. The Resource Manager (RM) counts: a channel disabled twice needs two enables. So `off` says
 * exactly whether one disable of ours is outstanding, and a channel is never named in a disable while it is.
 *
 * One mutex guards everything, RM calls included: they do not overlap anyway, RM has locks of its own around them.
 * Lock order: the driver's power management lock, a file's tree_lock, gpuseg_nv_lock, RM's own. The mutex is never
 * held while the driver works for an application, so a long ioctl of one delays no switch. An application's alloc, free
 * or close waits for at most one batch (64 channels).
 */
#include <linux/errno.h>
#include <linux/hashtable.h>
#include <linux/ktime.h>
#include <linux/jiffies.h>
#include <linux/list.h>
#include <linux/math64.h>
#include <linux/mutex.h>
#include <linux/pid.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/time_namespace.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "gpuseg_nv_internal.h"

#define CLASS_ROOT 0x0000u
#define CLASS_ROOT_NON_PRIV 0x0001u
#define CLASS_ROOT_CLIENT 0x0041u
#define CLASS_DEVICE 0x0080u
#define CLASS_SUBDEVICE 0x2080u
#define CLASS_TSG 0xa06cu
#define CLASS_FIRST_CHANNEL 0xa06fu

#define GPU_UNKNOWN U32_MAX
#define PROCESSES_MAX 4096
#define RETRY_MS 100
#define FILE_BITS 8

enum gpuseg_nv_object_kind {
	GPUSEG_NV_DEVICE,
	GPUSEG_NV_SUBDEVICE,
	GPUSEG_NV_TSG,
	GPUSEG_NV_CHANNEL,
	GPUSEG_NV_ENGINE
};

/* A process that has GPU objects, or that a controller named. */
struct gpuseg_nv_owner {
	struct list_head entry; /* of gpuseg_nv_owners */
	struct list_head clients;
	struct pid *pid;
	u64 start_ns;
	char name[GPUSEG_NV_NAME];
	bool wanted; /* a controller asked for it to be held */
	bool caught; /* a window did */
	bool exempt; /* from the window that is open */
	int error; /* of the switch in progress */
};

struct gpuseg_nv_file {
	struct hlist_node hash;
	const void *key;
	struct mutex tree_lock; /* held while RM changes the tree of objects, so that the records and RM agree */
	struct list_head clients;
	unsigned int users; /* begin .. end */
};

struct gpuseg_nv_client {
	struct list_head of_file;
	struct list_head of_owner;
	struct gpuseg_nv_file *file;
	struct gpuseg_nv_owner *owner;
	struct list_head objects;
	u32 handle;
	bool going;
};

struct gpuseg_nv_object {
	struct list_head entry;
	enum gpuseg_nv_object_kind kind;
	u32 handle;
	u32 parent;
	u32 gpu; /* of a device, once a subdevice told it */
	bool compute; /* of a TSG, or a channel outside one: it has a compute or graphics object */
	bool off; /* of a channel: one disable of ours is outstanding */
	bool going; /* being freed: must not be named */
	u32 tried; /* number of the reconciliation that met it last */
};

struct gpuseg_nv_batch {
	u32 n;
	u32 gpu;
	u32 carrier_client;
	u32 carrier_subdevice;
	u32 clients[GPUSEG_NV_BATCH_MAX];
	u32 channels[GPUSEG_NV_BATCH_MAX];
	struct gpuseg_nv_object *objects[GPUSEG_NV_BATCH_MAX];
	struct gpuseg_nv_owner *owners[GPUSEG_NV_BATCH_MAX];
};

static DEFINE_MUTEX(gpuseg_nv_lock);
static DEFINE_HASHTABLE(gpuseg_nv_files, FILE_BITS);
static LIST_HEAD(gpuseg_nv_owners);
static DECLARE_WAIT_QUEUE_HEAD(gpuseg_nv_news_queue);

/* All below: under gpuseg_nv_lock. */
static bool gpuseg_nv_controlled;
static bool gpuseg_nv_window;
static bool gpuseg_nv_all_engines;
static bool gpuseg_nv_lapsed;
static bool gpuseg_nv_news;
static u32 gpuseg_nv_watchdog_ms;
static u32 gpuseg_nv_owner_count;
static u32 gpuseg_nv_round;
static struct gpuseg_nv_batch gpuseg_nv_batch;
static u32 gpuseg_nv_name_count;
static char gpuseg_nv_names[GPUSEG_NV_NAMES_MAX][GPUSEG_NV_NAME];
static u64 gpuseg_nv_rm_calls;
static u64 gpuseg_nv_rm_failures;
static u64 gpuseg_nv_caught_count;
static u64 gpuseg_nv_lapse_count;
static u32 gpuseg_nv_first_status; /* of the switch in progress */
static u64 gpuseg_nv_rm_ns;

static void gpuseg_nv_watchdog_lapsed(struct work_struct *work);
static void gpuseg_nv_retry(struct work_struct *work);
static DECLARE_DELAYED_WORK(gpuseg_nv_watchdog_work, gpuseg_nv_watchdog_lapsed);
static DECLARE_DELAYED_WORK(gpuseg_nv_retry_work, gpuseg_nv_retry);

static bool gpuseg_nv_is_root(u32 class_id)
{
	return class_id == CLASS_ROOT || class_id == CLASS_ROOT_NON_PRIV || class_id == CLASS_ROOT_CLIENT;
}

static bool gpuseg_nv_is_channel(u32 class_id)
{
	return (class_id & 0xff) == 0x6f && class_id >= CLASS_FIRST_CHANNEL;
}

/* Compute (..c0) and 3D (..97) objects below a channel say that it feeds the graphics engine. */
static bool gpuseg_nv_is_engine(u32 class_id)
{
	return class_id > 0xff && ((class_id & 0xff) == 0xc0 || (class_id & 0xff) == 0x97);
}

bool gpuseg_nv_watches(u32 class_id)
{
	return gpuseg_nv_is_root(class_id) || class_id == CLASS_DEVICE || class_id == CLASS_SUBDEVICE ||
	       class_id == CLASS_TSG || gpuseg_nv_is_channel(class_id) || gpuseg_nv_is_engine(class_id);
}

/* --- processes --- */

static struct gpuseg_nv_owner *gpuseg_nv_owner_of(struct pid *pid)
{
	struct gpuseg_nv_owner *p;

	list_for_each_entry(p, &gpuseg_nv_owners, entry)
		if (p->pid == pid)
			return p;
	return NULL;
}

/* Takes a reference of its own on pid. */
static struct gpuseg_nv_owner *gpuseg_nv_owner_get(struct pid *pid, const struct task_struct *leader)
{
	struct gpuseg_nv_owner *p = gpuseg_nv_owner_of(pid);

	if (p)
		return p;
	if (gpuseg_nv_owner_count >= PROCESSES_MAX)
		return NULL;
	p = kzalloc(sizeof(*p), GFP_KERNEL_ACCOUNT);
	if (!p)
		return NULL;
	INIT_LIST_HEAD(&p->clients);
	p->pid = get_pid(pid);
	p->start_ns = leader->start_boottime;
	strscpy(p->name, leader->comm, sizeof(p->name));
	list_add_tail(&p->entry, &gpuseg_nv_owners);
	gpuseg_nv_owner_count++;
	return p;
}

static bool gpuseg_nv_is_held(const struct gpuseg_nv_owner *p)
{
	return p->wanted || p->caught;
}

static bool gpuseg_nv_is_alive(const struct gpuseg_nv_owner *p)
{
	struct task_struct *task = get_pid_task(p->pid, PIDTYPE_TGID);
	bool alive;

	if (!task)
		return false;
	alive = !READ_ONCE(task->exit_state) || !thread_group_empty(task);
	put_task_struct(task);
	return alive;
}

/* Frees a process that has no clients and that no controller named. */
static void gpuseg_nv_owner_put(struct gpuseg_nv_owner *p)
{
	if (!list_empty(&p->clients) || gpuseg_nv_is_held(p) || p->exempt)
		return;
	list_del(&p->entry);
	gpuseg_nv_owner_count--;
	put_pid(p->pid);
	kfree(p);
}

/* --- files, clients, objects --- */

static struct gpuseg_nv_file *gpuseg_nv_file_of(const void *key)
{
	struct gpuseg_nv_file *f;

	hash_for_each_possible(gpuseg_nv_files, f, hash, (unsigned long)key)
		if (f->key == key)
			return f;
	return NULL;
}

static struct gpuseg_nv_file *gpuseg_nv_file_get(const void *key)
{
	struct gpuseg_nv_file *f = gpuseg_nv_file_of(key);

	if (f)
		return f;
	f = kzalloc(sizeof(*f), GFP_KERNEL_ACCOUNT);
	if (!f)
		return NULL;
	f->key = key;
	mutex_init(&f->tree_lock);
	INIT_LIST_HEAD(&f->clients);
	hash_add(gpuseg_nv_files, &f->hash, (unsigned long)key);
	return f;
}

static void gpuseg_nv_file_put(struct gpuseg_nv_file *f)
{
	if (f->users || !list_empty(&f->clients))
		return;
	hash_del(&f->hash);
	mutex_destroy(&f->tree_lock);
	kfree(f);
}

static struct gpuseg_nv_client *gpuseg_nv_client_of(const struct gpuseg_nv_file *f, u32 handle)
{
	struct gpuseg_nv_client *c;

	list_for_each_entry(c, &f->clients, of_file)
		if (c->handle == handle && !c->going)
			return c;
	return NULL;
}

static struct gpuseg_nv_object *gpuseg_nv_object_of(const struct gpuseg_nv_client *c, u32 handle)
{
	struct gpuseg_nv_object *o;

	list_for_each_entry(o, &c->objects, entry)
		if (o->handle == handle && !o->going)
			return o;
	return NULL;
}

static void gpuseg_nv_client_free(struct gpuseg_nv_client *c)
{
	struct gpuseg_nv_owner *p = c->owner;
	struct gpuseg_nv_object *o, *next;

	list_for_each_entry_safe(o, next, &c->objects, entry)
		kfree(o);
	list_del(&c->of_file);
	list_del(&c->of_owner);
	kfree(c);
	gpuseg_nv_owner_put(p);
}

/* --- what must be disabled --- */

/* The TSG of a channel, or the channel itself outside one. */
static struct gpuseg_nv_object *gpuseg_nv_group_of(const struct gpuseg_nv_client *c, struct gpuseg_nv_object *channel)
{
	struct gpuseg_nv_object *parent = gpuseg_nv_object_of(c, channel->parent);

	return parent && parent->kind == GPUSEG_NV_TSG ? parent : channel;
}

static struct gpuseg_nv_object *gpuseg_nv_device_of(const struct gpuseg_nv_client *c, struct gpuseg_nv_object *channel)
{
	struct gpuseg_nv_object *o = gpuseg_nv_object_of(c, channel->parent);

	if (o && o->kind == GPUSEG_NV_TSG)
		o = gpuseg_nv_object_of(c, o->parent);
	return o && o->kind == GPUSEG_NV_DEVICE ? o : NULL;
}

static struct gpuseg_nv_object *gpuseg_nv_subdevice_of(const struct gpuseg_nv_client *c,
						       const struct gpuseg_nv_object *device)
{
	struct gpuseg_nv_object *o;

	list_for_each_entry(o, &c->objects, entry)
		if (o->kind == GPUSEG_NV_SUBDEVICE && !o->going && o->parent == device->handle)
			return o;
	return NULL;
}

static bool gpuseg_nv_should_be_off(const struct gpuseg_nv_client *c, struct gpuseg_nv_object *channel)
{
	return gpuseg_nv_is_held(c->owner) && (gpuseg_nv_all_engines || gpuseg_nv_group_of(c, channel)->compute);
}

/* --- RM calls --- */

static u32 gpuseg_nv_call(bool disable, u32 n, const u32 *clients, const u32 *channels)
{
	struct gpuseg_nv_batch *b = &gpuseg_nv_batch;
	const u64 began = ktime_get_ns();
	u32 status;

	status = gpuseg_nv_rm_switch(b->carrier_client, b->carrier_subdevice, disable, n, clients, channels);
	gpuseg_nv_rm_ns += ktime_get_ns() - began;
	gpuseg_nv_rm_calls++;
	if (status != GPUSEG_NV_RM_OK) {
		gpuseg_nv_rm_failures++;
		if (gpuseg_nv_first_status == GPUSEG_NV_RM_OK)
			gpuseg_nv_first_status = status;
	}
	return status;
}

static bool gpuseg_nv_is_gone(u32 status)
{
	return status == GPUSEG_NV_RM_INVALID_CHANNEL || status == GPUSEG_NV_RM_INVALID_CLIENT ||
	       status == GPUSEG_NV_RM_OBJECT_NOT_FOUND;
}

static void gpuseg_nv_flush(bool disable)
{
	struct gpuseg_nv_batch *b = &gpuseg_nv_batch;
	u32 i;

	if (gpuseg_nv_call(disable, b->n, b->clients, b->channels) == GPUSEG_NV_RM_OK) {
		for (i = 0; i < b->n; i++)
			b->objects[i]->off = disable;
		return;
	}
	/*
	 * RM stopped somewhere in the list. An enable too many is ignored, so each channel can be brought to a known
	 * state separately: if they were to be disabled, all of them are enabled first.
	 */
	if (disable && b->n > 1)
		for (i = 0; i < b->n; i++)
			gpuseg_nv_call(false, 1, &b->clients[i], &b->channels[i]);
	for (i = 0; i < b->n; i++) {
		const u32 status = gpuseg_nv_call(disable, 1, &b->clients[i], &b->channels[i]);

		if (status == GPUSEG_NV_RM_OK || (!disable && gpuseg_nv_is_gone(status)))
			b->objects[i]->off = disable;
		else if (!b->owners[i]->error)
			b->owners[i]->error = -EIO;
	}
}

/* Fills the batch with channels of one GPU in the wrong state; each is visited once per round. False: none left. */
static bool gpuseg_nv_collect(bool disable)
{
	struct gpuseg_nv_batch *b = &gpuseg_nv_batch;
	struct gpuseg_nv_owner *p;
	struct gpuseg_nv_client *c;
	struct gpuseg_nv_object *o;

	b->n = 0;
	list_for_each_entry(p, &gpuseg_nv_owners, entry) {
		list_for_each_entry(c, &p->clients, of_owner) {
			if (c->going)
				continue;
			list_for_each_entry(o, &c->objects, entry) {
				struct gpuseg_nv_object *device, *subdevice;

				if (o->kind != GPUSEG_NV_CHANNEL || o->going || o->tried == gpuseg_nv_round ||
				    o->off == disable || gpuseg_nv_should_be_off(c, o) != disable)
					continue;
				device = gpuseg_nv_device_of(c, o);
				subdevice = device ? gpuseg_nv_subdevice_of(c, device) : NULL;
				if (!subdevice || device->gpu == GPU_UNKNOWN) {
					/* Its subdevice is made later; then there is another round. */
					o->tried = gpuseg_nv_round;
					if (!p->error)
						p->error = -EIO;
					continue;
				}
				if (b->n == 0) {
					b->gpu = device->gpu;
					b->carrier_client = c->handle;
					b->carrier_subdevice = subdevice->handle;
				} else if (b->gpu != device->gpu) {
					continue;
				}
				o->tried = gpuseg_nv_round;
				b->clients[b->n] = c->handle;
				b->channels[b->n] = o->handle;
				b->owners[b->n] = p;
				b->objects[b->n] = o;
				if (++b->n == GPUSEG_NV_BATCH_MAX)
					return true;
			}
		}
	}
	return b->n > 0;
}

static void gpuseg_nv_pass(bool disable)
{
	gpuseg_nv_round++;
	while (gpuseg_nv_collect(disable))
		gpuseg_nv_flush(disable);
}

static bool gpuseg_nv_left_off(void)
{
	struct gpuseg_nv_owner *p;
	struct gpuseg_nv_client *c;
	struct gpuseg_nv_object *o;

	list_for_each_entry(p, &gpuseg_nv_owners, entry)
		list_for_each_entry(c, &p->clients, of_owner)
			list_for_each_entry(o, &c->objects, entry)
				if (o->kind == GPUSEG_NV_CHANNEL && o->off && !o->going && !c->going &&
				    !gpuseg_nv_should_be_off(c, o))
					return true;
	return false;
}

/* Disables first, then enables. The caller has entered RM. */
static void gpuseg_nv_reconcile(void)
{
	gpuseg_nv_pass(true);
	gpuseg_nv_pass(false);
	if (gpuseg_nv_left_off())
		mod_delayed_work(system_freezable_wq, &gpuseg_nv_retry_work, msecs_to_jiffies(RETRY_MS));
}

static void gpuseg_nv_retry(struct work_struct *work)
{
	if (gpuseg_nv_rm_enter()) {
		mod_delayed_work(system_freezable_wq, &gpuseg_nv_retry_work, msecs_to_jiffies(RETRY_MS));
		return;
	}
	mutex_lock(&gpuseg_nv_lock);
	gpuseg_nv_reconcile();
	mutex_unlock(&gpuseg_nv_lock);
	gpuseg_nv_rm_leave();
}

/* --- the driver's side --- */

static bool gpuseg_nv_is_protected(const struct gpuseg_nv_owner *p)
{
	u32 i;

	for (i = 0; i < gpuseg_nv_name_count; i++)
		if (strncmp(gpuseg_nv_names[i], p->name, GPUSEG_NV_NAME) == 0)
			return true;
	return false;
}

static u32 gpuseg_nv_count_channels(const struct gpuseg_nv_owner *p, bool off)
{
	const struct gpuseg_nv_client *c;
	const struct gpuseg_nv_object *o;
	u32 n = 0;

	list_for_each_entry(c, &p->clients, of_owner)
		list_for_each_entry(o, &c->objects, entry)
			n += o->kind == GPUSEG_NV_CHANNEL && (o->off || !off);
	return n;
}

/* A process that creates its first channel while a window is open starts held. */
static void gpuseg_nv_catch(struct gpuseg_nv_owner *p)
{
	if (!gpuseg_nv_window || p->exempt || gpuseg_nv_is_held(p) || gpuseg_nv_count_channels(p, false) != 1)
		return;
	strscpy(p->name, current->group_leader->comm, sizeof(p->name)); /* it may have called execve since */
	if (gpuseg_nv_is_protected(p))
		return;
	p->caught = true;
	gpuseg_nv_news = true;
	gpuseg_nv_caught_count++;
	wake_up_interruptible(&gpuseg_nv_news_queue);
}

static int gpuseg_nv_client_created(struct gpuseg_nv_file *f, u32 handle)
{
	struct gpuseg_nv_owner *p;
	struct gpuseg_nv_client *c;

	c = kzalloc(sizeof(*c), GFP_KERNEL_ACCOUNT);
	p = c ? gpuseg_nv_owner_get(task_tgid(current), current->group_leader) : NULL;
	if (!p) {
		kfree(c);
		return -ENOMEM;
	}
	INIT_LIST_HEAD(&c->objects);
	c->handle = handle;
	c->file = f;
	c->owner = p;
	list_add_tail(&c->of_file, &f->clients);
	list_add_tail(&c->of_owner, &p->clients);
	return 0;
}

static int gpuseg_nv_add(struct gpuseg_nv_client *c, enum gpuseg_nv_object_kind kind, u32 parent, u32 handle)
{
	struct gpuseg_nv_object *above;
	struct gpuseg_nv_object *o;

	if (kind == GPUSEG_NV_ENGINE) { /* only marks the channel that is its parent */
		above = gpuseg_nv_object_of(c, parent);
		if (above && above->kind == GPUSEG_NV_CHANNEL)
			gpuseg_nv_group_of(c, above)->compute = true;
		return 0;
	}
	o = kzalloc(sizeof(*o), GFP_KERNEL_ACCOUNT);
	if (!o)
		return -ENOMEM;
	o->kind = kind;
	o->handle = handle;
	o->parent = parent;
	o->gpu = GPU_UNKNOWN;
	list_add_tail(&o->entry, &c->objects);
	if (kind == GPUSEG_NV_CHANNEL)
		gpuseg_nv_catch(c->owner);
	if (kind == GPUSEG_NV_SUBDEVICE) {
		above = gpuseg_nv_object_of(c, parent);
		if (above && above->kind == GPUSEG_NV_DEVICE && gpuseg_nv_rm_gpu_id(c->handle, handle, &above->gpu))
			above->gpu = GPU_UNKNOWN;
	}
	return 0;
}

static enum gpuseg_nv_object_kind gpuseg_nv_classify(u32 class_id)
{
	if (class_id == CLASS_DEVICE)
		return GPUSEG_NV_DEVICE;
	if (class_id == CLASS_SUBDEVICE)
		return GPUSEG_NV_SUBDEVICE;
	if (class_id == CLASS_TSG)
		return GPUSEG_NV_TSG;
	return gpuseg_nv_is_channel(class_id) ? GPUSEG_NV_CHANNEL : GPUSEG_NV_ENGINE;
}

struct gpuseg_nv_file *gpuseg_nv_begin(const void *file)
{
	struct gpuseg_nv_file *f;

	mutex_lock(&gpuseg_nv_lock);
	f = gpuseg_nv_file_get(file);
	if (f)
		f->users++;
	mutex_unlock(&gpuseg_nv_lock);
	if (f)
		mutex_lock(&f->tree_lock);
	return f;
}

static void gpuseg_nv_end_locked(struct gpuseg_nv_file *f)
{
	mutex_unlock(&f->tree_lock);
	f->users--;
	gpuseg_nv_file_put(f);
}

void gpuseg_nv_end(struct gpuseg_nv_file *f)
{
	mutex_lock(&gpuseg_nv_lock);
	gpuseg_nv_end_locked(f);
	mutex_unlock(&gpuseg_nv_lock);
}

int gpuseg_nv_created(struct gpuseg_nv_file *f, u32 client, u32 parent, u32 handle, u32 class_id)
{
	struct gpuseg_nv_client *c;
	int result = 0;

	mutex_lock(&gpuseg_nv_lock);
	if (gpuseg_nv_is_root(class_id)) {
		result = gpuseg_nv_client_created(f, handle);
	} else {
		c = gpuseg_nv_client_of(f, client);
		if (c) {
			result = gpuseg_nv_add(c, gpuseg_nv_classify(class_id), parent, handle);
			if (gpuseg_nv_is_held(c->owner))
				gpuseg_nv_reconcile();
		}
	}
	mutex_unlock(&gpuseg_nv_lock);
	return result;
}

static struct gpuseg_nv_client *gpuseg_nv_client_anywhere(u32 handle)
{
	struct gpuseg_nv_owner *p;
	struct gpuseg_nv_client *c;

	list_for_each_entry(p, &gpuseg_nv_owners, entry)
		list_for_each_entry(c, &p->clients, of_owner)
			if (c->handle == handle && !c->going)
				return c;
	return NULL;
}

int gpuseg_nv_duplicated(struct gpuseg_nv_file *f, u32 client, u32 parent, u32 handle, u32 source_client, u32 source)
{
	struct gpuseg_nv_client *from, *to;
	struct gpuseg_nv_object *o;
	int result = 0;

	mutex_lock(&gpuseg_nv_lock);
	from = gpuseg_nv_client_anywhere(source_client);
	to = gpuseg_nv_client_of(f, client);
	o = from && to ? gpuseg_nv_object_of(from, source) : NULL;
	if (o) {
		const bool compute = o->compute;

		result = gpuseg_nv_add(to, o->kind, parent, handle);
		o = result ? NULL : gpuseg_nv_object_of(to, handle);
		if (o)
			o->compute = compute;
		if (gpuseg_nv_is_held(to->owner))
			gpuseg_nv_reconcile();
	}
	mutex_unlock(&gpuseg_nv_lock);
	return result;
}

/* Marks an object and everything below it. */
static void gpuseg_nv_mark(struct gpuseg_nv_client *c, u32 handle)
{
	struct gpuseg_nv_object *o;
	bool more;

	o = gpuseg_nv_object_of(c, handle);
	if (!o)
		return;
	o->going = true;
	do {
		more = false;
		list_for_each_entry(o, &c->objects, entry) {
			struct gpuseg_nv_object *above;

			if (o->going)
				continue;
			list_for_each_entry(above, &c->objects, entry)
				if (above->going && above->handle == o->parent) {
					o->going = true;
					more = true;
					break;
				}
		}
	} while (more);
}

struct gpuseg_nv_file *gpuseg_nv_free_begin(const void *file, u32 client, u32 handle)
{
	struct gpuseg_nv_file *f;
	struct gpuseg_nv_client *c;

	mutex_lock(&gpuseg_nv_lock);
	f = gpuseg_nv_file_of(file);
	c = f ? gpuseg_nv_client_of(f, client) : NULL;
	if (!c || (handle != client && !gpuseg_nv_object_of(c, handle))) {
		mutex_unlock(&gpuseg_nv_lock);
		return NULL;
	}
	f->users++;
	mutex_unlock(&gpuseg_nv_lock);

	mutex_lock(&f->tree_lock);
	mutex_lock(&gpuseg_nv_lock);
	c = gpuseg_nv_client_of(f, client);
	if (c && handle == client)
		c->going = true;
	else if (c)
		gpuseg_nv_mark(c, handle);
	mutex_unlock(&gpuseg_nv_lock);
	return f;
}

void gpuseg_nv_free_end(struct gpuseg_nv_file *f, bool freed)
{
	struct gpuseg_nv_client *c, *next_client;
	struct gpuseg_nv_object *o, *next;

	mutex_lock(&gpuseg_nv_lock);
	list_for_each_entry_safe(c, next_client, &f->clients, of_file) {
		if (c->going && freed) {
			gpuseg_nv_client_free(c);
			continue;
		}
		c->going = false;
		list_for_each_entry_safe(o, next, &c->objects, entry) {
			if (!o->going)
				continue;
			o->going = false;
			if (freed) {
				list_del(&o->entry);
				kfree(o);
			}
		}
	}
	if (!freed)
		gpuseg_nv_reconcile(); /* changes made meanwhile were not applied to them */
	gpuseg_nv_end_locked(f);
	mutex_unlock(&gpuseg_nv_lock);
}

void gpuseg_nv_file_gone(const void *file)
{
	struct gpuseg_nv_client *c, *next;
	struct gpuseg_nv_file *f;

	mutex_lock(&gpuseg_nv_lock);
	f = gpuseg_nv_file_of(file);
	if (f) {
		list_for_each_entry_safe(c, next, &f->clients, of_file)
			gpuseg_nv_client_free(c);
		gpuseg_nv_file_put(f);
	}
	mutex_unlock(&gpuseg_nv_lock);
}

/* --- the controller's side --- */

static void gpuseg_nv_feed(void)
{
	if (gpuseg_nv_watchdog_ms)
		mod_delayed_work(system_freezable_wq, &gpuseg_nv_watchdog_work,
				 msecs_to_jiffies(gpuseg_nv_watchdog_ms));
}

static void gpuseg_nv_want_nothing(void)
{
	struct gpuseg_nv_owner *p;

	gpuseg_nv_window = false;
	list_for_each_entry(p, &gpuseg_nv_owners, entry) {
		p->wanted = false;
		p->caught = false;
		p->exempt = false;
	}
}

/* The caller has entered RM. */
static void gpuseg_nv_let_go_of_everything(void)
{
	struct gpuseg_nv_owner *p, *next;

	gpuseg_nv_want_nothing();
	gpuseg_nv_reconcile();
	list_for_each_entry_safe(p, next, &gpuseg_nv_owners, entry)
		gpuseg_nv_owner_put(p);
}

static void gpuseg_nv_watchdog_lapsed(struct work_struct *work)
{
	const bool entered = gpuseg_nv_rm_enter() == 0;

	mutex_lock(&gpuseg_nv_lock);
	if (!entered) {
		gpuseg_nv_feed(); /* the driver and all channels are suspended; try again after it resumes */
	} else if (gpuseg_nv_controlled && gpuseg_nv_watchdog_ms) {
		gpuseg_nv_let_go_of_everything();
		gpuseg_nv_lapsed = true;
		gpuseg_nv_lapse_count++;
	}
	mutex_unlock(&gpuseg_nv_lock);
	if (entered)
		gpuseg_nv_rm_leave();
}

int gpuseg_nv_controller_open(void)
{
	int result = 0;

	mutex_lock(&gpuseg_nv_lock);
	if (gpuseg_nv_controlled)
		result = -EBUSY;
	else
		gpuseg_nv_controlled = true;
	mutex_unlock(&gpuseg_nv_lock);
	return result;
}

void gpuseg_nv_controller_close(void)
{
	bool entered;

	cancel_delayed_work_sync(&gpuseg_nv_watchdog_work);
	entered = gpuseg_nv_rm_enter() == 0;
	mutex_lock(&gpuseg_nv_lock);
	gpuseg_nv_watchdog_ms = 0;
	if (entered) {
		gpuseg_nv_let_go_of_everything();
	} else {
		gpuseg_nv_want_nothing();
		mod_delayed_work(system_freezable_wq, &gpuseg_nv_retry_work, 0);
	}
	gpuseg_nv_name_count = 0;
	gpuseg_nv_all_engines = false;
	gpuseg_nv_lapsed = false;
	gpuseg_nv_news = false;
	gpuseg_nv_controlled = false;
	mutex_unlock(&gpuseg_nv_lock);
	if (entered)
		gpuseg_nv_rm_leave();
}

/* Start of a process in the unit and the view of /proc/<pid>/stat. */
static u64 gpuseg_nv_start_ticks(u64 start_ns)
{
	return div_u64(timens_add_boottime_ns(start_ns), NSEC_PER_SEC / USER_HZ);
}

static struct gpuseg_nv_owner *gpuseg_nv_owner_named(const struct gpuseg_nv_target *t, int *result)
{
	struct pid *pid = find_get_pid(t->pid);
	struct task_struct *task = pid ? get_pid_task(pid, PIDTYPE_TGID) : NULL;
	struct gpuseg_nv_owner *p = NULL;

	*result = -ESRCH;
	if (task && !(task->flags & PF_KTHREAD) &&
	    (!t->start_ticks || t->start_ticks == gpuseg_nv_start_ticks(task->start_boottime))) {
		p = gpuseg_nv_owner_get(pid, task);
		*result = p ? 0 : -ENOSPC;
	}
	if (task)
		put_task_struct(task);
	put_pid(pid);
	return p;
}

/* A dead process need not be disabled any more: another process's descriptor keeps what is left of it. */
static void gpuseg_nv_forget_the_dead(void)
{
	struct gpuseg_nv_owner *p;

	list_for_each_entry(p, &gpuseg_nv_owners, entry)
		if ((gpuseg_nv_is_held(p) || p->exempt) && !gpuseg_nv_is_alive(p)) {
			p->wanted = false;
			p->caught = false;
			p->exempt = false;
		}
}

static void gpuseg_nv_apply_target(struct gpuseg_nv_target *t, struct gpuseg_nv_owner *p)
{
	switch (t->op) {
	case GPUSEG_NV_OP_HOLD:
		p->wanted = true;
		break;
	case GPUSEG_NV_OP_RELEASE:
		p->wanted = false;
		p->caught = false;
		break;
	default:
		p->exempt = true;
		break;
	}
}

int gpuseg_nv_switch(struct gpuseg_nv_switch *request, struct gpuseg_nv_target *targets)
{
	const u32 flags = request->flags;
	struct gpuseg_nv_owner *p, *next;
	bool failed = false;
	u64 calls;
	u32 i;
	int rc;

	if ((flags & GPUSEG_NV_WINDOW_OPEN && flags & GPUSEG_NV_WINDOW_CLOSE) ||
	    flags & ~(GPUSEG_NV_WINDOW_OPEN | GPUSEG_NV_WINDOW_CLOSE | GPUSEG_NV_ALL_ENGINES))
		return -EINVAL;
	for (i = 0; i < request->count; i++)
		if (targets[i].op < GPUSEG_NV_OP_HOLD || targets[i].op > GPUSEG_NV_OP_EXEMPT || targets[i].pid <= 0)
			return -EINVAL;
	rc = gpuseg_nv_rm_enter();
	if (rc)
		return rc;
	mutex_lock(&gpuseg_nv_lock);
	calls = gpuseg_nv_rm_calls;
	gpuseg_nv_first_status = GPUSEG_NV_RM_OK;
	gpuseg_nv_rm_ns = 0;
	gpuseg_nv_feed();
	gpuseg_nv_forget_the_dead();
	list_for_each_entry(p, &gpuseg_nv_owners, entry) {
		p->error = 0;
		if (flags & (GPUSEG_NV_WINDOW_OPEN | GPUSEG_NV_WINDOW_CLOSE))
			p->exempt = false;
		if (flags & GPUSEG_NV_WINDOW_CLOSE)
			p->caught = false;
	}
	if (flags & (GPUSEG_NV_WINDOW_OPEN | GPUSEG_NV_WINDOW_CLOSE))
		gpuseg_nv_window = flags & GPUSEG_NV_WINDOW_OPEN;
	gpuseg_nv_all_engines = flags & GPUSEG_NV_ALL_ENGINES;
	for (i = 0; i < request->count; i++) {
		p = gpuseg_nv_owner_named(&targets[i], &targets[i].result);
		if (p)
			gpuseg_nv_apply_target(&targets[i], p);
	}
	gpuseg_nv_reconcile();
	for (i = 0; i < request->count; i++) {
		int ignored;

		targets[i].channels = 0;
		p = targets[i].result ? NULL : gpuseg_nv_owner_named(&targets[i], &ignored);
		if (p) {
			targets[i].result = p->error;
			targets[i].channels = gpuseg_nv_count_channels(p, true);
		}
		failed |= targets[i].result != 0;
	}
	list_for_each_entry_safe(p, next, &gpuseg_nv_owners, entry)
		gpuseg_nv_owner_put(p);
	request->flags = flags | (gpuseg_nv_lapsed ? GPUSEG_NV_LAPSED : 0);
	gpuseg_nv_lapsed = false;
	request->took_ns = gpuseg_nv_rm_ns;
	request->rm_calls = gpuseg_nv_rm_calls - calls;
	request->rm_status = gpuseg_nv_first_status;
	mutex_unlock(&gpuseg_nv_lock);
	gpuseg_nv_rm_leave();
	return failed ? -EIO : 0;
}

int gpuseg_nv_set_watchdog(u32 period_ms)
{
	if (period_ms && (period_ms < GPUSEG_NV_WATCHDOG_MIN_MS || period_ms > GPUSEG_NV_WATCHDOG_MAX_MS))
		return -ERANGE;
	mutex_lock(&gpuseg_nv_lock);
	gpuseg_nv_watchdog_ms = period_ms;
	if (period_ms)
		gpuseg_nv_feed();
	else
		cancel_delayed_work(&gpuseg_nv_watchdog_work);
	mutex_unlock(&gpuseg_nv_lock);
	return 0;
}

int gpuseg_nv_protect(const char *name)
{
	int result = 0;

	mutex_lock(&gpuseg_nv_lock);
	if (gpuseg_nv_name_count < GPUSEG_NV_NAMES_MAX)
		strscpy(gpuseg_nv_names[gpuseg_nv_name_count++], name, GPUSEG_NV_NAME);
	else
		result = -ENOSPC;
	mutex_unlock(&gpuseg_nv_lock);
	return result;
}

u32 gpuseg_nv_list(struct gpuseg_nv_process *list, u32 room)
{
	struct gpuseg_nv_owner *p;
	u32 n = 0;

	mutex_lock(&gpuseg_nv_lock);
	gpuseg_nv_news = false;
	list_for_each_entry(p, &gpuseg_nv_owners, entry) {
		if (list_empty(&p->clients))
			continue;
		if (n++ >= room)
			continue;
		memset(list, 0, sizeof(*list));
		list->pid = pid_vnr(p->pid);
		list->start_ticks = gpuseg_nv_start_ticks(p->start_ns);
		list->flags = (gpuseg_nv_is_held(p) ? GPUSEG_NV_PROCESS_HELD : 0) |
			      (p->caught && !p->wanted ? GPUSEG_NV_PROCESS_CAUGHT : 0) |
			      (gpuseg_nv_is_alive(p) ? 0 : GPUSEG_NV_PROCESS_DEAD);
		strscpy(list->name, p->name, sizeof(list->name));
		list->channels = gpuseg_nv_count_channels(p, false);
		list->off = gpuseg_nv_count_channels(p, true);
		list++;
	}
	mutex_unlock(&gpuseg_nv_lock);
	return n;
}

void gpuseg_nv_info(struct gpuseg_nv_info *info)
{
	const struct gpuseg_nv_client *c;
	const struct gpuseg_nv_owner *p;

	memset(info, 0, sizeof(*info));
	mutex_lock(&gpuseg_nv_lock);
	info->abi = GPUSEG_NV_ABI;
	info->batch_max = GPUSEG_NV_BATCH_MAX;
	info->processes = gpuseg_nv_owner_count;
	info->window = gpuseg_nv_window;
	info->rm_calls = gpuseg_nv_rm_calls;
	info->rm_failures = gpuseg_nv_rm_failures;
	info->caught = gpuseg_nv_caught_count;
	info->lapses = gpuseg_nv_lapse_count;
	list_for_each_entry(p, &gpuseg_nv_owners, entry) {
		info->held += gpuseg_nv_is_held(p);
		info->off += gpuseg_nv_count_channels(p, true);
		info->channels += gpuseg_nv_count_channels(p, false);
		list_for_each_entry(c, &p->clients, of_owner)
			info->clients++;
	}
	mutex_unlock(&gpuseg_nv_lock);
}

bool gpuseg_nv_has_news(void)
{
	return READ_ONCE(gpuseg_nv_news);
}

struct wait_queue_head *gpuseg_nv_wait_queue(void)
{
	return &gpuseg_nv_news_queue;
}

void gpuseg_nv_core_exit(void)
{
	struct gpuseg_nv_owner *p, *next;

	cancel_delayed_work_sync(&gpuseg_nv_watchdog_work);
	cancel_delayed_work_sync(&gpuseg_nv_retry_work);
	WARN_ON(!hash_empty(gpuseg_nv_files));
	list_for_each_entry_safe(p, next, &gpuseg_nv_owners, entry)
		gpuseg_nv_owner_put(p);
	WARN_ON(!list_empty(&gpuseg_nv_owners));
}
