/* SPDX-License-Identifier: Apache-2.0 */
/* test_ros2.cpp - gpuseg_ros2.hpp against a stand-in of rclcpp (tests/ros2) and a daemon in a thread. */
#include <gpuseg_ros2.hpp>
#include <rclcpp_lifecycle/lifecycle_node.hpp>

#include <array>
#include <stdexcept>

#include "check.h"
#include "fixture.hpp"

#include "../examples/ros2/detector.cpp"

using namespace std::chrono_literals;

struct Stamp {
	std::int32_t sec;
	std::uint32_t nanosec;
};

struct Image {
	struct {
		Stamp stamp;
	} header;
};

struct Word { /* a message without a header */
	int data;
};

static gpuseg::TaskOptions detector()
{
	gpuseg::TaskOptions options;

	options.name = "detector";
	options.priority = 70;
	options.timeout = 20s;
	return options;
}

TEST(should_make_every_message_a_job_with_the_stamp_of_its_header)
{
	Daemon d;
	rclcpp::Node node("n");
	gpuseg::Client client(0, "t", d.dir);
	gpuseg_ros2::CallbackGroup group(node, client, detector());
	int called = 0;
	auto subscription =
		group.subscribe<Image>("image", rclcpp::QoS(1), [&](std::shared_ptr<const Image>) { called++; });
	Image image;
	const std::int64_t taken_ns = node.get_clock()->now().nanoseconds() - 50000000;
	gpuseg_record r;

	CHECK(subscription->group->type() == rclcpp::CallbackGroupType::MutuallyExclusive);
	CHECK(subscription->topic == "image");
	image.header.stamp = {(std::int32_t)(taken_ns / 1000000000), (std::uint32_t)(taken_ns % 1000000000)};
	const std::int64_t before_ns = gpuseg_now_ns();
	subscription->receive(image);
	const std::int64_t after_ns = gpuseg_now_ns();
	CHECK_EQ(called, 1);
	CHECK(fake_daemon_wait(&d, 4, &r)); /* release, begin, end, job end */
	CHECK_EQ(fake_daemon_record(&d, 1).kind, GPUSEG_RECORD_BEGIN);
	CHECK_EQ(fake_daemon_record(&d, 2).kind, GPUSEG_RECORD_END);
	/* as old as the message was when the callback began */
	CHECK(fake_daemon_record(&d, 0).arg_ns > 0);
	CHECK(fake_daemon_record(&d, 0).arg_ns <= after_ns - 50000000);
	CHECK(fake_daemon_record(&d, 0).arg_ns >= before_ns - 50000000 - (after_ns - before_ns) - 1000000000);
	image.header.stamp = {0, 0}; /* not set */
	subscription->receive(image);
	CHECK(fake_daemon_wait(&d, 8, &r));
	CHECK_EQ(fake_daemon_record(&d, 0).sample, (std::uint64_t)taken_ns);
	CHECK_EQ(fake_daemon_record(&d, 4).arg_ns, 0);
	CHECK_EQ(fake_daemon_record(&d, 4).sample, 0);
	auto words = group.subscribe<Word>("word", rclcpp::QoS(1), [](const Word &) {});
	words->receive(Word());
	CHECK(fake_daemon_wait(&d, 12, &r));
	CHECK_EQ(d.opens, 1); /* one task for the group */
}

TEST(should_take_the_period_from_the_timer_and_end_the_job_of_a_callback_that_throws)
{
	Daemon d;
	rclcpp::Node node("n");
	gpuseg::Client client(0, "t", d.dir);
	gpuseg_ros2::CallbackGroup group(node, client, detector());
	auto timer = group.timer(33ms, [] { throw std::runtime_error("callback"); });
	gpuseg_record r;

	CHECK_EQ(timer->period.count(), 33000000);
	CHECK_EQ(d.last_open.period_ns, 33000000);
	try {
		timer->expire(gpuseg::now());
		CHECK(false);
	} catch (const std::runtime_error &) {
		CHECK(fake_daemon_wait(&d, 4, &r));
	}
	CHECK_EQ(fake_daemon_record(&d, 2).kind, GPUSEG_RECORD_END);
}

/* What a test of the error paths needs: a daemon, a node, a client and a group with a subscription. */
struct Rig {
	explicit Rig(const gpuseg::TaskOptions &options, const gpuseg_ros2::GroupOptions &choices = {},
		     std::uint32_t flags = GPUSEG_CONNECT_FAIL_IF_LOST)
		: client(flags, "t", daemon.dir), group(node, client, options, choices),
		  subscription(group.subscribe<Word>("word", rclcpp::QoS(1), [this](const Word &) {
			  called++;
			  if (during)
				  during();
		  }))
	{
	}
	void deliver() const
	{
		subscription->receive(Word());
	}
	/* The client may be registering its tasks yet. */
	void deliver_until_granted() const
	{
		std::uint64_t before = 0;

		do {
			before = group.counters().without_grant;
			deliver();
		} while (group.counters().without_grant != before);
	}
	/* As the client notices it: begun segments apart, its calls return -ENOTCONN from now on. */
	void lose_daemon()
	{
		fake_daemon_kill(&daemon);
		await(false);
	}
	void await(bool managed) const
	{
		const auto limit = gpuseg::now() + 30s;

		while (client.managed() != managed) {
			CHECK(gpuseg::now() < limit);
			usleep(1000);
		}
	}
	std::size_t lines() const
	{
		return node.get_logger().lines().size();
	}
	/* The kinds of all records, as a word: Release, Begin, End, Cancelled, Job end, Skipped job. */
	std::string records(std::size_t count)
	{
		std::string kinds;

		CHECK(fake_daemon_wait(&daemon, count, nullptr));
		for (std::size_t i = 0; i < fake_daemon_records(&daemon); i++) {
			const gpuseg_record r = fake_daemon_record(&daemon, i);

			kinds += r.kind == GPUSEG_RECORD_RELEASE	  ? 'R'
				 : r.kind == GPUSEG_RECORD_BEGIN	  ? 'B'
				 : r.kind == GPUSEG_RECORD_JOB_END	  ? r.flags == GPUSEG_FLAG_CANCELLED ? 'S' : 'J'
				 : (r.flags & GPUSEG_FLAG_CANCELLED) != 0 ? 'C'
									  : 'E';
		}
		return kinds;
	}

