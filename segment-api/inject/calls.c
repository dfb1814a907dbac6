/* SPDX-License-Identifier: Apache-2.0 */
/* calls.c - what each function of the driver's API means for the streams of the program. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "inject.h"

#define IDS_MAX 4096

enum kind {
	OTHER = 0,
	LAUNCH,	      /* work on the stream at `offset` of the parameters */
	LAUNCH_GRAPH, /* the same, of a graph */
	LAUNCH_EX,    /* the stream is in the structure that the first parameter points to */
	COPY,	      /* work on the default stream that may outlast the call */
	COPY_BACK,    /* work on the default stream that is done when the call returns */
	SYNC_CONTEXT, /* all that was launched in the current context is done */
	SYNC_NAMED,   /* the same, in the context at 0 */
	SYNC_STREAM,
	SYNC_EVENT,
	RECORD, /* of an event at 0, in the stream at 8 */
	CAPTURE_BEGIN,
	CAPTURE_END,
	STREAM_DESTROY,
	EVENT_DESTROY,
	CONTEXT_DESTROY, /* the context at 0 */
	DEVICE_RESET	 /* the primary context of the device at 0 */
};

/*
 * Functions by name, without the suffix of the variants for per-thread default streams. Source of the offsets: the
 * signatures in NVIDIA's documentation of the driver API. Forms from before CUDA 4, with 32-bit pointers, are left out.
 */
static const struct rule {
	const char *name;
	uint8_t kind;
	uint8_t offset;
} rules[] = {
	{"cuLaunch", COPY, 0},
	{"cuLaunchGrid", COPY, 0},
	{"cuLaunchGridAsync", LAUNCH, 16},
	{"cuLaunchKernel", LAUNCH, 40},
	{"cuLaunchCooperativeKernel", LAUNCH, 40},
	{"cuLaunchKernelEx", LAUNCH_EX, 32},
	{"cuGraphLaunch", LAUNCH_GRAPH, 8},
	{"cuMemcpyAsync", LAUNCH, 24},
	{"cuMemcpyHtoDAsync_v2", LAUNCH, 24},
	{"cuMemcpyDtoHAsync_v2", LAUNCH, 24},
	{"cuMemcpyDtoDAsync_v2", LAUNCH, 24},
	{"cuMemcpyHtoAAsync_v2", LAUNCH, 32},
	{"cuMemcpyAtoHAsync_v2", LAUNCH, 32},
	{"cuMemcpyPeerAsync", LAUNCH, 40},
	{"cuMemcpy2DAsync_v2", LAUNCH, 8},
	{"cuMemcpy3DAsync_v2", LAUNCH, 8},
	{"cuMemcpy3DPeerAsync", LAUNCH, 8},
	{"cuMemcpyBatchAsync", LAUNCH, 64},
	{"cuMemcpyBatchAsync_v2", LAUNCH, 56},
	{"cuMemcpy3DBatchAsync", LAUNCH, 32},
	{"cuMemcpy3DBatchAsync_v2", LAUNCH, 24},
	{"cuMemsetD8Async", LAUNCH, 24},
	{"cuMemsetD16Async", LAUNCH, 24},
	{"cuMemsetD32Async", LAUNCH, 24},
	{"cuMemsetD2D8Async", LAUNCH, 40},
	{"cuMemsetD2D16Async", LAUNCH, 40},
	{"cuMemsetD2D32Async", LAUNCH, 40},
	{"cuMemcpy", COPY, 0},
	{"cuMemcpyPeer", COPY, 0},
	{"cuMemcpyHtoD_v2", COPY, 0},
	{"cuMemcpyDtoD_v2", COPY, 0},
	{"cuMemcpyDtoA_v2", COPY, 0},
	{"cuMemcpyAtoD_v2", COPY, 0},
	{"cuMemcpyHtoA_v2", COPY, 0},
	{"cuMemcpyAtoA_v2", COPY, 0},
	{"cuMemcpy2D_v2", COPY, 0},
	{"cuMemcpy2DUnaligned_v2", COPY, 0},
	{"cuMemcpy3D_v2", COPY, 0},
	{"cuMemcpy3DPeer", COPY, 0},
	{"cuMemcpyDtoH_v2", COPY_BACK, 0},
	{"cuMemcpyAtoH_v2", COPY_BACK, 0},
	{"cuMemsetD8_v2", COPY, 0},
	{"cuMemsetD16_v2", COPY, 0},
	{"cuMemsetD32_v2", COPY, 0},
	{"cuMemsetD2D8_v2", COPY, 0},
	{"cuMemsetD2D16_v2", COPY, 0},
	{"cuMemsetD2D32_v2", COPY, 0},
	{"cuCtxSynchronize", SYNC_CONTEXT, 0},
	{"cuCtxSynchronize_v2", SYNC_NAMED, 0},
	{"cuStreamSynchronize", SYNC_STREAM, 0},
	{"cuStreamQuery", SYNC_STREAM, 0},
	{"cuEventSynchronize", SYNC_EVENT, 0},
	{"cuEventQuery", SYNC_EVENT, 0},
	{"cuEventRecord", RECORD, 8},
	{"cuEventRecordWithFlags", RECORD, 8},
	{"cuEventDestroy", EVENT_DESTROY, 0},
	{"cuEventDestroy_v2", EVENT_DESTROY, 0},
	{"cuStreamBeginCapture", CAPTURE_BEGIN, 0},
	{"cuStreamBeginCapture_v2", CAPTURE_BEGIN, 0},
	{"cuStreamBeginCaptureToGraph", CAPTURE_BEGIN, 0},
	{"cuStreamEndCapture", CAPTURE_END, 0},
	{"cuStreamDestroy", STREAM_DESTROY, 0},
	{"cuStreamDestroy_v2", STREAM_DESTROY, 0},
	{"cuCtxDestroy", CONTEXT_DESTROY, 0},
	{"cuCtxDestroy_v2", CONTEXT_DESTROY, 0},
	{"cuCtxDetach", CONTEXT_DESTROY, 0},
	{"cuDevicePrimaryCtxReset", DEVICE_RESET, 0},
	{"cuDevicePrimaryCtxReset_v2", DEVICE_RESET, 0},
	{"cuDevicePrimaryCtxRelease", DEVICE_RESET, 0},
	{"cuDevicePrimaryCtxRelease_v2", DEVICE_RESET, 0},
};

