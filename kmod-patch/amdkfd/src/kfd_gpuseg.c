// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/gpuseg-kfd: disables queues of processes, see gpuseg_kfd.h.
 *
 * The only state is the table of holds. After every change of it, each device is
 * reconciled with it; nothing is counted up and down. A hold refers to a process
 * by struct pid, which is neither reused nor keeps anything big alive: not the
 * kfd_process, whose last reference frees the process's GPU memory.
 *
 * Locks, in the order they are taken:
 *
 *   kfd_gpuseg_devices_lock   rw_semaphore; the list of devices. Held for reading
 *                             while devices change, so that none goes away
 *   device_queue_manager.lock_hidden   the driver's DQM lock, via dqm_lock()
 *   kfd_gpuseg_table_lock     spinlock; the table and its entries, and
 *                             gpuseg_file.stale and .lapses
 *
 * struct kfd_process.mutex is not needed: the DQM lock alone covers the list of a
 * process's queues. So a process in a long ioctl of KFD delays no hold unless it is
 * changing queues of the same GPU.
 *
 * Two kernel threads with real-time priority: "gpuseg-load" enables queues in mode
 * NO_HWS (kfd_gpuseg_dqm_load() says why); it takes only DQM locks, and no thread
 * that waits for it holds one. "gpuseg-watch" runs the watchdogs; no thread that
 * holds a lock waits for it.
 */
#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/hashtable.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/lockdep.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/overflow.h>
#include <linux/pid.h>
#include <linux/rwsem.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/time_namespace.h>
#include <linux/uaccess.h>

#include "kfd_priv.h"
#include "kfd_device_queue_manager.h"
#include "kfd_gpuseg.h"
#include "gpuseg_kfd.h"

/**
 * struct gpuseg_file - one open file
 *
 * @holds: its holds, under kfd_gpuseg_table_lock
 * @n_holds: their number, same lock
 * @period_ms: of the watchdog
 * @lapses: of the watchdog, table lock
 * @stale: the watchdog lapsed and the owner has not acknowledged it; table lock
 * @watchdog: on gpuseg_watcher
 */
struct gpuseg_file {
	struct list_head holds;
	unsigned int n_holds;
	unsigned int period_ms;
	unsigned int lapses;
	bool stale;
	struct kthread_delayed_work watchdog;
};

/**
 * struct gpuseg_hold - one hold; immutable once in the table
 *
 * @of_pid: in gpuseg_table
 * @of_file: in gpuseg_file.holds
 * @tgid: the process, with a reference
 * @gpu_id: or GPUSEG_KFD_ALL_GPUS
 * @queue_id: or GPUSEG_KFD_ALL_QUEUES
 * @serial: of the queue, 0 with ALL_QUEUES
 * @flags: of the entry
 */
struct gpuseg_hold {
	struct hlist_node of_pid;
	struct list_head of_file;
	struct pid *tgid;
	u32 gpu_id;
	u32 queue_id;
	u64 serial;
	u32 flags;
};

/* An entry of a batch on its way through gpuseg_apply(). */
struct gpuseg_step {
	struct gpuseg_kfd_entry user;
	struct pid *tgid;
	struct gpuseg_hold *spare;
};

static DECLARE_RWSEM(kfd_gpuseg_devices_lock);
static LIST_HEAD(gpuseg_devices);
static DEFINE_SPINLOCK(kfd_gpuseg_table_lock);
static DEFINE_HASHTABLE(gpuseg_table, 6);
static struct kthread_worker *gpuseg_loader;
static struct kthread_worker *gpuseg_watcher;

static void gpuseg_free_hold(struct gpuseg_hold *hold)
{
	put_pid(hold->tgid);
	kfree(hold);
}

static void gpuseg_free_holds(struct list_head *holds)
{
	struct gpuseg_hold *hold, *next;

	list_for_each_entry_safe(hold, next, holds, of_file)
		gpuseg_free_hold(hold);
}

/* Out of the table; the caller frees it after the lock. */
static void gpuseg_unlink(struct gpuseg_file *file, struct gpuseg_hold *hold,
			  struct list_head *removed)
{
	lockdep_assert_held(&kfd_gpuseg_table_lock);
	hash_del(&hold->of_pid);
	list_move(&hold->of_file, removed);
	file->n_holds--;
}

