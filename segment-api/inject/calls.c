/* SPDX-License-Identifier: Apache-2.0 */
/* calls.c - what each function of the driver's API means for the streams of the program. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "calls.h"
#include "captures.h"
#include "device.h"
#include "driver.h"
#include "flight.h"
#include "gpu.h"
#include "held.h"
#include "inject.h"
#include "kernels.h"
#include "markers.h"
#include "segments.h"
#include "settings.h"
#include "ranks.h"
#include "streams.h"
#include "threads.h"
#include "turn.h"

#define CONFIG_STREAM 32 /* where CUlaunchConfig has its stream; its shape comes first */

/* Calls of the driver that we make ourselves are not followed. */
static __thread bool inside THREAD_MODEL;
static __thread uint32_t own_tid THREAD_MODEL;

static uintptr_t word_at(const void *parameters, size_t offset)
{
	uintptr_t word;

	memcpy(&word, (const char *)parameters + offset, sizeof(word));
	return word;
}

/* ---- streams ---- */

struct target {
	uintptr_t handle;
	uint32_t owner;
};

static struct target normal(uintptr_t handle, bool per_thread)
{
	struct target t = {.handle = handle};

	if (t.handle == 0)
		t.handle = per_thread ? STREAM_PER_THREAD : STREAM_LEGACY;
	if (t.handle == STREAM_PER_THREAD) {
		if (!own_tid)
			own_tid = (uint32_t)syscall(SYS_gettid);
		t.owner = own_tid;
	}
	return t;
}

static struct target target_of(const struct call *call)
{
	const struct function *f = call->function;
	const void *config;

	switch (f->kind) {
	case LAUNCH_EX:
		config = (const void *)call->arguments[0]; /* NOLINT: a pointer */
		return config ? normal(word_at(config, CONFIG_STREAM), f->per_thread) : (struct target){.handle = 0};
	case COPY:
	case COPY_BACK:
		return normal(0, f->per_thread);
	default:
		return normal(call->arguments[f->stream], f->per_thread);
	}
}

/* The entry of a stream that is followed already; NULL if there is none. Lock held. */
static struct stream *known(const struct call *call, struct target target)
{
	struct context *context = context_find(call->context, call->context_uid);

	return context ? stream_known(context, target.handle, target.owner) : NULL;
}

/* Would this work become a part of a graph? */
static bool captured(struct target target)
{
	int status = CAPTURE_STATUS_NONE;

	if (!captures_any())
		return false;
	return driver.cuStreamIsCapturing((CUstream)target.handle, &status) != CUDA_SUCCESS || /* NOLINT */
	       status != CAPTURE_STATUS_NONE;
}

/* ---- launches ---- */

/* What is launched, to learn how long it takes: a kernel, a graph, or a kind of copy. */
static uintptr_t launched_by(const struct call *call)
{
	switch (call->function->kind) {
	case LAUNCH_EX:
		return call->arguments[1];
	case LAUNCH_KERNEL:
	case LAUNCH_GRAPH:
		return call->arguments[0];
	default:
		return (uintptr_t)call->function;
	}
}

static struct shape shape_of(const struct call *call)
{
	uint32_t numbers[7]; /* blocks and threads in x, y, z; shared memory */

	if (call->function->kind == LAUNCH_EX) {
		memcpy(numbers, (const void *)call->arguments[0], sizeof(numbers)); /* NOLINT: a pointer */
	} else {
		for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
			numbers[i] = (uint32_t)call->arguments[1 + i];
	}
	return (struct shape){.blocks = (uint64_t)numbers[0] * numbers[1] * numbers[2],
			      .threads = numbers[3] * numbers[4] * numbers[5],
			      .shared = numbers[6]};
}

/* How much of the GPU it uses, as kernels_percent(). Lock held, may be released meanwhile. */
static int percent_of(const struct context *context, const struct call *call)
{
	struct shape shape;

	switch (call->function->kind) {
	case LAUNCH_KERNEL:
	case LAUNCH_EX:
		shape = shape_of(call);
		return kernels_percent(context, launched_by(call), &shape);
	case LAUNCH_GRAPH:
		return PERCENT_UNKNOWN;
	default: /* copies, and forms of launches from before CUDA 4, which do not say their shape */
		return strncmp(call->function->name, "cuLaunch", 8) == 0 ? PERCENT_UNKNOWN : PERCENT_NONE;
	}
}

/* Is there anything to look at before a launch? */
static bool flight_wanted(const struct gpu *gpu)
{
	return inject.settings.flight_ns > 0 || gpu->flight.bound_ns > 0;
}

