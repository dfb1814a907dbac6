// SPDX-License-Identifier: GPL-2.0-only
/*
 * GPU segments on nvgpu: GCAPS's mechanism without its deadlocks. Experimental: it has not run on a board.
 *
 * Which TSGs may be on the runlist is computed from the set of open segments on every event, never edited: with a
 * real-time segment open, the TSGs of the process whose segment has the highest priority (the first of equals) and
 * those of protected processes; with none, all. So the end of a task that does not run changes nothing else, no working
 * process is dropped, and processes that never opened a segment are enabled again.
 *
 * The contents of the runlist are not cached either: `held` says which TSGs are disabled, and the driver's own
 * additions and removals go through gpuseg_nvgpu_runlist_update(), which keeps a held TSG disabled and records what the
 * driver wanted.
 *
 * Lock order: lock (an rt_mutex: callers have priorities), gate, the driver's own.
 */
#include <linux/bitmap.h>
#include <linux/capability.h>
#include <linux/errno.h>
#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/pid.h>
#include <linux/rtmutex.h>
#include <linux/rwsem.h>
#include <linux/sched.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <linux/workqueue.h>

#include <nvgpu/channel.h>
#include <nvgpu/fifo.h>
#include <nvgpu/gk20a.h>
#include <nvgpu/runlist.h>
#include <nvgpu/tsg.h>

#include "gpuseg_nvgpu.h"

#define RETRY_MS 100

struct segment {
	struct list_head entry; /* in order of arrival */
	const void *session;
	pid_t pid;
	int priority; /* 0 = best effort */
};

struct gpuseg {
	struct list_head entry;
	struct gk20a *g;
	struct rt_mutex lock;	  /* segments, held */
	struct rw_semaphore gate; /* write: held changes together with the runlist; read: the driver's own updates */
	struct list_head segments;
	struct delayed_work retry;
	u32 count;		  /* TSGs and channels, as the FIFO has them */
	unsigned long *held;	  /* by tsgid */
	unsigned long *wished;	  /* by chid: the driver wants it on the runlist */
	u32 updates;
};

static DEFINE_MUTEX(gpus_lock);
static LIST_HEAD(gpus);

/* Always left on the runlist, as in the published patch. */
static const char *const protected_names[] = { "Xorg", "gnome-shell" };

/* A GPU is added before its files can be opened and removed after the last is closed, so the result stays valid. */
static struct gpuseg *gpuseg_of(struct gk20a *g)
{
	struct gpuseg *s, *found = NULL;

	mutex_lock(&gpus_lock);
	list_for_each_entry(s, &gpus, entry)
		if (s->g == g)
			found = s;
	mutex_unlock(&gpus_lock);
	return found;
}

static bool is_protected(pid_t tgid)
{
	struct pid *pid = find_get_pid(tgid);
	struct task_struct *task = pid ? get_pid_task(pid, PIDTYPE_TGID) : NULL;
	bool result = false;
	size_t i;

	for (i = 0; task && i < ARRAY_SIZE(protected_names); i++)
		result |= strcmp(task->comm, protected_names[i]) == 0;
	if (task)
		put_task_struct(task);
	put_pid(pid);
	return result;
}

/* The segment that has the GPU; NULL: no real-time one is open. */
static const struct segment *running(const struct gpuseg *s)
{
	const struct segment *x, *best = NULL;

	list_for_each_entry(x, &s->segments, entry)
		if (x->priority > 0 && (!best || x->priority > best->priority))
			best = x;
	return best;
}

static int update_channels(struct gpuseg *s, struct nvgpu_tsg *tsg, bool add)
{
	struct nvgpu_channel *ch;
	int result = 0;

	nvgpu_rwsem_down_read(&tsg->ch_list_lock);
	nvgpu_list_for_each_entry(ch, &tsg->ch_list, nvgpu_channel, ch_entry) {
		int rc;

		if (ch->chid >= s->count || !test_bit(ch->chid, s->wished))
			continue;
		rc = s->g->ops.runlist.update(s->g, tsg->runlist, ch, add, true);
		s->updates++;
		if (rc && !result)
			result = rc;
	}
	nvgpu_rwsem_up_read(&tsg->ch_list_lock);
	return result;
}

