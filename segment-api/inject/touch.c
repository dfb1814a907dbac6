/* SPDX-License-Identifier: Apache-2.0 */
/*
 * touch.c - have the GPU switch to the program before a begin that the daemon expects.
 *
 * After others had the GPU, the first kernel of a job waits until the GPU has switched to its context. The daemon says
 * when it disables the others ahead of a begin (`expected` in gpuseg_abi.h). A thread for each GPU waits for that, and
 * has the GPU write one word: a memset, which is a kernel, on a stream of its own that waits for no other one. It is
 * queued while the others are being disabled, and the GPU switches for it.
 *
 * - Only while the program has no segment and no work on that GPU, and its launches are not held.
 * - Not while a stream is being captured: as for markers, a capture begins under device_lock.
 * - Not while the touch before it is not done: it is still what the GPU will switch to.
 * - A call that fails ends it for that context. The program runs on as without.
 *
 * The stream comes with a first memset, for which the driver loads the kernel. Both may need the GPU, so they are made
 * while the program has a segment: its context is enabled then. That happens once, in the segment after the first begin
 * that was expected.
 */
#include <sys/prctl.h>

#include "../src/internal.h"
#include "calls.h"
#include "captures.h"
#include "device.h"
#include "driver.h"
#include "gpu.h"
#include "held.h"
#include "inject.h"
#include "settings.h"
#include "streams.h"
#include "threads.h"
#include "touch.h"

#define EXPECTED_SINCE_MINOR 10
#define LOOK_NS (100 * NS_PER_MS) /* longest sleep: is there another daemon? */
#define OLD_LOOK_NS NS_PER_S	  /* the same, while the daemon does not say what it expects */
#define PREPARE_NS (2 * NS_PER_MS)

static uint32_t touchers; /* atomic, futex: threads that touch */

/* What a call needs, copied under the lock. */
struct order {
	struct context *context;
	uint32_t uid;
	CUcontext handle;
	CUstream stream; /* NULL = create it first */
	CUdeviceptr address;
	uint32_t value;
};

/* The context that was used last is there, and may be called for. Lock held. */
static bool usable(const struct gpu *gpu)
{
	const struct context *c = gpu->used;

	return !nothing_to_do() && c && c->uid && c->gpu == gpu && !c->touch.off && !captures_any();
}

/* Only once the daemon has expected a begin: where it never does, nothing is made. */
static bool lacks_stream(const struct gpu *gpu)
{
	return gpu->touch.was_expected && usable(gpu) && !gpu->used->touch.stream;
}

static bool wants_stream(const struct gpu *gpu)
{
	return lacks_stream(gpu) && gpu->segment.state == SEGMENT_OPEN;
}

static bool wants_touch(const struct gpu *gpu)
{
	const struct context *c = gpu->used;

	/* acquire; pairs with the GPU's write */
	return usable(gpu) && c->touch.stream && gpu->segment.state == SEGMENT_NONE_OPEN && !gpu->busy &&
	       !held_now(gpu) && __atomic_load_n(&c->page[TOUCH_WORD], __ATOMIC_ACQUIRE) == c->touch.value;
}

/* Fill `order`. False: nothing is to be done. Lock and device_lock held, so the context stays. */
static bool take_order(struct gpu *gpu, struct order *order)
{
	struct context *c = gpu->used;

	if (wants_stream(gpu)) {
		if (!c->page && !c->page_tried)
			return false; /* the library's thread is about to make it */
		c->touch.off = !c->page;
	}
	if (!(wants_stream(gpu) || wants_touch(gpu)))
		return false;
	*order = (struct order){.context = c,
				.uid = c->uid,
				.handle = c->handle,
				.stream = c->touch.stream,
				.address = c->device_page + TOUCH_WORD * sizeof(uint32_t),
				.value = ++c->touch.value};
	return true;
}

/* The GPU is to write the word. device_lock held. */
static CUresult carry_out(struct order *order)
{
	CUcontext popped;
	CUresult result = driver.cuCtxPushCurrent_v2(order->handle);

	if (result != CUDA_SUCCESS)
		return result;
	if (!order->stream)
		result = touching.cuStreamCreate(&order->stream, STREAM_NON_BLOCKING);
	if (result == CUDA_SUCCESS)
		result = touching.cuMemsetD32Async(order->address, order->value, 1, order->stream);
	driver.cuCtxPopCurrent_v2(&popped);
	return result;
}

/* Touch, or prepare for it. Lock held; released meanwhile. */
static void touch(struct gpu *gpu)
{
	struct order order;
	CUresult result;

	inject_unlock();
	if (!device_lock()) {
		inject_lock();
		return;
	}
	inject_lock();
	if (take_order(gpu, &order)) {
		const bool counts = order.stream != NULL;

		inject_unlock();
		result = carry_out(&order);
		inject_lock();
		if (order.context->uid == order.uid) {
			order.context->touch.stream = order.stream;
			order.context->touch.off = result != CUDA_SUCCESS;
		}
		if (result == CUDA_SUCCESS)
			gpu->touch.count += counts;
		else if (inject.settings.verbose)
			say("GPU %d: no touches, error %d of the driver", gpu->index, result);
	}
	device_unlock();
}

