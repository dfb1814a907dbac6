/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpuseg.hpp - gpuseg.h for C++17: classes that own client and task, and a guard for a segment.
 *
 *   try {
 *           gpuseg::Client client;
 *           gpuseg::Task task(client, {.name = "camera", .priority = 70}); // C++20; C++17: set field by field
 *           {
 *                   gpuseg::Segment segment(task); // begins; throws gpuseg::Error if it cannot
 *                   launch_and_synchronise();
 *           }                                      // ends
 *   } catch (const gpuseg::Error &e) {
 *           std::cerr << e.what() << "\n";
 *   }
 *
 * Failures throw gpuseg::Error, with two exceptions: destructors ignore them, and functions marked noexcept return the
 * C result. A missing daemon is such a failure (-ENOTCONN), so a program that catches nothing ends with std::terminate;
 * with gpuseg::Client client(GPUSEG_CONNECT_UNMANAGED_OK), or GPUSEG_UNMANAGED=1 in its environment, it runs all the
 * same, unscheduled. A daemon that is lost later is no failure: the program goes on unmanaged until another one has
 * started, unless it asks for GPUSEG_CONNECT_FAIL_IF_LOST.
 *
 * Clients of one process share a connection, so each component of a container may have its own; see
 * gpuseg_connect_shared(). With GPUSEG_CONNECT_ONCE a Client has a connection of its own.
 *
 * Threads and units are those of gpuseg.h. A Client and a Task can be moved but not copied; a Segment can be neither. A
 * Client must outlive its Tasks, and a Task its Segments.
 */
#ifndef GPUSEG_HPP
#define GPUSEG_HPP

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

#include "gpuseg.h"

namespace gpuseg
{

/* Of results that are no errno: GPUSEG_EADMISSION. */
class Category : public std::error_category
{
public:
	const char *name() const noexcept override
	{
		return "gpuseg";
	}
	std::string message(int value) const override
	{
		return gpuseg_strerror(value);
	}
};

inline const std::error_category &category_of(int result) noexcept
{
	static const Category own;

	return result == -GPUSEG_EADMISSION ? static_cast<const std::error_category &>(own) : std::generic_category();
}

/*
 * code() is the positive errno in std::generic_category(), or GPUSEG_EADMISSION in a category of its own. what() is the
 * library's text about this failure.
 */
class Error : public std::system_error
{
public:
	Error(int result, const gpuseg_client *client)
		: std::system_error(-result, category_of(result), text(result, client))
	{
	}

private:
	static std::string text(int result, const gpuseg_client *client)
	{
		const char *message = gpuseg_last_message(client);
		return *message ? message : gpuseg_strerror(result);
	}
};

/*
 * Admission refused the task: with it, its deadline or that of another task could be missed. what() is the daemon's
 * reason, code().value() is GPUSEG_EADMISSION.
 */
class NotAdmitted : public Error
{
public:
	using Error::Error;
};

[[noreturn]] inline void throw_error(int result, const gpuseg_client *client)
{
	if (result == -GPUSEG_EADMISSION)
		throw NotAdmitted(result, client);
	throw Error(result, client);
}

using Nanoseconds = std::chrono::nanoseconds;

/* The clock of every time in this interface: CLOCK_MONOTONIC. */
inline Nanoseconds now() noexcept
{
	return Nanoseconds(gpuseg_now_ns());
}

class Client
{
public:
	/* flags: enum gpuseg_connect_flag; dir empty = gpuseg_runtime_dir() */
	explicit Client(std::uint32_t flags = 0, const std::string &name = {}, const std::string &dir = {})
	{
		gpuseg_connect_attr attr = GPUSEG_CONNECT_ATTR_INIT;

		attr.dir = dir.empty() ? nullptr : dir.c_str();
		attr.name = name.empty() ? nullptr : name.c_str();
		attr.flags = flags;
		if (int result = flags & GPUSEG_CONNECT_ONCE ? gpuseg_connect(&attr, &client_)
							     : gpuseg_connect_shared(&attr, &client_);
		    result < 0)
			throw_error(result, nullptr);
	}
	~Client()
	{
		gpuseg_disconnect(client_);
	}
	Client(Client &&other) noexcept : client_(std::exchange(other.client_, nullptr))
	{
	}
	Client &operator=(Client &&other) noexcept
	{
		std::swap(client_, other.client_);
		return *this;
	}

