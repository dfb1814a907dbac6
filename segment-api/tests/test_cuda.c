/* SPDX-License-Identifier: Apache-2.0 */
/* test_cuda.c - gpuseg_cuda.h against stand-ins of the CUDA runtime and a daemon in a thread; no GPU. */
#include <errno.h>

#include "../src/platform.h"
#include "check.h"
#include "fixture.h"
#include "gpuseg.h"
#include "gpuseg_cuda.h"

#define DEVICE 3
#define PATIENCE_NS (30 * NS_PER_S)
#define EVENTS 4

struct fake_event {
	unsigned flags;
	int live;
	int recorded;
};

struct fake_stream {
	unsigned flags;
	int live;
};

enum failing {
	FAIL_NONE = 0,
	FAIL_STREAM,
	FAIL_MEMORY,
	FAIL_FIRST,
	FAIL_SYNCHRONISE,
	FAIL_TOUCH,
	FAIL_QUERY,
	FAIL_RELAXED
};

static struct {
	struct fake_event events[EVENTS];
	struct fake_stream stream;
	uint32_t memory;
	int made, destroyed_twice, memory_live;
	int fail_create; /* the n-th event from now fails */
	cudaError_t record, wait;
	enum failing failing; /* atomic, as all below */
	int memsets;
	int asked; /* whether the stream is done */
	int not_ready;
} cuda;

static __thread int device_of_thread = DEVICE;
static __thread enum cudaStreamCaptureMode mode_of_thread = cudaStreamCaptureModeGlobal;

static bool fails(enum failing what)
{
	return __atomic_load_n(&cuda.failing, __ATOMIC_ACQUIRE) == what;
}

static cudaError_t unless(enum failing what)
{
	return fails(what) ? cudaErrorLaunchFailure : cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
	if (cuda.fail_create > 0 && --cuda.fail_create == 0)
		return cudaErrorMemoryAllocation;
	cuda.events[cuda.made] = (struct fake_event){.flags = flags, .live = 1};
	*event = &cuda.events[cuda.made++];
	return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
	cuda.destroyed_twice += !event->live;
	event->live = 0;
	return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
	(void)stream;
	event->recorded++;
	return cuda.record;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
	CHECK(event->recorded > 0);
	return cuda.wait;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t stop)
{
	CHECK(start->recorded > 0 && stop->recorded > 0);
	CHECK((start->flags & cudaEventDisableTiming) == 0);
	*ms = 1.5f;
	return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device)
{
	*device = device_of_thread;
	return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
	device_of_thread = device;
	return cudaSuccess;
}

cudaError_t cudaMalloc(void **memory, size_t bytes)
{
	CHECK(bytes <= sizeof(cuda.memory));
	if (fails(FAIL_MEMORY))
		return cudaErrorMemoryAllocation;
	cuda.memory_live++;
	*memory = &cuda.memory;
	return cudaSuccess;
}

cudaError_t cudaFree(void *memory)
{
	CHECK(memory == &cuda.memory);
	cuda.memory_live--;
	return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
	if (fails(FAIL_STREAM))
		return cudaErrorMemoryAllocation;
	cuda.stream = (struct fake_stream){.flags = flags, .live = 1};
	*stream = &cuda.stream;
	return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
	cuda.destroyed_twice += !stream->live;
	stream->live = 0;
	return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
	CHECK(stream == &cuda.stream);
	return unless(FAIL_SYNCHRONISE);
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
	CHECK(stream == &cuda.stream && stream->live);
	CHECK_EQ(mode_of_thread, cudaStreamCaptureModeRelaxed);
	__atomic_fetch_add(&cuda.asked, 1, __ATOMIC_RELEASE);
	if (__atomic_load_n(&cuda.not_ready, __ATOMIC_ACQUIRE))
		return cudaErrorNotReady;
	return unless(FAIL_QUERY);
}

cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t stream)
{
	CHECK(memory == &cuda.memory && value == 0 && bytes == 4);
	CHECK(stream == &cuda.stream && stream->live);
	CHECK_EQ(stream->flags, cudaStreamNonBlocking);
	CHECK_EQ(device_of_thread, DEVICE);
	const bool first = __atomic_fetch_add(&cuda.memsets, 1, __ATOMIC_ACQ_REL) == 0;

	return unless(first ? FAIL_FIRST : FAIL_TOUCH);
}

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
	const enum cudaStreamCaptureMode before = mode_of_thread;

	mode_of_thread = *mode;
	*mode = before;
	return unless(FAIL_RELAXED);
}

static struct fake_daemon daemon_;
static gpuseg_client *client;
static gpuseg_task *task;
static struct gpuseg_cuda segment;

static void open_task(const char *dir)
{
	struct gpuseg_connect_attr attr = GPUSEG_CONNECT_ATTR_INIT;
	struct gpuseg_task_attr task_attr = GPUSEG_TASK_ATTR_INIT;

	memset(&cuda, 0, sizeof(cuda));
	attr.dir = dir;
	CHECK_EQ(gpuseg_connect(&attr, &client), 0);
	task_attr.name = "kernel";
	task_attr.priority = 70;
	CHECK_EQ(gpuseg_task_open(client, &task_attr, &task), 0);
}