/**
 * kfd_gpuseg_wanted - must a queue be held
 * @tgid: its process; NULL if it has ended
 * @gpu_id: its GPU
 * @serial: its serial number
 * @sdma: whether it copies
 *
 * Called under the DQM lock. Return: whether any open file says so.
 */
bool kfd_gpuseg_wanted(const struct pid *tgid, u32 gpu_id, u64 serial, bool sdma)
{
	struct gpuseg_hold *hold;
	bool wanted = false;

	if (!tgid)
		return false;
	spin_lock(&kfd_gpuseg_table_lock);
	hash_for_each_possible(gpuseg_table, hold, of_pid, (unsigned long)tgid) {
		if (hold->tgid != tgid)
			continue;
		if (hold->gpu_id != GPUSEG_KFD_ALL_GPUS && hold->gpu_id != gpu_id)
			continue;
		if (hold->serial && hold->serial != serial)
			continue;
		if (sdma && (hold->flags & GPUSEG_KFD_COMPUTE_ONLY))
			continue;
		wanted = true;
		break;
	}
	spin_unlock(&kfd_gpuseg_table_lock);
	return wanted;
}

/* ------------------------------------------------------------------ devices */

static void gpuseg_load_work(struct kthread_work *work)
{
	struct device_queue_manager *dqm =
		container_of(work, struct device_queue_manager, gpuseg.load_work);

	dqm->gpuseg.load_error = kfd_gpuseg_dqm_load(dqm);
}

/* Reconciles one device with the table. May be called from any process or kernel thread. */
static int gpuseg_sync_device(struct device_queue_manager *dqm)
{
	u64 start = ktime_get_ns();
	bool must_load;
	int ret, r;
	u64 took;

	lockdep_assert_held(&kfd_gpuseg_devices_lock);
	ret = kfd_gpuseg_dqm_unload(dqm, &must_load);
	if (must_load) {
		kthread_queue_work(gpuseg_loader, &dqm->gpuseg.load_work);
		/*
		 * If the work was queued or running already this waits for it, and its
		 * result may be of the other caller's queues as well as ours. If it had
		 * looked at the table before we changed it, it is queued again now.
		 */
		kthread_flush_work(&dqm->gpuseg.load_work);
		r = READ_ONCE(dqm->gpuseg.load_error);
		if (!ret)
			ret = r;
	}
	took = ktime_get_ns() - start;

	dqm_lock(dqm);
	dqm->gpuseg.last_ns = took;
	dqm->gpuseg.max_ns = max(dqm->gpuseg.max_ns, took);
	dqm_unlock(dqm);
	return ret;
}

static void gpuseg_sync_all(void)
{
	struct device_queue_manager *dqm;

	down_read(&kfd_gpuseg_devices_lock);
	list_for_each_entry(dqm, &gpuseg_devices, gpuseg.node) {
		int r = gpuseg_sync_device(dqm);

		if (r)
			pr_warn_ratelimited("gpuseg: GPU %#x does not follow: error %d\n",
					    kfd_gpuseg_dqm_gpu_id(dqm), r);
	}
	up_read(&kfd_gpuseg_devices_lock);
}

/**
 * kfd_gpuseg_dqm_add - add a device
 * @dqm: its initialised queue manager, without queues
 */
void kfd_gpuseg_dqm_add(struct device_queue_manager *dqm)
{
	memset(&dqm->gpuseg, 0, sizeof(dqm->gpuseg));
	kthread_init_work(&dqm->gpuseg.load_work, gpuseg_load_work);
	down_write(&kfd_gpuseg_devices_lock);
	list_add_tail(&dqm->gpuseg.node, &gpuseg_devices);
	up_write(&kfd_gpuseg_devices_lock);
}

/**
 * kfd_gpuseg_dqm_remove - remove a device
 * @dqm: its queue manager; nothing here uses it afterwards
 */
void kfd_gpuseg_dqm_remove(struct device_queue_manager *dqm)
{
	down_write(&kfd_gpuseg_devices_lock);
	list_del(&dqm->gpuseg.node);
	up_write(&kfd_gpuseg_devices_lock);
}

/* ---------------------------------------------------------- processes, holds */

