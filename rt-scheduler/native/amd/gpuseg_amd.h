/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpuseg_amd.h - enable the queues that a daemon disabled on an AMD GPU (mechanism amd). Experimental.
 *
 * A daemon disables queues through one of two interfaces:
 *
 *   kfd    /dev/gpuseg-kfd. A hold belongs to the daemon's open file. If the daemon is dead, the kernel has released
 *          the hold. If it is alive, a duplicate of its descriptor releases it. The kernel's own watchdog releases it,
 *          too, when the enforcer stops kicking.
 *   agent  UPDATE_QUEUE by the application itself (segment-api/preload/gpuseg_kfd_agent.h), which ends holds by itself
 *          when the daemon's beat stops. The release gives the order to enable, in any state of the daemon.
 *
 * Source of numbers: the kernel's public header kfd_ioctl.h; kmod-patch/amdkfd. Never run on AMD hardware.
 */
#ifndef GPUSEG_AMD_H
#define GPUSEG_AMD_H

#include <stddef.h>
#include <stdint.h>

#define GPUSEG_AMD_KFD_DEVICE "/dev/kfd"
#define GPUSEG_AMD_HOLD_DEVICE "/dev/gpuseg-kfd"

enum gpuseg_amd_interface { GPUSEG_AMD_KFD = 1, GPUSEG_AMD_AGENT = 4 };

/* Payload of an AMD context in the held file; the daemon writes it. */
#define GPUSEG_AMD_HELD_VERSION 1
struct gpuseg_amd_held {
	uint32_t version;
	uint32_t interface;	     /* enum gpuseg_amd_interface */
	int32_t daemon;		     /* pid of the daemon that disabled the context */
	int32_t fd;		     /* descriptor in the daemon, of /dev/gpuseg-kfd; agent: its slot */
	uint64_t daemon_start_ticks; /* field 22 of /proc/PID/stat */
};

/*
 * Enables the context of a held entry. `start_ticks` is the start time of the process. Returns 0, also if the context
 * was enabled; -ESRCH if the process has ended; -EINVAL if the payload is invalid; -ETIMEDOUT if the agent
 * did not answer until `deadline_ns` (CLOCK_MONOTONIC); or another -errno.
 */
int gpuseg_amd_release(int pid, uint64_t start_ticks, const void *payload, size_t size, int64_t deadline_ns);

#endif
