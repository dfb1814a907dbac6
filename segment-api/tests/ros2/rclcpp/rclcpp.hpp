/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stand-in for what gpuseg_ros2.hpp uses of rclcpp: names and signatures are those of ROS 2, the rest is ours.
 * Nothing runs by itself: a test delivers messages and requests and lets timers expire, as an executor would. It proves
 * what the header marks, not that it works with ROS 2.
 */
#ifndef GPUSEG_TEST_RCLCPP_HPP
#define GPUSEG_TEST_RCLCPP_HPP

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

struct rmw_message_info_t {
	std::int64_t source_timestamp; /* ns since 1970 */
	bool from_intra_process;
};

struct rmw_request_id_t {
	std::int64_t sequence_number;
};

struct rmw_qos_profile_t {
	std::size_t depth;
};

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
	explicit QoS(std::size_t depth) : profile_{depth}
	{
	}
	const rmw_qos_profile_t &get_rmw_qos_profile() const
	{
		return profile_;
	}

private:
	rmw_qos_profile_t profile_;
};

struct SensorDataQoS : QoS {
	SensorDataQoS() : QoS(5)
	{
	}
};

struct ServicesQoS : QoS {
	ServicesQoS() : QoS(10)
	{
	}
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

/* The system's clock, as that of a node without simulated time is; a test can make it jump, simulate and fail. */
class Clock
{
public:
	using SharedPtr = std::shared_ptr<Clock>;
	std::int64_t jumped_ns = 0;
	bool simulated = false;
	bool fails = false;
	std::function<void()> before_now;

	Time now()
	{
		if (before_now)
			before_now();
		if (fails)
			throw std::runtime_error("the clock fails");
		return Time(std::chrono::duration_cast<std::chrono::nanoseconds>(
				    std::chrono::system_clock::now().time_since_epoch())
				    .count() +
			    jumped_ns);
	}
	bool ros_time_is_active()
	{
		return simulated;
	}
};

class MessageInfo
{
public:
	MessageInfo() = default;
	MessageInfo(const rmw_message_info_t &info) : info_(info)
	{
	}
	const rmw_message_info_t &get_rmw_message_info() const
	{
		return info_;
	}

private:
	rmw_message_info_t info_{};
};

/* A type without an adapter is its own; an adapter, as a topic's type, stands for itself. */
template <typename Custom, typename Ros = void> struct TypeAdapter {
	using is_specialized = std::false_type;
	using custom_type = Custom;
	using ros_message_type = Custom;
};
template <typename Custom, typename Ros> struct TypeAdapter<TypeAdapter<Custom, Ros>, void> : TypeAdapter<Custom, Ros> {
};

template <typename Message> class Subscription
{
public:
	using SharedPtr = std::shared_ptr<Subscription<Message>>;
	using Custom = typename TypeAdapter<Message>::custom_type;
	using Ros = typename TypeAdapter<Message>::ros_message_type;
	CallbackGroup::SharedPtr group;
	std::string topic;

	/* As an executor that took a message. */
	void receive(const Ros &message, const MessageInfo &info = {}) const
	{
		receive_(message, info);
	}
	template <typename T> void set(std::function<void(const T &, const MessageInfo &)> callback)
	{
		receive_ = [callback](const Ros &m, const MessageInfo &info) { callback(converted<T>(m), info); };
	}
	template <typename T> void set(std::function<void(std::shared_ptr<const T>, const MessageInfo &)> callback)
	{
		receive_ = [callback](const Ros &m, const MessageInfo &info) {
			callback(std::make_shared<const T>(converted<T>(m)), info);
		};
	}
	template <typename T> void set(std::function<void(std::shared_ptr<T>, const MessageInfo &)> callback)
	{
		receive_ = [callback](const Ros &m, const MessageInfo &info) {
			callback(std::make_shared<T>(converted<T>(m)), info);
		};
	}
	template <typename T> void set(std::function<void(std::unique_ptr<T>, const MessageInfo &)> callback)
	{
		receive_ = [callback](const Ros &m, const MessageInfo &info) {
			callback(std::make_unique<T>(converted<T>(m)), info);
		};
	}

private:
	template <typename T> static T converted(const Ros &message)
	{
		static_assert(std::is_same_v<T, Ros> || std::is_same_v<T, Custom>, "not a type of this topic");
		if constexpr (std::is_same_v<T, Ros>) {
			return message;
		} else {
			T custom;

			TypeAdapter<Message>::convert_to_custom(message, custom);
			return custom;
		}
	}
	std::function<void(const Ros &, const MessageInfo &)> receive_;
};

class TimerBase
{
public:
	using SharedPtr = std::shared_ptr<TimerBase>;
	std::chrono::nanoseconds period{0};
	std::function<void(TimerBase &)> callback;
	CallbackGroup::SharedPtr group;
	bool canceled = false;
	bool fails = false;

