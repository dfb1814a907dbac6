/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtime.h - what runtime.c, the functions of CUDA and HIP, asks of the stand-in of a driver: rm/rm_cuda.c,
 * runtime_group.c. One context for each process.
 */
#ifndef GPUSEG_STANDIN_RUNTIME_H
#define GPUSEG_STANDIN_RUNTIME_H

#include <stdbool.h>
#include <stdint.h>

#define RUNTIME_UNKNOWN 999 /* the error of both */

struct runtime_kernel {
	uint32_t iterations;
	uint64_t duration_ns;
	uint64_t counter; /* address of what it counts in */
	uint64_t number;  /* from 1 */
};

/* 0 or an error. closed: no descriptor of it stays open (nvgpu). */
int runtime_context(bool closed);
/* Queues it; waits while the queue is full. 0 or an error. */
int runtime_launch(const struct runtime_kernel *kernel);

#endif
