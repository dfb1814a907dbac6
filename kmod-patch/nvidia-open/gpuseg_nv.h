/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * Ioctls of /dev/gpuseg-nv, which disables and enables the GPU channels of whole processes. Experimental: it has not
 * run on a GPU.
 *
 * Permission: CAP_SYS_ADMIN in the initial user namespace, at open. One controller at a time: a second open is -EBUSY.
 * When the last descriptor of that open is closed, or its watchdog lapses, everything it holds is released.
 *
 * All structures are little-endian, naturally aligned and the same for 32-bit callers. Reserved fields must be 0.
 */
#ifndef GPUSEG_NV_H
#define GPUSEG_NV_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define GPUSEG_NV_ABI 1

#define GPUSEG_NV_TARGETS_MAX 1024 /* of one switch */
#define GPUSEG_NV_NAMES_MAX 32 /* names that are never caught */
#define GPUSEG_NV_NAME 16
#define GPUSEG_NV_WATCHDOG_MIN_MS 10
#define GPUSEG_NV_WATCHDOG_MAX_MS 10000

enum gpuseg_nv_op {
	GPUSEG_NV_OP_HOLD = 1,	  /* disable its channels, and those that it creates from now on */
	GPUSEG_NV_OP_RELEASE = 2, /* enable them */
	GPUSEG_NV_OP_EXEMPT = 3	  /* not to be caught by the window that this switch opens */
};

/*
 * A process, by pid in the caller's pid namespace. start_ticks, field 22 of /proc/<pid>/stat, tells a reused pid;
 * 0 takes the pid as it is.
 */
struct gpuseg_nv_target {
	__s32 pid;
	__u32 op;
	__u64 start_ticks;
	__s32 result;	/* out: 0; -ESRCH no such process; -EIO the driver refused some channel; -ENOSPC too many */
	__u32 channels; /* out: how many of its channels are disabled now */
};

/* Flags of a switch. */
#define GPUSEG_NV_WINDOW_OPEN 0x1  /* from now on, a process that makes its first channel starts held */
#define GPUSEG_NV_WINDOW_CLOSE 0x2 /* no longer; those caught are released unless a HOLD named them */
#define GPUSEG_NV_ALL_ENGINES 0x4  /* also TSGs without a compute or graphics object (copy engines) */
/* Out: the watchdog has released everything since the last switch. */
#define GPUSEG_NV_LAPSED 0x80000000u

/*
 * Everything to be held is disabled before anything is enabled. 0 when every result is 0; -EIO when some
 * result is not (the others are done); -EINVAL, -EFAULT, -E2BIG, -ENOMEM, -EINTR: nothing was done.
 */
struct gpuseg_nv_switch {
	__u64 targets; /* struct gpuseg_nv_target[count] */
	__u32 count;
	__u32 flags;	/* in and out */
	__u64 took_ns;	/* out: within the driver's calls */
	__u32 rm_calls; /* out */
	__u32 rm_status; /* out: first RM status that was not 0 */
};

/* Period 0 disables it. Every switch and every call of this ioctl re-arms it. -ERANGE: not within the bounds above. */
struct gpuseg_nv_watchdog {
	__u32 period_ms;
	__u32 reserved;
};

/* A name (/proc/<pid>/comm) that is never caught by a window. -ENOSPC when the table is full. */
struct gpuseg_nv_name {
	char name[GPUSEG_NV_NAME];
};

struct gpuseg_nv_process {
	__s32 pid; /* in the caller's pid namespace; 0 = not visible there, or gone */
	__u32 flags;
	__u64 start_ticks;
	__u32 channels;
	__u32 off;
	char name[GPUSEG_NV_NAME];
};

#define GPUSEG_NV_PROCESS_HELD 0x1
#define GPUSEG_NV_PROCESS_CAUGHT 0x2 /* held since its first channel; no controller has named it yet */
#define GPUSEG_NV_PROCESS_DEAD 0x4   /* another process keeps its descriptor open */

struct gpuseg_nv_list {
	__u64 processes; /* struct gpuseg_nv_process[count] */
	__u32 count;	 /* in: room; out: how many there are, which may be more */
	__u32 reserved;
};

struct gpuseg_nv_info {
	__u32 abi; /* GPUSEG_NV_ABI */
	__u32 batch_max;
	__u32 processes;
	__u32 clients;
	__u32 channels;
	__u32 off;
	__u32 held;
	__u32 window;
	__u64 rm_calls;
	__u64 rm_failures;
	__u64 caught;
	__u64 lapses;
};

#define GPUSEG_NV_MAGIC 0xb7
#define GPUSEG_NV_IOC_INFO _IOR(GPUSEG_NV_MAGIC, 0, struct gpuseg_nv_info)
#define GPUSEG_NV_IOC_SWITCH _IOWR(GPUSEG_NV_MAGIC, 1, struct gpuseg_nv_switch)
#define GPUSEG_NV_IOC_WATCHDOG _IOW(GPUSEG_NV_MAGIC, 2, struct gpuseg_nv_watchdog)
#define GPUSEG_NV_IOC_PROTECT _IOW(GPUSEG_NV_MAGIC, 3, struct gpuseg_nv_name)
#define GPUSEG_NV_IOC_LIST _IOWR(GPUSEG_NV_MAGIC, 4, struct gpuseg_nv_list)

/*
 * poll: POLLIN when a process was caught since the last LIST.
 */

#endif
