/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpuseg_amd.h - bring back what a daemon took off an AMD GPU (mechanism amd).
 *
 * Four ways to take off, by kernel and permissions (dev.gpuseg.mechanisms.amd.ControlInterface), and so four ways back:
 *   kfd    /dev/gpuseg-kfd: a hold belongs to the daemon's open file. Dead daemon: the kernel has released it. Living
 *          daemon: a duplicate of its descriptor releases it (and the kernel's own watchdog does so without the
 *          enforcer's kicks).
 *   debug  DBG_TRAP: dead daemon: the kernel has resumed all. Living daemon: its tracing thread is asked, through a
 *          page of memory, for the kernel lets nobody else.
 *   criu   CRIU_OP: stays in force when the daemon dies; UNPAUSE by whoever traces the process then. Living daemon: as
 *          debug. A daemon that is stopped as a whole (SIGSTOP) can be helped with kfd only.
 *   agent  UPDATE_QUEUE by the application itself (segment-api/preload/gpuseg_kfd_agent.h): it ends holds by itself
 * when the daemon's beat stops. Here it is given the order to, whatever state the daemon is in.
 *
 * Source of numbers: the kernel's public header kfd_ioctl.h; kmod-patch/amdkfd. No AMD hardware.
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

/* What the held file's payload of an AMD context holds; written by dev.gpuseg.mechanisms.amd.HeldPayload. */
#define GPUSEG_AMD_HELD_VERSION 1
struct gpuseg_amd_held {
	uint32_t version;
	uint32_t interface; /* enum gpuseg_amd_interface */
	int32_t daemon;	    /* that disabled it */
	int32_t fd;	    /* number inside the daemon: of /dev/gpuseg-kfd, or of the page below; agent: its slot */
	uint64_t daemon_start_ticks; /* field 22 of /proc/PID/stat */
};

/* Page of the daemon's tracing thread (dev.gpuseg.mechanisms.amd.Tracer). */
struct gpuseg_amd_rescue {
	uint32_t version;
	uint32_t asked; /* W watchdog: one more brings everything back */
	uint32_t done;	/* W daemon, release: the last one that was followed */
};

/*
 * Brings back what a held entry names. Returns 0, also if it was not off; -ESRCH if the process is gone, -EINVAL for a
 * payload that is not ours, -ETIMEDOUT if the daemon's tracing thread did not answer until `deadline_ns`
 * (CLOCK_MONOTONIC), another -errno of what failed. `start_ticks` is that of the process.
 */
int gpuseg_amd_release(int pid, uint64_t start_ticks, const void *payload, size_t size, int64_t deadline_ns);

#endif