/* Disables, or enables, what must change; what fails stays as it was. */
static int pass(struct gpuseg *s, const struct segment *best, bool hold)
{
	int result = 0;
	u32 i;

	for (i = 0; i < s->count; i++) {
		struct nvgpu_tsg *tsg = &s->g->fifo.tsg[i];
		int rc;

		if (!tsg->in_use || test_bit(i, s->held) == hold ||
		    (best && tsg->tgid != best->pid && !is_protected(tsg->tgid)) != hold)
			continue;
		down_write(&s->gate);
		if (hold)
			set_bit(i, s->held);
		else
			clear_bit(i, s->held);
		rc = update_channels(s, tsg, !hold);
		if (rc) {
			change_bit(i, s->held);
			if (hold)
				update_channels(s, tsg, true); /* those that had left already */
			if (!result)
				result = rc;
		}
		up_write(&s->gate);
	}
	return result;
}

/* Disables first, then enables; what fails is tried again later. */
static int apply(struct gpuseg *s)
{
	const struct segment *best = running(s);
	int off = pass(s, best, true);
	int on = pass(s, best, false);

	if (off || on)
		schedule_delayed_work(&s->retry, msecs_to_jiffies(RETRY_MS));
	return off ? off : on;
}

static void retry(struct work_struct *work)
{
	struct gpuseg *s = container_of(to_delayed_work(work), struct gpuseg, retry);

	rt_mutex_lock(&s->lock);
	apply(s);
	rt_mutex_unlock(&s->lock);
}

static struct segment *segment_of(struct gpuseg *s, const void *session)
{
	struct segment *x;

	list_for_each_entry(x, &s->segments, entry)
		if (x->session == session)
			return x;
	return NULL;
}

static int check(struct gpuseg_nvgpu_segment_args *args, pid_t *who, int *priority)
{
	const int own = current->rt_priority;

	*who = task_tgid_nr(current);
	*priority = args->gpu_priority == -1 ? own : args->gpu_priority;
	if (args->reserved || *priority < 0 || *priority > GPUSEG_NVGPU_PRIORITY_MAX || args->pid < 0)
		return -EINVAL;
	if (*priority > own && !capable(CAP_SYS_NICE))
		return -EPERM;
	if (args->pid && args->pid != *who) {
		struct pid *pid;

		if (!capable(CAP_SYS_ADMIN))
			return -EPERM;
		pid = find_get_pid(args->pid);
		if (!pid)
			return -ESRCH;
		*who = pid_nr(pid);
		put_pid(pid);
	}
	return 0;
}

static int begin(struct gpuseg *s, const void *session, pid_t pid, int priority)
{
	struct segment *x;
	int rc;

	if (segment_of(s, session))
		return -EALREADY;
	x = kzalloc(sizeof(*x), GFP_KERNEL);
	if (!x)
		return -ENOMEM;
	x->session = session;
	x->pid = pid;
	x->priority = priority;
	list_add_tail(&x->entry, &s->segments);
	rc = apply(s);
	if (!rc)
		return 0;
	list_del(&x->entry);
	kfree(x);
	apply(s);
	return -EIO;
}

static int end(struct gpuseg *s, const void *session)
{
	struct segment *x = segment_of(s, session);

	if (!x)
		return -EINVAL;
	list_del(&x->entry);
	kfree(x);
	apply(s); /* what cannot be enabled now is tried again: the segment has ended in any case */
	return 0;
}

long gpuseg_nvgpu_segment(struct gk20a *g, const void *session, struct gpuseg_nvgpu_segment_args *args)
{
	struct gpuseg *s = gpuseg_of(g);
	const struct segment *best;
	int priority = 0;
	pid_t who = 0;
	u64 began;
	int rc;

	if (!s)
		return -ENODEV;
	if (args->op != GPUSEG_NVGPU_BEGIN && args->op != GPUSEG_NVGPU_END)
		return -EINVAL;
	rc = args->op == GPUSEG_NVGPU_BEGIN ? check(args, &who, &priority) : 0;
	if (rc)
		return rc;
	rt_mutex_lock(&s->lock);
	began = ktime_get_ns();
	s->updates = 0;
	rc = args->op == GPUSEG_NVGPU_BEGIN ? begin(s, session, who, priority) : end(s, session);
	args->took_ns = ktime_get_ns() - began;
	args->updates = s->updates;
	best = running(s);
	args->running = best ? best->pid : 0;
	rt_mutex_unlock(&s->lock);
	return rc;
}

