/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in, as rclcpp/rclcpp.hpp: says whether a container could make the component. */
#ifndef GPUSEG_TEST_REGISTER_NODE_MACRO_HPP
#define GPUSEG_TEST_REGISTER_NODE_MACRO_HPP

#include <type_traits>

#include <rclcpp/rclcpp.hpp>

#define RCLCPP_COMPONENTS_REGISTER_NODE(component)                                                                     \
	static_assert(std::is_constructible_v<component, const rclcpp::NodeOptions &>, "a component takes options");

#endif /* GPUSEG_TEST_REGISTER_NODE_MACRO_HPP */