/* By id of the callback; written before the first one comes. */
static struct {
	uint8_t kind;
	uint8_t offset;
	bool per_thread; /* handle 0 is the default stream of the thread */
	bool kernel;	 /* the first parameter is a function */
} calls[IDS_MAX];

/* Inside of a callback of ours: the calls of the driver that we make ourselves are not followed. */
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

static struct target target_of(const struct cupti_call *call, uint32_t id)
{
	const void *block = call->parameters;

	switch (calls[id].kind) {
	case LAUNCH_EX:
		block = (const void *)word_at(block, 0); /* NOLINT: a pointer */
		if (!block)
			return (struct target){.handle = 0};
		return normal(word_at(block, calls[id].offset), calls[id].per_thread);
	case COPY:
	case COPY_BACK:
		return normal(0, calls[id].per_thread);
	default:
		return normal(word_at(block, calls[id].offset), calls[id].per_thread);
	}
}

/* The entry of a stream that is followed already; NULL if there is none. Lock held. */
static struct stream *known(const struct cupti_call *call, struct target target)
{
	struct context *context = context_find(call->context, call->context_uid);

	return context ? stream_known(context, target.handle, target.owner) : NULL;
}

/* Would this work become a part of a graph? */
static bool captured(struct target target)
{
	int status = CAPTURE_STATUS_NONE;

	if (!__atomic_load_n(&inject.capture_count, __ATOMIC_RELAXED))
		return false;
	return inject.driver.cuStreamIsCapturing((CUstream)target.handle, &status) != CUDA_SUCCESS || /* NOLINT */
	       status != CAPTURE_STATUS_NONE;
}

/* ---- launches ---- */

/* What is launched, to learn how long it takes: a kernel, a graph, or a kind of copy. */
static uintptr_t function_of(const struct cupti_call *call, uint32_t id)
{
	switch (calls[id].kind) {
	case LAUNCH_EX:
		return word_at(call->parameters, 8);
	case LAUNCH_GRAPH:
		return word_at(call->parameters, 0);
	case LAUNCH:
		return calls[id].kernel ? word_at(call->parameters, 0) : id;
	default:
		return id;
	}
}

