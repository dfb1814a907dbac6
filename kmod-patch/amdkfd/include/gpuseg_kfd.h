/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * gpuseg_kfd.h - user interface of /dev/gpuseg-kfd, ABI version 1
 *
 * The device disables compute queues of other processes on an AMD GPU and
 * enables them again. A hold says "this process (or queue) must not run" and
 * belongs to the open file it was made on. A queue runs when no open file holds
 * it. Holds are not counted: a second one has no effect, and one release ends
 * it. A hold ends by release, when its file is closed for the last time (hence
 * also when its owner dies), or when the file's watchdog lapses.
 *
 * Opening the device and every ioctl need CAP_SYS_ADMIN in the initial user
 * namespace. All structures have the same layout for 32 and 64 bit callers. Fields
 * called "reserved" must be 0 on input, and unknown flags are refused with EINVAL.
 *
 * Experimental: it has not run on AMD hardware.
 */
#ifndef GPUSEG_KFD_H
#define GPUSEG_KFD_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define GPUSEG_KFD_ABI			1

/* Entries of one APPLY or queues of one QUERY, at most. */
#define GPUSEG_KFD_MAX_BATCH		64
#define GPUSEG_KFD_MAX_QUERY		4096
/* Holds of one open file, at most. */
#define GPUSEG_KFD_MAX_HOLDS		1024

/* Watchdog period in milliseconds: a new file has the default. */
#define GPUSEG_KFD_WATCHDOG_MIN_MS	10
#define GPUSEG_KFD_WATCHDOG_DEFAULT_MS	100
#define GPUSEG_KFD_WATCHDOG_MAX_MS	60000

#define GPUSEG_KFD_ALL_GPUS		0u
#define GPUSEG_KFD_ALL_QUEUES		0xffffffffu

/**
 * struct gpuseg_kfd_info - what this kernel offers; argument of INFO
 *
 * @abi: out, GPUSEG_KFD_ABI
 * @n_gpus: out, GPUs that KFD drives now
 * @n_holds: out, holds of this file
 * @watchdog_ms: out, this file's watchdog period
 * @lapses: out, how often this file's watchdog lapsed
 * @reserved: out, 0
 */
struct gpuseg_kfd_info {
	__u32 abi;
	__u32 n_gpus;
	__u32 n_holds;
	__u32 watchdog_ms;
	__u32 lapses;
	__u32 reserved;
};

/* How queues reach the hardware, and what a change costs. */
enum gpuseg_kfd_mode {
	/* The driver loads and unloads HQDs itself: a change costs its queue alone. */
	GPUSEG_KFD_NO_HWS = 1,
	/*
	 * The CP's firmware maps a runlist: a change, or one APPLY with many, unmaps all
	 * KFD queues of that GPU, of all processes, and maps a new runlist.
	 */
	GPUSEG_KFD_HWS = 2,
	/* The MES firmware adds and removes single queues. */
	GPUSEG_KFD_MES = 3,
};

/* What a hold does to running waves. */
enum gpuseg_kfd_preemption {
	/* Holds are refused: see gpuseg_kfd_gpu.reason. */
	GPUSEG_KFD_PREEMPT_NONE = 0,
	/* Running waves finish first: a hold takes as long as they do. */
	GPUSEG_KFD_PREEMPT_DRAIN = 1,
	/* Waves are saved to memory and continue after the release. */
	GPUSEG_KFD_PREEMPT_SAVE = 2,
};

enum gpuseg_kfd_reason {
	GPUSEG_KFD_OK = 0,
	/*
	 * NO_HWS on gfx11 or later: HQD unload does not preempt there, and gfx12 has no
	 * HQD functions. Load amdgpu with sched_policy=0.
	 */
	GPUSEG_KFD_NO_HWS_ON_MES_GPU = 1,
};

