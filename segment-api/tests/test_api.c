/* SPDX-License-Identifier: Apache-2.0 */
/* test_api.c - the public API against a daemon in a thread. Refusals first. */
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "../src/platform.h"
#include "check.h"
#include "fixture.h"
#include "gpuseg.h"

static gpuseg_client *connect_with(struct fake_daemon *d, uint32_t flags)
{
	struct gpuseg_connect_attr attr = GPUSEG_CONNECT_ATTR_INIT;
	gpuseg_client *client;
	int ret;

	attr.dir = d->dir;
	attr.name = "test";
	attr.flags = flags;
	ret = gpuseg_connect(&attr, &client);
	if (ret < 0)
		fprintf(stderr, "    %s\n", gpuseg_last_message(NULL));
	CHECK_EQ(ret, 0);
	CHECK_EQ(gpuseg_is_managed(client), 1);
	return client;
}

static gpuseg_client *connect_to(struct fake_daemon *d)
{
	return connect_with(d, 0);
}

static gpuseg_task *open_task(gpuseg_client *client, void (*adjust)(struct gpuseg_task_attr *))
{
	struct gpuseg_task_attr attr = GPUSEG_TASK_ATTR_INIT;
	gpuseg_task *task;
	int ret;

	attr.name = "camera";
	attr.priority = 70;
	if (adjust)
		adjust(&attr);
	ret = gpuseg_task_open(client, &attr, &task);
	if (ret < 0)
		fprintf(stderr, "    %s\n", gpuseg_last_message(client));
	CHECK_EQ(ret, 0);
	return task;
}

static struct gpuseg_counters counters_of(gpuseg_client *client)
{
	struct gpuseg_counters c = {.size = sizeof(c)};

	CHECK_EQ(gpuseg_get_counters(client, &c), 0);
	return c;
}

/*
 * On a busy machine a thread may not run for a second or two. So a bound on time is tried several times and must hold
 * once. Everything else, and this limit, must hold each time.
 */
enum { ATTEMPTS = 10 };
#define LIMIT_NS INT64_C(20000000000)

/* ---- refusals ---- */

TEST(should_refuse_to_connect_without_a_daemon)
{
	struct gpuseg_connect_attr attr = GPUSEG_CONNECT_ATTR_INIT;
	gpuseg_client *client = (gpuseg_client *)&attr;

	attr.dir = "/nonexistent";
	CHECK_EQ(gpuseg_connect(&attr, &client), -ENOTCONN);
	CHECK(client == NULL);
	CHECK_CONTAINS(gpuseg_last_message(NULL), "/nonexistent/gpuseg.sock");
	CHECK_CONTAINS(gpuseg_last_message(NULL), "gpuseg run");
	CHECK_EQ(gpuseg_connect(&attr, NULL), -EINVAL);
}

TEST(should_refuse_bad_connect_attributes)
{
	struct gpuseg_connect_attr attr = GPUSEG_CONNECT_ATTR_INIT;
	char long_dir[200], long_name[65];
	gpuseg_client *client;

	attr.flags = 0x80;
	CHECK_EQ(gpuseg_connect(&attr, &client), -EINVAL);
	attr.flags = 0;
	attr.size = 3;
	CHECK_EQ(gpuseg_connect(&attr, &client), -EINVAL);
	attr.size = sizeof(attr);
	memset(long_dir, 'a', sizeof(long_dir));
	long_dir[sizeof(long_dir) - 1] = '\0';
	attr.dir = long_dir;
	CHECK_EQ(gpuseg_connect(&attr, &client), -ENAMETOOLONG);
	memset(long_name, 'n', sizeof(long_name));
	long_name[64] = '\0';
	attr.name = long_name;
	CHECK_EQ(gpuseg_connect(&attr, &client), -EINVAL);
	CHECK_CONTAINS(gpuseg_last_message(NULL), "64 bytes");
}

TEST(should_accept_attributes_of_a_newer_program_only_if_the_new_fields_are_zero)
{
	struct {
		struct gpuseg_connect_attr known;
		uint64_t added;
	} attr = {.known = GPUSEG_CONNECT_ATTR_INIT, .added = 1};
	gpuseg_client *client;

	attr.known.size = sizeof(attr);
	attr.known.dir = "/nonexistent";
	CHECK_EQ(gpuseg_connect(&attr.known, &client), -E2BIG);
	attr.added = 0;
	CHECK_EQ(gpuseg_connect(&attr.known, &client), -ENOTCONN);
}

TEST(should_pass_on_the_refusal_of_the_daemon)
{
	struct gpuseg_connect_attr attr = GPUSEG_CONNECT_ATTR_INIT;
	struct gpuseg_task_attr task_attr = GPUSEG_TASK_ATTR_INIT;
	struct fake_daemon d;
	gpuseg_client *client;
	gpuseg_task *task;

	fake_daemon_start(&d);
	attr.dir = d.dir;
	d.refuse_type = GPUSEG_MSG_HELLO;
	d.refuse_status = -EPERM;
	CHECK_EQ(gpuseg_connect(&attr, &client), -EPERM);
	CHECK_CONTAINS(gpuseg_last_message(NULL), "refused by the test");
	d.refuse_type = GPUSEG_MSG_TASK_OPEN;
	d.refuse_status = -EDQUOT;
	client = connect_to(&d);
	task_attr.name = "greedy";
	CHECK_EQ(gpuseg_task_open(client, &task_attr, &task), -EDQUOT);
	CHECK(task == NULL);
	CHECK_CONTAINS(gpuseg_last_message(client), "task \"greedy\": not admitted");
	CHECK_EQ(strlen(gpuseg_last_message(NULL)), 0);
	d.refuse_status = -GPUSEG_ADMISSION_REFUSED;
	CHECK_EQ(gpuseg_task_open(client, &task_attr, &task), -GPUSEG_EADMISSION);
	CHECK_CONTAINS(gpuseg_last_message(client), "task \"greedy\": not admitted");
	gpuseg_disconnect(client);
	fake_daemon_stop(&d);
}

TEST(should_refuse_a_daemon_of_another_layout)
{
	struct gpuseg_connect_attr attr = GPUSEG_CONNECT_ATTR_INIT;
	struct fake_daemon d;
	gpuseg_client *client;

	fake_daemon_start(&d);
	attr.dir = d.dir;
	d.wrong_version = (GPUSEG_ABI_MAJOR + 1) << 16;
	CHECK_EQ(gpuseg_connect(&attr, &client), -EPROTONOSUPPORT);
	CHECK_CONTAINS(gpuseg_last_message(NULL), "layout 2.0");
	d.wrong_version = 0;
	d.session->magic++;
	CHECK_EQ(gpuseg_connect(&attr, &client), -EPROTONOSUPPORT);
	d.session->magic--;
	d.status->incarnation++;
	CHECK_EQ(gpuseg_connect(&attr, &client), -EPROTO);
	CHECK_CONTAINS(gpuseg_last_message(NULL), "another run");
	fake_daemon_stop(&d);
}