/* The process that has this ID and started at that time, with a reference; or NULL. */
static struct pid *gpuseg_find_process(pid_t nr, u64 start_ticks)
{
	struct task_struct *task;
	struct pid *pid;
	u64 ticks;

	pid = find_get_pid(nr);
	if (!pid)
		return NULL;
	task = get_pid_task(pid, PIDTYPE_TGID);
	if (!task)
		goto no_process;
	/* As fs/proc/array.c computes field 22 of /proc/PID/stat. */
	ticks = div_u64(timens_add_boottime_ns(task->start_boottime), NSEC_PER_SEC / USER_HZ);
	put_task_struct(task);
	if (ticks == start_ticks)
		return pid;
no_process:
	put_pid(pid);
	return NULL;
}

static struct gpuseg_hold *gpuseg_find_hold(struct gpuseg_file *file, const struct pid *tgid,
					    u32 gpu_id, u32 queue_id)
{
	struct gpuseg_hold *hold;

	lockdep_assert_held(&kfd_gpuseg_table_lock);
	list_for_each_entry(hold, &file->holds, of_file)
		if (hold->tgid == tgid && hold->gpu_id == gpu_id && hold->queue_id == queue_id)
			return hold;
	return NULL;
}

/* Holds on processes that have ended only use memory. */
static void gpuseg_drop_dead(struct gpuseg_file *file, struct list_head *removed)
{
	struct gpuseg_hold *hold, *next;

	lockdep_assert_held(&kfd_gpuseg_table_lock);
	list_for_each_entry_safe(hold, next, &file->holds, of_file)
		if (!pid_has_task(hold->tgid, PIDTYPE_TGID))
			gpuseg_unlink(file, hold, removed);
}

static int gpuseg_record_hold(struct gpuseg_file *file, struct gpuseg_step *step, u64 serial,
			      struct list_head *removed)
{
	const struct gpuseg_kfd_entry *e = &step->user;
	struct gpuseg_hold *hold;
	int r = 0;

	spin_lock(&kfd_gpuseg_table_lock);
	if (file->stale) {
		r = -ESTALE;
		goto out;
	}
	/* A hold is replaced rather than changed; so a flag may change. */
	hold = gpuseg_find_hold(file, step->tgid, e->gpu_id, e->queue_id);
	if (hold)
		gpuseg_unlink(file, hold, removed);
	if (file->n_holds >= GPUSEG_KFD_MAX_HOLDS)
		gpuseg_drop_dead(file, removed);
	if (file->n_holds >= GPUSEG_KFD_MAX_HOLDS) {
		r = -ENOSPC;
		goto out;
	}
	hold = step->spare;
	step->spare = NULL;
	hold->tgid = get_pid(step->tgid);
	hold->gpu_id = e->gpu_id;
	hold->queue_id = e->queue_id;
	hold->serial = serial;
	hold->flags = e->flags;
	hash_add(gpuseg_table, &hold->of_pid, (unsigned long)hold->tgid);
	list_add(&hold->of_file, &file->holds);
	file->n_holds++;
out:
	spin_unlock(&kfd_gpuseg_table_lock);
	return r;
}

static int gpuseg_record_release(struct gpuseg_file *file, const struct gpuseg_step *step,
				 struct list_head *removed)
{
	const struct gpuseg_kfd_entry *e = &step->user;
	struct gpuseg_hold *hold, *next;
	int r = -ENOENT;

	spin_lock(&kfd_gpuseg_table_lock);
	list_for_each_entry_safe(hold, next, &file->holds, of_file) {
		if (hold->tgid != step->tgid)
			continue;
		if (e->op == GPUSEG_KFD_RELEASE &&
		    (hold->gpu_id != e->gpu_id || hold->queue_id != e->queue_id))
			continue;
		gpuseg_unlink(file, hold, removed);
		r = 0;
	}
	spin_unlock(&kfd_gpuseg_table_lock);
	return r;
}

static struct device_queue_manager *gpuseg_find_device(u32 gpu_id)
{
	struct device_queue_manager *dqm;

	lockdep_assert_held(&kfd_gpuseg_devices_lock);
	list_for_each_entry(dqm, &gpuseg_devices, gpuseg.node)
		if (kfd_gpuseg_dqm_gpu_id(dqm) == gpu_id)
			return dqm;
	return NULL;
}

typedef void (*gpuseg_visit_t)(struct device_queue_manager *dqm, struct queue *q, void *context);

