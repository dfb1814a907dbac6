// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which process owns which GPU channels, and which of them are off the hardware.
 *
 * State is held against desire: a process is to be held or not, a channel is off or not, and reconcile() issues what is
 * missing. The Resource Manager (RM) counts: a channel disabled twice needs two enables. So `off` says exactly whether
 * one disable of ours is outstanding, and a channel is never named in a disable while it is.
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

enum object_kind { DEVICE, SUBDEVICE, TSG, CHANNEL, ENGINE };

struct process {
	struct list_head entry; /* of processes */
	struct list_head clients;
	struct pid *pid;
	u64 start_ns;
	char name[GPUSEG_NV_NAME];
	bool wanted;	 /* a controller asked for it to be held */
	bool caught;	 /* a window did */
	bool exempt;	 /* from the window that is open */
	int error;	 /* of the switch in progress */
};

struct gpuseg_nv_file {
	struct hlist_node hash;
	const void *key;
	struct mutex tree_lock; /* held while RM changes the tree of objects, so that the records and RM agree */
	struct list_head clients;
	unsigned int users; /* begin .. end */
};

struct client {
	struct list_head of_file;
	struct list_head of_process;
	struct gpuseg_nv_file *file;
	struct process *process;
	struct list_head objects;
	u32 handle;
	bool going;
};

struct object {
	struct list_head entry;
	enum object_kind kind;
	u32 handle;
	u32 parent;
	u32 gpu;       /* of a device, once a subdevice told it */
	bool compute;  /* of a TSG, or a channel outside one: it has a compute or graphics object */
	bool off;      /* of a channel: one disable of ours is outstanding */
	bool going;    /* being freed: must not be named */
	u32 tried;     /* number of the reconciliation that met it last */
};

struct batch {
	u32 n;
	u32 gpu;
	u32 carrier_client;
	u32 carrier_subdevice;
	u32 clients[GPUSEG_NV_BATCH_MAX];
	u32 channels[GPUSEG_NV_BATCH_MAX];
	struct object *objects[GPUSEG_NV_BATCH_MAX];
	struct process *owners[GPUSEG_NV_BATCH_MAX];
};

static DEFINE_MUTEX(gpuseg_nv_lock);
static DEFINE_HASHTABLE(files, FILE_BITS);
static LIST_HEAD(processes);
static DECLARE_WAIT_QUEUE_HEAD(news_queue);

/* All below: under gpuseg_nv_lock. */
static bool controlled;
static bool window;
static bool all_engines;
static bool lapsed;
static bool news;
static u32 watchdog_ms;
static u32 process_count;
static u32 round;
static struct batch batch;
static u32 name_count;
static char names[GPUSEG_NV_NAMES_MAX][GPUSEG_NV_NAME];
static u64 rm_calls;
static u64 rm_failures;
static u64 caught_count;
static u64 lapse_count;
static u32 first_status; /* of the switch in progress */
static u64 rm_ns;

static void watchdog_lapsed(struct work_struct *work);
static void retry(struct work_struct *work);
static DECLARE_DELAYED_WORK(watchdog_work, watchdog_lapsed);
static DECLARE_DELAYED_WORK(retry_work, retry);

static bool is_root(u32 class_id)
{
	return class_id == CLASS_ROOT || class_id == CLASS_ROOT_NON_PRIV || class_id == CLASS_ROOT_CLIENT;
}

static bool is_channel(u32 class_id)
{
	return (class_id & 0xff) == 0x6f && class_id >= CLASS_FIRST_CHANNEL;
}

/* Compute (..c0) and 3D (..97) objects below a channel say that it feeds the graphics engine. */
static bool is_engine(u32 class_id)
{
	return class_id > 0xff && ((class_id & 0xff) == 0xc0 || (class_id & 0xff) == 0x97);
}

bool gpuseg_nv_watches(u32 class_id)
{
	return is_root(class_id) || class_id == CLASS_DEVICE || class_id == CLASS_SUBDEVICE || class_id == CLASS_TSG ||
	       is_channel(class_id) || is_engine(class_id);
}

