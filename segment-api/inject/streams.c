/* SPDX-License-Identifier: Apache-2.0 */
/* streams.c - which streams have work that is not known to be done. */
#include "driver.h"
#include "flight.h"
#include "gpu.h"
#include "segments.h"
#include "streams.h"

#define UNTRACKED_NS (10 * NS_PER_MS)

struct tracked tracked;

/* The calling thread's current context. These calls of the driver only read. */
static struct gpu *gpu_of_current(CUdevice *device)
{
	char pci[20];

	if (driver.cuCtxGetDevice(device) != CUDA_SUCCESS ||
	    driver.cuDeviceGetPCIBusId(pci, sizeof(pci), *device) != CUDA_SUCCESS)
		return NULL;
	return gpu_at(pci);
}

struct context *context_find(CUcontext handle, uint32_t uid)
{
	struct context *unused = NULL;

	if (!handle || !uid)
		return NULL;
	for (size_t i = 0; i < CONTEXTS_MAX; i++) {
		struct context *c = &tracked.contexts[i];

		if (c->uid == uid)
			return c;
		if (!c->uid && !unused)
			unused = c;
	}
	if (unused) {
		CUdevice device;
		struct gpu *gpu = gpu_of_current(&device);

		if (!gpu)
			return NULL;
		*unused = (struct context){.handle = handle, .uid = uid, .device = device, .gpu = gpu};
	}
	return unused;
}

static unsigned int set_of(uint32_t uid, uintptr_t handle, uint32_t owner)
{
	const uint64_t mixed = ((uint64_t)handle ^ (uint64_t)uid << 40 ^ (uint64_t)owner << 20) * 0x9e3779b97f4a7c15u;

	return (unsigned int)(mixed >> 48) % STREAM_SETS;
}

struct stream *stream_known(struct context *context, uintptr_t handle, uint32_t owner)
{
	struct stream *set = &tracked.streams[set_of(context->uid, handle, owner) * STREAM_WAYS];

	for (size_t i = 0; i < STREAM_WAYS; i++) {
		if (set[i].uid == context->uid && set[i].handle == handle && set[i].owner == owner && !set[i].gone)
			return &set[i];
	}
	return NULL;
}

struct stream *stream_find(struct context *context, uintptr_t handle, uint32_t owner)
{
	struct stream *set = &tracked.streams[set_of(context->uid, handle, owner) * STREAM_WAYS];
	struct stream *found = stream_known(context, handle, owner), *victim = NULL;

	if (likely(found))
		return found;
	for (size_t i = 0; i < STREAM_WAYS; i++) {
		struct stream *s = &set[i];

		/* An entry whose marker is under way is not idle yet, even if a synchronisation came first. */
		if (!stream_busy(s) && !s->marker && !s->pinned &&
		    (!victim || (victim->uid && (!s->uid || s->launch_ns < victim->launch_ns))))
			victim = s;
	}
	if (victim)
		*victim = (struct stream){.uid = context->uid,
					  .handle = handle,
					  .owner = owner,
					  .context = context,
					  .use = victim->use + 1,
					  .value = victim->value};
	return victim;
}

/* Is there work on a stream of the GPU that gives way? */
static bool lower_busy(const struct gpu *gpu)
{
	for (size_t w = 0; w < STREAMS_MAX / 64; w++) {
		for (uint64_t bits = tracked.to_look_at[w]; bits; bits &= bits - 1) {
			const struct stream *s = &tracked.streams[w * 64 + (size_t)__builtin_ctzll(bits)];

			if (s->uid && s->context->gpu == gpu && flight_applies(s) && stream_busy(s))
				return true;
		}
	}
	return false;
}

static void settle(struct stream *s, bool was_busy, int64_t at_ns)
{
	struct gpu *gpu = s->context->gpu;

	if (!was_busy && stream_busy(s)) {
		const size_t i = (size_t)(s - tracked.streams);

		tracked.to_look_at[i / 64] |= UINT64_C(1) << i % 64;
		if (gpu->busy++ == 0)
			segment_busy(gpu, at_ns);
	} else if (was_busy && !stream_busy(s)) {
		if (gpu->flight.ns > 0 && !lower_busy(gpu))
			flight_landed(gpu, at_ns);
		if (--gpu->busy == 0)
			segment_idle(gpu, at_ns);
	}
}

void stream_done(struct stream *s, uint64_t number)
{
	const bool was_busy = stream_busy(s);

	if (number <= s->done)
		return;
	s->done = number;
	settle(s, was_busy, now_ns());
}

void streams_done(uint32_t uid, uint64_t number)
{
	for (size_t w = 0; w < STREAMS_MAX / 64; w++) {
		for (uint64_t bits = tracked.to_look_at[w]; bits; bits &= bits - 1) {
			struct stream *s = &tracked.streams[w * 64 + (size_t)__builtin_ctzll(bits)];

			if (s->uid == uid)
				stream_done(s, number);
		}
	}
}

#define EVENTS_MAX 4096 /* 2^12: event_slot() */

struct event {
	uintptr_t handle;
	uint32_t stream; /* index */
	uint32_t use;
	uint64_t number; /* launches of the stream up to this number precede it */
};

static struct event events[EVENTS_MAX];

static struct event *event_slot(uintptr_t handle)
{
	return &events[((uint64_t)handle * 0x9e3779b97f4a7c15u) >> 52];
}

/* Events share entries: the later one counts, and the work before the other one is found to be done by a marker. */
void event_recorded(uintptr_t handle, const struct stream *s)
{
	struct event *e = event_slot(handle);

	if (s)
		*e = (struct event){
			.handle = handle, .stream = (uint32_t)(s - tracked.streams), .use = s->use, .number = s->last};
	else if (e->handle == handle)
		e->handle = 0;
}

void event_done(uintptr_t handle)
{
	const struct event *e = event_slot(handle);
	struct stream *s = &tracked.streams[e->stream];

	if (handle && e->handle == handle && s->uid && s->use == e->use)
		stream_done(s, e->number);
}

void stream_enter(struct stream *s, int64_t at_ns)
{
	const bool was_busy = stream_busy(s);

	s->entered++;
	s->launch_ns = at_ns;
	s->context->gpu->launch_ns = at_ns;
	s->context->gpu->used = s->context;
	settle(s, was_busy, at_ns);
}

void stream_leave(struct stream *s, bool launched)
{
	const bool was_busy = stream_busy(s);

	s->entered--;
	if (launched)
		s->last = ++tracked.launches;
	settle(s, was_busy, s->launch_ns);
}

void stream_lose(struct stream *s)
{
	struct gpu *gpu = s->context->gpu;

	gpu->untracked_until_ns = now_ns() + UNTRACKED_NS;
	s->marker = 0;
	stream_done(s, s->last);
}

void context_forget(struct context *context)
{
	for (size_t i = 0; i < STREAMS_MAX; i++) {
		struct stream *s = &tracked.streams[i];

		if (s->uid != context->uid)
			continue;
		if (stream_busy(s) && --context->gpu->busy == 0)
			segment_idle(context->gpu, now_ns());
		*s = (struct stream){.use = s->use + 1, .value = s->value};
	}
	flight_forget(context->gpu);
	/* The page stays mapped: the GPU may still write to it. */
	*context = (struct context){.uid = 0};
}