/* Visits each queue of a process, or of all, on one device, which is locked meanwhile. */
static void gpuseg_visit(struct device_queue_manager *dqm, const struct pid *tgid,
			 gpuseg_visit_t visit, void *context)
{
	struct device_process_node *node;
	struct queue *q;

	dqm_lock(dqm);
	list_for_each_entry(node, &dqm->queues, list)
		list_for_each_entry(q, &node->qpd->queues_list, list)
			if (!tgid || task_tgid(q->process->lead_thread) == tgid)
				visit(dqm, q, context);
	dqm_unlock(dqm);
}

/*
 * @owner: whose queue it is. From 7.1 on, a process may have several KFD contexts,
 * each a kfd_process with queue IDs of its own, so that an ID may name one queue in
 * each of them.
 */
struct gpuseg_search {
	u32 queue_id;
	u64 serial;
	const struct kfd_process *owner;
	bool ambiguous;
};

static void gpuseg_visit_search(struct device_queue_manager *dqm, struct queue *q, void *context)
{
	struct gpuseg_search *search = context;

	if (q->properties.queue_id != search->queue_id)
		return;
	if (search->owner && search->owner != q->process)
		search->ambiguous = true;
	search->owner = q->process;
	search->serial = q->gpuseg.serial;
}

/* Records one entry. Devices are changed later. */
static int gpuseg_record(struct gpuseg_file *file, struct gpuseg_step *step,
			 struct list_head *removed)
{
	const struct gpuseg_kfd_entry *e = &step->user;
	struct gpuseg_search search = { .queue_id = e->queue_id };
	struct device_queue_manager *dqm = NULL;

	if (!step->tgid)
		return -ESRCH;
	if (e->op != GPUSEG_KFD_HOLD)
		return gpuseg_record_release(file, step, removed);

	if (e->gpu_id != GPUSEG_KFD_ALL_GPUS) {
		dqm = gpuseg_find_device(e->gpu_id);
		if (!dqm)
			return -ENODEV;
		if (kfd_gpuseg_dqm_reason(dqm) != GPUSEG_KFD_OK)
			return -EOPNOTSUPP;
	}
	if (e->queue_id != GPUSEG_KFD_ALL_QUEUES) {
		gpuseg_visit(dqm, step->tgid, gpuseg_visit_search, &search);
		if (!search.serial)
			return -ENOENT;
		if (search.ambiguous)
			return -ENOTUNIQ;
	}
	return gpuseg_record_hold(file, step, search.serial, removed);
}

static void gpuseg_visit_result(struct device_queue_manager *dqm, struct queue *q, void *context)
{
	struct gpuseg_kfd_entry *e = context;

	if (e->queue_id != GPUSEG_KFD_ALL_QUEUES && q->properties.queue_id != e->queue_id)
		return;
	e->n_queues++;
	if (q->properties.is_gpuseg_held)
		e->n_held++;
	if (!e->result)
		e->result = q->gpuseg.error;
}

/* ------------------------------------------------------------------ watchdog */

/* Ends all holds of a file. */
static void gpuseg_release_all(struct gpuseg_file *file, bool lapsed)
{
	struct gpuseg_hold *hold, *next;
	LIST_HEAD(removed);

	spin_lock(&kfd_gpuseg_table_lock);
	list_for_each_entry_safe(hold, next, &file->holds, of_file)
		gpuseg_unlink(file, hold, &removed);
	if (lapsed && !list_empty(&removed)) {
		file->stale = true;
		file->lapses++;
	}
	spin_unlock(&kfd_gpuseg_table_lock);

	if (list_empty(&removed))
		return;
	gpuseg_sync_all();
	gpuseg_free_holds(&removed);
}

static void gpuseg_watchdog(struct kthread_work *work)
{
	gpuseg_release_all(container_of(work, struct gpuseg_file, watchdog.work), true);
}

static void gpuseg_arm(struct gpuseg_file *file)
{
	kthread_mod_delayed_work(gpuseg_watcher, &file->watchdog,
				 msecs_to_jiffies(READ_ONCE(file->period_ms)));
}

/* --------------------------------------------------------------------- ioctls */