	/* As an executor that takes an expiry: the timer is set to the one after it. */
	void expire(std::chrono::nanoseconds nominal)
	{
		next_ = nominal + period;
		callback(*this);
	}
	void cancel()
	{
		canceled = true;
	}
	std::chrono::nanoseconds time_until_trigger() const
	{
		if (fails)
			throw std::runtime_error("the timer fails");
		return canceled ? std::chrono::nanoseconds::max()
				: next_ - std::chrono::duration_cast<std::chrono::nanoseconds>(
						  std::chrono::steady_clock::now().time_since_epoch());
	}

private:
	std::chrono::nanoseconds next_{0};
};

template <typename Type> class Service
{
public:
	using SharedPtr = std::shared_ptr<Service<Type>>;
	using Request = typename Type::Request;
	using Response = typename Type::Response;
	std::function<void(SharedPtr, std::shared_ptr<rmw_request_id_t>, std::shared_ptr<Request>)> callback;
	CallbackGroup::SharedPtr group;
	std::string name;
	std::vector<std::pair<std::int64_t, Response>> responses;

	void send_response(rmw_request_id_t &id, Response &response)
	{
		responses.emplace_back(id.sequence_number, response);
	}
};

enum class ParameterType { PARAMETER_NOT_SET, PARAMETER_INTEGER, PARAMETER_STRING };

class ParameterValue
{
public:
	explicit ParameterValue(std::int64_t value) : type_(ParameterType::PARAMETER_INTEGER), integer_(value)
	{
	}
	explicit ParameterValue(const std::string &value) : type_(ParameterType::PARAMETER_STRING), string_(value)
	{
	}
	ParameterType get_type() const
	{
		return type_;
	}
	template <typename T> T get() const
	{
		if constexpr (std::is_same_v<T, std::string>)
			return string_;
		else
			return integer_;
	}
	bool operator==(const ParameterValue &other) const
	{
		return type_ == other.type_ && integer_ == other.integer_ && string_ == other.string_;
	}

private:
	ParameterType type_;
	std::int64_t integer_ = 0;
	std::string string_;
};

inline std::string to_string(const ParameterValue &value)
{
	return value.get_type() == ParameterType::PARAMETER_STRING ? value.get<std::string>()
								   : std::to_string(value.get<std::int64_t>());
}

class Parameter
{
public:
	explicit Parameter(const ParameterValue &value) : value_(value)
	{
	}
	const ParameterValue &get_parameter_value() const
	{
		return value_;
	}

private:
	ParameterValue value_;
};

} // namespace rclcpp

namespace rcl_interfaces::msg
{

struct ParameterDescriptor {
	std::string description;
	bool read_only = false;
	bool dynamic_typing = false;
};

} // namespace rcl_interfaces::msg

namespace rclcpp
{

namespace node_interfaces
{

struct NodeBaseInterface {
	using SharedPtr = std::shared_ptr<NodeBaseInterface>;
	std::string name;

	CallbackGroup::SharedPtr create_callback_group(CallbackGroupType type, bool add_to_executor = true)
	{
		(void)add_to_executor;
		return std::make_shared<CallbackGroup>(type);
	}
	const char *get_fully_qualified_name() const
	{
		return name.c_str();
	}
};

struct NodeTopicsInterface {
	using SharedPtr = std::shared_ptr<NodeTopicsInterface>;
};

struct NodeTimersInterface {
	using SharedPtr = std::shared_ptr<NodeTimersInterface>;
};

struct NodeServicesInterface {
	using SharedPtr = std::shared_ptr<NodeServicesInterface>;
};

struct NodeParametersInterface {
	using SharedPtr = std::shared_ptr<NodeParametersInterface>;
	using Descriptor = rcl_interfaces::msg::ParameterDescriptor;
	std::map<std::string, ParameterValue> overrides; /* of the parameters' file */
	std::map<std::string, std::pair<ParameterValue, Descriptor>> declared;

	const std::map<std::string, ParameterValue> &get_parameter_overrides() const
	{
		return overrides;
	}
	bool has_parameter(const std::string &name) const
	{
		return declared.count(name) != 0;
	}
	Parameter get_parameter(const std::string &name) const
	{
		return Parameter(declared.at(name).first);
	}
	const ParameterValue &declare_parameter(const std::string &name, const ParameterValue &value,
						const Descriptor &descriptor)
	{
		const auto override = overrides.find(name);

		if (has_parameter(name))
			throw std::runtime_error("declared twice");
		return declared
			.emplace(name,
				 std::make_pair(override == overrides.end() ? value : override->second, descriptor))
			.first->second.first;
	}
};

struct NodeClockInterface {
	using SharedPtr = std::shared_ptr<NodeClockInterface>;
	Clock::SharedPtr clock = std::make_shared<Clock>();

	Clock::SharedPtr get_clock()
	{
		return clock;
	}
};

struct NodeLoggingInterface {
	using SharedPtr = std::shared_ptr<NodeLoggingInterface>;
	Logger logger;