/* --- processes --- */

static struct process *process_of(struct pid *pid)
{
	struct process *p;

	list_for_each_entry(p, &processes, entry)
		if (p->pid == pid)
			return p;
	return NULL;
}

/* Takes a reference of its own on pid. */
static struct process *process_get(struct pid *pid, const struct task_struct *leader)
{
	struct process *p = process_of(pid);

	if (p)
		return p;
	if (process_count >= PROCESSES_MAX)
		return NULL;
	p = kzalloc(sizeof(*p), GFP_KERNEL_ACCOUNT);
	if (!p)
		return NULL;
	INIT_LIST_HEAD(&p->clients);
	p->pid = get_pid(pid);
	p->start_ns = leader->start_boottime;
	strscpy(p->name, leader->comm, sizeof(p->name));
	list_add_tail(&p->entry, &processes);
	process_count++;
	return p;
}

static bool is_held(const struct process *p)
{
	return p->wanted || p->caught;
}

static bool is_alive(const struct process *p)
{
	struct task_struct *task = get_pid_task(p->pid, PIDTYPE_TGID);
	bool alive;

	if (!task)
		return false;
	alive = !READ_ONCE(task->exit_state) || !thread_group_empty(task);
	put_task_struct(task);
	return alive;
}

/* Forgets a process of which nothing is recorded and nothing wanted. */
static void process_put(struct process *p)
{
	if (!list_empty(&p->clients) || is_held(p) || p->exempt)
		return;
	list_del(&p->entry);
	process_count--;
	put_pid(p->pid);
	kfree(p);
}

/* --- files, clients, objects --- */

static struct gpuseg_nv_file *file_of(const void *key)
{
	struct gpuseg_nv_file *f;

	hash_for_each_possible(files, f, hash, (unsigned long)key)
		if (f->key == key)
			return f;
	return NULL;
}

static struct gpuseg_nv_file *file_get(const void *key)
{
	struct gpuseg_nv_file *f = file_of(key);

	if (f)
		return f;
	f = kzalloc(sizeof(*f), GFP_KERNEL_ACCOUNT);
	if (!f)
		return NULL;
	f->key = key;
	mutex_init(&f->tree_lock);
	INIT_LIST_HEAD(&f->clients);
	hash_add(files, &f->hash, (unsigned long)key);
	return f;
}

static void file_put(struct gpuseg_nv_file *f)
{
	if (f->users || !list_empty(&f->clients))
		return;
	hash_del(&f->hash);
	mutex_destroy(&f->tree_lock);
	kfree(f);
}

static struct client *client_of(const struct gpuseg_nv_file *f, u32 handle)
{
	struct client *c;

	list_for_each_entry(c, &f->clients, of_file)
		if (c->handle == handle && !c->going)
			return c;
	return NULL;
}

static struct object *object_of(const struct client *c, u32 handle)
{
	struct object *o;

	list_for_each_entry(o, &c->objects, entry)
		if (o->handle == handle && !o->going)
			return o;
	return NULL;
}

static void client_free(struct client *c)
{
	struct process *p = c->process;
	struct object *o, *next;

	list_for_each_entry_safe(o, next, &c->objects, entry)
		kfree(o);
	list_del(&c->of_file);
	list_del(&c->of_process);
	kfree(c);
	process_put(p);
}

/* --- what is to be off --- */

/* The TSG of a channel, or the channel itself outside one. */
static struct object *group_of(const struct client *c, struct object *channel)
{
	struct object *parent = object_of(c, channel->parent);

	return parent && parent->kind == TSG ? parent : channel;
}

static struct object *device_of(const struct client *c, struct object *channel)
{
	struct object *o = object_of(c, channel->parent);

	if (o && o->kind == TSG)
		o = object_of(c, o->parent);
	return o && o->kind == DEVICE ? o : NULL;
}

static struct object *subdevice_of(const struct client *c, const struct object *device)
{
	struct object *o;

