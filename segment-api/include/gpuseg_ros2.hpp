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
 * Failures. A daemon that is lost, a timeout or a refused job is no exception in a callback: that would end the
 * process, and with it every node of the container. GroupOptions says what becomes of the callback, counters() counts
 * it, and the node's log warns. What the callback itself throws passes on, after the end of its job.
 *
 * Threads. The group is mutually exclusive: an executor of any kind runs one callback of it at a time, as a task needs.
 * One group per task, and one process per real-time task where admission is enforced. The client must outlive the
 * group, and the group its subscriptions and timers. The constructor, and what makes subscriptions and timers, throws
 * gpuseg::Error, as in gpuseg.hpp.
 *
 * Status: compiled and tested against a stand-in of the interfaces of rclcpp that it uses, written from their published
 * signatures (tests/ros2). It has not been built with ROS 2.
 */
#ifndef GPUSEG_ROS2_HPP
#define GPUSEG_ROS2_HPP

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include <rclcpp/rclcpp.hpp>

#include "gpuseg.hpp"

namespace gpuseg_ros2
{

/* What becomes of a callback whose job did not get the GPU. */
enum class Callback {
	RUN, /* it runs without a grant: beside whatever else uses the GPU */
	SKIP /* it is not called; its job is given up, and counts as neither met nor ended */
};

struct GroupOptions {
	Callback daemon_lost = Callback::RUN; /* -ENOTCONN; until another daemon is found */
	Callback timed_out = Callback::SKIP;  /* -ETIMEDOUT: TaskOptions::timeout passed, and on_timeout is FAIL */
	Callback refused = Callback::SKIP;    /* -ECANCELED: the job before overran, and on_overrun is SKIP_NEXT */
	Callback failed = Callback::RUN;      /* anything else, such as -EBUSY, -EPROTO and -EPERM */
	gpuseg::Nanoseconds warn_every{
		std::chrono::seconds(10)}; /* the node's log warns of each of them at most so often */
};

/* Counted since the group was made. Each is read for itself, not as a snapshot. */
struct Counters {
	std::uint64_t jobs;	     /* callbacks that were due */
	std::uint64_t without_grant; /* of these, run without a grant, those of on_timeout PROCEED among them */
	std::uint64_t skipped;	     /* of these, not called */
	std::uint64_t daemon_lost;   /* jobs that met a lost daemon, at their begin or at their end */
	std::uint64_t timed_out;     /* jobs that were not granted in time, with PROCEED, too */
	std::uint64_t refused;	     /* jobs that were refused because the one before overran */
	std::uint64_t failed;	     /* jobs with another failure of the library */
};

template <typename Message, typename = void> struct HasStamp : std::false_type {
};
template <typename Message>
struct HasStamp<Message, std::void_t<decltype(std::declval<Message>().header.stamp.nanosec)>> : std::true_type {
};

class CallbackGroup
{
public:
	CallbackGroup(rclcpp::Node::SharedPtr node, gpuseg::Client &client, gpuseg::TaskOptions options,
		      GroupOptions choices = {})
		: node_(std::move(node)), client_(client), options_(std::move(options)), choices_(choices),
		  logger_(node_->get_logger()),
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
				Job job(*this, stamp(*message));
				if (job.runs())
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
				Job job(*this, gpuseg::Nanoseconds{0});
				if (job.runs())
					callback();
			},
			group_);
	}

	/* The task, NULL before the first subscription or timer. */
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
			troubles_[FAILED].count};
	}

private:
	enum Kind { DAEMON_LOST, TIMED_OUT, REFUSED, FAILED, KINDS };

	struct Trouble {
		std::atomic<std::uint64_t> count{0};
		std::int64_t said_ns = 0; /* 0 = never; the callbacks' thread only */
	};

	/*
	 * A callback from its release to its end. Throws nothing. What was begun is ended exactly once, also when the
	 * callback throws: its segment, then its job. A job that is given up is not ended, since an ended job counts as
	 * met: the daemon gives it up at the next release, or when the task is closed.
	 */
	class Job
	{
	public:
		Job(CallbackGroup &group, gpuseg::Nanoseconds stamp) noexcept : group_(group), task_(group.task_->get())
		{
			count(group_.jobs_);
			int result = gpuseg_job_release_stamped(task_, gpuseg_now_ns(), stamp.count());

			released_ = result == 0;
			if (released_)
				result = gpuseg_begin(task_);
			begun_ = released_ && result >= 0;
			if (result != 0) {
				runs_ = group_.without_grant(result);
				noted_ = kind_of(result);
			}
			if (!runs_)
				count(group_.skipped_);
		}
		~Job()
		{
			int result = begun_ ? gpuseg_end(task_) : 0;

			if (released_ && runs_) {
				const int ended = gpuseg_job_end(task_);

				result = result < 0 ? result : ended;
			}
			if (result < 0 && noted_ != kind_of(result))
				group_.note(result, "the end of its job is not recorded");
		}
		Job(const Job &) = delete;
		Job &operator=(const Job &) = delete;

		bool runs() const noexcept
		{
			return runs_;
		}

	private:
		CallbackGroup &group_;
		gpuseg_task *task_;
		bool released_ = false;
		bool begun_ = false;
		bool runs_ = true;
		Kind noted_ = KINDS; /* none */
	};

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

	/* Release or begin failed, or proceeded. True: the callback runs all the same. */
	bool without_grant(int result) noexcept
	{
		const Callback choice[KINDS] = {choices_.daemon_lost, choices_.timed_out, choices_.refused,
						choices_.failed};
		const bool runs = result == GPUSEG_PROCEEDED || choice[kind_of(result)] == Callback::RUN;

		if (runs)
			count(without_grant_);
		note(result, runs ? "the callback runs without a grant" : "the callback is skipped");
		return runs;
	}

	void note(int result, const char *consequence) noexcept
	{
		Trouble &trouble = troubles_[kind_of(result)];
		const std::int64_t now_ns = gpuseg_now_ns();

		count(trouble.count);
		if (trouble.said_ns != 0 && now_ns - trouble.said_ns < choices_.warn_every.count())
			return;
		trouble.said_ns = now_ns;
		RCLCPP_WARN(logger_, "gpuseg task \"%s\": %s; %s (%llu so far)", options_.name.c_str(),
			    result == GPUSEG_PROCEEDED ? "not granted in time" : gpuseg_last_message(client_.get()),
			    consequence, static_cast<unsigned long long>(trouble.count));
	}

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
	GroupOptions choices_;
	rclcpp::Logger logger_;
	rclcpp::CallbackGroup::SharedPtr group_;
	std::unique_ptr<gpuseg::Task> task_;
	std::atomic<std::uint64_t> jobs_{0};
	std::atomic<std::uint64_t> without_grant_{0};
	std::atomic<std::uint64_t> skipped_{0};
	Trouble troubles_[KINDS];
};

} // namespace gpuseg_ros2

#endif /* GPUSEG_ROS2_HPP */
