/* SPDX-License-Identifier: Apache-2.0 */
/* kernels.h - what the kernels of this process do to the GPU. All with inject.lock held. */
#ifndef GPUSEG_INJECT_KERNELS_H
#define GPUSEG_INJECT_KERNELS_H

#include <stdint.h>
#include "gpuseg_abi.h"

struct batch;
struct context;
struct gpu;

#define KERNEL_CLASSES (GPUSEG_KERNELS_LONG + 1)
#define PERCENT_UNKNOWN (-1)
#define PERCENT_NONE (-2) /* no kernel: a copy */

/* Of a kernel that is being launched. */
struct shape {
	uint64_t blocks;
	uint32_t threads; /* of a block */
	uint32_t shared;  /* dynamic shared memory of a block, bytes */
};

/* Time of the latest batches by the class of their kernels. One in each GPU; kernels.c alone uses it. */
struct kernel_times {
	int64_t ns[KERNEL_CLASSES];
	int64_t percent_ns; /* of the GPU's room for blocks, times ns */
	int64_t longest_ns; /* of a single kernel; falls slowly */
};

/* How much of the GPU's room for such blocks a kernel uses, 0..100, or PERCENT_UNKNOWN. May release the lock. */
int kernels_percent(const struct context *context, uintptr_t function, const struct shape *shape);
/* A batch is done; `longest_ns`: what the longest of it is thought to take. */
void kernels_landed(struct gpu *gpu, const struct batch *batch, int64_t took_ns, int64_t longest_ns);
/* Tell the daemon whether any work is in flight. */
void kernels_busy(const struct gpu *gpu);
void kernels_idle(const struct gpu *gpu, int64_t at_ns);

#endif /* GPUSEG_INJECT_KERNELS_H */