TEST(should_refuse_bad_task_attributes_by_name_and_value)
{
	struct gpuseg_task_attr attr;
	struct fake_daemon d;
	gpuseg_client *client;
	gpuseg_task *task;

	fake_daemon_start(&d);
	client = connect_to(&d);
#define REFUSED(field, value, text)                                                                                    \
	do {                                                                                                           \
		attr = (struct gpuseg_task_attr)GPUSEG_TASK_ATTR_INIT;                                                 \
		attr.name = "t";                                                                                       \
		attr.field = value;                                                                                    \
		CHECK_EQ(gpuseg_task_open(client, &attr, &task), -EINVAL);                                             \
		CHECK(task == NULL);                                                                                   \
		CHECK_CONTAINS(gpuseg_last_message(client), text);                                                     \
	} while (0)
	REFUSED(name, NULL, "name has 0 bytes");
	REFUSED(name, "", "name has 0 bytes");
	REFUSED(priority, 100, "priority is 100");
	REFUSED(priority, (uint32_t)-5, "priority is -5, gpu_priority 0;");
	REFUSED(boost_priority, (uint32_t)-5, "boost_priority is -5;");
	REFUSED(gpu_priority, 1, "best effort");
	REFUSED(gpu, GPUSEG_GPUS_MAX, "gpu is 16");
	REFUSED(flags, 4, "flags are 0x4");
	REFUSED(period_ns, -1, "period -1");
	REFUSED(budget_ns, INT64_MIN, "negative");
	REFUSED(timeout_ns, -5, "timeout -5");
	REFUSED(on_timeout, 2, "on_timeout is 2");
	REFUSED(on_overrun, 5, "on_overrun is 5");
	REFUSED(partition, 256, "partition is 256");
	REFUSED(weight, 10001, "weight 10001");
	REFUSED(window_ns, -1, "window is -1");
	REFUSED(boost_priority, 1, "boost_priority is 1 but priority 0");
	REFUSED(size, 8, "size 8");
#undef REFUSED
	attr = (struct gpuseg_task_attr)GPUSEG_TASK_ATTR_INIT;
	attr.name = "t";
	attr.period_ns = 10000000;
	attr.deadline_ns = 10000001;
	CHECK_EQ(gpuseg_task_open(client, &attr, &task), -EINVAL);
	CHECK_CONTAINS(gpuseg_last_message(client), "deadline is 10000001 ns; give at most the period, 10000000 ns");
	CHECK_EQ(gpuseg_task_open(client, NULL, &task), -EINVAL);
	CHECK_EQ(d.opens, 0);
	gpuseg_disconnect(client);
	fake_daemon_stop(&d);
}

TEST(should_refuse_begin_twice_and_end_without_begin)
{
	struct fake_daemon d;
	gpuseg_client *client;
	gpuseg_task *task;

	fake_daemon_start(&d);
	client = connect_to(&d);
	task = open_task(client, NULL);
	CHECK_EQ(gpuseg_end(task), -EINVAL);
	CHECK_EQ(gpuseg_begin(task), 0);
	CHECK_EQ(gpuseg_begin(task), -EALREADY);
	CHECK_EQ(gpuseg_end_measured(task, -1), -EINVAL);
	CHECK_EQ(gpuseg_end(task), 0);
	CHECK_EQ(gpuseg_end(task), -EINVAL);
	CHECK_EQ(gpuseg_begin_timed(task, 0), -EINVAL);
	CHECK_EQ(gpuseg_hint(task, -1), -EINVAL);
	CHECK_EQ(gpuseg_hint(task, gpuseg_now_ns() + 11000000000), -EINVAL);
	CHECK_EQ(gpuseg_job_release(task, INT64_MAX), -EINVAL);
	CHECK_EQ(gpuseg_job_release_stamped(task, 0, -1), -EINVAL);
	CHECK(strstr(gpuseg_last_message(client), "stamp is -1 ns"));
	CHECK_EQ(gpuseg_job_release_stamped(task, 0, gpuseg_now_ns() + 11000000000), -EINVAL);
	CHECK(fake_daemon_wait(&d, 2, NULL));
	CHECK_EQ(fake_daemon_records(&d), 2);
	gpuseg_disconnect(client);
	fake_daemon_stop(&d);
}

/* ---- records ---- */

static void describe(struct gpuseg_task_attr *attr)
{
	attr->gpu_priority = 71;
	attr->gpu = 2;
	attr->flags = GPUSEG_TASK_ALWAYS_WAIT;
	attr->period_ns = 80000000;
	attr->deadline_ns = 60000000;
	attr->budget_ns = 5000000;
	attr->window_ns = 9000001;
	attr->on_overrun = GPUSEG_ON_OVERRUN_SUSPEND;
	attr->partition = 7;
	attr->weight = 300;
}

TEST(should_send_every_task_attribute)
{
	struct fake_daemon d;
	gpuseg_client *client;
	gpuseg_task *task;

	fake_daemon_start(&d);
	client = connect_to(&d);
	task = open_task(client, describe);
	CHECK(strcmp(d.last_open.name, "camera") == 0);
	CHECK_EQ(d.last_open.priority, 70);
	CHECK_EQ(d.last_open.gpu_priority, 71);
	CHECK_EQ(d.last_open.gpu, 2);
	CHECK_EQ(d.last_open.flags, GPUSEG_TASK_NO_OPTIMISTIC);
	CHECK_EQ(d.last_open.period_ns, 80000000);
	CHECK_EQ(d.last_open.deadline_ns, 60000000);
	CHECK_EQ(d.last_open.budget_ns, 5000000);
	CHECK_EQ(d.last_open.window_us, 9001);
	CHECK_EQ(d.last_open.overrun, GPUSEG_OVERRUN_SUSPEND);
	CHECK_EQ(d.last_open.partition, 7);
	CHECK_EQ(d.last_open.weight, 300);
	CHECK_EQ(gpuseg_task_close(task), 0);
	CHECK_EQ(d.closes, 1);
	CHECK_EQ(gpuseg_task_close(NULL), 0);
	gpuseg_disconnect(client);
	fake_daemon_stop(&d);
}

TEST(should_tell_only_a_daemon_that_knows_it_which_sample_a_job_has)
{
	const uint32_t versions[] = {GPUSEG_ABI_VERSION, GPUSEG_ABI_MAJOR << 16 | 10};

	for (int i = 0; i < 2; i++) {
		struct gpuseg_record r;
		struct fake_daemon d;
		gpuseg_client *client;
		gpuseg_task *task;
		int64_t now = gpuseg_now_ns();

		fake_daemon_start(&d);
		__atomic_store_n(&d.session->version, versions[i], __ATOMIC_RELEASE);
		client = connect_to(&d);
		task = open_task(client, NULL);
		CHECK_EQ(gpuseg_job_release_sample(task, now - 1, -1, 7), -EINVAL);
		CHECK_EQ(gpuseg_job_release_sample(task, now - 1, now - 2, UINT64_MAX), 0);
		CHECK_EQ(gpuseg_job_release_sample(task, now - 1, now - 2, 0), 0);
		CHECK_EQ(gpuseg_job_end(task), 0);
		CHECK(fake_daemon_wait(&d, 3, NULL));
		r = fake_daemon_record(&d, 0);
		CHECK_EQ(r.kind, GPUSEG_RECORD_RELEASE);
		CHECK_EQ(r.release_ns, now - 1);
		CHECK_EQ(r.arg_ns, now - 2);
		CHECK(r.sample == (i == 0 ? UINT64_MAX : 0));
		CHECK_EQ(fake_daemon_record(&d, 1).sample, 0);
		CHECK_EQ(fake_daemon_record(&d, 2).sample, 0);
		gpuseg_disconnect(client);
		CHECK(!d.sequence_broken);
		fake_daemon_stop(&d);
	}
}