	list_for_each_entry(o, &c->objects, entry)
		if (o->kind == SUBDEVICE && !o->going && o->parent == device->handle)
			return o;
	return NULL;
}

static bool should_be_off(const struct client *c, struct object *channel)
{
	return is_held(c->process) && (all_engines || group_of(c, channel)->compute);
}

/* --- RM calls --- */

static u32 call(bool disable, u32 n, const u32 *clients, const u32 *channels)
{
	const u64 began = ktime_get_ns();
	u32 status;

	status = gpuseg_nv_rm_switch(batch.carrier_client, batch.carrier_subdevice, disable, n, clients, channels);
	rm_ns += ktime_get_ns() - began;
	rm_calls++;
	if (status != GPUSEG_NV_RM_OK) {
		rm_failures++;
		if (first_status == GPUSEG_NV_RM_OK)
			first_status = status;
	}
	return status;
}

static bool is_gone(u32 status)
{
	return status == GPUSEG_NV_RM_INVALID_CHANNEL || status == GPUSEG_NV_RM_INVALID_CLIENT ||
	       status == GPUSEG_NV_RM_OBJECT_NOT_FOUND;
}

static void flush(bool disable)
{
	u32 i;

	if (call(disable, batch.n, batch.clients, batch.channels) == GPUSEG_NV_RM_OK) {
		for (i = 0; i < batch.n; i++)
			batch.objects[i]->off = disable;
		return;
	}
	/*
	 * RM stopped somewhere in the list. An enable too many is ignored, so each channel can be brought to a known
	 * state on its own: first all of them on, where they were to go off.
	 */
	if (disable && batch.n > 1)
		for (i = 0; i < batch.n; i++)
			call(false, 1, &batch.clients[i], &batch.channels[i]);
	for (i = 0; i < batch.n; i++) {
		const u32 status = call(disable, 1, &batch.clients[i], &batch.channels[i]);

		if (status == GPUSEG_NV_RM_OK || (!disable && is_gone(status)))
			batch.objects[i]->off = disable;
		else if (!batch.owners[i]->error)
			batch.owners[i]->error = -EIO;
	}
}

/* Fills the batch with channels of one GPU that are on the wrong side; each is met once per round. False: none left. */
static bool collect(bool disable)
{
	struct process *p;
	struct client *c;
	struct object *o;

	batch.n = 0;
	list_for_each_entry(p, &processes, entry) {
		list_for_each_entry(c, &p->clients, of_process) {
			if (c->going)
				continue;
			list_for_each_entry(o, &c->objects, entry) {
				struct object *device, *subdevice;

				if (o->kind != CHANNEL || o->going || o->tried == round || o->off == disable ||
				    should_be_off(c, o) != disable)
					continue;
				device = device_of(c, o);
				subdevice = device ? subdevice_of(c, device) : NULL;
				if (!subdevice || device->gpu == GPU_UNKNOWN) {
					o->tried = round; /* its subdevice comes later; then there is a next round */
					if (!p->error)
						p->error = -EIO;
					continue;
				}
				if (batch.n == 0) {
					batch.gpu = device->gpu;
					batch.carrier_client = c->handle;
					batch.carrier_subdevice = subdevice->handle;
				} else if (batch.gpu != device->gpu) {
					continue;
				}
				o->tried = round;
				batch.clients[batch.n] = c->handle;
				batch.channels[batch.n] = o->handle;
				batch.owners[batch.n] = p;
				batch.objects[batch.n] = o;
				if (++batch.n == GPUSEG_NV_BATCH_MAX)
					return true;
			}
		}
	}
	return batch.n > 0;
}

static void pass(bool disable)
{
	round++;
	while (collect(disable))
		flush(disable);
}

static bool left_off(void)
{
	struct process *p;
	struct client *c;
	struct object *o;

	list_for_each_entry(p, &processes, entry)
		list_for_each_entry(c, &p->clients, of_process)
			list_for_each_entry(o, &c->objects, entry)
				if (o->kind == CHANNEL && o->off && !o->going && !c->going && !should_be_off(c, o))
					return true;
	return false;
}

