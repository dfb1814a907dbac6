/* SPDX-License-Identifier: Apache-2.0 */
/* test_hpp.cpp - gpuseg.hpp against a daemon in a thread. */
#include <gpuseg.hpp>

#include <sched.h>

#include <stdexcept>
#include <utility>

#include "check.h"
#include "fixture.hpp"

using namespace std::chrono_literals;

static gpuseg::TaskOptions camera()
{
	gpuseg::TaskOptions options;

	options.name = "camera";
	options.priority = 70;
	options.timeout = 20s; /* for grants that come: on a busy machine the daemon may be late */
	return options;
}

TEST(should_throw_the_reason)
{
	try {
		gpuseg::Client client(0, "t", "/nonexistent");
		CHECK(false);
	} catch (const gpuseg::Error &e) {
		CHECK_EQ(e.code().value(), ENOTCONN);
		CHECK_CONTAINS(e.what(), "/nonexistent");
	}
}

TEST(should_throw_an_exception_of_its_own_when_admission_refuses)
{
	Daemon d;
	d.refuse_type = GPUSEG_MSG_TASK_OPEN;
	d.refuse_status = -GPUSEG_ADMISSION_REFUSED;
	try {
		gpuseg::Client client(0, "t", d.dir);
		gpuseg::Task task(client, camera());
		CHECK(false);
	} catch (const gpuseg::NotAdmitted &e) {
		CHECK_EQ(e.code().value(), GPUSEG_EADMISSION);
		CHECK_CONTAINS(e.what(), "task \"camera\": not admitted");
		CHECK_CONTAINS(e.what(), "admission refused");
	}
}

TEST(should_end_segments_tasks_and_clients_by_scope)
{
	Daemon d;
	{
		gpuseg::Client client(0, "t", d.dir), moved(std::move(client));
		gpuseg::Task task(moved, camera());
		gpuseg_record r;

		CHECK(moved.managed());
		CHECK(!client.managed());
		task.release(0ns, 4711ns, 815);
		{
			gpuseg::Segment segment(task);
			CHECK(segment.granted());
		}
		{
			gpuseg::Segment segment(task);
			CHECK_EQ(segment.end(123ns), 0);
			CHECK_EQ(segment.end(), 0);
		}
		task.complete();
		task.release();
		task.cancel();
		task.hint(gpuseg::now() + 1ms);
		std::uint32_t seen = 0;
		CHECK(!task.expected(seen, 0ms));
		CHECK(fake_daemon_expect(&d, 0));
		CHECK(task.expected(seen, 30s));
		CHECK_EQ(seen, 1);
		CHECK(!task.stream(nullptr)); /* not under gpuseg exec */
		CHECK(fake_daemon_wait(&d, 9, &r));
		CHECK_EQ(fake_daemon_record(&d, 0).arg_ns, 4711);
		CHECK_EQ(fake_daemon_record(&d, 0).sample, 815);
		CHECK_EQ(fake_daemon_record(&d, 2).kind, GPUSEG_RECORD_END);
		CHECK_EQ(fake_daemon_record(&d, 4).arg_ns, 123);
		CHECK_EQ(fake_daemon_record(&d, 7).flags, GPUSEG_FLAG_CANCELLED);
		CHECK_EQ(moved.counters().begins, 2);
		fake_daemon_grants(&d, FAKE_IGNORE, 0);
		CHECK(!task.try_begin());
		CHECK(!task.begin_for(2ms));
		gpuseg::TaskOptions hasty = camera();
		hasty.timeout = 10ms;
		gpuseg::Task impatient(moved, hasty);
		try {
			gpuseg::Segment segment(impatient);
			CHECK(false);
		} catch (const gpuseg::Error &e) {
			CHECK_EQ(e.code().value(), ETIMEDOUT);
		}
	}
	CHECK_EQ(d.closes, 2);
}

