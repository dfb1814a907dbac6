/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in, as rclcpp/rclcpp.hpp: what /diagnostics carries. */
#ifndef GPUSEG_TEST_DIAGNOSTIC_ARRAY_HPP
#define GPUSEG_TEST_DIAGNOSTIC_ARRAY_HPP

#include <cstdint>
#include <string>
#include <vector>

#include <rclcpp/rclcpp.hpp>

namespace diagnostic_msgs::msg
{

struct KeyValue {
	std::string key;
	std::string value;
};

struct DiagnosticStatus {
	static constexpr unsigned char OK = 0;
	static constexpr unsigned char WARN = 1;
	unsigned char level = OK;
	std::string name;
	std::string message;
	std::string hardware_id;
	std::vector<KeyValue> values;
};

struct DiagnosticArray {
	struct {
		rclcpp::Time stamp{0};
	} header;
	std::vector<DiagnosticStatus> status;
};

} // namespace diagnostic_msgs::msg

#endif /* GPUSEG_TEST_DIAGNOSTIC_ARRAY_HPP */