/* Off first, then back. The caller has entered RM. */
static void reconcile(void)
{
	pass(true);
	pass(false);
	if (left_off())
		mod_delayed_work(system_freezable_wq, &retry_work, msecs_to_jiffies(RETRY_MS));
}

static void retry(struct work_struct *work)
{
	if (gpuseg_nv_rm_enter()) {
		mod_delayed_work(system_freezable_wq, &retry_work, msecs_to_jiffies(RETRY_MS));
		return;
	}
	mutex_lock(&gpuseg_nv_lock);
	reconcile();
	mutex_unlock(&gpuseg_nv_lock);
	gpuseg_nv_rm_leave();
}

/* --- the driver's side --- */

static bool is_protected(const struct process *p)
{
	u32 i;

	for (i = 0; i < name_count; i++)
		if (strncmp(names[i], p->name, GPUSEG_NV_NAME) == 0)
			return true;
	return false;
}

static u32 count_channels(const struct process *p, bool off)
{
	const struct client *c;
	const struct object *o;
	u32 n = 0;

	list_for_each_entry(c, &p->clients, of_process)
		list_for_each_entry(o, &c->objects, entry)
			n += o->kind == CHANNEL && (o->off || !off);
	return n;
}

/* Whoever makes its first channel while a window is open starts held. */
static void catch(struct process *p)
{
	if (!window || p->exempt || is_held(p) || count_channels(p, false) != 1)
		return;
	strscpy(p->name, current->group_leader->comm, sizeof(p->name)); /* it may have called execve since */
	if (is_protected(p))
		return;
	p->caught = true;
	news = true;
	caught_count++;
	wake_up_interruptible(&news_queue);
}

static int client_created(struct gpuseg_nv_file *f, u32 handle)
{
	struct process *p;
	struct client *c;

	c = kzalloc(sizeof(*c), GFP_KERNEL_ACCOUNT);
	p = c ? process_get(task_tgid(current), current->group_leader) : NULL;
	if (!p) {
		kfree(c);
		return -ENOMEM;
	}
	INIT_LIST_HEAD(&c->objects);
	c->handle = handle;
	c->file = f;
	c->process = p;
	list_add_tail(&c->of_file, &f->clients);
	list_add_tail(&c->of_process, &p->clients);
	return 0;
}

