/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_boost.c - the scheduling policy of a thread inside and outside its windows, as the kernel reports it. Refusals
 * first.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "check.h"
#include "fixture.h"
#include "gpuseg.h"

#define CEILING 40
#define HIGHER 50

struct bench {
	struct fake_daemon d;
	gpuseg_client *client;
};

static struct bench bench;

static void start_with(uint32_t flags)
{
	struct gpuseg_connect_attr attr = GPUSEG_CONNECT_ATTR_INIT;

	fake_daemon_start(&bench.d);
	attr.dir = bench.d.dir;
	attr.flags = flags;
	CHECK_EQ(gpuseg_connect(&attr, &bench.client), 0);
}

static void start(void)
{
	start_with(0);
}

static void stop(void)
{
	gpuseg_disconnect(bench.client);
	fake_daemon_stop(&bench.d);
}

static struct gpuseg_task_attr boosted(const char *name, uint32_t ceiling)
{
	struct gpuseg_task_attr attr = GPUSEG_TASK_ATTR_INIT;

	attr.name = name;
	attr.priority = 30;
	attr.boost_priority = ceiling;
	return attr;
}

static gpuseg_task *open_task(const char *name, uint32_t ceiling)
{
	struct gpuseg_task_attr attr = boosted(name, ceiling);
	gpuseg_task *task;
	int ret = gpuseg_task_open(bench.client, &attr, &task);

	if (ret < 0)
		fprintf(stderr, "    %s\n", gpuseg_last_message(bench.client));
	CHECK_EQ(ret, 0);
	return task;
}

static struct gpuseg_counters counters(void)
{
	struct gpuseg_counters c = {.size = sizeof(c)};

	CHECK_EQ(gpuseg_get_counters(bench.client, &c), 0);
	return c;
}

static void check_sched_of(pid_t tid, int policy, int priority, int line)
{
	struct sched_param param = {0};
	int now = sched_getscheduler(tid);

	sched_getparam(tid, &param);
	if (now != policy || param.sched_priority != priority)
		check_fail(__FILE__, line, "policy of the thread", "policy %d priority %d, expected %d and %d", now,
			   param.sched_priority, policy, priority);
}
#define CHECK_FIFO(priority) check_sched_of(0, SCHED_FIFO, priority, __LINE__)
#define CHECK_NORMAL() check_sched_of(0, SCHED_OTHER, 0, __LINE__)

