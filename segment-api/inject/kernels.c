/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernels.c - what the kernels of this process do to the GPU, as far as launches and markers tell.
 *
 * How much of the GPU a kernel uses is its number of blocks against the room for such blocks on all multiprocessors;
 * the driver is asked for that once for each function. How long kernels take is learned from batch to batch: flight.c.
 * Most of the time of the last batches says which class the process has (enum gpuseg_kernel_class). The daemon reads
 * it, and whether anything is in flight, from the task's slot.
 *
 * Whether a kernel is bound by computing or by memory cannot be told without performance counters, which need
 * privileges.
 */
#include "../src/internal.h"
#include "costs.h"
#include "driver.h"
#include "gpu.h"
#include "inject.h"
#include "kernels.h"
#include "streams.h"

#define DEVICE_ATTRIBUTE_MULTIPROCESSORS 16
#define DEVICE_ATTRIBUTE_THREADS_PER_MULTIPROCESSOR 39
#define ROOM_UNKNOWN UINT32_MAX
#define WINDOW_NS (100 * NS_PER_MS) /* of work in flight; older work counts half, and so on */
#define SMALL_PERCENT 50
#define LONG_COUNT 2 /* a batch of more kernels is not made long by one of them */
#define LONGEST_SHIFT 4

static struct gpuseg_slot *slot_of(const struct gpu *gpu)
{
	return gpu->task ? gpu->task->slot : NULL;
}

/*
 * Ask the driver how many such blocks the GPU can hold at a time. If it does not say, as many as there are threads for:
 * the share of the GPU is then too small rather than too large. Lock not held.
 */
static uint32_t room_for(const struct context *context, uintptr_t function, const struct shape *shape)
{
	const CUfunction kernel = (CUfunction)function; /* NOLINT: a handle */
	int blocks = 0, multiprocessors = 0, threads = 0;

	if (!occupancy.cuOccupancyMaxActiveBlocksPerMultiprocessor || !shape->threads ||
	    occupancy.cuDeviceGetAttribute(&multiprocessors, DEVICE_ATTRIBUTE_MULTIPROCESSORS, context->device) !=
		    CUDA_SUCCESS ||
	    multiprocessors <= 0)
		return ROOM_UNKNOWN;
	if (occupancy.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, (int)shape->threads,
								  shape->shared) != CUDA_SUCCESS ||
	    blocks <= 0) {
		if (occupancy.cuDeviceGetAttribute(&threads, DEVICE_ATTRIBUTE_THREADS_PER_MULTIPROCESSOR,
						   context->device) != CUDA_SUCCESS)
			return ROOM_UNKNOWN;
		blocks = threads / (int)shape->threads;
	}
	return blocks > 0 ? (uint32_t)blocks * (uint32_t)multiprocessors : ROOM_UNKNOWN;
}

int kernels_percent(const struct context *context, uintptr_t function, const struct shape *shape)
{
	uint32_t room = cost_of(function)->room;

	if (!room) {
		inject_unlock();
		room = room_for(context, function, shape);
		inject_lock();
		cost_of(function)->room = room;
	}
	if (room == ROOM_UNKNOWN)
		return PERCENT_UNKNOWN;
	return shape->blocks >= room ? 100 : (int)(shape->blocks * 100 / room);
}

static enum gpuseg_kernel_class class_of(const struct kernel_times *t)
{
	int64_t all_ns = 0;

	for (int c = 0; c < KERNEL_CLASSES; c++)
		all_ns += t->ns[c];
	for (int c = 0; c < KERNEL_CLASSES; c++) {
		if (2 * t->ns[c] > all_ns)
			return (enum gpuseg_kernel_class)c;
	}
	/* No class has most of the time: those that use the GPU decide. */
	return 2 * t->ns[GPUSEG_KERNELS_UNKNOWN] >= all_ns ? GPUSEG_KERNELS_UNKNOWN : GPUSEG_KERNELS_FILL;
}

static void age(struct kernel_times *t)
{
	int64_t all_ns = 0;

	for (int c = 0; c < KERNEL_CLASSES; c++)
		all_ns += t->ns[c];
	if (all_ns <= WINDOW_NS)
		return;
	for (int c = 0; c < KERNEL_CLASSES; c++)
		t->ns[c] /= 2;
	t->percent_ns /= 2;
}

void kernels_landed(struct gpu *gpu, const struct batch *batch, int64_t took_ns, int64_t longest_ns)
{
	struct kernel_times *t = &gpu->kernels;
	struct gpuseg_slot *slot = slot_of(gpu);
	enum gpuseg_kernel_class class = GPUSEG_KERNELS_UNKNOWN;
	const int percent = batch->kernels ? (int)(batch->percent / batch->kernels) : 0;
	int64_t known_ns;

	if (!batch->opaque && batch->kernels) {
		if (percent <= SMALL_PERCENT)
			class = GPUSEG_KERNELS_SMALL;
		else if (batch->kernels <= LONG_COUNT && 2 * took_ns > 3 * flight_limit_ns())
			class = GPUSEG_KERNELS_LONG;
		else
			class = GPUSEG_KERNELS_FILL;
		t->percent_ns += took_ns * percent;
	}
	t->ns[class] += took_ns;
	age(t);
	t->longest_ns -= t->longest_ns >> LONGEST_SHIFT;
	if (longest_ns > t->longest_ns)
		t->longest_ns = longest_ns;
	if (!slot)
		return;
	known_ns = t->ns[GPUSEG_KERNELS_SMALL] + t->ns[GPUSEG_KERNELS_FILL] + t->ns[GPUSEG_KERNELS_LONG];
	/* relaxed: each is of use by itself; R the dispatcher */
	__atomic_store_n(&slot->kernel_ns, t->longest_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&slot->kernel_percent, known_ns ? (uint32_t)(t->percent_ns / known_ns) : 0, __ATOMIC_RELAXED);
	__atomic_store_n(&slot->kernel_class, class_of(t), __ATOMIC_RELAXED);
}

void kernels_busy(const struct gpu *gpu)
{
	struct gpuseg_slot *slot = slot_of(gpu);

	if (slot)
		__atomic_store_n(&slot->in_flight, 1, __ATOMIC_RELEASE);
}

void kernels_idle(const struct gpu *gpu, int64_t at_ns)
{
	struct gpuseg_slot *slot = slot_of(gpu);

	if (!slot)
		return;
	__atomic_store_n(&slot->drained_ns, at_ns, __ATOMIC_RELAXED);
	/* release; pairs with the acquire of Session.inFlight */
	__atomic_store_n(&slot->in_flight, 0, __ATOMIC_RELEASE);
}