	Daemon daemon;
	rclcpp::Node node{"n"};
	gpuseg::Client client;
	gpuseg_ros2::CallbackGroup group;
	int called = 0;
	std::function<void()> during;
	rclcpp::Subscription<Word>::SharedPtr subscription;
};

static gpuseg::TaskOptions impatient()
{
	gpuseg::TaskOptions options = detector();

	options.timeout = 20ms;
	return options;
}

TEST(should_skip_a_callback_that_is_not_granted_in_time_and_cancel_its_job)
{
	Rig rig(impatient());

	fake_daemon_grants(&rig.daemon, FAKE_IGNORE, 0);
	rig.deliver();
	rig.deliver();
	const gpuseg_ros2::Counters c = rig.group.counters();
	CHECK_EQ(rig.called, 0);
	CHECK(rig.records(8) == "RBCSRBCS");
	CHECK_EQ(c.jobs, 2);
	CHECK_EQ(c.skipped, 2);
	CHECK_EQ(c.timed_out, 2);
	CHECK_EQ(c.without_grant, 0);
	CHECK_EQ(c.daemon_lost + c.refused + c.failed, 0);
	CHECK_EQ(rig.lines(), 1); /* once in ten seconds */
	CHECK_CONTAINS(rig.node.get_logger().lines()[0].c_str(), "task \"detector\"");
	CHECK_CONTAINS(rig.node.get_logger().lines()[0].c_str(), "the callback is skipped (1 so far)");
}

TEST(should_run_a_callback_without_a_grant_after_a_timeout_if_that_was_chosen)
{
	gpuseg_ros2::GroupOptions choices;

	choices.timed_out = gpuseg_ros2::Callback::RUN;
	choices.warn_every = 0s;
	Rig rig(impatient(), choices);

	fake_daemon_grants(&rig.daemon, FAKE_IGNORE, 0);
	rig.deliver();
	rig.deliver();
	CHECK_EQ(rig.called, 2);
	CHECK(rig.records(8) == "RBCJRBCJ"); /* nothing is left to end, but the job is done */
	CHECK_EQ(rig.group.counters().without_grant, 2);
	CHECK_EQ(rig.group.counters().skipped, 0);
	CHECK_EQ(rig.lines(), 2);
}

TEST(should_count_a_job_that_proceeds_after_its_timeout)
{
	gpuseg::TaskOptions options = impatient();

	options.on_timeout = GPUSEG_ON_TIMEOUT_PROCEED;
	Rig rig(options);

	fake_daemon_grants(&rig.daemon, FAKE_IGNORE, 0);
	rig.deliver();
	CHECK_EQ(rig.called, 1);
	CHECK(rig.records(4) == "RBEJ");
	CHECK_EQ(rig.group.counters().timed_out, 1);
	CHECK_EQ(rig.group.counters().without_grant, 1);
	CHECK_EQ(rig.lines(), 1);
}

TEST(should_skip_the_callback_of_a_refused_job_and_cancel_that_job)
{
	Rig rig(detector());

	fake_daemon_grants(&rig.daemon, FAKE_REFUSE, 0);
	rig.deliver();
	fake_daemon_grants(&rig.daemon, FAKE_GRANT, 0);
	rig.deliver();
	CHECK_EQ(rig.called, 1);
	CHECK(rig.records(7) == "RBSRBEJ");
	CHECK_EQ(rig.group.counters().refused, 1);
	CHECK_EQ(rig.group.counters().skipped, 1);
	CHECK_EQ(rig.group.counters().jobs, 2);
}

TEST(should_run_callbacks_without_a_grant_while_the_daemon_is_lost_and_be_scheduled_by_the_next_one)
{
	Rig rig(detector());

	rig.lose_daemon();
	rig.deliver();
	rig.deliver();
	CHECK_EQ(rig.called, 2);
	CHECK_EQ(rig.group.counters().daemon_lost, 2);
	CHECK_EQ(rig.group.counters().without_grant, 2);
	CHECK_EQ(rig.lines(), 1);
	CHECK_CONTAINS(rig.node.get_logger().lines()[0].c_str(), "the callback runs without a grant");
	fake_daemon_follow(&rig.daemon);
	rig.await(true);
	rig.deliver_until_granted();
	CHECK(rig.records(4) == "RBEJ");
	CHECK_EQ(rig.group.counters().jobs, rig.called);
}

TEST(should_leave_a_lost_daemon_to_the_library_by_default_and_count_that_no_grant_was_given)
{
	Rig rig(detector(), {}, 0);

	rig.deliver();
	CHECK_EQ(rig.group.counters().without_grant, 0);
	rig.lose_daemon();
	rig.deliver();
	rig.deliver();
	CHECK_EQ(rig.called, 3);
	CHECK_EQ(rig.client.counters().unmanaged, 2);
	CHECK_EQ(rig.group.counters().without_grant, 2);
	CHECK_EQ(rig.group.counters().daemon_lost, 0);
	CHECK_EQ(rig.group.counters().failed, 0);
	CHECK_EQ(rig.lines(), 0);
	fake_daemon_follow(&rig.daemon);
	rig.await(true);
	rig.deliver_until_granted();
	CHECK_EQ(rig.client.counters().unmanaged, rig.group.counters().without_grant);
}

TEST(should_count_that_no_grant_was_given_to_a_task_that_the_next_daemon_refuses)
{
	Rig rig(detector(), {}, 0);

	rig.lose_daemon();
	rig.daemon.refuse_type = GPUSEG_MSG_TASK_OPEN;
	rig.daemon.refuse_status = -EACCES;
	fake_daemon_follow(&rig.daemon);
	rig.await(true);
	for (std::uint64_t i = 1; i <= 50; i++) {
		rig.deliver();
		CHECK_EQ(rig.group.counters().without_grant, i);
		usleep(1000);
	}
	CHECK_EQ(rig.group.counters().daemon_lost, 0);
}

TEST(should_skip_callbacks_while_the_daemon_is_lost_if_that_was_chosen)
{
	gpuseg_ros2::GroupOptions choices;

	choices.daemon_lost = gpuseg_ros2::Callback::SKIP;
	Rig rig(detector(), choices);

	rig.lose_daemon();
	rig.deliver();
	CHECK_EQ(rig.called, 0);
	CHECK_EQ(rig.group.counters().skipped, 1);
}