	Logger get_logger() const
	{
		return logger;
	}
};

/* What a Node and a LifecycleNode have in common, without being related. */
class Interfaces
{
public:
	explicit Interfaces(const std::string &name)
	{
		base_->name = name;
	}
	NodeBaseInterface::SharedPtr get_node_base_interface()
	{
		return base_;
	}
	NodeTopicsInterface::SharedPtr get_node_topics_interface()
	{
		return topics_;
	}
	NodeTimersInterface::SharedPtr get_node_timers_interface()
	{
		return timers_;
	}
	NodeServicesInterface::SharedPtr get_node_services_interface()
	{
		return services_;
	}
	NodeParametersInterface::SharedPtr get_node_parameters_interface()
	{
		return parameters_;
	}
	NodeClockInterface::SharedPtr get_node_clock_interface()
	{
		return clock_;
	}
	NodeLoggingInterface::SharedPtr get_node_logging_interface()
	{
		return logging_;
	}
	Clock::SharedPtr get_clock()
	{
		return clock_->get_clock();
	}
	Logger get_logger() const
	{
		return logging_->get_logger();
	}

private:
	NodeBaseInterface::SharedPtr base_ = std::make_shared<NodeBaseInterface>();
	NodeTopicsInterface::SharedPtr topics_ = std::make_shared<NodeTopicsInterface>();
	NodeTimersInterface::SharedPtr timers_ = std::make_shared<NodeTimersInterface>();
	NodeServicesInterface::SharedPtr services_ = std::make_shared<NodeServicesInterface>();
	NodeParametersInterface::SharedPtr parameters_ = std::make_shared<NodeParametersInterface>();
	NodeClockInterface::SharedPtr clock_ = std::make_shared<NodeClockInterface>();
	NodeLoggingInterface::SharedPtr logging_ = std::make_shared<NodeLoggingInterface>();
};

} // namespace node_interfaces

/* What a container says of a component that it loads. */
struct NodeOptions {
	std::string name;
	std::map<std::string, ParameterValue> overrides;
};

class Node : public std::enable_shared_from_this<Node>, public node_interfaces::Interfaces
{
public:
	using SharedPtr = std::shared_ptr<Node>;
	explicit Node(const std::string &name) : Interfaces("/" + name)
	{
	}
	Node(const std::string &name, const NodeOptions &options)
		: Interfaces("/" + (options.name.empty() ? name : options.name))
	{
		get_node_parameters_interface()->overrides = options.overrides;
	}
	virtual ~Node() = default;
};

template <typename Message, typename Callback>
typename Subscription<Message>::SharedPtr
create_subscription(node_interfaces::NodeParametersInterface::SharedPtr &,
		    node_interfaces::NodeTopicsInterface::SharedPtr &, const std::string &topic, const QoS &,
		    Callback &&callback, const SubscriptionOptions &options = {})
{
	auto made = std::make_shared<Subscription<Message>>();

	made->set(std::forward<Callback>(callback));
	made->group = options.callback_group;
	made->topic = topic;
	return made;
}

/* Keeps what was published, in the order in which it was. */
template <typename Message> class Publisher
{
public:
	using SharedPtr = std::shared_ptr<Publisher<Message>>;
	std::string topic;
	std::vector<Message> published;

	void publish(const Message &message)
	{
		published.push_back(message);
	}
};

/* The publisher that was made last, for a test to look into. */
template <typename Message> typename Publisher<Message>::SharedPtr &last_publisher()
{
	static typename Publisher<Message>::SharedPtr last;

	return last;
}

template <typename Message, typename NodeT>
typename Publisher<Message>::SharedPtr create_publisher(NodeT &&node, const std::string &topic, const QoS &)
{
	auto made = std::make_shared<Publisher<Message>>();

	(void)node.get_node_topics_interface();
	made->topic = topic;
	last_publisher<Message>() = made;
	return made;
}

template <typename Rep, typename Period, typename Callback>
TimerBase::SharedPtr create_wall_timer(std::chrono::duration<Rep, Period> period, Callback callback,
				       CallbackGroup::SharedPtr group, node_interfaces::NodeBaseInterface *base,
				       node_interfaces::NodeTimersInterface *timers)
{
	auto made = std::make_shared<TimerBase>();

	if (!base || !timers)
		throw std::invalid_argument("an interface is missing");
	made->period = period;
	if constexpr (std::is_invocable_v<Callback &, TimerBase &>)
		made->callback = std::move(callback);
	else
		made->callback = [callback = std::move(callback)](TimerBase &) mutable { callback(); };
	made->group = std::move(group);
	return made;
}

template <typename Type, typename Callback>
typename Service<Type>::SharedPtr create_service(std::shared_ptr<node_interfaces::NodeBaseInterface>,
						 std::shared_ptr<node_interfaces::NodeServicesInterface>,
						 const std::string &name, Callback &&callback,
						 const rmw_qos_profile_t &, CallbackGroup::SharedPtr group)
{
	auto made = std::make_shared<Service<Type>>();

	made->callback = std::forward<Callback>(callback);
	made->group = std::move(group);
	made->name = name;
	return made;
}

} // namespace rclcpp

#endif /* GPUSEG_TEST_RCLCPP_HPP */