static int gpuseg_check_entry(const struct gpuseg_kfd_entry *e)
{
	bool all = e->gpu_id == GPUSEG_KFD_ALL_GPUS && e->queue_id == GPUSEG_KFD_ALL_QUEUES;

	if (e->pid <= 0)
		return -EINVAL;
	/* Queue IDs count per process, not per GPU; still ask for the GPU: it says which lock. */
	if (e->queue_id != GPUSEG_KFD_ALL_QUEUES && e->gpu_id == GPUSEG_KFD_ALL_GPUS)
		return -EINVAL;
	switch (e->op) {
	case GPUSEG_KFD_HOLD:
		if (e->flags & ~GPUSEG_KFD_COMPUTE_ONLY)
			return -EINVAL;
		if (e->flags && e->queue_id != GPUSEG_KFD_ALL_QUEUES)
			return -EINVAL;
		return 0;
	case GPUSEG_KFD_RELEASE:
		return e->flags ? -EINVAL : 0;
	case GPUSEG_KFD_RELEASE_PROCESS:
		return e->flags || !all ? -EINVAL : 0;
	default:
		return -EINVAL;
	}
}

static int gpuseg_read_steps(struct gpuseg_step *steps, u32 n,
			     const struct gpuseg_kfd_entry __user *entries, bool *any_hold)
{
	u32 i;
	int r;

	*any_hold = false;
	for (i = 0; i < n; i++) {
		if (copy_from_user(&steps[i].user, &entries[i], sizeof(steps[i].user)))
			return -EFAULT;
		r = gpuseg_check_entry(&steps[i].user);
		if (r)
			return r;
		steps[i].user.result = 0;
		steps[i].user.n_queues = 0;
		steps[i].user.n_held = 0;
		if (steps[i].user.op == GPUSEG_KFD_HOLD) {
			*any_hold = true;
			steps[i].spare = kzalloc(sizeof(*steps[i].spare), GFP_KERNEL);
			if (!steps[i].spare)
				return -ENOMEM;
		}
	}
	return 0;
}

/* Records all entries, changes each device once, then collects the results. */
static void gpuseg_run_steps(struct gpuseg_file *file, struct gpuseg_step *steps, u32 n)
{
	struct device_queue_manager *dqm;
	LIST_HEAD(removed);
	u32 i;

	down_read(&kfd_gpuseg_devices_lock);
	for (i = 0; i < n; i++)
		steps[i].user.result = gpuseg_record(file, &steps[i], &removed);

	list_for_each_entry(dqm, &gpuseg_devices, gpuseg.node) {
		u32 gpu_id = kfd_gpuseg_dqm_gpu_id(dqm);
		bool concerned = false;
		int r;

		for (i = 0; i < n; i++)
			concerned |= steps[i].user.gpu_id == GPUSEG_KFD_ALL_GPUS ||
				     steps[i].user.gpu_id == gpu_id;
		if (!concerned)
			continue;
		r = gpuseg_sync_device(dqm);
		for (i = 0; i < n; i++) {
			struct gpuseg_kfd_entry *e = &steps[i].user;
			u32 before = e->n_queues;

			if (e->result && e->result != -EIO && e->result != -ETIME)
				continue;
			if (e->gpu_id != GPUSEG_KFD_ALL_GPUS && e->gpu_id != gpu_id)
				continue;
			gpuseg_visit(dqm, steps[i].tgid, gpuseg_visit_result, e);
			if (e->result || e->n_queues == before)
				continue;
			/* A runlist that fails is the error of all its queues. */
			if (r && kfd_gpuseg_dqm_mode(dqm) == GPUSEG_KFD_HWS)
				e->result = r;
			else if (e->op == GPUSEG_KFD_HOLD &&
				 kfd_gpuseg_dqm_reason(dqm) != GPUSEG_KFD_OK)
				e->result = -EOPNOTSUPP;
		}
	}
	up_read(&kfd_gpuseg_devices_lock);
	gpuseg_free_holds(&removed);
}