	bool managed() const noexcept
	{
		return gpuseg_is_managed(client_) != 0;
	}
	gpuseg_counters counters() const
	{
		gpuseg_counters c{};

		c.size = sizeof(c);
		if (int result = gpuseg_get_counters(client_, &c); result < 0)
			throw_error(result, client_);
		return c;
	}
	gpuseg_client *get() const noexcept
	{
		return client_;
	}

private:
	gpuseg_client *client_ = nullptr;
};

struct TaskOptions {
	std::string name;
	std::uint32_t priority = 0;
	std::uint32_t gpu_priority = 0;
	std::uint32_t gpu = 0;
	std::uint32_t flags = 0;
	Nanoseconds period{0};
	Nanoseconds deadline{0};
	Nanoseconds budget{0};
	Nanoseconds timeout{0};
	gpuseg_on_timeout on_timeout = GPUSEG_ON_TIMEOUT_FAIL;
	std::uint32_t spin_count = GPUSEG_SPIN_DEFAULT;
	Nanoseconds window{0};
	gpuseg_on_overrun on_overrun = GPUSEG_ON_OVERRUN_DEFAULT;
	std::uint32_t partition = 0;
	std::uint32_t weight = 0;
	std::uint32_t boost_priority = 0;
	std::uint32_t reserve = 0;
};

class Task
{
public:
	Task(const Client &client, const TaskOptions &options) : client_(client.get())
	{
		gpuseg_task_attr attr = GPUSEG_TASK_ATTR_INIT;

		attr.name = options.name.c_str();
		attr.priority = options.priority;
		attr.gpu_priority = options.gpu_priority;
		attr.gpu = options.gpu;
		attr.flags = options.flags;
		attr.period_ns = options.period.count();
		attr.deadline_ns = options.deadline.count();
		attr.budget_ns = options.budget.count();
		attr.timeout_ns = options.timeout.count();
		attr.on_timeout = options.on_timeout;
		attr.spin_count = options.spin_count;
		attr.window_ns = options.window.count();
		attr.on_overrun = options.on_overrun;
		attr.partition = options.partition;
		attr.weight = options.weight;
		attr.boost_priority = options.boost_priority;
		attr.reserve = options.reserve;
		if (int result = gpuseg_task_open(client_, &attr, &task_); result < 0)
			throw_error(result, client_);
	}
	~Task()
	{
		gpuseg_task_close(task_);
	}
	Task(Task &&other) noexcept : client_(other.client_), task_(std::exchange(other.task_, nullptr))
	{
	}
	Task &operator=(Task &&other) noexcept
	{
		std::swap(client_, other.client_);
		std::swap(task_, other.task_);
		return *this;
	}

	/* True: granted. False: timed out, the segment runs without a grant. */
	bool begin()
	{
		return check(gpuseg_begin(task_)) == 0;
	}
	/* False: not granted at once. */
	bool try_begin()
	{
		int result = gpuseg_begin_try(task_);

		if (result == -EAGAIN)
			return false;
		check(result);
		return true;
	}
	/* False: not granted in time. */
	bool begin_for(Nanoseconds timeout)
	{
		int result = gpuseg_begin_timed(task_, timeout.count());

		if (result == -ETIMEDOUT)
			return false;
		check(result);
		return true;
	}
	int end(Nanoseconds device = Nanoseconds{0}) noexcept
	{
		return gpuseg_end_measured(task_, device.count());
	}
	void release(Nanoseconds at = Nanoseconds{0})
	{
		check(gpuseg_job_release(task_, at.count()));
	}
	void release(Nanoseconds at, Nanoseconds stamp)
	{
		check(gpuseg_job_release_stamped(task_, at.count(), stamp.count()));
	}
	/* sample: what every process reads alike in the message, like the raw stamp of its header; 0 = none */
	void release(Nanoseconds at, Nanoseconds stamp, std::uint64_t sample)
	{
		check(gpuseg_job_release_sample(task_, at.count(), stamp.count(), sample));
	}
	void complete()
	{
		check(gpuseg_job_end(task_));
	}
	/* In place of complete(): the job is skipped. */
	void cancel()
	{
		check(gpuseg_job_cancel(task_));
	}
	void hint(Nanoseconds begin_at)
	{
		check(gpuseg_hint(task_, begin_at.count()));
	}
	/* Wait until the daemon expects the next begin; false: not in time. Any thread. See gpuseg_expected(). */
	bool expected(std::uint32_t &seen, Nanoseconds timeout) const
	{
		const int result = gpuseg_expected(task_, &seen, timeout.count());

		if (result == -ETIMEDOUT)
			return false;
		if (result < 0)
			throw_error(result, nullptr);
		return true;
	}
	/* Give a CUDA stream the priority of this task; false: launches are not followed. See gpuseg_stream(). */
	bool stream(void *cuda_stream)
	{
		const int result = gpuseg_stream(cuda_stream, task_);

		if (result == -ENOTSUP)
			return false;
		if (result < 0)
			throw_error(result, nullptr);
		return true;
	}
	gpuseg_task *get() const noexcept
	{
		return task_;
	}

private:
	int check(int result) const
	{
		if (result < 0)
			throw_error(result, client_);
		return result;
	}

	gpuseg_client *client_;
	gpuseg_task *task_ = nullptr;
};

/* Begins a segment; the destructor or end() ends it. */
class Segment
{
public:
	explicit Segment(Task &task) : task_(&task), granted_(task.begin())
	{
	}
	~Segment()
	{
		end();
	}
	Segment(const Segment &) = delete;
	Segment &operator=(const Segment &) = delete;

	/* False: timed out, and the task's on_timeout is PROCEED. */
	bool granted() const noexcept
	{
		return granted_;
	}
	/* End early. Returns the result of gpuseg_end(). A second call does nothing and returns 0. */
	int end(Nanoseconds device = Nanoseconds{0}) noexcept
	{
		Task *task = std::exchange(task_, nullptr);

		return task ? task->end(device) : 0;
	}

private:
	Task *task_;
	bool granted_;
};

} // namespace gpuseg

#endif /* GPUSEG_HPP */