TEST(should_cancel_a_job_once_and_tell_only_a_daemon_that_knows_it)
{
	const uint32_t versions[] = {GPUSEG_ABI_VERSION, GPUSEG_ABI_MAJOR << 16 | 11};

	for (int i = 0; i < 2; i++) {
		const size_t told = i == 0 ? 1 : 0;
		struct gpuseg_record r;
		struct fake_daemon d;
		gpuseg_client *client;
		gpuseg_task *task;
		int64_t now = gpuseg_now_ns();

		fake_daemon_start(&d);
		__atomic_store_n(&d.session->version, versions[i], __ATOMIC_RELEASE);
		client = connect_to(&d);
		task = open_task(client, NULL);
		CHECK_EQ(gpuseg_job_release(task, now - 1), 0);
		CHECK_EQ(gpuseg_job_cancel(task), 0);
		CHECK_EQ(gpuseg_begin(task), 0);
		CHECK_EQ(gpuseg_job_cancel(task), -EALREADY);
		CHECK_CONTAINS(gpuseg_last_message(client), "call gpuseg_end() first");
		CHECK_EQ(gpuseg_end(task), 0);
		CHECK(fake_daemon_wait(&d, 3 + told, NULL));
		CHECK_EQ(fake_daemon_records(&d), 3 + told);
		r = fake_daemon_record(&d, 1);
		CHECK_EQ(r.kind, told ? GPUSEG_RECORD_JOB_END : GPUSEG_RECORD_BEGIN);
		CHECK_EQ(r.flags & GPUSEG_FLAG_CANCELLED, told ? GPUSEG_FLAG_CANCELLED : 0);
		CHECK_EQ(r.arg_ns, 0);
		CHECK_EQ(fake_daemon_record(&d, 1 + told).release_ns, 0); /* the begin is no part of that job */
		gpuseg_disconnect(client);
		CHECK(!d.sequence_broken);
		fake_daemon_stop(&d);
	}
}

TEST(should_record_a_job_exactly)
{
	struct gpuseg_record r;
	struct fake_daemon d;
	gpuseg_client *client;
	gpuseg_task *task;
	int64_t before, release;

	fake_daemon_start(&d);
	client = connect_to(&d);
	task = open_task(client, NULL);
	before = gpuseg_now_ns();
	release = before - 1000;
	CHECK_EQ(gpuseg_hint(task, before + 5000000), 0);
	CHECK_EQ(gpuseg_job_release(task, release), 0);
	for (int i = 0; i < 2; i++) {
		CHECK_EQ(gpuseg_begin(task), 0);
		CHECK_EQ(gpuseg_end_measured(task, 1234 * i), 0);
	}
	CHECK_EQ(gpuseg_job_end(task), 0);
	CHECK_EQ(GPUSEG_BEGIN(task), 0);
	CHECK_EQ(GPUSEG_END(task), 0);
	CHECK_EQ(gpuseg_job_release_stamped(task, release, before - 5000), 0);
	CHECK(fake_daemon_wait(&d, 10, NULL));
	{
		const struct {
			int kind, ticket;
			int64_t release_ns, arg_ns;
		} expected[] = {{GPUSEG_RECORD_HINT, 0, 0, before + 5000000},
				{GPUSEG_RECORD_RELEASE, 0, release, 0},
				{GPUSEG_RECORD_BEGIN, 1, release, 0},
				{GPUSEG_RECORD_END, 1, 0, 0},
				{GPUSEG_RECORD_BEGIN, 2, release, 0},
				{GPUSEG_RECORD_END, 2, 0, 1234},
				{GPUSEG_RECORD_JOB_END, 0, 0, 0},
				{GPUSEG_RECORD_BEGIN, 3, 0, 0},
				{GPUSEG_RECORD_END, 3, 0, 0},
				{GPUSEG_RECORD_RELEASE, 0, release, before - 5000}};

		for (size_t i = 0; i < 10; i++) {
			r = fake_daemon_record(&d, i);
			CHECK_EQ(r.kind, expected[i].kind);
			CHECK_EQ(r.flags, 0);
			CHECK_EQ(r.task_id, 1);
			CHECK_EQ(r.seq, i + 1);
			CHECK_EQ(r.ticket, expected[i].ticket);
			CHECK_EQ(r.release_ns, expected[i].release_ns);
			CHECK_EQ(r.arg_ns, expected[i].arg_ns);
			CHECK(r.time_ns >= before && r.time_ns <= gpuseg_now_ns());
			CHECK_EQ(r.tid, gettid());
			CHECK_EQ(r.reserved0, 0);
			CHECK_EQ(r.sample, 0);
		}
	}
	CHECK_EQ(counters_of(client).records, 10);
	CHECK_EQ(d.session->records, 10);
	gpuseg_disconnect(client);
	CHECK(!d.sequence_broken);
	fake_daemon_stop(&d);
}

TEST(should_not_wait_when_pre_granted_unless_told_to)
{
	struct fake_daemon d;
	struct gpuseg_record r;
	gpuseg_client *client;
	gpuseg_task *task, *careful;

	fake_daemon_start(&d);
	fake_daemon_grants(&d, FAKE_IGNORE, 0);
	client = connect_to(&d);
	task = open_task(client, NULL);
	careful = open_task(client, describe);
	fake_daemon_pregrant(&d, 0, true);
	fake_daemon_pregrant(&d, 1, true);
	CHECK_EQ(gpuseg_begin(task), 0);
	CHECK(fake_daemon_wait(&d, 1, &r));
	CHECK_EQ(r.flags, GPUSEG_FLAG_OPTIMISTIC);
	CHECK_EQ(gpuseg_end(task), 0);
	CHECK_EQ(gpuseg_begin_try(task), 0);
	CHECK_EQ(gpuseg_end(task), 0);
	CHECK_EQ(gpuseg_begin_try(careful), -EAGAIN);
	CHECK_EQ(counters_of(client).optimistic, 2);
	CHECK_EQ(counters_of(client).begins, 2);
	gpuseg_disconnect(client);
	fake_daemon_stop(&d);
}

/* ---- waiting ---- */

static void impatient(struct gpuseg_task_attr *attr)
{
	attr->timeout_ns = 30000000;
	attr->spin_count = GPUSEG_SPIN_NONE;
}

static void determined(struct gpuseg_task_attr *attr)
{
	impatient(attr);
	attr->on_timeout = GPUSEG_ON_TIMEOUT_PROCEED;
}

TEST(should_sleep_until_the_late_grant)
{
	struct fake_daemon d;
	gpuseg_client *client;
	gpuseg_task *task;

	fake_daemon_start(&d);
	fake_daemon_grants(&d, FAKE_DELAY, 27000000);
	client = connect_to(&d);
	task = open_task(client, NULL);
	/*
	 * Tried more than four times if a stall lets a grant come before the task sleeps, or before the wake-up.
	 */
	for (int i = 0; i < 4 || (i < 40 && (counters_of(client).slept < 4 || fake_daemon_wakes(&d) == 0)); i++) {
		int64_t started = gpuseg_now_ns();

		CHECK_EQ(gpuseg_begin(task), 0);
		CHECK(gpuseg_now_ns() - started >= 27000000);
		CHECK_EQ(gpuseg_end(task), 0);
	}
	CHECK(counters_of(client).slept >= 4);
	CHECK_EQ(d.slots[0].waiting, 0);
	CHECK(fake_daemon_wakes(&d) >= 1); /* not only by the check of the socket every 20 ms */
	gpuseg_disconnect(client);
	fake_daemon_stop(&d);
}