static long gpuseg_apply(struct gpuseg_file *file, struct gpuseg_kfd_apply *apply)
{
	struct gpuseg_kfd_entry __user *entries = u64_to_user_ptr(apply->entries);
	struct gpuseg_step *steps;
	bool any_hold, stale;
	u64 start;
	long ret;
	u32 i;

	if (apply->flags || apply->reserved || !apply->n_entries)
		return -EINVAL;
	if (apply->n_entries > GPUSEG_KFD_MAX_BATCH)
		return -E2BIG;
	steps = kcalloc(apply->n_entries, sizeof(*steps), GFP_KERNEL);
	if (!steps)
		return -ENOMEM;
	ret = gpuseg_read_steps(steps, apply->n_entries, entries, &any_hold);
	if (ret)
		goto out;
	spin_lock(&kfd_gpuseg_table_lock);
	stale = file->stale;
	spin_unlock(&kfd_gpuseg_table_lock);
	if (stale && any_hold) {
		ret = -ESTALE;
		goto out;
	}

	for (i = 0; i < apply->n_entries; i++)
		steps[i].tgid = gpuseg_find_process(steps[i].user.pid, steps[i].user.start_ticks);
	/* Before the holds exist, and again after: no hold without a watchdog that runs. */
	gpuseg_arm(file);
	start = ktime_get_ns();
	gpuseg_run_steps(file, steps, apply->n_entries);
	apply->took_ns = ktime_get_ns() - start;
	gpuseg_arm(file);

	apply->n_failed = 0;
	for (i = 0; i < apply->n_entries; i++) {
		if (steps[i].user.result)
			apply->n_failed++;
		if (copy_to_user(&entries[i], &steps[i].user, sizeof(steps[i].user)))
			ret = -EFAULT;
	}
out:
	for (i = 0; i < apply->n_entries; i++) {
		put_pid(steps[i].tgid);
		kfree(steps[i].spare);
	}
	kfree(steps);
	return ret;
}

static long gpuseg_info(struct gpuseg_file *file, struct gpuseg_kfd_info *info)
{
	struct list_head *node;

	memset(info, 0, sizeof(*info));
	info->abi = GPUSEG_KFD_ABI;
	down_read(&kfd_gpuseg_devices_lock);
	list_for_each(node, &gpuseg_devices)
		info->n_gpus++;
	up_read(&kfd_gpuseg_devices_lock);
	info->watchdog_ms = READ_ONCE(file->period_ms);
	spin_lock(&kfd_gpuseg_table_lock);
	info->n_holds = file->n_holds;
	info->lapses = file->lapses;
	spin_unlock(&kfd_gpuseg_table_lock);
	return 0;
}

static void gpuseg_visit_count(struct device_queue_manager *dqm, struct queue *q, void *context)
{
	struct gpuseg_kfd_gpu *gpu = context;

	gpu->n_queues++;
	if (q->properties.is_gpuseg_held)
		gpu->n_held++;
}

static long gpuseg_gpu(struct gpuseg_kfd_gpu *gpu)
{
	struct device_queue_manager *dqm;
	u32 index = gpu->index, at = 0;
	long ret = -ENODEV;

	memset(gpu, 0, sizeof(*gpu));
	gpu->index = index;
	down_read(&kfd_gpuseg_devices_lock);
	list_for_each_entry(dqm, &gpuseg_devices, gpuseg.node) {
		if (at++ != index)
			continue;
		gpu->gpu_id = kfd_gpuseg_dqm_gpu_id(dqm);
		gpu->mode = kfd_gpuseg_dqm_mode(dqm);
		gpu->preemption = kfd_gpuseg_dqm_preemption(dqm);
		gpu->reason = kfd_gpuseg_dqm_reason(dqm);
		gpu->gfx_version = kfd_gpuseg_dqm_gfx_version(dqm);
		gpuseg_visit(dqm, NULL, gpuseg_visit_count, gpu);
		dqm_lock(dqm);
		gpu->unloads = dqm->gpuseg.unloads;
		gpu->loads = dqm->gpuseg.loads;
		gpu->failures = dqm->gpuseg.failures;
		gpu->remaps = dqm->gpuseg.remaps;
		gpu->last_ns = dqm->gpuseg.last_ns;
		gpu->max_ns = dqm->gpuseg.max_ns;
		dqm_unlock(dqm);
		ret = 0;
		break;
	}
	up_read(&kfd_gpuseg_devices_lock);
	return ret;
}

