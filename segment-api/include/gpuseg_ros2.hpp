/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpuseg_ros2.hpp - ROS 2: a callback group whose callbacks are jobs of a gpuseg task. Header only; needs rclcpp.
 *
 *   gpuseg::Client client;
 *   gpuseg::TaskOptions options;
 *   options.name = "detector";
 *   options.priority = 70;
 *   options.period = 33ms;                            // a timer that is made first sets it
 *   gpuseg_ros2::CallbackGroup group(node, client, options);   // node: a reference; *this in a node's constructor
 *   auto subscription = group.subscribe<Image>("image", qos, [&](const Image &image) {
 *           detect(image);                            // launch and synchronise
 *   });
 *
 * Each callback is one job with one segment: begun when the callback starts, ended when it returns or throws. Or it has
 * the segments that GPUSEG_SEGMENT marks in it, so that its work before and after does not hold the GPU. Its release is
 * when the timer was due or the message was sent, so that the wait in middleware and executor counts. Where that is not
 * known (services, messages within a process) it is the start of the callback.
 *
 * Stamps. The stamp of a message's header, or the time when the timer was due, becomes the stamp of the job, so that
 * reaction time and data age of chains are measured from the sensor (`gpuseg trace check`), which knows a message again
 * by the stamp of its header as it stands there. In simulated time jobs have no stamp, and a stamp that is older than a
 * minute is none: so bags that are played, with or without /clock, show no false ages.
 *
 * Failures. A timeout, a refused job or any other failure is no exception in a callback: that would end the process,
 * and with it every node of the container. GroupOptions says what becomes of the callback, counters() counts it, and
 * the node's log warns. Without a daemon the library itself goes on and says so (gpuseg.h), and callbacks count as run
 * without a grant, unless the client has GPUSEG_CONNECT_FAIL_IF_LOST. What the callback itself throws passes on, after
 * the end of its job.
 *
 * Processes. Components of a container may each have a Client: they share one connection. Tasks of one process share a
 * GPU context; where admission is enforced, declare them in its task set. A task is opened with the first subscription,
 * timer or service of its group, so before its node spins. Where a container loads its components one by one, others
 * have begun by then: admission refuses the later tasks, unless all have GPUSEG_TASK_ALWAYS_WAIT in TaskOptions::flags.
 *
 * Threads. The group is mutually exclusive: an executor of any kind runs one callback of it at a time, as a task needs.
 * One group per task. The client must outlive the group. The constructor, and what makes subscriptions, timers and
 * services, throws gpuseg::Error, as in gpuseg.hpp.
 *
 * End. A group that is destroyed, in any thread but in no callback of its own, waits for the callback that runs, and
 * none runs later. So a component may be unloaded, and on_cleanup may destroy the group, while another thread spins. As
 * a member of its node it comes after what its callbacks use.
 *
 * Status: tested against a stand-in of rclcpp (tests/ros2); run with rclcpp 16.0.11 (Humble) and 28.1.6 (Jazzy),
 * Cyclone DDS and the virtual GPU.
 */
#ifndef GPUSEG_ROS2_HPP
#define GPUSEG_ROS2_HPP

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>

#include <rclcpp/rclcpp.hpp>

#include "gpuseg.hpp"