TEST(should_withdraw_a_segment_that_timed_out)
{
	struct fake_daemon d;
	struct gpuseg_record r;
	gpuseg_client *client;
	gpuseg_task *task;
	int64_t started;

	fake_daemon_start(&d);
	fake_daemon_grants(&d, FAKE_IGNORE, 0);
	client = connect_to(&d);
	task = open_task(client, impatient);
	started = gpuseg_now_ns();
	CHECK_EQ(gpuseg_begin(task), -ETIMEDOUT);
	CHECK(gpuseg_now_ns() - started >= 30000000);
	CHECK(fake_daemon_wait(&d, 2, &r));
	CHECK_EQ(r.kind, GPUSEG_RECORD_END);
	CHECK_EQ(r.flags, GPUSEG_FLAG_CANCELLED);
	CHECK_EQ(r.ticket, 1);
	CHECK_EQ(gpuseg_end(task), -EINVAL);
	started = gpuseg_now_ns();
	CHECK_EQ(gpuseg_begin_timed(task, 5000000), -ETIMEDOUT);
	CHECK(gpuseg_now_ns() - started >= 5000000);
	fake_daemon_grants(&d, FAKE_GRANT, 0);
	CHECK_EQ(gpuseg_begin_timed(task, LIMIT_NS), 0);
	CHECK(fake_daemon_wait(&d, 5, &r));
	CHECK_EQ(r.ticket, 3);
	CHECK_EQ(gpuseg_end(task), 0);
	CHECK_EQ(counters_of(client).timeouts, 2);
	gpuseg_disconnect(client);
	fake_daemon_stop(&d);
}

TEST(should_proceed_without_a_grant_if_told_to)
{
	struct fake_daemon d;
	struct gpuseg_record r;
	gpuseg_client *client;
	gpuseg_task *task;

	fake_daemon_start(&d);
	fake_daemon_grants(&d, FAKE_IGNORE, 0);
	client = connect_to(&d);
	task = open_task(client, determined);
	CHECK_EQ(gpuseg_begin(task), GPUSEG_PROCEEDED);
	CHECK(fake_daemon_wait(&d, 1, NULL));
	CHECK_EQ(fake_daemon_records(&d), 1);
	CHECK_EQ(gpuseg_end(task), 0);
	CHECK(fake_daemon_wait(&d, 2, &r));
	CHECK_EQ(r.kind, GPUSEG_RECORD_END);
	CHECK_EQ(r.flags, GPUSEG_FLAG_PROCEEDED);
	CHECK_EQ(gpuseg_begin_timed(task, 1000000), -ETIMEDOUT);
	CHECK(fake_daemon_wait(&d, 4, &r));
	CHECK_EQ(r.flags, GPUSEG_FLAG_CANCELLED);
	CHECK_EQ(counters_of(client).proceeded, 1);
	gpuseg_disconnect(client);
	fake_daemon_stop(&d);
}

/* The text is formatted when it is read: it must describe the latest failure, whatever was called in between. */
TEST(should_name_the_segment_that_was_not_begun)
{
	struct fake_daemon d;
	gpuseg_client *client;
	gpuseg_task *task;
	const char *text;

	fake_daemon_start(&d);
	fake_daemon_grants(&d, FAKE_IGNORE, 0);
	client = connect_to(&d);
	task = open_task(client, NULL);
	CHECK_EQ(gpuseg_begin_try(task), -EAGAIN);
	CHECK_EQ(gpuseg_begin_try(task), -EAGAIN);
	text = gpuseg_last_message(client);
	CHECK_EQ(strcmp(text, "segment 2 of task 1: not granted at once, the segment was withdrawn"), 0);
	CHECK(gpuseg_last_message(client) == text);
	CHECK_EQ(strcmp(text, "segment 2 of task 1: not granted at once, the segment was withdrawn"), 0);
	CHECK_EQ(strlen(gpuseg_last_message(NULL)), 0);

	CHECK_EQ(gpuseg_begin_try(task), -EAGAIN);
	CHECK_EQ(gpuseg_begin_timed(task, -5), -EINVAL); /* another failure, before the text was read */
	CHECK_CONTAINS(gpuseg_last_message(client), "-5 ns");

	CHECK_EQ(gpuseg_begin_try(task), -EAGAIN);
	fake_daemon_grants(&d, FAKE_GRANT, 0);
	CHECK_EQ(gpuseg_begin_timed(task, LIMIT_NS), 0);
	CHECK_EQ(gpuseg_end(task), 0);
	CHECK_CONTAINS(gpuseg_last_message(client), "segment 4 of task 1: not granted"); /* successes leave it */

	fake_daemon_grants(&d, FAKE_REFUSE, 0);
	CHECK_EQ(gpuseg_begin(task), -ECANCELED);
	CHECK_EQ(gpuseg_connect(NULL, NULL), -EINVAL); /* of another client: the one above is gone */
	CHECK_EQ(strlen(gpuseg_last_message(client)), 0);
	CHECK_CONTAINS(gpuseg_last_message(NULL), "no place for the client");
	CHECK_EQ(gpuseg_begin(task), -ECANCELED);
	CHECK_CONTAINS(gpuseg_last_message(client), "segment 7 of task 1: the daemon refused");
	gpuseg_disconnect(client);
	fake_daemon_stop(&d);
}

TEST(should_try_without_sleeping)
{
	struct fake_daemon d;
	struct gpuseg_record r;
	gpuseg_client *client;
	gpuseg_task *task;

	fake_daemon_start(&d);
	fake_daemon_grants(&d, FAKE_IGNORE, 0);
	client = connect_to(&d);
	task = open_task(client, NULL);
	CHECK_EQ(gpuseg_begin_try(task), -EAGAIN);
	CHECK(fake_daemon_wait(&d, 2, &r));
	CHECK_EQ(r.flags, GPUSEG_FLAG_CANCELLED);
	CHECK_EQ(counters_of(client).slept, 0);
	CHECK_EQ(counters_of(client).try_failures, 1);
	gpuseg_disconnect(client);
	fake_daemon_stop(&d);
}

TEST(should_report_a_refused_segment_without_ending_it)
{
	struct fake_daemon d;
	gpuseg_client *client;
	gpuseg_task *task;

	fake_daemon_start(&d);
	fake_daemon_grants(&d, FAKE_REFUSE, 0);
	client = connect_to(&d);
	task = open_task(client, NULL);
	CHECK_EQ(gpuseg_begin(task), -ECANCELED);
	fake_daemon_grants(&d, FAKE_GRANT, 0);
	CHECK_EQ(gpuseg_begin(task), 0);
	CHECK(fake_daemon_wait(&d, 2, NULL));
	CHECK_EQ(fake_daemon_record(&d, 1).kind, GPUSEG_RECORD_BEGIN);
	CHECK_EQ(fake_daemon_record(&d, 1).ticket, 2);
	CHECK_EQ(counters_of(client).refused, 1);
	gpuseg_disconnect(client);
	fake_daemon_stop(&d);
}

static void on_signal(int number)
{
	(void)number;
}

static void *signal_storm(void *arg)
{
	for (int i = 0; i < 50; i++) {
		pthread_kill(*(pthread_t *)arg, SIGUSR1);
		usleep(500);
	}
	return NULL;
}

TEST(should_survive_signals_while_waiting)
{
	struct sigaction action = {.sa_handler = on_signal};
	pthread_t self = pthread_self(), storm;
	struct fake_daemon d;
	gpuseg_client *client;
	gpuseg_task *task;
	int64_t started;

	sigaction(SIGUSR1, &action, NULL);
	fake_daemon_start(&d);
	fake_daemon_grants(&d, FAKE_IGNORE, 0);
	client = connect_to(&d);
	task = open_task(client, impatient);
	CHECK_EQ(pthread_create(&storm, NULL, signal_storm, &self), 0);
	started = gpuseg_now_ns();
	CHECK_EQ(gpuseg_begin(task), -ETIMEDOUT);
	CHECK(gpuseg_now_ns() - started >= 30000000);
	pthread_join(storm, NULL);
	gpuseg_disconnect(client);
	fake_daemon_stop(&d);
}

