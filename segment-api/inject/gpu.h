/* SPDX-License-Identifier: Apache-2.0 */
/* gpu.h - a GPU that the program uses, with the part of each idea. All with inject.lock held. */
#ifndef GPUSEG_INJECT_GPU_H
#define GPUSEG_INJECT_GPU_H

#include <stdbool.h>
#include <stdint.h>
#include "flight.h"
#include "gpuseg.h"
#include "gpuseg_abi.h"
#include "hold_off.h"
#include "kernels.h"
#include "segments.h"
#include "touch.h"

#define GPUS_MAX GPUSEG_GPUS_MAX

enum task_state {
	TASK_UNKNOWN, /* not asked for yet */
	TASK_WANTED,  /* the library's thread is to open it */
	TASK_READY,
	TASK_REFUSED /* no daemon, or it refused: unmanaged for good */
};

/* A GPU that the program uses: one task, at most one open segment. */
struct gpu {
	int index; /* the daemon's; -1 = entry not in use */
	char pci[20];
	enum task_state task_state;
	gpuseg_task *task;
	uint32_t generation;	    /* futex: changes when `segment` or `task_state` does */
	unsigned int waiters;	    /* threads that wait for a change */
	unsigned int held;	    /* launches that wait, for the daemon or for others: the segment stays open */
	unsigned int busy;	    /* streams with work */
	int64_t launch_ns;	    /* latest launch */
	int64_t idle_ns;	    /* since when no stream has work */
	int64_t busy_ns;	    /* since when one has */
	int64_t untracked_until_ns; /* work on streams that did not fit into the table is taken to be done by then */
	int64_t unmanaged_until_ns; /* after a wait that reached its limit */
	struct context *used;	    /* of the latest launch */
	struct segment_of_gpu segment;
	struct pauses pauses;
	struct flight flight;
	struct kernel_times kernels;
	struct touch touch;
};

extern struct gpu gpus[GPUS_MAX];

void gpus_init(void);
/* The entry of the device at this address; NULL: there are too many. */
struct gpu *gpu_at(const char *pci);
/* Wake those who wait for a change of the GPU's state. */
void gpu_changed(struct gpu *gpu);
/* A wait has reached its limit: run unmanaged for a while, and say so. */
void gpu_give_up(struct gpu *gpu, const char *what);

#endif /* GPUSEG_INJECT_GPU_H */