namespace gpuseg_ros2
{

/* What becomes of a callback, or of its part below GPUSEG_SEGMENT, that did not get the GPU. */
enum class Callback {
	RUN, /* it runs without a grant: beside whatever else uses the GPU */
	SKIP /* it does not run; its job is cancelled: it counts as skipped, not as met (gpuseg_job_cancel) */
};

enum class Segments {
	CALLBACK, /* a callback is one segment, from start to end */
	MARKED	  /* GPUSEG_SEGMENT in it marks segments; what is outside of them does not hold the GPU */
};

struct GroupOptions {
	Segments segments = Segments::CALLBACK;
	Callback daemon_lost = Callback::RUN; /* -ENOTCONN, of clients with GPUSEG_CONNECT_FAIL_IF_LOST */
	Callback timed_out = Callback::SKIP;  /* -ETIMEDOUT: TaskOptions::timeout passed, and on_timeout is FAIL */
	Callback refused = Callback::SKIP;    /* -ECANCELED: the job before overran, and on_overrun is SKIP_NEXT */
	Callback failed = Callback::RUN;      /* anything else, such as -EBUSY, -EPROTO and -EPERM */
	/* The node's log warns of each of those four at most so often. */
	gpuseg::Nanoseconds warn_every{std::chrono::seconds(10)};
	/*
	 * The node has the read-only parameters gpuseg.priority (an integer), gpuseg.period and gpuseg.budget ("33ms"),
	 * which precede TaskOptions. A further group of a node needs a prefix of its own; "" = no parameters.
	 */
	std::string parameters = "gpuseg";
};

/* Counted since the group was made. Each is read for itself, not as a snapshot. */
struct Counters {
	std::uint64_t jobs;	       /* callbacks that were due */
	std::uint64_t without_grant;   /* of these, run without a grant, all or a segment; no daemon, PROCEED, too */
	std::uint64_t skipped;	       /* of these, given up: not called, or a segment was skipped */
	std::uint64_t daemon_lost;     /* jobs that met a lost daemon, at their begin or at their end */
	std::uint64_t timed_out;       /* jobs that were not granted in time, with PROCEED, too */
	std::uint64_t refused;	       /* jobs that were refused because the one before overran */
	std::uint64_t failed;	       /* jobs with another failure of the library */
	std::uint64_t lost_expiries;   /* of timers, passed while a callback ran, so that there was no job for them */
	std::uint64_t release_unknown; /* jobs released at the start of their callback */
	std::uint64_t stamp_unknown;   /* jobs without a stamp */
};

namespace detail
{

template <typename Message, typename = void> struct HasStamp : std::false_type {
};
template <typename Message>
struct HasStamp<Message, std::void_t<decltype(std::declval<Message>().header.stamp.nanosec)>> : std::true_type {
};

/* A way in which a callback takes a message of type T: Argument is what rclcpp shall hand over. */
template <typename T, typename A> struct Form {
	using Argument = A;

	static const T &content(const std::remove_reference_t<A> &argument) noexcept
	{
		if constexpr (std::is_reference_v<A>)
			return argument;
		else
			return *argument;
	}
};

/*
 * The first way in which a callback of this type can be called, with Info... after the message; void: none. A shared
 * pointer goes before a unique one, which would convert to it, but would be a copy of the message.
 */
template <typename Callback, typename T, typename... Info> auto form_with()
{
	if constexpr (std::is_invocable_v<Callback &, const T &, Info...>)
		return Form<T, const T &>();
	else if constexpr (std::is_invocable_v<Callback &, std::shared_ptr<const T>, Info...>)
		return Form<T, std::shared_ptr<const T>>();
	else if constexpr (std::is_invocable_v<Callback &, std::shared_ptr<T>, Info...>)
		return Form<T, std::shared_ptr<T>>();
	else if constexpr (std::is_invocable_v<Callback &, std::unique_ptr<T>, Info...>)
		return Form<T, std::unique_ptr<T>>();
}

/* Of a TypeAdapter first the custom type. */
template <typename Callback, typename Message, typename... Info> auto form_of()
{
	using Adapter = rclcpp::TypeAdapter<Message>;
	using Custom = decltype(form_with<Callback, typename Adapter::custom_type, Info...>());

	if constexpr (!std::is_void_v<Custom>)
		return Custom();
	else
		return form_with<Callback, typename Adapter::ros_message_type, Info...>();
}

/* gpuseg.h: a task's name has 1..63 bytes of UTF-8. */
constexpr std::size_t NAME_BYTES = 63;

inline bool within_character(char byte) noexcept
{
	return (static_cast<unsigned char>(byte) & 0xc0) == 0x80;
}

/* A name that is too long becomes head~hash~tail: still readable, and another one for another name. */
inline std::string task_name(const std::string &name)
{
	constexpr std::size_t SHOWN = NAME_BYTES - 10;
	std::size_t head = SHOWN / 2, tail = name.size() - (SHOWN - head);
	std::uint64_t hash = 0xcbf29ce484222325; /* FNV-1a */
	char middle[11];

	if (name.size() <= NAME_BYTES)
		return name;
	for (const char byte : name)
		hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
	while (head > 0 && within_character(name[head]))
		head--;
	while (tail < name.size() && within_character(name[tail]))
		tail++;
	std::snprintf(middle, sizeof(middle), "~%08x~", static_cast<unsigned int>(hash ^ hash >> 32));
	return name.substr(0, head) + middle + name.substr(tail);
}

struct Unit {
	const char *name;
	std::int64_t ns;
};
constexpr Unit UNITS[] = {{"s", 1000000000}, {"ms", 1000000},	{"us", 1000},
			  {"ns", 1},	     {"\u00b5s", 1000}, {"\u03bcs", 1000}};
constexpr std::int64_t HOUR_NS = 3600000000000;

/* 250us, 1.5ms, 10 s; at most an hour. -1: it is none. */
inline std::int64_t duration_ns(const std::string &given)
{
	constexpr const char *DIGITS = "0123456789";
	const std::size_t from = given.find_first_not_of(' ');
	const std::string text =
		from == std::string::npos ? "" : given.substr(from, given.find_last_not_of(' ') - from + 1);
	const std::size_t point = text.find_first_not_of(DIGITS);
	std::size_t end = point;
	std::string fraction;

	if (point == std::string::npos || point == 0 || point > 13)
		return -1;
	if (text[point] == '.') {
		end = text.find_first_not_of(DIGITS, point + 1);
		if (end == point + 1 || end == std::string::npos || end - point > 10)
			return -1;
		fraction = text.substr(point + 1, end - point - 1);
	}
	const std::string name = text.substr(text.find_first_not_of(' ', end));

	for (const Unit &unit : UNITS) {
		const std::int64_t whole = std::stoll(text.substr(0, point));
		std::int64_t part = fraction.empty() ? 0 : std::stoll(fraction) * unit.ns;

		if (name != unit.name)
			continue;
		for (std::size_t i = 0; i < fraction.size(); i++, part /= 10)
			if (part % 10 != 0)
				return -1; /* finer than a nanosecond */
		if (whole > HOUR_NS / unit.ns || whole * unit.ns + part > HOUR_NS)
			return -1;
		return whole * unit.ns + part;
	}
	return -1;
}

inline std::string duration_text(std::int64_t ns)
{
	for (const Unit &unit : UNITS)
		if (ns % unit.ns == 0)
			return std::to_string(ns / unit.ns) + unit.name;
	return {}; /* not reached */
}

} // namespace detail

class CallbackGroup
{
public:
	/*
	 * node: an rclcpp::Node, rclcpp_lifecycle::LifecycleNode, or what derives from one, in its own constructor,
	 * too. The group keeps the node's interfaces but not the node, so that it can be a member of it. Without a name
	 * the task has that of the node; a name of more than 63 bytes is shortened to head~hash~tail. Throws
	 * std::invalid_argument, with parameter, value and remedy, where a parameter is wrong.
	 */
	template <typename Node>
	CallbackGroup(Node &node, gpuseg::Client &client, gpuseg::TaskOptions options, GroupOptions choices = {})
		: base_(node.get_node_base_interface()), topics_(node.get_node_topics_interface()),
		  timers_(node.get_node_timers_interface()), services_(node.get_node_services_interface()),
		  parameters_(node.get_node_parameters_interface()),
		  clock_(node.get_node_clock_interface()->get_clock()),
		  logger_(node.get_node_logging_interface()->get_logger()), client_(client),
		  options_(std::move(options)), choices_(std::move(choices)),
		  group_(base_->create_callback_group(rclcpp::CallbackGroupType::MutuallyExclusive))
	{
		options_.name =
			detail::task_name(options_.name.empty() ? base_->get_fully_qualified_name() : options_.name);
		if (!choices_.parameters.empty())
			read_parameters();
	}
	~CallbackGroup()
	{
		std::unique_lock<std::mutex> lock(life_->running, std::defer_lock);

		if (!job_here())
			lock.lock();
		life_->ended = true;
	}
	CallbackGroup(const CallbackGroup &) = delete;
	CallbackGroup &operator=(const CallbackGroup &) = delete;