/* Before a launch: is it its turn, and is there room for it? Lock held, released meanwhile. */
static void give_way(struct context *context, struct target target)
{
	struct stream *s = stream_find(context, target.handle, target.owner);
	int priority = 0;

	if (!s)
		return;
	if (!s->priority_known) {
		if (!rank_of(target.handle, &priority) && inject.settings.cuda_priorities) {
			inject_unlock();
			if (driver.cuStreamGetPriority((CUstream)target.handle, &priority) != /* NOLINT */
			    CUDA_SUCCESS)
				priority = 0;
			inject_lock();
			s = stream_find(context, target.handle, target.owner);
			if (!s)
				return;
		}
		flight_note_priority(s, priority);
	}
	flight_wait(s);
}

/* The word that belongs to the call says at its exit which entry to leave: use << 32 | index + 1; 0 = none. */
static void enter_launch(const struct call *call)
{
	const struct target target = target_of(call);
	struct context *context;
	struct stream *s;
	int percent = PERCENT_UNKNOWN;

	*call->word = 0;
	if (!target.handle || captured(target))
		return;
	inject_lock();
	context = context_find(call->context, call->context_uid);
	if (context && context->gpu->segment.state == SEGMENT_OPEN)
		flight_bound(context->gpu, held_bound(context->gpu)); /* tasks open and close meanwhile */
	if (context && flight_wanted(context->gpu)) {
		percent = percent_of(context, call);
		give_way(context, target);
	}
	if (context && (__atomic_load_n(&inject.by_hand, __ATOMIC_ACQUIRE) ||
			segment_enter(context->gpu, call->function->kind == LAUNCH_GRAPH))) {
		s = stream_find(context, target.handle, target.owner);
		if (s) {
			const int64_t at_ns = now_ns();

			stream_enter(s, at_ns);
			if (flight_applies(s))
				flight_launched(s, launched_by(call), percent, at_ns);
			*call->word = (uint64_t)s->use << 32 | (uint64_t)(s - tracked.streams + 1);
		} else {
			context->gpu->launch_ns = now_ns();
			context->gpu->untracked_until_ns = context->gpu->launch_ns + 10 * NS_PER_MS;
			thread_wake();
		}
	}
	inject_unlock();
}

static void leave_launch(const struct call *call)
{
	const uint64_t word = *call->word;
	const uint32_t use = (uint32_t)(word >> 32), index = (uint32_t)word;
	struct stream *s;
	bool own;

	if (!index || index > STREAMS_MAX)
		return;
	s = &tracked.streams[index - 1];
	inject_lock();
	thread_wake_if_due();
	own = s->uid && s->use == use && s->owner;
	if (s->uid && s->use == use) {
		stream_leave(s, call->result == CUDA_SUCCESS);
		if (call->function->kind == COPY_BACK && call->result == CUDA_SUCCESS)
			stream_done(s, s->last);
	}
	inject_unlock();
	if (own && call->function->kind != COPY_BACK)
		marker_write_own(s, use);
}

/* ---- synchronisations ---- */

static struct context *named(const struct call *call)
{
	const uintptr_t handle = call->function->kind == SYNC_NAMED ? call->arguments[0] : (uintptr_t)call->context;

	for (size_t i = 0; handle && i < CONTEXTS_MAX; i++) {
		if (tracked.contexts[i].uid && (uintptr_t)tracked.contexts[i].handle == handle)
			return &tracked.contexts[i];
	}
	return NULL;
}

/* What the call waits for, as far as it is one context or one stream: count the waits there. Lock held. */
static void count_wait(const struct call *call, bool begins)
{
	uint32_t *waits = NULL;

	if (call->function->kind == SYNC_STREAM) {
		struct stream *s = known(call, target_of(call));

		waits = s ? &s->syncing : NULL;
	} else if (call->function->kind != SYNC_EVENT) {
		struct context *c = named(call);

		waits = c ? &c->syncing : NULL;
	}
	if (waits && begins)
		++*waits;
	else if (waits && *waits)
		--*waits;
}

static void enter_sync(const struct call *call)
{
	inject_lock();
	*call->word = tracked.launches;
	count_wait(call, true);
	inject_unlock();
}

static void leave_sync(const struct call *call)
{
	const uint64_t number = *call->word;
	struct context *context;
	struct stream *s;

	inject_lock();
	count_wait(call, false);
	/* A word beyond all launches: the entry was not seen, and the word is not ours. */
	if (call->result == CUDA_SUCCESS && number <= tracked.launches) {
		switch (call->function->kind) {
		case SYNC_CONTEXT:
		case SYNC_NAMED:
			context = named(call);
			if (context)
				streams_done(context->uid, number);
			break;
		case SYNC_STREAM:
			s = known(call, target_of(call));
			if (s)
				stream_done(s, number);
			break;
		default:
			event_done(call->arguments[0]);
			break;
		}
	}
	inject_unlock();
}