/**
 * struct gpuseg_kfd_gpu - one GPU; argument of GPU
 *
 * @index: in, 0 to gpuseg_kfd_info.n_gpus - 1; ENODEV beyond
 * @gpu_id: out, as in /sys/class/kfd/kfd/topology/nodes/N/gpu_id
 * @mode: out, enum gpuseg_kfd_mode
 * @preemption: out, enum gpuseg_kfd_preemption
 * @reason: out, enum gpuseg_kfd_reason, why @preemption is NONE
 * @gfx_version: out, as gfx_target_version in the topology: 90402 is gfx9.4.2
 * @n_queues: out, user queues on this GPU
 * @n_held: out, those held
 * @unloads: out, queues that this device disabled since the driver was loaded
 * @loads: out, queues that it enabled again
 * @failures: out, changes that failed
 * @remaps: out, runlists written because of holds and releases (mode HWS)
 * @last_ns: out, duration of the last change of this GPU, locks included, ns
 * @max_ns: out, longest of them, ns
 */
struct gpuseg_kfd_gpu {
	__u32 index;
	__u32 gpu_id;
	__u32 mode;
	__u32 preemption;
	__u32 reason;
	__u32 gfx_version;
	__u32 n_queues;
	__u32 n_held;
	__u64 unloads;
	__u64 loads;
	__u64 failures;
	__u64 remaps;
	__u64 last_ns;
	__u64 max_ns;
};

enum gpuseg_kfd_op {
	GPUSEG_KFD_HOLD = 1,
	/* Ends the hold that was made with the same pid, gpu_id and queue_id. */
	GPUSEG_KFD_RELEASE = 2,
	/* Ends every hold of this file on the process; gpu_id and queue_id must be ALL. */
	GPUSEG_KFD_RELEASE_PROCESS = 3,
};

/* Flag of a hold with ALL_QUEUES: SDMA queues (copies) keep running. */
#define GPUSEG_KFD_COMPUTE_ONLY		(1u << 0)

/**
 * struct gpuseg_kfd_entry - one hold or release of an APPLY
 *
 * A process is named by its ID in the caller's PID namespace together with its
 * start time, so that a reused ID is refused (ESRCH). The start time is field 22
 * of /proc/PID/stat, in clock ticks.
 *
 * A process may be held before it opens /dev/kfd. Queues that a held process
 * creates start held; a queue that takes the ID of a destroyed one does not
 * inherit the hold on that queue.
 *
 * @pid: in, process (thread group) ID
 * @op: in, enum gpuseg_kfd_op
 * @start_ticks: in, start time
 * @gpu_id: in, or GPUSEG_KFD_ALL_GPUS
 * @queue_id: in, as returned by KFD's CREATE_QUEUE, or GPUSEG_KFD_ALL_QUEUES;
 *	a single queue needs its gpu_id
 * @flags: in, GPUSEG_KFD_COMPUTE_ONLY or 0
 * @result: out, 0 or
 *	-ESRCH no such process, or it started at another time
 *	-ENODEV no such GPU
 *	-ENOENT no such queue; for RELEASE: no such hold of this file
 *	-ENOTUNIQ several KFD contexts of the process have a queue with that ID (Linux 7.1
 *	and later); hold all queues instead
 *	-EOPNOTSUPP this GPU cannot hold (gpuseg_kfd_gpu.reason); nothing recorded.
 *	With ALL_GPUS: one GPU where the process has queues cannot; the others hold
 *	-ESTALE the watchdog lapsed while this batch began
 *	-ENOSPC this file has GPUSEG_KFD_MAX_HOLDS holds
 *	-ETIME a queue did not leave its HQD in time and still runs (NO_HWS)
 *	-EIO the GPU hangs or is being reset. The driver applies what holds then
 *	After ETIME and EIO the hold is in force: apply again to retry, or release.
 * @n_queues: out, queues named by this entry
 * @n_held: out, those disabled because an open file holds them
 */
struct gpuseg_kfd_entry {
	__s32 pid;
	__u32 op;
	__u64 start_ticks;
	__u32 gpu_id;
	__u32 queue_id;
	__u32 flags;
	__s32 result;
	__u32 n_queues;
	__u32 n_held;
};