/* How much of the GPU it uses, as kernels_percent(). Lock held, may be released meanwhile. */
static int percent_of(const struct context *context, const struct cupti_call *call, uint32_t id)
{
	const bool extended = calls[id].kind == LAUNCH_EX;
	uint32_t numbers[7]; /* blocks and threads in x, y, z; shared memory */
	const char *at = call->parameters;
	struct shape shape;

	if (!calls[id].kernel)
		return calls[id].kind == LAUNCH_GRAPH ? PERCENT_UNKNOWN : PERCENT_NONE;
	if (!extended && calls[id].offset != 40)
		return PERCENT_UNKNOWN; /* forms from before CUDA 4 */
	memcpy(numbers, extended ? (const char *)word_at(at, 0) : at + 8, sizeof(numbers)); /* NOLINT: a pointer */
	shape = (struct shape){.blocks = (uint64_t)numbers[0] * numbers[1] * numbers[2],
			       .threads = numbers[3] * numbers[4] * numbers[5],
			       .shared = numbers[6]};
	return kernels_percent(context, function_of(call, id), &shape);
}

/* Before a launch: is it its turn, and is there room for it? Lock held, released meanwhile. */
static void give_way(struct context *context, struct target target, bool small)
{
	struct stream *s = stream_find(context, target.handle, target.owner);
	int priority = 0;

	if (!s)
		return;
	if (!s->priority_known) {
		if (!flight_rank(target.handle, &priority) && inject.settings.cuda_priorities) {
			inject_unlock();
			if (inject.driver.cuStreamGetPriority((CUstream)target.handle, &priority) != /* NOLINT */
			    CUDA_SUCCESS)
				priority = 0;
			inject_lock();
			s = stream_find(context, target.handle, target.owner);
			if (!s)
				return;
		}
		flight_note_priority(s, priority);
	}
	flight_wait(s, small);
}

/* The word that belongs to the call says at its exit which entry to leave: use << 32 | index + 1; 0 = none. */
static void enter_launch(const struct cupti_call *call, uint32_t id)
{
	const struct target target = target_of(call, id);
	struct context *context;
	struct stream *s;
	int percent = PERCENT_UNKNOWN;

	*call->correlation = 0;
	if (!target.handle || captured(target))
		return;
	inject_lock();
	context = context_find(call->context, call->context_uid);
	if (context && flight_wanted(context->gpu)) {
		percent = percent_of(context, call, id);
		give_way(context, target, kernels_small(function_of(call, id), percent));
	}
	if (context && (__atomic_load_n(&inject.by_hand, __ATOMIC_ACQUIRE) ||
			segment_enter(context->gpu, calls[id].kind == LAUNCH_GRAPH))) {
		s = stream_find(context, target.handle, target.owner);
		if (s) {
			const int64_t at_ns = now_ns();

			stream_enter(s, at_ns);
			if (flight_applies(s))
				flight_launched(s, function_of(call, id), percent, at_ns);
			*call->correlation = (uint64_t)s->use << 32 | (uint64_t)(s - inject.streams + 1);
		} else {
			context->gpu->launch_ns = now_ns();
			context->gpu->untracked_until_ns = context->gpu->launch_ns + 10 * NS_PER_MS;
			thread_wake();
		}
	}
	inject_unlock();
}

static void leave_launch(const struct cupti_call *call, uint32_t id)
{
	const uint64_t word = *call->correlation;
	const uint32_t use = (uint32_t)(word >> 32), index = (uint32_t)word;
	struct stream *s;
	bool own;

	if (!index || index > STREAMS_MAX)
		return;
	s = &inject.streams[index - 1];
	inject_lock();
	if (inject.wake_due) {
		inject.wake_due = false;
		thread_wake();
	}
	own = s->uid && s->use == use && s->owner;
	if (s->uid && s->use == use) {
		stream_leave(s, *call->result == CUDA_SUCCESS);
		if (calls[id].kind == COPY_BACK && *call->result == CUDA_SUCCESS)
			stream_done(s, s->last);
	}
	inject_unlock();
	if (own && calls[id].kind != COPY_BACK)
		marker_write_own(s, use);
}

/* ---- synchronisations ---- */

static struct context *named(const struct cupti_call *call, uint32_t id)
{
	const uintptr_t handle = calls[id].kind == SYNC_NAMED ? word_at(call->parameters, 0) : (uintptr_t)call->context;

	for (size_t i = 0; handle && i < CONTEXTS_MAX; i++) {
		if (inject.contexts[i].uid && (uintptr_t)inject.contexts[i].handle == handle)
			return &inject.contexts[i];
	}
	return NULL;
}

/* What the call waits for, as far as it is one context or one stream: count the waits there. Lock held. */
static void count_wait(const struct cupti_call *call, uint32_t id, bool begins)
{
	uint32_t *waits = NULL;

	if (calls[id].kind == SYNC_STREAM) {
		struct stream *s = known(call, target_of(call, id));

		waits = s ? &s->syncing : NULL;
	} else if (calls[id].kind != SYNC_EVENT) {
		struct context *c = named(call, id);

		waits = c ? &c->syncing : NULL;
	}
	if (waits && begins)
		++*waits;
	else if (waits && *waits)
		--*waits;
}

