/* SPDX-License-Identifier: Apache-2.0 */
/* test_ros2.cpp - gpuseg_ros2.hpp against a stand-in of rclcpp (tests/ros2) and a daemon in a thread. */
#include <gpuseg_ros2.hpp>

#include <stdexcept>

#include "check.h"
#include "fixture.h"

using namespace std::chrono_literals;

struct Stamp {
	std::int32_t sec;
	std::uint32_t nanosec;
};

struct Image {
	struct {
		Stamp stamp;
	} header;
};

struct Word { /* a message without a header */
	int data;
};

static gpuseg::TaskOptions detector()
{
	gpuseg::TaskOptions options;

	options.name = "detector";
	options.priority = 70;
	options.timeout = 20s;
	return options;
}

TEST(should_make_every_message_a_job_with_the_stamp_of_its_header)
{
	static fake_daemon d;

	fake_daemon_start(&d);
	{
		auto node = std::make_shared<rclcpp::Node>();
		gpuseg::Client client(0, "t", d.dir);
		gpuseg_ros2::CallbackGroup group(node, client, detector());
		int called = 0;
		auto subscription = group.subscribe<Image>("image", rclcpp::QoS(1),
							   [&](const std::shared_ptr<const Image> &) { called++; });
		auto image = std::make_shared<Image>();
		const std::int64_t taken_ns = node->now().nanoseconds() - 50000000;
		gpuseg_record r;

		CHECK(subscription->group->type() == rclcpp::CallbackGroupType::MutuallyExclusive);
		image->header.stamp = {(std::int32_t)(taken_ns / 1000000000), (std::uint32_t)(taken_ns % 1000000000)};
		const std::int64_t before_ns = gpuseg_now_ns();
		subscription->callback(image);
		const std::int64_t after_ns = gpuseg_now_ns();
		CHECK_EQ(called, 1);
		CHECK(fake_daemon_wait(&d, 4, &r)); /* release, begin, end, job end */
		CHECK_EQ(fake_daemon_record(&d, 1).kind, GPUSEG_RECORD_BEGIN);
		CHECK_EQ(fake_daemon_record(&d, 2).kind, GPUSEG_RECORD_END);
		/* as old as the message was when the callback began */
		CHECK(fake_daemon_record(&d, 0).arg_ns > 0);
		CHECK(fake_daemon_record(&d, 0).arg_ns <= after_ns - 50000000);
		CHECK(fake_daemon_record(&d, 0).arg_ns >= before_ns - 50000000 - (after_ns - before_ns) - 1000000000);
		image->header.stamp = {0, 0}; /* not set */
		subscription->callback(image);
		CHECK(fake_daemon_wait(&d, 8, &r));
		CHECK_EQ(fake_daemon_record(&d, 4).arg_ns, 0);
		auto words = group.subscribe<Word>("word", rclcpp::QoS(1), [](const std::shared_ptr<const Word> &) {});
		words->callback(std::make_shared<Word>());
		CHECK(fake_daemon_wait(&d, 12, &r));
		CHECK_EQ(d.opens, 1); /* one task for the group */
	}
	fake_daemon_stop(&d);
}

TEST(should_take_the_period_from_the_timer_and_end_the_job_of_a_callback_that_throws)
{
	static fake_daemon d;

	fake_daemon_start(&d);
	{
		auto node = std::make_shared<rclcpp::Node>();
		gpuseg::Client client(0, "t", d.dir);
		gpuseg_ros2::CallbackGroup group(node, client, detector());
		auto timer = group.timer(33ms, [] { throw std::runtime_error("callback"); });
		gpuseg_record r;

		CHECK_EQ(timer->period.count(), 33000000);
		CHECK_EQ(d.last_open.period_ns, 33000000);
		try {
			timer->callback();
			CHECK(false);
		} catch (const std::runtime_error &) {
			CHECK(fake_daemon_wait(&d, 4, &r));
		}
		CHECK_EQ(fake_daemon_record(&d, 2).kind, GPUSEG_RECORD_END);
	}
	fake_daemon_stop(&d);
}

static const check_case cases[] = {
	CASE(should_make_every_message_a_job_with_the_stamp_of_its_header),
	CASE(should_take_the_period_from_the_timer_and_end_the_job_of_a_callback_that_throws)};
CHECK_MAIN(cases)