TEST(should_count_a_daemon_that_is_lost_in_a_callback_once)
{
	Rig rig(detector());

	rig.during = [&] { rig.lose_daemon(); };
	rig.deliver(); /* neither the end of the segment nor that of the job can be recorded */
	CHECK_EQ(rig.called, 1);
	CHECK_EQ(rig.group.counters().daemon_lost, 1);
	CHECK_EQ(rig.group.counters().without_grant, 0);
	CHECK_EQ(rig.lines(), 1);
	CHECK_CONTAINS(rig.node.get_logger().lines()[0].c_str(), "the end of its job is not recorded");
}

TEST(should_run_callbacks_of_a_client_that_was_dropped_and_count_it_as_failed)
{
	Rig rig(detector());

	fake_daemon_poison(&rig.daemon, GPUSEG_POISON_TICKET);
	rig.deliver();
	CHECK_EQ(rig.called, 1);
	CHECK_EQ(rig.group.counters().failed, 1);
	CHECK_EQ(rig.group.counters().without_grant, 1);
}

struct Detect { /* a service */
	struct Request {
		int image;
	};
	struct Response {
		int found = 0;
	};
};

TEST(should_wait_for_the_callback_that_runs_when_the_group_is_destroyed_and_run_none_later)
{
	Daemon d;
	rclcpp::Node node("n");
	gpuseg::Client client(0, "t", d.dir);
	auto group = std::make_unique<gpuseg_ros2::CallbackGroup>(node, client, detector());
	std::atomic<int> entered{0}, left{0};
	auto subscription = group->subscribe<Word>("word", rclcpp::QoS(1), [&](const Word &) {
		entered++;
		usleep(100000);
		left++;
	});
	auto timer = group->timer(33ms, [&] { entered++; });
	auto service = group->service<Detect>(
		"detect", [&](std::shared_ptr<Detect::Request>, std::shared_ptr<Detect::Response>) { entered++; });
	std::thread executor([&] { subscription->receive(Word()); });

	while (entered == 0)
		usleep(100);
	group.reset();
	CHECK_EQ(left, 1);
	executor.join();
	subscription->receive(Word()); /* the executor had taken them before */
	timer->expire(gpuseg::now());
	service->callback(service, std::make_shared<rmw_request_id_t>(), std::make_shared<Detect::Request>());
	CHECK_EQ(entered, 1);
}

TEST(should_pass_the_exception_of_a_callback_on_unchanged_with_and_without_a_grant)
{
	Rig rig(detector());
	int caught = 0;

	rig.during = [] { throw std::out_of_range("of the callback"); };
	for (int i = 0; i < 2; i++) {
		try {
			rig.deliver();
		} catch (const std::out_of_range &e) {
			CHECK_CONTAINS(e.what(), "of the callback");
			caught++;
		}
		if (i == 0) {
			CHECK(rig.records(4) == "RBEJ");
			rig.lose_daemon();
		}
	}
	CHECK_EQ(caught, 2);
	CHECK_EQ(rig.group.counters().daemon_lost, 1);
}

/* A usual component: it makes its group, a member, with itself. */
template <typename Base> class Component : public Base
{
public:
	Component(const std::string &name, gpuseg::Client &client, int &left, const gpuseg::TaskOptions &options = {})
		: Base(name), group(*this, client, options),
		  words(group.subscribe<Word>("word", rclcpp::QoS(1),
					      std::bind(&Component::on_word, this, std::placeholders::_1))),
		  left_(left)
	{
	}
	~Component() override
	{
		left_++;
	}
	void on_word(const Word &word)
	{
		sum += word.data;
	}
	gpuseg_ros2::CallbackGroup group;
	rclcpp::Subscription<Word>::SharedPtr words;
	int sum = 0;

private:
	int &left_;
};

TEST(should_serve_components_and_lifecycle_nodes_that_own_their_groups_and_let_them_go)
{
	Daemon d;
	gpuseg::Client client(0, "container", d.dir);
	int left = 0;
	{
		auto camera = std::make_shared<Component<rclcpp::Node>>("camera", client, left);
		auto tracker = std::make_shared<Component<rclcpp_lifecycle::LifecycleNode>>("tracker", client, left);

		CHECK_CONTAINS(d.last_open.name, "/tracker"); /* the node's name, if no other is given */
		camera->words->receive(Word{2});
		tracker->words->receive(Word{3});
		camera->words->receive(Word{4});
		CHECK_EQ(camera->sum, 6);
		CHECK_EQ(tracker->sum, 3);
	}
	CHECK_EQ(left, 2); /* no group keeps its node */
	CHECK(fake_daemon_wait(&d, 12, nullptr));
	CHECK_EQ(d.opens, 2);
	CHECK_EQ(d.closes, 2);
	for (std::size_t i = 0; i < 12; i++) /* a task each */
		CHECK_EQ(fake_daemon_record(&d, i).task_id, i / 4 == 1 ? 2 : 1);
}

TEST(should_make_a_group_anew_for_a_lifecycle_node_that_is_configured_again)
{
	Daemon d;
	gpuseg::Client client(0, "t", d.dir);
	rclcpp_lifecycle::LifecycleNode node("tracker");

	for (unsigned int i = 1; i <= 2; i++) {
		gpuseg_ros2::CallbackGroup group(node, client, detector());
		auto timer = group.timer(50ms, [] {});

		timer->expire(gpuseg::now());
		CHECK_EQ(d.opens, i);
	}
	CHECK(fake_daemon_wait(&d, 8, nullptr));
}

static int calls;

static void on_word(const Word &)
{
	calls++;
}

struct Functions {
	void plain(std::shared_ptr<const Word>)
	{
		calls++;
	}
	void informed(std::unique_ptr<Word>, const rclcpp::MessageInfo &info)
	{
		calls += info.get_rmw_message_info().from_intra_process ? 1 : 0;
	}
	void operator()(const Word &)
	{
		calls++;
	}
	void tick(rclcpp::TimerBase &)
	{
		calls++;
	}
};

