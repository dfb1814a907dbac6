/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in, as rclcpp/rclcpp.hpp: a message with a header. */
#ifndef GPUSEG_TEST_IMAGE_HPP
#define GPUSEG_TEST_IMAGE_HPP

#include <cstdint>

namespace sensor_msgs::msg
{

struct Image {
	struct {
		struct {
			std::int32_t sec;
			std::uint32_t nanosec;
		} stamp;
	} header;
};

} // namespace sensor_msgs::msg

#endif /* GPUSEG_TEST_IMAGE_HPP */