static long gpuseg_set_watchdog(struct gpuseg_file *file, struct gpuseg_kfd_watchdog *watchdog)
{
	if (watchdog->period_ms < GPUSEG_KFD_WATCHDOG_MIN_MS ||
	    watchdog->period_ms > GPUSEG_KFD_WATCHDOG_MAX_MS)
		return -EINVAL;
	WRITE_ONCE(file->period_ms, watchdog->period_ms);
	gpuseg_arm(file);
	spin_lock(&kfd_gpuseg_table_lock);
	file->stale = false;
	watchdog->lapses = file->lapses;
	spin_unlock(&kfd_gpuseg_table_lock);
	return 0;
}

static long gpuseg_kick(struct gpuseg_file *file)
{
	bool stale;

	gpuseg_arm(file);
	spin_lock(&kfd_gpuseg_table_lock);
	stale = file->stale;
	spin_unlock(&kfd_gpuseg_table_lock);
	return stale ? -ESTALE : 0;
}

struct gpuseg_listing {
	struct gpuseg_kfd_queue *queues;
	u32 room;
	u32 n;
};

static void gpuseg_visit_list(struct device_queue_manager *dqm, struct queue *q, void *context)
{
	struct gpuseg_listing *listing = context;
	struct gpuseg_kfd_queue *out;

	if (listing->n++ >= listing->room)
		return;
	out = &listing->queues[listing->n - 1];
	out->gpu_id = kfd_gpuseg_dqm_gpu_id(dqm);
	out->queue_id = q->properties.queue_id;
	out->error = q->gpuseg.error;
	if (q->properties.is_active)
		out->flags |= GPUSEG_KFD_QUEUE_ACTIVE;
	if (q->properties.is_gpuseg_held)
		out->flags |= GPUSEG_KFD_QUEUE_HELD;
	if (q->properties.is_evicted)
		out->flags |= GPUSEG_KFD_QUEUE_EVICTED;
	if (q->gpuseg.stuck)
		out->flags |= GPUSEG_KFD_QUEUE_STUCK;
	if (q->properties.type == KFD_QUEUE_TYPE_SDMA ||
	    q->properties.type == KFD_QUEUE_TYPE_SDMA_XGMI)
		out->flags |= GPUSEG_KFD_QUEUE_SDMA;
}

static long gpuseg_query(struct gpuseg_kfd_query *query)
{
	struct gpuseg_listing listing = { .room = query->n_queues };
	struct device_queue_manager *dqm;
	struct pid *tgid;
	long ret = 0;

	if (query->pid <= 0)
		return -EINVAL;
	if (query->n_queues > GPUSEG_KFD_MAX_QUERY)
		return -E2BIG;
	tgid = gpuseg_find_process(query->pid, query->start_ticks);
	if (!tgid)
		return -ESRCH;
	if (listing.room) {
		listing.queues = kvcalloc(listing.room, sizeof(*listing.queues), GFP_KERNEL);
		if (!listing.queues) {
			ret = -ENOMEM;
			goto out;
		}
	}
	down_read(&kfd_gpuseg_devices_lock);
	list_for_each_entry(dqm, &gpuseg_devices, gpuseg.node)
		gpuseg_visit(dqm, tgid, gpuseg_visit_list, &listing);
	up_read(&kfd_gpuseg_devices_lock);

	query->n_queues = listing.n;
	if (copy_to_user(u64_to_user_ptr(query->queues), listing.queues,
			 array_size(min(listing.n, listing.room), sizeof(*listing.queues))))
		ret = -EFAULT;
	kvfree(listing.queues);
out:
	put_pid(tgid);
	return ret;
}

union gpuseg_argument {
	struct gpuseg_kfd_info info;
	struct gpuseg_kfd_gpu gpu;
	struct gpuseg_kfd_apply apply;
	struct gpuseg_kfd_watchdog watchdog;
	struct gpuseg_kfd_query query;
};

static long gpuseg_dispatch(struct gpuseg_file *file, unsigned int cmd, union gpuseg_argument *u)
{
	switch (cmd) {
	case GPUSEG_KFD_IOC_INFO:
		return gpuseg_info(file, &u->info);
	case GPUSEG_KFD_IOC_GPU:
		return gpuseg_gpu(&u->gpu);
	case GPUSEG_KFD_IOC_APPLY:
		return gpuseg_apply(file, &u->apply);
	case GPUSEG_KFD_IOC_WATCHDOG:
		return gpuseg_set_watchdog(file, &u->watchdog);
	case GPUSEG_KFD_IOC_KICK:
		return gpuseg_kick(file);
	case GPUSEG_KFD_IOC_QUERY:
		return gpuseg_query(&u->query);
	}
	return -ENOTTY;
}