	/*
	 * Every message is a job; its header's stamp, if it has one, is the job's. The callback takes const M &,
	 * std::unique_ptr<M>, std::shared_ptr<const M> or std::shared_ptr<M>, each with or without a
	 * const rclcpp::MessageInfo & after it, where M is Message, or either type of a TypeAdapter.
	 */
	template <typename Message, typename Callback>
	typename rclcpp::Subscription<Message>::SharedPtr subscribe(const std::string &topic, const rclcpp::QoS &qos,
								    Callback callback,
								    rclcpp::SubscriptionOptions options = {})
	{
		/* Without Info first: what std::bind makes takes more arguments than it uses. */
		using Plain = decltype(detail::form_of<Callback, Message>());
		using Informed = decltype(detail::form_of<Callback, Message, const rclcpp::MessageInfo &>());
		using Form = std::conditional_t<std::is_void_v<Plain>, Informed, Plain>;

		static_assert(!std::is_void_v<Form>,
			      "the callback takes const M &, std::unique_ptr<M>, std::shared_ptr<const M> or "
			      "std::shared_ptr<M>, and const rclcpp::MessageInfo & after it, if any");
		using Argument = typename Form::Argument;

		open();
		options.callback_group = group_;
		return rclcpp::create_subscription<Message>(
			parameters_, topics_, topic, qos,
			std::function<void(Argument, const rclcpp::MessageInfo &)>(
				[this, life = life_, callback = std::move(callback)](
					Argument message, const rclcpp::MessageInfo &info) mutable {
					const std::lock_guard<std::mutex> lock(life->running);

					if (life->ended)
						return;
					Job job(*this, sent(info), stamp(Form::content(message)));

					if (!job.runs())
						return;
					if constexpr (!std::is_void_v<Plain>)
						callback(std::forward<Argument>(message));
					else
						callback(std::forward<Argument>(message), info);
				}),
			options);
	}