static void enter_sync(const struct cupti_call *call, uint32_t id)
{
	inject_lock();
	*call->correlation = inject.launches;
	count_wait(call, id, true);
	inject_unlock();
}

static void leave_sync(const struct cupti_call *call, uint32_t id)
{
	const uint64_t number = *call->correlation;
	struct context *context;
	struct stream *s;

	inject_lock();
	count_wait(call, id, false);
	/* A word beyond all launches: the entry was not seen, and the word is not ours. */
	if (*call->result == CUDA_SUCCESS && number <= inject.launches) {
		switch (calls[id].kind) {
		case SYNC_CONTEXT:
		case SYNC_NAMED:
			context = named(call, id);
			if (context)
				streams_done(context->uid, number);
			break;
		case SYNC_STREAM:
			s = known(call, target_of(call, id));
			if (s)
				stream_done(s, number);
			break;
		default:
			event_done(word_at(call->parameters, 0));
			break;
		}
	}
	inject_unlock();
}

static void leave_record(const struct cupti_call *call, uint32_t id)
{
	const uintptr_t event = word_at(call->parameters, 0);
	const struct target target = target_of(call, id);
	const bool counts = *call->result == CUDA_SUCCESS && !captured(target);
	struct stream *s;

	inject_lock();
	s = counts ? known(call, target) : NULL;
	event_recorded(event, s);
	inject_unlock();
}

/* ---- handles that end ---- */

static void begin_capture(const struct cupti_call *call)
{
	const uintptr_t handle = word_at(call->parameters, 0);
	bool room;

	/* From here on, the library's thread calls the driver for no stream. */
	if (!device_lock())
		return;
	inject_lock();
	room = inject.capture_count < CAPTURES_MAX;
	if (room) {
		inject.captures[inject.capture_count] = handle;
		__atomic_store_n(&inject.capture_count, inject.capture_count + 1, __ATOMIC_RELAXED);
	}
	inject_unlock();
	device_unlock();
	if (!room) {
		say("more than %d streams are being captured at once; runs unmanaged", CAPTURES_MAX);
		deactivate();
	}
}

/* Of a capture that has ended, or that never began. Lock held. */
static void drop_capture(uintptr_t handle)
{
	for (unsigned int i = 0; i < inject.capture_count; i++) {
		if (inject.captures[i] == handle) {
			inject.captures[i] = inject.captures[inject.capture_count - 1];
			__atomic_store_n(&inject.capture_count, inject.capture_count - 1, __ATOMIC_RELAXED);
			return;
		}
	}
}

static void leave_capture(const struct cupti_call *call, uint32_t id)
{
	const uintptr_t handle = word_at(call->parameters, 0);
	int status = CAPTURE_STATUS_NONE;

	if (calls[id].kind == CAPTURE_BEGIN && *call->result == CUDA_SUCCESS)
		return;
	/* An error may have ended the capture or left it as it was: the driver knows. */
	if (*call->result != CUDA_SUCCESS &&
	    inject.driver.cuStreamIsCapturing((CUstream)handle, &status) == CUDA_SUCCESS && /* NOLINT: a handle */
	    status != CAPTURE_STATUS_NONE)
		return;
	inject_lock();
	drop_capture(handle);
	inject_unlock();
}

static void destroy_stream(const struct cupti_call *call, uint32_t id)
{
	const struct target target = target_of(call, id);
	struct stream *s;

	if (target.handle == STREAM_LEGACY || target.owner || !device_lock())
		return;
	inject_lock();
	drop_capture(target.handle);
	flight_set_rank(target.handle, -1); /* the next stream may have the same handle */
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
		struct context *c = &inject.contexts[i];

		if (c->uid && (kind == CONTEXT_DESTROY ? (uintptr_t)c->handle == argument
						       : c->device == (CUdevice)(argument & 0xffffffffu)))
			context_forget(c);
	}
	inject_unlock();
	device_unlock();
}

/* ---- the callback ---- */

