/* SPDX-License-Identifier: Apache-2.0 */
/*
 * amd_state.h - the state of the stand-in of KFD and /dev/gpuseg-kfd: one file that all processes of a test map. It is
 * changed under a lock on the file, so a killed process leaves no lock. What the kernel does when a process dies or a
 * watchdog lapses is done by the next process that reads the state. After the table, at AMD_DELAYS_AT, are the
 * durations of changes.
 */
#ifndef GPUSEG_AMD_STATE_H
#define GPUSEG_AMD_STATE_H

#include <stdint.h>

#define AMD_STATE_ENV "GPUSEG_AMD_STANDIN" /* a directory: file "table", and "sys" as /sys */
#define AMD_KFD_NAME "gpuseg-amd-kfd"
#define AMD_HOLD_NAME "gpuseg-amd-hold"
#define AMD_PROCESSES 64
#define AMD_QUEUES 16
#define AMD_FILES 16
#define AMD_HOLDS 64
#define AMD_GPUS 4

struct amd_queue {
	uint32_t used; /* the index is the number of the queue */
	uint32_t gpu_id;
	uint32_t sdma;
	uint32_t size; /* as UPDATE_QUEUE programs it */
	uint32_t percentage;
	uint32_t priority;
	uint64_t address;
};

struct amd_process {
	int32_t pid; /* 0: free */
	uint32_t n_queues;
	uint64_t start_ticks;
	struct amd_queue queues[AMD_QUEUES];
};

struct amd_file {
	int32_t owner; /* 0: free */
	uint32_t period_ms;
	uint64_t owner_ticks;
	int64_t armed_ns;
	uint32_t lapses;
	uint32_t stale;
};

struct amd_hold {
	uint32_t file; /* index + 1; 0: free */
	int32_t pid;
	uint64_t start_ticks;
	uint32_t gpu_id; /* 0: all */
	uint32_t flags;
};

struct amd_table {
	/* set by the test */
	uint32_t minor;	       /* of KFD's ABI */
	uint32_t hold_abi;     /* 0: /dev/gpuseg-kfd does not exist */
	uint32_t hold_denied;  /* it cannot be opened: EPERM */
	uint32_t hold_refused; /* GPU: preemption none; entries answer EOPNOTSUPP */
	uint32_t fail;	       /* the next changes, as many as this, return EIO */
	uint32_t n_gpus;
	uint32_t gpu_ids[AMD_GPUS];
	/* counted */
	uint32_t applies;
	uint32_t holds;
	uint32_t releases;
	uint32_t foreign; /* ioctls that the stand-in does not know: must stay 0 */
	uint32_t kicks;
	uint32_t deactivated; /* by UPDATE_QUEUE: compute queues that went from active to inactive */
	struct amd_file files[AMD_FILES];
	struct amd_hold all_holds[AMD_HOLDS];
	struct amd_process processes[AMD_PROCESSES];
};

#define AMD_DELAYS_AT 0xc000

/*
 * The duration of a change. The caller waits without the lock, so other processes continue. In mode HWS a change
 * affects all queues of the GPU, of all processes, and all are off the hardware until it is done. In the other modes a
 * change affects one queue, and a call makes its changes one after the other.
 */
struct amd_delays {
	uint32_t mode;	    /* set by the test: enum gpuseg_kfd_mode; 0: changes take no time */
	uint32_t change_us; /* set by the test */
	int32_t changer;    /* HWS: process that makes the change; 0: none */
	uint32_t pad;
	uint64_t changer_ticks;
	uint64_t unloads; /* queues unloaded and loaded, as in struct gpuseg_kfd_gpu */
	uint64_t loads;
	uint64_t remaps;
	uint64_t last_ns;
	uint64_t max_ns;
};
_Static_assert(sizeof(struct amd_table) <= AMD_DELAYS_AT, "the delays stand behind the table");

#endif