TEST(should_ring_only_a_sleeping_daemon)
{
	struct fake_daemon d;
	gpuseg_client *client;
	gpuseg_task *task;

	fake_daemon_start(&d);
	client = connect_to(&d);
	task = open_task(client, NULL);
	for (int i = 0; i < 20; i++) {
		CHECK_EQ(gpuseg_begin(task), 0);
		CHECK_EQ(gpuseg_end(task), 0);
	}
	CHECK_EQ(counters_of(client).bells, 0);
	fake_daemon_sleeps(&d, true);
	for (int i = 0; i < 20 || (i < 2000 && counters_of(client).bells == 0); i++) {
		usleep(2000); /* it falls asleep, if it gets a processor */
		CHECK_EQ(gpuseg_begin(task), 0);
		CHECK_EQ(gpuseg_end(task), 0);
	}
	CHECK(counters_of(client).bells > 0);
	CHECK_EQ(counters_of(client).bells, d.session->bells);
	gpuseg_disconnect(client);
	fake_daemon_stop(&d);
}

/* ---- faults ---- */

static void *kill_later(void *arg)
{
	usleep(30000);
	fake_daemon_kill(arg);
	return (void *)(intptr_t)gpuseg_now_ns();
}

static int64_t time_to_notice(void)
{
	struct fake_daemon d;
	gpuseg_client *client;
	gpuseg_task *task;
	pthread_t killer;
	void *killed;
	int64_t noticed;

	fake_daemon_start(&d);
	fake_daemon_grants(&d, FAKE_IGNORE, 0);
	client = connect_with(&d, GPUSEG_CONNECT_FAIL_IF_LOST);
	task = open_task(client, NULL);
	CHECK_EQ(pthread_create(&killer, NULL, kill_later, &d), 0);
	CHECK_EQ(gpuseg_begin(task), -ENOTCONN);
	noticed = gpuseg_now_ns();
	pthread_join(killer, &killed);
	printf("    noticed after %.1f ms\n", (double)(noticed - (intptr_t)killed) / 1e6);
	CHECK(noticed - (intptr_t)killed < LIMIT_NS);
	CHECK_CONTAINS(gpuseg_last_message(client), "gone");
	CHECK_EQ(gpuseg_is_managed(client), 0);
	CHECK_EQ(gpuseg_begin(task), -ENOTCONN);
	CHECK_EQ(gpuseg_hint(task, gpuseg_now_ns()), -ENOTCONN);
	CHECK_EQ(gpuseg_task_close(task), -ENOTCONN);
	gpuseg_disconnect(client);
	fake_daemon_stop(&d);
	return noticed - (intptr_t)killed;
}

/* Repeats a measurement until it is below the limit, so that all attempts but one may meet a stall. */
static bool once_below(int64_t limit_ns, int64_t (*measure)(void))
{
	for (int attempt = 0; attempt < ATTEMPTS; attempt++)
		if (measure() < limit_ns)
			return true;
	return false;
}

TEST(should_notice_a_dead_daemon_within_50_ms_while_waiting)
{
	CHECK(once_below(50000000, time_to_notice));
}

TEST(should_notice_a_dead_daemon_although_pre_granted)
{
	struct fake_daemon d;
	gpuseg_client *client;
	gpuseg_task *task;

	fake_daemon_start(&d);
	client = connect_with(&d, GPUSEG_CONNECT_FAIL_IF_LOST);
	task = open_task(client, NULL);
	fake_daemon_pregrant(&d, 0, true);
	CHECK_EQ(gpuseg_begin(task), 0);
	fake_daemon_kill(&d);
	usleep(60000); /* the heartbeat becomes stale */
	CHECK_EQ(gpuseg_end(task), -ENOTCONN);
	CHECK_EQ(gpuseg_begin(task), -ENOTCONN);
	gpuseg_disconnect(client);
	fake_daemon_stop(&d);
}

static bool managed_in_time(gpuseg_client *client)
{
	for (int i = 0; i < 30000 && !gpuseg_is_managed(client); i++)
		usleep(1000);
	return gpuseg_is_managed(client);
}

/*
 * A begin does not wait for the thread that makes the new connection, so where that stands still, the task is not
 * switched yet. Begins until it is, or is refused by the new daemon.
 */
static int begin_at_the_next(gpuseg_client *client, gpuseg_task *task)
{
	const int64_t limit_ns = now_ns() + LIMIT_NS;
	int begun;

	while ((begun = gpuseg_begin(task)) == -ENOTCONN && !strstr(gpuseg_last_message(client), "refused by") &&
	       now_ns() - limit_ns < 0)
		usleep(1000);
	return begun;
}

TEST(should_reconnect_to_a_new_daemon)
{
	struct gpuseg_task_status status = {.size = sizeof(status)};
	struct gpuseg_record last;
	struct fake_daemon d;
	gpuseg_client *client;
	gpuseg_task *camera, *lidar, *late;

	fake_daemon_start(&d);
	client = connect_with(&d, GPUSEG_CONNECT_FAIL_IF_LOST);
	camera = open_task(client, NULL);
	lidar = open_task(client, NULL);
	CHECK_EQ(gpuseg_begin(camera), 0);
	CHECK_EQ(gpuseg_end(camera), 0);
	CHECK_EQ(gpuseg_begin(lidar), 0);
	/* More than once, and with a task that has not reconnected in between. */
	for (int i = 0; i < 3; i++) {
		fake_daemon_kill(&d);
		usleep(60000);
		CHECK_EQ(gpuseg_is_managed(client), 0);
		CHECK_EQ(gpuseg_begin(camera), -ENOTCONN);
		fake_daemon_follow(&d);
		CHECK(managed_in_time(client));
		CHECK_EQ(d.opens, 2);
		CHECK_EQ(begin_at_the_next(client, camera), 0);
		CHECK_EQ(gpuseg_end(camera), 0);
		CHECK(fake_daemon_wait(&d, 2, &last));
		CHECK_EQ(last.kind, GPUSEG_RECORD_END);
		CHECK_EQ(last.ticket, 1);
		CHECK_EQ(last.seq, 2);
		CHECK(!d.sequence_broken);
	}
	CHECK_EQ(gpuseg_end(lidar), -ENOTCONN); /* the daemon that knew the segment has ended */
	CHECK_EQ(begin_at_the_next(client, lidar), 0);
	CHECK_EQ(gpuseg_end(lidar), 0);
	CHECK_EQ(gpuseg_get_task_status(camera, &status), 0);
	CHECK_EQ(status.tickets, 4);
	CHECK_EQ(counters_of(client).begins, 6);
	CHECK_EQ(counters_of(client).records, 3 + 2 + 2 + 4);
	late = open_task(client, NULL);
	CHECK_EQ(gpuseg_begin(late), 0);
	CHECK_EQ(gpuseg_task_close(late), 0);
	CHECK_EQ(gpuseg_task_close(lidar), 0);
	gpuseg_disconnect(client);
	fake_daemon_stop(&d);
}

static size_t mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	size_t lines = 0;
	int c;

	CHECK(f != NULL);
	while ((c = fgetc(f)) != EOF)
		lines += c == '\n';
	fclose(f);
	return lines;
}

static void outlive_daemons(struct fake_daemon *d, gpuseg_client *client, gpuseg_task *task, int count)
{
	for (int i = 0; i < count; i++) {
		const int64_t limit_ns = now_ns() + 30 * NS_PER_S;

		fake_daemon_kill(d);
		fake_daemon_follow(d);
		while (gpuseg_begin(task) != 0 || gpuseg_end(task) != 0 || d->opens == 0) {
			CHECK(now_ns() - limit_ns < 0, "%s", gpuseg_last_message(client));
			usleep(1000);
		}
	}
}