TEST(should_take_messages_and_expiries_in_every_form_that_rclcpp_takes)
{
	using rclcpp::MessageInfo;
	using namespace std::placeholders;
	Daemon d;
	rclcpp::Node node("n");
	gpuseg::Client client(0, "t", d.dir);
	gpuseg_ros2::CallbackGroup group(node, client, detector());
	const rclcpp::QoS qos(1);
	Functions f;
	bool received = false;
	const std::array<rclcpp::Subscription<Word>::SharedPtr, 14> subscriptions = {
		group.subscribe<Word>("w", qos, [](const Word &) { calls++; }),
		group.subscribe<Word>("w", qos, [](const Word &, const MessageInfo &) { calls++; }),
		group.subscribe<Word>("w", qos, [](std::unique_ptr<Word> word) { calls += word->data; }),
		group.subscribe<Word>("w", qos, [](std::unique_ptr<Word>, const MessageInfo &) { calls++; }),
		group.subscribe<Word>("w", qos, [](std::shared_ptr<Word> word) { calls += word->data; }),
		group.subscribe<Word>("w", qos, [](std::shared_ptr<Word>, const MessageInfo &) { calls++; }),
		group.subscribe<Word>("w", qos, [](std::shared_ptr<const Word> word) { calls += word->data; }),
		group.subscribe<Word>("w", qos, [](std::shared_ptr<const Word>, const MessageInfo &) { calls++; }),
		group.subscribe<Word>("w", qos, [](const std::shared_ptr<const Word> &word) { calls += word->data; }),
		group.subscribe<Word>("w", qos,
				      [received](const Word &) mutable {
					      calls += received ? 0 : 1;
					      received = true;
				      }),
		group.subscribe<Word>("w", qos, on_word),
		group.subscribe<Word>("w", qos, f),
		group.subscribe<Word>("w", qos, std::bind(&Functions::plain, &f, _1)),
		group.subscribe<Word>("w", qos, std::bind(&Functions::informed, &f, _1, _2)),
	};
	const std::array<rclcpp::TimerBase::SharedPtr, 3> timers = {
		group.timer(50ms, [] { calls++; }),
		group.timer(50ms, [](rclcpp::TimerBase &timer) { timer.cancel(); }),
		group.timer(50ms, std::bind(&Functions::tick, &f, _1)),
	};
	const std::size_t jobs = subscriptions.size() + timers.size();

	calls = 0;
	for (const auto &s : subscriptions)
		s->receive(Word{1}, rmw_message_info_t{0, true});
	CHECK_EQ(calls, subscriptions.size());
	for (const auto &t : timers)
		t->expire(gpuseg::now());
	CHECK_EQ(calls, subscriptions.size() + 2);
	CHECK(timers[1]->canceled);
	CHECK(fake_daemon_wait(&d, 4 * jobs, nullptr));
	CHECK_EQ(group.counters().jobs, jobs);
}

struct Picture { /* a type of the program, of images */
	std::int32_t sec = 0;
};

template <> struct rclcpp::TypeAdapter<Picture, Image> {
	using is_specialized = std::true_type;
	using custom_type = Picture;
	using ros_message_type = Image;
	static void convert_to_custom(const Image &from, Picture &to)
	{
		to.sec = from.header.stamp.sec;
	}
};

TEST(should_take_both_types_of_an_adapted_message)
{
	using Adapted = rclcpp::TypeAdapter<Picture, Image>;
	Daemon d;
	rclcpp::Node node("n");
	gpuseg::Client client(0, "t", d.dir);
	gpuseg_ros2::CallbackGroup group(node, client, detector());
	const rclcpp::QoS qos(1);
	std::int32_t sum = 0;
	const std::array<rclcpp::Subscription<Adapted>::SharedPtr, 4> subscriptions = {
		group.subscribe<Adapted>("p", qos, [&](const Picture &p) { sum += p.sec; }),
		group.subscribe<Adapted>(
			"p", qos, [&](std::unique_ptr<Picture> p, const rclcpp::MessageInfo &) { sum += p->sec; }),
		group.subscribe<Adapted>("p", qos, [&](const Image &i) { sum += i.header.stamp.sec; }),
		group.subscribe<Adapted>("p", qos, [&](std::shared_ptr<const Image> i) { sum += i->header.stamp.sec; }),
	};
	Image image;

	image.header.stamp = {7, 0};
	for (const auto &s : subscriptions)
		s->receive(image);
	CHECK_EQ(sum, 28);
	CHECK(fake_daemon_wait(&d, 16, nullptr));
}

TEST(should_make_every_request_a_job_and_not_respond_to_one_that_is_skipped)
{
	using Service = rclcpp::Service<Detect>;
	using Id = std::shared_ptr<rmw_request_id_t>;
	Daemon d;
	rclcpp::Node node("n");
	gpuseg::Client client(0, "t", d.dir);
	gpuseg_ros2::CallbackGroup group(node, client, detector());
	const std::array<Service::SharedPtr, 4> services = {
		group.service<Detect>(
			"s", [](std::shared_ptr<Detect::Request> request,
				std::shared_ptr<Detect::Response> response) { response->found = request->image; }),
		group.service<Detect>(
			"s", [](Id, std::shared_ptr<Detect::Request> request,
				std::shared_ptr<Detect::Response> response) { response->found = request->image; }),
		group.service<Detect>("s", [](Id, std::shared_ptr<Detect::Request>) {}), /* responds later */
		group.service<Detect>("s",
				      [](Service::SharedPtr service, Id id, std::shared_ptr<Detect::Request> request) {
					      Detect::Response response{request->image};

					      service->send_response(*id, response);
				      }),
	};
	const auto request = [&](const Service::SharedPtr &service, std::int64_t id) {
		service->callback(service, std::make_shared<rmw_request_id_t>(rmw_request_id_t{id}),
				  std::make_shared<Detect::Request>(Detect::Request{5}));
	};

	for (std::size_t i = 0; i < services.size(); i++) {
		CHECK(services[i]->group == group.callback_group());
		request(services[i], 40);
		CHECK_EQ(services[i]->responses.size(), i == 2 ? 0 : 1);
		CHECK(i == 2 || services[i]->responses[0].first == 40);
		CHECK(i == 2 || services[i]->responses[0].second.found == 5);
	}
	CHECK(fake_daemon_wait(&d, 16, nullptr));
	fake_daemon_grants(&d, FAKE_REFUSE, 0);
	for (const auto &service : services)
		request(service, 41);
	for (std::size_t i = 0; i < services.size(); i++)
		CHECK_EQ(services[i]->responses.size(), i == 2 ? 0 : 1);
	CHECK_EQ(group.counters().skipped, 4);
}