static void at_entry(const struct cupti_call *call, uint32_t id)
{
	switch (calls[id].kind) {
	case LAUNCH:
	case LAUNCH_GRAPH:
	case LAUNCH_EX:
	case COPY:
	case COPY_BACK:
		enter_launch(call, id);
		break;
	case SYNC_CONTEXT:
	case SYNC_NAMED:
	case SYNC_STREAM:
	case SYNC_EVENT:
		enter_sync(call, id);
		break;
	case CAPTURE_BEGIN:
		begin_capture(call);
		break;
	case STREAM_DESTROY:
		destroy_stream(call, id);
		break;
	case EVENT_DESTROY:
		inject_lock();
		event_recorded(word_at(call->parameters, 0), NULL);
		inject_unlock();
		break;
	case CONTEXT_DESTROY:
	case DEVICE_RESET:
		destroy_context(calls[id].kind, word_at(call->parameters, 0));
		break;
	default:
		break;
	}
}

static void at_exit(const struct cupti_call *call, uint32_t id)
{
	switch (calls[id].kind) {
	case LAUNCH:
	case LAUNCH_GRAPH:
	case LAUNCH_EX:
	case COPY:
	case COPY_BACK:
		leave_launch(call, id);
		break;
	case SYNC_CONTEXT:
	case SYNC_NAMED:
	case SYNC_STREAM:
	case SYNC_EVENT:
		leave_sync(call, id);
		break;
	case RECORD:
		leave_record(call, id);
		break;
	case CAPTURE_BEGIN:
	case CAPTURE_END:
		leave_capture(call, id);
		break;
	default:
		break;
	}
}

static void on_call(void *user, uint32_t domain, uint32_t id, const void *data)
{
	const struct cupti_call *call = data;
	int saved = errno;

	(void)user;
	if (domain != CUPTI_DOMAIN_DRIVER_API || id >= IDS_MAX || !calls[id].kind || inside ||
	    !__atomic_load_n(&inject.active, __ATOMIC_ACQUIRE) || nothing_to_do())
		return;
	inside = true;
	if (call->site == CUPTI_SITE_ENTER)
		at_entry(call, id);
	else
		at_exit(call, id);
	inside = false;
	errno = saved;
}

void calls_are_our_own(void)
{
	inside = true;
}

static const struct rule *rule_of(const char *name, bool *per_thread)
{
	const size_t length = strlen(name);
	size_t base = length;

	*per_thread = false;
	if (length > 5 && (strcmp(name + length - 5, "_ptsz") == 0 || strcmp(name + length - 5, "_ptds") == 0)) {
		*per_thread = true;
		base = length - 5;
	}
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		if (strlen(rules[i].name) == base && strncmp(rules[i].name, name, base) == 0)
			return &rules[i];
	}
	return NULL;
}

/* For measurements: with GPUSEG_EXEC_FOLLOW=cuGraphLaunch,cuCtx only functions that begin so; "none": no function. */
static bool wanted(const char *name, const char *list)
{
	for (const char *item = list; item && *item;) {
		const size_t length = strcspn(item, ",");

		if (length && strncmp(name, item, length) == 0)
			return true;
		item += length + (item[length] == ',');
	}
	return !list || !*list;
}

bool calls_subscribe(void)
{
	const char *list = secure_getenv("GPUSEG_EXEC_FOLLOW");
	int result = inject.cupti.cuptiSubscribe(&inject.subscriber, on_call, NULL);
	unsigned int enabled = 0, launches = 0;

	if (result != CUPTI_SUCCESS) {
		if (result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS)
			say("a profiler is attached already, and the driver allows one; runs unmanaged");
		else
			say("cuptiSubscribe failed with %d; runs unmanaged", result);
		return false;
	}
	for (uint32_t id = 1; id < IDS_MAX; id++) {
		const char *name;
		const struct rule *rule;
		bool per_thread;

		if (inject.cupti.cuptiGetCallbackName(CUPTI_DOMAIN_DRIVER_API, id, &name) != CUPTI_SUCCESS || !name)
			continue;
		rule = rule_of(name, &per_thread);
		if (!rule || !wanted(name, list))
			continue;
		calls[id].offset = rule->offset;
		calls[id].per_thread = per_thread;
		calls[id].kernel = strncmp(name, "cuLaunch", 8) == 0;
		calls[id].kind = rule->kind;
		if (inject.cupti.cuptiEnableCallback(1, inject.subscriber, CUPTI_DOMAIN_DRIVER_API, id) !=
		    CUPTI_SUCCESS) {
			calls[id].kind = OTHER;
			continue;
		}
		enabled++;
		launches += rule->kind == LAUNCH && strncmp(name, "cuLaunchKernel", 14) == 0;
	}
	if (!launches && !list) {
		inject.cupti.cuptiUnsubscribe(inject.subscriber);
		say("libcupti knows no launch of a kernel; runs unmanaged");
		return false;
	}
	if (inject.settings.verbose)
		say("follows %u functions of the driver", enabled);
	return true;
}