long gpuseg_nvgpu_ioctl(struct gk20a *g, const void *session, unsigned long arg)
{
	struct gpuseg_nvgpu_segment_args args;
	long rc;

	if (copy_from_user(&args, (void __user *)arg, sizeof(args)))
		return -EFAULT;
	rc = gpuseg_nvgpu_segment(g, session, &args);
	if (copy_to_user((void __user *)arg, &args, sizeof(args)))
		return -EFAULT;
	return rc;
}

void gpuseg_nvgpu_session_closed(struct gk20a *g, const void *session)
{
	struct gpuseg *s = gpuseg_of(g);

	if (!s)
		return;
	rt_mutex_lock(&s->lock);
	if (segment_of(s, session))
		end(s, session);
	rt_mutex_unlock(&s->lock);
}

int gpuseg_nvgpu_runlist_update(struct gk20a *g, struct nvgpu_runlist *rl, struct nvgpu_channel *ch, bool add,
				bool wait_for_finish)
{
	struct gpuseg *s = gpuseg_of(g);
	struct nvgpu_tsg *tsg;
	int rc = 0;

	if (!s || !ch || ch->chid >= s->count)
		return g->ops.runlist.update(g, rl, ch, add, wait_for_finish);
	down_read(&s->gate);
	tsg = nvgpu_tsg_from_ch(ch);
	if (!add || !tsg || tsg->tsgid >= s->count || !test_bit(tsg->tsgid, s->held))
		rc = g->ops.runlist.update(g, rl, ch, add, wait_for_finish);
	if (!rc) {
		if (add)
			set_bit(ch->chid, s->wished);
		else
			clear_bit(ch->chid, s->wished);
	}
	up_read(&s->gate);
	return rc;
}

void gpuseg_nvgpu_tsg_opened(struct gk20a *g, struct nvgpu_tsg *tsg)
{
	struct gpuseg *s = gpuseg_of(g);

	if (!s || tsg->tsgid >= s->count)
		return;
	rt_mutex_lock(&s->lock);
	clear_bit(tsg->tsgid, s->held); /* of the last one with this number */
	apply(s);
	rt_mutex_unlock(&s->lock);
}

void gpuseg_nvgpu_tsg_closed(struct gk20a *g, struct nvgpu_tsg *tsg)
{
	struct gpuseg *s = gpuseg_of(g);

	if (!s || tsg->tsgid >= s->count)
		return;
	rt_mutex_lock(&s->lock);
	clear_bit(tsg->tsgid, s->held);
	rt_mutex_unlock(&s->lock);
}

static void gpuseg_free(struct gpuseg *s)
{
	bitmap_free(s->held);
	bitmap_free(s->wished);
	kfree(s);
}

int gpuseg_nvgpu_init(struct gk20a *g)
{
	struct gpuseg *s;

	if (gpuseg_of(g))
		return 0; /* the GPU was switched off and on again */
	s = kzalloc(sizeof(*s), GFP_KERNEL);
	if (!s)
		return -ENOMEM;
	s->g = g;
	s->count = g->fifo.num_channels; /* as many TSGs as channels */
	s->held = bitmap_zalloc(s->count, GFP_KERNEL);
	s->wished = bitmap_zalloc(s->count, GFP_KERNEL);
	if (!s->held || !s->wished) {
		gpuseg_free(s);
		return -ENOMEM;
	}
	rt_mutex_init(&s->lock);
	init_rwsem(&s->gate);
	INIT_LIST_HEAD(&s->segments);
	INIT_DELAYED_WORK(&s->retry, retry);
	mutex_lock(&gpus_lock);
	list_add_tail(&s->entry, &gpus);
	mutex_unlock(&gpus_lock);
	return 0;
}

void gpuseg_nvgpu_exit(struct gk20a *g)
{
	struct gpuseg *s = gpuseg_of(g);
	struct segment *x, *next;

	if (!s)
		return;
	mutex_lock(&gpus_lock);
	list_del(&s->entry);
	mutex_unlock(&gpus_lock);
	cancel_delayed_work_sync(&s->retry);
	list_for_each_entry_safe(x, next, &s->segments, entry)
		kfree(x);
	gpuseg_free(s);
}