TEST(should_shorten_long_names_to_ones_that_differ_and_can_be_read)
{
	const std::string head = "/perception/object_recognition/detection/";
	const std::string a = gpuseg_ros2::detail::task_name(head + "left_of_two/centerpoint/lidar_centerpoint");
	const std::string b = gpuseg_ros2::detail::task_name(head + "right_of_it/centerpoint/lidar_centerpoint");
	const std::string fits(63, 'x');
	std::string umlauts; /* of two bytes each, at odd and at even places */

	CHECK_EQ(a.size(), 63);
	CHECK_EQ(b.size(), 63);
	CHECK(a != b);
	CHECK_CONTAINS(a.c_str(), "/perception/object_recogni~");
	CHECK_CONTAINS(a.c_str(), "~nterpoint/lidar_centerpoint");
	CHECK(gpuseg_ros2::detail::task_name(fits) == fits);
	CHECK(gpuseg_ros2::detail::task_name(fits + "x") != fits);
	for (int i = 0; i < 40; i++)
		umlauts += "\xc3\xa4";
	for (const std::string &name : {umlauts, "x" + umlauts}) {
		const std::string shortened = gpuseg_ros2::detail::task_name(name);
		const auto hash = shortened.find('~');

		CHECK(shortened.size() <= 63);
		CHECK_EQ((hash - (name[0] == 'x' ? 1 : 0)) % 2, 0); /* no half characters */
		CHECK_EQ((shortened.size() - hash - 10) % 2, 0);
	}
}

/* A time that the header read while the test took its own before and after. */
static void check_between(std::int64_t at_ns, std::int64_t from_ns, std::int64_t to_ns)
{
	CHECK(at_ns >= from_ns, "%" PRId64 " is before %" PRId64, at_ns, from_ns);
	CHECK(at_ns <= to_ns, "%" PRId64 " is after %" PRId64, at_ns, to_ns);
}

TEST(should_release_the_job_of_a_timer_when_it_was_due)
{
	Daemon d;
	rclcpp::Node node("n");
	gpuseg::Client client(0, "t", d.dir);
	gpuseg_ros2::CallbackGroup group(node, client, detector());
	auto timer = group.timer(4s, [] {});

	for (std::size_t i = 0; i < 4; i++) { /* in time, late, after the next expiry, and cancelled */
		const gpuseg::Nanoseconds late[] = {0ns, 60ms, 5s, 60ms};
		const std::int64_t before_ns = gpuseg_now_ns();
		const std::int64_t due_ns = before_ns - late[i].count();

		timer->canceled = i == 3;
		timer->expire(gpuseg::Nanoseconds(due_ns));
		const std::int64_t after_ns = gpuseg_now_ns();
		CHECK(fake_daemon_wait(&d, 4 * i + 4, nullptr));
		const std::int64_t release_ns = fake_daemon_record(&d, 4 * i).release_ns;
		if (i == 3)
			check_between(release_ns, before_ns, after_ns);
		else
			check_between(release_ns, due_ns - (after_ns - before_ns), due_ns);
		CHECK_EQ(group.counters().release_unknown, i == 3 ? 1 : 0);
	}
	timer->fails = true;
	timer->expire(gpuseg::now());
	CHECK_EQ(group.counters().release_unknown, 2);
	CHECK(fake_daemon_wait(&d, 20, nullptr));
}

TEST(should_count_the_expiries_of_a_timer_that_no_callback_served)
{
	Daemon d;
	rclcpp::Node node("n");
	gpuseg::Client client(0, "t", d.dir);
	gpuseg_ros2::CallbackGroup group(node, client, detector());
	auto timer = group.timer(4s, [] {});
	const gpuseg::Nanoseconds now = gpuseg::now();
	const std::pair<gpuseg::Nanoseconds, std::uint64_t> expiries[] = {
		{36s, 0}, {32s, 0}, {20s, 2}, {16s, 2}, {6s, 2} /* reset, between two expiries */, {2s, 2}};

	for (const auto &[ago, lost] : expiries) {
		timer->expire(now - ago);
		CHECK_EQ(group.counters().lost_expiries, lost);
	}
	CHECK_EQ(group.counters().jobs, 6);
}

TEST(should_release_the_job_of_a_message_when_it_was_sent_if_that_is_known)
{
	Daemon d;
	rclcpp::Node node("n");
	gpuseg::Client client(0, "t", d.dir);
	gpuseg_ros2::CallbackGroup group(node, client, detector());
	auto words = group.subscribe<Word>("w", rclcpp::QoS(1), [](const Word &) {});
	const std::int64_t day_from_ns = gpuseg_now_ns();
	const std::int64_t day_ns = node.get_clock()->now().nanoseconds();
	const std::int64_t day_to_ns = gpuseg_now_ns();
	const rmw_message_info_t unknown[] = {{0, false},	  /* not set */
					      {day_ns, true},	  /* garbage, within a process */
					      {-5, false},	  /* garbage */
					      {4711, false},	  /* garbage, or a clock that was never set */
					      {INT64_MAX, false}, /* garbage */
					      {day_ns + 3600000000000, false}, /* a clock that is ahead */
					      {day_ns - 60000000000, false}};  /* kept for late subscribers */
	std::size_t records = 4;

	const std::int64_t start_ns = gpuseg_now_ns();
	words->receive(Word(), rmw_message_info_t{day_ns - 30000000, false});
	const std::int64_t end_ns = gpuseg_now_ns();
	CHECK(fake_daemon_wait(&d, records, nullptr));
	check_between(fake_daemon_record(&d, 0).release_ns, day_from_ns - 31000000 - (end_ns - start_ns),
		      day_to_ns - 29000000); /* the two clocks may differ in rate */
	CHECK_EQ(group.counters().release_unknown, 0);
	for (const rmw_message_info_t &info : unknown) {
		const std::int64_t before_ns = gpuseg_now_ns();

		words->receive(Word(), info);
		const std::int64_t after_ns = gpuseg_now_ns();
		records += 4;
		CHECK(fake_daemon_wait(&d, records, nullptr));
		check_between(fake_daemon_record(&d, records - 4).release_ns, before_ns, after_ns);
	}
	CHECK_EQ(group.counters().release_unknown, std::size(unknown));
}

