/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stand-in for what gpuseg_ros2.hpp uses of rclcpp: names and signatures are those of ROS 2's documentation, the rest
 * is ours. A node keeps its callbacks; a test calls them as an executor would. It proves that the header compiles and
 * what it marks, not that it works with ROS 2.
 */
#ifndef GPUSEG_TEST_RCLCPP_HPP
#define GPUSEG_TEST_RCLCPP_HPP

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace rclcpp
{

enum class CallbackGroupType { MutuallyExclusive, Reentrant };

class CallbackGroup
{
public:
	using SharedPtr = std::shared_ptr<CallbackGroup>;
	explicit CallbackGroup(CallbackGroupType type) : type_(type)
	{
	}
	CallbackGroupType type() const
	{
		return type_;
	}

private:
	CallbackGroupType type_;
};

/* Keeps what is said; copies share it. */
class Logger
{
public:
	const std::vector<std::string> &lines() const
	{
		return *lines_;
	}
	template <typename... Args> void say(const char *format, Args... args) const
	{
		char line[512];

		std::snprintf(line, sizeof(line), format, args...);
		lines_->push_back(line);
	}

private:
	std::shared_ptr<std::vector<std::string>> lines_ = std::make_shared<std::vector<std::string>>();
};

#define RCLCPP_WARN(logger, ...) (logger).say(__VA_ARGS__)

class QoS
{
public:
	explicit QoS(std::size_t depth) : depth_(depth)
	{
	}
	std::size_t depth() const
	{
		return depth_;
	}

private:
	std::size_t depth_;
};

struct SubscriptionOptions {
	CallbackGroup::SharedPtr callback_group;
};

class Time
{
public:
	explicit Time(std::int64_t nanoseconds) : nanoseconds_(nanoseconds)
	{
	}
	std::int64_t nanoseconds() const
	{
		return nanoseconds_;
	}

private:
	std::int64_t nanoseconds_;
};

template <typename Message> class Subscription
{
public:
	using SharedPtr = std::shared_ptr<Subscription<Message>>;
	std::function<void(std::shared_ptr<const Message>)> callback;
	CallbackGroup::SharedPtr group;
};

class TimerBase
{
public:
	using SharedPtr = std::shared_ptr<TimerBase>;
	std::chrono::nanoseconds period{0};
	std::function<void()> callback;
	CallbackGroup::SharedPtr group;
};

class Node
{
public:
	using SharedPtr = std::shared_ptr<Node>;
	CallbackGroup::SharedPtr create_callback_group(CallbackGroupType type, bool add_to_executor = true)
	{
		(void)add_to_executor;
		return std::make_shared<CallbackGroup>(type);
	}
	template <typename Message, typename Callback>
	typename Subscription<Message>::SharedPtr
	create_subscription(const std::string &, const QoS &, Callback &&callback, const SubscriptionOptions &options)
	{
		auto made = std::make_shared<Subscription<Message>>();

		made->callback = std::forward<Callback>(callback);
		made->group = options.callback_group;
		return made;
	}
	template <typename Rep, typename Period, typename Callback>
	TimerBase::SharedPtr create_wall_timer(std::chrono::duration<Rep, Period> period, Callback callback,
					       CallbackGroup::SharedPtr group)
	{
		auto made = std::make_shared<TimerBase>();

		made->period = period;
		made->callback = std::move(callback);
		made->group = std::move(group);
		return made;
	}
	Logger get_logger() const
	{
		return logger_;
	}
	Time now() const /* the system's clock, as a node without simulated time has */
	{
		return Time(std::chrono::duration_cast<std::chrono::nanoseconds>(
				    std::chrono::system_clock::now().time_since_epoch())
				    .count());
	}

private:
	Logger logger_;
};

} // namespace rclcpp

#endif /* GPUSEG_TEST_RCLCPP_HPP */