	/*
	 * Every expiry is a job, stamped with the time when it was due. A timer that is made before the group's
	 * subscriptions and services sets the period of the task, unless the options do. The callback takes nothing,
	 * or rclcpp::TimerBase &.
	 */
	template <typename Callback> rclcpp::TimerBase::SharedPtr timer(gpuseg::Nanoseconds period, Callback callback)
	{
		constexpr bool PLAIN = std::is_invocable_v<Callback &>;

		static_assert(PLAIN || std::is_invocable_v<Callback &, rclcpp::TimerBase &>,
			      "the callback takes nothing, or rclcpp::TimerBase &");
		if (options_.period.count() == 0)
			options_.period = period;
		open();
		return rclcpp::create_wall_timer(
			period,
			std::function<void(rclcpp::TimerBase &)>(
				[this, life = life_, callback = std::move(callback),
				 expiries = Expiries(period)](rclcpp::TimerBase &timer) mutable {
					const std::lock_guard<std::mutex> lock(life->running);

					if (life->ended)
						return;
					const gpuseg::Nanoseconds at = due(timer, expiries);
					Job job(*this, at, has_real_time() ? Taken{at} : Taken{});

					if (!job.runs())
						return;
					if constexpr (PLAIN)
						callback();
					else
						callback(timer);
				}),
			group_, base_.get(), timers_.get());
	}

	/*
	 * Every request is a job. The callback takes, as shared pointers, request and response; rmw_request_id_t,
	 * request and response; or, to respond later, rmw_request_id_t and request, with or without the service before
	 * them. A callback that is skipped does not respond: an empty response would look like a result.
	 */
	template <typename Service, typename Callback>
	typename rclcpp::Service<Service>::SharedPtr service(const std::string &name, Callback callback,
							     const rclcpp::QoS &qos = rclcpp::ServicesQoS())
	{
		using Self = std::shared_ptr<rclcpp::Service<Service>>;
		using Id = std::shared_ptr<rmw_request_id_t>;
		using Request = std::shared_ptr<typename Service::Request>;
		using Response = std::shared_ptr<typename Service::Response>;
		constexpr bool PLAIN = std::is_invocable_v<Callback &, Request, Response>;
		constexpr bool WITH_ID = std::is_invocable_v<Callback &, Id, Request, Response>;
		constexpr bool LATER = std::is_invocable_v<Callback &, Id, Request>;

		static_assert(PLAIN || WITH_ID || LATER || std::is_invocable_v<Callback &, Self, Id, Request>,
			      "the callback takes shared pointers to request and response, and rmw_request_id_t before "
			      "them, if any; or to rmw_request_id_t and request, and the service before them, if any");
		open();
		return rclcpp::create_service<Service>(
			base_, services_, name,
			std::function<void(Self, Id, Request)>([this, life = life_, callback = std::move(callback)](
								       Self self, Id id, Request request) mutable {
				const std::lock_guard<std::mutex> lock(life->running);

				if (life->ended)
					return;
				if constexpr (PLAIN || WITH_ID) {
					auto response = std::make_shared<typename Service::Response>();

					if (!responds(callback, id, std::move(request), response))
						return;
					self->send_response(*id, *response);
				} else {
					Job job(*this, UNKNOWN, Taken{});

					if (!job.runs())
						return;
					if constexpr (LATER)
						callback(std::move(id), std::move(request));
					else
						callback(std::move(self), std::move(id), std::move(request));
				}
			}),
			qos.get_rmw_qos_profile(), group_);
	}

	/* For an executor of its own. */
	rclcpp::CallbackGroup::SharedPtr callback_group() const noexcept
	{
		return group_;
	}
	/* The task, NULL before the first subscription, timer or service. */
	gpuseg::Task *task() const noexcept
	{
		return task_.get();
	}

