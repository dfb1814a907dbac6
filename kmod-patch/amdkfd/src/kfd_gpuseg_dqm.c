// SPDX-License-Identifier: GPL-2.0-only
/*
 * The part of gpuseg that changes queues. It is included at the end of
 * kfd_device_queue_manager.c because it needs that file's static functions; it is
 * not an object of its own.
 *
 * All functions here recompute: a queue is held exactly if the table of holds says
 * so (kfd_gpuseg_wanted()), whatever happened before. is_gpuseg_held makes a queue
 * inactive independently of is_evicted. So evictions by memory management and holds
 * nest in any order and neither undoes the other.
 */
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/version.h>

#include "gpuseg_kfd.h"

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 5, 0)
#define GPUSEG_KFD(dqm)		((dqm)->dev->kfd)
#define gpuseg_execute(dqm) \
	execute_queues_cpsch((dqm), KFD_UNMAP_QUEUES_FILTER_DYNAMIC_QUEUES, 0, \
			     USE_DEFAULT_GRACE_PERIOD)
#else
#define GPUSEG_KFD(dqm)		((dqm)->dev)
#define gpuseg_execute(dqm) \
	execute_queues_cpsch((dqm), KFD_UNMAP_QUEUES_FILTER_DYNAMIC_QUEUES, 0)
#endif

u32 kfd_gpuseg_dqm_gpu_id(struct device_queue_manager *dqm)
{
	return dqm->dev->id;
}

u32 kfd_gpuseg_dqm_mode(struct device_queue_manager *dqm)
{
	if (dqm->sched_policy == KFD_SCHED_POLICY_NO_HWS)
		return GPUSEG_KFD_NO_HWS;
	return GPUSEG_KFD(dqm)->shared_resources.enable_mes ? GPUSEG_KFD_MES : GPUSEG_KFD_HWS;
}

/*
 * On gfx11 and later the driver's HQD functions do not save waves, and MES assumes
 * that it owns the HQDs; on gfx12 they do not exist at all.
 */
u32 kfd_gpuseg_dqm_reason(struct device_queue_manager *dqm)
{
	if (kfd_gpuseg_dqm_mode(dqm) == GPUSEG_KFD_NO_HWS &&
	    KFD_GC_VERSION(dqm->dev) >= IP_VERSION(11, 0, 0))
		return GPUSEG_KFD_NO_HWS_ON_MES_GPU;
	return GPUSEG_KFD_OK;
}

u32 kfd_gpuseg_dqm_preemption(struct device_queue_manager *dqm)
{
	if (kfd_gpuseg_dqm_reason(dqm) != GPUSEG_KFD_OK)
		return GPUSEG_KFD_PREEMPT_NONE;
	if (!GPUSEG_KFD(dqm)->cwsr_enabled)
		return GPUSEG_KFD_PREEMPT_DRAIN;
	/* HQD unload saves waves from gfx9 on; before, it drains. */
	if (kfd_gpuseg_dqm_mode(dqm) == GPUSEG_KFD_NO_HWS && !KFD_IS_SOC15(dqm->dev))
		return GPUSEG_KFD_PREEMPT_DRAIN;
	return GPUSEG_KFD_PREEMPT_SAVE;
}

u32 kfd_gpuseg_dqm_gfx_version(struct device_queue_manager *dqm)
{
	return GPUSEG_KFD(dqm)->device_info.gfx_target_version;
}

static bool gpuseg_is_sdma(const struct queue *q)
{
	return q->properties.type == KFD_QUEUE_TYPE_SDMA ||
	       q->properties.type == KFD_QUEUE_TYPE_SDMA_XGMI;
}

static bool gpuseg_wanted(struct device_queue_manager *dqm, const struct queue *q)
{
	if (kfd_gpuseg_dqm_reason(dqm) != GPUSEG_KFD_OK)
		return false;
	return kfd_gpuseg_wanted(task_tgid(q->process->lead_thread), dqm->dev->id,
				 q->gpuseg.serial, gpuseg_is_sdma(q));
}

/**
 * kfd_gpuseg_queue_init - a queue is being created
 * @dqm: its device, locked
 * @qpd: its process on that device
 * @q: the queue, before its MQD is initialised from its properties
 *
 * Called after the creator dropped the DQM lock for the last time. So a hold made
 * before finds the queue here, and one made after finds it in the list.
 *
 * The same holds for evictions: create_queue_nocpsch() reads the count of
 * evictions before it drops the lock to allocate. A queue that missed one would
 * run while its memory may move, and the restore would load and count it twice.
 */
void kfd_gpuseg_queue_init(struct device_queue_manager *dqm, struct qcm_process_device *qpd,
			   struct queue *q)
{
	static atomic64_t last_serial = ATOMIC64_INIT(0);