static bool gpuseg_is_known(unsigned int cmd)
{
	switch (cmd) {
	case GPUSEG_KFD_IOC_INFO:
	case GPUSEG_KFD_IOC_GPU:
	case GPUSEG_KFD_IOC_APPLY:
	case GPUSEG_KFD_IOC_WATCHDOG:
	case GPUSEG_KFD_IOC_KICK:
	case GPUSEG_KFD_IOC_QUERY:
		return true;
	}
	return false;
}

static long gpuseg_ioctl(struct file *filp, unsigned int cmd, unsigned long arg)
{
	void __user *user = (void __user *)arg;
	union gpuseg_argument u;
	long ret;

	/* At open as well; the file may have been passed on. */
	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	if (!gpuseg_is_known(cmd))
		return -ENOTTY;
	memset(&u, 0, sizeof(u));
	if ((_IOC_DIR(cmd) & _IOC_WRITE) && copy_from_user(&u, user, _IOC_SIZE(cmd)))
		return -EFAULT;
	ret = gpuseg_dispatch(filp->private_data, cmd, &u);
	if (!ret && (_IOC_DIR(cmd) & _IOC_READ) && copy_to_user(user, &u, _IOC_SIZE(cmd)))
		ret = -EFAULT;
	return ret;
}

static int gpuseg_open(struct inode *inode, struct file *filp)
{
	struct gpuseg_file *file;

	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	file = kzalloc(sizeof(*file), GFP_KERNEL);
	if (!file)
		return -ENOMEM;
	INIT_LIST_HEAD(&file->holds);
	file->period_ms = GPUSEG_KFD_WATCHDOG_DEFAULT_MS;
	kthread_init_delayed_work(&file->watchdog, gpuseg_watchdog);
	filp->private_data = file;
	return nonseekable_open(inode, filp);
}

static int gpuseg_close(struct inode *inode, struct file *filp)
{
	struct gpuseg_file *file = filp->private_data;

	kthread_cancel_delayed_work_sync(&file->watchdog);
	gpuseg_release_all(file, false);
	kfree(file);
	return 0;
}

static const struct file_operations gpuseg_fops = {
	.owner = THIS_MODULE,
	.open = gpuseg_open,
	.release = gpuseg_close,
	.unlocked_ioctl = gpuseg_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};

static struct miscdevice gpuseg_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "gpuseg-kfd",
	.fops = &gpuseg_fops,
	.mode = 0600,
};

static bool gpuseg_registered;

/**
 * kfd_gpuseg_init - make the device node
 *
 * KFD works without it: the caller may ignore a failure, which is logged.
 *
 * Return: 0 or a negative error.
 */
int kfd_gpuseg_init(void)
{
	int r;

	gpuseg_loader = kthread_create_worker(0, "gpuseg-load");
	if (IS_ERR(gpuseg_loader)) {
		r = PTR_ERR(gpuseg_loader);
		goto failed;
	}
	gpuseg_watcher = kthread_create_worker(0, "gpuseg-watch");
	if (IS_ERR(gpuseg_watcher)) {
		r = PTR_ERR(gpuseg_watcher);
		goto destroy_loader;
	}
	/* A real-time task may wait for them. */
	sched_set_fifo(gpuseg_loader->task);
	sched_set_fifo(gpuseg_watcher->task);

	r = misc_register(&gpuseg_device);
	if (r)
		goto destroy_watcher;
	gpuseg_registered = true;
	return 0;

destroy_watcher:
	kthread_destroy_worker(gpuseg_watcher);
destroy_loader:
	kthread_destroy_worker(gpuseg_loader);
failed:
	pr_err("gpuseg: no /dev/gpuseg-kfd: error %d\n", r);
	return r;
}

/* No file is open any more: each holds a reference to the module. */
void kfd_gpuseg_exit(void)
{
	if (!gpuseg_registered)
		return;
	misc_deregister(&gpuseg_device);
	kthread_destroy_worker(gpuseg_watcher);
	kthread_destroy_worker(gpuseg_loader);
	gpuseg_registered = false;
}
