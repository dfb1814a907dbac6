/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Hold and release of user queues for GPU segments. See kfd_gpuseg.c for the design.
 */
#ifndef KFD_GPUSEG_H
#define KFD_GPUSEG_H

#include <linux/kthread.h>
#include <linux/list.h>
#include <linux/types.h>

struct device_queue_manager;
struct pid;
struct qcm_process_device;
struct queue;

/**
 * struct kfd_gpuseg_queue - what struct queue carries for us; under the DQM lock
 *
 * @serial: never reused, unlike the queue ID; 0 is none
 * @error: of the last change of this queue, 0 if it succeeded
 * @stuck: was told to leave its HQD and did not do so in time (NO_HWS)
 */
struct kfd_gpuseg_queue {
	u64 serial;
	int error;
	bool stuck;
};

/**
 * struct kfd_gpuseg_dev - what struct device_queue_manager carries for us
 *
 * @node: in the list of devices, under kfd_gpuseg_devices_lock
 * @load_work: runs kfd_gpuseg_dqm_load() on a kernel thread
 * @load_error: its result, written before the work ends
 * @unloads, @loads, @failures, @remaps, @last_ns, @max_ns: under the DQM lock
 */
struct kfd_gpuseg_dev {
	struct list_head node;
	struct kthread_work load_work;
	int load_error;
	u64 unloads;
	u64 loads;
	u64 failures;
	u64 remaps;
	u64 last_ns;
	u64 max_ns;
};

/* Whether a queue may be on the hardware. Replaces QUEUE_IS_ACTIVE() in the driver. */
#define KFD_GPUSEG_MAY_RUN(q)	(QUEUE_IS_ACTIVE(q) && !(q).is_gpuseg_held)

/* kfd_gpuseg.c: called by the driver */
int kfd_gpuseg_init(void);
void kfd_gpuseg_exit(void);
void kfd_gpuseg_dqm_add(struct device_queue_manager *dqm);
void kfd_gpuseg_dqm_remove(struct device_queue_manager *dqm);
void kfd_gpuseg_queue_init(struct device_queue_manager *dqm, struct qcm_process_device *qpd,
			   struct queue *q);

/* kfd_gpuseg.c: called by kfd_gpuseg_dqm.c */
bool kfd_gpuseg_wanted(const struct pid *tgid, u32 gpu_id, u64 serial, bool sdma);

/* kfd_gpuseg_dqm.c, which is compiled as a part of kfd_device_queue_manager.c */
u32 kfd_gpuseg_dqm_gpu_id(struct device_queue_manager *dqm);
u32 kfd_gpuseg_dqm_gfx_version(struct device_queue_manager *dqm);
u32 kfd_gpuseg_dqm_mode(struct device_queue_manager *dqm);
u32 kfd_gpuseg_dqm_reason(struct device_queue_manager *dqm);
u32 kfd_gpuseg_dqm_preemption(struct device_queue_manager *dqm);
int kfd_gpuseg_dqm_unload(struct device_queue_manager *dqm, bool *must_load);
int kfd_gpuseg_dqm_load(struct device_queue_manager *dqm);

#endif