	lockdep_assert_held(&dqm->lock_hidden);
	q->gpuseg.serial = atomic64_inc_return(&last_serial);
	q->gpuseg.error = 0;
	q->gpuseg.stuck = false;
	q->properties.is_evicted = !!qpd->evicted;
	q->properties.is_gpuseg_held = gpuseg_wanted(dqm, q);
}

static struct mqd_manager *gpuseg_mqd_mgr(struct device_queue_manager *dqm, const struct queue *q)
{
	return dqm->mqd_mgrs[get_mqd_type_from_queue_type(q->properties.type)];
}

static int gpuseg_destroy_mqd(struct device_queue_manager *dqm, struct queue *q)
{
	struct mqd_manager *mqd_mgr = gpuseg_mqd_mgr(dqm, q);

	return mqd_mgr->destroy_mqd(mqd_mgr, q->mqd,
				    GPUSEG_KFD(dqm)->cwsr_enabled ?
				    KFD_PREEMPT_TYPE_WAVEFRONT_SAVE :
				    KFD_PREEMPT_TYPE_WAVEFRONT_DRAIN,
				    KFD_UNMAP_LATENCY_MS, q->pipe, q->queue);
}

/*
 * The address space of the queue's process. Not of its leading thread alone, which
 * may have ended before the others. May be called under the DQM lock: allocates
 * nothing. Put it with mmput_async(): the last mmput() ends the address space, which
 * takes the DQM lock.
 */
static struct mm_struct *gpuseg_get_mm(struct kfd_process *p)
{
	struct mm_struct *mm = NULL;
	struct task_struct *t;

	rcu_read_lock();
	for_each_thread(p->lead_thread, t) {
		mm = get_task_mm(t);
		if (!mm)
			continue;
		if (mm == p->mm)
			break;
		/* The process has called exec: this is the image after it. */
		mmput_async(mm);
		mm = NULL;
	}
	rcu_read_unlock();
	return mm;
}

static int gpuseg_load_mqd(struct device_queue_manager *dqm, struct queue *q)
{
	struct mqd_manager *mqd_mgr = gpuseg_mqd_mgr(dqm, q);
	struct mm_struct *mm = gpuseg_get_mm(q->process);
	int r;

	if (!mm)
		return -ESRCH;
	r = mqd_mgr->load_mqd(mqd_mgr, q->mqd, q->pipe, q->queue, &q->properties, mm);
	mmput_async(mm);
	return r;
}

/* Disables one queue. In mode HWS only marks it: the caller writes a runlist. */
static int gpuseg_hold_queue(struct device_queue_manager *dqm, struct qcm_process_device *qpd,
			     struct queue *q, bool *remap)
{
	bool active = q->properties.is_active;
	int r = 0;

	if (!active) {
		q->properties.is_gpuseg_held = true;
		q->gpuseg.stuck = false;
		return 0;
	}
	if (!dqm->sched_running)
		return -EIO;

	if (kfd_gpuseg_dqm_mode(dqm) == GPUSEG_KFD_NO_HWS) {
		/* A queue that stays in its HQD is not held, and still counts as active. */
		r = gpuseg_destroy_mqd(dqm, q);
		q->gpuseg.stuck = r == -ETIME;
		if (r)
			return r;
	}
	q->properties.is_gpuseg_held = true;
	q->properties.is_active = false;
	decrement_queue_count(dqm, qpd, q);
	dqm->gpuseg.unloads++;

	switch (kfd_gpuseg_dqm_mode(dqm)) {
	case GPUSEG_KFD_MES:
		/*
		 * No TLB flush as after an eviction: the memory stays where it is. If
		 * this fails the GPU is reset, and restored from the flags.
		 */
		r = remove_queue_mes(dqm, q, qpd);
		break;
	case GPUSEG_KFD_HWS:
		*remap = true;
		break;
	}
	return r;
}

static int gpuseg_release_queue(struct device_queue_manager *dqm, struct qcm_process_device *qpd,
				struct queue *q, bool *remap)
{
	int r = 0;

	if (q->gpuseg.stuck && q->properties.is_active) {
		/*
		 * It was told to leave and may have done so late. Only a finished unload
		 * makes its state known; then load it again.
		 */
		r = gpuseg_destroy_mqd(dqm, q);
		if (!r)
			r = gpuseg_load_mqd(dqm, q);
		if (r)
			return r;
		q->gpuseg.stuck = false;
		dqm->gpuseg.loads++;
		return 0;
	}

	q->gpuseg.stuck = false;
	q->properties.is_gpuseg_held = false;
	if (!KFD_GPUSEG_MAY_RUN(q->properties))
		return 0;
	if (!dqm->sched_running) {
		q->properties.is_gpuseg_held = true;
		return -EIO;
	}

