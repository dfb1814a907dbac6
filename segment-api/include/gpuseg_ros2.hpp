/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpuseg_ros2.hpp - ROS 2: a callback group whose callbacks are jobs of a gpuseg task. Header only; needs rclcpp.
 *
 *   gpuseg::Client client;
 *   gpuseg::TaskOptions options;
 *   options.name = "detector";
 *   options.priority = 70;
 *   options.period = 33ms;                            // a timer of the group sets it
 *   gpuseg_ros2::CallbackGroup group(node, client, options);
 *   auto subscription = group.subscribe<Image>("image", qos, [&](const std::shared_ptr<const Image> &image) {
 *           detect(*image);                           // launch and synchronise
 *   });
 *
 * Each callback is one job with one segment: released when the callback starts (the earliest moment that is known),
 * begun at once, ended when it returns or throws. The stamp of a message's header becomes the stamp of the job, so that
 * reaction time and data age of chains are measured from the sensor (`gpuseg trace check`).
 *
 * Threads. The group is mutually exclusive: an executor of any kind runs one callback of it at a time, as a task needs.
 * One group per task, and one process per real-time task where admission is enforced. The client must outlive the
 * group, and the group its subscriptions and timers. Failures throw gpuseg::Error, as in gpuseg.hpp.
 *
 * Status: compiled and tested against a stand-in of the interfaces of rclcpp that it uses, written from their published
 * signatures (tests/ros2). It has not been built with ROS 2.
 */
#ifndef GPUSEG_ROS2_HPP
#define GPUSEG_ROS2_HPP

#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include <rclcpp/rclcpp.hpp>

#include "gpuseg.hpp"

namespace gpuseg_ros2
{

/* Marks a job with one segment around a scope. */
class Job
{
public:
	/* stamp: CLOCK_MONOTONIC, 0 = unknown */
	explicit Job(gpuseg::Task &task, gpuseg::Nanoseconds stamp = gpuseg::Nanoseconds{0}) : task_(task)
	{
		task_.release(gpuseg::now(), stamp);
		task_.begin();
	}
	~Job()
	{
		task_.end();
		gpuseg_job_end(task_.get()); /* a destructor ignores failures */
	}
	Job(const Job &) = delete;
	Job &operator=(const Job &) = delete;

private:
	gpuseg::Task &task_;
};

template <typename Message, typename = void> struct HasStamp : std::false_type {
};
template <typename Message>
struct HasStamp<Message, std::void_t<decltype(std::declval<Message>().header.stamp.nanosec)>> : std::true_type {
};

class CallbackGroup
{
public:
	CallbackGroup(rclcpp::Node::SharedPtr node, gpuseg::Client &client, gpuseg::TaskOptions options)
		: node_(std::move(node)), client_(client), options_(std::move(options)),
		  group_(node_->create_callback_group(rclcpp::CallbackGroupType::MutuallyExclusive))
	{
	}
	CallbackGroup(const CallbackGroup &) = delete;
	CallbackGroup &operator=(const CallbackGroup &) = delete;

	/* Every message is a job; its header's stamp, if it has one, is the job's. */
	template <typename Message>
	typename rclcpp::Subscription<Message>::SharedPtr
	subscribe(const std::string &topic, const rclcpp::QoS &qos,
		  std::function<void(const std::shared_ptr<const Message> &)> callback)
	{
		rclcpp::SubscriptionOptions options;

		open();
		options.callback_group = group_;
		return node_->create_subscription<Message>(
			topic, qos,
			[this, callback = std::move(callback)](std::shared_ptr<const Message> message) {
				Job job(*task_, stamp(*message));
				callback(message);
			},
			options);
	}

	/* Every expiry is a job; the task's period is the timer's, unless the options say otherwise. */
	rclcpp::TimerBase::SharedPtr timer(gpuseg::Nanoseconds period, std::function<void()> callback)
	{
		if (options_.period.count() == 0)
			options_.period = period;
		open();
		return node_->create_wall_timer(
			period,
			[this, callback = std::move(callback)]() {
				Job job(*task_);
				callback();
			},
			group_);
	}

	/* The task, NULL before the first subscription or timer. */
	gpuseg::Task *task() const noexcept
	{
		return task_.get();
	}

private:
	void open()
	{
		if (!task_)
			task_ = std::make_unique<gpuseg::Task>(client_, options_);
	}

	/* The node's clock to CLOCK_MONOTONIC: as old here as there. A stamp in the future, or of 0, is unknown. */
	template <typename Message> gpuseg::Nanoseconds stamp(const Message &message) const
	{
		if constexpr (HasStamp<Message>::value) {
			const auto &s = message.header.stamp;
			const std::int64_t stamp_ns =
				static_cast<std::int64_t>(s.sec) * 1000000000 + static_cast<std::int64_t>(s.nanosec);
			const std::int64_t age_ns = node_->now().nanoseconds() - stamp_ns;

			if (stamp_ns > 0 && age_ns >= 0 && age_ns < gpuseg::now().count())
				return gpuseg::now() - gpuseg::Nanoseconds(age_ns);
		}
		return gpuseg::Nanoseconds{0};
	}

	rclcpp::Node::SharedPtr node_;
	gpuseg::Client &client_;
	gpuseg::TaskOptions options_;
	rclcpp::CallbackGroup::SharedPtr group_;
	std::unique_ptr<gpuseg::Task> task_;
};

} // namespace gpuseg_ros2

#endif /* GPUSEG_ROS2_HPP */