	/* Any thread. */
	Counters counters() const noexcept
	{
		return {jobs_,
			without_grant_,
			skipped_,
			troubles_[DAEMON_LOST].count,
			troubles_[TIMED_OUT].count,
			troubles_[REFUSED].count,
			troubles_[FAILED].count,
			lost_expiries_,
			release_unknown_,
			stamp_unknown_};
	}

private:
	friend class Segment;

	/* Of a release or a stamp. */
	static constexpr gpuseg::Nanoseconds UNKNOWN{0};
	/*
	 * A message that says it was sent longer ago was kept for late subscribers (a map), or comes from a machine
	 * whose clock is another one.
	 */
	static constexpr std::int64_t SENT_WITHIN_NS = 10'000'000'000;

	/* A stamp that is older is of a recording that is played without its clock, not of a sensor. */
	static constexpr std::int64_t STAMP_WITHIN_NS = 60'000'000'000;

	/* When the data of a job were taken, and which they are: the raw stamp, which every process reads alike. */
	struct Taken {
		gpuseg::Nanoseconds at = UNKNOWN;
		std::uint64_t sample = 0; /* unknown */
	};

	/* What is known of a timer's expiries: when the last one was due, and how much too early that may be. */
	struct Expiries {
		explicit Expiries(gpuseg::Nanoseconds p) : period(p)
		{
		}
		gpuseg::Nanoseconds period;
		gpuseg::Nanoseconds due = UNKNOWN;
		gpuseg::Nanoseconds early{0};
	};

	/* What callbacks have of their group that outlives it: an executor may hold them longer than the node does. */
	struct Life {
		std::mutex running; /* held by the callback that runs */
		bool ended = false;
	};

	enum Kind { DAEMON_LOST, TIMED_OUT, REFUSED, FAILED, KINDS };

	struct Trouble {
		std::atomic<std::uint64_t> count{0};
		std::atomic<std::int64_t> said_ns{0}; /* 0 = never */
	};

	/*
	 * A callback from its release to its end. Throws nothing. What was begun is ended exactly once, also when
	 * the callback throws: its segment, then its job. A job that is given up is cancelled, since an ended job
	 * counts as met.
	 */
	class Job
	{
	public:
		Job(CallbackGroup &group, gpuseg::Nanoseconds release, Taken taken) noexcept
			: group_(group), task_(group.task_->get()), release_(release), taken_(taken)
		{
			count(group_.jobs_);
			if (release_ == UNKNOWN) {
				count(group_.release_unknown_);
				release_ = gpuseg::now();
			}
			if (taken_.at == UNKNOWN)
				count(group_.stamp_unknown_);
			group_.job_ = this;
			group_.thread_.store(std::this_thread::get_id(), std::memory_order_relaxed);
			if (group_.choices_.segments == Segments::CALLBACK) {
				runs_ = begin();
			} else if (const int result = release_once(); result < 0) {
				runs_ = runs_after(result);
				given_up_ = !runs_;
			}
			if (given_up_)
				count(group_.skipped_);
		}
		~Job()
		{
			end();
			if (released_)
				ended(given_up_ ? gpuseg_job_cancel(task_) : gpuseg_job_end(task_));
			group_.thread_.store(std::thread::id(), std::memory_order_relaxed);
			group_.job_ = nullptr;
		}
		Job(const Job &) = delete;
		Job &operator=(const Job &) = delete;

		bool runs() const noexcept
		{
			return runs_;
		}
		/* A segment within the callback; one within another is part of that. False: it is skipped. */
		bool enter() noexcept
		{
			const bool before = given_up_;

			if (depth_++ > 0 || group_.choices_.segments == Segments::CALLBACK || begin())
				return true;
			if (!before)
				count(group_.skipped_);
			return false;
		}
		void leave() noexcept
		{
			if (--depth_ == 0 && group_.choices_.segments == Segments::MARKED)
				end();
		}