static void open_segment(unsigned flags)
{
	fake_daemon_start(&daemon_);
	open_task(daemon_.dir);
	fake_daemon_pregrant(&daemon_, 0, true);
	CHECK_EQ(gpuseg_cuda_open(&segment, task, flags), 0);
}

static void check_nothing_left(void)
{
	CHECK_EQ(cuda.destroyed_twice, 0);
	for (int i = 0; i < cuda.made; i++)
		CHECK_EQ(cuda.events[i].live, 0);
	CHECK_EQ(cuda.stream.live, 0);
	CHECK_EQ(cuda.memory_live, 0);
}

static void close_segment(void)
{
	gpuseg_cuda_close(&segment);
	gpuseg_cuda_close(&segment);
	check_nothing_left();
	CHECK_EQ(gpuseg_disconnect(client), 0);
	fake_daemon_stop(&daemon_);
}

static int memsets(void)
{
	return __atomic_load_n(&cuda.memsets, __ATOMIC_ACQUIRE);
}

static void await(const int *counter, int wanted)
{
	const int64_t limit_ns = now_ns() + PATIENCE_NS;

	while (__atomic_load_n(counter, __ATOMIC_ACQUIRE) < wanted) {
		CHECK(now_ns() - limit_ns < 0, "%d of %d", __atomic_load_n(counter, __ATOMIC_ACQUIRE), wanted);
		sleep_ns(NS_PER_MS);
	}
}

/* The daemon says that a begin is expected, once the thread has asked it to. */
static void expect(void)
{
	const int64_t limit_ns = now_ns() + PATIENCE_NS;

	while (!fake_daemon_expect(&daemon_, 0)) {
		CHECK(now_ns() - limit_ns < 0);
		sleep_ns(NS_PER_MS);
	}
}

/* ---- refusals ---- */

TEST(should_refuse_unknown_flags)
{
	struct gpuseg_cuda s;

	CHECK_EQ(gpuseg_cuda_open(&s, NULL, 0x80), -EINVAL);
	gpuseg_cuda_close(&s);
}

TEST(should_leave_nothing_behind_when_something_cannot_be_made)
{
	static const enum failing all[] = {FAIL_STREAM, FAIL_MEMORY, FAIL_FIRST, FAIL_SYNCHRONISE};
	struct gpuseg_cuda s;

	for (int nth = 1; nth <= 2; nth++) {
		memset(&cuda, 0, sizeof(cuda));
		cuda.fail_create = nth;
		CHECK_EQ(gpuseg_cuda_open(&s, NULL, GPUSEG_CUDA_MEASURE | GPUSEG_CUDA_TOUCH), -EIO);
		CHECK_EQ(s.error, cudaErrorMemoryAllocation);
		check_nothing_left();
	}
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		memset(&cuda, 0, sizeof(cuda));
		cuda.failing = all[i];
		CHECK_EQ(gpuseg_cuda_open(&s, NULL, GPUSEG_CUDA_TOUCH), -EIO);
		CHECK(s.error != cudaSuccess);
		gpuseg_cuda_close(&s);
		check_nothing_left();
	}
}

/* ---- segments ---- */

/* The daemon has received BEGIN and END. */
static void check_pair(size_t at)
{
	CHECK(fake_daemon_wait(&daemon_, at + 2, NULL));
	CHECK_EQ(fake_daemon_record(&daemon_, at).kind, GPUSEG_RECORD_BEGIN);
	CHECK_EQ(fake_daemon_record(&daemon_, at + 1).kind, GPUSEG_RECORD_END);
}

TEST(should_begin_and_end_and_measure)
{
	struct gpuseg_record end;

	open_segment(GPUSEG_CUDA_BLOCK | GPUSEG_CUDA_MEASURE);
	CHECK_EQ(cuda.events[0].flags, cudaEventBlockingSync);
	CHECK_EQ(gpuseg_cuda_begin_on(&segment, NULL), 0);
	CHECK_EQ(gpuseg_cuda_end(&segment, NULL), 0);
	check_pair(0);
	end = fake_daemon_record(&daemon_, 1);
	CHECK_EQ(end.arg_ns, 1500000);
	close_segment();
}

TEST(should_end_the_segment_when_cuda_fails)
{
	open_segment(GPUSEG_CUDA_MEASURE);
	cuda.record = cudaErrorLaunchFailure;
	CHECK_EQ(gpuseg_cuda_begin_on(&segment, NULL), -EIO);
	CHECK_EQ(segment.error, cudaErrorLaunchFailure);
	check_pair(0);
	cuda.record = cudaSuccess;
	CHECK_EQ(gpuseg_cuda_begin(&segment), 0);
	cuda.wait = cudaErrorLaunchFailure;
	CHECK_EQ(gpuseg_cuda_end(&segment, NULL), -EIO);
	check_pair(2);
	CHECK_EQ(cuda.memsets, 0); /* touches were not asked for */
	close_segment();
}

