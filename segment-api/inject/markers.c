/* SPDX-License-Identifier: Apache-2.0 */
/*
 * markers.c - the GPU says when the work of a stream is done.
 *
 * A marker is one cuStreamWriteValue32(): the GPU writes a number into a page of this process when all that precedes it
 * on the stream is done. It is written once a stream has been silent, so a burst of launches has one.
 *
 * - The default stream of a context is asked by cuStreamQuery() instead. A marker there would be ordered against the
 *   work of every other blocking stream of the context, which the program did not ask for.
 * - The default stream of a thread can only be named by that thread, which therefore writes a marker after each launch.
 * - Nothing is written or asked while a stream is being captured: it could become a part of the graph, or spoil it.
 * - Nor while a thread of the program waits for the stream: the end of that wait tells, and calls of the driver beside
 *   it would delay it.
 */
#include <sys/mman.h>

#include "captures.h"
#include "driver.h"
#include "inject.h"
#include "markers.h"
#include "streams.h"

static uint32_t *word_of(const struct stream *s)
{
	return &s->context->page[s - tracked.streams];
}

/* What a call needs, copied under the lock. */
struct order {
	CUcontext context;
	CUstream stream;
	CUdeviceptr address; /* 0 = ask instead */
	uint32_t use;
	uint32_t value;
	uint64_t number;
};

/* Fill `order`. False: the stream is idle, is being used, or its handle must not be used. Lock held. */
static bool take_order(struct stream *s, struct order *order)
{
	const struct context *c = s->context;

	if (!s->uid || s->gone || s->owner || s->marker || s->entered || s->last <= s->done || captures_any() ||
	    stream_awaited(s, now_ns()))
		return false;
	*order = (struct order){.context = c->handle,
				.stream = (CUstream)s->handle, /* NOLINT: a handle */
				.use = s->use,
				.number = s->last};
	if (c->page && !c->no_markers && s->handle != STREAM_LEGACY) {
		order->address = c->device_page + (CUdeviceptr)((size_t)(s - tracked.streams) * sizeof(uint32_t));
		order->value = ++s->value;
	}
	return true;
}

void marker_write(struct stream *s)
{
	struct order order;
	CUcontext popped;
	CUresult result;

	inject_lock();
	if (!take_order(s, &order)) {
		inject_unlock();
		return;
	}
	inject_unlock();
	result = driver.cuCtxPushCurrent_v2(order.context);
	if (result == CUDA_SUCCESS) {
		result = order.address ? driver.cuStreamWriteValue32_v2(order.stream, order.address, order.value, 0)
				       : driver.cuStreamQuery(order.stream);
		driver.cuCtxPopCurrent_v2(&popped);
	}
	inject_lock();
	if (s->uid && s->use == order.use) {
		if (order.address && result == CUDA_SUCCESS) {
			s->marker = order.number;
			s->marker_ns = now_ns();
			s->marker_value = order.value;
		} else if (order.address) {
			s->context->no_markers = true; /* asked from now on */
		} else if (result == CUDA_SUCCESS) {
			stream_done(s, order.number);
		} else if (result != CUDA_ERROR_NOT_READY) {
			stream_lose(s);
		}
	}
	inject_unlock();
}

void marker_write_own(struct stream *s, uint32_t use)
{
	const CUstream own = (CUstream)STREAM_PER_THREAD; /* NOLINT: a handle */
	CUdeviceptr address;
	uint32_t value;
	uint64_t number;
	int status = CAPTURE_STATUS_NONE;
	bool lost;

	inject_lock();
	if (s->use != use || s->entered || !s->context) {
		inject_unlock();
		return;
	}
	lost = !s->context->page || s->context->no_markers;
	address = s->context->device_page + (CUdeviceptr)((size_t)(s - tracked.streams) * sizeof(uint32_t));
	number = s->last;
	value = ++s->value;
	inject_unlock();
	if (!lost)
		lost = driver.cuStreamIsCapturing(own, &status) != CUDA_SUCCESS || status != CAPTURE_STATUS_NONE ||
		       driver.cuStreamWriteValue32_v2(own, address, value, 0) != CUDA_SUCCESS;
	inject_lock();
	if (s->uid && s->use == use) {
		if (lost) {
			stream_lose(s);
		} else {
			s->marker = number;
			s->marker_ns = now_ns();
			s->marker_value = value;
		}
	}
	inject_unlock();
}

void markers_look(void)
{
	for (size_t w = 0; w < STREAMS_MAX / 64; w++) {
		for (uint64_t bits = tracked.to_look_at[w]; bits; bits &= bits - 1) {
			const size_t i = w * 64 + (size_t)__builtin_ctzll(bits);
			struct stream *s = &tracked.streams[i];

			/* acquire; pairs with the GPU's write, which follows the work before it */
			if (s->uid && s->marker &&
			    (int32_t)(__atomic_load_n(word_of(s), __ATOMIC_ACQUIRE) - s->marker_value) >= 0) {
				const uint64_t number = s->marker;

				s->marker = 0;
				stream_done(s, number);
			}
			if (!s->uid || (!stream_busy(s) && !s->marker))
				tracked.to_look_at[w] &= ~(UINT64_C(1) << i % 64);
		}
	}
}

void marker_page(struct context *context)
{
	const size_t size = PAGE_WORDS * sizeof(uint32_t);
	CUcontext handle, popped;
	CUdeviceptr device = 0;
	uint32_t uid, *page;
	bool mapped = false;

	inject_lock();
	if (!context->uid || context->page_tried || captures_any()) {
		inject_unlock();
		return;
	}
	context->page_tried = true;
	handle = context->handle;
	uid = context->uid;
	inject_unlock();
	/* Shared: after fork() the pages of a private mapping would be copied away from under the GPU. */
	page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return;
	if (driver.cuCtxPushCurrent_v2(handle) == CUDA_SUCCESS) {
		mapped = driver.cuMemHostRegister_v2(page, size, MEMHOSTREGISTER_DEVICEMAP) == CUDA_SUCCESS;
		if (mapped && driver.cuMemHostGetDevicePointer_v2(&device, page, 0) != CUDA_SUCCESS) {
			driver.cuMemHostUnregister(page);
			mapped = false;
		}
		driver.cuCtxPopCurrent_v2(&popped);
	}
	if (!mapped) {
		munmap(page, size);
		return;
	}
	inject_lock();
	if (context->uid == uid) {
		context->page = page;
		context->device_page = device;
	}
	inject_unlock();
}