/* In a child, so that only the child loses its privileges. Returns the exit status of `run`. */
static void in_a_child(void (*run)(void))
{
	pid_t child = fork();
	int status;

	CHECK(child >= 0);
	if (child == 0) {
		alarm(CHECK_SECONDS);
		run();
		_exit(0);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* ---- refusals ---- */

TEST(should_refuse_a_boost_that_cannot_be)
{
	struct gpuseg_task_attr attr = boosted("t", 100);
	gpuseg_task *task;

	start();
	CHECK_EQ(gpuseg_task_open(bench.client, &attr, &task), -EINVAL);
	CHECK_CONTAINS(gpuseg_last_message(bench.client), "boost_priority is 100");
	attr.boost_priority = CEILING;
	attr.priority = 0;
	CHECK_EQ(gpuseg_task_open(bench.client, &attr, &task), -EINVAL);
	CHECK_CONTAINS(gpuseg_last_message(bench.client), "best effort");
	CHECK_EQ(bench.d.opens, 0);
	stop();
}

#define NOBODY 65534

/* Without CAP_SYS_NICE and without a limit that allows it. */
static bool as_root;
static void give_up_permission(void)
{
	const struct rlimit limit = {0, 0};

	CHECK_EQ(setrlimit(RLIMIT_RTPRIO, &limit), 0);
	as_root = geteuid() == 0;
	CHECK(!as_root || seteuid(NOBODY) == 0);
}

/* For cleaning up. */
static void take_rights_back(void)
{
	CHECK(!as_root || seteuid(0) == 0);
}

static void open_without_permission(void)
{
	struct gpuseg_task_attr attr = boosted("camera", CEILING);
	gpuseg_task *task;

	start();
	give_up_permission();
	CHECK_EQ(gpuseg_task_open(bench.client, &attr, &task), -EPERM);
	CHECK(task == NULL);
	CHECK_CONTAINS(gpuseg_last_message(bench.client), "task \"camera\": this thread may not run at SCHED_FIFO 40");
	CHECK_CONTAINS(gpuseg_last_message(bench.client), "RLIMIT_RTPRIO to 40");
	CHECK_EQ(bench.d.opens, 0);
	attr.flags = GPUSEG_TASK_BOOST_IF_PERMITTED;
	CHECK_EQ(gpuseg_task_open(bench.client, &attr, &task), 0);
	CHECK_EQ(bench.d.last_open.flags, 0); /* the daemon is told that the task has no boost */
	CHECK_EQ(gpuseg_begin(task), 0);
	CHECK_NORMAL();
	CHECK_EQ(gpuseg_end(task), 0);
	CHECK_EQ(counters().boosts, 0);
	CHECK_EQ(counters().boost_failures, 1);
	take_rights_back();
	stop();
}

TEST(should_refuse_the_task_without_permission_unless_told_otherwise)
{
	in_a_child(open_without_permission);
}

/* ---- all tests below need the permission ---- */

static void lose_permission_between_open_and_begin(void)
{
	struct gpuseg_task_attr attr = boosted("lenient", CEILING);
	gpuseg_task *strict, *lenient;

	start();
	strict = open_task("strict", CEILING);
	attr.flags = GPUSEG_TASK_BOOST_IF_PERMITTED;
	CHECK_EQ(gpuseg_task_open(bench.client, &attr, &lenient), 0);
	give_up_permission();
	CHECK_EQ(gpuseg_begin(strict), -EPERM);
	CHECK_CONTAINS(gpuseg_last_message(bench.client), "task \"strict\"");
	CHECK_EQ(gpuseg_end(strict), -EINVAL);
	CHECK_EQ(counters().records, 0);
	CHECK_EQ(gpuseg_begin(lenient), 0);
	CHECK_NORMAL();
	CHECK_EQ(gpuseg_end(lenient), 0);
	CHECK_EQ(counters().boost_failures, 2);
	take_rights_back();
	stop();
}

TEST(should_begin_nothing_when_permission_was_lost_after_open)
{
	in_a_child(lose_permission_between_open_and_begin);
}

TEST(should_be_fifo_inside_the_window_and_what_it_was_outside)
{
	gpuseg_task *task, *plain;

	start();
	task = open_task("camera", CEILING);
	CHECK_EQ(bench.d.last_open.flags, CEILING << GPUSEG_TASK_BOOST_SHIFT);
	CHECK_NORMAL();
	plain = open_task("plain", 0);
	CHECK_EQ(bench.d.last_open.flags, 0);
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(gpuseg_begin(task), 0);
		CHECK_FIFO(CEILING);
		CHECK_EQ(gpuseg_begin(task), -EALREADY);
		CHECK_FIFO(CEILING);
		CHECK_EQ(gpuseg_end_measured(task, -1), -EINVAL);
		CHECK_FIFO(CEILING);
		CHECK_EQ(gpuseg_end(task), 0);
		CHECK_NORMAL();
		CHECK_EQ(gpuseg_begin(plain), 0);
		CHECK_NORMAL();
		CHECK_EQ(gpuseg_end(plain), 0);
	}
	fake_daemon_pregrant(&bench.d, 0, true);
	CHECK_EQ(gpuseg_begin(task), 0);
	CHECK_EQ(counters().optimistic, 1);
	CHECK_FIFO(CEILING);
	CHECK_EQ(gpuseg_end_measured(task, 7), 0);
	CHECK_NORMAL();
	CHECK_EQ(counters().boosts, 4);
	CHECK_EQ(counters().boost_failures, 0);
	stop();
}

TEST(should_give_back_exactly_what_the_thread_had)
{
	static const struct {
		int policy, priority, inside_policy, inside_priority;
	} before[] = {{SCHED_BATCH, 0, SCHED_FIFO, CEILING},
		      {SCHED_RR, CEILING, SCHED_FIFO, CEILING},
		      {SCHED_RR, CEILING - 1, SCHED_FIFO, CEILING},
		      {SCHED_FIFO, 1, SCHED_FIFO, CEILING},
		      /* never less than it has */
		      {SCHED_FIFO, CEILING, SCHED_FIFO, CEILING},
		      {SCHED_FIFO, CEILING + 1, SCHED_FIFO, CEILING + 1},
		      {SCHED_RR, CEILING + 1, SCHED_RR, CEILING + 1}};
	const struct sched_param normal = {0};
	gpuseg_task *task;

	start();
	task = open_task("camera", CEILING);
	for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); i++) {
		struct sched_param param = {.sched_priority = before[i].priority};

		CHECK_EQ(sched_setscheduler(0, before[i].policy | SCHED_RESET_ON_FORK, &param), 0);
		CHECK_EQ(gpuseg_begin(task), 0);
		check_sched_of(0, before[i].inside_policy | SCHED_RESET_ON_FORK, before[i].inside_priority, __LINE__);
		CHECK_EQ(gpuseg_end(task), 0);
		check_sched_of(0, before[i].policy | SCHED_RESET_ON_FORK, before[i].priority, __LINE__);
	}
	CHECK_EQ(sched_setscheduler(0, SCHED_OTHER, &normal), 0);
	CHECK_EQ(setpriority(PRIO_PROCESS, 0, 5), 0);
	CHECK_EQ(gpuseg_begin(task), 0);
	CHECK_EQ(gpuseg_end(task), 0);
	errno = 0;
	CHECK_EQ(getpriority(PRIO_PROCESS, 0), 5);
	CHECK_EQ(setpriority(PRIO_PROCESS, 0, 0), 0);
	stop();
}