static void leave_record(const struct call *call)
{
	const uintptr_t event = call->arguments[0];
	const struct target target = target_of(call);
	const bool counts = call->result == CUDA_SUCCESS && !captured(target);
	struct stream *s;

	inject_lock();
	s = counts ? known(call, target) : NULL;
	event_recorded(event, s);
	inject_unlock();
}

/* ---- handles that end ---- */

static void begin_capture(const struct call *call)
{
	const uintptr_t handle = call->arguments[0];
	bool room;

	/* From here on, the library's thread calls the driver for no stream. */
	if (!device_lock())
		return;
	inject_lock();
	room = captures_add(handle);
	inject_unlock();
	device_unlock();
	if (!room) {
		say("more than %d streams are being captured at once; runs unmanaged", CAPTURES_MAX);
		deactivate();
	}
}

static void leave_capture(const struct call *call)
{
	const uintptr_t handle = call->arguments[0];
	int status = CAPTURE_STATUS_NONE;

	if (call->function->kind == CAPTURE_BEGIN && call->result == CUDA_SUCCESS)
		return;
	/* An error may have ended the capture or left it as it was: the driver knows. */
	if (call->result != CUDA_SUCCESS &&
	    driver.cuStreamIsCapturing((CUstream)handle, &status) == CUDA_SUCCESS && /* NOLINT: a handle */
	    status != CAPTURE_STATUS_NONE)
		return;
	inject_lock();
	captures_drop(handle);
	inject_unlock();
}

static void destroy_stream(const struct call *call)
{
	const struct target target = target_of(call);
	struct stream *s;

	if (target.handle == STREAM_LEGACY || target.owner || !device_lock())
		return;
	inject_lock();
	captures_drop(target.handle);
	rank_set(target.handle, -1); /* the next stream may have the same handle */
	s = known(call, target);
	inject_unlock();
	if (s)
		marker_write(s); /* its work goes on after the call */
	inject_lock();
	s = known(call, target);
	if (s) {
		s->gone = true;
		if (!s->marker && stream_busy(s))
			stream_lose(s);
	}
	inject_unlock();
	device_unlock();
}

static void destroy_context(uint32_t kind, uintptr_t argument)
{
	if (!device_lock())
		return;
	inject_lock();
	for (size_t i = 0; i < CONTEXTS_MAX; i++) {
		struct context *c = &tracked.contexts[i];

		if (c->uid && (kind == CONTEXT_DESTROY ? (uintptr_t)c->handle == argument
						       : c->device == (CUdevice)(argument & 0xffffffffu)))
			context_forget(c);
	}
	inject_unlock();
	device_unlock();
}

/* ---- what is reported ---- */

static void at_entry(const struct call *call)
{
	switch (call->function->kind) {
	case LAUNCH:
	case LAUNCH_KERNEL:
	case LAUNCH_GRAPH:
	case LAUNCH_EX:
	case COPY:
	case COPY_BACK:
		enter_launch(call);
		break;
	case SYNC_CONTEXT:
	case SYNC_NAMED:
	case SYNC_STREAM:
	case SYNC_EVENT:
		enter_sync(call);
		break;
	case CAPTURE_BEGIN:
		begin_capture(call);
		break;
	case STREAM_DESTROY:
		destroy_stream(call);
		break;
	case EVENT_DESTROY:
		inject_lock();
		event_recorded(call->arguments[0], NULL);
		inject_unlock();
		break;
	case CONTEXT_DESTROY:
	case DEVICE_RESET:
		destroy_context(call->function->kind, call->arguments[0]);
		break;
	default:
		break;
	}
}

static void at_exit(const struct call *call)
{
	switch (call->function->kind) {
	case LAUNCH:
	case LAUNCH_KERNEL:
	case LAUNCH_GRAPH:
	case LAUNCH_EX:
	case COPY:
	case COPY_BACK:
		leave_launch(call);
		break;
	case SYNC_CONTEXT:
	case SYNC_NAMED:
	case SYNC_STREAM:
	case SYNC_EVENT:
		leave_sync(call);
		break;
	case RECORD:
		leave_record(call);
		break;
	case CAPTURE_BEGIN:
	case CAPTURE_END:
		leave_capture(call);
		break;
	default:
		break;
	}
}

/* Is this call followed? */
static bool wanted(void)
{
	return !inside && is_active() && !nothing_to_do();
}

bool call_entered(const struct call *call)
{
	const int saved = errno;

	if (!wanted())
		return false;
	inside = true;
	at_entry(call);
	inside = false;
	errno = saved;
	return true;
}

void call_left(const struct call *call)
{
	const int saved = errno;

	if (!wanted())
		return;
	inside = true;
	at_exit(call);
	inside = false;
	errno = saved;
}

void calls_are_our_own(void)
{
	inside = true;
}

bool call_is_our_own(void)
{
	return inside;
}