	if (kfd_gpuseg_dqm_mode(dqm) == GPUSEG_KFD_NO_HWS) {
		r = gpuseg_load_mqd(dqm, q);
		/* The process ends, and so will this queue: leave it inactive. */
		if (r == -ESRCH)
			return 0;
		if (r) {
			q->properties.is_gpuseg_held = true;
			return r;
		}
	}
	q->properties.is_active = true;
	increment_queue_count(dqm, qpd, q);
	dqm->gpuseg.loads++;

	switch (kfd_gpuseg_dqm_mode(dqm)) {
	case GPUSEG_KFD_MES:
		r = add_queue_mes(dqm, q, qpd);
		break;
	case GPUSEG_KFD_HWS:
		*remap = true;
		break;
	}
	return r;
}

static bool gpuseg_must_hold(struct device_queue_manager *dqm, const struct queue *q)
{
	return !q->properties.is_gpuseg_held && gpuseg_wanted(dqm, q);
}

static bool gpuseg_must_release(struct device_queue_manager *dqm, const struct queue *q)
{
	return (q->properties.is_gpuseg_held || q->gpuseg.stuck) && !gpuseg_wanted(dqm, q);
}

typedef bool (*gpuseg_test_t)(struct device_queue_manager *dqm, const struct queue *q);
typedef int (*gpuseg_change_t)(struct device_queue_manager *dqm, struct qcm_process_device *qpd,
			       struct queue *q, bool *remap);

/*
 * Walks the processes that are registered with the device: one that is being torn
 * down has left that list, with its queues counted off, under this same lock.
 */
static int gpuseg_change(struct device_queue_manager *dqm, gpuseg_test_t test,
			 gpuseg_change_t change, bool *remap)
{
	struct device_process_node *node;
	struct queue *q;
	int ret = 0;

	lockdep_assert_held(&dqm->lock_hidden);
	list_for_each_entry(node, &dqm->queues, list) {
		list_for_each_entry(q, &node->qpd->queues_list, list) {
			if (!test(dqm, q))
				continue;
			q->gpuseg.error = change(dqm, node->qpd, q, remap);
			if (!q->gpuseg.error)
				continue;
			dqm->gpuseg.failures++;
			if (!ret)
				ret = q->gpuseg.error;
		}
	}
	return ret;
}

static bool gpuseg_any(struct device_queue_manager *dqm, gpuseg_test_t test)
{
	struct device_process_node *node;
	struct queue *q;

	lockdep_assert_held(&dqm->lock_hidden);
	list_for_each_entry(node, &dqm->queues, list)
		list_for_each_entry(q, &node->qpd->queues_list, list)
			if (test(dqm, q))
				return true;
	return false;
}

/**
 * kfd_gpuseg_dqm_unload - disable what must be held; first step of a change
 * @dqm: the device, unlocked
 * @must_load: out, whether kfd_gpuseg_dqm_load() must follow, on a kernel thread
 *
 * In modes HWS and MES this also enables queues. It sleeps until the hardware answers.
 *
 * Return: 0, or the first error; every queue was tried.
 */
int kfd_gpuseg_dqm_unload(struct device_queue_manager *dqm, bool *must_load)
{
	bool remap = false;
	int ret, r;

	dqm_lock(dqm);
	ret = gpuseg_change(dqm, gpuseg_must_hold, gpuseg_hold_queue, &remap);
	if (kfd_gpuseg_dqm_mode(dqm) == GPUSEG_KFD_NO_HWS) {
		*must_load = gpuseg_any(dqm, gpuseg_must_release);
	} else {
		*must_load = false;
		r = gpuseg_change(dqm, gpuseg_must_release, gpuseg_release_queue, &remap);
		if (!ret)
			ret = r;
	}
	if (remap) {
		/* One runlist for everything. If it fails the GPU is reset. */
		r = gpuseg_execute(dqm);
		dqm->gpuseg.remaps++;
		if (r)
			dqm->gpuseg.failures++;
		if (!ret)
			ret = r;
	}
	dqm_unlock(dqm);
	return ret;
}

/**
 * kfd_gpuseg_dqm_load - enable what is no longer held (NO_HWS)
 * @dqm: the device, unlocked
 *
 * Runs on a kernel thread only: loading an SDMA queue, and any queue before gfx9,
 * reads the queue's write pointer from the address space of its owner. The driver
 * can do so from its owner or from a kernel thread; from any other process it finds
 * the queue empty, and work that was submitted meanwhile would not start.
 *
 * Return: 0, or the first error; every queue was tried.
 */
int kfd_gpuseg_dqm_load(struct device_queue_manager *dqm)
{
	bool remap = false;
	int ret;

	if (WARN_ON_ONCE(!(current->flags & PF_KTHREAD)))
		return -EINVAL;
	dqm_lock(dqm);
	ret = gpuseg_change(dqm, gpuseg_must_release, gpuseg_release_queue, &remap);
	dqm_unlock(dqm);
	return ret;
}