static Image image_of(std::int64_t stamp_ns)
{
	Image image;

	image.header.stamp = {(std::int32_t)(stamp_ns / 1000000000), (std::uint32_t)(stamp_ns % 1000000000)};
	return image;
}

TEST(should_not_make_data_look_younger_when_the_thread_is_held_up_between_two_clocks)
{
	Daemon d;
	rclcpp::Node node("n");
	gpuseg::Client client(0, "t", d.dir);
	gpuseg_ros2::CallbackGroup group(node, client, detector());
	auto images = group.subscribe<Image>("i", rclcpp::QoS(1), [](const Image &) {});
	const Image image = image_of(node.get_clock()->now().nanoseconds());
	const std::int64_t taken_ns = gpuseg_now_ns();

	node.get_clock()->before_now = [] { usleep(30000); };
	images->receive(image);
	CHECK(fake_daemon_wait(&d, 4, nullptr));
	check_between(fake_daemon_record(&d, 0).arg_ns, 1, taken_ns - 29000000);
}

TEST(should_give_no_stamp_in_simulated_time_or_by_a_clock_that_jumped_or_fails)
{
	Daemon d;
	rclcpp::Node node("n");
	gpuseg::Client client(0, "t", d.dir);
	gpuseg_ros2::CallbackGroup group(node, client, detector());
	auto images = group.subscribe<Image>("i", rclcpp::QoS(1), [](const Image &) {});
	auto timer = group.timer(50ms, [] {});
	const rclcpp::Clock::SharedPtr clock = node.get_clock();
	std::size_t records = 0;
	std::uint64_t unknown = 0;
	const auto stamped = [&](bool expected) {
		unknown += expected ? 0 : 1;
		records += 4;
		CHECK(fake_daemon_wait(&d, records, nullptr));
		CHECK_EQ(fake_daemon_record(&d, records - 4).arg_ns != 0, expected);
		CHECK_EQ(group.counters().stamp_unknown, unknown);
	};
	const Image image = image_of(clock->now().nanoseconds());

	images->receive(image);
	stamped(true);
	timer->expire(gpuseg::now());
	stamped(true);
	CHECK_EQ(fake_daemon_record(&d, 4).arg_ns, fake_daemon_record(&d, 4).release_ns);
	clock->simulated = true;
	images->receive(image);
	stamped(false);
	timer->expire(gpuseg::now());
	stamped(false);
	clock->simulated = false;
	clock->jumped_ns = -3600000000000; /* the message is of the future */
	images->receive(image);
	stamped(false);
	clock->jumped_ns = 59000000000;
	if (gpuseg_now_ns() > 90000000000) { /* data are no older than the machine */
		images->receive(image);
		stamped(true);
	}
	clock->jumped_ns = 61000000000; /* of a bag that is played without its clock */
	images->receive(image);
	stamped(false);
	clock->jumped_ns = 1000000000000000000; /* the message is older than the machine */
	images->receive(image);
	stamped(false);
	clock->jumped_ns = 0;
	clock->fails = true;
	images->receive(image);
	stamped(false);
}

/* As a container loads and unloads them; the fixture serves one connection at a time. */
TEST(should_let_components_of_a_container_share_a_connection)
{
	Daemon d;
	rclcpp::NodeOptions front, rear;

	CHECK_EQ(setenv("GPUSEG_DIR", d.dir, 1), 0);
	front.name = "front";
	front.overrides.emplace("gpuseg.priority", rclcpp::ParameterValue(std::int64_t{70}));
	rear.name = "rear";
	rear.overrides.emplace("gpuseg.priority", rclcpp::ParameterValue(std::int64_t{60}));
	auto first = std::make_unique<robot::Detector>(front);
	CHECK(std::string(d.last_open.name) == "/front");
	CHECK_EQ(d.last_open.priority, 70);
	auto second = std::make_unique<robot::Detector>(rear);
	CHECK(std::string(d.last_open.name) == "/rear");
	CHECK_EQ(d.last_open.priority, 60);
	CHECK_EQ(d.last_open.flags, GPUSEG_TASK_NO_OPTIMISTIC);
	first.reset();
	CHECK_EQ(d.closes, 1);
	first = std::make_unique<robot::Detector>(front);
	CHECK_EQ(d.opens, 3);
	second.reset();
	first.reset();
	CHECK_EQ(d.closes, 3);
	CHECK_EQ(unsetenv("GPUSEG_DIR"), 0);
}

TEST(should_say_on_diagnostics_what_became_of_the_callbacks_of_a_group)
{
	using Array = diagnostic_msgs::msg::DiagnosticArray;
	using Status = diagnostic_msgs::msg::DiagnosticStatus;
	Rig rig(detector());
	rig.await(true);
	const robot::Diagnostics diagnostics(rig.node, rig.group);
	const auto publisher = rclcpp::last_publisher<Array>();
	const auto said = [&](unsigned char level, const char *message, const char *jobs, const char *without) {
		diagnostics.timer()->expire(gpuseg::now());
		const Array &array = publisher->published.back();

		CHECK_EQ(array.status.size(), 1);
		CHECK(array.header.stamp.nanoseconds() > 0);
		CHECK_EQ(array.status[0].level, level);
		CHECK(array.status[0].name == "/n: gpuseg", "%s", array.status[0].name.c_str());
		CHECK(array.status[0].message == message, "%s", array.status[0].message.c_str());
		CHECK_EQ(array.status[0].values.size(), 10);
		CHECK(array.status[0].values[0].key == "jobs");
		CHECK(array.status[0].values[0].value == jobs, "%s", array.status[0].values[0].value.c_str());
		CHECK(array.status[0].values[1].key == "without_grant");
		CHECK(array.status[0].values[1].value == without, "%s", array.status[0].values[1].value.c_str());
	};

	CHECK(publisher->topic == "/diagnostics");
	CHECK_EQ(diagnostics.timer()->period.count(), 1000000000);
	CHECK(!diagnostics.timer()->group); /* the node's, so no job */
	rig.deliver();
	said(Status::OK, "0 callbacks skipped, 0 without a grant, 0 expiries lost", "1", "0");
	rig.lose_daemon();
	rig.deliver();
	said(Status::WARN, "0 callbacks skipped, 1 without a grant, 0 expiries lost", "2", "1");
	said(Status::OK, "0 callbacks skipped, 0 without a grant, 0 expiries lost", "2", "1"); /* over */
	CHECK_EQ(publisher->published.size(), 3);
}