TEST(should_come_back_from_every_begin_that_fails)
{
	gpuseg_task *task, *stubborn;
	struct gpuseg_task_attr attr = boosted("stubborn", CEILING);

	start();
	task = open_task("camera", CEILING);
	attr.timeout_ns = 2000000;
	attr.on_timeout = GPUSEG_ON_TIMEOUT_PROCEED;
	CHECK_EQ(gpuseg_task_open(bench.client, &attr, &stubborn), 0);
	fake_daemon_grants(&bench.d, FAKE_IGNORE, 0);
	CHECK_EQ(gpuseg_begin_try(task), -EAGAIN);
	CHECK_NORMAL();
	CHECK_EQ(gpuseg_begin_timed(task, 2000000), -ETIMEDOUT);
	CHECK_NORMAL();
	CHECK_EQ(gpuseg_begin(stubborn), GPUSEG_PROCEEDED);
	CHECK_FIFO(CEILING);
	CHECK_EQ(gpuseg_end(stubborn), 0);
	CHECK_NORMAL();
	fake_daemon_grants(&bench.d, FAKE_REFUSE, 0);
	CHECK_EQ(gpuseg_begin(task), -ECANCELED);
	CHECK_NORMAL();
	fake_daemon_grants(&bench.d, FAKE_GRANT, 0);
	CHECK_EQ(gpuseg_begin(task), 0);
	CHECK_FIFO(CEILING);
	fake_daemon_poison(&bench.d, GPUSEG_POISON_QUOTA);
	CHECK_EQ(gpuseg_end(task), -EPROTO);
	CHECK_NORMAL();
	CHECK_EQ(gpuseg_begin(task), -EPROTO);
	CHECK_NORMAL();
	stop();
	CHECK_NORMAL();
}

static void *kill_the_daemon(void *arg)
{
	(void)arg;
	CHECK(fake_daemon_wait(&bench.d, 1, NULL));
	fake_daemon_kill(&bench.d);
	return NULL;
}

TEST(should_come_back_when_the_daemon_dies_during_begin)
{
	pthread_t killer;
	gpuseg_task *task;

	start_with(GPUSEG_CONNECT_FAIL_IF_LOST);
	task = open_task("camera", CEILING);
	fake_daemon_grants(&bench.d, FAKE_IGNORE, 0);
	CHECK_EQ(pthread_create(&killer, NULL, kill_the_daemon, NULL), 0);
	CHECK_EQ(gpuseg_begin(task), -ENOTCONN);
	CHECK_NORMAL();
	pthread_join(killer, NULL);
	CHECK_EQ(gpuseg_end(task), -EINVAL);
	stop();
}

