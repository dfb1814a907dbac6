/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ROS 2: what became of a group's callbacks, once a second on /diagnostics, where aggregators and monitors look. A
 * member of the node, after its group:
 *
 *   robot::Diagnostics diagnostics_{*this, group_};
 *
 * The level is WARN where, since the last message, a callback was skipped or ran without a grant, or a timer's expiries
 * were lost; the values are the counters since the group was made.
 */
#ifndef ROBOT_DIAGNOSTICS_HPP
#define ROBOT_DIAGNOSTICS_HPP

#include <gpuseg_ros2.hpp>

#include <diagnostic_msgs/msg/diagnostic_array.hpp>

namespace robot
{

class Diagnostics
{
public:
	/* node: as for the group, which must outlive this. The timer is in the node's default group: it is no job. */
	template <typename Node>
	Diagnostics(Node &node, const gpuseg_ros2::CallbackGroup &group)
		: group_(group), last_(group.counters()),
		  name_(std::string(node.get_node_base_interface()->get_fully_qualified_name()) + ": gpuseg"),
		  clock_(node.get_node_clock_interface()->get_clock()),
		  publisher_(rclcpp::create_publisher<Array>(node, "/diagnostics", rclcpp::QoS(10))),
		  timer_(rclcpp::create_wall_timer(
			  std::chrono::seconds(1), [this] { publish(); }, nullptr, node.get_node_base_interface().get(),
			  node.get_node_timers_interface().get()))
	{
	}
	Diagnostics(const Diagnostics &) = delete;
	Diagnostics &operator=(const Diagnostics &) = delete;

	rclcpp::TimerBase::SharedPtr timer() const noexcept
	{
		return timer_;
	}

private:
	using Array = diagnostic_msgs::msg::DiagnosticArray;
	using Status = diagnostic_msgs::msg::DiagnosticStatus;

	void publish()
	{
		const gpuseg_ros2::Counters now = group_.counters();
		const std::uint64_t skipped = now.skipped - last_.skipped;
		const std::uint64_t without = now.without_grant - last_.without_grant;
		const std::uint64_t lost = now.lost_expiries - last_.lost_expiries;
		Array array;
		Status status;

		last_ = now;
		status.level = skipped + without + lost == 0 ? Status::OK : Status::WARN;
		status.name = name_;
		status.message = std::to_string(skipped) + " callbacks skipped, " + std::to_string(without) +
				 " without a grant, " + std::to_string(lost) + " expiries lost";
		value(status, "jobs", now.jobs);
		value(status, "without_grant", now.without_grant);
		value(status, "skipped", now.skipped);
		value(status, "daemon_lost", now.daemon_lost);
		value(status, "timed_out", now.timed_out);
		value(status, "refused", now.refused);
		value(status, "failed", now.failed);
		value(status, "lost_expiries", now.lost_expiries);
		value(status, "release_unknown", now.release_unknown);
		value(status, "stamp_unknown", now.stamp_unknown);
		array.header.stamp = clock_->now();
		array.status.push_back(status);
		publisher_->publish(array);
	}
	static void value(Status &status, const char *key, std::uint64_t number)
	{
		diagnostic_msgs::msg::KeyValue pair;

		pair.key = key;
		pair.value = std::to_string(number);
		status.values.push_back(pair);
	}

	const gpuseg_ros2::CallbackGroup &group_;
	gpuseg_ros2::Counters last_;
	std::string name_;
	rclcpp::Clock::SharedPtr clock_;
	rclcpp::Publisher<Array>::SharedPtr publisher_;
	rclcpp::TimerBase::SharedPtr timer_;
};

} // namespace robot

#endif /* ROBOT_DIAGNOSTICS_HPP */
