/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpuseg_tegra.h - per-process control of GPU work on Tegra (nvgpu) with the stock driver: every TSG is a file
 * descriptor of the process, a duplicate of it (pidfd_getfd(2), needs ptrace rights) takes DISABLE, PREEMPT and ENABLE.
 *
 * Source of numbers: nvgpu's public UAPI header. Not run on a board.
 * Note: 'T' is the type of terminal ioctls too (ENABLE has the number of TCSETSW), so a descriptor is never asked
 * before its name in /proc/<pid>/fd says that it is a TSG.
 */
#ifndef GPUSEG_TEGRA_H
#define GPUSEG_TEGRA_H

#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>

#define GPUSEG_TEGRA_TSG_DEVICE "/dev/nvhost-tsg-gpu"
#define GPUSEG_TEGRA_SCHED_DEVICE "/dev/nvhost-sched-gpu"

struct gpuseg_tegra_timeslice {
	uint32_t timeslice_us;
	uint32_t reserved;
};

#define GPUSEG_TEGRA_ENABLE _IO('T', 3)
#define GPUSEG_TEGRA_DISABLE _IO('T', 4)
#define GPUSEG_TEGRA_PREEMPT _IO('T', 5)
#define GPUSEG_TEGRA_SET_TIMESLICE _IOW('T', 9, struct gpuseg_tegra_timeslice)
#define GPUSEG_TEGRA_GET_TIMESLICE _IOR('T', 10, struct gpuseg_tegra_timeslice)

/* Device of the scheduler, type 'S': which TSGs there are, and whose. */
struct gpuseg_tegra_get_tsgs {
	uint32_t size; /* bytes, in and out; -ENOSPC when too small */
	uint32_t pad;
	uint64_t buffer; /* bit n: TSG n exists */
};

struct gpuseg_tegra_params {
	uint32_t tsgid;
	uint32_t timeslice;
	uint32_t interleave;
	uint32_t graphics_preempt;
	uint32_t compute_preempt;
	uint32_t pad;
	uint64_t pid;
};

#define GPUSEG_TEGRA_GET_TSGS _IOWR('S', 1, struct gpuseg_tegra_get_tsgs)
#define GPUSEG_TEGRA_GET_PARAMS _IOWR('S', 4, struct gpuseg_tegra_params)

/* What the held file's payload of a Tegra context holds. */
#define GPUSEG_TEGRA_HELD_VERSION 1
#define GPUSEG_TEGRA_TSGS_MAX 64
struct gpuseg_tegra_held {
	uint32_t version;
	uint32_t count;
	int32_t fds[GPUSEG_TEGRA_TSGS_MAX]; /* numbers inside the process */
};

/*
 * Enables what a held entry names. Returns 0, also when a descriptor is closed by now (its TSG went with it); -ESRCH
 * when the process is gone, -EINVAL for a payload that is not ours, another -errno of the first failure, after all were
 * tried.
 */
int gpuseg_tegra_release(int pid, const void *payload, size_t size);

#endif
