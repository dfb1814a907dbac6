/* SPDX-License-Identifier: Apache-2.0 */
/* test_hip.c - gpuseg_hip.h against stand-ins of the HIP functions and a daemon in a thread; no AMD hardware. */
#include <errno.h>

#include "check.h"
#include "fixture.h"
#include "gpuseg.h"
#include "gpuseg_hip.h"

struct fake_event {
	unsigned flags;
	int live;
	int recorded;
	int queries; /* left until it has happened */
};

static struct {
	struct fake_event events[8];
	int made, destroyed_twice, synchronised, queried;
	int fail_create; /* the n-th creation from now fails */
	hipError_t record, wait;
} hip;

hipError_t hipEventCreateWithFlags(hipEvent_t *event, unsigned flags)
{
	if (hip.fail_create > 0 && --hip.fail_create == 0)
		return hipErrorOutOfMemory;
	hip.events[hip.made] = (struct fake_event){.flags = flags, .live = 1};
	*event = &hip.events[hip.made++];
	return hipSuccess;
}

hipError_t hipEventDestroy(hipEvent_t event)
{
	hip.destroyed_twice += !event->live;
	event->live = 0;
	return hipSuccess;
}

hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream)
{
	(void)stream;
	event->recorded++;
	event->queries = 3;
	return hip.record;
}

hipError_t hipEventSynchronize(hipEvent_t event)
{
	CHECK(event->recorded > 0);
	hip.synchronised++;
	return hip.wait;
}

hipError_t hipEventQuery(hipEvent_t event)
{
	CHECK(event->recorded > 0);
	hip.queried++;
	return event->queries-- > 0 ? hipErrorNotReady : hip.wait;
}

hipError_t hipEventElapsedTime(float *ms, hipEvent_t start, hipEvent_t stop)
{
	CHECK(start->recorded > 0 && stop->recorded > 0);
	CHECK((start->flags & hipEventDisableTiming) == 0);
	*ms = 1.5f;
	return hipSuccess;
}

static struct fake_daemon daemon_;
static gpuseg_client *client;
static gpuseg_task *task;
static struct gpuseg_hip segment;

static void open_segment(unsigned flags)
{
	struct gpuseg_connect_attr attr = GPUSEG_CONNECT_ATTR_INIT;
	struct gpuseg_task_attr task_attr = GPUSEG_TASK_ATTR_INIT;

	memset(&hip, 0, sizeof(hip));
	fake_daemon_start(&daemon_);
	attr.dir = daemon_.dir;
	CHECK_EQ(gpuseg_connect(&attr, &client), 0);
	task_attr.name = "kernel";
	task_attr.priority = 70;
	CHECK_EQ(gpuseg_task_open(client, &task_attr, &task), 0);
	CHECK_EQ(gpuseg_hip_open(&segment, task, flags), 0);
}

static void close_segment(void)
{
	gpuseg_hip_close(&segment);
	gpuseg_hip_close(&segment);
	CHECK_EQ(hip.destroyed_twice, 0);
	for (int i = 0; i < hip.made; i++)
		CHECK_EQ(hip.events[i].live, 0);
	CHECK_EQ(gpuseg_disconnect(client), 0);
	fake_daemon_stop(&daemon_);
}

/* The daemon has received BEGIN and END. */
static void check_pair(size_t at)
{
	CHECK(fake_daemon_wait(&daemon_, at + 2, NULL));
	CHECK_EQ(fake_daemon_record(&daemon_, at).kind, GPUSEG_RECORD_BEGIN);
	CHECK_EQ(fake_daemon_record(&daemon_, at + 1).kind, GPUSEG_RECORD_END);
}

TEST(should_refuse_unknown_flags)
{
	struct gpuseg_hip s;

	CHECK_EQ(gpuseg_hip_open(&s, NULL, 0x80), -EINVAL);
	gpuseg_hip_close(&s);
}

TEST(should_leave_no_event_behind_when_the_second_cannot_be_made)
{
	struct gpuseg_hip s;

	memset(&hip, 0, sizeof(hip));
	hip.fail_create = 2;
	CHECK_EQ(gpuseg_hip_open(&s, NULL, GPUSEG_HIP_MEASURE), -EIO);
	CHECK_EQ(s.error, hipErrorOutOfMemory);
	gpuseg_hip_close(&s);
	CHECK_EQ(hip.events[0].live, 0);
	CHECK_EQ(hip.destroyed_twice, 0);
}

TEST(should_poll_by_default)
{
	open_segment(GPUSEG_HIP_SPIN);
	CHECK_EQ(hip.events[0].flags, hipEventDisableTiming);
	CHECK(gpuseg_hip_begin(&segment) >= 0);
	CHECK(gpuseg_hip_end(&segment, NULL) >= 0);
	CHECK_EQ(hip.queried, 4);
	CHECK_EQ(hip.synchronised, 0);
	check_pair(0);
	close_segment();
}

TEST(should_sleep_when_asked_to)
{
	open_segment(GPUSEG_HIP_BLOCK);
	CHECK_EQ(hip.events[0].flags, hipEventDisableTiming | hipEventBlockingSync);
	CHECK(gpuseg_hip_begin(&segment) >= 0);
	CHECK(gpuseg_hip_end(&segment, NULL) >= 0);
	CHECK_EQ(hip.queried, 0);
	CHECK_EQ(hip.synchronised, 1);
	check_pair(0);
	close_segment();
}

TEST(should_tell_how_long_the_stream_worked)
{
	struct gpuseg_record end;

	open_segment(GPUSEG_HIP_BLOCK | GPUSEG_HIP_MEASURE);
	CHECK(gpuseg_hip_begin_on(&segment, NULL) >= 0);
	CHECK(gpuseg_hip_end(&segment, NULL) >= 0);
	CHECK(fake_daemon_wait(&daemon_, 2, &end));
	CHECK_EQ(end.kind, GPUSEG_RECORD_END);
	CHECK_EQ(end.arg_ns, 1500000);
	close_segment();
}

TEST(should_end_the_segment_when_the_stream_fails)
{
	open_segment(GPUSEG_HIP_SPIN);
	CHECK(gpuseg_hip_begin(&segment) >= 0);
	hip.wait = hipErrorLaunchFailure;
	CHECK_EQ(gpuseg_hip_end(&segment, NULL), -EIO);
	CHECK_EQ(segment.error, hipErrorLaunchFailure);
	check_pair(0);
	hip.wait = hipSuccess;
	CHECK(gpuseg_hip_begin(&segment) >= 0);
	CHECK(gpuseg_hip_end(&segment, NULL) >= 0);
	check_pair(2);
	close_segment();
}

TEST(should_end_the_segment_when_its_start_cannot_be_marked)
{
	open_segment(GPUSEG_HIP_MEASURE);
	hip.record = hipErrorLaunchFailure;
	CHECK_EQ(gpuseg_hip_begin_on(&segment, NULL), -EIO);
	check_pair(0);
	close_segment();
}

static const struct check_case cases[] = {
	CASE(should_refuse_unknown_flags),
	CASE(should_leave_no_event_behind_when_the_second_cannot_be_made),
	CASE(should_poll_by_default),
	CASE(should_sleep_when_asked_to),
	CASE(should_tell_how_long_the_stream_worked),
	CASE(should_end_the_segment_when_the_stream_fails),
	CASE(should_end_the_segment_when_its_start_cannot_be_marked),
};
CHECK_MAIN(cases)