TEST(should_come_back_at_the_end_of_a_window_that_lost_its_daemon)
{
	pthread_t killer;
	gpuseg_task *task;

	start();
	task = open_task("camera", CEILING);
	fake_daemon_grants(&bench.d, FAKE_IGNORE, 0);
	CHECK_EQ(pthread_create(&killer, NULL, kill_the_daemon, NULL), 0);
	CHECK_EQ(gpuseg_begin(task), 0);
	pthread_join(killer, NULL);
	CHECK_EQ(gpuseg_end(task), 0);
	CHECK_NORMAL();
	CHECK_EQ(gpuseg_begin(task), 0); /* nobody is there to whom the boost would matter */
	CHECK_NORMAL();
	CHECK_EQ(gpuseg_end(task), 0);
	CHECK_EQ(counters().unmanaged, 2);
	stop();
}

TEST(should_use_the_highest_boost_of_windows_that_overlap)
{
	gpuseg_task *low, *high, *plain;

	start();
	low = open_task("low", CEILING);
	high = open_task("high", HIGHER);
	plain = open_task("plain", 0);
	/* nested */
	CHECK_EQ(gpuseg_begin(low), 0);
	CHECK_EQ(gpuseg_begin(high), 0);
	CHECK_FIFO(HIGHER);
	CHECK_EQ(gpuseg_begin(plain), 0);
	CHECK_EQ(gpuseg_end(plain), 0);
	CHECK_FIFO(HIGHER);
	CHECK_EQ(gpuseg_end(high), 0);
	CHECK_FIFO(CEILING);
	CHECK_EQ(gpuseg_end(low), 0);
	CHECK_NORMAL();
	/* crossed */
	CHECK_EQ(gpuseg_begin(high), 0);
	CHECK_EQ(gpuseg_begin(low), 0);
	CHECK_FIFO(HIGHER);
	CHECK_EQ(gpuseg_end(high), 0);
	CHECK_FIFO(CEILING);
	/* an inner begin that fails leaves the outer window's boost */
	fake_daemon_grants(&bench.d, FAKE_IGNORE, 0);
	CHECK_EQ(gpuseg_begin_try(high), -EAGAIN);
	CHECK_FIFO(CEILING);
	CHECK_EQ(gpuseg_end(low), 0);
	CHECK_NORMAL();
	stop();
}

/* ---- other threads ---- */

struct hand_over {
	gpuseg_task *task;
	pthread_barrier_t begun, looked;
	pid_t tid;
	bool leave; /* the thread ends inside its window */
};

static void *begin_and_stay(void *arg)
{
	struct hand_over *h = arg;

	h->tid = gettid();
	CHECK_EQ(gpuseg_begin(h->task), 0);
	CHECK_FIFO(CEILING);
	if (h->leave)
		return NULL;
	pthread_barrier_wait(&h->begun);
	pthread_barrier_wait(&h->looked);
	CHECK_NORMAL();
	return NULL;
}

TEST(should_lower_the_thread_that_began_when_another_ends)
{
	struct hand_over h = {0};
	pthread_t thread;

	start();
	h.task = open_task("camera", CEILING);
	pthread_barrier_init(&h.begun, NULL, 2);
	pthread_barrier_init(&h.looked, NULL, 2);
	CHECK_EQ(pthread_create(&thread, NULL, begin_and_stay, &h), 0);
	pthread_barrier_wait(&h.begun);
	CHECK_NORMAL();
	check_sched_of(h.tid, SCHED_FIFO, CEILING, __LINE__);
	CHECK_EQ(gpuseg_end(h.task), 0);
	check_sched_of(h.tid, SCHED_OTHER, 0, __LINE__);
	CHECK_NORMAL();
	pthread_barrier_wait(&h.looked);
	pthread_join(thread, NULL);
	stop();
}

TEST(should_outlive_a_thread_that_ended_inside_its_window)
{
	struct hand_over h = {.leave = true};
	pthread_t thread;

	start();
	h.task = open_task("camera", CEILING);
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(pthread_create(&thread, NULL, begin_and_stay, &h), 0);
		pthread_join(thread, NULL);
		CHECK_EQ(gpuseg_begin(h.task), -EALREADY);
		CHECK_NORMAL();
		CHECK_EQ(gpuseg_end(h.task), 0);
		CHECK_NORMAL();
	}
	CHECK_EQ(gpuseg_begin(h.task), 0);
	CHECK_FIFO(CEILING);
	CHECK_EQ(gpuseg_end(h.task), 0);
	CHECK_NORMAL();
	CHECK_EQ(counters().boost_failures, 0);
	stop();
}