/*
 * What was freed may stay in caches of the C library, stacks as well as memory, so as many daemons come first. A
 * connection that is kept has some 750 bytes, and 2 mappings of its thread.
 */
#define BURST 24

TEST(should_not_grow_with_each_daemon)
{
	struct fake_daemon d;
	gpuseg_client *client;
	gpuseg_task *task;
	size_t heap, mapped;
	uint64_t begins;
	int64_t limit_ns;

	fake_daemon_start(&d);
	client = connect_with(&d, GPUSEG_CONNECT_FAIL_IF_LOST);
	task = open_task(client, NULL);
	outlive_daemons(&d, client, task, BURST);
	usleep(500000);
	heap = mallinfo2().uordblks; /* the sanitizers' heap says 0 always */
	mapped = mappings();
	begins = counters_of(client).begins;
	outlive_daemons(&d, client, task, BURST);
	CHECK(counters_of(client).begins >= begins + BURST);
	limit_ns = now_ns() + 30 * NS_PER_S;
	while (heap && (mallinfo2().uordblks > heap + BURST * 300 || mappings() > mapped + BURST)) {
		CHECK(now_ns() - limit_ns < 0, "heap grew from %zu to %zu, mappings from %zu to %zu", heap,
		      mallinfo2().uordblks, mapped, mappings());
		usleep(10000);
	}
	gpuseg_disconnect(client);
	fake_daemon_stop(&d);
}

TEST(should_leave_a_task_behind_that_the_next_daemon_refuses)
{
	struct fake_daemon d;
	gpuseg_client *client;
	gpuseg_task *task;

	fake_daemon_start(&d);
	client = connect_with(&d, GPUSEG_CONNECT_FAIL_IF_LOST);
	task = open_task(client, NULL);
	fake_daemon_kill(&d);
	d.refuse_type = GPUSEG_MSG_TASK_OPEN;
	d.refuse_status = -EACCES;
	fake_daemon_follow(&d);
	CHECK(managed_in_time(client));
	CHECK_EQ(begin_at_the_next(client, task), -ENOTCONN);
	CHECK_CONTAINS(gpuseg_last_message(client), "refused by the new daemon");
	CHECK_EQ(gpuseg_task_close(task), -ENOTCONN);
	gpuseg_disconnect(client);
	fake_daemon_stop(&d);
}

TEST(should_stay_away_when_it_is_to_connect_once)
{
	struct gpuseg_connect_attr attr = GPUSEG_CONNECT_ATTR_INIT;
	struct fake_daemon d;
	gpuseg_client *client;
	gpuseg_task *task;

	fake_daemon_start(&d);
	attr.dir = d.dir;
	attr.flags = GPUSEG_CONNECT_ONCE | GPUSEG_CONNECT_FAIL_IF_LOST;
	CHECK_EQ(gpuseg_connect(&attr, &client), 0);
	task = open_task(client, NULL);
	fake_daemon_kill(&d);
	fake_daemon_follow(&d);
	usleep(400000);
	CHECK_EQ(gpuseg_is_managed(client), 0);
	CHECK_EQ(gpuseg_begin(task), -ENOTCONN);
	CHECK_CONTAINS(gpuseg_last_message(client), "connect again");
	CHECK_EQ(d.opens, 0);
	gpuseg_disconnect(client);
	fake_daemon_stop(&d);
}

struct beginner {
	gpuseg_task *task;
	pthread_t thread;
	int64_t granted;
	bool stop;
};

static void *begin_and_end(void *arg)
{
	struct beginner *b = arg;

	while (!__atomic_load_n(&b->stop, __ATOMIC_ACQUIRE)) {
		int ret = gpuseg_begin(b->task);

		CHECK(ret == 0 || ret == -ENOTCONN);
		__atomic_fetch_add(&b->granted, ret == 0, __ATOMIC_RELAXED);
		ret = gpuseg_end(b->task);
		CHECK(ret == 0 || ret == -ENOTCONN || ret == -EINVAL);
		usleep(200);
	}
	return NULL;
}

/* More than ten, by this daemon. */
static void granted_by_this_daemon(struct beginner *b)
{
	const int64_t before = __atomic_load_n(&b->granted, __ATOMIC_RELAXED);
	const int64_t end_ns = gpuseg_now_ns() + LIMIT_NS;

	while (__atomic_load_n(&b->granted, __ATOMIC_RELAXED) - before <= 10 && gpuseg_now_ns() < end_ns)
		usleep(1000);
	CHECK(__atomic_load_n(&b->granted, __ATOMIC_RELAXED) - before > 10);
}

TEST(should_go_over_while_threads_begin_and_end)
{
	struct fake_daemon d;
	gpuseg_client *client;
	struct beginner beginners[3] = {0};

	fake_daemon_start_sized(&d, 64 << 20,
				false); /* not rolled: the test may stand still while its threads fill it */
	client = connect_with(&d, GPUSEG_CONNECT_FAIL_IF_LOST);
	for (int i = 0; i < 3; i++) {
		beginners[i].task = open_task(client, NULL);
		CHECK_EQ(pthread_create(&beginners[i].thread, NULL, begin_and_end, &beginners[i]), 0);
	}
	for (int i = 0; i < 4; i++) {
		usleep(200000);
		fake_daemon_kill(&d);
		fake_daemon_follow(&d);
		CHECK(managed_in_time(client));
	}
	for (int i = 0; i < 3; i++)
		granted_by_this_daemon(&beginners[i]);
	for (int i = 0; i < 3; i++) {
		__atomic_store_n(&beginners[i].stop, true, __ATOMIC_RELEASE);
		pthread_join(beginners[i].thread, NULL);
		CHECK_EQ(begin_at_the_next(client, beginners[i].task), 0);
	}
	CHECK(!d.sequence_broken);
	gpuseg_disconnect(client);
	fake_daemon_stop(&d);
}

static int64_t time_to_disconnect(void)
{
	struct fake_daemon d;
	gpuseg_client *client;
	int64_t start_ns, end_ns;

	fake_daemon_start(&d);
	client = connect_to(&d);
	open_task(client, NULL);
	fake_daemon_kill(&d);
	usleep(300000);
	start_ns = gpuseg_now_ns();
	gpuseg_disconnect(client);
	end_ns = gpuseg_now_ns();
	fake_daemon_stop(&d);
	CHECK(end_ns - start_ns < LIMIT_NS);
	return end_ns - start_ns;
}

TEST(should_disconnect_while_it_looks_for_a_daemon)
{
	CHECK(once_below(1000000000, time_to_disconnect));
}

TEST(should_outlast_a_daemon_that_is_only_stopped)
{
	struct fake_daemon d;
	gpuseg_client *client;
	gpuseg_task *task;

	fake_daemon_start(&d);
	client = connect_to(&d);
	task = open_task(client, NULL);
	pthread_mutex_lock(&d.mutex);
	d.beat = false;
	pthread_mutex_unlock(&d.mutex);
	usleep(70000);
	CHECK_EQ(gpuseg_begin(task), 0);
	CHECK_EQ(gpuseg_end(task), 0);
	gpuseg_disconnect(client);
	fake_daemon_stop(&d);
}

static void *poison_later(void *arg)
{
	usleep(20000);
	fake_daemon_poison(arg, GPUSEG_POISON_TICKET);
	return NULL;
}

