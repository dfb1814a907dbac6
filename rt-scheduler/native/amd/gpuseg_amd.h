/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpuseg_amd.h - enable the queues that a daemon disabled on an AMD GPU (mechanism amd). Experimental.
 *
 * A daemon disables queues through one of four interfaces, depending on kernel and permissions:
 *
 *   kfd    /dev/gpuseg-kfd. A hold belongs to the daemon's open file. If the daemon is dead, the kernel has released
 *          the hold. If it is alive, a duplicate of its descriptor releases it. The kernel's own watchdog releases it,
 *          too, when the enforcer stops kicking.
 *   debug  DBG_TRAP. If the daemon is dead, the kernel has resumed all queues. If it is alive, its tracing thread must
 *          do it, because the kernel accepts it from that thread only; a page of memory carries the request.
 *   criu   CRIU_OP. A pause survives the daemon; UNPAUSE then needs a process that traces the target. If the daemon is
 *          alive, as debug.
 *   agent  UPDATE_QUEUE by the application itself (segment-api/preload/gpuseg_kfd_agent.h), which ends holds by itself
 *          when the daemon's beat stops. The release gives the order to enable, in any state of the daemon.
 *
 * If the whole daemon is stopped (SIGSTOP), only kfd and agent can be released.
 *
 * Source of numbers: the kernel's public header kfd_ioctl.h; kmod-patch/amdkfd. Never run on AMD hardware.
 */
#ifndef GPUSEG_AMD_H
#define GPUSEG_AMD_H

#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>

#define GPUSEG_AMD_KFD_DEVICE "/dev/kfd"
#define GPUSEG_AMD_HOLD_DEVICE "/dev/gpuseg-kfd"

struct gpuseg_amd_version {
	uint32_t major;
	uint32_t minor; /* CRIU_OP since 7, DBG_TRAP since 13 */
};

struct gpuseg_amd_criu {
	uint64_t devices;
	uint64_t bos;
	uint64_t priv_data;
	uint64_t priv_data_size;
	uint32_t num_devices;
	uint32_t num_bos;
	uint32_t num_objects;
	uint32_t pid;
	uint32_t op;
	uint32_t pad;
};

enum { GPUSEG_AMD_CRIU_PROCESS_INFO = 0, GPUSEG_AMD_CRIU_UNPAUSE = 2 };

#define GPUSEG_AMD_GET_VERSION _IOR('K', 0x01, struct gpuseg_amd_version)
#define GPUSEG_AMD_CRIU_OP _IOWR('K', 0x22, struct gpuseg_amd_criu)

enum gpuseg_amd_interface { GPUSEG_AMD_KFD = 1, GPUSEG_AMD_DEBUG = 2, GPUSEG_AMD_CRIU = 3, GPUSEG_AMD_AGENT = 4 };

/* Payload of an AMD context in the held file; the daemon writes it. */
#define GPUSEG_AMD_HELD_VERSION 1
struct gpuseg_amd_held {
	uint32_t version;
	uint32_t interface; /* enum gpuseg_amd_interface */
	int32_t daemon;	    /* pid of the daemon that disabled the context */
	int32_t fd;	    /* descriptor in the daemon, of /dev/gpuseg-kfd or of the page below; agent: its slot */
	uint64_t daemon_start_ticks; /* field 22 of /proc/PID/stat */
};

/* Page of the daemon's tracing thread (dev.gpuseg.mechanisms.amd.Tracer). */
struct gpuseg_amd_rescue {
	uint32_t version;
	uint32_t asked; /* W watchdog: +1 requests to enable everything */
	uint32_t done;	/* W daemon, release: the last request that was carried out */
};

/*
 * Enables the context of a held entry. `start_ticks` is the start time of the process. Returns 0, also if the context
 * was enabled; -ESRCH if the process has ended; -EINVAL if the payload is invalid; -ETIMEDOUT if the daemon's tracing
 * thread did not answer until `deadline_ns` (CLOCK_MONOTONIC); or another -errno.
 */
int gpuseg_amd_release(int pid, uint64_t start_ticks, const void *payload, size_t size, int64_t deadline_ns);

#endif