/* The fixture serves one connection at a time: a second one would not be answered. */
TEST(should_share_a_connection_unless_it_is_to_be_made_once)
{
	Daemon d;
	{
		gpuseg::Client first(0, "t", d.dir), second(0, "t", d.dir);
		gpuseg::Task task(second, camera());

		first = gpuseg::Client(0, "t", d.dir);
		gpuseg::Segment segment(task);
		CHECK(segment.granted());
		CHECK_EQ(first.counters().begins, 1);
	}
	gpuseg::Client own(GPUSEG_CONNECT_ONCE, "t", d.dir);
	CHECK(own.managed());
}

static void await_managed(const gpuseg::Client &client, bool managed)
{
	const auto limit = gpuseg::now() + 30s;

	while (client.managed() != managed) {
		CHECK(gpuseg::now() < limit);
		usleep(1000);
	}
}

TEST(should_throw_nothing_while_the_daemon_is_lost)
{
	Daemon d;
	gpuseg::Client client(0, "t", d.dir);
	gpuseg::Task task(client, camera());

	for (int i = 0; i < 2; i++) {
		fake_daemon_kill(&d);
		await_managed(client, false);
		const auto before = client.counters().unmanaged;
		task.release();
		{
			gpuseg::Segment segment(task);
			CHECK_EQ(segment.end(), 0);
		}
		task.complete();
		gpuseg::Task late(client, camera());
		CHECK(late.try_begin());
		CHECK_EQ(late.end(), 0);
		CHECK_EQ(client.counters().unmanaged, before + 2);
		fake_daemon_follow(&d);
		await_managed(client, true);
		for (auto n = before; client.counters().unmanaged != n;) { /* its own thread goes over */
			n = client.counters().unmanaged;
			gpuseg::Segment segment(task);
		}
	}
}

TEST(should_throw_while_the_daemon_is_lost_if_asked_to)
{
	Daemon d;
	gpuseg::Client client(GPUSEG_CONNECT_FAIL_IF_LOST, "t", d.dir);
	gpuseg::Task task(client, camera());

	fake_daemon_kill(&d);
	await_managed(client, false);
	try {
		gpuseg::Segment segment(task);
		CHECK(false);
	} catch (const gpuseg::Error &e) {
		CHECK_EQ(e.code().value(), ENOTCONN);
	}
}

TEST(should_lower_the_thread_when_a_boosted_segment_is_left_by_an_exception)
{
	Daemon d;
	sched_param param = {};
	gpuseg::Client client(0, "t", d.dir);
	gpuseg::TaskOptions options = camera();

	options.boost_priority = 40;
	options.flags = GPUSEG_TASK_BOOST_IF_PERMITTED;
	gpuseg::Task task(client, options);
	bool permitted = client.counters().boost_failures == 0;

	CHECK_EQ(d.last_open.flags, permitted ? 40 << GPUSEG_TASK_BOOST_SHIFT : 0);
	try {
		gpuseg::Segment segment(task);
		CHECK_EQ(sched_getscheduler(0), permitted ? SCHED_FIFO : SCHED_OTHER);
		CHECK_EQ(sched_getparam(0, &param), 0);
		CHECK_EQ(param.sched_priority, permitted ? 40 : 0);
		throw std::runtime_error("body");
	} catch (const std::runtime_error &) {
		CHECK_EQ(sched_getscheduler(0), SCHED_OTHER);
	}
	CHECK_EQ(client.counters().boosts, permitted ? 1 : 0);
}

static const check_case cases[] = {CASE(should_throw_the_reason),
				   CASE(should_throw_an_exception_of_its_own_when_admission_refuses),
				   CASE(should_end_segments_tasks_and_clients_by_scope),
				   CASE(should_share_a_connection_unless_it_is_to_be_made_once),
				   CASE(should_throw_nothing_while_the_daemon_is_lost),
				   CASE(should_throw_while_the_daemon_is_lost_if_asked_to),
				   CASE(should_lower_the_thread_when_a_boosted_segment_is_left_by_an_exception)};
CHECK_MAIN(cases)
