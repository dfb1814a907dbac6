/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ROS 2: a component whose callback is a job of a gpuseg task. robot.launch.py loads two of them into one container,
 * which share a connection to the daemon. In a package's CMakeLists.txt:
 *
 *   find_package(gpuseg REQUIRED)
 *   add_library(detector SHARED detector.cpp)
 *   ament_target_dependencies(detector rclcpp rclcpp_components sensor_msgs diagnostic_msgs)
 *   target_link_libraries(detector gpuseg::gpuseg)
 *   rclcpp_components_register_nodes(detector "robot::Detector")
 */
#include <gpuseg_ros2.hpp>

#include <rclcpp_components/register_node_macro.hpp>
#include <sensor_msgs/msg/image.hpp>

#include "diagnostics.hpp"

namespace robot
{

class Detector : public rclcpp::Node
{
public:
	explicit Detector(const rclcpp::NodeOptions &options) : Node("detector", options)
	{
	}

private:
	/* Launch on the GPU and synchronise. */
	void detect(const sensor_msgs::msg::Image &image)
	{
		(void)image;
	}
	/*
	 * The task has the name of the node, and priority, period and budget by its parameters. Components are loaded
	 * one by one: so that admission takes a later one, none begins without waiting.
	 */
	static gpuseg::TaskOptions task()
	{
		gpuseg::TaskOptions options;

		options.flags = GPUSEG_TASK_ALWAYS_WAIT;
		return options;
	}

	gpuseg::Client client_;
	gpuseg_ros2::CallbackGroup group_{*this, client_, task()};
	Diagnostics diagnostics_{*this, group_};
	rclcpp::Subscription<sensor_msgs::msg::Image>::SharedPtr images_ = group_.subscribe<sensor_msgs::msg::Image>(
		"image", rclcpp::SensorDataQoS(), [this](const sensor_msgs::msg::Image &image) { detect(image); });
};

} // namespace robot

RCLCPP_COMPONENTS_REGISTER_NODE(robot::Detector)
