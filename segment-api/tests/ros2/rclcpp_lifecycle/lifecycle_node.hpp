/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in, as rclcpp/rclcpp.hpp: a node with the interfaces of rclcpp::Node, which it does not derive from. */
#ifndef GPUSEG_TEST_LIFECYCLE_NODE_HPP
#define GPUSEG_TEST_LIFECYCLE_NODE_HPP

#include <rclcpp/rclcpp.hpp>

namespace rclcpp_lifecycle
{

class LifecycleNode : public std::enable_shared_from_this<LifecycleNode>, public rclcpp::node_interfaces::Interfaces
{
public:
	using SharedPtr = std::shared_ptr<LifecycleNode>;
	explicit LifecycleNode(const std::string &name) : Interfaces("/" + name)
	{
	}
	virtual ~LifecycleNode() = default;
};

} // namespace rclcpp_lifecycle

#endif /* GPUSEG_TEST_LIFECYCLE_NODE_HPP */