	private:
		int release_once() noexcept
		{
			const int result = released_ ? 0
						     : gpuseg_job_release_sample(task_, release_.count(),
										 taken_.at.count(), taken_.sample);

			released_ = result == 0;
			return result;
		}
		/* True: what follows runs. The release is tried again: the begin would carry that of an earlier job. */
		bool begin() noexcept
		{
			int result = release_once();

			if (result == 0) {
				result = gpuseg_begin(task_);
				begun_ = result >= 0;
			}
			if (result == 0 && is_managed())
				return true;
			if (result != 0 && !runs_after(result)) {
				given_up_ = true;
				return false;
			}
			if (!without_grant_)
				count(group_.without_grant_);
			without_grant_ = true;
			return true;
		}
		/* False: there is no daemon, it is lost, or the one that followed has refused the task. */
		bool is_managed() const noexcept
		{
			gpuseg_task_status status{};

			status.size = sizeof(status);
			return gpuseg_get_task_status(task_, &status) < 0 || status.task_id != 0;
		}
		void end() noexcept
		{
			if (begun_)
				ended(gpuseg_end(task_));
			begun_ = false;
		}
		void ended(int result) noexcept
		{
			if (result < 0)
				note(result, "the end of its job is not recorded");
		}
		bool runs_after(int result) noexcept
		{
			const bool runs = group_.runs_after(result);

			note(result, runs ? "the callback runs without a grant" : "the callback is skipped");
			return runs;
		}
		/* Of each kind once for a job. */
		void note(int result, const char *consequence) noexcept
		{
			const unsigned int kind = 1u << kind_of(result);

			if ((noted_ & kind) == 0)
				group_.note(result, consequence);
			noted_ |= kind;
		}

		CallbackGroup &group_;
		gpuseg_task *task_;
		gpuseg::Nanoseconds release_;
		Taken taken_;
		bool released_ = false;
		bool begun_ = false;
		bool without_grant_ = false;
		bool given_up_ = false;
		bool runs_ = true;
		unsigned int depth_ = 0;
		unsigned int noted_ = 0;
	};

	void read_parameters()
	{
		const std::string &prefix = choices_.parameters;
		const rclcpp::ParameterValue priority =
			parameter(prefix + ".priority", rclcpp::ParameterValue(std::int64_t{options_.priority}),
				  "Priority of the task on the GPU, 1..99, 99 is highest; 0 = best effort");

		if (priority.get_type() != rclcpp::ParameterType::PARAMETER_INTEGER ||
		    priority.get<std::int64_t>() < 0 || priority.get<std::int64_t>() > 99)
			wrong(prefix + ".priority", priority, "give 1 to 99, 99 is highest, or 0 for best effort");
		options_.priority = static_cast<std::uint32_t>(priority.get<std::int64_t>());
		options_.period =
			duration(prefix + ".period", options_.period, "Period of the task; 0s = that of its timer");
		options_.budget = duration(prefix + ".budget", options_.budget,
					   "Longest time that a segment may hold the GPU; 0s = no limit");
	}

	gpuseg::Nanoseconds duration(const std::string &name, gpuseg::Nanoseconds from_code, const char *description)
	{
		const rclcpp::ParameterValue value =
			parameter(name, rclcpp::ParameterValue(detail::duration_text(from_code.count())), description);
		const std::int64_t ns = value.get_type() == rclcpp::ParameterType::PARAMETER_STRING
						? detail::duration_ns(value.get<std::string>())
						: -1;

		if (ns < 0)
			wrong(name, value, "give a time with its unit, such as 250us, 33ms or 1.5s, at most an hour");
		return gpuseg::Nanoseconds(ns);
	}

	/* From the node's overrides, or the code. A group made again, as in a second configure, finds it declared. */
	rclcpp::ParameterValue parameter(const std::string &name, const rclcpp::ParameterValue &from_code,
					 const char *description)
	{
		rcl_interfaces::msg::ParameterDescriptor descriptor;

		if (parameters_->has_parameter(name)) {
			const rclcpp::ParameterValue there = parameters_->get_parameter(name).get_parameter_value();

			if (parameters_->get_parameter_overrides().count(name) == 0 && !(there == from_code))
				wrong(name, there,
				      ("but this group has " + rclcpp::to_string(from_code) +
				       "; give each group of a node its own GroupOptions::parameters")
					      .c_str());
			return there;
		}
		descriptor.description = description;
		descriptor.read_only = true;
		descriptor.dynamic_typing = true; /* so that a value of another type gets a message with a remedy */
		return parameters_->declare_parameter(name, from_code, descriptor);
	}

	[[noreturn]] void wrong(const std::string &name, const rclcpp::ParameterValue &value, const char *remedy) const
	{
		throw std::invalid_argument("parameter " + name + " of node " + base_->get_fully_qualified_name() +
					    " is " + rclcpp::to_string(value) + "; " + remedy);
	}

	/* The callbacks of the group have one thread at a time; counters() reads in others. */
	static void count(std::atomic<std::uint64_t> &counter) noexcept
	{
		counter.fetch_add(1, std::memory_order_relaxed);
	}

	static Kind kind_of(int result) noexcept
	{
		switch (result) {
		case -ENOTCONN:
			return DAEMON_LOST;
		case GPUSEG_PROCEEDED:
		case -ETIMEDOUT:
			return TIMED_OUT;
		case -ECANCELED:
			return REFUSED;
		default:
			return FAILED;
		}
	}