TEST(should_come_back_when_the_task_or_the_client_is_closed_inside_a_window)
{
	gpuseg_task *task;

	start();
	task = open_task("camera", CEILING);
	CHECK_EQ(gpuseg_begin(task), 0);
	CHECK_EQ(gpuseg_task_close(task), 0);
	CHECK_NORMAL();
	task = open_task("camera", CEILING);
	CHECK_EQ(gpuseg_begin(task), 0);
	CHECK_FIFO(CEILING);
	stop();
	CHECK_NORMAL();
}

TEST(should_not_boost_a_forked_child)
{
	gpuseg_task *task;
	pid_t child;
	int status;

	start();
	task = open_task("camera", CEILING);
	CHECK_EQ(gpuseg_begin(task), 0);
	child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		CHECK_NORMAL();
		CHECK_EQ(gpuseg_end(task), -EOWNERDEAD);
		CHECK_EQ(gpuseg_begin(task), -EOWNERDEAD);
		CHECK_EQ(gpuseg_disconnect(bench.client), 0);
		CHECK_NORMAL();
		_exit(0);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	CHECK_FIFO(CEILING);
	CHECK_EQ(gpuseg_end(task), 0);
	CHECK_NORMAL();
	stop();
}

TEST(should_boost_nothing_without_a_daemon)
{
	struct gpuseg_connect_attr connect = GPUSEG_CONNECT_ATTR_INIT;
	struct gpuseg_task_attr attr = boosted("camera", CEILING);
	gpuseg_client *client;
	gpuseg_task *task;

	connect.dir = "/nonexistent";
	connect.flags = GPUSEG_CONNECT_UNMANAGED_OK;
	CHECK_EQ(gpuseg_connect(&connect, &client), 0);
	CHECK_EQ(gpuseg_task_open(client, &attr, &task), 0);
	CHECK_EQ(gpuseg_begin(task), 0);
	CHECK_NORMAL();
	CHECK_EQ(gpuseg_end(task), 0);
	gpuseg_disconnect(client);
}

/* May this process raise itself? Not in every container, nor under emulation. */
static int permitted(void)
{
	const struct sched_param raised = {.sched_priority = HIGHER}, normal = {0};
	uint32_t attr[12] = {0};

	if (sched_setscheduler(0, SCHED_FIFO, &raised) < 0)
		return 0;
	/* qemu refuses system calls that it does not know, or answers for the wrong thread. */
	CHECK_EQ(sched_setscheduler(0, SCHED_OTHER, &normal), 0);
	return syscall(SYS_sched_getattr, 0, attr, sizeof(attr), 0) == 0;
}

static const struct check_case refusals[] = {CASE(should_refuse_a_boost_that_cannot_be),
					     CASE(should_refuse_the_task_without_permission_unless_told_otherwise),
					     CASE(should_boost_nothing_without_a_daemon)};
static const struct check_case cases[] = {
	CASE(should_begin_nothing_when_permission_was_lost_after_open),
	CASE(should_be_fifo_inside_the_window_and_what_it_was_outside),
	CASE(should_give_back_exactly_what_the_thread_had),
	CASE(should_come_back_from_every_begin_that_fails),
	CASE(should_come_back_when_the_daemon_dies_during_begin),
	CASE(should_come_back_at_the_end_of_a_window_that_lost_its_daemon),
	CASE(should_use_the_highest_boost_of_windows_that_overlap),
	CASE(should_lower_the_thread_that_began_when_another_ends),
	CASE(should_outlive_a_thread_that_ended_inside_its_window),
	CASE(should_come_back_when_the_task_or_the_client_is_closed_inside_a_window),
	CASE(should_not_boost_a_forked_child),
};

int main(int argc, char **argv)
{
	int ret = check_main(argc, argv, refusals, sizeof(refusals) / sizeof(refusals[0]));

	if (ret == 0 && !permitted())
		SKIP("SCHED_FIFO is not permitted here: what happens inside a window was not tested; raise "
		     "RLIMIT_RTPRIO");
	return ret ? ret : check_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