TEST(should_tell_why_it_was_poisoned)
{
	struct fake_daemon d;
	gpuseg_client *client;
	gpuseg_task *task;
	pthread_t poisoner;

	fake_daemon_start(&d);
	fake_daemon_grants(&d, FAKE_IGNORE, 0);
	client = connect_to(&d);
	task = open_task(client, NULL);
	CHECK_EQ(pthread_create(&poisoner, NULL, poison_later, &d), 0);
	CHECK_EQ(gpuseg_begin(task), -EPROTO);
	pthread_join(poisoner, NULL);
	CHECK_CONTAINS(gpuseg_last_message(client), "old ticket");
	CHECK_EQ(gpuseg_begin_try(task), -EPROTO);
	for (uint32_t code = 1; code < 12; code++) {
		fake_daemon_poison(&d, code);
		CHECK_EQ(gpuseg_begin(task), -EPROTO);
		CHECK_CONTAINS(gpuseg_last_message(client), code < 10 ? "dropped this client for a" : "unknown reason");
	}
	gpuseg_disconnect(client);
	fake_daemon_stop(&d);
}

/* Number of six rolls, three of them announced ahead, that the appender had to map itself. */
static uint64_t follow_rolls(void)
{
	struct fake_daemon d;
	gpuseg_client *client;
	gpuseg_task *task;
	uint64_t remaps;
	size_t n = 0;

	fake_daemon_start(&d);
	client = connect_to(&d);
	task = open_task(client, NULL);
	for (int cycle = 0; cycle < 6; cycle++) {
		for (int i = 0; i < 10; i++, n += 2) {
			CHECK_EQ(gpuseg_begin(task), 0);
			CHECK_EQ(gpuseg_end(task), 0);
		}
		CHECK(fake_daemon_wait(&d, n, NULL));
		fake_daemon_roll(&d, cycle % 2 == 0);
	}
	CHECK_EQ(gpuseg_begin(task), 0);
	CHECK_EQ(gpuseg_end(task), 0);
	CHECK(fake_daemon_wait(&d, n + 2, NULL));
	CHECK(!d.sequence_broken);
	remaps = counters_of(client).remaps_inline;
	CHECK_EQ(counters_of(client).rolls, 6);
	CHECK_EQ(d.session->rolls, 6);
	CHECK_EQ(d.session->remaps_inline, remaps);
	gpuseg_disconnect(client);
	fake_daemon_stop(&d);
	return remaps;
}

TEST(should_follow_rolls_announced_ahead_and_late)
{
	uint64_t remaps = 0;

	/*
	 * The appender does not wait for the thread that maps ahead. If that did not run, the number is higher; if the
	 * appender did not, that thread has found the rolls that were not announced, and the number is lower.
	 */
	for (int attempt = 0; attempt < ATTEMPTS && remaps != 3; attempt++)
		remaps = follow_rolls();
	CHECK_EQ(remaps, 3);
}

TEST(should_stop_at_the_quota_and_go_on_after_a_roll)
{
	struct fake_daemon d;
	gpuseg_client *client;
	gpuseg_task *task;
	size_t n = 0;
	int ret = 0;

	fake_daemon_start_sized(&d, FIXTURE_FIRST_DATA + 4096, false);
	client = connect_to(&d);
	task = open_task(client, NULL);
	while (n < 1000) {
		ret = gpuseg_begin(task);
		if (ret < 0)
			break;
		n++;
		ret = gpuseg_end(task);
		if (ret < 0)
			break;
		n++;
	}
	CHECK_EQ(ret, -ENOSPC);
	CHECK_EQ(n, (4096 - 64 - 8) / 68);
	CHECK_EQ(counters_of(client).drops, 1);
	CHECK_EQ(d.session->drops, 1);
	CHECK_EQ(n % 2, 1); /* an END did not fit, and is kept */
	CHECK_EQ(gpuseg_begin(task), -ENOSPC);
	CHECK_EQ(gpuseg_end(task), -ENOSPC);
	CHECK(fake_daemon_wait(&d, n, NULL));
	fake_daemon_roll(&d, false);
	CHECK_EQ(gpuseg_end(task), 0);
	CHECK_EQ(gpuseg_end(task), -EINVAL);
	CHECK_EQ(gpuseg_begin(task), 0);
	CHECK(fake_daemon_wait(&d, n + 2, NULL));
	CHECK_EQ(fake_daemon_record(&d, n).kind, GPUSEG_RECORD_END);
	CHECK_EQ(fake_daemon_record(&d, n + 1).kind, GPUSEG_RECORD_BEGIN);
	CHECK(!d.sequence_broken);
	gpuseg_disconnect(client);
	fake_daemon_stop(&d);
}