static gpuseg_ros2::GroupOptions marked()
{
	gpuseg_ros2::GroupOptions choices;

	choices.segments = gpuseg_ros2::Segments::MARKED;
	return choices;
}

TEST(should_begin_and_end_the_segments_that_a_callback_marks)
{
	Rig rig(detector(), marked());

	rig.during = [&] {
		CHECK(rig.records(1) == "R");
		GPUSEG_SEGMENT(rig.group)
		{
			GPUSEG_SEGMENT(rig.group) /* within another, it is part of that */
			CHECK(rig.records(2) == "RB");
			CHECK(rig.records(2) == "RB");
		}
		CHECK(rig.records(3) == "RBE");
		GPUSEG_SEGMENT(rig.group)
		CHECK(rig.records(4) == "RBEB");
	};
	rig.deliver();
	CHECK(rig.records(6) == "RBEBEJ");
	rig.during = [&] {
		GPUSEG_SEGMENT(rig.group)
		throw std::out_of_range("of the callback");
	};
	try {
		rig.deliver();
		CHECK(false);
	} catch (const std::out_of_range &) {
		CHECK(rig.records(10) == "RBEBEJRBEJ");
	}
	rig.during = nullptr;
	rig.deliver();
	CHECK(rig.records(12) == "RBEBEJRBEJRJ"); /* a job without a segment */
}

TEST(should_take_a_mark_in_a_callback_that_is_a_segment_as_part_of_it)
{
	Rig rig(detector());
	bool ran = false;

	rig.during = [&] {
		GPUSEG_SEGMENT(rig.group)
		ran = true;
		CHECK(rig.records(2) == "RB");
	};
	rig.deliver();
	CHECK(ran);
	CHECK(rig.records(4) == "RBEJ");
}

TEST(should_skip_marked_segments_and_give_up_their_job_once)
{
	Rig rig(detector(), marked());
	int ran = 0, otherwise = 0;

	rig.during = [&] {
		for (int i = 0; i < 2; i++) {
			GPUSEG_SEGMENT(rig.group)
			ran++;
			else otherwise++;
		}
	};
	fake_daemon_grants(&rig.daemon, FAKE_REFUSE, 0);
	rig.deliver();
	CHECK_EQ(rig.called, 1);
	CHECK_EQ(ran, 0);
	CHECK_EQ(otherwise, 2);
	CHECK_EQ(rig.group.counters().skipped, 1);
	CHECK_EQ(rig.group.counters().refused, 1); /* jobs are counted */
	fake_daemon_grants(&rig.daemon, FAKE_GRANT, 0);
	rig.deliver();
	CHECK_EQ(ran, 2);
	CHECK(rig.records(10) == "RBBSRBEBEJ"); /* the first job is cancelled, once */
}

TEST(should_run_marked_segments_without_a_grant_while_the_daemon_is_lost)
{
	Rig rig(detector(), marked());
	int ran = 0;

	rig.during = [&] {
		GPUSEG_SEGMENT(rig.group)
		ran++;
		GPUSEG_SEGMENT(rig.group)
		ran++;
	};
	rig.lose_daemon();
	rig.deliver();
	CHECK_EQ(ran, 2);
	CHECK_EQ(rig.group.counters().daemon_lost, 1);
	CHECK_EQ(rig.group.counters().without_grant, 1);
	CHECK_EQ(rig.group.counters().skipped, 0);
}

TEST(should_not_touch_the_task_for_a_segment_that_is_in_no_callback_of_this_thread)
{
	Rig rig(detector(), marked());
	int ran = 0;
	const auto segment = [&] {
		GPUSEG_SEGMENT(rig.group)
		ran++;
	};

	segment();
	rig.during = [&] { std::thread(segment).join(); };
	rig.deliver();
	CHECK_EQ(ran, 2);
	CHECK(rig.records(2) == "RJ");
	CHECK_EQ(rig.group.counters().failed, 2);
	CHECK_CONTAINS(rig.node.get_logger().lines()[0].c_str(), "GPUSEG_SEGMENT is not in a callback");
}

static rclcpp::ParameterValue text(const std::string &value)
{
	return rclcpp::ParameterValue(value);
}

TEST(should_take_options_from_read_only_parameters_of_the_node)
{
	Daemon d;
	rclcpp::Node node("n");
	gpuseg::Client client(0, "t", d.dir);
	auto &parameters = *node.get_node_parameters_interface();
	gpuseg::TaskOptions options = detector();

	options.budget = 1500us;
	parameters.overrides.emplace("gpuseg.priority", rclcpp::ParameterValue(std::int64_t{42}));
	parameters.overrides.emplace("gpuseg.period", text("33.5ms"));
	for (int i = 0; i < 2; i++) { /* a lifecycle node that is configured twice */
		gpuseg_ros2::CallbackGroup group(node, client, options);
		auto timer = group.timer(50ms, [] {});

		CHECK_EQ(d.last_open.priority, 42);
		CHECK_EQ(d.last_open.period_ns, 33500000);
		CHECK_EQ(d.last_open.budget_ns, 1500000);
	}
	CHECK_EQ(parameters.declared.size(), 3);
	CHECK(parameters.declared.at("gpuseg.budget").first == text("1500us"));
	for (const auto &[name, parameter] : parameters.declared)
		CHECK(parameter.second.read_only, "%s", name.c_str());
	gpuseg_ros2::GroupOptions other;

	other.parameters = "gpuseg.second";
	options.name = "second";
	options.priority = 17;
	gpuseg_ros2::CallbackGroup second(node, client, options, other);
	auto timer = second.timer(50ms, [] {});

	CHECK_EQ(d.last_open.priority, 17);
	CHECK_EQ(d.last_open.period_ns, 50000000);
	CHECK_EQ(parameters.declared.size(), 6);
	other.parameters = "";
	options.name = "third";
	gpuseg_ros2::CallbackGroup third(node, client, options, other);
	CHECK_EQ(parameters.declared.size(), 6);
}

static std::string refusal(rclcpp::Node &node, gpuseg::Client &client, const gpuseg::TaskOptions &options)
{
	try {
		const gpuseg_ros2::CallbackGroup group(node, client, options);
	} catch (const std::invalid_argument &e) {
		return e.what();
	}
	return "none";
}