	/* Release or begin failed, or proceeded. */
	bool runs_after(int result) const noexcept
	{
		const Callback choice[KINDS] = {choices_.daemon_lost, choices_.timed_out, choices_.refused,
						choices_.failed};

		return result == GPUSEG_PROCEEDED || choice[kind_of(result)] == Callback::RUN;
	}

	/* The job whose callback this thread is in, NULL if it is in none of this group. */
	Job *job_here() const noexcept
	{
		return thread_.load(std::memory_order_relaxed) == std::this_thread::get_id() ? job_ : nullptr;
	}

	/* A segment in another thread than the callback's, or outside of callbacks. */
	bool runs_outside() noexcept
	{
		const bool runs = choices_.failed == Callback::RUN;

		note(-EINVAL, runs ? "it runs without a grant" : "it is skipped",
		     "GPUSEG_SEGMENT is not in a callback");
		return runs;
	}

	/* what: NULL = the library's text */
	void note(int result, const char *consequence, const char *what = nullptr) noexcept
	{
		Trouble &trouble = troubles_[kind_of(result)];
		const std::int64_t now_ns = gpuseg_now_ns();
		const std::int64_t said_ns = trouble.said_ns.load(std::memory_order_relaxed);

		count(trouble.count);
		if (said_ns != 0 && now_ns - said_ns < choices_.warn_every.count())
			return;
		trouble.said_ns.store(now_ns, std::memory_order_relaxed);
		if (!what)
			what = result == GPUSEG_PROCEEDED ? "not granted in time" : gpuseg_last_message(client_.get());
		RCLCPP_WARN(logger_, "gpuseg task \"%s\": %s; %s (%llu so far)", options_.name.c_str(), what,
			    consequence, static_cast<unsigned long long>(trouble.count));
	}

	/* The job of a service's callback; the response is sent after it. */
	template <typename Callback, typename Request, typename Response>
	bool responds(Callback &callback, const std::shared_ptr<rmw_request_id_t> &id, Request request,
		      const std::shared_ptr<Response> &response)
	{
		Job job(*this, UNKNOWN, Taken{});

		if (!job.runs())
			return false;
		if constexpr (std::is_invocable_v<Callback &, Request, std::shared_ptr<Response>>)
			callback(std::move(request), response);
		else
			callback(id, std::move(request), response);
		return true;
	}

	void open()
	{
		if (!task_)
			task_ = std::make_unique<gpuseg::Task>(client_, options_);
	}

	/*
	 * When the timer's latest expiry was due. The timer was set to the next one before its callback. Expiries
	 * between the former and this one, which nothing served, are lost; a gap of no whole number of periods comes of
	 * a timer that was reset.
	 */
	gpuseg::Nanoseconds due(rclcpp::TimerBase &timer, Expiries &expiries) noexcept
	{
		const gpuseg::Nanoseconds before = gpuseg::now(), period = expiries.period;
		gpuseg::Nanoseconds until;

		try {
			until = timer.time_until_trigger();
		} catch (const std::exception &) {
			return UNKNOWN; /* counted in release_unknown */
		}
		if (until > period)
			return UNKNOWN; /* it was cancelled, and until is the largest number */
		const gpuseg::Nanoseconds early = gpuseg::now() - before, due = before + until - period;

		if (due <= UNKNOWN)
			return UNKNOWN;
		if (expiries.due != UNKNOWN && period.count() > 0 && due > expiries.due) {
			const gpuseg::Nanoseconds gap = due - expiries.due;
			const std::int64_t periods = (gap + period / 2) / period;

			if (periods > 1 &&
			    std::chrono::abs(gap - periods * period) <= std::max(period / 16, early + expiries.early))
				lost_expiries_.fetch_add(static_cast<std::uint64_t>(periods - 1),
							 std::memory_order_relaxed);
		}
		expiries.due = due;
		expiries.early = early;
		return due;
	}

	/* When the message was sent, by its publisher's clock of the day. Unset, and garbage, within a process. */
	static gpuseg::Nanoseconds sent(const rclcpp::MessageInfo &info) noexcept
	{
		const rmw_message_info_t &about = info.get_rmw_message_info();
		const gpuseg::Nanoseconds now = gpuseg::now();
		const std::int64_t day_ns =
			std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count();

		if (about.from_intra_process || about.source_timestamp <= 0)
			return UNKNOWN;
		const std::int64_t age_ns = day_ns - about.source_timestamp;

		return age_ns >= 0 && age_ns <= SENT_WITHIN_NS && age_ns < now.count()
			       ? now - gpuseg::Nanoseconds(age_ns)
			       : UNKNOWN;
	}