TEST(should_refuse_handles_of_the_parent_after_fork)
{
	struct fake_daemon d;
	gpuseg_client *client;
	gpuseg_task *task;
	int status;
	pid_t child;

	fake_daemon_start(&d);
	client = connect_to(&d);
	task = open_task(client, NULL);
	CHECK_EQ(gpuseg_begin(task), 0);
	CHECK(fake_daemon_wait(&d, 1, NULL));
	child = fork();
	if (child == 0) {
		struct gpuseg_task_attr attr = GPUSEG_TASK_ATTR_INIT;
		struct gpuseg_connect_attr connect_attr = GPUSEG_CONNECT_ATTR_INIT;
		gpuseg_client *own;
		gpuseg_task *other;

		attr.name = "t";
		CHECK_EQ(gpuseg_end(task), -EOWNERDEAD);
		CHECK_EQ(gpuseg_begin(task), -EOWNERDEAD);
		CHECK_EQ(gpuseg_hint(task, gpuseg_now_ns()), -EOWNERDEAD);
		CHECK_CONTAINS(gpuseg_last_message(client), "after fork()");
		CHECK_EQ(gpuseg_task_open(client, &attr, &other), -EOWNERDEAD);
		CHECK_EQ(gpuseg_is_managed(client), 0);
		CHECK_EQ(gpuseg_task_close(task), -EOWNERDEAD);
		CHECK_EQ(gpuseg_disconnect(client), 0);
		connect_attr.dir = "/nonexistent";
		connect_attr.flags = GPUSEG_CONNECT_UNMANAGED_OK;
		CHECK_EQ(gpuseg_connect(&connect_attr, &own), 0);
		CHECK_EQ(gpuseg_task_open(own, &attr, &other), 0);
		CHECK_EQ(gpuseg_begin(other), 0);
		gpuseg_disconnect(own);
		_exit(0);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	CHECK_EQ(gpuseg_end(task), 0);
	CHECK(fake_daemon_wait(&d, 2, NULL));
	CHECK_EQ(fake_daemon_records(&d), 2);
	gpuseg_disconnect(client);
	fake_daemon_stop(&d);
}

TEST(should_run_unmanaged_when_allowed)
{
	struct gpuseg_connect_attr attr = GPUSEG_CONNECT_ATTR_INIT;
	struct gpuseg_task_attr bad = GPUSEG_TASK_ATTR_INIT;
	gpuseg_client *client;
	gpuseg_task *task;

	attr.dir = "/nonexistent";
	setenv("GPUSEG_UNMANAGED", "1", 1);
	CHECK_EQ(gpuseg_connect(&attr, &client), 0);
	gpuseg_disconnect(client);
	setenv("GPUSEG_UNMANAGED", "0", 1);
	CHECK_EQ(gpuseg_connect(&attr, &client), -ENOTCONN);
	unsetenv("GPUSEG_UNMANAGED");
	attr.flags = GPUSEG_CONNECT_UNMANAGED_OK;
	CHECK_EQ(gpuseg_connect(&attr, &client), 0);
	CHECK_EQ(gpuseg_is_managed(client), 0);
	CHECK_EQ(gpuseg_task_open(client, &bad, &task), -EINVAL);
	task = open_task(client, determined);
	CHECK_EQ(gpuseg_begin(task), 0);
	CHECK_EQ(gpuseg_begin(task), -EALREADY);
	CHECK_EQ(gpuseg_end(task), 0);
	CHECK_EQ(gpuseg_end(task), -EINVAL);
	CHECK_EQ(gpuseg_job_release(task, 0), 0);
	CHECK_EQ(gpuseg_hint(task, gpuseg_now_ns()), 0);
	CHECK_EQ(gpuseg_job_end(task), 0);
	CHECK_EQ(gpuseg_task_close(task), 0);
	CHECK_EQ(counters_of(client).begins, 1);
	gpuseg_disconnect(client);
	CHECK_EQ(gpuseg_disconnect(NULL), 0);
}

TEST(should_choose_the_runtime_directory_by_rule)
{
	char buf[256], expected[64];

	setenv("GPUSEG_DIR", "/a/b", 1);
	CHECK_EQ(gpuseg_runtime_dir(buf, sizeof(buf)), 4);
	CHECK(strcmp(buf, "/a/b") == 0);
	CHECK_EQ(gpuseg_runtime_dir(buf, 4), -ENAMETOOLONG);
	CHECK_EQ(gpuseg_runtime_dir(NULL, 4), -EINVAL);
	setenv("GPUSEG_DIR", "", 1);
	if (access("/run/gpuseg", F_OK) == 0) { /* gpuseg is installed here: its directory precedes the other rules */
		CHECK_EQ(gpuseg_runtime_dir(buf, sizeof(buf)), 11);
		CHECK(strcmp(buf, "/run/gpuseg") == 0);
		return;
	}
	setenv("XDG_RUNTIME_DIR", "/run/user/7", 1);
	CHECK(gpuseg_runtime_dir(buf, sizeof(buf)) > 0);
	CHECK(strcmp(buf, geteuid() == 0 ? "/dev/shm/gpuseg" : "/run/user/7/gpuseg") == 0);
	unsetenv("XDG_RUNTIME_DIR");
	CHECK(gpuseg_runtime_dir(buf, sizeof(buf)) > 0);
	snprintf(expected, sizeof(expected), "/dev/shm/gpuseg-%u", geteuid());
	CHECK(strcmp(buf, geteuid() == 0 ? "/dev/shm/gpuseg" : expected) == 0);
	unsetenv("GPUSEG_DIR");
}

TEST(should_read_status_and_counters_by_size)
{
	struct gpuseg_task_status s = {.size = sizeof(s)};
	struct gpuseg_counters c = {.size = sizeof(c) + 8};
	struct fake_daemon d;
	gpuseg_client *client;
	gpuseg_task *task;

	fake_daemon_start(&d);
	client = connect_to(&d);
	task = open_task(client, NULL);
	d.slots[0].preemptions = 5;
	d.slots[0].overruns = 6;
	d.slots[0].misses = 7;
	d.slots[0].state = GPUSEG_SEGMENT_PREEMPTED;
	CHECK_EQ(gpuseg_begin(task), 0);
	CHECK_EQ(gpuseg_get_task_status(task, &s), 0);
	CHECK_EQ(s.task_id, 1);
	CHECK_EQ(s.tickets, 1);
	CHECK_EQ(s.preemptions, 5);
	CHECK_EQ(s.overruns, 6);
	CHECK_EQ(s.misses, 7);
	CHECK_EQ(s.state, GPUSEG_SEGMENT_PREEMPTED);
	s.size = 4;
	CHECK_EQ(gpuseg_get_task_status(task, &s), -EINVAL);
	CHECK_EQ(gpuseg_get_counters(client, &c), -EINVAL);
	c.size = offsetof(struct gpuseg_counters, bells);
	c.bells = 99;
	CHECK_EQ(gpuseg_get_counters(client, &c), 0);
	CHECK_EQ(c.records, 1);
	CHECK_EQ(c.bells, 99);
	gpuseg_disconnect(client);
	CHECK_EQ(d.closes, 1);
	fake_daemon_stop(&d);
}

TEST(should_explain_every_result)
{
	static const int codes[] = {ENOTCONN, EPROTO,	 EPROTONOSUPPORT,   EALREADY,	EBUSY,	 ENOSPC,
				    EAGAIN,   ETIMEDOUT, ECANCELED,	    EOWNERDEAD, EBADMSG, E2BIG,
				    EINVAL,   EACCES,	 GPUSEG_EADMISSION, 0};

	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		CHECK(strlen(gpuseg_strerror(-codes[i])) > 5);
		CHECK(gpuseg_strerror(codes[i]) == gpuseg_strerror(-codes[i]));
	}
	CHECK(strstr(gpuseg_strerror(-GPUSEG_EADMISSION), "admission") != NULL);
	CHECK(strncmp(strerror(GPUSEG_EADMISSION), "Unknown", 7) == 0); /* no errno of Linux */
	CHECK(strcmp(gpuseg_strerror(-ENOMEM), strerror(ENOMEM)) == 0);
	CHECK(strchr(gpuseg_version(), '.') != NULL);
	CHECK_EQ(gpuseg_abi_version(), GPUSEG_ABI_VERSION);
}

static const struct check_case cases[] = {
	CASE(should_refuse_to_connect_without_a_daemon),
	CASE(should_refuse_bad_connect_attributes),
	CASE(should_accept_attributes_of_a_newer_program_only_if_the_new_fields_are_zero),
	CASE(should_pass_on_the_refusal_of_the_daemon),
	CASE(should_refuse_a_daemon_of_another_layout),
	CASE(should_refuse_bad_task_attributes_by_name_and_value),
	CASE(should_refuse_begin_twice_and_end_without_begin),
	CASE(should_send_every_task_attribute),
	CASE(should_tell_only_a_daemon_that_knows_it_which_sample_a_job_has),
	CASE(should_cancel_a_job_once_and_tell_only_a_daemon_that_knows_it),
	CASE(should_record_a_job_exactly),
	CASE(should_not_wait_when_pre_granted_unless_told_to),
	CASE(should_sleep_until_the_late_grant),
	CASE(should_withdraw_a_segment_that_timed_out),
	CASE(should_proceed_without_a_grant_if_told_to),
	CASE(should_name_the_segment_that_was_not_begun),
	CASE(should_try_without_sleeping),
	CASE(should_report_a_refused_segment_without_ending_it),
	CASE(should_survive_signals_while_waiting),
	CASE(should_ring_only_a_sleeping_daemon),
	CASE(should_notice_a_dead_daemon_within_50_ms_while_waiting),
	CASE(should_notice_a_dead_daemon_although_pre_granted),
	CASE(should_reconnect_to_a_new_daemon),
	CASE(should_not_grow_with_each_daemon),
	CASE(should_leave_a_task_behind_that_the_next_daemon_refuses),
	CASE(should_stay_away_when_it_is_to_connect_once),
	CASE(should_go_over_while_threads_begin_and_end),
	CASE(should_disconnect_while_it_looks_for_a_daemon),
	CASE(should_outlast_a_daemon_that_is_only_stopped),
	CASE(should_tell_why_it_was_poisoned),
	CASE(should_follow_rolls_announced_ahead_and_late),
	CASE(should_stop_at_the_quota_and_go_on_after_a_roll),
	CASE(should_refuse_handles_of_the_parent_after_fork),
	CASE(should_run_unmanaged_when_allowed),
	CASE(should_choose_the_runtime_directory_by_rule),
	CASE(should_read_status_and_counters_by_size),
	CASE(should_explain_every_result),
};
CHECK_MAIN(cases)
