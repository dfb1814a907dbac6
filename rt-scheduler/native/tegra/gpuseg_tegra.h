/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpuseg_tegra.h - per-process control of GPU work on Tegra (nvgpu) with the stock driver. Every TSG is a file
 * descriptor of its process. A duplicate of it (pidfd_getfd(2), needs ptrace rights) accepts DISABLE, PREEMPT and
 * ENABLE.
 *
 * Source of numbers: nvgpu's public UAPI header. Experimental: never run on a board.
 *
 * Note: terminals use ioctl type 'T', too, and ENABLE has the number of TCSETSW. So no ioctl is issued on a descriptor
 * unless its name in /proc/<pid>/fd says that it is a TSG.
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

/* Scheduler device, type 'S': lists the TSGs and their processes. */
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

/* Payload of a Tegra context in the held file. */
#define GPUSEG_TEGRA_HELD_VERSION 1
#define GPUSEG_TEGRA_TSGS_MAX 64
struct gpuseg_tegra_held {
	uint32_t version;
	uint32_t count;
	int32_t fds[GPUSEG_TEGRA_TSGS_MAX]; /* numbers inside the process */
};

/* A duplicate of a TSG's descriptor; `pidfd` is of the same process. -ENOTTY: it is none. Else -errno. */
int gpuseg_tegra_duplicate(int pid, int pidfd, int remote);

/*
 * Enables the TSGs of a held entry. Returns 0, also if a descriptor has been closed, which ends its TSG; -ESRCH if the
 * process has ended; -EINVAL if the payload is invalid; or the -errno of the first failure, after all TSGs were tried.
 */
int gpuseg_tegra_release(int pid, const void *payload, size_t size);

#endif