/* ---- the thread ---- */

/* The task's word, with the daemon asked to use it. NULL: there is none now. Lock held. */
static const uint32_t *word_of(const struct gpu *gpu)
{
	const gpuseg_task *task = gpu->task;

	/* While a segment begins, its thread may switch to a new daemon. */
	if (gpu->segment.state == SEGMENT_BEGINNING || !task || !task->slot ||
	    (__atomic_load_n(&task->client->session->version, __ATOMIC_ACQUIRE) & 0xffff) < EXPECTED_SINCE_MINOR)
		return NULL;
	if (!__atomic_load_n(&task->slot->wants_expected, __ATOMIC_RELAXED))
		__atomic_store_n(&task->slot->wants_expected, 1, __ATOMIC_RELEASE);
	return &task->slot->expected;
}

/* Sleep until the word changes, or a limit. Lock held; released meanwhile. */
static void rest(struct gpu *gpu, const uint32_t *word, uint32_t seen)
{
	int64_t limit_ns = LOOK_NS;

	if (gpu->segment.state == SEGMENT_BEGINNING || (word && lacks_stream(gpu) && !wants_stream(gpu))) {
		word = &gpu->generation;
		seen = __atomic_load_n(word, __ATOMIC_RELAXED);
		gpu->waiters++;
	} else if (!word) {
		word = thread_stop_word();
		seen = 0;
		limit_ns = OLD_LOOK_NS;
	} else if (wants_stream(gpu)) {
		limit_ns = PREPARE_NS; /* the library's thread is about to make the page */
	}
	gpu->touch.sleeps = word;
	inject_unlock();
	/* If the session is unmapped meanwhile, the kernel says so, and the loop looks at the new one. */
	futex_wait(word, seen, now_ns() + limit_ns);
	inject_lock();
	gpu->touch.sleeps = NULL;
	if (word == &gpu->generation)
		gpu->waiters--;
}

static bool goes_on(void)
{
	return !thread_is_to_stop() && is_active();
}

static void *run(void *arg)
{
	int mode = CAPTURE_MODE_RELAXED;
	struct gpu *gpu = arg;
	const uint32_t *word, *before = NULL;
	uint32_t seen = 0;

	calls_are_our_own();
	prctl(PR_SET_NAME, "gpuseg-touch");
	prctl(PR_SET_TIMERSLACK, 1000UL);
	/* This thread's calls must not spoil a capture of another thread. */
	driver.cuThreadExchangeStreamCaptureMode(&mode);
	inject_lock();
	while (goes_on()) {
		uint32_t value = 0;

		word = word_of(gpu);
		if (word) /* acquire; pairs with the release in Session.expected */
			value = __atomic_load_n(word, __ATOMIC_ACQUIRE);
		if (word && (wants_stream(gpu) || (word == before && value != seen && wants_touch(gpu))))
			touch(gpu);
		gpu->touch.was_expected |= word && word == before && value != seen;
		before = word;
		seen = value;
		if (goes_on())
			rest(gpu, word, seen);
	}
	inject_unlock();
	__atomic_fetch_sub(&touchers, 1, __ATOMIC_RELEASE);
	futex_wake_all(&touchers);
	return NULL;
}

void touch_start(struct gpu *gpu)
{
	const struct settings *s = &inject.settings;

	if (!s->touch || s->priority == 0 || gpu->touch.runs || !touching.cuMemsetD32Async)
		return;
	__atomic_fetch_add(&touchers, 1, __ATOMIC_RELAXED);
	gpu->touch.runs = thread_of_our_own(run, gpu) == 0;
	if (!gpu->touch.runs)
		__atomic_fetch_sub(&touchers, 1, __ATOMIC_RELAXED);
}

void touch_stop(int64_t until_ns)
{
	uint32_t left;

	while ((left = __atomic_load_n(&touchers, __ATOMIC_ACQUIRE)) > 0 && now_ns() - until_ns < 0) {
		inject_lock();
		for (size_t i = 0; i < GPUS_MAX; i++) {
			if (gpus[i].touch.sleeps)
				futex_wake_all(gpus[i].touch.sleeps);
		}
		inject_unlock();
		futex_wait(&touchers, left, now_ns() + 2 * NS_PER_MS);
	}
}

void touch_say(const struct gpu *gpu)
{
	if (gpu->touch.runs)
		say("GPU %d: %llu touches before expected begins", gpu->index, (unsigned long long)gpu->touch.count);
}