/* ---- touches ---- */

TEST(should_touch_when_a_begin_is_expected)
{
	open_segment(GPUSEG_CUDA_TOUCH);
	CHECK_EQ(memsets(), 1); /* the kernel is loaded */
	CHECK_EQ(gpuseg_cuda_touches(&segment), 0);
	for (int i = 1; i <= 3; i++) {
		expect();
		await(&cuda.memsets, 1 + i);
		CHECK_EQ(memsets(), 1 + i);
	}
	gpuseg_cuda_close(&segment);
	CHECK_EQ(gpuseg_cuda_touches(&segment), 3);
	close_segment();
}

TEST(should_not_touch_while_a_segment_is_begun)
{
	int before;

	open_segment(GPUSEG_CUDA_TOUCH);
	expect();
	await(&cuda.memsets, 2);
	CHECK_EQ(gpuseg_cuda_begin(&segment), 0);
	CHECK_EQ(gpuseg_cuda_begin(&segment), -EALREADY);
	before = memsets();
	expect();
	sleep_ns(20 * NS_PER_MS);
	CHECK_EQ(memsets(), before);
	CHECK_EQ(gpuseg_cuda_end(&segment, NULL), 0);
	expect();
	await(&cuda.memsets, before + 1);
	CHECK_EQ(memsets(), before + 1);
	CHECK_EQ(gpuseg_cuda_begin(&segment), 0);
	CHECK_EQ(gpuseg_cuda_end_done(&segment, 77), 0);
	expect();
	await(&cuda.memsets, before + 2);
	CHECK(fake_daemon_wait(&daemon_, 4, NULL));
	CHECK_EQ(fake_daemon_record(&daemon_, 3).arg_ns, 77);
	close_segment();
}

TEST(should_touch_after_a_begin_that_was_refused)
{
	open_segment(GPUSEG_CUDA_TOUCH);
	fake_daemon_pregrant(&daemon_, 0, false);
	fake_daemon_grants(&daemon_, FAKE_REFUSE, 0);
	CHECK_EQ(gpuseg_cuda_begin(&segment), -ECANCELED);
	expect();
	await(&cuda.memsets, 2);
	close_segment();
}

TEST(should_not_touch_before_the_touch_before_is_done)
{
	open_segment(GPUSEG_CUDA_TOUCH);
	__atomic_store_n(&cuda.not_ready, 1, __ATOMIC_RELEASE);
	expect();
	await(&cuda.asked, 1);
	CHECK_EQ(memsets(), 1);
	__atomic_store_n(&cuda.not_ready, 0, __ATOMIC_RELEASE);
	expect();
	await(&cuda.memsets, 2);
	close_segment();
}

TEST(should_go_on_without_touches_if_cuda_fails)
{
	static const enum failing all[] = {FAIL_TOUCH, FAIL_QUERY};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		int before;

		open_segment(GPUSEG_CUDA_TOUCH);
		__atomic_store_n(&cuda.failing, all[i], __ATOMIC_RELEASE);
		expect();
		await(all[i] == FAIL_TOUCH ? &cuda.memsets : &cuda.asked, all[i] == FAIL_TOUCH ? 2 : 1);
		before = memsets();
		__atomic_store_n(&cuda.failing, FAIL_NONE, __ATOMIC_RELEASE);
		expect();
		CHECK_EQ(gpuseg_cuda_begin(&segment), 0);
		CHECK_EQ(gpuseg_cuda_end(&segment, NULL), 0);
		check_pair(0);
		CHECK_EQ(memsets(), before);
		CHECK_EQ(gpuseg_cuda_touches(&segment), 0);
		close_segment();
	}
}

TEST(should_not_touch_without_a_daemon)
{
	setenv("GPUSEG_UNMANAGED", "1", 1);
	open_task("/nonexistent");
	unsetenv("GPUSEG_UNMANAGED");
	CHECK_EQ(gpuseg_cuda_open(&segment, task, GPUSEG_CUDA_TOUCH), 0);
	CHECK_EQ(gpuseg_cuda_begin(&segment), 0);
	CHECK_EQ(gpuseg_cuda_end(&segment, NULL), 0);
	gpuseg_cuda_close(&segment);
	CHECK_EQ(memsets(), 1);
	check_nothing_left();
	CHECK_EQ(gpuseg_disconnect(client), 0);
}

static const struct check_case cases[] = {CASE(should_refuse_unknown_flags),
					  CASE(should_leave_nothing_behind_when_something_cannot_be_made),
					  CASE(should_begin_and_end_and_measure),
					  CASE(should_end_the_segment_when_cuda_fails),
					  CASE(should_touch_when_a_begin_is_expected),
					  CASE(should_not_touch_while_a_segment_is_begun),
					  CASE(should_touch_after_a_begin_that_was_refused),
					  CASE(should_not_touch_before_the_touch_before_is_done),
					  CASE(should_go_on_without_touches_if_cuda_fails),
					  CASE(should_not_touch_without_a_daemon)};
CHECK_MAIN(cases)
