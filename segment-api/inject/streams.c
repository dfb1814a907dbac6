/* SPDX-License-Identifier: Apache-2.0 */
/* streams.c - which streams have work that is not known to be done. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "inject.h"

#define GPUS_DIR "/proc/driver/nvidia/gpus"
#define UNTRACKED_NS (10 * NS_PER_MS)

/* The daemon numbers GPUs in the order of the PCI bus. 0 if the driver does not list them. */
static int gpu_index(const char *pci)
{
	const struct dirent *entry;
	int before = 0;
	DIR *gpus = opendir(GPUS_DIR);

	if (!gpus)
		return 0;
	while ((entry = readdir(gpus))) {
		if (entry->d_name[0] != '.' && strcasecmp(entry->d_name, pci) < 0)
			before++;
	}
	closedir(gpus);
	return before;
}

static struct gpu *gpu_of(const char *pci)
{
	for (size_t i = 0; i < GPUS_MAX; i++) {
		struct gpu *gpu = &inject.gpus[i];

		if (gpu->index >= 0 && strcmp(gpu->pci, pci) == 0)
			return gpu;
		if (gpu->index < 0) {
			gpu->index = gpu_index(pci);
			snprintf(gpu->pci, sizeof(gpu->pci), "%s", pci);
			return gpu;
		}
	}
	return NULL;
}

/* The calling thread's current context. These calls of the driver only read. */
static struct gpu *gpu_of_current(CUdevice *device)
{
	char pci[20];

	if (inject.driver.cuCtxGetDevice(device) != CUDA_SUCCESS ||
	    inject.driver.cuDeviceGetPCIBusId(pci, sizeof(pci), *device) != CUDA_SUCCESS)
		return NULL;
	return gpu_of(pci);
}

struct context *context_find(CUcontext handle, uint32_t uid)
{
	struct context *unused = NULL;

	if (!handle || !uid)
		return NULL;
	for (size_t i = 0; i < CONTEXTS_MAX; i++) {
		struct context *c = &inject.contexts[i];

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
	struct stream *set = &inject.streams[set_of(context->uid, handle, owner) * STREAM_WAYS];

	for (size_t i = 0; i < STREAM_WAYS; i++) {
		if (set[i].uid == context->uid && set[i].handle == handle && set[i].owner == owner && !set[i].gone)
			return &set[i];
	}
	return NULL;
}

struct stream *stream_find(struct context *context, uintptr_t handle, uint32_t owner)
{
	struct stream *set = &inject.streams[set_of(context->uid, handle, owner) * STREAM_WAYS];
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

static void settle(struct stream *s, bool was_busy, int64_t at_ns)
{
	struct gpu *gpu = s->context->gpu;

	if (!was_busy && stream_busy(s)) {
		const size_t i = (size_t)(s - inject.streams);

		inject.to_look_at[i / 64] |= UINT64_C(1) << i % 64;
		if (gpu->busy++ == 0)
			segment_busy(gpu, at_ns);
	} else if (was_busy && !stream_busy(s)) {
		if (gpu->flight_ns > 0 && !flight_lower_busy(gpu))
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
		for (uint64_t bits = inject.to_look_at[w]; bits; bits &= bits - 1) {
			struct stream *s = &inject.streams[w * 64 + (size_t)__builtin_ctzll(bits)];

			if (s->uid == uid)
				stream_done(s, number);
		}
	}
}

static struct event *event_slot(uintptr_t handle)
{
	return &inject.events[((uint64_t)handle * 0x9e3779b97f4a7c15u) >> 52];
}

/* Events share entries: the later one counts, and the work before the other one is found to be done by a marker. */
void event_recorded(uintptr_t handle, const struct stream *s)
{
	struct event *e = event_slot(handle);

	if (s)
		*e = (struct event){
			.handle = handle, .stream = (uint32_t)(s - inject.streams), .use = s->use, .number = s->last};
	else if (e->handle == handle)
		e->handle = 0;
}

void event_done(uintptr_t handle)
{
	const struct event *e = event_slot(handle);
	struct stream *s = &inject.streams[e->stream];

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
		s->last = ++inject.launches;
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
		struct stream *s = &inject.streams[i];

		if (s->uid != context->uid)
			continue;
		if (stream_busy(s) && --context->gpu->busy == 0)
			segment_idle(context->gpu, now_ns());
		*s = (struct stream){.use = s->use + 1, .value = s->value};
	}
	context->gpu->flight_ns = 0;
	context->gpu->batch_count = 0;
	/* The page stays mapped: the GPU may still write to it. */
	*context = (struct context){.uid = 0};
}
