/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * ioctls of /dev/fake-kfd: what a process may ask of KFD, and what a test may see of the simulated hardware.
 * A test tool, no ABI.
 */
#ifndef FAKE_AMDGPU_H
#define FAKE_AMDGPU_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* The simulated GPUs, by index. */
enum fake_gpu {
	FAKE_NO_HWS_GFX9,
	FAKE_HWS_GFX9,
	FAKE_MES_GFX11,
	FAKE_NO_HWS_GFX11,
	FAKE_GPUS,
};

#define FAKE_GPU_ID(index)	(0x1000u + (index))

enum fake_type {
	FAKE_COMPUTE,
	FAKE_SDMA,
};

/* @queue_id: out of CREATE, else in. @wptr: user address that the hardware's write pointer is read from. */
struct fake_queue {
	__u32 gpu;
	__u32 type;
	__u32 percent;
	__u32 queue_id;
	__u64 wptr;
};

/* Memory management evicts or restores a process on one GPU; @ms: LONG sleeps that long under the process's mutex. */
struct fake_process {
	__s32 pid;
	__u32 gpu;
	__u32 ms;
	__u32 reserved;
};

/* How often from now on something fails; 0: no more. */
struct fake_fault {
	__u32 gpu;
	__u32 destroy_timeouts;		/* hqd_destroy: -ETIME, and the queue stays */
	__u32 destroy_late;		/* same, but the queue leaves right afterwards */
	__u32 load_failures;		/* hqd_load: -EIO */
	__u32 mes_failures;		/* add_hw_queue, remove_hw_queue: -EIO */
	__u32 fence_losses;		/* the CP does not answer an unmap */
	__u32 destroy_us;		/* not a count: every unload lasts that long */
	__u32 allocate_us;		/* not a count: an MQD's allocation, which gives up the driver's lock, lasts that long */
};

struct fake_queue_state {
	__s32 pid;
	__u32 queue_id;
	__u32 on_hardware;
	__u32 is_active;
	__u32 is_held;
	__u32 is_evicted;
};

#define FAKE_MAX_STATE	128

struct fake_state {
	__u32 gpu;
	__u32 n_queues;			/* in: room, at most FAKE_MAX_STATE; out: there are */
	__u64 queues;			/* array of struct fake_queue_state */
	__u32 active_queue_count;	/* as the driver counts */
	__u32 active_cp_queue_count;
	__u32 total_queue_count;
	__u32 processes_count;
	__u32 on_hardware;		/* as the hardware knows */
	__u32 rule_breaks;		/* things no driver may do to hardware */
	__u32 runlists;
	__u32 resets;
	__u32 live_allocations;		/* MQDs and the like, all GPUs */
	__u32 live_processes;
};

#define FAKE_CREATE	_IOWR('F', 1, struct fake_queue)
#define FAKE_DESTROY	_IOWR('F', 2, struct fake_queue)
#define FAKE_UPDATE	_IOWR('F', 3, struct fake_queue)
#define FAKE_EVICT	_IOW('F', 4, struct fake_process)
#define FAKE_RESTORE	_IOW('F', 5, struct fake_process)
#define FAKE_LONG	_IOW('F', 6, struct fake_process)
#define FAKE_FAULT	_IOW('F', 7, struct fake_fault)
#define FAKE_STATE	_IOWR('F', 8, struct fake_state)
/* Which kernel the driver comes from: its defects differ. Returns 1 if queues destroyed in mode MES stay counted as active. */
#define FAKE_MES_LEAKS	_IO('F', 9)
/* A further KFD context of the calling process, for orders through this file, which has none yet. It ends with the file. */
#define FAKE_CONTEXT	_IO('F', 10)

#endif