/**
 * struct gpuseg_kfd_apply - a batch; argument of APPLY
 *
 * All entries are recorded first, then every GPU is changed once: queues are
 * disabled before others are enabled. In mode HWS a batch costs one runlist per GPU, however long
 * it is. Also re-arms the watchdog. The call returns when the hardware has changed.
 *
 * Returns 0 if every entry was processed (see their results). On EINVAL, E2BIG,
 * EFAULT on reading, ENOMEM, EPERM and ESTALE nothing was done. ESTALE: the
 * watchdog lapsed since the last WATCHDOG, so holds that the caller relies on
 * are gone; a batch of releases only is still accepted.
 *
 * @entries: in, user address of an array of struct gpuseg_kfd_entry
 * @n_entries: in, 1 to GPUSEG_KFD_MAX_BATCH
 * @flags: in, 0
 * @n_failed: out, entries with a result other than 0
 * @reserved: in, 0
 * @took_ns: out, time from the first lock taken to the last change done, ns
 */
struct gpuseg_kfd_apply {
	__u64 entries;
	__u32 n_entries;
	__u32 flags;
	__u32 n_failed;
	__u32 reserved;
	__u64 took_ns;
};

/**
 * struct gpuseg_kfd_watchdog - argument of WATCHDOG
 *
 * Sets the period, forgets an earlier lapse and arms. The watchdog runs while the
 * file has holds. When a period passes without WATCHDOG, KICK or APPLY all holds of
 * the file end and the file is stale (ESTALE) until the next WATCHDOG.
 *
 * @period_ms: in, WATCHDOG_MIN_MS to WATCHDOG_MAX_MS; it cannot be disabled
 * @lapses: out, lapses so far
 */
struct gpuseg_kfd_watchdog {
	__u32 period_ms;
	__u32 lapses;
};

#define GPUSEG_KFD_QUEUE_ACTIVE		(1u << 0)	/* may run now */
#define GPUSEG_KFD_QUEUE_HELD		(1u << 1)	/* held by any file */
#define GPUSEG_KFD_QUEUE_EVICTED	(1u << 2)	/* by memory management */
#define GPUSEG_KFD_QUEUE_STUCK		(1u << 3)	/* did not leave its HQD in time */
#define GPUSEG_KFD_QUEUE_SDMA		(1u << 4)	/* copies, no compute */

struct gpuseg_kfd_queue {
	__u32 gpu_id;
	__u32 queue_id;
	__u32 flags;
	__s32 error;	/* of the last change: 0 or as in gpuseg_kfd_entry.result */
};

/**
 * struct gpuseg_kfd_query - the queues of one process; argument of QUERY
 *
 * @pid: in
 * @n_queues: in, room in the array, at most GPUSEG_KFD_MAX_QUERY; out, number of
 *	queues; if it is larger than the room, some are missing
 * @start_ticks: in
 * @queues: in, user address of an array of struct gpuseg_kfd_queue
 */
struct gpuseg_kfd_query {
	__s32 pid;
	__u32 n_queues;
	__u64 start_ticks;
	__u64 queues;
};

#define GPUSEG_KFD_IOC_INFO	_IOR('G', 0x40, struct gpuseg_kfd_info)
#define GPUSEG_KFD_IOC_GPU	_IOWR('G', 0x41, struct gpuseg_kfd_gpu)
#define GPUSEG_KFD_IOC_APPLY	_IOWR('G', 0x42, struct gpuseg_kfd_apply)
#define GPUSEG_KFD_IOC_WATCHDOG	_IOWR('G', 0x43, struct gpuseg_kfd_watchdog)
#define GPUSEG_KFD_IOC_KICK	_IO('G', 0x44)
#define GPUSEG_KFD_IOC_QUERY	_IOWR('G', 0x45, struct gpuseg_kfd_query)

#endif /* GPUSEG_KFD_H */