static int add(struct client *c, enum object_kind kind, u32 parent, u32 handle)
{
	struct object *above;
	struct object *o;

	if (kind == ENGINE) { /* only says something about the channel that it hangs below */
		above = object_of(c, parent);
		if (above && above->kind == CHANNEL)
			group_of(c, above)->compute = true;
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
	if (kind == CHANNEL)
		catch(c->process);
	if (kind == SUBDEVICE) {
		above = object_of(c, parent);
		if (above && above->kind == DEVICE && gpuseg_nv_rm_gpu_id(c->handle, handle, &above->gpu))
			above->gpu = GPU_UNKNOWN;
	}
	return 0;
}

static enum object_kind classify(u32 class_id)
{
	if (class_id == CLASS_DEVICE)
		return DEVICE;
	if (class_id == CLASS_SUBDEVICE)
		return SUBDEVICE;
	if (class_id == CLASS_TSG)
		return TSG;
	return is_channel(class_id) ? CHANNEL : ENGINE;
}

struct gpuseg_nv_file *gpuseg_nv_begin(const void *file)
{
	struct gpuseg_nv_file *f;

	mutex_lock(&gpuseg_nv_lock);
	f = file_get(file);
	if (f)
		f->users++;
	mutex_unlock(&gpuseg_nv_lock);
	if (f)
		mutex_lock(&f->tree_lock);
	return f;
}

static void end(struct gpuseg_nv_file *f)
{
	mutex_unlock(&f->tree_lock);
	f->users--;
	file_put(f);
}

void gpuseg_nv_end(struct gpuseg_nv_file *f)
{
	mutex_lock(&gpuseg_nv_lock);
	end(f);
	mutex_unlock(&gpuseg_nv_lock);
}

int gpuseg_nv_created(struct gpuseg_nv_file *f, u32 client, u32 parent, u32 handle, u32 class_id)
{
	struct client *c;
	int result = 0;

	mutex_lock(&gpuseg_nv_lock);
	if (is_root(class_id)) {
		result = client_created(f, handle);
	} else {
		c = client_of(f, client);
		if (c) {
			result = add(c, classify(class_id), parent, handle);
			if (is_held(c->process))
				reconcile();
		}
	}
	mutex_unlock(&gpuseg_nv_lock);
	return result;
}

static struct client *client_anywhere(u32 handle)
{
	struct process *p;
	struct client *c;

	list_for_each_entry(p, &processes, entry)
		list_for_each_entry(c, &p->clients, of_process)
			if (c->handle == handle && !c->going)
				return c;
	return NULL;
}

int gpuseg_nv_duplicated(struct gpuseg_nv_file *f, u32 client, u32 parent, u32 handle, u32 source_client, u32 source)
{
	struct client *from, *to;
	struct object *o;
	int result = 0;

	mutex_lock(&gpuseg_nv_lock);
	from = client_anywhere(source_client);
	to = client_of(f, client);
	o = from && to ? object_of(from, source) : NULL;
	if (o) {
		const bool compute = o->compute;

		result = add(to, o->kind, parent, handle);
		o = result ? NULL : object_of(to, handle);
		if (o)
			o->compute = compute;
		if (is_held(to->process))
			reconcile();
	}
	mutex_unlock(&gpuseg_nv_lock);
	return result;
}

/* Marks an object and everything below it. */
static void mark(struct client *c, u32 handle)
{
	struct object *o;
	bool more;

	o = object_of(c, handle);
	if (!o)
		return;
	o->going = true;
	do {
		more = false;
		list_for_each_entry(o, &c->objects, entry) {
			struct object *above;

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
	struct client *c;

	mutex_lock(&gpuseg_nv_lock);
	f = file_of(file);
	c = f ? client_of(f, client) : NULL;
	if (!c || (handle != client && !object_of(c, handle))) {
		mutex_unlock(&gpuseg_nv_lock);
		return NULL;
	}
	f->users++;
	mutex_unlock(&gpuseg_nv_lock);

	mutex_lock(&f->tree_lock);
	mutex_lock(&gpuseg_nv_lock);
	c = client_of(f, client);
	if (c && handle == client)
		c->going = true;
	else if (c)
		mark(c, handle);
	mutex_unlock(&gpuseg_nv_lock);
	return f;
}

void gpuseg_nv_free_end(struct gpuseg_nv_file *f, bool freed)
{
	struct client *c, *next_client;
	struct object *o, *next;

	mutex_lock(&gpuseg_nv_lock);
	list_for_each_entry_safe(c, next_client, &f->clients, of_file) {
		if (c->going && freed) {
			client_free(c);
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
		reconcile(); /* what came about meanwhile was not applied to them */
	end(f);
	mutex_unlock(&gpuseg_nv_lock);
}

void gpuseg_nv_file_gone(const void *file)
{
	struct client *c, *next;
	struct gpuseg_nv_file *f;

	mutex_lock(&gpuseg_nv_lock);
	f = file_of(file);
	if (f) {
		list_for_each_entry_safe(c, next, &f->clients, of_file)
			client_free(c);
		file_put(f);
	}
	mutex_unlock(&gpuseg_nv_lock);
}

/* --- the controller's side --- */

static void feed(void)
{
	if (watchdog_ms)
		mod_delayed_work(system_freezable_wq, &watchdog_work, msecs_to_jiffies(watchdog_ms));
}

static void want_nothing(void)
{
	struct process *p;

	window = false;
	list_for_each_entry(p, &processes, entry) {
		p->wanted = false;
		p->caught = false;
		p->exempt = false;
	}
}

/* The caller has entered RM. */
static void let_go_of_everything(void)
{
	struct process *p, *next;

	want_nothing();
	reconcile();
	list_for_each_entry_safe(p, next, &processes, entry)
		process_put(p);
}

static void watchdog_lapsed(struct work_struct *work)
{
	const bool entered = gpuseg_nv_rm_enter() == 0;

	mutex_lock(&gpuseg_nv_lock);
	if (!entered) {
		feed(); /* the driver is suspended, and with it all channels; once more when it is back */
	} else if (controlled && watchdog_ms) {
		let_go_of_everything();
		lapsed = true;
		lapse_count++;
	}
	mutex_unlock(&gpuseg_nv_lock);
	if (entered)
		gpuseg_nv_rm_leave();
}

int gpuseg_nv_controller_open(void)
{
	int result = 0;

	mutex_lock(&gpuseg_nv_lock);
	if (controlled)
		result = -EBUSY;
	else
		controlled = true;
	mutex_unlock(&gpuseg_nv_lock);
	return result;
}

void gpuseg_nv_controller_close(void)
{
	bool entered;

	cancel_delayed_work_sync(&watchdog_work);
	entered = gpuseg_nv_rm_enter() == 0;
	mutex_lock(&gpuseg_nv_lock);
	watchdog_ms = 0;
	if (entered) {
		let_go_of_everything();
	} else {
		want_nothing();
		mod_delayed_work(system_freezable_wq, &retry_work, 0);
	}
	name_count = 0;
	all_engines = false;
	lapsed = false;
	news = false;
	controlled = false;
	mutex_unlock(&gpuseg_nv_lock);
	if (entered)
		gpuseg_nv_rm_leave();
}

/* Start of a process in the unit and the view of /proc/<pid>/stat. */
static u64 start_ticks(u64 start_ns)
{
	return div_u64(timens_add_boottime_ns(start_ns), NSEC_PER_SEC / USER_HZ);
}

static struct process *process_named(const struct gpuseg_nv_target *t, int *result)
{
	struct pid *pid = find_get_pid(t->pid);
	struct task_struct *task = pid ? get_pid_task(pid, PIDTYPE_TGID) : NULL;
	struct process *p = NULL;

	*result = -ESRCH;
	if (task && !(task->flags & PF_KTHREAD) &&
	    (!t->start_ticks || t->start_ticks == start_ticks(task->start_boottime))) {
		p = process_get(pid, task);
		*result = p ? 0 : -ENOSPC;
	}
	if (task)
		put_task_struct(task);
	put_pid(pid);
	return p;
}

/* A dead process is no longer wanted off: what is left of it, somebody else's descriptor keeps. */
static void forget_the_dead(void)
{
	struct process *p;

	list_for_each_entry(p, &processes, entry)
		if ((is_held(p) || p->exempt) && !is_alive(p)) {
			p->wanted = false;
			p->caught = false;
			p->exempt = false;
		}
}

static void apply_target(struct gpuseg_nv_target *t, struct process *p)
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
	struct process *p, *next;
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
	calls = rm_calls;
	first_status = GPUSEG_NV_RM_OK;
	rm_ns = 0;
	feed();
	forget_the_dead();
	list_for_each_entry(p, &processes, entry) {
		p->error = 0;
		if (flags & (GPUSEG_NV_WINDOW_OPEN | GPUSEG_NV_WINDOW_CLOSE))
			p->exempt = false;
		if (flags & GPUSEG_NV_WINDOW_CLOSE)
			p->caught = false;
	}
	if (flags & (GPUSEG_NV_WINDOW_OPEN | GPUSEG_NV_WINDOW_CLOSE))
		window = flags & GPUSEG_NV_WINDOW_OPEN;
	all_engines = flags & GPUSEG_NV_ALL_ENGINES;
	for (i = 0; i < request->count; i++) {
		p = process_named(&targets[i], &targets[i].result);
		if (p)
			apply_target(&targets[i], p);
	}
	reconcile();
	for (i = 0; i < request->count; i++) {
		int ignored;

		targets[i].channels = 0;
		p = targets[i].result ? NULL : process_named(&targets[i], &ignored);
		if (p) {
			targets[i].result = p->error;
			targets[i].channels = count_channels(p, true);
		}
		failed |= targets[i].result != 0;
	}
	list_for_each_entry_safe(p, next, &processes, entry)
		process_put(p);
	request->flags = flags | (lapsed ? GPUSEG_NV_LAPSED : 0);
	lapsed = false;
	request->took_ns = rm_ns;
	request->rm_calls = rm_calls - calls;
	request->rm_status = first_status;
	mutex_unlock(&gpuseg_nv_lock);
	gpuseg_nv_rm_leave();
	return failed ? -EIO : 0;
}

int gpuseg_nv_set_watchdog(u32 period_ms)
{
	if (period_ms && (period_ms < GPUSEG_NV_WATCHDOG_MIN_MS || period_ms > GPUSEG_NV_WATCHDOG_MAX_MS))
		return -ERANGE;
	mutex_lock(&gpuseg_nv_lock);
	watchdog_ms = period_ms;
	if (period_ms)
		feed();
	else
		cancel_delayed_work(&watchdog_work);
	mutex_unlock(&gpuseg_nv_lock);
	return 0;
}

int gpuseg_nv_protect(const char *name)
{
	int result = 0;

	mutex_lock(&gpuseg_nv_lock);
	if (name_count < GPUSEG_NV_NAMES_MAX)
		strscpy(names[name_count++], name, GPUSEG_NV_NAME);
	else
		result = -ENOSPC;
	mutex_unlock(&gpuseg_nv_lock);
	return result;
}

u32 gpuseg_nv_list(struct gpuseg_nv_process *list, u32 room)
{
	struct process *p;
	u32 n = 0;

	mutex_lock(&gpuseg_nv_lock);
	news = false;
	list_for_each_entry(p, &processes, entry) {
		if (list_empty(&p->clients))
			continue;
		if (n++ >= room)
			continue;
		memset(list, 0, sizeof(*list));
		list->pid = pid_vnr(p->pid);
		list->start_ticks = start_ticks(p->start_ns);
		list->flags = (is_held(p) ? GPUSEG_NV_PROCESS_HELD : 0) |
			      (p->caught && !p->wanted ? GPUSEG_NV_PROCESS_CAUGHT : 0) |
			      (is_alive(p) ? 0 : GPUSEG_NV_PROCESS_DEAD);
		strscpy(list->name, p->name, sizeof(list->name));
		list->channels = count_channels(p, false);
		list->off = count_channels(p, true);
		list++;
	}
	mutex_unlock(&gpuseg_nv_lock);
	return n;
}

void gpuseg_nv_info(struct gpuseg_nv_info *info)
{
	const struct client *c;
	const struct process *p;

	memset(info, 0, sizeof(*info));
	mutex_lock(&gpuseg_nv_lock);
	info->abi = GPUSEG_NV_ABI;
	info->batch_max = GPUSEG_NV_BATCH_MAX;
	info->processes = process_count;
	info->window = window;
	info->rm_calls = rm_calls;
	info->rm_failures = rm_failures;
	info->caught = caught_count;
	info->lapses = lapse_count;
	list_for_each_entry(p, &processes, entry) {
		info->held += is_held(p);
		info->off += count_channels(p, true);
		info->channels += count_channels(p, false);
		list_for_each_entry(c, &p->clients, of_process)
			info->clients++;
	}
	mutex_unlock(&gpuseg_nv_lock);
}

bool gpuseg_nv_has_news(void)
{
	return READ_ONCE(news);
}

struct wait_queue_head *gpuseg_nv_wait_queue(void)
{
	return &news_queue;
}

void gpuseg_nv_core_exit(void)
{
	struct process *p, *next;

	cancel_delayed_work_sync(&watchdog_work);
	cancel_delayed_work_sync(&retry_work);
	WARN_ON(!hash_empty(files));
	list_for_each_entry_safe(p, next, &processes, entry)
		process_put(p);
	WARN_ON(!list_empty(&processes));
}