TEST(should_refuse_parameters_in_one_line_with_name_value_and_remedy)
{
	Daemon d;
	gpuseg::Client client(0, "t", d.dir);
	const struct {
		const char *name;
		rclcpp::ParameterValue value;
		const char *line;
	} wrong[] = {
		{"gpuseg.priority", rclcpp::ParameterValue(std::int64_t{100}),
		 "parameter gpuseg.priority of node /n is 100; give 1 to 99, 99 is highest, or 0 for best "
		 "effort"},
		{"gpuseg.priority", rclcpp::ParameterValue(std::int64_t{-1}), "is -1; give 1 to 99"},
		{"gpuseg.priority", text("high"), "is high; give 1 to 99"},
		{"gpuseg.period", rclcpp::ParameterValue(std::int64_t{33}),
		 "parameter gpuseg.period of node /n is 33; give a time with its unit, such as 250us, 33ms or "
		 "1.5s"},
		{"gpuseg.budget", text("5"), "parameter gpuseg.budget of node /n is 5; give a time"},
	};

	for (const auto &w : wrong) {
		rclcpp::Node node("n");

		node.get_node_parameters_interface()->overrides.emplace(w.name, w.value);
		const std::string line = refusal(node, client, detector());
		CHECK_CONTAINS(line.c_str(), w.line);
	}
	rclcpp::Node node("n"); /* two groups with one prefix */
	gpuseg_ros2::CallbackGroup first(node, client, detector());
	gpuseg::TaskOptions other = detector();

	other.priority = 17;
	const std::string line = refusal(node, client, other);
	CHECK_CONTAINS(line.c_str(),
		       "parameter gpuseg.priority of node /n is 70; but this group has 17; give each group of a node "
		       "its own GroupOptions::parameters");
	CHECK(refusal(node, client, detector()) == "none");
}

TEST(should_read_and_write_durations_as_every_other_part_does)
{
	const struct {
		const char *text;
		std::int64_t ns;
	} durations[] = {{"0s", 0},
			 {"250us", 250000},
			 {"1.5ms", 1500000},
			 {"33ms", 33000000},
			 {"0.000000001s", 1},
			 {"3600s", 3600000000000},
			 {"3600.1s", -1},
			 {"9999999999999s", -1},
			 {"99999999999999999999ns", -1},
			 {"0.5ns", -1},
			 {"1.0000000000s", -1},
			 {"33", -1},
			 {"1.5", -1},
			 {"1.ms", -1},
			 {".5ms", -1},
			 {"-1ms", -1},
			 {"1e3us", -1},
			 {"1min", -1},
			 {" 1.5 us ", 1500},
			 {"4\xc2\xb5s", 4000},
			 {"1ms x", -1},
			 {"   ", -1},
			 {"ms", -1},
			 {"", -1}};

	for (const auto &duration : durations)
		CHECK(gpuseg_ros2::detail::duration_ns(duration.text) == duration.ns, "%s", duration.text);
	for (const char *text : {"0s", "250us", "1500us", "33ms", "7ns", "2s"})
		CHECK(gpuseg_ros2::detail::duration_text(gpuseg_ros2::detail::duration_ns(text)) == text);
}

static const check_case cases[] = {
	CASE(should_make_every_message_a_job_with_the_stamp_of_its_header),
	CASE(should_take_the_period_from_the_timer_and_end_the_job_of_a_callback_that_throws),
	CASE(should_skip_a_callback_that_is_not_granted_in_time_and_cancel_its_job),
	CASE(should_run_a_callback_without_a_grant_after_a_timeout_if_that_was_chosen),
	CASE(should_count_a_job_that_proceeds_after_its_timeout),
	CASE(should_skip_the_callback_of_a_refused_job_and_cancel_that_job),
	CASE(should_run_callbacks_without_a_grant_while_the_daemon_is_lost_and_be_scheduled_by_the_next_one),
	CASE(should_leave_a_lost_daemon_to_the_library_by_default_and_count_that_no_grant_was_given),
	CASE(should_count_that_no_grant_was_given_to_a_task_that_the_next_daemon_refuses),
	CASE(should_skip_callbacks_while_the_daemon_is_lost_if_that_was_chosen),
	CASE(should_count_a_daemon_that_is_lost_in_a_callback_once),
	CASE(should_run_callbacks_of_a_client_that_was_dropped_and_count_it_as_failed),
	CASE(should_wait_for_the_callback_that_runs_when_the_group_is_destroyed_and_run_none_later),
	CASE(should_pass_the_exception_of_a_callback_on_unchanged_with_and_without_a_grant),
	CASE(should_serve_components_and_lifecycle_nodes_that_own_their_groups_and_let_them_go),
	CASE(should_make_a_group_anew_for_a_lifecycle_node_that_is_configured_again),
	CASE(should_take_messages_and_expiries_in_every_form_that_rclcpp_takes),
	CASE(should_take_both_types_of_an_adapted_message),
	CASE(should_make_every_request_a_job_and_not_respond_to_one_that_is_skipped),
	CASE(should_shorten_long_names_to_ones_that_differ_and_can_be_read),
	CASE(should_release_the_job_of_a_timer_when_it_was_due),
	CASE(should_count_the_expiries_of_a_timer_that_no_callback_served),
	CASE(should_release_the_job_of_a_message_when_it_was_sent_if_that_is_known),
	CASE(should_not_make_data_look_younger_when_the_thread_is_held_up_between_two_clocks),
	CASE(should_let_components_of_a_container_share_a_connection),
	CASE(should_give_no_stamp_in_simulated_time_or_by_a_clock_that_jumped_or_fails),
	CASE(should_begin_and_end_the_segments_that_a_callback_marks),
	CASE(should_take_a_mark_in_a_callback_that_is_a_segment_as_part_of_it),
	CASE(should_skip_marked_segments_and_give_up_their_job_once),
	CASE(should_run_marked_segments_without_a_grant_while_the_daemon_is_lost),
	CASE(should_not_touch_the_task_for_a_segment_that_is_in_no_callback_of_this_thread),
	CASE(should_say_on_diagnostics_what_became_of_the_callbacks_of_a_group),
	CASE(should_take_options_from_read_only_parameters_of_the_node),
	CASE(should_refuse_parameters_in_one_line_with_name_value_and_remedy),
	CASE(should_read_and_write_durations_as_every_other_part_does)};
CHECK_MAIN(cases)