	/* Simulated time passes at another rate, so that ages in it are none; nor are those by a clock that fails. */
	bool has_real_time() const noexcept
	{
		try {
			return !clock_->ros_time_is_active();
		} catch (const std::exception &) {
			return false;
		}
	}

	/*
	 * From the node's clock to CLOCK_MONOTONIC: as old here as there. CLOCK_MONOTONIC is read first, so that a
	 * thread that is held up between the two makes the data look older, not younger. A stamp in the future, of 0,
	 * or older than a minute, is unknown. What is unknown is counted in stamp_unknown.
	 */
	template <typename Message> Taken stamp(const Message &message) const noexcept
	{
		if constexpr (detail::HasStamp<Message>::value) {
			const gpuseg::Nanoseconds now = gpuseg::now();
			const auto &s = message.header.stamp;
			const std::int64_t stamp_ns =
				static_cast<std::int64_t>(s.sec) * 1000000000 + static_cast<std::int64_t>(s.nanosec);

			if (stamp_ns <= 0 || !has_real_time())
				return {};
			try {
				const std::int64_t age_ns = clock_->now().nanoseconds() - stamp_ns;

				if (age_ns >= 0 && age_ns <= STAMP_WITHIN_NS && age_ns < now.count())
					return {now - gpuseg::Nanoseconds(age_ns),
						static_cast<std::uint64_t>(stamp_ns)};
			} catch (const std::exception &) {
				return {};
			}
		}
		return {};
	}

	rclcpp::node_interfaces::NodeBaseInterface::SharedPtr base_;
	rclcpp::node_interfaces::NodeTopicsInterface::SharedPtr topics_;
	rclcpp::node_interfaces::NodeTimersInterface::SharedPtr timers_;
	rclcpp::node_interfaces::NodeServicesInterface::SharedPtr services_;
	rclcpp::node_interfaces::NodeParametersInterface::SharedPtr parameters_;
	rclcpp::Clock::SharedPtr clock_;
	rclcpp::Logger logger_;
	gpuseg::Client &client_;
	gpuseg::TaskOptions options_;
	GroupOptions choices_;
	rclcpp::CallbackGroup::SharedPtr group_;
	std::unique_ptr<gpuseg::Task> task_;
	std::atomic<std::uint64_t> jobs_{0};
	std::atomic<std::uint64_t> without_grant_{0};
	std::atomic<std::uint64_t> skipped_{0};
	std::atomic<std::uint64_t> lost_expiries_{0};
	std::atomic<std::uint64_t> release_unknown_{0};
	std::atomic<std::uint64_t> stamp_unknown_{0};
	Trouble troubles_[KINDS];
	std::shared_ptr<Life> life_ = std::make_shared<Life>();
	Job *job_ = nullptr;			/* of the thread in thread_ */
	std::atomic<std::thread::id> thread_{}; /* that is in a callback */
};

/*
 * The part of a callback that uses the GPU; see GPUSEG_SEGMENT. In a group whose callbacks are segments it changes
 * nothing.
 */
class Segment
{
public:
	explicit Segment(CallbackGroup &group) noexcept
		: job_(group.job_here()), runs_(job_ ? job_->enter() : group.runs_outside())
	{
	}
	~Segment()
	{
		if (job_)
			job_->leave();
	}
	Segment(const Segment &) = delete;
	Segment &operator=(const Segment &) = delete;

	explicit operator bool() const noexcept
	{
		return runs_;
	}

private:
	CallbackGroup::Job *job_;
	bool runs_;
};

} // namespace gpuseg_ros2

#define GPUSEG_ROS2_JOINED(a, b) a##b
#define GPUSEG_ROS2_NAME(a, b) GPUSEG_ROS2_JOINED(a, b)
/*
 * In a callback of a group with Segments::MARKED, in its thread: the statement that follows is a segment. It is skipped
 * as GroupOptions says; an else may follow.
 *
 *   const Tensor input = prepare(image);      // the GPU is others'
 *   GPUSEG_SEGMENT(group) {
 *           launch_and_synchronise(input);
 *   }
 */
#define GPUSEG_SEGMENT(group)                                                                                          \
	if (const gpuseg_ros2::Segment GPUSEG_ROS2_NAME(gpuseg_segment_, __LINE__)(group);                             \
	    GPUSEG_ROS2_NAME(gpuseg_segment_, __LINE__))

#endif /* GPUSEG_ROS2_HPP */
